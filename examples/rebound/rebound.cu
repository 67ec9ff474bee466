/* rebound.cu - the collisions of rebound.c on a GPU: table 6.1 of source 004, one sphere for each
   of its rows.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: the law and the history of contacts with a plane and with a list of triangles, in
   kernels. All spheres hit the same wall at once, at different angles; they do not see each other.
   Everything else, command line, table and plot, is the text of rebound.c.

   How to run it:

       make cuda && build/cuda/rebound                 (from the top of the repository), or
       nvcc -O3 -arch=native examples/rebound/rebound.cu -o rebound -lstb

   What to look at: >>step below, 40 lines. */

#define LBVH_CUDA
#define NLIST_CUDA
#include "rebound.c"

#include "../common/gpu.h"

namespace {

/* -------------------------------------------------------------------------------------------------
   >>step: one thread per sphere; forces of triangles by dem_triangle_op
   ---------------------------------------------------------------------------------------------- */

struct rebound_gpu {
    dem_system system;          /* its arrays are device memory */
    float *sums, *corner;
    int32_t *index;
    lbvh_cuda tree;
    nlist_cuda list;
    nlist_desc desc;
    cudaStream_t stream;
};

/* planes: 1 where the wall is the plane. */
__global__ void __launch_bounds__(gpu_block)
    rebound_move_kernel(__grid_constant__ const dem_system system, int planes, const float *sums)
{
    int32_t const i = gpu_thread();
    if (i >= system.n) return;
    float sum[DEM_SUMS];
    for (int k = 0; k < DEM_SUMS; k++) sum[k] = sums[DEM_SUMS * static_cast<size_t>(i) + k];
    if (planes) dem_planes(&system, i, sum);
    dem_move(&system, i, sum);
}

void rebound_step(rebound_gpu *run, int way)
{
    const dem_system *s = &run->system;
    size_t const bytes = DEM_SUMS * static_cast<size_t>(s->n) * sizeof(float);
    nlist_sums const how = {DEM_SUMS, NLIST_AUTO, 0};
    gpu_must(cudaMemsetAsync(run->sums, 0, bytes, run->stream), "clearing");
    if (way & MESH) {
        MUST(nlist,
             nlist_cuda_build_mesh(&run->list, &run->desc, &run->tree, &s->mesh, s->pos, DEM_STRIDE,
                                   s->n, run->stream),
             "the list");
        MUST(nlist,
             nlist_cuda_sum<DEM_SUMS>(&run->list, &how, dem_triangle_op{*s}, run->sums,
                                      run->stream),
             "the forces");
    }
    gpu_launch(run->stream, s->n, rebound_move_kernel, *s, (way & MESH) == 0, run->sums);
}

/* -------------------------------------------------------------------------------------------------
   >>memory
   ---------------------------------------------------------------------------------------------- */

template <class T> T *rebound_upload(const rebound_gpu *run, const T *from, size_t count)
{
    T *to = gpu_array<T>(count);
    gpu_upload(to, from, count, run->stream);
    gpu_wait(run->stream);
    return to;
}

/* The spheres as rebound.c starts them, and the tree over the mesh. */
void rebound_new(rebound_gpu *run, wall *w, int32_t count, const double *ratios, int way)
{
    size_t const n = static_cast<size_t>(count);
    float *const host = static_cast<float *>(zeros(16 * n, sizeof(float)));
    lbvh_desc nodes = {};
    for (int32_t k = 0; k < count; k++) {
        start(w, ratios[k], way);
        memcpy(host + 4 * k, w->pos, sizeof w->pos);
        memcpy(host + 4 * n + 4 * k, w->vel, sizeof w->vel);
    }
    *run = rebound_gpu();
    run->stream = gpu_stream();
    run->system = w->system;
    run->system.n = count;
    run->system.pos = rebound_upload(run, host, 4 * n);
    run->system.vel = rebound_upload(run, host + 4 * n, 4 * n);
    run->system.spin = rebound_upload(run, host + 8 * n, 4 * n);
    run->system.plane_history = rebound_upload(run, host + 12 * n, 4 * n);
    run->sums = gpu_array<float>(DEM_SUMS * n);
    run->corner = rebound_upload(run, w->corner, sizeof w->corner / sizeof *w->corner);
    run->index = rebound_upload(run, w->index, sizeof w->index / sizeof *w->index);
    run->system.mesh.vertices = run->corner;
    run->system.mesh.indices = run->index;
    run->desc = w->desc;
    run->desc.capacity = 8 * count + 64;
    nodes.kind = LBVH_TRIANGLES;
    nodes.indices = run->index;
    nodes.vertices = w->system.mesh.vertex_count;
    MUST(lbvh,
         lbvh_cuda_build(&run->tree, &nodes, run->corner, 0, w->system.mesh.triangles,
                         run->stream),
         "the tree");
    free(host);
}

void rebound_free(rebound_gpu *run)
{
    gpu_free(run->system.pos);
    gpu_free(run->system.vel);
    gpu_free(run->system.spin);
    gpu_free(run->system.plane_history);
    gpu_free(run->sums);
    gpu_free(run->corner);
    gpu_free(run->index);
    lbvh_cuda_free(&run->tree);
    nlist_cuda_free(&run->list);
    gpu_must(cudaStreamDestroy(run->stream), "the stream");
}

} // namespace

/* Nothing holds a sphere back that has left the wall: it goes on as it left. */
static void collide_all(wall *w, const options *o, int32_t count, const double *ratios, int way,
                        double *seen)
{
    size_t const numbers = 4 * static_cast<size_t>(count);
    float *const host = static_cast<float *>(zeros(3 * numbers, sizeof(float)));
    rebound_gpu run;
    rebound_new(&run, w, count, ratios, way);
    for (int32_t k = 0; k < 3 * o->steps; k++) rebound_step(&run, way);
    if (way & MESH) MUST(nlist, nlist_cuda_check(&run.list, run.stream), "the list");
    gpu_download(host, run.system.pos, numbers, run.stream);
    gpu_download(host + numbers, run.system.vel, numbers, run.stream);
    gpu_download(host + 2 * numbers, run.system.spin, numbers, run.stream);
    gpu_wait(run.stream);
    for (int32_t k = 0; k < count; k++) {
        if (!has_left(host + 4 * k, host + numbers + 4 * k))
            stop(1, "v_t/v_n = %g: the sphere does not leave the wall", ratios[k]);
        seen[k] = leaving(host + numbers + 4 * k, host + 2 * numbers + 4 * k);
    }
    rebound_free(&run);
    free(host);
}
