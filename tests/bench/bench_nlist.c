/* bench_nlist.c - how fast is nlist.h on one core of this machine? README.md in this folder
   explains the tables.
   SPDX-License-Identifier: MIT OR Unlicense

       make bench                                       all of it, about a minute
       build/bench/bench_nlist --only lists,sums --quick
       groups: lists half history sums boxes walls; only when named: scaling,
       defaults */

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#endif

#define UGRID_STATIC
#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_STATIC
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#define NLIST_WITH_BOXES
#include "nlist.h"
#include "tests/bench/bench.h"
#include "tests/bench/defaults.h"
#include "tests/bench/plain_box.h"
#include "tests/bench/plain_history.h"
#include "tests/bench/plain_mesh_grid.h"
#include "tests/common/workloads.h"

static void must(nlist_result result)
{
    if (result == NLIST_OK) return;
    printf("%s\n", nlist_result_text(result));
    exit(1);
}

static void must_grid(ugrid_result result)
{
    if (result == UGRID_OK) return;
    printf("%s\n", ugrid_result_text(result));
    exit(1);
}

/* ---- timing: lists of a million rows take most of a second each, and there are many of them
   ---- */

enum { LONG_MS = 150, LONG_RUNS = 3 };

/* As bench_cpu_ms, but of what takes longer than LONG_MS: LONG_RUNS runs after one that warms
   up. */
static double measure(void (*work)(void *), void *job)
{
    double samples[LONG_RUNS];
    int k;
    if (bench_sample_ms(NULL, work, job) <= LONG_MS) return bench_cpu_ms(work, job);
    for (k = 0; k < LONG_RUNS; k++) samples[k] = bench_sample_ms(NULL, work, job);
    return bench_median(samples, LONG_RUNS);
}

/* ---- particles: two frames of a motion, so that contacts begin and end between two builds ---- */

typedef struct workload {
    char name[32];
    int32_t n;
    float *frame[2];
    float radius;
    int64_t pairs;      /* ordered, within the radius, in frame 0; 0: not known */
    int open;           /* the box is not given */
} workload;

/* As generated, or in Morton order. */
static workload uniform(int32_t n, double neighbors, int sorted)
{
    workload w;
    memset(&w, 0, sizeof w);
    if (n % 1000000 == 0)
        snprintf(w.name, sizeof w.name, "uniform-%dM%s", (int)(n / 1000000),
                 sorted ? "-sorted" : "");
    else if (n % 1000 == 0)
        snprintf(w.name, sizeof w.name, "uniform-%dk%s", (int)(n / 1000), sorted ? "-sorted" : "");
    else snprintf(w.name, sizeof w.name, "uniform-%d%s", (int)n, sorted ? "-sorted" : "");
    w.n = n;
    w.radius = wl_radius(n, neighbors);
    w.frame[0] = (float *)bench_alloc(3 * (size_t)n * sizeof(float));
    w.frame[1] = (float *)bench_alloc(3 * (size_t)n * sizeof(float));
    wl_uniform(n, 1, w.frame[0]);
    if (sorted && !wl_sort_morton(n, w.frame[0], NULL)) exit(1);
    memcpy(w.frame[1], w.frame[0], 3 * (size_t)n * sizeof(float));
    wl_move(n, w.frame[1], 0.02f * w.radius, 5);
    return w;
}

static void free_workload(workload *w)
{
    free(w->frame[0]);
    free(w->frame[1]);
}

/* ---- jobs: everything that is timed gets one of these ---- */

typedef struct job {
    const workload *w;
    int frame;          /* of the positions that are listed next */
    int turn;           /* 1: the other frame at every build */
    ugrid_desc cells;
    ugrid grid;
    nlist_desc desc;
    nlist list;
    int flags;          /* of ugrid_neighbors */
    int64_t *offsets, capacity;
    int32_t *ids;
    nlist_sums how;
    float *sums;
} job;

static job new_job(const workload *w)
{
    job j;
    memset(&j, 0, sizeof j);
    j.w = w;
    j.cells.cell = w->radius;
    j.cells.max[0] = j.cells.max[1] = j.cells.max[2] = w->open ? 0 : 1;
    j.desc.radius = w->radius;
    j.desc.grow = 1;
    return j;
}

static void free_job(job *j)
{
    ugrid_free(&j->grid);
    nlist_free(&j->list);
    free(j->offsets);
    free(j->ids);
    free(j->sums);
}

static void work_grid(void *user)
{
    job *j = (job *)user;
    must_grid(ugrid_build(&j->grid, &j->cells, j->w->frame[j->frame], 0, j->w->n));
}

static void work_build(void *user)
{
    job *j = (job *)user;
    work_grid(j);
    must(nlist_build_ugrid(&j->list, &j->desc, &j->grid, j->w->frame[j->frame], 0, j->w->n));
    if (j->turn) j->frame = 1 - j->frame;
}

static void work_neighbors(void *user)
{
    job *j = (job *)user;
    int64_t needed;
    work_grid(j);
    must_grid(ugrid_neighbors(&j->grid, j->w->radius, j->flags, j->offsets, j->ids, j->capacity,
                              &needed));
}

static void show(const char *group, const workload *w, const char *method, double ms, double bytes,
                 double base_ms)
{
    bench_row_s row;
    memset(&row, 0, sizeof row);
    row.group = group;
    row.workload = w->name;
    row.method = method;
    row.n = w->n;
    row.ms = ms;
    row.floor_ms = bytes / bench_speed;
    row.base_ms = base_ms;
    bench_row(&row);
}

/* ---- what a list holds, whatever its layout ---- */

/* The same for every order, and for (i, j) and (j, i). */
static uint64_t hash_of_pair(int32_t i, int32_t j)
{
    uint64_t const a = (uint64_t)i, b = (uint64_t)j,
                   key = (i < j ? a << 32 | b : b << 32 | a) * 0x9E3779B97F4A7C15u;
    return key ^ key >> 29;
}

static uint64_t hash_of_list(const nlist *list)
{
    uint64_t sum = 0;
    int32_t i;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) sum += hash_of_pair(i, e.id);
    }
    return sum;
}

static uint64_t hash_of_csr(const job *j)
{
    uint64_t sum = 0;
    int64_t k;
    int32_t i;
    for (i = 0; i < j->w->n; i++)
        for (k = j->offsets[i]; k < j->offsets[i + 1]; k++) sum += hash_of_pair(i, j->ids[k]);
    return sum;
}

/* ---- lists: every layout, full and half, beside the grid's own lists ---- */

typedef struct layout { const char *name; nlist_layout layout; } layout;

static const layout layouts[] = {{"COMPACT", NLIST_COMPACT},
                                 {"STATIC", NLIST_STATIC},
                                 {"DYNAMIC", NLIST_DYNAMIC},
                                 {"HYBRID", NLIST_HYBRID}};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

/* Build, records in, rows out. Links, heads and unused slots are the layout's own. */
static double bytes_of_list(const job *j, int64_t entries)
{
    return (12.0 + 16 + 4 + 16 + 8) * j->w->n + 4.0 * j->grid.cell_count + 4.0 * (double)entries;
}

/* The layout, and for STATIC as many slots as the frames take. */
static void choose_layout(job *j, const layout *how, int32_t hybrid_width)
{
    int32_t width = 1;
    int k;
    nlist_free(&j->list);
    j->desc.layout = how->layout;
    j->desc.history = 0;
    j->desc.width = how->layout == NLIST_HYBRID   ? hybrid_width
                    : how->layout == NLIST_STATIC ? 1
                                                  : 0;
    for (k = 0; k < 2 && how->layout == NLIST_STATIC; k++) {
        work_build(j);
        if (j->list.needed_width > width) width = j->list.needed_width;
    }
    if (how->layout == NLIST_STATIC) j->desc.width = width;
    nlist_free(&j->list);
}

static void layout_row(job *j, const layout *how, int64_t entries, uint64_t hash, double base)
{
    char name[64];
    double ms;
    /* HYBRID: about the mean, so that some rows have a rest */
    choose_layout(j, how, j->desc.half ? 16 : 32);
    ms = measure(work_build, j);
    snprintf(name, sizeof name, "build + %s: %s", j->desc.half ? "half" : "full", how->name);
    if (j->desc.width)
        snprintf(name + strlen(name), sizeof name - strlen(name), ", width %d", (int)j->desc.width);
    show("lists", j->w, name, ms, bytes_of_list(j, entries), base);
    bench_check_total(j->list.total, entries, name);
    bench_check(hash_of_list(&j->list) == hash, name);
}

/* The first `count` of the layouts. */
static void list_rows(const workload *w, int half, int count)
{
    job j = new_job(w);
    int64_t pairs, entries;
    double base;
    uint64_t hash;
    int k;
    work_grid(&j);
    must_grid(ugrid_count_pairs(&j.grid, w->radius, &pairs));
    if (w->pairs) bench_check_total(2 * pairs, w->pairs, "the workload is not the one described");
    j.capacity = entries = half ? pairs : 2 * pairs;
    j.offsets = (int64_t *)bench_alloc(((size_t)w->n + 1) * sizeof *j.offsets);
    j.ids = (int32_t *)bench_alloc((size_t)entries * sizeof *j.ids);
    j.flags = half ? UGRID_HALF : 0;
    j.desc.half = half;
    base = measure(work_neighbors, &j);
    hash = hash_of_csr(&j);
    show("lists", w, half ? "build + half: ugrid_neighbors" : "build + full: ugrid_neighbors", base,
         bytes_of_list(&j, entries), base);
    for (k = 0; k < count; k++) layout_row(&j, &layouts[k], entries, hash, base);
    free_job(&j);
}

static void bench_lists(int32_t n)
{
    workload w = uniform(n, 30, 0);
    if (n == 1000000) w.pairs = 29352150;
    bench_title("lists: rows by id, with the build of the grid; about 29 neighbours each", "ugrid");
    list_rows(&w, 0, LAYOUTS);
    list_rows(&w, 1, LAYOUTS);
    free_workload(&w);
    w = uniform(n, 30, 1);
    list_rows(&w, 1, 1);
    free_workload(&w);
}

/* ---- half: half lists beside full ones, and beside what a caller could write ---- */

/* Works that are compared: they take turns, so that a noisy machine disturbs all alike. */
typedef struct turn { void (*work)(void *); void *job; double ms; } turn;

static void take_turns(turn *turns, int count)
{
    enum { ROUNDS = 15 };
    double samples[4][ROUNDS];
    int r, k;
    for (r = -1; r < ROUNDS; r++)
        for (k = 0; k < count; k++) {
            double const ms = bench_sample_ms(NULL, turns[k].work, turns[k].job);
            if (r >= 0) samples[k][r] = ms;
        }
    for (k = 0; k < count; k++) turns[k].ms = bench_median(samples[k], ROUNDS);
}

/* A list by a source that is built already, as the job says. */
typedef struct half_job {
    job j;
    lbvh tree;
    int by_tree;
    int32_t *pairs;         /* the caller's own: room for `room` pairs */
    int64_t room;
    int32_t *slot, *count;  /* the caller's own rows of `width` slots */
    int32_t width;
    int64_t *at;            /* by place: where the next partner of a row goes */
} half_job;

static void work_half(void *user)
{
    half_job *h = (half_job *)user;
    const float *pos = h->j.w->frame[0];
    if (h->by_tree) must(nlist_build_lbvh(&h->j.list, &h->j.desc, &h->tree, pos, 0, h->j.w->n));
    else must(nlist_build_ugrid(&h->j.list, &h->j.desc, &h->j.grid, pos, 0, h->j.w->n));
}

/* The pairs of the tree, those within the radius, and a list of them. */
static void work_half_pairs(void *user)
{
    half_job *h = (half_job *)user;
    const float *pos = h->j.w->frame[0];
    float const limit = h->j.w->radius * h->j.w->radius;
    nlist_desc desc = h->j.desc;
    int64_t found = 0, kept = 0, k;
    (void)lbvh_pairs(&h->tree, h->pairs, h->room, &found);
    for (k = 0; k < found; k++) {
        const float *p = pos + 3 * (size_t)h->pairs[2 * k],
                    *q = pos + 3 * (size_t)h->pairs[2 * k + 1];
        float const x = q[0] - p[0], y = q[1] - p[1], z = q[2] - p[2];
        h->pairs[2 * kept] = h->pairs[2 * k];
        h->pairs[2 * kept + 1] = h->pairs[2 * k + 1];
        kept += x * x + y * y + z * z <= limit;
    }
    desc.radius = 0;
    must(nlist_build_pairs(&h->j.list, &desc, h->pairs, kept, h->j.w->n));
}

/* The caller's own rows: what molecular dynamics codes do. */
static int take_into_slot(void *user, int32_t i, int32_t j)
{
    half_job *h = (half_job *)user;
    if (h->count[i] < h->width) h->slot[(int64_t)i * h->width + h->count[i]] = j;
    h->count[i]++;
    return 0;
}

static int take_lower(void *user, int32_t i, int32_t j)
{
    return i < j ? take_into_slot(user, i, j) : take_into_slot(user, j, i);
}

static void work_half_slots(void *user)
{
    half_job *h = (half_job *)user;
    memset(h->count, 0, (size_t)h->j.w->n * sizeof *h->count);
    must_grid(ugrid_each_pair(&h->j.grid, h->j.w->radius, h->j.desc.half ? UGRID_HALF : 0,
                              h->j.desc.half ? take_lower : take_into_slot, h));
}

/* Each pair tested once: a half search, whose pairs are moved to the rows of the lower ids, by
   count and scatter. Rows by place; nlist.h would still put them in the order of ids. */
static void work_half_moved(void *user)
{
    half_job *h = (half_job *)user;
    const int32_t *order = h->j.grid.order;
    int32_t const n = h->j.w->n;
    int64_t needed, sum = 0, e;
    int32_t p;
    must_grid(ugrid_neighbors(&h->j.grid, h->j.w->radius, UGRID_HALF | UGRID_PLACES, h->j.offsets,
                              h->j.ids, h->j.capacity, &needed));
    memset(h->at, 0, (size_t)n * sizeof *h->at);
    for (p = 0; p < n; p++)
        for (e = h->j.offsets[p]; e < h->j.offsets[p + 1]; e++)
            h->at[order[p] < order[h->j.ids[e]] ? p : h->j.ids[e]]++;
    for (p = 0; p < n; p++) {
        int64_t const count = h->at[p];
        h->at[p] = sum;
        sum += count;
    }
    for (p = 0; p < n; p++)
        for (e = h->j.offsets[p]; e < h->j.offsets[p + 1]; e++) {
            int32_t const q = h->j.ids[e], lower = order[p] < order[q];
            h->slot[h->at[lower ? p : q]++] = lower ? order[q] : order[p];
        }
}

static half_job new_half(const workload *w, int half, int by_tree, float box)
{
    half_job h;
    int32_t i;
    int a;
    memset(&h, 0, sizeof h);
    h.j = new_job(w);
    h.j.desc.half = half;
    h.by_tree = by_tree;
    if (by_tree) {
        float *boxes = (float *)bench_alloc(6 * (size_t)w->n * sizeof *boxes);
        for (i = 0; i < w->n; i++)
            for (a = 0; a < 3; a++) {
                boxes[6 * (size_t)i + (size_t)a] = w->frame[0][3 * (size_t)i + (size_t)a] - box;
                boxes[6 * (size_t)i + 3 + (size_t)a] = w->frame[0][3 * (size_t)i + (size_t)a] + box;
            }
        if (lbvh_build(&h.tree, NULL, boxes, 0, w->n) != LBVH_OK) exit(1);
        free(boxes);
    } else {
        work_grid(&h.j);
    }
    return h;
}

static void free_half(half_job *h)
{
    lbvh_free(&h->tree);
    free(h->pairs);
    free(h->slot);
    free(h->count);
    free(h->at);
    free_job(&h->j);
}

/* Half and full, by one source. Both must hold the same pairs. */
static void half_and_full(const workload *w, const char *source, int by_tree, float box)
{
    half_job half = new_half(w, 1, by_tree, box), full = new_half(w, 0, by_tree, box);
    turn turns[2] = {{work_half, &half, 0}, {work_half, &full, 0}};
    char name[96];
    take_turns(turns, 2);
    snprintf(name, sizeof name, "full: %s", source);
    show("half", w, name, turns[1].ms, bytes_of_list(&full.j, full.j.list.total), turns[1].ms);
    snprintf(name, sizeof name, "half: %s", source);
    show("half", w, name, turns[0].ms, bytes_of_list(&half.j, half.j.list.total), turns[1].ms);
    bench_check(2 * hash_of_list(&half.j.list) == hash_of_list(&full.j.list), name);
    free_half(&half);
    free_half(&full);
}

/* The half list of a tree beside its pairs, filtered, as a list. */
static void half_by_pairs(const workload *w)
{
    half_job list = new_half(w, 1, 1, w->radius / 2), own = new_half(w, 1, 1, w->radius / 2);
    turn turns[2] = {{work_half, &list, 0}, {work_half_pairs, &own, 0}};
    if (lbvh_count_pairs(&own.tree, &own.room) != LBVH_OK) exit(1);
    own.pairs = (int32_t *)bench_alloc(2 * (size_t)own.room * sizeof *own.pairs);
    take_turns(turns, 2);
    show("half", w, "half: lbvh_pairs, a filter, nlist_build_pairs", turns[1].ms,
         bytes_of_list(&own.j, own.j.list.total), turns[1].ms);
    show("half", w, "half: nlist_build_lbvh, the same tree", turns[0].ms,
         bytes_of_list(&list.j, list.j.list.total), turns[1].ms);
    bench_check(hash_of_list(&list.j.list) == hash_of_list(&own.j.list), "pairs of a tree");
    free_half(&list);
    free_half(&own);
}

/* The half list of a grid beside half searches. */
static void half_by_moving(const workload *w)
{
    half_job list = new_half(w, 1, 0, 0), own = new_half(w, 1, 0, 0);
    turn turns[2] = {{work_half, &list, 0}, {work_half_moved, &own, 0}};
    must_grid(ugrid_count_pairs(&own.j.grid, w->radius, &own.j.capacity));
    own.j.offsets = (int64_t *)bench_alloc(((size_t)w->n + 1) * sizeof *own.j.offsets);
    own.j.ids = (int32_t *)bench_alloc((size_t)own.j.capacity * sizeof *own.j.ids);
    own.slot = (int32_t *)bench_alloc((size_t)own.j.capacity * sizeof *own.slot);
    own.at = (int64_t *)bench_alloc((size_t)w->n * sizeof *own.at);
    take_turns(turns, 2);
    show("half", w, "half: a half search, pairs moved to rows by place", turns[1].ms,
         bytes_of_list(&own.j, own.j.capacity), turns[1].ms);
    show("half", w, "half: nlist_build_ugrid, rows by id", turns[0].ms,
         bytes_of_list(&list.j, own.j.capacity), turns[1].ms);
    bench_check_total(list.j.list.total, own.at[w->n - 1], "pairs that were moved");
    free_half(&list);
    free_half(&own);
}

/* STATIC beside the caller's own slots. */
static void half_by_slots(const workload *w, int half)
{
    half_job list = new_half(w, half, 0, 0), own = new_half(w, half, 0, 0);
    turn turns[2] = {{work_half, &list, 0}, {work_half_slots, &own, 0}};
    char name[96];
    int64_t total = 0;
    int32_t i;
    own.width = list.j.desc.width = 128;
    list.j.desc.layout = NLIST_STATIC;
    own.slot = (int32_t *)bench_alloc((size_t)w->n * 128 * sizeof *own.slot);
    own.count = (int32_t *)bench_alloc((size_t)w->n * sizeof *own.count);
    take_turns(turns, 2);
    for (i = 0; i < w->n; i++) total += own.count[i];
    snprintf(name, sizeof name, "%s: slot[i][count[i]++] = j", half ? "half" : "full");
    show("half", w, name, turns[1].ms, bytes_of_list(&list.j, total), turns[1].ms);
    snprintf(name, sizeof name, "%s: nlist_build_ugrid, STATIC 128", half ? "half" : "full");
    show("half", w, name, turns[0].ms, bytes_of_list(&list.j, total), turns[1].ms);
    bench_check_total(list.j.list.total, total, name);
    free_half(&list);
    free_half(&own);
}

/* Radii from 1 to `ratio`, evenly: about 8 neighbours each. Half lists by grid and tree, beside the
   full list of the grid. */
static void half_radii(int32_t n, int ratio)
{
    workload w = uniform(n, 8, 0);
    float *radii = (float *)bench_alloc((size_t)n * sizeof *radii);
    float *spheres = (float *)bench_alloc(4 * (size_t)n * sizeof *spheres);
    half_job half, full, tree;
    turn turns[3];
    lbvh_desc as;
    char name[96];
    int32_t i;
    double mean = (1.0 + ratio) / 2;
    float const unit = w.radius / 2 / (float)mean;
    for (i = 0; i < n; i++)
        radii[i] = unit * (1 + (float)(ratio - 1) * (float)(hash_of_pair(i, i) % 1000) / 999);
    w.radius = 2 * unit * (float)ratio;         /* of the cells */
    for (i = 0; i < n; i++) {
        memcpy(spheres + 4 * (size_t)i, w.frame[0] + 3 * (size_t)i, 3 * sizeof *spheres);
        spheres[4 * (size_t)i + 3] = radii[i];
    }
    half = new_half(&w, 1, 0, 0);
    full = new_half(&w, 0, 0, 0);
    half.j.desc.radius = full.j.desc.radius = 0;
    half.j.desc.radii = full.j.desc.radii = radii;
    tree = new_half(&w, 1, 0, 0);
    tree.by_tree = 1;
    tree.j.desc = half.j.desc;
    memset(&as, 0, sizeof as);
    as.kind = LBVH_SPHERES;
    if (lbvh_build(&tree.tree, &as, spheres, 0, n) != LBVH_OK) exit(1);
    turns[0].work = turns[1].work = turns[2].work = work_half;
    turns[0].job = &half;
    turns[1].job = &full;
    turns[2].job = &tree;
    take_turns(turns, 3);
    snprintf(name, sizeof name, "full: grid, radii 1 to %d", ratio);
    show("half", &w, name, turns[1].ms, bytes_of_list(&full.j, full.j.list.total), turns[1].ms);
    snprintf(name, sizeof name, "half: grid, radii 1 to %d", ratio);
    show("half", &w, name, turns[0].ms, bytes_of_list(&half.j, half.j.list.total), turns[1].ms);
    bench_check(2 * hash_of_list(&half.j.list) == hash_of_list(&full.j.list), name);
    snprintf(name, sizeof name, "half: tree of spheres, radii 1 to %d", ratio);
    show("half", &w, name, turns[2].ms, bytes_of_list(&half.j, half.j.list.total), turns[1].ms);
    bench_check(hash_of_list(&half.j.list) == hash_of_list(&tree.j.list), name);
    free_half(&half);
    free_half(&full);
    free_half(&tree);
    free(spheres);
    free(radii);
    free_workload(&w);
}

static void bench_half(void)
{
    static int32_t const sizes[] = {500, 20000, 200000};
    workload w;
    int k;
    bench_title("half: lists alone, without the build of their source; 15 neighbours each",
                "the first row of each two");
    for (k = 0; k < 3; k++) {
        w = uniform(sizes[k], 15, 0);
        half_and_full(&w, "grid", 0, 0);
        half_and_full(&w, "tree of points", 1, 0);
        half_and_full(&w, "tree of boxes", 1, w.radius / 2);
        half_by_pairs(&w);
        half_by_moving(&w);
        free_workload(&w);
    }
    w = uniform(200000, 15, 1);
    half_and_full(&w, "grid", 0, 0);
    half_and_full(&w, "tree of points", 1, 0);
    free_workload(&w);
    w = uniform(60000, 60, 0);
    half_by_slots(&w, 1);
    half_by_slots(&w, 0);
    free_workload(&w);
    for (k = 0; k < 3; k++) {
        half_radii(sizes[k], 1);
        half_radii(sizes[k], 5);
        half_radii(sizes[k], 10);
    }
}

/* ---- history: what it costs to keep a number of bytes per contact ---- */

enum { FLOAT4 = 16 }; /* what Kureck keeps (section 6.3.6) */

static double square(double x) { return x * x; }

/* Where rounding cannot decide: 1 = within the radius, 0 = outside, -1 = too close to tell. */
static int were_near(const workload *w, int frame, int32_t i, int32_t j)
{
    const float *p = w->frame[frame] + 3 * (size_t)i, *q = w->frame[frame] + 3 * (size_t)j;
    double const d2 =
        square((double)p[0] - q[0]) + square((double)p[1] - q[1]) + square((double)p[2] - q[2]);
    double const r2 = square((double)w->radius);
    return d2 < r2 * (1 - 1e-5) ? 1 : d2 > r2 * (1 + 1e-5) ? 0 : -1;
}

/* Writes a number of its own into each contact. */
static void sign_contacts(nlist *list)
{
    int32_t i;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) {
            uint64_t const own = hash_of_pair(i, e.id) | 1;
            memcpy(e.history, &own, sizeof own);
        }
    }
}

/* After the next build: those that were there still have it, the others have zeros. Geometry says
   which contacts there were. */
static void check_signatures(const job *j, int before)
{
    int64_t wrong = 0, kept = 0, begun = 0;
    int32_t i;
    for (i = 0; i < j->list.n; i++) {
        nlist_each e = nlist_of(&j->list, i);
        while (nlist_next(&e)) {
            int const were = were_near(j->w, before, i, e.id);
            uint64_t own;
            memcpy(&own, e.history, sizeof own);
            wrong += own != 0 && own != (hash_of_pair(i, e.id) | 1);
            wrong += (were == 1 && own == 0) || (were == 0 && own != 0);
            kept += own != 0;
            begun += own == 0;
        }
    }
    bench_check(wrong == 0 && kept > 0, "history: lost, or not zero where a contact began");
    printf("  %lld contacts persist from one build to the next, %lld begin\n", (long long)kept,
           (long long)begun);
}

static const char *order_of(const workload *w)
{
    return strstr(w->name, "sorted") ? "" : ", any order";
}

static double history_row(job *j, const char *name, int32_t bytes, double base)
{
    char text[64];
    double ms;
    nlist_free(&j->list);
    j->desc.history = bytes;
    ms = measure(work_build, j);
    if (bytes)
        snprintf(text, sizeof text, "build + half%s: %s, %d bytes of history", order_of(j->w), name,
                 (int)bytes);
    else snprintf(text, sizeof text, "build + half%s: %s", order_of(j->w), name);
    show("history", j->w, text, ms,
         bytes_of_list(j, j->list.total) + 2.0 * bytes * (double)j->list.total,
         base > 0 ? base : ms);
    return ms;
}

/* A sum over all contacts of what they keep: the same for every order. */
static uint64_t hash_of_kept(const job *j)
{
    uint64_t sum = 0;
    int32_t i;
    for (i = 0; i < j->list.n; i++) {
        nlist_each e = nlist_of(&j->list, i);
        while (nlist_next(&e)) {
            uint64_t own;
            memcpy(&own, e.history, sizeof own);
            sum += hash_of_pair(i, e.id) ^ own;
        }
    }
    return sum;
}

typedef struct in_place { job *j; plain_history list; } in_place;

static void work_in_place(void *user)
{
    in_place *p = (in_place *)user;
    job *j = p->j;
    work_grid(j);
    plain_history_flag(&p->list);
    must_grid(ugrid_each_pair(&j->grid, j->w->radius, UGRID_HALF, plain_history_found, &p->list));
    plain_history_sort(&p->list);
    if (j->turn) j->frame = 1 - j->frame;
}

/* After a build: signs, builds again, and compares contacts and signatures with those of `hash`. */
static void check_in_place(in_place *p, uint64_t hash)
{
    plain_history *h = &p->list;
    uint64_t sum = 0, own;
    int64_t k;
    for (k = 0; k < h->count; k++) {
        own = hash_of_pair(h->now.a[k], h->now.b[k]) | 1;
        memcpy(&h->now.kept[k], &own, sizeof own);
    }
    work_in_place(p);
    for (k = 0; k < h->count; k++) {
        memcpy(&own, &h->now.kept[k], sizeof own);
        sum += hash_of_pair(h->now.a[k], h->now.b[k]) ^ own;
    }
    bench_check(sum == hash, "history in place: other contacts, or others persist");
}

/* Beside the list of j, which was signed and built again. The two are timed in turns: the rows have
   the least times. */
static void in_place_rows(job *j)
{
    in_place p;
    int const before = j->frame; /* the list of j was signed in this frame */
    uint64_t const hash = hash_of_kept(j);
    double ms[2] = {1e30, 1e30};
    char text[64];
    int k;
    p.j = j;
    p.list = plain_history_new(j->w->n, 2 * j->list.total + 1024);
    do work_in_place(&p); while (j->frame == before);
    check_in_place(&p, hash);
    for (k = 0; k < 4 * LONG_RUNS; k++) {
        ms[k & 1] = fmin(ms[k & 1], bench_sample_ms(NULL, k & 1 ? work_in_place : work_build,
                                                    k & 1 ? (void *)&p : (void *)j));
        if (k & 1) j->frame = 1 - j->frame; /* each sees both frames in turn */
    }
    for (k = 0; k < 2; k++) {
        snprintf(text, sizeof text, "in turns%s: %s", order_of(j->w),
                 k ? "history in place (004, 5.5)" : "HYBRID, 16 bytes");
        show("history", j->w, text, ms[k],
             bytes_of_list(j, j->list.total) + 2.0 * FLOAT4 * (double)j->list.total, ms[0]);
    }
    plain_history_free(&p.list);
}

/* What one layout pays; the list is then signed, and built again. */
static void history_of(job *j, const layout *how)
{
    double base;
    int before;
    choose_layout(j, how, 8);
    base = history_row(j, how->name, 0, 0);
    history_row(j, how->name, FLOAT4, base);
    sign_contacts(&j->list);
    before = 1 - j->frame; /* of the list as it is */
    work_build(j);
    check_signatures(j, before);
}

/* All layouts in Morton order, the last of them also as the particles were made. */
static void bench_history(int32_t n)
{
    int sorted, k;
    bench_title("history: a build after a small motion, about 8 neighbours each (source 004, "
                "6.3.6: 2.2 times as long)",
                "without");
    for (sorted = 1; sorted >= 0; sorted--) {
        workload w = uniform(n, 8, sorted);
        job j = new_job(&w);
        j.turn = 1;
        j.desc.half = 1;
        for (k = sorted ? 0 : LAYOUTS - 1; k < LAYOUTS; k++) history_of(&j, &layouts[k]);
        in_place_rows(&j);
        free_job(&j);
        free_workload(&w);
    }
}

/* ---- sums: the same forces in every mode ---- */

/* A spring between particles that overlap: along the line between them, linear in the overlap. */
typedef struct springs { const float *pos; float reach; } springs;

static int spring(void *user, int32_t i, int32_t j, void *history, float *own, float *other)
{
    springs const *s = (springs const *)user;
    const float *p = s->pos + 3 * (size_t)i, *q = s->pos + 3 * (size_t)j;
    float const d[3] = {q[0] - p[0], q[1] - p[1], q[2] - p[2]},
                d2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
    float push;
    int a;
    (void)history;
    if (d2 >= s->reach * s->reach || d2 <= 0) return 0;
    push = s->reach / sqrtf(d2) - 1;
    for (a = 0; a < 3; a++) {
        own[a] = -push * d[a];
        other[a] = push * d[a];
    }
    return 1;
}

static void work_sum(void *user)
{
    job *j = (job *)user;
    springs s;
    s.pos = j->w->frame[0];
    s.reach = j->w->radius;
    memset(j->sums, 0, 3 * (size_t)j->w->n * sizeof *j->sums);
    must(nlist_sum(&j->list, &j->how, spring, &s, j->sums));
}

/* The same in double, without a list. */
typedef struct exact { const float *pos; double reach, *sums; } exact;

static int add_exact(void *user, int32_t i, int32_t j)
{
    exact *e = (exact *)user;
    const float *p = e->pos + 3 * (size_t)i, *q = e->pos + 3 * (size_t)j;
    double const d[3] = {(double)q[0] - p[0], (double)q[1] - p[1], (double)q[2] - p[2]};
    double const distance = sqrt(square(d[0]) + square(d[1]) + square(d[2]));
    int a;
    if (distance >= e->reach || distance <= 0) return 0;
    for (a = 0; a < 3; a++) {
        e->sums[3 * (size_t)i + (size_t)a] -= (e->reach / distance - 1) * d[a];
        e->sums[3 * (size_t)j + (size_t)a] += (e->reach / distance - 1) * d[a];
    }
    return 0;
}

static double *exact_sums(job *j)
{
    exact e;
    e.pos = j->w->frame[0];
    e.reach = (double)j->w->radius;
    e.sums = (double *)bench_alloc(3 * (size_t)j->w->n * sizeof *e.sums);
    memset(e.sums, 0, 3 * (size_t)j->w->n * sizeof *e.sums);
    must_grid(ugrid_each_pair(&j->grid, j->w->radius, UGRID_HALF, add_exact, &e));
    return e.sums;
}

/* One force is at most the reach. */
static void check_sums(const job *j, const double *expected, const char *name)
{
    double worst = 0;
    size_t k;
    for (k = 0; k < 3 * (size_t)j->w->n; k++)
        worst = fmax(worst, fabs((double)j->sums[k] - expected[k]));
    bench_check(worst <= 1e-4 * (double)j->w->radius, name); /* NaN fails */
}

typedef struct mode { const char *name; nlist_mode mode; double unit; } mode;

static const mode modes[] = {
    {"PER_PARTICLE",             NLIST_PER_PARTICLE, 0},
    {"PER_CONTACT",              NLIST_PER_CONTACT,  0},
    {"REDUCE",                   NLIST_REDUCE,       0},
    {"PER_PARTICLE, fixed point", NLIST_PER_PARTICLE, 1}
};
enum { MODES = sizeof modes / sizeof *modes };

/* Positions and entries in, sums out. */
static double bytes_of_sum(const job *j)
{
    return (12.0 + 8 + 24) * j->w->n + 4.0 * (double)j->list.total;
}

static void sum_rows(job *j, const layout *how, const double *expected)
{
    double base = 0;
    int k;
    choose_layout(j, how, 8);
    if (how->layout == NLIST_STATIC) j->desc.width = 32; /* REDUCE wants a power of two */
    work_build(j);
    for (k = 0; k < MODES; k++) {
        char name[64];
        double ms;
        j->how.mode = modes[k].mode;
        j->how.unit = modes[k].unit * (double)j->w->radius * 0x1p-30;
        snprintf(name, sizeof name, "%s, %s: %s", how->name, j->desc.half ? "half" : "full",
                 modes[k].name);
        ms = measure(work_sum, j);
        if (k == 0) base = ms;
        show("sums", j->w, name, ms, bytes_of_sum(j), base);
        check_sums(j, expected, name);
    }
}

static void bench_sums(int32_t n)
{
    workload w = uniform(n, 8, 1);
    job j = new_job(&w);
    double *expected;
    int k;
    j.how.values = 3;
    j.sums = (float *)bench_alloc(3 * (size_t)n * sizeof *j.sums);
    work_grid(&j);
    expected = exact_sums(&j);
    bench_title("sums: a spring between those that overlap, about 8 neighbours each; serially the "
                "modes differ in order only",
                "PER_PART.");
    for (j.desc.half = 1; j.desc.half >= 0; j.desc.half--)
        for (k = 0; k < LAYOUTS; k++)
            if (j.desc.half || k == 0) sum_rows(&j, &layouts[k], expected);
    free(expected);
    free_job(&j);
    free_workload(&w);
}

/* ---- boxes: i, j, S and distances in a periodic box, beside the obvious cell list ---- */

typedef struct box_job {
    const workload *w;
    nlist list;
    nlist_desc desc;
    nlist_box box;
    nlist_arrays arrays;
    plain_box plain;
    const float *pos;   /* as given to nlist.h: the triclinic box has other positions */
    int times;          /* calls in a row: small systems take microseconds */
} box_job;

static void work_box(void *user)
{
    box_job *j = (box_job *)user;
    int k;
    for (k = 0; k < j->times; k++) {
        j->arrays.wanted = NLIST_WANT_I | NLIST_WANT_J | NLIST_WANT_SHIFT | NLIST_WANT_DISTANCE;
        must(nlist_search_box(&j->list, &j->desc, &j->box, j->pos, 0, j->w->n, &j->arrays));
    }
}

static void work_plain_box(void *user)
{
    box_job *j = (box_job *)user;
    int k;
    for (k = 0; k < j->times; k++)
        plain_box_search(&j->plain, j->w->frame[0], j->w->n, 1, j->w->radius);
}

/* The same content in a box with angles of 60 to 75 degrees: f . cell instead of f. */
static float *sheared(const workload *w, nlist_box *box)
{
    float *pos = (float *)bench_alloc((size_t)w->n * 3 * sizeof *pos);
    int32_t i;
    int a, k;
    box->cell[1][0] = box->cell[2][0] = box->cell[2][1] = 0.3f;
    for (i = 0; i < w->n; i++)
        for (k = 0; k < 3; k++)
            for (a = 0, pos[3 * i + k] = 0; a < 3; a++)
                pos[3 * i + k] += w->frame[0][3 * i + a] * box->cell[a][k];
    return pos;
}

static void box_rows(int32_t n, double neighbors)
{
    workload w = uniform(n, neighbors, 1);
    box_job j;
    float *pos;
    double base, bytes;
    int a;
    memset(&j, 0, sizeof j);
    j.w = &w;
    j.pos = w.frame[0];
    j.times = n < 100000 ? 100000 / n : 1;
    j.desc.radius = w.radius;
    for (a = 0; a < 3; a++) j.box.cell[a][a] = 1, j.box.periodic[a] = 1;
    base = measure(work_plain_box, &j) / j.times;
    work_box(&j);
    bench_check(j.arrays.count > j.plain.count - 4 - j.plain.count / 100000 &&
                    j.arrays.count < j.plain.count + 4 + j.plain.count / 100000,
                /* shifts of whole boxes are rounded in another order */
                "boxes: entries, but for those at the rim");
    bytes = 12.0 * n + 24.0 * (double)j.arrays.count;
    show("boxes", &w, "plain cell list with shifts", base, bytes, base);
    show("boxes", &w, "nlist_search_box", measure(work_box, &j) / j.times, bytes, base);
    j.desc.sorted = 1;
    show("boxes", &w, "nlist_search_box, sorted", measure(work_box, &j) / j.times, bytes, base);
    j.desc.sorted = 0;
    pos = sheared(&w, &j.box);
    j.pos = pos;
    show("boxes", &w, "nlist_search_box, triclinic", measure(work_box, &j) / j.times, bytes, base);
    free(pos);
    plain_box_free(&j.plain);
    nlist_free(&j.list);
    free_workload(&w);
}

static void bench_boxes(void)
{
    int32_t n;
    bench_title(
        "boxes: i, j, S and distances of a full list in a periodic box, 30 and 80 neighbours",
        "plain cell list with shifts");
    for (n = 100; n <= (bench.n ? bench.n : bench.quick ? 10000 : 100000); n *= 10) {
        box_rows(n, 30);
        box_rows(n, 80);
    }
}

/* ---- walls: points against the triangles of a box, by the tree and by a grid of triangles ---- */

typedef struct wall_job {
    const workload *w;
    nlist_mesh mesh;
    float *vertices;
    lbvh tree;
    nlist list;
    nlist_desc desc;
    plain_mesh_grid grid;
    int64_t contacts;
    uint64_t hash;
} wall_job;

/* The unit cube: each side is a square of count * count squares of two triangles. */
static void wall_mesh(wall_job *j, int count)
{
    static const int corner[6] = {0, 1, 2, 1, 3, 2};
    int32_t const triangles = 12 * count * count;
    int32_t t;
    int v;
    j->vertices = (float *)bench_alloc(9 * (size_t)triangles * sizeof(float));
    for (t = 0; t < triangles; t++) {
        int const side = t / (2 * count * count), square = t / 2 % (count * count);
        for (v = 0; v < 3; v++) {
            int const c = corner[3 * (t % 2) + v];
            float *p = j->vertices + 9 * (size_t)t + 3 * v;
            p[side / 2] = (float)(side % 2);
            p[(side / 2 + 1) % 3] = (float)(square / count + c % 2) / (float)count;
            p[(side / 2 + 2) % 3] = (float)(square % count + c / 2) / (float)count;
        }
    }
    j->mesh.vertices = j->vertices;
    j->mesh.triangles = triangles;
}

static void work_wall_tree(void *user)
{
    wall_job *j = (wall_job *)user;
    lbvh_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kind = LBVH_TRIANGLES;
    if (lbvh_build(&j->tree, &desc, j->vertices, 0, j->mesh.triangles) != LBVH_OK) exit(1);
}

static void work_wall_list(void *user)
{
    wall_job *j = (wall_job *)user;
    must(nlist_build_mesh(&j->list, &j->desc, &j->tree, &j->mesh, j->w->frame[0], 0, j->w->n));
}

static void work_wall_grid(void *user)
{
    wall_job *j = (wall_job *)user;
    plain_mesh_grid_build(&j->grid, &j->mesh);
}

static void work_wall_near(void *user)
{
    wall_job *j = (wall_job *)user;
    int32_t i, key;
    j->contacts = 0;
    j->hash = 0;
    for (i = 0; i < j->w->n; i++) {
        const float *p = j->w->frame[0] + 3 * (size_t)i;
        plain_mesh_near n = plain_mesh_around(&j->grid, &j->mesh, p, j->desc.radius);
        while ((key = plain_mesh_contact(&n, p, j->desc.radius)) >= 0) {
            j->hash += hash_of_pair(i, key);
            j->contacts++;
        }
    }
}

/* A grid with cells of so many diameters, and the same contacts as those of the list. */
static void wall_grid_rows(wall_job *j, float diameters, double build, double search)
{
    float const low[3] = {0, 0, 0}, high[3] = {1, 1, 1};
    char name[64];
    double ms;
    j->grid = plain_mesh_grid_over(low, high, 2 * diameters * j->desc.radius);
    plain_mesh_grid_room(&j->grid, &j->mesh);
    ms = measure(work_wall_grid, j);
    snprintf(name, sizeof name, "triangles into a grid, cells of %g diameters",
             (double)diameters);
    show("walls", j->w, name, ms,
         4.0 * (double)plain_mesh_grid_cells(&j->grid) + 8.0 * (double)j->grid.entries, build);
    ms = measure(work_wall_near, j);
    snprintf(name, sizeof name, "search by the grid, cells of %g diameters", (double)diameters);
    show("walls", j->w, name, ms, 12.0 * j->w->n, search);
    printf("  %lld entries of %d triangles\n", (long long)j->grid.entries,
           (int)j->mesh.triangles);
    bench_check_total(j->contacts, j->list.total, name);
    bench_check(j->hash == hash_of_list(&j->list), name);
    plain_mesh_grid_free(&j->grid);
}

static void bench_walls(int32_t n)
{
    workload w = uniform(n, 4.3, 1);
    double build, search;
    wall_job j;
    memset(&j, 0, sizeof j);
    j.w = &w;
    j.desc.radius = w.radius / 2;
    j.desc.layout = NLIST_DYNAMIC;
    j.desc.grow = 1;
    wall_mesh(&j, n < 100000 ? 8 : 64);
    bench_title("walls: points against the triangles of a box (source 004, table 6.8: triangles "
                "in the grid, and in a tree)",
                "tree");
    build = measure(work_wall_tree, &j);
    search = measure(work_wall_list, &j);
    show("walls", &w, "tree over the triangles", build, (36.0 + 65) * j.mesh.triangles, build);
    show("walls", &w, "search by the tree", search, 12.0 * n, search);
    wall_grid_rows(&j, 1, build, search);
    wall_grid_rows(&j, 4, build, search);
    lbvh_free(&j.tree);
    nlist_free(&j.list);
    free(j.vertices);
    free_workload(&w);
}

/* ---- scaling: time and memory against n ---- */

static void work_list(void *user)
{
    job *j = (job *)user;
    must(nlist_build_ugrid(&j->list, &j->desc, &j->grid, j->w->frame[0], 0, j->w->n));
}

static void scaling_rows(int32_t n)
{
    workload w = uniform(n, 8, 0);
    job j = new_job(&w);
    int64_t pairs;
    double ms;
    j.desc.layout = NLIST_HYBRID;
    j.desc.width = 8;
    j.desc.half = 1;
    work_grid(&j);
    ms = bench_cpu_once_ms(work_list, &j);
    bench_scaling_row("scaling", "uniform", "nlist: half HYBRID list, 8 slots", n, ms,
                      (double)nlist_bytes(&j.list) / n);
    must_grid(ugrid_count_pairs(&j.grid, w.radius, &pairs));
    bench_check_total(j.list.total, pairs, "scaling: entries, and the grid's pairs");
    free_job(&j);
    free_workload(&w);
}

/* ---- defaults: a list with nothing set but the radius, beside what the manual offers ---- */

typedef struct default_job {
    job j;
    lbvh tree;
    int by_tree;
} default_job;

static void work_default_tree(default_job *d)
{
    lbvh_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kind = LBVH_POINTS;
    if (lbvh_build(&d->tree, &desc, d->j.w->frame[0], 0, d->j.w->n) != LBVH_OK) exit(1);
    must(nlist_build_lbvh(&d->j.list, &d->j.desc, &d->tree, d->j.w->frame[0], 0, d->j.w->n));
}

static void work_default_list(void *user)
{
    default_job *d = (default_job *)user;
    if (d->by_tree) work_default_tree(d);
    else work_build(&d->j);
}

enum { DEFAULT_LISTS = 6 };
/* Cells: 0 as the default finds them, 1 of the radius, 2 of two particles each. */
static const struct { const char *name; int cells, split, by_tree; nlist_layout layout; }
    default_lists[DEFAULT_LISTS] = {
        {"default", 0, 0, 0, NLIST_COMPACT},       {"cell = radius", 1, 1, 0, NLIST_COMPACT},
        {"2 particles a cell", 2, 1, 0, NLIST_COMPACT},
        {"radius, split 4", 1, 4, 0, NLIST_COMPACT},    {"tree", 0, 0, 1, NLIST_COMPACT},
        {"DYNAMIC", 1, 1, 0, NLIST_DYNAMIC}
    };

static void default_list_row(const workload *w, int half)
{
    default_job jobs[DEFAULT_LISTS];
    bench_setting settings[DEFAULT_LISTS];
    int k;
    for (k = 0; k < DEFAULT_LISTS; k++) {
        memset(&jobs[k], 0, sizeof jobs[k]);
        jobs[k].j = new_job(w);
        jobs[k].j.cells.cell = default_lists[k].cells == 1 ? w->radius : 0;
        jobs[k].j.cells.radius = default_lists[k].cells == 0 ? w->radius : 0;
        jobs[k].j.cells.split = default_lists[k].split;
        jobs[k].j.cells.unbounded = w->open && default_lists[k].cells == 1;
        jobs[k].j.desc.half = half;
        jobs[k].j.desc.layout = default_lists[k].layout;
        jobs[k].by_tree = default_lists[k].by_tree;
        settings[k].name = default_lists[k].name;
        settings[k].work = work_default_list;
        settings[k].job = &jobs[k];
        work_default_list(&jobs[k]);
        bench_check_total(jobs[k].j.list.total, jobs[0].j.list.total, settings[k].name);
    }
    bench_defaults_row(w->name, w->n, half ? "build + half list" : "build + full list", settings,
                       DEFAULT_LISTS, bench_turn_ms, jobs[0].j.grid.reason);
    for (k = 0; k < DEFAULT_LISTS; k++) {
        lbvh_free(&jobs[k].tree);
        free_job(&jobs[k].j);
    }
}

/* One particle a million edges away; then one of 16 at the middle. */
static void default_worst_rows(int32_t n)
{
    int kind, half;
    for (kind = 0; kind < 2; kind++) {
        workload w = uniform(n, 30, 0);
        int32_t i;
        strcpy(w.name, kind ? "30, coincident" : "30, one is far");
        w.open = 1;
        if (!kind) w.frame[0][3 * (size_t)n - 1] = 1e6f;
        else
            for (i = 0; i < n; i += 16)
                w.frame[0][3 * i] = w.frame[0][3 * i + 1] = w.frame[0][3 * i + 2] = 0.5f;
        for (half = 0; half < 2; half++) default_list_row(&w, half);
        free_workload(&w);
    }
}

static void bench_defaults(int32_t n)
{
    static const double neighbors[] = {0.1, 2, 8, 30, 100, 300};
    int k, sorted, half;
    bench_defaults_title("defaults: grid and list with nothing set but the radius; 0.1 to 300 "
                         "neighbours");
    for (k = 0; k < (int)(sizeof neighbors / sizeof *neighbors); k++)
        for (sorted = 0; sorted < 2; sorted++) {
            int32_t const some = neighbors[k] > 30 && n > 20000 ? 20000 : n;
            workload w = uniform(some, neighbors[k], sorted);
            snprintf(w.name, sizeof w.name, "%g%s", neighbors[k], sorted ? ", sorted" : "");
            for (half = 0; half < 2; half++) default_list_row(&w, half);
            free_workload(&w);
        }
    default_worst_rows(n > 20000 ? 20000 : n);
    bench_defaults_end();
}

/* ---- all of it ---- */

int main(int argc, char **argv)
{
    int32_t n;
    bench_start(argc, argv, "bench_nlist", "lists,half,history,sums,boxes,walls,scaling,"
                                          "defaults");
    n = bench.n ? bench.n : bench.quick ? 100000 : 1000000;
    bench_measure_copy();
    printf("nlist.h %d on one CPU core: thread-CPU time, median of %d runs (%d above %d ms) after "
           "warm-up; compiler %s; ",
           nlist_version(), bench.runs, LONG_RUNS, LONG_MS, __VERSION__);
    bench_print_date();
    bench_print_copy();
    if (bench_wants("lists")) bench_lists(n);
    if (bench_wants("half")) bench_half();
    if (bench_wants("history")) bench_history(n / 4);
    if (bench_wants("sums")) bench_sums(n / 4);
    if (bench_wants("boxes")) bench_boxes();
    if (bench_wants("walls")) bench_walls(n / 4);
    if (bench_named("defaults")) bench_defaults(n);
    if (bench_named("scaling"))
        bench_scaling_rows("scaling: time against n, evenly spread particles, about 8 neighbours; "
                           "bytes that the list holds",
                           scaling_rows);
    return bench_end();
}
