/* large.c - a part of test_lbvh.c: the number of pairs of a large workload, against a number
   counted by another program.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Counted by comparing all 5 * 10^9 pairs in a program of its own: see ../ugrid/large.c. */
#define TOTAL_UNIFORM_100K 2866956

static void test_uniform_100k(void **state)
{
    int32_t const n = 100000;
    int64_t const rim = IS_FLOAT ? 0 : 100; /* a few pairs at the rim go the other way in double */
    float *p = NEW(float, 3 * n);
    real *pos = NEW(real, 3 * n);
    int64_t *offsets = NEW(int64_t, n + 1), needed = 0, sum = 0;
    int32_t *counts = NEW(int32_t, n), i;
    lbvh merged = {0}, split = {0};
    lbvh_queries q;
    lbvh_desc d;
    (void)state;
    wl_uniform(n, 7, p);
    for (i = 0; i < 3 * n; i++) pos[i] = (real)p[i];
    memset(&d, 0, sizeof d);
    d.kind = LBVH_POINTS;
    CHECK_RESULT(lbvh_build(&merged, &d, pos, 0, n), LBVH_OK);
    d.builder = LBVH_SPLIT;
    CHECK_RESULT(lbvh_build(&split, &d, pos, 0, n), LBVH_OK);
    check_same_tree(&merged, &split);
    check_order(&split, split.code);
    CHECK_RESULT(lbvh_validate(&split), LBVH_OK);
    memset(&q, 0, sizeof q);
    q.kind = LBVH_POINTS;
    q.radius = (real)wl_radius(n, 30);
    q.flags = LBVH_PLACES | LBVH_HALF;
    CHECK_RESULT(lbvh_overlaps(&merged, &q, offsets, NULL, 0, &needed), LBVH_BUFFER_TOO_SMALL);
    CHECK(2 * needed >= TOTAL_UNIFORM_100K - rim && 2 * needed <= TOTAL_UNIFORM_100K + rim);
    if (share() == 1) {
        q.flags = 0;
        CHECK_RESULT(lbvh_count_overlaps(&merged, &q, counts), LBVH_OK);
        for (i = 0; i < n; i++) sum += counts[i];
        CHECK(sum == 2 * needed);
    }
    lbvh_free(&merged);
    lbvh_free(&split);
    free(p);
    free(pos);
    free(offsets);
    free(counts);
}
