/* broad_phase_draw.h - the picture of the broad phase: a slice through spheres, with the grid's cells and with the tree's boxes.
   SPDX-License-Identifier: MIT OR Unlicense

   >>canvas  pixels, lines, text, the file
   >>slice   spheres where a plane cuts them
   >>probe   one small sphere, and what is tested for it by each method
   >>draw    the two panels: what is tested for a small sphere, and for all

   Drawn without a library at twice the size, and then halved: that smooths the edges. stb_image_write makes the PNG, stb_easy_font
   the letters (Debian: libstb-dev). */

#ifndef BROAD_PHASE_DRAW_H
#define BROAD_PHASE_DRAW_H

#include <stb/stb_easy_font.h>
#include <stb/stb_image_write.h>

/* ------------------------------------------------------------------------------------------------
   >>canvas
   ------------------------------------------------------------------------------------------------ */

typedef struct bp_color { float r, g, b; } bp_color;

typedef struct bp_canvas {
    int width, height;
    int left, top, right, bottom;   /* nothing is drawn outside of this */
    unsigned char *rgb;
} bp_canvas;

static void bp_clip(bp_canvas *canvas, int left, int top, int right, int bottom)
{
    canvas->left = left;
    canvas->top = top;
    canvas->right = right;
    canvas->bottom = bottom;
}

static bp_color const bp_white = {1, 1, 1}, bp_ink = {0.16f, 0.18f, 0.22f}, bp_paper = {0.965f, 0.97f, 0.98f};
static bp_color const bp_large_fill = {0.80f, 0.85f, 0.91f}, bp_large_rim = {0.52f, 0.61f, 0.72f};
static bp_color const bp_small_fill = {0.44f, 0.60f, 0.78f}, bp_tested_fill = {0.95f, 0.58f, 0.13f};
static bp_color const bp_cell_line = {0.35f, 0.38f, 0.44f}, bp_cell_fill = {1, 0.80f, 0.36f}, bp_probe_fill = {0.82f, 0.07f, 0.12f};

static bp_color bp_mix(bp_color a, bp_color b, float t)
{
    bp_color color;
    color.r = a.r + (b.r - a.r) * t;
    color.g = a.g + (b.g - a.g) * t;
    color.b = a.b + (b.b - a.b) * t;
    return color;
}

/* Covers a pixel with a color: `cover` from 0, not at all, to 1. */
static void bp_put(bp_canvas *canvas, int x, int y, bp_color color, float cover)
{
    float const channels[3] = {color.r, color.g, color.b};
    unsigned char *pixel;
    int c;
    if (x < canvas->left || y < canvas->top || x >= canvas->right || y >= canvas->bottom) return;
    pixel = canvas->rgb + 3 * ((size_t)y * (size_t)canvas->width + (size_t)x);
    for (c = 0; c < 3; c++) pixel[c] = (unsigned char)((float)pixel[c] * (1 - cover) + 255 * channels[c] * cover + 0.5f);
}

static void bp_fill(bp_canvas *canvas, int x0, int y0, int x1, int y1, bp_color color, float cover)
{
    int x, y;
    for (y = y0; y < y1; y++)
        for (x = x0; x < x1; x++) bp_put(canvas, x, y, color, cover);
}

/* The rim of a rectangle, `thick` pixels wide, inside of it. */
static void bp_frame(bp_canvas *canvas, int x0, int y0, int x1, int y1, int thick, bp_color color, float cover)
{
    bp_fill(canvas, x0, y0, x1, y0 + thick, color, cover);
    bp_fill(canvas, x0, y1 - thick, x1, y1, color, cover);
    bp_fill(canvas, x0, y0 + thick, x0 + thick, y1 - thick, color, cover);
    bp_fill(canvas, x1 - thick, y0 + thick, x1, y1 - thick, color, cover);
}

static bp_canvas bp_canvas_new(int width, int height, bp_color color)
{
    bp_canvas canvas;
    canvas.left = canvas.top = 0;
    canvas.width = canvas.right = width;
    canvas.height = canvas.bottom = height;
    canvas.rgb = (unsigned char *)bp_alloc((size_t)width * (size_t)height, 3);
    bp_fill(&canvas, 0, 0, width, height, color, 1);
    return canvas;
}

enum { BP_TEXT = 160 };

/* The font comes as rectangles of four corners {x, y, z, color}. */
static void bp_text(bp_canvas *canvas, int x, int y, int scale, bp_color color, const char *text)
{
    struct { float x, y, z; unsigned char rgba[4]; } corner[4 * 6 * BP_TEXT];
    char copy[BP_TEXT];
    int k, quads;
    snprintf(copy, sizeof copy, "%s", text);
    quads = stb_easy_font_print(0, 0, copy, NULL, corner, (int)sizeof corner);
    for (k = 0; k < quads; k++) {
        int const left = x + scale * (int)corner[4 * k].x, top = y + scale * (int)corner[4 * k].y;
        bp_fill(canvas, left, top, x + scale * (int)corner[4 * k + 2].x, y + scale * (int)corner[4 * k + 2].y, color, 1);
    }
}

/* Each pixel of the half is the average of four. */
static bp_canvas bp_halved(const bp_canvas *from)
{
    bp_canvas to = bp_canvas_new(from->width / 2, from->height / 2, bp_white);
    size_t const row = 3 * (size_t)from->width;
    int x, y, c;
    for (y = 0; y < to.height; y++)
        for (x = 0; x < to.width; x++) {
            const unsigned char *s = from->rgb + (size_t)(2 * y) * row + (size_t)(6 * x);
            unsigned char *t = to.rgb + 3 * ((size_t)y * (size_t)to.width + (size_t)x);
            for (c = 0; c < 3; c++) t[c] = (unsigned char)((s[c] + s[c + 3] + s[row + (size_t)c] + s[row + (size_t)c + 3] + 2) / 4);
        }
    return to;
}

static void bp_put_bytes(void *file, void *bytes, int count) { fwrite(bytes, 1, (size_t)count, (FILE *)file); }

static void bp_save(const bp_canvas *canvas, const char *path)
{
    FILE *file = fopen(path, "wb");
    int written;
    if (!file) bp_stop(1, "%s: %s", path, strerror(errno));
    written = stbi_write_png_to_func(bp_put_bytes, file, canvas->width, canvas->height, 3, canvas->rgb, 3 * canvas->width);
    if (ferror(file) | fclose(file) | (written == 0)) bp_stop(1, "%s: could not be written: %s", path, strerror(errno));
}

/* ------------------------------------------------------------------------------------------------
   >>slice: a plane of one z; x goes to the right, y up
   ------------------------------------------------------------------------------------------------ */

typedef struct bp_view {
    int left, top, size;    /* of the square on the canvas */
    float origin[2], scale; /* pixels per unit */
    float z;
} bp_view;

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
    view.z = scene->least[2] + 0.375f * (scene->most[2] - scene->least[2]); /* not in the middle, where the largest boxes meet */
    return view;
}

static float bp_x(const bp_view *view, float x) { return (float)view->left + (x - view->origin[0]) * view->scale; }
static float bp_y(const bp_view *view, float y) { return (float)(view->top + view->size) - (y - view->origin[1]) * view->scale; }

/* A disc with a rim, radius and rim in pixels. */
static void bp_disc(bp_canvas *canvas, float x, float y, float radius, bp_color fill, bp_color rim, float thick)
{
    int const x0 = (int)floorf(x - radius), x1 = (int)ceilf(x + radius), y0 = (int)floorf(y - radius), y1 = (int)ceilf(y + radius);
    float const inside = radius - thick > 0 ? radius - thick : 0;
    int px, py;
    for (py = y0; py <= y1; py++)
        for (px = x0; px <= x1; px++) {
            float const dx = (float)px + 0.5f - x, dy = (float)py + 0.5f - y, d2 = dx * dx + dy * dy;
            if (d2 <= radius * radius) bp_put(canvas, px, py, d2 <= inside * inside ? fill : rim, 1);
        }
}

/* Where the plane cuts the sphere there is a disc; 0 if it does not. */
static float bp_cut(const bp_view *view, const bp_sphere *sphere)
{
    float const away = view->z - sphere->p[2], rest = sphere->radius * sphere->radius - away * away;
    return rest > 0 ? view->scale * sqrtf(rest) : 0;
}

/* The large ones first, the small ones on top: orange where `tested` says so. */
static void bp_draw_spheres(bp_canvas *canvas, const bp_view *view, const bp_scene *scene, const uint8_t *tested)
{
    int32_t i;
    int pass;
    for (pass = 0; pass < 2; pass++)
        for (i = 0; i < scene->n; i++) {
            const bp_sphere *s = &scene->sphere[i];
            int const large = s->radius > 0.5f * scene->largest;
            float const radius = bp_cut(view, s);
            bp_color fill = large ? bp_large_fill : bp_small_fill;
            if (large != !pass || radius <= 0) continue;
            if (tested[i]) fill = bp_tested_fill;
            if (tested[i] && large) { fill.g += 0.25f; fill.b += 0.45f; }
            bp_disc(canvas, bp_x(view, s->p[0]), bp_y(view, s->p[1]), radius, fill, large ? bp_large_rim : fill, 3);
        }
}

/* A box that the plane cuts: its area, or its rim. */
static void bp_rectangle(bp_canvas *canvas, const bp_view *view, const lbvh_node *node, bp_color color, int rim)
{
    int const x0 = (int)floorf(bp_x(view, node->min[0]) + 0.5f), x1 = (int)floorf(bp_x(view, node->max[0]) + 0.5f);
    int const y0 = (int)floorf(bp_y(view, node->max[1]) + 0.5f), y1 = (int)floorf(bp_y(view, node->min[1]) + 0.5f);
    if (rim) bp_frame(canvas, x0, y0, x1, y1, 4, bp_mix(color, bp_ink, 0.5f), 1);
    else bp_fill(canvas, x0, y0, x1, y1, bp_mix(color, bp_white, 0.3f), 0.13f);
}

/* ------------------------------------------------------------------------------------------------
   >>probe
   ------------------------------------------------------------------------------------------------ */

/* The smallest sphere that the plane cuts; of these one near 3/8 of the way along x and y. */
static int32_t bp_find_probe(const bp_view *view, const bp_scene *scene)
{
    float const x = scene->least[0] + 0.375f * (scene->most[0] - scene->least[0]);
    float const y = scene->least[1] + 0.375f * (scene->most[1] - scene->least[1]);
    float best = 1e30f;
    int32_t i, probe = 0;
    for (i = 0; i < scene->n; i++) {
        const bp_sphere *s = &scene->sphere[i];
        float const dx = s->p[0] - x, dy = s->p[1] - y, score = dx * dx + dy * dy + 1e6f * s->radius * s->radius;
        if (score >= best || bp_cut(view, s) <= 0.5f * view->scale * s->radius) continue;
        best = score;
        probe = i;
    }
    return probe;
}

/* Marks what the grid tests for the probe: all of the cells around it. */
static int32_t bp_mark_by_grid(const bp_scene *scene, const ugrid *grid, int32_t probe, uint8_t *tested)
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

/* Marks what the tree tests: leaves that the walk looks at. Returns the number of all nodes that it looks at. */
static int32_t bp_mark_by_tree(const bp_scene *scene, const lbvh *tree, int32_t probe, uint8_t *tested)
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

/* ------------------------------------------------------------------------------------------------
   >>draw
   ------------------------------------------------------------------------------------------------ */

/* What is drawn. */
typedef struct bp_picture {
    const bp_scene *scene;
    const ugrid *grid;
    const lbvh *tree;
    int64_t grid_tests, tree_tests;
    int32_t probe, level;
} bp_picture;

static bp_picture bp_picture_of(const bp_scene *scene, const ugrid *grid, const lbvh *tree, const bp_result *by_grid,
                                const bp_result *by_tree)
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
        float const at = p->scene->sphere[p->probe].p[a] + (side ? bp_reach(p->scene) : -bp_reach(p->scene));
        float const cell = floorf((at - axis->min) * axis->per_cell), last = (float)(axis->cells - 1);
        edge[side] = axis->min + ((cell < 0 ? 0 : cell > last ? last : cell) + (float)side) / axis->per_cell;
    }
}

static void bp_draw_near_cells(bp_canvas *canvas, const bp_view *view, const bp_picture *p)
{
    float x[2], y[2];
    bp_near_cells(p, 0, x);
    bp_near_cells(p, 1, y);
    bp_fill(canvas, (int)bp_x(view, x[0]), (int)bp_y(view, y[1]), (int)bp_x(view, x[1]), (int)bp_y(view, y[0]), bp_cell_fill, 0.5f);
}

static void bp_draw_cells(bp_canvas *canvas, const bp_view *view, const ugrid *grid)
{
    int const right = view->left + view->size, bottom = view->top + view->size;
    int32_t k;
    for (k = 0; k <= grid->axis[0].cells; k++) {
        int const x = (int)(bp_x(view, grid->axis[0].min + (float)k / grid->axis[0].per_cell) + 0.5f);
        bp_fill(canvas, x - 1, view->top, x + 2, bottom, bp_cell_line, 1);
    }
    for (k = 0; k <= grid->axis[1].cells; k++) {
        int const y = (int)(bp_y(view, grid->axis[1].min + (float)k / grid->axis[1].per_cell) + 0.5f);
        bp_fill(canvas, view->left, y - 1, right, y + 2, bp_cell_line, 1);
    }
}

/* Boxes about as wide as the large spheres. Every third level they are cubes, for the axes are halved in turn. */
static int32_t bp_level_for(const bp_scene *scene)
{
    double volume = 1;
    int a;
    for (a = 0; a < 3; a++) volume *= 1 + (double)(scene->most[a] - scene->least[a]) / (2 * (double)scene->largest);
    return volume >= 8 ? (int32_t)(log(volume) / log(8.0)) * 3 : 1;
}

/* A pale color for each node, neighbours unlike. */
static bp_color bp_pastel(int32_t number)
{
    float const turn = (float)number * 0.618034f, hue = 6 * (turn - floorf(turn));
    float const f[3] = {hue, hue + 4, hue + 2};
    float channel[3];
    bp_color color;
    int c;
    for (c = 0; c < 3; c++) {
        float const h = fabsf(fmodf(f[c], 6) - 3) - 1;
        channel[c] = h < 0 ? 0 : h > 1 ? 1 : h;
    }
    color.r = channel[0];
    color.g = channel[1];
    color.b = channel[2];
    return color;
}

/* The boxes of the nodes `level` steps below `at`, and of leaves that come before that. */
static void bp_draw_level(bp_canvas *canvas, const bp_view *view, const lbvh *tree, int32_t at, int32_t level, int32_t *number,
                          int rims)
{
    const lbvh_node *node = &tree->node[at];
    if (level > 0 && !lbvh_is_leaf(tree, at)) {
        bp_draw_level(canvas, view, tree, node->link, level - 1, number, rims);
        bp_draw_level(canvas, view, tree, lbvh_right_child(tree, node), level - 1, number, rims);
    } else if (node->min[2] <= view->z && node->max[2] >= view->z) {
        bp_rectangle(canvas, view, node, bp_pastel((*number)++), rims);
    }
}

static void bp_draw_probe(bp_canvas *canvas, const bp_view *view, const bp_sphere *probe)
{
    float const x = bp_x(view, probe->p[0]), y = bp_y(view, probe->p[1]), radius = view->scale * probe->radius;
    bp_disc(canvas, x, y, radius + 8, bp_white, bp_white, 0);
    bp_disc(canvas, x, y, radius + 3, bp_probe_fill, bp_probe_fill, 0);
}

/* From here on only the panel is drawn on. */
static void bp_begin_panel(bp_canvas *canvas, const bp_view *view, const char *title, const char *text, int64_t tests)
{
    char all[BP_TEXT];
    bp_text(canvas, view->left, view->top - 122, 5, bp_ink, title);
    bp_text(canvas, view->left, view->top - 70, 3, bp_ink, text);
    snprintf(all, sizeof all, "for all, each pair once: %.1f million boxes are tested", 1e-6 * (double)tests);
    bp_text(canvas, view->left, view->top - 34, 3, bp_ink, all);
    bp_clip(canvas, view->left, view->top, view->left + view->size, view->top + view->size);
    bp_fill(canvas, canvas->left, canvas->top, canvas->right, canvas->bottom, bp_paper, 1);
}

static void bp_end_panel(bp_canvas *canvas, const bp_view *view, const bp_sphere *probe)
{
    bp_draw_probe(canvas, view, probe);
    bp_frame(canvas, canvas->left, canvas->top, canvas->right, canvas->bottom, 3, bp_cell_line, 1);
    bp_clip(canvas, 0, 0, canvas->width, canvas->height);
}

static void bp_draw_grid_panel(bp_canvas *canvas, const bp_view *view, const bp_picture *p)
{
    uint8_t *tested = (uint8_t *)bp_alloc((size_t)p->scene->n, 1);
    long const count = (long)bp_mark_by_grid(p->scene, p->grid, p->probe, tested);
    char text[BP_TEXT];
    snprintf(text, sizeof text, "%ld spheres are tested for the red one (orange: those in this slice)", count);
    bp_begin_panel(canvas, view, "grid: cells as wide as a large sphere", text, p->grid_tests);
    bp_draw_near_cells(canvas, view, p);
    bp_draw_spheres(canvas, view, p->scene, tested);
    bp_draw_cells(canvas, view, p->grid);
    bp_end_panel(canvas, view, &p->scene->sphere[p->probe]);
    free(tested);
}

static void bp_draw_tree_panel(bp_canvas *canvas, const bp_view *view, const bp_picture *p)
{
    uint8_t *tested = (uint8_t *)bp_alloc((size_t)p->scene->n, 1);
    long const count = (long)bp_mark_by_tree(p->scene, p->tree, p->probe, tested);
    int32_t number = 0;
    char title[BP_TEXT], text[BP_TEXT];
    snprintf(title, sizeof title, "tree: its boxes of level %ld", (long)p->level);
    snprintf(text, sizeof text, "%ld boxes are tested for the red one (orange: spheres among them)", count);
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
    bp_canvas twice = bp_canvas_new(2 * size + 3 * gap, top + size + gap, bp_white), canvas;
    bp_view const left = bp_view_of(p.scene, gap, top, size), right = bp_view_of(p.scene, 2 * gap + size, top, size);
    p.probe = bp_find_probe(&left, p.scene);
    p.level = o->level ? o->level : bp_level_for(p.scene);
    bp_draw_grid_panel(&twice, &left, &p);
    bp_draw_tree_panel(&twice, &right, &p);
    canvas = bp_halved(&twice);
    bp_save(&canvas, o->picture);
    free(canvas.rgb);
    free(twice.rgb);
}

#endif /* BROAD_PHASE_DRAW_H */
