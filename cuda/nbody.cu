/* cuda/nbody.cu - v0.2.0 - the CUDA half of nbody.h, which includes this file
   SPDX-License-Identifier: MIT OR Unlicense

   Sections and names follow the serial code in nbody.h. The operation on one body, node, source or
   cell is the same NBODY_FN function on both sides. The bodies are sorted by CUB (radix sort).

   Four versions of the same sums, kept to be read and to test one another (Kalms sections 6.3.2 to
   6.3.5), selected by desc.stage. Bounds, sort, M2L table and chunks are the same in all:

       NBODY_ONE_THREAD      one thread loops over all cells                         >>one-thread
       NBODY_MANY_THREADS    a thread for each body, node or source, one kernel per level
       NBODY_SHARED_MEMORY   a block for each chunk of 64; sources staged in shared memory
       NBODY_FAST            a warp for 16 targets, sources of many cells in one stream, the M2L
                             table for families of cells                             >>fast

   The first three give the same bits as the serial code.

   >>contents

       all stages     >>memory >>launch >>cooperative >>square-cuda >>sort-cuda >>cells-cuda,
                      of deep trees >>deep-cuda
       stages 1 to 3  >>up-cuda >>table-cuda (all stages) >>series-cuda >>down-cuda >>bodies-cuda
       one thread     >>one-thread
       NBODY_FAST     >>complete >>fast >>groups >>families >>open >>transfer >>fast-leaves
       calls          >>api-cuda >>check >>upload >>download */

#if 10000 * NBODY_VERSION_MAJOR + 100 * NBODY_VERSION_MINOR + NBODY_VERSION_PATCH != 200
#error "cuda/nbody.cu 0.2.0 and nbody.h are of different versions: copy both from one release"
#endif

#include <cuda_runtime.h>
#include <cub/cub.cuh>

#include <climits>
#include <cstring>

namespace {

/* Threads of a block without shared memory, and the maximum number of blocks, where each thread
   loops: enough for a large GPU (8 for each multiprocessor of an H200), and the same number on
   every GPU, so that sums of partial results of blocks have the same order everywhere. */
constexpr int nbody_i_block_threads = 256;
constexpr int64_t nbody_i_many_blocks = 1056;
constexpr int nbody_i_warps = 5; /* >>fast: of a block, at most, of 16 targets each */
constexpr int32_t nbody_i_group = 320, nbody_i_piece = 128; /* >>groups: bodies */
constexpr int nbody_i_blocks_per_sm = 2; /* >>cooperative: blocks of each multiprocessor */
constexpr int64_t nbody_i_square_cells = 21; /* on levels 0 to 2, which a periodic square needs */
constexpr int nbody_i_sums = 8; /* doubles that a block has in PARTIAL at least, for parts */
constexpr unsigned nbody_i_all_lanes = 0xFFFFFFFFu;

/* cuda/nbody_periodic.cu */
#ifdef NBODY_WITH_PERIODIC
size_t nbody_i_cuda_lattice_bytes(const nbody *sim);
nbody_result nbody_i_host_lattice(nbody *sim, const struct nbody_i_lattice **lattice);
nbody_result nbody_i_cuda_lattice(nbody_cuda *gpu, cudaStream_t stream);
nbody_result nbody_i_cuda_image_nodes(nbody_cuda *gpu, int potential, bool store,
                                      cudaStream_t stream);
nbody_result nbody_i_cuda_direct_images(nbody_cuda *gpu, const nbody_i_outcome &out,
                                        cudaStream_t stream);
#else
#define nbody_i_cuda_lattice_bytes(sim) 0
#define nbody_i_bind_lattice(sim, memory) ((void)0)
#define nbody_i_host_lattice(sim, lattice) NBODY_OK
#define nbody_i_cuda_lattice(gpu, stream) NBODY_OK
#define nbody_i_cuda_image_nodes(gpu, potential, store, stream) NBODY_OK
#define nbody_i_cuda_direct_images(gpu, out, stream) NBODY_OK
#endif

__device__ __forceinline__ int64_t nbody_i_thread()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t nbody_i_threads() { return (int64_t)gridDim.x * blockDim.x; }

/* ----------------------------------------------------------------------------------------------
   >>memory
   ---------------------------------------------------------------------------------------------- */

/* KEYS and IDS: of the sort; FACTS: below; CHUNKS: chunks of leaves; PARTIAL: partial sums of
   blocks; TEMP: CUB's. */
enum {
    NBODY_I_KEYS_A, NBODY_I_KEYS_B, NBODY_I_IDS_A, NBODY_I_IDS_B,
    NBODY_I_FACTS, NBODY_I_CHUNKS, NBODY_I_PARTIAL, NBODY_I_TEMP
};

/* Up to NBODY_CHUNK bodies of one leaf. NBODY_FAST: nbody_i_fast_chunk of them, nbody_i_piece of a
   group. */
struct nbody_i_chunk { int32_t leaf, first, count; };

/* Bounds of all bodies as integers of the same order; minima are stored as maxima of the negated
   numbers, so that all start at 0. */
struct nbody_i_facts {
    unsigned long long least[2], most[2], heaviest;
    unsigned arrived[3];                        /* >>cooperative */
    int32_t first_bad[2];                       /* INT_MAX - (first that is not finite, that has a
                                                   negative mass), 0: none */
    int32_t too_large;
    int32_t too_shallow;                        /* >>deep-cuda: the last level is to be divided */
    int32_t undivided;                          /* 1: cells stayed undivided because of max_cells */
    int32_t crowds;                             /* 1: there are some, in too large a unit of mass */
    int32_t pieces[3];                          /* NBODY_FAST: chunks, pieces of groups, and chunks
                                                   of points */
    int32_t sums[nbody_i_many_blocks];          /* >>cells-cuda: children of the cells of a block */
};

bool nbody_i_failed(nbody_cuda *gpu, cudaError_t error)
{
    if (error == cudaSuccess) return false;
    gpu->device.sim.cuda_error = (int32_t)error;
    (void)cudaGetLastError(); /* clear it: it is returned */
    return true;
}

void *nbody_i_cuda_alloc(const nbody_cuda_allocator *allocator, size_t bytes, cudaStream_t stream)
{
    void *memory = nullptr;
    if (allocator->alloc) return allocator->alloc(bytes, stream, allocator->user);
    if (cudaMallocAsync(&memory, bytes, stream) == cudaSuccess) return memory;
    (void)cudaGetLastError(); /* clear the error of the failed allocation */
    return nullptr;
}

void nbody_i_cuda_release(const nbody_cuda_allocator *allocator, nbody_block *block,
                          cudaStream_t stream)
{
    if (block->memory && allocator->free)
        allocator->free(block->memory, block->bytes, stream, allocator->user);
    else if (block->memory) (void)cudaFreeAsync(block->memory, stream);
    block->memory = nullptr;
    block->bytes = 0;
}

/* As nbody_i_grow, keeping nothing. New memory is filled with ones, NaN as a number and -1 as an
   index: reading it before it is written shows. */
nbody_result nbody_i_cuda_grow(nbody_cuda *gpu, nbody_block *block, size_t bytes,
                               nbody_i_growth growth, cudaStream_t stream)
{
    const nbody_cuda_allocator *allocator = &gpu->device.sim.desc.cuda_allocator;
    if (bytes <= block->bytes) return NBODY_OK;
    size_t room = nbody_i_room(growth, block->bytes, bytes);
    nbody_i_cuda_release(allocator, block, stream);
    block->memory = nbody_i_cuda_alloc(allocator, room, stream);
    if (!block->memory && room > bytes) {
        room = bytes;
        block->memory = nbody_i_cuda_alloc(allocator, room, stream);
    }
    if (!block->memory) return NBODY_OUT_OF_MEMORY;
    block->bytes = room;
    if (!nbody_i_failed(gpu, cudaMemsetAsync(block->memory, 0xFF, room, stream))) return NBODY_OK;
    nbody_i_cuda_release(allocator, block, stream);
    return NBODY_CUDA_ERROR;
}

template <class T> T *nbody_i_scratch(nbody_cuda *gpu, int which)
{
    return static_cast<T *>(gpu->scratch[which].memory);
}

/* Of keys of so many levels; those of deep trees have all bits. */
int nbody_i_key_bits(int levels) { return levels < NBODY_KEY_LEVELS ? 2 * (levels - 1) : 32; }

cudaError_t nbody_i_sort_pairs(void *temp, size_t &temp_bytes, cub::DoubleBuffer<uint32_t> &keys,
                               cub::DoubleBuffer<int32_t> &ids, int32_t n, int bits,
                               cudaStream_t stream)
{
    (void)cudaGetLastError(); /* CUB would report an unread error of the caller's as its own */
    return cub::DeviceRadixSort::SortPairs(temp, temp_bytes, keys, ids, n, 0, bits, stream);
}

/* The maximum number of cells on a level: 4 for each cell that may be divided above it. */
int64_t nbody_i_level_bound(const nbody_desc *desc, int32_t n, int level)
{
    int64_t const all = level >= 16 ? INT64_MAX : (int64_t)1 << 2 * level;
    bool const always = desc->leaf == 0 || (desc->periodic && level <= 2);
    int64_t const divided = always ? n : 4 * ((int64_t)n / (desc->leaf + 1)) + 1;
    int64_t const bound = divided < n ? divided : n;
    return all < bound ? all : bound > 0 ? bound : 1;
}

/* Capacity in cells: as many as there can be, but no more than 8 for every full leaf. Where that is
   too small, nbody_cuda_check returns the number needed. */
int32_t nbody_i_cell_room(const nbody_desc *desc, int32_t n)
{
    int64_t cells = 0;
    for (int level = 0; level < desc->levels; level++) cells += nbody_i_level_bound(desc, n, level);
    int64_t const usual = 8 * ((int64_t)n / (desc->leaf + 1)) + 4096, most = NBODY_I_N_MAX;
    if (desc->leaf > 0 && cells > usual) cells = usual;
    if (desc->max_cells > 0) cells = desc->max_cells;
    if (desc->periodic && cells < nbody_i_square_cells) cells = nbody_i_square_cells;
    return (int32_t)(cells < most ? cells : most) + 4; /* a cell is divided while there is room for
                                                          4 children */
}

/* NBODY_FAST: the maximum number of bodies in a chunk, 16 for each warp of a block. */
int32_t nbody_i_fast_chunk(const nbody_desc *desc)
{
    bool const four = desc->method == NBODY_VIRTUAL_PARTICLES ||
                      (desc->leaf > 0 && desc->leaf <= 64);
    return four ? 64 : 16 * nbody_i_warps;
}

/* DIRECT, NBODY_FAST: tiles of sources, and the number of parts that they are cut into; for the
   sums of all parts 2^21 bodies have memory. Fewer bodies than nbody_i_direct_many: two targets a
   thread, so that there are more blocks. */
constexpr int nbody_i_direct_threads = 256;
#ifdef CUDA_EMU
constexpr int32_t nbody_i_direct_many = 2048;
#else
constexpr int32_t nbody_i_direct_many = 32768;
#endif

__host__ __device__ int32_t nbody_i_direct_tiles(int32_t n)
{
    return (n + nbody_i_direct_threads - 1) / nbody_i_direct_threads;
}

int32_t nbody_i_direct_parts(int32_t n)
{
    int32_t const tiles = nbody_i_direct_tiles(n), most = (1 << 21) / (n > 0 ? n : 1);
    return most < 2 ? 1 : tiles < most ? tiles : most;
}

/* Of the sums of all parts: the most that n bodies or fewer have. */
size_t nbody_i_direct_room(int32_t n)
{
    int64_t const all = (int64_t)nbody_i_direct_tiles(n) * n, most = n > 1 << 21 ? n : 1 << 21;
    return (size_t)(all < most ? all : most);
}

/* >>groups. Not with second moments, for which four targets a lane have too few registers. */
bool nbody_i_has_groups(const nbody_desc *desc)
{
    return desc->method == NBODY_VIRTUAL_PARTICLES && desc->stage == NBODY_FAST && desc->order == 1;
}

/* Of chunks, and of pieces of groups. */
int32_t nbody_i_chunk_room(int32_t n, int32_t cells)
{
    return n / NBODY_CHUNK + (cells < n ? cells : n) + 1;
}

/* Levels that have tables of their own, 1: they share one. Of deep trees all have: small cells need
   them. */
int nbody_i_cuda_tables(const nbody_desc *desc, bool potential)
{
    nbody_i_law const law = nbody_i_law_in(desc, potential);
    return nbody_i_scale_free(&law) && desc->levels <= NBODY_KEY_LEVELS ? 1 : desc->levels;
}

/* Bytes of the arrays, for `cells` cells. */
nbody_result nbody_i_cuda_sizes(const nbody *sim, int32_t n, int32_t cells, bool potential,
                                size_t bytes[NBODY_BLOCKS], size_t scratch[NBODY_CUDA_SCRATCH])
{
    bool const tree = sim->desc.method != NBODY_DIRECT && n > 0,
               chebyshev = sim->desc.sources == NBODY_CHEBYSHEV;
    memset(bytes, 0, NBODY_BLOCKS * sizeof *bytes);
    memset(scratch, 0, NBODY_CUDA_SCRATCH * sizeof *scratch);
    bytes[NBODY_I_FRAME] = sizeof(nbody_frame);
    bytes[NBODY_I_BODIES] = (size_t)n * NBODY_I_BODY;
    scratch[NBODY_I_FACTS] = sizeof(nbody_i_facts);
    scratch[NBODY_I_PARTIAL] = (size_t)nbody_i_many_blocks * nbody_i_sums * sizeof(double);
    if (sim->desc.periodic) bytes[NBODY_I_LATTICE] = nbody_i_cuda_lattice_bytes(sim);
    if (sim->desc.method == NBODY_DIRECT && sim->desc.stage == NBODY_FAST)
        scratch[NBODY_I_PARTIAL] += nbody_i_direct_room(n) * NBODY_I_PARTS * sizeof(nbody_real);
    if (!tree) return NBODY_OK;
    for (int which = NBODY_I_KEYS_A; which <= NBODY_I_IDS_B; which++)
        scratch[which] = (size_t)n * sizeof(uint32_t);
    scratch[NBODY_I_CHUNKS] = (size_t)nbody_i_chunk_room(n, cells) * sizeof(nbody_i_chunk);
    if (nbody_i_has_groups(&sim->desc)) {
        scratch[NBODY_I_CHUNKS] *= 2;
        scratch[NBODY_I_PARTIAL] += (size_t)n * NBODY_I_PARTS * sizeof(nbody_real);
    }
    cub::DoubleBuffer<uint32_t> keys;
    cub::DoubleBuffer<int32_t> ids;
    if (nbody_i_sort_pairs(nullptr, scratch[NBODY_I_TEMP], keys, ids, n,
                           nbody_i_key_bits(sim->desc.levels), nullptr) != cudaSuccess)
        return NBODY_CUDA_ERROR;
    bytes[NBODY_I_CELLS] = (size_t)cells * sizeof(nbody_cell);
    bytes[NBODY_I_SOURCES] = (size_t)cells * (size_t)sim->per_cell *
                             (size_t)nbody_i_source_arrays(&sim->desc) * sizeof(nbody_real);
    bytes[NBODY_I_MADE] = chebyshev ? 0 : (size_t)cells * sizeof(int32_t);
    bytes[NBODY_I_NODES] = (size_t)cells * nbody_i_node_reals(sim, potential) * sizeof(nbody_real);
    if (chebyshev && sim->series)
        bytes[NBODY_I_TABLE] = nbody_i_series_table(sim) * sizeof(nbody_real);
    else if (chebyshev)
        bytes[NBODY_I_TABLE] = nbody_i_table_level(sim) * sizeof(nbody_real) *
                               (size_t)nbody_i_cuda_tables(&sim->desc, potential);
    return NBODY_OK;
}

/* Grows the blocks for an evaluation of n bodies, and sets the arrays to them. */
nbody_result nbody_i_cuda_prepare(nbody_cuda *gpu, int32_t n, bool potential, nbody_i_growth growth,
                                  cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    size_t bytes[NBODY_BLOCKS], scratch[NBODY_CUDA_SCRATCH];
    int32_t const cells = nbody_i_cell_room(&sim->desc, n);
    nbody_result result = nbody_i_cuda_sizes(sim, n, cells, potential, bytes, scratch);
    for (int b = 0; b < NBODY_BLOCKS && result == NBODY_OK; b++)
        result = nbody_i_cuda_grow(gpu, &gpu->block[b], bytes[b], growth, stream);
    for (int b = 0; b < NBODY_CUDA_SCRATCH && result == NBODY_OK; b++)
        result = nbody_i_cuda_grow(gpu, &gpu->scratch[b], scratch[b], growth, stream);
    if (result != NBODY_OK) return result;
    sim->frame = static_cast<nbody_frame *>(gpu->block[NBODY_I_FRAME].memory);
    nbody_i_bind_bodies(sim, gpu->block[NBODY_I_BODIES].memory, n);
    if (sim->desc.periodic) nbody_i_bind_lattice(sim, gpu->block[NBODY_I_LATTICE].memory);
    if (sim->desc.method == NBODY_DIRECT || n == 0) return NBODY_OK;
    sim->cell = static_cast<nbody_cell *>(gpu->block[NBODY_I_CELLS].memory);
    nbody_i_bind_sources(sim, gpu->block[NBODY_I_SOURCES].memory, gpu->block[NBODY_I_MADE].memory,
                         (size_t)cells);
    nbody_i_bind_nodes(sim, gpu->block[NBODY_I_NODES].memory, (size_t)cells, potential);
    if (sim->desc.sources == NBODY_CHEBYSHEV)
        sim->table = static_cast<nbody_real *>(gpu->block[NBODY_I_TABLE].memory);
    return NBODY_OK;
}

/* May kernels be asked for these functions? Only if they are those that they were compiled with. */
nbody_result nbody_i_check_function(const nbody_desc *desc)
{
    (void)desc;
#ifdef NBODY_WITH_FUNCTION
    nbody_function const *given = &desc->function;
    if (desc->law == NBODY_FUNCTION && !nbody_i_is_named(given, given->potential != nullptr))
        return NBODY_BAD_OPTION;
#endif
    return NBODY_OK;
}

/* NBODY_FAST has no kernels for these. */
constexpr int nbody_i_fast_order = 12; /* the highest */
bool nbody_i_never_fast(const nbody_desc *desc)
{
    return nbody_i_law_in(desc, 0).core || desc->periodic || desc->law == NBODY_FUNCTION ||
           (desc->method == NBODY_FORCE_NODES && desc->order > nbody_i_fast_order);
}

/* What an evaluation is for. */
enum nbody_i_purpose { NBODY_I_FOR_TREE, NBODY_I_FOR_FORCES, NBODY_I_FOR_POTENTIALS };

/* NBODY_AUTO: up to so many bodies, NBODY_DIRECT. Measured (`bench_nbody --only auto,defaults`): of
   so many it takes longer than a tree of evenly spread ones, and less than one of a galaxy. */
int32_t nbody_i_cuda_few(const nbody_desc *desc, nbody_i_purpose purpose)
{
    int const order = desc->order < NBODY_MAX_ORDER ? desc->order : NBODY_MAX_ORDER,
              above = order > 4 ? order - 4 : order == 1 ? 2 : 0;
    bool const quick = NBODY_I_REAL_KIND == 1 && !nbody_i_never_fast(desc);
    if (!quick || purpose == NBODY_I_FOR_TREE) return 1024;
    if (purpose == NBODY_I_FOR_FORCES) return 26000 + 1500 * above;
    return nbody_i_law_in(desc, 0).law == NBODY_INVERSE ? 12000 + 2000 * above
                                                        : 15000 + 4000 * above;
}

/* NBODY_AUTO: what nbody_i_default_leaf has for laws without M2L by powers; here near pairs cost
   less than on a CPU, but for logarithms. */
int32_t nbody_i_cuda_leaf(const nbody_desc *desc, int32_t n, nbody_i_purpose purpose)
{
    int const order = desc->order == 0 ? 4 : desc->order;
    bool const logarithms =
        purpose == NBODY_I_FOR_POTENTIALS && nbody_i_law_in(desc, 0).law == NBODY_INVERSE;
    if (order == 1 || desc->sources == NBODY_MASS_CENTRES) return 0;
    if (logarithms) return order <= 8 ? 64 : 72;
    return nbody_i_even_leaf(order <= 4 ? 80 : order <= 6 ? 144 : 200, n);
}

/* Empties it and copies a checked desc, as nbody_i_begin does on the host. */
nbody_result nbody_i_cuda_begin(nbody_cuda *gpu, const nbody_desc *desc, int32_t n,
                                nbody_i_purpose purpose, cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    nbody_cuda_allocator const had = sim->desc.cuda_allocator;
    bool holds = false;
    gpu->stream = stream;
    for (int b = 0; b < NBODY_BLOCKS; b++) holds |= gpu->block[b].memory != nullptr;
    for (int b = 0; b < NBODY_CUDA_SCRATCH; b++) holds |= gpu->scratch[b].memory != nullptr;
    nbody_desc chosen{};
    if (desc) chosen = *desc;
    if (chosen.method == NBODY_AUTO && !chosen.periodic) {
        chosen.method =
            n <= nbody_i_cuda_few(&chosen, purpose) ? NBODY_DIRECT : NBODY_FORCE_NODES;
        if (chosen.method == NBODY_FORCE_NODES && chosen.levels == 0 && chosen.leaf == 0)
            chosen.leaf = nbody_i_cuda_leaf(&chosen, n, purpose);
    }
    if (chosen.stage == NBODY_FAST && nbody_i_never_fast(&chosen))
        chosen.stage = NBODY_SHARED_MEMORY;
    nbody_result result = nbody_i_begin(sim, &chosen, n, false);
    if (result == NBODY_OK) result = nbody_i_check_function(&chosen);
    if (result != NBODY_OK) {
        if (holds) sim->desc.cuda_allocator = had; /* what nbody_cuda_free will call */
        return result;
    }
    if (chosen.levels == 0 && sim->desc.levels > NBODY_KEY_LEVELS)
        sim->desc.levels = NBODY_KEY_LEVELS; /* deep trees are for those who ask: >>deep-cuda */
    nbody_cuda_allocator const given = sim->desc.cuda_allocator;
    if (holds && (had.alloc != given.alloc || had.free != given.free || had.user != given.user)) {
        sim->desc.cuda_allocator = had;
        return NBODY_BAD_ALLOCATOR;
    }
    return NBODY_OK;
}

/* ----------------------------------------------------------------------------------------------
   >>launch
   ---------------------------------------------------------------------------------------------- */

/* Launches a kernel over `threads` threads; 0 is valid. */
template <class... Parameters, class... Arguments>
nbody_result nbody_i_launch(nbody_cuda *gpu, cudaStream_t stream, int64_t threads, int block,
                            void (*kernel)(Parameters...), const Arguments &...arguments)
{
    if (threads <= 0) return NBODY_OK;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)((threads + block - 1) / block));
    config.blockDim = dim3((unsigned)block);
    config.stream = stream;
    return nbody_i_failed(gpu, cudaLaunchKernelEx(&config, kernel, arguments...)) ? NBODY_CUDA_ERROR
                                                                                  : NBODY_OK;
}

/* The number of threads for a grid-stride loop. */
int64_t nbody_i_at_most(int64_t threads)
{
    int64_t const most = nbody_i_many_blocks * nbody_i_block_threads;
    return threads < most ? threads : most;
}

/* Number of blocks of `threads` for the cells of one level, or fewer that loop. */
int64_t nbody_i_blocks_for(int64_t pieces, int threads)
{
    int64_t const most = 4 * nbody_i_many_blocks;
    return (pieces < most ? pieces : most) * threads;
}

/* ----------------------------------------------------------------------------------------------
   >>cooperative: NBODY_FAST, kernels of all levels. Each level needs the one before it: the blocks,
   of which there are as many as run at the same time, wait for each other. Where the launch of a
   kernel for a level would cost more than its few cells, or has none, that takes less time.
   ---------------------------------------------------------------------------------------------- */

/* Where blocks cannot wait for each other, one block does all. */
template <class... Parameters, class... Arguments>
nbody_result nbody_i_launch_waiting(nbody_cuda *gpu, cudaStream_t stream, int threads,
                                    void (*kernel)(Parameters...), const Arguments &...arguments)
{
    int device = 0, processors = 1, possible = 0;
    if (nbody_i_failed(gpu, cudaGetDevice(&device)) ||
        nbody_i_failed(gpu, cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount,
                                                   device)) ||
        nbody_i_failed(gpu, cudaDeviceGetAttribute(&possible, cudaDevAttrCooperativeLaunch,
                                                   device)))
        return NBODY_CUDA_ERROR;
    int64_t const blocks =
        (int64_t)nbody_i_blocks_per_sm * nbody_i_block_threads / threads * processors;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(!possible ? 1
                          : blocks < nbody_i_many_blocks ? (unsigned)blocks
                                                         : (unsigned)nbody_i_many_blocks);
    config.blockDim = dim3((unsigned)threads);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = possible ? 1 : 0;
    cudaError_t error = cudaLaunchKernelEx(&config, kernel, arguments...);
    if (error == cudaErrorCooperativeLaunchTooLarge) { /* fewer multiprocessors are at hand */
        (void)cudaGetLastError();
        config.gridDim = dim3(1);
        error = cudaLaunchKernelEx(&config, kernel, arguments...);
    }
    return nbody_i_failed(gpu, error) ? NBODY_CUDA_ERROR : NBODY_OK;
}

template <class... Parameters, class... Arguments>
nbody_result nbody_i_launch_cooperative(nbody_cuda *gpu, cudaStream_t stream,
                                     void (*kernel)(Parameters...), const Arguments &...arguments)
{
    return nbody_i_launch_waiting(gpu, stream, nbody_i_block_threads, kernel, arguments...);
}

/* Kernels whose blocks wait: each counts those that have arrived, from 0 on in every evaluation. */
enum { NBODY_I_CELLS_WAIT, NBODY_I_M2M_WAIT, NBODY_I_L2L_WAIT };

/* All blocks have come here, and see what each has written. */
__device__ void nbody_i_wait_for_all(unsigned *arrived)
{
    __syncthreads();
    if (gridDim.x > 1 && threadIdx.x == 0) {
        __threadfence();
        unsigned const all = (atomicAdd(arrived, 1u) / gridDim.x + 1) * gridDim.x;
        while (*(volatile unsigned *)arrived < all) {}
        __threadfence();
    }
    __syncthreads();
}

/* ----------------------------------------------------------------------------------------------
   >>square-cuda: bounds of the bodies
   ---------------------------------------------------------------------------------------------- */

/* Doubles as integers of the same order, above 0: of negative numbers all bits are flipped, of
   others the sign. */
__device__ unsigned long long nbody_i_order_of(double x)
{
    unsigned long long const bits = (unsigned long long)__double_as_longlong(x);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

__device__ double nbody_i_double_of(unsigned long long order)
{
    unsigned long long const sign = 1ull << 63;
    return order == 0 ? 0 : __longlong_as_double((long long)(order & sign ? order ^ sign : ~order));
}

/* Bounds of all finite bodies, their largest |mass|, and the first invalid ones. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_bounds_kernel(nbody_i_input input, int32_t n, bool any_sign, nbody_i_facts *facts)
{
    __shared__ unsigned long long shared[5];
    unsigned long long most[5] = {0, 0, 0, 0, 0};
    if (threadIdx.x < 5) shared[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t i = nbody_i_thread(); i < n; i += nbody_i_threads()) {
        const nbody_real *p = nbody_i_at(input.pos, input.stride, (int32_t)i);
        double const x = (double)p[0], y = (double)p[1],
                     m = (double)nbody_i_mass(&input, (int32_t)i);
        if (!nbody_i_finite(x) || !nbody_i_finite(y) || !nbody_i_finite(m)) {
            atomicMax(&facts->first_bad[0], INT_MAX - (int32_t)i);
            continue;
        }
        if (m < 0 && !any_sign) atomicMax(&facts->first_bad[1], INT_MAX - (int32_t)i);
        double const value[5] = {-x, -y, x, y, m < 0 ? -m : m};
#pragma unroll
        for (int v = 0; v < 5; v++) {
            unsigned long long const order = nbody_i_order_of(value[v] + 0); /* -0 becomes 0 */
            most[v] = order > most[v] ? order : most[v];
        }
    }
#pragma unroll
    for (int v = 0; v < 5; v++) {
        for (int step = 16; step > 0; step /= 2) {
            unsigned long long const other = __shfl_xor_sync(nbody_i_all_lanes, most[v], step);
            most[v] = other > most[v] ? other : most[v];
        }
        if (threadIdx.x % 32 == 0) atomicMax(&shared[v], most[v]);
    }
    __syncthreads();
    unsigned long long *const to[5] = {&facts->least[0], &facts->least[1], &facts->most[0],
                                       &facts->most[1], &facts->heaviest};
    if (threadIdx.x < 5) atomicMax(to[threadIdx.x], shared[threadIdx.x]);
}

/* One thread: the square and the units from the bounds. */
__global__ void nbody_i_frame_kernel(__grid_constant__ const nbody_device device,
                                     nbody_i_facts *facts)
{
    nbody_frame *frame = device.sim.frame;
    double least[2] = {-nbody_i_double_of(facts->least[0]), -nbody_i_double_of(facts->least[1])};
    double most[2] = {nbody_i_double_of(facts->most[0]), nbody_i_double_of(facts->most[1])};
    nbody_frame made = {};
    if (device.sim.desc.periodic) nbody_i_bound_square(&device.sim.desc, least, most);
    facts->too_large = !nbody_i_make_frame(&made, &device.sim.desc, least, most,
                                           nbody_i_double_of(facts->heaviest));
    made.periodic = device.sim.desc.periodic;
    made.bad_finite = facts->first_bad[0];
    made.bad_mass = facts->first_bad[1];
    made.level_first[1] = 1;
    *frame = made;
    if (device.sim.cell) device.sim.cell[0] = nbody_i_root(device.sim.n);
}

/* ----------------------------------------------------------------------------------------------
   >>sort-cuda
   ---------------------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_keys_kernel(__grid_constant__ const nbody_device device, nbody_i_input input,
                        uint32_t *keys, int32_t *ids)
{
    int64_t const i = nbody_i_thread();
    if (i >= device.sim.n) return;
    keys[i] = nbody_i_key(device.sim.frame, &input, (int32_t)i, device.sim.desc.levels);
    ids[i] = (int32_t)i;
}

/* ids NULL: bodies in input order. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_place_kernel(__grid_constant__ const nbody_device device, nbody_i_input input,
                         const int32_t *ids)
{
    int64_t const place = nbody_i_thread();
    if (place < device.sim.n)
        nbody_i_place(&device.sim, &input, (int32_t)place, ids ? ids[place] : (int32_t)place);
}

/* Deep trees: key number `part` of the bodies, in the order that they have so far. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_deep_keys_kernel(__grid_constant__ const nbody_device device, nbody_i_input input,
                             int part, uint32_t *keys, int32_t *ids)
{
    const nbody_frame *frame = device.sim.frame;
    int64_t const i = nbody_i_thread();
    if (i >= device.sim.n) return;
    if (part == 2) ids[i] = (int32_t)i;
    const nbody_real *p = nbody_i_at(input.pos, input.stride, ids[i]);
    keys[i] = nbody_i_deep_key(frame, nbody_i_scaled((double)p[0], frame->length),
                               nbody_i_scaled((double)p[1], frame->length), part);
}

/* Deep trees: the keys that divide cells from level 16 part on. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_next_keys_kernel(__grid_constant__ const nbody_device device, int part, uint32_t *keys)
{
    const nbody &sim = device.sim;
    int64_t const k = nbody_i_thread();
    if (k < sim.n) keys[k] = nbody_i_deep_key(sim.frame, sim.x[k], sim.y[k], part);
}

/* The sorted keys. starts[code]: the first place of cell `code` of level table_level, or after it;
   for the levels above it replaces the search for the first body of a cell. before: >>complete. */
struct nbody_i_order {
    uint32_t *keys;
    int32_t *starts, *before;
    int table_level; /* -1: no table */
};

/* Candidates are numbered level by level (>>complete): the first of a level. */
__host__ __device__ constexpr int64_t nbody_i_first_candidate(int level)
{
    return (((int64_t)1 << 2 * level) - 1) / 3;
}

__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_starts_kernel(__grid_constant__ const nbody_device device, nbody_i_order order)
{
    int64_t const code = nbody_i_thread(), codes = (int64_t)1 << 2 * order.table_level;
    int const shift = 2 * (device.sim.desc.levels - 1 - order.table_level);
    int32_t low = 0, high = device.sim.n;
    if (code > codes) return;
    while (low < high) {
        int32_t const mid = low + (high - low) / 2;
        if ((int64_t)(order.keys[mid] >> shift) < code) low = mid + 1;
        else high = mid;
    }
    order.starts[code] = low;
}

/* Levels that evenly spread bodies have, in a tree that may have so many: 2 at least. */
int nbody_i_usual_levels(const nbody_desc *desc, int32_t n)
{
    int const levels = nbody_i_even_levels(desc->leaf, n);
    return levels < 2 ? 2 : levels < desc->levels ? levels : desc->levels;
}

/* The deepest level for which there is one entry for each possible cell up to it, and one more, in
   n entries; 10 at most, and one more than evenly spread bodies have. -1: not worth a table. */
int nbody_i_table_level_for(const nbody_desc *desc, int32_t n)
{
    int const most = desc->leaf > 0 ? nbody_i_usual_levels(desc, n) : 10;
    int level = 0;
    while (level < 10 && level < most && level < desc->levels - 1 &&
           nbody_i_first_candidate(level + 2) < n)
        level++;
    return level > 0 ? level : -1;
}

/* Sorts by one key, or by the three of deep trees, from the last one on: a radix sort is stable. */
nbody_result nbody_i_cuda_sort_keys(nbody_cuda *gpu, const nbody_i_input &input,
                                    cub::DoubleBuffer<uint32_t> &key,
                                    cub::DoubleBuffer<int32_t> &id, cudaStream_t stream)
{
    const nbody *sim = &gpu->device.sim;
    bool const deep = sim->desc.levels > NBODY_KEY_LEVELS;
    for (int part = deep ? 2 : 0; part >= 0; part--) {
        nbody_result const result =
            deep ? nbody_i_launch(gpu, stream, sim->n, nbody_i_block_threads,
                                  nbody_i_deep_keys_kernel, gpu->device, input, part,
                                  key.Current(), id.Current())
                 : nbody_i_launch(gpu, stream, sim->n, nbody_i_block_threads, nbody_i_keys_kernel,
                                  gpu->device, input, key.Current(), id.Current());
        size_t bytes = gpu->scratch[NBODY_I_TEMP].bytes;
        if (result != NBODY_OK || sim->desc.levels == 1) return result;
        if (nbody_i_failed(gpu, nbody_i_sort_pairs(gpu->scratch[NBODY_I_TEMP].memory, bytes, key,
                                                   id, sim->n, nbody_i_key_bits(sim->desc.levels),
                                                   stream)))
            return NBODY_CUDA_ERROR;
    }
    return NBODY_OK;
}

/* Sorts the bodies by their keys. The buffers that the sort no longer needs hold the starts, and
   the numbers of >>complete. */
nbody_result nbody_i_cuda_sort(nbody_cuda *gpu, const nbody_i_input &input, nbody_i_order *order,
                               cudaStream_t stream)
{
    const nbody_desc *desc = &gpu->device.sim.desc;
    int32_t const n = gpu->device.sim.n;
    cub::DoubleBuffer<uint32_t> key(nbody_i_scratch<uint32_t>(gpu, NBODY_I_KEYS_A),
                                    nbody_i_scratch<uint32_t>(gpu, NBODY_I_KEYS_B));
    cub::DoubleBuffer<int32_t> id(nbody_i_scratch<int32_t>(gpu, NBODY_I_IDS_A),
                                  nbody_i_scratch<int32_t>(gpu, NBODY_I_IDS_B));
    nbody_result result = nbody_i_cuda_sort_keys(gpu, input, key, id, stream);
    if (result != NBODY_OK) return result;
    *order = {key.Current(), reinterpret_cast<int32_t *>(key.Alternate()), id.Alternate(),
              nbody_i_table_level_for(desc, n)};
    if (desc->stage == NBODY_ONE_THREAD || desc->levels > NBODY_KEY_LEVELS) order->table_level = -1;
    if (order->table_level >= 0)
        result = nbody_i_launch(gpu, stream, ((int64_t)1 << 2 * order->table_level) + 1,
                                nbody_i_block_threads, nbody_i_starts_kernel, gpu->device, *order);
    if (result != NBODY_OK) return result;
    return nbody_i_launch(gpu, stream, n, nbody_i_block_threads, nbody_i_place_kernel, gpu->device,
                          input, static_cast<const int32_t *>(id.Current()));
}

/* ----------------------------------------------------------------------------------------------
   >>cells-cuda: level by level, two kernels for each; NBODY_FAST: one for all

   Cells must have the order of the serial code, so each needs an exclusive prefix sum of the
   children of all cells before it. A block has a range of the level's cells. The first kernel
   counts the children in each range. The second sums the counts of the ranges before its own, scans
   its cells, and writes the children. The number of cells on a level is known on the device only.

       children      2 4 1 | 3 0 4  | 4      ranges of three blocks, of 7, 7 and 4 children
       written from  0 2 6 | 7 . 10 | 14     after this level's end: the second block begins at 7
   ---------------------------------------------------------------------------------------------- */

/* The range of a block: cells first .. end - 1. All blocks have as many, so that the few cells of
   an upper level are spread over all multiprocessors. */
struct nbody_i_block_range { int32_t first, end; };

__device__ nbody_i_block_range nbody_i_block_range_of(const nbody_frame *frame, int level)
{
    int32_t const first = frame->level_first[level], last = frame->level_first[level + 1],
                  each = (last - first + (int32_t)gridDim.x - 1) / (int32_t)gridDim.x;
    int64_t const begin = (int64_t)first + (int64_t)blockIdx.x * each, end = begin + each;
    return {begin < last ? (int32_t)begin : last, end < last ? (int32_t)end : last};
}

/* The number of children of a cell: its quarters that are not empty. Quarter q is cell 4 code + q a
   level deeper, and `above` levels deeper still, where `starts` has its first body, that cell's
   descendants begin at (4 code + q) << 2 above. */
__device__ int nbody_i_quarters_of(const nbody &sim, const nbody_i_order &order,
                                   const nbody_cell &cell, int32_t begin[5])
{
    int const above = order.table_level - 1 - cell.level;
    uint32_t const code = nbody_i_code(cell.x, cell.y) << 2;
    if (!nbody_i_is_divided(&sim, &cell)) return 0;
    if (above < 0)
        nbody_i_quarters(order.keys, cell.first, cell.first + cell.count,
                         nbody_i_shift_of(&sim, cell.level), begin);
#pragma unroll
    for (uint32_t q = 0; q < 5; q++)
        if (above >= 0) begin[q] = order.starts[(code + q) << 2 * above];
    return (begin[0] < begin[1]) + (begin[1] < begin[2]) + (begin[2] < begin[3]) +
           (begin[3] < begin[4]);
}

/* Exclusive prefix sum of v over the threads of a block of so many warps; *all: the total. */
template <size_t warps> __device__ int nbody_i_sum_before(int v, int (&shared)[warps], int *all)
{
    int const lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int sum = v, before = 0, total = 0;
    for (int step = 1; step < 32; step *= 2) {
        int const below = __shfl_up_sync(nbody_i_all_lanes, sum, step);
        if (lane >= step) sum += below;
    }
    __syncthreads();
    if (lane == 31) shared[warp] = sum;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < (int)warps; w++) {
        before += w < warp ? shared[w] : 0;
        total += shared[w];
    }
    *all = total;
    return before + sum - v;
}

/* Of a block. */
typedef int nbody_i_block_sums[nbody_i_block_threads / 32];

/* First half of a level: the adjacent cells, and the number of children in each range. */
__device__ __forceinline__ void nbody_i_count_children(const nbody &sim, const nbody_i_order &order,
                                                       int level, nbody_i_block_sums &shared,
                                                       nbody_i_facts *facts)
{
    nbody_i_block_range const range = nbody_i_block_range_of(sim.frame, level);
    int count = 0, all = 0;
    int32_t begin[5];
    for (int32_t c = range.first + (int32_t)threadIdx.x; c < range.end;
         c += nbody_i_block_threads) {
        if (sim.cell[c].beside_count == 0) nbody_i_find_beside(&sim, &sim.cell[c]);
        count += nbody_i_quarters_of(sim, order, sim.cell[c], begin);
    }
    (void)nbody_i_sum_before(count, shared, &all);
    if (threadIdx.x == 0) facts->sums[blockIdx.x] = all;
}

__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_count_children_kernel(__grid_constant__ const nbody_device device, nbody_i_order order,
                                  int level, nbody_i_facts *facts)
{
    __shared__ nbody_i_block_sums shared;
    nbody_i_count_children(device.sim, order, level, shared, facts);
}

/* Writes the children of one cell from `child` on. Where there is no room for 4, this cell and all
   after it stay leaves, and the children already written are the last: they end at `end`. */
__device__ void nbody_i_write_children(const nbody &sim, int32_t at, int32_t child, int32_t room,
                                       const int32_t begin[5], int count, int32_t *end,
                                       nbody_i_facts *facts)
{
    nbody_cell *cell = &sim.cell[at];
    if (count == 0) return;
    nbody_cell const parent = *cell;
    if (child > room - 4) {
        atomicMax(&facts->undivided, 1);
        return;
    }
    cell->child = child;
    cell->children = (uint8_t)count;
    int quarters = 0;
#pragma unroll
    for (int q = 0; q < 4; q++) {
        if (begin[q] == begin[q + 1]) continue;
        sim.cell[child++] = nbody_i_child(&parent, at, q, begin[q], begin[q + 1]);
        quarters |= 1 << q;
    }
    cell->quarters = (uint8_t)quarters;
    if (end) atomicMax(end, child);
}

/* Sums the counts of all ranges before this block's, and of all. */
__device__ void nbody_i_sum_ranges(const nbody_i_facts *facts, nbody_i_block_sums &shared,
                                   int *before, int *all)
{
    int ahead = 0, any = 0;
    for (int b = (int)threadIdx.x; b < (int)gridDim.x; b += nbody_i_block_threads) {
        ahead += b < (int)blockIdx.x ? facts->sums[b] : 0;
        any += facts->sums[b];
    }
    (void)nbody_i_sum_before(ahead, shared, before);
    (void)nbody_i_sum_before(any, shared, all);
}

/* Second half of a level: its children. level_first[level + 2] is 0 before. */
__device__ __forceinline__ void nbody_i_divide(const nbody &sim, const nbody_i_order &order,
                                               int level, int32_t room, nbody_i_block_sums &shared,
                                               nbody_i_facts *facts)
{
    nbody_i_block_range const range = nbody_i_block_range_of(sim.frame, level);
    int32_t const next = sim.frame->level_first[level + 1];
    int before = 0, all = 0, turn = 0;
    nbody_i_sum_ranges(facts, shared, &before, &all);
    bool const fits = next + all <= room - 3;
    int32_t *const end = &sim.frame->level_first[level + 2];
    int32_t child = next + before;
    for (int32_t c = range.first; c < range.end; c += nbody_i_block_threads) {
        int32_t const at = c + (int32_t)threadIdx.x;
        int32_t begin[5];
        int const count =
            at < range.end ? nbody_i_quarters_of(sim, order, sim.cell[at], begin) : 0;
        int const mine = nbody_i_sum_before(count, shared, &turn);
        if (at < range.end)
            nbody_i_write_children(sim, at, child + mine, room, begin, count, fits ? nullptr : end,
                                   facts);
        child += turn;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) atomicMax(end, fits ? next + all : next);
}

__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_divide_kernel(__grid_constant__ const nbody_device device, nbody_i_order order,
                          int level, int32_t room, nbody_i_facts *facts)
{
    __shared__ nbody_i_block_sums shared;
    nbody_i_divide(device.sim, order, level, room, shared, facts);
}

/* ----------------------------------------------------------------------------------------------
   >>complete: NBODY_FAST, the cells of all levels that `starts` knows, at once

   The candidates are the cells of the complete quadtree of these levels. A candidate exists if it
   has bodies and its parent is divided, which `starts` says. One prefix sum numbers those that
   exist; each finds its own parent, children and adjacent cells.

       level 0   0            candidate = first of its level + Morton number
       level 1   1 2 3 4      exists     1  1 0 1 1  0 1 1 0 ..
       level 2   5 6 7 8 ..   before     0  1 2 2 3  4 4 5 6 ..   its index, if it exists
   ---------------------------------------------------------------------------------------------- */

/* The bodies of cell `code` of a level; 0: none, or there is no such cell. */
__device__ __forceinline__ int32_t nbody_i_count_at(const nbody_i_order &order, int level,
                                                    uint32_t code)
{
    int const below = 2 * (order.table_level - level);
    return order.starts[(code + 1) << below] - order.starts[code << below];
}

/* Is the cell in which cell `code` of a level lies divided? */
__device__ __forceinline__ bool nbody_i_is_split_above(const nbody &sim, const nbody_i_order &order,
                                                       int level, uint32_t code)
{
    nbody_cell parent;
    if (level == 0) return true;
    parent.level = (uint8_t)(level - 1);
    parent.count = nbody_i_count_at(order, level - 1, code >> 2);
    return nbody_i_divides(&sim, &parent);
}

struct nbody_i_candidate { int level; uint32_t code; };

__device__ __forceinline__ nbody_i_candidate nbody_i_candidate_of(uint32_t number)
{
    int const level = (31 - __clz((int)(3 * number + 1))) / 2;
    return {level, number - (uint32_t)nbody_i_first_candidate(level)};
}

__device__ __forceinline__ bool nbody_i_candidate_exists(const nbody &sim,
                                                         const nbody_i_order &order,
                                                         const nbody_i_candidate &candidate)
{
    return nbody_i_count_at(order, candidate.level, candidate.code) > 0 &&
           nbody_i_is_split_above(sim, order, candidate.level, candidate.code);
}

/* Every second bit of a Morton number: a column, or, of code >> 1, a row. */
__device__ __forceinline__ int32_t nbody_i_gathered(uint32_t code)
{
    code &= 0x55555555u;
    code = (code | code >> 1) & 0x33333333u;
    code = (code | code >> 2) & 0x0F0F0F0Fu;
    code = (code | code >> 4) & 0x00FF00FFu;
    return (int32_t)((code | code >> 8) & 0xFFFFu);
}

/* Numbers the cells that exist among the candidates of this block's range; *all: their number. */
__device__ void nbody_i_number_candidates(const nbody &sim, const nbody_i_order &order,
                                     nbody_i_block_sums &shared, nbody_i_facts *facts, int *all)
{
    uint32_t const candidates = (uint32_t)nbody_i_first_candidate(order.table_level + 1),
                   each = (candidates + gridDim.x - 1) / gridDim.x, from = blockIdx.x * each,
                   last = from + each < candidates ? from + each : candidates;
    int count = 0, turn = 0, before = 0;
    for (uint32_t s = from + threadIdx.x; s < last; s += nbody_i_block_threads)
        count += nbody_i_candidate_exists(sim, order, nbody_i_candidate_of(s));
    (void)nbody_i_sum_before(count, shared, &turn);
    if (threadIdx.x == 0) facts->sums[blockIdx.x] = turn;
    nbody_i_wait_for_all(&facts->arrived[NBODY_I_CELLS_WAIT]);
    nbody_i_sum_ranges(facts, shared, &before, all);
    for (uint32_t first = from; first < last; first += nbody_i_block_threads) {
        uint32_t const s = first + threadIdx.x;
        bool const exists =
            s < last && nbody_i_candidate_exists(sim, order, nbody_i_candidate_of(s));
        int const mine = nbody_i_sum_before(exists, shared, &turn);
        if (s < last) order.before[s] = before + mine;
        before += turn;
    }
    nbody_i_wait_for_all(&facts->arrived[NBODY_I_CELLS_WAIT]);
}

/* The cell at a place of a level: of this level, or the leaf there. -1: none. */
__device__ __forceinline__ int32_t nbody_i_cell_at(const nbody &sim, const nbody_i_order &order,
                                                   int level, uint32_t code)
{
    for (; !nbody_i_is_split_above(sim, order, level, code); level--) code >>= 2;
    return nbody_i_count_at(order, level, code) > 0
               ? order.before[(uint32_t)nbody_i_first_candidate(level) + code]
               : -1;
}

/* As nbody_i_find_beside: by Morton number, which is the order of what is found there too. */
__device__ __forceinline__ void nbody_i_look_beside(const nbody &sim, const nbody_i_order &order,
                                                    nbody_cell *cell)
{
    uint32_t const none = 0xFFFFFFFFu, side = 1u << cell->level;
    uint32_t code[9];
    int32_t at[9];
    int found = 0;
#pragma unroll
    for (int k = 0; k < 9; k++) {
        int32_t const x = cell->x + k % 3 - 1, y = cell->y + k / 3 - 1;
        code[k] = (uint32_t)x < side && (uint32_t)y < side ? nbody_i_code(x, y) : none;
#pragma unroll
        for (int other = k; other > 0; other--) {
            uint32_t const low = code[other - 1], high = code[other];
            code[other - 1] = low < high ? low : high;
            code[other] = low < high ? high : low;
        }
    }
#pragma unroll
    for (int k = 0; k < 9; k++)
        at[k] = code[k] == none ? -1 : nbody_i_cell_at(sim, order, cell->level, code[k]);
#pragma unroll
    for (int k = 0; k < 9; k++) {
        /* a larger leaf is at several places in a row */
        bool const again = k > 0 && at[k] == at[k - 1];
        if (at[k] >= 0 && !again) cell->beside[found++] = at[k];
    }
    cell->beside_count = (uint8_t)found;
}

/* The cell of a candidate. The children of those of the last of these levels are not yet known. */
__device__ void nbody_i_make_cell(const nbody &sim, const nbody_i_order &order,
                                  const nbody_i_candidate &candidate)
{
    int const level = candidate.level, below = 2 * (order.table_level - level);
    uint32_t const first = (uint32_t)nbody_i_first_candidate(level);
    int32_t const at = order.before[first + candidate.code];
    nbody_cell parent, cell = sim.cell[0]; /* the root is made already */
    int32_t begin[5];
    if (level > 0) {
        int32_t const above = order.before[(uint32_t)nbody_i_first_candidate(level - 1) +
                                           (candidate.code >> 2)];
        parent.level = (uint8_t)(level - 1);
        parent.x = nbody_i_gathered(candidate.code >> 2);
        parent.y = nbody_i_gathered(candidate.code >> 3);
        cell = nbody_i_child(&parent, above, (int)(candidate.code & 3),
                             order.starts[candidate.code << below],
                             order.starts[(candidate.code + 1) << below]);
        nbody_i_look_beside(sim, order, &cell);
    }
    if (below > 0) cell.children = (uint8_t)nbody_i_quarters_of(sim, order, cell, begin);
    if (cell.children > 0) {
#pragma unroll
        for (int q = 0; q < 4; q++)
            cell.quarters = (uint8_t)(cell.quarters | (begin[q] < begin[q + 1]) << q);
        uint32_t const child = 4 * candidate.code + (uint32_t)(__ffs((int)cell.quarters) - 1);
        cell.child = order.before[(uint32_t)nbody_i_first_candidate(level + 1) + child];
    }
    sim.cell[at] = cell;
}

/* Makes the cells that exist. False: there is no room for them, and only the root. */
__device__ bool nbody_i_make_existing(const nbody &sim, const nbody_i_order &order, int32_t room,
                                   nbody_i_block_sums &shared, nbody_i_facts *facts)
{
    int const levels = order.table_level + 1;
    uint32_t const candidates = (uint32_t)nbody_i_first_candidate(levels);
    int all = 0;
    nbody_i_number_candidates(sim, order, shared, facts, &all);
    if (all > room - 3) return false;
    for (uint32_t s = (uint32_t)nbody_i_thread(); s < candidates; s += (uint32_t)nbody_i_threads())
        if (nbody_i_candidate_exists(sim, order, nbody_i_candidate_of(s)))
            nbody_i_make_cell(sim, order, nbody_i_candidate_of(s));
    if (nbody_i_thread() == 0) {
        for (int level = 0; level < levels; level++)
            sim.frame->level_first[level] = order.before[nbody_i_first_candidate(level)];
        sim.frame->level_first[levels] = all;
    }
    nbody_i_wait_for_all(&facts->arrived[NBODY_I_CELLS_WAIT]);
    return true;
}

/* Those levels, then one by one. */
__global__ void __launch_bounds__(nbody_i_block_threads, nbody_i_blocks_per_sm)
    nbody_i_cells_cooperative_kernel(__grid_constant__ const nbody_device device, nbody_i_order
                                     order, int32_t room, nbody_i_facts *facts)
{
    const nbody &sim = device.sim;
    __shared__ nbody_i_block_sums shared;
    int32_t *const first = sim.frame->level_first;
    unsigned *const arrived = &facts->arrived[NBODY_I_CELLS_WAIT];
    bool const made = order.table_level > 0 &&
                      nbody_i_make_existing(sim, order, room, shared, facts);
    int level = made ? order.table_level : 0;
    if (level == sim.desc.levels - 1) return;
    for (; level < sim.desc.levels && first[level] < first[level + 1]; level++) {
        nbody_i_count_children(sim, order, level, shared, facts);
        if (level == sim.desc.levels - 1) return; /* it only needs its adjacent cells */
        nbody_i_wait_for_all(arrived);
        nbody_i_divide(sim, order, level, room, shared, facts);
        nbody_i_wait_for_all(arrived);
    }
    if (nbody_i_thread() > 0) return;
    for (int next = level + 2; next <= sim.desc.levels; next++) first[next] = first[level];
}

/* Adds the numbers of all lanes to *total; each lane gets what was there before its own. */
__device__ int32_t nbody_i_take(int32_t *total, int32_t number)
{
    int const lane = (int)threadIdx.x % 32;
    int32_t sum = number, before = 0;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        int32_t const below = __shfl_up_sync(nbody_i_all_lanes, sum, step);
        if (lane >= step) sum += below;
    }
    if (lane == 31) before = atomicAdd(total, sum);
    return __shfl_sync(nbody_i_all_lanes, before, 31) + sum - number;
}

/* Cuts the bodies of a cell into pieces of `size`; count 0: nothing. All lanes must call it. */
__device__ void nbody_i_cut(int32_t at, int32_t first, int32_t count, int32_t size,
                            nbody_i_chunk *chunks, int32_t *total)
{
    int32_t const pieces = (count + size - 1) / size, to = nbody_i_take(total, pieces);
    for (int32_t k = 0; k < pieces; k++) {
        int32_t const left = count - k * size;
        chunks[to + k] = {at, first + k * size, left < size ? left : size};
    }
}

/* Is a cell a group? >>groups */
__device__ bool nbody_i_is_group(const nbody &sim, const nbody_cell &cell)
{
    if (cell.level < 2 || (cell.child >= 0 && cell.count > nbody_i_group)) return false;
    const nbody_cell &parent = sim.cell[cell.parent];
    return parent.level < 2 || parent.count > nbody_i_group;
}

/* A leaf that may be a crowd: if it is one, marks it, and sums its masses. All lanes must call
   it. */
__device__ void nbody_i_find_crowd(const nbody &sim, int32_t at, nbody_i_facts *facts)
{
    nbody_cell &leaf = sim.cell[at];
    int const lane = (int)threadIdx.x % 32;
    double mass = 0;
    for (int32_t first = 0; first < leaf.count; first += 256) { /* 8 a lane: loads overlap */
        bool apart = false;
#pragma unroll
        for (int32_t k = first + lane; k < first + 256; k += 32)
            apart |= k < leaf.count && nbody_i_is_apart(&sim, &leaf, k);
        if (__any_sync(nbody_i_all_lanes, apart)) return;
    }
    double const mine = nbody_i_crowd_part(&sim, &leaf, lane);
#pragma unroll
    for (int part = 0; part < NBODY_I_CROWD_PARTS; part++)
        mass += __shfl_sync(nbody_i_all_lanes, mine, part);
    if (lane > 0) return;
    leaf.quarters = NBODY_I_CROWD;
    if (nbody_i_lighter(&sim) > sim.frame->mass) atomicMax(&facts->crowds, 1);
    nbody_i_split_mass(mass, sim.acts + leaf.first);
}

/* Finds the crowds among 32 cells from `from` on. All lanes must call it. Each lane first looks at
   the last body of its cell: there most cells turn out to be none. */
__device__ __forceinline__ void nbody_i_find_crowds(const nbody &sim, int32_t from, int32_t cells,
                                                    nbody_i_facts *facts)
{
    int32_t const c = from + (int32_t)threadIdx.x % 32;
    unsigned left = __ballot_sync(nbody_i_all_lanes,
                                  c < cells && nbody_i_is_crowded(&sim, &sim.cell[c]) &&
                                      !nbody_i_is_apart(&sim, &sim.cell[c], sim.cell[c].count - 1));
    for (; left; left &= left - 1) nbody_i_find_crowd(sim, from + __ffs((int)left) - 1, facts);
}

/* Where there are crowds: as nbody_i_finish_cells. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_lighten_kernel(__grid_constant__ const nbody_device device, const nbody_i_facts *facts)
{
    const nbody &sim = device.sim;
    double const by = nbody_i_unit((double)sim.n);
    if (facts->crowds == 0) return;
    for (int64_t k = nbody_i_thread(); k < sim.n; k += nbody_i_threads())
        nbody_i_lighten(&sim, 1 / by, (int32_t)k);
    if (nbody_i_thread() > 0) return;
    sim.frame->mass *= by;
    sim.frame->light = 1;
}

/* The last kernel: the chunks of the leaves, and the totals. The order of chunks is arbitrary.
   NBODY_FAST: of `size`, and the pieces of groups, if there are any. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_chunks_kernel(__grid_constant__ const nbody_device device, int32_t size,
                          nbody_i_chunk *chunks, nbody_i_chunk *groups, nbody_i_facts *facts)
{
    const nbody &sim = device.sim;
    nbody_frame *frame = sim.frame;
    bool const fast = sim.desc.stage == NBODY_FAST;
    int32_t const cells = frame->level_first[sim.desc.levels];
    for (int64_t from = nbody_i_thread() / 32 * 32; from < cells; from += nbody_i_threads()) {
        int32_t const c = (int32_t)from + (int32_t)threadIdx.x % 32;
        nbody_i_find_crowds(sim, (int32_t)from, cells, facts);
        const nbody_cell &cell = sim.cell[c < cells ? c : 0];
        int32_t const count = c < cells && cell.child < 0 ? cell.count : 0;
        nbody_i_cut(c, cell.first, count, size, chunks, fast ? &facts->pieces[0] : &frame->chunks);
        if (fast) (void)nbody_i_take(&frame->chunks, (count + NBODY_CHUNK - 1) / NBODY_CHUNK);
        if (groups)
            nbody_i_cut(c, cell.first, c < cells && nbody_i_is_group(sim, cell) ? cell.count : 0,
                        nbody_i_piece, groups, &facts->pieces[1]);
    }
    if (nbody_i_thread() > 0) return;
    int levels = 1;
    while (levels < sim.desc.levels && frame->level_first[levels + 1] > frame->level_first[levels])
        levels++;
    for (int level = sim.desc.levels + 1; level <= NBODY_MAX_LEVELS; level++)
        frame->level_first[level] = cells;
    frame->levels = levels;
    frame->cells = frame->cells_needed = cells;
}

/* The pieces of groups, after the chunks. */
nbody_i_chunk *nbody_i_groups_of(nbody_cuda *gpu)
{
    const nbody *sim = &gpu->device.sim;
    int32_t const cells = nbody_i_cell_room(&sim->desc, sim->n);
    return nbody_i_scratch<nbody_i_chunk>(gpu, NBODY_I_CHUNKS) + nbody_i_chunk_room(sim->n, cells);
}

nbody_result nbody_i_cuda_chunks(nbody_cuda *gpu, cudaStream_t stream)
{
    const nbody *sim = &gpu->device.sim;
    int32_t const room = nbody_i_cell_room(&sim->desc, sim->n),
                  size = sim->desc.stage == NBODY_FAST ? nbody_i_fast_chunk(&sim->desc)
                                                       : NBODY_CHUNK;
    nbody_i_chunk *groups = nbody_i_has_groups(&sim->desc) ? nbody_i_groups_of(gpu) : nullptr;
    nbody_i_facts *facts = nbody_i_scratch<nbody_i_facts>(gpu, NBODY_I_FACTS);
    nbody_result const result = nbody_i_launch(
        gpu, stream, nbody_i_at_most(room), nbody_i_block_threads, nbody_i_chunks_kernel,
        gpu->device, size, nbody_i_scratch<nbody_i_chunk>(gpu, NBODY_I_CHUNKS), groups, facts);
    if (result != NBODY_OK) return result;
    return nbody_i_launch(gpu, stream, nbody_i_at_most(sim->n), nbody_i_block_threads,
                          nbody_i_lighten_kernel, gpu->device, facts);
}

/* Makes all cells. Where the number of cells of a level is unknown, the launch covers its
   maximum. */
nbody_result nbody_i_cuda_cells(nbody_cuda *gpu, const nbody_i_order &order, cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    nbody_i_facts *facts = nbody_i_scratch<nbody_i_facts>(gpu, NBODY_I_FACTS);
    int32_t const room = nbody_i_cell_room(&sim->desc, sim->n);
    int const divided = sim->desc.levels - 1;
    bool const cooperative = sim->desc.stage == NBODY_FAST && sim->desc.levels <= NBODY_KEY_LEVELS;
    nbody_result result = NBODY_OK;
    if (cooperative)
        result = nbody_i_launch_cooperative(
            gpu, stream, nbody_i_cells_cooperative_kernel, gpu->device, order, room, facts);
    for (int level = cooperative ? divided + 1 : 0; level <= divided && result == NBODY_OK;
         level++) {
        int64_t const threads = nbody_i_at_most(nbody_i_level_bound(&sim->desc, sim->n, level));
        if (sim->desc.levels > NBODY_KEY_LEVELS && (level == 16 || level == 32))
            result = nbody_i_launch(gpu, stream, sim->n, nbody_i_block_threads,
                                    nbody_i_next_keys_kernel, gpu->device, level / 16, order.keys);
        if (result != NBODY_OK) return result;
        result = nbody_i_launch(gpu, stream, threads, nbody_i_block_threads,
                                nbody_i_count_children_kernel, gpu->device, order, level, facts);
        /* the last level only needs its adjacent cells */
        if (result != NBODY_OK || level == divided) break;
        result = nbody_i_launch(gpu, stream, threads, nbody_i_block_threads, nbody_i_divide_kernel,
                                gpu->device, order, level, room, facts);
    }
    if (result != NBODY_OK) return result;
    return nbody_i_cuda_chunks(gpu, stream);
}

/* ----------------------------------------------------------------------------------------------
   >>up-cuda: P2M and M2M, the sources of a level. NBODY_MANY_THREADS and NBODY_SHARED_MEMORY; with
   MASS_CENTRES NBODY_FAST too.
   ---------------------------------------------------------------------------------------------- */

/* A tile of sources in shared memory (Kalms section 6.2.3). */
struct nbody_i_tile {
    nbody_i_source source[NBODY_CHUNK];
    int32_t subcell[NBODY_CHUNK];
};

/* Adds the sources of one child to this thread's sub-cell, 64 at a time through shared memory. */
__device__ void nbody_i_accumulate_tiles(const nbody &sim, const nbody_i_subgrid &grid,
                                         const nbody_i_run &run, nbody_i_tile &tile,
                                         nbody_i_moments &moments)
{
    int const t = (int)threadIdx.x;
    for (int32_t first = 0; first < run.count; first += NBODY_CHUNK) {
        int32_t const count = run.count - first < NBODY_CHUNK ? run.count - first : NBODY_CHUNK;
        __syncthreads();
        if (t < count) {
            tile.source[t] = nbody_i_source_of(&sim, &run, first + t);
            tile.subcell[t] = nbody_i_subcell_at(&grid, tile.source[t].x, tile.source[t].y);
        }
        __syncthreads();
        for (int32_t s = 0; s < count; s++)
            if (tile.subcell[s] == t)
                nbody_i_accumulate(&moments, (double)tile.source[s].x - grid.x,
                                   (double)tile.source[s].y - grid.y, &tile.source[s]);
    }
}

/* Stores a virtual particle for each sub-cell with mass, in their order, by an exclusive prefix
   sum. */
__device__ void nbody_i_store_centres(const nbody &sim, int32_t at, const nbody_i_subgrid &grid,
                                      const nbody_i_moments &moments,
                                      int (&shared)[NBODY_CHUNK / 32])
{
    bool const any = (int)threadIdx.x < sim.per_cell && moments.m > 0;
    int all = 0;
    int const before = nbody_i_sum_before(any ? 1 : 0, shared, &all);
    if (any)
        nbody_i_store_centre(&sim, &moments, grid.x, grid.y,
                             (size_t)at * (size_t)sim.per_cell + (size_t)before);
    if (threadIdx.x == 0) sim.made[at] = all;
}

/* MASS_CENTRES, one level: a block of 64 threads for each cell, a thread for each sub-cell. */
template <bool Shared>
__device__ __forceinline__ void nbody_i_make_centres(const nbody &sim, int level,
                                                     nbody_i_tile &tile,
                                                     int (&sums)[NBODY_CHUNK / 32])
{
    int32_t const end = sim.frame->level_first[level + 1];
    for (int32_t at = sim.frame->level_first[level] + (int32_t)blockIdx.x; at < end;
         at += (int32_t)gridDim.x) {
        const nbody_cell *cell = &sim.cell[at];
        nbody_i_subgrid const grid = nbody_i_subgrid_of(&sim, cell);
        nbody_i_moments moments = {0, 0, 0, 0, 0, 0};
        if (!Shared && (int)threadIdx.x < sim.per_cell)
            moments = nbody_i_subcell_moments(&sim, cell, (int)threadIdx.x);
        for (int c = 0; Shared && c < cell->children; c++) {
            nbody_i_run const run = nbody_i_given_by(&sim, cell->child + c);
            nbody_i_accumulate_tiles(sim, grid, run, tile, moments);
        }
        nbody_i_store_centres(sim, at, grid, moments, sums);
    }
}

template <bool Shared> __global__ void __launch_bounds__(NBODY_CHUNK)
    nbody_i_centres_kernel(__grid_constant__ const nbody_device device, int level)
{
    __shared__ nbody_i_tile tile;
    __shared__ int sums[NBODY_CHUNK / 32];
    nbody_i_make_centres<Shared>(device.sim, level, tile, sums);
}

/* NBODY_FAST: of the levels from `level` on, which evenly spread bodies do not have. */
__global__ void __launch_bounds__(NBODY_CHUNK, nbody_i_blocks_per_sm *nbody_i_block_threads /
                                                   NBODY_CHUNK)
    nbody_i_deep_centres_kernel(__grid_constant__ const nbody_device device, int level,
                                nbody_i_facts *facts)
{
    const nbody &sim = device.sim;
    __shared__ nbody_i_tile tile;
    __shared__ int sums[NBODY_CHUNK / 32];
    for (int deep = sim.frame->levels - 1; deep >= level; deep--) {
        nbody_i_make_centres<true>(sim, deep, tile, sums);
        if (deep > level) nbody_i_wait_for_all(&facts->arrived[NBODY_I_M2M_WAIT]);
    }
}

/* CHEBYSHEV: a thread for each point. */
__device__ __forceinline__ void nbody_i_make_point(const nbody &sim, int32_t at, int32_t point)
{
    int const side = sim.rule.side;
    sim.vm[(size_t)at * (size_t)sim.per_cell + (size_t)point] =
        nbody_i_point_mass(&sim, &sim.cell[at], point % side, point / side);
}

/* NBODY_MANY_THREADS, and NBODY_SHARED_MEMORY without the leaves. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_points_kernel(__grid_constant__ const nbody_device device, int level, bool leaves)
{
    const nbody &sim = device.sim;
    int32_t const first = sim.frame->level_first[level];
    int64_t const points = (int64_t)(sim.frame->level_first[level + 1] - first) * sim.per_cell;
    for (int64_t k = nbody_i_thread(); k < points; k += nbody_i_threads()) {
        int32_t const at = first + (int32_t)(k / sim.per_cell);
        if (leaves || sim.cell[at].child >= 0)
            nbody_i_make_point(sim, at, (int32_t)(k % sim.per_cell));
    }
}

/* P2M, CHEBYSHEV, NBODY_SHARED_MEMORY: the weights of 64 bodies at a time, computed once for all
   points. */
struct nbody_i_weights {
    nbody_real x[NBODY_CHUNK][NBODY_MAX_ORDER], y[NBODY_CHUNK][NBODY_MAX_ORDER];
    nbody_real m[NBODY_CHUNK];
};

__device__ void nbody_i_weigh_bodies(const nbody &sim, const nbody_cell &cell, int32_t first,
                                     int32_t count, nbody_i_weights &weights)
{
    int const t = (int)threadIdx.x;
    __syncthreads();
    if (t < count) {
        int32_t const b = first + t;
        nbody_i_stencil const sx = nbody_i_stencil_at(
            &sim.rule, nbody_i_within_cell(&sim, &cell, 0, sim.x[b]));
        nbody_i_stencil const sy = nbody_i_stencil_at(
            &sim.rule, nbody_i_within_cell(&sim, &cell, 1, sim.y[b]));
        for (int i = 0; i < sim.rule.side; i++) {
            weights.x[t][i] = sx.weight[i];
            weights.y[t][i] = sy.weight[i];
        }
        weights.m[t] = sim.acts[b];
    }
    __syncthreads();
}

/* The masses at a leaf's points: thread t computes points t, t + 64, t + 128. */
__device__ void nbody_i_leaf_points(const nbody &sim, int32_t at, nbody_i_weights &weights)
{
    const nbody_cell &cell = sim.cell[at];
    int const side = sim.rule.side;
    double sum[(NBODY_MAX_ORDER * NBODY_MAX_ORDER + NBODY_CHUNK - 1) / NBODY_CHUNK] = {};
    int32_t const all = nbody_i_acting(&cell);
    for (int32_t k = 0; k < all; k += NBODY_CHUNK) {
        int32_t const count = all - k < NBODY_CHUNK ? all - k : NBODY_CHUNK;
        nbody_i_weigh_bodies(sim, cell, cell.first + k, count, weights);
        for (int turn = 0, p = (int)threadIdx.x; p < sim.per_cell; turn++, p += NBODY_CHUNK)
            for (int b = 0; b < count; b++)
                sum[turn] += nbody_i_product(
                    (double)weights.m[b],
                    (double)nbody_i_times(weights.x[b][p % side], weights.y[b][p / side]));
    }
    for (int turn = 0, p = (int)threadIdx.x; p < sim.per_cell; turn++, p += NBODY_CHUNK)
        sim.vm[(size_t)at * (size_t)sim.per_cell + (size_t)p] = (nbody_real)sum[turn];
}

__global__ void __launch_bounds__(NBODY_CHUNK)
    nbody_i_leaves_kernel(__grid_constant__ const nbody_device device, int level)
{
    const nbody &sim = device.sim;
    __shared__ nbody_i_weights weights;
    int32_t const end = sim.frame->level_first[level + 1];
    for (int32_t at = sim.frame->level_first[level] + (int32_t)blockIdx.x; at < end;
         at += (int32_t)gridDim.x)
        if (sim.cell[at].child < 0) nbody_i_leaf_points(sim, at, weights);
}

/* ----------------------------------------------------------------------------------------------
   >>table-cuda: the M2L table
   ---------------------------------------------------------------------------------------------- */

/* A thread for each entry of all tables. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_table_kernel(__grid_constant__ const nbody_device device, nbody_i_law law, int levels)
{
    const nbody &sim = device.sim;
    law = nbody_i_law_of(&sim, law.potential);
    int64_t const row = nbody_i_row(&sim), offsets = sim.per_cell * row,
                  entries = NBODY_I_OFFSETS * offsets;
    for (int64_t k = nbody_i_thread(); k < entries * levels; k += nbody_i_threads()) {
        int64_t const e = k % entries;
        if (k / entries >= sim.frame->levels) break; /* no cells there */
        nbody_i_fill_entry(&sim, &law, (int)(k / entries), (int)(e / offsets),
                           (int32_t)(e % offsets / row), (int32_t)(e % row));
    }
}

/* A thread for the series of each offset and coefficient, and for each point. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_series_table_kernel(__grid_constant__ const nbody_device device)
{
    const nbody &sim = device.sim;
    int const powers = sim.series / 2 + 1, pairs = NBODY_I_OFFSETS * powers;
    for (int64_t k = nbody_i_thread(); k < pairs + sim.per_cell; k += nbody_i_threads()) {
        if (k >= pairs) nbody_i_fill_powers(&sim, (int32_t)k - pairs);
        else if (nbody_i_offset_is_far((int)k / powers))
            nbody_i_fill_series(&sim, (int)k / powers, (int)k % powers);
    }
}

/* Filled in every evaluation, in a few microseconds: a table kept from an earlier evaluation could
   be another law's when a graph is replayed. */
nbody_result nbody_i_cuda_table(nbody_cuda *gpu, bool potential, cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    nbody_i_law const law = nbody_i_law_in(&sim->desc, potential);
    int const levels = nbody_i_cuda_tables(&sim->desc, potential);
    if (!sim->table) return NBODY_OK;
    if (sim->series)
        return nbody_i_launch(
            gpu, stream, NBODY_I_OFFSETS * (sim->series / 2 + 1) + sim->per_cell,
            nbody_i_block_threads, nbody_i_series_table_kernel, gpu->device);
    int64_t const entries = (int64_t)nbody_i_table_level(sim) / NBODY_I_PARTS * levels;
    sim->table_step = levels == 1 ? 0 : nbody_i_table_level(sim);
    return nbody_i_launch(gpu, stream, nbody_i_at_most(entries), nbody_i_block_threads,
                          nbody_i_table_kernel, gpu->device, law, levels);
}

/* ----------------------------------------------------------------------------------------------
   >>series-cuda: M2L by powers. All stages but NBODY_ONE_THREAD.
   ---------------------------------------------------------------------------------------------- */

/* A thread for each number of each cell's moments. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_moments_kernel(__grid_constant__ const nbody_device device)
{
    const nbody &sim = device.sim;
    int64_t const first = (int64_t)sim.frame->level_first[2] * sim.series,
                  end = (int64_t)sim.frame->cells * sim.series;
    for (int64_t k = first + nbody_i_thread(); k < end; k += nbody_i_threads())
        sim.moment[k] = nbody_i_moment(&sim, (int32_t)(k / sim.series), (int32_t)(k % sim.series));
}

/* A thread for each number of the series of each cell's far cells. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_locals_kernel(__grid_constant__ const nbody_device device)
{
    const nbody &sim = device.sim;
    int64_t const first =
                      (int64_t)sim.frame->level_first[nbody_i_first_level(&sim)] * sim.series,
                  end = (int64_t)sim.frame->cells * sim.series;
    for (int64_t k = first + nbody_i_thread(); k < end; k += nbody_i_threads()) {
        int32_t const at = (int32_t)(k / sim.series);
        nbody_i_around around;
        nbody_i_find_around(&sim, at, &around);
        sim.local[k] = nbody_i_local(&sim, sim.cell[at].level, &around, (int32_t)(k % sim.series));
    }
}

nbody_result nbody_i_cuda_series(nbody_cuda *gpu, cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    int64_t const numbers = (int64_t)nbody_i_cell_room(&sim->desc, sim->n) * sim->series;
    nbody_result const result =
        nbody_i_launch(gpu, stream, nbody_i_at_most(numbers), nbody_i_block_threads,
                       nbody_i_moments_kernel, gpu->device);
    if (result != NBODY_OK) return result;
    return nbody_i_launch(gpu, stream, nbody_i_at_most(numbers), nbody_i_block_threads,
                          nbody_i_locals_kernel, gpu->device);
}

/* ----------------------------------------------------------------------------------------------
   >>down-cuda: L2L and M2L, the nodes of a level. NBODY_MANY_THREADS and NBODY_SHARED_MEMORY.
   ---------------------------------------------------------------------------------------------- */

/* NBODY_MANY_THREADS: a thread for each node. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_nodes_kernel(__grid_constant__ const nbody_device device, int potential, int level)
{
    const nbody &sim = device.sim;
    nbody_i_law const law = nbody_i_law_of(&sim, potential);
    int32_t const first = sim.frame->level_first[level];
    int64_t const nodes = (int64_t)(sim.frame->level_first[level + 1] - first) * sim.nodes;
    for (int64_t k = nbody_i_thread(); k < nodes; k += nbody_i_threads()) {
        int32_t const at = first + (int32_t)(k / sim.nodes), a = (int32_t)(k % sim.nodes);
        nbody_i_target const t = nbody_i_node_force(&sim, &law, at, a);
        nbody_i_store_node(&sim, &law, at, a, &t);
    }
}

/* NBODY_SHARED_MEMORY: a run on the targets of a block, 64 sources at a time. All threads of the
   block must call it. */
__device__ void nbody_i_add_tiles(const nbody &sim, const nbody_i_law &law, const nbody_i_run &run,
                                  nbody_i_tile &tile, bool has_target, nbody_i_target *target)
{
    nbody_real const x = target->x, y = target->y;
    nbody_i_move_target(&run, target);
    for (int32_t first = 0; first < run.count; first += NBODY_CHUNK) {
        int32_t const count = run.count - first < NBODY_CHUNK ? run.count - first : NBODY_CHUNK;
        __syncthreads();
        if ((int32_t)threadIdx.x < count)
            tile.source[threadIdx.x] = nbody_i_source_of(&sim, &run, first + (int32_t)threadIdx.x);
        __syncthreads();
        for (int32_t s = 0; s < count && has_target; s++)
            nbody_i_add(&law, &tile.source[s], run.xx != nullptr, target);
    }
    target->x = x;
    target->y = y;
}

/* M2L by the table, as in nbody_i_node_force; the masses of one cell at a time through shared
   memory. */
__device__ void nbody_i_add_table_tiles(const nbody &sim, const nbody_i_law &law, int level,
                                        const int32_t *around, nbody_real *mass, int32_t a,
                                        bool has_target, nbody_i_target *target)
{
    nbody_real scale[NBODY_I_PARTS];
    nbody_i_table_scale(&sim, &law, level, scale);
    for (int offset = 0; offset < NBODY_I_OFFSETS; offset++) {
        int32_t const from = around[offset];
        if (from < 0) continue;
        __syncthreads();
        for (int32_t b = (int32_t)threadIdx.x; b < sim.per_cell; b += NBODY_CHUNK)
            mass[b] = sim.vm[(size_t)from * (size_t)sim.per_cell + (size_t)b];
        __syncthreads();
        if (!has_target) continue;
        for (int p = 0; p < NBODY_I_PARTS - !law.potential; p++) {
            const nbody_real *row = nbody_i_table_rows(&sim, level, offset, p) + a;
            for (int32_t b = 0; b < sim.per_cell; b++)
                target->partial[p] += nbody_i_times(row[b * nbody_i_row(&sim)], mass[b]);
        }
        target->terms += sim.per_cell;
        if (target->terms >= NBODY_CHUNK) nbody_i_carry_table(target, scale);
    }
    if (has_target) nbody_i_carry_table(target, scale);
}

/* NBODY_SHARED_MEMORY: a block of 64 for 64 nodes of a cell. */
__global__ void __launch_bounds__(NBODY_CHUNK)
    nbody_i_nodes_shared_kernel(__grid_constant__ const nbody_device device, int potential,
                                int level)
{
    const nbody &sim = device.sim;
    nbody_i_law const law = nbody_i_law_of(&sim, potential);
    __shared__ nbody_i_tile tile;
    __shared__ nbody_real mass[NBODY_MAX_ORDER * NBODY_MAX_ORDER];
    __shared__ int32_t around[NBODY_I_OFFSETS];
    int const groups = (sim.nodes + NBODY_CHUNK - 1) / NBODY_CHUNK;
    int32_t const first = sim.frame->level_first[level];
    int64_t const pieces = (int64_t)(sim.frame->level_first[level + 1] - first) * groups;
    for (int64_t k = blockIdx.x; k < pieces; k += gridDim.x) {
        int32_t const at = first + (int32_t)(k / groups),
                      a = (int32_t)(k % groups) * NBODY_CHUNK + (int32_t)threadIdx.x;
        const nbody_cell *cell = &sim.cell[at];
        bool const has_node = a < sim.nodes;
        nbody_i_target t = nbody_i_node(&sim, at, has_node ? a : 0);
        nbody_far walk = nbody_far_of(&sim, at);
        if (has_node && cell->level > 2) {
            t.partial[NBODY_I_X] = nbody_i_l2l(&sim, cell, a, sim.fx);
            t.partial[NBODY_I_Y] = nbody_i_l2l(&sim, cell, a, sim.fy);
            if (law.potential) t.partial[NBODY_I_POTENTIAL] = nbody_i_l2l(&sim, cell, a, sim.fp);
            nbody_i_carry_target(&t);
        }
        __syncthreads();
        for (int o = (int)threadIdx.x; o < NBODY_I_OFFSETS; o += NBODY_CHUNK) around[o] = -1;
        __syncthreads();
        while (nbody_next_far(&walk)) {
            const nbody_cell *source = &sim.cell[walk.cell];
            if (nbody_i_by_table(&sim, source, cell)) {
                if (threadIdx.x == 0) around[nbody_i_offset(source, cell)] = walk.cell;
                continue;
            }
            nbody_i_run const run = nbody_i_run_on_nodes(&sim, walk.cell, cell);
            nbody_i_add_tiles(sim, law, run, tile, has_node, &t);
        }
        __syncthreads();
        nbody_i_carry_target(&t);
        if (sim.series) nbody_i_add_local(&sim, &law, at, has_node ? a : 0, &t);
        else if (sim.desc.sources == NBODY_CHEBYSHEV)
            nbody_i_add_table_tiles(sim, law, level, around, mass, a, has_node, &t);
        if (has_node) nbody_i_store_node(&sim, &law, at, a, &t);
    }
}

/* ----------------------------------------------------------------------------------------------
   >>bodies-cuda: L2P, M2P and P2P for chunks of up to 64 bodies of one leaf (Kalms section 5.4).
   Without a tree, chunk c begins at body 64 c. NBODY_MANY_THREADS and NBODY_SHARED_MEMORY.
   ---------------------------------------------------------------------------------------------- */

__device__ nbody_i_chunk nbody_i_chunk_at(const nbody &sim, const nbody_i_chunk *chunks, int32_t c)
{
    if (sim.cell) return chunks[c];
    int32_t const left = sim.n - c * NBODY_CHUNK;
    return {-1, c * NBODY_CHUNK, left < NBODY_CHUNK ? left : NBODY_CHUNK};
}

__device__ __forceinline__ int32_t nbody_i_chunks_of(const nbody &sim)
{
    return sim.cell ? sim.frame->chunks : (sim.n + NBODY_CHUNK - 1) / NBODY_CHUNK;
}

/* NBODY_MANY_THREADS: a thread for each body. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_bodies_kernel(__grid_constant__ const nbody_device device, const nbody_i_chunk *chunks,
                          nbody_i_outcome out)
{
    const nbody &sim = device.sim;
    nbody_i_law const law = nbody_i_law_of(&sim, out.potential != nullptr);
    int64_t const slots = (int64_t)nbody_i_chunks_of(sim) * NBODY_CHUNK;
    for (int64_t k = nbody_i_thread(); k < slots; k += nbody_i_threads()) {
        nbody_i_chunk const chunk = nbody_i_chunk_at(sim, chunks, (int32_t)(k / NBODY_CHUNK));
        int32_t const place = chunk.first + (int32_t)(k % NBODY_CHUNK);
        if (k % NBODY_CHUNK >= chunk.count) continue;
        nbody_i_target const t = nbody_i_body(&sim, &law, chunk.leaf, place);
        nbody_i_store(&sim, &out, sim.id[place], t.total, t.compensation);
    }
}

/* M2P, VIRTUAL_PARTICLES, through shared memory: as nbody_i_add_far. */
__device__ void nbody_i_add_far_tiles(const nbody &sim, const nbody_i_law &law, int32_t leaf,
                                      nbody_i_tile &tile, bool has_target, nbody_i_target *t)
{
    int const levels = sim.cell[leaf].level;
    for (int level = 2; level <= levels; level++) {
        int32_t cell = leaf;
        for (int up = levels; up > level; up--) cell = sim.cell[cell].parent;
        nbody_far walk = nbody_far_of(&sim, cell);
        while (nbody_next_far(&walk)) {
            nbody_i_run const run = nbody_i_run_of(&sim, walk.cell, level);
            nbody_i_add_tiles(sim, law, run, tile, has_target, t);
        }
    }
}

/* NBODY_SHARED_MEMORY: a block of 64 for each chunk. */
__global__ void __launch_bounds__(NBODY_CHUNK)
    nbody_i_bodies_shared_kernel(__grid_constant__ const nbody_device device,
                                 const nbody_i_chunk *chunks, nbody_i_outcome out)
{
    const nbody &sim = device.sim;
    nbody_i_law const law = nbody_i_law_of(&sim, out.potential != nullptr);
    __shared__ nbody_i_tile tile;
    int32_t const count = nbody_i_chunks_of(sim);
    for (int64_t c = blockIdx.x; c < count; c += gridDim.x) {
        nbody_i_chunk const chunk = nbody_i_chunk_at(sim, chunks, (int32_t)c);
        bool const has_body = (int32_t)threadIdx.x < chunk.count;
        int32_t const place = chunk.first + (has_body ? (int32_t)threadIdx.x : 0);
        nbody_i_target t = nbody_i_target_at(sim.x[place], sim.y[place], place);
        if (chunk.leaf < 0) {
            nbody_i_run const all = nbody_i_bodies(&sim, 0, sim.n);
            nbody_i_add_tiles(sim, law, all, tile, has_body, &t);
        } else {
            if (sim.desc.method == NBODY_VIRTUAL_PARTICLES)
                nbody_i_add_far_tiles(sim, law, chunk.leaf, tile, has_body, &t);
            else if (sim.cell[chunk.leaf].level >= 2)
                nbody_i_l2p(&sim, chunk.leaf, law.potential, &t);
            nbody_near walk = nbody_near_of(&sim, chunk.leaf);
            while (nbody_next_near(&walk)) {
                nbody_i_run run = nbody_i_near_run(&sim, &walk);
                if (nbody_i_in_crowd(&sim.cell[walk.cell], place)) continue;
                if (nbody_i_is_periodic(&sim)) nbody_i_shift_run(&sim, &walk, &run);
                nbody_i_add_tiles(sim, law, run, tile, has_body, &t);
            }
            t.partial[NBODY_I_POTENTIAL] +=
                nbody_i_crowd_potential(&sim, &law, &sim.cell[chunk.leaf], place);
        }
        nbody_i_carry_target(&t);
        if (has_body) nbody_i_store(&sim, &out, sim.id[place], t.total, t.compensation);
    }
}

/* ----------------------------------------------------------------------------------------------
   >>one-thread: NBODY_ONE_THREAD on the GPU, the loops of >>plain in nbody.h. Runs with desc.stage
   = NBODY_ONE_THREAD only; the reference of the other stages in tests.
   ---------------------------------------------------------------------------------------------- */

__global__ void nbody_i_cells_one_kernel(__grid_constant__ const nbody_device device,
                                         nbody_i_order order, int32_t room, nbody_i_facts *facts)
{
    const nbody &sim = device.sim;
    nbody_frame *frame = sim.frame;
    int32_t first = 0, end = 1, next = 1;
    for (int level = 0; level < sim.desc.levels; level++) {
        bool const new_keys = nbody_i_is_deep(&sim) && (level == 16 || level == 32);
        for (int32_t k = 0; k < sim.n && new_keys; k++)
            order.keys[k] = nbody_i_deep_key(sim.frame, sim.x[k], sim.y[k], level / 16);
        for (int32_t c = first; c < end; c++)
            if (level > 0) nbody_i_find_beside(&sim, &sim.cell[c]);
        for (int32_t c = first; c < end; c++) {
            int32_t begin[5];
            int const count = nbody_i_quarters_of(sim, order, sim.cell[c], begin);
            nbody_i_write_children(sim, c, next, room, begin, count, nullptr, facts);
            next += sim.cell[c].children;
        }
        first = end;
        end = next;
        if (level + 2 <= NBODY_MAX_LEVELS) frame->level_first[level + 2] = end;
    }
}

__device__ void nbody_i_make_centres_alone(const nbody &sim, int32_t at)
{
    const nbody_cell *cell = &sim.cell[at];
    nbody_i_subgrid const grid = nbody_i_subgrid_of(&sim, cell);
    sim.made[at] = 0;
    for (int subcell = 0; subcell < sim.per_cell && cell->child >= 0; subcell++) {
        nbody_i_moments const moments = nbody_i_subcell_moments(&sim, cell, subcell);
        if (moments.m > 0)
            nbody_i_store_centre(&sim, &moments, grid.x, grid.y,
                                 (size_t)at * (size_t)sim.per_cell + (size_t)sim.made[at]++);
    }
}

__global__ void nbody_i_sources_one_kernel(__grid_constant__ const nbody_device device)
{
    const nbody &sim = device.sim;
    for (int level = sim.frame->levels - 1; level >= 2; level--)
        for (int32_t at = sim.frame->level_first[level]; at < sim.frame->level_first[level + 1];
             at++) {
            if (sim.desc.sources == NBODY_MASS_CENTRES) nbody_i_make_centres_alone(sim, at);
            for (int32_t p = 0; p < sim.per_cell && sim.desc.sources == NBODY_CHEBYSHEV; p++)
                nbody_i_make_point(sim, at, p);
        }
}

__device__ void nbody_i_series_alone(const nbody &sim)
{
    size_t const count = (size_t)sim.series;
    int32_t const first = sim.frame->level_first[2];
    for (int32_t at = first; at < sim.frame->cells; at++)
        for (int32_t k = 0; k < sim.series; k++)
            sim.moment[(size_t)at * count + (size_t)k] = nbody_i_moment(&sim, at, k);
    for (int32_t at = sim.frame->level_first[nbody_i_first_level(&sim)]; at < sim.frame->cells;
         at++) {
        nbody_i_around around;
        nbody_i_find_around(&sim, at, &around);
        for (int32_t k = 0; k < sim.series; k++)
            sim.local[(size_t)at * count + (size_t)k] =
                nbody_i_local(&sim, sim.cell[at].level, &around, k);
    }
}

__global__ void nbody_i_nodes_one_kernel(__grid_constant__ const nbody_device device, int potential)
{
    const nbody &sim = device.sim;
    nbody_i_law const law = nbody_i_law_of(&sim, potential);
    int const first = nbody_i_first_level(&sim);
    if (sim.series) nbody_i_series_alone(sim);
    for (int32_t at = 0; at < sim.frame->cells; at++)
        for (int32_t a = 0; a < sim.nodes && sim.cell[at].level >= first; a++) {
            nbody_i_target const t = nbody_i_node_force(&sim, &law, at, a);
            nbody_i_store_node(&sim, &law, at, a, &t);
        }
}

__global__ void nbody_i_forces_one_kernel(__grid_constant__ const nbody_device device,
                                          nbody_i_outcome out)
{
    const nbody &sim = device.sim;
    nbody_i_law const law = nbody_i_law_of(&sim, out.potential != nullptr);
    int32_t const cells = sim.cell ? sim.frame->cells : 0;
    for (int32_t at = 0; at < cells; at++)
        for (int32_t k = 0; k < sim.cell[at].count && sim.cell[at].child < 0; k++) {
            nbody_i_target const t = nbody_i_body(&sim, &law, at, sim.cell[at].first + k);
            nbody_i_store(&sim, &out, sim.id[sim.cell[at].first + k], t.total, t.compensation);
        }
    for (int32_t k = 0; k < sim.n && !sim.cell; k++) {
        nbody_i_target const t = nbody_i_body(&sim, &law, -1, k);
        nbody_i_store(&sim, &out, sim.id[k], t.total, t.compensation);
    }
}

/* ----------------------------------------------------------------------------------------------
   >>fast: NBODY_FAST, the force of many sources on 64 or 80 targets, by one block

   Each of four or five warps has 16 targets: lane l has targets l % 8 and 8 + l % 8, and takes
   every 4th source, starting at its phase l / 8. So a leaf of few bodies wastes few lanes, and each
   source that is read from shared memory serves two targets. (>>groups: four targets, 32 of a
   warp.) Sources come from a list of ranges in other cells (all near ones, or all far ones), which
   are concatenated and cut into tiles, a source for each thread: the cost of a cell is proportional
   to its number of sources.

       ranges   |--- cell a ---|- b -|------- c -------|--- d ---|
       tiles    |         0         |         1         |   2    .|   thread t fetches source t

       lane           0 ..  7       8 .. 15      16 .. 23      24 .. 31
       targets        0 ..  7       0 ..  7       0 ..  7       0 ..  7     and + 8; four lanes
       sources     0, 4, 8 ..    1, 5, 9 ..    2, 6, 10 ..   3, 7, 11 ..    share a target:
                                                                        nbody_i_join
   ---------------------------------------------------------------------------------------------- */

/* Of a block, at most, and blocks of each multiprocessor: with 4 warps 80 registers for a thread,
   with 5 72, or 96 where the order of L2P is known at run time. */
constexpr int nbody_i_threads_of_four = 128, nbody_i_blocks_of_four = 6;
constexpr int nbody_i_fast_threads = 32 * nbody_i_warps;
constexpr int nbody_i_fast_blocks(int order)
{
    return order < 0 ? nbody_i_blocks_of_four : order == 0 ? 4 : 5;
}
constexpr int nbody_i_phases = 4;

/* The kind of sources in a range. */
enum { NBODY_I_BY_BODIES, NBODY_I_BY_CENTRES, NBODY_I_BY_POINTS };

struct __align__(16) nbody_i_mass_point { nbody_real x, y, m, unused; };

/* Shared memory: the tile, and the list of ranges. Each warp has its own copy of the list, which
   costs less than synchronising the block. */
template <bool Moments> struct nbody_i_stream {
    nbody_i_mass_point source[nbody_i_fast_threads];
    int32_t place[nbody_i_fast_threads];
    nbody_real xx[Moments ? nbody_i_fast_threads : 1], xy[Moments ? nbody_i_fast_threads : 1],
        yy[Moments ? nbody_i_fast_threads : 1];
    struct {
        int32_t kind[32], first[32], cell[32];
        /* exclusive prefix sum of the numbers of sources, and the total; before that, the
           numbers */
        int32_t before[33];
    } list[nbody_i_warps];
};

/* A lane's targets, and its portion of their sums. */
template <int Law, bool Potential, bool Moments, unsigned Of = 2> struct nbody_i_pairs {
    static constexpr int law = Law, parts = NBODY_I_PARTS - !Potential,
                         of_lane = static_cast<int>(Of), targets = 8 * of_lane; /* of a warp */
    static constexpr bool potential = Potential, moments = Moments;
    nbody_real x[Of], y[Of];
    int32_t place[Of];
    nbody_real partial[NBODY_I_PARTS][Of], total[NBODY_I_PARTS][Of],
        compensation[NBODY_I_PARTS][Of];
    bool active;    /* has the warp any target? If not, it only fetches */
    int ranges;     /* in the list */
};

template <class Pairs>
__device__ __forceinline__ void nbody_i_carry_pairs(Pairs &pairs)
{
#pragma unroll
    for (int p = 0; p < Pairs::parts; p++)
#pragma unroll
        for (int t = 0; t < Pairs::of_lane; t++)
            nbody_i_carry(&pairs.partial[p][t], &pairs.total[p][t], &pairs.compensation[p][t]);
}

/* The law, where no core is Gaussian: nbody_i_cuda_begin. */
__device__ __forceinline__ nbody_i_law nbody_i_bare_law(const nbody *sim, bool potential)
{
    nbody_i_law law = nbody_i_law_of(sim, potential);
    law.core = 0;
    return law;
}

/* The same, in a kernel that is compiled for one law: no pair asks which it is. */
template <int Law>
__device__ __forceinline__ nbody_i_law nbody_i_bare_law(const nbody *sim, bool potential)
{
    nbody_i_law law = nbody_i_bare_law(sim, potential);
    law.law = static_cast<nbody_law>(Law);
    return law;
}

/* 1 / sqrt(u), up to the last bit or two. rsqrtf handles denormal numbers too, in 3 more
   instructions; u has a minimum far above those. */
__device__ __forceinline__ float nbody_i_fast_root(float u)
{
#ifdef __CUDA_ARCH__
    float root;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(u));
    return root;
#else
    return rsqrtf(u);
#endif
}
__device__ __forceinline__ double nbody_i_fast_root(double u) { return rsqrt(u); }

/* One source on one target, with the GPU's approximate reciprocal root and fused multiply-adds: 10
   instructions. self: the source is the target. */
template <class Pairs>
__device__ __forceinline__ void nbody_i_pair(Pairs &pairs, int t, const nbody_i_law &law,
                                             const nbody_i_mass_point &from, bool self)
{
    nbody_real const dx = from.x - pairs.x[t], dy = from.y - pairs.y[t],
                     u = dx * dx + (dy * dy + law.soften2);
    nbody_real const root = nbody_i_fast_root(u), square = root * root;
    nbody_real const mg = Pairs::law == NBODY_INVERSE ? from.m * square : from.m * root * square;
    pairs.partial[NBODY_I_X][t] += mg * dx;
    pairs.partial[NBODY_I_Y][t] += mg * dy;
    if (Pairs::potential && nbody_i_in_potential(&law, dx * dx + dy * dy, self))
        pairs.partial[NBODY_I_POTENTIAL][t] += from.m * nbody_i_potential(&law, u, root);
}

/* What the second moments of source s add. Bodies have none, and may be arbitrarily near. */
template <class Pairs>
__device__ __forceinline__ void nbody_i_pair_moments(Pairs &pairs, int t, const nbody_i_law &law,
                                                     const nbody_i_stream<true> &stream,
                                                     const nbody_i_mass_point &from, int s)
{
    if (!(stream.xx[s] + stream.yy[s] > 0)) return;
    nbody_real const dx = from.x - pairs.x[t], dy = from.y - pairs.y[t],
                     u = dx * dx + (dy * dy + law.soften2);
    nbody_real const root = nbody_i_fast_root(u), square = root * root;
    nbody_i_source const spread = {from.x,       from.y,       from.m, stream.xx[s],
                                   stream.xy[s], stream.yy[s], -1};
    nbody_real partial[NBODY_I_PARTS] = {0, 0, 0};
    nbody_i_add_moments(&law, &spread, dx, dy, u,
                        Pairs::law == NBODY_INVERSE ? square : root * square, partial);
#pragma unroll
    for (int p = 0; p < Pairs::parts; p++) pairs.partial[p][t] += partial[p];
}

/* The range of source number `at`: the last one that begins at or before it. */
__device__ __forceinline__ int nbody_i_range_of(const int32_t *before, int32_t at)
{
    int r = 0;
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        if (before[r + step] <= at) r += step;
    return r;
}

/* Fetches source number `at` of the list; from `all` on, sources without mass. */
template <bool Moments>
__device__ __forceinline__ void nbody_i_fetch(const nbody &sim, nbody_i_stream<Moments> &stream,
                                              int32_t at, int32_t all)
{
    auto const &list = stream.list[threadIdx.x / 32];
    int const r = at < all ? nbody_i_range_of(list.before, at) : 0,
              kind = at < all ? list.kind[r] : -1, to = (int)threadIdx.x;
    int32_t const s = at - list.before[r];
    nbody_i_mass_point point = {0, 0, 0, 0};
    nbody_real xx = 0, xy = 0, yy = 0;
    stream.place[to] = -2;
    if (kind == NBODY_I_BY_BODIES) {
        int32_t const place = list.first[r] + s;
        point = {sim.x[place], sim.y[place], sim.acts[place], 0};
        stream.place[to] = place;
    } else if (kind == NBODY_I_BY_CENTRES) {
        size_t const from = (size_t)list.cell[r] * (size_t)sim.per_cell + (size_t)s;
        point = {sim.vx[from], sim.vy[from], sim.vm[from], 0};
        if (Moments) {
            xx = sim.vxx[from];
            xy = sim.vxy[from];
            yy = sim.vyy[from];
        }
    } else if (kind == NBODY_I_BY_POINTS) {
        nbody_i_run const run = nbody_i_virtual(&sim, list.cell[r]);
        nbody_i_source const source = nbody_i_source_of(&sim, &run, s);
        point = {(nbody_real)run.corner[0] + source.x, (nbody_real)run.corner[1] + source.y,
                 source.m, 0};
    }
    stream.source[to] = point;
    if (Moments) {
        stream.xx[to] = xx;
        stream.xy[to] = xy;
        stream.yy[to] = yy;
    }
}

/* Turns the counts of the list into an exclusive prefix sum. Returns the total. */
template <bool Moments>
__device__ __forceinline__ int32_t nbody_i_close_list(nbody_i_stream<Moments> &stream, int ranges)
{
    auto &list = stream.list[threadIdx.x / 32];
    int const lane = (int)threadIdx.x % 32;
    __syncwarp();
    int32_t const count = lane < ranges ? list.before[lane] : 0;
    int32_t sum = count;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        int32_t const below = __shfl_up_sync(nbody_i_all_lanes, sum, step);
        if (lane >= step) sum += below;
    }
    __syncwarp();
    list.before[lane] = sum - count;
    if (lane == 31) list.before[32] = sum;
    __syncwarp();
    return __shfl_sync(nbody_i_all_lanes, sum, 31);
}

/* Adds all sources of the list to the targets of the block, and empties the list. All threads of
   the block must call it. */
template <class Pairs>
__device__ __forceinline__ void nbody_i_flush(const nbody &sim, const nbody_i_law &law,
                                              Pairs &pairs, nbody_i_stream<Pairs::moments> &stream)
{
    int const phase = (int)threadIdx.x % 32 / 8;
    int32_t const all = nbody_i_close_list(stream, pairs.ranges);
    constexpr int turn = 4 * nbody_i_phases;
    int const tile = (int)blockDim.x;
    bool odd = false;
    for (int32_t first = 0; first < all; first += tile, odd = !odd) {
        nbody_i_fetch(sim, stream, first + (int32_t)threadIdx.x, all);
        __syncthreads();
        int const left = all - first, count = left < tile ? left : tile;
        for (int s = 0; s < count && pairs.active; s += turn) {
#pragma unroll
            for (int k = 0; k < turn; k += nbody_i_phases) {
                nbody_i_mass_point const from = stream.source[s + k + phase];
#pragma unroll
                for (int t = 0; t < Pairs::of_lane; t++) {
                    int const at = s + k + phase;
                    nbody_i_pair(pairs, t, law, from, stream.place[at] == pairs.place[t]);
                    if constexpr (Pairs::moments)
                        nbody_i_pair_moments(pairs, t, law, stream, from, at);
                }
            }
        }
        if (odd) nbody_i_carry_pairs(pairs); /* a lane has added 64 or 80 terms in two tiles */
        __syncthreads();
    }
    nbody_i_carry_pairs(pairs);
    pairs.ranges = 0;
}

/* Appends the ranges of those lanes where `has` is true; all lanes must call it. All warps of the
   block build the same list. */
template <class Pairs>
__device__ __forceinline__ void nbody_i_list(const nbody &sim, const nbody_i_law &law,
                                             Pairs &pairs, nbody_i_stream<Pairs::moments> &stream,
                                             bool has, int32_t at, bool by_bodies)
{
    unsigned const who = __ballot_sync(nbody_i_all_lanes, has);
    int const lane = (int)threadIdx.x % 32, more = __popc(who);
    if (pairs.ranges + more > 32) nbody_i_flush(sim, law, pairs, stream);
    if (has) {
        auto &list = stream.list[threadIdx.x / 32];
        const nbody_cell *cell = &sim.cell[at];
        int const to = pairs.ranges + __popc(who & ((1u << lane) - 1));
        bool const centres = sim.desc.sources == NBODY_MASS_CENTRES;
        list.kind[to] = by_bodies ? NBODY_I_BY_BODIES
                        : centres ? NBODY_I_BY_CENTRES
                                  : NBODY_I_BY_POINTS;
        list.cell[to] = at;
        list.first[to] = cell->first;
        list.before[to] = by_bodies ? nbody_i_acting(cell) : centres ? sim.made[at] : sim.per_cell;
    }
    pairs.ranges += more;
}

/* As nbody_i_touch: no square is periodic here. */
__device__ __forceinline__ bool nbody_i_touch_fast(const nbody &sim, const nbody_cell *large,
                                                   const nbody_cell *little)
{
    return nbody_i_touch_by(sim.cell, large, little, 0xFFFFFFFFu);
}

/* Candidate number k among the far cells of `of`: child k % 4 of the (k / 4)-th cell adjacent to
   its parent. -1: none. */
__device__ __forceinline__ int32_t nbody_i_far_candidate(const nbody &sim, int32_t of, int k)
{
    const nbody_cell *cell = &sim.cell[of], *parent = &sim.cell[cell->parent];
    if (k / 4 >= parent->beside_count) return -1;
    int32_t const at = parent->beside[k / 4];
    const nbody_cell *around = &sim.cell[at];
    if (around->child < 0) return k % 4 == 0 && !nbody_i_touch_fast(sim, around, cell) ? at : -1;
    if (k % 4 >= around->children) return -1;
    return nbody_i_touch_fast(sim, &sim.cell[around->child + k % 4], cell)
               ? -1
               : around->child + k % 4;
}

/* Appends lists 2 and 4: all far cells of a cell. */
template <class Pairs>
__device__ __forceinline__ void nbody_i_list_far(const nbody &sim, const nbody_i_law &law,
                                                 Pairs &pairs,
                                                 nbody_i_stream<Pairs::moments> &stream,
                                                 int32_t of)
{
    int const lane = (int)threadIdx.x % 32;
    for (int k = 0; k < 36; k += 32) {
        int32_t const at = k + lane < 36 ? nbody_i_far_candidate(sim, of, k + lane) : -1;
        bool const by_bodies = at >= 0 && (sim.cell[at].level < sim.cell[of].level ||
                                           nbody_i_acts_by_bodies(&sim, &sim.cell[at]));
        nbody_i_list(sim, law, pairs, stream, at >= 0, at, by_bodies);
    }
}

/* Candidate number k among the near cells of a leaf: child k % 4 of adjacent cell k / 4, or that
   cell, a leaf. They act by bodies where they touch the leaf or have few. deeper: a child that
   touches it is divided, so that these candidates are not enough. */
struct nbody_i_near_cell { int32_t at; bool by_bodies, deeper; };

__device__ __forceinline__ nbody_i_near_cell nbody_i_near_candidate(const nbody &sim, int32_t leaf,
                                                                    int k)
{
    const nbody_cell *cell = &sim.cell[leaf];
    if (k / 4 >= cell->beside_count) return {-1, false, false};
    int32_t const at = cell->beside[k / 4];
    const nbody_cell *around = &sim.cell[at];
    if (around->child < 0) return {k % 4 == 0 ? at : -1, true, false};
    if (k % 4 >= around->children) return {-1, false, false};
    const nbody_cell *child = &sim.cell[around->child + k % 4];
    bool const touches = nbody_i_touch_fast(sim, cell, child);
    return {around->child + k % 4, touches || nbody_i_acts_by_bodies(&sim, child),
            touches && child->child >= 0};
}

/* Appends lists 1 and 3 of a leaf, but for bodies not the leaf itself where it is a crowd. Where
   all adjacent cells are leaves, as in even trees, these are the list; where no child of theirs
   that touches it is divided, the candidates. */
template <class Pairs>
__device__ __forceinline__ void nbody_i_list_near(const nbody &sim, const nbody_i_law &law,
                                                  Pairs &pairs,
                                                  nbody_i_stream<Pairs::moments> &stream,
                                                  int32_t leaf)
{
    int const lane = (int)threadIdx.x % 32;
    const nbody_cell *cell = &sim.cell[leaf];
    int32_t const at = lane < cell->beside_count ? cell->beside[lane] : -1,
                  crowd = nbody_i_in_crowd(cell, pairs.place[0]) ? leaf : -1;
    if (!__any_sync(nbody_i_all_lanes, at >= 0 && sim.cell[at].child >= 0)) {
        nbody_i_list(sim, law, pairs, stream, at >= 0 && at != crowd, at, true);
        return;
    }
    nbody_i_near_cell const first = nbody_i_near_candidate(sim, leaf, lane),
                            last = lane < 4 ? nbody_i_near_candidate(sim, leaf, 32 + lane)
                                            : nbody_i_near_cell{-1, false, false};
    if (!__any_sync(nbody_i_all_lanes, first.deeper || last.deeper)) {
        nbody_i_list(sim, law, pairs, stream, first.at >= 0 && first.at != crowd, first.at,
                     first.by_bodies);
        nbody_i_list(sim, law, pairs, stream, last.at >= 0 && last.at != crowd, last.at,
                     last.by_bodies);
        return;
    }
    nbody_near walk = nbody_near_of(&sim, leaf);
    while (nbody_next_near(&walk)) {
        bool const by_bodies = walk.whole || nbody_i_acts_by_bodies(&sim, &sim.cell[walk.cell]);
        nbody_i_list(sim, law, pairs, stream, lane == 0 && walk.cell != crowd, walk.cell,
                     by_bodies);
    }
}

/* Sums the four lanes of each target; all four get the sum. */
template <class Pairs>
__device__ __forceinline__ void nbody_i_join(Pairs &pairs)
{
    nbody_i_carry_pairs(pairs);
#pragma unroll
    for (int step = 8; step < 32; step *= 2)
#pragma unroll
        for (int p = 0; p < Pairs::parts; p++)
#pragma unroll
            for (int t = 0; t < Pairs::of_lane; t++) {
                nbody_real other = __shfl_xor_sync(nbody_i_all_lanes, pairs.total[p][t], step);
                pairs.compensation[p][t] +=
                    __shfl_xor_sync(nbody_i_all_lanes, pairs.compensation[p][t], step);
                nbody_i_carry(&other, &pairs.total[p][t], &pairs.compensation[p][t]);
            }
}

template <class Pairs>
__device__ __forceinline__ void nbody_i_aim(Pairs &pairs, int t, nbody_real x, nbody_real y,
                                            int32_t place)
{
    pairs.x[t] = x;
    pairs.y[t] = y;
    pairs.place[t] = place;
#pragma unroll
    for (int p = 0; p < NBODY_I_PARTS; p++)
        pairs.partial[p][t] = pairs.total[p][t] = pairs.compensation[p][t] = 0;
}

/* The array of component p of the nodes' forces. */
__device__ __forceinline__ nbody_real *nbody_i_part_of(const nbody &sim, int p)
{
    return p == NBODY_I_X ? sim.fx : p == NBODY_I_Y ? sim.fy : sim.fp;
}

/* Four numbers, read by one instruction. */
struct __align__(16) nbody_i_four { nbody_real m[4]; };

/* Dot product; for order 4 the values are read at once. */
template <int Order> __device__ __forceinline__ nbody_real nbody_i_dot(const nbody_real *weight,
                                                                       const nbody_real *value,
                                                                       int count)
{
    if constexpr (Order == 4) {
        nbody_i_four const four = *reinterpret_cast<const nbody_i_four *>(value);
        return weight[0] * four.m[0] + weight[1] * four.m[1] + weight[2] * four.m[2] +
               weight[3] * four.m[3];
    } else {
        nbody_real sum = 0;
        for (int i = 0; i < count; i++) sum += weight[i] * value[i];
        return sum;
    }
}

/* As nbody_i_stencil_at; in registers where the order is a constant. */
template <int Order>
__device__ __forceinline__ nbody_i_stencil nbody_i_fast_stencil(const nbody_rule &rule,
                                                                nbody_real u)
{
    if constexpr (Order == 0) return nbody_i_stencil_at(&rule, u);
    else {
        nbody_i_stencil stencil;
        nbody_real left = 1, right = 1;
        stencil.first = 0;
#pragma unroll
        for (int i = 0; i < Order; i++) {
            stencil.weight[i] = left * rule.scale[i];
            left *= u - rule.t[i];
        }
#pragma unroll
        for (int i = Order - 1; i >= 0; i--) {
            stencil.weight[i] *= right;
            right *= u - rule.t[i];
        }
        return stencil;
    }
}

/* L2P: interpolates the leaf's nodes at a body. */
template <bool Potential, int Order>
__device__ __forceinline__ void nbody_i_l2p_fast(const nbody &sim, int32_t leaf, nbody_real x,
                                                 nbody_real y, nbody_real far_force[NBODY_I_PARTS])
{
    const nbody_cell *cell = &sim.cell[leaf];
    int const side = Order > 0 ? Order : sim.rule.side,
              stencil = Order > 0 ? Order : sim.rule.stencil;
    nbody_i_stencil const sx = nbody_i_fast_stencil<Order>(
        sim.rule, nbody_i_within(sim.frame, cell->level, 0, cell->x, x));
    nbody_i_stencil const sy = nbody_i_fast_stencil<Order>(
        sim.rule, nbody_i_within(sim.frame, cell->level, 1, cell->y, y));
    size_t const first =
        (size_t)leaf * (size_t)(side * side) + (size_t)(sy.first * side + sx.first);
#pragma unroll
    for (int p = 0; p < NBODY_I_PARTS - !Potential; p++) {
        const nbody_real *value = nbody_i_part_of(sim, p) + first;
        far_force[p] = 0;
#pragma unroll 4
        for (int j = 0; j < stencil; j++)
            far_force[p] += sy.weight[j] * nbody_i_dot<Order>(sx.weight, value + j * side, stencil);
    }
}

/* What chunks are made of: bodies, or points in the order of their cells
   (cuda/nbody_points.cu). */
struct nbody_i_own_bodies {
    __device__ __forceinline__ nbody_real at(const nbody &sim, int axis, int32_t k) const
    {
        return axis == 0 ? sim.x[k] : sim.y[k];
    }
    __device__ __forceinline__ int32_t place(int32_t k) const { return k; }
    __device__ __forceinline__ int32_t id(const nbody &sim, int32_t k) const { return sim.id[k]; }
};

struct nbody_i_given_points {
    nbody_i_input input;
    const int32_t *ids;
    __device__ __forceinline__ nbody_real at(const nbody &sim, int axis, int32_t k) const
    {
        return nbody_i_point_at((double)nbody_i_at(input.pos, input.stride, ids[k])[axis],
                                sim.frame->length);
    }
    __device__ __forceinline__ int32_t place(int32_t) const { return -1; }
    __device__ __forceinline__ int32_t id(const nbody &, int32_t k) const { return ids[k]; }
};

/* The targets of a warp: its portion of a chunk; where there are no more, the first one. */
template <class Pairs, class Targets>
__device__ __forceinline__ void nbody_i_aim_at_chunk(const nbody &sim, const nbody_i_chunk &chunk,
                                                     const Targets &targets, Pairs &pairs)
{
    int const lane = (int)threadIdx.x % 32, from = (int)threadIdx.x / 32 * Pairs::targets;
    pairs.active = from < chunk.count;
    pairs.ranges = 0;
#pragma unroll
    for (int t = 0; t < Pairs::of_lane; t++) {
        int32_t const k = from + t * 8 + lane % 8,
                      to = chunk.first + (k < chunk.count ? k : 0);
        nbody_i_aim(pairs, t, targets.at(sim, 0, to), targets.at(sim, 1, to), targets.place(to));
    }
}

/* After nbody_i_join: the target of this lane, of which it has the sums; place -1: none. Lanes 8 t
   to 8 t + 7 of a warp have one target each. */
struct nbody_i_mine {
    int32_t place;
    nbody_real total[NBODY_I_PARTS], compensation[NBODY_I_PARTS];
};

template <class Pairs>
__device__ __forceinline__ nbody_i_mine nbody_i_mine_of(const nbody_i_chunk &chunk,
                                                        const Pairs &pairs)
{
    int const lane = (int)threadIdx.x % 32, phase = lane / 8;
    nbody_i_mine mine = {-1, {0, 0, 0}, {0, 0, 0}};
#pragma unroll
    for (int t = 0; t < Pairs::of_lane; t++) {
        int32_t const k = (int)threadIdx.x / 32 * Pairs::targets + t * 8 + lane % 8;
        if (phase != t) continue;
        if (k < chunk.count) mine.place = chunk.first + k;
#pragma unroll
        for (int p = 0; p < NBODY_I_PARTS; p++) {
            mine.total[p] = pairs.total[p][t];
            mine.compensation[p] = pairs.compensation[p][t];
        }
    }
    return mine;
}

/* L2P, M2P and P2P: a block for each chunk, a warp for 16 of its bodies. Order: of the nodes; 0: as
   the rule says; -1: there are none, and no L2P, but `far_away`: >>groups. number: of chunks. */
template <int Law, bool Potential, bool Moments, int Order, class Targets>
__global__ void __launch_bounds__(Order < 0 ? nbody_i_threads_of_four : nbody_i_fast_threads,
                                  nbody_i_fast_blocks(Order))
    nbody_i_bodies_fast_kernel(__grid_constant__ const nbody_device device, Targets targets,
                               const nbody_i_chunk *chunks, const int32_t *number,
                               const nbody_real *far_away, nbody_i_outcome out)
{
    const nbody &sim = device.sim;
    nbody_i_law const law = nbody_i_bare_law<Law>(&sim, Potential);
    __shared__ nbody_i_stream<Moments> stream;
    int32_t const count = *number;
    for (int64_t c = blockIdx.x; c < count; c += gridDim.x) {
        nbody_i_chunk const chunk = chunks[c];
        nbody_i_pairs<Law, Potential, Moments> pairs;
        nbody_i_aim_at_chunk(sim, chunk, targets, pairs);
        if (sim.desc.method == NBODY_VIRTUAL_PARTICLES)
            for (int32_t cell = chunk.leaf;
                 sim.cell[cell].level >= 2 && !(far_away && nbody_i_is_group(sim, sim.cell[cell]));
                 cell = sim.cell[cell].parent)
                nbody_i_list_far(sim, law, pairs, stream, cell);
        nbody_i_list_near(sim, law, pairs, stream, chunk.leaf);
        nbody_i_flush(sim, law, pairs, stream);
        nbody_i_join(pairs);
        nbody_i_mine mine = nbody_i_mine_of(chunk, pairs);
        if (mine.place < 0) continue;
        nbody_real far_force[NBODY_I_PARTS] = {0, 0, 0};
        if constexpr (Order >= 0) {
            if (sim.cell[chunk.leaf].level >= 2)
                nbody_i_l2p_fast<Potential, Order>(sim, chunk.leaf, targets.at(sim, 0, mine.place),
                                                   targets.at(sim, 1, mine.place), far_force);
        } else if (far_away && sim.cell[chunk.leaf].level >= 2) {
#pragma unroll
            for (int p = 0; p < NBODY_I_PARTS - !Potential; p++)
                far_force[p] = far_away[(size_t)p * (size_t)sim.n + (size_t)mine.place];
        }
        if constexpr (Potential)
            far_force[NBODY_I_POTENTIAL] += nbody_i_crowd_potential(
                &sim, &law, &sim.cell[chunk.leaf], targets.place(mine.place));
#pragma unroll
        for (int p = 0; p < NBODY_I_PARTS - !Potential; p++)
            nbody_i_carry(&far_force[p], &mine.total[p], &mine.compensation[p]);
        nbody_i_store(&sim, &out, targets.id(sim, mine.place), mine.total, mine.compensation);
    }
}

/* ----------------------------------------------------------------------------------------------
   >>groups: NBODY_FAST, M2P of VIRTUAL_PARTICLES

   The far cells of a cell are far from all bodies in it. So those of a group, the largest cells of
   320 bodies or less (or a leaf of more), and of what it lies in, are summed for many bodies at a
   time: four targets for each lane, which take one read of a source and one search of its range.
   Its leaves add what is near, and what is far from smaller cells than the group.
   ---------------------------------------------------------------------------------------------- */

/* A block for each piece of 128 bodies. to: sums, x of all places, then y, then potentials. */
template <int Law, bool Potential>
__global__ void __launch_bounds__(nbody_i_threads_of_four, nbody_i_blocks_of_four)
    nbody_i_groups_kernel(__grid_constant__ const nbody_device device, const nbody_i_chunk *groups,
                          const nbody_i_facts *facts, nbody_real *to)
{
    const nbody &sim = device.sim;
    nbody_i_law const law = nbody_i_bare_law<Law>(&sim, Potential);
    __shared__ nbody_i_stream<false> stream;
    int32_t const count = facts->pieces[1];
    for (int64_t c = blockIdx.x; c < count; c += gridDim.x) {
        nbody_i_chunk const piece = groups[c];
        nbody_i_pairs<Law, Potential, false, 4> pairs;
        nbody_i_aim_at_chunk(sim, piece, nbody_i_own_bodies{}, pairs);
        for (int32_t cell = piece.leaf; sim.cell[cell].level >= 2; cell = sim.cell[cell].parent)
            nbody_i_list_far(sim, law, pairs, stream, cell);
        nbody_i_flush(sim, law, pairs, stream);
        nbody_i_join(pairs);
        nbody_i_mine const mine = nbody_i_mine_of(piece, pairs);
        if (mine.place < 0) continue;
#pragma unroll
        for (int p = 0; p < NBODY_I_PARTS - !Potential; p++)
            to[(size_t)p * (size_t)sim.n + (size_t)mine.place] =
                mine.total[p] + mine.compensation[p];
    }
}

/* M2L with MASS_CENTRES, and P2L: all levels in one launch, a block for 64 nodes of a cell. L2L
   follows: >>transfer. */
template <int Law, bool Potential>
__global__ void __launch_bounds__(nbody_i_threads_of_four, nbody_i_blocks_of_four)
    nbody_i_nodes_fast_kernel(__grid_constant__ const nbody_device device)
{
    const nbody &sim = device.sim;
    nbody_i_law const law = nbody_i_bare_law<Law>(&sim, Potential);
    __shared__ nbody_i_stream<false> stream;
    int const lane = (int)threadIdx.x % 32, phase = lane / 8,
              groups = (sim.nodes + NBODY_CHUNK - 1) / NBODY_CHUNK;
    int32_t const first = sim.frame->level_first[2];
    int64_t const pieces = (int64_t)(sim.frame->cells - first) * groups;
    for (int64_t k = blockIdx.x; k < pieces; k += gridDim.x) {
        int32_t const at = first + (int32_t)(k / groups),
                      from = (int32_t)(k % groups) * NBODY_CHUNK + (int32_t)threadIdx.x / 32 * 16;
        nbody_i_pairs<Law, Potential, false> pairs;
        pairs.active = from < sim.nodes;
        pairs.ranges = 0;
#pragma unroll
        for (int t = 0; t < pairs.of_lane; t++) {
            int32_t const a = from + t * 8 + lane % 8;
            nbody_i_target const node = nbody_i_node(&sim, at, a < sim.nodes ? a : 0);
            nbody_i_aim(pairs, t, node.x, node.y, -1);
        }
        nbody_i_list_far(sim, law, pairs, stream, at);
        nbody_i_flush(sim, law, pairs, stream);
        nbody_i_join(pairs);
#pragma unroll
        for (int t = 0; t < pairs.of_lane; t++) {
            int32_t const a = from + t * 8 + lane % 8;
            if (phase != t || a >= sim.nodes) continue;
            nbody_i_target sum = nbody_i_target_at(0, 0, -1);
#pragma unroll
            for (int p = 0; p < NBODY_I_PARTS - !Potential; p++) {
                sum.total[p] = pairs.total[p][t];
                sum.compensation[p] = pairs.compensation[p][t];
            }
            nbody_i_store_node(&sim, &law, at, a, &sum);
        }
    }
}

/* ----------------------------------------------------------------------------------------------
   >>families: NBODY_FAST, M2L by the table, for the children of a cell together

   The far cells of all children of one cell are children of the cells adjacent to it: 6 x 6 cells
   at most. A group of threads, one for each output (a node, a component of the force), fetches the
   masses of all 36 into shared memory. Each entry of the table that is read serves up to four
   children.

       s s s s s s    the 36 slots, column and row 0 .. 5. Children c of the parent: P, slots (2, 2)
       s s s s s s    to (3, 3). For child c, slot s is at the offset s - c, and counts unless
       s s P P s s    they touch. Offset (3, 0), read once, is slot (5, 2) for the lower left child,
       s s P P s s    and (5, 3) for the upper left one. For the right ones it is outside: there, a
       s s s s s s    slot without mass is used.
       s s s s s s
   ---------------------------------------------------------------------------------------------- */

constexpr int nbody_i_slots = 36, nbody_i_family_threads = 128;

/* Capacity in masses of a block's families: four of order 4, or one of the highest. */
constexpr int nbody_i_family_masses = (nbody_i_slots + 1) * nbody_i_fast_order * nbody_i_fast_order;

/* Finds the cells of the slots; larger leaves adjacent to the parent have none. `k`: thread of the
   group. */
__device__ void nbody_i_find_slots(const nbody &sim, const nbody_cell &parent, int k, int threads,
                                   int32_t *slot)
{
    for (; k < nbody_i_slots; k += threads) {
        const nbody_cell *around =
            k / 4 < parent.beside_count ? &sim.cell[parent.beside[k / 4]] : nullptr;
        if (!around || k % 4 >= around->children) continue;
        int32_t const at = around->child + k % 4;
        int const x = sim.cell[at].x - 2 * parent.x + 2, y = sim.cell[at].y - 2 * parent.y + 2;
        slot[x + 6 * y] = at;
    }
}

/* The sums of one output over all slots, for the four children. */
struct nbody_i_family { nbody_real partial[4], total[4], compensation[4]; };

__device__ __forceinline__ void nbody_i_carry_family(nbody_i_family &family)
{
#pragma unroll
    for (int c = 0; c < 4; c++)
        nbody_i_carry(&family.partial[c], &family.total[c], &family.compensation[c]);
}

/* The masses at (dx, dy) from child c; slot nbody_i_slots has none. */
__device__ __forceinline__ const nbody_real *nbody_i_slot_of(const nbody_real *masses, int per_cell,
                                                             int c, int dx, int dy)
{
    int const x = (c & 1) + dx + 2, y = (c >> 1) + dy + 2;
    bool const inside = x >= 0 && x < 6 && y >= 0 && y < 6;
    return masses + (inside ? x + 6 * y : nbody_i_slots) * per_cell;
}

__device__ __forceinline__ void nbody_i_add_four(const nbody_real *rows, int row,
                                                 const nbody_real *const mass[4], int b,
                                                 nbody_i_family &family)
{
    nbody_real entry[4];
#pragma unroll
    for (int k = 0; k < 4; k++) entry[k] = rows[k * row];
#pragma unroll
    for (int c = 0; c < 4; c++) {
        nbody_i_four const four = *reinterpret_cast<const nbody_i_four *>(mass[c] + b);
#pragma unroll
        for (int k = 0; k < 4; k++) family.partial[c] += entry[k] * four.m[k];
    }
}

template <int Order>
__device__ __forceinline__ void nbody_i_add_families(const nbody &sim, int level, int p, int32_t a,
                                                     const nbody_real *masses,
                                                     nbody_i_family &family)
{
    int const per_cell = Order > 0 ? Order * Order : sim.per_cell,
              row = Order == 4 ? NBODY_I_LANES : nbody_i_row(&sim);
    int terms = 0;
    for (int offset = 0; offset < NBODY_I_OFFSETS; offset++) {
        if (!nbody_i_offset_is_far(offset)) continue;
        const nbody_real *rows = nbody_i_table_rows(&sim, level, offset, p) + a;
        const nbody_real *mass[4];
#pragma unroll
        for (int c = 0; c < 4; c++)
            mass[c] = nbody_i_slot_of(masses, per_cell, c, offset % 7 - 3, offset / 7 - 3);
        int b = 0;
        if (per_cell % 4 == 0) {
#pragma unroll 4
            for (; b < per_cell; b += 4) nbody_i_add_four(rows + b * row, row, mass, b, family);
        }
        for (; b < per_cell; b++) {
            nbody_real const entry = rows[b * row];
#pragma unroll
            for (int c = 0; c < 4; c++) family.partial[c] += entry * mass[c][b];
        }
        terms += per_cell;
        if (terms < NBODY_CHUNK) continue;
        nbody_i_carry_family(family);
        terms = 0;
    }
    nbody_i_carry_family(family);
}

/* One output of all children of a parent. */
template <int Order>
__device__ __forceinline__ void nbody_i_make_output(const nbody &sim, const nbody_i_law &law,
                                                    int32_t parent_at, int p, int32_t a,
                                                    const int32_t *slot, const nbody_real *masses)
{
    const nbody_cell &parent = sim.cell[parent_at];
    nbody_i_family family = {};
    nbody_real scale[NBODY_I_PARTS];
    nbody_i_add_families<Order>(sim, parent.level + 1, p, a, masses, family);
    nbody_i_table_scale(&sim, &law, parent.level + 1, scale);
#pragma unroll
    for (int c = 0; c < 4; c++) {
        int32_t const child = slot[2 + (c & 1) + 6 * (2 + (c >> 1))];
        if (child < 0) continue;
        nbody_i_part_of(sim, p)[(size_t)child * (size_t)sim.nodes + (size_t)a] =
            (family.total[c] + family.compensation[c]) * scale[p];
    }
}

/* A block has 128 / Group families; a thread of a group computes outputs k, k + Group, .. */
template <bool Potential, int Order, int Group>
__global__ void __launch_bounds__(nbody_i_family_threads)
    nbody_i_families_kernel(__grid_constant__ const nbody_device device)
{
    const nbody &sim = device.sim;
    constexpr int families = nbody_i_family_threads / Group;
    __shared__ __align__(16)
        nbody_real shared_masses[Order > 0 ? families * (nbody_i_slots + 1) * Order * Order
                                           : nbody_i_family_masses];
    __shared__ int32_t shared_slot[families][nbody_i_slots];
    nbody_i_law const law = nbody_i_bare_law(&sim, Potential);
    int const group = (int)threadIdx.x / Group, k = (int)threadIdx.x % Group,
              per_cell = Order > 0 ? Order * Order : sim.per_cell;
    int const row = nbody_i_row(&sim), outputs = (NBODY_I_PARTS - !Potential) * row;
    int32_t *slot = shared_slot[group];
    nbody_real *masses = shared_masses + group * (nbody_i_slots + 1) * per_cell;
    int32_t const first = sim.frame->level_first[1], end = sim.frame->cells; /* parents */
    for (int64_t turn = (int64_t)first + (int64_t)blockIdx.x * families; turn < end;
         turn += (int64_t)gridDim.x * families) {
        int32_t const at = (int32_t)(turn + group);
        bool const any = at < end && sim.cell[at].child >= 0;
        __syncthreads();
        for (int s = k; s < nbody_i_slots; s += Group) slot[s] = -1;
        __syncthreads();
        if (any) nbody_i_find_slots(sim, sim.cell[at], k, Group, slot);
        __syncthreads();
        for (int m = k; any && m < (nbody_i_slots + 1) * per_cell; m += Group) {
            int32_t const from = m / per_cell < nbody_i_slots ? slot[m / per_cell] : -1;
            masses[m] =
                from < 0 ? 0 : sim.vm[(size_t)from * (size_t)per_cell + (size_t)(m % per_cell)];
        }
        __syncthreads();
        for (int o = k; any && o < outputs; o += Group)
            if (o % row < sim.nodes)
                nbody_i_make_output<Order>(sim, law, at, o / row, o % row, slot, masses);
    }
}

/* Where M2L is by powers: a thread for each node. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_series_nodes_kernel(__grid_constant__ const nbody_device device, int potential)
{
    const nbody &sim = device.sim;
    nbody_i_law const law = nbody_i_bare_law(&sim, potential);
    int64_t const first = (int64_t)sim.frame->level_first[2] * sim.nodes,
                  end = (int64_t)sim.frame->cells * sim.nodes;
    for (int64_t k = first + nbody_i_thread(); k < end; k += nbody_i_threads()) {
        int32_t const at = (int32_t)(k / sim.nodes), a = (int32_t)(k % sim.nodes);
        nbody_i_target t = nbody_i_node(&sim, at, a);
        nbody_i_add_local(&sim, &law, at, a, &t);
        nbody_i_store_node(&sim, &law, at, a, &t);
    }
}

/* ----------------------------------------------------------------------------------------------
   >>open: NBODY_FAST, P2L (list 4): bodies of larger leaves that touch the parent and not the cell,
   on its nodes. A warp for each cell. Where there are few nodes, groups of lanes take bodies in
   turn.
   ---------------------------------------------------------------------------------------------- */

/* One body, from the corner of the cell on, on a node. */
template <int Law, bool Potential>
__device__ __forceinline__ void nbody_i_add_open(const nbody_i_law &law, nbody_real x, nbody_real y,
                                                 nbody_real m, nbody_i_target &t)
{
    nbody_real const dx = x - t.x, dy = y - t.y, d2 = dx * dx + dy * dy, u = d2 + law.soften2;
    nbody_real const root = nbody_i_fast_root(u), square = root * root;
    nbody_real const mg = Law == NBODY_INVERSE ? m * square : m * root * square;
    t.partial[NBODY_I_X] += mg * dx;
    t.partial[NBODY_I_Y] += mg * dy;
    if (Potential && nbody_i_in_potential(&law, d2, 0))
        t.partial[NBODY_I_POTENTIAL] += m * nbody_i_potential(&law, u, root);
}

/* Bodies of several leaves in a row: `before` of them are in leaves of lanes before this one, and
   the leaf of this lane begins at place `first`. */
struct nbody_i_open_list { int32_t first, before, all; };

__device__ __forceinline__ nbody_i_open_list nbody_i_open_list_of(const nbody &sim, int32_t leaf,
                                                                  bool acts)
{
    int32_t const count = acts ? nbody_i_acting(&sim.cell[leaf]) : 0;
    int32_t sum = count;
#pragma unroll
    for (int step = 1; step < 16; step *= 2) { /* of 9 */
        int32_t const below = __shfl_up_sync(nbody_i_all_lanes, sum, step);
        if ((int)threadIdx.x % 32 >= step) sum += below;
    }
    return {acts ? sim.cell[leaf].first : 0, sum - count,
            __shfl_sync(nbody_i_all_lanes, sum, 8)};
}

/* The place of number k of the list: that of the last lane that begins at or before it. All lanes
   must call it. */
__device__ __forceinline__ int32_t nbody_i_open_place(const nbody_i_open_list &list, int32_t k)
{
    int32_t place = 0;
#pragma unroll
    for (int lane = 0; lane < 9; lane++) {
        int32_t const before = __shfl_sync(nbody_i_all_lanes, list.before, lane),
                      first = __shfl_sync(nbody_i_all_lanes, list.first, lane);
        if (before <= k) place = first + k - before;
    }
    return place;
}

/* A lane fetches one body, and all nodes have it from there: a body is moved to the corner once. */
template <int Law, bool Potential>
__device__ void nbody_i_open_cell(const nbody &sim, const nbody_i_law &law, int32_t at,
                                  const nbody_i_open_list &list)
{
    int const lane = (int)threadIdx.x % 32, nodes = sim.nodes;
    int const parts = nodes <= 4 ? 8 : nodes <= 16 ? 2 : 1, step = 32 / parts;
    const nbody_cell *cell = &sim.cell[at];
    double const corner[2] = {nbody_i_corner_of(&sim, cell, 0), nbody_i_corner_of(&sim, cell, 1)};
    for (int32_t first = 0; first < nodes; first += step) {
        int32_t const a = first + lane % step;
        nbody_i_target t = nbody_i_node(&sim, at, a < nodes ? a : 0);
        for (int32_t from = 0; from < list.all; from += 32) {
            int32_t const k = from + lane, place = nbody_i_open_place(list, k);
            nbody_real x = 0, y = 0, m = 0;
            if (k < list.all) {
                x = (nbody_real)((double)sim.x[place] - corner[0]);
                y = (nbody_real)((double)sim.y[place] - corner[1]);
                m = sim.acts[place];
            }
            int32_t const left = list.all - from, count = left < 32 ? left : 32;
#pragma unroll 4
            for (int s = 0; s < count; s += parts) {
                int const of = s + lane / step;
                nbody_real const sx = __shfl_sync(nbody_i_all_lanes, x, of),
                                 sy = __shfl_sync(nbody_i_all_lanes, y, of),
                                 sm = __shfl_sync(nbody_i_all_lanes, m, of);
                if (of < count) nbody_i_add_open<Law, Potential>(law, sx, sy, sm, t);
            }
            nbody_i_carry_target(&t);
        }
#pragma unroll
        for (int p = 0; p < NBODY_I_PARTS - !Potential; p++) {
            nbody_real sum = t.total[p] + t.compensation[p];
            for (int across = step; across < 32; across *= 2)
                sum += __shfl_xor_sync(nbody_i_all_lanes, sum, across);
            if (lane < step && a < nodes)
                nbody_i_part_of(sim, p)[(size_t)at * (size_t)nodes + (size_t)a] += sum;
        }
    }
}

/* Is a leaf adjacent to the parent of a cell? */
__device__ __forceinline__ bool nbody_i_leaf_beside_parent(const nbody &sim, int32_t at)
{
    const nbody_cell &parent = sim.cell[sim.cell[at].parent];
    bool any = false;
#pragma unroll
    for (int k = 0; k < 9; k++)
        any |= k < parent.beside_count && sim.cell[parent.beside[k]].child < 0;
    return any;
}

/* A warp looks at 32 cells, far from each other: those with much to do lie together. */
template <int Law, bool Potential>
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_open_kernel(__grid_constant__ const nbody_device device)
{
    const nbody &sim = device.sim;
    nbody_i_law const law = nbody_i_bare_law<Law>(&sim, Potential);
    int const lane = (int)threadIdx.x % 32;
    int64_t const warps = nbody_i_threads() / 32, end = sim.frame->cells;
    for (int64_t from = sim.frame->level_first[2] + nbody_i_thread() / 32; from < end;
         from += 32 * warps) {
        int64_t const mine = from + lane * warps;
        unsigned left = __ballot_sync(
            nbody_i_all_lanes, mine < end && nbody_i_leaf_beside_parent(sim, (int32_t)mine));
        for (; left; left &= left - 1) {
            int32_t const at = (int32_t)(from + (__ffs((int)left) - 1) * warps);
            const nbody_cell &cell = sim.cell[at], &parent = sim.cell[cell.parent];
            int32_t const leaf = lane < parent.beside_count ? parent.beside[lane] : -1;
            bool const acts = leaf >= 0 && sim.cell[leaf].child < 0 &&
                              !nbody_i_touch_fast(sim, &sim.cell[leaf], &cell);
            nbody_i_open_list const list = nbody_i_open_list_of(sim, leaf, acts);
            if (list.all > 0) nbody_i_open_cell<Law, Potential>(sim, law, at, list);
        }
    }
}

/* ----------------------------------------------------------------------------------------------
   >>transfer: NBODY_FAST, M2M and L2L between parents and children, level by level in one kernel, a
   thread for each node
   ---------------------------------------------------------------------------------------------- */

/* The weights between a parent's nodes and those of a child in half `bit`, in shared memory. With
   linear interpolation all but two are 0. */
struct nbody_i_transfer {
    /* [bit][child's][parent's, from `first` on] */
    nbody_real weight[2][nbody_i_fast_order][nbody_i_fast_order];
    int32_t first[2][nbody_i_fast_order];
};

__device__ void nbody_i_load_transfer(const nbody_rule &rule, nbody_i_transfer &transfer)
{
    int const t = (int)threadIdx.x, bit = t / nbody_i_fast_order, a = t % nbody_i_fast_order;
    if (bit < 2 && a < rule.side) {
        int first = 0;
        while (first < rule.side - rule.stencil &&
               !(rule.to_child[bit][a][first] > 0 || rule.to_child[bit][a][first] < 0))
            first++;
        transfer.first[bit][a] = first;
        for (int i = 0; i < rule.stencil; i++)
            transfer.weight[bit][a][i] = rule.to_child[bit][a][first + i];
    }
    __syncthreads();
}

/* The weights of M2M: transposed, >>up; [bit][parent's][child's] */
struct __align__(16) nbody_i_gather {
    nbody_real weight[2][nbody_i_fast_order][nbody_i_fast_order];
};

/* M2M, CHEBYSHEV: the masses of a level's cells that are not leaves, from their children's. */
template <int Order>
__device__ __forceinline__ void nbody_i_m2m(const nbody &sim, int level,
                                            const nbody_i_gather &gather)
{
    int const side = Order > 0 ? Order : sim.rule.side, points = side * side;
    int32_t const first = sim.frame->level_first[level];
    int64_t const all = (int64_t)(sim.frame->level_first[level + 1] - first) * points;
    for (int64_t k = nbody_i_thread(); k < all; k += nbody_i_threads()) {
        int32_t const at = first + (int32_t)(k / points);
        int const i = (int)(k % points) % side, j = (int)(k % points) / side,
                  quarters = sim.cell[at].quarters;
        nbody_real sum = 0;
        if (quarters % NBODY_I_CROWD == 0) continue; /* a leaf */
        const nbody_real *mass = sim.vm + (size_t)sim.cell[at].child * (size_t)points;
#pragma unroll
        for (int q = 0; q < 4; q++) {
            if (!(quarters >> q & 1)) continue;
#pragma unroll 4
            for (int b = 0; b < side; b++)
                sum += gather.weight[q >> 1][j][b] *
                       nbody_i_dot<Order>(gather.weight[q & 1][i], mass + b * side, side);
            mass += points;
        }
        sim.vm[(size_t)at * (size_t)points + (size_t)(k % points)] = sum;
    }
}

/* From the last level but one, as the last has only leaves, to level 2. */
template <int Order> __global__ void __launch_bounds__(nbody_i_block_threads, nbody_i_blocks_per_sm)
    nbody_i_m2m_kernel(__grid_constant__ const nbody_device device, nbody_i_facts *facts)
{
    const nbody &sim = device.sim;
    __shared__ nbody_i_gather gather;
    int const side = Order > 0 ? Order : sim.rule.side, points = side * side;
    for (int w = (int)threadIdx.x; w < 2 * points; w += nbody_i_block_threads)
        gather.weight[w / points][w % side][w % points / side] =
            sim.rule.to_child[w / points][w % points / side][w % side];
    __syncthreads();
    for (int level = sim.frame->levels - 2; level >= 2; level--) {
        nbody_i_m2m<Order>(sim, level, gather);
        if (level > 2) nbody_i_wait_for_all(&facts->arrived[NBODY_I_M2M_WAIT]);
    }
}

/* L2L: adds the parents' expansions to those of a level. */
template <int Order>
__device__ __forceinline__ void nbody_i_l2l_fast(const nbody &sim, int parts, int level,
                                                 const nbody_i_transfer &transfer)
{
    int const side = Order > 0 ? Order : sim.rule.side,
              stencil = Order > 0 ? Order : sim.rule.stencil, nodes = side * side;
    int32_t const first = sim.frame->level_first[level];
    int64_t const all = (int64_t)(sim.frame->level_first[level + 1] - first) * nodes;
    for (int64_t k = nbody_i_thread(); k < all; k += nbody_i_threads()) {
        int const a = (int)(k % nodes);
        int32_t const at = first + (int32_t)(k / nodes);
        const nbody_cell *cell = &sim.cell[at];
        int const bx = cell->x & 1, by = cell->y & 1, i = a % side, j = a / side;
        size_t const from = (size_t)cell->parent * (size_t)nodes +
                            (size_t)(transfer.first[bx][i] + transfer.first[by][j] * side);
        for (int p = 0; p < parts; p++) {
            nbody_real *value = nbody_i_part_of(sim, p);
            nbody_real sum = 0;
#pragma unroll 4
            for (int row = 0; row < stencil; row++)
                sum += transfer.weight[by][j][row] *
                       nbody_i_dot<Order>(transfer.weight[bx][i], value + from + row * side,
                                          stencil);
            value[(size_t)at * (size_t)nodes + (size_t)a] += sum;
        }
    }
}

/* From level 3 to the last. */
template <int Order>
__global__ void __launch_bounds__(nbody_i_block_threads, nbody_i_blocks_per_sm)
    nbody_i_l2l_kernel(__grid_constant__ const nbody_device device, int parts,
                       nbody_i_facts *facts)
{
    const nbody &sim = device.sim;
    __shared__ nbody_i_transfer transfer;
    nbody_i_load_transfer(sim.rule, transfer);
    for (int level = 3; level < sim.frame->levels; level++) {
        nbody_i_l2l_fast<Order>(sim, parts, level, transfer);
        if (level + 1 < sim.frame->levels)
            nbody_i_wait_for_all(&facts->arrived[NBODY_I_L2L_WAIT]);
    }
}

/* ----------------------------------------------------------------------------------------------
   >>fast-leaves: NBODY_FAST, P2M, and direct summation
   ---------------------------------------------------------------------------------------------- */

/* P2M, CHEBYSHEV: a warp for each leaf of any level. A lane computes the weights of one body, for
   32 bodies at a time; then each point's lane sums over those. Where there are few points, groups
   of lanes take bodies in turn. Rows have 33 numbers, to avoid bank conflicts between lanes of
   different points. */
constexpr int nbody_i_leaf_warps = 4;

/* x times mass */
struct nbody_i_leaf_weights { nbody_real x[nbody_i_fast_order][33], y[nbody_i_fast_order][33]; };

template <int Order>
__device__ void nbody_i_leaf_by_warp(const nbody &sim, int32_t at, nbody_i_leaf_weights &weights)
{
    nbody_cell const cell = sim.cell[at];
    constexpr int turns =
        ((Order > 0 ? Order * Order : nbody_i_fast_order * nbody_i_fast_order) + 31) / 32;
    int const lane = (int)threadIdx.x % 32, side = Order > 0 ? Order : sim.rule.side,
              points = side * side;
    /* lanes of a group */
    int const parts = points == 4 ? 8 : points == 16 ? 2 : 1, step = 32 / parts;
    double sum[turns] = {};
    int32_t const all = nbody_i_acting(&cell);
    for (int32_t first = 0; first < all; first += 32) {
        int32_t const b = cell.first + first + lane;
        __syncwarp();
        if (first + lane < all) {
            nbody_i_stencil const sx = nbody_i_fast_stencil<Order>(
                sim.rule, nbody_i_within(sim.frame, cell.level, 0, cell.x, sim.x[b]));
            nbody_i_stencil const sy = nbody_i_fast_stencil<Order>(
                sim.rule, nbody_i_within(sim.frame, cell.level, 1, cell.y, sim.y[b]));
#pragma unroll 4
            for (int i = 0; i < side; i++) {
                weights.x[i][lane] = sim.acts[b] * sx.weight[i];
                weights.y[i][lane] = sy.weight[i];
            }
        }
        __syncwarp();
        int const bodies = all - first < 32 ? all - first : 32;
#pragma unroll
        for (int turn = 0; turn < turns; turn++) {
            int const p = (parts > 1 ? lane % step : lane) + 32 * turn;
            if (p >= points) continue;
            nbody_real some = 0;
            for (int s = parts > 1 ? lane / step : 0; s < bodies; s += parts)
                some += weights.x[p % side][s] * weights.y[p / side][s];
            sum[turn] += (double)some;
        }
    }
    for (int across = step; across < 32 && parts > 1; across *= 2)
        sum[0] += __shfl_xor_sync(nbody_i_all_lanes, sum[0], across);
#pragma unroll
    for (int turn = 0; turn < turns; turn++) {
        int const p = lane + 32 * turn;
        if (p < points) sim.vm[(size_t)at * (size_t)points + (size_t)p] = (nbody_real)sum[turn];
    }
}

template <int Order> __global__ void __launch_bounds__(32 * nbody_i_leaf_warps)
    nbody_i_leaves_fast_kernel(__grid_constant__ const nbody_device device)
{
    const nbody &sim = device.sim;
    __shared__ nbody_i_leaf_weights weights[nbody_i_leaf_warps];
    int32_t const end = sim.frame->cells;
    for (int64_t at = sim.frame->level_first[2] + nbody_i_thread() / 32; at < end;
         at += nbody_i_threads() / 32)
        if (sim.cell[at].child < 0)
            nbody_i_leaf_by_warp<Order>(sim, (int32_t)at, weights[threadIdx.x / 32]);
}

/* Direct summation: targets in the registers of each thread, sources through shared memory. So that
   few bodies fill the GPU too, the sources are cut into `parts` of whole tiles, a block for each;
   then the sums of all parts, in `to`, are added in their order. */

/* Adds a tile of sources, which begins at place `from`, to a thread's targets. */
template <class Pairs>
__device__ __forceinline__ void nbody_i_direct_tile(Pairs &pairs, const nbody_i_law &law,
                                                    const nbody_i_mass_point *tile, int32_t from)
{
    for (int run = 0; run < nbody_i_direct_threads; run += NBODY_CHUNK) {
#pragma unroll 4
        for (int s = run; s < run + NBODY_CHUNK; s++) {
            nbody_i_mass_point const source = tile[s];
#pragma unroll
            for (int t = 0; t < Pairs::of_lane; t++)
                nbody_i_pair(pairs, t, law, source, from + s == pairs.place[t]);
        }
        nbody_i_carry_pairs(pairs);
    }
}

/* Stores the sums of a thread's targets: the results, or those of one of several parts. */
template <class Pairs>
__device__ __forceinline__ void nbody_i_direct_store(const nbody &sim, const Pairs &pairs,
                                                     int32_t part, int32_t parts, nbody_real *to,
                                                     const nbody_i_outcome &out)
{
#pragma unroll
    for (int t = 0; t < Pairs::of_lane; t++) {
        int32_t const place = pairs.place[t];
        nbody_real const total[NBODY_I_PARTS] = {pairs.total[0][t], pairs.total[1][t],
                                                 pairs.total[2][t]};
        nbody_real const rest[NBODY_I_PARTS] = {pairs.compensation[0][t],
                                                pairs.compensation[1][t],
                                                pairs.compensation[2][t]};
        if (place >= sim.n) continue;
        if (parts == 1) nbody_i_store(&sim, &out, sim.id[place], total, rest);
        for (int p = 0; p < Pairs::parts && parts > 1; p++)
            to[(size_t)(part * NBODY_I_PARTS + p) * (size_t)sim.n + (size_t)place] =
                total[p] + rest[p];
    }
}

template <int Law, bool Potential, int T>
__global__ void __launch_bounds__(nbody_i_direct_threads, T > 2 ? 2 : 4)
    nbody_i_direct_kernel(__grid_constant__ const nbody_device device, int32_t parts,
                          nbody_real *to, nbody_i_outcome out)
{
    const nbody &sim = device.sim;
    nbody_i_law const law = nbody_i_bare_law<Law>(&sim, Potential);
    __shared__ nbody_i_mass_point tile[nbody_i_direct_threads];
    nbody_i_pairs<Law, Potential, false, T> pairs;
    int32_t const part = (int32_t)blockIdx.x % parts, tiles = nbody_i_direct_tiles(sim.n),
                  begin = (int32_t)((int64_t)tiles * part / parts) * nbody_i_direct_threads,
                  end = (int32_t)((int64_t)tiles * (part + 1) / parts) * nbody_i_direct_threads,
                  first = (int32_t)blockIdx.x / parts * nbody_i_direct_threads * T;
#pragma unroll
    for (int t = 0; t < T; t++) {
        int32_t const place = first + t * nbody_i_direct_threads + (int32_t)threadIdx.x,
                      at = place < sim.n ? place : 0;
        nbody_i_aim(pairs, t, sim.x[at], sim.y[at], place);
    }
    for (int32_t from = begin; from < end; from += nbody_i_direct_threads) {
        int32_t const mine = from + (int32_t)threadIdx.x;
        __syncthreads();
        tile[threadIdx.x] = {0, 0, 0, 0};
        if (mine < sim.n) tile[threadIdx.x] = {sim.x[mine], sim.y[mine], sim.m[mine], 0};
        __syncthreads();
        nbody_i_direct_tile(pairs, law, tile, from);
    }
    nbody_i_direct_store(sim, pairs, part, parts, to, out);
}

/* The sums of all parts: a thread for each body. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_direct_parts_kernel(__grid_constant__ const nbody_device device, int32_t parts,
                                int components, const nbody_real *from, nbody_i_outcome out)
{
    const nbody &sim = device.sim;
    int64_t const place = nbody_i_thread();
    nbody_real total[NBODY_I_PARTS] = {0, 0, 0}, compensation[NBODY_I_PARTS] = {0, 0, 0};
    if (place >= sim.n) return;
    for (int32_t part = 0; part < parts; part++)
        for (int p = 0; p < components; p++) {
            nbody_real sum = from[(size_t)(part * NBODY_I_PARTS + p) * (size_t)sim.n +
                                  (size_t)place];
            nbody_i_carry(&sum, &total[p], &compensation[p]);
        }
    nbody_i_store(&sim, &out, sim.id[place], total, compensation);
}

/* ----------------------------------------------------------------------------------------------
   >>deep-cuda: trees of more than NBODY_KEY_LEVELS levels, as >>deep in nbody.h

   Only where desc.levels asks for them: the host has to know how many levels there will be, for its
   launches and its memory. So it waits once, for whether bodies cluster in the tree of one key.
   ---------------------------------------------------------------------------------------------- */

/* Sorts, and makes the cells. */
nbody_result nbody_i_cuda_leaves(nbody_cuda *gpu, const nbody_i_input &input, cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    nbody_i_facts *facts = nbody_i_scratch<nbody_i_facts>(gpu, NBODY_I_FACTS);
    nbody_i_order order = {};
    nbody_result result = nbody_i_cuda_sort(gpu, input, &order, stream);
    if (result != NBODY_OK) return result;
    if (sim->desc.stage != NBODY_ONE_THREAD) return nbody_i_cuda_cells(gpu, order, stream);
    int32_t const room = nbody_i_cell_room(&sim->desc, sim->n);
    result = nbody_i_launch(gpu, stream, 1, 1, nbody_i_cells_one_kernel, gpu->device, order, room,
                            facts);
    if (result != NBODY_OK) return result;
    return nbody_i_cuda_chunks(gpu, stream);
}

/* As nbody_i_is_too_shallow. A block for each cell of the last level. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_too_shallow_kernel(__grid_constant__ const nbody_device device, nbody_i_facts *facts)
{
    const nbody &sim = device.sim;
    int32_t const *first = sim.frame->level_first;
    for (int32_t c = first[NBODY_KEY_LEVELS - 1] + (int32_t)blockIdx.x; c < first[NBODY_KEY_LEVELS];
         c += (int32_t)gridDim.x) {
        nbody_cell const cell = sim.cell[c];
        bool apart = sim.desc.leaf == 0;
        if (cell.count <= sim.desc.leaf) continue;
        for (int32_t k = (int32_t)threadIdx.x; k < cell.count && !apart; k += nbody_i_block_threads)
            apart = nbody_i_is_apart(&sim, &cell, k);
        if (apart) atomicMax(&facts->too_shallow, 1);
    }
}

/* The frame of a deep tree, before its cells. */
__global__ void nbody_i_begin_deep_kernel(__grid_constant__ const nbody_device device,
                                          nbody_frame frame, nbody_i_facts *facts)
{
    *device.sim.frame = frame;
    device.sim.cell[0] = nbody_i_root(device.sim.n);
    facts->undivided = facts->crowds = 0;
}

/* Is a deep tree called for, of up to so many levels? Then *frame is its frame. Waits. */
nbody_result nbody_i_cuda_deepen(nbody_cuda *gpu, int32_t levels, nbody_frame *frame, bool *deep,
                                 cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    nbody_i_facts *d_facts = nbody_i_scratch<nbody_i_facts>(gpu, NBODY_I_FACTS), facts;
    int64_t const cells = nbody_i_level_bound(&sim->desc, sim->n, NBODY_KEY_LEVELS - 1);
    nbody_result const result =
        nbody_i_launch(gpu, stream, nbody_i_blocks_for(cells, nbody_i_block_threads),
                       nbody_i_block_threads, nbody_i_too_shallow_kernel, gpu->device, d_facts);
    if (result != NBODY_OK) return result;
    if (nbody_i_failed(gpu, cudaMemcpyAsync(&facts, d_facts, sizeof facts, cudaMemcpyDeviceToHost,
                                            stream)) ||
        nbody_i_failed(gpu, cudaMemcpyAsync(frame, sim->frame, sizeof *frame,
                                            cudaMemcpyDeviceToHost, stream)) ||
        nbody_i_failed(gpu, cudaStreamSynchronize(stream)))
        return NBODY_CUDA_ERROR;
    nbody host = *sim;
    host.frame = frame;
    *deep = facts.too_shallow && !facts.too_large && frame->deepest >= NBODY_KEY_LEVELS &&
            nbody_i_deepen(&host, levels);
    if (!*deep) return NBODY_OK;
    sim->desc.levels = host.desc.levels;
    memset(frame->level_first, 0, sizeof frame->level_first);
    frame->level_first[1] = 1;
    frame->levels = frame->cells = frame->cells_needed = 0;
    return NBODY_OK;
}

/* After the tree of one key: a deep one in its place, if bodies cluster. */
nbody_result nbody_i_cuda_deep_leaves(nbody_cuda *gpu, const nbody_i_input &input, int32_t levels,
                                      bool potential, cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    nbody_frame frame;
    bool deep = false;
    nbody_result result = nbody_i_cuda_deepen(gpu, levels, &frame, &deep, stream);
    if (result != NBODY_OK || !deep) return result;
    if (sim->desc.stage == NBODY_FAST) sim->desc.stage = NBODY_SHARED_MEMORY;
    result = nbody_i_cuda_prepare(gpu, sim->n, potential, NBODY_I_AHEAD, stream);
    if (result == NBODY_OK)
        result = nbody_i_launch(gpu, stream, 1, 1, nbody_i_begin_deep_kernel, gpu->device, frame,
                                nbody_i_scratch<nbody_i_facts>(gpu, NBODY_I_FACTS));
    return result == NBODY_OK ? nbody_i_cuda_leaves(gpu, input, stream) : result;
}

/* ----------------------------------------------------------------------------------------------
   >>api-cuda: which kernels, in which order
   ---------------------------------------------------------------------------------------------- */

nbody_result nbody_i_cuda_level_sources(nbody_cuda *gpu, int level, cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    int64_t const cells = nbody_i_level_bound(&sim->desc, sim->n, level);
    int64_t const blocks = nbody_i_blocks_for(cells, NBODY_CHUNK);
    nbody_stage const stage = sim->desc.stage;
    nbody_result result = NBODY_OK;
    if (sim->desc.sources == NBODY_MASS_CENTRES)
        return stage == NBODY_MANY_THREADS
                   ? nbody_i_launch(gpu, stream, blocks, NBODY_CHUNK, nbody_i_centres_kernel<false>,
                                    gpu->device, level)
                   : nbody_i_launch(gpu, stream, blocks, NBODY_CHUNK, nbody_i_centres_kernel<true>,
                                    gpu->device, level);
    if (stage == NBODY_SHARED_MEMORY)
        result = nbody_i_launch(gpu, stream, blocks, NBODY_CHUNK, nbody_i_leaves_kernel,
                                gpu->device, level);
    if (result != NBODY_OK) return result;
    return nbody_i_launch(gpu, stream, nbody_i_at_most(cells * sim->per_cell),
                          nbody_i_block_threads, nbody_i_points_kernel, gpu->device, level,
                          stage == NBODY_MANY_THREADS);
}

/* NBODY_FAST, CHEBYSHEV: the leaves of all levels, then the other cells. */
nbody_result nbody_i_cuda_fast_sources(nbody_cuda *gpu, cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    nbody_i_facts *facts = nbody_i_scratch<nbody_i_facts>(gpu, NBODY_I_FACTS);
    int const block = 32 * nbody_i_leaf_warps;
    bool const four = sim->desc.order == 4;
    int64_t const leaves = nbody_i_blocks_for(
        nbody_i_cell_room(&sim->desc, sim->n) / nbody_i_leaf_warps + 1, block);
    nbody_result const result = nbody_i_launch(
        gpu, stream, leaves, block,
        four ? nbody_i_leaves_fast_kernel<4> : nbody_i_leaves_fast_kernel<0>, gpu->device);
    if (result != NBODY_OK) return result;
    return nbody_i_launch_cooperative(gpu, stream,
                                   four ? nbody_i_m2m_kernel<4> : nbody_i_m2m_kernel<0>,
                                   gpu->device, facts);
}

/* P2M and M2M, from the last level to level 2. */
nbody_result nbody_i_cuda_sources(nbody_cuda *gpu, cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    nbody_result result = NBODY_OK;
    if (sim->desc.stage == NBODY_ONE_THREAD)
        return nbody_i_launch(gpu, stream, 1, 1, nbody_i_sources_one_kernel, gpu->device);
    if (sim->desc.sources == NBODY_CHEBYSHEV && sim->desc.stage == NBODY_FAST)
        return nbody_i_cuda_fast_sources(gpu, stream);
    int levels = sim->desc.levels;
    if (sim->desc.stage == NBODY_FAST && sim->desc.leaf > 0) {
        levels = nbody_i_usual_levels(&sim->desc, sim->n);
        result = nbody_i_launch_waiting(gpu, stream, NBODY_CHUNK, nbody_i_deep_centres_kernel,
                                        gpu->device, levels,
                                        nbody_i_scratch<nbody_i_facts>(gpu, NBODY_I_FACTS));
    }
    for (int level = levels - 1; level >= 2 && result == NBODY_OK; level--)
        result = nbody_i_cuda_level_sources(gpu, level, stream);
    return result;
}

/* NBODY_FAST: the nodes of all levels from the series, without P2L and L2L. */
nbody_result nbody_i_cuda_series_nodes(nbody_cuda *gpu, bool potential, cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    int64_t const nodes = (int64_t)nbody_i_cell_room(&sim->desc, sim->n) * sim->nodes;
    return nbody_i_launch(gpu, stream, nbody_i_at_most(nodes), nbody_i_block_threads,
                          nbody_i_series_nodes_kernel, gpu->device, (int)potential);
}

/* NBODY_FAST, CHEBYSHEV: M2L of all levels. */
template <bool Potential> nbody_result nbody_i_cuda_families(nbody_cuda *gpu, cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    int const order = sim->desc.order, one = nbody_i_family_threads;
    int64_t const parents = nbody_i_cell_room(&sim->desc, sim->n);
    int64_t const several = nbody_i_blocks_for(parents / 4 + 1, one),
                  single = nbody_i_blocks_for(parents, one);
    if constexpr (!Potential)
        if (order == 4)
            return nbody_i_launch(gpu, stream, several, one,
                                  nbody_i_families_kernel<Potential, 4, 32>, gpu->device);
    return nbody_i_launch(gpu, stream, single, one, nbody_i_families_kernel<Potential, 0, 128>,
                          gpu->device);
}

/* NBODY_FAST: the nodes; M2L and P2L for all levels at once, then L2L. */
template <int Law, bool Potential>
nbody_result nbody_i_cuda_fast_nodes(nbody_cuda *gpu, cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    int const block = nbody_i_threads_of_four;
    int64_t const cells = nbody_i_cell_room(&sim->desc, sim->n),
                  pieces = cells * ((sim->nodes + NBODY_CHUNK - 1) / NBODY_CHUNK);
    nbody_result result =
        sim->series ? nbody_i_cuda_series_nodes(gpu, Potential, stream)
        : sim->desc.sources == NBODY_CHEBYSHEV
            ? nbody_i_cuda_families<Potential>(gpu, stream)
            : nbody_i_launch(gpu, stream, nbody_i_blocks_for(pieces, block), block,
                             nbody_i_nodes_fast_kernel<Law, Potential>, gpu->device);
    if (result != NBODY_OK) return result;
    if (sim->desc.sources == NBODY_CHEBYSHEV)
        result = nbody_i_launch(
            gpu, stream, nbody_i_blocks_for(32 * cells / nbody_i_block_threads + 1,
                                            nbody_i_block_threads),
            nbody_i_block_threads, nbody_i_open_kernel<Law, Potential>, gpu->device);
    if (result != NBODY_OK) return result;
    return nbody_i_launch_cooperative(
        gpu, stream, sim->rule.side == 4 ? nbody_i_l2l_kernel<4> : nbody_i_l2l_kernel<0>,
        gpu->device, NBODY_I_PARTS - !Potential,
        nbody_i_scratch<nbody_i_facts>(gpu, NBODY_I_FACTS));
}

/* L2L and M2L, from level 2 to the last, one kernel for each level. */
nbody_result nbody_i_cuda_nodes(nbody_cuda *gpu, int potential, cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    bool const shared = sim->desc.stage == NBODY_SHARED_MEMORY;
    nbody_result result = NBODY_OK;
    for (int level = nbody_i_first_level(sim); level < sim->desc.levels && result == NBODY_OK;
         level++) {
        int64_t const cells = nbody_i_level_bound(&sim->desc, sim->n, level),
                      groups = (sim->nodes + NBODY_CHUNK - 1) / NBODY_CHUNK;
        result = shared
                     ? nbody_i_launch(gpu, stream, nbody_i_blocks_for(cells * groups, NBODY_CHUNK),
                                      NBODY_CHUNK, nbody_i_nodes_shared_kernel, gpu->device,
                                      potential, level)
                     : nbody_i_launch(gpu, stream, nbody_i_at_most(cells * sim->nodes),
                                      nbody_i_block_threads, nbody_i_nodes_kernel, gpu->device,
                                      potential, level);
    }
    return result;
}

/* NBODY_FAST, DIRECT. */
template <int Law, bool Potential>
nbody_result nbody_i_cuda_direct(nbody_cuda *gpu, const nbody_i_outcome &out, cudaStream_t stream)
{
    const nbody *sim = &gpu->device.sim;
    bool const few = sim->n < nbody_i_direct_many;
    constexpr int many = NBODY_I_REAL_KIND == 1 ? 8 : 4; /* 128 registers hold these */
    int const targets = few ? 2 : many, block = nbody_i_direct_threads;
    int32_t const parts = nbody_i_direct_parts(sim->n);
    int64_t const blocks = (sim->n + block * targets - 1) / (block * targets);
    nbody_real *to = nbody_i_scratch<nbody_real>(gpu, NBODY_I_PARTIAL);
    nbody_result const result = nbody_i_launch(
        gpu, stream, blocks * parts * block, block,
        few ? nbody_i_direct_kernel<Law, Potential, 2>
            : nbody_i_direct_kernel<Law, Potential, many>,
        gpu->device, parts, to, out);
    if (result != NBODY_OK || parts == 1) return result;
    return nbody_i_launch(gpu, stream, sim->n, nbody_i_block_threads, nbody_i_direct_parts_kernel,
                          gpu->device, parts, NBODY_I_PARTS - !Potential,
                          static_cast<const nbody_real *>(to), out);
}

/* VIRTUAL_PARTICLES: the sums of groups, in *to. */
template <int Law, bool Potential>
nbody_result nbody_i_cuda_groups(nbody_cuda *gpu, int64_t blocks, nbody_real **to,
                                 cudaStream_t stream)
{
    const nbody *sim = &gpu->device.sim;
    if (!nbody_i_has_groups(&sim->desc)) return NBODY_OK;
    *to = nbody_i_scratch<nbody_real>(gpu, NBODY_I_PARTIAL);
    return nbody_i_launch(
        gpu, stream, blocks * nbody_i_threads_of_four, nbody_i_threads_of_four,
        nbody_i_groups_kernel<Law, Potential>, gpu->device,
        static_cast<const nbody_i_chunk *>(nbody_i_groups_of(gpu)),
        static_cast<const nbody_i_facts *>(nbody_i_scratch<nbody_i_facts>(gpu, NBODY_I_FACTS)),
        *to);
}

template <int Law, bool Potential> nbody_result nbody_i_cuda_fast_forces(nbody_cuda *gpu,
                                                                         const nbody_i_outcome &out,
                                                                         cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    int32_t const chunk = nbody_i_fast_chunk(&sim->desc);
    int const block = 2 * chunk; /* 2 targets a lane, 4 lanes a target */
    const nbody_i_chunk *chunks = nbody_i_scratch<nbody_i_chunk>(gpu, NBODY_I_CHUNKS);
    const int32_t *number = nbody_i_scratch<nbody_i_facts>(gpu, NBODY_I_FACTS)->pieces;
    int64_t const pieces = nbody_i_chunk_room(sim->n, nbody_i_cell_room(&sim->desc, sim->n));
    /* more would find nothing to do */
    int64_t const usual = 2 * (int64_t)sim->n / NBODY_CHUNK + 4096,
                  blocks = pieces < usual ? pieces : usual;
    nbody_real *far_away = nullptr;
    if (!sim->cell) return nbody_i_cuda_direct<Law, Potential>(gpu, out, stream);
    nbody_result const result =
        sim->nodes > 0 ? NBODY_OK
                       : nbody_i_cuda_groups<Law, Potential>(gpu, blocks, &far_away, stream);
    if (result != NBODY_OK) return result;
    using own = nbody_i_own_bodies;
    auto const kernel = sim->vxx ? nbody_i_bodies_fast_kernel<Law, Potential, true, -1, own>
                        : sim->nodes == 0
                            ? nbody_i_bodies_fast_kernel<Law, Potential, false, -1, own>
                        : sim->rule.side == 4
                            ? nbody_i_bodies_fast_kernel<Law, Potential, false, 4, own>
                            : nbody_i_bodies_fast_kernel<Law, Potential, false, 0, own>;
    return nbody_i_launch(gpu, stream, blocks * block, block, kernel, gpu->device, own{}, chunks,
                          number, static_cast<const nbody_real *>(far_away), out);
}

/* The nodes of all cells, and the tables that they need. */
nbody_result nbody_i_cuda_all_nodes(nbody_cuda *gpu, bool potential, cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    nbody_stage const stage = sim->desc.stage;
    nbody_result result = nbody_i_cuda_table(gpu, potential, stream);
    if (result != NBODY_OK) return result;
    if (sim->desc.periodic) result = nbody_i_cuda_image_nodes(gpu, potential, true, stream);
    if (result != NBODY_OK) return result;
    if (sim->series && stage != NBODY_ONE_THREAD) result = nbody_i_cuda_series(gpu, stream);
    if (result != NBODY_OK) return result;
    if (stage == NBODY_ONE_THREAD)
        return nbody_i_launch(gpu, stream, 1, 1, nbody_i_nodes_one_kernel, gpu->device,
                              (int)potential);
    if (stage != NBODY_FAST) return nbody_i_cuda_nodes(gpu, potential, stream);
    if (sim->desc.law != NBODY_INVERSE_SQUARE)
        return potential ? nbody_i_cuda_fast_nodes<NBODY_INVERSE, true>(gpu, stream)
                         : nbody_i_cuda_fast_nodes<NBODY_INVERSE, false>(gpu, stream);
    return potential ? nbody_i_cuda_fast_nodes<NBODY_INVERSE_SQUARE, true>(gpu, stream)
                     : nbody_i_cuda_fast_nodes<NBODY_INVERSE_SQUARE, false>(gpu, stream);
}

nbody_result nbody_i_cuda_forces(nbody_cuda *gpu, const nbody_i_outcome &out, cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    bool const potential = out.potential != nullptr;
    const nbody_i_chunk *chunks = nbody_i_scratch<nbody_i_chunk>(gpu, NBODY_I_CHUNKS);
    int64_t const pieces = sim->cell
                               ? nbody_i_chunk_room(sim->n, nbody_i_cell_room(&sim->desc, sim->n))
                               : (sim->n + NBODY_CHUNK - 1) / NBODY_CHUNK;
    if (sim->desc.periodic && !sim->cell) return nbody_i_cuda_direct_images(gpu, out, stream);
    nbody_result result = sim->nodes > 0 && sim->cell
                              ? nbody_i_cuda_all_nodes(gpu, potential, stream)
                              : NBODY_OK;
    if (result != NBODY_OK) return result;
    if (sim->desc.stage == NBODY_ONE_THREAD)
        return nbody_i_launch(gpu, stream, 1, 1, nbody_i_forces_one_kernel, gpu->device, out);
    if (sim->desc.stage == NBODY_FAST && sim->desc.law != NBODY_INVERSE_SQUARE)
        return potential ? nbody_i_cuda_fast_forces<NBODY_INVERSE, true>(gpu, out, stream)
                         : nbody_i_cuda_fast_forces<NBODY_INVERSE, false>(gpu, out, stream);
    if (sim->desc.stage == NBODY_FAST)
        return potential ? nbody_i_cuda_fast_forces<NBODY_INVERSE_SQUARE, true>(gpu, out, stream)
                         : nbody_i_cuda_fast_forces<NBODY_INVERSE_SQUARE, false>(gpu, out, stream);
    if (sim->desc.stage == NBODY_SHARED_MEMORY)
        return nbody_i_launch(gpu, stream, nbody_i_blocks_for(pieces, NBODY_CHUNK), NBODY_CHUNK,
                              nbody_i_bodies_shared_kernel, gpu->device, chunks, out);
    return nbody_i_launch(gpu, stream, nbody_i_at_most(pieces * NBODY_CHUNK), nbody_i_block_threads,
                          nbody_i_bodies_kernel, gpu->device, chunks, out);
}

/* Makes the square, sorts, and makes the cells and their sources. levels: as asked for; the tree of
   one key first. */
nbody_result nbody_i_cuda_make_tree(nbody_cuda *gpu, const nbody_i_input &input, int32_t levels,
                                    bool potential, cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    nbody_i_facts *facts = nbody_i_scratch<nbody_i_facts>(gpu, NBODY_I_FACTS);
    bool const any_sign = sim->desc.method == NBODY_DIRECT || sim->desc.sources == NBODY_CHEBYSHEV;
    if (nbody_i_failed(gpu, cudaMemsetAsync(facts, 0, sizeof *facts, stream)))
        return NBODY_CUDA_ERROR;
    nbody_result result =
        nbody_i_launch(gpu, stream, nbody_i_at_most(sim->n), nbody_i_block_threads,
                       nbody_i_bounds_kernel, input, sim->n, any_sign, facts);
    if (result != NBODY_OK) return result;
    result = nbody_i_launch(gpu, stream, 1, 1, nbody_i_frame_kernel, gpu->device, facts);
    if (result != NBODY_OK) return result;
    if (sim->desc.periodic) result = nbody_i_cuda_lattice(gpu, stream);
    if (result != NBODY_OK || sim->n == 0) return result;
    if (!sim->cell)
        return nbody_i_launch(gpu, stream, sim->n, nbody_i_block_threads, nbody_i_place_kernel,
                              gpu->device, input, static_cast<const int32_t *>(nullptr));
    result = nbody_i_cuda_leaves(gpu, input, stream);
    if (result != NBODY_OK) return result;
    if (levels > NBODY_KEY_LEVELS)
        result = nbody_i_cuda_deep_leaves(gpu, input, levels, potential, stream);
    return result == NBODY_OK ? nbody_i_cuda_sources(gpu, stream) : result;
}

/* Everything up to the forces; a failure leaves it empty. */
nbody_result nbody_i_cuda_evaluate(nbody_cuda *gpu, const nbody_desc *desc,
                                   const nbody_i_input &input, int32_t n, nbody_i_purpose purpose,
                                   cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    bool const potential = purpose == NBODY_I_FOR_POTENTIALS;
    nbody_i_make_empty(sim);
    nbody_result result = nbody_i_check_input(&input, n);
    if (result == NBODY_OK) result = nbody_i_cuda_begin(gpu, desc, n, purpose, stream);
    if (result == NBODY_OK && potential && !nbody_i_has_potential(&sim->desc))
        result = NBODY_BAD_ARGUMENT;
    int32_t const levels = sim->desc.levels;
    if (levels > NBODY_KEY_LEVELS) sim->desc.levels = NBODY_KEY_LEVELS;
    if (result == NBODY_OK) result = nbody_i_cuda_prepare(gpu, n, potential, NBODY_I_AHEAD, stream);
    sim->n = n;
    if (result == NBODY_OK)
        result = nbody_i_cuda_make_tree(gpu, input, levels, potential, stream);
    if (result == NBODY_OK) return NBODY_OK;
    int32_t const error = sim->cuda_error;
    nbody_i_make_empty(sim);
    sim->cuda_error = error;
    return result;
}

/* Memory for n bodies or fewer. Fewer can have smaller leaves (nbody_i_even_leaf), and so room for
   more cells: for no more than leaves of 0.8 times as many bodies have. */
nbody_result nbody_i_cuda_reserve_for(nbody_cuda *gpu, const nbody_desc *desc, int32_t n,
                                      nbody_i_purpose purpose, cudaStream_t stream)
{
    nbody_desc *own = &gpu->device.sim.desc;
    nbody_result const result = nbody_i_cuda_begin(gpu, desc, n, purpose, stream);
    if (result != NBODY_OK) return result;
    if (!desc || (desc->leaf == 0 && desc->levels == 0)) own->leaf = own->leaf * 4 / 5;
    return nbody_i_cuda_prepare(gpu, n, true, NBODY_I_EXACT, stream);
}

} /* namespace */

NBODY_API nbody_result nbody_cuda_reserve(nbody_cuda *gpu, const nbody_desc *desc, int32_t n,
                                          struct CUstream_st *stream)
{
    if (!gpu || n < 0) return NBODY_BAD_ARGUMENT;
    nbody *sim = &gpu->device.sim;
    nbody_i_make_empty(sim);
    if (n > NBODY_I_N_MAX) return NBODY_TOO_MANY;
    nbody_result result = NBODY_OK;
    /* NBODY_AUTO may choose differently for each, and DIRECT for few */
    for (nbody_i_purpose purpose :
         {NBODY_I_FOR_FORCES, NBODY_I_FOR_POTENTIALS, NBODY_I_FOR_TREE}) {
        result = nbody_i_cuda_reserve_for(gpu, desc, n, purpose, stream);
        int32_t const few = nbody_i_cuda_few(&sim->desc, purpose);
        bool const chooses = !desc || (desc->method == NBODY_AUTO && !desc->periodic);
        if (result == NBODY_OK && chooses && few < n)
            result = nbody_i_cuda_reserve_for(gpu, desc, few, purpose, stream);
        if (result != NBODY_OK) break;
    }
    if (result == NBODY_OK && sim->desc.periodic) result = nbody_i_host_lattice(sim, nullptr);
    int32_t const error = sim->cuda_error;
    nbody_i_make_empty(sim);
    sim->cuda_error = error;
    return result;
}

NBODY_API nbody_result nbody_cuda_build(nbody_cuda *gpu, const nbody_desc *desc,
                                        const nbody_real *d_pos, size_t stride,
                                        const nbody_real *d_mass, int32_t n,
                                        struct CUstream_st *stream)
{
    if (!gpu) return NBODY_BAD_ARGUMENT;
    nbody_result const result = nbody_i_cuda_evaluate(
        gpu, desc, nbody_i_input_of(desc, d_pos, stride, d_mass), n, NBODY_I_FOR_TREE, stream);
    gpu->device.sim.fx = gpu->device.sim.fy = nullptr; /* no local expansions yet */
    return result;
}

NBODY_API nbody_result nbody_cuda_fields(nbody_cuda *gpu, const nbody_desc *desc,
                                         const nbody_real *d_pos, size_t stride,
                                         const nbody_real *d_mass, int32_t n, nbody_real *d_acc,
                                         nbody_real *d_potential, struct CUstream_st *stream)
{
    if (!gpu) return NBODY_BAD_ARGUMENT;
    nbody_result result =
        nbody_i_cuda_evaluate(gpu, desc, nbody_i_input_of(desc, d_pos, stride, d_mass), n,
                              d_potential ? NBODY_I_FOR_POTENTIALS : NBODY_I_FOR_FORCES, stream);
    if (!d_acc && !d_potential) gpu->device.sim.fx = gpu->device.sim.fy = nullptr;
    if (result != NBODY_OK || n == 0 || (!d_acc && !d_potential)) return result;
    nbody_i_outcome const out = {d_acc, d_potential, gpu->device.sim.desc.acc_stride};
    result = nbody_i_cuda_forces(gpu, out, stream);
    if (result == NBODY_OK) return NBODY_OK;
    int32_t const error = gpu->device.sim.cuda_error;
    nbody_i_make_empty(&gpu->device.sim);
    gpu->device.sim.cuda_error = error;
    return result;
}

NBODY_API nbody_result nbody_cuda_accelerations(nbody_cuda *gpu, const nbody_desc *desc,
                                                const nbody_real *d_pos, size_t stride,
                                                const nbody_real *d_mass, int32_t n,
                                                nbody_real *d_acc, struct CUstream_st *stream)
{
    if (n > 0 && !d_acc) {
        if (gpu) nbody_i_make_empty(&gpu->device.sim);
        return NBODY_BAD_ARGUMENT;
    }
    return nbody_cuda_fields(gpu, desc, d_pos, stride, d_mass, n, d_acc, nullptr, stream);
}

/* ----------------------------------------------------------------------------------------------
   >>check
   ---------------------------------------------------------------------------------------------- */

namespace {

/* Are two bodies in one cell of this level? */
__device__ bool nbody_i_same_cell(const nbody &sim, int level, int64_t a, int64_t b)
{
    int const shift = NBODY_MAX_LEVELS - 1 - level;
    if (nbody_i_is_deep(&sim))
        return nbody_i_deep_column(sim.frame, 0, sim.x[a]) >> shift ==
                   nbody_i_deep_column(sim.frame, 0, sim.x[b]) >> shift &&
               nbody_i_deep_column(sim.frame, 1, sim.y[a]) >> shift ==
                   nbody_i_deep_column(sim.frame, 1, sim.y[b]) >> shift;
    return nbody_i_column(sim.frame, level, 0, sim.x[a]) ==
               nbody_i_column(sim.frame, level, 0, sim.x[b]) &&
           nbody_i_column(sim.frame, level, 1, sim.y[a]) ==
               nbody_i_column(sim.frame, level, 1, sim.y[b]);
}

/* The number of cells of the tree if there were room for all: on each level, bodies that begin a
   cell whose parent is divided. (In deep trees some of those are not: of MASS_CENTRES, and where
   all bodies of a cell are at one point. Then the number is larger than needed.) */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_needed_kernel(__grid_constant__ const nbody_device device, int32_t *needed)
{
    const nbody &sim = device.sim;
    int const last = sim.desc.levels - 1,
              deepest = last < sim.frame->deepest ? last : sim.frame->deepest;
    for (int64_t k = nbody_i_thread(); k < sim.n; k += nbody_i_threads())
        for (int level = 1; level <= deepest; level++) {
            if (k > 0 && nbody_i_same_cell(sim, level, k - 1, k)) continue; /* not the first */
            int64_t bodies = 0; /* of the parent: more than leaf? */
            for (int64_t other = k; other < sim.n && bodies <= sim.desc.leaf &&
                                    nbody_i_same_cell(sim, level - 1, other, k);
                 other++)
                bodies++;
            for (int64_t other = k - 1; other >= 0 && bodies <= sim.desc.leaf &&
                                        nbody_i_same_cell(sim, level - 1, other, k);
                 other--)
                bodies++;
            bool const always = nbody_i_is_periodic(&sim) && level <= 2;
            if (always || bodies > sim.desc.leaf) atomicAdd(needed, 1);
        }
}

} /* namespace */

NBODY_API nbody_result nbody_cuda_check(nbody_cuda *gpu, nbody_frame *frame,
                                        struct CUstream_st *stream)
{
    nbody_frame found;
    nbody_i_facts facts;
    if (!gpu) return NBODY_BAD_ARGUMENT;
    nbody *sim = &gpu->device.sim;
    if (!sim->frame) return NBODY_NOT_BUILT;
    gpu->stream = stream;
    nbody_i_facts *d_facts = nbody_i_scratch<nbody_i_facts>(gpu, NBODY_I_FACTS);
    if (nbody_i_failed(
            gpu, cudaMemcpyAsync(&facts, d_facts, sizeof facts, cudaMemcpyDeviceToHost, stream)))
        return NBODY_CUDA_ERROR;
    if (nbody_i_failed(gpu, cudaStreamSynchronize(stream))) return NBODY_CUDA_ERROR;
    if (facts.undivided) {
        int32_t const root = 1;
        int32_t *needed = &sim->frame->cells_needed;
        if (nbody_i_failed(
                gpu, cudaMemcpyAsync(needed, &root, sizeof root, cudaMemcpyHostToDevice, stream)))
            return NBODY_CUDA_ERROR;
        nbody_result const result =
            nbody_i_launch(gpu, stream, nbody_i_at_most(sim->n), nbody_i_block_threads,
                           nbody_i_needed_kernel, gpu->device, needed);
        if (result != NBODY_OK) return result;
    }
    if (nbody_i_failed(
            gpu, cudaMemcpyAsync(&found, sim->frame, sizeof found, cudaMemcpyDeviceToHost, stream)))
        return NBODY_CUDA_ERROR;
    if (nbody_i_failed(gpu, cudaStreamSynchronize(stream))) return NBODY_CUDA_ERROR;
    if (frame) *frame = found;
    /* INT32_MAX - its index */
    int32_t const first_bad = found.bad_finite > found.bad_mass ? found.bad_finite : found.bad_mass;
    sim->bad_id = first_bad ? INT32_MAX - first_bad : -1;
    if (first_bad) return first_bad == found.bad_finite ? NBODY_NOT_FINITE : NBODY_BAD_MASS;
    if (facts.too_large) return NBODY_TOO_LARGE;
    return facts.undivided ? NBODY_CELLS_FULL : NBODY_OK;
}

/* ----------------------------------------------------------------------------------------------
   >>upload: the bodies of a host tree, and the build of theirs
   ---------------------------------------------------------------------------------------------- */

namespace {

/* Copies the bodies to the device and builds their tree. host, d_bodies: positions, then masses. */
nbody_result nbody_i_build_from(nbody_cuda *gpu, const nbody_desc *desc, const void *host,
                                nbody_real *d_bodies, int32_t n, cudaStream_t stream)
{
    size_t const bytes = 3 * sizeof(nbody_real) * (size_t)n;
    if (n > 0 && nbody_i_failed(gpu, cudaMemcpyAsync(d_bodies, host, bytes, cudaMemcpyHostToDevice,
                                                     stream)))
        return NBODY_CUDA_ERROR;
    nbody_result const result =
        nbody_cuda_build(gpu, desc, d_bodies, 0, d_bodies + 2 * (size_t)n, n, stream);
    if (!nbody_i_failed(gpu, cudaStreamSynchronize(stream))) return result;
    return NBODY_CUDA_ERROR;
}

} /* namespace */

NBODY_API nbody_result nbody_cuda_upload(nbody_cuda *gpu, const nbody *sim,
                                         struct CUstream_st *stream)
{
    if (!gpu || !sim) return NBODY_BAD_ARGUMENT;
    if (!sim->frame) return NBODY_NOT_BUILT;
    nbody *device = &gpu->device.sim;
    nbody_desc desc = sim->desc;
    if (device->desc.cuda_allocator.alloc) desc.cuda_allocator = device->desc.cuda_allocator;
    desc.mass_stride = desc.acc_stride = 0;
    /* no tree: so many are only the default of a CPU */
    if (!sim->cell && desc.levels > NBODY_KEY_LEVELS) desc.levels = 0;
    nbody_i_make_empty(device);
    size_t const bytes = 3 * sizeof(nbody_real) * (size_t)sim->n + 1;
    void *host = nbody_i_alloc(&sim->desc.allocator, bytes);
    nbody_block bodies = {host ? nbody_i_cuda_alloc(&desc.cuda_allocator, bytes, stream) : nullptr,
                          bytes};
    nbody_result result = NBODY_OUT_OF_MEMORY;
    if (bodies.memory) {
        nbody_i_write_bodies(sim, static_cast<unsigned char *>(host));
        result = nbody_i_build_from(gpu, &desc, host, static_cast<nbody_real *>(bodies.memory),
                                    sim->n, stream);
    }
    nbody_i_cuda_release(&desc.cuda_allocator, &bodies, stream);
    nbody_i_give_back(&sim->desc.allocator, host, bytes);
    if (result == NBODY_OK) return NBODY_OK;
    int32_t const error = device->cuda_error;
    nbody_i_make_empty(device);
    device->cuda_error = error;
    return result;
}

/* ----------------------------------------------------------------------------------------------
   >>download
   ---------------------------------------------------------------------------------------------- */

namespace {

nbody_result nbody_i_fetch_array(nbody_cuda *gpu, void *to, const void *from, size_t bytes,
                                 cudaStream_t stream)
{
    if (bytes == 0 || !from) return NBODY_OK;
    return nbody_i_failed(gpu, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream))
               ? NBODY_CUDA_ERROR
               : NBODY_OK;
}

/* Copies all arrays of a tree whose frame is on the host already. */
nbody_result nbody_i_fetch_tree(nbody *sim, nbody_cuda *gpu, cudaStream_t stream)
{
    const nbody *from = &gpu->device.sim;
    size_t const cells = (size_t)sim->frame->cells, width = sizeof(nbody_real);
    size_t const inner = sim->desc.sources == NBODY_MASS_CENTRES
                             ? (size_t)sim->frame->level_first[sim->frame->levels - 1]
                             : cells;
    size_t const sources = inner * (size_t)sim->per_cell * width,
                 nodes = cells * (size_t)sim->nodes * width;
    nbody_result result =
        nbody_i_grow_array(sim, NBODY_I_CELLS, cells, sizeof(nbody_cell), NBODY_I_AHEAD);
    sim->cell = static_cast<nbody_cell *>(sim->block[NBODY_I_CELLS].memory);
    if (result == NBODY_OK) result = nbody_i_prepare_sources(sim, NBODY_I_AHEAD);
    if (result == NBODY_OK) result = nbody_i_prepare_nodes(sim, from->fp != nullptr, NBODY_I_AHEAD);
    if (result == NBODY_OK)
        result =
            nbody_i_fetch_array(gpu, sim->cell, from->cell, cells * sizeof(nbody_cell), stream);
    if (result == NBODY_OK && sim->made)
        result = nbody_i_fetch_array(gpu, sim->made, from->made, inner * sizeof(int32_t), stream);
    nbody_real *const to[9] = {sim->vm,  sim->vx, sim->vy, sim->vxx, sim->vxy,
                               sim->vyy, sim->fx, sim->fy, sim->fp};
    const nbody_real *const of[9] = {from->vm,  from->vx, from->vy, from->vxx, from->vxy,
                                     from->vyy, from->fx, from->fy, from->fp};
    for (int k = 0; k < 9 && result == NBODY_OK; k++)
        if (to[k]) result = nbody_i_fetch_array(gpu, to[k], of[k], k < 6 ? sources : nodes, stream);
    if (!from->fx) sim->fx = sim->fy = sim->fp = nullptr;
    sim->table = nullptr; /* stays on the device */
    return result;
}

} /* namespace */

NBODY_API nbody_result nbody_cuda_download(nbody *sim, const nbody_cuda *gpu,
                                           struct CUstream_st *stream)
{
    if (!sim || !gpu) return NBODY_BAD_ARGUMENT;
    const nbody *from = &gpu->device.sim;
    if (!from->frame) return NBODY_NOT_BUILT;
    nbody_cuda borrowed = *gpu; /* for its cuda_error */
    nbody_desc desc = from->desc;
    desc.allocator = sim->desc.allocator;
    nbody_result result = nbody_i_begin(sim, &desc, from->n, false);
    if (result == NBODY_OK) result = nbody_i_prepare_bodies(sim, from->n, NBODY_I_AHEAD);
    sim->n = from->n;
    if (result == NBODY_OK)
        result =
            nbody_i_fetch_array(&borrowed, sim->frame, from->frame, sizeof(nbody_frame), stream);
    size_t const reals = (size_t)from->n * sizeof(nbody_real);
    if (result == NBODY_OK) result = nbody_i_fetch_array(&borrowed, sim->x, from->x, reals, stream);
    if (result == NBODY_OK) result = nbody_i_fetch_array(&borrowed, sim->y, from->y, reals, stream);
    if (result == NBODY_OK) result = nbody_i_fetch_array(&borrowed, sim->m, from->m, reals, stream);
    if (result == NBODY_OK)
        result = nbody_i_fetch_array(&borrowed, sim->acts, from->acts, reals, stream);
    if (result == NBODY_OK)
        result = nbody_i_fetch_array(&borrowed, sim->id, from->id,
                                     (size_t)from->n * sizeof(int32_t), stream);
    if (result == NBODY_OK && nbody_i_failed(&borrowed, cudaStreamSynchronize(stream)))
        result = NBODY_CUDA_ERROR;
    if (result == NBODY_OK && sim->desc.periodic)
        result = nbody_i_prepare_lattice(sim, NBODY_I_AHEAD);
    if (result == NBODY_OK && from->cell) result = nbody_i_fetch_tree(sim, &borrowed, stream);
    if (result == NBODY_OK && nbody_i_failed(&borrowed, cudaStreamSynchronize(stream)))
        result = NBODY_CUDA_ERROR;
    if (result == NBODY_OK) return NBODY_OK;
    nbody_i_make_empty(sim);
    sim->cuda_error = borrowed.device.sim.cuda_error;
    return result;
}

NBODY_API void nbody_cuda_free(nbody_cuda *gpu)
{
    if (!gpu) return;
    const nbody_cuda_allocator allocator = gpu->device.sim.desc.cuda_allocator;
    for (int b = 0; b < NBODY_BLOCKS; b++)
        nbody_i_cuda_release(&allocator, &gpu->block[b], gpu->stream);
    for (int b = 0; b < NBODY_CUDA_SCRATCH; b++)
        nbody_i_cuda_release(&allocator, &gpu->scratch[b], gpu->stream);
    nbody_free(&gpu->device.sim); /* host memory of periodic squares */
    memset(gpu, 0, sizeof *gpu);
}
