/* test_nlist_calls.c - tests of the serial part of nlist.h: refusals, memory, files, nlist_validate, pairs, names, triangles. See
   nlist_oracle.h, and test_nlist.c for rows, sums and history.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/test_nlist_calls.c -o test_nlist_calls -lcmocka -lm && ./test_nlist_calls
       (add -DUGRID_REAL=double -DLBVH_REAL=double -DNLIST_REAL=double for the double build; packages: libcmocka-dev libstb-dev)

   Environment: as in test_nlist.c. */

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#include "nlist.h"
#include "nlist_oracle.h"
#include "testing.h"

/* ------------------------------------------------------------------------------------------------
   Refusals
   ------------------------------------------------------------------------------------------------ */

/* Four particles: 0, 1 and 2 near each other, 3 near 2. */
static const real four[12] = {0, 0, 0, (real)0.5, 0, 0, 0, (real)0.5, 0, 0, (real)1.25, 0};

static nlist_desc plain_desc(void)
{
    nlist_desc d;
    memset(&d, 0, sizeof d);
    d.radius = 1;
    return d;
}

/* A list of them with a history that has been written into, events, and memory of a heap (NULL: malloc). */
static nlist_desc full_list(nlist *list, nlist_layout layout, heap *h)
{
    nlist_desc d = plain_desc();
    int32_t i;
    int step;
    d.layout = layout;
    d.half = 1;
    d.history = 12;
    d.events = 1;
    if (h) d.allocator = allocator_of(h);
    for (step = 0; step < 2; step++) {
        real pos[12];
        memcpy(pos, four, sizeof pos);
        pos[3] += step ? (real)0.75 : 0; /* then 1 and 2 part */
        CHECK_RESULT(nlist_build_brute(list, &d, pos, 0, 4), NLIST_OK);
        for (i = 0; i < 4; i++) {
            nlist_each e = nlist_of(list, i);
            while (nlist_next(&e)) oracle_write(e.history, 12, (uint32_t)(10 * i + e.id + 1));
        }
    }
    CHECK(list->total == 2 && list->event_count[NLIST_ENDED] == 2);
    return d;
}

/* After a refusal the list is as it was, and fit for use. */
static void check_still_there(nlist *list, const oracle_snapshot *before)
{
    CHECK_FINE(oracle_check_unchanged(before, list));
    CHECK_RESULT(nlist_validate(list), NLIST_OK);
}

typedef struct refusal { nlist_result want; void (*spoil)(nlist_desc *); } refusal;

static const int64_t not_from_zero[5] = {1, 1, 1, 1, 1}, descending[5] = {0, 2, 1, 1, 1}, none_excluded[5] = {0, 0, 0, 0, 0};
static const int32_t nobody[2] = {0, 0};

#define SPOIL(name, statement) static void name(nlist_desc *d) { statement; }
SPOIL(dim_1, d->dim = 1)
SPOIL(dim_4, d->dim = 4)
SPOIL(dim_negative, d->dim = -3)
SPOIL(radius_negative, d->radius = -1)
SPOIL(radius_nan, d->radius = REAL_NAN)
SPOIL(radius_infinite, d->radius = REAL_INFINITY)
SPOIL(radius_square_infinite, d->radius = REAL_LARGEST)
SPOIL(radius_square_denormal, d->radius = IS_FLOAT ? (real)1e-20 : (real)1e-160)
SPOIL(radius_and_skin_infinite, d->radius = d->skin = REAL_LARGEST)
SPOIL(skin_negative, d->skin = (real)-0.1)
SPOIL(skin_nan, d->skin = REAL_NAN)
SPOIL(skin_infinite, d->skin = REAL_INFINITY)
SPOIL(layout_4, d->layout = (nlist_layout)4)
SPOIL(layout_negative, d->layout = (nlist_layout)-1)
SPOIL(width_negative, d->layout = NLIST_STATIC; d->width = -1)
SPOIL(width_large, d->layout = NLIST_STATIC; d->width = 1025)
SPOIL(width_hybrid_negative, d->layout = NLIST_HYBRID; d->width = -1)
SPOIL(width_hybrid_large, d->layout = NLIST_HYBRID; d->width = 1025)
SPOIL(history_negative, d->history = -1)
SPOIL(history_large, d->history = 4097)
SPOIL(capacity_negative, d->capacity = -1)
SPOIL(box_missing, d->periodic[1] = 1)
SPOIL(box_inverted, d->periodic[0] = 1; d->min[0] = 1; d->max[0] = -9)
SPOIL(box_nan, d->periodic[2] = 1; d->min[2] = REAL_NAN; d->max[2] = 9)
SPOIL(box_infinite, d->periodic[2] = 1; d->max[2] = REAL_INFINITY)
SPOIL(box_too_long, d->periodic[2] = 1; d->min[2] = -REAL_LARGEST; d->max[2] = REAL_LARGEST)
SPOIL(exclude_alone, d->exclude = nobody)
SPOIL(exclude_start_alone, d->exclude_start = none_excluded)
SPOIL(alloc_alone, d->allocator.free = NULL; d->allocator.alloc = heap_alloc)
SPOIL(free_alone, d->allocator.alloc = NULL; d->allocator.free = heap_free)
SPOIL(cuda_alloc_alone, d->cuda_allocator.alloc = (void *(*)(size_t, struct CUstream_st *, void *))(size_t)1)
SPOIL(cuda_free_alone, d->cuda_allocator.free = (void (*)(void *, size_t, struct CUstream_st *, void *))(size_t)1)
/* From here on the build has to look at the source or at the list that is there. */
SPOIL(radius_zero, d->radius = 0)
SPOIL(exclude_not_from_zero, d->exclude = nobody; d->exclude_start = not_from_zero)
SPOIL(exclude_descending, d->exclude = nobody; d->exclude_start = descending)
SPOIL(period_short, d->periodic[0] = 1; d->min[0] = -1; d->max[0] = (real)0.96875)

static const refusal refusals[] = {
    {NLIST_BAD_DIM, dim_1}, {NLIST_BAD_DIM, dim_4}, {NLIST_BAD_DIM, dim_negative},
    {NLIST_BAD_RADIUS, radius_negative}, {NLIST_BAD_RADIUS, radius_nan}, {NLIST_BAD_RADIUS, radius_infinite},
    {NLIST_BAD_RADIUS, radius_square_infinite}, {NLIST_BAD_RADIUS, radius_square_denormal},
    {NLIST_BAD_RADIUS, radius_and_skin_infinite},
    {NLIST_BAD_SKIN, skin_negative}, {NLIST_BAD_SKIN, skin_nan}, {NLIST_BAD_SKIN, skin_infinite},
    {NLIST_BAD_OPTION, layout_4}, {NLIST_BAD_OPTION, layout_negative}, {NLIST_BAD_WIDTH, width_negative},
    {NLIST_BAD_WIDTH, width_large}, {NLIST_BAD_WIDTH, width_hybrid_negative}, {NLIST_BAD_WIDTH, width_hybrid_large},
    {NLIST_BAD_HISTORY, history_negative}, {NLIST_BAD_HISTORY, history_large}, {NLIST_BAD_CAPACITY, capacity_negative},
    {NLIST_BAD_BOX, box_missing}, {NLIST_BAD_BOX, box_inverted}, {NLIST_BAD_BOX, box_nan}, {NLIST_BAD_BOX, box_infinite},
    {NLIST_BAD_BOX, box_too_long}, {NLIST_BAD_EXCLUSIONS, exclude_alone}, {NLIST_BAD_EXCLUSIONS, exclude_start_alone},
    {NLIST_BAD_ALLOCATOR, alloc_alone}, {NLIST_BAD_ALLOCATOR, free_alone}, {NLIST_BAD_ALLOCATOR, cuda_alloc_alone},
    {NLIST_BAD_ALLOCATOR, cuda_free_alone},
    {NLIST_BAD_RADIUS, radius_zero}, {NLIST_BAD_EXCLUSIONS, exclude_not_from_zero}, {NLIST_BAD_EXCLUSIONS, exclude_descending},
    {NLIST_BAD_PERIOD, period_short},
};

enum { REFUSALS_OF_BUILDS = 4 };

static void test_bad_descs(void **state)
{
    static const int32_t pair[2] = {0, 1};
    int k, layout;
    (void)state;
    for (layout = 0; layout < 4; layout++) for (k = 0; k < COUNT_OF(refusals); k++) {
        int const early = k < COUNT_OF(refusals) - REFUSALS_OF_BUILDS;
        nlist list = {0}, empty = {0};
        oracle_snapshot before;
        nlist_desc out, d = full_list(&list, (nlist_layout)layout, NULL);
        oracle_take(&before, &list);
        refusals[k].spoil(&d);
        CHECK_RESULT(nlist_defaults(&out, &d), early ? refusals[k].want : NLIST_OK);
        CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), refusals[k].want);
        check_still_there(&list, &before);
        CHECK_RESULT(nlist_build_brute(&empty, &d, four, 0, 4), refusals[k].want);
        CHECK(empty.n == 0 && empty.total == 0);
        if (early) {
            CHECK_RESULT(nlist_build_pairs(&list, &d, pair, 1, 4), refusals[k].want);
            check_still_there(&list, &before);
            CHECK_RESULT(nlist_reserve(&empty, &d, 4, 4), refusals[k].want);
        }
        nlist_free(&empty);
        d = full_list(&list, (nlist_layout)layout, NULL);
        CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
        oracle_drop_snapshot(&before);
        nlist_free(&list);
    }
}

/* What a list with history cannot become: its bytes and the rows they belong to have to go on. */
static void test_bad_changes(void **state)
{
    nlist list = {0};
    lbvh tree = {0};
    lbvh_desc t;
    nlist_mesh mesh;
    oracle_snapshot before;
    nlist_desc d = full_list(&list, NLIST_HYBRID, NULL), other;
    (void)state;
    oracle_take(&before, &list);
    other = d;
    other.history = 8;
    CHECK_RESULT(nlist_build_brute(&list, &other, four, 0, 4), NLIST_BAD_HISTORY);
    other.history = 0;
    CHECK_RESULT(nlist_build_brute(&list, &other, four, 0, 4), NLIST_BAD_HISTORY);
    other = d;
    other.half = 0;
    CHECK_RESULT(nlist_build_brute(&list, &other, four, 0, 4), NLIST_BAD_HISTORY);
    other = d;
    other.dim = 2;
    CHECK_RESULT(nlist_build_brute(&list, &other, four, 3 * sizeof(real), 4), NLIST_BAD_HISTORY);
    memset(&t, 0, sizeof t);
    t.kind = LBVH_TRIANGLES;
    CHECK(lbvh_build(&tree, &t, four, 0, 1) == LBVH_OK);
    memset(&mesh, 0, sizeof mesh);
    mesh.vertices = four;
    mesh.triangles = 1;
    other = d;
    other.layout = NLIST_DYNAMIC;
    CHECK_RESULT(nlist_build_mesh(&list, &other, &tree, &mesh, four, 0, 4), NLIST_BAD_HISTORY);
    check_still_there(&list, &before);
    other.half = 1;
    other.layout = NLIST_COMPACT; /* but that it can */
    CHECK_RESULT(nlist_build_brute(&list, &other, four, 0, 4), NLIST_OK);
    CHECK(oracle_holds(nlist_history(&list, nlist_find(&list, 0, 2)), 12, 3));
    CHECK(oracle_holds(nlist_history(&list, nlist_find(&list, 1, 2)), 12, 0));
    oracle_drop_snapshot(&before);
    lbvh_free(&tree);
    nlist_free(&list);
}

/* A list without memory becomes one that remembers: from then on, and nothing of what was there before counts, of whatever kind. */
static void test_memory_turned_on(void **state)
{
    int was, layout, half, what;
    (void)state;
    for (was = 0; was < 4; was++) for (layout = 0; layout < 4; layout++) for (half = 0; half < 2; half++)
        for (what = 1; what < 4; what++) {
        nlist list = {0};
        lbvh tree = {0};
        lbvh_desc t;
        nlist_mesh mesh;
        nlist_desc d = plain_desc(), other = d;
        int32_t i;
        int round;
        memset(&t, 0, sizeof t);
        memset(&mesh, 0, sizeof mesh);
        t.kind = LBVH_TRIANGLES;
        mesh.vertices = four;
        mesh.triangles = 1;
        CHECK(lbvh_build(&tree, &t, four, 0, 1) == LBVH_OK);
        other.layout = (nlist_layout)was;
        other.half = was & 1;
        if (was == 3) other.dim = 2;
        if (was == 2) CHECK_RESULT(nlist_build_mesh(&list, &d, &tree, &mesh, four, 0, 4), NLIST_OK);
        else CHECK_RESULT(nlist_build_brute(&list, &other, four, 3 * sizeof(real), 4), NLIST_OK);
        d.layout = (nlist_layout)layout;
        d.half = half;
        d.history = what & 1 ? 5 : 0;
        d.events = what & 2;
        for (round = 0; round < 2; round++) {
            CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
            CHECK(list.total == (half ? 4 : 8));
            if (d.events) CHECK(list.event_count[round ? NLIST_PERSISTED : NLIST_BEGUN] == 4 && list.event_count[NLIST_ENDED] == 0);
            for (i = 0; i < 4 && d.history; i++) {
                nlist_each e = nlist_of(&list, i);
                for (; nlist_next(&e); oracle_write(e.history, 5, 3)) CHECK(oracle_holds(e.history, 5, round ? 3 : 0));
            }
        }
        lbvh_free(&tree);
        nlist_free(&list);
    }
}

/* Positions and radii: the first bad particle is named. */
static void test_bad_particles(void **state)
{
    static const real bad[] = {NAN, INFINITY, -INFINITY};
    int k, a, kind;
    int32_t i;
    (void)state;
    for (k = 0; k < COUNT_OF(bad); k++) for (i = 0; i < 4; i++) for (a = 0; a < 3; a++) for (kind = 0; kind < 2; kind++) {
        nlist list = {0};
        real pos[12], radii[4] = {0, 0, 0, 0};
        oracle_snapshot before;
        nlist_desc d = full_list(&list, (nlist_layout)((k + i) % 4), NULL);
        oracle_take(&before, &list);
        memcpy(pos, four, sizeof pos);
        d.radii = radii;
        if (kind) radii[i] = bad[k], radii[3] = bad[k];
        else pos[3 * i + a] = bad[k], pos[11] = bad[k];
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 4), NLIST_NOT_FINITE);
        CHECK(list.bad_id == i);
        check_still_there(&list, &before);
        memcpy(pos, four, sizeof pos);
        radii[i] = -1; /* before the other bad one */
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 4), NLIST_BAD_RADIUS);
        CHECK(list.bad_id == i);
        check_still_there(&list, &before);
        oracle_drop_snapshot(&before);
        nlist_free(&list);
    }
}

static void test_bad_calls(void **state)
{
    static const int32_t pair[4] = {0, 1, 2, 3};
    size_t const one = sizeof(real);
    heap h = {0, 0, 0, 0, 0, 0};
    nlist list = {0};
    ugrid grid = {0};
    lbvh tree = {0};
    oracle_snapshot before;
    nlist_desc d = full_list(&list, NLIST_COMPACT, &h);
    int32_t ids[8], moved = 5;
    int64_t needed = 77;
    char bytes[64];
    (void)state;
    oracle_take(&before, &list);
    CHECK_RESULT(nlist_defaults(NULL, &d), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_brute(NULL, &d, four, 0, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_brute(&list, NULL, four, 0, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_brute(&list, &d, NULL, 0, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, -1), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 2 * one, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 3 * one + 1, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, INT32_MAX - 1022), NLIST_TOO_MANY);
    CHECK_RESULT(nlist_build_pairs(NULL, &d, pair, 2, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_pairs(&list, NULL, pair, 2, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_pairs(&list, &d, NULL, 2, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_pairs(&list, &d, pair, -1, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_pairs(&list, &d, pair, 2, -1), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_pairs(&list, &d, pair, 2, INT32_MAX), NLIST_TOO_MANY);
    CHECK_RESULT(nlist_build_ugrid(NULL, &d, &grid, four, 0, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_ugrid(&list, &d, NULL, four, 0, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_ugrid(&list, NULL, &grid, four, 0, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_lbvh(NULL, &d, &tree, four, 0, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_lbvh(&list, &d, NULL, four, 0, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_lbvh(&list, NULL, &tree, four, 0, 4), NLIST_BAD_ARGUMENT);
    check_still_there(&list, &before);
    CHECK_RESULT(nlist_moved(NULL, four, 0, &moved), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_moved(&list, four, 0, NULL), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_moved(&list, NULL, 0, &moved), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_moved(&list, four, one, &moved), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_moved(&list, four, 0, &moved), NLIST_BAD_SKIN); /* built without */
    CHECK_RESULT(nlist_remap(NULL, ids, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_remap(&list, NULL, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_remap(&list, pair, -1), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_remap(&list, pair, INT32_MAX), NLIST_TOO_MANY);
    CHECK_RESULT(nlist_pairs(NULL, ids, 4, &needed, NULL, 0, NULL), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_pairs(&list, NULL, 4, &needed, NULL, 0, NULL), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_pairs(&list, ids, -1, &needed, NULL, 0, NULL), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_pairs(&list, ids, 4, NULL, NULL, 0, NULL), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_pairs(&list, ids, 4, &needed, NULL, 0, ids), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_pairs(&list, ids, 4, &needed, four, one, ids), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_save(NULL, bytes, 64, &needed), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_save(&list, NULL, 64, &needed), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_save(&list, bytes, -1, &needed), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_save(&list, bytes, 64, NULL), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_load(NULL, &d, bytes, 64), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_load(&list, NULL, bytes, 64), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_load(&list, &d, NULL, 64), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_load(&list, &d, bytes, -1), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_validate(NULL), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_reserve(NULL, &d, 4, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_reserve(&list, &d, -1, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_reserve(&list, &d, 4, -1), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_reserve(&list, &d, INT32_MAX, 4), NLIST_TOO_MANY);
    check_still_there(&list, &before);
    CHECK(h.live_bytes == nlist_bytes(&list) && nlist_bytes(NULL) == 0);
    nlist_free(&list);
    nlist_free(&list);
    nlist_free(NULL);
    CHECK(h.live_blocks == 0 && !h.wrong);
    oracle_drop_snapshot(&before);
}

/* Grids and trees that are not those of the particles. */
static void test_bad_sources(void **state)
{
    nlist list = {0};
    ugrid grid = {0};
    lbvh tree = {0};
    ugrid_desc g;
    lbvh_desc t;
    oracle_snapshot before;
    nlist_desc d = full_list(&list, NLIST_DYNAMIC, NULL);
    (void)state;
    oracle_take(&before, &list);
    CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, four, 0, 4), NLIST_BAD_SOURCE);
    CHECK_RESULT(nlist_build_lbvh(&list, &d, &tree, four, 0, 4), NLIST_BAD_SOURCE);
    memset(&g, 0, sizeof g);
    memset(&t, 0, sizeof t);
    t.kind = LBVH_POINTS;
    g.cell = 1;
    CHECK(ugrid_build(&grid, &g, four, 0, 3) == UGRID_OK && lbvh_build(&tree, &t, four, 0, 3) == LBVH_OK);
    CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, four, 0, 4), NLIST_BAD_SOURCE);
    CHECK_RESULT(nlist_build_lbvh(&list, &d, &tree, four, 0, 4), NLIST_BAD_SOURCE);
    { /* boxes so far from their particles that squares overflow */
        real const far_off = sizeof(real) == 4 ? (real)1e20 : (real)1e160;
        real old[6] = {0}, now[6] = {0};
        old[0] = far_off;
        old[3] = -far_off;
        now[3] = (real)0.1;
        CHECK(lbvh_build(&tree, &t, old, 0, 2) == LBVH_OK);
        CHECK_RESULT(nlist_build_lbvh(&list, &d, &tree, now, 0, 2), NLIST_BAD_SOURCE);
    }
    g.dim = t.dim = 2;
    CHECK(ugrid_build(&grid, &g, four, 3 * sizeof(real), 4) == UGRID_OK);
    CHECK(lbvh_build(&tree, &t, four, 3 * sizeof(real), 4) == LBVH_OK);
    CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, four, 0, 4), NLIST_BAD_DIM);
    CHECK_RESULT(nlist_build_lbvh(&list, &d, &tree, four, 0, 4), NLIST_BAD_DIM);
    g.dim = 3;
    g.periodic[1] = 1; /* the grid's box is too short for the radius */
    g.max[0] = g.max[2] = 1;
    g.max[1] = (real)1.75;
    CHECK(ugrid_build(&grid, &g, four, 0, 4) == UGRID_OK);
    CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, four, 0, 4), NLIST_BAD_PERIOD);
    check_still_there(&list, &before);
    oracle_drop_snapshot(&before);
    ugrid_free(&grid);
    lbvh_free(&tree);
    nlist_free(&list);
}

/* Pairs of ids out of range, or of one particle with itself: the first one is named. */
static void test_bad_pairs(void **state)
{
    static const int32_t good[8] = {0, 1, 2, 1, 3, 0, 1, 0}, odd[] = {-1, 4, INT32_MIN, INT32_MAX, 1};
    int k, at;
    (void)state;
    for (k = 0; k < COUNT_OF(odd); k++) for (at = 0; at < 8; at++) {
        nlist list = {0};
        int32_t pair[8];
        oracle_snapshot before;
        nlist_desc d = full_list(&list, (nlist_layout)(at % 4), NULL);
        oracle_take(&before, &list);
        memcpy(pair, good, sizeof pair);
        pair[at] = odd[k];
        pair[7] = -5;
        CHECK_RESULT(nlist_build_pairs(&list, &d, pair, 4, 4), NLIST_BAD_INDEX);
        CHECK(list.bad_id == (k < 4 || pair[at ^ 1] == 1 ? at / 2 : 3));
        check_still_there(&list, &before);
        oracle_drop_snapshot(&before);
        nlist_free(&list);
    }
}

static void test_defaults(void **state)
{
    nlist_desc d, out;
    (void)state;
    memset(&d, 0, sizeof d);
    d.radius = 2;
    CHECK_RESULT(nlist_defaults(&out, &d), NLIST_OK);
    CHECK(out.dim == 3 && out.layout == NLIST_COMPACT && out.radius == 2 && !out.half && !out.history && !out.events && !out.grow);
    d.layout = NLIST_STATIC;
    CHECK_RESULT(nlist_defaults(&out, &d), NLIST_OK);
    CHECK(out.width == 16);
    d.half = 1;
    CHECK_RESULT(nlist_defaults(&out, &d), NLIST_OK);
    CHECK(out.width == 8);
    d.width = 5;
    d.dim = 2;
    CHECK_RESULT(nlist_defaults(&out, &d), NLIST_OK);
    CHECK(out.width == 5 && out.dim == 2);
}

/* Every result has a text of its own that names what to change. */
static void test_texts(void **state)
{
    static const struct { nlist_result r; const char *word; } texts[] = {
        {NLIST_OK, "well"}, {NLIST_BAD_ARGUMENT, "counts bytes"}, {NLIST_BAD_DIM, "desc.dim"}, {NLIST_BAD_RADIUS, "desc.radius"},
        {NLIST_BAD_SKIN, "desc.skin"}, {NLIST_BAD_OPTION, "desc.layout"}, {NLIST_BAD_WIDTH, "desc.width"},
        {NLIST_BAD_HISTORY, "desc.history"}, {NLIST_BAD_CAPACITY, "desc.capacity"}, {NLIST_BAD_BOX, "desc.min"},
        {NLIST_BAD_PERIOD, "period"}, {NLIST_BAD_SOURCE, "grid"}, {NLIST_BAD_EXCLUSIONS, "desc.exclude"},
        {NLIST_BAD_ALLOCATOR, "desc.allocator"}, {NLIST_BAD_INDEX, "list.bad_id"}, {NLIST_BAD_UNIT, "how.unit"},
        {NLIST_BAD_VALUES, "how.values"}, {NLIST_SUM_OVERFLOW, "how.unit"}, {NLIST_NOT_FINITE, "list.bad_id"},
        {NLIST_TOO_MANY, "2^31"}, {NLIST_ROW_FULL, "list.needed_width"}, {NLIST_LIST_FULL, "list.needed_entries"},
        {NLIST_BUFFER_TOO_SMALL, "size"}, {NLIST_OUT_OF_MEMORY, "desc.allocator"}, {NLIST_NOT_BUILT, "build"},
        {NLIST_BAD_FILE, "format"}, {NLIST_INVALID, "damaged"}, {NLIST_CUDA_ERROR, "cuda_error"},
        {NLIST_BAD_ROWS, "desc.rows"},
    };
    int k, other;
    (void)state;
    CHECK(COUNT_OF(texts) == NLIST_RESULT_COUNT);
    for (k = 0; k < COUNT_OF(texts); k++) {
        const char *text = nlist_result_text(texts[k].r);
        CHECK((int)texts[k].r == k && strstr(text, texts[k].word) != NULL);
        CHECK(strncmp(text, "NLIST_", 6) == 0 && strstr(text, ": ") == strchr(text, ':'));
        for (other = 0; other < k; other++) CHECK(strcmp(text, nlist_result_text((nlist_result)other)) != 0);
    }
    CHECK(strncmp(nlist_result_text(NLIST_NOT_BUILT), "NLIST_NOT_BUILT: ", 17) == 0);
    CHECK(*nlist_result_text((nlist_result)-1) && *nlist_result_text(NLIST_RESULT_COUNT) && *nlist_result_text((nlist_result)1000));
    CHECK(nlist_version() == 10000 * NLIST_VERSION_MAJOR + 100 * NLIST_VERSION_MINOR + NLIST_VERSION_PATCH && nlist_version() > 0);
}

static int never_called(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    (void)i;
    (void)j;
    (void)history;
    (void)own;
    (void)other;
    ++*(int *)user;
    return 0;
}

static void test_bad_sums(void **state)
{
    static const struct { int32_t values; int mode; double unit; nlist_result want; } bad[] = {
        {0, 0, 0, NLIST_BAD_VALUES}, {17, 0, 0, NLIST_BAD_VALUES}, {-1, 0, 0, NLIST_BAD_VALUES},
        {1, -1, 0, NLIST_BAD_OPTION}, {1, 4, 0, NLIST_BAD_OPTION},
        {1, 0, -1, NLIST_BAD_UNIT}, {1, 0, NAN, NLIST_BAD_UNIT}, {1, 0, INFINITY, NLIST_BAD_UNIT},
        {1, NLIST_REDUCE, 0, NLIST_BAD_WIDTH},
    };
    nlist list = {0};
    nlist_desc d = full_list(&list, NLIST_HYBRID, NULL);
    nlist_sums how;
    real sums[4] = {3, 3, 3, 3};
    int called = 0, k;
    (void)state;
    d.width = 3;
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
    for (k = 0; k < COUNT_OF(bad); k++) {
        how.values = bad[k].values;
        how.mode = (nlist_mode)bad[k].mode;
        how.unit = bad[k].unit;
        CHECK_RESULT(nlist_sum(&list, &how, never_called, &called, sums), bad[k].want);
    }
    memset(&how, 0, sizeof how);
    how.values = 1;
    CHECK_RESULT(nlist_sum(NULL, &how, never_called, &called, sums), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_sum(&list, NULL, never_called, &called, sums), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_sum(&list, &how, NULL, &called, sums), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_sum(&list, &how, never_called, &called, NULL), NLIST_BAD_ARGUMENT);
    CHECK(called == 0 && sums[0] == 3 && sums[3] == 3);
    CHECK_RESULT(nlist_sum(&list, &how, never_called, &called, sums), NLIST_OK);
    CHECK(called == 4 && sums[0] == 3 && sums[3] == 3); /* it adds nothing */
    nlist_free(&list);
}

/* A list that is to be the same on both sides needs a unit where the order of a sum of floats is not defined. */
static void test_deterministic_sums(void **state)
{
    int layout, half, mode;
    (void)state;
    for (layout = 0; layout < 4; layout++) for (half = 0; half < 2; half++) for (mode = 0; mode <= NLIST_REDUCE; mode++) {
        int const rows = mode == NLIST_PER_PARTICLE || mode == NLIST_AUTO, slots = mode == NLIST_REDUCE && layout == NLIST_STATIC;
        int const defined = !half && (rows || slots);
        nlist list = {0};
        nlist_desc d = plain_desc();
        nlist_sums how;
        real sums[4] = {0, 0, 0, 0};
        int called = 0;
        d.layout = (nlist_layout)layout;
        d.width = 4;
        d.half = half;
        d.deterministic = 1;
        CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
        how.values = 1;
        how.mode = (nlist_mode)mode;
        how.unit = 0;
        CHECK_RESULT(nlist_sum(&list, &how, never_called, &called, sums), defined ? NLIST_OK : NLIST_BAD_UNIT);
        how.unit = 0.001;
        CHECK_RESULT(nlist_sum(&list, &how, never_called, &called, sums), NLIST_OK);
        nlist_free(&list);
    }
}

/* Nothing in it: never built, or built from nobody. Every call has an answer, and calls that need a list tell the two apart. */
static void check_nothing(nlist *list, int built)
{
    static const int32_t no_names[1] = {0};
    nlist_result const answer = built ? NLIST_OK : NLIST_NOT_BUILT;
    nlist_desc d = plain_desc();
    nlist_sums how;
    int64_t needed = -1;
    int32_t moved = -1;
    int called = 0;
    nlist_each e = nlist_of(list, 0);
    CHECK(!nlist_next(&e) && nlist_find(list, 0, 1) == -1 && nlist_find_pair(list, 0, 1) == -1 && list->n == 0 && list->total == 0);
    CHECK(list->built == built);
    CHECK_RESULT(nlist_validate(list), answer);
    CHECK_RESULT(nlist_verify(list, &d, NULL, 0, 4, 1, NULL), answer);
    CHECK_RESULT(nlist_moved(list, NULL, 0, &moved), NLIST_OK);
    CHECK(moved == 1);
    CHECK_RESULT(nlist_pairs(list, NULL, 0, &needed, NULL, 0, NULL), answer);
    CHECK(needed == 0);
    CHECK_RESULT(nlist_save(list, NULL, 0, &needed), built ? NLIST_BUFFER_TOO_SMALL : NLIST_NOT_BUILT);
    CHECK_RESULT(nlist_remap(list, NULL, 0), answer);
    CHECK_RESULT(nlist_remap(list, no_names, 0), answer);
    CHECK(list->n == 0 && list->total == 0);
    memset(&how, 0, sizeof how);
    how.values = 1;
    CHECK_RESULT(nlist_sum(list, &how, never_called, &called, NULL), answer);
    CHECK(called == 0);
}

static void test_empty(void **state)
{
    int layout, half;
    (void)state;
    for (layout = 0; layout < 4; layout++) for (half = 0; half < 2; half++) {
        nlist list = {0};
        ugrid grid = {0};
        lbvh tree = {0};
        nlist_desc d;
        check_nothing(&list, 0);
        d = full_list(&list, (nlist_layout)layout, NULL);
        CHECK_RESULT(nlist_build_brute(&list, &d, NULL, 0, 0), NLIST_OK);
        CHECK(list.event_count[NLIST_ENDED] == 2 && list.event_count[NLIST_BEGUN] == 0);
        check_nothing(&list, 1);
        CHECK_RESULT(nlist_build_pairs(&list, &d, NULL, 0, 0), NLIST_OK);
        check_nothing(&list, 1);
        CHECK(ugrid_build(&grid, NULL, NULL, 0, 0) == UGRID_OK && lbvh_build(&tree, NULL, NULL, 0, 0) == LBVH_OK);
        CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, NULL, 0, 0), NLIST_OK);
        check_nothing(&list, 1);
        CHECK_RESULT(nlist_build_lbvh(&list, &d, &tree, NULL, 0, 0), NLIST_OK);
        check_nothing(&list, 1);
        (void)full_list(&list, (nlist_layout)layout, NULL);
        ugrid_free(&grid);
        lbvh_free(&tree);
        CHECK_RESULT(nlist_reserve(&list, &d, 4, 4), NLIST_OK);
        check_nothing(&list, 0);
        nlist_free(&list);
        check_nothing(&list, 0);
    }
}

/* Reach and period: exactly half of it is allowed. Two particles that far apart are near each other in one way only. */
static void test_half_a_period(void **state)
{
    static const real pos[6] = {0, 0, 0, 2, 0, 0};
    int layout, half;
    (void)state;
    for (layout = 0; layout < 4; layout++) for (half = 0; half < 2; half++) {
        nlist list = {0};
        nlist_desc d = plain_desc();
        real radii[2] = {(real)0.25, (real)0.5};
        d.layout = (nlist_layout)layout;
        d.half = half;
        d.periodic[0] = 1;
        d.max[0] = 4;
        d.radius = 2;
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_OK);
        CHECK(list.total == 2 - half && nlist_find(&list, 0, 1) >= 0);
        d.radius = oracle_beside(2, 1);
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_BAD_PERIOD);
        d.radius = 1;
        d.skin = 1;
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_OK);
        d.skin = (real)1.25;
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_BAD_PERIOD);
        d.skin = 0;
        d.radii = radii; /* twice the largest counts */
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_OK);
        radii[0] = (real)0.625;
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_BAD_PERIOD);
        CHECK(list.n == 2 && list.total == 0);
        nlist_free(&list);
    }
}

/* ------------------------------------------------------------------------------------------------
   Memory
   ------------------------------------------------------------------------------------------------ */

/* What the manual says of the arrays of one list. */
static int64_t bytes_by_hand(const nlist_desc *d, int32_t n, int64_t rest)
{
    int64_t const width = d->width, per_entry = d->layout == NLIST_COMPACT ? 4 : 12;
    int64_t const skin = d->skin > 0 ? (int64_t)sizeof(real) * d->dim * n : 0;
    int64_t const history = d->history * ((d->layout == NLIST_STATIC || d->layout == NLIST_HYBRID ? n * width : 0) + rest);
    switch (d->layout) {
    case NLIST_STATIC: return (4 + 4 * width) * n + skin + history;
    case NLIST_DYNAMIC: return 12 * n + per_entry * rest + skin + history;
    case NLIST_COMPACT: return 12 * n + 8 + per_entry * rest + skin + history;
    default: return (8 + 4 * width) * n + per_entry * rest + skin + history;
    }
}

static int64_t bytes_of_arrays(const nlist *list)
{
    const nlist_rows *rows = &list->rows[list->current];
    int64_t const entries = rows->capacity + (int64_t)rows->n * rows->width;
    int64_t bytes = 0;
    if (rows->count) bytes += 4 * rows->n;
    if (rows->slot) bytes += 4 * (int64_t)rows->n * rows->width;
    if (rows->start) bytes += 8 * ((int64_t)rows->n + 1);
    if (rows->partner) bytes += 4 * rows->capacity;
    if (rows->own) bytes += 4 * rows->capacity;
    if (rows->link) bytes += 4 * rows->capacity;
    if (rows->head) bytes += 4 * rows->n;
    if (rows->touched) bytes += 4 * rows->n;
    if (rows->history) bytes += entries * list->desc.history;
    return bytes + (list->desc.skin > 0 ? (int64_t)sizeof(real) * rows->n * list->desc.dim : 0);
}

/* After a reserve, builds up to its sizes take no memory, from whatever source (pairs: once, to sort them); and the arrays are as
   large as the manual says. */
static void check_reserve(const oracle_scene *s, const nlist_desc *given, const ugrid *grid, const lbvh *tree, const int32_t *pairs,
                          int64_t m)
{
    heap h = {0, 0, 0, 0, 0, 0};
    nlist list = {0};
    nlist_desc d = *given;
    int64_t calls, entries;
    int round;
    d.allocator = allocator_of(&h);
    CHECK_RESULT(nlist_build_brute(&list, &d, s->pos, s->stride, s->n), NLIST_OK);
    entries = list.needed_entries;
    CHECK(bytes_of_arrays(&list) == bytes_by_hand(&d, s->n, entries));
    CHECK(h.live_bytes == nlist_bytes(&list));
    nlist_free(&list);
    CHECK(h.live_blocks == 0);
    CHECK_RESULT(nlist_reserve(&list, &d, s->n, entries), NLIST_OK);
    CHECK(list.n == 0 && h.live_bytes == nlist_bytes(&list));
    calls = h.calls;
    for (round = 0; round < 3; round++) {
        CHECK_RESULT(nlist_build_brute(&list, &d, s->pos, s->stride, s->n), NLIST_OK);
        CHECK_RESULT(nlist_build_lbvh(&list, &d, tree, s->pos, s->stride, s->n), NLIST_OK);
        CHECK(h.calls == calls && "brute force and trees take no memory");
        CHECK_RESULT(nlist_build_ugrid(&list, &d, grid, s->pos, s->stride, s->n), NLIST_OK);
        CHECK(h.calls == calls && "grids take no memory");
        if (d.skin > 0) continue;
        CHECK_RESULT(nlist_build_pairs(&list, &d, pairs, m, s->n), NLIST_OK);
        CHECK(h.calls <= calls + (round == 0 ? 2 : 0));
        calls = h.calls;
    }
    CHECK_RESULT(nlist_validate(&list), NLIST_OK);
    CHECK(h.live_bytes == nlist_bytes(&list));
    nlist_free(&list);
    CHECK(h.live_blocks == 0 && h.calls == h.frees && !h.wrong);
}

static void test_reserve(void **state)
{
    nlist full = {0};
    ugrid grid = {0};
    lbvh tree = {0};
    oracle_scene s;
    ugrid_desc g;
    lbvh_desc t;
    nlist_desc d;
    int32_t *pairs;
    int64_t m;
    int options;
    (void)state;
    oracle_make(&s, ORACLE_UNIFORM, 3, 1, 120, ORACLE_STRIDE, &dice);
    g = oracle_ugrid_desc(&s);
    memset(&t, 0, sizeof t);
    t.kind = LBVH_POINTS;
    CHECK(ugrid_build(&grid, &g, s.pos, s.stride, s.n) == UGRID_OK && lbvh_build(&tree, &t, s.pos, s.stride, s.n) == LBVH_OK);
    d = oracle_desc(&s);
    CHECK_RESULT(nlist_build_brute(&full, &d, s.pos, s.stride, s.n), NLIST_OK);
    pairs = oracle_pairs(&full, &dice, &m);
    for (options = 0; options < 64; options++) {
        d = oracle_desc(&s);
        d.layout = (nlist_layout)(options % 4);
        d.width = d.layout == NLIST_STATIC ? 120 : 2;
        d.half = options >> 2 & 1;
        d.history = options & 8 ? 12 : 0;
        d.events = options >> 4 & 1;
        d.skin = options & 32 ? s.radius / 4 : 0;
        if (options & 32) d.radius -= d.skin;
        check_reserve(&s, &d, &grid, &tree, pairs, m);
    }
    free(pairs);
    nlist_free(&full);
    ugrid_free(&grid);
    lbvh_free(&tree);
    oracle_forget(&s);
}

static void *saved(const nlist *list, int64_t *size)
{
    void *bytes;
    int64_t needed = -1;
    CHECK_RESULT(nlist_save(list, NULL, 0, size), NLIST_BUFFER_TOO_SMALL);
    bytes = exactly((size_t)*size);
    CHECK_RESULT(nlist_save(list, bytes, *size - 1, &needed), NLIST_BUFFER_TOO_SMALL);
    CHECK(needed == *size && ((uint8_t *)bytes)[0] == 0xA5);
    CHECK_RESULT(nlist_save(list, bytes, *size, &needed), NLIST_OK);
    CHECK(needed == *size);
    return bytes;
}

/* How often each block of a list got other memory. */
typedef struct growths { size_t bytes[NLIST_BLOCKS]; int times[NLIST_BLOCKS]; } growths;

static int64_t count_growths(growths *g, const nlist *list)
{
    int64_t sum = 0;
    int b;
    for (b = 0; b < NLIST_BLOCKS; b++) {
        g->times[b] += list->block[b].bytes != g->bytes[b];
        g->bytes[b] = list->block[b].bytes;
        sum += g->times[b];
    }
    return sum;
}

static int adds_nothing(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    (void)user;
    (void)i;
    (void)j;
    (void)history;
    (void)own;
    (void)other;
    return 0;
}

/* Builds with one more particle each, their sums, names and files: no array gets other memory more often than a logarithm tells. */
static void check_growth(int options)
{
    enum { MOST = 600, LIMIT = 20 }; /* half as much again: 2 + log(300) / log(1.5) = 16.1 times, and a few more for small sizes */
    heap h = {0, 0, 0, 0, 0, 0};
    real *pos = ZEROS(real, 3 * MOST), *sums = ZEROS(real, MOST);
    int32_t *same_names = NEW(int32_t, MOST), *pair = NEW(int32_t, 2 * MOST), i;
    nlist list = {0}, loaded = {0};
    growths g, g_loaded;
    nlist_desc d = plain_desc(), given;
    nlist_sums how = {1, NLIST_PER_CONTACT, 0.5};
    memset(&g, 0, sizeof g);
    memset(&g_loaded, 0, sizeof g_loaded);
    d.layout = (nlist_layout)(options % 4);
    d.width = options % 4 == NLIST_STATIC ? 2 : 1;
    d.half = options >> 2 & 1;
    d.history = options & 8 ? 12 : 0;
    d.events = options >> 3 & 1;
    d.skin = options & 16 ? (real)0.25 : 0;
    d.allocator = allocator_of(&h);
    given = d;
    given.events = 0;
    for (i = 0; i < MOST; i++) {
        pos[3 * i] = (real)i;
        same_names[i] = i;
        pair[2 * i] = i;
        pair[2 * i + 1] = i + 1;
    }
    for (i = 1; i <= MOST; i++) {
        int64_t size = 0, changed;
        void *bytes;
        if (options & 16 && i % 10) continue; /* brute force for the skin: not each number */
        if (options & 16) CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, i), NLIST_OK);
        else CHECK_RESULT(nlist_build_pairs(&list, &d, pair, i - 1, i), NLIST_OK);
        CHECK_RESULT(nlist_sum(&list, &how, adds_nothing, NULL, sums), NLIST_OK);
        CHECK_RESULT(nlist_remap(&list, same_names, i), NLIST_OK);
        CHECK(list.n == i && list.total == (d.half ? i - 1 : 2 * (i - 1)));
        bytes = saved(&list, &size);
        CHECK_RESULT(nlist_load(&loaded, &given, bytes, size), NLIST_OK);
        free(bytes);
        changed = count_growths(&g, &list) + count_growths(&g_loaded, &loaded);
        CHECK(h.calls <= 2 * changed); /* twice in one step, at most */
    }
    for (i = 0; i < NLIST_BLOCKS; i++) CHECK(g.times[i] <= LIMIT && g_loaded.times[i] <= LIMIT);
    CHECK(h.live_bytes == nlist_bytes(&list) + nlist_bytes(&loaded));
    nlist_free(&list);
    nlist_free(&loaded);
    CHECK(h.live_blocks == 0 && !h.wrong);
    free(pos);
    free(sums);
    free(same_names);
    free(pair);
}

static void test_growth(void **state)
{
    int options;
    (void)state;
    for (options = 0; options < 32; options++)
        if ((options >> 2 & 1) == (options & 1)) check_growth(options); /* two layouts half, two full */
}

/* A reserve takes exactly what it says, also where memory is held already; and the first build what it needs. */
static void test_exact_memory(void **state)
{
    int options;
    (void)state;
    for (options = 0; options < 16; options++) {
        nlist first = {0}, again = {0};
        nlist_desc d = plain_desc();
        int b;
        d.layout = (nlist_layout)(options % 4);
        d.half = options >> 2 & 1;
        d.history = options & 8 ? 12 : 0;
        d.events = options >> 3 & 1;
        CHECK_RESULT(nlist_reserve(&first, &d, 500, 700), NLIST_OK);
        CHECK_RESULT(nlist_reserve(&again, &d, 400, 600), NLIST_OK);
        CHECK_RESULT(nlist_reserve(&again, &d, 500, 700), NLIST_OK);
        for (b = 0; b < NLIST_BLOCKS; b++) CHECK(first.block[b].bytes == again.block[b].bytes);
        nlist_free(&first);
        CHECK_RESULT(nlist_build_brute(&first, &d, four, 0, 4), NLIST_OK);
        CHECK(first.block[first.current * NLIST_I_GENERATION + NLIST_I_COUNT].bytes == 4 * sizeof(int32_t));
        nlist_free(&first);
        nlist_free(&again);
    }
}

/* An allocator that has no block above `most` bytes. */
typedef struct small_heap { heap h; size_t most; } small_heap;

static void *small_alloc(size_t bytes, void *user) { return bytes > ((small_heap *)user)->most ? NULL : heap_alloc(bytes, user); }

/* Where there is no memory for half as much again, what is needed will do. */
static void test_tight_memory(void **state)
{
    real *pos = ZEROS(real, 3 * 110);
    small_heap h;
    nlist list = {0};
    nlist_desc d = plain_desc();
    int32_t i;
    (void)state;
    memset(&h, 0, sizeof h);
    h.most = 110 * 16 * sizeof(int32_t);
    for (i = 0; i < 110; i++) pos[3 * i] = (real)i;
    d.layout = NLIST_STATIC;
    d.allocator.alloc = small_alloc;
    d.allocator.free = heap_free;
    d.allocator.user = &h;
    CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 100), NLIST_OK);
    CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 110), NLIST_OK);
    CHECK(list.total == 218 && list.block[NLIST_I_SLOT].bytes == h.most);
    h.most--;
    nlist_free(&list);
    CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 110), NLIST_OUT_OF_MEMORY);
    nlist_free(&list);
    CHECK(h.h.live_blocks == 0 && !h.h.wrong);
    free(pos);
}

/* Steps that may each run out of memory: then the list is as it was, or, where it is not kept twice, empty; and the same step works
   the next time. */
typedef struct trial { heap *h; nlist list; nlist_desc d; int failures; oracle_snapshot before; } trial;

static int failed(trial *t, nlist_result r)
{
    int64_t const calls = t->h->calls, failing = t->h->fail_at;
    CHECK(r == NLIST_OK || r == NLIST_OUT_OF_MEMORY);
    t->failures += r == NLIST_OUT_OF_MEMORY;
    if (r == NLIST_OUT_OF_MEMORY && (t->list.n != 0 || t->d.history)) CHECK_FINE(oracle_check_unchanged(&t->before, &t->list));
    t->h->fail_at = 0; /* the test's own look at it does not count */
    CHECK_RESULT(nlist_validate(&t->list), t->list.built ? NLIST_OK : NLIST_NOT_BUILT);
    CHECK(t->list.built || t->list.n == 0);
    t->h->calls = calls;
    t->h->fail_at = failing;
    oracle_drop_snapshot(&t->before);
    CHECK(t->h->live_bytes == nlist_bytes(&t->list) && !t->h->wrong);
    oracle_take(&t->before, &t->list);
    return r == NLIST_OUT_OF_MEMORY;
}

static void write_history(nlist *list)
{
    int32_t i;
    for (i = 0; i < list->n && list->desc.history; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) oracle_write(e.history, list->desc.history, (uint32_t)(100 * i + e.id + 1));
    }
}

static void trial_build(trial *t, const oracle_scene *s, int32_t n)
{
    if (failed(t, nlist_build_brute(&t->list, &t->d, s->pos, s->stride, n)))
        CHECK(!failed(t, nlist_build_brute(&t->list, &t->d, s->pos, s->stride, n)));
    write_history(&t->list);
    oracle_drop_snapshot(&t->before);
    oracle_take(&t->before, &t->list);
}

static void trial_pairs(trial *t, int32_t n)
{
    static const int32_t pair[] = {0, 1, 4, 2, 3, 1, 1, 0};
    nlist_desc d = t->d;
    d.skin = 0;
    if (failed(t, nlist_build_pairs(&t->list, &d, pair, 4, n))) CHECK(!failed(t, nlist_build_pairs(&t->list, &d, pair, 4, n)));
}

static void trial_remap(trial *t, int32_t n)
{
    int32_t *new_id = NEW(int32_t, t->list.n), i;
    for (i = 0; i < t->list.n; i++) new_id[i] = i < n ? n - 1 - i : -1;
    if (failed(t, nlist_remap(&t->list, new_id, n))) CHECK(!failed(t, nlist_remap(&t->list, new_id, n)));
    free(new_id);
}

static int add_one(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    (void)user;
    (void)i;
    (void)j;
    (void)history;
    own[0] = other[0] = 1;
    return 1;
}

static void trial_sum(trial *t)
{
    real *sums = NEW(real, t->list.n);
    nlist_sums how;
    int32_t k;
    nlist_result r;
    for (k = 0; k < t->list.n; k++) sums[k] = 0;
    how.values = 1;
    how.mode = NLIST_PER_CONTACT;
    how.unit = 0.5;
    r = nlist_sum(&t->list, &how, add_one, NULL, sums);
    for (k = 0; k < t->list.n && r == NLIST_OUT_OF_MEMORY; k++) CHECK(!(sums[k] > 0));
    if (failed(t, r)) CHECK(!failed(t, nlist_sum(&t->list, &how, add_one, NULL, sums)));
    free(sums);
}

static void trial_load(trial *t, const void *bytes, int64_t size)
{
    if (failed(t, nlist_load(&t->list, &t->d, bytes, size))) CHECK(!failed(t, nlist_load(&t->list, &t->d, bytes, size)));
}

static void trial_reserve(trial *t, int32_t n)
{
    nlist_result r = nlist_reserve(&t->list, &t->d, n, 30);
    t->failures += r == NLIST_OUT_OF_MEMORY;
    CHECK((r == NLIST_OK || r == NLIST_OUT_OF_MEMORY) && t->list.n == 0);
    oracle_drop_snapshot(&t->before);
    oracle_take(&t->before, &t->list);
    CHECK(!failed(t, nlist_reserve(&t->list, &t->d, n, 30)));
}

/* Returns how many steps ran out of memory. */
static int memory_scenario(heap *h, const oracle_scene *s, int options)
{
    trial t;
    void *bytes;
    int64_t size;
    nlist_result r;
    memset(&t, 0, sizeof t);
    t.h = h;
    t.d = oracle_desc(s);
    t.d.allocator = allocator_of(h);
    t.d.layout = (nlist_layout)(options % 4);
    t.d.width = 2;
    t.d.grow = 1;
    t.d.half = options >> 2 & 1;
    t.d.history = options & 8 ? 5 : 0;
    t.d.events = options >> 4 & 1;
    oracle_take(&t.before, &t.list);
    if (options & 1) trial_reserve(&t, 7);
    trial_build(&t, s, 5);
    trial_build(&t, s, s->n);
    trial_sum(&t);
    bytes = saved(&t.list, &size);
    trial_remap(&t, s->n);
    trial_remap(&t, s->n + 4);
    trial_build(&t, s, 9);
    if (s->skin <= 0) trial_pairs(&t, 12);
    trial_load(&t, bytes, size);
    trial_build(&t, s, s->n);
    r = nlist_validate(&t.list);
    t.failures += r == NLIST_OUT_OF_MEMORY;
    CHECK(r == NLIST_OK || r == NLIST_OUT_OF_MEMORY);
    nlist_free(&t.list);
    oracle_drop_snapshot(&t.before);
    free(bytes);
    return t.failures;
}

static void test_out_of_memory(void **state)
{
    int options;
    (void)state;
    for (options = 0; options < 32; options++) {
        heap h = {0, 0, 0, 0, 0, 0};
        oracle_scene s;
        int64_t total, k;
        oracle_make(&s, ORACLE_CLUSTERED, 2 + options % 2, options / 4, 24, options % 3 ? 0 : ORACLE_SKIN, &dice);
        CHECK(memory_scenario(&h, &s, options) == 0 && h.calls > 10);
        total = h.calls;
        for (k = 1; k <= total; k++) {
            memset(&h, 0, sizeof h);
            h.fail_at = k;
            CHECK(memory_scenario(&h, &s, options) <= 1);
            CHECK(h.live_bytes == 0 && h.live_blocks == 0 && !h.wrong && h.calls >= k);
        }
        oracle_forget(&s);
    }
}

/* A file that needs more memory than the list has: the list stays, whatever is missing. */
static void test_load_out_of_memory(void **state)
{
    nlist large = {0};
    oracle_scene s;
    nlist_desc d;
    int64_t size, k;
    void *bytes;
    int layout;
    (void)state;
    oracle_make(&s, ORACLE_UNIFORM, 3, 0, 60, 0, &dice);
    d = oracle_desc(&s);
    d.half = 1;
    d.history = 12;
    CHECK_RESULT(nlist_build_brute(&large, &d, s.pos, s.stride, s.n), NLIST_OK);
    bytes = saved(&large, &size);
    for (layout = 0; layout < 4; layout++) for (k = 1; k < 100; k++) {
        heap h = {0, 0, 0, 0, 0, 0};
        nlist list = {0};
        oracle_snapshot before;
        nlist_desc small = full_list(&list, (nlist_layout)layout, &h);
        nlist_result r;
        oracle_take(&before, &list);
        small.grow = 1;
        h.fail_at = h.calls + k;
        r = nlist_load(&list, &small, bytes, size);
        if (r == NLIST_OK) CHECK_FINE(oracle_same_order(&list, &large));
        else CHECK_RESULT(r, NLIST_OUT_OF_MEMORY);
        if (r != NLIST_OK) check_still_there(&list, &before);
        oracle_drop_snapshot(&before);
        nlist_free(&list);
        CHECK(h.live_blocks == 0 && !h.wrong);
        if (r == NLIST_OK) break;
    }
    CHECK(k > 3 && k < 100);
    free(bytes);
    nlist_free(&large);
    oracle_forget(&s);
}

/* Memory goes back to where it came from: another allocator is refused as long as there is some. */
static void test_change_of_allocator(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0}, other = {0, 0, 0, 0, 0, 0};
    nlist list = {0};
    nlist_desc d = full_list(&list, NLIST_COMPACT, &h), second = d, none = d;
    oracle_snapshot before;
    int64_t size;
    void *bytes = saved(&list, &size);
    (void)state;
    oracle_take(&before, &list);
    memset(&none.allocator, 0, sizeof none.allocator);
    second.allocator = allocator_of(&other);
    CHECK_RESULT(nlist_build_brute(&list, &none, four, 0, 4), NLIST_BAD_ALLOCATOR);
    CHECK_RESULT(nlist_build_brute(&list, &second, four, 0, 4), NLIST_BAD_ALLOCATOR);
    CHECK_RESULT(nlist_load(&list, &second, bytes, size), NLIST_BAD_ALLOCATOR);
    check_still_there(&list, &before);
    CHECK_RESULT(nlist_reserve(&list, &second, 4, 4), NLIST_BAD_ALLOCATOR);
    CHECK(h.live_bytes == nlist_bytes(&list) && h.live_bytes > 0);
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
    nlist_free(&list);
    CHECK(h.live_blocks == 0 && !h.wrong && other.calls == 0);
    CHECK_RESULT(nlist_build_brute(&list, &second, four, 0, 4), NLIST_OK);
    nlist_free(&list);
    CHECK(other.live_blocks == 0 && other.calls > 0);
    oracle_drop_snapshot(&before);
    free(bytes);
}

/* Memory that is not aligned is refused, and given back. */
static void test_crooked_memory(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0};
    nlist list = {0};
    nlist_desc d = plain_desc();
    (void)state;
    d.allocator.alloc = crooked_alloc;
    d.allocator.free = crooked_free;
    d.allocator.user = &h;
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_BAD_ALLOCATOR);
    CHECK(list.n == 0 && h.live_blocks == 0 && h.calls > 0 && !h.wrong);
    nlist_free(&list);
}

/* ------------------------------------------------------------------------------------------------
   Files
   ------------------------------------------------------------------------------------------------ */

/* Every layout into every other, half and full, with and without history, skin, names: the same rows, order and bytes. */
static void test_files(void **state)
{
    int counter;
    (void)state;
    for (counter = 0; counter < 256; counter++) {
        nlist list = {0}, loaded = {0};
        oracle_scene s;
        oracle_memory m;
        nlist_desc d;
        void *bytes;
        int64_t size;
        int32_t *new_id, i, moved = -1;
        if (!chosen(counter)) continue;
        memset(&m, 0, sizeof m);
        oracle_make(&s, counter % ORACLE_EMPTY, 2 + roll(2), roll(8), 1 + roll(40), roll(2) ? ORACLE_SKIN : ORACLE_RADII, &dice);
        d = oracle_desc(&s);
        d.layout = (nlist_layout)(counter % 4);
        d.width = 3;
        d.grow = 1;
        d.half = counter >> 2 & 1;
        d.history = counter & 8 ? 13 : 0;
        d.events = 1;
        CHECK_RESULT(nlist_build_brute(&list, &d, s.pos, s.stride, s.n), NLIST_OK);
        CHECK_FINE(oracle_remember(&m, &list));
        if (d.history) oracle_stamp(&m, &list, 1, &dice);
        new_id = NEW(int32_t, s.n);
        for (i = 0; i < s.n; i++) new_id[i] = s.n - 1 - i;
        if (counter & 16) {
            CHECK_RESULT(nlist_remap(&list, new_id, s.n), NLIST_OK);
            oracle_rename(&m, new_id, s.n, 0);
        }
        bytes = saved(&list, &size);
        (void)full_list(&loaded, NLIST_STATIC, NULL); /* what is there must go */
        d.layout = (nlist_layout)(counter / 4 % 4);
        d.history = counter & 32 ? d.history : 0; /* 0: as it is in the file */
        d.dim = counter & 64 ? d.dim : 0;
        d.half = roll(2);
        CHECK_RESULT(nlist_load(&loaded, &d, bytes, size), NLIST_OK);
        CHECK_FINE(oracle_same_order(&list, &loaded));
        CHECK_FINE(oracle_recall(&m, &loaded));
        CHECK_RESULT(nlist_validate(&loaded), NLIST_OK);
        CHECK(loaded.desc.half == list.desc.half && loaded.desc.dim == s.dim && loaded.desc.history == list.desc.history);
        CHECK(loaded.desc.layout == d.layout && loaded.event_count[NLIST_BEGUN] == 0);
        if (s.skin > 0 && !(counter & 16)) {
            CHECK_RESULT(nlist_moved(&loaded, s.pos, s.stride, &moved), NLIST_OK);
            CHECK(!moved);
            s.pos[0] += s.skin;
            CHECK_RESULT(nlist_moved(&loaded, s.pos, s.stride, &moved), NLIST_OK);
            CHECK(moved);
            s.pos[0] -= s.skin;
        }
        d.dim = s.dim;
        d.half = list.desc.half;
        d.history = list.desc.history;
        if (!(counter & 16)) { /* the next build goes on from there */
            CHECK_RESULT(nlist_build_brute(&loaded, &d, s.pos, s.stride, s.n), NLIST_OK);
            CHECK(loaded.event_count[NLIST_BEGUN] <= loaded.total / 8 && loaded.event_count[NLIST_ENDED] <= loaded.total / 8);
            CHECK_FINE(oracle_remember(&m, &loaded));
        }
        free(bytes);
        free(new_id);
        oracle_memory_free(&m);
        oracle_forget(&s);
        nlist_free(&list);
        nlist_free(&loaded);
    }
}

/* What a file does not fit. */
static void test_files_refused(void **state)
{
    nlist list = {0}, into = {0};
    oracle_snapshot before;
    nlist_desc d = full_list(&list, NLIST_COMPACT, NULL), other;
    int64_t size;
    void *bytes;
    (void)state;
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
    bytes = saved(&list, &size);
    (void)full_list(&into, NLIST_DYNAMIC, NULL);
    oracle_take(&before, &into);
    other = d;
    other.history = 8;
    CHECK_RESULT(nlist_load(&into, &other, bytes, size), NLIST_BAD_HISTORY);
    other = d;
    other.dim = 2;
    CHECK_RESULT(nlist_load(&into, &other, bytes, size), NLIST_BAD_DIM);
    other = d;
    other.layout = NLIST_STATIC;
    other.width = 1;
    CHECK_RESULT(nlist_load(&into, &other, bytes, size), NLIST_ROW_FULL);
    CHECK(into.needed_width == 2);
    other.layout = NLIST_DYNAMIC;
    other.capacity = 1;
    CHECK_RESULT(nlist_load(&into, &other, bytes, size), NLIST_LIST_FULL);
    CHECK(into.needed_entries == 4);
    other.capacity = -1;
    CHECK_RESULT(nlist_load(&into, &other, bytes, size), NLIST_BAD_CAPACITY);
    check_still_there(&into, &before);
    CHECK_RESULT(nlist_load(&into, &d, bytes, size), NLIST_OK);
    CHECK(into.total == 4 && into.desc.layout == NLIST_COMPACT);
    oracle_drop_snapshot(&before);
    free(bytes);
    nlist_free(&list);
    nlist_free(&into);
}

/* A small list with all that a file can have: history, names, positions, a box. */
static void *small_file(int64_t *size)
{
    static const int32_t turned[4] = {3, 1, 0, 2};
    nlist list = {0};
    nlist_desc d = plain_desc();
    void *bytes;
    d.half = 1;
    d.history = 3;
    d.skin = (real)0.25;
    d.periodic[2] = 1;
    d.max[2] = 8;
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
    write_history(&list);
    CHECK_RESULT(nlist_remap(&list, turned, 4), NLIST_OK);
    bytes = saved(&list, size);
    nlist_free(&list);
    return bytes;
}

/* Cut short anywhere, longer by one, and with any one bit turned. */
static void test_damaged_files(void **state)
{
    nlist into = {0};
    oracle_snapshot before;
    nlist_desc d = full_list(&into, NLIST_HYBRID, NULL), any = d;
    int64_t size, k;
    uint8_t *bytes = (uint8_t *)small_file(&size);
    int bit;
    (void)state;
    any.history = 0;
    any.skin = 0;
    any.layout = NLIST_DYNAMIC;
    oracle_take(&before, &into);
    for (k = 0; k < size; k++) {
        uint8_t *cut = (uint8_t *)exactly((size_t)k);
        memcpy(cut, bytes, (size_t)k);
        CHECK_RESULT(nlist_load(&into, &any, cut, k), NLIST_BAD_FILE);
        free(cut);
        for (bit = 0; bit < 8; bit++) {
            bytes[k] = (uint8_t)(bytes[k] ^ 1 << bit);
            CHECK_RESULT(nlist_load(&into, &any, bytes, size), NLIST_BAD_FILE);
            bytes[k] = (uint8_t)(bytes[k] ^ 1 << bit);
        }
        if (k % 16 == 0) check_still_there(&into, &before);
    }
    check_still_there(&into, &before);
    bytes = (uint8_t *)realloc(bytes, (size_t)size + 1);
    bytes[size] = 0;
    CHECK_RESULT(nlist_load(&into, &any, bytes, size + 1), NLIST_BAD_FILE);
    CHECK_RESULT(nlist_load(&into, &any, bytes, size), NLIST_OK);
    oracle_drop_snapshot(&before);
    free(bytes);
    nlist_free(&into);
}

/* Damage behind a right checksum (at byte sum_at; of the whole file with 0 there): refused, or a list that can be walked. */
static void test_forged_files(void **state)
{
    static const int32_t odd[] = {-1, 0, 1, 2, 3, 4, 5, 7, 8, 255, 4096, 4097, 1 << 28, INT32_MAX, INT32_MIN, 0x7F800000};
    int64_t size, refused = 0, k, step, sum_at;
    uint8_t *bytes = (uint8_t *)small_file(&size), *whole = NEW(uint8_t, size);
    int const steps = 30000 / share();
    uint64_t sum;
    (void)state;
    sum_at = (int64_t)offsetof(nlist_i_head, sum);
    memcpy(whole, bytes, (size_t)size);
    for (step = 0; step < steps; step++) {
        nlist list = {0};
        nlist_desc d = plain_desc();
        nlist_result r;
        int32_t const value = odd[roll(COUNT_OF(odd))];
        int32_t i;
        memcpy(bytes, whole, (size_t)size);
        if (step) for (k = roll(3); k >= 0; k--) {
            if (roll(2)) memcpy(bytes + 4 * roll((int)size / 4), &value, 4);
            else bytes[roll((int)size)] = (uint8_t)roll(256);
        }
        memset(bytes + sum_at, 0, sizeof sum);
        sum = nlist_i_checksum(14695981039346656037u, bytes, (size_t)size);
        memcpy(bytes + sum_at, &sum, sizeof sum);
        CHECK(step || same(bytes, whole, (size_t)size)); /* the checksum is computed as the header does */
        d.layout = (nlist_layout)roll(4);
        r = nlist_load(&list, &d, bytes, size);
        refused += r != NLIST_OK;
        CHECK(step || r == NLIST_OK);
        (void)nlist_validate(&list);
        for (i = 0; i < list.n; i++) {
            nlist_each e = nlist_of(&list, i);
            int64_t left = list.total;
            while (nlist_next(&e)) {
                CHECK(e.id >= 0 && (list.keys || e.id < list.n) && left-- > 0);
                if (e.history) ((uint8_t *)e.history)[list.desc.history - 1] = 1;
            }
        }
        nlist_free(&list);
    }
    CHECK(refused > steps / 8 && refused < steps);
    free(bytes);
    free(whole);
}

/* A list of keys has no half, no names, no positions, no periods and 3 dimensions: a file that says otherwise is refused, even if all
   else in it agrees with that. */
static void test_heads_of_keys(void **state)
{
    nlist list = {0}, loaded = {0};
    nlist_desc d = plain_desc();
    nlist_i_head whole;
    int64_t size, room, k;
    uint8_t *bytes, *forged;
    int what;
    (void)state;
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
    bytes = (uint8_t *)saved(&list, &size);
    memcpy(&whole, bytes, sizeof whole);
    room = size + 4 * (8 + 3 * (int64_t)sizeof(real));
    for (what = 0; what < 6; what++) {
        nlist_i_head head = whole;
        int64_t const named = what == 2 ? 4 * 8 : what == 3 ? 4 * 3 * (int64_t)sizeof(real) : 0;
        forged = NEW(uint8_t, room);
        memset(forged, 0, (size_t)room);
        memcpy(forged, bytes, (size_t)size);
        head.keys = 1;
        head.triangles = 1;
        head.next_uid = 4;
        head.sum = 0;
        if (what == 1) head.half = 1;
        if (what == 2) { /* names 0 .. 3, after the rows */
            head.has_uid = 1;
            for (k = 0; k < 4; k++) memcpy(forged + size + 8 * k, &k, 8);
        }
        if (what == 3) head.has_reference = 1;
        if (what == 4) { head.periodic = 1; head.max[0] = 8; }
        if (what == 5) head.dim = 2;
        memcpy(forged, &head, sizeof head);
        head.sum = nlist_i_checksum(14695981039346656037u, forged, (size_t)(size + named));
        memcpy(forged, &head, sizeof head);
        d.dim = what == 5 ? 2 : 3;
        d.half = what == 1;
        CHECK_RESULT(nlist_load(&loaded, &d, forged, size + named), what ? NLIST_BAD_FILE : NLIST_OK);
        free(forged);
    }
    free(bytes);
    nlist_free(&list);
    nlist_free(&loaded);
}

/* A checksum that is right, whatever the file says. */
static void seal(uint8_t *bytes, int64_t size)
{
    nlist_i_head head;
    memcpy(&head, bytes, sizeof head);
    head.sum = 0;
    memcpy(bytes, &head, sizeof head);
    head.sum = nlist_i_checksum(14695981039346656037u, bytes, (size_t)size);
    memcpy(bytes, &head, sizeof head);
}

/* A list of two triangles, saved: a square, and a particle over each half of it. */
static uint8_t *file_of_keys(int64_t *size, lbvh *tree, nlist_mesh *mesh)
{
    static const real corners[18] = {0, 0, 0, 4, 0, 0, 0, 4, 0, 4, 4, 0, 0, 4, 0, 4, 0, 0}, over[6] = {1, 1, 0, 3, 3, 0};
    nlist list = {0};
    nlist_desc d = plain_desc();
    lbvh_desc t;
    uint8_t *bytes;
    memset(&t, 0, sizeof t);
    memset(mesh, 0, sizeof *mesh);
    t.kind = LBVH_TRIANGLES;
    mesh->vertices = corners;
    mesh->triangles = 2;
    d.history = 4;
    CHECK(lbvh_build(tree, &t, corners, 0, 2) == LBVH_OK);
    CHECK_RESULT(nlist_build_mesh(&list, &d, tree, mesh, over, 0, 2), NLIST_OK);
    CHECK(list.total == 2 && list.triangles == 2 && nlist_find(&list, 1, nlist_key(1, 0)) >= 0);
    bytes = (uint8_t *)saved(&list, size);
    nlist_free(&list);
    return bytes;
}

/* A particle with three neighbours that are not near each other: a file's row of three in which two are
   the same is refused, whichever two, and in whatever order. */
static void test_doubles_in_a_file(void **state)
{
    static const real star[12] = {0, 0, 0, 1, 0, 0, -1, 0, 0, 0, 1, 0};
    nlist list = {0};
    nlist_desc d = plain_desc();
    int64_t size;
    uint8_t *bytes;
    int32_t k;
    (void)state;
    d.radius = (real)1.25;
    d.half = 1;
    CHECK_RESULT(nlist_build_brute(&list, &d, star, 0, 4), NLIST_OK);
    CHECK(list.total == 3 && list.rows[0].count[0] == 3);
    bytes = (uint8_t *)saved(&list, &size);
    for (k = 0; k < 27; k++) {
        int32_t const row[3] = {1 + k % 3, 1 + k / 3 % 3, 1 + k / 9};
        int const doubles = row[0] == row[1] || row[1] == row[2] || row[0] == row[2];
        memcpy(bytes + sizeof(nlist_i_head) + 4 * sizeof(int32_t), row, sizeof row); /* after the counts */
        seal(bytes, size);
        CHECK_RESULT(nlist_load(&list, &d, bytes, size), doubles ? NLIST_BAD_FILE : NLIST_OK);
    }
    free(bytes);
    nlist_free(&list);
}

/* Keys of a file: features there are, of triangles below the count that is saved with them; and the layout of such a list. */
static void test_keys_of_a_file(void **state)
{
    static const struct { int32_t triangles, key; nlist_layout layout; nlist_result want; } files[] = {
        {2, 8, NLIST_COMPACT, NLIST_OK}, {2, 14, NLIST_DYNAMIC, NLIST_OK},          /* vertex C of triangle 1 */
        {2, 15, NLIST_DYNAMIC, NLIST_BAD_FILE}, {2, 7, NLIST_COMPACT, NLIST_BAD_FILE},   /* feature 7 */
        {2, 16, NLIST_DYNAMIC, NLIST_BAD_FILE}, {2, 1600000000, NLIST_COMPACT, NLIST_BAD_FILE}, /* triangle 200,000,000 */
        {2, -8, NLIST_DYNAMIC, NLIST_BAD_FILE}, {1, 8, NLIST_DYNAMIC, NLIST_BAD_FILE}, {0, 8, NLIST_DYNAMIC, NLIST_BAD_FILE},
        {-1, 8, NLIST_DYNAMIC, NLIST_BAD_FILE}, {1 << 28, INT32_MAX - 1, NLIST_DYNAMIC, NLIST_OK},
        {1 << 28, INT32_MAX, NLIST_DYNAMIC, NLIST_BAD_FILE}, {(1 << 28) + 1, 8, NLIST_DYNAMIC, NLIST_BAD_FILE},
        {2, 8, NLIST_STATIC, NLIST_BAD_OPTION}, {2, 8, NLIST_HYBRID, NLIST_BAD_OPTION},
    };
    lbvh tree = {0};
    nlist_mesh mesh;
    int64_t size;
    uint8_t *bytes = file_of_keys(&size, &tree, &mesh);
    size_t const last = sizeof(nlist_i_head) + 3 * sizeof(int32_t); /* two counts and the first key before it */
    int k;
    (void)state;
    for (k = 0; k < COUNT_OF(files); k++) {
        nlist list = {0};
        nlist_desc d = plain_desc();
        nlist_i_head head;
        memcpy(&head, bytes, sizeof head);
        head.triangles = files[k].triangles;
        memcpy(bytes, &head, sizeof head);
        memcpy(bytes + last, &files[k].key, sizeof files[k].key);
        seal(bytes, size);
        d.layout = files[k].layout;
        CHECK_RESULT(nlist_load(&list, &d, bytes, size), files[k].want);
        if (files[k].want == NLIST_OK) {
            CHECK_RESULT(nlist_validate(&list), NLIST_OK);
            CHECK(list.keys && list.desc.layout == NLIST_DYNAMIC && list.triangles == files[k].triangles);
            CHECK(nlist_find(&list, 1, files[k].key) >= 0);
        }
        if (files[k].want == NLIST_OK && list.triangles <= mesh.triangles) {
            static const real p[3] = {1, 2, 1};
            real q[3];
            CHECK(nlist_mesh_closest(&mesh, nlist_key_triangle(files[k].key), p, q) <= 6);
            list.triangles = 1; /* nlist_validate knows it, too */
            CHECK_RESULT(nlist_validate(&list), NLIST_INVALID);
        }
        nlist_free(&list);
    }
    free(bytes);
    lbvh_free(&tree);
}

/* Files of another version are refused, and what is not of triangles has none. */
static void test_versions_of_files(void **state)
{
    nlist into = {0};
    nlist_desc d = plain_desc();
    int64_t size;
    uint8_t *bytes = (uint8_t *)small_file(&size);
    nlist_i_head head;
    uint32_t version;
    (void)state;
    memcpy(&head, bytes, sizeof head);
    CHECK(head.version == 2 && head.triangles == 0 && head.rows == head.n && sizeof head == 136);
    for (version = 0; version < 5; version++) {
        head.version = version;
        memcpy(bytes, &head, sizeof head);
        seal(bytes, size);
        CHECK_RESULT(nlist_load(&into, &d, bytes, size), version == 2 ? NLIST_OK : NLIST_BAD_FILE);
    }
    head.version = 2;
    head.triangles = 1;
    memcpy(bytes, &head, sizeof head);
    seal(bytes, size);
    CHECK_RESULT(nlist_load(&into, &d, bytes, size), NLIST_BAD_FILE);
    head.triangles = 0;
    head.rows = head.n + 1;
    memcpy(bytes, &head, sizeof head);
    seal(bytes, size);
    CHECK_RESULT(nlist_load(&into, &d, bytes, size), NLIST_BAD_FILE);
    free(bytes);
    nlist_free(&into);
}

/* The box of a loaded list is the file's, on every axis, whatever desc says. */
static void test_box_of_a_file(void **state)
{
    int periodic;
    (void)state;
    for (periodic = 0; periodic < 8; periodic++) {
        nlist list = {0}, loaded = {0};
        nlist_desc d = plain_desc();
        int64_t size;
        void *bytes;
        int a;
        for (a = 0; a < 3; a++) {
            d.periodic[a] = periodic >> a & 1;
            d.min[a] = (real)(-1 - a);
            d.max[a] = (real)(8 + a);
        }
        CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
        bytes = saved(&list, &size);
        for (a = 0; a < 3; a++) {
            d.periodic[a] = !d.periodic[a];
            d.min[a] = -100;
            d.max[a] = 100;
        }
        CHECK_RESULT(nlist_load(&loaded, &d, bytes, size), NLIST_OK);
        for (a = 0; a < 3; a++) {
            CHECK(loaded.axis[a].min == list.axis[a].min && loaded.axis[a].half == list.axis[a].half);
            CHECK(loaded.desc.periodic[a] == (periodic >> a & 1) && loaded.axis[a].periodic == (periodic >> a & 1));
            CHECK(loaded.axis[a].length == (real)(periodic >> a & 1 ? 9 + 2 * a : 0));
        }
        free(bytes);
        nlist_free(&list);
        nlist_free(&loaded);
    }
}

/* A list of nobody is saved and comes back, and goes on from there. */
static void test_file_of_nobody(void **state)
{
    int options;
    (void)state;
    for (options = 0; options < 16; options++) {
        nlist list = {0}, loaded = {0};
        nlist_desc d = plain_desc();
        int64_t size;
        void *bytes;
        d.layout = (nlist_layout)(options % 4);
        d.half = options >> 2 & 1;
        d.history = options & 8 ? 4 : 0;
        d.skin = (real)0.125;
        CHECK_RESULT(nlist_build_brute(&list, &d, NULL, 0, 0), NLIST_OK);
        bytes = saved(&list, &size);
        (void)full_list(&loaded, NLIST_HYBRID, NULL);
        CHECK_RESULT(nlist_load(&loaded, &d, bytes, size), NLIST_OK);
        CHECK(loaded.n == 0 && loaded.total == 0 && loaded.built);
        CHECK_RESULT(nlist_remap(&loaded, NULL, 4), NLIST_OK);
        CHECK_RESULT(nlist_build_brute(&loaded, &d, four, 0, 4), NLIST_OK);
        CHECK(loaded.total == (d.half ? 4 : 8));
        free(bytes);
        nlist_free(&list);
        nlist_free(&loaded);
    }
}

/* A domain that empties and fills again, by names and by builds, in a loop: as a list that is built of those who are there. */
static void test_domain_empties(void **state)
{
    static const int32_t all_gone[4] = {-1, -1, -1, -1};
    int options, step;
    (void)state;
    for (options = 0; options < 32; options++) {
        nlist list = {0};
        nlist_desc d = plain_desc();
        d.layout = (nlist_layout)(options % 4);
        d.half = options >> 2 & 1;
        d.history = options & 8 ? 4 : 0;
        d.events = options >> 4;
        d.skin = (real)0.125;
        CHECK_RESULT(nlist_remap(&list, NULL, 4), NLIST_NOT_BUILT);
        CHECK_RESULT(nlist_build_brute(&list, &d, NULL, 0, 0), NLIST_OK);
        for (step = 0; step < 6; step++) {
            int32_t moved = -1;
            CHECK_RESULT(nlist_remap(&list, step % 2 ? all_gone : NULL, 4), NLIST_OK); /* four come (names of nobody: any) */
            CHECK(list.n == 4 && list.total == 0);
            CHECK_RESULT(nlist_validate(&list), NLIST_OK);
            CHECK_RESULT(nlist_moved(&list, four, 0, &moved), NLIST_OK);
            CHECK(moved == 1);
            CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
            CHECK_RESULT(nlist_validate(&list), NLIST_OK);
            CHECK(list.total == (d.half ? 4 : 8) && (!d.events || list.event_count[NLIST_BEGUN] == 4));
            CHECK(!d.history || oracle_holds(nlist_history(&list, nlist_find(&list, 0, 1)), 4, 0));
            write_history(&list);
            if (step % 3 == 2) CHECK_RESULT(nlist_build_brute(&list, &d, NULL, 0, 0), NLIST_OK);
            else CHECK_RESULT(nlist_remap(&list, all_gone, 0), NLIST_OK); /* and go */
            CHECK(list.n == 0 && list.total == 0 && list.built);
            CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        }
        nlist_free(&list);
    }
}

/* Of a list of nobody nothing can be lost: it stays one when a build runs out of memory. */
static void test_nobody_out_of_memory(void **state)
{
    int layout, k;
    (void)state;
    for (layout = 0; layout < 4; layout++) for (k = 1; k < 9; k++) {
        heap h = {0, 0, 0, 0, 0, 0};
        nlist list = {0};
        nlist_desc d = plain_desc();
        nlist_result r;
        d.layout = (nlist_layout)layout;
        d.allocator = allocator_of(&h);
        CHECK_RESULT(nlist_build_brute(&list, &d, NULL, 0, 0), NLIST_OK);
        h.fail_at = h.calls + k;
        r = nlist_build_brute(&list, &d, four, 0, 4);
        CHECK(r == NLIST_OK || (r == NLIST_OUT_OF_MEMORY && list.n == 0 && list.built));
        CHECK(k > 2 || r == NLIST_OUT_OF_MEMORY);
        if (r == NLIST_OUT_OF_MEMORY) CHECK_RESULT(nlist_remap(&list, NULL, 4), NLIST_OK);
        CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
        CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        nlist_free(&list);
        CHECK(h.live_blocks == 0 && !h.wrong);
    }
}

/* nlist_verify: what it refuses, and which rows it looks at. */
static void test_verify(void **state)
{
    static const real row[15] = {0, 0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0, 0};
    nlist list = {0};
    nlist_desc d = plain_desc();
    int32_t bad = 9;
    (void)state;
    CHECK_RESULT(nlist_verify(&list, &d, row, 0, 2, 0, &bad), NLIST_NOT_BUILT);
    CHECK(bad == -1);
    CHECK_RESULT(nlist_build_brute(&list, &d, row, 0, 5), NLIST_OK);
    CHECK_RESULT(nlist_verify(NULL, &d, row, 0, 2, 0, &bad), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_verify(&list, NULL, row, 0, 2, 0, &bad), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_verify(&list, &d, NULL, 0, 2, 0, &bad), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_verify(&list, &d, row, 3, 2, 0, &bad), NLIST_BAD_ARGUMENT); /* a count of numbers */
    CHECK_RESULT(nlist_verify(&list, &d, row, 0, -1, 0, &bad), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_verify(&list, &d, row, 0, 5, 0, NULL), NLIST_OK);
    CHECK(list.rows[0].partner[list.rows[0].start[3]] == 2); /* seed 0 begins with particle 0: two samples are 0 and 2 */
    list.rows[0].partner[list.rows[0].start[3]] = 0;
    CHECK_RESULT(nlist_verify(&list, &d, row, 0, 2, 0, &bad), NLIST_OK);
    CHECK_RESULT(nlist_verify(&list, &d, row, 0, 5, 0, &bad), NLIST_INVALID);
    CHECK(bad == 3);
    CHECK_RESULT(nlist_verify(&list, &d, row, 0, 5, 0, NULL), NLIST_INVALID);
    nlist_free(&list);
}

/* Nothing to add up: no way is refused that a full list of this layout would need a unit or another width for. */
static void test_sums_of_little(void **state)
{
    static const nlist_mode modes[] = {NLIST_AUTO, NLIST_PER_PARTICLE, NLIST_PER_CONTACT, NLIST_REDUCE};
    nlist list = {0};
    nlist_desc d = plain_desc();
    nlist_sums how;
    int called = 0, k;
    (void)state;
    memset(&how, 0, sizeof how);
    how.values = 1;
    d.layout = NLIST_STATIC;
    d.width = 3; /* not one that NLIST_REDUCE knows */
    d.half = d.deterministic = 1; /* which needs a unit */
    for (k = 0; k < 8; k++) {
        how.mode = modes[k % 4];
        if (k == 4) CHECK_RESULT(nlist_build_brute(&list, &d, NULL, 0, 0), NLIST_OK);
        CHECK_RESULT(nlist_sum(&list, &how, never_called, &called, NULL), k < 4 ? NLIST_NOT_BUILT : NLIST_OK);
    }
    CHECK(!called);
    nlist_free(&list);
}

static int add_ones(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    (void)i;
    (void)j;
    (void)history;
    own[0] = other[0] = 1;
    own[*(int *)user - 1] = other[*(int *)user - 1] = 1;
    return 1;
}

/* Sums in units of several values, then of one: nothing is written behind the last particle's. */
static void test_sums_end(void **state)
{
    nlist list = {0};
    nlist_desc d = plain_desc();
    nlist_sums how;
    int values;
    (void)state;
    memset(&how, 0, sizeof how);
    how.unit = 0.25;
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
    for (values = 2; values > 0; values--) {
        real sums[9] = {5, 5, 5, 5, 5, 5, 5, 5, 5};
        int k;
        how.values = values;
        CHECK_RESULT(nlist_sum(&list, &how, add_ones, &values, sums), NLIST_OK);
        for (k = 0; k < 9; k++) CHECK((sums[k] == 5) == (k >= 4 * values));
    }
    nlist_free(&list);
}

/* After nlist_reserve a full list is an empty one. */
static void test_reserved_is_empty(void **state)
{
    nlist list = {0};
    nlist_desc d = full_list(&list, NLIST_COMPACT, NULL);
    int64_t needed = -1;
    (void)state;
    CHECK(list.total > 0);
    CHECK_RESULT(nlist_reserve(&list, &d, 9, 9), NLIST_OK);
    CHECK(list.n == 0 && list.total == 0 && list.event_count[0] == 0 && list.event_count[1] == 0 && list.event_count[2] == 0);
    CHECK_RESULT(nlist_pairs(&list, NULL, 0, &needed, NULL, 0, NULL), NLIST_NOT_BUILT);
    CHECK(needed == 0);
    nlist_free(&list);
}

/* ------------------------------------------------------------------------------------------------
   nlist_validate
   ------------------------------------------------------------------------------------------------ */

typedef struct word { void *at; size_t bytes; int64_t count; int must; } word;

/* The arrays of a list. must: any other number there is damage. */
static int arrays_of(nlist *list, word *words)
{
    nlist_rows *rows = &list->rows[list->current];
    word const all[] = {
        {rows->count, 4, rows->n, 1},
        {rows->slot, 4, rows->slot ? (int64_t)rows->n * rows->width : 0, 0},
        {rows->start, 8, rows->start ? (int64_t)rows->n + 1 : 0, 1},
        {rows->partner, 4, rows->entries, 0},
        {rows->own, 4, rows->entries, 1},
        {rows->link, 4, rows->entries, 1},
        {rows->head, 4, rows->n, 1},
        {rows->touched, 4, rows->touched_count, 1},
        {&list->total, 8, 1, 1},
        {&rows->touched_count, 4, rows->touched ? 1 : 0, 1},
        {&rows->n, 4, 1, 1},
    };
    int k, used = 0;
    for (k = 0; k < COUNT_OF(all); k++) if (all[k].at && all[k].count) words[used++] = all[k];
    return used;
}

static int64_t odd_number(int64_t was, int64_t n)
{
    uint64_t const w = (uint64_t)was; /* wraps around where it must */
    int64_t const odd[] = {(int64_t)(w + 1), (int64_t)(w - 1), (int64_t)(0 - w), was ^ 0x10000, -1, 0, n - 1, n, n + 1, INT32_MAX,
                           INT32_MIN, INT64_MAX, INT64_MIN, roll((int)n)};
    return odd[roll(COUNT_OF(odd))];
}

/* One word damaged: returns whether it is another word now. */
static int damage(const word *w, int64_t k, int64_t n, uint64_t *was)
{
    uint8_t *at = (uint8_t *)w->at + (size_t)k * w->bytes;
    int64_t old = 0, value;
    memcpy(was, at, w->bytes);
    if (w->bytes == 4) { int32_t v; memcpy(&v, at, 4); old = v; } else memcpy(&old, at, 8);
    value = odd_number(old, n);
    if (w->bytes == 4) { int32_t const v = (int32_t)(uint32_t)(uint64_t)value; memcpy(at, &v, 4); } else memcpy(at, &value, 8);
    return memcmp(at, was, w->bytes) != 0;
}

/* A partner or slot that became another one is damage where it is out of range, the row's own, twice in the row, or not where a
   half list has it; else it is another list. */
static int is_damage(const nlist *list)
{
    int32_t i;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) {
            nlist_each rest = e;
            if (e.id < 0 || e.id >= list->n || e.id == i) return 1;
            while (nlist_next(&rest)) if (rest.id == e.id) return 1;
            if (list->desc.half && nlist_find(list, e.id, i) >= 0) return 1;
        }
    }
    return 0;
}

static int unused_slot(const nlist *list, const word *w, int64_t k)
{
    const nlist_rows *rows = &list->rows[list->current];
    return w->at == (void *)rows->slot && k % rows->width >= rows->count[k / rows->width];
}

static void test_validate_finds_damage(void **state)
{
    int64_t found = 0, others = 0;
    int counter, used, step;
    (void)state;
    for (counter = 0; counter < 64; counter++) {
        nlist list = {0};
        oracle_scene s;
        word words[12];
        nlist_desc d;
        if (!chosen(counter)) continue;
        oracle_make(&s, counter % ORACLE_EMPTY, 3, roll(8), 5 + roll(20), 0, &dice);
        d = oracle_desc(&s);
        d.layout = (nlist_layout)(counter % 4);
        d.width = d.layout == NLIST_HYBRID ? roll(4) : 30;
        d.half = counter >> 2 & 1;
        d.history = counter & 8 ? 4 : 0;
        CHECK_RESULT(nlist_build_brute(&list, &d, s.pos, s.stride, s.n), NLIST_OK);
        used = arrays_of(&list, words);
        for (step = 0; step < 400; step++) {
            const word *w = &words[roll(used)];
            int64_t const k = roll((int)w->count);
            uint64_t was = 0;
            int const other = damage(w, k, s.n, &was);
            nlist_result const r = nlist_validate(&list);
            if (!other) CHECK_RESULT(r, NLIST_OK);
            else if (w->must || unused_slot(&list, w, k) || is_damage(&list)) CHECK_RESULT(r, NLIST_INVALID);
            found += r == NLIST_INVALID;
            others += other && r == NLIST_OK;
            memcpy((uint8_t *)w->at + (size_t)k * w->bytes, &was, w->bytes);
            CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        }
        oracle_forget(&s);
        nlist_free(&list);
    }
    CHECK(small_run() || (found * share() > 8000 && others < found));
}

/* DYNAMIC: rows that have entries are in `touched`, each once. */
static void test_validate_touched_rows(void **state)
{
    static const int32_t damages[] = {1, 2, 3, -1, 4};
    nlist list = {0};
    nlist_desc d = plain_desc();
    nlist_rows *const rows = &list.rows[0];
    int32_t first;
    int k;
    (void)state;
    d.layout = NLIST_DYNAMIC;
    d.half = 1;
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
    CHECK(list.current == 0 && rows->touched_count == 3 && rows->count[3] == 0);
    CHECK(rows->touched[1] == 1 && rows->touched[2] == 2);
    first = rows->touched[0];
    for (k = 0; k < COUNT_OF(damages); k++) {
        rows->touched[0] = damages[k];
        CHECK_RESULT(nlist_validate(&list), NLIST_INVALID);
    }
    rows->touched[0] = first;
    rows->touched_count = 2;
    CHECK_RESULT(nlist_validate(&list), NLIST_INVALID);
    rows->touched_count = 3;
    CHECK_RESULT(nlist_validate(&list), NLIST_OK);
    nlist_free(&list);
}

/* Many words damaged at once: whatever it says, it comes back. */
static void test_validate_is_safe(void **state)
{
    int counter, step, k;
    (void)state;
    for (counter = 0; counter < 32; counter++) {
        nlist list = {0};
        oracle_scene s;
        word words[12];
        nlist_desc d;
        int used;
        if (!chosen(counter)) continue;
        oracle_make(&s, ORACLE_CLUSTERED, 3, 0, 12, 0, &dice);
        d = oracle_desc(&s);
        d.layout = (nlist_layout)(counter % 4);
        d.width = d.layout == NLIST_HYBRID ? 2 : 30;
        d.half = counter >> 2 & 1;
        CHECK_RESULT(nlist_build_brute(&list, &d, s.pos, s.stride, s.n), NLIST_OK);
        used = arrays_of(&list, words);
        for (step = 0; step < 400; step++) {
            uint64_t was;
            if (step % 40 == 0) {
                CHECK_RESULT(nlist_build_brute(&list, &d, s.pos, s.stride, s.n), NLIST_OK);
                used = arrays_of(&list, words);
            }
            for (k = roll(4); k >= 0; k--) {
                const word *w = &words[roll(used)];
                if (w->at != (void *)&list.rows[list.current].n) (void)damage(w, roll((int)w->count), s.n, &was);
            }
            (void)nlist_validate(&list);
        }
        list.rows[0].n = list.rows[1].n = s.n;
        oracle_forget(&s);
        nlist_free(&list);
    }
}

/* ------------------------------------------------------------------------------------------------
   Pairs, shifts, names
   ------------------------------------------------------------------------------------------------ */

/* All entries, in their order; the image of the partner that a shift names is the one within reach. */
static void check_pairs(const nlist *list, const oracle_scene *s)
{
    int64_t needed = -1, k = 0, total = list->total;
    int32_t *pair = NEW(int32_t, 2 * total), *shift = NEW(int32_t, 3 * total), i;
    int a;
    if (total) CHECK_RESULT(nlist_pairs(list, pair, total - 1, &needed, s->pos, s->stride, shift), NLIST_BUFFER_TOO_SMALL);
    CHECK(!total || needed == total);
    CHECK_RESULT(nlist_pairs(list, pair, total, &needed, s->pos, s->stride, shift), NLIST_OK);
    CHECK(needed == total);
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        for (; nlist_next(&e); k++) {
            const real *p = oracle_point(s, i), *q = oracle_point(s, e.id);
            double square = 0, reach = oracle_reach(s, i, e.id);
            real d[3];
            CHECK(pair[2 * k] == i && pair[2 * k + 1] == e.id);
            nlist_offset(list, p, q, d);
            for (a = 0; a < s->dim; a++) {
                double const length = (double)s->max[a] - (double)s->min[a];
                double const along = (double)q[a] - (double)p[a] + shift[3 * k + a] * length;
                double const size = fabs((double)p[a]) + fabs((double)q[a]) + fabs((double)s->min[a]) + length;
                CHECK(s->periodic[a] || shift[3 * k + a] == 0);
                CHECK(fabs(along - (double)d[a]) <= 16 * REAL_EPSILON * size);
                square += along * along;
            }
            CHECK(s->dim == 3 || shift[3 * k + 2] == 0);
            CHECK(sqrt(square) <= reach + 4 * oracle_slack(s, p, q, reach) + 1e-5 * reach);
        }
    }
    CHECK(k == total);
    free(pair);
    free(shift);
}

static void test_pairs(void **state)
{
    int counter;
    (void)state;
    for (counter = 0; counter < 120; counter++) {
        nlist list = {0};
        oracle_scene s;
        nlist_desc d;
        oracle_make(&s, counter % ORACLE_INPUTS, 2 + roll(2), roll(8), 1 + roll(40), roll(32), &dice);
        d = oracle_desc(&s);
        d.layout = (nlist_layout)roll(4);
        d.width = 4;
        d.grow = 1;
        d.half = roll(2);
        CHECK_RESULT(nlist_build_brute(&list, &d, s.pos, s.stride, s.n), NLIST_OK);
        check_pairs(&list, &s);
        oracle_forget(&s);
        nlist_free(&list);
    }
}

/* nlist_find against the rows; ids that are not there. */
static void test_find(void **state)
{
    int layout, half;
    (void)state;
    for (layout = 0; layout < 4; layout++) for (half = 0; half < 2; half++) {
        nlist list = {0};
        oracle_scene s;
        nlist_desc d;
        int32_t i, j;
        oracle_make(&s, ORACLE_UNIFORM, 3, 5, 30, ORACLE_RADII, &dice);
        d = oracle_desc(&s);
        d.layout = (nlist_layout)layout;
        d.width = layout == NLIST_STATIC ? 30 : 2;
        d.half = half;
        CHECK_RESULT(nlist_build_brute(&list, &d, s.pos, s.stride, s.n), NLIST_OK);
        for (i = -2; i < s.n + 2; i++) for (j = -2; j < s.n + 2; j++) {
            int const there = i >= 0 && j >= 0 && i < s.n && j < s.n && s.truth[i * s.n + j] == ORACLE_WITHIN;
            int const rim = i >= 0 && j >= 0 && i < s.n && j < s.n && s.truth[i * s.n + j] == ORACLE_RIM;
            int64_t const entry = nlist_find(&list, i, j);
            if (rim) continue;
            CHECK((entry >= 0) == (there && (!half || i < j)) && entry >= -1);
            CHECK((nlist_find_pair(&list, i, j) >= 0) == there);
            if (half && there) CHECK(nlist_find_pair(&list, i, j) == nlist_find_pair(&list, j, i));
        }
        oracle_forget(&s);
        nlist_free(&list);
    }
}

/* By hand: 0-1, 0-2, 1-2, 2-3 become others; 1 is gone, a new one comes. */
static void test_remap_by_hand(void **state)
{
    static const int32_t names[5] = {4, -1, 0, 2, 1}, all_gone[5] = {-1, -1, -1, -1, -1};
    static const real after[15] = {0, (real)0.5, 0, /* new: */ (real)0.25, 0, 0, 0, (real)1.25, 0, /* new: */ 7, 7, 7, 0, 0, 0};
    int layout, half;
    (void)state;
    for (layout = 0; layout < 4; layout++) for (half = 0; half < 2; half++) {
        nlist list = {0};
        nlist_desc d = plain_desc();
        oracle_snapshot before;
        int32_t moved = -1, bad[4] = {0, 1, 2, 3};
        d.layout = (nlist_layout)layout;
        d.half = half;
        d.history = 4;
        d.events = 1;
        d.skin = (real)0.125;
        CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
        CHECK(list.total == (half ? 4 : 8));
        write_history(&list);
        oracle_take(&before, &list);
        bad[2] = 5;
        CHECK_RESULT(nlist_remap(&list, bad, 5), NLIST_BAD_INDEX);
        CHECK(list.bad_id == 2);
        bad[2] = 1;
        CHECK_RESULT(nlist_remap(&list, bad, 5), NLIST_BAD_INDEX);
        CHECK(list.bad_id == 2);
        bad[2] = -2;
        CHECK_RESULT(nlist_remap(&list, bad, 5), NLIST_BAD_INDEX);
        CHECK(list.bad_id == 2);
        check_still_there(&list, &before);
        CHECK_RESULT(nlist_remap(&list, names, 5), NLIST_OK);
        CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        CHECK(list.n == 5 && list.total == (half ? 2 : 4)); /* events are those of the build */
        CHECK(list.event_count[NLIST_BEGUN] == 4 && list.event_count[NLIST_ENDED] == 0);
        CHECK(nlist_find(&list, 4, 0) >= 0 && nlist_find(&list, 0, 2) >= 0); /* 0-2 and 2-3, in the rows where they were */
        CHECK((nlist_find(&list, 0, 4) >= 0) == !half && (nlist_find(&list, 2, 0) >= 0) == !half);
        CHECK(oracle_holds(nlist_history(&list, nlist_find(&list, 4, 0)), 4, 3));
        CHECK(oracle_holds(nlist_history(&list, nlist_find(&list, 0, 2)), 4, 204));
        CHECK_RESULT(nlist_moved(&list, after, 0, &moved), NLIST_OK);
        CHECK(moved);
        CHECK_RESULT(nlist_build_brute(&list, &d, after, 0, 5), NLIST_OK);
        CHECK(list.total == (half ? 4 : 8) && list.event_count[NLIST_PERSISTED] == 2 && list.event_count[NLIST_BEGUN] == 2);
        CHECK(nlist_find(&list, 4, 0) >= 0 && oracle_holds(nlist_history(&list, nlist_find(&list, 4, 0)), 4, 3));
        CHECK(nlist_find(&list, 0, 2) >= 0 && oracle_holds(nlist_history(&list, nlist_find(&list, 0, 2)), 4, 204));
        CHECK((nlist_find(&list, 1, 4) >= 0) == !half && nlist_find(&list, 4, 1) >= 0); /* 4 is older than the new 1 */
        CHECK(oracle_holds(nlist_history(&list, nlist_find(&list, 4, 1)), 4, 0));
        CHECK_RESULT(nlist_moved(&list, after, 0, &moved), NLIST_OK);
        CHECK(!moved);
        CHECK_RESULT(nlist_remap(&list, names, 0), NLIST_BAD_INDEX);
        CHECK_RESULT(nlist_remap(&list, all_gone, 0), NLIST_OK);
        CHECK(list.n == 0 && list.total == 0);
        oracle_drop_snapshot(&before);
        nlist_free(&list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bad_descs),
        TEST(test_bad_changes),
        TEST(test_memory_turned_on),
        TEST(test_bad_particles),
        TEST(test_bad_calls),
        TEST(test_bad_sources),
        TEST(test_bad_pairs),
        TEST(test_defaults),
        TEST(test_texts),
        TEST(test_bad_sums),
        TEST(test_deterministic_sums),
        TEST(test_empty),
        TEST(test_half_a_period),
        TEST(test_reserve),
        TEST(test_growth),
        TEST(test_exact_memory),
        TEST(test_tight_memory),
        TEST(test_out_of_memory),
        TEST(test_load_out_of_memory),
        TEST(test_change_of_allocator),
        TEST(test_crooked_memory),
        TEST(test_files),
        TEST(test_files_refused),
        TEST(test_damaged_files),
        TEST(test_forged_files),
        TEST(test_heads_of_keys),
        TEST(test_keys_of_a_file),
        TEST(test_doubles_in_a_file),
        TEST(test_versions_of_files),
        TEST(test_box_of_a_file),
        TEST(test_file_of_nobody),
        TEST(test_domain_empties),
        TEST(test_nobody_out_of_memory),
        TEST(test_verify),
        TEST(test_sums_of_little),
        TEST(test_sums_end),
        TEST(test_reserved_is_empty),
        TEST(test_validate_finds_damage),
        TEST(test_validate_touched_rows),
        TEST(test_validate_is_safe),
        TEST(test_pairs),
        TEST(test_find),
        TEST(test_remap_by_hand),
    };
    if (getenv("NLIST_TEST_ONLY")) cmocka_set_test_filter(getenv("NLIST_TEST_ONLY"));
    return cmocka_run_group_tests_name("nlist calls", tests, NULL, NULL);
}
