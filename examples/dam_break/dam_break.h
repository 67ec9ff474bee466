/* dam_break.h - what dam_break.c (serial) and dam_break.cu (GPU) share: the physics, options, and
   the spheres at the start.
   SPDX-License-Identifier: MIT OR Unlicense

   >>model     the force between two touching spheres and the move of one: one text for CPU and GPU
   >>options   the command line
   >>state     particles, and where they start
   >>text      particles from and to a text file

   (dam_break_run.h: the loop over all steps and the figures; dam_break_draw.h: pictures.) */

#ifndef DAM_BREAK_H
#define DAM_BREAK_H

#include "../common/base.h"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/table.h"

#include "../../ugrid.h"

/* -------------------------------------------------------------------------------------------------
   >>model: soft spheres of diameter 1 and mass 1 in a closed box of cells of width 1

   Between two touching spheres a and b act the three forces of S. Green, "Particle Simulation using
   CUDA" (NVIDIA, 2010), which source 000 uses too (section 3). With n the unit vector from a to b,
   r their distance (< 1), u = vb - va:

                                                                          ,-----.
       force on a =  - spring * (1 - r) * n       pushes them apart      /   a ,--+--.
                     + dashpot * u                takes energy out       \     | /  b \
                     + shear * (u - (u.n) n)      friction, viscosity     `----+'     /
                                                                                `----'
   and on b the opposite.

   The numbers. Gravity, spring and dashpot are Green's, converted to a diameter of 1 (his is 1/32):
   a sphere falls from the top to the floor of 64 cells in 115 units of time = 231 steps of 0.5, and
   moves 0.55 in the last of them. Shear is a fifth of his: with his 0.1 the wave dies on its first
   way through the box, with 0.02 it breaks at the wall, comes back twice, and the spheres lie still
   long before step 2000.

   Stable? For one degree of freedom, symplectic Euler needs  (w dt)^2 + 2 h dt < 4  with stiffness
   w^2 and damping h. A sphere with c contacts has, over all directions, w^2 = c spring / 3 and h =
   c (dashpot + 2/3 shear); in a regular packing the stiffest pattern of motion, neighbours against
   each other, has twice that:
       c = 12:   1.0 + 0.8 = 1.8 < 4.
   More particles than fit into the box side by side overlap from the start, and c grows with their
   number: with 76 per cell (10 million) to several hundred. So all three forces are divided by the
   crowd, the particles per cell of the left half at the start, when that is above 1. Then c /
   crowd, and with it every term above and the height at which the heap comes to rest, is the same
   from 130 thousand particles to 10 million: each of them is a smaller sample of the same stuff.
   Tried at 76 per cell in a smaller box with as much more gravity (--grid 12 -n 65900 --gravity
   0.0512): up to 490 contacts per sphere, and after 600 steps 0.1 % of the energy of the fall is
   still in motion.
   ---------------------------------------------------------------------------------------------- */

typedef struct dam_model {
    int32_t size[3];    /* of the box, in cells */
    float dt;           /* time step */
    float gravity;      /* along -z */
    float spring, dashpot, shear;
    float bounce;       /* part of the speed that a wall gives back */
} dam_model;

#define DAM_DIAMETER 1.0f
#define DAM_RADIUS   0.5f

/* d = b - a; returns the square of its length. */
UGRID_FN float dam_between(const float a[3], const float b[3], float d[3])
{
    d[0] = b[0] - a[0];
    d[1] = b[1] - a[1];
    d[2] = b[2] - a[2];
    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
}

/* The force on sphere a by sphere b, which touch: d = b - a, d2 its square (< 1), va and vb the
   velocities. Two spheres in the very same place have no direction to part in: only the dashpot
   and all of the shear act. */
UGRID_FN void dam_contact(const dam_model *model, const float d[3], float d2, const float va[3],
                          const float vb[3], float force[3])
{
    float const distance = sqrtf(d2), inverse = distance > 0 ? 1 / distance : 0;
    float const n[3] = {d[0] * inverse, d[1] * inverse, d[2] * inverse};
    float const u[3] = {vb[0] - va[0], vb[1] - va[1], vb[2] - va[2]};
    float const along = u[0] * n[0] + u[1] * n[1] + u[2] * n[2];
    float const push = model->spring * (DAM_DIAMETER - distance);
    int a;
    for (a = 0; a < 3; a++)
        force[a] = model->dashpot * u[a] - push * n[a] + model->shear * (u[a] - along * n[a]);
}

/* One time step of one sphere under a force: first the velocity, then, with the new velocity,
   the position (symplectic Euler: it does not gain energy as plain Euler does). A wall stops the
   sphere's surface and turns its velocity round. */
UGRID_FN void dam_move(const dam_model *model, const float force[3], float p[3], float v[3])
{
    int a;
    for (a = 0; a < 3; a++) {
        float const low = DAM_RADIUS, high = (float)model->size[a] - DAM_RADIUS;
        v[a] += (force[a] - (a == 2 ? model->gravity : 0)) * model->dt;
        p[a] += v[a] * model->dt;
        if (p[a] < low) {
            p[a] = low;
            if (v[a] < 0) v[a] *= -model->bounce;
        } else if (p[a] > high) {
            p[a] = high;
            if (v[a] > 0) v[a] *= -model->bounce;
        }
    }
}

/* -------------------------------------------------------------------------------------------------
   >>options
   ---------------------------------------------------------------------------------------------- */

typedef struct dam_options {
    int32_t n, steps, grid, depth, seed, frames, slots;
    int32_t half, sheet, vtk, demo, check, insertion;   /* flags */
    const char *method_name, *walk_name, *read, *write, *out;
    float dt, gravity, spring, dashpot, shear, bounce;
    /* found from the names */
    ugrid_method method;
    ugrid_placement placement;
    ugrid_walk walk;
    int32_t reorder;    /* particles are kept in the grid's order */
} dam_options;

enum { DAM_TIGHT = 100 };   /* UGRID_LIST with UGRID_TIGHT */
static const option_name dam_methods[] = {
    {"fixed", UGRID_FIXED}, {"count", UGRID_COUNT}, {"sort", UGRID_SORT}, {"list", UGRID_LIST},
    {"tight", DAM_TIGHT}, {"packed", UGRID_LIST_PACKED}, {NULL, 0}
};
static const option_name dam_walks[] = {
    {"auto", UGRID_WALK_AUTO}, {"cells", UGRID_CELLS}, {"strips", UGRID_STRIPS},
    {"modular", UGRID_MODULAR}, {"hybrid", UGRID_HYBRID}, {NULL, 0}
};

static void dam_read_options(int argc, char **argv, dam_options *o)
{
    double const tiny = 1e-6, huge = 1e6;
    const option_line table[] = {
        INT("-n", "N", &o->n, 1, 500e6, "particles (default 30000; not with --read)"),
        INT("--steps", "N", &o->steps, 0, INT_MAX / 2, "time steps (default 2000)"),
        TEXT("--method", "NAME", &o->method_name,
             "fixed, count, sort (default), list, tight (entered in up to 8 cells), packed"),
        TEXT("--walk", "NAME", &o->walk_name,
             "order of the cells: auto (default), cells, strips, modular, hybrid"),
        FLAG("--half", &o->half, "serial: visit each pair once and give both their force"),
        INT("--slots", "N", &o->slots, 1, 1e6,
            "method fixed: particles in a cell (default: 4 times the crowd, at least 32)"),
        INT("--grid", "N", &o->grid, 2, 1024, "cells along each edge of the box (default 64)"),
        INT("--depth", "N", &o->depth, 1, 1024, "cells from front to back (default: as --grid)"),
        INT("--seed", "N", &o->seed, 0, INT_MAX, "of the random offsets at the start (default 1)"),
        TEXT("--read", "FILE", &o->read,
             "start from a text file: a line \"x y z\" each, # begins a comment"),
        TEXT("--write", "FILE", &o->write, "write the positions at the end to such a file"),
        INT("--frames", "N", &o->frames, 1, 100000,
            "draw N pictures of the run, frame_0000.png ..."),
        FLAG("--sheet", &o->sheet, "draw 12 moments of the run into one picture, sheet.png"),
        FLAG("--vtk", &o->vtk,
             "a file for ParaView with each frame, or of the end: frame_0000.vtk ..."),
        TEXT("--out", "DIR", &o->out, "where pictures go (default build/demo)"),
        FLAG("--demo", &o->demo, "what `make demo` runs: about 20 seconds, with pictures"),
        FLAG("--insertion", &o->insertion,
             "GPU: time the build of the grid from the slowest step of the run"),
        FLAG("--check", &o->check, "print nothing but \"name value\" lines"),
        FLOAT("--dt", "T", &o->dt, tiny, huge, "time step (default 0.5)"),
        FLOAT("--gravity", "G", &o->gravity, -huge, huge, "(default 0.0096)"),
        FLOAT("--spring", "K", &o->spring, 0, huge, "stiffness of a contact (default 0.5)"),
        FLOAT("--dashpot", "C", &o->dashpot, 0, huge, "damping of a contact (default 0.02)"),
        FLOAT("--shear", "C", &o->shear, 0, huge, "friction of a contact (default 0.02)"),
        FLOAT("--bounce", "E", &o->bounce, 0, 1,
              "part of the speed that a wall gives back (default 0.5)"),
        OPTIONS_END};
    options_read(argc, argv, table, NULL, "Spheres fall and spread as a wave in a closed box.",
                 "-n 100000 --method packed --walk modular --frames 100 --sheet --out pictures");
}

/* A slice of the box, 12 cells deep, as full as the whole box is with 128 thousand spheres: the
   same wave in a tenth of the time. Other options change it. */
static void dam_demo(dam_options *o)
{
    o->n = 24000;
    o->depth = 12;
    o->half = 1;
    o->sheet = 1;
    o->frames = 12;
}

static dam_options dam_parse(int argc, char **argv)
{
    dam_options o;
    int method;
    memset(&o, 0, sizeof o);
    o.n = 30000;
    o.steps = 2000;
    o.grid = 64;
    o.seed = 1;
    o.method_name = "sort";
    o.walk_name = "auto";
    o.out = "build/demo";
    o.dt = 0.5f;
    o.gravity = 0.0096f;
    o.spring = o.bounce = 0.5f;
    o.dashpot = o.shear = 0.02f;
    dam_read_options(argc, argv, &o);
    if (o.demo) {
        dam_demo(&o);
        dam_read_options(argc, argv, &o);
    }
    if (o.depth == 0) o.depth = o.grid;
    method = option_find(dam_methods, "--method", o.method_name);
    o.method = method == DAM_TIGHT ? UGRID_LIST : (ugrid_method)method;
    o.placement = method == DAM_TIGHT ? UGRID_TIGHT : UGRID_LOOSE;
    o.reorder = method == UGRID_SORT;
    o.walk = (ugrid_walk)option_find(dam_walks, "--walk", o.walk_name);
    return o;
}

/* -------------------------------------------------------------------------------------------------
   >>state
   ---------------------------------------------------------------------------------------------- */

/* pos[3 * i], vel[3 * i]: particle i. */
typedef struct dam_state {
    int32_t n;
    float *pos, *vel;
} dam_state;

static dam_state dam_state_new(int32_t n)
{
    dam_state state;
    state.n = n;
    state.pos = (float *)zeros((size_t)n * 3, sizeof(float));
    state.vel = (float *)zeros((size_t)n * 3, sizeof(float));
    return state;
}

static void dam_state_free(dam_state *state)
{
    free(state->pos);
    free(state->vel);
    memset(state, 0, sizeof *state);
}

/* Rows of a lattice along an edge, so that the points are about as far apart in all directions. */
static int32_t dam_rows(double length, double spacing)
{
    double const rows = floor(length / spacing + 0.5);
    return rows < 1 ? 1 : (int32_t)rows;
}

/* Fills the left half of the box evenly with a lattice of n points, each moved by up to a tenth
   of the spacing. */
static dam_state dam_start(const dam_model *model, int32_t n, int32_t seed)
{
    dam_state state = dam_state_new(n);
    double const room[3] = {0.5 * model->size[0], (double)model->size[1], (double)model->size[2]};
    double const ideal = cbrt(room[0] * room[1] * room[2] / n);
    int32_t const nx = dam_rows(room[0], ideal), ny = dam_rows(room[1], ideal);
    int32_t const nz = (int32_t)(((int64_t)n + (int64_t)nx * ny - 1) / ((int64_t)nx * ny));
    double const step[3] = {room[0] / nx, room[1] / ny, room[2] / nz};
    uint64_t s = random_seed(seed);
    int32_t i;
    int a;
    for (i = 0; i < n; i++) {
        int32_t const at[3] = {i % nx, i / nx % ny, i / nx / ny};
        for (a = 0; a < 3; a++) {
            double const x = step[a] * (at[a] + 0.5 + 0.1 * (2 * (double)random_float(&s) - 1));
            double const low = (double)DAM_RADIUS, high = room[a] - low;
            state.pos[3 * (size_t)i + (size_t)a] = (float)(x < low || high < low ? low
                                                           : x > high            ? high
                                                                                 : x);
        }
    }
    return state;
}

/* Particles per cell of the left half, at least 1: see >>model. */
static float dam_crowd(const dam_options *o, int32_t n)
{
    float const crowd = (float)(2.0 * n / ((double)o->grid * o->grid * o->depth));
    return crowd > 1 ? crowd : 1;
}

static dam_model dam_model_for(const dam_options *o, int32_t n)
{
    float const crowd = dam_crowd(o, n);
    dam_model model;
    model.size[0] = model.size[2] = o->grid;
    model.size[1] = o->depth;
    model.dt = o->dt;
    model.gravity = o->gravity;
    model.spring = o->spring / crowd;
    model.dashpot = o->dashpot / crowd;
    model.shear = o->shear / crowd;
    model.bounce = o->bounce;
    return model;
}

/* The grid that every step builds: one cell for each unit of the box. */
static ugrid_desc dam_grid_desc(const dam_options *o, int32_t n)
{
    ugrid_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.max[0] = desc.max[2] = (float)o->grid;
    desc.max[1] = (float)o->depth;
    desc.cell = DAM_DIAMETER;
    desc.method = o->method;
    desc.placement = o->placement;
    desc.walk = o->walk;
    desc.slots = o->slots ? o->slots : (int32_t)(4 * dam_crowd(o, n));
    if (!o->slots && desc.slots < 32) desc.slots = 32;
    return desc;
}

/* -------------------------------------------------------------------------------------------------
   >>text
   ---------------------------------------------------------------------------------------------- */

/* Particles at rest at the positions of a file. */
static dam_state dam_read(const char *name, const dam_options *o)
{
    table points = table_read(name, 3, "three finite numbers x y z", "point");
    dam_model const model = dam_model_for(o, 1);
    dam_state state = dam_state_new(points.rows);
    int32_t i;
    int a;
    for (i = 0; i < points.rows; i++)
        for (a = 0; a < 3; a++) {
            double const x = table_row(&points, i)[a];
            if (x < 0 || x > model.size[a])
                stop(1,
                     "%s:%ld: the point is outside of the box, 0 to %d along axis %d (--grid, "
                     "--depth)",
                     name, points.line[i], (int)model.size[a], a);
            state.pos[3 * (size_t)i + (size_t)a] = (float)x;
        }
    table_free(&points);
    return state;
}

/* 9 digits bring back every float as it was. */
static void dam_write(const char *name, const dam_state *state, int32_t step)
{
    out_file const out = create_file(name);
    int32_t i;
    fprintf(out.file, "# x y z of %ld spheres after step %ld\n", (long)state->n, (long)step);
    for (i = 0; i < state->n; i++) {
        const float *p = state->pos + 3 * (size_t)i;
        fprintf(out.file, "%.9g %.9g %.9g\n", (double)p[0], (double)p[1], (double)p[2]);
    }
    close_file(&out);
}

#endif /* DAM_BREAK_H */
