/* ugrid_steps_draw.h - the pictures of ugrid_steps.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef UGRID_STEPS_DRAW_H
#define UGRID_STEPS_DRAW_H

#include "../common/steps.h"
#include "../common/vtk.h"

/* -------------------------------------------------------------------------------------------------
   >>view: the grid in a panel, y up; in 3D its layers beside each other, the lowest at the top left
   ---------------------------------------------------------------------------------------------- */

typedef struct view {
    picture *page;
    const ugrid *grid;
    int left, top, layers;  /* layers in a row */
    double side, scale;     /* of a layer in pixels; pixels per unit */
} view;

static view view_at(picture *page, const ugrid *grid, int k, const char *caption)
{
    const ugrid_axis *a = grid->axis;
    double const wide = (double)(a[0].max - a[0].min), high = (double)(a[1].max - a[1].min);
    view v;
    panel_at(page, k, 0, caption, &v.left, &v.top);
    v.page = page;
    v.grid = grid;
    v.layers = (int)ceil(sqrt((double)a[2].cells));
    v.side = (double)PANEL / v.layers;
    if (v.layers > 1 && k == 0)
        draw_text(page, PAGE - GAP - PANEL, 44, 3, ink, "layers: z ascends from the top left");
    v.scale = (v.side - 24) / fmax(fmax(wide, high), 1e-30);
    return v;
}

static double to_x(const view *v, double x, int32_t layer)
{
    return v->left + 12 + v->side * (layer % v->layers) +
           (x - (double)v->grid->axis[0].min) * v->scale;
}
static double to_y(const view *v, double y, int32_t layer)
{
    return v->top + v->side * (1 + layer / v->layers) - 12 -
           (y - (double)v->grid->axis[1].min) * v->scale;
}

static int32_t layer_of(const ugrid *grid, int32_t cell)
{
    return cell / (grid->axis[0].cells * grid->axis[1].cells);
}

/* The corners of a cell in pixels: left, top, right, bottom. */
static void corners(const view *v, int32_t cell, int at[4])
{
    const ugrid_axis *a = v->grid->axis;
    int32_t const layer = layer_of(v->grid, cell), x = cell % a[0].cells,
                  y = cell / a[0].cells % a[1].cells;
    double const wide = (double)(a[0].max - a[0].min) / a[0].cells,
                 high = (double)(a[1].max - a[1].min) / a[1].cells;
    at[0] = (int)(to_x(v, (double)a[0].min + wide * x, layer) + 0.5);
    at[1] = (int)(to_y(v, (double)a[1].min + high * (y + 1), layer) + 0.5);
    at[2] = (int)(to_x(v, (double)a[0].min + wide * (x + 1), layer) + 0.5);
    at[3] = (int)(to_y(v, (double)a[1].min + high * y, layer) + 0.5);
}

/* Pixels for a number: in layers it is written smaller. */
static int label_room(const view *v) { return v->layers > 1 ? 26 : 40; }

/* All cells: a color, and a number in a corner of each (-1: none). */
static void draw_cells(const view *v, const rgb *fill, const int32_t *number)
{
    int32_t c;
    int at[4];
    for (c = 0; c < v->grid->cell_count; c++) {
        corners(v, c, at);
        draw_box(v->page, at[0], at[1], at[2], at[3], fill[c], 1);
        draw_frame(v->page, at[0], at[1], at[2] + 2, at[3] + 2, 2, middle);
        if (number[c] >= 0)
            draw_number(v->page, at[0] + label_room(v) / 2, at[1] + label_room(v) / 2,
                        label_room(v), mix(ink, white, 0.35), (long)number[c]);
    }
}

/* A point, with its id or its place beside it. */
static void draw_point(const view *v, int32_t id, double radius, rgb with, long label)
{
    const ugrid_real *p = point_of(v->grid, id);
    int32_t const layer = layer_of(v->grid, ugrid_cell_at(v->grid, p));
    double const x = to_x(v, (double)p[0], layer), y = to_y(v, (double)p[1], layer);
    int const room = label_room(v);
    draw_disc(v->page, x, y, v->layers > 1 ? 0.7 * radius : radius, with);
    if (label >= 0)
        draw_number(v->page, (int)x + room / 2 + 2, (int)y + room / 2 - 4, room, ink, label);
}

/* -------------------------------------------------------------------------------------------------
   >>build
   ---------------------------------------------------------------------------------------------- */

/* Cells with points have a color each, which their entries of the arrays have, too. */
static void colors_of_cells(const steps *s, rgb *fill)
{
    int32_t c, k = 0;
    for (c = 0; c < s->cells; c++)
        fill[c] = s->fixed.count[c] > 0 ? mix(color_of_turn(k++), white, 0.5) : white;
}

static void draw_grids(picture *page, const steps *s)
{
    static const char *const caption[4] = {"1. cells, and the ids of the points",
                                           "2. counts", "3. ends: the prefix sum of the counts",
                                           "4. places: ends count down"};
    int32_t value[MOST], k, id;
    rgb fill[MOST];
    colors_of_cells(s, fill);
    for (k = 0; k < 4; k++) {
        view const v = view_at(page, &s->sorted, (int)k, caption[k]);
        int32_t c;
        for (c = 0; c < s->cells; c++)
            value[c] = k == 0   ? c
                       : k == 1 ? s->fixed.count[c]
                       : k == 2 ? s->sorted.start[c + 1]
                                : -1;
        draw_cells(&v, fill, value);
        for (id = 0; id < s->n; id++)
            draw_point(&v, id, 8, ink, k == 0 ? id : k == 3 ? s->sorted.inverse[id] : -1);
    }
}

/* id, cell and rank by id; arrows to the places; ids by place. */
static void draw_scatter(picture *page, const steps *s, int top)
{
    int const wide = entry_width(s->n);
    int32_t cell[MOST], rank[MOST], id;
    rgb fill[MOST], by_id[MOST], by_place[MOST];
    colors_of_cells(s, fill);
    for (id = 0; id < s->n; id++) {
        int32_t const place = s->sorted.inverse[id];
        double const from = GAP + NAMES + (id + 0.5) * wide,
                     to = GAP + NAMES + (place + 0.5) * wide;
        cell[id] = ugrid_cell_at(&s->sorted, point_of(&s->sorted, id));
        rank[id] = rank_of(s, id);
        by_id[id] = by_place[place] = fill[cell[id]];
        draw_arrow(page, from, top + 2 * BOX + 36, to, top + 2 * BOX + 230,
                   mix(fill[cell[id]], ink, 0.4));
    }
    draw_indices(page, GAP, top, wide, "id", s->n);
    draw_array(page, GAP, top + 34, wide, "its cell", cell, s->n, by_id);
    draw_array(page, GAP, top + 34 + BOX, wide, "rank", rank, s->n, by_id);
    top += 2 * BOX + 236;
    draw_array(page, GAP, top, wide, "4. order: ids", s->sorted.order, s->n, by_place);
    draw_indices(page, GAP, top + BOX + 8, wide, "place", s->n);
}

static void draw_build(const steps *s, const char *out)
{
    int const grids = TITLE + CAPTION + PANEL + GAP, wide = entry_width(s->cells + 1);
    picture page = page_new(PAGE, grids + 700 + BOX, "ugrid.h: count, prefix sum, scatter");
    rgb fill[MOST + 1];
    colors_of_cells(s, fill);
    fill[s->cells] = white;
    draw_grids(&page, s);
    draw_indices(&page, GAP, grids, wide, "cell", s->cells);
    draw_array(&page, GAP, grids + 34, wide, "2. count", s->fixed.count, s->cells, fill);
    draw_array(&page, GAP, grids + 34 + BOX, wide, "3. end", s->sorted.start + 1, s->cells, fill);
    draw_array(&page, GAP, grids + 34 + 2 * BOX, wide, "4. start", s->sorted.start, s->cells + 1,
               fill);
    draw_scatter(&page, s, grids + 34 + 3 * BOX + 80);
    draw_text(&page, GAP, grids + 640 + BOX, 3, ink,
              "each cell with points has a color; so have its entries in the arrays");
    page_save(&page, out, "1_build.png");
}

/* -------------------------------------------------------------------------------------------------
   >>rows of Figure 1
   ---------------------------------------------------------------------------------------------- */

/* The arrays after k points. What the last one wrote is marked. */
static void draw_list(picture *page, const steps *s, int32_t k, int y, int wide)
{
    ugrid list = build(s, UGRID_LIST, UGRID_CELLS, k);
    int32_t const written = k > 0 ? ugrid_cell_at(&list, s->pos + (k - 1) * list.desc.dim) : -1;
    int32_t head[MOST], next[MOST], c;
    rgb fill[2 * MOST];
    char text[40];
    for (c = 0; c < s->cells; c++) head[c] = k > 0 ? list.head[c] : -1;
    for (c = 0; c < s->n; c++) next[c] = c < k ? list.next[c] : -1;
    for (c = 0; c < 2 * MOST; c++) fill[c] = white;
    if (k > 0) fill[written] = fill[MOST + k - 1] = mix(signal, white, 0.5);
    snprintf(text, sizeof text, k > 0 ? "%ld to cell %ld" : "empty", (long)k - 1, (long)written);
    draw_array(page, GAP, y, wide, text, head, s->cells, fill);
    draw_array(page, GAP + (int)s->cells * wide + 40, y, wide, "", next, s->n, fill + MOST);
    ugrid_free(&list);
}

static void draw_lists(const steps *s, const char *out)
{
    int const least = (int)(s->cells + s->n) * BOX + 2 * (GAP + NAMES) + 40;
    int const page_wide = least > PAGE ? least : PAGE;
    int const fits = (PAGE - 2 * (GAP + NAMES) - 40) / (int)(s->cells + s->n);
    int const wide = fits < BOX ? BOX : fits < 76 ? fits : 76, top = TITLE + 80;
    picture page = page_new(page_wide, top + (int)(s->n + 1) * (BOX + 12) + GAP,
                            "linked lists, one point after another (Barbieri, Figure 1)");
    int32_t k;
    draw_text(&page, GAP + NAMES, top - 70, 3, ink, "head, by cell");
    draw_text(&page, GAP + NAMES + (int)s->cells * wide + 40, top - 70, 3, ink, "next, by point");
    draw_key(&page, page_wide - 640, 44, mix(signal, white, 0.5), "written for this point");
    draw_indices(&page, GAP, top - 34, wide, "", s->cells);
    draw_indices(&page, GAP + (int)s->cells * wide + 40, top - 34, wide, "", s->n);
    for (k = 0; k <= s->n; k++) draw_list(&page, s, k, top + (int)k * (BOX + 12), wide);
    page_save(&page, out, "2_lists.png");
}

/* -------------------------------------------------------------------------------------------------
   >>walks
   ---------------------------------------------------------------------------------------------- */

static void draw_query(const view *v, const steps *s)
{
    const ugrid_real *p = point_of(&s->sorted, s->query);
    int32_t const own = layer_of(v->grid, ugrid_cell_at(v->grid, p));
    int32_t id;
    for (id = 0; id < s->n; id++) {
        const ugrid_real *q = point_of(&s->sorted, id);
        int const visited = s->turn[0][ugrid_cell_at(v->grid, q)] >= 0,
                  hit = ugrid_distance2(v->grid, p, q) <= s->radius * s->radius;
        if (id != s->query) draw_point(v, id, 9, hit ? signal : visited ? ink : middle, id);
    }
    draw_point(v, s->query, 14, ink, s->query);
    draw_point(v, s->query, 8, white, -1);
    draw_circle(v->page, to_x(v, (double)p[0], own), to_y(v, (double)p[1], own),
                (double)s->radius * v->scale, 2, signal);
}

/* The places, in the color of the turn that visits them. */
static void draw_turns(picture *page, const steps *s, int k, int top)
{
    int const wide = entry_width(s->n);
    rgb fill[MOST];
    int32_t place;
    for (place = 0; place < s->n; place++) {
        int32_t const id = s->sorted.order[place],
                      turn = s->turn[k][ugrid_cell_at(&s->sorted, point_of(&s->sorted, id))];
        fill[place] = turn < 0 ? white : mix(color_of_turn(turn), white, 0.4);
    }
    draw_array(page, GAP, top, wide, order_name[k], s->sorted.order, s->n, fill);
}

static void draw_walks(const steps *s, const char *out)
{
    static const char *const caption[ORDERS] = {
        "CELLS: one by one", "STRIPS: adjacent cells are one range",
        "MODULAR: by coordinates modulo 3", "HYBRID: strips, by y and z modulo 3"};
    int const arrays = TITLE + CAPTION + PANEL + GAP;
    int const words = arrays + 44 + ORDERS * (BOX + 12) + 20;
    picture page = page_new(PAGE, words + 120 + GAP,
                            "a search: the turn of each cell in four orders (Chisholm)");
    rgb fill[MOST];
    int32_t c;
    int k;
    for (k = 0; k < ORDERS; k++) {
        view const v = view_at(&page, &s->sorted, k, caption[k]);
        for (c = 0; c < s->cells; c++)
            fill[c] = s->turn[k][c] < 0 ? faint : mix(color_of_turn(s->turn[k][c]), white, 0.4);
        draw_cells(&v, fill, s->turn[k]);
        picture_clip(&page, v.left, v.top, v.left + PANEL, v.top + PANEL);
        draw_query(&v, s);
        picture_clip(&page, 0, 0, page.width, page.height);
        draw_turns(&page, s, k, arrays + 44 + k * (BOX + 12));
    }
    draw_indices(&page, GAP, arrays, entry_width(s->n), "place", s->n);
    draw_text(&page, GAP, words, 3, ink,
              "points: red within the radius, black other candidates, gray not visited");
    draw_text(&page, GAP, words + 40, 3, ink,
              "cells: a number is the turn; equal ones are taken together, as one range");
    draw_text(&page, GAP, words + 80, 3, ink,
              "arrays: the ids in cell order, in the colors of their cells' turns");
    page_save(&page, out, "3_walks.png");
}

static void write_pictures(const steps *s, const char *out)
{
    draw_build(s, out);
    draw_lists(s, out);
    draw_walks(s, out);
}

/* -------------------------------------------------------------------------------------------------
   >>vtk
   ---------------------------------------------------------------------------------------------- */

/* How many points lie in each cell, and where the cell begins. */
static void write_occupancy(const steps *s, const char *out)
{
    const ugrid_axis *axis = s->sorted.axis;
    int32_t cells[3] = {0, 0, 0};
    double low[3] = {0, 0, 0}, edge[3] = {1, 1, 1};
    vtk v;
    int a;
    for (a = 0; a < s->sorted.desc.dim; a++) {
        cells[a] = axis[a].cells;
        low[a] = (double)axis[a].min;
        edge[a] = ((double)axis[a].max - low[a]) / cells[a];
    }
    v = vtk_begin_grid(out, "occupancy", 0, 0, 1, cells, low, edge);
    vtk_scalars(&v, "points", "int");
    for (a = 0; a < s->cells; a++) vtk_ints(&v, s->fixed.count + a, 1);
    vtk_scalars(&v, "start", "int");
    for (a = 0; a < s->cells; a++) vtk_ints(&v, s->sorted.start + a, 1);
    vtk_end(&v);
}

#endif /* UGRID_STEPS_DRAW_H */
