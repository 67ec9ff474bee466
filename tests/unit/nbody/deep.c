/* deep.c - a part of test_nbody.c: trees of more than 17 levels, where bodies cluster. Errors
   against the direct sum; terms that grow as n does; points, masses, and shallow trees beside
   them.
   SPDX-License-Identifier: MIT OR Unlicense */

enum {
    CLUMP_6, CLUMP_9, CLUMP_AWAY, /* half of the bodies, 1e-6, 1e-9, and 1e-6 wide at (0.7, 0.3) */
    NESTED,                       /* a fifth each, 1, 1e-3 .. 1e-12 wide */
    DECADES,                      /* the logarithm of the radius is even, over 12 decades */
    ULPS,                         /* half of them on 8 x 8 neighbouring numbers */
    HEAPS,                        /* two thirds on two points, 1e-8 apart */
    DEEP_KINDS
};

static void put_deep(int kind, int32_t i, real *p)
{
    double x = wl_u(&dice), y = wl_u(&dice), by = 1;
    double const radius = pow(10, -12 * x), angle = 2 * ORACLE_PI * y;
    int a;
    if (kind == CLUMP_6 || kind == CLUMP_9) by = i % 2 ? kind == CLUMP_6 ? 1e-6 : 1e-9 : 1;
    if (kind == NESTED) by = pow(1e-3, i % 5);
    if (kind == DECADES) x = 0.2 * radius * cos(angle), y = 0.2 * radius * sin(angle);
    if (kind == CLUMP_AWAY && i % 2) x = 0.7 + 1e-6 * x, y = 0.3 + 1e-6 * y;
    if (kind == HEAPS && i % 3) x = i % 3 == 1 ? 0 : 1e-8, y = -x;
    p[0] = (real)(0.99 * by * x);
    p[1] = (real)(0.99 * by * y);
    for (a = 0; a < 2 && kind == ULPS && i % 2; a++) {
        int step = roll(8);
        for (p[a] = (real)(a ? 0.3 : 0.7); step > 0; step--) p[a] = oracle_beside(p[a], 1);
    }
}

/* One is at 0.75, and the square is smaller than 1: frame->length is 1. */
static oracle_scene deep_scene(int kind, int32_t n)
{
    oracle_scene s;
    int32_t i;
    oracle_make(&s, ORACLE_UNIFORM, n, 0, &dice);
    for (i = 0; i < n; i++) put_deep(kind, i, s.pos + 2 * (size_t)i);
    s.pos[0] = s.pos[1] = (real)0.75;
    free(s.body);
    s.body = oracle_bodies(s.pos, s.mass, n);
    return s;
}

/* The law that the header promises: with the softening of >>limits. */
static oracle_law promised(const nbody_desc *d)
{
    oracle_law law = law_of(d);
    double const least = IS_FLOAT ? ldexp(1, d->law == NBODY_INVERSE ? -58 : -41) : ldexp(1, -340);
    law.softening = sqrt(law.softening * law.softening + least * least);
    return law;
}

/* Beyond that of a shallow tree: floats are rounded on each of 48 levels. */
static double deep_rounding(void) { return IS_FLOAT ? 3e-5 : 1e-11; }

static void check_deep(int kind, int32_t n, const oracle_setting *setting, nbody_law of, int leaf,
    double softening)
{
    oracle_scene s = deep_scene(kind, n);
    nbody_desc d = oracle_desc(setting);
    double const share = 2 * setting->share + deep_rounding() +
        (IS_FLOAT && setting->sources == CENTRES ? 1e-3 : 0);
    oracle_law law;
    oracle_errors e;
    oracle_field *truth;
    int32_t *chosen;
    outcome o;
    d.law = of;
    d.leaf = leaf;
    d.softening = (real)softening;
    note(&s, &d, setting->name);
    evaluate(&o, &d, &s);
    law = promised(&d);
    truth = oracle_truth(&s, &law, s.n, &chosen);
    e = oracle_compare(o.acc, truth, NULL, s.n);
    CHECK_BELOW(e.share, share);
    /* bodies at one point have no potential without softening, whatever the least is */
    if (kind < CLUMP_AWAY || kind == NESTED || kind == DECADES || softening > 0)
        CHECK_BELOW(oracle_compare_potential(o.potential, truth, NULL, s.n), share);
    CHECK_RESULT(nbody_verify(&o.sim, o.acc, s.n, 1, 1.01 * share), NBODY_OK);
    CHECK_FINE(oracle_check_walks(&o.sim));
    CHECK(o.sim.frame->levels > NBODY_KEY_LEVELS && o.sim.frame->levels <= NBODY_MAX_LEVELS);
    CHECK(o.sim.frame->deep == 1 && o.sim.desc.levels >= o.sim.frame->levels);
    free(truth);
    free(chosen);
    drop(&o);
    oracle_forget(&s);
}

static void test_deep(void **state)
{
    int kind, k, law, counter = 0;
    int32_t const n = small_run() ? 100 : 500;
    (void)state;
    for (kind = 0; kind < DEEP_KINDS; kind++) for (k = 0; k < COUNT_OF(settings); k++)
        for (law = 0; law < 2; law++) {
            if (counter++ % (small_run() || SANITIZED ? 7 : 1)) continue;
            if (others_turn(counter / 7)) continue;
            check_deep(kind, n, &settings[k], (nbody_law)law, 5, 0);
            if (k % 5 == 0) check_deep(kind, n, &settings[k], (nbody_law)law, 5, 1e-7);
        }
}

/* What is nearer than the least softening: both errors are told. */
static void test_deep_given(void **state)
{
    oracle_scene s = deep_scene(NESTED, small_run() ? 100 : 500);
    nbody_desc d = oracle_desc(&settings[S_C8]);
    oracle_law law;
    oracle_errors e;
    oracle_field *truth;
    int32_t *chosen;
    nbody_error told;
    outcome o;
    (void)state;
    d.leaf = 8;
    note(&s, &d, "nested");
    evaluate(&o, &d, &s);
    law = law_of(&d);
    truth = oracle_truth(&s, &law, s.n, &chosen);
    e = oracle_compare(o.acc, truth, NULL, s.n);
    CHECK_RESULT(nbody_estimate(&o.sim, o.acc, s.n, 1, &told), NBODY_OK);
    if (IS_FLOAT) {
        CHECK(near_to(told.given_mean, e.mean, 1e-2) && near_to(told.given_share, e.share, 1e-2));
        CHECK(told.given_mean > 0.05 && told.mean < 1e-4);
    } else CHECK_BELOW(e.share, settings[S_C8].share);
    free(truth);
    free(chosen);
    drop(&o);
    oracle_forget(&s);
}

static int64_t near_terms(int kind, const oracle_setting *setting, int32_t n)
{
    oracle_scene s = deep_scene(kind, n);
    nbody_desc d = oracle_desc(setting);
    nbody sim = {0};
    nbody_counts counts;
    note(&s, &d, setting->name);
    CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, n), NBODY_OK);
    CHECK_RESULT(nbody_count(&sim, &counts), NBODY_OK);
    CHECK_BELOW((double)counts.table_terms + (double)counts.far_terms, 20000.0 * n);
    CHECK(counts.cells < n);
    nbody_free(&sim);
    oracle_forget(&s);
    return counts.near_terms;
}

/* Terms grow as n does, wherever bodies cluster: four times as many bodies, and not 16 times as
   many pairs. */
static void test_deep_terms(void **state)
{
    static const int chosen[] = {S_C4, S_C8};
    int32_t const n = small_run() ? 1000 : 5000;
    int kind, k;
    (void)state;
    for (kind = 0; kind < ULPS; kind++) for (k = 0; k < COUNT_OF(chosen); k++) {
        int64_t const few = near_terms(kind, &settings[chosen[k]], n),
            many = near_terms(kind, &settings[chosen[k]], 4 * n);
        CHECK(small_run() || kind == DECADES || many < 6 * few); /* few, and all cells are chains */
        CHECK(many < 1300 * (int64_t)(4 * n)); /* leaves of at most 200, and those beside them */
    }
}

/* At points in, beside and far from the clusters. */
static void test_deep_points(void **state)
{
    static const double at[][2] = {{0, 0}, {1e-12, -1e-12}, {3e-10, 2e-10}, {-5e-7, 1e-9},
        {0.7, 0.3}, {0.3, 0.6}, {-0.9, 0.9}, {5, -7}, {1e9, 1e9}};
    int kind, k;
    (void)state;
    for (kind = 0; kind < DEEP_KINDS; kind++) {
        oracle_scene s = deep_scene(kind, small_run() ? 100 : 400);
        nbody_desc d = oracle_desc(&settings[kind % 2 ? S_C8 : S_MOMENTS]);
        uint8_t *met = NEW(uint8_t, s.n);
        nbody sim = {0};
        oracle_law law;
        d.leaf = 4;
        d.law = NBODY_INVERSE;
        note(&s, &d, "points");
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        law = promised(&d);
        for (k = 0; k < COUNT_OF(at); k++) {
            real const p[2] = {(real)at[k][0], (real)at[k][1]};
            nbody_near walk = nbody_near_point(&sim, p[0], p[1]);
            real acc[2];
            oracle_field f;
            int32_t i;
            memset(met, 0, (size_t)s.n);
            while (nbody_next_near(&walk)) {
                const nbody_cell *cell = &sim.cell[walk.cell];
                for (i = 0; i < cell->count; i++) met[cell->first + i]++;
            }
            for (i = 0; i < s.n; i++) CHECK(met[i] == 1);
            CHECK_RESULT(nbody_fields_at(&sim, p, 0, 1, acc, NULL, NULL), NBODY_OK);
            f = oracle_direct(&law, s.body, s.n, (double)p[0], (double)p[1], -1);
            CHECK_BELOW(hypot((double)acc[0] - f.x, (double)acc[1] - f.y),
                        (1e-3 + deep_rounding()) * f.share);
        }
        free(met);
        nbody_free(&sim);
        oracle_forget(&s);
    }
}

/* Many at one point need no deep tree, nor does what levels = 17 bounds; levels that are given are
   kept; other masses, and the plain program, have the same bits in deep trees. */
static void test_deep_or_not(void **state)
{
    int32_t const n = small_run() ? 200 : 3000;
    oracle_scene s = deep_scene(HEAPS, n), other = deep_scene(NESTED, small_run() ? 100 : 500);
    nbody_desc d = oracle_desc(&settings[S_C4]);
    size_t const bytes = 2 * (size_t)other.n * sizeof(real);
    real *again = NEW(real, 2 * other.n);
    outcome o;
    int32_t i;
    (void)state;
    for (i = 0; i < n; i++) if (i % 3 == 2) s.pos[2 * i] = s.pos[2 * i + 1] = 0;
    note(&s, &d, "one point");
    evaluate(&o, &d, &s);
    CHECK(o.sim.frame->deep == 0 && o.sim.desc.levels == NBODY_KEY_LEVELS);
    drop(&o);
    note(&other, &d, "deep or not");
    d.leaf = 10;
    for (d.levels = NBODY_KEY_LEVELS; d.levels <= NBODY_MAX_LEVELS; d.levels += 8) {
        evaluate(&o, &d, &other);
        CHECK(o.sim.desc.levels == d.levels && o.sim.frame->levels <= d.levels);
        CHECK(o.sim.frame->deep == (d.levels > NBODY_KEY_LEVELS));
        CHECK_RESULT(nbody_fields_again(&o.sim, other.mass, again, NULL), NBODY_OK);
        CHECK(same(again, o.acc, bytes));
        d.stage = NBODY_ONE_THREAD;
        CHECK_RESULT(nbody_accelerations(&o.sim, &d, other.pos, 0, other.mass, other.n, again),
            NBODY_OK);
        CHECK(same(again, o.acc, bytes));
        d.stage = NBODY_FAST;
        drop(&o);
    }
    free(again);
    oracle_forget(&s);
    oracle_forget(&other);
}

/* Crowds closer than the least softening of a float, where 1 / u^(3/2) times the mass of a cell
   would exceed the largest float. */
static void test_deep_heavy_cells(void **state)
{
    enum { N = 260 };
    int order, k;
    (void)state;
    for (order = 2; order <= 4; order++) {
        real pos[2 * N], acc[2 * N];
        nbody_desc d = oracle_desc(&settings[S_C4]);
        nbody sim = {0};
        d.order = order;
        d.leaf = 4;
        for (k = 0; k < N; k++) { /* one far away, few at the origin, a heavy cell beside them */
            double const angle = 2.4 * k, r = k < 8 ? 3e-14 : 4e-15;
            pos[2 * k] = k == 0 ? 1 : (real)((k < 8 ? 0 : 1.37e-13) + r * cos(angle));
            pos[2 * k + 1] = k == 0 ? -1 : (real)((k < 8 ? 0 : 0.81e-13) + r * sin(angle));
        }
        CHECK_RESULT(nbody_accelerations(&sim, &d, pos, 0, NULL, N, acc), NBODY_OK);
        for (k = 0; k < 2 * N; k++) CHECK(acc[k] - acc[k] == 0); /* no NaN, not infinite */
        nbody_free(&sim);
    }
}

static long double node_of(int order, int i)
{
    return (1 - cosl(acosl(-1) * (i + 0.5L) / order)) / 2;
}

/* The weights of M2M and L2L, by which each level multiplies, are rounded once. */
static void test_weights_of_levels(void **state)
{
    int order, half, a, i, j;
    (void)state;
    for (order = 2; order <= NBODY_MAX_ORDER; order++) {
        nbody_rule rule;
        double worst = 0;
        nbody_i_make_rule(&rule, 0, order);
        for (half = 0; half < 2; half++) for (a = 0; a < order; a++) for (i = 0; i < order; i++) {
            long double const u = (half + node_of(order, a)) / 2;
            long double w = 1;
            for (j = 0; j < order; j++)
                if (j != i) w *= (u - node_of(order, j)) / (node_of(order, i) - node_of(order, j));
            worst = fmax(worst, fabs((double)(w - (long double)rule.to_child[half][a][i])));
        }
        CHECK_BELOW(worst, IS_FLOAT ? 1.2e-7 : 3e-14);
    }
}

/* Two points with many bodies: M2M and L2L go through 16 levels. */
static void test_two_deep_clusters(void **state)
{
    enum { N = 400 };
    static const double bars[4] = {3e-6, 3e-6, 1.2e-5, 1.2e-5}; /* orders 6, 8, 10, 12 */
    real pos[2 * N], acc[2 * N];
    int order, i;
    (void)state;
    for (i = 0; i < N; i++) {
        pos[2 * i] = (real)(i % 2 ? 0.7 : 0.3);
        pos[2 * i + 1] = (real)(i % 2 ? 0.959 : 0.7);
    }
    for (order = 6; order <= 12; order += 2) {
        double const dx = (double)pos[2] - (double)pos[0], dy = (double)pos[3] - (double)pos[1],
            r = hypot(dx, dy), f = N / 2 / (r * r * r);
        nbody_desc d = {0};
        nbody sim = {0};
        double worst = 0;
        d.method = FN;
        d.order = order;
        d.leaf = N / 4;
        CHECK_RESULT(nbody_accelerations(&sim, &d, pos, 0, NULL, N, acc), NBODY_OK);
        CHECK(sim.frame->levels == NBODY_KEY_LEVELS);
        for (i = 0; i < N; i++) {
            double const sign = i % 2 ? -1 : 1;
            worst = fmax(worst, hypot((double)acc[2 * i] - sign * f * dx,
                                      (double)acc[2 * i + 1] - sign * f * dy) / (f * r));
        }
        if (IS_FLOAT) CHECK_BELOW(worst, bars[(order - 6) / 2]);
        nbody_free(&sim);
    }
}
