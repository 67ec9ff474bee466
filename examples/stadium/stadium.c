/* stadium.c - a teapot in a stadium: many particles in a small part of a large domain.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: which structure keeps its cost where most of the domain is empty (Kureck, section
   1.2: the teapot in a stadium). Particles lie on a teapot, and a tenth as many on the stands of a
   stadium, which is 1 to 1,000 times as large. For each size the pairs within a radius are counted

       cells       by a grid whose cells are as large as the radius: memory grows with the domain
       as many     by a grid with as many cells as particles: the teapot comes to lie in a few cells
       fit         by the grid that ugrid_fit chooses
       hashed      by an unbounded grid: cells of the radius, hashed to as many buckets as particles
       tree        by a linear BVH of the particles

   How to run it:

       make build/stadium && build/stadium --out stadium.png      (from the top), or
       cc -O3 examples/stadium/stadium.c -o stadium -lstb -lm

   What to look at: >>search below, and in the table the lines of the largest stadium. */

#define PROGRAM "stadium"
#include "../common/base.h"
#include "../common/options.h"
#include "../common/picture.h"
#include "../common/random.h"

#define UGRID_IMPLEMENTATION
#include "../../ugrid.h"
#define LBVH_IMPLEMENTATION
#include "../../lbvh.h"

#include "stadium_shape.h"

enum { CELLS, AS_MANY, FIT, HASHED, TREE, WAYS };
static const char *const way_name[WAYS] = {"cells", "as many", "fit", "hashed", "tree"};

/* What one way took; pairs -1: refused, -2: not run. */
typedef struct outcome {
    double build, search;       /* seconds */
    int64_t bytes, cells, pairs;
    const char *why;            /* of a refusal */
} outcome;

/* -------------------------------------------------------------------------------------------------
   >>search: all pairs within the radius, by each way
   ---------------------------------------------------------------------------------------------- */

/* The desc of a grid for a way. The box of the stadium is what the particles span. */
static ugrid_desc grid_desc(const stadium *s, int way)
{
    ugrid_desc desc;
    int a;
    memset(&desc, 0, sizeof desc);
    if (way == FIT) return desc;                     /* ugrid_build calls ugrid_fit */
    desc.cell = (float)s->radius;
    desc.unbounded = way == HASHED;
    if (way == HASHED) return desc;
    for (a = 0; a < 3; a++) {
        desc.min[a] = (float)s->min[a];
        desc.max[a] = (float)s->max[a];
    }
    if (way == AS_MANY) desc.cell = (float)cbrt(stadium_volume(s) / s->n);
    return desc;
}

static outcome by_grid(const stadium *s, int way)
{
    ugrid_desc desc = grid_desc(s, way);
    ugrid grid;
    ugrid_result result = UGRID_OK;
    outcome out = {0, 0, 0, 0, -1, NULL};
    double start = seconds_now();
    memset(&grid, 0, sizeof grid);
    if (way == FIT) result = ugrid_fit(&desc, s->pos, 0, s->n, NULL);
    if (result == UGRID_OK) result = ugrid_build(&grid, &desc, s->pos, 0, s->n);
    out.build = seconds_now() - start;
    out.cells = grid.needed_cells ? grid.needed_cells : grid.cell_count;
    out.bytes = ugrid_bytes(&grid);
    if (result != UGRID_OK) out.why = "refused: too many cells";
    start = seconds_now();
    if (result == UGRID_OK)
        result = ugrid_count_pairs(&grid, (float)s->radius, &out.pairs);
    if (result != UGRID_OK && result != UGRID_TOO_MANY_CELLS)
        stop(1, "%s: %s", way_name[way], ugrid_result_text(result));
    out.search = seconds_now() - start;
    ugrid_free(&grid);
    return out;
}

/* A tree of points, and a sphere around each of them. LBVH_HALF: each pair once. */
static outcome by_tree(const stadium *s)
{
    lbvh tree;
    lbvh_desc desc;
    lbvh_queries queries;
    outcome out = {0, 0, 0, 0, 0, NULL};
    int32_t *count = (int32_t *)zeros((size_t)s->n, sizeof *count);
    int32_t i;
    double start = seconds_now();
    memset(&tree, 0, sizeof tree);
    memset(&desc, 0, sizeof desc);
    memset(&queries, 0, sizeof queries);
    desc.kind = LBVH_POINTS;
    MUST(lbvh, lbvh_build(&tree, &desc, s->pos, 0, s->n), "building the tree");
    out.build = seconds_now() - start;
    out.bytes = lbvh_bytes(&tree);
    out.cells = tree.n;
    start = seconds_now();
    queries.kind = LBVH_POINTS;
    queries.flags = LBVH_HALF | LBVH_PLACES;
    queries.radius = (float)s->radius;
    MUST(lbvh, lbvh_count_overlaps(&tree, &queries, count), "searching the tree");
    for (i = 0; i < s->n; i++) out.pairs += count[i];
    out.search = seconds_now() - start;
    lbvh_free(&tree);
    free(count);
    return out;
}

/* -------------------------------------------------------------------------------------------------
   >>table
   ---------------------------------------------------------------------------------------------- */

/* Distance tests that the grid AS_MANY would take, about: all pairs of the teapot, in as many cells
   as it spans. */
static double crowd_tests(const stadium *s)
{
    double const cell = cbrt(stadium_volume(s) / s->n), in_cells = fmax(1, pow(2 / cell, 3));
    return (double)s->n * (double)s->n / fmin(in_cells, (double)s->n);
}

static void print_row(const stadium *s, int way, const outcome *o)
{
    printf("%6g  %-8s", s->ratio, way_name[way]);
    if (o->pairs == -1) printf("  %14.3g cells: %s\n", (double)o->cells, o->why);
    else if (o->pairs == -2)
        printf("  not run: about %.1g tests of distances\n", crowd_tests(s));
    else
        printf("  %9lld %12.1f %10.2f %11.2f %10lld\n", (long long)o->cells, (double)o->bytes / 1e6,
               1e3 * o->build, 1e3 * o->search, (long long)o->pairs);
}

/* All ways in one stadium; they must find as many pairs. Returns the pairs. */
static int64_t run_stadium(const stadium *s)
{
    outcome best[WAYS];
    int64_t pairs = -1;
    int way, turn;
    for (way = 0; way < WAYS; way++) {
        for (turn = 0; turn < 3; turn++) {
            outcome const o = way == TREE ? by_tree(s) : by_grid(s, way);
            if (turn == 0 || o.build + o.search < best[way].build + best[way].search)
                best[way] = o;
            if (o.pairs < 0 || o.search > 0.5) break;
            if (pairs < 0) pairs = o.pairs;
            if (o.pairs != pairs)
                stop(1, "%s finds %lld pairs, not %lld", way_name[way], (long long)o.pairs,
                     (long long)pairs);
        }
        if (way == CELLS && crowd_tests(s) > s->most_tests) {
            memset(&best[AS_MANY], 0, sizeof best[AS_MANY]);
            best[AS_MANY].pairs = -2;
            print_row(s, way, &best[way]);
            print_row(s, ++way, &best[AS_MANY]);
            continue;
        }
        print_row(s, way, &best[way]);
    }
    return pairs;
}

#include "stadium_draw.h"

int main(int argc, char **argv)
{
    static const double ratio[] = {1, 10, 100, 1000};
    const char *out = "stadium.png";
    int32_t n = 20000, seed = 1;
    double most_tests = 2e9;
    option_line const table[] = {
        INT("-n", "N", &n, 100, 10000000, "particles of the teapot (default 20000)"),
        INT("--seed", "N", &seed, 0, INT_MAX, "of their positions (default 1)"),
        DOUBLE("--tests", "T", &most_tests, 0, 1e15,
               "the most tests that `as many` may take (default 2e9)"),
        TEXT("--out", "FILE", &out, "the picture (default stadium.png)"),
        OPTIONS_END};
    int64_t pairs[4];
    int k;
    options_read(argc, argv, table, NULL, "A teapot in a stadium.", "-n 100000");
    printf("%6s  %-8s  %9s %12s %10s %11s %10s\n", "times", "", "cells", "megabytes", "build, ms",
           "search, ms", "pairs");
    for (k = 0; k < 4; k++) {
        stadium s = stadium_new(n, ratio[k], seed);
        s.most_tests = most_tests;
        pairs[k] = run_stadium(&s);
        if (k == 1) draw_stadium(&s, out);
        stadium_free(&s);
    }
    printf("figures: n %ld pairs %lld %lld %lld %lld\n", (long)n, (long long)pairs[0],
           (long long)pairs[1], (long long)pairs[2], (long long)pairs[3]);
    return 0;
}
