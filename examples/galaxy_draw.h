/* galaxy_draw.h - the pictures of galaxy.c and galaxy.cu: mass per pixel, on a scale of logarithms, a color for each disc.
   SPDX-License-Identifier: MIT OR Unlicense

   >>canvas    pixels, text, the file
   >>view      from the plane to the picture; which pixels a body falls on
   >>light     from mass to color
   >>frame     one picture
   >>album     frames and the sheet

   Drawn without libraries. stb_image_write makes the PNG, stb_easy_font the letters (Debian: libstb-dev). */

#ifndef GALAXY_DRAW_H
#define GALAXY_DRAW_H

#include <stb/stb_easy_font.h>
#include <stb/stb_image_write.h>

/* ------------------------------------------------------------------------------------------------
   >>canvas
   ------------------------------------------------------------------------------------------------ */

typedef struct galaxy_color { float r, g, b; } galaxy_color;

typedef struct galaxy_canvas {
    int width, height;
    unsigned char *rgb;
} galaxy_canvas;

static galaxy_color galaxy_gray(float level)
{
    galaxy_color color;
    color.r = color.g = color.b = level;
    return color;
}

static galaxy_color galaxy_mix(galaxy_color a, galaxy_color b, float t)
{
    galaxy_color color;
    color.r = a.r + (b.r - a.r) * t;
    color.g = a.g + (b.g - a.g) * t;
    color.b = a.b + (b.b - a.b) * t;
    return color;
}

static unsigned char galaxy_byte(float x) { return (unsigned char)(x <= 0 ? 0 : x >= 1 ? 255 : (int)(255 * x + 0.5f)); }

static void galaxy_put(galaxy_canvas *canvas, int x, int y, galaxy_color color)
{
    unsigned char *pixel = canvas->rgb + 3 * ((size_t)y * (size_t)canvas->width + (size_t)x);
    pixel[0] = galaxy_byte(color.r);
    pixel[1] = galaxy_byte(color.g);
    pixel[2] = galaxy_byte(color.b);
}

static void galaxy_fill(galaxy_canvas *canvas, int x0, int y0, int width, int height, galaxy_color color)
{
    int x, y;
    for (y = y0 < 0 ? 0 : y0; y < y0 + height && y < canvas->height; y++)
        for (x = x0 < 0 ? 0 : x0; x < x0 + width && x < canvas->width; x++) galaxy_put(canvas, x, y, color);
}

static galaxy_canvas galaxy_canvas_new(int width, int height)
{
    galaxy_canvas canvas;
    canvas.width = width;
    canvas.height = height;
    canvas.rgb = (unsigned char *)galaxy_alloc((size_t)width * (size_t)height, 3);
    return canvas;
}

enum { GALAXY_TEXT = 160 };

/* The font comes as rectangles of four corners {x, y, z, color}. Returns the width, also when there is no canvas. */
static int galaxy_text(galaxy_canvas *canvas, int x, int y, const char *text)
{
    struct { float x, y, z; unsigned char rgba[4]; } corner[4 * 6 * GALAXY_TEXT];
    char copy[GALAXY_TEXT];
    int k, quads;
    snprintf(copy, sizeof copy, "%s", text);
    quads = canvas ? stb_easy_font_print(0, 0, copy, NULL, corner, (int)sizeof corner) : 0;
    for (k = 0; k < quads; k++) {
        int const left = (int)corner[4 * k].x, top = (int)corner[4 * k].y;
        galaxy_fill(canvas, x + 2 * left, y + 2 * top, 2 * ((int)corner[4 * k + 2].x - left),
                    2 * ((int)corner[4 * k + 2].y - top), galaxy_gray(0.75f));
    }
    return 2 * stb_easy_font_width(copy);
}

static void galaxy_put_bytes(void *file, void *bytes, int count) { fwrite(bytes, 1, (size_t)count, (FILE *)file); }

static void galaxy_save_png(const galaxy_canvas *canvas, const char *path)
{
    FILE *file = galaxy_create(path);
    if (!stbi_write_png_to_func(galaxy_put_bytes, file, canvas->width, canvas->height, 3, canvas->rgb, 3 * canvas->width))
        galaxy_stop(1, "%s: out of memory", path);
    galaxy_close(file, path);
}

/* ------------------------------------------------------------------------------------------------
   >>view
   ------------------------------------------------------------------------------------------------ */

typedef struct galaxy_view {
    int32_t width, height;
    float left, top;    /* what appears in the upper left corner */
    float scale;        /* pixels per unit of length */
} galaxy_view;

static size_t galaxy_pixels(const galaxy_view *view) { return (size_t)view->width * (size_t)view->height; }

/* A body covers a square as large as a pixel, and so up to four pixels: a part of each.

       +------+------+
       |   ,--|---.  |         first: the upper left of the four; part: the areas that are covered, row by row
       |   |  | o |  |
       +------+------+
       |   `--|---'  |
       +------+------+                                                                                         */
typedef struct galaxy_spot { int32_t first; float part[4]; } galaxy_spot;

/* 0: not in the picture. */
GALAXY_FN int galaxy_spot_of(const galaxy_view *view, nbody_real x, nbody_real y, galaxy_spot *spot)
{
    float const px = ((float)x - view->left) * view->scale - 0.5f, py = (view->top - (float)y) * view->scale - 0.5f;
    if (!(px >= 0 && py >= 0 && px < (float)(view->width - 1) && py < (float)(view->height - 1))) return 0;
    {
        int32_t const column = (int32_t)px, row = (int32_t)py;
        float const u = px - (float)column, v = py - (float)row;
        spot->first = row * view->width + column;
        spot->part[0] = (1 - u) * (1 - v);
        spot->part[1] = u * (1 - v);
        spot->part[2] = (1 - u) * v;
        spot->part[3] = u * v;
    }
    return 1;
}

/* The pixel of a part. */
GALAXY_FN int32_t galaxy_spot_pixel(const galaxy_view *view, const galaxy_spot *spot, int k)
{
    return spot->first + k % 2 + k / 2 * view->width;
}

/* ------------------------------------------------------------------------------------------------
   >>light
   ------------------------------------------------------------------------------------------------ */

/* A row or a column, `step` apart: each value becomes (value before + 2 value + value behind) / 4. */
static void galaxy_blur_line(float *line, int count, int step)
{
    float before = 0;
    int k;
    for (k = 0; k < count; k++) {
        float const value = line[(size_t)k * (size_t)step], behind = k + 1 < count ? line[(size_t)(k + 1) * (size_t)step] : 0;
        line[(size_t)k * (size_t)step] = 0.25f * (before + 2 * value + behind);
        before = value;
    }
}

static void galaxy_blur(const galaxy_view *view, float *density)
{
    int k;
    for (k = 0; k < 2 * view->height; k++) galaxy_blur_line(density + (size_t)k * (size_t)view->width, view->width, 1);
    for (k = 0; k < view->width; k++) {
        galaxy_blur_line(density + k, view->height, view->width);
        galaxy_blur_line(density + galaxy_pixels(view) + k, view->height, view->width);
    }
}

/* Few bodies make single dots, and these are blurred to show how dense they lie: once for each factor of 4 by which there are fewer
   bodies than pixels. */
static int galaxy_blurs(const galaxy_view *view, int32_t n)
{
    int64_t bodies = n;
    int count = 0;
    for (; bodies < (int64_t)galaxy_pixels(view) && count < 3; bodies *= 4) count++;
    return count;
}

/* Light from 0 to 1 as a color of one of the discs: from black over blue, or red, to white. */
static galaxy_color galaxy_ramp(int disc, float t)
{
    static const galaxy_color colors[2][5] = {
        {{0, 0, 0}, {0.05f, 0.11f, 0.30f}, {0.13f, 0.37f, 0.68f}, {0.50f, 0.76f, 0.95f}, {1, 1, 1}},
        {{0, 0, 0}, {0.27f, 0.07f, 0.08f}, {0.67f, 0.25f, 0.10f}, {0.97f, 0.70f, 0.35f}, {1, 1, 1}}
    };
    float const at = 4 * (t <= 0 ? 0 : t >= 1 ? 1 : t);
    int const k = at < 3 ? (int)at : 3;
    return galaxy_mix(colors[disc][k], colors[disc][k + 1], at - (float)k);
}

/* Mass per pixel, in units of what it would be if all were spread over the picture: what shows first, and what is white. */
static float const galaxy_faint = 0.1f, galaxy_bright = 100;

static float galaxy_light(float density) { return logf(1 + density / galaxy_faint) / logf(1 + galaxy_bright / galaxy_faint); }

/* Copies the view to a place on a canvas, as colors. mean: mass per pixel that counts as 1. */
static void galaxy_draw_view(galaxy_canvas *canvas, int x0, int y0, const galaxy_view *view, const float *density, float mean)
{
    int x, y;
    for (y = 0; y < view->height; y++)
        for (x = 0; x < view->width; x++) {
            const float *first = density + (size_t)y * (size_t)view->width + (size_t)x, *second = first + galaxy_pixels(view);
            float const sum = *first + *second;
            if (sum <= 0) { galaxy_put(canvas, x0 + x, y0 + y, galaxy_gray(0)); continue; }
            {
                float const light = galaxy_light(sum / mean);
                galaxy_put(canvas, x0 + x, y0 + y, galaxy_mix(galaxy_ramp(0, light), galaxy_ramp(1, light), *second / sum));
            }
        }
}

/* ------------------------------------------------------------------------------------------------
   >>frame
   ------------------------------------------------------------------------------------------------ */

enum { GALAXY_SHEET_ROWS = 2, GALAXY_SHEET_COLUMNS = 3, GALAXY_SHEET_VIEWS = GALAXY_SHEET_ROWS * GALAXY_SHEET_COLUMNS };
enum { GALAXY_FRAME_WIDTH = 960, GALAXY_SHEET_WIDTH = 480, GALAXY_GAP = 10, GALAXY_HEADER = 36, GALAXY_CAPTION = 24 };

typedef struct galaxy_album {
    const galaxy_options *options;
    galaxy_centre centre;   /* of mass at the start */
    double width;           /* what pictures show, in units of length */
    int32_t n, second;
    float *density;         /* room for the largest picture: [2][height][width] */
    galaxy_canvas frame, sheet;
    int32_t frames;         /* saved so far */
} galaxy_album;

static int galaxy_height(int width) { return width * 3 / 4; }

/* The centre of mass goes straight on, and pictures follow it. */
static galaxy_view galaxy_view_of(const galaxy_album *album, int width, int32_t step)
{
    double const time = step * album->options->dt, unit = album->width / width;
    galaxy_view view;
    view.width = width;
    view.height = galaxy_height(width);
    view.scale = (float)(1 / unit);
    view.left = (float)(album->centre.at[0] + time * album->centre.velocity[0] - 0.5 * unit * view.width);
    view.top = (float)(album->centre.at[1] + time * album->centre.velocity[1] + 0.5 * unit * view.height);
    return view;
}

static void galaxy_draw_density(const galaxy_album *album, galaxy_canvas *canvas, int x, int y, const galaxy_view *view)
{
    int const blurs = galaxy_blurs(view, album->n);
    float const mean = (float)(album->centre.mass / (double)galaxy_pixels(view));
    int k;
    for (k = 0; k < blurs; k++) galaxy_blur(view, album->density);
    galaxy_draw_view(canvas, x, y, view, album->density, mean);
}

static void galaxy_draw_title(galaxy_canvas *canvas, const galaxy_album *album)
{
    static const char *const laws[] = {"1/d^2", "1/d"};
    char text[GALAXY_TEXT];
    snprintf(text, sizeof text, "%ld bodies, force %s", (long)album->n, laws[album->options->law]);
    galaxy_text(canvas, GALAXY_GAP, 12, text);
}

/* What the colors mean, up to the right edge:  mass per pixel [......] 300 x the mean */
static void galaxy_draw_legend(galaxy_canvas *canvas, const galaxy_album *album)
{
    static const char *const name = "mass per pixel";
    int const bar = 160, discs = album->second < album->n ? 2 : 1;
    int x, k, d;
    char text[GALAXY_TEXT];
    snprintf(text, sizeof text, "%g x the mean", (double)galaxy_bright);
    x = canvas->width - GALAXY_GAP - galaxy_text(NULL, 0, 0, text);
    galaxy_text(canvas, x, 12, text);
    x -= bar + 10;
    for (k = 0; k < bar; k++)
        for (d = 0; d < discs; d++)
            galaxy_fill(canvas, x + k, 11 + d * 15 / discs, 1, 15 / discs, galaxy_ramp(d, (float)k / (float)bar));
    galaxy_text(canvas, x - 10 - galaxy_text(NULL, 0, 0, name), 12, name);
}

static void galaxy_draw_caption(galaxy_canvas *canvas, int x, int y, const galaxy_album *album, int32_t step)
{
    char text[GALAXY_TEXT];
    snprintf(text, sizeof text, "time %.2f", step * album->options->dt);
    galaxy_text(canvas, x, y, text);
}

/* The density has been filled; it is used up. */
static void galaxy_draw_frame(galaxy_album *album, const galaxy_view *view, int32_t step)
{
    galaxy_fill(&album->frame, 0, 0, album->frame.width, GALAXY_HEADER, galaxy_gray(0.13f));
    galaxy_draw_title(&album->frame, album);
    galaxy_draw_legend(&album->frame, album);
    galaxy_draw_density(album, &album->frame, 0, GALAXY_HEADER, view);
    galaxy_draw_caption(&album->frame, GALAXY_GAP, GALAXY_HEADER + 10, album, step);
}

/* ------------------------------------------------------------------------------------------------
   >>album
   ------------------------------------------------------------------------------------------------ */

/* The moments are spread evenly from the start to the end. */
static int32_t galaxy_moment(const galaxy_options *o, int32_t k, int32_t count)
{
    return count < 2 ? o->steps : (int32_t)((int64_t)o->steps * k / (count - 1));
}

static int32_t galaxy_frame_step(const galaxy_options *o, int32_t k) { return galaxy_moment(o, k, o->frames); }
static int32_t galaxy_sheet_step(const galaxy_options *o, int32_t k) { return galaxy_moment(o, k, GALAXY_SHEET_VIEWS); }

static galaxy_album galaxy_album_begin(const galaxy_options *o, const galaxy_state *start)
{
    int const height = galaxy_height(GALAXY_FRAME_WIDTH), row = galaxy_height(GALAXY_SHEET_WIDTH) + GALAXY_GAP;
    galaxy_album album;
    memset(&album, 0, sizeof album);
    album.options = o;
    album.centre = galaxy_centre_of(start);
    album.width = o->view > 0 ? o->view : 2.7 * galaxy_reach(start, album.centre.at);
    if (!(album.width > 0)) album.width = 1;
    album.n = start->n;
    album.second = start->second;
    if (!o->frames && !o->sheet && !o->window) return album;
    album.density = (float *)galaxy_alloc((size_t)GALAXY_FRAME_WIDTH * (size_t)height * 2, sizeof(float));
    album.frame = galaxy_canvas_new(GALAXY_FRAME_WIDTH, GALAXY_HEADER + height);
    album.sheet = galaxy_canvas_new(GALAXY_GAP + GALAXY_SHEET_COLUMNS * (GALAXY_SHEET_WIDTH + GALAXY_GAP),
                                    GALAXY_HEADER + GALAXY_SHEET_ROWS * row);
    galaxy_fill(&album.sheet, 0, 0, album.sheet.width, album.sheet.height, galaxy_gray(0.13f));
    return album;
}

/* The next step after `step` that is to be drawn, or the last. */
static int32_t galaxy_album_next(const galaxy_options *o, int32_t step)
{
    int32_t k, next = o->steps;
    for (k = 0; k < o->frames; k++) {
        int32_t const at = galaxy_frame_step(o, k);
        if (at > step && at < next) next = at;
    }
    for (k = 0; o->sheet && k < GALAXY_SHEET_VIEWS; k++) {
        int32_t const at = galaxy_sheet_step(o, k);
        if (at > step && at < next) next = at;
    }
    return next;
}

static void galaxy_save_frame(galaxy_album *album, const galaxy_view *view, int32_t step, int32_t k)
{
    char path[1200];
    galaxy_draw_frame(album, view, step);
    snprintf(path, sizeof path, "%s/frame_%04ld.png", album->options->out, (long)k);
    galaxy_save_png(&album->frame, path);
    album->frames++;
}

static void galaxy_add_to_sheet(galaxy_album *album, const galaxy_view *view, int32_t step, int32_t k)
{
    int const x = GALAXY_GAP + (int)k % GALAXY_SHEET_COLUMNS * (GALAXY_SHEET_WIDTH + GALAXY_GAP);
    int const y = GALAXY_HEADER + (int)k / GALAXY_SHEET_COLUMNS * (view->height + GALAXY_GAP);
    galaxy_draw_density(album, &album->sheet, x, y, view);
    galaxy_draw_caption(&album->sheet, x + 8, y + 8, album, step);
}

static void galaxy_album_end(galaxy_album *album)
{
    char path[1200];
    if (album->options->sheet) {
        galaxy_draw_title(&album->sheet, album);
        galaxy_draw_legend(&album->sheet, album);
        snprintf(path, sizeof path, "%s/sheet.png", album->options->out);
        galaxy_save_png(&album->sheet, path);
    }
    free(album->density);
    free(album->frame.rgb);
    free(album->sheet.rgb);
}

#endif /* GALAXY_DRAW_H */
