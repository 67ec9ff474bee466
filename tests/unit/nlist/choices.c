/* choices.c - a part of test_nlist.c: defaults, result texts, sums that are refused,
   deterministic sums, empty lists, a reach of half a period.
   SPDX-License-Identifier: MIT OR Unlicense */

static void test_defaults(void **state)
{
    nlist_desc d, out;
    (void)state;
    memset(&d, 0, sizeof d);
    d.radius = 2;
    CHECK_RESULT(nlist_defaults(&out, &d), NLIST_OK);
    CHECK(out.dim == 3 && out.layout == NLIST_COMPACT && out.radius == 2 && !out.half &&
        !out.history && !out.events && !out.grow);
    d.layout = NLIST_STATIC;
    CHECK_RESULT(nlist_defaults(&out, &d), NLIST_OK);
    CHECK(out.width == 16);
    d.half = 1;
    CHECK_RESULT(nlist_defaults(&out, &d), NLIST_OK);
    CHECK(out.width == 8);
    d.width = 5;
    d.dim = 2;
    CHECK_RESULT(nlist_defaults(&out, &d), NLIST_OK);
    CHECK(out.width == 5 && out.dim == 2);
}

/* Every result has a text of its own that names what to change. */
static void test_texts(void **state)
{
    static const struct { nlist_result r; const char *word; } texts[] = {
        {NLIST_OK, "well"}, {NLIST_BAD_ARGUMENT, "counts bytes"}, {NLIST_BAD_DIM, "desc.dim"},
        {NLIST_BAD_RADIUS, "desc.radius"}, {NLIST_BAD_SKIN, "desc.skin"},
        {NLIST_BAD_OPTION, "desc.layout"}, {NLIST_BAD_WIDTH, "desc.width"},
        {NLIST_BAD_HISTORY, "desc.history"}, {NLIST_BAD_CAPACITY, "desc.capacity"},
        {NLIST_BAD_BOX, "desc.min"}, {NLIST_BAD_PERIOD, "period"}, {NLIST_BAD_STARTS, "starts"},
        {NLIST_TOO_MANY_IMAGES, "desc.radius"}, {NLIST_BAD_SOURCE, "grid"},
        {NLIST_BAD_EXCLUSIONS, "desc.exclude"}, {NLIST_BAD_ALLOCATOR, "desc.allocator"},
        {NLIST_BAD_INDEX, "list.bad_id"}, {NLIST_BAD_UNIT, "how.unit"},
        {NLIST_BAD_VALUES, "how.values"}, {NLIST_SUM_OVERFLOW, "how.unit"},
        {NLIST_NOT_FINITE, "list.bad_id"}, {NLIST_TOO_MANY, "2^31"},
        {NLIST_ROW_FULL, "list.needed_width"}, {NLIST_LIST_FULL, "list.needed_entries"},
        {NLIST_BUFFER_TOO_SMALL, "size"}, {NLIST_OUT_OF_MEMORY, "desc.allocator"},
        {NLIST_NOT_BUILT, "build"}, {NLIST_BAD_FILE, "format"}, {NLIST_INVALID, "damaged"},
        {NLIST_CUDA_ERROR, "cuda_error"},
        {NLIST_BAD_ROWS, "desc.rows"}, {NLIST_NOT_RUN, "desc.parallel.run"},
    };
    int k, other;
    (void)state;
    CHECK(COUNT_OF(texts) == NLIST_RESULT_COUNT);
    for (k = 0; k < COUNT_OF(texts); k++) {
        const char *text = nlist_result_text(texts[k].r);
        CHECK((int)texts[k].r == k && strstr(text, texts[k].word) != NULL);
        CHECK(strncmp(text, "NLIST_", 6) == 0 && strstr(text, ": ") == strchr(text, ':'));
        for (other = 0; other < k; other++)
            CHECK(strcmp(text, nlist_result_text((nlist_result)other)) != 0);
    }
    CHECK(strncmp(nlist_result_text(NLIST_NOT_BUILT), "NLIST_NOT_BUILT: ", 17) == 0);
    CHECK(*nlist_result_text((nlist_result)-1) && *nlist_result_text(NLIST_RESULT_COUNT) &&
        *nlist_result_text((nlist_result)1000));
    CHECK(nlist_version() == 10000 * NLIST_VERSION_MAJOR + 100 * NLIST_VERSION_MINOR +
        NLIST_VERSION_PATCH && nlist_version() > 0);
}

static int never_called(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    (void)i;
    (void)j;
    (void)history;
    (void)own;
    (void)other;
    ++*(int *)user;
    return 0;
}

static void test_bad_sums(void **state)
{
    static const struct { int32_t values; int mode; double unit; nlist_result want; } bad[] = {
        {0, 0, 0, NLIST_BAD_VALUES}, {17, 0, 0, NLIST_BAD_VALUES}, {-1, 0, 0, NLIST_BAD_VALUES},
        {1, -1, 0, NLIST_BAD_OPTION}, {1, 4, 0, NLIST_BAD_OPTION}, {1, 0, -1, NLIST_BAD_UNIT},
        {1, 0, NAN, NLIST_BAD_UNIT}, {1, 0, INFINITY, NLIST_BAD_UNIT},
        {1, NLIST_REDUCE, 0, NLIST_BAD_WIDTH},
    };
    nlist list = {0};
    nlist_desc d = full_list(&list, NLIST_HYBRID, NULL);
    nlist_sums how;
    real sums[4] = {3, 3, 3, 3};
    int called = 0, k;
    (void)state;
    d.width = 3;
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
    for (k = 0; k < COUNT_OF(bad); k++) {
        how.values = bad[k].values;
        how.mode = (nlist_mode)bad[k].mode;
        how.unit = bad[k].unit;
        CHECK_RESULT(nlist_sum(&list, &how, never_called, &called, sums), bad[k].want);
    }
    memset(&how, 0, sizeof how);
    how.values = 1;
    CHECK_RESULT(nlist_sum(NULL, &how, never_called, &called, sums), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_sum(&list, NULL, never_called, &called, sums), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_sum(&list, &how, NULL, &called, sums), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_sum(&list, &how, never_called, &called, NULL), NLIST_BAD_ARGUMENT);
    CHECK(called == 0 && sums[0] == 3 && sums[3] == 3);
    CHECK_RESULT(nlist_sum(&list, &how, never_called, &called, sums), NLIST_OK);
    CHECK(called == 4 && sums[0] == 3 && sums[3] == 3); /* it adds nothing */
    nlist_free(&list);
}

/* A list that is to be the same on both sides needs a unit where the order of a sum of floats is
   not defined. */
static void test_deterministic_sums(void **state)
{
    int layout, half, mode;
    (void)state;
    for (layout = 0; layout < 4; layout++) for (half = 0; half < 2; half++)
            for (mode = 0; mode <= NLIST_REDUCE; mode++) {
        int const rows = mode == NLIST_PER_PARTICLE || mode == NLIST_AUTO,
            slots = mode == NLIST_REDUCE && layout == NLIST_STATIC;
        int const defined = !half && (rows || slots);
        nlist list = {0};
        nlist_desc d = plain_desc();
        nlist_sums how;
        real sums[4] = {0, 0, 0, 0};
        int called = 0;
        d.layout = (nlist_layout)layout;
        d.width = 4;
        d.half = half;
        d.deterministic = 1;
        CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
        how.values = 1;
        how.mode = (nlist_mode)mode;
        how.unit = 0;
        CHECK_RESULT(nlist_sum(&list, &how, never_called, &called, sums),
            defined ? NLIST_OK : NLIST_BAD_UNIT);
        how.unit = 0.001;
        CHECK_RESULT(nlist_sum(&list, &how, never_called, &called, sums), NLIST_OK);
        nlist_free(&list);
    }
}

/* A list that was never built, and one built from no particles. Every call has a defined result,
   and calls that need a list refuse only the first. */
static void check_nothing(nlist *list, int built)
{
    static const int32_t no_names[1] = {0};
    nlist_result const answer = built ? NLIST_OK : NLIST_NOT_BUILT;
    nlist_desc d = plain_desc();
    nlist_sums how;
    int64_t needed = -1;
    int32_t moved = -1;
    int called = 0;
    nlist_each e = nlist_of(list, 0);
    CHECK(!nlist_next(&e) && nlist_find(list, 0, 1) == -1 && nlist_find_pair(list, 0, 1) == -1 &&
        list->n == 0 && list->total == 0);
    CHECK(list->built == built);
    CHECK_RESULT(nlist_validate(list), answer);
    CHECK_RESULT(nlist_verify(list, &d, NULL, 0, 4, 1, NULL), answer);
    CHECK_RESULT(nlist_moved(list, NULL, 0, &moved), NLIST_OK);
    CHECK(moved == 1);
    CHECK_RESULT(nlist_pairs(list, NULL, 0, &needed, NULL, 0, NULL), answer);
    CHECK(needed == 0);
    CHECK_RESULT(nlist_save(list, NULL, 0, &needed),
        built ? NLIST_BUFFER_TOO_SMALL : NLIST_NOT_BUILT);
    CHECK_RESULT(nlist_remap(list, NULL, 0), answer);
    CHECK_RESULT(nlist_remap(list, no_names, 0), answer);
    CHECK(list->n == 0 && list->total == 0);
    memset(&how, 0, sizeof how);
    how.values = 1;
    CHECK_RESULT(nlist_sum(list, &how, never_called, &called, NULL), answer);
    CHECK(called == 0);
}

static void test_empty(void **state)
{
    int layout, half;
    (void)state;
    for (layout = 0; layout < 4; layout++) for (half = 0; half < 2; half++) {
        nlist list = {0};
        ugrid grid = {0};
        lbvh tree = {0};
        nlist_desc d;
        check_nothing(&list, 0);
        d = full_list(&list, (nlist_layout)layout, NULL);
        CHECK_RESULT(nlist_build_brute(&list, &d, NULL, 0, 0), NLIST_OK);
        CHECK(list.event_count[NLIST_ENDED] == 2 && list.event_count[NLIST_BEGUN] == 0);
        check_nothing(&list, 1);
        CHECK_RESULT(nlist_build_pairs(&list, &d, NULL, 0, 0), NLIST_OK);
        check_nothing(&list, 1);
        CHECK(ugrid_build(&grid, NULL, NULL, 0, 0) == UGRID_OK &&
            lbvh_build(&tree, NULL, NULL, 0, 0) == LBVH_OK);
        CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, NULL, 0, 0), NLIST_OK);
        check_nothing(&list, 1);
        CHECK_RESULT(nlist_build_lbvh(&list, &d, &tree, NULL, 0, 0), NLIST_OK);
        check_nothing(&list, 1);
        (void)full_list(&list, (nlist_layout)layout, NULL);
        ugrid_free(&grid);
        lbvh_free(&tree);
        CHECK_RESULT(nlist_reserve(&list, &d, 4, 4), NLIST_OK);
        check_nothing(&list, 0);
        nlist_free(&list);
        check_nothing(&list, 0);
    }
}

/* Reach and period: exactly half of it is allowed. Two particles that far apart are near each other
   in one way only. */
static void test_half_a_period(void **state)
{
    static const real pos[6] = {0, 0, 0, 2, 0, 0};
    int layout, half;
    (void)state;
    for (layout = 0; layout < 4; layout++) for (half = 0; half < 2; half++) {
        nlist list = {0};
        nlist_desc d = plain_desc();
        real radii[2] = {(real)0.25, (real)0.5};
        d.layout = (nlist_layout)layout;
        d.half = half;
        d.periodic[0] = 1;
        d.max[0] = 4;
        d.radius = 2;
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_OK);
        CHECK(list.total == 2 - half && nlist_find(&list, 0, 1) >= 0);
        d.radius = oracle_beside(2, 1);
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_BAD_PERIOD);
        d.radius = 1;
        d.skin = 1;
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_OK);
        d.skin = (real)1.25;
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_BAD_PERIOD);
        d.skin = 0;
        d.radii = radii; /* twice the largest counts */
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_OK);
        radii[0] = (real)0.625;
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_BAD_PERIOD);
        CHECK(list.n == 2 && list.total == 0);
        nlist_free(&list);
    }
}
