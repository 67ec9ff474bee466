/* lbvh_steps_draw.h - the picture and the VTK file of lbvh_steps.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef LBVH_STEPS_DRAW_H
#define LBVH_STEPS_DRAW_H

#include "../common/picture.h"

/* -------------------------------------------------------------------------------------------------
   >>vtk: all boxes as rectangles, each level above the one below (ParaView: color by "level")
   ---------------------------------------------------------------------------------------------- */

static void write_vtk(const steps *s, const char *folder)
{
    const lbvh_node *root = &s->tree.node[0];
    double const wide = (double)(root->max[0] - root->min[0]), storey = wide / s->levels;
    out_file const out = create_in(folder, "levels.vtk");
    long const boxes = (long)s->nodes;
    long k;
    fprintf(
        out.file,
        "# vtk DataFile Version 3.0\nboxes of an lbvh, level by level\nASCII\nDATASET POLYDATA\n");
    fprintf(out.file, "POINTS %ld float\n", 4 * boxes);
    for (k = 0; k < boxes; k++) {
        const lbvh_node *b = &s->tree.node[k];
        double const z = storey * (s->levels - 1 - s->level[k]), x0 = (double)b->min[0],
                     y0 = (double)b->min[1];
        double const x1 = (double)b->max[0], y1 = (double)b->max[1];
        /* 9 digits tell all floats apart */
        fprintf(out.file, "%.9g %.9g %g  %.9g %.9g %g  ", x0, y0, z, x1, y0, z);
        fprintf(out.file, "%.9g %.9g %g  %.9g %.9g %g\n", x1, y1, z, x0, y1, z);
    }
    fprintf(out.file, "POLYGONS %ld %ld\n", boxes, 5 * boxes);
    for (k = 0; k < boxes; k++)
        fprintf(out.file, "4 %ld %ld %ld %ld\n", 4 * k, 4 * k + 1, 4 * k + 2, 4 * k + 3);
    fprintf(out.file, "CELL_DATA %ld\nSCALARS level int 1\nLOOKUP_TABLE default\n", boxes);
    for (k = 0; k < boxes; k++) fprintf(out.file, "%ld\n", (long)s->level[k]);
    close_file(&out);
}

/* -------------------------------------------------------------------------------------------------
   >>picture: panels for the sorted points, each level and the walk; below, the ranges of all nodes
   ---------------------------------------------------------------------------------------------- */

enum {
    PANEL = 640,
    GAP = 48,
    CAPTION = 56,
    COLUMNS = 4,
    TITLE = 96,
    STOREY = 44,
    MOST_LEVELS = 30
};

static const rgb white = {1, 1, 1}, ink = {0.13, 0.14, 0.17}, faint = {0.88, 0.89, 0.91};

/* A square window of the plane, and where it is on the picture (y up). */
typedef struct window { double x, y, size; int left, top; } window;

static int to_x(const window *w, double x)
{
    return w->left + (int)((x - w->x) / w->size * PANEL + 0.5);
}
static int to_y(const window *w, double y)
{
    return w->top + PANEL - (int)((y - w->y) / w->size * PANEL + 0.5);
}

static window window_around(const lbvh_node *root)
{
    double const wide = (double)(root->max[0] - root->min[0]),
                 high = (double)(root->max[1] - root->min[1]);
    double const size = 1.06 * (wide > high ? wide : high);
    window w;
    w.size = size > 0 ? size : 1;
    w.x = 0.5 * (double)(root->min[0] + root->max[0]) - 0.5 * w.size;
    w.y = 0.5 * (double)(root->min[1] + root->max[1]) - 0.5 * w.size;
    w.left = w.top = 0;
    return w;
}

/* All colors of the rainbow, 0 to 1: red, yellow, green, blue, violet. */
static rgb rainbow(double t)
{
    static const rgb stops[6] = {{0.86, 0.20, 0.18}, {0.95, 0.60, 0.10}, {0.45, 0.68, 0.15},
                                   {0.05, 0.62, 0.62}, {0.18, 0.38, 0.80}, {0.58, 0.25, 0.72}};
    return color_map(stops, 6, 0.98 * t);
}

/* A node's color tells where the middle of its leaves is in the row: a node looks much like its
   children, and unlike what is near in the plane but not in the row. */
static rgb color_of(const steps *s, int32_t at)
{
    return rainbow((s->first[at] + lbvh_last_place(&s->tree, &s->tree.node[at]) + 1) /
                   (2.0 * s->tree.n));
}

/* Cells of the lattice, where there are few enough to see. The tree has its lattice at half
   scale. */
static void draw_lattice(picture *c, const steps *s, const window *w)
{
    const lbvh_lattice *lattice = &s->tree.lattice;
    int const cells = 1 << (s->shown_bits / 2);
    double const edge =
        lattice->scale > 0 ? 2 * (1 << AXIS_BITS) / (double)lattice->scale / cells : 0;
    double const x = 2 * (double)lattice->origin[0], y = 2 * (double)lattice->origin[1];
    int k;
    if (cells > 32 || !(edge > 0)) return;
    for (k = 0; k <= cells; k++) {
        draw_box(c, to_x(w, x), to_y(w, y + k * edge) - 1, to_x(w, x + cells * edge) + 1,
                 to_y(w, y + k * edge) + 1, faint, 1);
        draw_box(c, to_x(w, x + k * edge) - 1, to_y(w, y + cells * edge), to_x(w, x + k * edge) + 1,
                 to_y(w, y) + 1, faint, 1);
    }
}

/* An element lies in the middle of its box. */
static void centre_of(const lbvh_node *leaf, double *x, double *y)
{
    *x = 0.5 * (double)(leaf->min[0] + leaf->max[0]);
    *y = 0.5 * (double)(leaf->min[1] + leaf->max[1]);
}

static double dot_radius(const steps *s)
{
    return s->tree.n <= TABLES_UP_TO ? 9 : s->tree.n <= 4000 ? 4 : 2;
}

/* A label on white, so that it can be read on anything. */
static void label(picture *c, int x, int y, rgb with, long value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%ld", value);
    draw_box(c, x - 3, y - 2, x + text_width(digits, 3) + 2, y + 25, white, 0.8);
    draw_text(c, x, y, 3, with, digits);
}

/* The points, joined in the order of their codes. */
static void draw_curve(picture *c, const steps *s, const window *w)
{
    double const radius = dot_radius(s);
    double x, y, next_x, next_y;
    int32_t k;
    for (k = 0; k + 1 < s->tree.n; k++) {
        centre_of(leaf_at(s, k), &x, &y);
        centre_of(leaf_at(s, k + 1), &next_x, &next_y);
        draw_line(c, to_x(w, x), to_y(w, y), to_x(w, next_x), to_y(w, next_y),
                  0.5 * (radius / 2 + 1), mix(rainbow((k + 1.0) / s->tree.n), white, 0.25));
    }
    for (k = 0; k < s->tree.n; k++) {
        centre_of(leaf_at(s, k), &x, &y);
        draw_disc(c, to_x(w, x), to_y(w, y), radius, color_of(s, s->tree.first_leaf + k));
        if (s->tree.n <= TABLES_UP_TO) label(c, to_x(w, x) + 12, to_y(w, y) - 30, ink, (long)k);
    }
}

/* The box of node k, and for few nodes its number. */
static void draw_node(picture *c, const steps *s, const window *w, int32_t k, rgb with,
                     double inside)
{
    const lbvh_node *b = &s->tree.node[k];
    int const x0 = to_x(w, (double)b->min[0]), x1 = to_x(w, (double)b->max[0]) + 1;
    int const y0 = to_y(w, (double)b->max[1]), y1 = to_y(w, (double)b->min[1]) + 1;
    int const few = s->tree.n <= TABLES_UP_TO;
    draw_box(c, x0, y0, x1, y1, with, inside);
    draw_frame(c, x0, y0, x1, y1, few ? 5 : 3, with);
    if (few)
        label(c, x0 + 10, y0 + 9, mix(with, ink, 0.5),
              (long)(lbvh_is_leaf(&s->tree, k) ? k - s->tree.first_leaf : k));
}

/* All points; gray where their leaf lies above the level. */
static void draw_points(picture *c, const steps *s, const window *w, int32_t level)
{
    double x, y;
    int32_t k;
    for (k = 0; k < s->tree.n; k++) {
        int32_t const leaf = s->tree.first_leaf + k;
        centre_of(leaf_at(s, k), &x, &y);
        draw_disc(c, to_x(w, x), to_y(w, y), 0.7 * dot_radius(s),
             s->level[leaf] < level ? mix(ink, white, 0.75) : mix(color_of(s, leaf), ink, 0.2));
    }
}

static void draw_level(picture *c, const steps *s, const window *w, int32_t level)
{
    int32_t k;
    draw_points(c, s, w, level);
    for (k = 0; k < s->nodes; k++)
        if (s->level[k] == level) draw_node(c, s, w, k, color_of(s, k), 0.25);
}

/* What the walk looked at: gray boxes missed, and all in them was skipped; colored ones are the
   leaves found. */
static void draw_walk(picture *c, const steps *s, const window *w, const lbvh_real *box)
{
    int32_t k;
    draw_points(c, s, w, s->levels);
    for (k = 0; k < s->nodes; k++)
        if (s->seen[k] == MISSED) draw_node(c, s, w, k, mix(ink, white, 0.6), 0.25);
    for (k = s->tree.first_leaf; k < s->nodes; k++)
        if (s->seen[k] == MET) draw_node(c, s, w, k, color_of(s, k), 0.5);
    draw_frame(c, to_x(w, (double)box[0]), to_y(w, (double)box[3]), to_x(w, (double)box[2]),
               to_y(w, (double)box[1]), 5, ink);
}

static void count_level(const steps *s, int32_t level, long *inner, long *leaves)
{
    int32_t k;
    *inner = *leaves = 0;
    for (k = 0; k < s->nodes; k++) {
        if (s->level[k] != level) continue;
        if (lbvh_is_leaf(&s->tree, k)) ++*leaves;
        else ++*inner;
    }
}

/* The window of the next panel, with its caption. From now on drawing ends at its frame. */
static window next_panel(picture *c, const steps *s, int *panel, const char *caption)
{
    window w = window_around(&s->tree.node[0]);
    w.left = GAP + *panel % COLUMNS * (PANEL + GAP);
    w.top = TITLE + CAPTION + *panel / COLUMNS * (PANEL + CAPTION + GAP);
    ++*panel;
    picture_clip(c, 0, 0, c->width, c->height);
    draw_text(c, w.left, w.top - 36, 3, ink, caption);
    draw_frame(c, w.left - 2, w.top - 2, w.left + PANEL + 2, w.top + PANEL + 2, 2,
               mix(ink, white, 0.6));
    picture_clip(c, w.left, w.top, w.left + PANEL, w.top + PANEL);
    draw_lattice(c, s, &w);
    return w;
}

static void draw_panels(picture *c, const steps *s, const options *o, int32_t levels)
{
    window w;
    char caption[80];
    long inner, leaves;
    int32_t level;
    int panel = 0;
    w = next_panel(c, s, &panel, "points in the order of their codes");
    draw_curve(c, s, &w);
    for (level = 0; level < levels; level++) {
        count_level(s, level, &inner, &leaves);
        snprintf(caption, sizeof caption, "level %ld: %ld inner nodes, %ld leaves", (long)level,
                 inner, leaves);
        w = next_panel(c, s, &panel, caption);
        draw_level(c, s, &w, level);
    }
    w = next_panel(c, s, &panel, "a walk: gray misses, colored hits");
    draw_walk(c, s, &w, o->box);
    picture_clip(c, 0, 0, c->width, c->height);
}

/* The ranges of all nodes, a row for each level; few nodes: numbers at the end that Karras'
   numbering takes them from. */
static void draw_ranges(picture *c, const steps *s, int top)
{
    double const wide = (double)(c->width - 2 * GAP) / s->tree.n;
    int const few = s->tree.n <= TABLES_UP_TO, thin = wide > 8 ? 4 : 0;
    int32_t k;
    draw_text(c, GAP, top - 36, 3, ink,
              few ? "the range of leaves of each node, level by level; an inner node has the "
                    "number of its first or last leaf"
                  : "the range of leaves of each node, level by level");
    for (k = 0; k < s->nodes; k++) {
        int const leaf = lbvh_is_leaf(&s->tree, k), y = top + (int)s->level[k] * STOREY;
        int const x0 = GAP + (int)(s->first[k] * wide + 0.5) + thin;
        int const x1 =
            GAP + (int)((lbvh_last_place(&s->tree, &s->tree.node[k]) + 1) * wide + 0.5) - thin;
        int32_t const number_at = leaf ? k - s->tree.first_leaf : k;
        draw_box(c, x0, y, x1 > x0 ? x1 : x0 + 1, y + STOREY - 6, color_of(s, k), leaf ? 0.45 : 1);
        if (few)
            label(c, GAP + (int)((number_at + 0.5) * wide) - 10, y + 7,
                  leaf ? mix(ink, white, 0.35) : ink, (long)number_at);
    }
}

static void write_picture(const steps *s, const options *o)
{
    int32_t const levels = s->levels < MOST_LEVELS ? s->levels : MOST_LEVELS;
    int const rows = (int)(levels + 2 + COLUMNS - 1) / COLUMNS,
              ranges_top = TITLE + rows * (PANEL + CAPTION + GAP) + CAPTION;
    picture large = picture_new(COLUMNS * (PANEL + GAP) + GAP,
                                ranges_top + (int)s->levels * STOREY + GAP, white);
    char title[120], path[1200];
    snprintf(title, sizeof title, "lbvh.h: %ld points, %ld inner nodes, %ld levels",
             (long)s->tree.n, (long)s->tree.first_leaf, (long)s->levels);
    draw_text(&large, GAP, 36, 6, ink, title);
    draw_panels(&large, s, o, levels);
    draw_ranges(&large, s, ranges_top);
    snprintf(path, sizeof path, "%s/levels.png", o->out);
    picture_save_halved(&large, path);
}

#endif /* LBVH_STEPS_DRAW_H */
