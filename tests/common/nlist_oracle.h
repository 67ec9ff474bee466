/* nlist_oracle.h - what the tests of nlist.h share, serial and CUDA: inputs, the expected lists,
   and a memory of contacts. Everything is static, prefix oracle_. C99 and C++17. Include nlist.h
   first, and ugrid.h, lbvh.h before it where they are used.
   SPDX-License-Identifier: MIT OR Unlicense

   Nothing here prints or ends the program: a check returns NULL, or a text that says what is wrong.

       wl_random dice = wl_seed(1);
       oracle_scene s;
       oracle_make(&s, ORACLE_UNIFORM, 3, 1, 100, ORACLE_RADII | ORACLE_MASKS, &dice);
           (three dimensions, axis 0 periodic, 100 particles)
       nlist_desc d = oracle_desc(&s);
       nlist_build_brute(&list, &d, s.pos, s.stride, s.n);
       const char *wrong = oracle_check_rows(&s, &list, NULL);
       oracle_forget(&s);

   The oracles share no code with nlist.h but its iterator:

       pairs      brute force in double. Where no operation rounds (scene.exact) the answer is
                  sharp; elsewhere pairs within rounding of the reach may be listed or not, and
                  lists of the same scene are compared with each other.
       history    (nlist_contacts.h) a map of stb_ds, from a pair of names to the number that was
                  written into its entry. A name belongs to a particle, also when its id changes.
                  What an entry holds must be what the map says, and zeros where it says nothing.
       events     the same map before and after.
       sums       by the caller: the fixed-point rule in int64_t (oracle_units). */

#ifndef NLIST_ORACLE_H
#define NLIST_ORACLE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The maps of stb_ds say typeof, which gcc -std=c99 has under this name only. */
#if defined(__GNUC__) && !defined(__cplusplus) && !defined(typeof)
#define typeof __typeof__
#endif

#define STB_DS_IMPLEMENTATION
#include <stb/stb_ds.h>

#include "heap.h"
#include "workloads.h"

/* The serial tests include testing.h after this. */
#define TESTED nlist
#define SHARE environment("NLIST_TEST_SHARE", small_run() ? 60 : SANITIZED ? 4 : 1)

#define ORACLE_EPSILON (sizeof(nlist_real) == sizeof(float) ? 1.1920929e-7 : 2.220446049250313e-16)

/* ------------------------------------------------------------------------------------------------
   Helpers
   ---------------------------------------------------------------------------------------------- */

WL_FN int oracle_roll(wl_random *dice, int sides) { return (int)wl_below(dice, (uint32_t)sides); }

WL_FN nlist_real oracle_between(wl_random *dice, nlist_real from, nlist_real to)
{
    return from + (to - from) * (nlist_real)wl_u(dice);
}

WL_FN nlist_real oracle_beside(nlist_real x, int steps)
{
    return (nlist_real)wl_beside((double)x, steps, sizeof x);
}

static char oracle_says[200];

/* What is wrong, and at which particle. */
WL_FN const char *oracle_fault(const char *what, int64_t i, int64_t j)
{
    snprintf(oracle_says, sizeof oracle_says, "%s (row %lld, partner %lld)", what, (long long)i,
        (long long)j);
    return oracle_says;
}

/* ------------------------------------------------------------------------------------------------
   Scenes: particles, and which pairs of them are within reach
   ---------------------------------------------------------------------------------------------- */

enum { ORACLE_OUTSIDE, ORACLE_RIM, ORACLE_WITHIN }; /* RIM: rounding decides */

enum oracle_input {
    ORACLE_UNIFORM, ORACLE_CLUSTERED, ORACLE_LATTICE, ORACLE_EQUAL, ORACLE_BORDER, ORACLE_SIZES,
        ORACLE_AWAY, ORACLE_EMPTY,
    ORACLE_SINGLE, ORACLE_INPUTS
};

/* Options of a scene. */
enum { ORACLE_RADII = 1, ORACLE_MASKS = 2, ORACLE_EXCLUDE = 4, ORACLE_SKIN = 8, ORACLE_STRIDE = 16,
    ORACLE_ALL = 31 };

typedef struct oracle_scene {
    int input, dim, options, exact; /* exact: no operation on these numbers rounds */
    int periodic[3];
    int cells[3];                   /* of edge `cell`, about as wide as the reach */
    nlist_real min[3], max[3], cell;/* the box, on all axes */
    nlist_real radius, skin, radii_max;
    int32_t n;
    /* bytes as given (0 or more than a point); numbers between two points */
    size_t stride, step;
    nlist_real *pos;
    nlist_real *radii;              /* [n], or NULL */
    uint32_t *masks;                /* [n], or NULL */
    int64_t *exclude_start;         /* [n + 1], or NULL */
    int32_t *exclude;
    /* [n * n]: ORACLE_OUTSIDE, _RIM, _WITHIN, after masks and exclusions */
    uint8_t *truth;
} oracle_scene;

WL_FN const char *oracle_input_name(int input)
{
    static const char *const names[ORACLE_INPUTS] = {"uniform", "clustered", "lattice", "all equal",
        "cell borders", "two sizes", "outside the box", "empty", "single"};
    return names[input];
}

WL_FN nlist_real *oracle_point(const oracle_scene *s, int32_t i)
{
    return s->pos + (size_t)i * s->step;
}

WL_FN nlist_real oracle_edge(const oracle_scene *s, int a) { return s->max[a] - s->min[a]; }

/* One coordinate of particle i. */
WL_FN nlist_real oracle_place(const oracle_scene *s, int32_t i, int a, wl_random *dice)
{
    nlist_real const length = oracle_edge(s, a), centre = s->min[a] + length / 2;
    nlist_real far;
    int cloud, k;
    switch (s->input) {
    /* in the middle, at the lower corner (some points lie outside), and anywhere */
    case ORACLE_CLUSTERED:
        cloud = i % 3;
        return (cloud == 0 ? centre : cloud == 1 ? s->min[a] :
            s->min[a] + length * (nlist_real)0.81)
               + s->cell * oracle_between(dice, (nlist_real)-0.4, (nlist_real)0.4);
    /* multiples of half a cell, both borders among them: many distances are exactly the reach */
    case ORACLE_LATTICE:
        return s->min[a] + s->cell / 2 * (nlist_real)oracle_roll(dice, 2 * s->cells[a] + 1);
    case ORACLE_EQUAL:
        return s->min[a] + s->cell / 2;
    case ORACLE_BORDER: /* where cells end, and one number to each side */
        k = oracle_roll(dice, s->cells[a] + 1);
        return oracle_beside(k == s->cells[a] ? s->max[a] :
            s->min[a] + length * (nlist_real)k / (nlist_real)s->cells[a], oracle_roll(dice, 3) - 1);
    case ORACLE_AWAY: /* up to two and a half boxes away, two of three inside */
        far = oracle_roll(dice, 3) ? 0 : length * (nlist_real)2.5;
        return oracle_between(dice, s->min[a] - far, s->max[a] + far);
    default:
        return oracle_between(dice, s->min[a], s->max[a]);
    }
}

/* The box; `exact` ones and some others consist of short binary fractions. */
WL_FN void oracle_set_box(oracle_scene *s, wl_random *dice)
{
    static const nlist_real odd_min[3] = {(nlist_real)-0.31, (nlist_real)0.17, (nlist_real)5.3},
        plain_min[3] = {0, -1, 2};
    int const plain = s->exact || oracle_roll(dice, 3) == 0;
    int a;
    s->cell = plain ? (nlist_real)0.25 : (nlist_real)0.23;
    for (a = 0; a < 3; a++) {
        s->cells[a] = 1 + oracle_roll(dice, s->dim == 3 ? 5 : 8);
        s->min[a] = plain ? plain_min[a] : odd_min[a];
        s->max[a] = s->min[a] + (nlist_real)s->cells[a] * s->cell * (plain ? 1 : (nlist_real)1.11);
    }
}

/* The reach, at most half of every period, as a sum of what the options name. */
WL_FN void oracle_set_reach(oracle_scene *s, wl_random *dice)
{
    nlist_real total = s->cell / 2 * (nlist_real)(1 + oracle_roll(dice, 4)), part;
    int a;
    for (a = 0; a < s->dim; a++) {
        nlist_real const half = oracle_edge(s, a) / 2 * (s->exact ? 1 : (nlist_real)0.999);
        if (s->periodic[a] && total > half) total = half;
    }
    part = total / 4;
    s->skin = s->options & ORACLE_SKIN ? part : 0;
    s->radii_max = s->options & ORACLE_RADII ? part : 0;
    s->radius = total - s->skin - 2 * s->radii_max;
    if (s->radii_max > 0 && oracle_roll(dice, 2)) s->radius = 0; /* the radii alone */
}

/* 1 : 10, or, where nothing may round, quarters. */
WL_FN void oracle_set_radii(oracle_scene *s, wl_random *dice)
{
    int32_t i;
    if (!(s->options & ORACLE_RADII)) return;
    s->radii = NEW(nlist_real, s->n);
    for (i = 0; i < s->n; i++) {
        s->radii[i] = s->exact ? s->radii_max * (nlist_real)oracle_roll(dice, 5) / 4
                      : s->input == ORACLE_SIZES ?
                          s->radii_max * (oracle_roll(dice, 8) ? (nlist_real)0.1 : 1)
                                                 : oracle_between(dice, 0, s->radii_max);
    }
    if (s->n > 0 && s->radius <= 0) s->radii[0] = s->radii_max; /* not all of them 0 */
}

WL_FN void oracle_set_masks(oracle_scene *s, wl_random *dice)
{
    int32_t i;
    if (!(s->options & ORACLE_MASKS)) return;
    s->masks = NEW(uint32_t, s->n);
    for (i = 0; i < s->n; i++) /* 0: no neighbours */
        s->masks[i] = oracle_roll(dice, 9) ? 1u << oracle_roll(dice, 3) |
            (oracle_roll(dice, 2) ? 0x80000000u : 0) : 0;
}

/* Up to four partners that each particle excludes, some of them twice, itself, or from both
   sides. */
WL_FN void oracle_set_exclusions(oracle_scene *s, wl_random *dice)
{
    int64_t at = 0;
    int32_t i;
    if (!(s->options & ORACLE_EXCLUDE)) return;
    s->exclude_start = NEW(int64_t, s->n + 1);
    s->exclude = NEW(int32_t, 5 * s->n);
    for (i = 0; i < s->n; i++) {
        int k = oracle_roll(dice, 5);
        s->exclude_start[i] = at;
        while (k-- > 0)
            s->exclude[at++] = oracle_roll(dice, 4) ? oracle_roll(dice, s->n) : (i + 1) % s->n;
    }
    s->exclude_start[s->n] = at;
}

/* Distance along one axis; on a periodic one to the nearest image. */
WL_FN double oracle_gap(const oracle_scene *s, int a, double x, double y)
{
    double const length = (double)s->max[a] - (double)s->min[a];
    double gap = fabs(y - x);
    if (!s->periodic[a]) return gap;
    gap = fmod(gap, length);
    return gap < length - gap ? gap : length - gap;
}

WL_FN double oracle_distance(const oracle_scene *s, const nlist_real *p, const nlist_real *q)
{
    double square = 0;
    int a;
    for (a = 0; a < s->dim; a++) {
        double const gap = oracle_gap(s, a, (double)p[a], (double)q[a]);
        square += gap * gap;
    }
    return sqrt(square);
}

/* By how much rounding may move the distance, and the reach. */
WL_FN double oracle_slack(const oracle_scene *s, const nlist_real *p, const nlist_real *q,
    double reach)
{
    double slack = 8 * ORACLE_EPSILON * reach;
    int a;
    for (a = 0; a < s->dim && !s->exact; a++) {
        slack += 4 * ORACLE_EPSILON * (fabs((double)p[a]) + fabs((double)q[a]));
        if (s->periodic[a])
            slack += 4 * ORACLE_EPSILON * (fabs((double)s->min[a]) + fabs((double)s->max[a]));
    }
    return slack;
}

WL_FN double oracle_reach(const oracle_scene *s, int32_t i, int32_t j)
{
    double const own = s->radii ? (double)s->radii[i] + (double)s->radii[j] : 0;
    return (double)s->radius + own + (double)s->skin;
}

WL_FN int oracle_excludes(const oracle_scene *s, int32_t i, int32_t j)
{
    int64_t k;
    for (k = s->exclude_start[i]; k < s->exclude_start[i + 1]; k++)
        if (s->exclude[k] == j) return 1;
    return 0;
}

WL_FN int oracle_truth_of(const oracle_scene *s, int32_t i, int32_t j)
{
    const nlist_real *p = oracle_point(s, i), *q = oracle_point(s, j);
    double const reach = oracle_reach(s, i, j), distance = oracle_distance(s, p, q);
    double const slack = oracle_slack(s, p, q, reach);
    if (i == j) return ORACLE_OUTSIDE;
    if (s->masks && !(s->masks[i] & s->masks[j])) return ORACLE_OUTSIDE;
    if (s->exclude && (oracle_excludes(s, i, j) || oracle_excludes(s, j, i))) return ORACLE_OUTSIDE;
    if (s->exact) { /* squares of short binary fractions are exact: no root */
        double square = 0;
        int a;
        for (a = 0; a < s->dim; a++) {
            double const gap = oracle_gap(s, a, (double)p[a], (double)q[a]);
            square += gap * gap;
        }
        return square <= reach * reach ? ORACLE_WITHIN : ORACLE_OUTSIDE;
    }
    return distance < reach - slack ? ORACLE_WITHIN : distance > reach + slack ? ORACLE_OUTSIDE :
        ORACLE_RIM;
}

/* Again after the positions were changed. */
WL_FN void oracle_find(oracle_scene *s)
{
    int32_t i, j;
    free(s->truth);
    s->truth = NEW(uint8_t, (size_t)s->n * (size_t)s->n);
    for (i = 0; i < s->n; i++) for (j = 0; j < s->n; j++)
        s->truth[(size_t)i * (size_t)s->n + (size_t)j] = (uint8_t)oracle_truth_of(s, i, j);
}

/* n particles (ORACLE_EMPTY: none, ORACLE_SINGLE: one); periodic: bit a = axis a; options:
   ORACLE_RADII and so on. */
WL_FN void oracle_make(oracle_scene *s, int input, int dim, int periodic, int32_t n, int options,
    wl_random *dice)
{
    int32_t i;
    int a;
    memset(s, 0, sizeof *s);
    s->input = input;
    s->dim = dim;
    s->options = options;
    s->exact = input == ORACLE_LATTICE || input == ORACLE_EQUAL;
    s->n = input == ORACLE_EMPTY ? 0 : input == ORACLE_SINGLE ? 1 : n;
    for (a = 0; a < dim; a++) s->periodic[a] = periodic >> a & 1;
    oracle_set_box(s, dice);
    oracle_set_reach(s, dice);
    s->step = (size_t)dim + (options & ORACLE_STRIDE ? 2 : 0);
    s->stride = options & ORACLE_STRIDE ? s->step * sizeof(nlist_real) : 0;
    s->pos = NEW(nlist_real, (size_t)s->n * s->step);
    for (i = 0; i < s->n; i++)
        for (a = 0; a < dim; a++) oracle_point(s, i)[a] = oracle_place(s, i, a, dice);
    oracle_set_radii(s, dice);
    oracle_set_masks(s, dice);
    oracle_set_exclusions(s, dice);
    oracle_find(s);
}

WL_FN void oracle_forget(oracle_scene *s)
{
    free(s->pos);
    free(s->radii);
    free(s->masks);
    free(s->exclude_start);
    free(s->exclude);
    free(s->truth);
    memset(s, 0, sizeof *s);
}

/* Everything that says which pairs are listed; layout, width, half, history and events are for the
   caller to set. */
WL_FN nlist_desc oracle_desc(const oracle_scene *s)
{
    nlist_desc d;
    int a;
    memset(&d, 0, sizeof d);
    d.dim = s->dim;
    d.radius = s->radius;
    d.skin = s->skin;
    d.radii = s->radii;
    d.masks = s->masks;
    d.exclude_start = s->exclude_start;
    d.exclude = s->exclude;
    for (a = 0; a < s->dim; a++) {
        d.periodic[a] = s->periodic[a];
        if (s->periodic[a]) d.min[a] = s->min[a], d.max[a] = s->max[a];
    }
    return d;
}

#ifdef UGRID_H
/* A grid of the same box. The method is for the caller to set. */
WL_FN ugrid_desc oracle_ugrid_desc(const oracle_scene *s)
{
    ugrid_desc d;
    int a;
    memset(&d, 0, sizeof d);
    d.dim = s->dim;
    d.cell = s->cell;
    d.slots = s->n > 0 ? s->n : 1;
    for (a = 0; a < s->dim; a++) {
        d.min[a] = s->min[a];
        d.max[a] = s->max[a];
        d.periodic[a] = s->periodic[a];
    }
    return d;
}
#endif

#ifdef LBVH_H
/* Spheres of the scene's radii, for LBVH_SPHERES: dim + 1 numbers each; the caller frees them. */
WL_FN nlist_real *oracle_spheres(const oracle_scene *s)
{
    size_t const step = (size_t)s->dim + 1;
    nlist_real *spheres = NEW(nlist_real, (size_t)s->n * step);
    int32_t i;
    for (i = 0; i < s->n; i++) {
        memcpy(spheres + (size_t)i * step, oracle_point(s, i), (size_t)s->dim * sizeof(nlist_real));
        spheres[(size_t)i * step + step - 1] = s->radii ? s->radii[i] : s->radius / 2;
    }
    return spheres;
}
#endif

/* The pairs of a list, half or full, as nlist_build_pairs takes them: in a random order and
   direction, some of them repeated. Among those of a list without masks and exclusions are some
   that nlist_build_pairs has to drop. The caller frees them. */
WL_FN int32_t *oracle_pairs(const nlist *list, wl_random *dice, int64_t *m)
{
    int32_t *pairs = NULL, *copy, i;
    int64_t k;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) {
            int const turned = oracle_roll(dice, 2);
            arrput(pairs, turned ? e.id : i);
            arrput(pairs, turned ? i : e.id);
        }
    }
    for (k = arrlen(pairs) / 2 - 1; k >= 0; k--) {
        int64_t const other = oracle_roll(dice, (int)k + 1);
        int32_t const a = pairs[2 * k], b = pairs[2 * k + 1];
        pairs[2 * k] = pairs[2 * other];
        pairs[2 * k + 1] = pairs[2 * other + 1];
        pairs[2 * other] = a;
        pairs[2 * other + 1] = b;
    }
    for (k = arrlen(pairs) / 2 - 1; k >= 0; k -= 3) {
        int32_t const a = pairs[2 * k], b = pairs[2 * k + 1];
        arrput(pairs, b);
        arrput(pairs, a);
    }
    *m = arrlen(pairs) / 2;
    copy = NEW(int32_t, 2 * *m);
    if (*m) memcpy(copy, pairs, 2 * (size_t)*m * sizeof *copy);
    arrfree(pairs);
    return copy;
}

/* ------------------------------------------------------------------------------------------------
   Rows as sets
   ---------------------------------------------------------------------------------------------- */

/* One more turn of a row: is it an entry that can be, and was not there before? used: one byte per
   entry. */
WL_FN const char *oracle_check_entry(const nlist *list, const nlist_each *e, int32_t i,
    uint8_t *used, int64_t entries)
{
    if (!list->keys && (e->id < 0 || e->id >= list->n))
        return oracle_fault("a partner out of range", i, e->id);
    if (!list->keys && e->id == i) return oracle_fault("its own partner", i, e->id);
    if (e->entry < 0 || e->entry >= entries) return oracle_fault("an entry out of range", i, e->id);
    if (used[e->entry]++) return oracle_fault("an entry that belongs to two", i, e->id);
    if (!list->desc.history != !e->history)
        return oracle_fault("history without desc.history, or none with it", i, e->id);
    if (e->history != nlist_history(list, e->entry))
        return oracle_fault("history of another entry", i, e->id);
    return NULL;
}

/* Entries that the list has room for. */
WL_FN int64_t oracle_entries(const nlist *list)
{
    const nlist_rows *rows = &list->rows[list->current];
    return (int64_t)rows->n * rows->width + rows->capacity;
}

/* met[i * n + j] += 1 for every entry (particles only). */
WL_FN const char *oracle_meet(const nlist *list, uint8_t *met)
{
    int64_t const entries = oracle_entries(list);
    uint8_t *used = NEW(uint8_t, entries);
    const char *wrong = NULL;
    int64_t total = 0;
    int32_t i;
    memset(used, 0, (size_t)entries);
    for (i = 0; i < list->n && !wrong; i++) {
        nlist_each e = nlist_of(list, i);
        while (!wrong && nlist_next(&e)) {
            wrong = oracle_check_entry(list, &e, i, used, entries);
            if (!wrong && met[(size_t)i * (size_t)list->n + (size_t)e.id]++)
                wrong = oracle_fault("listed twice", i, e.id);
            total++;
        }
    }
    if (!wrong && list->total != total)
        wrong = oracle_fault("list.total is not the number of entries", list->total, total);
    free(used);
    return wrong;
}

/* The two places that a pair i < j has in a matrix of the pairs met. `name` decides in whose row it
   is in a half list. */
WL_FN const char *oracle_check_pair(const nlist *list, const uint8_t *met, const uint8_t *truth,
    const int32_t *name, int32_t i, int32_t j)
{
    size_t const n = (size_t)list->n, ij = (size_t)i * n + (size_t)j,
        ji = (size_t)j * n + (size_t)i;
    int const lower_owns = !name || name[i] < name[j];
    if (!list->desc.half && met[ij] != met[ji])
        return oracle_fault("in one of two rows only", i, j);
    if (list->desc.half && met[ij] && met[ji])
        return oracle_fault("in both rows of a half list", i, j);
    if (list->desc.half && met[lower_owns ? ji : ij])
        return oracle_fault("in the wrong row of a half list", i, j);
    if (truth[ij] == ORACLE_OUTSIDE && (met[ij] || met[ji]))
        return oracle_fault("listed, but not near", i, j);
    if (truth[ij] == ORACLE_WITHIN && !met[ij] && !met[ji])
        return oracle_fault("near, but not listed", i, j);
    return NULL;
}

/* The list has exactly the pairs of the scene. name: [n] as in oracle_memory, after nlist_remap;
   else NULL. */
WL_FN const char *oracle_check_rows(const oracle_scene *s, const nlist *list, const int32_t *name)
{
    uint8_t *met = NEW(uint8_t, (size_t)s->n * (size_t)s->n);
    const char *wrong;
    int32_t i, j;
    memset(met, 0, (size_t)s->n * (size_t)s->n);
    wrong = list->n == s->n ? oracle_meet(list, met) : oracle_fault("another n", list->n, s->n);
    for (i = 0; i < s->n && !wrong; i++) for (j = i + 1; j < s->n && !wrong; j++)
        wrong = oracle_check_pair(list, met, s->truth, name, i, j);
    free(met);
    return wrong;
}

/* Two lists of the same particles, whatever their layouts, have the same rows as sets. */
WL_FN const char *oracle_same_rows(const nlist *a, const nlist *b)
{
    int32_t i;
    if (a->n != b->n || a->total != b->total)
        return oracle_fault("another n or total", a->total, b->total);
    for (i = 0; i < a->n; i++) {
        nlist_each e = nlist_of(a, i);
        while (nlist_next(&e))
            if (nlist_find(b, i, e.id) < 0)
                return oracle_fault("in one of two lists only", i, e.id);
    }
    /* none of a is missing in b, none is twice in either (oracle_check_rows), and there are as
       many */
    return NULL;
}

/* The same, and in the same order. */
WL_FN const char *oracle_same_order(const nlist *a, const nlist *b)
{
    int32_t i;
    if (a->n != b->n || a->total != b->total)
        return oracle_fault("another n or total", a->total, b->total);
    for (i = 0; i < a->n; i++) {
        nlist_each e = nlist_of(a, i), f = nlist_of(b, i);
        while (nlist_next(&e))
            if (!nlist_next(&f) || e.id != f.id) return oracle_fault("another order", i, e.id);
        if (nlist_next(&f)) return oracle_fault("a longer row", i, f.id);
    }
    return NULL;
}

#include "nlist_contacts.h"

/* ------------------------------------------------------------------------------------------------
   Sums in fixed point
   ---------------------------------------------------------------------------------------------- */

/* A value as a whole number of units, cut towards 0: what nlist_sum adds with how.unit, for values
   that fit. */
WL_FN int64_t oracle_units(nlist_real value, double unit)
{
    return (int64_t)trunc((double)value / unit);
}

#endif /* NLIST_ORACLE_H */
