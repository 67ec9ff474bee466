/* dam_break_draw.h - the pictures of the dam break: shaded spheres in a box, seen from the front.
   SPDX-License-Identifier: MIT OR Unlicense

   >>canvas   pixels, text, files
   >>camera   from the box to the picture
   >>room     the walls
   >>spheres  discs with the shading and the depth of spheres
   >>album    frames, contact sheet, and files for ParaView

   Everything is drawn without libraries, at twice the size, and then halved: that smooths the edges. stb_image_write makes
   the PNG, stb_easy_font the letters (Debian: libstb-dev). */

#ifndef DAM_BREAK_DRAW_H
#define DAM_BREAK_DRAW_H

#include <stb/stb_easy_font.h>
#include <stb/stb_image_write.h>

/* ------------------------------------------------------------------------------------------------
   >>canvas
   ------------------------------------------------------------------------------------------------ */

typedef struct dam_color { float r, g, b; } dam_color;

typedef struct dam_canvas {
    int width, height;
    unsigned char *rgb;
    float *depth;       /* distance from the front of the box of what was drawn last; only where spheres are drawn */
} dam_canvas;

static dam_color dam_gray(float level)
{
    dam_color color;
    color.r = color.g = color.b = level;
    return color;
}

static dam_color dam_mix(dam_color a, dam_color b, float t)
{
    dam_color color;
    color.r = a.r + (b.r - a.r) * t;
    color.g = a.g + (b.g - a.g) * t;
    color.b = a.b + (b.b - a.b) * t;
    return color;
}

static unsigned char dam_byte(float level)
{
    return (unsigned char)(level <= 0 ? 0 : level >= 1 ? 255 : (int)(level * 255 + 0.5f));
}

static void dam_put(dam_canvas *canvas, int x, int y, dam_color color)
{
    unsigned char *pixel = canvas->rgb + 3 * ((size_t)y * (size_t)canvas->width + (size_t)x);
    pixel[0] = dam_byte(color.r);
    pixel[1] = dam_byte(color.g);
    pixel[2] = dam_byte(color.b);
}

static void dam_fill(dam_canvas *canvas, int x0, int y0, int width, int height, dam_color color)
{
    int x, y;
    for (y = y0 < 0 ? 0 : y0; y < y0 + height && y < canvas->height; y++)
        for (x = x0 < 0 ? 0 : x0; x < x0 + width && x < canvas->width; x++) dam_put(canvas, x, y, color);
}

static dam_canvas dam_canvas_new(int width, int height, int with_depth, dam_color color)
{
    dam_canvas canvas;
    canvas.width = width;
    canvas.height = height;
    canvas.rgb = (unsigned char *)dam_alloc((size_t)width * (size_t)height, 3);
    canvas.depth = with_depth ? (float *)dam_alloc((size_t)width * (size_t)height, sizeof(float)) : NULL;
    dam_fill(&canvas, 0, 0, width, height, color);
    return canvas;
}

static void dam_canvas_free(dam_canvas *canvas)
{
    free(canvas->rgb);
    free(canvas->depth);
    memset(canvas, 0, sizeof *canvas);
}

enum { DAM_TEXT = 160 };

static int dam_text_width(const char *text, int scale)
{
    char copy[DAM_TEXT];
    snprintf(copy, sizeof copy, "%s", text);
    return scale * stb_easy_font_width(copy);
}

/* The font comes as rectangles of four corners {x, y, z, color}. */
static void dam_text(dam_canvas *canvas, int x, int y, int scale, dam_color color, const char *text)
{
    struct { float x, y, z; unsigned char rgba[4]; } corner[4 * 6 * DAM_TEXT];
    char copy[DAM_TEXT];
    int k, quads;
    snprintf(copy, sizeof copy, "%s", text);
    quads = stb_easy_font_print(0, 0, copy, NULL, corner, (int)sizeof corner);
    for (k = 0; k < quads; k++) {
        float const left = corner[4 * k].x, top = corner[4 * k].y, right = corner[4 * k + 2].x, bottom = corner[4 * k + 2].y;
        dam_fill(canvas, x + scale * (int)left, y + scale * (int)top, scale * (int)(right - left), scale * (int)(bottom - top), color);
    }
}

/* Copies a canvas of twice the size to (x0, y0): each pixel is the average of four. */
static void dam_halve(const dam_canvas *from, dam_canvas *to, int x0, int y0)
{
    size_t const row = 3 * (size_t)from->width;
    int x, y, c;
    for (y = 0; y < from->height / 2; y++)
        for (x = 0; x < from->width / 2; x++) {
            const unsigned char *s = from->rgb + (size_t)(2 * y) * row + (size_t)(6 * x);
            unsigned char *t = to->rgb + 3 * ((size_t)(y0 + y) * (size_t)to->width + (size_t)(x0 + x));
            for (c = 0; c < 3; c++) t[c] = (unsigned char)((s[c] + s[c + 3] + s[row + (size_t)c] + s[row + (size_t)c + 3] + 2) / 4);
        }
}

/* As mkdir -p. */
static void dam_make_folder(const char *path)
{
    char part[DAM_LINE];
    size_t k, length = strlen(path);
    if (length >= sizeof part) dam_stop(1, "--out: the name is too long");
    for (k = 1; k <= length; k++) {
        if (path[k] != '/' && path[k] != 0) continue;
        memcpy(part, path, k);
        part[k] = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST) dam_stop(1, "%s: %s", part, strerror(errno));
    }
}

static void dam_put_bytes(void *file, void *bytes, int count) { fwrite(bytes, 1, (size_t)count, (FILE *)file); }

static FILE *dam_open_picture(const char *folder, const char *name, char path[2 * DAM_LINE])
{
    FILE *file;
    snprintf(path, 2 * DAM_LINE, "%s/%s", folder, name);
    file = fopen(path, "wb");
    if (!file) dam_stop(1, "%s: %s", path, strerror(errno));
    return file;
}

static void dam_close_picture(FILE *file, const char *path)
{
    if (ferror(file) | fclose(file)) dam_stop(1, "%s: could not be written: %s", path, strerror(errno));
}

static void dam_save_png(const dam_canvas *canvas, const char *folder, const char *name)
{
    char path[2 * DAM_LINE];
    FILE *file = dam_open_picture(folder, name, path);
    if (!stbi_write_png_to_func(dam_put_bytes, file, canvas->width, canvas->height, 3, canvas->rgb, 3 * canvas->width))
        dam_stop(1, "%s: out of memory", path);
    dam_close_picture(file, path);
}

/* ------------------------------------------------------------------------------------------------
   >>camera: in front of the box, a little above its middle; the front of the box fills the picture

              eye                 a point y cells behind the front appears
               |  distance        smaller by the factor  distance / (distance + y)
          -----+-----  front
              y|
               o
   ------------------------------------------------------------------------------------------------ */

typedef struct dam_camera {
    float eye[3];       /* x, distance from the front, z */
    float scale;        /* pixels per cell at the front */
    float left, top;    /* where the corner x = 0, z = size appears */
    float size[3];
} dam_camera;

static dam_camera dam_camera_for(const dam_model *model, int width, float margin)
{
    dam_camera camera;
    int a;
    for (a = 0; a < 3; a++) camera.size[a] = (float)model->size[a];
    camera.eye[0] = 0.5f * camera.size[0];
    camera.eye[1] = 3.0f * camera.size[0];
    camera.eye[2] = 0.5f * camera.size[2];
    camera.left = camera.top = margin;
    camera.scale = ((float)width - 2 * margin) / camera.size[0];
    return camera;
}

static float dam_shrink(const dam_camera *camera, float y) { return camera->eye[1] / (camera->eye[1] + y); }

/* Where a point of the box appears. */
static void dam_project(const dam_camera *camera, const float p[3], float *x, float *y)
{
    float const s = dam_shrink(camera, p[1]);
    *x = camera->left + camera->scale * (camera->eye[0] + (p[0] - camera->eye[0]) * s);
    *y = camera->top + camera->scale * (camera->size[2] - camera->eye[2] - (p[2] - camera->eye[2]) * s);
}

/* ------------------------------------------------------------------------------------------------
   >>room
   ------------------------------------------------------------------------------------------------ */

/* How deep the line of sight of a pixel goes before it meets the wall that lies at `wall` along one axis. */
static float dam_sight(float eye, float distance, float at, float wall)
{
    float const slope = (at - eye) / distance;
    if ((slope > 0) != (wall > eye) || fabsf(slope) < 1e-9f) return 1e30f;
    return (wall - eye) / slope - distance;
}

/* The color of the wall behind a pixel: floor, sides, ceiling and back are told apart by their light. */
static dam_color dam_wall(const dam_camera *camera, float x, float z)
{
    static float const light[5] = {0.91f, 0.885f, 0.885f, 0.80f, 0.955f}; /* back, left, right, floor, ceiling */
    float depth[5];
    int k, nearest = 0;
    depth[0] = camera->size[1];
    depth[1] = dam_sight(camera->eye[0], camera->eye[1], x, 0);
    depth[2] = dam_sight(camera->eye[0], camera->eye[1], x, camera->size[0]);
    depth[3] = dam_sight(camera->eye[2], camera->eye[1], z, 0);
    depth[4] = dam_sight(camera->eye[2], camera->eye[1], z, camera->size[2]);
    for (k = 1; k < 5; k++) if (depth[k] < depth[nearest]) nearest = k;
    return dam_gray(light[nearest] - 0.05f * (nearest ? depth[nearest] / camera->size[1] : 0));
}

static void dam_draw_room(dam_canvas *canvas, const dam_camera *camera)
{
    int x, y;
    for (y = 0; y < canvas->height; y++)
        for (x = 0; x < canvas->width; x++) {
            float const at_x = ((float)x + 0.5f - camera->left) / camera->scale;
            float const at_z = camera->size[2] - ((float)y + 0.5f - camera->top) / camera->scale;
            int const inside = at_x > 0 && at_x < camera->size[0] && at_z > 0 && at_z < camera->size[2];
            dam_put(canvas, x, y, inside ? dam_wall(camera, at_x, at_z) : dam_gray(1));
            canvas->depth[(size_t)y * (size_t)canvas->width + (size_t)x] = 1e30f;
        }
}

/* A straight edge of the box, two pixels thick, where nothing lies before it. */
static void dam_draw_edge(dam_canvas *canvas, const dam_camera *camera, const float from[3], const float to[3])
{
    int const dots = 4 * canvas->width;
    int k, i;
    for (k = 0; k <= dots; k++) {
        float const t = (float)k / (float)dots;
        float const p[3] = {from[0] + (to[0] - from[0]) * t, from[1] + (to[1] - from[1]) * t, from[2] + (to[2] - from[2]) * t};
        float x, y;
        dam_project(camera, p, &x, &y);
        for (i = 0; i < 4; i++) {
            int const px = (int)x - 1 + i % 2, py = (int)y - 1 + i / 2;
            if (px < 0 || py < 0 || px >= canvas->width || py >= canvas->height) continue;
            if (canvas->depth[(size_t)py * (size_t)canvas->width + (size_t)px] >= p[1]) dam_put(canvas, px, py, dam_gray(0.45f));
        }
    }
}

static void dam_draw_edges(dam_canvas *canvas, const dam_camera *camera)
{
    int a, k;
    for (a = 0; a < 3; a++)
        for (k = 0; k < 4; k++) { /* the four edges along axis a */
            int const b = (a + 1) % 3, c = (a + 2) % 3;
            float from[3], to[3];
            from[a] = 0;
            to[a] = camera->size[a];
            from[b] = to[b] = k % 2 ? camera->size[b] : 0;
            from[c] = to[c] = k / 2 ? camera->size[c] : 0;
            dam_draw_edge(canvas, camera, from, to);
        }
}

/* ------------------------------------------------------------------------------------------------
   >>spheres
   ------------------------------------------------------------------------------------------------ */

/* Speed from 0 to 1 as a color: calm water is deep blue, fast water light, the fastest white as foam. */
static dam_color dam_ramp(float t)
{
    static const dam_color colors[] = {
        {0.05f, 0.16f, 0.42f}, {0.07f, 0.35f, 0.68f}, {0.16f, 0.58f, 0.85f}, {0.45f, 0.80f, 0.92f}, {0.97f, 0.99f, 1.0f}
    };
    float const at = 4 * (t <= 0 ? 0 : t >= 1 ? 1 : t);
    int const k = at < 3 ? (int)at : 3;
    return dam_mix(colors[k], colors[k + 1], at - (float)k);
}

/* The speed that is drawn white: three quarters of what a sphere gains by falling from the top to the floor. */
static float dam_white_speed(const dam_model *model)
{
    float const speed = 0.75f * sqrtf(2 * fabsf(model->gravity) * (float)model->size[2]);
    return speed > 0 ? speed : 1;
}

/* One pixel of a sphere, (dx, dy) from its middle in units of the radius: lit from above on the left. */
static dam_color dam_shade(dam_color color, float dx, float dy, float dz)
{
    float const light = -0.45f * dx - 0.62f * dy + 0.64f * dz;
    float const shine = light > 0.9f ? 2.5f * (light - 0.9f) : 0;
    float const level = 0.38f + 0.72f * (light > 0 ? light : 0);
    dam_color const lit = {color.r * level, color.g * level, color.b * level};
    return dam_mix(lit, dam_gray(1), shine);
}

static void dam_draw_sphere(dam_canvas *canvas, const dam_camera *camera, const float p[3], dam_color color)
{
    float const radius = DAM_RADIUS * camera->scale * dam_shrink(camera, p[1]);
    float x, y;
    int px, py, x0, x1, y0, y1;
    dam_project(camera, p, &x, &y);
    x0 = (int)ceilf(x - radius - 0.5f);
    x1 = (int)floorf(x + radius - 0.5f);
    y0 = (int)ceilf(y - radius - 0.5f);
    y1 = (int)floorf(y + radius - 0.5f);
    if (x0 < 0) x0 = 0;
    if (y0 < 0) y0 = 0;
    if (x1 >= canvas->width) x1 = canvas->width - 1;
    if (y1 >= canvas->height) y1 = canvas->height - 1;
    for (py = y0; py <= y1; py++)
        for (px = x0; px <= x1; px++) {
            float const dx = ((float)px + 0.5f - x) / radius, dy = ((float)py + 0.5f - y) / radius, rest = 1 - dx * dx - dy * dy;
            float *depth = canvas->depth + (size_t)py * (size_t)canvas->width + (size_t)px;
            float dz;
            if (rest <= 0) continue;
            dz = sqrtf(rest);
            if (p[1] - DAM_RADIUS * dz >= *depth) continue;
            *depth = p[1] - DAM_RADIUS * dz;
            dam_put(canvas, px, py, dam_shade(color, dx, dy, dz));
        }
}

/* All spheres; those further back are paler, as in haze. */
static void dam_draw_spheres(dam_canvas *canvas, const dam_camera *camera, const dam_model *model, const dam_state *state)
{
    float const white = dam_white_speed(model);
    int32_t i;
    for (i = 0; i < state->n; i++) {
        const float *p = state->pos + 3 * (size_t)i, *v = state->vel + 3 * (size_t)i;
        float const speed = sqrtf(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        float const haze = 0.45f * p[1] / camera->size[1];
        dam_draw_sphere(canvas, camera, p, dam_mix(dam_ramp(speed / white), dam_gray(0.88f), haze));
    }
}

static int dam_view_height(const dam_model *model, int width) { return (int)((int64_t)width * model->size[2] / model->size[0]); }

/* One view of the box, with a caption above it, on a larger canvas. */
static void dam_draw_view(dam_canvas *canvas, int x, int y, int width, const dam_model *model, const dam_state *state, int32_t step)
{
    dam_canvas twice = dam_canvas_new(2 * width, 2 * dam_view_height(model, width), 1, dam_gray(1));
    dam_camera const camera = dam_camera_for(model, twice.width, 4);
    char caption[DAM_TEXT];
    dam_draw_room(&twice, &camera);
    dam_draw_spheres(&twice, &camera, model, state);
    dam_draw_edges(&twice, &camera);
    dam_halve(&twice, canvas, x, y);
    dam_canvas_free(&twice);
    snprintf(caption, sizeof caption, "step %ld   time %.0f", (long)step, (double)step * (double)model->dt);
    dam_text(canvas, x + 4, y - 20, 2, dam_gray(0.2f), caption);
}

static void dam_draw_title(dam_canvas *canvas, int x, int y, const dam_options *o, int32_t n)
{
    char text[DAM_TEXT];
    snprintf(text, sizeof text, "dam break: %ld spheres in %ld x %ld x %ld cells", (long)n, (long)o->grid, (long)o->depth, (long)o->grid);
    dam_text(canvas, x, y, 2, dam_gray(0.2f), text);
}

/* What the colors mean, ending at x:  speed 0 [......] 0.83 */
static void dam_draw_legend(dam_canvas *canvas, int x, int y, const dam_model *model)
{
    int const bar = 160, gap = 12;
    char text[DAM_TEXT];
    int k;
    snprintf(text, sizeof text, "%.2f", (double)dam_white_speed(model));
    x -= dam_text_width(text, 2);
    dam_text(canvas, x, y, 2, dam_gray(0.2f), text);
    x -= bar + gap;
    for (k = 0; k < bar; k++) dam_fill(canvas, x + k, y - 1, 1, 15, dam_ramp((float)k / (float)bar));
    x -= dam_text_width("speed 0", 2) + gap;
    dam_text(canvas, x, y, 2, dam_gray(0.2f), "speed 0");
}

/* ------------------------------------------------------------------------------------------------
   >>album
   ------------------------------------------------------------------------------------------------ */

enum { DAM_SHEET_ROWS = 3, DAM_SHEET_COLUMNS = 4, DAM_SHEET_VIEWS = DAM_SHEET_ROWS * DAM_SHEET_COLUMNS };
enum { DAM_FRAME_WIDTH = 800, DAM_VIEW_WIDTH = 400, DAM_GAP = 16, DAM_HEADER = 40, DAM_CAPTION = 24 };

typedef struct dam_album {
    const dam_options *options;
    const dam_model *model;
    dam_canvas sheet;
} dam_album;

/* The moments are spread evenly for frames; on the sheet they are closer together at first, when more happens. */
static int32_t dam_frame_step(const dam_options *o, int32_t k)
{
    return o->frames < 2 ? o->steps : (int32_t)((int64_t)o->steps * k / (o->frames - 1));
}

static int32_t dam_sheet_step(const dam_options *o, int32_t k)
{
    double const t = (double)k / (DAM_SHEET_VIEWS - 1);
    return (int32_t)(o->steps * (0.45 * t + 0.55 * t * t * t * t) + 0.5);
}

static dam_album dam_album_begin(const dam_options *o, const dam_model *model)
{
    int const height = dam_view_height(model, DAM_VIEW_WIDTH);
    dam_album album;
    memset(&album, 0, sizeof album);
    album.options = o;
    album.model = model;
    if (o->frames || o->sheet || o->vtk) dam_make_folder(o->out);
    if (o->sheet)
        album.sheet = dam_canvas_new(DAM_GAP + DAM_SHEET_COLUMNS * (DAM_VIEW_WIDTH + DAM_GAP),
                                     DAM_HEADER + DAM_SHEET_ROWS * (DAM_CAPTION + height + DAM_GAP), 0, dam_gray(1));
    return album;
}

/* The next step after `step` that is to be drawn, or the last. */
static int32_t dam_album_next(const dam_album *album, int32_t step)
{
    const dam_options *o = album->options;
    int32_t k, next = o->steps;
    for (k = 0; k < o->frames; k++) {
        int32_t const at = dam_frame_step(o, k);
        if (at > step && at < next) next = at;
    }
    for (k = 0; o->sheet && k < DAM_SHEET_VIEWS; k++) {
        int32_t const at = dam_sheet_step(o, k);
        if (at > step && at < next) next = at;
    }
    return next;
}

/* VTK wants its numbers with the most significant byte first. */
static void dam_put_big_endian(FILE *file, uint32_t word)
{
    unsigned char const bytes[4] = {(unsigned char)(word >> 24), (unsigned char)(word >> 16), (unsigned char)(word >> 8), (unsigned char)word};
    fwrite(bytes, 1, 4, file);
}

static void dam_put_floats(FILE *file, const float *values, size_t count)
{
    size_t k;
    for (k = 0; k < count; k++) {
        uint32_t word;
        memcpy(&word, values + k, 4);
        dam_put_big_endian(file, word);
    }
}

/* Legacy VTK: points with their velocities. In ParaView: Open, Apply, then "Point Gaussian" as representation. */
static void dam_save_vtk(const char *folder, const char *name, const dam_state *state, int32_t step)
{
    char path[2 * DAM_LINE];
    FILE *file = dam_open_picture(folder, name, path);
    long const n = (long)state->n;
    int32_t i;
    fprintf(file, "# vtk DataFile Version 3.0\ndam break, step %ld\nBINARY\nDATASET POLYDATA\nPOINTS %ld float\n", (long)step, n);
    dam_put_floats(file, state->pos, 3 * (size_t)state->n);
    fprintf(file, "\nVERTICES %ld %ld\n", n, 2 * n);
    for (i = 0; i < state->n; i++) {
        dam_put_big_endian(file, 1);
        dam_put_big_endian(file, (uint32_t)i);
    }
    fprintf(file, "\nPOINT_DATA %ld\nVECTORS velocity float\n", n);
    dam_put_floats(file, state->vel, 3 * (size_t)state->n);
    fputc('\n', file);
    dam_close_picture(file, path);
}

static void dam_save_frame(const dam_album *album, const dam_state *state, int32_t step, int32_t k)
{
    int const width = DAM_FRAME_WIDTH + 2 * DAM_GAP, top = DAM_HEADER + DAM_CAPTION;
    dam_canvas canvas = dam_canvas_new(width, top + dam_view_height(album->model, DAM_FRAME_WIDTH) + DAM_GAP, 0, dam_gray(1));
    char name[32];
    dam_draw_title(&canvas, DAM_GAP + 4, 14, album->options, state->n);
    dam_draw_legend(&canvas, width - DAM_GAP - 4, top - 20, album->model);
    dam_draw_view(&canvas, DAM_GAP, top, DAM_FRAME_WIDTH, album->model, state, step);
    snprintf(name, sizeof name, "frame_%04d.png", (int)k);
    dam_save_png(&canvas, album->options->out, name);
    dam_canvas_free(&canvas);
}

/* View k of the sheet: the first four fill the first row. */
static void dam_add_to_sheet(dam_album *album, const dam_state *state, int32_t step, int32_t k)
{
    int const column = (int)k % DAM_SHEET_COLUMNS, row = (int)k / DAM_SHEET_COLUMNS;
    int const height = DAM_CAPTION + dam_view_height(album->model, DAM_VIEW_WIDTH) + DAM_GAP;
    dam_draw_view(&album->sheet, DAM_GAP + column * (DAM_VIEW_WIDTH + DAM_GAP), DAM_HEADER + DAM_CAPTION + row * height,
                  DAM_VIEW_WIDTH, album->model, state, step);
}

/* Draws whatever is to be drawn of this step. */
static void dam_album_shoot(dam_album *album, const dam_state *state, int32_t step)
{
    const dam_options *o = album->options;
    char name[32];
    int32_t k;
    for (k = 0; k < o->frames; k++) {
        if (dam_frame_step(o, k) != step) continue;
        dam_save_frame(album, state, step, k);
        snprintf(name, sizeof name, "frame_%04d.vtk", (int)k);
        if (o->vtk) dam_save_vtk(o->out, name, state, step);
    }
    if (o->vtk && !o->frames && step == o->steps) dam_save_vtk(o->out, "frame_0000.vtk", state, step);
    for (k = 0; o->sheet && k < DAM_SHEET_VIEWS; k++) if (dam_sheet_step(o, k) == step) dam_add_to_sheet(album, state, step, k);
}

static void dam_album_end(dam_album *album, int32_t n)
{
    if (album->options->sheet) {
        dam_draw_title(&album->sheet, DAM_GAP + 4, 14, album->options, n);
        dam_draw_legend(&album->sheet, album->sheet.width - DAM_GAP - 4, 14, album->model);
        dam_save_png(&album->sheet, album->options->out, "sheet.png");
        dam_canvas_free(&album->sheet);
    }
}

#endif /* DAM_BREAK_DRAW_H */
