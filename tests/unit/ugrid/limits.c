/* limits.c - a part of test_ugrid.c: numbers that are not finite, boxes that are too wide, full
   cells, too many cells or entries: refused with the number that would do, before anything
   overflows.
   SPDX-License-Identifier: MIT OR Unlicense */

/* A point that is not finite has no neighbours. Every search refuses it, also in an empty grid. */
static void test_point_not_finite(void **state)
{
    static const real bad[] = {REAL_NAN, REAL_INFINITY, -REAL_INFINITY};
    ugrid g = {0};
    ugrid_desc d = good_desc();
    int32_t n, found, *hits = NULL;
    int a, kind;
    (void)state;
    for (n = 0; n <= 4; n += 4)
        for (a = 0; a < 3; a++)
            for (kind = 0; kind < 3; kind++) {
                real p[3] = {(real)0.1, (real)0.1, (real)0.1};
                d.periodic[a] = kind % 2;
                p[a] = bad[kind];
                CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, n), UGRID_OK);
                CHECK_RESULT(ugrid_query(&g, p, 1, NULL, 0, &found), UGRID_NOT_FINITE);
                CHECK(found == 0);
                CHECK_RESULT(ugrid_arr_within(&g, p, 1, &hits), UGRID_NOT_FINITE);
                CHECK(hits == NULL);
            }
    ugrid_free(&g);
}

/* A distance that overflows is no neighbour: without a box, a point may be as far away as numbers
   reach. */
static void test_distance_overflows(void **state)
{
    static const ugrid_method methods[] = {UGRID_COUNT, UGRID_SORT, UGRID_LIST, UGRID_LIST_PACKED};
    real const far_off = -REAL_LARGEST / 1000000,
        pos[] = {0, 0, 0, 0, far_off, 0, 0, REAL_LARGEST, 0};
    real const at[3] = {0, REAL_LARGEST, 0};
    int64_t offsets[2], needed;
    int32_t ids[4], found;
    size_t k;
    (void)state;
    for (k = 0; k < sizeof methods / sizeof methods[0]; k++) {
        ugrid g = {0};
        ugrid_desc d = {0};
        d.cell = 6;
        d.unbounded = 1;
        d.buckets = 1 << k;                     /* few: all particles are candidates */
        d.method = methods[k];
        CHECK_RESULT(ugrid_build(&g, &d, pos, 0, 3), UGRID_OK);
        CHECK_RESULT(ugrid_query(&g, at, 13, ids, 4, &found), UGRID_OK);
        CHECK(found == 1 && ids[0] == 2);
        CHECK_RESULT(ugrid_neighbors_at(&g, at, 0, 1, 13, offsets, ids, 4, &needed), UGRID_OK);
        CHECK(needed == 1 && offsets[1] == 1 && ids[0] == 2);
        CHECK_RESULT(ugrid_count_pairs(&g, 13, &needed), UGRID_OK);
        CHECK(needed == 0);
        CHECK(!(ugrid_distance2(&g, at, pos + 3) <= 169));
        ugrid_free(&g);
    }
}

/* Points that span more than the largest number are refused, with a box fitted to them and with one
   that is given. */
static void test_box_too_wide(void **state)
{
    ugrid g = {0};
    ugrid_desc d;
    real p[6] = {0, 0, 0, 1, 1, 1};
    int a;
    (void)state;
    for (a = 0; a < 3; a++) {
        memset(&d, 0, sizeof d);
        p[a] = REAL_LARGEST;
        p[3 + a] = -REAL_LARGEST;
        CHECK_RESULT(ugrid_fit(&d, p, 0, 2, NULL), UGRID_BOX_TOO_WIDE);
        memset(&d, 0, sizeof d);
        CHECK_RESULT(ugrid_build(&g, &d, p, 0, 2), UGRID_BOX_TOO_WIDE);
        check_empty_and_usable(&g);
        d.cell = 1;
        CHECK_RESULT(ugrid_build(&g, &d, p, 0, 2), UGRID_BOX_TOO_WIDE);
        d.unbounded = 1; /* what the comment says */
        CHECK_RESULT(ugrid_build(&g, &d, p, 0, 2), UGRID_OK);
        p[a] = 0;
        p[3 + a] = 1;
    }
    memset(&d, 0, sizeof d);
    d.dim = 2; /* a third number is not looked at */
    p[2] = REAL_LARGEST;
    p[5] = -REAL_LARGEST;
    CHECK_RESULT(ugrid_build(&g, &d, p, 3 * sizeof *p, 2), UGRID_OK);
    ugrid_free(&g);
}

/* Exactly the combinations that test_product runs are accepted. */
static void test_walk_rules(void **state)
{
    int method, placement, walk, order, unbounded;
    (void)state;
    for (method = 0; method <= 5; method++) for (placement = 0; placement < 2; placement++)
            for (walk = 0; walk <= 4; walk++)
        for (order = 0; order < 2; order++) for (unbounded = 0; unbounded < 2; unbounded++) {
            ugrid_desc d = good_desc(), out;
            ugrid g = {0};
            int const strip = walk == UGRID_STRIPS || walk == UGRID_HYBRID;
            int const sort = method == UGRID_AUTO || method == UGRID_COUNT || method == UGRID_SORT;
            int const bad_walk = strip && (!sort || placement || order || unbounded),
                bad_placement = method == UGRID_LIST_PACKED && placement;
            ugrid_result r;
            d.method = (ugrid_method)method;
            d.placement = (ugrid_placement)placement;
            d.walk = (ugrid_walk)walk;
            d.cell_order = (ugrid_cell_order)order;
            d.unbounded = unbounded;
            r = ugrid_build(&g, &d, four_points, 0, 4);
            CHECK(r == ugrid_defaults(&out, &d));
            if (bad_walk && bad_placement) CHECK(r == UGRID_BAD_WALK || r == UGRID_BAD_PLACEMENT);
            else
                CHECK_RESULT(r, bad_walk ? UGRID_BAD_WALK : bad_placement ? UGRID_BAD_PLACEMENT :
                    UGRID_OK);
            if (r == UGRID_OK) CHECK(walk != UGRID_WALK_AUTO ? g.desc.walk == (ugrid_walk)walk :
                g.desc.walk == (sort && !placement && !order && !unbounded ? UGRID_STRIPS :
                    UGRID_CELLS));
            if (r == UGRID_OK)
                CHECK(method != UGRID_AUTO ? g.desc.method == (ugrid_method)method :
                    g.desc.method != UGRID_AUTO);
            ugrid_free(&g);
        }
}

/* NaN and Inf, at every place and axis, for every build: refused with the first one's number. */
static void test_not_finite(void **state)
{
    static const real bad[] = {(real)NAN, (real)INFINITY, (real)-INFINITY};
    config *configs = all_configs();
    ugrid g = {0};
    scene s;
    ptrdiff_t c;
    int dim, a, kind, box_given;
    int32_t i, bad_id;
    (void)state;
    dice = wl_seed(21);
    describe = describe_case;
    for (dim = 2; dim <= 3; dim++) {
        make_scene(&s, dim, 0, &boxes[3], &inputs[0], 9);
        for (c = 0; c < arrlen(configs); c++)
            for (a = 0; a < dim; a++) for (kind = 0; kind < 3; kind++)
                    for (box_given = 0; box_given < 2; box_given++) {
                ugrid_desc d = desc_of(&s, &configs[c]);
                real *p = NEW(real, dim * 9);
                current_scene = &s;
                current_config = &configs[c];
                if (!box_given) memset(d.min, 0, sizeof d.min), memset(d.max, 0, sizeof d.max);
                memcpy(p, s.pos, sizeof *p * (size_t)(dim * 9));
                i = roll(9);
                p[i * dim + a] = bad[kind];
                if (i < 8) p[8 * dim] = (real)NAN; /* a later one does not count */
                CHECK_RESULT(ugrid_build(&g, &d, p, 0, 9), UGRID_NOT_FINITE);
                CHECK(g.bad_id == i);
                check_empty_and_usable(&g);
                memset(d.min, 0, sizeof d.min);
                memset(d.max, 0, sizeof d.max);
                CHECK_RESULT(ugrid_fit(&d, p, 0, 9, &bad_id), UGRID_NOT_FINITE);
                CHECK(bad_id == i);
                free(p);
            }
        forget(&s);
    }
    ugrid_free(&g);
    arrfree(configs);
    describe = NULL;
}

/* A full cell: the result is the exact number of slots that are needed, and with these the build
   works. */
static void test_cell_full(void **state)
{
    config *configs = all_configs();
    heap h = {0, 0, 0, 0, 0, 0};
    ugrid g = {0}, counted = {0};
    scene s;
    ptrdiff_t c;
    int bounds;
    int32_t cell, fullest;
    (void)state;
    dice = wl_seed(22);
    describe = describe_case;
    for (bounds = 0; bounds < ALL_BOUNDS; bounds++) {
        make_scene(&s, 3, bounds, &boxes[3], &inputs[1], 200);
        for (c = 0; c < arrlen(configs); c++) {
            ugrid_desc d = desc_of(&s, &configs[c]);
            if (configs[c].method != UGRID_FIXED || !possible(&configs[c], &s)) continue;
            current_scene = &s;
            current_config = &configs[c];
            d.method = UGRID_COUNT;
            CHECK_RESULT(ugrid_build(&counted, &d, s.pos, 0, s.n), UGRID_OK);
            for (cell = 0, fullest = 0; cell < counted.cell_count; cell++)
                if (counted.start[cell + 1] - counted.start[cell] > fullest)
                    fullest = counted.start[cell + 1] - counted.start[cell];
            d.method = UGRID_FIXED;
            d.slots = fullest - 1;
            CHECK_RESULT(ugrid_build(&g, &d, s.pos, 0, s.n), UGRID_CELL_FULL);
            CHECK(g.needed_slots == fullest);
            check_empty_and_usable(&g);
            ugrid_free(&g);
            d.allocator = allocator_of(&h);
            d.slots = 1;
            CHECK_RESULT(ugrid_build(&g, &d, s.pos, 0, s.n), UGRID_CELL_FULL);
            CHECK(g.needed_slots == fullest);
            d.slots = fullest;
            CHECK_RESULT(ugrid_build(&g, &d, s.pos, 0, s.n), UGRID_OK);
            CHECK(g.needed_slots == fullest && g.n == s.n);
            check_same_cells(&g, &counted);
            ugrid_free(&g);
            CHECK(h.live_blocks == 0 && !h.wrong && "nothing was stored beyond the last slot");
        }
        forget(&s);
    }
    ugrid_free(&g);
    ugrid_free(&counted);
    arrfree(configs);
    describe = NULL;
}

/* More cells than desc.max_cells: the number needed is reported, and nothing overflows, however far
   away a point is. */
static void test_too_many_cells(void **state)
{
    ugrid g = {0};
    ugrid_desc d = good_desc();
    real p[] = {0, 0, 0, 1, 1, 1, (real)0.5, (real)0.5, (real)0.5};
    (void)state;
    d.cell = (real)0.0009765625; /* 1/1024 */
    CHECK_RESULT(ugrid_build(&g, &d, p, 0, 3), UGRID_TOO_MANY_CELLS);
    CHECK(g.needed_cells == 1073741824 && g.n == 0);
    check_empty_and_usable(&g);
    d.cell = (real)0.125;
    d.max_cells = 511;
    CHECK_RESULT(ugrid_build(&g, &d, p, 0, 3), UGRID_TOO_MANY_CELLS);
    CHECK(g.needed_cells == 512);
    d.max_cells = g.needed_cells;
    CHECK_RESULT(ugrid_build(&g, &d, p, 0, 3), UGRID_OK);
    CHECK(g.needed_cells == 512 && g.cell_count == 512);

    memset(d.max, 0, sizeof d.max); /* the box of the points: one far point makes it huge */
    d.max_cells = 0;
    p[3] = p[4] = p[5] = (real)1e6;
    CHECK_RESULT(ugrid_build(&g, &d, p, 0, 3), UGRID_TOO_MANY_CELLS);
    CHECK(g.needed_cells == INT64_MAX && "more than an int64_t holds");
    check_empty_and_usable(&g);
    p[3] = p[4] = p[5] = IS_FLOAT ? (real)3e38 : (real)1e308;
    CHECK_RESULT(ugrid_build(&g, &d, p, 0, 3), UGRID_TOO_MANY_CELLS);
    CHECK(g.needed_cells == INT64_MAX);
    d.max_cells = INT64_MAX; /* allowed, but no int32_t can number them */
    CHECK_RESULT(ugrid_build(&g, &d, p, 0, 3), UGRID_TOO_MANY_CELLS);
    check_empty_and_usable(&g);
    d.unbounded = 1; /* what the message advises */
    CHECK_RESULT(ugrid_build(&g, &d, p, 0, 3), UGRID_OK);
    CHECK_RESULT(ugrid_validate(&g), UGRID_OK);
    ugrid_free(&g);
}

/* More entries than an int32_t can number. Reserving reads no points, and refuses before it
   allocates. */
static void test_too_many_entries(void **state)
{
    ugrid g = {0};
    ugrid_desc d = good_desc();
    (void)state;
    CHECK_RESULT(ugrid_reserve(&g, &d, INT32_MAX), UGRID_TOO_MANY_ENTRIES);
    d.placement = UGRID_TIGHT; /* 8 entries each */
    CHECK_RESULT(ugrid_reserve(&g, &d, 268435456), UGRID_TOO_MANY_ENTRIES);
    d.cell = (real)0.0625;
    d.size = (real)0.9; /* 15 cells, 16 touched */
    CHECK_RESULT(ugrid_reserve(&g, &d, 524288), UGRID_TOO_MANY_ENTRIES);
    CHECK(ugrid_bytes(&g) == 0 && g.n == 0);
    check_empty_and_usable(&g);
    ugrid_free(&g);
}
