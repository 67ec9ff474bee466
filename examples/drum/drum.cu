/* drum.cu - the rotating drum of drum.c on a GPU: the same command line, physics and pictures, for
   ten million spheres and more.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: how a simulation uses the CUDA parts of ugrid.h, lbvh.h and nlist.h together. A
   time step is that of drum.c; what happens to one sphere, vertex or contact (dem_move, drum_turn,
   dem_spheres, dem_triangle) is the same text. Steps read nothing back and wait for nothing. Every
   --check-every steps the host asks the device whether all has fitted, and adds memory before it
   runs out.

   How to run it:

       make cuda && build/cuda/drum --demo             (from the top of the repository), or
       nvcc -O3 -arch=native examples/drum/drum.cu -o drum -lstb
       ./drum -n 10000000 --length 1.6 --fill 0.1 --rpm 8 --spacing 0.998 --steps 1000

   The last of these is the drum coater of Kureck's table 6.8 (--spacing 0.998: they touch from the
   first step on); with 10 million spheres the times are printed beside his. --check compares 5 more
   steps with those of drum.c; exit status 1 when they differ.

   --curves FILE makes tables 6.8 and 6.10 and the curves of figure 6.9: --steps steps in the order
   at the start, then sorted every step, every 10 and 100, and once; times as lines of a CSV file.

   What to look at: >>kernels and >>step below. drum_gpu.h has memory, checks and times. */

#define UGRID_IMPLEMENTATION
#define LBVH_IMPLEMENTATION
#define NLIST_IMPLEMENTATION
#define UGRID_CUDA
#define LBVH_CUDA
#define NLIST_CUDA
#include "drum.c" /* without its main: the serial steps, to compare with */

#include "drum_gpu_check.h"

namespace {

/* -------------------------------------------------------------------------------------------------
   >>kernels: one thread per vertex, or per sphere; forces by dem_spheres_op, dem_triangle_op
   ---------------------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(gpu_block)
    drum_turn_kernel(int32_t vertices, const float *rest, float cosine, float sine, float *now)
{
    int32_t const v = gpu_thread();
    if (v < vertices)
        drum_turn(rest + 3 * static_cast<size_t>(v), cosine, sine,
                  now + 3 * static_cast<size_t>(v));
}

__global__ void __launch_bounds__(gpu_block)
    drum_move_kernel(__grid_constant__ const dem_system system, const float *sums)
{
    int32_t const i = gpu_thread();
    if (i >= system.n) return;
    float sum[DEM_SUMS];
    for (int k = 0; k < DEM_SUMS; k++) sum[k] = sums[DEM_SUMS * static_cast<size_t>(i) + k];
    dem_move(&system, i, sum);
}

/* -------------------------------------------------------------------------------------------------
   >>step: the parts of drum.c, under the same names
   ---------------------------------------------------------------------------------------------- */

void drum_gpu_move(drum_gpu *run)
{
    gpu_launch(run->stream, run->system.n, drum_move_kernel, run->system, run->state.sums);
}

void drum_gpu_grid(drum_gpu *run)
{
    MUST(ugrid,
         ugrid_cuda_build(&run->grid, &run->grid_desc, run->state.pos, DEM_STRIDE, run->system.n,
                          run->stream),
         "building the grid");
}

void drum_gpu_gather(drum_gpu *run, const void *from, size_t bytes, void *to)
{
    MUST(ugrid, ugrid_cuda_gather(&run->grid, from, bytes, to, run->stream), "sorting the spheres");
}

/* Near spheres come to lie near each other in memory; both lists follow. */
void drum_gpu_sort(drum_gpu *run)
{
    drum_device_state const old = run->state;
    drum_gpu_grid(run);
    drum_gpu_gather(run, old.pos, DEM_STRIDE, run->spare.pos);
    drum_gpu_gather(run, old.vel, DEM_STRIDE, run->spare.vel);
    drum_gpu_gather(run, old.spin, DEM_STRIDE, run->spare.spin);
    drum_gpu_gather(run, old.id, sizeof *old.id, run->spare.id);
    const int32_t *new_id = run->grid.device.grid.inverse;
    MUST(nlist, nlist_cuda_remap(&run->pairs, new_id, run->system.n, run->stream), "new indices");
    MUST(nlist, nlist_cuda_remap(&run->walls, new_id, run->system.n, run->stream), "new indices");
    run->state = run->spare;
    run->spare = old;
    drum_gpu_use(run);
}

void drum_gpu_triangles(drum_gpu *run)
{
    double const angle = drum_angle(run->setup, run->step);
    gpu_launch(run->stream, run->system.mesh.vertex_count, drum_turn_kernel,
               run->system.mesh.vertex_count, run->rest, static_cast<float>(cos(angle)),
               static_cast<float>(sin(angle)), run->now);
    MUST(lbvh, lbvh_cuda_refit(&run->tree, run->now, 0, run->stream), "refitting the tree");
}

void drum_gpu_collect_triangles(drum_gpu *run)
{
    MUST(nlist,
         nlist_cuda_build_mesh(&run->walls, &run->walls_desc, &run->tree, &run->system.mesh,
                               run->state.pos, DEM_STRIDE, run->system.n, run->stream),
         "collecting triangles");
}

/* With a skin the device decides by itself whether the last list still serves. */
void drum_gpu_collect_spheres(drum_gpu *run)
{
    if (run->pairs_desc.skin > 0)
        MUST(nlist, nlist_cuda_moved(&run->pairs, run->state.pos, DEM_STRIDE, run->stream),
             "the skin");
    MUST(nlist,
         nlist_cuda_build_ugrid(&run->pairs, &run->pairs_desc, &run->grid, run->state.pos,
                                DEM_STRIDE, run->system.n, run->stream),
         "collecting spheres");
}

void drum_gpu_push_triangles(drum_gpu *run)
{
    size_t const bytes = DEM_SUMS * static_cast<size_t>(run->system.n) * sizeof(float);
    gpu_must(cudaMemsetAsync(run->state.sums, 0, bytes, run->stream), "clearing");
    MUST(nlist,
         nlist_cuda_sum<DEM_SUMS>(&run->walls, &run->setup->wall_sums, dem_triangle_op{run->system},
                                  run->state.sums, run->stream),
         "forces of the drum");
}

void drum_gpu_push_spheres(drum_gpu *run)
{
    MUST(nlist,
         nlist_cuda_sum<DEM_SUMS>(&run->pairs, &run->setup->pair_sums, dem_spheres_op{run->system},
                                  run->state.sums, run->stream),
         "forces of spheres");
}

/* Lists and forces for the spheres as they lie. */
void drum_gpu_look_around(drum_gpu *run, bool timed)
{
    drum_gpu_triangles(run);
    drum_mark(run, timed, DRUM_TRIANGLES);
    drum_gpu_grid(run);
    drum_mark(run, timed, DRUM_GRID);
    drum_gpu_collect_triangles(run);
    drum_mark(run, timed, DRUM_FIND_TRIANGLES);
    drum_gpu_collect_spheres(run);
    drum_mark(run, timed, DRUM_FIND_SPHERES);
    drum_gpu_push_triangles(run);
    drum_mark(run, timed, DRUM_PUSH_TRIANGLES);
    drum_gpu_push_spheres(run);
    drum_mark(run, timed, DRUM_PUSH_SPHERES);
}

/* Puts one step into the stream. */
void drum_gpu_step(drum_gpu *run, bool timed)
{
    run->step++;
    drum_mark(run, timed, -1);
    drum_gpu_move(run);
    drum_mark(run, timed, DRUM_MOVE);
    if (drum_sorts(run->options, run->step)) {
        run->events.record(DRUM_SORT_BEGIN, run->stream);
        drum_gpu_sort(run);
        run->events.record(DRUM_SORT_END, run->stream);
    }
    drum_mark(run, timed, DRUM_SORT);
    drum_gpu_look_around(run, timed);
}

} // namespace

int main(int argc, char **argv)
{
    drum_options options = drum_parse(argc, argv);
    /* the grid must be ready to sort */
    if (options.curves && options.sort_every == 0) options.sort_every = 1;
    drum_setup setup = drum_setup_new(&options);
    drum_saved start = drum_first(&options, &setup);
    drum_gpu run;
    drum_gpu_new(&run, &options, &setup, &start.state);
    drum_gpu_begin(&run, &start);
    drum_saved_free(&start);
    if (options.curves) drum_all_curves(&run, &options, options.curves);
    else drum_run_to_the_end(&run, &options, &setup);
    bool const agree = !options.check || drum_check(&options, &setup, &run);
    drum_gpu_free(&run);
    drum_mesh_free(&setup.mesh);
    return agree ? 0 : 1;
}
