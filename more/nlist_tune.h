/* more/nlist_tune.h - v0.2.0 - a part of nlist.h: a Verlet skin chosen by measuring.
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   A wider skin makes builds rarer, and each step slower, since more pairs are looked at. The tuner
   compares the cost of a step, builds included, at several skins, and stays with the cheapest.

   >>contents: the banners in order; search for >>, the name and a colon

       manual          use, rules, changes
       declarations    tune
       serial          tuner

   >>use: in every file that calls it, and in the one with NLIST_IMPLEMENTATION

       #define NLIST_WITH_TUNE
       #include "nlist.h"

       nlist_tuner tuner = {0};
       tuner.radius = desc.radius;
       for each step:
           nlist_moved(&list, pos, 0, &moved);
           if (moved) { desc.skin = nlist_next_skin(&tuner); ... build the grid and the list ... }
           ... forces, motion ...
           nlist_tune(&tuner, moved, seconds of this step, with its build);

   >>rules

   You measure the time (CUDA: of work that has ended). What is compared is the mean over whole
   lists, from one build to before the next. The search (a hill climb by ratios) tries 1.5 times the
   best skin so far, then it divided by 1.5, goes on while that is cheaper, and then repeats this by
   smaller ratios, down to 1.1. (Cheaper: by 1 % at least.) When the cost of the chosen skin has
   changed by a quarter, it begins anew. Pairs within the radius do not depend on the skin; the
   order of sums does. The tuner allocates nothing. It belongs to one thread at a time.

   >>changes

   0.2.0  2026-11-28. First version.
*/

#ifndef NLIST_H
#error "more/nlist_tune.h is a part of nlist.h: define NLIST_WITH_TUNE and include nlist.h"
#elif 10000 * NLIST_VERSION_MAJOR + 100 * NLIST_VERSION_MINOR + NLIST_VERSION_PATCH != 200
#error "more/nlist_tune.h 0.2.0 and nlist.h are of different versions: copy both from one release"
#endif

#ifndef NLIST_TUNE_H
#define NLIST_TUNE_H

#if NLIST_I_REAL_KIND == 2
#define nlist_tune              nlist_f64_tune
#define nlist_next_skin         nlist_f64_next_skin
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>tune: the tuner, and its two calls
   ---------------------------------------------------------------------------------------------- */

/* All zero but the radius is valid. */
typedef struct nlist_tuner {
    nlist_real radius;      /* in: the reach without the skin */
    nlist_real least, most; /* in: skins to choose from (default: 0.01 and 1 times the radius) */
    nlist_real first;       /* in: the first skin (default: 0.1 times the radius) */
    int32_t lists;          /* in: lists measured at each skin (default: 3) */
    nlist_real skin;        /* out: the skin of the next build */
    nlist_real best;        /* out: the cheapest skin so far */
    double cost;            /* out: its cost, seconds per step; 0 = not measured */
    double steps;           /* out: steps that a list served at it */
    double wider, narrower; /* out: costs of the last skins tried beside it; 0 = none */
    int32_t settled;        /* out: 1 = the search has ended */
    const char *reason;     /* out: why this skin */
    /* private */
    nlist_real list_skin;   /* that the present list was built with */
    double ratio;           /* of a trial to the best */
    double seconds, count;  /* of the present list: time, steps */
    double sum, sum_steps;  /* of the lists measured at this skin */
    int32_t measured;       /* how many */
    int32_t tried;          /* beside the best, at this ratio: bit 0 wider, bit 1 narrower */
} nlist_tuner;

/* The skin for the next build. */
NLIST_API nlist_real nlist_next_skin(nlist_tuner *tuner);

/* After each step: did it build the list, and how long did it take, the build included? Both do
   nothing for a radius that is not positive and finite, and for seconds that are negative or not
   finite. O(1). */
NLIST_API void nlist_tune(nlist_tuner *tuner, int built, double seconds);
#ifdef __cplusplus
}
#endif

#endif /* NLIST_TUNE_H */

#if defined(NLIST_I_IMPLEMENTED) && !defined(NLIST_TUNE_IMPLEMENTATION_DONE)
#define NLIST_TUNE_IMPLEMENTATION_DONE

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>tuner: the search for the cheapest skin (>>tune)

       skin        0.10    0.15    0.22           0.18    0.15 0.17 0.14 ...
       cost        5.0     4.1     4.4   (0.10)   4.2     ...
       ratio       1.5     1.5     1.5            1.22    ...
                   best -> best    worse, and the other neighbour is known: the next ratio
   ---------------------------------------------------------------------------------------------- */

enum { NLIST_I_WIDER = 1, NLIST_I_NARROWER = 2 };

NLIST_API nlist_real nlist_next_skin(nlist_tuner *tuner)
{
    nlist_real skin;
    if (!tuner || !(tuner->radius > 0) || !nlist_i_finite(tuner->radius)) return 0;
    if (tuner->skin > 0) return tuner->skin;
    if (!(tuner->least > 0)) tuner->least = tuner->radius / 100;
    if (!(tuner->most >= tuner->least)) tuner->most = tuner->least > tuner->radius ? tuner->least
                                                                                 : tuner->radius;
    if (tuner->lists < 1) tuner->lists = 3;
    skin = tuner->first > 0 ? tuner->first : tuner->radius / 10;
    if (skin < tuner->least) skin = tuner->least;
    if (skin > tuner->most) skin = tuner->most;
    tuner->skin = tuner->best = skin;
    tuner->ratio = 1.5;
    tuner->reason = "the first: not measured yet";
    return skin;
}

/* The search has ended with the best skin; says why. */
static void nlist_i_end_tuning(nlist_tuner *tuner)
{
    tuner->settled = 1;
    tuner->skin = tuner->best;
    tuner->reason = (double)tuner->best * 1.1 > (double)tuner->most
                        ? "settled at the widest allowed: a narrower one is no cheaper by 1 %"
                    : (double)tuner->best / 1.1 < (double)tuner->least
                        ? "settled at the narrowest allowed: a wider one is no cheaper by 1 %"
                        : "settled: a wider and a narrower one are no cheaper by 1 %";
}

/* The next skin to measure, beside the best. */
static void nlist_i_propose(nlist_tuner *tuner)
{
    tuner->reason = "searching: a wider or narrower one is being measured";
    for (;;) {
        double const wider = (double)tuner->best * tuner->ratio,
                     narrower = (double)tuner->best / tuner->ratio;
        if (!(tuner->tried & NLIST_I_WIDER) && wider <= (double)tuner->most) {
            tuner->skin = (nlist_real)wider;
            return;
        }
        if (!(tuner->tried & NLIST_I_NARROWER) && narrower >= (double)tuner->least) {
            tuner->skin = (nlist_real)narrower;
            return;
        }
        if (tuner->ratio < 1.15) break;
        tuner->ratio = tuner->ratio > 1.3 ? 1.225 : 1.1;
        tuner->tried = 0;
    }
    nlist_i_end_tuning(tuner);
}

/* The measured skin becomes the best. */
static void nlist_i_take_best(nlist_tuner *tuner, double cost, double steps)
{
    tuner->tried = tuner->cost > 0 && tuner->skin != tuner->best
                       ? (tuner->skin > tuner->best ? NLIST_I_NARROWER : NLIST_I_WIDER)
                       : 0;
    if (tuner->tried & NLIST_I_NARROWER) tuner->narrower = tuner->cost;
    if (tuner->tried & NLIST_I_WIDER) tuner->wider = tuner->cost;
    tuner->best = tuner->skin;
    tuner->cost = cost;
    tuner->steps = steps;
}

/* The skin has been measured. */
static void nlist_i_weigh(nlist_tuner *tuner, double cost, double steps)
{
    if (tuner->settled) {
        if (cost <= 1.25 * tuner->cost && cost >= 0.75 * tuner->cost) return;
        tuner->settled = tuner->tried = 0;
        tuner->ratio = 1.5;
        tuner->wider = tuner->narrower = 0;
        nlist_i_take_best(tuner, cost, steps);
    } else if (!(tuner->cost > 0) || cost < 0.99 * tuner->cost) {
        nlist_i_take_best(tuner, cost, steps);
    } else if (tuner->skin > tuner->best) {
        tuner->wider = cost;
        tuner->tried |= NLIST_I_WIDER;
    } else {
        tuner->narrower = cost;
        tuner->tried |= NLIST_I_NARROWER;
    }
    nlist_i_propose(tuner);
}

/* A list has ended: it counts where it was built with the skin that is being measured. */
static void nlist_i_end_list(nlist_tuner *tuner)
{
    double cost, steps;
    if (tuner->list_skin != tuner->skin || !(tuner->count > 0)) return;
    tuner->sum += tuner->seconds;
    tuner->sum_steps += tuner->count;
    if (++tuner->measured < tuner->lists) return;
    cost = tuner->sum / tuner->sum_steps;
    steps = tuner->sum_steps / tuner->measured;
    tuner->sum = tuner->sum_steps = 0;
    tuner->measured = 0;
    nlist_i_weigh(tuner, cost, steps);
}

NLIST_API void nlist_tune(nlist_tuner *tuner, int built, double seconds)
{
    nlist_real const used = nlist_next_skin(tuner);
    if (!(used > 0) || !(seconds >= 0) || seconds - seconds != 0) return;
    if (built) {
        nlist_i_end_list(tuner);
        tuner->list_skin = used;
        tuner->seconds = tuner->count = 0;
    }
    tuner->seconds += seconds;
    tuner->count += 1;
}

#ifdef __cplusplus
}
#endif

#endif /* NLIST_TUNE_IMPLEMENTATION_DONE */

/* Licence: MIT OR Unlicense, as at >>licence in nlist.h. */
