/* dam_break_run.h - a run of the dam break: all steps, pictures on the way, and the figures at the
   end.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef DAM_BREAK_RUN_H
#define DAM_BREAK_RUN_H

#include "../common/progress.h"
#include "dam_break.h"

/* -------------------------------------------------------------------------------------------------
   >>figures: the end of the run, in double and by ascending ids: the same state, the same figures
   ---------------------------------------------------------------------------------------------- */

typedef struct dam_figures {
    double kinetic;         /* sum of v^2 / 2 */
    double gravity, springs;/* potential energy: sum of g z; sum of spring * overlap^2 / 2 */
    double fastest;         /* speed */
    double centre[3];       /* of mass */
    int64_t contacts;       /* pairs that touch */
} dam_figures;

typedef struct dam_overlaps { const float *pos; double sum; int64_t contacts; } dam_overlaps;

static int dam_add_overlap(void *user, int32_t i, int32_t j)
{
    dam_overlaps *overlaps = (dam_overlaps *)user;
    float d[3];
    double const overlap = 1 - sqrt((double)dam_between(overlaps->pos + 3 * (size_t)i,
                                                        overlaps->pos + 3 * (size_t)j, d));
    overlaps->sum += overlap * overlap;
    overlaps->contacts++;
    return 0;
}

/* All pairs of touching spheres, each once, from a grid of its own: whatever method the run
   used, it is counted the same way. */
static void dam_measure_contacts(const dam_options *o, const dam_model *model,
                                 const dam_state *state, dam_figures *figures)
{
    ugrid grid;
    ugrid_desc desc = dam_grid_desc(o, state->n);
    dam_overlaps overlaps = {state->pos, 0, 0};
    memset(&grid, 0, sizeof grid);
    desc.method = UGRID_COUNT;
    desc.placement = UGRID_LOOSE;
    desc.walk = UGRID_WALK_AUTO;
    MUST(ugrid, ugrid_build(&grid, &desc, state->pos, 0, state->n), "the grid for the figures");
    MUST(ugrid, ugrid_each_pair(&grid, DAM_DIAMETER, UGRID_HALF, dam_add_overlap, &overlaps),
         "counting contacts");
    ugrid_free(&grid);
    figures->springs = 0.5 * (double)model->spring * overlaps.sum;
    figures->contacts = overlaps.contacts;
}

static dam_figures dam_measure(const dam_options *o, const dam_model *model, const dam_state *state)
{
    dam_figures figures;
    int32_t i;
    int a;
    memset(&figures, 0, sizeof figures);
    for (i = 0; i < state->n; i++) {
        double speed2 = 0;
        for (a = 0; a < 3; a++) {
            double const v = (double)state->vel[3 * (size_t)i + (size_t)a];
            figures.centre[a] += (double)state->pos[3 * (size_t)i + (size_t)a] / state->n;
            speed2 += v * v;
        }
        figures.kinetic += 0.5 * speed2;
        figures.fastest = sqrt(speed2) > figures.fastest ? sqrt(speed2) : figures.fastest;
    }
    figures.gravity = (double)model->gravity * figures.centre[2] * state->n;
    dam_measure_contacts(o, model, state, &figures);
    return figures;
}

/* Average seconds of one step, and of its three parts. */
typedef struct dam_times { double build, forces, integration, step; } dam_times;

/* From sums over `sampled` steps, and over all `steps`. */
static dam_times dam_average(const dam_times *sum, int64_t sampled, int64_t steps)
{
    double const parts = sampled ? (double)sampled : 1;
    dam_times t = *sum;
    t.build /= parts;
    t.forces /= parts;
    t.integration /= parts;
    t.step /= steps ? (double)steps : 1;
    return t;
}

static void dam_print_figures(const dam_options *o, const dam_figures *f, const dam_times *t,
                              int32_t n)
{
    printf("after %ld steps of %g (%ld spheres, %ld x %ld x %ld cells, method %s, walk %s%s):\n",
           (long)o->steps, (double)o->dt, (long)n, (long)o->grid, (long)o->depth, (long)o->grid,
           o->method_name, o->walk_name, o->half ? ", half" : "");
    printf("  kinetic energy      %14.6g\n", f->kinetic);
    printf("  potential energy    %14.6g   gravity %.6g, springs %.6g\n", f->gravity + f->springs,
           f->gravity, f->springs);
    printf("  contacts            %14lld   %.2f per sphere\n", (long long)f->contacts,
           2.0 * (double)f->contacts / n);
    printf("  centre of mass      %.4f %.4f %.4f\n", f->centre[0], f->centre[1], f->centre[2]);
    if (o->steps == 0) return;
    printf("  time per step       %11.3f ms   build %.3f, forces %.3f, integration %.3f\n",
           1e3 * t->step, 1e3 * t->build, 1e3 * t->forces, 1e3 * t->integration);
    printf("  particles moved     %11.3f million per second\n", n / t->step / 1e6);
}

static void dam_print_check(const dam_options *o, const dam_figures *f, int32_t n)
{
    printf("particles %ld\nsteps %ld\n", (long)n, (long)o->steps);
    printf("kinetic_energy %.9e\ngravity_energy %.9e\nspring_energy %.9e\n", f->kinetic, f->gravity,
           f->springs);
    printf("contacts %lld\nfastest %.9e\n", (long long)f->contacts, f->fastest);
    printf("centre_x %.9e\ncentre_y %.9e\ncentre_z %.9e\n", f->centre[0], f->centre[1],
           f->centre[2]);
}

/* -------------------------------------------------------------------------------------------------
   >>run
   ---------------------------------------------------------------------------------------------- */

/* What a program brings: how to make steps, and how to look at the particles (in the order of
   the start state). */
typedef struct dam_engine {
    void *user;
    int32_t stride;     /* steps that are best made in one go */
    void (*advance)(void *user, int32_t steps);
    void (*fetch)(void *user, dam_state *state);
    dam_times (*times)(void *user);
} dam_engine;

#include "dam_break_draw.h"

/* Makes all steps, stopping for pictures and to show how far it is. `state` is the particles at
   the end. */
static void dam_run(const dam_options *o, const dam_model *model, const dam_engine *engine,
                    dam_state *state)
{
    dam_album album = dam_album_begin(o, model);
    progress bar = progress_begin("step");
    int32_t step = 0;
    dam_album_shoot(&album, state, 0);
    while (step < o->steps) {
        int32_t const picture = dam_album_next(&album, step);
        int32_t todo = engine->stride < o->steps - step ? engine->stride : o->steps - step;
        if (picture - step < todo) todo = picture - step;
        engine->advance(engine->user, todo);
        step += todo;
        if (step == picture || step == o->steps) {
            engine->fetch(engine->user, state);
            dam_album_shoot(&album, state, step);
        }
        if (!o->check) progress_show(&bar, step, o->steps, "");
    }
    dam_album_end(&album, state->n);
    if (o->write) dam_write(o->write, state, o->steps);
}

/* The start state: from a file, or the left half of the box full of spheres. */
static dam_state dam_begin(const dam_options *o)
{
    dam_model model;
    if (o->read) return dam_read(o->read, o);
    model = dam_model_for(o, o->n);
    return dam_start(&model, o->n, o->seed);
}

/* What there is to say at the end. */
static void dam_finish(const dam_options *o, const dam_model *model, const dam_engine *engine,
                       const dam_state *state)
{
    dam_figures const figures = dam_measure(o, model, state);
    dam_times const times = engine->times(engine->user);
    if (o->check) {
        dam_print_check(o, &figures, state->n);
        return;
    }
    dam_print_figures(o, &figures, &times, state->n);
    if (o->sheet) printf("pictures: %s/sheet.png shows the whole run\n", o->out);
    if (o->frames)
        printf("          %s/frame_0000.png to frame_%04d.png, %ld frames\n", o->out,
               (int)o->frames - 1, (long)o->frames);
}

#endif /* DAM_BREAK_RUN_H */
