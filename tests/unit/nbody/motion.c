/* motion.c - a part of test_nbody.c: momentum, steps of the leapfrog method, energy.
   SPDX-License-Identifier: MIT OR Unlicense */

/* What the bodies do to each other adds up to nothing, as far as the method keeps to it; with the
   same table both ways, exactly. */
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
        real pos[6] = {-1, 0, 1, 0, 0, 2}, vel[6] = {0, (real)-0.5, 0, (real)0.5, (real)0.1, 0},
            acc[6];
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
                for (i = 0; i < 3; i++)
                    body[i].x = p[2 * i], body[i].y = p[2 * i + 1], body[i].m = (double)mass[i];
                for (i = 0; i < 3; i++) {
                    oracle_field const f = oracle_direct(&law, body, 3, p[2 * i], p[2 * i + 1], i);
                    a[2 * i] = f.x;
                    a[2 * i + 1] = f.y;
                }
                for (e = 0; e < 6; e++)
                    v[e] += kind == NBODY_EULER ? a[e] * (double)dt : a[e] * (double)dt / 2;
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
    /* no time passes, but forces are known then */
    CHECK_RESULT(nbody_step(&sim, NULL, &b, 0, NBODY_LEAPFROG), NBODY_OK);
    CHECK(b.fresh == 1 && acc[0] == (real)0.25 && acc[1] == 0 && acc[2] == (real)-0.25 &&
        vel[0] == 0 && pos[0] == -1);
    acc[1] = acc[3] = 8; /* acc as the caller has set it is used */
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

/* Two bodies on a circle of radius 1, which each goes round in 4 pi; the largest errors over some
   periods. Phase: at the end. */
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
        worst.energy = fmax(worst.energy,
            fabs(energies.kinetic + energies.potential + 0.25) / 0.25);
        worst.angular = fmax(worst.angular, fabs(energies.angular - first.angular));
        worst.momentum = fmax(worst.momentum, hypot(energies.momentum[0], energies.momentum[1]));
    }
    worst.phase = fabs(remainder(atan2((double)pos[3], (double)pos[2]) - angle, 2 * ORACLE_PI));
    nbody_free(&sim);
    nbody_free(&other);
    return worst;
}

/* For 100 periods; half the step gives a quarter of the error with LEAPFROG, half of it with
   EULER. */
static void test_step_round_a_circle(void **state)
{
    int const periods = small_run() ? 1 : 100;
    orbit const leap = go_round(NBODY_LEAPFROG, periods, 200),
        euler = go_round(NBODY_EULER, periods, 200);
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
        orbit const coarse = go_round(NBODY_LEAPFROG, 2, 50),
            fine = go_round(NBODY_LEAPFROG, 2, 100);
        orbit const rough = go_round(NBODY_EULER, 2, 50), smooth = go_round(NBODY_EULER, 2, 100);
        CHECK(coarse.radius / fine.radius > 3.6 && coarse.radius / fine.radius < 4.4);
        CHECK(coarse.phase / fine.phase > 3.6 && coarse.phase / fine.phase < 4.4);
        CHECK(rough.radius / smooth.radius > 1.8 && rough.radius / smooth.radius < 2.2);
        CHECK(smooth.radius > 10 * fine.radius);
    }
}

/* What some steps of many bodies that turn around the centre of the square change: energy, as a
   share of what there is of it, momentum and angular momentum as a share of the sum of all |m
   v|. */
typedef struct drift { double energy, momentum, angular; } drift;

static drift drift_of(const nbody_desc *d, int32_t n, int steps)
{
    oracle_scene s;
    nbody sim = {0};
    nbody_energies first, last;
    real *vel = NEW(real, 2 * (size_t)n), *acc = NEW(real, 2 * (size_t)n),
        *potential = NEW(real, n);
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
    while (steps-- > 0)
        CHECK_RESULT(nbody_step(&sim, d, &b, (real)(0.01 / sqrt(n)), NBODY_LEAPFROG), NBODY_OK);
    CHECK_RESULT(nbody_fields(&sim, d, s.pos, 0, NULL, n, acc, potential), NBODY_OK);
    CHECK_RESULT(nbody_energy(&b, potential, &last), NBODY_OK);
    for (i = 0; i < 2 * n; i++) size += fabs((double)vel[i]);
    change.energy = (last.kinetic + last.potential - first.kinetic - first.potential) /
        (first.kinetic - first.potential);
    change.momentum = hypot(last.momentum[0] - first.momentum[0],
        last.momentum[1] - first.momentum[1]) / size;
    change.angular = fabs(last.angular - first.angular) / size;
    CHECK(first.mass == n && last.mass == n && first.potential < 0);
    nbody_free(&sim);
    free(vel);
    free(acc);
    free(potential);
    oracle_forget(&s);
    return change;
}

/* The energy that the integrator loses is the same with any method, up to the method's own error;
   momentum stays. */
static void test_step_drift(void **state)
{
    static const struct { int setting; double energy, momentum; } limits[] = {
        {S_VP, 3e-4, 1e-4}, {S_FN8, 1e-3, 1e-4}, {S_FN4C, 5e-4, 1e-4}, {S_C4, 5e-4, 1e-14},
        {S_C8, 1e-6, 1e-14}};
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
