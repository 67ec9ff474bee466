/* plain_grid.h - the grid that one would write in an afternoon: the baseline of bench_ugrid.c.
   Cells as wide as the radius, a counting sort, positions copied in cell order, and plain loops. It
   shares no code with ugrid.h, so its totals are also the check on the totals of ugrid.h.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef PLAIN_GRID_H
#define PLAIN_GRID_H

#include "bench.h"

typedef struct plain_point { float x, y, z; int32_t id; } plain_point;

typedef struct plain_grid {
    float radius, scale[3];     /* cells per unit of length */
    int32_t cells[3], cell_count, n;
    int32_t *start, *number;
    plain_point *point;         /* in cell order */
} plain_grid;

/* The box is 0 .. max. */
BENCH_FN plain_grid plain_make(const float max[3], float radius, int32_t n)
{
    plain_grid g;
    int a;
    for (a = 0; a < 3; a++) {
        g.cells[a] = (int32_t)(max[a] / radius);
        g.scale[a] = (float)g.cells[a] / max[a];
    }
    g.radius = radius;
    g.n = n;
    g.cell_count = g.cells[0] * g.cells[1] * g.cells[2];
    g.start = (int32_t *)bench_alloc(((size_t)g.cell_count + 1) * sizeof *g.start);
    g.number = (int32_t *)bench_alloc((size_t)n * sizeof *g.number);
    g.point = (plain_point *)bench_alloc((size_t)n * sizeof *g.point);
    return g;
}

BENCH_FN void plain_free(plain_grid *g)
{
    free(g->start);
    free(g->number);
    free(g->point);
}

BENCH_FN int32_t plain_cell(const plain_grid *g, int a, float x)
{
    int32_t const c = (int32_t)(x * g->scale[a]);
    return c < g->cells[a] ? c : g->cells[a] - 1;
}

BENCH_FN void plain_build(plain_grid *g, const float *pos)
{
    int32_t i, c, sum = 0;
    memset(g->start, 0, ((size_t)g->cell_count + 1) * sizeof *g->start);
    for (i = 0; i < g->n; i++) {
        const float *p = pos + 3 * (size_t)i;
        int32_t const x = plain_cell(g, 0, p[0]), y = plain_cell(g, 1, p[1]),
                      z = plain_cell(g, 2, p[2]);
        g->number[i] = (z * g->cells[1] + y) * g->cells[0] + x;
        g->start[g->number[i]]++;
    }
    /* start[c] = end of cell c; filled from the back, it becomes its start */
    for (c = 0; c <= g->cell_count; c++) {
        sum += g->start[c];
        g->start[c] = sum;
    }
    for (i = g->n - 1; i >= 0; i--) {
        plain_point *to = &g->point[--g->start[g->number[i]]];
        const float *p = pos + 3 * (size_t)i;
        to->x = p[0];
        to->y = p[1];
        to->z = p[2];
        to->id = i;
    }
}

typedef struct plain_range { int32_t begin, end; } plain_range;

/* The ranges of places near a point: 27 cells, or 9 strips of 3 cells. Returns how many. */
BENCH_FN int plain_near(const plain_grid *g, const plain_point *p, int strips, plain_range near[27])
{
    int32_t const x = plain_cell(g, 0, p->x), y = plain_cell(g, 1, p->y),
                  z = plain_cell(g, 2, p->z);
    int32_t const first = x > 0 ? x - 1 : 0, last = x < g->cells[0] - 1 ? x + 1 : x;
    int32_t u, v, w;
    int count = 0;
    for (w = z - 1; w <= z + 1; w++) {
        for (v = y - 1; v <= y + 1; v++) {
            int32_t const row = (w * g->cells[1] + v) * g->cells[0];
            if (w < 0 || w >= g->cells[2] || v < 0 || v >= g->cells[1]) continue;
            for (u = first; u <= last; u += strips ? 3 : 1) {
                near[count].begin = g->start[row + u];
                near[count++].end = g->start[row + (strips ? last : u) + 1];
            }
        }
    }
    return count;
}

BENCH_FN int plain_touches(const plain_grid *g, const plain_point *p, const plain_point *q)
{
    float const x = q->x - p->x, y = q->y - p->y, z = q->z - p->z;
    return x * x + y * y + z * z <= g->radius * g->radius;
}

/* Neighbours of every place. */
BENCH_FN void plain_count(const plain_grid *g, int strips, int32_t *counts)
{
    plain_range near[27];
    int32_t i, j, found;
    int k, ranges;
    for (i = 0; i < g->n; i++) {
        ranges = plain_near(g, &g->point[i], strips, near);
        found = -1; /* not itself */
        for (k = 0; k < ranges; k++)
            for (j = near[k].begin; j < near[k].end; j++)
                found += plain_touches(g, &g->point[i], &g->point[j]);
        counts[i] = found;
    }
}

/* The list in cell order, entries are places; half: only the partners behind i. */
BENCH_FN void plain_list(const plain_grid *g, int half, int64_t *offsets, int32_t *places)
{
    plain_range near[27];
    int32_t i, j;
    int64_t found = 0;
    int k, ranges;
    for (i = 0; i < g->n; i++) {
        offsets[i] = found;
        ranges = plain_near(g, &g->point[i], 1, near);
        for (k = 0; k < ranges; k++) {
            for (j = half && near[k].begin <= i ? i + 1 : near[k].begin; j < near[k].end; j++)
                if (j != i && plain_touches(g, &g->point[i], &g->point[j])) places[found++] = j;
        }
    }
    offsets[g->n] = found;
}

/* The list by input index, entries are ids: a pass that counts, a prefix sum, a pass that fills. */
BENCH_FN void plain_csr(const plain_grid *g, int32_t *counts, int64_t *offsets, int32_t *ids)
{
    plain_range near[27];
    int32_t i, j;
    int k, ranges;
    plain_count(g, 1, counts);
    for (i = 0; i < g->n; i++) offsets[g->point[i].id + 1] = counts[i];
    offsets[0] = 0;
    for (i = 0; i < g->n; i++) offsets[i + 1] += offsets[i];
    for (i = 0; i < g->n; i++) {
        int64_t found = offsets[g->point[i].id];
        ranges = plain_near(g, &g->point[i], 1, near);
        for (k = 0; k < ranges; k++)
            for (j = near[k].begin; j < near[k].end; j++)
                if (j != i && plain_touches(g, &g->point[i], &g->point[j]))
                    ids[found++] = g->point[j].id;
    }
}

#endif /* PLAIN_GRID_H */
