/* cuda/nbody_step.cu - v0.2.0 - the CUDA half of more/nbody_step.h, which includes this file
   SPDX-License-Identifier: MIT OR Unlicense

   >>contents

       >>estimate-cuda >>step-cuda */

#if 10000 * NBODY_VERSION_MAJOR + 100 * NBODY_VERSION_MINOR + NBODY_VERSION_PATCH != 200
#error "cuda/nbody_step.cu 0.2.0 and nbody.h are of different versions: copy both from one release"
#endif

/* ----------------------------------------------------------------------------------------------
   >>estimate-cuda: a block for each sample
   ---------------------------------------------------------------------------------------------- */

namespace {

/* Sum of v over the threads of a block, in all of them. */
__device__ double nbody_i_block_sum(double v, double *shared)
{
    double sum = 0;
    for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(nbody_i_all_lanes, v, step);
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    for (int w = 0; w < (int)blockDim.x / 32; w++) sum += shared[w];
    return sum;
}

__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_sample_kernel(__grid_constant__ const nbody_device device, const nbody_real *acc,
                          int32_t samples, uint32_t seed, nbody_error *errors)
{
    const nbody &sim = device.sim;
    __shared__ double shared[nbody_i_block_threads / 32];
    nbody_error sum = {};
    for (int32_t k = (int32_t)blockIdx.x; k < samples; k += (int32_t)gridDim.x) {
        int32_t const place = nbody_i_sample_place(sim.n, samples, seed, k);
        nbody_i_exact exact = {0, 0, 0, 0, 0, 0};
        for (int32_t from = (int32_t)threadIdx.x; from < sim.n; from += nbody_i_block_threads) {
            if (nbody_i_is_periodic(&sim)) nbody_i_add_exact_images(&sim, place, from, &exact);
            else nbody_i_add_exact(&sim, place, from, &exact);
        }
        exact.x = nbody_i_block_sum(exact.x, shared);
        exact.y = nbody_i_block_sum(exact.y, shared);
        exact.all = nbody_i_block_sum(exact.all, shared);
        exact.more_x = nbody_i_block_sum(exact.more_x, shared);
        exact.more_y = nbody_i_block_sum(exact.more_y, shared);
        exact.more_all = nbody_i_block_sum(exact.more_all, shared);
        nbody_error const e = nbody_i_sample_error(&sim, acc, place, &exact);
        nbody_i_add_error(&sum, &e);
    }
    if (threadIdx.x == 0) errors[blockIdx.x] = sum;
}

/* One thread sums the results of the blocks. */
__global__ void nbody_i_error_kernel(const nbody_error *errors, int blocks, nbody_error *error)
{
    nbody_error sum = {};
    for (int b = 0; b < blocks; b++) nbody_i_add_error(&sum, &errors[b]);
    nbody_i_finish_error(&sum);
    *error = sum;
}

constexpr int nbody_i_sample_blocks = 512;

} /* namespace */

NBODY_API nbody_result nbody_cuda_estimate(nbody_cuda *gpu, const nbody_real *d_acc,
                                           int32_t samples, uint32_t seed, nbody_error *d_error,
                                           struct CUstream_st *stream)
{
    if (!gpu || !d_error || samples < 0) return NBODY_BAD_ARGUMENT;
    nbody *sim = &gpu->device.sim;
    if (!sim->frame) return NBODY_NOT_BUILT;
    if (samples > sim->n) samples = sim->n;
    if (samples > 0 && !d_acc) return NBODY_BAD_ARGUMENT;
    gpu->stream = stream;
    int const blocks = samples < nbody_i_sample_blocks ? samples : nbody_i_sample_blocks;
    nbody_error *errors = nbody_i_scratch<nbody_error>(gpu, NBODY_I_PARTIAL);
    nbody_result const result =
        nbody_i_launch(gpu, stream, (int64_t)blocks * nbody_i_block_threads, nbody_i_block_threads,
                       nbody_i_sample_kernel, gpu->device, d_acc, samples, seed, errors);
    if (result != NBODY_OK) return result;
    return nbody_i_launch(gpu, stream, 1, 1, nbody_i_error_kernel,
                          static_cast<const nbody_error *>(errors), blocks, d_error);
}

/* ----------------------------------------------------------------------------------------------
   >>step-cuda
   ---------------------------------------------------------------------------------------------- */

namespace {

/* A kick by dt_kick, then, if `drifts`, a drift by dt_drift. */
__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_move_kernel(nbody_bodies bodies, nbody_real dt_kick, nbody_real dt_drift, bool drifts)
{
    int64_t const e = nbody_i_thread();
    if (e >= 2 * (int64_t)bodies.n) return;
    nbody_i_kick(&bodies, (size_t)e, dt_kick);
    if (drifts) nbody_i_drift(&bodies, (size_t)e, dt_drift);
}

nbody_result nbody_i_cuda_move(nbody_cuda *gpu, const nbody_bodies &bodies, nbody_real dt_kick,
                               nbody_real dt_drift, bool drifts, cudaStream_t stream)
{
    return nbody_i_launch(gpu, stream, 2 * (int64_t)bodies.n, nbody_i_block_threads,
                          nbody_i_move_kernel, bodies, dt_kick, dt_drift, drifts);
}

nbody_result nbody_i_cuda_evaluate_bodies(nbody_cuda *gpu, const nbody_desc *desc,
                                          nbody_bodies *bodies, cudaStream_t stream)
{
    nbody_desc tight = {};
    if (desc) tight = *desc;
    tight.mass_stride = tight.acc_stride = 0;
    nbody_result const result = nbody_cuda_accelerations(gpu, &tight, bodies->pos, 0, bodies->mass,
                                                         bodies->n, bodies->acc, stream);
    bodies->fresh = result == NBODY_OK;
    return result;
}

} /* namespace */

NBODY_API nbody_result nbody_cuda_step(nbody_cuda *gpu, const nbody_desc *desc,
                                       nbody_bodies *bodies, nbody_real dt,
                                       nbody_integrator integrator, struct CUstream_st *stream)
{
    nbody_desc resolved;
    nbody_result result = nbody_i_check_step(bodies, dt, integrator);
    if (result != NBODY_OK) return result;
    if (!gpu) return NBODY_BAD_ARGUMENT;
    result = nbody_i_defaults_of_step(&resolved, desc, bodies->n);
    if (result != NBODY_OK) return result;
    result = nbody_i_check_function(&resolved);
    if (result != NBODY_OK) return result;
    if (!bodies->fresh) result = nbody_i_cuda_evaluate_bodies(gpu, desc, bodies, stream);
    if (result != NBODY_OK) return result;
    gpu->stream = stream;
    if (integrator == NBODY_EULER) {
        bodies->fresh = 0;
        return nbody_i_cuda_move(gpu, *bodies, dt, dt, true, stream);
    }
    result = nbody_i_cuda_move(gpu, *bodies, dt / 2, dt, true, stream);
    if (result == NBODY_OK) result = nbody_i_cuda_evaluate_bodies(gpu, desc, bodies, stream);
    return result == NBODY_OK ? nbody_i_cuda_move(gpu, *bodies, dt / 2, 0, false, stream) : result;
}

namespace {

__global__ void __launch_bounds__(nbody_i_block_threads)
    nbody_i_energy_kernel(nbody_bodies bodies, const nbody_real *potential, double *partial)
{
    __shared__ double shared[nbody_i_block_threads / 32];
    double sum[NBODY_I_SUMS] = {};
    for (int64_t i = nbody_i_thread(); i < bodies.n; i += nbody_i_threads())
        nbody_i_body_energy(&bodies, potential, (int32_t)i, sum);
#pragma unroll
    for (int s = 0; s < NBODY_I_SUMS; s++) {
        double const all = nbody_i_block_sum(sum[s], shared);
        if (threadIdx.x == 0) partial[blockIdx.x * NBODY_I_SUMS + s] = all;
    }
}

__global__ void nbody_i_energies_kernel(const double *partial, int blocks, nbody_energies *energies)
{
    double sum[NBODY_I_SUMS] = {};
    for (int b = 0; b < blocks; b++)
        for (int s = 0; s < NBODY_I_SUMS; s++) sum[s] += partial[b * NBODY_I_SUMS + s];
    nbody_i_finish_energy(sum, energies);
}

constexpr int nbody_i_energy_blocks = 256;

} /* namespace */

NBODY_API nbody_result nbody_cuda_energy(nbody_cuda *gpu, const nbody_bodies *bodies,
                                         const nbody_real *d_potential, nbody_energies *d_energies,
                                         struct CUstream_st *stream)
{
    nbody_result result = nbody_i_check_bodies(bodies, 0);
    if (result == NBODY_OK && (!gpu || !d_energies)) result = NBODY_BAD_ARGUMENT;
    if (result != NBODY_OK) return result;
    if (!gpu->scratch[NBODY_I_PARTIAL].memory) return NBODY_NOT_BUILT;
    gpu->stream = stream;
    double *partial = nbody_i_scratch<double>(gpu, NBODY_I_PARTIAL);
    int64_t const wanted = ((int64_t)bodies->n + nbody_i_block_threads - 1) / nbody_i_block_threads;
    int const blocks = (int)(wanted < nbody_i_energy_blocks ? wanted : nbody_i_energy_blocks);
    result =
        nbody_i_launch(gpu, stream, (int64_t)blocks * nbody_i_block_threads, nbody_i_block_threads,
                       nbody_i_energy_kernel, *bodies, d_potential, partial);
    if (result != NBODY_OK) return result;
    return nbody_i_launch(gpu, stream, 1, 1, nbody_i_energies_kernel,
                          static_cast<const double *>(partial), blocks, d_energies);
}
