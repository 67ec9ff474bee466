/* memory.c - a part of test_ugrid.c: allocations. One that fails leaves an empty, usable grid;
   arrays grow by a factor; after a reserve nothing is allocated.
   SPDX-License-Identifier: MIT OR Unlicense */

/* One step that may run out of memory: then the grid is empty, and the same step works the next
   time. */
static int survive(ugrid *g, const ugrid_desc *d, const scene *s, int32_t n)
{
    int64_t pairs = -1, again = -1;
    int failures = 0;
    ugrid_result r = ugrid_build(g, d, s->pos, 0, n);
    if (r == UGRID_OUT_OF_MEMORY) {
        failures++;
        CHECK(g->n == 0);
        CHECK_RESULT(ugrid_validate(g), UGRID_NOT_BUILT);
        CHECK_RESULT(ugrid_count_pairs(g, s->radius[1], &pairs), UGRID_NOT_BUILT);
        CHECK(pairs == 0);
        r = ugrid_build(g, d, s->pos, 0, n);
    }
    CHECK_RESULT(r, UGRID_OK);
    CHECK_RESULT(ugrid_count_pairs(g, s->radius[1], &pairs), UGRID_OK);
    r = ugrid_validate(g);
    if (r == UGRID_OUT_OF_MEMORY) {
        failures++;
        r = ugrid_validate(g);
    }
    CHECK_RESULT(r, UGRID_OK);
    CHECK_RESULT(ugrid_count_pairs(g, s->radius[1], &again), UGRID_OK);
    CHECK(pairs == again && g->n == n);
    return failures;
}

/* All builds, first small, then larger, then smaller again, in one grid. How many steps ran out of
   memory? */
static int memory_scenario(heap *h, const scene *s, const config *configs)
{
    ugrid g = {0};
    int failures = 0;
    ptrdiff_t c;
    for (c = 0; c < arrlen(configs); c++) {
        ugrid_desc d = desc_of(s, &configs[c]);
        if (!possible(&configs[c], s) || configs[c].walk != UGRID_CELLS) continue;
        d.allocator = allocator_of(h);
        if (d.unbounded && d.placement == UGRID_TIGHT) d.slots *= 8; /* all entries in a bucket */
        failures += survive(&g, &d, s, 10);
        failures += survive(&g, &d, s, s->n);
        failures += survive(&g, &d, s, 3);
        CHECK(h->live_bytes == ugrid_bytes(&g));
        if (c % 7 == 0) ugrid_free(&g);
    }
    ugrid_free(&g);
    return failures;
}

static void test_out_of_memory(void **state)
{
    SLOW_TEST();
    config *configs = all_configs();
    scene s;
    int bounds;
    (void)state;
    dice = wl_seed(23);
    for (bounds = 1; bounds <= UNBOUNDED; bounds += 7) {
        int64_t total, k, failures = 0;
        heap h = {0, 0, 0, 0, 0, 0};
        make_scene(&s, 3, bounds, &boxes[3], &inputs[0], 40);
        CHECK(memory_scenario(&h, &s, configs) == 0 && h.calls > 50);
        total = h.calls;
        for (k = 1; k <= total; k++) {
            int failed;
            memset(&h, 0, sizeof h);
            h.fail_at = k;
            /* 0: less than half as much again did as well */
            failed = memory_scenario(&h, &s, configs);
            CHECK(failed == 1 || (failed == 0 && h.calls > total));
            CHECK(h.live_bytes == 0 && h.live_blocks == 0 && !h.wrong);
            failures += failed;
        }
        CHECK(failures > total / 2);
        forget(&s);
    }
    arrfree(configs);
}

/* What a grid holds that was just built, or reserved, for n of the points. */
static int64_t bytes_of(const ugrid_desc *given, const real *pos, int32_t n, int reserved)
{
    ugrid_desc d = *given;
    ugrid g = {0};
    int64_t bytes;
    memset(&d.allocator, 0, sizeof d.allocator);
    if (reserved) CHECK_RESULT(ugrid_reserve(&g, &d, n), UGRID_OK);
    else CHECK_RESULT(ugrid_build(&g, &d, pos, 0, n), UGRID_OK);
    bytes = ugrid_bytes(&g);
    ugrid_free(&g);
    return bytes;
}

/* 600 builds, each with one particle more: every array grows O(log n) times, to at most half more
   than it must, and a reserve to no more. */
static void check_growth(const ugrid_desc *given, const real *pos)
{
    enum { N = 600, GROWTHS = 17 }; /* 1.5^16 > 600, and one for the first */
    heap h = {0, 0, 0, 0, 0, 0};
    ugrid_desc d = *given;
    ugrid g = {0};
    int32_t n;
    int b, held = 0;
    d.allocator = allocator_of(&h);
    for (n = 1; n <= N; n++) CHECK_RESULT(ugrid_build(&g, &d, pos, 0, n), UGRID_OK);
    for (b = 0; b < UGRID_BLOCKS; b++) held += g.block[b].bytes > 0;
    CHECK(h.calls <= held * GROWTHS && held >= 1);
    CHECK((double)ugrid_bytes(&g) <= 1.5 * (double)bytes_of(&d, pos, N, 0));
    CHECK_RESULT(ugrid_reserve(&g, &d, 2 * N), UGRID_OK);
    CHECK(ugrid_bytes(&g) == bytes_of(&d, pos, 2 * N, 1));
    ugrid_free(&g);
    CHECK(h.live_blocks == 0 && !h.wrong);
}

static void test_growth(void **state)
{
    SLOW_TEST();
    enum { N = 600 };
    real *pos = NEW(real, 3 * N);
    int method, tight, unbounded, k;
    (void)state;
    dice = wl_seed(33);
    for (k = 0; k < 3 * N; k++) pos[k] = between(0, 1);
    for (method = UGRID_AUTO; method <= UGRID_LIST_PACKED; method++)
        for (tight = 0; tight < 2; tight++)
            for (unbounded = 0; unbounded < 2; unbounded++) {
                ugrid_desc d = good_desc();
                d.method = (ugrid_method)method;
                d.placement = tight ? UGRID_TIGHT : UGRID_LOOSE;
                d.unbounded = unbounded; /* as many buckets as particles: those grow, too */
                d.slots = N;
                d.inverse = 1;
                if (tight && method == UGRID_LIST_PACKED) continue;
                check_growth(&d, pos);
            }
    free(pos);
}

/* Where half as much again cannot be had, what is needed will do. */
static void test_growth_short_of_memory(void **state)
{
    enum { N = 101 };
    real *pos = NEW(real, 3 * N);
    heap h = {0, 0, 0, 0, 0, 0};
    ugrid_desc d = good_desc();
    ugrid g = {0};
    int64_t calls;
    int k;
    (void)state;
    dice = wl_seed(34);
    for (k = 0; k < 3 * N; k++) pos[k] = between(0, 1);
    d.method = UGRID_LIST;
    d.allocator = allocator_of(&h);
    CHECK_RESULT(ugrid_build(&g, &d, pos, 0, N - 1), UGRID_OK);
    calls = h.calls;
    h.fail_at = calls + 1;
    CHECK_RESULT(ugrid_build(&g, &d, pos, 0, N), UGRID_OK);
    CHECK(h.calls == calls + 2 && ugrid_bytes(&g) == bytes_of(&d, pos, N, 0) && g.n == N);
    CHECK_RESULT(ugrid_validate(&g), UGRID_OK);
    ugrid_free(&g);
    CHECK(h.live_blocks == 0 && !h.wrong);
    free(pos);
}

/* A grid's allocator stays until ugrid_free; afterwards another may come. */
static void test_change_of_allocator(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0}, other = {0, 0, 0, 0, 0, 0};
    ugrid g = {0};
    ugrid_desc d = good_desc();
    (void)state;
    d.allocator = allocator_of(&h);
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_OK);
    d.allocator = allocator_of(&other);
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_BAD_ALLOCATOR);
    CHECK(g.n == 0);
    CHECK_RESULT(ugrid_reserve(&g, &d, 4), UGRID_BAD_ALLOCATOR);
    memset(&d.allocator, 0, sizeof d.allocator);
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_BAD_ALLOCATOR);
    d.allocator = allocator_of(&h);
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_OK);
    ugrid_free(&g);
    CHECK(h.live_blocks == 0 && !h.wrong && h.calls > 0 && h.calls == h.frees);
    d.allocator = allocator_of(&other);
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_OK);
    ugrid_free(&g);
    CHECK(other.live_blocks == 0 && !other.wrong && other.calls > 0);
}

/* After a reserve, builds of up to n particles allocate nothing; building again the same does not
   either. */
static void test_reserve(void **state)
{
    static const int32_t sizes[] = {300, 0, 1, 299, 17, 300, 64, 65, 128};
    config *configs = all_configs();
    scene s;
    ptrdiff_t c;
    int bounds, k;
    (void)state;
    dice = wl_seed(24);
    describe = describe_case;
    for (bounds = 0; bounds < ALL_BOUNDS; bounds++) {
        make_scene(&s, 3, bounds, &boxes[3], &inputs[0], 300);
        for (c = 0; c < arrlen(configs); c++) {
            heap h = {0, 0, 0, 0, 0, 0};
            ugrid_desc d = desc_of(&s, &configs[c]);
            ugrid g = {0};
            int64_t calls;
            if (!possible(&configs[c], &s) || configs[c].walk == UGRID_MODULAR) continue;
            current_scene = &s;
            current_config = &configs[c];
            d.allocator = allocator_of(&h);
            d.slots = d.unbounded ? 4000 : 300;
            CHECK_RESULT(ugrid_reserve(&g, &d, 300), UGRID_OK);
            CHECK(g.n == 0 && ugrid_bytes(&g) == h.live_bytes && h.live_bytes > 0);
            calls = h.calls;
            for (k = 0; k < COUNT_OF(sizes); k++) {
                CHECK_RESULT(ugrid_build(&g, &d, s.pos, 0, sizes[k]), UGRID_OK);
                CHECK(g.n == sizes[k] && h.calls == calls);
            }
            CHECK_RESULT(ugrid_validate(&g), UGRID_OK);
            ugrid_free(&g);
            CHECK(h.live_blocks == 0 && !h.wrong && ugrid_bytes(&g) == 0);
        }
        forget(&s);
    }
    arrfree(configs);
    describe = NULL;
}

/* UGRID_AUTO may choose another method for fewer particles; what was reserved has to do for that
   one too. */
static void test_reserve_for_automatic_method(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0};
    ugrid g = {0};
    ugrid_desc d = good_desc();
    real *p = NEW(real, 3 * 2000);
    int64_t calls;
    int k;
    (void)state;
    for (k = 0; k < 6000; k++) p[k] = between(0, 1);
    d.method = UGRID_AUTO;
    d.cell = (real)0.02; /* 125,000 cells: SORT for few particles, COUNT for many */
    d.allocator = allocator_of(&h);
    CHECK_RESULT(ugrid_reserve(&g, &d, 2000), UGRID_OK);
    calls = h.calls;
    for (k = 2000; k > 0; k /= 3) CHECK_RESULT(ugrid_build(&g, &d, p, 0, k), UGRID_OK);
    CHECK(h.calls == calls);
    ugrid_free(&g);
    CHECK(h.live_blocks == 0 && !h.wrong);
    free(p);
}

/* A cell that is chosen by n: fewer particles have larger ones, and none has one cell. (Of 2664 and
   2663 in such a box Newton's method once took another number of steps.) */
static void test_reserve_for_radius(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0};
    ugrid g = {0};
    ugrid_desc d;
    real *p = NEW(real, 3 * 2664);
    int64_t calls;
    int k;
    (void)state;
    memset(&d, 0, sizeof d);
    d.max[0] = d.max[1] = d.max[2] = 500;
    d.radius = 1;
    d.method = UGRID_COUNT;
    d.allocator = allocator_of(&h);
    for (k = 0; k < 3 * 2664; k++) p[k] = between(0, 500);
    CHECK_RESULT(ugrid_reserve(&g, &d, 2664), UGRID_OK);
    calls = h.calls;
    for (k = 2664; k > 2660; k--) CHECK_RESULT(ugrid_build(&g, &d, p, 0, k), UGRID_OK);
    CHECK_RESULT(ugrid_build(&g, &d, p, 0, 0), UGRID_OK);
    CHECK(h.calls == calls && g.cell_count == 1);
    ugrid_free(&g);
    free(p);
}
