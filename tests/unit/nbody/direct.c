/* direct.c - a part of test_nbody.c: few bodies, worked out by hand, and the direct sum against
   one in long double.
   SPDX-License-Identifier: MIT OR Unlicense */

static int close_to(real value, double want)
{
    return fabs((double)value - want) <= 4 * REAL_EPSILON * fabs(want);
}

/* Two bodies, 5 apart: 3 to the right and 4 up. */
static void test_two_by_hand(void **state)
{
    static const real pos[4] = {1, -2, 4, 2}, mass[2] = {2, 10};
    int law, method, k;
    (void)state;
    for (law = 0; law < 2; law++) for (method = 0; method <= NBODY_FORCE_NODES; method++)
            for (k = 0; k < 3; k++) {
        double const soft2 = k == 1 ? 11 : 0, gravity = k == 2 ? -3 : 1;
        double const d2 = 25 + soft2, g = law ? gravity / d2 : gravity / (d2 * sqrt(d2));
        double const p = law ? gravity * log(d2) / 2 : -gravity / sqrt(d2);
        nbody sim = {0};
        nbody_desc d;
        real acc[4], potential[2], alone[4];
        memset(&d, 0, sizeof d);
        d.method = (nbody_method)method;
        d.law = (nbody_law)law;
        d.softening = (real)sqrt(soft2);
        d.gravity = k == 0 ? 0 : (real)gravity; /* 0: the default, 1 */
        note(NULL, &d, NULL);
        CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, mass, 2, acc, potential), NBODY_OK);
        CHECK(close_to(acc[0], 10 * g * 3) && close_to(acc[1], 10 * g * 4));
        CHECK(close_to(acc[2], -2 * g * 3) && close_to(acc[3], -2 * g * 4));
        CHECK(close_to(potential[0], 10 * p) && close_to(potential[1], 2 * p));
        CHECK_RESULT(nbody_accelerations(&sim, &d, pos, 0, mass, 2, alone), NBODY_OK);
        CHECK(same(acc, alone, sizeof acc));
        CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, NULL, 2, acc, potential), NBODY_OK);
        CHECK(close_to(acc[0], g * 3) && close_to(acc[3], -g * 4) && close_to(potential[0], p));
        nbody_free(&sim);
    }
}

/* Three in a row: in the middle the outer two cancel, but their potentials do not. A body of no
   mass feels, and is not felt. */
static void test_three_by_hand(void **state)
{
    static const real pos[8] = {-1, 0, 0, 0, 1, 0, 0, 1}, mass[4] = {3, 5, 3, 0};
    int method;
    (void)state;
    for (method = 0; method <= NBODY_FORCE_NODES; method++) {
        double const root = sqrt(0.5);
        nbody sim = {0};
        nbody_desc d;
        real acc[8], potential[4];
        memset(&d, 0, sizeof d);
        d.method = (nbody_method)method;
        note(NULL, &d, NULL);
        CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, mass, 4, acc, potential), NBODY_OK);
        CHECK(acc[2] == 0 && acc[3] == 0 && close_to(potential[1], -6));
        CHECK(close_to(acc[0], 5 + 0.75) && acc[1] == 0 && close_to(acc[4], -5.75));
        CHECK(close_to(potential[0], -5 - 1.5));
        CHECK(acc[6] == 0 && close_to(acc[7], -5 - 3 * root));
        CHECK(close_to(potential[3], -5 - 6 * root));
        nbody_free(&sim);
    }
}

static void test_few_bodies(void **state)
{
    static const real places[6] = {(real)0.5, (real)0.25, (real)0.5, (real)0.25, (real)0.5,
        (real)0.25};
    int k, method;
    int32_t n, i;
    (void)state;
    for (k = 0; k < COUNT_OF(settings); k += small_run() ? 4 : 1) for (n = 0; n <= 3; n++)
            for (method = 0; method < 4; method++) {
        nbody sim = {0};
        nbody_desc d = oracle_desc(&settings[k]);
        nbody_counts counts;
        real acc[6] = {7, 7, 7, 7, 7, 7}, potential[3] = {7, 7, 7}, at[2] = {3, 3},
            there[2] = {0, 0};
        if (others_turn(k / 4 + method)) continue;
        d.levels = method == 0 ? 0 : method == 1 ? 1 : method == 2 ? 4 : NBODY_MAX_LEVELS;
        note(NULL, &d, settings[k].name);
        CHECK_RESULT(nbody_fields(&sim, &d, n ? places : NULL, 0, NULL, n, n ? acc : NULL,
            n ? potential : NULL), NBODY_OK);
        CHECK(sim.n == n);
        for (i = 0; i < n; i++) CHECK(acc[2 * i] == 0 && acc[2 * i + 1] == 0 && potential[i] == 0);
        for (; i < 3; i++) CHECK(acc[2 * i] == 7 && potential[i] == 7);
        CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        CHECK_RESULT(nbody_count(&sim, &counts), NBODY_OK);
        CHECK(counts.near_terms == (int64_t)n * n && counts.table_terms == 0);
        CHECK_RESULT(nbody_fields_at(&sim, at, 0, 1, there, NULL, NULL), NBODY_OK);
        CHECK(n > 0 ? there[0] < 0 && there[1] < 0 : there[0] == 0 && there[1] == 0);
        nbody_free(&sim);
    }
}

/* All at one place: no force, and with softening the potential of all others there. */
static void test_all_at_one_place(void **state)
{
    int k, softened, law;
    int32_t i, n = small_run() ? 20 : 100;
    (void)state;
    for (k = 0; k < COUNT_OF(settings); k += small_run() ? 7 : 1)
            for (softened = 0; softened < 2; softened++)
        for (law = 0; law < 2; law++) {
        oracle_scene s;
        outcome o;
        nbody_desc d = oracle_desc(&settings[k]);
        double const p = law ? log(0.5) : -2;
        d.law = (nbody_law)law;
        d.softening = softened ? (real)0.5 : 0;
        oracle_make(&s, ORACLE_ONE_PLACE, n, 0, &dice);
        note(&s, &d, settings[k].name);
        evaluate(&o, &d, &s);
        for (i = 0; i < n; i++) {
            CHECK(o.acc[2 * i] == 0 && o.acc[2 * i + 1] == 0);
            CHECK_BELOW(fabs((double)o.potential[i] - (softened ? p * (n - 1) : 0)),
                8 * REAL_EPSILON * n);
        }
        CHECK_RESULT(nbody_validate(&o.sim), NBODY_OK);
        CHECK_FINE(oracle_check_walks(&o.sim));
        drop(&o);
        oracle_forget(&s);
    }
}

/* ------------------------------------------------------------------------------------------------
   The direct sum
   ---------------------------------------------------------------------------------------------- */

static void test_direct(void **state)
{
    int input, law, softened;
    (void)state;
    for (input = 0; input < ORACLE_INPUTS; input++) for (law = 0; law < 2; law++)
            for (softened = 0; softened < 2; softened++) {
        oracle_scene s;
        oracle_law truth_law;
        oracle_field *truth;
        oracle_errors e;
        outcome o;
        int32_t *chosen;
        nbody_desc d;
        double const bar = IS_FLOAT ? 2e-6 : 1e-14;
        memset(&d, 0, sizeof d);
        d.method = NBODY_DIRECT;
        d.law = (nbody_law)law;
        d.softening = softened ? (real)0.01 : 0;
        d.gravity = (real)0.5;
        oracle_make(&s, input, small_run() ? 25 : SANITIZED ? 120 : 250, input % 2, &dice);
        note(&s, &d, "direct");
        evaluate(&o, &d, &s);
        truth_law = law_of(&d);
        truth = oracle_truth(&s, &truth_law, s.n, &chosen);
        e = oracle_compare(o.acc, truth, NULL, s.n);
        CHECK_BELOW(e.share, bar);
        CHECK_BELOW(oracle_compare_potential(o.potential, truth, NULL, s.n), bar);
        CHECK(o.sim.cell == NULL && o.sim.desc.method == NBODY_DIRECT);
        CHECK_RESULT(nbody_validate(&o.sim), NBODY_OK);
        free(truth);
        free(chosen);
        drop(&o);
        oracle_forget(&s);
    }
}

/* The length of a float's force does not go wrong as n grows: the direct sum at sampled bodies, in
   random and in raster order. */
static int in_raster_order(const void *a, const void *b)
{
    const real *p = (const real *)a, *q = (const real *)b;
    double const row_p = floor((double)p[1] * 256), row_q = floor((double)q[1] * 256);
    if (row_p < row_q || row_p > row_q) return row_p < row_q ? -1 : 1;
    return (p[0] > q[0]) - (p[0] < q[0]);
}

static void test_length_error(void **state)
{
    static const int32_t counts[] = {1000, 10000, 100000};
    int k, raster;
    (void)state;
    for (k = 0; k < COUNT_OF(counts) - (small_run() || !IS_FLOAT); k++)
            for (raster = 0; raster < 2; raster++) {
        int32_t const samples = small_run() ? 10 : SANITIZED ? 30 : 90;
        oracle_law const law = oracle_law_of(0, 1, 0);
        oracle_scene s;
        oracle_errors e;
        oracle_field *truth;
        int32_t *chosen, i;
        nbody sim = {0};
        nbody_desc d;
        real *points = NEW(real, 2 * (size_t)samples), *acc = NEW(real, 2 * (size_t)samples);
        memset(&d, 0, sizeof d);
        d.method = NBODY_DIRECT;
        oracle_make(&s, ORACLE_UNIFORM, counts[k], 0, &dice);
        if (raster) {
            qsort(s.pos, (size_t)s.n, 2 * sizeof *s.pos, in_raster_order);
            free(s.body);
            s.body = oracle_bodies(s.pos, s.mass, s.n);
        }
        note(&s, &d, raster ? "raster order" : "random order");
        truth = oracle_truth(&s, &law, samples, &chosen);
        for (i = 0; i < samples; i++)
            memcpy(points + 2 * i, s.pos + 2 * chosen[i], 2 * sizeof(real));
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        CHECK_RESULT(nbody_fields_at(&sim, points, 0, samples, acc, NULL, NULL), NBODY_OK);
        e = oracle_compare(acc, truth, NULL, samples);
        CHECK_BELOW(e.length, IS_FLOAT ? 2.2e-7 : 1e-15);
        CHECK_BELOW(fabs(e.bias), IS_FLOAT ? 1e-7 : 1e-15);
        CHECK_BELOW(e.share, IS_FLOAT ? 5e-7 : 2e-15);
        nbody_free(&sim);
        free(points);
        free(acc);
        free(truth);
        free(chosen);
        oracle_forget(&s);
    }
}
