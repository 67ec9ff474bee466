/* tablets.cu - the tablets of tablets.c on a GPU: the same command line, physics and pictures.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: a contact of convex shapes in kernels. What happens to one tablet or contact
   (dem_bodies_pair, dem_body_planes or dem_body_walls, dem_body_move) is the text of tablets.c.
   Lists are built on the device, which also decides whether the last one still serves.

   How to run it:

       make cuda && build/cuda/tablets --scene drum    (from the top of the repository), or
       nvcc -O3 -arch=native examples/tablets/tablets.cu -o tablets -lstb
       ./tablets --scene box -n 1000000 --forms

   The last of these is case 1 of source 004 (section 6.3.1): tablets fall into a box, 10 layers of
   them, and then forces are timed in the source's three forms, beside its numbers. Its table 6.9,
   10 million in a drum (7.9 steps/s there):

       ./tablets --scene drum -n 10000000 --packed --rpm 8 --seconds 0.02

   --check compares with the steps of tablets.c; exit status 1 when they differ. The scene lean is
   one tablet: see tablets.c.

   What to look at: >>kernels and >>step below. All is in float. */

#define NLIST_REAL float
#define LBVH_REAL float
#define UGRID_REAL float
#define UGRID_CUDA
#define LBVH_CUDA
#define NLIST_CUDA
#include "tablets.c" /* without its main: the serial steps, to compare with */

#include "../common/dem_walls_gpu.h"

namespace {

/* -------------------------------------------------------------------------------------------------
   >>kernels: one thread per tablet; forces of pairs by dem_bodies_op
   ---------------------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(gpu_block)
    tablets_move_kernel(__grid_constant__ const dem_bodies bodies, const float *sums)
{
    int32_t const i = gpu_thread();
    if (i >= bodies.base.n) return;
    float sum[DEM_SUMS];
    for (int k = 0; k < DEM_SUMS; k++) sum[k] = sums[DEM_SUMS * static_cast<size_t>(i) + k];
    dem_body_planes(&bodies, i, sum);
    dem_body_move(&bodies, i, sum);
}

/* Where triangles have pushed (dem_walls_gpu.h). */
__global__ void __launch_bounds__(gpu_block)
    tablets_move_alone_kernel(__grid_constant__ const dem_bodies bodies, const float *sums)
{
    int32_t const i = gpu_thread();
    if (i >= bodies.base.n) return;
    float sum[DEM_SUMS];
    for (int k = 0; k < DEM_SUMS; k++) sum[k] = sums[DEM_SUMS * static_cast<size_t>(i) + k];
    dem_body_move(&bodies, i, sum);
}

/* Search and force in one kernel, as the source had it before its lists: every contact is computed
   for both of its tablets. */
__global__ void __launch_bounds__(gpu_block)
    tablets_search_kernel(__grid_constant__ const ugrid_device device,
                          __grid_constant__ const dem_bodies bodies, float reach, float *sums)
{
    int32_t const i = gpu_thread();
    if (i >= bodies.base.n) return;
    float own[DEM_SUMS] = {}, ignored[DEM_SUMS] = {};
    ugrid_near around =
        ugrid_near_within(&device.grid, bodies.base.pos + 4 * static_cast<size_t>(i), reach);
    while (ugrid_next(&around))
        if (around.id != i) dem_bodies_pair(&bodies, i, around.id, nullptr, own, ignored);
    for (int k = 0; k < DEM_SUMS; k++) sums[DEM_SUMS * static_cast<size_t>(i) + k] = own[k];
}

/* -------------------------------------------------------------------------------------------------
   >>step
   ---------------------------------------------------------------------------------------------- */

/* The parts of a step; its times lie between events PART and PART + 1. */
enum { PART_SORT, PART_GRID, PART_FIND_WALLS, PART_FIND_PAIRS, PART_PUSH_PAIRS, PART_PUSH_WALLS,
       PART_MOVE, PARTS };

struct tablets_gpu {
    scene *host;                /* as the device was when it was last looked at */
    dem_bodies bodies;          /* its arrays are device memory */
    dem_walls walls;            /* the same */
    lbvh_cuda tree;             /* over the triangles */
    float *sums;
    int32_t *id;
    float *spare, *plane_spare; /* into which arrays are sorted, if they are */
    int32_t *id_spare;
    ugrid_cuda grid;
    nlist_cuda pairs;
    nlist_desc desc;
    nlist_mode mode;            /* of the forces */
    cudaStream_t stream;
    gpu_events<2> events;       /* around the last steps: so many */
    int64_t timed;
    gpu_events<PARTS + 1> parts; /* of a step, where they are wanted */
    bool in_parts;
};

void tablets_grid(tablets_gpu *run)
{
    const dem_system *d = &run->bodies.base;
    MUST(ugrid,
         ugrid_cuda_build(&run->grid, &run->host->cells, d->pos, DEM_STRIDE, d->n, run->stream),
         "the grid");
}

/* One array into the order of the cells: into `spare`, with which it changes places. */
template <class T> void tablets_in_order(tablets_gpu *run, T **array, size_t bytes, T **spare)
{
    T *const old = *array;
    if (!*spare)
        *spare = gpu_array<T>(static_cast<size_t>(run->bodies.base.n) * (bytes / sizeof(T)));
    MUST(ugrid, ugrid_cuda_gather(&run->grid, old, bytes, *spare, run->stream), "sorting");
    *array = *spare;
    *spare = old;
}

/* Tablets lie in memory as in the cells; both lists follow. */
void tablets_sort(tablets_gpu *run)
{
    dem_system *d = &run->bodies.base;
    float **const records[] = {&d->pos, &d->vel, &d->spin, &run->bodies.turn,
                               &run->bodies.momentum};
    tablets_grid(run);
    for (float **array : records) tablets_in_order(run, array, DEM_STRIDE, &run->spare);
    tablets_in_order(run, &run->id, sizeof *run->id, &run->id_spare);
    if (d->plane_history)
        tablets_in_order(run, &d->plane_history, DEM_STRIDE * static_cast<size_t>(d->planes),
                         &run->plane_spare);
    const int32_t *new_of = run->grid.device.grid.inverse;
    if (run->pairs.device.list.built)
        MUST(nlist, nlist_cuda_remap(&run->pairs, new_of, d->n, run->stream), "new indices");
    if (run->host->options->mesh) dem_walls_gpu_remap(&run->walls, new_of, run->stream);
}

void tablets_collect(tablets_gpu *run)
{
    const dem_system *d = &run->bodies.base;
    if (run->desc.skin > 0)
        MUST(nlist, nlist_cuda_moved(&run->pairs, d->pos, DEM_STRIDE, run->stream), "the skin");
    MUST(nlist,
         nlist_cuda_build_ugrid(&run->pairs, &run->desc, &run->grid, d->pos, DEM_STRIDE, d->n,
                                run->stream),
         "the list");
}

void tablets_push(tablets_gpu *run)
{
    nlist_sums const how = {DEM_SUMS, run->mode, 0};
    size_t const bytes = DEM_SUMS * static_cast<size_t>(run->bodies.base.n) * sizeof(float);
    gpu_must(cudaMemsetAsync(run->sums, 0, bytes, run->stream), "clearing");
    MUST(nlist,
         nlist_cuda_sum<DEM_SUMS>(&run->pairs, &how, dem_bodies_op{run->bodies}, run->sums,
                                  run->stream),
         "the forces");
}

/* Where the drum is in this step. */
void tablets_turn(tablets_gpu *run)
{
    const scene *s = run->host;
    memcpy(run->bodies.base.plane, s->bodies.base.plane, sizeof s->bodies.base.plane);
    memcpy(run->walls.turn, s->walls.turn, sizeof s->walls.turn);
}

/* Which tablets are near a triangle: only those are pushed by one. */
void tablets_find_walls(tablets_gpu *run)
{
    if (run->host->options->mesh) dem_walls_gpu_find(&run->bodies, &run->walls, run->stream);
}

void tablets_push_walls(tablets_gpu *run)
{
    if (run->host->options->mesh)
        dem_walls_gpu_push(&run->bodies, &run->walls, run->sums, run->stream);
}

/* Planes push here. */
void tablets_move(tablets_gpu *run)
{
    gpu_launch(run->stream, run->bodies.base.n,
               run->host->options->mesh ? tablets_move_alone_kernel : tablets_move_kernel,
               run->bodies, run->sums);
}

/* A part of the step has ended. */
void tablets_mark(tablets_gpu *run, int part)
{
    if (run->in_parts) run->parts.record(part + 1, run->stream);
}

/* Waits for nothing. */
void tablets_step(tablets_gpu *run)
{
    scene *s = run->host;
    if (s->kind == SCENE_DRUM)
        place_drum(s, s->omega * static_cast<double>(s->bodies.base.dt) *
                          static_cast<double>(s->step));
    tablets_turn(run);
    tablets_mark(run, -1);
    if (sorts(s)) tablets_sort(run);
    tablets_mark(run, PART_SORT);
    tablets_grid(run);
    tablets_mark(run, PART_GRID);
    tablets_find_walls(run);
    tablets_mark(run, PART_FIND_WALLS);
    tablets_collect(run);
    tablets_mark(run, PART_FIND_PAIRS);
    tablets_push(run);
    tablets_mark(run, PART_PUSH_PAIRS);
    tablets_push_walls(run);
    tablets_mark(run, PART_PUSH_WALLS);
    tablets_move(run);
    tablets_mark(run, PART_MOVE);
    s->step++;
}

#include "tablets_gpu.h"

#ifndef TABLETS_AS_PART /* coating.cu moves its bed by the steps above */
void advance_gpu(void *user, int64_t steps)
{
    tablets_gpu *run = static_cast<tablets_gpu *>(user);
    if (!steps) {
        tablets_look(run);
        return;
    }
    run->timed = steps;
    run->events.record(0, run->stream);
    while (steps-- > 0) {
        tablets_step(run);
        run->desc.grow = 0; /* after the first list: tablets_inspect */
    }
    run->events.record(1, run->stream);
    tablets_inspect(run);
}

#include "tablets_tables.h"
#endif

} // namespace

#ifndef TABLETS_AS_PART
int main(int argc, char **argv)
{
    tablet_options const o = parse(argc, argv);
    char usual[64];
    snprintf(usual, sizeof usual, "build/tablets_%s.png", o.scene);
    if (option_find(scene_names, "--scene", o.scene) == SCENE_LEAN)
        stop(2, "--scene lean is one tablet: build/tablets shows it");
    tablets_gpu run;
    tablets_gpu_new(&run, scene_new(&o, 1));
    if (o.tables) {
        tablets_tables(&run, o.tables);
        tablets_gpu_free(&run);
        return 0;
    }
    run_many(run.host, advance_gpu, &run, o.out ? o.out : usual);
    tablets_print_time(&run);
    if (o.save) tablets_save(&run);
    bool const agree = !o.check || tablets_check(&run);
    if (o.forms) tablets_forms(&run);
    tablets_gpu_free(&run);
    return agree ? 0 : 1;
}
#endif
