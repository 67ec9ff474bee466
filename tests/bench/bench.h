/* bench.h - what the benchmark programs share: options, medians, tables, checks. C99 and C++,
   everything static.
   SPDX-License-Identifier: MIT OR Unlicense

       bench_start(argc, argv, "program", "build,count");   groups that --only may name
       double ms = bench_cpu_ms(work, &job);                median of thread-CPU time
       bench_title("grid build", "plain grid");     a table; its ratios are against "plain grid"
       bench_row(&row);                                     one line of it, and one of the CSV file
       bench_check(total == known, "count");        a wrong result must fail
       return bench_end();

   Times are milliseconds. A figure of 0 means "there is none" and prints as "-". */

#ifndef BENCH_H
#define BENCH_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__GNUC__) || defined(__clang__)
#define BENCH_FN __attribute__((unused)) static
#else
#define BENCH_FN static
#endif

/* ---- options and state ---- */

typedef struct bench_state {
    const char *program, *groups, *only;
    const char *base;   /* what the ratio column of the present table compares with, or NULL */
    FILE *csv;
    int quick, small, runs;
    int32_t n;          /* --n, or 0 */
    int32_t max_n;      /* --max-n, or 0: larger sizes are left out */
    int checks, failures;
} bench_state;

static bench_state bench;

BENCH_FN void bench_usage(void)
{
    printf("usage: %s [--only GROUP,GROUP] [--quick] [--small] [--n PARTICLES] "
           "[--max-n PARTICLES] [--runs RUNS] [--csv FILE]\n",
           bench.program);
    printf("groups: %s\n", bench.groups);
}

/* Is `name` one of the words of a comma-separated list? */
BENCH_FN int bench_in_list(const char *list, const char *name, size_t length)
{
    while (list && *list) {
        size_t const word = strcspn(list, ",");
        if (word == length && memcmp(list, name, length) == 0) return 1;
        list += word + (list[word] == ',');
    }
    return 0;
}

BENCH_FN int bench_wants(const char *group)
{
    return !bench.only || bench_in_list(bench.only, group, strlen(group));
}

/* Named by --only? What takes long is done, or done in full, only then. */
BENCH_FN int bench_named(const char *group) { return bench.only && bench_wants(group); }

/* A mistyped group would otherwise measure nothing and report success. */
BENCH_FN int bench_groups_exist(const char *only)
{
    while (only && *only) {
        size_t const word = strcspn(only, ",");
        if (!bench_in_list(bench.groups, only, word)) return 0;
        only += word + (only[word] == ',');
    }
    return 1;
}

BENCH_FN int bench_option(const char *name, const char *value)
{
    if (strcmp(name, "--only") == 0) bench.only = value;
    else if (strcmp(name, "--n") == 0) bench.n = (int32_t)strtol(value, NULL, 10);
    else if (strcmp(name, "--max-n") == 0) bench.max_n = (int32_t)strtol(value, NULL, 10);
    else if (strcmp(name, "--runs") == 0) bench.runs = (int)strtol(value, NULL, 10);
    else if (strcmp(name, "--csv") == 0) {
        bench.csv = fopen(value, "w");
        if (!bench.csv) perror(value);
        return bench.csv != NULL;
    } else return 0;
    return 1;
}

/* Reads the options; ends the program where they make no sense. */
BENCH_FN void bench_start(int argc, char **argv, const char *program, const char *groups)
{
    int k, fine = 1;
    bench.program = program;
    bench.groups = groups;
    for (k = 1; k < argc && fine; k++) {
        if (strcmp(argv[k], "--quick") == 0) { bench.quick = 1; continue; }
        if (strcmp(argv[k], "--small") == 0) { bench.quick = bench.small = 1; continue; }
        fine = k + 1 < argc && bench_option(argv[k], argv[k + 1]);
        k++;
    }
    if (bench.runs == 0) bench.runs = bench.small ? 1 : bench.quick ? 3 : 11;
    /* enough to see whether it works, on the emulator too */
    if (bench.small && bench.n == 0) bench.n = 2000;
    if (!fine || !bench_groups_exist(bench.only) || bench.n < 0 || bench.runs < 1) {
        bench_usage();
        exit(2);
    }
    if (bench.csv)
        fprintf(bench.csv,
                "program,group,workload,method,n,ms,M_per_s,floor_ms,bar_ms,peer_ms,value,"
                "unit,base_ms,bar_ratio\n");
}

BENCH_FN void bench_print_date(void)
{
    char text[32];
    time_t const now = time(NULL);
    strftime(text, sizeof text, "%Y-%m-%d", localtime(&now));
    printf("date %s\n", text);
}

/* The name of the CPU, where the system says it (Linux). */
BENCH_FN void bench_print_cpu(void)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            printf("CPU%s", strchr(line, ':') + 1);
            break;
        }
    if (file) fclose(file);
}

/* ---- checks ---- */

BENCH_FN int bench_check(int right, const char *what)
{
    bench.checks++;
    if (!right) {
        bench.failures++;
        printf("  WRONG RESULT: %s\n", what);
    }
    return right;
}

BENCH_FN int bench_check_total(int64_t got, int64_t expected, const char *what)
{
    if (got != expected) printf("  %lld instead of %lld: ", (long long)got, (long long)expected);
    return bench_check(got == expected, what);
}

/* The exit status. Nothing measured is no success. */
BENCH_FN int bench_end(void)
{
    printf("\n%d totals checked, %d wrong\n", bench.checks, bench.failures);
    if (bench.csv) fclose(bench.csv);
    return bench.failures > 0 || bench.checks == 0;
}

BENCH_FN void *bench_alloc(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) { printf("out of memory: %zu bytes\n", bytes); exit(1); }
    return memory;
}

/* ---- timing on the CPU ---- */

BENCH_FN int bench_compare(const void *a, const void *b)
{
    double const x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

BENCH_FN double bench_median(double *samples, int count)
{
    qsort(samples, (size_t)count, sizeof *samples, bench_compare);
    return samples[count / 2];
}

/* Time that this thread has had a core: what other programs on the machine take is not in it. */
BENCH_FN double bench_thread_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

enum { BENCH_SAMPLES = 101 };

BENCH_FN double bench_sample_ms(void (*prepare)(void *), void (*work)(void *), void *job)
{
    double begin;
    if (prepare) prepare(job);
    begin = bench_thread_ms();
    work(job);
    return bench_thread_ms() - begin;
}

/* Median of --runs runs (more of what takes less than a millisecond, at most 3 of what takes
   seconds) after two that warm up; before each `prepare` (may be NULL), whose time is not
   counted. */
BENCH_FN double bench_cpu_ms_after(void (*prepare)(void *), void (*work)(void *), void *job)
{
    double samples[BENCH_SAMPLES], once;
    int runs = bench.runs, k;
    bench_sample_ms(prepare, work, job);
    once = bench_sample_ms(prepare, work, job);
    if (once < 1) runs *= 4;
    if (once > 1000 && runs > 3) runs = 3;
    if (runs > BENCH_SAMPLES) runs = BENCH_SAMPLES;
    for (k = 0; k < runs; k++) samples[k] = bench_sample_ms(prepare, work, job);
    return bench_median(samples, runs);
}

BENCH_FN double bench_cpu_ms(void (*work)(void *), void *job)
{
    return bench_cpu_ms_after(NULL, work, job);
}

/* As bench_cpu_ms, for curves that reach far: of what takes longer than half a second one run after
   one that warms up, of what takes several seconds that one. */
BENCH_FN double bench_cpu_once_ms(void (*work)(void *), void *job)
{
    double const once = bench_sample_ms(NULL, work, job);
    if (once > 3000) return once;
    return once > 500 ? bench_sample_ms(NULL, work, job) : bench_cpu_ms(work, job);
}

/* What the compiler was allowed to use. */
BENCH_FN const char *bench_instructions(void)
{
#if defined(__AVX2__)
    return "AVX2";
#elif defined(__SSE4_1__)
    return "SSE4.1";
#else
    return "baseline";
#endif
}

/* ---- floor: what memory allows ---- */

/* of memcpy: bytes per millisecond, read and written bytes counted; bench_measure_copy sets it */
static double bench_speed;

typedef struct bench_copy {
    char *from, *to;
    size_t bytes;
    void *(*volatile copy)(void *, const void *, size_t);
} bench_copy;

BENCH_FN void bench_work_copy(void *user)
{
    bench_copy *c = (bench_copy *)user;
    c->copy(c->to, c->from, c->bytes); /* volatile: or clang sees that the copy is not read */
}

BENCH_FN void bench_measure_copy(void)
{
    bench_copy c;
    c.copy = memcpy;
    c.bytes = (size_t)64 << 20;
    c.from = (char *)bench_alloc(c.bytes);
    c.to = (char *)bench_alloc(c.bytes);
    memset(c.from, 1, c.bytes);
    bench_speed = 2 * (double)c.bytes / bench_cpu_ms(bench_work_copy, &c);
    free(c.from);
    free(c.to);
}

BENCH_FN void bench_print_copy(void)
{
    printf("floor: bytes that must move / memcpy of 64 MB, which reads and writes %.1f GB/s here\n",
           bench_speed * 1e-6);
}

/* ---- tables ---- */

typedef struct bench_row_s {
    const char *group, *workload, *method;
    int64_t n;          /* particles */
    double ms;          /* measured */
    double floor_ms;    /* what the ceilings of this run allow */
    double base_ms;     /* the other method that the table compares with, in this run */
    double bar_ms;      /* what we want to reach (targets) */
    /* the same as a ratio to base_ms, as measured there: holds on other machines too */
    double bar_ratio;
    double peer_ms;     /* the fastest other library (targets) */
    const char *peer;   /* its name */
    double value;       /* CSV only: what is no time (bytes a particle, an error), in */
    const char *unit;
} bench_row_s;

/* M items/s. */
BENCH_FN double bench_rate(int64_t n, double ms) { return ms > 0 ? (double)n / ms * 1e-3 : 0; }

/* `value` in `width` columns with about 3 digits; "-" for 0. */
BENCH_FN void bench_number(double value, int width)
{
    int const digits = value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3;
    if (value <= 0) printf(" %*s", width, "-");
    else printf(" %*.*f", width, digits, value);
}

BENCH_FN void bench_title(const char *title, const char *base)
{
    bench.base = base;
    printf("\n%s\n", title);
    printf("%-19s %-44s %9s %9s %9s %8s", "workload", "method", "ms", "M/s", "floor ms", "x floor");
    if (base) printf(" x %-10s %6s", base, "bar x");
    printf(" %8s %-6s  %s\n", "bar ms", "bar", "peer (targets) ms");
}

BENCH_FN void bench_csv(const bench_row_s *row)
{
    if (!bench.csv) return;
    fprintf(bench.csv, "%s,%s,%s,\"%s\",%lld,%.6g,%.6g,%.6g,%.6g,%.6g,", bench.program,
            row->group, row->workload, row->method, (long long)row->n, row->ms,
            bench_rate(row->n, row->ms), row->floor_ms, row->bar_ms, row->peer_ms);
    if (row->unit) fprintf(bench.csv, "%.6g,%s", row->value, row->unit);
    fprintf(bench.csv, "%s,%.6g,%.6g\n", row->unit ? "" : ",", row->base_ms, row->bar_ratio);
    fflush(bench.csv);      /* a run that is cut off leaves whole lines */
}

/* A line of the CSV file that no table shows: something that is no time. */
BENCH_FN void bench_value(const char *group, const char *workload, const char *method, int64_t n,
                          double value, const char *unit)
{
    bench_row_s row;
    memset(&row, 0, sizeof row);
    row.group = group;
    row.workload = workload;
    row.method = method;
    row.n = n;
    row.value = value;
    row.unit = unit;
    bench_csv(&row);
}

/* Is the bar reached? By ratios where there are some: they hold on other machines too. */
BENCH_FN const char *bench_verdict(const bench_row_s *row)
{
    if (bench.base && row->bar_ratio > 0 && row->base_ms > 0)
        return row->ms <= row->bar_ratio * row->base_ms ? "met" : "missed";
    if (row->bar_ms > 0) return row->ms <= row->bar_ms ? "met" : "missed";
    return "";
}

BENCH_FN void bench_row(const bench_row_s *row)
{
    printf("%-19s %-44s", row->workload, row->method);
    bench_number(row->ms, 9);
    bench_number(bench_rate(row->n, row->ms), 9);
    bench_number(row->floor_ms, 9);
    bench_number(row->floor_ms > 0 ? row->ms / row->floor_ms : 0, 8);
    if (bench.base) bench_number(row->base_ms > 0 ? row->ms / row->base_ms : 0, 12);
    if (bench.base) bench_number(row->bar_ratio, 6);
    bench_number(row->bar_ms, 8);
    printf(" %-6s", bench_verdict(row));
    bench_number(row->peer_ms, 9);
    printf(" %s\n", row->peer && row->peer_ms > 0 ? row->peer : "");
    fflush(stdout);
    bench_csv(row);
}

/* A matrix: methods down, workloads across. The heading, then per line its name and bench_cell for
   each column. */
BENCH_FN void bench_matrix(const char *title, const char *corner)
{
    printf("\n%s\n%-34s", title, corner);
}

BENCH_FN void bench_line(const char *name) { printf("\n%-34s", name); }

/* One measurement as a cell that shows `value`. */
BENCH_FN void bench_cell(const bench_row_s *row, double value)
{
    bench_number(value, 9);
    fflush(stdout);
    bench_csv(row);
}

/* ---- scaling: time and memory against the number of particles ---- */

enum { BENCH_SCALES = 9 };

/* The sizes of group `scaling`: 1000, 3000, 10000 .. 10 million. Returns how many: all, up to a
   million (--quick), two (--small), or the one of --n. */
BENCH_FN int bench_scales(int32_t *sizes)
{
    int32_t n = 1000;
    int k;
    if (bench.n && !bench.small) { sizes[0] = bench.n; return 1; }
    for (k = 0; k < BENCH_SCALES; k++) {
        sizes[k] = k % 2 ? 3 * n : n;
        if (k % 2) n *= 10;
    }
    return bench.small ? 2 : bench.quick ? 7 : BENCH_SCALES;
}

BENCH_FN void bench_scaling_title(const char *title)
{
    printf("\n%s\n%-34s %11s %9s %9s %12s\n", title, "what", "n", "ms", "M/s", "bytes each");
}

/* bytes: that the header holds, per particle; 0: said in another row. */
BENCH_FN void bench_scaling_row(const char *group, const char *workload, const char *method,
                                int64_t n, double ms, double bytes)
{
    bench_row_s row;
    memset(&row, 0, sizeof row);
    row.group = group;
    row.workload = workload;
    row.method = method;
    row.n = n;
    row.ms = ms;
    row.value = bytes;
    row.unit = bytes > 0 ? "B" : NULL;
    printf("%-34s %11lld", method, (long long)n);
    bench_number(ms, 9);
    bench_number(bench_rate(n, ms), 9);
    bench_number(bytes, 12);
    printf("\n");
    fflush(stdout);
    bench_csv(&row);
}

/* The whole group; `rows` measures one size. */
BENCH_FN void bench_scaling_rows(const char *title, void (*rows)(int32_t))
{
    int32_t scales[BENCH_SCALES];
    int const count = bench_scales(scales);
    int k;
    bench_scaling_title(title);
    for (k = 0; k < count; k++) rows(scales[k]);
}

/* ---- what all lists must obey ---- */

BENCH_FN int64_t bench_sum(const int32_t *counts, int32_t n)
{
    int64_t sum = 0;
    int32_t i;
    for (i = 0; i < n; i++) sum += counts[i];
    return sum;
}

/* Of a list in CSR form: total = its entries; sum = of i and j over its entries (i, j). A full list
   has twice the sum of the half list, whatever the order. */
typedef struct bench_facts { int64_t total, sum; } bench_facts;

BENCH_FN bench_facts bench_facts_of(const int64_t *offsets, const int32_t *ids, int32_t n)
{
    bench_facts facts = {0, 0};
    int64_t k;
    int32_t i;
    facts.total = offsets[n];
    for (i = 0; i < n; i++) facts.sum += i * (offsets[i + 1] - offsets[i]);
    for (k = 0; k < facts.total; k++) facts.sum += ids[k];
    return facts;
}

#endif /* BENCH_H */
