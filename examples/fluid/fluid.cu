/* fluid.cu - the fluid of fluid.c on a GPU: the same command line, physics and pictures.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: long rows in kernels. Eight neighbouring threads share a row of the list and take
   its entries in turn, so that entries, and what is kept with them, are read side by side. What a
   pair adds (fluid_meet, fluid_lean, fluid_push) is the text of fluid.c.

   How to run it:

       make cuda && build/cuda/fluid                   (from the top of the repository), or
       nvcc -O3 -arch=native examples/fluid/fluid.cu -o fluid -lstb
       ./fluid --across 700 --until 0.1 --time

   The last line: a million particles. --check compares with the steps of fluid.c; exit status 1
   when they differ.

   What to look at: >>kernels and >>step below. All is in float. */

#define NLIST_REAL float
#define UGRID_REAL float
#define UGRID_CUDA
#define NLIST_CUDA
#include "fluid.c" /* without its main: the serial steps, to compare with */

#include "fluid_gpu.h"

namespace {

/* -------------------------------------------------------------------------------------------------
   >>kernels
   ---------------------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(gpu_block)
    fluid_densities_kernel(__grid_constant__ const nlist_device device, fluid_model model,
                           fluid_particles now, fluid_kept *kept)
{
    fluid_share row = fluid_share_of(device.list);
    float4 const p = row.i < 0 ? float4{} : fluid_record(now.pos, row.i);
    bool const fluid = !fluid_is_wall(&p.x);
    float sum = 0;
    for (; fluid && row.at < row.end; row.at += lanes) {
        float4 const q = fluid_record(now.pos, row.partner[row.at]);
        fluid_kept here;
        sum += fluid_meet(&model, &p.x, &q.x, &here);
        kept[row.at] = here;
    }
    sum = fluid_total(sum) + fluid_kernel(&model, 1);
    if (fluid && row.lane == 0)
        fluid_set_fluid(&model, sum, now.vel + 4 * static_cast<size_t>(row.i),
                        now.density + 2 * static_cast<size_t>(row.i));
}

__global__ void __launch_bounds__(gpu_block)
    fluid_walls_kernel(__grid_constant__ const nlist_device device, fluid_model model,
                       fluid_particles now)
{
    fluid_share row = fluid_share_of(device.list);
    float4 const p = row.i < 0 ? float4{} : fluid_record(now.pos, row.i);
    bool const wall = row.i >= 0 && fluid_is_wall(&p.x);
    float sums[2] = {};
    for (; wall && row.at < row.end; row.at += lanes) {
        int32_t const j = row.partner[row.at];
        float4 const q = fluid_record(now.pos, j);
        if (!fluid_is_wall(&q.x))
            fluid_lean(&model, &p.x, &q.x, now.vel + 4 * static_cast<size_t>(j),
                       now.density + 2 * static_cast<size_t>(j), sums);
    }
    for (float &sum : sums) sum = fluid_total(sum);
    if (wall && row.lane == 0)
        fluid_set_wall(&model, sums, now.vel + 4 * static_cast<size_t>(row.i),
                       now.density + 2 * static_cast<size_t>(row.i));
}

/* kept NULL: gradients are computed again, to see what keeping them is worth; moves: not then. */
__global__ void __launch_bounds__(gpu_block)
    fluid_forces_kernel(__grid_constant__ const nlist_device device, fluid_model model,
                        fluid_particles now, const fluid_kept *kept, float *next, int32_t moves)
{
    fluid_share row = fluid_share_of(device.list);
    int32_t const i = row.i < 0 ? 0 : row.i;
    float4 const p = fluid_record(now.pos, i), v = fluid_record(now.vel, i);
    bool const fluid = row.i >= 0 && !fluid_is_wall(&p.x);
    float acceleration[3] = {};
    for (; fluid && row.at < row.end; row.at += lanes) {
        int32_t const j = row.partner[row.at];
        float4 const w = fluid_record(now.vel, j);
        fluid_kept here;
        if (kept) {
            here = kept[row.at];
        } else {
            float4 const q = fluid_record(now.pos, j);
            fluid_meet(&model, &p.x, &q.x, &here);
        }
        fluid_push(&here, &v.x, &w.x, acceleration);
    }
    for (float &a : acceleration) a = fluid_total(a);
    if (!moves) model.dt = 0;
    if (row.i >= 0 && row.lane == 0)
        fluid_move(&model, acceleration, &v.x, now.pos + 4 * static_cast<size_t>(i),
                   next + 4 * static_cast<size_t>(i));
}

/* -------------------------------------------------------------------------------------------------
   >>step: the parts of fluid.c, under the same names
   ---------------------------------------------------------------------------------------------- */

void fluid_grid(fluid_gpu *run)
{
    MUST(ugrid,
         ugrid_cuda_build(&run->grid, &run->host->cells, run->now.pos, FLUID_STRIDE, run->host->n,
                          run->stream),
         "the grid");
}

void fluid_sort(fluid_gpu *run)
{
    fluid_particles const old = run->now;
    fluid_grid(run);
    fluid_gather(run, old.pos, FLUID_STRIDE, run->spare.pos);
    fluid_gather(run, old.vel, FLUID_STRIDE, run->spare.vel);
    fluid_gather(run, old.density, 2 * sizeof(float), run->spare.density);
    fluid_gather(run, old.id, sizeof *old.id, run->spare.id);
    run->now = run->spare;
    run->spare = old;
}

/* The host waits for one number: has a particle moved by half of the skin? */
void fluid_collect(fluid_gpu *run)
{
    if (!fluid_moved(run)) return;
    fluid_sort(run);
    fluid_grid(run);
    MUST(nlist,
         nlist_cuda_build_ugrid(&run->list, &run->host->desc, &run->grid, run->now.pos,
                                FLUID_STRIDE, run->host->n, run->stream),
         "the list");
    MUST(nlist, nlist_cuda_check(&run->list, run->stream), "the list");
    run->host->builds++;
    fluid_make_room(run);
}

void fluid_look_around(fluid_gpu *run)
{
    int64_t const threads = static_cast<int64_t>(lanes) * run->host->n;
    run->events.record(0, run->stream);
    fluid_collect(run);
    run->events.record(LISTS, run->stream);
    gpu_launch(run->stream, threads, fluid_densities_kernel, run->list.device, run->host->model,
               run->now, run->kept);
    run->events.record(DENSITIES, run->stream);
    gpu_launch(run->stream, threads, fluid_walls_kernel, run->list.device, run->host->model,
               run->now);
    run->events.record(WALLS, run->stream);
}

void fluid_launch_forces(fluid_gpu *run, const fluid_kept *kept, int32_t moves)
{
    gpu_launch(run->stream, static_cast<int64_t>(lanes) * run->host->n, fluid_forces_kernel,
               run->list.device, run->host->model, run->now, kept, run->spare.vel, moves);
}

void fluid_push_and_move(fluid_gpu *run)
{
    float *const next = run->spare.vel;
    fluid_launch_forces(run, run->kept, 1);
    run->spare.vel = run->now.vel;
    run->now.vel = next;
    run->events.record(FORCES, run->stream);
}

void advance_gpu(void *user, int64_t steps)
{
    fluid_gpu *run = static_cast<fluid_gpu *>(user);
    for (; steps > 0; steps--, run->host->step++) {
        fluid_look_around(run);
        fluid_push_and_move(run);
        if (run->host->options->time) fluid_count_time(run);
    }
    fluid_look_around(run);
    fluid_look(run);
}

} // namespace

int main(int argc, char **argv)
{
    fluid_options const o = parse(argc, argv);
    fluid_gpu device;
    fluid_gpu_new(&device, scene_new(&o));
    run(device.host, advance_gpu, &device);
    if (o.time) fluid_time_forces(&device);
    bool const agree = !o.check || fluid_check(&device);
    fluid_gpu_free(&device);
    return agree ? 0 : 1;
}
