/* test_costs_ugrid.c - every cost that ugrid.h promises, held against inputs that break promises.
   SPDX-License-Identifier: MIT OR Unlicense

   tests/README.md has the list: promise, input, count, bar. COSTS_SHOW=1 prints figures. */

#define UGRID_IMPLEMENTATION
#define UGRID_WITH_NEAREST
#include "ugrid.h"
#define TESTED ugrid
#include "../../common/testing.h"
#include "costs.h"

static ugrid_method const methods[] = {UGRID_COUNT, UGRID_SORT, UGRID_LIST, UGRID_LIST_PACKED};

static ugrid_desc desc_of(int variant)
{
    ugrid_desc d;
    memset(&d, 0, sizeof d);
    d.method = methods[variant % 4];
    if (variant == 4) d.method = UGRID_LIST, d.placement = UGRID_TIGHT;
    if (variant == 5) d.unbounded = 1, d.cell = (real)0.05;
    return d;
}

enum { VARIANTS = 6 };

/* Work of a build of n points of a scene, over n and cells. */
static double build_work(int variant, scene s, int32_t n)
{
    ugrid grid = {0};
    ugrid_desc d = desc_of(variant);
    real *pos = scene_points(s, n, 3);
    double work;
    costs_begin();
    CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, n), UGRID_OK);
    work = costs_end() / ((double)n + grid.cell_count);
    ugrid_free(&grid);
    free(pos);
    return work;
}

/* ugrid_build, ugrid_fit: O(n + cells). */
static void test_build(void **state)
{
    int variant, s;
    (void)state;
    NEED_COUNT();
    for (variant = 0; variant < VARIANTS; variant++) {
        int32_t const n = size_of_run(800);
        double const even = build_work(variant, EVEN, n);
        for (s = 0; s < SCENES; s++) {
            double const work = build_work(variant, (scene)s, n);
            costs_show("ugrid_build a particle and cell", scene_name[s], work);
            CHECK_BELOW(work, 2 * even);
            CHECK_GROWTH(build_work(variant, (scene)s, 4 * n), work, 1.3);
        }
    }
}

/* The first build takes the bytes of the table at >>rules; after a reserve none are taken, whatever
   the points; what was taken is kept. */
static void test_build_memory(void **state)
{
    static const int per_particle[] = {24, 36, 4, 16};
    int variant, s;
    int32_t const n = 300;
    (void)state;
    for (variant = 0; variant < VARIANTS; variant++) {
        ugrid grid = {0};
        purse p = {0, 0, 0, 0, 0, 0};
        ugrid_desc d = desc_of(variant);
        int64_t calls;
        d.allocator = allocator_from(&p);
        d.min[0] = d.min[1] = d.min[2] = 0;
        d.max[0] = d.max[1] = d.max[2] = 1;
        d.cell = (real)0.1;
        if (variant == 5) d.buckets = 512;
        CHECK_RESULT(ugrid_reserve(&grid, &d, n), UGRID_OK);
        CHECK(ugrid_bytes(&grid) == p.held);
        if (variant < 4 && IS_FLOAT)
            CHECK_BELOW((double)p.held, per_particle[variant] * n + 4 * 1000 + 64);
        calls = p.calls;
        for (s = 0; s < SCENES; s++) {
            int64_t pairs;
            real *pos = scene_points((scene)s, n, 3);
            CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, n), UGRID_OK);
            CHECK_RESULT(ugrid_count_pairs(&grid, (real)0.001, &pairs), UGRID_OK);
            CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, n / 3), UGRID_OK);
            CHECK(p.calls == calls);
            free(pos);
        }
        ugrid_free(&grid);
        CHECK(p.held == 0);
    }
}

/* Builds of one particle more each time allocate O(log n) times; short of memory, none copies, and
   each takes an array once. */
static void test_growth(void **state)
{
    int32_t const n = 300;
    int variant, tight;
    (void)state;
    for (variant = 0; variant < 4; variant++)
        for (tight = 0; tight < 2; tight++) {
            ugrid grid = {0};
            purse p = {0, 0, 0, 0, 0, 0};
            ugrid_desc d = desc_of(variant);
            real *pos = scene_points(EVEN, n, 3);
            int32_t i;
            d.max[0] = d.max[1] = d.max[2] = 1;
            d.cell = (real)0.2;
            d.allocator = allocator_from(&p);
            CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, n), UGRID_OK);
            p.limit = tight ? p.held + p.held / 4 : 0;
            ugrid_free(&grid);
            p.calls = p.given = 0;
            for (i = 50; i < n; i++) {
                int64_t const given = p.given;
                CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, i), UGRID_OK);
                if (tight) CHECK_BELOW((double)(p.given - given), (double)p.limit);
            }
            costs_show("allocations of 250 builds", tight ? "short" : "growing",
                       (double)p.calls);
            if (!tight) CHECK_BELOW((double)p.calls, 60);
            ugrid_free(&grid);
            free(pos);
        }
}

/* Candidates of all walks: what a search tests. */
static double candidates(const ugrid *grid, real radius)
{
    double sum = 0;
    int32_t place;
    for (place = 0; place < grid->n; place++) {
        ugrid_near walk = ugrid_near_place(grid, place, radius);
        while (ugrid_next(&walk)) sum++;
    }
    return sum;
}

static int take_pair(void *user, int32_t i, int32_t j)
{
    (void)i, (void)j;
    ++*(int64_t *)user;
    return 0;
}

/* The searches: one distance test for each particle in the cells visited; pairs once; nothing is
   allocated. */
static void test_searches(void **state)
{
    int32_t const n = size_of_run(400);
    real const radius = (real)0.06;
    int s;
    (void)state;
    NEED_COUNT();
    for (s = 0; s < SCENES; s++) {
        ugrid grid = {0};
        ugrid_desc d;
        purse p = {0, 0, 0, 0, 0, 0};
        real *pos = scene_points((scene)s, n, 3);
        int32_t *counts = NEW(int32_t, n);
        int64_t pairs, met = 0, calls, twice = 0;
        double tests, work;
        int32_t i;
        memset(&d, 0, sizeof d);
        d.allocator = allocator_from(&p);
        d.max[0] = d.max[1] = d.max[2] = 1;
        d.cell = radius;
        CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, n), UGRID_OK);
        tests = candidates(&grid, radius) + 27.0 * n;
        calls = p.calls;
        costs_begin();
        CHECK_RESULT(ugrid_count_neighbors(&grid, radius, 0, counts), UGRID_OK);
        work = costs_end() / tests;
        costs_show("count_neighbors, a test", scene_name[s], work);
        CHECK_BELOW(work, 100);
        costs_begin();
        CHECK_RESULT(ugrid_count_pairs(&grid, radius, &pairs), UGRID_OK);
        CHECK_BELOW(costs_end() / tests, 100);
        CHECK_RESULT(ugrid_each_pair(&grid, radius, UGRID_HALF, take_pair, &met), UGRID_OK);
        for (i = 0; i < n; i++) twice += counts[i];
        CHECK(met == pairs && twice == 2 * pairs);
        CHECK(p.calls == calls);
        ugrid_free(&grid);
        free(counts);
        free(pos);
    }
}

/* A list with UGRID_PLACES is made in one pass: it costs what counting costs, and the writing. */
static void test_one_pass(void **state)
{
    int32_t const n = size_of_run(1000);
    int s;
    (void)state;
    NEED_COUNT();
    for (s = EVEN; s <= SORTED; s++) {
        ugrid grid = {0};
        ugrid_desc d;
        real *pos = scene_points((scene)s, n, 3);
        real const radius = s == EVEN ? (real)wl_radius(n, 20) : (real)10 / (real)n;
        int64_t *offsets = NEW(int64_t, n + 1), needed;
        int32_t *ids;
        double count, list;
        memset(&d, 0, sizeof d);
        d.cell = radius;
        CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, n), UGRID_OK);
        costs_begin();
        ugrid_neighbors(&grid, radius, UGRID_PLACES, offsets, NULL, 0, &needed);
        count = costs_end();
        ids = NEW(int32_t, needed + 1);
        costs_begin();
        CHECK_RESULT(ugrid_neighbors(&grid, radius, UGRID_PLACES, offsets, ids, needed, &needed),
                     UGRID_OK);
        list = costs_end();
        costs_show("a list by places, over its count", scene_name[s], list / count);
        CHECK_BELOW(list, 1.9 * count);
        ugrid_free(&grid);
        free(offsets);
        free(ids);
        free(pos);
    }
}

/* Searches of every method share the candidates of a cell among its particles, as those of COUNT
   do: the work over that of COUNT. (TIGHT has 8 entries a particle.) */
static void test_methods(void **state)
{
    static const struct { const char *name; ugrid_method method; ugrid_placement placement; double
                          bar; } methods[] = {
        {"count", UGRID_COUNT, UGRID_LOOSE, 1},
        {"list", UGRID_LIST, UGRID_LOOSE, 3},
        {"packed", UGRID_LIST_PACKED, UGRID_LOOSE, 3},
        {"fixed", UGRID_FIXED, UGRID_LOOSE, 3},
        {"tight", UGRID_LIST, UGRID_TIGHT, 20}};
    int32_t const n = size_of_run(4000);
    real *pos = scene_points(EVEN, n, 3);
    int32_t *counts = NEW(int32_t, n);
    double least = 0;
    int k, half;
    (void)state;
    NEED_COUNT();
    for (half = 0; half < 2; half++)
        for (k = 0; k < COUNT_OF(methods); k++) {
            ugrid grid = {0};
            ugrid_desc d;
            double work;
            memset(&d, 0, sizeof d);
            d.cell = d.size = (real)wl_radius(n, 30);
            d.method = methods[k].method;
            d.placement = methods[k].placement;
            d.slots = 100;
            CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, n), UGRID_OK);
            costs_begin();
            CHECK_RESULT(ugrid_count_neighbors(&grid, d.cell, half, counts), UGRID_OK);
            work = costs_end();
            if (k == 0) least = work;
            costs_show(half ? "a half count, over COUNT's" : "a count, over COUNT's",
                       methods[k].name, work / least);
            CHECK_BELOW(work, methods[k].bar * least);
            ugrid_free(&grid);
        }
    free(counts);
    free(pos);
}

/* Work of a search with a radius of many cells around one point. */
static double wide_walk(int unbounded, real cells)
{
    ugrid grid = {0};
    ugrid_desc d;
    int32_t const n = 1000;
    real *pos = scene_points(EVEN, n, 3);
    int32_t ids[1000], found;
    double work;
    memset(&d, 0, sizeof d);
    d.cell = (real)0.1;
    d.unbounded = unbounded;
    if (!unbounded) d.max[0] = d.max[1] = d.max[2] = 1;
    CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, n), UGRID_OK);
    costs_begin();
    CHECK_RESULT(ugrid_query(&grid, pos, cells / 10, ids, n, &found), UGRID_OK);
    work = costs_end() / (n + grid.cell_count);
    CHECK(found == n);
    ugrid_free(&grid);
    free(pos);
    return work;
}

/* A walk visits each cell once, whatever the radius: in a box at most all of them. */
static void test_wide_radius(void **state)
{
    (void)state;
    NEED_COUNT();
    CHECK_BELOW(wide_walk(0, 20), 60);
    CHECK_BELOW(wide_walk(0, (real)1e6), 60);
    CHECK_BELOW(wide_walk(1, 20), 150);
    CHECK_BELOW(wide_walk(1, (real)1e6), 150);
}

/* Queries around m points that are in no order, all at one point, or far outside. */
static void test_points(void **state)
{
    int32_t const n = size_of_run(1000), m = n;
    real const radius = (real)wl_radius(n, 20);
    int s;
    double even = 0;
    (void)state;
    NEED_COUNT();
    for (s = 0; s < SCENES; s++) {
        ugrid grid = {0};
        ugrid_desc d;
        real *pos = scene_points(EVEN, n, 3), *at = scene_points((scene)s, m, 3);
        int64_t *offsets = NEW(int64_t, m + 1), needed;
        double work;
        memset(&d, 0, sizeof d);
        d.cell = radius;
        CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, n), UGRID_OK);
        costs_begin();
        ugrid_neighbors_at(&grid, at, 0, m, radius, offsets, NULL, 0, &needed);
        work = costs_end() / (5.0 * m + (double)needed);
        if (s == EVEN) even = work;
        costs_show("neighbors_at, a fifth of a point, a hit", scene_name[s], work);
        CHECK_BELOW(work, 3 * even);
        ugrid_free(&grid);
        free(offsets);
        free(at);
        free(pos);
    }
}

/* What a call over a grid of n points of a scene takes. */
static double call_work(int call, scene s, int32_t n)
{
    ugrid grid = {0}, other = {0};
    real *pos = scene_points(s, n, 3), *out = NEW(real, 3 * n);
    unsigned char *bytes = NULL;
    int64_t needed = 0;
    int32_t bad;
    double work;
    CHECK_RESULT(ugrid_build(&grid, NULL, pos, 0, n), UGRID_OK);
    if (call == 1 || call == 2) {
        ugrid_save(&grid, NULL, 0, &needed);
        bytes = NEW(unsigned char, needed);
        CHECK_RESULT(ugrid_save(&grid, bytes, needed, &needed), UGRID_OK);
    }
    if (call == 5) { free(out); out = NEW(real, 3 * (int64_t)grid.cell_count); }
    costs_begin();
    if (call == 0) CHECK_RESULT(ugrid_validate(&grid), UGRID_OK);
    if (call == 1) CHECK_RESULT(ugrid_save(&grid, bytes, needed, &needed), UGRID_OK);
    if (call == 2) CHECK_RESULT(ugrid_load(&other, NULL, bytes, needed), UGRID_OK);
    if (call == 3) CHECK_RESULT(ugrid_gather(&grid, pos, 3 * sizeof *pos, out), UGRID_OK);
    if (call == 4) CHECK_RESULT(ugrid_scatter(&grid, pos, 3 * sizeof *pos, out), UGRID_OK);
    if (call == 5) CHECK_RESULT(ugrid_cell_sums(&grid, pos, 3, out), UGRID_OK);
    if (call == 6) CHECK_RESULT(ugrid_verify(&grid, (real)1e-6, 4, 1, &bad), UGRID_OK);
    work = costs_end() / ((double)n + grid.cell_count);
    ugrid_free(&grid);
    ugrid_free(&other);
    free(bytes);
    free(out);
    free(pos);
    return work;
}

/* Checks, files and attributes: O(n + cells); ugrid_verify: and samples * n. */
static void test_linear(void **state)
{
    static const char *const name[] = {"ugrid_validate", "ugrid_save", "ugrid_load",
        "ugrid_gather", "ugrid_scatter", "ugrid_cell_sums", "ugrid_verify"};
    int32_t const n = size_of_run(400);
    int call, s;
    (void)state;
    NEED_COUNT();
    for (call = 0; call < COUNT_OF(name); call++) {
        double const even = call_work(call, EVEN, n);
        for (s = 0; s < SCENES; s++) {
            double const work = call_work(call, (scene)s, n);
            costs_show(name[call], scene_name[s], work);
            CHECK_BELOW(work, 3 * even);
            CHECK_GROWTH(call_work(call, (scene)s, 4 * n), work, 1.3);
        }
    }
}

/* desc.skip_invalid and desc.outside cost a pass over the points. */
static void test_left_out(void **state)
{
    int32_t const n = size_of_run(3000);
    int way;
    double work[3];
    (void)state;
    NEED_COUNT();
    for (way = 0; way < 3; way++) {
        ugrid grid = {0};
        ugrid_desc d;
        real *pos = scene_points(SOME_FAR, n, 3);
        memset(&d, 0, sizeof d);
        d.max[0] = d.max[1] = d.max[2] = 1;
        d.cell = (real)0.1;
        d.skip_invalid = way > 0;
        if (way == 2) d.outside = UGRID_LEAVE_OUT;
        if (way > 0) pos[3] = REAL_NAN;
        costs_begin();
        CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, n), UGRID_OK);
        work[way] = costs_end();
        ugrid_free(&grid);
        free(pos);
    }
    costs_show("left out, over all taken", "some far", work[2] / work[0]);
    CHECK_BELOW((work[1] - work[0]) / n, 150);
    CHECK_BELOW((work[2] - work[0]) / n, 200);
}

static void take_rows(ugrid_task *task, void *context, int32_t tasks, void *user)
{
    int32_t i, *most = (int32_t *)user;
    if (tasks > *most) *most = tasks;
    for (i = 0; i < tasks; i++) task(context, i);
}

/* In tasks no more work is done than serially, and there are at most desc.parallel.tasks. */
static void test_tasks(void **state)
{
    int32_t const n = size_of_run(8000);
    int s;
    (void)state;
    NEED_COUNT();
    for (s = 0; s < SCENES; s += 2) {
        double work[2];
        int tasks;
        for (tasks = 0; tasks < 2; tasks++) {
            ugrid grid = {0};
            ugrid_desc d;
            int32_t most = 0;
            int64_t pairs;
            real *pos = scene_points((scene)s, n, 3);
            memset(&d, 0, sizeof d);
            if (tasks) {
                d.parallel.run = take_rows;
                d.parallel.user = &most;
                d.parallel.tasks = 8;
            }
            costs_begin();
            CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, n), UGRID_OK);
            if (s == EVEN) CHECK_RESULT(ugrid_count_pairs(&grid, (real)0.01, &pairs), UGRID_OK);
            work[tasks] = costs_end();
            CHECK(most <= 8);
            ugrid_free(&grid);
            free(pos);
        }
        costs_show("in 8 tasks, over serial", scene_name[s], work[1] / work[0]);
        CHECK_BELOW(work[1], 2 * work[0]);
    }
}

static int take_row(void *user, int32_t i, const int32_t *ids, int32_t count)
{
    (void)i, (void)ids;
    *(int64_t *)user += count;
    return 0;
}

/* ugrid_each_row_in: all pieces together take the work of ugrid_each_row. */
static void test_pieces(void **state)
{
    int32_t const n = size_of_run(500), pieces = 16;
    int s;
    (void)state;
    NEED_COUNT();
    for (s = 0; s <= TEN_CLUSTERS; s++) {
        ugrid grid = {0};
        ugrid_desc d;
        real *pos = scene_points((scene)s, n, 3);
        real const radius = (real)wl_radius(n, 5);
        int64_t all = 0, sum = 0;
        double whole;
        int32_t piece;
        memset(&d, 0, sizeof d);
        d.unbounded = 1;
        d.cell = radius;
        CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, n), UGRID_OK);
        costs_begin();
        CHECK_RESULT(ugrid_each_row(&grid, radius, 0, take_row, &all), UGRID_OK);
        whole = costs_end();
        costs_begin();
        for (piece = 0; piece < pieces; piece++)
            CHECK_RESULT(ugrid_each_row_in(&grid, radius, 0, piece, pieces, take_row, &sum),
                         UGRID_OK);
        CHECK(sum == all);
        CHECK_BELOW(costs_end(), 1.2 * whole);
        ugrid_free(&grid);
        free(pos);
    }
}

/* Work of a test, of n particles in one cell that all test each other. */
static double work_in_a_cell(int32_t n)
{
    ugrid grid = {0};
    ugrid_desc d;
    real *pos = scene_points(EVEN, n, 3);
    int64_t pairs;
    double work;
    memset(&d, 0, sizeof d);
    d.cell = 1;
    d.max[0] = d.max[1] = d.max[2] = 2;
    CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, n), UGRID_OK);
    costs_begin();
    CHECK_RESULT(ugrid_count_pairs(&grid, (real)0.03, &pairs), UGRID_OK);
    work = costs_end() / ((double)n * n / 2);
    ugrid_free(&grid);
    free(pos);
    return work;
}

/* A crowd that is tested in pieces costs about what one does that is tested at once. */
static void test_crowded_cell(void **state)
{
    double few, many;
    (void)state;
    NEED_COUNT();
    few = work_in_a_cell(1024);
    many = work_in_a_cell(4096);
    costs_show("a test in a crowded cell", "4096, to 1024", many / few);
    CHECK_GROWTH(many, few, 4);
}

/* Work of the 8 nearest of each of n points. */
static double nearest_work(scene s, int32_t n)
{
    enum { K = 8 };
    ugrid grid = {0};
    real *pos = scene_points(s, n, 3), *d2 = NEW(real, (size_t)n * K);
    int32_t *ids = NEW(int32_t, (size_t)n * K), *found = NEW(int32_t, n);
    double work;
    CHECK_RESULT(ugrid_build(&grid, NULL, pos, 0, n), UGRID_OK);
    costs_begin();
    CHECK_RESULT(ugrid_nearest_rows(&grid, NULL, 0, n, K, (real)1e15, ids, d2, found), UGRID_OK);
    work = costs_end() / n;
    ugrid_free(&grid);
    free(pos);
    free(d2);
    free(ids);
    free(found);
    return work;
}

/* ugrid_nearest: particles spread evenly, over the box and over a line of it. */
static void test_nearest(void **state)
{
    int32_t const n = size_of_run(1000);
    double even = nearest_work(EVEN, n), far;
    int s;
    (void)state;
    NEED_COUNT();
    for (s = EVEN; s <= SORTED; s++) {
        double const few = nearest_work((scene)s, n), many = nearest_work((scene)s, 4 * n);
        costs_show("ugrid_nearest_rows, a point", scene_name[s], few);
        costs_show("ugrid_nearest_rows, growth", scene_name[s], many / few);
        CHECK_BELOW(few, 1.5 * even);
        CHECK_GROWTH(many, few, 1.3);
    }
    if (quick_run()) return;
    far = nearest_work(ONE_FAR, 5000); /* ugrid_fit makes an unbounded grid */
    costs_show("ugrid_nearest_rows, a point", "one far", far);
    CHECK_BELOW(far, 20 * even);
}

/* Work a particle of three searches of hashed cells of edge 1, each particle alone: particle i is
   `stride` cells times i along these axes away from the first. stride 0: anywhere. In the middle of
   their cells and less than 2^18 cells away, so that all walks are of 27 cells. */
static double hashed_work(ugrid_method method, int axes, int32_t stride, int32_t n)
{
    real const radius = (real)0.625;
    ugrid grid = {0};
    ugrid_desc d;
    real *pos = NEW(real, 3 * n);
    int64_t pairs, *offsets = NEW(int64_t, n + 1), needed;
    int32_t id, found, i;
    double work;
    int a;
    dice = wl_seed(14);
    for (i = 0; i < 3 * n; i++) {
        int32_t const anywhere = (int32_t)(wl_u(&dice) * 200000),
                      cell = stride == 0 ? anywhere : (axes >> i % 3 & 1) * (i / 3) * stride;
        pos[i] = (real)cell + (real)0.5;
    }
    memset(&d, 0, sizeof d);
    d.unbounded = 1;
    d.cell = 1;
    d.method = method;
    CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, n), UGRID_OK);
    costs_begin();
    CHECK_RESULT(ugrid_count_pairs(&grid, radius, &pairs), UGRID_OK);
    CHECK_RESULT(ugrid_neighbors_at(&grid, pos, 0, n, radius, offsets, NULL, 0, &needed),
                 UGRID_BUFFER_TOO_SMALL);
    CHECK(pairs == 0 && needed == n);
    for (i = 0; i < n; i++) {
        real box[6];
        for (a = 0; a < 6; a++) box[a] = pos[3 * i + a % 3];
        CHECK_RESULT(ugrid_query_box(&grid, box, &id, 1, &found), UGRID_OK);
        CHECK(found == 1 && id == i);
    }
    work = costs_end() / n;
    ugrid_free(&grid);
    free(pos);
    free(offsets);
    return work;
}

/* Hashed cells: rows and diagonals in steps of 2^k cells, so of the number of buckets, too, and of
   three times these, share no more buckets than cells that are anywhere. */
static void test_hashed(void **state)
{
    static const ugrid_method methods[] = {UGRID_COUNT, UGRID_LIST};
    static const char *const name[] = {"", "x", "y", "x y", "z", "x z", "y z", "x y z"};
    int32_t const n = 128;
    int k, axes, power;
    (void)state;
    NEED_COUNT();
    for (k = 0; k < COUNT_OF(methods); k++) {
        double const even = hashed_work(methods[k], 7, 0, n);
        double worst = 0;
        for (axes = 1; axes < 8; axes += quick_run() ? 3 : 1, worst = 0) {
            for (power = 4; power < 20; power++) {
                int32_t const stride = (power % 2 ? 1 : 3) << power / 2;
                double const work = hashed_work(methods[k], axes, stride, n);
                if (work > worst) worst = work;
            }
            costs_show("hashed cells, over anywhere", name[axes], worst / even);
            CHECK_BELOW(worst, 1.5 * even);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_build), TEST(test_build_memory), TEST(test_growth), TEST(test_searches),
        TEST(test_one_pass), TEST(test_wide_radius), TEST(test_points), TEST(test_linear),
        TEST(test_methods), TEST(test_left_out), TEST(test_tasks), TEST(test_pieces),
        TEST(test_crowded_cell), TEST(test_nearest), TEST(test_hashed),
    };
    cmocka_set_test_filter(getenv("COSTS_TEST_ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
