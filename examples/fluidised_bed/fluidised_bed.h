/* fluidised_bed.h - what fluidised_bed.c needs besides its steps: options, the bed at the start.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef FLUIDISED_BED_H
#define FLUIDISED_BED_H

#include "../common/dem.h"
#include "../common/options.h"
#include "../common/random.h"

/* -------------------------------------------------------------------------------------------------
   >>options
   ---------------------------------------------------------------------------------------------- */

/* wide, deep, high: the bed as it is filled, in grains. speed: U beside that of Wen and Yu. */
typedef struct bed_options {
    int32_t wide, deep, high, curve, seed;
    double speed, seconds, mu;
    const char *out;
} bed_options;

static bed_options parse(int argc, char **argv)
{
    bed_options o = {60, 5, 30, 0, 1, 1.8, 0, 0.1, NULL};
    const option_line table[] = {
        FLAG("--curve", &o.curve,
             "pressure against velocity, from fast to slow (default: bubbles at one velocity)"),
        DOUBLE("--speed", "U", &o.speed, 0, 4,
               "of the gas, in parts of Wen and Yu's (default 1.8; --curve: begins there)"),
        DOUBLE("--seconds", "T", &o.seconds, 1e-3, 1000,
               "of the run (default 0.8; --curve: of each velocity, 0.1)"),
        INT("--wide", "N", &o.wide, 6, 1000, "width of the bed, in grains (default 60)"),
        INT("--deep", "N", &o.deep, 3, 1000, "depth (default 5)"),
        INT("--high", "N", &o.high, 6, 1000, "height, as it is filled (default 30)"),
        DOUBLE("--mu", "M", &o.mu, 0, 10, "friction (default 0.1)"),
        INT("--seed", "N", &o.seed, 0, INT_MAX, "of the places at the start (default 1)"),
        TEXT("--out", "FILE", &o.out,
             "the picture (default build/fluidised_bed.png, build/fluidised_bed_curve.png)"),
        OPTIONS_END};
    options_read(argc, argv, table, NULL, "Grains in a flow of gas: a fluidised bed.",
                 "--curve --wide 20 --deep 10 --high 20");
    if (!o.out) o.out = o.curve ? "build/fluidised_bed_curve.png" : "build/fluidised_bed.png";
    if (o.seconds <= 0) o.seconds = o.curve ? 0.1 : 0.8;
    return o;
}

/* -------------------------------------------------------------------------------------------------
   >>bed: x along its width, y up, z along its depth
   ---------------------------------------------------------------------------------------------- */

/* Glass beads of 1 mm. Under 30 layers they overlap by a hundredth of their diameter; a contact
   lasts 0.4 ms. */
static double const diameter = 1e-3, density = 2500, dent = 1e-5, e = 0.9, beta = 0.35;

/* steps of a contact; steps between two solutions of the gas; grains along the edge of its cells;
   heights of the bed that the walls are high */
enum { STEPS_PER_CONTACT = 20, GAS_EVERY = 10, CELL = 3, WALLS = 4 };

typedef struct bed {
    const bed_options *options;
    dem_system grains;
    double size[3], volume;         /* of the box; of a grain */
    float *sums, *averaged, *cell_sums; /* forces; of each grain and cell {V, V vx, V vy} */
    int32_t *cell;                  /* the gas cell of a grain */
    ugrid_desc near_desc, gas_desc;
    ugrid near, coarse;             /* to find contacts; cells of the gas */
    nlist_desc desc;
    nlist pairs;
    gas air;
    int64_t step, builds;
} bed;

static double seconds_of(const bed *b) { return (double)b->step * (double)b->grains.dt; }

/* The speed of the gas now, in m/s. */
static void bed_blow(bed *b, double inflow) { b->air.inflow = inflow; }

/* Four walls and the bottom. */
static void place_walls(bed *b)
{
    dem_system *d = &b->grains;
    int k;
    d->planes = 5;
    for (k = 0; k < 4; k++) {
        int const axis = k < 2 ? 0 : 2;
        d->plane[k].normal[axis] = k % 2 ? -1 : 1;
        d->plane[k].offset = (dem_real)(k % 2 ? -b->size[axis] : 0);
    }
    d->plane[4].normal[1] = 1;
}

/* A loose lattice: each grain a little off its place. */
static void place_grains(bed *b)
{
    const bed_options *o = b->options;
    dem_system *d = &b->grains;
    uint64_t seed = random_seed(o->seed);
    int32_t i;
    int a;
    for (i = 0; i < d->n; i++) {
        int32_t const at[3] = {i % o->wide, i / (o->wide * o->deep), i / o->wide % o->deep};
        float *p = d->pos + 4 * (size_t)i;
        for (a = 0; a < 3; a++)
            p[a] = (float)(diameter * (at[a] + 0.5) * (a == 1 ? 1.05 : 1.02) +
                           0.01 * diameter * random_double(&seed));
        p[3] = (float)(diameter / 2);
        d->vel[4 * (size_t)i + 3] = (float)(1 / dem_mass(diameter / 2, density));
    }
}

static void set_material(bed *b)
{
    dem_system *d = &b->grains;
    double const mass = dem_mass(diameter / 2, density);
    d->between = d->walls = dem_material_of(30 * mass * 9.81 / dent, e, beta, b->options->mu);
    d->dt = (float)(dem_contact_time(&d->between, mass / 2) / STEPS_PER_CONTACT);
    d->gravity[1] = (float)(-9.81 * (1 - gas_density / density));
}

/* Contacts by a grid and a list with a skin; the gas by a grid of x and y whose cells go through
   all of the depth. */
static void set_grids(bed *b)
{
    int32_t const wide = b->options->wide / CELL;
    double const edge = b->size[0] / wide;
    int32_t const high = (int32_t)(b->size[1] / edge);
    double const top = edge * high;
    int a;
    for (a = 0; a < 3; a++) b->near_desc.max[a] = (float)(a == 1 ? top : b->size[a]);
    b->desc.history = DEM_HISTORY;
    b->desc.half = 1;
    b->desc.radius = (float)diameter;
    b->desc.skin = (float)(0.2 * diameter);
    b->near_desc.cell = b->desc.radius + b->desc.skin;
    b->gas_desc.dim = 2;
    b->gas_desc.max[0] = (float)b->size[0];
    b->gas_desc.max[1] = (float)top;
    b->gas_desc.cell = (float)(edge * 0.9999);
    gas_new(&b->air, wide, high, edge, b->size[2], diameter);
    b->cell_sums = (float *)zeros(3 * (size_t)b->air.cells, sizeof(float));
}

static bed *bed_new(const bed_options *o)
{
    bed *b = (bed *)zeros(1, sizeof *b);
    dem_system *d = &b->grains;
    size_t const n = (size_t)o->wide * (size_t)o->deep * (size_t)o->high;
    if (n > 10000000) stop(2, "more than 10 million grains");
    b->options = o;
    b->volume = dem_mass(diameter / 2, 1);
    b->size[0] = 1.02 * diameter * o->wide + 0.02 * diameter;
    b->size[1] = WALLS * diameter * o->high;
    b->size[2] = 1.02 * diameter * o->deep + 0.02 * diameter;
    d->n = (int32_t)n;
    d->pos = (float *)zeros(4 * n, sizeof(float));
    d->vel = (float *)zeros(4 * n, sizeof(float));
    d->spin = (float *)zeros(4 * n, sizeof(float));
    b->sums = (float *)zeros(DEM_SUMS * n, sizeof(float));
    b->averaged = (float *)zeros(3 * n, sizeof(float));
    b->cell = (int32_t *)zeros(n, sizeof(int32_t));
    place_walls(b);
    d->plane_history = (float *)zeros(4 * n * (size_t)d->planes, sizeof(float));
    place_grains(b);
    set_material(b);
    set_grids(b);
    return b;
}

static void bed_free(bed *b)
{
    free(b->grains.pos);
    free(b->grains.vel);
    free(b->grains.spin);
    free(b->grains.plane_history);
    free(b->sums);
    free(b->averaged);
    free(b->cell_sums);
    free(b->cell);
    ugrid_free(&b->near);
    ugrid_free(&b->coarse);
    nlist_free(&b->pairs);
    gas_free(&b->air);
    free(b);
}

#endif /* FLUIDISED_BED_H */
