/* drum_draw.h - the pictures of the drum: shaded spheres colored by speed, and the inner side of
   the drum behind them.
   SPDX-License-Identifier: MIT OR Unlicense

   >>camera     from the room to the picture
   >>triangles  the drum's walls, where they are seen from inside
   >>lines      its sharp edges
   >>spheres    discs with the shading and the depth of spheres
   >>frame      one picture */

#ifndef DRUM_DRAW_H
#define DRUM_DRAW_H

#include "../common/shade.h"

/* -------------------------------------------------------------------------------------------------
   >>camera: in front of the drum, a little to the right and above

              z  y            eye at -y; x to the right, y away, z up
              | /             at distance d along `forward` a metre is focal / d pixels long
              +-- x
   ---------------------------------------------------------------------------------------------- */

typedef struct drum_camera {
    float eye[3], right[3], up[3], forward[3];
    float focal, middle;        /* pixels */
} drum_camera;

static drum_camera drum_camera_for(const drum_mesh *mesh, int pixels)
{
    float const turn = 0.42f, rise = 0.20f; /* radians */
    float const half = 0.5f * (mesh->high - mesh->low),
                reach = sqrtf(mesh->radius * mesh->radius + half * half), away = 5 * reach;
    drum_camera c;
    int a;
    c.forward[0] = -sinf(turn) * cosf(rise);
    c.forward[1] = cosf(turn) * cosf(rise);
    c.forward[2] = -sinf(rise);
    c.right[0] = cosf(turn);
    c.right[1] = sinf(turn);
    c.right[2] = 0;
    dem_cross(c.right, c.forward, c.up);
    for (a = 0; a < 3; a++) c.eye[a] = -away * c.forward[a];
    c.eye[1] += 0.5f * (mesh->low + mesh->high);
    c.middle = 0.5f * (float)pixels;
    c.focal = 0.97f * c.middle * sqrtf(away * away - reach * reach) / reach;
    return c;
}

/* Where a point appears: x, y in pixels, and its distance. */
static void drum_project(const drum_camera *c, const float p[3], float at[3])
{
    float const d[3] = {p[0] - c->eye[0], p[1] - c->eye[1], p[2] - c->eye[2]};
    at[2] = dem_dot(d, c->forward);
    at[0] = c->middle + c->focal * dem_dot(d, c->right) / at[2];
    at[1] = c->middle - c->focal * dem_dot(d, c->up) / at[2];
}

/* -------------------------------------------------------------------------------------------------
   >>triangles
   ---------------------------------------------------------------------------------------------- */

/* Fills a triangle; 1 / depth is linear in the picture. Nothing where its front is seen: that is
   the drum's outer side. */
static void drum_draw_triangle(picture *canvas, float at[3][3], rgb color)
{
    float const area = (at[1][0] - at[0][0]) * (at[2][1] - at[0][1]) -
                       (at[1][1] - at[0][1]) * (at[2][0] - at[0][0]);
    int const last = canvas->width - 1;
    int const x0 = clamp_pixel(fminf(at[0][0], fminf(at[1][0], at[2][0])), last),
              x1 = clamp_pixel(fmaxf(at[0][0], fmaxf(at[1][0], at[2][0])), last);
    int const y0 = clamp_pixel(fminf(at[0][1], fminf(at[1][1], at[2][1])), last),
              y1 = clamp_pixel(fmaxf(at[0][1], fmaxf(at[1][1], at[2][1])), last);
    int x, y, k;
    if (!(area > 0)) return;
    for (y = y0; y <= y1; y++)
        for (x = x0; x <= x1; x++) {
            float const px = (float)x + 0.5f, py = (float)y + 0.5f;
            float inverse = 0, least = 1;
            for (k = 0; k < 3; k++) {
                const float *a = at[(k + 1) % 3], *b = at[(k + 2) % 3];
                float const part =
                    ((b[0] - a[0]) * (py - a[1]) - (b[1] - a[1]) * (px - a[0])) / area;
                least = fminf(least, part);
                inverse += part / at[k][2];
            }
            if (least >= 0) draw_pixel_at(canvas, x, y, 1 / inverse, color);
        }
}

static void drum_draw_walls(picture *canvas, const drum_camera *camera, const drum_mesh *mesh)
{
    int32_t t;
    int c;
    for (t = 0; t < mesh->triangles; t++) {
        float corner[9], at[3][3], normal[3];
        for (c = 0; c < 3; c++) {
            memcpy(corner + 3 * c, drum_vertex(mesh->now, mesh, t, c), 3 * sizeof(float));
            drum_project(camera, corner + 3 * c, at[c]);
        }
        drum_normal(corner, normal);
        /* light falls on what faces up */
        drum_draw_triangle(canvas, at, gray(0.86f - 0.10f * normal[2] - 0.05f * normal[0]));
    }
}

/* -------------------------------------------------------------------------------------------------
   >>lines
   ---------------------------------------------------------------------------------------------- */

/* Two pixels thick; `cover` where it is in front, nothing where it is hidden. */
static void drum_draw_line(picture *canvas, const drum_camera *camera, const float *from,
                           const float *to, rgb color, float cover)
{
    float a[3], b[3];
    int k, i, steps, flat;
    drum_project(camera, from, a);
    drum_project(camera, to, b);
    flat = fabsf(b[0] - a[0]) > fabsf(b[1] - a[1]);
    steps = 1 + (int)fmaxf(fabsf(b[0] - a[0]), fabsf(b[1] - a[1]));
    for (k = 0; k < steps; k++) {
        float const t = (float)k / (float)steps, x = a[0] + (b[0] - a[0]) * t,
                    y = a[1] + (b[1] - a[1]) * t, depth = a[2] + (b[2] - a[2]) * t;
        for (i = 0; i < 2; i++) {
            int const px = (int)x + (flat ? 0 : i), py = (int)y + (flat ? i : 0);
            if (px < 0 || py < 0 || px >= canvas->width || py >= canvas->height) continue;
            if (depth <= 1.002f * canvas->depth[(size_t)py * (size_t)canvas->width + (size_t)px])
                draw_pixel(canvas, px, py, color, cover);
        }
    }
}

static void drum_triangle_normal(const drum_mesh *mesh, int32_t t, float normal[3])
{
    float corner[9];
    int c;
    for (c = 0; c < 3; c++)
        memcpy(corner + 3 * c, drum_vertex(mesh->now, mesh, t, c), 3 * sizeof(float));
    drum_normal(corner, normal);
}

/* Is the surface bent by more than 20 degrees here? */
static int drum_is_sharp(const drum_mesh *mesh, const drum_edge *edge)
{
    float u[3], v[3];
    if (edge->right < 0) return 1;
    drum_triangle_normal(mesh, edge->left, u);
    drum_triangle_normal(mesh, edge->right, v);
    return dem_dot(u, v) < 0.94f;
}

static void drum_draw_edges(picture *canvas, const drum_camera *camera, const drum_mesh *mesh)
{
    int32_t k;
    for (k = 0; k < mesh->edges; k++) {
        const drum_edge *edge = mesh->edge + k;
        if (drum_is_sharp(mesh, edge))
            drum_draw_line(canvas, camera, mesh->now + 3 * (size_t)edge->a,
                           mesh->now + 3 * (size_t)edge->b, gray(0.25f), 0.55f);
    }
}

/* -------------------------------------------------------------------------------------------------
   >>spheres
   ---------------------------------------------------------------------------------------------- */

/* Of speeds: from dark blue over green to yellow. */
static const rgb drum_colors[5] = {{0.16, 0.17, 0.42},
                                   {0.13, 0.42, 0.60},
                                   {0.18, 0.66, 0.52},
                                   {0.65, 0.83, 0.27},
                                   {1.0, 0.91, 0.25}};

/* The speed that gets the last color: what a sphere gains on half of the way down. */
static float drum_top_speed(const drum_mesh *mesh)
{
    return sqrtf((float)DRUM_GRAVITY * mesh->radius);
}

static void drum_draw_spheres(picture *canvas, const drum_camera *camera, const drum_mesh *mesh,
                              const drum_state *state)
{
    float const top = drum_top_speed(mesh);
    int32_t i;
    for (i = 0; i < state->n; i++) {
        const float *p = state->pos + 4 * (size_t)i, *v = state->vel + 4 * (size_t)i;
        float at[3];
        drum_project(camera, p, at);
        draw_sphere(canvas, at[0], at[1], p[3] * camera->focal / at[2], at[2], p[3],
                    color_map(drum_colors, 5, sqrtf(dem_dot(v, v)) / top));
    }
}

/* -------------------------------------------------------------------------------------------------
   >>frame
   ---------------------------------------------------------------------------------------------- */

enum { DRUM_FRAME = 720, DRUM_HEADER = 44, DRUM_FOOTER = 30 };

static void drum_draw_frame(const drum_options *o, const drum_setup *setup, const drum_state *state,
                            int32_t number, int32_t step)
{
    picture twice = picture_with_depth(2 * DRUM_FRAME, 2 * DRUM_FRAME, gray(1)),
            canvas = picture_new(DRUM_FRAME, DRUM_HEADER + DRUM_FRAME + DRUM_FOOTER, gray(1));
    drum_camera const camera = drum_camera_for(&setup->mesh, 2 * DRUM_FRAME);
    char text[1200], fastest[32];
    drum_draw_walls(&twice, &camera, &setup->mesh);
    drum_draw_spheres(&twice, &camera, &setup->mesh, state);
    drum_draw_edges(&twice, &camera, &setup->mesh);
    picture_halve(&twice, &canvas, 0, DRUM_HEADER);
    snprintf(text, sizeof text, "%ld spheres, %.3f s, %.2f turns", (long)state->n,
             (double)step * (double)setup->system.dt, drum_angle(setup, step) / (2 * PI));
    draw_text(&canvas, 14, 14, 2, gray(0.2), text);
    snprintf(fastest, sizeof fastest, "%.2f m/s", (double)drum_top_speed(&setup->mesh));
    draw_legend(&canvas, canvas.width - 14, canvas.height - 22, "speed 0", drum_colors, 5, fastest);
    snprintf(text, sizeof text, "%s/frame_%04ld.png", o->out, (long)number);
    picture_save(&canvas, text);
    picture_free(&twice);
    picture_free(&canvas);
}

#endif /* DRUM_DRAW_H */
