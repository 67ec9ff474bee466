/* force_nodes.h - force nodes alone, fed by bodies, for 1 / d^2 in the plane: a contrast to
   nbody.h.
   SPDX-License-Identifier: MIT OR Unlicense

   M. Kalms (source 002), section 5.6.4, before its hierarchies. A square is divided into cells x
   cells, and each cell has side x side nodes, evenly spaced. A node takes the forces of all bodies
   that are far from its cell, and a body interpolates them linearly between the 2 x 2 nodes around
   it. The bodies of its own cell and of those that touch it act themselves. With c^2 cells of s^2
   nodes that is c^2 s^2 n + 9 n^2 / c^2 terms: of order n^(3/2) where c is chosen well. (nbody.h:
   NBODY_FORCE_NODES has nodes on every level, fed by virtual particles: of order n.) */

#ifndef EXAMPLES_FORCE_NODES_H
#define EXAMPLES_FORCE_NODES_H

#include "../common/base.h"

typedef struct node_layer {
    int32_t cells, side;        /* along an edge; nodes along an edge of a cell */
    int32_t *start, *body;      /* [cells^2 + 1], [n]: the bodies of each cell */
    double *force;              /* [2 side^2] of the nodes of one cell */
    double terms;               /* of the last evaluation */
} node_layer;

/* Cells for n bodies: the fewest terms. */
static node_layer nodes_new(int32_t n, int32_t side)
{
    node_layer l;
    memset(&l, 0, sizeof l);
    l.side = side;
    l.cells = (int32_t)(sqrt(3 * sqrt((double)n) / side) + 0.5);
    if (l.cells < 3) l.cells = 3; /* fewer: all are near each other */
    l.start = (int32_t *)zeros((size_t)l.cells * (size_t)l.cells + 1, sizeof *l.start);
    l.body = (int32_t *)zeros((size_t)n, sizeof *l.body);
    l.force = (double *)zeros(2 * (size_t)side * (size_t)side, sizeof *l.force);
    return l;
}

static void nodes_free(node_layer *l)
{
    free(l->start);
    free(l->body);
    free(l->force);
}

/* Column (axis 0) or row of a body in the square 0 .. 1. */
static int32_t nodes_cell(const node_layer *l, double x)
{
    int32_t const c = (int32_t)(x * l->cells);
    return c < l->cells ? c : l->cells - 1;
}

/* A counting sort. */
static void nodes_sort(node_layer *l, const double *pos, int32_t n)
{
    int32_t const all = l->cells * l->cells;
    int32_t i, c, sum = 0;
    memset(l->start, 0, ((size_t)all + 1) * sizeof *l->start);
    for (i = 0; i < n; i++)
        l->start[nodes_cell(l, pos[2 * i + 1]) * l->cells + nodes_cell(l, pos[2 * i])]++;
    for (c = 0; c <= all; c++) l->start[c] = sum += l->start[c];
    for (i = n - 1; i >= 0; i--) {
        c = nodes_cell(l, pos[2 * i + 1]) * l->cells + nodes_cell(l, pos[2 * i]);
        l->body[--l->start[c]] = i;
    }
}

/* Adds the forces of a cell's bodies on unit mass at p. */
static void nodes_add(node_layer *l, int32_t cell, const double *pos, const double *mass,
                      const double p[2], double force[2])
{
    int32_t k;
    for (k = l->start[cell]; k < l->start[cell + 1]; k++) {
        int32_t const j = l->body[k];
        double const x = pos[2 * j] - p[0], y = pos[2 * j + 1] - p[1], d2 = x * x + y * y;
        double const g = d2 > 0 ? mass[j] / (d2 * sqrt(d2)) : 0;
        force[0] += g * x;
        force[1] += g * y;
    }
    l->terms += l->start[cell + 1] - l->start[cell];
}

/* The bodies of the cells that touch cell (x, y), or of all others. */
static void nodes_add_all(node_layer *l, int32_t x, int32_t y, int near, const double *pos,
                          const double *mass, const double p[2], double force[2])
{
    int32_t u, v;
    for (v = 0; v < l->cells; v++)
        for (u = 0; u < l->cells; u++)
            if ((abs(u - x) <= 1 && abs(v - y) <= 1) == near)
                nodes_add(l, v * l->cells + u, pos, mass, p, force);
}

/* The nodes of a cell: at (i + 1/2) / side of its edge. */
static void nodes_fill(node_layer *l, int32_t x, int32_t y, const double *pos, const double *mass)
{
    int32_t i, j;
    memset(l->force, 0, 2 * (size_t)l->side * (size_t)l->side * sizeof *l->force);
    for (j = 0; j < l->side; j++)
        for (i = 0; i < l->side; i++) {
            double const p[2] = {(x + (i + 0.5) / l->side) / l->cells,
                                 (y + (j + 0.5) / l->side) / l->cells};
            nodes_add_all(l, x, y, 0, pos, mass, p, l->force + 2 * (j * l->side + i));
        }
}

/* The first of the two nodes around t = 0 .. side along one axis, and the weight of the second;
   beyond the outer nodes the line goes on. */
static int32_t nodes_around(const node_layer *l, double t, double *weight)
{
    int32_t first = (int32_t)floor(t - 0.5);
    if (first < 0) first = 0;
    if (first > l->side - 2) first = l->side - 2;
    *weight = t - 0.5 - first;
    return first;
}

/* Adds what the nodes of cell (x, y) say about p. */
static void nodes_interpolate(const node_layer *l, int32_t x, int32_t y, const double p[2],
                              double force[2])
{
    double a, b;
    int32_t const i = nodes_around(l, (p[0] * l->cells - x) * l->side, &a),
                  j = nodes_around(l, (p[1] * l->cells - y) * l->side, &b);
    const double *f = l->force + 2 * (j * l->side + i), *above = f + 2 * l->side;
    int k;
    for (k = 0; k < 2; k++)
        force[k] += (1 - b) * ((1 - a) * f[k] + a * f[k + 2]) +
                    b * ((1 - a) * above[k] + a * above[k + 2]);
}

/* acc[2 n]: bodies in the square 0 .. 1. */
static void nodes_accelerations(node_layer *l, const double *pos, const double *mass, int32_t n,
                                double *acc)
{
    int32_t x, y, k;
    l->terms = 0;
    nodes_sort(l, pos, n);
    memset(acc, 0, 2 * (size_t)n * sizeof *acc);
    for (y = 0; y < l->cells; y++)
        for (x = 0; x < l->cells; x++) {
            int32_t const cell = y * l->cells + x;
            if (l->start[cell] == l->start[cell + 1]) continue;
            nodes_fill(l, x, y, pos, mass);
            for (k = l->start[cell]; k < l->start[cell + 1]; k++) {
                int32_t const i = l->body[k];
                nodes_add_all(l, x, y, 1, pos, mass, pos + 2 * i, acc + 2 * i);
                nodes_interpolate(l, x, y, pos + 2 * i, acc + 2 * i);
            }
        }
}

#endif /* EXAMPLES_FORCE_NODES_H */
