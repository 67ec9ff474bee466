/* fluidised_bed_run.h - what fluidised_bed.c measures and prints: the curve of the pressure against
   the velocity, and the bubbles at one velocity.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef FLUIDISED_BED_RUN_H
#define FLUIDISED_BED_RUN_H

#include "fluidised_bed_draw.h"
#include "../common/progress.h"

/* -------------------------------------------------------------------------------------------------
   >>measures
   ---------------------------------------------------------------------------------------------- */

/* The weight of the grains in air, on the area of the bottom: the pressure that carries them. */
static double bed_weight(const bed *b)
{
    return b->grains.n * b->volume * (density - gas_density) * 9.81 / (b->size[0] * b->size[2]);
}

/* Twice the height of the middle of mass; and the root of the mean square of the speed. */
static double bed_height(const bed *b)
{
    double sum = 0;
    int32_t i;
    for (i = 0; i < b->grains.n; i++) sum += (double)b->grains.pos[4 * (size_t)i + 1];
    return 2 * sum / b->grains.n;
}

static double bed_speed(const bed *b)
{
    double sum = 0;
    int32_t i;
    for (i = 0; i < b->grains.n; i++) {
        const float *v = b->grains.vel + 4 * (size_t)i;
        sum += (double)dem_dot(v, v);
    }
    return sqrt(sum / b->grains.n);
}

/* Rows of gas cells that are within the bed, but for its surface. */
static int32_t bed_rows(const bed *b)
{
    int32_t const rows = (int32_t)(0.75 * bed_height(b) / b->air.edge);
    return rows < 1 ? 1 : rows > b->air.high ? b->air.high : rows;
}

/* Of those cells. */
static bed_gaps measure_gaps(const bed *b)
{
    double const bubble = 0.7;
    int32_t const cells = bed_rows(b) * b->air.wide;
    bed_gaps found = {0, 0};
    int32_t c;
    for (c = 0; c < cells; c++) {
        found.porosity += b->air.porosity[c] / cells;
        found.bubbles += (b->air.porosity[c] > bubble) / (double)cells;
    }
    return found;
}

static void print_bed(const bed *b)
{
    printf("%ld glass beads of %.1f mm in a box of %.1f x %.1f mm; air in %ld x %ld cells of %.2f "
           "mm; steps of %.2e s\n",
           (long)b->grains.n, 1e3 * diameter, 1e3 * b->size[0], 1e3 * b->size[2],
           (long)b->air.wide, (long)b->air.high, 1e3 * b->air.edge, (double)b->grains.dt);
}

/* -------------------------------------------------------------------------------------------------
   >>state: means over a time
   ---------------------------------------------------------------------------------------------- */

static void add_sample(const bed *b, bed_state *s)
{
    bed_gaps const now = measure_gaps(b);
    s->drop += gas_drop(&b->air) / bed_weight(b);
    s->height += bed_height(b);
    s->speed += bed_speed(b);
    s->gaps.porosity += now.porosity;
    s->gaps.bubbles += now.bubbles;
    s->samples++;
}

static void take_mean(bed_state *s)
{
    double *const value[] = {&s->drop, &s->height, &s->speed, &s->gaps.porosity, &s->gaps.bubbles};
    int k;
    for (k = 0; k < 5; k++) *value[k] /= (double)s->samples;
}

/* Steps until the gas is computed anew, which is at `seconds` or a little after. */
static void advance(bed *b, double seconds)
{
    while (seconds_of(b) < seconds || b->step % GAS_EVERY != 0) step(b);
}

/* -------------------------------------------------------------------------------------------------
   >>curve: from fast to slow, so that the bed settles without being pressed
   ---------------------------------------------------------------------------------------------- */

/* At one velocity for the time of --seconds; means over its second half. */
static bed_state run_velocity(bed *b, double inflow, double seconds)
{
    enum { SAMPLES = 40 };
    double const begin = seconds_of(b);
    bed_state s;
    int k;
    memset(&s, 0, sizeof s);
    bed_blow(b, inflow);
    for (k = 1; k <= SAMPLES; k++) {
        advance(b, begin + seconds * (0.5 + 0.5 * k / SAMPLES));
        add_sample(b, &s);
    }
    take_mean(&s);
    return s;
}

/* Through the points of the bed at rest, from the slowest on while the gas carries a part, the
   least squares of drop = a U + b U^2 (each in parts of what is measured); where it carries all. */
static double find_onset(const double *inflow, const bed_state *s)
{
    double uu = 0, uv = 0, vv = 0, u1 = 0, v1 = 0, det;
    int k;
    for (k = BED_POINTS - 1; k >= 0 && s[k].drop < 0.85; k--) {
        double const u = inflow[k] / s[k].drop, v = u * inflow[k];
        uu += u * u;
        uv += u * v;
        vv += v * v;
        u1 += u;
        v1 += v;
    }
    det = uu * vv - uv * uv;
    if (!(det > 0)) stop(1, "too few velocities at which the bed rests: a smaller --speed");
    return onset_root((u1 * vv - v1 * uv) / det, (uu * v1 - uv * u1) / det, 1);
}

static void print_point(double inflow, double wen_yu, const bed_state *s)
{
    printf("%8.3f %8.3f %9.3f %9.2f %9.3f %9.4f %8.1f\n", inflow, inflow / wen_yu, s->drop,
           1e3 * s->height, s->gaps.porosity, s->speed, 100 * s->gaps.bubbles);
    fflush(stdout);
}

static void run_curve(bed *b)
{
    double const wen_yu = onset_wen_yu(diameter, density);
    double inflow[BED_POINTS], onset, ergun;
    bed_state s[BED_POINTS];
    const bed_state *slow = &s[BED_POINTS - 1];
    int k;
    bed_blow(b, b->options->speed * wen_yu);
    advance(b, 2 * b->options->seconds);
    puts("   U m/s   U/Wen-Yu drop/weight height mm porosity  speed m/s bubbles %");
    for (k = 0; k < BED_POINTS; k++) {
        inflow[k] = b->options->speed * wen_yu * (BED_POINTS - k) / BED_POINTS;
        s[k] = run_velocity(b, inflow[k], b->options->seconds);
        print_point(inflow[k], wen_yu, &s[k]);
    }
    onset = find_onset(inflow, s);
    ergun = onset_ergun(diameter, density, slow->gaps.porosity);
    draw_curve(b->options->out, inflow, s, onset, wen_yu);
    printf("picture: %s\n", b->options->out);
    printf("minimum velocity of fluidisation: measured %.4f m/s; Wen and Yu 1966 %.4f; Ergun 1952 "
           "at porosity %.3f: %.4f\n", onset, wen_yu, slow->gaps.porosity, ergun);
    printf("figures: onset %.4f wen_yu %.4f ergun %.4f porosity %.4f drop_fast %.4f drop_slow %.4f "
           "height_fast %.5f height_slow %.5f speed_fast %.5f speed_slow %.6f\n",
           onset, wen_yu, ergun, slow->gaps.porosity, s[0].drop, slow->drop, s[0].height,
           slow->height, s[0].speed, slow->speed);
}

/* -------------------------------------------------------------------------------------------------
   >>bubbles: how fast they rise
   ---------------------------------------------------------------------------------------------- */

/* The porosity of two rows of cells over time. A bubble is in the upper row a while after it was in
   the lower one; the while is the one at which both are most alike. */
enum { ROW_LOW, ROW_HIGH, ROWS_SEEN, MOST_TIMES = 4000 };
static double const between_times = 0.002;

typedef struct bed_signal {
    double *seen[ROWS_SEEN];        /* [times * wide] */
    int32_t row[ROWS_SEEN], times;
} bed_signal;

static bed_signal signal_new(const bed *b)
{
    bed_signal s;
    int32_t const rows = (int32_t)(diameter * b->options->high / b->air.edge);
    int k;
    s.times = 0;
    for (k = 0; k < ROWS_SEEN; k++) {
        s.row[k] = rows * (1 + k) / 3;
        s.seen[k] = (double *)zeros((size_t)MOST_TIMES * (size_t)b->air.wide, sizeof(double));
    }
    return s;
}

static void signal_add(const bed *b, bed_signal *s)
{
    size_t const wide = (size_t)b->air.wide;
    int k;
    if (s->times == MOST_TIMES) return;
    for (k = 0; k < ROWS_SEEN; k++)
        memcpy(s->seen[k] + (size_t)s->times * wide, b->air.porosity + (size_t)s->row[k] * wide,
               wide * sizeof(double));
    s->times++;
}

/* How alike both rows are, the upper one so many times later: a correlation, by column. */
static double signal_likeness(const bed_signal *s, int32_t wide, int32_t later)
{
    double sum[2] = {0, 0}, square[2] = {0, 0}, product = 0;
    int32_t const count = (s->times - later) * wide;
    int32_t k;
    for (k = 0; k < count; k++) {
        double const low = s->seen[ROW_LOW][k], high = s->seen[ROW_HIGH][k + later * wide];
        sum[0] += low;
        sum[1] += high;
        square[0] += low * low;
        square[1] += high * high;
        product += low * high;
    }
    for (k = 0; k < 2; k++) square[k] -= sum[k] * sum[k] / count;
    product -= sum[0] * sum[1] / count;
    return square[0] > 0 && square[1] > 0 ? product / sqrt(square[0] * square[1]) : 0;
}

/* In m/s; 0 where the rows are nowhere alike. Frees the signal. */
static double signal_rise(const bed *b, bed_signal *s)
{
    double const apart = (s->row[ROW_HIGH] - s->row[ROW_LOW]) * b->air.edge;
    double best = 0.1, rise = 0;
    int32_t later;
    for (later = 1; later < s->times / 3 && later * between_times < 0.2; later++) {
        double const like = signal_likeness(s, b->air.wide, later);
        if (like <= best) continue;
        best = like;
        rise = apart / (later * between_times);
    }
    free(s->seen[ROW_LOW]);
    free(s->seen[ROW_HIGH]);
    return rise;
}

/* After a quarter of the time all is measured; the pictures are of the end. */
static void run_bubbles(bed *b)
{
    double const wen_yu = onset_wen_yu(diameter, density), all = b->options->seconds;
    progress bar = progress_begin("ms");
    picture p = shots_new(b);
    bed_signal signal = signal_new(b);
    bed_state s;
    double rise;
    int shot = 0;
    memset(&s, 0, sizeof s);
    bed_blow(b, b->options->speed * wen_yu);
    while (seconds_of(b) < all) {
        advance(b, fmin(all, seconds_of(b) + between_times));
        progress_show(&bar, (int64_t)(1e3 * seconds_of(b)), (int64_t)(1e3 * all), "");
        if (shot < SHOTS && seconds_of(b) > all - (SHOTS - 1 - shot) * between_shots - 1e-9)
            draw_shot(&p, b, shot++, seconds_of(b));
        if (seconds_of(b) < 0.25 * all) continue;
        add_sample(b, &s);
        signal_add(b, &signal);
    }
    take_mean(&s);
    rise = signal_rise(b, &signal);
    if (s.gaps.bubbles < 0.001) rise = 0; /* grains that settle */
    picture_save_halved(&p, b->options->out);
    printf("picture: %s\n"
           "U %.3f m/s, %.2f of Wen and Yu's minimum; the bed is %.1f mm high, %.1f %% of "
           "it bubbles",
           b->options->out, b->air.inflow, b->options->speed, 1e3 * s.height,
           100 * s.gaps.bubbles);
    if (rise > 0) printf(", which rise at %.2f m/s\n", rise);
    else puts("");
    printf("figures: drop %.4f height %.5f speed %.5f porosity %.4f bubbles %.5f rise %.4f steps "
           "%lld lists %lld rounds %.1f\n",
           s.drop, s.height, s.speed, s.gaps.porosity, s.gaps.bubbles, rise, (long long)b->step,
           (long long)b->builds, (double)b->air.rounds * GAS_EVERY / (double)b->step);
}

#endif /* FLUIDISED_BED_RUN_H */
