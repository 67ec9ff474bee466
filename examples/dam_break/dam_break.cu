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

/* The forces on the sphere of one place. Path: how this kind of grid is searched; each has a kernel
   of its own. */
template <ugrid_path Path>
__global__ void __launch_bounds__(gpu_block)
    dam_forces_kernel(__grid_constant__ const ugrid_device device, dam_model model,
                      dam_particles all)
{
    const ugrid &grid = device.grid;
    int32_t const place = gpu_thread();
    if (place >= grid.n) return;
    dam_one one = {};
    const float *v = all.moved_vel + 3 * static_cast<size_t>(dam_index_of(&grid, &all, place));
    for (int a = 0; a < 3; a++) one.v[a] = v[a];
    ugrid_for_each<Path>(grid, place, DAM_DIAMETER, false, [&](const ugrid_contact &contact) {
        size_t const other =
            static_cast<size_t>(all.reorder ? contact.place_j : contact.j);
        float f[3];
        if (contact.d2 >= DAM_DIAMETER * DAM_DIAMETER) return;
        dam_contact(&model, contact.d, contact.d2, one.v, all.moved_vel + 3 * other, f);
        for (int a = 0; a < 3; a++) one.force[a] += f[a];
    });
    for (int a = 0; a < 3; a++) all.force[3 * static_cast<size_t>(place) + a] = one.force[a];
}

/* The kernel for a grid. */
auto dam_forces_of(const ugrid *grid)
{
    switch (ugrid_path_of(grid)) {
    case UGRID_PATH_STRIPS: return dam_forces_kernel<UGRID_PATH_STRIPS>;
    case UGRID_PATH_RANGES: return dam_forces_kernel<UGRID_PATH_RANGES>;
    case UGRID_PATH_WALK:   return dam_forces_kernel<UGRID_PATH_WALK>;
    default:                return dam_forces_kernel<UGRID_PATH_SPECIAL>;
    }
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
    gpu_launch(run->stream, run->n, dam_forces_of(&run->grid.device.grid), run->grid.device,
               run->model, run->all);
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
    if (own.insertion) {
        double const seconds = dam_gpu_insertion(&run);
        printf("  slowest step        %11.3f ms   insertion %.4f ms, %.1f million per second\n",
               1e3 * run.slowest_step, 1e3 * seconds, run.n / seconds / 1e6);
    }
    bool const agree = !own.check || dam_check(&own, &model, &state, &run);
    dam_gpu_free(&run);
    dam_state_free(&state);
    return agree ? 0 : 1;
}
