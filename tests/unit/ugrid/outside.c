/* outside.c - a part of test_ugrid.c: positions outside a periodic box. Wherever a position is
   given, all functions use the same image of it.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Two points whose distance is the radius but for a rounding: it depends on whether the second was
   moved into the box. */
static void test_pair_outside(void **state)
{
    real const pos[4] = {(real)0.777, (real)0.5, (real)1.91499996, (real)0.5},
        radius = (real)0.137999952;
    ugrid g = {0};
    ugrid_desc d;
    int32_t bad;
    (void)state;
    memset(&d, 0, sizeof d);
    d.dim = 2;
    d.max[0] = d.max[1] = 1;
    d.cell = (real)0.2;
    d.periodic[0] = 1;
    CHECK_RESULT(ugrid_build(&g, &d, pos, 0, 2), UGRID_OK);
    CHECK_RESULT(ugrid_validate(&g), UGRID_OK);
    CHECK_RESULT(ugrid_verify(&g, radius, 2, 0, &bad), UGRID_OK);
    ugrid_free(&g);
}

/* Rows of all points in three ways, and by the test that the header states: the same, rim and
   all. */
static void check_rows_outside(const ugrid *g, const real *pos, int32_t n, real radius)
{
    int32_t *ids = NEW(int32_t, n), *hits = NULL, i, j, found;
    for (i = 0; i < n; i++) {
        const real *p = pos + i * g->desc.dim;
        arrsetlen(hits, 0);
        CHECK_RESULT(ugrid_query(g, p, radius, ids, n, &found), UGRID_OK);
        CHECK_RESULT(ugrid_arr_within(g, p, radius, &hits), UGRID_OK);
        CHECK(arrlen(hits) == found && same(hits, ids, (size_t)found * sizeof *ids));
        for (j = 0; j < n; j++)
            found -= ugrid_distance2(g, p, pos + j * g->desc.dim) <= radius * radius;
        CHECK(found == 0);
    }
    arrfree(hits);
    free(ids);
}

/* Points some periods away, in pairs whose distance is near the radius. */
static void scatter_outside(const ugrid_desc *d, real *pos, int32_t n, real radius)
{
    int32_t k;
    for (k = 0; k < n * d->dim; k++) {
        int const a = k % d->dim, of_a_pair = k >= d->dim && k / d->dim % 2;
        real const length = d->max[a] - d->min[a];
        pos[k] = of_a_pair ? pos[k - d->dim] + (a == 0 ? beside(radius, roll(5) - 2) : 0) :
            between(d->min[a], d->max[a]);
        pos[k] += length * (real)(roll(9) - 4);
    }
}

static void test_periods_outside(void **state)
{
    enum { N = 60, ROUNDS = 8 };
    real const radius = (real)0.137999952;
    real pos[3 * N];
    ugrid g = {0};
    int dim, method, tight, round, a;
    (void)state;
    dice = wl_seed(32);
    for (dim = 2; dim <= 3; dim++)
        for (method = UGRID_AUTO; method <= UGRID_LIST_PACKED; method++)
            for (tight = 0; tight < 2; tight++)
                for (round = 0; round < ROUNDS; round++) {
                    ugrid_desc d;
                    int32_t bad;
                    memset(&d, 0, sizeof d);
                    d.dim = dim;
                    d.method = (ugrid_method)method;
                    d.placement = tight ? UGRID_TIGHT : UGRID_LOOSE;
                    d.slots = N;
                    d.cell = (real)0.2;
                    d.no_records = round & 1;
                    for (a = 0; a < dim; a++) {
                        d.min[a] = round & 2 ? between(-1, 1) : 0;
                        d.max[a] = d.min[a] + 1 + (real)a / 7;
                        d.periodic[a] = a == 0 || roll(4) > 0;
                    }
                    if (tight && method == UGRID_LIST_PACKED) continue;
                    scatter_outside(&d, pos, N, radius);
                    CHECK_RESULT(ugrid_build(&g, &d, pos, 0, N), UGRID_OK);
                    CHECK_RESULT(ugrid_verify(&g, radius, N, 0, &bad), UGRID_OK);
                    check_rows_outside(&g, pos, N, radius);
                }
    ugrid_free(&g);
}
