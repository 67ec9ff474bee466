/* products.c - a part of test_ugrid.c: all inputs in all configurations; then single cases that
   a product does not reach: the rim, the order of a walk, huge radii, rows of cells, points
   beside cells.
   SPDX-License-Identifier: MIT OR Unlicense */

static void run_scene(const scene *s, const config *configs, ugrid *g)
{
    ptrdiff_t c;
    int a;
    for (c = 0; c < arrlen(configs); c++) {
        if (!possible(&configs[c], s)) continue;
        check_grid(g, s, &configs[c]);
        for (a = 0; a < 3 && s->bounds < 8; a++)
            CHECK(g->axis[a].cells == (a < s->dim ? s->cells[a] * (a == 0 ? split : 1) : 1));
    }
}

static void product(int dim)
{
    config *configs = all_configs();
    ugrid g = {0};
    scene s;
    int bounds, b, in, counter = 0;
    dice = wl_seed((uint64_t)dim);
    describe = describe_case;
    for (bounds = 0; bounds < ALL_BOUNDS; bounds++) {
        if (dim == 2 && bounds >= 4 && bounds < UNBOUNDED) continue;
        for (b = 0; b < COUNT_OF(boxes); b++)
            for (in = 0; in < COUNT_OF(inputs); in++) {
                if (!chosen(counter++)) continue;
                make_scene(&s, dim, bounds, &boxes[b], &inputs[in], 10);
                run_scene(&s, configs, &g);
                forget(&s);
            }
    }
    ugrid_free(&g);
    arrfree(configs);
    describe = NULL;
}

static void test_product_2d(void **state) { (void)state; product(2); }
static void test_product_3d(void **state) { (void)state; product(3); }

/* Cells split along x: all checks of the product, in 2D. */
static void test_product_split(void **state)
{
    (void)state;
    split = 3;
    product(2);
    split = 1;
}

/* Every number of cells on every axis, against every set of periodic axes: where rings of cells
   close on themselves. */
static void test_cells_per_axis(void **state)
{
    static const config configs[] = {
        {UGRID_COUNT, 0, UGRID_LOOSE, 0, UGRID_CELLS, UGRID_ROWS, 0},
        {UGRID_SORT, 0, UGRID_LOOSE, 0, UGRID_STRIPS, UGRID_ROWS, 0},
        {UGRID_LIST, 0, UGRID_LOOSE, 0, UGRID_MODULAR, UGRID_MORTON, 0},
        {UGRID_COUNT, 0, UGRID_LOOSE, 0, UGRID_HYBRID, UGRID_ROWS, 1},
        {UGRID_COUNT, 0, UGRID_TIGHT, 0.5, UGRID_CELLS, UGRID_ROWS, 0},
        {UGRID_FIXED, 0, UGRID_TIGHT, 1, UGRID_MODULAR, UGRID_ROWS, 0},
        {UGRID_LIST, 0, UGRID_TIGHT, 2.2, UGRID_CELLS, UGRID_ROWS, 0},
        {UGRID_SORT, 0, UGRID_TIGHT, 4.7, UGRID_CELLS, UGRID_ROWS, 0},
    };
    static const int numbers[] = {1, 2, 3, 5};
    ugrid g = {0};
    scene s;
    int shape, bounds, c, in, counter = 0;
    (void)state;
    dice = wl_seed(11);
    describe = describe_case;
    for (shape = 0; shape < 64; shape++)
        for (bounds = 0; bounds < 8; bounds++)
            for (in = 0; in < 2; in++) {
                box b = {{0, 0, 0}, 0};
                if (!chosen(counter++)) continue;
                b.cells[0] = numbers[shape % 4];
                b.cells[1] = numbers[shape / 4 % 4];
                b.cells[2] = numbers[shape / 16];
                b.plain = in;
                make_scene(&s, 3, bounds, &b, &inputs[in ? 4 : 0], 10);
                for (c = 0; c < COUNT_OF(configs); c++) {
                    current_scene = &s;
                    current_config = &configs[c];
                    build(&g, &s, &configs[c]);
                    for (current_radius = 1; current_radius < 3; current_radius++) {
                        check_iterators(&g, &s, current_radius);
                        check_list(&g, &s, current_radius, 0);
                    }
                }
                forget(&s);
            }
    ugrid_free(&g);
    describe = NULL;
}

/* Four points, two pairs within 0.15; and a desc that takes them. */
static const real four_points[] = {(real)0.1, (real)0.1, (real)0.1, (real)0.2, (real)0.1, (real)0.1,
                                   (real)0.9, (real)0.9, (real)0.9, (real)0.9, (real)0.9,
                                       (real)0.8};

static ugrid_desc good_desc(void)
{
    ugrid_desc d;
    memset(&d, 0, sizeof d);
    d.dim = 3;
    d.max[0] = d.max[1] = d.max[2] = 1;
    d.cell = (real)0.25;
    d.method = UGRID_COUNT;
    return d;
}

static int gathers(const config *c) { return sorting(c) && !c->placement && !c->no_records; }

/* n particles on one spot, or in three clouds. Which configurations: those that gather, or the
   others; every manyth. */
static void crowd(int which_input, int bounds, int32_t n, int gathering, int every)
{
    config *configs = all_configs();
    ugrid g = {0};
    scene s;
    ptrdiff_t c, counter = bounds;
    make_scene(&s, 3, bounds, &boxes[4], &inputs[which_input], n);
    current_radius = 1;
    for (c = 0; c < arrlen(configs); c++) {
        if (gathers(&configs[c]) != gathering || counter++ % every) continue;
        current_scene = &s;
        current_config = &configs[c];
        build(&g, &s, &configs[c]);
        CHECK_RESULT(ugrid_validate(&g), UGRID_OK);
        check_near_half(&g, &s, 1);
        check_list(&g, &s, 1, 0);
        check_list(&g, &s, 1, UGRID_PLACES | UGRID_HALF);
        check_counts(&g, &s, 1, UGRID_PLACES | UGRID_HALF);
        check_pairs(&g, &s, 1);
        check_neighbors_at(&g, &s, 1);
    }
    forget(&s);
    ugrid_free(&g);
    arrfree(configs);
}

/* More candidates than the buffers of the searches hold. */
static void test_crowds(void **state)
{
    SLOW_TEST();
    int bounds;
    (void)state;
    dice = wl_seed(12);
    describe = describe_case;
    for (bounds = 0; bounds < 8; bounds += 5) {
        crowd(3, bounds, UGRID_I_GATHER + 6, 1, 6 * share());
        crowd(1, bounds, UGRID_I_HITS + 100, 0, 3 * share());
        crowd(3, bounds, 2 * UGRID_I_HITS + 1, 0, 3 * share());
    }
    describe = NULL;
}

/* Spheres of two sizes, 1:10. Each touching pair is met once by a half walk whose radius is the
   largest diameter; a TIGHT grid is built for boxes of that size. */
static void test_two_sizes(void **state)
{
    config *configs = all_configs();
    ugrid g = {0};
    scene s;
    int bounds;
    ptrdiff_t c;
    int32_t i, j, touching;
    (void)state;
    dice = wl_seed(13);
    describe = describe_case;
    for (bounds = 0; bounds < ALL_BOUNDS; bounds++) {
        make_scene(&s, 3, bounds, &boxes[4], &inputs[5], 40);
        for (c = 0; c < arrlen(configs); c++) {
            if (!possible(&configs[c], &s)) continue;
            current_scene = &s;
            current_config = &configs[c];
            build(&g, &s, &configs[c]);
            check_near_half(&g, &s, 1); /* radius[1] = cell: the diameter of the big ones */
            for (i = 0, touching = 0; i < s.n; i++) for (j = 0; j < i; j++) {
                double const reach = (double)s.cell / 2 * ((i < 3 ? 1 : 0.1) + (j < 3 ? 1 : 0.1));
                if (classify(&s, s.pos + 3 * i, s.pos + 3 * j, reach) != WITHIN) continue;
                CHECK(met[i * s.n + j] + met[j * s.n + i] == 1);
                touching++;
            }
            CHECK(touching > 5);
        }
        forget(&s);
    }
    ugrid_free(&g);
    arrfree(configs);
    describe = NULL;
}

/* Pairs whose distance is the radius but for a few units in the last place, one of the two beside a
   border between cells, or the seam of a periodic axis: where a search that does not reach a little
   further than the radius loses one. */
static void test_rim(void **state)
{
    static const config configs[] = {
        {UGRID_COUNT, 0, UGRID_LOOSE, 0, UGRID_STRIPS, UGRID_ROWS, 0},
        {UGRID_LIST, 0, UGRID_LOOSE, 0, UGRID_CELLS, UGRID_MORTON, 0},
        {UGRID_LIST, 0, UGRID_TIGHT, 0.3, UGRID_CELLS, UGRID_ROWS, 0},
        {UGRID_SORT, 0, UGRID_TIGHT, 1, UGRID_CELLS, UGRID_ROWS, 0},
        {UGRID_COUNT, 0, UGRID_TIGHT, 1.6, UGRID_CELLS, UGRID_ROWS, 0},
        {UGRID_FIXED, 0, UGRID_TIGHT, 1.0000009, UGRID_CELLS, UGRID_ROWS, 0},
        {UGRID_LIST, 0, UGRID_TIGHT, 2.0000004, UGRID_CELLS, UGRID_MORTON, 0},
    };
    ugrid g = {0};
    scene s;
    int round, c, kinds[3] = {0, 0, 0};
    (void)state;
    dice = wl_seed(31);
    describe = describe_case;
    current_radius = 0;
    for (round = 0; round < 40000 / share(); round++) {
        real radius, other, p[3], q[3], twice[6];
        int const a = roll(2), up = roll(2);
        memset(&s, 0, sizeof s);
        s.input = "rim";
        s.dim = 2;
        s.bounds = roll(4);
        set_box(&s, &boxes[4 + roll(2)]);
        if (roll(2)) s.min[0] -= 7, s.max[0] -= 7; /* further from zero the numbers are coarser */
        s.radius[0] = radius = s.cell * between((real)0.1, (real)1.9);
        other = between(s.min[1 - a], s.max[1 - a]);
        /* on a border, or half way: the box of a TIGHT particle as large as a cell then ends on
           two */
        q[a] = s.min[a] + edge(&s, a) * (real)roll(2 * s.cells[a] + 1) / (real)(2 * s.cells[a]);
        q[a] = beside(beside(q[a], roll(3) - 1), roll(3) - 1);
        p[a] = up ? q[a] + radius : q[a] - radius;
        if (periodic_axis(&s, a) && p[a] < s.min[a]) p[a] += edge(&s, a);
        if (periodic_axis(&s, a) && p[a] >= s.max[a]) p[a] -= edge(&s, a);
        p[a] = beside(beside(p[a], roll(3) - 1), roll(3) - 1);
        p[1 - a] = q[1 - a] = other;
        if (!in_box(&s, p) || !in_box(&s, q)) continue;
        s.n = 2;
        memcpy(twice, p, 2 * sizeof *p);
        memcpy(twice + 2, q, 2 * sizeof *p);
        s.pos = twice;
        for (c = 0; c < COUNT_OF(configs); c++) {
            int const truth = judge_rim(&s, p, q, radius);
            int64_t pairs = -1;
            int32_t counts[2], ids[2], found = -1;
            current_scene = &s;
            current_config = &configs[c];
            build(&g, &s, &configs[c]);
            kinds[truth]++;
            CHECK_RESULT(ugrid_count_pairs(&g, radius, &pairs), UGRID_OK);
            CHECK(pairs == (truth == WITHIN));
            CHECK_RESULT(ugrid_count_neighbors(&g, radius, 0, counts), UGRID_OK);
            CHECK(counts[0] == (truth == WITHIN) && counts[1] == (truth == WITHIN));
            CHECK_RESULT(ugrid_query(&g, p, radius, ids, 2, &found), UGRID_OK);
            CHECK(found == 1 + (truth == WITHIN));
        }
    }
    CHECK(kinds[OUTSIDE] > 100 && kinds[WITHIN] > 100);
    ugrid_free(&g);
    describe = NULL;
}

/* One particle in the middle of each cell tells in which order a walk visits the cells: CELLS and
   STRIPS row by row; MODULAR and HYBRID by labels, which repeat after 2 * rings + 1 cells (HYBRID:
   but along x, where its strips run). */
static void test_walk_order(void **state)
{
    enum { SIDE = 9 };
    ugrid g = {0};
    ugrid_desc d;
    real p[3 * SIDE * SIDE * SIDE];
    int walk, rings;
    int32_t i, place;
    (void)state;
    memset(&d, 0, sizeof d);
    d.dim = 3;
    d.max[0] = d.max[1] = d.max[2] = SIDE;
    d.cell = 1;
    d.method = UGRID_COUNT;
    for (i = 0; i < SIDE * SIDE * SIDE; i++) {
        p[3 * i] = (real)(i % SIDE) + (real)0.5;
        p[3 * i + 1] = (real)(i / SIDE % SIDE) + (real)0.5;
        p[3 * i + 2] = (real)(i / SIDE / SIDE) + (real)0.5;
    }
    for (walk = UGRID_CELLS; walk <= UGRID_HYBRID; walk++)
        for (rings = 1; rings <= 3; rings++) {
            int32_t const labels = walk == UGRID_MODULAR || walk == UGRID_HYBRID ? 2 * rings + 1 :
                SIDE;
            d.walk = (ugrid_walk)walk;
            CHECK_RESULT(ugrid_build(&g, &d, p, 0, SIDE * SIDE * SIDE), UGRID_OK);
            for (place = 0; place < g.n; place++) {
                ugrid_near near = ugrid_near_within(&g, p + 3 * place, (real)rings - (real)0.25);
                int32_t before = -1, visited = 0;
                for (; ugrid_next(&near); visited++) {
                    int32_t const x = near.id % SIDE, y = near.id / SIDE % SIDE,
                        z = near.id / SIDE / SIDE;
                    int32_t const key = ((z % labels) * SIDE + y % labels) * SIDE +
                        (walk == UGRID_HYBRID ? x : x % labels);
                    CHECK(key > before);
                    before = key;
                }
                CHECK(visited <= (2 * rings + 1) * (2 * rings + 1) * (2 * rings + 1) &&
                    visited >= (rings + 1) * (rings + 1) * (rings + 1));
            }
        }
    ugrid_free(&g);
}

/* A radius of a hundred thousand cells finds everything, in about the time of a small one. */
static void test_huge_radius(void **state)
{
    config *configs = all_configs();
    ugrid g = {0};
    scene s;
    ptrdiff_t c;
    int bounds;
    int64_t pairs = -1;
    (void)state;
    dice = wl_seed(32);
    describe = describe_case;
    for (bounds = 0; bounds < ALL_BOUNDS; bounds++) {
        make_scene(&s, 3, bounds, &boxes[5], &inputs[0], 20);
        for (c = 0; c < arrlen(configs); c++) {
            if (!possible(&configs[c], &s)) continue;
            current_scene = &s;
            current_config = &configs[c];
            build(&g, &s, &configs[c]);
            CHECK_RESULT(ugrid_count_pairs(&g, s.cell * 100000, &pairs), UGRID_OK);
            CHECK(pairs == 190);
        }
        forget(&s);
    }
    ugrid_free(&g);
    arrfree(configs);
    describe = NULL;
}

/* Boxes of the size of a cell touch two cells along an axis, never three, also where cell and width
   of a cell differ by rounding. */
static void test_spans(void **state)
{
    ugrid g = {0};
    ugrid_desc d = good_desc();
    int k;
    (void)state;
    d.placement = UGRID_TIGHT;
    for (k = 2; k < 100; k++) {
        d.cell = 1 / (real)k;
        d.size = 0;
        CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_OK);
        CHECK(g.spans == 8);
        d.size = d.cell * (real)1.5;
        CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_OK);
        CHECK(g.spans == (k == 2 ? 8 : 27));
    }
    ugrid_free(&g);
}

/* ugrid_near_point is ugrid_near_within with the edge of a cell, and walks that cannot start visit
   nothing. */
static void test_near_point(void **state)
{
    ugrid g = {0}, none = {0};
    ugrid_near a, b;
    scene s;
    config const c = {UGRID_COUNT, 0, UGRID_LOOSE, 0, UGRID_CELLS, UGRID_ROWS, 0};
    real nowhere[3] = {(real)NAN, 0, 0}, far[3] = {0, 0, (real)INFINITY};
    (void)state;
    make_scene(&s, 3, 0, &boxes[4], &inputs[0], 50);
    build(&g, &s, &c);
    a = ugrid_near_point(&g, s.pos);
    b = ugrid_near_within(&g, s.pos, g.desc.cell);
    while (ugrid_next(&a)) CHECK(ugrid_next(&b) && a.id == b.id && a.place == b.place);
    CHECK(!ugrid_next(&b));
    a = ugrid_near_point(&g, nowhere);
    CHECK(!ugrid_next(&a));
    a = ugrid_near_point(&g, far);
    CHECK(!ugrid_next(&a) && !ugrid_next_range(&a));
    a = ugrid_near_within(&g, s.pos, 0);
    CHECK(!ugrid_next(&a));
    a = ugrid_near_within(&g, s.pos, -1);
    CHECK(!ugrid_next(&a));
    a = ugrid_near_within(&g, s.pos, (real)NAN);
    CHECK(!ugrid_next(&a));
    a = ugrid_near_within(&g, s.pos, (real)INFINITY);
    CHECK(!ugrid_next(&a));
    a = ugrid_near_point(&none, s.pos);
    CHECK(!ugrid_next(&a) && !ugrid_next_range(&a));
    forget(&s);
    ugrid_free(&g);
}
