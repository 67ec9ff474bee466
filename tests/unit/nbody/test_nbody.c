/* test_nbody.c - tests of the serial part of nbody.h: numbers, trees and walks, against the direct sum and a dense pyramid. See
   nbody_oracle.h for the oracles. test_nbody_calls.c has the rest: refusals, memory, defaults, strides.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/nbody/test_nbody.c -o test_nbody -lcmocka -lm && ./test_nbody
       (add -DNBODY_REAL=double for the double build; package: libcmocka-dev)

   Environment:
       NBODY_TEST_ONLY=p    runs the tests whose names match p, such as 'test_step*'
       NBODY_LARGE=1        also the bars of 100 thousand and a million bodies (minutes)
       TEST_SMALL=1         a small part of everything, for valgrind */

#define NBODY_IMPLEMENTATION
#include "nbody.h"
#include "../../common/nbody_oracle.h"
#include "../../common/testing.h"

/* ------------------------------------------------------------------------------------------------
   Settings
   ------------------------------------------------------------------------------------------------ */

#define VP NBODY_VIRTUAL_PARTICLES
#define FN NBODY_FORCE_NODES
#define CENTRES NBODY_MASS_CENTRES
#define POINTS NBODY_CHEBYSHEV

/* The last number: of all inputs and trees that were tried, the largest error of any body's force, as a share of S, and half as
   much again (in double). It comes from few heavy bodies at the worst places of their cells. */
static const oracle_setting settings[] = {
    {"VP", VP, 1, CENTRES, 8, 1e-3},          {"VP, 4 x 4", VP, 1, CENTRES, 4, 4e-3},
    {"VP, 2 x 2", VP, 1, CENTRES, 2, 3e-2},   {"VP, moments", VP, 2, CENTRES, 8, 4e-5},
    {"VP, moments, 4 x 4", VP, 2, CENTRES, 4, 8e-4}, {"VP, moments, 2 x 2", VP, 2, CENTRES, 2, 6e-3},
    {"FN8", FN, 1, CENTRES, 8, 2.5e-2},       {"FN4c", FN, 4, CENTRES, 8, 1.1e-2},
    {"FN5c, 4 x 4", FN, 5, CENTRES, 4, 4e-3}, {"C2", FN, 2, POINTS, 0, 3e-1},
    {"C3", FN, 3, POINTS, 0, 6e-2},           {"C4", FN, 4, POINTS, 0, 1.1e-2},
    {"C5", FN, 5, POINTS, 0, 2.2e-3},         {"C6", FN, 6, POINTS, 0, 5e-4},
    {"C7", FN, 7, POINTS, 0, 1e-4},           {"C8", FN, 8, POINTS, 0, 2.6e-5},
    {"C10", FN, 10, POINTS, 0, 1e-6},         {"C12", FN, 12, POINTS, 0, 1e-7},
};

enum { S_VP, S_VP_4, S_VP_2, S_MOMENTS, S_MOMENTS_4, S_MOMENTS_2, S_FN8, S_FN4C, S_C4 = 11, S_C8 = 15, S_C12 = 17 };

static double float_share(void) { return IS_FLOAT ? 3e-6 : 0; }

/* The same for a tree of any depth: nodes and sources have places that are rounded to floats of the whole square, and more so,
   measured in sides of its cells, the deeper a tree is. */
static double deep_share(const nbody *sim)
{
    return IS_FLOAT ? 3e-6 + ldexp(1, (sim->cell ? sim->frame->levels : 1) - 27) : 0;
}

/* How far two programs that compute the same may be apart, as a share of S. */
static double rounding(void) { return IS_FLOAT ? 3e-6 : 1e-11; }

static struct { const oracle_scene *scene; const nbody_desc *desc; const char *setting; } now;

static void describe_case(void)
{
    const nbody_desc *d = now.desc;
    if (now.scene) print_error("  %s, n %d\n", oracle_input_name(now.scene->input), (int)now.scene->n);
    if (now.setting) print_error("  %s\n", now.setting);
    if (d) print_error("  method %d, order %d, sources %d, subcells %d, levels %d, leaf %d, law %d, softening %g, gravity %g\n",
                       (int)d->method, (int)d->order, (int)d->sources, (int)d->subcells, (int)d->levels, (int)d->leaf,
                       (int)d->law, (double)d->softening, (double)d->gravity);
}

static void note(const oracle_scene *s, const nbody_desc *d, const char *setting)
{
    now.scene = s;
    now.desc = d;
    now.setting = setting;
    describe = describe_case;
}

static oracle_law law_of(const nbody_desc *d)
{
    return oracle_law_of(d->law == NBODY_INVERSE, d->gravity == 0 ? 1 : (double)d->gravity, (double)d->softening);
}

/* Forces and potentials of a scene. */
typedef struct outcome { nbody sim; real *acc, *potential; } outcome;

static void evaluate(outcome *o, const nbody_desc *d, const oracle_scene *s)
{
    memset(o, 0, sizeof *o);
    o->acc = NEW(real, 2 * (size_t)s->n);
    o->potential = NEW(real, s->n);
    CHECK_RESULT(nbody_fields(&o->sim, d, s->pos, 0, s->mass, s->n, o->acc, o->potential), NBODY_OK);
}

static void drop(outcome *o)
{
    nbody_free(&o->sim);
    free(o->acc);
    free(o->potential);
}

/* Errors against the direct sum, at all bodies. None may be above this share of S (floats: and what deep_share says). */
static oracle_errors check_against_direct(const nbody_desc *d, const oracle_scene *s, double share)
{
    oracle_law const law = law_of(d);
    oracle_errors e;
    oracle_field *truth;
    int32_t *chosen;
    outcome o;
    evaluate(&o, d, s);
    truth = oracle_truth(s, &law, s->n, &chosen);
    e = oracle_compare(o.acc, truth, NULL, s->n);
    CHECK_BELOW(e.share, share + deep_share(&o.sim));
    CHECK_BELOW(oracle_compare_potential(o.potential, truth, NULL, s->n), share + deep_share(&o.sim));
    free(truth);
    free(chosen);
    drop(&o);
    return e;
}

/* ------------------------------------------------------------------------------------------------
   By hand
   ------------------------------------------------------------------------------------------------ */

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
    for (law = 0; law < 2; law++) for (method = 0; method <= NBODY_FORCE_NODES; method++) for (k = 0; k < 3; k++) {
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

/* Three in a row: in the middle the outer two cancel, but their potentials do not. A body of no mass feels, and is not felt. */
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
    static const real places[6] = {(real)0.5, (real)0.25, (real)0.5, (real)0.25, (real)0.5, (real)0.25};
    int k, method;
    int32_t n, i;
    (void)state;
    for (k = 0; k < COUNT_OF(settings); k += small_run() ? 4 : 1) for (n = 0; n <= 3; n++) for (method = 0; method < 4; method++) {
        nbody sim = {0};
        nbody_desc d = oracle_desc(&settings[k]);
        nbody_counts counts;
        real acc[6] = {7, 7, 7, 7, 7, 7}, potential[3] = {7, 7, 7}, at[2] = {3, 3}, there[2] = {0, 0};
        d.levels = method == 0 ? 0 : method == 1 ? 1 : method == 2 ? 4 : NBODY_MAX_LEVELS;
        note(NULL, &d, settings[k].name);
        CHECK_RESULT(nbody_fields(&sim, &d, n ? places : NULL, 0, NULL, n, n ? acc : NULL, n ? potential : NULL), NBODY_OK);
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
    for (k = 0; k < COUNT_OF(settings); k += small_run() ? 7 : 1) for (softened = 0; softened < 2; softened++)
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
            CHECK_BELOW(fabs((double)o.potential[i] - (softened ? p * (n - 1) : 0)), 8 * REAL_EPSILON * n);
        }
        CHECK_RESULT(nbody_validate(&o.sim), NBODY_OK);
        CHECK_FINE(oracle_check_walks(&o.sim));
        drop(&o);
        oracle_forget(&s);
    }
}

/* ------------------------------------------------------------------------------------------------
   The direct sum
   ------------------------------------------------------------------------------------------------ */

static void test_direct(void **state)
{
    int input, law, softened;
    (void)state;
    for (input = 0; input < ORACLE_INPUTS; input++) for (law = 0; law < 2; law++) for (softened = 0; softened < 2; softened++) {
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

/* The length of a float's force does not go wrong as n grows: the direct sum at sampled bodies, in random and in raster order. */
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
    for (k = 0; k < COUNT_OF(counts) - (small_run() || !IS_FLOAT); k++) for (raster = 0; raster < 2; raster++) {
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
        for (i = 0; i < samples; i++) memcpy(points + 2 * i, s.pos + 2 * chosen[i], 2 * sizeof(real));
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

/* ------------------------------------------------------------------------------------------------
   Trees of one depth: the algorithms of the source, number for number
   ------------------------------------------------------------------------------------------------ */

/* How many bodies the pyramid is asked for: it takes its time. */
static int32_t affordable(const oracle_how *how, int32_t n)
{
    int const sources = how->subcells ? how->subcells * how->subcells : how->side * how->side;
    int const targets = how->side ? how->side * how->side : 1, budget = small_run() ? 100000 : SANITIZED ? 100000 : 400000;
    int32_t const bodies = (int32_t)(budget / (27 * sources * targets));
    return bodies < 3 ? 3 : bodies < n ? bodies : n;
}

/* nbody.h against the pyramid, at sampled bodies. */
static void check_pyramid(const oracle_scene *s, const nbody_desc *d, double bar)
{
    oracle_how how;
    oracle_pyramid *p;
    oracle_field *truth;
    oracle_law const law = law_of(d);
    oracle_errors e;
    outcome o;
    int32_t *chosen, samples, i;
    evaluate(&o, d, s);
    how = oracle_how_of(&o.sim);
    samples = affordable(&how, s->n);
    p = oracle_pyramid_of(&how, s->body, s->n);
    truth = oracle_truth(s, &law, samples, &chosen);
    for (i = 0; i < samples; i++) {
        oracle_field const f = oracle_pyramid_at(p, chosen[i]);
        truth[i].x = f.x;
        truth[i].y = f.y;
        truth[i].p = f.p;
    }
    e = oracle_compare(o.acc, truth, chosen, samples);
    CHECK_BELOW(e.share, bar);
    CHECK_BELOW(oracle_compare_potential(o.potential, truth, chosen, samples), bar);
    CHECK_RESULT(nbody_validate(&o.sim), NBODY_OK);
    oracle_drop_pyramid(p);
    free(truth);
    free(chosen);
    drop(&o);
}

/* Inputs whose places nobody rounds to the other side of a border, and that have no mass of 0 total in a sub-cell by chance. */
static void test_pyramid(void **state)
{
    static const int inputs[] = {ORACLE_UNIFORM, ORACLE_MASSES, ORACLE_CLUMPS, ORACLE_SIGNS, ORACLE_WILD};
    int counter, k;
    (void)state;
    for (k = 0; k < COUNT_OF(settings); k++) for (counter = 0; counter < (small_run() ? 1 : SANITIZED ? 3 : 10); counter++) {
        oracle_scene s;
        nbody_desc d = oracle_desc(&settings[k]);
        int const input = inputs[(counter + k) % COUNT_OF(inputs)];
        if (input == ORACLE_SIGNS && d.sources == NBODY_MASS_CENTRES) continue;
        d.levels = 1 + (counter + 2) % 6;
        if (settings[k].order >= 8 && d.levels > 4) continue; /* slow, and 4 levels have all there is */
        d.law = counter % 3 == 1 ? NBODY_INVERSE : NBODY_INVERSE_SQUARE;
        d.softening = counter % 4 >= 2 ? (real)0.02 : 0;
        d.gravity = counter % 5 == 4 ? -3 : 0;
        if (counter % 2) d.size = 1;
        if (counter % 4 == 1) {
            d.min[0] = (real)-0.125;
            d.min[1] = (real)-0.5;
            d.size = 2;
        }
        oracle_make(&s, input, small_run() ? 60 : 100 + roll(300), counter % 2, &dice);
        note(&s, &d, settings[k].name);
        check_pyramid(&s, &d, rounding());
        oracle_forget(&s);
    }
}

/* The pyramid itself: the values that were computed elsewhere (first body of each case, 5 levels). Then the header. */
static void test_known_values(void **state)
{
    static const int known_setting[3] = {S_VP, S_FN8, S_FN4C};
    static const double known[3][3][2] = {
        {{-305335.651619781, -1311779.32279430}, {-305334.069830837, -1311780.35059517}, {-305335.204486741, -1311779.72033848}},
        {{133191.413619327, -28963.7564146973}, {133043.440703694, -29033.0807764770}, {133171.378094880, -28982.1702237773}},
        {{-650.477033668079, 5088.10471858657}, {-659.986780865987, 5079.87231307294}, {-648.503712362524, 5087.87140305887}}};
    int c, k;
    (void)state;
    for (c = 0; c < 3; c++) for (k = 0; k < 3; k++) {
        const oracle_case_row *row;
        oracle_scene s;
        oracle_how how;
        oracle_pyramid *p;
        oracle_field f;
        outcome o;
        nbody_desc d = oracle_desc(&settings[known_setting[k]]);
        int32_t n = 0, i;
        double mass, all;
        d.levels = 5;
        d.size = 1;
        oracle_make(&s, ORACLE_CASE_CLUSTERED + c, 0, 1, &dice);
        row = oracle_case(s.input, &n);
        mass = row[0][2];
        all = row[0][5];
        for (i = 0; i < n; i++) { /* not rounded to floats */
            s.body[i].x = row[i][0];
            s.body[i].y = row[i][1];
            s.body[i].m = row[i][2];
        }
        note(&s, &d, settings[known_setting[k]].name);
        evaluate(&o, &d, &s);
        how = oracle_how_of(&o.sim);
        CHECK(how.x0 == 0 && how.y0 == 0 && how.size == 1 && !o.sim.frame->fitted);
        p = oracle_pyramid_of(&how, s.body, n);
        f = oracle_pyramid_at(p, 0);
        CHECK_BELOW(hypot(mass * f.x - known[c][k][0], mass * f.y - known[c][k][1]), 1e-12 * all);
        CHECK_BELOW(hypot(mass * (double)o.acc[0] - known[c][k][0], mass * (double)o.acc[1] - known[c][k][1]),
                    (IS_FLOAT ? 2e-5 : 1e-11) * all); /* in floats the places are others */
        oracle_drop_pyramid(p);
        drop(&o);
        oracle_forget(&s);
    }
}

/* The cases, against their forces of 113 bits, at 4 to 6 levels. */
static void test_cases(void **state)
{
    /* Largest |dF| / S of a correct program, times 1.2: case 05, 06, 10. */
    static const struct { int setting; double bar[3]; } limits[] = {
        {S_VP, {3.5e-4, 1.3e-4, 1.3e-4}}, {S_FN8, {6.4e-3, 8.4e-3, 4.4e-3}}, {S_FN4C, {3.7e-3, 3.7e-3, 3.7e-3}},
        {S_C8, {2e-5, 2e-5, 2e-5}}};
    int const most = small_run() ? 4 : SANITIZED ? 5 : 6;
    int c, k, levels;
    (void)state;
    for (c = 0; c < 3; c++) for (k = 0; k < COUNT_OF(limits); k++) for (levels = 4; levels <= most; levels++) {
        const oracle_case_row *row;
        oracle_scene s;
        outcome o;
        nbody_desc d = oracle_desc(&settings[limits[k].setting]);
        int32_t n = 0, i;
        d.levels = levels;
        d.size = 1;
        oracle_make(&s, ORACLE_CASE_CLUSTERED + c, 0, 1, &dice);
        row = oracle_case(s.input, &n);
        note(&s, &d, settings[limits[k].setting].name);
        evaluate(&o, &d, &s);
        for (i = 0; i < n; i++) {
            double const m = row[i][2], x = m * (double)o.acc[2 * i], y = m * (double)o.acc[2 * i + 1];
            double const wrong = hypot(x - row[i][3], y - row[i][4]);
            if (row[i][5] > 0) CHECK_BELOW(wrong, (1.2 * limits[k].bar[c] + (IS_FLOAT ? 1e-4 : 0)) * row[i][5]);
            else CHECK(wrong == 0);
        }
        drop(&o);
        if (!small_run() && !SANITIZED) check_pyramid(&s, &d, rounding());
        oracle_forget(&s);
    }
}

/* Up to 2 levels nothing is far, and at 3 levels VP has no virtual ones yet: the direct sum. */
static void test_shallow_trees_are_direct(void **state)
{
    int k, levels;
    (void)state;
    for (k = 0; k < COUNT_OF(settings); k++) for (levels = 1; levels <= 3; levels++) {
        oracle_scene s;
        nbody_desc d = oracle_desc(&settings[k]);
        if (levels == 3 && settings[k].method != VP) continue;
        d.levels = levels;
        oracle_make(&s, ORACLE_MASSES, small_run() ? 30 : 300, 1, &dice);
        note(&s, &d, settings[k].name);
        (void)check_against_direct(&d, &s, IS_FLOAT ? 0 : 1e-14);
        oracle_forget(&s);
    }
}

/* ------------------------------------------------------------------------------------------------
   Bars: what a correct program reaches, by number of bodies and depth
   ------------------------------------------------------------------------------------------------ */

/* limit: of VP, FN8, FN4c, C8; mean, p99, largest dF / S. */
typedef struct size_bars { int32_t n; int levels[2]; double limit[4][3]; } size_bars;

static const size_bars bars[] = {
    {1000, {4, 5}, {{1.5e-4, 1.3e-3, 5e-4}, {2.6e-3, 3e-2, 8e-3}, {1.3e-3, 1.1e-2, 3.2e-3}, {2.4e-6, 2.2e-5, 1.3e-5}}},
    {10000, {5, 6}, {{3e-4, 2.5e-3, 2e-4}, {1.5e-3, 1.5e-2, 3e-3}, {7e-4, 6.5e-3, 1.1e-3}, {1.1e-6, 1.1e-5, 5e-6}}},
    {100000, {6, 7}, {{4.2e-4, 3.2e-3, 2e-4}, {1.6e-3, 1.7e-2, 2.4e-3}, {5.5e-4, 4.5e-3, 6e-4}, {8e-7, 8e-6, 1.5e-6}}},
    {1000000, {8, 9}, {{5.5e-4, 4e-3, 2e-4}, {1.9e-3, 1.8e-2, 2e-3}, {5.5e-4, 5.5e-3, 4.5e-4}, {3e-7, 3e-6, 3e-7}}},
};

static void check_bar(const oracle_scene *s, const size_bars *b, int which, const oracle_field *truth, const int32_t *chosen,
                      int32_t samples)
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
    int const sizes = environment("NBODY_LARGE", 0) ? 4 : small_run() || SANITIZED ? 1 : 2;
    int size, which, masses;
    (void)state;
    for (size = 0; size < sizes; size++) for (masses = 0; masses < (size == 3 ? 1 : 2); masses++) {
        oracle_law const law = oracle_law_of(0, 1, 0);
        int32_t const samples = small_run() ? 60 : bars[size].n < 2000 ? bars[size].n : SANITIZED ? 300 : 1000;
        oracle_scene s;
        int32_t *chosen;
        oracle_field *truth;
        oracle_make(&s, masses ? ORACLE_MASSES : ORACLE_UNIFORM, bars[size].n, 0, &dice);
        truth = oracle_truth(&s, &law, samples, &chosen);
        for (which = 0; which < 4; which++) check_bar(&s, &bars[size], which, truth, chosen, samples);
        free(truth);
        free(chosen);
        oracle_forget(&s);
    }
}

/* More is more exact: mean errors by order, and by number of sub-cells. */
static void test_orders(void **state)
{
    static const double mean[13] = {0, 0, 3e-2, 8e-3, 1e-3, 2e-4, 2.5e-5, 6e-6, 1.2e-6, 3e-7, 6e-8, 1.5e-8, 4e-9};
    static const struct { int setting; double mean; } centres[] = {
        {S_VP, 2e-4}, {S_VP_4, 1e-3}, {S_VP_2, 1e-2}, {S_MOMENTS, 1.5e-6}, {S_MOMENTS_4, 4e-5}, {S_MOMENTS_2, 4e-4}};
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

/* ------------------------------------------------------------------------------------------------
   Any input, any tree
   ------------------------------------------------------------------------------------------------ */

/* Cells are divided exactly where they have more than `leaf` bodies, and levels last. */
static void check_division(const nbody *sim)
{
    const nbody_frame *f = sim->frame;
    int32_t c;
    for (c = 0; c < f->cells; c++) {
        const nbody_cell *cell = &sim->cell[c];
        CHECK((cell->child >= 0) == (cell->count > sim->desc.leaf && cell->level + 1 < sim->desc.levels));
        CHECK(cell->count > 0 && (cell->level == 0 || sim->cell[cell->parent].count > sim->desc.leaf));
    }
}

static int takes(const oracle_setting *setting, int input) { return input != ORACLE_SIGNS || setting->sources == NBODY_CHEBYSHEV; }

/* One setting and one tree of a scene whose forces are known. */
static void check_any_input(const oracle_scene *s, const oracle_setting *setting, const oracle_law *law, int tree,
                            const oracle_field *truth)
{
    oracle_errors e;
    outcome o;
    nbody_desc d = oracle_desc(setting);
    d.law = (nbody_law)law->inverse;
    d.softening = (real)law->softening;
    d.levels = tree == 2 ? 5 : tree == 3 ? 9 : 0;
    d.leaf = tree == 1 ? 5 : tree == 3 ? 20 : 0;
    note(s, &d, setting->name);
    evaluate(&o, &d, s);
    e = oracle_compare(o.acc, truth, NULL, s->n);
    CHECK_BELOW(e.share, setting->share + deep_share(&o.sim));
    CHECK_BELOW(oracle_compare_potential(o.potential, truth, NULL, s->n), setting->share + deep_share(&o.sim));
    CHECK_RESULT(nbody_validate(&o.sim), NBODY_OK);
    CHECK_FINE(oracle_check_walks(&o.sim));
    check_division(&o.sim);
    drop(&o);
}

static void test_any_input(void **state)
{
    int const every = small_run() ? 131 : SANITIZED ? 97 : 11;
    int input, k, tree, law;
    (void)state;
    for (input = 0; input < ORACLE_INPUTS; input++) for (law = 0; law < 2; law++) {
        int const softened = law && (input == ORACLE_PILES || input == ORACLE_ONE_PLACE);
        oracle_law const truth_law = oracle_law_of(law, 1, softened ? (double)(real)0.01 : 0);
        oracle_scene s;
        oracle_field *truth;
        int32_t *chosen;
        oracle_make(&s, input, small_run() ? 50 : 300, 0, &dice);
        truth = oracle_truth(&s, &truth_law, s.n, &chosen);
        for (k = 0; k < COUNT_OF(settings); k++) for (tree = 0; tree < 4; tree++) {
            /* of orders that need a table for every level, because a potential is a logarithm, fewer */
            if ((input * 7 + k * 3 + tree * 5 + law) % (law && settings[k].order >= 8 ? 4 * every : every)) continue;
            if (takes(&settings[k], input)) check_any_input(&s, &settings[k], &truth_law, tree, truth);
        }
        free(truth);
        free(chosen);
        oracle_forget(&s);
    }
}

/* The walk of a point, anywhere: each body once, and by its cell's sources only where a whole cell of that level lies between. */
static void check_near_point(const nbody *sim, double const at[2], uint8_t *met)
{
    nbody_near walk = nbody_near_point(sim, (real)at[0], (real)at[1]);
    int32_t i;
    memset(met, 0, (size_t)sim->n);
    while (nbody_next_near(&walk)) {
        const nbody_cell *cell = &sim->cell[walk.cell];
        int32_t const column[2] = {cell->x, cell->y};
        int a, beside = 1;
        for (a = 0; a < 2; a++) {
            double const own = floor(((double)(real)at[a] - sim->frame->origin[a]) / sim->frame->edge * (double)(1 << cell->level));
            beside = beside && own - column[a] >= -1 && own - column[a] <= 1;
        }
        CHECK(walk.whole == (cell->level < 2 || beside));
        CHECK(!walk.whole || cell->child < 0);
        for (i = 0; i < cell->count; i++) met[cell->first + i]++;
    }
    for (i = 0; i < sim->n; i++) CHECK(met[i] == 1);
}

static void test_near_points(void **state)
{
    static const double far[] = {-1e30, -1e9, -40, -2.2, -0.4, 0.3, 1.4, 2.1, 40, 1e9, 1e30}; /* in edges of the square */
    int const rounds = small_run() ? 20 : 300;
    int input, k, x, y;
    int32_t i;
    (void)state;
    for (input = 0; input < 3; input++) {
        oracle_scene s;
        nbody sim = {0};
        nbody_desc d = oracle_desc(&settings[S_VP]);
        double at[2];
        uint8_t *met;
        d.leaf = 3;
        oracle_make(&s, input == 1 ? ORACLE_CLUMPS : ORACLE_UNIFORM, small_run() ? 80 : 300, 0, &dice);
        for (i = 0; i < s.n && input == 2; i++) s.pos[2 * i + 1] -= 5; /* a square whose corner is not on the diagonal */
        note(&s, &d, "walks of points");
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        CHECK(sim.frame->levels > 3);
        met = NEW(uint8_t, s.n);
        for (k = 0; k < rounds; k++) { /* in and around the square */
            at[0] = sim.frame->origin[0] + sim.frame->edge * (3 * wl_u(&dice) - 1);
            at[1] = sim.frame->origin[1] + sim.frame->edge * (3 * wl_u(&dice) - 1);
            check_near_point(&sim, at, met);
        }
        for (x = 0; x < COUNT_OF(far); x++) for (y = 0; y < COUNT_OF(far); y++) {
            at[0] = sim.frame->origin[0] + sim.frame->edge * far[x];
            at[1] = sim.frame->origin[1] + sim.frame->edge * far[y];
            check_near_point(&sim, at, met);
        }
        free(met);
        nbody_free(&sim);
        oracle_forget(&s);
    }
}

/* Bodies that pile up in one cell of the last level, with others far away: pair by pair, and no number is lost. */
static void test_crowded_cell(void **state)
{
    int k;
    (void)state;
    for (k = 0; k < COUNT_OF(settings); k += 3) {
        oracle_scene s;
        nbody_counts counts;
        outcome o;
        nbody_desc d = oracle_desc(&settings[k]);
        int32_t i, n = small_run() ? 40 : 400;
        oracle_make(&s, ORACLE_ONE_PLACE, n, 0, &dice);
        for (i = 0; i < n - 3; i++) s.pos[2 * i] += (real)(1e-6 * (i % 10)), s.pos[2 * i + 1] += (real)(1e-6 * (i / 10 % 10));
        s.pos[2 * n - 2] = 300;
        free(s.body);
        s.body = oracle_bodies(s.pos, s.mass, n);
        note(&s, &d, settings[k].name);
        (void)check_against_direct(&d, &s, settings[k].share);
        evaluate(&o, &d, &s);
        CHECK_RESULT(nbody_count(&o.sim, &counts), NBODY_OK);
        CHECK(small_run() || counts.levels == o.sim.desc.levels || counts.near_terms < (int64_t)n * n / 4);
        CHECK_FINE(oracle_check_walks(&o.sim));
        drop(&o);
        oracle_forget(&s);
    }
}

/* A body that is outside the square, by one number: the fitted one is taken. On its borders is inside. */
static void test_square(void **state)
{
    static const real borders[] = {0, 1};
    int k, side, axis, out;
    (void)state;
    for (k = 0; k < COUNT_OF(settings); k += SANITIZED ? 11 : 5) for (side = 0; side < 2; side++)
        for (axis = 0; axis < 2; axis++) for (out = 0; out < 2; out++) {
        oracle_scene s;
        outcome o;
        nbody_desc d = oracle_desc(&settings[k]);
        int32_t const n = small_run() ? 40 : 100, last = n - 1;
        d.size = 1;
        d.leaf = 8;
        oracle_make(&s, ORACLE_UNIFORM, n, 0, &dice);
        s.pos[2 * last + axis] = borders[side];
        if (out) s.pos[2 * last + axis] = side ? oracle_beside(1, 1) : -(real)1e-6;
        free(s.body);
        s.body = oracle_bodies(s.pos, s.mass, n);
        note(&s, &d, settings[k].name);
        (void)check_against_direct(&d, &s, settings[k].share);
        evaluate(&o, &d, &s);
        CHECK(o.sim.frame->fitted == out);
        if (!out) CHECK(o.sim.frame->min[0] == 0 && o.sim.frame->min[1] == 0 && o.sim.frame->size == 1);
        else CHECK(o.sim.frame->min[axis] >= -1.1e-6 && o.sim.frame->size < 1.1 && o.sim.frame->size > 0.8);
        CHECK_RESULT(nbody_validate(&o.sim), NBODY_OK);
        CHECK_FINE(oracle_check_walks(&o.sim));
        drop(&o);
        oracle_forget(&s);
    }
}

/* Units: lengths and masses times powers of two give the same bits, other powers of ten the same errors. */
static void test_units(void **state)
{
    static const struct { int length, mass; } powers[] = {{40, 60}, {-40, -60}, {3, -5}, {-20, 0}};
    int k, p, law, softened;
    (void)state;
    for (k = 0; k < COUNT_OF(settings) + 1; k += small_run() ? 9 : 1) for (law = 0; law < 2; law++)
        for (softened = 0; softened < 2; softened++) {
        oracle_scene s, t;
        outcome o;
        nbody_desc d, direct;
        int const given = (k + law + softened) % 2;
        if ((k + 2 * law + softened) % (SANITIZED ? 13 : 5)) continue;
        memset(&direct, 0, sizeof direct);
        direct.method = NBODY_DIRECT;
        d = k < COUNT_OF(settings) ? oracle_desc(&settings[k]) : direct;
        d.law = (nbody_law)law;
        d.softening = softened ? (real)0.03 : 0;
        d.leaf = 7;
        if (given) d.size = 1;
        oracle_make(&s, ORACLE_MASSES, small_run() ? 40 : 250, 0, &dice);
        note(&s, &d, k < COUNT_OF(settings) ? settings[k].name : "direct");
        evaluate(&o, &d, &s);
        for (p = 0; p < COUNT_OF(powers); p++) {
            double const length = ldexp(1, powers[p].length), mass = ldexp(1, powers[p].mass);
            double const force = law ? mass / length : mass / length / length, shift = law ? log(length) * mass : 0;
            outcome scaled;
            double total = 0;
            int32_t i;
            oracle_make(&t, ORACLE_MASSES, s.n, 0, &dice);
            for (i = 0; i < s.n; i++) {
                t.pos[2 * i] = (real)((double)s.pos[2 * i] * length);
                t.pos[2 * i + 1] = (real)((double)s.pos[2 * i + 1] * length);
                t.mass[i] = (real)((double)s.mass[i] * mass);
                total += (double)s.mass[i];
            }
            d.softening = softened ? (real)0.03 * (real)length : 0;
            if (given) d.size = (real)length;
            evaluate(&scaled, &d, &t);
            for (i = 0; i < s.n; i++) {
                double const want = (law ? mass : mass / length) * (double)o.potential[i] + shift * (total - (double)s.mass[i]);
                CHECK((double)scaled.acc[2 * i] == force * (double)o.acc[2 * i]);
                CHECK((double)scaled.acc[2 * i + 1] == force * (double)o.acc[2 * i + 1]);
                if (!law) CHECK((double)scaled.potential[i] == want);
                else CHECK_BELOW(fabs((double)scaled.potential[i] - want),
                                 (IS_FLOAT ? 3e-6 : 1e-12) * total * (mass + fabs(shift)));
            }
            drop(&scaled);
            oracle_forget(&t);
        }
        drop(&o);
        oracle_forget(&s);
    }
}

static void test_any_units(void **state)
{
    static const double lengths[] = {3.7e9, 1.3e-9, 1e3}, masses[] = {1.9e-12, 7e3, 5e20};
    int k, p;
    (void)state;
    for (k = 0; k < COUNT_OF(settings); k += 2) for (p = 0; p < COUNT_OF(lengths); p++) {
        oracle_scene s;
        nbody_desc d = oracle_desc(&settings[k]);
        int32_t i;
        oracle_make(&s, ORACLE_CLUMPS, small_run() ? 40 : 300, 1, &dice);
        for (i = 0; i < s.n; i++) {
            s.pos[2 * i] *= (real)lengths[p];
            s.pos[2 * i + 1] *= (real)lengths[p];
            s.mass[i] *= (real)masses[p];
        }
        free(s.body);
        s.body = oracle_bodies(s.pos, s.mass, s.n);
        d.leaf = 10;
        note(&s, &d, settings[k].name);
        (void)check_against_direct(&d, &s, settings[k].share);
        oracle_forget(&s);
    }
}

/* Two bodies nearer than what a force can be of are softened, and nothing overflows. */
static void test_very_near(void **state)
{
    int k;
    (void)state;
    for (k = 0; k < COUNT_OF(settings) + 1; k++) {
        static const real mass[3] = {1, 1, 1};
        real const tiny = IS_FLOAT ? (real)1e-30 : (real)1e-200;
        real pos[6] = {0, 0, 0, 0, 1, 1}, acc[6], potential[3];
        nbody sim = {0};
        nbody_desc d;
        int i;
        memset(&d, 0, sizeof d);
        if (k < COUNT_OF(settings)) d = oracle_desc(&settings[k]);
        else d.method = NBODY_DIRECT;
        pos[2] = tiny;
        note(NULL, &d, k < COUNT_OF(settings) ? settings[k].name : "direct");
        CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, mass, 3, acc, potential), NBODY_OK);
        for (i = 0; i < 6; i++) CHECK(acc[i] - acc[i] == 0);
        for (i = 0; i < 3; i++) CHECK(potential[i] - potential[i] == 0);
        CHECK_BELOW(fabs((double)acc[4] + sqrt(0.5)), 1e-6);
        nbody_free(&sim);
    }
}

/* A clump far from the origin, and bodies on a line much narrower than its distance: deep trees, where powers of small distances grow. */
static void test_far_from_the_origin(void **state)
{
    enum { N = 600 };
    static real pos[2 * N], acc[2 * N];
    int k, i, line;
    (void)state;
    for (k = 0; k < COUNT_OF(settings); k += small_run() ? 7 : 1)
        for (line = 0; line < 2; line++) {
            nbody sim = {0};
            nbody_desc d = oracle_desc(&settings[k]);
            nbody_error error;
            wl_random random = wl_seed(5);
            d.levels = 0;
            d.leaf = 4;
            for (i = 0; i < N; i++) {
                double const x = wl_u(&random), y = wl_u(&random), clump = i % 2 ? 2e-4 : 1;
                pos[2 * i] = line ? (real)1 : (real)(16 + clump * x);
                pos[2 * i + 1] = line ? (real)(1e-6 * y) : (real)(16 + clump * y);
            }
            note(NULL, &d, settings[k].name);
            CHECK_RESULT(nbody_accelerations(&sim, &d, pos, 0, NULL, N, acc), NBODY_OK);
            for (i = 0; i < 2 * N; i++) CHECK(acc[i] - acc[i] == 0);
            CHECK_RESULT(nbody_estimate(&sim, acc, N, 1, &error), NBODY_OK);
            CHECK_BELOW(error.mean_share, 0.05);
            nbody_free(&sim);
        }
}

/* ------------------------------------------------------------------------------------------------
   Momentum, motion, energy
   ------------------------------------------------------------------------------------------------ */

/* What the bodies do to each other adds up to nothing, as far as the method keeps to it; with the same table both ways, exactly. */
static void test_momentum(void **state)
{
    static const struct { int setting; double bar; } limits[] = {
        {S_VP, 2e-6}, {S_FN8, 8e-6}, {S_FN4C, 4e-6}, {S_C4, 1e-14}, {S_C8, 1e-14}};
    int const reduced = small_run() || SANITIZED;
    oracle_scene s;
    int k;
    (void)state;
    oracle_make(&s, ORACLE_UNIFORM, reduced ? 1000 : 10000, 0, &dice);
    for (k = 0; k < COUNT_OF(limits); k++) {
        nbody sim = {0};
        nbody_desc d = oracle_desc(&settings[limits[k].setting]);
        real *acc = NEW(real, 2 * (size_t)s.n);
        double x = 0, y = 0, all = 0;
        int32_t i;
        d.levels = reduced ? 4 : 6;
        note(&s, &d, settings[limits[k].setting].name);
        CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, s.n, acc), NBODY_OK);
        for (i = 0; i < s.n; i++) {
            x += (double)acc[2 * i];
            y += (double)acc[2 * i + 1];
            all += hypot((double)acc[2 * i], (double)acc[2 * i + 1]);
        }
        CHECK_BELOW(hypot(x, y) / all, (reduced ? 10 : 1) * limits[k].bar + (IS_FLOAT ? 2e-8 : 0));
        nbody_free(&sim);
        free(acc);
    }
    oracle_forget(&s);
}

/* One step each, by the formulas. */
static void test_step_by_hand(void **state)
{
    int kind, step;
    (void)state;
    for (kind = 0; kind < 2; kind++) {
        real pos[6] = {-1, 0, 1, 0, 0, 2}, vel[6] = {0, (real)-0.5, 0, (real)0.5, (real)0.1, 0}, acc[6];
        static const real mass[3] = {1, 2, 3};
        double p[6], v[6], a[6];
        real const dt = (real)0.0625;
        nbody_bodies b = {pos, vel, acc, mass, 3, 0};
        nbody sim = {0};
        nbody_desc d;
        int e;
        memset(&d, 0, sizeof d);
        d.softening = (real)0.25;
        for (e = 0; e < 6; e++) p[e] = (double)pos[e], v[e] = (double)vel[e];
        for (step = 0; step < 4; step++) {
            oracle_law const law = oracle_law_of(0, 1, 0.25);
            oracle_body body[3];
            int i, kick;
            for (kick = 0; kick < 2; kick++) { /* EULER: one kick, then the drift */
                for (i = 0; i < 3; i++) body[i].x = p[2 * i], body[i].y = p[2 * i + 1], body[i].m = (double)mass[i];
                for (i = 0; i < 3; i++) {
                    oracle_field const f = oracle_direct(&law, body, 3, p[2 * i], p[2 * i + 1], i);
                    a[2 * i] = f.x;
                    a[2 * i + 1] = f.y;
                }
                for (e = 0; e < 6; e++) v[e] += kind == NBODY_EULER ? a[e] * (double)dt : a[e] * (double)dt / 2;
                for (e = 0; e < 6 && kick == 0; e++) p[e] += v[e] * (double)dt;
                if (kind == NBODY_EULER) break;
            }
            CHECK_RESULT(nbody_step(&sim, &d, &b, dt, (nbody_integrator)kind), NBODY_OK);
            CHECK(b.fresh == (kind == NBODY_LEAPFROG));
            for (e = 0; e < 6; e++) {
                CHECK_BELOW(fabs((double)pos[e] - p[e]), 16 * REAL_EPSILON);
                CHECK_BELOW(fabs((double)vel[e] - v[e]), 16 * REAL_EPSILON);
                CHECK_BELOW(fabs((double)acc[e] - a[e]), 64 * REAL_EPSILON);
            }
        }
        nbody_free(&sim);
    }
}

/* LEAPFROG uses what it has: forces once per step, and twice where acc is not fresh. */
static void test_step_fresh(void **state)
{
    real pos[4] = {-1, 0, 1, 0}, vel[4] = {0, 0, 0, 0}, acc[4];
    nbody_bodies b = {pos, vel, acc, NULL, 2, 0};
    nbody sim = {0};
    (void)state;
    acc[0] = acc[1] = acc[2] = acc[3] = 1000;
    CHECK_RESULT(nbody_step(&sim, NULL, &b, 0, NBODY_LEAPFROG), NBODY_OK); /* no time passes, but forces are known then */
    CHECK(b.fresh == 1 && acc[0] == (real)0.25 && acc[1] == 0 && acc[2] == (real)-0.25 && vel[0] == 0 && pos[0] == -1);
    acc[1] = acc[3] = 8; /* whoever sets acc is believed */
    CHECK_RESULT(nbody_step(&sim, NULL, &b, (real)0.5, NBODY_LEAPFROG), NBODY_OK);
    CHECK(pos[1] == 1 && pos[3] == 1 && acc[1] == 0);
    acc[1] = acc[3] = 8;
    b.fresh = 0;
    CHECK_RESULT(nbody_step(&sim, NULL, &b, (real)0.5, NBODY_LEAPFROG), NBODY_OK);
    CHECK(pos[1] == 2 && pos[3] == 2); /* the velocity of the first kick, 2 */
    acc[1] = acc[3] = 8;
    b.fresh = 1;
    CHECK_RESULT(nbody_step(&sim, NULL, &b, (real)0.5, NBODY_EULER), NBODY_OK);
    CHECK(pos[1] == 5 && pos[3] == 5 && b.fresh == 0); /* a velocity of 6 */
    nbody_free(&sim);
}

typedef struct orbit { double radius, phase, energy, angular, momentum; } orbit;

/* Two bodies on a circle of radius 1, which each goes round in 4 pi; the largest errors over some periods. Phase: at the end. */
static orbit go_round(nbody_integrator kind, int periods, int steps_per_period)
{
    real pos[4] = {-1, 0, 1, 0}, vel[4] = {0, (real)-0.5, 0, (real)0.5}, acc[4], potential[2];
    nbody_bodies b = {pos, vel, acc, NULL, 2, 0};
    nbody sim = {0}, other = {0};
    nbody_energies energies, first;
    orbit worst = {0, 0, 0, 0, 0};
    real const dt = (real)(4 * ORACLE_PI / steps_per_period);
    double const angle = periods * (double)steps_per_period * (double)dt / 2; /* dt is rounded */
    int step;
    CHECK_RESULT(nbody_energy(&b, NULL, &first), NBODY_OK);
    for (step = 0; step < periods * steps_per_period; step++) {
        CHECK_RESULT(nbody_step(&sim, NULL, &b, dt, kind), NBODY_OK);
        worst.radius = fmax(worst.radius, fabs(hypot((double)pos[2], (double)pos[3]) - 1));
        if (step % 7) continue;
        CHECK_RESULT(nbody_fields(&other, NULL, pos, 0, NULL, 2, NULL, potential), NBODY_OK);
        CHECK_RESULT(nbody_energy(&b, potential, &energies), NBODY_OK);
        worst.energy = fmax(worst.energy, fabs(energies.kinetic + energies.potential + 0.25) / 0.25);
        worst.angular = fmax(worst.angular, fabs(energies.angular - first.angular));
        worst.momentum = fmax(worst.momentum, hypot(energies.momentum[0], energies.momentum[1]));
    }
    worst.phase = fabs(remainder(atan2((double)pos[3], (double)pos[2]) - angle, 2 * ORACLE_PI));
    nbody_free(&sim);
    nbody_free(&other);
    return worst;
}

/* For 100 periods; half the step gives a quarter of the error with LEAPFROG, half of it with EULER. */
static void test_step_round_a_circle(void **state)
{
    int const periods = small_run() ? 1 : 100;
    orbit const leap = go_round(NBODY_LEAPFROG, periods, 200), euler = go_round(NBODY_EULER, periods, 200);
    (void)state;
    CHECK_BELOW(leap.radius, 1e-3);
    CHECK_BELOW(leap.energy, 1e-3);
    CHECK_BELOW(leap.phase, 0.22 * periods / 100 + (IS_FLOAT ? 0.02 : 1e-6));
    CHECK_BELOW(leap.angular, IS_FLOAT ? 1e-4 : 1e-11);
    CHECK_BELOW(leap.momentum, IS_FLOAT ? 1e-5 : 1e-12);
    CHECK_BELOW(euler.radius, 0.04);
    CHECK_BELOW(euler.energy, 0.08);
    CHECK_BELOW(euler.angular, IS_FLOAT ? 1e-4 : 1e-11);
    {
        orbit const coarse = go_round(NBODY_LEAPFROG, 2, 50), fine = go_round(NBODY_LEAPFROG, 2, 100);
        orbit const rough = go_round(NBODY_EULER, 2, 50), smooth = go_round(NBODY_EULER, 2, 100);
        CHECK(coarse.radius / fine.radius > 3.6 && coarse.radius / fine.radius < 4.4);
        CHECK(coarse.phase / fine.phase > 3.6 && coarse.phase / fine.phase < 4.4);
        CHECK(rough.radius / smooth.radius > 1.8 && rough.radius / smooth.radius < 2.2);
        CHECK(smooth.radius > 10 * fine.radius);
    }
}

/* What some steps of many bodies that turn around the centre of the square change: energy, as a share of what there is of it,
   momentum and angular momentum as a share of the sum of all |m v|. */
typedef struct drift { double energy, momentum, angular; } drift;

static drift drift_of(const nbody_desc *d, int32_t n, int steps)
{
    oracle_scene s;
    nbody sim = {0};
    nbody_energies first, last;
    real *vel = NEW(real, 2 * (size_t)n), *acc = NEW(real, 2 * (size_t)n), *potential = NEW(real, n);
    nbody_bodies b;
    drift change;
    double size = 0;
    int32_t i;
    dice = wl_seed(11);
    oracle_make(&s, ORACLE_UNIFORM, n, 0, &dice);
    for (i = 0; i < n; i++) {
        vel[2 * i] = -(real)sqrt(n) * (s.pos[2 * i + 1] - (real)0.5);
        vel[2 * i + 1] = (real)sqrt(n) * (s.pos[2 * i] - (real)0.5);
    }
    memset(&b, 0, sizeof b);
    b.pos = s.pos;
    b.vel = vel;
    b.acc = acc;
    b.n = n;
    CHECK_RESULT(nbody_fields(&sim, d, s.pos, 0, NULL, n, acc, potential), NBODY_OK);
    CHECK_RESULT(nbody_energy(&b, potential, &first), NBODY_OK);
    while (steps-- > 0) CHECK_RESULT(nbody_step(&sim, d, &b, (real)(0.01 / sqrt(n)), NBODY_LEAPFROG), NBODY_OK);
    CHECK_RESULT(nbody_fields(&sim, d, s.pos, 0, NULL, n, acc, potential), NBODY_OK);
    CHECK_RESULT(nbody_energy(&b, potential, &last), NBODY_OK);
    for (i = 0; i < 2 * n; i++) size += fabs((double)vel[i]);
    change.energy = (last.kinetic + last.potential - first.kinetic - first.potential) / (first.kinetic - first.potential);
    change.momentum = hypot(last.momentum[0] - first.momentum[0], last.momentum[1] - first.momentum[1]) / size;
    change.angular = fabs(last.angular - first.angular) / size;
    CHECK(first.mass == n && last.mass == n && first.potential < 0);
    nbody_free(&sim);
    free(vel);
    free(acc);
    free(potential);
    oracle_forget(&s);
    return change;
}

/* The energy that the integrator loses is the same with any method, up to the method's own error; momentum stays. */
static void test_step_drift(void **state)
{
    static const struct { int setting; double energy, momentum; } limits[] = {
        {S_VP, 3e-4, 1e-4}, {S_FN8, 1e-3, 1e-4}, {S_FN4C, 5e-4, 1e-4}, {S_C4, 5e-4, 1e-14}, {S_C8, 1e-6, 1e-14}};
    int32_t const n = small_run() ? 60 : SANITIZED ? 100 : 300;
    int const steps = small_run() ? 5 : SANITIZED ? 15 : 50;
    double const more = IS_FLOAT ? 3e-6 : 0;
    nbody_desc d;
    drift direct, change;
    int k;
    (void)state;
    memset(&d, 0, sizeof d);
    d.method = NBODY_DIRECT;
    d.softening = (real)0.05;
    note(NULL, &d, "direct");
    direct = drift_of(&d, n, steps);
    CHECK_BELOW(fabs(direct.energy), 0.015);
    CHECK_BELOW(direct.momentum, 1e-14 + more);
    CHECK_BELOW(direct.angular, 1e-14 + more);
    for (k = 0; k < COUNT_OF(limits); k++) {
        d = oracle_desc(&settings[limits[k].setting]);
        d.softening = (real)0.05;
        d.levels = 4;
        note(NULL, &d, settings[limits[k].setting].name);
        change = drift_of(&d, n, steps);
        CHECK_BELOW(fabs(change.energy - direct.energy), limits[k].energy + more);
        CHECK_BELOW(change.momentum, limits[k].momentum + more);
        CHECK_BELOW(change.angular, limits[k].setting == S_C8 ? 1e-6 + more : 1e-4);
    }
}

static void test_energy(void **state)
{
    static const real mass[3] = {1, 2, 4}, potential[3] = {-3, -5, -7};
    real pos[6] = {1, 2, -1, 0, 3, 5}, vel[6] = {1, 0, 0, 2, -1, 1}, acc[6];
    nbody_bodies b = {pos, vel, acc, mass, 3, 0};
    nbody_energies e;
    (void)state;
    CHECK_RESULT(nbody_energy(&b, potential, &e), NBODY_OK);
    CHECK(e.kinetic == 0.5 + 4 + 4 && e.potential == -(3 + 10 + 28) / 2.0 && e.mass == 7);
    CHECK(e.momentum[0] == 1 - 4 && e.momentum[1] == 4 + 4);
    CHECK(e.angular == (0 - 2) + 2 * (-2) + 4 * (3 + 5));
    CHECK(fabs(e.centre[0] - 11 / 7.0) < 1e-15 && fabs(e.centre[1] - 22 / 7.0) < 1e-15);
    b.mass = NULL;
    CHECK_RESULT(nbody_energy(&b, NULL, &e), NBODY_OK);
    CHECK(e.kinetic == 0.5 + 2 + 1 && e.potential == 0 && e.mass == 3 && e.centre[0] == 1);
    b.n = 0;
    CHECK_RESULT(nbody_energy(&b, NULL, &e), NBODY_OK);
    CHECK(e.kinetic == 0 && e.mass == 0 && e.centre[0] == 0 && e.centre[1] == 0);
}

/* ------------------------------------------------------------------------------------------------
   Fields at points
   ------------------------------------------------------------------------------------------------ */

enum { POINTS_AT_ONCE = 200 };

/* Inside, on bodies, on borders, around the square and far away. */
static void choose_points(const oracle_scene *s, const nbody_frame *f, real *points)
{
    int i, a;
    for (i = 0; i < POINTS_AT_ONCE; i++) for (a = 0; a < 2; a++) {
        double const from = f->min[a], size = f->size;
        switch (i % 5) {
        case 0: points[2 * i + a] = (real)(from + size * (double)wl_u(&dice)); break;
        case 1: points[2 * i + a] = s->pos[2 * (i % s->n) + a]; break;
        case 2: points[2 * i + a] = (real)(from + size * roll(9) / 8); break;
        case 3: points[2 * i + a] = (real)(from + size * (double)between(-1, 2)); break;
        default: points[2 * i + a] = (real)(from + size * (double)between(-300, 300));
        }
    }
}

static void test_fields_at(void **state)
{
    static const int inputs[] = {ORACLE_UNIFORM, ORACLE_CLUMPS, ORACLE_SIGNS, ORACLE_WILD, ORACLE_BORDERS, ORACLE_TWO_FAR,
                                 ORACLE_ONE_PLACE};
    int k, counter;
    (void)state;
    for (k = 0; k < COUNT_OF(settings) + 1; k++) for (counter = 0; counter < (small_run() || SANITIZED ? 1 : 4); counter++) {
        int const input = inputs[(counter + k) % COUNT_OF(inputs)], tree = k < COUNT_OF(settings);
        real points[2 * POINTS_AT_ONCE], acc[2 * POINTS_AT_ONCE], potential[POINTS_AT_ONCE], alone[2 * POINTS_AT_ONCE];
        oracle_field truth[POINTS_AT_ONCE];
        oracle_law law;
        oracle_scene s;
        nbody sim = {0};
        nbody_desc d;
        double bar;
        int32_t i, bad = 5;
        memset(&d, 0, sizeof d);
        if (tree) d = oracle_desc(&settings[k]);
        else d.method = NBODY_DIRECT;
        if (tree && !takes(&settings[k], input)) continue;
        d.law = (nbody_law)(counter % 2);
        d.softening = counter % 3 == 2 ? (real)0.01 : 0;
        d.levels = counter % 3 == 1 ? 5 : 0;
        oracle_make(&s, input, small_run() ? 30 : 500, 1, &dice);
        note(&s, &d, tree ? settings[k].name : "direct");
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        bar = tree ? 2 * settings[k].share + 2 * deep_share(&sim) : IS_FLOAT ? 2e-6 : 1e-14;
        choose_points(&s, sim.frame, points);
        law = law_of(&d);
        for (i = 0; i < POINTS_AT_ONCE; i++)
            truth[i] = oracle_direct(&law, s.body, s.n, (double)points[2 * i], (double)points[2 * i + 1], -1);
        CHECK_RESULT(nbody_fields_at(&sim, points, 0, POINTS_AT_ONCE, acc, potential, &bad), NBODY_OK);
        CHECK_BELOW(oracle_compare(acc, truth, NULL, POINTS_AT_ONCE).share, bar);
        CHECK_BELOW(oracle_compare_potential(potential, truth, NULL, POINTS_AT_ONCE), bar);
        CHECK_RESULT(nbody_fields_at(&sim, points, 0, POINTS_AT_ONCE, alone, NULL, NULL), NBODY_OK);
        CHECK(same(acc, alone, sizeof acc));
        CHECK_RESULT(nbody_fields_at(&sim, points, 0, POINTS_AT_ONCE, NULL, alone, NULL), NBODY_OK);
        CHECK(same(potential, alone, sizeof potential));
        nbody_free(&sim);
        oracle_forget(&s);
    }
}

/* ------------------------------------------------------------------------------------------------
   Estimates and counts
   ------------------------------------------------------------------------------------------------ */

static int near_to(double value, double want, double share) { return fabs(value - want) <= share * fabs(want); }

/* Over all bodies: what a slow program finds. */
static void test_estimate_of_all(void **state)
{
    int k;
    (void)state;
    for (k = 0; k < COUNT_OF(settings); k += 2) {
        oracle_scene s;
        oracle_law law;
        oracle_field *truth;
        oracle_errors want;
        outcome o;
        nbody_error e;
        int32_t *chosen, i;
        nbody_desc d = oracle_desc(&settings[k]);
        double const share = IS_FLOAT ? 0.01 : 1e-4;
        d.levels = 4;
        d.law = (nbody_law)(k / 2 % 2);
        d.gravity = k % 4 ? -2 : (real)0.5;
        oracle_make(&s, ORACLE_MASSES, small_run() ? 40 : 400, 0, &dice);
        note(&s, &d, settings[k].name);
        evaluate(&o, &d, &s);
        law = law_of(&d);
        truth = oracle_truth(&s, &law, s.n, &chosen);
        for (i = 0; i < 20; i++) o.acc[2 * i] *= (real)0.999; /* errors that no rounding hides */
        want = oracle_compare(o.acc, truth, NULL, s.n);
        CHECK_RESULT(nbody_estimate(&o.sim, o.acc, s.n + 100, 3, &e), NBODY_OK);
        CHECK(e.samples == s.n);
        CHECK(near_to(e.mean, want.mean, share) && near_to(e.worst, want.worst, share));
        CHECK(near_to(e.mean_share, want.mean_share, share) && near_to(e.share, want.share, share));
        CHECK(near_to(e.direction, want.direction, share) && near_to(e.length, want.length, share));
        CHECK(fabs(e.bias - want.bias) <= share * want.length && (small_run() || want.bias < 0));
        free(truth);
        free(chosen);
        drop(&o);
        oracle_forget(&s);
    }
}

/* A sample: as many as asked for, no body twice, others for another seed, the same for the same, and from all over the square. */
static void test_estimate_sample(void **state)
{
    enum { N = 128, SAMPLES = 16, SEEDS = 200 };
    oracle_scene s;
    outcome o;
    nbody_error clean, again, e;
    nbody_desc d;
    int ever[N] = {0}, first[N] = {0}, seed, differ = 0;
    int32_t i;
    (void)state;
    memset(&d, 0, sizeof d);
    d.method = NBODY_VIRTUAL_PARTICLES;
    oracle_make(&s, ORACLE_UNIFORM, N, 0, &dice);
    note(&s, &d, "estimate");
    evaluate(&o, &d, &s);
    for (seed = 0; seed < (small_run() ? 3 : SEEDS); seed++) {
        int found = 0, quarter[4] = {0, 0, 0, 0};
        CHECK_RESULT(nbody_estimate(&o.sim, o.acc, SAMPLES, (uint32_t)seed * 77777777u, &clean), NBODY_OK);
        CHECK_RESULT(nbody_estimate(&o.sim, o.acc, SAMPLES, (uint32_t)seed * 77777777u, &again), NBODY_OK);
        CHECK(clean.samples == SAMPLES && again.samples == SAMPLES);
        CHECK(same(&clean.mean, &again.mean, sizeof clean.mean) && same(&clean.share, &again.share, sizeof clean.share));
        for (i = 0; i < N; i++) { /* is body i in the sample? */
            real const was = o.acc[2 * i];
            o.acc[2 * i] += 1000000;
            CHECK_RESULT(nbody_estimate(&o.sim, o.acc, SAMPLES, (uint32_t)seed * 77777777u, &e), NBODY_OK);
            o.acc[2 * i] = was;
            if (!(e.mean > clean.mean)) continue;
            found++;
            ever[i] = 1;
            quarter[(s.pos[2 * i] > (real)0.5) + 2 * (s.pos[2 * i + 1] > (real)0.5)]++;
            if (seed == 0) first[i] = 1;
            else differ |= !first[i];
        }
        CHECK(found == SAMPLES);
        for (i = 0; i < 4; i++) CHECK(quarter[i] > 0);
    }
    CHECK(differ > 0);
    for (i = 0; i < N && !small_run(); i++) CHECK(ever[i]);
    drop(&o);
    oracle_forget(&s);
}

/* NaN in what is judged shows. */
static void test_estimate_of_nonsense(void **state)
{
    oracle_scene s;
    outcome o;
    nbody_error e;
    nbody_desc d;
    (void)state;
    memset(&d, 0, sizeof d);
    d.method = NBODY_DIRECT;
    oracle_make(&s, ORACLE_UNIFORM, 20, 0, &dice);
    evaluate(&o, &d, &s);
    CHECK_RESULT(nbody_estimate(&o.sim, o.acc, 20, 0, &e), NBODY_OK);
    CHECK_BELOW(e.worst, IS_FLOAT ? 1e-4 : 1e-12);
    o.acc[7] = REAL_NAN;
    CHECK_RESULT(nbody_estimate(&o.sim, o.acc, 20, 0, &e), NBODY_OK);
    CHECK(!(e.mean < 1) && !(e.worst < 1) && !(e.share < 1) && e.samples == 20);
    drop(&o);
    oracle_forget(&s);
}

/* Terms of a tree of one depth: those of the pyramid. */
static void test_counts(void **state)
{
    int k, levels, input;
    (void)state;
    for (k = 0; k < COUNT_OF(settings); k += small_run() ? 5 : 1) for (levels = 1; levels <= (small_run() ? 4 : 5); levels++)
        for (input = 0; input < 2; input++) {
        oracle_scene s;
        oracle_how how;
        oracle_pyramid *p;
        outcome o;
        nbody_counts counts;
        nbody_desc d = oracle_desc(&settings[k]);
        int64_t occupied = 0, cells = 0;
        int32_t i;
        int level, c;
        d.levels = levels;
        if (settings[k].order >= 7 && levels > 3) continue;
        oracle_make(&s, input ? ORACLE_CLUMPS : ORACLE_UNIFORM, small_run() ? 30 : SANITIZED ? 60 : 150, 0, &dice);
        note(&s, &d, settings[k].name);
        evaluate(&o, &d, &s);
        how = oracle_how_of(&o.sim);
        p = oracle_pyramid_of(&how, s.body, s.n);
        for (i = 0; i < s.n; i++) (void)oracle_pyramid_at(p, i);
        for (level = 0; level < levels; level++) for (c = 0; c < 1 << 2 * level; c++) {
            cells += p->inside[level][c] > 0;
            if (level == levels - 1) occupied += p->inside[level][c] > 0;
        }
        CHECK_RESULT(nbody_count(&o.sim, &counts), NBODY_OK);
        CHECK(counts.cells == cells && counts.cells == o.sim.frame->cells && counts.leaves == occupied && counts.levels == levels);
        CHECK(counts.near_terms == p->near_terms);
        CHECK((d.sources == NBODY_CHEBYSHEV ? counts.table_terms : counts.far_terms) == p->far_terms);
        CHECK((d.sources == NBODY_CHEBYSHEV ? counts.far_terms : counts.table_terms) == 0);
        oracle_drop_pyramid(p);
        drop(&o);
        oracle_forget(&s);
    }
}

/* Per body of n evenly spread ones, as they were counted elsewhere. */
static void test_counts_of_many(void **state)
{
    static const struct { int setting, levels; int32_t n; double nearby, away; } known[] = {
        {S_VP, 6, 10000, 85, 2519}, {S_FN8, 5, 10000, 323, 1890}, {S_FN4C, 5, 10000, 323, 472}, {S_VP, 7, 100000, 216, 4997},
        {S_FN8, 6, 100000, 843, 1845}, {S_FN4C, 7, 100000, 216, 683},
    };
    int k;
    (void)state;
    for (k = 0; k < (small_run() ? 1 : COUNT_OF(known)); k++) {
        oracle_scene s;
        nbody sim = {0};
        nbody_counts counts;
        nbody_desc d = oracle_desc(&settings[known[k].setting]);
        d.levels = known[k].levels;
        oracle_make(&s, ORACLE_UNIFORM, known[k].n, 0, &dice);
        note(&s, &d, settings[known[k].setting].name);
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, NULL, s.n), NBODY_OK);
        CHECK_RESULT(nbody_count(&sim, &counts), NBODY_OK);
        CHECK(near_to((double)counts.near_terms / s.n, known[k].nearby, 0.01));
        CHECK(near_to((double)counts.far_terms / s.n, known[k].away, 0.01));
        nbody_free(&sim);
        oracle_forget(&s);
    }
}

/* ------------------------------------------------------------------------------------------------
   nbody_validate
   ------------------------------------------------------------------------------------------------ */

typedef struct word { void *at; size_t bytes; int64_t count; } word;

/* Arrays and numbers of a tree of which any other value is damage. */
static int words_of(nbody *sim, word *words)
{
    nbody_frame *f = sim->frame;
    word const all[] = {
        {sim->id, 4, sim->n}, {sim->cell, sizeof(nbody_cell), sim->cell ? f->cells : 0}, {&f->levels, 4, sim->cell != NULL},
        {f->level_first, 4, sim->cell ? f->levels + 1 : 0}, {&f->cells, 4, sim->cell != NULL},
    };
    int k, used = 0;
    for (k = 0; k < COUNT_OF(all); k++) if (all[k].at && all[k].count) words[used++] = all[k];
    return used;
}

static int32_t odd_number(int32_t was, int32_t n)
{
    int32_t const odd[] = {was ^ 1, was ^ 0x10000, -1, 0, n - 1, n, n + 1, INT32_MAX, INT32_MIN, roll(n)};
    return odd[roll(COUNT_OF(odd))];
}

/* Damages one number of a cell (which: roll of 10). Returns whether it is another one now. */
static int damage_cell(nbody_cell *cell, int which, int32_t n)
{
    nbody_cell const was = *cell;
    int32_t *const number[] = {&cell->x, &cell->y, &cell->first, &cell->count, &cell->parent, &cell->child};
    if (which < 6) *number[which] = odd_number(*number[which], n);
    else if (which == 6) cell->level = (uint8_t)(roll(2) ? cell->level + 1 : roll(256));
    else if (which == 7) cell->children = (uint8_t)roll(6);
    else if (which == 8) cell->besides = (uint8_t)roll(12);
    else cell->beside[roll(cell->besides)] = odd_number(cell->beside[roll(cell->besides)], n);
    return !same(&was, cell, sizeof was);
}

static int damage(const word *w, int32_t k, int32_t n)
{
    int32_t *number = (int32_t *)w->at + k, was;
    if (w->bytes > 4) return damage_cell((nbody_cell *)w->at + k, roll(10), n);
    was = *number;
    *number = odd_number(was, n);
    return *number != was;
}

static void test_validate_finds_damage(void **state)
{
    int k, step, found = 0;
    (void)state;
    for (k = 0; k < COUNT_OF(settings) + 1; k += small_run() ? 9 : 1) {
        oracle_scene s;
        nbody sim = {0};
        word words[8];
        nbody_desc d;
        int used;
        memset(&d, 0, sizeof d);
        if (k < COUNT_OF(settings)) d = oracle_desc(&settings[k]);
        else d.method = NBODY_DIRECT;
        d.leaf = 4;
        oracle_make(&s, k % 2 ? ORACLE_CLUMPS : ORACLE_UNIFORM, 100, 0, &dice);
        note(&s, &d, k < COUNT_OF(settings) ? settings[k].name : "direct");
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        used = words_of(&sim, words);
        for (step = 0; step < (small_run() ? 30 : 300); step++) {
            const word *w = &words[roll(used)];
            int32_t const at = roll((int)w->count);
            uint8_t *memory = (uint8_t *)w->at + w->bytes * (size_t)at, saved[sizeof(nbody_cell)];
            int other;
            memcpy(saved, memory, w->bytes);
            other = damage(w, at, s.n);
            CHECK_RESULT(nbody_validate(&sim), other ? NBODY_INVALID : NBODY_OK);
            found += other;
            memcpy(memory, saved, w->bytes);
        }
        CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        nbody_free(&sim);
        oracle_forget(&s);
    }
    CHECK(small_run() || found > 1000);
}

static void spoil_made(nbody *sim, int32_t cell, int32_t count)
{
    int32_t const was = sim->made[cell];
    sim->made[cell] = count;
    CHECK_RESULT(nbody_validate(sim), NBODY_INVALID);
    sim->made[cell] = was;
}

/* Masses near the smallest numbers: what rounding there makes of the sources is no damage. */
static void test_validate_tiny_masses(void **state)
{
    int k;
    (void)state;
    for (k = 0; k < COUNT_OF(settings); k++) {
        oracle_scene s;
        nbody sim = {0};
        nbody_desc d = oracle_desc(&settings[k]);
        int32_t i;
        if (k % 3 && small_run()) continue;
        d.leaf = 3;
        oracle_make(&s, ORACLE_UNIFORM, 80, 1, &dice);
        for (i = 1; i < s.n; i++) s.mass[i] = (real)(IS_FLOAT ? 1e-44 : 1e-323) * (real)(1 + i % 7);
        s.mass[0] = 1;
        note(&s, &d, settings[k].name);
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        nbody_free(&sim);
        oracle_forget(&s);
    }
}

/* Bodies that moved to another cell or are no numbers, sources of another mass, ids that changed places (which is none). */
static void test_validate_reads_numbers(void **state)
{
    int k;
    (void)state;
    for (k = 0; k < COUNT_OF(settings); k++) {
        oracle_scene s;
        nbody sim = {0};
        nbody_desc d = oracle_desc(&settings[k]);
        int32_t c, swap;
        d.leaf = 6;
        oracle_make(&s, ORACLE_UNIFORM, 200, 0, &dice);
        note(&s, &d, settings[k].name);
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
#define SPOILED(number, value) do { \
            real const was_ = (number); \
            (number) = (value); \
            CHECK_RESULT(nbody_validate(&sim), NBODY_INVALID); \
            (number) = was_; \
        } while (0)
        SPOILED(sim.x[5], sim.x[5] < (real)0.5 ? sim.x[5] + (real)0.5 : sim.x[5] - (real)0.5);
        SPOILED(sim.y[150], sim.y[150] < (real)0.5 ? sim.y[150] + (real)0.5 : sim.y[150] - (real)0.5);
        SPOILED(sim.x[199], REAL_NAN);
        SPOILED(sim.y[0], REAL_INFINITY);
        SPOILED(sim.m[77], REAL_NAN);
        for (c = 1; c < sim.frame->cells; c += 7) { /* parents before the first cell, at the cell itself and behind it */
            int32_t const parent = sim.cell[c].parent;
            for (swap = -2; swap < 2; swap++) {
                sim.cell[c].parent = swap < 0 ? swap : c + swap;
                CHECK_RESULT(nbody_validate(&sim), NBODY_INVALID);
            }
            sim.cell[c].parent = parent;
        }
        for (c = sim.frame->level_first[2]; c < sim.frame->cells; c++) if (sim.cell[c].child >= 0) {
            SPOILED(sim.vm[(size_t)c * (size_t)sim.per_cell], sim.vm[(size_t)c * (size_t)sim.per_cell] + (real)0.5);
            SPOILED(sim.m[sim.cell[c].first], (real)1e6);
            if (!sim.made) continue;
            spoil_made(&sim, c, -1);
            spoil_made(&sim, c, sim.made[c] - 1);
            spoil_made(&sim, c, sim.per_cell + 1);
        }
        swap = sim.id[3];
        sim.id[3] = sim.id[4];
        sim.id[4] = swap;
        CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        sim.id[4] = sim.id[3];
        CHECK_RESULT(nbody_validate(&sim), NBODY_INVALID);
        sim.id[4] = s.n; /* the first that there is not */
        CHECK_RESULT(nbody_validate(&sim), NBODY_INVALID);
        sim.id[4] = -1;
        CHECK_RESULT(nbody_validate(&sim), NBODY_INVALID);
        nbody_free(&sim);
        oracle_forget(&s);
    }
}

/* Large ones are valid, whatever rounding did. */
static void test_validate_large(void **state)
{
    static const int chosen[] = {S_VP, S_MOMENTS, S_C4, S_C12};
    int32_t const n = small_run() ? 200 : environment("NBODY_LARGE", 0) ? 1000000 : 30000;
    int k;
    (void)state;
    for (k = 0; k < COUNT_OF(chosen); k++) {
        oracle_scene s;
        nbody sim = {0};
        nbody_desc d = oracle_desc(&settings[chosen[k]]);
        oracle_make(&s, k % 2 ? ORACLE_MASSES : ORACLE_CLUMPS, n, 0, &dice);
        note(&s, &d, settings[chosen[k]].name);
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        nbody_free(&sim);
        oracle_forget(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_two_by_hand),
        TEST(test_three_by_hand),
        TEST(test_few_bodies),
        TEST(test_all_at_one_place),
        TEST(test_direct),
        TEST(test_length_error),
        TEST(test_pyramid),
        TEST(test_known_values),
        TEST(test_cases),
        TEST(test_shallow_trees_are_direct),
        TEST(test_bars),
        TEST(test_orders),
        TEST(test_any_input),
        TEST(test_near_points),
        TEST(test_crowded_cell),
        TEST(test_square),
        TEST(test_units),
        TEST(test_any_units),
        TEST(test_very_near),
        TEST(test_far_from_the_origin),
        TEST(test_momentum),
        TEST(test_step_by_hand),
        TEST(test_step_fresh),
        TEST(test_step_round_a_circle),
        TEST(test_step_drift),
        TEST(test_energy),
        TEST(test_fields_at),
        TEST(test_estimate_of_all),
        TEST(test_estimate_sample),
        TEST(test_estimate_of_nonsense),
        TEST(test_counts),
        TEST(test_counts_of_many),
        TEST(test_validate_finds_damage),
        TEST(test_validate_tiny_masses),
        TEST(test_validate_reads_numbers),
        TEST(test_validate_large),
    };
    if (getenv("NBODY_TEST_ONLY")) cmocka_set_test_filter(getenv("NBODY_TEST_ONLY"));
    return cmocka_run_group_tests_name("nbody", tests, NULL, NULL);
}
