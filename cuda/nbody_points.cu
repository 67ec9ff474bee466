/* cuda/nbody_points.cu - v0.2.0 - the CUDA half of more/nbody_points.h, which includes this file
   SPDX-License-Identifier: MIT OR Unlicense

   >>contents

       >>points-cuda */

#if 10000 * NBODY_VERSION_MAJOR + 100 * NBODY_VERSION_MINOR + NBODY_VERSION_PATCH != 200
#error "cuda/nbody_points.cu 0.2.0 and nbody.h are of different versions: copy both from one \
release"
#endif

/* ----------------------------------------------------------------------------------------------
   >>points-cuda: the fields at target points that are not bodies

   Few points: a thread for each, in the order given. Many read nodes, by the rule of
   >>points-serial. They are sorted by the cell that contains them, so that neighbouring
   threads have the same walk. NBODY_FAST: those in leaves are cut into chunks, and summed by the
   kernel of the bodies. The scratch memory is that of the sort and of partial sums, which grows.
   ---------------------------------------------------------------------------------------------- */

namespace {

#ifndef NBODY_WITH_PERIODIC
#define nbody_i_image_nodes_on_gpu(sim) nullptr
#endif

/* Points in order: by cell, if they read nodes. */
struct nbody_i_sorted_points {
    nbody_i_input input;
    int32_t m;
    const uint32_t *cells;      /* NULL: few points, in the order given, without nodes */
    const int32_t *ids;
    bool chunks;                /* those in leaves are done by chunks */
};

__device__ __forceinline__ bool nbody_i_is_point(const nbody_real *p)
{
    return nbody_i_finite((double)p[0]) && nbody_i_finite((double)p[1]);
}

/* The cell that contains each point; room, which is none: it is not finite. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_containing_kernel(__grid_constant__ const nbody_device device, nbody_i_input points,
                          int32_t m, int32_t room, uint32_t *cells, int32_t *ids)
{
    const nbody &sim = device.sim;
    int64_t const i = nbody_i_thread();
    if (i >= m) return;
    const nbody_real *p = nbody_i_at(points.pos, points.stride, (int32_t)i);
    int32_t at = room;
    if (nbody_i_is_point(p))
        at = nbody_i_cell_containing(&sim, nbody_i_coordinate(&sim, 0, (double)p[0]),
                                 nbody_i_coordinate(&sim, 1, (double)p[1]));
    cells[i] = (uint32_t)at;
    ids[i] = (int32_t)i;
}

__device__ __forceinline__ bool nbody_i_in_leaf(const nbody &sim, uint32_t at)
{
    return at < (uint32_t)sim.frame->cells && sim.cell[at].child < 0;
}

/* Where keys larger than `key` begin, from `low` on. */
__device__ int32_t nbody_i_end_of_run(const uint32_t *keys, uint32_t key, int32_t low, int32_t high)
{
    while (low < high) {
        int32_t const mid = low + (high - low) / 2;
        if (keys[mid] <= key) low = mid + 1;
        else high = mid;
    }
    return low;
}

/* The points of each leaf in chunks of `size`. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_point_chunks_kernel(__grid_constant__ const nbody_device device,
                                nbody_i_sorted_points points, int32_t size, nbody_i_chunk *chunks,
                                int32_t *number)
{
    const nbody &sim = device.sim;
    int64_t const i = nbody_i_thread();
    int32_t const k = (int32_t)(i < points.m ? i : 0);
    uint32_t const at = points.cells[k];
    bool const begins = i < points.m && nbody_i_in_leaf(sim, at) &&
                        (k == 0 || points.cells[k - 1] != at);
    int32_t const end = begins ? nbody_i_end_of_run(points.cells, at, k, points.m) : k;
    nbody_i_cut((int32_t)at, k, end - k, size, chunks, number);
}

/* A thread for each point. Points that are not finite get NaN. Square: it is periodic; its nodes of
   level 2. */
template <bool Square>
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_points_at_kernel(__grid_constant__ const nbody_device device,
                             nbody_i_sorted_points points, const nbody_i_image_nodes *nodes,
                             nbody_i_outcome out)
{
    const nbody &sim = device.sim;
    nbody_i_law const law = nbody_i_law_of(&sim, out.potential != nullptr);
    int64_t const k = nbody_i_thread();
    if (k >= points.m) return;
    if (points.chunks && nbody_i_in_leaf(sim, points.cells[k])) return;
    int32_t const i = points.ids ? points.ids[k] : (int32_t)k;
    const nbody_real *p = nbody_i_at(points.input.pos, points.input.stride, i);
    bool const finite = nbody_i_is_point(p);
    nbody_i_target t = nbody_i_target_at(0, 0, -1);
    if (finite)
        t = nbody_i_point(&sim, &law, Square ? nodes : nullptr,
                          points.cells ? nbody_i_l2p_cell(&sim, 1, (int32_t)points.cells[k]) : -1,
                          nbody_i_coordinate(&sim, 0, (double)p[0]),
                          nbody_i_coordinate(&sim, 1, (double)p[1]));
    if (!finite)
        for (int c = 0; c < NBODY_I_PARTS; c++) t.total[c] = (p[0] - p[0]) + (p[1] - p[1]);
    nbody_i_store(&sim, &out, i, t.total, t.compensation);
}

/* The nodes, if there are none of these masses, or none of potentials. */
nbody_result nbody_i_cuda_ready_nodes(nbody_cuda *gpu, bool potential, cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    int32_t const cells = nbody_i_cell_room(&sim->desc, sim->n);
    size_t bytes[NBODY_BLOCKS], scratch[NBODY_CUDA_SCRATCH];
    if (sim->fx && (sim->fp || !potential)) return NBODY_OK;
    nbody_result result = nbody_i_cuda_sizes(sim, sim->n, cells, potential, bytes, scratch);
    for (int b : {NBODY_I_NODES, NBODY_I_TABLE})
        if (result == NBODY_OK)
            result = nbody_i_cuda_grow(gpu, &gpu->block[b], bytes[b], NBODY_I_AHEAD, stream);
    if (result != NBODY_OK) return result;
    nbody_i_bind_nodes(sim, gpu->block[NBODY_I_NODES].memory, (size_t)cells, potential);
    if (sim->desc.sources == NBODY_CHEBYSHEV)
        sim->table = static_cast<nbody_real *>(gpu->block[NBODY_I_TABLE].memory);
    return nbody_i_cuda_all_nodes(gpu, potential, stream);
}

/* Sorts points by the cell that contains them. */
nbody_result nbody_i_cuda_sort_points(nbody_cuda *gpu, nbody_i_sorted_points *points,
                                      cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    int32_t const m = points->m, room = nbody_i_cell_room(&sim->desc, sim->n);
    size_t need[NBODY_CUDA_SCRATCH] = {};
    cub::DoubleBuffer<uint32_t> key;
    cub::DoubleBuffer<int32_t> id;
    int bits = 1;
    nbody_result result = NBODY_OK;
    while (bits < 31 && room >> bits > 0) bits++;
    for (int which = NBODY_I_KEYS_A; which <= NBODY_I_IDS_B; which++)
        need[which] = (size_t)m * sizeof(uint32_t);
    need[NBODY_I_PARTIAL] = (size_t)nbody_i_chunk_room(m, room) * sizeof(nbody_i_chunk);
    if (nbody_i_failed(gpu, nbody_i_sort_pairs(nullptr, need[NBODY_I_TEMP], key, id, m, bits,
                                               stream)))
        return NBODY_CUDA_ERROR;
    for (int b = 0; b < NBODY_CUDA_SCRATCH && result == NBODY_OK; b++)
        result = nbody_i_cuda_grow(gpu, &gpu->scratch[b], need[b], NBODY_I_AHEAD, stream);
    if (result != NBODY_OK) return result;
    key = cub::DoubleBuffer<uint32_t>(nbody_i_scratch<uint32_t>(gpu, NBODY_I_KEYS_A),
                                      nbody_i_scratch<uint32_t>(gpu, NBODY_I_KEYS_B));
    id = cub::DoubleBuffer<int32_t>(nbody_i_scratch<int32_t>(gpu, NBODY_I_IDS_A),
                                    nbody_i_scratch<int32_t>(gpu, NBODY_I_IDS_B));
    result = nbody_i_launch(gpu, stream, m, nbody_i_block_threads, nbody_i_containing_kernel,
                            gpu->device, points->input, m, room, key.Current(), id.Current());
    size_t bytes = gpu->scratch[NBODY_I_TEMP].bytes;
    if (result == NBODY_OK &&
        nbody_i_failed(gpu, nbody_i_sort_pairs(gpu->scratch[NBODY_I_TEMP].memory, bytes, key, id,
                                               m, bits, stream)))
        return NBODY_CUDA_ERROR;
    points->cells = key.Current();
    points->ids = id.Current();
    return result;
}

/* NBODY_FAST: the points in leaves. */
template <int Law, bool Potential>
nbody_result nbody_i_cuda_point_chunks(nbody_cuda *gpu, const nbody_i_sorted_points &points,
                                       const nbody_i_outcome &out, cudaStream_t stream)
{
    const nbody *sim = &gpu->device.sim;
    int32_t const chunk = nbody_i_fast_chunk(&sim->desc), m = points.m;
    int const block = 2 * chunk;
    nbody_i_chunk *chunks = nbody_i_scratch<nbody_i_chunk>(gpu, NBODY_I_PARTIAL);
    int32_t *number = &nbody_i_scratch<nbody_i_facts>(gpu, NBODY_I_FACTS)->pieces[2];
    int64_t const pieces = nbody_i_chunk_room(m, nbody_i_cell_room(&sim->desc, sim->n)),
                  usual = 2 * (int64_t)m / NBODY_CHUNK + 4096;
    nbody_i_given_points const given = {points.input, points.ids};
    if (nbody_i_failed(gpu, cudaMemsetAsync(number, 0, sizeof *number, stream)))
        return NBODY_CUDA_ERROR;
    nbody_result const result =
        nbody_i_launch(gpu, stream, m, nbody_i_block_threads, nbody_i_point_chunks_kernel,
                       gpu->device, points, chunk, chunks, number);
    if (result != NBODY_OK) return result;
    return nbody_i_launch(
        gpu, stream, (pieces < usual ? pieces : usual) * block, block,
        sim->rule.side == 4
            ? nbody_i_bodies_fast_kernel<Law, Potential, false, 4, nbody_i_given_points>
            : nbody_i_bodies_fast_kernel<Law, Potential, false, 0, nbody_i_given_points>,
        gpu->device, given, static_cast<const nbody_i_chunk *>(chunks),
        static_cast<const int32_t *>(number), static_cast<const nbody_real *>(nullptr), out);
}

nbody_result nbody_i_cuda_points_in_leaves(nbody_cuda *gpu, const nbody_i_sorted_points &points,
                                           const nbody_i_outcome &out, cudaStream_t stream)
{
    if (gpu->device.sim.desc.law != NBODY_INVERSE_SQUARE)
        return out.potential
                   ? nbody_i_cuda_point_chunks<NBODY_INVERSE, true>(gpu, points, out, stream)
                   : nbody_i_cuda_point_chunks<NBODY_INVERSE, false>(gpu, points, out, stream);
    return out.potential
               ? nbody_i_cuda_point_chunks<NBODY_INVERSE_SQUARE, true>(gpu, points, out, stream)
               : nbody_i_cuda_point_chunks<NBODY_INVERSE_SQUARE, false>(gpu, points, out, stream);
}

/* Many points: their nodes, and their order. */
nbody_result nbody_i_cuda_begin_points(nbody_cuda *gpu, nbody_i_sorted_points *points,
                                       bool potential, cudaStream_t stream)
{
    nbody_result const result = nbody_i_cuda_ready_nodes(gpu, potential, stream);
    points->chunks = gpu->device.sim.desc.stage == NBODY_FAST;
    return result == NBODY_OK ? nbody_i_cuda_sort_points(gpu, points, stream) : result;
}

} /* namespace */

NBODY_API nbody_result nbody_cuda_fields_at(nbody_cuda *gpu, const nbody_real *d_points,
                                            size_t stride, int32_t m, nbody_real *d_acc,
                                            nbody_real *d_potential, struct CUstream_st *stream)
{
    size_t const step = nbody_i_stride(stride, 2);
    if (!gpu || m < 0 || step == 0 || (m > 0 && !d_points)) return NBODY_BAD_ARGUMENT;
    if (m > NBODY_I_N_MAX) return NBODY_TOO_MANY;
    nbody *sim = &gpu->device.sim;
    bool const potential = d_potential != nullptr;
    if (!sim->frame) return NBODY_NOT_BUILT;
    if (potential && !nbody_i_has_potential(&sim->desc)) return NBODY_BAD_ARGUMENT;
    gpu->stream = stream;
    nbody_i_sorted_points points = {{d_points, nullptr, step, 0}, m, nullptr, nullptr, false};
    nbody_i_outcome const out = {d_acc, d_potential, 2 * sizeof(nbody_real)};
    const nbody_i_image_nodes *nodes =
        nbody_i_is_periodic(sim) ? nbody_i_image_nodes_on_gpu(sim) : nullptr;
    nbody_result result = NBODY_OK;
    if (nbody_i_reads_nodes(sim, m)) {
        result = nbody_i_cuda_begin_points(gpu, &points, potential, stream);
        int32_t const error = sim->cuda_error;
        if (result != NBODY_OK) nbody_i_make_empty(sim);
        sim->cuda_error = error;
    }
    if (result != NBODY_OK) return result;
    if (nodes && sim->cell && m > 0)
        result = nbody_i_cuda_image_nodes(gpu, potential, false, stream);
    if (result != NBODY_OK) return result;
    if (points.chunks) result = nbody_i_cuda_points_in_leaves(gpu, points, out, stream);
    if (result != NBODY_OK) return result;
    return nbody_i_launch(gpu, stream, m, nbody_i_block_threads,
                          nodes ? nbody_i_points_at_kernel<true> : nbody_i_points_at_kernel<false>,
                          gpu->device, points, nodes, out);
}
