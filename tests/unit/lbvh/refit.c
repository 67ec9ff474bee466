/* refit.c - a part of test_lbvh.c: lbvh_refit: boxes after elements have moved, with the same
   structure of the tree.
   SPDX-License-Identifier: MIT OR Unlicense */

static void move_elements(scene *s, real most)
{
    size_t const count = (s->indexed ? (size_t)s->vertices : (size_t)s->n) * s->step;
    size_t k;
    for (k = 0; k < count; k++) s->data[k] += between(-most, most);
    if (s->kind == LBVH_SPHERES)
        for (k = 0; k < (size_t)s->n; k++)
            s->data[k * s->step + (size_t)s->dim] = between(0, (real)0.3);
    if (s->kind == LBVH_BOXES) {
        int32_t i;
        int a;
        for (i = 0; i < s->n; i++) for (a = 0; a < s->dim; a++)
            if (element(s, i)[s->dim + a] < element(s, i)[a])
                element(s, i)[s->dim + a] = element(s, i)[a];
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
        s.builder = counter % 5 ? counter % 5 > 2 ? LBVH_PLOC : LBVH_MERGE : LBVH_SPLIT;
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
        /* any refusal: it is empty, and takes the moved ones */
        CHECK_RESULT(lbvh_load(&before, NULL, NULL, 0), LBVH_BAD_FILE);
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
