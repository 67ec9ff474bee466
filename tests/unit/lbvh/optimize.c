/* optimize.c - a part of test_lbvh.c: lbvh_optimize: tree rotations after refits; by hand, at the
   largest depth, against brute force.
   SPDX-License-Identifier: MIT OR Unlicense */

/* As check_tree, for any order of the leaves: the prefixes alone give the shape. */
static void check_any_tree(const lbvh *tree, const scene *s)
{
    lbvh view = *tree;
    view.desc.builder = LBVH_PLOC;
    check_tree(&view, s, NULL);
}

/* The areas of all nodes, of an element left out 0. */
static double areas_of(const lbvh *t)
{
    double sum = 0;
    int32_t at;
    for (at = 0; at < nodes_of(t); at++) {
        box b;
        memcpy(b.min, t->node[at].min, sizeof b.min);
        memcpy(b.max, t->node[at].max, sizeof b.max);
        if (!is_out(&b)) sum += area_of(&b, t->desc.dim);
    }
    return sum;
}

/* A copy in memory of its own. */
static lbvh copy_of(const lbvh *t)
{
    lbvh copy = {0};
    lbvh_desc d = t->desc;
    int64_t needed = 0, again;
    void *bytes;
    memset(&d.allocator, 0, sizeof d.allocator);
    CHECK_RESULT(lbvh_save(t, NULL, 0, &needed), LBVH_BUFFER_TOO_SMALL);
    bytes = exactly((size_t)needed);
    CHECK_RESULT(lbvh_save(t, bytes, needed, &again), LBVH_OK);
    CHECK_RESULT(lbvh_load(&copy, &d, bytes, needed), LBVH_OK);
    free(bytes);
    check_same_tree(&copy, t);
    return copy;
}

/* One call: no cost rises; no rotation, no change; the same again on a copy from a file. */
static int32_t optimize(lbvh *tree, const scene *s)
{
    double const before = areas_of(tree);
    lbvh copy = copy_of(tree), was = copy_of(tree);
    int32_t rotations = -1, again = -1;
    CHECK_RESULT(lbvh_optimize(tree, &rotations), LBVH_OK);
    check_any_tree(tree, s);
    CHECK(rotations >= 0 && rotations < (s->n > 1 ? s->n : 1));
    CHECK(areas_of(tree) <= before * (1 + 1e-12));
    CHECK(rotations == 0 || tree->desc.dim == 2 || areas_of(tree) < before);
    if (rotations == 0) check_same_tree(tree, &was);
    else CHECK(!tree->code && !tree->desc.keep_codes && tree->desc.builder != LBVH_SPLIT);
    CHECK_RESULT(lbvh_optimize(&copy, &again), LBVH_OK);
    CHECK(again == rotations);
    check_same_tree(tree, &copy);
    lbvh_free(&copy);
    lbvh_free(&was);
    return rotations;
}

/* Random motion, a refit, rotations: over and over. */
static void test_optimize(void **state)
{
    lbvh tree = {0};
    scene s;
    int counter, kind, round;
    int64_t rotations = 0;
    (void)state;
    dice = wl_seed(51);
    current_scene = &s;
    describe = describe_scene;
    for (counter = 0; counter < 24; counter++) for (kind = 0; kind < KINDS; kind++) {
        if ((counter * KINDS + kind) % share()) continue;
        memset(&s, 0, sizeof s);
        s.dim = 2 + counter % 2;
        s.bits = counter % 3 ? 63 : 30;
        s.masked = counter % 4 == 1;
        s.keep = counter % 5 == 0;
        s.builder = (lbvh_builder)(counter % 3);
        set_kind(&s, kind);
        make_scene(&s, &inputs[counter % COUNT_OF(inputs)], counter < 6 ? counter : 1 + roll(90));
        build(&tree, &s);
        for (round = 0; round < 8; round++) {
            int32_t bad = 0;
            rotations += optimize(&tree, &s);
            if (round % 3 == 0) check_everything(&tree, &s, 2);
            CHECK_RESULT(lbvh_verify(&tree, s.n, 0, &bad), LBVH_OK);
            CHECK(bad == -1);
            if (s.n == 0) continue;
            move_elements(&s, counter % 2 ? (real)0.05 : 3);
            CHECK_RESULT(lbvh_refit(&tree, s.data, s.stride), LBVH_OK);
            check_any_tree(&tree, &s);
        }
        forget(&s);
    }
    CHECK(rotations > 100);
    lbvh_free(&tree);
}

/* Elements left out, and back again. */
static void test_optimize_left_out(void **state)
{
    lbvh tree = {0};
    scene s;
    int round;
    (void)state;
    dice = wl_seed(52);
    plain_scene(&s, &inputs[0], 40);
    s.skip_invalid = 1;
    build(&tree, &s);
    for (round = 0; round < 20; round++) {
        int32_t const i = roll(40), j = roll(40);
        real was, other;
        move_elements(&s, 1);
        was = s.data[6 * i];
        other = s.data[6 * j + 4];
        s.data[6 * i] = REAL_NAN;
        s.data[6 * j + 4] = REAL_INFINITY;
        find_truth(&s);
        leave_out(&s.truth[i]);
        leave_out(&s.truth[j]);
        CHECK_RESULT(lbvh_refit(&tree, s.data, 0), LBVH_OK);
        (void)optimize(&tree, &s);
        check_everything(&tree, &s, 2);
        s.data[6 * i] = was;
        s.data[6 * j + 4] = other;
    }
    forget(&s);
    lbvh_free(&tree);
}

/* Cubes of edge 1 in a row, from x[k] on: refitted to these, optimized once. Half areas. */
static void row_of_cubes(lbvh *tree, const int *begin, const int *moved, int n, double areas[2])
{
    lbvh_quality q;
    real boxes[24];
    int32_t rotations = -1;
    int k, a, round;
    for (round = 0; round < 2; round++) {
        for (k = 0; k < n; k++) for (a = 0; a < 3; a++) {
            boxes[6 * k + a] = a ? 0 : (real)(round ? moved[k] : begin[k]);
            boxes[6 * k + 3 + a] = boxes[6 * k + a] + 1;
        }
        if (round == 0) CHECK_RESULT(lbvh_build(tree, NULL, boxes, 0, n), LBVH_OK);
        else CHECK_RESULT(lbvh_refit(tree, boxes, 0), LBVH_OK);
    }
    CHECK_RESULT(lbvh_measure(tree, &q), LBVH_OK);
    areas[0] = q.sah;
    CHECK_RESULT(lbvh_optimize(tree, &rotations), LBVH_OK);
    CHECK(rotations == 1);
    CHECK_RESULT(lbvh_measure(tree, &q), LBVH_OK);
    areas[1] = q.sah;
    CHECK_RESULT(lbvh_optimize(tree, &rotations), LBVH_OK);
    CHECK(rotations == 0);
}

/* A row from 0 to x has half the area 2 x + 1. Children and grandchildren, then a child and a
   grandchild, on each side. */
static void test_optimize_by_hand(void **state)
{
    static const int four[4] = {0, 2, 20, 22}, crossed[4] = {0, 20, 2, 22};
    static const int right[3] = {0, 10, 12}, near_right[3] = {0, 20, 1};
    static const int left[3] = {0, 2, 12}, near_left[3] = {0, 20, 21};
    static const uint8_t shape[4] = {0, 1, 2, 0}, other_shape[4] = {0, 2, 1, 0};
    lbvh tree = {0};
    double areas[2];
    (void)state;
    row_of_cubes(&tree, four, crossed, 4, areas);
    CHECK(nearly(areas[0], (47 + 43 + 43 + 12) / 47.0, 1e-12));
    CHECK(nearly(areas[1], (47 + 7 + 7 + 12) / 47.0, 1e-12));
    row_of_cubes(&tree, right, near_right, 3, areas);   /* 0 (1 2): 1 alone, 0 with 2 */
    CHECK(nearly(areas[0], (43 + 41 + 9) / 43.0, 1e-12));
    CHECK(nearly(areas[1], (43 + 5 + 9) / 43.0, 1e-12));
    CHECK(memcmp(tree.prefix, shape, sizeof shape) == 0);
    CHECK(tree.node[2].link == 1);
    row_of_cubes(&tree, left, near_left, 3, areas);     /* (0 1) 2: 0 alone, 1 with 2 */
    CHECK(nearly(areas[0], (45 + 43 + 9) / 45.0, 1e-12));
    CHECK(nearly(areas[1], (45 + 5 + 9) / 45.0, 1e-12));
    CHECK(memcmp(tree.prefix, other_shape, sizeof other_shape) == 0);
    CHECK(tree.node[4].link == 0);
    lbvh_free(&tree);
}

/* A pair, and a chain of n - 2 leaves, by prefixes: refitted, one of the pair is at the chain. The
   only rotation that gains puts the whole chain below the pair, one level lower. */
static int32_t optimize_chain(lbvh *tree, int32_t n)
{
    real *boxes = NEW(real, 6 * n);
    int32_t k, rotations = -1;
    int a;
    for (k = 0; k < 6 * n; k++) boxes[k] = (real)(k % 6 / 3);
    CHECK_RESULT(lbvh_build(tree, NULL, boxes, 0, n), LBVH_OK);
    tree->prefix[1] = 2;
    tree->prefix[2] = 1;
    for (k = 3; k < n; k++) tree->prefix[k] = (uint8_t)(k - 1);
    for (a = 0; a < 6; a++) boxes[6 * tree->node[tree->first_leaf].link + a] += 100;
    CHECK_RESULT(lbvh_refit(tree, boxes, 0), LBVH_OK);
    CHECK_RESULT(lbvh_validate(tree), LBVH_OK);
    CHECK_RESULT(lbvh_optimize(tree, &rotations), LBVH_OK);
    CHECK_RESULT(lbvh_verify(tree, n, 0, NULL), LBVH_OK);
    free(boxes);
    return rotations;
}

static void test_optimize_deepest(void **state)
{
    lbvh tree = {0};
    lbvh_quality q;
    int32_t n;
    (void)state;
    for (n = 60; n <= 95; n++) {
        CHECK(optimize_chain(&tree, n) == (n < 95));
        CHECK_RESULT(lbvh_measure(&tree, &q), LBVH_OK);
        CHECK(q.depth == (n < 95 ? n - 1 : 93));
    }
    lbvh_free(&tree);
}

/* Nothing to gain; no memory; nothing built. */
static void test_optimize_refusals(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0};
    lbvh tree = {0};
    scene s;
    lbvh_desc d;
    int32_t n, rotations = 7;
    (void)state;
    dice = wl_seed(53);
    CHECK_RESULT(lbvh_optimize(NULL, &rotations), LBVH_BAD_ARGUMENT);
    CHECK(rotations == 0);
    rotations = 7;
    CHECK_RESULT(lbvh_optimize(&tree, &rotations), LBVH_NOT_BUILT);
    CHECK(rotations == 0);
    for (n = 0; n < 70; n++) {
        plain_scene(&s, &inputs[1], n); /* all equal */
        d = desc_of(&s);
        d.allocator = allocator_of(&h);
        CHECK_RESULT(lbvh_build(&tree, &d, s.data, 0, n), LBVH_OK);
        h.fail_at = h.calls + 1; /* takes no memory */
        CHECK_RESULT(lbvh_optimize(&tree, &rotations), LBVH_OK);
        CHECK_RESULT(lbvh_optimize(&tree, NULL), LBVH_OK);
        CHECK(rotations == 0 && h.calls == h.fail_at - 1);
        h.fail_at = 0;
        if (n > 2) { /* and where there are rotations */
            move_elements(&s, 1);
            CHECK_RESULT(lbvh_refit(&tree, s.data, 0), LBVH_OK);
            h.fail_at = h.calls + 1;
            CHECK_RESULT(lbvh_optimize(&tree, NULL), LBVH_OK);
            CHECK(h.calls == h.fail_at - 1);
            h.fail_at = 0;
            check_any_tree(&tree, &s);
        }
        forget(&s);
    }
    lbvh_free(&tree);
    CHECK(h.live_blocks == 0 && !h.wrong);
}

/* Elements that mix: a refit alone loses more than one with rotations. */
static void test_optimize_quality(void **state)
{
    lbvh plain = {0}, rotated = {0};
    lbvh_quality p, r;
    scene s;
    int step;
    (void)state;
    dice = wl_seed(54);
    plain_scene(&s, &inputs[0], 2000);
    build(&plain, &s);
    build(&rotated, &s);
    for (step = 0; step < 30; step++) {
        move_elements(&s, (real)0.05);
        CHECK_RESULT(lbvh_refit(&plain, s.data, 0), LBVH_OK);
        CHECK_RESULT(lbvh_refit(&rotated, s.data, 0), LBVH_OK);
        CHECK_RESULT(lbvh_optimize(&rotated, NULL), LBVH_OK);
    }
    check_any_tree(&rotated, &s);
    check_everything(&rotated, &s, 2);
    CHECK_RESULT(lbvh_measure(&plain, &p), LBVH_OK);
    CHECK_RESULT(lbvh_measure(&rotated, &r), LBVH_OK);
    CHECK(r.sah < 0.9 * p.sah); /* 0.805 of it in float; 300 elements: 0.88 */
    forget(&s);
    lbvh_free(&plain);
    lbvh_free(&rotated);
}
