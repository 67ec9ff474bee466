/* cuda/nlist.cu - v0.2.0 - the CUDA part of nlist.h, which includes it; names are those there.
   SPDX-License-Identifier: MIT OR Unlicense

   For the one .cu file with NLIST_IMPLEMENTATION. What every .cu file needs that calls the GPU is
   in cuda/nlist_templates.cu; boxes are in cuda/nlist_boxes.cu.

   A build is a sequence of kernels in one stream. Both sides decide about a pair by the same
   NLIST_FN function.

       begin         resets the facts about this build; radii: the largest; uids
       count, scan   COMPACT, and deterministic lists with a rest: the length of each row, and by an
                     exclusive prefix sum its begin
       search        a thread per row finds its partners and writes them (after a count: it searches
                     again)
       reference     positions that the skin is measured from
       carry         each new entry looks up its history in the old row
       events        count, scan, write: contacts that began or persist; then those that ended
       swap          if all has fitted, the new rows become the list. This is decided on the device:
                     `current` and the other values that only the device knows are the facts
                     (nlist_cuda_facts). Where history stays in place, it is moved here (>>in-place)

   >>contents: search for >>, the name and a colon. memory, rows, layout, shared, carry, in-place,
   build, sources, skin, remap, process, reserve, transfer. */

#ifndef NLIST_H
#error "cuda/nlist.cu is a part of nlist.h: include that"
#elif 10000 * NLIST_VERSION_MAJOR + 100 * NLIST_VERSION_MINOR + NLIST_VERSION_PATCH != 200
#error "cuda/nlist.cu 0.2.0 and nlist.h are of different versions: copy both from one release"
#endif

#include <cuda_runtime.h>
#include <cub/cub.cuh>

#include <climits>
#include <cstring>
#include <utility>

#ifdef NLIST_I_LBVH_CUDA
#include "lbvh_packets.cu"
#endif

namespace {

/* ----------------------------------------------------------------------------------------------
   >>memory: blocks of device memory
   ---------------------------------------------------------------------------------------------- */

enum {
    NLIST_I_LENGTHS, /* [n + 1] counts per row */
    NLIST_I_OFFSETS, /* [n + 1] their exclusive prefix sum */
    NLIST_I_TEMP,    /* CUB */
    NLIST_I_UNITS,   /* sums in units */
    NLIST_I_KEYS_A,  /* pairs as keys */
    NLIST_I_KEYS_B,
    NLIST_I_OLD_OF,  /* remap: old ids of new particles */
    NLIST_I_NEW_OF,  /* remap: new ids of old particles, -1 where invalid */
    NLIST_I_WORDS,   /* grids: the partners found by a first pass, as bits */
    NLIST_I_TABLE,   /* carry: the old entries of long rows */
    NLIST_I_PART_SCRATCH /* the first of those of a part */
};

constexpr int NLIST_I_FACTS = NLIST_I_BEGIN; /* the facts use a block of the serial code */
constexpr int nlist_i_block = 256;
constexpr int nlist_i_words = 18; /* words of bits per particle, kept by a first pass */
constexpr int nlist_i_half_words = 8; /* the same, twice, and one more, of half walks */

/* Notes the error of a CUDA call. True if there is one. */
bool nlist_i_failed(nlist_cuda *gpu, cudaError_t error)
{
    if (error == cudaSuccess) return false;
    gpu->device.list.cuda_error = (int32_t)error;
    (void)cudaGetLastError(); /* it is reported */
    return true;
}

/* Device memory from the allocator, or from cudaMallocAsync; NULL if there is none. */
void *nlist_i_cuda_alloc(const nlist_cuda_allocator *allocator, size_t bytes, cudaStream_t stream)
{
    void *memory = nullptr;
    if (allocator->alloc) return allocator->alloc(bytes, stream, allocator->user);
    if (cudaMallocAsync(&memory, bytes, stream) == cudaSuccess) return memory;
    (void)cudaGetLastError(); /* so that a later call does not return this error */
    return nullptr;
}

/* Frees a block in the order of the stream; it is empty afterwards. */
void nlist_i_cuda_release(const nlist_cuda_allocator *allocator, nlist_block *block,
                          cudaStream_t stream)
{
    if (block->memory && allocator->free)
        allocator->free(block->memory, block->bytes, stream, allocator->user);
    else if (block->memory) (void)cudaFreeAsync(block->memory, stream);
    block->memory = nullptr;
    block->bytes = 0;
}

/* Memory for `bytes` bytes, with all bits set, in place of a block of `had` bytes: 1.5 times `had`
   at least, or exactly `bytes` (nlist_i_grown_size). */
nlist_result nlist_i_cuda_take(nlist_cuda *gpu, nlist_block *block, size_t had, size_t bytes,
                               cudaStream_t stream)
{
    const nlist_cuda_allocator *allocator = &gpu->device.list.desc.cuda_allocator;
    block->bytes = nlist_i_grown_size(&gpu->device.list, had, bytes);
    block->memory = nlist_i_cuda_alloc(allocator, block->bytes, stream);
    if (!block->memory && block->bytes > bytes) {
        block->bytes = bytes;
        block->memory = nlist_i_cuda_alloc(allocator, bytes, stream);
    }
    if (!block->memory) block->bytes = 0;
    if (!block->memory) return NLIST_OUT_OF_MEMORY;
    return nlist_i_failed(gpu, cudaMemsetAsync(block->memory, 0xFF, block->bytes, stream))
               ? NLIST_CUDA_ERROR
               : NLIST_OK;
}

/* Room for `count` elements of `size` bytes. A block that grows loses its content, and has all bits
   set. */
nlist_result nlist_i_cuda_grow(nlist_cuda *gpu, nlist_block *block, int64_t count, size_t size,
                               cudaStream_t stream)
{
    size_t const had = block->bytes;
    size_t bytes;
    if (!nlist_i_bytes(&bytes, count, size)) return NLIST_OUT_OF_MEMORY;
    if (bytes <= had) return NLIST_OK;
    nlist_i_cuda_release(&gpu->device.list.desc.cuda_allocator, block, stream);
    return nlist_i_cuda_take(gpu, block, had, bytes, stream);
}

/* The same, but the content is kept, also when the allocation fails. */
nlist_result nlist_i_cuda_grow_keeping(nlist_cuda *gpu, nlist_block *block, int64_t count,
                                       size_t size, cudaStream_t stream)
{
    nlist_block larger = {nullptr, 0};
    size_t bytes;
    if (!nlist_i_bytes(&bytes, count, size)) return NLIST_OUT_OF_MEMORY;
    if (bytes <= block->bytes) return NLIST_OK;
    nlist_result result = nlist_i_cuda_take(gpu, &larger, block->bytes, bytes, stream);
    if (result == NLIST_OK && block->bytes > 0 &&
        nlist_i_failed(gpu, cudaMemcpyAsync(larger.memory, block->memory, block->bytes,
                                            cudaMemcpyDeviceToDevice, stream)))
        result = NLIST_CUDA_ERROR;
    nlist_i_cuda_release(&gpu->device.list.desc.cuda_allocator,
                         result == NLIST_OK ? block : &larger, stream);
    if (result == NLIST_OK) *block = larger;
    return result;
}

template <class T> T *nlist_i_scratch(nlist_cuda *gpu, int which)
{
    return static_cast<T *>(gpu->scratch[which].memory);
}

/* True if there are two generations; then the device knows which one is the list. */
bool nlist_i_cuda_keeps_two(const nlist_cuda *gpu) { return gpu->device.list.d_current != nullptr; }

/* Allocates the facts, all zero. */
nlist_result nlist_i_take_facts(nlist_cuda *gpu, cudaStream_t stream)
{
    nlist_block *block = &gpu->device.list.block[NLIST_I_FACTS];
    if (block->memory) return NLIST_OK;
    nlist_result const result = nlist_i_cuda_grow(gpu, block, 1, sizeof(nlist_cuda_facts), stream);
    if (result != NLIST_OK) return result;
    gpu->d_facts = static_cast<nlist_cuda_facts *>(block->memory);
    return nlist_i_failed(gpu, cudaMemsetAsync(gpu->d_facts, 0, sizeof *gpu->d_facts, stream))
               ? NLIST_CUDA_ERROR
               : NLIST_OK;
}

/* Waits, and copies the facts to the host. */
nlist_result nlist_i_fetch_facts(nlist_cuda *gpu, nlist_cuda_facts *facts, cudaStream_t stream)
{
    if (nlist_i_failed(gpu, cudaMemcpyAsync(facts, gpu->d_facts, sizeof *facts,
                                            cudaMemcpyDeviceToHost, stream)))
        return NLIST_CUDA_ERROR;
    return nlist_i_failed(gpu, cudaStreamSynchronize(stream)) ? NLIST_CUDA_ERROR : NLIST_OK;
}

/* Capacity of partner for a build of so many rows. */
int64_t nlist_i_cuda_capacity(const nlist_cuda *gpu, int32_t row_count)
{
    const nlist_desc *desc = &gpu->device.list.desc;
    int64_t const rows = row_count > 0 ? row_count : 1;
    int64_t capacity = desc->layout == NLIST_COMPACT   ? 16 * rows
                       : desc->layout == NLIST_DYNAMIC ? 8 * rows
                                                       : rows;
    if (!nlist_i_has_partners(desc)) return 0;
    if (desc->capacity > 0) capacity = desc->capacity;
    if (gpu->wanted_entries > capacity) capacity = gpu->wanted_entries;
    if (nlist_i_has_rest(desc) && capacity > NLIST_I_INT_MAX) capacity = NLIST_I_INT_MAX;
    return capacity;
}

/* Empties the rows of generation g: no count, no start, no head. */
nlist_result nlist_i_clear_rows(nlist_cuda *gpu, int32_t g, cudaStream_t stream)
{
    const nlist_rows *rows = &gpu->device.list.rows[g];
    size_t const n = (size_t)rows->n;
    if (n == 0) return NLIST_OK;
    if (nlist_i_failed(gpu, cudaMemsetAsync(rows->count, 0xFF, n * sizeof *rows->count, stream)) ||
        (rows->start &&
         nlist_i_failed(gpu, cudaMemsetAsync(rows->start, 0xFF, (n + 1) * sizeof *rows->start,
                                             stream))) ||
        (rows->head &&
         nlist_i_failed(gpu, cudaMemsetAsync(rows->head, 0xFF, n * sizeof *rows->head, stream))))
        return NLIST_CUDA_ERROR;
    return NLIST_OK;
}

/* Discards the list, on the host and on the device: no row of either generation has entries. */
nlist_result nlist_i_forget(nlist_cuda *gpu, cudaStream_t stream)
{
    nlist *list = &gpu->device.list;
    list->n = list->built = 0;
    if (nlist_i_failed(gpu, cudaMemsetAsync(gpu->d_facts, 0, sizeof *gpu->d_facts, stream)))
        return NLIST_CUDA_ERROR;
    nlist_result const result = nlist_i_clear_rows(gpu, 0, stream);
    return result == NLIST_OK ? nlist_i_clear_rows(gpu, 1, stream) : result;
}

/* True if generation g has the arrays and sizes that the desc asks for. */
bool nlist_i_has_shape(const nlist_cuda *gpu, int32_t g, int32_t n, int32_t row_count,
                       int64_t capacity, bool uids)
{
    const nlist_rows *rows = &gpu->device.list.rows[g];
    const nlist_desc *desc = &gpu->device.list.desc;
    nlist_i_sizes const sizes = nlist_i_generation_sizes(desc, n, row_count, capacity, uids);
    for (int b = 0; b < NLIST_I_GENERATION; b++) /* elements may have become larger */
        if ((uint64_t)sizes.count[b] * sizes.size[b] >
            gpu->device.list.block[g * NLIST_I_GENERATION + b].bytes)
            return false;
    return rows->n == row_count && rows->particles == n && (rows->count || row_count == 0) &&
           rows->width == (nlist_i_has_slots(desc) ? desc->width : 0) &&
           rows->capacity == capacity && !rows->slot == !nlist_i_has_slots(desc) &&
           !rows->head == !nlist_i_has_rest(desc) &&
           !rows->start == (desc->layout != NLIST_COMPACT) &&
           !rows->touched == (desc->layout != NLIST_DYNAMIC) && !rows->uid == !uids &&
           !rows->reference == !(desc->skin > 0) && !rows->history == !(desc->history > 0) &&
           !rows->shift == !desc->shifts && !rows->distance == !desc->distances &&
           !rows->offset == !desc->offsets && !rows->within == !(desc->nearest > 0) &&
           !rows->state == !nlist_i_has_states(desc);
}

/* True if rows of this size keep their history in place (>>in-place): where slots are most of the
   list. Bytes of ended contacts are overwritten there, so events need two arrays. */
bool nlist_i_wants_in_place(const nlist *list, const nlist_rows *rows)
{
    const nlist_desc *desc = &list->desc;
    return desc->history > 0 && rows->slot && !desc->events && !desc->shifts && !list->keys &&
           2 * rows->capacity <= (int64_t)rows->n * rows->width;
}

/* True if both generations have one array of history. */
bool nlist_i_is_in_place(const nlist *list)
{
    return list->rows[0].history && list->rows[0].history == list->rows[1].history;
}

/* The array of history that generation g does not use. */
nlist_block *nlist_i_spare_history(nlist *list, int32_t g)
{
    nlist_block *const own = &list->block[NLIST_I_HISTORY],
                *const other = own + NLIST_I_GENERATION;
    return own->memory == list->rows[g].history ? other : own;
}

/* Two generations of one shape share the history of generation g, or not, as the desc asks. */
void nlist_i_share_history(nlist *list, int32_t g)
{
    nlist_rows *const rows = &list->rows[g], *const next = &list->rows[1 - g];
    bool const alike = rows->n == next->n && rows->width == next->width &&
                       rows->capacity == next->capacity;
    if (!rows->history || !next->history) return;
    next->history = alike && nlist_i_wants_in_place(list, rows)
                        ? rows->history
                        : static_cast<unsigned char *>(nlist_i_spare_history(list, g)->memory);
}

/* Gives generation g the arrays and sizes that the desc asks for; their content is lost. */
nlist_result nlist_i_shape_generation(nlist_cuda *gpu, int32_t g, int32_t n, int32_t row_count,
                                      int64_t capacity, bool uids, cudaStream_t stream)
{
    nlist *list = &gpu->device.list;
    nlist_i_sizes const sizes = nlist_i_generation_sizes(&list->desc, n, row_count, capacity, uids);
    nlist_block *const block = list->block + g * NLIST_I_GENERATION;
    nlist_result result = NLIST_OK;
    memset(&list->rows[g], 0, sizeof list->rows[g]);
    if (list->rows[1 - g].history && list->rows[1 - g].history == block[NLIST_I_HISTORY].memory)
        std::swap(block[NLIST_I_HISTORY],
                  list->block[(1 - g) * NLIST_I_GENERATION + NLIST_I_HISTORY]);
    for (int b = 0; b < NLIST_I_GENERATION && result == NLIST_OK; b++)
        result = nlist_i_cuda_grow(gpu, &block[b], sizes.count[b], sizes.size[b], stream);
    if (result != NLIST_OK) return result;
    nlist_i_bind(&list->rows[g], block, &list->desc, n, row_count, capacity, uids);
    list->rows[g].entries = -1;
    list->rows[g].touched_count = -1;
    return NLIST_OK;
}

/* Gives the rows that a build will write their arrays and sizes. Of two generations only the device
   knows which one that is, so a change asks it, and waits. No call waits once both have the same
   shape. */
nlist_result nlist_i_shape(nlist_cuda *gpu, int32_t n, int32_t row_count, bool uids,
                           cudaStream_t stream)
{
    int64_t const capacity = nlist_i_cuda_capacity(gpu, row_count);
    bool const fits[2] = {nlist_i_has_shape(gpu, 0, n, row_count, capacity, uids),
                          nlist_i_has_shape(gpu, 1, n, row_count, capacity, uids)};
    nlist_cuda_facts facts;
    if (!nlist_i_cuda_keeps_two(gpu) && fits[0]) return NLIST_OK;
    if (!nlist_i_cuda_keeps_two(gpu)) { /* the old content is lost: mark as moved, so that no build
                                           is skipped for it */
        if (nlist_i_failed(gpu, cudaMemsetAsync(&gpu->d_facts->moved, 1, sizeof gpu->d_facts->moved,
                                                stream)))
            return NLIST_CUDA_ERROR;
        return nlist_i_shape_generation(gpu, 0, n, row_count, capacity, uids, stream);
    }
    nlist *list = &gpu->device.list;
    if (fits[0] && fits[1] &&
        nlist_i_is_in_place(list) == nlist_i_wants_in_place(list, &list->rows[0]))
        return NLIST_OK;
    nlist_result result = nlist_i_fetch_facts(gpu, &facts, stream);
    for (int g = 0; g < 2 && result == NLIST_OK; g++)
        if (!fits[g] && (facts.filled == 0 || g != facts.current)) {
            result = nlist_i_shape_generation(gpu, g, n, row_count, capacity, uids, stream);
            if (result == NLIST_OK && facts.filled == 0)
                result = nlist_i_clear_rows(gpu, g, stream);
        }
    if (result == NLIST_OK) nlist_i_share_history(list, facts.current);
    return result;
}

/* Memory for the events of lists with this capacity. */
nlist_result nlist_i_shape_events(nlist_cuda *gpu, cudaStream_t stream)
{
    nlist *list = &gpu->device.list;
    nlist_result result = NLIST_OK;
    int64_t most = 0;
    if (!list->desc.events) return NLIST_OK;
    for (const nlist_rows &rows : list->rows) {
        int64_t const room = (int64_t)rows.n * rows.width + rows.capacity;
        most = room > most ? room : most;
    }
    for (int kind = 0; kind < NLIST_EVENT_KINDS && result == NLIST_OK; kind++) {
        result = nlist_i_cuda_grow_keeping(gpu, &list->block[NLIST_I_EVENT + kind], most,
                                           sizeof(nlist_event), stream);
        list->event[kind] = static_cast<nlist_event *>(list->block[NLIST_I_EVENT + kind].memory);
    }
    return result;
}

/* True if rows are counted before they are written. */
bool nlist_i_counts_first(const nlist_desc *desc)
{
    return desc->layout == NLIST_COMPACT || (desc->deterministic && nlist_i_has_rest(desc));
}

/* Lengths of rows beyond their slots. In DYNAMIC bit 33 of a length is set where it is not 0, so
   that one scan sums entries and touched rows. The lower sum saturates at its greatest value; no
   rest can hold so many. */
constexpr int nlist_i_touched_bit = 33;
constexpr uint64_t nlist_i_most = ((uint64_t)1 << nlist_i_touched_bit) - 1;

__host__ __device__ __forceinline__ int64_t nlist_i_low(int64_t sum)
{
    return (int64_t)((uint64_t)sum & nlist_i_most);
}
__host__ __device__ __forceinline__ int64_t nlist_i_high(int64_t sum)
{
    return (int64_t)((uint64_t)sum >> nlist_i_touched_bit);
}

struct nlist_i_add_lengths {
    __host__ __device__ __forceinline__ int64_t operator()(int64_t a, int64_t b) const
    {
        uint64_t const low = (uint64_t)(nlist_i_low(a) + nlist_i_low(b)),
                       high = (uint64_t)(nlist_i_high(a) + nlist_i_high(b));
        return (int64_t)(high << nlist_i_touched_bit | (low < nlist_i_most ? low : nlist_i_most));
    }
};

/* Exclusive prefix sum of m numbers, as they are or as above. (CUB would return an error that the
   caller has not read: it is cleared first, here and before sorts.) */
cudaError_t nlist_i_exclusive_sum(void *temp, size_t &temp_bytes, const int64_t *in, int64_t *out,
                                  int64_t m, bool touches, cudaStream_t stream)
{
    (void)cudaGetLastError();
    if (touches)
        return cub::DeviceScan::ExclusiveScan(temp, temp_bytes, in, out, nlist_i_add_lengths(),
                                              (int64_t)0, m, stream);
    return cub::DeviceScan::ExclusiveSum(temp, temp_bytes, in, out, m, stream);
}

/* Work space of builds over n particles. */
nlist_result nlist_i_cuda_work(nlist_cuda *gpu, int32_t n, cudaStream_t stream)
{
    const nlist_desc *desc = &gpu->device.list.desc;
    size_t temp = 0, other = 0;
    if (!nlist_i_counts_first(desc) && !desc->events) return NLIST_OK;
    if (nlist_i_failed(gpu, nlist_i_exclusive_sum(nullptr, temp, nullptr, nullptr, (int64_t)n + 1,
                                                  true, stream)) ||
        nlist_i_failed(gpu, nlist_i_exclusive_sum(nullptr, other, nullptr, nullptr, (int64_t)n + 1,
                                                  false, stream)))
        return NLIST_CUDA_ERROR;
    if (temp < other) temp = other;
    nlist_result result = nlist_i_cuda_grow(gpu, &gpu->scratch[NLIST_I_LENGTHS], (int64_t)n + 1,
                                            sizeof(int64_t), stream);
    if (result == NLIST_OK)
        result = nlist_i_cuda_grow(gpu, &gpu->scratch[NLIST_I_OFFSETS], (int64_t)n + 1,
                                   sizeof(int64_t), stream);
    return result == NLIST_OK
               ? nlist_i_cuda_grow(gpu, &gpu->scratch[NLIST_I_TEMP], (int64_t)temp, 1, stream)
               : result;
}

/* Memory for the bits of the first pass through a grid. */
nlist_result nlist_i_take_words(nlist_cuda *gpu, int32_t n, cudaStream_t stream)
{
    if (!nlist_i_counts_first(&gpu->device.list.desc)) return NLIST_OK;
    return nlist_i_cuda_grow(gpu, &gpu->scratch[NLIST_I_WORDS], ((int64_t)n + 1) * nlist_i_words,
                             sizeof(uint32_t), stream);
}

/* LENGTHS of m rows become OFFSETS; OFFSETS[m] is the sum. */
nlist_result nlist_i_scan(nlist_cuda *gpu, int64_t m, bool touches, cudaStream_t stream)
{
    size_t temp = gpu->scratch[NLIST_I_TEMP].bytes;
    const int64_t *lengths = nlist_i_scratch<int64_t>(gpu, NLIST_I_LENGTHS);
    int64_t *offsets = nlist_i_scratch<int64_t>(gpu, NLIST_I_OFFSETS);
    cudaError_t const error = nlist_i_exclusive_sum(gpu->scratch[NLIST_I_TEMP].memory, temp,
                                                    lengths, offsets, m + 1, touches, stream);
    return nlist_i_failed(gpu, error) ? NLIST_CUDA_ERROR : NLIST_OK;
}

/* ----------------------------------------------------------------------------------------------
   >>rows: sources, and the kernels around the search
   ---------------------------------------------------------------------------------------------- */

/* Parameters of a build, beside the list. */
struct nlist_i_job {
    const nlist_real *pos;
    size_t stride;
    int32_t n;    /* particles */
    int32_t rows; /* to make: those of particles 0 .. rows-1 */
    nlist_cuda_facts *facts;
    const int32_t *old_of, *new_of; /* a remap, else NULL */
    bool uids;                      /* particles have uids beside their ids */
    bool pairs;                     /* the caller's pairs, else positions or a remap */
    unsigned char *spare;           /* history in place: the array that is work space, else NULL */
    int32_t *table;                 /* [places] old entries of long rows (>>carry), else NULL */
    int64_t places;
};

/* The number of this thread in the grid. */
__device__ __forceinline__ int32_t nlist_i_thread()
{
    return (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
}

/* The generation that is written. */
__device__ __forceinline__ int nlist_i_to(const nlist &list)
{
    return list.d_current ? 1 - *list.d_current : 0;
}

/* True if this build does nothing, because no particle has moved. Never if the rows would have
   another shape. */
__device__ __forceinline__ bool nlist_i_skips(const nlist &list, const nlist_cuda_facts *facts)
{
    if (!list.desc.if_moved || facts->filled == 0 || facts->moved != 0) return false;
    const nlist_rows &had = *nlist_i_rows(&list), &next = list.rows[nlist_i_to(list)];
    return had.n == next.n && had.particles == next.particles && had.width == next.width &&
           !had.start == !next.start && !had.touched == !next.touched && !had.head == !next.head &&
           !had.reference == !next.reference && facts->skin == (double)list.desc.skin;
}

/* True if the rows just written fitted. */
__device__ __forceinline__ bool nlist_i_fitted(const nlist &list, const nlist_cuda_facts *facts,
                                               int to)
{
    const nlist_rows &rows = list.rows[to];
    if (rows.partner) return (int64_t)facts->entries[to] <= rows.capacity;
    return facts->needed_width <= rows.width;
}

/* Reports particle i as bad. The first is kept, by a maximum of INT32_MAX - i; 0 means none. */
__device__ __forceinline__ void nlist_i_report(nlist_cuda_facts *facts, int32_t i)
{
    atomicMax(&facts->first_bad, INT32_MAX - i);
}

/* Floats that are not negative keep their order when read as integers, so atomicMax finds the
   largest. A double is rounded up to a float. */
__device__ __forceinline__ int32_t nlist_i_bits(float x) { return __float_as_int(x); }
__device__ __forceinline__ int32_t nlist_i_bits(double x)
{
    return __float_as_int(__double2float_ru(x));
}

/* The largest of desc.radii. */
__device__ __forceinline__ nlist_real nlist_i_largest(const nlist &list,
                                                      const nlist_cuda_facts *facts)
{
    return list.desc.radii ? (nlist_real)__int_as_float(facts->reach_bits) : 0;
}

/* Resets the facts of a build. A remap has checked the new ids before: its report is kept. */
__global__ void nlist_i_begin_kernel(__grid_constant__ const nlist_device device,
                                     nlist_cuda_facts *facts, bool is_remap)
{
    facts->overflow = 0;
    if (nlist_i_skips(device.list, facts)) return;
    int const to = nlist_i_to(device.list);
    facts->entries[to] = 0;
    facts->touched[to] = 0;
    facts->needed_width = facts->full = facts->reach_bits = facts->sticks_bits = 0;
    if (is_remap) return;
    facts->first_bad = facts->bad_box = facts->bad_images = facts->bad_starts = 0;
    facts->rows_cut = 0;
}

/* The maximum of a warp's values, for all lanes. */
__device__ __forceinline__ int32_t nlist_i_max_of_warp(int32_t x)
{
    for (int step = 16; step > 0; step /= 2) {
        int32_t const y = __shfl_xor_sync(0xFFFFFFFFu, x, step);
        x = x > y ? x : y;
    }
    return x;
}

/* Maximum of a warp's values, into a word of the facts. Atomics on one word take 0.8 ns each
   (H200): most see that theirs would change nothing. */
__device__ __forceinline__ void nlist_i_warp_max(int32_t *word, int32_t x)
{
    x = nlist_i_max_of_warp(x);
    if (threadIdx.x % 32 == 0 && x > __ldcv(word)) atomicMax(word, x);
}

/* The same of a block of nlist_i_block threads, for kernels that do little else: looking takes
   time, too. All threads call it, once. */
__device__ __forceinline__ void nlist_i_block_max(int32_t *word, int32_t x)
{
    __shared__ int32_t of_warp[nlist_i_block / 32];
    x = nlist_i_max_of_warp(x);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int w = 0; w < nlist_i_block / 32; w++) x = of_warp[w] > x ? of_warp[w] : x;
    if (x > __ldcv(word)) atomicMax(word, x);
}

/* The largest of desc.radii. Those that are no radius are reported. */
__global__ void nlist_i_radii_kernel(__grid_constant__ const nlist_device device,
                                     __grid_constant__ const nlist_i_job job)
{
    int32_t const i = nlist_i_thread();
    int32_t bits = 0;
    if (nlist_i_skips(device.list, job.facts)) return;
    if (i < job.n) {
        nlist_real const radius = nlist_i_given_radius(&device.list.desc, i);
        if (radius >= 0 && nlist_i_finite(radius)) bits = nlist_i_bits(radius);
        else nlist_i_report(job.facts, i);
    }
    nlist_i_block_max(&job.facts->reach_bits, bits);
}

/* The old id of new particle i, -1 = new. Where the previous build did not fit, ids can be beyond
   the old rows, or these are no list. */
__device__ __forceinline__ int32_t nlist_i_was(const nlist_i_job &job, const nlist_rows &old_rows,
                                               int32_t i)
{
    int32_t const was = job.new_of ? job.old_of[i] : i;
    return was < old_rows.particles && job.facts->filled > 0 ? was : -1;
}

/* As nlist_i_keep_uids. */
__global__ void nlist_i_uids_kernel(__grid_constant__ const nlist_device device,
                                    __grid_constant__ const nlist_i_job job)
{
    int32_t const i = nlist_i_thread();
    if (i >= job.n || nlist_i_skips(device.list, job.facts)) return;
    int const to = nlist_i_to(device.list);
    const nlist_rows &old_rows = device.list.rows[1 - to];
    int32_t const was = nlist_i_was(job, old_rows, i);
    device.list.rows[to].uid[i] = nlist_i_uid(was < 0        ? job.facts->next_uid + i
                                              : old_rows.uid ? old_rows.uid[was]
                                                             : was,
                                              i, job.rows);
}

/* True if the point is finite and its radius valid. Others are reported and left out. */
__device__ __forceinline__ bool nlist_i_takes_part(const nlist &list, const nlist_i_job &job,
                                                   int32_t i, const nlist_real p[3])
{
    nlist_real const radius = nlist_i_radius(&list.desc, i);
    if (nlist_i_point_finite(p) && radius >= 0 && nlist_i_finite(radius)) return true;
    nlist_i_report(job.facts, i);
    return false;
}

/* A source is searched once, or twice: to count, then to fill. */
enum nlist_i_pass { NLIST_I_ONLY, NLIST_I_FIRST, NLIST_I_SECOND };

/* What a first pass does with the partners it finds. */
struct nlist_i_tally {
    int32_t *count;
    __device__ void operator()(int32_t) const { ++*count; }
};
template <class Found> constexpr bool nlist_i_tallies = false;
template <> constexpr bool nlist_i_tallies<nlist_i_tally> = true;

/* A source is a type with three members. begin: the query of thread `turn`, of job.n threads
   (false: the row stays empty). each: calls found(j) for each partner, in order. compacts: true if
   it can make COMPACT lists. Ghosts have a turn, so that they are checked, but no row. */

/* True for a source whose `each` all lanes of a warp must call together: those without a search
   with turn = -1. */
template <class Source> constexpr bool nlist_i_by_whole_warp = false;

/* True for a source that also has: each_place, a second pass that puts places of partners in place
   of their ids; names, the id of the partner at each place. */
template <class Source> constexpr bool nlist_i_finds_places = false;

/* True if a pair is listed, in the row of either. */
__device__ __forceinline__ bool nlist_i_pairs(const nlist &list, const nlist_i_query &query,
                                              int32_t j, const nlist_real q[3])
{
    nlist_real limit = query.limit;
    if (list.desc.radii)
        limit = nlist_i_limit(&list.desc, query.radius, nlist_i_given_radius(&list.desc, j));
    return nlist_i_distance2(&list, query.p, q) <= limit && nlist_i_allows(&list.desc, query.i, j);
}

struct nlist_i_brute_source {
    static constexpr bool compacts = true;
    __device__ bool begin(const nlist &list, const nlist_i_job &job, int32_t turn,
                          nlist_i_query &query) const
    {
        nlist_real p[3];
        nlist_i_point(&list, job.pos, job.stride, turn, p);
        query = nlist_i_query_of(&list.desc, turn, p);
        return nlist_i_takes_part(list, job, turn, p);
    }
    template <class Found>
    __device__ void each(const nlist &list, const nlist_i_job &job, const nlist_rows &rows, int32_t,
                         const nlist_i_query &query, nlist_i_pass, Found found) const
    {
        nlist_real q[3];
        int32_t const first = list.desc.half && !rows.uid ? query.i + 1 : 0;
        for (int32_t j = first; j < job.n; j++) {
            nlist_i_point(&list, job.pos, job.stride, j, q);
            if (j != query.i && nlist_i_lists(&list, rows.uid, &query, j, q)) found(j);
        }
    }
};

/* Pairs as sorted keys, the row in the upper half and the partner in the lower. Equal keys are
   adjacent. */
struct nlist_i_pairs_source {
    static constexpr bool compacts = true;
    const uint64_t *key;
    int64_t keys;
    __device__ bool begin(const nlist &list, const nlist_i_job &, int32_t turn,
                          nlist_i_query &query) const
    {
        nlist_real const nowhere[3] = {0, 0, 0};
        query = nlist_i_query_of(&list.desc, turn, nowhere);
        return true;
    }
    template <class Found>
    __device__ void each(const nlist &, const nlist_i_job &, const nlist_rows &, int32_t turn,
                         const nlist_i_query &, nlist_i_pass, Found found) const
    {
        uint64_t const row = (uint64_t)(uint32_t)turn;
        int64_t low = 0, high = keys;
        while (low < high) {
            int64_t const middle = low + (high - low) / 2;
            if (key[middle] >> 32 < row) low = middle + 1;
            else high = middle;
        }
        for (uint64_t before = ~(uint64_t)0; low < keys && key[low] >> 32 == row; low++) {
            if (key[low] != before) found((int32_t)(uint32_t)key[low]);
            before = key[low];
        }
    }
};

/* A remap: the old rows with new ids. */
struct nlist_i_old_source {
    static constexpr bool compacts = true;
    __device__ bool begin(const nlist &list, const nlist_i_job &job, int32_t turn,
                          nlist_i_query &query) const
    {
        nlist_real const nowhere[3] = {0, 0, 0};
        query = nlist_i_query_of(&list.desc, turn, nowhere);
        return job.old_of[turn] >= 0;
    }
    template <class Found>
    __device__ void each(const nlist &list, const nlist_i_job &job, const nlist_rows &rows,
                         int32_t turn, const nlist_i_query &, nlist_i_pass, Found found) const
    {
        nlist_each e = nlist_i_row(&list.rows[&rows == &list.rows[0]], 0, job.old_of[turn]);
        while (nlist_next(&e)) {
            int32_t const id = list.keys ? e.id : job.new_of[e.id];
            if (id >= 0 && nlist_i_stays(rows.uid, turn, id)) found(id);
        }
    }
};

#ifdef NLIST_I_UGRID_CUDA
/* Grid, candidate by candidate. */
template <bool Hashed>
struct nlist_i_ugrid_walk_source {
    static constexpr bool compacts = true;
    ugrid_device grid;
    __device__ bool begin(const nlist &list, const nlist_i_job &job, int32_t turn,
                          nlist_i_query &query) const
    {
        nlist_real p[3];
        ugrid_point(&grid.grid, turn, p);
        query = nlist_i_query_of(&list.desc, ugrid_id(&grid.grid, turn), p);
        return nlist_i_takes_part(list, job, query.i, p);
    }
    template <class Found>
    __device__ void each(const nlist &list, const nlist_i_job &job, const nlist_rows &rows,
                         int32_t turn, const nlist_i_query &query, nlist_i_pass, Found found) const
    {
        ugrid_near walk = ugrid_near_place(&grid.grid, turn,
                                           nlist_i_gap(&list.desc) +
                                               (query.radius + nlist_i_largest(list, job.facts)));
        nlist_real q[3];
        if (Hashed)
            ugrid_i_each_hashed(
                grid.grid, walk,
                [&](int32_t k, const ugrid_record &record) {
                    return k != turn &&
                           nlist_i_lists(&list, rows.uid, &query, record.link, record.x);
                },
                [&](int32_t, const ugrid_record &record) { found(record.link); });
        while (!Hashed && ugrid_next(&walk)) {
            ugrid_point(&grid.grid, walk.place, q);
            if (nlist_i_lists(&list, rows.uid, &query, walk.id, q)) found(walk.id);
        }
    }
};

/* Grid with records, in ranges of places that are cut into pieces of up to 32. All candidates of a
   piece are tested without a branch. The result is a word of bits; place has bit end - 1 - place,
   so the first candidate is the highest bit:

       places begin .. end-1   40 41 42 43 44        42 and 43 are partners: 00110, bits 2 and 1

   The first pass keeps the words of the first nlist_i_words pieces, so that the second need not
   test them again: two for each of the 9 strips of one ring of cells. Twins: the first pass
   searches for two places per thread (cuda/ugrid.cu: >>pieces). Half: only later places are
   candidates, so that each pair is found once, in whichever row it is listed (>>shared). */
template <ugrid_path Path, bool OnlyDistance, bool Twins = false, bool Half = false>
struct nlist_i_ugrid_source {
    static constexpr bool compacts = true;
    ugrid_device grid;
    uint32_t *words; /* [nlist_i_words * ugrid_i_word_stride(n)] */
    /* A half walk has fewer pieces, and two words for each: of the pairs in the row of this place,
       and of the others. */
    __device__ ugrid_i_hit_bits kept(const nlist_i_job &job) const
    {
        return {words, Half ? nlist_i_half_words : nlist_i_words, ugrid_i_word_stride(job.n)};
    }
    __device__ uint32_t *others(const nlist_i_job &job, int piece, int32_t turn) const
    {
        return kept(job).at(nlist_i_half_words + piece, turn);
    }
    /* Half walks: how many pairs are in the row of this place; the highest bit: there are
       others. */
    __device__ uint32_t *own_length(const nlist_i_job &job, int32_t turn) const
    {
        return kept(job).at(2 * nlist_i_half_words, turn);
    }
    __device__ bool begin(const nlist &list, const nlist_i_job &job, int32_t turn,
                          nlist_i_query &query) const
    {
        ugrid_record const own = ugrid_i_fetch_record(&grid.grid.record[turn]);
        query = nlist_i_query_of(&list.desc, own.link, own.x);
        return nlist_i_takes_part(list, job, query.i, own.x);
    }
    /* Tests places begin .. end-1: within the limit, and for half lists above our id. Half walks:
       upper are the bits of those above it. */
    __device__ uint32_t test(const nlist &list, int32_t turn, const nlist_i_query &query,
                             nlist_real limit, int32_t begin, int32_t end, uint32_t &upper) const
    {
        uint32_t found = 0;
        ugrid_contact contact;
        int32_t const above = list.desc.half && OnlyDistance && !Half ? query.i : -1;
#pragma unroll 4
        for (int32_t place = begin; place < end; place++) {
            ugrid_record const record = ugrid_i_fetch_record(&grid.grid.record[place]);
            bool const within = ugrid_i_touch<Path>(grid.grid, query.p, record.x, limit, contact);
            found = found << 1 | (uint32_t)(within & (Half || record.link > above));
            if (Half) upper = upper << 1 | (uint32_t)(record.link > query.i);
        }
        return found & ugrid_i_listed(turn, Half, begin, end);
    }
    /* Removes those that are not listed because of radii, masks, exclusions or uids. */
    __device__ uint32_t filter(const nlist &list, const nlist_rows &rows,
                               const nlist_i_query &query, uint32_t found, int32_t end) const
    {
        for (uint32_t left = found; left;) {
            int const bit = 31 - __clz((int)left);
            ugrid_record const record = ugrid_i_fetch_record(&grid.grid.record[end - 1 - bit]);
            left ^= 1u << bit;
            if (Half ? !nlist_i_pairs(list, query, record.link, record.x)
                     : !nlist_i_lists(&list, rows.uid, &query, record.link, record.x))
                found ^= 1u << bit;
        }
        return found;
    }
    /* take(begin, end, find) for each piece; find() gives its bits, find(&upper) also whose id is
       above our own. */
    template <class Take>
    __device__ __forceinline__ void each_piece(const nlist &list, const nlist_i_job &job,
                                               const nlist_rows &rows, int32_t turn,
                                               const nlist_i_query &query, Take take) const
    {
        nlist_real const largest = nlist_i_largest(list, job.facts),
                         reach = nlist_i_gap(&list.desc) + (query.radius + largest);
        nlist_real const limit = OnlyDistance ? query.limit
                                       : nlist_i_limit(&list.desc, query.radius, largest);
        auto const piece = [&](int32_t begin, int32_t end) {
            take(begin, end, [&](uint32_t *upper = nullptr) {
                uint32_t above = 0;
                uint32_t const found = test(list, turn, query, limit, begin, end, above);
                if (upper) *upper = above;
                return OnlyDistance ? found : filter(list, rows, query, found, end);
            });
        };
        if (Twins) ugrid_i_each_twin_piece(grid.grid, query.p, turn, reach, false, piece);
        else
            ugrid_i_each_range<Path>(grid.grid, query.p, turn, reach, Half,
                                     [&](int32_t first, int32_t last) {
                                         ugrid_i_cut_strip(first, last, piece);
                                     });
    }
    template <class Found>
    __device__ void each(const nlist &list, const nlist_i_job &job, const nlist_rows &rows,
                         int32_t turn, const nlist_i_query &query, nlist_i_pass pass,
                         Found found) const
    {
        ugrid_i_hit_bits const bits = kept(job);
        int piece = 0;
        each_piece(list, job, rows, turn, query, [&](int32_t, int32_t end, auto find) {
            bool const keeps = pass != NLIST_I_ONLY && bits.keeps(piece);
            uint32_t const left = pass != NLIST_I_FIRST && keeps ? *bits.at(piece, turn) : find();
            if (pass == NLIST_I_FIRST && keeps) *bits.at(piece, turn) = left;
            piece++;
            if constexpr (nlist_i_tallies<Found>) *found.count += __popc(left);
            else each_bit(left, end, found);
        });
        if (pass == NLIST_I_FIRST) bits.end(piece, turn);
    }
    /* found(id) for the bits of a piece. */
    template <class Found>
    __device__ __forceinline__ void each_bit(uint32_t left, int32_t end, Found &found) const
    {
        while (left) {
            int const bit = 31 - __clz((int)left);
            left ^= 1u << bit;
            found(grid.grid.record[end - 1 - bit].link);
        }
    }
    /* The second pass, which puts places. */
    template <class Put>
    __device__ void each_place(const nlist &list, const nlist_i_job &job, const nlist_rows &rows,
                               int32_t turn, const nlist_i_query &query, Put put) const
    {
        ugrid_i_second_pass(kept(job), turn,
                            [&](auto take) {
                                each_piece(list, job, rows, turn, query, take);
                            },
                            put);
    }
    __device__ const int32_t *names() const { return grid.grid.order; }
    /* Half walks, the bits of a piece: those in the row of this place, and other(id) for each of
       the others. Two ghosts are no pair. */
    template <class Find, class Other>
    __device__ __forceinline__ uint32_t own_bits(const nlist &list, const nlist_rows &rows,
                                                 const nlist_i_query &query, int32_t end, Find find,
                                                 uint32_t &left, Other other) const
    {
        uint32_t upper = 0, own = 0;
        uint32_t const found = find(&upper);
        bool const by_id = OnlyDistance && query.i < rows.n;
        left = by_id ? found & ~upper : found;
        if (by_id) own = found & upper;
        for (uint32_t bits = left; bits;) {
            int const bit = 31 - __clz((int)bits);
            int32_t const j = grid.grid.record[end - 1 - bit].link;
            bits ^= 1u << bit;
            bool const mine = !by_id && nlist_i_owns(&list.desc, rows.uid, query.i, j),
                       ghosts = query.i >= rows.n && j >= rows.n;
            if (mine || ghosts) left ^= 1u << bit;
            if (mine && !ghosts) own ^= 1u << bit;
            if (!mine && !ghosts) other(j);
        }
        return own;
    }
    /* The first pass of a half walk: other(id) for the pairs in other rows. Returns how many are in
       the row of this place. */
    template <class Other>
    __device__ uint32_t count_half(const nlist &list, const nlist_i_job &job,
                                   const nlist_rows &rows, int32_t turn,
                                   const nlist_i_query &query, Other other) const
    {
        ugrid_i_hit_bits const bits = kept(job);
        uint32_t length = 0, any = 0;
        int piece = 0;
        each_piece(list, job, rows, turn, query, [&](int32_t, int32_t end, auto find) {
            uint32_t left;
            uint32_t const own = own_bits(list, rows, query, end, find, left, other);
            if (bits.keeps(piece)) {
                *bits.at(piece, turn) = own;
                *others(job, piece, turn) = left;
            }
            piece++;
            length += (uint32_t)__popc(own);
            any |= left;
        });
        bits.end(piece, turn);
        *own_length(job, turn) = length | (any ? 1u << 31 : 0u);
        return length;
    }
    /* The second pass: put(place) for the row of this place, in order. */
    template <class Put>
    __device__ void fill_own(const nlist &list, const nlist_i_job &job, const nlist_rows &rows,
                             int32_t turn, const nlist_i_query &query, Put put) const
    {
        auto const pieces = [&](auto take) {
            each_piece(list, job, rows, turn, query, [&](int32_t begin, int32_t end, auto find) {
                take(begin, end, [&] {
                    uint32_t left;
                    return own_bits(list, rows, query, end, find, left, [](int32_t) {});
                });
            });
        };
        ugrid_i_second_pass(kept(job), turn, pieces, put);
    }
    /* And other(id) for the pairs in other rows. */
    template <class Other>
    __device__ void fill_others(const nlist &list, const nlist_i_job &job, const nlist_rows &rows,
                                int32_t turn, const nlist_i_query &query, Other other) const
    {
        ugrid_i_hit_bits const bits = kept(job);
        int piece = 0;
        if (!(*own_length(job, turn) >> 31)) return;
        each_piece(list, job, rows, turn, query, [&](int32_t, int32_t end, auto find) {
            uint32_t left;
            if (bits.keeps(piece)) each_bit(*others(job, piece, turn), end, other);
            else (void)own_bits(list, rows, query, end, find, left, other);
            piece++;
        });
    }
};

template <ugrid_path Path, bool OnlyDistance, bool Twins, bool Half>
constexpr bool nlist_i_finds_places<nlist_i_ugrid_source<Path, OnlyDistance, Twins, Half>> = true;

using nlist_i_twins_source = nlist_i_ugrid_source<UGRID_PATH_STRIPS, true, true>;
#endif

#ifdef NLIST_I_LBVH_CUDA
constexpr int nlist_i_search_warps = 4; /* of a block in searches */

/* The spheres of a warp, around neighbouring leaves, walk the tree as one packet: at each node all
   lanes vote whether any of them reaches it. Subtrees of at most 32 leaves are loaded, one leaf by
   each lane. Those near the packet's box are tested by every lane: found(id) for each within its
   reach, by ascending place. All lanes call it; a reach2 of -1 finds nothing. (cuda/lbvh.cu,
   >>packets, goes further and keeps batches full.) */
struct nlist_i_packet {
    const lbvh &tree;
    lbvh_node *batch;                           /* [32] of the warp, in shared memory */
    lbvh_real least[3], most[3], most_reach2;   /* of all lanes */

    __device__ __forceinline__ nlist_i_packet(const lbvh &of, const lbvh_overlap &o) : tree(of)
    {
        __shared__ lbvh_node batches[nlist_i_search_warps][32];
        batch = batches[threadIdx.x / 32];
        most_reach2 = o.reach2;
        for (int a = 0; a < 3; a++) {
            least[a] = o.reach2 < 0 ? lbvh_i_infinity() : o.min[a];
            most[a] = o.reach2 < 0 ? -lbvh_i_infinity() : o.min[a];
        }
        for (int step = 16; step > 0; step /= 2) {
            lbvh_real const other = __shfl_xor_sync(0xFFFFFFFFu, most_reach2, step);
            most_reach2 = lbvh_i_max(most_reach2, other);
            for (int a = 0; a < 3; a++) {
                least[a] = lbvh_i_min(least[a], __shfl_xor_sync(0xFFFFFFFFu, least[a], step));
                most[a] = lbvh_i_max(most[a], __shfl_xor_sync(0xFFFFFFFFu, most[a], step));
            }
        }
    }
    /* True if a sphere of the packet could reach this leaf. */
    __device__ __forceinline__ bool near_leaf(const lbvh_node &leaf) const
    {
        lbvh_real away[3];
        for (int a = 0; a < 3; a++)
            away[a] = lbvh_i_max(lbvh_i_max(leaf.min[a] - most[a], least[a] - leaf.max[a]), 0);
        return lbvh_i_square(away[0], away[1], away[2]) <= most_reach2;
    }
    /* Loads leaves first .. last; a bit for each that is near. */
    __device__ __forceinline__ unsigned load(int32_t first, int32_t last) const
    {
        int const lane = (int)(threadIdx.x % 32);
        int32_t const at = tree.first_leaf + first + lane;
        bool near_any = false;
        __syncwarp();
        if (lane <= last - first) {
            lbvh_node const leaf = lbvh_i_fetch(&tree.node[at]);
            near_any = near_leaf(leaf) && (!tree.mask || tree.mask[at]);
            batch[lane] = leaf;
        }
        __syncwarp();
        return __ballot_sync(0xFFFFFFFFu, near_any);
    }
    template <class Found>
    __device__ __forceinline__ void walk(const lbvh_overlap &o, Found found) const
    {
        for (int32_t at = lbvh_root(&tree), first = 0; at >= 0;) {
            lbvh_node const node = lbvh_i_fetch(&tree.node[at]);
            if (__any_sync(0xFFFFFFFFu, lbvh_box_distance2(&node, o.min) <= o.reach2)) {
                int32_t const last = lbvh_last_place(&tree, &node);
                if (last - first >= 32) {
                    at = node.link;
                    continue;
                }
                unsigned nears = load(first, last), hits = 0;
                for (; nears; nears &= nears - 1) {
                    int const c = __ffs((int)nears) - 1;
                    lbvh_node const leaf = lbvh_i_fetch(&batch[c]);
                    hits |= lbvh_box_distance2(&leaf, o.min) <= o.reach2 ? 1u << c : 0u;
                }
                for (; hits; hits &= hits - 1) found(batch[__ffs((int)hits) - 1].link);
            }
            at = node.skip;
            first = at < tree.first_leaf ? at : at - tree.first_leaf;
        }
    }
};

struct nlist_i_lbvh_source {
    static constexpr bool compacts = true;
    lbvh_device tree;
    __device__ bool begin(const nlist &list, const nlist_i_job &job, int32_t turn,
                          nlist_i_query &query) const
    {
        int32_t const i = nlist_i_leaf(&tree.tree, turn)->link;
        nlist_real p[3];
        nlist_i_point(&list, job.pos, job.stride, i, p);
        query = nlist_i_query_of(&list.desc, i, p);
        return nlist_i_takes_part(list, job, i, p) &&
               /* Inf: a box is too far away (nlist_i_overhang_kernel) */
               job.facts->sticks_bits < 0x7F800000;
    }
    /* The search around one image of a particle; without one (searches = false) reach2 is -1. */
    __device__ lbvh_overlap search(const nlist &list, const nlist_i_query &query, nlist_real out,
                                   bool searches, const nlist_real at[3]) const
    {
        nlist_real const nowhere[3] = {0, 0, 0};
        lbvh_overlap o = lbvh_overlap_sphere(
            &tree.tree, searches ? at : nowhere,
            searches ? nlist_i_search_radius(nlist_i_gap(&list.desc) + query.radius + out, at) : 0);
        if (!searches || o.at < 0) o.reach2 = -1;
        return o;
    }
    template <class Found>
    __device__ void each(const nlist &list, const nlist_i_job &job, const nlist_rows &rows,
                         int32_t place, const nlist_i_query &query, nlist_i_pass, Found found) const
    {
        nlist_real const out = (nlist_real)__int_as_float(job.facts->sticks_bits) * 2;
        bool const repeats = list.axis[0].periodic || list.axis[1].periodic ||
                             list.axis[2].periodic;
        nlist_real at[3], q[3];
        /* 13: the particle itself */
        for (int image = repeats ? 0 : 13; image < (repeats ? 27 : 14); image++) {
            if (!nlist_i_image(&list, query.p, image, at)) continue; /* the same for all lanes */
            lbvh_overlap const o = search(list, query, out, place >= 0, at);
            nlist_i_packet const packet(tree.tree, o);
            packet.walk(o, [&](int32_t id) {
                if (!nlist_i_owns(&list.desc, rows.uid, query.i, id)) return;
                nlist_i_point(&list, job.pos, job.stride, id, q);
                if (nlist_i_in_image(&list, query.p, q, image) &&
                    nlist_i_lists(&list, rows.uid, &query, id, q))
                    found(id);
            });
        }
    }
};

template <> constexpr bool nlist_i_by_whole_warp<nlist_i_lbvh_source> = true;

/* Pairs that the boxes of a tree allow, from all lanes of a warp: tested 32 at a time. */
struct nlist_i_pair_queue {
    int32_t lane[64], id[64]; /* of the search, of the partner; a ring of two halves */
};

/* The queue of a warp: what it holds is tested, and given to pair(exists, i, j). */
template <class Pair> struct nlist_i_pair_filter {
    const nlist &list;
    const nlist_i_job &job;
    const nlist_i_query &query; /* of this lane */
    int image;                  /* nlist_i_image; -1: no axis is periodic */
    Pair &pair;
    nlist_i_pair_queue *queue;
    int from, waiting;

    __device__ __forceinline__ nlist_i_pair_filter(const nlist &of, const nlist_i_job &with,
                                                   const nlist_i_query &own, int which, Pair &give)
        : list(of), job(with), query(own), image(which), pair(give), from(0), waiting(0)
    {
        __shared__ nlist_i_pair_queue queues[nlist_i_search_warps];
        queue = &queues[threadIdx.x / 32];
    }
    /* Tests the first `many` pairs of a half. */
    __device__ __forceinline__ void test(int many)
    {
        int const lane = (int)(threadIdx.x % 32);
        __syncwarp();
        bool exists = lane < many;
        int const r = exists ? queue->lane[from + lane] : lane;
        int32_t const j = exists ? queue->id[from + lane] : 0;
        __syncwarp();
        nlist_i_query other;
        other.i = __shfl_sync(0xFFFFFFFFu, query.i, r);
        for (int a = 0; a < 3; a++) other.p[a] = __shfl_sync(0xFFFFFFFFu, query.p[a], r);
        other.radius = __shfl_sync(0xFFFFFFFFu, query.radius, r);
        other.limit = nlist_i_limit(&list.desc, 0, 0);
        if (exists) {
            nlist_real q[3];
            nlist_i_point(&list, job.pos, job.stride, j, q);
            exists = (other.i < job.rows || j < job.rows) &&
                     (image < 0 || nlist_i_in_image(&list, other.p, q, image)) &&
                     nlist_i_pairs(list, other, j, q);
        }
        pair(exists, other.i, j);
    }
    /* Queues one pair of each lane that has one. */
    __device__ __forceinline__ void push(bool has, int lane, int32_t id)
    {
        unsigned const having = __ballot_sync(0xFFFFFFFFu, has);
        if (has) {
            unsigned const lower = (1u << threadIdx.x % 32) - 1;
            int const slot = (from + waiting + __popc(having & lower)) & 63;
            queue->lane[slot] = lane;
            queue->id[slot] = id;
        }
        waiting += __popc(having);
        if (waiting < 32) return;
        test(32);
        from ^= 32;
        waiting -= 32;
    }
    /* Queues the hits of a batch. Those of a lane with many, such as a large element's among small
       ones, are taken by all lanes. */
    __device__ __forceinline__ void add(unsigned hits, const lbvh_node *leaf)
    {
        int const lane = (int)(threadIdx.x % 32);
        unsigned rows = __ballot_sync(0xFFFFFFFFu, __popc(hits) > 4);
        for (; rows; rows &= rows - 1) {
            int const r = __ffs((int)rows) - 1;
            bool const has = __shfl_sync(0xFFFFFFFFu, hits, r) >> lane & 1;
            push(has, r, has ? leaf[lane].link : 0);
            if (lane == r) hits = 0;
        }
        for (; __any_sync(0xFFFFFFFFu, hits != 0); hits &= hits - 1)
            push(hits != 0, lane, hits ? leaf[__ffs((int)hits) - 1].link : 0);
    }
    __device__ __forceinline__ void finish()
    {
        if (waiting > 0) test(waiting);
    }
};

/* The walk for half lists: from each leaf to those at later places, so that each pair is found once
   (lbvh_cuda_pairs walks in the same way). Batches of leaves are tested against boxes; what is left
   is queued, and its distances are tested by all lanes, a pair each. */
template <lbvh_i_test Test> struct nlist_i_half_lbvh_source {
    nlist_i_lbvh_source whole;
    __device__ lbvh_overlap search(const nlist &list, const nlist_i_query &query, nlist_real out,
                                   bool searches, const nlist_real at[3]) const
    {
        const lbvh *tree = &whole.tree.tree;
        if (!searches) return lbvh_i_no_search(tree);
        lbvh_overlap o = whole.search(list, query, out, true, at);
        if (o.at < 0) return lbvh_i_no_search(tree);
        if (Test != LBVH_I_BOX) return o;
        nlist_real const reach =
            nlist_i_search_radius(nlist_i_gap(&list.desc) + query.radius + out, at);
        for (int a = 0; a < 3; a++) { /* no index that only the device knows: registers */
            o.min[a] = a < list.desc.dim ? at[a] - reach : o.min[a];
            o.max[a] = a < list.desc.dim ? at[a] + reach : o.max[a];
        }
        o.reach2 = -1;
        return o;
    }
    /* pair(exists, i, j): all lanes call each_pair, and it; place = -1: without a search. */
    template <class Pair>
    __device__ __forceinline__ void each_pair(const nlist &list, const nlist_i_job &job,
                                              int32_t place, const nlist_i_query &query,
                                              Pair pair) const
    {
        const lbvh &tree = whole.tree.tree;
        lbvh_i_warp_batch &batch = lbvh_i_my_batch();
        nlist_real const out = (nlist_real)__int_as_float(job.facts->sticks_bits) * 2;
        bool const repeats = list.axis[0].periodic || list.axis[1].periodic ||
                             list.axis[2].periodic;
        int32_t const turn = nlist_i_thread(), begin = turn - (int32_t)(threadIdx.x % 32);
        nlist_real at[3];
        for (int image = repeats ? 0 : 13; image < (repeats ? 27 : 14); image++) {
            if (!nlist_i_image(&list, query.p, image, at)) continue; /* the same for all lanes */
            lbvh_overlap const o = search(list, query, out, place >= 0, at);
            nlist_i_pair_filter<Pair> filter(list, job, query, repeats ? image : -1, pair);
            lbvh_i_walk_packet_masked<Test, true, false, false>(
                tree, o, turn, lbvh_i_begin_later(tree, begin), batch,
                [&](unsigned hits, const lbvh_node *leaf) { filter.add(hits, leaf); });
            filter.finish();
        }
    }
};

/* nlist_i_excess, at least 0. At a corner that is up to sqrt(3) times as far, so searches are
   extended by twice as much. */
__device__ __forceinline__ nlist_real nlist_i_overhang(const nlist *list, const lbvh_node *leaf,
                                                       const nlist_real p[3], nlist_real radius)
{
    nlist_real const excess = nlist_i_excess(list, leaf, p, radius);
    return excess <= 0 ? 0 : excess;
}

/* The most by which spheres exceed their leaves' boxes. */
__global__ void nlist_i_overhang_kernel(__grid_constant__ const nlist_device device,
                                        __grid_constant__ const nlist_i_job job,
                                        __grid_constant__ const lbvh_device tree)
{
    int32_t const place = nlist_i_thread();
    int32_t bits = 0;
    if (nlist_i_skips(device.list, job.facts)) return;
    if (place < job.n) {
        const lbvh_node *leaf = nlist_i_leaf(&tree.tree, place);
        nlist_real p[3];
        nlist_i_point(&device.list, job.pos, job.stride, leaf->link, p);
        if (nlist_i_takes_part(device.list, job, leaf->link, p)) {
            nlist_real const out = nlist_i_overhang(&device.list, leaf, p,
                                                    nlist_i_radius(&device.list.desc, leaf->link));
            bool const reached = nlist_i_search_is_finite(&device.list.desc,
                                                          nlist_i_largest(device.list, job.facts),
                                                          out);
            bits = reached ? nlist_i_bits(out) : 0x7F800000;
        }
    }
    nlist_i_block_max(&job.facts->sticks_bits, bits);
}

struct nlist_i_mesh_source {
    static constexpr bool compacts = false;
    lbvh_device tree;
    nlist_mesh mesh;
    __device__ bool begin(const nlist &list, const nlist_i_job &job, int32_t turn,
                          nlist_i_query &query) const
    {
        nlist_real p[3];
        nlist_i_load(job.pos, job.stride, 3, turn, p);
        query = nlist_i_query_of(&list.desc, turn, p);
        return nlist_i_takes_part(list, job, turn, p);
    }
    template <class Found>
    __device__ void each(const nlist &list, const nlist_i_job &, const nlist_rows &, int32_t,
                         const nlist_i_query &query, nlist_i_pass, Found found) const
    {
        nlist_i_ball ball;
        lbvh_overlap o = nlist_i_walls_near(&tree.tree, &mesh, &list.desc, query.i, query.p, &ball);
        int32_t first = -1;
        while (lbvh_next(&o)) {
            int32_t const key = nlist_i_wall_key(&tree.tree, &mesh, &list.desc, &ball, o.id,
                                                 &first);
            if (key >= 0) found(key);
        }
    }
};
#endif

/* ----------------------------------------------------------------------------------------------
   >>layout: rows are written to their slots and to the rest

   A thread finds the partners of its own row one at a time: single words, scattered in memory. So
   it stages 16 in shared memory, and then writes them together. HYBRID, width 8, a row of 21:

       when 16 are staged    partners  0 .. 7  -> slots
                             partners  8 .. 15 -> 8 entries of the rest, from a counter
       at the end of a row   partners 16 .. 20 -> 5 entries; link leads from partner 15 to 16
   ---------------------------------------------------------------------------------------------- */

constexpr int nlist_i_search_block = 128, nlist_i_stage = 16;

/* Allocates m entries of partner for each thread, with one atomic per warp, by a prefix sum: m = 2
   0 3 makes sum = 2 2 5, one atomicAdd of 5, and begin + 0, 2, 2. */
__device__ __forceinline__ int64_t nlist_i_take_at_once(unsigned long long *counter, int32_t m)
{
    int const lane = (int)(threadIdx.x % 32);
    int32_t sum = m;
    unsigned long long begin = 0;
    for (int distance = 1; distance < 32; distance *= 2) {
        int32_t const lower = __shfl_up_sync(0xFFFFFFFFu, sum, distance);
        if (lane >= distance) sum += lower;
    }
    if (lane == 31 && sum > 0) begin = atomicAdd(counter, (unsigned long long)sum);
    return (int64_t)__shfl_sync(0xFFFFFFFFu, begin, 31) + sum - m;
}

/* The same for a full stage, during a search: the lanes that are active share one atomic (Blog,
   Warp-Aggregated Atomics). */
__device__ __forceinline__ int64_t nlist_i_take_stage(unsigned long long *counter, int32_t m)
{
    if (m != nlist_i_stage) return (int64_t)atomicAdd(counter, (unsigned long long)m);
    unsigned const here = __activemask();
    int const lane = (int)(threadIdx.x % 32), first = __ffs((int)here) - 1;
    unsigned long long begin = 0;
    if (lane == first)
        begin = atomicAdd(counter, (unsigned long long)(nlist_i_stage * __popc(here)));
    return (int64_t)__shfl_sync(here, begin, first) +
           nlist_i_stage * __popc(here & ((1u << lane) - 1));
}

/* A row that is being written. */
struct nlist_i_writer {
    const nlist_rows &rows;
    int32_t (*stage)[nlist_i_search_block]; /* column threadIdx.x is this thread's */
    unsigned long long *counter;            /* entries of partner in use; NULL: the row begins at
                                               `base` */
    int64_t base;
    int32_t i, count, staged, head, last;

    /* Writes the staged partners that have a slot, and -1 into the other slots of this stage. */
    __device__ void put_slots(int32_t first) const
    {
        int32_t *const slot = rows.slot + (int64_t)i * rows.width;
        int32_t const end = rows.width - first < nlist_i_stage ? rows.width - first : nlist_i_stage;
        if (rows.width % 4 == 0) {
            for (int32_t k = 0; k < end; k += 4) {
                int4 four;
                four.x = k < staged ? stage[k][threadIdx.x] : -1;
                four.y = k + 1 < staged ? stage[k + 1][threadIdx.x] : -1;
                four.z = k + 2 < staged ? stage[k + 2][threadIdx.x] : -1;
                four.w = k + 3 < staged ? stage[k + 3][threadIdx.x] : -1;
                *reinterpret_cast<int4 *>(slot + first + k) = four;
            }
        } else {
            for (int32_t k = 0; k < end; k++)
                slot[first + k] = k < staged ? stage[k][threadIdx.x] : -1;
        }
    }
    /* Writes staged partners from k on to partner, from entry e on, up to its capacity. */
    __device__ void put_rest(int32_t k, int64_t e)
    {
        for (; k < staged && e < rows.capacity; k++, e++) {
            rows.partner[e] = stage[k][threadIdx.x];
            rows.own[e] = i;
            rows.link[e] = -1;
            if (last >= 0) rows.link[last] = (int32_t)e;
            else head = (int32_t)e;
            last = (int32_t)e;
        }
    }
    __device__ int32_t beyond(int32_t first) const /* the first staged partner without a slot */
    {
        int32_t const k = rows.width - first;
        return k < 0 ? 0 : k < staged ? k : staged;
    }
    __device__ void put(int32_t j)
    {
        stage[staged++][threadIdx.x] = j;
        count++;
        if (staged < nlist_i_stage) return;
        int32_t const first = count - staged, k = beyond(first);
        if (first < rows.width) put_slots(first);
        if (rows.partner && k < staged) {
            int64_t const e = counter ? nlist_i_take_stage(counter, staged - k) : base;
            put_rest(k, e);
            base += staged - k;
        }
        staged = 0;
    }
    /* The end of the row; all lanes of the warp call it, also those without a row (exists =
       false). */
    __device__ void finish(bool exists)
    {
        int32_t const first = count - staged, k = exists && rows.partner ? beyond(first) : staged;
        __syncwarp();
        int64_t const e = counter ? nlist_i_take_at_once(counter, staged - k) : base;
        if (!exists) return;
        for (int32_t from = first; from < rows.width; from += nlist_i_stage) {
            put_slots(from);
            if (from == first && rows.partner) put_rest(k, e);
            staged = 0;
        }
        if (first >= rows.width && rows.partner) put_rest(k, e);
        rows.count[i] = count;
        if (rows.head) rows.head[i] = head;
    }
};

/* The entries of partner that a row needs, with the bit that counts it as touched
   (nlist_i_add_lengths). COMPACT: the number. */
__device__ __forceinline__ int64_t nlist_i_length(const nlist_rows &rows, int32_t count)
{
    int32_t const beyond = count > rows.width ? count - rows.width : 0;
    return rows.start ? count : beyond | (int64_t)((uint64_t)(count > 0) << nlist_i_touched_bit);
}

/* First pass: the length of each row. */
template <class Source>
__global__ void __launch_bounds__(nlist_i_search_block)
    nlist_i_count_kernel(__grid_constant__ const nlist_device device,
                         __grid_constant__ const nlist_i_job job,
                         __grid_constant__ const Source source, int64_t *lengths)
{
    const nlist &list = device.list;
    int32_t const turn = nlist_i_thread();
    nlist_i_query query = {};
    int32_t count = 0;
    if (nlist_i_skips(list, job.facts)) return;
    if (turn == 0) lengths[job.rows] = 0;
    const nlist_rows &rows = list.rows[nlist_i_to(list)];
    bool const begun = turn < job.n && source.begin(list, job, turn, query);
    bool const exists = turn < job.n && query.i < job.rows, searches = begun && exists;
    if (searches || nlist_i_by_whole_warp<Source>)
        source.each(list, job, rows, searches ? turn : -1, query, NLIST_I_FIRST,
                    nlist_i_tally{&count});
    if (exists) lengths[query.i] = nlist_i_length(rows, count);
}

#ifdef NLIST_I_UGRID_CUDA
/* The same for the rows of two places per thread: nlist_i_find_twins. */
__global__ void __launch_bounds__(nlist_i_search_block, 8)
    nlist_i_count_twins_kernel(__grid_constant__ const nlist_device device,
                               __grid_constant__ const nlist_i_job job,
                               __grid_constant__ const nlist_i_twins_source source,
                               int64_t *lengths)
{
    const nlist &list = device.list;
    const ugrid &grid = source.grid.grid;
    int32_t const place = 2 * nlist_i_thread(), last = job.n - 1;
    if (nlist_i_skips(list, job.facts)) return;
    if (place == 0) lengths[job.rows] = 0;
    ugrid_record own[2];
    nlist_real const reach = nlist_i_gap(&list.desc);
    int32_t length[2];
#pragma unroll
    for (int t = 0; t < 2; t++) {
        own[t] = ugrid_i_fetch_record(&grid.record[min(place + t, last)]);
        (void)nlist_i_takes_part(list, job, own[t].link, own[t].x); /* none is found otherwise */
    }
    ugrid_i_search_twins(grid, place, own, reach, nlist_i_limit(&list.desc, 0, 0), false,
                         source.kept(job), length);
#pragma unroll
    for (int t = 0; t < 2; t++)
        if (place + t < job.n && own[t].link < job.rows) lengths[own[t].link] = length[t];
}
#endif

/* Appends rows that have entries to touched, in no order. */
__device__ __forceinline__ void nlist_i_touch_row(const nlist_rows &rows, int32_t *counter,
                                                  int32_t i, bool has)
{
    unsigned const having = __ballot_sync(0xFFFFFFFFu, has);
    int const lane = (int)(threadIdx.x % 32);
    int32_t begin = 0;
    if (!having) return;
    if (lane == 0) begin = atomicAdd(counter, __popc(having));
    begin = __shfl_sync(0xFFFFFFFFu, begin, 0);
    if (has) rows.touched[begin + __popc(having & ((1u << lane) - 1))] = i;
}

/* Finds the rows and writes them, in all layouts but COMPACT. offsets: of a first pass, or NULL. */
template <class Source>
__global__ void __launch_bounds__(nlist_i_search_block)
    nlist_i_search_kernel(__grid_constant__ const nlist_device device,
                          __grid_constant__ const nlist_i_job job,
                          __grid_constant__ const Source source, const int64_t *offsets)
{
    __shared__ int32_t stage[nlist_i_stage][nlist_i_search_block];
    const nlist &list = device.list;
    if (nlist_i_skips(list, job.facts)) return;
    int const to = nlist_i_to(list);
    const nlist_rows &rows = list.rows[to];
    int32_t const turn = nlist_i_thread();
    nlist_i_query query = {};
    bool const begun = turn < job.n && source.begin(list, job, turn, query);
    bool const exists = turn < job.n && query.i < job.rows, searches = begun && exists;
    int32_t const i = exists ? query.i : 0;
    bool const counts = !offsets && rows.partner;
    nlist_i_writer writer = {rows, stage,
                             counts ? (unsigned long long *)&job.facts->entries[to] : nullptr,
                             offsets && exists ? nlist_i_low(offsets[i]) : 0, i, 0, 0, -1, -1};
    nlist_i_pass const pass = offsets ? NLIST_I_SECOND : NLIST_I_ONLY;
    if (searches || nlist_i_by_whole_warp<Source>)
        source.each(list, job, rows, searches ? turn : -1, query, pass,
                    [&](int32_t j) { writer.put(j); });
    writer.finish(exists);
    int32_t const count = writer.count;
    nlist_i_warp_max(&job.facts->needed_width, count);
    if (rows.touched && !offsets) nlist_i_touch_row(rows, &job.facts->touched[to], i, count > 0);
    if (!offsets) return;
    if (exists && rows.touched && count > 0) rows.touched[nlist_i_high(offsets[i])] = i;
    if (turn > 0) return;
    job.facts->entries[to] = (uint64_t)nlist_i_low(offsets[job.rows]);
    if (rows.touched) job.facts->touched[to] = (int32_t)nlist_i_high(offsets[job.rows]);
}

/* COMPACT: the begin of each row is known. The rows of a warp are staged in shared memory, and then
   all lanes write one row at a time, so that neighbouring lanes write neighbouring words. 1280 = 32
   rows of 40. Where rows are longer, the warp takes turns: in each, as many lanes as fit find their
   partners. A row that does not fit at all is written word by word. */
#ifdef CUDA_EMU
constexpr int nlist_i_warp_stage = 96;
#else
constexpr int nlist_i_warp_stage = 1280;
#endif

struct nlist_i_compact_row {
    int64_t begin;          /* in partner */
    int32_t length, staged; /* staged: the lengths of the rows of lower lanes */
};

/* The lanes first .. last-1, whose rows are in the stage from its begin on; `before`: `staged` of
   the first. staged: no = they do not fit. */
struct nlist_i_batch {
    int first, last;
    int32_t before;
    bool staged;
};

/* Where the lane's row begins in the stage: the sum of the lengths before it. */
__device__ __forceinline__ void nlist_i_stage_row(nlist_i_compact_row &row)
{
    int const lane = (int)(threadIdx.x % 32);
    int32_t sum = row.length;
    for (int distance = 1; distance < 32; distance *= 2) {
        int32_t const lower = __shfl_up_sync(0xFFFFFFFFu, sum, distance);
        if (lane >= distance) sum += lower;
    }
    row.staged = sum - row.length;
}

/* The lane's row. */
__device__ __forceinline__ nlist_i_compact_row nlist_i_compact_row_of(bool exists, int32_t i,
                                                                      const int64_t *offsets)
{
    nlist_i_compact_row row = {0, 0, 0};
    if (exists) row = {offsets[i], (int32_t)(offsets[i + 1] - offsets[i]), 0};
    nlist_i_stage_row(row);
    return row;
}

/* The batch that begins with lane `first`. whole_warp: all lanes search at the same time, so that
   there is one batch, staged or not. */
__device__ __forceinline__ nlist_i_batch nlist_i_next_batch(const nlist_i_compact_row &row,
                                                            int first, bool whole_warp)
{
    int const lane = (int)(threadIdx.x % 32);
    int32_t const before = __shfl_sync(0xFFFFFFFFu, row.staged, first);
    unsigned const fits =
        __ballot_sync(0xFFFFFFFFu, lane >= first &&
                                       row.staged + row.length - before <= nlist_i_warp_stage);
    if (whole_warp) return {0, 32, 0, fits == 0xFFFFFFFFu};
    return {first, first + (fits ? __popc(fits) : 1), before, fits != 0};
}

/* Of the row, as many entries as the list has room for. */
__device__ __forceinline__ int32_t nlist_i_room_of(const nlist_rows &rows,
                                                   const nlist_i_compact_row &row)
{
    int64_t const free = rows.capacity - row.begin;
    return free >= row.length ? row.length : free > 0 ? (int32_t)free : 0;
}

/* Writes the staged rows of a batch: each half of the warp one row at a time, with three entries of
   each of two rows on their way. names: of what is in the stage, or NULL. */
__device__ __forceinline__ void nlist_i_flush_rows(const nlist_rows &rows,
                                                   const nlist_i_compact_row &row,
                                                   const nlist_i_batch &batch, const int32_t *stage,
                                                   const int32_t *names)
{
    constexpr int half = 16, pairs = 2, entries = 3;
    int const lane = (int)(threadIdx.x % 32), own = lane % half;
    int32_t const own_room = nlist_i_room_of(rows, row);
    for (int pair = batch.first; pair < batch.last; pair += 2 * pairs) {
        int32_t *to[pairs];
        const int32_t *from[pairs];
        int32_t room[pairs], name[pairs][entries];
#pragma unroll
        for (int k = 0; k < pairs; k++) {
            int const r = pair + 2 * k + lane / half, there = min(r, 31);
            to[k] = rows.partner + __shfl_sync(0xFFFFFFFFu, (long long)row.begin, there);
            from[k] = stage + (__shfl_sync(0xFFFFFFFFu, row.staged, there) - batch.before);
            room[k] = __shfl_sync(0xFFFFFFFFu, own_room, there);
            if (r >= batch.last) room[k] = 0;
#pragma unroll
            for (int e = 0; e < entries; e++) {
                int32_t const at = own + half * e;
                name[k][e] = at < room[k] ? from[k][at] : 0;
                if (names) name[k][e] = names[name[k][e]];
            }
        }
#pragma unroll
        for (int k = 0; k < pairs; k++) {
#pragma unroll
            for (int e = 0; e < entries; e++)
                if (own + half * e < room[k]) to[k][own + half * e] = name[k][e];
            for (int32_t at = own + half * entries; at < room[k]; at += half)
                to[k][at] = names ? names[from[k][at]] : from[k][at];
        }
    }
}

/* The lane's row in a batch: in the stage, or in the list, as far as that has room. */
struct nlist_i_compact_writer {
    int32_t *to;
    int32_t room, at;
    __device__ void put(int32_t j)
    {
        if (at < room) to[at] = j;
        at++;
    }
};

/* Row `i`, and the whole list, described: a thread per row, in order, so that neighbouring lanes
   write neighbouring words. */
__device__ __forceinline__ void nlist_i_note_row(const nlist_rows &rows, const nlist_i_job &job,
                                                 int to, int32_t i, const int64_t *offsets)
{
    if (i < job.rows) {
        int64_t const begin = offsets[i];
        rows.start[i] = begin;
        rows.count[i] = (int32_t)(offsets[i + 1] - begin);
    }
    if (i > 0) return;
    rows.start[job.rows] = offsets[job.rows];
    job.facts->entries[to] = (uint64_t)offsets[job.rows];
}

template <class Source>
__global__ void __launch_bounds__(nlist_i_search_block)
    nlist_i_compact_kernel(__grid_constant__ const nlist_device device,
                           __grid_constant__ const nlist_i_job job,
                           __grid_constant__ const Source source, const int64_t *offsets)
{
    __shared__ int32_t stages[nlist_i_search_block / 32][nlist_i_warp_stage];
    const nlist &list = device.list;
    if (nlist_i_skips(list, job.facts)) return;
    int const to = nlist_i_to(list);
    const nlist_rows &rows = list.rows[to];
    int32_t *const stage = stages[threadIdx.x / 32];
    int const lane = (int)(threadIdx.x % 32);
    int32_t const turn = nlist_i_thread();
    nlist_i_query query = {};
    bool const begun = turn < job.n && source.begin(list, job, turn, query);
    bool const exists = turn < job.n && query.i < job.rows, searches = begun && exists;
    nlist_i_compact_row const row = nlist_i_compact_row_of(exists, query.i, offsets);
    constexpr bool whole_warp = nlist_i_by_whole_warp<Source>;
    const int32_t *names = nullptr; /* of what is put */
    for (int first = 0; first < 32;) {
        nlist_i_batch const now = nlist_i_next_batch(row, first, whole_warp);
        bool const mine = searches && lane >= now.first && lane < now.last;
        nlist_i_compact_writer writer =
            now.staged
                ? nlist_i_compact_writer{stage + (row.staged - now.before), row.length, 0}
                : nlist_i_compact_writer{rows.partner + row.begin, nlist_i_room_of(rows, row), 0};
        auto const put = [&](int32_t j) { writer.put(j); };
        if constexpr (nlist_i_finds_places<Source>) {
            names = source.names();
            if (mine) source.each_place(list, job, rows, turn, query, put);
            if (mine && !now.staged)
                for (int32_t k = 0; k < writer.room; k++) writer.to[k] = names[writer.to[k]];
        } else if (mine || whole_warp)
            source.each(list, job, rows, mine ? turn : -1, query, NLIST_I_SECOND, put);
        __syncwarp();
        if (now.staged) nlist_i_flush_rows(rows, row, now, stage, names);
        __syncwarp();
        first = now.last;
    }
    nlist_i_warp_max(&job.facts->needed_width, row.length);
    nlist_i_note_row(rows, job, to, turn, offsets);
}

/* ----------------------------------------------------------------------------------------------
   >>shared: half lists by half of a search

   Each pair is found once, at the lower of its places. The lower id owns it, so a thread finds
   pairs of its own row and of rows that other threads append to as well. `count` is the counter of
   a row; a chain grows at its head. Rows come in any order: deterministic lists are searched for
   row by row.

       open       rows of no entries
       share      pairs are appended to slots, and to the rest
       COMPACT    the lengths of rows are counted; after the scan a row is filled from its begin by
                  its own thread, and from its end by others, which count its length down
       close      what is known once rows are complete
   ---------------------------------------------------------------------------------------------- */

/* Rows to append to. COMPACT: lengths to add to. */
__global__ void nlist_i_open_kernel(__grid_constant__ const nlist_device device,
                                    __grid_constant__ const nlist_i_job job, int64_t *lengths)
{
    int64_t const t = nlist_i_global_thread();
    if (nlist_i_skips(device.list, job.facts)) return;
    const nlist_rows &rows = device.list.rows[nlist_i_to(device.list)];
    int64_t const slots = (int64_t)rows.n * rows.width;
    if (rows.start) {
        if (t <= job.rows) lengths[t] = 0;
        return;
    }
    if (t < rows.n) rows.count[t] = 0;
    if (t < rows.n && rows.head) rows.head[t] = -1;
    int4 const none = make_int4(-1, -1, -1, -1);
    if (4 * t + 4 <= slots) *reinterpret_cast<int4 *>(rows.slot + 4 * t) = none;
    else for (int64_t k = 4 * t; k < slots; k++) rows.slot[k] = -1;
}

/* The facts about complete rows, and which have entries. offsets: of COMPACT, or NULL. */
__global__ void nlist_i_close_kernel(__grid_constant__ const nlist_device device,
                                     __grid_constant__ const nlist_i_job job,
                                     const int64_t *offsets)
{
    const nlist &list = device.list;
    int32_t const i = nlist_i_thread();
    if (nlist_i_skips(list, job.facts)) return;
    int const to = nlist_i_to(list);
    const nlist_rows &rows = list.rows[to];
    if (offsets) nlist_i_note_row(rows, job, to, i, offsets);
    int32_t const count = i < job.rows ? rows.count[i] : 0;
    nlist_i_block_max(&job.facts->needed_width, count);
    if (!rows.touched) return; /* the same for all threads */
    int const lane = (int)(threadIdx.x % 32), warp = (int)(threadIdx.x / 32);
    __shared__ int32_t before[nlist_i_block / 32 + 1]; /* touched rows of lower warps, and the begin
                                                          of the block's */
    unsigned const having = __ballot_sync(0xFFFFFFFFu, count > 0);
    if (lane == 0) before[warp] = __popc(having);
    __syncthreads();
    if (threadIdx.x == 0) {
        int32_t sum = 0;
        for (int w = 0; w < nlist_i_block / 32; w++) {
            int32_t const own = before[w];
            before[w] = sum;
            sum += own;
        }
        before[nlist_i_block / 32] = sum > 0 ? atomicAdd(&job.facts->touched[to], sum) : 0;
    }
    __syncthreads();
    if (count > 0)
        rows.touched[before[nlist_i_block / 32] + before[warp] +
                     __popc(having & ((1u << lane) - 1))] = i;
}

/* One entry of the rest, in front of the chain of its row. */
__device__ __forceinline__ void nlist_i_chain(const nlist_rows &rows, int32_t row, int32_t id,
                                              int64_t e)
{
    if (e >= rows.capacity) return;
    rows.partner[e] = id;
    rows.own[e] = row;
    rows.link[e] = atomicExch(&rows.head[row], (int32_t)e);
}

/* COMPACT: one entry, before those that other threads have put at the end of its row. */
__device__ __forceinline__ void nlist_i_fill_from_end(const nlist_rows &rows, int32_t row,
                                                      int32_t id, const int64_t *offsets,
                                                      int64_t *lengths)
{
    unsigned long long const left = atomicAdd((unsigned long long *)&lengths[row], ~0ull);
    int64_t const e = offsets[row] + (int64_t)left - 1;
    if (e < rows.capacity) rows.partner[e] = id;
}

/* Adds 1 for each lane that is here, with one atomic. */
__device__ __forceinline__ int64_t nlist_i_take_one(unsigned long long *counter)
{
    unsigned const here = __activemask();
    int const lane = (int)(threadIdx.x % 32), first = __ffs((int)here) - 1;
    unsigned long long begin = 0;
    if (lane == first) begin = atomicAdd(counter, (unsigned long long)__popc(here));
    return (int64_t)__shfl_sync(here, begin, first) + __popc(here & ((1u << lane) - 1));
}

/* A thread's pairs, on their way to rows: those of its own row are staged, and counted together;
   the others are appended at once. */
struct nlist_i_sharer {
    const nlist_desc &desc;
    const nlist_rows &rows;
    int32_t (*stage)[nlist_i_search_block]; /* column threadIdx.x is this thread's */
    unsigned long long *counter;            /* entries of partner in use */
    int32_t i, staged;

    __device__ void put(int32_t j)
    {
        if (i >= rows.n && j >= rows.n) return; /* two ghosts */
        if (!nlist_i_owns(&desc, rows.uid, i, j)) {
            give(j);
            return;
        }
        stage[staged++][threadIdx.x] = j;
        if (staged < nlist_i_stage) return;
        int32_t const slots = put_slots(), rest = staged - slots;
        if (rest > 0 && rows.partner) put_rest(slots, nlist_i_take_stage(counter, rest));
        staged = 0;
    }
    __device__ void give(int32_t j) const
    {
        int32_t const slot = atomicAdd(&rows.count[j], 1);
        if (slot < rows.width) rows.slot[(int64_t)j * rows.width + slot] = i;
        else if (rows.partner) nlist_i_chain(rows, j, i, nlist_i_take_one(counter));
    }
    /* Counts what is staged, and writes what has a slot: how many. */
    __device__ int32_t put_slots() const
    {
        if (staged == 0) return 0;
        if (!rows.slot) { /* DYNAMIC */
            atomicAdd(&rows.count[i], staged);
            return 0;
        }
        int32_t const first = atomicAdd(&rows.count[i], staged),
                      room = rows.width > first ? rows.width - first : 0,
                      many = staged < room ? staged : room;
        int32_t *const slot = rows.slot + (int64_t)i * rows.width + first;
        int32_t k = 0;
        if (rows.width % 4 == 0 && first % 4 == 0)
            for (; k + 4 <= many; k += 4)
                *reinterpret_cast<int4 *>(slot + k) =
                    make_int4(stage[k][threadIdx.x], stage[k + 1][threadIdx.x],
                              stage[k + 2][threadIdx.x], stage[k + 3][threadIdx.x]);
        for (; k < many; k++) slot[k] = stage[k][threadIdx.x];
        return many;
    }
    /* Writes the staged pairs from k on to partner, from entry e on: a chain, in front of the
       row's. */
    __device__ void put_rest(int32_t k, int64_t e) const
    {
        int64_t const begin = e;
        if (k >= staged || e >= rows.capacity) return;
        for (; k < staged && e < rows.capacity; k++, e++) {
            rows.partner[e] = stage[k][threadIdx.x];
            rows.own[e] = i;
            rows.link[e] = (int32_t)(e + 1);
        }
        rows.link[e - 1] = atomicExch(&rows.head[i], (int32_t)begin);
    }
    /* All lanes of the warp call it. */
    __device__ void finish()
    {
        int32_t const slots = put_slots();
        __syncwarp();
        if (rows.partner) put_rest(slots, nlist_i_take_at_once(counter, staged - slots));
    }
};

#ifdef NLIST_I_UGRID_CUDA
/* Finds pairs in a grid and appends them to their rows, in all layouts but COMPACT. */
template <class Source>
__global__ void __launch_bounds__(nlist_i_search_block)
    nlist_i_share_kernel(__grid_constant__ const nlist_device device,
                         __grid_constant__ const nlist_i_job job,
                         __grid_constant__ const Source source)
{
    __shared__ int32_t stage[nlist_i_stage][nlist_i_search_block];
    const nlist &list = device.list;
    if (nlist_i_skips(list, job.facts)) return;
    int const to = nlist_i_to(list);
    const nlist_rows &rows = list.rows[to];
    int32_t const turn = nlist_i_thread();
    nlist_i_query query = {};
    bool const begun = turn < job.n && source.begin(list, job, turn, query);
    nlist_i_sharer sharer = {list.desc, rows, stage,
                             (unsigned long long *)&job.facts->entries[to], query.i, 0};
    if (begun)
        source.each(list, job, rows, turn, query, NLIST_I_ONLY,
                    [&](int32_t j) { sharer.put(j); });
    sharer.finish();
}

/* COMPACT, first pass: adds each pair to the length of its row. */
template <class Source>
__global__ void __launch_bounds__(nlist_i_search_block)
    nlist_i_share_lengths_kernel(__grid_constant__ const nlist_device device,
                                 __grid_constant__ const nlist_i_job job,
                                 __grid_constant__ const Source source, int64_t *lengths)
{
    const nlist &list = device.list;
    int32_t const turn = nlist_i_thread();
    nlist_i_query query = {};
    if (turn >= job.n || nlist_i_skips(list, job.facts)) return;
    const nlist_rows &rows = list.rows[nlist_i_to(list)];
    if (!source.begin(list, job, turn, query)) {
        *source.own_length(job, turn) = 0;
        return;
    }
    uint32_t const own = source.count_half(list, job, rows, turn, query, [&](int32_t j) {
        atomicAdd((unsigned long long *)&lengths[j], 1ull);
    });
    if (own > 0) atomicAdd((unsigned long long *)&lengths[query.i], (unsigned long long)own);
}

/* COMPACT, second pass, as nlist_i_compact_kernel. A place stages the pairs of its own row; the
   others it writes at once. */
template <class Source>
__global__ void __launch_bounds__(nlist_i_search_block)
    nlist_i_share_compact_kernel(__grid_constant__ const nlist_device device,
                                 __grid_constant__ const nlist_i_job job,
                                 __grid_constant__ const Source source, const int64_t *offsets,
                                 int64_t *lengths)
{
    __shared__ int32_t stages[nlist_i_search_block / 32][nlist_i_warp_stage];
    const nlist &list = device.list;
    if (nlist_i_skips(list, job.facts)) return;
    const nlist_rows &rows = list.rows[nlist_i_to(list)];
    int32_t *const stage = stages[threadIdx.x / 32];
    int const lane = (int)(threadIdx.x % 32);
    int32_t const turn = nlist_i_thread();
    nlist_i_query query = {};
    bool const begun = turn < job.n && source.begin(list, job, turn, query);
    bool const exists = turn < job.n && query.i < job.rows;
    uint32_t const own = exists ? *source.own_length(job, turn) << 1 >> 1 : 0;
    nlist_i_compact_row row = {exists ? offsets[query.i] : 0, (int32_t)own, 0};
    nlist_i_stage_row(row);
    const int32_t *const names = source.names();
    for (int first = 0; first < 32;) {
        nlist_i_batch const now = nlist_i_next_batch(row, first, false);
        nlist_i_compact_writer writer =
            now.staged
                ? nlist_i_compact_writer{stage + (row.staged - now.before), row.length, 0}
                : nlist_i_compact_writer{rows.partner + row.begin, nlist_i_room_of(rows, row), 0};
        if (begun && own > 0 && lane >= now.first && lane < now.last) {
            source.fill_own(list, job, rows, turn, query,
                            [&](int32_t place) { writer.put(place); });
            for (int32_t k = 0; !now.staged && k < writer.room; k++)
                writer.to[k] = names[writer.to[k]];
        }
        __syncwarp();
        if (now.staged) nlist_i_flush_rows(rows, row, now, stage, names);
        __syncwarp();
        first = now.last;
    }
    if (begun)
        source.fill_others(list, job, rows, turn, query, [&](int32_t j) {
            nlist_i_fill_from_end(rows, j, query.i, offsets, lengths);
        });
}
#endif

#ifdef NLIST_I_LBVH_CUDA
/* Adds 1 for each lane that has an entry, with one atomic per warp. */
__device__ __forceinline__ int64_t nlist_i_take_ones(unsigned long long *counter, bool has)
{
    unsigned const having = __ballot_sync(0xFFFFFFFFu, has);
    int const lane = (int)(threadIdx.x % 32);
    unsigned long long begin = 0;
    if (having && lane == 0) begin = atomicAdd(counter, (unsigned long long)__popc(having));
    return (int64_t)__shfl_sync(0xFFFFFFFFu, begin, 0) + __popc(having & ((1u << lane) - 1));
}

/* Adds 1, or -1, to counter[row] for each lane that has a pair, with one atomic per row: so the row
   of a large element among small ones is no queue. Returns what each lane would have found. */
template <class Word>
__device__ __forceinline__ int64_t nlist_i_add_by_row(Word *counter, bool has, int32_t row,
                                                      int step)
{
    int const lane = (int)(threadIdx.x % 32);
    unsigned const same = __match_any_sync(0xFFFFFFFFu, has ? row : -1 - lane);
    int const leader = __ffs((int)same) - 1;
    Word found = 0;
    if (has && lane == leader) found = atomicAdd(&counter[row], (Word)(step * __popc(same)));
    found = __shfl_sync(0xFFFFFFFFu, found, leader);
    return (int64_t)found + step * __popc(same & ((1u << lane) - 1));
}

/* What becomes of pairs: all lanes call it. COMPACT, first pass: lengths are counted. */
struct nlist_i_count_pairs {
    unsigned long long *lengths;
    __device__ __forceinline__ void take(const nlist_rows &, unsigned long long *, bool has,
                                         int32_t row, int32_t) const
    {
        (void)nlist_i_add_by_row(lengths, has, row, 1);
    }
};

/* COMPACT, second pass: rows are filled from their ends. */
struct nlist_i_fill_pairs {
    unsigned long long *lengths;
    const int64_t *offsets;
    __device__ __forceinline__ void take(const nlist_rows &rows, unsigned long long *, bool has,
                                         int32_t row, int32_t id) const
    {
        int64_t const left = nlist_i_add_by_row(lengths, has, row, -1);
        int64_t const e = has ? offsets[row] + left - 1 : 0;
        if (has && e < rows.capacity) rows.partner[e] = id;
    }
};

/* The other layouts. */
struct nlist_i_append_pairs {
    __device__ __forceinline__ void take(const nlist_rows &rows, unsigned long long *counter,
                                         bool has, int32_t row, int32_t id) const
    {
        int64_t const slot = nlist_i_add_by_row(rows.count, has, row, 1);
        bool const rests = has && slot >= rows.width;
        if (has && !rests) rows.slot[(int64_t)row * rows.width + slot] = id;
        if (!rows.partner) return;
        int64_t const e = nlist_i_take_ones(counter, rests);
        if (rests) nlist_i_chain(rows, row, id, e);
    }
};

/* Finds pairs in a tree. */
template <class Source, class To, int Blocks>
__global__ void __launch_bounds__(nlist_i_search_block, Blocks)
    nlist_i_share_pairs_kernel(__grid_constant__ const nlist_device device,
                               __grid_constant__ const nlist_i_job job,
                               __grid_constant__ const Source source, To to_rows)
{
    const nlist &list = device.list;
    if (nlist_i_skips(list, job.facts)) return;
    int const to = nlist_i_to(list);
    const nlist_rows &rows = list.rows[to];
    unsigned long long *const counter = (unsigned long long *)&job.facts->entries[to];
    int32_t const turn = nlist_i_thread();
    nlist_i_query query = {};
    bool const begun = turn < job.n && source.whole.begin(list, job, turn, query);
    auto pair = [&](bool exists, int32_t i, int32_t j) {
        bool const owns = exists && nlist_i_owns(&list.desc, rows.uid, i, j);
        to_rows.take(rows, counter, exists, owns ? i : j, owns ? j : i);
    };
    source.each_pair(list, job, begun ? turn : -1, query, pair);
}
#endif

/* ----------------------------------------------------------------------------------------------
   >>carry: history and events
   ---------------------------------------------------------------------------------------------- */

/* Copies the bytes of one entry, in the largest words that all entries are aligned to; from NULL:
   zeros. */
template <class Word>
__device__ __forceinline__ void nlist_i_copy_words(unsigned char *to, const unsigned char *from,
                                                   int32_t bytes)
{
    for (int32_t k = 0; k < bytes; k += (int32_t)sizeof(Word)) {
        Word const word = from ? *reinterpret_cast<const Word *>(from + k) : Word();
        *reinterpret_cast<Word *>(to + k) = word;
    }
}
__device__ __forceinline__ void nlist_i_copy_bytes(unsigned char *to, const unsigned char *from,
                                                   int32_t bytes)
{
    if (bytes % 16 == 0) nlist_i_copy_words<uint4>(to, from, bytes);
    else if (bytes % 4 == 0) nlist_i_copy_words<uint32_t>(to, from, bytes);
    else nlist_i_copy_words<unsigned char>(to, from, bytes);
}

/* The search for a contact that is not in the old row under its key. Lists of particles have none,
   those of triangles use nlist_i_wander. */
struct nlist_i_particle_carry {
    __device__ int64_t wander(const nlist &, const nlist_i_job &, int, int32_t, int32_t,
                              uint64_t &) const
    {
        return -1;
    }
};

#ifdef NLIST_I_LBVH_CUDA
struct nlist_i_mesh_carry {
    nlist_mesh mesh;
    __device__ int64_t wander(const nlist &list, const nlist_i_job &job, int to, int32_t i,
                              int32_t key, uint64_t &taken) const
    {
        nlist_real p[3];
        if (job.facts->filled == 0 || list.desc.skin > 0) return -1;
        nlist_i_load(job.pos, job.stride, 3, i, p);
        return nlist_i_wander(&list.rows[1 - to], &list.rows[to], list.desc.history, i, &mesh, p,
                              nlist_i_gap(&list.desc) + nlist_i_radius(&list.desc, i), key, &taken);
    }
};
#endif

/* Calls visit(new entry, old entry or -1) for every new entry of row i: as nlist_i_carry_row. */
template <class Carry, class Visit>
__device__ __forceinline__ void nlist_i_match_all(const nlist &list, const nlist_i_job &job,
                                                  const Carry &carry, int to, int32_t i,
                                                  Visit visit)
{
    int32_t const bytes = list.desc.history, was = job.new_of ? job.old_of[i] : i;
    nlist_i_matcher matcher = nlist_i_match_row(&list.rows[1 - to], bytes,
                                                job.facts->filled > 0 ? was : -1, job.new_of,
                                                list.keys);
    nlist_each e = nlist_i_row(&list.rows[to], bytes, i);
    uint64_t taken = 0;
    while (nlist_next(&e)) {
        int64_t old = nlist_i_match(&matcher, e.id, e.shift);
        if (old < 0) old = carry.wander(list, job, to, i, e.id, taken);
        visit(e, old);
    }
}

#ifdef NLIST_I_LBVH_CUDA
/* A thread per row, since the wander search needs the whole row. */
__global__ void nlist_i_carry_rows_kernel(__grid_constant__ const nlist_device device,
                                          __grid_constant__ const nlist_i_job job,
                                          __grid_constant__ const nlist_i_mesh_carry carry)
{
    const nlist &list = device.list;
    if (nlist_i_skips(list, job.facts)) return;
    int const to = nlist_i_to(list);
    const nlist_rows &rows = list.rows[to];
    if (!nlist_i_fitted(list, job.facts, to)) return;
    const unsigned char *const was = list.rows[1 - to].history;
    int32_t const bytes = list.desc.history;
    for (int64_t t = nlist_i_global_thread(); t < job.facts->touched[to];
         t += nlist_i_all_threads())
        nlist_i_match_all(list, job, carry, to, rows.touched[t],
                          [&](const nlist_each &e, int64_t old) {
                              nlist_i_copy_bytes(static_cast<unsigned char *>(e.history),
                                                 old >= 0 ? was + old * bytes : nullptr, bytes);
                          });
}
#endif

/* A row with more entries in partner than this is long. If it changes its order, each of its new
   entries would walk the old row: the square of its length. So the old entries of long rows stand
   in a table, a hash table by row and partner: 8 bytes for each entry that partner has room for,
   taken by nlist_cuda_check where it sees such a row, and by nlist_cuda_reserve. */
#ifdef CUDA_EMU
constexpr int32_t nlist_i_long = 6;
#else
constexpr int32_t nlist_i_long = 64;
#endif

/* Where the carry writes: the new generation's history, or the work space (>>in-place). */
__device__ __forceinline__ unsigned char *nlist_i_carried(const nlist_rows &rows,
                                                          const nlist_i_job &job)
{
    return job.spare ? job.spare : rows.history;
}

/* The place in the table where the search for a partner of an old row begins. */
__device__ __forceinline__ int64_t nlist_i_place(const nlist_i_job &job, int32_t was, int32_t id)
{
    uint32_t x = (uint32_t)id * 0x9E3779B9u ^ (uint32_t)was * 0x85EBCA6Bu;
    x = (x ^ x >> 15) * 0x2C1B3C6Du;
    return (int64_t)((uint64_t)(x ^ x >> 13) * (uint64_t)job.places >> 32);
}

/* The partner of entry e of partner in the old list, by its new id; -1 = it is gone. */
__device__ __forceinline__ int32_t nlist_i_named(const nlist_i_job &job, const nlist_rows &old_rows,
                                                 int64_t e)
{
    int32_t const id = old_rows.partner[e];
    return job.new_of ? job.new_of[id] : id;
}

/* True if the old row has so many entries in partner that the table has them. */
__device__ __forceinline__ bool nlist_i_is_long(const nlist_rows &old_rows, int32_t was)
{
    return was >= 0 && old_rows.partner && old_rows.count[was] - old_rows.width > nlist_i_long;
}

/* The table gets entry e of a long old row. */
__device__ __forceinline__ void nlist_i_enter(const nlist_i_job &job, const nlist_rows &old_rows,
                                              int32_t was, int64_t e)
{
    int32_t const id = nlist_i_named(job, old_rows, e);
    if (id < 0) return;
    int64_t at = nlist_i_place(job, was, id);
    while (atomicCAS(&job.table[at], -1, (int32_t)e) != -1) at = at + 1 < job.places ? at + 1 : 0;
}

/* The old entry of a partner of a long old row, -1 = none: in a slot, or by the table. */
__device__ __forceinline__ int64_t nlist_i_look_up(const nlist_i_job &job,
                                                   const nlist_rows &old_rows, int32_t was,
                                                   int32_t id)
{
    int64_t const slots = (int64_t)old_rows.n * old_rows.width, row = (int64_t)was * old_rows.width;
    for (int32_t k = 0; k < old_rows.width; k++) {
        int32_t const there = old_rows.slot[row + k];
        if (there >= 0 && (job.new_of ? job.new_of[there] : there) == id) return row + k;
    }
    for (int64_t at = nlist_i_place(job, was, id);; at = at + 1 < job.places ? at + 1 : 0) {
        int64_t const e = job.table[at];
        if (e < 0) return -1;
        bool const own = old_rows.own ? old_rows.own[e] == was
                                      : e >= old_rows.start[was] && e < old_rows.start[was + 1];
        if (own && nlist_i_named(job, old_rows, e) == id) return slots + e;
    }
}

/* The table of a build: a thread per old entry, or nlist_i_row_lanes per old row of COMPACT. */
__global__ void nlist_i_enter_kernel(__grid_constant__ const nlist_device device,
                                     __grid_constant__ const nlist_i_job job)
{
    const nlist &list = device.list;
    if (nlist_i_skips(list, job.facts) || job.facts->filled == 0) return;
    const nlist_rows &old_rows = list.rows[1 - nlist_i_to(list)];
    int64_t const had = old_rows.own ? nlist_i_rest_entries(&list, &old_rows, job.facts) : 0,
                  lanes = old_rows.start ? (int64_t)old_rows.n * nlist_i_row_lanes : 0;
    for (int64_t e = nlist_i_global_thread(); e < had; e += nlist_i_all_threads())
        if (nlist_i_is_long(old_rows, old_rows.own[e]))
            nlist_i_enter(job, old_rows, old_rows.own[e], e);
    for (int64_t t = nlist_i_global_thread(); t < lanes; t += nlist_i_all_threads()) {
        int32_t const i = (int32_t)(t / nlist_i_row_lanes);
        if (!nlist_i_is_long(old_rows, i)) continue;
        for (int64_t e = old_rows.start[i] + t % nlist_i_row_lanes; e < old_rows.start[i + 1];
             e += nlist_i_row_lanes)
            nlist_i_enter(job, old_rows, i, e);
    }
}

/* The old entry of a new one, entry k of row i, -1 = none. If it was entry k of the old row, it is
   found at once. */
__device__ __forceinline__ int64_t nlist_i_find_old(const nlist &list, const nlist_i_job &job,
                                                    int to, int32_t i, int64_t k, int32_t id,
                                                    int64_t entry)
{
    const nlist_rows &old_rows = list.rows[1 - to];
    int32_t const was = job.facts->filled == 0 ? -1 : job.new_of ? job.old_of[i] : i;
    if (job.table && was < old_rows.n && nlist_i_is_long(old_rows, was))
        return nlist_i_look_up(job, old_rows, was, id);
    nlist_i_matcher matcher = nlist_i_match_row(&old_rows, 0, was, job.new_of, list.keys);
    matcher.cursor.at = nlist_i_least(matcher.cursor.at + k, matcher.cursor.end);
    matcher.cursor.entry = matcher.cursor.at; /* round the row, to here again */
    const int32_t *const shifts = list.rows[to].shift;
    return nlist_i_match(&matcher, id, shifts ? shifts + 3 * entry : nullptr);
}

/* Copies the bytes of one new entry, entry k of row i. */
__device__ __forceinline__ void nlist_i_carry_entry(const nlist &list, const nlist_i_job &job,
                                                    int to, int32_t i, int64_t k, int32_t id,
                                                    int64_t entry)
{
    const nlist_rows &old_rows = list.rows[1 - to];
    int32_t const bytes = list.desc.history;
    int64_t const old = nlist_i_find_old(list, job, to, i, k, id, entry);
    nlist_i_copy_bytes(nlist_i_carried(list.rows[to], job) + entry * bytes,
                       old >= 0 ? old_rows.history + old * bytes : nullptr, bytes);
}

/* A thread per slot. */
__global__ void nlist_i_carry_slots_kernel(__grid_constant__ const nlist_device device,
                                           __grid_constant__ const nlist_i_job job)
{
    const nlist &list = device.list;
    if (nlist_i_skips(list, job.facts)) return;
    int const to = nlist_i_to(list);
    const nlist_rows &rows = list.rows[to];
    int64_t const entry = nlist_i_global_thread();
    int const shift = __ffs(rows.width) - 1;
    if (entry >= (int64_t)rows.n * rows.width || !nlist_i_fitted(list, job.facts, to)) return;
    int32_t const id = rows.slot[entry];
    if (id < 0) return;
    int32_t const i = rows.width == 1 << shift ? (int32_t)(entry >> shift)
                                               : (int32_t)(entry / rows.width);
    nlist_i_carry_entry(list, job, to, i, entry - (int64_t)i * rows.width, id, entry);
}

/* In place: the slots of row i, whose old or new row has a rest. */
__device__ void nlist_i_carry_long_row(const nlist &list, const nlist_i_job &job, int to, int32_t i)
{
    const nlist_rows &rows = list.rows[to];
    int64_t const begin = (int64_t)i * rows.width;
    for (int32_t k = 0; k < rows.width && rows.slot[begin + k] >= 0; k++)
        nlist_i_carry_entry(list, job, to, i, k, rows.slot[begin + k], begin + k);
}

/* In place: the slots of all such rows, found by the first entry of their rest. */
__device__ __forceinline__ void nlist_i_carry_long_rows(const nlist &list, const nlist_i_job &job,
                                                        int to, int64_t entries)
{
    const nlist_rows &rows = list.rows[to], &old_rows = list.rows[1 - to];
    int64_t const all = nlist_i_all_threads(),
                  had = job.facts->filled == 0 ? 0
                                               : nlist_i_rest_entries(&list, &old_rows, job.facts);
    for (int64_t e = nlist_i_global_thread(); e < entries; e += all)
        if (rows.head[rows.own[e]] == e) nlist_i_carry_long_row(list, job, to, rows.own[e]);
    for (int64_t e = nlist_i_global_thread(); e < had; e += all) {
        int32_t const i = old_rows.own[e];
        if (old_rows.head[i] == e && rows.head[i] < 0) nlist_i_carry_long_row(list, job, to, i);
    }
}

/* A thread per entry of the rest. InPlace: slots of rows that have a rest, too. */
template <bool InPlace>
__global__ void __launch_bounds__(nlist_i_block, 5)
    nlist_i_carry_rest_kernel(__grid_constant__ const nlist_device device,
                              __grid_constant__ const nlist_i_job job)
{
    const nlist &list = device.list;
    if (nlist_i_skips(list, job.facts)) return;
    int const to = nlist_i_to(list);
    const nlist_rows &rows = list.rows[to];
    int64_t const entries = nlist_i_rest_entries(&list, &rows, job.facts),
                  slots = (int64_t)rows.n * rows.width;
    if (!nlist_i_fitted(list, job.facts, to)) return;
    for (int64_t e = nlist_i_global_thread(); e < entries; e += nlist_i_all_threads())
        nlist_i_carry_entry(list, job, to, rows.own[e], rows.width, rows.partner[e], slots + e);
    if (InPlace) nlist_i_carry_long_rows(list, job, to, entries);
}

/* COMPACT: nlist_i_row_lanes threads share a row. */
__global__ void __launch_bounds__(nlist_i_block, 6)
    nlist_i_carry_compact_kernel(__grid_constant__ const nlist_device device,
                                 __grid_constant__ const nlist_i_job job)
{
    const nlist &list = device.list;
    if (nlist_i_skips(list, job.facts)) return;
    int const to = nlist_i_to(list);
    const nlist_rows &rows = list.rows[to];
    int64_t const i = nlist_i_global_thread() / nlist_i_row_lanes;
    if (i >= rows.n || !nlist_i_fitted(list, job.facts, to)) return;
    for (int64_t e = rows.start[i] + threadIdx.x % nlist_i_row_lanes; e < rows.start[i + 1];
         e += nlist_i_row_lanes)
        nlist_i_carry_entry(list, job, to, (int32_t)i, e - rows.start[i], rows.partner[e], e);
}

/* Fills the table, if there is one. */
nlist_result nlist_i_fill_table(nlist_cuda *gpu, const nlist_i_job &job, cudaStream_t stream)
{
    if (!job.table) return NLIST_OK;
    if (nlist_i_failed(gpu, cudaMemsetAsync(job.table, 0xFF,
                                            (size_t)job.places * sizeof *job.table, stream)))
        return NLIST_CUDA_ERROR;
    return nlist_i_launch(gpu, stream, nlist_i_round(gpu), nlist_i_block, nlist_i_enter_kernel,
                          gpu->device, job);
}

/* Launches the carry of history. Slots whose rows stay in place are not copied (>>in-place). */
nlist_result nlist_i_carry_history(nlist_cuda *gpu, const nlist_i_job &job,
                                   const nlist_i_particle_carry &, cudaStream_t stream)
{
    const nlist_desc *desc = &gpu->device.list.desc;
    int64_t const rows = job.rows;
    nlist_result result = nlist_i_fill_table(gpu, job, stream);
    if (result == NLIST_OK && desc->layout == NLIST_COMPACT)
        return nlist_i_launch(gpu, stream, rows * nlist_i_row_lanes, nlist_i_block,
                              nlist_i_carry_compact_kernel, gpu->device, job);
    bool const stay = job.spare && !job.new_of;
    if (result == NLIST_OK && nlist_i_has_slots(desc) && !stay)
        result = nlist_i_launch(gpu, stream, rows * desc->width, nlist_i_block,
                                nlist_i_carry_slots_kernel, gpu->device, job);
    if (result == NLIST_OK && nlist_i_has_rest(desc))
        result = nlist_i_launch(gpu, stream, nlist_i_round(gpu), nlist_i_block,
                                stay ? nlist_i_carry_rest_kernel<true>
                                     : nlist_i_carry_rest_kernel<false>,
                                gpu->device, job);
    return result;
}

#ifdef NLIST_I_LBVH_CUDA
/* The same for lists of triangles: a thread per row. */
nlist_result nlist_i_carry_history(nlist_cuda *gpu, const nlist_i_job &job,
                                   const nlist_i_mesh_carry &carry, cudaStream_t stream)
{
    return nlist_i_launch(gpu, stream, nlist_i_least(job.rows, nlist_i_round_threads),
                          nlist_i_block, nlist_i_carry_rows_kernel, gpu->device, job, carry);
}
#endif

/* The states of new entries (desc.contacts): a thread per row. */
template <class Carry>
__global__ void nlist_i_carry_states_kernel(__grid_constant__ const nlist_device device,
                                            __grid_constant__ const nlist_i_job job,
                                            __grid_constant__ const Carry carry)
{
    const nlist &list = device.list;
    int32_t const i = nlist_i_thread();
    if (i >= job.rows || nlist_i_skips(list, job.facts)) return;
    int const to = nlist_i_to(list);
    if (!nlist_i_fitted(list, job.facts, to)) return;
    nlist_i_match_all(list, job, carry, to, i, [&](const nlist_each &e, int64_t old) {
        e.all_states[e.entry] = nlist_i_next_state(&list.rows[1 - to], old, job.new_of != nullptr);
    });
}

/* As nlist_i_reports. */
__device__ __forceinline__ bool nlist_i_reports_pair(const nlist &list, int32_t i,
                                                     const nlist_each &e)
{
    return list.keys || list.desc.half || i < e.id ||
           (i == e.id && e.shift && nlist_i_positive(e.shift));
}

/* Calls event(kind, i, j, entry) for the events of row i. */
template <class Carry, class Event>
__device__ __forceinline__ void nlist_i_row_events(const nlist &list, const nlist_i_job &job,
                                                   const Carry &carry, int to, bool ended,
                                                   int32_t i, Event event)
{
    if (!ended) {
        nlist_i_match_all(list, job, carry, to, i, [&](const nlist_each &e, int64_t old) {
            int const kind = nlist_i_event_of(&list.rows[1 - to], &list.rows[to], old);
            if (kind >= 0 && nlist_i_reports_pair(list, i, e)) event(kind, e.id, e.entry);
        });
        return;
    }
    nlist_i_matcher matcher = nlist_i_match_row(&list.rows[to], 0, i, nullptr, list.keys);
    nlist_each e = nlist_i_row(&list.rows[1 - to], 0, i);
    while (nlist_next(&e))
        if (nlist_i_reports_pair(list, i, e) &&
            nlist_i_has_ended(&list.rows[1 - to], e.entry,
                              nlist_i_match(&matcher, e.id, e.shift) >= 0))
            event(NLIST_ENDED, e.id, e.entry);
}

/* First pass: counts the events of each row; begun in the lower 32 bits, persisting in the upper;
   or ended. The scan leaves the sums at row `rows`. (2^32 events of the three kinds would take 192
   GB.) */
template <class Carry>
__global__ void nlist_i_count_events_kernel(__grid_constant__ const nlist_device device,
                                            __grid_constant__ const nlist_i_job job,
                                            __grid_constant__ const Carry carry, bool ended,
                                            int32_t rows, int64_t *lengths)
{
    const nlist &list = device.list;
    int32_t const i = nlist_i_thread();
    int64_t length = 0;
    if (i > rows || nlist_i_skips(list, job.facts)) return;
    int const to = nlist_i_to(list);
    bool const no_list_before = ended && job.facts->filled == 0;
    if (i < rows && !no_list_before && nlist_i_fitted(list, job.facts, to))
        nlist_i_row_events(list, job, carry, to, ended, i, [&](int kind, int32_t, int64_t) {
            length += kind == NLIST_PERSISTED ? (int64_t)1 << 32 : 1;
        });
    lengths[i] = length;
}

/* Second pass: writes them. */
template <class Carry>
__global__ void nlist_i_write_events_kernel(__grid_constant__ const nlist_device device,
                                            __grid_constant__ const nlist_i_job job,
                                            __grid_constant__ const Carry carry, bool ended,
                                            int32_t rows, const int64_t *offsets)
{
    const nlist &list = device.list;
    int32_t const i = nlist_i_thread();
    if (i > rows || nlist_i_skips(list, job.facts)) return;
    int const to = nlist_i_to(list);
    int64_t at[NLIST_EVENT_KINDS] = {offsets[i] & 0xFFFFFFFF, offsets[i] >> 32, offsets[i]};
    if (!nlist_i_fitted(list, job.facts, to)) return;
    if (i == rows) {
        for (int kind = ended ? NLIST_ENDED : NLIST_BEGUN;
             kind <= (ended ? NLIST_ENDED : NLIST_PERSISTED); kind++)
            job.facts->events[kind] = (uint64_t)at[kind];
        return;
    }
    if (ended && job.facts->filled == 0) return;
    nlist_i_row_events(list, job, carry, to, ended, i, [&](int kind, int32_t j, int64_t entry) {
        nlist_event event = {!list.keys && j < i ? j : i, !list.keys && j < i ? i : j, entry};
        list.event[kind][at[kind]++] = event;
    });
}

/* The reference positions of the skin: as nlist_i_keep_reference. */
__global__ void nlist_i_reference_kernel(__grid_constant__ const nlist_device device,
                                         __grid_constant__ const nlist_i_job job,
                                         nlist_real nowhere)
{
    const nlist &list = device.list;
    int32_t const i = nlist_i_thread();
    if (i >= job.n || nlist_i_skips(list, job.facts)) return;
    int const to = nlist_i_to(list), dim = list.desc.dim;
    int32_t const was = job.new_of ? nlist_i_was(job, list.rows[1 - to], i) : -1;
    nlist_real *const reference = list.rows[to].reference + (size_t)i * dim;
    nlist_real p[3] = {nowhere, nowhere, nowhere};
    if (was >= 0 && list.rows[1 - to].reference)
        nlist_i_load(list.rows[1 - to].reference, (size_t)dim * sizeof(nlist_real), dim, was, p);
    else if (!job.new_of && job.pos) nlist_i_load(job.pos, job.stride, dim, i, p);
    for (int a = 0; a < dim; a++) reference[a] = p[a];
}

/* If all has fitted, the new rows become the list. */
__device__ __forceinline__ void nlist_i_swap(const nlist &list, const nlist_i_job &job)
{
    nlist_cuda_facts *const facts = job.facts;
    int const to = nlist_i_to(list);
    facts->full = !nlist_i_fitted(list, facts, to);
    if (facts->full) facts->moved++; /* the next build must not be skipped */
    if (facts->full && list.d_current) return;
    if (list.d_current) facts->current = to;
    facts->next_uid = job.uids ? facts->next_uid + job.n : job.n;
    if (!job.new_of) facts->triangles = list.triangles;
    facts->skin = (double)list.desc.skin;
    facts->filled++;
}

__global__ void nlist_i_swap_kernel(__grid_constant__ const nlist_device device,
                                    __grid_constant__ const nlist_i_job job)
{
    if (!nlist_i_skips(device.list, job.facts)) nlist_i_swap(device.list, job);
}

/* ----------------------------------------------------------------------------------------------
   >>in-place: history that stays where it is

   In HYBRID and STATIC lists slot k of row i is the same entry in both generations, and most rows
   do not change. So both have one array of history, and a row whose slots hold what they held is
   not touched: its ids are compared, and that is all. (Kureck, section 5.5, compacts the static
   entries in place, and appends new ones to the dynamic list.)

       old slots   [ 7  9  4 -1 ]  [ 3  5 -1 -1 ]      the first row is moved within itself:
       new slots   [ 9  4  8 -1 ]  [ 3  5 -1 -1 ]      all of it is read before any is written
       history       b  c  0         stays

   Rows with a rest, in the old list or the new, have been carried to the work space before
   (nlist_i_carry_long_rows), and are copied from there, as all rows are in a remap. One kernel
   does all this and then swaps, so that a build that fails before it has changed nothing.

   A block takes a tile of rows. Its threads compare the slots, four at a time, and note the rows
   that changed; then a thread moves one slot of these.
   ---------------------------------------------------------------------------------------------- */

constexpr int nlist_i_tile = 16384, nlist_i_tile_most = 4096, nlist_i_tile_loads = 4,
              nlist_i_moves = 4, nlist_i_move_slots = nlist_i_moves * nlist_i_block;

/* Rows that changed, by number in the tile; -1 - r: row r comes from the work space. */
struct nlist_i_changes {
    int32_t count;
    int16_t row[nlist_i_tile_most];
    uint32_t changed[nlist_i_tile_most / 32], spare[nlist_i_tile_most / 32]; /* a bit per row */
};

/* The old and the new slots of a tile. */
struct nlist_i_tile_rows {
    const nlist_rows &rows, &old_rows;
    bool none;          /* there is no old list */
    int64_t first;      /* row */
    int32_t count;      /* rows */

    /* Notes what some slots of one row say, those from slot `at` of the tile on. */
    template <int Slots>
    __device__ void note(nlist_i_changes &changes, int32_t at, const int32_t *now,
                         const int32_t *had) const
    {
        bool same = true;
#pragma unroll
        for (int k = 0; k < Slots; k++) same = same && now[k] == had[k];
        int32_t const r = at / rows.width;
        bool const last = (at + Slots) % rows.width == 0;
        bool const has = last && rows.head && now[Slots - 1] >= 0 && rows.head[first + r] >= 0,
                   had_one = last && rows.head && had[Slots - 1] >= 0 &&
                             old_rows.head[first + r] >= 0,
                   has_rest = has || had_one;
        if (!same || has_rest) atomicOr(&changes.changed[r / 32], 1u << r % 32);
        if (has_rest) atomicOr(&changes.spare[r / 32], 1u << r % 32);
    }
    /* Four slots at a time, from slot `begin` of the tile on, with all loads on their way at
       once. */
    __device__ void compare_fours(nlist_i_changes &changes, int32_t begin) const
    {
        int32_t const slots = count * rows.width;
        const int32_t *const now = rows.slot + first * rows.width,
                      *const had = old_rows.slot + first * rows.width;
        int4 const nothing = {-1, -1, -1, -1};
        int4 four[nlist_i_tile_loads], was[nlist_i_tile_loads];
#pragma unroll
        for (int u = 0; u < nlist_i_tile_loads; u++) {
            int32_t const at = begin + 4 * ((int32_t)threadIdx.x + u * nlist_i_block);
            four[u] = was[u] = nothing;
            if (at < slots) four[u] = *reinterpret_cast<const int4 *>(now + at);
            if (at < slots && !none) was[u] = *reinterpret_cast<const int4 *>(had + at);
        }
#pragma unroll
        for (int u = 0; u < nlist_i_tile_loads; u++) {
            int32_t const at = begin + 4 * ((int32_t)threadIdx.x + u * nlist_i_block);
            int32_t const a[4] = {four[u].x, four[u].y, four[u].z, four[u].w},
                          b[4] = {was[u].x, was[u].y, was[u].z, was[u].w};
            if (at < slots) note<4>(changes, at, a, b);
        }
    }
    __device__ void compare(nlist_i_changes &changes) const
    {
        int32_t const slots = count * rows.width;
        if (rows.width % 4 == 0) {
            for (int32_t at = 0; at < slots; at += 4 * nlist_i_tile_loads * nlist_i_block)
                compare_fours(changes, at);
            return;
        }
        for (int32_t at = (int32_t)threadIdx.x; at < slots; at += nlist_i_block) {
            int64_t const entry = first * rows.width + at;
            int32_t const a[1] = {rows.slot[entry]}, b[1] = {none ? -1 : old_rows.slot[entry]};
            note<1>(changes, at, a, b);
        }
    }
    /* Where the partner in slot k of a row was in the old row: there, or after it, or before. -1 =
       nowhere. slot: of the tile, as the result. */
    __device__ int32_t old_slot(int32_t slot, int32_t k, int32_t id) const
    {
        const int32_t *const had = old_rows.slot + (first * rows.width + slot - k);
        if (none) return -1;
        for (int32_t at = k; at < rows.width && had[at] >= 0; at++)
            if (had[at] == id) return slot - k + at;
        for (int32_t at = 0; at < k && had[at] >= 0; at++)
            if (had[at] == id) return slot - k + at;
        return -1;
    }
};

/* Finds the rows of a tile that changed. all: take every row, from the work space. */
__device__ __forceinline__ void nlist_i_find_changes(const nlist_i_tile_rows &tile, bool all,
                                                     nlist_i_changes &changes)
{
    int32_t const thread = (int32_t)threadIdx.x;
    for (int32_t k = thread; k < nlist_i_tile_most / 32; k += nlist_i_block)
        changes.changed[k] = changes.spare[k] = all ? ~0u : 0;
    if (thread == 0) changes.count = 0;
    __syncthreads();
    if (!all) tile.compare(changes);
    __syncthreads();
    for (int32_t r = thread; r < tile.count; r += nlist_i_block) {
        if (!(changes.changed[r / 32] >> r % 32 & 1)) continue;
        bool const spare = changes.spare[r / 32] >> r % 32 & 1;
        changes.row[atomicAdd(&changes.count, 1)] = (int16_t)(spare ? -1 - r : r);
    }
    __syncthreads();
}

/* Moves the slots of as many rows as fit, from number `begin` of the changes on: all are read, then
   all are written, word by word of the entries. */
template <class Word>
__device__ __forceinline__ void nlist_i_move_rows(const nlist_i_tile_rows &tile,
                                                  const nlist_i_changes &changes, int32_t begin,
                                                  int32_t bytes, const unsigned char *spare)
{
    int32_t const width = tile.rows.width, left = changes.count - begin;
    int32_t const slots = width * (int32_t)nlist_i_least(left, nlist_i_move_slots / width);
    unsigned char *const history = tile.rows.history + tile.first * width * bytes;
    const unsigned char *const apart = spare + tile.first * width * bytes;
    int32_t to[nlist_i_moves], from[nlist_i_moves]; /* slots of the tile; -1: none */
    unsigned moved = 0;                             /* bits: from the work space */
#pragma unroll
    for (int u = 0; u < nlist_i_moves; u++) {
        int32_t const at = (int32_t)threadIdx.x + u * nlist_i_block;
        to[u] = from[u] = -1;
        if (at >= slots) continue;
        int32_t const r = changes.row[begin + at / width], k = at % width,
                      slot = (r < 0 ? -1 - r : r) * width + k,
                      id = tile.rows.slot[tile.first * width + slot];
        int32_t const old = id < 0 || r < 0 ? -1 : tile.old_slot(slot, k, id);
        if (id < 0 || old == slot) continue;
        to[u] = slot;
        from[u] = r < 0 ? slot : old;
        if (r < 0) moved |= 1u << u;
    }
    for (int32_t b = 0; b < bytes; b += (int32_t)sizeof(Word)) {
        Word word[nlist_i_moves];
#pragma unroll
        for (int u = 0; u < nlist_i_moves; u++) {
            const unsigned char *const at = (moved >> u & 1 ? apart : history) +
                                            (int64_t)from[u] * bytes + b;
            word[u] = from[u] >= 0 ? *reinterpret_cast<const Word *>(at) : Word();
        }
        __syncthreads();
#pragma unroll
        for (int u = 0; u < nlist_i_moves; u++)
            if (to[u] >= 0)
                *reinterpret_cast<Word *>(history + (int64_t)to[u] * bytes + b) = word[u];
    }
}

/* The slots of a tile, and the block's share of the rest, which is in the work space. */
template <class Word>
__device__ __forceinline__ void nlist_i_move_tile(const nlist_i_tile_rows &tile,
                                                  const nlist_i_changes &changes, int64_t entries,
                                                  int32_t bytes, const unsigned char *spare)
{
    int64_t const words = bytes / (int64_t)sizeof(Word),
                  first = (int64_t)tile.rows.n * tile.rows.width * words;
    for (int64_t k = nlist_i_global_thread(); k < entries * words; k += nlist_i_all_threads())
        reinterpret_cast<Word *>(tile.rows.history)[first + k] =
            reinterpret_cast<const Word *>(spare)[first + k];
    for (int32_t begin = 0; begin < changes.count; begin += nlist_i_move_slots / tile.rows.width)
        nlist_i_move_rows<Word>(tile, changes, begin, bytes, spare);
}

/* Rows of a tile. */
__host__ __device__ __forceinline__ int32_t nlist_i_tile_height(int32_t width)
{
    return nlist_i_tile / width < nlist_i_tile_most ? nlist_i_tile / width : nlist_i_tile_most;
}

/* A block per tile moves what changed; the last block swaps. */
__global__ void __launch_bounds__(nlist_i_block, 4)
    nlist_i_settle_kernel(__grid_constant__ const nlist_device device,
                          __grid_constant__ const nlist_i_job job)
{
    __shared__ nlist_i_changes changes;
    const nlist &list = device.list;
    if (nlist_i_skips(list, job.facts)) return;
    int const to = nlist_i_to(list);
    const nlist_rows &rows = list.rows[to];
    int32_t const bytes = list.desc.history, height = nlist_i_tile_height(rows.width);
    int64_t const first = (int64_t)blockIdx.x * height;
    if (nlist_i_fitted(list, job.facts, to)) {
        nlist_i_tile_rows const tile = {rows, list.rows[1 - to], job.facts->filled == 0, first,
                                        (int32_t)nlist_i_least(height, rows.n - first)};
        int64_t const entries = rows.own ? nlist_i_rest_entries(&list, &rows, job.facts) : 0;
        nlist_i_find_changes(tile, job.new_of != nullptr, changes);
        if (bytes % 16 == 0) nlist_i_move_tile<uint4>(tile, changes, entries, bytes, job.spare);
        else if (bytes % 4 == 0)
            nlist_i_move_tile<uint32_t>(tile, changes, entries, bytes, job.spare);
        else nlist_i_move_tile<unsigned char>(tile, changes, entries, bytes, job.spare);
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
    __threadfence();
    if (atomicAdd(&job.facts->blocks_done, 1) + 1 < (int32_t)gridDim.x) return;
    __threadfence();
    atomicExch(&job.facts->blocks_done, 0);
    nlist_i_swap(list, job);
}

/* Launches the end of a build. */
nlist_result nlist_i_settle(nlist_cuda *gpu, const nlist_i_job &job, cudaStream_t stream)
{
    if (!job.spare) return nlist_i_launch(gpu, stream, 1, 1, nlist_i_swap_kernel, gpu->device, job);
    int64_t const height = nlist_i_tile_height(gpu->device.list.rows[0].width),
                  tiles = job.rows > 0 ? (job.rows + height - 1) / height : 1;
    return nlist_i_launch(gpu, stream, tiles * nlist_i_block, nlist_i_block, nlist_i_settle_kernel,
                          gpu->device, job);
}

/* ----------------------------------------------------------------------------------------------
   >>build: the host calls the kernels in order
   ---------------------------------------------------------------------------------------------- */

/* Count, scan and search, for one source. */
template <class Source>
nlist_result nlist_i_find_rows(nlist_cuda *gpu, const nlist_i_job &job, const Source &source,
                               cudaStream_t stream)
{
    int64_t *const lengths = nlist_i_scratch<int64_t>(gpu, NLIST_I_LENGTHS), *offsets = nullptr;
    nlist_result result = NLIST_OK;
    if (nlist_i_counts_first(&gpu->device.list.desc)) {
        offsets = nlist_i_scratch<int64_t>(gpu, NLIST_I_OFFSETS);
        result = nlist_i_launch(gpu, stream, job.n, nlist_i_search_block,
                                nlist_i_count_kernel<Source>, gpu->device, job, source, lengths);
        if (result == NLIST_OK)
            result = nlist_i_scan(gpu, job.rows, gpu->device.list.desc.layout != NLIST_COMPACT,
                                  stream);
    }
    if (result != NLIST_OK) return result;
    if constexpr (Source::compacts)
        if (gpu->device.list.desc.layout == NLIST_COMPACT)
            return nlist_i_launch(gpu, stream, job.n, nlist_i_search_block,
                                  nlist_i_compact_kernel<Source>, gpu->device, job, source,
                                  offsets);
    return nlist_i_launch(gpu, stream, job.n, nlist_i_search_block, nlist_i_search_kernel<Source>,
                          gpu->device, job, source, offsets);
}

/* True if a half list is found by half of a search. Rows then come in any order. */
[[maybe_unused]] bool nlist_i_finds_half(const nlist_cuda *gpu)
{
    const nlist_desc *desc = &gpu->device.list.desc;
    return desc->half && !desc->deterministic && gpu->search != NLIST_I_BY_ROW;
}

/* Half lists by half of a search, with the kernels of one source (>>shared). COMPACT: lengths are
   counted, and rows filled; others: share. */
template <class Count, class Fill, class Share>
nlist_result nlist_i_find_half(nlist_cuda *gpu, const nlist_i_job &job, Count count, Fill fill,
                               Share share, cudaStream_t stream)
{
    const nlist_desc *desc = &gpu->device.list.desc;
    bool const compact = desc->layout == NLIST_COMPACT;
    int64_t *const lengths = nlist_i_scratch<int64_t>(gpu, NLIST_I_LENGTHS);
    int64_t const slots = nlist_i_has_slots(desc) ? (int64_t)job.rows * desc->width : 0,
                  opened = (int64_t)job.rows + 1 > slots / 4 + 1 ? (int64_t)job.rows + 1
                                                                 : slots / 4 + 1;
    nlist_result result = nlist_i_launch(gpu, stream, opened, nlist_i_block, nlist_i_open_kernel,
                                         gpu->device, job, lengths);
    if (result == NLIST_OK && compact) result = count(lengths);
    if (result == NLIST_OK && compact) result = nlist_i_scan(gpu, job.rows, false, stream);
    int64_t *const offsets = compact ? nlist_i_scratch<int64_t>(gpu, NLIST_I_OFFSETS) : nullptr;
    if (result == NLIST_OK) result = compact ? fill(lengths, offsets) : share();
    if (result != NLIST_OK) return result;
    return nlist_i_launch(gpu, stream, (int64_t)job.rows + 1, nlist_i_block, nlist_i_close_kernel,
                          gpu->device, job, (const int64_t *)offsets);
}

/* Count, scan and write, for events of new rows and then of old ones. */
template <class Carry>
nlist_result nlist_i_find_events(nlist_cuda *gpu, const nlist_i_job &job, const Carry &carry,
                                 cudaStream_t stream)
{
    int64_t *const lengths = nlist_i_scratch<int64_t>(gpu, NLIST_I_LENGTHS),
            *const offsets = nlist_i_scratch<int64_t>(gpu, NLIST_I_OFFSETS);
    int32_t const n[2] = {gpu->device.list.rows[0].n, gpu->device.list.rows[1].n};
    int32_t const most = n[0] > n[1] ? n[0] : n[1];
    nlist_result result = NLIST_OK;
    for (int ended = 0; ended < 2 && result == NLIST_OK; ended++) {
        /* rows beyond those of an older generation are empty */
        int32_t const rows = ended ? most : job.rows;
        result = nlist_i_launch(gpu, stream, (int64_t)rows + 1, nlist_i_block,
                                nlist_i_count_events_kernel<Carry>, gpu->device, job, carry,
                                ended != 0, rows, lengths);
        if (result == NLIST_OK) result = nlist_i_scan(gpu, rows, false, stream);
        if (result == NLIST_OK)
            result = nlist_i_launch(gpu, stream, (int64_t)rows + 1, nlist_i_block,
                                    nlist_i_write_events_kernel<Carry>, gpu->device, job, carry,
                                    ended != 0, rows, offsets);
    }
    return result;
}

/* Everything after the search. */
template <class Carry>
nlist_result nlist_i_finish_build(nlist_cuda *gpu, const nlist_i_job &job, const Carry &carry,
                                  cudaStream_t stream)
{
    nlist *list = &gpu->device.list;
    nlist_result result = NLIST_OK;
    if (list->desc.skin > 0)
        result = nlist_i_launch(gpu, stream, job.n, nlist_i_block, nlist_i_reference_kernel,
                                gpu->device, job, (nlist_real)NAN);
    if (result == NLIST_OK && list->desc.history > 0)
        result = nlist_i_carry_history(gpu, job, carry, stream);
    if (result == NLIST_OK && nlist_i_has_states(&list->desc))
        result = nlist_i_launch(gpu, stream, job.rows, nlist_i_block,
                                nlist_i_carry_states_kernel<Carry>, gpu->device, job, carry);
    if (result == NLIST_OK && list->desc.events && !job.new_of)
        result = nlist_i_find_events(gpu, job, carry, stream);
    return result == NLIST_OK ? nlist_i_settle(gpu, job, stream) : result;
}

/* Takes the facts, and the second generation where history or events need it. A list that was built
   without these, or one of another kind (nlist_i_is_other), cannot be compared with: it is
   discarded. */
nlist_result nlist_i_take_generations(nlist_cuda *gpu, bool other, cudaStream_t stream)
{
    nlist *list = &gpu->device.list;
    nlist_result result = nlist_i_take_facts(gpu, stream);
    bool const twice = nlist_i_keeps_two(&list->desc);
    if (result == NLIST_OK && (other || (twice && !list->remembers)))
        result = nlist_i_forget(gpu, stream);
    if (result != NLIST_OK) return result;
    list->remembers = twice;
    if (twice) list->d_current = &gpu->d_facts->current;
    return NLIST_OK;
}

/* True if the current list is of another kind. Should this build not fit, its rows would be
   misread. */
bool nlist_i_is_other(const nlist *list, const nlist &before)
{
    return list->built && (list->keys != before.keys || list->desc.dim != before.desc.dim ||
                           !list->desc.half != !before.desc.half);
}

/* Entries that a table must have room for; 0: there may be no table. */
int64_t nlist_i_table_entries(const nlist *list)
{
    int64_t const a = list->rows[0].capacity, b = list->rows[1].capacity, most = a > b ? a : b;
    bool const alone = !list->keys && !list->boxed && list->desc.history > 0;
    return alone && most <= NLIST_I_INT_MAX ? most : 0;
}

/* True if the last check saw a long row. */
bool nlist_i_saw_long(const nlist *list)
{
    int32_t const a = list->rows[0].width, b = list->rows[1].width;
    return list->needed_width - (a < b ? a : b) > nlist_i_long;
}

/* The table for a build: if it pays, and if there is memory for it. */
void nlist_i_set_table(nlist_cuda *gpu, nlist_i_job *job)
{
    int64_t const entries = nlist_i_table_entries(&gpu->device.list);
    bool const has = entries > 0 && nlist_i_saw_long(&gpu->device.list) &&
                     gpu->scratch[NLIST_I_TABLE].bytes / 8 >= (size_t)entries;
    job->table = has ? nlist_i_scratch<int32_t>(gpu, NLIST_I_TABLE) : nullptr;
    job->places = has ? 2 * entries : 0;
}

/* Memory for the table in a reserve, or where there are long rows. Builds can do without. */
void nlist_i_take_table(nlist_cuda *gpu, cudaStream_t stream)
{
    const nlist *list = &gpu->device.list;
    int64_t const entries = nlist_i_table_entries(list);
    if (entries > 0 && (list->exact || nlist_i_saw_long(list)))
        (void)nlist_i_cuda_grow(gpu, &gpu->scratch[NLIST_I_TABLE], 2 * entries, sizeof(int32_t),
                                stream);
}

/* Takes memory, and launches the kernels before the search. */
nlist_result nlist_i_start_build(nlist_cuda *gpu, nlist_i_job *job, const nlist &before,
                                 cudaStream_t stream)
{
    nlist *list = &gpu->device.list;
    if (!list->boxed && !job->new_of && nlist_i_has_extras(&list->desc)) return NLIST_BAD_OPTION;
    nlist_result result = nlist_i_take_generations(gpu, nlist_i_is_other(list, before), stream);
    if (result != NLIST_OK) return result;
    /* no particle has been renumbered */
    if (list->n == 0) list->rows[0].uid = list->rows[1].uid = nullptr;
    bool const uids = list->n > 0 && list->desc.half && nlist_i_keeps_two(&list->desc) &&
                      (job->new_of || list->rows[0].uid || list->rows[1].uid);
    result = nlist_i_shape(gpu, job->n, job->rows, uids, stream);
    job->spare = nlist_i_is_in_place(list)
                     ? static_cast<unsigned char *>(nlist_i_spare_history(list, 0)->memory)
                     : nullptr;
    nlist_i_set_table(gpu, job);
    if (result == NLIST_OK) result = nlist_i_shape_events(gpu, stream);
    int32_t const most = list->rows[0].n > list->rows[1].n ? list->rows[0].n : list->rows[1].n;
    if (result == NLIST_OK) result = nlist_i_cuda_work(gpu, most, stream);
    job->facts = gpu->d_facts;
    if (result == NLIST_OK)
        result = nlist_i_launch(gpu, stream, 1, 1, nlist_i_begin_kernel, gpu->device, job->facts,
                                job->new_of != nullptr);
    if (result == NLIST_OK && list->desc.radii && !job->new_of)
        result = nlist_i_launch(gpu, stream, job->n, nlist_i_block, nlist_i_radii_kernel,
                                gpu->device, *job);
    if (result == NLIST_OK && uids)
        result = nlist_i_launch(gpu, stream, job->n, nlist_i_block, nlist_i_uids_kernel,
                                gpu->device, *job);
    job->uids = uids;
    return result;
}

/* Takes over desc, as nlist_i_begin does for the host. */
nlist_result nlist_i_cuda_begin(nlist_cuda *gpu, const nlist_desc *desc, int keys, nlist *before,
                                cudaStream_t stream)
{
    nlist *list = &gpu->device.list;
    nlist_cuda_allocator const had = list->desc.cuda_allocator;
    nlist_desc resolved;
    bool holds = false;
    gpu->stream = stream;
    for (const nlist_block &block : list->block) holds |= block.memory != nullptr;
    for (const nlist_block &block : gpu->scratch) holds |= block.memory != nullptr;
    *before = *list;
    nlist_result result = nlist_defaults(&resolved, desc);
    if (result != NLIST_OK) return result;
    if (resolved.if_moved && !(resolved.skin > 0)) return NLIST_BAD_SKIN;
    nlist_cuda_allocator const given = resolved.cuda_allocator;
    if (holds && (had.alloc != given.alloc || had.free != given.free || had.user != given.user))
        return NLIST_BAD_ALLOCATOR;
    resolved.allocator = list->desc.allocator; /* the host's allocator is not used here */
    result = nlist_i_check_change(list, &resolved, keys);
    if (result != NLIST_OK) return result;
    if (resolved.layout == NLIST_STATIC)
        while (resolved.width < gpu->wanted_width && resolved.width < 1024)
            resolved.width = resolved.width * 2 < 1024 ? resolved.width * 2 : 1024;
    list->desc = resolved;
    list->keys = keys;
    list->triangles = list->boxed = 0;
    nlist_i_axes(list);
    return NLIST_OK;
}

/* Refuses a call: everything is restored. */
nlist_result nlist_i_refuse(nlist_cuda *gpu, const nlist &before, nlist_result result)
{
    nlist *list = &gpu->device.list;
    nlist_cuda_allocator const allocator = list->desc.cuda_allocator; /* blocks may be from it */
    list->desc = before.desc;
    if (gpu->d_facts) list->desc.cuda_allocator = allocator;
    list->keys = before.keys;
    list->triangles = before.triangles;
    list->boxed = before.boxed;
    memcpy(list->axis, before.axis, sizeof list->axis);
    return nlist_i_forget_borrowed(list, result);
}

/* The checks that all builds from positions begin with. */
nlist_result nlist_i_cuda_prepare(nlist_cuda *gpu, nlist_i_job *job, const nlist_real *d_pos,
                                  size_t stride, int32_t n)
{
    nlist *list = &gpu->device.list;
    nlist_real const reach = nlist_i_gap(&list->desc);
    memset(job, 0, sizeof *job);
    job->pos = d_pos;
    job->n = n;
    job->stride = nlist_i_stride(stride, list->desc.dim);
    if (n < 0 || (n > 0 && !d_pos) || job->stride == 0) return NLIST_BAD_ARGUMENT;
    if (n > NLIST_I_INT_MAX) return NLIST_TOO_MANY;
    if (nlist_i_set_rows(&list->desc, n, &job->rows) != NLIST_OK) return NLIST_BAD_ROWS;
    if (n > 0 && !list->desc.radii && !(reach * reach >= NLIST_I_REAL_MIN)) return NLIST_BAD_RADIUS;
    return n == 0 || nlist_i_periods_fit(list, 0) ? NLIST_OK : NLIST_BAD_PERIOD;
}

/* Ends a build: arrays were borrowed, and after a failure the old rows are still the list, unless
   their memory was freed. */
nlist_result nlist_i_cuda_end(nlist_cuda *gpu, const nlist_i_job &job, const nlist &before,
                              nlist_result result)
{
    nlist *list = &gpu->device.list;
    if (result == NLIST_OK) {
        list->n = job.n;
        list->row_count = job.rows;
        list->built = 1;
        return nlist_i_forget_borrowed(list, result);
    }
    bool const reshaped = memcmp(&list->rows[0], &before.rows[0], sizeof before.rows[0]) != 0;
    if (list->d_current ? !list->rows[0].count && !list->rows[1].count : reshaped) {
        memset(list->rows, 0, sizeof list->rows); /* their memory was freed, or holds no list yet */
        list->built = list->built && list->n == 0;
        list->n = 0;
    }
    return nlist_i_refuse(gpu, before, result);
}

/* A build. With desc.grow it is repeated with more memory until all fits. */
template <class Search, class Carry>
nlist_result nlist_i_cuda_build(nlist_cuda *gpu, nlist_i_job job, const nlist &before,
                                Search search, const Carry &carry, cudaStream_t stream)
{
    nlist *list = &gpu->device.list;
    nlist_desc const borrowed = list->desc;
    gpu->by_index = job.new_of || job.pairs;
    gpu->by_radii = job.n > 0 && !job.new_of && list->desc.radii;
    for (;;) {
        nlist_result result = nlist_i_start_build(gpu, &job, before, stream);
        if (result == NLIST_OK) result = search(job);
        if (result == NLIST_OK) result = nlist_i_finish_build(gpu, job, carry, stream);
        result = nlist_i_cuda_end(gpu, job, before, result);
        if (result != NLIST_OK || !borrowed.grow) return result;
        int64_t const had_entries = gpu->wanted_entries;
        int32_t const had_width = list->desc.width;
        result = nlist_cuda_check(gpu, stream);
        if (result != NLIST_ROW_FULL && result != NLIST_LIST_FULL) return result;
        list->desc = borrowed;
        list->desc.width = had_width;
        while (list->desc.layout == NLIST_STATIC && list->desc.width < gpu->wanted_width &&
               list->desc.width < 1024)
            list->desc.width = list->desc.width * 2 < 1024 ? list->desc.width * 2 : 1024;
        if (gpu->wanted_entries == had_entries && list->desc.width == had_width)
            return nlist_i_forget_borrowed(list, result);
    }
}

} /* namespace */

/* ----------------------------------------------------------------------------------------------
   >>sources: the public builds, one per source
   ---------------------------------------------------------------------------------------------- */

extern "C" {

NLIST_API nlist_result nlist_cuda_build_brute(nlist_cuda *gpu, const nlist_desc *desc,
                                              const nlist_real *d_pos, size_t stride, int32_t n,
                                              struct CUstream_st *stream)
{
    nlist_i_job job;
    nlist before;
    if (!gpu) return NLIST_BAD_ARGUMENT;
    nlist_result result = nlist_i_cuda_begin(gpu, desc, 0, &before, stream);
    if (result == NLIST_OK) result = nlist_i_cuda_prepare(gpu, &job, d_pos, stride, n);
    if (result != NLIST_OK) return nlist_i_refuse(gpu, before, result);
    return nlist_i_cuda_build(
        gpu, job, before,
        [&](const nlist_i_job &with) {
            return nlist_i_find_rows(gpu, with, nlist_i_brute_source{}, stream);
        },
        nlist_i_particle_carry{}, stream);
}

} /* extern "C" */

namespace {

/* A key per pair and direction: row above partner; all ones where this direction is not listed.
   Keys of ghosts are not read. */
__global__ void nlist_i_keys_kernel(__grid_constant__ const nlist_device device,
                                    __grid_constant__ const nlist_i_job job, const int32_t *pair,
                                    int64_t m, uint64_t *key)
{
    int64_t const turn = nlist_i_global_thread(), p = turn / 2;
    if (p >= m || nlist_i_skips(device.list, job.facts)) return;
    const nlist_rows &rows = device.list.rows[nlist_i_to(device.list)];
    int32_t const i = pair[2 * p + turn % 2], j = pair[2 * p + 1 - turn % 2];
    bool const exist = i >= 0 && i < job.n && j >= 0 && j < job.n && i != j;
    if (!exist) nlist_i_report(job.facts, (int32_t)p); /* p < 2^30 */
    bool const lists = exist && nlist_i_may_list(&device.list.desc, rows.uid, i, j);
    key[turn] = lists ? (uint64_t)(uint32_t)i << 32 | (uint32_t)j : ~(uint64_t)0;
}

/* Memory for m pairs as keys, two buffers, and for their sort. */
nlist_result nlist_i_take_keys(nlist_cuda *gpu, int64_t m, size_t *temp, cudaStream_t stream)
{
    cub::DoubleBuffer<uint64_t> keys;
    *temp = 0;
    (void)cudaGetLastError();
    if (nlist_i_failed(gpu,
                       cub::DeviceRadixSort::SortKeys(nullptr, *temp, keys, 2 * m, 0, 64, stream)))
        return NLIST_CUDA_ERROR;
    nlist_result result = nlist_i_cuda_grow(gpu, &gpu->scratch[NLIST_I_KEYS_A], 2 * m,
                                            sizeof(uint64_t), stream);
    if (result == NLIST_OK)
        result = nlist_i_cuda_grow(gpu, &gpu->scratch[NLIST_I_KEYS_B], 2 * m, sizeof(uint64_t),
                                   stream);
    return result == NLIST_OK
               ? nlist_i_cuda_grow(gpu, &gpu->scratch[NLIST_I_TEMP], (int64_t)*temp, 1, stream)
               : result;
}

/* Sorts the pairs as keys, and finds the rows in them. */
nlist_result nlist_i_find_in_pairs(nlist_cuda *gpu, const nlist_i_job &job, const int32_t *d_pair,
                                   int64_t m, cudaStream_t stream)
{
    nlist_i_pairs_source source = {nullptr, 2 * m};
    size_t temp = 0;
    nlist_result result = m > 0 ? nlist_i_take_keys(gpu, m, &temp, stream) : NLIST_OK;
    if (result == NLIST_OK)
        result = nlist_i_launch(gpu, stream, 2 * m, nlist_i_block, nlist_i_keys_kernel, gpu->device,
                                job, d_pair, m, nlist_i_scratch<uint64_t>(gpu, NLIST_I_KEYS_A));
    cub::DoubleBuffer<uint64_t> keys(nlist_i_scratch<uint64_t>(gpu, NLIST_I_KEYS_A),
                                     nlist_i_scratch<uint64_t>(gpu, NLIST_I_KEYS_B));
    if (result == NLIST_OK && m > 0 &&
        nlist_i_failed(gpu, cub::DeviceRadixSort::SortKeys(gpu->scratch[NLIST_I_TEMP].memory, temp,
                                                           keys, 2 * m, 0, 64, stream)))
        result = NLIST_CUDA_ERROR;
    source.key = keys.Current();
    return result == NLIST_OK ? nlist_i_find_rows(gpu, job, source, stream) : result;
}

} /* namespace */

extern "C" {

NLIST_API nlist_result nlist_cuda_build_pairs(nlist_cuda *gpu, const nlist_desc *desc,
                                              const int32_t *d_pair, int64_t m, int32_t n,
                                              struct CUstream_st *stream)
{
    nlist_i_job job = {};
    nlist before;
    if (!gpu || n < 0 || m < 0 || (m > 0 && !d_pair)) return NLIST_BAD_ARGUMENT;
    if (n > NLIST_I_INT_MAX || m > NLIST_I_INT_MAX / 2) return NLIST_TOO_MANY;
    nlist_result result = nlist_i_cuda_begin(gpu, desc, 0, &before, stream);
    if (result == NLIST_OK && gpu->device.list.desc.skin > 0) result = NLIST_BAD_SKIN;
    if (result == NLIST_OK) result = nlist_i_set_rows(&gpu->device.list.desc, n, &job.rows);
    if (result != NLIST_OK) return nlist_i_refuse(gpu, before, result);
    job.n = n;
    job.pairs = true;
    gpu->device.list.bad_id = -1;
    return nlist_i_cuda_build(
        gpu, job, before,
        [&](const nlist_i_job &with) {
            return nlist_i_find_in_pairs(gpu, with, d_pair, m, stream);
        },
        nlist_i_particle_carry{}, stream);
}

} /* extern "C" */

#ifdef NLIST_I_UGRID_CUDA
namespace {

/* True if the order of the entries in a cell is reproducible. */
bool nlist_i_ordered(const ugrid *grid)
{
    return grid->desc.method == UGRID_SORT || grid->desc.deterministic;
}

/* Full COMPACT rows that only the distance decides, of two places per thread. */
nlist_result nlist_i_find_twins(nlist_cuda *gpu, const nlist_i_job &job,
                                const nlist_i_twins_source &source, cudaStream_t stream)
{
    int64_t *const lengths = nlist_i_scratch<int64_t>(gpu, NLIST_I_LENGTHS),
            *const offsets = nlist_i_scratch<int64_t>(gpu, NLIST_I_OFFSETS);
    nlist_result result =
        nlist_i_launch(gpu, stream, ((int64_t)job.n + 1) / 2, nlist_i_search_block,
                       nlist_i_count_twins_kernel, gpu->device, job, source, lengths);
    if (result == NLIST_OK) result = nlist_i_scan(gpu, job.rows, false, stream);
    if (result != NLIST_OK) return result;
    return nlist_i_launch(gpu, stream, job.n, nlist_i_search_block,
                          nlist_i_compact_kernel<nlist_i_twins_source>, gpu->device, job, source,
                          offsets);
}

/* True if half of a search in this grid is faster than a search by row
   (tests/bench/notes/nlist.md): where the caller says that ids are in the order of cells, so that
   nearly all pairs of a place are in its own row; and where that row need not keep its order, by
   which history is found at once. */
bool nlist_i_half_pays(const nlist_cuda *gpu, const ugrid &grid)
{
    const nlist_desc *desc = &gpu->device.list.desc;
    return gpu->search == NLIST_I_BY_PAIR || (grid.desc.coherent && !nlist_i_keeps_two(desc) &&
                                              desc->layout != NLIST_DYNAMIC);
}

/* Pairs in a grid with records, each once. */
template <ugrid_path Path, bool OnlyDistance>
nlist_result nlist_i_find_half_in_records(nlist_cuda *gpu, const nlist_i_job &job,
                                          const ugrid_device &view, cudaStream_t stream)
{
    using Source = nlist_i_ugrid_source<Path, OnlyDistance, false, true>;
    Source const source = {view, nlist_i_scratch<uint32_t>(gpu, NLIST_I_WORDS)};
    return nlist_i_find_half(
        gpu, job,
        [&](int64_t *lengths) {
            return nlist_i_launch(gpu, stream, job.n, nlist_i_search_block,
                                  nlist_i_share_lengths_kernel<Source>, gpu->device, job, source,
                                  lengths);
        },
        [&](int64_t *lengths, const int64_t *offsets) {
            return nlist_i_launch(gpu, stream, job.n, nlist_i_search_block,
                                  nlist_i_share_compact_kernel<Source>, gpu->device, job, source,
                                  offsets, lengths);
        },
        [&] {
            return nlist_i_launch(gpu, stream, job.n, nlist_i_search_block,
                                  nlist_i_share_kernel<Source>, gpu->device, job, source);
        },
        stream);
}

/* Finds the rows in a grid with records, by the form of search that fits the list. */
template <ugrid_path Path>
nlist_result nlist_i_find_in_records(nlist_cuda *gpu, const nlist_i_job &job,
                                     const ugrid_device &view, cudaStream_t stream)
{
    const nlist *list = &gpu->device.list;
    uint32_t *const words = nlist_i_scratch<uint32_t>(gpu, NLIST_I_WORDS);
    bool const has_uids = list->rows[0].uid || list->rows[1].uid,
               only_distance = !has_uids && nlist_i_only_distance(&list->desc, nullptr);
    if (nlist_i_finds_half(gpu) && nlist_i_half_pays(gpu, view.grid))
        return only_distance
                   ? nlist_i_find_half_in_records<Path, true>(gpu, job, view, stream)
                   : nlist_i_find_half_in_records<Path, false>(gpu, job, view, stream);
    if (!only_distance)
        return nlist_i_find_rows(gpu, job, nlist_i_ugrid_source<Path, false>{view, words}, stream);
    if (list->desc.layout == NLIST_COMPACT && !list->desc.half && ugrid_i_twins(&view.grid, Path))
        return nlist_i_find_twins(gpu, job, nlist_i_twins_source{view, words}, stream);
    return nlist_i_find_rows(gpu, job, nlist_i_ugrid_source<Path, true>{view, words}, stream);
}

/* Finds the rows in a grid, by the path that it allows. */
nlist_result nlist_i_find_in_ugrid(nlist_cuda *gpu, const nlist_i_job &job, const ugrid_cuda *grid,
                                   cudaStream_t stream)
{
    ugrid_device view = grid->device;
    view.grid.desc.walk = ugrid_i_list_walk(&view.grid);
    memset(&view.grid.filter, 0, sizeof view.grid.filter); /* the list has its own */
    ugrid_path const path = ugrid_path_of(&view.grid);
    if (ugrid_i_by_entries(path))
        return path == UGRID_PATH_HASHED
                   ? nlist_i_find_rows(gpu, job, nlist_i_ugrid_walk_source<true>{view}, stream)
                   : nlist_i_find_rows(gpu, job, nlist_i_ugrid_walk_source<false>{view}, stream);
    nlist_result const result = nlist_i_take_words(gpu, job.n, stream);
    if (result != NLIST_OK) return result;
    if (path == UGRID_PATH_STRIPS)
        return nlist_i_find_in_records<UGRID_PATH_STRIPS>(gpu, job, view, stream);
    if (path == UGRID_PATH_IMAGES)
        return nlist_i_find_in_records<UGRID_PATH_IMAGES>(gpu, job, view, stream);
    return nlist_i_find_in_records<UGRID_PATH_RANGES>(gpu, job, view, stream);
}

} /* namespace */

NLIST_API nlist_result nlist_cuda_build_ugrid(nlist_cuda *gpu, const nlist_desc *desc,
                                              const ugrid_cuda *grid, const nlist_real *d_pos,
                                              size_t stride, int32_t n, struct CUstream_st *stream)
{
    nlist_i_job job;
    nlist before;
    if (!gpu || !desc || !grid) return NLIST_BAD_ARGUMENT;
    nlist_desc const resolved = nlist_i_ugrid_desc(desc);
    nlist_result result = nlist_i_cuda_begin(gpu, &resolved, 0, &before, stream);
    if (result == NLIST_OK) result = nlist_i_check_ugrid(&gpu->device.list, &grid->device.grid, n);
    if (result == NLIST_OK && gpu->device.list.desc.deterministic && n > 0 &&
        !nlist_i_ordered(&grid->device.grid))
        result = NLIST_BAD_SOURCE;
    if (result == NLIST_OK && n > 0) nlist_i_ugrid_axes(&gpu->device.list, &grid->device.grid);
    if (result == NLIST_OK) result = nlist_i_cuda_prepare(gpu, &job, d_pos, stride, n);
    if (result != NLIST_OK) return nlist_i_refuse(gpu, before, result);
    return nlist_i_cuda_build(
        gpu, job, before,
        [&](const nlist_i_job &with) { return nlist_i_find_in_ugrid(gpu, with, grid, stream); },
        nlist_i_particle_carry{}, stream);
}
#endif

#ifdef NLIST_I_LBVH_CUDA
namespace {

/* Pairs in a tree, each once. */
template <lbvh_i_test Test>
nlist_result nlist_i_find_half_in_tree(nlist_cuda *gpu, const nlist_i_job &job,
                                       const lbvh_device &tree, cudaStream_t stream)
{
    using Source = nlist_i_half_lbvh_source<Test>;
    Source const source = {{tree}};
    auto const run = [&](auto to_rows) {
        return nlist_i_launch(gpu, stream, job.n, nlist_i_search_block,
                              nlist_i_share_pairs_kernel<Source, decltype(to_rows), 8>, gpu->device,
                              job, source, to_rows);
    };
    return nlist_i_find_half(
        gpu, job,
        [&](int64_t *lengths) {
            return run(nlist_i_count_pairs{(unsigned long long *)lengths});
        },
        [&](int64_t *lengths, const int64_t *offsets) {
            return run(nlist_i_fill_pairs{(unsigned long long *)lengths, offsets});
        },
        [&] { return run(nlist_i_append_pairs{}); }, stream);
}

/* Finds the rows in a tree: by how much spheres exceed their boxes, then the search. */
nlist_result nlist_i_find_in_tree(nlist_cuda *gpu, const nlist_i_job &job, const lbvh_cuda *tree,
                                  cudaStream_t stream)
{
    const lbvh &of = tree->device.tree;
    nlist_result const measured = nlist_i_launch(gpu, stream, job.n, nlist_i_block,
                                                 nlist_i_overhang_kernel, gpu->device, job,
                                                 tree->device);
    if (measured != NLIST_OK) return measured;
    if (!nlist_i_finds_half(gpu) || of.mask)
        return nlist_i_find_rows(gpu, job, nlist_i_lbvh_source{tree->device}, stream);
    return of.desc.kind == LBVH_POINTS && of.desc.radius == 0
               ? nlist_i_find_half_in_tree<LBVH_I_POINT_LEAVES>(gpu, job, tree->device, stream)
               : nlist_i_find_half_in_tree<LBVH_I_BOX>(gpu, job, tree->device, stream);
}

} /* namespace */

NLIST_API nlist_result nlist_cuda_build_lbvh(nlist_cuda *gpu, const nlist_desc *desc,
                                             const lbvh_cuda *tree, const nlist_real *d_pos,
                                             size_t stride, int32_t n, struct CUstream_st *stream)
{
    nlist_i_job job;
    nlist before;
    if (!gpu || !tree) return NLIST_BAD_ARGUMENT;
    nlist_result result = nlist_i_cuda_begin(gpu, desc, 0, &before, stream);
    if (result == NLIST_OK) result = nlist_i_check_tree(&gpu->device.list, &tree->device.tree, n);
    if (result == NLIST_OK) result = nlist_i_cuda_prepare(gpu, &job, d_pos, stride, n);
    if (result != NLIST_OK) return nlist_i_refuse(gpu, before, result);
    return nlist_i_cuda_build(
        gpu, job, before,
        [&](const nlist_i_job &with) { return nlist_i_find_in_tree(gpu, with, tree, stream); },
        nlist_i_particle_carry{}, stream);
}

NLIST_API nlist_result nlist_cuda_build_mesh(nlist_cuda *gpu, const nlist_desc *desc,
                                             const lbvh_cuda *tree, const nlist_mesh *mesh,
                                             const nlist_real *d_pos, size_t stride, int32_t n,
                                             struct CUstream_st *stream)
{
    nlist_i_job job;
    nlist before;
    if (!gpu || !desc || !tree || !mesh) return NLIST_BAD_ARGUMENT;
    nlist_desc const resolved = nlist_i_mesh_desc(desc);
    nlist_result result = nlist_i_cuda_begin(gpu, &resolved, 1, &before, stream);
    if (result == NLIST_OK)
        result = nlist_i_check_mesh(&gpu->device.list.desc, &tree->device.tree, mesh);
    if (result == NLIST_OK && mesh->thickness && mesh->thickest == 0) result = NLIST_BAD_RADIUS;
    if (result == NLIST_OK) gpu->device.list.triangles = mesh->triangles;
    if (result == NLIST_OK) result = nlist_i_cuda_prepare(gpu, &job, d_pos, stride, n);
    if (result != NLIST_OK) return nlist_i_refuse(gpu, before, result);
    return nlist_i_cuda_build(
        gpu, job, before,
        [&](const nlist_i_job &with) {
            return nlist_i_find_rows(gpu, with, nlist_i_mesh_source{tree->device, *mesh}, stream);
        },
        nlist_i_mesh_carry{*mesh}, stream);
}
#endif

/* ----------------------------------------------------------------------------------------------
   >>skin: how many particles have moved too far
   ---------------------------------------------------------------------------------------------- */

namespace {

/* Counts the particles that have moved: as nlist_moved. */
__global__ void nlist_i_moved_kernel(__grid_constant__ const nlist_device device,
                                     const nlist_real *pos, size_t stride, int32_t n,
                                     nlist_cuda_facts *facts)
{
    int32_t const i = nlist_i_thread();
    const nlist_rows &rows = *nlist_i_rows(&device.list);
    bool moved = i < n; /* all, where there is no list yet */
    if (facts->filled > 0 && !facts->full && rows.reference)
        moved = moved && (i >= rows.particles ||
                           nlist_i_has_moved(&device.list, &rows, pos, stride, i));
    unsigned const movers = __ballot_sync(0xFFFFFFFFu, moved);
    if (threadIdx.x % 32 == 0 && movers) atomicAdd(&facts->moved, __popc(movers));
}

} /* namespace */

NLIST_API nlist_result nlist_cuda_moved(nlist_cuda *gpu, const nlist_real *d_pos, size_t stride,
                                        struct CUstream_st *stream)
{
    if (!gpu) return NLIST_BAD_ARGUMENT;
    nlist *list = &gpu->device.list;
    int32_t const n = list->n > 0 ? list->n : list->rows[0].particles; /* reserved only */
    if (n == 0) return NLIST_OK;
    size_t const bytes = nlist_i_stride(stride, list->desc.dim);
    if (!d_pos || bytes == 0) return NLIST_BAD_ARGUMENT;
    if (!(list->desc.skin > 0)) return NLIST_BAD_SKIN;
    if (nlist_i_failed(gpu, cudaMemsetAsync(&gpu->d_facts->moved, 0, sizeof gpu->d_facts->moved,
                                            stream)))
        return NLIST_CUDA_ERROR;
    return nlist_i_launch(gpu, stream, n, nlist_i_block, nlist_i_moved_kernel, gpu->device, d_pos,
                          bytes, n, gpu->d_facts);
}

/* ----------------------------------------------------------------------------------------------
   >>remap: particles get new ids (figure: nlist.h, >>remap)
   ---------------------------------------------------------------------------------------------- */

namespace {

/* If several particles are given one new id, the lowest keeps it: a minimum, whatever the order.
   (-1 is the largest unsigned number.) */
__global__ void nlist_i_invert_kernel(const int32_t *new_id, int32_t n_old, int32_t n,
                                      int32_t *old_of)
{
    int32_t const i = nlist_i_thread();
    if (i < n_old && new_id[i] >= 0 && new_id[i] < n)
        atomicMin((unsigned *)&old_of[new_id[i]], (unsigned)i);
}

/* Copies the valid new ids. Others become -1 and are reported; old rows beyond the given ids become
   -1. */
__global__ void nlist_i_new_of_kernel(const int32_t *new_id, int32_t given, int32_t n_old,
                                      int32_t n, const int32_t *old_of, int32_t *new_of,
                                      nlist_cuda_facts *facts)
{
    int32_t const i = nlist_i_thread();
    if (i >= n_old) return;
    bool const valid = i < given && new_id[i] >= 0 && new_id[i] < n && old_of[new_id[i]] == i;
    new_of[i] = valid ? new_id[i] : -1;
    if (!valid && i < given && new_id[i] != -1) nlist_i_report(facts, i);
}

/* Old ids of new particles, and new ids of old ones. Ids are given for the particles of the last
   build. Where that did not fit, the rows of the list may be more, or fewer: only the device knows
   which generation they are, so there is room for either. */
nlist_result nlist_i_invert_new_ids(nlist_cuda *gpu, const int32_t *d_new_id, int32_t n,
                                    cudaStream_t stream)
{
    const nlist *list = &gpu->device.list;
    int32_t const given = list->n;
    int32_t n_old = given;
    for (const nlist_rows &rows : list->rows)
        n_old = rows.particles > n_old ? rows.particles : n_old;
    nlist_result result = nlist_i_cuda_grow(gpu, &gpu->scratch[NLIST_I_OLD_OF], n, sizeof(int32_t),
                                            stream);
    if (result == NLIST_OK)
        result = nlist_i_cuda_grow(gpu, &gpu->scratch[NLIST_I_NEW_OF], n_old, sizeof(int32_t),
                                   stream);
    if (result != NLIST_OK) return result;
    int32_t *const old_of = nlist_i_scratch<int32_t>(gpu, NLIST_I_OLD_OF),
                   *const new_of = nlist_i_scratch<int32_t>(gpu, NLIST_I_NEW_OF);
    if (n > 0 &&
        nlist_i_failed(gpu, cudaMemsetAsync(old_of, 0xFF, (size_t)n * sizeof *old_of, stream)))
        return NLIST_CUDA_ERROR;
    result = nlist_i_launch(gpu, stream, given, nlist_i_block, nlist_i_invert_kernel, d_new_id,
                            given, n, old_of);
    if (result != NLIST_OK) return result;
    return nlist_i_launch(gpu, stream, n_old, nlist_i_block, nlist_i_new_of_kernel, d_new_id, given,
                          n_old, n, old_of, new_of, gpu->d_facts);
}

/* A remap: shifts, distances and offsets of the entries that are left, and `within`. */
__global__ void nlist_i_old_extras_kernel(__grid_constant__ const nlist_device device,
                                          __grid_constant__ const nlist_i_job job)
{
    const nlist &list = device.list;
    int32_t const i = nlist_i_thread();
    if (i >= job.rows || nlist_i_skips(list, job.facts)) return;
    int const to = nlist_i_to(list);
    const nlist_rows &rows = list.rows[to], &old_rows = list.rows[1 - to];
    int32_t const was = nlist_i_was(job, old_rows, i);
    nlist_each e = nlist_i_row(&rows, 0, i), old = nlist_i_row(&old_rows, 0, was);
    while (nlist_next(&old)) {
        int32_t const id = job.new_of[old.id];
        if (id < 0 || !nlist_i_stays(rows.uid, i, id) || !nlist_next(&e)) continue;
        if (rows.shift && old_rows.shift)
            for (int a = 0; a < 3; a++)
                rows.shift[3 * e.entry + a] = old_rows.shift[3 * old.entry + a];
        if (rows.distance && old_rows.distance)
            rows.distance[e.entry] = old_rows.distance[old.entry];
        if (rows.offset && old_rows.offset)
            for (int a = 0; a < 3; a++)
                rows.offset[3 * e.entry + a] = old_rows.offset[3 * old.entry + a];
    }
    if (rows.within)
        rows.within[i] = rows.count[i] + (was >= 0 && was < old_rows.n && old_rows.within
                                              ? old_rows.within[was] - old_rows.count[was] : 0);
}

/* Launches nlist_i_old_extras_kernel for lists that have such arrays. */
nlist_result nlist_i_copy_old_extras(nlist_cuda *gpu, const nlist_i_job &job, cudaStream_t stream)
{
    const nlist_desc *desc = &gpu->device.list.desc;
    if (!desc->shifts && !desc->distances && !desc->offsets && !desc->nearest) return NLIST_OK;
    return nlist_i_launch(gpu, stream, job.rows, nlist_i_block, nlist_i_old_extras_kernel,
                          gpu->device, job);
}

} /* namespace */

NLIST_API nlist_result nlist_cuda_remap(nlist_cuda *gpu, const int32_t *d_new_id, int32_t n,
                                        struct CUstream_st *stream)
{
    const nlist *list = gpu ? &gpu->device.list : nullptr;
    bool const all = !list || list->row_count == list->n || list->row_count > n;
    return nlist_cuda_remap_rows(gpu, d_new_id, n, all ? n : list->row_count, stream);
}

NLIST_API nlist_result nlist_cuda_remap_rows(nlist_cuda *gpu, const int32_t *d_new_id, int32_t n,
                                             int32_t rows, struct CUstream_st *stream)
{
    nlist_i_job job = {};
    if (!gpu || n < 0 || (gpu->device.list.n > 0 && !d_new_id)) return NLIST_BAD_ARGUMENT;
    nlist *list = &gpu->device.list;
    if (!list->built) return NLIST_NOT_BUILT;
    if (n > NLIST_I_INT_MAX) return NLIST_TOO_MANY;
    if (rows < 0 || rows > n) return NLIST_BAD_ROWS;
    nlist const before = *list;
    gpu->stream = stream;
    list->d_current = &gpu->d_facts->current; /* from now on this list has two generations */
    list->desc.if_moved = 0;
    if (nlist_i_failed(gpu, cudaMemsetAsync(&gpu->d_facts->first_bad, 0,
                                            sizeof gpu->d_facts->first_bad, stream)))
        return NLIST_CUDA_ERROR;
    job.n = n;
    job.rows = rows;
    for (const nlist_rows &had : list->rows) /* what has fitted fits again after a deletion */
        if (had.capacity > gpu->wanted_entries) gpu->wanted_entries = had.capacity;
    nlist_result result = nlist_i_cuda_work(gpu, n > list->n ? n : list->n, stream);
    if (result == NLIST_OK) result = nlist_i_invert_new_ids(gpu, d_new_id, n, stream);
    if (result != NLIST_OK) return result;
    job.old_of = nlist_i_scratch<int32_t>(gpu, NLIST_I_OLD_OF);
    job.new_of = nlist_i_scratch<int32_t>(gpu, NLIST_I_NEW_OF);
    return nlist_i_cuda_build(
        gpu, job, before,
        [&](const nlist_i_job &with) {
            nlist_result const found = nlist_i_find_rows(gpu, with, nlist_i_old_source{}, stream);
            return found == NLIST_OK ? nlist_i_copy_old_extras(gpu, with, stream) : found;
        },
        nlist_i_particle_carry{}, stream);
}

/* ----------------------------------------------------------------------------------------------
   >>process: what the sums of cuda/nlist_templates.cu need before and after their kernel
   ---------------------------------------------------------------------------------------------- */

namespace {

/* sums += units, as numbers. */
__global__ void nlist_i_add_units_kernel(const unsigned long long *units, int64_t numbers,
                                         double unit, nlist_real *sums)
{
    int64_t const k = nlist_i_global_thread();
    if (k < numbers) sums[k] += nlist_i_from_units((int64_t)units[k], unit);
}

/* Memory for sums in units. */
nlist_result nlist_i_take_units(nlist_cuda *gpu, int64_t numbers, cudaStream_t stream)
{
    return nlist_i_cuda_grow(gpu, &gpu->scratch[NLIST_I_UNITS], numbers, sizeof(unsigned long long),
                             stream);
}

} /* namespace */

NLIST_API nlist_result nlist_i_cuda_begin_sum(nlist_cuda *gpu, const nlist_sums *how,
                                              int32_t values, const nlist_real *d_sums,
                                              unsigned long long **units, nlist_mode *mode,
                                              struct CUstream_st *stream)
{
    if (!gpu || !how) return NLIST_BAD_ARGUMENT;
    nlist *list = &gpu->device.list;
    int64_t const numbers = (int64_t)list->n * values;
    nlist_result result = nlist_i_check_sum(list, how, values);
    if (result != NLIST_OK || list->n == 0) return result;
    if (how->values != 0 && how->values != values) return NLIST_BAD_VALUES;
    if (!d_sums) return NLIST_BAD_ARGUMENT;
    *mode = nlist_i_mode(list, how->mode);
    if (nlist_i_failed(gpu, cudaMemsetAsync(&gpu->d_facts->overflow, 0,
                                            sizeof gpu->d_facts->overflow, stream)))
        return NLIST_CUDA_ERROR;
    if (!(how->unit > 0)) return NLIST_OK;
    result = nlist_i_take_units(gpu, numbers, stream);
    if (result != NLIST_OK) return result;
    *units = nlist_i_scratch<unsigned long long>(gpu, NLIST_I_UNITS);
    return nlist_i_failed(gpu, cudaMemsetAsync(*units, 0, (size_t)numbers * sizeof **units, stream))
               ? NLIST_CUDA_ERROR
               : NLIST_OK;
}

NLIST_API nlist_result nlist_i_cuda_end_sum(nlist_cuda *gpu, const nlist_sums *how, int32_t values,
                                            nlist_real *d_sums, const unsigned long long *units,
                                            struct CUstream_st *stream)
{
    int64_t const numbers = (int64_t)gpu->device.list.n * values;
    return nlist_i_launch(gpu, stream, numbers, nlist_i_block, nlist_i_add_units_kernel, units,
                          numbers, how->unit, d_sums);
}

/* ----------------------------------------------------------------------------------------------
   >>reserve: memory ahead of builds; and what a build has found (nlist_cuda_check)
   ---------------------------------------------------------------------------------------------- */

NLIST_API nlist_result nlist_cuda_reserve(nlist_cuda *gpu, const nlist_desc *desc, int32_t n,
                                          int32_t values, struct CUstream_st *stream)
{
    if (!gpu || n < 0) return NLIST_BAD_ARGUMENT;
    if (values < 0 || values > NLIST_I_VALUES) return NLIST_BAD_VALUES;
    if (n > NLIST_I_INT_MAX) return NLIST_TOO_MANY;
    nlist *list = &gpu->device.list;
    nlist before;
    int32_t rows = 0;
    int32_t const had = list->n;
    list->n = 0; /* so that every field may change */
    nlist_result result = desc ? nlist_i_set_rows(desc, n, &rows) : NLIST_BAD_ARGUMENT;
    if (result == NLIST_OK)
        result = nlist_i_cuda_begin(gpu, desc, list->keys, &before, stream);
    if (result != NLIST_OK) {
        list->n = had;
        return result;
    }
    list->exact = 1;
    result = nlist_i_take_generations(gpu, true, stream);
    if (result == NLIST_OK) result = nlist_i_shape(gpu, n, rows, false, stream);
    if (result == NLIST_OK) result = nlist_i_shape_events(gpu, stream);
    if (result == NLIST_OK) result = nlist_i_cuda_work(gpu, n, stream);
    if (result == NLIST_OK) result = nlist_i_take_words(gpu, n, stream);
    if (result == NLIST_OK) result = nlist_i_take_units(gpu, (int64_t)n * values, stream);
    if (result == NLIST_OK) nlist_i_take_table(gpu, stream);
    list->exact = list->built = 0;
    list->total = list->next_uid = 0;
    gpu->by_radii = gpu->by_index = 0;
    result = nlist_i_forget_borrowed(list, result);
    if (result == NLIST_OK && nlist_i_failed(gpu, cudaStreamSynchronize(stream)))
        result = NLIST_CUDA_ERROR;
    return result;
}

NLIST_API void nlist_cuda_free(nlist_cuda *gpu)
{
    if (!gpu) return;
    for (nlist_block &block : gpu->device.list.block)
        nlist_i_cuda_release(&gpu->device.list.desc.cuda_allocator, &block, gpu->stream);
    for (nlist_block &block : gpu->scratch)
        nlist_i_cuda_release(&gpu->device.list.desc.cuda_allocator, &block, gpu->stream);
    memset(gpu, 0, sizeof *gpu);
}

namespace {

/* Sums the lengths of all rows, including entries that did not fit. */
__global__ void nlist_i_total_kernel(__grid_constant__ const nlist_device device,
                                     nlist_cuda_facts *facts)
{
    const nlist_rows &rows = *nlist_i_rows(&device.list);
    long long sum = 0;
    if (facts->filled == 0) return;
    for (int64_t i = nlist_i_global_thread(); i < rows.n; i += nlist_i_all_threads())
        sum += rows.count[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, step);
    if (threadIdx.x % 32 == 0 && sum > 0)
        atomicAdd((unsigned long long *)&facts->total, (unsigned long long)sum);
}

/* A build that did not fit has set desc, but the rows are those of the one before: sets the fields
   that the rows determine. */
void nlist_i_describe(nlist_desc *desc, const nlist_rows *rows, double skin)
{
    desc->layout = rows->start     ? NLIST_COMPACT
                   : rows->touched ? NLIST_DYNAMIC
                   : rows->head    ? NLIST_HYBRID
                                   : NLIST_STATIC;
    desc->width = rows->width;
    desc->skin = (nlist_real)skin;
}

/* Copies the facts to the host's copy of the list. */
void nlist_i_update_host(nlist_cuda *gpu, const nlist_cuda_facts &facts)
{
    nlist *list = &gpu->device.list;
    list->current = facts.current;
    list->next_uid = facts.next_uid;
    list->built = facts.filled > 0;
    list->n = list->built ? list->rows[facts.current].particles : 0;
    list->row_count = list->built ? list->rows[facts.current].n : 0;
    list->triangles = facts.triangles;
    list->rows_cut = facts.rows_cut;
    list->total = (int64_t)facts.total;
    list->needed_width = facts.needed_width;
    int32_t const bad_box = facts.bad_box ? facts.bad_box : facts.bad_images;
    list->bad_id = bad_box           ? INT32_MAX - bad_box
                   : facts.first_bad ? INT32_MAX - facts.first_bad
                                     : -1;
    list->needed_entries = 0;
    for (int g = 0; g < 2; g++) {
        int64_t const entries = (int64_t)facts.entries[g];
        list->rows[g].touched_count = facts.touched[g];
        list->rows[g].entries = entries < list->rows[g].capacity ? entries : list->rows[g].capacity;
    }
    for (int kind = 0; kind < NLIST_EVENT_KINDS; kind++)
        list->event_count[kind] = (int64_t)facts.events[kind];
    int const written = facts.full && list->d_current ? 1 - facts.current : facts.current;
    if (list->rows[written].partner) list->needed_entries = (int64_t)facts.entries[written];
    if (written != facts.current && facts.filled > 0)
        nlist_i_describe(&list->desc, &list->rows[facts.current], facts.skin);
}

/* The result of the last call. */
nlist_result nlist_i_status(nlist_cuda *gpu, const nlist_cuda_facts &facts)
{
    nlist *list = &gpu->device.list;
    if (facts.sticks_bits >= 0x7F800000) return NLIST_BAD_SOURCE;
    int const written = facts.full && list->d_current ? 1 - facts.current : facts.current;
    if (facts.full && !list->rows[written].partner) {
        gpu->wanted_width = facts.needed_width;
        return NLIST_ROW_FULL;
    }
    if (facts.full) {
        gpu->wanted_entries = list->needed_entries;
        return list->rows[written].head && list->needed_entries > NLIST_I_INT_MAX ? NLIST_TOO_MANY
                                                                                  : NLIST_LIST_FULL;
    }
    if (facts.bad_starts) return NLIST_BAD_STARTS;
    if (facts.bad_box) return NLIST_BAD_BOX;
    if (facts.bad_images) return NLIST_TOO_MANY_IMAGES;
    bool const left_out = facts.first_bad && !gpu->by_index && list->desc.skip_invalid;
    if (facts.first_bad && !left_out)
        return gpu->by_index ? NLIST_BAD_INDEX : NLIST_NOT_FINITE;
    float largest;
    memcpy(&largest, &facts.reach_bits, sizeof largest);
    nlist_real const reach = nlist_i_gap(&list->desc) + ((nlist_real)largest + (nlist_real)largest),
                     square = reach * reach;
    if (gpu->by_radii && (!(square >= NLIST_I_REAL_MIN) || !nlist_i_finite(square)))
        return NLIST_BAD_RADIUS;
    if (!nlist_i_periods_fit(list, (nlist_real)largest)) return NLIST_BAD_PERIOD;
    if (facts.overflow) return NLIST_SUM_OVERFLOW;
    return left_out ? NLIST_NOT_FINITE : NLIST_OK; /* asked for, so it hides nothing else */
}

} /* namespace */

NLIST_API nlist_result nlist_cuda_check(nlist_cuda *gpu, struct CUstream_st *stream)
{
    nlist_cuda_facts facts;
    if (!gpu) return NLIST_BAD_ARGUMENT;
    nlist *list = &gpu->device.list;
    if (!gpu->d_facts)
        return nlist_i_failed(gpu, cudaStreamSynchronize(stream)) ? NLIST_CUDA_ERROR : NLIST_OK;
    if (nlist_i_failed(gpu, cudaMemsetAsync(&gpu->d_facts->total, 0, sizeof gpu->d_facts->total,
                                            stream)))
        return NLIST_CUDA_ERROR;
    int64_t const threads = list->n < nlist_i_round_threads ? (list->n + 255) / 256 * 256
                                                            : nlist_i_round_threads;
    nlist_result result = nlist_i_launch(gpu, stream, threads, nlist_i_block, nlist_i_total_kernel,
                                         gpu->device, gpu->d_facts);
    if (result == NLIST_OK) result = nlist_i_fetch_facts(gpu, &facts, stream);
    if (result != NLIST_OK) return result;
    nlist_i_update_host(gpu, facts);
    nlist_i_take_table(gpu, stream);
    return nlist_i_status(gpu, facts);
}

/* ----------------------------------------------------------------------------------------------
   >>transfer: lists between host and device
   ---------------------------------------------------------------------------------------------- */

namespace {

struct nlist_i_copy {
    void *to;
    const void *from;
    size_t bytes;
};

/* The arrays to copy between two generations of one shape. */
int nlist_i_copies(const nlist_rows *to, const nlist_rows *from, const nlist_desc *desc,
                   nlist_i_copy copy[NLIST_I_GENERATION])
{
    size_t const n = (size_t)from->n, particles = (size_t)from->particles,
                 slots = n * (size_t)from->width, entries = (size_t)from->entries,
                 word = sizeof(int32_t);
    nlist_i_copy const all[] = {
        {to->count, from->count, n * word},
        {to->slot, from->slot, slots * word},
        {to->start, from->start, particles > 0 ? (n + 1) * sizeof(int64_t) : 0},
        {to->partner, from->partner, entries * word},
        {to->own, from->own, entries * word},
        {to->link, from->link, entries * word},
        {to->head, from->head, n * word},
        {to->touched, from->touched, (size_t)from->touched_count * word},
        {to->uid, from->uid, particles * sizeof(int64_t)},
        {to->reference, from->reference, particles * (size_t)desc->dim * sizeof(nlist_real)},
        {to->history, from->history, (slots + entries) * (size_t)desc->history},
        {to->shift, from->shift, (slots + entries) * 3 * word},
        {to->distance, from->distance, (slots + entries) * sizeof(nlist_real)},
        {to->offset, from->offset, (slots + entries) * 3 * sizeof(nlist_real)},
        {to->within, from->within, n * word},
        {to->state, from->state, slots + entries}};
    int copies = 0;
    for (const nlist_i_copy &one : all)
        if (one.to && one.from && one.bytes > 0) copy[copies++] = one;
    return copies;
}

/* Copies arrays, and waits. */
nlist_result nlist_i_copy_all(nlist_cuda *gpu, const nlist_i_copy *copy, int copies,
                              cudaMemcpyKind kind, cudaStream_t stream)
{
    for (int c = 0; c < copies; c++)
        if (nlist_i_failed(gpu,
                           cudaMemcpyAsync(copy[c].to, copy[c].from, copy[c].bytes, kind, stream)))
            return NLIST_CUDA_ERROR;
    return nlist_i_failed(gpu, cudaStreamSynchronize(stream)) ? NLIST_CUDA_ERROR : NLIST_OK;
}

} /* namespace */

NLIST_API nlist_result nlist_cuda_upload(nlist_cuda *gpu, const nlist *list,
                                         struct CUstream_st *stream)
{
    nlist_i_copy copy[NLIST_I_GENERATION];
    nlist_cuda_facts facts = {};
    nlist before;
    if (!gpu || !list) return NLIST_BAD_ARGUMENT;
    if (!list->built) return NLIST_NOT_BUILT;
    const nlist_rows *from = &list->rows[list->current];
    nlist_desc desc = list->desc;
    nlist *to = &gpu->device.list;
    desc.cuda_allocator = to->desc.cuda_allocator;
    desc.capacity = from->entries > desc.capacity ? from->entries : desc.capacity;
    int32_t const had = to->n;
    to->n = 0;
    gpu->wanted_width = 0; /* the width is copied as it is */
    nlist_result result = nlist_i_cuda_begin(gpu, &desc, list->keys, &before, stream);
    if (result != NLIST_OK) {
        to->n = had;
        return result;
    }
    to->triangles = list->triangles;
    to->boxed = list->boxed;
    to->rows_cut = facts.rows_cut = list->rows_cut;
    result = nlist_i_take_generations(gpu, true, stream);
    if (result == NLIST_OK)
        result = nlist_i_shape(gpu, list->n, list->row_count, from->uid != nullptr, stream);
    if (result == NLIST_OK) result = nlist_i_shape_events(gpu, stream);
    if (result != NLIST_OK) return result;
    gpu->by_radii = gpu->by_index = 0;
    memcpy(to->axis, list->axis, sizeof to->axis);
    to->next_uid = list->next_uid;
    to->total = list->total;
    facts.filled = 1;
    facts.next_uid = list->next_uid;
    facts.skin = (double)list->desc.skin;
    facts.triangles = list->triangles;
    facts.entries[0] = (uint64_t)from->entries;
    facts.touched[0] = from->touched_count;
    if (nlist_i_failed(gpu, cudaMemcpyAsync(gpu->d_facts, &facts, sizeof facts,
                                            cudaMemcpyHostToDevice, stream)))
        return NLIST_CUDA_ERROR;
    result = nlist_i_copy_all(gpu, copy, nlist_i_copies(&to->rows[0], from, &desc, copy),
                              cudaMemcpyHostToDevice, stream);
    if (result != NLIST_OK) return result;
    to->n = list->n;
    to->row_count = list->row_count;
    to->built = 1;
    return NLIST_OK;
}

namespace {

/* Host memory for a download. */
nlist_result nlist_i_take_download(nlist *list, const nlist *from)
{
    const nlist_rows *rows = &from->rows[from->current];
    nlist_result result = nlist_i_reserve_generation(list, 0, rows->particles, rows->n,
                                                     rows->entries, rows->uid != nullptr);
    if (!from->desc.events) return result;
    for (int kind = 0; kind < NLIST_EVENT_KINDS && result == NLIST_OK; kind++) {
        result = nlist_i_grow(list, NLIST_I_EVENT + kind, from->event_count[kind],
                              sizeof(nlist_event), 0);
        list->event[kind] = static_cast<nlist_event *>(list->block[NLIST_I_EVENT + kind].memory);
    }
    return result;
}

} /* namespace */

NLIST_API nlist_result nlist_cuda_download(nlist *list, const nlist_cuda *gpu,
                                           struct CUstream_st *stream)
{
    nlist_i_copy copy[int(NLIST_I_GENERATION) + int(NLIST_EVENT_KINDS)];
    nlist_cuda_facts facts;
    if (!list || !gpu) return NLIST_BAD_ARGUMENT;
    if (!gpu->d_facts) return NLIST_NOT_BUILT;
    nlist_cuda view = *gpu;
    nlist_result result = nlist_i_fetch_facts(&view, &facts, stream);
    if (result != NLIST_OK) return result;
    if (facts.filled == 0) return NLIST_NOT_BUILT;
    /* rows were cut: see nlist_cuda_check */
    if (facts.full && !view.device.list.d_current) return NLIST_NOT_BUILT;
    nlist_i_update_host(&view, facts);
    nlist const *const from = &view.device.list;
    const nlist_rows *const rows = &from->rows[facts.current];
    nlist_allocator const allocator = list->desc.allocator;
    memset(list->rows, 0, sizeof list->rows);
    list->n = list->built = 0;
    list->desc = from->desc;
    list->desc.allocator = allocator;
    nlist_i_describe(&list->desc, rows, facts.skin);
    result = nlist_i_take_download(list, from);
    if (result != NLIST_OK) return result;
    int copies = nlist_i_copies(&list->rows[0], rows, &from->desc, copy);
    for (int kind = 0; kind < (from->desc.events ? NLIST_EVENT_KINDS : 0); kind++) {
        list->event_count[kind] = from->event_count[kind];
        copy[copies] = {list->event[kind], from->event[kind],
                        (size_t)from->event_count[kind] * sizeof(nlist_event)};
        copies += copy[copies].bytes > 0;
    }
    result = nlist_i_copy_all(&view, copy, copies, cudaMemcpyDeviceToHost, stream);
    if (result != NLIST_OK) return result;
    memcpy(list->axis, from->axis, sizeof list->axis);
    list->cuda_error = 0;
    list->rows[0].entries = rows->entries;
    list->rows[0].touched_count = rows->touched_count;
    list->current = 0;
    list->d_current = nullptr;
    list->n = rows->particles;
    list->row_count = rows->n;
    list->built = 1;
    list->keys = from->keys;
    list->triangles = from->triangles;
    list->boxed = from->boxed;
    list->rows_cut = from->rows_cut;
    list->next_uid = from->next_uid;
    list->bad_id = from->bad_id;
    list->remembers = nlist_i_keeps_two(&list->desc);
    list->total = 0;
    for (int32_t i = 0; i < list->row_count; i++) list->total += list->rows[0].count[i];
    return NLIST_OK;
}
