/* fluid_window.h - fluid.c live: the run goes on until the window is closed.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef FLUID_WINDOW_H
#define FLUID_WINDOW_H

#include "../common/window.h"

/* The button pushes what is near the mouse away from it: on one core, where the particles are. */
static void push_by_mouse(scene *s, const window *w)
{
    double const reach = 0.15 * s->width, speed = 0.1 * s->speed;
    frame const f = frame_of(s, 0);
    int const up = s->model.dim - 1;
    int32_t i;
    int x, y;
    if (!window_buttons() || !window_mouse(w, &x, &y)) return;
    for (i = 0; i < s->n; i++) {
        const fluid_real *p = s->now.pos + 4 * (size_t)i;
        fluid_real *v = s->now.vel + 4 * (size_t)i;
        double const away[2] = {(double)p[0] - (x - f.x0) / f.scale,
                                (double)p[up] - (f.y0 - y) / f.scale};
        double const distance = sqrt(away[0] * away[0] + away[1] * away[1]);
        if (fluid_is_wall(p) || distance >= reach || distance <= 0) continue;
        v[0] += (fluid_real)(speed * (1 - distance / reach) * away[0] / distance);
        v[up] += (fluid_real)(speed * (1 - distance / reach) * away[1] / distance);
    }
}

static void draw_now(const scene *s, picture *p)
{
    char caption[96];
    draw_box(p, 0, 0, p->width, p->height, gray(1), 1);
    snprintf(caption, sizeof caption, "T = %.2f, %ld particles (space waits, q ends)",
             (double)s->step * (double)s->model.dt / s->unit, (long)s->n);
    draw_moment(p, 0, s, caption);
}

/* A picture for every 1/80 of the unit of time, at most 30 in a second. */
static void watch(scene *s, advance_fn *advance, void *user)
{
    int64_t const stride = (int64_t)ceil(s->unit / 80 / (double)s->model.dt);
    picture p = picture_new(PANEL_WIDE, PANEL_HIGH, gray(1));
    window w;
    window_must_exist();
    memset(&w, 0, sizeof w);
    window_open(&w, &p);
    while (!w.closed) {
        double const begun = seconds_now();
        while (window_key(&w)) { }
        if (!w.waits) {
            push_by_mouse(s, &w);
            advance(user, stride);
        }
        draw_now(s, &p);
        window_show(&w, &p);
        if (seconds_now() - begun < 1 / 30.0)
            window_pause((int)(1e3 * (1 / 30.0 - (seconds_now() - begun))));
    }
    window_close(&w);
    picture_free(&p);
    printf("window: %ld steps\n", (long)s->step);
}

#endif /* FLUID_WINDOW_H */
