/* test_ugrid_outside.c - desc.outside and desc.grow of ugrid.h.
   SPDX-License-Identifier: MIT OR Unlicense

   The oracle of UGRID_LEAVE_OUT: a grid of the particles that are inside, alone. Its rows are
   compared with brute force in other tests; here all searches must give the same rows, with the
   same order, under the ids of the larger grid, and nothing for the others. Who is inside is
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

static int inside(const ugrid_desc *d, const ugrid_real *p)
{
    int a;
    for (a = 0; a < d->dim; a++)
        if (!d->periodic[a] && (p[a] < d->min[a] || p[a] > d->max[a])) return 0;
    return 1;
}

/* The same particles, all of them and those inside. */
typedef struct both {
    ugrid_real pos[3 * MOST], kept[3 * MOST];
    int32_t n, m, old_of[MOST], new_of[MOST];
    ugrid all, few;
} both;

static void make(both *b, const ugrid_desc *d, int32_t n)
{
    int32_t i;
    int a;
    b->n = n;
    b->m = 0;
    for (i = 0; i < n; i++) {
        ugrid_real *p = b->pos + i * d->dim;
        for (a = 0; a < d->dim; a++) p[a] = coordinate(d, a);
        b->new_of[i] = inside(d, p) ? b->m : -1;
        if (!inside(d, p)) continue;
        memcpy(b->kept + b->m * d->dim, p, (size_t)d->dim * sizeof *p);
        b->old_of[b->m++] = i;
    }
}

static void check_structure(const both *b)
{
    int32_t values[MOST], by_place[MOST], back[MOST], k, bad;
    const ugrid *g = &b->all;
    CHECK(g->outside == b->n - b->m && g->entries == b->few.entries);
    CHECK_RESULT(ugrid_validate(g), UGRID_OK);
    CHECK_RESULT(ugrid_verify(g, g->desc.cell, b->n, 3, &bad), UGRID_OK);
    for (k = 0; k < b->n; k++) values[k] = 1000 + k;
    CHECK_RESULT(ugrid_gather(g, values, sizeof *values, by_place), UGRID_OK);
    CHECK_RESULT(ugrid_scatter(g, by_place, sizeof *values, back), UGRID_OK);
    CHECK(memcmp(values, back, (size_t)b->n * sizeof *values) == 0);
    for (k = 0; k < b->n; k++) {
        ugrid_real p[3];
        ugrid_point(g, k, p);
        if (g->record) CHECK((p[0] == p[0]) == (b->new_of[ugrid_id(g, k)] >= 0));
        if (g->inverse) CHECK(g->inverse[ugrid_id(g, k)] == k);
    }
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
        CHECK_RESULT(ugrid_query(&b->all, p, radius, ids, MOST, &found), UGRID_OK);
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

static void check_case(ugrid_desc d)
{
    both *b = (both *)calloc(1, sizeof *b);
    int flags;
    assert_non_null(b);
    make(b, &d, 1 + roll(MOST - 1));
    d.outside = UGRID_LEAVE_OUT;
    CHECK_RESULT(ugrid_build(&b->all, &d, b->pos, 0, b->n), UGRID_OK);
    d.outside = UGRID_CLAMP;
    CHECK_RESULT(ugrid_build(&b->few, &d, b->kept, 0, b->m), UGRID_OK);
    if (b->m > 0) {
        check_structure(b);
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
                        check_case(desc_of(dim, periodic, (ugrid_method)method, tight));
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
            make(b, &d, 40);
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
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_box),
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_grow_too_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
