/* threads.h - the groups `threads` and `overhead` of the benchmarks: desc.parallel on a pool of
   threads beside serial calls, by the clock on the wall.
   SPDX-License-Identifier: MIT OR Unlicense

       threads_begin();                             BENCH_THREADS threads (2); title, two ceilings
       together.desc.parallel.run = parallel_threads;
       together.desc.parallel.user = &threads.pool;
       together.desc.parallel.tasks = threads.tasks;
       threads_row("uniform", "build", n, work, &alone, &together);
       threads_end();

       overhead_begin();                            BENCH_THREADS threads (16)
       together.desc.parallel.tasks = 1;
       overhead_row("uniform", "build", n, work, &alone, &together);
       overhead_end();

   The ceilings are what these threads gain where nothing is shared (arithmetic in registers) and
   where all of it is (a copy): cores that are two threads of one core, or share their memory's
   bandwidth, do not gain what their number says. Include bench.h before. */

#ifndef BENCH_THREADS_H
#define BENCH_THREADS_H

#include "tests/common/parallel.h"

static struct {
    parallel_pool pool;
    int32_t count, tasks;
} threads;

BENCH_FN double threads_ms(void (*work)(void *), void *user)
{
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    work(user);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return 1e3 * (double)(end.tv_sec - start.tv_sec) + 1e-6 * (double)(end.tv_nsec - start.tv_nsec);
}

/* Serial and in tasks, in turn, until there are enough runs or two seconds have gone: the medians
   of the serial times and of the ratios. A warm-up of both is not counted. */
BENCH_FN void threads_row(const char *workload, const char *method, int64_t n,
                          void (*work)(void *), void *alone, void *together)
{
    double alone_ms[BENCH_SAMPLES], gain[BENCH_SAMPLES], sum = 0;
    int const most = bench.runs < BENCH_SAMPLES ? bench.runs : BENCH_SAMPLES;
    bench_row_s row;
    int k = 0;
    work(alone);
    work(together);
    while (k < most && (k < 3 || sum < 2000)) {
        double const one = threads_ms(work, alone), all = threads_ms(work, together);
        alone_ms[k] = one;
        gain[k++] = one / all;
        sum += one + all;
    }
    memset(&row, 0, sizeof row);
    row.group = "threads";
    row.workload = workload;
    row.method = method;
    row.n = n;
    row.base_ms = bench_median(alone_ms, k);
    row.ms = row.base_ms / bench_median(gain, k);
    bench_row(&row);
}

/* ---- ceilings ---- */

typedef struct threads_ceiling {
    int cut;            /* 1: on the threads */
    char *from, *to;    /* of the copy */
    size_t bytes;
    double sums[256];   /* of the arithmetic: nobody may see that it is not needed */
} threads_ceiling;

enum { THREADS_PIECES = 64 };

/* Eight sums at a time, so that the units are busy and not waiting for one of them. */
BENCH_FN void threads_arithmetic_piece(void *context, int32_t piece)
{
    double x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, sum = 0;
    int k, j;
    for (k = 0; k < 400000; k++)
        for (j = 0; j < 8; j++) x[j] = x[j] * 0.999999 + 0.5;
    for (j = 0; j < 8; j++) sum += x[j];
    ((threads_ceiling *)context)->sums[piece] = sum;
}

BENCH_FN void threads_copy_piece(void *context, int32_t piece)
{
    threads_ceiling *c = (threads_ceiling *)context;
    size_t const part = c->bytes / THREADS_PIECES;
    memcpy(c->to + (size_t)piece * part, c->from + (size_t)piece * part, part);
}

BENCH_FN void threads_pieces(threads_ceiling *c, parallel_task *piece)
{
    int32_t k;
    if (c->cut) parallel_threads(piece, c, THREADS_PIECES, &threads.pool);
    else for (k = 0; k < THREADS_PIECES; k++) piece(c, k);
}

BENCH_FN void threads_arithmetic(void *c)
{
    threads_pieces((threads_ceiling *)c, threads_arithmetic_piece);
}

BENCH_FN void threads_copy(void *c) { threads_pieces((threads_ceiling *)c, threads_copy_piece); }

BENCH_FN void threads_ceilings(void)
{
    static threads_ceiling alone, together;
    together.cut = 1;
    threads_row("ceiling", "arithmetic in registers", 0, threads_arithmetic, &alone, &together);
    alone.bytes = together.bytes = (size_t)512 << 20;
    alone.from = together.from = (char *)bench_alloc(alone.bytes);
    alone.to = together.to = (char *)bench_alloc(alone.bytes);
    memset(alone.from, 1, alone.bytes);
    threads_row("ceiling", "copy of 512 MiB", 0, threads_copy, &alone, &together);
    free(alone.from);
    free(alone.to);
}

/* ---- begin and end ---- */

BENCH_FN void threads_open(int32_t fallback)
{
    const char *const given = getenv("BENCH_THREADS");
    threads.count = given ? (int32_t)strtol(given, NULL, 10) : fallback;
    if (threads.count < 1) threads.count = 1;
    threads.tasks = 4 * threads.count;
    parallel_all_used();
    parallel_start(&threads.pool, threads.count);
}

BENCH_FN void threads_begin(void)
{
    char title[120];
    threads_open(2);
    snprintf(title, sizeof title, "threads: desc.parallel, %d tasks on %d threads, "
             "by the clock on the wall", (int)threads.tasks, (int)threads.count);
    bench_title(title, "serial");
    threads_ceilings();
}

BENCH_FN void threads_end(void) { parallel_stop(&threads.pool); }

/* ---- what the hook costs where it brings nothing ---- */

enum { OVERHEAD_SMALL = 1000, OVERHEAD_RUNS = 2000 };

BENCH_FN void overhead_begin(void)
{
    char title[160];
    threads_open(16);
    snprintf(title, sizeof title, "overhead: the hook with one piece (bar: 2 %% more), and for %d "
             "elements on %d threads (5 us more); least times", OVERHEAD_SMALL, (int)threads.count);
    bench_title(title, "serial");
}

/* The least times of calls made in turn, for two seconds or OVERHEAD_RUNS of each. */
BENCH_FN void overhead_row(const char *workload, const char *method, int64_t n,
                           void (*work)(void *), void *alone, void *together)
{
    double sum = 0;
    bench_row_s row;
    int k;
    memset(&row, 0, sizeof row);
    row.group = "overhead";
    row.workload = workload;
    row.method = method;
    row.n = n;
    work(alone);
    work(together);
    for (k = 0; k < OVERHEAD_RUNS && (k < 3 || sum < 2000); k++) {
        double const one = threads_ms(work, alone), all = threads_ms(work, together);
        if (k == 0 || one < row.base_ms) row.base_ms = one;
        if (k == 0 || all < row.ms) row.ms = all;
        sum += one + all;
    }
    if (n > OVERHEAD_SMALL) row.bar_ratio = 1.02;
    else row.bar_ratio = (row.base_ms + 0.005) / row.base_ms;
    bench_row(&row);
}

BENCH_FN void overhead_end(void) { parallel_stop(&threads.pool); }

#endif
