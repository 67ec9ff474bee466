/* top.c - a part of test_lbvh.c: lbvh_split_top against its rule, written once more by brute force;
   where it would be too deep; without memory.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Subtrees of a tree, as many as stay. */
typedef struct stays { box b[128]; int32_t node[128], count; } stays;

/* Opens the largest one, as often as told, by comparing all. Returns the areas opened. */
static double open_largest(const lbvh *t, stays *s, int32_t count)
{
    double opened = 0;
    s->node[0] = 0;
    for (s->count = 1; s->count < count; s->count++) {
        double most = -1;
        int32_t k, at = -1;
        for (k = 0; k < s->count; k++) {
            const lbvh_node *node = &t->node[s->node[k]];
            double const area = lbvh_i_area(t->desc.dim, node->min, node->max);
            if (lbvh_is_leaf(t, s->node[k]) || area <= most) continue;
            most = area;
            at = k;
        }
        opened += most;
        k = s->node[at];
        s->node[at] = t->node[k].link;
        s->node[s->count] = lbvh_right_child(t, &t->node[k]);
    }
    return opened;
}

static double centre_of(const box *b, int a) { return ((double)b->min[a] + (double)b->max[a]) / 2; }

/* The part of the subtrees whose centre is below `from` (or not): its area, and their number. */
static double side_of(const stays *s, int dim, int a, double from, int below, int32_t *number)
{
    box around;
    int32_t k;
    *number = 0;
    for (k = 0; k < s->count; k++) {
        if ((centre_of(&s->b[k], a) < from) != below) continue;
        around = *number ? box_around(&around, &s->b[k]) : s->b[k];
        ++*number;
    }
    return *number ? area_of(&around, dim) : 0;
}

/* The areas of the nodes above these subtrees: the best split by trying all, no two centres equal.
 */
static double split_areas(const stays *s, int dim)
{
    stays *part;
    double least = 0, best = 0, areas;
    int32_t k, left, right, all;
    int a, axis = -1;
    if (s->count < 2) return 0;
    areas = side_of(s, dim, 0, REAL_INFINITY, 1, &all);
    for (a = 0; a < dim; a++) for (k = 0; k < s->count; k++) {
        double const from = centre_of(&s->b[k], a);
        double cost = side_of(s, dim, a, from, 1, &left) * left;
        cost += side_of(s, dim, a, from, 0, &right) * right;
        if (left == 0 || (axis >= 0 && cost >= least)) continue;
        least = cost;
        best = from;
        axis = a;
    }
    part = NEW(stays, 2);
    part[0].count = part[1].count = 0;
    for (k = 0; k < s->count; k++) {
        stays *to = &part[centre_of(&s->b[k], axis) >= best];
        to->b[to->count++] = s->b[k];
    }
    areas += split_areas(&part[0], dim) + split_areas(&part[1], dim);
    free(part);
    return areas;
}

/* One call against the rule. */
static void check_top(lbvh *tree, const scene *s)
{
    double const before = areas_of(tree);
    double gain = -1, opened, split, root;
    lbvh was = copy_of(tree);
    stays *top = NEW(stays, 1);
    int32_t k;
    int a;
    opened = open_largest(tree, top, s->n < 64 ? s->n : 64);
    for (k = 0; k < top->count; k++) for (a = 0; a < 3; a++) {
        top->b[k].min[a] = tree->node[top->node[k]].min[a];
        top->b[k].max[a] = tree->node[top->node[k]].max[a];
    }
    split = split_areas(top, tree->desc.dim);
    root = lbvh_i_area(tree->desc.dim, tree->node[0].min, tree->node[0].max);
    CHECK_RESULT(lbvh_split_top(tree, &gain), LBVH_OK);
    check_any_tree(tree, s);
    CHECK(nearly(areas_of(tree), before - gain * root, 1e-9));
    if (split < opened * (1 - 1e-9)) CHECK(nearly(gain * root, opened - split, 1e-6 * opened));
    else CHECK(gain <= 1e-9 * opened / root);
    if (gain == 0) check_same_tree(tree, &was);
    else CHECK(!tree->code && !tree->desc.keep_codes && tree->desc.builder != LBVH_SPLIT);
    free(top);
    lbvh_free(&was);
}

static void test_split_top(void **state)
{
    lbvh tree = {0};
    scene s;
    int round;
    (void)state;
    dice = wl_seed(61);
    current_scene = &s;
    describe = describe_scene;
    for (round = 0; round < 40; round++) {
        memset(&s, 0, sizeof s);
        s.dim = 2 + round % 2;
        s.bits = round % 3 ? 63 : 30;
        s.masked = round % 4 == 1;
        s.keep = round % 5 == 0;
        s.builder = (lbvh_builder)(round % 3);
        set_kind(&s, round % KINDS);
        make_scene(&s, &inputs[0], round < 20 ? 3 + round : 3 + roll(round < 30 ? 90 : 1200));
        build(&tree, &s);
        check_top(&tree, &s);
        check_everything(&tree, &s, 2);
        forget(&s);
    }
    lbvh_free(&tree);
}

/* Every input, also where areas are 0 or overflow, and elements left out. */
static void test_split_top_any(void **state)
{
    lbvh tree = {0};
    scene s;
    double gain;
    int32_t n, leave[2];
    int i, k, round;
    (void)state;
    dice = wl_seed(62);
    current_scene = &s;
    describe = describe_scene;
    for (i = 0; i < COUNT_OF(inputs); i++) for (n = 0; n < 200; n += 1 + n) {
        plain_scene(&s, &inputs[i], n);
        s.skip_invalid = 1;
        build(&tree, &s);
        for (round = 0; round < 2; round++) {
            double const before = areas_of(&tree);
            CHECK_RESULT(lbvh_split_top(&tree, &gain), LBVH_OK);
            CHECK(gain >= 0 && !(areas_of(&tree) > before));
            check_any_tree(&tree, &s);
            check_everything(&tree, &s, 2);
            if (n < 4) continue;
            leave[round] = roll(n);
            s.data[6 * leave[round]] = round ? REAL_NAN : REAL_INFINITY;
            find_truth(&s);
            for (k = 0; k <= round; k++) leave_out(&s.truth[leave[k]]);
            CHECK_RESULT(lbvh_refit(&tree, s.data, 0), LBVH_OK);
        }
        forget(&s);
    }
    lbvh_free(&tree);
}

/* 32 equal boxes and 32 others, mixed: one split parts them, and equal ones are halved. */
static void test_split_top_equal(void **state)
{
    lbvh tree = {0};
    lbvh_quality q;
    real boxes[64 * 6];
    double gain = 0;
    int k;
    (void)state;
    for (k = 0; k < 64 * 6; k++) boxes[k] = (real)(k % 6 / 3);
    CHECK_RESULT(lbvh_build(&tree, NULL, boxes, 0, 64), LBVH_OK);
    for (k = 0; k < 64 * 6; k++) boxes[k] += (real)(k / 6 % 2 * 100);
    CHECK_RESULT(lbvh_refit(&tree, boxes, 0), LBVH_OK);
    CHECK_RESULT(lbvh_split_top(&tree, &gain), LBVH_OK);
    CHECK_RESULT(lbvh_measure(&tree, &q), LBVH_OK);
    CHECK(gain > 0 && q.depth == 6 && q.mean_depth == 6);
    lbvh_free(&tree);
}

/* A tree by prefixes: `cubes` around each other, the smallest one alone below the root, and a chain
   of 93 equal points. The splits take away the largest cube, then the next one, and so on, so the
   chain comes to lie below all of them. Returns the gain. */
static double split_chain(lbvh *tree, int32_t cubes)
{
    int32_t const n = cubes + 93;
    real *boxes = NEW(real, 6 * n);
    double gain = -1;
    int32_t k;
    lbvh was;
    for (k = 0; k < 6 * n; k++) boxes[k] = 0;
    CHECK_RESULT(lbvh_build(tree, NULL, boxes, 0, n), LBVH_OK);
    for (k = 1; k < n; k++) tree->prefix[k] = (uint8_t)(k < cubes ? k + 1 : k - cubes + 1);
    for (k = 0; k < 6 * cubes; k++) boxes[k] = k % 6 < 3 ? 0 : (real)pow(9, k / 6);
    CHECK_RESULT(lbvh_refit(tree, boxes, 0), LBVH_OK);
    CHECK_RESULT(lbvh_validate(tree), LBVH_OK);
    was = copy_of(tree);
    CHECK_RESULT(lbvh_split_top(tree, &gain), LBVH_OK);
    CHECK_RESULT(lbvh_verify(tree, n, 0, NULL), LBVH_OK);
    if (gain == 0) check_same_tree(tree, &was);
    lbvh_free(&was);
    free(boxes);
    return gain;
}

static void test_split_top_deepest(void **state)
{
    lbvh tree = {0};
    int32_t cubes;
    (void)state;
    for (cubes = 3; cubes < 36; cubes++) {
        double const gain = split_chain(&tree, cubes);
        CHECK(cubes > 24 ? gain >= 0 : gain > 0);
        CHECK(cubes < 32 || gain == 0); /* too deep */
    }
    lbvh_free(&tree);
}

static void test_split_top_refusals(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0};
    lbvh tree = {0}, was;
    scene s;
    lbvh_desc d;
    double gain = 7;
    (void)state;
    dice = wl_seed(63);
    CHECK_RESULT(lbvh_split_top(NULL, &gain), LBVH_BAD_ARGUMENT);
    CHECK(gain == 0);
    gain = 7;
    CHECK_RESULT(lbvh_split_top(&tree, &gain), LBVH_NOT_BUILT);
    CHECK(gain == 0);
    plain_scene(&s, &inputs[0], 500);
    d = desc_of(&s);
    d.allocator = allocator_of(&h);
    CHECK_RESULT(lbvh_build(&tree, &d, s.data, 0, s.n), LBVH_OK);
    was = copy_of(&tree);
    gain = 7;
    h.fail_at = h.calls + 1;
    CHECK_RESULT(lbvh_split_top(&tree, &gain), LBVH_OUT_OF_MEMORY);
    CHECK(gain == 0);
    check_same_tree(&tree, &was);
    h.fail_at = 0;
    CHECK_RESULT(lbvh_split_top(&tree, NULL), LBVH_OK);
    CHECK(memcmp(tree.prefix, was.prefix, (size_t)s.n) != 0);
    forget(&s);
    lbvh_free(&was);
    lbvh_free(&tree);
    CHECK(h.live_blocks == 0 && !h.wrong);
}
