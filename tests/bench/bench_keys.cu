/* bench_keys.cu - sums by key, sums of everything, and filters: plain atomics against what source
   003 puts in their place.
   SPDX-License-Identifier: MIT OR Unlicense

       make bench-cuda                                       all of it
       build/cuda/bench_keys --only histogram --csv keys.csv
       build/cuda/bench_keys --small      does it work at all? (also on the emulator)
       groups: histogram image reduce filter buckets

   Sources: NVIDIA developer blog, "Voting and Shuffling to Optimize Atomic Operations" (runs,
   match), "Fast Histograms Using Shared Atomics on Maxwell" (shared), "Faster Parallel Reductions
   on Kepler" (warp, block), "Optimized Filtering with Warp-Aggregated Atomics". They describe the
   methods; the code is ours. Values are integers, so every order of adding gives the same sum.
   Where all lanes add to one address, nvcc itself takes a vote and lets one lane add for all; "one
   by one" hides from it that the address is the same.
   buckets: lists of keyed elements, the general case of source 000's grids as linked lists. */

#include "tests/bench/bench_gpu.h"

namespace {

constexpr unsigned all_lanes = 0xFFFFFFFFu;
constexpr int most_shared_keys = 8192;  /* 32 KB of counters for each block */

__device__ int lane() { return static_cast<int>(threadIdx.x % 32); }

int blocks_of_gpu()
{
    cudaDeviceProp properties;
    int device;
    must(cudaGetDevice(&device));
    must(cudaGetDeviceProperties(&properties, device));
    return bench.small ? 2 : 4 * properties.multiProcessorCount;
}

/* Blocks that stay, and take one element after the other. */
template <class... Parameters, class... Arguments>
void launch_blocks(int blocks, void (*kernel)(Parameters...), Arguments... arguments)
{
    launch(static_cast<int64_t>(blocks) * block_size, kernel, arguments...);
}

/* ---- histogram: values summed by key --------------------------------------------------------- */

enum key_order { in_order, any_order, skewed, key_orders };
const char *const key_order_name[] = {"sorted-", "random-", "skewed-"};

/* key, of `keys`: ascending (as of sorted particles), without order, or without order and skewed:
   with u even in 0 .. 1, keys * u^8, so that half of all elements have the first 0.4 % of the keys
   and the share of key 0 is keys^(-1/8). */
__device__ int32_t key_of(int64_t k, int64_t n, int32_t keys, key_order order)
{
    uint32_t const any = hash(static_cast<uint32_t>(k));
    if (order == in_order) return static_cast<int32_t>(k * keys / n);
    if (order == any_order) return static_cast<int32_t>(any % static_cast<uint32_t>(keys));
    float const u = static_cast<float>(any >> 8) * 0x1p-24f, u2 = u * u, u4 = u2 * u2;
    return static_cast<int32_t>(u4 * u4 * static_cast<float>(keys));
}

__global__ void keys_kernel(int32_t *key, int64_t n, int32_t keys, key_order order)
{
    int64_t const k = thread_index();
    if (k < n) key[k] = key_of(k, n, keys, order);
}

__device__ int value_of(int64_t k) { return static_cast<int>(k % 7) + 1; }

/* An atomic for each element. */
__global__ void plain_kernel(const int32_t *key, int64_t n, int32_t *sum)
{
    int64_t const k = thread_index();
    if (k < n) atomicAdd(&sum[key[k]], value_of(k));
}

/* An atomic for each run of equal keys in a warp: sums from the right by shuffles, up to the last
   lane of the run; its first lane adds. */
__global__ void runs_kernel(const int32_t *key, int64_t n, int32_t *sum)
{
    int64_t const k = thread_index();
    int32_t const own = k < n ? key[k] : -1;
    int value = k < n ? value_of(k) : 0;
    bool const first = __shfl_up_sync(all_lanes, own, 1) != own || lane() == 0;
    unsigned const others = __ballot_sync(all_lanes, first) & ~((2u << lane()) - 1);
    int const last = others ? __ffs(static_cast<int>(others)) - 2 : 31;
    for (int distance = 1; distance < 32; distance *= 2) {
        int const more = __shfl_down_sync(all_lanes, value, distance);
        if (lane() + distance <= last) value += more;
    }
    if (own >= 0 && first) atomicAdd(&sum[own], value);
}

__device__ int sum_of_peers(unsigned peers, int value)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    int sum = 0;
    for (unsigned rest = peers; rest; rest &= rest - 1)
        sum += __shfl_sync(peers, value, __ffs(static_cast<int>(rest)) - 1);
    return sum;
#else
    return __reduce_add_sync(peers, value);
#endif
}

/* An atomic for each key in a warp, wherever in the warp it is. */
__global__ void match_kernel(const int32_t *key, int64_t n, int32_t *sum)
{
    int64_t const k = thread_index();
    int32_t const own = k < n ? key[k] : -1;
    unsigned const peers = __match_any_sync(all_lanes, own);
    int const total = sum_of_peers(peers, k < n ? value_of(k) : 0);
    if (own >= 0 && lane() == __ffs(static_cast<int>(peers)) - 1) atomicAdd(&sum[own], total);
}

/* A histogram for each block in shared memory, then an atomic for each of its keys. */
__global__ void shared_kernel(const int32_t *key, int64_t n, int32_t keys, int32_t *sum)
{
    __shared__ int32_t part[most_shared_keys];
    for (int32_t c = threadIdx.x; c < keys; c += blockDim.x) part[c] = 0;
    __syncthreads();
    for (int64_t k = thread_index(); k < n; k += static_cast<int64_t>(gridDim.x) * blockDim.x)
        atomicAdd(&part[key[k]], value_of(k));
    __syncthreads();
    for (int32_t c = threadIdx.x; c < keys; c += blockDim.x)
        if (part[c]) atomicAdd(&sum[c], part[c]);
}

enum key_method { plain, runs, match, shared, key_methods };
const char *const key_method_name[] = {"plain atomics", "runs in a warp", "match in a warp",
                                       "shared memory"};

struct key_case {
    int64_t n;
    int32_t keys;
    device_array<int32_t> key, sum;
    std::vector<int32_t> expected;

    key_case(int64_t elements, int32_t count, key_order order)
        : n(elements), keys(count), key(static_cast<std::size_t>(elements)),
          sum(static_cast<std::size_t>(count)), expected(static_cast<std::size_t>(count), 0)
    {
        launch(n, keys_kernel, key.data, n, keys, order);
        std::vector<int32_t> const of = key.download();
        for (int64_t k = 0; k < n; k++)
            expected[static_cast<std::size_t>(of[static_cast<std::size_t>(k)])] +=
                static_cast<int32_t>(k % 7) + 1;
    }
    void run(key_method method)
    {
        must(cudaMemsetAsync(sum.data, 0, sum.count * sizeof *sum.data, stream));
        if (method == plain) launch(n, plain_kernel, key.data, n, sum.data);
        if (method == runs) launch(n, runs_kernel, key.data, n, sum.data);
        if (method == match) launch(n, match_kernel, key.data, n, sum.data);
        if (method == shared)
            launch_blocks(blocks_of_gpu(), shared_kernel, key.data, n, keys, sum.data);
    }
};

void histogram_rows(int64_t n, int32_t keys, key_order order)
{
    key_case c(n, keys, order);
    std::string const workload = key_order_name[order] + std::to_string(keys);
    double base = 0;
    for (int m = 0; m < key_methods; m++) {
        if (m == shared && keys > most_shared_keys) continue;
        key_method const method = static_cast<key_method>(m);
        bench_row_s row = {};
        row.group = "histogram";
        row.workload = workload.c_str();
        row.method = key_method_name[m];
        row.n = n;
        row.ms = gpu_ms([&] { c.run(method); });
        if (m == plain) base = row.ms;
        row.base_ms = base;
        row.floor_ms = (4.0 * static_cast<double>(n) + 8.0 * keys) / copy_speed;
        row.value = keys;
        row.unit = "keys";
        bench_row(&row);
        bench_check(c.sum.download() == c.expected, key_method_name[m]);
    }
}

void bench_histogram(int64_t n)
{
    bench_title("histogram: integers summed by key (003)", "plain");
    for (int order = 0; order < key_orders; order++)
        for (int32_t keys = 16; keys <= (bench.small ? 16384 : 1 << 22); keys *= 8)
            histogram_rows(n, keys, static_cast<key_order>(order));
}

/* ---- image: 256 bins for each of three colours ----------------------------------------------- */

constexpr int colours = 3, colour_bins = 256, image_bins = colours * colour_bins;

enum image_kind { even_image, bell_image, one_colour, image_kinds };
const char *const image_name[] = {"even", "bell", "one colour"};

/* Every value as often; the mean of four, so that the middle is frequent; one value for all. */
__global__ void image_kernel(uchar4 *pixel, int64_t n, image_kind kind)
{
    int64_t const k = thread_index();
    if (k >= n) return;
    unsigned char c[4] = {200, 100, 50, 0};
    for (uint32_t a = 0; a < 4 && kind != one_colour; a++) {
        uint32_t const x = hash(static_cast<uint32_t>(k) * 4 + a);
        uint32_t const mean = ((x & 255) + (x >> 8 & 255) + (x >> 16 & 255) + (x >> 24)) / 4;
        c[a] = static_cast<unsigned char>(kind == even_image ? x & 255 : mean);
    }
    pixel[k] = uchar4{c[0], c[1], c[2], c[3]};
}

template <class Count> __device__ void add_pixel(uchar4 p, Count *bins)
{
    atomicAdd(&bins[p.x], 1u);
    atomicAdd(&bins[colour_bins + p.y], 1u);
    atomicAdd(&bins[2 * colour_bins + p.z], 1u);
}

__global__ void image_global_kernel(const uchar4 *pixel, int64_t n, unsigned *bins)
{
    int64_t const stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t k = thread_index(); k < n; k += stride) add_pixel(pixel[k], bins);
}

/* The source's first kernel: a histogram for each block, in shared memory, stored in parts[block].
   at_once: added to bins[] by atomics instead. */
template <bool at_once>
__global__ void image_shared_kernel(const uchar4 *pixel, int64_t n, unsigned *bins)
{
    __shared__ unsigned part[image_bins];
    int64_t const stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int b = static_cast<int>(threadIdx.x); b < image_bins; b += block_size) part[b] = 0;
    __syncthreads();
    for (int64_t k = thread_index(); k < n; k += stride) add_pixel(pixel[k], part);
    __syncthreads();
    for (int b = static_cast<int>(threadIdx.x); b < image_bins; b += block_size) {
        if (at_once) atomicAdd(&bins[b], part[b]);
        else bins[blockIdx.x * image_bins + static_cast<unsigned>(b)] = part[b];
    }
}

/* The source's second kernel: the histograms of all blocks, added up. */
__global__ void image_total_kernel(const unsigned *parts, int32_t blocks, unsigned *bins)
{
    int64_t const b = thread_index();
    if (b >= image_bins) return;
    unsigned sum = 0;
    for (int32_t k = 0; k < blocks; k++) sum += parts[k * image_bins + b];
    bins[b] = sum;
}

struct image_case {
    int64_t n;
    int blocks;
    device_array<uchar4> pixel;
    device_array<unsigned> bins, parts;

    image_case(int64_t pixels, image_kind kind)
        : n(pixels), blocks(blocks_of_gpu()), pixel(static_cast<std::size_t>(pixels)),
          bins(image_bins), parts(static_cast<std::size_t>(blocks) * image_bins)
    {
        launch(n, image_kernel, pixel.data, n, kind);
    }
    void run(int method)
    {
        if (method < 2) must(cudaMemsetAsync(bins.data, 0, image_bins * sizeof(unsigned), stream));
        if (method == 0) launch_blocks(blocks, image_global_kernel, pixel.data, n, bins.data);
        if (method == 1)
            launch_blocks(blocks, image_shared_kernel<true>, pixel.data, n, bins.data);
        if (method < 2) return;
        launch_blocks(blocks, image_shared_kernel<false>, pixel.data, n, parts.data);
        launch(image_bins, image_total_kernel, parts.data, blocks, bins.data);
    }
    std::vector<unsigned> expected() const
    {
        std::vector<unsigned> of(image_bins, 0);
        for (uchar4 const p : pixel.download()) {
            of[p.x]++;
            of[colour_bins + p.y]++;
            of[2 * colour_bins + p.z]++;
        }
        return of;
    }
};

void image_rows(int64_t n, image_kind kind)
{
    static const char *const name[] = {"plain atomics", "shared memory, one kernel",
                                       "shared memory, two kernels"};
    image_case c(n, kind);
    std::vector<unsigned> const expected = c.expected();
    double base = 0;
    for (int m = 0; m < 3; m++) {
        bench_row_s row = {};
        row.group = "image";
        row.workload = image_name[kind];
        row.method = name[m];
        row.n = n;
        row.ms = gpu_ms([&] { c.run(m); });
        if (m == 0) base = row.ms;
        row.base_ms = base;
        row.floor_ms = 4.0 * static_cast<double>(n) / copy_speed;
        bench_row(&row);
        bench_check(c.bins.download() == expected, name[m]);
    }
}

void bench_image(int64_t n)
{
    bench_title("image: 256 bins for each of three colours (003)", "plain");
    for (int kind = 0; kind < image_kinds; kind++) image_rows(n, static_cast<image_kind>(kind));
}

/* ---- reduce: the sum of everything ----------------------------------------------------------- */

__global__ void reduce_plain_kernel(const int32_t *from, int64_t n, unsigned *sum)
{
    int64_t const k = thread_index();
    if (k < n) atomicAdd(sum, static_cast<unsigned>(from[k]));
}

/* As before, but `apart` is 0, which the compiler does not know: an atomic for each element. */
__global__ void reduce_apart_kernel(const int32_t *from, int64_t n, int32_t apart, unsigned *sum)
{
    int64_t const k = thread_index();
    if (k < n) atomicAdd(sum + apart * lane(), static_cast<unsigned>(from[k]));
}

__device__ unsigned summand(const int32_t *from, int64_t k, int64_t n)
{
    return k < n ? static_cast<unsigned>(from[k]) : 0;
}

__device__ unsigned warp_sum(unsigned x)
{
    for (int distance = 16; distance > 0; distance /= 2)
        x += __shfl_down_sync(all_lanes, x, distance);
    return x;
}

__global__ void reduce_warp_kernel(const int32_t *from, int64_t n, unsigned *sum)
{
    unsigned const x = warp_sum(summand(from, thread_index(), n));
    if (lane() == 0) atomicAdd(sum, x);
}

/* As before shuffles: halves of the block through shared memory. */
__device__ unsigned block_sum_shared(unsigned x)
{
    __shared__ unsigned part[block_size];
    part[threadIdx.x] = x;
    for (unsigned half = block_size / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    return part[0]; /* of thread 0 */
}

/* Shuffles in warps, then in the first warp. */
__device__ unsigned block_sum_shuffles(unsigned x)
{
    __shared__ unsigned part[block_size / 32];
    x = warp_sum(x);
    if (lane() == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x >= 32) return 0;
    return warp_sum(lane() < block_size / 32 ? part[lane()] : 0);
}

/* One atomic a block. Threads read one element each or, where the blocks are fewer, many. */
template <bool shuffles>
__global__ void reduce_block_kernel(const int32_t *from, int64_t n, unsigned *sum)
{
    unsigned x = 0;
    for (int64_t k = thread_index(); k < n; k += static_cast<int64_t>(gridDim.x) * blockDim.x)
        x += summand(from, k, n);
    x = shuffles ? block_sum_shuffles(x) : block_sum_shared(x);
    if (threadIdx.x == 0) atomicAdd(sum, x);
}

enum reduce_method { reduce_plain, reduce_apart, reduce_warps, one_shared, one_shuffles,
                     many_shared, many_shuffles, reduce_methods };
const char *const reduce_name[] = {"plain atomics",
                                   "plain atomics, one by one",
                                   "shuffles, atomic per warp",
                                   "shared memory, atomic per block",
                                   "shuffles, atomic per block",
                                   "many each, shared memory, atomic per block",
                                   "many each, shuffles, atomic per block"};

void run_reduce(reduce_method method, const device_array<int32_t> &from, unsigned *sum)
{
    int64_t const n = static_cast<int64_t>(from.count);
    const int32_t *const data = from.data;
    must(cudaMemsetAsync(sum, 0, sizeof *sum, stream));
    switch (method) {
    case reduce_plain: launch(n, reduce_plain_kernel, data, n, sum); break;
    case reduce_apart: launch(n, reduce_apart_kernel, data, n, 0, sum); break;
    case reduce_warps: launch(n, reduce_warp_kernel, data, n, sum); break;
    case one_shared: launch(n, reduce_block_kernel<false>, data, n, sum); break;
    case one_shuffles: launch(n, reduce_block_kernel<true>, data, n, sum); break;
    case many_shared:
        launch_blocks(blocks_of_gpu(), reduce_block_kernel<false>, data, n, sum);
        break;
    default: launch_blocks(blocks_of_gpu(), reduce_block_kernel<true>, data, n, sum);
    }
}

void bench_reduce(const device_array<int32_t> &from)
{
    int64_t const n = static_cast<int64_t>(from.count);
    device_array<unsigned> sum(1);
    std::string const workload = "sum-" + size_name(n);
    unsigned expected = 0;
    double base = 0;
    for (int32_t x : from.download()) expected += static_cast<unsigned>(x);
    bench_title("reduce: the sum of n integers (003)", "plain");
    for (int m = 0; m < reduce_methods; m++) {
        reduce_method const method = static_cast<reduce_method>(m);
        bench_row_s row = {};
        row.group = "reduce";
        row.workload = workload.c_str();
        row.method = reduce_name[m];
        row.n = n;
        row.ms = gpu_ms([&] { run_reduce(method, from, sum.data); });
        if (m == 0) base = row.ms;
        row.base_ms = base;
        row.floor_ms = 4.0 * static_cast<double>(n) / copy_speed;
        bench_row(&row);
        bench_check(sum.download()[0] == expected, reduce_name[m]);
    }
}

/* ---- filter: elements that hold a condition, packed ------------------------------------------ */

__device__ bool passes(int32_t x, int32_t percent) { return x % 100 < percent; }

/* apart: used by the next kernel alone. */
__global__ void filter_plain_kernel(const int32_t *from, int64_t n, int32_t percent, int32_t apart,
                                    int32_t *to, int32_t *count)
{
    int64_t const k = thread_index();
    if (k < n && passes(from[k], percent)) to[atomicAdd(count, 1)] = from[k];
}

/* An atomic for each element that passes: `apart` is 0, which the compiler does not know. */
__global__ void filter_apart_kernel(const int32_t *from, int64_t n, int32_t percent, int32_t apart,
                                    int32_t *to, int32_t *count)
{
    int64_t const k = thread_index();
    if (k < n && passes(from[k], percent)) to[atomicAdd(count + apart * lane(), 1)] = from[k];
}

/* One atomic for a warp: its first lane takes room for all that pass. */
__global__ void filter_warp_kernel(const int32_t *from, int64_t n, int32_t percent, int32_t apart,
                                   int32_t *to, int32_t *count)
{
    int64_t const k = thread_index();
    int32_t const x = k < n ? from[k] : 0;
    bool const pass = k < n && passes(x, percent);
    unsigned const passing = __ballot_sync(all_lanes, pass);
    int32_t first = 0;
    if (lane() == 0 && passing) first = atomicAdd(count, __popc(passing));
    first = __shfl_sync(all_lanes, first, 0);
    if (pass) to[first + __popc(passing & ((1u << lane()) - 1))] = x;
}

/* One atomic for a block: ranks by an atomic in shared memory. */
__global__ void filter_block_kernel(const int32_t *from, int64_t n, int32_t percent, int32_t apart,
                                    int32_t *to, int32_t *count)
{
    __shared__ int32_t passing, first;
    int64_t const k = thread_index();
    if (threadIdx.x == 0) passing = 0;
    __syncthreads();
    int32_t const x = k < n ? from[k] : 0;
    bool const pass = k < n && passes(x, percent);
    int32_t const rank = pass ? atomicAdd(&passing, 1) : 0;
    __syncthreads();
    if (threadIdx.x == 0) first = atomicAdd(count, passing);
    __syncthreads();
    if (pass) to[first + rank] = x;
}

void filter_rows(int64_t n, int32_t percent, const device_array<int32_t> &from, int64_t expected,
                 int64_t expected_sum)
{
    static const char *const name[] = {"plain atomics", "plain atomics, one by one",
                                       "atomic per warp", "atomic per block"};
    static void (*const kernel[])(const int32_t *, int64_t, int32_t, int32_t, int32_t *,
                                  int32_t *) = {filter_plain_kernel, filter_apart_kernel,
                                                filter_warp_kernel, filter_block_kernel};
    device_array<int32_t> to(from.count), count(1);
    std::string const workload = "keep-" + std::to_string(percent);
    double base = 0;
    for (int m = 0; m < 4; m++) {
        bench_row_s row = {};
        row.group = "filter";
        row.workload = workload.c_str();
        row.method = name[m];
        row.n = n;
        row.ms = gpu_ms([&] {
            must(cudaMemsetAsync(count.data, 0, sizeof *count.data, stream));
            launch(n, kernel[m], from.data, n, percent, 0, to.data, count.data);
        });
        if (m == 0) base = row.ms;
        row.base_ms = base;
        row.floor_ms = 4.0 * static_cast<double>(n + expected) / copy_speed;
        bench_row(&row);
        must(cudaMemsetAsync(to.data, 0, to.count * sizeof *to.data, stream));
        must(cudaMemsetAsync(count.data, 0, sizeof *count.data, stream));
        launch(n, kernel[m], from.data, n, percent, 0, to.data, count.data);
        bench_check(count.download()[0] == expected && sum_of(to) == expected_sum, name[m]);
    }
}

void bench_filter(const device_array<int32_t> &from)
{
    int64_t const n = static_cast<int64_t>(from.count);
    std::vector<int32_t> const host = from.download();
    bench_title("filter: elements that pass a test, packed in any order (003)", "plain");
    for (int32_t percent : {1, 25, 50, 100}) {
        int64_t count = 0, sum = 0;
        for (int32_t x : host)
            if (x % 100 < percent) {
                count++;
                sum += x;
            }
        filter_rows(n, percent, from, count, sum);
    }
}

/* ---- buckets: pairs of key and value into a hash table with chaining (000, introduction) ----- */

/* A pair, and the next of its bucket: one store of 16 bytes. */
struct alignas(16) node { uint32_t key; int32_t value, next, unused; };

__device__ int32_t bucket_of(uint32_t key, int32_t buckets)
{
    return static_cast<int32_t>(hash(key) & static_cast<uint32_t>(buckets - 1));
}

__global__ void pairs_kernel(uint32_t *key, int32_t *value, int64_t n)
{
    int64_t const k = thread_index();
    if (k >= n) return;
    key[k] = hash(static_cast<uint32_t>(k) ^ 0x5BD1E995u);
    value[k] = value_of(k);
}

__global__ void ids_kernel(int32_t *id, int64_t n)
{
    int64_t const k = thread_index();
    if (k < n) id[k] = static_cast<int32_t>(k);
}

/* A link beside each pair: one atomic exchange. */
__global__ void link_kernel(const uint32_t *key, int64_t n, int32_t buckets, int32_t *head,
                            int32_t *next)
{
    int64_t const k = thread_index();
    if (k < n) next[k] = atomicExch(&head[bucket_of(key[k], buckets)], static_cast<int32_t>(k));
}

/* The link in a record with its pair. */
__global__ void node_kernel(const uint32_t *key, const int32_t *value, int64_t n, int32_t buckets,
                            int32_t *head, node *nodes)
{
    int64_t const k = thread_index();
    if (k >= n) return;
    int32_t const next =
        atomicExch(&head[bucket_of(key[k], buckets)], static_cast<int32_t>(k));
    nodes[k] = node{key[k], value[k], next, 0};
}

__global__ void bucket_kernel(const uint32_t *key, int64_t n, int32_t buckets, uint32_t *bucket)
{
    int64_t const k = thread_index();
    if (k < n) bucket[k] = static_cast<uint32_t>(bucket_of(key[k], buckets));
}

/* After a sort by bucket: first[b] is where bucket b begins. */
__global__ void first_kernel(const uint32_t *bucket, int64_t n, int32_t buckets, int32_t *first)
{
    int64_t const k = thread_index();
    if (k > n) return;
    int64_t const here = k < n ? static_cast<int64_t>(bucket[k]) : buckets,
                  before = k > 0 ? static_cast<int64_t>(bucket[k - 1]) : -1;
    for (int64_t b = before + 1; b <= here; b++) first[b] = static_cast<int32_t>(k);
}

/* Of each bucket the pairs that are in the right one: their number, and the sum of their values. */
__global__ void walk_links_kernel(const uint32_t *key, const int32_t *value, int32_t buckets,
                                  const int32_t *head, const int32_t *next, const node *nodes,
                                  unsigned long long *found)
{
    int32_t const b = static_cast<int32_t>(thread_index());
    if (b >= buckets) return;
    unsigned long long count = 0, sum = 0;
    for (int32_t k = head[b]; k >= 0; k = nodes ? nodes[k].next : next[k]) {
        uint32_t const own = nodes ? nodes[k].key : key[k];
        count += bucket_of(own, buckets) == b;
        sum += static_cast<unsigned long long>(nodes ? nodes[k].value : value[k]);
    }
    atomicAdd(&found[0], count);
    atomicAdd(&found[1], sum);
}

__global__ void walk_sorted_kernel(const uint32_t *key, const int32_t *value, int32_t buckets,
                                   const int32_t *first, const int32_t *order,
                                   unsigned long long *found)
{
    int32_t const b = static_cast<int32_t>(thread_index());
    if (b >= buckets) return;
    unsigned long long count = 0, sum = 0;
    for (int32_t k = first[b]; k < first[b + 1]; k++) {
        count += bucket_of(key[order[k]], buckets) == b;
        sum += static_cast<unsigned long long>(value[order[k]]);
    }
    atomicAdd(&found[0], count);
    atomicAdd(&found[1], sum);
}

enum bucket_method { links, packed, sorted_pairs, bucket_methods };
const char *const bucket_method_name[] = {"linked lists", "linked lists, packed in 16 bytes",
                                          "sorted by bucket, then starts"};

/* As many buckets as pairs, rounded down to a power of two. */
struct bucket_case {
    int64_t n;
    int32_t buckets = 1, bits = 0;
    device_array<uint32_t> key, bucket, sorted;
    device_array<int32_t> value, head, next, id, order;
    device_array<node> nodes;
    device_array<char> temp;

    explicit bucket_case(int64_t pairs)
        : n(pairs), key(size()), bucket(size()), sorted(size()), value(size()), head(size() + 1),
          next(size()), id(size()), order(size()), nodes(size()), temp(temp_bytes())
    {
        for (; 2 * static_cast<int64_t>(buckets) <= n; buckets *= 2) bits++;
        launch(n, pairs_kernel, key.data, value.data, n);
        launch(n, ids_kernel, id.data, n);
    }
    std::size_t size() const { return static_cast<std::size_t>(n); }
    std::size_t temp_bytes()
    {
        std::size_t bytes = 0;
        must(cub::DeviceRadixSort::SortPairs(nullptr, bytes, bucket.data, sorted.data, id.data,
                                             order.data, n, 0, 32, stream));
        return bytes;
    }
    void run(bucket_method method)
    {
        if (method != sorted_pairs)
            must(cudaMemsetAsync(head.data, 0xFF, sizeof(int32_t) * buckets, stream));
        if (method == links) launch(n, link_kernel, key.data, n, buckets, head.data, next.data);
        if (method == packed)
            launch(n, node_kernel, key.data, value.data, n, buckets, head.data, nodes.data);
        if (method != sorted_pairs) return;
        std::size_t bytes = temp.count;
        launch(n, bucket_kernel, key.data, n, buckets, bucket.data);
        must(cub::DeviceRadixSort::SortPairs(temp.data, bytes, bucket.data, sorted.data, id.data,
                                             order.data, n, 0, bits ? bits : 1, stream));
        launch(n + 1, first_kernel, sorted.data, n, buckets, head.data);
    }
    bool right(bucket_method method)
    {
        device_array<unsigned long long> found(2);
        unsigned long long expected = 0;
        must(cudaMemsetAsync(found.data, 0, 2 * sizeof *found.data, stream));
        if (method == sorted_pairs)
            launch(buckets, walk_sorted_kernel, key.data, value.data, buckets, head.data,
                   order.data, found.data);
        else
            launch(buckets, walk_links_kernel, key.data, value.data, buckets, head.data, next.data,
                   method == packed ? nodes.data : nullptr, found.data);
        for (int64_t k = 0; k < n; k++) expected += static_cast<unsigned long long>(k % 7) + 1;
        std::vector<unsigned long long> const got = found.download();
        return got[0] == static_cast<unsigned long long>(n) && got[1] == expected;
    }
};

/* The column "peer (targets)": 250 million pairs/s, which source 000 quotes for other hash tables;
   its own lists reach 2 billion/s at 1M (GTX 660). */
void bench_buckets(int64_t n)
{
    bucket_case c(n);
    std::string const workload = "pairs-" + size_name(n);
    double base = 0;
    for (int m = 0; m < bucket_methods; m++) {
        bucket_method const method = static_cast<bucket_method>(m);
        bench_row_s row = {};
        row.group = "buckets";
        row.workload = workload.c_str();
        row.method = bucket_method_name[m];
        row.n = n;
        row.ms = gpu_ms([&] { c.run(method); });
        if (m == 0) base = row.ms;
        row.base_ms = base;
        row.floor_ms = (4.0 + 4) * static_cast<double>(n) / copy_speed;
        row.peer_ms = static_cast<double>(n) / 250e3;
        row.peer = "hash tables";
        bench_row(&row);
        bench_check(c.right(method), bucket_method_name[m]);
    }
}

void bench_all_buckets()
{
    bench_title("buckets: pairs of key and value into as many buckets (000)", "links");
    for (int64_t n : {16384, 131072, 1000000, 10000000})
        if (bench.small ? n < 20000 : !bench.n || n == bench.n) bench_buckets(n);
}

} // namespace

int main(int argc, char **argv)
{
    bench_start(argc, argv, "bench_keys_cuda", "histogram,image,reduce,filter,buckets");
    start_gpu();
    print_gpu("bench_keys", 1);
    measure_copy();
    int64_t const n = bench.n ? bench.n : 10000000;
    if (bench_wants("histogram")) bench_histogram(n);
    if (bench_wants("image")) bench_image(n);
    if (bench_wants("buckets")) bench_all_buckets();
    {
        device_array<int32_t> from(static_cast<std::size_t>(n));
        launch(n, keys_kernel, from.data, n, 1000000, any_order);
        if (bench_wants("reduce")) bench_reduce(from);
        if (bench_wants("filter")) bench_filter(from);
    }
    stop_gpu();
    return bench_end();
}
