/* rebound_plot.h - the table and the plot of rebound.c, beside the exact solutions and table 6.1 of
   source 004.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef REBOUND_PLOT_H
#define REBOUND_PLOT_H

#include "../common/picture.h"

/* -------------------------------------------------------------------------------------------------
   >>table
   ---------------------------------------------------------------------------------------------- */

/* Table 6.1 of the source, for the default e, beta and mu: v_t/v_n, and -v_t'/v_n' without and
   with history. */
enum { ROWS = 11 };
static double const table[ROWS][3] = {{0, 0, 0},          {1, 0.147, -0.368}, {2, 0.322, -0.723},
                                      {3, 0.531, -1.066}, {3.5, -1, -1.180},  {4, 0.781, -1.125},
                                      {5, 1.087, -0.127}, {6, 1.476, 0.925},  {7, 2.029, 1.977},
                                      {8, 3.029, 3.029},  {9, 4.081, 4.081}};
static int const not_measured = 4; /* this row has no figure without history */

static double rolling(const options *o, double ratio) { return -o->beta / o->e * ratio; }
static double sliding(const options *o, double ratio)
{
    return ratio / o->e - 3.5 * o->mu * (1 + 1 / o->e);
}
static double exact(const options *o, double ratio)
{
    return ratio > 0 ? fmax(rolling(o, ratio), sliding(o, ratio)) : 0;
}

static int is_default(const options *o)
{
    return fabs(o->e - 0.95) < 1e-9 && fabs(o->beta - 0.35) < 1e-9 && fabs(o->mu - 0.75) < 1e-9;
}

static void print_row(const options *o, int k, const double seen[WAYS])
{
    char with[16] = "-", without[16] = "-";
    if (is_default(o)) snprintf(with, sizeof with, "%.3f", table[k][2]);
    if (is_default(o) && k != not_measured) snprintf(without, sizeof without, "%.3f", table[k][1]);
    printf("%7.1f %8.4f %9.4f %8.4f %9s %9.4f %8.4f %9s\n", table[k][0], exact(o, table[k][0]),
           seen[HISTORY], seen[HISTORY | MESH], with, seen[0], seen[MESH], without);
}

/* Prints the table; seen: [ROWS][WAYS]. */
static void print_table(wall *w, const options *o, double seen[ROWS][WAYS])
{
    double ratios[ROWS], column[ROWS];
    int k, way;
    for (k = 0; k < ROWS; k++) ratios[k] = table[k][0];
    for (way = 0; way < WAYS; way++) {
        collide_all(w, o, ROWS, ratios, way, column);
        for (k = 0; k < ROWS; k++) seen[k][way] = column[k];
    }
    puts("-v_t'/v_n'              with history               without history\n"
         "v_t/v_n    exact     plane     mesh table 6.1     plane     mesh table 6.1");
    for (k = 0; k < ROWS; k++) print_row(o, k, seen[k]);
}

/* Where the line through two rows crosses 0. */
static double zero_between(double seen[ROWS][WAYS], int a, int b)
{
    double const ya = seen[a][HISTORY | MESH], yb = seen[b][HISTORY | MESH];
    return table[a][0] - ya * (table[b][0] - table[a][0]) / (yb - ya);
}

static void print_figures(const options *o, double seen[ROWS][WAYS])
{
    int const way = HISTORY | MESH;
    double apart = 0;
    int k;
    for (k = 0; k < ROWS; k++) {
        apart = fmax(apart, fabs(seen[k][HISTORY] - seen[k][way]));
        apart = fmax(apart, fabs(seen[k][0] - seen[k][MESH]));
    }
    printf("exact: rolling %.4f sliding %.4f zero %.4f\n", rolling(o, 1),
           sliding(o, 9) - sliding(o, 8), 3.5 * o->mu * o->e * (1 + 1 / o->e));
    if (is_default(o)) puts("source: rolling -0.368 sliding 1.052 zero 5.12");
    printf("figures: rolling %.4f sliding %.4f zero %.4f mesh_from_plane %.6f\n",
           seen[1][way] - seen[0][way], seen[10][way] - seen[9][way], zero_between(seen, 6, 7),
           apart);
}

/* -------------------------------------------------------------------------------------------------
   >>plot
   ---------------------------------------------------------------------------------------------- */

/* halved in the end */
enum { WIDE = 1800, HIGH = 1240, LEFT = 150, RIGHT = 1760, TOP = 90, BOTTOM = 1130 };

static double const least = -2, most = 5;

static double at_x(double ratio) { return LEFT + (RIGHT - LEFT) * ratio / 9; }
static double at_y(double y) { return BOTTOM - (BOTTOM - TOP) * (y - least) / (most - least); }

static void draw_axes(picture *c)
{
    rgb const ink = rgb_of(0.2, 0.22, 0.26), faint = rgb_of(0.88, 0.89, 0.91);
    char text[16];
    int k;
    for (k = 0; k <= 9; k++) {
        draw_line(c, at_x(k), TOP, at_x(k), BOTTOM, 1, faint);
        snprintf(text, sizeof text, "%d", k);
        draw_text(c, (int)at_x(k) - 8, BOTTOM + 20, 4, ink, text);
    }
    for (k = (int)least; k <= (int)most; k++) {
        draw_line(c, LEFT, at_y(k), RIGHT, at_y(k), k == 0 ? 2 : 1, k == 0 ? ink : faint);
        snprintf(text, sizeof text, "%2d", k);
        draw_text(c, LEFT - 56, (int)at_y(k) - 14, 4, ink, text);
    }
    draw_text(c, (LEFT + RIGHT) / 2 - 60, BOTTOM + 62, 4, ink, "v_t / v_n");
    draw_text(c, 30, 24, 4, ink, "-v_t' / v_n'  after a steel sphere has hit a wall");
}

/* y(ratio) as far as it is in the picture. */
static void draw_exact(picture *c, const options *o, double (*y)(const options *, double))
{
    double t;
    for (t = 0; t < 9; t += 0.02)
        if (y(o, t) >= least && y(o, t + 0.02) >= least && y(o, t) <= most &&
            y(o, t + 0.02) <= most)
            draw_line(c, at_x(t), at_y(y(o, t)), at_x(t + 0.02), at_y(y(o, t + 0.02)), 1.5,
                      rgb_of(0.45, 0.47, 0.5));
}

static void draw_ring(picture *c, double x, double y, rgb color)
{
    draw_disc(c, x, y, 13, color);
    draw_disc(c, x, y, 8, rgb_of(1, 1, 1));
}

static void draw_simulation(picture *c, wall *w, const options *o, int way, rgb color)
{
    enum { POINTS = 37 };
    double t[POINTS], y[POINTS];
    int k;
    for (k = 0; k < POINTS; k++) t[k] = 0.25 * k;
    collide_all(w, o, POINTS, t, way, y);
    for (k = 1; k < POINTS; k++)
        if (fmin(y[k], y[k - 1]) >= least && fmax(y[k], y[k - 1]) <= most)
            draw_line(c, at_x(t[k - 1]), at_y(y[k - 1]), at_x(t[k]), at_y(y[k]), 4, color);
}

static void draw_source(picture *c, int column, rgb color)
{
    int k;
    for (k = 0; k < ROWS; k++)
        if (column == 2 || k != not_measured)
            draw_ring(c, at_x(table[k][0]), at_y(table[k][column]), color);
}

static void draw_legend(picture *c, int rings, rgb with, rgb without)
{
    rgb const ink = rgb_of(0.2, 0.22, 0.26);
    int const x = LEFT + 60, y = TOP + 40;
    draw_line(c, x, y + 12, x + 90, y + 12, 4, with);
    draw_text(c, x + 120, y, 4, ink, "with history, against a mesh");
    draw_line(c, x, y + 62, x + 90, y + 62, 4, without);
    draw_text(c, x + 120, y + 50, 4, ink, "without");
    draw_line(c, x, y + 112, x + 90, y + 112, 1.5, rgb_of(0.45, 0.47, 0.5));
    draw_text(c, x + 120, y + 100, 4, ink, "exact: rolling, sliding");
    if (!rings) return;
    draw_ring(c, x + 25, y + 162, with);
    draw_ring(c, x + 65, y + 162, without);
    draw_text(c, x + 120, y + 150, 4, ink, "Kureck 2016, table 6.1");
}

static void draw_plot(wall *w, const options *o)
{
    rgb const with = rgb_of(0.1, 0.35, 0.75), without = rgb_of(0.9, 0.45, 0.05);
    picture c = picture_new(WIDE, HIGH, gray(1));
    draw_axes(&c);
    draw_simulation(&c, w, o, MESH, without);
    draw_simulation(&c, w, o, MESH | HISTORY, with);
    draw_exact(&c, o, rolling);
    draw_exact(&c, o, sliding);
    if (is_default(o)) draw_source(&c, 1, without);
    if (is_default(o)) draw_source(&c, 2, with);
    draw_legend(&c, is_default(o), with, without);
    picture_save_halved(&c, o->out);
}

#endif /* REBOUND_PLOT_H */
