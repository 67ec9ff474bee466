/* hooks.h - bodies of several spheres: their shapes, where their spheres are, a scene of them.
   SPDX-License-Identifier: MIT OR Unlicense

   >>shapes   crosses and hooks: spheres that touch, mass and inertia
   >>scene    bodies, planes, lists; how one is placed
   >>spheres  from bodies to their spheres, and back

   Metres, kg, seconds. */

#ifndef HOOKS_H
#define HOOKS_H

#include "../common/dem_shapes.h"
#include "../common/random.h"

/* -------------------------------------------------------------------------------------------------
   >>shapes
   ---------------------------------------------------------------------------------------------- */

enum { CROSS, HOOK, SHAPES };

static double const radius = 0.003, density = 1300, gravity = 9.81;

/* In radii, x y; z is 0. The middle of mass is the origin, and symmetry makes the axes principal
   ones. A hook is open upwards: between its arms another one has room. */
static double const cross_at[][2] = {{0, 0}, {2, 0}, {-2, 0}, {0, 2}, {0, -2}};
static double const hook_at[][2] = {{-1, -1.5}, {1, -1.5}, {-3, -1.5}, {3, -1.5},
                                    {-3, 0.5},  {3, 0.5},  {-3, 2.5},  {3, 2.5}};

/* As a shape of shapes.h that would be the convex hull; mass and inertia are those of the spheres,
   which do not overlap: that of a ball, and that of its middle. */
static shape shape_of_spheres(const double (*at)[2], int32_t count)
{
    double sphere[SHAPE_SPHERES][4], about[3] = {0, 0, 0};
    shape s;
    int32_t k;
    int a;
    for (k = 0; k < count; k++) {
        double const x = radius * at[k][0], y = radius * at[k][1],
                     far[3] = {y * y, x * x, x * x + y * y};
        sphere[k][0] = x;
        sphere[k][1] = y;
        sphere[k][2] = 0;
        sphere[k][3] = radius;
        for (a = 0; a < 3; a++) about[a] += (0.4 * radius * radius + far[a]) / count;
    }
    s = shape_glued((const double (*)[4])sphere, count);
    s.volume = (dem_real)(count * dem_mass(radius, 1));
    for (a = 0; a < 3; a++) s.inertia[a] = (dem_real)about[a];
    return s;
}

/* -------------------------------------------------------------------------------------------------
   >>scene
   ---------------------------------------------------------------------------------------------- */

/* Spheres of body i: first[i] .. first[i + 1] - 1. `spheres` is the system whose contacts are
   listed; its masses are those of the bodies, so that a contact is damped as one of the bodies. */
typedef struct scene {
    shape shapes[SHAPES];
    dem_bodies bodies;
    dem_system spheres;
    int32_t *first, *body;          /* [bodies + 1]; of a sphere */
    int64_t *exclude_start;         /* of nlist_desc: a sphere excludes those of its body */
    int32_t *exclude;
    dem_real *sums, *body_sums;
    ugrid_desc cells;
    ugrid grid;
    nlist_desc desc;
    nlist pairs;
    int64_t step, builds;
} scene;

static const shape *shape_at(const scene *s, int32_t i) { return dem_body_shape(&s->bodies, i); }
static double body_mass(const scene *s, int32_t i)
{
    return density * (double)shape_at(s, i)->volume;
}

static dem_real *records(int32_t n) { return (dem_real *)zeros((size_t)n, DEM_STRIDE); }

/* n bodies, of shapes kind[0 .. n-1], all at the origin. A hook that falls 0.1 m onto one sphere is
   pressed in by a tenth of its radius. */
static scene *scene_new(int32_t n, const int32_t *kind, double e, double mu, int history)
{
    scene *s = (scene *)zeros(1, sizeof *s);
    dem_system *d = &s->bodies.base;
    double const most = 0.1 * radius, speed2 = 2 * gravity * 0.1;
    double heaviest;
    int32_t i;
    s->shapes[CROSS] = shape_of_spheres(cross_at, 5);
    s->shapes[HOOK] = shape_of_spheres(hook_at, 8);
    s->bodies.shapes = s->shapes;
    heaviest = density * (double)s->shapes[HOOK].volume;
    d->n = n;
    d->pos = records(n);
    d->vel = records(n);
    d->spin = records(n);
    s->bodies.turn = records(n);
    s->bodies.momentum = records(n);
    s->body_sums = (dem_real *)zeros((size_t)n * DEM_SUMS, sizeof(dem_real));
    s->first = (int32_t *)zeros((size_t)n + 1, sizeof(int32_t));
    for (i = 0; i < n; i++) {
        d->spin[4 * (size_t)i + 3] = (dem_real)kind[i];
        s->bodies.turn[4 * (size_t)i] = 1;
        d->vel[4 * (size_t)i + 3] = (dem_real)(1 / body_mass(s, i));
        s->first[i + 1] = s->first[i] + shape_at(s, i)->spheres;
    }
    d->between = d->walls = dem_material_of(heaviest * speed2 / (most * most), e, 0.35, mu);
    d->dt = (dem_real)(dem_contact_time(&d->between, heaviest / 8) / 40);
    d->history_off = !history;
    return s;
}

/* Lists of spheres, when planes and weight are known. */
static void scene_begin(scene *s)
{
    dem_system *d = &s->spheres;
    int32_t const bodies = s->bodies.base.n, n = s->first[bodies];
    int32_t i, k, j, at = 0;
    *d = s->bodies.base;
    d->n = n;
    d->pos = records(n);
    d->vel = records(n);
    d->spin = records(n);
    d->plane_history = (dem_real *)zeros((size_t)n * DEM_PLANES, 4 * sizeof(dem_real));
    s->sums = (dem_real *)zeros((size_t)n * DEM_SUMS, sizeof(dem_real));
    s->body = (int32_t *)zeros((size_t)n, sizeof(int32_t));
    s->exclude_start = (int64_t *)zeros((size_t)n + 1, sizeof(int64_t));
    s->exclude = (int32_t *)zeros((size_t)n * SHAPE_SPHERES, sizeof(int32_t));
    for (i = 0; i < bodies; i++)
        for (k = s->first[i]; k < s->first[i + 1]; k++) {
            s->body[k] = i;
            for (j = s->first[i]; j < k; j++) s->exclude[at++] = j;
            s->exclude_start[k + 1] = at;
        }
    s->desc.exclude_start = s->exclude_start;
    s->desc.exclude = s->exclude;
    s->desc.history = DEM_HISTORY;
    s->desc.half = 1;
    s->desc.radius = (dem_real)(2 * radius);
    s->desc.skin = (dem_real)(0.2 * radius);
    s->cells.cell = s->desc.radius + s->desc.skin;
}

static void scene_free(scene *s)
{
    const dem_system *both[] = {&s->bodies.base, &s->spheres};
    int k;
    for (k = 0; k < 2; k++) {
        free(both[k]->pos);
        free(both[k]->vel);
        free(both[k]->spin);
    }
    free(s->spheres.plane_history);
    free(s->bodies.turn);
    free(s->bodies.momentum);
    free(s->sums);
    free(s->body_sums);
    free(s->first);
    free(s->body);
    free(s->exclude_start);
    free(s->exclude);
    ugrid_free(&s->grid);
    nlist_free(&s->pairs);
    free(s);
}

/* turn: a quaternion of any length. */
static void place(scene *s, int32_t i, double x, double y, double z, const double turn[4])
{
    size_t const at = 4 * (size_t)i;
    double length = 0;
    int k;
    for (k = 0; k < 4; k++) length += turn[k] * turn[k];
    for (k = 0; k < 4; k++) s->bodies.turn[at + (size_t)k] = (dem_real)(turn[k] / sqrt(length));
    s->bodies.base.pos[at] = (dem_real)x;
    s->bodies.base.pos[at + 1] = (dem_real)y;
    s->bodies.base.pos[at + 2] = (dem_real)z;
}

static void moments(const scene *s, int32_t i, dem_real inertia[3])
{
    int a;
    for (a = 0; a < 3; a++) inertia[a] = (dem_real)body_mass(s, i) * shape_at(s, i)->inertia[a];
}

static void throw_body(scene *s, int32_t i, const double speed[3], const double momentum[3])
{
    size_t const at = 4 * (size_t)i;
    dem_real inertia[3];
    size_t a;
    for (a = 0; a < 3; a++) {
        s->bodies.base.vel[at + a] = (dem_real)speed[a];
        s->bodies.momentum[at + a] = (dem_real)momentum[a];
    }
    moments(s, i, inertia);
    dem_spin_of(s->bodies.turn + at, inertia, s->bodies.momentum + at, s->bodies.base.spin + at);
}

static void add_plane(scene *s, double x, double y, double z, double offset)
{
    dem_plane *plane = &s->bodies.base.plane[s->bodies.base.planes++];
    plane->normal[0] = (dem_real)x;
    plane->normal[1] = (dem_real)y;
    plane->normal[2] = (dem_real)z;
    plane->offset = (dem_real)offset;
}

/* -------------------------------------------------------------------------------------------------
   >>spheres
   ---------------------------------------------------------------------------------------------- */

/* From the middle of body i to its sphere k, in the room. */
static void arm_of(const scene *s, int32_t i, int32_t k, dem_real arm[3])
{
    const dem_real *at = shape_at(s, i)->sphere[k - s->first[i]];
    dem_real axes[3][3];
    int a;
    shape_axes(s->bodies.turn + 4 * (size_t)i, axes);
    arm[0] = arm[1] = arm[2] = 0;
    for (a = 0; a < 3; a++) dem_add(arm, at[a], axes[a]);
}

/* A sphere moves as its place of the body does, and spins with it. */
static void place_spheres(scene *s)
{
    const dem_system *b = &s->bodies.base;
    int32_t k;
    for (k = 0; k < s->spheres.n; k++) {
        int32_t const i = s->body[k];
        size_t const from = 4 * (size_t)i, to = 4 * (size_t)k;
        dem_real arm[3], *v = s->spheres.vel + to, *p = s->spheres.pos + to;
        arm_of(s, i, k, arm);
        dem_cross(b->spin + from, arm, v);
        dem_add(v, 1, b->vel + from);
        v[3] = b->vel[from + 3];
        memcpy(p, b->pos + from, 3 * sizeof *p);
        dem_add(p, 1, arm);
        p[3] = (dem_real)radius;
        memcpy(s->spheres.spin + to, b->spin + from, 3 * sizeof *p);
    }
}

/* Forces and torques of the spheres, about the middle of their body. */
static void gather_forces(scene *s)
{
    int32_t k;
    memset(s->body_sums, 0, (size_t)s->bodies.base.n * DEM_SUMS * sizeof *s->body_sums);
    for (k = 0; k < s->spheres.n; k++) {
        const dem_real *own = s->sums + DEM_SUMS * (size_t)k;
        dem_real *sum = s->body_sums + DEM_SUMS * (size_t)s->body[k], arm[3];
        arm_of(s, s->body[k], k, arm);
        dem_body_push(sum, arm, own);
        dem_add(sum + 3, 1, own + 3);
    }
}

#endif /* HOOKS_H */
