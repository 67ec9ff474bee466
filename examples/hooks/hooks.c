/* hooks.c - concave bodies of several spheres: crosses and hooks that hold on to each other.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: particles that are no convex shapes, as rigid bodies of spheres that touch. The
   list is one of spheres, and leaves out pairs of one body (nlist_desc.exclude); every contact of
   two spheres keeps its history, and two bodies may touch in several places. A sphere moves as its
   place of the body does, so the force is that of spheres (common/dem.h). The forces of its spheres
   and their torques are those of the body, which turns by a quaternion (common/dem_shapes.h).

       .-.         .-.        rest      a cross on a slope: with history it stays, without it creeps
       | |         | |        collide   two crosses without friction and damping: energy, momentum
       | |  .---.  | |                  and angular momentum are what they were
       | '--|   |--' |        hang      a hook on another one that does not move: its convex hull
       '----|   |----'                  would lie deep in that of the other, and be thrown out
            |   |             heap      many of both fall into a box

   How to run it:

       make build/hooks && build/hooks                 (from the top of the repository), or
       cc -O3 examples/hooks/hooks.c -o hooks -lstb -lm
       ./hooks -n 500

   What to look at: >>step below, 50 lines; >>spheres in hooks.h. All is in double. */

#define PROGRAM "hooks"
#include "../common/base.h"
#include "../common/options.h"

#define NLIST_REAL double
#define LBVH_REAL double
#define UGRID_REAL double
#define UGRID_IMPLEMENTATION
#include "../../ugrid.h"
#define LBVH_IMPLEMENTATION
#include "../../lbvh.h"
#define NLIST_IMPLEMENTATION
#include "../../nlist.h"

#include "hooks.h"

/* -------------------------------------------------------------------------------------------------
   >>step
   ---------------------------------------------------------------------------------------------- */

/* The list serves until a sphere has moved by half of the skin. */
static void collect(scene *s)
{
    const dem_system *d = &s->spheres;
    int32_t moved;
    MUST(nlist, nlist_moved(&s->pairs, d->pos, DEM_STRIDE, &moved), "the skin");
    if (!moved) return;
    MUST(ugrid, ugrid_build(&s->grid, &s->cells, d->pos, DEM_STRIDE, d->n), "the grid");
    MUST(nlist, nlist_build_ugrid(&s->pairs, &s->desc, &s->grid, d->pos, DEM_STRIDE, d->n),
         "the list");
    s->builds++;
}

/* Forces between spheres and at planes; then those of the bodies. */
static void push(scene *s)
{
    nlist_sums how = {DEM_SUMS, NLIST_AUTO, 0};
    int32_t k;
    memset(s->sums, 0, (size_t)s->spheres.n * DEM_SUMS * sizeof *s->sums);
    MUST(nlist, nlist_sum(&s->pairs, &how, dem_spheres_fn, &s->spheres, s->sums), "the forces");
    for (k = 0; k < s->spheres.n; k++)
        dem_planes(&s->spheres, k, s->sums + DEM_SUMS * (size_t)k);
    gather_forces(s);
}

static void step(scene *s)
{
    int32_t i;
    place_spheres(s);
    collect(s);
    push(s);
    for (i = 0; i < s->bodies.base.n; i++)
        dem_body_move(&s->bodies, i, s->body_sums + DEM_SUMS * (size_t)i);
    s->step++;
}

static void advance(scene *s, double seconds)
{
    while ((double)s->step * (double)s->bodies.base.dt < seconds) step(s);
}

#include "hooks_run.h"

int main(int argc, char **argv)
{
    hooks_options o = {100, 1, 0.5, 0.5, "build/hooks.png"};
    const option_line table[] = {
        INT("-n", "N", &o.n, 1, 100000, "bodies of the heap (default 100)"),
        INT("--seed", "N", &o.seed, 0, INT_MAX, "of places and turns at the start (default 1)"),
        DOUBLE("--seconds", "T", &o.seconds, 1e-4, 100, "of the heap (default 0.5)"),
        DOUBLE("--mu", "M", &o.mu, 0, 10, "friction (default 0.5)"),
        TEXT("--out", "FILE", &o.out, "the picture (default build/hooks.png)"),
        OPTIONS_END};
    options_read(argc, argv, table, NULL, "Concave bodies of several spheres.", "-n 500");
    run_all(&o);
    return 0;
}
