/* tablets_draw.h - pictures of tablets and spheres by rays, with a score line across each cap, in
   front of floor, wall or drum.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef TABLETS_DRAW_H
#define TABLETS_DRAW_H

#include "../common/picture.h"
#include "../common/shape_ray.h"

enum { PANEL_WIDE = 600, PANEL_HIGH = 600, CAPTION = 60, LEAN_SHOTS = 4 }; /* halved in the end */

/* A camera that is infinitely distant: all rays go ahead. */
typedef struct camera { double at[3], right[3], up[3], ahead[3], wide; } camera;

static double dot3(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* From -y, turned to the right by `turn` and up by `rise`. */
static camera look(const scene *s)
{
    double const turn = s->kind == SCENE_LEAN ? 0.5 : 0.35, rise = 0.3;
    camera c = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, 0};
    c.right[0] = cos(turn);
    c.right[1] = sin(turn);
    c.ahead[0] = -sin(turn) * cos(rise);
    c.ahead[1] = cos(turn) * cos(rise);
    c.ahead[2] = -sin(rise);
    c.up[0] = -sin(turn) * sin(rise);
    c.up[1] = cos(turn) * sin(rise);
    c.up[2] = cos(rise);
    c.wide = s->kind == SCENE_LEAN ? 6 * s->options->radius : 2.3 * hypot(s->drum, s->length / 2);
    if (s->kind == SCENE_CLOUD) c.wide = 30 * s->options->radius;
    if (s->kind == SCENE_BOX) {
        c.wide = 1.6 * fmax(fmax(s->wide[0], s->wide[1]), 20 * s->options->radius);
        c.at[2] = 10 * s->options->radius;
    }
    if (s->kind == SCENE_LEAN) c.at[0] = c.at[2] = 1.3 * s->options->radius;
    return c;
}

/* Is the body hit before *t? Then its normal and whether the point is on a score line. */
static int hit_body(const scene *s, int32_t i, const double from[3], const double ahead[3],
                    double *t, double n[3], int *score)
{
    const dem_real *p = s->bodies.base.pos + 4 * (size_t)i;
    dem_real const zero[3] = {0, 0, 0};
    shape_placed const body = dem_body_at(&s->bodies, i, zero);
    shape_span span = {(dem_real)-1e30, (dem_real)1e30, {0, 0, 0}};
    dem_real o[3], d[3];
    int a;
    for (a = 0; a < 3; a++) {
        o[a] = (dem_real)from[a] - p[a];
        d[a] = (dem_real)ahead[a];
    }
    if (!shape_ray(&body, o, d, &span) || (double)span.from >= *t) return 0;
    *t = (double)span.from;
    for (a = 0; a < 3; a++) n[a] = (double)span.n[a];
    dem_add(o, span.from, d);
    *score = body.body->kind == SHAPE_TABLET &&
             fabs((double)dem_dot(o, body.axes[0])) < 0.08 * s->options->radius &&
             fabs((double)dem_dot(span.n, body.axes[2])) > 0.5;
    return 1;
}

/* A plane that is seen from inside, in front of *t, at a point that is inside of all others. */
static int hit_plane(const scene *s, int32_t k, const double from[3], const double ahead[3],
                     double *t, double n[3])
{
    const dem_plane *plane = &s->bodies.base.plane[k];
    double at[3], along, found;
    int32_t other;
    int a;
    for (a = 0; a < 3; a++) n[a] = (double)plane->normal[a];
    along = dot3(n, ahead);
    if (!(along < 0)) return 0;
    found = ((double)plane->offset - dot3(n, from)) / along;
    for (a = 0; a < 3; a++) at[a] = from[a] + found * ahead[a];
    for (other = 0; other < s->bodies.base.planes; other++) {
        const dem_plane *o = &s->bodies.base.plane[other];
        double const m[3] = {(double)o->normal[0], (double)o->normal[1], (double)o->normal[2]};
        if (other != k && dot3(m, at) < (double)o->offset) return 0;
    }
    if (found >= *t) return 0;
    *t = found;
    return 1;
}

/* A triangle that is seen from inside, in front of *t: its number, or -1. Rays are turned back with
   the mesh. */
static int32_t hit_mesh(const scene *s, const double from[3], const double ahead[3], double *t,
                        double n[3])
{
    dem_real o[3], d[3], axes[3][3], seen_from[3], along[3];
    lbvh_ray ray;
    int32_t hit = -1;
    int a;
    for (a = 0; a < 3; a++) {
        o[a] = (dem_real)from[a];
        d[a] = (dem_real)ahead[a];
    }
    shape_axes(s->walls.turn, axes);
    dem_wall_inward(axes, o, seen_from);
    dem_wall_inward(axes, d, along);
    ray = lbvh_ray_cast(&s->walls.tree, seen_from, along, (dem_real)*t);
    while (lbvh_next_ray(&ray)) {
        const dem_real *c[3];
        dem_real ab[3], ac[3], m[3], here, u, v;
        nlist_mesh_corners(&s->walls.mesh, ray.id, c);
        for (a = 0; a < 3; a++) {
            ab[a] = c[1][a] - c[0][a];
            ac[a] = c[2][a] - c[0][a];
        }
        dem_cross(ab, ac, m);
        if (dem_dot(m, along) >= 0 ||
            !lbvh_ray_triangle(seen_from, along, c[0], c[1], c[2], &here, &u, &v) || here < 0 ||
            here >= ray.t_max)
            continue;
        ray.t_max = here;
        *t = (double)here;
        hit = ray.id;
        dem_wall_outward(axes, m, o);
        for (a = 0; a < 3; a++) n[a] = (double)o[a] / sqrt((double)dem_dot(m, m));
    }
    return hit;
}

/* Of coating: none to most. */
enum { COAT_COLORS = 4 };
static const rgb coat_colors[COAT_COLORS] = {{0.96, 0.94, 0.90}, {0.98, 0.80, 0.42},
                                             {0.90, 0.42, 0.22}, {0.50, 0.08, 0.16}};

static rgb tablet_color(const scene *s, int32_t i)
{
    static double const tone[5][3] = {{0.87, 0.42, 0.32}, {0.93, 0.88, 0.78}, {0.4, 0.6, 0.8},
                                      {0.95, 0.75, 0.35}, {0.55, 0.72, 0.5}};
    const double *c = tone[s->kind == SCENE_LEAN ? 0 : s->id[i] % 5];
    if (s->tone) return color_map(coat_colors, COAT_COLORS, s->tone[i]);
    return rgb_of(c[0], c[1], c[2]);
}

static int hits_any(const scene *s, const double from[3], const double ahead[3])
{
    double n[3], t;
    int32_t i;
    int score;
    for (i = 0; i < s->bodies.base.n; i++) {
        t = 1e30;
        if (hit_body(s, i, from, ahead, &t, n, &score) && t > 1e-6) return 1;
    }
    return 0;
}

/* The tablets in the plane of the picture: a ray meets only those within their bound of its point,
   however many there are. */
static ugrid in_picture(const scene *s, const camera *c)
{
    int32_t const n = s->bodies.base.n;
    ugrid_real *at = (ugrid_real *)zeros(2 * (size_t)n, sizeof(ugrid_real));
    ugrid grid;
    ugrid_desc d;
    int32_t i;
    int a;
    memset(&grid, 0, sizeof grid);
    memset(&d, 0, sizeof d);
    d.dim = 2;
    d.cell = (ugrid_real)s->shapes[0].bound;
    for (i = 0; i < n; i++)
        for (a = 0; a < 3; a++) {
            double const p = (double)s->bodies.base.pos[4 * (size_t)i + (size_t)a] - c->at[a];
            at[2 * (size_t)i] += (ugrid_real)(p * c->right[a]);
            at[2 * (size_t)i + 1] += (ugrid_real)(p * c->up[a]);
        }
    MUST(ugrid, ugrid_build(&grid, &d, at, 0, n), "the picture");
    free(at);
    return grid;
}

/* point: where the ray leaves the picture. */
static rgb ray_color(const scene *s, const ugrid *tablets, const ugrid_real point[2],
                     const double from[3], const double ahead[3])
{
    double const light[3] = {0.43, -0.6, 0.674}, reach = s->options->radius;
    double t = 1e30, n[3] = {0, 0, 1}, m[3], at[3], bright;
    rgb color = rgb_of(0.96, 0.96, 0.97);
    ugrid_near near_by = ugrid_near_within(tablets, point, (ugrid_real)(1.05 * s->shapes[0].bound));
    int32_t i;
    int score = 0, here, a, found = 0;
    i = hit_mesh(s, from, ahead, &t, m);
    if (i >= 0) {
        found = 1;
        memcpy(n, m, sizeof n);
        color = gray(0.8 + 0.02 * (i % 5));
    }
    for (i = 0; !s->options->mesh && i < s->bodies.base.planes; i++)
        if (hit_plane(s, i, from, ahead, &t, m)) {
            found = 1;
            memcpy(n, m, sizeof n);
            for (a = 0; a < 3; a++) at[a] = from[a] + t * ahead[a];
            here = (int)floor(at[0] / reach + 1e-6) + (int)floor(at[1] / reach) +
                   (int)floor(at[2] / reach + 1e-6);
            color = gray(here & 1 ? 0.8 : 0.87);
        }
    while (ugrid_next(&near_by))
        if (hit_body(s, near_by.id, from, ahead, &t, m, &here)) {
            found = 2;
            memcpy(n, m, sizeof n);
            score = here;
            color = tablet_color(s, near_by.id);
        }
    if (!found) return color;
    for (a = 0; a < 3; a++) at[a] = from[a] + t * ahead[a] + 1e-4 * reach * n[a];
    bright = fmax(0, dot3(n, light));
    if (s->kind == SCENE_LEAN && hits_any(s, at, light)) bright *= 0.35;
    bright = (score ? 0.25 : 0.4) + (score ? 0.4 : 0.65) * bright;
    return rgb_of(color.r * bright, color.g * bright, color.b * bright);
}

#ifndef TABLETS_AS_PART
static picture panels_new(int columns, int rows)
{
    return columns == 1 ? picture_new(2 * PANEL_WIDE, 2 * PANEL_HIGH, gray(1))
                        : picture_new(columns * PANEL_WIDE, rows * (PANEL_HIGH + CAPTION), gray(1));
}
#endif

/* Panel `column`, `row` of a picture with `columns`; a single one is twice as large. */
static void draw_panel(picture *p, int column, int row, int columns, const scene *s,
                       const char *caption)
{
    camera const c = look(s);
    ugrid tablets = in_picture(s, &c);
    int const size = columns == 1 ? 2 * PANEL_WIDE : PANEL_WIDE;
    int const left = column * PANEL_WIDE, top = row * (PANEL_HIGH + CAPTION);
    int x, y, a;
    for (y = 0; y < size; y++)
        for (x = 0; x < size; x++) {
            double const right = c.wide * ((x + 0.5) / size - 0.5),
                         up = c.wide * (0.5 - (y + 0.5) / size);
            ugrid_real const point[2] = {(ugrid_real)right, (ugrid_real)up};
            double from[3];
            for (a = 0; a < 3; a++)
                from[a] = c.at[a] + right * c.right[a] + up * c.up[a] - 4 * c.wide * c.ahead[a];
            draw_pixel(p, left + x, top + y, ray_color(s, &tablets, point, from, c.ahead), 1);
        }
    ugrid_free(&tablets);
    if (*caption)
        draw_text(p, left + 24, top + size + 16, 4, rgb_of(0.2, 0.22, 0.26), caption);
}

#endif /* TABLETS_DRAW_H */
