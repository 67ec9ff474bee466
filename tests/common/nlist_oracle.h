/* nlist_oracle.h - what the tests of nlist.h share, serial and CUDA: inputs, the truth about them, and a memory of contacts.
   Everything is static, prefix oracle_. C99 and C++17. Include nlist.h first, and ugrid.h, lbvh.h before it where they are used.
   SPDX-License-Identifier: MIT OR Unlicense

   Nothing here prints or ends the program: a check returns NULL, or a text that says what is wrong.

       wl_random dice = wl_seed(1);
       oracle_scene s;
       oracle_make(&s, ORACLE_UNIFORM, 3, 1, 100, ORACLE_RADII | ORACLE_MASKS, &dice);   3D, axis 0 periodic, 100 particles
       nlist_desc d = oracle_desc(&s);
       nlist_build_brute(&list, &d, s.pos, s.stride, s.n);
       const char *wrong = oracle_check_rows(&s, &list, NULL);
       oracle_forget(&s);

   The oracles share no code with nlist.h but its iterator:

       pairs      brute force in double. Where no operation rounds (scene.exact) the answer is sharp; elsewhere pairs within
                  rounding of the reach may be listed or not, and lists of the same scene are compared with each other.
       history    a map of stb_ds, from a pair of names to the number that was written into its entry. Names are particles as such:
                  they stay when ids change. What an entry holds must be what the map says, and zeros where it says nothing.
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
   ------------------------------------------------------------------------------------------------ */

WL_FN int oracle_roll(wl_random *dice, int sides) { return (int)wl_below(dice, (uint32_t)sides); }

WL_FN nlist_real oracle_between(wl_random *dice, nlist_real from, nlist_real to)
{
    return from + (to - from) * (nlist_real)wl_u(dice);
}

WL_FN nlist_real oracle_beside(nlist_real x, int steps) { return (nlist_real)wl_beside((double)x, steps, sizeof x); }

static char oracle_says[200];

/* What is wrong, and with whom. */
WL_FN const char *oracle_fault(const char *what, int64_t i, int64_t j)
{
    snprintf(oracle_says, sizeof oracle_says, "%s (row %lld, partner %lld)", what, (long long)i, (long long)j);
    return oracle_says;
}

/* ------------------------------------------------------------------------------------------------
   Scenes: particles, and the truth about who is near whom
   ------------------------------------------------------------------------------------------------ */

enum { ORACLE_OUTSIDE, ORACLE_RIM, ORACLE_WITHIN }; /* RIM: rounding decides */

enum oracle_input {
    ORACLE_UNIFORM, ORACLE_CLUSTERED, ORACLE_LATTICE, ORACLE_EQUAL, ORACLE_BORDER, ORACLE_SIZES, ORACLE_AWAY, ORACLE_EMPTY,
    ORACLE_SINGLE, ORACLE_INPUTS
};

/* Options of a scene. */
enum { ORACLE_RADII = 1, ORACLE_MASKS = 2, ORACLE_EXCLUDE = 4, ORACLE_SKIN = 8, ORACLE_STRIDE = 16, ORACLE_ALL = 31 };

typedef struct oracle_scene {
    int input, dim, options, exact; /* exact: no operation on these numbers rounds */
    int periodic[3];
    int cells[3];                   /* of edge `cell`, about as wide as the reach */
    nlist_real min[3], max[3], cell;/* the box, on all axes */
    nlist_real radius, skin, radii_max;
    int32_t n;
    size_t stride, step;            /* bytes as given (0 or more than a point); numbers between two points */
    nlist_real *pos;
    nlist_real *radii;              /* [n], or NULL */
    uint32_t *masks;                /* [n], or NULL */
    int64_t *exclude_start;         /* [n + 1], or NULL */
    int32_t *exclude;
    uint8_t *truth;                 /* [n * n]: ORACLE_OUTSIDE, _RIM, _WITHIN, after masks and exclusions */
} oracle_scene;

WL_FN const char *oracle_input_name(int input)
{
    static const char *const names[ORACLE_INPUTS] = {"uniform", "clustered", "lattice", "all equal", "cell borders", "two sizes",
                                                     "outside the box", "empty", "single"};
    return names[input];
}

WL_FN nlist_real *oracle_point(const oracle_scene *s, int32_t i) { return s->pos + (size_t)i * s->step; }

WL_FN nlist_real oracle_edge(const oracle_scene *s, int a) { return s->max[a] - s->min[a]; }

/* One coordinate of particle i. */
WL_FN nlist_real oracle_place(const oracle_scene *s, int32_t i, int a, wl_random *dice)
{
    nlist_real const length = oracle_edge(s, a), centre = s->min[a] + length / 2;
    nlist_real far;
    int cloud, k;
    switch (s->input) {
    case ORACLE_CLUSTERED: /* in the middle, at the lower corner (some points lie outside), and anywhere */
        cloud = i % 3;
        return (cloud == 0 ? centre : cloud == 1 ? s->min[a] : s->min[a] + length * (nlist_real)0.81)
               + s->cell * oracle_between(dice, (nlist_real)-0.4, (nlist_real)0.4);
    case ORACLE_LATTICE: /* multiples of half a cell, both borders among them: many distances are exactly the reach */
        return s->min[a] + s->cell / 2 * (nlist_real)oracle_roll(dice, 2 * s->cells[a] + 1);
    case ORACLE_EQUAL:
        return s->min[a] + s->cell / 2;
    case ORACLE_BORDER: /* where cells end, and one number to each side */
        k = oracle_roll(dice, s->cells[a] + 1);
        return oracle_beside(k == s->cells[a] ? s->max[a] : s->min[a] + length * (nlist_real)k / (nlist_real)s->cells[a],
                             oracle_roll(dice, 3) - 1);
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
    static const nlist_real odd_min[3] = {(nlist_real)-0.31, (nlist_real)0.17, (nlist_real)5.3}, plain_min[3] = {0, -1, 2};
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
                      : s->input == ORACLE_SIZES ? s->radii_max * (oracle_roll(dice, 8) ? (nlist_real)0.1 : 1)
                                                 : oracle_between(dice, 0, s->radii_max);
    }
    if (s->n > 0 && s->radius <= 0) s->radii[0] = s->radii_max; /* not all of them 0 */
}

WL_FN void oracle_set_masks(oracle_scene *s, wl_random *dice)
{
    int32_t i;
    if (!(s->options & ORACLE_MASKS)) return;
    s->masks = NEW(uint32_t, s->n);
    for (i = 0; i < s->n; i++) /* 0: near nobody */
        s->masks[i] = oracle_roll(dice, 9) ? 1u << oracle_roll(dice, 3) | (oracle_roll(dice, 2) ? 0x80000000u : 0) : 0;
}

/* Up to four partners that each particle excludes, some of them twice, itself, or from both sides. */
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
        while (k-- > 0) s->exclude[at++] = oracle_roll(dice, 4) ? oracle_roll(dice, s->n) : (i + 1) % s->n;
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
WL_FN double oracle_slack(const oracle_scene *s, const nlist_real *p, const nlist_real *q, double reach)
{
    double slack = 8 * ORACLE_EPSILON * reach;
    int a;
    for (a = 0; a < s->dim && !s->exact; a++) {
        slack += 4 * ORACLE_EPSILON * (fabs((double)p[a]) + fabs((double)q[a]));
        if (s->periodic[a]) slack += 4 * ORACLE_EPSILON * (fabs((double)s->min[a]) + fabs((double)s->max[a]));
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
    for (k = s->exclude_start[i]; k < s->exclude_start[i + 1]; k++) if (s->exclude[k] == j) return 1;
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
    return distance < reach - slack ? ORACLE_WITHIN : distance > reach + slack ? ORACLE_OUTSIDE : ORACLE_RIM;
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

/* n particles (ORACLE_EMPTY: none, ORACLE_SINGLE: one); periodic: bit a = axis a; options: ORACLE_RADII and so on. */
WL_FN void oracle_make(oracle_scene *s, int input, int dim, int periodic, int32_t n, int options, wl_random *dice)
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
    for (i = 0; i < s->n; i++) for (a = 0; a < dim; a++) oracle_point(s, i)[a] = oracle_place(s, i, a, dice);
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

/* Everything that says which pairs are listed; layout, width, half, history and events are for the caller to set. */
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

/* The pairs of a list, half or full, as nlist_build_pairs takes them: in a random order and direction, some of them repeated. Among
   those of a list without masks and exclusions are some that nlist_build_pairs has to drop. The caller frees them. */
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
   ------------------------------------------------------------------------------------------------ */

/* One more turn of a row: is it an entry that can be, and was not there before? used: one byte per entry. */
WL_FN const char *oracle_check_entry(const nlist *list, const nlist_each *e, int32_t i, uint8_t *used, int64_t entries)
{
    if (!list->keys && (e->id < 0 || e->id >= list->n)) return oracle_fault("a partner out of range", i, e->id);
    if (!list->keys && e->id == i) return oracle_fault("its own partner", i, e->id);
    if (e->entry < 0 || e->entry >= entries) return oracle_fault("an entry out of range", i, e->id);
    if (used[e->entry]++) return oracle_fault("an entry that belongs to two", i, e->id);
    if (!list->desc.history != !e->history) return oracle_fault("history without desc.history, or none with it", i, e->id);
    if (e->history != nlist_history(list, e->entry)) return oracle_fault("history of another entry", i, e->id);
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
            if (!wrong && met[(size_t)i * (size_t)list->n + (size_t)e.id]++) wrong = oracle_fault("listed twice", i, e.id);
            total++;
        }
    }
    if (!wrong && list->total != total) wrong = oracle_fault("list.total is not the number of entries", list->total, total);
    free(used);
    return wrong;
}

/* The two places that a pair i < j has in a matrix of who met whom. `name` decides in whose row it is in a half list. */
WL_FN const char *oracle_check_pair(const nlist *list, const uint8_t *met, const uint8_t *truth, const int32_t *name, int32_t i,
                                    int32_t j)
{
    size_t const n = (size_t)list->n, ij = (size_t)i * n + (size_t)j, ji = (size_t)j * n + (size_t)i;
    int const lower_owns = !name || name[i] < name[j];
    if (!list->desc.half && met[ij] != met[ji]) return oracle_fault("in one of two rows only", i, j);
    if (list->desc.half && met[ij] && met[ji]) return oracle_fault("in both rows of a half list", i, j);
    if (list->desc.half && met[lower_owns ? ji : ij]) return oracle_fault("in the wrong row of a half list", i, j);
    if (truth[ij] == ORACLE_OUTSIDE && (met[ij] || met[ji])) return oracle_fault("listed, but not near", i, j);
    if (truth[ij] == ORACLE_WITHIN && !met[ij] && !met[ji]) return oracle_fault("near, but not listed", i, j);
    return NULL;
}

/* The list has exactly the pairs of the scene. name: [n] as in oracle_memory, after nlist_remap; else NULL. */
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
    if (a->n != b->n || a->total != b->total) return oracle_fault("another n or total", a->total, b->total);
    for (i = 0; i < a->n; i++) {
        nlist_each e = nlist_of(a, i);
        while (nlist_next(&e)) if (nlist_find(b, i, e.id) < 0) return oracle_fault("in one of two lists only", i, e.id);
    }
    return NULL; /* none of a is missing in b, none is twice in either (oracle_check_rows), and there are as many */
}

/* The same, and in the same order. */
WL_FN const char *oracle_same_order(const nlist *a, const nlist *b)
{
    int32_t i;
    if (a->n != b->n || a->total != b->total) return oracle_fault("another n or total", a->total, b->total);
    for (i = 0; i < a->n; i++) {
        nlist_each e = nlist_of(a, i), f = nlist_of(b, i);
        while (nlist_next(&e)) if (!nlist_next(&f) || e.id != f.id) return oracle_fault("another order", i, e.id);
        if (nlist_next(&f)) return oracle_fault("a longer row", i, f.id);
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------------
   The memory of contacts
   ------------------------------------------------------------------------------------------------ */

/* What is known of a contact. */
typedef struct oracle_contact {
    uint64_t key;       /* names of the row's particle and of the partner (triangles: its key) */
    uint32_t stamp;     /* what its history was filled with last; 0: zeros */
    uint32_t seen;      /* the step at which it was last in the list */
} oracle_contact;

typedef struct oracle_grave { uint64_t key; } oracle_grave;

typedef struct oracle_memory {
    oracle_contact *contacts;   /* stb_ds map */
    int32_t *name;              /* stb_ds array, by id: what the particle has been called from the beginning */
    int32_t names;              /* names that were given */
    uint32_t step, stamp;       /* builds; numbers written */
    int64_t begun, persisted, ended; /* with the last build: entries; of pairs in both rows each counts */
    oracle_grave *graves;       /* stb_ds map: contacts that ended */
    int64_t reborn;             /* and began again, ever */
} oracle_memory;

WL_FN void oracle_memory_free(oracle_memory *m)
{
    hmfree(m->contacts);
    hmfree(m->graves);
    arrfree(m->name);
    memset(m, 0, sizeof *m);
}

/* Byte k of a history filled with `stamp`. */
WL_FN uint8_t oracle_byte(uint32_t stamp, int32_t k)
{
    uint32_t x = stamp * 2654435761u ^ (uint32_t)(k / 4) * 0x9E3779B9u;
    x ^= x >> 15;
    if (stamp == 0) return 0;
    return (uint8_t)(x * 0x85EBCA6Bu >> (8 * (k % 4)) & 0xFFu);
}

WL_FN void oracle_write(void *history, int32_t bytes, uint32_t stamp)
{
    int32_t k;
    for (k = 0; k < bytes; k++) ((uint8_t *)history)[k] = oracle_byte(stamp, k);
}

WL_FN int oracle_holds(const void *history, int32_t bytes, uint32_t stamp)
{
    int32_t k;
    for (k = 0; k < bytes; k++) if (((const uint8_t *)history)[k] != oracle_byte(stamp, k)) return 0;
    return 1;
}

WL_FN uint64_t oracle_key(const oracle_memory *m, const nlist *list, int32_t i, int32_t j)
{
    int32_t const partner = list->keys ? j : m->name[j];
    return (uint64_t)(uint32_t)m->name[i] << 32 | (uint32_t)partner;
}

WL_FN ptrdiff_t oracle_look_up(oracle_memory *m, uint64_t key) { return hmgeti(m->contacts, key); }

WL_FN void oracle_learn(oracle_memory *m, uint64_t key)
{
    oracle_contact c;
    memset(&c, 0, sizeof c);
    c.key = key;
    c.seen = m->step;
    hmputs(m->contacts, c);
    if (hmgeti(m->graves, key) >= 0) m->reborn++;
}

/* Particles from the old n on are new and get names. */
WL_FN void oracle_name_new_ones(oracle_memory *m, int32_t n)
{
    while (arrlen(m->name) < n) arrput(m->name, m->names++);
}

/* An entry of a list that was just built: its bytes are what the memory says. */
WL_FN const char *oracle_remember_entry(oracle_memory *m, const nlist *list, int32_t i, const nlist_each *e)
{
    uint64_t const key = oracle_key(m, list, i, e->id);
    ptrdiff_t const at = oracle_look_up(m, key);
    uint32_t const stamp = at >= 0 ? m->contacts[at].stamp : 0;
    if (list->desc.history && !oracle_holds(e->history, list->desc.history, stamp))
        return oracle_fault(at >= 0 ? "history was not kept" : "history does not begin with zeros", i, e->id);
    if (at >= 0 && m->contacts[at].seen == m->step) return oracle_fault("a contact twice", i, e->id);
    if (at < 0) oracle_learn(m, key);
    else m->contacts[at].seen = m->step;
    *(at < 0 ? &m->begun : &m->persisted) += 1;
    return NULL;
}

/* Drops what was not seen in this step. */
WL_FN void oracle_drop(oracle_memory *m)
{
    ptrdiff_t k;
    for (k = hmlen(m->contacts) - 1; k >= 0; k--) {
        oracle_grave grave;
        if (m->contacts[k].seen == m->step) continue;
        grave.key = m->contacts[k].key;
        m->ended++;
        (void)hmdel(m->contacts, grave.key);
        hmputs(m->graves, grave);
    }
}

/* After every build: compares each entry's history with the memory, which then takes the new list as its own. (oracle_check_events
   comes before it, since it needs both.) */
WL_FN const char *oracle_remember(oracle_memory *m, const nlist *list)
{
    const char *wrong = NULL;
    int32_t i;
    oracle_name_new_ones(m, list->n);
    if (arrlen(m->name) > list->n) arrsetlen(m->name, (size_t)list->n); /* these are gone, and their contacts end */
    m->step++;
    m->begun = m->persisted = m->ended = 0;
    for (i = 0; i < list->n && !wrong; i++) {
        nlist_each e = nlist_of(list, i);
        while (!wrong && nlist_next(&e)) wrong = oracle_remember_entry(m, list, i, &e);
    }
    oracle_drop(m);
    return wrong;
}

/* The list as it is, without a build in between: nothing began or ended, and all bytes are as they were. */
WL_FN const char *oracle_recall(oracle_memory *m, const nlist *list)
{
    int64_t entries = 0;
    int32_t i;
    if (list->n != arrlen(m->name)) return oracle_fault("another n", list->n, arrlen(m->name));
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) {
            ptrdiff_t const at = oracle_look_up(m, oracle_key(m, list, i, e.id));
            entries++;
            if (at < 0) return oracle_fault("a contact from nowhere", i, e.id);
            if (list->desc.history && !oracle_holds(e.history, list->desc.history, m->contacts[at].stamp))
                return oracle_fault("history was not kept", i, e.id);
        }
    }
    return entries == hmlen(m->contacts) ? NULL : oracle_fault("contacts got lost", entries, hmlen(m->contacts));
}

/* Writes into one of `every` entries, as a force law would. */
WL_FN void oracle_stamp(oracle_memory *m, nlist *list, int every, wl_random *dice)
{
    int32_t i;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) {
            ptrdiff_t const at = oracle_look_up(m, oracle_key(m, list, i, e.id));
            if (at < 0 || oracle_roll(dice, every)) continue;
            m->contacts[at].stamp = ++m->stamp;
            oracle_write(e.history, list->desc.history, m->stamp);
        }
    }
}

/* Particle i is now new_id[i] (-1: gone); ids that nobody got are new particles, named in ascending order. */
WL_FN void oracle_rename(oracle_memory *m, const int32_t *new_id, int32_t n, int keys)
{
    int32_t const old = (int32_t)arrlen(m->name);
    int32_t *name = NULL;
    uint8_t *alive = NEW(uint8_t, m->names);
    ptrdiff_t k;
    int32_t i;
    memset(alive, 0, (size_t)m->names);
    for (i = 0; i < n; i++) arrput(name, -1);
    for (i = 0; i < old; i++) if (new_id[i] >= 0) name[new_id[i]] = m->name[i], alive[m->name[i]] = 1;
    for (k = hmlen(m->contacts) - 1; k >= 0; k--) {
        uint64_t const key = m->contacts[k].key;
        if (alive[key >> 32] && (keys || alive[key & 0xFFFFFFFFu])) continue;
        (void)hmdel(m->contacts, key);
    }
    for (i = 0; i < n; i++) if (name[i] < 0) name[i] = m->names++;
    arrfree(m->name);
    m->name = name;
    free(alive);
}

/* ------------------------------------------------------------------------------------------------
   Events
   ------------------------------------------------------------------------------------------------ */

/* The memory's entry of a pair, in whichever row, -1 = none. */
WL_FN ptrdiff_t oracle_look_up_pair(oracle_memory *m, const nlist *list, int32_t i, int32_t j)
{
    ptrdiff_t const at = oracle_look_up(m, oracle_key(m, list, i, j));
    return at >= 0 || list->keys ? at : oracle_look_up(m, oracle_key(m, list, j, i));
}

/* Is `entry` that of the pair in the list? */
WL_FN int oracle_entry_is(const nlist *list, const nlist_event *v)
{
    return v->entry >= 0 && (v->entry == nlist_find(list, v->i, v->j) || (!list->keys && v->entry == nlist_find(list, v->j, v->i)));
}

/* The bytes of a contact that ended: those of either of its rows. */
WL_FN int oracle_last_words(oracle_memory *m, const nlist *list, const nlist_event *v)
{
    ptrdiff_t const at = oracle_look_up(m, oracle_key(m, list, v->i, v->j));
    ptrdiff_t const turned = list->keys ? -1 : oracle_look_up(m, oracle_key(m, list, v->j, v->i));
    const void *bytes = nlist_history_before(list, v->entry);
    if (list->desc.history == 0) return bytes == NULL;
    if (!bytes) return 0;
    return (at >= 0 && oracle_holds(bytes, list->desc.history, m->contacts[at].stamp))
           || (turned >= 0 && oracle_holds(bytes, list->desc.history, m->contacts[turned].stamp));
}

WL_FN const char *oracle_check_event(oracle_memory *m, const nlist *list, int kind, const nlist_event *v)
{
    int const before = oracle_look_up_pair(m, list, v->i, v->j) >= 0;
    int const now = (list->keys ? nlist_find(list, v->i, v->j) : nlist_find_pair(list, v->i, v->j)) >= 0;
    if (!list->keys && v->i >= v->j) return oracle_fault("an event's ids do not ascend", v->i, v->j);
    if (before != (kind != NLIST_BEGUN)) return oracle_fault("an event and the list before contradict", v->i, v->j);
    if (now != (kind != NLIST_ENDED)) return oracle_fault("an event and the list contradict", v->i, v->j);
    if (kind == NLIST_ENDED)
        return oracle_last_words(m, list, v) ? NULL : oracle_fault("an ended contact without its bytes", v->i, v->j);
    return oracle_entry_is(list, v) ? NULL : oracle_fault("an event of another entry", v->i, v->j);
}

/* After a build and before oracle_remember: what the events say must follow from the memory (the list before) and from the list.
   Each pair once, none missing. */
WL_FN const char *oracle_check_events(oracle_memory *m, const nlist *list)
{
    int64_t const contacts = list->desc.half || list->keys ? 1 : 2;
    oracle_grave *seen = NULL, one;
    const int64_t *count = list->event_count;
    const char *wrong = NULL;
    int64_t k;
    int kind;
    oracle_name_new_ones(m, list->n);
    for (kind = 0; kind < NLIST_EVENT_KINDS; kind++) for (k = 0; k < list->event_count[kind] && !wrong; k++) {
        const nlist_event *v = &list->event[kind][k];
        one.key = (uint64_t)(uint32_t)v->i << 32 | (uint32_t)v->j;
        if (!list->keys && (v->i < 0 || v->j >= arrlen(m->name))) wrong = oracle_fault("an event out of range", v->i, v->j);
        else if (hmgeti(seen, one.key) >= 0) wrong = oracle_fault("an event twice", v->i, v->j);
        else wrong = oracle_check_event(m, list, kind, v);
        hmputs(seen, one);
    }
    hmfree(seen);
    if (wrong) return wrong;
    if ((count[NLIST_BEGUN] + count[NLIST_PERSISTED]) * contacts != list->total)
        return oracle_fault("events of the new list are missing", count[NLIST_BEGUN], count[NLIST_PERSISTED]);
    if ((count[NLIST_PERSISTED] + count[NLIST_ENDED]) * contacts != hmlen(m->contacts))
        return oracle_fault("events of the old list are missing", count[NLIST_PERSISTED], count[NLIST_ENDED]);
    return NULL;
}

/* ------------------------------------------------------------------------------------------------
   A list as it was
   ------------------------------------------------------------------------------------------------ */

/* Everything that a refusal must leave alone. */
typedef struct oracle_snapshot {
    int32_t n, keys, half, bytes;
    nlist_layout layout;
    int64_t total;
    int32_t *ids, *counts;      /* stb_ds arrays, row by row */
    int64_t *entries;
    uint8_t *history;
    int64_t events[NLIST_EVENT_KINDS];
    nlist_event *event;         /* all kinds, one after the other */
} oracle_snapshot;

WL_FN void oracle_take(oracle_snapshot *shot, const nlist *list)
{
    int32_t i, b;
    int kind;
    int64_t k;
    memset(shot, 0, sizeof *shot);
    shot->n = list->n;
    shot->keys = list->keys;
    shot->half = list->desc.half;
    shot->layout = list->desc.layout;
    shot->bytes = list->desc.history;
    shot->total = list->total;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        int32_t count = 0;
        for (; nlist_next(&e); count++) {
            arrput(shot->ids, e.id);
            arrput(shot->entries, e.entry);
            for (b = 0; b < shot->bytes; b++) arrput(shot->history, ((const uint8_t *)e.history)[b]);
        }
        arrput(shot->counts, count);
    }
    for (kind = 0; kind < NLIST_EVENT_KINDS; kind++) {
        shot->events[kind] = list->desc.events ? list->event_count[kind] : 0;
        for (k = 0; k < shot->events[kind]; k++) arrput(shot->event, list->event[kind][k]);
    }
}

WL_FN void oracle_drop_snapshot(oracle_snapshot *shot)
{
    arrfree(shot->ids);
    arrfree(shot->counts);
    arrfree(shot->entries);
    arrfree(shot->history);
    arrfree(shot->event);
    memset(shot, 0, sizeof *shot);
}

WL_FN int oracle_same_bytes(const void *a, const void *b, size_t bytes) { return bytes == 0 || memcmp(a, b, bytes) == 0; }

#define ORACLE_SAME(array) \
    (arrlen(now.array) == arrlen(shot->array) && \
     oracle_same_bytes(now.array, shot->array, (size_t)arrlen(now.array) * sizeof *now.array))

/* The list still is what it was: rows, their order, entries, history, events. */
WL_FN const char *oracle_check_unchanged(const oracle_snapshot *shot, const nlist *list)
{
    oracle_snapshot now;
    const char *wrong = NULL;
    oracle_take(&now, list);
    if (now.n != shot->n || now.total != shot->total) wrong = "another n or total";
    else if (now.keys != shot->keys || now.half != shot->half || now.layout != shot->layout || now.bytes != shot->bytes)
        wrong = "another desc";
    else if (!ORACLE_SAME(ids) || !ORACLE_SAME(counts)) wrong = "other rows";
    else if (!ORACLE_SAME(entries)) wrong = "other entries";
    else if (!ORACLE_SAME(history)) wrong = "other history";
    else if (memcmp(now.events, shot->events, sizeof now.events) != 0 || !ORACLE_SAME(event)) wrong = "other events";
    oracle_drop_snapshot(&now);
    return wrong;
}

/* ------------------------------------------------------------------------------------------------
   Sums in fixed point
   ------------------------------------------------------------------------------------------------ */

/* A value as a whole number of units, cut towards 0: what nlist_sum adds with how.unit, for values that fit. */
WL_FN int64_t oracle_units(nlist_real value, double unit) { return (int64_t)trunc((double)value / unit); }

#endif /* NLIST_ORACLE_H */
