/* pyramid.cu - the heap of pyramid.c on a GPU: small steps, replayed as a CUDA graph.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: a time step of lists with history, all in double, as a CUDA graph. Four spheres
   are no work for a GPU: a step is some twenty kernels, and starting them is all that takes time.
   In 10 simulated seconds there are 180 thousand steps. So the kernels of BATCH steps are recorded
   once, the lists built anew in each of them, and one call replays them all. This works as lists
   need no memory after nlist_cuda_reserve, and nothing is read back: how long the lists are only
   the device knows.

   Everything else, command line, reports and pictures, is the text of pyramid.c. With --check its
   steps run beside those of the GPU. Forces are added in another order there and products fused
   with sums: after 10 seconds the heaps are apart by less than 1e-7 radii, or it fails.

   How to run it:

       make cuda && build/cuda/pyramid --check         (from the top of the repository), or
       nvcc -O3 -arch=native examples/pyramid/pyramid.cu -o pyramid -lstb

   What to look at: >>step below, 70 lines. */

#define LBVH_CUDA
#define NLIST_CUDA
#include "pyramid.c"

#include "../common/gpu.h"

namespace {

/* -------------------------------------------------------------------------------------------------
   >>step: the same calls as in pyramid.c, into a stream
   ---------------------------------------------------------------------------------------------- */

constexpr long BATCH = 100;

struct heap_gpu {
    dem_system system;          /* its arrays are device memory */
    heap_spheres *spheres;
    dem_real *corner;
    int32_t *index;
    lbvh_cuda floor;
    nlist_cuda pairs, walls;
    nlist_desc pairs_desc, walls_desc;
    cudaStream_t stream;
};

__global__ void __launch_bounds__(gpu_block)
    pyramid_move_kernel(__grid_constant__ const dem_system system, heap_spheres *spheres)
{
    int32_t const i = gpu_thread();
    if (i < system.n) move_sphere(&system, spheres, i);
}

void heap_gpu_build_lists(heap_gpu *run)
{
    const dem_system *s = &run->system;
    MUST(nlist,
         nlist_cuda_build_brute(&run->pairs, &run->pairs_desc, s->pos, DEM_STRIDE, s->n,
                                run->stream),
         "the lists");
    MUST(nlist,
         nlist_cuda_build_mesh(&run->walls, &run->walls_desc, &run->floor, &s->mesh, s->pos,
                               DEM_STRIDE, s->n, run->stream),
         "the lists");
}

void heap_gpu_step(heap_gpu *run)
{
    const dem_system *s = &run->system;
    dem_real *sum = run->spheres->sum;
    nlist_sums const how = {DEM_SUMS, NLIST_AUTO, 0};
    heap_gpu_build_lists(run);
    gpu_must(cudaMemsetAsync(sum, 0, sizeof run->spheres->sum, run->stream), "clearing");
    MUST(nlist,
         nlist_cuda_sum<DEM_SUMS>(&run->pairs, &how, dem_spheres_op{*s}, sum, run->stream),
         "the forces");
    MUST(nlist,
         nlist_cuda_sum<DEM_SUMS>(&run->walls, &how, dem_triangle_op{*s}, sum, run->stream),
         "the forces");
    gpu_launch(run->stream, s->n, pyramid_move_kernel, *s, run->spheres);
}

/* BATCH steps at once, and the rest of them one by one. */
void heap_gpu_steps(heap_gpu *run, long steps)
{
    if (steps >= BATCH) {
        cudaGraphExec_t const graph = gpu_capture(run->stream, [run] {
            for (long k = 0; k < BATCH; k++) heap_gpu_step(run);
        });
        for (; steps >= BATCH; steps -= BATCH)
            gpu_must(cudaGraphLaunch(graph, run->stream), "starting steps");
        gpu_wait(run->stream);
        gpu_must(cudaGraphExecDestroy(graph), "the graph");
    }
    for (; steps > 0; steps--) heap_gpu_step(run);
    MUST(nlist, nlist_cuda_check(&run->pairs, run->stream), "the list of pairs");
    MUST(nlist, nlist_cuda_check(&run->walls, run->stream), "the list of triangles");
}

/* -------------------------------------------------------------------------------------------------
   >>memory
   ---------------------------------------------------------------------------------------------- */

template <class T> T *heap_gpu_copy(const T *from, size_t count, cudaStream_t stream)
{
    T *to = gpu_array<T>(count);
    gpu_upload(to, from, count, stream);
    return to;
}

void heap_gpu_set_floor(heap_gpu *run, const heap *h)
{
    nlist_mesh *mesh = &run->system.mesh;
    lbvh_desc desc = {};
    run->corner = heap_gpu_copy(h->corner, sizeof h->corner / sizeof *h->corner, run->stream);
    run->index = heap_gpu_copy(h->index, sizeof h->index / sizeof *h->index, run->stream);
    mesh->vertices = run->corner;
    mesh->indices = desc.indices = run->index;
    desc.kind = LBVH_TRIANGLES;
    desc.vertices = mesh->vertex_count;
    MUST(lbvh,
         lbvh_cuda_build(&run->floor, &desc, run->corner, 0, mesh->triangles, run->stream),
         "the tree of the floor");
}

/* All that the steps need, once; and the list as it is, with its history. */
void heap_gpu_set_list(heap_gpu *run, nlist_cuda *list, nlist_desc *desc, const nlist *from)
{
    desc->layout = NLIST_DYNAMIC;
    desc->capacity = 64; /* entries: a sphere on a corner of the floor touches six triangles */
    MUST(nlist, nlist_cuda_reserve(list, desc, SPHERES, 0, run->stream), "memory for a list");
    if (from->built) MUST(nlist, nlist_cuda_upload(list, from, run->stream), "a list");
}

void heap_gpu_new(heap_gpu *run, const heap *h)
{
    *run = heap_gpu();
    run->stream = gpu_stream();
    run->system = h->system;
    run->spheres = heap_gpu_copy(&h->spheres, 1, run->stream);
    run->system.pos = run->spheres->pos;
    run->system.vel = run->spheres->vel;
    run->system.spin = run->spheres->spin;
    heap_gpu_set_floor(run, h);
    run->pairs_desc = list_desc(0);
    run->walls_desc = list_desc(1);
    heap_gpu_set_list(run, &run->pairs, &run->pairs_desc, &h->pairs);
    heap_gpu_set_list(run, &run->walls, &run->walls_desc, &h->walls);
}

void heap_gpu_fetch(heap *h, const heap_gpu *run)
{
    gpu_download(&h->spheres, run->spheres, 1, run->stream);
    MUST(nlist, nlist_cuda_download(&h->pairs, &run->pairs, run->stream), "a list");
    MUST(nlist, nlist_cuda_download(&h->walls, &run->walls, run->stream), "a list");
}

void heap_gpu_free(heap_gpu *run)
{
    nlist_cuda_free(&run->pairs);
    nlist_cuda_free(&run->walls);
    lbvh_cuda_free(&run->floor);
    gpu_free(run->spheres);
    gpu_free(run->corner);
    gpu_free(run->index);
    gpu_must(cudaStreamDestroy(run->stream), "the stream");
}

} // namespace

static void advance(heap *h, long steps)
{
    heap_gpu run;
    if (steps <= 0) return;
    heap_gpu_new(&run, h);
    heap_gpu_steps(&run, steps);
    heap_gpu_fetch(h, &run);
    heap_gpu_free(&run);
}
