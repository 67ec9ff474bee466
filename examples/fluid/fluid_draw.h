/* fluid_draw.h - pictures of a fluid: three moments, colored by pressure, and a plot.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef FLUID_DRAW_H
#define FLUID_DRAW_H

#include "../common/picture.h"
#include "../common/shade.h"

enum { PANEL_WIDE = 1200, PANEL_HIGH = 660, SHOTS = 3, CURVE = 512 }; /* halved in the end */

/* A curve of ours beside reference points: measurements, or an exact solution. */
typedef struct curve {
    const char *title, *across, *up, *reference;
    double least[2], most[2];   /* the axes */
    double x[CURVE], y[CURVE];  /* ours */
    int count;
    double rx[CURVE], ry[CURVE];
    int references;
    double shift;               /* ours once more, later by so much; 0: not */
} curve;

static const rgb pressure_colors[] = {{0.10, 0.16, 0.45}, {0.13, 0.45, 0.80}, {0.35, 0.78, 0.85},
                                      {0.98, 0.85, 0.40}, {0.85, 0.25, 0.15}};

/* ---- moments ---- */

/* Where a panel shows the scene: the pixel of x = 0 and height 0, pixels per unit of length. */
typedef struct frame { int left, top; double x0, y0, scale; } frame;

static frame frame_of(const scene *s, int shot)
{
    int const drop = s->kind == SCENE_DROP;
    double const h = (double)s->model.h;
    frame f;
    f.left = shot % 2 * PANEL_WIDE;
    f.top = shot / 2 * PANEL_HIGH;
    f.scale = drop ? PANEL_HIGH / (2.5 * s->width)
                   : fmin(PANEL_WIDE / (1.1 * s->length + 6 * h),
                          PANEL_HIGH / (1.3 * s->height + 8 * h));
    f.x0 = f.left + (drop ? PANEL_WIDE : PANEL_WIDE - s->length * f.scale) / 2;
    f.y0 = f.top + (drop ? PANEL_HIGH / 2.0 : PANEL_HIGH - 4 * h * f.scale);
    return f;
}

static void draw_moment(picture *p, int shot, const scene *s, const char *caption)
{
    frame const f = frame_of(s, shot);
    int const drop = s->kind == SCENE_DROP, up = s->model.dim - 1;
    double const most = drop ? 500 * s->speed * s->speed
                             : 1000 * (double)s->model.gravity * s->height,
                 middle = drop ? 0 : s->depth / 2;
    int32_t i;
    picture_clip(p, f.left, f.top, f.left + PANEL_WIDE, f.top + PANEL_HIGH);
    for (i = 0; i < s->n; i++) {
        const fluid_real *x = s->now.pos + 4 * (size_t)i;
        double const rho = (double)s->now.density[2 * (size_t)i + 1],
                     pressure = (double)s->now.vel[4 * (size_t)i + 3] * rho * rho;
        if (up == 2 && fabs((double)x[1] - middle) > 0.75 * s->spacing) continue;
        draw_disc(p, f.x0 + (double)x[0] * f.scale, f.y0 - (double)x[up] * f.scale,
                  fmax(1, 0.52 * s->spacing * f.scale),
                  fluid_is_wall(x) ? gray(0.72) : color_map(pressure_colors, 5, pressure / most));
    }
    draw_text(p, f.left + 50, f.top + 20, 3, gray(0.1), caption);
    draw_legend(p, f.left + PANEL_WIDE - 60, f.top + 22, "pressure 0", pressure_colors, 5,
                drop ? "rho U^2 / 2" : "rho g h, h: the column at first");
    picture_clip(p, 0, 0, p->width, p->height);
}

/* ---- plot ---- */

typedef struct plot { int left, top, right, bottom; const curve *c; } plot;

static double plot_x(const plot *f, double x)
{
    return f->left + (x - f->c->least[0]) / (f->c->most[0] - f->c->least[0]) * (f->right - f->left);
}

static double plot_y(const plot *f, double y)
{
    return f->bottom - (y - f->c->least[1]) / (f->c->most[1] - f->c->least[1]) *
                           (f->bottom - f->top);
}

/* Four steps on each axis, with numbers. */
static void draw_axes(picture *p, const plot *f)
{
    char text[32];
    int k;
    for (k = 0; k <= 4; k++) {
        double const x = f->c->least[0] + k * (f->c->most[0] - f->c->least[0]) / 4,
                     y = f->c->least[1] + k * (f->c->most[1] - f->c->least[1]) / 4;
        int const px = (int)plot_x(f, x), py = (int)plot_y(f, y);
        draw_box(p, px, f->top, px + 2, f->bottom, gray(0.87), 1);
        draw_box(p, f->left, py, f->right, py + 2, gray(0.87), 1);
        snprintf(text, sizeof text, "%.3g", x);
        draw_text(p, px - text_width(text, 2) / 2, f->bottom + 12, 2, gray(0.2), text);
        snprintf(text, sizeof text, "%.3g", y);
        draw_text(p, f->left - 12 - text_width(text, 2), py - 8, 2, gray(0.2), text);
    }
    draw_frame(p, f->left, f->top, f->right, f->bottom + 2, 2, gray(0.3));
    draw_text(p, (f->left + f->right - text_width(f->c->across, 2)) / 2, f->bottom + 38, 2,
              gray(0.2), f->c->across);
    draw_text(p, f->left + 14, f->top + 12, 2, gray(0.2), f->c->up);
}

static void draw_ours(picture *p, const plot *f, double shift, double reach, rgb color)
{
    const curve *c = f->c;
    int k;
    for (k = 1; k < c->count; k++)
        draw_line(p, plot_x(f, c->x[k - 1] + shift), plot_y(f, c->y[k - 1]),
                  plot_x(f, c->x[k] + shift), plot_y(f, c->y[k]), reach, color);
}

static void draw_plot(picture *p, int panel, const curve *c)
{
    int const left = panel % 2 * PANEL_WIDE, top = panel / 2 * PANEL_HIGH;
    rgb const ours = rgb_of(0.10, 0.35, 0.75), theirs = rgb_of(0.85, 0.25, 0.15);
    char text[64];
    plot f;
    int k;
    f.left = left + 120;
    f.top = top + 60;
    f.right = left + PANEL_WIDE - 60;
    f.bottom = top + PANEL_HIGH - 80;
    f.c = c;
    draw_text(p, left + 50, top + 20, 3, gray(0.1), c->title);
    draw_axes(p, &f);
    picture_clip(p, f.left, f.top, f.right, f.bottom);
    if (c->shift > 0) draw_ours(p, &f, c->shift, 1.5, mix(ours, gray(1), 0.5));
    draw_ours(p, &f, 0, 3, ours);
    for (k = 0; k < c->references; k++)
        draw_disc(p, plot_x(&f, c->rx[k]), plot_y(&f, c->ry[k]), 8, theirs);
    draw_text(p, f.left + 14, f.top + 44, 2, ours, "line: this fluid");
    draw_text(p, f.left + 14, f.top + 70, 2, theirs, c->reference);
    if (c->shift > 0) {
        snprintf(text, sizeof text, "thin: ours, later by %.2f", c->shift);
        draw_text(p, f.left + 14, f.top + 96, 2, ours, text);
    }
    picture_clip(p, 0, 0, p->width, p->height);
}

#endif /* FLUID_DRAW_H */
