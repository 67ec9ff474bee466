/* nlist_steps_input.h - the options and points of nlist_steps.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef NLIST_STEPS_INPUT_H
#define NLIST_STEPS_INPUT_H

#include "../common/steps.h"

typedef struct options {
    int32_t n, seed, steps, width;  /* n 0: the default */
    double radius;
    const char *points, *out;
} options;

typedef struct scene {
    int32_t n, steps;
    double start[MOST][4];      /* x y and what is added to them each step */
    nlist_real pos[2 * MOST];
    nlist_desc desc;
    nlist list;
    ugrid grid;
    picture page;               /* the steps */
    double left, bottom, size;  /* the window that all steps are seen through */
} scene;

static options parse(int argc, char **argv)
{
    options o = {0, 1, 4, 2, 1, NULL, "build/steps"};
    const option_line lines[] = {
        TEXT("--points", "FILE", &o.points, "your points: a line \"x y u v\" each, with velocity"),
        INT("-n", "N", &o.n, 1, MOST, "random points (default: 7 chosen ones)"),
        INT("--seed", "N", &o.seed, 0, 1e9, "of the random points (default 1)"),
        INT("--steps", "K", &o.steps, 0, 20, "steps after the first list (default 4)"),
        DOUBLE("--radius", "R", &o.radius, 1e-6, 1e6, "reach of a contact (default 1)"),
        INT("--width", "W", &o.width, 1, 16, "slots of a HYBRID row (default 2)"),
        TEXT("--out", "DIR", &o.out, "where layouts.png and life.png go (default build/steps)"),
        OPTIONS_END};
    options_read(argc, argv, lines, NULL,
                 "Lists the contacts of moving points and shows what each step does to the list.",
                 NULL);
    if (o.points && o.n) stop(2, "--points and -n: one of them is enough");
    return o;
}

/* The figure of nlist.h at step 0: 4, 5, 6 and 0 around 3, and 1 and 2 beyond 0. */
static const double seven[7][4] = {
    {2.125, 2, 0, -0.25},      {1.25, 2, 0, 0},        {0.375, 2, 0.125, 0}, {3, 2, 0, 0},
    {3, 2.875, -0.25, 0}, {3.875, 2, -0.125, -0.25}, {3, 1.125, 0, 0}};

static void points_of_file(scene *s, const char *name)
{
    table t = table_read(name, 4, "four finite numbers x y u v", "points");
    if (t.rows > MOST)
        stop(1, "%s: %ld points; at most %d can be shown", name, (long)t.rows, MOST);
    s->n = t.rows;
    memcpy(s->start, t.value, (size_t)t.rows * sizeof s->start[0]);
    table_free(&t);
}

/* In a square that has about 0.7 points in the square of the radius; multiples of a 32nd of the
   radius. */
static void random_points(scene *s, const options *o)
{
    uint64_t state = random_seed(o->seed);
    int32_t const side = (int32_t)(32 * sqrt(o->n / 0.7)) + 1;
    int32_t i;
    s->n = o->n;
    for (i = 0; i < s->n; i++) {
        s->start[i][0] = o->radius / 32 * random_below(&state, side);
        s->start[i][1] = o->radius / 32 * random_below(&state, side);
        s->start[i][2] = o->radius / 32 * (random_below(&state, 17) - 8);
        s->start[i][3] = o->radius / 32 * (random_below(&state, 17) - 8);
    }
}

static void positions_at(scene *s, int32_t step)
{
    int32_t i;
    for (i = 0; i < s->n; i++) {
        s->pos[2 * i] = (nlist_real)(s->start[i][0] + step * s->start[i][2]);
        s->pos[2 * i + 1] = (nlist_real)(s->start[i][1] + step * s->start[i][3]);
    }
}

/* A square around all points at all steps. */
static void look_at_all(scene *s)
{
    double low[2] = {1e300, 1e300}, high[2] = {-1e300, -1e300};
    int32_t i, step;
    int a;
    for (step = 0; step <= s->steps; step++)
        for (i = 0; i < s->n; i++)
            for (a = 0; a < 2; a++) {
                double const x = s->start[i][a] + step * s->start[i][2 + a];
                low[a] = fmin(low[a], x);
                high[a] = fmax(high[a], x);
            }
    s->size = fmax(high[0] - low[0], high[1] - low[1]) + 1.2 * (double)s->desc.radius;
    s->left = (low[0] + high[0] - s->size) / 2;
    s->bottom = (low[1] + high[1] - s->size) / 2;
}

static scene scene_new(const options *o)
{
    scene s;
    memset(&s, 0, sizeof s);
    s.steps = o->steps;
    s.n = 7;
    memcpy(s.start, seven, sizeof seven);
    if (o->points) points_of_file(&s, o->points);
    else if (o->n) random_points(&s, o);
    s.desc.dim = 2;
    s.desc.radius = (nlist_real)o->radius;
    s.desc.half = 1;
    s.desc.layout = NLIST_HYBRID;
    s.desc.width = o->width;
    s.desc.history = sizeof(memory);
    s.desc.events = 1;
    positions_at(&s, 0);
    look_at_all(&s);
    return s;
}

static void scene_free(scene *s)
{
    nlist_free(&s->list);
    ugrid_free(&s->grid);
}

#endif /* NLIST_STEPS_INPUT_H */
