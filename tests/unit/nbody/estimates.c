/* estimates.c - a part of test_nbody.c: the estimate of the error, and the counts of
   interactions.
   SPDX-License-Identifier: MIT OR Unlicense */

static int near_to(double value, double want, double share)
{
    return fabs(value - want) <= share * fabs(want);
}

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

/* Pairs nearer than the softening that a float is given: the error against the law as given is that
   of a direct sum without it, near 1 for them; elsewhere both errors are the same. */
static void test_estimate_of_raised_softening(void **state)
{
    enum { PAIRS = 20, N = 2 * PAIRS };
    double const apart[] = {1e-9, 3e-13, 1e-15};
    int k, law;
    (void)state;
    if (!IS_FLOAT) return; /* the squares of such forces are no doubles */
    for (k = 0; k < COUNT_OF(apart); k++) for (law = 0; law < 2; law++) {
        double const gap = k && law ? 1e-5 * apart[k] : apart[k]; /* 1/d: softened much less */
        real pos[2 * N], acc[2 * N];
        nbody_error e;
        nbody sim = {0};
        nbody_desc d;
        double mean = 0, share = 0;
        int32_t i, j;
        memset(&d, 0, sizeof d);
        d.law = (nbody_law)law;
        d.method = NBODY_DIRECT;
        for (i = 0; i < N; i += 2) { /* on the axes, where such gaps are numbers */
            pos[2 * i] = pos[2 * i + 2] = i ? (real)oracle_between(&dice, -1, 1) : 1;
            pos[2 * i + 1] = 0;
            pos[2 * i + 3] = (real)gap;
        }
        CHECK_RESULT(nbody_accelerations(&sim, &d, pos, 0, NULL, N, acc), NBODY_OK);
        for (i = 0; i < N; i++) {
            double x = 0, y = 0, all = 0, error;
            for (j = 0; j < N; j++) {
                double const dx = (double)pos[2 * j] - (double)pos[2 * i],
                             dy = (double)pos[2 * j + 1] - (double)pos[2 * i + 1],
                             r = sqrt(dx * dx + dy * dy);
                if (j == i) continue;
                x += dx / r / (law ? r : r * r);
                y += dy / r / (law ? r : r * r);
                all += 1 / (law ? r : r * r);
            }
            error = sqrt(((double)acc[2 * i] - x) * ((double)acc[2 * i] - x) +
                         ((double)acc[2 * i + 1] - y) * ((double)acc[2 * i + 1] - y));
            mean += error / sqrt(x * x + y * y) / N;
            share = error / all > share ? error / all : share;
        }
        CHECK_RESULT(nbody_estimate(&sim, acc, N, 1, &e), NBODY_OK);
        CHECK(near_to(e.given_mean, mean, 1e-3) ||
            (mean < rounding() && e.given_mean < rounding()));
        CHECK(near_to(e.given_share, share, 1e-3) ||
            (share < rounding() && e.given_share < rounding()));
        CHECK_BELOW(e.mean, rounding());
        CHECK(k < 2 || (e.given_mean > 0.99 && e.given_share > 0.99));
        CHECK(k > 0 || e.given_mean < 2 * rounding());
        nbody_free(&sim);
    }
}

/* A sample: as many as asked for, no body twice, others for another seed, the same for the same,
   and from all over the square. */
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
        CHECK_RESULT(nbody_estimate(&o.sim, o.acc, SAMPLES, (uint32_t)seed * 77777777u, &clean),
            NBODY_OK);
        CHECK_RESULT(nbody_estimate(&o.sim, o.acc, SAMPLES, (uint32_t)seed * 77777777u, &again),
            NBODY_OK);
        CHECK(clean.samples == SAMPLES && again.samples == SAMPLES);
        CHECK(same(&clean.mean, &again.mean, sizeof clean.mean) &&
            same(&clean.share, &again.share, sizeof clean.share));
        for (i = 0; i < N; i++) { /* is body i in the sample? */
            real const was = o.acc[2 * i];
            o.acc[2 * i] += 1000000;
            CHECK_RESULT(nbody_estimate(&o.sim, o.acc, SAMPLES, (uint32_t)seed * 77777777u, &e),
                NBODY_OK);
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

/* With NaN in the accelerations no error that is estimated is below 1. */
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
    for (k = 0; k < COUNT_OF(settings); k += small_run() ? 5 : 1)
            for (levels = 1; levels <= (small_run() ? 4 : 5); levels++)
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
        oracle_make(&s, input ? ORACLE_CLUMPS : ORACLE_UNIFORM,
            small_run() ? 30 : SANITIZED ? 60 : 150, 0, &dice);
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
        CHECK(counts.cells == cells && counts.cells == o.sim.frame->cells &&
            counts.leaves == occupied && counts.levels == levels);
        CHECK(counts.near_terms == p->near_terms);
        CHECK((d.sources == NBODY_CHEBYSHEV ? counts.table_terms : counts.far_terms) ==
            p->far_terms);
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
        {S_VP, 6, 10000, 85, 2519}, {S_FN8, 5, 10000, 323, 1890}, {S_FN4C, 5, 10000, 323, 472},
        {S_VP, 7, 100000, 216, 4997},
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
