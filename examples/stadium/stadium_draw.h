/* stadium_draw.h - the picture of stadium.c: the stadium from above, with cells of a dense grid,
   and the teapot from the side.
   SPDX-License-Identifier: MIT OR Unlicense

   It is drawn at twice its size. */

#ifndef STADIUM_DRAW_H
#define STADIUM_DRAW_H

enum { SHEET_WIDE = 2800, SHEET_HIGH = 1160, MARGIN = 60, HEAD = 110 };

static const rgb paper = {1, 1, 1}, text_color = {0.13, 0.14, 0.17},
                 line_color = {0.86, 0.87, 0.90}, stand_color = {0.35, 0.42, 0.55},
                 teapot_color = {0.83, 0.30, 0.12};

/* The plan: as many cells as particles along each axis would have; the teapot is a few of them. */
static void draw_plan(picture *p, const stadium *s)
{
    double const wide = s->max[0] - s->min[0], high = s->max[1] - s->min[1],
                 cell = cbrt(stadium_volume(s) / s->n),
                 scale = (SHEET_WIDE / 2 - 2 * MARGIN) / wide;
    int32_t i;
    double at;
    for (at = 0; at <= wide; at += cell)
        draw_line(p, MARGIN + at * scale, HEAD + 30, MARGIN + at * scale, HEAD + 30 + high * scale,
                  1, line_color);
    for (at = 0; at <= high; at += cell)
        draw_line(p, MARGIN, HEAD + 30 + at * scale, MARGIN + wide * scale, HEAD + 30 + at * scale,
                  1, line_color);
    for (i = s->n - 1; i >= 0; i--) {
        const float *q = s->pos + 3 * (size_t)i;
        int const crowd = i < s->n - s->n / 11;
        draw_disc(p, MARGIN + ((double)q[0] - s->min[0]) * scale,
                  HEAD + 30 + (s->max[1] - (double)q[1]) * scale, crowd ? 1.5 : 3,
                  crowd ? teapot_color : stand_color);
    }
}

/* The teapot from the side, lighter where it is nearer. */
static void draw_teapot(picture *p, const stadium *s)
{
    double const scale = (SHEET_WIDE / 2 - 2 * MARGIN) / 3.6, left = SHEET_WIDE / 2 + MARGIN;
    int32_t i;
    int layer;
    for (layer = 0; layer < 16; layer++)
        for (i = 0; i < s->n - s->n / 11; i++) {
            const float *q = s->pos + 3 * (size_t)i;
            double const depth = ((double)q[1] + 1) / 2; /* 0: nearest */
            if ((int)(15.99 * (1 - fmin(1, fmax(0, depth)))) != layer) continue;
            draw_disc(p, left + ((double)q[0] + 1.75) * scale,
                      SHEET_HIGH - 110 - (double)q[2] * scale, 4,
                      mix(teapot_color, rgb_of(0.35, 0.10, 0.05), depth));
        }
}

static void draw_stadium(const stadium *s, const char *path)
{
    picture p = picture_new(SHEET_WIDE, SHEET_HIGH, paper);
    char text[160];
    snprintf(text, sizeof text, "A stadium %g times as long as the teapot, from above.", s->ratio);
    draw_text(&p, MARGIN, 40, 4, text_color, text);
    draw_text(&p, MARGIN, 90, 4, text_color, "Lines: a grid with as many cells as particles.");
    draw_text(&p, SHEET_WIDE / 2 + MARGIN, 40, 4, text_color,
              "The particles of the teapot, from the side");
    draw_plan(&p, s);
    draw_teapot(&p, s);
    picture_save_halved(&p, path);
    picture_free(&p);
}

#endif /* STADIUM_DRAW_H */
