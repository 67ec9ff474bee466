/* tablets_gpu.h - what tablets.cu needs besides its steps: device memory, the comparison with
   serial steps, the forces in three forms with their times.
   SPDX-License-Identifier: MIT OR Unlicense

   A part of tablets.cu: included in its namespace. */

#ifndef TABLETS_GPU_H
#define TABLETS_GPU_H

/* ---- memory ---- */

float *tablets_upload(const tablets_gpu *run, const float *from, size_t count)
{
    float *to = gpu_array<float>(count);
    gpu_upload(to, from, count, run->stream);
    return to;
}

/* The tree is built once: the drum turns, not the mesh (dem_walls.h). */
void tablets_upload_walls(tablets_gpu *run)
{
    const dem_walls *host = &run->host->walls;
    int32_t const triangles = host->mesh.triangles;
    lbvh_desc desc = lbvh_desc();
    run->walls = *host;
    if (!triangles) return;
    float *corners = tablets_upload(run, run->host->corners, 9 * static_cast<size_t>(triangles));
    run->walls.mesh.vertices = corners;
    dem_walls_gpu_new(&run->walls, run->bodies.base.n, run->stream);
    dem_walls_gpu_upload(&run->walls, host, run->bodies.base.n, run->stream);
    desc.kind = LBVH_TRIANGLES;
    MUST(lbvh, lbvh_cuda_build(&run->tree, &desc, corners, 0, triangles, run->stream),
         "the tree over the drum");
    MUST(lbvh, lbvh_cuda_check(&run->tree, run->stream), "the tree over the drum");
    run->walls.tree = run->tree.device.tree;
}

void tablets_free_walls(tablets_gpu *run)
{
    if (!run->walls.mesh.triangles) return;
    gpu_free(const_cast<float *>(run->walls.mesh.vertices));
    dem_walls_gpu_free(&run->walls);
    lbvh_cuda_free(&run->tree);
}

/* Numbers of springs at planes. */
size_t tablets_plane_numbers(const dem_bodies *b)
{
    if (!b->base.plane_history) return 0;
    return 4 * static_cast<size_t>(b->base.planes) * static_cast<size_t>(b->base.n);
}

void tablets_gpu_new(tablets_gpu *run, scene *host)
{
    size_t const n = static_cast<size_t>(host->bodies.base.n), records = 4 * n;
    *run = tablets_gpu();
    run->host = host;
    run->stream = gpu_stream();
    run->desc = host->desc;
    run->desc.if_moved = host->desc.skin > 0;
    run->bodies = host->bodies;
    run->bodies.base.pos = tablets_upload(run, host->bodies.base.pos, records);
    run->bodies.base.vel = tablets_upload(run, host->bodies.base.vel, records);
    run->bodies.base.spin = tablets_upload(run, host->bodies.base.spin, records);
    run->bodies.turn = tablets_upload(run, host->bodies.turn, records);
    run->bodies.momentum = tablets_upload(run, host->bodies.momentum, records);
    if (host->bodies.base.plane_history)
        run->bodies.base.plane_history = tablets_upload(run, host->bodies.base.plane_history,
                                                        tablets_plane_numbers(&host->bodies));
    run->id = gpu_array<int32_t>(n);
    gpu_upload(run->id, host->id, n, run->stream);
    run->sums = gpu_array<float>(DEM_SUMS * n);
    shape *body = gpu_array<shape>(2);
    gpu_upload(body, host->shapes, 2, run->stream);
    run->bodies.shapes = body;
    run->bodies.deep = gpu_array<int32_t>(1);
    gpu_must(cudaMemsetAsync(run->bodies.deep, 0, sizeof(int32_t), run->stream), "clearing");
    tablets_upload_walls(run);
    if (host->pairs.built)
        MUST(nlist, nlist_cuda_upload(&run->pairs, &host->pairs, run->stream), "the list");
    run->events.create();
    run->parts.create();
    gpu_wait(run->stream);
}

void tablets_gpu_free(tablets_gpu *run)
{
    gpu_free(run->bodies.base.pos);
    gpu_free(run->bodies.base.vel);
    gpu_free(run->bodies.base.spin);
    gpu_free(run->bodies.turn);
    gpu_free(run->bodies.momentum);
    gpu_free(run->bodies.base.plane_history);
    gpu_free(run->id);
    gpu_free(run->spare);
    gpu_free(run->plane_spare);
    gpu_free(run->id_spare);
    gpu_free(run->sums);
    gpu_free(const_cast<shape *>(run->bodies.shapes));
    gpu_free(run->bodies.deep);
    tablets_free_walls(run);
    ugrid_cuda_free(&run->grid);
    nlist_cuda_free(&run->pairs);
    run->events.destroy();
    run->parts.destroy();
    gpu_must(cudaStreamDestroy(run->stream), "the stream");
    scene_free(run->host);
}

/* What the last steps met: was there room? The first list takes what it needs; later ones are given
   more before they need it, so that no step waits. */
void tablets_inspect(tablets_gpu *run)
{
    scene *s = run->host;
    const nlist_rows *rows = &run->pairs.device.list.rows[0];
    MUST(nlist, nlist_cuda_check(&run->pairs, run->stream), "the list");
    gpu_download(&s->deep, run->bodies.deep, 1, run->stream);
    gpu_wait(run->stream);
    if (s->options->mesh) s->touched = dem_walls_gpu_look(&run->walls, run->stream);
    check_contacts(s);
    rows += run->pairs.device.list.current;
    if (rows->entries > rows->capacity - rows->capacity / 4)
        run->desc.capacity = rows->capacity + rows->capacity / 2;
}

/* Copies the device's tablets and list into run->host. */
void tablets_look(tablets_gpu *run)
{
    const dem_bodies *from = &run->bodies;
    dem_bodies *to = &run->host->bodies;
    size_t const records = 4 * static_cast<size_t>(to->base.n);
    nlist_cuda_facts facts;
    tablets_inspect(run);
    MUST(nlist, nlist_cuda_download(&run->host->pairs, &run->pairs, run->stream), "the list");
    gpu_download(to->base.pos, from->base.pos, records, run->stream);
    gpu_download(to->base.vel, from->base.vel, records, run->stream);
    gpu_download(to->base.spin, from->base.spin, records, run->stream);
    gpu_download(to->turn, from->turn, records, run->stream);
    gpu_download(to->momentum, from->momentum, records, run->stream);
    gpu_download(run->host->id, run->id, records / 4, run->stream);
    if (to->base.plane_history)
        gpu_download(to->base.plane_history, from->base.plane_history, tablets_plane_numbers(to),
                     run->stream);
    gpu_download(&facts, run->pairs.d_facts, 1, run->stream);
    gpu_wait(run->stream);
    run->host->builds = facts.filled;
}

#ifndef TABLETS_AS_PART

/* ---- save ---- */

/* After tablets_look. */
void tablets_save(tablets_gpu *run)
{
    scene *s = run->host;
    if (s->options->mesh) {
        int32_t const rows = s->touched.rows[s->touched.now];
        if (rows > s->walls.row_room) grow_walls(&s->walls, rows);
        dem_walls_gpu_download(&s->walls, &run->walls, run->stream);
    }
    save_scene(s);
}

/* ---- check ---- */

/* The same steps from the start, serially. Sums in another order differ in the last digit, and
   contacts make that grow: a check is for short runs. */
bool tablets_check(const tablets_gpu *run)
{
    const scene *s = run->host;
    scene *serial = scene_new(s->options, 1);
    while (serial->step < s->step) step(serial);
    size_t const records = 4 * static_cast<size_t>(s->bodies.base.n);
    double const places = largest_difference(s->bodies.base.pos, serial->bodies.base.pos, records),
                 turns = largest_difference(s->bodies.turn, serial->bodies.turn, records);
    printf("check: places differ by %.2e radii, quaternions by %.2e\n",
           places / s->options->radius, turns);
    scene_free(serial);
    return places < 1e-3 * s->options->radius && turns < 1e-3;
}

/* Of the last steps, and of all memory that the GPU has given away. */
[[maybe_unused]] void tablets_print_time(tablets_gpu *run)
{
    size_t free = 0, total = 0;
    double const ms = 1e3 * run->events.seconds(0, 1) / static_cast<double>(run->timed);
    gpu_must(cudaMemGetInfo(&free, &total), "asking for memory");
    printf("time: %.4f ms a step, %.1f steps/s in the last %ld steps; %.0f MiB\n", ms, 1e3 / ms,
           static_cast<long>(run->timed), static_cast<double>(total - free) / 1048576);
}

/* ---- forms ---- */

/* Milliseconds of the source (tables 6.4 and 6.5: search; static and dynamic list), 1M and 10M
   tablets in a box, on a GTX Titan X (Maxwell). Of its first form it gives steps per second: 8.63
   and 0.91. */
struct tablets_source { double search, force, step; };
const tablets_source source_of[2][3] = {{{0, 0, 115.9}, {2.72, 8.27, 14.5}, {2.88, 8.6, 14.7}},
                                        {{0, 0, 1099}, {28, 96, 144.7}, {29, 88, 135.7}}};
const form gpu_forms[] = {{"one-kernel", NLIST_COMPACT, 0, 0, 0},
                          {"slots+rest", NLIST_HYBRID, 1, 1, 0}, /* 4 slots */
                          {"pairs", NLIST_DYNAMIC, 1, 1, 0},
                          /* not the source's: full rows; what a contact can keep */
                          {"rows", NLIST_COMPACT, 0, 1, 0},
                          {"pairs+normal", NLIST_DYNAMIC, 1, 1, 1}};

/* A search and the forces, between events 0, 1 and 2. */
void tablets_form(tablets_gpu *run, const form *f, gpu_events<3> *events)
{
    const dem_system *d = &run->bodies.base;
    run->desc.layout = f->layout;
    run->desc.half = f->half;
    run->desc.history = f->kept ? DEM_BODY_HISTORY : 0;
    run->desc.width = f->layout == NLIST_HYBRID ? 4 : 0;
    events->record(0, run->stream);
    if (f->listed)
        MUST(nlist,
             nlist_cuda_build_ugrid(&run->pairs, &run->desc, &run->grid, d->pos, DEM_STRIDE, d->n,
                                    run->stream),
             "the list");
    events->record(1, run->stream);
    if (f->listed) tablets_push(run);
    else
        gpu_launch(run->stream, d->n, tablets_search_kernel, run->grid.device, run->bodies,
                   run->desc.radius, run->sums);
    events->record(2, run->stream);
    gpu_wait(run->stream);
}

/* Medians of some rounds; the first of a form takes its memory and does not count. */
void tablets_forms(tablets_gpu *run)
{
    enum { ROUNDS = 9 };
    const dem_system *d = &run->bodies.base;
    size_t const count = DEM_SUMS * static_cast<size_t>(d->n);
    float *first = static_cast<float *>(zeros(count, sizeof(float)));
    gpu_events<3> events;
    events.create();
    run->desc.skin = 0;
    run->desc.if_moved = 0;
    run->bodies.base.history_off = 1;
    run->host->cells.cell = run->desc.radius;
    MUST(ugrid,
         ugrid_cuda_build(&run->grid, &run->host->cells, d->pos, DEM_STRIDE, d->n, run->stream),
         "the grid");
    puts("form, search ms, forces ms, both, entries per tablet, source: search, forces, step; "
         "difference:");
    for (int f = 0; f < 5; f++) {
        double spent[3][ROUNDS];
        nlist_cuda_free(&run->pairs);
        run->desc.grow = 1;
        tablets_form(run, &gpu_forms[f], &events);
        if (gpu_forms[f].listed)
            MUST(nlist, nlist_cuda_check(&run->pairs, run->stream), "the list");
        run->desc.grow = 0;
        for (int round = 0; round < ROUNDS; round++) {
            tablets_form(run, &gpu_forms[f], &events);
            for (int k = 0; k < 3; k++)
                spent[k][round] = 1e3 * events.seconds(k == 1, 1 + (k > 0));
        }
        gpu_download(run->host->sums, run->sums, count, run->stream);
        gpu_wait(run->stream);
        if (f == 0) memcpy(first, run->host->sums, count * sizeof(float));
        bool const compared = f < 3 && run->host->kind == SCENE_BOX &&
                              (d->n == 1000000 || d->n == 10000000);
        const tablets_source *theirs = compared ? &source_of[d->n > 1000000][f] : nullptr;
        printf("form: %-12s %8.3f %8.3f %8.3f %6.2f  ", gpu_forms[f].name,
               median(spent[0], ROUNDS), median(spent[1], ROUNDS), median(spent[2], ROUNDS),
               gpu_forms[f].listed ? static_cast<double>(run->pairs.device.list.total) / d->n : 0);
        if (theirs) printf("%6.4g %6.4g %6.4g", theirs->search, theirs->force, theirs->step);
        printf("  %.1e\n", differs(run->host, first));
    }
    events.destroy();
    free(first);
}

#endif /* TABLETS_AS_PART */
#endif /* TABLETS_GPU_H */
