/* progress.h - how far a run is: on a terminal a bar that moves, else a line for every quarter; and
   the steps at which pictures are made.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef EXAMPLES_PROGRESS_H
#define EXAMPLES_PROGRESS_H

#include "base.h"

enum { PROGRESS_BAR = 30, PROGRESS_LINES = 4 };

typedef struct progress {
    const char *unit;   /* "step" */
    int terminal;       /* stderr is one */
    int64_t lines;      /* written so far */
    double start, last;
} progress;

static inline progress progress_begin(const char *unit)
{
    progress p;
    p.unit = unit;
    p.terminal = isatty(2);
    p.lines = 0;
    p.start = p.last = seconds_now();
    return p;
}

/* `more`: what else is to be said, "" or "0.25 turns, ". */
static inline void progress_show(progress *p, int64_t done, int64_t all, const char *more)
{
    double const now = seconds_now(), rate = (double)done / (now - p->start + 1e-9);
    char bar[PROGRESS_BAR + 1];
    int k;
    if (p->terminal ? done < all && now - p->last < 0.1
                    : PROGRESS_LINES * done < (p->lines + 1) * all) return;
    p->last = now;
    p->lines = all ? PROGRESS_LINES * done / all : 0;
    for (k = 0; k < PROGRESS_BAR; k++) bar[k] = k * all < done * PROGRESS_BAR ? '=' : ' ';
    bar[PROGRESS_BAR] = 0;
    if (p->terminal) fprintf(stderr, "\r[%s] ", bar);
    fprintf(stderr, "%s %lld of %lld, %s%.0f %ss/s, %.0f s left", p->unit, (long long)done,
            (long long)all, more, rate, p->unit, (double)(all - done) / rate);
    fputs(p->terminal && done < all ? "  " : "\n", stderr);
    fflush(stderr);
}

/* Before a line is printed: the bar goes away, and comes back below it. */
static inline void progress_clear(const progress *p)
{
    if (p->terminal) fprintf(stderr, "\r%*s\r", PROGRESS_BAR + 70, "");
}

/* The step of picture k of `count`: spread evenly from the start to the end. */
static inline int32_t picture_step(int32_t steps, int32_t k, int32_t count)
{
    return count < 2 ? steps : (int32_t)((int64_t)steps * k / (count - 1));
}

/* The next step after `step` of which there is a picture, or the last. */
static inline int32_t next_picture(int32_t steps, int32_t count, int32_t step)
{
    int32_t k, next = steps;
    for (k = 0; k < count; k++) {
        int32_t const at = picture_step(steps, k, count);
        if (at > step && at < next) next = at;
    }
    return next;
}

#endif /* EXAMPLES_PROGRESS_H */
