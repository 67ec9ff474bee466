/* hooks_run.h - the scenes of hooks.c, what they print, and the picture.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef HOOKS_RUN_H
#define HOOKS_RUN_H

#include "../common/progress.h"
#include "../common/shade.h"

typedef struct hooks_options {
    int32_t n, seed;
    double seconds, mu;
    const char *out;
} hooks_options;

/* -------------------------------------------------------------------------------------------------
   >>rest
   ---------------------------------------------------------------------------------------------- */

/* How far a cross slides in half a second on a slope of 20 degrees (tan: 0.364), in radii. At the
   start it is pressed in as deep as it will be. */
static double run_rest(double mu, int history)
{
    static const int32_t kind[] = {CROSS};
    double const slope = 20 * PI / 180, turn[4] = {1, 0, 0, 0};
    scene *s = scene_new(1, kind, 0.5, mu, history);
    dem_system *d = &s->bodies.base;
    double const pressed =
        body_mass(s, 0) * gravity * cos(slope) / (5 * (double)d->walls.k_n);
    double moved;
    d->gravity[0] = (dem_real)(gravity * sin(slope));
    d->gravity[2] = (dem_real)(-gravity * cos(slope));
    add_plane(s, 0, 0, 1, 0);
    place(s, 0, 0, 0, radius - pressed, turn);
    scene_begin(s);
    advance(s, 0.5);
    moved = sqrt((double)dem_dot(d->pos, d->pos) - pow((double)d->pos[2], 2)) / radius;
    scene_free(s);
    return moved;
}

/* -------------------------------------------------------------------------------------------------
   >>collide
   ---------------------------------------------------------------------------------------------- */

/* Energy of motion; momentum, and angular momentum about the origin. */
static double measure(const scene *s, double momentum[6])
{
    double energy = 0;
    int32_t i;
    int k;
    memset(momentum, 0, 6 * sizeof *momentum);
    for (i = 0; i < s->bodies.base.n; i++) {
        size_t const at = 4 * (size_t)i;
        const dem_real *x = s->bodies.base.pos + at, *v = s->bodies.base.vel + at,
                       *l = s->bodies.momentum + at;
        dem_real turn[3];
        dem_cross(x, v, turn);
        energy += 0.5 * body_mass(s, i) * (double)dem_dot(v, v) +
                  0.5 * (double)dem_dot(s->bodies.base.spin + at, l);
        for (k = 0; k < 3; k++) {
            momentum[k] += body_mass(s, i) * (double)v[k];
            momentum[3 + k] += body_mass(s, i) * (double)turn[k] + (double)l[k];
        }
    }
    return energy;
}

/* What was lost, in parts. turned: by how much the velocity of the first has changed, in parts of
   0.4 m/s; 0 where they did not meet. */
typedef struct loss { double energy, momentum, turning, turned; } loss;

static double part_of(const double a[3], const double b[3], double whole)
{
    double const d[3] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
    return sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]) / whole;
}

static loss run_collide(void)
{
    static const int32_t kind[] = {CROSS, CROSS};
    static double const turn[2][4] = {{1, 0.2, 0.5, 0.1}, {0.3, 1, 0.2, 0.4}},
                        speed[2][3] = {{0.4, 0, 0}, {-0.4, 0.05, 0}};
    scene *s = scene_new(2, kind, 1, 0, 1);
    double const m = body_mass(s, 0), l = m * 0.4 * radius,
                 spin[2][3] = {{0.5 * l, l, 0}, {0, -l, 0.7 * l}};
    double before[6], after[6], energy, now[3];
    loss lost;
    int i;
    for (i = 0; i < 2; i++) {
        place(s, i, (i ? 7 : -7) * radius, i * radius, 0.4 * i * radius, turn[i]);
        throw_body(s, i, speed[i], spin[i]);
    }
    scene_begin(s);
    energy = measure(s, before);
    advance(s, 0.15);
    lost.energy = measure(s, after) / energy - 1;
    lost.momentum = part_of(before, after, m * 0.4);
    lost.turning = part_of(before + 3, after + 3, l);
    for (i = 0; i < 3; i++) now[i] = (double)s->bodies.base.vel[i];
    lost.turned = part_of(now, speed[0], 0.4);
    scene_free(s);
    return lost;
}

/* -------------------------------------------------------------------------------------------------
   >>hang
   ---------------------------------------------------------------------------------------------- */

/* The upper hook is open upwards and does not move; the lower one is upside down, its bar across on
   that of the upper. */
static scene *hang_new(double mu)
{
    static const int32_t kind[] = {HOOK, HOOK};
    static double const upright[4] = {1, 1, 0, 0}, upside[4] = {0.5, -0.5, -0.5, 0.5};
    scene *s = scene_new(2, kind, 0.5, mu, 1);
    s->bodies.base.vel[3] = 0;
    s->bodies.base.gravity[2] = (dem_real)-gravity;
    place(s, 0, 0, 0, 0, upright);
    place(s, 1, 0, 0, -1.55 * radius, upside);
    scene_begin(s);
    return s;
}

/* Would the convex hulls be pressed into each other by more than their roundings? */
static int hulls_are_deep(const scene *s)
{
    shape_placed hull[2];
    shape_touch touch;
    int i;
    for (i = 0; i < 2; i++)
        hull[i] = dem_body_at(&s->bodies, i, s->bodies.base.pos + 4 * i);
    return shape_contact(&hull[0], &hull[1], &touch) == SHAPE_DEEP;
}

/* sunk: in radii; held: the force that holds it, in weights. */
typedef struct hanging { double sunk, held; int deep; } hanging;

static hanging run_hang(scene *s)
{
    double const start = (double)s->bodies.base.pos[6];
    hanging h;
    h.deep = hulls_are_deep(s);
    advance(s, 0.5);
    h.sunk = (start - (double)s->bodies.base.pos[6]) / radius;
    h.held = (double)s->body_sums[DEM_SUMS + 2] / (body_mass(s, 1) * gravity);
    return h;
}

/* -------------------------------------------------------------------------------------------------
   >>heap
   ---------------------------------------------------------------------------------------------- */

/* Crosses and hooks in turn, turned at random, in layers of 3 x 3 above a box. */
static scene *heap_new(const hooks_options *o)
{
    enum { ACROSS = 3 };
    int32_t *kind = (int32_t *)zeros((size_t)o->n, sizeof *kind);
    uint64_t seed = random_seed(o->seed);
    double const site = 10.2 * radius, wide = 0.5 * ACROSS * site;
    scene *s;
    int32_t i;
    int k;
    for (i = 0; i < o->n; i++) kind[i] = i % 2 ? HOOK : CROSS;
    s = scene_new(o->n, kind, 0.5, o->mu, 1);
    for (i = 0; i < o->n; i++) {
        double turn[4];
        for (k = 0; k < 4; k++) turn[k] = 2 * random_double(&seed) - 1;
        place(s, i, site * (i % ACROSS + 0.5) - wide, site * (i / ACROSS % ACROSS + 0.5) - wide,
              site * (i / (ACROSS * ACROSS) + 0.5), turn);
    }
    free(kind);
    add_plane(s, 0, 0, 1, 0);
    for (k = 0; k < 4; k++)
        add_plane(s, k == 0 ? 1 : k == 1 ? -1 : 0, k == 2 ? 1 : k == 3 ? -1 : 0, 0, -wide);
    s->bodies.base.gravity[2] = (dem_real)-gravity;
    scene_begin(s);
    return s;
}

/* Contacts that push, between bodies; and the largest number between two bodies. */
static int64_t count_contacts(const scene *s, int32_t *most)
{
    int32_t *seen = (int32_t *)zeros((size_t)s->bodies.base.n, sizeof *seen);
    int64_t count = 0;
    int32_t i, k;
    *most = 0;
    for (i = 0; i < s->bodies.base.n; i++) {
        memset(seen, 0, (size_t)s->bodies.base.n * sizeof *seen);
        for (k = s->first[i]; k < s->first[i + 1]; k++) {
            nlist_each e = nlist_of(&s->pairs, k);
            while (nlist_next(&e)) {
                if (!(((const dem_real *)e.history)[3] > 0)) continue;
                count++;
                if (s->body[e.id] == i) stop(1, "spheres of one body are listed");
                if (++seen[s->body[e.id]] > *most) *most = seen[s->body[e.id]];
            }
        }
    }
    free(seen);
    return count;
}

/* -------------------------------------------------------------------------------------------------
   >>picture: from the front and above; halved in the end
   ---------------------------------------------------------------------------------------------- */

enum { PANEL = 900 };

static rgb body_color(int32_t i)
{
    static const rgb colors[] = {{0.85, 0.3, 0.2}, {0.2, 0.45, 0.8}, {0.95, 0.7, 0.2},
                                 {0.3, 0.65, 0.4}, {0.55, 0.35, 0.7}, {0.4, 0.7, 0.8}};
    return colors[i % 6];
}

/* `scale`: pixels for a metre; (x, y): the pixel of the point (0, 0, z). */
static void draw_bodies(picture *p, const scene *s, double scale, double x, double y, double z)
{
    double const tilt = 25 * PI / 180;
    int32_t k;
    for (k = 0; k < s->spheres.n; k++) {
        const dem_real *at = s->spheres.pos + 4 * (size_t)k;
        double const across = 0.94 * (double)at[0] + 0.34 * (double)at[1],
                     ahead = -0.34 * (double)at[0] + 0.94 * (double)at[1],
                     high = (double)at[2] - z;
        draw_sphere(p, (float)(x + scale * across),
                    (float)(y - scale * (high * cos(tilt) + ahead * sin(tilt))),
                    (float)(scale * radius), (float)(ahead * cos(tilt) - high * sin(tilt)),
                    (float)radius, body_color(s->body[k]));
    }
}

/* -------------------------------------------------------------------------------------------------
   >>all
   ---------------------------------------------------------------------------------------------- */

static void run_heap(const hooks_options *o, picture *p)
{
    progress bar = progress_begin("ms");
    scene *s = heap_new(o);
    double done, energy, ignored[6];
    int64_t contacts;
    int32_t most;
    for (done = 0; done < o->seconds;) {
        done = fmin(o->seconds, done + 0.01);
        advance(s, done);
        progress_show(&bar, (int64_t)(1e3 * done), (int64_t)(1e3 * o->seconds), "");
    }
    contacts = count_contacts(s, &most);
    energy = measure(s, ignored);
    draw_bodies(p, s, 6600, 1.5 * PANEL, 0.72 * PANEL, 0);
    printf("heap: %ld bodies of %ld spheres after %.2f s: %lld contacts, up to %ld between two "
           "bodies; energy of motion %.2e J\n",
           (long)o->n, (long)s->spheres.n, o->seconds, (long long)contacts, (long)most, energy);
    scene_free(s);
}

static void run_all(const hooks_options *o)
{
    picture p = picture_with_depth(2 * PANEL, PANEL, gray(1));
    double const with = run_rest(o->mu, 1), without = run_rest(o->mu, 0);
    loss const lost = run_collide();
    scene *s = hang_new(o->mu);
    hanging const h = run_hang(s);
    printf("rest: a cross on a slope moves by %.2e radii in 0.5 s with history, %.3f without\n",
           with, without);
    printf("collide: lost of energy %.1e, of momentum %.1e, of angular momentum %.1e\n",
           lost.energy, lost.momentum, lost.turning);
    printf("hang: sunk by %.3f radii in 0.5 s, held by %.4f of its weight; hulls would lie %s\n",
           h.sunk, h.held, h.deep ? "deep in each other" : "apart");
    draw_bodies(&p, s, 26000, 0.5 * PANEL, 0.5 * PANEL, -0.8 * radius);
    scene_free(s);
    run_heap(o, &p);
    picture_save_halved(&p, o->out);
    printf("picture: %s\n", o->out);
    printf("figures: rest_with %.3e rest_without %.4f energy %.3e momentum %.3e turning %.3e "
           "turned %.3f sunk %.4f held %.5f deep %d\n",
           with, without, lost.energy, lost.momentum, lost.turning, lost.turned, h.sunk, h.held,
           h.deep);
}

#endif /* HOOKS_RUN_H */
