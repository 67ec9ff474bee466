/* points.c - a part of test_nbody.c: fields at target points that are not bodies.
   SPDX-License-Identifier: MIT OR Unlicense */

enum { POINTS_AT_ONCE = 300, FEW_POINTS = 200 };

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

/* More points than a batch has, most of them where cells are of all sizes, in no order: the bits of
   one after the other. Many read nodes, for which there must be memory, or an evaluation
   has made them; few do not. */
static void test_many_points(void **state)
{
    static const int chosen[] = {S_VP, S_MOMENTS, S_FN8, S_C4, S_C8};
    enum { MANY = 4200 };
    oracle_scene s;
    real *points = NEW(real, 2 * MANY), *acc = NEW(real, 2 * MANY), *phi = NEW(real, MANY),
        *acc1 = NEW(real, 2 * MANY), *phi1 = NEW(real, MANY);
    int k;
    int32_t i;
    (void)state;
    oracle_make(&s, ORACLE_UNIFORM, small_run() ? 200 : 1000, 1, &dice);
    for (i = 0; i < s.n; i++) if (i % 2) s.pos[2 * i] /= 512, s.pos[2 * i + 1] /= 512;
    for (i = 0; i < MANY; i++) {
        real const by = (real)(i % 3 ? 1.0 / 512 : i % 2 ? 1 : 3);
        points[2 * i] = by * wl_u(&dice);
        points[2 * i + 1] = by * wl_u(&dice);
    }
    for (k = 0; k < 2 * COUNT_OF(chosen) + 1; k++) {
        int const few = k > COUNT_OF(chosen), setting = k % (COUNT_OF(chosen) + 1);
        int32_t const m = few ? NBODY_I_MANY_POINTS - 1 : small_run() ? MANY / 4 : MANY;
        heap h = {0, 0, 0, 0, 0, 0};
        int64_t calls, blocks, own;
        real one[3];
        nbody sim = {0};
        nbody_desc d;
        memset(&d, 0, sizeof d);
        if (setting < COUNT_OF(chosen)) d = oracle_desc(&settings[chosen[setting]]);
        else d.method = NBODY_DIRECT;
        d.law = k % 2 ? NBODY_INVERSE : NBODY_INVERSE_SQUARE;
        d.leaf = 20;
        note(&s, &d, few ? "few points" : "many points");
        d.allocator = allocator_of(&h);
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        calls = h.calls;
        blocks = h.live_blocks;
        own = few || !sim.nodes ? 0 : sim.desc.sources == NBODY_CHEBYSHEV ? 2 : 1;
        CHECK_RESULT(nbody_fields_at(&sim, points, 0, m, acc, phi, NULL), NBODY_OK);
        CHECK(h.calls - calls == own + (m > 4096 && sim.cell) && h.live_blocks == blocks);
        for (i = 1; i <= own; i++) {
            h.fail_at = h.calls + i;
            CHECK_RESULT(nbody_fields_at(&sim, points, 0, m, acc1, phi1, NULL),
                NBODY_OUT_OF_MEMORY);
            CHECK(h.live_blocks == blocks);
        }
        h.fail_at = h.calls + own + 1; /* all cannot be ordered: the same */
        CHECK_RESULT(nbody_fields_at(&sim, points, 0, m, acc1, phi1, NULL), NBODY_OK);
        CHECK(same(acc, acc1, 2 * (size_t)m * sizeof(real)));
        CHECK(same(phi, phi1, (size_t)m * sizeof(real)));
        for (i = 0; few && i < m; i += 7) {
            CHECK_RESULT(nbody_fields_at(&sim, points + 2 * i, 0, 1, one, one + 2, NULL), NBODY_OK);
            CHECK(same(acc + 2 * i, one, 2 * sizeof(real)) && phi[i] == one[2]);
        }
        h.fail_at = 0;
        CHECK_RESULT(nbody_fields_again(&sim, s.mass, NULL, phi1), NBODY_OK);
        calls = h.calls; /* their nodes are there */
        CHECK_RESULT(nbody_fields_at(&sim, points, 0, m, acc1, phi1, NULL), NBODY_OK);
        CHECK(h.calls - calls == (m > 4096 && sim.cell));
        CHECK(same(acc, acc1, 2 * (size_t)m * sizeof(real)));
        CHECK(same(phi, phi1, (size_t)m * sizeof(real)));
        CHECK_RESULT(nbody_fields_again(&sim, s.mass, NULL, NULL), NBODY_OK);
        calls = h.calls; /* no longer */
        CHECK_RESULT(nbody_fields_at(&sim, points, 0, m, acc1, NULL, NULL), NBODY_OK);
        CHECK(h.calls - calls == own + (m > 4096 && sim.cell));
        CHECK(same(acc, acc1, 2 * (size_t)m * sizeof(real)));
        nbody_free(&sim);
        CHECK(h.live_blocks == 0 && !h.wrong);
        memset(&d.allocator, 0, sizeof d.allocator);
        d.stage = NBODY_ONE_THREAD;
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        CHECK_RESULT(nbody_fields_at(&sim, points, 0, m, acc1, phi1, NULL), NBODY_OK);
        CHECK(same(acc, acc1, 2 * (size_t)m * sizeof(real)));
        CHECK(same(phi, phi1, (size_t)m * sizeof(real)));
        nbody_free(&sim);
    }
    free(points);
    free(acc);
    free(phi);
    free(acc1);
    free(phi1);
    oracle_forget(&s);
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
        int32_t i, bad = 5, m = (k + counter) % 2 ? FEW_POINTS : POINTS_AT_ONCE;
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
        for (i = 0; i < m; i++)
            truth[i] = oracle_direct(&law, s.body, s.n, (double)points[2 * i],
                (double)points[2 * i + 1], -1);
        CHECK_RESULT(nbody_fields_at(&sim, points, 0, m, acc, potential, &bad), NBODY_OK);
        CHECK_BELOW(oracle_compare(acc, truth, NULL, m).share, bar);
        CHECK_BELOW(oracle_compare_potential(potential, truth, NULL, m), bar);
        CHECK_RESULT(nbody_fields_at(&sim, points, 0, m, alone, NULL, NULL), NBODY_OK);
        CHECK(same(acc, alone, 2 * (size_t)m * sizeof(real)));
        CHECK_RESULT(nbody_fields_at(&sim, points, 0, m, NULL, alone, NULL), NBODY_OK);
        CHECK(same(potential, alone, (size_t)m * sizeof(real)));
        for (i = 0; i < m && m == FEW_POINTS; i += 7) { /* one by one: alone in its cell */
            CHECK_RESULT(nbody_fields_at(&sim, points + 2 * i, 0, 1, alone, alone + 2, NULL),
                NBODY_OK);
            CHECK(same(acc + 2 * i, alone, 2 * sizeof(real)) && potential[i] == alone[2]);
        }
        nbody_free(&sim);
        oracle_forget(&s);
    }
}
