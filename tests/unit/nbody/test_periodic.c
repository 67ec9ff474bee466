/* test_periodic.c - periodic squares of nbody.h: against Ewald sums in double, values from the
   literature, sums over many images, and themselves after a shift; refusals, bits, memory.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/nbody/test_periodic.c -o test_periodic -lcmocka -lm && ./test_periodic

   Environment:
       NBODY_TEST_ONLY=p    runs the tests whose names match p
       TEST_SMALL=1         fewer bodies */

#define NBODY_I_PIECE 64
#include "tests/common/nbody_parts.h"
#define NBODY_IMPLEMENTATION
#include "nbody.h"
#include "../../common/nbody_oracle.h"
#include "../../common/parallel.h"
#include "../../common/testing.h"
#include "ewald.h"

static nbody_desc now;

static void describe_now(void)
{
    print_error("method %d law %d core %d order %d softening %g size %g levels %d leaf %d\n",
                (int)now.method, (int)now.law, (int)now.core, (int)now.order,
                (double)now.softening, (double)now.size, (int)now.levels, (int)now.leaf);
}

/* ------------------------------------------------------------------------------------------------
   Scenes
   ---------------------------------------------------------------------------------------------- */

enum { MOST = 2500 };
static real pos[2 * MOST], mass[MOST], acc[2 * MOST], potential[MOST];
static oracle_body body[MOST];
static ewald sums;

typedef enum layout { EVEN, CLUMP, BORDER } layout;

/* Bodies within the square, some exactly on its lower border. */
static void make_scene(const nbody_desc *d, layout how, int32_t n, int neutral)
{
    wl_random r = wl_seed(41 + (uint32_t)n);
    double all = 0;
    int32_t i;
    int a;
    for (i = 0; i < n; i++) {
        for (a = 0; a < 2; a++) {
            double u = (double)wl_u(&r);
            if (how == CLUMP && i % 2) u = 0.98 + 0.0005 * u;
            if (how == BORDER && (i + a) % 3 == 0) u = i % 2 ? 0.004 * u : 1 - 0.004 * u;
            if (i % 50 == a) u = 0;
            pos[2 * i + a] = (real)((double)d->min[a] + u * (double)d->size);
            if (pos[2 * i + a] >= d->min[a] + d->size) pos[2 * i + a] = d->min[a];
        }
        mass[i] = neutral ? (real)(i % 2 ? -1 : 1) * oracle_between(&r, 0.5, 2)
                          : oracle_between(&r, 0.5, 2);
        all += (double)mass[i];
    }
    if (neutral) mass[0] -= (real)all;
    for (i = 0; i < n; i++) {
        body[i].x = (double)pos[2 * i];
        body[i].y = (double)pos[2 * i + 1];
        body[i].m = (double)mass[i];
    }
}

static nbody_desc square_of(nbody_law law, nbody_method method, int order, double size)
{
    nbody_desc d;
    memset(&d, 0, sizeof d);
    d.law = law;
    d.method = method;
    d.order = order;
    d.size = (real)size;
    d.periodic = 1;
    d.gravity = (real)1.5;
    describe = describe_now;
    return d;
}

static double largest(double a, double b) { return a > b || a != a ? a : b; }

typedef struct errors { double force, potential; } errors;

static errors errors_at(const nbody_desc *d, const real *at, int32_t count, int bodies,
                        const real *a, const real *p)
{
    errors e = {0, 0};
    int32_t i, step = count / 12 + 1;
    for (i = 0; i < count; i += step) {
        oracle_field const f =
            ewald_at(&sums, d, (double)at[2 * i], (double)at[2 * i + 1], bodies ? i : -1);
        double const x = (double)a[2 * i] - f.x, y = (double)a[2 * i + 1] - f.y;
        e.force = largest(sqrt(x * x + y * y) / f.share, e.force);
        if (p) e.potential = largest(fabs((double)p[i] - f.p) / f.p_share, e.potential);
    }
    return e;
}

/* Bodies, and points inside and far outside, in empty cells too: so many that they read nodes, and
   few. */
static void check_scene(const nbody_desc *d, int32_t n, double bar)
{
    enum { POINTS = NBODY_I_MANY_POINTS };
    static real at[2 * POINTS], at_acc[2 * POINTS], at_potential[POINTS];
    wl_random r = wl_seed(3);
    nbody sim = {0};
    nbody_error error;
    errors e;
    int k;
    now = *d;
    ewald_make(&sums, d, body, n);
    for (k = 0; k < 2 * POINTS; k++)
        at[k] = d->min[k % 2] + d->size * oracle_between(&r, k % 8 ? 0 : -3, k % 8 ? 1 : 3);
    CHECK_RESULT(nbody_fields(&sim, d, pos, 0, mass, n, acc, potential), NBODY_OK);
    CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
    e = errors_at(d, pos, n, 1, acc, potential);
    CHECK_BELOW(e.force, bar);
    CHECK_BELOW(e.potential, bar);
    for (k = POINTS; k > 0; k -= POINTS - 24) {
        CHECK_RESULT(nbody_fields_at(&sim, at, 0, k, at_acc, at_potential, NULL), NBODY_OK);
        e = errors_at(d, at, k, 0, at_acc, at_potential);
        CHECK_BELOW(e.force, bar);
        CHECK_BELOW(e.potential, bar);
    }
    CHECK_RESULT(nbody_estimate(&sim, acc, 20, 1, &error), NBODY_OK);
    CHECK_BELOW(error.share, bar);
    if (d->method == NBODY_DIRECT) {
        acc[0] += 1 + 2 * (acc[0] < 0 ? -acc[0] : acc[0]);
        CHECK_RESULT(nbody_estimate(&sim, acc, n, 1, &error), NBODY_OK);
        CHECK(error.share > 1e-5);
    }
    nbody_free(&sim);
}

static const struct { nbody_law law; nbody_core core; double softening; } laws[] = {
    {NBODY_INVERSE_SQUARE, NBODY_PLUMMER, 0},   {NBODY_INVERSE_SQUARE, NBODY_PLUMMER, 0.15},
    {NBODY_INVERSE_SQUARE, NBODY_PLUMMER, 0.25}, {NBODY_INVERSE, NBODY_PLUMMER, 0},
    {NBODY_INVERSE, NBODY_PLUMMER, 0.15},       {NBODY_INVERSE, NBODY_PLUMMER, 0.25},
    {NBODY_INVERSE, NBODY_GAUSSIAN, 0.038},     {NBODY_VORTEX, NBODY_PLUMMER, 0},
    {NBODY_VORTEX, NBODY_GAUSSIAN, 0.038},
};

static const struct { nbody_method method; int order; double bar; } methods[] = {
    {NBODY_DIRECT, 0, 1e-13},
    {NBODY_FORCE_NODES, 4, 5e-3},
    {NBODY_FORCE_NODES, 8, 3e-5},
    {NBODY_FORCE_NODES, 10, 6e-7},
};

/* Each law with each method, on one of three layouts. */
static void test_ewald(void **state)
{
    int l, m;
    (void)state;
    for (l = 0; l < COUNT_OF(laws); l++)
        for (m = 0; m < COUNT_OF(methods); m++) {
            int const how = (l + m) % 3;
            int32_t const n = small_run() ? (m ? 60 : 30) : m ? 300 : 60;
            nbody_desc d = square_of(laws[l].law, methods[m].method, methods[m].order,
                                     l % 2 ? 1 : 3);
            if ((quick_run() || SANITIZED) && m > 0 && m != 1 + (l + l / 3) % 3) continue;
            if (quick_run() && (m == 3 || l == 1 || l == 6 || l == 7)) continue;
            d.min[0] = (real)(how == CLUMP ? 7 : 0);
            d.min[1] = (real)-0.5;
            d.core = laws[l].core;
            d.softening = (real)laws[l].softening * d.size;
            d.leaf = m > 0 ? 6 : 0;
            make_scene(&d, (layout)how, n, l % 2);
            check_scene(&d, n, methods[m].bar + (IS_FLOAT ? 4e-6 : 0));
        }
}


/* ------------------------------------------------------------------------------------------------
   Known values
   ---------------------------------------------------------------------------------------------- */

/* A checkerboard of charges 1 and -1, which are 1/2 apart, in a square of side 1. 1/d: Madelung's
   constant of the square lattice, 1.6155426267128247 (E. R. Fuller, J. Math. Phys. 1981, and
   Borwein, Lattice Sums Then and Now, 2013, table 1.5), over 1/2. 1/d in two dimensions: ln(2 pi
   eta(i)^2), eta(i) = Gamma(1/4) / (2 pi^(3/4)). Forces vanish by symmetry, and in the middle of
   four charges the potential does, too. */
static void test_checkerboard(void **state)
{
    double const eta = tgamma(0.25) / (2 * pow(ORACLE_PI, 0.75));
    double const known[] = {2 * 1.6155426267128247, log(2 * ORACLE_PI * eta * eta)};
    real const at[8] = {0, 0, 0.5, 0, 0.5, 0.5, 0, 0.5}, charge[4] = {1, -1, 1, -1},
               middle[4] = {0.25, 0.25, (real)-7.25, (real)9.75};
    real middle_acc[4], middle_potential[2];
    double const bar = IS_FLOAT ? 1e-6 : 2e-15;
    int l, m, i;
    (void)state;
    for (l = 0; l < 2; l++)
        for (m = 0; m < 2; m++) {
            double const bar_of = m ? 1e-5 : bar;
            nbody_desc d = square_of((nbody_law)l, m ? NBODY_FORCE_NODES : NBODY_DIRECT, 8, 1);
            nbody sim = {0};
            now = d;
            d.gravity = 1;
            CHECK_RESULT(nbody_fields(&sim, &d, at, 0, charge, 4, acc, potential), NBODY_OK);
            for (i = 0; i < 4; i++) {
                CHECK_BELOW(fabs((double)acc[2 * i]) + fabs((double)acc[2 * i + 1]), 10 * bar_of);
                CHECK_BELOW(fabs((double)potential[i] / (double)charge[i] - known[l]), 4 * bar_of);
            }
            CHECK_RESULT(nbody_fields_at(&sim, middle, 0, 2, middle_acc, middle_potential, NULL),
                         NBODY_OK);
            for (i = 0; i < 4; i++) {
                CHECK_BELOW(fabs((double)middle_acc[i]), 10 * bar_of);
                CHECK_BELOW(fabs((double)middle_potential[i / 2]), 10 * bar_of);
            }
            nbody_free(&sim);
        }
}

/* One body: no force, and the potential of its own images, for which side and mass scale. The force
   at a point near the border of its square is 0 across the border. */
static void test_one(void **state)
{
    real const at[2] = {3, (real)-0.25}, m[1] = {4}, points[4] = {7, (real)-0.25, 7, 3.75};
    double const own[] = {3.9002649200019558828 * 4 / 8, (1.3105329259115095 - log(8.0)) * 4};
    real f[4];
    int l, k;
    (void)state;
    for (l = 0; l < 2; l++)
        for (k = 0; k < 2; k++) {
            nbody_desc d = square_of((nbody_law)l, k ? NBODY_FORCE_NODES : NBODY_DIRECT, 8, 8);
            nbody sim = {0};
            now = d;
            d.gravity = 1;
            CHECK_RESULT(nbody_fields(&sim, &d, at, 0, m, 1, acc, potential), NBODY_OK);
            CHECK_BELOW(fabs((double)acc[0]) + fabs((double)acc[1]), 2e-6);
            CHECK_BELOW(fabs((double)potential[0] - own[l]), 1e-5);
            CHECK_RESULT(nbody_fields_at(&sim, points, 0, 2, f, NULL, NULL), NBODY_OK);
            CHECK_BELOW(fabs((double)f[0]), 1e-5);
            CHECK_BELOW(fabs((double)f[2]) + fabs((double)f[3]), 1e-5);
            nbody_free(&sim);
        }
}

/* A neutral square as the sum over (2 N + 1)^2 copies of it, N = 60, extrapolated from N = 30: the
   rest shrinks as 1 / N^2, with 1/d^2 as 1 / N. NBODY_INVERSE: a uniform force less, as >>periodic
   says. */
static oracle_field replica_sum(const nbody_desc *d, int32_t n, int32_t i, int copies)
{
    oracle_field f = {0, 0, 0, 0, 0};
    int32_t j;
    int x, y;
    for (j = 0; j < n; j++)
        for (x = -copies; x <= copies; x++)
            for (y = -copies; y <= copies; y++) {
                double const dx = body[j].x + x - body[i].x, dy = body[j].y + y - body[i].y,
                             r2 = dx * dx + dy * dy;
                double const g = d->law == NBODY_INVERSE ? 1 / r2 : 1 / (r2 * sqrt(r2));
                if (j == i && x == 0 && y == 0) continue;
                f.x += body[j].m * g * dx;
                f.y += body[j].m * g * dy;
            }
    return f;
}

static void test_replicas(void **state)
{
    enum { N = 8 };
    int l, i;
    (void)state;
    for (l = 0; l < 2; l++) {
        nbody_desc d = square_of((nbody_law)l, NBODY_DIRECT, 0, 1);
        nbody sim = {0};
        double moment[2] = {0, 0};
        now = d;
        d.gravity = 1;
        make_scene(&d, EVEN, N, 1);
        for (i = 0; i < N && l; i++) {
            moment[0] += ORACLE_PI * body[i].m * body[i].x;
            moment[1] += ORACLE_PI * body[i].m * body[i].y;
        }
        CHECK_RESULT(nbody_accelerations(&sim, &d, pos, 0, mass, N, acc), NBODY_OK);
        for (i = 0; i < 3; i++) {
            int const most = quick_run() || SANITIZED ? 20 : 60;
            double const wider = (2 * most + 1) / (double)(2 * (most / 2) + 1),
                         shrinks = l ? wider * wider : wider;
            oracle_field const half = replica_sum(&d, N, i, most / 2),
                               full = replica_sum(&d, N, i, most);
            double const x = full.x + (full.x - half.x) / (shrinks - 1) - moment[0],
                         y = full.y + (full.y - half.y) / (shrinks - 1) - moment[1];
            CHECK_BELOW(fabs(x - (double)acc[2 * i]) + fabs(y - (double)acc[2 * i + 1]), 5e-3);
        }
        nbody_free(&sim);
    }
}

/* ------------------------------------------------------------------------------------------------
   Shifts, bits
   ---------------------------------------------------------------------------------------------- */

/* Where bodies move by whole sides, or the square begins elsewhere: nothing but rounding. All
   positions are multiples of 2^-10, so that the shifts are exact. */
static void test_shifted(void **state)
{
    enum { N = 100 };
    static real moved[2 * N], moved_acc[2 * N], moved_potential[N];
    wl_random r = wl_seed(8);
    int l, m, k;
    (void)state;
    make_scene(&now, EVEN, N, 0);
    for (k = 0; k < 2 * N; k++) pos[k] = (real)wl_below(&r, 2048) / 1024 - 1;
    for (l = 0; l < 3; l++)
        for (m = 0; m < 2; m++) {
            nbody_desc d = square_of((nbody_law)l, m ? NBODY_FORCE_NODES : NBODY_DIRECT, 6, 2);
            nbody sim = {0};
            double worst = 0, size = 0;
            d.min[0] = d.min[1] = -1;
            d.leaf = 5;
            now = d;
            CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, mass, N, acc, potential), NBODY_OK);
            for (k = 0; k < 2 * N; k++) moved[k] = pos[k] + (real)(2 * (k % 7 - 3));
            CHECK_RESULT(nbody_fields(&sim, &d, moved, 0, mass, N, moved_acc, moved_potential),
                         NBODY_OK);
            CHECK(same(acc, moved_acc, sizeof moved_acc));
            CHECK(same(potential, moved_potential, sizeof moved_potential));
            for (k = 0; k < 2 * N; k++) moved[k] = pos[k] + (real)0.3125;
            CHECK_RESULT(nbody_fields(&sim, &d, moved, 0, mass, N, moved_acc, moved_potential),
                         NBODY_OK);
            for (k = 0; k < 2 * N; k++) {
                size += fabs((double)acc[k]) / (2 * N);
                worst = largest(fabs((double)moved_acc[k] - (double)acc[k]), worst);
            }
            CHECK_BELOW(worst / size, (m ? 1e-3 : 1e-12) + (IS_FLOAT ? 1e-4 : 0));
            nbody_free(&sim);
        }
}

/* ONE_THREAD, tasks, sets and new masses: the same bits. */
static void test_bits(void **state)
{
    enum { N = 500, SETS = 3 };
    static real sets_acc[SETS * 2 * N], sets_potential[SETS * N], many[SETS * N],
        one_acc[2 * N], one_potential[N], at_acc[2 * N], at[2 * N];
    wl_random r = wl_seed(11);
    int32_t count;
    int l, m, k;
    (void)state;
    for (l = 0; l < COUNT_OF(laws); l++)
        for (m = 0; m < 2; m++) {
            int32_t const n = m ? (small_run() ? N / 2 : N) : 40;
            nbody_desc d = square_of(laws[l].law, m ? NBODY_FORCE_NODES : NBODY_DIRECT, 4, 1);
            nbody sim = {0};
            if (l % 2 != m && (quick_run() || SANITIZED)) continue;
            d.core = laws[l].core;
            d.softening = (real)laws[l].softening;
            d.leaf = 10;
            now = d;
            make_scene(&d, BORDER, n, 1);
            for (k = 0; k < 2 * n && l % 4 == 1; k++) pos[k] /= 16; /* level 2 has one cell */
            CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, mass, n, acc, potential), NBODY_OK);
            d.stage = NBODY_ONE_THREAD;
            CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, mass, n, one_acc, one_potential), NBODY_OK);
            CHECK(same(acc, one_acc, (size_t)(2 * n) * sizeof *acc));
            CHECK(same(potential, one_potential, (size_t)n * sizeof *acc));
            d.stage = NBODY_FAST;
            d.parallel.run = parallel_shuffled;
            d.parallel.tasks = 5;
            CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, mass, n, one_acc, one_potential), NBODY_OK);
            CHECK(same(acc, one_acc, (size_t)(2 * n) * sizeof *acc));
            CHECK(same(potential, one_potential, (size_t)n * sizeof *acc));
            CHECK_RESULT(nbody_fields_at(&sim, pos, 0, n, one_acc, one_potential, NULL), NBODY_OK);
            /* in no order, in empty cells, across the border: by nodes, and few, one by one */
            for (k = 0; k < 2 * n; k++)
                at[k] = (real)oracle_between(&r, k % 6 < 4 ? 0.05 : -2, k % 6 < 4 ? 0.1 : 3);
            for (count = n; count > 0; count -= n - 30) {
                d.stage = NBODY_FAST;
                d.parallel.tasks = 5;
                CHECK_RESULT(nbody_build(&sim, &d, pos, 0, mass, n), NBODY_OK);
                CHECK_RESULT(nbody_fields_at(&sim, at, 0, count, acc, potential, NULL), NBODY_OK);
                d.parallel.tasks = 0;
                d.stage = NBODY_ONE_THREAD;
                CHECK_RESULT(nbody_build(&sim, &d, pos, 0, mass, n), NBODY_OK);
                CHECK_RESULT(nbody_fields_at(&sim, at, 0, count, at_acc, sets_potential, NULL),
                             NBODY_OK);
                CHECK(same(at_acc, acc, (size_t)(2 * count) * sizeof *acc));
                CHECK(same(sets_potential, potential, (size_t)count * sizeof *acc));
            }
            d.stage = NBODY_FAST;
            for (k = 0; k < SETS * n; k++) many[k] = mass[k % n] * (real)(1 + k % 3) / 2;
            CHECK_RESULT(nbody_build(&sim, &d, pos, 0, mass, n), NBODY_OK);
            CHECK_RESULT(nbody_fields_at(&sim, pos, 0, n, at_acc, potential, NULL), NBODY_OK);
            CHECK(same(at_acc, one_acc, (size_t)(2 * n) * sizeof *acc));
            CHECK(same(potential, one_potential, (size_t)n * sizeof *acc));
            CHECK_RESULT(nbody_fields_sets(&sim, SETS, many, sets_acc, sets_potential), NBODY_OK);
            for (k = 0; k < SETS; k++) {
                CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, many + k * n, n, acc, potential),
                             NBODY_OK);
                CHECK(same(acc, sets_acc + 2 * k * n, (size_t)(2 * n) * sizeof *acc));
                CHECK(same(potential, sets_potential + k * n, (size_t)n * sizeof *acc));
                CHECK_RESULT(nbody_fields_again(&sim, many + k * n, acc, potential), NBODY_OK);
                CHECK(same(acc, sets_acc + 2 * k * n, (size_t)(2 * n) * sizeof *acc));
            }
            nbody_free(&sim);
        }
}

/* Momentum: forces sum to 0. A vortex velocity is the turned force of NBODY_INVERSE. */
static void test_momentum(void **state)
{
    enum { N = 700 };
    static real velocity[2 * N];
    nbody_desc d = square_of(NBODY_INVERSE, NBODY_FORCE_NODES, 6, 1);
    nbody sim = {0};
    double x, y, all;
    int l, i;
    (void)state;
    d.leaf = 20;
    make_scene(&d, EVEN, N, 0);
    for (l = 0; l < 2; l++) {
        d.law = (nbody_law)l;
        now = d;
        CHECK_RESULT(nbody_accelerations(&sim, &d, pos, 0, mass, N, acc), NBODY_OK);
        x = y = all = 0;
        for (i = 0; i < N; i++) {
            x += (double)mass[i] * (double)acc[2 * i];
            y += (double)mass[i] * (double)acc[2 * i + 1];
            all += (double)mass[i] * hypot((double)acc[2 * i], (double)acc[2 * i + 1]);
        }
        CHECK_BELOW(hypot(x, y) / all, IS_FLOAT ? 1e-6 : 1e-13);
    }
    d.law = NBODY_VORTEX;
    CHECK_RESULT(nbody_accelerations(&sim, &d, pos, 0, mass, N, velocity), NBODY_OK);
    for (i = 0; i < N; i++) {
        double const fx = (double)acc[2 * i] / (2 * ORACLE_PI),
                     fy = (double)acc[2 * i + 1] / (2 * ORACLE_PI);
        CHECK_BELOW(fabs((double)velocity[2 * i] - fy), 1e-6 * (1 + fabs(fy)));
        CHECK_BELOW(fabs((double)velocity[2 * i + 1] + fx), 1e-6 * (1 + fabs(fx)));
    }
    nbody_free(&sim);
}

/* Bodies that leave the square by nbody_step; energy as without a border. */
static void test_steps(void **state)
{
    enum { N = 64 };
    real vel[2 * N];
    nbody_bodies b = {pos, vel, acc, mass, N, 0};
    nbody_desc d = square_of(NBODY_INVERSE_SQUARE, NBODY_FORCE_NODES, 6, 1);
    nbody_energies first, last;
    nbody sim = {0};
    int i, outside = 0;
    (void)state;
    now = d;
    d.gravity = (real)0.01;
    d.softening = (real)0.1;
    make_scene(&d, EVEN, N, 0);
    for (i = 0; i < 2 * N; i++) vel[i] = (real)(i % 2 ? 3 : 1.5);
    CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, mass, N, acc, potential), NBODY_OK);
    CHECK_RESULT(nbody_energy(&b, potential, &first), NBODY_OK);
    for (i = 0; i < 60; i++)
        CHECK_RESULT(nbody_step(&sim, &d, &b, (real)0.005, NBODY_LEAPFROG), NBODY_OK);
    CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, mass, N, acc, potential), NBODY_OK);
    CHECK_RESULT(nbody_energy(&b, potential, &last), NBODY_OK);
    for (i = 0; i < 2 * N; i++) outside += pos[i] >= 1 || pos[i] < 0;
    CHECK(outside > N / 2);
    CHECK(fabs(last.kinetic - first.kinetic) > 1e-4);
    CHECK_BELOW(fabs(last.kinetic + last.potential - first.kinetic - first.potential),
                1e-3 * fabs(first.potential));
    nbody_free(&sim);
}

/* ------------------------------------------------------------------------------------------------
   Trees, calls
   ---------------------------------------------------------------------------------------------- */

/* Any number of bodies in any place, valid trees; all at one point; none. */
static void test_trees(void **state)
{
    enum { N = 200 };
    static const real border[] = {1, 0, -1, 2, (real)0.5, (real)0.25, (real)0.75};
    wl_random r = wl_seed(12);
    int k, i;
    (void)state;
    for (k = 0; k < (quick_run() || SANITIZED ? 30 : 200); k++) {
        int32_t const n = k < 20 ? k : N;
        nbody_desc d = square_of((nbody_law)(k % 3), NBODY_FORCE_NODES, 2 + k % 4, 1);
        nbody sim = {0};
        nbody_counts counts;
        d.leaf = 1 + k % 5;
        d.levels = k % 6 == 5 ? 3 + k % 4 : 0;
        if (k % 7 == 6) d.leaf = 300; /* leaves on level 2 */
        now = d;
        for (i = 0; i < 2 * n; i++) {
            double const u = (double)wl_u(&r);
            pos[i] = k % 3 == 0 ? (real)u : k % 3 == 1 ? (real)(1 + 1e-3 * (u - 0.5)) : (real)0.3;
            if (wl_below(&r, 5) == 0) pos[i] = border[wl_below(&r, 7)];
            if (wl_below(&r, 9) == 0)
                pos[i] = oracle_beside(border[wl_below(&r, 7)], k % 2 ? 1 : -1);
        }
        for (i = 0; i < n; i++) mass[i] = (real)(i % 4 - 1);
        CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, mass, n, acc, potential), NBODY_OK);
        CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        CHECK_RESULT(nbody_count(&sim, &counts), NBODY_OK);
        CHECK(n == 0 || counts.levels >= 3);
        CHECK(counts.levels <= NBODY_KEY_LEVELS);
        for (i = 0; i < n; i++) {
            CHECK(sim.x[i] >= 0 && (double)sim.x[i] < sim.frame->edge);
            CHECK_BELOW(fabs((double)acc[2 * i]), (double)REAL_LARGEST);
            CHECK_BELOW(fabs((double)potential[i]), (double)REAL_LARGEST);
        }
        if (n > 0 && k % 3 == 0) CHECK_RESULT(nbody_verify(&sim, acc, 10, 1, 0.2), NBODY_OK);
        nbody_free(&sim);
    }
}

static double some_force(double d, void *user)
{
    (void)user;
    return 1 / d;
}

static void check_refused(const nbody_desc *d, nbody_result result)
{
    nbody sim = {0};
    real one[2] = {7, 7}, at[2] = {0, 0};
    now = *d;
    CHECK_RESULT(nbody_accelerations(&sim, d, at, 0, NULL, 1, one), result);
    CHECK_RESULT(nbody_build(&sim, d, at, 0, NULL, 1), result);
    CHECK_RESULT(nbody_reserve(&sim, d, 1), result);
    CHECK(result == NBODY_OK || (one[0] == 7 && sim.frame == NULL));
    nbody_free(&sim);
}

static void test_refused(void **state)
{
    nbody_desc const fine = square_of(NBODY_INVERSE, NBODY_FORCE_NODES, 4, 1);
    double const core = 1 / (4 * sqrt(IS_FLOAT ? 18.0 : 40.0));
    nbody_desc d = fine;
    int k;
    (void)state;
    check_refused(&d, NBODY_OK);
    for (k = -1; k <= 2; k += 3) d.periodic = k, check_refused(&d, NBODY_BAD_OPTION);
    d = fine, d.method = NBODY_VIRTUAL_PARTICLES, d.order = 1, check_refused(&d, NBODY_BAD_OPTION);
    d = fine, d.order = 1, check_refused(&d, NBODY_BAD_OPTION);
    d = fine, d.sources = NBODY_MASS_CENTRES, check_refused(&d, NBODY_BAD_OPTION);
    d = fine, d.law = NBODY_FUNCTION, d.function.force = some_force;
    check_refused(&d, NBODY_BAD_OPTION);
    d.periodic = 0, check_refused(&d, NBODY_OK);
    d = fine, d.size = 0, check_refused(&d, NBODY_BAD_SQUARE);
    d.method = NBODY_DIRECT, check_refused(&d, NBODY_BAD_SQUARE);
    d = fine, d.size = REAL_NAN, check_refused(&d, NBODY_BAD_SQUARE);
    d = fine, d.size = REAL_LARGEST, check_refused(&d, NBODY_BAD_SQUARE);
    d = fine, d.min[1] = (real)(IS_FLOAT ? 5e6 : 3e15), check_refused(&d, NBODY_BAD_SQUARE);
    d.min[1] = (real)(IS_FLOAT ? 4e6 : 2e15), check_refused(&d, NBODY_OK);
    for (k = 1; k <= NBODY_KEY_LEVELS + 1; k++) {
        d = fine, d.levels = k;
        check_refused(&d, k < 3 || k > NBODY_KEY_LEVELS ? NBODY_BAD_LEVELS : NBODY_OK);
    }
    for (k = 0; k < 2; k++) {
        d = fine;
        if (k) d.method = NBODY_DIRECT;
        d.softening = 0.25, check_refused(&d, NBODY_OK);
        d.softening = (real)0.2501, check_refused(&d, NBODY_BAD_NUMBER);
        d.core = NBODY_GAUSSIAN, d.softening = (real)(core * 1.001);
        check_refused(&d, NBODY_BAD_NUMBER);
        d.softening = (real)(core * 0.999), check_refused(&d, NBODY_OK);
    }
    d = fine, d.periodic = 0, d.softening = 1, check_refused(&d, NBODY_OK);
}

/* A file has the square and that it is periodic. */
static void test_saved(void **state)
{
    enum { N = 90 };
    static unsigned char file[65536];
    static real loaded_acc[2 * N], loaded_potential[N];
    int m;
    (void)state;
    for (m = 0; m < 2; m++) {
        nbody_desc d = square_of(NBODY_INVERSE, m ? NBODY_FORCE_NODES : NBODY_DIRECT, 4, 1);
        nbody sim = {0}, loaded = {0};
        int64_t size = 0;
        now = d;
        make_scene(&d, BORDER, N, 0);
        pos[0] += 5; /* its image is saved */
        CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, mass, N, acc, potential), NBODY_OK);
        CHECK_RESULT(nbody_save(&sim, file, sizeof file, &size), NBODY_OK);
        CHECK_RESULT(nbody_load(&loaded, NULL, file, size), NBODY_OK);
        CHECK(loaded.desc.periodic == 1 && loaded.lattice && loaded.frame->periodic);
        CHECK_RESULT(nbody_fields_again(&loaded, mass, loaded_acc, loaded_potential), NBODY_OK);
        CHECK(same(acc, loaded_acc, sizeof loaded_acc));
        CHECK(same(potential, loaded_potential, sizeof loaded_potential));
        nbody_free(&sim);
        nbody_free(&loaded);
    }
}

/* AUTO: DIRECT for few bodies, else FORCE_NODES, in nbody_defaults too. */
static void test_automatic(void **state)
{
    nbody_desc d = square_of(NBODY_INVERSE, NBODY_AUTO, 0, 1), out;
    nbody sim = {0};
    (void)state;
    now = d;
    make_scene(&d, EVEN, 33, 0);
    CHECK_RESULT(nbody_build(&sim, &d, pos, 0, mass, 32), NBODY_OK);
    CHECK(sim.desc.method == NBODY_DIRECT && !sim.cell);
    CHECK_RESULT(nbody_build(&sim, &d, pos, 0, mass, 33), NBODY_OK);
    CHECK(sim.desc.method == NBODY_FORCE_NODES && sim.cell && sim.desc.order == 4);
    CHECK_RESULT(nbody_defaults(&out, &d, 33), NBODY_OK);
    CHECK(out.method == NBODY_FORCE_NODES && out.levels == NBODY_KEY_LEVELS && out.leaf > 0);
    CHECK(nbody_levels_for(&d, 1) == 3 && nbody_levels_for(&d, 100000) > 4);
    nbody_free(&sim);
}

/* The sums over images are kept, and made anew for another law, softening, side or order. */
static void test_kept(void **state)
{
    enum { N = 60 };
    static real fresh_acc[2 * N], fresh_potential[N];
    nbody_desc d = square_of(NBODY_INVERSE, NBODY_FORCE_NODES, 4, 1);
    nbody sim = {0};
    int k;
    (void)state;
    for (k = 0; k < 24; k++) {
        nbody fresh = {0};
        d.law = (nbody_law)(k / 4 % 2);
        d.order = 3 + k / 2 % 2;
        d.method = k % 5 == 4 ? NBODY_DIRECT : NBODY_FORCE_NODES;
        d.softening = (real)(k % 3 == 2 ? 0.05 : 0);
        d.size = (real)(k % 7 == 6 ? 3 : 1);
        now = d;
        make_scene(&d, EVEN, N, 0);
        CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, mass, N, acc, potential), NBODY_OK);
        CHECK_RESULT(nbody_fields(&fresh, &d, pos, 0, mass, N, fresh_acc, fresh_potential),
                     NBODY_OK);
        CHECK(same(acc, fresh_acc, sizeof fresh_acc));
        CHECK(same(potential, fresh_potential, sizeof fresh_potential));
        nbody_free(&fresh);
    }
    nbody_free(&sim);
}

/* After nbody_reserve nothing is allocated; each allocation may fail. */
static void test_memory(void **state)
{
    enum { N = 300 };
    int m;
    (void)state;
    for (m = 0; m < 2; m++) {
        int32_t const n = m ? N : 30;
        nbody_desc d = square_of((nbody_law)m, m ? NBODY_FORCE_NODES : NBODY_DIRECT, 4, 1);
        heap h = {0, 0, 0, 0, 0, 0};
        nbody sim = {0};
        int64_t calls;
        now = d;
        make_scene(&d, EVEN, n, 0);
        d.allocator.alloc = heap_alloc;
        d.allocator.free = heap_free;
        d.allocator.user = &h;
        CHECK_RESULT(nbody_reserve(&sim, &d, n), NBODY_OK);
        calls = h.calls;
        CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, mass, n, acc, potential), NBODY_OK);
        CHECK(h.calls == calls);
        CHECK(nbody_bytes(&sim) == h.live_bytes);
        nbody_free(&sim);
        CHECK(h.live_blocks == 0);
        h.calls = 0;
        for (h.fail_at = 1; h.fail_at < 40; h.fail_at++) {
            nbody_result const result =
                nbody_fields(&sim, &d, pos, 0, mass, n, acc, potential);
            if (result == NBODY_OK) break;
            CHECK_RESULT(result, NBODY_OUT_OF_MEMORY);
            CHECK(sim.frame == NULL && sim.lattice == NULL);
            nbody_free(&sim);
            h.calls = 0;
        }
        CHECK(h.fail_at > 3 && h.fail_at < 40);
        h.fail_at = 0;
        CHECK_RESULT(nbody_verify(&sim, acc, 10, 1, 0.01), NBODY_OK);
        nbody_free(&sim);
        CHECK(h.live_blocks == 0 && !h.wrong);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(test_ewald),
    TEST(test_checkerboard),
    TEST(test_one),
    TEST(test_replicas),
    TEST(test_shifted),
    TEST(test_bits),
    TEST(test_momentum),
    TEST(test_steps),
    TEST(test_trees),
    TEST(test_refused),
    TEST(test_saved),
    TEST(test_automatic),
    TEST(test_kept),
    TEST(test_memory),
};

int main(void)
{
    int failed = 0;
    if (getenv("NBODY_TEST_ONLY")) cmocka_set_test_filter(getenv("NBODY_TEST_ONLY"));
    RUN_GROUP(failed, tests, NULL);
    return failed;
}
