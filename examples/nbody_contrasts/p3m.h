/* p3m.h - particle-particle, particle-mesh (P3M), for 1 / d^2 in the plane: a contrast to nbody.h.
   SPDX-License-Identifier: MIT OR Unlicense

   R. W. Hockney and J. W. Eastwood, Computer Simulation Using Particles (1988), chapter 8. The
   potential of a pair is split in two (as by Ewald, 1921):

       1 / d  =  erf(alpha d) / d   +   erfc(alpha d) / d
                 smooth: the mesh       short: pairs within `reach`, by a grid

   so the mesh has only what it is good at, and pairs add what it lacks. reach = 3.5 / alpha: beyond
   it the short part is below 1e-6 of 1 / d. More spacings of the mesh within reach: smaller errors
   of the mesh, and more pairs. Include ugrid.h, of doubles, before this. */

#ifndef EXAMPLES_P3M_H
#define EXAMPLES_P3M_H

#include "particle_mesh.h"

typedef struct p3m {
    mesh mesh;
    ugrid grid;
    double alpha, reach;
    const double *mass;
    double *acc;
    int64_t pairs;          /* of the last evaluation */
} p3m;

/* reach: in spacings of the mesh. */
static p3m p3m_new(int32_t side, double reach)
{
    p3m p;
    memset(&p, 0, sizeof p);
    p.reach = reach / (side - 7);
    p.alpha = 3.5 / p.reach;
    p.mesh = mesh_new(side, p.alpha);
    return p;
}

static void p3m_free(p3m *p)
{
    mesh_free(&p->mesh);
    ugrid_free(&p->grid);
}

/* -------------------------------------------------------------------------------------------------
   >>pairs
   ---------------------------------------------------------------------------------------------- */

/* What the mesh lacks: the slope of erfc(alpha d) / d, times d / |d|. */
static double p3m_short(double alpha, double d2)
{
    double const d = sqrt(d2), a = alpha * d;
    return (erfc(a) + 2 / sqrt(PI) * a * exp(-a * a)) / (d2 * d);
}

static int p3m_pair(void *user, int32_t i, int32_t j)
{
    p3m *p = (p3m *)user;
    const double *pos = p->grid.pos;
    double const dx = pos[2 * j] - pos[2 * i], dy = pos[2 * j + 1] - pos[2 * i + 1];
    double const d2 = dx * dx + dy * dy, f = d2 > 0 ? p3m_short(p->alpha, d2) : 0;
    p->acc[2 * i] += p->mass[j] * f * dx;
    p->acc[2 * i + 1] += p->mass[j] * f * dy;
    p->acc[2 * j] -= p->mass[i] * f * dx;
    p->acc[2 * j + 1] -= p->mass[i] * f * dy;
    p->pairs++;
    return 0;
}

/* Accelerations [2 n] of bodies in the unit square. */
static void p3m_accelerations(p3m *p, const double *pos, const double *mass, int32_t n, double *acc)
{
    ugrid_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.dim = 2;
    desc.max[0] = desc.max[1] = 1;
    desc.cell = p->reach;
    desc.no_records = 1; /* grid.pos is then the caller's */
    p->mass = mass;
    p->acc = acc;
    p->pairs = 0;
    mesh_accelerations(&p->mesh, pos, mass, n, acc);
    MUST(ugrid, ugrid_build(&p->grid, &desc, pos, 0, n), "P3M");
    MUST(ugrid, ugrid_each_pair(&p->grid, p->reach, UGRID_HALF, p3m_pair, p), "P3M");
}

#endif /* EXAMPLES_P3M_H */
