/* curves_draw.h - the picture of curves.c: each curve, and below it what the cache holds when one
   cell's particles have searched.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef CURVES_DRAW_H
#define CURVES_DRAW_H

#include "../common/steps.h"

enum { CURVES = 3, SHOWN = 16, AROUND = 64, FRAME = 768, KEYS = 48,
       TOP = TITLE + CAPTION + KEYS };

static const char *const order_name[ORDERS] = {"rows", "Morton", "Hilbert", "rows, strips"};

static int panel_left(int order) { return GAP + order * (FRAME + GAP); }

static void draw_panel(picture *page, int order, int top, const char *caption)
{
    int const left = panel_left(order);
    draw_text(page, left, top - 36, 3, ink, caption);
    draw_frame(page, left - 2, top - 2, left + FRAME + 2, top + FRAME + 2, 2, middle);
}

/* From the first cell to the last. */
static rgb way_color(double part)
{
    static const rgb way[4] = {{0.10, 0.25, 0.70}, {0.05, 0.60, 0.60}, {0.95, 0.70, 0.15},
                               {0.80, 0.15, 0.15}};
    return color_map(way, 4, part);
}

static rgb held_color(double part) { return mix(faint, rgb_of(0.10, 0.25, 0.70), part); }

/* The way through a square of up to 16 x 16 cells, from blue to red; jumps are thin. */
static void draw_curve(picture *page, int order, int32_t side)
{
    curve c = make_curve(order, side < SHOWN ? side : SHOWN);
    double const edge = (double)FRAME / c.side;
    double bx = 0, by = 0;
    int32_t k;
    char caption[80];
    snprintf(caption, sizeof caption, "%s, through %d x %d cells", order_name[order], (int)c.side,
             (int)c.side);
    draw_panel(page, order, TOP, caption);
    for (k = 1; k < c.side; k++) {
        int const at = (int)(k * edge);
        draw_box(page, panel_left(order) + at, TOP, panel_left(order) + at + 2, TOP + FRAME, faint,
                 1);
        draw_box(page, panel_left(order), TOP + at, panel_left(order) + FRAME, TOP + at + 2, faint,
                 1);
    }
    for (k = 0; k < c.count; k++) {
        double const ax = bx, ay = by;
        bx = panel_left(order) + (c.cell[k] % c.side + 0.5) * edge;
        by = TOP + FRAME - (c.cell[k] / c.side + 0.5) * edge;
        if (k > 0)
            draw_line(page, ax, ay, bx, by, hypot(bx - ax, by - ay) < 1.1 * edge ? 5 : 1.5,
                      way_color(k / (c.count - 1.0)));
    }
    free(c.cell);
}

/* The cell whose search the lower pictures show. */
static int32_t middle_cell(int32_t side) { return (side / 2 - side / 8) * side + side / 2 - 1; }

/* What part of a cell's records is in the cache. */
static double part_held(const layout *l, const cache *c, int32_t cell)
{
    range const own = l->places[cell];
    int32_t i;
    int k, held = 0;
    for (i = own.begin; i < own.end; i++) {
        int64_t const line = (LINE + i * (int64_t)sizeof *l->record) / LINE;
        for (k = 0; k < WAYS; k++) held += c->line[line % SETS][k] == line;
    }
    return own.end > own.begin ? (double)held / (own.end - own.begin) : 0;
}

/* The first of the `seen` cells along an axis that are drawn around cell x. */
static int32_t first_seen(int32_t x, int32_t seen, int32_t side)
{
    int32_t const first = x - seen / 2, most = side - seen;
    return first < 0 ? 0 : first < most ? first : most;
}

/* The cells around the one that has searched, darker where the cache holds them. */
static void draw_held(picture *page, const layout *l, const cache *c)
{
    int32_t const side = l->along.side, seen = side < AROUND ? side : AROUND,
                  now = middle_cell(side), left = first_seen(now % side, seen, side),
                  low = first_seen(now / side, seen, side);
    int const top = TOP + FRAME + GAP + CAPTION + KEYS, edge = FRAME / (int)seen;
    char caption[80];
    int32_t x, y;
    snprintf(caption, sizeof caption, "%.2f cache lines fetched per particle", l->lines);
    draw_panel(page, l->order, top, caption);
    for (y = 0; y < seen; y++)
        for (x = 0; x < seen; x++) {
            int32_t const cell = (low + y) * side + left + x;
            int const px = panel_left(l->order) + (int)x * edge, py = top + FRAME - (int)y * edge;
            draw_box(page, px + 1, py - edge + 1, px + edge - 1, py - 1,
                     cell == now ? signal : held_color(part_held(l, c, cell)), 1);
        }
}

/* A line of keys above the curves, and one above the cells of the cache: how many are shown. */
static void draw_keys(picture *page, int32_t side)
{
    int32_t const seen = side < AROUND ? side : AROUND;
    char shown[80];
    int const low = TOP + FRAME + GAP;
    int x = GAP, k;
    for (k = 0; k < 240; k++)
        draw_box(page, x + k, TITLE, x + k + 1, TITLE + 22, way_color(k / 239.0), 1);
    draw_text(page, x + 254, TITLE, 3, ink,
              "from the first cell to the last; thin lines are jumps");
    x = draw_key(page, x, low, signal, "has searched");
    x = draw_key(page, x, low, held_color(1), "its particles are in the cache");
    x = draw_key(page, x, low, held_color(0.5), "half of them");
    x = draw_key(page, x, low, held_color(0), "none");
    if (seen == side) snprintf(shown, sizeof shown, "all %d x %d cells", (int)side, (int)side);
    else
        snprintf(shown, sizeof shown, "shown: %d x %d of %d x %d cells", (int)seen, (int)seen,
                 (int)side, (int)side);
    draw_text(page, x, low, 3, ink, shown);
}

static picture new_page(int32_t side)
{
    picture page = picture_new(CURVES * (FRAME + GAP) + GAP,
                               TOP + 2 * FRAME + GAP + CAPTION + KEYS + GAP, white);
    int order;
    draw_text(&page, GAP, 36, 4, ink, "curves through cells, and below them the cells in a cache "
              "of 32 KB when one of them has searched");
    draw_keys(&page, side);
    for (order = 0; order < CURVES; order++) draw_curve(&page, order, side);
    return page;
}

#endif /* CURVES_DRAW_H */
