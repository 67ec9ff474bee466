/* borders.c - a part of test_lbvh.c: elements and queries that touch exactly, queries of odd
   kinds, extreme numbers, minus zero.
   SPDX-License-Identifier: MIT OR Unlicense */

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
    CHECK(check_sphere(&tree, &s, origin, 5, 1) == 1 &&
        check_sphere(&tree, &s, origin, beside(5, -1), 1) == 0);
    CHECK(check_sphere(&tree, &s, below, 2, 1) == 1 &&
        check_sphere(&tree, &s, below, beside(2, -1), 1) == 0);
    check_near_walk(&tree, &s, origin, 5, 1);
    check_near_walk(&tree, &s, origin, beside(5, -1), 1);
    lbvh_free(&tree);
    forget(&s);
}

/* What is not a question finds nothing; what is endless finds all. */
static void check_odd_queries(const lbvh *t, const scene *s)
{
    static const real odd[] = {(real)NAN, (real)INFINITY, (real)-INFINITY};
    box all = {{-REAL_INFINITY, -REAL_INFINITY, -REAL_INFINITY},
        {REAL_INFINITY, REAL_INFINITY, REAL_INFINITY}};
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
    for (i = 0; i < s->n; i++)
        if (!is_out(&s->truth[i])) check_nearest(t, s, s->truth[i].max, 4, 0, 0);
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

/* The largest numbers: nothing overflows on the way to the codes, and searches that stay away from
   squares are exact. */
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
        real const huge = roll(3) ? REAL_LARGEST * between((real)0.5, 1) : roll(2) ? (real)1e-37 :
            REAL_LARGEST;
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
