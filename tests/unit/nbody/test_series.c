/* test_series.c - logarithms by bits, and the law 1 / d by powers of complex numbers: forces and
   potentials against direct sums in long double.
   SPDX-License-Identifier: MIT OR Unlicense */

#define NBODY_STATIC
#include "tests/common/nbody_parts.h"
#define NBODY_IMPLEMENTATION
#include "nbody.h"
#include "../../common/nbody_oracle.h"
#include "../../common/testing.h"

/* ------------------------------------------------------------------------------------------------
   Logarithms
   ---------------------------------------------------------------------------------------------- */

/* Error in units of the last place of a number of `bits` bits. */
static double ulps(double got, long double want, int bits)
{
    int e;
    if (want == 0) return got == 0 ? 0 : 1e30;
    (void)frexpl(want, &e);
    return (double)(fabsl((long double)got - want) / ldexpl(1, e - bits));
}

/* Normal floats: of 1/4 to 4 each one, and one of `step` of the others. With large steps fewer. */
static double worst_of_floats(uint32_t step)
{
    double worst = 0;
    uint32_t const near_one = step > 1000 ? 31 : 1;
    uint32_t bits, next;
    for (bits = 0x00800000u; bits < 0x7F800000u; bits = next) {
        float u;
        double wrong, got, want;
        next = bits + (bits >= 0x3E800000u && bits < 0x40800000u ? near_one : step);
        memcpy(&u, &bits, sizeof u);
        got = (double)nbody_i_log_of((real)u);
        want = log((double)u);
        wrong = fabs(got - want);
        if (wrong * 16777216 <= 0.7 * fabs(want)) continue; /* below 0.7 ulp in any case */
        wrong = ulps(got, (long double)want, 24);
        if (wrong > worst) worst = wrong;
    }
    return worst;
}

/* Doubles of all exponents, and around 1. */
static double worst_of_doubles(int count)
{
    wl_random r = wl_seed(5);
    double worst = 0;
    int k;
    for (k = 0; k < count; k++) {
        uint64_t bits = wl_next(&r) & 0x7FFFFFFFFFFFFFFFu;
        double u, wrong;
        if (k % 2) bits = (bits & 0x000FFFFFFFFFFFFFu) | (uint64_t)(1021 + k / 2 % 4) << 52;
        if (bits >> 52 == 0 || bits >> 52 == 2047) continue;
        memcpy(&u, &bits, sizeof u);
        wrong = ulps(nbody_i_log(u), logl((long double)u), 53);
        if (wrong > worst) worst = wrong;
    }
    return worst;
}

static void test_logs(void **state)
{
    static const double special[] = {1, 2, 0.5, 4, 3, 1e-300, 1e300, 2.2250738585072014e-308,
        1.7976931348623157e308, 0.70710678118654752, 0.70710678118654757, 1.4142135623730951,
        1.0000000000000002, 0.9999999999999999};
    size_t k;
    (void)state;
    for (k = 0; k < sizeof special / sizeof *special; k++)
        CHECK(ulps(nbody_i_log(special[k]), logl((long double)special[k]), 53) < 0.9);
    CHECK(nbody_i_log(1) == 0 && nbody_i_log_of(1) == 0);
    CHECK(worst_of_doubles(small_run() ? 100000 : 5000000) < 0.9);
    if (IS_FLOAT) CHECK(worst_of_floats(small_run() ? 100003 : 61) < 0.9);
}

/* Every float: make test-all FULL=1. */
static void test_all_floats(void **state)
{
    (void)state;
    if (!IS_FLOAT || !getenv("FULL") || !*getenv("FULL")) skip();
    CHECK(worst_of_floats(1) < 0.9);
}

/* ------------------------------------------------------------------------------------------------
   Fields
   ---------------------------------------------------------------------------------------------- */

typedef struct scene {
    int32_t n;
    real *pos, *mass, *acc, *potential;
} scene;

/* Evenly spread, or with half of them in a clump `width` wide at (0.7, 0.7). Masses of either sign
   have CHEBYSHEV. */
static scene new_scene(int32_t n, double width, double unit, double heavy)
{
    wl_random r = wl_seed(11);
    scene s;
    int32_t i;
    s.n = n;
    s.pos = NEW(real, 2 * (size_t)n);
    s.mass = NEW(real, n);
    s.acc = NEW(real, 2 * (size_t)n);
    s.potential = NEW(real, n);
    for (i = 0; i < n; i++) {
        double const side = width > 0 && i % 2 ? width : 1, from = width > 0 && i % 2 ? 0.7 : 0;
        s.pos[2 * i] = (real)(unit * (from + side * (double)wl_u(&r)));
        s.pos[2 * i + 1] = (real)(unit * (from + side * (double)wl_u(&r)));
        s.mass[i] = (real)(heavy * ((double)wl_u(&r) + 0.1) * (i % 3 ? 1 : -1));
    }
    return s;
}

static void free_scene(scene *s)
{
    free(s->pos);
    free(s->mass);
    free(s->acc);
    free(s->potential);
}

static nbody_desc inverse(int order)
{
    nbody_desc d;
    memset(&d, 0, sizeof d);
    d.method = NBODY_FORCE_NODES;
    d.law = NBODY_INVERSE;
    d.order = order;
    return d;
}

typedef struct wrongs { double force, potential; } wrongs;

/* The largest errors, as shares of the sums of all |terms|. */
static wrongs largest(const scene *s)
{
    oracle_law const law = oracle_law_of(1, 1, 0);
    oracle_body *bodies = oracle_bodies(s->pos, s->mass, s->n);
    wrongs most = {0, 0};
    int32_t i;
    for (i = 0; i < s->n; i += small_run() ? 7 : 3) {
        oracle_field const f = oracle_direct(&law, bodies, s->n, bodies[i].x, bodies[i].y, i);
        double const x = (double)s->acc[2 * i] - f.x, y = (double)s->acc[2 * i + 1] - f.y;
        double const force = sqrt(x * x + y * y) / f.share;
        double const p = fabs((double)s->potential[i] - f.p) / f.p_share;
        if (!(force <= most.force)) most.force = force;
        if (!(p <= most.potential)) most.potential = p;
    }
    free(bodies);
    return most;
}

static void check_fields(const scene *s, int order, double force, double potential)
{
    nbody sim = {0};
    nbody_desc d = inverse(order);
    wrongs most;
    CHECK_RESULT(nbody_fields(&sim, &d, s->pos, 0, s->mass, s->n, s->acc, s->potential), NBODY_OK);
    CHECK(sim.series > 0);
    most = largest(s);
    CHECK_BELOW(most.force, IS_FLOAT && force < 4e-7 ? 4e-7 : force);
    CHECK_BELOW(most.potential, IS_FLOAT && potential < 4e-7 ? 4e-7 : potential);
    nbody_free(&sim);
}

/* Errors by order; they do not depend on the units of length and mass. */
static void test_fields(void **state)
{
    static const struct { int order; double force, potential; } bars[] = {
        {2, 6e-3, 3e-3}, {4, 1.2e-4, 2e-5}, {6, 5e-6, 3e-7},
        {8, 2e-7, 1e-8}, {10, 8e-9, 4e-10}, {12, 5e-10, 2e-11}, {14, 3e-11, 1e-12},
        {16, 2e-12, 1e-13}};
    static const double unit[] = {1, 1e-4, 3e5}, heavy[] = {1, 1e6, 1e-5};
    size_t k, u;
    (void)state;
    for (u = 0; u < 3; u++) {
        scene s = new_scene(small_run() ? 700 : 3000, 0, unit[u], heavy[u]);
        for (k = 0; k < sizeof bars / sizeof *bars && bars[k].order <= NBODY_MAX_ORDER; k++)
            check_fields(&s, bars[k].order, bars[k].force, bars[k].potential);
        free_scene(&s);
    }
}

/* All stages of the CPU, and forces with potentials or without, have the same bits. */
static void test_bits(void **state)
{
    scene s = new_scene(small_run() ? 400 : 2000, 0.01, 1, 1), plain = new_scene(s.n, 0.01, 1, 1);
    int order;
    (void)state;
    for (order = 2; order <= NBODY_MAX_ORDER; order++) {
        nbody sim = {0};
        nbody_desc d = inverse(order);
        CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, s.n, s.acc, s.potential), NBODY_OK);
        d.stage = NBODY_ONE_THREAD;
        CHECK_RESULT(
            nbody_fields(&sim, &d, s.pos, 0, s.mass, s.n, plain.acc, plain.potential), NBODY_OK);
        CHECK(same(s.acc, plain.acc, 2 * (size_t)s.n * sizeof(real)));
        CHECK(same(s.potential, plain.potential, (size_t)s.n * sizeof(real)));
        d.stage = NBODY_FAST;
        CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, s.n, plain.acc), NBODY_OK);
        CHECK(same(s.acc, plain.acc, 2 * (size_t)s.n * sizeof(real)));
        nbody_free(&sim);
    }
    free_scene(&s);
    free_scene(&plain);
}

/* One nbody, both laws, with softening and without: the table is made again. */
static void test_change_of_law(void **state)
{
    scene s = new_scene(small_run() ? 400 : 2000, 0, 1, 1), fresh = new_scene(s.n, 0, 1, 1);
    nbody kept = {0};
    int k;
    (void)state;
    for (k = 0; k < 6; k++) {
        nbody sim = {0};
        nbody_desc d = inverse(k < 4 ? 4 : 9);
        d.softening = k == 3 || k == 5 ? (real)0.01 : 0;
        d.law = k == 1 ? NBODY_INVERSE_SQUARE : NBODY_INVERSE;
        CHECK_RESULT(
            nbody_fields(&kept, &d, s.pos, 0, s.mass, s.n, s.acc, s.potential), NBODY_OK);
        CHECK_RESULT(
            nbody_fields(&sim, &d, s.pos, 0, s.mass, s.n, fresh.acc, fresh.potential), NBODY_OK);
        CHECK(same(s.acc, fresh.acc, 2 * (size_t)s.n * sizeof(real)));
        CHECK(same(s.potential, fresh.potential, (size_t)s.n * sizeof(real)));
        nbody_free(&sim);
    }
    nbody_free(&kept);
    free_scene(&s);
    free_scene(&fresh);
}

/* ------------------------------------------------------------------------------------------------
   Clumps: the error does not depend on where one lies
   ---------------------------------------------------------------------------------------------- */

/* Mean relative error of the accelerations. */
static double mean_error(const scene *s, const nbody_desc *d)
{
    oracle_law const law = oracle_law_of(d->law == NBODY_INVERSE, 1, 0);
    oracle_body *bodies = oracle_bodies(s->pos, NULL, s->n);
    nbody sim = {0};
    double sum = 0;
    int32_t i, samples = 0;
    CHECK_RESULT(nbody_accelerations(&sim, d, s->pos, 0, NULL, s->n, s->acc), NBODY_OK);
    CHECK(sim.frame->levels > 3);
    for (i = 0; i < s->n; i += small_run() ? 29 : 7, samples++) {
        oracle_field const f = oracle_direct(&law, bodies, s->n, bodies[i].x, bodies[i].y, i);
        double const x = (double)s->acc[2 * i] - f.x, y = (double)s->acc[2 * i + 1] - f.y;
        sum += sqrt((x * x + y * y) / (f.x * f.x + f.y * f.y));
    }
    free(bodies);
    nbody_free(&sim);
    return sum / samples;
}

/* Half of the bodies evenly spread over a square of side 2, half in a clump. */
static void test_clumps(void **state)
{
    static const double place[][2] = {{0, 0}, {0.7, 0.7}, {0.3, 0.9}, {-0.7, 0.7}, {1e5, -3e4}};
    static const double size[] = {1, 1, 1, 1, 64};
    int law, order;
    size_t k;
    (void)state;
    for (law = 0; law < 2; law++)
        for (order = 4; order <= 8; order += 4)
            for (k = 0; k < sizeof place / sizeof *place; k++) {
        scene s = new_scene(small_run() ? 2000 : 6000, 0, 1, 1);
        nbody_desc d = inverse(order);
        int32_t i;
        d.law = (nbody_law)law;
        for (i = 0; i < 2 * s.n; i++) {
            double const u = size[k] * (2 * (double)s.pos[i] - 1);
            double const at = k == 4 ? 0 : place[k][i % 2];
            double const far_away = k == 4 ? place[k][i % 2] : 0;
            s.pos[i] = (real)(far_away + (i / 2 % 2 ? at + (k == 4 ? 0.1 : 5e-5) * u : u));
        }
        CHECK_BELOW(mean_error(&s, &d), order == 8 ? 1.5e-6 : 1.5e-3);
        free_scene(&s);
    }
}

static const struct CMUnitTest series[] = {
    TEST(test_logs),
    TEST(test_all_floats),
    TEST(test_fields),
    TEST(test_bits),
    TEST(test_change_of_law),
    TEST(test_clumps),
};

int main(void)
{
    int failed = 0;
    RUN_GROUP(failed, series, NULL);
    return failed;
}
