/* drum_draw.h - the pictures of the drum: shaded spheres colored by speed, and the inner side of the drum behind them.
   SPDX-License-Identifier: MIT OR Unlicense

   >>canvas     pixels, text, the file
   >>camera     from the room to the picture
   >>triangles  the drum's walls, where they are seen from inside
   >>lines      its sharp edges
   >>spheres    discs with the shading and the depth of spheres
   >>frame      one picture

   Everything is drawn without libraries, at twice the size, and then halved: that smooths the edges. stb_image_write makes
   the PNG, stb_easy_font the letters (Debian: libstb-dev). */

#ifndef DRUM_DRAW_H
#define DRUM_DRAW_H

#include <stb/stb_easy_font.h>
#include <stb/stb_image_write.h>

/* ------------------------------------------------------------------------------------------------
   >>canvas
   ------------------------------------------------------------------------------------------------ */

typedef struct drum_color { float r, g, b; } drum_color;

typedef struct drum_canvas {
    int width, height;
    unsigned char *rgb;
    float *depth;       /* of what was drawn last, from the eye; NULL where nothing hides anything */
} drum_canvas;

static drum_color drum_gray(float level)
{
    drum_color color;
    color.r = color.g = color.b = level;
    return color;
}

static drum_color drum_mix(drum_color a, drum_color b, float t)
{
    drum_color color;
    color.r = a.r + (b.r - a.r) * t;
    color.g = a.g + (b.g - a.g) * t;
    color.b = a.b + (b.b - a.b) * t;
    return color;
}

/* Covers a pixel: `cover` from 0, not at all, to 1. */
static void drum_put(drum_canvas *canvas, int x, int y, drum_color color, float cover)
{
    float const channel[3] = {color.r, color.g, color.b};
    unsigned char *pixel = canvas->rgb + 3 * ((size_t)y * (size_t)canvas->width + (size_t)x);
    int c;
    for (c = 0; c < 3; c++) {
        float const level = (float)pixel[c] * (1 - cover) + 255 * channel[c] * cover;
        pixel[c] = (unsigned char)(level <= 0 ? 0 : level >= 255 ? 255 : (int)(level + 0.5f));
    }
}

static void drum_rectangle(drum_canvas *canvas, int x0, int y0, int width, int height, drum_color color)
{
    int x, y;
    for (y = y0 < 0 ? 0 : y0; y < y0 + height && y < canvas->height; y++)
        for (x = x0 < 0 ? 0 : x0; x < x0 + width && x < canvas->width; x++) drum_put(canvas, x, y, color, 1);
}

static drum_canvas drum_canvas_new(int width, int height, int with_depth)
{
    size_t const pixels = (size_t)width * (size_t)height;
    drum_canvas canvas;
    size_t k;
    canvas.width = width;
    canvas.height = height;
    canvas.rgb = (unsigned char *)drum_alloc(pixels, 3);
    canvas.depth = with_depth ? (float *)drum_alloc(pixels, sizeof(float)) : NULL;
    memset(canvas.rgb, 255, 3 * pixels);
    for (k = 0; with_depth && k < pixels; k++) canvas.depth[k] = 1e30f;
    return canvas;
}

static void drum_canvas_free(drum_canvas *canvas)
{
    free(canvas->rgb);
    free(canvas->depth);
    memset(canvas, 0, sizeof *canvas);
}

enum { DRUM_TEXT = 120 };

/* The font comes as rectangles of four corners {x, y, z, color}. */
static void drum_text(drum_canvas *canvas, int x, int y, const char *text)
{
    struct { float x, y, z; unsigned char rgba[4]; } corner[4 * 6 * DRUM_TEXT];
    char copy[DRUM_TEXT];
    int k, quads;
    snprintf(copy, sizeof copy, "%s", text);
    quads = stb_easy_font_print(0, 0, copy, NULL, corner, (int)sizeof corner);
    for (k = 0; k < quads; k++) {
        int const left = (int)corner[4 * k].x, top = (int)corner[4 * k].y;
        drum_rectangle(canvas, x + 2 * left, y + 2 * top, 2 * ((int)corner[4 * k + 2].x - left),
                       2 * ((int)corner[4 * k + 2].y - top), drum_gray(0.2f));
    }
}

/* Copies a canvas of twice the size to (0, top): each pixel is the average of four. */
static void drum_halve(const drum_canvas *from, drum_canvas *to, int top)
{
    size_t const row = 3 * (size_t)from->width;
    int x, y, c;
    for (y = 0; y < from->height / 2; y++)
        for (x = 0; x < from->width / 2; x++) {
            const unsigned char *s = from->rgb + (size_t)(2 * y) * row + (size_t)(6 * x);
            unsigned char *t = to->rgb + 3 * ((size_t)(top + y) * (size_t)to->width + (size_t)x);
            for (c = 0; c < 3; c++) t[c] = (unsigned char)((s[c] + s[c + 3] + s[row + (size_t)c] + s[row + (size_t)c + 3] + 2) / 4);
        }
}

static void drum_put_bytes(void *file, void *bytes, int count) { fwrite(bytes, 1, (size_t)count, (FILE *)file); }

static void drum_save_png(const drum_canvas *canvas, const char *path)
{
    FILE *file = drum_create(path);
    if (!stbi_write_png_to_func(drum_put_bytes, file, canvas->width, canvas->height, 3, canvas->rgb, 3 * canvas->width))
        drum_stop(1, "%s: out of memory", path);
    drum_close(file, path);
}

/* ------------------------------------------------------------------------------------------------
   >>camera: in front of the drum, a little to the right and above

              z  y            eye at -y; x to the right, y away, z up
              | /             a point at distance d along `forward` appears focal / d pixels per metre
              +-- x
   ------------------------------------------------------------------------------------------------ */

typedef struct drum_camera {
    float eye[3], right[3], up[3], forward[3];
    float focal, middle;        /* pixels */
} drum_camera;

static drum_camera drum_camera_for(const drum_mesh *mesh, int pixels)
{
    float const turn = 0.42f, rise = 0.20f; /* radians */
    float const half = 0.5f * (mesh->high - mesh->low), reach = sqrtf(mesh->radius * mesh->radius + half * half), away = 5 * reach;
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

/* Draws a pixel if nothing lies before it. */
static void drum_put_at(drum_canvas *canvas, int x, int y, float depth, drum_color color)
{
    float *before = canvas->depth + (size_t)y * (size_t)canvas->width + (size_t)x;
    if (depth >= *before) return;
    *before = depth;
    drum_put(canvas, x, y, color, 1);
}

static int drum_clamp(float x, int most) { return x < 0 ? 0 : x > (float)most ? most : (int)x; }

/* ------------------------------------------------------------------------------------------------
   >>triangles
   ------------------------------------------------------------------------------------------------ */

/* Fills a triangle; 1 / depth is linear in the picture. Nothing where its front is seen: that is the drum's outer side. */
static void drum_draw_triangle(drum_canvas *canvas, float at[3][3], drum_color color)
{
    float const area = (at[1][0] - at[0][0]) * (at[2][1] - at[0][1]) - (at[1][1] - at[0][1]) * (at[2][0] - at[0][0]);
    int const last = canvas->width - 1;
    int const x0 = drum_clamp(fminf(at[0][0], fminf(at[1][0], at[2][0])), last),
              x1 = drum_clamp(fmaxf(at[0][0], fmaxf(at[1][0], at[2][0])), last);
    int const y0 = drum_clamp(fminf(at[0][1], fminf(at[1][1], at[2][1])), last),
              y1 = drum_clamp(fmaxf(at[0][1], fmaxf(at[1][1], at[2][1])), last);
    int x, y, k;
    if (!(area > 0)) return;
    for (y = y0; y <= y1; y++)
        for (x = x0; x <= x1; x++) {
            float const px = (float)x + 0.5f, py = (float)y + 0.5f;
            float inverse = 0, least = 1;
            for (k = 0; k < 3; k++) {
                const float *a = at[(k + 1) % 3], *b = at[(k + 2) % 3];
                float const part = ((b[0] - a[0]) * (py - a[1]) - (b[1] - a[1]) * (px - a[0])) / area;
                least = fminf(least, part);
                inverse += part / at[k][2];
            }
            if (least >= 0) drum_put_at(canvas, x, y, 1 / inverse, color);
        }
}

static void drum_draw_walls(drum_canvas *canvas, const drum_camera *camera, const drum_mesh *mesh)
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
        drum_draw_triangle(canvas, at, drum_gray(0.86f - 0.10f * normal[2] - 0.05f * normal[0])); /* light falls on what faces up */
    }
}

/* ------------------------------------------------------------------------------------------------
   >>lines
   ------------------------------------------------------------------------------------------------ */

/* Two pixels thick; `cover` where it is in front, nothing where it is hidden. */
static void drum_draw_line(drum_canvas *canvas, const drum_camera *camera, const float *from, const float *to, drum_color color,
                           float cover)
{
    float a[3], b[3];
    int k, i, steps, flat;
    drum_project(camera, from, a);
    drum_project(camera, to, b);
    flat = fabsf(b[0] - a[0]) > fabsf(b[1] - a[1]);
    steps = 1 + (int)fmaxf(fabsf(b[0] - a[0]), fabsf(b[1] - a[1]));
    for (k = 0; k < steps; k++) {
        float const t = (float)k / (float)steps, x = a[0] + (b[0] - a[0]) * t, y = a[1] + (b[1] - a[1]) * t,
                    depth = a[2] + (b[2] - a[2]) * t;
        for (i = 0; i < 2; i++) {
            int const px = (int)x + (flat ? 0 : i), py = (int)y + (flat ? i : 0);
            if (px < 0 || py < 0 || px >= canvas->width || py >= canvas->height) continue;
            if (depth <= 1.002f * canvas->depth[(size_t)py * (size_t)canvas->width + (size_t)px])
                drum_put(canvas, px, py, color, cover);
        }
    }
}

static void drum_triangle_normal(const drum_mesh *mesh, int32_t t, float normal[3])
{
    float corner[9];
    int c;
    for (c = 0; c < 3; c++) memcpy(corner + 3 * c, drum_vertex(mesh->now, mesh, t, c), 3 * sizeof(float));
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

static void drum_draw_edges(drum_canvas *canvas, const drum_camera *camera, const drum_mesh *mesh)
{
    int32_t k;
    for (k = 0; k < mesh->edges; k++) {
        const drum_edge *edge = mesh->edge + k;
        if (drum_is_sharp(mesh, edge))
            drum_draw_line(canvas, camera, mesh->now + 3 * (size_t)edge->a, mesh->now + 3 * (size_t)edge->b, drum_gray(0.25f),
                           0.55f);
    }
}

/* ------------------------------------------------------------------------------------------------
   >>spheres
   ------------------------------------------------------------------------------------------------ */

/* Speed from 0 to 1 as a color: from dark blue over green to yellow. */
static drum_color drum_ramp(float t)
{
    static const drum_color colors[] = {
        {0.16f, 0.17f, 0.42f}, {0.13f, 0.42f, 0.60f}, {0.18f, 0.66f, 0.52f}, {0.65f, 0.83f, 0.27f}, {1.0f, 0.91f, 0.25f}
    };
    float const at = 4 * (t <= 0 ? 0 : t >= 1 ? 1 : t);
    int const k = at < 3 ? (int)at : 3;
    return drum_mix(colors[k], colors[k + 1], at - (float)k);
}

/* The speed that gets the last color: what a sphere gains on half of the way down. */
static float drum_top_speed(const drum_mesh *mesh) { return sqrtf((float)DRUM_GRAVITY * mesh->radius); }

/* One pixel of a sphere, (dx, dy) from its middle in units of the radius: lit from above on the left. */
static drum_color drum_shade(drum_color color, float dx, float dy, float dz)
{
    float const light = -0.45f * dx - 0.62f * dy + 0.64f * dz;
    float const shine = light > 0.92f ? 2.0f * (light - 0.92f) : 0;
    float const level = 0.42f + 0.68f * (light > 0 ? light : 0);
    drum_color const lit = {color.r * level, color.g * level, color.b * level};
    return drum_mix(lit, drum_gray(1), shine);
}

static void drum_draw_sphere(drum_canvas *canvas, const drum_camera *camera, const float *sphere, drum_color color)
{
    float at[3], radius;
    int x, y, x0, x1, y0, y1;
    drum_project(camera, sphere, at);
    radius = sphere[3] * camera->focal / at[2];
    x0 = drum_clamp(at[0] - radius, canvas->width - 1);
    x1 = drum_clamp(at[0] + radius, canvas->width - 1);
    y0 = drum_clamp(at[1] - radius, canvas->height - 1);
    y1 = drum_clamp(at[1] + radius, canvas->height - 1);
    for (y = y0; y <= y1; y++)
        for (x = x0; x <= x1; x++) {
            float const dx = ((float)x + 0.5f - at[0]) / radius, dy = ((float)y + 0.5f - at[1]) / radius,
                        rest = 1 - dx * dx - dy * dy;
            if (rest > 0) drum_put_at(canvas, x, y, at[2] - sphere[3] * sqrtf(rest), drum_shade(color, dx, dy, sqrtf(rest)));
        }
}

static void drum_draw_spheres(drum_canvas *canvas, const drum_camera *camera, const drum_mesh *mesh, const drum_state *state)
{
    float const top = drum_top_speed(mesh);
    int32_t i;
    for (i = 0; i < state->n; i++) {
        const float *v = state->vel + 4 * (size_t)i;
        drum_draw_sphere(canvas, camera, state->pos + 4 * (size_t)i, drum_ramp(sqrtf(dem_dot(v, v)) / top));
    }
}

/* ------------------------------------------------------------------------------------------------
   >>frame
   ------------------------------------------------------------------------------------------------ */

enum { DRUM_FRAME = 720, DRUM_HEADER = 44, DRUM_FOOTER = 30 };

/* What the colors mean:  speed 0 [......] 1.40 m/s */
static void drum_draw_legend(drum_canvas *canvas, const drum_mesh *mesh)
{
    int const bar = 120, x = canvas->width - 330, y = canvas->height - 22;
    char text[DRUM_TEXT];
    int k;
    drum_text(canvas, x, y, "speed 0");
    for (k = 0; k < bar; k++) drum_rectangle(canvas, x + 100 + k, y - 1, 1, 15, drum_ramp((float)k / (float)bar));
    snprintf(text, sizeof text, "%.2f m/s", (double)drum_top_speed(mesh));
    drum_text(canvas, x + 100 + bar + 12, y, text);
}

static void drum_draw_frame(const drum_options *o, const drum_setup *setup, const drum_state *state, int32_t number, int32_t step)
{
    drum_canvas twice = drum_canvas_new(2 * DRUM_FRAME, 2 * DRUM_FRAME, 1),
                canvas = drum_canvas_new(DRUM_FRAME, DRUM_HEADER + DRUM_FRAME + DRUM_FOOTER, 0);
    drum_camera const camera = drum_camera_for(&setup->mesh, 2 * DRUM_FRAME);
    char text[1200];
    drum_draw_walls(&twice, &camera, &setup->mesh);
    drum_draw_spheres(&twice, &camera, &setup->mesh, state);
    drum_draw_edges(&twice, &camera, &setup->mesh);
    drum_halve(&twice, &canvas, DRUM_HEADER);
    snprintf(text, sizeof text, "%ld spheres, %.3f s, %.2f turns", (long)state->n, (double)step * (double)setup->system.dt,
             drum_angle(setup, step) / (2 * DRUM_PI));
    drum_text(&canvas, 14, 14, text);
    drum_draw_legend(&canvas, &setup->mesh);
    snprintf(text, sizeof text, "%s/frame_%04ld.png", o->out, (long)number);
    drum_save_png(&canvas, text);
    drum_canvas_free(&twice);
    drum_canvas_free(&canvas);
}

#endif /* DRUM_DRAW_H */
