/* blocks.c - a part of test_nbody.c: block time steps, against the leapfrog method where all bodies
   have one step, and by the energy of a cluster with an eccentric binary.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Bodies that turn around the centre of a disc of radius 1, of mass 1 together; the first two are a
   binary on an ellipse of axis `axis`, at its apocentre, of mass `heavy`. */
typedef struct block_scene {
    int32_t n;
    real *pos, *vel, *acc, *mass;
    nbody_bodies bodies;
} block_scene;

static block_scene block_scene_of(int32_t n, double heavy, double axis, double eccentricity)
{
    double const apart = axis * (1 + eccentricity),
                 speed = sqrt(heavy / axis * (1 - eccentricity) / (1 + eccentricity));
    block_scene s;
    int32_t i;
    s.n = n;
    s.pos = NEW(real, 2 * n);
    s.vel = NEW(real, 2 * n);
    s.acc = NEW(real, 2 * n);
    s.mass = NEW(real, n);
    for (i = 0; i < n; i++) {
        double const r = sqrt(oracle_between(&dice, 0, 1)), angle = oracle_between(&dice, 0, 6.28);
        s.pos[2 * i] = (real)(r * cos(angle));
        s.pos[2 * i + 1] = (real)(r * sin(angle));
        s.vel[2 * i] = (real)(-0.6 * r * sin(angle));
        s.vel[2 * i + 1] = (real)(0.6 * r * cos(angle));
        s.mass[i] = (real)(1.0 / n);
    }
    for (i = 0; i < 2 && heavy > 0; i++) {
        s.mass[i] = (real)(heavy / 2);
        s.pos[2 * i] = (real)(0.3 + (i ? 0.5 : -0.5) * apart);
        s.pos[2 * i + 1] = (real)0.2;
        s.vel[2 * i] = (real)-0.1;
        s.vel[2 * i + 1] = (real)(0.1 + (i ? 0.5 : -0.5) * speed);
    }
    s.bodies.pos = s.pos;
    s.bodies.vel = s.vel;
    s.bodies.acc = s.acc;
    s.bodies.mass = s.mass;
    s.bodies.n = n;
    s.bodies.fresh = 0;
    return s;
}

static void block_scene_free(block_scene *s)
{
    free(s->pos);
    free(s->vel);
    free(s->acc);
    free(s->mass);
}

static int same_motion(const block_scene *a, const block_scene *b)
{
    size_t const bytes = 2 * (size_t)a->n * sizeof(real);
    return same(a->pos, b->pos, bytes) && same(a->vel, b->vel, bytes) &&
           same(a->acc, b->acc, bytes);
}

/* One step for all: the bits of the leapfrog method. Shortest steps, that never become longer; then
   steps that all become the longest within a call, and stay. */
static void test_blocks_of_all(void **state)
{
    int32_t const n = small_run() ? 20 : 200;
    int way, k;
    (void)state;
    for (way = 0; way < 3; way++) {
        wl_random const before = dice;
        block_scene blocked = block_scene_of(n, 0, 0, 0), plain;
        nbody sim = {0}, other = {0};
        nbody_blocks blocks = {0};
        nbody_blocks_desc how = {3, 1e-30};
        nbody_desc d;
        memset(&d, 0, sizeof d);
        d.softening = (real)0.1;
        d.method = way == 1 ? NBODY_FORCE_NODES : NBODY_DIRECT;
        dice = before;
        plain = block_scene_of(n, 0, 0, 0);
        if (way == 2) { /* one step of each length, but for the shortest, which is taken twice */
            static const double length[4] = {0.125, 0.125, 0.25, 0.5};
            how.accuracy = 1e30;
            for (k = 0; k < 4; k++)
                CHECK_RESULT(nbody_step(&other, &d, &plain.bodies, (real)(0.0625 * length[k]),
                                        NBODY_LEAPFROG), NBODY_OK);
        } else {
            for (k = 0; k < 8; k++)
                CHECK_RESULT(nbody_step(&other, &d, &plain.bodies, (real)(0.0625 / 8),
                                        NBODY_LEAPFROG), NBODY_OK);
        }
        CHECK_RESULT(nbody_blocks_step(&blocks, &how, &sim, &d, &blocked.bodies, (real)0.0625),
                     NBODY_OK);
        CHECK(blocks.evaluations == (way == 2 ? 4 : 8));
        CHECK(blocks.forces == (int64_t)n * blocks.evaluations && blocked.bodies.fresh == 1);
        CHECK(same_motion(&blocked, &plain));
        for (k = 0; k < n; k++) CHECK(blocks.level[k] == (way == 2 ? 0 : 3));
        /* and back in time, with steps that are long by then: one of them */
        how.accuracy = 1e30;
        how.levels = 2; /* what was deeper is clamped */
        CHECK_RESULT(nbody_blocks_step(&blocks, &how, &sim, &d, &blocked.bodies, (real)-0.0625),
                     NBODY_OK);
        if (way == 2) {
            CHECK_RESULT(nbody_step(&other, &d, &plain.bodies, (real)-0.0625, NBODY_LEAPFROG),
                         NBODY_OK);
            CHECK(blocks.evaluations == 1 && same_motion(&blocked, &plain));
        } else CHECK(blocks.evaluations == 3); /* steps of 1/4, 1/4, 1/2 */
        nbody_blocks_free(&blocks);
        nbody_free(&sim);
        nbody_free(&other);
        block_scene_free(&blocked);
        block_scene_free(&plain);
    }
}

static double block_energy(const block_scene *s, double softening)
{
    nbody sim = {0};
    nbody_desc d;
    nbody_energies e;
    real *potential = NEW(real, s->n);
    memset(&d, 0, sizeof d);
    d.method = NBODY_DIRECT;
    d.softening = (real)softening;
    CHECK_RESULT(nbody_fields(&sim, &d, s->pos, 0, s->mass, s->n, NULL, potential), NBODY_OK);
    CHECK_RESULT(nbody_energy(&s->bodies, potential, &e), NBODY_OK);
    nbody_free(&sim);
    free(potential);
    return e.kinetic + e.potential;
}

/* A binary of eccentricity 0.9 in a cluster: beside leapfrog with at least as many forces, the
   energy is far nearer to what it was; steps differ, and those of the binary are the shortest. */
static void test_blocks_of_a_binary(void **state)
{
    int32_t const n = 40;
    double const softening = 2e-4, dt = 1.0 / 64;
    int const steps = small_run() ? 1 : 6;
    wl_random const before = wl_seed(5);
    block_scene s, plain;
    nbody sim = {0}, other = {0};
    nbody_blocks blocks = {0};
    nbody_blocks_desc how = {0, 0.01};
    nbody_desc d;
    double first, error = 0, leapfrog = 0;
    int64_t forces = 0, substeps;
    int k, alone = 0;
    (void)state;
    dice = before;
    s = block_scene_of(n, 0.1, 0.02, 0.9);
    dice = before;
    plain = block_scene_of(n, 0.1, 0.02, 0.9);
    memset(&d, 0, sizeof d);
    d.softening = (real)softening;
    d.method = NBODY_DIRECT;
    first = block_energy(&s, softening);
    for (k = 0; k < steps; k++) {
        CHECK_RESULT(nbody_blocks_step(&blocks, &how, &sim, &d, &s.bodies, (real)dt), NBODY_OK);
        forces += blocks.forces;
        alone += blocks.forces < (int64_t)blocks.evaluations * n / 2;
        error = fmax(error, fabs(block_energy(&s, softening) / first - 1));
    }
    CHECK(small_run() || (alone == steps && blocks.level[0] >= 4));
    CHECK(blocks.level[0] + 1 >= blocks.level[n - 1]);
    substeps = (forces + (int64_t)steps * n - 1) / ((int64_t)steps * n); /* not fewer forces */
    for (k = 0; k < steps * (int)substeps; k++) {
        CHECK_RESULT(nbody_step(&other, &d, &plain.bodies, (real)(dt / (double)substeps),
                                NBODY_LEAPFROG), NBODY_OK);
        if ((k + 1) % (int)substeps == 0)
            leapfrog = fmax(leapfrog, fabs(block_energy(&plain, softening) / first - 1));
    }
    CHECK_BELOW(error, small_run() ? 1e-3 : IS_FLOAT ? 2e-3 : 5e-4);
    CHECK(small_run() || leapfrog > 20 * error);
    nbody_blocks_free(&blocks);
    nbody_free(&sim);
    nbody_free(&other);
    block_scene_free(&s);
    block_scene_free(&plain);
}

/* With a method that is not exact: the same motion, within its errors. (In tasks: see
   test_nbody_parallel.c.) */
static void test_blocks_by_methods(void **state)
{
    int32_t const n = small_run() ? 60 : 600;
    wl_random const before = dice;
    block_scene direct = block_scene_of(n, 0.05, 0.05, 0.5), nodes;
    nbody sim = {0};
    nbody_blocks blocks = {0};
    nbody_blocks_desc how = {8, 0.05};
    nbody_desc d;
    int32_t i;
    (void)state;
    dice = before;
    nodes = block_scene_of(n, 0.05, 0.05, 0.5);
    memset(&d, 0, sizeof d);
    d.softening = (real)0.01;
    d.method = NBODY_DIRECT;
    CHECK_RESULT(nbody_blocks_step(&blocks, &how, &sim, &d, &direct.bodies, (real)0.03125),
                 NBODY_OK);
    nbody_blocks_free(&blocks);
    d.method = NBODY_FORCE_NODES;
    d.order = 6;
    CHECK_RESULT(nbody_blocks_step(&blocks, &how, &sim, &d, &nodes.bodies, (real)0.03125),
                 NBODY_OK);
    for (i = 0; i < 2 * n; i++)
        CHECK_BELOW(fabs((double)nodes.pos[i] - (double)direct.pos[i]), 1e-4);
    nbody_blocks_free(&blocks);
    nbody_free(&sim);
    block_scene_free(&direct);
    block_scene_free(&nodes);
}

/* Refusals move nothing; failures leave an empty nbody_blocks. */
static void test_blocks_refused(void **state)
{
    block_scene s = block_scene_of(30, 0, 0, 0);
    nbody sim = {0};
    nbody_blocks blocks = {0};
    nbody_blocks_desc how = {25, 0};
    heap h = {0, 0, 0, 0, 0, 0};
    nbody_desc d;
    real const was = s.pos[0], nan = (real)NAN;
    int64_t tries;
    (void)state;
    memset(&d, 0, sizeof d);
    d.allocator = allocator_of(&h);
#define BLOCKS(how, dt) nbody_blocks_step(&blocks, how, &sim, &d, &s.bodies, dt)
    CHECK_RESULT(BLOCKS(&how, 1), NBODY_BAD_OPTION);
    how.levels = -1;
    CHECK_RESULT(BLOCKS(&how, 1), NBODY_BAD_OPTION);
    how.levels = 0;
    how.accuracy = -1;
    CHECK_RESULT(BLOCKS(&how, 1), NBODY_BAD_NUMBER);
    how.accuracy = NAN;
    CHECK_RESULT(BLOCKS(&how, 1), NBODY_BAD_NUMBER);
    CHECK_RESULT(BLOCKS(NULL, nan), NBODY_BAD_NUMBER);
    d.law = NBODY_VORTEX;
    CHECK_RESULT(BLOCKS(NULL, 1), NBODY_BAD_OPTION);
    d.law = NBODY_INVERSE_SQUARE;
    CHECK_RESULT(nbody_blocks_step(NULL, NULL, &sim, &d, &s.bodies, 1), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_blocks_step(&blocks, NULL, NULL, &d, &s.bodies, 1), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_blocks_step(&blocks, NULL, &sim, &d, NULL, 1), NBODY_BAD_ARGUMENT);
    CHECK(same(&s.pos[0], &was, sizeof was) && blocks.n == 0);
    s.bodies.n = 0;
    CHECK_RESULT(BLOCKS(NULL, 1), NBODY_OK);
    s.bodies.n = 30;
    for (tries = 1; tries < 100; tries++) { /* the allocation that fails is a later one each time */
        h.fail_at = h.calls + tries;
        s.bodies.fresh = 0;
        if (BLOCKS(NULL, (real)0.001) == NBODY_OK) break;
        CHECK(s.bodies.fresh == 0);
        nbody_free(&sim);
    }
    CHECK(tries > 2 && tries < 100 && blocks.n == 30);
    h.fail_at = 0;
    s.bodies.n = 20; /* another number: all begin anew */
    CHECK_RESULT(BLOCKS(NULL, (real)0.001), NBODY_OK);
    CHECK(blocks.n == 20);
    s.pos[3] = nan;
    CHECK(BLOCKS(NULL, (real)0.001) == NBODY_NOT_FINITE);
    CHECK(s.bodies.fresh == 0 && blocks.n == 0 && !blocks.level);
#undef BLOCKS
    nbody_blocks_free(&blocks);
    nbody_blocks_free(NULL);
    nbody_free(&sim);
    CHECK(h.live_blocks == 0 && !h.wrong);
    block_scene_free(&s);
}
