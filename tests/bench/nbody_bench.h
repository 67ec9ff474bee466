/* nbody_bench.h - what bench_nbody.c and bench_nbody.cu share: bodies, settings, bars, tables. C99
   and C++.
   SPDX-License-Identifier: MIT OR Unlicense

   Include nbody.h and bench.h before.

   A term is one G m d / d^3, of a body, a source or a node; an entry of a table counts as a tenth,
   as in nbody.h's own table. The all-pairs rate is that of the direct sum, in terms/s, measured in
   the same run: `pair_ms` is the time of one term there. */

#ifndef NBODY_BENCH_H
#define NBODY_BENCH_H

#include "tests/common/workloads.h"

static double pair_ms; /* set by main */

/* ---- bodies, each of mass 1 ---- */

typedef struct bodies {
    char name[24];
    int32_t n;
    double softening;
    nbody_real *pos;
    double direct_ms;       /* of the direct sum; 0: not measured yet */
} bodies;

BENCH_FN void name_size(char *text, size_t bytes, int32_t n)
{
    if (n % 1000000 == 0) snprintf(text, bytes, "%dM", (int)(n / 1000000));
    else if (n % 1000 == 0) snprintf(text, bytes, "%dk", (int)(n / 1000));
    else snprintf(text, bytes, "%d", (int)n);
}

BENCH_FN bodies new_bodies(const char *kind, int32_t n, double softening)
{
    bodies b;
    char size[12];
    memset(&b, 0, sizeof b);
    name_size(size, sizeof size, n);
    snprintf(b.name, sizeof b.name, "%s-%s%s", kind, size, softening > 0 ? "-soft" : "");
    b.n = n;
    b.softening = softening;
    b.pos = (nbody_real *)bench_alloc(2 * (size_t)n * sizeof *b.pos);
    return b;
}

BENCH_FN void free_bodies(bodies *b) { free(b->pos); }

/* softening^2 = 1e-6: nbody-2D of the targets. The figures of nbody.md are without */
#define SOFT 1e-3

/* nbody-2D: x, y = u, u. */
BENCH_FN bodies square_bodies(int32_t n, double softening)
{
    bodies b = new_bodies("square", n, softening);
    wl_random r = wl_seed(1);
    size_t k;
    for (k = 0; k < 2 * (size_t)n; k++) b.pos[k] = (nbody_real)wl_u(&r);
    return b;
}

/* Rounded to floats, so that a double build sums the same bodies. */
BENCH_FN void put_body(bodies *b, int32_t i, double x, double y)
{
    b->pos[2 * (size_t)i] = (nbody_real)(float)x;
    b->pos[2 * (size_t)i + 1] = (nbody_real)(float)y;
}

BENCH_FN void put_around(bodies *b, int32_t i, const double *centre, double radius, double turn)
{
    put_body(b, i, centre[0] + radius * cos(turn), centre[1] + radius * sin(turn));
}

/* In (0, 1): it has a logarithm. */
BENCH_FN double open_u(wl_random *r) { return (double)wl_u(r) + 1.0 / 33554432; }

/* Five round clumps, normal distributions of different widths; one body in ten anywhere. */
BENCH_FN bodies clump_bodies(int32_t n)
{
    enum { CLUMPS = 5 };
    static const double clump[CLUMPS][3] = {{0.21, 0.79, 0.006},
                                            {0.84, 0.83, 0.010},
                                            {0.75, 0.28, 0.014},
                                            {0.24, 0.23, 0.020},
                                            {0.48, 0.60, 0.030}};
    bodies b = new_bodies("clumps", n, 0);
    wl_random r = wl_seed(2);
    int32_t i;
    for (i = 0; i < n; i++) {
        const double *c = clump[wl_below(&r, CLUMPS)];
        double const u = open_u(&r), v = open_u(&r);
        if (i % 10 == 9) put_body(&b, i, u, v);
        else put_around(&b, i, c, c[2] * sqrt(-2 * log(u)), 6.283185307179586 * v);
    }
    return b;
}

/* A disc whose density falls as exp(-r / 0.06); one body in five is in a bulge, whose density rises
   as r^-1.5 to the middle. */
BENCH_FN bodies galaxy_bodies(int32_t n)
{
    static const double centre[2] = {0.5, 0.5};
    bodies b = new_bodies("galaxy", n, 0);
    wl_random r = wl_seed(3);
    int32_t i;
    for (i = 0; i < n; i++) {
        double const u = open_u(&r), v = open_u(&r), w = open_u(&r);
        double const radius = i % 5 == 4 ? 0.03 * u * u : -0.06 * log(u * v);
        put_around(&b, i, centre, radius, 6.283185307179586 * w);
    }
    return b;
}

/* ---- methods, under the names that nbody.md gives them ---- */

typedef struct setting {
    const char *name;
    nbody_method method;
    int32_t order;
    nbody_sources sources;
} setting;

enum { VP, FN8, FN4C, C4, C6, C8, SETTINGS };

static const setting settings[SETTINGS] = {
    {"VP", NBODY_VIRTUAL_PARTICLES, 1, NBODY_MASS_CENTRES},     /* the source's virtual particles */
    {"FN8", NBODY_FORCE_NODES, 1, NBODY_MASS_CENTRES},          /* the source's force nodes */
    {"FN4c", NBODY_FORCE_NODES, 4, NBODY_MASS_CENTRES},
    {"C4", NBODY_FORCE_NODES, 4, NBODY_CHEBYSHEV},              /* the default */
    {"C6", NBODY_FORCE_NODES, 6, NBODY_CHEBYSHEV},
    {"C8", NBODY_FORCE_NODES, 8, NBODY_CHEBYSHEV}
};

BENCH_FN nbody_desc desc_of(const setting *s, const bodies *b)
{
    nbody_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.method = s->method;
    desc.order = s->order;
    desc.sources = s->sources;
    desc.softening = (nbody_real)b->softening;
    return desc;
}

/* As desc_of, with all leaves on one level: the source's tree. */
BENCH_FN nbody_desc even_desc_of(const setting *s, const bodies *b)
{
    nbody_desc desc = desc_of(s, b);
    desc.levels = nbody_levels_for(&desc, b->n);
    return desc;
}

BENCH_FN nbody_desc direct_desc(const bodies *b)
{
    nbody_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.method = NBODY_DIRECT;
    desc.softening = (nbody_real)b->softening;
    return desc;
}

/* What desc.leaf is for this setting, where it is not set. */
BENCH_FN int32_t default_leaf(const nbody_desc *desc, int32_t n)
{
    nbody_desc full;
    return nbody_defaults(&full, desc, n) == NBODY_OK ? full.leaf : 0;
}

/* ---- bars of nbody.md ---- */

enum { SIZES = 4 };
static const int32_t size_list[SIZES] = {1000, 10000, 100000, 1000000};

BENCH_FN int size_index(int32_t n)
{
    int k;
    for (k = 0; k < SIZES; k++)
        if (size_list[k] == n) return k;
    return -1;
}

/* Section 2: the mean error that a correct program stays under, without softening; 0: no bar. */
BENCH_FN double error_bar(int s, int32_t n)
{
    static const double bars[SETTINGS][SIZES] = {{1.5e-4, 3e-4, 4.2e-4, 5.5e-4},
                                                 {2.6e-3, 1.5e-3, 1.6e-3, 1.9e-3},
                                                 {1.3e-3, 7e-4, 5.5e-4, 5.5e-4},
                                                 {0, 0, 0, 0},
                                                 {0, 0, 0, 0},
                                                 {2.4e-6, 1.1e-6, 8e-7, 3e-7}};
    int const k = size_index(n);
    double const bar = k < 0 ? 0 : bars[s][k];
    return bar > 0 && sizeof(nbody_real) == sizeof(float) ? bar + 3e-6 : bar;
}

/* What is aimed at: the bars of section 2, where sections 7 and 9 do not ask for more. */
BENCH_FN double error_goal(int s, int32_t n)
{
    if (s == C8 && n >= 100000) return sizeof(nbody_real) == sizeof(float) ? 1e-6 : 2e-7;
    if (s == C4 && n >= 1000000) return 3.5e-4;
    return error_bar(s, n);
}

/* Two or three times the mean error of a force, over the sum of all |terms|, that was seen on any
   input here. */
BENCH_FN double share_bar(int s)
{
    static const double bars[SETTINGS] = {3e-4, 6e-4, 4e-4, 4e-4, 8e-6, 5e-7};
    return bars[s];
}

/* A sample of bodies has a mean of its own, and the tree may have other levels than those of the
   bar. NaN fails. */
BENCH_FN void check_error(int s, const bodies *b, const nbody_error *error, const char *what)
{
    double const bar = error_bar(s, b->n);
    if (bar > 0) bench_check(error->mean <= 1.5 * bar, what);
    bench_check(error->mean_share <= share_bar(s), what);
}

/* An error is the median of the means of so many samples: where the forces on a body cancel, its
   error is large compared with what is left, and one such body makes the mean of a small sample
   twice what it should be. */
enum { ESTIMATES = 5 };

/* Bodies of each sample: for so many terms in all, but 300 to 1000 bodies. */
BENCH_FN int32_t samples_for(int32_t n, double terms)
{
    double const samples = terms / n;
    return (int32_t)(samples > 1000 ? 1000 : samples < 300 ? 300 : samples) / ESTIMATES;
}

BENCH_FN int compare_errors(const void *a, const void *b)
{
    double const x = ((const nbody_error *)a)->mean, y = ((const nbody_error *)b)->mean;
    return x < y ? -1 : x > y;
}

BENCH_FN nbody_error median_error(nbody_error errors[ESTIMATES])
{
    qsort(errors, ESTIMATES, sizeof *errors, compare_errors);
    return errors[ESTIMATES / 2];
}

BENCH_FN void print_source_depth(void)
{
    printf("source: a depth of 5 was best up to 100k, of 6 up to 1M; as the number of the last "
           "level that is 6 and 7 levels\n");
}

/* ---- the table ---- */

typedef struct measured {
    const char *group;
    const bodies *of;
    char method[64];
    int32_t levels, leaf;   /* leaf 0: not in the table */
    double terms, table;    /* per body: of bodies, sources and nodes; entries of tables */
    double ms;
    nbody_error error;
    double base_ms;         /* of the other method that the table compares with */
    double bar_x;           /* times the direct sum */
    double bar_ms;
    double goal;            /* of the mean error */
    const char *note;
} measured;

static const char *table_base;

/* base: the name of a column of ratios, or NULL. */
BENCH_FN void table_title(const char *title, const char *base)
{
    table_base = base;
    printf("\n%s\n", title);
    printf("%-17s %-27s %6s %8s %8s %9s %9s %8s %9s %9s %8s", "workload", "method", "levels",
           "terms", "+table", "ms", "ns/body", "of pairs", "error", "of sum|f|", "x direct");
    if (base) printf(" x %-8s", base);
    printf(" %8s %8s %-6s %9s %s\n", "bar x", "bar ms", "time", "bar error", "error");
}

BENCH_FN const char *verdict(int met) { return met ? "met" : "missed"; }

BENCH_FN double all_terms(const measured *r) { return (r->terms + r->table / 10) * r->of->n; }

BENCH_FN void print_error(double error, int width)
{
    if (error > 0) printf(" %*.1e", width, error);
    else printf(" %*s", width, "-");
}

BENCH_FN void csv_result(const measured *r)
{
    bench_row_s row;
    memset(&row, 0, sizeof row);
    row.group = r->group;
    row.workload = r->of->name;
    row.method = r->method;
    row.n = r->of->n;
    row.ms = r->ms;
    row.floor_ms = all_terms(r) * pair_ms;
    row.bar_ms = r->bar_x > 0 ? r->of->direct_ms / r->bar_x : r->bar_ms;
    bench_csv(&row);
}

/* By the ratio where there is one: it holds on other machines too. */
BENCH_FN int time_met(const measured *r)
{
    if (r->bar_x > 0 && r->of->direct_ms > 0) return r->ms * r->bar_x <= r->of->direct_ms;
    return r->ms <= r->bar_ms;
}

/* "of pairs": terms/s over the all-pairs rate. */
BENCH_FN void print_result(const measured *r)
{
    printf("%-17s %-27s %6d", r->of->name, r->method, (int)r->levels);
    bench_number(r->terms, 8);
    bench_number(r->table, 8);
    bench_number(r->ms, 9);
    bench_number(r->ms * 1e6 / r->of->n, 9);
    bench_number(r->ms > 0 ? all_terms(r) * pair_ms / r->ms : 0, 8);
    print_error(r->error.mean, 9);
    print_error(r->error.mean_share, 9);
    bench_number(r->of->direct_ms / r->ms, 8);
    if (table_base) bench_number(r->base_ms > 0 ? r->ms / r->base_ms : 0, 10);
    bench_number(r->bar_x, 8);
    bench_number(r->bar_ms, 8);
    printf(" %-6s", r->bar_x > 0 || r->bar_ms > 0 ? verdict(time_met(r)) : "");
    print_error(r->goal, 9);
    printf(" %s%s\n", r->goal > 0 ? verdict(r->error.mean <= r->goal) : "", r->note ? r->note : "");
    fflush(stdout);
    csv_result(r);
}

BENCH_FN void set_counts(measured *r, const nbody_counts *counts)
{
    r->levels = counts->levels;
    r->terms = (double)(counts->near_terms + counts->far_terms) / r->of->n;
    r->table = (double)counts->table_terms / r->of->n;
}

/* ---- error against time: which settings does no other beat in both? ---- */

BENCH_FN int compare_results(const void *a, const void *b)
{
    measured const *p = (measured const *)a, *q = (measured const *)b;
    return (p->error.mean < q->error.mean) - (p->error.mean > q->error.mean);
}

/* Prints them by falling error; "<" marks those that are faster than all that are more exact. */
BENCH_FN void print_pareto(measured *results, int count)
{
    int k, m;
    qsort(results, (size_t)count, sizeof *results, compare_results);
    for (k = 0; k < count; k++) {
        int best = 1;
        for (m = k + 1; m < count; m++) best = best && results[m].ms > results[k].ms;
        results[k].note = best ? " <" : NULL;
        print_result(&results[k]);
        bench_check(results[k].error.mean_share <= 5e-3, results[k].method); /* order 2 has 2e-3 */
    }
}

/* ---- leaf: numbers of bodies for which sizes of leaves are compared ---- */

/* Evenly spread bodies have leaves of n / 4^levels each, whatever was asked for: a single n is just
   right for some sizes. */
enum { LEAF_SIZES = 4 };

BENCH_FN void leaf_bodies(bodies all[LEAF_SIZES], int32_t n)
{
    int k;
    for (k = 0; k < LEAF_SIZES; k++) all[k] = square_bodies((int32_t)(n * pow(2, 0.5 * k)), 0);
}

BENCH_FN void leaf_title(int32_t n)
{
    int32_t const last = (int32_t)(n * pow(2, 0.5 * (LEAF_SIZES - 1)));
    char title[160], from[12], to[12];
    name_size(from, sizeof from, n);
    name_size(to, sizeof to, n < 1000 ? last : last / 1000 * 1000);
    snprintf(title, sizeof title,
             "leaf: ns per body by desc.leaf at automatic depth, mean over %d numbers of bodies, "
             "%s to %s; "
             "x: the default's time over the best",
             LEAF_SIZES, from, to);
    bench_matrix(title, "leaf");
}

BENCH_FN void leaf_cell(const bodies *b, const char *name, int32_t leaf, double ns)
{
    bench_row_s row;
    char text[48];
    memset(&row, 0, sizeof row);
    snprintf(text, sizeof text, "%s, leaf %d", name, (int)leaf);
    row.group = "leaf";
    row.workload = b->name;
    row.method = text;
    row.n = b->n;
    row.ms = ns * 1e-6 * b->n;
    bench_cell(&row, ns);
}

/* ---- defaults: the call that leaves all to the header, beside the best setting ---- */

typedef struct default_case {
    const char *name;
    nbody_method method;
    int order;
    nbody_law law;
    double softening;
    int potential;
} default_case;

enum { DEFAULT_CASES = 13, DEFAULT_LEAVES = 13 };

/* NBODY_AUTO, and methods that are given; the rest of the desc is 0. */
static const default_case default_cases[DEFAULT_CASES] = {
    {"AUTO", NBODY_AUTO, 0, NBODY_INVERSE_SQUARE, 0, 0},
    {"AUTO, potentials", NBODY_AUTO, 0, NBODY_INVERSE_SQUARE, 0, 1},
    {"AUTO, softened", NBODY_AUTO, 0, NBODY_INVERSE_SQUARE, SOFT, 0},
    {"AUTO, 1/d", NBODY_AUTO, 0, NBODY_INVERSE, 0, 0},
    {"AUTO, 1/d, potentials", NBODY_AUTO, 0, NBODY_INVERSE, 0, 1},
    {"AUTO, order 6", NBODY_AUTO, 6, NBODY_INVERSE_SQUARE, 0, 0},
    {"AUTO, order 8", NBODY_AUTO, 8, NBODY_INVERSE_SQUARE, 0, 0},
    {"AUTO, 1/d, order 8", NBODY_AUTO, 8, NBODY_INVERSE, 0, 0},
    {"VP", NBODY_VIRTUAL_PARTICLES, 0, NBODY_INVERSE_SQUARE, 0, 0},
    {"VP, order 2", NBODY_VIRTUAL_PARTICLES, 2, NBODY_INVERSE_SQUARE, 0, 0},
    {"FN8", NBODY_FORCE_NODES, 1, NBODY_INVERSE_SQUARE, 0, 0},
    {"FN4c", NBODY_FORCE_NODES, 4, NBODY_INVERSE_SQUARE, 0, 0},
    {"C8", NBODY_FORCE_NODES, 8, NBODY_INVERSE_SQUARE, 0, 0}};

static const int32_t default_leaves[DEFAULT_LEAVES] = {24,  32,  48,  64,  80,  100, 128,
                                                       160, 200, 256, 320, 400, 512};

BENCH_FN nbody_desc default_desc_of(int k)
{
    const default_case *c = &default_cases[k];
    nbody_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.method = c->method;
    desc.order = c->order;
    desc.law = c->law;
    desc.softening = (nbody_real)c->softening;
    if (strcmp(c->name, "FN4c") == 0) desc.sources = NBODY_MASS_CENTRES;
    return desc;
}

typedef struct default_row {
    const bodies *b;
    const char *name;
    int potential;
    double ms, best_ms;     /* best_ms 0: nothing was tried */
    nbody_desc desc, best;
} default_row;

static const double default_bar = 1.1;

typedef struct default_worst { int rows, above; double ratio; char where[80]; } default_worst;

static default_worst default_all;

BENCH_FN default_row default_row_of(const bodies *b, const char *name, const nbody_desc *desc,
                                    int potential)
{
    default_row row;
    memset(&row, 0, sizeof row);
    row.b = b;
    row.name = name;
    row.potential = potential;
    row.desc = *desc;
    return row;
}

BENCH_FN void default_setting(char *text, size_t bytes, const nbody_desc *desc)
{
    if (desc->method == NBODY_DIRECT) snprintf(text, bytes, "DIRECT");
    else if (desc->levels > 0) snprintf(text, bytes, "levels %d", (int)desc->levels);
    else snprintf(text, bytes, "leaf %d", (int)desc->leaf);
}

/* One setting was measured. */
BENCH_FN void default_trial(default_row *row, const nbody_desc *how, double ms)
{
    char text[96], setting[32];
    bench_row_s csv;
    default_setting(setting, sizeof setting, how);
    snprintf(text, sizeof text, "%s: %s", row->name, setting);
    memset(&csv, 0, sizeof csv);
    csv.group = "defaults";
    csv.workload = row->b->name;
    csv.method = text;
    csv.n = row->b->n;
    csv.ms = ms;
    bench_csv(&csv);
    if (row->best_ms > 0 && ms >= row->best_ms) return;
    row->best_ms = ms;
    row->best = *how;
}

BENCH_FN void defaults_title(void)
{
    printf("\ndefaults: a call that leaves all to the header, beside the best of DIRECT, leaves of "
           "many sizes, and one level for all leaves\n%-16s %-24s %10s %10s  %-12s %7s\n",
           "workload", "call", "default ms", "best ms", "that is", "ratio");
}

BENCH_FN void print_default(const default_row *row)
{
    double const ratio = row->best_ms > 0 ? row->ms / row->best_ms : 1;
    char setting[32];
    bench_row_s csv;
    default_setting(setting, sizeof setting, &row->best);
    printf("%-16s %-24s", row->b->name, row->name);
    bench_number(row->ms, 10);
    bench_number(row->best_ms, 10);
    printf("  %-12s", setting);
    bench_number(ratio, 7);
    printf("  %s\n", ratio <= default_bar ? "ok" : "above");
    fflush(stdout);
    memset(&csv, 0, sizeof csv);
    csv.group = "defaults";
    csv.workload = row->b->name;
    csv.method = row->name;
    csv.n = row->b->n;
    csv.ms = row->ms;
    csv.peer_ms = row->best_ms;
    bench_csv(&csv);
    default_all.rows++;
    default_all.above += ratio > default_bar;
    if (ratio <= default_all.ratio) return;
    default_all.ratio = ratio;
    snprintf(default_all.where, sizeof default_all.where, "%s, %s", row->b->name, row->name);
}

BENCH_FN void defaults_end(void)
{
    printf("defaults: at worst %.2f times the best, %s; %d of %d rows above %.1f\n",
           default_all.ratio, default_all.where, default_all.above, default_all.rows, default_bar);
    bench_check(default_all.rows > 0, "defaults: no row");
}

/* ---- direction and length: the source's Figures 17 and 18 ---- */

/* The force on one body, summed in double, and as the source does it: floats, one after the
   other. */
typedef struct references { double exact[2], plain[2]; } references;

/* Body k of a sample. */
BENCH_FN int32_t sample_of(int32_t k, int32_t samples, int32_t n)
{
    return (int32_t)((int64_t)k * n / samples);
}

typedef struct deviation { double degrees, length; } deviation;

#define DEGREES 57.29577951308232 /* of an angle of 1 */

BENCH_FN deviation deviation_of(const double *a, const double *reference)
{
    double const length = sqrt(reference[0] * reference[0] + reference[1] * reference[1]);
    double const cross = reference[0] * a[1] - reference[1] * a[0],
                 dot = reference[0] * a[0] + reference[1] * a[1];
    deviation d;
    d.degrees = fabs(atan2(cross, dot)) * DEGREES;
    d.length = fabs(sqrt(a[0] * a[0] + a[1] * a[1]) - length) / length;
    return d;
}

/* Lines of the tables: what deviates, from which reference. */
enum { LINE_PLAIN, LINE_DIRECT, LINE_METHODS, LINES = LINE_METHODS + SETTINGS };

typedef struct deviations { deviation exact[LINES][SIZES], plain[LINES][SIZES]; } deviations;

BENCH_FN void add_deviation(deviation *sum, deviation d, int32_t samples)
{
    sum->degrees += d.degrees / samples;
    sum->length += d.length / samples;
}

BENCH_FN void add_sample(deviations *all, int line, int size, const double *a, const references *r,
                         int32_t samples)
{
    add_deviation(&all->exact[line][size], deviation_of(a, r->exact), samples);
    add_deviation(&all->plain[line][size], deviation_of(a, r->plain), samples);
}

BENCH_FN const char *line_name(int line)
{
    if (line == LINE_PLAIN) return "plain sum of floats, in order";
    return line == LINE_DIRECT ? "DIRECT" : settings[line - LINE_METHODS].name;
}

BENCH_FN void print_deviations(const char *group, const char *title,
                               const deviation (*values)[SIZES], int sizes, const int32_t *n,
                               int first)
{
    int const degrees = strcmp(group, "direction") == 0;
    int line, k;
    printf("\n%s\n%-30s", title, "n");
    for (k = 0; k < sizes; k++) printf(" %9d", (int)n[k]);
    for (line = first; line < LINES; line++) {
        printf("\n%-30s", line_name(line));
        for (k = 0; k < sizes; k++) {
            double const value = degrees ? values[line][k].degrees : values[line][k].length;
            print_error(value, 9);
            bench_value(group, first == LINE_PLAIN ? "to exact" : "to plain", line_name(line), n[k],
                        value, degrees ? "degrees" : "of the length");
        }
    }
    printf("\n");
}

/* The tables of one group, and the bars of nbody.md section 2: 40 times those of the error in
   degrees, 0.75 times in length. */
BENCH_FN void show_deviations(const char *group, const deviations *all, int sizes, const int32_t *n)
{
    int const degrees = strcmp(group, "direction") == 0;
    int s, k;
    print_deviations(
        group,
        degrees ? "direction: mean angle in degrees to the direct sum in double (source: Figure 17)"
                : "length: mean error of the force's length to the direct sum in double (source: "
                  "Figure 18)",
        all->exact, sizes, n, LINE_PLAIN);
    print_deviations(group, "the same to a plain sum of floats in order, the source's reference",
                     all->plain, sizes, n, LINE_DIRECT);
    for (s = 0; s < SETTINGS; s++)
        for (k = 0; k < sizes; k++) {
            double const bar = error_bar(s, n[k]);
            deviation const d = all->exact[LINE_METHODS + s][k];
            if (bar > 0)
                bench_check(degrees ? d.degrees <= 1.5 * 40 * bar : d.length <= 1.5 * 0.75 * bar,
                            settings[s].name);
        }
}

/* What does not grow with n: the error of our direct sum, a few last digits. */
BENCH_FN void check_growth(const deviations *all, int sizes)
{
    double const most = sizeof(nbody_real) == sizeof(float) ? 1e-6 : 1e-12;
    int k;
    printf("What grows with n is the error of the plain sum, which the source takes for exact. The "
           "methods add few terms; their "
           "own error\nends growing once cells are full.\n");
    for (k = 0; k < sizes; k++)
        bench_check(all->exact[LINE_DIRECT][k].length <= most, "DIRECT: more than rounding");
}

#endif /* NBODY_BENCH_H */
