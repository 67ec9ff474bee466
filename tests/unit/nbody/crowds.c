/* crowds.c - a part of test_nbody.c: many bodies at one point are one source: pairs are counted,
   fields are those of the direct sum, and all programs have the same bits.
   SPDX-License-Identifier: MIT OR Unlicense */

enum {
    EVEN,
    PARKED,     /* a half dead at the origin */
    ONE_POINT,
    SITES,      /* on 20 points */
    NEIGHBOURS, /* two thirds on two neighbouring floats */
    GRAINS,     /* a half at one point, one heavy and the others nearly without mass */
    CHARGES,    /* a half at one point, masses of both signs */
    DUST,       /* a half on points that no tree parts: pairs, as the manual says */
    CROWD_KINDS
};

static void put_in_crowd(int kind, int32_t i, real *p, real *m)
{
    int const inside = kind == ONE_POINT || (kind >= PARKED && i % 2);
    *m = (real)(1.0 / (1 + i % 5));
    if (kind == PARKED && inside) *m = 0;
    if (kind == GRAINS && inside) *m = i == 1 ? 1 : (real)1e-9;
    if (kind == CHARGES) *m = i / 2 % 2 ? *m : -*m;
    if (kind == SITES) {
        p[0] = (real)(i % 20 * 0.05);
        p[1] = (real)(i % 20 * (i % 20) % 20 * 0.05);
    } else if (kind == NEIGHBOURS && i % 3) {
        p[0] = (real)(i % 3 == 1 ? 0.7 : 0.7 + 6e-8);
        p[1] = (real)0.3;
    } else if (kind == DUST && inside) p[0] = (real)1e-20 * (real)(i % 7), p[1] = 0;
    else if (inside) p[0] = p[1] = kind == PARKED ? 0 : (real)0.3;
}

static oracle_scene crowd_scene(int kind, int32_t n)
{
    oracle_scene s;
    int32_t i;
    oracle_make(&s, ORACLE_UNIFORM, n, 1, &dice);
    for (i = 0; i < n; i++) put_in_crowd(kind, i, s.pos + 2 * (size_t)i, &s.mass[i]);
    free(s.body);
    s.body = oracle_bodies(s.pos, s.mass, n);
    return s;
}

/* Pairs of bodies, as a default tree of this method has them. */
static double crowd_pairs(int kind, nbody_method method, int32_t n, int32_t *levels)
{
    oracle_scene s = crowd_scene(kind, n);
    nbody_desc d = {0};
    nbody sim = {0};
    nbody_counts counts;
    d.method = method;
    note(&s, &d, "crowds");
    CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, n), NBODY_OK);
    CHECK_RESULT(nbody_count(&sim, &counts), NBODY_OK);
    if (levels) *levels = sim.desc.method == NBODY_DIRECT ? 0 : counts.levels;
    nbody_free(&sim);
    oracle_forget(&s);
    return (double)counts.near_terms;
}

/* No more than 4 times the pairs of as many evenly spread bodies; and NBODY_AUTO knows it. */
static void test_crowd_pairs(void **state)
{
    static const nbody_method methods[] = {FN, VP, NBODY_AUTO};
    int kind, k;
    (void)state;
    for (k = 0; k < 3; k++) {
        int32_t const n = methods[k] == NBODY_AUTO ? 16000 : 8000;
        double const even = crowd_pairs(EVEN, methods[k], n, NULL);
        for (kind = PARKED; kind < DUST; kind++) {
            int32_t levels;
            if (methods[k] == VP && (kind == NEIGHBOURS || kind == CHARGES)) continue;
            CHECK_BELOW(crowd_pairs(kind, methods[k], n, &levels), 4 * even);
            CHECK(levels > NBODY_KEY_LEVELS - 1);
        }
    }
}

/* The same bits by the plain program, in tasks, from a file and with the masses given again. */
static void check_crowd_bits(const oracle_scene *s, const nbody_desc *given, outcome *o)
{
    size_t const reals = (size_t)s->n * sizeof(real);
    real *acc = NEW(real, 6 * (size_t)s->n), *potential = acc + 4 * s->n,
         *twice = NEW(real, 2 * (size_t)s->n);
    nbody_desc d = *given;
    nbody sim = {0};
    file f = saved(&o->sim);
    d.stage = NBODY_ONE_THREAD;
    CHECK_RESULT(nbody_fields(&sim, &d, s->pos, 0, s->mass, s->n, acc, potential), NBODY_OK);
    CHECK(same(acc, o->acc, 2 * reals) && same(potential, o->potential, reals));
    CHECK_RESULT(nbody_load(&sim, NULL, f.bytes, f.size), NBODY_OK);
    memcpy(twice, s->mass, reals);
    memcpy(twice + s->n, s->mass, reals);
    CHECK_RESULT(nbody_fields_sets(&sim, 2, twice, acc, potential), NBODY_OK);
    CHECK(same(acc, o->acc, 2 * reals) && same(potential, o->potential, reals));
    CHECK(same(acc + 2 * s->n, o->acc, 2 * reals) && same(potential + s->n, o->potential, reals));
    CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
    free(f.bytes);
    free(acc);
    free(twice);
    nbody_free(&sim);
}

/* Fields at the point of a crowd, and beside it. */
static void check_crowd_points(const oracle_scene *s, const nbody_desc *d, outcome *o,
    double share)
{
    real const at[6] = {s->pos[2], s->pos[3], (real)0.2, (real)0.45, (real)-0.3, 2};
    oracle_law const law = promised(d);
    real acc[6];
    int k;
    CHECK_RESULT(nbody_fields_at(&o->sim, at, 0, 3, acc, NULL, NULL), NBODY_OK);
    for (k = 0; k < 3; k++) {
        oracle_field const f = oracle_direct(&law, s->body, s->n, (double)at[2 * k],
            (double)at[2 * k + 1], -1);
        CHECK_BELOW(hypot((double)acc[2 * k] - f.x, (double)acc[2 * k + 1] - f.y),
            share * f.share);
    }
}

static void check_crowd(int kind, int32_t n, int setting, nbody_law law, double softening)
{
    oracle_scene s = crowd_scene(kind, n);
    nbody_desc d = oracle_desc(&settings[setting]);
    double const share = 2 * settings[setting].share + deep_rounding() +
        (IS_FLOAT && settings[setting].sources == CENTRES ? 1e-3 : 0);
    oracle_law truth_law;
    oracle_errors e;
    oracle_field *truth;
    int32_t *chosen;
    outcome o;
    d.law = law;
    d.leaf = 20;
    d.softening = (real)softening;
    note(&s, &d, settings[setting].name);
    evaluate(&o, &d, &s);
    truth_law = promised(&d);
    truth = oracle_truth(&s, &truth_law, n, &chosen);
    e = oracle_compare(o.acc, truth, NULL, n);
    CHECK_BELOW(e.share, share);
    if (softening > 0) CHECK_BELOW(oracle_compare_potential(o.potential, truth, NULL, n), share);
    CHECK_RESULT(nbody_validate(&o.sim), NBODY_OK);
    check_crowd_points(&s, &d, &o, share);
    check_crowd_bits(&s, &d, &o);
    free(truth);
    free(chosen);
    drop(&o);
    oracle_forget(&s);
}

static void test_crowd_fields(void **state)
{
    static const int chosen[] = {S_C4, S_C8, S_VP, S_MOMENTS, S_FN8};
    int kind, k, counter = 0;
    (void)state;
    for (kind = PARKED; kind < CROWD_KINDS; kind++) for (k = 0; k < COUNT_OF(chosen); k++) {
        nbody_law const law = (nbody_law)(counter % 2);
        if (kind == CHARGES && settings[chosen[k]].sources == CENTRES) continue;
        if (counter++ % (small_run() || SANITIZED ? 3 : 1)) continue;
        check_crowd(kind, kind == SITES ? 1800 : 400, chosen[k], law, counter % 3 ? 1e-3 : 0);
    }
}

/* (M - m) phi(0), of a heavy body and of those without mass around it: no digit is lost. */
static void test_crowd_potentials(void **state)
{
    enum { N = 100 };
    real pos[2 * N] = {0}, mass[N], acc[2 * N], potential[N];
    nbody_desc d = {0};
    nbody sim = {0};
    int i;
    (void)state;
    d.method = FN;
    d.leaf = 10;
    d.softening = (real)0.5;
    for (i = 0; i < N; i++) mass[i] = i ? (real)1e-9 : 1;
    CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, mass, N, acc, potential), NBODY_OK);
    for (i = 0; i < 2 * N; i++) CHECK(acc[i] == 0);
    CHECK(near_to((double)potential[0], -2 * 99e-9, 1e-6));
    for (i = 1; i < N; i++) CHECK(near_to((double)potential[i], -2 * (1 + 98e-9), 1e-6));
    CHECK(sim.cell[sim.frame->cells - 1].quarters == NBODY_I_CROWD);
    sim.acts[0] += 1;
    CHECK_RESULT(nbody_validate(&sim), NBODY_INVALID);
    sim.acts[0] -= 1;
    sim.cell[sim.frame->cells - 1].quarters = 0;
    CHECK_RESULT(nbody_validate(&sim), NBODY_INVALID);
    nbody_free(&sim);
}
