/* dam_break.cu - the dam break of dam_break.c on a GPU: the same command line, physics and
   pictures.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: how a simulation uses the CUDA part of ugrid.h. A time step is the three loops of
   dam_break.c, where each thread takes one turn of a loop; what a turn does (the walk around a
   particle, dam_contact, dam_move) is the same text. Steps allocate nothing, wait for nothing and
   read nothing back, so one step is captured as a CUDA graph, and then replayed.

   How to run it:

       make cuda && build/cuda/dam_break --demo        (from the top of the repository), or
       nvcc -O3 -arch=native examples/dam_break/dam_break.cu -o dam_break -lstb
       ./dam_break -n 1000000 --method packed --frames 100 --sheet --out pictures

   --check also makes 5 more steps twice, here and with the serial code of dam_break.c, and
   compares; exit status 1 when they differ.

   What to look at: >>kernels and >>step below; dam_break_gpu.h has memory, times and the check. */

#define UGRID_IMPLEMENTATION
#define UGRID_CUDA
#include "dam_break.c" /* without its main: the serial steps, to compare with */

#include "dam_break_gpu.h"

namespace {

/* -------------------------------------------------------------------------------------------------
   >>kernels: one thread per place
   ---------------------------------------------------------------------------------------------- */

__device__ int32_t dam_index_of(const ugrid *grid, const dam_particles *all, int32_t place)
{
    return all->reorder ? place : ugrid_id(grid, place);
}

/* The force on one sphere by the one at `place`, if they touch. */
__device__ void dam_meet(const dam_model *model, const ugrid *grid, const dam_particles *all,
                         dam_one *one, const float q[3], int32_t place)
{
    float d[3], f[3];
    float const d2 = dam_between(one->p, q, d);
    if (d2 >= DAM_DIAMETER * DAM_DIAMETER) return;
    dam_contact(model, d, d2, one->v,
                all->moved_vel + 3 * static_cast<size_t>(dam_index_of(grid, all, place)), f);
    for (int a = 0; a < 3; a++) one->force[a] += f[a];
}

/* Ranges where the grid has them: records that lie side by side. Else one near particle after
   another. */
__global__ void __launch_bounds__(gpu_block)
    dam_forces_kernel(__grid_constant__ const ugrid_device device, dam_model model,
                      dam_particles all)
{
    const ugrid *grid = &device.grid;
    int32_t const place = gpu_thread();
    if (place >= grid->n) return;
    dam_one one = {};
    const float *v = all.moved_vel + 3 * static_cast<size_t>(dam_index_of(grid, &all, place));
    ugrid_point(grid, place, one.p);
    for (int a = 0; a < 3; a++) one.v[a] = v[a];
    ugrid_near near = ugrid_near_place(grid, place, DAM_DIAMETER);
    if (ugrid_has_ranges(grid)) {
        while (ugrid_next_range(&near))
            for (int32_t k = near.begin; k < near.end; k++) {
                ugrid_record const record = grid->record[k];
                if (k != place) dam_meet(&model, grid, &all, &one, record.x, k);
            }
    } else {
        while (ugrid_next(&near)) {
            float q[3];
            ugrid_point(grid, near.place, q);
            dam_meet(&model, grid, &all, &one, q, near.place);
        }
    }
    for (int a = 0; a < 3; a++) all.force[3 * static_cast<size_t>(place) + a] = one.force[a];
}

/* The first thread also keeps the worst facts of all steps, for the host to look at once in a
   while. */
__global__ void __launch_bounds__(gpu_block)
    dam_integrate_kernel(__grid_constant__ const ugrid_device device, dam_model model,
                         dam_particles all, const ugrid_cuda_facts *facts, ugrid_cuda_facts *worst)
{
    const ugrid *grid = &device.grid;
    int32_t const place = gpu_thread();
    if (place == 0) {
        if (facts->first_bad > worst->first_bad) worst->first_bad = facts->first_bad;
        if (facts->needed_slots > worst->needed_slots) worst->needed_slots = facts->needed_slots;
    }
    if (place >= grid->n) return;
    int32_t const index = dam_index_of(grid, &all, place);
    float p[3], v[3], force[3];
    ugrid_point(grid, place, p);
    for (int a = 0; a < 3; a++) {
        v[a] = all.moved_vel[3 * static_cast<size_t>(index) + a];
        force[a] = all.force[3 * static_cast<size_t>(place) + a];
    }
    dam_move(&model, force, p, v);
    for (int a = 0; a < 3; a++) {
        all.pos[3 * static_cast<size_t>(index) + a] = p[a];
        all.vel[3 * static_cast<size_t>(index) + a] = v[a];
    }
    if (all.reorder) all.id[index] = all.moved_id[index];
}

/* -------------------------------------------------------------------------------------------------
   >>step
   ---------------------------------------------------------------------------------------------- */

void dam_gpu_build(dam_gpu *run)
{
    dam_particles *all = &run->all;
    MUST(ugrid, ugrid_cuda_build(&run->grid, &run->desc, all->pos, 0, run->n, run->stream),
         "building the grid");
    if (!all->reorder) return;
    MUST(ugrid,
         ugrid_cuda_gather(&run->grid, all->vel, 3 * sizeof(float), all->moved_vel, run->stream),
         "moving velocities");
    MUST(ugrid, ugrid_cuda_gather(&run->grid, all->id, sizeof(int32_t), all->moved_id, run->stream),
         "moving ids");
}

/* Puts one step into the stream. `timed`: with events between its parts. */
void dam_gpu_step(dam_gpu *run, bool timed)
{
    if (timed) run->events.record(DAM_START, run->stream);
    dam_gpu_build(run);
    if (timed) run->events.record(DAM_BUILT, run->stream);
    gpu_launch(run->stream, run->n, dam_forces_kernel, run->grid.device, run->model, run->all);
    if (timed) run->events.record(DAM_PUSHED, run->stream);
    gpu_launch(run->stream, run->n, dam_integrate_kernel, run->grid.device, run->model, run->all,
               run->grid.d_facts, run->d_worst);
    if (timed) run->events.record(DAM_MOVED, run->stream);
}

} // namespace

int main(int argc, char **argv)
{
    dam_options const options = dam_parse(argc, argv);
    if (options.half && !options.demo)
        stop(2, "--half is for the serial program: on a GPU two threads would add to one sum");
    dam_options own = options;
    own.half = 0;
    dam_state state = dam_begin(&own);
    dam_model const model = dam_model_for(&own, state.n);
    dam_gpu run = dam_gpu_new(&own, &model, &state);
    dam_engine const engine = {&run, 50, dam_gpu_advance, dam_gpu_fetch, dam_gpu_times};
    dam_run(&own, &model, &engine, &state);
    dam_finish(&own, &model, &engine, &state);
    bool const agree = !own.check || dam_check(&own, &model, &state, &run);
    dam_gpu_free(&run);
    dam_state_free(&state);
    return agree ? 0 : 1;
}
