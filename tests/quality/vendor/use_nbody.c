/* A small user of nbody.h, built in every way by run.sh. USE: the name of the function, so that two
   copies fit into one program. It returns 1 when the answers are right. C99 and C++ alike. What
   is used of the parts, their macros say: NBODY_WITH_STEP, _POINTS, _BLOCKS, _SETS, _PERIODIC,
   _VORTEX, _FUNCTION. */
#ifdef WITH_STB_DS
#include <stb_ds.h>
#endif
#include "nbody.h"

#ifdef __cplusplus
#define EMPTY {}    /* C++ compilers warn about {0}, C99 does not know {} */
#else
#define EMPTY {0}
#endif

int USE(void);

static int close_to(double value, double want)
{
    return value - want < 1e-5 && want - value < 1e-5;
}

#ifdef NBODY_WITH_FUNCTION
/* A law: a spring of no length. */
static double spring(double d, void *user)
{
    (void)user;
    return d;
}
#endif

/* The same two bodies, by laws of the parts. */
static int by_parts(nbody *sim, const nbody_real *pos)
{
    const nbody_real mass[2] = {1, 1};
    nbody_real acc[4] = {9, 9, 9, 9};
    nbody_desc desc = EMPTY;
    int right = 1;
#ifdef NBODY_WITH_VORTEX
    desc.law = NBODY_VORTEX;        /* each moves the other at 1 / (4 pi), round their middle */
    right = right && nbody_fields(sim, &desc, pos, 0, mass, 2, acc, NULL) == NBODY_OK;
    right = right && close_to((double)acc[1], -0.07957747) && close_to((double)acc[3], 0.07957747);
#endif
#ifdef NBODY_WITH_FUNCTION
    desc.law = NBODY_FUNCTION;
    desc.function.force = spring;
    right = right && nbody_fields(sim, &desc, pos, 0, mass, 2, acc, NULL) == NBODY_OK;
    right = right && close_to((double)acc[0], 2) && close_to((double)acc[2], -2);
#endif
#ifdef NBODY_WITH_PERIODIC
    desc.law = NBODY_INVERSE;       /* half a period apart: nothing pulls */
    desc.periodic = 1;
    desc.min[0] = desc.min[1] = -2;
    desc.size = 4;
    right = right && nbody_fields(sim, &desc, pos, 0, mass, 2, acc, NULL) == NBODY_OK;
    right = right && close_to((double)acc[0], 0) && close_to((double)acc[2], 0);
#endif
    (void)sim;
    (void)pos;
    (void)mass;
    (void)acc;
    (void)desc;
    return right;
}

int USE(void)
{
    /* Two bodies, 2 apart: each is attracted by 1 / 4 of the other's mass. */
    const nbody_real pos[4] = {-1, 0, 1, 0}, mass[2] = {1, 3};
    nbody_real acc[4], potential[2], some_pos[200], some_acc[200];
    nbody sim = EMPTY;
    nbody_desc desc = EMPTY;
    nbody_counts counts;
    nbody_far away;
    nbody_near nearby;
    int32_t i, cell, met = 0;
    int right = 1;
    if (nbody_fields(&sim, &desc, pos, 0, mass, 2, acc, potential) != NBODY_OK) return 0;
    right = right && close_to((double)acc[0], 0.75) && close_to((double)acc[2], -0.25);
    right = right && close_to((double)potential[0], -1.5) && close_to((double)potential[1], -0.5);
#ifdef NBODY_WITH_POINTS
    {
        const nbody_real at[2] = {0, 1};
        right = right && nbody_fields_at(&sim, at, 0, 1, acc, NULL, NULL) == NBODY_OK;
        right = right && close_to((double)acc[0], 0.70710678) &&
                close_to((double)acc[1], -1.41421356);
    }
#endif
#ifdef NBODY_WITH_BLOCKS
    {
        nbody_real moved[4] = {-1, 0, 1, 0}, vel[4] = {0, 0, 0, 0}, force[4];
        nbody_bodies bodies = {moved, vel, force, NULL, 2, 0};
        nbody_blocks blocks = EMPTY;
        nbody mover = EMPTY;
        right = right && nbody_blocks_step(&blocks, NULL, &mover, NULL, &bodies,
                                           (nbody_real)0.5) == NBODY_OK;
        right = right && bodies.fresh == 1 && vel[0] > 0 && vel[2] < 0;
        nbody_blocks_free(&blocks);
        nbody_free(&mover);
    }
#endif
#ifdef NBODY_WITH_SETS
    {
        const nbody_real other[2] = {2, 4};
        right = right && nbody_fields_again(&sim, other, acc, potential) == NBODY_OK &&
                close_to((double)acc[0], 1) && close_to((double)acc[2], -0.5);
    }
#endif

#ifdef NBODY_WITH_STEP
    {
        /* On a circle: a step later they are still 1 from the middle, and their energy is what it
           was. */
        nbody_real moving[4] = {-1, 0, 1, 0}, vel[4] = {0, (nbody_real)-0.5, 0, (nbody_real)0.5};
        nbody_bodies bodies = EMPTY;
        nbody_energies energies;
        bodies.pos = moving;
        bodies.vel = vel;
        bodies.acc = acc;
        bodies.n = 2;
        right = right &&
                nbody_step(&sim, &desc, &bodies, (nbody_real)0.01, NBODY_LEAPFROG) == NBODY_OK;
        right = right && close_to((double)(moving[2] * moving[2] + moving[3] * moving[3]), 1);
        right = right && nbody_energy(&bodies, NULL, &energies) == NBODY_OK &&
                close_to(energies.kinetic, 0.25);
    }
#endif

    /* A tree over a lattice: from the first leaf, every body is met once. */
    for (i = 0; i < 100; i++) {
        some_pos[2 * i] = (nbody_real)(i % 10);
        some_pos[2 * i + 1] = (nbody_real)(i / 10);
    }
    desc.method = NBODY_VIRTUAL_PARTICLES;
    desc.levels = 4;
    right = right && nbody_accelerations(&sim, &desc, some_pos, 0, NULL, 100, some_acc) == NBODY_OK;
    cell = sim.frame->level_first[3];
    nearby = nbody_near_of(&sim, cell);
    while (nbody_next_near(&nearby)) met += sim.cell[nearby.cell].count;
    for (; cell > 0; cell = sim.cell[cell].parent) {
        away = nbody_far_of(&sim, cell);
        while (nbody_next_far(&away)) met += sim.cell[away.cell].count;
    }
    right = right && met == 100;
#ifdef NBODY_WITH_STEP
    {
        nbody_error error;
        right = right && nbody_estimate(&sim, some_acc, 100, 0, &error) == NBODY_OK &&
                error.samples == 100 && error.share < 0.001;
    }
#endif
    right = right && nbody_count(&sim, &counts) == NBODY_OK && counts.levels == 4 &&
            counts.far_terms > 0;
    right = right && nbody_validate(&sim) == NBODY_OK && nbody_bytes(&sim) > 0 &&
            nbody_result_text(NBODY_OK)[0] == 'N';
    right = right && by_parts(&sim, pos);
    nbody_free(&sim);
    return right;
}
