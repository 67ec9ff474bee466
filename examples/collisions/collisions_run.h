/* collisions_run.h - the loop of collisions.c, what it measures, and how long sums take.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef COLLISIONS_RUN_H
#define COLLISIONS_RUN_H

#include "../common/progress.h"

/* -------------------------------------------------------------------------------------------------
   >>measure
   ---------------------------------------------------------------------------------------------- */

typedef struct measured { double momentum[3], energy, flow; } measured;

static measured measure(const scene *s)
{
    size_t const width = (size_t)s->model.dim + 1;
    measured m;
    int32_t i;
    int a;
    memset(&m, 0, sizeof m);
    m.flow = flow_of(s);
    for (i = 0; i < s->n; i++)
        for (a = 0; a < s->model.dim; a++) {
            double const v = (double)s->v[width * (size_t)i + (size_t)a];
            m.momentum[a] += v;
            m.energy += v * v / 2;
        }
    return m;
}

/* From the slope of the logarithm of the speed, by least squares, while it is above a fifth of the
   first: below, thermal motion counts. */
static double viscosity_by(const scene *s, const curve *c)
{
    double n = 0, t = 0, y = 0, tt = 0, ty = 0;
    int k;
    for (k = 0; k < c->count && c->flow[k] > s->options->flow / 5; k++) {
        double const log_flow = log(c->flow[k]);
        n++;
        t += c->t[k];
        y += log_flow;
        tt += c->t[k] * c->t[k];
        ty += c->t[k] * log_flow;
    }
    return n < 3 ? 0 : -(n * ty - t * y) / (n * tt - t * t) / s->square;
}

/* Of the numbers of particles in a cell, from the last sums. */
static void occupancy(const scene *s, double *mean, double *variance)
{
    int32_t cell;
    *mean = *variance = 0;
    for (cell = 0; cell < s->cells; cell++) {
        double const mass =
            (double)s->sums[(size_t)(s->model.dim + 1) * (size_t)cell + (size_t)s->model.dim];
        *mean += mass / s->cells;
        *variance += mass * mass / s->cells;
    }
    *variance -= *mean * *mean;
}

/* momentum: gained per particle, in units of the thermal velocity; energy: gained, relative. */
static void print_figures(const scene *s, const curve *c, const measured *first,
                          const measured *last)
{
    double const viscosity = viscosity_by(s, c);
    double momentum = 0, mean, variance;
    int a;
    for (a = 0; a < 3; a++)
        momentum = fmax(momentum, fabs(last->momentum[a] - first->momentum[a]) / s->n);
    occupancy(s, &mean, &variance);
    printf("figures: particles %ld cells %ld steps %ld viscosity %.5f theory %.5f ratio %.4f "
           "noise %.5f momentum %.3e energy %.3e flow %.5f mean %.6f variance %.4f\n",
           (long)s->n, (long)s->cells, (long)s->model.step, viscosity, s->viscosity,
           viscosity / s->viscosity,
           viscosity_of_noise(s->model.dim, s->options->mean, s->viscosity, sqrt(s->square)),
           momentum, last->energy / first->energy - 1, last->flow, mean,
           variance);
}

/* -------------------------------------------------------------------------------------------------
   >>run
   ---------------------------------------------------------------------------------------------- */

/* Makes so many steps, wherever they are computed; then the scene is as they left it. */
typedef void advance_fn(void *user, int64_t steps);

static int64_t steps_of(const scene *s)
{
    double const decay = 1 / (s->viscosity * s->square);
    return (int64_t)ceil(s->options->until * decay / s->options->dt);
}

static void add_sample(const scene *s, curve *c, const measured *m)
{
    c->t[c->count] = (double)s->model.step * s->options->dt;
    c->flow[c->count++] = m->flow;
}

static void run(scene *s, advance_fn *advance, void *user)
{
    int64_t const steps = steps_of(s);
    picture p = picture_new(3 * PANEL, PANEL, gray(1));
    progress bar = progress_begin("step");
    measured const first = measure(s);
    measured now = first;
    double spent = 0;
    field flow;
    curve c;
    int k;
    memset(&c, 0, sizeof c);
    add_sample(s, &c, &first);
    field_of(s, &flow);
    draw_flow(&p, 0, s, &flow, "start (red turns left, blue right)");
    for (k = 1; k <= SAMPLES && s->model.step < steps; k++) {
        int64_t const until = steps * k / SAMPLES;
        double const begun = seconds_now();
        if (until == s->model.step) continue;
        advance(user, until - s->model.step);
        spent += seconds_now() - begun;
        now = measure(s);
        add_sample(s, &c, &now);
        progress_show(&bar, s->model.step, steps, "");
        progress_clear(&bar);
    }
    field_of(s, &flow);
    draw_flow(&p, PANEL, s, &flow, "end");
    draw_decay(&p, 2 * PANEL, s, &c);
    picture_save_halved(&p, s->options->out);
    printf("picture: %s\n", s->options->out);
    if (s->options->time && steps) printf("time: %.4f ms a step\n", 1e3 * spent / (double)steps);
    print_figures(s, &c, &first, &now);
}

/* -------------------------------------------------------------------------------------------------
   >>compare: the three ways
   ---------------------------------------------------------------------------------------------- */

enum { ROUNDS = 15 };

/* Medians of the seconds of ROUNDS rounds. */
static void print_rates(const scene *s, const char *order, int way, double *prepare, double *sum)
{
    double const built = median(prepare, ROUNDS), summed = median(sum, ROUNDS);
    printf("sums %-7s %s: build %.3f ms, sums %.3f ms: %.1f million particles/s, %.1f with the "
           "build\n", sum_names[way].name, order, 1e3 * built, 1e3 * summed,
           1e-6 * s->n / summed, 1e-6 * s->n / (built + summed));
}

#ifndef __CUDACC__ /* collisions.cu has its own */

/* direct and header add the particles of a cell by ascending numbers, lists by descending ones: so
   the first two agree in every bit, and lists to rounding. Exit status 1: they do not. */
static int check_sums(scene *s)
{
    size_t const count = (size_t)(s->model.dim + 1) * (size_t)s->cells;
    mpc_real *sums = (mpc_real *)zeros(SUM_WAYS * count, sizeof *sums);
    double most = 0;
    int way, same;
    size_t k;
    for (way = 0; way < SUM_WAYS; way++) {
        prepare_sums(s, way);
        sum_cells(s, way);
        memcpy(sums + (size_t)way * count, s->sums, count * sizeof *sums);
    }
    same = memcmp(sums, sums + SUM_HEADER * count, count * sizeof *sums) == 0;
    for (k = 0; k < count; k++)
        most = fmax(most, fabs((double)(sums[k] - sums[SUM_LISTS * count + k])));
    printf("direct_is_header %d\nlists_differ_by %.3e\n", same, most);
    free(sums);
    return !same || !(most < 1e-12 * s->options->mean);
}

/* Processor time; the ways take turns. */
static void time_round(scene *s, const char *order)
{
    double prepare[SUM_WAYS][ROUNDS], sum[SUM_WAYS][ROUNDS];
    int k, way;
    for (k = 0; k < ROUNDS; k++)
        for (way = 0; way < SUM_WAYS; way++) {
            double const begun = processor_seconds();
            double built;
            prepare_sums(s, way);
            built = processor_seconds();
            sum_cells(s, way);
            prepare[way][k] = built - begun;
            sum[way][k] = processor_seconds() - built;
        }
    for (way = 0; way < SUM_WAYS; way++) print_rates(s, order, way, prepare[way], sum[way]);
}

static void time_sums(scene *s)
{
    time_round(s, "as they lie");
    order_particles(s);
    time_round(s, "cell order");
}

#endif

#endif /* COLLISIONS_RUN_H */
