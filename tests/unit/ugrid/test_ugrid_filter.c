/* test_ugrid_filter.c - grid.filter of ugrid.h: radii, masks, exclusions, sets that see each other.
   SPDX-License-Identifier: MIT OR Unlicense

   The oracle is brute force over all pairs by the rule that the header states, written out here. On
   a lattice of short binary fractions no operation rounds, and many pairs are exactly at their
   reach. The order of a row is that of an unfiltered one with the largest reach. Crowds, in which
   searches test candidates in pieces, are tested with and without filters. */

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
    real pos[3 * MOST], radii[MOST], apart[3 * MOST], radius;
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
    for (i = 0; i < 3 * s->n; i++) s->apart[i] = i % 3 == 1 ? s->radii[i / 3] : REAL_NAN;
    if (options & RADII) s->filter.radii = s->radii, s->filter.largest = (real)0.125;
    if (options & RADII && s->n % 2) {
        s->filter.radii = s->apart + 1;
        s->filter.radii_stride = 3 * sizeof *s->apart;
    }
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
    ugrid_filter const none = {NULL, 0, NULL, NULL, NULL, NULL, {0}, 0};
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
                    s.desc.unbounded = periodic == 0 && roll(2);
                    s.desc.buckets = 1024; /* more than a search visits: rows keep their order */
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
    for (k = 0; k < 8; k++) {
        ugrid_result const want = k == 6 ? UGRID_OK : k == 5 ? UGRID_BAD_RADIUS : UGRID_BAD_FILTER;
        memset(&g.filter, 0, sizeof g.filter);
        g.filter.radii = k == 1 ? bad : k == 2 ? nan : k == 0 || k == 5 || k == 7 ? good : NULL;
        g.filter.radii_stride = k == 7; /* no multiple of a number */
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

/* ---- crowds: more candidates than a search copies at a time ---- */

enum { CROWD = 5000, CROWD_PAIRS = 80 * CROWD };

/* Points of a lattice of 1/64 in a box of 3 cells along each axis; most are in one cell, or in
   a periodic box in the two at a seam. Others are in a cell beside it, and anywhere.
   `near`: by pairs of ids, who is within the largest reach of whom. */
static struct crowd {
    int32_t n, rows;
    int32_t at[3 * CROWD];      /* the positions in lattice steps */
    real pos[3 * CROWD], radii[CROWD];
    uint32_t masks[CROWD];
    ugrid_desc desc;
    int32_t begin[CROWD + 2], near_id[CROWD_PAIRS];
    int32_t square[CROWD_PAIRS]; /* of their distance, in lattice steps */
    int32_t length[CROWD];      /* of the rows that are wanted, by id */
    int32_t wanted[CROWD * 40]; /* 40 places a row, ascending */
    int32_t names[CROWD_PAIRS], counts[CROWD];
    int64_t offsets[CROWD + 1];
} crowd;

enum { CROWD_REACH = 6, CROWD_SIDE = 192 }; /* the largest reach, and the box, in lattice steps */

/* The square of a distance; beyond the largest reach any number that is beyond it. */
static int32_t crowd_square(int32_t i, int32_t j)
{
    int32_t sum = 0, a;
    for (a = 0; a < 3 && sum <= CROWD_REACH * CROWD_REACH; a++) {
        int32_t gap = crowd.at[3 * i + a] - crowd.at[3 * j + a];
        if (gap < 0) gap = -gap;
        if (crowd.desc.periodic[a] && gap > CROWD_SIDE / 2) gap = CROWD_SIDE - gap;
        sum += gap * gap;
    }
    return sum;
}

/* By brute force, the rows of ids. */
static void crowd_make(int32_t n, int periodic)
{
    int32_t i, j, a, count = 0;
    memset(&crowd, 0, sizeof crowd);
    crowd.n = n;
    crowd.desc.cell = 1;
    for (a = 0; a < 3; a++) crowd.desc.max[a] = 3, crowd.desc.periodic[a] = periodic;
    for (i = 0; i < n; i++) {
        int const kind = roll(16);
        for (a = 0; a < 3; a++)
            crowd.at[3 * i + a] = roll(kind == 0 ? 192 : 64);
        for (a = 0; kind > 0 && a < 3; a++) crowd.at[3 * i + a] += 128;
        if (kind > 0) crowd.at[3 * i] -= kind == 1 ? 128 : 64;
        if (periodic) crowd.at[3 * i] = (crowd.at[3 * i] + 96) % CROWD_SIDE;
        for (a = 0; a < 3; a++) crowd.pos[3 * i + a] = (real)crowd.at[3 * i + a] / 64;
        crowd.radii[i] = (real)roll(3) / 64;
        crowd.masks[i] = (uint32_t)(1 + roll(7));
    }
    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) {
            int32_t const square = crowd_square(i, j);
            if (i == j || square > CROWD_REACH * CROWD_REACH) continue;
            CHECK(count < CROWD_PAIRS);
            crowd.near_id[count] = j;
            crowd.square[count++] = square;
        }
        crowd.begin[i + 1] = count;
    }
}

/* Does the row of i list near pair e? `half` rows: of the lower place, or of the local. */
static int crowd_lists(const ugrid *g, const int32_t *place, int flags, int32_t i, int32_t e)
{
    int32_t const j = crowd.near_id[e];
    int32_t reach = 2;
    if (g->filter.radii) reach += (int32_t)(64 * (crowd.radii[i] + crowd.radii[j]));
    if (g->filter.masks && !(crowd.masks[i] & crowd.masks[j])) return 0;
    if (i >= g->rows || crowd.square[e] > reach * reach) return 0;
    if (flags & UGRID_HALF_IDS) return j > i;
    return !(flags & UGRID_HALF) || j >= g->rows || place[j] > place[i];
}

/* The places that each row must have, in their order. */
static void crowd_want(const ugrid *g, int flags)
{
    static int32_t place[CROWD];
    int32_t k, e;
    for (k = 0; k < g->n; k++) place[ugrid_id(g, k)] = k;
    memset(crowd.length, 0, sizeof crowd.length);
    for (k = 0; k < g->n; k++) {
        int32_t const j = ugrid_id(g, k);
        for (e = crowd.begin[j]; e < crowd.begin[j + 1]; e++) { /* near pairs are symmetric */
            int32_t const i = crowd.near_id[e];
            int32_t back = crowd.begin[i];
            while (crowd.near_id[back] != j) back++;
            if (!crowd_lists(g, place, flags, i, back)) continue;
            CHECK(crowd.length[i] < 40);
            crowd.wanted[40 * i + crowd.length[i]++] = k;
        }
    }
}

static int crowd_row(void *user, int32_t row, const int32_t *names, int32_t count)
{
    CHECK(row < *(const int32_t *)user && crowd.counts[row] + count <= 40);
    memcpy(crowd.names + 40 * (size_t)row + crowd.counts[row], names,
           (size_t)count * sizeof *names);
    crowd.counts[row] += count;
    return 0;
}

/* One row: `got` are its names. */
static void crowd_check_row(const ugrid *g, int flags, int32_t row, const int32_t *got,
                            int32_t count)
{
    int const places = flags & UGRID_PLACES;
    int32_t const id = places ? ugrid_id(g, row) : row;
    int32_t k;
    CHECK(count == crowd.length[id]);
    for (k = 0; k < count; k++)
        CHECK(got[k] == (places ? crowd.wanted[40 * id + k]
                                : ugrid_id(g, crowd.wanted[40 * id + k])));
}

/* Counts, lists, rows that are passed on, and pairs against what is wanted. */
static void crowd_check(const ugrid *g, int flags)
{
    real const radius = (real)2 / 64;
    int32_t rows = flags & UGRID_PLACES ? g->n : g->rows;
    int64_t needed, total = 0;
    int32_t i;
    crowd_want(g, flags);
    CHECK_RESULT(ugrid_count_neighbors(g, radius, flags, crowd.counts), UGRID_OK);
    CHECK_RESULT(ugrid_neighbors(g, radius, flags, crowd.offsets, crowd.names, CROWD_PAIRS,
                                 &needed), UGRID_OK);
    for (i = 0; i < rows; total += crowd.counts[i++]) {
        CHECK(crowd.offsets[i] == total && crowd.offsets[i + 1] == total + crowd.counts[i]);
        crowd_check_row(g, flags, i, crowd.names + total, crowd.counts[i]);
    }
    CHECK(needed == total && total > 0);
    memset(crowd.counts, 0, sizeof crowd.counts);
    CHECK_RESULT(ugrid_each_row(g, radius, flags, crowd_row, &rows), UGRID_OK);
    for (i = 0; i < rows; i++)
        crowd_check_row(g, flags, i, crowd.names + 40 * (size_t)i, crowd.counts[i]);
    if (flags != UGRID_HALF) return;
    CHECK_RESULT(ugrid_count_pairs(g, radius, &needed), UGRID_OK);
    CHECK(needed == total);
}

/* Query points in a crowd: as one query each. */
static void crowd_check_points(const ugrid *g)
{
    real const radius = (real)6 / 64;
    int32_t const m = 40;
    int64_t needed;
    int32_t ids[300], found, i;
    CHECK_RESULT(ugrid_neighbors_at(g, crowd.pos, 0, m, radius, crowd.offsets, crowd.names,
                                    CROWD_PAIRS, &needed), UGRID_OK);
    for (i = 0; i < m; i++) {
        CHECK_RESULT(ugrid_query(g, crowd.pos + 3 * i, radius, ids, 300, &found), UGRID_OK);
        CHECK(found == crowd.offsets[i + 1] - crowd.offsets[i]);
        CHECK(found == crowd.begin[i + 1] - crowd.begin[i] + 1);
        CHECK(memcmp(ids, crowd.names + crowd.offsets[i], (size_t)found * sizeof *ids) == 0);
    }
}

/* All searches of one crowd: with and without ghosts; no filter, radii, radii and masks. */
static void crowd_search(int32_t rows, int filter)
{
    static int const flags[] = {0, UGRID_HALF, UGRID_PLACES, UGRID_HALF | UGRID_PLACES,
                                UGRID_HALF_IDS};
    ugrid g = {0};
    int k;
    crowd.desc.rows = rows;
    crowd.desc.method = filter == 1 ? UGRID_SORT : UGRID_COUNT;
    CHECK_RESULT(ugrid_build(&g, &crowd.desc, crowd.pos, 0, crowd.n), UGRID_OK);
    if (filter > 0) g.filter.radii = crowd.radii;
    if (filter > 0) g.filter.largest = (real)2 / 64;
    if (filter > 1) g.filter.masks = crowd.masks;
    for (k = 0; k < COUNT_OF(flags); k++)
        if (!quick_run() || k == filter + (rows ? 2 : 1) || (rows && k == 0))
            crowd_check(&g, flags[k]);
    if (filter == 0) crowd_check_points(&g);
    ugrid_free(&g);
}

static void test_crowds(void **state)
{
    static int32_t const sizes[] = {2400, 2500, CROWD};
    int size, periodic, filter;
    (void)state;
    dice = wl_seed(31);
    for (size = quick_run() ? 0 : 1; size < (quick_run() ? 1 : SANITIZED ? 2 : 3); size++)
        for (periodic = 0; periodic < 2; periodic++) {
            crowd_make(sizes[size], periodic);
            for (filter = 0; filter < 3; filter++) {
                if (quick_run() && (filter + periodic) % 2) continue;
                crowd_search(0, filter);
                crowd_search(90, filter);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_radii_alone),
        cmocka_unit_test(test_bad_filters),
        cmocka_unit_test(test_crowds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
