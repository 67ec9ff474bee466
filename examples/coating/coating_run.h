/* coating_run.h - the run of coating.c: lines of text, the coating over time, the picture.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef COATING_RUN_H
#define COATING_RUN_H

#include "../common/progress.h"

/* -------------------------------------------------------------------------------------------------
   >>figures
   ---------------------------------------------------------------------------------------------- */

/* Mean and standard deviation over all particles, mg. */
static coat_sample coat_sample_now(const coating *c)
{
    int32_t const n = c->options->bed.n;
    coat_sample s = {(double)c->bed->step * (double)c->bed->bodies.base.dt, 0, 0};
    double sum = 0, squares = 0;
    int32_t i;
    for (i = 1; i <= n; i++) sum += (double)c->count[i];
    s.mean = c->mass * sum / n;
    for (i = 1; i <= n; i++) squares += pow(c->mass * (double)c->count[i] - s.mean, 2);
    s.spread = sqrt(squares / n);
    return s;
}

static double coat_relative(const coat_sample *s) { return s->mean > 0 ? s->spread / s->mean : 0; }

static int64_t coat_hits(const coating *c)
{
    return c->bursts * c->spray.rays - c->count[0];
}

static void coat_print_line(const coating *c, const coat_sample *s)
{
    int32_t i, bare = 0;
    for (i = 1; i <= c->options->bed.n; i++) bare += c->count[i] == 0;
    printf("%8.4f s: %8.3f mg sprayed, %8.3f on particles: mean %.4f mg, spread %.4f (%.1f %%), "
           "%ld bare\n",
           s->time, c->mass * (double)(c->bursts * c->spray.rays),
           c->mass * (double)coat_hits(c), s->mean, s->spread, 100 * coat_relative(s), (long)bare);
    fflush(stdout);
}

static void coat_write_masses(const coating *c, const char *path)
{
    out_file const out = create_file(path);
    int32_t i;
    for (i = 0; i < c->options->bed.n; i++)
        fprintf(out.file, "%ld %s %.9g\n", (long)i,
                dem_body_shape(&c->bed->bodies, i)->kind == SHAPE_TABLET ? "tablet" : "sphere",
                c->mass * (double)c->count[1 + i]);
    close_file(&out);
}

static void coat_print_figures(const coating *c, const coat_sample *s)
{
    printf("figures: rays %lld hits %lld mass %.9g sprayed %.9g deposited %.9g mean %.9g spread "
           "%.9g relative %.6f steps %lld\n",
           (long long)(c->bursts * c->spray.rays), (long long)coat_hits(c), c->mass,
           c->mass * (double)(c->bursts * c->spray.rays), c->mass * (double)coat_hits(c), s->mean,
           s->spread, coat_relative(s), (long long)c->bed->step);
}

/* -------------------------------------------------------------------------------------------------
   >>picture: the bed, colored by coating; mean with spread, and the spread in parts of the mean,
   over time
   ---------------------------------------------------------------------------------------------- */

enum { PLOT_LEFT = 190, PLOT_RIGHT = 60, PLOT_HIGH = 400, PLOT_TOP = 130 };
static const rgb plot_ink = {0.2, 0.22, 0.26}, plot_line = {0.75, 0.25, 0.15};

/* A frame with its title, the largest number at its top, and a line of samples in it. value 0: the
   mean, with a bar of the spread; 1: the spread in percent of the mean, from the first hits on. */
static void plot_samples(picture *p, int left, int top, const coating *c, int value,
                         const char *title)
{
    int const wide = 2 * PANEL_WIDE - PLOT_LEFT - PLOT_RIGHT, bottom = top + PLOT_HIGH;
    const coat_sample *s = c->sample;
    double const last = s[c->samples - 1].time;
    double most = 1e-30, x0 = 0, y0 = 0;
    char text[40];
    int k;
    for (k = 0; k < c->samples; k++)
        most = fmax(most, value ? 100 * coat_relative(&s[k]) : s[k].mean + s[k].spread);
    draw_text(p, left, top - 44, 4, plot_ink, title);
    draw_frame(p, left, top, left + wide, bottom, 2, gray(0.6));
    snprintf(text, sizeof text, "%.3g", most);
    draw_text(p, left - 20 - text_width(text, 4), top, 4, plot_ink, text);
    draw_text(p, left - 44, bottom - 30, 4, plot_ink, "0");
    snprintf(text, sizeof text, "%.3g s", last);
    draw_text(p, left + wide - text_width(text, 4), bottom + 14, 4, plot_ink, text);
    for (k = 0; k < c->samples; k++) {
        double const y = value ? 100 * coat_relative(&s[k]) : s[k].mean;
        double const up = PLOT_HIGH / (1.05 * most), px = left + wide * s[k].time / last,
                     py = bottom - y * up;
        if (!value)
            draw_line(p, px, bottom - fmax(0, y - s[k].spread) * up, px,
                      bottom - (y + s[k].spread) * up, 4, rgb_of(0.95, 0.8, 0.66));
        if (k > value) draw_line(p, x0, y0, px, py, 3, plot_line);
        x0 = px;
        y0 = py;
    }
}

static void coat_draw(coating *c, const char *path)
{
    picture p = picture_new(4 * PANEL_WIDE, 2 * PANEL_HIGH, gray(1));
    double *tone = (double *)zeros((size_t)c->options->bed.n, sizeof *tone), most = 1e-30;
    int const left = 2 * PANEL_WIDE + PLOT_LEFT;
    int32_t i;
    for (i = 1; i <= c->options->bed.n; i++) most = fmax(most, (double)c->count[i]);
    for (i = 1; i <= c->options->bed.n; i++) tone[i - 1] = (double)c->count[i] / most;
    c->bed->tone = tone;
    draw_panel(&p, 0, 0, 1, c->bed, "");
    plot_samples(&p, left, PLOT_TOP, c, 0, "coating of a particle, mg: mean, spread");
    plot_samples(&p, left, PLOT_TOP + PLOT_HIGH + 190, c, 1, "spread in percent of the mean");
    picture_save_halved(&p, path);
    printf("picture: %s\n", path);
    c->bed->tone = NULL;
    free(tone);
}

/* -------------------------------------------------------------------------------------------------
   >>run
   ---------------------------------------------------------------------------------------------- */

/* Makes so many steps and the bursts that are due; then c->count is up to date. */
typedef void coat_advance_fn(void *user, int64_t steps);

/* A sample for each part of the time; a line of text for every tenth of them; picture, figures. */
static void coat_run(coating *c, coat_advance_fn *advance, void *user)
{
    int64_t const steps = (int64_t)ceil(c->bed->seconds / (double)c->bed->bodies.base.dt);
    int32_t const samples = steps < COAT_SAMPLES ? (int32_t)steps : COAT_SAMPLES;
    progress bar = progress_begin("step");
    int32_t k;
    c->sample[c->samples++] = coat_sample_now(c);
    for (k = 1; k <= samples; k++) {
        advance(user, steps * k / samples - c->bed->step);
        progress_show(&bar, c->bed->step, steps, "");
        c->sample[c->samples++] = coat_sample_now(c);
        if (k % 10 && k < samples) continue;
        progress_clear(&bar);
        coat_print_line(c, &c->sample[k]);
    }
    if (c->options->masses) coat_write_masses(c, c->options->masses);
    coat_draw(c, c->options->out);
    coat_print_figures(c, &c->sample[samples]);
}

#endif /* COATING_RUN_H */
