/* selftest.cu - is what the emulator computes what CUDA says?
   SPDX-License-Identifier: MIT

   Valid CUDA: nvcc compiles it as well (with -Itests/emu for the headers beside it), and on a GPU
   it has to pass too. Only the tests of the emulator's own functions, at the end, are for the
   emulator alone. */
#include "test_support.h"

#include <cub/cub.cuh>

#include <limits.h>
#include <math.h>
#include <string.h>

namespace {

int checks = 0, failed = 0;

void check_at(bool right, const char *text, int line)
{
    ++checks;
    if (right) return;
    ++failed;
    fprintf(stderr, "selftest.cu:%d: %s\n", line, text);
}
#define CHECK(condition) check_at(condition, #condition, __LINE__)

/* A kernel leaves its results in `out`, one number per thread or more; `expected(i)` says what is
   right. */
template <class T, class Expected> bool all_are(const Device<T> &out, Expected expected)
{
    std::vector<T> got = out.host();
    for (size_t i = 0; i < got.size(); ++i)
        if (!(got[i] == (T)expected((int)i)))
            return fprintf(stderr, "  [%zu] is wrong\n", i), false;
    return true;
}

/* ---- indices, shared memory, barriers -------------------------------------------------------- */

__global__ void indices(int *out)
{
    int block = (int)((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x);
    int size = (int)(blockDim.x * blockDim.y * blockDim.z);
    int thread = (int)((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x);
    out[block * size + thread] = block * size + thread;
}
void test_indices()
{
    const dim3 shapes[][2] = {{{1}, {1}},       {{7}, {33}},
                              {{3, 2}, {8, 4}}, {{2, 3, 2}, {5, 3, 2}},
                              {{1}, {1024}},    {{2}, {1, 1, 64}}};
    for (const auto &s : shapes) {
        Device<int> out((size_t)s[0].x * s[0].y * s[0].z * s[1].x * s[1].y * s[1].z);
        must(launch(nullptr, s[0], s[1], 0, indices, out.get()));
        CHECK(all_are(out, [](int i) { return i; }));
    }
}

template <class T> __global__ void block_sum(const T *x, T *out)
{
    __shared__ T fixed[128];
    T *dynamic = dynamic_shared<T>();
    unsigned int i = threadIdx.x;
    fixed[i] = dynamic[i] = x[blockIdx.x * 128 + i];
    __syncthreads();
    for (unsigned int half = 64; half > 0; half /= 2) {
        if (i < half) fixed[i] += fixed[i + half], dynamic[i] += dynamic[i + half];
        __syncthreads();
    }
    if (i == 0) out[blockIdx.x] = fixed[0] == dynamic[0] ? fixed[0] : (T)-1;
}
template <class T> void test_block_sum()
{
    Device<T> x(std::vector<T>(128 * 5, (T)2)), out(5);
    must(launch(nullptr, 5, 128, 128 * sizeof(T), block_sum<T>, (const T *)x.get(), out.get()));
    CHECK(all_are(out, [](int) { return 256; }));
}

__global__ void votes(int *out)
{
    int i = (int)threadIdx.x;
    int n = __syncthreads_count(i % 3 == 0), all = __syncthreads_and(i >= 0),
        none = __syncthreads_and(i != 5);
    int any = __syncthreads_or(i == 5), nobody = __syncthreads_or(i < 0);
    out[i] = n == 32 && all && !none && any && !nobody;
}
void test_votes()
{
    Device<int> out(96);
    must(launch(nullptr, 1, 96, 0, votes, out.get()));
    CHECK(all_are(out, [](int) { return 1; }));
}

/* Half of a block waits, spinning on an atomic, for what the other half does afterwards. */
__global__ void spin(int *flag, int *out)
{
    if (threadIdx.x < 32) while (atomicAdd(flag, 0) < 32) {}
    else atomicAdd(flag, 1);
    out[threadIdx.x] = 1;
}
void test_spin()
{
    Device<int> flag(1, 0), out(64);
    must(launch(nullptr, 1, 64, 0, spin, flag.get(), out.get()));
    CHECK(all_are(out, [](int) { return 1; }));
}

/* ---- warps ----------------------------------------------------------------------------------- */

template <class T> __global__ void shuffles(T *out, int width)
{
    const unsigned int all = 0xffffffffu;
    int lane = (int)threadIdx.x % 32;
    T mine = (T)lane;
    T *to = out + threadIdx.x * 4;
    to[0] = __shfl_sync(all, mine, lane + 1, width);
    to[1] = __shfl_up_sync(all, mine, 2, width);
    to[2] = __shfl_down_sync(all, mine, 3, width);
    to[3] = __shfl_xor_sync(all, mine, 1, width);
}
template <class T> void test_shuffles()
{
    for (int width : {2, 8, 32}) {
        Device<T> out(64 * 4);
        must(launch(nullptr, 1, 64, 0, shuffles<T>, out.get(), width));
        CHECK(all_are(out, [width](int i) {
            int lane = i / 4 % 32, first = lane / width * width, at = lane - first;
            if (i % 4 == 0) return first + (at + 1) % width;
            if (i % 4 == 1) return at < 2 ? lane : lane - 2;
            if (i % 4 == 2) return at + 3 >= width ? lane : lane + 3;
            return lane ^ 1;
        }));
    }
}

__global__ void ballots(int *out)
{
    const unsigned int all = 0xffffffffu;
    int lane = (int)threadIdx.x, right = 1, same;
    right &= __ballot_sync(all, lane % 4 == 1) == 0x22222222u;
    right &= __any_sync(all, lane == 7) && !__any_sync(all, lane < 0) && __all_sync(all, 1) &&
             !__all_sync(all, lane);
    right &= __match_any_sync(all, lane / 16) == (lane < 16 ? 0x0000ffffu : 0xffff0000u);
    right &= __match_any_sync(all, 1.5f) == all;
    right &= __match_all_sync(all, 42ull, &same) == all && same;
    right &= __match_all_sync(all, (long long)lane, &same) == 0 && !same;
    right &= __reduce_add_sync(all, lane) == 496 && __reduce_min_sync(all, -lane) == -31 &&
             __reduce_max_sync(all, lane) == 31;
    right &= __reduce_max_sync(all, (unsigned int)-lane) == 0xffffffffu &&
             __reduce_min_sync(all, (unsigned int)-lane) == 0u;
    right &=
        __reduce_or_sync(all, 1u << lane) == all && __reduce_and_sync(all, ~(1u << lane)) == 0u;
    right &= __reduce_xor_sync(all, (unsigned int)lane) == 0u;
    __syncwarp();
    out[lane] = right;
}
void test_ballots()
{
    Device<int> out(32);
    must(launch(nullptr, 1, 32, 0, ballots, out.get()));
    CHECK(all_are(out, [](int) { return 1; }));
}

/* Groups of lanes with the same key go their own ways at the same time. */
__global__ void sum_by_key(const int *key, int *sum)
{
    unsigned int peers = __match_any_sync(0xffffffffu, key[threadIdx.x]);
    int lane = (int)threadIdx.x % 32, leader = __ffs((int)peers) - 1, count = 0;
    for (unsigned int rest = peers; rest; rest &= rest - 1)
        count += __shfl_sync(peers, 1, __ffs((int)rest) - 1);
    if (lane == leader) atomicAdd(&sum[key[threadIdx.x]], count);
    unsigned int active = __activemask();
    if (!(active >> lane & 1)) sum[0] = -1;
}
void test_sum_by_key()
{
    std::vector<int> keys(96);
    for (int i = 0; i < 96; ++i) keys[(size_t)i] = i * i % 5;
    Device<int> key(keys), sum(5, 0);
    must(launch(nullptr, 1, 96, 0, sum_by_key, (const int *)key.get(), sum.get()));
    CHECK(all_are(sum, [&](int k) { int n = 0; for (int x : keys) n += x == k; return n; }));
}

/* ---- atomics, arithmetic --------------------------------------------------------------------- */

struct Totals {
    int add, sub, low, high, exch, cas, bits_and, bits_or, bits_xor;
    unsigned int inc, dec, unsigned_low;
    unsigned long long long_add, long_low, long_high, long_cas;
    long long signed_low;
    float real;
    double real2;
};
__global__ void atomics(Totals *t)
{
    int i = (int)threadIdx.x;
    atomicAdd(&t->add, i);
    atomicSub(&t->sub, 1);
    atomicMin(&t->low, -i);
    atomicMax(&t->high, i);
    atomicExch(&t->exch, 7);
    for (int old = t->cas * 0, seen; (seen = atomicCAS(&t->cas, old, old + 2)) != old; old = seen) {
    }
    atomicAnd(&t->bits_and, ~(1 << (i % 8)));
    atomicOr(&t->bits_or, 1 << (i % 8));
    atomicXor(&t->bits_xor, 1);
    atomicInc(&t->inc, 9);
    atomicDec(&t->dec, 9);
    atomicMin(&t->unsigned_low, 5u + (unsigned int)i);
    atomicAdd(&t->long_add, 1ull << 32);
    atomicMin(&t->long_low, (1ull << 40) + (unsigned long long)i);
    atomicMax(&t->long_high, (1ull << 40) + (unsigned long long)i);
    atomicCAS(&t->long_cas, 0ull, 3ull);
    atomicMin(&t->signed_low, -(1ll << 40) - i);
    atomicAdd(&t->real, 0.5f);
    atomicAdd(&t->real2, 0.25);
}
void test_atomics()
{
    Totals start;
    memset(&start, 0, sizeof start);
    start.bits_and = -1;
    start.unsigned_low = 100;
    start.long_low = ~0ull;
    Device<Totals> out(std::vector<Totals>(1, start));
    must(launch(nullptr, 1, 64, 0, atomics, out.get()));
    Totals t = out.host()[0];
    CHECK(t.add == 2016 && t.sub == -64 && t.low == -63 && t.high == 63 && t.exch == 7 &&
          t.cas == 128);
    CHECK(t.bits_and == ~255 && t.bits_or == 255 && t.bits_xor == 0 && t.inc == 4 && t.dec == 6 &&
          t.unsigned_low == 5);
    CHECK(t.long_add == 64ull << 32 && t.long_low == 1ull << 40 &&
          t.long_high == (1ull << 40) + 63 && t.long_cas == 3);
    CHECK(t.signed_low == -(1ll << 40) - 63 && t.real == 32.0f && t.real2 == 16.0);
}

__global__ void arithmetic(int *out)
{
    int right = 1;
    right &= __popc(0xf0f0u) == 8 && __popcll(1ull << 40) == 1 && __clz(1) == 31 &&
             __clz(0) == 32 && __clzll(1) == 63;
    right &= __clzll(0) == 64 && __ffs(0) == 0 && __ffs(8) == 4 && __ffsll(1ll << 40) == 41 &&
             __brev(1u) == 0x80000000u;
    right &= __float_as_int(1.0f) == 0x3f800000 && __int_as_float(0x40000000) == 2.0f;
    right &= __longlong_as_double(__double_as_longlong(3.5)) == 3.5;
    right &= __fmul_rn(3.0f, 0.5f) == 1.5f && __fadd_rn(1.0f, 2.0f) == 3.0f &&
             __fsub_rn(1.0f, 2.0f) == -1.0f;
    right &= __fmaf_rn(2.0f, 3.0f, 1.0f) == 7.0f && __dmul_rn(3.0, 0.5) == 1.5 &&
             __dadd_rn(1, 2) == 3 && __dsub_rn(1, 2) == -1;
    right &= __float2int_rz(-1.5f) == -1 && __float2int_rd(-1.5f) == -2 &&
             __float2int_rz(1e20f) == INT_MAX;
    right &= __float2int_rz(nanf("")) == 0 && __float2int_rz(-1e20f) == INT_MIN &&
             __float2uint_rz(-1.0f) == 0u;
    right &= __double2float_ru(1.0 + 1e-12) > 1.0f && __double2float_rd(1.0 + 1e-12) == 1.0f &&
             __double2float_ru(0.5) == 0.5f;
    right &= __double2float_rd(-1.0 - 1e-12) < -1.0f && __double2float_ru(-1.0 - 1e-12) == -1.0f &&
             __double2float_rn(0.1) == 0.1f;
    right &= min(2, 3) == 2 && max(2.0f, 3.0f) == 3.0f && min(1ull, 2ull) == 1 &&
             fabsf(rsqrtf(4.0f) - 0.5f) < 1e-6f;
    right &= __umulhi(0x80000000u, 4u) == 2u && __mulhi(-1, 1) == -1;
    right &= __fadd_rd(1.0f, 1e-12f) == 1.0f && __fadd_rd(0.5f, 0.25f) == 0.75f &&
             __float_as_int(__fadd_rd(1.0f, -1e-12f)) == 0x3f7fffff;
    right &= __byte_perm(0x33221100u, 0x77665544u, 0x7604u) == 0x77660044u &&
             __vminu2(0x0001FFFFu, 0x00020003u) == 0x00010003u;
    right &= __vimax3_s32_relu(-3, -2, -1) == 0 && __vimax3_s32_relu(1, 5, 2) == 5 &&
             __vimin3_s32(1, -5, 2) == -5;
    float4 v = make_float4(1, 2, 3, 4);
    int2 pair = make_int2(5, 6);
    right &= __ldg(&out[1]) == 9 && v.w == 4 && pair.y == 6 && sizeof(float3) == 12 &&
             alignof(float4) == 16;
    out[0] = right;
}
void test_arithmetic()
{
    Device<int> out(std::vector<int>(2, 9));
    must(launch(nullptr, 1, 1, 0, arithmetic, out.get()));
    CHECK(out.host()[0] == 1);
}

/* ---- CUB ------------------------------------------------------------------------------------- */

/* Runs a two-phase CUB call, made by `call(storage, bytes)`. */
template <class Call> cudaError_t with_storage(Call call)
{
    size_t bytes = 0;
    cudaError_t error = call(nullptr, bytes);
    if (error != cudaSuccess) return error;
    Device<char> storage(bytes);
    return call(storage.get(), bytes);
}

template <class K> void test_sort(K low, int end_bit)
{
    const int n = 1000;
    std::vector<K> keys((size_t)n);
    std::vector<float4> values((size_t)n);
    for (int i = 0; i < n; ++i)
        keys[(size_t)i] = (K)(low + (K)(i * 7919 % 251)),
        values[(size_t)i] = make_float4((float)i, 0, 0, 0);
    Device<K> in(keys), out((size_t)n);
    Device<float4> vin(values), vout((size_t)n);
    must(with_storage([&](void *s, size_t &b) {
        return cub::DeviceRadixSort::SortPairs(s, b, (const K *)in.get(), out.get(),
                                               (const float4 *)vin.get(), vout.get(), n, 0,
                                               end_bit);
    }));
    std::vector<K> k = out.host();
    std::vector<float4> v = vout.host();
    bool right = true;
    for (size_t i = 0; i < k.size(); ++i) {
        right &= k[i] == keys[(size_t)v[i].x];
        if (i) right &= k[i - 1] < k[i] || (k[i - 1] == k[i] && v[i - 1].x < v[i].x);
    }
    CHECK(right);
}

void test_double_buffer()
{
    std::vector<unsigned int> host(100);
    for (unsigned int i = 0; i < 100; ++i) host[i] = (i * 37) % 100;
    Device<unsigned int> a(host), b(100), va(host), vb(100);
    cub::DoubleBuffer<unsigned int> keys(a.get(), b.get()), values(va.get(), vb.get());
    must(with_storage([&](void *s, size_t &bytes) {
        return cub::DeviceRadixSort::SortPairs(s, bytes, keys, values, 100, 0, 7);
    }));
    std::vector<unsigned int> sorted(100), carried(100);
    must(cudaMemcpy(sorted.data(), keys.Current(), 400, cudaMemcpyDeviceToHost));
    must(cudaMemcpy(carried.data(), values.Current(), 400, cudaMemcpyDeviceToHost));
    CHECK(sorted[0] == 0 && sorted[99] == 99 && sorted == carried);
}

/* An iterator that is a plain class: 1, 2, 3 ... */
struct Numbers {
    typedef int value_type;
    typedef ptrdiff_t difference_type;
    typedef const int *pointer;
    typedef int reference;
    typedef std::random_access_iterator_tag iterator_category;
    ptrdiff_t at;
    __host__ __device__ int operator*() const { return (int)at + 1; }
    __host__ __device__ int operator[](ptrdiff_t i) const { return (int)(at + i) + 1; }
    __host__ __device__ Numbers operator+(ptrdiff_t i) const { return Numbers{at + i}; }
};

void test_scan_and_reduce()
{
    const int n = 1000;
    std::vector<int> host((size_t)n, 3);
    Device<int> x(host), low(1), high(1);
    Device<long long> sums(n), total(1);
    const int *in = x.get();
    must(with_storage([&](void *s, size_t &b) {
        return cub::DeviceScan::ExclusiveSum(s, b, in, sums.get(), (int64_t)n);
    }));
    CHECK(all_are(sums, [](int i) { return 3 * i; }));
    must(with_storage([&](void *s, size_t &b) {
        return cub::DeviceScan::InclusiveSum(s, b, Numbers{0}, sums.get(), n);
    }));
    CHECK(all_are(sums, [](int i) { return (i + 1) * (i + 2) / 2; }));
    must(with_storage(
        [&](void *s, size_t &b) { return cub::DeviceReduce::Sum(s, b, in, total.get(), n); }));
    must(with_storage([&](void *s, size_t &b) {
        return cub::DeviceReduce::Min(s, b, Numbers{4}, low.get(), n);
    }));
    must(with_storage([&](void *s, size_t &b) {
        return cub::DeviceReduce::Max(s, b, Numbers{4}, high.get(), n);
    }));
    CHECK(total.host()[0] == 3 * n && low.host()[0] == 5 && high.host()[0] == n + 4);
    must(with_storage(
        [&](void *s, size_t &b) { return cub::DeviceScan::ExclusiveSum(s, b, in, x.get(), n); }));
    CHECK(all_are(x, [](int i) { return 3 * i; }));
    must(with_storage(
        [&](void *s, size_t &b) { return cub::DeviceReduce::Sum(s, b, in, total.get(), 0); }));
    CHECK(total.host()[0] == 0);
}

__global__ void block_algorithms(int *out)
{
    typedef cub::BlockReduce<int, 128> Reduce;
    typedef cub::BlockScan<int, 128> Scan;
    typedef cub::WarpReduce<int> Warp;
    typedef cub::WarpReduce<int, 8> Eight;
    typedef cub::BlockRadixSort<unsigned, 128, 2, int> Sort;
    __shared__ typename Reduce::TempStorage reduce_storage;
    __shared__ typename Scan::TempStorage scan_storage;
    __shared__ typename Warp::TempStorage warp_storage[4];
    __shared__ typename Eight::TempStorage eight_storage[16];
    __shared__ typename Sort::TempStorage sort_storage;
    int i = (int)threadIdx.x, before, total, upto, right = 1;
    int sum = Reduce(reduce_storage).Sum(i);
    if (i == 0) right &= sum == 8128;
    Scan(scan_storage).ExclusiveSum(2, before, total);
    right &= before == 2 * i && total == 256;
    __syncthreads();
    Scan(scan_storage).InclusiveSum(i, upto);
    right &= upto == i * (i + 1) / 2;
    int warp = Warp(warp_storage[i / 32]).Sum(1), eight = Eight(eight_storage[i / 8]).Sum(i % 8);
    if (i % 32 == 0) right &= warp == 32;
    if (i % 8 == 0) right &= eight == 28;
    /* by the second bit alone: 0 1 4 5 8 9 ..., then 2 3 6 7 10 11 ... */
    unsigned key[2] = {2u * (unsigned)i, 2u * (unsigned)i + 1};
    int id[2] = {2 * i, 2 * i + 1};
    Sort(sort_storage).SortBlockedToStriped(key, id, 1, 2);
    for (int k = 0; k < 2; k++)
        right &= id[k] == 4 * (i / 2) + i % 2 + 2 * k && key[k] == (unsigned)id[k];
    out[i] = right;
}
void test_block_algorithms()
{
    Device<int> out(128);
    must(launch(nullptr, 1, 128, 0, block_algorithms, out.get()));
    CHECK(all_are(out, [](int) { return 1; }));
}

__global__ void indices_into(int *x)
{
    x[blockIdx.x * blockDim.x + threadIdx.x] = (int)(blockIdx.x * blockDim.x + threadIdx.x);
}

/* Shared memory of a function that a kernel calls, with several blocks in flight. */
__device__ int *of_function()
{
    __shared__ int tile[64];
    return tile;
}

__global__ void turn(int *x)
{
    int *tile = of_function();
    tile[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    x[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}

void test_shared_of_function()
{
    Device<int> x(20 * 64, 0);
    must(launch(nullptr, 20, 64, 0, indices_into, x.get()));
    must(launch(nullptr, 20, 64, 0, turn, x.get()));
    CHECK(all_are(x, [](int i) { return i / 64 * 64 + 63 - i % 64; }));
}

/* ---- streams, events, graphs, memory --------------------------------------------------------- */

__global__ void add(int *x, int n, int d)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) x[i] += d;
}

void test_streams()
{
    cudaStream_t a, b;
    cudaEvent_t start, end;
    must(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    must(cudaStreamCreate(&b));
    must(cudaEventCreate(&start));
    must(cudaEventCreate(&end));
    int *x, *pinned;
    must(cudaMallocHost(&pinned, 4000));
    must(cudaMallocAsync(&x, 4000, a));
    must(cudaEventRecord(start, a));
    must(cudaMemsetAsync(x, 0, 4000, a));
    for (int i = 0; i < 3; ++i) must(launch(a, 10, 100, 0, add, x, 1000, 1));
    must(cudaEventRecord(end, a));
    must(cudaStreamWaitEvent(b, end, 0));
    must(launch(b, 10, 100, 0, add, x, 1000, 10));
    must(cudaMemcpyAsync(pinned, x, 4000, cudaMemcpyDeviceToHost, b));
    must(cudaFreeAsync(x, b));
    must(cudaStreamSynchronize(b));
    CHECK(pinned[0] == 13 && pinned[999] == 13);
    float ms = -1;
    must(cudaEventSynchronize(end));
    must(cudaEventElapsedTime(&ms, start, end));
    CHECK(ms >= 0 && cudaEventQuery(end) == cudaSuccess && cudaStreamQuery(a) == cudaSuccess);
    must(cudaFreeHost(pinned));
    must(cudaEventDestroy(start));
    must(cudaEventDestroy(end));
    must(cudaStreamDestroy(a));
    must(cudaStreamDestroy(b));
}

/* ---- textures -------------------------------------------------------------------------------- */

__global__ void fetch(cudaTextureObject_t from, int *out)
{
    int const i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    out[i] = tex1Dfetch<int>(from, 999 - i);
}

void test_textures()
{
    Device<int> x(1000), out(1000);
    cudaResourceDesc resource = {};
    cudaTextureDesc how = {};
    cudaTextureObject_t texture = 0;
    must(cudaMemset(x.get(), 0, 4000));
    must(launch(nullptr, 10, 100, 0, add, x.get(), 1000, 7));
    must(launch(nullptr, 1, 1, 0, add, x.get(), 1, 5));
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = x.get();
    resource.res.linear.desc = cudaCreateChannelDesc<int>();
    resource.res.linear.sizeInBytes = 4000;
    how.readMode = cudaReadModeElementType;
    must(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    must(launch(nullptr, 10, 100, 0, fetch, texture, out.get()));
    CHECK(all_are(out, [](int i) { return i == 999 ? 12 : 7; }));
    must(cudaDestroyTextureObject(texture));
}

/* Fork and join inside a capture, memory of the graph's own, launched twice. */
void test_graph()
{
    cudaStream_t a, b;
    cudaEvent_t forked, joined;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamCaptureStatus status;
    Device<int> x(1000, 0);
    must(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    must(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    must(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
    must(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
    must(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
    must(cudaStreamIsCapturing(a, &status));
    CHECK(status == cudaStreamCaptureStatusActive);
    must(launch(a, 10, 100, 0, add, x.get(), 1000, 1));
    must(cudaEventRecord(forked, a));
    must(cudaStreamWaitEvent(b, forked));
    must(launch(b, 10, 100, 0, add, x.get(), 1000, 2));
    must(cudaEventRecord(joined, b));
    must(cudaStreamWaitEvent(a, joined));
    must(cudaStreamEndCapture(a, &graph));
    CHECK(x.host()[0] == 0);
    must(cudaGraphInstantiate(&exec, graph, 0));
    must(cudaGraphDestroy(graph));
    must(cudaGraphLaunch(exec, a));
    must(cudaGraphLaunch(exec, a));
    must(cudaStreamSynchronize(a));
    CHECK(x.host()[999] == 6);
    must(cudaGraphExecDestroy(exec));
    must(cudaEventDestroy(forked));
    must(cudaEventDestroy(joined));
    must(cudaStreamDestroy(a));
    must(cudaStreamDestroy(b));
}

void test_errors()
{
    Device<int> x(10, 0);
    /* which error it is depends on the driver: 580 says another one than the manual */
    cudaError_t const refused = launch(nullptr, 0, 32, 0, add, x.get(), 10, 1);
    CHECK(refused != cudaSuccess && cudaPeekAtLastError() == refused &&
          cudaGetLastError() == refused);
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(launch(nullptr, 1, 1025, 0, add, x.get(), 10, 1) != cudaSuccess);
    CHECK(launch(nullptr, 1, 32, 100 << 10, add, x.get(), 10, 1) == cudaErrorInvalidValue);
    must(cudaFuncSetAttribute(add, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
    CHECK(launch(nullptr, 1, 32, 60 << 10, add, x.get(), 10, 1) == cudaSuccess);
    CHECK(!strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation"));
    CHECK(!strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory"));
    (void)cudaGetLastError();
}

void test_pointers_and_devices()
{
    Device<int> x(10);
    int host = 0, count = 0, sms = 0, blocks = 0;
    cudaPointerAttributes about;
    must(cudaPointerGetAttributes(&about, x.get() + 3));
    CHECK(about.type == cudaMemoryTypeDevice && about.devicePointer == x.get() + 3);
    must(cudaPointerGetAttributes(&about, &host));
    CHECK(about.type == cudaMemoryTypeUnregistered);
    must(cudaGetDeviceCount(&count));
    must(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 256, 0));
    CHECK(count >= 1 && sms >= 1 && blocks >= 1);
}

/* ---- the emulator's own functions ------------------------------------------------------------ */

#ifdef CUDA_EMU
__global__ void never_launched() {}

void test_emulator()
{
    int *p = nullptr, *q = nullptr;
    long live = emu_live_allocations(), launches = emu_launches();
    emu_fail_alloc(2);
    CHECK(cudaMalloc(&p, 4) == cudaSuccess && cudaMalloc(&q, 4) == cudaErrorMemoryAllocation && !q);
    CHECK(emu_live_allocations() == live + 1);
    must(cudaFree(p));
    CHECK(emu_live_allocations() == live);
    emu_fail_launch(1);
    Device<int> x(1, 0);
    CHECK(launch(nullptr, 1, 1, 0, add, x.get(), 1, 1) == cudaErrorLaunchOutOfResources &&
          emu_launches() == launches);
    (void)cudaGetLastError();
    bool seen = false, never = false;
    for (int i = 0; i < emu_kernel_count(); ++i) {
        seen |= !strcmp(emu_kernel_name(i), "block_sum<float>") && emu_kernel_launches(i) == 1;
        never |= !strcmp(emu_kernel_name(i), "never_launched") && emu_kernel_launches(i) == 0;
    }
    CHECK(seen && never);
}
#else
void test_emulator() {}
#endif

} // namespace

int main()
{
    test_indices();
    test_block_sum<int>();
    test_block_sum<float>();
    test_block_sum<double>();
    test_votes();
    test_spin();
    test_shuffles<int>();
    test_shuffles<unsigned int>();
    test_shuffles<float>();
    test_shuffles<double>();
    test_shuffles<long long>();
    test_ballots();
    test_sum_by_key();
    test_atomics();
    test_arithmetic();
    test_sort<int>(-100, 32);
    test_sort<float>(-100.5f, 32);
    test_sort<uint64_t>((uint64_t)1 << 40, 41);
    test_double_buffer();
    test_scan_and_reduce();
    test_block_algorithms();
    test_shared_of_function();
    test_streams();
    test_textures();
    test_graph();
    test_errors();
    test_pointers_and_devices();
    test_emulator();
    printf("selftest: %d checks, %d failed\n", checks, failed);
    return failed != 0;
}
