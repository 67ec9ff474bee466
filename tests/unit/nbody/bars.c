/* bars.c - a part of test_nbody.c: the error that a correct program reaches, by the number of
   bodies and the depth of the tree.
   SPDX-License-Identifier: MIT OR Unlicense */

/* limit: of VP, FN8, FN4c, C8; mean, p99, largest dF / S. */
typedef struct size_bars { int32_t n; int levels[2]; double limit[4][3]; } size_bars;

static const size_bars bars[] = {
    {1000, {4, 5}, {{1.5e-4, 1.3e-3, 5e-4}, {2.6e-3, 3e-2, 8e-3}, {1.3e-3, 1.1e-2, 3.2e-3},
    {2.4e-6, 2.2e-5, 1.3e-5}}},
    {10000, {5, 6}, {{3e-4, 2.5e-3, 2e-4}, {1.5e-3, 1.5e-2, 3e-3}, {7e-4, 6.5e-3, 1.1e-3},
    {1.1e-6, 1.1e-5, 5e-6}}},
    {100000, {6, 7}, {{4.2e-4, 3.2e-3, 2e-4}, {1.6e-3, 1.7e-2, 2.4e-3}, {5.5e-4, 4.5e-3, 6e-4},
    {8e-7, 8e-6, 1.5e-6}}},
    {1000000, {8, 9}, {{5.5e-4, 4e-3, 2e-4}, {1.9e-3, 1.8e-2, 2e-3}, {5.5e-4, 5.5e-3, 4.5e-4},
    {3e-7, 3e-6, 3e-7}}},
};

static void check_bar(const oracle_scene *s, const size_bars *b, int which,
    const oracle_field *truth, const int32_t *chosen, int32_t samples)
{
    static const int setting[4] = {S_VP, S_FN8, S_FN4C, S_C8};
    int k;
    for (k = 0; k < 2; k++) {
        const double *limit = b->limit[which];
        double const more = float_share();
        nbody sim = {0};
        nbody_desc d = oracle_desc(&settings[setting[which]]);
        real *acc = NEW(real, 2 * (size_t)s->n);
        oracle_errors e;
        d.levels = b->levels[k] - (b->n == 1000000 && which == 3);
        note(s, &d, settings[setting[which]].name);
        CHECK_RESULT(nbody_accelerations(&sim, &d, s->pos, 0, s->mass, s->n, acc), NBODY_OK);
        e = oracle_compare(acc, truth, chosen, samples);
        CHECK_BELOW(e.mean, limit[0] + more);
        CHECK_BELOW(e.p99, limit[1] + 5 * more);
        CHECK_BELOW(e.share, limit[2] + more);
        CHECK_BELOW(e.direction * 180 / ORACLE_PI, 40 * (limit[0] + more));
        CHECK_BELOW(e.length, 0.75 * (limit[0] + more));
        nbody_free(&sim);
        free(acc);
    }
}

static void test_bars(void **state)
{
    SLOW_TEST();
    int const sizes = environment("NBODY_LARGE", 0) ? 4 : small_run() || SANITIZED ? 1 : 2;
    int size, which, masses;
    (void)state;
    for (size = 0; size < sizes; size++) for (masses = 0; masses < (size == 3 ? 1 : 2); masses++) {
        oracle_law const law = oracle_law_of(0, 1, 0);
        int32_t const samples = small_run() ? 60 : bars[size].n < 2000 ? bars[size].n : SANITIZED ?
            300 : 1000;
        oracle_scene s;
        int32_t *chosen;
        oracle_field *truth;
        oracle_make(&s, masses ? ORACLE_MASSES : ORACLE_UNIFORM, bars[size].n, 0, &dice);
        truth = oracle_truth(&s, &law, samples, &chosen);
        for (which = 0; which < 4; which++)
            check_bar(&s, &bars[size], which, truth, chosen, samples);
        free(truth);
        free(chosen);
        oracle_forget(&s);
    }
}

/* More is more exact: mean errors by order, and by number of sub-cells. */
static void test_orders(void **state)
{
    static const double mean[17] = {0, 0, 3e-2, 8e-3, 1e-3, 2e-4, 2.5e-5, 6e-6, 1.2e-6, 3e-7, 6e-8,
        1.5e-8, 4e-9, 1e-9, 2.5e-10, 6e-11, 1.5e-11};
    static const struct { int setting; double mean; } centres[] = {
        {S_VP, 2e-4}, {S_VP_4, 1e-3}, {S_VP_2, 1e-2}, {S_MOMENTS, 1.5e-6}, {S_MOMENTS_4, 4e-5},
        {S_MOMENTS_2, 4e-4}};
    oracle_scene s;
    int k;
    (void)state;
    oracle_make(&s, ORACLE_UNIFORM, small_run() ? 100 : SANITIZED ? 200 : 900, 0, &dice);
    for (k = 2; k <= NBODY_MAX_ORDER; k += small_run() ? 5 : 1) {
        nbody_desc d = oracle_desc(&settings[S_C4]);
        oracle_errors e;
        d.order = k;
        d.levels = 4;
        note(&s, &d, "order");
        e = check_against_direct(&d, &s, 1);
        CHECK_BELOW(e.mean, mean[k] + float_share());
    }
    for (k = 0; k < COUNT_OF(centres); k++) {
        nbody_desc d = oracle_desc(&settings[centres[k].setting]);
        oracle_errors e;
        d.levels = 5;
        note(&s, &d, settings[centres[k].setting].name);
        e = check_against_direct(&d, &s, 1);
        CHECK_BELOW(e.mean, centres[k].mean + float_share());
    }
    oracle_forget(&s);
}
