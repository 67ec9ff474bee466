/* barnes_hut.h - the tree code of Barnes and Hut, for 1 / d^2 in the plane: a contrast to nbody.h.
   SPDX-License-Identifier: MIT OR Unlicense

   J. Barnes and P. Hut, A hierarchical O(N log N) force-calculation algorithm, Nature 324 (1986)
   446. A square is divided into quarters until few bodies are left. Seen from a body, a cell of
   side s at distance d acts as one mass in its centre of mass where

       s / d < theta        (the opening angle)

   and is opened, into its quarters or its bodies, where not. theta = 0 opens all: the direct sum. A
   cell that holds the body itself is always opened; from theta = 0.71 on it could pass else.
   What differs from nbody.h: cells are told apart by the angle, not by whether they touch; a cell
   acts as one point, not as many; and every body walks the tree alone, so it is n log n terms. */

#ifndef EXAMPLES_BARNES_HUT_H
#define EXAMPLES_BARNES_HUT_H

#include "../common/base.h"

enum { BH_LEAF = 8, BH_DEPTH = 50 /* bodies at one point are not divided for ever */ };

typedef struct bh_body { double x, y, m; int32_t id; } bh_body;

typedef struct bh_cell {
    double x, y, m;         /* centre of mass, mass */
    double side;
    int32_t first, count;   /* its bodies */
    int32_t child[4];       /* -1: none; all: a leaf */
} bh_cell;

typedef struct bh_tree {
    bh_body *body;          /* [n] those of a cell lie side by side */
    bh_cell *cell;          /* cell[0]: all */
    int32_t n, cells, room;
    int64_t terms;          /* of the last walk */
} bh_tree;

/* -------------------------------------------------------------------------------------------------
   >>build
   ---------------------------------------------------------------------------------------------- */

static int32_t bh_new_cell(bh_tree *t, int32_t first, int32_t count, double side)
{
    bh_cell *c;
    int32_t k;
    if (t->cells == t->room) {
        t->room = 2 * t->room + 64;
        t->cell = (bh_cell *)realloc(t->cell, (size_t)t->room * sizeof *t->cell);
        if (!t->cell) stop(1, "out of memory");
    }
    c = &t->cell[t->cells];
    memset(c, 0, sizeof *c);
    c->first = first;
    c->count = count;
    c->side = side;
    for (k = 0; k < 4; k++) c->child[k] = -1;
    return t->cells++;
}

/* Swaps bodies until those below `middle` along the axis stand first. Returns how many. */
static int32_t bh_split(bh_body *body, int32_t count, int axis, double middle)
{
    int32_t below = 0, k;
    for (k = 0; k < count; k++) {
        bh_body const b = body[k];
        if ((axis ? b.y : b.x) >= middle) continue;
        body[k] = body[below];
        body[below++] = b;
    }
    return below;
}

static void bh_centre(bh_tree *t, int32_t cell)
{
    bh_cell *c = &t->cell[cell];
    int32_t k;
    for (k = c->first; k < c->first + c->count; k++) {
        c->m += t->body[k].m;
        c->x += t->body[k].m * t->body[k].x;
        c->y += t->body[k].m * t->body[k].y;
    }
    if (c->m > 0) c->x /= c->m, c->y /= c->m;
}

/* The cell of `count` bodies, in the square around (x, y), and all cells below. */
static int32_t bh_divide(bh_tree *t, int32_t first, int32_t count, double x, double y, double side,
                         int depth)
{
    int32_t const cell = bh_new_cell(t, first, count, side);
    int32_t begin[5], k;
    bh_centre(t, cell);
    if (count <= BH_LEAF || depth == BH_DEPTH) return cell;
    begin[0] = first;
    begin[4] = first + count;
    begin[2] = first + bh_split(t->body + first, count, 1, y);
    begin[1] = first + bh_split(t->body + first, begin[2] - first, 0, x);
    begin[3] = begin[2] + bh_split(t->body + begin[2], begin[4] - begin[2], 0, x);
    for (k = 0; k < 4; k++) {
        int32_t child;
        if (begin[k + 1] == begin[k]) continue;
        child = bh_divide(t, begin[k], begin[k + 1] - begin[k], x + (k & 1 ? side : -side) / 4,
                          y + (k & 2 ? side : -side) / 4, side / 2, depth + 1);
        t->cell[cell].child[k] = child; /* (t->cell may have moved) */
    }
    return cell;
}

/* Bodies in the unit square. The memory of an earlier build is used again. */
static void bh_build(bh_tree *t, const double *pos, const double *mass, int32_t n)
{
    int32_t i;
    if (n > t->n) {
        free(t->body);
        t->body = (bh_body *)zeros((size_t)n, sizeof *t->body);
    }
    t->n = n;
    t->cells = 0;
    for (i = 0; i < n; i++) {
        t->body[i].x = pos[2 * i];
        t->body[i].y = pos[2 * i + 1];
        t->body[i].m = mass[i];
        t->body[i].id = i;
    }
    bh_divide(t, 0, n, 0.5, 0.5, 1, 0);
}

/* -------------------------------------------------------------------------------------------------
   >>walk
   ---------------------------------------------------------------------------------------------- */

static void bh_term(double dx, double dy, double m, double acc[2])
{
    double const d2 = dx * dx + dy * dy;
    double f;
    if (!(d2 > 0)) return; /* itself */
    f = m / (d2 * sqrt(d2));
    acc[0] += f * dx;
    acc[1] += f * dy;
}

static void bh_act(bh_tree *t, int32_t cell, const bh_body *on, double theta, double acc[2])
{
    const bh_cell *c = &t->cell[cell];
    int32_t const place = (int32_t)(on - t->body);
    int const holds_it = place >= c->first && place < c->first + c->count;
    double const dx = c->x - on->x, dy = c->y - on->y;
    int32_t k, leaf = 1;
    if (!holds_it && c->side * c->side < theta * theta * (dx * dx + dy * dy)) {
        bh_term(dx, dy, c->m, acc);
        t->terms++;
        return;
    }
    for (k = 0; k < 4; k++)
        if (c->child[k] >= 0) {
            bh_act(t, c->child[k], on, theta, acc);
            leaf = 0;
        }
    if (!leaf) return;
    for (k = c->first; k < c->first + c->count; k++)
        bh_term(t->body[k].x - on->x, t->body[k].y - on->y, t->body[k].m, acc);
    t->terms += c->count;
}

/* Accelerations [2 n]. Bodies take turns in the order of the tree: neighbours open nearly the same
   cells. */
static void bh_accelerations(bh_tree *t, double theta, double *acc)
{
    int32_t k;
    t->terms = 0;
    for (k = 0; k < t->n; k++) {
        double sum[2] = {0, 0};
        bh_act(t, 0, &t->body[k], theta, sum);
        acc[2 * t->body[k].id] = sum[0];
        acc[2 * t->body[k].id + 1] = sum[1];
    }
}

static void bh_free(bh_tree *t)
{
    free(t->body);
    free(t->cell);
    memset(t, 0, sizeof *t);
}

#endif /* EXAMPLES_BARNES_HUT_H */
