/* test_lbvh.c - tests of the serial part of lbvh.h: trees and searches against brute force. See lbvh_oracle.h for the oracles, and
   for the environment variables. test_lbvh_calls.c has the rest: refusals, memory, files, triangles.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/lbvh/test_lbvh.c -o test_lbvh -lcmocka -lm && ./test_lbvh
       (add -DLBVH_REAL=double for the double build; packages: libcmocka-dev libstb-dev) */

#include "../../common/lbvh_oracle.h"

/* ------------------------------------------------------------------------------------------------
   Trees and searches, over the product of inputs, kinds and options
   ------------------------------------------------------------------------------------------------ */

/* Both builders, with and without codes, in fresh memory and in old. `tree` is left as the merged one with codes. */
static void check_builders(lbvh *tree, scene *s)
{
    lbvh split = {0}, bare = {0};
    s->keep = 1;
    s->builder = LBVH_MERGE;
    build(tree, s);
    check_tree(tree, s, NULL);
    CHECK(s->n == 0 || tree->code);
    s->builder = LBVH_SPLIT;
    s->keep = 0;
    build(&split, s);
    CHECK(s->n == 0 || split.code);
    check_same_tree(tree, &split);
    CHECK_RESULT(lbvh_validate(&split), LBVH_OK);
    s->builder = LBVH_MERGE;
    build(&bare, s);
    CHECK(!bare.code);
    check_same_tree(tree, &bare);
    check_tree(&bare, s, tree->code);
    build(&split, s);
    CHECK(!split.code);
    check_same_tree(tree, &split);
    s->keep = 1;
    lbvh_free(&split);
    lbvh_free(&bare);
}

static void check_product(int dim)
{
    static const int32_t sizes[] = {1, 2, 3, 17, 90};
    lbvh tree = {0};
    scene s;
    int counter = 0, in, bits, kind, masked, size;
    memset(&s, 0, sizeof s);
    current_scene = &s;
    describe = describe_scene;
    dice = wl_seed(11 + (uint64_t)dim);
    for (in = 0; in < COUNT_OF(inputs); in++) for (bits = 30; bits <= 63; bits += 33) for (kind = 0; kind < KINDS; kind++)
        for (masked = 0; masked < 2; masked++) for (size = 0; size < COUNT_OF(sizes); size++) {
            if (!chosen(counter++)) continue;
            s.dim = dim;
            s.bits = bits;
            s.masked = masked;
            s.stride = (size_t)roll(2);
            set_kind(&s, kind);
            if (counter % 4 == 0) set_bounds(&s);
            make_scene(&s, &inputs[in], sizes[size] + (sizes[size] > 3 ? roll((int)sizes[size]) : 0));
            check_builders(&tree, &s);
            check_codes(&tree, &s, in == LATTICE && kind < 4 && s.n > 3);
            check_everything(&tree, &s, 6);
            forget(&s);
        }
    lbvh_free(&tree);
}

static void test_product_2d(void **state) { (void)state; check_product(2); }
static void test_product_3d(void **state) { (void)state; check_product(3); }

/* A few larger ones, where the sort takes its other ways. */
static void test_larger(void **state)
{
    lbvh tree = {0};
    scene s;
    int in, dim;
    (void)state;
    dice = wl_seed(5);
    for (in = 0; in < COUNT_OF(inputs); in++) for (dim = 2; dim <= 3; dim++) {
        if (!chosen(2 * in + dim)) continue;
        memset(&s, 0, sizeof s);
        current_scene = &s;
        describe = describe_scene;
        s.dim = dim;
        s.bits = roll(3) ? 63 : 30;
        set_kind(&s, roll(KINDS));
        make_scene(&s, &inputs[in], 400 + roll(1600));
        check_builders(&tree, &s);
        check_everything(&tree, &s, 12);
        forget(&s);
    }
    lbvh_free(&tree);
}

/* Boxes that all overlap, in subtrees of 16 leaves; of 1041, the last 17 are one subtree. */
static void in_sixteens(int32_t i, int32_t n, real centre[3], real half[3])
{
    (void)n;
    all_axes(centre, (real)(i < 1024 ? i / 16 : 64));
    all_axes(half, 128);
}

/* Own elements search in packets, which share their candidates unless there are too many: sizes around
   those limits (16 and 1024), with boxes that all overlap, that mostly do, and that rarely do; left out
   and masked ones among them. */
static void test_packets(void **state)
{
    static const int32_t sizes[] = {15, 16, 17, 33, 300, 1023, 1024, 1025, 1040, 1041, 1100};
    static input_fn *const fns[] = {in_sixteens, all_equal, all_sizes, uniform, bare_points};
    lbvh tree = {0};
    scene s;
    int size, in;
    (void)state;
    dice = wl_seed(31);
    current_scene = &s;
    describe = describe_scene;
    for (size = 0; size < COUNT_OF(sizes); size++) for (in = 0; in < COUNT_OF(fns); in++) {
        input const chosen_input = {"packet", fns[in]};
        lbvh_queries q;
        int k;
        if (!(in == 0 && sizes[size] == 1041) && !chosen(5 * size + in)) continue;
        memset(&s, 0, sizeof s);
        s.dim = 2 + roll(2);
        s.masked = in && roll(3) == 0;
        s.skip_invalid = 1;
        make_scene(&s, &chosen_input, sizes[size]);
        for (k = in == 0 || roll(3) ? 0 : 1 + roll(20); k > 0; k--) {
            int32_t const i = roll((int)s.n);
            element(&s, i)[roll(2)] = REAL_NAN;
            leave_out(&s.truth[i]);
        }
        build(&tree, &s);
        check_pairs(&tree, &s);
        for (k = 0; k < 2; k++) {
            memset(&q, 0, sizeof q);
            q.kind = k ? LBVH_BOXES : LBVH_POINTS;
            q.flags = roll(4);
            q.radius = roll(3) ? (real)(0.3 * wl_u(&dice)) : 4;
            if (roll(2)) q.filter = some_filter();
            check_rows(&tree, &s, &q);
        }
        forget(&s);
    }
    lbvh_free(&tree);
}

/* A tree of nothing. Searches find nothing and answer. */
static void check_nothing(const lbvh *t, const scene *s)
{
    int64_t needed = -1, offsets[1] = {-1};
    int32_t found = -1;
    lbvh_quality q;
    lbvh_queries own;
    real p[3] = {0, 0, 0}, d[3] = {1, 0, 0};
    check_pairs(t, s);
    check_nearest(t, s, p, 3, REAL_INFINITY, 0);
    check_ray(t, s, p, d, REAL_INFINITY, 0xFFFFFFFFu);
    check_sphere(t, s, p, REAL_INFINITY, 0xFFFFFFFFu);
    CHECK_RESULT(lbvh_nearest(t, p, 0, 1, NULL, NULL, NULL, NULL, &found), LBVH_OK);
    CHECK_RESULT(lbvh_measure(t, &q), LBVH_OK);
    CHECK(found == 0 && q.depth == 0 && !(q.sah > 0) && !(q.overlap > 0) && !(q.mean_depth > 0));
    CHECK_RESULT(lbvh_validate(t), LBVH_OK);
    memset(&own, 0, sizeof own);
    CHECK_RESULT(lbvh_overlaps(t, &own, offsets, NULL, 0, &needed), LBVH_OK);
    CHECK_RESULT(lbvh_count_overlaps(t, &own, NULL), LBVH_OK);
    CHECK(needed == 0 && offsets[0] == 0);
    CHECK_RESULT(lbvh_save(t, NULL, 0, &needed), LBVH_BUFFER_TOO_SMALL);
    CHECK_RESULT(lbvh_refit((lbvh *)(size_t)t, NULL, 0), LBVH_OK);
}

static void test_empty(void **state)
{
    lbvh tree = {0};
    scene s;
    (void)state;
    plain_scene(&s, &inputs[0], 0);
    check_builders(&tree, &s);
    check_nothing(&tree, &s);
    CHECK_RESULT(lbvh_build(&tree, NULL, NULL, 0, 0), LBVH_OK);
    CHECK(tree.desc.dim == 3 && tree.desc.bits == 63 && lbvh_bytes(&tree) == 0);
    check_nothing(&tree, &s);
    lbvh_free(&tree);
    lbvh_free(&tree);
    lbvh_free(NULL);
    CHECK(lbvh_bytes(NULL) == 0 && lbvh_bytes(&tree) == 0);
    forget(&s);
}

/* The figure of Karras' paper, node by node. Points in the plane: x takes bits 1, 3 and 5 of a code, y bits 2 and 4; y is the
   longer side, and its last coordinate is cut to the last cell. */
static void test_karras(void **state)
{
    static const uint64_t codes[8] = {1, 2, 4, 5, 19, 24, 25, 30}; /* 00001 00010 00100 00101 10011 11000 11001 11110 */
    static const uint8_t prefix[9] = {0, 4, 3, 5, 1, 2, 5, 3, 0};
    static const int32_t link[7] = {3, 7, 9, 1, 11, 6, 12};
    static const int32_t skip[15] = {-1, 2, 4, 4, -1, -1, 14,   8, 2, 10, 4, 5, 13, 14, -1};
    box const leaves_2_3 = {{1, 0, 0}, {(real)1.5, 0, 0}}, leaves_5_7 = {{2, 2, 0}, {3, 4, 0}};
    lbvh tree = {0};
    lbvh_desc d;
    real p[16];
    int builder, k;
    (void)state;
    for (k = 0; k < 8; k++) {
        int const c = (int)codes[7 - k]; /* handed over in reverse */
        p[2 * k] = (real)0.5 * (real)((c >> 4 & 1) * 4 + (c >> 2 & 1) * 2 + (c & 1));
        p[2 * k + 1] = c == 30 ? 4 : (real)((c >> 3 & 1) * 2 + (c >> 1 & 1));
    }
    memset(&d, 0, sizeof d);
    d.dim = 2;
    d.kind = LBVH_POINTS;
    d.keep_codes = 1;
    for (builder = 0; builder < 2; builder++) for (d.bits = 30; d.bits <= 63; d.bits += 33) {
        d.builder = (lbvh_builder)builder;
        CHECK_RESULT(lbvh_build(&tree, &d, p, 0, 8), LBVH_OK);
        CHECK(tree.first_leaf == 7 && memcmp(tree.prefix, prefix, 9) == 0);
        for (k = 0; k < 15; k++) CHECK(tree.node[k].skip == skip[k] && tree.node[k].link == (k < 7 ? link[k] : 14 - k));
        for (k = 0; k < 8; k++) CHECK(tree.code[k] >> ((d.bits == 30 ? 30 : 62) - 5) == codes[k]);
        CHECK(same_box(&tree.node[2], &leaves_2_3) && same_box(&tree.node[5], &leaves_5_7));
    }
    lbvh_free(&tree);
}

/* The deepest tree: a code for every bit, each splitting off one leaf, and a crowd at the last. Points on the axes, powers
   of two. */
static void deepest(scene *s, int dim, int crowd)
{
    int const axis_bits = dim == 3 ? 21 : 31;
    int32_t i;
    int k, a;
    memset(s, 0, sizeof *s);
    s->input = "deepest";
    s->dim = dim;
    s->bits = 63;
    s->keep = 1;
    s->kind = LBVH_POINTS;
    s->n = dim * axis_bits + crowd;
    s->step = (size_t)dim;
    s->data = NEW(real, s->n * dim);
    s->truth = NEW(box, s->n);
    for (i = 0; i < s->n; i++) {
        for (a = 0; a < dim; a++) element(s, i)[a] = 0;
        k = (int)i / dim;
        if (k >= axis_bits) continue;
        element(s, i)[i % dim] = (real)ldexp(1, i ? k : axis_bits); /* the longest side: as many units as cells */
    }
    element(s, dim * axis_bits)[0] = 1; /* what the first was to be */
    find_truth(s);
}

static void test_deepest(void **state)
{
    lbvh tree = {0}, loaded = {0};
    lbvh_quality q;
    scene s;
    int dim;
    (void)state;
    dice = wl_seed(6);
    current_scene = &s;
    describe = describe_scene;
    for (dim = 2; dim <= 3; dim++) {
        real const origin[3] = {0, 0, 0}, ahead[3] = {1, 1, 1}, up[3] = {0, 0, 1};
        int64_t needed;
        void *file;
        int k;
        deepest(&s, dim, 1200);
        check_builders(&tree, &s);
        CHECK_RESULT(lbvh_measure(&tree, &q), LBVH_OK);
        CHECK(q.depth > 70 && q.depth <= 93);
        for (k = 0; k < 5; k++) {
            check_nearest(&tree, &s, origin, 5, REAL_INFINITY, k % 2);
            check_near_walk(&tree, &s, origin, REAL_INFINITY, 0xFFFFFFFFu);
            check_ray(&tree, &s, origin, ahead, REAL_INFINITY, 0xFFFFFFFFu);
            check_ray(&tree, &s, origin, up, REAL_INFINITY, 0xFFFFFFFFu);
        }
        check_everything(&tree, &s, 4);
        CHECK_RESULT(lbvh_save(&tree, NULL, 0, &needed), LBVH_BUFFER_TOO_SMALL);
        file = exactly((size_t)needed);
        CHECK_RESULT(lbvh_save(&tree, file, needed, &needed), LBVH_OK);
        CHECK_RESULT(lbvh_load(&loaded, NULL, file, needed), LBVH_OK);
        check_same_tree(&tree, &loaded);
        free(file);
        forget(&s);
    }
    lbvh_free(&tree);
    lbvh_free(&loaded);
}

/* How far a walk's stack can fill: a tree of the greatest depth that codes and places allow, 93 inner nodes above a leaf, made by
   hand, since a build of it would take 2^30 leaves. Every box holds the origin, so that nothing is passed over. */
static void test_stack(void **state)
{
    enum { N = 94 };
    lbvh tree = {0};
    lbvh_near walk;
    lbvh_ray ray;
    lbvh_quality q;
    real data[3 * N];
    lbvh_desc d;
    real const origin[3] = {0, 0, 0}, ahead[3] = {1, 1, 1};
    int32_t k, found;
    (void)state;
    memset(&d, 0, sizeof d);
    memset(data, 0, sizeof data);
    d.kind = LBVH_POINTS;
    for (k = 0; k < 2; k++) { /* a comb to the left, one to the right */
        int32_t i;
        CHECK_RESULT(lbvh_build(&tree, &d, data, 0, N), LBVH_OK);
        for (i = 1; i < N; i++) tree.prefix[i] = (uint8_t)(k ? i : N - i);
        CHECK_RESULT(lbvh_refit(&tree, data, 0), LBVH_OK);
        CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
        CHECK_RESULT(lbvh_measure(&tree, &q), LBVH_OK);
        CHECK(q.depth == N - 1);
        walk = lbvh_near_point(&tree, origin, 1);
        for (found = 0; lbvh_next_near(&walk); found++) CHECK(walk.top < LBVH_STACK);
        CHECK(found == N);
        ray = lbvh_ray_cast(&tree, origin, ahead, 1);
        for (found = 0; lbvh_next_ray(&ray); found++) CHECK(ray.top < LBVH_STACK);
        CHECK(found == N);
    }
    lbvh_free(&tree);
}

/* ------------------------------------------------------------------------------------------------
   Borders and odd questions
   ------------------------------------------------------------------------------------------------ */

/* One box, and queries that touch it, miss it by the last bit, or are nonsense. */
static void test_borders(void **state)
{
    real const data[6] = {(real)0.1, (real)0.2, (real)0.3, (real)1.1, (real)1.2, (real)1.3};
    lbvh tree = {0};
    scene s;
    int a, side, step;
    (void)state;
    plain_scene(&s, &inputs[0], 1);
    memcpy(s.data, data, sizeof data);
    find_truth(&s);
    build(&tree, &s);
    for (a = 0; a < 3; a++) for (side = 0; side < 2; side++) for (step = -1; step <= 1; step++) {
        box q = {{(real)0.5, (real)0.5, (real)0.5}, {(real)0.6, (real)0.6, (real)0.6}};
        int const inside = side ? step <= 0 : step >= 0;
        real p[3] = {(real)0.5, (real)0.5, (real)0.5};
        p[a] = beside(data[3 * side + a], step);
        q.min[a] = side ? p[a] : -5;
        q.max[a] = side ? 5 : p[a];
        CHECK(check_box(&tree, &s, &q, 0xFFFFFFFFu) == inside);
        check_point(&tree, &s, p, 0xFFFFFFFFu);
        CHECK(check_sphere(&tree, &s, p, 0, 0xFFFFFFFFu) == inside);
        q.min[a] = side ? p[a] : -REAL_INFINITY;
        q.max[a] = side ? REAL_INFINITY : p[a];
        CHECK(check_box(&tree, &s, &q, 0xFFFFFFFFu) == inside);
    }
    lbvh_free(&tree);
    forget(&s);
}

/* Distances that are whole numbers: the rim belongs to the sphere, the next number does not. */
static void test_rim(void **state)
{
    real const data[6] = {3, 4, 0, 5, 6, 7};
    real const origin[3] = {0, 0, 1}, below[3] = {3, 4, -2};
    lbvh tree = {0};
    scene s;
    (void)state;
    plain_scene(&s, &inputs[0], 1);
    memcpy(s.data, data, sizeof data);
    find_truth(&s);
    build(&tree, &s);
    CHECK(check_sphere(&tree, &s, origin, 5, 1) == 1 && check_sphere(&tree, &s, origin, beside(5, -1), 1) == 0);
    CHECK(check_sphere(&tree, &s, below, 2, 1) == 1 && check_sphere(&tree, &s, below, beside(2, -1), 1) == 0);
    check_near_walk(&tree, &s, origin, 5, 1);
    check_near_walk(&tree, &s, origin, beside(5, -1), 1);
    lbvh_free(&tree);
    forget(&s);
}

/* What is not a question finds nothing; what is endless finds all. */
static void check_odd_queries(const lbvh *t, const scene *s)
{
    static const real odd[] = {(real)NAN, (real)INFINITY, (real)-INFINITY};
    box all = {{-REAL_INFINITY, -REAL_INFINITY, -REAL_INFINITY}, {REAL_INFINITY, REAL_INFINITY, REAL_INFINITY}};
    real const origin[3] = {0, 0, 0}, ahead[3] = {1, (real)0.5, (real)0.25};
    int32_t ids[4], found, i, whole = 0;
    real d2[4];
    int a, k;
    lbvh_overlap o;
    lbvh_near near_walk;
    lbvh_ray ray;
    for (i = 0; i < s->n; i++) whole += !is_out(&s->truth[i]);
    CHECK(check_box(t, s, &all, 0xFFFFFFFFu) == whole);
    CHECK(check_sphere(t, s, origin, REAL_INFINITY, 0xFFFFFFFFu) == whole);
    check_near_walk(t, s, origin, REAL_INFINITY, 0xFFFFFFFFu);
    check_nearest(t, s, origin, s->n + 3, REAL_INFINITY, 0);
    check_nearest(t, s, origin, s->n + 3, REAL_LARGEST, 1);
    for (i = 0; i < s->n; i++) if (!is_out(&s->truth[i])) check_nearest(t, s, s->truth[i].max, 4, 0, 0);
    for (a = 0; a < s->dim; a++) for (k = 0; k < 3; k++) {
        real p[3] = {0, 0, 0};
        box q = {{-1, -1, -1}, {1, 1, 1}};
        p[a] = odd[k];
        o = lbvh_overlap_sphere(t, p, 1);
        CHECK(!lbvh_next(&o));
        o = lbvh_overlap_sphere(t, p, REAL_INFINITY);
        CHECK(!lbvh_next(&o));
        near_walk = lbvh_near_point(t, p, REAL_INFINITY);
        CHECK(!lbvh_next_near(&near_walk));
        CHECK_RESULT(lbvh_nearest(t, p, 4, 1, NULL, NULL, ids, d2, &found), LBVH_OK);
        CHECK(found == 0);
        ray = lbvh_ray_cast(t, p, ahead, REAL_INFINITY);
        CHECK(!lbvh_next_ray(&ray));
        ray = lbvh_ray_cast(t, origin, p, REAL_INFINITY);
        CHECK(!lbvh_next_ray(&ray));
        o = lbvh_overlap_point(t, p);
        CHECK(!lbvh_next(&o));
        q.min[a] = k == 2 ? 2 : odd[k]; /* 2 and infinity are above max: inverted */
        check_box(t, s, &q, 0xFFFFFFFFu);
        q.min[a] = -1;
        q.max[a] = k == 1 ? -2 : odd[k];
        check_box(t, s, &q, 0xFFFFFFFFu);
    }
    o = lbvh_overlap_sphere(t, origin, -1);
    CHECK(!lbvh_next(&o));
    o = lbvh_overlap_sphere(t, origin, REAL_NAN);
    CHECK(!lbvh_next(&o));
    ray = lbvh_ray_cast(t, origin, ahead, -1);
    CHECK(!lbvh_next_ray(&ray));
    ray = lbvh_ray_cast(t, origin, ahead, REAL_NAN);
    CHECK(!lbvh_next_ray(&ray));
    near_walk = lbvh_near_point(t, origin, -1);
    CHECK(!lbvh_next_near(&near_walk));
    near_walk = lbvh_near_point(t, origin, REAL_NAN);
    CHECK(!lbvh_next_near(&near_walk));
    check_ray(t, s, origin, ahead, 0, 0xFFFFFFFFu);
}

static void test_odd_queries(void **state)
{
    lbvh tree = {0};
    scene s;
    int in, dim;
    (void)state;
    dice = wl_seed(8);
    for (in = 0; in < COUNT_OF(inputs); in++) for (dim = 2; dim <= 3; dim++) {
        memset(&s, 0, sizeof s);
        current_scene = &s;
        describe = describe_scene;
        s.dim = dim;
        make_scene(&s, &inputs[in], 25);
        build(&tree, &s);
        check_odd_queries(&tree, &s);
        forget(&s);
    }
    lbvh_free(&tree);
}

/* The largest numbers: nothing overflows on the way to the codes, and searches that stay away from squares are exact. */
static void test_extreme_numbers(void **state)
{
    lbvh tree = {0};
    scene s;
    int32_t i;
    int k;
    (void)state;
    dice = wl_seed(9);
    plain_scene(&s, &inputs[0], 60);
    for (i = 0; i < 60; i++) for (k = 0; k < 3; k++) {
        real const huge = roll(3) ? REAL_LARGEST * between((real)0.5, 1) : roll(2) ? (real)1e-37 : REAL_LARGEST;
        s.data[6 * i + k] = -huge * (real)roll(2);
        s.data[6 * i + 3 + k] = huge * (real)roll(2);
    }
    find_truth(&s);
    s.keep = 1;
    build(&tree, &s);
    CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
    check_order(&tree, tree.code);
    check_pairs(&tree, &s);
    for (i = 0; i < 60; i++) check_box(&tree, &s, &s.truth[i], 0xFFFFFFFFu);
    lbvh_free(&tree);
    forget(&s);
}

/* Minus zero in, zero out: so that the bits of the boxes do not depend on the order of joining. */
static void test_minus_zero(void **state)
{
    real const minus = -(real)0;
    real const data[12] = {-1, minus, 0, minus, minus, minus, -1, 0, minus, 0, 0, 0};
    real zeros[6] = {-1, 0, 0, 0, 0, 0};
    lbvh tree = {0};
    int k;
    (void)state;
    CHECK_RESULT(lbvh_build(&tree, NULL, data, 0, 2), LBVH_OK);
    for (k = 0; k < 3; k++) {
        CHECK(memcmp(tree.node[k].min, zeros, 3 * sizeof(real)) == 0);
        CHECK(memcmp(tree.node[k].max, zeros + 3, 3 * sizeof(real)) == 0);
    }
    lbvh_free(&tree);
}

/* ------------------------------------------------------------------------------------------------
   Bad elements: refused with the first one's number, or left out
   ------------------------------------------------------------------------------------------------ */

/* The `way`-th way to spoil element i, and the code that it must give; LBVH_OK: there are no more ways. */
static lbvh_result spoil(scene *s, int32_t i, int way)
{
    static const real odd[] = {(real)NAN, (real)INFINITY, (real)-INFINITY};
    int const numbers = s->indexed ? 9 : width_of(s);
    real *x = element(s, s->indexed ? 0 : i);
    if (s->indexed) {
        int const corner = way / 3 % 3;
        if (way < 9) s->indices[3 * i + corner] = way % 3 == 0 ? -1 : way % 3 == 1 ? s->vertices : INT32_MIN;
        if (way < 9) return LBVH_BAD_INDEX;
        if (way >= 9 + 3 * s->dim) return LBVH_OK;
        x = element(s, s->indices[3 * i + corner]);
        x[(way - 9) / 3 % s->dim] = odd[way % 3];
        return LBVH_NOT_FINITE;
    }
    if (way < 3 * numbers) x[way / 3] = odd[way % 3];
    if (way < 3 * numbers) return LBVH_NOT_FINITE;
    way -= 3 * numbers;
    if (s->kind == LBVH_BOXES && way < s->dim) {
        x[way] = beside(x[s->dim + way], 1);
        return LBVH_INVERTED;
    }
    if (s->kind == LBVH_SPHERES && way < 2) { /* the second is lost in the rounding of the box */
        x[s->dim] = way ? (real)-1e-30 : -1;
        return LBVH_INVERTED;
    }
    if (s->kind == LBVH_SPHERES && way == 2) { /* finite, but its box is not */
        x[0] = x[s->dim] = REAL_LARGEST;
        return LBVH_NOT_FINITE;
    }
    return LBVH_OK;
}

static void check_refused(lbvh *tree, scene *s, lbvh_result want, int32_t first)
{
    lbvh_desc d = desc_of(s);
    real *boxes = NEW(real, 2 * s->dim * s->n);
    int32_t bad_id = -7;
    CHECK_RESULT(lbvh_build(tree, &d, s->data, s->stride, s->n), want);
    CHECK(tree->bad_id == first && tree->n == 0 && lbvh_root(tree) == -1);
    CHECK_RESULT(lbvh_validate(tree), LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_boxes(&d, s->data, s->stride, s->n, boxes, &bad_id), want);
    CHECK(bad_id == first);
    CHECK_RESULT(lbvh_boxes(&d, s->data, s->stride, s->n, boxes, NULL), want);
    free(boxes);
}

/* Boxes of elements, left out ones among them, are those of the truth. */
static void check_boxes(const scene *s, int32_t first_bad)
{
    lbvh_desc const d = desc_of(s);
    real *boxes = NEW(real, 2 * s->dim * s->n);
    int32_t bad_id = -7, i;
    int a;
    CHECK_RESULT(lbvh_boxes(&d, s->data, s->stride, s->n, boxes, &bad_id), LBVH_OK);
    CHECK(bad_id == first_bad);
    for (i = 0; i < s->n; i++) for (a = 0; a < s->dim; a++) {
        CHECK(boxes[2 * s->dim * i + a] == s->truth[i].min[a]);
        CHECK(boxes[2 * s->dim * i + s->dim + a] == s->truth[i].max[a]);
    }
    free(boxes);
}

static void test_bad_elements(void **state)
{
    lbvh tree = {0};
    scene s;
    int dim, kind, way;
    (void)state;
    dice = wl_seed(12);
    current_scene = &s;
    describe = describe_scene;
    for (dim = 2; dim <= 3; dim++) for (kind = 0; kind < KINDS; kind++) for (way = 0;; way++) {
        lbvh_result want;
        int32_t const i = roll(11), later = i + 1 + roll(3);
        memset(&s, 0, sizeof s);
        s.dim = dim;
        s.stride = (size_t)roll(2);
        set_kind(&s, kind);
        make_scene(&s, &inputs[0], 14);
        check_boxes(&s, -1);
        want = spoil(&s, i, way);
        if (want != LBVH_OK) {
            check_refused(&tree, &s, want, i);
            (void)spoil(&s, later, 0); /* of another sort, often; it does not count */
            check_refused(&tree, &s, want, i);
            s.skip_invalid = s.masked = 1;
            s.masks = NEW(uint32_t, s.n);
            memset(s.masks, 0xFF, sizeof *s.masks * (size_t)s.n);
            leave_out(&s.truth[i]);
            leave_out(&s.truth[later]);
            check_builders(&tree, &s);
            CHECK(tree.bad_id == i);
            check_codes(&tree, &s, 0);
            check_boxes(&s, i);
            if (chosen(way)) check_everything(&tree, &s, 3);
            if (chosen(way) && kind == 0) check_odd_queries(&tree, &s);
        }
        forget(&s);
        if (want == LBVH_OK) break;
    }
    lbvh_free(&tree);
}

/* All of them left out. */
static void test_all_left_out(void **state)
{
    lbvh tree = {0};
    scene s;
    int32_t n, i;
    (void)state;
    dice = wl_seed(13);
    for (n = 1; n < 9; n++) {
        plain_scene(&s, &inputs[0], n);
        s.skip_invalid = 1;
        for (i = 0; i < n; i++) s.data[6 * i + i % 6] = REAL_NAN, leave_out(&s.truth[i]);
        check_builders(&tree, &s);
        CHECK(tree.bad_id == 0);
        check_odd_queries(&tree, &s);
        check_pairs(&tree, &s);
        check_own_rows(&tree, &s);
        forget(&s);
    }
    lbvh_free(&tree);
}

/* ------------------------------------------------------------------------------------------------
   Refit
   ------------------------------------------------------------------------------------------------ */

static void move_elements(scene *s, real most)
{
    size_t const count = (s->indexed ? (size_t)s->vertices : (size_t)s->n) * s->step;
    size_t k;
    for (k = 0; k < count; k++) s->data[k] += between(-most, most);
    if (s->kind == LBVH_SPHERES) for (k = 0; k < (size_t)s->n; k++) s->data[k * s->step + (size_t)s->dim] = between(0, (real)0.3);
    if (s->kind == LBVH_BOXES) {
        int32_t i;
        int a;
        for (i = 0; i < s->n; i++) for (a = 0; a < s->dim; a++)
            if (element(s, i)[s->dim + a] < element(s, i)[a]) element(s, i)[s->dim + a] = element(s, i)[a];
    }
    find_truth(s);
}

static void test_refit(void **state)
{
    lbvh tree = {0}, before = {0};
    scene s;
    int counter, kind;
    (void)state;
    dice = wl_seed(14);
    current_scene = &s;
    describe = describe_scene;
    for (counter = 0; counter < 24; counter++) for (kind = 0; kind < KINDS; kind++) {
        lbvh_result refused;
        int32_t i;
        memset(&s, 0, sizeof s);
        s.dim = 2 + counter % 2;
        s.bits = counter % 3 ? 63 : 30;
        s.masked = counter % 4 == 1;
        s.keep = 1;
        s.builder = counter % 5 ? LBVH_MERGE : LBVH_SPLIT;
        set_kind(&s, kind);
        make_scene(&s, &inputs[counter % COUNT_OF(inputs)], 1 + roll(counter < 12 ? 4 : 90));
        build(&tree, &s);
        build(&before, &s);
        CHECK_RESULT(lbvh_refit(&tree, s.data, s.stride), LBVH_OK);
        check_same_tree(&tree, &before);
        move_elements(&s, counter % 2 ? (real)0.02 : 3);
        CHECK_RESULT(lbvh_refit(&tree, s.data, s.stride), LBVH_OK);
        check_tree(&tree, &s, NULL);
        CHECK(same(tree.prefix, before.prefix, (size_t)s.n + 1));
        check_everything(&tree, &s, 3);
        CHECK_RESULT(lbvh_load(&before, NULL, NULL, 0), LBVH_BAD_FILE); /* any refusal: it is empty, and takes the moved ones */
        build(&before, &s);
        CHECK_RESULT(lbvh_refit(&before, s.data, s.stride), LBVH_OK);
        i = roll((int)s.n);
        { /* a refused refit leaves all as it was */
            size_t const bytes = (size_t)nodes_of(&tree) * sizeof *tree.node;
            lbvh_node *nodes = (lbvh_node *)exactly(bytes);
            memcpy(nodes, tree.node, bytes);
            move_elements(&s, 1);
            refused = spoil(&s, i, 0);
            CHECK_RESULT(lbvh_refit(&tree, s.data, s.stride), refused);
            CHECK(tree.bad_id == i && tree.n == s.n && same(nodes, tree.node, bytes));
            CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
            free(nodes);
        }
        forget(&s);
    }
    lbvh_free(&tree);
    lbvh_free(&before);
}

/* Elements left out come back when they are whole again, and others go. */
static void test_refit_left_out(void **state)
{
    lbvh tree = {0};
    scene s;
    int round;
    (void)state;
    dice = wl_seed(15);
    plain_scene(&s, &inputs[0], 30);
    s.skip_invalid = s.keep = 1;
    for (round = 0; round < 20; round++) {
        int32_t const i = roll(30), j = roll(30);
        real const was = s.data[6 * i], other = s.data[6 * j + 4];
        s.data[6 * i] = REAL_NAN;
        s.data[6 * j + 4] = REAL_INFINITY;
        find_truth(&s);
        leave_out(&s.truth[i]);
        leave_out(&s.truth[j]);
        if (round == 0) build(&tree, &s);
        else CHECK_RESULT(lbvh_refit(&tree, s.data, 0), LBVH_OK);
        CHECK(tree.bad_id == (i < j ? i : j));
        check_tree(&tree, &s, NULL);
        check_everything(&tree, &s, 2);
        s.data[6 * i] = was;
        s.data[6 * j + 4] = other;
    }
    find_truth(&s);
    CHECK_RESULT(lbvh_refit(&tree, s.data, 0), LBVH_OK);
    CHECK(tree.bad_id == -1);
    check_tree(&tree, &s, NULL);
    lbvh_free(&tree);
    forget(&s);
}

/* ------------------------------------------------------------------------------------------------
   Random operations on one tree that is never made anew
   ------------------------------------------------------------------------------------------------ */

static int random_step, random_seed;
static void describe_random(void)
{
    print_error("  step %d; replay with LBVH_TEST_SEED=%d\n", random_step, random_seed);
    describe_scene();
}

static void random_scene(scene *s)
{
    forget(s);
    s->dim = 2 + roll(2);
    s->bits = roll(2) ? 63 : 30;
    s->masked = roll(3) == 0;
    s->keep = 1;
    s->builder = roll(2) ? LBVH_SPLIT : LBVH_MERGE;
    s->stride = (size_t)roll(2);
    set_kind(s, roll(KINDS));
    make_scene(s, &inputs[roll(COUNT_OF(inputs))], roll(4) ? 1 + roll(60) : roll(3));
}

static void test_random_operations(void **state)
{
    int const steps = environment("LBVH_TEST_STEPS", 6000 / share());
    heap h = {0, 0, 0, 0, 0, 0};
    lbvh tree = {0};
    scene s;
    int built = 0;
    (void)state;
    random_seed = environment("LBVH_TEST_SEED", 1); /* the same each run: change it to look further */
    print_message("random operations: LBVH_TEST_SEED=%d\n", random_seed);
    dice = wl_seed((uint64_t)random_seed);
    memset(&s, 0, sizeof s);
    current_scene = &s;
    describe = describe_random;
    for (random_step = 0; random_step < steps; random_step++) {
        int const action = roll(16);
        lbvh_desc d;
        if (action < 6 || !built) {
            random_scene(&s);
            d = desc_of(&s);
            d.allocator = allocator_of(&h);
            if (roll(3) == 0) CHECK_RESULT(lbvh_reserve(&tree, &d, s.n + roll(20)), LBVH_OK);
            CHECK_RESULT(lbvh_build(&tree, &d, s.data, s.stride, s.n), LBVH_OK);
            check_tree(&tree, &s, NULL);
            built = 1;
        } else if (action < 9) {
            move_elements(&s, (real)0.2);
            CHECK_RESULT(lbvh_refit(&tree, s.data, s.stride), LBVH_OK);
            check_tree(&tree, &s, NULL);
        } else if (action == 9) {
            lbvh_free(&tree);
            CHECK(h.live_blocks == 0);
            built = 0;
        } else if (action == 10) {
            d = desc_of(&s);
            d.allocator = allocator_of(&h);
            d.bits = 7;
            CHECK_RESULT(lbvh_build(&tree, &d, s.data, s.stride, s.n), LBVH_BAD_OPTION);
            CHECK(tree.n == 0);
            built = 0;
        } else check_everything(&tree, &s, 1);
        CHECK(h.live_bytes == lbvh_bytes(&tree) && !h.wrong);
    }
    forget(&s);
    lbvh_free(&tree);
    CHECK(h.live_blocks == 0 && h.calls == h.frees);
}

/* ------------------------------------------------------------------------------------------------
   A large workload, against a total from elsewhere
   ------------------------------------------------------------------------------------------------ */

#define TOTAL_UNIFORM_100K 2866956 /* counted by comparing all 5 * 10^9 pairs in a program of its own: see test_ugrid.c */

static void test_uniform_100k(void **state)
{
    int32_t const n = 100000;
    int64_t const rim = IS_FLOAT ? 0 : 100; /* a few pairs at the rim go the other way in double */
    float *p = NEW(float, 3 * n);
    real *pos = NEW(real, 3 * n);
    int64_t *offsets = NEW(int64_t, n + 1), needed = 0, sum = 0;
    int32_t *counts = NEW(int32_t, n), i;
    lbvh merged = {0}, split = {0};
    lbvh_queries q;
    lbvh_desc d;
    (void)state;
    wl_uniform(n, 7, p);
    for (i = 0; i < 3 * n; i++) pos[i] = (real)p[i];
    memset(&d, 0, sizeof d);
    d.kind = LBVH_POINTS;
    CHECK_RESULT(lbvh_build(&merged, &d, pos, 0, n), LBVH_OK);
    d.builder = LBVH_SPLIT;
    CHECK_RESULT(lbvh_build(&split, &d, pos, 0, n), LBVH_OK);
    check_same_tree(&merged, &split);
    check_order(&split, split.code);
    CHECK_RESULT(lbvh_validate(&split), LBVH_OK);
    memset(&q, 0, sizeof q);
    q.kind = LBVH_POINTS;
    q.radius = (real)wl_radius(n, 30);
    q.flags = LBVH_PLACES | LBVH_HALF;
    CHECK_RESULT(lbvh_overlaps(&merged, &q, offsets, NULL, 0, &needed), LBVH_BUFFER_TOO_SMALL);
    CHECK(2 * needed >= TOTAL_UNIFORM_100K - rim && 2 * needed <= TOTAL_UNIFORM_100K + rim);
    if (share() == 1) {
        q.flags = 0;
        CHECK_RESULT(lbvh_count_overlaps(&merged, &q, counts), LBVH_OK);
        for (i = 0; i < n; i++) sum += counts[i];
        CHECK(sum == 2 * needed);
    }
    lbvh_free(&merged);
    lbvh_free(&split);
    free(p);
    free(pos);
    free(offsets);
    free(counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_product_2d),
        TEST(test_product_3d),
        TEST(test_larger),
        TEST(test_packets),
        TEST(test_empty),
        TEST(test_karras),
        TEST(test_deepest),
        TEST(test_stack),
        TEST(test_borders),
        TEST(test_rim),
        TEST(test_odd_queries),
        TEST(test_extreme_numbers),
        TEST(test_minus_zero),
        TEST(test_bad_elements),
        TEST(test_all_left_out),
        TEST(test_refit),
        TEST(test_refit_left_out),
        TEST(test_random_operations),
        TEST(test_uniform_100k),
    };
    if (getenv("LBVH_TEST_ONLY")) cmocka_set_test_filter(getenv("LBVH_TEST_ONLY"));
    return cmocka_run_group_tests_name("lbvh", tests, NULL, tear_down);
}
