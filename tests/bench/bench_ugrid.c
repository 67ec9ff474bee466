/* bench_ugrid.c - how fast is ugrid.h on one core of this machine? README.md in this folder
   explains the tables.
   SPDX-License-Identifier: MIT OR Unlicense

       make bench                                       all of it, about three minutes
       build/bench/bench_ugrid --only search --quick
       groups: search sparse insert walks sums; only when named:
       threads, overhead, scaling, order, defaults */

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#endif

#define UGRID_STATIC
#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#include "tests/bench/bench.h"
#include "tests/bench/curves.h"
#include "tests/bench/defaults.h"
#include "tests/bench/plain_grid.h"
#include "tests/bench/threads.h"
#include "tests/common/workloads.h"

/* Everything that is timed gets one of these. */
typedef struct job {
    const float *pos;
    int32_t n;
    float radius;
    int flags;          /* of the search */
    ugrid_desc desc;
    ugrid grid;
    plain_grid plain;
    int strips;         /* plain grid: 9 strips, else 27 cells */
    int32_t *counts, *ids;
    int64_t *offsets, capacity, total;
    const float *values;
    float *sums;
    int32_t width;
} job;

static const char *const method_names[] = {"AUTO", "COUNT", "SORT", "FIXED", "LIST", "LIST_PACKED"};
static const char *const walk_names[] = { "AUTO", "CELLS", "STRIPS", "MODULAR", "HYBRID" };

static void must(ugrid_result result)
{
    if (result == UGRID_OK) return;
    printf("%s\n", ugrid_result_text(result));
    exit(1);
}

/* Positions in, records and ids out, one start per cell. */
static double floor_build(int32_t n, int32_t cells)
{
    return ((12.0 + 16 + 4) * n + 4.0 * cells) / bench_speed;
}

/* Records in, one count per particle out. */
static double floor_count(int32_t n) { return (16.0 + 4) * n / bench_speed; }

/* Build, records in, offsets and entries out. */
static double floor_list(int32_t n, int32_t cells, int64_t entries)
{
    return floor_build(n, cells) + ((16.0 + 8) * n + 4.0 * (double)entries) / bench_speed;
}

/* ---- search: the rows of the targets ---- */

typedef struct workload {
    const char *name;
    int32_t n;
    float *pos, radius;
    float max[3];
    int64_t pairs;      /* ordered; 0: not known, the plain grid's total counts */
} workload;

/* Totals: pairs with d2 <= r2 in float, rounded after every operation. (targets.md tests d2 < r2
   with fused operations, which gives 42 pairs fewer at 10M, 3 fewer in the dam, and the same at
   1M.) */
static workload uniform(int32_t n)
{
    workload w = { "uniform", n, NULL, 0, { 1, 1, 1 }, 0 };
    if (n == 1000000) { w.name = "uniform-1M"; w.pairs = 29352150; }
    if (n == 10000000) { w.name = "uniform-10M"; w.pairs = 296942212; }
    w.pos = (float *)bench_alloc(12 * (size_t)n);
    w.radius = wl_radius(n, 30);
    wl_uniform(n, n == 10000000 ? 2 : 1, w.pos);
    return w;
}

static workload dam(int32_t n)
{
    workload w = { "dam", n, NULL, 0.005577566f, { 0.125f, 1, 1 }, 0 };
    if (n == 1000000) { w.name = "dam-1M"; w.pairs = 29997360; }
    else w.radius *= cbrtf(1e6f / (float)n);
    w.pos = (float *)bench_alloc(12 * (size_t)n);
    wl_dam(n, 3, w.pos);
    return w;
}

static ugrid_desc desc_of(const workload *w, ugrid_method method)
{
    ugrid_desc desc;
    memset(&desc, 0, sizeof desc);
    memcpy(desc.max, w->max, sizeof desc.max);
    desc.cell = w->radius;
    desc.method = method;
    return desc;
}

static void work_plain_build(void *user) { job *j = (job *)user; plain_build(&j->plain, j->pos); }
static void work_plain_count(void *user)
{
    job *j = (job *)user;
    plain_count(&j->plain, j->strips, j->counts);
}

static void work_plain_list(void *user)
{
    job *j = (job *)user;
    plain_build(&j->plain, j->pos);
    plain_list(&j->plain, j->flags & UGRID_HALF, j->offsets, j->ids);
}

static void work_plain_csr(void *user)
{
    job *j = (job *)user;
    plain_build(&j->plain, j->pos);
    plain_csr(&j->plain, j->counts, j->offsets, j->ids);
}

static void work_build(void *user)
{
    job *j = (job *)user;
    must(ugrid_build(&j->grid, &j->desc, j->pos, 0, j->n));
}
static void work_count(void *user)
{
    job *j = (job *)user;
    must(ugrid_count_neighbors(&j->grid, j->radius, j->flags, j->counts));
}
static void work_pairs(void *user)
{
    job *j = (job *)user;
    must(ugrid_count_pairs(&j->grid, j->radius, &j->total));
}

static void work_list(void *user)
{
    job *j = (job *)user;
    int64_t needed;
    work_build(j);
    must(ugrid_neighbors(&j->grid, j->radius, j->flags, j->offsets, j->ids, j->capacity, &needed));
}

/* What targets.md, "One CPU core", has for 1M particles: AMD EPYC Zen 4, -O3 -march=x86-64-v2. */
typedef struct target { double bar_ms, plain_ms, peer_ms; const char *peer; } target;

#if defined(__clang__) /* targets.md has two bars where the compilers differ */
#define BAR(gcc, clang) (clang)
#else
#define BAR(gcc, clang) (gcc)
#endif

static const target no_target    = { 0, 0, 0, "" };
static const target build_target = { 18, 20.7, 86, "CompactNSearch, sorted input" };
static const target count_target = { BAR(85, 68), 101, 1110, "nanoflann, sorted input" };
static const target list_target  = { BAR(280, 150), 391, 1328, "nanoflann, sorted input" };
static const target half_target  = { 170, 252, 683, "LAMMPS, sorted input" };
static const target csr_target   = { 450, 725, 1328, "nanoflann, sorted input" };
static const target dam_target   = { BAR(290, 190), 371, 978, "nanoflann, sorted input" };

static void show(const workload *w, const char *method, double ms, double floor_ms, double base_ms,
                 const target *aim)
{
    bench_row_s row;
    memset(&row, 0, sizeof row);
    row.group = "search";
    row.workload = w->name;
    row.method = method;
    row.n = w->n;
    row.ms = ms;
    row.floor_ms = floor_ms;
    row.base_ms = base_ms;
    if (w->n == 1000000 && aim->bar_ms > 0) {
        row.bar_ms = aim->bar_ms;
        row.bar_ratio = aim->bar_ms / aim->plain_ms;
        row.peer_ms = aim->peer_ms;
        row.peer = aim->peer;
    }
    bench_row(&row);
}

static void bench_builds(const workload *w, job *j)
{
    double const base = bench_cpu_ms(work_plain_build, j);
    double const floor_ms = floor_build(w->n, j->plain.cell_count);
    ugrid_method method;
    show(w, "build: plain grid", base, floor_ms, base, &no_target);
    for (method = UGRID_COUNT; method <= UGRID_SORT; method = (ugrid_method)(method + 1)) {
        char name[64];
        double ms;
        j->desc.method = method;
        ms = bench_cpu_ms(work_build, j);
        snprintf(name, sizeof name, "build: %s, positions reordered", method_names[method]);
        show(w, name, ms, floor_ms, base, &build_target);
        bench_check(ugrid_validate(&j->grid) == UGRID_OK, name);
    }
    j->desc.method = UGRID_AUTO;
}

static void bench_counts(const workload *w, job *j, int64_t total)
{
    double const floor_ms = floor_count(w->n);
    double base, ms;
    j->strips = 0;
    ms = bench_cpu_ms(work_plain_count, j);
    j->strips = 1;
    base = bench_cpu_ms(work_plain_count, j);
    show(w, "count: plain grid, 27 cells", ms, floor_ms, base, &no_target);
    show(w, "count: plain grid, 9 strips", base, floor_ms, base, &no_target);
    work_build(j);
    j->flags = UGRID_PLACES;
    ms = bench_cpu_ms(work_count, j);
    show(w, "count: ugrid_count_neighbors", ms, floor_ms, base, &count_target);
    bench_check_total(bench_sum(j->counts, w->n), total, "count");
    ms = bench_cpu_ms(work_pairs, j);
    show(w, "count: ugrid_count_pairs, each once", ms, floor_ms, base, &no_target);
    bench_check_total(2 * j->total, total, "pairs");
}

/* One kind of list, plain and ours, against each other. */
static void bench_list(const workload *w, job *j, const char *name, int flags, int64_t total,
                       const target *aim)
{
    char text[64];
    double base, ms;
    int64_t const entries = flags & UGRID_HALF ? total / 2 : total;
    double const floor_ms = floor_list(w->n, j->plain.cell_count, entries);
    bench_facts expected, got;
    j->flags = flags;
    base = bench_cpu_ms(flags & UGRID_PLACES ? work_plain_list : work_plain_csr, j);
    expected = bench_facts_of(j->offsets, j->ids, w->n);
    snprintf(text, sizeof text, "%s: plain grid", name);
    show(w, text, base, floor_ms, base, &no_target);
    ms = bench_cpu_ms(work_list, j);
    got = bench_facts_of(j->offsets, j->ids, w->n);
    snprintf(text, sizeof text, "%s: ugrid (%s)", name, method_names[j->grid.desc.method]);
    show(w, text, ms, floor_ms, base, aim);
    bench_check_total(got.total, entries, text);
    bench_check(got.total == expected.total && got.sum == expected.sum, text);
}

static job search_job(const workload *w)
{
    job j;
    memset(&j, 0, sizeof j);
    j.pos = w->pos;
    j.n = w->n;
    j.radius = w->radius;
    j.desc = desc_of(w, UGRID_AUTO);
    j.plain = plain_make(w->max, w->radius, w->n);
    j.counts = (int32_t *)bench_alloc((size_t)w->n * sizeof *j.counts);
    j.offsets = (int64_t *)bench_alloc(((size_t)w->n + 1) * sizeof *j.offsets);
    return j;
}

static void free_job(job *j)
{
    plain_free(&j->plain);
    ugrid_free(&j->grid);
    free(j->counts);
    free(j->offsets);
    free(j->ids);
}

/* The plain grid's total, which the known one confirms. */
static int64_t reference_total(const workload *w, job *j)
{
    int64_t total;
    plain_build(&j->plain, w->pos);
    plain_count(&j->plain, 1, j->counts);
    total = bench_sum(j->counts, w->n);
    if (w->pairs) bench_check_total(total, w->pairs, "the workload is not the one described");
    j->capacity = total;
    j->ids = (int32_t *)bench_alloc((size_t)total * sizeof *j->ids);
    return total;
}

/* The same points in hashed cells. */
static void bench_hashed(const workload *w, job *j, int64_t total)
{
    double ms, base;
    work_build(j);
    base = bench_cpu_ms(work_pairs, j);
    j->desc.unbounded = 1;
    work_build(j);
    ms = bench_cpu_ms(work_pairs, j);
    bench_check_total(2 * j->total, total, "pairs of hashed cells");
    show(w, "count pairs: hashed cells, over those of a box", ms, 0, base, &no_target);
    bench_list(w, j, "hashed cells: build + CSR", 0, total, &no_target);
}

static void bench_search(int32_t n)
{
    workload w = uniform(n);
    job j = search_job(&w);
    int64_t total = reference_total(&w, &j);
    bench_title("search: neighbours within the radius (about 29 each); bars and peers: on the AMD "
                "Zen 4 of targets.md",
                "plain grid");
    bench_builds(&w, &j);
    bench_counts(&w, &j, total);
    bench_list(&w, &j, "build + full list, cell order", UGRID_PLACES, total, &list_target);
    bench_list(&w, &j, "build + half list, cell order", UGRID_PLACES | UGRID_HALF, total,
               &half_target);
    bench_list(&w, &j, "build + CSR by input index", 0, total, &csr_target);
    bench_hashed(&w, &j, total);
    free_job(&j);
    free(w.pos);

    w = dam(n);
    j = search_job(&w);
    total = reference_total(&w, &j);
    bench_list(&w, &j, "build + full list, cell order", UGRID_PLACES, total, &dam_target);
    free_job(&j);
    free(w.pos);
}

/* ---- sparse: the cell, where a search meets few neighbours ---- */

static void work_build_and_pairs(void *user) { work_build(user); work_pairs(user); }

/* 2D, `density` pairs a point: cell = 0 against the base, cell = radius. */
static void bench_sparse_row(job *j, double density)
{
    double const radius = sqrt(2 * density / (3.14159265 * j->n));
    int64_t total = 0;
    int row;
    double base = 0;
    char name[64];
    snprintf(name, sizeof name, "2D, %g pairs a point", density);
    j->radius = (ugrid_real)radius;
    for (row = 0; row < 2; row++) {
        bench_row_s out;
        double ms;
        j->desc.cell = row ? 0 : j->radius;
        ms = bench_cpu_ms(work_build_and_pairs, j);
        if (row) bench_check_total(j->total, total, name);
        else base = ms;
        memset(&out, 0, sizeof out);
        out.group = "sparse";
        out.workload = name;
        out.method = row ? "build + pairs: cell = 0" : "build + pairs: cell = radius";
        out.n = j->n;
        out.ms = ms;
        out.base_ms = base;
        bench_row(&out);
        total = j->total;
    }
}

static void bench_sparse(int32_t n)
{
    double const densities[4] = { 0.01, 0.1, 1, 5 };
    float *pos = (float *)bench_alloc(2 * (size_t)n * sizeof *pos);
    uint32_t dice = 1;
    job j;
    int k;
    memset(&j, 0, sizeof j);
    for (k = 0; k < 2 * n; k++) {
        dice = dice * 1664525u + 1013904223u;
        pos[k] = (float)(dice >> 8) / 16777216.0f;
    }
    j.pos = pos;
    j.n = n;
    j.desc.dim = 2;
    bench_title("sparse: the edge of a cell, where a search meets few neighbours", "cell = radius");
    for (k = 0; k < 4; k++) bench_sparse_row(&j, densities[k]);
    ugrid_free(&j.grid);
    free(pos);
}

/* ---- insert: source 000, Figure 3 ---- */

typedef struct way {
    const char *name;
    ugrid_method method;
    ugrid_placement placement;
    ugrid_slot_layout layout;
    int no_records;
} way;

static const way ways[] = {
    { "COUNT",                  UGRID_COUNT,       UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0 },
    { "COUNT, ids only",        UGRID_COUNT,       UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 1 },
    { "SORT",                   UGRID_SORT,        UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0 },
    { "SORT, ids only",         UGRID_SORT,        UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 1 },
    { "FIXED, slots by column", UGRID_FIXED,       UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0 },
    { "FIXED, slots by row",    UGRID_FIXED,       UGRID_LOOSE, UGRID_SLOTS_BY_ROW,    0 },
    { "LIST, loose",            UGRID_LIST,        UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0 },
    { "LIST, tight (8 cells)",  UGRID_LIST,        UGRID_TIGHT, UGRID_SLOTS_BY_COLUMN, 0 },
    { "LIST_PACKED",            UGRID_LIST_PACKED, UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0 }
};

static const int32_t sizes[] = { 2000, 8000, 32000, 128000, 512000, 1000000, 10000000 };

/* The unit cube in `cells` cells per axis. */
static ugrid_desc cube_desc(const way *how, int32_t cells)
{
    ugrid_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.max[0] = desc.max[1] = desc.max[2] = (float)cells; /* cells of edge 1: exact */
    desc.cell = 1;
    desc.method = how->method;
    desc.placement = how->placement;
    desc.slot_layout = how->layout;
    desc.no_records = how->no_records;
    return desc;
}

/* FIXED is told the slots it needs, as a program would find them out: by failing once. */
static void fit_slots(job *j)
{
    if (j->desc.method != UGRID_FIXED) return;
    j->desc.slots = 1;
    if (ugrid_build(&j->grid, &j->desc, j->pos, 0, j->n) == UGRID_CELL_FULL)
        j->desc.slots = j->grid.needed_slots;
}

static void insert_cell(job *j, const way *how)
{
    bench_row_s row;
    memset(&row, 0, sizeof row);
    j->desc = cube_desc(how, 64);
    fit_slots(j);
    row.group = "insert";
    row.workload = "left-half";
    row.method = how->name;
    row.n = j->n;
    row.ms = bench_cpu_ms(work_build, j);
    bench_cell(&row, bench_rate(row.n, row.ms));
    bench_check(ugrid_validate(&j->grid) == UGRID_OK, how->name);
    ugrid_free(&j->grid);
}

static void bench_insert(int32_t most)
{
    size_t const count = sizeof sizes / sizeof *sizes;
    float *pos = (float *)bench_alloc(12 * (size_t)most);
    size_t s, k;
    int32_t i;
    job j;
    memset(&j, 0, sizeof j);
    wl_uniform(most, 5, pos);
    /* the left half of 64 x 64 x 64 cells, as the wave of source 000 begins */
    for (i = 0; i < most; i++) {
        pos[3 * i] *= 32;
        pos[3 * i + 1] *= 64;
        pos[3 * i + 2] *= 64;
    }
    bench_matrix("insert: M particles/s by number of particles; 64 x 64 x 64 cells, left half "
                 "filled, shuffled (000, Figure 3)",
                 "method");
    for (s = 0; s < count && sizes[s] <= most; s++) printf(" %9d", (int)sizes[s]);
    for (k = 0; k < sizeof ways / sizeof *ways; k++) {
        bench_line(ways[k].name);
        for (s = 0; s < count && sizes[s] <= most; s++) {
            j.pos = pos;
            j.n = sizes[s];
            insert_cell(&j, &ways[k]);
        }
    }
    printf("\n");
    free(pos);
}

/* ---- walks: source 001 ---- */

static void work_walk(void *user)
{
    job *j = (job *)user;
    const ugrid *grid = &j->grid;
    float const limit = j->radius * j->radius;
    int32_t place;
    j->total = 0;
    for (place = 0; place < grid->n; place++) {
        ugrid_near near = ugrid_near_place(grid, place, j->radius);
        ugrid_real p[3], q[3];
        ugrid_point(grid, place, p);
        while (ugrid_next(&near)) {
            ugrid_point(grid, near.place, q);
            j->total += ugrid_distance2(grid, p, q) <= limit;
        }
    }
}

/* The same, with the inner loop in the caller's hands. */
static void work_ranges(void *user)
{
    job *j = (job *)user;
    const ugrid *grid = &j->grid;
    float const limit = j->radius * j->radius;
    int32_t place, k;
    j->total = -(int64_t)grid->n; /* each finds itself */
    for (place = 0; place < grid->n; place++) {
        ugrid_near near = ugrid_near_place(grid, place, j->radius);
        const float *p = grid->record[place].x;
        while (ugrid_next_range(&near)) {
            for (k = near.begin; k < near.end; k++) {
                const float *q = grid->record[k].x;
                float const x = q[0] - p[0], y = q[1] - p[1], z = q[2] - p[2];
                j->total += x * x + y * y + z * z <= limit;
            }
        }
    }
}

static void work_ready_made(void *user) { job *j = (job *)user; work_pairs(j); j->total *= 2; }

static double walk_ms(job *j, int dim, ugrid_method method, ugrid_walk walk, void (*work)(void *))
{
    memset(&j->desc, 0, sizeof j->desc);
    j->desc.dim = dim;
    j->desc.max[0] = j->desc.max[1] = j->desc.max[2] = 1;
    j->desc.cell = j->radius;
    j->desc.method = method;
    j->desc.walk = walk;
    must(ugrid_build(&j->grid, &j->desc, j->pos, 3 * sizeof *j->pos, j->n));
    return bench_cpu_ms(work, j);
}

enum { COLUMNS = 6, LINES = 7 };
static const int neighborhoods[COLUMNS] = { 10, 20, 46, 100, 200, 300 };

typedef struct walk_line {
    const char *name;
    ugrid_method method;
    ugrid_walk walk;
    void (*work)(void *);
} walk_line;

/* The first four compete for "best". */
static const walk_line walk_lines[LINES] = {
    { "SORT, CELLS, ugrid_next",          UGRID_SORT, UGRID_CELLS,   work_walk },
    { "SORT, STRIPS, ugrid_next",         UGRID_SORT, UGRID_STRIPS,  work_walk },
    { "SORT, MODULAR, ugrid_next",        UGRID_SORT, UGRID_MODULAR, work_walk },
    { "SORT, HYBRID, ugrid_next",         UGRID_SORT, UGRID_HYBRID,  work_walk },
    { "LIST, CELLS, ugrid_next",          UGRID_LIST, UGRID_CELLS,   work_walk },
    { "SORT, STRIPS, ugrid_next_range",   UGRID_SORT, UGRID_STRIPS,  work_ranges },
    { "SORT, ugrid_count_pairs (half)",   UGRID_SORT, UGRID_STRIPS,  work_ready_made }
};

static float radius_for(int dim, int32_t n, int neighbors)
{
    return dim == 3 ? wl_radius(n, neighbors) : (float)sqrt(neighbors / (3.14159265358979 * n));
}

/* One cell of the table; the total must be that of the first line. */
static double walk_cell(job *j, int dim, int neighbors, const walk_line *line, int64_t *total)
{
    bench_row_s row;
    char workload_name[32];
    memset(&row, 0, sizeof row);
    snprintf(workload_name, sizeof workload_name, "%dD-%d", dim, neighbors);
    j->radius = radius_for(dim, j->n, neighbors);
    row.group = "walks";
    row.workload = workload_name;
    row.method = line->name;
    row.n = j->n;
    row.ms = walk_ms(j, dim, line->method, line->walk, line->work);
    bench_cell(&row, row.ms);
    if (line == walk_lines) *total = j->total;
    else bench_check_total(j->total, *total, line->name);
    return row.ms;
}

static void walk_table(job *j, int dim)
{
    int64_t totals[COLUMNS];
    double best[COLUMNS];
    ugrid_walk winner[COLUMNS];
    int k, l;
    for (l = 0; l < LINES; l++) {
        bench_line(walk_lines[l].name);
        for (k = 0; k < COLUMNS; k++) {
            double const ms = walk_cell(j, dim, neighborhoods[k], &walk_lines[l], &totals[k]);
            if (l < 4 && (l == 0 || ms < best[k])) { best[k] = ms; winner[k] = walk_lines[l].walk; }
        }
        if (l != 3) continue;
        bench_line("best of these four");
        for (k = 0; k < COLUMNS; k++) printf(" %9s", walk_names[winner[k]]);
    }
    printf("\n");
}

static void bench_walks(int dim, int32_t n)
{
    float *pos = (float *)bench_alloc(12 * (size_t)n);
    char title[128];
    int k;
    job j;
    memset(&j, 0, sizeof j);
    if (dim == 2) wl_square(n, 6, pos);
    else wl_uniform(n, 6, pos);
    j.pos = pos;
    j.n = n;
    snprintf(title, sizeof title,
             "walks: ms to visit the neighbours of each of %d particles in %dD (001)", (int)n, dim);
    bench_matrix(title, "neighbours within the radius");
    for (k = 0; k < COLUMNS; k++) printf(" %9d", neighborhoods[k]);
    walk_table(&j, dim);
    ugrid_free(&j.grid);
    free(pos);
}

/* ---- sums: attributes per cell ---- */

static void work_sums(void *user)
{
    job *j = (job *)user;
    must(ugrid_cell_sums(&j->grid, j->values, j->width, j->sums));
}

/* No grid at all: the cell of each particle, and an addition there. */
static void work_plain_sums(void *user)
{
    job *j = (job *)user;
    int32_t const cells = j->grid.axis[0].cells, width = j->width;
    int32_t i, w;
    memset(j->sums, 0, (size_t)j->grid.cell_count * (size_t)width * sizeof *j->sums);
    for (i = 0; i < j->n; i++) {
        const float *p = j->pos + 3 * (size_t)i;
        int32_t const cell = ((int32_t)p[2] * cells + (int32_t)p[1]) * cells + (int32_t)p[0];
        for (w = 0; w < width; w++)
            j->sums[(size_t)cell * (size_t)width + (size_t)w] +=
                j->values[(size_t)i * (size_t)width + (size_t)w];
    }
}

static double sum_of_sums(const job *j)
{
    size_t const count = (size_t)j->grid.cell_count * (size_t)j->width;
    double sum = 0;
    size_t k;
    for (k = 0; k < count; k++) sum += (double)j->sums[k];
    return sum;
}

static void sums_rows(job *j, const char *order, double expected)
{
    static const char *const names[3] = {"no grid: sums[cell] += value", "ugrid_cell_sums, SORT",
                                         "ugrid_cell_sums, LIST"};
    double base = 0;
    int k;
    for (k = 0; k < 3; k++) {
        char name[64];
        bench_row_s row;
        memset(&row, 0, sizeof row);
        j->desc = cube_desc(&ways[k < 2 ? 2 : 6], 64);
        must(ugrid_build(&j->grid, &j->desc, j->pos, 0, j->n));
        snprintf(name, sizeof name, "%s, %d per particle", names[k], (int)j->width);
        row.group = "sums";
        row.workload = order;
        row.method = name;
        row.n = j->n;
        row.ms = bench_cpu_ms(k ? work_sums : work_plain_sums, j);
        row.floor_ms =
            ((12.0 + 4 * j->width) * j->n + 4.0 * j->width * j->grid.cell_count) / bench_speed;
        if (k == 0) base = row.ms;
        row.base_ms = base;
        bench_row(&row);
        bench_check(sum_of_sums(j) == expected, name); /* small integers: exact in any order */
    }
}

/* One value per particle, then three. */
static void sums_widths(job *j, const char *order)
{
    for (j->width = 1; j->width <= 3; j->width += 2) {
        double expected = 0;
        size_t k;
        for (k = 0; k < (size_t)j->n * (size_t)j->width; k++) expected += (double)j->values[k];
        sums_rows(j, order, expected);
    }
}

static void scale(float *pos, int32_t n, float by)
{
    size_t k;
    for (k = 0; k < 3 * (size_t)n; k++) pos[k] *= by;
}

static void bench_sums(int32_t n)
{
    float *pos = (float *)bench_alloc(12 * (size_t)n),
          *values = (float *)bench_alloc(12 * (size_t)n);
    size_t k;
    job j;
    memset(&j, 0, sizeof j);
    wl_uniform(n, 1, pos);
    for (k = 0; k < 3 * (size_t)n; k++) values[k] = (float)(k % 8);
    j.pos = pos;
    j.n = n;
    j.values = values;
    j.sums = (float *)bench_alloc(12 * (size_t)64 * 64 * 64);
    bench_title("sums: an attribute summed per cell, 64 x 64 x 64 cells (003)", "no grid");
    scale(pos, n, 64); /* exact: a power of two */
    sums_widths(&j, "shuffled");
    scale(pos, n, 1.0f / 64);
    if (!wl_sort_morton(n, pos, NULL)) exit(1);
    scale(pos, n, 64);
    sums_widths(&j, "sorted");
    ugrid_free(&j.grid);
    free(j.sums);
    free(values);
    free(pos);
}

/* ---- scaling: time and memory against n ---- */

static void scaling_rows(int32_t n)
{
    workload w = uniform(n);
    job j = search_job(&w);
    double build, count;
    j.flags = UGRID_PLACES;
    build = bench_cpu_once_ms(work_build, &j);
    count = bench_cpu_once_ms(work_count, &j);
    bench_scaling_row("scaling", "uniform", "ugrid: build", n, build,
                      (double)ugrid_bytes(&j.grid) / n);
    bench_scaling_row("scaling", "uniform", "ugrid: count neighbours", n, count, 0);
    work_pairs(&j);
    bench_check_total(bench_sum(j.counts, n), 2 * j.total, "scaling: neighbours, and pairs twice");
    if (w.pairs) bench_check_total(2 * j.total, w.pairs, "scaling: the known total");
    free_job(&j);
    free(w.pos);
}

/* ---- threads: desc.parallel with a pool of them (BENCH_THREADS, 2) against serial calls ---- */

static void work_gather(void *user)
{
    job *j = (job *)user;
    must(ugrid_gather(&j->grid, j->pos, 12, j->sums));
}

static void work_csr(void *user)
{
    job *j = (job *)user;
    int64_t needed;
    must(ugrid_neighbors(&j->grid, j->radius, j->flags, j->offsets, j->ids, j->capacity, &needed));
}

static void work_at(void *user)
{
    job *j = (job *)user;
    int64_t needed;
    must(ugrid_neighbors_at(&j->grid, j->pos, 0, j->n, j->radius, j->offsets, j->ids, j->capacity,
                            &needed));
}

/* Room for full lists, and for each point itself. */
static void threads_room(job *j)
{
    j->capacity = 2 * j->total + j->n;
    j->ids = (int32_t *)bench_alloc((size_t)j->capacity * sizeof *j->ids);
}

static void bench_threads(int32_t n)
{
    workload w = uniform(n), few = uniform(1000);
    job alone = search_job(&w), together = search_job(&w);
    job few_alone = search_job(&few), few_together = search_job(&few);
    threads_begin();
    together.desc.parallel.run = few_together.desc.parallel.run = parallel_threads;
    together.desc.parallel.user = few_together.desc.parallel.user = &threads.pool;
    together.desc.parallel.tasks = few_together.desc.parallel.tasks = threads.tasks;
    alone.sums = (float *)bench_alloc(12 * (size_t)n);
    together.sums = (float *)bench_alloc(12 * (size_t)n);
    alone.desc.method = together.desc.method = UGRID_SORT;
    threads_row(w.name, "build, SORT", n, work_build, &alone, &together);
    alone.desc.method = together.desc.method = UGRID_COUNT;
    threads_row(w.name, "build, COUNT", n, work_build, &alone, &together);
    threads_row(w.name, "gather", n, work_gather, &alone, &together);
    threads_row(w.name, "count neighbours", n, work_count, &alone, &together);
    threads_row(w.name, "count pairs", n, work_pairs, &alone, &together);
    bench_check(alone.total == together.total, "threads: the same pairs");
    threads_room(&alone);
    threads_room(&together);
    threads_row(w.name, "list by id", n, work_csr, &alone, &together);
    threads_row(w.name, "neighbours of points", n, work_at, &alone, &together);
    alone.flags = together.flags = UGRID_PLACES;
    threads_row(w.name, "list by place", n, work_csr, &alone, &together);
    bench_check(alone.offsets[n] == together.offsets[n], "threads: the same list");
    threads_row(few.name, "build", 1000, work_build, &few_alone, &few_together);
    threads_row(few.name, "count neighbours", 1000, work_count, &few_alone, &few_together);
    threads_end();
    free(alone.sums);
    free(together.sums);
    free_job(&alone);
    free_job(&together);
    free_job(&few_alone);
    free_job(&few_together);
    free(w.pos);
    free(few.pos);
}

/* ---- overhead: the hook where it brings nothing ---- */

static void overhead_of(int32_t n, int32_t tasks)
{
    workload w = uniform(n);
    job alone = search_job(&w), hooked = search_job(&w);
    hooked.desc.parallel.run = parallel_threads;
    hooked.desc.parallel.user = &threads.pool;
    hooked.desc.parallel.tasks = tasks;
    alone.flags = hooked.flags = UGRID_PLACES;
    overhead_row(w.name, "build", n, work_build, &alone, &hooked);
    overhead_row(w.name, "count neighbours", n, work_count, &alone, &hooked);
    overhead_row(w.name, "count pairs", n, work_pairs, &alone, &hooked);
    threads_room(&alone);
    threads_room(&hooked);
    overhead_row(w.name, "list by place", n, work_csr, &alone, &hooked);
    bench_check(alone.offsets[n] == hooked.offsets[n], "overhead: the same list");
    free_job(&alone);
    free_job(&hooked);
    free(w.pos);
}

static void bench_overhead(int32_t n)
{
    overhead_begin();
    overhead_of(n, 1);
    overhead_of(OVERHEAD_SMALL, threads.tasks);
    overhead_end();
}

/* ---- order: curves that number the cells (000, section 1) ---- */

enum { ORDER_LINES = 5 };
static const struct { const char *name; int curve, strips; } order_lines[ORDER_LINES] = {
    {"shuffled, cell by cell", CURVE_SHUFFLED, 0}, {"rows, cell by cell", CURVE_ROWS, 0},
    {"Morton, cell by cell", CURVE_MORTON, 0},     {"Hilbert, cell by cell", CURVE_HILBERT, 0},
    {"rows, strips", CURVE_ROWS, 1}
};

/* Lines of 64 bytes per particle that caches of 32 KB and 1 MB do not hold. */
static void order_misses(curve_search *s, double misses[2])
{
    curve_cache cache[2];
    int k;
    cache[0] = curve_cache_of(32, 8);
    cache[1] = curve_cache_of(1024, 16);
    for (k = 0; k < 2; k++) s->cache[k] = &cache[k];
    curve_work(s);
    for (k = 0; k < 2; k++) {
        misses[k] = (double)cache[k].misses / s->grid->n;
        s->cache[k] = NULL;
        free(cache[k].line);
    }
}

static void order_line(curve_grid *g, const float *pos, int line, int64_t *total)
{
    char workload_name[32];
    double joined, misses[2];
    bench_row_s row;
    curve_search s;
    curve_number(g, order_lines[line].curve);
    curve_build(g, pos);
    joined = curve_joined(g);
    if (order_lines[line].curve == CURVE_HILBERT && joined < 1) exit(1); /* that is no curve */
    memset(&s, 0, sizeof s);
    s.grid = g;
    s.strips = order_lines[line].strips;
    order_misses(&s, misses);
    memset(&row, 0, sizeof row);
    snprintf(workload_name, sizeof workload_name, "%dD", g->dim);
    row.group = "order";
    row.workload = workload_name;
    row.method = order_lines[line].name;
    row.n = g->n;
    row.ms = bench_cpu_ms(curve_work, &s);
    if (line == 0) *total = s.total;
    else bench_check_total(s.total, *total, order_lines[line].name);
    bench_line(order_lines[line].name);
    bench_cell(&row, row.ms);
    bench_number(joined, 9);
    bench_number(misses[0], 9);
    bench_number(misses[1], 9);
    bench_value("order", workload_name, order_lines[line].name, g->n, misses[0], "lines32K");
    bench_value("order", workload_name, order_lines[line].name, g->n, misses[1], "lines1M");
}

static void bench_orders(void)
{
    int dim, line;
    for (dim = 2; dim <= 3; dim++) {
        int const bits = (dim == 2 ? 9 : 6) - (bench.small ? 3 : bench.quick ? 1 : 0);
        curve_grid g = curve_make(dim, bits, 4 << dim * bits);
        float *pos = (float *)bench_alloc(12 * (size_t)g.n);
        char title[160];
        int64_t total = 0;
        if (dim == 2) wl_square(g.n, 6, pos);
        else wl_uniform(g.n, 6, pos);
        snprintf(title, sizeof title, "order: neighbours of %d particles in %d cells in %dD; "
                 "lines of 64 bytes per particle that caches do not hold", (int)g.n, (int)g.cells,
                 dim);
        bench_matrix(title, "numbers of cells along");
        printf(" %9s %9s %9s %9s", "ms", "joined", "32 KB", "1 MB");
        for (line = 0; line < ORDER_LINES; line++) order_line(&g, pos, line, &total);
        printf("\n");
        free(pos);
        curve_free(&g);
    }
}

/* ---- defaults: nothing set but the radius, beside the settings that the manual offers ---- */

/* Cells: 0 as the default finds them, 1 the radius, 2 two particles each. */
static const struct { const char *name; ugrid_method method; int cells, split; } tries[] = {
    {"default", UGRID_AUTO, 0, 0},
    {"COUNT, cell = radius", UGRID_COUNT, 1, 1},
    {"COUNT, 2 particles a cell", UGRID_COUNT, 2, 1},
    {"COUNT, radius, split 2", UGRID_COUNT, 1, 2},
    {"COUNT, radius, split 4", UGRID_COUNT, 1, 4},
    {"SORT, cell = radius", UGRID_SORT, 1, 1},
    {"LIST, cell = radius", UGRID_LIST, 1, 1}
};
enum { TRIES = sizeof tries / sizeof *tries, TRIES_IN_ORDER = TRIES - 1 };

static void work_first_build(void *user)
{
    job *j = (job *)user;
    ugrid_free(&j->grid);
    work_build(j);
}
static void work_build_and_count(void *user) { work_build(user); work_count(user); }

/* The searches are in the order of the cells, which LIST has not. */
static const struct { const char *name; void (*work)(void *); int flags, tries; }
    default_calls[] = {
    {"first build", work_first_build, 0, TRIES_IN_ORDER},
    {"build", work_build, 0, TRIES_IN_ORDER},
    {"build + count pairs", work_build_and_pairs, 0, TRIES},
    {"build + count by place", work_build_and_count, UGRID_PLACES, TRIES_IN_ORDER},
    {"count by place", work_count, UGRID_PLACES, TRIES_IN_ORDER},
    {"build + list by place", work_list, UGRID_PLACES, TRIES_IN_ORDER},
    {"build + list by id", work_list, 0, TRIES}
};
enum { DEFAULT_CALLS = sizeof default_calls / sizeof *default_calls };

/* One grid for each setting; the results go into the arrays of the first job. */
static void defaults_jobs(const workload *w, int dim, job jobs[TRIES])
{
    int k;
    memset(jobs, 0, TRIES * sizeof *jobs);
    for (k = 0; k < TRIES; k++) {
        job *j = &jobs[k];
        j->pos = w->pos;
        j->n = w->n;
        j->radius = w->radius;
        j->desc = desc_of(w, tries[k].method);
        j->desc.dim = dim;
        j->desc.cell = tries[k].cells == 1 ? w->radius : 0;
        j->desc.radius = tries[k].cells == 0 ? w->radius : 0;
        j->desc.split = tries[k].split;
        j->desc.unbounded = w->max[0] == 0 && tries[k].cells == 1;
        work_build(j);
    }
    work_pairs(&jobs[0]);
    jobs[0].capacity = 2 * jobs[0].total;
    jobs[0].ids = (int32_t *)bench_alloc((size_t)jobs[0].capacity * sizeof *jobs[0].ids);
    jobs[0].counts = (int32_t *)bench_alloc((size_t)w->n * sizeof *jobs[0].counts);
    jobs[0].offsets = (int64_t *)bench_alloc(((size_t)w->n + 1) * sizeof *jobs[0].offsets);
    for (k = 1; k < TRIES; k++) {
        jobs[k].capacity = jobs[0].capacity;
        jobs[k].ids = jobs[0].ids;
        jobs[k].counts = jobs[0].counts;
        jobs[k].offsets = jobs[0].offsets;
    }
}

static void defaults_rows(workload *w, int dim)
{
    job jobs[TRIES];
    bench_setting settings[TRIES];
    int c, k;
    defaults_jobs(w, dim, jobs);
    for (c = 0; c < DEFAULT_CALLS; c++) {
        for (k = 0; k < default_calls[c].tries; k++) {
            settings[k].name = tries[k].name;
            settings[k].work = default_calls[c].work;
            settings[k].job = &jobs[k];
            jobs[k].flags = default_calls[c].flags;
        }
        bench_defaults_row(w->name, w->n, default_calls[c].name, settings, default_calls[c].tries,
                           bench_turn_ms, c ? "" : jobs[0].grid.reason);
    }
    for (k = 1; k < TRIES; k++) {
        work_pairs(&jobs[k]);
        bench_check_total(jobs[k].total, jobs[0].capacity / 2, tries[k].name);
        ugrid_free(&jobs[k].grid);
    }
    free_job(&jobs[0]);
    free(w->pos);
}

/* Where points are. FAR: one of them is a million edges away. COINCIDENT: one of 16 is at the
   middle. Only EVEN points have a box that is given. */
typedef enum points_kind { EVEN, CLUMPS, FAR, COINCIDENT } points_kind;

/* n points in a square or a cube, with so many neighbours each. */
static workload defaults_points(const char *name, int dim, int32_t n, double neighbors,
                                points_kind kind)
{
    workload w = {NULL, 0, NULL, 0, {0, 0, 0}, 0};
    wl_random r = wl_seed(9);
    size_t k;
    w.name = name;
    w.n = n;
    w.pos = (float *)bench_alloc((size_t)dim * (size_t)n * sizeof *w.pos);
    for (k = 0; k < (size_t)dim * (size_t)n; k++)
        w.pos[k] = wl_u(&r) + (kind == CLUMPS ? 20 * (float)(k / (size_t)dim % 5) : 0);
    if (kind == FAR) w.pos[k - 1] = 1e6f;
    for (k = 0; k < (size_t)dim * (size_t)n && kind == COINCIDENT; k++)
        if (k / (size_t)dim % 16 == 0) w.pos[k] = 0.5f;
    w.radius = dim == 2 ? (float)sqrt(neighbors / (3.14159265 * n)) : wl_radius(n, neighbors);
    if (kind == CLUMPS) w.radius *= dim == 2 ? sqrtf(5) : cbrtf(5);
    for (k = 0; k < (size_t)dim && kind == EVEN; k++) w.max[k] = 1;
    return w;
}

static void bench_defaults(int32_t n)
{
    static const struct { const char *name; int dim; double neighbors; points_kind kind; }
        sets[] = {
        {"2D, 0.02 neighbours", 2, 0.02, EVEN}, {"2D, 2", 2, 2, EVEN}, {"2D, 5", 2, 5, EVEN},
        {"2D, 10", 2, 10, EVEN}, {"2D, 46", 2, 46, EVEN}, {"3D, 0.02", 3, 0.02, EVEN},
        {"3D, 2", 3, 2, EVEN}, {"3D, 8", 3, 8, EVEN}, {"3D, 46", 3, 46, EVEN},
        {"3D, 300", 3, 300, EVEN}, {"3D, clumps, 20", 3, 20, CLUMPS}, {"2D, far, 20", 2, 20, FAR},
        {"3D, far, 20", 3, 20, FAR}, {"2D, coincident, 20", 2, 20, COINCIDENT},
        {"3D, coincident, 20", 3, 20, COINCIDENT}
    };
    int32_t const few = bench.small ? n : 20000;
    size_t k;
    workload w = uniform(n);
    bench_defaults_title("defaults: the radius told and nothing else; about 29 neighbours, or as "
                         "many as the name says");
    defaults_rows(&w, 3);
    w = uniform(n);
    if (!wl_sort_morton(n, w.pos, NULL)) exit(1);
    w.name = n == 1000000 ? "uniform-1M-sorted" : "uniform-sorted";
    defaults_rows(&w, 3);
    w = dam(n);
    defaults_rows(&w, 3);
    for (k = 0; k < sizeof sets / sizeof *sets; k++) {
        w = defaults_points(sets[k].name, sets[k].dim, few, sets[k].neighbors, sets[k].kind);
        defaults_rows(&w, sets[k].dim);
    }
    bench_defaults_end();
}

/* ---- all of it ---- */

int main(int argc, char **argv)
{
    int32_t n;
    bench_start(argc, argv, "bench_ugrid", "search,sparse,insert,walks,sums,threads,overhead,"
                                          "scaling,order,defaults");
    n = bench.n ? bench.n : bench.quick ? 100000 : 1000000;
    bench_measure_copy();
    printf("ugrid.h %d on one CPU core: thread-CPU time, median of %d runs after warm-up; compiler "
           "%s, %s instructions; ",
           ugrid_version(), bench.runs, __VERSION__, bench_instructions());
    bench_print_date();
    bench_print_copy();
    if (bench_wants("search")) bench_search(n);
    if (bench_wants("sparse")) bench_sparse(20000);
    if (bench_wants("insert"))
        bench_insert(bench.small ? n : bench.quick ? 128000 : bench.n ? n : 10000000);
    if (bench_wants("walks")) {
        bench_walks(2, bench.small ? n : bench.quick ? 20000 : 40000);
        bench_walks(3, bench.small ? n : bench.quick ? 20000 : 40000);
    }
    if (bench_wants("sums")) bench_sums(n);
    if (bench_named("threads")) bench_threads(n);
    if (bench_named("overhead")) bench_overhead(n);
    if (bench_named("order")) bench_orders();
    if (bench_named("defaults")) bench_defaults(n);
    if (bench_named("scaling"))
        bench_scaling_rows(
            "scaling: time against n, evenly spread particles; bytes that the header holds",
            scaling_rows);
    return bench_end();
}
