/* points.c - a part of test_nbody.c: fields at points that are no bodies.
   SPDX-License-Identifier: MIT OR Unlicense */

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
    static const int inputs[] = {ORACLE_UNIFORM, ORACLE_CLUMPS, ORACLE_SIGNS, ORACLE_WILD,
        ORACLE_BORDERS, ORACLE_TWO_FAR, ORACLE_ONE_PLACE};
    int k, counter;
    (void)state;
    for (k = 0; k < COUNT_OF(settings) + 1; k++)
            for (counter = 0; counter < (small_run() || SANITIZED ? 1 : 4); counter++) {
        int const input = inputs[(counter + k) % COUNT_OF(inputs)], tree = k < COUNT_OF(settings);
        real points[2 * POINTS_AT_ONCE], acc[2 * POINTS_AT_ONCE], potential[POINTS_AT_ONCE],
            alone[2 * POINTS_AT_ONCE];
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
            truth[i] = oracle_direct(&law, s.body, s.n, (double)points[2 * i],
                (double)points[2 * i + 1], -1);
        CHECK_RESULT(nbody_fields_at(&sim, points, 0, POINTS_AT_ONCE, acc, potential, &bad),
            NBODY_OK);
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
