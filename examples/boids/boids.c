/* boids.c - a flock of 20 thousand boids at 60 frames per second on one core, and a predator that
   you move with the mouse.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: ugrid.h in a program that has to be ready in time. In every step a periodic grid
   is built, every bird looks at all others within its sight, turns, and flies on. Methods and walks
   are switched while it flies: they take different times, and give the same flock, bit for bit.

   How to run it:

       make build/boids && build/boids --window        (from the top of the repository), or
       cc -O3 examples/boids/boids.c -o boids -lstb -lm
       (with -DBOIDS_WINDOW $(pkg-config --cflags --libs sdl2): --window; Debian: libsdl2-dev)
       ./boids --steps 1200 --png flock.png
       ./boids --help

   What to look at: >>rules and >>flock in boids.h, 150 lines. boids_support.h has options and
   pictures. boids.cu is the same program on a GPU. */

#define PROGRAM "boids"
#include "../common/base.h"

#ifndef UGRID_IMPLEMENTATION
#define UGRID_IMPLEMENTATION
#endif
#include "boids_support.h"

#ifndef __CUDACC__ /* boids.cu includes this file for all above */

/* -------------------------------------------------------------------------------------------------
   >>run
   ---------------------------------------------------------------------------------------------- */

typedef struct boids_run {
    boids_options options;
    boids_flock flock;
    double total, longest, recent;  /* seconds: all steps, the longest, and about the last 30 */
} boids_run;

static void boids_run_step(boids_run *run)
{
    double const begun = seconds_now();
    double spent;
    boids_must(boids_step(&run->flock));
    spent = seconds_now() - begun;
    run->total += spent;
    run->longest = fmax(run->longest, spent);
    run->recent = run->recent > 0 ? run->recent + (spent - run->recent) / 30 : spent;
}

/* -------------------------------------------------------------------------------------------------
   >>window
   ---------------------------------------------------------------------------------------------- */

typedef struct boids_screen {
    window window;
    boids_canvas view;
    int shots;
    double rate;                /* frames per second */
} boids_screen;

static void boids_show(boids_screen *s, const boids_run *run)
{
    char text[PICTURE_TEXT];
    picture *c = &s->view.canvas;
    boids_title(&run->flock, 1e3 * run->recent, text);
    snprintf(text + strlen(text), PICTURE_TEXT - strlen(text), "   %.0f frames per second",
             s->rate);
    boids_draw(&s->view, &run->flock, text);
    boids_draw_text(
        c, c->height - (c->width >= 960 ? 26 : 13),
        "mouse: predator   1..7: method   w: walk   space: wait   s: save a picture   q: quit");
    window_show(&s->window, c);
}

/* The next walk that this method has; with another method, the same walk if it has it. */
static void boids_switch(boids_run *run, int32_t method, int32_t walk)
{
    while (boids_choose(&run->flock.desc, method, walk) != UGRID_OK)
        walk = (walk + 1) % BOIDS_WALKS;
    run->options.method = method;
    run->options.walk = walk;
}

static void boids_key(boids_screen *s, boids_run *run, int key)
{
    const boids_options *o = &run->options;
    char path[64];
    if (key >= '1' && key < '1' + BOIDS_METHODS) boids_switch(run, key - '1', o->walk);
    if (key == 'w') boids_switch(run, o->method, (o->walk + 1) % BOIDS_WALKS);
    if (key != 's') return;
    snprintf(path, sizeof path, "boids_%02d.png", s->shots++);
    picture_save(&s->view.canvas, path);
    printf("picture: %s\n", path);
}

/* The predator is where the mouse is; without a mouse it flies on its own. */
static void boids_lead(const boids_screen *s, boids_model *model)
{
    int x, y;
    boids_hunt(model);
    if (!window_mouse(&s->window, &x, &y)) return;
    model->predator[0] = model->box[0] * (float)x / (float)s->view.canvas.width;
    model->predator[1] = model->box[1] * (1 - (float)y / (float)s->view.canvas.height);
}

static void boids_live(boids_run *run)
{
    boids_screen s;
    double shown = 0, now;
    int key;
    memset(&s, 0, sizeof s);
    s.view = boids_canvas_new(&run->options, &run->flock.model);
    window_open(&s.window, &s.view.canvas);
    while (!s.window.closed && (int64_t)run->flock.model.step < run->options.steps) {
        while ((key = window_key(&s.window)) != 0) boids_key(&s, run, key);
        boids_lead(&s, &run->flock.model);
        if (!s.window.waits) boids_run_step(run);
        boids_show(&s, run);
        while ((now = seconds_now()) < shown + (double)BOIDS_TICK) window_pause(1);
        if (shown > 0) s.rate += (1 / (now - shown) - s.rate) / (s.rate > 0 ? 30 : 1);
        shown = now;
    }
    boids_canvas_free(&s.view);
    window_close(&s.window);
}

int main(int argc, char **argv)
{
    boids_run run;
    memset(&run, 0, sizeof run);
    run.options = boids_parse(argc, argv, 20000);
    run.flock = boids_begin(&run.options);
    if (run.options.window) boids_live(&run);
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
