/* inputs.c - a part of test_nbody.c: any input in any tree: the error stays in bounds for
   clusters, lattices, bodies at one place or near each other, squares and units of all sizes.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Cells are divided exactly where they have more than `leaf` bodies, and levels last. */
static void check_division(const nbody *sim)
{
    const nbody_frame *f = sim->frame;
    int32_t c;
    for (c = 0; c < f->cells; c++) {
        const nbody_cell *cell = &sim->cell[c];
        CHECK((cell->child >= 0) ==
            (cell->count > sim->desc.leaf && cell->level + 1 < sim->desc.levels));
        CHECK(cell->count > 0 && (cell->level == 0 ||
            sim->cell[cell->parent].count > sim->desc.leaf));
    }
}

static int takes(const oracle_setting *setting, int input)
{
    return input != ORACLE_SIGNS || setting->sources == NBODY_CHEBYSHEV;
}

/* One setting and one tree of a scene whose forces are known. */
static void check_any_input(const oracle_scene *s, const oracle_setting *setting,
    const oracle_law *law, int tree, const oracle_field *truth)
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
    CHECK_BELOW(oracle_compare_potential(o.potential, truth, NULL, s->n),
        setting->share + deep_share(&o.sim));
    CHECK_RESULT(nbody_validate(&o.sim), NBODY_OK);
    CHECK_FINE(oracle_check_walks(&o.sim));
    check_division(&o.sim);
    drop(&o);
}

static void test_any_input(void **state)
{
    SLOW_TEST();
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
            /* of orders that need a table for every level, because a potential is a logarithm,
               fewer */
            if ((input * 7 + k * 3 + tree * 5 + law) % (law && settings[k].order >= 8 ? 4 * every :
                every))
                continue;
            if (takes(&settings[k], input))
                check_any_input(&s, &settings[k], &truth_law, tree, truth);
        }
        free(truth);
        free(chosen);
        oracle_forget(&s);
    }
}

/* The walk of a point, anywhere: each body once, and by its cell's sources only where a whole cell
   of that level lies between. */
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
            double const own = floor(((double)(real)at[a] - sim->frame->origin[a]) /
                sim->frame->edge * (double)(1 << cell->level));
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
    /* in edges of the square */
    static const double far[] = {-1e30, -1e9, -40, -2.2, -0.4, 0.3, 1.4, 2.1, 40, 1e9, 1e30};
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
        oracle_make(&s, input == 1 ? ORACLE_CLUMPS : ORACLE_UNIFORM, small_run() ? 80 : 300, 0,
            &dice);
        /* a square whose corner is not on the diagonal */
        for (i = 0; i < s.n && input == 2; i++) s.pos[2 * i + 1] -= 5;
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

/* Many bodies in one cell of the last level, with others far away: computed pair by pair, and no
   term is lost. */
static void test_cell_of_many(void **state)
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
        for (i = 0; i < n - 3; i++)
            s.pos[2 * i] += (real)(1e-6 * (i % 10)),
                s.pos[2 * i + 1] += (real)(1e-6 * (i / 10 % 10));
        s.pos[2 * n - 2] = 300;
        free(s.body);
        s.body = oracle_bodies(s.pos, s.mass, n);
        note(&s, &d, settings[k].name);
        (void)check_against_direct(&d, &s, settings[k].share);
        evaluate(&o, &d, &s);
        CHECK_RESULT(nbody_count(&o.sim, &counts), NBODY_OK);
        CHECK(small_run() || counts.levels >= NBODY_KEY_LEVELS ||
            counts.near_terms < (int64_t)n * n / 4);
        CHECK_FINE(oracle_check_walks(&o.sim));
        drop(&o);
        oracle_forget(&s);
    }
}

/* A body that is outside the square, by one number: the fitted one is taken. On its borders is
   inside. */
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
        if (!out)
            CHECK(o.sim.frame->min[0] == 0 && o.sim.frame->min[1] == 0 && o.sim.frame->size == 1);
        else
            CHECK(o.sim.frame->min[axis] >= -1.1e-6 && o.sim.frame->size < 1.1 &&
                o.sim.frame->size > 0.8);
        CHECK_RESULT(nbody_validate(&o.sim), NBODY_OK);
        CHECK_FINE(oracle_check_walks(&o.sim));
        drop(&o);
        oracle_forget(&s);
    }
}

/* Units: lengths and masses times powers of two give the same bits, other powers of ten the same
   errors. */
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
            double const force = law ? mass / length : mass / length / length,
                shift = law ? log(length) * mass : 0;
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
                double const want = (law ? mass : mass / length) * (double)o.potential[i] +
                    shift * (total - (double)s.mass[i]);
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

/* A clump far from the origin, and bodies on a line much narrower than its distance: deep trees,
   where powers of small distances grow. */
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
