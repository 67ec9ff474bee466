/* boids.c - a flock of 20 thousand birds at 60 pictures a second on one core, and a predator that you move with the mouse.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: ugrid.h in a program that has to be ready in time. In every step a periodic grid is built, every bird looks at all
   others within its sight, turns, and flies on. Methods and walks are switched while it flies: they take different times, and give
   the same flock, bit for bit.

   How to run it:

       make build/boids && build/boids --window        (from the top of the repository; SDL2, Debian: libsdl2-dev), or
       cc -O3 examples/boids.c -o boids -lstb -lm
       cc -O3 -DBOIDS_WINDOW examples/boids.c -o boids -lstb -lm $(pkg-config --cflags --libs sdl2)
       ./boids --steps 1200 --png flock.png
       ./boids --help

   What to look at: >>rules and >>flock in boids.h, 150 lines. boids.cu is the same program on a GPU. */

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* clock_gettime, mkdir */
#endif

#ifndef UGRID_IMPLEMENTATION
#define UGRID_IMPLEMENTATION
#endif
#include "boids.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "dem_draw.h"

/* ------------------------------------------------------------------------------------------------
   >>options
   ------------------------------------------------------------------------------------------------ */

typedef struct boids_options {
    int32_t n, steps, width, seed, method, walk;
    int window, bench, check;
    double near;
    const char *png, *write;
} boids_options;

typedef struct boids_method { const char *name; ugrid_method method; ugrid_placement placement; } boids_method;

enum { BOIDS_METHODS = 7, BOIDS_WALKS = 5 };

static const boids_method boids_methods[BOIDS_METHODS] = {
    {"auto", UGRID_AUTO, UGRID_LOOSE}, {"count", UGRID_COUNT, UGRID_LOOSE}, {"sort", UGRID_SORT, UGRID_LOOSE},
    {"fixed", UGRID_FIXED, UGRID_LOOSE}, {"list", UGRID_LIST, UGRID_LOOSE}, {"list-packed", UGRID_LIST_PACKED, UGRID_LOOSE},
    {"tight", UGRID_COUNT, UGRID_TIGHT}
};

/* In the order of ugrid_walk. */
static const char *const boids_walks[BOIDS_WALKS] = {"auto", "cells", "strips", "modular", "hybrid"};

/* Ends the program with a sentence. `status`: 1 = a file or the machine, 2 = the command line. */
#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 2, 3)))
#endif
static void boids_stop(int status, const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    fputs("boids: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(status);
}

static void boids_must(ugrid_result result)
{
    if (result != UGRID_OK) boids_stop(1, "%s", ugrid_result_text(result));
}

static void boids_help(void)
{
    puts("usage: boids [options]\n\n"
         "A flock flies, and flees from a predator. Options:\n\n"
         "  --boids N        how many (default 20000; boids.cu: 1000000)\n"
         "  --steps N        steps, 60 a second (default 600; with --window: until it is closed)\n"
         "  --near K         how many others each would see if they were spread evenly (default 12)\n"
         "  --method NAME    auto (default), count, sort, fixed, list, list-packed, tight\n"
         "  --walk NAME      auto (default), cells, strips, modular, hybrid\n"
         "  --seed N         of the start (default 1)\n"
         "  --window         show it: the mouse is the predator; keys are told there\n"
         "  --png FILE       draw the end\n"
         "  --width W        of window and picture (default 1280; the height is 9/16 of it)\n"
         "  --write FILE     write the end, a line \"x y vx vy\" for each bird\n"
         "  --bench          draw and write nothing, only say how long a step takes\n"
         "  --check          print nothing but \"name value\" lines\n"
         "  --demo           20 seconds of flight, drawn into build/demo/boids.png\n"
         "  --help           this text");
    exit(0);
}

static double boids_number(const char *option, const char *text, double least, double most, int whole)
{
    char *end;
    double value;
    if (!text) boids_stop(2, "%s needs a value (--help tells)", option);
    value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most) || (whole && value != floor(value)))
        boids_stop(2, "%s %s: a %snumber from %g to %g is needed", option, text, whole ? "whole " : "", least, most);
    return value;
}

static const char *boids_text(const char *option, const char *text)
{
    if (!text) boids_stop(2, "%s needs a value (--help tells)", option);
    return text;
}

static int32_t boids_find(const char *option, const char *text, const char *name_of(int32_t), int32_t count)
{
    int32_t k;
    boids_text(option, text);
    for (k = 0; k < count; k++)
        if (strcmp(text, name_of(k)) == 0) return k;
    boids_stop(2, "%s %s: there is no such name (--help lists them)", option, text);
}

static const char *boids_method_name(int32_t k) { return boids_methods[k].name; }
static const char *boids_walk_name(int32_t k) { return boids_walks[k]; }

static int32_t boids_height(int32_t width) { return width * 9 / 16; }

/* Does ugrid.h know this walk for this method? Then desc has both. */
static ugrid_result boids_choose(ugrid_desc *desc, int32_t method, int32_t walk)
{
    ugrid_desc wanted = *desc, resolved;
    ugrid_result result;
    wanted.method = boids_methods[method].method;
    wanted.placement = boids_methods[method].placement;
    wanted.walk = (ugrid_walk)walk;
    result = ugrid_defaults(&resolved, &wanted);
    if (result == UGRID_OK) *desc = wanted;
    return result;
}

static boids_options boids_parse(char **argument, int32_t n)
{
    boids_options o;
    int steps_given = 0;
    memset(&o, 0, sizeof o);
    o.n = n;
    o.steps = 600;
    o.width = 1280;
    o.seed = 1;
    o.near = 12;
    while (*++argument) {
        const char *name = *argument;
        if (strcmp(name, "--help") == 0) boids_help();
        else if (strcmp(name, "--window") == 0) o.window = 1;
        else if (strcmp(name, "--bench") == 0) o.bench = 1;
        else if (strcmp(name, "--check") == 0) o.check = 1;
        else if (strcmp(name, "--demo") == 0) { o.steps = 1200; steps_given = 1; o.png = "build/demo/boids.png"; }
        else if (strcmp(name, "--boids") == 0) o.n = (int32_t)boids_number(name, *++argument, 1, 1e8, 1);
        else if (strcmp(name, "--steps") == 0) { o.steps = (int32_t)boids_number(name, *++argument, 0, 1e9, 1); steps_given = 1; }
        else if (strcmp(name, "--near") == 0) o.near = boids_number(name, *++argument, 0.1, 1000, 0);
        else if (strcmp(name, "--width") == 0) o.width = (int32_t)boids_number(name, *++argument, 320, 16384, 1);
        else if (strcmp(name, "--seed") == 0) o.seed = (int32_t)boids_number(name, *++argument, 0, 1e9, 1);
        else if (strcmp(name, "--png") == 0) o.png = boids_text(name, *++argument);
        else if (strcmp(name, "--write") == 0) o.write = boids_text(name, *++argument);
        else if (strcmp(name, "--method") == 0) o.method = boids_find(name, *++argument, boids_method_name, BOIDS_METHODS);
        else if (strcmp(name, "--walk") == 0) o.walk = boids_find(name, *++argument, boids_walk_name, BOIDS_WALKS);
        else boids_stop(2, "unknown option %s (--help lists them)", name);
    }
    if (o.bench) o.png = o.write = NULL;
    if (o.window && !steps_given) o.steps = INT32_MAX;
    return o;
}

/* The flock that the options ask for. */
static boids_flock boids_begin(const boids_options *o)
{
    boids_model const model = boids_model_of(o->n, (float)o->near);
    boids_flock flock;
    ugrid_result result;
    if (!boids_start(&flock, &model, o->n, (uint32_t)o->seed)) boids_stop(1, "out of memory");
    result = boids_choose(&flock.desc, o->method, o->walk);
    if (result != UGRID_OK)
        boids_stop(2, "--method %s --walk %s: %s", boids_methods[o->method].name, boids_walks[o->walk], ugrid_result_text(result));
    return flock;
}

/* A predator that nobody leads flies in loops. */
static void boids_hunt(boids_model *model)
{
    double const t = model->step * (double)BOIDS_TICK * 90 / (double)model->box[0];
    model->predator[0] = model->box[0] * (float)(0.5 + 0.42 * sin(0.31 * t));
    model->predator[1] = model->box[1] * (float)(0.5 + 0.38 * sin(0.47 * t + 1));
    model->hunted = 1;
}

static double boids_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ------------------------------------------------------------------------------------------------
   >>picture
   ------------------------------------------------------------------------------------------------ */

/* Birds are printed with stamps: triangles in so many directions, moved by so many parts of a pixel each way. */
enum { BOIDS_HEADINGS = 64, BOIDS_PARTS = 4, BOIDS_STAMP = 32 /* at most so wide */ };

typedef struct boids_picture {
    dem_canvas canvas;
    int size;               /* width and height of a stamp */
    unsigned char *stamps;  /* how much it covers, 0 .. 255, of red, green and blue of each of its pixels */
} boids_picture;

static unsigned char *boids_stamp(const boids_picture *picture, int heading, int part_x, int part_y)
{
    int const number = (heading * BOIDS_PARTS + part_y) * BOIDS_PARTS + part_x;
    return picture->stamps + 3 * (size_t)number * (size_t)(picture->size * picture->size);
}

/* A triangle with soft edges, `length` pixels from its tip to its base. */
static void boids_cut_stamp(unsigned char *stamp, int size, double length, double angle, double x, double y)
{
    double const thin = length < 4 ? length * length / 16 : 1; /* what is smaller than that gets fainter instead */
    double const half = fmax(length, 4) / 2;
    int k;
    for (k = 0; k < size * size; k++) {
        double const dx = k % size + 0.5 - x, dy = k / size + 0.5 - y;
        double const u = dx * cos(angle) - dy * sin(angle), w = fabs(dx * sin(angle) + dy * cos(angle));
        double const inside = fmin(u + half, (half - u) * 0.3 - w) + 0.5; /* pixels to the nearest edge */
        memset(stamp + 3 * k, (int)(255 * thin * fmax(0, fmin(1, inside))), 3);
    }
}

static boids_picture boids_picture_new(const boids_options *o, const boids_model *model)
{
    double const length = fmin(0.62 * o->width / (double)model->box[0], BOIDS_STAMP - 4);
    boids_picture picture;
    int heading, x, y;
    picture.size = (int)fmax(length, 4) + 4;
    picture.stamps = (unsigned char *)malloc(3 * (size_t)(BOIDS_HEADINGS * BOIDS_PARTS * BOIDS_PARTS * picture.size * picture.size));
    if (!picture.stamps || !dem_canvas_new(&picture.canvas, o->width, boids_height(o->width), dem_color_of(0, 0, 0)))
        boids_stop(1, "out of memory");
    for (heading = 0; heading < BOIDS_HEADINGS; heading++)
        for (y = 0; y < BOIDS_PARTS; y++)
            for (x = 0; x < BOIDS_PARTS; x++)
                boids_cut_stamp(boids_stamp(&picture, heading, x, y), picture.size, length, heading * 6.283185307 / BOIDS_HEADINGS,
                                picture.size / 2 + (x + 0.5) / BOIDS_PARTS, picture.size / 2 + (y + 0.5) / BOIDS_PARTS);
    return picture;
}

static void boids_picture_free(boids_picture *picture)
{
    free(picture->canvas.rgb);
    free(picture->stamps);
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
static void boids_draw_bird(boids_picture *picture, float x, float y, const float v[2])
{
    dem_canvas *canvas = &picture->canvas;
    int const heading = (int)(atan2f(v[1], v[0]) * (BOIDS_HEADINGS / 6.2831853f) + BOIDS_HEADINGS + 0.5f) % BOIDS_HEADINGS;
    int const left = (int)x - picture->size / 2, top = (int)y - picture->size / 2;
    int const begin = left < 0 ? -left : 0, end = left + picture->size > canvas->width ? canvas->width - left : picture->size;
    const unsigned char *stamp = boids_stamp(picture, heading, (int)(x * BOIDS_PARTS) % BOIDS_PARTS, (int)(y * BOIDS_PARTS) % BOIDS_PARTS);
    unsigned char color[3 * BOIDS_STAMP];
    int row, k;
    boids_color(v, color);
    for (k = 3; k < 3 * picture->size; k++) color[k] = color[k - 3]; /* as the stamp has it: a plain loop below, which compilers make wide */
    for (row = 0; row < picture->size; row++, stamp += 3 * picture->size) {
        unsigned char *to = canvas->rgb + 3 * ((ptrdiff_t)(top + row) * canvas->width + left);
        if (top + row < 0 || top + row >= canvas->height) continue;
        for (k = 3 * begin; k < 3 * end; k++)
            to[k] = (unsigned char)((uint16_t)(to[k] * (uint16_t)(256 - stamp[k]) + color[k] * (uint16_t)stamp[k]) >> 8);
    }
}

static void boids_draw_predator(dem_canvas *canvas, double x, double y, double scale)
{
    double const size = scale < 3 ? 3 : scale;
    dem_disc(canvas, x, y, 0.9 * size, dem_color_of(0.25, 0.05, 0.08));
    dem_disc(canvas, x, y, 0.6 * size, dem_color_of(1, 0.25, 0.3));
    dem_disc(canvas, x, y, 0.25 * size, dem_color_of(1, 0.9, 0.9));
}

/* A line of text on a dark strip. */
static void boids_draw_text(dem_canvas *canvas, int y, const char *text)
{
    int const scale = canvas->width >= 960 ? 2 : 1;
    size_t const begin = 3 * (size_t)y * (size_t)canvas->width, end = begin + 3 * (size_t)(13 * scale) * (size_t)canvas->width;
    size_t k;
    for (k = begin; k < end; k++) canvas->rgb[k] /= 4;
    dem_text(canvas, 6 * scale, y + 3 * scale, scale, dem_color_of(0.92, 0.94, 1), text);
}

static void boids_draw(boids_picture *picture, const boids_flock *flock, const char *title)
{
    dem_canvas *canvas = &picture->canvas;
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
        boids_draw_bird(picture, p[0] * scale, high - p[1] * scale, flock->vel + 2 * (size_t)i);
    }
    if (m->hunted) boids_draw_predator(canvas, (double)(m->predator[0] * scale), (double)(high - m->predator[1] * scale), (double)scale);
    boids_draw_text(canvas, 0, title);
}

/* What the method and walk are, the automatic ones by what they have become. */
static void boids_title(const boids_flock *flock, double ms, char text[DEM_TEXT])
{
    const ugrid_desc *desc = &flock->grid.desc;
    int32_t k = BOIDS_METHODS - 1;
    while (k > 0 && (boids_methods[k].method != desc->method || boids_methods[k].placement != desc->placement)) k--;
    snprintf(text, DEM_TEXT, "%ld boids   %.1f neighbours each   method %s, walk %s   %.2f ms a step", (long)flock->n,
             (double)flock->near / flock->n, boids_methods[k].name, boids_walks[desc->walk], ms);
}

/* Makes the last folder of a path that ends with a file; what is wrong with it, the file will say. */
static void boids_save(const dem_canvas *canvas, const char *path)
{
    char folder[1024];
    const char *slash = strrchr(path, '/');
    if (slash && slash > path && (size_t)(slash - path) < sizeof folder) {
        memcpy(folder, path, (size_t)(slash - path));
        folder[slash - path] = 0;
        mkdir(folder, 0777);
    }
    if (!dem_save(canvas, path)) boids_stop(1, "%s: could not be written: %s", path, strerror(errno));
}

/* ------------------------------------------------------------------------------------------------
   >>figures
   ------------------------------------------------------------------------------------------------ */

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
    int32_t *at = (int32_t *)malloc((size_t)flock->n * sizeof *at), i;
    FILE *file = fopen(path, "w");
    int wrong;
    if (!file || !at) boids_stop(1, "%s: %s", path, strerror(errno));
    for (i = 0; i < flock->n; i++) at[flock->id[i]] = i;
    fprintf(file, "# %ld birds after %lu steps, in a box of %.9g x %.9g: x y vx vy\n", (long)flock->n,
            (unsigned long)flock->model.step, (double)flock->model.box[0], (double)flock->model.box[1]);
    for (i = 0; i < flock->n; i++) {
        const float *p = flock->pos + 2 * (size_t)at[i], *v = flock->vel + 2 * (size_t)at[i];
        fprintf(file, "%.9g %.9g %.9g %.9g\n", (double)p[0], (double)p[1], (double)v[0], (double)v[1]);
    }
    wrong = ferror(file);
    if (fclose(file) != 0 || wrong) boids_stop(1, "%s: could not be written: %s", path, strerror(errno));
    free(at);
}

/* What there is to say and to draw at the end; flock->near has been counted for it. Times in seconds; longest 0: not known. */
static void boids_finish(const boids_options *o, const boids_flock *flock, double total, double longest)
{
    boids_figures const f = boids_figures_of(flock);
    double const steps = flock->model.step ? flock->model.step : 1;
    if (o->write) boids_write(flock, o->write);
    if (o->png) {
        boids_picture picture = boids_picture_new(o, &flock->model);
        char title[DEM_TEXT];
        boids_title(flock, 1e3 * total / steps, title);
        boids_draw(&picture, flock, title);
        boids_save(&picture.canvas, o->png);
        boids_picture_free(&picture);
    }
    if (o->check)
        printf("boids %ld\nsteps %lu\nnear %lld\nslowest %.9g\nfastest %.9g\norder %.6f\ndigest %016llx\n", (long)flock->n,
               (unsigned long)flock->model.step, (long long)flock->near, f.slowest, f.fastest, f.order, (unsigned long long)f.digest);
    else {
        if (o->png) printf("picture: %s\n", o->png);
        printf("%ld boids, %lu steps: %.3f ms a step, ", (long)flock->n, (unsigned long)flock->model.step, 1e3 * total / steps);
        if (longest > 0) printf("the longest %.3f, ", 1e3 * longest);
        printf("%.1f neighbours each\n", (double)flock->near / flock->n);
    }
}

/* boids.cu includes this file for all above, and to check the GPU's steps against the serial ones. */
#ifndef __CUDACC__

/* ------------------------------------------------------------------------------------------------
   >>run
   ------------------------------------------------------------------------------------------------ */

typedef struct boids_run {
    boids_options options;
    boids_flock flock;
    double total, longest, recent;  /* seconds: all steps, the longest, and about the last 30 */
} boids_run;

static void boids_run_step(boids_run *run)
{
    double const begun = boids_now();
    double spent;
    boids_must(boids_step(&run->flock));
    spent = boids_now() - begun;
    run->total += spent;
    run->longest = fmax(run->longest, spent);
    run->recent = run->recent > 0 ? run->recent + (spent - run->recent) / 30 : spent;
}

#ifdef BOIDS_WINDOW

#define SDL_MAIN_HANDLED /* main is ours */
#include <SDL.h>

/* ------------------------------------------------------------------------------------------------
   >>window: the same picture, copied; no OpenGL
   ------------------------------------------------------------------------------------------------ */

typedef struct boids_window {
    SDL_Window *window;
    boids_picture picture;
    int waits, closed, shots;
    double rate;                /* pictures a second */
} boids_window;

static void boids_window_draw(boids_window *w, const boids_run *run)
{
    char text[DEM_TEXT];
    dem_canvas *c = &w->picture.canvas;
    SDL_Surface *to = SDL_GetWindowSurface(w->window);
    SDL_Surface *from = SDL_CreateRGBSurfaceWithFormatFrom(c->rgb, c->width, c->height, 24, 3 * c->width, SDL_PIXELFORMAT_RGB24);
    int const line = c->width >= 960 ? 26 : 13;
    boids_title(&run->flock, 1e3 * run->recent, text);
    snprintf(text + strlen(text), DEM_TEXT - strlen(text), "   %.0f pictures a second", w->rate);
    boids_draw(&w->picture, &run->flock, text);
    boids_draw_text(c, c->height - line,
                    "mouse: predator   1..7: method   w: walk   space: wait   s: save a picture   q: quit");
    if (!to || !from || SDL_BlitSurface(from, NULL, to, NULL) != 0 || SDL_UpdateWindowSurface(w->window) != 0)
        boids_stop(1, "--window: %s", SDL_GetError());
    SDL_FreeSurface(from);
}

static void boids_window_shot(boids_window *w)
{
    char path[64];
    snprintf(path, sizeof path, "boids_%02d.png", w->shots++);
    boids_save(&w->picture.canvas, path);
    printf("picture: %s\n", path);
}

/* The next walk that this method has; with another method, the same walk if it has it. */
static void boids_window_choose(boids_run *run, int32_t method, int32_t walk)
{
    while (boids_choose(&run->flock.desc, method, walk) != UGRID_OK) walk = (walk + 1) % BOIDS_WALKS;
    run->options.method = method;
    run->options.walk = walk;
}

static void boids_window_key(boids_window *w, boids_run *run, SDL_Keycode key)
{
    const boids_options *o = &run->options;
    if (key >= SDLK_1 && key < SDLK_1 + BOIDS_METHODS) boids_window_choose(run, (int32_t)(key - SDLK_1), o->walk);
    if (key == SDLK_w) boids_window_choose(run, o->method, (o->walk + 1) % BOIDS_WALKS);
    if (key == SDLK_SPACE) w->waits = !w->waits;
    if (key == SDLK_s) boids_window_shot(w);
    if (key == SDLK_q || key == SDLK_ESCAPE) w->closed = 1;
}

/* The predator is where the mouse is; without a mouse it flies on its own. */
static void boids_window_hunt(const boids_window *w, boids_model *model)
{
    int x, y;
    boids_hunt(model);
    if (SDL_GetMouseFocus() != w->window) return;
    SDL_GetMouseState(&x, &y);
    model->predator[0] = model->box[0] * (float)x / (float)w->picture.canvas.width;
    model->predator[1] = model->box[1] * (1 - (float)y / (float)w->picture.canvas.height);
}

static void boids_window_run(boids_run *run)
{
    boids_window w;
    double shown = 0, now;
    memset(&w, 0, sizeof w);
    w.picture = boids_picture_new(&run->options, &run->flock.model);
    SDL_SetMainReady();
    if (SDL_Init(SDL_INIT_VIDEO) != 0) boids_stop(1, "--window: %s", SDL_GetError());
    w.window = SDL_CreateWindow("boids", SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED, w.picture.canvas.width,
                                w.picture.canvas.height, 0);
    if (!w.window) boids_stop(1, "--window: %s", SDL_GetError());
    while (!w.closed && (int64_t)run->flock.model.step < run->options.steps) {
        SDL_Event event;
        while (SDL_PollEvent(&event)) {
            if (event.type == SDL_QUIT) w.closed = 1;
            if (event.type == SDL_KEYDOWN) boids_window_key(&w, run, event.key.keysym.sym);
        }
        boids_window_hunt(&w, &run->flock.model);
        if (!w.waits) boids_run_step(run);
        boids_window_draw(&w, run);
        while ((now = boids_now()) < shown + (double)BOIDS_TICK) SDL_Delay(1);
        if (shown > 0) w.rate += (1 / (now - shown) - w.rate) / (w.rate > 0 ? 30 : 1);
        shown = now;
    }
    boids_picture_free(&w.picture);
    SDL_DestroyWindow(w.window);
    SDL_Quit();
}

#else

static void boids_window_run(boids_run *run)
{
    (void)run;
    boids_stop(2, "--window: this program was made without SDL2 (Debian: libsdl2-dev), or without -DBOIDS_WINDOW");
}

#endif

int main(int argc, char **argv)
{
    boids_run run;
    (void)argc;
    memset(&run, 0, sizeof run);
    run.options = boids_parse(argv, 20000);
    run.flock = boids_begin(&run.options);
    if (run.options.window) boids_window_run(&run);
    else
        while ((int64_t)run.flock.model.step < run.options.steps) {
            boids_hunt(&run.flock.model);
            boids_run_step(&run);
        }
    boids_must(boids_build(&run.flock)); /* neighbours at the end */
    boids_look(&run.flock);
    boids_finish(&run.options, &run.flock, run.total, run.longest);
    boids_free(&run.flock);
    return 0;
}

#endif
