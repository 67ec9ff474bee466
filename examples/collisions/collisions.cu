/* collisions.cu - the fluid of collisions.c on a GPU: the same command line, physics and picture.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: sums by key in kernels, for the method that source 003 had them for.

       direct   one thread per particle: atomicAdd to its cell
       lists    one thread per cell: it follows its list of UGRID_LIST, without atomics on floats
                (one atomicExch per particle in the build)
       header   ugrid_cuda_cell_sums: threads of a warp that share a cell add up among themselves,
                and one of them does the atomicAdd

   How to run it:

       make cuda && build/cuda/collisions              (from the top of the repository), or
       nvcc -O3 -arch=native examples/collisions/collisions.cu -o collisions -lstb
       ./collisions --dim 3 --size 100 --waves 2 --until 0.1 --time

   The last line: 10 million particles; it prints the rates of the three. --check makes a step in
   each way here and with the serial code; exit status 1 when they differ.

   What to look at: >>kernels and >>step below. All is in float. */

#define UGRID_REAL float
#define UGRID_CUDA
#include "collisions.c" /* without its main: the serial steps, to compare with */

#include "../common/gpu.h"

#include <utility>

namespace {

/* Device memory. */
struct mpc_arrays {
    float *x, *v, *spare_x, *spare_v, *sums;
    mpc_turn *turn;
};

/* -------------------------------------------------------------------------------------------------
   >>kernels
   ---------------------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(gpu_block)
    mpc_stream_kernel(mpc_model model, mpc_arrays all, int32_t n)
{
    size_t const i = static_cast<size_t>(gpu_thread()), dim = static_cast<size_t>(model.dim);
    if (gpu_thread() >= n) return;
    mpc_stream(&model, all.v + (dim + 1) * i, all.x + dim * i);
}

__global__ void __launch_bounds__(gpu_block)
    mpc_direct_kernel(__grid_constant__ const ugrid_device device, mpc_model model, mpc_arrays all,
                      int32_t n)
{
    size_t const i = static_cast<size_t>(gpu_thread()), dim = static_cast<size_t>(model.dim);
    if (gpu_thread() >= n) return;
    int32_t const cell = ugrid_cell_at(&device.grid, all.x + dim * i);
    float *sum = all.sums + (dim + 1) * static_cast<size_t>(cell);
    for (size_t k = 0; k <= dim; k++) atomicAdd(&sum[k], all.v[(dim + 1) * i + k]);
}

__global__ void __launch_bounds__(gpu_block)
    mpc_lists_kernel(__grid_constant__ const ugrid_device device, mpc_model model, mpc_arrays all)
{
    const ugrid &grid = device.grid;
    int32_t const cell = gpu_thread();
    size_t const width = static_cast<size_t>(model.dim) + 1;
    if (cell >= grid.cell_count) return;
    float sum[4] = {};
    for (int32_t i = grid.head[cell]; i >= 0; i = grid.next[i])
        for (size_t k = 0; k < width; k++) sum[k] += all.v[width * static_cast<size_t>(i) + k];
    for (size_t k = 0; k < width; k++) all.sums[width * static_cast<size_t>(cell) + k] = sum[k];
}

__global__ void __launch_bounds__(gpu_block)
    mpc_prepare_kernel(mpc_model model, mpc_arrays all, int32_t cells)
{
    int32_t const cell = gpu_thread();
    if (cell >= cells) return;
    mpc_prepare(&model, cell, all.sums + static_cast<size_t>(model.dim + 1) * cell,
                &all.turn[cell]);
}

__global__ void __launch_bounds__(gpu_block)
    mpc_collide_kernel(__grid_constant__ const ugrid_device device, mpc_model model, mpc_arrays all,
                       int32_t n)
{
    size_t const i = static_cast<size_t>(gpu_thread()), dim = static_cast<size_t>(model.dim);
    if (gpu_thread() >= n) return;
    int32_t const cell = ugrid_cell_at(&device.grid, all.x + dim * i);
    mpc_collide(&model, &all.turn[cell], all.v + (dim + 1) * i);
}

/* -------------------------------------------------------------------------------------------------
   >>step: the parts of collisions.c, under the same names
   ---------------------------------------------------------------------------------------------- */

struct mpc_gpu {
    scene *host;
    mpc_model model;
    mpc_arrays all;
    ugrid_cuda grid;
    cudaStream_t stream;
};

void mpc_build(mpc_gpu *run, ugrid_method method, int32_t n)
{
    ugrid_desc const desc = shifted_cells(&run->model, method);
    MUST(ugrid, ugrid_cuda_build(&run->grid, &desc, run->all.x, 0, n, run->stream), "the grid");
}

void mpc_prepare_sums(mpc_gpu *run, int way)
{
    ugrid_method const method[SUM_WAYS] = {UGRID_LIST, UGRID_LIST, UGRID_COUNT};
    mpc_build(run, method[way], way == SUM_DIRECT ? 0 : run->host->n);
}

void mpc_sum_cells(mpc_gpu *run, int way)
{
    const scene *s = run->host;
    size_t const width = static_cast<size_t>(run->model.dim) + 1,
                 bytes = width * static_cast<size_t>(s->cells) * sizeof(float);
    if (way == SUM_DIRECT) {
        gpu_must(cudaMemsetAsync(run->all.sums, 0, bytes, run->stream), "sums of cells");
        gpu_launch(run->stream, s->n, mpc_direct_kernel, run->grid.device, run->model, run->all,
                   s->n);
    }
    if (way == SUM_LISTS)
        gpu_launch(run->stream, s->cells, mpc_lists_kernel, run->grid.device, run->model, run->all);
    if (way == SUM_HEADER)
        MUST(ugrid,
             ugrid_cuda_cell_sums(&run->grid, run->all.v, run->model.dim + 1, 0, run->all.sums,
                                  run->stream),
             "sums of cells");
}

void mpc_order(mpc_gpu *run)
{
    size_t const dim = static_cast<size_t>(run->model.dim), real = sizeof(float);
    mpc_arrays *all = &run->all;
    cudaStream_t const stream = run->stream;
    mpc_build(run, UGRID_COUNT, run->host->n);
    MUST(ugrid, ugrid_cuda_gather(&run->grid, all->x, dim * real, all->spare_x, stream), "sorting");
    MUST(ugrid, ugrid_cuda_gather(&run->grid, all->v, (dim + 1) * real, all->spare_v, stream),
         "sorting");
    std::swap(all->x, all->spare_x);
    std::swap(all->v, all->spare_v);
}

/* Puts one step into the stream. */
void mpc_step(mpc_gpu *run, int way, int32_t order)
{
    int32_t const n = run->host->n, cells = run->host->cells;
    if (order && run->model.step % order == 0) mpc_order(run);
    gpu_launch(run->stream, n, mpc_stream_kernel, run->model, run->all, n);
    mpc_prepare_sums(run, way);
    mpc_sum_cells(run, way);
    gpu_launch(run->stream, cells, mpc_prepare_kernel, run->model, run->all, cells);
    gpu_launch(run->stream, n, mpc_collide_kernel, run->grid.device, run->model, run->all, n);
    run->model.step++;
}

#include "collisions_gpu.h" /* memory, --check, --time */

} // namespace

int main(int argc, char **argv)
{
    mpc_options const o = parse(argc, argv);
    scene *s = scene_new(&o);
    mpc_gpu gpu = mpc_gpu_new(s);
    run(s, advance_gpu, &gpu);
    if (o.time) time_sums(&gpu);
    bool const agree = !o.check || check_steps(&gpu);
    mpc_gpu_free(&gpu);
    scene_free(s);
    return agree ? 0 : 1;
}
