/* tablets.c - bi-convex tablets: convex bodies that turn, touch by their common normal, and keep
   the history of their contacts.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: what changes in a simulation of spheres when the particles have a shape. Lists and
   law stay: nlist.h lists the tablets whose surrounding spheres come near each other, and every
   entry remembers its spring. New are the contact, which is searched (common/shapes.h), and a place
   that is a position and a quaternion (common/dem_shapes.h).

       lean     source 004 (Kureck 2016), figure 6.3: a tablet leans at a wall. With contact history
                it stays there, without it slips. A ladder: as long as friction holds at the floor
                and the wall, the forces are those of statics.

                      wall |  /              floor:  normal = weight - friction of the wall
                           |./   \                   friction = normal of the wall
                           |/'.   .
                           |   './
                           |_____'._____

       drum     tablets tumble in a drum with eight sides: planes, or with --mesh triangles (common/
                dem_walls.h: many of them push as one plane does); --forms, here and in a box: times
                the forces with and without a list, as the source's tables do
       box      tablets fall into a box: what the source's lists are compared on
       cloud    tablets fly into each other without friction, walls and weight: energy and momentum
                are what they were at the start

   How to run it:

       make build/tablets && build/tablets             (from the top of the repository), or
       cc -O3 examples/tablets/tablets.c -o tablets -lstb -lm
       ./tablets --scene drum -n 500 --seconds 1

   --save and --load make a run of two, and --copies a long drum of a short one (tablets_save.h).

   What to look at: >>sort and >>step below, 90 lines. All is in double, as in pyramid.c. */

#ifndef PROGRAM
#define PROGRAM "tablets"
#endif
#include "../common/base.h"

#ifndef NLIST_REAL
#define NLIST_REAL double
#define LBVH_REAL double
#define UGRID_REAL double
#endif
#define UGRID_IMPLEMENTATION
#include "../../ugrid.h"
#define LBVH_IMPLEMENTATION
#include "../../lbvh.h"
#define NLIST_IMPLEMENTATION
#include "../../nlist.h"

#include "tablets.h"
#include "tablets_draw.h"

#if !defined(__CUDACC__) || !defined(TABLETS_AS_PART) /* coating.cu: those of tablets.cu */
/* -------------------------------------------------------------------------------------------------
   >>sort: tablets in the order of the cells; lists, which name them by index, follow
   ---------------------------------------------------------------------------------------------- */

static void *in_order(const scene *s, void *array, size_t bytes)
{
    void *sorted = zeros((size_t)s->bodies.base.n, bytes);
    MUST(ugrid, ugrid_gather(&s->grid, array, bytes, sorted), "sorting");
    free(array);
    return sorted;
}

static void sort_tablets(scene *s)
{
    dem_system *d = &s->bodies.base;
    int32_t r;
    MUST(ugrid, ugrid_build(&s->grid, &s->cells, d->pos, DEM_STRIDE, d->n), "the grid");
    d->pos = (dem_real *)in_order(s, d->pos, DEM_STRIDE);
    d->vel = (dem_real *)in_order(s, d->vel, DEM_STRIDE);
    d->spin = (dem_real *)in_order(s, d->spin, DEM_STRIDE);
    s->bodies.turn = (dem_real *)in_order(s, s->bodies.turn, DEM_STRIDE);
    s->bodies.momentum = (dem_real *)in_order(s, s->bodies.momentum, DEM_STRIDE);
    s->id = (int32_t *)in_order(s, s->id, sizeof *s->id);
    if (d->plane_history)
        d->plane_history = (dem_real *)in_order(s, d->plane_history,
                                                (size_t)d->planes * 4 * sizeof(dem_real));
    if (s->pairs.built)
        MUST(nlist, nlist_remap(&s->pairs, s->grid.inverse, d->n), "new indices in the list");
    for (r = 0; s->options->mesh && r < dem_wall_rows(&s->walls, s->touched.now); r++)
        dem_wall_remap(&s->walls, r, s->grid.inverse);
}

/* -------------------------------------------------------------------------------------------------
   >>step
   ---------------------------------------------------------------------------------------------- */

/* Pairs whose surrounding spheres are no further apart than the skin; the list serves until a
   tablet has moved by half of it. How it turns meanwhile does not matter. */
static void collect(scene *s)
{
    const dem_system *d = &s->bodies.base;
    int32_t moved = 1;
    if (s->desc.skin > 0)
        MUST(nlist, nlist_moved(&s->pairs, d->pos, DEM_STRIDE, &moved), "the skin");
    if (!moved) return;
    MUST(ugrid, ugrid_build(&s->grid, &s->cells, d->pos, DEM_STRIDE, d->n), "the grid");
    MUST(nlist, nlist_build_ugrid(&s->pairs, &s->desc, &s->grid, d->pos, DEM_STRIDE, d->n),
         "the list");
    s->builds++;
}

/* Sides and ends of the drum, the floor: as triangles or planes. */
static void push_walls(scene *s)
{
    int32_t i;
    if (s->options->mesh) {
        push_mesh(s);
        return;
    }
    for (i = 0; i < s->bodies.base.n; i++)
        dem_body_planes(&s->bodies, i, s->sums + DEM_SUMS * (size_t)i);
}

static void push(scene *s)
{
    nlist_sums how = {DEM_SUMS, NLIST_AUTO, 0};
    memset(s->sums, 0, (size_t)s->bodies.base.n * DEM_SUMS * sizeof *s->sums);
    MUST(nlist, nlist_sum(&s->pairs, &how, dem_bodies_fn, &s->bodies, s->sums), "the forces");
    push_walls(s);
    check_contacts(s);
}

static void step(scene *s)
{
    int32_t i;
    if (s->kind == SCENE_DRUM)
        place_drum(s, s->omega * (double)s->bodies.base.dt * (double)s->step);
    if (sorts(s)) sort_tablets(s);
    collect(s);
    push(s);
    for (i = 0; i < s->bodies.base.n; i++)
        dem_body_move(&s->bodies, i, s->sums + DEM_SUMS * (size_t)i);
    s->step++;
}
#endif

#ifndef TABLETS_AS_PART /* coating.c has the steps above, to move its bed */
#include "tablets_forms.h"
#include "tablets_run.h"
#endif

#if !defined(__CUDACC__) && !defined(TABLETS_AS_PART) /* tablets.cu checks its steps by these */
/* -------------------------------------------------------------------------------------------------
   >>lean
   ---------------------------------------------------------------------------------------------- */

/* How far the tablet is from where it was, in radii. */
static double moved(const scene *s)
{
    dem_real d[3] = {s->bodies.base.pos[0], s->bodies.base.pos[1], s->bodies.base.pos[2]};
    dem_add(d, -1, s->start);
    return sqrt((double)dem_dot(d, d)) / s->options->radius;
}

/* Source 004, figure 6.3: pictures at these times, of which the last one may be shorter. */
static double lean(scene *s, picture *p, int row)
{
    static double const at[] = {0, 0.2, 1, 5};
    const char *what = s->bodies.base.history_off ? "without history" : "with history";
    char caption[64];
    int k;
    for (k = 0; k < LEAN_SHOTS; k++) {
        double const until = fmin(at[k], s->seconds);
        while ((double)s->step * (double)s->bodies.base.dt < until) step(s);
        snprintf(caption, sizeof caption, "%s, %g s", what, until);
        printf("%-16s %4g s: moved by %.5f radii\n", what, until, moved(s));
        fflush(stdout);
        draw_panel(p, k, row, LEAN_SHOTS, s, caption);
    }
    return moved(s);
}

/* The forces on the tablet, in weights: the sums of all contacts, and what pushes at each plane. */
static void print_statics(const scene *s)
{
    double const weight = s->mass * gravity;
    const dem_real *floor_spring = s->bodies.base.plane_history, *wall_spring = floor_spring + 4;
    double const k_t = (double)s->bodies.base.walls.k_t / weight;
    printf("floor: normal %.5f friction %.5f\n", (double)floor_spring[3] / weight,
           k_t * (double)floor_spring[0]);
    printf("wall: normal %.5f friction %.5f\n", (double)wall_spring[3] / weight,
           k_t * (double)wall_spring[2]);
    printf("rest: force %.2e torque %.2e\n",
           sqrt(pow((double)s->sums[0], 2) + pow((double)s->sums[2] - weight, 2)) / weight,
           fabs((double)s->sums[4]) / (weight * s->options->radius));
}

static void run_lean(const tablet_options *o, const char *out)
{
    picture p = panels_new(LEAN_SHOTS, 2);
    scene *without = scene_new(o, 0), *with = scene_new(o, 1);
    double const slipped = lean(without, &p, 0), stayed = lean(with, &p, 1);
    picture_save_halved(&p, out);
    printf("picture: %s\n", out);
    print_statics(with);
    printf("figures: with %.6f without %.6f\n", stayed, slipped);
    scene_free(with);
    scene_free(without);
}

static void advance_serial(void *user, int64_t steps)
{
    while (steps-- > 0) step((scene *)user);
}

int main(int argc, char **argv)
{
    tablet_options const o = parse(argc, argv);
    char usual[64];
    scene *s;
    snprintf(usual, sizeof usual, "build/tablets_%s.png", o.scene);
    if (option_find(scene_names, "--scene", o.scene) == SCENE_LEAN) {
        run_lean(&o, o.out ? o.out : usual);
        return 0;
    }
    s = scene_new(&o, 1);
    run_many(s, advance_serial, s, o.out ? o.out : usual);
    if (o.save) save_scene(s);
    if (o.forms) print_forms(s);
    scene_free(s);
    return 0;
}
#endif
