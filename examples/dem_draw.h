/* dem_draw.h - what rebound.c, pyramid.c and nbody_levels.c draw with: pixels, lines, discs, text, a PNG file.
   SPDX-License-Identifier: MIT OR Unlicense

   Drawn at twice the size, and then halved: that smooths the edges. stb_image_write makes the PNG, stb_easy_font the letters
   (Debian: libstb-dev). Nothing here ends the program: 0 is returned where memory or the disk is full. */

#ifndef DEM_DRAW_H
#define DEM_DRAW_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stb/stb_easy_font.h>
#include <stb/stb_image_write.h>

typedef struct dem_color { double r, g, b; } dem_color;

typedef struct dem_canvas {
    int width, height;
    unsigned char *rgb;
} dem_canvas;

static inline dem_color dem_color_of(double r, double g, double b)
{
    dem_color color;
    color.r = r;
    color.g = g;
    color.b = b;
    return color;
}

static inline unsigned char dem_byte(double x) { return (unsigned char)(x <= 0 ? 0 : x >= 1 ? 255 : 255 * x + 0.5); }

static inline void dem_put(dem_canvas *canvas, int x, int y, dem_color color)
{
    unsigned char *pixel;
    if (x < 0 || y < 0 || x >= canvas->width || y >= canvas->height) return;
    pixel = canvas->rgb + 3 * ((size_t)y * (size_t)canvas->width + (size_t)x);
    pixel[0] = dem_byte(color.r);
    pixel[1] = dem_byte(color.g);
    pixel[2] = dem_byte(color.b);
}

static inline void dem_fill(dem_canvas *canvas, int x0, int y0, int x1, int y1, dem_color color)
{
    int x, y;
    for (y = y0; y < y1; y++)
        for (x = x0; x < x1; x++) dem_put(canvas, x, y, color);
}

static inline int dem_canvas_new(dem_canvas *canvas, int width, int height, dem_color color)
{
    canvas->width = width;
    canvas->height = height;
    canvas->rgb = (unsigned char *)malloc(3 * (size_t)width * (size_t)height);
    if (!canvas->rgb) return 0;
    dem_fill(canvas, 0, 0, width, height, color);
    return 1;
}

/* All pixels no further than `reach` from the line from a to b; a = b: a disc. */
static inline void dem_line(dem_canvas *canvas, double ax, double ay, double bx, double by, double reach, dem_color color)
{
    double const dx = bx - ax, dy = by - ay, length2 = dx * dx + dy * dy;
    int const x0 = (int)floor(fmin(ax, bx) - reach), x1 = (int)ceil(fmax(ax, bx) + reach);
    int const y0 = (int)floor(fmin(ay, by) - reach), y1 = (int)ceil(fmax(ay, by) + reach);
    int x, y;
    for (y = y0; y <= y1; y++)
        for (x = x0; x <= x1; x++) {
            double const px = x + 0.5 - ax, py = y + 0.5 - ay;
            double const t = length2 > 0 ? fmax(0, fmin(1, (px * dx + py * dy) / length2)) : 0;
            if (hypot(px - t * dx, py - t * dy) <= reach) dem_put(canvas, x, y, color);
        }
}

static inline void dem_disc(dem_canvas *canvas, double x, double y, double radius, dem_color color)
{
    dem_line(canvas, x, y, x, y, radius, color);
}

enum { DEM_TEXT = 160 };

/* The font comes as rectangles of four corners {x, y, z, color}. Returns the width. */
static inline int dem_text(dem_canvas *canvas, int x, int y, int scale, dem_color color, const char *text)
{
    struct { float x, y, z; unsigned char rgba[4]; } corner[4 * 6 * DEM_TEXT];
    char copy[DEM_TEXT];
    int k, quads;
    snprintf(copy, sizeof copy, "%s", text);
    quads = stb_easy_font_print(0, 0, copy, NULL, corner, (int)sizeof corner);
    for (k = 0; k < quads; k++) {
        int const left = x + scale * (int)corner[4 * k].x, top = y + scale * (int)corner[4 * k].y;
        dem_fill(canvas, left, top, x + scale * (int)corner[4 * k + 2].x, y + scale * (int)corner[4 * k + 2].y, color);
    }
    return scale * stb_easy_font_width(copy);
}

/* Each pixel becomes the average of four, and the canvas half as wide and high. */
static inline void dem_halve(dem_canvas *canvas)
{
    size_t const row = 3 * (size_t)canvas->width;
    unsigned char *to = canvas->rgb;
    int x, y, c;
    for (y = 0; y < canvas->height / 2; y++)
        for (x = 0; x < canvas->width / 2; x++)
            for (c = 0; c < 3; c++) {
                const unsigned char *s = canvas->rgb + (size_t)(2 * y) * row + (size_t)(6 * x + c);
                *to++ = (unsigned char)((s[0] + s[3] + s[row] + s[row + 3] + 2) / 4); /* never behind a pixel still to be read */
            }
    canvas->width /= 2;
    canvas->height /= 2;
}

static inline void dem_put_bytes(void *file, void *bytes, int count) { fwrite(bytes, 1, (size_t)count, (FILE *)file); }

static inline int dem_save(const dem_canvas *canvas, const char *path)
{
    FILE *file = fopen(path, "wb");
    int ok;
    if (!file) return 0;
    ok = stbi_write_png_to_func(dem_put_bytes, file, canvas->width, canvas->height, 3, canvas->rgb, 3 * canvas->width);
    if (ferror(file)) ok = 0;
    return fclose(file) == 0 && ok;
}

#endif /* DEM_DRAW_H */
