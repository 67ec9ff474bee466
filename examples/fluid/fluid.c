/* fluid.c - a weakly compressible fluid by smoothed particle hydrodynamics (SPH): a column of water
   collapses.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: nlist.h where particles have many neighbours and every pair keeps numbers of the
   caller. One list, whole rows one after the other (NLIST_COMPACT) with a skin, serves several
   steps, and each step reads it three times:

       densities    a sum of kernels over each row. On the way the gradient of every pair is
                    computed; it is kept beside the list, at the number of the entry:

                        row      0           1        2
                        partner  3  7  9  |  0  4  |  ...      (list)
                        kept     g  g  g  |  g  g  |  ...      (ours, kept[e.entry])

       walls        the pressure of the fluid before them
       forces       by the gradients that were kept: positions are not read again

       dam      Martin and Moyce (1952): the front of the column, beside their measurements
       still    a tank at rest: pressure against depth
       drop     no weight, no walls: a round drop is drawn out; its axes beside the exact
                solution, momentum and angular momentum as at the start

   How to run it:

       make build/fluid && build/fluid                 (from the top of the repository), or
       cc -O3 examples/fluid/fluid.c -o fluid -lstb -lm
       ./fluid --scene dam --column 1 --across 60

   What to look at: >>step below, 90 lines; fluid_model.h has the equations. All is in
   double. */

#define PROGRAM "fluid"
#include "../common/base.h"

#ifndef NLIST_REAL
#define NLIST_REAL double
#define UGRID_REAL double
#endif
#define UGRID_IMPLEMENTATION
#include "../../ugrid.h"
#define NLIST_IMPLEMENTATION
#include "../../nlist.h"

#include "fluid.h"
#include "fluid_draw.h"

/* -------------------------------------------------------------------------------------------------
   >>step
   ---------------------------------------------------------------------------------------------- */

static void build_grid(scene *s)
{
    MUST(ugrid, ugrid_build(&s->grid, &s->cells, s->now.pos, FLUID_STRIDE, s->n), "the grid");
}

/* Near particles come to lie near each other in memory: neighbours are read from the cache. */
static void sort_particles(scene *s)
{
    fluid_particles const old = s->now;
    build_grid(s);
    MUST(ugrid, ugrid_gather(&s->grid, old.pos, FLUID_STRIDE, s->spare.pos), "sorting");
    MUST(ugrid, ugrid_gather(&s->grid, old.vel, FLUID_STRIDE, s->spare.vel), "sorting");
    MUST(ugrid, ugrid_gather(&s->grid, old.density, 2 * sizeof(fluid_real), s->spare.density),
         "sorting");
    MUST(ugrid, ugrid_gather(&s->grid, old.id, sizeof *old.id, s->spare.id), "sorting");
    s->now = s->spare;
    s->spare = old;
}

/* The list serves until a particle has moved by half of the skin. */
static void collect(scene *s)
{
    int32_t moved;
    MUST(nlist, nlist_moved(&s->list, s->now.pos, FLUID_STRIDE, &moved), "the skin");
    if (!moved) return;
    sort_particles(s);
    build_grid(s);
    MUST(nlist,
         nlist_build_ugrid(&s->list, &s->desc, &s->grid, s->now.pos, FLUID_STRIDE, s->n),
         "the list");
    s->builds++;
    if (s->list.total <= s->room) return;
    free(s->kept);
    s->room = s->list.total + s->list.total / 8;
    s->kept = (fluid_kept *)zeros((size_t)s->room, sizeof *s->kept);
}

static void sum_densities(scene *s)
{
    const fluid_real *pos = s->now.pos;
    int32_t i;
    for (i = 0; i < s->n; i++) {
        const fluid_real *p = pos + 4 * (size_t)i;
        fluid_real sum = fluid_kernel(&s->model, 1); /* its own */
        nlist_each e = nlist_of(&s->list, i);
        if (fluid_is_wall(p)) continue;
        while (nlist_next(&e))
            sum += fluid_meet(&s->model, p, pos + 4 * (size_t)e.id, &s->kept[e.entry]);
        fluid_set_fluid(&s->model, sum, s->now.vel + 4 * (size_t)i,
                        s->now.density + 2 * (size_t)i);
    }
}

static void press_walls(scene *s)
{
    const fluid_particles *now = &s->now;
    int32_t i;
    for (i = 0; i < s->n; i++) {
        const fluid_real *p = now->pos + 4 * (size_t)i;
        fluid_real sums[2] = {0, 0};
        nlist_each e = nlist_of(&s->list, i);
        if (!fluid_is_wall(p)) continue;
        while (nlist_next(&e))
            fluid_lean(&s->model, p, now->pos + 4 * (size_t)e.id, now->vel + 4 * (size_t)e.id,
                       now->density + 2 * (size_t)e.id, sums);
        fluid_set_wall(&s->model, sums, now->vel + 4 * (size_t)i, now->density + 2 * (size_t)i);
    }
}

/* All forces come from the old velocities, and moves change only what forces do not read. */
static void push_and_move(scene *s)
{
    fluid_real *const next = s->spare.vel;
    int32_t i;
    for (i = 0; i < s->n; i++) {
        fluid_real *p = s->now.pos + 4 * (size_t)i, acceleration[3] = {0, 0, 0};
        const fluid_real *v = s->now.vel + 4 * (size_t)i;
        nlist_each e = nlist_of(&s->list, i);
        while (!fluid_is_wall(p) && nlist_next(&e))
            fluid_push(&s->kept[e.entry], v, s->now.vel + 4 * (size_t)e.id, acceleration);
        fluid_move(&s->model, acceleration, v, p, next + 4 * (size_t)i);
    }
    s->spare.vel = s->now.vel;
    s->now.vel = next;
}

/* The time since the last call goes to a part of the step. */
static void count_time(scene *s, int part, double *last)
{
    double const now = processor_seconds();
    s->spent[part] += now - *last;
    *last = now;
}

static void look_around(scene *s)
{
    double last = processor_seconds();
    collect(s);
    count_time(s, 0, &last);
    sum_densities(s);
    count_time(s, 1, &last);
    press_walls(s);
    count_time(s, 2, &last);
}

static void step(scene *s)
{
    double last;
    look_around(s);
    last = processor_seconds();
    push_and_move(s);
    count_time(s, 3, &last);
    s->step++;
}

/* What densities lack at the start is what they lack from then on. */
static void begin(scene *s)
{
    int32_t i;
    look_around(s);
    for (i = 0; i < s->n; i++) {
        fluid_real *density = s->now.density + 2 * (size_t)i;
        density[0] = 2 * density[0] - density[1];
    }
    look_around(s);
}

#include "fluid_run.h"

#ifndef __CUDACC__ /* fluid.cu has the steps above, to check its own against them */
static void advance_serial(void *user, int64_t steps)
{
    scene *s = (scene *)user;
    while (steps-- > 0) step(s);
    look_around(s);
}

int main(int argc, char **argv)
{
    fluid_options const o = parse(argc, argv);
    scene *s = scene_new(&o);
    begin(s);
    run(s, advance_serial, s);
    if (o.time) time_forces(s);
    scene_free(s);
    return 0;
}
#endif
