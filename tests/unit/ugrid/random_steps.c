/* random_steps.c - a part of test_ugrid.c: random builds, searches and refusals on one grid that
   is never made anew.
   SPDX-License-Identifier: MIT OR Unlicense */

static int random_step, random_seed;
static void describe_random(void)
{
    print_error("  step %d; replay with UGRID_TEST_SEED=%d\n", random_step, random_seed);
    describe_case();
}

/* Another scene, and a configuration that suits it. */
static void random_scene(scene *s, config *c, const config *configs)
{
    box b;
    int a, const_dim = 2 + roll(2), bounds;
    do bounds = roll(ALL_BOUNDS); while (const_dim == 2 && bounds >= 4 && bounds < UNBOUNDED);
    for (a = 0; a < 3; a++) b.cells[a] = 1 + roll(6);
    b.plain = roll(2);
    forget(s);
    make_scene(s, const_dim, bounds, &b, &inputs[roll(COUNT_OF(inputs))], roll(40));
    do *c = configs[roll((int)arrlen(configs))]; while (!possible(c, s));
    if (c->placement) c->size = 0.05 + 3 * (double)wl_u(&dice);
}

/* A build that is refused: what, is drawn from the table (without its allocators: here they are
   given). */
static void random_refusal(ugrid *g, heap *h)
{
    const refusal *r;
    ugrid_desc d = good_desc();
    do r = &refusals[roll(COUNT_OF(refusals))]; while (r->want == UGRID_BAD_ALLOCATOR);
    d.allocator = allocator_of(h);
    r->spoil(&d);
    CHECK_RESULT(ugrid_build(g, &d, four_points, 0, 4), r->want);
    CHECK(g->n == 0);
}

static void random_search(const ugrid *g, const scene *s)
{
    int const k = current_radius = roll(s->radii);
    check_list(g, s, k, 0);
    switch (roll(6)) {
    case 0: check_iterators(g, s, k); break;
    case 1: check_pairs(g, s, k); break;
    case 2: check_list(g, s, k, roll(4)); break;
    case 3: check_queries(g, s, k); break;
    case 4: check_neighbors_at(g, s, k); break;
    default: CHECK_RESULT(ugrid_validate(g), UGRID_OK);
    }
}

static void test_random_operations(void **state)
{
    int const steps = environment("UGRID_TEST_STEPS", 8000 / share());
    config *configs = all_configs(), c;
    heap h = {0, 0, 0, 0, 0, 0};
    ugrid g = {0};
    scene s;
    int built = 0;
    (void)state;
    /* the same each run: change it to look further */
    random_seed = environment("UGRID_TEST_SEED", (int)arrlen(configs));
    print_message("random operations: UGRID_TEST_SEED=%d\n", random_seed);
    dice = wl_seed((uint64_t)random_seed);
    describe = describe_random;
    current_scene = &s;
    current_config = &c;
    memset(&s, 0, sizeof s);
    for (random_step = 0; random_step < steps; random_step++) {
        int const action = roll(20);
        ugrid_desc d;
        if (action < 8 || !built) {
            random_scene(&s, &c, configs);
            d = desc_of(&s, &c);
            d.allocator = allocator_of(&h);
            /* all entries in one bucket */
            if (d.placement && d.method == UGRID_FIXED) d.slots = 125 * s.n + 1;
            if (roll(3) == 0) CHECK_RESULT(ugrid_reserve(&g, &d, s.n + roll(20)), UGRID_OK);
            CHECK_RESULT(ugrid_build(&g, &d, s.pos, 0, s.n), UGRID_OK);
            built = 1;
        } else if (action == 8) {
            random_refusal(&g, &h);
            built = 0;
        } else if (action == 9) {
            ugrid_free(&g);
            CHECK(h.live_blocks == 0);
            built = 0;
        } else {
            random_search(&g, &s);
        }
        CHECK(h.live_bytes == ugrid_bytes(&g) && !h.wrong);
    }
    forget(&s);
    ugrid_free(&g);
    CHECK(h.live_blocks == 0 && h.calls == h.frees);
    arrfree(configs);
    describe = NULL;
}
