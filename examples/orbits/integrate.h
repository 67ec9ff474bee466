/* integrate.h - time steps for bodies in a plane: leapfrog, Runge-Kutta of order 4 (RK4), and RK4
   with steps that adapt to a tolerance. The forces are a function of yours.
   SPDX-License-Identifier: MIT OR Unlicense

   >>motion     the state, and its derivative
   >>leapfrog   second order, symplectic, one evaluation a step
   >>rk4        fourth order, four evaluations a step
   >>adaptive   RK4, twelve evaluations a step: one step against two halves of it */

#ifndef EXAMPLES_INTEGRATE_H
#define EXAMPLES_INTEGRATE_H

#include "../common/base.h"

/* -------------------------------------------------------------------------------------------------
   >>motion
   ---------------------------------------------------------------------------------------------- */

/* acc[2 n] = accelerations at pos[2 n] and `time`. */
typedef void integrate_force(void *user, double time, const double *pos, double *acc);

typedef struct motion {
    int32_t n;                  /* bodies */
    double time;
    double *y;                  /* [4 n] positions [2 n], then velocities [2 n] */
    integrate_force *force;
    void *user;
    int64_t evaluations;        /* of the force, until now */
    int64_t steps, rejected;    /* adaptive: taken, and tried again shorter */
    double *acc;                /* [2 n] leapfrog: at the positions, where `fresh` is 1 */
    int fresh;
    double *work;               /* [6 * 4 n] */
} motion;

static motion motion_new(int32_t n, integrate_force *force, void *user)
{
    motion m;
    memset(&m, 0, sizeof m);
    m.n = n;
    m.force = force;
    m.user = user;
    m.y = (double *)zeros(4 * (size_t)n, sizeof(double));
    m.acc = (double *)zeros(2 * (size_t)n, sizeof(double));
    m.work = (double *)zeros(24 * (size_t)n, sizeof(double));
    return m;
}

static void motion_free(motion *m)
{
    free(m->y);
    free(m->acc);
    free(m->work);
}

/* slope = dy / dt: velocities, then accelerations. */
static void motion_slope(motion *m, double time, const double *y, double *slope)
{
    size_t const half = 2 * (size_t)m->n;
    memcpy(slope, y + half, half * sizeof(double));
    m->force(m->user, time, y, slope + half);
    m->evaluations++;
}

/* out = y + h slope. */
static void motion_along(const motion *m, const double *y, double h, const double *slope,
                         double *out)
{
    int32_t k;
    for (k = 0; k < 4 * m->n; k++) out[k] = y[k] + h * slope[k];
}

/* -------------------------------------------------------------------------------------------------
   >>leapfrog (Stoermer 1907, Verlet 1967): half a kick, a drift, half a kick. The forces at the end
   of a step are those at the start of the next. It preserves areas in phase space, and so the error
   of the energy stays bounded over any number of orbits.
   ---------------------------------------------------------------------------------------------- */

static void leapfrog_kick(motion *m, double h)
{
    double *const vel = m->y + 2 * (size_t)m->n;
    int32_t k;
    if (!m->fresh) {
        m->force(m->user, m->time, m->y, m->acc);
        m->evaluations++;
    }
    m->fresh = 1;
    for (k = 0; k < 2 * m->n; k++) vel[k] += h * m->acc[k];
}

static void leapfrog_step(motion *m, double h)
{
    int32_t k;
    leapfrog_kick(m, h / 2);
    for (k = 0; k < 2 * m->n; k++) m->y[k] += h * m->y[2 * m->n + k];
    m->time += h;
    m->fresh = 0;
    leapfrog_kick(m, h / 2);
}

/* -------------------------------------------------------------------------------------------------
   >>rk4 (Kutta 1901): slopes at the start, twice in the middle and at the end, weighted 1 2 2 1.
   ---------------------------------------------------------------------------------------------- */

/* out = y after h, from time. out may be y. Takes work[0] to work[2]. */
static void rk4(motion *m, double time, const double *y, double h, double *out)
{
    size_t const all = 4 * (size_t)m->n;
    double *const slope = m->work, *const at = slope + all, *const sum = at + all;
    static const double step[4] = {0, 0.5, 0.5, 1}, weight[4] = {1, 2, 2, 1};
    size_t i;
    int k;
    memset(sum, 0, all * sizeof *sum);
    memcpy(at, y, all * sizeof *at);
    for (k = 0; k < 4; k++) {
        if (k > 0) motion_along(m, y, step[k] * h, slope, at);
        motion_slope(m, time + step[k] * h, at, slope);
        for (i = 0; i < all; i++) sum[i] += weight[k] / 6 * slope[i];
    }
    motion_along(m, y, h, sum, out);
}

static void rk4_step(motion *m, double h)
{
    rk4(m, m->time, m->y, h, m->y);
    m->time += h;
    m->fresh = 0;
}

/* -------------------------------------------------------------------------------------------------
   >>adaptive: a step of h against two of h / 2 (step doubling; Press et al., Numerical Recipes,
   section 16.2 of the second edition). Both differ by 15 times the error of the two halves, as an
   error of order 4 falls to 1 / 16. A step whose error exceeds the tolerance is not taken.
   ---------------------------------------------------------------------------------------------- */

/* The next h: the error of a step grows as h^5. With a margin, and not by more than 4 at once. */
static double adaptive_next(double h, double error, double tolerance)
{
    double const best = error == 0 ? 4 : 0.9 * pow(tolerance / error, 0.2);
    return h * (best > 4 ? 4 : best >= 0.1 ? best : 0.1); /* NaN: 0.1 */
}

/* One step of *h at most, but not beyond `end`; *h: of the next one. Every coordinate and velocity
   has an error of `tolerance` at most, as estimated. */
static void adaptive_step(motion *m, double *h, double end, double tolerance)
{
    size_t const all = 4 * (size_t)m->n;
    double *const whole = m->work + 3 * all, *const halves = whole + all;
    double error, step;
    size_t i;
    for (;;) {
        int const last = m->time + *h >= end;
        step = last ? end - m->time : *h;
        error = 0;
        rk4(m, m->time, m->y, step, whole);
        rk4(m, m->time, m->y, step / 2, halves);
        rk4(m, m->time + step / 2, halves, step / 2, halves);
        for (i = 0; i < all; i++) {
            double const one = fabs(halves[i] - whole[i]) / 15;
            if (one > error || one != one) error = one; /* NaN stays */
        }
        if (error <= tolerance) break;
        m->rejected++;
        *h = adaptive_next(step, error, tolerance);
        if (m->time + *h == m->time) stop(1, "a time step became too small");
    }
    memcpy(m->y, halves, all * sizeof *halves);
    m->time += step;
    m->steps++;
    m->fresh = 0;
    if (step == *h) *h = adaptive_next(step, error, tolerance);
}

#endif /* EXAMPLES_INTEGRATE_H */
