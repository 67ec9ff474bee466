/* dam_break.c - spheres fall, burst out of the left half of a box, and run as a wave from wall to
   wall until they rest.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: how a simulation uses ugrid.h. In every time step

       1. build        a uniform grid puts all particles into cells,
       2. forces       each particle meets only the particles of the cells around it,
       3. integration  each particle moves.

   How to run it:

       make demo                                       (from the top of the repository), or
       cc -O3 examples/dam_break/dam_break.c -o dam_break -lstb -lm
       ./dam_break -n 30000 --half --frames 50 --sheet --out pictures

   What to look at: >>build, >>forces and >>integration below, 100 lines in all; and dam_contact
   in dam_break.h, the force between two spheres. dam_break.cu is the same program on a GPU. */

#define PROGRAM "dam_break"
#include "../common/base.h"

#ifndef UGRID_IMPLEMENTATION
#define UGRID_IMPLEMENTATION
#endif
#include "dam_break_serial.h"

/* -------------------------------------------------------------------------------------------------
   >>build
   ---------------------------------------------------------------------------------------------- */

/* Velocities and ids follow the positions, which the grid keeps in its records. */
static void dam_reorder(dam_serial *run)
{
    float *vel = run->spare_vel;
    int32_t *id = run->spare_id;
    MUST(ugrid, ugrid_gather(&run->grid, run->vel, 3 * sizeof(float), vel), "moving velocities");
    MUST(ugrid, ugrid_gather(&run->grid, run->id, sizeof(int32_t), id), "moving ids");
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
    MUST(ugrid, result, "building the grid");
    if (run->reorder) dam_reorder(run);
}

/* -------------------------------------------------------------------------------------------------
   >>forces
   ---------------------------------------------------------------------------------------------- */

/* One sphere while the walk meets the others. */
typedef struct dam_one { float p[3], v[3], force[3]; } dam_one;

/* sum += sign * f */
static void dam_add(float sum[3], float sign, const float f[3])
{
    int a;
    for (a = 0; a < 3; a++) sum[a] += sign * f[a];
}

/* The sphere at `place` is at q: does it touch this one? In a half walk it gets its force at
   once, as they meet only here. */
static void dam_meet(dam_serial *run, dam_one *one, const float q[3], int32_t place)
{
    float d[3], f[3];
    float const d2 = dam_between(one->p, q, d);
    if (d2 >= DAM_DIAMETER * DAM_DIAMETER) return;
    dam_contact(&run->model, d, d2, one->v, run->vel + 3 * (size_t)dam_index(run, place), f);
    dam_add(one->force, 1, f);
    if (run->half) dam_add(run->force + 3 * (size_t)place, -1, f);
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

/* SORT and COUNT return whole ranges of places: a plain loop over records that lie side by
   side. */
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
        ugrid_near near = run->half ? ugrid_near_half(&run->grid, place, DAM_DIAMETER)
                                    : ugrid_near_place(&run->grid, place, DAM_DIAMETER);
        dam_one one;
        memset(&one, 0, sizeof one);
        ugrid_point(&run->grid, place, one.p);
        memcpy(one.v, run->vel + 3 * (size_t)dam_index(run, place), sizeof one.v);
        if (ranges) dam_meet_ranges(run, &one, &near, place);
        else dam_meet_near(run, &one, &near);
        dam_add(run->force + 3 * (size_t)place, 1, one.force);
    }
}

/* -------------------------------------------------------------------------------------------------
   >>integration
   ---------------------------------------------------------------------------------------------- */

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

/* -------------------------------------------------------------------------------------------------
   >>engine: what dam_run in dam_break_run.h calls
   ---------------------------------------------------------------------------------------------- */

static void dam_serial_step(dam_serial *run)
{
    double const start = seconds_now();
    double built, pushed, moved;
    dam_build(run);
    built = seconds_now();
    dam_forces(run);
    pushed = seconds_now();
    dam_integrate(run);
    moved = seconds_now();
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

#ifndef __CUDACC__ /* dam_break.cu checks its steps against these */

static dam_times dam_serial_times(void *user)
{
    const dam_serial *run = (const dam_serial *)user;
    return dam_average(&run->spent, run->steps, run->steps);
}

int main(int argc, char **argv)
{
    dam_options const options = dam_parse(argc, argv);
    dam_state state = dam_begin(&options);
    dam_model const model = dam_model_for(&options, state.n);
    dam_serial run = dam_serial_new(&options, &model, &state);
    dam_engine const engine = {&run, 1, dam_serial_advance, dam_serial_fetch, dam_serial_times};
    dam_run(&options, &model, &engine, &state);
    dam_finish(&options, &model, &engine, &state);
    dam_serial_free(&run);
    dam_state_free(&state);
    return 0;
}

#endif
