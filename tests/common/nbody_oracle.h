/* nbody_oracle.h - what the tests of nbody.h share: inputs, and the reference, from two slow
   programs that share no code with nbody.h. Everything is static, prefix oracle_. C99 and C++17.
   Include nbody.h first.
   SPDX-License-Identifier: MIT OR Unlicense

       direct     all pairs, in long double.
       pyramid    the algorithms of Kalms sections 5.5 and 5.6 on a dense pyramid of cells, in
                  double (nbody_pyramid.h): every cell of every level has its array entries, empty
                  or not, and rows of cells are rows in memory. Virtual particles with and without
                  second moments, force nodes with even and with Chebyshev nodes, Chebyshev points
                  as sources. It differs from nbody.h by rounding only, so that a tree of the same
                  levels must agree to 1e-11 of the sum of all |terms|.

       oracle_body *bodies = oracle_bodies(pos, mass, n);
       oracle_field f = oracle_direct(&law, bodies, n, bodies[i].x, bodies[i].y, i);
       oracle_pyramid *p = oracle_pyramid_of(&how, bodies, n);
       oracle_field g = oracle_pyramid_at(p, i);
       oracle_drop_pyramid(p);

   With S, the sum of |terms| (share): |a - a_ref| / S is what an error is measured by, since
   |a_ref| itself can be anything where forces cancel. */

#ifndef NBODY_ORACLE_H
#define NBODY_ORACLE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"
#include "workloads.h"
#include "nbody_cases.h"
#include "nbody_cases_uniform.h"

/* The tests include testing.h after this. */
#define TESTED nbody

#define ORACLE_EPSILON (sizeof(nbody_real) == sizeof(float) ? 1.1920929e-7 : 2.220446049250313e-16)
#define ORACLE_PI 3.14159265358979323846

/* ------------------------------------------------------------------------------------------------
   Helpers
   ---------------------------------------------------------------------------------------------- */

WL_FN int oracle_roll(wl_random *dice, int sides) { return (int)wl_below(dice, (uint32_t)sides); }

WL_FN nbody_real oracle_between(wl_random *dice, double from, double to)
{
    return (nbody_real)(from + (to - from) * (double)wl_u(dice));
}

WL_FN nbody_real oracle_beside(nbody_real x, int steps)
{
    return (nbody_real)wl_beside((double)x, steps, sizeof x);
}

/* ------------------------------------------------------------------------------------------------
   Laws and the direct sum
   ---------------------------------------------------------------------------------------------- */

typedef struct oracle_body { double x, y, m; } oracle_body;

typedef struct oracle_law { int inverse; double gravity, softening; } oracle_law;

/* Acceleration and potential, and the sums of the magnitudes of their terms. p_share counts 1 more
   per unit mass, since a logarithm can be a small difference of large ones. */
typedef struct oracle_field { double x, y, p, share, p_share; } oracle_field;

WL_FN oracle_law oracle_law_of(int inverse, double gravity, double softening)
{
    oracle_law law;
    law.inverse = inverse;
    law.gravity = gravity;
    law.softening = softening;
    return law;
}

/* mass NULL: all 1. */
WL_FN oracle_body *oracle_bodies(const nbody_real *pos, const nbody_real *mass, int32_t n)
{
    oracle_body *b = NEW(oracle_body, n);
    int32_t i;
    for (i = 0; i < n; i++) {
        b[i].x = (double)pos[2 * (size_t)i];
        b[i].y = (double)pos[2 * (size_t)i + 1];
        b[i].m = mass ? (double)mass[i] : 1;
    }
    return b;
}

/* Does a source count, `bare` = distance^2 away? One at the very place only where softening keeps
   it finite, and none in its own field. */
WL_FN int oracle_counts(const oracle_law *law, double bare, int is_self)
{
    return !is_self && (bare > 0 || law->softening > 0);
}

/* What n bodies do at (x, y); self: which of them is meant to be there, -1: none. */
WL_FN oracle_field oracle_direct(const oracle_law *law, const oracle_body *b, int32_t n, double x,
    double y, int32_t self)
{
    long double const eps2 = (long double)law->softening * (long double)law->softening,
        g = (long double)law->gravity;
    long double ax = 0, ay = 0, p = 0, share = 0, p_share = 0;
    oracle_field f;
    int32_t j;
    for (j = 0; j < n; j++) {
        long double const dx = (long double)b[j].x - (long double)x,
            dy = (long double)b[j].y - (long double)y;
        long double const bare = dx * dx + dy * dy, r2 = bare + eps2, m = (long double)b[j].m;
        long double const r = sqrtl(r2), weight = law->inverse ? m / r2 : m / (r2 * r);
        if (!oracle_counts(law, (double)bare, j == self)) continue;
        ax += weight * dx;
        ay += weight * dy;
        share += fabsl(weight) * sqrtl(bare);
        if (law->inverse) {
            long double const term = m * logl(r);
            p += term;
            p_share += fabsl(term) + fabsl(m);
        } else {
            p -= m / r;
            p_share += fabsl(m / r);
        }
    }
    f.x = (double)(g * ax);
    f.y = (double)(g * ay);
    f.p = (double)(g * p);
    f.share = (double)(fabsl(g) * share);
    f.p_share = (double)(fabsl(g) * p_share);
    return f;
}

#include "nbody_pyramid.h"

/* ------------------------------------------------------------------------------------------------
   Scenes: bodies of every kind
   ---------------------------------------------------------------------------------------------- */

enum oracle_input {
    ORACLE_UNIFORM, ORACLE_MASSES, ORACLE_WILD, ORACLE_SIGNS, ORACLE_CLUMPS, ORACLE_LATTICE,
        ORACLE_RING, ORACLE_LINE,
    ORACLE_DIAGONAL, ORACLE_TWO_FAR, ORACLE_BORDERS, ORACLE_PILES, ORACLE_AWAY, ORACLE_ONE_PLACE,
        ORACLE_CASE_CLUSTERED,
    ORACLE_CASE_MASSES, ORACLE_CASE_UNIFORM, ORACLE_INPUTS
};

typedef struct oracle_scene {
    int input;
    int32_t n;
    nbody_real *pos;        /* [2 n] */
    nbody_real *mass;       /* [n], NULL: all 1 */
    oracle_body *body;      /* the same */
} oracle_scene;

WL_FN const char *oracle_input_name(int input)
{
    static const char *const names[ORACLE_INPUTS] = {
        "uniform", "masses 2^-10 .. 2^10", "masses 1e-6 .. 1e6", "masses of either sign",
            "five clumps", "lattice",
        "ring with a centre", "line", "diagonal", "two far clumps", "cell borders",
            "many bodies per place", "far from zero",
        "all at one place", "case 05 clustered", "case 06 wild masses", "case 10 uniform"};
    return names[input];
}

/* About a bell curve, of width 1. */
WL_FN double oracle_bell(wl_random *dice)
{
    double sum = -3;
    int k;
    for (k = 0; k < 6; k++) sum += (double)wl_u(dice);
    return sum;
}

/* Where body i is; n of them. */
WL_FN void oracle_put(int input, int32_t i, int32_t n, wl_random *dice, nbody_real *p)
{
    static const double clump[5][3] = {{0.2, 0.3, 0.05}, {0.7, 0.8, 0.01}, {0.75, 0.2, 0.002},
        {0.3, 0.85, 0.03}, {0.31, 0.8, 0.0005}};
    int32_t side = 1;
    double angle;
    int a;
    switch (input) {
    case ORACLE_CLUMPS: /* and a few strays */
        for (a = 0; a < 2; a++)
            p[a] = i % 50 == 0 ? (nbody_real)wl_u(dice) :
                (nbody_real)(clump[i % 5][a] + clump[i % 5][2] * oracle_bell(dice));
        return;
    case ORACLE_LATTICE:
        while (side * side < n) side++;
        p[0] = (nbody_real)(i % side) / (nbody_real)side;
        p[1] = (nbody_real)(i / side) / (nbody_real)side;
        return;
    case ORACLE_RING:
        angle = 2 * ORACLE_PI * i / n;
        p[0] = i ? (nbody_real)(0.5 + 0.4 * cos(angle)) : (nbody_real)0.5;
        p[1] = i ? (nbody_real)(0.5 + 0.4 * sin(angle)) : (nbody_real)0.5;
        return;
    case ORACLE_LINE:
        p[0] = (nbody_real)wl_u(dice);
        p[1] = (nbody_real)0.25;
        return;
    case ORACLE_DIAGONAL:
        p[0] = p[1] = (nbody_real)wl_u(dice);
        return;
    case ORACLE_TWO_FAR:
        for (a = 0; a < 2; a++)
            p[a] = (nbody_real)((i % 3 == 0 ? 0.9 - 0.6 * a : 0.1 + 0.2 * a) +
                1e-4 * oracle_bell(dice));
        return;
    case ORACLE_BORDERS: /* where cells end, and one number to each side; in 0 .. 1 */
        for (a = 0; a < 2; a++) {
            int const at = oracle_roll(dice, 17), step = oracle_roll(dice, 3) - 1;
            if (at == 0) p[a] = (nbody_real)(abs(step) * ORACLE_EPSILON);
            else p[a] = oracle_beside((nbody_real)at / 16, at == 16 ? -abs(step) : step);
        }
        return;
    case ORACLE_PILES:
        for (a = 0; a < 2; a++) p[a] = (nbody_real)oracle_roll(dice, 9) / 8;
        return;
    case ORACLE_AWAY:
        p[0] = 100 + (nbody_real)wl_u(dice);
        p[1] = -300 + (nbody_real)wl_u(dice);
        return;
    case ORACLE_ONE_PLACE:
        p[0] = (nbody_real)0.3;
        p[1] = (nbody_real)0.7;
        return;
    default:
        p[0] = (nbody_real)wl_u(dice);
        p[1] = (nbody_real)wl_u(dice);
    }
}

WL_FN double oracle_mass(int input, int32_t i, wl_random *dice)
{
    switch (input) {
    case ORACLE_MASSES: return pow(2, (double)oracle_between(dice, -10, 10));
    case ORACLE_WILD: return pow(10, (double)oracle_between(dice, -6, 6));
    case ORACLE_SIGNS: return (double)oracle_between(dice, -1, 1);
    case ORACLE_RING: return i ? 1 : 1000;
    default: return i % 7 ? 1 : 0; /* some weigh nothing */
    }
}

WL_FN const oracle_case_row *oracle_case(int input, int32_t *n)
{
    if (input == ORACLE_CASE_CLUSTERED) { *n = 350; return oracle_case_clustered; }
    if (input == ORACLE_CASE_MASSES) { *n = 300; return oracle_case_wild_masses; }
    if (input == ORACLE_CASE_UNIFORM) { *n = 700; return oracle_case_uniform; }
    return NULL;
}

/* n bodies (cases: as many as they have); masses: whatever the input is, else only where they are
   the point of it. */
WL_FN void oracle_make(oracle_scene *s, int input, int32_t n, int masses, wl_random *dice)
{
    const oracle_case_row *row = oracle_case(input, &n);
    int32_t i;
    s->input = input;
    s->n = n;
    s->pos = NEW(nbody_real, 2 * (size_t)n);
    s->mass = masses || row || input == ORACLE_MASSES || input == ORACLE_WILD ||
        input == ORACLE_SIGNS || input == ORACLE_RING
              ? NEW(nbody_real, n) : NULL;
    for (i = 0; i < n; i++) {
        if (row) {
            s->pos[2 * i] = (nbody_real)row[i][0];
            s->pos[2 * i + 1] = (nbody_real)row[i][1];
            s->mass[i] = (nbody_real)row[i][2];
            continue;
        }
        oracle_put(input, i, n, dice, s->pos + 2 * (size_t)i);
        if (s->mass) s->mass[i] = (nbody_real)oracle_mass(input, i, dice);
    }
    s->body = oracle_bodies(s->pos, s->mass, n);
}

/* Every second body nearer to the origin by this factor: a clump. */
WL_FN void oracle_squeeze(oracle_scene *s, double by)
{
    int32_t i;
    for (i = 1; i < s->n; i += 2) {
        s->pos[2 * i] = (nbody_real)((double)s->pos[2 * i] * by);
        s->pos[2 * i + 1] = (nbody_real)((double)s->pos[2 * i + 1] * by);
    }
    free(s->body);
    s->body = oracle_bodies(s->pos, s->mass, s->n);
}

WL_FN void oracle_forget(oracle_scene *s)
{
    free(s->pos);
    free(s->mass);
    free(s->body);
    memset(s, 0, sizeof *s);
}

/* ------------------------------------------------------------------------------------------------
   Measures
   ---------------------------------------------------------------------------------------------- */

/* Of accelerations against true ones; p99: of the relative error; shares: |difference| / S, its
   mean and its largest. */
typedef struct oracle_errors {
    double mean, p99, mean_share, share, direction, length, bias, worst;
    int32_t samples;
} oracle_errors;

WL_FN int oracle_ascending(const void *a, const void *b)
{
    double const x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The share of what should be there that is wrong; NaN is infinitely wrong. */
WL_FN double oracle_share(double wrong, double of)
{
    if (!(wrong < 1e300)) return 1e300;
    return of > 0 ? wrong / of : wrong > 0 ? 1e300 : 0;
}

/* acc: 2 numbers per body; truth[k] belongs to body chosen[k] (NULL: body k). Bodies without a
   force are left out of what is relative to it. */
WL_FN oracle_errors oracle_compare(const nbody_real *acc, const oracle_field *truth,
    const int32_t *chosen, int32_t samples)
{
    double *relative = NEW(double, samples);
    oracle_errors e;
    int32_t k, used = 0;
    memset(&e, 0, sizeof e);
    e.samples = samples;
    for (k = 0; k < samples; k++) {
        size_t const i = (size_t)(chosen ? chosen[k] : k);
        double const x = (double)acc[2 * i], y = (double)acc[2 * i + 1], size = hypot(x, y),
            want = hypot(truth[k].x, truth[k].y);
        double const wrong = hypot(x - truth[k].x, y - truth[k].y),
            share = oracle_share(wrong, truth[k].share);
        e.mean_share += share / samples;
        if (share > e.share) e.share = share;
        if (!(want > 0) || !(size > 0)) continue;
        relative[used++] = wrong / want;
        e.mean += wrong / want;
        e.direction += hypot(x / size - truth[k].x / want, y / size - truth[k].y / want);
        e.length += fabs(size - want) / want;
        e.bias += (size - want) / want;
    }
    if (used > 0) {
        qsort(relative, (size_t)used, sizeof *relative, oracle_ascending);
        e.mean /= used;
        e.direction /= used;
        e.length /= used;
        e.bias /= used;
        e.p99 = relative[(int32_t)(0.99 * used)];
        e.worst = relative[used - 1];
    }
    free(relative);
    return e;
}

/* Largest error of potentials, as a share of the sum of |terms|. */
WL_FN double oracle_compare_potential(const nbody_real *potential, const oracle_field *truth,
    const int32_t *chosen, int32_t samples)
{
    double worst = 0;
    int32_t k;
    for (k = 0; k < samples; k++) {
        double const wrong = fabs((double)potential[chosen ? chosen[k] : k] - truth[k].p);
        double const share = oracle_share(wrong, truth[k].p_share);
        if (share > worst) worst = share;
    }
    return worst;
}

/* All bodies, or `samples` of them, spread over their order; *chosen: which (to be freed). */
WL_FN oracle_field *oracle_truth(const oracle_scene *s, const oracle_law *law, int32_t samples,
    int32_t **chosen)
{
    int32_t const count = samples < s->n ? samples : s->n;
    oracle_field *truth = NEW(oracle_field, count);
    int32_t k;
    *chosen = NEW(int32_t, count);
    for (k = 0; k < count; k++) {
        int32_t const i = (int32_t)((int64_t)k * s->n / count);
        (*chosen)[k] = i;
        truth[k] = oracle_direct(law, s->body, s->n, s->body[i].x, s->body[i].y, i);
    }
    return truth;
}

/* ------------------------------------------------------------------------------------------------
   Settings of nbody.h, and what the pyramid has to be told for the same
   ---------------------------------------------------------------------------------------------- */

typedef struct oracle_setting {
    const char *name;
    nbody_method method;
    int32_t order;
    nbody_sources sources;
    int32_t subcells;
    /* largest error of a force, as a share of S, that was met on any input; double */
    double share;
} oracle_setting;

WL_FN nbody_desc oracle_desc(const oracle_setting *s)
{
    nbody_desc d;
    memset(&d, 0, sizeof d);
    d.method = s->method;
    d.order = s->order;
    d.sources = s->sources;
    d.subcells = s->subcells;
    return d;
}

/* For a tree of one depth, that is, desc.levels given. */
WL_FN oracle_how oracle_how_of(const nbody *sim)
{
    const nbody_desc *d = &sim->desc;
    oracle_how how;
    memset(&how, 0, sizeof how);
    how.law = oracle_law_of(d->law == NBODY_INVERSE, (double)d->gravity, (double)d->softening);
    how.levels = d->levels;
    how.x0 = sim->frame->min[0];
    how.y0 = sim->frame->min[1];
    how.size = sim->frame->size;
    how.subcells = d->sources == NBODY_CHEBYSHEV ? 0 : d->subcells;
    how.moments = d->method == NBODY_VIRTUAL_PARTICLES && d->order == 2;
    how.linear = d->method == NBODY_FORCE_NODES && d->order == 1;
    how.side = d->method == NBODY_VIRTUAL_PARTICLES ? 0 : how.linear ? 8 : d->order;
    return how;
}

/* ------------------------------------------------------------------------------------------------
   Every pair once
   ---------------------------------------------------------------------------------------------- */

/* NULL, or what is wrong: what the walks of each leaf and of its ancestors meet is each body
   exactly once. O(leaves * n). */
WL_FN const char *oracle_check_walks(const nbody *sim)
{
    static char says[160];
    uint8_t *met = NEW(uint8_t, sim->n);
    int32_t leaf, c, i, covered = 0;
    const char *wrong = NULL;
    for (leaf = 0; leaf < sim->frame->cells && !wrong; leaf++) {
        nbody_near nearby;
        if (sim->cell[leaf].child >= 0) continue;
        memset(met, 0, (size_t)sim->n);
        for (c = leaf; c >= 0 && sim->cell[c].level >= 2; c = sim->cell[c].parent) {
            nbody_far away = nbody_far_of(sim, c);
            while (nbody_next_far(&away)) {
                const nbody_cell *other = &sim->cell[away.cell];
                for (i = 0; i < other->count; i++) met[other->first + i]++;
            }
        }
        nearby = nbody_near_of(sim, leaf);
        while (nbody_next_near(&nearby)) {
            const nbody_cell *other = &sim->cell[nearby.cell];
            if (nearby.whole && other->child >= 0)
                wrong = "the bodies of a cell that is no leaf are near";
            for (i = 0; i < other->count; i++) met[other->first + i]++;
        }
        for (i = 0; i < sim->n && !wrong; i++) if (met[i] != 1) {
            snprintf(says, sizeof says, "leaf %d of level %d meets the body at place %d %d times",
                (int)leaf,
                     (int)sim->cell[leaf].level, (int)i, (int)met[i]);
            wrong = says;
        }
        covered += sim->cell[leaf].count;
    }
    if (!wrong && covered != sim->n) wrong = "not every body is in a leaf";
    free(met);
    return wrong;
}

#endif /* NBODY_ORACLE_H */
