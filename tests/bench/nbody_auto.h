/* nbody_auto.h - a part of bench_nbody.c: what NBODY_AUTO takes, beside the direct sum and force
   nodes of the same order with leaves of many sizes and with all leaves on one level.
   SPDX-License-Identifier: MIT OR Unlicense

   A row is one input, size, order, law and output. All candidates run in turn, round after round;
   the shortest time of each counts. Before each run tables of softened laws are dropped, as in a
   simulation whose square is fitted to bodies that move ("given": a square of the caller's, where
   they stay). What is far behind after a round runs no more. */

#ifndef NBODY_AUTO_H
#define NBODY_AUTO_H

/* ---- inputs: as in peer_fmm2d.c ---- */

static bodies gaussian_bodies(int32_t n)
{
    enum { CLUMPS = 20 };
    double clump[CLUMPS][3];
    bodies b = new_bodies("gaussians", n, 0);
    wl_random r = wl_seed(4);
    int32_t i;
    for (i = 0; i < CLUMPS; i++) {
        clump[i][0] = open_u(&r);
        clump[i][1] = open_u(&r);
        clump[i][2] = pow(10, -1 - 2 * open_u(&r));
    }
    for (i = 0; i < n; i++) {
        const double *c = clump[wl_below(&r, CLUMPS)];
        double const u = open_u(&r), v = open_u(&r);
        put_around(&b, i, c, c[2] * sqrt(-2 * log(u)), 6.283185307179586 * v);
    }
    return b;
}

/* Of the mass, r^2 / (1 + r^2) is within r; all within 10. */
static bodies plummer_bodies(int32_t n)
{
    static const double centre[2] = {0, 0};
    bodies b = new_bodies("plummer", n, 0);
    wl_random r = wl_seed(5);
    int32_t i;
    for (i = 0; i < n; i++) {
        double const u = open_u(&r) * 0.99, v = open_u(&r);
        put_around(&b, i, centre, sqrt(u / (1 - u)), 6.283185307179586 * v);
    }
    return b;
}

/* ---- candidates ---- */

enum { TRIALS = 32 };

typedef struct trial {
    job j;
    double least;           /* ms of one evaluation */
    int repeats;            /* evaluations of a round */
    int out;                /* far behind */
} trial;

typedef struct trials {
    trial all[TRIALS];      /* the first is NBODY_AUTO */
    int count;
} trials;

static void add_trial(trials *t, const bodies *b, nbody_desc desc, nbody_real *potential)
{
    trial *one = &t->all[t->count++];
    one->j = new_job(b, desc);
    one->j.potential = potential;
    one->least = 1e99;
    one->repeats = 1;
    one->out = 0;
}

static void run_trial(trial *one)
{
    int k;
    for (k = 0; k < one->repeats; k++) {
        double ms;
        if (one->j.desc.softening > 0 && !(one->j.desc.size > 0)) one->j.sim.kept.levels = 0;
        ms = bench_sample_ms(NULL, work_forces, &one->j);
        if (ms < one->least) one->least = ms;
    }
}

/* Of many bodies those around what NBODY_AUTO took. */
static void add_candidates(trials *t, const bodies *b, nbody_desc desc, nbody_real *potential)
{
    int32_t const middle = t->all[0].j.sim.desc.leaf;
    double leaf;
    int32_t levels;
    desc.method = NBODY_DIRECT;
    if (b->n <= 20000) add_trial(t, b, desc, potential);
    desc.method = NBODY_FORCE_NODES;
    for (leaf = 12; leaf < 1200 && leaf < 2 * b->n; leaf *= 1.5) {
        desc.leaf = (int32_t)leaf;
        if (b->n > 50000 && (leaf < middle / 2.4 || leaf > middle * 2.4)) continue;
        add_trial(t, b, desc, potential);
    }
    desc.leaf = 0;
    for (levels = 3; levels <= 6; levels++) {
        double const cells = pow(4, levels - 1);
        desc.levels = levels;
        if (b->n <= 50000 && b->n < 600 * cells && b->n > 4 * cells)
            add_trial(t, b, desc, potential);
    }
}

static int best_trial(const trials *t)
{
    int k, best = 1;
    for (k = 2; k < t->count; k++) if (t->all[k].least < t->all[best].least) best = k;
    return best;
}

/* Rounds until they have taken the budget, but at least three (of many bodies two). */
static void run_trials(trials *t, int rounds, double budget_ms)
{
    double spent = 0;
    int round, k;
    for (round = 0; round < rounds && (round < 3 || spent < budget_ms); round++) {
        double best;
        for (k = 0; k < t->count; k++) {
            trial *one = &t->all[k];
            if (one->out) continue;
            run_trial(one);
            spent += one->least * one->repeats;
            if (round == 0 && one->least < 0.05)
                one->repeats = (int)(0.1 / (one->least + 1e-4)) + 1;
        }
        best = t->all[best_trial(t)].least;
        for (k = 1; k < t->count; k++)
            t->all[k].out = t->all[k].least > (round ? 1.25 : 2) * best;
    }
}

static const char *choice_name(const nbody_desc *desc, char *text, size_t bytes)
{
    if (desc->method == NBODY_DIRECT) return "direct";
    if (desc->leaf > 0) snprintf(text, bytes, "leaf %d", (int)desc->leaf);
    else snprintf(text, bytes, "levels %d", (int)desc->levels);
    return text;
}

/* ---- rows ---- */

typedef struct auto_case {
    int order;
    nbody_law law;
    double softening;
    int potential, given;
} auto_case;

typedef struct auto_worst { double ratio; int rows, above; char where[96]; } auto_worst;

static const double auto_bar = 1.2;

static void auto_line(const bodies *b, const auto_case *c, const trials *t, auto_worst *worst)
{
    trial const *chosen = &t->all[0], *best = &t->all[best_trial(t)];
    double const ratio = chosen->least / best->least;
    char one[24], two[24], name[96];
    bench_row_s row;
    snprintf(name, sizeof name, "%-14s %5d %4s %7g %-6s %-6s", b->name, c->order,
             c->law == NBODY_INVERSE ? "1/d" : "1/d2", c->softening,
             c->potential ? "fields" : "forces", c->given ? "given" : "");
    printf("%s", name);
    bench_number(chosen->least, 10);
    printf("  %-9s", choice_name(&chosen->j.sim.desc, one, sizeof one));
    bench_number(best->least, 10);
    printf("  %-9s", choice_name(&best->j.desc, two, sizeof two));
    bench_number(ratio, 8);
    printf("%s\n", ratio > auto_bar ? "  above" : "");
    fflush(stdout);
    worst->rows++;
    worst->above += ratio > auto_bar;
    if (ratio > worst->ratio) {
        worst->ratio = ratio;
        snprintf(worst->where, sizeof worst->where, "%s", name);
    }
    memset(&row, 0, sizeof row);
    row.group = "auto";
    row.workload = b->name;
    row.method = name;
    row.n = b->n;
    row.ms = chosen->least;
    row.peer_ms = best->least;
    bench_csv(&row);
}

static void auto_row(const bodies *b, const auto_case *c, auto_worst *worst)
{
    trials t;
    nbody_desc desc;
    nbody_real *potential =
        c->potential ? (nbody_real *)bench_alloc((size_t)b->n * sizeof *potential) : NULL;
    int k;
    memset(&desc, 0, sizeof desc);
    desc.order = c->order;
    desc.law = c->law;
    desc.softening = (nbody_real)c->softening;
    if (c->given) {
        desc.min[0] = desc.min[1] = -16;
        desc.size = 32;
    }
    t.count = 0;
    add_trial(&t, b, desc, potential);
    run_trial(&t.all[0]);
    add_candidates(&t, b, desc, potential);
    if (t.count > 1) {
        run_trials(&t, b->n > 500000 ? 2 : 7, bench.quick ? 40 : 300);
        auto_line(b, c, &t, worst);
    }
    for (k = 0; k < t.count; k++) {
        t.all[k].j.potential = NULL;
        free_job(&t.all[k].j);
    }
    free(potential);
}

/* Case k of those of a size. 0: there is no such case. */
static int auto_case_of(int k, auto_case *c)
{
    static const int orders[] = {4, 8, 1, 6, 2, 12, 3, 10};
    static const double softenings[] = {0, 0.01, 0, 0.05};
    int const kind = k % 4;
    memset(c, 0, sizeof *c);
    c->law = kind & 2 ? NBODY_INVERSE : NBODY_INVERSE_SQUARE;
    c->softening = softenings[kind];
    c->potential = k / 4 % 2;
    c->order = orders[k / 8 % 8];
    c->given = k / 64 % 2;
    /* what the square is counts for tables that are kept */
    return k < 128 && (!c->given || (c->softening > 0 && c->order > 1));
}

/* One of `every` cases. */
static void auto_rows(const bodies *b, int every, int first, auto_worst *worst)
{
    auto_case c;
    int k;
    for (k = first % every; k < 128; k += every)
        if (auto_case_of(k, &c)) auto_row(b, &c, worst);
}

static void bench_auto(void)
{
    static const struct { int32_t n; int every, every_quick; } sizes[] = {
        {10, 64, 64}, {30, 16, 64}, {100, 1, 9}, {300, 1, 5}, {600, 1, 5}, {1200, 1, 5},
        {2500, 1, 9}, {5000, 1, 13}, {10000, 3, 23}, {100000, 13, 61}, {1000000, 61, 128}};
    auto_worst worst;
    int k, input;
    memset(&worst, 0, sizeof worst);
    printf("\nauto: NBODY_AUTO beside the fastest of DIRECT and FORCE_NODES of all depths, in turn;"
           " shortest of several\n%-14s %5s %4s %7s %-6s %-6s %10s  %-9s %10s  %-9s %8s\n",
           "workload", "order", "law", "soft", "", "square", "auto ms", "chosen", "best ms",
           "that is", "ratio");
    for (k = 0; k < (int)(sizeof sizes / sizeof *sizes); k++) for (input = 0; input < 3; input++) {
        int32_t const n = bench.n ? bench.n : sizes[k].n;
        int const every = bench.quick ? sizes[k].every_quick : sizes[k].every;
        bodies b;
        if (bench.max_n && n > bench.max_n) continue;
        if (bench.n && k != 3) continue;
        b = input == 0   ? square_bodies(n, 0)
            : input == 1 ? gaussian_bodies(n)
                         : plummer_bodies(n);
        auto_rows(&b, every, every * input / 3 + (every > 60 ? 0 : k), &worst);
        free_bodies(&b);
    }
    printf("auto: at worst %.2f times the best, %s; %d of %d rows above %.1f\n", worst.ratio,
           worst.where, worst.above, worst.rows, auto_bar);
}

#endif /* NBODY_AUTO_H */
