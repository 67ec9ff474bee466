/* steps.h - what the programs that show an algorithm step by step draw with: a page of panels,
   arrays as rows of boxes, arrows.
   SPDX-License-Identifier: MIT OR Unlicense

   Pages are drawn at twice their size. */

#ifndef EXAMPLES_STEPS_H
#define EXAMPLES_STEPS_H

#include "picture.h"

enum { PAGE = 2800, GAP = 48, PANEL = 640, TITLE = 96, CAPTION = 56, BOX = 44, NAMES = 230 };

static const rgb white = {1, 1, 1}, ink = {0.13, 0.14, 0.17}, faint = {0.90, 0.91, 0.93},
                 middle = {0.55, 0.57, 0.60}, signal = {0.86, 0.20, 0.18};

/* Nine colors that differ, then the same again. */
static inline rgb color_of_turn(int32_t k)
{
    static const rgb color[9] = {{0.95, 0.60, 0.10}, {0.45, 0.68, 0.15}, {0.18, 0.45, 0.85},
                                 {0.80, 0.35, 0.60}, {0.05, 0.62, 0.62}, {0.62, 0.44, 0.24},
                                 {0.58, 0.32, 0.78}, {0.75, 0.70, 0.10}, {0.45, 0.50, 0.58}};
    return color[k % 9];
}

static inline picture page_new(int width, int height, const char *title)
{
    picture p = picture_new(width, height, white);
    draw_text(&p, GAP, 36, 5, ink, title);
    return p;
}

static inline void page_save(picture *p, const char *folder, const char *name)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    picture_save_halved(p, path);
}

/* The left and top of panel k of a page, four in a row, with its caption and frame; `room`: pixels
   below each that are for the caller. */
static inline void panel_at(picture *p, int k, int room, const char *caption, int *left, int *top)
{
    *left = GAP + k % 4 * (PANEL + GAP);
    *top = TITLE + CAPTION + k / 4 * (PANEL + room + CAPTION + GAP);
    draw_text(p, *left, *top - 36, 3, ink, caption);
    draw_frame(p, *left - 2, *top - 2, *left + PANEL + 2, *top + PANEL + 2, 2, middle);
}

/* Text with its middle at (x, y); smaller, where it is wider than `wide`. */
static inline void draw_centred(picture *p, int x, int y, int wide, rgb with, const char *text)
{
    int const scale = text_width(text, 3) <= wide ? 3 : 2;
    draw_text(p, x - text_width(text, scale) / 2, y - 4 * scale, scale, with, text);
}

static inline void draw_number(picture *p, int x, int y, int wide, rgb with, long value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%ld", value);
    draw_centred(p, x, y, wide, with, digits);
}

/* A word of an array. */
static inline void draw_entry(picture *p, int x, int y, int wide, rgb fill, long value)
{
    draw_box(p, x, y, x + wide, y + BOX, fill, 1);
    draw_frame(p, x, y, x + wide + 2, y + BOX, 2, middle);
    draw_number(p, x + wide / 2, y + BOX / 2, wide - 4, ink, value);
}

/* So wide is an entry where `count` of them share a line. */
static inline int entry_width(int32_t count)
{
    int const wide = (PAGE - 2 * GAP - NAMES) / (count > 0 ? (int)count : 1);
    return wide < 88 ? wide : 88;
}

/* An array in a row of boxes, its name before it. fill: a color for each entry, or NULL. */
static inline void draw_array(picture *p, int x, int y, int wide, const char *name,
                              const int32_t *value, int32_t count, const rgb *fill)
{
    int32_t k;
    draw_text(p, x, y + BOX / 2 - 12, 3, ink, name);
    for (k = 0; k < count; k++)
        draw_entry(p, x + NAMES + (int)k * wide, y, wide, fill ? fill[k] : white, (long)value[k]);
}

/* What a color means: a square of it, and the word. Returns where the next one begins. */
static inline int draw_key(picture *p, int x, int y, rgb with, const char *text)
{
    draw_box(p, x, y, x + 22, y + 22, with, 1);
    draw_frame(p, x, y, x + 22, y + 22, 2, middle);
    draw_text(p, x + 36, y, 3, ink, text);
    return x + 36 + text_width(text, 3) + GAP;
}

/* The numbers 0 .. count-1 above the boxes of an array. */
static inline void draw_indices(picture *p, int x, int y, int wide, const char *name,
                                int32_t count)
{
    int32_t k;
    draw_text(p, x, y, 3, middle, name);
    for (k = 0; k < count; k++)
        draw_number(p, x + NAMES + (int)k * wide + wide / 2, y + 12, wide - 4, middle, (long)k);
}

static inline void draw_arrow(picture *p, double ax, double ay, double bx, double by, rgb with)
{
    double const length = hypot(bx - ax, by - ay) + 1e-9, ux = (bx - ax) / length,
                 uy = (by - ay) / length;
    draw_line(p, ax, ay, bx, by, 2, with);
    draw_line(p, bx, by, bx - 16 * ux - 8 * uy, by - 16 * uy + 8 * ux, 2, with);
    draw_line(p, bx, by, bx - 16 * ux + 8 * uy, by - 16 * uy - 8 * ux, 2, with);
}

static inline void draw_circle(picture *p, double x, double y, double radius, double reach,
                               rgb with)
{
    int k;
    for (k = 0; k < 96; k++)
        draw_line(p, x + radius * cos(PI * k / 48), y + radius * sin(PI * k / 48),
                  x + radius * cos(PI * (k + 1) / 48), y + radius * sin(PI * (k + 1) / 48), reach,
                  with);
}

#endif /* EXAMPLES_STEPS_H */
