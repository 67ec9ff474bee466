/* picture.h - pictures: pixels, lines, discs, text by stb_easy_font.h, a PNG file by
   stb_image_write.h (Debian: libstb-dev).
   SPDX-License-Identifier: MIT OR Unlicense

   Most are drawn at twice the size and then halved (picture_halve), which smooths the edges. */

#ifndef EXAMPLES_PICTURE_H
#define EXAMPLES_PICTURE_H

#include <stb/stb_easy_font.h>
#include <stb/stb_image_write.h>

#include "base.h"

typedef struct rgb { double r, g, b; } rgb;

typedef struct picture {
    int width, height;
    int left, top, right, bottom;   /* the clip rectangle: nothing is drawn outside of it */
    unsigned char *rgb;
    float *depth;                   /* of what was drawn last; NULL where nothing hides anything */
} picture;

static inline rgb rgb_of(double r, double g, double b)
{
    rgb c;
    c.r = r;
    c.g = g;
    c.b = b;
    return c;
}

static inline rgb gray(double level) { return rgb_of(level, level, level); }

static inline rgb mix(rgb a, rgb b, double t)
{
    return rgb_of(a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t, a.b + (b.b - a.b) * t);
}

/* t from 0 to 1 along `count` colors at equal distances. */
static inline rgb color_map(const rgb *colors, int count, double t)
{
    double const at = (count - 1) * (t <= 0 ? 0 : t >= 1 ? 1 : t);
    int const k = at < count - 2 ? (int)at : count - 2;
    return mix(colors[k], colors[k + 1], at - k);
}

static inline void picture_clip(picture *p, int left, int top, int right, int bottom)
{
    p->left = left > 0 ? left : 0;
    p->top = top > 0 ? top : 0;
    p->right = right < p->width ? right : p->width;
    p->bottom = bottom < p->height ? bottom : p->height;
}

static inline unsigned char color_byte(double x)
{
    return (unsigned char)(x <= 0 ? 0 : x >= 1 ? 255 : 255 * x + 0.5);
}

/* `cover`: how much of the color goes over what is there, 0 to 1. */
static inline void draw_pixel(picture *p, int x, int y, rgb c, double cover)
{
    unsigned char *pixel;
    if (x < p->left || y < p->top || x >= p->right || y >= p->bottom) return;
    pixel = p->rgb + 3 * ((size_t)y * (size_t)p->width + (size_t)x);
    if (cover < 1)
        c = mix(rgb_of(pixel[0] / 255.0, pixel[1] / 255.0, pixel[2] / 255.0), c, cover);
    pixel[0] = color_byte(c.r);
    pixel[1] = color_byte(c.g);
    pixel[2] = color_byte(c.b);
}

static inline void draw_box(picture *p, int x0, int y0, int x1, int y1, rgb c, double cover)
{
    int x, y;
    for (y = y0 > p->top ? y0 : p->top; y < y1 && y < p->bottom; y++)
        for (x = x0 > p->left ? x0 : p->left; x < x1 && x < p->right; x++)
            draw_pixel(p, x, y, c, cover);
}

static inline void draw_frame(picture *p, int x0, int y0, int x1, int y1, int thick, rgb c)
{
    draw_box(p, x0, y0, x1, y0 + thick, c, 1);
    draw_box(p, x0, y1 - thick, x1, y1, c, 1);
    draw_box(p, x0, y0, x0 + thick, y1, c, 1);
    draw_box(p, x1 - thick, y0, x1, y1, c, 1);
}

/* All pixels no further than `reach` from the line from a to b; a = b: a disc. */
static inline void draw_line(picture *p, double ax, double ay, double bx, double by, double reach,
                             rgb c)
{
    double const dx = bx - ax, dy = by - ay, length2 = dx * dx + dy * dy;
    int const x0 = (int)floor(fmin(ax, bx) - reach), x1 = (int)ceil(fmax(ax, bx) + reach);
    int const y0 = (int)floor(fmin(ay, by) - reach), y1 = (int)ceil(fmax(ay, by) + reach);
    int x, y;
    for (y = y0; y <= y1; y++)
        for (x = x0; x <= x1; x++) {
            double const px = x + 0.5 - ax, py = y + 0.5 - ay;
            double const t = length2 > 0 ? fmax(0, fmin(1, (px * dx + py * dy) / length2)) : 0;
            if (hypot(px - t * dx, py - t * dy) <= reach) draw_pixel(p, x, y, c, 1);
        }
}

static inline void draw_disc(picture *p, double x, double y, double radius, rgb c)
{
    draw_line(p, x, y, x, y, radius, c);
}

enum { PICTURE_TEXT = 160 };

static inline int text_width(const char *text, int scale)
{
    char copy[PICTURE_TEXT];
    snprintf(copy, sizeof copy, "%s", text);
    return scale * stb_easy_font_width(copy);
}

/* The font comes as rectangles of four corners {x, y, z, color}. Returns the width. */
static inline int draw_text(picture *p, int x, int y, int scale, rgb c, const char *text)
{
    struct { float x, y, z; unsigned char rgba[4]; } corner[4 * 6 * PICTURE_TEXT];
    char copy[PICTURE_TEXT];
    int k, quads;
    snprintf(copy, sizeof copy, "%s", text);
    quads = stb_easy_font_print(0, 0, copy, NULL, corner, (int)sizeof corner);
    for (k = 0; k < 4 * quads; k += 4)
        draw_box(p, x + scale * (int)corner[k].x, y + scale * (int)corner[k].y,
                 x + scale * (int)corner[k + 2].x, y + scale * (int)corner[k + 2].y, c, 1);
    return scale * stb_easy_font_width(copy);
}

static inline picture picture_new(int width, int height, rgb c)
{
    picture p;
    p.width = width;
    p.height = height;
    p.rgb = (unsigned char *)zeros((size_t)width * (size_t)height, 3);
    p.depth = NULL;
    picture_clip(&p, 0, 0, width, height);
    draw_box(&p, 0, 0, width, height, c, 1);
    return p;
}

static inline picture picture_with_depth(int width, int height, rgb c)
{
    size_t const pixels = (size_t)width * (size_t)height;
    picture p = picture_new(width, height, c);
    size_t k;
    p.depth = (float *)zeros(pixels, sizeof(float));
    for (k = 0; k < pixels; k++) p.depth[k] = 1e30f;
    return p;
}

static inline void picture_free(picture *p)
{
    free(p->rgb);
    free(p->depth);
    memset(p, 0, sizeof *p);
}

/* Copies a picture of twice the size to (x0, y0): each pixel is the average of four. */
static inline void picture_halve(const picture *from, picture *to, int x0, int y0)
{
    size_t const row = 3 * (size_t)from->width;
    int x, y, k;
    for (y = 0; y < from->height / 2; y++)
        for (x = 0; x < from->width / 2; x++) {
            const unsigned char *s = from->rgb + (size_t)(2 * y) * row + (size_t)(6 * x);
            unsigned char *t = to->rgb + 3 * ((size_t)(y0 + y) * (size_t)to->width);
            for (k = 0, t += 3 * (x0 + x); k < 3; k++, s++)
                t[k] = (unsigned char)((s[0] + s[3] + s[row] + s[row + 3] + 2) / 4);
        }
}

static inline void picture_write(void *file, void *bytes, int count)
{
    fwrite(bytes, 1, (size_t)count, (FILE *)file);
}

/* Makes the folders in front of its name, too. */
static inline void picture_save(const picture *p, const char *path)
{
    out_file out;
    make_folder_of(path);
    out = create_file(path);
    if (!stbi_write_png_to_func(picture_write, out.file, p->width, p->height, 3, p->rgb,
                                3 * p->width))
        stop(1, "%s: could not be written", path);
    close_file(&out);
}

/* At half the size; frees the picture. */
static inline void picture_save_halved(picture *p, const char *path)
{
    picture half = picture_new(p->width / 2, p->height / 2, gray(1));
    picture_halve(p, &half, 0, 0);
    picture_save(&half, path);
    picture_free(&half);
    picture_free(p);
}

#endif /* EXAMPLES_PICTURE_H */
