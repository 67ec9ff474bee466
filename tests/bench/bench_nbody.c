/* bench_nbody.c - how fast and how exact is nbody.h on one core of this machine? README.md in this
   folder explains the tables.
   SPDX-License-Identifier: MIT OR Unlicense

       make bench                                              all of it, about three minutes
       build/bench/bench_nbody --only methods --n 1000000
       build/bench/bench_nbody --only leaf,pareto              a group that is named does more
       BENCH_THREADS=16 build/bench/bench_nbody --only threads
       build/bench/bench_nbody --only auto --quick             less than 4 minutes; --max-n 10000
       groups: pairs methods depth direction length pareto leaf clumps memory sets; only when
       named: scaling threads auto defaults function law points orders

   Compiled with -DNBODY_REAL=double, all of it is in doubles. */

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#endif

/* The law of t-SNE, by name; its lengths are those of the square. */
static inline double heavy_tail(double d, void *user)
{
    double const q = 1 / (1 + 400 * d * d);
    (void)user;
    return d * q * q;
}

static inline double heavy_tail_potential(double d, void *user)
{
    (void)user;
    return -1.0 / 800 / (1 + 400 * d * d);
}

#define NBODY_FORCE heavy_tail
#define NBODY_POTENTIAL heavy_tail_potential
#include "tests/common/nbody_parts.h"
#define NBODY_IMPLEMENTATION
#include "nbody.h"
#include "tests/bench/bench.h"
#include "tests/bench/nbody_bench.h"
#include "tests/bench/threads.h"

static void must(nbody_result result)
{
    if (result == NBODY_OK) return;
    printf("%s\n", nbody_result_text(result));
    exit(1);
}

/* ---- timing ---- */

/* of one figure; of one that only looks for the best of many */
enum { BUDGET_MS = 700, SEARCH_MS = 200 };

/* Median of --runs runs, of fewer where they would take longer than the budget, after one that
   warms up. What takes twice the budget is run once. */
static double measure(void (*work)(void *), void *job, int budget_ms)
{
    double samples[BENCH_SAMPLES];
    double const once = bench_sample_ms(NULL, work, job);
    int runs = once < 1 ? 4 * bench.runs : bench.runs, k;
    if (once > 2 * budget_ms) return once;
    if (runs * once > budget_ms) runs = (int)(budget_ms / once);
    if (runs < 1) runs = 1;
    if (runs > BENCH_SAMPLES) runs = BENCH_SAMPLES;
    for (k = 0; k < runs; k++) samples[k] = bench_sample_ms(NULL, work, job);
    return bench_median(samples, runs);
}

/* ---- jobs ---- */

typedef struct job {
    const bodies *b;
    nbody sim;
    nbody_desc desc;
    nbody_real *acc, *potential;    /* potential NULL: not asked for */
    nbody_real *points;             /* work_points: of these, */
    int32_t count;                  /* so many */
} job;

static job new_job(const bodies *b, nbody_desc desc)
{
    job j;
    memset(&j, 0, sizeof j);
    j.b = b;
    j.desc = desc;
    j.acc = (nbody_real *)bench_alloc(2 * (size_t)b->n * sizeof *j.acc);
    return j;
}

static void free_job(job *j)
{
    nbody_free(&j->sim);
    free(j->acc);
    free(j->potential);
    free(j->points);
}

static void work_forces(void *user)
{
    job *j = (job *)user;
    must(nbody_fields(&j->sim, &j->desc, j->b->pos, 0, NULL, j->b->n, j->acc, j->potential));
}

static void work_points(void *user)
{
    job *j = (job *)user;
    must(nbody_fields_at(&j->sim, j->points, 0, j->count, j->acc, NULL, NULL));
}

#include "tests/bench/nbody_auto.h"

/* Where a sample of the bodies is: there, bodies do not act on themselves, so that it is the force
   on them. */
static job new_points(const bodies *b, int32_t count)
{
    job j = new_job(b, direct_desc(b));
    int32_t k;
    j.count = count;
    j.points = (nbody_real *)bench_alloc(2 * (size_t)count * sizeof *j.points);
    for (k = 0; k < count; k++)
        memcpy(j.points + 2 * k, b->pos + 2 * (size_t)sample_of(k, count, b->n),
               2 * sizeof *j.points);
    must(nbody_build(&j.sim, &j.desc, b->pos, 0, NULL, b->n));
    return j;
}

/* ---- the direct sum ---- */

enum { WHOLE = 10000 };

/* Above WHOLE bodies: of the first WHOLE of them, scaled to all pairs. A pair takes as long there:
   sources pass by in order. */
static double direct_ms(const bodies *b)
{
    bodies part = *b;
    double ms;
    job j;
    if (part.n > WHOLE) part.n = WHOLE;
    j = new_job(&part, direct_desc(&part));
    ms = measure(work_forces, &j, BUDGET_MS);
    free_job(&j);
    return ms * ((double)b->n / part.n) * ((double)b->n / part.n);
}

/* The loop that one would write first. */
static void work_plain(void *user)
{
    job *j = (job *)user;
    nbody_real const soft2 = j->desc.softening * j->desc.softening;
    const nbody_real *pos = j->b->pos;
    size_t const n = (size_t)j->b->n;
    size_t i, k;
    for (i = 0; i < n; i++) {
        nbody_real x = 0, y = 0;
        for (k = 0; k < n; k++) {
            nbody_real const dx = pos[2 * k] - pos[2 * i], dy = pos[2 * k + 1] - pos[2 * i + 1],
                             d2 = dx * dx + dy * dy + soft2;
            nbody_real const root = sizeof d2 == sizeof(float) ? (nbody_real)sqrtf((float)d2)
                                                               : (nbody_real)sqrt((double)d2);
            nbody_real const g = k == i || d2 <= 0 ? 0 : 1 / (d2 * root);
            x += g * dx;
            y += g * dy;
        }
        j->acc[2 * i] = x;
        j->acc[2 * i + 1] = y;
    }
}

static void pairs_line(const bodies *b, const char *method, double ms, double plain_ms,
                       double theirs_ns)
{
    double const ns = ms * 1e6 / b->n / b->n;
    bench_row_s row;
    memset(&row, 0, sizeof row);
    row.group = "pairs";
    row.workload = b->name;
    row.method = method;
    row.n = b->n;
    row.ms = ms;
    printf("%-17s %-36s", b->name, method);
    bench_number(ms, 9);
    bench_number(ns, 9);
    bench_number(1 / ns, 10);
    bench_number(plain_ms / ms, 12);
    bench_number(theirs_ns, 10);
    printf("\n");
    fflush(stdout);
    bench_csv(&row);
}

#ifdef __AVX2__
enum { NATIVE = 1 };
#else
enum { NATIVE = 0 };
#endif
/* double v2, double native, float v2, float native */
enum { KIND = (sizeof(nbody_real) == sizeof(float) ? 2 : 0) + NATIVE };

static void check_direct(const job *j)
{
    /* section 2 allows a float sum in order 1e-5 */
    double const most = sizeof(nbody_real) == sizeof(float) ? 1e-6 : 1e-14;
    nbody_error error;
    must(nbody_estimate(&j->sim, j->acc, 200, 1, &error));
    bench_check(error.share <= most, "DIRECT: more than rounding");
}

static void pairs_rows(int32_t n, double softening)
{
    /* nbody.md section 3: terms in runs of 64, by KIND */
    static const double theirs[] = {1.96, 0.89, 0.69, 0.30};
    bodies b = square_bodies(n, softening);
    job j = new_job(&b, direct_desc(&b));
    double const plain = measure(work_plain, &j, BUDGET_MS);
    pairs_line(&b, "plain loop", plain, plain, 0);
    pairs_line(&b, "DIRECT, 1/d^2", measure(work_forces, &j, BUDGET_MS), plain, theirs[KIND]);
    check_direct(&j);
    j.desc.law = NBODY_INVERSE;
    pairs_line(&b, "DIRECT, 1/d", measure(work_forces, &j, BUDGET_MS), plain, 0);
    check_direct(&j);
    j.desc.law = NBODY_INVERSE_SQUARE;
    j.potential = (nbody_real *)bench_alloc((size_t)n * sizeof *j.potential);
    pairs_line(&b, "DIRECT, 1/d^2, with potentials", measure(work_forces, &j, BUDGET_MS), plain, 0);
    j.desc.law = NBODY_INVERSE;
    pairs_line(&b, "DIRECT, 1/d, with potentials", measure(work_forces, &j, BUDGET_MS), plain, 0);
    free_job(&j);
    free_bodies(&b);
}

static void bench_pairs(int32_t n)
{
    printf("\npairs: the direct sum\n%-17s %-36s %9s %9s %10s %12s %10s\n", "workload", "method",
           "ms", "ns/pair", "G pairs/s", "x plain loop", "nbody.md");
    pairs_rows(n, 0);
    pairs_rows(n, SOFT);
}

/* ---- one evaluation as a line of a table ---- */

#define ERROR_TERMS 6e7 /* of the direct sums that an error is found by */

static nbody_error error_of(const job *j, double terms)
{
    nbody_error errors[ESTIMATES];
    uint32_t k;
    for (k = 0; k < ESTIMATES; k++)
        must(nbody_estimate(&j->sim, j->acc, samples_for(j->b->n, terms), k + 1, &errors[k]));
    return median_error(errors);
}

/* Times it, counts what the tree cost, and compares a sample with the direct sum. */
static measured evaluate(job *j, const char *group, const char *method, int budget_ms)
{
    nbody_counts counts;
    measured r;
    memset(&r, 0, sizeof r);
    r.group = group;
    r.of = j->b;
    snprintf(r.method, sizeof r.method, "%s", method);
    r.ms = measure(work_forces, j, budget_ms);
    must(nbody_count(&j->sim, &counts));
    r.error = error_of(j, ERROR_TERMS);
    set_counts(&r, &counts);
    return r;
}

static measured evaluate_once(const bodies *b, nbody_desc desc, const char *group,
                              const char *method, int budget_ms)
{
    job j = new_job(b, desc);
    measured const r = evaluate(&j, group, method, budget_ms);
    free_job(&j);
    return r;
}

/* ---- methods: time against n ---- */

/* nbody.md section 6, in seconds: by KIND, and 10k, 100k, 1M. */
static const double direct_s[4][3] = {
    {0.196, 19.6, 2027}, {0.089, 8.84, 928}, {0.070, 6.97, 725}, {0.030, 3.00, 319}};
static const double method_s[SETTINGS][4][3] = {
    {{0.060, 1.11, 16.5}, {0.028, 0.508, 7.51}, {0.022, 0.398, 5.93}, {0.010, 0.176, 2.63}},
    {{0.046, 0.550, 5.73}, {0.021, 0.254, 2.65}, {0.017, 0.199, 2.08}, {0.0078, 0.090, 0.953}},
    {{0.018, 0.208, 2.45}, {0.0089, 0.104, 1.19}, {0.0068, 0.080, 0.920}, {0.0034, 0.042, 0.458}},
    {{0.013, 0.149, 1.68}, {0.0067, 0.080, 0.855}, {0.0051, 0.062, 0.663}, {0.0029, 0.036, 0.366}},
    {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}},
    {{0.040, 0.499, 5.96}, {0.021, 0.257, 2.94}, {0.016, 0.197, 2.27}, {0.0088, 0.112, 1.19}}
};

/* How many times the direct sum: what the prototype of nbody.md reached; VP and FN8 may take 1.25
   times as long (section 7). */
static void set_bars(measured *r, int s)
{
    int const k = size_index(r->of->n) - 1;
    r->goal = error_goal(s, r->of->n);
    if (k < 0 || method_s[s][KIND][k] <= 0) return;
    r->bar_ms = (s <= FN8 ? 1.25 : 1) * 1e3 * method_s[s][KIND][k];
    r->bar_x = 1e3 * direct_s[KIND][k] / r->bar_ms;
}

static measured method_row(const bodies *b, int s, const char *name, nbody_desc desc)
{
    job j = new_job(b, desc);
    measured r = evaluate(&j, "methods", name, BUDGET_MS);
    if (b->softening <= 0) {
        set_bars(&r, s);
        /* too few to decide */
        if (r.goal > 0 && r.error.mean > 0.7 * r.goal && b->n > 100000) r.error = error_of(&j, 1e9);
        check_error(s, b, &r.error, name);
    }
    print_result(&r);
    free_job(&j);
    return r;
}

/* The tree of the source, and one as deep as each place needs. The faster of the two. */
static measured method_rows(const bodies *b, int s)
{
    char name[40];
    measured const even = method_row(b, s, settings[s].name, even_desc_of(&settings[s], b));
    measured automatic;
    snprintf(name, sizeof name, "%s, automatic depth", settings[s].name);
    automatic = method_row(b, s, name, desc_of(&settings[s], b));
    return automatic.ms < even.ms ? automatic : even;
}

static void goal_line(const char *text, double got, double wanted, double error,
                      double error_wanted)
{
    printf("  goal: %s: %.2f times (wanted %.2f) %s, mean error %.1e (wanted %.1e) %s\n", text, got,
           wanted, verdict(got <= wanted), error, error_wanted, verdict(error <= error_wanted));
}

/* nbody.md section 7, (a) and (d): eighth order in the time of the source's force nodes, or in
   less. */
static void show_goals(const bodies *b, const measured *best)
{
    int const doubles = sizeof(nbody_real) == sizeof(double);
    double const ratio = best[C8].ms / best[FN8].ms;
    if (b->n != 100000 || b->softening > 0) return;
    goal_line("(a) C8 in FN8's time", ratio, 1, best[C8].error.mean, doubles ? 2e-7 : 1e-6);
    if (doubles)
        goal_line("(d) 4e-7, 1.6 times faster than FN8", ratio, 1 / 1.6, best[C8].error.mean, 4e-7);
}

static void direct_row(bodies *b)
{
    measured r;
    memset(&r, 0, sizeof r);
    r.group = "methods";
    r.of = b;
    snprintf(r.method, sizeof r.method, b->n <= WHOLE ? "DIRECT" : "DIRECT (10k, scaled)");
    r.levels = 1;
    r.terms = b->n;
    r.ms = b->direct_ms = direct_ms(b);
    print_result(&r);
}

/* The source's "CPU (Optimized)" is 1/25 of such a loop. */
static void plain_row(bodies *b)
{
    bodies part = *b;
    double ms;
    measured r;
    job j;
    if (part.n > WHOLE) part.n = WHOLE;
    j = new_job(&part, direct_desc(&part));
    ms = measure(work_plain, &j, BUDGET_MS);
    free_job(&j);
    memset(&r, 0, sizeof r);
    r.group = "methods";
    r.of = b;
    snprintf(r.method, sizeof r.method, b->n <= WHOLE ? "plain loop" : "plain loop (10k, scaled)");
    r.levels = 1;
    r.terms = b->n;
    r.ms = ms * ((double)b->n / part.n) * ((double)b->n / part.n);
    print_result(&r);
}

static void methods_of(int32_t n, double softening)
{
    bodies b = square_bodies(n, softening);
    measured best[SETTINGS];
    int s;
    direct_row(&b);
    if (softening == 0) plain_row(&b);
    for (s = 0; s < SETTINGS; s++) best[s] = method_rows(&b, s);
    show_goals(&b, best);
    free_bodies(&b);
}

static void bench_methods(int sizes, const int32_t *n)
{
    int k;
    table_title("methods: one evaluation against n (source: Figure 16). bar x: what nbody.md "
                "section 6 reached, times the direct "
                "sum; VP and FN8 may take 1.25 times as long",
                NULL);
    for (k = 0; k < sizes; k++) methods_of(n[k], 0);
    methods_of(n[sizes > 1], SOFT);
}

/* ---- depth: the best number of levels for each n ---- */

enum { SHALLOWEST = 3, DEEPEST = 11, BELOW = 2, ABOVE = 2 };

static double depth_cell(job *j, int32_t levels)
{
    bench_row_s row;
    char name[48];
    memset(&row, 0, sizeof row);
    j->desc.levels = levels;
    snprintf(name, sizeof name, "levels %d", (int)levels);
    row.group = "depth";
    row.workload = j->b->name;
    row.method = name;
    row.n = j->b->n;
    row.ms = measure(work_forces, j, SEARCH_MS);
    bench_cell(&row, row.ms);
    return row.ms;
}

static void depth_line(const bodies *b, int s)
{
    job j = new_job(b, desc_of(&settings[s], b));
    int32_t const ours = nbody_levels_for(&j.desc, b->n);
    int32_t levels, best = 0;
    double best_ms = 0, ours_ms = 0;
    nbody_error error;
    bench_line(settings[s].name);
    for (levels = SHALLOWEST; levels <= DEEPEST; levels++) {
        double const ms =
            levels < ours - BELOW || levels > ours + ABOVE ? 0 : depth_cell(&j, levels);
        if (ms <= 0) { bench_number(0, 9); continue; }
        if (levels == ours) ours_ms = ms;
        if (best == 0 || ms < best_ms) { best = levels; best_ms = ms; }
    }
    j.desc.levels = 0;
    printf(" %6d %10d", (int)best, (int)ours);
    bench_number(best_ms > 0 ? ours_ms / best_ms : 0, 7);
    bench_number(measure(work_forces, &j, SEARCH_MS), 10);
    error = error_of(&j, ERROR_TERMS);
    check_error(s, b, &error, "depth");
    free_job(&j);
}

static void bench_depth(int sizes, const int32_t *n)
{
    int k, s;
    int32_t levels;
    for (k = 0; k < sizes; k++) {
        bodies b = square_bodies(n[k], 0);
        char title[160];
        if (n[k] > 100000 && !bench_named("depth")) { free_bodies(&b); continue; }
        snprintf(title, sizeof title,
                 "depth: ms by levels, %s; `for`: nbody_levels_for, x: its time over the best; "
                 "`auto`: ms at "
                 "automatic depth",
                 b.name);
        bench_matrix(title, "levels");
        for (levels = SHALLOWEST; levels <= DEEPEST; levels++) printf(" %9d", (int)levels);
        printf(" %6s %10s %7s %10s", "best", "for", "x", "auto");
        for (s = 0; s < SETTINGS; s++) depth_line(&b, s);
        printf("\n");
        free_bodies(&b);
    }
    print_source_depth();
}

/* ---- direction, length: the source's Figures 17 and 18 ---- */

static references reference_of(const bodies *b, int32_t i)
{
    const nbody_real *pos = b->pos, *own = pos + 2 * (size_t)i;
    double const soft2 = b->softening * b->softening;
    float x = 0, y = 0;
    references r;
    int32_t k;
    r.exact[0] = r.exact[1] = 0;
    for (k = 0; k < b->n; k++) {
        double const dx = (double)pos[2 * (size_t)k] - (double)own[0],
                     dy = (double)pos[2 * (size_t)k + 1] - (double)own[1];
        double const d2 = dx * dx + dy * dy + soft2,
                     g = k == i || d2 <= 0 ? 0 : 1 / (d2 * sqrt(d2));
        float const ex = (float)pos[2 * (size_t)k] - (float)own[0],
                    ey = (float)pos[2 * (size_t)k + 1] - (float)own[1];
        float const e2 = ex * ex + ey * ey + (float)soft2,
                    h = k == i || e2 <= 0 ? 0 : 1 / (e2 * sqrtf(e2));
        r.exact[0] += g * dx;
        r.exact[1] += g * dy;
        x += h * ex;
        y += h * ey;
    }
    r.plain[0] = (double)x;
    r.plain[1] = (double)y;
    return r;
}

/* acc: of the sample, or of all bodies. */
static void add_all(deviations *all, int line, int size, const nbody_real *acc, int of_all,
                    const references *r, int32_t samples, int32_t n)
{
    int32_t k;
    for (k = 0; k < samples; k++) {
        const nbody_real *from = acc + 2 * (size_t)(of_all ? sample_of(k, samples, n) : k);
        double const a[2] = {(double)from[0], (double)from[1]};
        add_sample(all, line, size, a, &r[k], samples);
    }
}

/* Where all bodies are the sample, nbody_estimate must find the same. */
static void check_estimate(const job *j, const deviations *all, int line, int size)
{
    deviation const d = all->exact[line][size];
    nbody_error e;
    must(nbody_estimate(&j->sim, j->acc, j->b->n, 1, &e));
    bench_check_total(e.samples, j->b->n, "nbody_estimate: not all bodies");
    bench_check(fabs(e.length - d.length) <= 1e-3 * d.length,
                "nbody_estimate: another error in length");
    bench_check(fabs(e.direction * DEGREES - d.degrees) <= 1e-3 * d.degrees,
                "nbody_estimate: another error in direction");
}

static void deviations_of(deviations *all, int size, int32_t n)
{
    bodies b = square_bodies(n, 0);
    int32_t const samples = n <= 2000 ? n : ESTIMATES * samples_for(n, ERROR_TERMS);
    references *r = (references *)bench_alloc((size_t)samples * sizeof *r);
    job direct = new_points(&b, samples);
    int32_t k;
    int s;
    for (k = 0; k < samples; k++) r[k] = reference_of(&b, sample_of(k, samples, n));
    for (k = 0; k < samples; k++) add_sample(all, LINE_PLAIN, size, r[k].plain, &r[k], samples);
    work_points(&direct);
    add_all(all, LINE_DIRECT, size, direct.acc, 0, r, samples, n);
    free_job(&direct);
    for (s = 0; s < SETTINGS; s++) {
        job j = new_job(&b, even_desc_of(&settings[s], &b));
        work_forces(&j);
        add_all(all, LINE_METHODS + s, size, j.acc, 1, r, samples, n);
        if (samples == n) check_estimate(&j, all, LINE_METHODS + s, size);
        free_job(&j);
    }
    free(r);
    free_bodies(&b);
}

static void bench_deviations(int sizes, const int32_t *n)
{
    deviations *all = (deviations *)bench_alloc(sizeof *all);
    int k;
    memset(all, 0, sizeof *all);
    for (k = 0; k < sizes; k++) deviations_of(all, k, n[k]);
    if (bench_wants("direction")) show_deviations("direction", all, sizes, n);
    if (bench_wants("length")) show_deviations("length", all, sizes, n);
    check_growth(all, sizes);
    free(all);
}

/* ---- pareto: error against time ---- */

enum { MOST_RESULTS = 160 };

typedef struct collection { measured all[MOST_RESULTS]; int count; } collection;

/* One setting, with leaves of the default size times num / den. */
static void collect(collection *c, const bodies *b, nbody_desc desc, const char *name, int num,
                    int den)
{
    char text[64];
    int32_t const leaf = default_leaf(&desc, b->n);
    desc.leaf = leaf * num / den > 0 ? leaf * num / den : 1;
    snprintf(text, sizeof text, "%s, leaf %d", name, (int)desc.leaf);
    if (c->count < MOST_RESULTS)
        c->all[c->count++] = evaluate_once(b, desc, "pareto", text, SEARCH_MS);
}

static void collect_virtual(collection *c, const bodies *b, int num, int den)
{
    char name[40];
    int32_t order, subcells;
    for (order = 1; order <= 2; order++)
        for (subcells = 2; subcells <= 8; subcells *= 2) {
            nbody_desc desc = desc_of(&settings[VP], b);
            desc.order = order;
            desc.subcells = subcells;
            snprintf(name, sizeof name, "VP order %d, %d^2", (int)order, (int)subcells);
            collect(c, b, desc, name, num, den);
        }
}

static void collect_centres(collection *c, const bodies *b, int num, int den)
{
    static const int32_t orders[] = {1, 4, 6};
    char name[40];
    int32_t subcells;
    int k;
    for (k = 0; k < 3; k++)
        for (subcells = k ? 4 : 2; subcells <= 8; subcells *= 2) {
            nbody_desc desc = desc_of(&settings[FN8], b);
            desc.order = orders[k];
            desc.subcells = subcells;
            snprintf(name, sizeof name, "FN order %d, centres %d^2", (int)orders[k], (int)subcells);
            collect(c, b, desc, name, num, den);
        }
}

static void collect_chebyshev(collection *c, const bodies *b, int num, int den)
{
    char name[40];
    int32_t order;
    for (order = 2; order <= NBODY_MAX_ORDER; order++) {
        nbody_desc desc = desc_of(&settings[C4], b);
        desc.order = order;
        snprintf(name, sizeof name, "C%d", (int)order);
        collect(c, b, desc, name, num, den);
    }
}

static void bench_pareto(int32_t n)
{
    static const int shares[3][2] = {{1, 1}, {1, 2}, {2, 1}};
    collection *c = (collection *)bench_alloc(sizeof *c);
    bodies b = square_bodies(n, 0);
    int k;
    c->count = 0;
    b.direct_ms = pair_ms * n * n;
    for (k = 0; k < (bench_named("pareto") ? 3 : 1); k++) {
        collect_virtual(c, &b, shares[k][0], shares[k][1]);
        collect_centres(c, &b, shares[k][0], shares[k][1]);
        collect_chebyshev(c, &b, shares[k][0], shares[k][1]);
    }
    table_title(
        "pareto: error against time at automatic depth; < : faster than all that are more exact",
        NULL);
    print_pareto(c->all, c->count);
    free(c);
    free_bodies(&b);
}

/* ---- leaf: at how many bodies should a cell be divided? ---- */

enum { LEAVES = 11 };
static const int32_t leaf_list[LEAVES] = {8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256};

/* ns per body: the geometric mean over LEAF_SIZES numbers of bodies. leaf 0: the default. */
static double leaf_ns(const bodies *all, nbody_desc desc, int32_t leaf)
{
    double product = 1;
    int k;
    desc.leaf = leaf;
    for (k = 0; k < LEAF_SIZES; k++) {
        job j = new_job(&all[k], desc);
        product *= 1e6 * measure(work_forces, &j, SEARCH_MS / LEAF_SIZES) / all[k].n;
        if (leaf == 0 && k == 0) bench_check(error_of(&j, ERROR_TERMS).mean_share <= 5e-3, "leaf");
        free_job(&j);
    }
    return pow(product, 1.0 / LEAF_SIZES);
}

static void leaf_line(const bodies *all, const char *name, nbody_desc desc, int step)
{
    double best_ns = 0, ours_ns;
    int32_t best = 0;
    int k;
    bench_line(name);
    for (k = 0; k < LEAVES; k++) {
        double ns;
        if (k % step) { bench_number(0, 9); continue; }
        ns = leaf_ns(all, desc, leaf_list[k]);
        leaf_cell(all, name, leaf_list[k], ns);
        if (best == 0 || ns < best_ns) { best = leaf_list[k]; best_ns = ns; }
    }
    ours_ns = leaf_ns(all, desc, 0);
    printf(" %6d %8d", (int)best, (int)default_leaf(&desc, all[0].n));
    bench_number(ours_ns, 9);
    bench_number(ours_ns / best_ns, 7);
}

static void bench_leaf(int32_t n)
{
    int const more = bench_named("leaf"), step = more ? 1 : 2;
    bodies all[LEAF_SIZES];
    nbody_desc desc;
    char name[24];
    int32_t order;
    int k;
    leaf_bodies(all, n);
    leaf_title(n);
    for (k = 0; k < LEAVES; k++) printf(" %9d", (int)leaf_list[k]);
    printf(" %6s %8s %9s %7s", "best", "default", "ns", "x");
    desc = desc_of(&settings[VP], all);
    leaf_line(all, "VP order 1", desc, step);
    desc.order = 2;
    if (more) leaf_line(all, "VP order 2", desc, step);
    leaf_line(all, "FN order 1", desc_of(&settings[FN8], all), step);
    if (more) leaf_line(all, "FN order 4, MASS_CENTRES", desc_of(&settings[FN4C], all), step);
    for (order = 2; order <= NBODY_MAX_ORDER; order++) {
        if (!more && order != 4 && order != 6 && order != 8) continue;
        desc = desc_of(&settings[C4], all);
        desc.order = order;
        snprintf(name, sizeof name, "FN order %d", (int)order);
        leaf_line(all, name, desc, step);
    }
    printf("\n");
    for (k = 0; k < LEAF_SIZES; k++) free_bodies(&all[k]);
}

/* ---- clumps: where bodies crowd ---- */

/* The tree of the source at the depth that is best here: deeper, until it takes longer. */
static nbody_desc best_even(const bodies *b, int s)
{
    nbody_desc desc = even_desc_of(&settings[s], b), best = desc;
    job j = new_job(b, desc);
    double best_ms = 0;
    for (; j.desc.levels <= 13; j.desc.levels++) {
        double const ms = bench_sample_ms(NULL, work_forces, &j);
        if (best_ms > 0 && ms > 1.2 * best_ms) break;
        if (best_ms <= 0 || ms < best_ms) { best_ms = ms; best = j.desc; }
    }
    free_job(&j);
    return best;
}

static void clump_row(const bodies *b, int s, const char *how, nbody_desc desc, double *uniform)
{
    char name[40];
    measured r;
    snprintf(name, sizeof name, "%s, %s", settings[s].name, how);
    r = evaluate_once(b, desc, "clumps", name, SEARCH_MS);
    if (*uniform <= 0) *uniform = r.ms;
    r.base_ms = *uniform;
    print_result(&r);
    check_error(s, b, &r.error, name);
}

static void bench_clumps(int32_t n)
{
    bodies inputs[3];
    double uniform[SETTINGS] = {0};
    int k, s;
    inputs[0] = square_bodies(n, 0);
    inputs[1] = clump_bodies(n);
    inputs[2] = galaxy_bodies(n);
    table_title("clumps: the tree that adapts, and the source's tree at its best depth, on crowded "
                "input; goal of nbody.md "
                "(section 7, c): adaptive no slower than uniform",
                "uniform");
    for (k = 0; k < 3; k++) {
        const bodies *b = &inputs[k];
        inputs[k].direct_ms = pair_ms * n * n;
        for (s = 0; s < SETTINGS; s++) {
            if (s == FN4C) continue;
            clump_row(b, s, "automatic depth", desc_of(&settings[s], b), &uniform[s]);
            if (k == 0 || (s != FN8 && s != C4)) continue; /* of the others the search takes long */
            clump_row(b, s, "one depth", best_even(b, s), &uniform[s]);
        }
        free_bodies(&inputs[k]);
    }
}

/* ---- memory ---- */

/* After nbody_reserve, an evaluation takes no more. */
static double reserved_bytes(const bodies *b, nbody_desc desc)
{
    job j = new_job(b, desc);
    int64_t bytes;
    must(nbody_reserve(&j.sim, &desc, b->n));
    bytes = nbody_bytes(&j.sim);
    work_forces(&j);
    bench_check(nbody_bytes(&j.sim) <= bytes, "nbody_reserve: too little");
    free_job(&j);
    return (double)bytes;
}

static double used_bytes(const bodies *b, nbody_desc desc, nbody_counts *counts)
{
    job j = new_job(b, desc);
    double bytes;
    work_forces(&j);
    must(nbody_count(&j.sim, counts));
    bytes = (double)nbody_bytes(&j.sim);
    free_job(&j);
    return bytes;
}

static void memory_line(const bodies *b, int s)
{
    nbody_desc const desc = desc_of(&settings[s], b);
    nbody_counts counts, even;
    double const automatic = used_bytes(b, desc, &counts),
                 one_depth = used_bytes(b, even_desc_of(&settings[s], b), &even);
    double const reserved = reserved_bytes(b, desc);
    printf("%-17s %-8s %9d", b->name, settings[s].name, (int)counts.cells);
    bench_number(automatic / b->n, 12);
    bench_number(one_depth / b->n, 12);
    bench_number(reserved / b->n, 12);
    printf("\n");
}

static void bench_memory(int32_t n)
{
    int k, s;
    printf("\nmemory: bytes per body\n%-17s %-8s %9s %12s %12s %12s\n", "workload", "method",
           "cells", "automatic", "one depth", "reserved");
    for (k = 0; k < 2; k++) {
        bodies b = square_bodies(k ? n : n / 10, 0);
        for (s = 0; s < SETTINGS; s++) memory_line(&b, s);
        free_bodies(&b);
    }
}

/* ---- scaling: time and memory against n ---- */

static void scaling_row(int32_t n)
{
    bodies b = square_bodies(n, 0);
    job j = new_job(&b, desc_of(&settings[C4], &b));
    double const ms = bench_cpu_once_ms(work_forces, &j);
    bench_scaling_row("scaling", "uniform", "nbody: forces, order 4", n, ms,
                      (double)nbody_bytes(&j.sim) / n);
    bench_check(error_of(&j, 1e7).mean_share <= share_bar(C4), "scaling: forces");
    free_job(&j);
    free_bodies(&b);
}

/* ---- function: laws of the caller, error by order ---- */

/* *user: an inverse length, or a length. Lengths of the square: 1. */
static double yukawa(double d, void *user)
{
    double const k = *(const double *)user;
    return (1 + k * d) * exp(-k * d) / (d * d);
}

static double bell(double d, void *user)
{
    double const w = *(const double *)user;
    return d * exp(-d * d / (w * w)) / w;
}

static double soft_log(double d, void *user)
{
    double const s = *(const double *)user;
    return d / (d * d + s * s);
}

static void function_line(const bodies *b, const char *name, double (*force)(double, void *),
                          double number)
{
    int order;
    bench_line(name);
    for (order = 2; order <= NBODY_MAX_ORDER; order += 2) {
        nbody_desc desc;
        nbody_error error;
        job j;
        memset(&desc, 0, sizeof desc);
        desc.method = NBODY_FORCE_NODES;
        desc.order = order;
        desc.law = NBODY_FUNCTION;
        desc.function.force = force;
        desc.function.user = &number;
        j = new_job(b, desc);
        work_forces(&j);
        must(nbody_estimate(&j.sim, j.acc, 300, 1, &error));
        printf(" %9.1e %9.1e", error.mean_share, error.share);
        fflush(stdout);
        bench_value("function", b->name, name, order, error.mean_share, "of the sum of |terms|");
        bench_check(error.mean_share <= (order < 4 ? 5e-2 : order < 8 ? 2e-3 : 1e-6), name);
        free_job(&j);
    }
}

static void bench_function(int32_t n)
{
    bodies b = bench.small ? square_bodies(n, 0) : clump_bodies(n);
    char title[200];
    int order;
    snprintf(title, sizeof title, "function: NBODY_FUNCTION, %s: mean and largest error of a force "
             "as a share of the sum of its |terms|, by order", b.name);
    bench_matrix(title, "law");
    for (order = 2; order <= NBODY_MAX_ORDER; order += 2) printf(" %9s %9d", "", order);
    function_line(&b, "exp(-d/0.1)/d", yukawa, 10);
    function_line(&b, "exp(-d/0.01)/d", yukawa, 100);
    function_line(&b, "exp(-(d/0.3)^2)", bell, 0.3);
    function_line(&b, "exp(-(d/0.03)^2)", bell, 0.03);
    function_line(&b, "ln(d^2+0.02^2)", soft_log, 0.02);
    printf("\n");
    free_bodies(&b);
}

/* ---- orders: errors of forces and potentials, by order, against NBODY_DIRECT ---- */

typedef struct fields { nbody_real *acc, *potential; } fields;

static fields fields_by(const bodies *b, nbody_desc desc, nbody_method method)
{
    fields f;
    nbody sim = {0};
    desc.method = method;
    f.acc = (nbody_real *)bench_alloc(2 * (size_t)b->n * sizeof *f.acc);
    f.potential = (nbody_real *)bench_alloc((size_t)b->n * sizeof *f.potential);
    must(nbody_fields(&sim, &desc, b->pos, 0, NULL, b->n, f.acc, f.potential));
    nbody_free(&sim);
    return f;
}

/* Mean of |a - b| / |b| of forces; of potentials mean |a - b|, of all masses and the side: 1. */
static double mean_error(const fields *a, const fields *b, int32_t n, int potential)
{
    double sum = 0;
    int32_t i;
    for (i = 0; i < n; i++) {
        const nbody_real *p = a->acc + 2 * i, *q = b->acc + 2 * i;
        double const away = hypot((double)p[0] - (double)q[0], (double)p[1] - (double)q[1]);
        if (potential) sum += fabs((double)a->potential[i] - (double)b->potential[i]) / n;
        else sum += away / hypot((double)q[0], (double)q[1]);
    }
    return sum / n;
}

static void orders_line(const bodies *b, const char *name, nbody_law law, int periodic)
{
    nbody_desc desc;
    fields exact;
    double share[2][NBODY_MAX_ORDER + 1];
    char title[60];
    int order, k;
    memset(&desc, 0, sizeof desc);
    desc.law = law;
    desc.periodic = periodic;
    desc.size = 1;
    exact = fields_by(b, desc, NBODY_DIRECT);
    for (order = 2; order <= NBODY_MAX_ORDER; order += 2) {
        fields f;
        desc.order = order;
        f = fields_by(b, desc, NBODY_FORCE_NODES);
        for (k = 0; k < 2; k++) share[k][order] = mean_error(&f, &exact, b->n, k);
        free(f.acc);
        free(f.potential);
    }
    for (k = 0; k < 2; k++) {
        snprintf(title, sizeof title, "%s, %s", name, k ? "potentials" : "forces");
        bench_line(title);
        for (order = 2; order <= NBODY_MAX_ORDER; order += 2) {
            printf(" %9.1e", share[k][order]);
            bench_value("orders", b->name, title, order, share[k][order], "mean error");
            bench_check(share[k][order] <= (order < 4 ? 2e-1 : order < 8 ? 2e-3 : 1e-5), title);
        }
    }
    free(exact.acc);
    free(exact.potential);
}

static void bench_orders(int32_t n)
{
    bodies b = square_bodies(n, 0);
    int order;
    bench_matrix("orders: mean error of NBODY_FORCE_NODES, of forces as a share of each, of "
                 "potentials where all masses are 1 and the side is 1, by order", "law");
    for (order = 2; order <= NBODY_MAX_ORDER; order += 2) printf(" %9d", order);
    orders_line(&b, "1/d^2", NBODY_INVERSE_SQUARE, 0);
    orders_line(&b, "1/d", NBODY_INVERSE, 0);
    orders_line(&b, "1/d^2, periodic", NBODY_INVERSE_SQUARE, 1);
    orders_line(&b, "1/d, periodic", NBODY_INVERSE, 1);
    printf("\n");
    free_bodies(&b);
}

/* ---- law: a function that the file names, beside the same by pointer; the same bits ---- */

static double called_tail(double d, void *user) { return heavy_tail(d, user); }

static double called_tail_potential(double d, void *user) { return heavy_tail_potential(d, user); }

static void law_line(const bodies *b, int order, int32_t leaf, int potential)
{
    size_t const bytes = (size_t)b->n * sizeof(nbody_real);
    double ms[2];
    char name[60];
    job j[2];
    int k;
    if (leaf < 0) snprintf(name, sizeof name, "order %d, NBODY_AUTO", order);
    else if (order) snprintf(name, sizeof name, "order %d, leaf %d", order, (int)leaf);
    else snprintf(name, sizeof name, "DIRECT%s", potential ? ", with potentials" : "");
    for (k = 0; k < 2; k++) {
        nbody_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.method = leaf < 0 ? NBODY_AUTO : order ? NBODY_FORCE_NODES : NBODY_DIRECT;
        desc.order = order;
        desc.leaf = leaf < 0 ? 0 : leaf;
        desc.law = NBODY_FUNCTION;
        desc.function.force = k ? heavy_tail : called_tail;
        desc.function.potential = k ? heavy_tail_potential : called_tail_potential;
        j[k] = new_job(b, desc);
        if (potential) j[k].potential = (nbody_real *)bench_alloc(bytes);
        ms[k] = measure(work_forces, &j[k], SEARCH_MS);
    }
    bench_check(memcmp(j[0].acc, j[1].acc, 2 * bytes) == 0, "law: other bits");
    printf("%-17s %-36s", b->name, name);
    bench_number(ms[0], 9);
    bench_number(ms[1], 9);
    bench_number(ms[1] / ms[0], 9);
    printf("\n");
    fflush(stdout);
    bench_value("law", b->name, name, b->n, ms[1] / ms[0], "of the time by pointer");
    for (k = 0; k < 2; k++) free_job(&j[k]);
}

static void bench_law(int32_t n)
{
    static const int32_t leaves[] = {8, 16, 32, 64, 0, -1};
    int shape, order, l;
    printf("\nlaw: NBODY_FUNCTION, the law of t-SNE, by pointer and by name; orders with "
           "potentials, leaf 0: the default\n%-17s %-36s %9s %9s %9s\n", "workload", "method",
           "pointer", "name ms", "ratio");
    for (shape = 0; shape < 2; shape++) {
        bodies b = shape ? clump_bodies(n) : square_bodies(n, 0);
        law_line(&b, 0, 0, 0);
        law_line(&b, 0, 0, 1);
        for (order = 2; order <= 6; order += 2)
            for (l = 0; l < 6; l++) law_line(&b, order, leaves[l], 1);
        free_bodies(&b);
    }
}

/* ---- points: nbody_fields_at beside the evaluation of as many bodies ---- */

static void work_build(void *user)
{
    job *j = (job *)user;
    must(nbody_build(&j->sim, &j->desc, j->b->pos, 0, NULL, j->b->n));
}

/* Points where bodies are, of a tree that is built. */
static void ask_at_bodies(job *j)
{
    size_t const bytes = 2 * (size_t)j->b->n * sizeof(nbody_real);
    j->points = (nbody_real *)bench_alloc(bytes);
    memcpy(j->points, j->b->pos, bytes);
    j->count = j->b->n;
    work_build(j);
}

static void points_line(const bodies *b, const char *name, nbody_desc desc)
{
    job whole = new_job(b, desc), at = new_job(b, desc);
    double ms, ms_at;
    ask_at_bodies(&at);
    ms = measure(work_forces, &whole, BUDGET_MS);
    ms_at = measure(work_points, &at, BUDGET_MS);
    printf("%-17s %-36s", b->name, name);
    bench_number(ms, 9);
    bench_number(ms_at, 9);
    bench_number(ms_at / ms, 9);
    printf("\n");
    fflush(stdout);
    bench_value("points", b->name, name, b->n, ms_at / ms, "of the time of bodies");
    free_job(&whole);
    free_job(&at);
}

static void points_lines(const bodies *b)
{
    static const struct { const char *name; nbody_law law; int order; nbody_core core;
                          double softening; int periodic; } rows[] = {
        {"C4", NBODY_INVERSE_SQUARE, 4, NBODY_PLUMMER, 0, 0},
        {"C8", NBODY_INVERSE_SQUARE, 8, NBODY_PLUMMER, 0, 0},
        {"C4, 1/d", NBODY_INVERSE, 4, NBODY_PLUMMER, 0, 0},
        {"C8, 1/d", NBODY_INVERSE, 8, NBODY_PLUMMER, 0, 0},
        {"C4, vortices", NBODY_VORTEX, 4, NBODY_PLUMMER, 0, 0},
        {"C4, vortices, Plummer cores", NBODY_VORTEX, 4, NBODY_PLUMMER, 0.01, 0},
        {"C4, vortices, Gaussian cores", NBODY_VORTEX, 4, NBODY_GAUSSIAN, 0.01, 0},
        {"C4, periodic", NBODY_INVERSE_SQUARE, 4, NBODY_PLUMMER, 0, 1},
        {"C4, 1/d, periodic", NBODY_INVERSE, 4, NBODY_PLUMMER, 0, 1}};
    size_t k;
    for (k = 0; k < sizeof rows / sizeof *rows; k++) {
        nbody_desc d;
        memset(&d, 0, sizeof d);
        d.method = NBODY_FORCE_NODES;
        d.law = rows[k].law;
        d.order = rows[k].order;
        d.core = rows[k].core;
        d.softening = (nbody_real)rows[k].softening;
        d.periodic = rows[k].periodic;
        d.size = 1;
        points_line(b, rows[k].name, d);
    }
}

static void bench_points(int32_t n)
{
    bodies b = square_bodies(n, 0);
    nbody_desc d;
    memset(&d, 0, sizeof d);
    d.method = NBODY_DIRECT;
    printf("\npoints: where the bodies are, in no order; beside the build and the forces of the "
           "bodies\n%-17s %-36s %9s %9s %9s\n", "workload", "method", "bodies ms", "points ms",
           "ratio");
    if (n <= WHOLE) points_line(&b, "DIRECT", d);
    points_lines(&b);
    free_bodies(&b);
}

/* ---- threads: desc.parallel beside serial calls; the same bits ---- */

/* The same work without the hook and with it, in so many tasks: a row of either group. */
typedef void threads_line(const char *workload, const char *method, int64_t n,
                          void (*work)(void *), void *alone, void *together);

static void threads_compare(const char *what, void (*work)(void *), const bodies *b,
                            nbody_desc desc, int32_t tasks, threads_line *line)
{
    size_t const bytes = 2 * (size_t)b->n * sizeof(nbody_real);
    job alone = new_job(b, desc), together;
    desc.parallel.run = parallel_threads;
    desc.parallel.user = &threads.pool;
    desc.parallel.tasks = tasks;
    together = new_job(b, desc);
    memset(alone.acc, 0, bytes); /* a build writes none */
    memset(together.acc, 0, bytes);
    if (work == work_points) {
        ask_at_bodies(&alone);
        ask_at_bodies(&together);
    }
    line(b->name, what, b->n, work, &alone, &together);
    bench_check(memcmp(alone.acc, together.acc, bytes) == 0, "threads: the same bits");
    free_job(&alone);
    free_job(&together);
}

static void threads_try(const char *what, void (*work)(void *), const bodies *b, nbody_desc desc)
{
    threads_compare(what, work, b, desc, threads.tasks, threads_row);
}

static void threads_methods(const bodies *b)
{
    nbody_desc d;
    memset(&d, 0, sizeof d);
    d.method = NBODY_FORCE_NODES;
    threads_try("build", work_build, b, d);
    threads_try("C4", work_forces, b, d);
    d.order = 8;
    threads_try("C8", work_forces, b, d);
    d.law = NBODY_INVERSE;
    threads_try("C8, 1/d", work_forces, b, d);
    d.law = NBODY_INVERSE_SQUARE;
    d.order = 4;
    d.softening = (nbody_real)SOFT;
    threads_try("C4, softened", work_forces, b, d);
    threads_try("C4, at points", work_points, b, d);
    memset(&d, 0, sizeof d);
    d.method = NBODY_VIRTUAL_PARTICLES;
    threads_try("VP", work_forces, b, d);
}

static void bench_threads(int32_t n)
{
    bodies all = square_bodies(n, 0), fewer = square_bodies(n < WHOLE ? n : WHOLE, 0);
    bodies few = square_bodies(1000, 0);
    nbody_desc d;
    memset(&d, 0, sizeof d);
    threads_begin();
    threads_methods(&all);
    d.method = NBODY_DIRECT;
    threads_try("DIRECT", work_forces, &fewer, d);
    d.method = NBODY_FORCE_NODES;
    threads_try("C4", work_forces, &few, d);
    threads_end();
    free_bodies(&all);
    free_bodies(&fewer);
    free_bodies(&few);
}

/* ---- overhead: the hook where it brings nothing ---- */

static void overhead_of(int32_t n, int32_t tasks)
{
    bodies b = square_bodies(n, 0);
    nbody_desc d;
    memset(&d, 0, sizeof d);
    d.method = NBODY_FORCE_NODES;
    threads_compare("build", work_build, &b, d, tasks, overhead_row);
    threads_compare("C4", work_forces, &b, d, tasks, overhead_row);
    d.method = NBODY_VIRTUAL_PARTICLES;
    if (n == OVERHEAD_SMALL) threads_compare("VP", work_forces, &b, d, tasks, overhead_row);
    d.method = NBODY_DIRECT;
    if (n == OVERHEAD_SMALL) threads_compare("DIRECT", work_forces, &b, d, tasks, overhead_row);
    free_bodies(&b);
}

static void bench_overhead(int32_t n)
{
    overhead_begin();
    overhead_of(n, 1);
    overhead_of(OVERHEAD_SMALL, threads.tasks);
    overhead_end();
}

/* ---- sets: several sets of masses at once ---- */

enum { SETS = 4 };

typedef struct sets_job {
    job calls, sets;
    nbody_real *mass, *acc[2], *potential[2]; /* of SETS sets: by calls, and at once */
} sets_job;

static void work_calls(void *user)
{
    sets_job *j = (sets_job *)user;
    size_t const n = (size_t)j->calls.b->n;
    size_t s;
    for (s = 0; s < SETS; s++)
        must(nbody_fields(&j->calls.sim, &j->calls.desc, j->calls.b->pos, 0, j->mass + s * n,
                          j->calls.b->n, j->acc[0] + 2 * s * n,
                          j->potential[0] ? j->potential[0] + s * n : NULL));
}

static void work_sets(void *user)
{
    sets_job *j = (sets_job *)user;
    must(nbody_build(&j->sets.sim, &j->sets.desc, j->sets.b->pos, 0, NULL, j->sets.b->n));
    must(nbody_fields_sets(&j->sets.sim, SETS, j->mass, j->acc[1], j->potential[1]));
}

static void sets_line(const bodies *b, const char *name, nbody_desc desc, int potential)
{
    size_t const all = SETS * (size_t)b->n;
    bench_row_s row;
    sets_job j;
    double calls, sets;
    size_t i;
    int k;
    j.calls = new_job(b, desc);
    j.sets = new_job(b, desc);
    j.mass = (nbody_real *)bench_alloc(all * sizeof *j.mass);
    for (i = 0; i < all; i++) j.mass[i] = (nbody_real)(1 + i % 7);
    for (k = 0; k < 2; k++) {
        j.acc[k] = (nbody_real *)bench_alloc(2 * all * sizeof *j.mass);
        j.potential[k] = potential ? (nbody_real *)bench_alloc(all * sizeof *j.mass) : NULL;
    }
    calls = measure(work_calls, &j, BUDGET_MS);
    sets = measure(work_sets, &j, BUDGET_MS);
    bench_check(memcmp(j.acc[0], j.acc[1], 2 * all * sizeof *j.mass) == 0, "sets: other bits");
    memset(&row, 0, sizeof row);
    row.group = "sets";
    row.workload = b->name;
    row.method = name;
    row.n = b->n;
    row.ms = sets;
    printf("%-17s %-36s", b->name, name);
    bench_number(calls, 9);
    bench_number(sets, 9);
    bench_number(sets / calls, 9);
    printf("\n");
    fflush(stdout);
    bench_csv(&row);
    for (k = 0; k < 2; k++) {
        free(j.acc[k]);
        free(j.potential[k]);
    }
    free(j.mass);
    free_job(&j.calls);
    free_job(&j.sets);
}

static void bench_sets(int32_t n)
{
    bodies b = square_bodies(n, 0);
    int law, order;
    printf("\nsets: four sets of masses, by four calls and by one; the build is counted (wanted: "
           "0.4)\n%-17s %-36s %9s %9s %9s\n", "workload", "method", "calls ms", "one ms", "ratio");
    for (law = 0; law < 2; law++) for (order = 0; order <= 8; order += 4) {
        nbody_desc d;
        char name[40];
        int p;
        memset(&d, 0, sizeof d);
        d.method = order ? NBODY_FORCE_NODES : NBODY_DIRECT;
        d.law = (nbody_law)law;
        d.order = order;
        if (!order && n > WHOLE) continue;
        for (p = 0; p < 2; p++) {
            snprintf(name, sizeof name, "%s%s%s", !order ? "DIRECT" : order == 4 ? "C4" : "C8",
                     law ? ", 1/d" : "", p ? ", with potentials" : "");
            sets_line(&b, name, d, p);
        }
    }
    free_bodies(&b);
}

/* ---- defaults: the call that leaves all to the header, beside the best setting ---- */

/* Direct sums of few bodies, where NBODY_AUTO may take them; leaves of many sizes; all leaves on
   one level. */
static void default_trials(trials *t, const bodies *b, nbody_desc desc, nbody_real *potential)
{
    int32_t usual;
    int k;
    add_trial(t, b, desc, potential);
    if (desc.method == NBODY_AUTO) {
        desc.method = NBODY_DIRECT;
        if (b->n <= 10000) add_trial(t, b, desc, potential);
        desc.method = NBODY_FORCE_NODES;
    }
    for (k = 0; k < DEFAULT_LEAVES; k++) {
        desc.leaf = default_leaves[k];
        if (desc.leaf < b->n) add_trial(t, b, desc, potential);
    }
    desc.leaf = 0;
    usual = nbody_levels_for(&desc, b->n);
    for (desc.levels = usual > 3 ? usual - 1 : 3; desc.levels <= usual + 1; desc.levels++)
        add_trial(t, b, desc, potential);
}

static void defaults_line(const bodies *b, int k)
{
    nbody_desc const desc = default_desc_of(k);
    nbody_real *potential = default_cases[k].potential
                                ? (nbody_real *)bench_alloc((size_t)b->n * sizeof *potential)
                                : NULL;
    default_row row = default_row_of(b, default_cases[k].name, &desc, potential != NULL);
    trials t;
    int j;
    t.count = 0;
    default_trials(&t, b, desc, potential);
    run_trials(&t, bench.small ? 1 : b->n > 50000 ? 2 : 7, bench.quick ? 40 : 300);
    row.ms = t.all[0].least;
    for (j = 1; j < t.count; j++) default_trial(&row, &t.all[j].j.desc, t.all[j].least);
    print_default(&row);
    for (j = 0; j < t.count; j++) {
        t.all[j].j.potential = NULL;
        free_job(&t.all[j].j);
    }
    free(potential);
}

/* Half of the bodies at one point, the others spread evenly. */
static bodies parked_bodies(int32_t n)
{
    bodies b = new_bodies("parked", n, 0);
    wl_random r = wl_seed(1);
    int32_t i;
    for (i = 0; i < n; i++) {
        double const x = (double)wl_u(&r), y = (double)wl_u(&r);
        if (i % 2) put_body(&b, i, 0, 0);
        else put_body(&b, i, x, y);
    }
    return b;
}

/* At two points, but for the last bits of floats: trees are deep. */
static bodies deep_bodies(int32_t n)
{
    bodies b = new_bodies("deep", n, 0);
    wl_random r = wl_seed(1);
    int32_t i;
    for (i = 0; i < n; i++) {
        double const x = 1e-6 * (double)wl_u(&r), y = 1e-6 * (double)wl_u(&r);
        if (i % 2) put_body(&b, i, 0.7 + x, 0.959 + y);
        else put_body(&b, i, 0.3 + x, 0.7 + y);
    }
    return b;
}

static void bench_defaults(void)
{
    static const int32_t sizes[] = {600, 1200, 2500, 5000, 10000, 30000, 100000, 1000000};
    bodies (*const make[])(int32_t) = {clump_bodies, galaxy_bodies, parked_bodies, deep_bodies};
    int s, input, k;
    defaults_title();
    for (s = 0; s < (bench.n ? 1 : bench.quick ? 5 : 8); s++)
        for (input = 0; input < 5; input++) {
            int32_t const n = bench.n ? bench.n : sizes[s];
            bodies b = input == 0 ? square_bodies(n, 0) : make[input - 1](n);
            if (!bench.max_n || n <= bench.max_n)
                for (k = 0; k < DEFAULT_CASES; k++) defaults_line(&b, k);
            free_bodies(&b);
        }
    defaults_end();
}

/* ---- all of it ---- */

/* Milliseconds of one term of the direct sum, at WHOLE bodies. */
static double measure_pair(void)
{
    bodies b = square_bodies(bench.small ? 2000 : WHOLE, 0);
    double const ms = direct_ms(&b);
    double const pair = ms / b.n / b.n;
    free_bodies(&b);
    return pair;
}

int main(int argc, char **argv)
{
    int sizes = SIZES;
    const int32_t *n = size_list;
    int32_t large;
    bench_start(argc, argv, "bench_nbody",
                "pairs,methods,depth,direction,length,pareto,leaf,clumps,memory,sets,scaling,"
                "threads,overhead,auto,defaults,function,law,points,orders");
    if (bench.quick) sizes = SIZES - 1;
    if (bench.n) { n = &bench.n; sizes = 1; }
    large = bench.n ? bench.n : 100000;
    pair_ms = measure_pair();
    printf("nbody.h %d, %s, on one CPU core: thread-CPU time, median of %d runs (fewer of what "
           "takes long) after warm-up; compiler "
           "%s; ",
           nbody_version(), sizeof(nbody_real) == sizeof(float) ? "float" : "double", bench.runs,
           __VERSION__);
    bench_print_date();
    bench_print_cpu();
    printf("all-pairs rate of this run: %.3f G terms/s, %.3f ns per pair\n", 1e-6 / pair_ms,
           1e6 * pair_ms);
    if (bench_wants("pairs")) bench_pairs(bench.n ? bench.n : WHOLE);
    if (bench_wants("methods")) bench_methods(sizes, n);
    if (bench_wants("depth")) bench_depth(sizes, n);
    if (bench_wants("direction") || bench_wants("length")) bench_deviations(sizes, n);
    if (bench_wants("pareto")) bench_pareto(large);
    if (bench_wants("leaf"))
        bench_leaf(bench.n ? bench.n : bench_named("leaf") && !bench.quick ? 100000 : 10000);
    if (bench_wants("clumps")) bench_clumps(large);
    if (bench_wants("memory")) bench_memory(large);
    if (bench_wants("sets")) bench_sets(bench.n ? bench.n : WHOLE);
    if (bench_named("scaling"))
        bench_scaling_rows(
            "scaling: time against n, evenly spread bodies; bytes that the header holds",
            scaling_row);
    if (bench_named("threads")) bench_threads(bench.n ? bench.n : 1000000);
    if (bench_named("overhead")) bench_overhead(bench.n ? bench.n : 1000000);
    if (bench_named("auto")) bench_auto();
    if (bench_named("defaults")) bench_defaults();
    if (bench_named("function")) bench_function(bench.n ? bench.n : WHOLE);
    if (bench_named("orders")) bench_orders(bench.n ? bench.n : 4000);
    if (bench_named("law")) bench_law(bench.n ? bench.n : WHOLE);
    if (bench_named("points")) bench_points(bench.n ? bench.n : WHOLE);
    return bench_end();
}
