/* dam_break_draw.h - the pictures of the dam break: shaded spheres in a box, seen from the front.
   SPDX-License-Identifier: MIT OR Unlicense

   >>camera   from the box to the picture
   >>room     the walls
   >>spheres  discs with the shading and the depth of spheres
   >>album    frames, contact sheet, and files for ParaView */

#ifndef DAM_BREAK_DRAW_H
#define DAM_BREAK_DRAW_H

#include "../common/shade.h"
#include "../common/vtk.h"

/* -------------------------------------------------------------------------------------------------
   >>camera: in front of the box, a little above its middle; the front of the box fills the picture

              eye                 a point y cells behind the front appears
               |  distance        smaller by the factor  distance / (distance + y)
          -----+-----  front
              y|
               o
   ---------------------------------------------------------------------------------------------- */

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

static float dam_shrink(const dam_camera *camera, float y)
{
    return camera->eye[1] / (camera->eye[1] + y);
}

/* Where a point of the box appears. */
static void dam_project(const dam_camera *camera, const float p[3], float *x, float *y)
{
    float const s = dam_shrink(camera, p[1]);
    *x = camera->left + camera->scale * (camera->eye[0] + (p[0] - camera->eye[0]) * s);
    *y = camera->top +
         camera->scale * (camera->size[2] - camera->eye[2] - (p[2] - camera->eye[2]) * s);
}

/* -------------------------------------------------------------------------------------------------
   >>room
   ---------------------------------------------------------------------------------------------- */

/* How deep the line of sight of a pixel goes before it meets the wall that lies at `wall` along
   one axis. */
static float dam_sight(float eye, float distance, float at, float wall)
{
    float const slope = (at - eye) / distance;
    if ((slope > 0) != (wall > eye) || fabsf(slope) < 1e-9f) return 1e30f;
    return (wall - eye) / slope - distance;
}

/* The color of the wall behind a pixel: floor, sides, ceiling and back are told apart by their
   light. */
static rgb dam_wall(const dam_camera *camera, float x, float z)
{
    /* back, left, right, floor, ceiling */
    static float const light[5] = {0.91f, 0.885f, 0.885f, 0.80f, 0.955f};
    float depth[5];
    int k, nearest = 0;
    depth[0] = camera->size[1];
    depth[1] = dam_sight(camera->eye[0], camera->eye[1], x, 0);
    depth[2] = dam_sight(camera->eye[0], camera->eye[1], x, camera->size[0]);
    depth[3] = dam_sight(camera->eye[2], camera->eye[1], z, 0);
    depth[4] = dam_sight(camera->eye[2], camera->eye[1], z, camera->size[2]);
    for (k = 1; k < 5; k++) if (depth[k] < depth[nearest]) nearest = k;
    return gray(light[nearest] - 0.05f * (nearest ? depth[nearest] / camera->size[1] : 0));
}

static void dam_draw_room(picture *canvas, const dam_camera *camera)
{
    int x, y;
    for (y = 0; y < canvas->height; y++)
        for (x = 0; x < canvas->width; x++) {
            float const at_x = ((float)x + 0.5f - camera->left) / camera->scale;
            float const at_z = camera->size[2] - ((float)y + 0.5f - camera->top) / camera->scale;
            int const inside =
                at_x > 0 && at_x < camera->size[0] && at_z > 0 && at_z < camera->size[2];
            draw_pixel(canvas, x, y, inside ? dam_wall(camera, at_x, at_z) : gray(1), 1);
            canvas->depth[(size_t)y * (size_t)canvas->width + (size_t)x] = 1e30f;
        }
}

/* A straight edge of the box, two pixels thick, where nothing lies before it. */
static void dam_draw_edge(picture *canvas, const dam_camera *camera, const float from[3],
                          const float to[3])
{
    int const dots = 4 * canvas->width;
    int k, i;
    for (k = 0; k <= dots; k++) {
        float const t = (float)k / (float)dots;
        float const p[3] = {from[0] + (to[0] - from[0]) * t, from[1] + (to[1] - from[1]) * t,
                            from[2] + (to[2] - from[2]) * t};
        float x, y;
        dam_project(camera, p, &x, &y);
        for (i = 0; i < 4; i++) {
            int const px = (int)x - 1 + i % 2, py = (int)y - 1 + i / 2;
            if (px < 0 || py < 0 || px >= canvas->width || py >= canvas->height) continue;
            if (canvas->depth[(size_t)py * (size_t)canvas->width + (size_t)px] >= p[1])
                draw_pixel(canvas, px, py, gray(0.45f), 1);
        }
    }
}

static void dam_draw_edges(picture *canvas, const dam_camera *camera)
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

/* -------------------------------------------------------------------------------------------------
   >>spheres
   ---------------------------------------------------------------------------------------------- */

/* Of speeds: calm water is deep blue, fast water light, the fastest white as foam. */
static const rgb dam_colors[5] = {{0.05, 0.16, 0.42},
                                  {0.07, 0.35, 0.68},
                                  {0.16, 0.58, 0.85},
                                  {0.45, 0.80, 0.92},
                                  {0.97, 0.99, 1.0}};

/* The speed that is drawn white: three quarters of what a sphere gains by falling from the top
   to the floor. */
static float dam_white_speed(const dam_model *model)
{
    float const speed = 0.75f * sqrtf(2 * fabsf(model->gravity) * (float)model->size[2]);
    return speed > 0 ? speed : 1;
}

/* All spheres; those further back are paler, as in haze. */
static void dam_draw_spheres(picture *canvas, const dam_camera *camera, const dam_model *model,
                             const dam_state *state)
{
    float const white = dam_white_speed(model);
    int32_t i;
    for (i = 0; i < state->n; i++) {
        const float *p = state->pos + 3 * (size_t)i, *v = state->vel + 3 * (size_t)i;
        float const speed = sqrtf(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        float x, y;
        float const haze = 0.45f * p[1] / camera->size[1];
        dam_project(camera, p, &x, &y);
        draw_sphere(canvas, x, y, DAM_RADIUS * camera->scale * dam_shrink(camera, p[1]), p[1],
                    DAM_RADIUS, mix(color_map(dam_colors, 5, speed / white), gray(0.88), haze));
    }
}

static int dam_view_height(const dam_model *model, int width)
{
    return (int)((int64_t)width * model->size[2] / model->size[0]);
}

/* One view of the box, with a caption above it, on a larger canvas. */
static void dam_draw_view(picture *canvas, int x, int y, int width, const dam_model *model,
                          const dam_state *state, int32_t step)
{
    picture twice = picture_with_depth(2 * width, 2 * dam_view_height(model, width), gray(1));
    dam_camera const camera = dam_camera_for(model, twice.width, 4);
    char caption[PICTURE_TEXT];
    dam_draw_room(&twice, &camera);
    dam_draw_spheres(&twice, &camera, model, state);
    dam_draw_edges(&twice, &camera);
    picture_halve(&twice, canvas, x, y);
    picture_free(&twice);
    snprintf(caption, sizeof caption, "step %ld   time %.0f", (long)step,
             (double)step * (double)model->dt);
    draw_text(canvas, x + 4, y - 20, 2, gray(0.2f), caption);
}

static void dam_draw_title(picture *canvas, int x, int y, const dam_options *o, int32_t n)
{
    char text[PICTURE_TEXT];
    snprintf(text, sizeof text, "dam break: %ld spheres in %ld x %ld x %ld cells", (long)n,
             (long)o->grid, (long)o->depth, (long)o->grid);
    draw_text(canvas, x, y, 2, gray(0.2f), text);
}

static void dam_draw_legend(picture *canvas, int x, int y, const dam_model *model)
{
    char text[PICTURE_TEXT];
    snprintf(text, sizeof text, "%.2f", (double)dam_white_speed(model));
    draw_legend(canvas, x, y, "speed 0", dam_colors, 5, text);
}

/* -------------------------------------------------------------------------------------------------
   >>album
   ---------------------------------------------------------------------------------------------- */

enum {
    DAM_SHEET_ROWS = 3,
    DAM_SHEET_COLUMNS = 4,
    DAM_SHEET_VIEWS = DAM_SHEET_ROWS * DAM_SHEET_COLUMNS
};
enum {
    DAM_FRAME_WIDTH = 800,
    DAM_VIEW_WIDTH = 400,
    DAM_GAP = 16,
    DAM_HEADER = 40,
    DAM_CAPTION = 24
};

typedef struct dam_album {
    const dam_options *options;
    const dam_model *model;
    picture sheet;
} dam_album;

/* On the sheet the moments are closer together at first, when more happens. */
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
    if (o->frames || o->sheet || o->vtk) make_folder(o->out);
    if (o->sheet)
        album.sheet =
            picture_new(DAM_GAP + DAM_SHEET_COLUMNS * (DAM_VIEW_WIDTH + DAM_GAP),
                        DAM_HEADER + DAM_SHEET_ROWS * (DAM_CAPTION + height + DAM_GAP), gray(1));
    return album;
}

/* The next step after `step` that is to be drawn, or the last. */
static int32_t dam_album_next(const dam_album *album, int32_t step)
{
    const dam_options *o = album->options;
    int32_t k, next = next_picture(o->steps, o->frames, step);
    for (k = 0; o->sheet && k < DAM_SHEET_VIEWS; k++) {
        int32_t const at = dam_sheet_step(o, k);
        if (at > step && at < next) next = at;
    }
    return next;
}

/* In ParaView: Open, Apply, then "Point Gaussian" as representation. */
static void dam_save_vtk(const dam_options *o, const dam_state *state, int32_t step, int32_t k)
{
    vtk const v = vtk_begin(o->out, "frame", k, step, 0);
    vtk_points(&v, state->pos, state->n, 3);
    vtk_vectors(&v, "velocity", state->vel, state->n, 3);
    vtk_end(&v);
}

static void dam_save_frame(const dam_album *album, const dam_state *state, int32_t step, int32_t k)
{
    int const width = DAM_FRAME_WIDTH + 2 * DAM_GAP, top = DAM_HEADER + DAM_CAPTION;
    picture canvas =
        picture_new(width, top + dam_view_height(album->model, DAM_FRAME_WIDTH) + DAM_GAP, gray(1));
    char path[1100];
    dam_draw_title(&canvas, DAM_GAP + 4, 14, album->options, state->n);
    dam_draw_legend(&canvas, width - DAM_GAP - 4, top - 20, album->model);
    dam_draw_view(&canvas, DAM_GAP, top, DAM_FRAME_WIDTH, album->model, state, step);
    snprintf(path, sizeof path, "%s/frame_%04d.png", album->options->out, (int)k);
    picture_save(&canvas, path);
    picture_free(&canvas);
}

/* View k of the sheet: the first four fill the first row. */
static void dam_add_to_sheet(dam_album *album, const dam_state *state, int32_t step, int32_t k)
{
    int const column = (int)k % DAM_SHEET_COLUMNS, row = (int)k / DAM_SHEET_COLUMNS;
    int const height = DAM_CAPTION + dam_view_height(album->model, DAM_VIEW_WIDTH) + DAM_GAP;
    dam_draw_view(&album->sheet, DAM_GAP + column * (DAM_VIEW_WIDTH + DAM_GAP),
                  DAM_HEADER + DAM_CAPTION + row * height, DAM_VIEW_WIDTH, album->model, state,
                  step);
}

/* Draws whatever is to be drawn of this step. */
static void dam_album_shoot(dam_album *album, const dam_state *state, int32_t step)
{
    const dam_options *o = album->options;
    int32_t k;
    for (k = 0; k < o->frames; k++) {
        if (picture_step(o->steps, k, o->frames) != step) continue;
        dam_save_frame(album, state, step, k);
        if (o->vtk) dam_save_vtk(o, state, step, k);
    }
    if (o->vtk && !o->frames && step == o->steps) dam_save_vtk(o, state, step, 0);
    for (k = 0; o->sheet && k < DAM_SHEET_VIEWS; k++)
        if (dam_sheet_step(o, k) == step) dam_add_to_sheet(album, state, step, k);
}

static void dam_album_end(dam_album *album, int32_t n)
{
    char path[1100];
    if (album->options->sheet) {
        dam_draw_title(&album->sheet, DAM_GAP + 4, 14, album->options, n);
        dam_draw_legend(&album->sheet, album->sheet.width - DAM_GAP - 4, 14, album->model);
        snprintf(path, sizeof path, "%s/sheet.png", album->options->out);
        picture_save(&album->sheet, path);
        picture_free(&album->sheet);
    }
}

#endif /* DAM_BREAK_DRAW_H */
