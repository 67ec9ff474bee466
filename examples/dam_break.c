/* dam_break.c - spheres fall, burst out of the left half of a box, and run as a wave from wall to wall until they rest.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: how a simulation uses ugrid.h. In every time step

       1. build        a uniform grid puts all particles into cells,
       2. forces       each particle meets only the particles of the cells around it,
       3. integration  each particle moves.

   How to run it:

       make demo                                       (from the top of the repository), or
       cc -O3 examples/dam_break.c -o dam_break -lstb -lm
       ./dam_break -n 30000 --half --frames 50 --sheet --out pictures
       ./dam_break --help

   What to look at: >>build, >>forces and >>integration below, 100 lines in all; and dam_contact in dam_break.h, the force
   between two spheres. dam_break.cu is the same program on a GPU. */

#ifndef UGRID_IMPLEMENTATION
#define UGRID_IMPLEMENTATION
#endif
#include "dam_break.h"

/* Everything one run needs. A particle has an index, where pos, vel and id have it, and in each grid a place. With
   reorder they are the same from the build on: the particles are then moved to where they belong in the grid's order, so
   that near particles lie near each other in memory. */
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

static dam_serial dam_serial_new(const dam_options *o, const dam_model *model, const dam_state *start)
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
    run.pos = (float *)dam_alloc(3 * n, sizeof(float));
    run.vel = (float *)dam_alloc(3 * n, sizeof(float));
    run.spare_vel = (float *)dam_alloc(3 * n, sizeof(float));
    run.force = (float *)dam_alloc(3 * n, sizeof(float));
    run.id = (int32_t *)dam_alloc(n, sizeof(int32_t));
    run.spare_id = (int32_t *)dam_alloc(n, sizeof(int32_t));
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
static int32_t dam_index(const dam_serial *run, int32_t place) { return run->reorder ? place : ugrid_id(&run->grid, place); }

/* ------------------------------------------------------------------------------------------------
   >>build
   ------------------------------------------------------------------------------------------------ */

/* Velocities and ids follow the positions, which the grid keeps in its records. */
static void dam_reorder(dam_serial *run)
{
    float *vel = run->spare_vel;
    int32_t *id = run->spare_id;
    dam_must(ugrid_gather(&run->grid, run->vel, 3 * sizeof(float), vel), "moving velocities");
    dam_must(ugrid_gather(&run->grid, run->id, sizeof(int32_t), id), "moving ids");
    run->spare_vel = run->vel;
    run->spare_id = run->id;
    run->vel = vel;
    run->id = id;
}

/* A cell of UGRID_FIXED that is full is no end: the grid says how many slots it needs. */
static void dam_build(dam_serial *run)
{
    ugrid_result result = ugrid_build(&run->grid, &run->desc, run->pos, 0, run->n);
    if (result == UGRID_CELL_FULL) {
        run->desc.slots = run->grid.needed_slots + run->grid.needed_slots / 4 + 1;
        result = ugrid_build(&run->grid, &run->desc, run->pos, 0, run->n);
    }
    dam_must(result, "building the grid");
    if (run->reorder) dam_reorder(run);
}

/* ------------------------------------------------------------------------------------------------
   >>forces
   ------------------------------------------------------------------------------------------------ */

/* One sphere while the walk meets the others. */
typedef struct dam_one { float p[3], v[3], force[3]; } dam_one;

static void dam_add(float sum[3], const float f[3])
{
    sum[0] += f[0];
    sum[1] += f[1];
    sum[2] += f[2];
}

static void dam_subtract(float sum[3], const float f[3])
{
    sum[0] -= f[0];
    sum[1] -= f[1];
    sum[2] -= f[2];
}

/* The sphere at `place` is at q: does it touch this one? In a half walk it gets its force at once, as they meet only here. */
static void dam_meet(dam_serial *run, dam_one *one, const float q[3], int32_t place)
{
    float d[3], f[3];
    float const d2 = dam_between(one->p, q, d);
    if (d2 >= DAM_DIAMETER * DAM_DIAMETER) return;
    dam_contact(&run->model, d, d2, one->v, run->vel + 3 * (size_t)dam_index(run, place), f);
    dam_add(one->force, f);
    if (run->half) dam_subtract(run->force + 3 * (size_t)place, f);
}

/* Any grid, any walk: one near particle after another. */
static void dam_meet_near(dam_serial *run, dam_one *one, ugrid_near *near)
{
    while (ugrid_next(near)) {
        float q[3];
        ugrid_point(&run->grid, near->place, q);
        dam_meet(run, one, q, near->place);
    }
}

/* SORT and COUNT hand out whole ranges of places: a plain loop over records that lie side by side. */
static void dam_meet_ranges(dam_serial *run, dam_one *one, ugrid_near *near, int32_t self)
{
    int32_t k;
    while (ugrid_next_range(near))
        for (k = near->begin; k < near->end; k++)
            if (k != self) dam_meet(run, one, run->grid.record[k].x, k);
}

static void dam_forces(dam_serial *run)
{
    int const ranges = ugrid_has_ranges(&run->grid);
    int32_t place;
    memset(run->force, 0, (size_t)run->n * 3 * sizeof(float));
    for (place = 0; place < run->n; place++) {
        ugrid_near near = run->half ? ugrid_near_half(&run->grid, place, DAM_DIAMETER) : ugrid_near_place(&run->grid, place, DAM_DIAMETER);
        dam_one one;
        memset(&one, 0, sizeof one);
        ugrid_point(&run->grid, place, one.p);
        memcpy(one.v, run->vel + 3 * (size_t)dam_index(run, place), sizeof one.v);
        if (ranges) dam_meet_ranges(run, &one, &near, place);
        else dam_meet_near(run, &one, &near);
        dam_add(run->force + 3 * (size_t)place, one.force);
    }
}

/* ------------------------------------------------------------------------------------------------
   >>integration
   ------------------------------------------------------------------------------------------------ */

static void dam_integrate(dam_serial *run)
{
    int32_t place;
    for (place = 0; place < run->n; place++) {
        size_t const index = (size_t)dam_index(run, place);
        float p[3];
        ugrid_point(&run->grid, place, p);
        dam_move(&run->model, run->force + 3 * (size_t)place, p, run->vel + 3 * index);
        memcpy(run->pos + 3 * index, p, sizeof p);
    }
}

/* ------------------------------------------------------------------------------------------------
   >>engine: what dam_run in dam_break.h calls
   ------------------------------------------------------------------------------------------------ */

static void dam_serial_step(dam_serial *run)
{
    double const start = dam_now();
    double built, pushed, moved;
    dam_build(run);
    built = dam_now();
    dam_forces(run);
    pushed = dam_now();
    dam_integrate(run);
    moved = dam_now();
    run->spent.build += built - start;
    run->spent.forces += pushed - built;
    run->spent.integration += moved - pushed;
    run->spent.step += moved - start;
    run->steps++;
}

static void dam_serial_advance(void *user, int32_t steps)
{
    while (steps-- > 0) dam_serial_step((dam_serial *)user);
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

/* dam_break.cu includes this file to check the GPU's steps against these. */
#ifndef __CUDACC__

static dam_times dam_serial_times(void *user)
{
    const dam_serial *run = (const dam_serial *)user;
    double const steps = run->steps ? (double)run->steps : 1;
    dam_times times = run->spent;
    times.build /= steps;
    times.forces /= steps;
    times.integration /= steps;
    times.step /= steps;
    return times;
}

static dam_engine dam_serial_engine(dam_serial *run)
{
    dam_engine engine;
    engine.user = run;
    engine.stride = 1;
    engine.advance = dam_serial_advance;
    engine.fetch = dam_serial_fetch;
    engine.times = dam_serial_times;
    return engine;
}

int main(int argc, char **argv)
{
    dam_options const options = dam_parse(argc, argv);
    dam_state state = dam_begin(&options);
    dam_model const model = dam_model_for(&options, state.n);
    dam_serial run = dam_serial_new(&options, &model, &state);
    dam_engine const engine = dam_serial_engine(&run);
    dam_run(&options, &model, &engine, &state);
    dam_finish(&options, &model, &engine, &state);
    dam_serial_free(&run);
    dam_state_free(&state);
    return 0;
}

#endif
