/* drum_gpu.h - what drum.cu needs besides its steps: device memory, what the device met, times.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef DRUM_GPU_H
#define DRUM_GPU_H

#include "../common/gpu.h"

namespace {

/* As drum_state, on the device. */
struct drum_device_state {
    float *pos, *vel, *spin, *sums;
    int32_t *id;
};

drum_device_state drum_device_state_new(size_t n)
{
    drum_device_state state = {};
    state.pos = gpu_array<float>(4 * n);
    state.vel = gpu_array<float>(4 * n);
    state.spin = gpu_array<float>(4 * n);
    state.id = gpu_array<int32_t>(n);
    return state;
}

void drum_device_state_free(drum_device_state *state)
{
    gpu_free(state->pos);
    gpu_free(state->vel);
    gpu_free(state->spin);
    gpu_free(state->id);
}

/* Points in time: k, k + 1 around part k of a step. */
enum { DRUM_SORT_BEGIN = DRUM_STAGES + 1, DRUM_SORT_END, DRUM_BEGIN, DRUM_END, DRUM_EVENTS };

struct drum_gpu {
    const drum_options *options;
    drum_setup *setup;
    dem_system system;          /* its arrays are those of state, and device copies of the mesh */
    drum_device_state state, spare; /* spare: for sorting */
    float *rest, *now;          /* [3 * vertices] the drum, as in the file and turned */
    int32_t *indices;
    ugrid_desc grid_desc;
    nlist_desc pairs_desc, walls_desc;
    ugrid_cuda grid;
    lbvh_cuda tree;
    nlist_cuda pairs, walls;
    cudaStream_t stream;
    int64_t step;
    gpu_events<DRUM_EVENTS> events;
    drum_times spent;           /* seconds: the parts of `sampled` steps, and all of `counted` */
    int64_t sampled, counted, sorts;
    double memory[5];           /* MiB in use on the GPU, after each of drum_parts */
    drum_state host;            /* what drum_gpu_look shows */
    nlist host_pairs, host_walls;
};

const char *const drum_parts[5] = {"before the run", "spheres and drum", "the grid", "pairs",
                                   "spheres and triangles"};

/* MiB of all memory that the GPU has given away. */
double drum_memory()
{
    size_t free = 0, total = 0;
    gpu_must(cudaMemGetInfo(&free, &total), "asking for memory");
    return static_cast<double>(total - free) / 1048576;
}

/* The arrays of the system are wherever the last sort has left them. */
void drum_gpu_use(drum_gpu *run)
{
    run->system.pos = run->state.pos;
    run->system.vel = run->state.vel;
    run->system.spin = run->state.spin;
}

void drum_gpu_set_spheres(drum_gpu *run, const drum_state *start)
{
    size_t const n = static_cast<size_t>(start->n);
    run->state = drum_device_state_new(n);
    run->spare = drum_device_state_new(n);
    /* made anew in each step: never sorted */
    run->state.sums = run->spare.sums = gpu_array<float>(DEM_SUMS * n);
    gpu_upload(run->state.pos, start->pos, 4 * n, run->stream);
    gpu_upload(run->state.vel, start->vel, 4 * n, run->stream);
    gpu_upload(run->state.spin, start->spin, 4 * n, run->stream);
    gpu_upload(run->state.id, start->id, n, run->stream);
    gpu_wait(run->stream);
    drum_gpu_use(run);
}

void drum_gpu_set_mesh(drum_gpu *run, const drum_mesh *mesh)
{
    size_t const floats = 3 * static_cast<size_t>(mesh->vertices),
                 corners = 3 * static_cast<size_t>(mesh->triangles);
    run->rest = gpu_array<float>(floats);
    run->now = gpu_array<float>(floats);
    run->indices = gpu_array<int32_t>(corners);
    gpu_upload(run->rest, mesh->rest, floats, run->stream);
    gpu_upload(run->now, mesh->rest, floats, run->stream);
    gpu_upload(run->indices, mesh->indices, corners, run->stream);
    run->system.mesh.vertices = run->now;
    run->system.mesh.indices = run->indices;
    lbvh_desc const desc = drum_tree_desc(&run->system.mesh);
    MUST(lbvh, lbvh_cuda_build(&run->tree, &desc, run->now, 0, mesh->triangles, run->stream),
         "the tree over the drum");
    MUST(lbvh, lbvh_cuda_check(&run->tree, run->stream), "the tree over the drum");
}

/* All memory that steps need: after this they take none, until a check finds that a list is
   nearly full. */
void drum_gpu_reserve(drum_gpu *run, int32_t n)
{
    int32_t const values = run->options->deterministic ? DEM_SUMS : 0;
    MUST(ugrid, ugrid_cuda_reserve(&run->grid, &run->grid_desc, n, run->stream),
         "memory for the grid");
    run->memory[2] = drum_memory();
    MUST(nlist, nlist_cuda_reserve(&run->pairs, &run->pairs_desc, n, values, run->stream),
         "memory for the list of pairs");
    run->memory[3] = drum_memory();
    MUST(nlist, nlist_cuda_reserve(&run->walls, &run->walls_desc, n, values, run->stream),
         "memory for the list of triangles");
    run->memory[4] = drum_memory();
}

void drum_gpu_new(drum_gpu *run, const drum_options *o, drum_setup *setup, const drum_state *start)
{
    *run = drum_gpu();
    run->options = o;
    run->setup = setup;
    run->system = setup->system;
    run->grid_desc = setup->grid;
    run->pairs_desc = setup->pairs;
    run->walls_desc = setup->walls;
    run->pairs_desc.if_moved = o->skin > 0;
    /* most spheres touch no wall */
    run->walls_desc.capacity = static_cast<int64_t>(start->n) + 1024;
    run->stream = gpu_stream();
    run->memory[0] = drum_memory();
    run->events.create();
    drum_gpu_set_spheres(run, start);
    drum_gpu_set_mesh(run, &setup->mesh);
    run->memory[1] = drum_memory();
    drum_gpu_reserve(run, start->n);
    run->host = drum_state_new(start->n);
}

void drum_gpu_free(drum_gpu *run)
{
    ugrid_cuda_free(&run->grid);
    lbvh_cuda_free(&run->tree);
    nlist_cuda_free(&run->pairs);
    nlist_cuda_free(&run->walls);
    nlist_free(&run->host_pairs);
    nlist_free(&run->host_walls);
    gpu_free(run->state.sums);
    drum_device_state_free(&run->state);
    drum_device_state_free(&run->spare);
    gpu_free(run->rest);
    gpu_free(run->now);
    gpu_free(run->indices);
    run->events.destroy();
    gpu_must(cudaStreamDestroy(run->stream), "the stream");
    drum_state_free(&run->host);
}

/* The end of a part; `timed`: its time is wanted. */
void drum_mark(drum_gpu *run, bool timed, int stage)
{
    if (timed) run->events.record(stage + 1, run->stream);
}

void drum_gpu_step(drum_gpu *run, bool timed);
void drum_gpu_look_around(drum_gpu *run, bool timed);
void drum_gpu_sort(drum_gpu *run);

/* -------------------------------------------------------------------------------------------------
   >>engine: what drum_run in drum_run.h calls
   ---------------------------------------------------------------------------------------------- */

/* Memory is added while there is still some left: a list that was full for a step has lost
   contacts, and the run is worth nothing. */
void drum_make_room(nlist_cuda *gpu, nlist_desc *desc)
{
    const nlist_rows *rows = &gpu->device.list.rows[gpu->device.list.current];
    if (rows->entries > rows->capacity - rows->capacity / 4)
        desc->capacity = rows->capacity + rows->capacity / 2;
}

/* Waits for the steps, and looks at what they met. */
void drum_gpu_inspect(drum_gpu *run)
{
    nlist_result const pairs = nlist_cuda_check(&run->pairs, run->stream),
                       walls = nlist_cuda_check(&run->walls, run->stream);
    if (pairs == NLIST_NOT_FINITE || walls == NLIST_NOT_FINITE)
        stop(1, "the run became unstable: a position is no number (a smaller --dt may help)");
    if (pairs == NLIST_ROW_FULL)
        stop(1, "a sphere has %ld partners, and room for %ld: run again with --width %ld",
             static_cast<long>(run->pairs.device.list.needed_width),
             static_cast<long>(run->pairs_desc.width),
             static_cast<long>(run->pairs.device.list.needed_width + 2));
    if (pairs == NLIST_LIST_FULL || walls == NLIST_LIST_FULL)
        stop(1, "a list grew too fast: run again with a smaller --check-every");
    MUST(nlist, pairs, "the list of pairs");
    MUST(nlist, walls, "the list of triangles");
    MUST(ugrid, ugrid_cuda_check(&run->grid, run->stream), "the grid");
    MUST(lbvh, lbvh_cuda_check(&run->tree, run->stream), "the tree");
    drum_make_room(&run->pairs, &run->pairs_desc);
    drum_make_room(&run->walls, &run->walls_desc);
}

void drum_gpu_load_list(drum_gpu *run, nlist_cuda *list, const nlist_desc *desc, nlist *host,
                        const drum_saved *start, int which)
{
    nlist_desc own = *desc;
    own.grow = 1;
    own.if_moved = 0;
    drum_load_list(host, &own, run->setup, start, which);
    MUST(nlist, nlist_cuda_upload(list, host, run->stream), "loading a list of contacts");
}

/* What the next step needs of this one, from the file. */
void drum_gpu_load(drum_gpu *run, const drum_saved *start)
{
    gpu_upload(run->state.sums, start->state.sums,
               DEM_SUMS * static_cast<size_t>(run->system.n), run->stream);
    drum_gpu_load_list(run, &run->pairs, &run->pairs_desc, &run->host_pairs, start, 0);
    drum_gpu_load_list(run, &run->walls, &run->walls_desc, &run->host_walls, start, 1);
    drum_make_room(&run->pairs, &run->pairs_desc);
    drum_make_room(&run->walls, &run->walls_desc);
}

/* Lists and forces at the start, where nothing is known yet of how long the lists will be: they
   may take what they need. */
void drum_gpu_begin(drum_gpu *run, const drum_saved *start)
{
    run->step = start->step;
    if (start->list[0]) {
        drum_gpu_load(run, start);
        return;
    }
    run->pairs_desc.grow = run->walls_desc.grow = 1;
    drum_gpu_look_around(run, false);
    drum_gpu_inspect(run);
    run->pairs_desc.grow = run->walls_desc.grow = 0;
}

/* The step in the middle is timed part by part: by then the GPU has work waiting, and no part
   waits for the host; and where sorts and checks come equally often the spheres are neither just
   sorted nor about to be. */
void drum_gpu_advance(void *user, int32_t steps)
{
    drum_gpu *run = static_cast<drum_gpu *>(user);
    bool sorted = false;
    run->events.record(DRUM_BEGIN, run->stream);
    for (int32_t k = 0; k < steps; k++) {
        drum_gpu_step(run, k == steps / 2);
        sorted = sorted || drum_sorts(run->options, run->step);
    }
    run->events.record(DRUM_END, run->stream);
    drum_gpu_inspect(run);
    for (int k = 0; k < DRUM_STAGES; k++)
        if (k != DRUM_SORT) run->spent.stage[k] += run->events.seconds(k, k + 1);
    if (sorted) run->spent.stage[DRUM_SORT] += run->events.seconds(DRUM_SORT_BEGIN, DRUM_SORT_END);
    run->spent.step += run->events.seconds(DRUM_BEGIN, DRUM_END);
    run->sorts += sorted;
    run->sampled++;
    run->counted += steps;
}

const drum_state *drum_gpu_look(void *user)
{
    drum_gpu *run = static_cast<drum_gpu *>(user);
    size_t const n = static_cast<size_t>(run->system.n);
    gpu_download(run->host.pos, run->state.pos, 4 * n, run->stream);
    gpu_download(run->host.vel, run->state.vel, 4 * n, run->stream);
    gpu_download(run->host.spin, run->state.spin, 4 * n, run->stream);
    gpu_download(run->host.sums, run->state.sums, DEM_SUMS * n, run->stream);
    gpu_download(run->host.id, run->state.id, n, run->stream);
    gpu_wait(run->stream);
    return &run->host;
}

const nlist *drum_gpu_pairs(void *user)
{
    drum_gpu *run = static_cast<drum_gpu *>(user);
    MUST(nlist, nlist_cuda_download(&run->host_pairs, &run->pairs, run->stream),
         "fetching the list of pairs");
    return &run->host_pairs;
}

const nlist *drum_gpu_walls(void *user)
{
    drum_gpu *run = static_cast<drum_gpu *>(user);
    MUST(nlist, nlist_cuda_download(&run->host_walls, &run->walls, run->stream),
         "fetching the list of triangles");
    return &run->host_walls;
}

int64_t drum_gpu_entries(void *user)
{
    return static_cast<drum_gpu *>(user)->pairs.device.list.total;
}

drum_times drum_gpu_times(void *user)
{
    const drum_gpu *run = static_cast<const drum_gpu *>(user);
    return drum_average(&run->spent, run->sampled, run->sorts, run->counted);
}

} // namespace

#endif /* DRUM_GPU_H */
