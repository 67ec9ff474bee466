/* broad_phase.cu - the broad phase of broad_phase.c on a GPU: the same command line, figures and
   picture.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: a grid and a tree that stay on the GPU from the spheres to the list of pairs. The
   grid's search is a kernel of its own (bp_pairs_kernel), with the same walk as in broad_phase.c;
   the tree's is ready-made. Both lists have fixed room and count on where it ends, so the size
   needed is known after the first try, and nothing is allocated from then on.

   How to run it:

       make cuda && build/cuda/broad_phase             (from the top of the repository), or
       nvcc -O3 -arch=native examples/broad_phase/broad_phase.cu -o broad_phase -lstb
       ./broad_phase -n 1000000 --picture slice.png

   --check also builds the tree with the serial code: it must be the same in every bit, with the
   same pairs; exit status 1 when not.

   What to look at: >>kernels, >>grid and >>tree below. */

#define UGRID_IMPLEMENTATION
#define UGRID_CUDA
#define LBVH_IMPLEMENTATION
#define LBVH_CUDA
#include "broad_phase.c" /* without its main: the serial searches, to compare with */

#include "broad_phase_gpu.h"
#include "broad_phase_sweep_gpu.h"

namespace {

/* -------------------------------------------------------------------------------------------------
   >>kernels
   ---------------------------------------------------------------------------------------------- */

/* One thread per place: the loop of bp_grid_pairs. `tests` (may be null) counts them, when
   nothing is timed. */
__global__ void __launch_bounds__(gpu_block)
    bp_pairs_kernel(__grid_constant__ const ugrid_device device, const bp_box *near_box,
                    float reach, bp_device_list list, unsigned long long *tests)
{
    const ugrid *grid = &device.grid;
    int32_t const place = gpu_thread();
    if (place >= grid->n) return;
    bp_box const own = near_box[place];
    unsigned long long compared = 0;
    ugrid_near near = ugrid_near_half(grid, place, reach);
    while (ugrid_next_range(&near)) {
        compared += static_cast<unsigned long long>(near.end - near.begin);
        for (int32_t k = near.begin; k < near.end; k++) {
            if (!bp_touch(&own, &near_box[k])) continue;
            unsigned long long const slot = atomicAdd(list.count, 1ull);
            if (slot >= static_cast<unsigned long long>(list.room)) continue;
            list.ids[2 * slot] = ugrid_id(grid, place);
            list.ids[2 * slot + 1] = ugrid_id(grid, k);
        }
    }
    if (tests) atomicAdd(tests, compared);
}

/* -------------------------------------------------------------------------------------------------
   >>grid
   ---------------------------------------------------------------------------------------------- */

/* The domain is asked for once: a simulation knows the box that it runs in. */
ugrid_desc bp_gpu_grid_desc(const bp_scene *scene)
{
    ugrid_desc desc = bp_grid_desc(scene);
    MUST(ugrid, ugrid_fit(&desc, scene->sphere->p, sizeof(bp_sphere), scene->n, nullptr),
         "measuring the spheres");
    return desc;
}

void bp_gpu_grid_build(bp_gpu *run, const ugrid_desc *desc)
{
    lbvh_desc const spheres = bp_tree_desc();
    int32_t const n = run->scene->n;
    const float *const data = run->d_sphere->p;
    MUST(ugrid, ugrid_cuda_build(&run->grid, desc, data, sizeof(bp_sphere), n, run->stream),
         "building the grid");
    MUST(lbvh,
         lbvh_cuda_boxes(&run->tree, &spheres, data, sizeof(bp_sphere), n, run->d_box->min,
                         run->stream),
         "making boxes");
    MUST(ugrid,
         ugrid_cuda_gather(&run->grid, run->d_box, sizeof(bp_box), run->d_near_box, run->stream),
         "moving boxes");
}

void bp_gpu_grid_pairs(bp_gpu *run, bool count_tests)
{
    gpu_must(cudaMemsetAsync(run->d_count, 0, 2 * sizeof *run->d_count, run->stream), "clearing");
    gpu_launch(run->stream, run->scene->n, bp_pairs_kernel, run->grid.device, run->d_near_box,
               bp_reach(run->scene), run->list, count_tests ? run->d_count + 1 : nullptr);
}

/* -------------------------------------------------------------------------------------------------
   >>tree
   ---------------------------------------------------------------------------------------------- */

void bp_gpu_tree_build(bp_gpu *run)
{
    lbvh_desc const desc = bp_tree_desc();
    const float *const data = run->d_sphere->p;
    MUST(lbvh,
         lbvh_cuda_build(&run->tree, &desc, data, sizeof(bp_sphere), run->scene->n, run->stream),
         "building the tree");
}

void bp_gpu_tree_pairs(bp_gpu *run)
{
    int64_t *d_needed = reinterpret_cast<int64_t *>(run->d_count);
    MUST(lbvh, lbvh_cuda_pairs(&run->tree, run->list.ids, run->list.room, d_needed, run->stream),
         "finding pairs");
}

bp_result bp_gpu_by_grid(bp_gpu *run, int32_t runs)
{
    ugrid_desc const desc = bp_gpu_grid_desc(run->scene);
    bp_result result = bp_gpu_run(
        run, runs, [&] { bp_gpu_grid_build(run, &desc); }, [&] { bp_gpu_grid_pairs(run, false); });
    bp_gpu_grid_pairs(run, true);
    result.tests = bp_fetch_count(run, 1);
    MUST(ugrid, ugrid_cuda_check(&run->grid, run->stream), "building the grid");
    return result;
}

bp_result bp_gpu_by_tree(bp_gpu *run, int32_t runs, lbvh *host)
{
    bp_result result = bp_gpu_run(
        run, runs, [&] { bp_gpu_tree_build(run); }, [&] { bp_gpu_tree_pairs(run); });
    MUST(lbvh, lbvh_cuda_check(&run->tree, run->stream), "building the tree");
    MUST(lbvh, lbvh_cuda_download(host, &run->tree, run->stream), "fetching the tree");
    result.tests = bp_tree_tests(host);
    return result;
}

} // namespace

int main(int argc, char **argv)
{
    bp_options const options = bp_parse(argc, argv);
    bp_scene scene = bp_begin(&options);
    bp_gpu run = bp_gpu_new(&scene);
    lbvh tree = {};
    ugrid grid = {};
    bp_result const by_grid = bp_gpu_by_grid(&run, options.runs),
                    by_tree = bp_gpu_by_tree(&run, options.runs, &tree);
    if (options.picture) {
        MUST(ugrid, ugrid_cuda_download(&grid, &run.grid, run.stream), "fetching the grid");
        bp_draw(&options, bp_picture_of(&scene, &grid, &tree, &by_grid, &by_tree));
    }
    bp_result by_sweep = {};
    if (options.sweep) by_sweep = bp_gpu_by_sweep(&run, options.runs);
    bool agree = bp_finish(&options, &scene, &by_grid, &by_tree,
                           options.sweep ? &by_sweep : nullptr) != 0;
    if (options.check) agree = bp_reference_agrees(&scene, &tree, &by_tree) && agree;
    bp_gpu_free(&run);
    ugrid_free(&grid);
    lbvh_free(&tree);
    bp_scene_free(&scene);
    return agree ? 0 : 1;
}
