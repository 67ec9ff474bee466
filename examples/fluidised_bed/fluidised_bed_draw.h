/* fluidised_bed_draw.h - the pictures of fluidised_bed.c: the bed from the front, and the curve.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef FLUIDISED_BED_DRAW_H
#define FLUIDISED_BED_DRAW_H

#include "../common/shade.h"

/* -------------------------------------------------------------------------------------------------
   >>shots: the bed at several times; halved in the end
   ---------------------------------------------------------------------------------------------- */

enum { SHOTS = 6, ACROSS = 3, MARGIN = 20, CAPTION = 50, PANEL = 600 };
static double const between_shots = 0.03;

/* Pixels of a grain; of a panel, which shows twice the height of the bed as it is filled. */
static double shot_scale(const bed *b) { return PANEL / (b->size[0] / diameter); }
static int shot_high(const bed *b) { return (int)(shot_scale(b) * 1.9 * b->options->high); }

static picture shots_new(const bed *b)
{
    return picture_with_depth(ACROSS * (PANEL + MARGIN) + MARGIN,
                              SHOTS / ACROSS * (shot_high(b) + CAPTION), gray(1));
}

/* Colors by the velocity upwards, in m/s. */
static rgb shot_color(double up)
{
    static const rgb colors[] = {{0.08, 0.2, 0.5}, {0.35, 0.55, 0.8}, {0.85, 0.85, 0.8},
                                 {0.95, 0.65, 0.25}, {0.8, 0.2, 0.1}};
    return color_map(colors, 5, 0.5 + up / 0.8);
}

static void draw_shot(picture *p, const bed *b, int shot, double seconds)
{
    double const scale = shot_scale(b), per_metre = scale / diameter;
    int const left = MARGIN + shot % ACROSS * (PANEL + MARGIN),
              top = CAPTION + shot / ACROSS * (shot_high(b) + CAPTION),
              bottom = top + shot_high(b);
    char text[64];
    int32_t i;
    snprintf(text, sizeof text, "%.2f s", seconds);
    draw_text(p, left + 4, top - 34, 3, gray(0.2), text);
    draw_box(p, left, top, left + PANEL, bottom, gray(0.93), 1);
    picture_clip(p, left, top, left + PANEL, bottom);
    for (i = 0; i < b->grains.n; i++) {
        const float *at = b->grains.pos + 4 * (size_t)i;
        draw_sphere(p, (float)(left + per_metre * (double)at[0]),
                    (float)(bottom - per_metre * (double)at[1]), (float)(scale / 2), at[2],
                    (float)(diameter / 2), shot_color((double)b->grains.vel[4 * (size_t)i + 1]));
    }
    picture_clip(p, 0, 0, p->width, p->height);
}

/* -------------------------------------------------------------------------------------------------
   >>plot: the pressure at the bottom, in parts of the weight, against the velocity
   ---------------------------------------------------------------------------------------------- */

/* Of the cells within the bed: the mean porosity, and the part of them that are bubbles. */
typedef struct bed_gaps { double porosity, bubbles; } bed_gaps;

/* Pressure at the bottom in parts of the weight; height in m; speed in m/s. */
typedef struct bed_state {
    double drop, height, speed;
    bed_gaps gaps;
    int64_t samples;
} bed_state;

enum { BED_POINTS = 12, PLOT_WIDE = 1200, PLOT_HIGH = 800, PLOT_LEFT = 130, PLOT_RIGHT = 1160,
       PLOT_TOP = 80, PLOT_BOTTOM = 690 };

static double plot_x(double part) { return PLOT_LEFT + (PLOT_RIGHT - PLOT_LEFT) * part; }
static double plot_y(double drop) { return PLOT_BOTTOM - (PLOT_BOTTOM - PLOT_TOP) * drop / 1.2; }

static void draw_axes(picture *p, double fastest)
{
    rgb const ink = gray(0.2);
    char text[32];
    int k;
    for (k = 0; k <= 6; k++) {
        draw_line(p, PLOT_LEFT, plot_y(0.2 * k), PLOT_RIGHT, plot_y(0.2 * k), k == 5 ? 2 : 1,
                  gray(k == 5 ? 0.6 : 0.88));
        snprintf(text, sizeof text, "%.1f", 0.2 * k);
        draw_text(p, PLOT_LEFT - 80, (int)plot_y(0.2 * k) - 12, 3, ink, text);
    }
    for (k = 0; k * 0.2 <= fastest; k++) {
        double const x = plot_x(k * 0.2 / fastest);
        draw_line(p, x, PLOT_TOP, x, PLOT_BOTTOM, 1, gray(0.88));
        snprintf(text, sizeof text, "%.1f", 0.2 * k);
        draw_text(p, (int)x - 18, PLOT_BOTTOM + 20, 3, ink, text);
    }
    draw_text(p, PLOT_LEFT + 300, PLOT_BOTTOM + 60, 3, ink, "superficial velocity, m/s");
    draw_text(p, 20, 22, 3, ink, "pressure at the bottom / weight of the bed");
}

/* inflow and points from fast to slow; lines at Wen and Yu's velocity and at the measured one. */
static void draw_curve(const char *out, const double *inflow, const bed_state *s, double onset,
                       double wen_yu)
{
    rgb const blue = rgb_of(0.1, 0.35, 0.75), orange = rgb_of(0.9, 0.45, 0.05);
    picture p = picture_new(PLOT_WIDE, PLOT_HIGH, gray(1));
    double const fastest = inflow[0], x[2] = {plot_x(onset / fastest), plot_x(wen_yu / fastest)};
    int k;
    draw_axes(&p, fastest);
    draw_line(&p, x[0], plot_y(0), x[0], plot_y(1), 2, blue);
    draw_line(&p, x[1], plot_y(0), x[1], plot_y(1), 2, orange);
    draw_text(&p, PLOT_RIGHT - 330, PLOT_BOTTOM - 120, 3, blue, "measured onset");
    draw_text(&p, PLOT_RIGHT - 330, PLOT_BOTTOM - 70, 3, orange, "Wen and Yu 1966");
    for (k = 0; k < BED_POINTS; k++) {
        double const from = plot_x(inflow[k] / fastest),
                     to = k + 1 < BED_POINTS ? plot_x(inflow[k + 1] / fastest) : plot_x(0);
        draw_line(&p, from, plot_y(s[k].drop), to,
                  plot_y(k + 1 < BED_POINTS ? s[k + 1].drop : 0), 2, blue);
        draw_disc(&p, from, plot_y(s[k].drop), 9, blue);
    }
    picture_save_halved(&p, out);
}

#endif /* FLUIDISED_BED_DRAW_H */
