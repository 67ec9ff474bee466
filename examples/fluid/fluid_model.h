/* fluid_model.h - smoothed particle hydrodynamics: the kernel, and what one pair adds; the same
   text for fluid.c, fluid.cu and web/scene_fluid.h.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef FLUID_MODEL_H
#define FLUID_MODEL_H

#include "../common/base.h"
#include "../../nlist.h"

typedef nlist_real fluid_real;
enum { FLUID_STRIDE = 4 * sizeof(fluid_real) }; /* bytes of a record: x y z and one number more */

/* -------------------------------------------------------------------------------------------------
   >>model: numbers of a run, and what one particle or pair does with them

   Density     rho_i = rest_i + sum_j m W_ij. rest_i is what is missing at the start, at a surface
               for example: the equation of continuity, integrated exactly (Vila 1999; Ferrand et
               al. 2013). So density depends on positions alone, and energy is conserved but for the
               time step and what viscosity takes.
   Pressure    p = B ((rho / rho_0)^7 - 1), B = rho_0 c^2 / 7 (Tait's equation; Monaghan 1994)
   Momentum    dv_i/dt = g - sum_j m (p_i / rho_i^2 + p_j / rho_j^2 + Pi_ij) grad W_ij (Monaghan
               1992), Pi_ij = -alpha c h (v_ij . r_ij) / (rho_0 (r_ij^2 + 0.01 h^2)); without the
               last at a wall, along which fluid slips
   Walls       particles that do not move, with the pressure of the fluid before them (Adami et al.
               2012, equation 27), but none below 0: walls do not pull
   Kernel      Wendland C2, up to q = r / h = 2: W = s (1 - q/2)^4 (2 q + 1),
               grad W = -5 s / h^2 (1 - q/2)^3 r_ij
   ---------------------------------------------------------------------------------------------- */

typedef struct fluid_model {
    int32_t dim;
    fluid_real h, support;      /* smoothing length; 2 h */
    fluid_real scale;           /* m s: the mass of a particle times the kernel's factor */
    fluid_real rho, stiffness;  /* rho_0, B */
    fluid_real drag;            /* alpha c h / rho_0 */
    fluid_real gravity, dt;     /* along the last axis, downwards */
} fluid_model;

/* What the pass over densities leaves in an entry for the pass over forces. */
typedef struct fluid_kept {
    fluid_real gradient[3];     /* m grad W */
    fluid_real drag;            /* Pi = drag * (v . gradient); 0: the partner is a wall */
} fluid_kept;

/* Records of particles. Arrays of a caller, in host or device memory. */
typedef struct fluid_particles {
    fluid_real *pos;            /* [4 n] x y z, and 1 for fluid, 0 for a wall */
    fluid_real *vel;            /* [4 n] u v w, and p / rho^2 */
    fluid_real *density;        /* [2 n] rest, rho */
    int32_t *id;                /* [n] the number at the start: sorts change the order */
} fluid_particles;

BOTH int fluid_is_wall(const fluid_real *p) { return !(p[3] > 0); }

/* Of p = stiffness ((rho / rho_0)^7 - 1). */
BOTH fluid_real fluid_pressure(const fluid_model *m, fluid_real rho)
{
    fluid_real const x = rho / m->rho, x3 = x * x * x;
    return m->stiffness * (x3 * x3 * x - 1);
}

/* 1 - q/2, or 0 for a pair that is too far apart; d = p - q. */
BOTH fluid_real fluid_closeness(const fluid_model *m, const fluid_real *p, const fluid_real *q,
                                fluid_real d[3], fluid_real *r2)
{
    fluid_real t;
    int k;
    *r2 = 0;
    for (k = 0; k < 3; k++) {
        d[k] = p[k] - q[k];
        *r2 += d[k] * d[k];
    }
    t = 1 - (fluid_real)sqrt(*r2) / m->support;
    return t > 0 ? t : 0;
}

BOTH fluid_real fluid_kernel(const fluid_model *m, fluid_real t) /* m W */
{
    return m->scale * t * t * t * t * (5 - 4 * t);
}

/* Returns what j adds to the density of i, and keeps the gradient. */
BOTH fluid_real fluid_meet(const fluid_model *m, const fluid_real *p, const fluid_real *q,
                           fluid_kept *kept)
{
    fluid_real d[3], r2;
    fluid_real const t = fluid_closeness(m, p, q, d, &r2),
                     slope = -20 * m->scale / (m->support * m->support) * t * t * t;
    int k;
    for (k = 0; k < 3; k++) kept->gradient[k] = slope * d[k];
    kept->drag = t > 0 && !fluid_is_wall(q)
                     ? -m->drag / (slope * (r2 + (fluid_real)0.01 * m->h * m->h)) : 0;
    return fluid_kernel(m, t);
}

/* The pair's part of the acceleration of i; vi, vj: velocity, p / rho^2. */
BOTH void fluid_push(const fluid_kept *kept, const fluid_real *vi, const fluid_real *vj,
                     fluid_real acceleration[3])
{
    const fluid_real *g = kept->gradient;
    fluid_real const along =
        (vi[0] - vj[0]) * g[0] + (vi[1] - vj[1]) * g[1] + (vi[2] - vj[2]) * g[2];
    fluid_real const push = vi[3] + vj[3] + kept->drag * along;
    int k;
    for (k = 0; k < 3; k++) acceleration[k] -= push * g[k];
}

/* sums: kernels, and pressures times kernels, of the fluid j as they are at the wall's particle. */
BOTH void fluid_lean(const fluid_model *m, const fluid_real *wall, const fluid_real *p,
                     const fluid_real *v, const fluid_real *density, fluid_real sums[2])
{
    fluid_real d[3], r2, w;
    fluid_real const rho = density[1];
    if (fluid_is_wall(p)) return;
    w = fluid_kernel(m, fluid_closeness(m, wall, p, d, &r2));
    sums[0] += w;
    sums[1] += w * (v[3] * rho * rho - rho * m->gravity * d[m->dim - 1]);
}

/* The end of a pass over densities: fluid (sum: of kernels, its own included) and wall. */
BOTH void fluid_set_fluid(const fluid_model *m, fluid_real sum, fluid_real *v, fluid_real *density)
{
    fluid_real const rho = density[0] + sum;
    density[1] = rho;
    v[3] = fluid_pressure(m, rho) / (rho * rho);
}

BOTH void fluid_set_wall(const fluid_model *m, const fluid_real sums[2], fluid_real *v,
                         fluid_real *density)
{
    fluid_real const p = sums[0] > 0 && sums[1] > 0 ? sums[1] / sums[0] : 0,
                     rho = m->rho * (fluid_real)pow(1 + p / m->stiffness, (fluid_real)(1.0 / 7));
    density[1] = rho;
    v[3] = p / (rho * rho);
}

/* Leapfrog: velocities lie half a step before positions. `v`: before; `next`: after. Walls stay. */
BOTH void fluid_move(const fluid_model *m, const fluid_real acceleration[3], const fluid_real *v,
                     fluid_real *p, fluid_real *next)
{
    fluid_real const dt = fluid_is_wall(p) ? 0 : m->dt;
    int k;
    for (k = 0; k < 3; k++) {
        fluid_real const g = k == m->dim - 1 ? m->gravity : 0;
        next[k] = v[k] + dt * (acceleration[k] - g);
        p[k] += dt * next[k];
    }
}

#endif /* FLUID_MODEL_H */
