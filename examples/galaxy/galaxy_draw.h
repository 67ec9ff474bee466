/* galaxy_draw.h - the pictures of galaxy.c and galaxy.cu: mass per pixel, on a scale of logarithms,
   a color for each disc.
   SPDX-License-Identifier: MIT OR Unlicense

   >>view      from the plane to the picture; which pixels a body falls on
   >>light     from mass to color
   >>frame     one picture
   >>album     frames and the sheet */

#ifndef GALAXY_DRAW_H
#define GALAXY_DRAW_H

#include "../common/picture.h"

/* -------------------------------------------------------------------------------------------------
   >>view
   ---------------------------------------------------------------------------------------------- */

typedef struct galaxy_view {
    int32_t width, height;
    float left, top;    /* what appears in the upper left corner */
    float scale;        /* pixels per unit of length */
} galaxy_view;

static size_t galaxy_pixels(const galaxy_view *view)
{
    return (size_t)view->width * (size_t)view->height;
}

/* A body covers a square as large as a pixel, and so up to four pixels: a part of each.

       +------+------+
       |   ,--|---.  |         first: the upper left of the four;
       |   |  | o |  |         part: the areas that are covered, row by row
       +------+------+
       |   `--|---'  |
       +------+------+ */
typedef struct galaxy_spot { int32_t first; float part[4]; } galaxy_spot;

/* 0: not in the picture. */
BOTH int galaxy_spot_of(const galaxy_view *view, nbody_real x, nbody_real y, galaxy_spot *spot)
{
    float const px = ((float)x - view->left) * view->scale - 0.5f,
                py = (view->top - (float)y) * view->scale - 0.5f;
    if (!(px >= 0 && py >= 0 && px < (float)(view->width - 1) && py < (float)(view->height - 1)))
        return 0;
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
BOTH int32_t galaxy_spot_pixel(const galaxy_view *view, const galaxy_spot *spot, int k)
{
    return spot->first + k % 2 + k / 2 * view->width;
}

/* -------------------------------------------------------------------------------------------------
   >>light
   ---------------------------------------------------------------------------------------------- */

/* A row or a column, `step` apart: each value becomes (value before + 2 value + value behind) /
   4. */
static void galaxy_blur_line(float *line, int count, int step)
{
    float before = 0;
    int k;
    for (k = 0; k < count; k++) {
        float const value = line[(size_t)k * (size_t)step],
                    behind = k + 1 < count ? line[(size_t)(k + 1) * (size_t)step] : 0;
        line[(size_t)k * (size_t)step] = 0.25f * (before + 2 * value + behind);
        before = value;
    }
}

static void galaxy_blur(const galaxy_view *view, float *density)
{
    int k;
    for (k = 0; k < 2 * view->height; k++)
        galaxy_blur_line(density + (size_t)k * (size_t)view->width, view->width, 1);
    for (k = 0; k < view->width; k++) {
        galaxy_blur_line(density + k, view->height, view->width);
        galaxy_blur_line(density + galaxy_pixels(view) + k, view->height, view->width);
    }
}

/* Few bodies make single dots, and these are blurred to show how dense they lie: once for each
   factor of 4 by which there are fewer bodies than pixels. */
static int galaxy_blurs(const galaxy_view *view, int32_t n)
{
    int64_t bodies = n;
    int count = 0;
    for (; bodies < (int64_t)galaxy_pixels(view) && count < 3; bodies *= 4) count++;
    return count;
}

/* Light from 0 to 1 as a color of one of the discs: from black over blue, or red, to white. */
static rgb galaxy_ramp(int disc, double t)
{
    static const rgb colors[2][5] = {
        {{0, 0, 0}, {0.05, 0.11, 0.30}, {0.13, 0.37, 0.68}, {0.50, 0.76, 0.95}, {1, 1, 1}},
        {{0, 0, 0}, {0.27, 0.07, 0.08}, {0.67, 0.25, 0.10}, {0.97, 0.70, 0.35}, {1, 1, 1}}
    };
    return color_map(colors[disc], 5, t);
}

/* Mass per pixel, in units of what it would be if all were spread over the picture: what shows
   first, and what is white. */
static float const galaxy_faint = 0.1f, galaxy_bright = 100;

static float galaxy_light(float density)
{
    return logf(1 + density / galaxy_faint) / logf(1 + galaxy_bright / galaxy_faint);
}

/* Copies the view to a place on a canvas, as colors. mean: mass per pixel that counts as 1. */
static void galaxy_draw_view(picture *canvas, int x0, int y0, const galaxy_view *view,
                             const float *density, float mean)
{
    int x, y;
    for (y = 0; y < view->height; y++)
        for (x = 0; x < view->width; x++) {
            const float *first = density + (size_t)y * (size_t)view->width + (size_t)x,
                        *second = first + galaxy_pixels(view);
            float const sum = *first + *second;
            if (sum <= 0) { draw_pixel(canvas, x0 + x, y0 + y, gray(0), 1); continue; }
            {
                float const light = galaxy_light(sum / mean);
                draw_pixel(canvas, x0 + x, y0 + y,
                           mix(galaxy_ramp(0, light), galaxy_ramp(1, light), *second / sum), 1);
            }
        }
}

/* -------------------------------------------------------------------------------------------------
   >>frame
   ---------------------------------------------------------------------------------------------- */

enum {
    GALAXY_SHEET_ROWS = 2,
    GALAXY_SHEET_COLUMNS = 3,
    GALAXY_SHEET_VIEWS = GALAXY_SHEET_ROWS * GALAXY_SHEET_COLUMNS
};
enum {
    GALAXY_FRAME_WIDTH = 960,
    GALAXY_SHEET_WIDTH = 480,
    GALAXY_GAP = 10,
    GALAXY_HEADER = 36,
    GALAXY_CAPTION = 24
};

typedef struct galaxy_album {
    const galaxy_options *options;
    galaxy_centre centre;   /* of mass at the start */
    double width;           /* what pictures show, in units of length */
    int32_t n, second;
    float *density;         /* room for the largest picture: [2][height][width] */
    picture frame, sheet;
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
    view.left =
        (float)(album->centre.at[0] + time * album->centre.velocity[0] - 0.5 * unit * view.width);
    view.top =
        (float)(album->centre.at[1] + time * album->centre.velocity[1] + 0.5 * unit * view.height);
    return view;
}

static void galaxy_draw_density(const galaxy_album *album, picture *canvas, int x, int y,
                                const galaxy_view *view)
{
    int const blurs = galaxy_blurs(view, album->n);
    float const mean = (float)(album->centre.mass / (double)galaxy_pixels(view));
    int k;
    for (k = 0; k < blurs; k++) galaxy_blur(view, album->density);
    galaxy_draw_view(canvas, x, y, view, album->density, mean);
}

static void galaxy_draw_title(picture *canvas, const galaxy_album *album)
{
    static const char *const laws[] = {"1/d^2", "1/d"};
    char text[PICTURE_TEXT];
    snprintf(text, sizeof text, "%ld bodies, force %s", (long)album->n, laws[album->options->law]);
    draw_text(canvas, GALAXY_GAP, 12, 2, gray(0.75), text);
}

/* What the colors mean, up to the right edge:  mass per pixel [......] 300 x the mean */
static void galaxy_draw_legend(picture *canvas, const galaxy_album *album)
{
    static const char *const name = "mass per pixel";
    int const bar = 160, discs = album->second < album->n ? 2 : 1;
    int x, k, d;
    char text[PICTURE_TEXT];
    snprintf(text, sizeof text, "%g x the mean", (double)galaxy_bright);
    x = canvas->width - GALAXY_GAP - text_width(text, 2);
    draw_text(canvas, x, 12, 2, gray(0.75), text);
    x -= bar + 10;
    for (k = 0; k < bar; k++)
        for (d = 0; d < discs; d++)
            draw_box(canvas, x + k, 11 + d * 15 / discs, x + k + 1,
                     11 + d * 15 / discs + 15 / discs, galaxy_ramp(d, (float)k / (float)bar), 1);
    draw_text(canvas, x - 10 - text_width(name, 2), 12, 2, gray(0.75), name);
}

static void galaxy_draw_caption(picture *canvas, int x, int y, const galaxy_album *album,
                                int32_t step)
{
    char text[PICTURE_TEXT];
    snprintf(text, sizeof text, "time %.2f", step * album->options->dt);
    draw_text(canvas, x, y, 2, gray(0.75), text);
}

/* The density has been filled; it is used up. */
static void galaxy_draw_frame(galaxy_album *album, const galaxy_view *view, int32_t step)
{
    draw_box(&album->frame, 0, 0, 0 + album->frame.width, 0 + GALAXY_HEADER, gray(0.13f), 1);
    galaxy_draw_title(&album->frame, album);
    galaxy_draw_legend(&album->frame, album);
    galaxy_draw_density(album, &album->frame, 0, GALAXY_HEADER, view);
    galaxy_draw_caption(&album->frame, GALAXY_GAP, GALAXY_HEADER + 10, album, step);
}

/* -------------------------------------------------------------------------------------------------
   >>album
   ---------------------------------------------------------------------------------------------- */

static galaxy_album galaxy_album_begin(const galaxy_options *o, const galaxy_state *start)
{
    int const height = galaxy_height(GALAXY_FRAME_WIDTH),
              row = galaxy_height(GALAXY_SHEET_WIDTH) + GALAXY_GAP;
    galaxy_album album;
    memset(&album, 0, sizeof album);
    album.options = o;
    album.centre = galaxy_centre_of(start);
    album.width = o->view > 0 ? o->view : 2.7 * galaxy_reach(start, album.centre.at);
    if (!(album.width > 0)) album.width = 1;
    album.n = start->n;
    album.second = start->second;
    if (!o->frames && !o->sheet && !o->window) return album;
    album.density = (float *)zeros((size_t)GALAXY_FRAME_WIDTH * (size_t)height * 2, sizeof(float));
    album.frame = picture_new(GALAXY_FRAME_WIDTH, GALAXY_HEADER + height, gray(0));
    album.sheet = picture_new(GALAXY_GAP + GALAXY_SHEET_COLUMNS * (GALAXY_SHEET_WIDTH + GALAXY_GAP),
                                    GALAXY_HEADER + GALAXY_SHEET_ROWS * row, gray(0.13));
    return album;
}

/* The next step after `step` that is to be drawn, or the last. */
static int32_t galaxy_album_next(const galaxy_options *o, int32_t step)
{
    int32_t const next = next_picture(o->steps, o->frames, step);
    int32_t const view = o->sheet ? next_picture(o->steps, GALAXY_SHEET_VIEWS, step) : next;
    return view < next ? view : next;
}

static void galaxy_save_frame(galaxy_album *album, const galaxy_view *view, int32_t step, int32_t k)
{
    char path[1200];
    galaxy_draw_frame(album, view, step);
    snprintf(path, sizeof path, "%s/frame_%04ld.png", album->options->out, (long)k);
    picture_save(&album->frame, path);
    album->frames++;
}

static void galaxy_add_to_sheet(galaxy_album *album, const galaxy_view *view, int32_t step,
                                int32_t k)
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
        picture_save(&album->sheet, path);
    }
    free(album->density);
    picture_free(&album->frame);
    picture_free(&album->sheet);
}

#endif /* GALAXY_DRAW_H */
