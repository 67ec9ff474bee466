/* A user of nbody.h, which is all 2D, built by run.sh with the optimizer's warnings: a body is two
   numbers, in an array of exactly two, and no function may look as if it read a third. Returns 1
   when the answers are right. C99 and C++ alike. */
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

/* One body: no loop hides that its array has two numbers. At a distance of 2 it pulls with 1 / 4 of
   its mass. */
int USE(void)
{
    const nbody_real one[2] = {(nbody_real)0.5, (nbody_real)0.5}, mass[1] = {4};
    nbody_real acc[2] = {1, 1}, potential[1] = {1};
    nbody sim = EMPTY;
    nbody_desc desc = EMPTY;
    int right = 1;
    if (nbody_fields(&sim, &desc, one, 0, mass, 1, acc, potential) != NBODY_OK) return 0;
    right = right && acc[0] * acc[0] + acc[1] * acc[1] <= 0 && nbody_validate(&sim) == NBODY_OK;
#ifdef NBODY_WITH_POINTS
    {
        const nbody_real at[2] = {(nbody_real)0.5, (nbody_real)2.5};
        right = right && nbody_fields_at(&sim, at, 0, 1, acc, NULL, NULL) == NBODY_OK;
        right = right && acc[1] < (nbody_real)-0.99 && acc[1] > (nbody_real)-1.01;
    }
#endif
#ifdef NBODY_WITH_STEP
    {
        nbody_real pos[2] = {0, 0}, vel[2] = {1, 0};
        nbody_bodies bodies = EMPTY;
        acc[0] = acc[1] = 0;
        bodies.pos = pos;
        bodies.vel = vel;
        bodies.acc = acc;
        bodies.n = 1;
        right = right &&
                nbody_step(&sim, &desc, &bodies, (nbody_real)0.5, NBODY_LEAPFROG) == NBODY_OK;
        right = right && pos[0] > (nbody_real)0.49 && pos[0] < (nbody_real)0.51;
    }
#endif
    nbody_free(&sim);
    return right;
}
