/* coating.cu - the coating of coating.c on a GPU: the same command line, bed and pictures.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: closest hits with shapes of your own in kernels, one thread per ray. Walks, tests
   and rays are the text of coating.c (coat_by_tree, coat_by_grid, coat_ray); the bed moves by the
   steps of tablets.cu. lbvh_cuda_closest_hits is for triangles, so the rays walk the binary tree.
   Nothing is read back until a line is printed.

   How to run it:

       make cuda && build/cuda/coating                 (from the top of the repository), or
       nvcc -O3 -arch=native examples/coating/coating.cu -o coating -lstb
       ./coating -n 1000000 --seconds 0.0005 --rays 1000000 --time

   --check compares the hits in the end with those that coating.c finds; exit status 1 when they
   differ.

   What to look at: >>kernels and >>burst below. All is in float. */

#define PROGRAM "coating"
#define LBVH_WITH_WIDE /* more/lbvh_wide.h: trees of eight children */
#define TABLETS_AS_PART
#include "../tablets/tablets.cu" /* without its main: the bed and its steps */

#include "coating.c" /* without its main: the walks */

namespace {

/* -------------------------------------------------------------------------------------------------
   >>kernels: one thread per particle, or per ray
   ---------------------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(gpu_block)
    coat_boxes_kernel(__grid_constant__ const dem_bodies bodies, float *boxes)
{
    int32_t const i = gpu_thread();
    if (i < bodies.base.n) coat_box(&bodies, i, boxes + 6 * static_cast<size_t>(i));
}

__global__ void __launch_bounds__(gpu_block)
    coat_rays_kernel(__grid_constant__ const coat_spray spray, int64_t burst, float *rays)
{
    int32_t const r = gpu_thread();
    if (r < spray.rays) coat_ray(&spray, burst, r, rays + 6 * static_cast<size_t>(r));
}

__global__ void __launch_bounds__(gpu_block)
    coat_tree_kernel(__grid_constant__ const lbvh_device tree,
                     __grid_constant__ const dem_bodies bodies, int32_t n, const float *rays,
                     coat_hit *hits)
{
    int32_t const r = gpu_thread();
    if (r < n) hits[r] = coat_by_tree(&tree.tree, &bodies, rays + 6 * static_cast<size_t>(r));
}

__global__ void __launch_bounds__(gpu_block)
    coat_grid_kernel(__grid_constant__ const ugrid_device grid,
                     __grid_constant__ const dem_bodies bodies, int32_t reach, int32_t n,
                     const float *rays, coat_hit *hits)
{
    int32_t const r = gpu_thread();
    if (r < n)
        hits[r] = coat_by_grid(&grid.grid, &bodies, reach, rays + 6 * static_cast<size_t>(r));
}

__global__ void __launch_bounds__(gpu_block)
    coat_brute_kernel(__grid_constant__ const dem_bodies bodies, int32_t n, const float *rays,
                      coat_hit *hits)
{
    int32_t const r = gpu_thread();
    if (r >= n) return;
    coat_hit best = coat_no_hit();
    for (int32_t i = 0; i < bodies.base.n; i++)
        coat_test(&bodies, i, rays + 6 * static_cast<size_t>(r), &best);
    hits[r] = best;
}

__global__ void __launch_bounds__(gpu_block)
    coat_deposit_kernel(int32_t n, const coat_hit *hits, unsigned long long *count)
{
    int32_t const r = gpu_thread();
    if (r < n) atomicAdd(count + 1 + hits[r].id, 1ull);
}

/* -------------------------------------------------------------------------------------------------
   >>burst
   ---------------------------------------------------------------------------------------------- */

struct coat_gpu {
    coating *host;
    tablets_gpu bed;
    float *rays, *boxes;        /* [6 rays], [6 n] */
    coat_hit *hits;             /* [rays] */
    unsigned long long *count;  /* [1 + n] as in coating */
    ugrid_cuda grid;
    lbvh_cuda tree;
};

void coat_gpu_prepare(coat_gpu *run, int search)
{
    const dem_bodies *b = &run->bed.bodies;
    ugrid_desc const desc = coat_grid_desc(run->host->bed, search == COAT_LOOSE);
    if (search == COAT_TREE) {
        gpu_launch(run->bed.stream, b->base.n, coat_boxes_kernel, *b, run->boxes);
        MUST(lbvh,
             lbvh_cuda_build(&run->tree, nullptr, run->boxes, 0, b->base.n, run->bed.stream),
             "the tree");
    } else if (search != COAT_BRUTE) {
        MUST(ugrid,
             ugrid_cuda_build(&run->grid, &desc, b->base.pos, DEM_STRIDE, b->base.n,
                              run->bed.stream),
             "the grid");
    }
}

void coat_gpu_find(coat_gpu *run, int search)
{
    int32_t const n = run->host->spray.rays;
    const dem_bodies *b = &run->bed.bodies;
    if (search == COAT_TREE)
        gpu_launch(run->bed.stream, n, coat_tree_kernel, run->tree.device, *b, n, run->rays,
                   run->hits);
    else if (search == COAT_BRUTE)
        gpu_launch(run->bed.stream, n, coat_brute_kernel, *b, n, run->rays, run->hits);
    else
        gpu_launch(run->bed.stream, n, coat_grid_kernel, run->grid.device, *b,
                   search == COAT_LOOSE, n, run->rays, run->hits);
}

void coat_gpu_make_rays(coat_gpu *run, int64_t burst)
{
    gpu_launch(run->bed.stream, run->host->spray.rays, coat_rays_kernel, run->host->spray, burst,
               run->rays);
}

void coat_gpu_burst(coat_gpu *run)
{
    int32_t const n = run->host->spray.rays;
    coat_gpu_make_rays(run, run->host->bursts++);
    coat_gpu_prepare(run, run->host->search);
    coat_gpu_find(run, run->host->search);
    gpu_launch(run->bed.stream, n, coat_deposit_kernel, n, run->hits, run->count);
}

#include "coating_gpu.h"

void coat_gpu_advance(void *user, int64_t steps)
{
    coat_gpu *run = static_cast<coat_gpu *>(user);
    while (steps-- > 0) {
        tablets_step(&run->bed);
        if (coat_is_due(run->host)) coat_gpu_burst(run);
    }
    coat_gpu_look(run);
}

} // namespace

int main(int argc, char **argv)
{
    coat_options const o = coat_parse(argc, argv);
    coating c = coating_new(&o);
    coat_gpu run;
    coat_gpu_new(&run, &c);
    coat_run(&c, coat_gpu_advance, &run);
    bool const agree = !o.check || coat_gpu_check(&run);
    if (o.time) coat_gpu_print_times(&run);
    coat_gpu_free(&run);
    return agree ? 0 : 1;
}
