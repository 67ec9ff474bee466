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

typedef struct lanes_work {
    const char *name;
    int search;                     /* of ugrid.h; else forces */
    int flags, count;               /* ugrid: only counts */
    int direct, inverse, order, potentials;
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

void WAY(const lanes_work *work, const lanes_data *data)
{
    if (work->search) search(work, data);
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

static const lanes_work works[] = {
    {"count, by place", 1, 2, 1, 0, 0, 0, 0}, {"full list, by place", 1, 2, 0, 0, 0, 0, 0},
    {"full list, by id", 1, 0, 0, 0, 0, 0, 0}, {"half list, by place", 1, 3, 0, 0, 0, 0, 0},
    {"DIRECT", 0, 0, 0, 1, 0, 0, 0}, {"DIRECT, 1/d", 0, 0, 0, 1, 1, 0, 0},
    {"order 4", 0, 0, 0, 0, 0, 4, 0}, {"order 4, potentials", 0, 0, 0, 0, 0, 4, 1},
    {"order 4, 1/d", 0, 0, 0, 0, 1, 4, 0}, {"order 4, 1/d, potentials", 0, 0, 0, 0, 1, 4, 1},
    {"order 8", 0, 0, 0, 0, 0, 8, 0}, {"order 8, 1/d", 0, 0, 0, 0, 1, 8, 0}};

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

int main(void)
{
    enum { POINTS = 1000000, BODIES = 100000, FEW = 8192 };
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
        data.n = works[k].search ? POINTS : works[k].direct ? FEW : BODIES;
        data.pos = works[k].search ? cube : square;
        same &= compare(&works[k], &data);
    }
    return !same;
}
#endif
