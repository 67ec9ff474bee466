/* large.c - a part of test_ugrid.c: the number of pairs of large workloads, against numbers
   counted by other programs; and the generators of these workloads.
   SPDX-License-Identifier: MIT OR Unlicense */

static real *reals_of(const float *p, size_t count)
{
    real *out = NEW(real, count);
    size_t k;
    for (k = 0; k < count; k++) out[k] = (real)p[k];
    return out;
}

static ugrid_desc unit_desc(real radius, ugrid_method method, ugrid_walk walk)
{
    ugrid_desc d;
    memset(&d, 0, sizeof d);
    d.dim = 3;
    d.max[0] = d.max[1] = d.max[2] = 1;
    d.cell = radius;
    d.method = method;
    d.walk = walk;
    d.slots = 100;
    return d;
}

/* A few pairs at the rim go the other way in double. */
static void check_total(int64_t got, int64_t want)
{
    int64_t const rim = IS_FLOAT ? 0 : 100;
    if (got < want - rim || got > want + rim)
        print_error("got %lld, want %lld\n", (long long)got, (long long)want);
    CHECK(got >= want - rim && got <= want + rim);
}

static void check_workload(const real *pos, int32_t n, real radius, ugrid_method method,
    ugrid_walk walk, int64_t want)
{
    ugrid_desc const d = unit_desc(radius, method, walk);
    ugrid g = {0};
    int64_t pairs = -1, sum = 0, needed = -1, *offsets;
    int32_t *counts = NEW(int32_t, n), i;
    CHECK_RESULT(ugrid_build(&g, &d, pos, 0, n), UGRID_OK);
    CHECK_RESULT(ugrid_count_pairs(&g, radius, &pairs), UGRID_OK);
    check_total(2 * pairs, want);
    CHECK_RESULT(ugrid_count_neighbors(&g, radius, 0, counts), UGRID_OK);
    for (i = 0; i < n; i++) sum += counts[i];
    CHECK(sum == 2 * pairs);
    offsets = NEW(int64_t, n + 1);
    CHECK_RESULT(ugrid_neighbors(&g, radius, UGRID_HALF | UGRID_PLACES, offsets, NULL, 0, &needed),
        UGRID_BUFFER_TOO_SMALL);
    CHECK(needed == pairs);
    free(offsets);
    free(counts);
    ugrid_free(&g);
}

/* The first was counted by comparing all 5 * 10^9 pairs in a program of its own; the others by
   other programs. */
#define TOTAL_UNIFORM_100K 2866956
#define TOTAL_UNIFORM_1M   29352150
/* 29997354 counts d < r; three pairs lie exactly at r, and d <= r counts here. */
#define TOTAL_DAM_1M       (29997354 + 6)

static void test_uniform_100k(void **state)
{
    SLOW_TEST();
    int32_t const n = 100000;
    float *p = NEW(float, 3 * n);
    real *pos;
    int method, walk;
    (void)state;
    wl_uniform(n, 7, p);
    pos = reals_of(p, 3 * (size_t)n);
    for (method = UGRID_COUNT; method <= UGRID_LIST_PACKED; method++)
        for (walk = UGRID_CELLS; walk <= UGRID_HYBRID; walk++) {
            if ((walk == UGRID_STRIPS || walk == UGRID_HYBRID) && method > UGRID_SORT) continue;
            if (share() > 2 && walk != UGRID_CELLS) continue;
            if (share() > 4 && (method + lot()) % 3) continue;
            check_workload(pos, n, (real)wl_radius(n, 30), (ugrid_method)method, (ugrid_walk)walk,
                TOTAL_UNIFORM_100K);
        }
    free(pos);
    free(p);
}

static void test_million(void **state)
{
    int32_t const n = 1000000;
    float *p = NEW(float, 3 * n);
    real *pos;
    (void)state;
    if (share() > 2) {
        free(p);
        skip();
    }
    wl_uniform(n, 1, p);
    pos = reals_of(p, 3 * (size_t)n);
    check_workload(pos, n, (real)wl_radius(n, 30), UGRID_COUNT, UGRID_WALK_AUTO, TOTAL_UNIFORM_1M);
    free(pos);
    CHECK(wl_sort_morton(n, p, NULL));
    pos = reals_of(p, 3 * (size_t)n);
    check_workload(pos, n, (real)wl_radius(n, 30), UGRID_SORT, UGRID_HYBRID, TOTAL_UNIFORM_1M);
    free(pos);
    wl_dam(n, 3, p);
    pos = reals_of(p, 3 * (size_t)n);
    check_workload(pos, n, (real)0.005577566f, UGRID_COUNT, UGRID_WALK_AUTO, TOTAL_DAM_1M);
    free(pos);
    free(p);
}

/* The generators themselves: order by Morton codes, motion within bounds, two sizes in their
   cube. */
static void test_workloads(void **state)
{
    int32_t const n = 5000;
    float *p = NEW(float, 3 * n), *q = NEW(float, 3 * n), *both = NEW(float, 3 * WL_BOTH),
        *radius = NEW(float, WL_BOTH), most = 0;
    int32_t *was = NEW(int32_t, n), i, big = 0;
    uint32_t x, y, z;
    (void)state;
    for (i = 0; i < 1000; i++) {
        float at[3];
        x = (uint32_t)(i * 7 % 1024), y = (uint32_t)(i * 131 % 1024), z = (uint32_t)(i * 31 % 1024);
        at[0] = ((float)x + 0.5f) / 1024;
        at[1] = ((float)y + 0.5f) / 1024;
        at[2] = ((float)z + 0.5f) / 1024;
        CHECK(wl_morton(at) == (uint32_t)ugrid_i_morton(3, (int32_t)x, (int32_t)y, (int32_t)z));
    }
    wl_uniform(n, 3, p);
    memcpy(q, p, sizeof *p * 3 * (size_t)n);
    CHECK(wl_sort_morton(n, q, was));
    for (i = 0; i < n; i++) {
        CHECK(memcmp(q + 3 * i, p + 3 * was[i], 3 * sizeof *p) == 0);
        if (i)
            CHECK(wl_morton(q + 3 * i) > wl_morton(q + 3 * i - 3) ||
                (wl_morton(q + 3 * i) == wl_morton(q + 3 * i - 3) && was[i] > was[i - 1]));
    }
    memcpy(p, q, sizeof *p * 3 * (size_t)n);
    wl_move(n, q, 0.01f, 9);
    for (i = 0; i < 3 * n; i++) {
        float const moved = fabsf(p[i] - q[i]);
        CHECK(moved <= 0.0101f && q[i] >= 0 && q[i] < 1);
        if (moved > most) most = moved;
    }
    CHECK(most > 0.009f);
    wl_bidisperse(4, both, radius);
    for (i = 0; i < WL_BOTH; i++) {
        big += radius[i] > 0.005f;
        CHECK(both[3 * i] >= 0 && both[3 * i] <= WL_EDGE && both[3 * i + 2] >= 0 &&
            both[3 * i + 2] <= WL_EDGE);
    }
    CHECK(big == WL_BIG);
    free(p);
    free(q);
    free(both);
    free(radius);
    free(was);
}
