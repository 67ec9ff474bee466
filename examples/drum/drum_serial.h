/* drum_serial.h - what drum.c keeps from step to step.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef DRUM_SERIAL_H
#define DRUM_SERIAL_H

#include "drum_run.h"

/* Everything one run needs. */
typedef struct drum_serial {
    const drum_options *options;
    drum_mesh *mesh;
    double omega_dt;            /* by how much the drum turns in a step */
    dem_system system;          /* its arrays are those of state */
    drum_state state, spare;    /* spare: for sorting */
    ugrid_desc grid_desc;
    nlist_desc pairs_desc, walls_desc;
    nlist_sums pair_sums, wall_sums;
    ugrid grid;
    lbvh tree;                  /* over the triangles */
    nlist pairs, walls;
    int64_t step;
    drum_times spent;           /* seconds, summed over all steps */
    int64_t counted, sorts;
} drum_serial;

static void drum_use(drum_serial *run)
{
    run->system.pos = run->state.pos;
    run->system.vel = run->state.vel;
    run->system.spin = run->state.spin;
}

/* Adds the time since `*last` to one of the parts. */
static void drum_count(drum_serial *run, int stage, double *last)
{
    double const now = seconds_now();
    run->spent.stage[stage] += now - *last;
    *last = now;
}

/* A run that begins, at `step`, with these spheres; its lists are still empty. */
static drum_serial drum_serial_new(const drum_options *o, drum_setup *setup,
                                   const drum_state *state, int64_t step)
{
    drum_serial run;
    lbvh_desc const tree = drum_tree_desc(&setup->system.mesh);
    memset(&run, 0, sizeof run);
    run.options = o;
    run.mesh = &setup->mesh;
    run.omega_dt = drum_angle(setup, 1);
    run.system = setup->system;
    run.grid_desc = setup->grid;
    run.pairs_desc = setup->pairs;
    run.walls_desc = setup->walls;
    run.pairs_desc.grow = run.walls_desc.grow = 1;
    run.pair_sums = setup->pair_sums;
    run.wall_sums = setup->wall_sums;
    run.step = step;
    run.state = drum_state_new(state->n);
    run.spare = drum_state_new(state->n);
    drum_copy_state(&run.state, state);
    drum_use(&run);
    MUST(lbvh, lbvh_build(&run.tree, &tree, setup->mesh.now, 0, setup->mesh.triangles),
         "the tree over the drum");
    return run;
}

static void drum_serial_free(drum_serial *run)
{
    ugrid_free(&run->grid);
    lbvh_free(&run->tree);
    nlist_free(&run->pairs);
    nlist_free(&run->walls);
    drum_state_free(&run->state);
    drum_state_free(&run->spare);
}

/* ---- for drum_run in drum_run.h ---- */

#ifndef __CUDACC__
static const drum_state *drum_serial_look(void *user) { return &((drum_serial *)user)->state; }
static const nlist *drum_serial_pairs(void *user) { return &((drum_serial *)user)->pairs; }
static const nlist *drum_serial_walls(void *user) { return &((drum_serial *)user)->walls; }
static int64_t drum_serial_entries(void *user) { return ((drum_serial *)user)->pairs.total; }

static drum_times drum_serial_times(void *user)
{
    const drum_serial *run = (const drum_serial *)user;
    return drum_average(&run->spent, run->counted, run->sorts, run->counted);
}

#endif

#endif /* DRUM_SERIAL_H */
