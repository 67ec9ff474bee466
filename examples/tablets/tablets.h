/* tablets.h - what tablets.c needs besides its steps: options, four scenes, energies.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef TABLETS_H
#define TABLETS_H

#include "../common/dem_walls.h"
#include "../common/options.h"
#include "../common/random.h"

/* -------------------------------------------------------------------------------------------------
   >>options
   ---------------------------------------------------------------------------------------------- */

/* Source 004 does not say how large its tablets are: these are those of a usual 8 mm punch. Metres,
   kg, seconds. */
typedef struct tablet_options {
    int32_t n, seed, packed, shuffle, forms, check, mesh, slice, copies, sort_every, no_history,
        tables_steps;
    double radius, band, cap, rounding, spheres, mu, lean, seconds, rpm, skin, steps, lifters, fill,
        softness;
    const char *scene, *out, *save, *load, *tables;
} tablet_options;

enum { SCENE_LEAN, SCENE_DRUM, SCENE_CLOUD, SCENE_BOX };
static const option_name scene_names[] = {
    {"lean", SCENE_LEAN}, {"drum", SCENE_DRUM}, {"cloud", SCENE_CLOUD}, {"box", SCENE_BOX},
    {NULL, 0}
};
static double const density = 1300, gravity = 9.81;

static tablet_options tablet_defaults(void)
{
    tablet_options o;
    memset(&o, 0, sizeof o);
    o.n = 200;
    o.seed = o.slice = o.copies = 1;
    o.tables_steps = 400;
    o.radius = 0.004;
    o.band = 0.002;
    o.cap = 0.001;
    o.rounding = 0.0005;
    o.mu = 0.75;
    o.lean = o.rpm = 30;
    o.skin = 0.1;
    o.steps = 40;
    o.fill = 0.5;
    o.softness = 1;
    o.scene = "lean";
    return o;
}

#ifndef TABLETS_AS_PART /* coating.c has options of its own */
static tablet_options parse(int argc, char **argv)
{
    tablet_options o = tablet_defaults();
    const option_line table[] = {
        TEXT("--scene", "NAME", &o.scene,
             "lean (default): one tablet at a wall; drum: many; cloud: in free flight; box: many "
             "fall into it"),
        INT("-n", "N", &o.n, 1, 20000000, "tablets, but for lean (default 200)"),
        DOUBLE("--radius", "R", &o.radius, 1e-6, 10, "of the band (default 0.004)"),
        DOUBLE("--band", "H", &o.band, 1e-6, 10, "height of the band (default 0.002)"),
        DOUBLE("--cap", "H", &o.cap, 1e-6, 10, "height of each cap (default 0.001)"),
        DOUBLE("--rounding", "R", &o.rounding, 1e-7, 10, "of the edges (default 0.0005)"),
        DOUBLE("--spheres", "P", &o.spheres, 0, 1,
               "part of the particles that are spheres of the same mass (default 0)"),
        DOUBLE("--mu", "M", &o.mu, 0, 10, "friction (default 0.75; cloud: none)"),
        DOUBLE("--lean", "A", &o.lean, 0, 80, "degrees between tablet and wall (default 30)"),
        DOUBLE("--rpm", "W", &o.rpm, -1000, 1000, "turns of the drum per minute (default 30)"),
        DOUBLE("--seconds", "T", &o.seconds, 1e-4, 1000,
               "of the run (default: lean 5, drum 0.4, cloud and box 0.2)"),
        DOUBLE("--steps", "N", &o.steps, 10, 10000, "time steps per contact (default 40)"),
        DOUBLE("--skin", "S", &o.skin, 0, 2,
               "in radii: lists reach further, and serve several steps (default 0.1)"),
        INT("--mesh", "N", &o.mesh, 0, 1000,
            "drum: sides of triangles, in N x N pieces each (default 0: of planes)"),
        DOUBLE("--lifters", "H", &o.lifters, 0, 10,
               "with --mesh: the height of a bar on each side (default 0: none)"),
        DOUBLE("--fill", "F", &o.fill, 0.01, 0.6,
               "how full the drum is of more than 100,000 (default 0.5)"),
        DOUBLE("--softness", "S", &o.softness, 0.01, 1,
               "part of the stiffness that no fall exceeds: longer time steps (default 1)"),
        INT("--sort-every", "N", &o.sort_every, 0, INT_MAX,
            "steps after which tablets are sorted in memory by cells (default 0: never)"),
        FLAG("--no-history", &o.no_history, "contacts keep nothing"),
        TEXT("--save", "FILE", &o.save, "the state at the end"),
        TEXT("--load", "FILE", &o.load, "begin with the state of --save"),
        INT("--slice", "N", &o.slice, 1, 10000,
            "drum: the tablets are one of N equal parts along the axis of a longer drum"),
        INT("--copies", "N", &o.copies, 1, 10000,
            "drum and box: --load a part, and N of it side by side, every second a mirror image"),
        INT("--seed", "N", &o.seed, 0, INT_MAX, "of places and turns at the start (default 1)"),
        FLAG("--packed", &o.packed,
             "drum and box: start with tablets that lie flat and close, not with room to turn"),
        FLAG("--shuffle", &o.shuffle, "tablets lie in memory in random order (table 6.11)"),
        FLAG("--forms", &o.forms, "in the end, time forces with and without lists"),
        FLAG("--check", &o.check, "GPU: compare with serial steps, in a short run"),
        TEXT("--tables", "FILE", &o.tables,
             "GPU: measure what tables 6.4, 6.9 and 6.11 and figure 6.10 of the source show"),
        INT("--tables-steps", "N", &o.tables_steps, 20, 1000000,
            "of each curve of figure 6.10 (default 400)"),
        TEXT("--out", "FILE", &o.out, "the picture (default build/tablets_SCENE.png)"),
        OPTIONS_END};
    options_read(argc, argv, table, NULL, "Bi-convex tablets: contacts of convex shapes.",
                 "--scene drum -n 500 --seconds 1");
    if (o.packed && o.spheres > 0) stop(2, "--packed is for tablets: without --spheres");
    if (o.mesh && strcmp(o.scene, "drum") != 0) stop(2, "--mesh is for --scene drum");
    if (o.lifters > 0 && (!o.mesh || o.packed))
        stop(2, "--lifters are for a drum with --mesh, without --packed");
    if (o.slice > 1 && strcmp(o.scene, "drum") != 0) stop(2, "--slice is for --scene drum");
    if (o.copies > 1 && (!o.load || o.n % o.copies))
        stop(2, "--copies: --load, and n of as many equal parts");
    if (o.copies > 1 && o.slice > 1) stop(2, "--copies or --slice");
#ifndef __CUDACC__
    if (o.check || o.tables) stop(2, "--check and --tables are for the program on a GPU");
#endif
    return o;
}
#endif

/* -------------------------------------------------------------------------------------------------
   >>scene
   ---------------------------------------------------------------------------------------------- */

typedef struct scene {
    const tablet_options *options;
    int kind;
    dem_bodies bodies;
    dem_real *sums;             /* [6 n] force and torque */
    shape shapes[2];            /* tablet; sphere of the same volume */
    int32_t *id;                /* [n] number of each tablet at the start */
    const double *tone;         /* [n] in pictures: light to dark, 0 to 1; NULL: by id */
    int32_t deep;
    dem_walls walls;            /* the drum as a mesh; else all 0 */
    dem_wall_state touched;
    dem_real *corners;          /* [9 triangles] of the mesh */
    ugrid grid;
    ugrid_desc cells;
    nlist pairs;
    nlist_desc desc;
    double drum, length, omega; /* the drum: inner radius, length, turns */
    double wide[2];             /* the box */
    double mass, seconds;
    int64_t step, builds;
    dem_real start[3];          /* lean: where the tablet was */
} scene;

enum { SIDES = 8, LAYERS = 10 }; /* of the drum; of tablets in the box at the start */

#include "tablets_mesh.h"

/* Planes of the drum, which has turned by `angle` about the y axis, and both its ends. */
static void place_drum(scene *s, double angle)
{
    dem_system *d = &s->bodies.base;
    int k;
    d->planes = SIDES + 2;
    for (k = 0; k < SIDES; k++) {
        double const at = angle + 2 * PI * k / SIDES;
        dem_plane *plane = &d->plane[k];
        plane->normal[0] = (dem_real)-sin(at);
        plane->normal[2] = (dem_real)-cos(at);
        plane->offset = (dem_real)-s->drum;
        plane->motion.omega[1] = (dem_real)s->omega;
    }
    for (k = 0; k < 2; k++) {
        dem_plane *end = &d->plane[SIDES + k];
        end->normal[1] = k ? -1 : 1;
        end->offset = (dem_real)(-s->length / 2);
        end->motion.omega[1] = (dem_real)s->omega;
    }
    turn_walls(s, angle);
}

/* How far sites of the lattice at the start are from each other. All have room to turn, but where
   tablets are packed: there they touch from the first step on. */
static void size_sites(const scene *s, double site[3])
{
    const tablet_options *o = s->options;
    site[0] = site[1] = site[2] = 2.02 * (double)s->shapes[0].bound;
    if (!o->packed || (s->kind != SCENE_DRUM && s->kind != SCENE_BOX)) return;
    site[0] = site[1] = 2.02 * o->radius;
    site[2] = 0.999 * (o->band + 2 * o->cap);
}

/* An open box, as wide as it must be for LAYERS of tablets; of copies, as near to a square as their
   number allows. */
static void place_box(scene *s)
{
    dem_system *d = &s->bodies.base;
    int32_t const copies = s->options->copies;
    int32_t across = (int32_t)sqrt((double)copies);
    double site[3];
    int k;
    while (copies % across) across--;
    size_sites(s, site);
    s->length = site[0] * ceil(sqrt((double)s->options->n / copies / LAYERS));
    s->wide[0] = across * s->length;
    s->wide[1] = copies / across * s->length;
    d->planes = 5;
    d->plane[4].normal[2] = 1;
    for (k = 0; k < 4; k++) {
        d->plane[k].normal[k / 2] = k % 2 ? -1 : 1;
        d->plane[k].offset = (dem_real)(-s->wide[k / 2] / 2);
    }
}

static void place_corner(scene *s)
{
    dem_system *d = &s->bodies.base;
    d->planes = 2;
    d->plane[0].normal[2] = 1; /* the floor, z = 0 */
    d->plane[1].normal[0] = 1; /* the wall, x = 0 */
}

/* Spheres are evenly spread over the numbers. */
static int is_sphere(const scene *s, int32_t i)
{
    return s->kind != SCENE_LEAN &&
           floor((i + 1) * s->options->spheres) > floor(i * s->options->spheres);
}

static void place(scene *s, int32_t i, double x, double y, double z, const double turn[4])
{
    size_t const at = 4 * (size_t)i;
    int const kind = is_sphere(s, i);
    double length = 0;
    int k;
    for (k = 0; k < 4; k++) length += turn[k] * turn[k];
    for (k = 0; k < 4; k++) s->bodies.turn[at + (size_t)k] = (dem_real)(turn[k] / sqrt(length));
    s->bodies.base.pos[at] = (dem_real)x;
    s->bodies.base.pos[at + 1] = (dem_real)y;
    s->bodies.base.pos[at + 2] = (dem_real)z;
    s->bodies.base.pos[at + 3] = s->shapes[kind].bound;
    s->bodies.base.spin[at + 3] = (dem_real)kind;
    s->bodies.base.vel[at + 3] = (dem_real)(1 / s->mass);
}

/* Turned about y so that the upper edge touches the wall and the lower one the floor. */
static void place_leaning(scene *s)
{
    double const half = (90 - s->options->lean) * PI / 360, turn[4] = {cos(half), 0, sin(half), 0};
    dem_real const left[3] = {-1, 0, 0}, down[3] = {0, 0, -1}, zero[3] = {0, 0, 0};
    dem_real p[3], q[3];
    shape_placed body;
    place(s, 0, 0, 0, 0, turn);
    body = dem_body_at(&s->bodies, 0, zero);
    shape_furthest(&body, 1, left, p);
    shape_furthest(&body, 1, down, q);
    s->bodies.base.pos[0] = s->start[0] = s->shapes[0].rounding - p[0];
    s->bodies.base.pos[2] = s->start[2] = s->shapes[0].rounding - q[2];
}

static void random_turn(uint64_t *seed, double turn[4])
{
    double length;
    int k;
    do {
        length = 0;
        for (k = 0; k < 4; k++) {
            turn[k] = 2 * random_double(seed) - 1;
            length += turn[k] * turn[k];
        }
    } while (length > 1 || length < 0.01);
}

/* Flat, with either score line up, and askew by a little. */
static void flat_turn(uint64_t *seed, double turn[4])
{
    double const half = PI * random_double(seed);
    turn[0] = cos(half);
    turn[1] = 0.004 * (2 * random_double(seed) - 1);
    turn[2] = 0.004 * (2 * random_double(seed) - 1);
    turn[3] = sin(half);
}

/* Is body i in front of all planes, or no further behind than neighbours are packed? */
static int is_free(const scene *s, int32_t i)
{
    const dem_system *d = &s->bodies.base;
    dem_real const zero[3] = {0, 0, 0};
    shape_placed const body = dem_body_at(&s->bodies, i, zero);
    shape_touch touch;
    int32_t k;
    for (k = 0; k < d->planes; k++) {
        dem_real const away = dem_dot(d->plane[k].normal, d->pos + 4 * (size_t)i);
        if (away - d->plane[k].offset > body.body->bound) continue;
        if (shape_plane(&body, d->plane[k].normal, d->plane[k].offset - away, &touch) ==
                SHAPE_TOUCH &&
            (double)touch.overlap > 0.02 * s->options->rounding)
            return 0;
    }
    return 1;
}

/* Every tablet flies to the middle, and tumbles. */
static void throw_at_middle(scene *s, int32_t i, uint64_t *seed)
{
    size_t const at = 4 * (size_t)i;
    const shape *body = dem_body_shape(&s->bodies, i);
    dem_real inertia[3];
    int k;
    for (k = 0; k < 3; k++) inertia[k] = (dem_real)s->mass * body->inertia[k];
    for (k = 0; k < 3; k++) {
        double const away = (double)s->bodies.base.pos[at + (size_t)k];
        s->bodies.base.vel[at + (size_t)k] =
            (dem_real)(-5 * away + 0.1 * (2 * random_double(seed) - 1));
        s->bodies.momentum[at + (size_t)k] =
            (dem_real)(60 * (2 * random_double(seed) - 1) * (double)inertia[2]);
    }
    dem_spin_of(s->bodies.turn + at, inertia, s->bodies.momentum + at, s->bodies.base.spin + at);
}

/* Places on a lattice, in layers from below, turned at random or flat; in the drum those with room
   around. */
static void place_lattice(scene *s)
{
    double site[3];
    size_sites(s, site);
    int const drum = s->kind == SCENE_DRUM, box = s->kind == SCENE_BOX,
              wide = drum  ? (int)(2 * s->drum / site[0])
                     : box ? (int)(s->length / site[0] + 0.5) : (int)ceil(cbrt(s->options->n)),
              deep = drum ? (int)(s->length / site[1]) : wide,
              high = drum ? (int)(2 * s->drum / site[2]) : box ? LAYERS : wide;
    int const packed = drum && s->options->packed;
    double const bottom = box      ? 0.5
                          : packed ? 0.5 - s->drum / site[2] : -0.5 * (high - 1);
    uint64_t seed = random_seed(s->options->seed);
    int32_t i = 0;
    int x, y, z;
    for (z = 0; z < high; z++)
        for (x = 0; x < wide; x++)
            for (y = 0; y < deep && i < s->options->n; y++) {
                double const px = site[0] * (x - 0.5 * (wide - 1)),
                             py = site[1] * (y - 0.5 * (deep - 1)), pz = site[2] * (z + bottom);
                double turn[4];
                if (drum && !packed &&
                    hypot(px, pz) + (double)s->shapes[0].bound + s->options->lifters > s->drum)
                    continue;
                if (s->options->packed) flat_turn(&seed, turn);
                else random_turn(&seed, turn);
                place(s, i, px, py, pz, turn);
                if (packed && !is_free(s, i)) continue;
                if (s->kind == SCENE_CLOUD) throw_at_middle(s, i, &seed);
                i++;
            }
    if (i < s->options->n) stop(1, "only %ld tablets found room", (long)i);
}

/* Neighbours lie far apart in memory, as after long mixing. */
static void shuffle(scene *s)
{
    dem_bodies *b = &s->bodies;
    dem_real *const of_each[] = {b->base.pos, b->base.vel, b->base.spin, b->turn, b->momentum};
    uint64_t seed = random_seed(s->options->seed);
    int32_t i;
    int k;
    for (i = b->base.n - 1; i > 0; i--) {
        int32_t const j = random_below(&seed, i + 1), id = s->id[i];
        s->id[i] = s->id[j];
        s->id[j] = id;
        for (k = 0; k < 5; k++) {
            dem_real was[4], *one = of_each[k] + 4 * (size_t)i, *other = of_each[k] + 4 * (size_t)j;
            memcpy(was, one, sizeof was);
            memmove(one, other, sizeof was); /* i may be j */
            memcpy(other, was, sizeof was);
        }
    }
}

/* The drum is as wide as 14 tablets, with many of them half as wide as it is long: in a tube of a
   kilometre floats would be too coarse. They fill half of the lattice in it, many --fill. */
static void size_drum(scene *s)
{
    const tablet_options *o = s->options;
    double const step = 2.02 * (double)s->shapes[0].bound;
    double site[3];
    size_sites(s, site);
    double const all = (double)o->n * o->slice;
    int const many = s->kind == SCENE_DRUM && all > 100000;
    /* as many as have room to turn in the space of n sites */
    double const full = many ? o->fill / 0.5 : 1,
                 n = all / full * (site[0] * site[1] * site[2]) / (step * step * step);
    double const radius = many ? ceil(cbrt(n * 49 / 280)) : 7;
    s->drum = radius * step;
    s->length = step * (1.2 + ceil(n * 49 / (70 * radius * radius))) / o->slice;
    s->omega = o->rpm * 2 * PI / 60;
    if (s->kind == SCENE_DRUM) place_drum(s, 0);
}

/* How far surfaces are pressed into each other: under a tablet's own weight a hundredth of a
   millimetre and, where they fall, less than the edges' rounding. */
static double stiffness(const scene *s)
{
    double const speed2 = s->kind == SCENE_CLOUD ? 1 : 2 * gravity * s->drum,
                 most = 0.8 * (double)s->shapes[0].rounding;
    if (s->kind == SCENE_LEAN) return s->mass * gravity / 1e-5;
    return s->options->softness * 0.5 * s->mass * speed2 / (most * most);
}

static void set_material(scene *s)
{
    dem_system *d = &s->bodies.base;
    int const free_flight = s->kind == SCENE_CLOUD;
    d->between = d->walls = dem_material_of(stiffness(s), free_flight ? 1 : 0.6, 0.35,
                                            free_flight ? 0 : s->options->mu);
    d->dt = (dem_real)(dem_contact_time(&d->between, s->mass / 2) / s->options->steps);
    if (!free_flight) d->gravity[2] = (dem_real)-gravity;
}

/* Cells as wide as the lists reach. The cloud flies apart: what is outside is in the outer
   cells. */
static void set_search(scene *s)
{
    double const reach = 2 * (double)s->shapes[0].bound;
    double const skin = s->options->skin * s->options->radius;
    double const half = s->kind == SCENE_DRUM ? s->drum * 1.1 : 20 * reach;
    int k;
    for (k = 0; k < 3; k++) {
        double const out = s->kind == SCENE_DRUM && k == 1  ? s->length / 2 + reach
                           : s->kind == SCENE_BOX && k != 2 ? s->wide[k] / 2 + reach : half;
        s->cells.min[k] = (ugrid_real)(s->kind == SCENE_BOX && k == 2 ? 0 : -out);
        s->cells.max[k] = (ugrid_real)(s->kind == SCENE_BOX && k == 2 ? (LAYERS + 1) * reach : out);
    }
    s->cells.cell = (ugrid_real)(reach + skin);
    s->desc.radius = (dem_real)reach;
    s->desc.skin = (dem_real)skin;
    s->desc.layout = NLIST_DYNAMIC;
    s->desc.half = 1;
    s->desc.grow = 1;
    s->desc.history = s->options->no_history ? 0 : DEM_BODY_HISTORY;
    s->cells.inverse = s->options->sort_every > 0 || s->options->tables;
}

static dem_real *records(const scene *s)
{
    return (dem_real *)zeros((size_t)s->bodies.base.n, DEM_STRIDE);
}

/* Arrays of the tablets; springs at planes, where there is no mesh. */
static void make_bodies(scene *s)
{
    dem_bodies *b = &s->bodies;
    size_t const n = (size_t)b->base.n;
    int32_t i;
    b->base.pos = records(s);
    b->base.vel = records(s);
    b->base.spin = records(s);
    b->turn = records(s);
    b->momentum = records(s);
    b->base.plane_history = s->options->mesh
                                ? NULL : (dem_real *)zeros(n * DEM_PLANES, 4 * sizeof(dem_real));
    b->shapes = s->shapes;
    b->deep = &s->deep;
    s->sums = (dem_real *)zeros(n * DEM_SUMS, sizeof(dem_real));
    s->id = (int32_t *)zeros(n, sizeof(int32_t));
    for (i = 0; i < b->base.n; i++) s->id[i] = i;
}

static void forget_bodies(scene *s)
{
    dem_bodies *b = &s->bodies;
    free(b->base.pos);
    free(b->base.vel);
    free(b->base.spin);
    free(b->turn);
    free(b->momentum);
    free(b->base.plane_history);
    free(s->sums);
    free(s->id);
}

/* Does the next step sort tablets? */
static int sorts(const scene *s)
{
    int32_t const every = s->options->sort_every;
    return every > 0 && s->step % every == 0;
}

#include "tablets_save.h"

static scene *scene_new(const tablet_options *o, int history)
{
    scene *s = (scene *)zeros(1, sizeof *s);
    dem_bodies *b = &s->bodies;
    static double const usual[] = {5, 0.4, 0.2, 0.2};
    s->options = o;
    s->kind = option_find(scene_names, "--scene", o->scene);
    s->seconds = o->seconds > 0 ? o->seconds : usual[s->kind];
    s->shapes[0] = shape_tablet(o->radius, o->band, o->cap, o->rounding);
    s->shapes[1] = shape_sphere(cbrt((double)s->shapes[0].volume * 3 / (4 * PI)));
    if (s->shapes[0].kind == SHAPE_NONE)
        stop(2, "these sizes are no tablet: --cap at most --radius; --rounding so small that a "
                "band is left");
    s->mass = density * (double)s->shapes[0].volume;
    b->base.n = s->kind == SCENE_LEAN ? 1 : o->n;
    b->base.history_off = !history || o->no_history;
    make_bodies(s);
    size_drum(s);
    if (o->mesh) make_walls(s);
    if (s->kind == SCENE_LEAN) place_corner(s);
    if (s->kind == SCENE_BOX) place_box(s);
    set_material(s);
    set_search(s);
    if (o->load) load_scene(s);
    else if (s->kind == SCENE_LEAN) place_leaning(s);
    else place_lattice(s);
    if (o->shuffle) shuffle(s);
    return s;
}

static void scene_free(scene *s)
{
    forget_bodies(s);
    ugrid_free(&s->grid);
    nlist_free(&s->pairs);
    free_walls(s);
    free(s);
}

#endif /* TABLETS_H */
