/* cuda/nbody_blocks.cu - v0.2.0 - the CUDA half of more/nbody_blocks.h, which includes this file
   SPDX-License-Identifier: MIT OR Unlicense

   >>contents

       >>blocks-cuda */

#if 10000 * NBODY_VERSION_MAJOR + 100 * NBODY_VERSION_MINOR + NBODY_VERSION_PATCH != 200
#error "cuda/nbody_blocks.cu 0.2.0 and nbody.h are of different versions: copy both from one \
release"
#endif

/* ----------------------------------------------------------------------------------------------
   >>blocks-cuda: a kernel for each move of >>blocks-serial

   The tick at which the next steps end, and the bodies whose steps do, are found on the device, and
   the host reads both numbers before it launches the forces of those bodies.
   ---------------------------------------------------------------------------------------------- */

namespace {

/* What the host reads. */
struct nbody_i_block_facts {
    int32_t tick;               /* at which the next steps end */
    int32_t count;              /* bodies whose steps do */
};

/* The memory of a nbody_blocks on a device: the facts, the arrays, then what CUB needs. */
struct nbody_i_device_blocks {
    nbody_i_blocks b;
    nbody_i_block_facts *facts;
    void *temp;
    size_t temp_bytes;
};

/* 1 for bodies whose steps end at facts->tick. */
struct nbody_i_ends_now {
    nbody_i_blocks b;
    const nbody_i_block_facts *facts;
    __device__ bool operator()(int32_t i) const
    {
        return nbody_i_step_ends(&b, i) == facts->tick;
    }
};

__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_begin_steps_kernel(__grid_constant__ const nbody_i_blocks b)
{
    int64_t const i = nbody_i_thread();
    if (i >= b.bodies.n) return;
    if (b.level[i] > b.levels) b.level[i] = (uint8_t)b.levels;
    nbody_i_begin_step(&b, (int32_t)i, 0);
}

/* `points` as memory for ids, while no points are in it. */
__host__ __device__ int32_t *nbody_i_ids_in_points(const nbody_i_blocks &b)
{
    return reinterpret_cast<int32_t *>(b.points);
}

/* facts->tick: the first tick at which a step ends; it begins with more than all. And the ids of
   all bodies, to select from. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_next_tick_kernel(__grid_constant__ const nbody_i_blocks b, nbody_i_block_facts *facts)
{
    int32_t first = nbody_i_ticks(&b, 0);
    for (int64_t i = nbody_i_thread(); i < b.bodies.n; i += nbody_i_threads()) {
        int32_t const ends = nbody_i_step_ends(&b, (int32_t)i);
        first = ends < first ? ends : first;
        nbody_i_ids_in_points(b)[i] = (int32_t)i;
    }
    for (int step = 16; step > 0; step /= 2) {
        int32_t const other = __shfl_xor_sync(nbody_i_all_lanes, first, step);
        first = other < first ? other : first;
    }
    if (threadIdx.x % 32 == 0) atomicMin(&facts->tick, first);
}

__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_drift_to_kernel(__grid_constant__ const nbody_i_blocks b,
                            const nbody_i_block_facts *facts)
{
    int64_t const i = nbody_i_thread();
    if (i < b.bodies.n) nbody_i_drift_to(&b, (int32_t)i, facts->tick);
}

/* The active bodies as points. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_block_points_kernel(__grid_constant__ const nbody_i_blocks b, int32_t m)
{
    int64_t const k = nbody_i_thread();
    if (k >= m) return;
    for (int a = 0; a < 2; a++)
        b.points[2 * k + a] = b.bodies.pos[2 * (size_t)b.active[k] + (size_t)a];
}

/* `next` of the active bodies from `points`, which has the accelerations of all. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_block_next_kernel(__grid_constant__ const nbody_i_blocks b, int32_t m)
{
    int64_t const k = nbody_i_thread();
    if (k >= m) return;
    for (int a = 0; a < 2; a++)
        b.next[2 * k + a] = b.points[2 * (size_t)b.active[k] + (size_t)a];
}

__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_end_steps_kernel(__grid_constant__ const nbody_i_blocks b, int32_t m, int32_t tick)
{
    int64_t const k = nbody_i_thread();
    if (k >= m) return;
    nbody_i_end_step(&b, (int32_t)k, tick);
    if (tick < nbody_i_ticks(&b, 0)) nbody_i_begin_step(&b, b.active[k], tick);
}

/* The bodies whose steps end at facts->tick, ascending; temp NULL: *bytes is what it needs. */
cudaError_t nbody_i_select_block(const nbody_i_device_blocks &d, void *temp, size_t *bytes,
                                 cudaStream_t stream)
{
    nbody_i_ends_now const ends = {d.b, d.facts};
    int32_t *const count = temp ? &d.facts->count : nullptr;
    return cub::DeviceSelect::If(temp, *bytes, nbody_i_ids_in_points(d.b), d.b.active,
                                 count, d.b.bodies.n, ends, stream);
}

/* Memory, as nbody_i_reserve_blocks has it. */
nbody_result nbody_i_cuda_reserve_blocks(nbody_cuda *gpu, nbody_blocks *blocks,
                                         const nbody_blocks_desc *how, const nbody_desc *desc,
                                         const nbody_bodies *bodies, nbody_real dt,
                                         nbody_i_device_blocks *d, cudaStream_t stream)
{
    size_t const n = (size_t)bodies->n, round = 256,
                 arrays = round + (n * NBODY_I_BLOCK_BYTES + round - 1) / round * round;
    *d = {};
    d->b.bodies = *bodies;
    if (nbody_i_failed(gpu, nbody_i_select_block(*d, nullptr, &d->temp_bytes, stream)))
        return NBODY_CUDA_ERROR;
    if (blocks->n != bodies->n || !blocks->memory.memory) {
        nbody_cuda_blocks_free(blocks, stream);
        if (desc) blocks->cuda_allocator = desc->cuda_allocator;
        blocks->memory.bytes = arrays + d->temp_bytes;
        blocks->memory.memory =
            nbody_i_cuda_alloc(&blocks->cuda_allocator, blocks->memory.bytes, stream);
        if (!blocks->memory.memory) return NBODY_OUT_OF_MEMORY;
        blocks->n = bodies->n;
        /* all levels: the shortest step */
        if (nbody_i_failed(gpu, cudaMemsetAsync(blocks->memory.memory, 0xFF, arrays, stream)))
            return NBODY_CUDA_ERROR;
    }
    char *const memory = static_cast<char *>(blocks->memory.memory);
    d->facts = reinterpret_cast<nbody_i_block_facts *>(memory);
    nbody_blocks place = *blocks;
    place.memory.memory = memory + round;
    d->b = nbody_i_bind_blocks(&place, how, bodies, dt);
    blocks->level = place.level;
    d->temp = memory + arrays;
    return NBODY_OK;
}

/* The next block: tick and bodies. Waits for the stream. */
nbody_result nbody_i_cuda_next_block(nbody_cuda *gpu, const nbody_i_device_blocks &d,
                                     nbody_i_block_facts *facts, cudaStream_t stream)
{
    size_t bytes = d.temp_bytes;
    nbody_result const result =
        nbody_i_failed(gpu, cudaMemsetAsync(d.facts, 0x7F, sizeof *facts, stream))
            ? NBODY_CUDA_ERROR
            : nbody_i_launch(gpu, stream, d.b.bodies.n, nbody_i_block_threads,
                             nbody_i_next_tick_kernel, d.b, d.facts);
    if (result != NBODY_OK) return result;
    if (nbody_i_failed(gpu, nbody_i_select_block(d, d.temp, &bytes, stream)) ||
        nbody_i_failed(gpu, cudaMemcpyAsync(facts, d.facts, sizeof *facts, cudaMemcpyDeviceToHost,
                                            stream)) ||
        nbody_i_failed(gpu, cudaStreamSynchronize(stream)))
        return NBODY_CUDA_ERROR;
    return nbody_i_launch(gpu, stream, d.b.bodies.n, nbody_i_block_threads, nbody_i_drift_to_kernel,
                          d.b, static_cast<const nbody_i_block_facts *>(d.facts));
}

/* As nbody_i_block_forces. */
nbody_result nbody_i_cuda_block_forces(nbody_cuda *gpu, const nbody_i_blocks &b,
                                       const nbody_desc *desc, int32_t m, cudaStream_t stream)
{
    nbody_bodies all = b.bodies;
    if (2 * (int64_t)m >= all.n) {
        all.acc = b.points;
        nbody_result const result = nbody_i_cuda_evaluate_bodies(gpu, desc, &all, stream);
        if (result != NBODY_OK) return result;
        return nbody_i_launch(gpu, stream, m, nbody_i_block_threads, nbody_i_block_next_kernel, b,
                              m);
    }
    nbody_desc tight = {};
    if (desc) tight = *desc;
    tight.mass_stride = tight.acc_stride = 0;
    nbody_result result = nbody_cuda_build(gpu, &tight, all.pos, 0, all.mass, all.n, stream);
    if (result != NBODY_OK) return result;
    result =
        nbody_i_launch(gpu, stream, m, nbody_i_block_threads, nbody_i_block_points_kernel, b, m);
    if (result != NBODY_OK) return result;
    return nbody_cuda_fields_at(gpu, b.points, 0, m, b.next, nullptr, stream);
}

/* As nbody_i_run_blocks. */
nbody_result nbody_i_cuda_run_blocks(nbody_cuda *gpu, nbody_blocks *blocks,
                                     const nbody_i_device_blocks &d, const nbody_desc *desc,
                                     cudaStream_t stream)
{
    nbody_i_block_facts facts = {0, 0};
    nbody_result result = nbody_i_launch(gpu, stream, d.b.bodies.n, nbody_i_block_threads,
                                         nbody_i_begin_steps_kernel, d.b);
    while (result == NBODY_OK && facts.tick < nbody_i_ticks(&d.b, 0)) {
        result = nbody_i_cuda_next_block(gpu, d, &facts, stream);
        if (result != NBODY_OK) return result;
        result = nbody_i_cuda_block_forces(gpu, d.b, desc, facts.count, stream);
        if (result != NBODY_OK) return result;
        result = nbody_i_launch(gpu, stream, facts.count, nbody_i_block_threads,
                                nbody_i_end_steps_kernel, d.b, facts.count, facts.tick);
        blocks->evaluations++;
        blocks->forces += facts.count;
    }
    return result;
}

} /* namespace */

NBODY_API void nbody_cuda_blocks_free(nbody_blocks *blocks, struct CUstream_st *stream)
{
    if (!blocks) return;
    nbody_i_cuda_release(&blocks->cuda_allocator, &blocks->memory, stream);
    std::memset(blocks, 0, sizeof *blocks);
}

NBODY_API nbody_result nbody_cuda_blocks_step(nbody_blocks *blocks, const nbody_blocks_desc *how,
                                              nbody_cuda *gpu, const nbody_desc *desc,
                                              nbody_bodies *bodies, nbody_real dt,
                                              struct CUstream_st *stream)
{
    nbody_blocks_desc resolved;
    nbody_i_device_blocks d;
    nbody_result result = nbody_i_check_blocks(&resolved, how, desc, bodies, dt);
    if (result == NBODY_OK && (!blocks || !gpu)) result = NBODY_BAD_ARGUMENT;
    if (result != NBODY_OK) return result;
    if (!bodies->fresh) result = nbody_i_cuda_evaluate_bodies(gpu, desc, bodies, stream);
    if (result != NBODY_OK) return result;
    blocks->evaluations = 0;
    blocks->forces = 0;
    if (bodies->n == 0) return NBODY_OK;
    gpu->stream = stream;
    result = nbody_i_cuda_reserve_blocks(gpu, blocks, &resolved, desc, bodies, dt, &d, stream);
    if (result == NBODY_OK) result = nbody_i_cuda_run_blocks(gpu, blocks, d, desc, stream);
    if (result == NBODY_OK) return NBODY_OK;
    bodies->fresh = 0;
    nbody_cuda_blocks_free(blocks, stream);
    return result;
}
