/* test_ugrid_filter.c - grid.filter of ugrid.h: radii, masks, exclusions, sets that see each other.
   SPDX-License-Identifier: MIT OR Unlicense

   The oracle is brute force over all pairs by the rule that the header states, written out here. On
   a lattice of short binary fractions no operation rounds, and many pairs are exactly at their
   reach. The order of a row is that of an unfiltered one with the largest reach. */

#define STB_DS_IMPLEMENTATION
#include <stb/stb_ds.h>

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define TESTED ugrid
#define SHARE 1
#include "../../common/testing.h"

enum { MOST = 90 };
enum { RADII = 1, MASKS = 2, EXCLUDE = 4, SETS = 8, ALL = 16, INVALID = 32 };

typedef struct scene {
    ugrid_desc desc;
    int32_t n, rows;
    real pos[3 * MOST], radii[MOST], radius;
    uint32_t masks[MOST];
    int64_t start[MOST + 1];
    int32_t exclude[3 * MOST];
    uint8_t sets[MOST];
    ugrid_filter filter;
    uint8_t truth[MOST * MOST];     /* 1: row i lists j in a full list */
} scene;

static double along(const scene *s, int a, int32_t i, int32_t j)
{
    double const length = (double)(s->desc.max[a] - s->desc.min[a]);
    double gap = fabs((double)s->pos[s->desc.dim * i + a] - (double)s->pos[s->desc.dim * j + a]);
    if (!s->desc.periodic[a]) return gap;
    gap = fmod(gap, length);
    return gap < length - gap ? gap : length - gap;
}

static int excluded(const scene *s, int32_t i, int32_t j)
{
    int64_t e;
    for (e = s->start[i]; e < s->start[i + 1]; e++)
        if (s->exclude[e] == j) return 1;
    return 0;
}

static int listed(const scene *s, int options, int32_t i, int32_t j)
{
    double square = 0, reach = (double)s->radius;
    int a;
    for (a = 0; a < s->desc.dim; a++) square += along(s, a, i, j) * along(s, a, i, j);
    if (options & RADII) reach += (double)s->radii[i] + (double)s->radii[j];
    if (options & MASKS && !(s->masks[i] & s->masks[j])) return 0;
    if (options & EXCLUDE && (excluded(s, i, j) || excluded(s, j, i))) return 0;
    if (options & SETS && !(s->filter.sees[s->sets[i]] >> s->sets[j] & 1)) return 0;
    return i != j && square <= reach * reach;
}

static void make(scene *s, int options, int dim, int periodic)
{
    int32_t i, j;
    int a, k;
    memset(s, 0, sizeof *s);
    s->n = 2 + roll(MOST - 2);
    s->radius = (real)0.125 * (real)(1 + roll(3));
    s->desc.dim = dim;
    s->desc.cell = (real)0.25;
    s->desc.slots = 4 * MOST;
    for (a = 0; a < dim; a++) {
        s->desc.max[a] = (real)(2 + a) / 2;
        s->desc.periodic[a] = periodic >> a & 1;
    }
    s->rows = roll(3) ? s->n : 1 + roll(s->n);
    s->desc.rows = s->rows;
    for (i = 0; i < s->n; i++) {
        for (a = 0; a < dim; a++) s->pos[dim * i + a] = (real)0.0625 * (real)roll(16 + 8 * a);
        s->radii[i] = (real)0.03125 * (real)roll(4);
        s->masks[i] = (uint32_t)roll(8) | (uint32_t)roll(2) << 31;
        s->sets[i] = (uint8_t)(roll(2) ? roll(3) : 31);
        s->start[i + 1] = s->start[i];
        for (k = roll(4); k > 0; k--) s->exclude[s->start[i + 1]++] = roll(s->n);
    }
    for (i = roll(5); options & INVALID && i < s->n; i += 1 + roll(9))
        s->pos[dim * i + roll(dim)] = roll(2) ? REAL_NAN : REAL_INFINITY;
    s->desc.skip_invalid = options & INVALID;
    for (k = 0; k < 32; k++) s->filter.sees[k] = (uint32_t)roll(16) | (uint32_t)roll(2) << 31;
    if (options & RADII) s->filter.radii = s->radii, s->filter.largest = (real)0.125;
    if (options & MASKS) s->filter.masks = s->masks;
    if (options & EXCLUDE) s->filter.exclude_start = s->start, s->filter.exclude = s->exclude;
    if (options & SETS) s->filter.sets = s->sets;
    for (i = 0; i < s->n; i++)
        for (j = 0; j < s->n; j++) s->truth[i * s->n + j] = (uint8_t)listed(s, options, i, j);
}

static uint8_t met[MOST * MOST];
static int meet(void *user, int32_t i, int32_t j)
{
    met[i * *(int32_t *)user + j]++;
    return 0;
}
static int meet_row(void *user, int32_t i, const int32_t *ids, int32_t count)
{
    int32_t k;
    for (k = 0; k < count; k++) (void)meet(user, i, ids[k]);
    return 0;
}

/* Full: the truth of the rows there are. Half: each pair in one of the two rows, where one of both
   directions is listed; with a ghost in that of the local. UGRID_HALF_IDS: in the row of the lower
   id. */
static void check_met(const scene *s, int half)
{
    int32_t i, j;
    for (i = 0; i < s->n; i++) {
        for (j = 0; j < s->n; j++) {
            int const here = met[i * s->n + j], there = met[j * s->n + i];
            int const either = s->truth[i * s->n + j] | s->truth[j * s->n + i];
            if (half == UGRID_HALF_IDS) CHECK(here == (i < s->rows && i < j && either));
            else if (!half) CHECK(here == (i < s->rows && s->truth[i * s->n + j]));
            else if (i >= s->rows) CHECK(here == 0);
            else if (j >= s->rows) CHECK(here == either);
            else if (i != j) CHECK(here + there == either);
            else CHECK(here == 0);
        }
    }
}

/* A row is a part of the unfiltered row, in the same order. */
static void check_order(const int32_t *row, int64_t count, const int32_t *wide, int64_t length)
{
    int64_t k, at = 0;
    for (k = 0; k < count; k++, at++) {
        while (at < length && wide[at] != row[k]) at++;
        CHECK(at < length);
    }
}

static void check_searches(const scene *s, ugrid *g, int flags)
{
    static int32_t ids[MOST * MOST], all[MOST * MOST], counts[MOST];
    static int64_t offsets[MOST + 1], wide[MOST + 1];
    int const half = flags & (UGRID_HALF | UGRID_HALF_IDS), places = (flags & UGRID_PLACES) != 0;
    int32_t const rows = places ? s->n : s->rows;
    int32_t n = s->n, r;
    int64_t needed, pairs, e;
    ugrid_filter const none = {NULL, 0, NULL, NULL, NULL, NULL, {0}};
    g->filter = none;
    CHECK_RESULT(ugrid_neighbors(g, s->radius + (real)0.25, flags, wide, all, MOST * MOST, &needed),
                 UGRID_OK);
    g->filter = s->filter;
    CHECK_RESULT(ugrid_neighbors(g, s->radius, flags, offsets, ids, MOST * MOST, &needed),
                 UGRID_OK);
    CHECK_RESULT(ugrid_count_neighbors(g, s->radius, flags, counts), UGRID_OK);
    CHECK_RESULT(ugrid_count_pairs(g, s->radius, &pairs), UGRID_OK);
    CHECK(offsets[rows] == needed && (!half || pairs == needed));
    memset(met, 0, sizeof met);
    for (r = 0; r < rows; r++) {
        CHECK(counts[r] == offsets[r + 1] - offsets[r]);
        check_order(ids + offsets[r], counts[r], all + wide[r], wide[r + 1] - wide[r]);
        for (e = offsets[r]; e < offsets[r + 1]; e++)
            (void)meet(&n, places ? ugrid_id(g, r) : r, places ? ugrid_id(g, ids[e]) : ids[e]);
    }
    check_met(s, half);
    if (places) return;
    memset(met, 0, sizeof met);
    CHECK_RESULT(ugrid_each_pair(g, s->radius, flags, meet, &n), UGRID_OK);
    check_met(s, half);
    memset(met, 0, sizeof met);
    CHECK_RESULT(ugrid_each_row(g, s->radius, flags, meet_row, &n), UGRID_OK);
    check_met(s, half);
}

static void check_arrays(const scene *s, ugrid *g)
{
    ugrid_pair *pairs = NULL;
    int32_t n = s->n;
    ptrdiff_t k;
    memset(met, 0, sizeof met);
    CHECK_RESULT(ugrid_arr_pairs(g, s->radius, &pairs), UGRID_OK);
    for (k = 0; k < arrlen(pairs); k++) (void)meet(&n, pairs[k].i, pairs[k].j);
    check_met(s, 1);
    arrfree(pairs);
}

static void test_filter(void **state)
{
    static scene s;
    int options, dim, periodic, method, flags;
    (void)state;
    dice = wl_seed(31);
    for (options = 1; options < ALL; options++)
        for (dim = 2; dim <= 3; dim++)
            for (periodic = 0; periodic < 1 << dim; periodic += small_run() ? 3 : 1)
                for (method = UGRID_COUNT; method <= UGRID_LIST_PACKED; method++) {
                    ugrid g = {0};
                    make(&s, options | (method + options) % 3 / 2 * INVALID, dim, periodic);
                    s.desc.method = (ugrid_method)method;
                    s.desc.cell_order = roll(4) ? UGRID_ROWS : UGRID_MORTON;
                    s.desc.no_records = roll(4) == 0;
                    CHECK_RESULT(ugrid_build(&g, &s.desc, s.pos, 0, s.n), UGRID_OK);
                    for (flags = 0; flags < 4; flags++) check_searches(&s, &g, flags);
                    check_searches(&s, &g, UGRID_HALF_IDS);
                    check_arrays(&s, &g);
                    CHECK_RESULT(ugrid_build(&g, &s.desc, s.pos, 0, s.n), UGRID_OK);
                    CHECK(!g.filter.radii && !g.filter.masks && !g.filter.sets);
                    ugrid_free(&g);
                }
}

/* The reach of two particles is the sum of their radii alone, where the radius is 0. */
static void test_radii_alone(void **state)
{
    real const pos[9] = {0, 0, 0, (real)0.5, 0, 0, 1, 0, 0}, radii[3] = {(real)0.25, (real)0.25, 0};
    ugrid g = {0};
    ugrid_desc d;
    int64_t pairs, offsets[4];
    int32_t ids[4];
    (void)state;
    memset(&d, 0, sizeof d);
    d.cell = (real)0.5;
    CHECK_RESULT(ugrid_build(&g, &d, pos, 0, 3), UGRID_OK);
    CHECK_RESULT(ugrid_count_pairs(&g, 0, &pairs), UGRID_BAD_RADIUS);
    g.filter.radii = radii;
    g.filter.largest = (real)0.25;
    CHECK_RESULT(ugrid_count_pairs(&g, 0, &pairs), UGRID_OK);
    CHECK(pairs == 1);
    CHECK_RESULT(ugrid_neighbors(&g, 0, UGRID_HALF_IDS, offsets, ids, 4, &pairs), UGRID_OK);
    CHECK(pairs == 1 && offsets[1] == 1 && ids[0] == 1);
    CHECK_RESULT(ugrid_neighbors(&g, 0, UGRID_HALF_IDS | UGRID_HALF, offsets, ids, 4, &pairs),
                 UGRID_BAD_OPTION);
    CHECK_RESULT(ugrid_neighbors(&g, 0, UGRID_HALF_IDS | UGRID_PLACES, offsets, ids, 4, &pairs),
                 UGRID_BAD_OPTION);
    g.filter.largest = 0;
    CHECK_RESULT(ugrid_count_pairs(&g, 0, &pairs), UGRID_BAD_RADIUS);
    ugrid_free(&g);
}

/* What is refused, by every search that reads the filter; others do not read it. */
static void test_bad_filters(void **state)
{
    real const pos[6] = {0, 0, 0, (real)0.5, 0, 0}, good[2] = {0, 1}, bad[2] = {0, -1};
    real const nan[2] = {0, REAL_NAN};
    int32_t const exclude[1] = {1};
    int64_t const start[3] = {0, 1, 1};
    ugrid g = {0};
    ugrid_desc d;
    int64_t pairs, offsets[3];
    int32_t ids[4], found;
    int k;
    (void)state;
    memset(&d, 0, sizeof d);
    d.cell = (real)0.5;
    CHECK_RESULT(ugrid_build(&g, &d, pos, 0, 2), UGRID_OK);
    for (k = 0; k < 7; k++) {
        ugrid_result const want = k == 6 ? UGRID_OK : k == 5 ? UGRID_BAD_RADIUS : UGRID_BAD_FILTER;
        memset(&g.filter, 0, sizeof g.filter);
        g.filter.radii = k == 0 ? good : k == 1 ? bad : k == 2 ? nan : k == 5 ? good : NULL;
        g.filter.largest = k == 0 ? (real)0.5 : k == 5 ? REAL_LARGEST : 1;
        if (k == 3) g.filter.exclude = exclude;
        if (k == 4 || k == 6) g.filter.exclude_start = start;
        if (k == 6) g.filter.exclude = exclude;
        CHECK_RESULT(ugrid_count_pairs(&g, 1, &pairs), want);
        CHECK_RESULT(ugrid_neighbors(&g, 1, 0, offsets, ids, 4, &pairs), want);
        CHECK_RESULT(ugrid_count_neighbors(&g, 1, 0, ids), want);
        CHECK_RESULT(ugrid_each_row(&g, 1, 0, meet_row, NULL), want);
        CHECK_RESULT(ugrid_each_pair(&g, 1, 0, meet, NULL), want);
        CHECK_RESULT(ugrid_query(&g, pos, 1, ids, 4, &found), UGRID_OK);
        CHECK(found == 2);
        CHECK_RESULT(ugrid_neighbors_at(&g, pos, 0, 2, 1, offsets, ids, 4, &pairs), UGRID_OK);
        CHECK(pairs == 4);
    }
    ugrid_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_radii_alone),
        cmocka_unit_test(test_bad_filters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
