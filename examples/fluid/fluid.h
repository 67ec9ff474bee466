/* fluid.h - what fluid.c needs besides its steps and fluid_model.h: options, three scenes.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef FLUID_H
#define FLUID_H

#include "../common/options.h"
#include "fluid_model.h"

/* -------------------------------------------------------------------------------------------------
   >>options
   ---------------------------------------------------------------------------------------------- */

typedef struct fluid_options {
    int32_t dim, across, column, time, check, vtk, window;
    double smoothing, viscosity, sound, courant, skin, until;
    const char *scene, *out;
} fluid_options;

enum { SCENE_DAM, SCENE_STILL, SCENE_DROP };
static const option_name scene_names[] = {
    {"dam", SCENE_DAM}, {"still", SCENE_STILL}, {"drop", SCENE_DROP}, {NULL, 0}
};

static fluid_options parse(int argc, char **argv)
{
    fluid_options o = {2, 40, 2, 0, 0, 0, 0, 0, 0.05, 10, 0.25, 0.2, 0, "dam", NULL};
    const option_line table[] = {
        TEXT("--scene", "NAME", &o.scene,
             "dam (default): a column collapses; still: at rest in a tank; drop: without weight"),
        INT("--dim", "D", &o.dim, 2, 3, "dimensions (default 2)"),
        INT("--across", "N", &o.across, 4, 2000, "particles across the column (default 40)"),
        INT("--column", "N", &o.column, 1, 2,
            "height of the column in widths, n^2 of the experiment (default 2)"),
        DOUBLE("--smoothing", "H", &o.smoothing, 0.9, 2.5,
               "smoothing length in spacings (default: 2D 1.5, 3D 1.2)"),
        DOUBLE("--viscosity", "A", &o.viscosity, 0, 2, "artificial viscosity (default 0.05)"),
        DOUBLE("--sound", "C", &o.sound, 5, 200,
               "speed of sound in parts of the largest speed expected (default 10)"),
        DOUBLE("--courant", "C", &o.courant, 0.01, 1, "time step in H / C (default 0.25)"),
        DOUBLE("--skin", "S", &o.skin, 0.01, 1,
               "in smoothing lengths: lists reach further, and serve several steps (default 0.2)"),
        DOUBLE("--until", "T", &o.until, 1e-6, 1000,
               "end, in the units that are printed (default: dam 3.4, --column 1: 2.1; still 5, "
               "drop 1)"),
        FLAG("--time", &o.time,
             "print the time of a step and its parts, and of forces with and without kept "
             "gradients"),
        FLAG("--window", &o.window,
             "show it live, until the window is closed: space waits, q ends, the mouse pushes"),
        FLAG("--vtk", &o.vtk, "write the particles for ParaView, beside the picture"),
        FLAG("--check", &o.check, "GPU: compare with serial steps, in a short run"),
        TEXT("--out", "FILE", &o.out, "the picture (default build/fluid_SCENE.png)"),
        OPTIONS_END};
    options_read(argc, argv, table, NULL, "A weakly compressible fluid (SPH).",
                 "--scene dam --column 1 --across 60");
    if (o.smoothing <= 0) o.smoothing = o.dim == 2 ? 1.5 : 1.2;
#ifndef __CUDACC__
    if (o.check) stop(2, "--check is for the program on a GPU");
#endif
    return o;
}

/* -------------------------------------------------------------------------------------------------
   >>scene
   ---------------------------------------------------------------------------------------------- */

typedef struct scene {
    const fluid_options *options;
    int kind;
    int32_t n, fluid;           /* particles; those that are no walls */
    fluid_model model;
    fluid_particles now, spare; /* spare: for sorts; spare.vel also for the next velocities */
    fluid_kept *kept;           /* [room] by entry of the list */
    int64_t room;
    ugrid grid;
    ugrid_desc cells;
    nlist list;
    nlist_desc desc;
    double spacing, width, height, mass, speed;
    double length, depth;       /* of the tank: along x and, in 3D, y */
    double unit, until;         /* seconds of the printed unit of time; end, in seconds */
    int64_t step, builds;
    double spent[4];            /* seconds: lists, densities, walls, forces */
} scene;

static double const column_width = 0.05715; /* 2 1/4 inches, as Martin and Moyce had it */
enum { TANK = 5 };              /* length of the dam's tank in widths */

static fluid_particles particles_new(int32_t n)
{
    size_t const count = (size_t)n;
    fluid_particles p;
    p.pos = (fluid_real *)zeros(count, FLUID_STRIDE);
    p.vel = (fluid_real *)zeros(count, FLUID_STRIDE);
    p.density = (fluid_real *)zeros(2 * count, sizeof(fluid_real));
    p.id = (int32_t *)zeros(count, sizeof(int32_t));
    return p;
}

static void particles_free(fluid_particles *p)
{
    free(p->pos);
    free(p->vel);
    free(p->density);
    free(p->id);
}

/* Pressure at the start: of the column at rest, and of a drop that is being drawn out. */
static double first_pressure(const scene *s, const double x[3])
{
    double const rho = (double)s->model.rho, up = x[s->model.dim - 1], radius = s->width / 2;
    if (s->kind != SCENE_DROP) return rho * (double)s->model.gravity * (s->height - up);
    return rho / 2 * s->speed * s->speed *
           (1 - (x[0] * x[0] + x[1] * x[1] + x[2] * x[2]) / (radius * radius));
}

static void place(scene *s, int32_t i, const double x[3], int wall)
{
    fluid_real *p = s->now.pos + 4 * (size_t)i, *v = s->now.vel + 4 * (size_t)i;
    double const pressure = fmax(0, first_pressure(s, x));
    int k;
    for (k = 0; k < 3; k++) p[k] = (fluid_real)x[k];
    p[3] = wall ? 0 : 1;
    s->now.id[i] = i;
    s->now.density[2 * (size_t)i] = s->now.density[2 * (size_t)i + 1] =
        s->model.rho * (fluid_real)pow(1 + pressure / (double)s->model.stiffness, 1.0 / 7);
    if (s->kind != SCENE_DROP) return;
    v[0] = (fluid_real)(-2 * s->speed / s->width * x[0]);
    v[1] = (fluid_real)(2 * s->speed / s->width * x[1]);
}

/* What is at place c of the lattice of a tank: 1 fluid, 2 wall, 0 nothing. The tank: size[] in
   spacings, open above; the fluid in it: fill[]. */
static int in_tank(const scene *s, const int32_t c[3], const int32_t size[3], const int32_t fill[3])
{
    int inside = 1, filled = 1, k;
    for (k = 0; k < s->model.dim; k++) {
        inside &= c[k] >= 0 && (c[k] < size[k] || k == s->model.dim - 1);
        filled &= c[k] >= 0 && c[k] < fill[k];
    }
    return filled ? 1 : inside ? 0 : 2;
}

static int in_drop(const scene *s, const double x[3])
{
    return x[0] * x[0] + x[1] * x[1] + x[2] * x[2] < s->width * s->width / 4;
}

/* Counts the particles, and places them where there is memory. */
static int32_t place_all(scene *s, const int32_t size[3], const int32_t fill[3], int32_t layers)
{
    /* The drop is not symmetric to the lattice: that would hide momentum that is lost. */
    static double const aside[] = {0.31, 0.17, 0.43};
    int const flat = s->model.dim == 2, drop = s->kind == SCENE_DROP;
    int32_t c[3], count = 0;
    int k;
    s->fluid = 0;
    for (c[2] = flat ? 0 : -layers; c[2] < (flat ? 1 : size[2]); c[2]++)
        for (c[1] = -layers; c[1] < size[1] + (flat ? 0 : layers); c[1]++)
            for (c[0] = -layers; c[0] < size[0] + layers; c[0]++) {
                double x[3];
                int what;
                for (k = 0; k < 3; k++)
                    x[k] = k < s->model.dim
                               ? (c[k] + 0.5 - (drop ? size[k] / 2.0 + aside[k] : 0)) * s->spacing
                               : 0;
                what = drop ? in_drop(s, x) : in_tank(s, c, size, fill);
                if (!what) continue;
                if (s->now.pos) place(s, count, x, what == 2);
                s->fluid += what == 1;
                count++;
            }
    return count;
}

static void fill_scene(scene *s)
{
    const fluid_options *o = s->options;
    int32_t const n = o->across, up = s->model.dim - 1, layers = (int32_t)ceil(2 * o->smoothing);
    int32_t size[3] = {n, n, n}, fill[3] = {n, n, n};
    if (s->kind == SCENE_DAM) {
        size[0] = TANK * n;
        fill[up] = o->column * n;
    }
    if (s->model.dim == 3 && s->kind != SCENE_DROP) size[1] = fill[1] = (n + 1) / 2;
    if (s->kind != SCENE_DROP) size[up] = fill[up] + n / 4;
    s->length = size[0] * s->spacing;
    s->depth = size[1] * s->spacing;
    s->n = place_all(s, size, fill, layers);
    s->now = particles_new(s->n);
    s->spare = particles_new(s->n);
    place_all(s, size, fill, layers);
}

/* Cells as wide as the lists reach. What is outside is in the outer cells. */
static void set_search(scene *s)
{
    double const reach = (double)s->model.support, skin = s->options->skin * (double)s->model.h;
    double const most[3] = {s->length, s->model.dim == 2 ? s->length : s->depth, s->length};
    int k;
    for (k = 0; k < s->model.dim; k++) {
        s->cells.min[k] = (ugrid_real)(s->kind == SCENE_DROP ? -most[k] : -reach);
        s->cells.max[k] = (ugrid_real)(most[k] + reach);
    }
    s->cells.dim = s->desc.dim = s->model.dim;
    s->cells.cell = (ugrid_real)(reach + skin);
    s->desc.radius = s->model.support;
    s->desc.skin = (nlist_real)skin;
    s->desc.layout = NLIST_COMPACT;
    s->desc.grow = 1;
}

static void set_model(scene *s)
{
    const fluid_options *o = s->options;
    double const h = o->smoothing * s->spacing, gravity = s->kind == SCENE_DROP ? 0 : 9.81;
    double sound;
    s->speed = s->kind == SCENE_DROP ? 1 : sqrt(2 * gravity * s->height);
    sound = o->sound * s->speed;
    s->model.dim = o->dim;
    s->model.h = (fluid_real)h;
    s->model.support = (fluid_real)(2 * h);
    s->model.rho = 1000;
    s->mass = 1000 * pow(s->spacing, o->dim);
    s->model.scale =
        (fluid_real)(s->mass * (o->dim == 2 ? 7 / (4 * PI * h * h) : 21 / (16 * PI * h * h * h)));
    s->model.stiffness = (fluid_real)(1000 * sound * sound / 7);
    s->model.drag = (fluid_real)(o->viscosity * sound * h / 1000);
    s->model.gravity = (fluid_real)gravity;
    s->model.dt = (fluid_real)(o->courant * h / sound);
    s->unit = s->kind == SCENE_DROP ? s->width / 2 / s->speed
                                    : s->width / sqrt(s->height * gravity); /* a / sqrt(H g) */
}

static scene *scene_new(const fluid_options *o)
{
    static double const usual[] = {3.4, 5, 1};
    scene *s = (scene *)zeros(1, sizeof *s);
    s->options = o;
    s->kind = option_find(scene_names, "--scene", o->scene);
    s->width = column_width;
    s->height = column_width * (s->kind == SCENE_DAM ? o->column : 1);
    s->spacing = s->width / o->across;
    set_model(s);
    s->until = o->until > 0 ? o->until : s->kind == SCENE_DAM && o->column == 1 ? 2.1
                                                                                : usual[s->kind];
    s->until *= s->unit;
    fill_scene(s);
    set_search(s);
    return s;
}

static void scene_free(scene *s)
{
    particles_free(&s->now);
    particles_free(&s->spare);
    free(s->kept);
    ugrid_free(&s->grid);
    nlist_free(&s->list);
    free(s);
}

#endif /* FLUID_H */
