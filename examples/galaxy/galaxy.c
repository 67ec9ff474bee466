/* galaxy.c - two discs of bodies pass each other, and draw bridges and tails out of one another.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: how a simulation uses nbody.h, and how one knows that it can be trusted. A time
   step is one call. The rest is what belongs to a run: a start in which the forces that really act
   hold the discs together, energies, momentum, and now and then the error of the forces, measured
   against the direct sum for a few bodies.

   How to run it (about 20 seconds):

       make build/galaxy && build/galaxy --demo        (from the top of the repository), or
       cc -O3 examples/galaxy/galaxy.c -o galaxy -lstb -lm
       (with -DGALAXY_WINDOW $(pkg-config --cflags --libs sdl2): --window)
       ./galaxy --window
       ./galaxy --help

   What to look at: >>step and >>measure below, and in galaxy.h >>disc. galaxy.cu is the same
   program on a GPU. */

#define PROGRAM "galaxy"
#include "../common/base.h"

#ifndef NBODY_IMPLEMENTATION
#define NBODY_IMPLEMENTATION
#endif
#include "galaxy_run.h"

/* Everything one run needs. */
typedef struct galaxy_serial {
    nbody sim;
    nbody_desc desc;
    nbody_integrator integrator;
    nbody_real dt;
    int32_t samples, measured;
    galaxy_state state;
    nbody_real *acc, *potential;
    nbody_bodies bodies;        /* the same arrays, as nbody_step wants them */
} galaxy_serial;

/* -------------------------------------------------------------------------------------------------
   >>step
   ---------------------------------------------------------------------------------------------- */

static void galaxy_step(galaxy_serial *run)
{
    galaxy_must(nbody_step(&run->sim, &run->desc, &run->bodies, run->dt, run->integrator),
                "a step");
}

/* Takes over the state. */
static galaxy_serial galaxy_serial_new(const galaxy_options *o, const galaxy_state *state)
{
    galaxy_serial run;
    memset(&run, 0, sizeof run);
    run.desc = galaxy_desc(o);
    run.integrator = o->integrator;
    run.dt = (nbody_real)o->dt;
    run.samples = o->samples;
    run.state = *state;
    run.acc = (nbody_real *)zeros(2 * (size_t)state->n, sizeof(nbody_real));
    run.potential = (nbody_real *)zeros((size_t)state->n, sizeof(nbody_real));
    run.bodies.pos = run.state.pos;
    run.bodies.vel = run.state.vel;
    run.bodies.acc = run.acc;
    run.bodies.mass = run.state.mass;
    run.bodies.n = state->n;
    return run;
}

static void galaxy_serial_free(galaxy_serial *run)
{
    nbody_free(&run->sim);
    galaxy_state_free(&run->state);
    free(run->acc);
    free(run->potential);
}

static void galaxy_serial_advance(void *user, int32_t steps)
{
    while (steps-- > 0) galaxy_step((galaxy_serial *)user);
}

/* galaxy.cu includes this file to check the GPU's steps against these. */
#ifndef __CUDACC__

/* -------------------------------------------------------------------------------------------------
   >>measure
   ---------------------------------------------------------------------------------------------- */

/* Forces and potentials where the bodies are now: energies from these, and the error of the
   forces of a few bodies, each time of others. */
static void galaxy_serial_measure(void *user, galaxy_figures *figures)
{
    galaxy_serial *run = (galaxy_serial *)user;
    const galaxy_state *s = &run->state;
    galaxy_must(
        nbody_fields(&run->sim, &run->desc, s->pos, 0, s->mass, s->n, run->acc, run->potential),
        "the potentials");
    run->bodies.fresh = 1;
    galaxy_must(nbody_energy(&run->bodies, run->potential, &figures->sums), "the energies");
    galaxy_must(nbody_estimate(&run->sim, run->acc, run->samples, (uint32_t)++run->measured,
                               &figures->error),
                "the error");
}

/* -------------------------------------------------------------------------------------------------
   >>engine: what galaxy_run in galaxy_run.h calls
   ---------------------------------------------------------------------------------------------- */

static void galaxy_serial_density(void *user, const galaxy_view *view, float *density)
{
    const galaxy_state *s = &((galaxy_serial *)user)->state;
    galaxy_spot spot;
    int32_t i;
    int k;
    for (i = 0; i < s->n; i++) {
        float *to = density + (i < s->second ? 0 : galaxy_pixels(view));
        if (!galaxy_spot_of(view, s->pos[2 * (size_t)i], s->pos[2 * (size_t)i + 1], &spot))
            continue;
        for (k = 0; k < 4; k++)
            to[galaxy_spot_pixel(view, &spot, k)] += spot.part[k] * (float)s->mass[i];
    }
}

static const galaxy_state *galaxy_serial_look(void *user)
{
    return &((galaxy_serial *)user)->state;
}

int main(int argc, char **argv)
{
    galaxy_options options = galaxy_parse(argc, argv);
    galaxy_state const start = galaxy_start(&options);
    galaxy_serial run = galaxy_serial_new(&options, &start);
    galaxy_engine const engine = {&run,
                                  1,
                                  galaxy_serial_advance,
                                  galaxy_serial_measure,
                                  galaxy_serial_density,
                                  galaxy_serial_look};
    galaxy_show show = galaxy_run(&options, &engine, &run.state);
    galaxy_finish(&show);
    galaxy_serial_free(&run);
    return 0;
}

#endif
