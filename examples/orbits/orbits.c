/* orbits.c - time steps of bodies beside orbits that are known exactly.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: three integrators around nbody.h, and forces from outside that are added to those
   of the bodies. For each the error at the end is printed, against the exact orbit: leapfrog is of
   second order, Runge-Kutta (RK4) of fourth, and steps that adapt keep what a tolerance says.

       pair      two bodies on an ellipse                         Kepler's equation
       field     the same, falling in a uniform field             the same, and a parabola
       centre    a body around a fixed mass                       Kepler's equation
       halo      bodies in a halo of even density: the force      their centre of mass swings as one
                 is -w^2 r, whatever they do to each other        body on a spring would
       cluster   a binary of large eccentricity among others:     the energy is constant
                 each body has a time step of its own

   How to run it:

       make build/orbits && build/orbits              (from the top of the repository), or
       cc -O3 examples/orbits/orbits.c -o orbits -lm
       ./orbits --case centre --eccentricity 0.9

   What to look at: >>forces and >>exact below; integrate.h has the integrators. */

#define PROGRAM "orbits"
#include "../common/base.h"
#include "../common/options.h"
#include "../common/random.h"

#define NBODY_REAL double
#define NBODY_WITH_BLOCKS
#define NBODY_IMPLEMENTATION
#include "../../nbody.h"
#include "integrate.h"

enum { PAIR, FIELD, CENTRE, HALO, CLUSTER };

static const option_name cases[] = {
    {"pair", PAIR}, {"field", FIELD}, {"centre", CENTRE}, {"halo", HALO}, {"cluster", CLUSTER},
    {NULL, 0}
};

typedef struct orbits {
    int which;                  /* of the cases */
    int32_t n, seed;
    double eccentricity, periods;
    double *mass;               /* [n] */
    nbody sim;
    nbody_desc desc;
} orbits;

static const double field[2] = {0.05, -0.1}, halo = 0.8; /* a uniform field; w */

/* -------------------------------------------------------------------------------------------------
   >>forces: of the bodies on each other by nbody.h, then those from outside
   ---------------------------------------------------------------------------------------------- */

static void external(const orbits *o, const double p[2], double a[2])
{
    double const r2 = p[0] * p[0] + p[1] * p[1], r = sqrt(r2);
    int k;
    for (k = 0; k < 2; k++) {
        if (o->which == FIELD) a[k] += field[k];
        if (o->which == CENTRE) a[k] -= p[k] / (r2 * r);
        if (o->which == HALO) a[k] -= halo * halo * p[k];
    }
}

static void forces(void *user, double time, const double *pos, double *acc)
{
    orbits *o = (orbits *)user;
    int32_t i;
    (void)time;
    MUST(nbody, nbody_accelerations(&o->sim, &o->desc, pos, 0, o->mass, o->n, acc), "the forces");
    for (i = 0; i < o->n; i++) external(o, pos + 2 * i, acc + 2 * i);
}

/* -------------------------------------------------------------------------------------------------
   >>exact: an ellipse of axis 1 around mass 1, in a time of 2 pi
   ---------------------------------------------------------------------------------------------- */

/* Position and velocity at a time: Kepler's equation E - e sin E = t, by Newton's method. */
static void kepler(double e, double time, double p[2], double v[2])
{
    double const t = fmod(time, 2 * PI), b = sqrt(1 - e * e);
    double angle = e < 0.8 ? t : PI, speed;
    int k;
    for (k = 0; k < 50; k++) angle -= (angle - e * sin(angle) - t) / (1 - e * cos(angle));
    speed = 1 / (1 - e * cos(angle));
    p[0] = cos(angle) - e;
    p[1] = b * sin(angle);
    v[0] = -speed * sin(angle);
    v[1] = speed * b * cos(angle);
}

/* The centre of mass: at rest, or as the field or the halo moves it. */
static void centre_of_mass(const orbits *o, double time, double p[2], double v[2])
{
    int k;
    for (k = 0; k < 2; k++) {
        p[k] = o->which == FIELD ? field[k] * time * time / 2 : 0;
        v[k] = o->which == FIELD ? field[k] * time : 0;
    }
    if (o->which != HALO) return;
    p[0] = 2 * cos(halo * time); /* an ellipse around the middle of the halo */
    p[1] = sin(halo * time);
    v[0] = -2 * halo * sin(halo * time);
    v[1] = halo * cos(halo * time);
}

/* Body i where its orbit is known: the two of a pair share the ellipse by their masses. */
static void exact(const orbits *o, int32_t i, double time, double p[2], double v[2])
{
    double const share = o->which == CENTRE ? 1 : i == 0 ? -o->mass[1] : o->mass[0];
    double q[2], w[2];
    int k;
    centre_of_mass(o, time, p, v);
    kepler(o->eccentricity, time, q, w);
    for (k = 0; k < 2; k++) p[k] += share * q[k], v[k] += share * w[k];
}

/* -------------------------------------------------------------------------------------------------
   >>start
   ---------------------------------------------------------------------------------------------- */

/* Bodies at random around the centre of mass; then that is moved to where it has to be. */
static void start_in_halo(const orbits *o, double *y)
{
    uint64_t r = random_seed(o->seed);
    double p[2], v[2], mean[4] = {0, 0, 0, 0};
    int32_t i;
    int k;
    centre_of_mass(o, 0, p, v);
    for (i = 0; i < 4 * o->n; i++) y[i] = (i < 2 * o->n ? 1 : 0.3) * (random_double(&r) - 0.5);
    for (i = 0; i < o->n; i++)
        for (k = 0; k < 4; k++)
            mean[k] += o->mass[i] * y[k / 2 * 2 * o->n + 2 * i + k % 2];
    for (i = 0; i < o->n; i++)
        for (k = 0; k < 2; k++) {
            y[2 * i + k] += p[k] - mean[k];
            y[2 * (o->n + i) + k] += v[k] - mean[2 + k];
        }
}

static void start(const orbits *o, motion *m)
{
    int32_t i;
    if (o->which == HALO) start_in_halo(o, m->y);
    else for (i = 0; i < o->n; i++) exact(o, i, 0, m->y + 2 * i, m->y + 2 * (o->n + i));
}

/* The distance from the exact position: of the first body, or of the centre of mass. */
static double error_of(const orbits *o, const motion *m)
{
    double p[2], v[2], at[2] = {m->y[0], m->y[1]};
    int32_t i;
    if (o->which != HALO) exact(o, 0, m->time, p, v);
    else {
        centre_of_mass(o, m->time, p, v);
        at[0] = at[1] = 0;
        for (i = 0; i < 2 * o->n; i++) at[i % 2] += o->mass[i / 2] * m->y[i];
    }
    return hypot(at[0] - p[0], at[1] - p[1]);
}

#include "orbits_cluster.h"
#include "orbits_run.h" /* >>table: each integrator with steps or tolerances that become smaller */
