/* test_ugrid_nearest.c - ugrid_nearest, ugrid_nearest_rows: the k nearest particles, against a sort
   of all distances, in every kind of grid, by every form of the loops. And ugrid_query_box there,
   against a look at all particles.
   SPDX-License-Identifier: MIT OR Unlicense */

static int answer; /* to the header: the form of the loops */
#define UGRID_I_FORM() answer
#define UGRID_I_PIECE 16
#define UGRID_I_UNSORTED 300

#define UGRID_STATIC
#define UGRID_IMPLEMENTATION
#define UGRID_WITH_NEAREST
#include "ugrid.h"
#define TESTED ugrid
#define SHARE 1
#include "../../common/testing.h"

enum { MOST = 700, KEPT = 300 };

static ugrid_real pos[3 * MOST], points[3 * MOST];
static ugrid_real const far_away = (ugrid_real)1e15;
static ugrid_desc now;
static int32_t now_n, now_k;

static void describe_now(void)
{
    print_error("dim %d n %d k %d cell %g method %d placement %d unbounded %d periodic %d %d %d "
                "form %d\n", (int)now.dim, (int)now_n, (int)now_k, (double)now.cell,
                (int)now.method, (int)now.placement, (int)now.unbounded, (int)now.periodic[0],
                (int)now.periodic[1], (int)now.periodic[2], answer);
}

static int best_form(void)
{
#ifdef UGRID_I_FORMS
    return __builtin_cpu_supports("avx512vl") ? 2 : __builtin_cpu_supports("avx2") ? 1 : 0;
#else
    return 0;
#endif
}

typedef struct hit { ugrid_real d2; int32_t id; } hit;

static int in_order(const void *a, const void *b)
{
    const hit *x = (const hit *)a, *y = (const hit *)b;
    if (x->d2 < y->d2 || x->d2 > y->d2) return x->d2 < y->d2 ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Brute force: all distances, sorted; particle `self` does not count. Returns how many are kept. */
static int32_t expected_of(const ugrid *grid, const ugrid_real *p, int32_t self, int32_t k,
                           ugrid_real reach, hit *hits)
{
    int const dim = (int)grid->desc.dim;
    int32_t count = 0, i;
    for (i = 0; i < grid->n; i++) {
        ugrid_real const d2 = ugrid_distance2(grid, p, pos + dim * i);
        if (i == self || !(d2 <= reach * reach)) continue;
        hits[count].d2 = d2;
        hits[count++].id = i;
    }
    qsort(hits, (size_t)count, sizeof *hits, in_order);
    return count < k ? count : k;
}

static int is_expected(const hit *hits, int32_t count, int32_t k, const int32_t *ids,
                       const ugrid_real *d2, int32_t found)
{
    int32_t e;
    int right = found == count;
    for (e = 0; e < k && right; e++)
        right = e < count ? ids[e] == hits[e].id && !(d2[e] < hits[e].d2) && !(d2[e] > hits[e].d2)
                          : ids[e] == -1 && d2[e] > UGRID_I_REAL_MAX;
    return right;
}

/* One by one, in bulk, and of the particles themselves. */
static void check_nearest(const ugrid *grid, int32_t m, int32_t k, ugrid_real reach)
{
    static int32_t ids[MOST * KEPT], found[MOST];
    static ugrid_real d2[MOST * KEPT];
    static hit hits[MOST];
    int const dim = (int)grid->desc.dim;
    int32_t i, one[KEPT], one_found, e;
    ugrid_real one2[KEPT];
    now_k = k;
    CHECK_RESULT(ugrid_nearest_rows(grid, points, 0, m, k, reach, ids, d2, found), UGRID_OK);
    for (i = 0; i < m; i++) {
        int32_t const count = expected_of(grid, points + dim * i, -1, k, reach, hits);
        CHECK_RESULT(ugrid_nearest(grid, points + dim * i, k, reach, one, one2, &one_found),
                     UGRID_OK);
        for (e = one_found; e < k; e++) one[e] = -1, one2[e] = ugrid_i_not_finite(0);
        CHECK(is_expected(hits, count, k, one, one2, one_found));
        CHECK(is_expected(hits, count, k, ids + k * i, d2 + k * i, found[i]));
    }
    CHECK_RESULT(ugrid_nearest_rows(grid, NULL, 0, grid->rows, k, reach, ids, d2, found), UGRID_OK);
    for (i = 0; i < grid->rows; i += 1 + grid->n / 32) {
        int32_t const count = expected_of(grid, pos + dim * i, i, k, reach, hits);
        CHECK(is_expected(hits, count, k, ids + k * i, d2 + k * i, found[i]));
    }
}

/* Points of a kind: spread evenly, in clumps, on a lattice (many equal distances), few places. */
static void scatter(int kind, int dim, int32_t n, ugrid_real *to)
{
    int32_t i;
    int a;
    for (i = 0; i < n; i++) {
        double const clump = (double)wl_below(&dice, 3) / 3;
        for (a = 0; a < dim; a++) {
            double const u = (double)wl_u(&dice);
            to[dim * i + a] = (ugrid_real)(kind == 0   ? u
                                           : kind == 1 ? clump + u / 64
                                           : kind == 2 ? (double)wl_below(&dice, 8) / 8
                                           : kind == 3 ? (double)wl_below(&dice, 2) / 2
                                                       : (u - 0.5) * (u - 0.5) * 4);
        }
    }
}

/* Another desc: methods, placements, axes and cells in turn. */
static void choose_desc(int turn)
{
    static const ugrid_method methods[] = {UGRID_COUNT, UGRID_COUNT, UGRID_SORT, UGRID_FIXED,
                                           UGRID_LIST, UGRID_LIST_PACKED};
    static const double cells[] = {0.11, 0, 0.3, 0.05, 1.5};
    int a;
    memset(&now, 0, sizeof now);
    now.dim = turn % 3 == 1 ? 2 : 3;
    now.method = methods[turn % 6];
    now.cell = (ugrid_real)cells[turn % 5];
    for (a = 0; a < now.dim; a++) now.max[a] = 1;
    now.grow = 1;
    if (turn % 2) for (a = 0; a < now.dim; a++) now.periodic[a] = (turn >> (a + 1)) % 2;
    else if (turn % 11 == 4) now.unbounded = 1;
    if (turn % 7 == 3 && now.method != UGRID_LIST_PACKED) now.placement = UGRID_TIGHT;
    if (turn % 7 == 5 && now.method <= UGRID_SORT) now.cell_order = UGRID_MORTON;
    if (turn % 7 == 6 && now.method <= UGRID_SORT) now.no_records = 1;
    if (turn % 8 == 1) now.split = 3;
    if (now.unbounded && !(now.cell > 0)) now.cell = (ugrid_real)0.2;
}

static void search_all_kinds(void **state)
{
    static const int32_t counts[] = {1, 2, 60, 300, 700}, ks[] = {1, 2, 8, 33, 128, 129, 300};
    int turn, turns = quick_run() ? 40 : small_run() ? 120 : 500;
    (void)state;
    describe = describe_now;
    for (turn = 0; turn < turns; turn++) {
        ugrid grid = {0};
        int32_t const n = counts[wl_below(&dice, small_run() ? 4 : 5)], m = n < 24 ? n : 24;
        int32_t i;
        choose_desc(turn);
        now_n = n;
        answer = (int)wl_below(&dice, (uint32_t)best_form() + 1);
        scatter((int)wl_below(&dice, 5), (int)now.dim, n, pos);
        scatter((int)wl_below(&dice, 5), (int)now.dim, m, points);
        for (i = 0; i < m; i += 3) /* some are particles, some outside of the box */
            points[now.dim * i] = i % 2 ? pos[now.dim * i] : 3 * points[now.dim * i] - 1;
        if (turn % 9 == 2) now.rows = n / 2;
        CHECK_RESULT(ugrid_build(&grid, &now, pos, 0, n), UGRID_OK);
        check_nearest(&grid, m, ks[wl_below(&dice, 7)],
                      turn % 4 ? far_away : (ugrid_real)0.02 * (ugrid_real)wl_below(&dice, 20));
        ugrid_free(&grid);
    }
}

/* A reach that holds few: adjacent particles share their candidates. With periodic axes, ghosts,
   particles that are left out, equal distances, and a filter, which is not read. */
static void search_short_reaches(void **state)
{
    static const int32_t ks[] = {2, 3, 10, 40, 128};
    static uint32_t masks[MOST];
    int turn, turns = quick_run() ? 40 : small_run() ? 120 : 400, a;
    (void)state;
    describe = describe_now;
    for (turn = 0; turn < turns; turn++) {
        ugrid grid = {0};
        int32_t const k = ks[wl_below(&dice, 5)];
        ugrid_real const reach = (ugrid_real)(0.02 + 0.1 * (double)wl_u(&dice));
        memset(&now, 0, sizeof now);
        now.dim = turn % 2 ? 2 : 3;
        now_n = small_run() ? 200 : MOST;
        for (a = 0; a < now.dim; a++) {
            now.max[a] = 1;
            now.periodic[a] = turn % 3 == 0 && wl_below(&dice, 2);
        }
        if (turn % 5 == 1) now.rows = now_n - 20;
        if (turn % 5 == 2) now.skip_invalid = 1;
        if (turn % 5 == 3) now.cell = reach;
        if (turn % 5 == 4) now.walk = UGRID_MODULAR;
        answer = (int)wl_below(&dice, (uint32_t)best_form() + 1);
        scatter(turn % 7 == 6 ? 1 : turn % 7 == 5 ? 2 : 0, (int)now.dim, now_n, pos);
        scatter(0, (int)now.dim, 1, points);
        if (now.skip_invalid) pos[now.dim * 7] = ugrid_i_not_finite(1);
        CHECK_RESULT(ugrid_build(&grid, &now, pos, 0, now_n), UGRID_OK);
        grid.filter.masks = masks;
        check_nearest(&grid, 1, k, reach);
        ugrid_free(&grid);
    }
}

/* Without a box given, far from it, and with all particles at one point. */
static void search_far_away(void **state)
{
    static const double places[] = {0, 1e3, -1e6, 1e12};
    int32_t i;
    (void)state;
    describe = describe_now;
    for (i = 0; i < 8; i++) {
        ugrid grid = {0};
        int32_t q;
        memset(&now, 0, sizeof now);
        now.dim = 3;
        now_n = 300;
        answer = best_form();
        scatter(i < 4 ? 0 : 3, 3, now_n, pos);
        if (i == 7) for (q = 0; q < now_n; q++) pos[3 * q] = pos[3 * q + 1] = pos[3 * q + 2] = 0;
        scatter(0, 3, 8, points);
        for (q = 0; q < 8; q++) points[3 * q] += (ugrid_real)places[i % 4];
        CHECK_RESULT(ugrid_build(&grid, &now, pos, 0, now_n), UGRID_OK);
        check_nearest(&grid, 8, 5, far_away);
        ugrid_free(&grid);
    }
}

/* How far, in the box from .. to along one axis, is x from its borders? Below 0: it is outside. Of
   a periodic axis of length 1 the image that is deepest inside counts. */
static double depth_along(double x, double from, double to, int periodic)
{
    double deepest = -1e30;
    int image;
    for (image = periodic ? -6 : 0; image <= (periodic ? 6 : 0); image++) {
        double const at = x + image, depth = at - from < to - at ? at - from : to - at;
        if (depth > deepest) deepest = depth;
    }
    return deepest;
}

/* Each particle in the box is found once, and no other is. At borders of periodic boxes, where
   images are rounded, both are right. */
static void check_box(const ugrid *grid, const ugrid_real *box)
{
    static int32_t ids[MOST], times[MOST];
    int const dim = (int)grid->desc.dim;
    int32_t found, again, i;
    CHECK_RESULT(ugrid_query_box(grid, box, ids, MOST, &found), UGRID_OK);
    CHECK_RESULT(ugrid_query_box(grid, box, NULL, 0, &again),
                 found > 0 ? UGRID_BUFFER_TOO_SMALL : UGRID_OK);
    CHECK(again == found);
    memset(times, 0, sizeof times);
    for (i = 0; i < found; i++) times[ids[i]]++;
    for (i = 0; i < grid->n; i++) {
        int a, in = 1, border = 0;
        for (a = 0; a < dim; a++) {
            int const periodic = (int)grid->desc.periodic[a];
            double const depth = depth_along((double)pos[dim * i + a], (double)box[a],
                                             (double)box[dim + a], periodic);
            in &= depth >= 0;
            border |= periodic && depth > -1e-5 && depth < 1e-5;
        }
        CHECK(border ? times[i] <= 1 : times[i] == in);
    }
}

static void search_boxes(void **state)
{
    int turn, turns = quick_run() ? 100 : 1000, b, a;
    (void)state;
    describe = describe_now;
    for (turn = 0; turn < turns; turn++) {
        ugrid grid = {0};
        choose_desc(turn);
        now.walk = turn % 3 ? UGRID_WALK_AUTO : turn % 2 ? UGRID_MODULAR : UGRID_CELLS;
        now_n = turn % 13 ? 60 : 0;
        scatter(turn % 5, (int)now.dim, now_n, pos);
        CHECK_RESULT(ugrid_build(&grid, &now, pos, 0, now_n), UGRID_OK);
        for (b = 0; b < 8; b++) {
            ugrid_real box[6];
            for (a = 0; a < now.dim; a++) {
                double const from = 3 * (double)wl_u(&dice) - 1.5, size = (double)wl_u(&dice);
                box[a] = (ugrid_real)(b % 2 ? wl_below(&dice, 8) / 8.0 : from);
                box[now.dim + a] = (ugrid_real)((double)box[a] + (b % 4 == 1 ? 0 : 2 * size));
            }
            if (b == 6) box[now.dim] = box[0] - 1;
            check_box(&grid, box);
        }
        ugrid_free(&grid);
    }
}

static void refuse_bad_boxes(void **state)
{
    ugrid grid = {0};
    ugrid_real box[6] = {0, 0, 0, 1, 1, 1};
    int32_t id, found;
    (void)state;
    memset(&now, 0, sizeof now);
    CHECK_RESULT(ugrid_query_box(&grid, box, &id, 1, &found), UGRID_NOT_BUILT);
    CHECK_RESULT(ugrid_build(&grid, &now, box, 0, 1), UGRID_OK);
    CHECK_RESULT(ugrid_query_box(&grid, box, &id, 1, &found), UGRID_OK);
    CHECK(found == 1 && id == 0);
    CHECK_RESULT(ugrid_query_box(NULL, box, &id, 1, &found), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_query_box(&grid, NULL, &id, 1, &found), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_query_box(&grid, box, NULL, 1, &found), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_query_box(&grid, box, &id, -1, &found), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_query_box(&grid, box, &id, 1, NULL), UGRID_BAD_ARGUMENT);
    box[4] = ugrid_i_not_finite(0);
    CHECK_RESULT(ugrid_query_box(&grid, box, &id, 1, &found), UGRID_NOT_FINITE);
    ugrid_free(&grid);
}

static void refuse_bad_calls(void **state)
{
    ugrid grid = {0};
    ugrid_real p[3] = {0, 0, 0}, d2[2];
    int32_t ids[2], found = 7;
    (void)state;
    CHECK_RESULT(ugrid_nearest(&grid, p, 1, 1, ids, d2, &found), UGRID_NOT_BUILT);
    CHECK(found == 0);
    memset(&now, 0, sizeof now);
    now.max[0] = now.max[1] = now.max[2] = 1;
    CHECK_RESULT(ugrid_build(&grid, &now, pos, 0, 0), UGRID_OK);
    CHECK_RESULT(ugrid_nearest(&grid, p, 1, far_away, ids, d2, &found), UGRID_OK);
    CHECK(found == 0);
    CHECK_RESULT(ugrid_build(&grid, &now, p, 0, 1), UGRID_OK);
    CHECK_RESULT(ugrid_nearest(NULL, p, 1, 1, ids, d2, &found), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_nearest(&grid, p, -1, 1, ids, d2, &found), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_nearest(&grid, p, 1, 1, NULL, d2, &found), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_nearest(&grid, p, 1, -1, ids, d2, &found), UGRID_BAD_RADIUS);
    CHECK_RESULT(ugrid_nearest(&grid, p, 0, 1, NULL, NULL, &found), UGRID_OK);
    CHECK_RESULT(ugrid_nearest(&grid, p, 2, 0, ids, d2, &found), UGRID_OK);
    CHECK(found == 1 && ids[0] == 0);
    CHECK_RESULT(ugrid_nearest_rows(&grid, p, 0, 1, 1, 1, ids, d2, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_nearest_rows(&grid, p, 1, 1, 1, 1, ids, d2, &found), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_nearest_rows(&grid, NULL, 0, 2, 1, 1, ids, d2, &found), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_nearest_rows(&grid, NULL, 0, 1, 1, 1, ids, d2, &found), UGRID_OK);
    CHECK(found == 0 && ids[0] == -1);
    p[1] = ugrid_i_not_finite(1);
    CHECK_RESULT(ugrid_nearest(&grid, p, 1, 1, ids, d2, &found), UGRID_NOT_FINITE);
    CHECK_RESULT(ugrid_nearest_rows(&grid, p, 0, 1, 1, 1, ids, d2, &found), UGRID_OK);
    CHECK(found == 0 && ids[0] == -1);
    ugrid_free(&grid);
}

static int32_t left_out; /* the task that is not run, or -1 */

static void run_backwards(ugrid_task *task, void *context, int32_t tasks, void *user)
{
    (void)user;
    while (tasks-- > 0) if (tasks != left_out) task(context, tasks);
}

static void search_in_tasks(void **state)
{
    static int32_t ids[MOST * 3], found[MOST];
    static ugrid_real d2[MOST * 3];
    ugrid grid = {0};
    int32_t i;
    (void)state;
    choose_desc(0);
    now.parallel.run = run_backwards;
    now.parallel.tasks = 7;
    now_n = MOST;
    left_out = -1;
    scatter(0, 3, MOST, pos);
    scatter(0, 3, 400, points);
    CHECK_RESULT(ugrid_build(&grid, &now, pos, 0, MOST), UGRID_OK);
    check_nearest(&grid, 400, 3, far_away);
    left_out = 2;
    CHECK_RESULT(ugrid_nearest_rows(&grid, NULL, 0, MOST, 3, 1, ids, d2, found), UGRID_NOT_RUN);
    for (i = 0; i < MOST; i++) CHECK(found[i] == 0 && ids[3 * i] == -1);
    ugrid_free(&grid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(search_all_kinds),
        TEST(search_short_reaches),
        TEST(search_far_away),
        TEST(search_boxes),
        TEST(refuse_bad_boxes),
        TEST(refuse_bad_calls),
        TEST(search_in_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
