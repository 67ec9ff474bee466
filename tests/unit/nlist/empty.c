/* empty.c - a part of test_nlist.c: lists of no particles, or of no neighbours: saved,
   renumbered, filled again, summed; and nlist_verify.
   SPDX-License-Identifier: MIT OR Unlicense */

/* A list of no particles is saved and loaded, and the next build takes it over. */
static void test_file_of_nobody(void **state)
{
    int options;
    (void)state;
    for (options = 0; options < 16; options++) {
        nlist list = {0}, loaded = {0};
        nlist_desc d = plain_desc();
        int64_t size;
        void *bytes;
        d.layout = (nlist_layout)(options % 4);
        d.half = options >> 2 & 1;
        d.history = options & 8 ? 4 : 0;
        d.skin = (real)0.125;
        CHECK_RESULT(nlist_build_brute(&list, &d, NULL, 0, 0), NLIST_OK);
        bytes = saved(&list, &size);
        (void)full_list(&loaded, NLIST_HYBRID, NULL);
        CHECK_RESULT(nlist_load(&loaded, &d, bytes, size), NLIST_OK);
        CHECK(loaded.n == 0 && loaded.total == 0 && loaded.built);
        CHECK_RESULT(nlist_remap(&loaded, NULL, 4), NLIST_OK);
        CHECK_RESULT(nlist_build_brute(&loaded, &d, four, 0, 4), NLIST_OK);
        CHECK(loaded.total == (d.half ? 4 : 8));
        free(bytes);
        nlist_free(&list);
        nlist_free(&loaded);
    }
}

/* A domain that empties and fills again, by nlist_remap and by builds, in a loop: the same as a
   list that is built from the particles that are there. */
static void test_domain_empties(void **state)
{
    static const int32_t all_gone[4] = {-1, -1, -1, -1};
    int options, step;
    (void)state;
    for (options = 0; options < 32; options++) {
        nlist list = {0};
        nlist_desc d = plain_desc();
        d.layout = (nlist_layout)(options % 4);
        d.half = options >> 2 & 1;
        d.history = options & 8 ? 4 : 0;
        d.events = options >> 4;
        d.skin = (real)0.125;
        CHECK_RESULT(nlist_remap(&list, NULL, 4), NLIST_NOT_BUILT);
        CHECK_RESULT(nlist_build_brute(&list, &d, NULL, 0, 0), NLIST_OK);
        for (step = 0; step < 6; step++) {
            int32_t moved = -1;
            /* four new particles (of no particles any names will do) */
            CHECK_RESULT(nlist_remap(&list, step % 2 ? all_gone : NULL, 4), NLIST_OK);
            CHECK(list.n == 4 && list.total == 0);
            CHECK_RESULT(nlist_validate(&list), NLIST_OK);
            CHECK_RESULT(nlist_moved(&list, four, 0, &moved), NLIST_OK);
            CHECK(moved == 1);
            CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
            CHECK_RESULT(nlist_validate(&list), NLIST_OK);
            CHECK(list.total == (d.half ? 4 : 8) &&
                (!d.events || list.event_count[NLIST_BEGUN] == 4));
            CHECK(!d.history || oracle_holds(nlist_history(&list, nlist_find(&list, 0, 1)), 4, 0));
            write_history(&list);
            if (step % 3 == 2) CHECK_RESULT(nlist_build_brute(&list, &d, NULL, 0, 0), NLIST_OK);
            else CHECK_RESULT(nlist_remap(&list, all_gone, 0), NLIST_OK); /* and go */
            CHECK(list.n == 0 && list.total == 0 && list.built);
            CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        }
        nlist_free(&list);
    }
}

/* A list of no particles stays one when a build runs out of memory. */
static void test_nobody_out_of_memory(void **state)
{
    int layout, k;
    (void)state;
    for (layout = 0; layout < 4; layout++) for (k = 1; k < 9; k++) {
        heap h = {0, 0, 0, 0, 0, 0};
        nlist list = {0};
        nlist_desc d = plain_desc();
        nlist_result r;
        d.layout = (nlist_layout)layout;
        d.allocator = allocator_of(&h);
        CHECK_RESULT(nlist_build_brute(&list, &d, NULL, 0, 0), NLIST_OK);
        h.fail_at = h.calls + k;
        r = nlist_build_brute(&list, &d, four, 0, 4);
        CHECK(r == NLIST_OK || (r == NLIST_OUT_OF_MEMORY && list.n == 0 && list.built));
        CHECK(k > 1 || r == NLIST_OUT_OF_MEMORY); /* the second: counts, and searches again */
        if (r == NLIST_OUT_OF_MEMORY) CHECK_RESULT(nlist_remap(&list, NULL, 4), NLIST_OK);
        CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
        CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        nlist_free(&list);
        CHECK(h.live_blocks == 0 && !h.wrong);
    }
}

/* nlist_verify: what it refuses, and which rows it looks at. */
static void test_verify(void **state)
{
    static const real row[15] = {0, 0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0, 0};
    nlist list = {0};
    nlist_desc d = plain_desc();
    int32_t bad = 9;
    (void)state;
    CHECK_RESULT(nlist_verify(&list, &d, row, 0, 2, 0, &bad), NLIST_NOT_BUILT);
    CHECK(bad == -1);
    CHECK_RESULT(nlist_build_brute(&list, &d, row, 0, 5), NLIST_OK);
    CHECK_RESULT(nlist_verify(NULL, &d, row, 0, 2, 0, &bad), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_verify(&list, NULL, row, 0, 2, 0, &bad), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_verify(&list, &d, NULL, 0, 2, 0, &bad), NLIST_BAD_ARGUMENT);
    /* a count of numbers */
    CHECK_RESULT(nlist_verify(&list, &d, row, 3, 2, 0, &bad), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_verify(&list, &d, row, 0, -1, 0, &bad), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_verify(&list, &d, row, 0, 5, 0, NULL), NLIST_OK);
    /* seed 0 begins with particle 0: two samples are 0 and 2 */
    CHECK(list.rows[0].partner[list.rows[0].start[3]] == 2);
    list.rows[0].partner[list.rows[0].start[3]] = 0;
    CHECK_RESULT(nlist_verify(&list, &d, row, 0, 2, 0, &bad), NLIST_OK);
    CHECK_RESULT(nlist_verify(&list, &d, row, 0, 5, 0, &bad), NLIST_INVALID);
    CHECK(bad == 3);
    CHECK_RESULT(nlist_verify(&list, &d, row, 0, 5, 0, NULL), NLIST_INVALID);
    nlist_free(&list);
}

/* Nothing to add up: no way is refused that a full list of this layout would need a unit or another
   width for. */
static void test_sums_of_little(void **state)
{
    static const nlist_mode modes[] = {NLIST_AUTO, NLIST_PER_PARTICLE, NLIST_PER_CONTACT,
        NLIST_REDUCE};
    nlist list = {0};
    nlist_desc d = plain_desc();
    nlist_sums how;
    int called = 0, k;
    (void)state;
    memset(&how, 0, sizeof how);
    how.values = 1;
    d.layout = NLIST_STATIC;
    d.width = 3; /* a width that NLIST_REDUCE does not support */
    d.half = d.deterministic = 1; /* which needs a unit */
    for (k = 0; k < 8; k++) {
        how.mode = modes[k % 4];
        if (k == 4) CHECK_RESULT(nlist_build_brute(&list, &d, NULL, 0, 0), NLIST_OK);
        CHECK_RESULT(nlist_sum(&list, &how, never_called, &called, NULL),
            k < 4 ? NLIST_NOT_BUILT : NLIST_OK);
    }
    CHECK(!called);
    nlist_free(&list);
}

static int add_ones(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    (void)i;
    (void)j;
    (void)history;
    own[0] = other[0] = 1;
    own[*(int *)user - 1] = other[*(int *)user - 1] = 1;
    return 1;
}

/* Sums in units of several values, then of one: nothing is written behind the last particle's. */
static void test_sums_end(void **state)
{
    nlist list = {0};
    nlist_desc d = plain_desc();
    nlist_sums how;
    int values;
    (void)state;
    memset(&how, 0, sizeof how);
    how.unit = 0.25;
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
    for (values = 2; values > 0; values--) {
        real sums[9] = {5, 5, 5, 5, 5, 5, 5, 5, 5};
        int k;
        how.values = values;
        CHECK_RESULT(nlist_sum(&list, &how, add_ones, &values, sums), NLIST_OK);
        for (k = 0; k < 9; k++) CHECK((sums[k] == 5) == (k >= 4 * values));
    }
    nlist_free(&list);
}
