/* nbody_contrasts.h - what nbody_contrasts.c needs around its methods: bodies, errors, times, table
   and picture.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef NBODY_CONTRASTS_H
#define NBODY_CONTRASTS_H

#include "../common/options.h"
#include "../common/picture.h"
#include "../common/random.h"

enum { MOST_WORKS = 32, SAMPLES = 200 };

typedef enum method_kind { DIRECT, BARNES_HUT, MESH, P3M, NODES_ALONE, FORCE_NODES,
                           KINDS } method_kind;
static const char *const kind_names[KINDS] = {"direct", "Barnes-Hut", "mesh", "P3M",
                                              "nodes alone", "force nodes"};
static const char *const number_names[KINDS] = {"", "angle", "nodes", "spacings", "edge",
                                                "order"};

typedef struct options {
    int32_t n, seed, clumps, rounds, mesh;
    const char *out;
} options;

struct scene;
struct work;
typedef void evaluate_fn(struct scene *s, struct work *w);

/* A method with one of its numbers. */
typedef struct work {
    method_kind kind;
    double number;
    evaluate_fn *evaluate;
    nbody_desc desc;
    nbody sim;
    bh_tree tree;
    p3m p3m;
    node_layer nodes;
    double seconds, mean, worst, terms, momentum;
} work;

typedef struct scene {
    const options *options;
    int32_t n, samples;
    double *pos, *mass, *acc;
    double *exact, *share;  /* of every n / SAMPLES-th body: [2], and the sum of all |terms| */
    work work[MOST_WORKS];
    int works;
} scene;

static options parse(int argc, char **argv)
{
    options o = {20000, 1, 0, 5, 1024, "build/nbody_contrasts.png"};
    const option_line table[] = {
        INT("-n", "N", &o.n, 2, 1000000, "bodies (default 20000)"),
        FLAG("--clumps", &o.clumps, "crowded in places; else anywhere in a square"),
        INT("--mesh", "M", &o.mesh, 64, 4096, "the finest mesh has up to M nodes along an edge "
            "(default 1024)"),
        INT("--rounds", "K", &o.rounds, 1, 1000, "evaluations of each, the fastest counts "
            "(default 5)"),
        INT("--seed", "S", &o.seed, 0, 1000000000, "where the bodies are (default 1)"),
        TEXT("--out", "FILE", &o.out, "the picture (default build/nbody_contrasts.png)"),
        OPTIONS_END};
    options_read(argc, argv, table, NULL,
                 "Error against time: nbody.h, Barnes and Hut's tree, meshes, and the direct sum.",
                 "-n 100000 --clumps");
    return o;
}

/* -------------------------------------------------------------------------------------------------
   >>scene
   ---------------------------------------------------------------------------------------------- */

/* Anywhere; or seven of eight in three clumps, half of them within its width. */
static void place_body(scene *s, int32_t i, uint64_t *state)
{
    static double const clump[3][3] = {{0.30, 0.66, 0.10}, {0.70, 0.72, 0.04}, {0.62, 0.26, 0.015}};
    const double *c = clump[i % 3];
    double *p = s->pos + 2 * (size_t)i;
    do {
        double const u = 0.9 * random_double(state), turn = 2 * PI * random_double(state),
                     r = c[2] * sqrt(u / (1 - u));
        int const anywhere = !s->options->clumps || i % 8 == 7;
        p[0] = anywhere ? random_double(state) : c[0] + r * cos(turn);
        p[1] = anywhere ? random_double(state) : c[1] + r * sin(turn);
    } while (!(p[0] >= 0 && p[0] <= 1 && p[1] >= 0 && p[1] <= 1));
    s->mass[i] = (0.5 + random_double(state)) / s->n;
}

/* The oracle: plain sums, in a loop of its own. */
static void sum_exactly(scene *s)
{
    int32_t k, j;
    for (k = 0; k < s->samples; k++) {
        size_t const i = (size_t)((int64_t)k * s->n / s->samples);
        double *sum = s->exact + 2 * (size_t)k;
        for (j = 0; j < s->n; j++) {
            double const dx = s->pos[2 * j] - s->pos[2 * i],
                         dy = s->pos[2 * j + 1] - s->pos[2 * i + 1], d = hypot(dx, dy);
            if (d == 0) continue;
            sum[0] += s->mass[j] * dx / (d * d * d);
            sum[1] += s->mass[j] * dy / (d * d * d);
            s->share[k] += s->mass[j] / (d * d);
        }
    }
}

static scene *scene_new(const options *o)
{
    scene *s = (scene *)zeros(1, sizeof *s);
    uint64_t state = random_seed(o->seed);
    int32_t i;
    s->options = o;
    s->n = o->n;
    s->samples = o->n < SAMPLES ? o->n : SAMPLES;
    s->pos = (double *)zeros(2 * (size_t)o->n, sizeof(double));
    s->mass = (double *)zeros((size_t)o->n, sizeof(double));
    s->acc = (double *)zeros(2 * (size_t)o->n, sizeof(double));
    s->exact = (double *)zeros(2 * SAMPLES, sizeof(double));
    s->share = (double *)zeros(SAMPLES, sizeof(double));
    for (i = 0; i < o->n; i++) place_body(s, i, &state);
    sum_exactly(s);
    return s;
}

static void scene_free(scene *s)
{
    free(s->pos);
    free(s->mass);
    free(s->acc);
    free(s->exact);
    free(s->share);
    free(s);
}

/* The mesh that gives a body about 60 partners within so many spacings. */
static int32_t p3m_side(const scene *s, double reach)
{
    double const wanted = reach * sqrt(PI * s->n / 60.0);
    int32_t side = 32;
    while (side < wanted && 2 * side <= s->options->mesh) side *= 2;
    return side;
}

/* -------------------------------------------------------------------------------------------------
   >>measure
   ---------------------------------------------------------------------------------------------- */

/* mean: of |error| / |force|; worst: the largest |error| / sum of |terms|; momentum: |sum of m a| /
   sum of m |a|, which the law makes 0. */
static void find_errors(const scene *s, work *w)
{
    double sum[2] = {0, 0}, all = 0;
    int32_t k;
    w->mean = w->worst = 0;
    for (k = 0; k < s->samples; k++) {
        size_t const i = (size_t)((int64_t)k * s->n / s->samples);
        const double *a = s->acc + 2 * i, *e = s->exact + 2 * (size_t)k;
        double const off = hypot(a[0] - e[0], a[1] - e[1]);
        w->mean += off / hypot(e[0], e[1]) / s->samples;
        w->worst = fmax(w->worst, off / s->share[k]);
    }
    for (k = 0; k < s->n; k++) {
        sum[0] += s->mass[k] * s->acc[2 * k];
        sum[1] += s->mass[k] * s->acc[2 * k + 1];
        all += s->mass[k] * hypot(s->acc[2 * k], s->acc[2 * k + 1]);
    }
    w->momentum = hypot(sum[0], sum[1]) / all;
}

/* The methods take turns, and the fastest round of each counts. (The direct sum: one round.) */
static void measure_all(scene *s)
{
    int round, k;
    for (round = 0; round < s->options->rounds; round++)
        for (k = 0; k < s->works; k++) {
            work *w = &s->work[k];
            double begun;
            if (w->kind == DIRECT && round) continue;
            if (!round && w->kind != DIRECT) w->evaluate(s, w); /* memory, tables, counts */
            begun = processor_seconds();
            w->evaluate(s, w);
            begun = processor_seconds() - begun;
            if (!round || begun < w->seconds) w->seconds = begun;
            if (!round) find_errors(s, w);
        }
}

static void print_table(const scene *s)
{
    int k;
    printf("%ld bodies, %s\n%-12s %-14s %10s %12s %12s %12s %12s\n", (long)s->n,
           s->options->clumps ? "clumps" : "even", "method", "number", "ms", "mean error",
           "worst share", "terms/body", "momentum");
    for (k = 0; k < s->works; k++) {
        const work *w = &s->work[k];
        char number[32];
        if (w->kind == P3M)
            snprintf(number, sizeof number, "%g of %ld", w->number, (long)w->p3m.mesh.side);
        else snprintf(number, sizeof number, "%g", w->number);
        printf("%-12s %-14s %10.3f %12.3e %12.3e %12.1f %12.1e\n", kind_names[w->kind], number,
               1e3 * w->seconds, w->mean, w->worst, w->terms / s->n, w->momentum);
    }
}

/* -------------------------------------------------------------------------------------------------
   >>draw: both axes logarithmic, a decade for a division
   ---------------------------------------------------------------------------------------------- */

enum { DRAW_WIDE = 1800, DRAW_HIGH = 1200, DRAW_EDGE = 130 };

typedef struct axes { double least[2], most[2]; } axes; /* logarithms to base 10 */

static axes axes_of(const scene *s)
{
    axes a = {{1e9, 1e9}, {-1e9, -1e9}};
    int k;
    for (k = 0; k < s->works; k++) {
        double const x = log10(1e3 * s->work[k].seconds), y = log10(fmax(s->work[k].mean, 1e-16));
        a.least[0] = fmin(a.least[0], floor(x));
        a.most[0] = fmax(a.most[0], ceil(x));
        a.most[1] = fmax(a.most[1], ceil(y));
        if (s->work[k].kind != DIRECT) a.least[1] = fmin(a.least[1], floor(y));
    }
    return a;
}

static double draw_x(const axes *a, double ms)
{
    return DRAW_EDGE + (log10(ms) - a->least[0]) / (a->most[0] - a->least[0]) *
                           (DRAW_WIDE - 2 * DRAW_EDGE);
}

/* What is below the axes stands on the lowest line. */
static double draw_y(const axes *a, double error)
{
    double const y = fmax(log10(fmax(error, 1e-16)), a->least[1]);
    return DRAW_HIGH - DRAW_EDGE -
           (y - a->least[1]) / (a->most[1] - a->least[1]) * (DRAW_HIGH - 2 * DRAW_EDGE);
}

static void draw_axes(picture *p, const axes *a)
{
    char text[32];
    int k;
    for (k = (int)a->least[0]; k <= (int)a->most[0]; k++) {
        int const x = (int)draw_x(a, pow(10, k));
        draw_box(p, x, DRAW_EDGE, x + 2, DRAW_HIGH - DRAW_EDGE, gray(0.87), 1);
        snprintf(text, sizeof text, "%g ms", pow(10, k));
        draw_text(p, x - text_width(text, 3) / 2, DRAW_HIGH - DRAW_EDGE + 20, 3, gray(0.2), text);
    }
    for (k = (int)a->least[1]; k <= (int)a->most[1]; k++) {
        int const y = (int)draw_y(a, pow(10, k));
        draw_box(p, DRAW_EDGE, y, DRAW_WIDE - DRAW_EDGE, y + 2, gray(0.87), 1);
        snprintf(text, sizeof text, "1e%d", k);
        draw_text(p, DRAW_EDGE - 16 - text_width(text, 3), y - 12, 3, gray(0.2), text);
    }
}

static void draw(const scene *s, const char *path)
{
    static rgb const color[KINDS] = {{0.2, 0.2, 0.2}, {0.85, 0.35, 0.1}, {0.2, 0.6, 0.3},
                                     {0.55, 0.25, 0.65}, {0.75, 0.6, 0.1}, {0.1, 0.35, 0.8}};
    picture p = picture_new(DRAW_WIDE, DRAW_HIGH, gray(1));
    axes const a = axes_of(s);
    char text[96];
    int k;
    snprintf(text, sizeof text, "mean error of the force against time, %ld bodies, %s", (long)s->n,
             s->options->clumps ? "clumps" : "even");
    draw_text(&p, DRAW_EDGE, 50, 4, gray(0.1), text);
    draw_axes(&p, &a);
    for (k = 0; k < s->works; k++) {
        const work *w = &s->work[k], *before = k ? w - 1 : w;
        double const x = draw_x(&a, 1e3 * w->seconds), y = draw_y(&a, w->mean);
        if (before->kind == w->kind)
            draw_line(&p, draw_x(&a, 1e3 * before->seconds), draw_y(&a, before->mean), x, y, 2.5,
                      color[w->kind]);
        draw_disc(&p, x, y, 9, color[w->kind]);
        if (w->kind != DIRECT) {
            snprintf(text, sizeof text, "%g", w->number);
            draw_text(&p, (int)x + 14, (int)y - 26, 3, color[w->kind], text);
        }
        if (!k || before->kind != w->kind) {
            snprintf(text, sizeof text, "%s: %s", kind_names[w->kind],
                     w->kind ? number_names[w->kind] : "exact");
            draw_text(&p, DRAW_WIDE - DRAW_EDGE - 320,
                      DRAW_HIGH - DRAW_EDGE - 340 + 36 * (int)w->kind, 3, color[w->kind], text);
        }
    }
    picture_save_halved(&p, path);
    printf("picture: %s\n", path);
}

#endif /* NBODY_CONTRASTS_H */
