/* drum_run.h - a run of the drum: all steps, pictures and files on the way, and the figures at the
   end.
   SPDX-License-Identifier: MIT OR Unlicense

   >>figures   energies, contacts, centre of mass
   >>vtk       files for ParaView: spheres, the drum, the network of contacts
   >>run       the loop over all steps */

#ifndef DRUM_RUN_H
#define DRUM_RUN_H

#include "../common/progress.h"
#include "vtk_mean.h"
#include "drum_save.h"

/* -------------------------------------------------------------------------------------------------
   >>figures: the end of the run, measured without its lists: pairs by a grid, walls by a tree
   ---------------------------------------------------------------------------------------------- */

typedef struct drum_figures {
    int64_t inside;         /* spheres */
    int64_t contacts;       /* pairs of spheres that touch */
    int64_t wall_contacts;  /* spheres that touch the drum */
    double overlap, deepest;/* of two spheres: on average, and the largest */
    double kinetic, turning;/* energy of motion: sums of m v^2 / 2 and of I w^2 / 2 */
    double fastest;         /* speed */
    double centre[3];       /* of mass */
    /* by the drum at this moment, as a part of the spheres' weight: 1 on average */
    double carried;
    int whole;              /* is every sphere there once? */
} drum_figures;

typedef struct drum_overlaps {
    const float *pos;
    double sum, deepest;
    int64_t contacts;
} drum_overlaps;

/* How far two spheres overlap; below 0 they are apart. */
static double drum_overlap(const float *p, const float *q)
{
    double const x = (double)q[0] - (double)p[0], y = (double)q[1] - (double)p[1],
                 z = (double)q[2] - (double)p[2];
    return (double)p[3] + (double)q[3] - sqrt(x * x + y * y + z * z);
}

static int drum_add_overlap(void *user, int32_t i, int32_t j)
{
    drum_overlaps *all = (drum_overlaps *)user;
    double const overlap = drum_overlap(all->pos + 4 * (size_t)i, all->pos + 4 * (size_t)j);
    if (overlap <= 0) return 0;
    all->sum += overlap;
    all->deepest = overlap > all->deepest ? overlap : all->deepest;
    all->contacts++;
    return 0;
}

static void drum_measure_pairs(const drum_setup *setup, const drum_state *state, drum_figures *f)
{
    ugrid grid;
    ugrid_desc desc = setup->grid;
    drum_overlaps all = {state->pos, 0, 0, 0};
    memset(&grid, 0, sizeof grid);
    desc.method = UGRID_COUNT;
    desc.inverse = 0;
    MUST(ugrid, ugrid_build(&grid, &desc, state->pos, DEM_STRIDE, state->n),
         "the grid for the figures");
    MUST(ugrid, ugrid_each_pair(&grid, 2.0001f * setup->radius, UGRID_HALF, drum_add_overlap, &all),
         "counting contacts");
    ugrid_free(&grid);
    f->contacts = all.contacts;
    f->overlap = all.contacts ? all.sum / (double)all.contacts : 0;
    f->deepest = all.deepest;
}

static void drum_measure_walls(const drum_setup *setup, const drum_state *state, drum_figures *f)
{
    nlist_mesh const mesh = drum_list_mesh(&setup->mesh);
    lbvh_desc const desc = drum_tree_desc(&mesh);
    lbvh tree;
    int32_t i;
    memset(&tree, 0, sizeof tree);
    MUST(lbvh, lbvh_build(&tree, &desc, setup->mesh.now, 0, setup->mesh.triangles),
         "the tree for the figures");
    for (i = 0; i < state->n; i++) {
        const float *p = state->pos + 4 * (size_t)i;
        f->inside += drum_inside(&tree, &mesh, setup->mesh.high, p);
        f->wall_contacts += !drum_clear(&tree, &mesh, p, p[3]);
    }
    lbvh_free(&tree);
}

static void drum_measure_motion(const drum_setup *setup, const drum_state *state, drum_figures *f)
{
    double const mass = (double)setup->mass,
                 inertia = 0.4 * mass * (double)setup->radius * (double)setup->radius;
    double speed2 = 0, spin2 = 0, most = 0, lift = 0;
    int32_t i;
    int a;
    for (i = 0; i < state->n; i++) {
        double v2 = 0;
        for (a = 0; a < 3; a++) {
            double const v = (double)state->vel[4 * (size_t)i + (size_t)a],
                         w = (double)state->spin[4 * (size_t)i + (size_t)a];
            f->centre[a] += (double)state->pos[4 * (size_t)i + (size_t)a] / state->n;
            v2 += v * v;
            spin2 += w * w;
        }
        speed2 += v2;
        most = v2 > most ? v2 : most;
        lift += (double)state->sums[DEM_SUMS * (size_t)i + 2];
    }
    f->kinetic = 0.5 * mass * speed2;
    f->turning = 0.5 * inertia * spin2;
    f->fastest = sqrt(most);
    f->carried = lift / (mass * DRUM_GRAVITY * state->n);
}

/* Are all numbers numbers? A run that became unstable is told so, not measured. */
static void drum_must_be_finite(const drum_state *state)
{
    size_t k;
    for (k = 0; k < 4 * (size_t)state->n; k++)
        if (!(fabsf(state->pos[k]) < 1e6f && fabsf(state->vel[k]) < 1e12f))
            stop(1, "the run became unstable: a sphere is lost in space (a smaller --dt may help)");
}

/* The mesh must have been turned to where it is now. */
static drum_figures drum_measure(const drum_setup *setup, const drum_state *state)
{
    drum_figures f;
    memset(&f, 0, sizeof f);
    drum_must_be_finite(state);
    drum_measure_pairs(setup, state, &f);
    drum_measure_walls(setup, state, &f);
    drum_measure_motion(setup, state, &f);
    f.whole = drum_is_whole(state);
    return f;
}

/* Degrees from straight down, positive to where a drum with --rpm > 0 carries the spheres. */
static double drum_slope(const drum_figures *f)
{
    return atan2(-f->centre[0], -f->centre[2]) * 180 / PI;
}
static double drum_depth(const drum_figures *f)
{
    return sqrt(f->centre[0] * f->centre[0] + f->centre[2] * f->centre[2]);
}

/* The parts of a step, in the words of Kureck's table 6.8. */
enum {
    DRUM_MOVE, DRUM_SORT, DRUM_TRIANGLES, DRUM_GRID, DRUM_FIND_TRIANGLES, DRUM_FIND_SPHERES,
    DRUM_PUSH_TRIANGLES, DRUM_PUSH_SPHERES, DRUM_STAGES
};
static const char *const drum_stage_names[DRUM_STAGES] = {"integrate",
                                                          "sort",
                                                          "prepare triangles",
                                                          "grid",
                                                          "collect triangle neighbours",
                                                          "collect sphere neighbours",
                                                          "forces triangles",
                                                          "forces spheres"};

/* Average seconds of each part where it was made (a sort is not made in each step), and of a
   whole step. */
typedef struct drum_times { double stage[DRUM_STAGES], step; } drum_times;

/* From sums over `sampled` steps and `sorts`, and over all `steps`. */
static drum_times drum_average(const drum_times *sum, int64_t sampled, int64_t sorts, int64_t steps)
{
    drum_times t = *sum;
    int k;
    for (k = 0; k < DRUM_STAGES; k++) {
        int64_t const count = k == DRUM_SORT ? sorts : sampled;
        t.stage[k] /= count ? (double)count : 1;
    }
    t.step /= steps ? (double)steps : 1;
    return t;
}

static void drum_print_times(const drum_options *o, const drum_times *t)
{
    int k;
    printf("time per step %.4f ms, %.1f steps/s; its parts:\n", 1e3 * t->step, 1 / t->step);
    for (k = 0; k < DRUM_STAGES; k++) {
        if (k == DRUM_SORT && o->sort_every == 0) continue;
        printf("  %-28s %9.4f ms", drum_stage_names[k], 1e3 * t->stage[k]);
        if (k == DRUM_SORT) printf("  in one of %ld steps", (long)o->sort_every);
        printf("\n");
    }
}

static void drum_print_figures(const drum_options *o, const drum_setup *setup,
                               const drum_figures *f, const drum_times *t, int64_t entries)
{
    double const n = (double)o->n;
    printf(
        "after %ld steps of %.3g s (%.3f turns; %ld spheres of radius %.3g mm, %ld triangles):\n",
        (long)o->steps, (double)setup->system.dt, drum_angle(setup, o->steps) / (2 * PI),
        (long)o->n, 1e3 * (double)setup->radius, (long)setup->mesh.triangles);
    printf("  energy of motion    %.4g J, and of turning %.4g J; the fastest sphere %.3f m/s\n",
           f->kinetic, f->turning, f->fastest);
    printf("  overlaps            %.2f %% of a radius on average, %.2f %% the deepest\n",
           100 * f->overlap / (double)setup->radius, 100 * f->deepest / (double)setup->radius);
    printf("  list                %.2f entries a sphere, %.2f contacts\n", (double)entries / n,
           (double)f->contacts / n);
    printf("  carried by the drum %.3f of the weight\n", f->carried);
    if (t->step > 0) drum_print_times(o, t);
}

/* The last line, the same for both programs. */
static void drum_print_line(const drum_options *o, const drum_figures *f)
{
    printf("spheres %ld, inside %lld, contacts %lld, at the wall %lld, kinetic energy %.4g J, "
           "centre of mass %.4f m from the axis, "
           "%.1f degrees round\n",
           (long)o->n, (long long)f->inside, (long long)f->contacts, (long long)f->wall_contacts,
           f->kinetic, drum_depth(f), drum_slope(f));
}

static void drum_print_check(const drum_options *o, const drum_setup *setup, const drum_figures *f,
                             int64_t entries)
{
    printf("spheres %ld\ninside %lld\nwhole %d\n", (long)o->n, (long long)f->inside, f->whole);
    printf("triangles %ld\nvertices %ld\nopen_edges %ld\nvolume %.9e\n",
           (long)setup->mesh.triangles, (long)setup->mesh.vertices, (long)setup->mesh.open_edges,
           setup->mesh.volume);
    printf("steps %ld\ndt %.9e\nangle %.9e\nradius %.9e\nmass %.9e\n", (long)o->steps,
           (double)setup->system.dt, drum_angle(setup, o->steps), (double)setup->radius,
           (double)setup->mass);
    printf("contacts %lld\nwall_contacts %lld\nentries %lld\n", (long long)f->contacts,
           (long long)f->wall_contacts, (long long)entries);
    printf("overlap %.9e\ndeepest %.9e\nk_n %.9e\nk_t %.9e\n", f->overlap, f->deepest,
           (double)setup->system.between.k_n, (double)setup->system.between.k_t);
    printf("kinetic_energy %.9e\nturning_energy %.9e\nfastest %.9e\n", f->kinetic, f->turning,
           f->fastest);
    printf("centre_x %.9e\ncentre_y %.9e\ncentre_z %.9e\n", f->centre[0], f->centre[1],
           f->centre[2]);
    printf("slope %.9e\ncarried %.9e\n", drum_slope(f), f->carried);
}

/* -------------------------------------------------------------------------------------------------
   >>vtk: open all files of one name as a series. spheres: Glyph, sphere, scaled by radius;
   contacts: Tube, colored by force; drum: Surface, opacity 0.2
   ---------------------------------------------------------------------------------------------- */

static void drum_vtk_spheres(const drum_options *o, const drum_state *s, int32_t number,
                             int32_t step)
{
    vtk const v = vtk_begin(o->out, "spheres", number, step, o->ascii);
    int32_t i;
    vtk_points(&v, s->pos, s->n, 4);
    vtk_vectors(&v, "velocity", s->vel, s->n, 4);
    vtk_vectors(&v, "spin", s->spin, s->n, 4);
    vtk_scalars(&v, "radius", "float");
    vtk_columns(&v, s->pos + 3, s->n, 4, 1);
    vtk_scalars(&v, "id", "int");
    for (i = 0; i < s->n; i++) vtk_ints(&v, s->id + i, 1);
    vtk_end(&v);
}

/* A contact of the list, when both touch: each pair once, also from a list that has it twice. */
/* cell: 2, i, j */
typedef struct drum_link { int32_t cell[3]; float overlap, force, spring; } drum_link;

static int drum_link_of(const nlist *list, const drum_state *state, int32_t i, const nlist_each *e,
                        drum_link *link)
{
    float *history = (float *)e->history;
    link->cell[0] = 2;
    link->cell[1] = i;
    link->cell[2] = e->id;
    link->overlap = (float)drum_overlap(state->pos + 4 * (size_t)i, state->pos + 4 * (size_t)e->id);
    link->force = history ? history[3] : 0;
    link->spring =
        history ? sqrtf(history[0] * history[0] + history[1] * history[1] + history[2] * history[2])
                : 0;
    return link->overlap > 0 && (list->desc.half || i < e->id);
}

enum { DRUM_COUNT, DRUM_ENDS, DRUM_OVERLAP, DRUM_FORCE, DRUM_SPRING };

/* Goes through the list, and writes one thing of each contact. */
static int64_t drum_put_links(const vtk *v, const nlist *list, const drum_state *state, int what)
{
    int64_t count = 0;
    int32_t i;
    for (i = 0; i < state->n; i++) {
        nlist_each e = nlist_of(list, i);
        drum_link link;
        while (nlist_next(&e)) {
            if (!drum_link_of(list, state, i, &e, &link)) continue;
            count++;
            if (what == DRUM_ENDS) vtk_ints(v, link.cell, 3);
            if (what == DRUM_OVERLAP) vtk_floats(v, &link.overlap, 1);
            if (what == DRUM_FORCE) vtk_floats(v, &link.force, 1);
            if (what == DRUM_SPRING) vtk_floats(v, &link.spring, 1);
        }
    }
    return count;
}

/* The network of contacts, with what each keeps. */
static void drum_vtk_contacts(const drum_options *o, const nlist *list, const drum_state *state,
                              int32_t number, int32_t step)
{
    static const char *const names[] = {"overlap", "force", "spring"};
    vtk const v = vtk_begin(o->out, "contacts", number, step, o->ascii);
    int64_t const count = drum_put_links(&v, list, state, DRUM_COUNT);
    int k;
    fprintf(v.out.file, "POINTS %ld float\n", (long)state->n);
    vtk_columns(&v, state->pos, state->n, 4, 3);
    fprintf(v.out.file, "\nLINES %lld %lld\n", (long long)count, 3 * (long long)count);
    drum_put_links(&v, list, state, DRUM_ENDS);
    fprintf(v.out.file, "\nCELL_DATA %lld\n", (long long)count);
    for (k = 0; k < (o->history ? 3 : 1); k++) {
        vtk_scalars(&v, names[k], "float");
        drum_put_links(&v, list, state, DRUM_OVERLAP + k);
    }
    vtk_end(&v);
}

static void drum_vtk_drum(const drum_options *o, const drum_mesh *mesh, int32_t number,
                          int32_t step)
{
    vtk const v = vtk_begin(o->out, "drum", number, step, o->ascii);
    int32_t k, cell[4] = {3, 0, 0, 0};
    fprintf(v.out.file, "POINTS %ld float\n", (long)mesh->vertices);
    vtk_columns(&v, mesh->now, mesh->vertices, 3, 3);
    fprintf(v.out.file, "\nPOLYGONS %ld %ld\n", (long)mesh->triangles, 4 * (long)mesh->triangles);
    for (k = 0; k < mesh->triangles; k++) {
        memcpy(cell + 1, mesh->indices + 3 * (size_t)k, 3 * sizeof *cell);
        vtk_ints(&v, cell, 4);
    }
    vtk_end(&v);
}

/* -------------------------------------------------------------------------------------------------
   >>run
   ---------------------------------------------------------------------------------------------- */

/* What a program brings: how to make steps, and how to look at the spheres, and at the lists, in
   their present order. */
typedef struct drum_engine {
    void *user;
    int32_t stride;     /* steps that are best made in one go */
    void (*advance)(void *user, int32_t steps);
    const drum_state *(*look)(void *user);
    const nlist *(*pairs)(void *user);
    const nlist *(*walls)(void *user);
    int64_t (*entries)(void *user); /* of the list of pairs */
    drum_times (*times)(void *user);
} drum_engine;

#include "drum_draw.h"

static void drum_write_files(const drum_options *o, const drum_setup *setup,
                             const drum_engine *engine, int32_t number, int32_t step)
{
    const drum_state *state = engine->look(engine->user);
    if (o->frames) drum_draw_frame(o, setup, state, number, step);
    if (!o->vtk) return;
    drum_vtk_spheres(o, state, number, step);
    drum_vtk_contacts(o, engine->pairs(engine->user), state, number, step);
    drum_vtk_drum(o, &setup->mesh, number, step);
}

/* All files of this step: usually one set, several where two frames are one step. */
static void drum_shoot(const drum_options *o, drum_setup *setup, const drum_engine *engine,
                       int32_t step)
{
    int32_t k;
    drum_turn_mesh(&setup->mesh, drum_angle(setup, step));
    for (k = 0; k < o->frames; k++)
        if (picture_step(o->steps, k, o->frames) == step)
            drum_write_files(o, setup, engine, k, step);
    if (!o->frames && o->vtk && step == o->steps) drum_write_files(o, setup, engine, 0, step);
}

/* The next step at which the run has to stop. */
static int32_t drum_next_stop(const drum_options *o, int32_t step)
{
    int32_t const frame = next_picture(o->steps, o->frames, step), every = o->mean_every;
    int64_t const mean = every ? ((int64_t)step / every + 1) * every : frame;
    return mean < frame ? (int32_t)mean : frame;
}

/* Cells of the averages, over the box of the drum. */
static vtk_mean drum_mean_new(const drum_options *o, const drum_setup *setup)
{
    vtk_mean mean;
    memset(&mean, 0, sizeof mean);
    mean.desc = setup->grid;
    mean.desc.cell = o->mean_cell * setup->radius;
    mean.desc.inverse = 0;
    return mean;
}

/* Makes the steps from `step` on, stopping for pictures and to show how far it is. */
static void drum_run(const drum_options *o, drum_setup *setup, const drum_engine *engine,
                     int32_t step)
{
    progress bar = progress_begin("step");
    char turns[40];
    vtk_mean mean = drum_mean_new(o, setup);
    if (o->frames || o->vtk || o->mean_every) make_folder(o->out);
    drum_shoot(o, setup, engine, step);
    while (step < o->steps) {
        int32_t const until = drum_next_stop(o, step);
        int32_t todo = until - step < engine->stride ? until - step : engine->stride;
        engine->advance(engine->user, todo);
        step += todo;
        if (step == until) drum_shoot(o, setup, engine, step);
        if (o->mean_every && step % o->mean_every == 0) {
            const drum_state *state = engine->look(engine->user);
            vtk_mean_add(&mean, state->pos, state->vel, state->n);
        }
        snprintf(turns, sizeof turns, "%.2f turns, ", drum_angle(setup, step) / (2 * PI));
        if (!o->check) progress_show(&bar, step, o->steps, turns);
    }
    if (o->mean_every && !mean.moments)
        fprintf(stderr, "drum: --mean-every %ld: no step was averaged\n", (long)o->mean_every);
    if (mean.moments) vtk_mean_write(&mean, o->out, step, o->ascii);
    vtk_mean_free(&mean);
}

/* What there is to say at the end. */
static void drum_finish(const drum_options *o, drum_setup *setup, const drum_engine *engine)
{
    const drum_state *state = engine->look(engine->user);
    int64_t const entries = engine->entries(engine->user);
    drum_times const times = engine->times(engine->user);
    drum_figures f;
    drum_turn_mesh(&setup->mesh, drum_angle(setup, o->steps));
    f = drum_measure(setup, state);
    if (o->save)
        drum_save_run(o, setup, state, engine->pairs(engine->user), engine->walls(engine->user),
                      o->steps);
    if (o->check) {
        drum_print_check(o, setup, &f, entries);
        return;
    }
    drum_print_figures(o, setup, &f, &times, entries);
    if (o->frames)
        printf("pictures: %s/frame_0000.png to frame_%04ld.png\n", o->out, (long)o->frames - 1);
    drum_print_line(o, &f);
}

#endif /* DRUM_RUN_H */
