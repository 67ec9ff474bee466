/* broad_phase_draw.h - the picture: a slice with the grid's cells, and with the tree's boxes.
   SPDX-License-Identifier: MIT OR Unlicense

   >>slice   spheres where a plane cuts them
   >>probe   one small sphere, and what is tested for it by each method
   >>draw    the two panels */

#ifndef BROAD_PHASE_DRAW_H
#define BROAD_PHASE_DRAW_H

#include "../common/picture.h"

static rgb const bp_white = {1, 1, 1}, bp_ink = {0.16, 0.18, 0.22}, bp_paper = {0.965, 0.97, 0.98};
static rgb const bp_large_fill = {0.80, 0.85, 0.91}, bp_large_rim = {0.52, 0.61, 0.72};
static rgb const bp_small_fill = {0.44, 0.60, 0.78}, bp_tested_fill = {0.95, 0.58, 0.13};
static rgb const bp_cell_line = {0.35, 0.38, 0.44}, bp_cell_fill = {1, 0.80, 0.36};
static rgb const bp_probe_fill = {0.82, 0.07, 0.12};

/* -------------------------------------------------------------------------------------------------
   >>slice: a plane of one z; x goes to the right, y up
   ---------------------------------------------------------------------------------------------- */

typedef struct bp_view {
    int left, top, size;    /* of the square on the canvas */
    float origin[2], scale; /* pixels per unit */
    float z;
} bp_view;

/* Where the plane is: not in the middle, where the largest boxes meet. If it would meet no large
   sphere there, or hardly, it goes through the middle of the nearest. */
static float bp_height_of_slice(const bp_scene *scene)
{
    float const z = scene->least[2] + 0.375f * (scene->most[2] - scene->least[2]);
    float nearest = INFINITY, at = z;
    int32_t i;
    for (i = 0; i < scene->n; i++) {
        const bp_sphere *s = &scene->sphere[i];
        float const away = fabsf(s->p[2] - z);
        if (s->radius < scene->largest || !(away < nearest)) continue;
        nearest = away;
        at = s->p[2];
    }
    return nearest < 0.7f * scene->largest ? z : at;
}

/* The square around the middles of all spheres: what sticks out is cut off. */
static bp_view bp_view_of(const bp_scene *scene, int left, int top, int size)
{
    float const wide = scene->most[0] - scene->least[0], high = scene->most[1] - scene->least[1];
    float const widest = wide > high ? wide : high;
    float const edge = widest > scene->largest ? widest : scene->largest;
    bp_view view;
    view.left = left;
    view.top = top;
    view.size = size;
    view.scale = (float)size / edge;
    view.origin[0] = 0.5f * (scene->least[0] + scene->most[0] - edge);
    view.origin[1] = 0.5f * (scene->least[1] + scene->most[1] - edge);
    view.z = bp_height_of_slice(scene);
    return view;
}

static float bp_x(const bp_view *view, float x)
{
    return (float)view->left + (x - view->origin[0]) * view->scale;
}
static float bp_y(const bp_view *view, float y)
{
    return (float)(view->top + view->size) - (y - view->origin[1]) * view->scale;
}

/* A disc with a rim, radius and rim in pixels. */
static void bp_disc(picture *canvas, float x, float y, float radius, rgb fill, rgb rim, float thick)
{
    int const x0 = (int)floorf(x - radius), x1 = (int)ceilf(x + radius),
              y0 = (int)floorf(y - radius), y1 = (int)ceilf(y + radius);
    float const inside = radius - thick > 0 ? radius - thick : 0;
    int px, py;
    for (py = y0; py <= y1; py++)
        for (px = x0; px <= x1; px++) {
            float const dx = (float)px + 0.5f - x, dy = (float)py + 0.5f - y,
                        d2 = dx * dx + dy * dy;
            if (d2 <= radius * radius)
                draw_pixel(canvas, px, py, d2 <= inside * inside ? fill : rim, 1);
        }
}

/* Where the plane cuts the sphere there is a disc; 0 if it does not. */
static float bp_cut(const bp_view *view, const bp_sphere *sphere)
{
    float const away = view->z - sphere->p[2], rest = sphere->radius * sphere->radius - away * away;
    return rest > 0 ? view->scale * sqrtf(rest) : 0;
}

/* The large ones first, the small ones on top: orange where `tested` says so. */
static void bp_draw_spheres(picture *canvas, const bp_view *view, const bp_scene *scene,
                            const uint8_t *tested)
{
    int32_t i;
    int pass;
    for (pass = 0; pass < 2; pass++)
        for (i = 0; i < scene->n; i++) {
            const bp_sphere *s = &scene->sphere[i];
            int const large = s->radius > 0.5f * scene->largest;
            float const radius = bp_cut(view, s);
            rgb fill = large ? bp_large_fill : bp_small_fill;
            if (large != !pass || radius <= 0) continue;
            if (tested[i]) fill = bp_tested_fill;
            if (tested[i] && large) { fill.g += 0.25f; fill.b += 0.45f; }
            bp_disc(canvas, bp_x(view, s->p[0]), bp_y(view, s->p[1]), radius, fill,
                    large ? bp_large_rim : fill, 3);
        }
}

/* A box that the plane cuts: its area, or its rim. */
static void bp_rectangle(picture *canvas, const bp_view *view, const lbvh_node *node, rgb color,
                         int rim)
{
    int const x0 = (int)floorf(bp_x(view, node->min[0]) + 0.5f),
              x1 = (int)floorf(bp_x(view, node->max[0]) + 0.5f);
    int const y0 = (int)floorf(bp_y(view, node->max[1]) + 0.5f),
              y1 = (int)floorf(bp_y(view, node->min[1]) + 0.5f);
    if (rim) draw_frame(canvas, x0, y0, x1, y1, 4, mix(color, bp_ink, 0.5));
    else draw_box(canvas, x0, y0, x1, y1, mix(color, bp_white, 0.3f), 0.13f);
}

/* -------------------------------------------------------------------------------------------------
   >>probe
   ---------------------------------------------------------------------------------------------- */

/* The smallest sphere that the plane cuts; of these one near 3/8 of the way along x and y. */
static int32_t bp_find_probe(const bp_view *view, const bp_scene *scene)
{
    float const x = scene->least[0] + 0.375f * (scene->most[0] - scene->least[0]);
    float const y = scene->least[1] + 0.375f * (scene->most[1] - scene->least[1]);
    float best = 1e30f;
    int32_t i, probe = 0;
    for (i = 0; i < scene->n; i++) {
        const bp_sphere *s = &scene->sphere[i];
        float const dx = s->p[0] - x, dy = s->p[1] - y,
                    score = dx * dx + dy * dy + 1e6f * s->radius * s->radius;
        if (score >= best || bp_cut(view, s) <= 0.5f * view->scale * s->radius) continue;
        best = score;
        probe = i;
    }
    return probe;
}

/* Marks what the grid tests for the probe: all of the cells around it. */
static int32_t bp_mark_by_grid(const bp_scene *scene, const ugrid *grid, int32_t probe,
                               uint8_t *tested)
{
    ugrid_near near = ugrid_near_within(grid, scene->sphere[probe].p, bp_reach(scene));
    int32_t count = 0;
    while (ugrid_next(&near)) {
        if (near.id == probe) continue;
        tested[near.id] = 1;
        count++;
    }
    return count;
}

/* Marks what the tree tests: leaves that the walk looks at. Returns the number of all nodes that
   it looks at. */
static int32_t bp_mark_by_tree(const bp_scene *scene, const lbvh *tree, int32_t probe,
                               uint8_t *tested)
{
    const bp_sphere *s = &scene->sphere[probe];
    float const min[3] = {s->p[0] - s->radius, s->p[1] - s->radius, s->p[2] - s->radius};
    float const max[3] = {s->p[0] + s->radius, s->p[1] + s->radius, s->p[2] + s->radius};
    int32_t count = 0, at = lbvh_root(tree);
    while (at >= 0) {
        const lbvh_node *node = &tree->node[at];
        count++;
        if (lbvh_is_leaf(tree, at) && node->link != probe) tested[node->link] = 1;
        at = !lbvh_is_leaf(tree, at) && lbvh_boxes_touch(node, min, max) ? node->link : node->skip;
    }
    return count;
}

/* -------------------------------------------------------------------------------------------------
   >>draw
   ---------------------------------------------------------------------------------------------- */

/* What is drawn. */
typedef struct bp_picture {
    const bp_scene *scene;
    const ugrid *grid;
    const lbvh *tree;
    int64_t grid_tests, tree_tests;
    int32_t probe, level;
} bp_picture;

static bp_picture bp_picture_of(const bp_scene *scene, const ugrid *grid, const lbvh *tree,
                                const bp_result *by_grid, const bp_result *by_tree)
{
    bp_picture p;
    p.scene = scene;
    p.grid = grid;
    p.tree = tree;
    p.grid_tests = by_grid->tests;
    p.tree_tests = by_tree->tests;
    p.probe = p.level = 0;
    return p;
}

/* From where to where the cells reach that are near the probe, along axis a. */
static void bp_near_cells(const bp_picture *p, int a, float edge[2])
{
    const ugrid_axis *axis = &p->grid->axis[a];
    int side;
    for (side = 0; side < 2; side++) {
        float const at =
            p->scene->sphere[p->probe].p[a] + (side ? bp_reach(p->scene) : -bp_reach(p->scene));
        float const cell = floorf((at - axis->min) * axis->per_cell),
                    last = (float)(axis->cells - 1);
        edge[side] = axis->min + ((cell < 0      ? 0
                                   : cell > last ? last
                                                 : cell) +
                                  (float)side) /
                                     axis->per_cell;
    }
}

static void bp_draw_near_cells(picture *canvas, const bp_view *view, const bp_picture *p)
{
    float x[2], y[2];
    bp_near_cells(p, 0, x);
    bp_near_cells(p, 1, y);
    draw_box(canvas, (int)bp_x(view, x[0]), (int)bp_y(view, y[1]), (int)bp_x(view, x[1]),
             (int)bp_y(view, y[0]), bp_cell_fill, 0.5f);
}

static void bp_draw_cells(picture *canvas, const bp_view *view, const ugrid *grid)
{
    int const right = view->left + view->size, bottom = view->top + view->size;
    int32_t k;
    for (k = 0; k <= grid->axis[0].cells; k++) {
        int const x =
            (int)(bp_x(view, grid->axis[0].min + (float)k / grid->axis[0].per_cell) + 0.5f);
        draw_box(canvas, x - 1, view->top, x + 2, bottom, bp_cell_line, 1);
    }
    for (k = 0; k <= grid->axis[1].cells; k++) {
        int const y =
            (int)(bp_y(view, grid->axis[1].min + (float)k / grid->axis[1].per_cell) + 0.5f);
        draw_box(canvas, view->left, y - 1, right, y + 2, bp_cell_line, 1);
    }
}

/* Boxes about as wide as the large spheres. Every third level they are cubes, for the axes are
   halved in turn. */
static int32_t bp_level_for(const bp_scene *scene)
{
    double volume = 1;
    int a;
    for (a = 0; a < 3; a++)
        volume *= 1 + (double)(scene->most[a] - scene->least[a]) / (2 * (double)scene->largest);
    return volume >= 8 ? (int32_t)(log(volume) / log(8.0)) * 3 : 1;
}

/* A pale color for each node, neighbours unlike. */
static rgb bp_pastel(int32_t number)
{
    float const turn = (float)number * 0.618034f, hue = 6 * (turn - floorf(turn));
    float const f[3] = {hue, hue + 4, hue + 2};
    double channel[3];
    int c;
    for (c = 0; c < 3; c++) {
        double const h = fabs(fmod((double)f[c], 6) - 3) - 1;
        channel[c] = h < 0 ? 0 : h > 1 ? 1 : h;
    }
    return rgb_of(channel[0], channel[1], channel[2]);
}

/* The boxes of the nodes `level` steps below `at`, and of leaves that come before that. */
static void bp_draw_level(picture *canvas, const bp_view *view, const lbvh *tree, int32_t at,
                          int32_t level, int32_t *number, int rims)
{
    const lbvh_node *node = &tree->node[at];
    if (level > 0 && !lbvh_is_leaf(tree, at)) {
        bp_draw_level(canvas, view, tree, node->link, level - 1, number, rims);
        bp_draw_level(canvas, view, tree, lbvh_right_child(tree, node), level - 1, number, rims);
    } else if (node->min[2] <= view->z && node->max[2] >= view->z) {
        bp_rectangle(canvas, view, node, bp_pastel((*number)++), rims);
    }
}

static void bp_draw_probe(picture *canvas, const bp_view *view, const bp_sphere *probe)
{
    float const x = bp_x(view, probe->p[0]), y = bp_y(view, probe->p[1]),
                radius = view->scale * probe->radius;
    bp_disc(canvas, x, y, radius + 8, bp_white, bp_white, 0);
    bp_disc(canvas, x, y, radius + 3, bp_probe_fill, bp_probe_fill, 0);
}

/* From here on only the panel is drawn on. */
static void bp_begin_panel(picture *canvas, const bp_view *view, const char *title,
                           const char *text, int64_t tests)
{
    char all[PICTURE_TEXT];
    draw_text(canvas, view->left, view->top - 122, 5, bp_ink, title);
    draw_text(canvas, view->left, view->top - 70, 3, bp_ink, text);
    snprintf(all, sizeof all, "for all, each pair once: %.1f million boxes are tested",
             1e-6 * (double)tests);
    draw_text(canvas, view->left, view->top - 34, 3, bp_ink, all);
    picture_clip(canvas, view->left, view->top, view->left + view->size, view->top + view->size);
    draw_box(canvas, canvas->left, canvas->top, canvas->right, canvas->bottom, bp_paper, 1);
}

static void bp_end_panel(picture *canvas, const bp_view *view, const bp_sphere *probe)
{
    bp_draw_probe(canvas, view, probe);
    draw_frame(canvas, canvas->left, canvas->top, canvas->right, canvas->bottom, 3, bp_cell_line);
    picture_clip(canvas, 0, 0, canvas->width, canvas->height);
}

static void bp_draw_grid_panel(picture *canvas, const bp_view *view, const bp_picture *p)
{
    uint8_t *tested = (uint8_t *)zeros((size_t)p->scene->n, 1);
    long const count = (long)bp_mark_by_grid(p->scene, p->grid, p->probe, tested);
    char text[PICTURE_TEXT];
    snprintf(text, sizeof text,
             "%ld spheres are tested for the red one (orange: those in this slice)", count);
    bp_begin_panel(canvas, view, "grid: cells as wide as a large sphere", text, p->grid_tests);
    bp_draw_near_cells(canvas, view, p);
    bp_draw_spheres(canvas, view, p->scene, tested);
    bp_draw_cells(canvas, view, p->grid);
    bp_end_panel(canvas, view, &p->scene->sphere[p->probe]);
    free(tested);
}

static void bp_draw_tree_panel(picture *canvas, const bp_view *view, const bp_picture *p)
{
    uint8_t *tested = (uint8_t *)zeros((size_t)p->scene->n, 1);
    long const count = (long)bp_mark_by_tree(p->scene, p->tree, p->probe, tested);
    int32_t number = 0;
    char title[PICTURE_TEXT], text[PICTURE_TEXT];
    snprintf(title, sizeof title, "tree: its boxes of level %ld", (long)p->level);
    snprintf(text, sizeof text, "%ld boxes are tested for the red one (orange: spheres among them)",
             count);
    bp_begin_panel(canvas, view, title, text, p->tree_tests);
    bp_draw_level(canvas, view, p->tree, 0, p->level, &number, 0);
    bp_draw_spheres(canvas, view, p->scene, tested);
    number = 0;
    bp_draw_level(canvas, view, p->tree, 0, p->level, &number, 1);
    bp_end_panel(canvas, view, &p->scene->sphere[p->probe]);
    free(tested);
}

/* Both panels, side by side, into o->picture. */
static void bp_draw(const bp_options *o, bp_picture p)
{
    int const size = 1440, gap = 48, top = 168;
    picture twice = picture_new(2 * size + 3 * gap, top + size + gap, bp_white);
    bp_view const left = bp_view_of(p.scene, gap, top, size),
                  right = bp_view_of(p.scene, 2 * gap + size, top, size);
    p.probe = bp_find_probe(&left, p.scene);
    p.level = o->level ? o->level : bp_level_for(p.scene);
    bp_draw_grid_panel(&twice, &left, &p);
    bp_draw_tree_panel(&twice, &right, &p);
    picture_save_halved(&twice, o->picture);
}

#endif /* BROAD_PHASE_DRAW_H */
