/* dem_walls_gpu.h - the steps of dem_walls.h on a GPU: bodies at a mesh.
   SPDX-License-Identifier: MIT OR Unlicense

   >>kernels   a thread for each body, which finds out whether it is at the mesh; then a thread for
               each of those that are
   >>step      dem_walls_gpu_find, dem_walls_gpu_push
   >>room      memory, and more of it

   A step waits for nothing and reads nothing back: the device alone knows how many bodies are at
   the mesh, so it may be captured in a graph. Look at the state after some steps, as in
   dem_walls_gpu_look: it says whether there was room. */

#ifndef DEM_WALLS_GPU_H
#define DEM_WALLS_GPU_H

#include "dem_walls.h"
#include "gpu.h"

namespace {

static_assert(alignof(dem_wall_kept) == 16, "dem_load loads a spring at once");

/* -------------------------------------------------------------------------------------------------
   >>kernels
   ---------------------------------------------------------------------------------------------- */

__global__ void dem_walls_begin_kernel(dem_wall_state *state)
{
    if (gpu_thread() == 0) dem_walls_begin(state);
}

__global__ void __launch_bounds__(gpu_block)
    dem_walls_find_kernel(__grid_constant__ const dem_bodies bodies,
                          __grid_constant__ const dem_walls walls)
{
    int32_t const i = gpu_thread();
    if (i >= bodies.base.n || !dem_wall_near(&bodies, &walls, i)) return;
    dem_wall_list(&walls, atomicAdd(&walls.state->rows[walls.state->now], 1), i);
}

/* However many rows there are: each thread takes some. */
__global__ void __launch_bounds__(gpu_block)
    dem_walls_push_kernel(__grid_constant__ const dem_bodies bodies,
                          __grid_constant__ const dem_walls walls, float *sums)
{
    int const now = walls.state->now;
    int32_t const rows = dem_wall_rows(&walls, now),
                  threads = static_cast<int32_t>(gridDim.x * blockDim.x);
    for (int32_t r = gpu_thread(); r < rows; r += threads) {
        int32_t const i = walls.row[now][r].body;
        dem_wall_kept kept[DEM_SLOTS];
        const dem_wall_kept *was;
        int const held = dem_wall_was(&walls, i, &was);
        int const count = dem_body_walls(&bodies, &walls, i, was, held, kept,
                                         sums + DEM_SUMS * static_cast<size_t>(i));
        int32_t const first = count ? atomicAdd(&walls.state->kept[now], count) : 0;
        dem_wall_store(&walls, r, first, count, kept);
    }
}

/* Particles have been sorted: body i is now new_of[i]. */
__global__ void __launch_bounds__(gpu_block)
    dem_walls_remap_kernel(__grid_constant__ const dem_walls walls, const int32_t *new_of)
{
    int const now = walls.state->now;
    int32_t const rows = dem_wall_rows(&walls, now),
                  threads = static_cast<int32_t>(gridDim.x * blockDim.x);
    for (int32_t r = gpu_thread(); r < rows; r += threads) dem_wall_remap(&walls, r, new_of);
}

/* -------------------------------------------------------------------------------------------------
   >>step
   ---------------------------------------------------------------------------------------------- */

/* Threads for all rows that there may be: no more than a GPU has at once, or a few times that. */
int32_t dem_walls_threads(const dem_walls *walls)
{
    int32_t const most = 1 << 18;
    return walls->row_room < most ? walls->row_room : most;
}

void dem_walls_gpu_find(const dem_bodies *bodies, const dem_walls *walls, cudaStream_t stream)
{
    gpu_launch(stream, 1, dem_walls_begin_kernel, walls->state);
    gpu_launch(stream, bodies->base.n, dem_walls_find_kernel, *bodies, *walls);
}

/* Adds to sums[6 n]. */
void dem_walls_gpu_push(const dem_bodies *bodies, const dem_walls *walls, float *sums,
                        cudaStream_t stream)
{
    gpu_launch(stream, dem_walls_threads(walls), dem_walls_push_kernel, *bodies, *walls, sums);
}

[[maybe_unused]] void dem_walls_gpu_remap(const dem_walls *walls, const int32_t *new_of,
                                          cudaStream_t stream)
{
    gpu_launch(stream, dem_walls_threads(walls), dem_walls_remap_kernel, *walls, new_of);
}

/* -------------------------------------------------------------------------------------------------
   >>room
   ---------------------------------------------------------------------------------------------- */

/* Room for `rows`, and two contacts for each. What was there is kept. */
void dem_walls_gpu_grow(dem_walls *walls, int32_t rows, cudaStream_t stream)
{
    dem_walls const old = *walls;
    walls->row_room = rows;
    walls->kept_room = 2 * rows;
    for (int k = 0; k < 2; k++) {
        walls->row[k] = gpu_array<dem_wall_row>(static_cast<size_t>(walls->row_room));
        walls->kept[k] = gpu_array<dem_wall_kept>(static_cast<size_t>(walls->kept_room));
        if (!old.row[k]) continue;
        gpu_copy(walls->row[k], old.row[k], static_cast<size_t>(old.row_room), stream);
        gpu_copy(walls->kept[k], old.kept[k], static_cast<size_t>(old.kept_room), stream);
    }
    gpu_wait(stream);
    for (int k = 0; k < 2; k++) {
        gpu_free(old.row[k]);
        gpu_free(old.kept[k]);
    }
}

/* Waits for the steps. Returns what they have found, and makes room before it is needed. */
dem_wall_state dem_walls_gpu_look(dem_walls *walls, cudaStream_t stream)
{
    dem_wall_state state;
    gpu_download(&state, walls->state, 1, stream);
    gpu_wait(stream);
    if (state.rows[state.now] > walls->row_room / 2 || state.kept[state.now] > walls->kept_room / 2)
        dem_walls_gpu_grow(walls, 2 * walls->row_room, stream);
    return state;
}

void dem_walls_gpu_new(dem_walls *walls, int32_t n, cudaStream_t stream)
{
    walls->row_of = gpu_array<int32_t>(static_cast<size_t>(n));
    walls->state = gpu_array<dem_wall_state>(1);
    gpu_must(cudaMemsetAsync(walls->row_of, 0, sizeof(int32_t) * static_cast<size_t>(n), stream),
             "clearing");
    gpu_must(cudaMemsetAsync(walls->state, 0, sizeof *walls->state, stream), "clearing");
    for (int k = 0; k < 2; k++) {
        walls->row[k] = nullptr;
        walls->kept[k] = nullptr;
    }
    dem_walls_gpu_grow(walls, n / 8 + 4096, stream);
}

/* The list of the last step, from the host or to it, where there is room for it. */
void dem_walls_gpu_upload(dem_walls *walls, const dem_walls *host, int32_t n, cudaStream_t stream)
{
    int const now = host->state->now;
    int32_t const rows = host->state->rows[now], kept = host->state->kept[now];
    if (rows > walls->row_room / 2 || kept > walls->kept_room / 2)
        dem_walls_gpu_grow(walls, 2 * (rows > kept ? rows : kept), stream);
    gpu_upload(walls->state, host->state, 1, stream);
    gpu_upload(walls->row_of, host->row_of, static_cast<size_t>(n), stream);
    gpu_upload(walls->row[now], host->row[now], static_cast<size_t>(rows), stream);
    gpu_upload(walls->kept[now], host->kept[now], static_cast<size_t>(kept), stream);
    gpu_wait(stream);
}

[[maybe_unused]] void dem_walls_gpu_download(dem_walls *host, const dem_walls *walls,
                                             cudaStream_t stream)
{
    gpu_download(host->state, walls->state, 1, stream);
    gpu_wait(stream);
    int const now = host->state->now;
    size_t const rows = static_cast<size_t>(host->state->rows[now]),
                 kept = static_cast<size_t>(host->state->kept[now]);
    gpu_download(host->row[now], walls->row[now], rows, stream);
    gpu_download(host->kept[now], walls->kept[now], kept, stream);
    gpu_wait(stream);
}

void dem_walls_gpu_free(dem_walls *walls)
{
    gpu_free(walls->row_of);
    gpu_free(walls->state);
    for (int k = 0; k < 2; k++) {
        gpu_free(walls->row[k]);
        gpu_free(walls->kept[k]);
    }
}

} // namespace

#endif /* DEM_WALLS_GPU_H */
