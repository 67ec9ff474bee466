/* test_ugrid_outside.c - desc.outside, desc.skip_invalid and desc.grow of ugrid.h.
   SPDX-License-Identifier: MIT OR Unlicense

   The oracle of UGRID_LEAVE_OUT and skip_invalid: a grid of the particles that are kept, alone. Its
   rows are compared with brute force in other tests; here all searches must give the same rows,
   with the same order, under the ids of the larger grid, and nothing for the others. Who is kept is
   decided here by plain comparisons. */

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define TESTED ugrid
#define SHARE 1
#include "../../common/testing.h"

enum { MOST = 120 };

/* Anywhere, outside, on the borders, and one number beside them. */
static ugrid_real coordinate(const ugrid_desc *d, int a)
{
    ugrid_real const length = d->max[a] - d->min[a];
    int const kind = roll(10);
    if (kind < 2) return beside(roll(2) ? d->min[a] : d->max[a], roll(3) - 1);
    if (kind == 2) return d->min[a] + length * ((ugrid_real)roll(9) - 4);
    return d->min[a] + length * ((ugrid_real)1.4 * (ugrid_real)wl_u(&dice) - (ugrid_real)0.2);
}

static int finite(const ugrid_desc *d, const ugrid_real *p)
{
    int a;
    for (a = 0; a < d->dim; a++) if (!(p[a] - p[a] == 0)) return 0;
    return 1;
}

static int inside(const ugrid_desc *d, const ugrid_real *p)
{
    int a;
    for (a = 0; a < d->dim; a++)
        if (!d->periodic[a] && (p[a] < d->min[a] || p[a] > d->max[a])) return 0;
    return 1;
}

/* Who is left out. */
enum { OUTSIDE = 1, INVALID = 2 };

/* The same particles, all of them and those that are kept. */
typedef struct both {
    ugrid_real pos[3 * MOST], kept[3 * MOST];
    int32_t n, m, outside, invalid, first_invalid, old_of[MOST], new_of[MOST];
    ugrid all, few;
} both;

static void make(both *b, const ugrid_desc *d, int32_t n, int who)
{
    static const ugrid_real bad[3] = {REAL_NAN, REAL_INFINITY, -REAL_INFINITY};
    int32_t i;
    int a;
    b->n = n;
    b->m = b->outside = b->invalid = 0;
    b->first_invalid = -1;
    for (i = 0; i < n; i++) {
        ugrid_real *p = b->pos + i * d->dim;
        for (a = 0; a < d->dim; a++) p[a] = coordinate(d, a);
        if (who & INVALID && roll(4) == 0) p[roll(d->dim)] = bad[roll(3)];
        b->new_of[i] = -1;
        if (!finite(d, p)) {
            if (b->invalid++ == 0) b->first_invalid = i;
            continue;
        }
        if (who & OUTSIDE && !inside(d, p)) { b->outside++; continue; }
        b->new_of[i] = b->m;
        memcpy(b->kept + b->m * d->dim, p, (size_t)d->dim * sizeof *p);
        b->old_of[b->m++] = i;
    }
}

static void check_structure(const both *b)
{
    int32_t values[MOST], by_place[MOST], back[MOST], k, bad;
    const ugrid *g = &b->all;
    CHECK(g->outside == b->outside && g->invalid == b->invalid && g->bad_id == b->first_invalid);
    CHECK(g->entries == b->few.entries);
    CHECK_RESULT(ugrid_validate(g), UGRID_OK);
    CHECK_RESULT(ugrid_verify(g, g->desc.cell, b->n, 3, &bad), UGRID_OK);
    for (k = 0; k < b->n; k++) values[k] = 1000 + k;
    CHECK_RESULT(ugrid_gather(g, values, sizeof *values, by_place), UGRID_OK);
    CHECK_RESULT(ugrid_scatter(g, by_place, sizeof *values, back), UGRID_OK);
    CHECK(memcmp(values, back, (size_t)b->n * sizeof *values) == 0);
    for (k = 0; k < b->n; k++) {
        ugrid_real p[3];
        ugrid_point(g, k, p);
        if (g->record) CHECK(finite(&g->desc, p) == (b->new_of[ugrid_id(g, k)] >= 0));
        if (g->inverse) CHECK(g->inverse[ugrid_id(g, k)] == k);
        if (!g->start || g->spans > 1 || k < b->m) continue;
        CHECK(b->new_of[g->order[k]] < 0 && (k == b->m || g->order[k] > g->order[k - 1]));
    }
}

/* The counts are a part of the structure. */
static void check_counts_matter(both *b)
{
    b->all.invalid++;
    CHECK_RESULT(ugrid_validate(&b->all), UGRID_INVALID);
    b->all.invalid--;
    b->all.outside--;
    CHECK_RESULT(ugrid_validate(&b->all), UGRID_INVALID);
    b->all.outside++;
}

static void check_sums(const both *b)
{
    static ugrid_real ones[MOST], sums[4000], want[4000];
    int32_t k;
    CHECK(b->all.cell_count == b->few.cell_count && b->all.cell_count <= 4000);
    for (k = 0; k < b->n; k++) ones[k] = 1;
    CHECK_RESULT(ugrid_cell_sums(&b->all, ones, 1, sums), UGRID_OK);
    CHECK_RESULT(ugrid_cell_sums(&b->few, ones, 1, want), UGRID_OK);
    for (k = 0; k < b->all.cell_count; k++) CHECK(sums[k] == want[k]);
}

/* Rows by id: ids of the small grid are those of the large one by old_of. */
static void check_rows(const both *b, ugrid_real radius, int flags)
{
    static int32_t ids[MOST * MOST], want[MOST * MOST], counts[MOST];
    static int64_t begin[MOST + 1], from[MOST + 1];
    int64_t needed, expected, pairs, other;
    int32_t i, k;
    CHECK_RESULT(ugrid_neighbors(&b->all, radius, flags, begin, ids, MOST * MOST, &needed),
                 UGRID_OK);
    CHECK_RESULT(ugrid_neighbors(&b->few, radius, flags, from, want, MOST * MOST, &expected),
                 UGRID_OK);
    CHECK_RESULT(ugrid_count_neighbors(&b->all, radius, flags, counts), UGRID_OK);
    CHECK_RESULT(ugrid_count_pairs(&b->all, radius, &pairs), UGRID_OK);
    CHECK_RESULT(ugrid_count_pairs(&b->few, radius, &other), UGRID_OK);
    CHECK(needed == expected && pairs == other);
    for (i = 0; i < b->n; i++) {
        int32_t const row = b->new_of[i], length = (int32_t)(begin[i + 1] - begin[i]);
        CHECK(counts[i] == length);
        CHECK(length == (row < 0 ? 0 : (int32_t)(from[row + 1] - from[row])));
        for (k = 0; k < length; k++) CHECK(ids[begin[i] + k] == b->old_of[want[from[row] + k]]);
    }
    CHECK_RESULT(ugrid_neighbors(&b->all, radius, flags | UGRID_PLACES, begin, ids, MOST * MOST,
                                 &needed), UGRID_OK);
    for (k = 0; k < b->n; k++)
        if (b->new_of[ugrid_id(&b->all, k)] < 0) CHECK(begin[k] == begin[k + 1]);
}

/* Walks from every particle, and queries: what they find, in order. */
static void check_walks(const both *b, ugrid_real radius)
{
    int32_t ids[MOST], want[MOST], i, k, found, expected, places;
    for (i = 0; i < b->n; i++) {
        const ugrid_real *p = b->pos + i * b->all.desc.dim;
        CHECK_RESULT(ugrid_query(&b->all, p, radius, ids, MOST, &found),
                     finite(&b->all.desc, p) ? UGRID_OK : UGRID_NOT_FINITE);
        if (!finite(&b->all.desc, p)) continue;
        CHECK_RESULT(ugrid_query(&b->few, p, radius, want, MOST, &expected), UGRID_OK);
        CHECK(found == expected);
        for (k = 0; k < found; k++) CHECK(ids[k] == b->old_of[want[k]]);
    }
    for (places = 0; places < b->n; places++) {
        ugrid_near walk = ugrid_near_place(&b->all, places, radius);
        if (b->new_of[ugrid_id(&b->all, places)] < 0) CHECK(!ugrid_next(&walk));
        else while (ugrid_next(&walk)) CHECK(b->new_of[walk.id] >= 0);
    }
}

static void check_case(ugrid_desc d, int who)
{
    both *b = (both *)calloc(1, sizeof *b);
    int flags;
    assert_non_null(b);
    make(b, &d, 1 + roll(MOST - 1), who);
    if (who & OUTSIDE) d.outside = UGRID_LEAVE_OUT;
    d.skip_invalid = who & INVALID;
    CHECK_RESULT(ugrid_build(&b->all, &d, b->pos, 0, b->n), UGRID_OK);
    d.outside = UGRID_CLAMP;
    d.skip_invalid = 0;
    CHECK_RESULT(ugrid_build(&b->few, &d, b->kept, 0, b->m), UGRID_OK);
    if (b->m > 0) {
        check_structure(b);
        check_counts_matter(b);
        check_sums(b);
        for (flags = 0; flags < 2; flags++) {
            check_rows(b, d.cell, flags);
            check_rows(b, d.cell * (ugrid_real)1.7, flags);
        }
        check_walks(b, d.cell);
    }
    ugrid_free(&b->all);
    ugrid_free(&b->few);
    free(b);
}

static ugrid_desc desc_of(int dim, int periodic, ugrid_method method, int tight)
{
    ugrid_desc d;
    int a;
    memset(&d, 0, sizeof d);
    d.dim = dim;
    d.method = method;
    d.cell = (ugrid_real)0.23;
    d.slots = 8 * MOST;
    d.inverse = 1;
    d.no_records = roll(4) == 0;
    if (tight && method != UGRID_LIST_PACKED) d.placement = UGRID_TIGHT;
    if (roll(3) == 0) d.cell_order = UGRID_MORTON;
    for (a = 0; a < dim; a++) {
        d.min[a] = (ugrid_real)(a - 1) * (ugrid_real)0.31;
        d.max[a] = d.min[a] + (ugrid_real)(1 + a * 0.3);
        d.periodic[a] = periodic >> a & 1;
    }
    return d;
}

static void test_left_out(void **state)
{
    int dim, periodic, method, tight, turn;
    (void)state;
    dice = wl_seed(21);
    for (dim = 2; dim <= 3; dim++)
        for (periodic = 0; periodic < 1 << dim; periodic++)
            for (method = UGRID_AUTO; method <= UGRID_LIST_PACKED; method++)
                for (tight = 0; tight < 2; tight++)
                    for (turn = 0; turn < (small_run() ? 1 : 6); turn++)
                        check_case(desc_of(dim, periodic, (ugrid_method)method, tight), OUTSIDE);
}

/* NaN and infinity, with and without those outside; boxes, and none. */
static void test_invalid(void **state)
{
    int dim, periodic, method, tight, turn, who;
    (void)state;
    dice = wl_seed(23);
    for (dim = 2; dim <= 3; dim++)
        for (periodic = 0; periodic <= 1 << dim; periodic++)
            for (method = UGRID_AUTO; method <= UGRID_LIST_PACKED; method++)
                for (tight = 0; tight < 2; tight++)
                    for (turn = 0; turn < (small_run() ? 1 : 2); turn++) {
                        ugrid_desc d = desc_of(dim, periodic, (ugrid_method)method, tight);
                        d.unbounded = periodic == 1 << dim;
                        d.buckets = 64;
                        if (d.unbounded) d.cell_order = UGRID_ROWS, memset(d.periodic, 0, 12);
                        who = d.unbounded || turn % 2 ? INVALID : INVALID | OUTSIDE;
                        check_case(d, who);
                    }
}

/* The box of those that are finite; none of them; and the refusal that comes first. */
static void test_invalid_boxes(void **state)
{
    both *b = (both *)calloc(1, sizeof *b);
    ugrid_desc d, all, few;
    int32_t i, ids[4], found, bad;
    int64_t pairs;
    int method;
    (void)state;
    assert_non_null(b);
    dice = wl_seed(24);
    memset(&all, 0, sizeof all);
    all.dim = 3;
    all.cell = (ugrid_real)0.25;
    few = d = all;
    all.skip_invalid = 1;
    d.min[0] = d.min[1] = d.min[2] = 5; /* a box that 0 is not in */
    d.max[0] = d.max[1] = d.max[2] = 6;
    do make(b, &d, MOST, INVALID); while (b->first_invalid > 0);
    CHECK_RESULT(ugrid_fit(&few, b->pos, 0, MOST, &bad), UGRID_NOT_FINITE);
    CHECK(bad == b->first_invalid);
    few = d = all;
    few.skip_invalid = 0;
    CHECK_RESULT(ugrid_fit(&all, b->pos, 0, MOST, &bad), UGRID_OK);
    CHECK_RESULT(ugrid_fit(&few, b->kept, 0, b->m, NULL), UGRID_OK);
    CHECK(bad == -1 && memcmp(all.min, few.min, sizeof all.min) == 0);
    CHECK(memcmp(all.max, few.max, sizeof all.max) == 0 && all.cell == few.cell);
    for (method = UGRID_AUTO; method <= UGRID_LIST_PACKED; method++) {
        d.method = (ugrid_method)method;
        for (i = 0; i < 3 * MOST; i++) b->pos[i] = REAL_NAN;
        CHECK_RESULT(ugrid_build(&b->all, &d, b->pos, 0, 4), UGRID_OK);
        CHECK(b->all.n == 4 && b->all.entries == 0 && b->all.invalid == 4 && b->all.bad_id == 0);
        CHECK_RESULT(ugrid_count_pairs(&b->all, 1, &pairs), UGRID_OK);
        CHECK_RESULT(ugrid_query(&b->all, b->kept, 1, ids, 4, &found), UGRID_OK);
        CHECK(pairs == 0 && found == 0);
        CHECK_RESULT(ugrid_verify(&b->all, 1, 4, 0, &bad), UGRID_OK);
        few = d;
        few.outside = UGRID_REFUSE;
        few.max[0] = few.max[1] = few.max[2] = 1;
        for (i = 0; i < 12; i++) b->pos[i] = i == 4 ? REAL_INFINITY : i == 9 ? 2 : 0;
        CHECK_RESULT(ugrid_build(&b->all, &few, b->pos, 0, 4), UGRID_OUTSIDE_BOX);
        CHECK(b->all.bad_id == 3 && b->all.outside == 1 && b->all.invalid == 1);
        few.skip_invalid = 0;
        CHECK_RESULT(ugrid_build(&b->all, &few, b->pos, 0, 4), UGRID_NOT_FINITE);
        CHECK(b->all.bad_id == 1 && b->all.invalid == 0);
    }
    ugrid_free(&b->all);
    free(b);
}

static void test_refused(void **state)
{
    int method, turn;
    (void)state;
    dice = wl_seed(22);
    for (method = UGRID_AUTO; method <= UGRID_LIST_PACKED; method++) {
        for (turn = 0; turn < 8; turn++) {
            both *b = (both *)calloc(1, sizeof *b);
            ugrid_desc d = desc_of(3, turn, (ugrid_method)method, turn % 2);
            int32_t first = 0;
            int64_t pairs;
            assert_non_null(b);
            make(b, &d, 40, OUTSIDE);
            while (first < b->n && b->new_of[first] >= 0) first++;
            d.outside = UGRID_REFUSE;
            CHECK_RESULT(ugrid_build(&b->all, &d, b->pos, 0, b->n),
                         first < b->n ? UGRID_OUTSIDE_BOX : UGRID_OK);
            CHECK(b->all.outside == b->n - b->m);
            CHECK(b->all.bad_id == (first < b->n ? first : -1));
            if (first < b->n)
                CHECK_RESULT(ugrid_count_pairs(&b->all, d.cell, &pairs), UGRID_NOT_BUILT);
            CHECK_RESULT(ugrid_build(&b->all, &d, b->kept, 0, b->m), UGRID_OK);
            CHECK(b->all.outside == 0 && b->all.bad_id == -1);
            b->pos[3 * 39] = (ugrid_real)NAN; /* is reported before those outside */
            CHECK_RESULT(ugrid_build(&b->all, &d, b->pos, 0, b->n), UGRID_NOT_FINITE);
            CHECK(b->all.bad_id == 39);
            d.outside = UGRID_LEAVE_OUT;
            CHECK_RESULT(ugrid_build(&b->all, &d, b->pos, 0, b->n), UGRID_NOT_FINITE);
            d.outside = (ugrid_outside)3;
            CHECK_RESULT(ugrid_build(&b->all, &d, b->kept, 0, b->m), UGRID_BAD_OPTION);
            ugrid_free(&b->all);
            free(b);
        }
    }
}

/* Where there is no box, or it is that of the points, nobody is outside. */
static void test_no_box(void **state)
{
    ugrid_real const pos[] = {-7, 0, 0, 900, 1, 0, 900, (ugrid_real)1.1, 0};
    ugrid grid = {0};
    ugrid_desc d;
    int64_t pairs;
    int turn;
    (void)state;
    for (turn = 0; turn < 2; turn++) {
        memset(&d, 0, sizeof d);
        d.outside = UGRID_REFUSE;
        d.cell = (ugrid_real)10;
        d.unbounded = turn;
        CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, 3), UGRID_OK);
        CHECK_RESULT(ugrid_count_pairs(&grid, (ugrid_real)0.5, &pairs), UGRID_OK);
        CHECK(pairs == 1 && grid.outside == 0);
    }
    ugrid_free(&grid);
}

/* ---- desc.grow ---- */

static void test_grow(void **state)
{
    enum { CROWD = 37 };
    ugrid_real pos[3 * CROWD];
    int32_t ids[CROWD], found;
    ugrid grid = {0};
    ugrid_desc d;
    heap h = {0, 0, 0, 0, 0, 0};
    int64_t pairs, calls;
    int k, layout;
    (void)state;
    for (k = 0; k < 3 * CROWD; k++) pos[k] = (ugrid_real)0.5;
    for (layout = 0; layout < 2; layout++) {
        memset(&d, 0, sizeof d);
        memset(&h, 0, sizeof h);
        d.max[0] = d.max[1] = d.max[2] = 1;
        d.cell = (ugrid_real)0.1;
        d.method = UGRID_FIXED;
        d.slot_layout = (ugrid_slot_layout)layout;
        d.slots = 3;
        d.allocator.alloc = heap_alloc;
        d.allocator.free = heap_free;
        d.allocator.user = &h;
        CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, CROWD), UGRID_CELL_FULL);
        CHECK(grid.needed_slots == CROWD);
        d.grow = 1;
        CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, CROWD), UGRID_OK);
        CHECK(grid.desc.slots == 48 && grid.needed_slots == CROWD && grid.entries == CROWD);
        CHECK_RESULT(ugrid_validate(&grid), UGRID_OK);
        CHECK_RESULT(ugrid_query(&grid, pos, d.cell, ids, CROWD, &found), UGRID_OK);
        CHECK_RESULT(ugrid_count_pairs(&grid, d.cell, &pairs), UGRID_OK);
        CHECK(found == CROWD && pairs == CROWD * (CROWD - 1) / 2);
        calls = h.calls; /* the slots stay: nothing is allocated, and few particles fit too */
        CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, CROWD), UGRID_OK);
        CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, 2), UGRID_OK);
        CHECK(grid.desc.slots == 48 && h.calls == calls);
        d.grow = 0;
        CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, CROWD), UGRID_CELL_FULL);
        ugrid_free(&grid);
        h.calls = 0;
        h.fail_at = 3; /* start, slots; then the larger slots */
        d.grow = 1;
        CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, CROWD), UGRID_OUT_OF_MEMORY);
        CHECK(grid.built == 0 && grid.n == 0 && grid.desc.slots == 3);
        CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, CROWD), UGRID_OK);
        ugrid_free(&grid);
        CHECK(h.live_blocks == 0 && !h.wrong);
    }
}

/* 2^21 cells with 1025 slots are too many. */
static void test_grow_too_far(void **state)
{
    enum { CROWD = 1025 };
    static ugrid_real pos[3 * CROWD];
    ugrid grid = {0};
    ugrid_desc d;
    (void)state;
    memset(&d, 0, sizeof d);
    d.max[0] = d.max[1] = d.max[2] = 1;
    d.cell = (ugrid_real)1 / 128;
    d.method = UGRID_FIXED;
    d.slots = d.grow = 1;
    CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, CROWD), UGRID_BAD_SLOTS);
    CHECK(!grid.built && grid.desc.slots == 1 && grid.needed_cells == 1 << 21);
    CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, 3), UGRID_OK);
    ugrid_free(&grid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_invalid_boxes),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_box),
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_grow_too_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
