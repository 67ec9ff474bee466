/* curves.h - a plain grid whose cells are numbered along any curve, and a count of the cache lines
   that a search through it fetches: group `order` of bench_ugrid.c (source 000, section 1).
   SPDX-License-Identifier: MIT OR Unlicense

   2^bits cells along each axis of the box 0 .. 1. Particles are sorted by the number of their cell;
   a table has the number of each cell. Only along rows are the cells of a strip neighbours in
   memory, too. */

#ifndef CURVES_H
#define CURVES_H

#include "bench.h"
#include "plain_grid.h"

enum { CURVE_SHUFFLED, CURVE_ROWS, CURVE_MORTON, CURVE_HILBERT, CURVES };

/* Interleaves the bits of `dim` coordinates, from the highest on, x first. */
BENCH_FN int32_t curve_interleave(const int32_t *c, int dim, int bits)
{
    int32_t code = 0;
    int bit, a;
    for (bit = bits - 1; bit >= 0; bit--)
        for (a = 0; a < dim; a++) code = code << 1 | (c[a] >> bit & 1);
    return code;
}

/* The place of a cell on Hilbert's curve: J. Skilling, Programming the Hilbert curve, AIP
   Conference Proceedings 707, 2004. From the largest cubes down, the axes of the smaller ones are
   exchanged or mirrored; what is left is a Gray code. */
BENCH_FN int32_t curve_hilbert(const int32_t *at, int dim, int bits)
{
    int32_t c[3] = {0, 0, 0}, bit, flip = 0;
    int a;
    for (a = 0; a < dim; a++) c[a] = at[a];
    for (bit = 1 << (bits - 1); bit > 1; bit >>= 1)
        for (a = 0; a < dim; a++) {
            int32_t const low = bit - 1, change = (c[0] ^ c[a]) & low;
            if (c[a] & bit) c[0] ^= low;
            else { c[0] ^= change; c[a] ^= change; }
        }
    for (a = 1; a < dim; a++) c[a] ^= c[a - 1];
    for (bit = 1 << (bits - 1); bit > 1; bit >>= 1) if (c[dim - 1] & bit) flip ^= bit - 1;
    for (a = 0; a < dim; a++) c[a] ^= flip;
    return curve_interleave(c, dim, bits);
}

typedef struct curve_grid {
    int dim, bits, side;
    int32_t cells, n;
    float radius;
    int32_t *number;            /* [cells] by row: (z * side + y) * side + x */
    int32_t *start;             /* [cells + 1] by number */
    plain_point *point;         /* [n] by number of the cell */
} curve_grid;

BENCH_FN void curve_number(curve_grid *g, int curve)
{
    uint32_t roll = 12345;
    int32_t row, c[3];
    for (row = 0; row < g->cells; row++) {
        c[0] = row % g->side;
        c[1] = row / g->side % g->side;
        c[2] = row / g->side / g->side;
        g->number[row] = curve == CURVE_MORTON    ? curve_interleave(c, g->dim, g->bits)
                         : curve == CURVE_HILBERT ? curve_hilbert(c, g->dim, g->bits)
                                                  : row;
    }
    for (row = g->cells - 1; curve == CURVE_SHUFFLED && row > 0; row--) {
        int32_t const kept = g->number[row];
        int32_t const other = (int32_t)((roll = roll * 1664525u + 1013904223u) >> 4) % (row + 1);
        g->number[row] = g->number[other];
        g->number[other] = kept;
    }
}

/* Cells of consecutive numbers that share a side, of all pairs: 1 for Hilbert's curve. */
BENCH_FN double curve_joined(const curve_grid *g)
{
    int32_t *const row_of = (int32_t *)bench_alloc((size_t)g->cells * sizeof *row_of);
    int32_t row, k, joined = 0;
    for (row = 0; row < g->cells; row++) row_of[g->number[row]] = row;
    for (k = 1; k < g->cells; k++) {
        int32_t a = row_of[k - 1], b = row_of[k], steps = 0;
        int axis;
        for (axis = 0; axis < g->dim; axis++) {
            int32_t const d = a % g->side - b % g->side;
            steps += d < 0 ? -d : d;
            a /= g->side;
            b /= g->side;
        }
        joined += steps == 1;
    }
    free(row_of);
    return (double)joined / (g->cells - 1);
}

BENCH_FN curve_grid curve_make(int dim, int bits, int32_t n)
{
    curve_grid g;
    memset(&g, 0, sizeof g);
    g.dim = dim;
    g.bits = bits;
    g.side = 1 << bits;
    g.cells = 1 << dim * bits;
    g.n = n;
    g.radius = 1.0f / (float)g.side;
    g.number = (int32_t *)bench_alloc((size_t)g.cells * sizeof *g.number);
    g.start = (int32_t *)bench_alloc(((size_t)g.cells + 1) * sizeof *g.start);
    g.point = (plain_point *)bench_alloc((size_t)n * sizeof *g.point);
    return g;
}

BENCH_FN void curve_free(curve_grid *g)
{
    free(g->number);
    free(g->start);
    free(g->point);
}

BENCH_FN int32_t curve_along(const curve_grid *g, float x)
{
    int32_t const c = (int32_t)(x * (float)g->side);
    return c < g->side ? c : g->side - 1;
}

BENCH_FN int32_t curve_cell(const curve_grid *g, const float *p)
{
    int32_t const z = g->dim == 3 ? curve_along(g, p[2]) : 0;
    return g->number[(z * g->side + curve_along(g, p[1])) * g->side + curve_along(g, p[0])];
}

/* A counting sort. pos: 3 coordinates each, in 2D the third is not used. */
BENCH_FN void curve_build(curve_grid *g, const float *pos)
{
    int32_t i, c, sum = 0;
    memset(g->start, 0, ((size_t)g->cells + 1) * sizeof *g->start);
    for (i = 0; i < g->n; i++) g->start[curve_cell(g, pos + 3 * (size_t)i)]++;
    for (c = 0; c <= g->cells; c++) g->start[c] = sum += g->start[c];
    for (i = g->n - 1; i >= 0; i--) {
        const float *p = pos + 3 * (size_t)i;
        plain_point *to = &g->point[--g->start[curve_cell(g, p)]];
        to->x = p[0];
        to->y = p[1];
        to->z = g->dim == 3 ? p[2] : 0;
        to->id = i;
    }
}

/* ---- a cache: sets of lines of 64 bytes, of which the least recently used is replaced ---- */

typedef struct curve_cache {
    int sets, ways;
    uintptr_t *line;            /* [sets * ways] the most recent first; 0: none */
    int64_t misses;
} curve_cache;

BENCH_FN curve_cache curve_cache_of(int kilobytes, int ways)
{
    curve_cache cache;
    cache.sets = kilobytes * 1024 / 64 / ways;
    cache.ways = ways;
    cache.line = (uintptr_t *)calloc((size_t)cache.sets * (size_t)ways, sizeof *cache.line);
    if (!cache.line) exit(1);
    cache.misses = 0;
    return cache;
}

BENCH_FN void curve_fetch(curve_cache *cache, const void *address)
{
    uintptr_t const wanted = (uintptr_t)address / 64;
    uintptr_t *set = cache->line + wanted % (uintptr_t)cache->sets * (uintptr_t)cache->ways;
    int k = 0;
    while (k < cache->ways - 1 && set[k] != wanted) k++;
    cache->misses += set[k] != wanted;
    for (; k > 0; k--) set[k] = set[k - 1];
    set[0] = wanted;
}

/* ---- the search ---- */

typedef struct curve_search {
    const curve_grid *grid;
    int strips;                 /* 1: three cells along x are one range (rows only) */
    curve_cache *cache[2];      /* NULL: not counted */
    int64_t total;              /* neighbours of all particles */
} curve_search;

BENCH_FN void curve_count_lines(const curve_search *s, int32_t first, int32_t last)
{
    const curve_grid *g = s->grid;
    int k;
    for (k = 0; k < 2; k++) {
        const char *at = (const char *)&g->point[g->start[first]];
        const char *const end = (const char *)&g->point[g->start[last + 1]];
        curve_fetch(s->cache[k], &g->start[first]);
        curve_fetch(s->cache[k], &g->start[last + 1]);
        for (; at < end; at += sizeof(plain_point)) curve_fetch(s->cache[k], at);
    }
}

BENCH_FN int64_t curve_range(const curve_grid *g, const plain_point *p, int32_t first, int32_t last)
{
    float const limit = g->radius * g->radius;
    int64_t found = 0;
    int32_t j;
    for (j = g->start[first]; j < g->start[last + 1]; j++) {
        float const x = g->point[j].x - p->x, y = g->point[j].y - p->y, z = g->point[j].z - p->z;
        found += x * x + y * y + z * z <= limit;
    }
    return found;
}

/* The cells around one particle. */
BENCH_FN void curve_around(curve_search *s, const plain_point *p)
{
    const curve_grid *g = s->grid;
    int32_t const x = curve_along(g, p->x), y = curve_along(g, p->y),
                  z = g->dim == 3 ? curve_along(g, p->z) : 0, end = g->side - 1;
    int32_t const low = x > 0 ? x - 1 : x, high = x < end ? x + 1 : x;
    int32_t const up = z < (g->dim == 3 ? end : 0) ? z + 1 : z;
    int32_t u, v, w;
    for (w = z > 0 ? z - 1 : z; w <= up; w++)
        for (v = y > 0 ? y - 1 : y; v <= (y < end ? y + 1 : y); v++)
            for (u = low; u <= high; u += s->strips ? 3 : 1) {
                const int32_t *row = g->number + (w * g->side + v) * g->side;
                int32_t const first = row[u], last = s->strips ? row[high] : first;
                if (s->cache[0]) curve_count_lines(s, first, last);
                else s->total += curve_range(g, p, first, last);
            }
}

/* Of every particle, in the order of the cells. */
BENCH_FN void curve_work(void *user)
{
    curve_search *s = (curve_search *)user;
    int32_t i;
    s->total = -(int64_t)s->grid->n; /* each finds itself */
    for (i = 0; i < s->grid->n; i++) curve_around(s, &s->grid->point[i]);
}

#endif /* CURVES_H */
