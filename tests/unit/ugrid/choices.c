/* choices.c - a part of test_ugrid.c: defaults, ugrid_fit, the automatic choices, result texts,
   the version.
   SPDX-License-Identifier: MIT OR Unlicense */

static void test_defaults(void **state)
{
    ugrid_desc d, in;
    (void)state;
    CHECK_RESULT(ugrid_defaults(&d, NULL), UGRID_OK);
    CHECK(d.dim == 3 && d.slots == 32 && d.max_cells == 134217728 && d.method == UGRID_AUTO);
    in = good_desc();
    in.dim = 2;
    in.slots = 5;
    in.max_cells = 1000;
    CHECK_RESULT(ugrid_defaults(&d, &in), UGRID_OK);
    CHECK(d.dim == 2 && d.slots == 5 && d.max_cells == 1000 && d.cell == in.cell);
    CHECK_RESULT(ugrid_defaults(&in, &in), UGRID_OK); /* in place */
    CHECK(in.dim == 2 && in.slots == 5);
    in.max_cells = INT64_MAX;
    CHECK_RESULT(ugrid_defaults(&d, &in), UGRID_OK);
    CHECK(d.max_cells == 2147482624); /* 2^31 - 1024 */
}

/* desc NULL: the box of the points, about two particles per cell. */
static void test_fit(void **state)
{
    enum { N = 2000 };
    ugrid g = {0};
    ugrid_desc d;
    real *p = NEW(real, 3 * N);
    int32_t bad_id = 5;
    int k, a;
    (void)state;
    dice = wl_seed(26);
    for (k = 0; k < 3 * N; k++) p[k] = between(-3, 4);
    CHECK_RESULT(ugrid_build(&g, NULL, p, 0, N), UGRID_OK);
    CHECK_RESULT(ugrid_validate(&g), UGRID_OK);
    CHECK(g.cell_count > N / 4 && g.cell_count < N);
    for (a = 0; a < 3; a++) {
        real low = p[a], high = p[a];
        for (k = 0; k < N; k++) {
            low = p[3 * k + a] < low ? p[3 * k + a] : low;
            high = p[3 * k + a] > high ? p[3 * k + a] : high;
        }
        CHECK(g.desc.min[a] == low && g.desc.max[a] == high);
    }
    d = good_desc(); /* a box and a cell that are given stay */
    CHECK_RESULT(ugrid_fit(&d, p, 0, N, &bad_id), UGRID_OK);
    CHECK(d.max[0] == 1 && d.cell == (real)0.25 && bad_id == -1);
    d.cell = 0;
    CHECK_RESULT(ugrid_fit(&d, p, 0, N, NULL), UGRID_OK);
    CHECK(d.max[0] == 1 && d.cell > (real)0.08 && d.cell < (real)0.12); /* cbrt(2 / 2000) = 0.1 */
    memset(&d, 0, sizeof d);
    d.periodic[0] = 1;
    CHECK_RESULT(ugrid_fit(&d, p, 0, N, NULL), UGRID_BAD_BOX);
    memset(&d, 0, sizeof d);
    d.dim = 7;
    CHECK_RESULT(ugrid_fit(&d, p, 0, N, NULL), UGRID_BAD_DIM);
    d.dim = 3;
    CHECK_RESULT(ugrid_fit(&d, p, 0, -1, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_fit(&d, NULL, 0, 1, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_fit(&d, p, 1, 1, NULL), UGRID_BAD_ARGUMENT);
    ugrid_free(&g);
    free(p);
}

/* The cell that is chosen for a radius told, and the reason. */
static void check_radius(ugrid *g, ugrid_desc d, const real *p, int32_t n, double cell,
                         const char *reason)
{
    int64_t pairs[2] = {0, 0};
    CHECK_RESULT(ugrid_reserve(g, &d, n), UGRID_OK);
    CHECK_RESULT(ugrid_build(g, &d, p, 0, n), UGRID_OK);
    CHECK(strstr(g->cell_reason, reason) != NULL);
    CHECK_BELOW(fabs((double)g->desc.cell / cell - 1), 0.01);
    CHECK_RESULT(ugrid_count_pairs(g, d.radius, &pairs[0]), UGRID_OK);
    d.cell = d.radius;
    CHECK_RESULT(ugrid_build(g, &d, p, 0, n), UGRID_OK);
    CHECK(g->desc.cell == d.radius && strcmp(g->cell_reason, "chosen by the caller") == 0);
    CHECK_RESULT(ugrid_count_pairs(g, d.radius, &pairs[1]), UGRID_OK);
    CHECK(pairs[0] == pairs[1]);
}

/* 2000 points: 0.1 and 0.0316 are the edges of cells with two each, in 3D and in 2D. */
static void test_radius(void **state)
{
    enum { N = 2000 };
    static const struct { int32_t dim; double radius, cell; const char *reason; } cases[] = {
        {3, 0.01, 0.1, "2 particles"}, {3, 0.11, 0.11, "the radius: it"},
        {3, 0.31, 0.31, "the radius: it"}, {3, 0.33, 0.33 / 2, "a part"},
        {3, 0.39, 0.39 / 2, "a part"}, {3, 0.42, 0.42 / 3, "a part"},
        {2, 0.01, 0.0316, "2 particles"}, {2, 0.17, 0.17, "the radius: it"},
        {2, 0.19, 0.19 / 2, "a part"}, {2, 0.39, 0.39 / 2, "a part"},
        {2, 0.41, 0.41 / 3, "a part"}};
    ugrid g = {0};
    ugrid_desc d;
    real *p = NEW(real, 3 * N);
    int k;
    (void)state;
    dice = wl_seed(26);
    for (k = 0; k < 3 * N; k++) p[k] = between(0, 1);
    for (k = 0; k < COUNT_OF(cases); k++) {
        memset(&d, 0, sizeof d);
        d.max[0] = d.max[1] = d.max[2] = 1;
        d.dim = cases[k].dim;
        d.radius = (real)cases[k].radius;
        check_radius(&g, d, p, N, cases[k].cell, cases[k].reason);
    }
    d.dim = 3;
    d.unbounded = 1;
    check_radius(&g, d, p, N, (double)d.radius, "the radius: an unbounded");
    d.unbounded = 0;
    d.placement = UGRID_TIGHT; /* its size is the cell */
    CHECK_RESULT(ugrid_build(&g, &d, p, 0, N), UGRID_OK);
    CHECK(g.desc.cell == d.radius && g.desc.size == d.radius);
    d.unbounded = 1;
    d.radius = (real)0.01; /* small: it alone says what to do */
    CHECK_RESULT(ugrid_fit(&d, p, 0, N, NULL), UGRID_OK);
    CHECK(d.cell == d.radius);
    ugrid_free(&g);
    free(p);
}

/* SORT by counting, and by its radix sort where cells are many: the arrays are those of COUNT. */
static void test_sort_counts(void **state)
{
    enum { N = 2000 };
    ugrid g[2];
    ugrid_desc d;
    real *p = NEW(real, 3 * N);
    int k, fine;
    (void)state;
    memset(g, 0, sizeof g);
    for (k = 0; k < 3 * N; k++) p[k] = between(0, 1);
    for (fine = 0; fine < 2; fine++) {
        memset(&d, 0, sizeof d);
        d.max[0] = d.max[1] = d.max[2] = 1;
        d.cell = fine ? (real)0.02 : (real)0.1; /* 125,000 cells, or 1000 */
        for (k = 0; k < 2; k++) {
            d.method = k ? UGRID_SORT : UGRID_COUNT;
            CHECK_RESULT(ugrid_build(&g[k], &d, p, 0, N), UGRID_OK);
#ifndef UGRID_PLAIN
            CHECK(ugrid_i_is_counted(&g[k]) == !(k && fine));
#endif
        }
        CHECK(memcmp(g[0].order, g[1].order, N * sizeof *g[0].order) == 0);
        CHECK(memcmp(g[0].start, g[1].start, (size_t)g[0].cell_count * sizeof *g[0].start) == 0);
        for (k = 0; k < N; k++)
            CHECK(g[0].record[k].link == g[1].record[k].link &&
                  memcmp(g[0].record[k].x, g[1].record[k].x, sizeof g[0].record[k].x) == 0);
    }
    ugrid_free(&g[0]);
    ugrid_free(&g[1]);
    free(p);
}

/* How many particles a search meets in the cells around one, of which so many are not empty. */
static double crowd_of(const ugrid *g, int cells)
{
    double sum = 0;
    int32_t c;
    for (c = 0; c < g->cell_count; c++) {
        double const count = g->start[c + 1] - g->start[c];
        sum += count * count;
    }
    return sum / g->n * cells;
}

enum { FITTED = 6000, ALONE = 0, A_HUNDREDTH, TWO_CLUSTERS, TEN_CLUSTERS, ALONG_A_CURVE,
    FITTED_KINDS };

/* Points in a box of edge 1, some of them `far` away. */
static void crowded_points(real *p, int kind, int dim, double far)
{
    int32_t i;
    int a;
    for (i = 0; i < FITTED; i++)
        for (a = 0; a < dim; a++) {
            double x = wl_u(&dice);
            if (kind == ALONE) x += i == 77 ? far : 0;
            if (kind == A_HUNDREDTH && i % 100 == 0) x = far * (x + a);
            if (kind == TWO_CLUSTERS) x += i % 2 * far;
            if (kind == TEN_CLUSTERS) x += far * (i % 10 * (a + 1) % 10);
            if (kind == ALONG_A_CURVE) x = 2 * (double)i + (a == 2 && i % 2);
            p[dim * i + a] = (real)x;
        }
}

/* The automatic cell is not crowded, wherever some of the points are. */
static void test_fit_crowded(void **state)
{
    static const double distances[] = {1e2, 1e4, 1e6, 1e9, 1e15, 1e30};
    real *p = NEW(real, 3 * FITTED);
    int kind, dim, k;
    (void)state;
    dice = wl_seed(27);
    for (kind = 0; kind < FITTED_KINDS; kind++) for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < COUNT_OF(distances); k++) {
            /* cells are told apart up to 2^29 from the origin */
            int const same_point = kind >= TWO_CLUSTERS && distances[k] > (IS_FLOAT ? 1e5 : 1e7);
            ugrid g = {0};
            ugrid_desc d;
            int64_t pairs = 0, want = 0;
            memset(&d, 0, sizeof d);
            d.dim = dim;
            if (same_point || (kind == ALONG_A_CURVE && k > 0)) continue;
            crowded_points(p, kind, dim, distances[k]);
            CHECK_RESULT(ugrid_build(&g, &d, p, 0, FITTED), UGRID_OK);
            CHECK_BELOW(crowd_of(&g, kind == ALONG_A_CURVE ? 3 : dim == 2 ? 9 : 27), 400);
            CHECK(g.desc.unbounded || (dim == 2 && kind == ALONG_A_CURVE) || distances[k] < 1e3);
            if (k == 1 && kind <= A_HUNDREDTH) { /* the same pairs, by cells of a box */
                CHECK_RESULT(ugrid_count_pairs(&g, (real)0.01, &pairs), UGRID_OK);
                d.cell = g.desc.cell;
                d.max[0] = d.max[1] = d.max[2] = 1;
                CHECK_RESULT(ugrid_build(&g, &d, p, 0, FITTED), UGRID_OK);
                CHECK(!g.desc.unbounded);
                CHECK_RESULT(ugrid_count_pairs(&g, (real)0.01, &want), UGRID_OK);
                CHECK(pairs == want);
                memset(&d, 0, sizeof d);
                d.dim = dim;
            }
            d.walk = UGRID_STRIPS; /* what an unbounded grid has not: the box stays */
            CHECK_RESULT(ugrid_build(&g, &d, p, 0, FITTED), UGRID_OK);
            CHECK(!g.desc.unbounded);
            d.walk = UGRID_WALK_AUTO;
            d.outside = UGRID_REFUSE;
            CHECK_RESULT(ugrid_build(&g, &d, p, 0, FITTED), UGRID_OK);
            CHECK(!g.desc.unbounded);
            ugrid_free(&g);
        }
    for (k = 0; k < 3 * FITTED; k++) /* a dense cluster among even points: these need the box */
        p[k] = k / 3 % 30 ? between(0, 1) : between((real)0.3, (real)0.30001);
    {
        ugrid g = {0};
        CHECK_RESULT(ugrid_build(&g, NULL, p, 0, FITTED), UGRID_OK);
        CHECK(!g.desc.unbounded);
        ugrid_free(&g);
    }
    for (k = 0; k < 3 * FITTED; k++) p[k] = 5; /* no cell helps */
    {
        ugrid g = {0};
        CHECK_RESULT(ugrid_build(&g, NULL, p, 0, FITTED), UGRID_OK);
        CHECK(!g.desc.unbounded);
        for (k = 0; k < 3 * FITTED; k++) p[k] = k / 3 % 2 ? between(0, 1) : (real)0.5;
        CHECK_RESULT(ugrid_build(&g, NULL, p, 0, FITTED), UGRID_OK);
        CHECK(!g.desc.unbounded);
        ugrid_free(&g);
    }
    free(p);
}

/* Two points on a line: the cell is their distance, where that is a normal number below the
   largest; else 1. */
static void test_fit_ends(void **state)
{
    real const least = IS_FLOAT ? (real)1.17549435e-38 : (real)2.2250738585072014e-308;
    real const lengths[] = {least, 2 * least, REAL_LARGEST / 2, REAL_LARGEST},
        cells[] = {1, 2 * least, REAL_LARGEST / 2, 1};
    int k;
    (void)state;
    for (k = 0; k < COUNT_OF(lengths); k++) {
        real p[4] = {0, 0, 0, 0};
        ugrid_desc d;
        memset(&d, 0, sizeof d);
        d.dim = 2;
        p[2] = lengths[k];
        CHECK_RESULT(ugrid_fit(&d, p, 0, 2, NULL), UGRID_OK);
        CHECK(d.cell == cells[k]);
    }
}

/* A thin cloud: the automatic cell is that of a line. */
static void test_fit_needle(void **state)
{
    enum { N = 1000 };
    real p[3 * N];
    ugrid g = {0};
    int32_t i;
    (void)state;
    dice = wl_seed(31);
    for (i = 0; i < N; i++) {
        p[3 * i] = (real)i;
        p[3 * i + 1] = between(0, (real)1e-7);
        p[3 * i + 2] = between(0, (real)1e-7);
    }
    CHECK_RESULT(ugrid_build(&g, NULL, p, 0, N), UGRID_OK);
    /* not millions, for two axes that hold one cell each */
    CHECK(g.cell_count > N / 4 && g.cell_count < N);
    ugrid_free(&g);
}

/* All points on a line, in a plane, on one spot near zero and far away: a box of its own for
   each. */
static void test_fit_flat(void **state)
{
    static const struct { real at[3], step[3]; } flats[] = {
        {{0, 0, 0}, {0, 0, 0}}, {{5, 5, 5}, {0, 0, 0}}, {{-5, 5, 0}, {1, 0, 0}},
        {{0, 0, 7}, {1, 1, 0}}, {{0, 1, 0}, {0, 0, 1}}, {{(real)1e30, 0, 0}, {0, 0, 0}},
        {{(real)-1e30, (real)1e-30, 0}, {0, 1, 0}}, {{(real)1e-38, 0, 0}, {0, 0, 0}},
        {{0, 0, 0}, {(real)1e-30, (real)1e-30, (real)1e-30}},
    };
    ugrid g = {0};
    int f, a, dim;
    int32_t i, n;
    (void)state;
    for (f = 0; f < COUNT_OF(flats); f++)
        for (dim = 2; dim <= 3; dim++)
            for (n = 0; n < 60; n += n < 3 ? 1 : 28) {
                real p[3 * 60];
                ugrid_desc d;
                int64_t pairs = -1;
                memset(&d, 0, sizeof d);
                d.dim = dim;
                for (i = 0; i < n; i++)
                    for (a = 0; a < dim; a++)
                        p[i * dim + a] = flats[f].at[a] + flats[f].step[a] * (real)i;
                CHECK_RESULT(ugrid_build(&g, &d, p, 0, n), UGRID_OK);
                CHECK_RESULT(ugrid_validate(&g), UGRID_OK);
                CHECK(g.n == n);
                for (a = 0; a < dim; a++) CHECK(g.desc.min[a] < g.desc.max[a]);
                CHECK_RESULT(ugrid_count_pairs(&g, 1000, &pairs), UGRID_OK);
                CHECK(pairs == (int64_t)n * (n - 1) / 2);
            }
    ugrid_free(&g);
}

/* The automatic choice follows its reason, which names the method. */
static void test_choose(void **state)
{
    static const char names[][6] = {"", "COUNT", "SORT"};
    const char *why = NULL;
    ugrid_desc d = good_desc();
    ugrid g = {0};
    int64_t cells;
    int32_t n;
    int sorted = 0, counted = 0;
    (void)state;
    d.method = UGRID_AUTO;
    for (n = 0; n < 10000000; n = 10 * n + 1)
        for (cells = 1; cells < 10000000000; cells *= 10) {
            ugrid_method const m = ugrid_choose(&d, n, cells, &why);
            CHECK((m == UGRID_COUNT || m == UGRID_SORT) && ugrid_choose(&d, n, cells, NULL) == m);
            CHECK(why && strstr(why, names[m]) == why && strlen(why) > 20);
            CHECK(m == UGRID_COUNT || cells > n);
            sorted |= m == UGRID_SORT;
            counted |= m == UGRID_COUNT;
        }
    CHECK(sorted && counted);
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_OK);
    CHECK(g.desc.method == ugrid_choose(&d, 4, g.cell_count, &why) && g.reason == why);
    d.method = UGRID_LIST;
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_OK);
    CHECK(g.desc.method == UGRID_LIST && g.reason && g.reason != why);
    ugrid_free(&g);
}

/* Every result has a text that begins with its name and names what to change. */
static void test_texts(void **state)
{
    static const struct { ugrid_result r; const char *name, *field; } texts[] = {
        {UGRID_OK, "UGRID_OK", ""}, {UGRID_STOPPED, "UGRID_STOPPED", "callback"},
        {UGRID_BAD_ARGUMENT, "UGRID_BAD_ARGUMENT", "stride"},
        {UGRID_BAD_DIM, "UGRID_BAD_DIM", "desc.dim"}, {UGRID_BAD_BOX, "UGRID_BAD_BOX", "desc.min"},
        {UGRID_BAD_CELL, "UGRID_BAD_CELL", "desc.cell"},
        {UGRID_BAD_SIZE, "UGRID_BAD_SIZE", "desc.size"},
        {UGRID_BAD_SLOTS, "UGRID_BAD_SLOTS", "desc.slots"},
        {UGRID_BAD_OPTION, "UGRID_BAD_OPTION", "max_cells"},
        {UGRID_BAD_WALK, "UGRID_BAD_WALK", "desc.walk"},
        {UGRID_BAD_PLACEMENT, "UGRID_BAD_PLACEMENT", "desc.method"},
        {UGRID_BAD_ALLOCATOR, "UGRID_BAD_ALLOCATOR", "desc.allocator"},
        {UGRID_BAD_RADIUS, "UGRID_BAD_RADIUS", "radius"},
        {UGRID_NOT_FINITE, "UGRID_NOT_FINITE", "grid.bad_id"},
        {UGRID_TOO_MANY_CELLS, "UGRID_TOO_MANY_CELLS", "desc.max_cells"},
        {UGRID_TOO_MANY_ENTRIES, "UGRID_TOO_MANY_ENTRIES", "desc.size"},
        {UGRID_CELL_FULL, "UGRID_CELL_FULL", "grid.needed_slots"},
        {UGRID_BUFFER_TOO_SMALL, "UGRID_BUFFER_TOO_SMALL", "size"},
        {UGRID_OUT_OF_MEMORY, "UGRID_OUT_OF_MEMORY", "desc.allocator"},
        {UGRID_NOT_BUILT, "UGRID_NOT_BUILT", "ugrid_build"},
        {UGRID_INVALID, "UGRID_INVALID", "damaged"},
        {UGRID_CUDA_ERROR, "UGRID_CUDA_ERROR", "cuda_error"},
        {UGRID_BOX_TOO_WIDE, "UGRID_BOX_TOO_WIDE", "span more than the largest"},
        {UGRID_BAD_ROWS, "UGRID_BAD_ROWS", "desc.rows"},
        {UGRID_OUTSIDE_BOX, "UGRID_OUTSIDE_BOX", "desc.outside"},
        {UGRID_BAD_FILTER, "UGRID_BAD_FILTER", "grid.filter"},
        {UGRID_NOT_RUN, "UGRID_NOT_RUN", "desc.parallel.run"},
        {UGRID_BAD_FILE, "UGRID_BAD_FILE", "saved"},
    };
    int k, other;
    (void)state;
    CHECK(COUNT_OF(texts) == UGRID_RESULT_COUNT);
    for (k = 0; k < COUNT_OF(texts); k++) {
        const char *text = ugrid_result_text(texts[k].r);
        CHECK((int)texts[k].r == k && strstr(text, texts[k].name) == text &&
            strstr(text, texts[k].field) != NULL);
        CHECK(strncmp(text + strlen(texts[k].name), ": ", 2) == 0);
        for (other = 0; other < k; other++)
            CHECK(strcmp(text, ugrid_result_text((ugrid_result)other)) != 0);
    }
    /* a stride of 3 counts numbers */
    CHECK(strstr(ugrid_result_text(UGRID_BAD_ARGUMENT), "in bytes"));
    CHECK(ugrid_result_text((ugrid_result)-1) && ugrid_result_text(UGRID_RESULT_COUNT) &&
        ugrid_result_text((ugrid_result)1000));
}

static void test_version(void **state)
{
    (void)state;
    CHECK(ugrid_version() == 10000 * UGRID_VERSION_MAJOR + 100 * UGRID_VERSION_MINOR +
        UGRID_VERSION_PATCH);
    CHECK(ugrid_version() > 0);
    CHECK(sizeof(ugrid_record) == (IS_FLOAT ? 16 : 32));
}
