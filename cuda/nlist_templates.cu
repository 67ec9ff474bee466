/* cuda/nlist_templates.cu - v0.2.0 - templates of nlist.h for .cu files, which include it by that.
   SPDX-License-Identifier: MIT OR Unlicense

   For every .cu file that defines NLIST_CUDA: the iterator of a nlist_device in kernels, and sums
   and loops over entries by a functor, compiled where they are called. The kernels of builds are in
   cuda/nlist.cu.

   >>contents: search for >>, the name and a colon. sums. */

#ifndef NLIST_H
#error "cuda/nlist_templates.cu is a part of nlist.h: include that"
#elif 10000 * NLIST_VERSION_MAJOR + 100 * NLIST_VERSION_MINOR + NLIST_VERSION_PATCH != 200
#error "cuda/nlist_templates.cu 0.2.0 and nlist.h are of different versions: \
copy both from one release"
#endif

/* ----------------------------------------------------------------------------------------------
   >>sums: the iterator of a nlist_device, and a functor for sums or for each entry
   ---------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ nlist_each nlist_of(const nlist_device *device, int32_t i)
{
    return nlist_of(&device->list, i);
}
static __device__ __forceinline__ void *nlist_history(const nlist_device *device, int64_t entry)
{
    return nlist_history(&device->list, entry);
}
static __device__ __forceinline__ int nlist_touch_entry(const nlist_device *device, int64_t entry,
                                                        int touching)
{
    return nlist_touch_entry(&device->list, entry, touching);
}

/* begin: checks a sum and provides zeroed units, where how.unit asks for them. end: adds the units
   to d_sums. */
extern "C" {
NLIST_API nlist_result nlist_i_cuda_begin_sum(nlist_cuda *gpu, const nlist_sums *how,
                                              int32_t values, const nlist_real *d_sums,
                                              unsigned long long **units, nlist_mode *mode,
                                              struct CUstream_st *stream);
NLIST_API nlist_result nlist_i_cuda_end_sum(nlist_cuda *gpu, const nlist_sums *how, int32_t values,
                                            nlist_real *d_sums, const unsigned long long *units,
                                            struct CUstream_st *stream);
}

/* The only place where kernels are launched: the compiler checks the types, and the error is kept
   and returned. */
template <class... Parameters, class... Arguments>
static nlist_result nlist_i_launch(nlist_cuda *gpu, struct CUstream_st *stream, int64_t threads,
                                   int block, void (*kernel)(Parameters...), Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    gpu->stream = stream;
    if (threads <= 0) return NLIST_OK;
    if ((threads + block - 1) / block > INT32_MAX) return NLIST_TOO_MANY;
    config.gridDim = dim3((unsigned)((threads + block - 1) / block));
    config.blockDim = dim3((unsigned)block);
    config.stream = stream;
    cudaError_t const error = cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
    if (error == cudaSuccess) return NLIST_OK;
    gpu->device.list.cuda_error = (int32_t)error;
    (void)cudaGetLastError(); /* it is reported; the next call begins without it */
    return NLIST_CUDA_ERROR;
}

/* The number of this thread in the grid, and how many there are. */
static __device__ __forceinline__ int64_t nlist_i_global_thread()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
static __device__ __forceinline__ int64_t nlist_i_all_threads()
{
    return (int64_t)gridDim.x * blockDim.x;
}

/* Threads of kernels whose amount of work only the device knows: they loop until all is done. An
   H200 runs this many at once. */
constexpr int64_t nlist_i_round_threads = 132 * 2048;
constexpr int nlist_i_sum_block = 128;
constexpr int nlist_i_row_lanes = 8; /* lanes that share a row of COMPACT */

/* The smaller of two numbers. */
static __host__ __device__ __forceinline__ int64_t nlist_i_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Entries of partner in use. The counter goes on where partner is full. */
static __device__ __forceinline__ int64_t nlist_i_rest_entries(const nlist *list,
                                                               const nlist_rows *rows,
                                                               const nlist_cuda_facts *facts)
{
    int const generation = rows == &list->rows[1];
    return nlist_i_least((int64_t)facts->entries[generation], rows->capacity);
}

/* a + b, rounded: fused with a product of the caller's it would give other bits than the serial
   sum. */
static __device__ __forceinline__ float nlist_i_plus(float a, float b) { return __fadd_rn(a, b); }
static __device__ __forceinline__ double nlist_i_plus(double a, double b)
{
    return __dadd_rn(a, b);
}
static __device__ __forceinline__ long long nlist_i_plus(long long a, long long b) { return a + b; }

/* The type that is summed: reals, or whole units. */
template <bool Units> struct nlist_i_term { typedef nlist_real type; };
template <> struct nlist_i_term<true> { typedef long long type; };

static __device__ __forceinline__ void nlist_i_atomic_add(nlist_real *to, nlist_real x)
{
    atomicAdd(to, x);
}
static __device__ __forceinline__ void nlist_i_atomic_add(long long *to, long long x)
{
    atomicAdd((unsigned long long *)to, (unsigned long long)x);
}

/* Adds two floats by one atomic, where the GPU can: atomics limit the speed of half lists. */
static __device__ __forceinline__ bool nlist_i_atomic_add_two(float *to, const float *x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    atomicAdd(reinterpret_cast<float2 *>(to), make_float2(x[0], x[1]));
    return true;
#else
    (void)to;
    (void)x;
    return false;
#endif
}
template <class Term>
static __device__ __forceinline__ bool nlist_i_atomic_add_two(Term *, const Term *)
{
    return false;
}

/* A sum in progress, as the kernels take it. */
template <int Values, bool Units> struct nlist_i_gpu_adder {
    typedef typename nlist_i_term<Units>::type term;
    term *sums;             /* of all particles: the caller's numbers, or units */
    double units_per_one;
    nlist_cuda_facts *facts;
    bool twos;              /* sums are aligned for adding two at once */

    /* Reals become terms. */
    __device__ __forceinline__ void take(const nlist_real *x, term *t) const
    {
        for (int v = 0; v < Values; v++) {
            if (Units) {
                int64_t units;
                if (!nlist_i_units(x[v], units_per_one, &units)) atomicExch(&facts->overflow, 1);
                t[v] = (term)units;
            } else t[v] = (term)x[v];
        }
    }
    __device__ __forceinline__ void add_atomic(int32_t i, const term *t) const
    {
        term *const to = sums + (int64_t)i * Values;
#pragma unroll
        for (int v = 0; v < Values; v += 2) {
            if (Values % 2 == 0 && twos && nlist_i_atomic_add_two(to + v, t + v)) continue;
            nlist_i_atomic_add(to + v, t[v]);
            if (v + 1 < Values) nlist_i_atomic_add(to + v + 1, t[v + 1]);
        }
    }
    __device__ __forceinline__ void add(int32_t i, const term *t) const
    {
        for (int v = 0; v < Values; v++)
            sums[(int64_t)i * Values + v] = nlist_i_plus(sums[(int64_t)i * Values + v], t[v]);
    }
};

/* 1 if this partner exists. Where the last build did not fit, the list is the previous one, which
   may have more particles or triangles than the caller has now. */
static __device__ __forceinline__ bool nlist_i_exists(const nlist &list, int32_t j)
{
    return (uint32_t)j < (uint32_t)nlist_i_id_limit(list.keys, list.triangles, list.n);
}

/* Calls the contact for one entry. t: what it adds to the row's particle; the partner's share is
   added at once. False: it adds nothing. */
template <int Values, bool Units, class Contact>
static __device__ __forceinline__ bool nlist_i_gpu_call(
    const nlist &list, const nlist_rows &rows, const nlist_i_gpu_adder<Values, Units> &adder,
    const Contact &contact, int32_t i, int32_t j, int64_t entry,
    typename nlist_i_term<Units>::type *t)
{
    nlist_real own[Values], other[Values];
    if (!nlist_i_exists(list, j)) return false;
    for (int v = 0; v < Values; v++) own[v] = other[v] = 0;
    void *const history = rows.history ? rows.history + entry * list.desc.history : nullptr;
    bool const adds = contact(i, j, history, own, other);
    if (list.desc.contacts)
        nlist_i_touch(rows.state ? rows.state + entry : nullptr,
                      static_cast<unsigned char *>(history), list.desc.history, adds);
    if (!adds) return false;
    if (list.desc.half && !list.keys) {
        adder.take(other, t);
        adder.add_atomic(j, t);
    }
    adder.take(own, t);
    return true;
}

/* NLIST_PER_PARTICLE: a thread per row (Kureck section 5.1), or per touched row (5.4). */
template <int Values, bool Units, class Contact>
__global__ void __launch_bounds__(nlist_i_sum_block)
    nlist_i_sum_rows_kernel(__grid_constant__ const nlist_device device,
                            nlist_i_gpu_adder<Values, Units> adder,
                            __grid_constant__ const Contact contact)
{
    typedef typename nlist_i_term<Units>::type term;
    const nlist &list = device.list;
    const nlist_rows &rows = *nlist_i_rows(&list);
    int64_t const turns = rows.touched ? adder.facts->touched[&rows == &list.rows[1]] : rows.n;
    for (int64_t turn = nlist_i_global_thread(); turn < turns; turn += nlist_i_all_threads()) {
        int32_t const i = rows.touched ? rows.touched[turn] : (int32_t)turn;
        nlist_each e = nlist_i_row(&rows, list.desc.history, i < list.n ? i : -1);
        term sum[Values] = {}, t[Values];
        bool any = false;
        while (nlist_next(&e)) {
            if (!nlist_i_gpu_call(list, rows, adder, contact, i, e.id, e.entry, t)) continue;
            for (int v = 0; v < Values; v++) sum[v] = nlist_i_plus(sum[v], t[v]);
            any = true;
        }
        if (any && list.desc.half) adder.add_atomic(i, sum);
        else if (any) adder.add(i, sum);
    }
}

/* A thread per slot, adding by atomics or by a reduction among the lanes of a row: the upper half
   is added to the lower, and again. Width 4, values a b c d:

       lane of the row      0         1       2    3
       step 2              a+c       b+d      .    .       each adds the value 2 lanes above
       step 1         (a+c)+(b+d)     .       .    .       lane 0 has the row's sum (dots: unused)

   (Kureck section 5.1, figure 5.2; Blog, Faster Parallel Reductions on Kepler.) */
template <int Values, bool Units, class Contact>
__global__ void __launch_bounds__(nlist_i_sum_block)
    nlist_i_sum_slots_kernel(__grid_constant__ const nlist_device device,
                             nlist_i_gpu_adder<Values, Units> adder, bool reduce,
                             __grid_constant__ const Contact contact)
{
    typedef typename nlist_i_term<Units>::type term;
    const nlist &list = device.list;
    const nlist_rows &rows = *nlist_i_rows(&list);
    int64_t const entry = nlist_i_global_thread();
    int const width = rows.width, shift = width > 0 ? __ffs(width) - 1 : 0;
    bool const even = width == 1 << shift; /* a 64-bit division costs 70 instructions */
    bool const exists = entry < (int64_t)rows.n * width && adder.facts->filled > 0;
    int32_t const i = !exists ? -1
                      : even  ? (int32_t)(entry >> shift)
                              : (int32_t)(entry / width),
                  j = exists ? rows.slot[entry] : -1;
    term t[Values] = {};
    bool adds = j >= 0 && i < list.n &&
                nlist_i_gpu_call(list, rows, adder, contact, i, j, entry, t);
    if (!reduce || !even || width > 32) { /* the previous list may have a width that does not
                                             reduce */
        if (adds) adder.add_atomic(i, t);
        return;
    }
    if (!adds) for (int v = 0; v < Values; v++) t[v] = 0;
    unsigned const adding = __ballot_sync(0xFFFFFFFFu, adds);
    if (adding == 0) return; /* all lanes of the warp return: the shuffles need all or none */
    for (int step = width / 2; step > 0; step /= 2)
        for (int v = 0; v < Values; v++)
            t[v] = nlist_i_plus(t[v], __shfl_down_sync(0xFFFFFFFFu, t[v], (unsigned)step, width));
    int const lane = (int)(threadIdx.x % 32);
    unsigned const row_mask = (width == 32 ? 0xFFFFFFFFu : ((1u << width) - 1) << lane);
    if (lane % width != 0 || !(adding & row_mask)) return;
    if (list.desc.half || rows.head) adder.add_atomic(i, t);
    else adder.add(i, t);
}

/* Reduction by key: lanes of a warp with the same key are summed; true for the lane that has the
   sum, the first of its key. In each round every second lane of those left gives its sum to the one
   before it:

       lane       0      1    2    3    4
       key        5      5    8    5    5
       value      a      b    c    d    e
       round 1   a+b          c   d+e             of key 5 the lanes 0 and 3 are left
       round 2 (a+b)+(d+e)    c                   lanes 0 and 2 return true

   (Kureck section 5.2; Blog, Voting and Shuffling to Optimize Atomic Operations.) */
template <int Values, class Term>
static __device__ __forceinline__ bool nlist_i_reduce_by_key(int32_t key, Term *t)
{
    int const lane = (int)(threadIdx.x % 32);
    unsigned const same = __match_any_sync(0xFFFFFFFFu, key);
    unsigned left = same;
    bool stays = true;
    while (__any_sync(0xFFFFFFFFu, stays && (left >> lane >> 1) != 0)) {
        unsigned const above = left >> lane >> 1;
        int const source = stays && above ? lane + __ffs((int)above) : lane;
        int const rank = __popc(left & ((1u << lane) - 1));
        for (int v = 0; v < Values; v++) {
            Term const x = __shfl_sync(0xFFFFFFFFu, t[v], source);
            if (stays && rank % 2 == 0 && source != lane) t[v] += x;
        }
        stays = stays && rank % 2 == 0;
        left &= __ballot_sync(0xFFFFFFFFu, stays);
    }
    return stays;
}

/* A thread per entry of the rest (Kureck section 5.2), adding by atomics, with or without a
   reduction by key before. */
template <int Values, bool Units, class Contact>
__global__ void __launch_bounds__(nlist_i_sum_block)
    nlist_i_sum_rest_kernel(__grid_constant__ const nlist_device device,
                            nlist_i_gpu_adder<Values, Units> adder, bool reduce,
                            __grid_constant__ const Contact contact)
{
    typedef typename nlist_i_term<Units>::type term;
    const nlist &list = device.list;
    const nlist_rows &rows = *nlist_i_rows(&list);
    int64_t const entries = rows.own ? nlist_i_rest_entries(&list, &rows, adder.facts) : 0,
                  slots = (int64_t)rows.n * rows.width;
    int64_t const all = nlist_i_all_threads(), lane = (int64_t)(threadIdx.x % 32);
    /* while lane 0 has an entry: the reduction needs all 32 */
    for (int64_t e = nlist_i_global_thread(); e - lane < entries; e += all) {
        int32_t const i = e < entries ? rows.own[e] : -1;
        term t[Values] = {};
        bool adds = i >= 0 && i < list.n &&
                    nlist_i_gpu_call(list, rows, adder, contact, i, rows.partner[e], slots + e, t);
        if (reduce) adds = nlist_i_reduce_by_key<Values>(adds ? i : -1, t) && adds;
        if (adds) adder.add_atomic(i, t);
    }
}

/* COMPACT: nlist_i_row_lanes threads share a row. */
template <int Values, bool Units, class Contact>
__global__ void __launch_bounds__(nlist_i_sum_block)
    nlist_i_sum_compact_kernel(__grid_constant__ const nlist_device device,
                               nlist_i_gpu_adder<Values, Units> adder, bool reduce,
                               __grid_constant__ const Contact contact)
{
    typedef typename nlist_i_term<Units>::type term;
    const nlist &list = device.list;
    const nlist_rows &rows = *nlist_i_rows(&list);
    int64_t const row = nlist_i_global_thread() / nlist_i_row_lanes;
    int32_t const i = (int32_t)row;
    int const lane = (int)(threadIdx.x % nlist_i_row_lanes);
    term sum[Values] = {}, t[Values];
    nlist_each const e = nlist_i_row(&rows, 0,
                                     rows.start && row < nlist_i_least(rows.n, list.n) ? i : -1);
    bool any = false;
    for (int64_t at = e.at + lane; at < e.end; at += nlist_i_row_lanes) {
        if (!nlist_i_gpu_call(list, rows, adder, contact, i, rows.partner[at], at, t)) continue;
        if (!reduce) adder.add_atomic(i, t);
        for (int v = 0; v < Values; v++) sum[v] += t[v];
        any = true;
    }
    if (!reduce) return;
    for (int step = nlist_i_row_lanes / 2; step > 0; step /= 2)
        for (int v = 0; v < Values; v++)
            sum[v] += __shfl_down_sync(0xFFFFFFFFu, sum[v], (unsigned)step, nlist_i_row_lanes);
    unsigned const adding = __ballot_sync(0xFFFFFFFFu, any) >> (threadIdx.x % 32 - (unsigned)lane) &
                            ((1u << nlist_i_row_lanes) - 1);
    if (lane == 0 && adding) adder.add_atomic(i, sum);
}

/* Threads for the rest. */
static inline int64_t nlist_i_round(const nlist_cuda *gpu)
{
    const nlist_rows *rows = gpu->device.list.rows;
    int64_t const capacity = rows[0].capacity > rows[1].capacity ? rows[0].capacity
                                                                 : rows[1].capacity;
    return capacity < nlist_i_round_threads ? capacity : nlist_i_round_threads;
}

/* Threads for the slots. */
static inline int64_t nlist_i_slot_threads(const nlist_cuda *gpu)
{
    const nlist_rows *rows = gpu->device.list.rows;
    int64_t const a = (int64_t)rows[0].n * rows[0].width, b = (int64_t)rows[1].n * rows[1].width;
    return a > b ? a : b;
}

/* Only the device knows which generation is the list: kernels are launched for what either has, and
   process what the list has. */
template <int Values, bool Units, class Contact>
static nlist_result nlist_i_launch_sum(nlist_cuda *gpu, nlist_mode mode,
                                       const nlist_i_gpu_adder<Values, Units> &adder,
                                       const Contact &contact, struct CUstream_st *stream)
{
    const nlist_desc &desc = gpu->device.list.desc;
    const nlist_rows *const rows = gpu->device.list.rows;
    int64_t const n = gpu->device.list.n;
    bool const reduce = mode == NLIST_REDUCE;
    nlist_result result = NLIST_OK;
    if (mode == NLIST_PER_PARTICLE)
        return nlist_i_launch(gpu, stream,
                              desc.layout == NLIST_DYNAMIC && n > nlist_i_round_threads
                                  ? nlist_i_round_threads
                                  : n,
                              nlist_i_sum_block, nlist_i_sum_rows_kernel<Values, Units, Contact>,
                              gpu->device, adder, contact);
    if (rows[0].start || rows[1].start)
        result = nlist_i_launch(gpu, stream, n * nlist_i_row_lanes, nlist_i_sum_block,
                                nlist_i_sum_compact_kernel<Values, Units, Contact>, gpu->device,
                                adder, reduce, contact);
    if (result == NLIST_OK && (rows[0].slot || rows[1].slot))
        result = nlist_i_launch(gpu, stream, nlist_i_slot_threads(gpu), nlist_i_sum_block,
                                nlist_i_sum_slots_kernel<Values, Units, Contact>, gpu->device,
                                adder, reduce, contact);
    if (result == NLIST_OK && (rows[0].own || rows[1].own))
        result = nlist_i_launch(gpu, stream, nlist_i_round(gpu), nlist_i_sum_block,
                                nlist_i_sum_rest_kernel<Values, Units, Contact>, gpu->device, adder,
                                reduce, contact);
    return result;
}

template <int Values, class Contact>
static nlist_result nlist_cuda_sum(nlist_cuda *gpu, const nlist_sums *how, const Contact &contact,
                                   nlist_real *d_sums, struct CUstream_st *stream)
{
    unsigned long long *units = nullptr;
    nlist_mode mode = NLIST_AUTO;
    nlist_result result = nlist_i_cuda_begin_sum(gpu, how, Values, d_sums, &units, &mode, stream);
    if (result != NLIST_OK || gpu->device.list.n == 0) return result;
    if (!units) {
        nlist_i_gpu_adder<Values, false> const adder = {d_sums, 0, gpu->d_facts,
                                                        (uintptr_t)d_sums % 8 == 0};
        return nlist_i_launch_sum(gpu, mode, adder, contact, stream);
    }
    nlist_i_gpu_adder<Values, true> const adder = {(long long *)units, 1 / how->unit, gpu->d_facts,
                                                   false};
    result = nlist_i_launch_sum(gpu, mode, adder, contact, stream);
    return result == NLIST_OK ? nlist_i_cuda_end_sum(gpu, how, Values, d_sums, units, stream)
                              : result;
}

/* Calls the functor for the entries of one row per thread. */
template <class Contact>
__global__ void __launch_bounds__(nlist_i_sum_block)
    nlist_i_each_kernel(__grid_constant__ const nlist_device device,
                        __grid_constant__ const Contact contact)
{
    const nlist &list = device.list;
    const nlist_rows &rows = *nlist_i_rows(&list);
    int64_t const i = nlist_i_global_thread();
    nlist_each e = nlist_i_row(&rows, list.desc.history,
                               i < nlist_i_least(rows.n, list.n) ? (int32_t)i : -1);
    while (nlist_next(&e))
        if (nlist_i_exists(list, e.id)) contact((int32_t)i, e.id, e.history, e.entry);
}

template <class Contact>
static nlist_result nlist_cuda_each(nlist_cuda *gpu, const Contact &contact,
                                    struct CUstream_st *stream)
{
    if (!gpu) return NLIST_BAD_ARGUMENT;
    if (!gpu->device.list.built) return NLIST_NOT_BUILT;
    return nlist_i_launch(gpu, stream, gpu->device.list.n, nlist_i_sum_block,
                          nlist_i_each_kernel<Contact>, gpu->device, contact);
}
