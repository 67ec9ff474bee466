/* cuda/nbody_periodic.cu - v0.2.0 - the CUDA half of more/nbody_periodic.h, which includes this file
   SPDX-License-Identifier: MIT OR Unlicense

   >>contents

       >>images-cuda */

#if 10000 * NBODY_VERSION_MAJOR + 100 * NBODY_VERSION_MINOR + NBODY_VERSION_PATCH != 200
#error "cuda/nbody_periodic.cu 0.2.0 and nbody.h are of different versions: copy both from one release"
#endif

/* ----------------------------------------------------------------------------------------------
   >>images-cuda: periodic squares, as >>lattice and >>images. The same kernels in all
   stages; NBODY_ONE_THREAD has one thread of them.

   The sums over the lattice follow from the desc alone. The host makes them, keeps them in the
   nbody's block of its own memory, and passes them as an argument of a kernel: a copy would wait
   for the host's memory, and a graph would read it again.
   ---------------------------------------------------------------------------------------------- */

namespace {

size_t nbody_i_cuda_lattice_bytes(const nbody *sim)
{
    return nbody_i_lattice_bytes(sim) + sizeof(nbody_i_image_nodes);
}

/* The lattice in host memory, without a table; made, if there is another or none. */
nbody_result nbody_i_host_lattice(nbody *sim, const nbody_i_lattice **lattice)
{
    nbody_frame frame = {};
    nbody host = *sim;
    double least[2], most[2];
    nbody_i_bound_square(&sim->desc, least, most);
    if (!nbody_i_make_frame(&frame, &sim->desc, least, most, 1)) return NBODY_TOO_LARGE;
    host.frame = &frame;
    host.nodes = 0;
    nbody_result const result = nbody_i_prepare_lattice(&host, NBODY_I_EXACT);
    sim->block[NBODY_I_LATTICE] = host.block[NBODY_I_LATTICE];
    if (lattice) *lattice = host.lattice;
    return result;
}

/* One block. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_lattice_kernel(__grid_constant__ const nbody_i_lattice lattice, nbody_i_lattice *to)
{
    constexpr int factors = NBODY_I_ANGLES * NBODY_I_POWERS;
    for (int k = (int)threadIdx.x; k < factors; k += nbody_i_block_threads)
        to->factor[k / NBODY_I_POWERS][k % NBODY_I_POWERS] =
            lattice.factor[k / NBODY_I_POWERS][k % NBODY_I_POWERS];
    if (threadIdx.x < NBODY_I_ANGLES) to->powers[threadIdx.x] = lattice.powers[threadIdx.x];
    if (threadIdx.x > 0) return;
    to->key = lattice.key;
    to->degree = lattice.degree;
    to->angles = lattice.angles;
}

/* The M2L table of level 2: a thread for each entry. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_image_table_kernel(__grid_constant__ const nbody_device device)
{
    const nbody &sim = device.sim;
    int32_t const row = nbody_i_row(&sim);
    int64_t const entries = (int64_t)sim.per_cell * row;
    for (int64_t k = nbody_i_thread(); k < NBODY_I_IMAGES * entries; k += nbody_i_threads())
        nbody_i_fill_image_entry(&sim, (int)(k / entries), (int32_t)(k % entries / row),
                                 (int32_t)(k % row));
}

nbody_result nbody_i_cuda_lattice(nbody_cuda *gpu, cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    const nbody_i_lattice *lattice = nullptr;
    static_assert(sizeof *lattice <= 4000, "the parameters of a kernel are 4096 bytes at most");
    nbody_result result = nbody_i_host_lattice(sim, &lattice);
    if (result == NBODY_OK)
        result = nbody_i_launch(gpu, stream, nbody_i_block_threads, nbody_i_block_threads,
                                nbody_i_lattice_kernel, *lattice, sim->lattice);
    if (result != NBODY_OK || !sim->images) return result;
    int64_t const entries = (int64_t)NBODY_I_IMAGES * sim->per_cell * nbody_i_row(sim);
    return nbody_i_launch(gpu, stream, nbody_i_at_most(entries), nbody_i_block_threads,
                          nbody_i_image_table_kernel, gpu->device);
}

/* M2L of level 2: a thread for each node of the 16 cells, empty ones too, for points in them. With
   `store`, those of cells that exist are stored as theirs. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_image_nodes_kernel(__grid_constant__ const nbody_device device, int potential,
                               bool store, nbody_i_image_nodes *to)
{
    const nbody &sim = device.sim;
    nbody_i_law const law = nbody_i_law_of(&sim, potential);
    int32_t sixteen[NBODY_I_IMAGES];
    nbody_i_find_sixteen(&sim, sixteen);
    for (int64_t k = nbody_i_thread(); k < NBODY_I_IMAGES * sim.nodes; k += nbody_i_threads()) {
        int32_t const cell = (int32_t)(k / sim.nodes), a = (int32_t)(k % sim.nodes);
        nbody_i_target const t = nbody_i_image_node(&sim, &law, sixteen, cell, a);
        for (int p = 0; p < NBODY_I_PARTS; p++)
            to->value[p][cell][a] = t.total[p] + t.compensation[p];
        if (store && sixteen[cell] >= 0) nbody_i_store_node(&sim, &law, sixteen[cell], a, &t);
    }
}

nbody_i_image_nodes *nbody_i_image_nodes_on_gpu(const nbody *sim)
{
    unsigned char *lattice = reinterpret_cast<unsigned char *>(sim->lattice);
    return reinterpret_cast<nbody_i_image_nodes *>(lattice + nbody_i_lattice_bytes(sim));
}

nbody_result nbody_i_cuda_image_nodes(nbody_cuda *gpu, int potential, bool store,
                                      cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    bool const alone = sim->desc.stage == NBODY_ONE_THREAD;
    return nbody_i_launch(gpu, stream, alone ? 1 : NBODY_I_IMAGES * sim->nodes,
                          alone ? 1 : nbody_i_block_threads, nbody_i_image_nodes_kernel,
                          gpu->device, potential, store, nbody_i_image_nodes_on_gpu(sim));
}

/* DIRECT: a thread for each body. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_direct_images_kernel(__grid_constant__ const nbody_device device, nbody_i_outcome out)
{
    const nbody &sim = device.sim;
    nbody_i_law const law = nbody_i_law_of(&sim, out.potential != nullptr);
    for (int64_t k = nbody_i_thread(); k < sim.n; k += nbody_i_threads()) {
        nbody_i_target const t =
            nbody_i_sum_images(&sim, &law, sim.x[k], sim.y[k], (int32_t)k);
        nbody_i_store(&sim, &out, sim.id[k], t.total, t.compensation);
    }
}

nbody_result nbody_i_cuda_direct_images(nbody_cuda *gpu, const nbody_i_outcome &out,
                                        cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    bool const alone = sim->desc.stage == NBODY_ONE_THREAD;
    return nbody_i_launch(gpu, stream, alone ? 1 : nbody_i_at_most(sim->n),
                          alone ? 1 : nbody_i_block_threads, nbody_i_direct_images_kernel,
                          gpu->device, out);
}

} /* namespace */
