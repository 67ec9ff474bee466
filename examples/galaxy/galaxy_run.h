/* galaxy_run.h - a run of the galaxies: all steps, pictures and reports on the way, the figures at
   the end.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef GALAXY_RUN_H
#define GALAXY_RUN_H

#include "../common/progress.h"
#include "galaxy.h"

/* -------------------------------------------------------------------------------------------------
   >>figures
   ---------------------------------------------------------------------------------------------- */

typedef struct galaxy_figures {
    nbody_energies sums;
    nbody_error error;      /* of forces */
} galaxy_figures;

static double galaxy_energy(const galaxy_figures *f) { return f->sums.kinetic + f->sums.potential; }

static double galaxy_share(double change, double whole)
{
    return fabs(whole) > 0 ? fabs(change / whole) : fabs(change);
}

/* What has changed since the start, as a share: of both energies; of the momentum that all
   bodies would have if they moved into one direction with these energies; of the angular
   momentum. */
typedef struct galaxy_drift { double energy, momentum, angular; } galaxy_drift;

static galaxy_drift galaxy_drift_of(const galaxy_figures *start, const galaxy_figures *now)
{
    double const energies = start->sums.kinetic + fabs(start->sums.potential);
    galaxy_drift drift;
    drift.energy = galaxy_share(galaxy_energy(now) - galaxy_energy(start), energies);
    drift.momentum = galaxy_share(hypot(now->sums.momentum[0] - start->sums.momentum[0],
                                        now->sums.momentum[1] - start->sums.momentum[1]),
                                  sqrt(2 * energies * start->sums.mass));
    drift.angular = galaxy_share(now->sums.angular - start->sums.angular, start->sums.angular);
    return drift;
}

static void galaxy_print_report(const galaxy_options *o, const galaxy_figures *start,
                                const galaxy_figures *now, int32_t step)
{
    galaxy_drift const drift = galaxy_drift_of(start, now);
    printf("step %6ld, time %7.3f: energy %11.6f (drift %.1e), forces of %ld bodies wrong by %.1e "
           "on average, %.1e at most\n",
           (long)step, step * o->dt, galaxy_energy(now), drift.energy, (long)now->error.samples,
           now->error.mean, now->error.worst);
    fflush(stdout);
}

static void galaxy_print_figures(const galaxy_figures *start, const galaxy_figures *now,
                                 double seconds, int32_t step)
{
    printf("            %14s %14s\n", "start", "end");
    printf("  kinetic   %14.8g %14.8g\n", start->sums.kinetic, now->sums.kinetic);
    printf("  potential %14.8g %14.8g\n", start->sums.potential, now->sums.potential);
    printf("  energy    %14.8g %14.8g\n", galaxy_energy(start), galaxy_energy(now));
    printf("  momentum  %14.3g %14.3g  x\n", start->sums.momentum[0], now->sums.momentum[0]);
    printf("            %14.3g %14.3g  y\n", start->sums.momentum[1], now->sums.momentum[1]);
    printf("  angular   %14.8g %14.8g\n", start->sums.angular, now->sums.angular);
    if (step)
        printf("%.2f ms a step (%.1f steps/s)\n", 1e3 * seconds / step, step / (seconds + 1e-9));
}

/* The last line, the same for both programs. */
static void galaxy_print_line(const galaxy_options *o, const galaxy_figures *start,
                              const galaxy_figures *now, int32_t step)
{
    galaxy_drift const drift = galaxy_drift_of(start, now);
    printf("bodies %ld, steps %ld, energy %.6f, drift of energy %.1e, of momentum %.1e, of angular "
           "momentum %.1e, ",
           (long)o->n, (long)step, galaxy_energy(now), drift.energy, drift.momentum, drift.angular);
    printf("force error %.1e\n", now->error.mean);
}

static void galaxy_print_sums(const char *when, const nbody_energies *sums)
{
    printf("%s_kinetic %.9e\n%s_potential %.9e\n", when, sums->kinetic, when, sums->potential);
    printf("%s_momentum_x %.9e\n%s_momentum_y %.9e\n", when, sums->momentum[0], when,
           sums->momentum[1]);
    printf("%s_angular %.9e\n", when, sums->angular);
    printf("%s_centre_x %.9e\n%s_centre_y %.9e\n", when, sums->centre[0], when, sums->centre[1]);
}

static void galaxy_print_check(const galaxy_options *o, const galaxy_figures *start,
                               const galaxy_figures *now, int32_t step)
{
    galaxy_drift const drift = galaxy_drift_of(start, now);
    printf("bodies %ld\nsteps %ld\nmass %.9e\n", (long)o->n, (long)step, now->sums.mass);
    galaxy_print_sums("start", &start->sums);
    galaxy_print_sums("end", &now->sums);
    printf("energy_drift %.3e\nmomentum_drift %.3e\nangular_drift %.3e\n", drift.energy,
           drift.momentum, drift.angular);
    printf("samples %ld\nforce_error %.3e\nforce_worst %.3e\nforce_share %.3e\n",
           (long)now->error.samples, now->error.mean, now->error.worst, now->error.share);
}

/* -------------------------------------------------------------------------------------------------
   >>run
   ---------------------------------------------------------------------------------------------- */

#include "galaxy_draw.h"

/* What a program brings: how to make steps, and how to look at the bodies. */
typedef struct galaxy_engine {
    void *user;
    int32_t stride;     /* steps that are best made in one go */
    void (*advance)(void *user, int32_t steps);
    void (*measure)(void *user, galaxy_figures *figures);
    /* the mass in each pixel, of both discs: density[2][height][width], which is 0 before */
    void (*density)(void *user, const galaxy_view *view, float *density);
    const galaxy_state *(*look)(void *user);
} galaxy_engine;

typedef struct galaxy_show {
    galaxy_options *options;
    const galaxy_engine *engine;
    galaxy_album album;
    window window;
    progress progress;
    double next_view;       /* when the window is to be drawn again */
    galaxy_figures start, now;
    int32_t step;           /* made so far */
    double seconds;         /* that steps took */
} galaxy_show;

static int32_t galaxy_report_every(const galaxy_options *o)
{
    return o->report ? o->report : o->steps / 5 + (o->steps < 5);
}

/* The next step at which there is something to do. */
static int32_t galaxy_next_stop(const galaxy_options *o, int32_t step)
{
    int32_t const every = galaxy_report_every(o), next = galaxy_album_next(o, step);
    int64_t const report = ((int64_t)step / every + 1) * every;
    return report < next ? (int32_t)report : next;
}

/* Fills a density with the picture of now. */
static void galaxy_bin(galaxy_show *show, const galaxy_view *view, float *density)
{
    memset(density, 0, galaxy_pixels(view) * 2 * sizeof *density);
    show->engine->density(show->engine->user, view, density);
}

/* All pictures of this step: usually one, several where two frames are one step. */
static void galaxy_shoot(galaxy_show *show)
{
    const galaxy_options *o = show->options;
    int32_t k;
    for (k = 0; k < o->frames; k++)
        if (picture_step(o->steps, k, o->frames) == show->step) {
            galaxy_view const view = galaxy_view_of(&show->album, GALAXY_FRAME_WIDTH, show->step);
            galaxy_bin(show, &view, show->album.density);
            galaxy_save_frame(&show->album, &view, show->step, k);
        }
    for (k = 0; o->sheet && k < GALAXY_SHEET_VIEWS; k++)
        if (picture_step(o->steps, k, GALAXY_SHEET_VIEWS) == show->step) {
            galaxy_view const view = galaxy_view_of(&show->album, GALAXY_SHEET_WIDTH, show->step);
            galaxy_bin(show, &view, show->album.density);
            galaxy_add_to_sheet(&show->album, &view, show->step, k);
        }
}

static void galaxy_report(galaxy_show *show)
{
    show->engine->measure(show->engine->user, &show->now);
    if (show->step == 0) show->start = show->now;
    if (show->options->check) return;
    progress_clear(&show->progress);
    galaxy_print_report(show->options, &show->start, &show->now, show->step);
}

/* Draws into the window when it is time for that: 20 frames a second, fewer where drawing would
   slow down the run by more than a fifth. 0: it was closed. */
static int galaxy_live(galaxy_show *show, int always)
{
    double const begun = seconds_now();
    if (!show->window.handle) return 1;
    if (always || begun >= show->next_view) {
        galaxy_view const view = galaxy_view_of(&show->album, GALAXY_FRAME_WIDTH, show->step);
        galaxy_bin(show, &view, show->album.density);
        galaxy_draw_frame(&show->album, &view, show->step);
        window_show(&show->window, &show->album.frame);
        show->next_view = seconds_now() + fmax(0.05, 5 * (seconds_now() - begun));
    }
    do {
        while (window_key(&show->window)) { }
        if (show->window.waits) window_pause(20);
    } while (show->window.waits && !show->window.closed);
    return !show->window.closed;
}

/* Makes the steps up to the next stop or up to the engine's stride, and what is to be done
   there. */
static void galaxy_go_on(galaxy_show *show)
{
    const galaxy_options *o = show->options;
    int32_t const stop = galaxy_next_stop(o, show->step);
    int32_t const todo =
        stop - show->step < show->engine->stride ? stop - show->step : show->engine->stride;
    double const begun = seconds_now();
    show->engine->advance(show->engine->user, todo);
    show->seconds += seconds_now() - begun;
    show->step += todo;
    if (show->step == stop) galaxy_shoot(show);
    if (show->step % galaxy_report_every(o) == 0) galaxy_report(show);
    if (!o->check) progress_show(&show->progress, show->step, o->steps, "");
}

/* Makes all steps, until the window is closed. */
static galaxy_show galaxy_run(galaxy_options *o, const galaxy_engine *engine,
                              const galaxy_state *start)
{
    galaxy_show show;
    memset(&show, 0, sizeof show);
    show.options = o;
    show.engine = engine;
    show.album = galaxy_album_begin(o, start);
    if (o->window) window_open(&show.window, &show.album.frame);
    show.progress = progress_begin("step");
    galaxy_shoot(&show);
    galaxy_report(&show);
    while (show.step < o->steps && galaxy_live(&show, 0)) galaxy_go_on(&show);
    if (show.step % galaxy_report_every(o) != 0) galaxy_report(&show);
    while (show.window.handle && galaxy_live(&show, 1)) window_pause(200);
    window_close(&show.window);
    return show;
}

/* What there is to say at the end. */
static void galaxy_finish(galaxy_show *show)
{
    const galaxy_options *o = show->options;
    galaxy_album_end(&show->album);
    if (show->step < o->steps) progress_clear(&show->progress);
    if (o->write) galaxy_write(o->write, show->engine->look(show->engine->user), show->step);
    if (o->check) {
        galaxy_print_check(o, &show->start, &show->now, show->step);
        return;
    }
    galaxy_print_figures(&show->start, &show->now, show->seconds, show->step);
    if (o->frames)
        printf("pictures: %s/frame_0000.png to frame_%04ld.png\n", o->out,
               (long)show->album.frames - 1);
    if (o->sheet) printf("picture: %s/sheet.png\n", o->out);
    galaxy_print_line(o, &show->start, &show->now, show->step);
}

#endif /* GALAXY_RUN_H */
