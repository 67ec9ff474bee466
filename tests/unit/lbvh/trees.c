/* trees.c - a part of test_lbvh.c: trees and searches against brute force, over the product of
   inputs, kinds of elements and options; MERGE and SPLIT make the same tree, PLOC that of ploc.c.
   SPDX-License-Identifier: MIT OR Unlicense */

/* All builders, with and without codes, in fresh memory and in old. `tree` is left as the merged
   one with codes. */
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
    for (in = 0; in < COUNT_OF(inputs); in++) for (bits = 30; bits <= 63; bits += 33)
            for (kind = 0; kind < KINDS; kind++)
        for (masked = 0; masked < 2; masked++) for (size = 0; size < COUNT_OF(sizes); size++) {
            if (!chosen(counter++)) continue;
            s.dim = dim;
            s.bits = bits;
            s.masked = masked;
            s.stride = (size_t)roll(2);
            set_kind(&s, kind);
            if (counter % 4 == 0) set_bounds(&s);
            make_scene(&s, &inputs[in],
                sizes[size] + (sizes[size] > 3 ? roll((int)sizes[size]) : 0));
            check_builders(&tree, &s);
            check_codes(&tree, &s, in == LATTICE && kind < 4 && s.n > 3);
            if (counter % 2) (void)check_ploc(&tree, &s);
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
        (void)check_ploc(&tree, &s);
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

/* Own elements search in packets, which share their candidates unless there are too many: sizes
   around those limits (16 and 1024), with boxes that all overlap, that mostly do, and that rarely
   do; left out and masked ones among them. */
static void test_packets(void **state)
{
    SLOW_TEST();
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

/* The figure of Karras' paper, node by node. Points in the plane: x takes bits 1, 3 and 5 of a
   code, y bits 2 and 4; y is the longer side, and its last coordinate is cut to the last cell. */
static void test_karras(void **state)
{
    /* 00001 00010 00100 00101 10011 11000 11001 11110 */
    static const uint64_t codes[8] = {1, 2, 4, 5, 19, 24, 25, 30};
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
        for (k = 0; k < 15; k++)
            CHECK(tree.node[k].skip == skip[k] && tree.node[k].link == (k < 7 ? link[k] : 14 - k));
        for (k = 0; k < 8; k++) CHECK(tree.code[k] >> ((d.bits == 30 ? 30 : 62) - 5) == codes[k]);
        CHECK(same_box(&tree.node[2], &leaves_2_3) && same_box(&tree.node[5], &leaves_5_7));
    }
    lbvh_free(&tree);
}

/* The deepest tree: a code for every bit, each splitting off one leaf, and a crowd at the last.
   Points on the axes, powers of two. */
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
        /* the longest side: as many units as cells */
        element(s, i)[i % dim] = (real)ldexp(1, i ? k : axis_bits);
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

/* How far a walk's stack can fill: a tree of the greatest depth that codes and places allow, 93
   inner nodes above a leaf, made by hand, since a build of it would take 2^30 leaves. Every box
   holds the origin, so that nothing is passed over. */
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
