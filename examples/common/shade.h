/* shade.h - shaded spheres with a depth buffer, and the legend of a color map.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef EXAMPLES_SHADE_H
#define EXAMPLES_SHADE_H

#include "picture.h"

/* One pixel of a sphere, (dx, dy, dz) from its centre in units of the radius, lit from above on the
   left. */
static inline rgb shade_sphere(rgb c, double dx, double dy, double dz)
{
    double const light = -0.45 * dx - 0.62 * dy + 0.64 * dz;
    double const shine = light > 0.9 ? 2.5 * (light - 0.9) : 0;
    double const level = 0.4 + 0.7 * (light > 0 ? light : 0);
    return mix(rgb_of(c.r * level, c.g * level, c.b * level), gray(1), shine);
}

/* Only if nothing drawn before is nearer. */
static inline void draw_pixel_at(picture *p, int x, int y, float depth, rgb c)
{
    float *before = p->depth + (size_t)y * (size_t)p->width + (size_t)x;
    if (depth >= *before) return;
    *before = depth;
    draw_pixel(p, x, y, c, 1);
}

/* A coordinate as a pixel of 0 .. most. */
static inline int clamp_pixel(float x, int most)
{
    return x < 0 ? 0 : x > (float)most ? most : (int)x;
}

/* Centre and radius in pixels; the centre is at `depth`, and its front nearer by `bulge`. */
static inline void draw_sphere(picture *p, float x, float y, float radius, float depth, float bulge,
                               rgb c)
{
    int const x0 = clamp_pixel(x - radius, p->width - 1),
              x1 = clamp_pixel(x + radius, p->width - 1);
    int const y1 = clamp_pixel(y + radius, p->height - 1);
    int px, py;
    for (py = clamp_pixel(y - radius, p->height - 1); py <= y1; py++)
        for (px = x0; px <= x1; px++) {
            float const dx = ((float)px + 0.5f - x) / radius, dy = ((float)py + 0.5f - y) / radius;
            float const rest = 1 - dx * dx - dy * dy, dz = rest > 0 ? sqrtf(rest) : 0;
            if (rest > 0)
                draw_pixel_at(p, px, py, depth - bulge * dz, shade_sphere(c, dx, dy, dz));
        }
}

/* What the colors mean, ending at `right`:  from [......] to */
static inline void draw_legend(picture *p, int right, int y, const char *from, const rgb *colors,
                               int count, const char *to)
{
    int const bar = 160, gap = 12;
    int x = right - text_width(to, 2), k;
    draw_text(p, x, y, 2, gray(0.2), to);
    x -= bar + gap;
    for (k = 0; k < bar; k++)
        draw_box(p, x + k, y - 1, x + k + 1, y + 14, color_map(colors, count, k / (double)bar), 1);
    draw_text(p, x - text_width(from, 2) - gap, y, 2, gray(0.2), from);
}

#endif /* EXAMPLES_SHADE_H */
