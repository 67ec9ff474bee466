/* lanes.c - how near to -march=native plain flags come; built and run by lanes.sh.
   SPDX-License-Identifier: MIT OR Unlicense

   The file is compiled once for each set of flags, with WAY = a name for it, and once more with
   WAYS = X(first) X(second) ..., which makes the program. In this all ways do the same work, in
   turn, and their results are compared bit by bit. Time: of the thread. */

#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum lanes_kind { LANES_FORCES, LANES_GRID, LANES_TREE } lanes_kind;

/* What a tree does; the first two need none before. */
typedef enum lanes_call {
    LANES_BUILD, LANES_BUILD_PLOC, LANES_REFIT, LANES_COUNT_PAIRS, LANES_PAIRS, LANES_COUNT_BOXES,
    LANES_COUNT_RADIUS, LANES_LIST_RADIUS, LANES_NEAREST, LANES_RAYS, LANES_HITS
} lanes_call;

typedef struct lanes_work {
    const char *name;
    lanes_kind kind;
    int flags, count;               /* grid: only counts */
    int direct, inverse, order, potentials;
    lanes_call call;
} lanes_work;

/* Points in a square (forces; z is not read) or a cube, and the results. out: n * ROOM numbers, a
   list, counts, or forces and potentials. */
typedef struct lanes_data {
    int32_t n;
    const float *pos;
    float radius;
    int64_t *offsets;
    int32_t *out;
} lanes_data;

enum { LANES_ROOM = 48 };
typedef void lanes_way(const lanes_work *work, const lanes_data *data);

#ifdef WAY

#define UGRID_STATIC
#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define NBODY_STATIC
#define NBODY_IMPLEMENTATION
#include "nbody.h"

#define LBVH_STATIC
#define LBVH_WITH_WIDE
#define LBVH_IMPLEMENTATION
#include "lbvh.h"

lanes_way WAY;

static void search(const lanes_work *work, const lanes_data *data)
{
    static ugrid grid;
    ugrid_desc d;
    int64_t needed;
    if (!grid.built) {
        memset(&d, 0, sizeof d);
        d.cell = data->radius;
        if (ugrid_build(&grid, &d, data->pos, 0, data->n) != UGRID_OK) abort();
    }
    if (work->count) ugrid_count_neighbors(&grid, data->radius, work->flags, data->out);
    else
        ugrid_neighbors(&grid, data->radius, work->flags, data->offsets, data->out,
                        (int64_t)data->n * LANES_ROOM, &needed);
}

static void forces(const lanes_work *work, const lanes_data *data)
{
    nbody sim;
    nbody_desc d;
    float *out = (float *)(void *)data->out;
    size_t const stride = 3 * sizeof *data->pos;
    memset(&sim, 0, sizeof sim);
    memset(&d, 0, sizeof d);
    d.method = work->direct ? NBODY_DIRECT : NBODY_FORCE_NODES;
    d.law = work->inverse ? NBODY_INVERSE : NBODY_INVERSE_SQUARE;
    d.order = work->order;
    if (work->potentials)
        nbody_fields(&sim, &d, data->pos, stride, NULL, data->n, out, out + 2 * data->n);
    else nbody_accelerations(&sim, &d, data->pos, stride, NULL, data->n, out);
    nbody_free(&sim);
}

/* Boxes of half an edge `half` around the points. */
static void build(lbvh *tree, const lanes_data *data, float half, lbvh_builder builder)
{
    lbvh_desc d;
    memset(&d, 0, sizeof d);
    d.kind = LBVH_POINTS;
    d.radius = half;
    d.builder = builder;
    if (lbvh_build(tree, &d, data->pos, 0, data->n) != LBVH_OK) abort();
}

static void find(const lbvh *tree, const lanes_work *work, const lanes_data *data)
{
    int64_t needed, room = (int64_t)data->n * LANES_ROOM;
    lbvh_queries q;
    memset(&q, 0, sizeof q);
    q.flags = LBVH_PLACES;
    q.kind = work->call == LANES_COUNT_BOXES ? LBVH_BOXES : LBVH_POINTS;
    q.radius = data->radius * 0.75f;    /* the boxes reach as far again */
    if (work->call == LANES_LIST_RADIUS)
        lbvh_overlaps(tree, &q, data->offsets, data->out, room, &needed);
    else lbvh_count_overlaps(tree, &q, data->out);
}

/* The eight nearest of every eighth point; boxes that every eighth ray meets, until it is short. */
static void walk(const lbvh *tree, const lanes_work *work, const lanes_data *data)
{
    float const ahead[3] = {0.3f, 0.5f, 0.8f};
    int32_t i, found, *out = data->out;
    float away2[8];
    for (i = 0; i < data->n; i += 8) {
        if (work->call == LANES_NEAREST) {
            lbvh_nearest(tree, data->pos + 3 * i, 8, 1, NULL, NULL, out, away2, &found);
            out += found;
        } else {
            lbvh_ray ray = lbvh_ray_cast(tree, data->pos + 3 * i, ahead, 10 * data->radius);
            while (lbvh_next_ray(&ray)) *out++ = ray.id;
        }
    }
}

/* The first triangle, of one to three points that follow in the tree's order, on each ray. */
static void hits(const lbvh *tree, const lanes_data *data)
{
    static lbvh flat;
    static lbvh_wide wide;
    static float *corner, *rays;
    lbvh_ray_hit *hit = (lbvh_ray_hit *)(void *)data->out;
    lbvh_rays r;
    int32_t i;
    int k;
    (void)tree;
    if (!corner) {
        lbvh_desc d;
        lbvh_wide_desc w;
        corner = (float *)malloc((size_t)data->n * 9 * sizeof *corner);
        rays = (float *)malloc((size_t)data->n * 6 * sizeof *rays);
        if (!corner || !rays) abort();
        for (i = 0; i < 9 * data->n; i++)
            corner[i] = data->pos[i / 9 * 3 + i % 3] +
                        data->radius * 0.5f * (float)(i % 9 * 2654435761u % 1024) / 1024;
        for (i = 0; i < data->n; i++)
            for (k = 0; k < 3; k++) {
                rays[6 * i + k] = data->pos[3 * i + k];
                rays[6 * i + 3 + k] = data->pos[3 * (data->n - 1 - i) + k] - 0.5f;
            }
        memset(&d, 0, sizeof d);
        memset(&w, 0, sizeof w);
        d.kind = LBVH_TRIANGLES;
        w.copy = 1;
        if (lbvh_build(&flat, &d, corner, 0, data->n) != LBVH_OK ||
            lbvh_wide_build(&wide, &w, &flat, corner, 0) != LBVH_OK) abort();
    }
    memset(&r, 0, sizeof r);
    r.data = rays;
    r.n = data->n / 8;
    lbvh_closest_hits(&wide, &r, NULL, NULL, hit);
}

static void trees(const lanes_work *work, const lanes_data *data)
{
    static lbvh tree, again;
    int64_t needed;
    if (!tree.built) build(&tree, data, 0.25f * data->radius, LBVH_MERGE);
    switch (work->call) {
    case LANES_BUILD: build(&again, data, 0, LBVH_MERGE); break;
    case LANES_BUILD_PLOC: build(&again, data, 0, LBVH_PLOC); break;
    case LANES_REFIT: lbvh_refit(&again, data->pos, 0); break;
    case LANES_COUNT_PAIRS:
        lbvh_count_pairs(&tree, &needed);
        memcpy(data->out, &needed, sizeof needed);
        break;
    case LANES_PAIRS: lbvh_pairs(&tree, data->out, data->n * 8, &needed); break;
    case LANES_NEAREST: case LANES_RAYS: walk(&tree, work, data); break;
    case LANES_HITS: hits(&tree, data); break;
    default: find(&tree, work, data);
    }
}

void WAY(const lanes_work *work, const lanes_data *data)
{
    if (work->kind == LANES_GRID) search(work, data);
    else if (work->kind == LANES_TREE) trees(work, data);
    else forces(work, data);
}

#else

#include "../common/workloads.h"

#define X(way) lanes_way way;
WAYS
#undef X

static const struct { const char *name; lanes_way *run; } ways[] = {
#define X(way) {#way, way},
    WAYS
};
enum { COUNT = sizeof ways / sizeof *ways, ROUNDS = 7 };

#define GRID(name, flags, count) {name, LANES_GRID, flags, count, 0, 0, 0, 0, LANES_BUILD}
#define FORCES(name, direct, inverse, order, potentials) \
    {name, LANES_FORCES, 0, 0, direct, inverse, order, potentials, LANES_BUILD}
#define TREE(name, call) {name, LANES_TREE, 0, 0, 0, 0, 0, 0, call}
static const lanes_work works[] = {
    GRID("count, by place", 2, 1), GRID("full list, by place", 2, 0),
    GRID("full list, by id", 0, 0), GRID("half list, by place", 3, 0),
    FORCES("DIRECT", 1, 0, 0, 0), FORCES("DIRECT, 1/d", 1, 1, 0, 0),
    FORCES("order 4", 0, 0, 4, 0), FORCES("order 4, potentials", 0, 0, 4, 1),
    FORCES("order 4, 1/d", 0, 1, 4, 0), FORCES("order 4, 1/d, potentials", 0, 1, 4, 1),
    FORCES("order 8", 0, 0, 8, 0), FORCES("order 8, 1/d", 0, 1, 8, 0),
    TREE("tree: build", LANES_BUILD), TREE("tree: refit", LANES_REFIT),
    TREE("tree: build, PLOC", LANES_BUILD_PLOC), TREE("tree: count pairs", LANES_COUNT_PAIRS),
    TREE("tree: pairs", LANES_PAIRS), TREE("tree: count overlaps", LANES_COUNT_BOXES),
    TREE("tree: count in radius", LANES_COUNT_RADIUS),
    TREE("tree: list in radius", LANES_LIST_RADIUS), TREE("tree: nearest", LANES_NEAREST),
    TREE("tree: rays", LANES_RAYS), TREE("wide tree: triangles hit", LANES_HITS)};

static double seconds(lanes_way *way, const lanes_work *work, const lanes_data *data)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    way(work, data);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

static int ascending(const void *a, const void *b)
{
    double const x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, ascending);
    return values[ROUNDS / 2];
}

/* Times of all ways as ratios to the last one, medians of rounds in which they take turns. */
static int compare(const lanes_work *work, const lanes_data *data)
{
    size_t const bytes = (size_t)data->n * LANES_ROOM * sizeof *data->out;
    int32_t *first = (int32_t *)malloc(bytes);
    double spent[COUNT][ROUNDS], ratio[ROUNDS];
    int way, round, same = 1;
    if (!first) abort();
    for (way = 0; way < COUNT; way++) {
        memset(data->out, 0, bytes);
        ways[way].run(work, data);
        if (work->kind == LANES_GRID && !work->count) /* behind the list anything may be */
            memset(data->out + data->offsets[data->n], 0,
                   bytes - (size_t)data->offsets[data->n] * sizeof *data->out);
        if (way == 0) memcpy(first, data->out, bytes);
        else if (memcmp(first, data->out, bytes) != 0) same = 0;
    }
    free(first);
    for (round = 0; round < ROUNDS; round++)
        for (way = 0; way < COUNT; way++) spent[way][round] = seconds(ways[way].run, work, data);
    printf("%-26s", work->name);
    for (way = 0; way < COUNT; way++) {
        for (round = 0; round < ROUNDS; round++)
            ratio[round] = spent[way][round] / spent[COUNT - 1][round];
        printf(" %12.2f", median(ratio));
    }
    printf("  %9.1f %s\n", 1e3 * median(spent[COUNT - 1]), same ? "" : "OTHER BITS");
    fflush(stdout);
    return same;
}

int main(int argc, char **argv)
{
    enum { POINTS = 1000000, LEAVES = 200000, BODIES = 100000, FEW = 8192 };
    lanes_data data;
    float *cube = (float *)malloc(3 * POINTS * sizeof *cube);
    float *square = (float *)malloc(3 * BODIES * sizeof *square);
    int way, same = 1;
    size_t k;
    data.offsets = (int64_t *)malloc((POINTS + 1) * sizeof *data.offsets);
    data.out = (int32_t *)malloc((size_t)POINTS * LANES_ROOM * sizeof *data.out);
    if (!cube || !square || !data.offsets || !data.out) return 1;
    wl_uniform(POINTS, 1, cube);
    wl_square(BODIES, 1, square);
    data.radius = wl_radius(POINTS, 30);
    printf("%-26s", "ratio to the last");
    for (way = 0; way < COUNT; way++) printf(" %12s", ways[way].name);
    puts("    last, ms");
    for (k = 0; k < sizeof works / sizeof *works; k++) {
        if (argc > 1 && !strstr(works[k].name, argv[1])) continue;
        data.n = works[k].kind == LANES_GRID ? POINTS : works[k].kind == LANES_TREE ? LEAVES
                 : works[k].direct ? FEW : BODIES;
        data.pos = works[k].kind != LANES_FORCES ? cube : square;
        same &= compare(&works[k], &data);
    }
    return !same;
}
#endif
