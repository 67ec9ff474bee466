/* test_ugrid_plain.c - the plain form of the method and its faster forms give the same bits: every
   array of a grid, every list and every count. Here the header is compiled with UGRID_PLAIN, and
   its functions have other names; those of the object of all headers are the faster ones. Without
   that object (a compiler that gets this file alone) the plain form is only verified, by brute
   force.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -I. -DUGRID_IMPLEMENTATION_DONE tests/unit/ugrid/test_ugrid_plain.c
           headers.o (of tests/common/headers.c) -lcmocka -lm */

#ifdef UGRID_IMPLEMENTATION_DONE
#undef UGRID_IMPLEMENTATION_DONE
#define WITH_OBJECT
#endif

/* The functions of the header, as they are named in a float build and in a double build. */
#define UGRID_IMPLEMENTATION
#define UGRID_PLAIN

#define ugrid_f64_version         plain_version
#define ugrid_f64_result_text     plain_result_text
#define ugrid_f64_defaults        plain_defaults
#define ugrid_f64_choose          plain_choose
#define ugrid_f64_fit             plain_fit
#define ugrid_f64_reserve         plain_reserve
#define ugrid_f64_build           plain_build
#define ugrid_f64_free            plain_free
#define ugrid_f64_bytes           plain_bytes
#define ugrid_f64_validate        plain_validate
#define ugrid_f64_verify          plain_verify
#define ugrid_f64_save            plain_save
#define ugrid_f64_load            plain_load
#define ugrid_f64_gather          plain_gather
#define ugrid_f64_scatter         plain_scatter
#define ugrid_f64_cell_sums       plain_cell_sums
#define ugrid_f64_query           plain_query
#define ugrid_f64_query_box       plain_query_box
#define ugrid_f64_count_pairs     plain_count_pairs
#define ugrid_f64_count_overlaps  plain_count_overlaps
#define ugrid_f64_count_neighbors plain_count_neighbors
#define ugrid_f64_neighbors       plain_neighbors
#define ugrid_f64_neighbors_at    plain_neighbors_at
#define ugrid_f64_each_pair       plain_each_pair
#define ugrid_f64_each_row        plain_each_row
#define ugrid_f64_each_row_in     plain_each_row_in
#define PLAIN_FLOAT  1
#define PLAIN_double 2
#define PLAIN_PASTE(a, b) a##b
#define PLAIN_KIND(real) PLAIN_PASTE(PLAIN_, real)
#if !defined(UGRID_REAL) || PLAIN_KIND(UGRID_REAL) != 2
#define ugrid_version         plain_version
#define ugrid_result_text     plain_result_text
#define ugrid_defaults        plain_defaults
#define ugrid_choose          plain_choose
#define ugrid_fit             plain_fit
#define ugrid_reserve         plain_reserve
#define ugrid_build           plain_build
#define ugrid_free            plain_free
#define ugrid_bytes           plain_bytes
#define ugrid_validate        plain_validate
#define ugrid_verify          plain_verify
#define ugrid_save            plain_save
#define ugrid_load            plain_load
#define ugrid_gather          plain_gather
#define ugrid_scatter         plain_scatter
#define ugrid_cell_sums       plain_cell_sums
#define ugrid_query           plain_query
#define ugrid_query_box       plain_query_box
#define ugrid_count_pairs     plain_count_pairs
#define ugrid_count_overlaps  plain_count_overlaps
#define ugrid_count_neighbors plain_count_neighbors
#define ugrid_neighbors       plain_neighbors
#define ugrid_neighbors_at    plain_neighbors_at
#define ugrid_each_pair       plain_each_pair
#define ugrid_each_row        plain_each_row
#define ugrid_each_row_in     plain_each_row_in
#endif
#include "ugrid.h"

#ifdef WITH_OBJECT
/* From here on the names without `plain` are those of the object. */
#if UGRID_I_REAL_KIND == 2
#define FASTER(name) PLAIN_PASTE(ugrid_f64_, name)
#undef ugrid_f64_build
#undef ugrid_f64_free
#undef ugrid_f64_gather
#undef ugrid_f64_cell_sums
#undef ugrid_f64_query
#undef ugrid_f64_count_pairs
#undef ugrid_f64_count_overlaps
#undef ugrid_f64_count_neighbors
#undef ugrid_f64_neighbors
#undef ugrid_f64_neighbors_at
#undef ugrid_f64_each_row_in
#else
#define FASTER(name) PLAIN_PASTE(ugrid_, name)
#undef ugrid_build
#undef ugrid_free
#undef ugrid_gather
#undef ugrid_cell_sums
#undef ugrid_query
#undef ugrid_query_box
#undef ugrid_count_pairs
#undef ugrid_count_overlaps
#undef ugrid_count_neighbors
#undef ugrid_neighbors
#undef ugrid_neighbors_at
#undef ugrid_each_row_in
#endif
extern __typeof__(plain_build) FASTER(build);
extern __typeof__(plain_free) FASTER(free);
extern __typeof__(plain_gather) FASTER(gather);
extern __typeof__(plain_cell_sums) FASTER(cell_sums);
extern __typeof__(plain_query) FASTER(query);
extern __typeof__(plain_count_pairs) FASTER(count_pairs);
extern __typeof__(plain_count_neighbors) FASTER(count_neighbors);
extern __typeof__(plain_neighbors) FASTER(neighbors);
extern __typeof__(plain_neighbors_at) FASTER(neighbors_at);
extern __typeof__(plain_each_row_in) FASTER(each_row_in);
#endif

#define TESTED ugrid
#define SHARE 1
#include "../../common/testing.h"

enum { MOST = 33000, ROOM = 60 * MOST };

static real pos[3 * MOST], radius;
static int32_t now_n;
static ugrid_desc now;
static ugrid_filter filter;
static int filtered;

static void describe_now(void)
{
    print_error("dim %d n %d method %d placement %d walk %d order %d periodic %d%d%d unbounded %d "
                "rows %d outside %d tasks %d filtered %d\n",
                (int)now.dim, (int)now_n, (int)now.method, (int)now.placement, (int)now.walk,
                (int)now.cell_order, (int)now.periodic[0], (int)now.periodic[1],
                (int)now.periodic[2], (int)now.unbounded, (int)now.rows, (int)now.outside,
                (int)now.parallel.tasks, filtered);
}

static void run_backwards(ugrid_task *task, void *context, int32_t tasks, void *user)
{
    (void)user;
    while (tasks-- > 0) task(context, tasks);
}

static int same_words(const int32_t *a, const int32_t *b, int64_t count)
{
    if (!a || !b) return a == b;
    return count == 0 || memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

static void check_same_grid(const ugrid *plain, const ugrid *faster)
{
    int32_t k;
    CHECK(plain->entries == faster->entries && plain->cell_count == faster->cell_count);
    CHECK(plain->bad_id == faster->bad_id && plain->outside == faster->outside);
    CHECK(plain->invalid == faster->invalid && plain->needed_slots == faster->needed_slots);
    CHECK(plain->desc.method == faster->desc.method && plain->desc.walk == faster->desc.walk);
    CHECK(same_words(plain->start, faster->start, (int64_t)plain->cell_count + 1));
    CHECK(same_words(plain->order, faster->order,
                     plain->desc.placement == UGRID_TIGHT ? plain->entries : plain->n));
    CHECK(same_words(plain->inverse, faster->inverse, plain->n));
    CHECK(same_words(plain->count, faster->count, plain->cell_count));
    CHECK(same_words(plain->head, faster->head, plain->cell_count));
    CHECK(same_words(plain->next, faster->next, (int64_t)plain->n * plain->spans));
    CHECK(!plain->record == !faster->record);
    if (!plain->record) return;
    for (k = 0; k < plain->n; k++) {
        CHECK(plain->record[k].link == faster->record[k].link);
        CHECK(memcmp(plain->record[k].x, faster->record[k].x, sizeof plain->record[k].x) == 0);
    }
}

typedef struct rows { int32_t ids[ROOM]; int64_t count; } rows;

static int take(void *user, int32_t i, const int32_t *ids, int32_t count)
{
    rows *all = (rows *)user;
    int32_t k;
    for (k = 0; k < count && all->count < ROOM - 2; k++) {
        all->ids[all->count++] = i;
        all->ids[all->count++] = ids[k];
    }
    return 0;
}

/* Sorts what was taken by rows, and keeps the order within a row. */
static void sort_rows(rows *all)
{
    static rows sorted;
    static int64_t end[MOST + 1];
    int64_t k;
    memset(end, 0, sizeof end);
    for (k = 0; k < all->count; k += 2) end[all->ids[k] + 1] += 2;
    for (k = 0; k < MOST; k++) end[k + 1] += end[k];
    for (k = 0; k < all->count; k += 2) {
        int64_t *to = &end[all->ids[k]];
        sorted.ids[*to] = all->ids[k];
        sorted.ids[*to + 1] = all->ids[k + 1];
        *to += 2;
    }
    memcpy(all->ids, sorted.ids, (size_t)all->count * sizeof *all->ids);
}

static void check_same_rows(const ugrid *plain, const ugrid *faster, int flags)
{
    static int32_t ids[2][ROOM], counts[2][MOST];
    static int64_t offsets[2][MOST + 1];
    static rows all[2];
    int32_t const m = flags & UGRID_PLACES ? plain->n : plain->rows;
    int64_t needed[2];
    CHECK_RESULT(plain_count_neighbors(plain, radius, flags, counts[0]), UGRID_OK);
    CHECK_RESULT(ugrid_count_neighbors(faster, radius, flags, counts[1]), UGRID_OK);
    CHECK(same_words(counts[0], counts[1], m));
    CHECK_RESULT(plain_neighbors(plain, radius, flags, offsets[0], ids[0], ROOM, &needed[0]),
                 UGRID_OK);
    CHECK_RESULT(ugrid_neighbors(faster, radius, flags, offsets[1], ids[1], ROOM, &needed[1]),
                 UGRID_OK);
    CHECK(needed[0] == needed[1] && same_words(ids[0], ids[1], needed[0]));
    CHECK(memcmp(offsets[0], offsets[1], ((size_t)m + 1) * sizeof **offsets) == 0);
    all[0].count = all[1].count = 0;
    CHECK_RESULT(plain_each_row_in(plain, radius, flags, 1, 3, take, &all[0]), UGRID_OK);
    CHECK_RESULT(ugrid_each_row_in(faster, radius, flags, 1, 3, take, &all[1]), UGRID_OK);
    if (now.unbounded) sort_rows(&all[0]), sort_rows(&all[1]); /* rows come cell by cell */
    CHECK(all[0].count == all[1].count && same_words(all[0].ids, all[1].ids, all[0].count));
}

static void check_same_points(const ugrid *plain, const ugrid *faster)
{
    static int32_t ids[2][ROOM];
    static int64_t offsets[2][MOST + 1];
    int64_t needed[2], pairs[2];
    int32_t const m = now_n / 2;
    int32_t found[2], q;
    CHECK_RESULT(plain_count_pairs(plain, radius, &pairs[0]), UGRID_OK);
    CHECK_RESULT(ugrid_count_pairs(faster, radius, &pairs[1]), UGRID_OK);
    CHECK(pairs[0] == pairs[1]);
    CHECK_RESULT(plain_neighbors_at(plain, pos, 0, m, radius, offsets[0], ids[0], ROOM, &needed[0]),
                 UGRID_OK);
    CHECK_RESULT(ugrid_neighbors_at(faster, pos, 0, m, radius, offsets[1], ids[1], ROOM,
                                    &needed[1]), UGRID_OK);
    CHECK(needed[0] == needed[1] && same_words(ids[0], ids[1], needed[0]));
    CHECK(memcmp(offsets[0], offsets[1], ((size_t)m + 1) * sizeof **offsets) == 0);
    for (q = 0; q < m; q += m / 16 + 1) {
        const real *p = pos + (size_t)q * (size_t)now.dim;
        ugrid_result const result = plain_query(plain, p, radius, ids[0], ROOM, &found[0]);
        CHECK_RESULT(ugrid_query(faster, p, radius, ids[1], ROOM, &found[1]), result);
        if (result == UGRID_OK)
            CHECK(found[0] == found[1] && same_words(ids[0], ids[1], found[0]));
    }
}

static void check_same_sums(const ugrid *plain, const ugrid *faster)
{
    static real sums[2][1 << 20], moved[2][3 * MOST];
    size_t const bytes = (size_t)now.dim * sizeof *pos;
    if (plain->cell_count >= 1 << 20) return;
    CHECK_RESULT(plain_cell_sums(plain, pos, 1, sums[0]), UGRID_OK);
    CHECK_RESULT(ugrid_cell_sums(faster, pos, 1, sums[1]), UGRID_OK);
    CHECK(memcmp(sums[0], sums[1], (size_t)plain->cell_count * sizeof *pos) == 0);
    CHECK_RESULT(plain_gather(plain, pos, bytes, moved[0]), UGRID_OK);
    CHECK_RESULT(ugrid_gather(faster, pos, bytes, moved[1]), UGRID_OK);
    CHECK(now_n == 0 || memcmp(moved[0], moved[1], (size_t)now_n * bytes) == 0);
}

static void check_now(void)
{
    ugrid plain = {0}, faster = {0};
    ugrid_result const result = plain_build(&plain, &now, pos, 0, now_n);
    int const step = now_n > 5000 ? 2 : 1; /* of many particles two lists are enough */
    int flags;
    CHECK_RESULT(ugrid_build(&faster, &now, pos, 0, now_n), result);
    if (result == UGRID_OK) {
        check_same_grid(&plain, &faster);
        if (filtered) plain.filter = faster.filter = filter;
        for (flags = step - 1; flags <= (UGRID_HALF | UGRID_PLACES); flags += step)
            check_same_rows(&plain, &faster, flags);
        check_same_points(&plain, &faster);
        check_same_sums(&plain, &faster);
        CHECK_RESULT(plain_verify(&plain, radius, 3, (uint32_t)now_n, NULL), UGRID_OK);
    } else {
        CHECK(plain.bad_id == faster.bad_id && plain.needed_slots == faster.needed_slots);
        CHECK(plain.needed_cells == faster.needed_cells);
    }
    plain_free(&plain);
    ugrid_free(&faster);
}

/* Half of the points in a clump, some outside the box, some at the same place. */
static void scatter_points(int32_t n, uint64_t seed)
{
    static real radii[MOST];
    static uint32_t masks[MOST];
    wl_random r = wl_seed(seed);
    int32_t i;
    now_n = n;
    for (i = 0; i < 3 * n; i++) {
        double const u = (double)wl_u(&r);
        pos[i] = (real)(i % 6 < 3 ? u : 0.3 + 0.2 * u);
        if (i % 97 == 0) pos[i] = (real)(u * 3 - 1);
        if (i >= 300 && i % 300 < 3) pos[i] = pos[i - 150];
    }
    for (i = 0; i < n; i++) {
        radii[i] = (real)(0.02 * (double)wl_u(&r));
        masks[i] = 1u << wl_below(&r, 3) | 1u << wl_below(&r, 3);
    }
    memset(&filter, 0, sizeof filter);
    filter.radii = radii;
    filter.largest = (real)0.02;
    filter.masks = masks;
}

static void begin(int dim, double r)
{
    int a;
    memset(&now, 0, sizeof now);
    now.dim = dim;
    now.cell = radius = (real)r;
    for (a = 0; a < dim; a++) now.max[a] = 1;
    filtered = 0;
}

/* Every method, placement, order and walk, with each set of periodic axes. */
static void test_grids(void **state)
{
    static const int32_t sizes[] = {0, 2, 40, 100};
    int const count = small_run() ? 3 : COUNT_OF(sizes);
    int k, dim, kind, axes, walk, a;
    (void)state;
    describe = describe_now;
    for (k = 0; k < count; k++)
        for (dim = 2; dim <= 3; dim++)
            for (kind = 0; kind < 6 * 2 * 2; kind++)
                for (axes = 0; axes < 1 << dim; axes = 2 * axes + 1)
                    for (walk = 0; walk < 5; walk++) {
                        begin(dim, dim == 2 ? 0.06 : 0.13);
                        scatter_points(sizes[k], (uint64_t)(k + 1));
                        now.method = (ugrid_method)(kind % 6);
                        now.placement = (ugrid_placement)(kind / 6 % 2);
                        now.cell_order = (ugrid_cell_order)(kind / 12);
                        now.walk = (ugrid_walk)walk;
                        now.slots = 8;
                        now.grow = 1;
                        now.inverse = walk == 1;
                        for (a = 0; a < dim; a++) now.periodic[a] = axes >> a & 1;
                        check_now();
                    }
}

/* Unbounded grids, ghosts, a filter, particles left out or refused, no records, radii of several
   cells, cells cut along x. */
static void test_options(void **state)
{
    int dim, method, option;
    (void)state;
    describe = describe_now;
    for (dim = 2; dim <= 3; dim++)
        for (method = 0; method <= UGRID_LIST_PACKED; method++)
            for (option = 0; option < 12; option++) {
                begin(dim, dim == 2 ? 0.06 : 0.13);
                scatter_points(option % 2 ? 300 : 400, (uint64_t)option + 7);
                now.method = (ugrid_method)method;
                now.slots = 100;
                if (option == 1) now.unbounded = 1;
                if (option == 2) now.rows = now_n / 3;
                if (option == 3) filtered = 1;
                if (option == 4) now.outside = UGRID_LEAVE_OUT;
                if (option == 5) now.outside = UGRID_REFUSE;
                if (option == 6) now.skip_invalid = 1;
                if (option == 6 || option == 7) pos[30] = pos[91] = REAL_NAN;
                if (option == 8) now.no_records = 1;
                if (option == 9) radius *= (real)2.5;
                if (option == 10) now.split = 3;
                if (option == 11) {
                    now.unbounded = filtered = 1;
                    now.rows = UGRID_NO_ROWS;
                }
                check_now();
            }
}

/* So many particles that work is cut into pieces; their tasks run in one thread, the last first. */
static void test_pieces(void **state)
{
    int option;
    (void)state;
    describe = describe_now;
    for (option = 0; option < 6; option++) {
        begin(3, 0.05);
        /* a build in pieces needs all of them, a search 4096 */
        scatter_points(option > 2 || small_run() ? 4200 : MOST, (uint64_t)option);
        radius = (real)0.012;
        now.parallel.run = run_backwards;
        now.parallel.tasks = 7;
        if (option == 1) now.method = UGRID_SORT;
        if (option == 2) now.periodic[0] = now.periodic[2] = 1;
        if (option == 3) now.rows = now_n / 2;
        if (option == 4) now.outside = UGRID_LEAVE_OUT;
        if (option == 5) {
            filtered = 1;
            radius = (real)0.004;
        }
        check_now();
    }
}

/* More particles in one cell, and around it, than share their candidates at a time: all spread in
   it, or all at one point but for some. */
static void test_crowd(void **state)
{
    int method, placement, spread, i;
    (void)state;
    describe = describe_now;
    for (method = UGRID_FIXED; method <= UGRID_LIST_PACKED; method++)
        for (placement = 0; placement < 2; placement++)
            for (spread = 0; spread < 2; spread++) {
                if (placement && method == UGRID_LIST_PACKED) continue;
                if (small_run() && (placement || spread != (method == UGRID_LIST))) continue;
                begin(3, 0.3);
                scatter_points(spread ? 2100 : 700, 5); /* 2048 candidates at a time */
                for (i = 0; i < 3 * now_n; i++)
                    if (i > 30 && spread) pos[i] = (real)0.31 + pos[i] * (real)0.05;
                    else if (i > 30) pos[i] = (real)0.4;
                radius = spread ? (real)0.004 : (real)0.3;
                now.method = (ugrid_method)method;
                now.placement = (ugrid_placement)placement;
                now.slots = now_n;
                check_now();
            }
}

/* The links of a list in another order, as a GPU makes them: half searches still find each pair
   once. */
static void test_any_order(void **state)
{
    static int32_t counts[MOST];
    ugrid grid = {0};
    int64_t pairs, want;
    int32_t c, k;
    (void)state;
    describe = describe_now;
    begin(3, 0.3);
    scatter_points(300, 3);
    now.method = UGRID_LIST;
    CHECK_RESULT(ugrid_build(&grid, &now, pos, 0, now_n), UGRID_OK);
    CHECK_RESULT(ugrid_count_pairs(&grid, radius, &want), UGRID_OK);
    for (c = 0; c < grid.cell_count; c++) { /* the first three change places */
        int32_t const first = grid.head[c], second = first < 0 ? -1 : grid.next[first],
                      third = second < 0 ? -1 : grid.next[second];
        if (third < 0) continue;
        grid.head[c] = second;
        grid.next[first] = grid.next[third];
        grid.next[third] = first;
        grid.next[second] = third;
    }
    CHECK_RESULT(ugrid_count_pairs(&grid, radius, &pairs), UGRID_OK);
    CHECK(pairs == want);
    CHECK_RESULT(ugrid_count_neighbors(&grid, radius, UGRID_HALF, counts), UGRID_OK);
    for (pairs = 0, k = 0; k < now_n; k++) pairs += counts[k];
    CHECK(pairs == want);
    ugrid_free(&grid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_grids),
                                       cmocka_unit_test(test_options),
                                       cmocka_unit_test(test_crowd),
                                       cmocka_unit_test(test_any_order),
                                       cmocka_unit_test(test_pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
