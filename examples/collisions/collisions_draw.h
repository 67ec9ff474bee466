/* collisions_draw.h - the picture of collisions.c: the flow at the start and at the end, and its
   decay.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef COLLISIONS_DRAW_H
#define COLLISIONS_DRAW_H

#include "../common/picture.h"

enum { PANEL = 800, BLOCKS = 32, SAMPLES = 100 }; /* drawn at twice the size */

/* Mean velocities of BLOCKS x BLOCKS columns of cells: thermal motion cancels. */
typedef struct field { double u[BLOCKS][BLOCKS][2]; } field;

/* Speed of the flow over time. */
typedef struct curve { double t[SAMPLES + 1], flow[SAMPLES + 1]; int count; } curve;

/* A second grid: columns along z are cells of 2D, since a stride may skip coordinates. */
static void field_of(const scene *s, field *f)
{
    size_t const width = (size_t)s->model.dim + 1;
    mpc_real *sums = (mpc_real *)zeros(BLOCKS * BLOCKS * width, sizeof *sums);
    ugrid_desc desc;
    ugrid grid;
    int x, y, a;
    memset(&desc, 0, sizeof desc);
    memset(&grid, 0, sizeof grid);
    desc.dim = 2;
    desc.periodic[0] = desc.periodic[1] = 1;
    desc.max[0] = desc.max[1] = (mpc_real)s->model.size;
    desc.cell = (mpc_real)s->model.size / (BLOCKS + (mpc_real)0.5); /* BLOCKS fit */
    MUST(ugrid, ugrid_build(&grid, &desc, s->x, (width - 1) * sizeof *s->x, s->n), "the picture");
    MUST(ugrid, ugrid_cell_sums(&grid, s->v, (int32_t)width, sums), "the picture");
    for (y = 0; y < BLOCKS; y++)
        for (x = 0; x < BLOCKS; x++)
            for (a = 0; a < 2; a++) {
                const mpc_real *sum = sums + width * (size_t)(y * BLOCKS + x);
                f->u[y][x][a] = sum[width - 1] > 0 ? (double)(sum[a] / sum[width - 1]) : 0;
            }
    ugrid_free(&grid);
    free(sums);
}

static const double *block_at(const field *f, int x, int y)
{
    return f->u[(y + BLOCKS) % BLOCKS][(x + BLOCKS) % BLOCKS];
}

/* The rotation of the flow around a block, from the blocks around it. */
static double curl_at(const field *f, int x, int y)
{
    double sum = 0;
    int k;
    for (k = -1; k <= 1; k++)
        sum += block_at(f, x + 1, y + k)[1] - block_at(f, x - 1, y + k)[1] -
               block_at(f, x + k, y + 1)[0] + block_at(f, x + k, y - 1)[0];
    return sum / 6;
}

static rgb curl_color(double t)
{
    static const rgb colors[] = {{0.10, 0.30, 0.65}, {0.55, 0.75, 0.92}, {0.97, 0.97, 0.95},
                                 {0.95, 0.65, 0.45}, {0.70, 0.12, 0.15}};
    return color_map(colors, 5, (t + 1) / 2);
}

static void draw_arrow(picture *p, double x, double y, double dx, double dy)
{
    rgb const ink = gray(0.15);
    double const tx = x + dx, ty = y + dy;
    draw_line(p, x - dx, y - dy, tx, ty, 1.2, ink);
    draw_line(p, tx, ty, tx - 0.5 * dx - 0.35 * dy, ty - 0.5 * dy + 0.35 * dx, 1.2, ink);
    draw_line(p, tx, ty, tx - 0.5 * dx + 0.35 * dy, ty - 0.5 * dy - 0.35 * dx, 1.2, ink);
}

static void draw_flow(picture *p, int left, const scene *s, const field *f, const char *caption)
{
    double const edge = (PANEL - 80.0) / BLOCKS, most = s->options->flow;
    double const curl = 2.4 * s->k * s->options->flow * s->model.size / BLOCKS;
    int x, y;
    draw_text(p, left + 40, 14, 3, gray(0.1), caption);
    for (y = 0; y < BLOCKS; y++)
        for (x = 0; x < BLOCKS; x++)
            draw_box(p, left + 40 + (int)(edge * x), 40 + (int)(edge * (BLOCKS - 1 - y)),
                     left + 40 + (int)(edge * (x + 1)), 40 + (int)(edge * (BLOCKS - y)),
                     curl_color(curl_at(f, x, y) / curl), 1);
    for (y = 0; y < BLOCKS; y++)
        for (x = 0; x < BLOCKS; x++)
            draw_arrow(p, left + 40 + edge * (x + 0.5), 40 + edge * (BLOCKS - 0.5 - y),
                       0.5 * edge * f->u[y][x][0] / most, -0.5 * edge * f->u[y][x][1] / most);
}

/* The curve of the fluid, and the decay that the theory of its viscosity expects. */
static void draw_decay(picture *p, int left, const scene *s, const curve *c)
{
    double const end = c->t[c->count - 1] > 0 ? c->t[c->count - 1] : 1;
    double const rate = s->viscosity * s->square;
    int const x0 = left + 100, x1 = left + PANEL - 40, y0 = PANEL - 80, y1 = 60;
    rgb const ours = rgb_of(0.10, 0.35, 0.75), theory = rgb_of(0.85, 0.25, 0.15);
    char text[64];
    int k;
    draw_text(p, left + 100, 14, 3, gray(0.1), "speed of the flow over time");
    for (k = 0; k <= 4; k++) {
        int const x = x0 + (x1 - x0) * k / 4, y = y0 - (y0 - y1) * k / 4;
        draw_box(p, x, y1, x + 2, y0, gray(0.87), 1);
        draw_box(p, x0, y, x1, y + 2, gray(0.87), 1);
        snprintf(text, sizeof text, "%.3g", end * k / 4);
        draw_text(p, x - text_width(text, 2) / 2, y0 + 14, 2, gray(0.2), text);
        snprintf(text, sizeof text, "%.3g", s->options->flow * k / 4);
        draw_text(p, x0 - 12 - text_width(text, 2), y - 8, 2, gray(0.2), text);
    }
    for (k = 1; k < c->count; k++)
        draw_line(p, x0 + (x1 - x0) * c->t[k - 1] / end,
                  y0 - (y0 - y1) * c->flow[k - 1] / s->options->flow,
                  x0 + (x1 - x0) * c->t[k] / end,
                  y0 - (y0 - y1) * c->flow[k] / s->options->flow, 3, ours);
    for (k = 0; k <= 40; k++)
        draw_disc(p, x0 + (x1 - x0) * k / 40.0, y0 - (y0 - y1) * exp(-rate * end * k / 40), 5,
                  theory);
    draw_text(p, x0 + 200, y1 + 30, 2, ours, "line: this fluid");
    snprintf(text, sizeof text, "discs: viscosity %.3f, by theory", s->viscosity);
    draw_text(p, x0 + 200, y1 + 60, 2, theory, text);
}

#endif /* COLLISIONS_DRAW_H */
