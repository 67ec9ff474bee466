/* more/ugrid_tune.h - v0.2.0 - a part of ugrid.h: method, cells and walk, by measuring
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   Which method, which cells and which walk are fastest depends on the particles, on the search and
   on the machine. The tuner tries them, one after the other, in the steps of a program that runs
   anyway, and stays with the cheapest. (Chisholm, section 7, wants this choice to be automatic.)

   >>contents: the banners in order; search for >>, the name and a colon

       manual          use, rules, changes
       declarations    tune
       serial          tuner

   >>use: in every file that calls it, and in the one with UGRID_IMPLEMENTATION

       #define UGRID_WITH_TUNE
       #include "ugrid.h"

       ugrid_tuner tuner = {0};
       tuner.desc = desc;              the box, and what must be as it is
       tuner.radius = radius;
       for each step:
           ugrid_next_desc(&tuner, &desc);
           ... ugrid_build with desc; searches; what the program does with them ...
           ugrid_tune(&tuner, seconds of the build and the searches);    a refusal: -1

   >>rules

   Fields of tuner.desc that are set stay: method, cell, split and walk are tried where they are 0.
   All choices find the same neighbours, in another order. You measure the time (CUDA: of work that
   has ended), of a build and the searches that a step makes. Each choice is measured in `trials`
   steps, and its least time counts. It replaces the best so far where it is cheaper by 1 %. The
   first that is measured is tuner.desc itself, with all defaults: what the tuner ends with is not
   slower than that, as measured. About 20 choices are tried. When the time of the chosen one has
   changed by a quarter, in all of `trials` steps, the search begins anew. The tuner allocates
   nothing. It belongs to one thread at a time.

   >>changes

   0.2.0  2026-11-28. First version.
*/

#ifndef UGRID_H
#error "more/ugrid_tune.h is a part of ugrid.h: define UGRID_WITH_TUNE and include ugrid.h"
#elif 10000 * UGRID_VERSION_MAJOR + 100 * UGRID_VERSION_MINOR + UGRID_VERSION_PATCH != 200
#error "more/ugrid_tune.h 0.2.0 and ugrid.h are of different versions: copy both from one release"
#endif

#ifndef UGRID_TUNE_H
#define UGRID_TUNE_H

#if UGRID_I_REAL_KIND == 2 && !defined(NEARFIELD_NAMESPACE)
#define ugrid_next_desc         ugrid_f64_next_desc
#define ugrid_tune              ugrid_f64_tune
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>tune: the tuner, and its two calls
   ---------------------------------------------------------------------------------------------- */

/* All zero but the radius is valid. */
typedef struct ugrid_tuner {
    ugrid_desc desc;        /* in: what must be as it is; fields that are 0 may be tuned */
    ugrid_real radius;      /* in: of the searches: cells are tried in terms of it */
    int32_t trials;         /* in: steps measured with each choice (default: 3) */
    ugrid_desc best;        /* out: the cheapest so far */
    double cost;            /* out: its time, seconds; 0 = not measured */
    double gain;            /* out: its time, as a share of that of `desc` with its defaults */
    int32_t settled;        /* out: 1 = the search has ended */
    int32_t tried;          /* out: choices that were measured */
    const char *reason;     /* out: what is going on */
    /* private */
    ugrid_desc next;        /* the desc of the step */
    int32_t begun;
    int32_t field, choice;  /* what is varied, and the number of its choice */
    int32_t changed;        /* in this round, or the round before: a better one was found */
    double first;           /* time of the default */
    double least, most;     /* of the choice that is being measured */
    int32_t measured;       /* how often */
} ugrid_tuner;

/* *desc: the desc of the next step. Both functions do nothing for a radius that is not positive and
   finite, but that *desc = tuner->desc. O(1). */
UGRID_API void ugrid_next_desc(ugrid_tuner *tuner, ugrid_desc *desc);

/* After a step: how long did its build and its searches take? Negative or not finite: the build was
   refused (too many cells, full cells, memory), and the choice is not made. O(1). */
UGRID_API void ugrid_tune(ugrid_tuner *tuner, double seconds);

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif

#endif /* UGRID_TUNE_H */

#if defined(UGRID_I_IMPLEMENTED) && !defined(UGRID_TUNE_IMPLEMENTATION_DONE)
#define UGRID_TUNE_IMPLEMENTATION_DONE

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>tuner: one field after the other, each beside the best of all others (>>tune)

       round 1   method   default   COUNT   SORT   FIXED   LIST   PACKED
                 cell               r       r/2    r/3     2 r
                 split                      2      4
                 walk                       CELLS  STRIPS  MODULAR  HYBRID
       round 2   the same again, if round 1 found a better one: a method may be best with other
                 cells
   ---------------------------------------------------------------------------------------------- */

enum { UGRID_I_TUNE_METHOD, UGRID_I_TUNE_CELL, UGRID_I_TUNE_SPLIT, UGRID_I_TUNE_WALK,
       UGRID_I_TUNE_FIELDS };
enum { UGRID_I_TUNE_CHOICES = 6 };

/* Choice `choice` of a field, in place of what *desc has; 0: there is none, or it is that. */
static int ugrid_i_vary(const ugrid_tuner *tuner, int32_t field, int32_t choice, ugrid_desc *desc)
{
    static const ugrid_method methods[] = {UGRID_AUTO, UGRID_COUNT, UGRID_SORT, UGRID_FIXED,
                                           UGRID_LIST, UGRID_LIST_PACKED};
    static const double cells[] = {0, 1, 0.5, 1.0 / 3, 2};
    static const int32_t splits[] = {0, 2, 4};
    static const ugrid_walk walks[] = {UGRID_WALK_AUTO, UGRID_CELLS, UGRID_STRIPS, UGRID_MODULAR,
                                       UGRID_HYBRID};
    ugrid_desc const was = *desc;
    switch (field) {
    case UGRID_I_TUNE_METHOD:
        desc->method = methods[choice];
        desc->grow = desc->method == UGRID_FIXED ? 1 : tuner->desc.grow;
        return tuner->desc.method == UGRID_AUTO && desc->method != was.method;
    case UGRID_I_TUNE_CELL:
        if (choice >= 5 || tuner->desc.cell != 0) return 0;
        desc->cell = (ugrid_real)(cells[choice] * (double)tuner->radius);
        return desc->cell < was.cell || desc->cell > was.cell;
    case UGRID_I_TUNE_SPLIT:
        if (choice >= 3 || tuner->desc.split != 0) return 0;
        desc->split = splits[choice];
        return desc->split != was.split;
    default:
        if (choice >= 5 || tuner->desc.walk != UGRID_WALK_AUTO) return 0;
        desc->walk = walks[choice];
        return desc->walk != was.walk;
    }
}

/* A desc that no build would refuse, whatever the particles are. */
static int ugrid_i_is_possible(const ugrid_desc *desc)
{
    ugrid_desc resolved;
    return ugrid_defaults(&resolved, desc) == UGRID_OK;
}

/* The search has ended, with the best. */
static void ugrid_i_end_tuning(ugrid_tuner *tuner)
{
    tuner->settled = 1;
    tuner->next = tuner->best;
    tuner->reason = tuner->gain < 1
                        ? "settled: no other method, cell, split or walk is cheaper by 1 %"
                        : "settled: no other method, cell, split or walk is cheaper than the "
                          "default by 1 %";
}

/* The next choice to measure, beside the best. */
static void ugrid_i_propose(ugrid_tuner *tuner)
{
    static const char *const reasons[UGRID_I_TUNE_FIELDS] = {
        "searching: a method is being measured", "searching: cells are being measured",
        "searching: split cells are being measured", "searching: a walk is being measured"};
    for (;;) {
        tuner->choice++;
        if (tuner->choice == UGRID_I_TUNE_CHOICES) {
            tuner->choice = 0;
            tuner->field++;
        }
        if (tuner->field == UGRID_I_TUNE_FIELDS) {
            if (!tuner->changed) break;
            tuner->field = tuner->changed = 0;
        }
        tuner->next = tuner->best;
        tuner->reason = reasons[tuner->field];
        if (ugrid_i_vary(tuner, tuner->field, tuner->choice, &tuner->next) &&
            ugrid_i_is_possible(&tuner->next))
            return;
    }
    ugrid_i_end_tuning(tuner);
}

/* Begins with the default. */
static void ugrid_i_begin_tuning(ugrid_tuner *tuner)
{
    tuner->begun = 1;
    tuner->next = tuner->best = tuner->desc;
    tuner->field = tuner->settled = tuner->changed = tuner->tried = tuner->measured = 0;
    tuner->choice = -1;
    tuner->cost = tuner->first = tuner->gain = 0;
    if (tuner->trials < 1) tuner->trials = 3;
    tuner->reason = "the default: not measured yet";
}

static int ugrid_i_can_tune(const ugrid_tuner *tuner)
{
    return tuner && tuner->radius > 0 && ugrid_i_finite(tuner->radius);
}

UGRID_API void ugrid_next_desc(ugrid_tuner *tuner, ugrid_desc *desc)
{
    if (!tuner || !desc) return;
    *desc = tuner->desc;
    if (!ugrid_i_can_tune(tuner)) return;
    if (!tuner->begun) ugrid_i_begin_tuning(tuner);
    *desc = tuner->next;
}

/* The choice has been measured `trials` times. */
static void ugrid_i_weigh(ugrid_tuner *tuner)
{
    double const least = tuner->least, most = tuner->most;
    if (tuner->settled) {
        if (least > 1.25 * tuner->cost || most < 0.75 * tuner->cost) ugrid_i_begin_tuning(tuner);
        return;
    }
    tuner->tried++;
    if (tuner->first <= 0) tuner->first = least;
    if (tuner->cost <= 0 || least < 0.99 * tuner->cost) {
        tuner->changed = tuner->cost > 0;
        tuner->best = tuner->next;
        tuner->cost = least;
        tuner->gain = tuner->first > 0 ? least / tuner->first : 1;
    }
    ugrid_i_propose(tuner);
}

UGRID_API void ugrid_tune(ugrid_tuner *tuner, double seconds)
{
    if (!ugrid_i_can_tune(tuner) || !tuner->begun) return;
    if (!(seconds >= 0) || seconds - seconds != 0) { /* refused: not this one */
        tuner->measured = 0;
        if (!tuner->settled) ugrid_i_propose(tuner);
        return;
    }
    if (tuner->measured == 0 || seconds < tuner->least) tuner->least = seconds;
    if (tuner->measured == 0 || seconds > tuner->most) tuner->most = seconds;
    if (++tuner->measured < tuner->trials) return;
    tuner->measured = 0;
    ugrid_i_weigh(tuner);
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif

#endif /* UGRID_TUNE_IMPLEMENTATION_DONE */
