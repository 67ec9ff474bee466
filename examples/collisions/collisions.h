/* collisions.h - multiparticle collision dynamics: the physics, the same text for CPU and GPU.
   SPDX-License-Identifier: MIT OR Unlicense

   A fluid of points without forces (A. Malevanets and R. Kapral, Mesoscopic model for solvent
   dynamics, J. Chem. Phys. 110 (1999) 8605; also called stochastic rotation dynamics). A step:

       streaming   every particle moves on its own: x += v dt
       collision   the particles of a cell exchange momentum: velocities relative to the mean of
                   their cell are rotated by the angle alpha, each cell about a random axis of its
                   own

           v = u + R (v - u),    u = sum of m v / sum of m, over the cell

   Mass, momentum and energy of a cell stay as they are, so at large scales it flows as a fluid
   does. In each step the cells are shifted by a random vector: without that, particles that move
   by less than a cell meet the same partners again, and the fluid knows at which velocity the
   grid stands still (T. Ihle and D. M. Kroll, Phys. Rev. E 63 (2001) 020201).

   Units: the edge of a cell, the mass of a particle, and the velocity sqrt(k T / m). */

#ifndef COLLISIONS_H
#define COLLISIONS_H

#include "../common/options.h"

typedef ugrid_real mpc_real;

/* Velocities are records of dim + 1 numbers, the last of which is the mass: their sum over a cell
   is its momentum and its mass. */
typedef struct mpc_model {
    int32_t dim, size;      /* 2 or 3; cells along each edge of a periodic box */
    int32_t shifts;         /* 0: the cells stay where they are */
    mpc_real dt, cosine, sine;
    uint64_t seed;
    int64_t step;
} mpc_model;

/* What the collision does in one cell. */
typedef struct mpc_turn { mpc_real mean[3], axis[3]; } mpc_turn;

/* -------------------------------------------------------------------------------------------------
   >>random: a number depends on its key alone, not on who asks for it in which order
   ---------------------------------------------------------------------------------------------- */

/* The output function of SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014). */
BOTH uint64_t mpc_scramble(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Random bits for number k of thing `id` in step `step`. */
BOTH uint64_t mpc_bits(uint64_t seed, int64_t step, int64_t id, int k)
{
    uint64_t const golden = 0x9e3779b97f4a7c15u;
    uint64_t const z = mpc_scramble(seed + golden * (uint64_t)(step + 1));
    return mpc_scramble(z + golden * ((uint64_t)id * 64 + (uint64_t)k + 1));
}

/* From 0 to 1 - 2^-24: exact in floats, too. */
BOTH mpc_real mpc_unit(uint64_t bits)
{
    return (mpc_real)(int32_t)(bits >> 40) / (mpc_real)16777216;
}

/* Where the cells begin: at -shift. Multiples of 1/1024, so that sums with it are exact. */
BOTH mpc_real mpc_shift(const mpc_model *m, int axis)
{
    if (!m->shifts) return 0;
    return (mpc_real)(int32_t)(mpc_bits(m->seed, m->step, -1, axis) >> 54) / 1024;
}

/* An axis for a cell: 2D: up or down, each as often; 3D: every direction alike (G. Marsaglia,
   Choosing a point from the surface of a sphere, Ann. Math. Stat. 43 (1972) 645). */
BOTH void mpc_axis(const mpc_model *m, int32_t cell, mpc_real axis[3])
{
    mpc_real a, b, square = 0;
    int k = 0;
    axis[0] = axis[1] = 0;
    axis[2] = mpc_bits(m->seed, m->step, cell, 0) >> 63 ? (mpc_real)1 : (mpc_real)-1;
    if (m->dim == 2) return;
    do {
        a = 2 * mpc_unit(mpc_bits(m->seed, m->step, cell, k)) - 1;
        b = 2 * mpc_unit(mpc_bits(m->seed, m->step, cell, k + 1)) - 1;
        square = a * a + b * b;
        k += 2;
    } while (square >= 1 && k < 64); /* (0.215^32: never) */
    if (square >= 1) return;
    axis[0] = 2 * a * (mpc_real)sqrt(1 - square);
    axis[1] = 2 * b * (mpc_real)sqrt(1 - square);
    axis[2] = 1 - 2 * square;
}

/* -------------------------------------------------------------------------------------------------
   >>model
   ---------------------------------------------------------------------------------------------- */

/* a * b, rounded: on a GPU a product and a sum could else become one operation, with other bits,
   and a particle at a border could be in another cell than on the CPU. */
BOTH mpc_real mpc_times(mpc_real a, mpc_real b)
{
#ifdef __CUDA_ARCH__
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}

/* One particle flies for a step, and stays in the box 0 .. size. */
BOTH void mpc_stream(const mpc_model *m, const mpc_real *v, mpc_real *x)
{
    mpc_real const size = (mpc_real)m->size;
    int a;
    for (a = 0; a < m->dim; a++) {
        x[a] += mpc_times(v[a], m->dt);
        x[a] -= mpc_times(size, (mpc_real)floor(x[a] / size));
        if (x[a] >= size) x[a] = 0; /* by rounding */
    }
}

/* From the sums of a cell to what its particles do. */
BOTH void mpc_prepare(const mpc_model *m, int32_t cell, const mpc_real *sums, mpc_turn *turn)
{
    mpc_real const mass = sums[m->dim];
    int a;
    turn->mean[2] = 0;
    for (a = 0; a < m->dim; a++) turn->mean[a] = mass > 0 ? sums[a] / mass : 0;
    mpc_axis(m, cell, turn->axis);
}

/* One particle of the cell: Rodrigues' rotation of its relative velocity. */
BOTH void mpc_collide(const mpc_model *m, const mpc_turn *turn, mpc_real *v)
{
    const mpc_real *n = turn->axis;
    mpc_real d[3] = {0, 0, 0}, along = 0;
    int a;
    for (a = 0; a < m->dim; a++) {
        d[a] = v[a] - turn->mean[a];
        along += d[a] * n[a];
    }
    for (a = 0; a < m->dim; a++) {
        int const b = a == 2 ? 0 : a + 1, c = a == 0 ? 2 : a - 1;
        v[a] = turn->mean[a] + m->cosine * d[a] + (1 - m->cosine) * along * n[a] +
               m->sine * (n[b] * d[c] - n[c] * d[b]);
    }
}

/* -------------------------------------------------------------------------------------------------
   >>theory
   ---------------------------------------------------------------------------------------------- */

/* Flows of speed 1 that are exact solutions of the Navier-Stokes equations, the same along z: they
   keep their shape, and their speed decays as exp(-nu k^2 t) for a wave of shear, and as
   exp(-2 nu k^2 t) for the vortices of Taylor and Green (1937). */
static inline void flow_at(double k, int shear, const mpc_real *x, double u[2])
{
    u[0] = sin(k * (double)x[shear]) * (shear ? 1 : cos(k * (double)x[1]));
    u[1] = shear ? 0 : -cos(k * (double)x[0]) * sin(k * (double)x[1]);
}

/* The kinematic viscosity for M particles a cell, by streaming and by collisions (N. Kikuchi,
   C. M. Pooley, J. F. Ryder, J. M. Yeomans, J. Chem. Phys. 119 (2003) 6388; G. Gompper, T. Ihle,
   D. M. Kroll, R. G. Winkler, Adv. Polym. Sci. 221 (2009) 1, table 1). Numbers of particles in a
   cell vary by Poisson's law: M - 1 + exp(-M) is the mean number of partners. */
static double viscosity_of(int dim, double M, double dt, double angle)
{
    double const partners = M - 1 + exp(-M);
    double const streaming =
        dim == 2 ? dt * (M / (partners * (1 - cos(2 * angle))) - 0.5)
                 : dt * (5 * M / (partners * (4 - 2 * cos(angle) - 2 * cos(2 * angle))) - 0.5);
    double const collisions = partners * (1 - cos(angle)) / ((dim == 2 ? 12 : 18) * M * dt);
    return streaming + collisions;
}

/* What thermal motion adds in the plane: fluctuations carry momentum, too, the more the longer the
   wave, and no theory of cells knows of it (long tails: B. J. Alder and T. E. Wainwright, Phys.
   Rev. A 1 (1970) 18; D. Forster, D. R. Nelson, M. J. Stephen, Phys. Rev. A 16 (1977) 732, section
   III: d nu / d ln(1/k) = k T / (16 pi rho nu), from the size of a cell on). In 3D it does not grow
   with the wave, and is small. */
static double viscosity_of_noise(int dim, double M, double viscosity, double k)
{
    double const square = viscosity * viscosity + log(fmax(1, 1 / k)) / (8 * PI * M);
    return dim == 2 ? sqrt(square) - viscosity : 0;
}

/* -------------------------------------------------------------------------------------------------
   >>scene
   ---------------------------------------------------------------------------------------------- */

enum { SUM_DIRECT, SUM_LISTS, SUM_HEADER, SUM_WAYS };
static const option_name sum_names[] = {
    {"direct", SUM_DIRECT}, {"lists", SUM_LISTS}, {"header", SUM_HEADER}, {NULL, 0}
};

typedef struct mpc_options {
    int32_t dim, size, mean, waves, seed, order, sums, shear, still, time, check;
    double dt, angle, flow, until;
    const char *sums_name, *out;
} mpc_options;

typedef struct scene {
    const mpc_options *options;
    mpc_model model;
    ugrid grid;
    int32_t n, cells;
    mpc_real *x, *v;        /* [dim n], [(dim + 1) n] */
    mpc_real *sums;         /* [(dim + 1) cells] */
    mpc_turn *turn;         /* [cells] */
    mpc_real *spare_x, *spare_v;
    double k;               /* wave number of the flow along an axis, */
    double square;          /* and the square of all of it: speeds decay as exp(-nu square t) */
    double viscosity;       /* by theory */
} scene;

static mpc_options parse(int argc, char **argv)
{
    mpc_options o;
    const option_line table[] = {
        INT("--dim", "D", &o.dim, 2, 3, "2 (default) or 3"),
        INT("--size", "N", &o.size, 4, 4096, "cells along an edge (default 128; 3D: 32)"),
        INT("--mean", "M", &o.mean, 2, 1000, "particles in a cell, in the mean (default 10)"),
        DOUBLE("--dt", "T", &o.dt, 0.01, 10, "time step: also the mean free path (default 0.1)"),
        DOUBLE("--angle", "A", &o.angle, 1, 179, "rotation, in degrees (default 130)"),
        DOUBLE("--flow", "U", &o.flow, 0.01, 1, "largest speed at the start (default 0.3)"),
        INT("--waves", "W", &o.waves, 1, 64, "periods of the flow on an edge (default 2; 3D: 1)"),
        DOUBLE("--until", "T", &o.until, 0, 10, "in units of the decay of the flow (default 1)"),
        TEXT("--sums", "NAME", &o.sums_name, "direct, lists or header (default)"),
        INT("--order", "N", &o.order, 0, 1e9,
            "every N steps particles are sorted by cell (default 50; 0: never)"),
        FLAG("--shear", &o.shear, "a wave of shear in place of the vortices"),
        FLAG("--no-shift", &o.still, "the grid stays where it is"),
        INT("--seed", "N", &o.seed, 0, 1e9, "of all random numbers (default 1)"),
        TEXT("--out", "FILE", &o.out, "the picture (default build/collisions.png)"),
        FLAG("--time", &o.time, "how long the sums of all cells take, in each of the three ways"),
        FLAG("--check", &o.check, "compare the ways; on a GPU also with the serial steps"),
        OPTIONS_END};
    memset(&o, 0, sizeof o);
    o.dim = 2;
    o.mean = 10;
    o.dt = 0.1;
    o.angle = 130;
    o.flow = 0.3;
    o.until = 1;
    o.order = 50;
    o.seed = 1;
    o.sums_name = "header";
    o.out = "build/collisions.png";
    options_read(argc, argv, table, NULL, "A fluid by multiparticle collisions.",
                 "--dim 3 --sums lists --time");
    if (!o.size) o.size = o.dim == 2 ? 128 : 32;
    if (!o.waves) o.waves = o.dim == 2 ? 2 : 1;
    o.sums = option_find(sum_names, "--sums", o.sums_name);
    if (pow(o.size, o.dim) * o.mean > 4e8) stop(2, "--size, --mean: more than 4e8 particles");
    return o;
}

/* Particles anywhere, with velocities of temperature 1 (G. E. P. Box and M. E. Muller, 1958). */
static void start_particle(scene *s, int32_t i)
{
    mpc_real *x = s->x + (size_t)s->model.dim * (size_t)i;
    mpc_real *v = s->v + (size_t)(s->model.dim + 1) * (size_t)i;
    int a;
    for (a = 0; a < s->model.dim; a++) {
        double const r = (double)mpc_unit(mpc_bits(s->model.seed, -1, i, 3 * a)),
                     turn = (double)mpc_unit(mpc_bits(s->model.seed, -1, i, 3 * a + 1));
        x[a] = (mpc_real)s->model.size * mpc_unit(mpc_bits(s->model.seed, -1, i, 3 * a + 2));
        v[a] = (mpc_real)(sqrt(-2 * log(1 - r)) * cos(2 * PI * turn));
    }
    v[a] = 1;
}

/* How fast the flow is: the part of the velocities that goes with it. */
static double flow_of(const scene *s)
{
    double with = 0, all = 0;
    int32_t i;
    for (i = 0; i < s->n; i++) {
        const mpc_real *v = s->v + (size_t)(s->model.dim + 1) * (size_t)i;
        double u[2];
        flow_at(s->k, s->options->shear, s->x + (size_t)s->model.dim * (size_t)i, u);
        with += (double)v[0] * u[0] + (double)v[1] * u[1];
        all += u[0] * u[0] + u[1] * u[1];
    }
    return with / all;
}

/* The flow at the start is exactly what it is asked to be. */
static void start_flow(scene *s)
{
    double const missing = s->options->flow - flow_of(s);
    size_t const dim = (size_t)s->model.dim;
    size_t i;
    for (i = 0; i < (size_t)s->n; i++) {
        mpc_real *v = s->v + (dim + 1) * i;
        double u[2];
        flow_at(s->k, s->options->shear, s->x + dim * i, u);
        v[0] += (mpc_real)(missing * u[0]);
        v[1] += (mpc_real)(missing * u[1]);
    }
}

static scene *scene_new(const mpc_options *o)
{
    scene *s = (scene *)zeros(1, sizeof *s);
    size_t const dim = (size_t)o->dim;
    double const angle = o->angle * PI / 180;
    int32_t i;
    s->options = o;
    s->model.dim = o->dim;
    s->model.size = o->size;
    s->model.shifts = !o->still;
    s->model.dt = (mpc_real)o->dt;
    s->model.cosine = (mpc_real)cos(angle);
    s->model.sine = (mpc_real)sin(angle);
    s->model.seed = (uint64_t)o->seed;
    s->cells = o->size * o->size * (o->dim == 3 ? o->size : 1);
    s->n = s->cells * o->mean;
    s->k = 2 * PI * o->waves / o->size;
    s->square = (o->shear ? 1 : 2) * s->k * s->k;
    s->viscosity = viscosity_of(o->dim, o->mean, o->dt, angle);
    s->x = (mpc_real *)zeros(dim * (size_t)s->n, sizeof *s->x);
    s->v = (mpc_real *)zeros((dim + 1) * (size_t)s->n, sizeof *s->v);
    s->spare_x = (mpc_real *)zeros(dim * (size_t)s->n, sizeof *s->x);
    s->spare_v = (mpc_real *)zeros((dim + 1) * (size_t)s->n, sizeof *s->v);
    s->sums = (mpc_real *)zeros((dim + 1) * (size_t)s->cells, sizeof *s->sums);
    s->turn = (mpc_turn *)zeros((size_t)s->cells, sizeof *s->turn);
    for (i = 0; i < s->n; i++) start_particle(s, i);
    start_flow(s);
    return s;
}

static void scene_free(scene *s)
{
    ugrid_free(&s->grid);
    free(s->x);
    free(s->v);
    free(s->spare_x);
    free(s->spare_v);
    free(s->sums);
    free(s->turn);
    free(s);
}

#endif /* COLLISIONS_H */
