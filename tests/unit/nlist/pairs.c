/* pairs.c - a part of test_nlist.c: lists as pairs, shifts of periodic images, nlist_find,
   nlist_remap by hand.
   SPDX-License-Identifier: MIT OR Unlicense */

/* All entries, in their order; the image of the partner that a shift names is the one within
   reach. */
static void check_pairs(const nlist *list, const oracle_scene *s)
{
    int64_t needed = -1, k = 0, total = list->total;
    int32_t *pair = NEW(int32_t, 2 * total), *shift = NEW(int32_t, 3 * total), i;
    int a;
    if (total)
        CHECK_RESULT(nlist_pairs(list, pair, total - 1, &needed, s->pos, s->stride, shift),
            NLIST_BUFFER_TOO_SMALL);
    CHECK(!total || needed == total);
    CHECK_RESULT(nlist_pairs(list, pair, total, &needed, s->pos, s->stride, shift), NLIST_OK);
    CHECK(needed == total);
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        for (; nlist_next(&e); k++) {
            const real *p = oracle_point(s, i), *q = oracle_point(s, e.id);
            double square = 0, reach = oracle_reach(s, i, e.id);
            real d[3];
            CHECK(pair[2 * k] == i && pair[2 * k + 1] == e.id);
            nlist_offset(list, p, q, d);
            for (a = 0; a < s->dim; a++) {
                double const length = (double)s->max[a] - (double)s->min[a];
                double const along = (double)q[a] - (double)p[a] + shift[3 * k + a] * length;
                double const size = fabs((double)p[a]) + fabs((double)q[a]) +
                    fabs((double)s->min[a]) + length;
                CHECK(s->periodic[a] || shift[3 * k + a] == 0);
                CHECK(fabs(along - (double)d[a]) <= 16 * REAL_EPSILON * size);
                square += along * along;
            }
            CHECK(s->dim == 3 || shift[3 * k + 2] == 0);
            CHECK(sqrt(square) <= reach + 4 * oracle_slack(s, p, q, reach) + 1e-5 * reach);
        }
    }
    CHECK(k == total);
    free(pair);
    free(shift);
}

static void test_pairs(void **state)
{
    int counter;
    (void)state;
    for (counter = 0; counter < 120; counter++) {
        nlist list = {0};
        oracle_scene s;
        nlist_desc d;
        oracle_make(&s, counter % ORACLE_INPUTS, 2 + roll(2), roll(8), 1 + roll(40), roll(32),
            &dice);
        d = oracle_desc(&s);
        d.layout = (nlist_layout)roll(4);
        d.width = 4;
        d.grow = 1;
        d.half = roll(2);
        CHECK_RESULT(nlist_build_brute(&list, &d, s.pos, s.stride, s.n), NLIST_OK);
        check_pairs(&list, &s);
        oracle_forget(&s);
        nlist_free(&list);
    }
}

/* nlist_find against the rows; ids that are not there. */
static void test_find(void **state)
{
    int layout, half;
    (void)state;
    for (layout = 0; layout < 4; layout++) for (half = 0; half < 2; half++) {
        nlist list = {0};
        oracle_scene s;
        nlist_desc d;
        int32_t i, j;
        oracle_make(&s, ORACLE_UNIFORM, 3, 5, 30, ORACLE_RADII, &dice);
        d = oracle_desc(&s);
        d.layout = (nlist_layout)layout;
        d.width = layout == NLIST_STATIC ? 30 : 2;
        d.half = half;
        CHECK_RESULT(nlist_build_brute(&list, &d, s.pos, s.stride, s.n), NLIST_OK);
        for (i = -2; i < s.n + 2; i++) for (j = -2; j < s.n + 2; j++) {
            int const there = i >= 0 && j >= 0 && i < s.n && j < s.n &&
                s.truth[i * s.n + j] == ORACLE_WITHIN;
            int const rim = i >= 0 && j >= 0 && i < s.n && j < s.n &&
                s.truth[i * s.n + j] == ORACLE_RIM;
            int64_t const entry = nlist_find(&list, i, j);
            if (rim) continue;
            CHECK((entry >= 0) == (there && (!half || i < j)) && entry >= -1);
            CHECK((nlist_find_pair(&list, i, j) >= 0) == there);
            if (half && there) CHECK(nlist_find_pair(&list, i, j) == nlist_find_pair(&list, j, i));
        }
        oracle_forget(&s);
        nlist_free(&list);
    }
}

/* By hand: 0-1, 0-2, 1-2, 2-3 become others; 1 is gone, a new one comes. */
static void test_remap_by_hand(void **state)
{
    static const int32_t names[5] = {4, -1, 0, 2, 1}, all_gone[5] = {-1, -1, -1, -1, -1};
    static const real after[15] = {0, (real)0.5, 0, /* new: */ (real)0.25, 0, 0, 0, (real)1.25, 0,
        /* new: */ 7, 7, 7, 0, 0, 0};
    int layout, half;
    (void)state;
    for (layout = 0; layout < 4; layout++) for (half = 0; half < 2; half++) {
        nlist list = {0};
        nlist_desc d = plain_desc();
        oracle_snapshot before;
        int32_t moved = -1, bad[4] = {0, 1, 2, 3};
        d.layout = (nlist_layout)layout;
        d.half = half;
        d.history = 4;
        d.events = 1;
        d.skin = (real)0.125;
        CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
        CHECK(list.total == (half ? 4 : 8));
        write_history(&list);
        oracle_take(&before, &list);
        bad[2] = 5;
        CHECK_RESULT(nlist_remap(&list, bad, 5), NLIST_BAD_INDEX);
        CHECK(list.bad_id == 2);
        bad[2] = 1;
        CHECK_RESULT(nlist_remap(&list, bad, 5), NLIST_BAD_INDEX);
        CHECK(list.bad_id == 2);
        bad[2] = -2;
        CHECK_RESULT(nlist_remap(&list, bad, 5), NLIST_BAD_INDEX);
        CHECK(list.bad_id == 2);
        check_still_there(&list, &before);
        CHECK_RESULT(nlist_remap(&list, names, 5), NLIST_OK);
        CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        CHECK(list.n == 5 && list.total == (half ? 2 : 4)); /* events are those of the build */
        CHECK(list.event_count[NLIST_BEGUN] == 4 && list.event_count[NLIST_ENDED] == 0);
        /* 0-2 and 2-3, in the rows where they were */
        CHECK(nlist_find(&list, 4, 0) >= 0 && nlist_find(&list, 0, 2) >= 0);
        CHECK((nlist_find(&list, 0, 4) >= 0) == !half && (nlist_find(&list, 2, 0) >= 0) == !half);
        CHECK(oracle_holds(nlist_history(&list, nlist_find(&list, 4, 0)), 4, 3));
        CHECK(oracle_holds(nlist_history(&list, nlist_find(&list, 0, 2)), 4, 204));
        CHECK_RESULT(nlist_moved(&list, after, 0, &moved), NLIST_OK);
        CHECK(moved);
        CHECK_RESULT(nlist_build_brute(&list, &d, after, 0, 5), NLIST_OK);
        CHECK(list.total == (half ? 4 : 8) && list.event_count[NLIST_PERSISTED] == 2 &&
            list.event_count[NLIST_BEGUN] == 2);
        CHECK(nlist_find(&list, 4, 0) >= 0 &&
            oracle_holds(nlist_history(&list, nlist_find(&list, 4, 0)), 4, 3));
        CHECK(nlist_find(&list, 0, 2) >= 0 &&
            oracle_holds(nlist_history(&list, nlist_find(&list, 0, 2)), 4, 204));
        /* 4 is older than the new 1 */
        CHECK((nlist_find(&list, 1, 4) >= 0) == !half && nlist_find(&list, 4, 1) >= 0);
        CHECK(oracle_holds(nlist_history(&list, nlist_find(&list, 4, 1)), 4, 0));
        CHECK_RESULT(nlist_moved(&list, after, 0, &moved), NLIST_OK);
        CHECK(!moved);
        CHECK_RESULT(nlist_remap(&list, names, 0), NLIST_BAD_INDEX);
        CHECK_RESULT(nlist_remap(&list, all_gone, 0), NLIST_OK);
        CHECK(list.n == 0 && list.total == 0);
        oracle_drop_snapshot(&before);
        nlist_free(&list);
    }
}
