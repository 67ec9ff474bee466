/* test_costs_lbvh.c - every cost that lbvh.h, lbvh_optimize.h and lbvh_wide.h promise, held against
   inputs that break promises.
   SPDX-License-Identifier: MIT OR Unlicense

   tests/README.md has the list: promise, input, count, bar. COSTS_SHOW=1 prints figures. */

#define LBVH_IMPLEMENTATION
#define LBVH_WITH_NEAREST
#define LBVH_WITH_OPTIMIZE
#define LBVH_WITH_WIDE
#include "lbvh.h"
#define TESTED lbvh
#include "../../common/testing.h"
#include "costs.h"

/* Besides the scenes of points: one box over all, a half space as a box, and boxes of sizes over
   four decades. */
enum { GIANT = SCENES, HALF_SPACE, SIZES, BOX_SCENES };

static const char *scene_of(int s)
{
    static const char *const name[] = {"giant", "half space", "many sizes"};
    return s < SCENES ? scene_name[s] : name[s - SCENES];
}

/* How many times the work on even input a search may take. NESTED: codes tell no more than 21 of
   its 64 steps, whatever their lattice. */
static double bar_of(int s) { return s == NESTED ? 12 : 4; }

/* n boxes around the points of a scene, of which each touches some others. */
static real *scene_boxes(int s, int32_t n, int dim)
{
    real *pos = scene_points(s < SCENES ? (scene)s : EVEN, n, dim);
    real *box = NEW(real, 2 * (int64_t)n * dim);
    double const edge = pow(1.0 / n, 1.0 / dim);
    int32_t i;
    int a;
    for (i = 0; i < n; i++) {
        double half = s == SORTED ? 0.7 / n : edge / 2;
        if (s == ONE_POINT || s == FEW_POINTS) half = 0;
        if (s == NESTED) half = edge / 2 * pow(0.5, (double)(64 * (int64_t)i / n));
        if (s == SIZES) half = edge / 20 * pow(10, -4 * (double)wl_u(&dice));
        if (s == GIANT && i == n / 2) half = 1;
        for (a = 0; a < dim; a++) {
            box[2 * dim * i + a] = pos[dim * i + a] - (real)half;
            box[2 * dim * i + dim + a] = pos[dim * i + a] + (real)half;
            if (s != HALF_SPACE || i != n / 2) continue;
            box[2 * dim * i + a] = (real)-FAR_AWAY;
            box[2 * dim * i + dim + a] = a == 1 ? -1 : (real)FAR_AWAY;
        }
    }
    free(pos);
    return box;
}

static lbvh build_of(lbvh_builder builder, int dim, const real *boxes, int32_t n)
{
    lbvh tree = {0};
    lbvh_desc d;
    memset(&d, 0, sizeof d);
    d.dim = dim;
    d.builder = builder;
    CHECK_RESULT(lbvh_build(&tree, &d, boxes, 0, n), LBVH_OK);
    return tree;
}

/* Nodes that the walk over all pairs visits, as lbvh_next does: those and the hits. */
static double pair_nodes(const lbvh *tree, int64_t *hits)
{
    double visited = 0;
    int32_t place;
    *hits = 0;
    for (place = 0; place < tree->n; place++) {
        const lbvh_node *own = &tree->node[tree->first_leaf + place];
        int32_t at = own->skip;
        while (at >= 0) {
            const lbvh_node *node = &tree->node[at];
            int a, meets = 1;
            for (a = 0; a < 3; a++)
                meets = meets && node->min[a] <= own->max[a] && own->min[a] <= node->max[a];
            visited++;
            if (meets && at >= tree->first_leaf) ++*hits;
            at = meets && at < tree->first_leaf ? node->link : node->skip;
        }
    }
    return visited;
}

/* ---- builds ---- */

static double build_work(int builder, int dim, int s, int32_t n)
{
    real *boxes = scene_boxes(s, n, dim);
    lbvh tree;
    double work;
    costs_begin();
    tree = build_of((lbvh_builder)builder, dim, boxes, n);
    work = costs_end() / n;
    lbvh_free(&tree);
    free(boxes);
    return work;
}

/* lbvh_build: O(n), all builders. (LBVH_PLOC: about twice the time; it runs more blocks.) */
static void test_build(void **state)
{
    int32_t const n = size_of_run(400);
    int s, builder;
    double merge = 0;
    (void)state;
    NEED_COUNT();
    for (builder = LBVH_MERGE; builder <= LBVH_PLOC; builder++) {
        double const even = build_work(builder, 3, EVEN, n);
        if (builder == LBVH_MERGE) merge = even;
        if (builder == LBVH_PLOC) CHECK_BELOW(even, 8 * merge);
        for (s = 0; s < BOX_SCENES; s++) {
            double const work = build_work(builder, 3, s, n);
            costs_show("lbvh_build, an element", scene_of(s), work);
            CHECK_BELOW(work, 4 * even);
            CHECK_GROWTH(build_work(builder, 3, s, 4 * n), work, 1.4);
        }
    }
}

/* Where elements are far from the others, they are sorted once, as they are in a lattice that is
   fit; codes by quantiles take most of the rest. */
static void test_build_far(void **state)
{
    double const even = build_work(LBVH_MERGE, 3, EVEN, 8192);
    (void)state;
    NEED_COUNT();
    costs_show("lbvh_build, an element", "even", even);
    costs_show("lbvh_build, an element", "one far", build_work(LBVH_MERGE, 3, ONE_FAR, 8192));
    CHECK_BELOW(build_work(LBVH_MERGE, 3, ONE_FAR, 8192), 1.6 * even);
    CHECK_BELOW(build_work(LBVH_MERGE, 3, HALF_SPACE, 8192), 1.6 * even);
}

/* lbvh_nearest_rows takes 16 bytes a point, lbvh_split_top 4 a leaf: once, and given back. */
static void check_borrowed(lbvh *tree, const real *boxes, purse *p)
{
    int32_t const n = tree->n;
    int32_t *ids = NEW(int32_t, n), *found = NEW(int32_t, n);
    real *d2 = NEW(real, n);
    int64_t const held = p->held;
    p->most = held;
    CHECK_RESULT(lbvh_nearest_rows(tree, boxes, 6 * sizeof *boxes, n, 1, REAL_INFINITY, 0, ids, d2,
                                   found), LBVH_OK);
    CHECK_BELOW((double)(p->most - held), 16 * n);
    p->most = held;
    CHECK_RESULT(lbvh_split_top(tree, NULL), LBVH_OK);
    CHECK_BELOW((double)(p->most - held), 4 * n + 64 * 64); /* n / 20 subtrees, 64 at least */
    CHECK(p->held == held);
    free(d2);
    free(found);
    free(ids);
}

/* Bytes a leaf as told; after a reserve, builds, refits and searches allocate nothing; growing by
   one element each time allocates O(log n) times; short of memory each array is taken once. */
static void test_memory(void **state)
{
    static const int per_leaf[] = {65, 73, 73};
    int32_t const n = 150;
    int builder, s;
    (void)state;
    for (builder = LBVH_MERGE; builder <= LBVH_PLOC; builder++) {
        lbvh tree = {0};
        purse p = {0, 0, 0, 0, 0, 0};
        lbvh_desc d;
        real *boxes;
        int64_t calls, pairs;
        int32_t i;
        memset(&d, 0, sizeof d);
        d.builder = (lbvh_builder)builder;
        d.allocator = allocator_from(&p);
        CHECK_RESULT(lbvh_reserve(&tree, &d, n), LBVH_OK);
        if (IS_FLOAT) CHECK_BELOW((double)p.held, per_leaf[builder] * n + 64);
        calls = p.calls;
        for (s = 0; s < BOX_SCENES; s++) {
            boxes = scene_boxes(s, n, 3);
            CHECK_RESULT(lbvh_build(&tree, &d, boxes, 0, n), LBVH_OK);
            CHECK_RESULT(lbvh_refit(&tree, boxes, 0), LBVH_OK);
            CHECK_RESULT(lbvh_optimize(&tree, NULL), LBVH_OK);
            CHECK_RESULT(lbvh_count_pairs(&tree, &pairs), LBVH_OK);
            CHECK(p.calls == calls);
            check_borrowed(&tree, boxes, &p);
            calls = p.calls;
            free(boxes);
        }
        lbvh_free(&tree);
        boxes = scene_boxes(EVEN, n, 3);
        for (p.calls = 0, i = 1; i <= n; i++)
            CHECK_RESULT(lbvh_build(&tree, &d, boxes, 0, i), LBVH_OK);
        costs_show("allocations of 150 builds", "growing", (double)p.calls);
        CHECK_BELOW((double)p.calls, 80);
        lbvh_free(&tree);
        CHECK(p.held == 0);
        free(boxes);
    }
}

/* ---- searches ---- */

/* Nodes visited for all pairs, a leaf and hit. */
static double nodes_of(lbvh_builder builder, int dim, int s, int32_t n)
{
    real *boxes = scene_boxes(s, n, dim);
    lbvh tree = build_of(builder, dim, boxes, n);
    lbvh_quality q;
    int64_t hits, pairs;
    double const nodes = pair_nodes(&tree, &hits);
    CHECK_RESULT(lbvh_count_pairs(&tree, &pairs), LBVH_OK);
    CHECK(pairs == hits);
    CHECK_RESULT(lbvh_measure(&tree, &q), LBVH_OK);
    CHECK(q.depth <= 93);
    lbvh_free(&tree);
    free(boxes);
    return nodes / (double)(n + hits);
}

/* Pairs: O(log n) for a search and O(1) for a hit; within 4 times the nodes of EVEN, whatever lies
   far away, is huge, or is at one point. */
static void test_pairs(void **state)
{
    int32_t const n = size_of_run(600);
    int s, builder, dim;
    (void)state;
    for (builder = LBVH_MERGE; builder <= LBVH_PLOC; builder++)
        for (dim = 2; dim <= 3; dim++) {
            double const even = nodes_of((lbvh_builder)builder, dim, EVEN, n);
            for (s = 0; s < BOX_SCENES; s++) {
                double const nodes = nodes_of((lbvh_builder)builder, dim, s, n);
                costs_show("nodes a leaf and hit", scene_of(s), nodes);
                CHECK_BELOW(nodes, bar_of(s) * even);
            }
        }
}

/* The work of the calls themselves, faster forms included, a leaf and hit. */
static double call_work(int call, int s, int32_t n)
{
    real *boxes = scene_boxes(s, n, 3), *at = scene_points(s < SCENES ? (scene)s : EVEN, n, 3);
    lbvh tree = build_of(LBVH_MERGE, 3, boxes, n);
    lbvh_queries q;
    int64_t found = 0;
    int32_t i, *counts = NEW(int32_t, n), ids[4], met;
    real d2[4];
    double work = 0;
    memset(&q, 0, sizeof q);
    costs_begin();
    if (call == 0) CHECK_RESULT(lbvh_count_pairs(&tree, &found), LBVH_OK);
    if (call == 1) CHECK_RESULT(lbvh_count_overlaps(&tree, &q, counts), LBVH_OK);
    for (i = 0; call == 1 && i < n; i++) found += counts[i];
    if (call == 2 || call == 3)
        for (i = 0; i < n; i += 4) {
            CHECK_RESULT(lbvh_nearest(&tree, at + 3 * i, call == 2 ? 1 : 4, REAL_INFINITY, NULL,
                                      NULL, ids, d2, &met), LBVH_OK);
            found += met;
        }
    if (call == 4)
        for (i = 0; i < n; i += 4) {
            real const to[3] = {(real)0.5, (real)0.6, (real)0.7};
            lbvh_ray ray = lbvh_ray_cast(&tree, at + 3 * i, to, (real)0.2);
            while (lbvh_next_ray(&ray)) found++;
        }
    work = costs_end() / (double)(n + found);
    free(counts);
    lbvh_free(&tree);
    free(at);
    free(boxes);
    return work;
}

static void test_searches(void **state)
{
    static const char *const name[] = {"lbvh_count_pairs", "lbvh_count_overlaps",
        "lbvh_nearest, k = 1", "lbvh_nearest, k = 4", "lbvh_ray_cast"};
    int32_t const n = size_of_run(800);
    int call, s;
    (void)state;
    NEED_COUNT();
    for (call = 0; call < COUNT_OF(name); call++) {
        double const even = call_work(call, EVEN, n);
        for (s = 0; s < BOX_SCENES; s++) {
            double const work = call_work(call, s, n);
            costs_show(name[call], scene_of(s), work);
            CHECK_BELOW(work, bar_of(s) * even);
        }
    }
}

/* k nearest: among ties, and where k is large: O(log n + k log k). */
static double nearest_work(scene s, int32_t n, int32_t k)
{
    real *at = scene_points(s, n, 3), *d2 = NEW(real, k);
    lbvh tree = {0};
    lbvh_desc d;
    int32_t *ids = NEW(int32_t, k), met, i;
    double work;
    memset(&d, 0, sizeof d);
    d.kind = LBVH_POINTS;
    CHECK_RESULT(lbvh_build(&tree, &d, at, 0, n), LBVH_OK);
    costs_begin();
    for (i = 0; i < 4; i++)
        CHECK_RESULT(lbvh_nearest(&tree, at + 3 * (i * (n / 4)), k, REAL_INFINITY, NULL, NULL,
                                  ids, d2, &met), LBVH_OK);
    work = costs_end() / 4;
    lbvh_free(&tree);
    free(at);
    free(ids);
    free(d2);
    return work;
}

static void test_nearest_ties(void **state)
{
    int32_t const n = size_of_run(2000);
    double even;
    int s;
    (void)state;
    NEED_COUNT();
    even = nearest_work(EVEN, n, 8);
    for (s = 0; s < SCENES; s++) {
        double const work = nearest_work((scene)s, n, 8);
        costs_show("lbvh_nearest, k = 8", scene_name[s], work);
        CHECK_BELOW(work, 4 * even);
    }
}

/* Of points in clusters: all rows, and a walk that asks for each element. Runs of leaves take less,
   wherever the points lie. */
static void test_nearest_rows(void **state)
{
    int32_t const n = size_of_run(1000), k = 8;
    int s;
    (void)state;
    NEED_COUNT();
    for (s = 0; s < SCENES; s++) {
        real *at = scene_points((scene)s, n, 3), *d2 = NEW(real, n * k);
        int32_t *ids = NEW(int32_t, n * k), *found = NEW(int32_t, n);
        lbvh tree = {0};
        lbvh_desc d;
        double rows;
        memset(&d, 0, sizeof d);
        d.kind = LBVH_POINTS;
        CHECK_RESULT(lbvh_build(&tree, &d, at, 0, n), LBVH_OK);
        costs_begin();
        CHECK_RESULT(lbvh_nearest_rows(&tree, at, 0, n, k, REAL_INFINITY, 0, ids, d2, found),
                     LBVH_OK);
        rows = costs_end() / n;
        costs_show("lbvh_nearest_rows, k = 8", scene_name[s], rows);
        CHECK_BELOW(rows, sizeof(real) == 4 ? 5800 : 6700); /* leaf by leaf 7,400 (floats) */
        lbvh_free(&tree);
        free(at);
        free(ids);
        free(d2);
        free(found);
    }
}

static void test_nearest_many(void **state)
{
    int32_t const n = size_of_run(1000), k = n / 3; /* more than 256: a heap */
    int s;
    (void)state;
    NEED_COUNT();
    for (s = 0; s < SCENES; s++) {
        double const few = nearest_work((scene)s, n, k),
                     many = nearest_work((scene)s, 4 * n, 4 * k);
        costs_show("lbvh_nearest, an entry", scene_name[s], many / (4 * k));
        CHECK_GROWTH(many, few, 4 * 2);
    }
}

/* ---- what else is O(n) ---- */

static double linear_work(int call, int s, int32_t n)
{
    real *boxes = scene_boxes(s, n, 3);
    lbvh tree = build_of(call == 5 ? LBVH_PLOC : LBVH_MERGE, 3, boxes, n), other = {0};
    lbvh_quality q;
    unsigned char *bytes = NULL;
    int64_t needed = 0;
    double work;
    if (call >= 6) {
        CHECK(lbvh_save(&tree, NULL, 0, &needed) == LBVH_BUFFER_TOO_SMALL);
        bytes = NEW(unsigned char, needed);
        CHECK_RESULT(lbvh_save(&tree, bytes, needed, &needed), LBVH_OK);
    }
    costs_begin();
    if (call == 0) CHECK_RESULT(lbvh_refit(&tree, boxes, 0), LBVH_OK);
    if (call == 1) CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
    if (call == 2) CHECK_RESULT(lbvh_measure(&tree, &q), LBVH_OK);
    if (call == 3) CHECK_RESULT(lbvh_optimize(&tree, NULL), LBVH_OK);
    if (call == 4) CHECK_RESULT(lbvh_verify(&tree, 2, 1, NULL), LBVH_OK);
    if (call == 5) CHECK_RESULT(lbvh_split_top(&tree, NULL), LBVH_OK);
    if (call == 6) CHECK_RESULT(lbvh_save(&tree, bytes, needed, &needed), LBVH_OK);
    if (call == 7) CHECK_RESULT(lbvh_load(&other, NULL, bytes, needed), LBVH_OK);
    work = costs_end() / n;
    lbvh_free(&tree);
    lbvh_free(&other);
    free(bytes);
    free(boxes);
    return work;
}

static void test_linear(void **state)
{
    static const char *const name[] = {"lbvh_refit", "lbvh_validate", "lbvh_measure",
        "lbvh_optimize", "lbvh_verify", "lbvh_split_top", "lbvh_save", "lbvh_load"};
    int32_t const n = size_of_run(200);
    int call, s;
    (void)state;
    NEED_COUNT();
    for (call = 0; call < COUNT_OF(name); call++) {
        double const even = linear_work(call, EVEN, n);
        for (s = 0; s < BOX_SCENES; s++) {
            double const work = linear_work(call, s, n);
            costs_show(name[call], scene_of(s), work);
            CHECK_BELOW(work, 4 * even);
            CHECK_GROWTH(linear_work(call, s, 4 * n), work, call == 5 ? 1.7 : 1.4);
        }
    }
}

/* ---- wide trees ---- */

static double wide_work(int call, int s, int32_t n)
{
    real *boxes = scene_boxes(s, n, 3), *at = scene_points(s < SCENES ? (scene)s : EVEN, n, 3);
    lbvh tree = build_of(LBVH_MERGE, 3, boxes, n);
    lbvh_wide wide = {0};
    lbvh_wide_desc d;
    int64_t needed, found = 0;
    int32_t ids[64], met, i;
    real d2[64];
    double work;
    memset(&d, 0, sizeof d);
    d.copy = call > 0;
    costs_begin();
    CHECK_RESULT(lbvh_wide_build(&wide, &d, &tree, boxes, 0), LBVH_OK);
    work = costs_end() / n;
    if (call == 0 && IS_FLOAT) CHECK_BELOW((double)lbvh_wide_bytes(&wide), 22.3 * n + 64);
    costs_begin();
    for (i = 0; call == 1 && i < n; i += 4) {
        CHECK_RESULT(lbvh_wide_nearest(&wide, at + 3 * i, 4, REAL_INFINITY, NULL, NULL, ids, d2,
                                       &met), LBVH_OK);
        found += met;
    }
    for (i = 0; call == 2 && i < n; i += 4) {
        lbvh_wide_overlaps(&wide, boxes + 6 * i, 0, ids, 64, &needed);
        found += needed;
    }
    if (call > 0) work = costs_end() / (double)(n + found);
    lbvh_wide_free(&wide);
    lbvh_free(&tree);
    free(at);
    free(boxes);
    return work;
}

static void test_wide(void **state)
{
    static const char *const name[] = {"lbvh_wide_build", "lbvh_wide_nearest",
        "lbvh_wide_overlaps"};
    int32_t const n = size_of_run(1000);
    int call, s;
    (void)state;
    NEED_COUNT();
    for (call = 0; call < COUNT_OF(name); call++) {
        double const even = wide_work(call, EVEN, n);
        for (s = 0; s < BOX_SCENES; s++) {
            double work;
            /* in one place all are as near, and are visited for their ids */
            if (call == 1 && (s == ONE_POINT || s == FEW_POINTS)) continue;
            work = wide_work(call, s, n);
            costs_show(name[call], scene_of(s), work);
            CHECK_BELOW(work, bar_of(s) * even);
        }
    }
}

/* ---- triangles ---- */

/* n triangles at the points of a scene: small ones, slivers, or around one tip. */
enum { SMALL, SLIVERS, FAN, KINDS };

static real *triangles_of(int kind, scene s, int32_t n)
{
    real *pos = scene_points(s, n, 3), *c = NEW(real, 9 * n);
    double const edge = s == SORTED ? 1.0 / n : pow(1.0 / n, 1.0 / 3);
    int32_t t;
    int k;
    for (t = 0; t < n; t++)
        for (k = 0; k < 3; k++) {
            double const turn = 6.283185307179586 * (t + k / 2) / n;
            real *v = c + 9 * t + 3 * k;
            memcpy(v, pos + 3 * t, 3 * sizeof *v);
            if (kind != FAN) v[k] += (real)(kind == SLIVERS && k ? edge / 1000 : edge);
            if (kind == FAN) {
                v[0] = (real)(k ? cos(turn) : 0);
                v[1] = (real)(k ? sin(turn) : 0);
                v[2] = 0;
            }
        }
    free(pos);
    return c;
}

/* Closest points and rays from a grid of points around: work a query. */
static double mesh_work(int call, int kind, scene s, int32_t n)
{
    real *corners = triangles_of(kind, s, n), rays[6 * 64];
    lbvh tree = {0};
    lbvh_desc d;
    lbvh_wide wide = {0};
    lbvh_wide_desc w;
    lbvh_rays many;
    lbvh_ray_hit hits[64];
    lbvh_closest closest[64];
    uint8_t any[64];
    double work;
    int k;
    memset(&d, 0, sizeof d);
    memset(&w, 0, sizeof w);
    memset(&many, 0, sizeof many);
    d.kind = LBVH_TRIANGLES;
    w.copy = 1;
    for (k = 0; k < 64; k++) {
        rays[6 * k] = (real)(k % 4) / 4 + (real)0.1;
        rays[6 * k + 1] = (real)(k / 4 % 4) / 4 + (real)0.1;
        rays[6 * k + 2] = (real)(k / 16) / 4 + (real)0.1;
        rays[6 * k + 3] = (real)0.3 - rays[6 * k];
        rays[6 * k + 4] = (real)0.3 - rays[6 * k + 1];
        rays[6 * k + 5] = (real)0.3 - rays[6 * k + 2];
    }
    many.data = rays;
    many.n = 64;
    CHECK_RESULT(lbvh_build(&tree, &d, corners, 0, n), LBVH_OK);
    CHECK_RESULT(lbvh_wide_build(&wide, &w, &tree, corners, 0), LBVH_OK);
    costs_begin();
    if (call == 0) CHECK_RESULT(lbvh_closest_hits(&wide, &many, NULL, NULL, hits), LBVH_OK);
    if (call == 1) CHECK_RESULT(lbvh_any_hits(&wide, &many, NULL, NULL, any), LBVH_OK);
    many.flags = LBVH_SORTED;
    if (call == 3) CHECK_RESULT(lbvh_closest_hits(&wide, &many, NULL, NULL, hits), LBVH_OK);
    if (call == 2)
        CHECK_RESULT(lbvh_closest_points(&wide, rays, 6 * sizeof *rays, 64, REAL_INFINITY,
                                         closest), LBVH_OK);
    work = costs_end() / 64;
    lbvh_wide_free(&wide);
    lbvh_free(&tree);
    free(corners);
    return work;
}

/* Rays and closest points: O(log n) a query, for slivers, a fan, and far triangles. */
static void test_mesh(void **state)
{
    static const char *const name[] = {"lbvh_closest_hits", "lbvh_any_hits", "lbvh_closest_points",
        "lbvh_closest_hits, sorted"};
    int32_t const n = size_of_run(1000);
    int call, s;
    (void)state;
    NEED_COUNT();
    for (call = 0; call < COUNT_OF(name); call++) {
        double const even = mesh_work(call, SMALL, EVEN, n);
        for (s = 0; s < SCENES; s++) {
            double work;
            /* in one place all boxes are entered: what is in each is tested */
            if (s == ONE_POINT || s == FEW_POINTS) continue;
            work = mesh_work(call, SMALL, (scene)s, n);
            costs_show(name[call], scene_name[s], work);
            CHECK_BELOW(work, bar_of(s) * even);
        }
        costs_show(name[call], "slivers", mesh_work(call, SLIVERS, EVEN, n));
        costs_show(name[call], "fan", mesh_work(call, FAN, EVEN, n));
        CHECK_BELOW(mesh_work(call, SLIVERS, EVEN, n), 4 * even);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_build), TEST(test_build_far), TEST(test_memory), TEST(test_pairs),
        TEST(test_searches),
        TEST(test_nearest_ties), TEST(test_nearest_rows), TEST(test_nearest_many),
        TEST(test_linear), TEST(test_wide), TEST(test_mesh),
    };
    cmocka_set_test_filter(getenv("COSTS_TEST_ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
