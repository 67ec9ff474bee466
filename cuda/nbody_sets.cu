/* cuda/nbody_sets.cu - v0.2.0 - the CUDA half of more/nbody_sets.h, which includes this file
   SPDX-License-Identifier: MIT OR Unlicense

   >>contents

       >>sets-cuda */

#if 10000 * NBODY_VERSION_MAJOR + 100 * NBODY_VERSION_MINOR + NBODY_VERSION_PATCH != 200
#error "cuda/nbody_sets.cu 0.2.0 and nbody.h are of different versions: copy both from one release"
#endif

/* ----------------------------------------------------------------------------------------------
   >>sets-cuda: other masses for the bodies of a tree, and several sets of them, one by one
   ---------------------------------------------------------------------------------------------- */

namespace {

/* The largest |mass|, and the first bad ones beside those of the build. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_masses_kernel(nbody_i_input input, int32_t n, bool any_sign, nbody_i_facts *facts)
{
    __shared__ unsigned long long shared;
    unsigned long long most = 0;
    if (threadIdx.x == 0) shared = 0;
    __syncthreads();
    for (int64_t i = nbody_i_thread(); i < n; i += nbody_i_threads()) {
        double const m = (double)nbody_i_mass(&input, (int32_t)i);
        bool const finite = nbody_i_finite(m);
        if (!finite) atomicMax(&facts->first_bad[0], INT_MAX - (int32_t)i);
        else if (m < 0 && !any_sign) atomicMax(&facts->first_bad[1], INT_MAX - (int32_t)i);
        unsigned long long const order = finite ? nbody_i_order_of((m < 0 ? -m : m) + 0) : 0;
        most = order > most ? order : most;
    }
    if (most) atomicMax(&shared, most);
    __syncthreads();
    if (threadIdx.x == 0) atomicMax(&facts->heaviest, shared);
}

/* One thread: the unit of masses. */
__global__ void nbody_i_mass_unit_kernel(__grid_constant__ const nbody_device device,
                                         const nbody_i_facts *facts)
{
    nbody_frame *frame = device.sim.frame;
    frame->mass = nbody_i_unit_of_masses(&device.sim, nbody_i_double_of(facts->heaviest));
    frame->bad_finite = facts->first_bad[0];
    frame->bad_mass = facts->first_bad[1];
}

__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_place_masses_kernel(__grid_constant__ const nbody_device device, nbody_i_input input)
{
    int64_t const place = nbody_i_thread();
    if (place < device.sim.n)
        nbody_i_place_mass(&device.sim, &input, (int32_t)place, device.sim.id[place]);
}

/* The masses of crowds: a warp for 32 cells. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_crowds_kernel(__grid_constant__ const nbody_device device, nbody_i_facts *facts)
{
    int32_t const cells = device.sim.frame->cells;
    for (int64_t from = nbody_i_thread() / 32 * 32; from < cells; from += nbody_i_threads())
        nbody_i_find_crowds(device.sim, (int32_t)from, cells, facts);
}

/* The bodies' masses and the sources, anew. */
nbody_result nbody_i_cuda_set_masses(nbody_cuda *gpu, const nbody_i_input &input,
                                     cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    nbody_i_facts *facts = nbody_i_scratch<nbody_i_facts>(gpu, NBODY_I_FACTS);
    bool const any_sign = sim->desc.method == NBODY_DIRECT || sim->desc.sources == NBODY_CHEBYSHEV;
    size_t const bytes = offsetof(nbody_i_facts, first_bad) - offsetof(nbody_i_facts, heaviest);
    if (nbody_i_failed(gpu, cudaMemsetAsync(&facts->heaviest, 0, bytes, stream)))
        return NBODY_CUDA_ERROR;
    nbody_result result =
        nbody_i_launch(gpu, stream, nbody_i_at_most(sim->n), nbody_i_block_threads,
                       nbody_i_masses_kernel, input, sim->n, any_sign, facts);
    if (result != NBODY_OK) return result;
    result = nbody_i_launch(gpu, stream, 1, 1, nbody_i_mass_unit_kernel, gpu->device, facts);
    if (result != NBODY_OK) return result;
    result = nbody_i_launch(gpu, stream, sim->n, nbody_i_block_threads,
                            nbody_i_place_masses_kernel, gpu->device, input);
    if (result != NBODY_OK || !sim->cell) return result;
    result = nbody_i_launch(gpu, stream, nbody_i_at_most(nbody_i_cell_room(&sim->desc, sim->n)),
                            nbody_i_block_threads, nbody_i_crowds_kernel, gpu->device, facts);
    return result == NBODY_OK ? nbody_i_cuda_sources(gpu, stream) : result;
}

/* The fields of one set; without outputs, its masses and sources. */
nbody_result nbody_i_cuda_set(nbody_cuda *gpu, const nbody_i_input &input,
                              const nbody_i_outcome &out, cudaStream_t stream)
{
    nbody *sim = &gpu->device.sim;
    nbody_result const result = nbody_i_cuda_set_masses(gpu, input, stream);
    if (result == NBODY_OK && (out.acc || out.potential))
        return nbody_i_cuda_forces(gpu, out, stream);
    sim->fx = sim->fy = nullptr; /* no local expansions */
    return result;
}

} /* namespace */

NBODY_API nbody_result nbody_cuda_fields_sets(nbody_cuda *gpu, int32_t sets,
                                              const nbody_real *d_mass, nbody_real *d_acc,
                                              nbody_real *d_potential, struct CUstream_st *stream)
{
    if (!gpu || sets < 0) return NBODY_BAD_ARGUMENT;
    nbody *sim = &gpu->device.sim;
    if (!sim->frame) return NBODY_NOT_BUILT;
    if (d_potential && !nbody_i_has_potential(&sim->desc)) return NBODY_BAD_ARGUMENT;
    gpu->stream = stream;
    if (sim->n == 0 || sets == 0) return NBODY_OK;
    nbody_result result =
        nbody_i_cuda_prepare(gpu, sim->n, d_potential != nullptr, NBODY_I_AHEAD, stream);
    for (int32_t s = 0; s < sets && result == NBODY_OK; s++)
        result = nbody_i_cuda_set(gpu, nbody_i_masses_of(sim, d_mass, s),
                                  nbody_i_outcome_of(sim, d_acc, d_potential, s), stream);
    if (result == NBODY_OK) return NBODY_OK;
    int32_t const error = sim->cuda_error;
    nbody_i_make_empty(sim);
    sim->cuda_error = error;
    return result;
}

NBODY_API nbody_result nbody_cuda_fields_again(nbody_cuda *gpu, const nbody_real *d_mass,
                                               nbody_real *d_acc, nbody_real *d_potential,
                                               struct CUstream_st *stream)
{
    return nbody_cuda_fields_sets(gpu, 1, d_mass, d_acc, d_potential, stream);
}
