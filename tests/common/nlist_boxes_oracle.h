/* nlist_boxes_oracle.h - what the tests of nlist_build_box share, serial and CUDA: systems in boxes
   of any shape, and brute force over images.
   SPDX-License-Identifier: MIT OR Unlicense

   Include nlist.h first. C99 and C++17. The oracle shares no code with nlist.h. For every pair it
   finds the images within
   reach by the inverse of the Gram matrix of the periodic vectors, in double, and tests each. Where
   rounding decides (RIM), the formula of
   >>boxes in nlist.h, written out here in nlist_real, says which pairs are listed. */

#ifndef BOXES_ORACLE_H
#define BOXES_ORACLE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads.h"

/* ---- systems ---- */

enum boxes_kind {
    BOXES_ORTHOGONAL,
    BOXES_TRICLINIC,
    BOXES_LEFT_HANDED,
    BOXES_NEEDLE,
    BOXES_FLAT,
    BOXES_SHEARED,
    BOXES_TINY,
    BOXES_FAR,
    BOXES_LATTICE,
    BOXES_ONE,
    BOXES_NONE,
    BOXES_KINDS
};

typedef struct boxes_system {
    nlist_box box;
    int dim;
    int32_t n;
    nlist_real *pos; /* [dim * n] */
    nlist_real radius;
} boxes_system;

WL_FN double boxes_between(wl_random *dice, double from, double to)
{
    return from + (to - from) * (double)wl_u(dice);
}

WL_FN void boxes_vectors(nlist_box *box, int kind, int dim, wl_random *dice)
{
    double const away = kind == BOXES_ORTHOGONAL || kind == BOXES_LATTICE ? 0 : 0.6;
    int a, k;
    memset(box, 0, sizeof *box);
    for (a = 0; a < dim; a++) {
        double size = kind == BOXES_TINY ? 0.4 : kind == BOXES_LATTICE ? 2 : 2.5;
        if (kind == BOXES_NEEDLE && a == dim - 1) size = 25;
        if (kind == BOXES_NEEDLE && a != dim - 1) size = 0.7;
        if (kind == BOXES_FLAT && a == 0) size = 0.3;
        for (k = 0; k < dim; k++)
            box->cell[a][k] = (nlist_real)(a == k ? size
                                                  : boxes_between(dice, -away, away) *
                                                        (kind == BOXES_FLAT ? 0.2 : size / 2));
    }
    for (k = 0; k < dim && kind == BOXES_SHEARED; k++) box->cell[1][k] += 7 * box->cell[0][k];
    for (k = 0; k < dim && kind == BOXES_LEFT_HANDED; k++) {
        nlist_real const x = box->cell[0][k];
        box->cell[0][k] = box->cell[1][k];
        box->cell[1][k] = x;
    }
}

/* A random system. periodic: a bit per axis. */
WL_FN void boxes_make(boxes_system *s, int kind, int dim, int periodic, int32_t n, wl_random *dice)
{
    double const out = kind == BOXES_FAR ? 40 : kind == BOXES_LATTICE ? 0 : 0.3;
    int32_t i;
    int a, k;
    s->dim = dim;
    s->n = kind == BOXES_NONE ? 0 : kind == BOXES_ONE ? 1 : n;
    s->pos = (nlist_real *)calloc((size_t)(dim * s->n + 1), sizeof *s->pos);
    if (!s->pos) abort();
    boxes_vectors(&s->box, kind, dim, dice);
    s->radius = kind == BOXES_LATTICE ? (nlist_real)1 : (nlist_real)boxes_between(dice, 0.4, 1.6);
    for (a = 0; a < 3; a++) s->box.periodic[a] = periodic >> a & 1;
    for (i = 0; i < s->n; i++) {
        for (a = 0; a < dim; a++) {
            double f = boxes_between(dice, -out, 1 + out);
            if (kind == BOXES_LATTICE)
                f = (double)wl_below(dice, 5) /
                    4; /* many at exactly the radius, some at one point */
            for (k = 0; k < dim; k++)
                s->pos[dim * i + k] += (nlist_real)(f * (double)s->box.cell[a][k]);
        }
    }
    /* vectors of axes that are not periodic mean nothing */
    for (a = 0; a < 3; a++)
        for (k = 0; k < 3 && !s->box.periodic[a]; k++)
            s->box.cell[a][k] = kind == BOXES_FAR ? (nlist_real)NAN : 0;
}

WL_FN void boxes_forget(boxes_system *s)
{
    free(s->pos);
    s->pos = NULL;
}

/* ---- brute force ---- */

typedef struct boxes_entry {
    int32_t i, j, s[3];
    nlist_real d[3], d2;
} boxes_entry;
typedef struct boxes_truth {
    boxes_entry *entry;
    int64_t count, room;
} boxes_truth;

WL_FN int boxes_order(const void *va, const void *vb)
{
    const boxes_entry *a = (const boxes_entry *)va, *b = (const boxes_entry *)vb;
    int k;
    if (a->i != b->i) return a->i < b->i ? -1 : 1;
    if (a->j != b->j) return a->j < b->j ? -1 : 1;
    for (k = 0; k < 3; k++)
        if (a->s[k] != b->s[k]) return a->s[k] < b->s[k] ? -1 : 1;
    return 0;
}

/* By distance within a row, then as above. */
WL_FN int boxes_order_nearest(const void *va, const void *vb)
{
    const boxes_entry *a = (const boxes_entry *)va, *b = (const boxes_entry *)vb;
    if (a->i != b->i) return a->i < b->i ? -1 : 1;
    if (a->d2 != b->d2) return a->d2 < b->d2 ? -1 : 1;
    return boxes_order(va, vb);
}

/* Inverse of the Gram matrix of the periodic vectors; rows and columns of others are 0. */
WL_FN void boxes_gram_inverse(const nlist_box *box, int dim, double inverse[3][3])
{
    double m[3][6];
    int a, b, k, c;
    for (a = 0; a < 3; a++) {
        for (b = 0; b < 3; b++) {
            m[a][b] = a == b;
            m[a][3 + b] = a == b;
            if (a >= dim || b >= dim || !box->periodic[a] || !box->periodic[b]) continue;
            for (m[a][b] = 0, k = 0; k < dim; k++)
                m[a][b] += (double)box->cell[a][k] * (double)box->cell[b][k];
        }
    }
    for (c = 0; c < 3; c++) {
        double const pivot = m[c][c]; /* positive definite: needs no exchange of rows */
        for (k = 0; k < 6; k++) m[c][k] /= pivot;
        for (a = 0; a < 3; a++) {
            double const times = m[a][c];
            for (k = 0; k < 6 && a != c; k++) m[a][k] -= times * m[c][k];
        }
    }
    for (a = 0; a < 3; a++)
        for (b = 0; b < 3; b++)
            inverse[a][b] =
                a < dim && b < dim && box->periodic[a] && box->periodic[b] ? m[a][3 + b] : 0;
}

WL_FN void boxes_add(boxes_truth *truth, const boxes_entry *entry)
{
    if (truth->count == truth->room) {
        truth->room = truth->room ? 2 * truth->room : 256;
        truth->entry =
            (boxes_entry *)realloc(truth->entry, (size_t)truth->room * sizeof *truth->entry);
        if (!truth->entry) abort();
    }
    truth->entry[truth->count++] = *entry;
}

/* D and d2 of the formula in nlist.h. */
WL_FN void boxes_formula(const boxes_system *s, boxes_entry *e)
{
    int k;
    e->d2 = 0;
    for (k = 0; k < 3; k++) {
        nlist_real t = 0;
        volatile nlist_real u[3], d;
        int a;
        for (a = 0; a < 3; a++)
            u[a] = (nlist_real)e->s[a] * (s->box.periodic[a] && k < s->dim ? s->box.cell[a][k] : 0);
        t = u[0] + u[1];
        t = t + u[2];
        d = k < s->dim ? s->pos[s->dim * e->j + k] - s->pos[s->dim * e->i + k] : 0;
        d = d + t;
        e->d[k] = d;
        u[0] = d * d;
        e->d2 = e->d2 + u[0];
    }
}

/* All entries (i, j, S) of a pair within `reach`. */
WL_FN void boxes_pair(const boxes_system *s, const double gram[3][3], nlist_real reach, int32_t i,
                      int32_t j, boxes_truth *truth)
{
    double v[3] = {0, 0, 0}, f[3] = {0, 0, 0};
    int32_t low[3], high[3];
    boxes_entry e;
    int a, b, k;
    for (a = 0; a < s->dim; a++)
        for (k = 0; k < s->dim && s->box.periodic[a]; k++)
            v[a] += (double)s->box.cell[a][k] *
                    ((double)s->pos[s->dim * j + k] - (double)s->pos[s->dim * i + k]);
    for (a = 0; a < 3; a++) {
        double const wide = 1.001 * (double)reach * sqrt(gram[a][a]) + 0.01;
        for (b = 0; b < 3; b++) f[a] += gram[a][b] * v[b];
        low[a] = s->box.periodic[a] && a < s->dim ? (int32_t)ceil(-f[a] - wide) : 0;
        high[a] = s->box.periodic[a] && a < s->dim ? (int32_t)floor(-f[a] + wide) : 0;
    }
    e.i = i;
    e.j = j;
    for (e.s[0] = low[0]; e.s[0] <= high[0]; e.s[0]++)
        for (e.s[1] = low[1]; e.s[1] <= high[1]; e.s[1]++)
            for (e.s[2] = low[2]; e.s[2] <= high[2]; e.s[2]++) {
                boxes_formula(s, &e);
                if (i == j && !(e.s[0] | e.s[1] | e.s[2])) continue;
                if (e.d2 <= reach * reach) boxes_add(truth, &e);
            }
}

/* Everything that a full list has, ordered by i, j, S. */
WL_FN boxes_truth boxes_brute(const boxes_system *s, nlist_real reach)
{
    boxes_truth truth = {NULL, 0, 0};
    double gram[3][3];
    int32_t i, j;
    boxes_gram_inverse(&s->box, s->dim, gram);
    for (i = 0; i < s->n; i++)
        for (j = 0; j < s->n; j++) boxes_pair(s, (const double(*)[3])gram, reach, i, j, &truth);
    return truth;
}

/* Of an entry and its opposite, half lists have one. */
WL_FN int boxes_in_half(const boxes_entry *e)
{
    if (e->i != e->j) return e->i < e->j;
    if (e->s[0] != 0) return e->s[0] > 0;
    return e->s[1] != 0 ? e->s[1] > 0 : e->s[2] > 0;
}

WL_FN void boxes_halve(boxes_truth *truth)
{
    int64_t k, kept = 0;
    for (k = 0; k < truth->count; k++)
        if (boxes_in_half(&truth->entry[k])) truth->entry[kept++] = truth->entry[k];
    truth->count = kept;
}

/* Keeps the rows of particles 0 .. rows-1. */
WL_FN void boxes_keep_rows(boxes_truth *truth, int32_t rows)
{
    int64_t k, kept = 0;
    for (k = 0; k < truth->count; k++)
        if (truth->entry[k].i < rows) truth->entry[kept++] = truth->entry[k];
    truth->count = kept;
}

/* Keeps the `most` nearest of each row, and orders rows by distance. */
WL_FN void boxes_keep_nearest(boxes_truth *truth, int32_t most)
{
    int64_t k, kept = 0, in_row = 0;
    if (truth->count > 0)
        qsort(truth->entry, (size_t)truth->count, sizeof *truth->entry, boxes_order_nearest);
    for (k = 0; k < truth->count; k++) {
        in_row = k > 0 && truth->entry[k].i == truth->entry[k - 1].i ? in_row + 1 : 0;
        if (in_row < most) truth->entry[kept++] = truth->entry[k];
    }
    truth->count = kept;
}

/* The entries of a list, row by row. */
WL_FN boxes_truth boxes_of_list(const nlist *list)
{
    boxes_truth got = {NULL, 0, 0};
    int32_t i;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) {
            boxes_entry entry;
            memset(&entry, 0, sizeof entry);
            entry.i = i;
            entry.j = e.id;
            if (e.shift) memcpy(entry.s, e.shift, sizeof entry.s);
            if (list->desc.offsets) memcpy(entry.d, nlist_offset_of(list, e.entry), sizeof entry.d);
            if (list->desc.distances) entry.d2 = nlist_distance_of(list, e.entry);
            boxes_add(&got, &entry);
        }
    }
    return got;
}

/* The entries of arrays. */
WL_FN boxes_truth boxes_of_arrays(const nlist_arrays *a)
{
    boxes_truth got = {NULL, 0, 0};
    int64_t k;
    for (k = 0; k < a->count; k++) {
        boxes_entry entry;
        memset(&entry, 0, sizeof entry);
        entry.i = a->i[k];
        entry.j = a->j[k];
        memcpy(entry.s, a->shift + 3 * k, sizeof entry.s);
        memcpy(entry.d, a->offset + 3 * k, sizeof entry.d);
        entry.d2 = a->distance[k];
        boxes_add(&got, &entry);
    }
    return got;
}

static char boxes_says[200];

/* NULL, or how the entries differ. numbers: 1 = d (in d2) and D are compared, too. */
WL_FN const char *boxes_differ(const boxes_truth *got, const boxes_truth *want, int numbers)
{
    int64_t k;
    for (k = 0; k < got->count || k < want->count; k++) {
        const boxes_entry *g = k < got->count ? &got->entry[k] : NULL,
                          *w = k < want->count ? &want->entry[k] : NULL;
        if (g && w && boxes_order(g, w) == 0) {
            nlist_real const d = (nlist_real)sqrt((double)w->d2);
            if (!numbers ||
                (memcmp(g->d, w->d, sizeof g->d) == 0 && memcmp(&g->d2, &d, sizeof d) == 0))
                continue;
        }
        snprintf(boxes_says, sizeof boxes_says,
                 "entry %lld of %lld/%lld: got %d %d (%d %d %d) %.9g, want %d %d (%d %d %d) %.9g",
                 (long long)k, (long long)got->count, (long long)want->count, g ? g->i : -1,
                 g ? g->j : -1, g ? g->s[0] : 0, g ? g->s[1] : 0, g ? g->s[2] : 0,
                 g ? (double)g->d2 : 0, w ? w->i : -1, w ? w->j : -1, w ? w->s[0] : 0,
                 w ? w->s[1] : 0, w ? w->s[2] : 0, w ? sqrt((double)w->d2) : 0);
        return boxes_says;
    }
    return NULL;
}

WL_FN void boxes_sort(boxes_truth *truth)
{
    if (truth->count > 0)
        qsort(truth->entry, (size_t)truth->count, sizeof *truth->entry, boxes_order);
}

#endif
