/* test_drift.c - long runs: the energy of 10,000 leapfrog steps at order 4 drifts at most twice as
   far as with direct sums, and what happens to momentum.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/nbody/test_drift.c -o test_drift -lcmocka -lm && ./test_drift

   Environment: TEST_SMALL=1, a tenth of the steps. */

#include "tests/common/nbody_parts.h"
#define NBODY_IMPLEMENTATION
#include "nbody.h"
#include "../../common/nbody_oracle.h"
#include "../../common/testing.h"

enum { N = 120 };

/* A rotating disc of radius 1. */
static void fill_disc(real *pos, real *vel)
{
    int i;
    for (i = 0; i < N; i++) {
        double const r = sqrt((double)wl_u(&dice)), angle = 2 * ORACLE_PI * (double)wl_u(&dice);
        pos[2 * i] = (real)(r * cos(angle));
        pos[2 * i + 1] = (real)(r * sin(angle));
        vel[2 * i] = (real)-0.8 * pos[2 * i + 1];
        vel[2 * i + 1] = (real)0.8 * pos[2 * i];
    }
}

/* In long double, of all pairs. */
static double energy(const real *pos, const real *vel, double softening)
{
    long double sum = 0;
    int i, j;
    for (i = 0; i < N; i++) {
        long double const vx = (long double)vel[2 * i], vy = (long double)vel[2 * i + 1];
        sum += (vx * vx + vy * vy) / 2;
        for (j = 0; j < i; j++) {
            long double const x = (long double)pos[2 * i] - (long double)pos[2 * j],
                              y = (long double)pos[2 * i + 1] - (long double)pos[2 * j + 1];
            sum -= 1 / (N * sqrtl(x * x + y * y + (long double)(softening * softening)));
        }
    }
    return (double)sum;
}

typedef struct drift { double most, momentum; } drift;

static drift run(const nbody_desc *d, int steps)
{
    real pos[2 * N], vel[2 * N], acc[2 * N];
    nbody_bodies b = {pos, vel, acc, NULL, N, 0};
    nbody_energies begin, end;
    nbody sim = {0};
    drift found = {0, 0};
    double first;
    int step;
    dice = wl_seed(7);
    fill_disc(pos, vel);
    first = energy(pos, vel, (double)d->softening);
    CHECK_RESULT(nbody_energy(&b, NULL, &begin), NBODY_OK);
    for (step = 1; step <= steps; step++) {
        CHECK_RESULT(nbody_step(&sim, d, &b, (real)0.005, NBODY_LEAPFROG), NBODY_OK);
        if (step % 20 == 0) {
            double const now = fabs(energy(pos, vel, (double)d->softening) / first - 1);
            if (!(now <= found.most)) found.most = now;
        }
    }
    CHECK_RESULT(nbody_energy(&b, NULL, &end), NBODY_OK);
    found.momentum = hypot(end.momentum[0] - begin.momentum[0],
                           end.momentum[1] - begin.momentum[1]) / N;
    nbody_free(&sim);
    return found;
}

static void test_drift(void **state)
{
    int const steps = small_run() || SANITIZED ? 1000 : 10000;
    nbody_desc d;
    drift direct, even;
    (void)state;
    SLOW_TEST();
    memset(&d, 0, sizeof d);
    d.gravity = (real)(1.0 / N);
    d.softening = (real)0.05;
    d.method = NBODY_DIRECT;
    direct = run(&d, steps);
    d.method = NBODY_FORCE_NODES;
    d.order = 4;
    d.levels = 3;
    even = run(&d, steps);
    print_message("drift %.2e, direct %.2e; momentum %.1e, direct %.1e\n", even.most, direct.most,
                  even.momentum, direct.momentum);
    CHECK_BELOW(direct.most, 2e-3);
    CHECK_BELOW(even.most, 2 * direct.most);
    CHECK_BELOW(direct.momentum, IS_FLOAT ? 1e-5 : 1e-13);
    CHECK_BELOW(even.momentum, IS_FLOAT ? 1e-5 : 1e-13);
}

static const struct CMUnitTest tests[] = {TEST(test_drift)};

int main(void)
{
    int failed = 0;
    RUN_GROUP(failed, tests, NULL);
    return failed;
}
