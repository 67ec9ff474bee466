/* boids_support.h - what boids.c and boids.cu share besides the rules: options, the view, figures.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef BOIDS_SUPPORT_H
#define BOIDS_SUPPORT_H

#include "boids.h"
#include "../common/options.h"
#include "../common/window.h"

/* -------------------------------------------------------------------------------------------------
   >>options
   ---------------------------------------------------------------------------------------------- */

typedef struct boids_options {
    int32_t n, steps, width, seed, method, walk, window, bench, check, demo;
    double near;
    const char *png, *write, *method_name, *walk_name;
} boids_options;

/* The numbers of this table are what the keys 1 .. 7 choose. */
static const option_name boids_methods[] = {
    {"auto", UGRID_AUTO}, {"count", UGRID_COUNT}, {"sort", UGRID_SORT}, {"fixed", UGRID_FIXED},
    {"list", UGRID_LIST}, {"list-packed", UGRID_LIST_PACKED}, {"tight", UGRID_COUNT}, {NULL, 0}
};
enum { BOIDS_TIGHT = 6, BOIDS_METHODS = 7, BOIDS_WALKS = 5 };
static const option_name boids_walks[] = { /* in the order of ugrid_walk */
    {"auto", 0}, {"cells", 1}, {"strips", 2}, {"modular", 3}, {"hybrid", 4}, {NULL, 0}
};

static void boids_must(ugrid_result result)
{
    if (result != UGRID_OK) stop(1, "%s", ugrid_result_text(result));
}

static int32_t boids_height(int32_t width) { return width * 9 / 16; }

static ugrid_placement boids_placement(int32_t method)
{
    return method == BOIDS_TIGHT ? UGRID_TIGHT : UGRID_LOOSE;
}

/* Does ugrid.h know this walk for this method? Then desc has both. */
static ugrid_result boids_choose(ugrid_desc *desc, int32_t method, int32_t walk)
{
    ugrid_desc wanted = *desc, resolved;
    ugrid_result result;
    wanted.method = (ugrid_method)boids_methods[method].value;
    wanted.placement = boids_placement(method);
    wanted.walk = (ugrid_walk)walk;
    result = ugrid_defaults(&resolved, &wanted);
    if (result == UGRID_OK) *desc = wanted;
    return result;
}

static boids_options boids_parse(int argc, char **argv, int32_t n)
{
    boids_options o;
    const option_line table[] = {
        INT("--boids", "N", &o.n, 1, 1e8, "how many (default 20000; boids.cu: 1000000)"),
        INT("--steps", "N", &o.steps, 0, 1e9,
            "steps, 60 a second (default 600; --window: until it is closed)"),
        DOUBLE("--near", "K", &o.near, 0.1, 1000,
               "neighbours of each if all were spread evenly (default 12)"),
        TEXT("--method", "NAME", &o.method_name,
             "auto (default), count, sort, fixed, list, list-packed, tight"),
        TEXT("--walk", "NAME", &o.walk_name, "auto (default), cells, strips, modular, hybrid"),
        INT("--seed", "N", &o.seed, 0, 1e9, "of the start (default 1)"),
        FLAG("--window", &o.window, "show it: the mouse is the predator; keys are told there"),
        TEXT("--png", "FILE", &o.png, "draw the end"),
        INT("--width", "W", &o.width, 320, 16384,
            "of window and picture (default 1280; height: 9/16 of it)"),
        TEXT("--write", "FILE", &o.write, "write the end, a line \"x y vx vy\" for each boid"),
        FLAG("--bench", &o.bench, "draw and write nothing, only say how long a step takes"),
        FLAG("--check", &o.check, "print nothing but \"name value\" lines"),
        FLAG("--demo", &o.demo, "20 seconds of flight, drawn into build/demo/boids.png"),
        OPTIONS_END};
    int32_t k;
    memset(&o, 0, sizeof o);
    o.n = n;
    o.steps = -1;
    o.width = 1280;
    o.seed = 1;
    o.near = 12;
    o.method_name = o.walk_name = "auto";
    options_read(argc, argv, table, NULL, "A flock flies, and flees from a predator.", NULL);
    if (o.demo && !o.png) o.png = "build/demo/boids.png";
    if (o.steps < 0) o.steps = o.demo ? 1200 : o.window ? INT32_MAX : 600;
    if (o.bench) o.png = o.write = NULL;
    option_find(boids_methods, "--method", o.method_name);
    for (k = 0; strcmp(boids_methods[k].name, o.method_name) != 0;) k++;
    o.method = k;
    o.walk = option_find(boids_walks, "--walk", o.walk_name);
    if (o.window) window_must_exist();
    return o;
}

/* The flock that the options ask for. */
static boids_flock boids_begin(const boids_options *o)
{
    boids_model const model = boids_model_of(o->n, (float)o->near);
    boids_flock flock;
    ugrid_result result;
    if (!boids_start(&flock, &model, o->n, (uint32_t)o->seed)) stop(1, "out of memory");
    result = boids_choose(&flock.desc, o->method, o->walk);
    if (result != UGRID_OK)
        stop(2, "--method %s --walk %s: %s", o->method_name, o->walk_name,
             ugrid_result_text(result));
    return flock;
}

/* Without a mouse the predator flies in loops. */
static void boids_hunt(boids_model *model)
{
    double const t = model->step * (double)BOIDS_TICK * 90 / (double)model->box[0];
    model->predator[0] = model->box[0] * (float)(0.5 + 0.42 * sin(0.31 * t));
    model->predator[1] = model->box[1] * (float)(0.5 + 0.38 * sin(0.47 * t + 1));
    model->hunted = 1;
}

/* -------------------------------------------------------------------------------------------------
   >>picture
   ---------------------------------------------------------------------------------------------- */

/* Birds are printed with stamps: triangles in so many directions, moved by so many parts of a
   pixel each way. */
enum { BOIDS_HEADINGS = 64, BOIDS_PARTS = 4, BOIDS_STAMP = 32 /* at most so wide */ };

typedef struct boids_canvas {
    picture canvas;
    int size;               /* width and height of a stamp */
    /* how much it covers, 0 .. 255, of red, green and blue of each of its pixels */
    unsigned char *stamps;
} boids_canvas;

static unsigned char *boids_stamp(const boids_canvas *view, int heading, int part_x, int part_y)
{
    int const number = (heading * BOIDS_PARTS + part_y) * BOIDS_PARTS + part_x;
    return view->stamps + 3 * (size_t)number * (size_t)(view->size * view->size);
}

/* A triangle with soft edges, `length` pixels from its tip to its base. */
static void boids_cut_stamp(unsigned char *stamp, int size, double length, double angle, double x,
                            double y)
{
    /* what is smaller than that gets fainter instead */
    double const thin = length < 4 ? length * length / 16 : 1;
    double const half = fmax(length, 4) / 2;
    int k;
    for (k = 0; k < size * size; k++) {
        double const dx = k % size + 0.5 - x, dy = k / size + 0.5 - y;
        double const u = dx * cos(angle) - dy * sin(angle),
                     w = fabs(dx * sin(angle) + dy * cos(angle));
        /* pixels to the nearest edge */
        double const inside = fmin(u + half, (half - u) * 0.3 - w) + 0.5;
        memset(stamp + 3 * k, (int)(255 * thin * fmax(0, fmin(1, inside))), 3);
    }
}

static boids_canvas boids_canvas_new(const boids_options *o, const boids_model *model)
{
    double const length = fmin(0.62 * o->width / (double)model->box[0], BOIDS_STAMP - 4);
    boids_canvas view;
    int heading, x, y;
    view.size = (int)fmax(length, 4) + 4;
    view.canvas = picture_new(o->width, boids_height(o->width), gray(0));
    view.stamps = (unsigned char *)zeros(
        1, 3 * (size_t)(BOIDS_HEADINGS * BOIDS_PARTS * BOIDS_PARTS * view.size * view.size));
    for (heading = 0; heading < BOIDS_HEADINGS; heading++)
        for (y = 0; y < BOIDS_PARTS; y++)
            for (x = 0; x < BOIDS_PARTS; x++)
                boids_cut_stamp(boids_stamp(&view, heading, x, y), view.size, length,
                                heading * 6.283185307 / BOIDS_HEADINGS,
                                view.size / 2 + (x + 0.5) / BOIDS_PARTS,
                                view.size / 2 + (y + 0.5) / BOIDS_PARTS);
    return view;
}

static void boids_canvas_free(boids_canvas *view)
{
    picture_free(&view->canvas);
    free(view->stamps);
}

/* Red, green and blue are three directions, 120 degrees apart. */
static void boids_color(const float v[2], unsigned char color[3])
{
    float const speed = boids_length(v), c = v[0] / speed, s = v[1] / speed;
    color[0] = (unsigned char)(255 * (0.58f + 0.42f * c));
    color[1] = (unsigned char)(255 * (0.58f + 0.42f * (0.8660254f * s - 0.5f * c)));
    color[2] = (unsigned char)(255 * (0.58f - 0.42f * (0.8660254f * s + 0.5f * c)));
}

/* One bird at (x, y), in pixels (y goes down); v: where it flies (y goes up). */
static void boids_draw_bird(boids_canvas *view, float x, float y, const float v[2])
{
    picture *canvas = &view->canvas;
    int const heading =
        (int)(atan2f(v[1], v[0]) * (BOIDS_HEADINGS / 6.2831853f) + BOIDS_HEADINGS + 0.5f) %
        BOIDS_HEADINGS;
    int const left = (int)x - view->size / 2, top = (int)y - view->size / 2;
    int const begin = left < 0 ? -left : 0,
              end = left + view->size > canvas->width ? canvas->width - left : view->size;
    const unsigned char *stamp = boids_stamp(view, heading, (int)(x * BOIDS_PARTS) % BOIDS_PARTS,
                                             (int)(y * BOIDS_PARTS) % BOIDS_PARTS);
    unsigned char color[3 * BOIDS_STAMP];
    int row, k;
    boids_color(v, color);
    /* as the stamp has it: a plain loop below, which compilers make wide */
    for (k = 3; k < 3 * view->size; k++) color[k] = color[k - 3];
    for (row = 0; row < view->size; row++, stamp += 3 * view->size) {
        unsigned char *to = canvas->rgb + 3 * ((ptrdiff_t)(top + row) * canvas->width + left);
        if (top + row < 0 || top + row >= canvas->height) continue;
        for (k = 3 * begin; k < 3 * end; k++)
            to[k] = (unsigned char)((uint16_t)(to[k] * (uint16_t)(256 - stamp[k]) +
                                               color[k] * (uint16_t)stamp[k]) >>
                                    8);
    }
}

static void boids_draw_predator(picture *canvas, double x, double y, double scale)
{
    double const size = scale < 3 ? 3 : scale;
    draw_disc(canvas, x, y, 0.9 * size, rgb_of(0.25, 0.05, 0.08));
    draw_disc(canvas, x, y, 0.6 * size, rgb_of(1, 0.25, 0.3));
    draw_disc(canvas, x, y, 0.25 * size, rgb_of(1, 0.9, 0.9));
}

/* A line of text on a dark strip. */
static void boids_draw_text(picture *canvas, int y, const char *text)
{
    int const scale = canvas->width >= 960 ? 2 : 1;
    size_t const begin = 3 * (size_t)y * (size_t)canvas->width,
                 end = begin + 3 * (size_t)(13 * scale) * (size_t)canvas->width;
    size_t k;
    for (k = begin; k < end; k++) canvas->rgb[k] /= 4;
    draw_text(canvas, 6 * scale, y + 3 * scale, scale, rgb_of(0.92, 0.94, 1), text);
}

static void boids_draw(boids_canvas *view, const boids_flock *flock, const char *title)
{
    picture *canvas = &view->canvas;
    const boids_model *m = &flock->model;
    float const scale = (float)canvas->width / m->box[0], high = (float)canvas->height;
    int32_t i;
    size_t k, bytes = 3 * (size_t)canvas->width * (size_t)canvas->height;
    for (k = 0; k < bytes; k += 3) {
        canvas->rgb[k] = 7;
        canvas->rgb[k + 1] = 9;
        canvas->rgb[k + 2] = 17;
    }
    for (i = 0; i < flock->n; i++) {
        const float *p = flock->pos + 2 * (size_t)i;
        boids_draw_bird(view, p[0] * scale, high - p[1] * scale, flock->vel + 2 * (size_t)i);
    }
    if (m->hunted)
        boids_draw_predator(canvas, (double)(m->predator[0] * scale),
                            (double)(high - m->predator[1] * scale), (double)scale);
    boids_draw_text(canvas, 0, title);
}

/* What the method and walk are, the automatic ones by what they have become. */
static void boids_title(const boids_flock *flock, double ms, char text[PICTURE_TEXT])
{
    const ugrid_desc *desc = &flock->grid.desc;
    int32_t k = BOIDS_METHODS - 1;
    while (k > 0 &&
           (boids_methods[k].value != (int)desc->method || boids_placement(k) != desc->placement))
        k--;
    snprintf(text, PICTURE_TEXT,
             "%ld boids   %.1f neighbours each   method %s, walk %s   %.2f ms a step",
             (long)flock->n, (double)flock->near / flock->n, boids_methods[k].name,
             boids_walks[desc->walk].name, ms);
}

/* -------------------------------------------------------------------------------------------------
   >>figures
   ---------------------------------------------------------------------------------------------- */

typedef struct boids_figures {
    double slowest, fastest;
    double order;           /* 0: they fly in all directions; 1: all in one */
    uint64_t digest;        /* of all bits, whatever the order */
} boids_figures;

static boids_figures boids_figures_of(const boids_flock *flock)
{
    boids_figures f;
    double sum[2] = {0, 0};
    int32_t i;
    int a;
    memset(&f, 0, sizeof f);
    f.slowest = 1e30;
    for (i = 0; i < flock->n; i++) {
        const float *p = flock->pos + 2 * (size_t)i, *v = flock->vel + 2 * (size_t)i;
        double const speed = hypot((double)v[0], (double)v[1]);
        uint32_t bits[4], hash = (uint32_t)flock->id[i];
        memcpy(bits, p, 8);
        memcpy(bits + 2, v, 8);
        for (a = 0; a < 4; a++) hash = boids_scramble(hash + bits[a]);
        for (a = 0; a < 2; a++) sum[a] += (double)v[a] / speed / flock->n;
        f.digest += hash;
        f.slowest = fmin(f.slowest, speed);
        f.fastest = fmax(f.fastest, speed);
    }
    f.order = hypot(sum[0], sum[1]);
    return f;
}

/* In the order of the start; "%.9g" has every bit of a float. */
static void boids_write(const boids_flock *flock, const char *path)
{
    int32_t *at = (int32_t *)zeros((size_t)flock->n, sizeof *at), i;
    out_file const out = create_file(path);
    FILE *const file = out.file;
    for (i = 0; i < flock->n; i++) at[flock->id[i]] = i;
    fprintf(file, "# %ld birds after %lu steps, in a box of %.9g x %.9g: x y vx vy\n",
            (long)flock->n, (unsigned long)flock->model.step, (double)flock->model.box[0],
            (double)flock->model.box[1]);
    for (i = 0; i < flock->n; i++) {
        const float *p = flock->pos + 2 * (size_t)at[i], *v = flock->vel + 2 * (size_t)at[i];
        fprintf(file, "%.9g %.9g %.9g %.9g\n", (double)p[0], (double)p[1], (double)v[0],
                (double)v[1]);
    }
    close_file(&out);
    free(at);
}

/* What there is to say and to draw at the end; flock->near has been counted for it. Times in
   seconds; longest 0: not known. */
static void boids_finish(const boids_options *o, const boids_flock *flock, double total,
                         double longest)
{
    boids_figures const f = boids_figures_of(flock);
    double const steps = flock->model.step ? flock->model.step : 1;
    if (o->write) boids_write(flock, o->write);
    if (o->png) {
        boids_canvas view = boids_canvas_new(o, &flock->model);
        char title[PICTURE_TEXT];
        boids_title(flock, 1e3 * total / steps, title);
        boids_draw(&view, flock, title);
        picture_save(&view.canvas, o->png);
        boids_canvas_free(&view);
    }
    if (o->check)
        printf("boids %ld\nsteps %lu\nnear %lld\nslowest %.9g\nfastest %.9g\norder %.6f\ndigest "
               "%016llx\n",
               (long)flock->n, (unsigned long)flock->model.step, (long long)flock->near, f.slowest,
               f.fastest, f.order, (unsigned long long)f.digest);
    else {
        if (o->png) printf("picture: %s\n", o->png);
        printf("%ld boids, %lu steps: %.3f ms a step, ", (long)flock->n,
               (unsigned long)flock->model.step, 1e3 * total / steps);
        if (longest > 0) printf("the longest %.3f, ", 1e3 * longest);
        printf("%.1f neighbours each\n", (double)flock->near / flock->n);
    }
}

#endif /* BOIDS_SUPPORT_H */
