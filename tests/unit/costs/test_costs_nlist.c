/* test_costs_nlist.c - every cost that nlist.h and nlist_boxes.h promise, held against inputs that
   break promises.
   SPDX-License-Identifier: MIT OR Unlicense

   tests/README.md has the list: promise, input, count, bar. COSTS_SHOW=1 prints figures. */

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_WITH_BOXES
#define NLIST_WITH_TUNE
#define NLIST_IMPLEMENTATION
#include "nlist.h"
#define TESTED nlist
#include "../../common/testing.h"
#include "costs.h"

static const char *const layout_name[] = {"COMPACT", "STATIC", "DYNAMIC", "HYBRID"};

/* ---- sources ---- */

/* A list from an unbounded grid: its work over particles and candidates. */
static double grid_work(scene s, int32_t n, int half)
{
    real *pos = scene_points(s, n, 3);
    real const radius = (real)wl_radius(n, 10);
    ugrid grid = {0};
    ugrid_desc cells;
    nlist list = {0};
    nlist_desc d;
    double work, candidates = 0;
    int32_t place;
    memset(&cells, 0, sizeof cells);
    memset(&d, 0, sizeof d);
    cells.unbounded = 1;
    cells.cell = radius;
    d.radius = radius;
    d.half = half;
    CHECK(ugrid_build(&grid, &cells, pos, 0, n) == UGRID_OK);
    for (place = 0; place < n; place++) {
        ugrid_near walk = ugrid_near_place(&grid, place, radius);
        while (ugrid_next(&walk)) candidates++;
    }
    costs_begin();
    CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, pos, 0, n), NLIST_OK);
    work = costs_end() / (27.0 * n + candidates);
    nlist_free(&list);
    ugrid_free(&grid);
    free(pos);
    return work;
}

/* nlist_build_ugrid: O(n), and a test for each particle in the cells within the reach. */
static void test_grid(void **state)
{
    int32_t const n = size_of_run(250);
    int s, half;
    (void)state;
    NEED_COUNT();
    for (half = 0; half < 2; half++) {
        double const even = grid_work(EVEN, n, half);
        for (s = 0; s < SCENES; s++) {
            double const work = grid_work((scene)s, n, half);
            costs_show("nlist_build_ugrid, a candidate", scene_name[s], work);
            CHECK_BELOW(work, 4 * even); /* the fullest blocks of candidates are even ones */
        }
    }
}

/* Besides the scenes: one sphere 40 times as large as the others. */
enum { ONE_LARGE = SCENES, TREE_SCENES };

/* A list over a tree of spheres: its work over n log n and entries. */
static double tree_work(int s, int32_t n, nlist_layout layout)
{
    real *pos = scene_points(s < SCENES ? (scene)s : EVEN, n, 3);
    real *spheres = NEW(real, 4 * n), *radii = NEW(real, n);
    lbvh tree = {0};
    lbvh_desc elements;
    nlist list = {0};
    nlist_desc d;
    double work;
    int32_t i;
    memset(&elements, 0, sizeof elements);
    memset(&d, 0, sizeof d);
    for (i = 0; i < n; i++) {
        radii[i] = (real)wl_radius(n, 5) / 2;
        if (s == ONE_LARGE && i == n / 3) radii[i] *= 40;
        memcpy(spheres + 4 * i, pos + 3 * i, 3 * sizeof *pos);
        spheres[4 * i + 3] = radii[i];
    }
    elements.kind = LBVH_SPHERES;
    d.radii = radii;
    d.layout = layout;
    d.width = layout == NLIST_STATIC ? 1024 : 0;
    CHECK(lbvh_build(&tree, &elements, spheres, 0, n) == LBVH_OK);
    costs_begin();
    CHECK_RESULT(nlist_build_lbvh(&list, &d, &tree, pos, 0, n), NLIST_OK);
    work = costs_end() / (n * log((double)n) + (double)list.total);
    nlist_free(&list);
    lbvh_free(&tree);
    free(radii);
    free(spheres);
    free(pos);
    return work;
}

/* nlist_build_lbvh: O(n log n), and O(1) an entry. */
static void test_tree(void **state)
{
    int32_t const n = size_of_run(250);
    int s;
    double even;
    (void)state;
    NEED_COUNT();
    even = tree_work(EVEN, n, NLIST_COMPACT);
    for (s = 0; s < TREE_SCENES; s++) {
        double work;
        /* at 1e6 a float is rounded by more than the radius: every search finds too much */
        if (IS_FLOAT && (s == TWO_CLUSTERS || s == TEN_CLUSTERS)) continue;
        work = tree_work(s, n, (nlist_layout)(s % 4));
        costs_show("nlist_build_lbvh", s < SCENES ? scene_name[s] : "one large", work);
        CHECK_BELOW(work, 4 * even);
    }
}

/* m pairs: how they come. */
enum { AS_RING, AS_STAR, SAME_PAIR, DESCENDING, PAIR_ORDERS };

static double pairs_work(int order, int32_t n, int half)
{
    int32_t *pair = NEW(int32_t, 2 * n), p;
    nlist list = {0};
    nlist_desc d;
    double work;
    memset(&d, 0, sizeof d);
    d.radius = 1;
    d.half = half;
    for (p = 0; p < n; p++) {
        int32_t const i = order == DESCENDING ? n - 1 - p : p;
        pair[2 * p] = order == AS_STAR || order == DESCENDING ? 0 : order == SAME_PAIR ? 3 : i;
        pair[2 * p + 1] = order == SAME_PAIR ? 2 : (i + 1) % n;
        if (pair[2 * p + 1] == pair[2 * p]) pair[2 * p + 1] = 1;
    }
    costs_begin();
    CHECK_RESULT(nlist_build_pairs(&list, &d, pair, n, n), NLIST_OK);
    work = costs_end() / n;
    nlist_free(&list);
    free(pair);
    return work;
}

/* nlist_build_pairs: O(n + m log row). */
static void test_pairs(void **state)
{
    static const char *const name[] = {"ring", "star", "one pair", "descending star"};
    int32_t const n = size_of_run(1000);
    int order, half;
    (void)state;
    NEED_COUNT();
    for (half = 0; half < 2; half++)
        for (order = 0; order < PAIR_ORDERS; order++) {
            double const few = pairs_work(order, n, half), many = pairs_work(order, 4 * n, half);
            costs_show("nlist_build_pairs, a pair", name[order], many);
            CHECK_GROWTH(many, few, 1.5);
            CHECK_BELOW(many, 100 * log((double)n));
        }
}

/* ---- triangles ---- */

enum { FAN, STACK, STRIP_OF_SLIVERS, MESHES };

/* m triangles: around one tip; one upon the other; slivers side by side. */
static real *triangles_of(int kind, int32_t m)
{
    real *at = ZEROS(real, 9 * m);
    int32_t t;
    for (t = 0; t < m; t++) {
        double const turn = 6.283185307179586 / m;
        real *c = at + 9 * t;
        if (kind == FAN) {
            c[3] = (real)cos(turn * t), c[4] = (real)sin(turn * t);
            c[6] = (real)cos(turn * (t + 1)), c[7] = (real)sin(turn * (t + 1));
        }
        if (kind == STACK) c[3] = c[7] = 1;
        if (kind == STRIP_OF_SLIVERS) {
            c[0] = c[3] = (real)t / (real)m;
            c[6] = (real)(t + 1) / (real)m;
            c[1] = c[7] = -1;
            c[4] = 1;
        }
    }
    return at;
}

/* One particle that touches all of m triangles, above (0.01, 0, 0) or above the tip. */
static double mesh_work(int kind, int32_t m, real x)
{
    real *corners = triangles_of(kind, m), p[3] = {0, 0, (real)0.1};
    lbvh tree = {0};
    lbvh_desc elements;
    nlist list = {0};
    nlist_desc d;
    nlist_mesh mesh;
    double work;
    memset(&elements, 0, sizeof elements);
    memset(&d, 0, sizeof d);
    memset(&mesh, 0, sizeof mesh);
    elements.kind = LBVH_TRIANGLES;
    mesh.vertices = corners;
    mesh.triangles = m;
    p[0] = x;
    d.layout = NLIST_DYNAMIC;
    d.radius = (real)0.5;
    CHECK(lbvh_build(&tree, &elements, corners, 0, m) == LBVH_OK);
    costs_begin();
    CHECK_RESULT(nlist_build_mesh(&list, &d, &tree, &mesh, p, 0, 1), NLIST_OK);
    work = costs_end() / m;
    nlist_free(&list);
    lbvh_free(&tree);
    free(corners);
    return work;
}

/* nlist_build_mesh: triangles within reach that meet in one point. */
static void test_mesh(void **state)
{
    static const char *const name[] = {"fan", "stack", "slivers"};
    int32_t const m = size_of_run(64);
    int kind, tip;
    (void)state;
    NEED_COUNT();
    for (kind = 0; kind < MESHES; kind++)
        for (tip = 0; tip < 2; tip++) {
            real const x = tip ? 0 : (real)0.01;
            double const few = mesh_work(kind, m, x), many = mesh_work(kind, 4 * m, x);
            costs_show("nlist_build_mesh, a triangle", name[kind], many);
            costs_show("    over a quarter of them", name[kind], many / few);
            CHECK_GROWTH(many, few, tip ? 1.6 : 4.4);
        }
}

/* ---- what is O(n + entries) ---- */

/* Pairs of n particles: a chain, or a star (one row that has all). */
static nlist list_of(nlist_layout layout, int star, int32_t n, const nlist_allocator *allocator)
{
    int32_t *pair = NEW(int32_t, 2 * n), p;
    nlist list = {0};
    nlist_desc d;
    memset(&d, 0, sizeof d);
    d.radius = 1;
    d.half = 1;
    d.layout = layout;
    d.width = layout == NLIST_STATIC ? 1024 : layout == NLIST_HYBRID ? 2 : 0;
    if (allocator) d.allocator = *allocator;
    for (p = 0; p < n - 1; p++) {
        pair[2 * p] = star ? 0 : p;
        pair[2 * p + 1] = p + 1;
    }
    CHECK_RESULT(nlist_build_pairs(&list, &d, pair, n - 1, n), NLIST_OK);
    free(pair);
    return list;
}

static int add_one(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    (void)i, (void)j, (void)history;
    ++*(int64_t *)user;
    own[0] = other[0] = 1;
    return 1;
}

static double linear_work(int call, nlist_layout layout, int star, int32_t n)
{
    nlist list = list_of(layout, star, n, NULL), other = {0};
    nlist_sums how;
    int32_t *ids = NEW(int32_t, 2 * n), i;
    real *sums = ZEROS(real, n);
    unsigned char *bytes = NULL;
    int64_t needed = 0, met = 0;
    nlist_desc d = list.desc;
    double work;
    memset(&how, 0, sizeof how);
    how.values = 1;
    for (i = 0; i < n; i++) ids[i] = n - 1 - i;
    CHECK(nlist_save(&list, NULL, 0, &needed) == NLIST_BUFFER_TOO_SMALL);
    bytes = NEW(unsigned char, needed);
    CHECK_RESULT(nlist_save(&list, bytes, needed, &needed), NLIST_OK);
    costs_begin();
    if (call == 0) CHECK_RESULT(nlist_remap(&list, ids, n), NLIST_OK);
    if (call == 1) CHECK_RESULT(nlist_sum(&list, &how, add_one, &met, sums), NLIST_OK);
    if (call == 2)
        CHECK_RESULT(nlist_pairs(&list, ids, n, &met, NULL, 0, NULL), NLIST_OK);
    if (call == 3) CHECK_RESULT(nlist_save(&list, bytes, needed, &needed), NLIST_OK);
    if (call == 4) CHECK_RESULT(nlist_load(&other, &d, bytes, needed), NLIST_OK);
    work = costs_end() / n;
    if (call == 1) CHECK(met == n - 1);
    nlist_free(&list);
    nlist_free(&other);
    free(bytes);
    free(sums);
    free(ids);
    return work;
}

/* nlist_remap, _sum, _pairs, _save, _load: O(n + entries), whichever row has them. */
static void test_linear(void **state)
{
    static const char *const name[] = {"nlist_remap", "nlist_sum", "nlist_pairs", "nlist_save",
        "nlist_load"};
    int32_t const n = size_of_run(250);
    int call, star, layout;
    (void)state;
    NEED_COUNT();
    for (call = 0; call < COUNT_OF(name); call++)
        for (layout = 0; layout < 4; layout++)
            for (star = 0; star < 2; star++) {
                double few, many;
                if (star && layout == NLIST_STATIC) continue;
                few = linear_work(call, (nlist_layout)layout, star, n);
                many = linear_work(call, (nlist_layout)layout, star, 4 * n);
                costs_show(name[call], layout_name[layout], many);
                costs_show("    over a quarter", star ? "star" : "chain", many / few);
                CHECK_GROWTH(many, few, call == 4 ? 1.5 : 1.3);
            }
}

/* nlist_moved: O(n); it ends at the first particle that has moved. */
static void test_moved(void **state)
{
    int32_t const n = size_of_run(1000);
    real *pos = scene_points(EVEN, n, 3);
    ugrid grid = {0};
    nlist list = {0};
    nlist_desc d;
    int32_t moved;
    double none;
    (void)state;
    NEED_COUNT();
    memset(&d, 0, sizeof d);
    d.radius = (real)0.01;
    d.skin = (real)0.01;
    CHECK(ugrid_build(&grid, NULL, pos, 0, n) == UGRID_OK);
    CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, pos, 0, n), NLIST_OK);
    costs_begin();
    CHECK_RESULT(nlist_moved(&list, pos, 0, &moved), NLIST_OK);
    none = costs_end() / n;
    CHECK(!moved);
    costs_show("nlist_moved, a particle", "none", none);
    CHECK_BELOW(none, 300);
    pos[0] += 1;
    costs_begin();
    CHECK_RESULT(nlist_moved(&list, pos, 0, &moved), NLIST_OK);
    CHECK(moved);
    CHECK_BELOW(costs_end(), 2 * none + 100);
    nlist_free(&list);
    ugrid_free(&grid);
    free(pos);
}

/* ---- history ---- */

enum { ALL_PERSIST, HALF_ENDED, TURNED, CHANGES };

/* A star with history is built twice: work of the second build, an entry. */
static double carry_work(int change, int32_t n)
{
    int32_t *pair = NEW(int32_t, 2 * n), p, m = 0;
    nlist list = {0};
    nlist_desc d;
    double work = 0;
    int turn;
    memset(&d, 0, sizeof d);
    d.radius = 1;
    d.half = 1;
    d.history = 4;
    for (turn = 0; turn < 2; turn++) {
        for (m = p = 0; p < n; p++) {
            if (turn && change == HALF_ENDED && p % 2) continue;
            pair[2 * m] = 0;
            pair[2 * m++ + 1] = p + 1;
        }
        costs_begin();
        CHECK_RESULT(nlist_build_pairs(&list, &d, pair, m, n + 1), NLIST_OK);
        work = costs_end() / n;
    }
    if (change == TURNED) {     /* rows of pairs ascend: new ids turn them round */
        for (p = 0; p <= n; p++) pair[p] = p == 0 ? 0 : n + 1 - p;
        CHECK_RESULT(nlist_remap(&list, pair, n + 1), NLIST_OK);
        for (p = 0; p < n; p++) pair[2 * p] = 0, pair[2 * p + 1] = p + 1;
        costs_begin();
        CHECK_RESULT(nlist_build_pairs(&list, &d, pair, n, n + 1), NLIST_OK);
        work = costs_end() / n;
    }
    CHECK(list.total == m);
    nlist_free(&list);
    free(pair);
    return work;
}

/* The third build from the same points with this history, over one without: what a step costs in
   which no row changes. */
static double unchanged_work(nlist_layout layout, int32_t history, int32_t n)
{
    real *pos = scene_points(EVEN, n, 3);
    ugrid grid = {0};
    nlist list = {0};
    nlist_desc d;
    double work = 0;
    int turn;
    memset(&d, 0, sizeof d);
    d.radius = (real)wl_radius(n, 8);
    d.half = 1;
    d.layout = layout;
    d.width = layout == NLIST_STATIC ? 24 : layout == NLIST_HYBRID ? 8 : 0;
    d.history = history;
    CHECK(ugrid_build(&grid, NULL, pos, 0, n) == UGRID_OK);
    for (turn = 0; turn < 3; turn++) {
        costs_begin();
        CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, pos, 0, n), NLIST_OK);
        work = costs_end();
    }
    nlist_free(&list);
    ugrid_free(&grid);
    free(pos);
    return work;
}

/* The carry of rows that did not change is a part of their search. */
static void test_unchanged(void **state)
{
    int32_t const n = size_of_run(500);
    int layout;
    (void)state;
    NEED_COUNT();
    for (layout = 0; layout < 4; layout++) {
        double const part = unchanged_work((nlist_layout)layout, 16, n) /
                            unchanged_work((nlist_layout)layout, 0, n);
        costs_show("history, over a build without", layout_name[layout], part);
        CHECK_BELOW(part, 1.18);
    }
}

/* Half lists of few pairs: from the second build on each pair is tested once. */
static void test_half(void **state)
{
    int32_t const n = size_of_run(500);
    real *pos = scene_points(EVEN, n, 3);
    ugrid grid = {0};
    nlist list = {0};
    nlist_desc d;
    double work[2];
    int k;
    (void)state;
    NEED_COUNT();
    memset(&d, 0, sizeof d);
    d.radius = (real)wl_radius(n, 4);
    d.half = 1;
    CHECK(ugrid_build(&grid, NULL, pos, 0, n) == UGRID_OK);
    for (k = 0; k < 2; k++) {
        costs_begin();
        CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, pos, 0, n), NLIST_OK);
        work[k] = costs_end();
    }
    costs_show("half list of few pairs, second build over first", "", work[1] / work[0]);
    CHECK_BELOW(work[1] / work[0], 0.8);
    nlist_free(&list);
    ugrid_free(&grid);
    free(pos);
}

/* The carry: O(row) where the order of a row is kept, also where contacts have ended; else
   O(row log row). */
static void test_carry(void **state)
{
    static const char *const name[] = {"all persist", "half ended", "turned round"};
    int32_t const n = size_of_run(250);
    int change;
    (void)state;
    NEED_COUNT();
    for (change = 0; change < CHANGES; change++) {
        double const few = carry_work(change, n), many = carry_work(change, 4 * n);
        costs_show("carry, an entry", name[change], many);
        CHECK_GROWTH(many, few, 1.4);
    }
}

/* ---- memory ---- */

/* After nlist_reserve builds allocate nothing; growing by one particle each time allocates O(log n)
   times, and copies nothing but what it must. */
static void test_memory(void **state)
{
    int32_t const n = 180;
    int layout;
    (void)state;
    for (layout = 0; layout < 4; layout++) {
        purse p = {0, 0, 0, 0, 0, 0};
        nlist_allocator const allocator = allocator_from(&p);
        real *pos = scene_points(EVEN, n, 3);
        ugrid grid = {0};
        nlist list = {0};
        nlist_desc d;
        int64_t calls;
        int32_t i;
        memset(&d, 0, sizeof d);
        d.radius = (real)wl_radius(n, 10);
        d.layout = (nlist_layout)layout;
        d.width = layout == NLIST_STATIC ? 64 : layout == NLIST_HYBRID ? 8 : 0;
        d.allocator = allocator;
        CHECK_RESULT(nlist_reserve(&list, &d, n, 20 * n), NLIST_OK);
        calls = p.calls;
        for (i = n; i > 10; i /= 2) {
            CHECK(ugrid_build(&grid, NULL, pos, 0, i) == UGRID_OK);
            CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, pos, 0, i), NLIST_OK);
            CHECK(p.calls == calls);
        }
        nlist_free(&list);
        for (p.calls = 0, p.given = 0, i = 60; i <= n; i++) {
            CHECK(ugrid_build(&grid, NULL, pos, 0, i) == UGRID_OK);
            CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, pos, 0, i), NLIST_OK);
        }
        costs_show("allocations of 120 builds", layout_name[layout], (double)p.calls);
        CHECK_BELOW((double)p.calls, 120);
        CHECK_BELOW((double)p.given, 6.0 * (double)p.most);
        nlist_free(&list);
        ugrid_free(&grid);
        CHECK(p.held == 0);
        free(pos);
    }
}

/* What is asked of an allocator that has `limit` bytes, over that, where all n are partners of all;
   way: by brute force, in each layout; in a box. */
static double short_of_memory(int way, int32_t n, int64_t limit)
{
    static const nlist_box box = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, {0, 0, 0}};
    purse p = {0, 0, 0, 0, 0, 0};
    real *pos = scene_points(EVEN, n, 3);
    nlist list = {0};
    nlist_desc d;
    nlist_arrays arrays;
    nlist_result result;
    memset(&d, 0, sizeof d);
    memset(&arrays, 0, sizeof arrays);
    d.allocator = allocator_from(&p);
    d.radius = 2;
    p.limit = limit;
    if (way == 4) {
        arrays.wanted = NLIST_WANT_I;
        d.sorted = 1;
        result = nlist_search_box(&list, &d, &box, pos, 0, n, &arrays);
    } else {
        d.layout = (nlist_layout)way;
        d.width = way == NLIST_STATIC ? 1024 : 0;
        result = nlist_build_brute(&list, &d, pos, 0, n);
    }
    CHECK(result == NLIST_OK || result == NLIST_OUT_OF_MEMORY);
    nlist_free(&list);
    CHECK(p.held == 0);
    free(pos);
    return (double)p.given / (double)limit;
}

/* Short of memory: at most 20 times the memory there is is asked for, then the result is OK or
   OUT_OF_MEMORY. */
static void test_short_of_memory(void **state)
{
    int way, k;
    (void)state;
    for (way = 0; way < 5; way++) {
        int64_t const n = way < 4 ? size_of_run(120) : size_of_run(200);
        double worst = 0;
        for (k = 2; k < 40; k += quick_run() ? 3 : 1) {
            double const asked = short_of_memory(way, (int32_t)n, n * n * k / 2);
            if (asked > worst) worst = asked;
        }
        costs_show("short of memory: copies of it", way < 4 ? layout_name[way] : "a box", worst);
        CHECK_BELOW(worst, 20);
    }
}

/* desc.grow: one more search, whatever is too small. */
static void test_grow(void **state)
{
    int32_t const n = size_of_run(400);
    int layout;
    (void)state;
    NEED_COUNT();
    for (layout = 0; layout < 4; layout++) {
        real *pos = scene_points(EVEN, n, 3);
        ugrid grid = {0};
        nlist list = {0}, large = {0};
        nlist_desc d;
        double grown, once;
        memset(&d, 0, sizeof d);
        d.radius = (real)wl_radius(n, 40);
        d.layout = (nlist_layout)layout;
        d.width = layout == NLIST_STATIC ? 256 : 0;
        CHECK(ugrid_build(&grid, NULL, pos, 0, n) == UGRID_OK);
        costs_begin();
        CHECK_RESULT(nlist_build_ugrid(&large, &d, &grid, pos, 0, n), NLIST_OK);
        once = costs_end();
        d.width = layout == NLIST_STATIC ? 1 : 0;
        d.capacity = 1;
        d.grow = 1;
        costs_begin();
        CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, pos, 0, n), NLIST_OK);
        grown = costs_end();
        CHECK(list.total == large.total);
        costs_show("grown, over one build", layout_name[layout], grown / once);
        CHECK_BELOW(grown, 2.5 * once);
        nlist_free(&list);
        nlist_free(&large);
        ugrid_free(&grid);
        free(pos);
    }
}

/* ---- boxes ---- */

/* A search of a box: its work over particles and entries. */
static double box_work(scene s, int32_t n, int nearest)
{
    real *pos = scene_points(s, n, 3);
    nlist_box box = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, {0, 0, 0}};
    nlist list = {0};
    nlist_desc d;
    nlist_arrays arrays;
    double work;
    memset(&d, 0, sizeof d);
    memset(&arrays, 0, sizeof arrays);
    d.radius = (real)wl_radius(n, 20);
    d.nearest = nearest;
    arrays.wanted = NLIST_WANT_J;
    costs_begin();
    CHECK_RESULT(nlist_search_box(&list, &d, &box, pos, 0, n, &arrays), NLIST_OK);
    work = costs_end() / (20.0 * n + (double)arrays.count);
    nlist_free(&list);
    free(pos);
    return work;
}

/* nlist_search_box: O(n + entries) for particles that are spread evenly, or crowded; one that is
   far away makes it slow, but not quadratic. */
static void test_box(void **state)
{
    int32_t const n = size_of_run(600);
    double even;
    int s;
    (void)state;
    NEED_COUNT();
    even = box_work(EVEN, n, 0);
    for (s = 0; s < SCENES; s++) {
        double work;
        work = box_work((scene)s, n, 0);
        costs_show("nlist_search_box, an entry", scene_name[s], work);
        CHECK_BELOW(work, 4 * even);
    }
}

/* nlist_search_boxes: many small systems take the work of a large one. */
static void test_systems(void **state)
{
    int32_t const n = size_of_run(600), per = 4, systems = n / per;
    real *pos = scene_points(EVEN, n, 3);
    nlist_box *boxes = NEW(nlist_box, systems);
    int32_t *starts = NEW(int32_t, systems + 1), s;
    nlist list = {0};
    nlist_desc d;
    nlist_arrays arrays;
    double one, many;
    (void)state;
    NEED_COUNT();
    memset(&d, 0, sizeof d);
    memset(&arrays, 0, sizeof arrays);
    memset(boxes, 0, (size_t)systems * sizeof *boxes);
    for (s = 0; s <= systems; s++) starts[s] = s * per;
    d.radius = (real)wl_radius(n, 4);
    arrays.wanted = NLIST_WANT_J;
    costs_begin();
    CHECK_RESULT(nlist_search_box(&list, &d, boxes, pos, 0, n, &arrays), NLIST_OK);
    one = costs_end();
    costs_begin();
    CHECK_RESULT(nlist_search_boxes(&list, &d, boxes, starts, systems, pos, 0, &arrays), NLIST_OK);
    many = costs_end();
    costs_show("systems of 4, over one", "even", many / one);
    CHECK_BELOW(many, 8 * one);
    nlist_free(&list);
    free(starts);
    free(boxes);
    free(pos);
}

/* desc.nearest: k of many, O(log k) a candidate. */
static double nearest_work(int32_t n, int32_t k)
{
    real *pos = scene_points(EVEN, n, 3);
    nlist_box box = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, {0, 0, 0}};
    nlist list = {0};
    nlist_desc d;
    nlist_arrays arrays;
    double work;
    memset(&d, 0, sizeof d);
    memset(&arrays, 0, sizeof arrays);
    d.radius = 2;
    d.nearest = k;
    arrays.wanted = NLIST_WANT_J;
    costs_begin();
    CHECK_RESULT(nlist_search_box(&list, &d, &box, pos, 0, n, &arrays), NLIST_OK);
    work = costs_end() / ((double)n * n);
    nlist_free(&list);
    free(pos);
    return work;
}

static void test_nearest(void **state)
{
    int32_t const n = size_of_run(120);
    double few, many;
    (void)state;
    NEED_COUNT();
    few = nearest_work(n, n / 4);
    many = nearest_work(2 * n, n / 2);
    costs_show("nearest, a candidate", "k = n / 4", many);
    CHECK_GROWTH(many, few, 1.6);
}

/* nlist_tune, nlist_next_skin: O(1). */
static void test_tune(void **state)
{
    nlist_tuner tuner;
    double most = 0;
    int k;
    (void)state;
    NEED_COUNT();
    memset(&tuner, 0, sizeof tuner);
    tuner.radius = 1;
    for (k = 0; k < 2000; k++) {
        double work;
        costs_begin();
        nlist_next_skin(&tuner);
        nlist_tune(&tuner, k % 7 == 0, 1 + (double)(k % 13));
        work = costs_end();
        if (work > most) most = work;
    }
    CHECK_BELOW(most, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_grid), TEST(test_tree), TEST(test_pairs), TEST(test_mesh), TEST(test_linear),
        TEST(test_moved), TEST(test_carry), TEST(test_half), TEST(test_unchanged),
        TEST(test_memory), TEST(test_short_of_memory), TEST(test_grow), TEST(test_box),
        TEST(test_systems), TEST(test_nearest), TEST(test_tune),
    };
    cmocka_set_test_filter(getenv("COSTS_TEST_ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
