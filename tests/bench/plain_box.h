/* plain_box.h - the obvious cell list for a periodic box: the base of the ratios of bench_nlist
   --only boxes.
   SPDX-License-Identifier: MIT OR Unlicense

   Cells at least as wide as the radius, linked lists of particles, and for each pair of cells the
   shift between them, as textbooks and
   the usual packages have it. Orthogonal boxes only. It writes i, j, S and the distance of every
   entry of a full list. */

#ifndef PLAIN_BOX_H
#define PLAIN_BOX_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct plain_box {
    int32_t *head, *next;       /* linked lists */
    int64_t cells, count, room; /* room of the arrays below, kept from call to call */
    int32_t *i, *j, *shift;
    float *distance;
} plain_box;

static void plain_box_room(plain_box *b)
{
    if (b->count < b->room) return;
    b->room = b->room ? 2 * b->room : 1024;
    b->i = (int32_t *)realloc(b->i, (size_t)b->room * sizeof *b->i);
    b->j = (int32_t *)realloc(b->j, (size_t)b->room * sizeof *b->j);
    b->shift = (int32_t *)realloc(b->shift, (size_t)b->room * 3 * sizeof *b->shift);
    b->distance = (float *)realloc(b->distance, (size_t)b->room * sizeof *b->distance);
    if (!b->i || !b->j || !b->shift || !b->distance) abort();
}

/* The pairs of two cells, the second moved by whole boxes s. */
static void plain_box_cells(plain_box *b, const float *pos, float edge, float radius, int64_t c,
                            int64_t d, const int32_t s[3])
{
    float const limit = radius * radius;
    int32_t i, j;
    for (i = b->head[c]; i >= 0; i = b->next[i])
        for (j = b->head[d]; j >= 0; j = b->next[j]) {
            float const x = pos[3 * j] - pos[3 * i] + (float)s[0] * edge,
                        y = pos[3 * j + 1] - pos[3 * i + 1] + (float)s[1] * edge,
                        z = pos[3 * j + 2] - pos[3 * i + 2] + (float)s[2] * edge,
                        d2 = x * x + y * y + z * z;
            if (d2 > limit || (i == j && !(s[0] | s[1] | s[2]))) continue;
            plain_box_room(b);
            b->i[b->count] = i;
            b->j[b->count] = j;
            memcpy(b->shift + 3 * b->count, s, 3 * sizeof *s);
            b->distance[b->count++] = sqrtf(d2);
        }
}

/* The full list of n particles in the box 0 .. edge, periodic along all axes. */
static void plain_box_search(plain_box *b, const float *pos, int32_t n, float edge, float radius)
{
    int32_t const m = (int32_t)(edge / radius) > 0 ? (int32_t)(edge / radius) : 1,
                  reach = (int32_t)ceilf(radius * (float)m / edge * 0.999999f);
    int32_t c[3], d[3], i, a;
    if ((int64_t)m * m * m > b->cells) {
        b->cells = (int64_t)m * m * m;
        b->head = (int32_t *)realloc(b->head, (size_t)b->cells * sizeof *b->head);
    }
    b->next = (int32_t *)realloc(b->next, (size_t)n * sizeof *b->next);
    if (!b->head || !b->next) abort();
    memset(b->head, 0xFF, (size_t)b->cells * sizeof *b->head);
    b->count = 0;
    for (i = n; i-- > 0;) {
        int64_t at = 0;
        for (a = 0; a < 3; a++) {
            int32_t const x = (int32_t)(pos[3 * i + a] / edge * (float)m);
            at = at * m + (x < m ? x : m - 1);
        }
        b->next[i] = b->head[at];
        b->head[at] = i;
    }
    for (c[0] = 0; c[0] < m; c[0]++)
        for (c[1] = 0; c[1] < m; c[1]++)
            for (c[2] = 0; c[2] < m; c[2]++)
                for (d[0] = -reach; d[0] <= reach; d[0]++)
                    for (d[1] = -reach; d[1] <= reach; d[1]++)
                        for (d[2] = -reach; d[2] <= reach; d[2]++) {
                            int32_t s[3];
                            int64_t from = 0, to = 0;
                            for (a = 0; a < 3; a++) {
                                int32_t const x = c[a] + d[a];
                                s[a] = x >= 0 ? x / m : -((m - 1 - x) / m);
                                from = from * m + c[a];
                                to = to * m + x - s[a] * m;
                            }
                            plain_box_cells(b, pos, edge, radius, from, to, s);
                        }
}

static void plain_box_free(plain_box *b)
{
    free(b->head);
    free(b->next);
    free(b->i);
    free(b->j);
    free(b->shift);
    free(b->distance);
    memset(b, 0, sizeof *b);
}

#endif
