/* bench_lbvh.c - how fast is lbvh.h on one core of this machine? README.md in this folder explains
   the tables.
   SPDX-License-Identifier: MIT OR Unlicense

       make bench                                       all of it, about three minutes
       build/bench/bench_lbvh --only build,pairs --quick
       groups: build pairs own radius nearest rays wide quality
       when named: rotate (1,000 steps: some minutes), threads,
       overhead, scaling, defaults */

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#endif

#define LBVH_STATIC
#define LBVH_WITH_OPTIMIZE
#define LBVH_WITH_WIDE
#define LBVH_WITH_WORLD
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define UGRID_STATIC
#define UGRID_IMPLEMENTATION
#include "ugrid.h" /* to compare with, where all elements have one size */
#include "tests/bench/bench.h"
#include "tests/bench/defaults.h"
#include "tests/bench/moving.h"
#include "tests/bench/plain_tree.h"
#include "tests/bench/sah.h"
#include "tests/bench/threads.h"
#include "tests/common/workloads.h"
#include "tests/bench/worst_worlds.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

static void must(lbvh_result result)
{
    if (result == LBVH_OK) return;
    printf("%s\n", lbvh_result_text(result));
    exit(1);
}

/* "Cold" builds begin without memory, and fresh pages cost time. So that malloc gives what was
   freed back to the system, and takes it from there again: */
static void give_memory_back(void)
{
#if defined(__GLIBC__)
    mallopt(M_MMAP_THRESHOLD, 1 << 16);
#endif
}

/* ---- what trees are built over ---- */

typedef struct workload {
    const char *name;
    int32_t n;
    lbvh_desc desc;         /* dim 3; kind; radius 0 */
    int32_t width;          /* numbers per element */
    float *data;
    float *boxes;           /* the same elements as boxes */
    float radius;           /* points: of the search */
    int64_t pairs;          /* points: known total of ordered pairs within the radius, or 0 */
} workload;

static workload new_workload(const char *name, int32_t n, lbvh_kind kind, int32_t width)
{
    workload w;
    memset(&w, 0, sizeof w);
    w.name = name;
    w.n = n;
    w.desc.kind = kind;
    w.width = width;
    w.data = (float *)bench_alloc((size_t)n * (size_t)width * sizeof(float));
    w.boxes = kind == LBVH_BOXES ? w.data : (float *)bench_alloc((size_t)n * 6 * sizeof(float));
    return w;
}

static void free_workload(workload *w)
{
    if (w->boxes != w->data) free(w->boxes);
    free(w->data);
}

/* The mixture of two sizes, as boxes. */
static workload bidisperse(int32_t small)
{
    int32_t const n = small + wl_big(small);
    workload w = new_workload(small == WL_SMALL ? "bidisperse-1M" : "bidisperse", n, LBVH_BOXES, 6);
    float *pos = (float *)bench_alloc((size_t)n * 3 * sizeof(float)),
          *radius = (float *)bench_alloc((size_t)n * sizeof(float));
    size_t i, a;
    wl_two_sizes(small, 4, pos, radius);
    for (i = 0; i < (size_t)n; i++)
        for (a = 0; a < 3; a++) {
            w.data[6 * i + a] = pos[3 * i + a] - radius[i];
            w.data[6 * i + 3 + a] = pos[3 * i + a] + radius[i];
        }
    free(pos);
    free(radius);
    return w;
}

static void point_boxes(workload *w)
{
    size_t i;
    for (i = 0; i < (size_t)w->n; i++) {
        memcpy(w->boxes + 6 * i, w->data + 3 * i, 3 * sizeof(float));
        memcpy(w->boxes + 6 * i + 3, w->data + 3 * i, 3 * sizeof(float));
    }
}

static workload uniform(int32_t n)
{
    workload w = new_workload(n == 1000000 ? "uniform-1M" : "uniform", n, LBVH_POINTS, 3);
    w.radius = wl_radius(n, 30);
    if (n == 1000000) w.pairs = 29352150;
    wl_uniform(n, 1, w.data);
    point_boxes(&w);
    return w;
}

static workload dam(int32_t n)
{
    workload w = new_workload(n == 1000000 ? "dam-1M" : "dam", n, LBVH_POINTS, 3);
    w.radius = n == 1000000 ? 0.005577566f : 0.005577566f * cbrtf(1e6f / (float)n);
    if (n == 1000000) w.pairs = 29997360;
    wl_dam(n, 3, w.data);
    point_boxes(&w);
    return w;
}

static workload knot(int32_t along, int32_t around)
{
    workload w =
        new_workload(along == 640 ? "knot-102k" : "knot", 2 * along * around, LBVH_TRIANGLES, 9);
    wl_knot(along, around, w.data);
    must(lbvh_boxes(&w.desc, w.data, 0, w.n, w.boxes, NULL));
    return w;
}

static workload knot_for(int32_t n) { return n < 100000 ? knot(64, 8) : knot(640, 80); }

/* ---- jobs: everything that is timed gets one of these ---- */

typedef struct job {
    const workload *w;
    lbvh_desc desc;
    lbvh tree;
    plain_tree plain;
    lbvh_queries queries;
    int32_t *counts, *ids;
    int64_t *offsets, capacity, total;
    ugrid grid;
} job;

static job new_job(const workload *w)
{
    job j;
    memset(&j, 0, sizeof j);
    j.w = w;
    j.desc = w->desc;
    return j;
}

static void free_job(job *j)
{
    lbvh_free(&j->tree);
    plain_tree_free(&j->plain);
    ugrid_free(&j->grid);
    free(j->counts);
    free(j->ids);
    free(j->offsets);
}

static void show(const char *group, const workload *w, const char *method, int64_t n, double ms,
                 double floor_ms, double base_ms, const bench_row_s *aim)
{
    bench_row_s row;
    memset(&row, 0, sizeof row);
    if (aim) row = *aim;
    row.group = group;
    row.workload = w->name;
    row.method = method;
    row.n = n;
    row.ms = ms;
    row.floor_ms = floor_ms;
    row.base_ms = base_ms;
    bench_row(&row);
}

/* A row of targets.md, "One CPU core": AMD EPYC Zen 4, gcc -O3 -march=x86-64-v2. plain_ms: the
   obvious tree there. */
static bench_row_s target(double bar_ms, double plain_ms, double peer_ms, const char *peer)
{
    bench_row_s row;
    memset(&row, 0, sizeof row);
    row.bar_ms = bar_ms;
    row.bar_ratio = plain_ms > 0 ? bar_ms / plain_ms : 0;
    row.peer_ms = peer_ms;
    row.peer = peer;
    return row;
}

/* ---- build ---- */

static void fresh_plain(void *user) { job *j = (job *)user; plain_tree_free(&j->plain); }
static void fresh_tree(void *user) { job *j = (job *)user; lbvh_free(&j->tree); }

static void work_plain_build(void *user)
{
    job *j = (job *)user;
    if (!j->plain.node) j->plain = plain_tree_make(j->w->n);
    plain_tree_build(&j->plain, j->w->boxes);
}

static void work_build(void *user)
{
    job *j = (job *)user;
    must(lbvh_build(&j->tree, &j->desc, j->w->data, 0, j->w->n));
}
static void work_refit(void *user)
{
    job *j = (job *)user;
    must(lbvh_refit(&j->tree, j->w->data, 0));
}

/* Elements in; nodes and prefixes out. */
static double floor_build(const workload *w)
{
    return (4.0 * w->width + 2 * sizeof(lbvh_node) + 1) * w->n / bench_speed;
}

typedef struct way { const char *name; lbvh_builder builder; int32_t bits; } way;

static const way ways[] = {
    {"MERGE, 63 bits", LBVH_MERGE, 63},
    {"MERGE, 30 bits", LBVH_MERGE, 30},
    {"SPLIT, 63 bits", LBVH_SPLIT, 63},
    {"SPLIT, 30 bits", LBVH_SPLIT, 30},
    {"PLOC, 63 bits", LBVH_PLOC, 63}
};
enum { WAYS = sizeof ways / sizeof *ways };

/* targets.md has bars for the two-size mixture, cold and warm, and one for the triangles. The
   default builder has to reach them. */
static bench_row_s build_target(const workload *w, const way *how, int cold)
{
    if (how->builder != LBVH_MERGE) return target(0, 0, 0, "");
    if (w->desc.kind == LBVH_TRIANGLES && w->n == 102400)
        return target(5, 4.4, 11.7, "tinybvh BuildQuick");
    if (w->n == WL_BOTH)
        return cold ? target(75, 79, 175, "madmann91 LBVH") : target(45, 49, 157, "madmann91 LBVH");
    return target(0, 0, 0, "");
}

static void build_rows(const workload *w)
{
    job j = new_job(w);
    double const floor_ms = floor_build(w);
    double const cold = bench_cpu_ms_after(fresh_plain, work_plain_build, &j),
                 warm = bench_cpu_ms(work_plain_build, &j);
    char name[64];
    int k;
    show("build", w, "plain tree, cold", w->n, cold, floor_ms, cold, NULL);
    show("build", w, "plain tree, warm", w->n, warm, floor_ms, warm, NULL);
    for (k = 0; k < WAYS; k++) {
        bench_row_s const aim_cold = build_target(w, &ways[k], 1),
                          aim_warm = build_target(w, &ways[k], 0);
        j.desc.builder = ways[k].builder;
        j.desc.bits = ways[k].bits;
        snprintf(name, sizeof name, "lbvh_build, %s, cold", ways[k].name);
        show("build", w, name, w->n, bench_cpu_ms_after(fresh_tree, work_build, &j), floor_ms, cold,
             &aim_cold);
        snprintf(name, sizeof name, "lbvh_build, %s, warm", ways[k].name);
        show("build", w, name, w->n, bench_cpu_ms(work_build, &j), floor_ms, warm, &aim_warm);
        bench_check(lbvh_validate(&j.tree) == LBVH_OK, name);
        if (k == 0)
            show("build", w, "lbvh_refit", w->n, bench_cpu_ms(work_refit, &j), floor_ms, warm,
                 NULL);
        if (k == 0) bench_check(lbvh_validate(&j.tree) == LBVH_OK, "refit");
    }
    free_job(&j);
}

static void bench_builds(int32_t n)
{
    workload sets[4];
    int k;
    sets[0] = bidisperse(n);
    sets[1] = uniform(n);
    sets[2] = dam(n);
    sets[3] = knot_for(n);
    bench_title(
        "build: from elements to a tree; cold: into fresh memory, warm: again into the same",
        "plain tree");
    for (k = 0; k < 4; k++) build_rows(&sets[k]);
    for (k = 0; k < 4; k++) free_workload(&sets[k]);
}

/* ---- pairs ---- */

static void work_plain_pairs(void *user)
{
    job *j = (job *)user;
    work_plain_build(j);
    j->total = plain_pairs(&j->plain, j->ids);
}

static void work_plain_count_pairs(void *user)
{
    job *j = (job *)user;
    j->total = plain_pairs(&j->plain, NULL);
}
static void work_count_pairs(void *user)
{
    job *j = (job *)user;
    must(lbvh_count_pairs(&j->tree, &j->total));
}
static void work_pairs(void *user)
{
    job *j = (job *)user;
    must(lbvh_pairs(&j->tree, j->ids, j->capacity, &j->total));
}

static void work_build_pairs(void *user)
{
    work_build(user);
    work_pairs(user);
}

static void work_lists(void *user)
{
    job *j = (job *)user;
    must(lbvh_overlaps(&j->tree, &j->queries, j->offsets, j->ids, j->capacity, &j->total));
}

/* The same for every order of the pairs. */
static uint64_t hash_of_pairs(const int32_t *pairs, int64_t count)
{
    uint64_t sum = 0;
    int64_t k;
    for (k = 0; k < count; k++) {
        uint64_t const i = (uint64_t)pairs[2 * k], j = (uint64_t)pairs[2 * k + 1];
        uint64_t const key = (i < j ? i << 32 | j : j << 32 | i) * 0x9E3779B97F4A7C15u;
        sum += key ^ key >> 29;
    }
    return sum;
}

/* Every leaf in, every pair out. */
static double floor_pairs(const workload *w, int64_t pairs)
{
    return (32.0 * w->n + 8.0 * (double)pairs) / bench_speed;
}

static void pair_list_rows(const workload *w, job *j, int64_t total)
{
    bench_row_s const aim = w->n == WL_BOTH ? target(320, 348, 763, "Embree") : target(0, 0, 0, "");
    double const floor_ms = floor_pairs(w, total);
    double base;
    uint64_t hash;
    j->capacity = 2 * total; /* a full list has each pair twice */
    j->ids = (int32_t *)bench_alloc((size_t)total * 2 * sizeof *j->ids);
    base = bench_cpu_ms(work_plain_pairs, j);
    hash = hash_of_pairs(j->ids, total);
    show("pairs", w, "build + list: plain tree", w->n, base, floor_ms + floor_build(w), base, NULL);
    j->capacity = total;
    show("pairs", w, "build + list: lbvh_pairs", w->n, bench_cpu_ms(work_build_pairs, j),
         floor_ms + floor_build(w), base, &aim);
    bench_check_total(j->total, total, "pair list");
    bench_check(hash_of_pairs(j->ids, total) == hash, "pair list: other pairs");
    show("pairs", w, "list: lbvh_pairs", w->n, bench_cpu_ms(work_pairs, j), floor_ms, 0, NULL);
}

static void csr_rows(const workload *w, job *j, int64_t total)
{
    static const struct { const char *name; int flags; } lists[] = {
        {"lists of all: lbvh_overlaps, by place", LBVH_PLACES},
        {"lists of all: lbvh_overlaps, by id", 0},
        {"half lists: lbvh_overlaps, by place", LBVH_PLACES | LBVH_HALF}
    };
    bench_facts full = {0, 0};
    int k;
    j->offsets = (int64_t *)bench_alloc(((size_t)w->n + 1) * sizeof *j->offsets);
    j->queries.kind = LBVH_BOXES;
    j->capacity = 2 * total;
    for (k = 0; k < 3; k++) {
        int const half = lists[k].flags & LBVH_HALF;
        bench_facts facts;
        j->queries.flags = lists[k].flags;
        show("pairs", w, lists[k].name, w->n, bench_cpu_ms(work_lists, j), floor_pairs(w, total), 0,
             NULL);
        facts = bench_facts_of(j->offsets, j->ids, w->n);
        bench_check_total(facts.total, half ? total : 2 * total, lists[k].name);
        if (k == 0) full = facts;
        if (half) bench_check(2 * facts.sum == full.sum, lists[k].name);
    }
}

static void pairs_rows(const workload *w)
{
    job j = new_job(w);
    double base;
    int64_t total;
    work_plain_build(&j);
    work_build(&j);
    base = bench_cpu_ms(work_plain_count_pairs, &j);
    total = j.total;
    printf("%s: %lld pairs of overlapping boxes among %ld\n", w->name, (long long)total,
           (long)w->n);
    show("pairs", w, "count: plain tree, from the root", w->n, base, floor_pairs(w, 0), base, NULL);
    show("pairs", w, "count: lbvh_count_pairs", w->n, bench_cpu_ms(work_count_pairs, &j),
         floor_pairs(w, 0), base, NULL);
    bench_check_total(j.total, total, "count of pairs");
    pair_list_rows(w, &j, total);
    csr_rows(w, &j, total);
    free_job(&j);
}

static void bench_pairs(int32_t n)
{
    workload w = bidisperse(n);
    bench_title("pairs: overlapping boxes, each pair once; spheres of two sizes, 1:10 (source 004, "
                "test case 5)",
                "plain tree");
    pairs_rows(&w);
    free_workload(&w);
}

/* ---- own: lbvh_each_pair and lbvh_pairs against the caller's own loop over lbvh_overlap_later
   ---- */

enum { OWN_RUNS = 15 };

typedef struct own_job {
    lbvh tree;
    int32_t *pairs;
    int64_t capacity, found;
    double turn[3][OWN_RUNS];   /* ms: own loop, each, pairs */
} own_job;

static int take_pair(void *user, int32_t i, int32_t j)
{
    own_job *job = (own_job *)user;
    int64_t const slot = 2 * job->found++;
    job->pairs[slot] = i;
    job->pairs[slot + 1] = j;
    return 0;
}

static void own_loop(own_job *job)
{
    const lbvh *tree = &job->tree;
    int32_t place;
    for (place = 0; place < tree->n; place++) {
        lbvh_overlap o = lbvh_overlap_later(tree, place);
        int32_t const id = tree->node[tree->first_leaf + place].link;
        while (lbvh_next(&o)) (void)take_pair(job, id, o.id);
    }
}

/* Uniform boxes of one edge with about `wanted` pairs each. */
static void own_boxes(own_job *job, int32_t dim, int32_t n, double wanted)
{
    float const half = (float)(pow(2 * wanted / n, 1.0 / dim) / 4);
    float *pos = (float *)bench_alloc((size_t)n * 3 * sizeof(float));
    lbvh_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kind = LBVH_POINTS;
    desc.dim = dim;
    desc.radius = half;
    wl_uniform(n, 1, pos);
    must(lbvh_build(&job->tree, &desc, pos, 3 * sizeof(float), n));
    must(lbvh_count_pairs(&job->tree, &job->capacity));
    job->pairs = (int32_t *)bench_alloc((2 * (size_t)job->capacity + 2) * sizeof *job->pairs);
    free(pos);
}

static void own_turn(own_job *job, int run, int repeats)
{
    int way, k;
    for (way = 0; way < 3; way++) {
        double const begin = bench_thread_ms();
        for (k = 0; k < repeats; k++) {
            job->found = 0;
            if (way == 0) own_loop(job);
            else if (way == 1) must(lbvh_each_pair(&job->tree, take_pair, job));
            else must(lbvh_pairs(&job->tree, job->pairs, job->capacity, &job->found));
        }
        job->turn[way][run] = bench_thread_ms() - begin;
        bench_check(job->found == job->capacity, "own: the same pairs");
    }
}

static void own_row(int32_t dim, int32_t n, double wanted)
{
    double ratio[2][OWN_RUNS];
    own_job job;
    int run, repeats = 200000 / n + 1;
    memset(&job, 0, sizeof job);
    own_boxes(&job, dim, n, wanted);
    for (run = 0; run < OWN_RUNS; run++) {
        own_turn(&job, run, repeats);
        ratio[0][run] = job.turn[1][run] / job.turn[0][run];
        ratio[1][run] = job.turn[2][run] / job.turn[0][run];
    }
    printf("%dD %7ld %6.2f %10.1f %8.2f %8.2f\n", (int)dim, (long)n, (double)job.capacity / n,
           1e6 * bench_median(job.turn[0], OWN_RUNS) / repeats / n,
           bench_median(ratio[0], OWN_RUNS), bench_median(ratio[1], OWN_RUNS));
    lbvh_free(&job.tree);
    free(job.pairs);
}

static void bench_own(void)
{
    static const double wanted[] = {0.04, 0.13, 0.4, 1.3, 4, 12};
    int32_t dim, n;
    size_t k;
    printf("\nown: pairs, against the caller's loop over lbvh_overlap_later; interleaved, medians "
           "of ratios\n"
           "dim     n  pairs/n  loop ns/n  each_pair  pairs\n");
    for (dim = 2; dim <= 3; dim++)
        for (n = 1000; n <= 100000; n *= 10)
            for (k = 0; k < sizeof wanted / sizeof *wanted; k++) own_row(dim, n, wanted[k]);
}

/* ---- radius: the work of a grid, done by a tree ---- */

static void work_plain_within(void *user)
{
    job *j = (job *)user;
    plain_count_within(&j->plain, j->w->radius, j->counts);
}
static void work_within(void *user)
{
    job *j = (job *)user;
    must(lbvh_count_overlaps(&j->tree, &j->queries, j->counts));
}

static void work_grid(void *user)
{
    job *j = (job *)user;
    if (ugrid_count_neighbors(&j->grid, j->w->radius, UGRID_PLACES, j->counts) != UGRID_OK) exit(1);
}

static void build_grid(job *j)
{
    ugrid_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.cell = j->w->radius;
    if (ugrid_build(&j->grid, &desc, j->w->data, 0, j->w->n) != UGRID_OK) exit(1);
}

typedef struct ask { const char *name; int flags, external; } ask;

static const ask asks[] = {
    {"count: own elements, by place", LBVH_PLACES, 0},
    {"count: own elements, by id", 0, 0},
    {"count: own elements, half, by place", LBVH_PLACES | LBVH_HALF, 0},
    {"count: queries from outside, shuffled", 0, 1}
};
enum { ASKS = sizeof asks / sizeof *asks };

static lbvh_queries queries_of(const workload *w, const ask *a)
{
    lbvh_queries q;
    memset(&q, 0, sizeof q);
    q.kind = LBVH_POINTS;
    q.radius = w->radius;
    q.flags = a->flags;
    if (a->external) {
        q.data = w->data;
        q.n = w->n;
    }
    return q;
}

static void radius_rows(const workload *w)
{
    job j = new_job(w);
    double const floor_ms = (32.0 + 4) * w->n / bench_speed;
    double base;
    int64_t total;
    int k;
    j.counts = (int32_t *)bench_alloc((size_t)w->n * sizeof *j.counts);
    work_plain_build(&j);
    work_build(&j);
    build_grid(&j);
    base = bench_cpu_ms(work_plain_within, &j);
    total = bench_sum(j.counts, w->n);
    if (w->pairs) bench_check_total(total, w->pairs, "the workload is not the one described");
    show("radius", w, "count: plain tree, from the root", w->n, base, floor_ms, base, NULL);
    for (k = 0; k < ASKS; k++) {
        int64_t const expected = asks[k].external            ? total + w->n
                                 : asks[k].flags & LBVH_HALF ? total / 2
                                                             : total;
        j.queries = queries_of(w, &asks[k]);
        show("radius", w, asks[k].name, w->n, bench_cpu_ms(work_within, &j), floor_ms, base, NULL);
        bench_check_total(bench_sum(j.counts, w->n), expected, asks[k].name);
    }
    show("radius", w, "the same by a grid: ugrid_count_neighbors", w->n,
         bench_cpu_ms(work_grid, &j), floor_ms, base, NULL);
    bench_check_total(bench_sum(j.counts, w->n), total, "grid");
    j.queries = queries_of(w, &asks[0]);
    j.capacity = total;
    j.ids = (int32_t *)bench_alloc((size_t)total * sizeof *j.ids);
    j.offsets = (int64_t *)bench_alloc(((size_t)w->n + 1) * sizeof *j.offsets);
    base = floor_ms + 4.0 * (double)total / bench_speed;
    show("radius", w, "lists: lbvh_overlaps, by place", w->n, bench_cpu_ms(work_lists, &j), base, 0,
         NULL);
    bench_check_total(j.total, total, "lists");
    free_job(&j);
}

static void bench_radius(int32_t n)
{
    workload w = uniform(n);
    bench_title("radius: neighbours within the radius, about 29 each, in a tree of points",
                "plain tree");
    radius_rows(&w);
    free_workload(&w);
    w = dam(n);
    radius_rows(&w);
    free_workload(&w);
}

/* ---- nearest ---- */

enum { NEAREST = 8, SAMPLES = 20 };

typedef struct near_job {
    const lbvh *tree;
    const float *points;
    int32_t count;
    double sum;
    int32_t *ids, *found;   /* of rows */
    float *distances2;
} near_job;

static void work_nearest(void *user)
{
    near_job *j = (near_job *)user;
    int32_t ids[NEAREST], q, found;
    float distances2[NEAREST];
    j->sum = 0;
    for (q = 0; q < j->count; q++) {
        must(lbvh_nearest(j->tree, j->points + 3 * (size_t)q, NEAREST, 1e9f, NULL, NULL, ids,
                          distances2, &found));
        j->sum += (double)distances2[found - 1];
    }
}

static void work_nearest_rows(void *user)
{
    near_job *j = (near_job *)user;
    int32_t q;
    must(lbvh_nearest_rows(j->tree, j->points, 0, j->count, NEAREST, 1e9f, 0, j->ids,
                           j->distances2, j->found));
    j->sum = 0;
    for (q = 0; q < j->count; q++) j->sum += (double)j->distances2[NEAREST * (q + 1) - 1];
}

/* The distances to the nearest, by looking at all. */
static void all_nearest(const workload *w, const float *p, float best[NEAREST])
{
    int32_t i;
    int k;
    for (k = 0; k < NEAREST; k++) best[k] = 1e30f;
    for (i = 0; i < w->n; i++) {
        const float *q = w->data + 3 * (size_t)i;
        float const x = p[0] - q[0], y = p[1] - q[1], z = p[2] - q[2];
        float d2 = x * x + y * y + z * z;
        for (k = 0; k < NEAREST; k++)
            if (d2 < best[k]) { float const next = best[k]; best[k] = d2; d2 = next; }
    }
}

static void check_nearest(const workload *w, const lbvh *tree)
{
    int32_t ids[NEAREST], q, found;
    float best[NEAREST], distances2[NEAREST];
    for (q = 0; q < SAMPLES; q++) {
        const float *p = w->data + 3 * (size_t)q;
        all_nearest(w, p, best);
        must(lbvh_nearest(tree, p, NEAREST, 1e9f, NULL, NULL, ids, distances2, &found));
        bench_check(found == NEAREST && memcmp(best, distances2, sizeof best) == 0, "nearest");
    }
}

static void bench_nearest(int32_t n)
{
    workload w = uniform(n);
    job j = new_job(&w);
    near_job near;
    double shuffled;
    float *sorted = (float *)bench_alloc((size_t)n * 3 * sizeof(float));
    work_build(&j);
    memcpy(sorted, w.data, (size_t)n * 3 * sizeof(float));
    if (!wl_sort_morton(n, sorted, NULL)) exit(1);
    near.tree = &j.tree;
    near.points = w.data;
    near.count = n / 10;
    bench_title("nearest: the 8 points nearest to each of n / 10 of them (itself among them)",
                NULL);
    show("nearest", &w, "lbvh_nearest, k = 8, shuffled", near.count,
         bench_cpu_ms(work_nearest, &near), 0, 0, NULL);
    shuffled = near.sum;
    near.points = sorted;
    show("nearest", &w, "lbvh_nearest, k = 8, in Morton order", near.count,
         bench_cpu_ms(work_nearest, &near), 0, 0, NULL);
    near.points = w.data;
    near.ids = (int32_t *)bench_alloc((size_t)near.count * NEAREST * sizeof(int32_t));
    near.found = (int32_t *)bench_alloc((size_t)near.count * sizeof(int32_t));
    near.distances2 = (float *)bench_alloc((size_t)near.count * NEAREST * sizeof(float));
    show("nearest", &w, "lbvh_nearest_rows, k = 8, shuffled", near.count,
         bench_cpu_ms(work_nearest_rows, &near), 0, 0, NULL);
    bench_check(near.sum == shuffled, "the same in rows");
    work_nearest(&near);
    bench_check(near.sum == shuffled, "the same again");
    free(near.ids);
    free(near.found);
    free(near.distances2);
    check_nearest(&w, &j.tree);
    free(sorted);
    free_job(&j);
    free_workload(&w);
}

/* ---- rays ---- */

typedef struct ray_job { const job *j; const float *rays; int32_t count; float *t; } ray_job;

static void work_plain_rays(void *user)
{
    ray_job *r = (ray_job *)user;
    int32_t k;
    int a;
    for (k = 0; k < r->count; k++) {
        plain_ray ray;
        memcpy(ray.origin, r->rays + 6 * (size_t)k, sizeof ray.origin);
        memcpy(ray.direction, r->rays + 6 * (size_t)k + 3, sizeof ray.direction);
        for (a = 0; a < 3; a++) ray.inverse[a] = 1 / ray.direction[a];
        ray.t = 1e30f;
        ray.hit = -1;
        plain_trace(&r->j->plain, r->j->w->data, &ray);
        r->t[k] = ray.t;
    }
}

static float cast(const lbvh *tree, const float *corners, const float *from, const float *along)
{
    lbvh_ray ray = lbvh_ray_cast(tree, from, along, 1e30f);
    while (lbvh_next_ray(&ray)) {
        const float *c = corners + 9 * (size_t)ray.id;
        float t, u, v;
        if (lbvh_ray_triangle(from, along, c, c + 3, c + 6, &t, &u, &v) && t >= 0 && t < ray.t_max)
            ray.t_max = t;
    }
    return ray.t_max;
}

static void work_rays(void *user)
{
    ray_job *r = (ray_job *)user;
    int32_t k;
    for (k = 0; k < r->count; k++)
        r->t[k] =
            cast(&r->j->tree, r->j->w->data, r->rays + 6 * (size_t)k, r->rays + 6 * (size_t)k + 3);
}

/* The nearest triangle, by looking at all. */
static float cast_at_all(const workload *w, const float *ray)
{
    float nearest = 1e30f, t, u, v;
    int32_t i;
    for (i = 0; i < w->n; i++) {
        const float *c = w->data + 9 * (size_t)i;
        if (lbvh_ray_triangle(ray, ray + 3, c, c + 3, c + 6, &t, &u, &v) && t >= 0 && t < nearest)
            nearest = t;
    }
    return nearest;
}

/* The plain tree has another test for triangles, which may differ where a ray meets an edge:
   rarely. */
static void check_rays(const ray_job *r, const float *plain_t)
{
    int32_t k, hits = 0, other = 0;
    for (k = 0; k < r->count; k++) {
        hits += r->t[k] < 1e30f;
        other += !(fabsf(r->t[k] - plain_t[k]) <= 1e-4f * plain_t[k]);
    }
    printf("  %ld of %ld rays hit; %ld differ from the plain tree's\n", (long)hits, (long)r->count,
           (long)other);
    bench_check(hits > r->count / 20 && other <= r->count / 10000, "rays: plain tree");
    for (k = 0; k < SAMPLES; k++) {
        size_t const q = (size_t)k * (size_t)(r->count / SAMPLES);
        bench_check(r->t[q] == cast_at_all(r->j->w, r->rays + 6 * q), "rays: all triangles");
    }
}

static void ray_rows(ray_job *r, const char *name, const bench_row_s *aim)
{
    float *plain_t = (float *)bench_alloc((size_t)r->count * sizeof *plain_t), *own = r->t;
    char text[64];
    double base;
    r->t = plain_t;
    base = bench_cpu_ms(work_plain_rays, r);
    r->t = own;
    snprintf(text, sizeof text, "%s: plain tree", name);
    show("rays", r->j->w, text, r->count, base, 0, base, NULL);
    snprintf(text, sizeof text, "%s: lbvh_ray_cast, lbvh_ray_triangle", name);
    show("rays", r->j->w, text, r->count, bench_cpu_ms(work_rays, r), 0, base, aim);
    check_rays(r, plain_t);
    free(plain_t);
}

/* ---- rays in bulk, through a wide tree ---- */

typedef struct wide_job {
    ray_job binary;
    lbvh_wide wide;
    lbvh_wide_desc desc;
    lbvh_rays rays;
    lbvh_ray_hit *hits;
    uint8_t *hit;
    float *points, *distance2;
    lbvh_closest *closest;
    int32_t count;      /* of points */
} wide_job;

static void work_collapse(void *user)
{
    wide_job *w = (wide_job *)user;
    const job *j = w->binary.j;
    must(lbvh_wide_build(&w->wide, &w->desc, &j->tree, j->w->data, 0));
}

static void work_closest(void *user)
{
    wide_job *w = (wide_job *)user;
    must(lbvh_closest_hits(&w->wide, &w->rays, NULL, NULL, w->hits));
}

static void work_any(void *user)
{
    wide_job *w = (wide_job *)user;
    must(lbvh_any_hits(&w->wide, &w->rays, NULL, NULL, w->hit));
}

static void work_closest_points(void *user)
{
    wide_job *w = (wide_job *)user;
    must(lbvh_closest_points(&w->wide, w->points, 0, w->count, 1e15f, w->closest));
}

static float triangle_distance2(void *user, int32_t id, const float *p)
{
    const float *a = (const float *)user + 9 * (size_t)id;
    float q[3];
    (void)lbvh_closest_on_triangle(p, a, a + 3, a + 6, q);
    return lbvh_i_distance2(q, p);
}

static void work_nearest_triangle(void *user)
{
    wide_job *w = (wide_job *)user;
    int32_t k, id, found;
    for (k = 0; k < w->count; k++)
        must(lbvh_nearest(&w->binary.j->tree, w->points + 3 * k, 1, 1e15f, triangle_distance2,
                          w->binary.j->w->data, &id, w->distance2 + k, &found));
}

/* Points of the cube around the mesh, then those within 0.05 of its vertices. */
static void closest_rows(wide_job *w)
{
    const workload *of = w->binary.j->w;
    wl_random r = wl_seed(5);
    int32_t k, other = 0;
    int set, a;
    for (set = 0; set < 2; set++) {
        double base;
        for (k = 0; k < w->count; k++) {
            const float *vertex = of->data + 9 * (size_t)wl_below(&r, (uint32_t)of->n);
            for (a = 0; a < 3; a++)
                w->points[3 * k + a] = set ? vertex[a] + 0.1f * (wl_u(&r) - 0.5f)
                                           : 7 * wl_u(&r) - 3.5f;
        }
        base = bench_cpu_ms(work_nearest_triangle, w);
        show("wide", of, set ? "near it: lbvh_nearest" : "around it: lbvh_nearest", w->count, base,
             0, base, NULL);
        show("wide", of, set ? "near it: lbvh_closest_points" : "around it: lbvh_closest_points",
             w->count, bench_cpu_ms(work_closest_points, w), 0, base, NULL);
        for (k = 0; k < w->count; k++) other += w->closest[k].distance2 != w->distance2[k];
    }
    bench_check(other == 0, "wide: the same distances");
}

/* ---- boxes of 0.2 around the points: the ids of what overlaps each, by both trees ---- */

enum { BOX_HITS = 100000 };

static int64_t box_hits;                /* of the last of the two functions below */
static int32_t box_ids[BOX_HITS];

static void box_around(const float *p, float box[6])
{
    int a;
    for (a = 0; a < 3; a++) {
        box[a] = p[a] - 0.1f;
        box[3 + a] = p[a] + 0.1f;
    }
}

static void work_boxes_binary(void *user)
{
    wide_job *w = (wide_job *)user;
    float box[6];
    int32_t k;
    for (k = 0, box_hits = 0; k < w->count; k++) {
        lbvh_overlap o;
        int32_t found = 0;
        box_around(w->points + 3 * k, box);
        o = lbvh_overlap_box(&w->binary.j->tree, box);
        while (lbvh_next(&o)) if (found < BOX_HITS) box_ids[found++] = o.id;
        box_hits += found;
    }
}

static void work_boxes_wide(void *user)
{
    wide_job *w = (wide_job *)user;
    float box[6];
    int32_t k;
    for (k = 0, box_hits = 0; k < w->count; k++) {
        int64_t found;
        box_around(w->points + 3 * k, box);
        must(lbvh_wide_overlaps(&w->wide, box, 0, box_ids, BOX_HITS, &found));
        box_hits += found;
    }
}

static void box_rows(wide_job *w)
{
    const workload *of = w->binary.j->w;
    double const base = bench_cpu_ms(work_boxes_binary, w);
    int64_t const hits = box_hits;
    show("wide", of, "boxes near it: lbvh_overlap_box", w->count, base, 0, base, NULL);
    show("wide", of, "boxes near it: lbvh_wide_overlaps", w->count,
         bench_cpu_ms(work_boxes_wide, w), 0, base, NULL);
    printf("  %.1f triangles a box\n", (double)hits / w->count);
    bench_check(hits == box_hits && hits > 0, "wide: as many overlap");
}

/* The same hits as the walk through the binary tree. */
static void check_wide(const wide_job *w)
{
    int32_t k, other = 0;
    for (k = 0; k < w->rays.n; k++) {
        other += w->binary.t[k] != (w->hits[k].id < 0 ? 1e30f : w->hits[k].t);
        other += w->hit[k] != (w->hits[k].id >= 0);
    }
    printf("  %ld of %ld hits differ from the binary tree's\n", (long)other, (long)w->rays.n);
    bench_check(other == 0, "wide: the same hits");
}

static void wide_rows(wide_job *w, const char *name, int flags, const bench_row_s *aim)
{
    const workload *of = w->binary.j->w;
    int32_t const n = w->rays.n;
    double const base = bench_cpu_ms(work_rays, &w->binary);
    char text[64];
    w->rays.flags = flags;
    snprintf(text, sizeof text, "%s: lbvh_ray_cast, lbvh_ray_triangle", name);
    show("wide", of, text, n, base, 0, base, NULL);
    snprintf(text, sizeof text, "%s: lbvh_closest_hits", name);
    show("wide", of, text, n, bench_cpu_ms(work_closest, w), 0, base, aim);
    snprintf(text, sizeof text, "%s: lbvh_any_hits", name);
    show("wide", of, text, n, bench_cpu_ms(work_any, w), 0, base, NULL);
    check_wide(w);
}

/* Bars and peers of targets.md are rates: as times of this many rays. */
static bench_row_s rate_target(int32_t count, double bar, double plain, double peer,
                               const char *peer_name)
{
    return target(count / bar * 1e-3, count / plain * 1e-3, count / peer * 1e-3, peer_name);
}

static void bench_rays(int32_t n)
{
    int32_t const width = n < 100000 ? 128 : 1024;
    workload w = knot_for(n);
    job j = new_job(&w);
    ray_job r;
    bench_row_s const primary = rate_target(width * width, 5.4, 4.84, 5.84, "tinybvh Build");
    bench_row_s const random = rate_target(width * width, 1.9, 1.92, 1.72, "tinybvh Build");
    float *rays = (float *)bench_alloc((size_t)width * (size_t)width * 6 * sizeof *rays);
    work_plain_build(&j);
    work_build(&j);
    r.j = &j;
    r.rays = rays;
    r.count = width * width;
    r.t = (float *)bench_alloc((size_t)r.count * sizeof *r.t);
    bench_title("rays: the nearest triangle of a torus knot; M/s: rays; bars: of another mesh of "
                "as many triangles",
                "plain tree");
    wl_primary_rays(width, rays);
    ray_rows(&r, "primary", &primary);
    wl_random_rays(r.count, 8, rays);
    ray_rows(&r, "random", &random);
    free(rays);
    free(r.t);
    free_job(&j);
    free_workload(&w);
}

static void bench_wide(int32_t n)
{
    int32_t const width = n < 100000 ? 128 : 1024, count = width * width;
    workload of = knot_for(n);
    job j = new_job(&of);
    wide_job w;
    bench_row_s const primary = rate_target(count, 13.1, 0, 13.1, "tinybvh BVH8");
    bench_row_s const random = rate_target(count, 6.2, 0, 6.2, "Embree");
    float *rays = (float *)bench_alloc((size_t)count * 6 * sizeof *rays);
    double build;
    memset(&w, 0, sizeof w);
    build = bench_cpu_ms(work_build, &j);
    w.binary.j = &j;
    w.binary.rays = rays;
    w.binary.count = w.rays.n = count;
    w.rays.data = rays;
    w.rays.t_max = 1e30f;
    w.desc.copy = 1;
    w.binary.t = (float *)bench_alloc((size_t)count * sizeof *w.binary.t);
    w.hits = (lbvh_ray_hit *)bench_alloc((size_t)count * sizeof *w.hits);
    w.hit = (uint8_t *)bench_alloc((size_t)count);
    bench_title("wide: nodes of 8 children, and rays in bulk; M/s: rays", "binary tree");
    show("wide", &of, "lbvh_build", of.n, build, 0, build, NULL);
    show("wide", &of, "lbvh_wide_build, copy", of.n, bench_cpu_ms(work_collapse, &w), 0, build,
         NULL);
    printf("  nodes and ids: %.1f bytes a triangle; of the binary tree: %.1f\n",
           ((double)w.wide.nodes * sizeof(lbvh_wide_node) + 4.0 * of.n) / of.n,
           (double)lbvh_bytes(&j.tree) / of.n);
    wl_primary_rays(width, rays);
    wide_rows(&w, "primary", LBVH_SORTED, &primary);
    wl_random_rays(count, 8, rays);
    wide_rows(&w, "random", 0, &random);
    w.count = 20000;
    w.points = (float *)bench_alloc(3 * (size_t)w.count * sizeof *w.points);
    w.distance2 = (float *)bench_alloc((size_t)w.count * sizeof *w.distance2);
    w.closest = (lbvh_closest *)bench_alloc((size_t)w.count * sizeof *w.closest);
    closest_rows(&w);
    box_rows(&w);
    free(w.points);
    free(w.distance2);
    free(w.closest);
    lbvh_wide_free(&w.wide);
    free(rays);
    free(w.binary.t);
    free(w.hits);
    free(w.hit);
    free_job(&j);
    free_workload(&of);
}

/* ---- quality ---- */

static void quality_line(const char *name, const lbvh *tree)
{
    lbvh_quality q;
    must(lbvh_measure(tree, &q));
    bench_line(name);
    bench_number(q.sah, 12);
    bench_number(q.overlap, 12);
    bench_number(q.mean_depth, 12);
    printf(" %12d", (int)q.depth);
}

/* Moves every point a little, and refits. */
static void quality_after_motion(workload *w, job *j)
{
    if (w->desc.kind != LBVH_POINTS) return;
    wl_move(w->n, w->data, 0.2f * w->radius, 5);
    work_refit(j);
    quality_line("  63 bits, moved by 0.2 r, refitted", &j->tree);
    work_build(j);
    quality_line("  63 bits, moved, built again", &j->tree);
}

static void quality_lines(workload *w)
{
    job j = new_job(w);
    bench_line(w->name);
    j.desc.bits = 30;
    work_build(&j);
    quality_line("  30 bits", &j.tree);
    j.desc.bits = 63;
    work_build(&j);
    quality_line("  63 bits", &j.tree);
    quality_after_motion(w, &j);
    bench_check(lbvh_validate(&j.tree) == LBVH_OK, "quality");
    free_job(&j);
    free_workload(w);
}

/* ---- builders of triangles: what PLOC buys ---- */

/* A triangle of three corners. */
static void put_triangle(workload *w, int32_t i, const float *a, const float *b, const float *c)
{
    float *to = w->data + 9 * (size_t)i;
    memcpy(to, a, 3 * sizeof *a);
    memcpy(to + 3, b, 3 * sizeof *b);
    memcpy(to + 6, c, 3 * sizeof *c);
}

/* A block of a city: two triangles for each face. */
static void put_block(workload *w, int32_t i, const float min[3], const float max[3])
{
    static const int corner[12][3] = {{0, 1, 3}, {0, 3, 2}, {4, 5, 7}, {4, 7, 6}, {0, 1, 5},
                                      {0, 5, 4}, {2, 3, 7}, {2, 7, 6}, {0, 2, 6}, {0, 6, 4},
                                      {1, 3, 7}, {1, 7, 5}};
    float v[8][3];
    int k, a;
    for (k = 0; k < 8; k++) for (a = 0; a < 3; a++) v[k][a] = k >> a & 1 ? max[a] : min[a];
    for (k = 0; k < 12; k++)
        put_triangle(w, 12 * i + k, v[corner[k][0]], v[corner[k][1]], v[corner[k][2]]);
}

/* Houses and towers on a ground of two large triangles. */
static workload city(int32_t blocks)
{
    workload w = new_workload("city", 12 * blocks + 12, LBVH_TRIANGLES, 9);
    wl_random r = wl_seed(9);
    float const ground_min[3] = {0, 0, -0.01f}, ground_max[3] = {1, 1, 0};
    int32_t i;
    for (i = 0; i < blocks; i++) {
        float min[3], max[3];
        float const tall = wl_u(&r);
        min[0] = wl_u(&r);
        min[1] = wl_u(&r);
        min[2] = 0;
        max[0] = min[0] + 0.002f + 0.01f * wl_u(&r);
        max[1] = min[1] + 0.002f + 0.01f * wl_u(&r);
        max[2] = 0.01f + 0.3f * tall * tall;
        put_block(&w, i, min, max);
    }
    put_block(&w, blocks, ground_min, ground_max);
    must(lbvh_boxes(&w.desc, w.data, 0, w.n, w.boxes, NULL));
    return w;
}

/* Loose triangles, from large ones to some that are a thousand times smaller. */
static workload scatter(int32_t n)
{
    workload w = new_workload("scatter", n, LBVH_TRIANGLES, 9);
    wl_random r = wl_seed(10);
    int32_t i;
    int k;
    for (i = 0; i < n; i++) {
        float const size = 0.2f * expf(-7 * wl_u(&r));
        float centre[3];
        for (k = 0; k < 3; k++) centre[k] = wl_u(&r);
        for (k = 0; k < 9; k++)
            w.data[9 * (size_t)i + (size_t)k] = centre[k % 3] + size * (wl_u(&r) - 0.5f);
    }
    must(lbvh_boxes(&w.desc, w.data, 0, w.n, w.boxes, NULL));
    return w;
}

/* Random rays from and through points in the root's box. */
static float *some_rays(const lbvh *tree, int32_t count)
{
    float *rays = (float *)bench_alloc((size_t)count * 6 * sizeof *rays);
    wl_random r = wl_seed(11);
    const lbvh_node *root = &tree->node[0];
    int32_t k;
    int a;
    for (k = 0; k < count; k++)
        for (a = 0; a < 3; a++) {
            float const wide = root->max[a] - root->min[a], from = wide * wl_u(&r),
                        to = wide * wl_u(&r);
            rays[6 * (size_t)k + (size_t)a] = root->min[a] + from;
            rays[6 * (size_t)k + 3 + (size_t)a] = to - from;
        }
    return rays;
}

/* One builder: its cost, and that over the full build's; time of a build, and of a ray. */
/* Builds by MERGE and PLOC in turns; after PLOC a new top, or a pass of rotations: the least times.
 */
typedef struct turns { double merge, ploc, top, optimize; } turns;

static void keep_least(double *least, double begin)
{
    double const ms = bench_thread_ms() - begin;
    if (*least <= 0 || ms < *least) *least = ms;
}

static turns take_turns(const workload *w)
{
    job merge = new_job(w), ploc = new_job(w);
    turns t = {0, 0, 0, 0};
    int turn;
    ploc.desc.builder = LBVH_PLOC;
    for (turn = 0; turn < 25; turn++) {
        double begin = bench_thread_ms();
        work_build(&merge);
        keep_least(&t.merge, begin);
        begin = bench_thread_ms();
        work_build(&ploc);
        keep_least(&t.ploc, begin);
        begin = bench_thread_ms();
        must(lbvh_optimize(&ploc.tree, NULL));
        keep_least(&t.optimize, begin);
        work_build(&ploc);
        begin = bench_thread_ms();
        must(lbvh_split_top(&ploc.tree, NULL));
        keep_least(&t.top, begin);
    }
    free_job(&merge);
    free_job(&ploc);
    return t;
}

/* What follows a build. */
typedef enum after { NOTHING, TOP, ROTATIONS } after;

static void builder_line(const workload *w, lbvh_builder builder, after then, double ms,
                         double full)
{
    const char *const name = builder == LBVH_MERGE ? "  MERGE"
                             : then == ROTATIONS   ? "  PLOC, lbvh_optimize"
                             : then == TOP         ? "  PLOC, lbvh_split_top"
                                                   : "  PLOC";
    job j = new_job(w);
    ray_job r;
    lbvh_quality q;
    float *rays;
    j.desc.builder = builder;
    work_build(&j);
    if (then == ROTATIONS) must(lbvh_optimize(&j.tree, NULL));
    if (then == TOP) must(lbvh_split_top(&j.tree, NULL));
    r.j = &j;
    r.count = 100000;
    r.rays = rays = some_rays(&j.tree, r.count);
    r.t = (float *)bench_alloc((size_t)r.count * sizeof *r.t);
    must(lbvh_measure(&j.tree, &q));
    bench_line(name);
    bench_number(q.sah, 12);
    bench_number(q.sah / full, 12);
    bench_number(ms, 12);
    bench_number(1e6 * bench_cpu_ms(work_rays, &r) / r.count, 12);
    bench_check(lbvh_validate(&j.tree) == LBVH_OK, "builders");
    free(rays);
    free(r.t);
    free_job(&j);
}

static void builder_lines(workload *w)
{
    double const full = sah_cost(w->boxes, w->n);
    turns const t = take_turns(w);
    bench_line(w->name);
    builder_line(w, LBVH_MERGE, NOTHING, t.merge, full);
    builder_line(w, LBVH_PLOC, NOTHING, t.ploc, full);
    builder_line(w, LBVH_PLOC, TOP, t.ploc + t.top, full);
    builder_line(w, LBVH_PLOC, ROTATIONS, t.ploc + t.optimize, full);
    bench_line("  full SAH build");
    bench_number(full, 12);
    bench_number(1, 12);
    free_workload(w);
}

static void bench_builders(int32_t n)
{
    int32_t const triangles = n < 100000 ? 10000 : 100000;
    workload w = knot_for(n);
    bench_matrix("builders of triangles: cost, time of a build, and of a random ray", "tree");
    printf(" %12s %12s %12s %12s", "SAH", "of full", "build ms", "ray ns");
    builder_lines(&w);
    w = city(triangles / 12);
    builder_lines(&w);
    w = scatter(triangles);
    builder_lines(&w);
    printf("\n");
}

static void bench_quality(int32_t n)
{
    workload w = bidisperse(n);
    bench_matrix("quality: smaller is better (lbvh_quality says what the numbers mean)", "tree");
    printf(" %12s %12s %12s %12s", "SAH", "overlap", "mean depth", "depth");
    quality_lines(&w);
    w = uniform(n);
    quality_lines(&w);
    w = dam(n);
    quality_lines(&w);
    w = knot_for(n);
    quality_lines(&w);
    printf("\n");
    bench_builders(n);
}

/* ---- scaling: time and memory against n ---- */

static void scaling_rows(int32_t n)
{
    workload w = uniform(n);
    job j = new_job(&w);
    double build, count;
    j.counts = (int32_t *)bench_alloc((size_t)n * sizeof *j.counts);
    j.queries.kind = LBVH_POINTS;
    j.queries.radius = w.radius;
    j.queries.flags = LBVH_PLACES;
    build = bench_cpu_once_ms(work_build, &j);
    count = bench_cpu_once_ms(work_within, &j);
    bench_scaling_row("scaling", "uniform", "lbvh: build", n, build,
                      (double)lbvh_bytes(&j.tree) / n);
    bench_scaling_row("scaling", "uniform", "lbvh: count neighbours", n, count, 0);
    j.total = bench_sum(j.counts, n);
    if (w.pairs) bench_check_total(j.total, w.pairs, "scaling: the known total");
    j.queries.flags |= LBVH_HALF;
    work_within(&j);
    bench_check_total(j.total, 2 * bench_sum(j.counts, n), "scaling: neighbours, and pairs twice");
    free_job(&j);
    free_workload(&w);
}

/* ---- rotate: trees of moving elements over many steps: refitted, rotated, built again ---- */

typedef struct upkeep { const char *name; int optimize, build; } upkeep; /* in every k-th step */

static const upkeep upkeeps[] = {
    {"refit", 0, 0},
    {"refit, lbvh_optimize in all", 1, 0},
    {"refit, lbvh_optimize in every 8th", 8, 0},
    {"refit, lbvh_build in every 8th", 0, 8},
    {"lbvh_build in all", 0, 1}
};
enum { UPKEEPS = sizeof upkeeps / sizeof *upkeeps };

typedef struct moving {
    workload of;
    float *rest;            /* a mesh before it moves; particles: NULL */
    wl_random dice;
    int32_t steps;
    int builders;
    job job[2][UPKEEPS];    /* by builder: MERGE, PLOC */
    double ms[2][UPKEEPS], sah[2][UPKEEPS];
} moving;

/* 2.5 waves in all steps, or one turn of the drum. */
static void move_on(moving *m, int32_t step)
{
    double const part = (double)step / m->steps;
    if (m->rest) mv_bend(3 * m->of.n, m->rest, 3.5, 16 * part, m->of.data);
    else mv_turn_drum(m->of.n, (float)(6.2832 / m->steps), 0.2f * m->of.desc.radius, &m->dice,
                      m->of.data);
}

static void keep_up(job *j, const upkeep *how, int32_t step)
{
    if (how->build > 0 && step % how->build == 0) work_build(j);
    else work_refit(j);
    if (how->optimize > 0 && step % how->optimize == 0) must(lbvh_optimize(&j->tree, NULL));
}

static double sah_of(const lbvh *tree)
{
    lbvh_quality q;
    must(lbvh_measure(tree, &q));
    return q.sah;
}

/* All trees through all steps, side by side. The cost is sampled in every 25th. */
static void move_all(moving *m)
{
    int32_t step;
    int b, k;
    for (step = 0; step <= m->steps; step++) {
        move_on(m, step);
        for (b = 0; b < m->builders; b++) for (k = 0; k < UPKEEPS; k++) {
            double const begin = bench_thread_ms();
            if (step == 0) work_build(&m->job[b][k]);
            else keep_up(&m->job[b][k], &upkeeps[k], step);
            if (step > 0) m->ms[b][k] += (bench_thread_ms() - begin) / m->steps;
            if (step > 0 && step % 25 == 0)
                m->sah[b][k] += sah_of(&m->job[b][k].tree) / (m->steps / 25);
        }
    }
}

enum { RANDOM_RAYS = 10000 };

/* At the end: random rays at a mesh; pairs of particles. */
static double search_ms(job *j, const float *rays, float *t)
{
    ray_job r;
    if (j->w->desc.kind == LBVH_POINTS) return bench_cpu_ms(work_count_pairs, j);
    r.j = j;
    r.count = RANDOM_RAYS;
    r.rays = rays;
    r.t = t;
    return bench_cpu_ms(work_rays, &r);
}

static void moving_rows(moving *m)
{
    static const char *const names[] = {", MERGE", ", PLOC"};
    float *rays = some_rays(&m->job[0][0].tree, RANDOM_RAYS),
          *t = (float *)bench_alloc(RANDOM_RAYS * sizeof *t);
    int b, k;
    for (b = 0; b < m->builders; b++) {
        printf("\n%s%s", m->of.name, names[b]);
        for (k = 0; k < UPKEEPS; k++) {
            job *j = &m->job[b][k];
            printf("\n  %-36s", upkeeps[k].name);
            bench_number(m->sah[b][k], 10);
            bench_number(sah_of(&j->tree), 10);
            bench_number(m->ms[b][k], 10);
            bench_number(search_ms(j, rays, t), 10);
            bench_check(lbvh_verify(&j->tree, 100, 1, NULL) == LBVH_OK, "rotate: verify");
            free_job(j);
            fflush(stdout);
        }
    }
    free(rays);
    free(t);
}

static void move_through(moving *m)
{
    int b, k;
    m->steps = bench.quick ? 100 : 1000;
    for (b = 0; b < m->builders; b++) for (k = 0; k < UPKEEPS; k++) {
        m->job[b][k] = new_job(&m->of);
        m->job[b][k].desc.builder = b ? LBVH_PLOC : LBVH_MERGE;
    }
    move_all(m);
    moving_rows(m);
    free(m->rest);
    free_workload(&m->of);
}

/* A mesh in -3.5 .. 3.5. */
static void move_mesh(workload mesh)
{
    moving m;
    memset(&m, 0, sizeof m);
    m.of = mesh;
    m.builders = 2;
    m.rest = (float *)bench_alloc((size_t)mesh.n * 9 * sizeof *m.rest);
    memcpy(m.rest, mesh.data, (size_t)mesh.n * 9 * sizeof *m.rest);
    move_through(&m);
}

static void move_particles(int32_t n)
{
    moving m;
    memset(&m, 0, sizeof m);
    m.of = new_workload("drum", n, LBVH_POINTS, 3);
    m.of.desc.radius = 0.5f * cbrtf(3.1416f / (float)n);
    m.dice = wl_seed(12);
    m.builders = 1;
    mv_fill_drum(n, 13, m.of.data);
    move_through(&m);
}

static void bench_rotate(int32_t n)
{
    int32_t const many = n < 100000 || bench.quick ? 5000 : 50000;
    workload w = city(many / 12);
    size_t i;
    bench_matrix("rotate: 50,000 moving elements, 1,000 steps (--quick: 5,000, 100); search: "
                 "10,000 random rays, or all pairs", "tree");
    printf("     %10s %10s %10s %10s", "SAH, mean", "at end", "ms a step", "search ms");
    for (i = 0; i < 9 * (size_t)w.n; i++) w.data[i] = 7 * w.data[i] - (i % 3 < 2 ? 3.5f : 0);
    move_mesh(w);
    move_mesh(many < 50000 ? knot(144, 18) : knot(448, 56));
    move_particles(many);
    printf("\n");
}

/* ---- threads: desc.parallel with a pool of them (BENCH_THREADS, 2) against serial calls ---- */

/* Lists of all pairs, with some room to spare. */
static void threads_room(job *j)
{
    work_count_pairs(j);
    j->capacity = j->total + j->total / 8;
    j->ids = (int32_t *)bench_alloc((size_t)j->capacity * 2 * sizeof(int32_t));
    j->counts = (int32_t *)bench_alloc((size_t)j->tree.n * sizeof(int32_t));
    j->queries.flags = LBVH_PLACES;
}

/* A refit, which makes rotations start from the same boxes, and a pass of them. */
static void work_rotate(void *user)
{
    job *j = (job *)user;
    must(lbvh_refit(&j->tree, j->w->data, 0));
    must(lbvh_optimize(&j->tree, NULL));
}

/* A world of boxes, of which every `of`-th leaves its stored box in a step. */
typedef struct moving_world {
    lbvh_world world;
    lbvh_id *id;
    float *box;
    int32_t n, of, step;
} moving_world;

static void begin_moving_world(moving_world *m, int32_t n, lbvh_parallel parallel)
{
    float const edge = cbrtf(1.0f / (float)n);      /* two or three pairs a box */
    wl_random dice = wl_seed(3);
    lbvh_world_desc desc;
    int32_t i;
    int a;
    memset(m, 0, sizeof *m);
    memset(&desc, 0, sizeof desc);
    desc.margin = 0.05f * edge;
    desc.parallel = parallel;
    m->n = n;
    m->id = (lbvh_id *)bench_alloc((size_t)n * sizeof *m->id);
    m->box = (float *)bench_alloc((size_t)n * 6 * sizeof *m->box);
    must(lbvh_world_begin(&m->world, &desc));
    for (i = 0; i < n; i++) {
        float *const box = m->box + 6 * (size_t)i;
        for (a = 0; a < 3; a++) box[a + 3] = (box[a] = wl_u(&dice)) + 0.7f * edge;
        must(lbvh_world_insert(&m->world, box, NULL, LBVH_MOVING, 0, &m->id[i]));
    }
    must(lbvh_world_update(&m->world));
}

static void work_world(void *user)
{
    moving_world *m = (moving_world *)user;
    float const by = (m->step++ % 2 ? -0.3f : 0.3f) * cbrtf(1.0f / (float)m->n);
    int32_t i;
    for (i = 0; i < m->n; i += m->of) {
        float *const box = m->box + 6 * (size_t)i;
        box[i % 3] += by;
        box[i % 3 + 3] += by;
        must(lbvh_world_move(&m->world, m->id[i], box, NULL));
    }
    must(lbvh_world_update(&m->world));
}

static void threads_worlds(int32_t n, lbvh_parallel parallel)
{
    lbvh_parallel none;
    moving_world alone, together;
    memset(&none, 0, sizeof none);
    begin_moving_world(&alone, n, none);
    begin_moving_world(&together, n, parallel);
    alone.of = together.of = 1;
    threads_row("boxes", "world, all moved", n, work_world, &alone, &together);
    alone.of = together.of = 10;
    threads_row("boxes", "world, a tenth moved", n, work_world, &alone, &together);
    bench_check(alone.world.pairs == together.world.pairs &&
                    memcmp(alone.world.pair, together.world.pair,
                           (size_t)alone.world.pairs * sizeof(lbvh_pair)) == 0,
                "threads: the same pairs of a world");
    lbvh_world_free(&alone.world);
    lbvh_world_free(&together.world);
    free(alone.id);
    free(alone.box);
    free(together.id);
    free(together.box);
}

/* Wide trees, rays and closest points. */
static void threads_wide(int32_t n, lbvh_parallel parallel)
{
    workload of = knot_for(n);
    job j = new_job(&of);
    wide_job alone, together;
    int32_t const count = 1 << 18;
    float *rays = (float *)bench_alloc(6 * (size_t)count * sizeof *rays);
    work_build(&j);
    wl_random_rays(count, 8, rays);
    memset(&alone, 0, sizeof alone);
    alone.binary.j = &j;
    alone.desc.copy = 1;
    alone.rays.data = alone.points = rays;
    alone.rays.n = count;
    alone.count = count;
    together = alone;
    together.desc.parallel = parallel;
    alone.hits = (lbvh_ray_hit *)bench_alloc((size_t)count * sizeof *alone.hits);
    together.hits = (lbvh_ray_hit *)bench_alloc((size_t)count * sizeof *alone.hits);
    alone.closest = (lbvh_closest *)bench_alloc((size_t)count * sizeof *alone.closest);
    together.closest = (lbvh_closest *)bench_alloc((size_t)count * sizeof *alone.closest);
    threads_row("knot", "wide tree, copy", of.n, work_collapse, &alone, &together);
    threads_row("knot", "closest hits, random", count, work_closest, &alone, &together);
    threads_row("knot", "closest points", count, work_closest_points, &alone, &together);
    bench_check(memcmp(alone.hits, together.hits, (size_t)count * sizeof *alone.hits) == 0 &&
                memcmp(alone.closest, together.closest,
                       (size_t)count * sizeof *alone.closest) == 0, "threads: the same answers");
    lbvh_wide_free(&alone.wide);
    lbvh_wide_free(&together.wide);
    free(alone.hits);
    free(together.hits);
    free(alone.closest);
    free(together.closest);
    free(rays);
    free_job(&j);
    free_workload(&of);
}

static void bench_threads(int32_t n)
{
    workload w = bidisperse(n);
    job alone = new_job(&w), together = new_job(&w);
    threads_begin();
    together.desc.parallel.run = parallel_threads;
    together.desc.parallel.user = &threads.pool;
    together.desc.parallel.tasks = threads.tasks;
    alone.desc.builder = together.desc.builder = LBVH_PLOC;
    threads_row(w.name, "build, PLOC", n, work_build, &alone, &together);
    threads_row(w.name, "refit and rotations", n, work_rotate, &alone, &together);
    threads_worlds(n / 10, together.desc.parallel);
    threads_wide(n, together.desc.parallel);
    alone.desc.builder = together.desc.builder = LBVH_MERGE;
    threads_row(w.name, "build", n, work_build, &alone, &together);
    threads_row(w.name, "refit", n, work_refit, &alone, &together);
    threads_row(w.name, "count pairs", n, work_count_pairs, &alone, &together);
    threads_room(&alone);
    threads_room(&together);
    threads_row(w.name, "pairs", n, work_pairs, &alone, &together);
    threads_row(w.name, "count overlaps, by place", n, work_within, &alone, &together);
    bench_check(alone.total == together.total, "threads: the same pairs");
    bench_check(memcmp(alone.tree.node, together.tree.node,
                       (size_t)(2 * alone.tree.n - 1) * sizeof(lbvh_node)) == 0,
                "threads: the same tree");
    threads_end();
    free_job(&alone);
    free_job(&together);
    free_workload(&w);
}

/* ---- overhead: the hook where it brings nothing ---- */

static void overhead_of(int32_t n, int32_t tasks)
{
    workload w = bidisperse(n);
    job alone = new_job(&w), hooked = new_job(&w);
    hooked.desc.parallel.run = parallel_threads;
    hooked.desc.parallel.user = &threads.pool;
    hooked.desc.parallel.tasks = tasks;
    overhead_row(w.name, "build", n, work_build, &alone, &hooked);
    overhead_row(w.name, "refit", n, work_refit, &alone, &hooked);
    overhead_row(w.name, "count pairs", n, work_count_pairs, &alone, &hooked);
    threads_room(&alone);
    threads_room(&hooked);
    overhead_row(w.name, "pairs", n, work_pairs, &alone, &hooked);
    overhead_row(w.name, "count overlaps, by place", n, work_within, &alone, &hooked);
    bench_check(alone.total == hooked.total, "overhead: the same pairs");
    free_job(&alone);
    free_job(&hooked);
    free_workload(&w);
}

static void bench_overhead(int32_t n)
{
    overhead_begin();
    overhead_of(n, 1);
    overhead_of(OVERHEAD_SMALL, threads.tasks);
    overhead_end();
}

/* ---- defaults: nothing set, beside the settings that the manual offers ---- */

enum { DEFAULT_TREES = 4 };
static const way default_trees[DEFAULT_TREES] = {{"default", (lbvh_builder)0, 0},
                                                 {"30 bits", LBVH_MERGE, 30},
                                                 {"SPLIT", LBVH_SPLIT, 63},
                                                 {"PLOC", LBVH_PLOC, 63}};

/* Bounds that are given, in the rows that have them. */
enum { DEFAULT_TRIES = DEFAULT_TREES + 1 };

static void work_build_and_count(void *user) { work_build(user); work_count_pairs(user); }
static void work_build_and_within(void *user) { work_build(user); work_within(user); }

/* A row: the call, with a tree for each setting. */
static void default_tree_row(const workload *w, job jobs[DEFAULT_TRIES], int tries,
                             const char *call, void (*work)(void *))
{
    bench_setting settings[DEFAULT_TRIES];
    int k;
    for (k = 0; k < tries; k++) {
        settings[k].name = k < DEFAULT_TREES ? default_trees[k].name : "bounds given";
        settings[k].work = work;
        settings[k].job = &jobs[k];
    }
    bench_defaults_row(w->name, w->n, call, settings, tries, bench_turn_ms, "");
}

/* edge: of the cube that holds all but a few elements; 0: all. */
static void default_tree_rows(workload *w, float edge)
{
    job jobs[DEFAULT_TRIES];
    int const tries = edge > 0 ? DEFAULT_TRIES : DEFAULT_TREES;
    int k, a;
    for (k = 0; k < tries; k++) {
        jobs[k] = new_job(w);
        if (k < DEFAULT_TREES) {
            jobs[k].desc.builder = default_trees[k].builder;
            jobs[k].desc.bits = default_trees[k].bits;
        } else
            for (a = 0; a < 3; a++) jobs[k].desc.max[a] = edge;
        jobs[k].queries = queries_of(w, &asks[0]);
        jobs[k].counts = (int32_t *)bench_alloc((size_t)w->n * sizeof *jobs[k].counts);
        work_build(&jobs[k]);
    }
    default_tree_row(w, jobs, tries, "build", work_build);
    if (w->desc.kind == LBVH_POINTS) {
        default_tree_row(w, jobs, tries, "count within", work_within);
        default_tree_row(w, jobs, tries, "build + count within", work_build_and_within);
    } else {
        default_tree_row(w, jobs, tries, "count pairs", work_count_pairs);
        default_tree_row(w, jobs, tries, "build + count pairs", work_build_and_count);
    }
    for (k = 0; k < tries; k++) free_job(&jobs[k]);
    free_workload(w);
}

/* ---- the same of hard inputs ---- */

/* The mixture of two sizes; the last box is far away, or (half_space) half of the space. */
static workload far_box(int32_t n, int half_space)
{
    workload w = bidisperse(n);
    float *const last = w.data + 6 * (size_t)(w.n - 1);
    int a;
    w.name = half_space ? "a half space" : "a box is far";
    for (a = 0; a < 3; a++) {
        last[a] = half_space ? -1e9f : 1e6f;
        last[3 + a] = half_space ? 1e9f : 1e6f;
    }
    if (half_space) last[4] = -1;
    return w;
}

/* Points of which the last is far away, or one of 16 is at the middle. */
static workload worst_points(int32_t n, int coincident)
{
    workload w = uniform(n);
    size_t i;
    w.name = coincident ? "coincident" : "a point is far";
    w.pairs = 0;
    if (!coincident) w.data[3 * (size_t)n - 1] = 1e6f;
    else
        for (i = 0; i < (size_t)n; i += 16)
            w.data[3 * i] = w.data[3 * i + 1] = w.data[3 * i + 2] = 0.5f;
    point_boxes(&w);
    return w;
}

/* Thin triangles in all directions, of length 0.1 in a cube. */
static workload slivers(int32_t n)
{
    workload w = new_workload("slivers", n, LBVH_TRIANGLES, 9);
    wl_random r = wl_seed(11);
    int32_t i;
    int a;
    for (i = 0; i < n; i++)
        for (a = 0; a < 3; a++) {
            float *const t = w.data + 9 * (size_t)i;
            float const reach = 0.1f * (wl_u(&r) - 0.5f);
            t[a] = wl_u(&r);
            t[3 + a] = t[a] + 0.5f * reach + 1e-5f * wl_u(&r);
            t[6 + a] = t[a] + reach;
        }
    must(lbvh_boxes(&w.desc, w.data, 0, w.n, w.boxes, NULL));
    return w;
}

/* Points near the triangles, and what is nearest to each: a wide tree over each tree. */
static void work_build_and_closest(void *user)
{
    wide_job *w = (wide_job *)user;
    work_build((job *)(uintptr_t)w->binary.j);
    work_collapse(w);
    work_closest_points(w);
}

static void default_closest_row(workload *of)
{
    job jobs[DEFAULT_TREES];
    wide_job wide[DEFAULT_TREES];
    bench_setting settings[DEFAULT_TREES];
    float *points = (float *)bench_alloc(3 * (size_t)of->n * sizeof *points);
    lbvh_closest *closest = (lbvh_closest *)bench_alloc((size_t)of->n * sizeof *closest);
    int k;
    wl_uniform(of->n, 12, points);
    for (k = 0; k < DEFAULT_TREES; k++) {
        jobs[k] = new_job(of);
        jobs[k].desc.builder = default_trees[k].builder;
        jobs[k].desc.bits = default_trees[k].bits;
        memset(&wide[k], 0, sizeof wide[k]);
        wide[k].binary.j = &jobs[k];
        wide[k].desc.copy = 1;
        wide[k].points = points;
        wide[k].count = of->n;
        wide[k].closest = closest;
        settings[k].name = default_trees[k].name;
        settings[k].work = work_build_and_closest;
        settings[k].job = &wide[k];
        work_build_and_closest(&wide[k]);
    }
    bench_defaults_row(of->name, of->n, "build + closest points", settings, DEFAULT_TREES,
                       bench_turn_ms, "");
    for (k = 0; k < DEFAULT_TREES; k++) {
        lbvh_wide_free(&wide[k].wide);
        free_job(&jobs[k]);
    }
    free(points);
    free(closest);
}

static void bench_defaults(int32_t n)
{
    int32_t const few = n > 100000 ? 100000 : n;
    workload w = bidisperse(n);
    bench_defaults_title("defaults: trees with nothing set");
    default_tree_rows(&w, 0);
    w = uniform(n);
    default_tree_rows(&w, 0);
    w = dam(n);
    default_tree_rows(&w, 0);
    w = knot_for(n);
    default_tree_rows(&w, 0);
    w = far_box(few, 0);
    default_tree_rows(&w, WL_EDGE * cbrtf((float)few / WL_SMALL));
    w = far_box(few, 1);
    default_tree_rows(&w, WL_EDGE * cbrtf((float)few / WL_SMALL));
    w = worst_points(few, 0);
    default_tree_rows(&w, 1);
    w = worst_points(few > 20000 ? 20000 : few, 1);
    default_tree_rows(&w, 1);
    w = slivers(few / 5);
    default_closest_row(&w);
    default_tree_rows(&w, 0);
    bench_defaults_end();
    worst_worlds(few > 20000 ? 20000 : few);
}

/* ---- all of it ---- */

int main(int argc, char **argv)
{
    int32_t n;
    bench_start(argc, argv, "bench_lbvh", "build,pairs,own,radius,nearest,rays,wide,quality,"
                                         "rotate,threads,overhead,scaling,defaults");
    n = bench.n ? bench.n : bench.quick ? 100000 : 1000000;
    give_memory_back();
    bench_measure_copy();
    printf("lbvh.h %d on one CPU core: thread-CPU time, median of %d runs (3 of what takes over a "
           "second) after warm-up; ",
           lbvh_version(), bench.runs);
    printf("compiler %s, %s instructions; ", __VERSION__, bench_instructions());
    bench_print_date();
    bench_print_copy();
    if (bench_wants("build")) bench_builds(n);
    if (bench_wants("pairs")) bench_pairs(n);
    if (bench_wants("own")) bench_own();
    if (bench_wants("radius")) bench_radius(n);
    if (bench_wants("nearest")) bench_nearest(n);
    if (bench_wants("rays")) bench_rays(n);
    if (bench_wants("wide")) bench_wide(n);
    if (bench_wants("quality")) bench_quality(n);
    if (bench_named("rotate")) bench_rotate(n);
    if (bench_named("threads")) bench_threads(n);
    if (bench_named("overhead")) bench_overhead(n);
    if (bench_named("defaults")) bench_defaults(n);
    if (bench_named("scaling"))
        bench_scaling_rows(
            "scaling: time against n, evenly spread points; bytes that the header holds",
            scaling_rows);
    return bench_end();
}
