/* cuda/lbvh.cu - v0.2.0 - the CUDA part of lbvh.h, which includes this file. Sections and names
   follow the serial code there. SPDX-License-Identifier: MIT OR Unlicense

   Both sides call the same LBVH_FN function for one element, node or query. CUB sorts and scans
   whole arrays.

   >>contents: search for >>, the name and a colon.
               early, memory, work, codes, leaves, merge, split, build, pairs, queries,
               nearest, sort, keys, copies, cuda-api */

#ifndef LBVH_H
#error "cuda/lbvh.cu is a part of lbvh.h: include that"
#elif 10000 * LBVH_VERSION_MAJOR + 100 * LBVH_VERSION_MINOR + LBVH_VERSION_PATCH != 200
#error "cuda/lbvh.cu 0.2.0 and lbvh.h are of different versions: copy both from one release"
#endif

#ifndef CUDA_EMU
#include <cooperative_groups.h>
#endif
#include <cuda_runtime.h>
#include <cub/cub.cuh>

#include <algorithm>
#include <cfloat>
#include <climits>
#include <cstring>

#include "lbvh_packets.cu"

namespace {

/* Leaves of a block in builds, and threads of every block that uses no shared memory. */
constexpr int lbvh_i_block_threads = 256;

/* Number of blocks for `many` items, `each` per block. */
int32_t lbvh_i_blocks(int32_t many, int32_t each) { return many / each + (many % each != 0); }

/* ------------------------------------------------------------------------------------------------
   >>early: a kernel is launched while the one before still runs

   Its blocks then lie ready, and wait: a launch takes 1 to 2 us less (programmatic dependent
   launch, CUDA C++ Programming Guide). Only where all code is made for compute capability 9.0 and
   later: a kernel of older code would not wait.
   ---------------------------------------------------------------------------------------------- */

#if defined(__CUDACC__) && defined(__CUDA_ARCH_LIST__)
constexpr int lbvh_i_least_of(int least) { return least; }
template <class... More> constexpr int lbvh_i_least_of(int least, int other, More... more)
{
    return lbvh_i_least_of(other < least ? other : least, more...);
}
constexpr bool lbvh_i_starts_early = lbvh_i_least_of(__CUDA_ARCH_LIST__) >= 900;
#else
constexpr bool lbvh_i_starts_early = false;
#endif

/* The first statement of a kernel that is launched early: waits until the kernel before has ended,
   and all that it stored can be loaded. Then the next one may be launched. */
__device__ __forceinline__ void lbvh_i_wait_for_kernel_before()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

cudaLaunchAttribute lbvh_i_early()
{
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    return early;
}

/* As lbvh_i_launch, of a kernel that begins by waiting; early if what comes before in the stream is
   known to be a kernel. */
template <class... Parameters, class... Arguments>
lbvh_result lbvh_i_launch_early(lbvh_cuda *gpu, cudaStream_t stream, bool after_kernel,
                                int64_t threads, int block, void (*kernel)(Parameters...),
                                Arguments... arguments)
{
    cudaLaunchAttribute early = lbvh_i_early();
    cudaLaunchConfig_t config = {};
    gpu->stream = stream;
    if (threads <= 0) return LBVH_OK;
    config.gridDim = dim3((unsigned)((threads + block - 1) / block));
    config.blockDim = dim3((unsigned)block);
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = lbvh_i_starts_early && after_kernel ? 1 : 0;
    return lbvh_i_launch_config(gpu, config, kernel, arguments...);
}

/* ------------------------------------------------------------------------------------------------
   >>memory: blocks of device memory
   ---------------------------------------------------------------------------------------------- */

/* Work space. */
enum {
    LBVH_I_KEYS_A,  /* keys to sort, of elements or queries; the two halves of the sort's double
                       buffer */
    LBVH_I_KEYS_B,
    LBVH_I_IDS_A,   /* their ids */
    LBVH_I_IDS_B,
    LBVH_I_LONG,    /* sorted codes; where CUB sorts, codes of 63 bits by element, and samples */
    LBVH_I_LINKS,   /* LBVH_SPLIT, and parts: counters, parents */
    LBVH_I_ROWS,    /* offsets of the rows of a list of pairs */
    LBVH_I_KEPT,    /* what the first pass of a list found, for the second: pairs, or hits of
                       batches */
    LBVH_I_TEMP     /* temporary storage of CUB, or of >>sort */
};

/* CUB reports an error that the caller left unread as its own: it is cleared first, here and before
   sorts. */
template <class In, class Out>
cudaError_t lbvh_i_exclusive_sum(void *temp, size_t &temp_bytes, In in, Out out, int64_t m,
                                 cudaStream_t stream = nullptr)
{
    (void)cudaGetLastError();
    return cub::DeviceScan::ExclusiveSum(temp, temp_bytes, in, out, m, stream);
}

/* Notes an error of CUDA: true if there was one. */
bool lbvh_i_failed(lbvh_cuda *gpu, cudaError_t error)
{
    if (error == cudaSuccess) return false;
    gpu->device.tree.cuda_error = (int32_t)error;
    (void)cudaGetLastError(); /* reported, so cleared */
    return true;
}

void *lbvh_i_cuda_alloc(const lbvh_cuda_allocator *allocator, size_t bytes, cudaStream_t stream)
{
    void *memory = nullptr;
    if (allocator->alloc) return allocator->alloc(bytes, stream, allocator->user);
    if (cudaMallocAsync(&memory, bytes, stream) == cudaSuccess) return memory;
    (void)cudaGetLastError(); /* cleared: a later call must not report the failed allocation */
    return nullptr;
}

void lbvh_i_cuda_release(const lbvh_cuda_allocator *allocator, lbvh_block *block,
                         cudaStream_t stream)
{
    if (block->memory && allocator->free)
        allocator->free(block->memory, block->bytes, stream, allocator->user);
    else if (block->memory) (void)cudaFreeAsync(block->memory, stream);
    block->memory = nullptr;
    block->bytes = 0;
}

/* As lbvh_i_grow. New memory is filled with ones: no byte stays uninitialised. */
lbvh_result lbvh_i_cuda_grow(lbvh_cuda *gpu, lbvh_block *block, size_t bytes, lbvh_i_growth growth,
                             cudaStream_t stream)
{
    const lbvh_cuda_allocator *allocator = &gpu->device.tree.desc.cuda_allocator;
    if (bytes <= block->bytes) return LBVH_OK;
    size_t room = lbvh_i_room(growth, block->bytes, bytes);
    lbvh_i_cuda_release(allocator, block, stream);
    block->memory = lbvh_i_cuda_alloc(allocator, room, stream);
    if (!block->memory && room > bytes) {
        room = bytes;
        block->memory = lbvh_i_cuda_alloc(allocator, room, stream);
    }
    if (!block->memory) return LBVH_OUT_OF_MEMORY;
    block->bytes = room;
    if (!lbvh_i_failed(gpu, cudaMemsetAsync(block->memory, 0xFF, room, stream))) return LBVH_OK;
    lbvh_i_cuda_release(allocator, block, stream);
    return LBVH_CUDA_ERROR;
}

/* A block of work space as an array. */
template <class T> T *lbvh_i_scratch(lbvh_cuda *gpu, int which)
{
    return static_cast<T *>(gpu->scratch[which].memory);
}

cudaError_t lbvh_i_sort_pairs(void *temp, size_t &temp_bytes, cub::DoubleBuffer<uint32_t> &keys,
                              cub::DoubleBuffer<int32_t> &ids, int32_t n, int bits,
                              cudaStream_t stream)
{
    (void)cudaGetLastError();
    return cub::DeviceRadixSort::SortPairs(temp, temp_bytes, keys, ids, n, 0, bits, stream);
}

/* The buffers of a sort. */
struct lbvh_i_sort {
    cub::DoubleBuffer<uint32_t> keys;
    cub::DoubleBuffer<int32_t> ids;
};

/* The keys and ids of a sort, and their spares. */
lbvh_i_sort lbvh_i_sort_of(lbvh_cuda *gpu)
{
    return {{lbvh_i_scratch<uint32_t>(gpu, LBVH_I_KEYS_A),
             lbvh_i_scratch<uint32_t>(gpu, LBVH_I_KEYS_B)},
            {lbvh_i_scratch<int32_t>(gpu, LBVH_I_IDS_A),
             lbvh_i_scratch<int32_t>(gpu, LBVH_I_IDS_B)}};
}

/* Sorts n ids by the lower bits of their keys, stably: digits of 8 bits each, the lowest first. */
lbvh_result lbvh_i_sort_by_digits(lbvh_cuda *gpu, lbvh_i_sort *sort, int32_t n, int bits,
                                  cudaStream_t stream)
{
    size_t temp = gpu->scratch[LBVH_I_TEMP].bytes;
    return lbvh_i_failed(gpu, lbvh_i_sort_pairs(gpu->scratch[LBVH_I_TEMP].memory, temp, sort->keys,
                                                sort->ids, n, bits, stream))
               ? LBVH_CUDA_ERROR
               : LBVH_OK;
}

void lbvh_i_at_least(size_t *bytes, size_t needed)
{
    if (*bytes < needed) *bytes = needed;
}

/* ------------------------------------------------------------------------------------------------
   >>work: memory of builds and searches
   ---------------------------------------------------------------------------------------------- */

/* Of a sort in two launches (>>sort): the most elements or keys, and bytes of TEMP for n. */
int32_t lbvh_i_sort_most();
size_t lbvh_i_sort_bytes(int32_t n);

/* Bytes of the sorted codes, also of fewer elements than n: more are sorted by CUB. */
size_t lbvh_i_sorted_bytes(int32_t n)
{
    return (size_t)std::min(n, lbvh_i_sort_most()) * sizeof(uint64_t);
}

/* Sorts n ids by the lower bits of their keys. */
lbvh_result lbvh_i_sort_keys(lbvh_cuda *gpu, lbvh_i_sort *sort, int32_t n, int bits,
                             cudaStream_t stream);

/* Temporary storage of the largest sort or scan of m keys or rows. */
lbvh_result lbvh_i_temp_bytes(lbvh_cuda *gpu, int32_t m, int bits, size_t *bytes)
{
    size_t scan = 0, sort = 0;
    cub::DoubleBuffer<uint32_t> keys;
    cub::DoubleBuffer<int32_t> ids;
    if (lbvh_i_failed(gpu, lbvh_i_exclusive_sum(nullptr, scan, (int64_t *)nullptr,
                                                (int64_t *)nullptr, (int64_t)m + 1)))
        return LBVH_CUDA_ERROR;
    if (lbvh_i_failed(gpu, lbvh_i_sort_pairs(nullptr, sort, keys, ids, m, bits, nullptr)))
        return LBVH_CUDA_ERROR;
    *bytes = std::max(std::max(scan, sort), lbvh_i_sort_bytes(m));
    return LBVH_OK;
}

/* Hits that the first pass of a list keeps, so that the second need not search again: for each
   batch of a warp 32 words of bits, one of each lane, and its 32 leaves, as ids or as places. They
   lie in chunks of 4 batches, which warps take from a common store as they need them, up to 32
   each. It has 24 batches for each warp, 192 bytes a query, up to 2 GiB; uniform points with 29
   neighbours need 15. */
constexpr int lbvh_i_chunk = 4, lbvh_i_most_chunks = 32, lbvh_i_chunks_per_warp = 6;
constexpr int64_t lbvh_i_kept_most = (int64_t)2 << 30;

/* Words of a chunk, and of what a warp has beside: the chunks' numbers, and that of batches. */
constexpr int64_t lbvh_i_chunk_words = 2 * 32 * lbvh_i_chunk,
                  lbvh_i_warp_words = lbvh_i_most_chunks + 1;

/* Bytes for m queries, with a counter at the end; 0: too many to keep anything. */
size_t lbvh_i_kept_bytes(int64_t m)
{
    int64_t const warps = (m + 31) / 32,
                  words = warps * (lbvh_i_chunks_per_warp * lbvh_i_chunk_words +
                                   lbvh_i_warp_words) + 1;
    return 4 * words <= lbvh_i_kept_most ? (size_t)(4 * words) : 0;
}

/* What m searches need: temporary storage, keys and ids where they are sorted, hits where lists are
   made. */
lbvh_result lbvh_i_search_sizes(lbvh_cuda *gpu, int32_t m, bool sorts, bool lists,
                                size_t scratch[LBVH_CUDA_SCRATCH])
{
    size_t temp = 0, words = sorts ? (size_t)m * sizeof(uint32_t) : 0;
    lbvh_result const result = lbvh_i_temp_bytes(gpu, m, 30, &temp);
    lbvh_i_at_least(&scratch[LBVH_I_TEMP], temp);
    if (sorts) lbvh_i_at_least(&scratch[LBVH_I_LONG], lbvh_i_sorted_bytes(m));
    lbvh_i_at_least(&scratch[LBVH_I_KEPT], lists ? lbvh_i_kept_bytes(m) : 0);
    for (int which = LBVH_I_KEYS_A; which <= LBVH_I_IDS_B; which++)
        lbvh_i_at_least(&scratch[which], words);
    return result;
}

/* Bits of the keys that n elements are sorted by: all of a short code. Of a long one (>>keys) the
   fewer, the fewer elements: 8 bits are a pass of the sort. */
int lbvh_i_key_bits(const lbvh_desc *desc, int32_t n)
{
    if (desc->bits != 63) return lbvh_i_code_bits(desc);
    return n <= 1 << 18 ? 24 : 32;
}

/* Samples of the codes of n elements. */
constexpr int lbvh_i_most_samples = 1023;

int lbvh_i_samples(int32_t n)
{
    return n / 16 < lbvh_i_most_samples ? n / 16 + 1 : lbvh_i_most_samples;
}

/* Bytes of n codes of 63 bits, and samples. */
size_t lbvh_i_long_bytes(int32_t n)
{
    return ((size_t)n + (size_t)lbvh_i_samples(n)) * sizeof(uint64_t);
}

/* What a build over n elements needs. */
lbvh_result lbvh_i_build_sizes(lbvh_cuda *gpu, int32_t n, size_t bytes[LBVH_BLOCKS],
                               size_t scratch[LBVH_CUDA_SCRATCH])
{
    const lbvh_desc *desc = &gpu->device.tree.desc;
    size_t const keys = (size_t)n * sizeof(uint32_t), ids = (size_t)n * sizeof(int32_t);
    size_t temp = 0;
    lbvh_result result = lbvh_i_sizes(desc, n, bytes);
    if (result != LBVH_OK) return result;
    bytes[LBVH_I_NODE] += (size_t)lbvh_i_blocks(n, lbvh_i_slice) * sizeof(lbvh_node);
    /* n + 1 bytes, then the facts */
    bytes[LBVH_I_PREFIX] = ((size_t)n + 8) / 8 * 8 + sizeof(lbvh_cuda_facts);
    result = lbvh_i_temp_bytes(gpu, n, lbvh_i_key_bits(desc, n), &temp);
    lbvh_i_at_least(&scratch[LBVH_I_TEMP], std::max(temp, sizeof(lbvh_i_quantiles)));
    lbvh_i_at_least(&scratch[LBVH_I_KEYS_A], keys);
    lbvh_i_at_least(&scratch[LBVH_I_KEYS_B], keys);
    lbvh_i_at_least(&scratch[LBVH_I_IDS_A], ids);
    lbvh_i_at_least(&scratch[LBVH_I_IDS_B], ids);
    lbvh_i_at_least(&scratch[LBVH_I_LONG],
                    desc->bits == 63 ? lbvh_i_long_bytes(n) : lbvh_i_sorted_bytes(n));
    if (desc->builder == LBVH_SPLIT) lbvh_i_at_least(&scratch[LBVH_I_LINKS], 3 * ids);
    return result;
}

/* Work space of at least these sizes. */
lbvh_result lbvh_i_grow_scratch(lbvh_cuda *gpu, const size_t scratch[LBVH_CUDA_SCRATCH],
                                lbvh_i_growth growth, cudaStream_t stream)
{
    for (int b = 0; b < LBVH_CUDA_SCRATCH; b++) {
        lbvh_result const result = lbvh_i_cuda_grow(gpu, &gpu->scratch[b], scratch[b], growth,
                                                    stream);
        if (result != LBVH_OK) return result;
    }
    return LBVH_OK;
}

/* Grows the memory of m searches. */
lbvh_result lbvh_i_prepare_search(lbvh_cuda *gpu, int32_t m, bool sorts, bool lists,
                                  lbvh_i_growth growth, cudaStream_t stream)
{
    size_t scratch[LBVH_CUDA_SCRATCH] = {};
    lbvh_result const result = lbvh_i_search_sizes(gpu, m, sorts, lists, scratch);
    return result == LBVH_OK ? lbvh_i_grow_scratch(gpu, scratch, growth, stream) : result;
}

/* Grows the memory of a build over n elements, and sets the pointers of the arrays. */
lbvh_result lbvh_i_cuda_prepare(lbvh_cuda *gpu, int32_t n, lbvh_i_growth growth,
                                cudaStream_t stream)
{
    lbvh *tree = &gpu->device.tree;
    size_t bytes[LBVH_BLOCKS], scratch[LBVH_CUDA_SCRATCH] = {};
    lbvh_result result = lbvh_i_build_sizes(gpu, n, bytes, scratch);
    if (result != LBVH_OK) return result;
    for (int b = 0; b < LBVH_BLOCKS; b++) {
        result = lbvh_i_cuda_grow(gpu, &gpu->block[b], bytes[b], growth, stream);
        if (result != LBVH_OK) return result;
    }
    result = lbvh_i_grow_scratch(gpu, scratch, growth, stream);
    if (result != LBVH_OK) return result;
    lbvh_i_bind(tree, gpu->block);
    gpu->d_facts = reinterpret_cast<lbvh_cuda_facts *>(tree->prefix + ((size_t)n + 8) / 8 * 8);
    return LBVH_OK;
}

/* Empties the tree and stores a checked desc, as lbvh_i_begin does on the host. */
lbvh_result lbvh_i_cuda_begin(lbvh_cuda *gpu, const lbvh_desc *desc, cudaStream_t stream)
{
    lbvh *tree = &gpu->device.tree;
    lbvh_cuda_allocator const had = tree->desc.cuda_allocator;
    gpu->stream = stream;
    bool holds = false;
    for (int b = 0; b < LBVH_BLOCKS; b++) holds |= gpu->block[b].memory != nullptr;
    for (int b = 0; b < LBVH_CUDA_SCRATCH; b++) holds |= gpu->scratch[b].memory != nullptr;
    lbvh_result const result = lbvh_i_begin(tree, desc);
    if (result != LBVH_OK) return result;
    lbvh_cuda_allocator const given = tree->desc.cuda_allocator;
    if (holds && (had.alloc != given.alloc || had.free != given.free || had.user != given.user)) {
        tree->desc.cuda_allocator = had;
        return LBVH_BAD_ALLOCATOR;
    }
    return LBVH_OK;
}

/* ------------------------------------------------------------------------------------------------
   >>codes: bounds of the centres, and Morton codes
   ---------------------------------------------------------------------------------------------- */

/* The caller's elements. */
struct lbvh_i_input {
    const lbvh_real *data;
    size_t stride;
};

/* Reals as integers of the same order, above 0, for atomicMax. The bit patterns of positive reals
   ascend with them, those of negative ones descend: negative ones have all bits flipped, the others
   the sign. */
__device__ unsigned long long lbvh_i_order_of(lbvh_real x)
{
    unsigned long long const bits = (unsigned long long)__double_as_longlong((double)x);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

__device__ lbvh_real lbvh_i_real_of(unsigned long long order)
{
    unsigned long long const sign = 1ull << 63;
    return (lbvh_real)__longlong_as_double((long long)(order & sign ? order ^ sign : ~order));
}

/* Reports an element that is left out. */
__device__ void lbvh_i_report(lbvh_cuda_facts *facts, lbvh_result result, int32_t i)
{
    int const kind = result == LBVH_NOT_FINITE ? 0 : result == LBVH_INVERTED ? 1 : 2;
    atomicMax(&facts->first_bad[kind], INT_MAX - i);
}

/* The sample of lbvh.h, >>sample, in shared memory; x[0] is infinite where it is left out. Its
   numbers are put into a table, or sorted: all different from `none`. */
struct lbvh_i_block_sample {
    lbvh_real half_centre[LBVH_I_SAMPLE][3], least[3], most[3]; /* the bounds: of all elements */
    unsigned long long number[2 * LBVH_I_SAMPLE];
};
constexpr unsigned long long lbvh_i_no_number = ~0ull;

/* Takes the sample, and empties the table. The caller waits then for the block. */
__device__ __forceinline__ void lbvh_i_take_sample(const lbvh_desc &desc, const lbvh_i_input &input,
                                                   int32_t n, lbvh_i_block_sample &sample)
{
    for (int s = (int)threadIdx.x; s < LBVH_I_SAMPLE; s += (int)blockDim.x) {
        lbvh_real min[3], max[3];
        bool const taken = s < n && lbvh_box_of(&desc, input.data, input.stride,
                                                lbvh_i_sample_id(s, n), min, max) == LBVH_OK;
        for (int a = 0; a < 3; a++)
            sample.half_centre[s][a] = taken ? lbvh_i_half_centre(min[a], max[a])
                                             : lbvh_i_infinity();
        sample.number[s] = sample.number[LBVH_I_SAMPLE + s] = lbvh_i_no_number;
    }
}

/* Notes the bounds: by one thread. */
__device__ __forceinline__ void lbvh_i_set_bounds(const lbvh_real least[3],
                                                  const lbvh_real most[3],
                                                  lbvh_i_block_sample &sample)
{
    for (int a = 0; a < 3; a++) {
        sample.least[a] = least[a];
        sample.most[a] = most[a];
    }
}

/* 1 if the number is in the table already; if not, it is now. */
__device__ __forceinline__ bool lbvh_i_is_in_table(unsigned long long *table,
                                                   unsigned long long number)
{
    uint32_t slot = (uint32_t)(number * 0x9E3779B97F4A7C15u >> 32);
    for (;; slot++) {
        unsigned long long const had = atomicCAS(&table[slot % (2 * LBVH_I_SAMPLE)],
                                                 lbvh_i_no_number, number);
        if (had == lbvh_i_no_number) return false;
        if (had == number) return true;
    }
}

/* How many of the sample's numbers another one has, too, less one of each: of codes, or of centres
   where there is no lattice. By the block. */
__device__ __forceinline__ int lbvh_i_count_alike(const lbvh_desc &desc,
                                                  const lbvh_lattice *lattice,
                                                  lbvh_i_block_sample &sample)
{
    int alike = 0;
    for (int s = (int)threadIdx.x; s < LBVH_I_SAMPLE; s += (int)blockDim.x) {
        const lbvh_real *const x = sample.half_centre[s];
        bool again = false;
        if (x[0] != lbvh_i_infinity())
            again = lbvh_i_is_in_table(sample.number,
                                       lattice ? lbvh_i_code_at(lattice, desc.dim, desc.bits, x)
                                               : lbvh_i_centre_hash(x));
        alike += __syncthreads_count(again);
    }
    return alike;
}

/* 1 if the lattice gives the sample too few codes: by the block. The table is empty. */
__device__ __forceinline__ bool lbvh_i_lattice_fails(const lbvh_desc &desc,
                                                     const lbvh_lattice &lattice,
                                                     lbvh_i_block_sample &sample)
{
    int const alike = lbvh_i_count_alike(desc, &lattice, sample);
    if (alike < LBVH_I_ALIKE) return false;
    for (int s = (int)threadIdx.x; s < 2 * LBVH_I_SAMPLE; s += (int)blockDim.x)
        sample.number[s] = lbvh_i_no_number;
    __syncthreads();
    return alike - lbvh_i_count_alike(desc, nullptr, sample) >= LBVH_I_ALIKE;
}

/* The number that lbvh_i_ascending made this one of. */
__device__ __forceinline__ lbvh_real lbvh_i_number_of(unsigned long long ascending)
{
    constexpr lbvh_i_bits sign = (lbvh_i_bits)1 << (8 * sizeof(lbvh_i_bits) - 1);
    lbvh_i_bits bits = (lbvh_i_bits)ascending;
    bits = bits & sign ? bits ^ sign : ~bits;
    lbvh_real x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The knots: by the block. Bitonic sort (Batcher 1968). */
__device__ void lbvh_i_make_knots(int dim, lbvh_i_block_sample &sample,
                                  lbvh_i_quantiles *quantiles)
{
    unsigned long long *const number = sample.number;
    for (int a = 0; a < dim; a++) {
        int32_t count = 0;
        for (int s = (int)threadIdx.x; s < LBVH_I_SAMPLE; s += (int)blockDim.x) {
            bool const taken = sample.half_centre[s][0] != lbvh_i_infinity();
            number[s] = taken ? lbvh_i_ascending(sample.half_centre[s][a]) : lbvh_i_no_number;
            count += __syncthreads_count(taken);
        }
        for (int width = 2; width <= LBVH_I_SAMPLE; width *= 2)
            for (int step = width / 2; step > 0; step /= 2) {
                for (int pair = (int)threadIdx.x; pair < LBVH_I_SAMPLE / 2;
                     pair += (int)blockDim.x) {
                    int const low = pair / step * 2 * step + pair % step, high = low + step;
                    unsigned long long const one = number[low], other = number[high];
                    bool const descends = (low & width) != 0;
                    if (one > other == descends) continue;
                    number[low] = other;
                    number[high] = one;
                }
                __syncthreads();
            }
        for (int j = (int)threadIdx.x; j <= LBVH_I_QUANTILES; j += (int)blockDim.x) {
            lbvh_real knot = lbvh_i_number_of(number[lbvh_i_knot_rank(j, count)]);
            if (j == 0) knot = lbvh_i_min(knot, sample.least[a]);
            if (j == LBVH_I_QUANTILES) knot = lbvh_i_max(knot, sample.most[a]);
            quantiles->knot[a][j] = knot;
        }
        __syncthreads();
    }
}

/* The sorted codes. */
struct lbvh_i_sorted_codes {
    const uint64_t *code; /* NULL: none */
    __device__ uint64_t operator[](int32_t k) const { return code[k]; }
};

/* The same where keys were sorted (>>keys). */
struct lbvh_i_keyed_codes {
    const uint32_t *key;
    const int32_t *id;
    const uint64_t *code; /* by element; NULL: keys are the codes */
    const lbvh_cuda_facts *facts;
    int key_bits;
    __device__ uint64_t operator[](int32_t k) const { return code ? code[id[k]] : key[k]; }
};

/* True where keys were sorted. */
__device__ __forceinline__ bool lbvh_i_given(const lbvh_i_sorted_codes &codes)
{
    return codes.code != nullptr;
}
__device__ __forceinline__ bool lbvh_i_given(const lbvh_i_keyed_codes &) { return true; }

/* Common leading bits of the codes at places k - 1 and k, of `bits`. */
__device__ __forceinline__ int lbvh_i_common_at(int bits, const lbvh_i_sorted_codes &codes,
                                                int32_t k)
{
    return lbvh_i_common(bits, codes[k - 1], codes[k], k - 1, k);
}

/* Keys are the upper bits where they are not relative: a difference shows there already. */
__device__ __forceinline__ int lbvh_i_common_at(int bits, const lbvh_i_keyed_codes &codes,
                                                int32_t k)
{
    uint32_t const differ = codes.key[k - 1] ^ codes.key[k];
    if (codes.code && differ && !codes.facts->clustered)
        return __clz((int)(differ << (32 - codes.key_bits)));
    return lbvh_i_common(bits, codes[k - 1], codes[k], k - 1, k);
}

/* ------------------------------------------------------------------------------------------------
   >>leaves: prefixes and leaves
   ---------------------------------------------------------------------------------------------- */

/* Stores a node in two words of 16 bytes, as lbvh_i_fetch loads it. */
__device__ __forceinline__ void lbvh_i_store(lbvh_node *to, const lbvh_node &node)
{
#if LBVH_I_REAL_KIND == 1
    float4 *const words = reinterpret_cast<float4 *>(to);
    words[0] = make_float4(node.min[0], node.min[1], node.min[2], __int_as_float(node.link));
    words[1] = make_float4(node.max[0], node.max[1], node.max[2], __int_as_float(node.skip));
#else
    *to = node;
#endif
}

/* prefix[k] from the sorted codes. */
template <class Codes>
__device__ __forceinline__ uint8_t lbvh_i_prefix_at(const lbvh &tree, const Codes &codes, int32_t k)
{
    bool const inside = k > 0 && k < tree.n;
    return inside ? (uint8_t)(1 + lbvh_i_common_at(lbvh_i_code_bits(&tree.desc), codes, k))
                  : (uint8_t)0;
}

/* All prefixes, and the codes, where they are kept. */
template <class Codes>
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_prefix_kernel(__grid_constant__ const lbvh_device device, Codes codes)
{
    const lbvh &tree = device.tree;
    int32_t const k = lbvh_i_thread();
    if (k > tree.n) return;
    tree.prefix[k] = lbvh_i_prefix_at(tree, codes, k);
    if (tree.code && k < tree.n) tree.code[k] = codes[k];
}

/* Sets the box of a leaf from its element, `link`. */
__device__ __forceinline__ void lbvh_i_make_leaf(const lbvh &tree, const lbvh_i_input &input,
                                                 lbvh_node *leaf)
{
    (void)lbvh_box_of(&tree.desc, input.data, input.stride, leaf->link, leaf->min, leaf->max);
    lbvh_i_fill_gaps(leaf);
}

/* Stores the boxes of a warp's slices. A thread gives the leaf at place k; all threads call. Of two
   neighbouring lanes one keeps minima, the other maxima, negated: half of the shuffles. */
__device__ __forceinline__ void lbvh_i_store_slices(const lbvh &tree, int32_t k,
                                                    const lbvh_node &leaf)
{
    bool const exists = k < tree.n, high = k % 2 == 1;
    lbvh_real least[3];
    for (int a = 0; a < 3; a++) {
        lbvh_real const min = exists ? leaf.min[a] : lbvh_i_infinity(),
                        max = exists ? -leaf.max[a] : lbvh_i_infinity();
        least[a] = lbvh_i_min(high ? max : min,
                              __shfl_xor_sync(0xFFFFFFFFu, high ? min : max, 1));
    }
    for (int step = 2; step < lbvh_i_slice; step *= 2)
        for (int a = 0; a < 3; a++)
            least[a] = lbvh_i_min(least[a], __shfl_xor_sync(0xFFFFFFFFu, least[a], step));
    if (k - k % 2 >= tree.n || k % lbvh_i_slice > 1) return;
    lbvh_real const sign = high ? (lbvh_real)-1 : (lbvh_real)1;
    lbvh_node *const slice = &lbvh_i_slices(tree)[k / lbvh_i_slice];
#if LBVH_I_REAL_KIND == 1
    reinterpret_cast<float4 *>(slice)[high] =
        make_float4(sign * least[0], sign * least[1], sign * least[2], 0);
#else
    for (int a = 0; a < 3; a++) (high ? slice->max : slice->min)[a] = sign * least[a];
#endif
}

/* The slices of a tree whose leaves are there. */
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_slices_kernel(__grid_constant__ const lbvh_device device)
{
    const lbvh &tree = device.tree;
    int32_t const k = lbvh_i_thread(), last = tree.n - 1;
    lbvh_i_store_slices(tree, k, lbvh_i_fetch(&tree.node[tree.first_leaf + (k < last ? k : last)]));
}

/* ------------------------------------------------------------------------------------------------
   >>merge: LBVH_MERGE, bottom-up agglomeration over the sorted codes (Apetrei 2014)

   Every border between two neighbouring leaves splits one inner node, whose two children meet
   there. (Apetrei gives the node the border's number; here it has Karras'.) The first child to
   arrive at the border stores its far end there and stops; the second one makes the parent and
   ascends. A subtree finds the border of its parent from the prefixes at its own two ends: it is
   the one with the larger prefix. On a GPU each meeting would cost two accesses to global memory.
   So blocks join the subtrees within them, in shared memory, and the rest is joined in rounds. The
   example of lbvh.h, >>nodes, in blocks of 5 leaves:

       border    0     1     2     3     4     5     6     7     8
       prefix    0     4     3     5     1     2     5     3     0

       round 1      0 > < 1     2 > < 3     4 >|  5 > < 6   < 7
                    ----- 1 > < 2 -----        |  ----- 6 > < 7
                    ----------------- 3 >      |< 5 -----------

       round 2      ----------------- 3 >   4 > < 5 -----------
                    ----------------- 3 > < 4 -----------------

   > or < points to the border of the parent. A node lies in shared memory at that end: at its
   Karras number. Round 1: leaves 0 and 1 meet at border 1, and make node 1 of 0..1; nodes 1 and 2
   meet at border 2, node 6 and leaf 7 at border 7. Node 3 waits at border 4; leaf 4 and node 5 stop
   at the ends of the blocks. Round 2: these three are active, now in one block; leaf 4 and node 5
   meet at border 5, nodes 3 and 4 at border 4, and make the root.

   Active subtrees are those whose parents reach beyond the block (the active clusters of
   agglomerative builders). In round 1 a block takes 256 leaves, in later rounds the active subtrees
   of 64 blocks. A block lists them by their first leaves, in order: here 0, 4 and 5. There are
   about 8 for 256 leaves (1M uniform points), and at most 2 for each of the 93 levels of a tree:
   less than the capacity of a block, so a full block always joins some.
   ---------------------------------------------------------------------------------------------- */

/* Half a node. The halves are separate arrays, so that neighbouring threads use neighbouring banks
   of shared memory. */
struct LBVH_ALIGN_NODE lbvh_i_half {
    lbvh_real x[3];
    int32_t word; /* link of the half with the minimum, skip of the other */
};

/* lists of active subtrees per block */
constexpr int lbvh_i_round_lists = 64;
/* active subtrees that it holds at a time */
constexpr int lbvh_i_round_threads = sizeof(lbvh_real) == 4 ? 1024 : 512;

/* Blocks of round 1 per SM, for __launch_bounds__. Where an SM holds 2048 threads, this limits the
   kernel to 32 registers per thread. */
#if defined(__CUDA_ARCH__) &&                                                                      \
    (__CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000)
constexpr int lbvh_i_merge_blocks = 2048 / lbvh_i_block_threads;
#else
constexpr int lbvh_i_merge_blocks = 1024 / lbvh_i_block_threads;
#endif

/* A subtree: the borders at its two ends. */
struct lbvh_i_range {
    int begin, end;
};

/* The subtrees of a block, at most Room, in order: in round 1 leaves, then active subtrees. Border
   b lies before subtree b. The node of joined subtrees is stored at the end where it meets its
   sibling. */
template <int Room> struct lbvh_i_subtrees {
    lbvh_i_half low[(size_t)Room], high[(size_t)Room];
    int32_t waits[(size_t)Room + 1]; /* [border] the far end of the subtree that arrived there
                                        first, or -1 */
    uint8_t prefix[(size_t)Room + 2];
    bool unjoined[(size_t)Room];       /* [border] no meeting there: at the end an active subtree
                                        begins after it */
    lbvh_i_range range[(size_t)Room / 3]; /* subtrees that ascend after two joins, and so hold
                                                 three subtrees or more */
    int32_t ranges;
};

/* Round 1: subtrees are leaves, so nodes lie in shared memory as in the tree. A leaf, which is
   already stored in the tree, has link -1 here. */
struct lbvh_i_leaves : lbvh_i_subtrees<lbvh_i_block_threads> {
    __device__ static int32_t first(int b)
    {
        return (int32_t)blockIdx.x * lbvh_i_block_threads + b;
    }
};

/* Later rounds. first(b): the first leaf of subtree b, or the end of the block's last. */
struct lbvh_i_active_subtrees : lbvh_i_subtrees<lbvh_i_round_threads> {
    int32_t first_leaf[lbvh_i_round_threads + 1], kept;
    __device__ int32_t first(int b) const { return first_leaf[b]; }
};

/* Stores a subtree in shared memory, in two words of 16 bytes. */
template <class Subtrees>
__device__ __forceinline__ void lbvh_i_put(Subtrees &s, int at, const lbvh_node &node)
{
#if LBVH_I_REAL_KIND == 1
    reinterpret_cast<float4 *>(s.low)[at] = make_float4(node.min[0], node.min[1], node.min[2],
                                                        __int_as_float(node.link));
    reinterpret_cast<float4 *>(s.high)[at] = make_float4(node.max[0], node.max[1], node.max[2],
                                                         __int_as_float(node.skip));
#else
    s.low[at] = {{node.min[0], node.min[1], node.min[2]}, node.link};
    s.high[at] = {{node.max[0], node.max[1], node.max[2]}, node.skip};
#endif
}

/* Loads it. */
template <class Subtrees> __device__ __forceinline__ lbvh_node lbvh_i_get(const Subtrees &s, int at)
{
    lbvh_node node;
#if LBVH_I_REAL_KIND == 1
    float4 const low = reinterpret_cast<const float4 *>(s.low)[at],
                 high = reinterpret_cast<const float4 *>(s.high)[at];
    node = {{low.x, low.y, low.z},
            __float_as_int(low.w),
            {high.x, high.y, high.z},
            __float_as_int(high.w)};
#else
    for (int a = 0; a < 3; a++) {
        node.min[a] = s.low[at].x[a];
        node.max[a] = s.high[at].x[a];
    }
    node.link = s.low[at].word;
    node.skip = s.high[at].word;
    lbvh_i_fill_gaps(&node);
#endif
    return node;
}

/* Exchanges a value in shared memory. What a thread wrote before (its node) is visible to the next
   thread that exchanges this word: acq_rel does in one instruction what a __threadfence_block
   before and one after do. */
__device__ __forceinline__ int32_t lbvh_i_exchange(int32_t *word, int32_t value)
{
#ifdef CUDA_EMU
    __threadfence_block();
    int32_t const had = atomicExch(word, value);
    __threadfence_block();
#else
    int32_t had;
    asm volatile("atom.acq_rel.cta.shared.exch.b32 %0, [%1], %2;"
                 : "=r"(had)
                 : "r"((unsigned)__cvta_generic_to_shared(word)), "r"(value)
                 : "memory");
#endif
    return had;
}

/* Subtree c, with its node `own` in shared memory, ascends until it has to wait, or its parent
   reaches beyond the block of m subtrees, or it has joined so many siblings (`joins`). Returns its
   borders in the last case, else none. */
template <bool Stores, class Subtrees>
__device__ __forceinline__ lbvh_i_range lbvh_i_ascend(const lbvh &tree, Subtrees &s, int m,
                                                      lbvh_i_range c, lbvh_node own, int joins)
{
    uint8_t at_begin = s.prefix[c.begin], at_end = s.prefix[c.end];
    bool is_right = at_begin >= at_end;
#pragma unroll 1
    for (; joins > 0; joins--) {
        int const border = is_right ? c.begin : c.end;
        if (border == 0 || border == m) return {0, 0}; /* it stays active */
        int const far_end = lbvh_i_exchange(&s.waits[border], is_right ? c.end : c.begin);
        if (far_end < 0) return {0, 0}; /* arrived first: the sibling makes the parent */
        lbvh_node const sibling = lbvh_i_get(s, is_right ? border - 1 : border);
        for (int a = 0; a < 3; a++) {
            own.min[a] = lbvh_i_min(own.min[a], sibling.min[a]);
            own.max[a] = lbvh_i_max(own.max[a], sibling.max[a]);
        }
        if (is_right) c.begin = far_end, at_begin = s.prefix[far_end];
        /* the right child's */
        else c.end = far_end, at_end = s.prefix[far_end], own.skip = sibling.skip;
        int32_t const first = s.first(c.begin), split = s.first(border), last = s.first(c.end) - 1;
        /* the left child's number */
        own.link = first == split - 1 ? tree.first_leaf + first : split - 1;
        is_right = at_begin >= at_end;
        lbvh_i_put(s, is_right ? c.begin : c.end - 1, own);
        if (Stores) lbvh_i_store(&tree.node[is_right ? first : last], own);
        if (tree.mask)
            tree.mask[is_right ? first : last] =
                tree.mask[own.link] | tree.mask[split == last ? tree.first_leaf + split : split];
        s.unjoined[border] = false;
    }
    return c;
}

/* All m subtrees ascend, thread t's with node `own`. After two joins most have stopped; the rest
   are compacted into a few warps, which saves divergence. */
template <bool Stores, class Subtrees>
__device__ __forceinline__ void lbvh_i_ascend_all(const lbvh &tree, Subtrees &s, int m,
                                                  const lbvh_node &own)
{
    int const thread = (int)threadIdx.x;
    lbvh_i_range c = {0, 0};
    if (thread < m) {
        lbvh_i_put(s, thread, own);
        c = lbvh_i_ascend<Stores>(tree, s, m, {thread, thread + 1}, own, 2);
    }
    if (c.end > 0) s.range[atomicAdd(&s.ranges, 1)] = c;
    __syncthreads();
    if (thread < s.ranges) {
        c = s.range[thread];
        bool const is_right = s.prefix[c.begin] >= s.prefix[c.end];
        (void)lbvh_i_ascend<Stores>(tree, s, m, c, lbvh_i_get(s, is_right ? c.begin : c.end - 1),
                                    INT_MAX);
    }
    __syncthreads();
    if (thread == 0) s.ranges = 0;
}

/* Lists the first leaves of the active subtrees, in order, and counts them: by one warp. A lane's
   slot is the number of votes of lanes before it (after A. Adinetz, Warp-Aggregated Atomics, NVIDIA
   developer blog; with one warp no atomic is needed). */
template <class Subtrees>
__device__ __forceinline__ void lbvh_i_list_active(const Subtrees &s, int m, int32_t *list,
                                                   int32_t *count)
{
    int const lane = (int)threadIdx.x;
    int32_t listed = 0;
    for (int begin = 0; begin < m; begin += 32) {
        int const b = begin + lane;
        bool const one = b < m && s.unjoined[b];
        int32_t const first = one ? s.first(b) : 0;
        unsigned const ones = __ballot_sync(0xFFFFFFFFu, one);
        if (one) list[listed + __popc(ones & ((1u << lane) - 1))] = first;
        listed += __popc(ones);
    }
    if (lane == 0) *count = listed;
}

/* The prefix of border b of m leaves: in a refit from the tree. In a build from the codes, and the
   block of the leaf after the border stores it. One border more than there are leaves is needed,
   for the skip of the last leaf. */
template <class Codes>
__device__ __forceinline__ void lbvh_i_note_prefix(const lbvh &tree, lbvh_i_leaves &s,
                                                   const Codes &codes, int m, int b)
{
    int32_t const k = s.first(b);
    if (b > m + 1) return;
    s.prefix[b] = k > tree.n             ? (uint8_t)0
                  : lbvh_i_given(codes) ? lbvh_i_prefix_at(tree, codes, k)
                                        : tree.prefix[k];
    if (lbvh_i_given(codes) && (b < m || (b == m && k == tree.n))) tree.prefix[k] = s.prefix[b];
}

/* Round 1: leaves, and joins within blocks of them. codes.key and ids NULL: a refit, which
   keeps prefixes and ids; without data, boxes of leaves, too. */
template <class Codes>
__global__ void __launch_bounds__(lbvh_i_block_threads, lbvh_i_merge_blocks)
    lbvh_i_merge_kernel(__grid_constant__ const lbvh_device device, lbvh_i_input input,
                        Codes codes, const int32_t *ids, int32_t *active, int32_t *count)
{
    lbvh_i_wait_for_kernel_before();
    constexpr int room = lbvh_i_block_threads;
    __shared__ lbvh_i_leaves s;
    const lbvh &tree = device.tree;
    int const thread = (int)threadIdx.x;
    int32_t const begin = s.first(0), k = s.first(thread), left = tree.n - begin,
                  m = left < room ? left : room;
    lbvh_node leaf = {};
    if (thread < m) leaf.link = ids ? ids[k] : tree.node[tree.first_leaf + k].link;
    lbvh_i_note_prefix(tree, s, codes, m, thread); /* while the id is being loaded */
    if (thread < 2) lbvh_i_note_prefix(tree, s, codes, m, room + thread);
    s.waits[thread] = -1;
    s.unjoined[thread] = true;
    if (thread == 0) s.ranges = 0;
    if (lbvh_i_given(codes) && tree.code && thread < m) tree.code[k] = codes[k];
    if (thread < m && input.data) lbvh_i_make_leaf(tree, input, &leaf);
    else if (thread < m) leaf = lbvh_i_fetch(&tree.node[tree.first_leaf + k]);
    lbvh_i_store_slices(tree, k, leaf);
    __syncthreads();
    if (thread < m) {
        int32_t const id = leaf.link;
        /* lbvh_i_skip, of prefixes in shared memory */
        leaf.skip = k + 1 == tree.n                               ? -1
                    : s.prefix[thread + 2] < s.prefix[thread + 1] ? tree.first_leaf + k + 1
                                                                  : k + 1;
        lbvh_i_store(&tree.node[tree.first_leaf + k], leaf);
        if (tree.mask && ids) tree.mask[tree.first_leaf + k] = tree.desc.masks[id];
        leaf.link = -1; /* stored in the tree */
    }
    lbvh_i_ascend_all<false>(tree, s, m, leaf);
    lbvh_node const node = lbvh_i_get(s, thread);
    if (thread < m && node.link >= 0) lbvh_i_store(&tree.node[k], node);
    if (thread < 32) lbvh_i_list_active(s, m, active + begin, &count[blockIdx.x]);
}

/* Lists of active subtrees, by their first leaves, one per block. Block b had the leaves from b *
   leaves on; its list begins at that index of first[]. */
struct lbvh_i_active_lists {
    int32_t *first;       /* [n] */
    const int32_t *count; /* [lists] */
    int32_t lists;
    int64_t leaves;
};

/* before[l] = number of active subtrees in the lists before the block's l-th; the last entry: the
   total. A warp's inclusive prefix sum of 32 counts at a time, in steps of 1, 2, 4, 8, 16 lanes. */
__device__ __forceinline__ void lbvh_i_count_active(const lbvh_i_active_lists &active,
                                                    int32_t begin, int32_t *before)
{
    int const lane = (int)threadIdx.x;
    if (lane >= 32) return;
    if (lane == 0) before[0] = 0;
    for (int32_t list = lane, base = 0; list < lbvh_i_round_lists; list += 32) {
        int32_t sum = begin + list < active.lists ? active.count[begin + list] : 0;
        for (int step = 1; step < 32; step *= 2) {
            int32_t const other = __shfl_up_sync(0xFFFFFFFFu, sum, step);
            if (lane >= step) sum += other;
        }
        before[list + 1] = base + sum;
        base += __shfl_sync(0xFFFFFFFFu, sum, 31);
    }
}

/* The first leaf of the block's x-th active subtree, by bisection for the last list with at most x
   before it. */
__device__ __forceinline__ int32_t lbvh_i_active_at(const lbvh_i_active_lists &active,
                                                    int32_t begin, const int32_t *before, int32_t x)
{
    int list = 0;
    for (int step = lbvh_i_round_lists / 2; step > 0; step /= 2)
        if (before[list + step] <= x) list += step;
    return active.first[(begin + list) * active.leaves + (x - before[list])];
}

/* Later rounds: a block processes the active subtrees of 64 lists, as many at a time as its
   capacity allows beside those still active, and writes a list of its own. */
__global__ void __launch_bounds__(lbvh_i_round_threads)
    lbvh_i_round_kernel(__grid_constant__ const lbvh_device device, lbvh_i_active_lists active,
                        int32_t *count)
{
    lbvh_i_wait_for_kernel_before();
    constexpr int room = lbvh_i_round_threads;
    __shared__ lbvh_i_active_subtrees s;
    __shared__ int32_t before[lbvh_i_round_lists + 1];
    const lbvh &tree = device.tree;
    int const thread = (int)threadIdx.x;
    int32_t const begin = (int32_t)blockIdx.x * lbvh_i_round_lists;
    int64_t const begin_leaf = begin * active.leaves,
                  end = begin_leaf + lbvh_i_round_lists * active.leaves;
    int32_t const end_leaf = end < tree.n ? (int32_t)end : tree.n;
    if (thread == 0) s.ranges = 0;
    lbvh_i_count_active(active, begin, before);
    __syncthreads();
    int32_t const all = before[lbvh_i_round_lists];
    int32_t taken = 0;
    int kept = 0; /* still active: the first ones of the next batch */
    do {
        int const m = all - taken < room - kept ? kept + (int)(all - taken) : room;
        if (thread >= kept && thread < m)
            s.first_leaf[thread] = lbvh_i_active_at(active, begin, before, taken + thread - kept);
        taken += m - kept;
        if (thread == 0)
            s.first_leaf[m] = taken < all ? lbvh_i_active_at(active, begin, before, taken)
                                          : end_leaf;
        s.waits[thread] = -1;
        s.unjoined[thread] = true;
        __syncthreads();
        lbvh_node own = {};
        if (thread < m)
            own = lbvh_i_fetch(&tree.node[lbvh_i_number(tree.prefix, tree.first_leaf,
                                                        s.first(thread), s.first(thread + 1) - 1)]);
        for (int b = thread; b <= m; b += room) s.prefix[b] = tree.prefix[s.first(b)];
        __syncthreads();
        lbvh_i_ascend_all<true>(tree, s, m, own);
        if (thread < 32) lbvh_i_list_active(s, m, s.first_leaf, &s.kept);
        __syncthreads();
        kept = s.kept;
    } while (taken < all);
    for (int x = thread; x < kept; x += room) active.first[begin_leaf + x] = s.first(x);
    if (thread == 0) count[blockIdx.x] = kept;
}

/* ------------------------------------------------------------------------------------------------
   >>split: LBVH_SPLIT (Karras 2012; Kureck sections 3.1.4 and 3.1.5), the one to read first

   Inner nodes are independent of each other: leaf i is the first or the last leaf of inner node i.
   A thread finds the other end, then the split (lbvh.h, >>nodes: node 3 ends with leaf 3, has more
   in common with leaf 2 than with leaf 4, reaches as far as leaf 0, and splits after leaf 1). Then
   boxes are made bottom-up, with one counter per node.
   ---------------------------------------------------------------------------------------------- */

/* Number of common leading bits of places i and j, -1 when j is outside (Kureck equation 3.3). */
__device__ __forceinline__ int lbvh_i_delta(const lbvh &tree, int bits, int32_t i, int32_t j)
{
    return j < 0 || j >= tree.n ? -1 : lbvh_i_common(bits, tree.code[i], tree.code[j], i, j);
}

/* The far end of inner node i's leaves. Direction d: to the neighbour with which leaf i has more
   bits in common. The other neighbour belongs to the sibling. The length is the largest one with

       delta(i, i + d length) > delta(i, i - d)

   Doubling steps find a bound, halving steps add up to the length. */
__device__ int32_t lbvh_i_other_end(const lbvh &tree, int bits, int32_t i)
{
    int const right = lbvh_i_delta(tree, bits, i, i + 1), left = lbvh_i_delta(tree, bits, i, i - 1);
    int32_t const d = right > left ? 1 : -1;
    int const least = lbvh_i_delta(tree, bits, i, i - d);
    int32_t bound = 2, length = 0;
    while (bound < tree.n && lbvh_i_delta(tree, bits, i, i + d * bound) > least) bound *= 2;
    for (int32_t step = bound / 2; step > 0; step /= 2)
        if (lbvh_i_delta(tree, bits, i, i + d * (length + step)) > least) length += step;
    return i + d * length;
}

/* A thread for each inner node: its children, and their parent. */
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_split_kernel(__grid_constant__ const lbvh_device device, int32_t *parent,
                        int32_t *arrived)
{
    const lbvh &tree = device.tree;
    int32_t const i = lbvh_i_thread(), bits = lbvh_i_code_bits(&tree.desc);
    if (i >= tree.first_leaf) return;
    int32_t const other = lbvh_i_other_end(tree, bits, i), first = other < i ? other : i,
                  last = other < i ? i : other;
    int32_t const split = lbvh_i_find_split(tree.code, bits, first, last);
    int32_t const left = split == first ? tree.first_leaf + split : split,
                  right = split + 1 == last ? tree.first_leaf + last : split + 1;
    tree.node[i].link = left;
    tree.node[i].skip = lbvh_i_skip(tree.prefix, tree.n, last);
    parent[left] = parent[right] = i;
    if (i == 0) parent[0] = -1;
    arrived[i] = 0;
}

/* A thread per leaf. The second child to arrive makes the box of the parent, and ascends. The
   fences: a child's box is written before it is counted, and its sibling's is read after. */
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_boxes_up_kernel(__grid_constant__ const lbvh_device device, lbvh_i_input input,
                           const int32_t *ids, const int32_t *parent, int32_t *arrived)
{
    const lbvh &tree = device.tree;
    int32_t const k = lbvh_i_thread();
    if (k >= tree.n) return;
    lbvh_node leaf = {};
    leaf.link = ids[k];
    leaf.skip = lbvh_i_skip(tree.prefix, tree.n, k);
    lbvh_i_make_leaf(tree, input, &leaf);
    lbvh_i_store(&tree.node[tree.first_leaf + k], leaf);
    if (tree.mask) tree.mask[tree.first_leaf + k] = tree.desc.masks[leaf.link];
    for (int32_t at = tree.n > 1 ? parent[tree.first_leaf + k] : -1; at >= 0; at = parent[at]) {
        __threadfence();
        if (atomicAdd(&arrived[at], 1) == 0) return;
        __threadfence();
        lbvh_i_join(&tree, at, tree.node[at].link, lbvh_right_child(&tree, &tree.node[at]));
    }
}

/* ------------------------------------------------------------------------------------------------
   >>build: the launches of a build, in order
   ---------------------------------------------------------------------------------------------- */

/* Sorts the elements, with their codes, in two launches (>>sort). false: there are too many; then
   nothing was launched. */
bool lbvh_i_sort_elements(lbvh_cuda *gpu, lbvh_i_input input, uint64_t *codes, int32_t *ids,
                          cudaStream_t stream, lbvh_result *result);

/* Sorts the elements by keys made of their codes (>>keys). */
lbvh_result lbvh_i_sort_by_keys(lbvh_cuda *gpu, lbvh_i_input input, lbvh_i_sort *sort,
                                lbvh_i_keyed_codes *codes, cudaStream_t stream);

/* Threads of a grid-stride loop: 8 blocks for each SM of a large GPU (an H200 has 132), whatever
   n. */
constexpr int64_t lbvh_i_grid_stride_threads = 8 * 132 * lbvh_i_block_threads;

int64_t lbvh_i_at_most(int64_t threads, int64_t most) { return threads < most ? threads : most; }

/* Leaves and inner nodes by merging, in rounds until one block has processed all. No codes and no
   ids: a refit. list, count: [n] work space for the lists of active subtrees and their lengths,
   those of the next round after those of this one. */
template <class Codes>
lbvh_result lbvh_i_cuda_merge(lbvh_cuda *gpu, lbvh_i_input input, Codes codes, const int32_t *ids,
                              int32_t *list, int32_t *count, cudaStream_t stream)
{
    int32_t const n = gpu->device.tree.n;
    lbvh_i_active_lists active = {list, count, lbvh_i_blocks(n, lbvh_i_block_threads),
                                  lbvh_i_block_threads};
    lbvh_result result = lbvh_i_launch_early(gpu, stream, ids != nullptr, n, lbvh_i_block_threads,
                                             lbvh_i_merge_kernel<Codes>, gpu->device, input, codes,
                                             ids, list, count);
    while (result == LBVH_OK && active.lists > 1) {
        int32_t const lists = lbvh_i_blocks(active.lists, lbvh_i_round_lists);
        count += active.lists;
        result = lbvh_i_launch_early(gpu, stream, true, (int64_t)lists * lbvh_i_round_threads,
                                     lbvh_i_round_threads, lbvh_i_round_kernel, gpu->device,
                                     active, count);
        active = {list, count, lists, active.leaves * lbvh_i_round_lists};
    }
    return result;
}

/* The boxes of all slices. */
lbvh_result lbvh_i_make_slices(lbvh_cuda *gpu, cudaStream_t stream)
{
    return lbvh_i_launch(gpu, stream, gpu->device.tree.n, lbvh_i_block_threads,
                         lbvh_i_slices_kernel, gpu->device);
}

/* LBVH_SPLIT: all nodes at once, then boxes from the leaves up. */
lbvh_result lbvh_i_cuda_split(lbvh_cuda *gpu, lbvh_i_input input, const int32_t *ids,
                              cudaStream_t stream)
{
    int32_t const n = gpu->device.tree.n;
    int32_t *const arrived = lbvh_i_scratch<int32_t>(gpu, LBVH_I_LINKS), *const parent = arrived +
                                                                                         n;
    lbvh_result result = lbvh_i_launch(gpu, stream, n - 1, lbvh_i_block_threads,
                                       lbvh_i_split_kernel, gpu->device, parent, arrived);
    if (result != LBVH_OK) return result;
    result = lbvh_i_launch(gpu, stream, n, lbvh_i_block_threads, lbvh_i_boxes_up_kernel,
                           gpu->device, input, ids, parent, arrived);
    return result == LBVH_OK ? lbvh_i_make_slices(gpu, stream) : result;
}

/* Nothing is known of the elements yet. */
lbvh_result lbvh_i_clear_facts(lbvh_cuda *gpu, cudaStream_t stream)
{
    return lbvh_i_failed(gpu, cudaMemsetAsync(gpu->d_facts, 0, sizeof *gpu->d_facts, stream))
               ? LBVH_CUDA_ERROR
               : LBVH_OK;
}

/* Prefixes and nodes from sorted codes. */
template <class Codes>
lbvh_result lbvh_i_make_nodes(lbvh_cuda *gpu, lbvh_i_input input, const Codes &codes,
                              lbvh_i_sort *sort, cudaStream_t stream)
{
    lbvh_builder const builder = gpu->device.tree.desc.builder;
    int32_t *const ids = sort->ids.Current(), *const spare = sort->ids.Alternate(),
                  *const count = reinterpret_cast<int32_t *>(sort->keys.Alternate());
    if (builder == LBVH_MERGE)
        return lbvh_i_cuda_merge(gpu, input, codes, (const int32_t *)ids, spare, count, stream);
    lbvh_result const result = lbvh_i_launch(gpu, stream, (int64_t)gpu->device.tree.n + 1,
                                             lbvh_i_block_threads, lbvh_i_prefix_kernel<Codes>,
                                             gpu->device, codes);
    return result == LBVH_OK ? lbvh_i_cuda_split(gpu, input, ids, stream) : result;
}

/* Sort, prefixes, nodes. */
lbvh_result lbvh_i_cuda_build(lbvh_cuda *gpu, lbvh_i_input input, cudaStream_t stream)
{
    lbvh_i_sort sort = lbvh_i_sort_of(gpu);
    lbvh_i_sorted_codes const codes = {lbvh_i_scratch<uint64_t>(gpu, LBVH_I_LONG)};
    lbvh_i_keyed_codes keyed = {};
    lbvh_result result = LBVH_OK;
    if (lbvh_i_sort_elements(gpu, input, lbvh_i_scratch<uint64_t>(gpu, LBVH_I_LONG),
                             sort.ids.Current(), stream, &result))
        return result == LBVH_OK ? lbvh_i_make_nodes(gpu, input, codes, &sort, stream) : result;
    result = lbvh_i_sort_by_keys(gpu, input, &sort, &keyed, stream);
    return result == LBVH_OK ? lbvh_i_make_nodes(gpu, input, keyed, &sort, stream) : result;
}

/* Reports the elements that a refit leaves out. (A build does it beside the codes.) */
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_note_invalid_kernel(__grid_constant__ const lbvh_device device, lbvh_i_input input,
                               lbvh_cuda_facts *facts)
{
    lbvh_real min[3], max[3];
    int32_t const i = lbvh_i_thread();
    if (i >= device.tree.n) return;
    lbvh_result const box = lbvh_box_of(&device.tree.desc, input.data, input.stride, i, min, max);
    if (box != LBVH_OK) lbvh_i_report(facts, box, i);
}

/* lbvh_boxes, a thread for each element. */
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_element_boxes_kernel(__grid_constant__ const lbvh_desc desc, lbvh_i_input input,
                                int32_t n, lbvh_real *boxes)
{
    lbvh_real min[3], max[3];
    int32_t const i = lbvh_i_thread();
    if (i >= n) return;
    (void)lbvh_box_of(&desc, input.data, input.stride, i, min, max);
    for (int a = 0; a < desc.dim; a++) {
        boxes[2 * (int64_t)i * desc.dim + a] = min[a];
        boxes[(2 * (int64_t)i + 1) * desc.dim + a] = max[a];
    }
}

/* ------------------------------------------------------------------------------------------------
   >>pairs: overlapping boxes, each pair once
   ---------------------------------------------------------------------------------------------- */

/* hits(bits, leaf) for the later places that a place is paired with; see lbvh_i_walk_packet_masked.
   */
template <class Hits>
__device__ __forceinline__ void lbvh_i_each_later(const lbvh &tree, lbvh_i_warp_batch &batch,
                                                  Hits hits)
{
    int32_t const place = lbvh_i_thread(), begin = place - (int32_t)(threadIdx.x % 32);
    lbvh_overlap const o = place < tree.n ? lbvh_overlap_later(&tree, place)
                                          : lbvh_i_no_search(&tree);
    lbvh_i_walk_packet<LBVH_I_BOX, true>(tree, o, place,
                                         lbvh_i_begin_later(tree, begin), batch, hits);
}

/* Pairs that the count keeps, so that the second pass need not search again: the first ones of each
   place, enough for bodies in contact, and in a common list the others. */
constexpr int lbvh_i_kept_each = 8;

struct lbvh_i_kept_pairs {
    int32_t *first;     /* [lbvh_i_kept_each][n], by place; NULL: nothing is kept */
    int4 *other;        /* [room]: place, number in its row, id */
    unsigned long long *taken; /* of `other`; more than `room`: some were not kept */
    int32_t room;
};

int32_t lbvh_i_kept_room(int32_t n) { return n / 4; }

/* Prepares to keep pairs: none are taken. */
lbvh_result lbvh_i_begin_kept_pairs(lbvh_cuda *gpu, lbvh_i_kept_pairs *kept, cudaStream_t stream)
{
    int32_t const n = gpu->device.tree.n;
    kept->room = lbvh_i_kept_room(n);
    kept->other = lbvh_i_scratch<int4>(gpu, LBVH_I_KEPT);
    kept->taken = reinterpret_cast<unsigned long long *>(kept->other + kept->room);
    kept->first = reinterpret_cast<int32_t *>(kept->taken + 1);
    return lbvh_i_failed(gpu, cudaMemsetAsync(kept->taken, 0, sizeof *kept->taken, stream))
               ? LBVH_CUDA_ERROR
               : LBVH_OK;
}

/* Entries of the common list for `many` pairs of each lane, side by side: the first of this lane's.
   -1, for all lanes: there are not enough. */
__device__ __forceinline__ int64_t lbvh_i_take_kept(const lbvh_i_kept_pairs &kept, int32_t many)
{
    int const lane = (int)(threadIdx.x % 32);
    int32_t sum = many;
    for (int step = 1; step < 32; step *= 2) {
        int32_t const other = __shfl_up_sync(0xFFFFFFFFu, sum, step);
        if (lane >= step) sum += other;
    }
    long long end = 0;
    if (lane == 31) {
        end = (long long)__ldcv(kept.taken); /* once there are not enough, no atomic is needed */
        if (end <= kept.room) end = (long long)atomicAdd(kept.taken, (unsigned long long)sum);
        end += sum;
    }
    int32_t const total = __shfl_sync(0xFFFFFFFFu, sum, 31);
    end = __shfl_sync(0xFFFFFFFFu, end, 31);
    return end <= kept.room ? end - total + sum - many : -1;
}

/* Keeps the pairs that a lane of place `place` found in a batch, after `count` others. All lanes
   call it. Those beyond the first are stored by all lanes, one row at a time: a large element among
   small ones meets whole batches. */
__device__ __forceinline__ void lbvh_i_keep_pairs(const lbvh_i_kept_pairs &kept, int32_t n,
                                                  int32_t place, int32_t count, unsigned hits,
                                                  const lbvh_node *leaf)
{
    int const lane = (int)(threadIdx.x % 32);
    for (; hits && count < lbvh_i_kept_each; hits &= hits - 1, count++)
        kept.first[(int64_t)count * n + place] = leaf[__ffs((int)hits) - 1].link;
    unsigned rows = __ballot_sync(0xFFFFFFFFu, hits != 0);
    if (rows == 0) return;
    int64_t const begin = lbvh_i_take_kept(kept, __popc(hits));
    for (; rows && begin >= 0; rows &= rows - 1) {
        int const r = __ffs((int)rows) - 1;
        unsigned const others = __shfl_sync(0xFFFFFFFFu, hits, r);
        int32_t const before = __popc(others & ((1u << lane) - 1)),
                      number = __shfl_sync(0xFFFFFFFFu, count, r) + before;
        int64_t const at = __shfl_sync(0xFFFFFFFFu, (long long)begin, r) + before;
        if (others >> lane & 1)
            kept.other[at] = make_int4(place - lane + r, number, leaf[lane].link, 0);
    }
}

/* Pairs of each place with later ones: the total; or counts by place for the scan, and pairs that
   are kept. */
__global__ void __launch_bounds__(lbvh_i_search_block)
    lbvh_i_count_pairs_kernel(__grid_constant__ const lbvh_device device, unsigned long long *total,
                              int64_t *rows, lbvh_i_kept_pairs kept)
{
    lbvh_i_warp_batch &batch = lbvh_i_my_batch();
    int32_t const n = device.tree.n, place = lbvh_i_thread();
    int32_t count = 0;
    lbvh_i_each_later(device.tree, batch, [&](unsigned hits, const lbvh_node *leaf) {
        if (kept.first) lbvh_i_keep_pairs(kept, n, place, count, hits, leaf);
        count += __popc(hits);
    });
    if (rows && place <= n) rows[place] = count;
    if (!total) return;
    long long sum = count;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, step);
    if (threadIdx.x % 32 == 0 && sum > 0) atomicAdd(total, (unsigned long long)sum);
}

/* Stores a pair where it lies within the list. */
__device__ __forceinline__ void lbvh_i_put_pair(int32_t *pairs, int64_t capacity, int64_t slot,
                                                int32_t id, int32_t other)
{
    if (slot >= capacity) return;
    pairs[2 * slot] = id;
    pairs[2 * slot + 1] = other;
}

/* The pairs, in rows by place: a thread writes the first ones of a place, and one of the others.
   Where these were too many, warps in which a place has others search again. */
__global__ void __launch_bounds__(lbvh_i_search_block)
    lbvh_i_fill_pairs_kernel(__grid_constant__ const lbvh_device device, const int64_t *rows,
                             lbvh_i_kept_pairs kept, int32_t *pairs, int64_t capacity)
{
    lbvh_i_warp_batch &batch = lbvh_i_my_batch();
    int32_t const n = device.tree.n, place = lbvh_i_thread();
    unsigned long long const taken = *kept.taken;
    bool const has_all = taken <= (unsigned long long)kept.room;
    const lbvh_node *const leaves = device.tree.node + device.tree.first_leaf;
    bool const searching = place < n;
    int64_t slot = searching ? rows[place] : 0;
    int64_t const count = searching ? rows[place + 1] - slot : 0;
    int32_t const id = searching ? leaves[place].link : -1;
    if (!has_all && __any_sync(0xFFFFFFFFu, count > lbvh_i_kept_each)) {
        lbvh_i_each_later(device.tree, batch, [&](unsigned hits, const lbvh_node *leaf) {
            lbvh_i_each_hit(leaf, hits, [&](int32_t other, int32_t) {
                lbvh_i_put_pair(pairs, capacity, slot++, id, other);
            });
        });
        return;
    }
#pragma unroll
    for (int k = 0; k < lbvh_i_kept_each; k++)
        if (k < count)
            lbvh_i_put_pair(pairs, capacity, slot + k, id, kept.first[(int64_t)k * n + place]);
    if (!has_all || (unsigned long long)place >= taken) return;
    int4 const other = kept.other[place];
    lbvh_i_put_pair(pairs, capacity, rows[other.x] + other.y, leaves[other.x].link, other.z);
}

/* What lists of the pairs of n elements need. */
lbvh_result lbvh_i_pair_sizes(lbvh_cuda *gpu, int32_t n, size_t scratch[LBVH_CUDA_SCRATCH])
{
    lbvh_i_at_least(&scratch[LBVH_I_ROWS], ((size_t)n + 1) * sizeof(int64_t));
    lbvh_i_at_least(&scratch[LBVH_I_KEPT],
                    (size_t)lbvh_i_kept_room(n) * sizeof(int4) + sizeof(unsigned long long) +
                        (size_t)n * lbvh_i_kept_each * sizeof(int32_t));
    return lbvh_i_search_sizes(gpu, n, false, false, scratch);
}

/* Grows the memory of lists of pairs. */
lbvh_result lbvh_i_prepare_pairs(lbvh_cuda *gpu, int32_t n, lbvh_i_growth growth,
                                 cudaStream_t stream)
{
    size_t scratch[LBVH_CUDA_SCRATCH] = {};
    lbvh_result const result = lbvh_i_pair_sizes(gpu, n, scratch);
    return result == LBVH_OK ? lbvh_i_grow_scratch(gpu, scratch, growth, stream) : result;
}

/* Exclusive prefix sum: counts rows[q] become offsets; rows[m] is the total. */
lbvh_result lbvh_i_scan_rows(lbvh_cuda *gpu, int64_t *rows, int32_t m, cudaStream_t stream)
{
    size_t temp = gpu->scratch[LBVH_I_TEMP].bytes;
    return lbvh_i_failed(gpu, lbvh_i_exclusive_sum(gpu->scratch[LBVH_I_TEMP].memory, temp, rows,
                                                   rows, (int64_t)m + 1, stream))
               ? LBVH_CUDA_ERROR
               : LBVH_OK;
}

/* ------------------------------------------------------------------------------------------------
   >>queries: a thread per search. Queries are sorted, so that neighbouring threads take similar
   paths (Kureck section 3.1.6).
   ---------------------------------------------------------------------------------------------- */

/* Bits by which m queries are sorted: 16 cells a query, in whole passes of 8 bits. */
int lbvh_i_query_bits(int32_t m)
{
    int bits = 8;
    while (bits < 30 && m >> (bits - 4) > 0) bits += 8;
    return bits < 30 ? bits : 30;
}

/* Morton codes of the queries, in the box of the tree: the first `bits` of 30. */
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_query_keys_kernel(__grid_constant__ const lbvh_device device,
                             __grid_constant__ const lbvh_queries queries, int bits,
                             uint32_t *keys, int32_t *order)
{
    const lbvh &tree = device.tree;
    lbvh_real least[3], most[3], min[3], max[3];
    int32_t const q = lbvh_i_thread();
    if (q >= queries.n) return;
    lbvh_node const root = lbvh_i_fetch(tree.node);
    for (int a = 0; a < 3; a++) {
        least[a] = root.min[a] / 2;
        most[a] = root.max[a] / 2;
    }
    lbvh_lattice const lattice = lbvh_i_lattice_of(tree.desc.dim, 30, least, most);
    lbvh_desc const desc = lbvh_i_query_desc(&tree, &queries);
    (void)lbvh_box_of(&desc, queries.data, queries.stride, q, min, max);
    keys[q] = (uint32_t)lbvh_i_code(&lattice, tree.desc.dim, 30, min, max) >> (30 - bits);
    order[q] = q;
}

/* The order of the queries by Morton code; NULL: as they are. */
lbvh_result lbvh_i_order_queries(lbvh_cuda *gpu, const lbvh_queries &queries, const int32_t **order,
                                 cudaStream_t stream)
{
    *order = nullptr;
    if (!queries.data || (queries.flags & LBVH_SORTED) || queries.n == 0 || gpu->device.tree.n == 0)
        return LBVH_OK;
    int const bits = lbvh_i_query_bits(queries.n);
    lbvh_i_sort sort = lbvh_i_sort_of(gpu);
    lbvh_result result = lbvh_i_launch(gpu, stream, queries.n, lbvh_i_block_threads,
                                       lbvh_i_query_keys_kernel, gpu->device, queries, bits,
                                       sort.keys.Current(), sort.ids.Current());
    if (result == LBVH_OK) result = lbvh_i_sort_keys(gpu, &sort, queries.n, bits, stream);
    if (result == LBVH_OK) *order = sort.ids.Current();
    return result;
}

/* True if the queries are put in an order. */
bool lbvh_i_sorts_queries(const lbvh_queries &queries)
{
    return queries.data && !(queries.flags & LBVH_SORTED);
}

/* 1 if the searches of a warp are coherent enough for packet traversal. Own elements always are. Of
   others, the centres must lie within a few times the size of the searches. */
__device__ __forceinline__ bool lbvh_i_coherent(const lbvh_overlap &o)
{
    constexpr lbvh_real times_their_reach = 4;
    bool const searching = o.at >= 0;
    lbvh_real width = o.reach2 > 0 ? 2 * sqrt(o.reach2) : 0, spread = 0;
    for (int a = 0; a < 3; a++) {
        lbvh_real const middle = o.min[a] / 2 + o.max[a] / 2;
        lbvh_real low = searching ? middle : lbvh_i_infinity(),
                  high = searching ? middle : -lbvh_i_infinity();
        for (int step = 16; step > 0; step /= 2) {
            low = lbvh_i_min(low, __shfl_xor_sync(0xFFFFFFFFu, low, step));
            high = lbvh_i_max(high, __shfl_xor_sync(0xFFFFFFFFu, high, step));
        }
        spread = lbvh_i_max(spread, high - low);
        width = lbvh_i_max(width, o.max[a] - o.min[a]);
    }
    /* by majority vote */
    return __popc(__ballot_sync(0xFFFFFFFFu, !searching || spread <= times_their_reach * width)) >
           16;
}

/* The search of one thread. */
struct lbvh_i_thread_query {
    lbvh_overlap o;
    int32_t q, row;    /* -1: no search */
    bool finds_itself; /* its own place is among the hits, and is left out */
};

/* The search of this thread's query. */
template <lbvh_i_test Test>
__device__ __forceinline__ lbvh_i_thread_query lbvh_i_begin_query(const lbvh &tree,
                                                                  const lbvh_queries &queries,
                                                                  const int32_t *order,
                                                                  int32_t number)
{
    lbvh_i_thread_query query = {lbvh_i_no_search(&tree), -1, -1, false};
    if (number >= queries.n) return query;
    bool const own = queries.data == nullptr, half = (queries.flags & LBVH_HALF) != 0;
    query.q = order ? order[number] : number;
    query.row = lbvh_i_row(&tree, &queries, query.q);
    lbvh_overlap const o = lbvh_i_search(&tree, &queries, query.q);
    if ((o.at < 0 && !half) || !(o.min[0] <= o.max[0])) return query; /* a half walk may be empty */
    query.o = o;
    if (!own || half) return query;
    lbvh_node const leaf = lbvh_i_fetch(&tree.node[tree.first_leaf + query.q]);
    query.finds_itself = lbvh_i_meets_leaf<Test>(o, leaf) &&
                         (!tree.mask || (tree.mask[tree.first_leaf + query.q] & o.filter));
    return query;
}

/* Runs a thread's search: hits(bits, leaf) as lbvh_i_walk_packet_masked, or found(id, place) where
   the warp's searches are not coherent: then it returns false. */
template <lbvh_i_test Test, class Hits, class Found>
__device__ __forceinline__ bool lbvh_i_run_query(const lbvh &tree, const lbvh_queries &queries,
                                                 lbvh_i_thread_query &query,
                                                 lbvh_i_warp_batch &batch, Hits hits, Found found)
{
    int32_t const begin = lbvh_i_thread() - (int32_t)(threadIdx.x % 32);
    if (queries.flags & LBVH_HALF) {
        lbvh_i_walk_packet<Test, true>(tree, query.o, query.q,
                                       lbvh_i_begin_later(tree, begin), batch, hits);
    } else if (!queries.data || lbvh_i_coherent(query.o)) {
        lbvh_i_walk_packet<Test, false>(tree, query.o, -1, lbvh_root(&tree), batch, hits);
    } else {
        while (lbvh_next(&query.o)) found(query.o.id, query.o.place);
        return false;
    }
    return true;
}

/* Hits that the first pass of a list keeps (lbvh_i_chunk). */
struct lbvh_i_kept_hits {
    int32_t chunks;     /* 0: nothing is kept */
    uint32_t *words;    /* [chunk][batch][0: hits, 1: leaves][lane] */
    int32_t *taken;     /* [warp][.] numbers of its chunks */
    int32_t *batches;   /* [warp]; -1: the warp must search again */
    int32_t *next;      /* the first chunk that is not taken */

    __device__ __forceinline__ uint32_t *at(int32_t chunk, int batch) const
    {
        return words + chunk * lbvh_i_chunk_words + batch % lbvh_i_chunk * 64;
    }
};

/* A warp's way through its chunks. All lanes call keep and finish. */
struct lbvh_i_keeper {
    const lbvh_i_kept_hits &kept;
    int batches;
    int32_t chunk; /* of the last batch; -1: none was left */

    __device__ __forceinline__ void take(int32_t warp)
    {
        int const number = batches / lbvh_i_chunk, lane = (int)(threadIdx.x % 32);
        int32_t next = -1;
        if (number < lbvh_i_most_chunks && lane == 0) next = atomicAdd(kept.next, 1);
        chunk = __shfl_sync(0xFFFFFFFFu, next, 0);
        if (chunk >= kept.chunks) chunk = -1;
        if (chunk >= 0 && lane == 0)
            kept.taken[(int64_t)warp * lbvh_i_most_chunks + number] = chunk;
    }
    __device__ __forceinline__ void keep(uint32_t hits, const lbvh_node &own_leaf, bool places)
    {
        int const lane = (int)(threadIdx.x % 32);
        if (kept.chunks == 0 || (batches > 0 && chunk < 0)) return;
        if (batches % lbvh_i_chunk == 0) take(lbvh_i_thread() / 32);
        if (chunk >= 0) {
            uint32_t *const to = kept.at(chunk, batches);
            to[lane] = hits;
            to[32 + lane] = (uint32_t)(places ? own_leaf.skip : own_leaf.link);
        }
        batches++;
    }
    __device__ __forceinline__ void finish(bool as_packet) const
    {
        bool const all = as_packet && (batches == 0 || chunk >= 0);
        if (kept.chunks > 0 && threadIdx.x % 32 == 0)
            kept.batches[lbvh_i_thread() / 32] = all ? batches : -1;
    }
};

/* Prepares to keep the hits of m queries: all chunks are free. */
lbvh_result lbvh_i_keep_hits(lbvh_cuda *gpu, int64_t m, lbvh_i_kept_hits *kept, cudaStream_t stream)
{
    int64_t const warps = (m + 31) / 32;
    *kept = {};
    if (m == 0 || lbvh_i_kept_bytes(m) == 0) return LBVH_OK;
    kept->chunks = (int32_t)(warps * lbvh_i_chunks_per_warp);
    kept->words = lbvh_i_scratch<uint32_t>(gpu, LBVH_I_KEPT);
    kept->taken = reinterpret_cast<int32_t *>(kept->words + kept->chunks * lbvh_i_chunk_words);
    kept->batches = kept->taken + warps * lbvh_i_most_chunks;
    kept->next = kept->batches + warps;
    return lbvh_i_failed(gpu, cudaMemsetAsync(kept->next, 0, sizeof *kept->next, stream))
               ? LBVH_CUDA_ERROR
               : LBVH_OK;
}

/* Counts per row, as int32 or, for lists, as int64: then hits are kept. */
template <lbvh_i_test Test, class Count>
__global__ void __launch_bounds__(lbvh_i_search_block, lbvh_i_search_blocks)
    lbvh_i_count_kernel(__grid_constant__ const lbvh_device device,
                        __grid_constant__ const lbvh_queries queries, const int32_t *order,
                        Count *rows, lbvh_i_kept_hits kept)
{
    constexpr bool keeps = sizeof(Count) == 8;
    lbvh_i_warp_batch &batch = lbvh_i_my_batch();
    lbvh_i_thread_query query = lbvh_i_begin_query<Test>(device.tree, queries, order,
                                                         lbvh_i_thread());
    bool const places = (queries.flags & LBVH_PLACES) != 0;
    lbvh_i_keeper keeper = {kept, 0, -1};
    int32_t count = 0;
    bool const as_packet = lbvh_i_run_query<Test>(
        device.tree, queries, query, batch,
        [&](unsigned hits, const lbvh_node *leaf) {
            count += __popc(hits);
            if (keeps) keeper.keep(hits, leaf[threadIdx.x % 32], places);
        },
        [&](int32_t, int32_t) { count++; });
    bool const exists = lbvh_i_thread() - (int32_t)(threadIdx.x % 32) < queries.n;
    if (keeps && exists) keeper.finish(as_packet);
    if (query.row >= 0) rows[query.row] = count - (query.finds_itself ? 1 : 0);
}

/* Staged ids of a warp's rows: 40 each on average. */
constexpr int lbvh_i_warp_stage = 1280;
/* Blocks of the second pass per SM: as many as shared memory allows, 32 KB each. */
constexpr int lbvh_i_fill_blocks = lbvh_i_search_blocks < 7 ? lbvh_i_search_blocks : 7;

/* The rows of a warp in its stage, one after the other: the begin of this lane's, or -1 if they do
   not all fit. A prefix sum of the lengths, in steps of 1, 2, 4, 8, 16 lanes. */
__device__ __forceinline__ int32_t lbvh_i_begin_in_stage(int64_t length)
{
    int64_t sum = length;
    for (int step = 1; step < 32; step *= 2) {
        int64_t const other = __shfl_up_sync(0xFFFFFFFFu, (long long)sum, step);
        if ((int)(threadIdx.x % 32) >= step) sum += other;
    }
    bool const fits = __all_sync(0xFFFFFFFFu, sum <= lbvh_i_warp_stage);
    return fits ? (int32_t)(sum - length) : -1;
}

/* Writes rows that follow each other in the stage, where they do so in memory too: neighbouring
   lanes write neighbouring words. Returns whether they do. */
__device__ __forceinline__ bool lbvh_i_write_coalesced(const int32_t *stage, int32_t staged,
                                                       int32_t length, int64_t slot, int32_t *ids,
                                                       int64_t capacity)
{
    int64_t const begin = __shfl_sync(0xFFFFFFFFu, (long long)slot, 0);
    int32_t const end = __shfl_sync(0xFFFFFFFFu, staged + length, 31);
    if (!__all_sync(0xFFFFFFFFu, length == 0 || slot == begin + staged)) return false;
    __syncwarp();
#pragma unroll 4
    for (int32_t k = (int32_t)(threadIdx.x % 32); k < end; k += 32)
        if (begin + k < capacity) ids[begin + k] = stage[k];
    return true;
}

/* Writes staged rows, all lanes one row at a time. */
__device__ __forceinline__ void lbvh_i_write_staged(const int32_t *stage, int32_t staged,
                                                    int32_t length, int64_t slot, int32_t *ids,
                                                    int64_t capacity)
{
    int32_t const lane = (int32_t)(threadIdx.x % 32);
    __syncwarp();
    for (int r = 0; r < 32; r++) {
        int64_t const begin = __shfl_sync(0xFFFFFFFFu, (long long)slot, r);
        int32_t const from = __shfl_sync(0xFFFFFFFFu, staged, r),
                      end = __shfl_sync(0xFFFFFFFFu, length, r);
        for (int32_t k = lane; k < end; k += 32)
            if (begin + k < capacity) ids[begin + k] = stage[from + k];
    }
    __syncwarp();
}

/* What a warp of the second pass needs: the one or the other. */
constexpr int lbvh_i_fill_chunks = 3, lbvh_i_fill_batches = lbvh_i_fill_chunks * lbvh_i_chunk;
union lbvh_i_fill_room {
    struct {
        uint4 words[lbvh_i_fill_chunks][lbvh_i_chunk_words / 4]; /* as in lbvh_i_kept_hits */
        int32_t stage[lbvh_i_warp_stage];
    } write;
    lbvh_i_warp_batch search;
};

/* A lane's bits of a loaded batch, and a leaf of it. */
__device__ __forceinline__ uint32_t lbvh_i_loaded_hits(const lbvh_i_fill_room &room, int b)
{
    return reinterpret_cast<const uint32_t *>(room.write.words)[64 * b + threadIdx.x % 32];
}
__device__ __forceinline__ int32_t lbvh_i_loaded_leaf(const lbvh_i_fill_room &room, int b, int leaf)
{
    return reinterpret_cast<const int32_t *>(room.write.words)[64 * b + 32 + leaf];
}

/* Loads some of a warp's chunks, those named by lanes `first` and following: any where there are no
   more. */
__device__ __forceinline__ void lbvh_i_load_chunks(const lbvh_i_kept_hits &kept, int32_t taken,
                                                   int first, lbvh_i_fill_room &room)
{
    constexpr int items = lbvh_i_chunk_words / 4 / 32;
    int const lane = (int)(threadIdx.x % 32);
    uint4 words[lbvh_i_fill_chunks][items];
    __syncwarp();
#pragma unroll
    for (int c = 0; c < lbvh_i_fill_chunks; c++) {
        int32_t const chunk = __shfl_sync(0xFFFFFFFFu, taken, (first + c) % 32);
        const uint4 *const from = reinterpret_cast<const uint4 *>(kept.at(chunk, 0));
        for (int t = 0; t < items; t++) words[c][t] = from[32 * t + lane];
    }
#pragma unroll
    for (int c = 0; c < lbvh_i_fill_chunks; c++)
        for (int t = 0; t < items; t++) room.write.words[c][32 * t + lane] = words[c][t];
    __syncwarp();
}

/* Where rows do not fit into the stage as a whole: the part of them that lies in batches from ..
   to - 1, as many as fit. Returns the begin of this lane's. */
__device__ __forceinline__ int32_t lbvh_i_begin_of_parts(const lbvh_i_fill_room &room, int from,
                                                         int *to)
{
    static_assert(32 * 32 <= lbvh_i_warp_stage, "one batch fits");
    for (;; *to = from + (*to - from + 1) / 2) {
        int32_t most = 0;
        for (int b = from; b < *to; b++) most += __popc(lbvh_i_loaded_hits(room, b));
        int32_t const begin = lbvh_i_begin_in_stage(most);
        if (begin >= 0) return begin;
    }
}

/* A lane puts the hits of batches from .. to - 1 into the stage, but for its own element, one by
   one, whichever batch they are in. Returns how many. */
__device__ __forceinline__ int32_t lbvh_i_take_hits(lbvh_i_fill_room &room, int from, int to,
                                                    int32_t own, int32_t staged)
{
    uint32_t hits = 0;
    int32_t count = 0;
    for (int b = from - 1; b < to;) {
        if (hits == 0) {
            if (++b < to) hits = lbvh_i_loaded_hits(room, b);
            continue;
        }
        int32_t const id = lbvh_i_loaded_leaf(room, b, __ffs((int)hits) - 1);
        hits &= hits - 1;
        if (id != own) room.write.stage[staged + count++] = id;
    }
    return count;
}

/* The rows of a warp whose hits were kept. Some chunks are loaded together. */
__device__ __forceinline__ void lbvh_i_write_kept(const lbvh &tree, const lbvh_queries &queries,
                                                  const int32_t *order, const int64_t *offsets,
                                                  int32_t *ids, int64_t capacity,
                                                  const lbvh_i_kept_hits &kept, int batches,
                                                  lbvh_i_fill_room &room)
{
    static_assert(lbvh_i_most_chunks == 32, "a lane for each chunk of a warp");
    int const lane = (int)(threadIdx.x % 32);
    int32_t const thread = lbvh_i_thread();
    bool const exists = thread < queries.n;
    int32_t const q = exists && order ? order[thread] : thread,
                  row = exists ? lbvh_i_row(&tree, &queries, q) : 0,
                  own = exists && !queries.data ? row : -1, /* not listed: its own id, or place */
                  taken = lane * lbvh_i_chunk < batches
                              ? kept.taken[(int64_t)(thread / 32) * lbvh_i_most_chunks + lane]
                              : 0;
    int64_t slot = exists ? offsets[row] : 0;
    int64_t const length = exists ? offsets[row + 1] - slot : 0;
    int32_t staged = lbvh_i_begin_in_stage(length), at = 0;
    bool const whole = staged >= 0;
    for (int first = 0; first < batches; first += lbvh_i_fill_batches) {
        int const m = batches - first < lbvh_i_fill_batches ? batches - first : lbvh_i_fill_batches;
        lbvh_i_load_chunks(kept, taken, first / lbvh_i_chunk, room);
        for (int from = 0, to = m; from < m; from = to, to = m) {
            if (!whole) staged = lbvh_i_begin_of_parts(room, from, &to);
            at += lbvh_i_take_hits(room, from, to, own, staged + (whole ? at : 0));
            if (whole) continue;
            lbvh_i_write_staged(room.write.stage, staged, at, slot, ids, capacity);
            slot += at;
            at = 0;
        }
    }
    if (whole && !lbvh_i_write_coalesced(room.write.stage, staged, at, slot, ids, capacity))
        lbvh_i_write_staged(room.write.stage, staged, at, slot, ids, capacity);
}

/* The rows themselves: from kept hits, or by searching again. */
template <lbvh_i_test Test>
__global__ void __launch_bounds__(lbvh_i_search_block, lbvh_i_fill_blocks)
    lbvh_i_fill_kernel(__grid_constant__ const lbvh_device device,
                       __grid_constant__ const lbvh_queries queries, const int32_t *order,
                       const int64_t *offsets, int32_t *ids, int64_t capacity,
                       lbvh_i_kept_hits kept)
{
    __shared__ lbvh_i_fill_room rooms[lbvh_i_search_block / 32];
    lbvh_i_fill_room &room = rooms[threadIdx.x / 32];
    int32_t const number = lbvh_i_thread();
    if (number - (int32_t)(threadIdx.x % 32) >= queries.n) return;
    int32_t const batches = kept.chunks > 0 ? kept.batches[number / 32] : -1;
    if (batches >= 0) {
        lbvh_i_write_kept(device.tree, queries, order, offsets, ids, capacity, kept, batches, room);
        return;
    }
    lbvh_i_thread_query query = lbvh_i_begin_query<Test>(device.tree, queries, order, number);
    bool const places = (queries.flags & LBVH_PLACES) != 0;
    int32_t const self = query.finds_itself ? query.q : -1;
    int64_t slot = query.row >= 0 ? offsets[query.row] : 0;
    auto put = [&](int32_t id, int32_t place) {
        if (place == self) return;
        if (slot < capacity) ids[slot] = places ? place : id;
        slot++;
    };
    lbvh_i_run_query<Test>(
        device.tree, queries, query, room.search,
        [&](unsigned hits, const lbvh_node *leaf) { lbvh_i_each_hit(leaf, hits, put); }, put);
}

/* The test that these searches need. */
lbvh_i_test lbvh_i_test_of(const lbvh &tree, const lbvh_queries &queries)
{
    if (queries.kind == LBVH_BOXES) return LBVH_I_BOX;
    return tree.desc.kind == LBVH_POINTS && tree.desc.radius == 0 ? LBVH_I_POINT_LEAVES
                                                                  : LBVH_I_SPHERE;
}

/* Counts, by the kernel for this kind of search. */
template <class Count>
lbvh_result lbvh_i_launch_counts(lbvh_cuda *gpu, const lbvh_queries &queries, const int32_t *order,
                                 Count *rows, lbvh_i_kept_hits kept, cudaStream_t stream)
{
    void (*const kernels[3])(const lbvh_device, const lbvh_queries, const int32_t *, Count *,
                             lbvh_i_kept_hits) = {lbvh_i_count_kernel<LBVH_I_BOX, Count>,
                             lbvh_i_count_kernel<LBVH_I_SPHERE, Count>,
                             lbvh_i_count_kernel<LBVH_I_POINT_LEAVES, Count>};
    return lbvh_i_launch(gpu, stream, queries.n, lbvh_i_search_block,
                         kernels[lbvh_i_test_of(gpu->device.tree, queries)], gpu->device, queries,
                         order, rows, kept);
}

/* Fills rows, likewise. */
lbvh_result lbvh_i_launch_fill(lbvh_cuda *gpu, const lbvh_queries &queries, const int32_t *order,
                               const int64_t *offsets, int32_t *ids, int64_t capacity,
                               lbvh_i_kept_hits kept, cudaStream_t stream)
{
    void (*const kernels[3])(const lbvh_device, const lbvh_queries, const int32_t *,
                             const int64_t *, int32_t *, int64_t, lbvh_i_kept_hits) = {
        lbvh_i_fill_kernel<LBVH_I_BOX>, lbvh_i_fill_kernel<LBVH_I_SPHERE>,
        lbvh_i_fill_kernel<LBVH_I_POINT_LEAVES>};
    return lbvh_i_launch(gpu, stream, queries.n, lbvh_i_search_block,
                         kernels[lbvh_i_test_of(gpu->device.tree, queries)], gpu->device, queries,
                         order, offsets, ids, capacity, kept);
}

/* Checks a search and allocates its memory. */
lbvh_result lbvh_i_begin_search(lbvh_cuda *gpu, const lbvh_queries *queries, bool lists,
                                lbvh_queries *resolved, cudaStream_t stream)
{
    if (!gpu || !queries) return LBVH_BAD_ARGUMENT;
    lbvh_result const result = lbvh_i_check_queries(&gpu->device.tree, queries, resolved);
    gpu->stream = stream;
    if (result != LBVH_OK) return result;
    bool const sorts = lbvh_i_sorts_queries(*resolved);
    return lbvh_i_prepare_search(gpu, resolved->n, sorts, lists, LBVH_I_AHEAD, stream);
}

/* ------------------------------------------------------------------------------------------------
   >>nearest: the k elements nearest to each point

   Up to 32 of them are kept in registers, and a warp's points walk the tree as one packet
   (>>packets), in three steps:

       descend   each lane goes to the nearer child, until it knows a window: 32 leaves, the first
                 at a multiple of 32
       bound     every lane measures the leaves of its warp's windows, and of some before and after
                 them: the k-th smallest distance becomes its reach
       walk      all leaves within that reach; what is found shrinks it

   The k-th smallest distance among some leaves is not below that among all, so the walk meets every
   leaf of the result, and the order does not matter. Points that lie apart have many windows: each
   lane then walks alone, nearer subtrees first.
   ---------------------------------------------------------------------------------------------- */

/* A warp with more windows does not walk as one packet. Points in order have 2 or 3. */
constexpr int lbvh_i_most_windows = 6;

/* The squared distance from the point to a leaf. */
template <lbvh_i_test Test>
__device__ __forceinline__ lbvh_real lbvh_i_leaf_distance2(const lbvh_overlap &o,
                                                           const lbvh_node &leaf)
{
    return Test == LBVH_I_POINT_LEAVES
               ? lbvh_i_square(leaf.min[0] - o.min[0], leaf.min[1] - o.min[1],
                               leaf.min[2] - o.min[2])
               : lbvh_box_distance2(&leaf, o.min);
}

/* The k <= Room nearest so far, nearest first, equal distances by ascending id. They are the last k
   entries; those before them hold -1, which nothing precedes. Every index is a constant where loops
   are unrolled, so that the list lies in registers. */
template <int Room> struct lbvh_i_nearest {
    lbvh_real distance2[(size_t)Room];
    int32_t id[(size_t)Room];

    __device__ __forceinline__ void clear(int32_t k)
    {
#pragma unroll
        for (int slot = 0; slot < Room; slot++) {
            distance2[slot] = slot < Room - k ? -1 : lbvh_i_infinity();
            id[slot] = -1;
        }
    }
    __device__ __forceinline__ bool precedes(lbvh_real candidate2, int32_t candidate,
                                             int slot) const
    {
        /* without branches */
        return (candidate2 < distance2[slot]) |
               ((candidate2 == distance2[slot]) & (candidate < id[slot]));
    }
    __device__ __forceinline__ void insert(lbvh_real candidate2, int32_t candidate)
    {
        bool here = precedes(candidate2, candidate, Room - 1);
#pragma unroll
        for (int slot = Room - 1; slot > 0; slot--) {
            bool const below = precedes(candidate2, candidate, slot - 1);
            distance2[slot] = below  ? distance2[slot - 1]
                              : here ? candidate2
                                     : distance2[slot];
            id[slot] = below ? id[slot - 1] : here ? candidate : id[slot];
            here = below;
        }
        if (here) distance2[0] = candidate2;
        if (here) id[0] = candidate;
    }
    /* The squared reach of what may still be inserted. */
    __device__ __forceinline__ lbvh_real reach2(lbvh_real had) const
    {
        return lbvh_i_min(had, distance2[Room - 1]);
    }
    /* What is as far away must have a lower id. */
    __device__ __forceinline__ int32_t last_id() const
    {
        return id[Room - 1] < 0 ? INT32_MAX : id[Room - 1];
    }
    /* Writes row q, unused entries as -1 and infinity. Returns how many were found. */
    __device__ __forceinline__ int32_t store(int64_t q, int32_t k, int32_t *ids,
                                             lbvh_real *distances2) const
    {
        int32_t count = 0;
#pragma unroll
        for (int slot = 0; slot < Room; slot++) {
            if (slot < Room - k) continue;
            ids[q * k + (slot - (Room - k))] = id[slot];
            distances2[q * k + (slot - (Room - k))] = distance2[slot];
            count += id[slot] >= 0;
        }
        return count;
    }
};

/* The first leaf of a window near p, by going to the nearer child. */
__device__ __forceinline__ int32_t lbvh_i_descend(const lbvh &tree, const lbvh_real p[3])
{
    int32_t at = 0, first = 0;
    lbvh_node node = lbvh_i_fetch(&tree.node[at]);
    while (!lbvh_is_leaf(&tree, at) && first / 32 != lbvh_last_place(&tree, &node) / 32) {
        int32_t const left = node.link, right = lbvh_right_child(&tree, &node),
                      split = lbvh_split_place(&tree, &node);
        lbvh_node const l = lbvh_i_fetch(&tree.node[left]), r = lbvh_i_fetch(&tree.node[right]);
        bool const goes_left = lbvh_box_distance2(&l, p) <= lbvh_box_distance2(&r, p);
        at = goes_left ? left : right;
        node = goes_left ? l : r;
        if (!goes_left) first = split + 1;
    }
    return first / 32 * 32;
}

/* The leaves of a window into the batch, one by each lane. Those that do not count lie at
   infinity. */
__device__ __forceinline__ void lbvh_i_load_window(const lbvh &tree, int32_t begin, uint32_t filter,
                                                   lbvh_i_warp_batch &batch)
{
    int const lane = (int)(threadIdx.x % 32);
    int32_t const at = tree.first_leaf + begin + lane;
    bool const counts = begin + lane < tree.n && (!tree.mask || (tree.mask[at] & filter));
    lbvh_node leaf = {};
    if (counts) {
        leaf = lbvh_i_fetch(&tree.node[at]);
    } else {
        for (int a = 0; a < 3; a++) {
            leaf.min[a] = lbvh_i_infinity();
            leaf.max[a] = -lbvh_i_infinity();
        }
    }
    __syncwarp();
    batch.leaf[lane] = leaf;
    __syncwarp();
}

/* One step of a sorting network: orders all pairs of values `step` apart. Runs of `run` values
   descend and ascend in turns. */
template <int Room>
__device__ __forceinline__ void lbvh_i_order_pairs(lbvh_real *values, int step, int run)
{
#pragma unroll
    for (int slot = 0; slot < Room; slot++) {
        if (slot & step) continue;
        lbvh_real const low = lbvh_i_min(values[slot], values[slot + step]),
                        high = lbvh_i_max(values[slot], values[slot + step]);
        values[slot] = slot & run ? low : high;
        values[slot + step] = slot & run ? high : low;
    }
}

/* Sorts, largest first (Batcher's bitonic sort). */
template <int Room> __device__ __forceinline__ void lbvh_i_sort_descending(lbvh_real *values)
{
#pragma unroll
    for (int run = 2; run <= Room; run *= 2)
#pragma unroll
        for (int step = run / 2; step > 0; step /= 2) lbvh_i_order_pairs<Room>(values, step, run);
}

/* Merges the distances to the leaves of a window into the Room smallest, the largest first. Room of
   them at a time are sorted likewise. The smaller of each two, taken from opposite ends, are the
   smallest of all, and bitonic: the last steps of the sort do. */
template <lbvh_i_test Test, int Room>
__device__ __forceinline__ void lbvh_i_measure_window(const lbvh &tree, const lbvh_overlap &o,
                                                      int32_t begin, lbvh_i_warp_batch &batch,
                                                      lbvh_real *smallest)
{
    if (begin < 0 || begin >= tree.n) return;
    lbvh_i_load_window(tree, begin, o.filter, batch);
#pragma unroll (Room == 1 ? 4 : 1)
    for (int from = 0; from < 32; from += Room) {
        lbvh_real fresh[(size_t)Room];
#pragma unroll
        for (int c = 0; c < Room; c++)
            fresh[c] = lbvh_i_leaf_distance2<Test>(o, lbvh_i_fetch(&batch.leaf[from + c]));
        lbvh_i_sort_descending<Room>(fresh);
#pragma unroll
        for (int slot = 0; slot < Room; slot++)
            smallest[slot] = lbvh_i_min(smallest[slot], fresh[Room - 1 - slot]);
#pragma unroll
        for (int step = Room / 2; step > 0; step /= 2)
            lbvh_i_order_pairs<Room>(smallest, step, Room);
    }
    __syncwarp(); /* the batch may be written again */
}

/* Shrinks the reach to the k-th smallest distance among the leaves of the warp's windows, and of
   some before and after them. False: they are too many. All lanes call it; o.at < 0: without a
   search. */
template <lbvh_i_test Test, int Room>
__device__ __forceinline__ bool lbvh_i_bound_reach(const lbvh &tree, lbvh_overlap &o, int32_t k,
                                                   lbvh_i_warp_batch &batch)
{
    int32_t const own = o.at >= 0 ? lbvh_i_descend(tree, o.min) : -1;
    constexpr int more = Room / 8; /* before and after: measured, tests/bench/notes/lbvh.md */
    int32_t lowest = tree.n, highest = -1;
    lbvh_real smallest[(size_t)Room];
#pragma unroll
    for (int slot = 0; slot < Room; slot++)
        smallest[slot] = slot < k ? lbvh_i_infinity() : -1;
    unsigned left = __ballot_sync(0xFFFFFFFFu, own >= 0);
    for (int windows = 0; left; windows++) {
        if (windows == lbvh_i_most_windows) return false;
        int32_t const begin = __shfl_sync(0xFFFFFFFFu, own, __ffs((int)left) - 1);
        left &= ~__ballot_sync(0xFFFFFFFFu, own == begin);
        lowest = begin < lowest ? begin : lowest;
        highest = begin > highest ? begin : highest;
        lbvh_i_measure_window<Test, Room>(tree, o, begin, batch, smallest);
    }
    if (highest >= 0) {
        for (int w = 1; w <= more; w++) {
            lbvh_i_measure_window<Test, Room>(tree, o, lowest - 32 * w, batch, smallest);
            lbvh_i_measure_window<Test, Room>(tree, o, highest + 32 * w, batch, smallest);
        }
    }
    if (o.at >= 0) o.reach2 = lbvh_i_min(o.reach2, smallest[0]);
    return true;
}

/* lbvh_nearest, a point for each thread, up to Room elements. */
template <lbvh_i_test Test, int Room>
__global__ void __launch_bounds__(lbvh_i_search_block)
    lbvh_i_nearest_kernel(__grid_constant__ const lbvh_device device,
                          __grid_constant__ const lbvh_queries points, const int32_t *order,
                          int32_t k, lbvh_real reach, int32_t *ids, lbvh_real *distances2,
                          int32_t *found)
{
    const lbvh &tree = device.tree;
    lbvh_i_warp_batch &batch = lbvh_i_my_batch();
    int32_t const number = lbvh_i_thread();
    bool const exists = number < points.n;
    int32_t const q = !exists ? -1 : order ? order[number] : number;
    lbvh_overlap o = lbvh_i_no_search(&tree);
    if (exists) o = lbvh_overlap_sphere(&tree, lbvh_i_at(points.data, points.stride, q), reach);
    if (o.at < 0) o = lbvh_i_no_search(&tree);
    lbvh_i_nearest<Room> list;
    list.clear(k);
    if (lbvh_i_bound_reach<Test, Room>(tree, o, k, batch)) {
        auto const keep = [&](unsigned hits, const lbvh_node *leaf) {
            for (; hits; hits &= hits - 1) {
                const lbvh_node &other = leaf[__ffs((int)hits) - 1];
                lbvh_real const distance2 = lbvh_i_leaf_distance2<Test>(o, other);
                if (distance2 <= o.reach2) list.insert(distance2, other.link);
                o.reach2 = list.reach2(o.reach2);
            }
            o.id = list.last_id();
        };
        o.id = INT32_MAX;
        lbvh_i_walk_packet<Test, false, true>(tree, o, -1, lbvh_root(&tree), batch, keep);
    } else if (o.at >= 0) {
        lbvh_near walk = lbvh_near_point(&tree, o.min, reach);
        while (lbvh_next_near(&walk)) {
            list.insert(walk.distance2, walk.id);
            walk.reach2 = list.reach2(walk.reach2);
            walk.last_id = list.last_id();
        }
    }
    if (exists) found[q] = list.store(q, k, ids, distances2);
}

/* lbvh_nearest, a point for each thread, any k: in the rows themselves. */
__global__ void __launch_bounds__(lbvh_i_search_block)
    lbvh_i_nearest_rows_kernel(__grid_constant__ const lbvh_device device,
                               __grid_constant__ const lbvh_queries points, const int32_t *order,
                               int32_t k, lbvh_real reach, int32_t *ids, lbvh_real *distances2,
                               int32_t *found)
{
    int32_t const query = lbvh_i_thread();
    if (query >= points.n) return;
    int32_t const q = order ? order[query] : query;
    int32_t *const row_ids = ids + (int64_t)q * k;
    lbvh_real *const row_distances2 = distances2 + (int64_t)q * k;
    int32_t count = 0;
    lbvh_near walk = lbvh_near_point(&device, lbvh_i_at(points.data, points.stride, q), reach);
    while (lbvh_next_near(&walk)) {
        walk.reach2 = lbvh_i_keep_nearest(row_ids, row_distances2, k, &count, walk.reach2, walk.id,
                                          walk.distance2);
        if (count == k) walk.last_id = lbvh_i_last_id(row_ids, k);
    }
    lbvh_i_sort_nearest(row_ids, row_distances2, k, count);
    found[q] = count;
    for (int32_t slot = count; slot < k; slot++) {
        row_ids[slot] = -1;
        row_distances2[slot] = lbvh_i_infinity();
    }
}

/* The kernel for k <= 32 elements. A larger Room costs registers and comparisons. */
template <lbvh_i_test Test>
auto lbvh_i_nearest_kernel_of(int32_t k)
{
    return k == 1    ? lbvh_i_nearest_kernel<Test, 1>
           : k <= 8  ? lbvh_i_nearest_kernel<Test, 8>
           : k <= 16 ? lbvh_i_nearest_kernel<Test, 16>
                     : lbvh_i_nearest_kernel<Test, 32>;
}

/* lbvh_nearest_rows, by the kernel for k. */
lbvh_result lbvh_i_launch_nearest(lbvh_cuda *gpu, const lbvh_queries &points, const int32_t *order,
                                  int32_t k, lbvh_real reach, int32_t *ids, lbvh_real *distances2,
                                  int32_t *found, cudaStream_t stream)
{
    bool const of_points = lbvh_i_test_of(gpu->device.tree, points) == LBVH_I_POINT_LEAVES;
    auto const kernel = k > 32      ? lbvh_i_nearest_rows_kernel
                        : of_points ? lbvh_i_nearest_kernel_of<LBVH_I_POINT_LEAVES>(k)
                                    : lbvh_i_nearest_kernel_of<LBVH_I_SPHERE>(k);
    return lbvh_i_launch(gpu, stream, points.n, lbvh_i_search_block, kernel, gpu->device, points,
                         order, k, reach, ids, distances2, found);
}

/* ------------------------------------------------------------------------------------------------
   >>sort: up to a million and a half elements in two launches, by a sample sort (Frazer and
   McKellar 1970; on GPUs: Leischner, Osipov and Sanders 2010)

   A radix sort (CUB's) moves all elements once for each digit of their keys. Here they are moved
   twice, whatever the length of the codes. Elements ascend by code, and by id where codes are
   equal: so no two are equal, and many in one place are no special case.

   The first launch partitions. All its blocks run at the same time, and wait for each other where
   that is needed ("meet"). A block keeps its share of the elements in shared memory:

       bounds      of the half centres of the share. Meet. Now all know the lattice, and so codes.
       intervals   of codes, up to 2048 equally long ones. An element is counted in its interval,
                   and gets a rank there, within the share; one atomic for each interval tells how
                   many of other blocks come before. Meet. (Codes of elements of the sample of
                   lbvh.h, >>quantiles, set bits of a table. If 16 find theirs set, all blocks look
                   at the whole sample, and count again: by quantiles, if the lattice is not fit.)
       samples     only if an interval holds too many: 32 of the share, sorted by a warp. Meet. The
                   rank of a sample among all is the sum of its ranks in the lists of all blocks.
       splitters   are some of the samples, equally far apart in their order. Meet. Now intervals
                   lie between them. That of an element is found by bisection; a table by the upper
                   bits of codes tells where to begin. Counted as before. Meet.
       records     are stored by interval, within one in any order.

   In the second launch a block sorts a bucket: some intervals, as many as fit into shared memory.
   An interval is divided into as many cells as it holds elements (Neubert, The Flashsort1
   Algorithm, 1998). Cells are equally long ranges of codes. The figure has two intervals, of 4 and
   8 elements, between splitters 0, 40 and 80:

       codes    27 3 21 38   |  40 41 42 41 43 40 79 42
       cells    10 codes each   5 codes each, 8 cells
       counts   1 0 2 1      |  7 0 0 0 0 0 0 1
       stored   3 27 21 38   |  40 41 42 41 43 40 42 79
       sorted   3 21 27 38   |  40 40 41 41 42 42 43 79

   An element is then compared with those of its cell only. Where a cell is crowded, as that of the
   7, its elements are divided again, by the bits in which they differ.
   ---------------------------------------------------------------------------------------------- */

#ifdef CUDA_EMU
constexpr bool lbvh_i_small = true; /* small sizes: all cases occur in small tests */
#else
constexpr bool lbvh_i_small = false;
#endif

/* The first launch. */
constexpr int lbvh_i_sort_block = lbvh_i_small ? 256 : 1024;        /* threads of a block */
constexpr int lbvh_i_sort_blocks_most = lbvh_i_small ? 1 : 152;     /* blocks at most */
constexpr int lbvh_i_share_most = lbvh_i_small ? 1280 : 12288;      /* elements of a share */
constexpr int lbvh_i_table_bits = lbvh_i_small ? 3 : 11;    /* of the number of long intervals */
constexpr int lbvh_i_interval = lbvh_i_small ? 24 : 768;    /* elements between splitters, about */

/* The second launch. */
constexpr int lbvh_i_bucket_most = lbvh_i_small ? 256 : 7008;   /* elements of a bucket at most */
constexpr int lbvh_i_bucket = lbvh_i_small ? 128 : 4000;        /* on average at most, */
constexpr int lbvh_i_bucket_least = lbvh_i_small ? 64 : 1024;   /* and at least */

/* Fewer keys are sorted faster by CUB, in one block. */
constexpr int lbvh_i_keys_least = lbvh_i_small ? 65 : 4097;

constexpr int lbvh_i_intervals_most = 1 << lbvh_i_table_bits, lbvh_i_share_samples = 32;
constexpr int lbvh_i_mark_bits = 17, lbvh_i_marks = 1 << lbvh_i_mark_bits;

/* Elements of a thread of the second launch, and the ranges of a bucket in which cells are equally
   long. Cells are divided until none holds more than `crowd`; those with no more than `few` are
   left as they are. */
constexpr int lbvh_i_sort_items = 8, lbvh_i_ranges_most = 64, lbvh_i_crowd = 64, lbvh_i_few = 16;

/* An element: code, id, interval. */
struct alignas(16) lbvh_i_record {
    uint64_t code;
    int32_t id, interval;
};

/* Global memory of a sort, beside the records. Splitter j ends interval j: equally long intervals
   have splitters, too. */
struct alignas(16) lbvh_i_sort_memory {
    uint64_t sample[lbvh_i_sort_blocks_most * lbvh_i_share_samples]; /* of each block, in order */
    uint64_t splitter[lbvh_i_intervals_most];                        /* codes */
    int32_t splitter_id[lbvh_i_intervals_most];
    int32_t total[2][lbvh_i_intervals_most];  /* elements of each interval: equally long ones, and
                                                 those between splitters */
    int32_t begin[lbvh_i_intervals_most + 1]; /* and those before it */
    int32_t intervals;                        /* their number */
    lbvh_real bounds[6][lbvh_i_sort_blocks_most];
    uint32_t mark[lbvh_i_marks / 32];         /* of the codes of the sample (lbvh.h, >>sample) */
    int32_t alike;                            /* of these, those that had been marked */
};

struct lbvh_i_parts {
    lbvh_i_record *record; /* [n] */
    lbvh_i_sort_memory *memory;
    int32_t n, share;
    int32_t sampled; /* the number of intervals between samples */
    int32_t equal;   /* that of equally long ones, and of the cells of the table */
    int shift;       /* code >> shift: which of these */
};

/* An element of a share: its half centre; then its code and, in one word, interval and rank. */
union lbvh_i_slot {
    lbvh_real x[3];
    uint32_t word[3];
};

/* Shared memory of a block of the first launch. Slots lie behind it, then their order. */
struct lbvh_i_share_intervals {
    uint64_t splitter[lbvh_i_intervals_most];
    int32_t splitter_id[lbvh_i_intervals_most];
    int32_t count[lbvh_i_intervals_most];  /* of the share; then the place of its first element,
                                              less `before` */
    int32_t before[lbvh_i_intervals_most]; /* elements of the share in the intervals before */
};
constexpr int lbvh_i_list_stride = lbvh_i_share_samples + 1; /* lists begin in different banks */
struct lbvh_i_share_room {
    union {
        uint64_t sample[lbvh_i_sort_blocks_most * lbvh_i_list_stride];
        lbvh_i_share_intervals intervals;
        lbvh_i_block_sample fit;
    } now; /* one after the other */
    int32_t table[(1 << lbvh_i_table_bits) + 1]; /* splitters below each cell of codes */
    int32_t sample_id[lbvh_i_share_samples], warp_sums[lbvh_i_sort_block / 32], largest;
    lbvh_real bounds[6][lbvh_i_sort_block / 32];
    lbvh_real least[3], most[3]; /* the lattice's */
    lbvh_lattice lattice;
    lbvh_i_quantiles quantiles;
};

/* A block's share: `size` elements from `first` on. */
struct lbvh_i_share {
    lbvh_i_share_room *room;
    lbvh_i_slot *slot;
    uint16_t *order; /* slots by interval */
    const lbvh_i_quantiles *quantiles; /* what codes are made by; NULL: the lattice */
    int32_t first, size, intervals;
    int32_t alike; /* the thread's part of memory->alike; after the counts all of it */
};

/* What is sorted: elements, by the codes of their centres. */
struct lbvh_i_from_elements {
    lbvh_desc desc;
    lbvh_i_input input;
    bool bounds_given;
    lbvh_cuda_facts *facts;
};

/* Or keys. */
struct lbvh_i_from_keys {
    const uint32_t *key;
};

/* Dynamic shared memory. */
__device__ __forceinline__ char *lbvh_i_shared()
{
#ifdef CUDA_EMU
    return (char *)emu_dynamic_shared();
#else
    extern __shared__ __align__(16) char lbvh_i_shared_bytes[];
    return lbvh_i_shared_bytes;
#endif
}

/* All threads of the launch wait here for each other. What they stored before, all can load after.
   CUDA_EMU: the launch has one block. */
__device__ __forceinline__ void lbvh_i_grid_barrier()
{
#ifdef CUDA_EMU
    __syncthreads();
#else
    cooperative_groups::this_grid().sync();
#endif
}

/* Exclusive prefix sum of x over the warp. */
__device__ __forceinline__ int32_t lbvh_i_warp_prefix(int32_t x)
{
    int32_t sum = x;
    for (int step = 1; step < 32; step *= 2) {
        int32_t const other = __shfl_up_sync(0xFFFFFFFFu, sum, step);
        if ((int)(threadIdx.x % 32) >= step) sum += other;
    }
    return sum - x;
}

/* Exclusive prefix sum of x over the block. */
__device__ __forceinline__ int32_t lbvh_i_block_prefix(int32_t x, int32_t *warp_sums)
{
    int const lane = (int)(threadIdx.x % 32), warp = (int)(threadIdx.x / 32),
              warps = (int)(blockDim.x / 32);
    int32_t const before = lbvh_i_warp_prefix(x);
    if (lane == 31) warp_sums[warp] = before + x;
    __syncthreads();
    if (warp == 0) {
        int32_t const first = lbvh_i_warp_prefix(lane < warps ? warp_sums[lane] : 0);
        __syncwarp();
        if (lane < warps) warp_sums[lane] = first;
    }
    __syncthreads();
    return warp_sums[warp] + before;
}

/* Exclusive prefix sums of counters[0 .. m-1]: a thread has a run of them. */
__device__ __forceinline__ void lbvh_i_scan_counters(int32_t *counters, int m, int32_t *warp_sums)
{
    int const run = (m + (int)blockDim.x - 1) / (int)blockDim.x,
              from = (int)threadIdx.x * run, to = from + run < m ? from + run : m;
    int32_t sum = 0;
    for (int k = from; k < to; k++) sum += counters[k];
    int32_t before = lbvh_i_block_prefix(sum, warp_sums);
    for (int k = from; k < to; k++) {
        int32_t const count = counters[k];
        counters[k] = before;
        before += count;
    }
    __syncthreads();
}

/* The largest x of the warp, in all lanes. */
__device__ __forceinline__ lbvh_real lbvh_i_warp_max(lbvh_real x)
{
    for (int step = 16; step > 0; step /= 2)
        x = lbvh_i_max(x, __shfl_xor_sync(0xFFFFFFFFu, x, step));
    return x;
}

/* Points without gaps between them lie in memory as slots do: they are copied, which is faster than
   a point for each thread. */
__device__ __forceinline__ bool lbvh_i_copy_points(const lbvh_i_from_elements &from,
                                                   const lbvh_i_share &own)
{
    constexpr int items = 8;
    if (from.desc.kind != LBVH_POINTS || from.desc.dim != 3 ||
        from.input.stride != sizeof(lbvh_i_slot))
        return false;
    const lbvh_real *const x = lbvh_i_at(from.input.data, from.input.stride, own.first);
    lbvh_real *const to = own.slot->x;
    int const block = (int)blockDim.x, last = 3 * own.size - 1;
    for (int k = (int)threadIdx.x; k <= last; k += items * block) {
        lbvh_real some[items];
#pragma unroll
        for (int t = 0; t < items; t++) some[t] = x[k + t * block < last ? k + t * block : last];
#pragma unroll
        for (int t = 0; t < items; t++)
            if (k + t * block <= last) to[k + t * block] = some[t];
    }
    __syncthreads();
    return true;
}

/* Slots with half centres, and the bounds of these; a slot that is left out is infinite. Minima are
   kept as maxima of the negated numbers. */
__device__ __forceinline__ void lbvh_i_fill_slots(const lbvh_i_from_elements &from,
                                                  const lbvh_i_parts &parts,
                                                  const lbvh_i_share &own)
{
    int const lane = (int)(threadIdx.x % 32), warp = (int)(threadIdx.x / 32),
              warps = (int)(blockDim.x / 32);
    lbvh_real most[6];
    bool const copied = lbvh_i_copy_points(from, own);
    lbvh_desc point = from.desc;
    point.kind = LBVH_POINTS;
    point.dim = 3;
    for (int a = 0; a < 6; a++) most[a] = -lbvh_i_infinity();
    for (int k = (int)threadIdx.x; k < own.size; k += (int)blockDim.x) {
        lbvh_real min[3], max[3];
        lbvh_i_slot slot;
        if (copied) slot = own.slot[k];
        lbvh_result const box =
            copied ? lbvh_box_of(&point, slot.x, sizeof slot, 0, min, max)
                   : lbvh_box_of(&from.desc, from.input.data, from.input.stride, own.first + k, min,
                                 max);
        for (int a = 0; a < 3; a++) {
            slot.x[a] = box == LBVH_OK ? lbvh_i_half_centre(min[a], max[a]) : lbvh_i_infinity();
            if (box != LBVH_OK) continue;
            most[a] = lbvh_i_max(most[a], slot.x[a]);
            most[3 + a] = lbvh_i_max(most[3 + a], -slot.x[a]);
        }
        own.slot[k] = slot;
    }
    for (int a = 0; a < 6; a++) {
        most[a] = lbvh_i_warp_max(most[a]);
        if (lane == 0) own.room->bounds[a][warp] = most[a];
    }
    __syncthreads();
    if (warp >= 6) return;
    lbvh_real const all = lbvh_i_warp_max(lane < warps ? own.room->bounds[warp][lane]
                                                       : -lbvh_i_infinity());
    if (lane == 0) parts.memory->bounds[warp][blockIdx.x] = all;
}

__device__ __forceinline__ void lbvh_i_fill_slots(const lbvh_i_from_keys &from,
                                                  const lbvh_i_parts &, const lbvh_i_share &own)
{
    for (int k = (int)threadIdx.x; k < own.size; k += (int)blockDim.x)
        own.slot[k].word[0] = from.key[own.first + k];
    __syncthreads();
}

/* The lattice, from the bounds of all shares. */
__device__ __forceinline__ void lbvh_i_share_lattice(const lbvh_i_from_elements &from,
                                                     const lbvh_i_parts &parts,
                                                     const lbvh_i_share &own)
{
    lbvh_i_share_room &room = *own.room;
    int const lane = (int)(threadIdx.x % 32), warp = (int)(threadIdx.x / 32);
    lbvh_i_grid_barrier();
    if (warp < 6) {
        lbvh_real all = -lbvh_i_infinity();
        for (int b = lane; b < (int)gridDim.x; b += 32)
            all = lbvh_i_max(all, parts.memory->bounds[warp][b]);
        all = lbvh_i_warp_max(all);
        if (lane == 0) room.bounds[warp][0] = all;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int a = 0; a < 3; a++) {
            room.most[a] = room.bounds[a][0];
            room.least[a] = -room.bounds[3 + a][0];
        }
        if (from.bounds_given) lbvh_i_given_bounds(&from.desc, room.least, room.most);
        room.lattice = lbvh_i_lattice_of(from.desc.dim, from.desc.bits, room.least, room.most);
    }
    __syncthreads();
}

__device__ __forceinline__ void lbvh_i_share_lattice(const lbvh_i_from_keys &, const lbvh_i_parts &,
                                                     const lbvh_i_share &)
{
    lbvh_i_grid_barrier(); /* no counts yet */
}

/* Is an element left out? */
__device__ __forceinline__ bool lbvh_i_slot_is_empty(const lbvh_i_slot &slot)
{
    return slot.x[0] == lbvh_i_infinity();
}

__device__ __forceinline__ uint64_t lbvh_i_slot_code(const lbvh_i_from_elements &from,
                                                     const lbvh_i_share &own,
                                                     const lbvh_i_slot &slot)
{
    int const dim = from.desc.dim, bits = from.desc.bits;
    return lbvh_i_slot_is_empty(slot) ? lbvh_i_last_code(dim, bits)
                                      : lbvh_i_code_by(&own.room->lattice, own.quantiles, dim,
                                                       bits, slot.x);
}

__device__ __forceinline__ uint64_t lbvh_i_slot_code(const lbvh_i_from_keys &,
                                                     const lbvh_i_share &, const lbvh_i_slot &slot)
{
    return slot.word[0];
}

/* Marks the codes of those elements of the share that are in the sample. Returns how many of the
   thread's found their bit set. Equal codes have the same bit, and some others by chance (about 4
   of 1024): so all blocks together find at least as many as there are. */
__device__ __forceinline__ int32_t lbvh_i_mark_sample(const lbvh_i_from_elements &from,
                                                      const lbvh_i_parts &parts,
                                                      const lbvh_i_share &own)
{
    int32_t alike = 0;
    /* (where n is less than LBVH_I_SAMPLE there is one block) */
    int const before = (int)((int64_t)own.first * LBVH_I_SAMPLE / parts.n) - 1;
    for (int s = (before > 0 ? before : 0) + (int)threadIdx.x; s < LBVH_I_SAMPLE && s < parts.n;
         s += (int)blockDim.x) {
        int32_t const k = lbvh_i_sample_id(s, parts.n) - own.first;
        if (k >= own.size) break;
        if (k < 0 || lbvh_i_slot_is_empty(own.slot[k])) continue;
        uint64_t const code = lbvh_i_slot_code(from, own, own.slot[k]);
        uint32_t const mark = (uint32_t)(code * 0x9E3779B97F4A7C15u >> (64 - lbvh_i_mark_bits)),
                       bit = 1u << mark % 32;
        alike += (atomicOr(&parts.memory->mark[mark / 32], bit) & bit) != 0;
    }
    return alike;
}

__device__ __forceinline__ int32_t lbvh_i_mark_sample(const lbvh_i_from_keys &,
                                                      const lbvh_i_parts &, const lbvh_i_share &)
{
    return 0;
}

/* Is the lattice not fit? Then codes are made by quantiles from now on. On return, in any case,
   counts are 0 and slots hold half centres again. All blocks call it, and find the same. */
__device__ void lbvh_i_share_quantiles(const lbvh_i_from_elements &from, const lbvh_i_parts &parts,
                                      lbvh_i_share &own)
{
    lbvh_i_share_room &room = *own.room;
    lbvh_i_block_sample &sample = room.now.fit;
    __syncthreads();
    lbvh_i_take_sample(from.desc, from.input, parts.n, sample);
    if (threadIdx.x == 0) lbvh_i_set_bounds(room.least, room.most, sample);
    __syncthreads();
    if (lbvh_i_lattice_fails(from.desc, room.lattice, sample)) {
        lbvh_i_make_knots(from.desc.dim, sample, &room.quantiles);
        own.quantiles = &room.quantiles;
    }
    lbvh_i_grid_barrier(); /* the counts have been read */
    for (int j = lbvh_i_thread(); j < lbvh_i_intervals_most; j += (int)(gridDim.x * blockDim.x))
        parts.memory->total[0][j] = 0;
    lbvh_i_fill_slots(from, parts, own);
    lbvh_i_grid_barrier();
}

__device__ __forceinline__ void lbvh_i_share_quantiles(const lbvh_i_from_keys &,
                                                      const lbvh_i_parts &, lbvh_i_share &)
{
}

/* The code of a slot, once it is stored there. */
__device__ __forceinline__ uint64_t lbvh_i_stored_code(const lbvh_i_slot &slot)
{
    return (uint64_t)slot.word[1] << 32 | slot.word[0];
}

/* The order of elements: by codes, equal ones by ids. */
__device__ __forceinline__ bool lbvh_i_before(uint64_t code, int32_t id, uint64_t other_code,
                                              int32_t other_id)
{
    return code < other_code || (code == other_code && id < other_id);
}

/* Samples of the share, by one warp: one from each 32nd of it, at random, since elements may lie in
   memory with a period. Bitonic sort (Batcher 1968). */
__device__ __forceinline__ void lbvh_i_take_samples(const lbvh_i_parts &parts,
                                                    const lbvh_i_share &own)
{
    int const lane = (int)(threadIdx.x % 32);
    if (threadIdx.x >= 32) return;
    uint32_t const s = blockIdx.x * lbvh_i_share_samples + (uint32_t)lane;
    int const begin = lane * own.size / 32, end = (lane + 1) * own.size / 32,
              at = begin < end ? begin + (int)(lbvh_i_hash(s) % (uint32_t)(end - begin)) : 0;
    uint64_t code = lbvh_i_stored_code(own.slot[at]);
    int32_t id = own.first + at;
    for (int width = 2; width <= 32; width *= 2)
        for (int step = width / 2; step > 0; step /= 2) {
            uint64_t const other = __shfl_xor_sync(0xFFFFFFFFu, code, step);
            int32_t const other_id = __shfl_xor_sync(0xFFFFFFFFu, id, step);
            bool const takes_less = ((lane & step) == 0) == ((lane & width) == 0);
            if (lbvh_i_before(other, other_id, code, id) == takes_less) code = other, id = other_id;
        }
    own.room->sample_id[lane] = id;
    parts.memory->sample[s] = code;
}

/* Elements of a sorted list of samples that are below a limit. */
__device__ __forceinline__ int lbvh_i_count_below(const uint64_t *list, uint64_t limit)
{
    int below = 0;
#pragma unroll
    for (int step = lbvh_i_share_samples / 2; step > 0; step /= 2)
        if (list[below + step - 1] < limit) below += step;
    return below + (list[below] < limit);
}

/* A warp ranks a sample of its share among all; equal codes rank by block. Splitter j is the sample
   whose rank is j * samples / intervals. */
__device__ __forceinline__ void lbvh_i_choose_splitters(const lbvh_i_parts &parts,
                                                        const lbvh_i_share &own)
{
    constexpr int each = lbvh_i_share_samples, stride = lbvh_i_list_stride;
    uint64_t *const list = own.room->now.sample;
    int const blocks = (int)gridDim.x, block = (int)blockIdx.x, lane = (int)(threadIdx.x % 32),
              samples = each * blocks;
    lbvh_i_grid_barrier();
    for (int s = (int)threadIdx.x; s < samples; s += (int)blockDim.x)
        list[s / each * stride + s % each] = parts.memory->sample[s];
    __syncthreads();
    for (int s = (int)(threadIdx.x / 32); s < each; s += (int)(blockDim.x / 32)) {
        uint64_t const code = list[block * stride + s];
        int rank = 0;
        for (int b = lane; b < blocks; b += 32)
            rank += b == block ? s : lbvh_i_count_below(list + b * stride, code + (b < block));
        for (int step = 16; step > 0; step /= 2)
            rank += __shfl_xor_sync(0xFFFFFFFFu, rank, step);
        int const j = (rank * parts.sampled + samples - 1) / samples;
        if (lane > 0 || j == 0 || j >= parts.sampled || j * samples / parts.sampled != rank)
            continue;
        parts.memory->splitter[j - 1] = code;
        parts.memory->splitter_id[j - 1] = own.room->sample_id[s];
    }
}

/* Splitters in shared memory, and the table. */
__device__ __forceinline__ void lbvh_i_load_splitters(const lbvh_i_parts &parts,
                                                      const lbvh_i_share &own)
{
    lbvh_i_share_intervals &room = own.room->now.intervals;
    int32_t *const table = own.room->table;
    int const splitters = parts.sampled - 1;
    lbvh_i_grid_barrier();
    for (int c = (int)threadIdx.x; c < parts.equal; c += (int)blockDim.x) table[c] = 0;
    __syncthreads();
    for (int j = (int)threadIdx.x; j < splitters; j += (int)blockDim.x) {
        room.splitter[j] = parts.memory->splitter[j];
        room.splitter_id[j] = parts.memory->splitter_id[j];
        (void)atomicAdd(&table[room.splitter[j] >> parts.shift], 1);
    }
    __syncthreads();
    lbvh_i_scan_counters(table, parts.equal, own.room->warp_sums);
    if (threadIdx.x == 0) table[parts.equal] = splitters;
    __syncthreads();
}

/* Splitters that do not come after an element. */
__device__ __forceinline__ int lbvh_i_interval_of(const lbvh_i_share &own, uint64_t code,
                                                  int32_t id, int shift)
{
    const lbvh_i_share_intervals &room = own.room->now.intervals;
    int const cell = (int)(code >> shift);
    int low = own.room->table[cell], high = own.room->table[cell + 1];
    while (low < high) {
        int const middle = (low + high) / 2;
        uint64_t const splitter = room.splitter[middle];
        if (splitter < code || (splitter == code && room.splitter_id[middle] <= id))
            low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Counts an element, and returns its rank. `whole`: all lanes of the warp call. If all count in the
   same interval, as where elements lie in order, one atomic does. */
__device__ __forceinline__ int32_t lbvh_i_count_in(int32_t *count, int interval, bool whole)
{
    int const lane = (int)(threadIdx.x % 32);
    if (!whole || !__all_sync(0xFFFFFFFFu,
                              interval == __shfl_sync(0xFFFFFFFFu, interval, 0)))
        return atomicAdd(&count[interval], 1);
    int32_t const first = lane == 0 ? atomicAdd(&count[interval], 32) : 0;
    return __shfl_sync(0xFFFFFFFFu, first, 0) + lane;
}

/* An element that is left out is reported. */
__device__ __forceinline__ void lbvh_i_report_slot(const lbvh_i_from_elements &from,
                                                   const lbvh_i_slot &slot, int32_t id)
{
    lbvh_real min[3], max[3];
    if (!lbvh_i_slot_is_empty(slot)) return;
    lbvh_i_report(from.facts,
                  lbvh_box_of(&from.desc, from.input.data, from.input.stride, id, min, max), id);
}

__device__ __forceinline__ void lbvh_i_report_slot(const lbvh_i_from_keys &, const lbvh_i_slot &,
                                                   int32_t)
{
}

/* No interval has an element yet. */
__device__ __forceinline__ void lbvh_i_empty_counts(const lbvh_i_share &own)
{
    for (int j = (int)threadIdx.x; j < own.intervals; j += (int)blockDim.x)
        own.room->now.intervals.count[j] = 0;
    __syncthreads();
}

/* Counts the element of a slot, and notes its interval and rank. */
__device__ __forceinline__ void lbvh_i_count_slot(const lbvh_i_share &own, int k, uint64_t code,
                                                  int interval)
{
    bool const whole = k < own.size / 32 * 32;
    int32_t const rank = lbvh_i_count_in(own.room->now.intervals.count, interval, whole);
    lbvh_i_slot slot;
    slot.word[0] = (uint32_t)code;
    slot.word[1] = (uint32_t)(code >> 32);
    slot.word[2] = (uint32_t)interval | (uint32_t)rank << 16;
    own.slot[k] = slot;
}

/* Codes, counted by equally long intervals. */
template <class Source>
__device__ __forceinline__ void lbvh_i_count_by_length(const Source &from,
                                                       const lbvh_i_parts &parts,
                                                       const lbvh_i_share &own)
{
    lbvh_i_empty_counts(own);
    for (int k = (int)threadIdx.x; k < own.size; k += (int)blockDim.x) {
        lbvh_i_slot const slot = own.slot[k];
        lbvh_i_report_slot(from, slot, own.first + k);
        uint64_t const code = lbvh_i_slot_code(from, own, slot);
        lbvh_i_count_slot(own, k, code, (int)(code >> parts.shift));
    }
    __syncthreads();
}

/* Counted by intervals between splitters. */
__device__ __forceinline__ void lbvh_i_count_by_interval(const lbvh_i_parts &parts,
                                                         const lbvh_i_share &own)
{
    lbvh_i_empty_counts(own);
    for (int k = (int)threadIdx.x; k < own.size; k += (int)blockDim.x) {
        uint64_t const code = lbvh_i_stored_code(own.slot[k]);
        lbvh_i_count_slot(own, k, code,
                          lbvh_i_interval_of(own, code, own.first + k, parts.shift));
    }
    __syncthreads();
}

/* The order of the share by interval: neighbours are then stored side by side. The atomics tell
   what other blocks have before in each interval. */
__device__ __forceinline__ void lbvh_i_order_share(const lbvh_i_share &own, int32_t *total)
{
    lbvh_i_share_intervals &room = own.room->now.intervals;
    for (int j = (int)threadIdx.x; j < own.intervals; j += (int)blockDim.x) {
        int32_t const count = room.count[j];
        room.before[j] = count;
        room.count[j] = count > 0 ? atomicAdd(&total[j], count) : 0;
    }
    __syncthreads();
    lbvh_i_scan_counters(room.before, own.intervals, own.room->warp_sums);
    for (int k = (int)threadIdx.x; k < own.size; k += (int)blockDim.x) {
        uint32_t const word = own.slot[k].word[2];
        own.order[room.before[word & 0xFFFF] + (int32_t)(word >> 16)] = (uint16_t)k;
    }
}

/* Where intervals begin, in the place of the splitters' ids, which are no longer needed. Returns
   the number of elements of the largest interval. */
__device__ __forceinline__ int32_t lbvh_i_begin_intervals(const lbvh_i_parts &parts,
                                                          lbvh_i_share &own, const int32_t *total)
{
    int32_t *const begin = own.room->now.intervals.splitter_id;
    int32_t largest = 0;
    if (threadIdx.x == 0) own.room->largest = 0;
    lbvh_i_grid_barrier();
    own.alike = parts.memory->alike;
    for (int j = (int)threadIdx.x; j < own.intervals; j += (int)blockDim.x) {
        begin[j] = total[j];
        largest = max(largest, begin[j]);
    }
    for (int step = 16; step > 0; step /= 2)
        largest = max(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, step));
    if (threadIdx.x % 32 == 0) (void)atomicMax(&own.room->largest, largest);
    __syncthreads();
    lbvh_i_scan_counters(begin, own.intervals, own.room->warp_sums);
    return own.room->largest;
}

/* Stores the records, and for the second launch intervals and, if they are equally long, their
   splitters. */
__device__ __forceinline__ void lbvh_i_store_share(const lbvh_i_parts &parts,
                                                   const lbvh_i_share &own, bool equal)
{
    lbvh_i_share_intervals &room = own.room->now.intervals;
    const int32_t *const begin = room.splitter_id;
    for (int j = (int)threadIdx.x; j < own.intervals; j += (int)blockDim.x) {
        room.count[j] += begin[j] - room.before[j];
        if (blockIdx.x > 0) continue;
        parts.memory->begin[j] = begin[j];
        if (!equal) continue;
        parts.memory->splitter[j] = ((uint64_t)j + 1) << parts.shift;
        parts.memory->splitter_id[j] = 0;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        parts.memory->begin[own.intervals] = parts.n;
        parts.memory->intervals = own.intervals;
    }
    __syncthreads();
    for (int k = (int)threadIdx.x; k < own.size; k += (int)blockDim.x) {
        int const from = own.order[k];
        const uint32_t *const word = own.slot[from].word;
        uint32_t const interval = word[2] & 0xFFFF;
        reinterpret_cast<int4 *>(parts.record)[room.count[interval] + k] =
            make_int4((int)word[0], (int)word[1], own.first + from, (int)interval);
    }
}

__device__ __forceinline__ void lbvh_i_clear_facts(const lbvh_i_from_elements &from)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) *from.facts = {};
}
__device__ __forceinline__ void lbvh_i_clear_facts(const lbvh_i_from_keys &) {}

/* Counts the share by equally long intervals. True if they are good enough: none holds more than 16
   times the mean and 64, as where elements lie in a plane, nor so many that it overflows a
   bucket. */
template <class Source>
__device__ __forceinline__ bool lbvh_i_partition_equally(const Source &from,
                                                         const lbvh_i_parts &parts,
                                                         lbvh_i_share &own)
{
    int32_t const mean = parts.n / parts.equal,
                  most = min(16 * mean + 64, lbvh_i_bucket_most - lbvh_i_bucket);
    own.intervals = parts.equal;
    lbvh_i_count_by_length(from, parts, own);
    if (own.alike > 0) (void)atomicAdd(&parts.memory->alike, own.alike);
    lbvh_i_order_share(own, parts.memory->total[0]);
    return lbvh_i_begin_intervals(parts, own, parts.memory->total[0]) <= most;
}

/* The first launch. */
template <class Source>
__global__ void __launch_bounds__(lbvh_i_sort_block)
    lbvh_i_partition_kernel(__grid_constant__ const Source from, lbvh_i_parts parts)
{
    lbvh_i_share own;
    own.room = reinterpret_cast<lbvh_i_share_room *>(lbvh_i_shared());
    own.slot = reinterpret_cast<lbvh_i_slot *>(own.room + 1);
    own.order = reinterpret_cast<uint16_t *>(own.slot + parts.share);
    own.first = (int32_t)blockIdx.x * parts.share;
    own.size = parts.n - own.first < parts.share ? parts.n - own.first : parts.share;
    own.quantiles = nullptr;
    int const threads = (int)(gridDim.x * blockDim.x);
    for (int j = lbvh_i_thread(); j < lbvh_i_intervals_most; j += threads)
        parts.memory->total[0][j] = parts.memory->total[1][j] = 0;
    for (int j = lbvh_i_thread(); j < lbvh_i_marks / 32; j += threads) parts.memory->mark[j] = 0;
    if (lbvh_i_thread() == 0) parts.memory->alike = 0;
    lbvh_i_clear_facts(from);
    lbvh_i_fill_slots(from, parts, own);
    lbvh_i_share_lattice(from, parts, own);
    own.alike = lbvh_i_mark_sample(from, parts, own);
    bool equal = lbvh_i_partition_equally(from, parts, own);
    if (own.alike >= LBVH_I_ALIKE) {
        lbvh_i_share_quantiles(from, parts, own);
        own.alike = 0;
        equal = lbvh_i_partition_equally(from, parts, own);
    }
    if (!equal) {
        own.intervals = parts.sampled;
        lbvh_i_take_samples(parts, own);
        lbvh_i_choose_splitters(parts, own);
        lbvh_i_load_splitters(parts, own);
        lbvh_i_count_by_interval(parts, own);
        lbvh_i_order_share(own, parts.memory->total[1]);
        (void)lbvh_i_begin_intervals(parts, own, parts.memory->total[1]);
    }
    lbvh_i_store_share(parts, own, equal);
}

/* A range of a bucket: x is an id where all codes are equal, else a code. */
struct alignas(16) lbvh_i_code_range {
    uint64_t low;
    uint32_t scale; /* cell = first + ((x - low) << up) * scale / 2^64 */
    int32_t up, first, cells, by_id, unused;
};

/* Shared memory of a block of the second launch. */
struct lbvh_i_bucket_room {
    uint64_t code[lbvh_i_bucket_most];
    int32_t id[lbvh_i_bucket_most];
    uint32_t count[lbvh_i_bucket_most / 2];       /* of cells, two to a word */
    uint32_t begins[lbvh_i_bucket_most / 32 + 1]; /* a bit for each place: a cell begins there */
    lbvh_i_code_range range[lbvh_i_ranges_most];
    int32_t warp_sums[lbvh_i_sort_block / 32];
    int32_t interval[2]; /* the bucket's first, and the one after its last */
};
static_assert(lbvh_i_sort_items == 8 && lbvh_i_bucket_most % 32 == 0 &&
                  lbvh_i_sort_items * lbvh_i_sort_block >= lbvh_i_bucket_most,
              "a thread has 8 cells, and 8 elements");

/* The elements of a thread. */
struct lbvh_i_own_elements {
    uint64_t code[lbvh_i_sort_items];
    int32_t id[lbvh_i_sort_items];
    uint32_t cell[lbvh_i_sort_items]; /* and rank there */
};

/* Places of a cell. */
struct lbvh_i_cell_places {
    int begin, end;
};

/* The cell to which a place of the bucket belongs: its first place, and the one behind it. */
__device__ __forceinline__ lbvh_i_cell_places lbvh_i_cell_at(const lbvh_i_bucket_room &room,
                                                             int place)
{
    int first = place / 32, last = first;
    uint32_t const word = room.begins[first], up_to = (2u << place % 32) - 1;
    uint32_t below = word & up_to, above = word & ~up_to;
    while (below == 0) below = room.begins[--first];
    while (above == 0) above = room.begins[++last];
    return {32 * first + 31 - __clz((int)below), 32 * last + __ffs((int)above) - 1};
}

/* No cell has an element yet. */
__device__ __forceinline__ void lbvh_i_empty_cells(lbvh_i_bucket_room &room)
{
    if (8 * threadIdx.x < lbvh_i_bucket_most)
        reinterpret_cast<uint4 *>(room.count)[threadIdx.x] = make_uint4(0, 0, 0, 0);
    __syncthreads();
}

/* Prefix sums of the counts of cells. Returns whether one was crowded. */
__device__ __forceinline__ bool lbvh_i_scan_cells(lbvh_i_bucket_room &room)
{
    bool const has_cells = 8 * threadIdx.x < lbvh_i_bucket_most;
    uint4 *const cells = reinterpret_cast<uint4 *>(room.count) + threadIdx.x;
    uint4 const four = has_cells ? *cells : make_uint4(0, 0, 0, 0);
    uint32_t word[4] = {four.x, four.y, four.z, four.w};
    int32_t sum = 0;
    bool crowded = false;
    for (int w = 0; w < 4; w++) {
        sum += (int32_t)((word[w] & 0xFFFF) + (word[w] >> 16));
        crowded |= (word[w] & 0xFFFF) > lbvh_i_crowd || word[w] >> 16 > lbvh_i_crowd;
    }
    int32_t before = lbvh_i_block_prefix(sum, room.warp_sums);
    for (int w = 0; w < 4; w++) {
        int32_t const low = (int32_t)(word[w] & 0xFFFF), high = (int32_t)(word[w] >> 16);
        word[w] = (uint32_t)before | (uint32_t)(before + low) << 16;
        before += low + high;
    }
    if (has_cells) *cells = make_uint4(word[0], word[1], word[2], word[3]);
    return __syncthreads_or(crowded);
}

/* Stores elements by cell: all are counted, those that `move` (a bit each) are stored. Returns
   whether a cell is crowded. */
__device__ __forceinline__ bool lbvh_i_distribute(lbvh_i_bucket_room &room, int m,
                                                  lbvh_i_own_elements &own, unsigned move)
{
    int const thread = (int)threadIdx.x, block = (int)blockDim.x;
#pragma unroll
    for (int t = 0; t < lbvh_i_sort_items; t++) {
        if (t * block + thread >= m) continue;
        uint32_t const cell = own.cell[t], half = cell % 2 * 16;
        own.cell[t] |= (atomicAdd(&room.count[cell / 2], 1u << half) >> half) << 16;
    }
    __syncthreads();
    bool const crowded = lbvh_i_scan_cells(room);
#pragma unroll
    for (int t = 0; t < lbvh_i_sort_items; t++) {
        if (t * block + thread >= m || (move >> t & 1) == 0) continue;
        uint32_t const cell = own.cell[t] & 0xFFFF, rank = own.cell[t] >> 16,
                       place = (room.count[cell / 2] >> cell % 2 * 16 & 0xFFFF) + rank;
        room.code[place] = own.code[t];
        room.id[place] = own.id[t];
        if (rank == 0) (void)atomicOr(&room.begins[place / 32], 1u << place % 32);
    }
    __syncthreads();
    return crowded;
}

/* The highest bit in which elements differ: of codes above 32, else of ids; 0: the same one. */
__device__ __forceinline__ int lbvh_i_differing_bit(const lbvh_i_bucket_room &room, int place,
                                                    int other)
{
    uint64_t const differ = room.code[place] ^ room.code[other];
    return differ ? 96 - lbvh_i_leading_zeros(differ)
                  : 32 - __clz(room.id[place] ^ room.id[other]);
}

/* At the begin of every large cell, in place of a count: the highest bit in which any element
   differs from the first. */
__device__ __forceinline__ void lbvh_i_note_bits(lbvh_i_bucket_room &room, int m)
{
    int const lane = (int)(threadIdx.x % 32);
    for (int place = (int)threadIdx.x; place - lane < m; place += (int)blockDim.x) {
        lbvh_i_cell_places cell = {-1, -1};
        if (place < m) cell = lbvh_i_cell_at(room, place);
        int bit = place < m ? lbvh_i_differing_bit(room, place, cell.begin) : 0;
        bool const large = cell.end - cell.begin > lbvh_i_few,
                   alike = __all_sync(0xFFFFFFFFu,
                                      cell.begin == __shfl_sync(0xFFFFFFFFu, cell.begin, 0));
        if (alike)
            for (int step = 16; step > 0; step /= 2)
                bit = max(bit, __shfl_xor_sync(0xFFFFFFFFu, bit, step));
        if (large && (!alike || lane == 0))
            (void)atomicMax(&room.count[cell.begin / 2], (uint32_t)bit);
    }
    __syncthreads();
}

/* Divides every large cell into as many as it holds elements (an even number: the highest bit then
   always divides it). Returns whether one is still crowded. */
__device__ __forceinline__ bool lbvh_i_divide_cells(lbvh_i_bucket_room &room, int m)
{
    lbvh_i_own_elements own;
    unsigned move = 0;
    lbvh_i_empty_cells(room);
    lbvh_i_note_bits(room, m);
#pragma unroll
    for (int t = 0; t < lbvh_i_sort_items; t++) {
        int const place = t * (int)blockDim.x + (int)threadIdx.x;
        if (place >= m) continue;
        lbvh_i_cell_places const cell = lbvh_i_cell_at(room, place);
        int const size = cell.end - cell.begin, bit = (int)room.count[cell.begin / 2];
        own.cell[t] = (uint32_t)place;
        if (size <= lbvh_i_few) continue;
        own.code[t] = room.code[place];
        own.id[t] = room.id[place];
        uint32_t const below = bit > 32 ? (uint32_t)(own.code[t] << (96 - bit) >> 32)
                                        : (uint32_t)own.id[t] << (32 - bit);
        own.cell[t] = (uint32_t)cell.begin + __umulhi(below, (uint32_t)(size - size % 2));
        move |= 1u << t;
    }
    __syncthreads();
    lbvh_i_empty_cells(room);
    return lbvh_i_distribute(room, m, own, move);
}

/* Stores m records by cell. The range of one is its interval, from `first` on, >> shift. Returns
   whether a cell is crowded. */
__device__ __forceinline__ bool lbvh_i_fill_cells(lbvh_i_bucket_room &room,
                                                  const lbvh_i_record *record, int m, int first,
                                                  int shift)
{
    int const thread = (int)threadIdx.x, block = (int)blockDim.x;
    lbvh_i_own_elements own;
    for (int w = thread; w <= lbvh_i_bucket_most / 32; w += block)
        room.begins[w] = (w == m / 32 ? 1u << m % 32 : 0) | (w == 0);
    lbvh_i_empty_cells(room);
#pragma unroll
    for (int t = 0; t < lbvh_i_sort_items; t++) {
        if (t * block + thread >= m) continue;
        int4 const one = reinterpret_cast<const int4 *>(record)[t * block + thread];
        own.code[t] = (uint64_t)(uint32_t)one.y << 32 | (uint32_t)one.x;
        own.id[t] = one.z;
        own.cell[t] = (uint32_t)(one.w - first) >> shift;
    }
#pragma unroll
    for (int t = 0; t < lbvh_i_sort_items; t++) {
        if (t * block + thread >= m) continue;
        lbvh_i_code_range const range = room.range[own.cell[t]];
        uint64_t const x = (range.by_id ? (uint64_t)own.id[t] : own.code[t]) - range.low;
        uint32_t const cell = __umulhi((uint32_t)(x << range.up >> 32), range.scale);
        own.cell[t] = (uint32_t)range.first + min(cell, (uint32_t)range.cells - 1);
    }
    return lbvh_i_distribute(room, m, own, ~0u);
}

/* Sorts m records, as lbvh_i_fill_cells, to codes and ids. */
__device__ __forceinline__ void lbvh_i_sort_records(lbvh_i_bucket_room &room,
                                                    const lbvh_i_record *record, int m, int first,
                                                    int shift, uint64_t *codes, int32_t *ids)
{
    bool crowded = lbvh_i_fill_cells(room, record, m, first, shift);
    while (crowded) crowded = lbvh_i_divide_cells(room, m);
    for (int place = (int)threadIdx.x; place < m; place += (int)blockDim.x) {
        uint64_t const code = room.code[place];
        int32_t const id = room.id[place];
        lbvh_i_cell_places const cell = lbvh_i_cell_at(room, place);
        int to = cell.begin;
#pragma unroll 4
        for (int other = cell.begin; other < cell.end; other++)
            to += lbvh_i_before(room.code[other], room.id[other], code, id);
        codes[to] = code;
        ids[to] = id;
    }
    __syncthreads();
}

/* Sorted elements in global memory: records, or codes and ids. */
struct lbvh_i_sorted {
    lbvh_i_record *record; /* NULL: the other two */
    uint64_t *code;
    int32_t *id;
    __device__ lbvh_i_record get(int32_t k) const
    {
        if (record) return record[k];
        return {code[k], id[k], 0};
    }
    __device__ void set(int32_t k, const lbvh_i_record &one) const
    {
        if (record) record[k] = one;
        else code[k] = one.code, id[k] = one.id;
    }
};

/* Merges neighbouring sorted chunks of m elements, `width` long: an element moves by the number of
   those of the other chunk that come before it. */
__device__ void lbvh_i_merge_sorted(const lbvh_i_sorted &from, const lbvh_i_sorted &to, int32_t m,
                                    int32_t width)
{
    for (int32_t k = (int32_t)threadIdx.x; k < m; k += (int32_t)blockDim.x) {
        lbvh_i_record const own = from.get(k);
        int32_t const chunk = k / width, other = min((chunk ^ 1) * width, m);
        int32_t low = other, high = min(other + width, m);
        while (low < high) {
            int32_t const middle = (low + high) / 2;
            lbvh_i_record const there = from.get(middle);
            if (lbvh_i_before(there.code, there.id, own.code, own.id)) low = middle + 1;
            else high = middle;
        }
        to.set(chunk / 2 * 2 * width + k % width + (low - other), own);
    }
    __syncthreads();
}

/* A bucket that does not fit: only where samples tell little of the elements. */
__device__ void lbvh_i_sort_large_bucket(lbvh_i_bucket_room &room, lbvh_i_record *record, int32_t m,
                                         uint64_t *codes, int32_t *ids)
{
    constexpr int32_t most = lbvh_i_bucket_most;
    lbvh_i_sorted from = {nullptr, codes, ids}, to = {record, nullptr, nullptr};
    if (threadIdx.x == 0) room.range[0] = {0, 0, 0, 0, 1, 0, 0}; /* one cell */
    __syncthreads();
    for (int32_t k = 0; k < m; k += most)
        lbvh_i_sort_records(room, record + k, min(most, m - k), 0, 31, codes + k, ids + k);
    for (int32_t width = most; width < m; width *= 2) {
        lbvh_i_merge_sorted(from, to, m, width);
        lbvh_i_sorted const merged = to;
        to = from, from = merged;
    }
    if (!from.record) return; /* in place already */
    for (int32_t k = (int32_t)threadIdx.x; k < m; k += (int32_t)blockDim.x)
        to.set(k, from.get(k));
}

/* The intervals of the block's bucket: those with their middle in its part of n places. */
__device__ __forceinline__ void lbvh_i_find_bucket(const lbvh_i_parts &parts,
                                                   lbvh_i_bucket_room &room, int bucket)
{
    const int32_t *const begin = parts.memory->begin;
    int const intervals = parts.memory->intervals;
    if (threadIdx.x < 2) room.interval[threadIdx.x] = intervals;
    __syncthreads();
    for (int j = (int)threadIdx.x; j < intervals; j += (int)blockDim.x) {
        int32_t const own = begin[j] + begin[j + 1], before = j > 0 ? begin[j - 1] + begin[j] : -1;
        for (int side = 0; side < 2; side++) {
            int32_t const border = 2 * ((int32_t)blockIdx.x + side) * bucket;
            if (before < border && border <= own) room.interval[side] = j;
        }
    }
    __syncthreads();
}

/* The ranges of a bucket: 1 << shift intervals each. Codes are up to `last`. */
__device__ __forceinline__ void lbvh_i_make_ranges(const lbvh_i_parts &parts,
                                                   lbvh_i_bucket_room &room, int shift,
                                                   uint64_t last)
{
    const lbvh_i_sort_memory &memory = *parts.memory;
    int const from = room.interval[0] + ((int)threadIdx.x << shift),
              to = min(from + (1 << shift), room.interval[1]);
    if (threadIdx.x >= lbvh_i_ranges_most || from >= to) return;
    bool const has_low = from > 0, has_high = to < memory.intervals;
    uint64_t low = has_low ? memory.splitter[from - 1] : 0,
             high = has_high ? memory.splitter[to - 1] : last;
    bool const by_id = low == high;
    if (by_id) {
        low = has_low ? (uint64_t)memory.splitter_id[from - 1] : 0;
        high = has_high ? (uint64_t)memory.splitter_id[to - 1] : (uint64_t)parts.n;
    }
    int32_t const cells = memory.begin[to] - memory.begin[from];
    int const up = lbvh_i_leading_zeros((high - low) | 1);
    float const length = (float)max((uint32_t)((high - low) << up >> 32), 1u << 31);
    room.range[threadIdx.x] = {low,
                               (uint32_t)((float)cells / length * 4294967296.0f),
                               up,
                               memory.begin[from] - memory.begin[room.interval[0]],
                               cells,
                               by_id,
                               0};
}

/* The second launch: a block sorts a bucket, of about `bucket` elements. */
__global__ void __launch_bounds__(lbvh_i_sort_block)
    lbvh_i_bucket_kernel(lbvh_i_parts parts, int bucket, uint64_t last, uint64_t *codes,
                         int32_t *ids)
{
    lbvh_i_bucket_room &room = *reinterpret_cast<lbvh_i_bucket_room *>(lbvh_i_shared());
    lbvh_i_wait_for_kernel_before();
    lbvh_i_find_bucket(parts, room, bucket);
    int const from = room.interval[0], to = room.interval[1];
    int32_t const first = parts.memory->begin[from], m = parts.memory->begin[to] - first;
    int shift = 0;
    while ((to - from - 1) >> shift >= lbvh_i_ranges_most) shift++;
    if (m <= 0) return;
    if (m > lbvh_i_bucket_most) {
        lbvh_i_sort_large_bucket(room, parts.record + first, m, codes + first, ids + first);
        return;
    }
    lbvh_i_make_ranges(parts, room, shift, last);
    __syncthreads();
    lbvh_i_sort_records(room, parts.record + first, m, from, shift, codes + first, ids + first);
}

/* An attribute of the current device. */
int lbvh_i_device_attribute(cudaDeviceAttr attribute)
{
    int device = 0, value = 0;
    if (cudaGetDevice(&device) == cudaSuccess &&
        cudaDeviceGetAttribute(&value, attribute, device) == cudaSuccess)
        return value;
    (void)cudaGetLastError(); /* an unknown attribute counts as 0 */
    return 0;
}

/* As many blocks as surely run at the same time, one on each multiprocessor; 0: this device has too
   little shared memory, or no launch of such blocks. */
int32_t lbvh_i_sort_blocks()
{
    int const shared = lbvh_i_device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
              processors = lbvh_i_device_attribute(cudaDevAttrMultiProcessorCount);
    if (shared < (int)sizeof(lbvh_i_bucket_room)) return 0;
#ifndef CUDA_EMU
    if (!lbvh_i_device_attribute(cudaDevAttrCooperativeLaunch)) return 0;
#endif
    return std::min(processors, lbvh_i_sort_blocks_most);
}

/* Shared memory of a block of the first launch. */
size_t lbvh_i_share_bytes(int32_t share)
{
    return sizeof(lbvh_i_share_room) + (size_t)share * (sizeof(lbvh_i_slot) + sizeof(uint16_t));
}

/* The most elements that are sorted in two launches. */
int32_t lbvh_i_sort_most()
{
    int32_t const room = lbvh_i_device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) -
                         (int32_t)lbvh_i_share_bytes(0),
                  fit = room / (int32_t)(sizeof(lbvh_i_slot) + sizeof(uint16_t)) / 32 * 32;
    return lbvh_i_sort_blocks() * std::max(0, std::min(fit, lbvh_i_share_most));
}

/* Bytes of TEMP for n elements. */
size_t lbvh_i_sort_bytes(int32_t n)
{
    int32_t const most = std::min(n, lbvh_i_sort_most());
    return sizeof(lbvh_i_sort_memory) + (size_t)most * sizeof(lbvh_i_record);
}

/* How n elements are divided, and where in TEMP their records lie. */
lbvh_i_parts lbvh_i_parts_of(lbvh_cuda *gpu, int32_t n, int bits)
{
    char *const temp = lbvh_i_scratch<char>(gpu, LBVH_I_TEMP);
    int32_t const blocks = std::min(lbvh_i_sort_blocks(), lbvh_i_blocks(n, lbvh_i_sort_block)),
                  share = lbvh_i_blocks(lbvh_i_blocks(n, blocks), 32) * 32,
                  samples = lbvh_i_blocks(n, share) * lbvh_i_share_samples,
                  most = std::min(samples, lbvh_i_intervals_most);
    int cell_bits = 0; /* 64 elements of a cell and more */
    while (cell_bits < std::min(bits, lbvh_i_table_bits) && n >> (cell_bits + 7) > 0) cell_bits++;
    return {reinterpret_cast<lbvh_i_record *>(temp + sizeof(lbvh_i_sort_memory)),
            reinterpret_cast<lbvh_i_sort_memory *>(temp),
            n,
            share,
            std::min(lbvh_i_blocks(n, lbvh_i_interval), most),
            (int32_t)1 << cell_bits,
            bits - cell_bits};
}

/* Sorts n elements or keys to codes and ids. false: they are too many, or fewer multiprocessors are
   at hand than the device has; then nothing was launched. */
template <class Source>
bool lbvh_i_sort_by_samples(lbvh_cuda *gpu, const Source &from, int32_t n, int bits,
                            uint64_t *codes, int32_t *ids, cudaStream_t stream,
                            lbvh_result *result)
{
    if (n > lbvh_i_sort_most()) return false;
    lbvh_i_parts const parts = lbvh_i_parts_of(gpu, n, bits);
    int32_t const places = 2 * lbvh_i_sort_blocks(), /* for buckets at the same time */
        rounds = lbvh_i_blocks(n, places * lbvh_i_bucket),
                  bucket = std::max(lbvh_i_blocks(n, places * rounds), lbvh_i_bucket_least);
    size_t const shared[2] = {lbvh_i_share_bytes(parts.share), sizeof(lbvh_i_bucket_room)};
    *result = LBVH_CUDA_ERROR;
    if (lbvh_i_failed(gpu, cudaFuncSetAttribute(lbvh_i_partition_kernel<Source>,
                                                cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                (int)shared[0])) ||
        lbvh_i_failed(gpu, cudaFuncSetAttribute(lbvh_i_bucket_kernel,
                                                cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                (int)shared[1])))
        return true;
    cudaLaunchAttribute cooperative = {};
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)lbvh_i_blocks(n, parts.share));
    config.blockDim = dim3((unsigned)lbvh_i_sort_block);
    config.dynamicSmemBytes = shared[0];
    config.stream = stream;
    config.attrs = &cooperative;
    config.numAttrs = 1;
    *result = lbvh_i_launch_config(gpu, config, lbvh_i_partition_kernel<Source>, from, parts);
    if (*result != LBVH_OK)
        return gpu->device.tree.cuda_error != (int32_t)cudaErrorCooperativeLaunchTooLarge;
    cudaLaunchAttribute early = lbvh_i_early();
    config.gridDim = dim3((unsigned)lbvh_i_blocks(n, bucket));
    config.dynamicSmemBytes = shared[1];
    config.attrs = &early;
    config.numAttrs = lbvh_i_starts_early ? 1 : 0;
    *result = lbvh_i_launch_config(gpu, config, lbvh_i_bucket_kernel, parts, bucket,
                                   ((uint64_t)1 << bits) - 1, codes, ids);
    return true;
}

/* Sorts elements by their codes, if two launches can. False: nothing was done. */
bool lbvh_i_sort_elements(lbvh_cuda *gpu, lbvh_i_input input, uint64_t *codes, int32_t *ids,
                          cudaStream_t stream, lbvh_result *result)
{
    const lbvh &tree = gpu->device.tree;
    lbvh_i_from_elements const from = {tree.desc, input, lbvh_i_bounds_given(&tree.desc) != 0,
                                       gpu->d_facts};
    return lbvh_i_sort_by_samples(gpu, from, tree.n, lbvh_i_code_bits(&tree.desc), codes, ids,
                                  stream, result);
}

/* Sorts keys: in two launches, or by digits. */
lbvh_result lbvh_i_sort_keys(lbvh_cuda *gpu, lbvh_i_sort *sort, int32_t n, int bits,
                             cudaStream_t stream)
{
    lbvh_i_from_keys const from = {sort->keys.Current()};
    lbvh_result result = LBVH_OK;
    if (n >= lbvh_i_keys_least &&
        lbvh_i_sort_by_samples(gpu, from, n, bits, lbvh_i_scratch<uint64_t>(gpu, LBVH_I_LONG),
                               sort->ids.Current(), stream, &result))
        return result;
    return lbvh_i_sort_by_digits(gpu, sort, n, bits, stream);
}

/* ------------------------------------------------------------------------------------------------
   >>keys: where there are too many elements for >>sort, codes of 63 bits are sorted by keys of at
   most 32

   A radix sort of 32 bits takes half of the passes of one of 63. So elements are sorted by keys
   that ascend with the codes, and those with equal keys by their codes, afterwards. The order, and
   so the tree, is that of a sort by codes.

       sample    up to 1023 codes, of elements equally far apart in the caller's array, are ranked.
                 If no two of them share their upper 28 bits, elements are spread out, and the key
                 is the upper 32 bits of a code. (Of 10M uniform points one in 430 shares its key
                 with another.) Else the key is relative to the samples (sample sort, Frazer and
                 McKellar 1970, is the model: samples lie close together where elements do). Fewer
                 elements need fewer bits: keys of 24 are the upper ones of these.

                     codes       ----- s0 ----- s1 ----- s2 -----
                     interval      0   1    2   3    4   5    6      11 bits

                 An odd interval holds the codes that equal a sample, an even one those between two
                 samples. There 21 bits more tell on which side of the middle a code lies, and how
                 far from the nearer sample. That is half of a logarithm, which is fine near the
                 sample, whatever the scale, and the fourth root of the share of half the interval,
                 which is fine where most codes are if elements are spread evenly.
       sort      keys and ids, by CUB
       ties      a run of up to 16 equal keys is sorted by one thread, a longer one by a block, in
                 chunks that are merged. With many clumps that no sample tells apart this costs
                 more than the passes that are saved (bench_lbvh, "specks")
   ---------------------------------------------------------------------------------------------- */

constexpr int lbvh_i_mantissa_bits = 14, lbvh_i_distance_bits = 21;

/* The bits that samples must not share. */
constexpr int lbvh_i_alike_bits = 28;

/* The bounds of all half centres: a reduction by threads (grid-stride loop), then warps (butterfly
   shuffles over 16, 8, 4, 2 and 1 lanes), then blocks. A minimum is kept as the maximum of the
   negated numbers, so that one memset to 0 initialises all. */
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_bounds_kernel(__grid_constant__ const lbvh_device device, lbvh_i_input input, int32_t n,
                         lbvh_cuda_facts *facts)
{
    __shared__ lbvh_real shared[6][lbvh_i_block_threads / 32];
    lbvh_real min[3], max[3], most[6];
    int const lane = (int)(threadIdx.x % 32), warp = (int)(threadIdx.x / 32);
    for (int a = 0; a < 6; a++) most[a] = -lbvh_i_infinity();
    for (int64_t i = lbvh_i_thread(); i < n; i += gridDim.x * blockDim.x) {
        lbvh_result const box = lbvh_box_of(&device.tree.desc, input.data, input.stride, (int32_t)i,
                                            min, max);
        if (box != LBVH_OK) continue; /* left out */
        for (int a = 0; a < 3; a++) {
            lbvh_real const half_centre = lbvh_i_half_centre(min[a], max[a]);
            most[a] = lbvh_i_max(most[a], half_centre);
            most[3 + a] = lbvh_i_max(most[3 + a], -half_centre);
        }
    }
    for (int a = 0; a < 6; a++) {
        for (int step = 16; step > 0; step /= 2)
            most[a] = lbvh_i_max(most[a], __shfl_xor_sync(0xFFFFFFFFu, most[a], step));
        if (lane == 0) shared[a][warp] = most[a];
    }
    __syncthreads();
    if (threadIdx.x >= 6) return;
    lbvh_real all = shared[threadIdx.x][0];
    for (int w = 1; w < lbvh_i_block_threads / 32; w++)
        all = lbvh_i_max(all, shared[threadIdx.x][w]);
    unsigned long long *const to = reinterpret_cast<unsigned long long *>(
                                       threadIdx.x < 3 ? facts->most : facts->least) +
                                   threadIdx.x % 3;
    if (all > -lbvh_i_infinity()) atomicMax(to, lbvh_i_order_of(all));
}

/* The bounds of the lattice: the caller's, or those; facts hold the minimum negated. */
__device__ __forceinline__ void lbvh_i_bounds_in(const lbvh &tree, bool given,
                                                 const lbvh_cuda_facts *facts, lbvh_real least[3],
                                                 lbvh_real most[3])
{
    if (given) {
        lbvh_i_given_bounds(&tree.desc, least, most);
        return;
    }
    for (int a = 0; a < 3; a++) {
        bool const any = facts->most[a] != 0; /* no valid element, no bounds */
        least[a] = any ? -lbvh_i_real_of(facts->least[a]) : lbvh_i_infinity();
        most[a] = any ? lbvh_i_real_of(facts->most[a]) : -lbvh_i_infinity();
    }
}

/* Where work space of a build with codes of 63 bits lies. */
struct lbvh_i_long {
    uint64_t *code;   /* [n] by element */
    uint64_t *sample; /* in order */
    int32_t samples;  /* 0: codes have 30 bits */
    int key_bits;
    lbvh_i_quantiles *quantiles; /* where facts->by_quantiles */
};

/* The code of element i, and whether the element is valid. */
__device__ __forceinline__ uint64_t lbvh_i_code_of(const lbvh &tree, const lbvh_lattice &lattice,
                                                   const lbvh_i_quantiles *quantiles,
                                                   const lbvh_i_input &input, int32_t i,
                                                   lbvh_result *valid)
{
    lbvh_real min[3], max[3];
    *valid = lbvh_box_of(&tree.desc, input.data, input.stride, i, min, max);
    return lbvh_i_code_of_box(&lattice, quantiles, tree.desc.dim, tree.desc.bits, min, max);
}

/* The lattice, by one thread. */
__device__ __forceinline__ lbvh_lattice lbvh_i_lattice_in(const lbvh &tree, bool bounds_given,
                                                          const lbvh_cuda_facts *facts)
{
    lbvh_real least[3], most[3];
    lbvh_i_bounds_in(tree, bounds_given, facts, least, most);
    return lbvh_i_lattice_of(tree.desc.dim, tree.desc.bits, least, most);
}

/* Is the lattice fit (lbvh.h, >>quantiles)? One block. */
__global__ void __launch_bounds__(lbvh_i_sort_block)
    lbvh_i_fit_kernel(__grid_constant__ const lbvh_device device, lbvh_i_input input,
                      bool bounds_given, lbvh_i_quantiles *quantiles, lbvh_cuda_facts *facts)
{
    lbvh_i_wait_for_kernel_before();
    const lbvh &tree = device.tree;
    __shared__ lbvh_lattice lattice;
    __shared__ lbvh_i_block_sample sample;
    if (threadIdx.x == 0) {
        lbvh_real least[3], most[3];
        lbvh_i_bounds_in(tree, bounds_given, facts, least, most);
        lbvh_i_set_bounds(least, most, sample);
        lattice = lbvh_i_lattice_of(tree.desc.dim, tree.desc.bits, least, most);
    }
    lbvh_i_take_sample(tree.desc, input, tree.n, sample);
    __syncthreads();
    if (!lbvh_i_lattice_fails(tree.desc, lattice, sample)) return;
    lbvh_i_make_knots(tree.desc.dim, sample, quantiles);
    if (threadIdx.x == 0) facts->by_quantiles = 1;
}

/* What codes are made by, if not by the lattice. */
__device__ __forceinline__ const lbvh_i_quantiles *lbvh_i_quantiles_in(const lbvh_i_long &codes,
                                                                       const lbvh_cuda_facts *facts)
{
    return facts->by_quantiles ? codes.quantiles : nullptr;
}

/* Ranks samples. A block computes all of them, and ranks one for each of its warps. */
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_sample_kernel(__grid_constant__ const lbvh_device device, lbvh_i_input input,
                         bool bounds_given, lbvh_i_long to, lbvh_cuda_facts *facts)
{
    lbvh_i_wait_for_kernel_before();
    const lbvh &tree = device.tree;
    __shared__ lbvh_lattice lattice;
    __shared__ uint64_t codes[lbvh_i_most_samples];
    if (threadIdx.x == 0) lattice = lbvh_i_lattice_in(tree, bounds_given, facts);
    __syncthreads();
    for (int s = (int)threadIdx.x; s < to.samples; s += (int)blockDim.x) {
        lbvh_result valid;
        int64_t const i = (2 * (int64_t)s + 1) * tree.n / (2 * to.samples);
        codes[s] = lbvh_i_code_of(tree, lattice, lbvh_i_quantiles_in(to, facts), input, (int32_t)i,
                                  &valid);
    }
    __syncthreads();
    int const own = lbvh_i_thread() / 32, lane = (int)(threadIdx.x % 32),
              lower = lbvh_i_code_bits(&tree.desc) - lbvh_i_alike_bits;
    if (own >= to.samples) return;
    uint64_t const code = codes[own];
    int rank = 0;
    bool alike = false;
    for (int s = lane; s < to.samples; s += 32) {
        rank += codes[s] < code || (codes[s] == code && s < own);
        alike |= (codes[s] ^ code) >> lower == 0 && s != own;
    }
    for (int step = 16; step > 0; step /= 2) rank += __shfl_xor_sync(0xFFFFFFFFu, rank, step);
    if (alike) (void)atomicMax(&facts->clustered, 1);
    if (lane == 0) to.sample[rank] = code;
}

/* A logarithm to base 2 that is linear between powers of 2, in steps of 2^-14: below 2^20. */
__device__ __forceinline__ uint32_t lbvh_i_logarithm(uint64_t x)
{
    if (x >> lbvh_i_mantissa_bits == 0) return (uint32_t)x;
    int const exponent = 63 - lbvh_i_mantissa_bits - lbvh_i_leading_zeros(x);
    return ((uint32_t)exponent << lbvh_i_mantissa_bits) + (uint32_t)(x >> exponent);
}

/* Steps of a distance, of up to half an interval: below 2^20, in the order of distances. (Every
   rounding keeps the order.) */
__device__ __forceinline__ uint32_t lbvh_i_steps(uint64_t distance, uint64_t half)
{
    float const share = half > 0 ? __fdiv_rn((float)distance, (float)half) : 1,
                root = __fsqrt_rn(__fsqrt_rn(share));
    return lbvh_i_logarithm(distance) / 2 + (uint32_t)(root * (float)((1 << 19) - 1));
}

/* The key of a code relative to samples. */
__device__ uint32_t lbvh_i_relative_key(const uint64_t *sample, int samples, uint64_t code)
{
    int low = 0, high = samples; /* bisection: low becomes the number of samples below the code */
    while (low < high) {
        int const middle = (low + high) / 2;
        if (sample[middle] < code) low = middle + 1;
        else high = middle;
    }
    uint32_t const interval = 2 * (uint32_t)low, most = (1u << lbvh_i_distance_bits) - 1;
    if (low < samples && sample[low] == code) return (interval + 1) << lbvh_i_distance_bits;
    uint64_t const above = code - (low > 0 ? sample[low - 1] : 0),
                   below = (low < samples ? sample[low] : ~(uint64_t)0) - code,
                   half = above / 2 + below / 2 + (above & below & 1);
    return interval << lbvh_i_distance_bits |
           (above <= below ? lbvh_i_steps(above, half) : most - lbvh_i_steps(below, half));
}

/* Keys and ids, for the sort; Long: codes of 63 bits, and their codes. Reports invalid elements. */
template <bool Long>
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_keys_kernel(__grid_constant__ const lbvh_device device, lbvh_i_input input,
                       bool bounds_given, lbvh_i_long codes, uint32_t *keys, int32_t *ids,
                       lbvh_cuda_facts *facts)
{
    lbvh_i_wait_for_kernel_before();
    const lbvh &tree = device.tree;
    __shared__ lbvh_lattice lattice;
    __shared__ uint64_t sample[Long ? lbvh_i_most_samples : 1];
    int const lower = lbvh_i_code_bits(&tree.desc) - 32;
    bool const relative = Long && facts->clustered;
    const lbvh_i_quantiles *const quantiles = lbvh_i_quantiles_in(codes, facts);
    if (threadIdx.x == 0) lattice = lbvh_i_lattice_in(tree, bounds_given, facts);
    if (relative)
        for (int s = (int)threadIdx.x; s < codes.samples; s += (int)blockDim.x)
            sample[s] = codes.sample[s];
    __syncthreads();
    for (int64_t i = lbvh_i_thread(); i < tree.n; i += gridDim.x * blockDim.x) {
        lbvh_result valid;
        uint64_t const code = lbvh_i_code_of(tree, lattice, quantiles, input, (int32_t)i, &valid);
        if (valid != LBVH_OK) lbvh_i_report(facts, valid, (int32_t)i);
        if (Long) codes.code[i] = code;
        uint32_t const key = relative ? lbvh_i_relative_key(sample, codes.samples, code)
                                      : (uint32_t)(Long ? code >> lower : code);
        keys[i] = Long ? key >> (32 - codes.key_bits) : key;
        ids[i] = (int32_t)i;
    }
}

/* Equal keys in a row. In memory of the sort: `first` and `other` lie in its spare halves. */
struct lbvh_i_ties {
    const uint32_t *key;
    int32_t *id;          /* [n] */
    int32_t *other;       /* [n] for merging */
    const uint64_t *code; /* by element */
    int32_t *first;       /* [facts->runs] where long runs begin */
    int interval_bit;     /* the lowest bit of a key's interval */
};

constexpr int32_t lbvh_i_short_run = 16;

/* Finds the runs. Sorts the short ones, by insertion, and lists the others. */
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_ties_kernel(int32_t n, lbvh_i_ties ties, lbvh_cuda_facts *facts)
{
    lbvh_i_wait_for_kernel_before();
    int32_t const k = lbvh_i_thread();
    if (k + 1 >= n) return;
    uint32_t const key = ties.key[k];
    if (ties.key[k + 1] != key || (k > 0 && ties.key[k - 1] == key)) return;
    /* the same code as a sample */
    if (facts->clustered && (key >> ties.interval_bit) % 2 == 1) return;
    int32_t end = k + 2;
    while (end < n && end - k <= lbvh_i_short_run && ties.key[end] == key) end++;
    if (end - k > lbvh_i_short_run) {
        ties.first[atomicAdd(&facts->runs, 1)] = k;
        return;
    }
    for (int32_t next = k + 1; next < end; next++) {
        int32_t const id = ties.id[next];
        uint64_t const code = ties.code[id];
        int32_t to = next;
        for (; to > k && ties.code[ties.id[to - 1]] > code; to--) ties.id[to] = ties.id[to - 1];
        ties.id[to] = id;
    }
}

constexpr int lbvh_i_chunk_room = 1024;

/* Elements in shared memory. */
struct lbvh_i_run_chunk {
    uint64_t code[lbvh_i_chunk_room];
    int32_t id[lbvh_i_chunk_room];
};

/* Bitonic sort (Batcher 1968) of `size` elements, a power of 2, by a block. */
__device__ void lbvh_i_sort_chunk(lbvh_i_run_chunk &chunk, int size)
{
    for (int width = 2; width <= size; width *= 2)
        for (int step = width / 2; step > 0; step /= 2) {
            for (int pair = (int)threadIdx.x; pair < size / 2; pair += (int)blockDim.x) {
                int const a = pair / step * 2 * step + pair % step, b = a + step;
                uint64_t const code_a = chunk.code[a], code_b = chunk.code[b];
                int32_t const id_a = chunk.id[a], id_b = chunk.id[b];
                bool const descending = (a & width) != 0;
                if (lbvh_i_before(code_b, id_b, code_a, id_a) == descending) continue;
                chunk.code[a] = code_b, chunk.code[b] = code_a;
                chunk.id[a] = id_b, chunk.id[b] = id_a;
            }
            __syncthreads();
        }
}

/* Sorts up to 1024 ids by their codes. What fills up to a power of 2 comes last. */
__device__ void lbvh_i_sort_ids(int32_t *ids, int32_t m, const uint64_t *code)
{
    __shared__ lbvh_i_run_chunk chunk;
    int size = 32;
    while (size < m) size *= 2;
    for (int x = (int)threadIdx.x; x < size; x += (int)blockDim.x) {
        chunk.id[x] = x < m ? ids[x] : INT_MAX;
        chunk.code[x] = x < m ? code[chunk.id[x]] : ~(uint64_t)0;
    }
    __syncthreads();
    lbvh_i_sort_chunk(chunk, size);
    for (int x = (int)threadIdx.x; x < m; x += (int)blockDim.x) ids[x] = chunk.id[x];
    __syncthreads();
}

/* Ids that a thread merges at a time: their searches overlap. */
constexpr int lbvh_i_merge_items = 4;

/* Merges neighbouring sorted chunks of m ids, `width` long, a power of 2: an id moves by the number
   of ids of the other chunk that come before it, found by steps of halved length. */
__device__ void lbvh_i_merge_chunks(const int32_t *from, int32_t *to, int64_t m, int64_t width,
                                    const uint64_t *code)
{
    constexpr int items = lbvh_i_merge_items;
    for (int64_t x = threadIdx.x; x < m; x += items * (int)blockDim.x) {
        int32_t id[items];
        uint64_t own[items];
        int64_t other[items], length[items], count[items];
#pragma unroll
        for (int t = 0; t < items; t++) {
            int64_t const k = x + t * (int)blockDim.x < m ? x + t * (int)blockDim.x : x,
                          rest = m - (k / width ^ 1) * width;
            id[t] = from[k];
            own[t] = code[id[t]];
            other[t] = m - rest;
            length[t] = rest < 0 ? 0 : rest < width ? rest : width;
            count[t] = 0;
        }
        for (int64_t step = width; step > 0; step /= 2) {
#pragma unroll
            for (int t = 0; t < items; t++) {
                int64_t const next = count[t] + step;
                if (next > length[t]) continue;
                int32_t const there = from[other[t] + next - 1];
                if (lbvh_i_before(code[there], there, own[t], id[t])) count[t] = next;
            }
        }
#pragma unroll
        for (int t = 0; t < items; t++) {
            int64_t const k = x + t * (int)blockDim.x;
            if (k < m) to[k / (2 * width) * (2 * width) + k % width + count[t]] = id[t];
        }
    }
    __syncthreads();
}

/* Length of the run that begins at `first`: by a block. */
__device__ int32_t lbvh_i_run_length(const uint32_t *key, int32_t first, int32_t n)
{
    int64_t end = first;
    int more;
    do {
        int64_t const at = end + threadIdx.x;
        more = __syncthreads_count(at < n && key[at] == key[first]);
        end += more;
    } while (more == (int)blockDim.x);
    return (int32_t)(end - first);
}

/* Sorts the long runs, one at a time per block. */
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_runs_kernel(int32_t n, lbvh_i_ties ties, const lbvh_cuda_facts *facts)
{
    lbvh_i_wait_for_kernel_before();
    for (int32_t r = (int32_t)blockIdx.x; r < facts->runs; r += (int32_t)gridDim.x) {
        int32_t const first = ties.first[r], m = lbvh_i_run_length(ties.key, first, n);
        int32_t *from = ties.id + first, *to = ties.other + first;
        for (int32_t x = 0; x < m; x += lbvh_i_chunk_room)
            lbvh_i_sort_ids(from + x, m - x < lbvh_i_chunk_room ? m - x : lbvh_i_chunk_room,
                            ties.code);
        for (int64_t width = lbvh_i_chunk_room; width < m; width *= 2) {
            lbvh_i_merge_chunks(from, to, m, width, ties.code);
            int32_t *const merged = to;
            to = from, from = merged;
        }
        if (from == ties.id + first) continue; /* in place already */
        for (int32_t x = (int32_t)threadIdx.x; x < m; x += (int32_t)blockDim.x) to[x] = from[x];
    }
}

/* Bounds and keys, of codes of 30 or 63 bits. */
template <bool Long>
lbvh_result lbvh_i_make_keys(lbvh_cuda *gpu, lbvh_i_input input, const lbvh_i_long &codes,
                             lbvh_i_sort *sort, cudaStream_t stream)
{
    int32_t const n = gpu->device.tree.n;
    int64_t const threads = lbvh_i_at_most(n, lbvh_i_grid_stride_threads);
    bool const given = lbvh_i_bounds_given(&gpu->device.tree.desc);
    lbvh_result result = lbvh_i_clear_facts(gpu, stream);
    if (result == LBVH_OK && !given)
        result = lbvh_i_launch(gpu, stream, threads, lbvh_i_block_threads, lbvh_i_bounds_kernel,
                               gpu->device, input, n, gpu->d_facts);
    if (result == LBVH_OK)
        result = lbvh_i_launch_early(gpu, stream, !given, lbvh_i_sort_block, lbvh_i_sort_block,
                                     lbvh_i_fit_kernel, gpu->device, input, given, codes.quantiles,
                                     gpu->d_facts);
    if (result == LBVH_OK && Long)
        result = lbvh_i_launch_early(gpu, stream, true, 32 * (int64_t)codes.samples,
                                     lbvh_i_block_threads, lbvh_i_sample_kernel, gpu->device,
                                     input, given, codes, gpu->d_facts);
    if (result != LBVH_OK) return result;
    return lbvh_i_launch_early(gpu, stream, true, threads, lbvh_i_block_threads,
                               lbvh_i_keys_kernel<Long>, gpu->device, input, given, codes,
                               sort->keys.Current(), sort->ids.Current(), gpu->d_facts);
}

/* Sorts elements with equal keys by their codes. */
lbvh_result lbvh_i_sort_ties(lbvh_cuda *gpu, const lbvh_i_long &codes, lbvh_i_sort *sort,
                             cudaStream_t stream)
{
    int32_t const n = gpu->device.tree.n;
    lbvh_i_ties const ties = {sort->keys.Current(), sort->ids.Current(), sort->ids.Alternate(),
                              codes.code,
                              reinterpret_cast<int32_t *>(sort->keys.Alternate()),
                              lbvh_i_distance_bits - (32 - codes.key_bits)};
    lbvh_result const result = lbvh_i_launch_early(gpu, stream, true, n, lbvh_i_block_threads,
                                                   lbvh_i_ties_kernel, n, ties, gpu->d_facts);
    if (result != LBVH_OK) return result;
    return lbvh_i_launch_early(gpu, stream, true, lbvh_i_at_most(n, lbvh_i_grid_stride_threads),
                               lbvh_i_block_threads, lbvh_i_runs_kernel, n, ties,
                               (const lbvh_cuda_facts *)gpu->d_facts);
}

/* Sorts the elements by their keys. */
lbvh_result lbvh_i_sort_by_keys(lbvh_cuda *gpu, lbvh_i_input input, lbvh_i_sort *sort,
                                lbvh_i_keyed_codes *codes, cudaStream_t stream)
{
    int32_t const n = gpu->device.tree.n;
    bool const is_long = gpu->device.tree.desc.bits == 63;
    int const key_bits = lbvh_i_key_bits(&gpu->device.tree.desc, n);
    uint64_t *const code = is_long ? lbvh_i_scratch<uint64_t>(gpu, LBVH_I_LONG) : nullptr;
    lbvh_i_long to = {};
    if (is_long) to = {code, code + n, lbvh_i_samples(n), key_bits, nullptr};
    to.quantiles = lbvh_i_scratch<lbvh_i_quantiles>(gpu, LBVH_I_TEMP);
    lbvh_result result = is_long ? lbvh_i_make_keys<true>(gpu, input, to, sort, stream)
                                 : lbvh_i_make_keys<false>(gpu, input, to, sort, stream);
    if (result == LBVH_OK) result = lbvh_i_sort_by_digits(gpu, sort, n, key_bits, stream);
    if (result == LBVH_OK && is_long) result = lbvh_i_sort_ties(gpu, to, sort, stream);
    *codes = {sort->keys.Current(), sort->ids.Current(), code, gpu->d_facts, key_bits};
    return result;
}

/* ------------------------------------------------------------------------------------------------
   >>copies: trees between host and device
   ---------------------------------------------------------------------------------------------- */

/* Copies one array between host and device. */
lbvh_result lbvh_i_copy(lbvh_cuda *gpu, void *to, const void *from, size_t bytes,
                        cudaMemcpyKind kind, cudaStream_t stream)
{
    if (bytes == 0) return LBVH_OK;
    return lbvh_i_failed(gpu, cudaMemcpyAsync(to, from, bytes, kind, stream)) ? LBVH_CUDA_ERROR
                                                                              : LBVH_OK;
}

/* Indices stay on the other side: a copied tree is refitted with boxes. */
void lbvh_i_forget_indices(lbvh_desc *desc)
{
    if (desc->kind == LBVH_TRIANGLES && desc->indices) desc->kind = LBVH_BOXES;
    desc->indices = nullptr;
}

/* All arrays of a tree of n > 0 leaves. */
lbvh_result lbvh_i_copy_tree(lbvh_cuda *gpu, const lbvh *to, const lbvh *from, cudaMemcpyKind kind,
                             cudaStream_t stream)
{
    lbvh_block there[LBVH_BLOCKS], here[LBVH_BLOCKS];
    lbvh_i_arrays_of(to, there);
    lbvh_i_arrays_of(from, here);
    for (int b = 0; b < 3; b++) {
        lbvh_result const result = lbvh_i_copy(gpu, there[b].memory, here[b].memory, here[b].bytes,
                                               kind, stream);
        if (result != LBVH_OK) return result;
    }
    if (!from->code) return LBVH_OK;
    return lbvh_i_copy(gpu, to->code, from->code, (size_t)from->n * sizeof *from->code, kind,
                       stream);
}

} // namespace

/* ------------------------------------------------------------------------------------------------
   >>cuda-api: the functions that the header declares
   ---------------------------------------------------------------------------------------------- */

extern "C" {

LBVH_API lbvh_result lbvh_cuda_reserve(lbvh_cuda *gpu, const lbvh_desc *desc, int32_t n,
                                       int32_t queries, struct CUstream_st *stream)
{
    if (!gpu || n < 0 || queries < 0) return LBVH_BAD_ARGUMENT;
    if (queries > LBVH_I_N_MAX) return LBVH_TOO_MANY;
    lbvh_result result = lbvh_i_cuda_begin(gpu, desc, stream);
    if (result == LBVH_OK) result = lbvh_i_cuda_prepare(gpu, n, LBVH_I_EXACT, stream);
    if (result == LBVH_OK && n > 0 && queries >= n)
        result = lbvh_i_prepare_pairs(gpu, n, LBVH_I_EXACT, stream);
    if (result != LBVH_OK) return result;
    int32_t const most = queries > n ? queries : n;
    return lbvh_i_prepare_search(gpu, most, queries > 0, queries > 0, LBVH_I_EXACT, stream);
}

LBVH_API lbvh_result lbvh_cuda_bytes_for(const lbvh_desc *desc, int32_t n, int32_t queries,
                                         int64_t *bytes)
{
    size_t blocks[LBVH_BLOCKS], scratch[LBVH_CUDA_SCRATCH] = {};
    lbvh_cuda gpu = {};
    if (!bytes) return LBVH_BAD_ARGUMENT;
    *bytes = 0;
    if (n < 0 || queries < 0) return LBVH_BAD_ARGUMENT;
    if (queries > LBVH_I_N_MAX) return LBVH_TOO_MANY;
    lbvh_result result = lbvh_i_cuda_begin(&gpu, desc, nullptr);
    if (result == LBVH_OK) result = lbvh_i_build_sizes(&gpu, n, blocks, scratch);
    if (result == LBVH_OK && n > 0 && queries >= n) result = lbvh_i_pair_sizes(&gpu, n, scratch);
    if (result == LBVH_OK)
        result = lbvh_i_search_sizes(&gpu, queries > n ? queries : n, queries > 0, queries > 0,
                                     scratch);
    if (result != LBVH_OK) return result;
    for (int b = 0; b < LBVH_BLOCKS; b++) *bytes += (int64_t)blocks[b];
    for (int b = 0; b < LBVH_CUDA_SCRATCH; b++) *bytes += (int64_t)scratch[b];
    return LBVH_OK;
}

LBVH_API lbvh_result lbvh_cuda_build(lbvh_cuda *gpu, const lbvh_desc *desc, const lbvh_real *d_data,
                                     size_t stride, int32_t n, struct CUstream_st *stream)
{
    if (!gpu) return LBVH_BAD_ARGUMENT;
    lbvh *tree = &gpu->device.tree;
    lbvh_i_make_empty(tree);
    if (n < 0 || (n > 0 && !d_data)) return LBVH_BAD_ARGUMENT;
    lbvh_result result = lbvh_i_cuda_begin(gpu, desc, stream);
    if (result != LBVH_OK) return result;
    if (tree->desc.builder == LBVH_PLOC) return LBVH_BAD_OPTION; /* serial alone */
    lbvh_i_input const input = {d_data, lbvh_i_stride(&tree->desc, stride)};
    if (input.stride == 0) return LBVH_BAD_ARGUMENT;
    result = lbvh_i_cuda_prepare(gpu, n, LBVH_I_AHEAD, stream);
    tree->built = result == LBVH_OK;
    if (result != LBVH_OK || n == 0) return result;
    tree->n = n;
    tree->first_leaf = n - 1;
    result = lbvh_i_cuda_build(gpu, input, stream);
    if (result != LBVH_OK) tree->built = tree->n = tree->first_leaf = 0;
    return result;
}

LBVH_API lbvh_result lbvh_cuda_refit(lbvh_cuda *gpu, const lbvh_real *d_data, size_t stride,
                                     struct CUstream_st *stream)
{
    if (!gpu) return LBVH_BAD_ARGUMENT;
    lbvh *tree = &gpu->device.tree;
    if (tree->n > 0 && !d_data) return LBVH_BAD_ARGUMENT;
    if (!tree->built) return LBVH_NOT_BUILT;
    lbvh_i_input const input = {d_data, lbvh_i_stride(&tree->desc, stride)};
    if (input.stride == 0) return LBVH_BAD_ARGUMENT;
    if (tree->n == 0) return LBVH_OK;
    if (tree->desc.builder == LBVH_PLOC) tree->mixed = 1;
    lbvh_result result = lbvh_i_clear_facts(gpu, stream);
    if (result == LBVH_OK)
        result = lbvh_i_launch(gpu, stream, tree->n, lbvh_i_block_threads,
                               lbvh_i_note_invalid_kernel, gpu->device, input, gpu->d_facts);
    if (result == LBVH_OK)
        result = lbvh_i_cuda_merge(gpu, input, lbvh_i_sorted_codes(), nullptr,
                                             lbvh_i_scratch<int32_t>(gpu, LBVH_I_IDS_A),
                                             lbvh_i_scratch<int32_t>(gpu, LBVH_I_IDS_B), stream);
    /* it may be half updated */
    if (result != LBVH_OK) tree->built = tree->n = tree->first_leaf = 0;
    return result;
}

LBVH_API lbvh_result lbvh_cuda_check(lbvh_cuda *gpu, struct CUstream_st *stream)
{
    static const lbvh_result kinds[3] = {LBVH_NOT_FINITE, LBVH_INVERTED, LBVH_BAD_INDEX};
    lbvh_cuda_facts facts = {};
    lbvh_result result = LBVH_OK;
    int32_t first = 0;
    if (!gpu) return LBVH_BAD_ARGUMENT;
    lbvh *tree = &gpu->device.tree;
    if (!tree->built) return LBVH_NOT_BUILT;
    tree->bad_id = -1;
    if (tree->n > 0) /* no facts exist for n = 0 */
        result = lbvh_i_copy(gpu, &facts, gpu->d_facts, sizeof facts, cudaMemcpyDeviceToHost,
                             stream);
    if (result != LBVH_OK) return result;
    if (lbvh_i_failed(gpu, cudaStreamSynchronize(stream))) return LBVH_CUDA_ERROR;
    for (int kind = 0; kind < 3; kind++) {
        /* INT_MAX - i: largest for the first element */
        if (facts.first_bad[kind] <= first) continue;
        first = facts.first_bad[kind];
        tree->bad_id = INT_MAX - first;
        result = kinds[kind];
    }
    return result;
}

LBVH_API void lbvh_cuda_free(lbvh_cuda *gpu)
{
    if (!gpu) return;
    for (int b = 0; b < LBVH_BLOCKS; b++)
        lbvh_i_cuda_release(&gpu->device.tree.desc.cuda_allocator, &gpu->block[b], gpu->stream);
    for (int b = 0; b < LBVH_CUDA_SCRATCH; b++)
        lbvh_i_cuda_release(&gpu->device.tree.desc.cuda_allocator, &gpu->scratch[b], gpu->stream);
    memset(gpu, 0, sizeof *gpu);
}

LBVH_API lbvh_result lbvh_cuda_upload(lbvh_cuda *gpu, const lbvh *tree, struct CUstream_st *stream)
{
    if (!gpu || !tree) return LBVH_BAD_ARGUMENT;
    if (!tree->built) return LBVH_NOT_BUILT;
    lbvh *device = &gpu->device.tree;
    lbvh_desc desc = tree->desc;
    desc.cuda_allocator = device->desc.cuda_allocator.alloc ? device->desc.cuda_allocator
                                                            : tree->desc.cuda_allocator;
    lbvh_i_forget_indices(&desc);
    lbvh_result result = lbvh_i_cuda_begin(gpu, &desc, stream);
    if (result == LBVH_OK) result = lbvh_i_cuda_prepare(gpu, tree->n, LBVH_I_AHEAD, stream);
    if (result != LBVH_OK) return result;
    device->lattice = tree->lattice;
    device->mixed = tree->mixed;
    if (tree->n > 0) result = lbvh_i_copy_tree(gpu, device, tree, cudaMemcpyHostToDevice, stream);
    if (result == LBVH_OK && tree->n > 0) result = lbvh_i_clear_facts(gpu, stream);
    if (result != LBVH_OK) return result;
    device->built = 1;
    device->n = tree->n;
    device->first_leaf = tree->first_leaf;
    if (tree->n > 0) result = lbvh_i_make_slices(gpu, stream);
    if (result != LBVH_OK) device->built = device->n = device->first_leaf = 0;
    return result;
}

LBVH_API lbvh_result lbvh_cuda_download(lbvh *tree, const lbvh_cuda *gpu,
                                        struct CUstream_st *stream)
{
    if (!tree || !gpu) return LBVH_BAD_ARGUMENT;
    const lbvh *device = &gpu->device.tree;
    lbvh_cuda errors = {};
    lbvh_desc desc = device->desc;
    desc.allocator = tree->desc.allocator;
    if (!device->built) return LBVH_NOT_BUILT;
    lbvh_i_forget_indices(&desc);
    lbvh_result result = lbvh_i_begin(tree, &desc);
    if (result == LBVH_OK) result = lbvh_i_prepare(tree, device->n, LBVH_I_AHEAD);
    if (result != LBVH_OK) return result;
    if (device->n > 0)
        result = lbvh_i_copy_tree(&errors, tree, device, cudaMemcpyDeviceToHost, stream);
    if (lbvh_i_failed(&errors, cudaStreamSynchronize(stream))) result = LBVH_CUDA_ERROR;
    tree->cuda_error = errors.device.tree.cuda_error;
    if (result != LBVH_OK) return result;
    tree->mixed = device->mixed;
    tree->built = 1;
    tree->n = device->n;
    tree->first_leaf = device->first_leaf;
    return LBVH_OK;
}

LBVH_API lbvh_result lbvh_cuda_boxes(lbvh_cuda *gpu, const lbvh_desc *desc, const lbvh_real *d_data,
                                     size_t stride, int32_t n, lbvh_real *d_boxes,
                                     struct CUstream_st *stream)
{
    lbvh_desc given;
    if (!gpu || n < 0 || (n > 0 && (!d_data || !d_boxes))) return LBVH_BAD_ARGUMENT;
    if (n > LBVH_I_N_MAX) return LBVH_TOO_MANY;
    lbvh_result const result = lbvh_defaults(&given, desc);
    if (result != LBVH_OK) return result;
    lbvh_i_input const input = {d_data, lbvh_i_stride(&given, stride)};
    if (input.stride == 0) return LBVH_BAD_ARGUMENT;
    return lbvh_i_launch(gpu, stream, n, lbvh_i_block_threads, lbvh_i_element_boxes_kernel, given,
                         input, n, d_boxes);
}

LBVH_API lbvh_result lbvh_cuda_count_pairs(lbvh_cuda *gpu, int64_t *d_pairs_found,
                                           struct CUstream_st *stream)
{
    if (!gpu || !d_pairs_found) return LBVH_BAD_ARGUMENT;
    if (!gpu->device.tree.built) return LBVH_NOT_BUILT;
    if (lbvh_i_failed(gpu, cudaMemsetAsync(d_pairs_found, 0, sizeof *d_pairs_found, stream)))
        return LBVH_CUDA_ERROR;
    return lbvh_i_launch(gpu, stream, gpu->device.tree.n, lbvh_i_search_block,
                         lbvh_i_count_pairs_kernel, gpu->device,
                         reinterpret_cast<unsigned long long *>(d_pairs_found), (int64_t *)nullptr,
                         lbvh_i_kept_pairs{});
}

LBVH_API lbvh_result lbvh_cuda_pairs(lbvh_cuda *gpu, int32_t *d_pairs, int64_t capacity,
                                     int64_t *d_needed, struct CUstream_st *stream)
{
    if (!gpu || !d_needed || capacity < 0 || (capacity > 0 && !d_pairs)) return LBVH_BAD_ARGUMENT;
    if (!gpu->device.tree.built) return LBVH_NOT_BUILT;
    int32_t const n = gpu->device.tree.n;
    if (n == 0)
        return lbvh_i_failed(gpu, cudaMemsetAsync(d_needed, 0, sizeof *d_needed, stream))
                   ? LBVH_CUDA_ERROR
                   : LBVH_OK;
    lbvh_result result = lbvh_i_prepare_pairs(gpu, n, LBVH_I_AHEAD, stream);
    int64_t *const rows = lbvh_i_scratch<int64_t>(gpu, LBVH_I_ROWS);
    lbvh_i_kept_pairs kept = {};
    if (result == LBVH_OK && capacity > 0) result = lbvh_i_begin_kept_pairs(gpu, &kept, stream);
    if (result == LBVH_OK)
        result = lbvh_i_launch(gpu, stream, (int64_t)n + 1, lbvh_i_search_block,
                               lbvh_i_count_pairs_kernel, gpu->device,
                               (unsigned long long *)nullptr, rows, kept);
    if (result == LBVH_OK) result = lbvh_i_scan_rows(gpu, rows, n, stream);
    if (result == LBVH_OK)
        result = lbvh_i_copy(gpu, d_needed, rows + n, sizeof *d_needed, cudaMemcpyDeviceToDevice,
                             stream);
    if (result != LBVH_OK || capacity == 0) return result;
    return lbvh_i_launch(gpu, stream, n, lbvh_i_search_block, lbvh_i_fill_pairs_kernel, gpu->device,
                         (const int64_t *)rows, kept, d_pairs, capacity);
}

LBVH_API lbvh_result lbvh_cuda_count_overlaps(lbvh_cuda *gpu, const lbvh_queries *queries,
                                              int32_t *d_counts, struct CUstream_st *stream)
{
    lbvh_queries resolved;
    const int32_t *order;
    lbvh_result result = lbvh_i_begin_search(gpu, queries, false, &resolved, stream);
    if (result != LBVH_OK) return result;
    if (resolved.n > 0 && !d_counts) return LBVH_BAD_ARGUMENT;
    result = lbvh_i_order_queries(gpu, resolved, &order, stream);
    if (result != LBVH_OK) return result;
    return lbvh_i_launch_counts(gpu, resolved, order, d_counts, lbvh_i_kept_hits{}, stream);
}

LBVH_API lbvh_result lbvh_cuda_overlaps(lbvh_cuda *gpu, const lbvh_queries *queries,
                                        int64_t *d_offsets, int32_t *d_ids, int64_t capacity,
                                        struct CUstream_st *stream)
{
    lbvh_queries resolved;
    const int32_t *order;
    if (!d_offsets || capacity < 0 || (capacity > 0 && !d_ids)) return LBVH_BAD_ARGUMENT;
    lbvh_result result = lbvh_i_begin_search(gpu, queries, capacity > 0, &resolved, stream);
    if (result == LBVH_OK) result = lbvh_i_order_queries(gpu, resolved, &order, stream);
    if (result != LBVH_OK) return result;
    if (lbvh_i_failed(gpu, cudaMemsetAsync(d_offsets + resolved.n, 0, sizeof *d_offsets, stream)))
        return LBVH_CUDA_ERROR;
    lbvh_i_kept_hits kept = {};
    if (capacity > 0) result = lbvh_i_keep_hits(gpu, resolved.n, &kept, stream);
    if (result != LBVH_OK) return result;
    result = lbvh_i_launch_counts(gpu, resolved, order, d_offsets, kept, stream);
    if (result == LBVH_OK) result = lbvh_i_scan_rows(gpu, d_offsets, resolved.n, stream);
    if (result != LBVH_OK || capacity == 0) return result;
    return lbvh_i_launch_fill(gpu, resolved, order, d_offsets, d_ids, capacity, kept, stream);
}

LBVH_API lbvh_result lbvh_cuda_nearest(lbvh_cuda *gpu, const lbvh_real *d_points, size_t stride,
                                       int32_t m, int32_t k, lbvh_real reach, int flags,
                                       int32_t *d_ids, lbvh_real *d_distances2, int32_t *d_found,
                                       struct CUstream_st *stream)
{
    lbvh_queries points = {}, resolved;
    const int32_t *order;
    if (m < 0 || k < 0 ||
        (m > 0 && (!d_points || !d_found || (k > 0 && (!d_ids || !d_distances2)))))
        return LBVH_BAD_ARGUMENT;
    if (flags & ~(int)LBVH_SORTED) return LBVH_BAD_OPTION;
    if (!(reach >= 0)) return LBVH_BAD_RADIUS;
    static const lbvh_real nowhere[3] = {0, 0, 0};
    points.kind = LBVH_POINTS;
    points.data = m > 0 ? d_points : nowhere;
    points.stride = stride;
    points.n = m;
    points.flags = flags;
    lbvh_result result = lbvh_i_begin_search(gpu, &points, false, &resolved, stream);
    if (result == LBVH_OK && m == 0) return LBVH_OK;
    if (result == LBVH_OK && k == 0)
        return lbvh_i_failed(gpu, cudaMemsetAsync(d_found, 0, (size_t)m * sizeof *d_found, stream))
                   ? LBVH_CUDA_ERROR
                   : LBVH_OK;
    if (result == LBVH_OK) result = lbvh_i_order_queries(gpu, resolved, &order, stream);
    if (result != LBVH_OK) return result;
    return lbvh_i_launch_nearest(gpu, resolved, order, k, reach, d_ids, d_distances2, d_found,
                                 stream);
}

} /* extern "C" */
