/* cub.cuh - the emulator's stand-in for the parts of CUB that nearfield uses.
   SPDX-License-Identifier: MIT

   Same names, same two-phase temporary storage, same types for intermediate sums (those of CUB 3.0
   in CUDA 13.0), plain serial loops. What CUB forbids is checked: overlapping input and output,
   storage that is too small, pointers that are not device memory. Temporary storage is filled with
   rubbish, as CUB would: what is kept there is lost. The block and warp algorithms really
   use their TempStorage and really wait, so that a missing barrier between two uses is found.

   Sections: >>storage >>sort >>scan >>reduce >>select >>block >>warp */
#ifndef EMU_CUB_CUH
#define EMU_CUB_CUH

#include <cuda_runtime.h>

#include <iterator>
#include <limits>
#include <vector>

namespace cub {

/* Two buffers, of which one is current: the sort says which of the two holds the result. */
template <class T> struct DoubleBuffer {
    T *d_buffers[2];
    int selector;
    DoubleBuffer() : d_buffers{nullptr, nullptr}, selector(0) {}
    DoubleBuffer(T *current, T *alternate) : d_buffers{current, alternate}, selector(0) {}
    T *Current() { return d_buffers[selector]; }
    T *Alternate() { return d_buffers[selector ^ 1]; }
};

struct NullType {};

/* ---- >>storage ------------------------------------------------------------------------------- */

namespace emu_detail {

template <class It> using value_t = typename std::iterator_traits<It>::value_type;

/* Pointers are checked as device memory; other iterators are the caller's classes. */
template <class T> void check(const T *p, size_t count, const char *what)
{
    if (count) emu::check_range(p, count * sizeof(T), what);
}
template <class It>
typename std::enable_if<!std::is_pointer<It>::value>::type check(const It &, size_t, const char *)
{
}

inline bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

/* The two phases of every device algorithm: without storage say how much, with storage enqueue the
   work. */
template <class Work>
cudaError_t two_phase(void *storage, size_t &bytes, size_t needed, cudaStream_t stream, Work work)
{
    if (!storage) {
        bytes = needed;
        return cudaSuccess;
    }
    if (bytes < needed) return cudaErrorInvalidValue;
    emu::check_range(storage, bytes, "temporary storage of CUB");
    return emu::submit(stream, [=] {
        memset(storage, 0xee, needed);
        work();
    });
}

/* ---- >>sort: stable, by bits [begin, end) of the key, 8 at a time ---------------------------- */

template <size_t bytes> struct Unsigned;
template <> struct Unsigned<1> { using type = uint8_t; };
template <> struct Unsigned<2> { using type = uint16_t; };
template <> struct Unsigned<4> { using type = uint32_t; };
template <> struct Unsigned<8> { using type = uint64_t; };

/* The key as an unsigned number of the same order; -0.0 counts as 0.0, as in CUB. */
template <class K> typename Unsigned<sizeof(K)>::type ordered_bits(K key)
{
    using U = typename Unsigned<sizeof(K)>::type;
    const U top = (U)((U)1 << (sizeof(K) * 8 - 1));
    if (std::is_floating_point<K>::value && key == (K)0) key = (K)0;
    U bits;
    memcpy(&bits, &key, sizeof key);
    if (std::is_floating_point<K>::value) return (bits & top) ? (U)~bits : (U)(bits | top);
    return std::is_signed<K>::value ? (U)(bits ^ top) : bits;
}

/* One pass: moves `from` to `to`, grouped by `width` bits of the keys at `shift`. */
template <class U>
void sort_pass(const std::vector<U> &bits, const std::vector<size_t> &from, std::vector<size_t> &to,
               int shift, int width)
{
    std::vector<size_t> start(((size_t)1 << width) + 1, 0);
    auto digit = [&](size_t i) { return (size_t)(bits[i] >> shift) & (((size_t)1 << width) - 1); };
    for (size_t i : from) ++start[digit(i) + 1];
    for (size_t d = 1; d < start.size(); ++d) start[d] += start[d - 1];
    for (size_t i : from) to[start[digit(i)]++] = i;
}

template <class K>
std::vector<size_t> sorted_order(const K *keys, size_t n, int begin, int end, bool descending)
{
    std::vector<typename Unsigned<sizeof(K)>::type> bits(n);
    std::vector<size_t> order(n), other(n);
    for (size_t i = 0; i < n; ++i) {
        bits[i] = ordered_bits(keys[i]);
        if (descending) bits[i] = (typename Unsigned<sizeof(K)>::type) ~bits[i];
        order[i] = i;
    }
    for (int shift = begin; shift < end; shift += 8) {
        sort_pass(bits, order, other, shift, end - shift < 8 ? end - shift : 8);
        order.swap(other);
    }
    return order;
}

template <class T> void gather(const T *in, T *out, const std::vector<size_t> &order)
{
    std::vector<T> copy(in, in + order.size());
    for (size_t i = 0; i < order.size(); ++i) out[i] = copy[order[i]];
}

template <class K, class V>
void sort_now(const K *keys, K *keys_out, const V *values, V *values_out, size_t n, int begin,
              int end, bool descending)
{
    if (n == 0) return;
    std::vector<size_t> order = sorted_order(keys, n, begin, end, descending);
    gather(keys, keys_out, order);
    if constexpr (!std::is_same<V, NullType>::value) gather(values, values_out, order);
}

template <class K, class V>
cudaError_t sort(void *storage, size_t &bytes, const K *keys, K *keys_out, const V *values,
                 V *values_out, size_t n, int begin, int end, bool descending, bool may_overwrite,
                 cudaStream_t stream)
{
    constexpr bool with_values = !std::is_same<V, NullType>::value;
    const size_t value_size = with_values ? sizeof(V) : 0;
    if (cudaPeekAtLastError() != cudaSuccess) return cudaPeekAtLastError(); /* as the real one */
    if (begin < 0 || end > (int)sizeof(K) * 8 || begin > end) return cudaErrorInvalidValue;
    /* A DoubleBuffer lends its second half; else CUB needs room for a copy of everything. */
    const size_t needed = 1024 + (may_overwrite ? 0 : n * (sizeof(K) + value_size));
    if (storage) {
        check(keys, n, "keys of a sort");
        check(keys_out, n, "sorted keys");
        if (with_values)
            check(values, n, "values of a sort"), check(values_out, n, "sorted values");
        bool clash = overlap(keys, n * sizeof(K), keys_out, n * sizeof(K)) ||
                     overlap(values, n * value_size, values_out, n * value_size);
        if (n && clash)
            emu::trap("cub::DeviceRadixSort: input and output overlap", {__FILE__, __LINE__});
    }
    return two_phase(storage, bytes, needed, stream, [=] {
        sort_now(keys, keys_out, values, values_out, n, begin, end, descending);
    });
}

} // namespace emu_detail

struct DeviceRadixSort {
    template <class K, class V, class N>
    static cudaError_t SortPairs(void *storage, size_t &bytes, const K *keys, K *keys_out,
                                 const V *values, V *values_out, N n, int begin_bit = 0,
                                 int end_bit = sizeof(K) * 8, cudaStream_t stream = nullptr)
    {
        return emu_detail::sort(storage, bytes, keys, keys_out, values, values_out, (size_t)n,
                                begin_bit, end_bit, false, false, stream);
    }
    template <class K, class V, class N>
    static cudaError_t SortPairsDescending(void *storage, size_t &bytes, const K *keys, K *keys_out,
                                           const V *values, V *values_out, N n, int begin_bit = 0,
                                           int end_bit = sizeof(K) * 8,
                                           cudaStream_t stream = nullptr)
    {
        return emu_detail::sort(storage, bytes, keys, keys_out, values, values_out, (size_t)n,
                                begin_bit, end_bit, true, false, stream);
    }
    template <class K, class N>
    static cudaError_t SortKeys(void *storage, size_t &bytes, const K *keys, K *keys_out, N n,
                                int begin_bit = 0, int end_bit = sizeof(K) * 8,
                                cudaStream_t stream = nullptr)
    {
        const NullType *none = nullptr;
        return emu_detail::sort(storage, bytes, keys, keys_out, none, (NullType *)nullptr,
                                (size_t)n, begin_bit, end_bit, false, false, stream);
    }
    template <class K, class V, class N>
    static cudaError_t SortPairs(void *storage, size_t &bytes, DoubleBuffer<K> &keys,
                                 DoubleBuffer<V> &values, N n, int begin_bit = 0,
                                 int end_bit = sizeof(K) * 8, cudaStream_t stream = nullptr)
    {
        const K *in = keys.Current();
        const V *values_in = values.Current();
        cudaError_t error =
            emu_detail::sort(storage, bytes, in, keys.Alternate(), values_in, values.Alternate(),
                             (size_t)n, begin_bit, end_bit, false, true, stream);
        if (storage && error == cudaSuccess) keys.selector ^= 1, values.selector ^= 1;
        return error;
    }
    template <class K, class N>
    static cudaError_t SortKeys(void *storage, size_t &bytes, DoubleBuffer<K> &keys, N n,
                                int begin_bit = 0, int end_bit = sizeof(K) * 8,
                                cudaStream_t stream = nullptr)
    {
        const K *in = keys.Current();
        const NullType *none = nullptr;
        cudaError_t error =
            emu_detail::sort(storage, bytes, in, keys.Alternate(), none, (NullType *)nullptr,
                             (size_t)n, begin_bit, end_bit, false, true, stream);
        if (storage && error == cudaSuccess) keys.selector ^= 1;
        return error;
    }
};

/* ---- >>scan ------------------------------------------------------------------------------------

   Sums are formed in the type of input + input, whatever the output is: 32-bit counts into 64-bit
   offsets overflow at 2^31 on the GPU, so they do here (and UBSan or the answer shows it). */

namespace emu_detail {

template <class Op, class A, class B>
using accumulator_t =
    typename std::decay<decltype(std::declval<Op>()(std::declval<A>(), std::declval<B>()))>::type;

struct Plus {
    template <class A, class B> auto operator()(const A &a, const B &b) const { return a + b; }
};
struct Minimum {
    template <class T> T operator()(const T &a, const T &b) const { return b < a ? b : a; }
};
struct Maximum {
    template <class T> T operator()(const T &a, const T &b) const { return a < b ? b : a; }
};

inline size_t scan_storage(size_t n) { return 256 + n / 128 * 16; }

template <class In, class Out, class Op, class Init>
cudaError_t exclusive(void *storage, size_t &bytes, In in, Out out, Op op, Init init, size_t n,
                      cudaStream_t stream)
{
    using Sum = accumulator_t<Op, value_t<In>, Init>;
    if (storage) check(in, n, "input of a scan"), check(out, n, "output of a scan");
    return two_phase(storage, bytes, scan_storage(n), stream, [=] {
        In from = in;
        Out to = out;
        Sum sum = (Sum)init;
        for (size_t i = 0; i < n; ++i) {
            /* the last element is not needed */
            Sum next = i + 1 < n ? (Sum)op(sum, from[(ptrdiff_t)i]) : sum;
            to[(ptrdiff_t)i] = sum;
            sum = next;
        }
    });
}

template <class In, class Out, class Op>
cudaError_t inclusive(void *storage, size_t &bytes, In in, Out out, Op op, size_t n,
                      cudaStream_t stream)
{
    using Sum = accumulator_t<Op, value_t<In>, value_t<In>>;
    if (storage) check(in, n, "input of a scan"), check(out, n, "output of a scan");
    return two_phase(storage, bytes, scan_storage(n), stream, [=] {
        In from = in;
        Out to = out;
        Sum sum{};
        for (size_t i = 0; i < n; ++i) {
            sum = i ? (Sum)op(sum, from[(ptrdiff_t)i]) : (Sum)from[(ptrdiff_t)i];
            to[(ptrdiff_t)i] = sum;
        }
    });
}

} // namespace emu_detail

struct DeviceScan {
    template <class In, class Out, class N>
    static cudaError_t ExclusiveSum(void *storage, size_t &bytes, In in, Out out, N n,
                                    cudaStream_t stream = nullptr)
    {
        /* as the real one */
        if (cudaPeekAtLastError() != cudaSuccess) return cudaPeekAtLastError();
        return emu_detail::exclusive(storage, bytes, in, out, emu_detail::Plus{},
                                     emu_detail::value_t<In>{}, (size_t)n, stream);
    }
    template <class In, class Out, class N>
    static cudaError_t InclusiveSum(void *storage, size_t &bytes, In in, Out out, N n,
                                    cudaStream_t stream = nullptr)
    {
        return emu_detail::inclusive(storage, bytes, in, out, emu_detail::Plus{}, (size_t)n,
                                     stream);
    }
    /* In place. */
    template <class It, class N>
    static cudaError_t ExclusiveSum(void *storage, size_t &bytes, It data, N n,
                                    cudaStream_t stream = nullptr)
    {
        return ExclusiveSum(storage, bytes, data, data, n, stream);
    }
    template <class It, class N>
    static cudaError_t InclusiveSum(void *storage, size_t &bytes, It data, N n,
                                    cudaStream_t stream = nullptr)
    {
        return InclusiveSum(storage, bytes, data, data, n, stream);
    }
    template <class In, class Out, class Op, class Init, class N>
    static cudaError_t ExclusiveScan(void *storage, size_t &bytes, In in, Out out, Op op, Init init,
                                     N n, cudaStream_t stream = nullptr)
    {
        return emu_detail::exclusive(storage, bytes, in, out, op, init, (size_t)n, stream);
    }
    template <class In, class Out, class Op, class N>
    static cudaError_t InclusiveScan(void *storage, size_t &bytes, In in, Out out, Op op, N n,
                                     cudaStream_t stream = nullptr)
    {
        return emu_detail::inclusive(storage, bytes, in, out, op, (size_t)n, stream);
    }
};

/* ---- >>reduce -------------------------------------------------------------------------------- */

namespace emu_detail {

template <class In, class Out, class Op, class Init>
cudaError_t reduce(void *storage, size_t &bytes, In in, Out out, Op op, Init init, size_t n,
                   cudaStream_t stream)
{
    using Sum = accumulator_t<Op, Init, value_t<In>>;
    if (storage) check(in, n, "input of a reduction"), check(out, 1, "output of a reduction");
    return two_phase(storage, bytes, scan_storage(n), stream, [=] {
        In from = in;
        Out to = out;
        Sum sum = (Sum)init;
        for (size_t i = 0; i < n; ++i) sum = (Sum)op(sum, (Sum)from[(ptrdiff_t)i]);
        to[0] = sum;
    });
}

} // namespace emu_detail

struct DeviceReduce {
    template <class In, class Out, class N>
    static cudaError_t Sum(void *storage, size_t &bytes, In in, Out out, N n,
                           cudaStream_t stream = nullptr)
    {
        return emu_detail::reduce(storage, bytes, in, out, emu_detail::Plus{},
                                  emu_detail::value_t<Out>{}, (size_t)n, stream);
    }
    template <class In, class Out, class N>
    static cudaError_t Min(void *storage, size_t &bytes, In in, Out out, N n,
                           cudaStream_t stream = nullptr)
    {
        using T = emu_detail::value_t<In>;
        return emu_detail::reduce(storage, bytes, in, out, emu_detail::Minimum{},
                                  std::numeric_limits<T>::max(), (size_t)n, stream);
    }
    template <class In, class Out, class N>
    static cudaError_t Max(void *storage, size_t &bytes, In in, Out out, N n,
                           cudaStream_t stream = nullptr)
    {
        using T = emu_detail::value_t<In>;
        return emu_detail::reduce(storage, bytes, in, out, emu_detail::Maximum{},
                                  std::numeric_limits<T>::lowest(), (size_t)n, stream);
    }
    template <class In, class Out, class Op, class Init, class N>
    static cudaError_t Reduce(void *storage, size_t &bytes, In in, Out out, N n, Op op, Init init,
                              cudaStream_t stream = nullptr)
    {
        return emu_detail::reduce(storage, bytes, in, out, op, init, (size_t)n, stream);
    }
};

/* ---- >>select -------------------------------------------------------------------------------- */

namespace emu_detail {

template <class In, class Out, class Count, class Keep>
cudaError_t select(void *storage, size_t &bytes, In in, Out out, Count count, size_t n, Keep keep,
                   cudaStream_t stream)
{
    if (storage) check(in, n, "input of a selection"), check(count, 1, "count of a selection");
    return two_phase(storage, bytes, scan_storage(n), stream, [=] {
        In from = in;
        Out to = out;
        ptrdiff_t kept = 0;
        for (size_t i = 0; i < n; ++i)
            if (keep(i)) to[kept++] = from[(ptrdiff_t)i];
        *count = (value_t<Count>)kept;
    });
}

} // namespace emu_detail

struct DeviceSelect {
    template <class In, class Flags, class Out, class Count, class N>
    static cudaError_t Flagged(void *storage, size_t &bytes, In in, Flags flags, Out out,
                               Count count, N n, cudaStream_t stream = nullptr)
    {
        return emu_detail::select(
            storage, bytes, in, out, count, (size_t)n,
            [=](size_t i) { return (bool)flags[(ptrdiff_t)i]; }, stream);
    }
    template <class In, class Out, class Count, class N, class Predicate>
    static cudaError_t If(void *storage, size_t &bytes, In in, Out out, Count count, N n,
                          Predicate keep, cudaStream_t stream = nullptr)
    {
        return emu_detail::select(
            storage, bytes, in, out, count, (size_t)n,
            [=](size_t i) { return keep(in[(ptrdiff_t)i]); }, stream);
    }
    template <class In, class Out, class Count, class N>
    static cudaError_t Unique(void *storage, size_t &bytes, In in, Out out, Count count, N n,
                              cudaStream_t stream = nullptr)
    {
        return emu_detail::select(
            storage, bytes, in, out, count, (size_t)n,
            [=](size_t i) { return i == 0 || !(in[(ptrdiff_t)i] == in[(ptrdiff_t)i - 1]); },
            stream);
    }
};

/* ---- >>block -----------------------------------------------------------------------------------

   Every thread leaves its value in the storage, all wait, and then read what *others* left. Nobody
   waits at the end: as with CUB, a second use of the storage needs a barrier of the caller's. The
   place of the caller goes along, so that reports name his line and not one of this file. */

enum BlockReduceAlgorithm {
    BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
    BLOCK_REDUCE_RAKING,
    BLOCK_REDUCE_WARP_REDUCTIONS
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

namespace emu_detail {
inline int thread_rank()
{
    return (int)((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x);
}

template <class T, int n, class Op> T reduce_items(const T (&items)[n], Op op)
{
    T sum = items[0];
    for (int i = 1; i < n; ++i) sum = op(sum, items[i]);
    return sum;
}
} // namespace emu_detail

template <class T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1>
class BlockReduce
{
  public:
    struct TempStorage { T value[X * Y * Z]; };
    explicit BlockReduce(TempStorage &storage) : storage_(storage) {}

    /* The result is that of thread 0. What others get is undefined; here, their own value. */
    template <class Op> T Reduce(T value, Op op, int valid, EMU_SITE) {
        int rank = emu_detail::thread_rank();
        storage_.value[rank] = value;
        emu::barrier(emu::Op::barrier, 0, site);
        if (rank == 0)
            for (int i = 1; i < valid; ++i) value = op(value, storage_.value[i]);
        return value;
    }
    template <class Op> T Reduce(T value, Op op, EMU_SITE)
    {
        return Reduce(value, op, X * Y * Z, site);
    }
    template <int n, class Op> T Reduce(const T (&items)[n], Op op, EMU_SITE) {
        return Reduce(emu_detail::reduce_items(items, op), op, X * Y * Z, site);
    }
    T Sum(T value, EMU_SITE) { return Reduce(value, emu_detail::Plus{}, X * Y * Z, site); }
    T Sum(T value, int valid, EMU_SITE) { return Reduce(value, emu_detail::Plus{}, valid, site); }
    template <int n> T Sum(const T (&items)[n], EMU_SITE)
    {
        return Sum(emu_detail::reduce_items(items, emu_detail::Plus{}), site);
    }

private:
    TempStorage &storage_;
};

template <class T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1>
class BlockScan
{
  public:
    struct TempStorage { T value[X * Y * Z]; };
    explicit BlockScan(TempStorage &storage) : storage_(storage) {}

    template <class Op> void InclusiveScan(T in, T &out, Op op, T &total, EMU_SITE) {
        scan(in, op, site);
        out = op_before(in, op);
        total = storage_.value[X * Y * Z - 1];
    }
    template <class Op> void InclusiveScan(T in, T &out, Op op, EMU_SITE)
    {
        T total;
        InclusiveScan(in, out, op, total, site);
    }
    template <class Op> void ExclusiveScan(T in, T &out, T init, Op op, T &total, EMU_SITE) {
        scan(in, op, site);
        int rank = emu_detail::thread_rank();
        out = rank ? op(init, storage_.value[rank - 1]) : init;
        total = storage_.value[X * Y * Z - 1];
    }
    template <class Op> void ExclusiveScan(T in, T &out, T init, Op op, EMU_SITE)
    {
        T total;
        ExclusiveScan(in, out, init, op, total, site);
    }

    void InclusiveSum(T in, T &out, EMU_SITE) { InclusiveScan(in, out, emu_detail::Plus{}, site); }
    void InclusiveSum(T in, T &out, T &total, EMU_SITE)
    {
        InclusiveScan(in, out, emu_detail::Plus{}, total, site);
    }
    void ExclusiveSum(T in, T &out, EMU_SITE)
    {
        ExclusiveScan(in, out, T{}, emu_detail::Plus{}, site);
    }
    void ExclusiveSum(T in, T &out, T &total, EMU_SITE)
    {
        ExclusiveScan(in, out, T{}, emu_detail::Plus{}, total, site);
    }

    template <int n> void InclusiveSum(const T (&in)[n], T (&out)[n], EMU_SITE)
    {
        T total;
        sum_items(in, out, total, true, site);
    }
    template <int n> void InclusiveSum(const T (&in)[n], T (&out)[n], T &total, EMU_SITE)
    {
        sum_items(in, out, total, true, site);
    }
    template <int n> void ExclusiveSum(const T (&in)[n], T (&out)[n], EMU_SITE)
    {
        T total;
        sum_items(in, out, total, false, site);
    }
    template <int n> void ExclusiveSum(const T (&in)[n], T (&out)[n], T &total, EMU_SITE)
    {
        sum_items(in, out, total, false, site);
    }

private:
    TempStorage &storage_;

    /* Afterwards storage holds the inclusive scan. */
    template <class Op> void scan(T in, Op op, emu::Site site) {
        int rank = emu_detail::thread_rank();
        storage_.value[rank] = in;
        emu::barrier(emu::Op::barrier, 0, site);
        if (rank == 0)
            for (int i = 1; i < X * Y * Z; ++i)
                storage_.value[i] = op(storage_.value[i - 1], storage_.value[i]);
        emu::barrier(emu::Op::barrier, 1, site);
    }
    /* From the neighbour's slot rather than the own one: see the remark on reuse above. */
    template <class Op> T op_before(T in, Op op) const {
        int rank = emu_detail::thread_rank();
        return rank ? op(storage_.value[rank - 1], in) : in;
    }
    template <int n>
    void sum_items(const T (&in)[n], T (&out)[n], T &total, bool inclusive, emu::Site site)
    {
        T before;
        ExclusiveSum(emu_detail::reduce_items(in, emu_detail::Plus{}), before, total, site);
        for (int i = 0; i < n; ++i) {
            T value = in[i];
            out[i] = inclusive ? before + value : before;
            before = before + value;
        }
    }
};

/* Items of a thread lie side by side before, and X apart afterwards. */
template <class K, int X, int items, class V> class BlockRadixSort
{
  public:
    struct TempStorage {
        K key[X * items];
        V value[X * items];
    };
    explicit BlockRadixSort(TempStorage &storage) : storage_(storage) {}

    void SortBlockedToStriped(K (&keys)[items], V (&values)[items], int begin, int end, EMU_SITE) {
        int const rank = emu_detail::thread_rank();
        for (int k = 0; k < items; ++k) {
            storage_.key[rank * items + k] = keys[k];
            storage_.value[rank * items + k] = values[k];
        }
        emu::barrier(emu::Op::barrier, 0, site);
        if (rank == 0)
            emu_detail::sort_now(storage_.key, storage_.key, storage_.value, storage_.value,
                                 (size_t)X * items, begin, end, false);
        emu::barrier(emu::Op::barrier, 0, site);
        for (int k = 0; k < items; ++k) {
            keys[k] = storage_.key[k * X + rank];
            values[k] = storage_.value[k * X + rank];
        }
    }

private:
    TempStorage &storage_;
};

/* ---- >>warp ---------------------------------------------------------------------------------- */

namespace emu_detail {

/* The lanes of one logical warp: `size` neighbours within a warp of 32. */
template <int size> struct LogicalWarp {
    static int lane() { return thread_rank() % size; }
    static unsigned int mask() {
        if (size == 32) return 0xffffffffu;
        return ((1u << (size & 31)) - 1) << (thread_rank() % 32 / size * size);
    }
    static void sync(emu::Site site) { emu::warp(emu::Op::sync, mask(), 0, 0, 32, site); }
};

} // namespace emu_detail

template <class T, int size = 32> class WarpReduce {
    using Lanes = emu_detail::LogicalWarp<size>;

public:
    struct TempStorage { T value[size]; };
    explicit WarpReduce(TempStorage &storage) : storage_(storage) {}

    /* The result is that of the first lane. */
    template <class Op> T Reduce(T value, Op op, int valid, EMU_SITE) {
        storage_.value[Lanes::lane()] = value;
        Lanes::sync(site);
        if (Lanes::lane() == 0)
            for (int i = 1; i < valid; ++i) value = op(value, storage_.value[i]);
        return value;
    }
    template <class Op> T Reduce(T value, Op op, EMU_SITE) { return Reduce(value, op, size, site); }
    T Sum(T value, EMU_SITE) { return Reduce(value, emu_detail::Plus{}, size, site); }
    T Sum(T value, int valid, EMU_SITE) { return Reduce(value, emu_detail::Plus{}, valid, site); }

private:
    TempStorage &storage_;
};

template <class T, int size = 32> class WarpScan {
    using Lanes = emu_detail::LogicalWarp<size>;

public:
    struct TempStorage { T value[size]; };
    explicit WarpScan(TempStorage &storage) : storage_(storage) {}

    void ExclusiveSum(T in, T &out, T &total, EMU_SITE) {
        storage_.value[Lanes::lane()] = in;
        Lanes::sync(site);
        T before{};
        total = T{};
        for (int i = 0; i < size; ++i) {
            if (i == Lanes::lane()) before = total;
            total = total + storage_.value[i];
        }
        out = before;
    }
    void ExclusiveSum(T in, T &out, EMU_SITE) { T total; ExclusiveSum(in, out, total, site); }
    void InclusiveSum(T in, T &out, EMU_SITE)
    {
        T before;
        ExclusiveSum(in, before, site);
        out = before + in;
    }
    void InclusiveSum(T in, T &out, T &total, EMU_SITE)
    {
        T before;
        ExclusiveSum(in, before, total, site);
        out = before + in;
    }

private:
    TempStorage &storage_;
};

} // namespace cub
#endif
