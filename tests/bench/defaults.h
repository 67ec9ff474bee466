/* defaults.h - group `defaults` of the benchmark programs: what a call takes with nothing set,
   beside the settings that the manual offers. C99 and C++, everything static.
   SPDX-License-Identifier: MIT OR Unlicense

       bench_setting settings[2] = {{"default", work, &job[0], 0}, {"COUNT", work, &job[1], 0}};
       bench_defaults_title("defaults: grids");
       bench_defaults_row("uniform-1M", n, "build + pairs", settings, 2, bench_turn_ms, reason);
       bench_defaults_end();

   Settings take turns, and the fastest turn of each counts: a noisy machine disturbs all alike. Of
   rows above the bar all take their turns again. */

#ifndef BENCH_DEFAULTS_H
#define BENCH_DEFAULTS_H

#include "tests/bench/bench.h"

/* One setting of a call. */
typedef struct bench_setting {
    const char *name;
    void (*work)(void *job);
    void *job;
    double ms;              /* out: of the fastest turn */
} bench_setting;

/* The milliseconds of one turn. */
typedef double bench_turn_fn(void (*work)(void *job), void *job);

#define BENCH_DEFAULTS_BAR 1.1
enum { BENCH_DEFAULTS_LONG_TURNS = 5 };

static int bench_defaults_rows, bench_defaults_above;

BENCH_FN double bench_turn_ms(void (*work)(void *job), void *job)
{
    return bench_sample_ms(NULL, work, job);
}

BENCH_FN void bench_defaults_title(const char *title)
{
    bench_defaults_rows = bench_defaults_above = 0;
    printf("\n%s\n%-19s %-26s %9s %9s %6s %-5s  %-28s %s\n", title, "workload", "call", "default",
           "best ms", "ratio", "", "best setting", "reason of the default");
}

/* More turns of short calls, fewer of those that take seconds. `again`: besides earlier ones. */
BENCH_FN void bench_take_turns(bench_setting *settings, int count, bench_turn_fn *turn, int again)
{
    int turns = bench.runs, t, k;
    for (k = 0; k < count && !again; k++)
        settings[k].ms = turn(settings[k].work, settings[k].job);
    if (settings[0].ms < 1) turns *= 4;
    if (settings[0].ms > 100 && turns > BENCH_DEFAULTS_LONG_TURNS)
        turns = BENCH_DEFAULTS_LONG_TURNS;
    for (t = 0; t < turns; t++)
        for (k = 0; k < count; k++) {
            double const ms = turn(settings[k].work, settings[k].job);
            if (ms < settings[k].ms) settings[k].ms = ms;
        }
}

BENCH_FN int bench_best_of(const bench_setting *settings, int count)
{
    int best = 0, k;
    for (k = 1; k < count; k++) if (settings[k].ms < settings[best].ms) best = k;
    return best;
}

/* A row: the first of the settings is the default. `reason`: what the object says, or "". */
BENCH_FN void bench_defaults_row(const char *workload, int64_t n, const char *call,
                                 bench_setting *settings, int count, bench_turn_fn *turn,
                                 const char *reason)
{
    bench_row_s row;
    double ratio;
    int best;
    bench_take_turns(settings, count, turn, 0);
    best = bench_best_of(settings, count);
    if (settings[0].ms > BENCH_DEFAULTS_BAR * settings[best].ms)
        bench_take_turns(settings, count, turn, 1);
    best = bench_best_of(settings, count);
    ratio = settings[best].ms > 0 ? settings[0].ms / settings[best].ms : 1;
    bench_defaults_rows++;
    bench_defaults_above += ratio > BENCH_DEFAULTS_BAR;
    printf("%-19s %-26s", workload, call);
    bench_number(settings[0].ms, 9);
    bench_number(settings[best].ms, 9);
    printf(" %6.2f %-5s  %-28s %s\n", ratio, ratio <= BENCH_DEFAULTS_BAR ? "ok" : "above",
           settings[best].name, reason);
    fflush(stdout);
    memset(&row, 0, sizeof row);
    row.group = "defaults";
    row.workload = workload;
    row.method = call;
    row.n = n;
    row.ms = settings[0].ms;
    row.base_ms = settings[best].ms;
    bench_csv(&row);
    bench_check(ratio > 0, "defaults: nothing was measured");
}

BENCH_FN void bench_defaults_end(void)
{
    printf("%d of %d calls take more than %.1f times the best setting\n", bench_defaults_above,
           bench_defaults_rows, BENCH_DEFAULTS_BAR);
}

#endif /* BENCH_DEFAULTS_H */
