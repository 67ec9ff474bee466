/* pyramid.c - a part of test_nbody.c: trees of one depth compute what the algorithms of the
   source compute on a dense pyramid of cells, up to rounding.
   SPDX-License-Identifier: MIT OR Unlicense */

/* How many bodies the pyramid is asked for: it takes its time. */
static int32_t affordable(const oracle_how *how, int32_t n)
{
    int const sources = how->subcells ? how->subcells * how->subcells : how->side * how->side;
    int const targets = how->side ? how->side * how->side : 1,
        budget = small_run() ? 100000 : SANITIZED ? 100000 : 400000;
    int32_t const bodies = (int32_t)(budget / (27 * sources * targets));
    return bodies < 3 ? 3 : bodies < n ? bodies : n;
}

/* How far a result may be from the pyramid's: by rounding; for 1 / d without softening also by what
   M2L by powers leaves out, which is less than what Chebyshev points leave out. */
static double pyramid_bar(const nbody_desc *d)
{
    double const series = d->order <= 4 ? 2e-4 : d->order <= 8 ? 5e-8 : 0;
    int const has_series =
        d->law == NBODY_INVERSE && !(d->softening > 0) && d->sources == NBODY_CHEBYSHEV;
    return has_series && series > rounding() ? series : rounding();
}

/* nbody.h against the pyramid, at sampled bodies. */
static void check_pyramid(const oracle_scene *s, const nbody_desc *d)
{
    double const bar = pyramid_bar(d);
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

/* Inputs without bodies so near a border that rounding decides their cell, and without sub-cells of
   total mass 0. */
static void test_pyramid(void **state)
{
    static const int inputs[] = {ORACLE_UNIFORM, ORACLE_MASSES, ORACLE_CLUMPS, ORACLE_SIGNS,
        ORACLE_WILD};
    int counter, k;
    (void)state;
    for (k = 0; k < COUNT_OF(settings); k++)
            for (counter = 0; counter < (small_run() ? 1 : SANITIZED ? 3 : 10); counter++) {
        oracle_scene s;
        nbody_desc d = oracle_desc(&settings[k]);
        int const input = inputs[(counter + k) % COUNT_OF(inputs)];
        if (input == ORACLE_SIGNS && d.sources == NBODY_MASS_CENTRES) continue;
        d.levels = 1 + (counter + 2) % 6;
        /* slow, and 4 levels have all there is */
        if (settings[k].order >= 8 && d.levels > 4) continue;
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
        check_pyramid(&s, &d);
        oracle_forget(&s);
    }
}

/* The pyramid itself: the values that were computed elsewhere (first body of each case, 5 levels).
   Then the header. */
static void test_known_values(void **state)
{
    static const int known_setting[3] = {S_VP, S_FN8, S_FN4C};
    static const double known[3][3][2] = {
        {{-305335.651619781, -1311779.32279430}, {-305334.069830837, -1311780.35059517},
        {-305335.204486741, -1311779.72033848}},
        {{133191.413619327, -28963.7564146973}, {133043.440703694, -29033.0807764770},
        {133171.378094880, -28982.1702237773}},
        {{-650.477033668079, 5088.10471858657}, {-659.986780865987, 5079.87231307294},
        {-648.503712362524, 5087.87140305887}}};
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
        CHECK_BELOW(hypot(mass * (double)o.acc[0] - known[c][k][0],
            mass * (double)o.acc[1] - known[c][k][1]),
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
        {S_VP, {3.5e-4, 1.3e-4, 1.3e-4}}, {S_FN8, {6.4e-3, 8.4e-3, 4.4e-3}},
        {S_FN4C, {3.7e-3, 3.7e-3, 3.7e-3}},
        {S_C8, {2e-5, 2e-5, 2e-5}}};
    int const most = small_run() ? 4 : SANITIZED ? 5 : 6;
    int c, k, levels;
    (void)state;
    for (c = 0; c < 3; c++) for (k = 0; k < COUNT_OF(limits); k++)
            for (levels = 4; levels <= most; levels++) {
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
            double const m = row[i][2], x = m * (double)o.acc[2 * i],
                y = m * (double)o.acc[2 * i + 1];
            double const wrong = hypot(x - row[i][3], y - row[i][4]);
            if (row[i][5] > 0)
                CHECK_BELOW(wrong, (1.2 * limits[k].bar[c] + (IS_FLOAT ? 1e-4 : 0)) * row[i][5]);
            else CHECK(wrong == 0);
        }
        drop(&o);
        if (!small_run() && !SANITIZED) check_pyramid(&s, &d);
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
