/* random_steps.c - a part of test_lbvh.c: random builds, refits, searches and refusals on one
   tree that is never made anew.
   SPDX-License-Identifier: MIT OR Unlicense */

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
    s->builder = (lbvh_builder)roll(3);
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
    /* the same each run: change it to look further */
    random_seed = environment("LBVH_TEST_SEED", 1);
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
            if (roll(3) == 0) (void)optimize(&tree, &s);
            if (tree.code) check_tree(&tree, &s, NULL);
            else check_any_tree(&tree, &s);
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
