/* coating.h - what coating.c and coating.cu share: options, the spray, the test of a particle, and
   what has been deposited.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef COATING_H
#define COATING_H

#include "../common/shape_ray.h"

/* -------------------------------------------------------------------------------------------------
   >>options
   ---------------------------------------------------------------------------------------------- */

typedef struct coat_options {
    tablet_options bed;
    int32_t rays, every, nozzles, time, check;
    double rate, angle, height;
    const char *search, *masses, *out;
} coat_options;

enum { COAT_BRUTE, COAT_LOOSE, COAT_TIGHT, COAT_TREE, COAT_WIDE, COAT_SEARCHES };
static const option_name coat_searches[] = {
    {"brute", COAT_BRUTE}, {"loose", COAT_LOOSE}, {"tight", COAT_TIGHT}, {"tree", COAT_TREE},
#ifndef __CUDACC__ /* lbvh_cuda_closest_hits takes triangles only */
    {"wide", COAT_WIDE},
#endif
    {NULL, 0}
};

static void coat_read_options(int argc, char **argv, coat_options *o)
{
    const option_line table[] = {
        INT("-n", "N", &o->bed.n, 1, 100000000, "particles (default 150)"),
        DOUBLE("--spheres", "P", &o->bed.spheres, 0, 1,
               "part of them that are spheres, the others are tablets (default 0.3)"),
        DOUBLE("--radius", "R", &o->bed.radius, 1e-6, 10, "of a tablet's band (default 0.004)"),
        DOUBLE("--band", "H", &o->bed.band, 1e-6, 10, "height of the band (default 0.002)"),
        DOUBLE("--cap", "H", &o->bed.cap, 1e-6, 10, "height of each cap (default 0.001)"),
        DOUBLE("--rpm", "W", &o->bed.rpm, -1000, 1000, "turns per minute (default 40)"),
        DOUBLE("--seconds", "T", &o->bed.seconds, 1e-5, 1000, "of the run (default 1.5)"),
        DOUBLE("--steps", "N", &o->bed.steps, 10, 10000, "time steps per contact (default 20)"),
        INT("--rays", "N", &o->rays, 1, 100000000, "of one burst (default 500)"),
        INT("--every", "N", &o->every, 1, 1000000, "steps from burst to burst (default 50)"),
        INT("--nozzles", "N", &o->nozzles, 0, 100000,
            "along the drum (default 0: as many as its length asks for)"),
        DOUBLE("--rate", "R", &o->rate, 0, 1e6, "mg of coating per second (default 500)"),
        DOUBLE("--angle", "A", &o->angle, 0.1, 80, "between axis and edge of a cone (default 15)"),
        DOUBLE("--height", "H", &o->height, -0.5, 0.9,
               "of the nozzles above the drum's axis, in its radii (default 0.5)"),
        TEXT("--search", "NAME", &o->search,
             "brute, loose (grid), tight (grid), tree (default), wide (tree; CPU only)"),
        FLAG("--time", &o->time, "in the end, time all searches, and compare their hits"),
        FLAG("--check", &o->check, "GPU: compare the hits in the end with serial searches"),
        INT("--seed", "N", &o->bed.seed, 0, INT_MAX, "of places, turns and rays (default 1)"),
        TEXT("--masses", "FILE", &o->masses, "write a line per particle: number, kind, mg"),
        TEXT("--out", "FILE", &o->out, "the picture (default build/coating.png)"), OPTIONS_END};
    options_read(argc, argv, table, NULL, "Spray on tablets and spheres in a drum.",
                 "-n 20000 --seconds 0.001 --rays 100000 --time");
}

static coat_options coat_parse(int argc, char **argv)
{
    coat_options o;
    memset(&o, 0, sizeof o);
    o.bed = tablet_defaults();
    o.bed.scene = "drum";
    o.bed.n = 150;
    o.bed.spheres = 0.3;
    o.bed.rpm = 40;
    o.bed.seconds = 1.5;
    o.bed.steps = 20;
    o.rays = 500;
    o.every = 50;
    o.rate = 500;
    o.angle = 15;
    o.height = 0.5;
    o.search = "tree";
    o.out = "build/coating.png";
    coat_read_options(argc, argv, &o);
    option_find(coat_searches, "--search", o.search);
#ifndef __CUDACC__
    if (o.check) stop(2, "--check is for the program on a GPU");
#endif
    return o;
}

/* -------------------------------------------------------------------------------------------------
   >>spray
   ---------------------------------------------------------------------------------------------- */

/* Nozzles above the drum's axis, in a row along it. Their cones are directed at the bed, which the
   drum carries to -x. */
typedef struct coat_spray {
    dem_real at[3], ahead[3], side[3], up[3];   /* the first nozzle, and the axes of its cone */
    dem_real open;              /* 1 - cosine of the angle between axis and edge */
    dem_real apart;             /* of two nozzles */
    int32_t nozzles, rays;      /* rays of one burst, from all nozzles */
    uint64_t seed;
} coat_spray;

/* A number of 64 bits whose bits look random (G. Steele, D. Lea, C. Flood, Fast splittable
   pseudorandom number generators, OOPSLA 2014: the finalizer of SplitMix). */
DEM_FN uint64_t coat_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

/* Ray r of a burst: origin, direction of length 1; evenly over the cone's solid angle, in which
   1 - cosine is even (Archimedes). It depends on nothing but the numbers of the ray and burst. */
DEM_FN void coat_ray(const coat_spray *s, int64_t burst, int32_t r, dem_real ray[6])
{
    uint64_t const number = (uint64_t)burst * (uint64_t)s->rays + (uint64_t)r;
    uint64_t const bits = coat_mix(s->seed + number * 0x9E3779B97F4A7C15ull);
    dem_real const u = (dem_real)(bits >> 40) / 16777216,
                   turn = (dem_real)(2 * PI / 16777216) * (dem_real)(bits >> 16 & 0xFFFFFF);
    dem_real const lower = u * s->open, across = dem_root(lower * (2 - lower));
    int a;
    for (a = 0; a < 3; a++) {
        ray[a] = s->at[a];
        ray[3 + a] = (1 - lower) * s->ahead[a];
    }
    ray[1] += s->apart * (dem_real)((int64_t)r * s->nozzles / s->rays);
    dem_add(ray + 3, across * dem_sine(turn), s->side);
    dem_add(ray + 3, across * dem_sine(turn + (dem_real)(PI / 2)), s->up);
}

static coat_spray coat_spray_new(const coat_options *o, const scene *bed)
{
    double const tilt = 0.4, drum = bed->drum; /* radians from straight down, to -x */
    coat_spray s;
    memset(&s, 0, sizeof s);
    s.rays = o->rays;
    s.nozzles = o->nozzles ? o->nozzles : (int32_t)ceil(bed->length / drum);
    s.apart = (dem_real)(bed->length / s.nozzles);
    s.at[0] = (dem_real)(0.1 * drum);
    s.at[1] = (dem_real)(0.5 * (bed->length / s.nozzles - bed->length));
    s.at[2] = (dem_real)(o->height * drum);
    s.ahead[0] = (dem_real)-sin(tilt);
    s.ahead[2] = (dem_real)-cos(tilt);
    s.side[1] = 1;
    dem_cross(s.ahead, s.side, s.up);
    s.open = (dem_real)(1 - cos(o->angle * PI / 180));
    s.seed = random_seed(o->bed.seed);
    return s;
}

/* -------------------------------------------------------------------------------------------------
   >>hit
   ---------------------------------------------------------------------------------------------- */

#define COAT_FAR ((dem_real)1e30)

/* What a ray meets first: of two at the same t the lower id; -1: the drum. And what that took:
   particles tested, cells looked at. */
typedef struct coat_hit {
    dem_real t;
    int32_t id, tests, cells;
} coat_hit;

DEM_FN coat_hit coat_no_hit(void)
{
    coat_hit none;
    none.t = COAT_FAR;
    none.id = -1;
    none.tests = none.cells = 0;
    return none;
}

DEM_FN dem_real coat_larger(dem_real a, dem_real b) { return a > b ? a : b; }

/* Particle id becomes the best hit, if the ray enters it earlier. The surrounding sphere first: the
   direction has the length 1. */
DEM_FN void coat_test(const dem_bodies *bodies, int32_t id, const dem_real *ray, coat_hit *best)
{
    dem_real const zero[3] = {0, 0, 0};
    dem_real const bound = shape_ray_bound(dem_body_shape(bodies, id));
    shape_span span = {0, COAT_FAR, {0, 0, 0}};
    shape_placed body;
    dem_real p[4], o[3], ahead;
    int a;
    dem_load(bodies->base.pos, (size_t)id, p);
    for (a = 0; a < 3; a++) o[a] = ray[a] - p[a];
    best->tests++;
    ahead = dem_dot(o, ray + 3);
    if (dem_dot(o, o) - ahead * ahead > bound * bound) return;
    body = dem_body_at(bodies, id, zero);
    if (!shape_ray(&body, o, ray + 3, &span) || span.from > best->t) return;
    if (span.from < best->t || id < best->id) {
        best->t = span.from;
        best->id = id;
    }
}

/* The number of a cell, as ugrid.h has them (UGRID_ROWS); -1: there is none. */
DEM_FN int32_t coat_cell(const ugrid *grid, int32_t x, int32_t y, int32_t z)
{
    const ugrid_axis *axis = grid->axis;
    if (x < 0 || y < 0 || z < 0 || x >= axis[0].cells || y >= axis[1].cells || z >= axis[2].cells)
        return -1;
    return (z * axis[1].cells + y) * axis[0].cells + x;
}

/* The box of a particle: min x y z, max x y z. A thousandth larger, so that rounding in a walk
   never loses a hit. */
DEM_FN void coat_box(const dem_bodies *bodies, int32_t id, dem_real box[6])
{
    dem_real const zero[3] = {0, 0, 0};
    shape_placed const body = dem_body_at(bodies, id, zero);
    shape_solid const solid = shape_solid_of(body.body);
    dem_real p[4];
    int a;
    dem_load(bodies->base.pos, (size_t)id, p);
    for (a = 0; a < 3; a++) {
        dem_real const reach = shape_solid_reach(&solid, body.axes[2][a]) + p[3] / 1000;
        box[a] = p[a] - reach;
        box[3 + a] = p[a] + reach;
    }
}

/* Of both grids. Loose: no particle reaches beyond the cells around that of its middle. Tight: none
   is wider than a cell, so it touches 8 at most. */
static ugrid_desc coat_grid_desc(const scene *bed, int loose)
{
    double const bound = 1.001 * (double)shape_ray_bound(&bed->shapes[0]);
    double const half[3] = {1.1 * bed->drum + bound, bed->length / 2 + bound,
                            1.1 * bed->drum + bound};
    ugrid_desc desc;
    int a;
    memset(&desc, 0, sizeof desc);
    for (a = 0; a < 3; a++) {
        desc.min[a] = (ugrid_real)-half[a];
        desc.max[a] = (ugrid_real)half[a];
    }
    desc.method = UGRID_COUNT;
    desc.placement = loose ? UGRID_LOOSE : UGRID_TIGHT;
    desc.cell = (ugrid_real)(loose ? bound : 2 * bound);
    if (!loose) desc.size = (ugrid_real)(2 * bound);
    return desc;
}

/* -------------------------------------------------------------------------------------------------
   >>coating
   ---------------------------------------------------------------------------------------------- */

enum { COAT_SAMPLES = 60 };     /* of the curves, at most */
typedef struct coat_sample { double time, mean, spread; } coat_sample;

typedef struct coating {
    const coat_options *options;
    scene *bed;
    coat_spray spray;
    int search;
    int64_t *count;             /* [1 + n] rays that hit the drum; that hit each particle */
    int64_t bursts;
    double mass;                /* mg of a ray */
    coat_sample sample[COAT_SAMPLES + 1];
    int32_t samples;
} coating;

static coating coating_new(const coat_options *o)
{
    coating c;
    memset(&c, 0, sizeof c);
    c.options = o;
    c.bed = scene_new(&o->bed, 1);
    c.spray = coat_spray_new(o, c.bed);
    c.search = option_find(coat_searches, "--search", o->search);
    c.count = (int64_t *)zeros(1 + (size_t)o->bed.n, sizeof *c.count);
    c.mass = o->rate * (double)c.bed->bodies.base.dt * o->every / o->rays;
    return c;
}

static int coat_is_due(const coating *c) { return c->bed->step % c->options->every == 0; }

#include "coating_run.h"

#endif /* COATING_H */
