/* dam_break_serial.h - what dam_break.c keeps from step to step.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef DAM_BREAK_SERIAL_H
#define DAM_BREAK_SERIAL_H

#include "dam_break_run.h"

/* Everything one run needs. A particle has an index, where pos, vel and id have it, and in each
   grid a place. With reorder they are the same from the build on: the particles are then moved
   to where they belong in the grid's order, so that near particles lie near each other in
   memory. */
typedef struct dam_serial {
    dam_model model;
    ugrid_desc desc;
    ugrid grid;
    int32_t n, half, reorder;
    float *pos, *vel;           /* [3 * n] by index */
    int32_t *id;                /* [n] by index: the number of the particle in the start state */
    float *spare_vel;           /* for moving */
    int32_t *spare_id;
    float *force;               /* [3 * n] by place */
    dam_times spent;            /* seconds, summed over all steps */
    int64_t steps;
} dam_serial;

static dam_serial dam_serial_new(const dam_options *o, const dam_model *model,
                                 const dam_state *start)
{
    size_t const n = (size_t)start->n;
    dam_serial run;
    int32_t i;
    memset(&run, 0, sizeof run);
    run.model = *model;
    run.desc = dam_grid_desc(o, start->n);
    run.n = start->n;
    run.half = o->half;
    run.reorder = o->reorder;
    run.pos = (float *)zeros(3 * n, sizeof(float));
    run.vel = (float *)zeros(3 * n, sizeof(float));
    run.spare_vel = (float *)zeros(3 * n, sizeof(float));
    run.force = (float *)zeros(3 * n, sizeof(float));
    run.id = (int32_t *)zeros(n, sizeof(int32_t));
    run.spare_id = (int32_t *)zeros(n, sizeof(int32_t));
    memcpy(run.pos, start->pos, 3 * n * sizeof(float));
    memcpy(run.vel, start->vel, 3 * n * sizeof(float));
    for (i = 0; i < run.n; i++) run.id[i] = i;
    return run;
}

static void dam_serial_free(dam_serial *run)
{
    ugrid_free(&run->grid);
    free(run->pos);
    free(run->vel);
    free(run->spare_vel);
    free(run->force);
    free(run->id);
    free(run->spare_id);
}

/* The index of the particle at a place. */
static int32_t dam_index(const dam_serial *run, int32_t place)
{
    return run->reorder ? place : ugrid_id(&run->grid, place);
}

/* The particles in the order of the start state. */
static void dam_serial_fetch(void *user, dam_state *state)
{
    const dam_serial *run = (const dam_serial *)user;
    int32_t i;
    for (i = 0; i < run->n; i++) {
        memcpy(state->pos + 3 * (size_t)run->id[i], run->pos + 3 * (size_t)i, 3 * sizeof(float));
        memcpy(state->vel + 3 * (size_t)run->id[i], run->vel + 3 * (size_t)i, 3 * sizeof(float));
    }
}

#endif /* DAM_BREAK_SERIAL_H */
