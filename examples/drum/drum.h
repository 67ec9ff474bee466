/* drum.h - what drum.c (serial) and drum.cu (GPU) share: options, the spheres at the start, the
   descriptions of grid and lists.
   SPDX-License-Identifier: MIT OR Unlicense

   (drum_mesh.h: the drum; drum_run.h: the loop over all steps, figures, files; drum_draw.h:
   pictures; common/dem.h: the force of a contact.) */

#ifndef DRUM_H
#define DRUM_H

#include "../common/base.h"
#include "../common/options.h"
#include "../common/random.h"

#include "../../ugrid.h"
#include "../../lbvh.h"
#include "../../nlist.h"

#include "../common/dem.h"
#include "drum_mesh.h"

/* -------------------------------------------------------------------------------------------------
   >>options
   ---------------------------------------------------------------------------------------------- */

typedef struct drum_options {
    int32_t n, steps, sort_every, check_every, width, half, history, deterministic, frames, seed;
    int32_t mean_every, copies;
    int32_t shuffle, vtk, ascii, demo, check; /* flags */
    const char *layout_name, *mode_name, *stl, *out, *curves, *save, *load;
    float length, fill, spacing, rpm, dt, friction, softness, skin, mean_cell;
    /* found from the names */
    nlist_layout layout;
    nlist_mode mode;
} drum_options;

static const option_name drum_layouts[] = {
    {"hybrid", NLIST_HYBRID}, {"static", NLIST_STATIC}, {"dynamic", NLIST_DYNAMIC},
    {"compact", NLIST_COMPACT}, {NULL, 0}
};
static const option_name drum_modes[] = {
    {"auto", NLIST_AUTO}, {"particle", NLIST_PER_PARTICLE}, {"contact", NLIST_PER_CONTACT},
    {"reduce", NLIST_REDUCE}, {NULL, 0}
};

static void drum_read_options(int argc, char **argv, drum_options *o)
{
    const option_line table[] = {
        INT("-n", "N", &o->n, 1, 200e6, "spheres (default 2000); their size follows from --fill"),
        INT("--steps", "N", &o->steps, 0, INT_MAX / 2, "time steps (default 9000)"),
        INT("--sort-every", "N", &o->sort_every, 0, 1e9,
            "steps between sorts of the spheres by cells, 0 = never (default 100)"),
        INT("--history", "0|1", &o->history, 0, 1,
            "keep the tangential springs from step to step (default 1)"),
        TEXT("--layout", "NAME", &o->layout_name,
             "of the list of pairs: hybrid (default), static, dynamic, compact"),
        INT("--width", "N", &o->width, 0, 1024,
            "slots per sphere, hybrid and static (default 8, 16 with --half 0)"),
        INT("--half", "0|1", &o->half, 0, 1, "list each pair once (default 1), or in both rows"),
        TEXT("--mode", "NAME", &o->mode_name,
             "how forces are summed: auto (default), particle, contact, reduce"),
        FLOAT("--skin", "S", &o->skin, 0, 2,
              "in radii: lists reach further, and serve several steps (default 0)"),
        INT("--deterministic", "0|1", &o->deterministic, 0, 1,
            "GPU: the same bits in every run (default 0)"),
        INT("--check-every", "N", &o->check_every, 1, 1e6,
            "GPU: steps between two checks of the device (default 100)"),
        TEXT("--curves", "FILE", &o->curves, "GPU: time all ways to sort, into a CSV file"),
        TEXT("--stl", "FILE", &o->stl,
             "the drum, in metres, axis y; written if missing (default OUT/drum.stl)"),
        FLAG("--ascii", &o->ascii, "write STL and VTK files as text"),
        FLOAT("--length", "L", &o->length, 0.01, 100,
              "of the drum that is written, in diameters (default 0.2)"),
        FLOAT("--fill", "F", &o->fill, 0.001, 0.7,
              "part of the drum that settled spheres fill (default 0.35)"),
        FLOAT("--spacing", "S", &o->spacing, 0.9, 2,
              "of the spheres at the start, in diameters (default 1.02)"),
        FLOAT("--rpm", "W", &o->rpm, -1e4, 1e4, "turns per minute (default 30)"),
        FLOAT("--friction", "MU", &o->friction, 0, 10, "coefficient of friction (default 0.5)"),
        FLOAT("--softness", "S", &o->softness, 1e-4, 0.5,
              "overlap, in radii, of two that meet after a fall of half the drum's radius (default "
              "0.15)"),
        FLOAT("--dt", "T", &o->dt, 0, 1,
              "time step in s (default 0: a 30th of a contact's duration)"),
        INT("--seed", "N", &o->seed, 0, INT_MAX, "of the random offsets at the start (default 1)"),
        FLAG("--shuffle", &o->shuffle,
             "start with the spheres in random order (with --load: --history 0)"),
        INT("--frames", "N", &o->frames, 1, 100000,
            "draw N pictures of the run, frame_0000.png ..."),
        FLAG("--vtk", &o->vtk,
             "with each frame, or of the end: spheres_0000.vtk, contacts_, drum_"),
        INT("--mean-every", "N", &o->mean_every, 1, 1e9,
            "every N steps add velocities to averages in cells: velocity_0000.vtk at the end"),
        FLOAT("--mean-cell", "W", &o->mean_cell, 1, 1e3, "edge of these, in radii (default 4)"),
        TEXT("--save", "FILE", &o->save, "write the end of the run, for --load"),
        TEXT("--load", "FILE", &o->load,
             "go on from there to step --steps, with the same bits as without a stop"),
        INT("--copies", "N", &o->copies, 1, 100000,
            "with --load: the file is a slice of the drum, which is N of them (--history 0)"),
        TEXT("--out", "DIR", &o->out, "where files go (default build/demo)"),
        FLAG("--demo", &o->demo, "pictures of the default run"),
        FLAG("--check", &o->check, "print nothing but \"name value\" lines"),
        OPTIONS_END};
    options_read(argc, argv, table, NULL, "Spheres in a rotating drum.",
                 "-n 20000 --length 0.5 --frames 50 --vtk --out pictures");
}

static drum_options drum_parse(int argc, char **argv)
{
    drum_options o;
    memset(&o, 0, sizeof o);
    o.n = 2000;
    o.steps = 9000;
    o.sort_every = o.check_every = 100;
    o.width = -1;
    o.half = o.history = o.seed = 1;
    o.copies = 1;
    o.layout_name = "hybrid";
    o.mode_name = "auto";
    o.out = "build/demo";
    o.length = 0.2f;
    o.fill = 0.35f;
    o.spacing = 1.02f;
    o.mean_cell = 4;
    o.rpm = 30;
    o.friction = 0.5f;
    o.softness = 0.15f;
    drum_read_options(argc, argv, &o);
    if (o.demo && !o.frames) o.frames = 12;
    if (o.width < 0) o.width = o.half ? 8 : 16;
    if (o.n % o.copies || (o.copies > 1 && (!o.load || o.history)))
        stop(2, "--copies: with --load and --history 0, and -n a multiple of it");
    o.layout = (nlist_layout)option_find(drum_layouts, "--layout", o.layout_name);
    o.mode = (nlist_mode)option_find(drum_modes, "--mode", o.mode_name);
#ifndef __CUDACC__
    if (o.curves) stop(2, "--curves is for the program on a GPU");
#endif
    return o;
}

/* -------------------------------------------------------------------------------------------------
   >>state
   ---------------------------------------------------------------------------------------------- */

/* As dem_system has them, 4 numbers per sphere and array; in an order that changes when they are
   sorted. */
typedef struct drum_state {
    int32_t n;
    float *pos, *vel, *spin;
    float *sums;            /* [6 * n] force and torque at these positions */
    int32_t *id;            /* [n] the number that the sphere had at the start */
} drum_state;

static drum_state drum_state_new(int32_t n)
{
    drum_state state;
    state.n = n;
    state.pos = (float *)zeros((size_t)n * 4, sizeof(float));
    state.vel = (float *)zeros((size_t)n * 4, sizeof(float));
    state.spin = (float *)zeros((size_t)n * 4, sizeof(float));
    state.sums = (float *)zeros((size_t)n * DEM_SUMS, sizeof(float));
    state.id = (int32_t *)zeros((size_t)n, sizeof(int32_t));
    return state;
}

static void drum_state_free(drum_state *state)
{
    free(state->pos);
    free(state->vel);
    free(state->spin);
    free(state->sums);
    free(state->id);
    memset(state, 0, sizeof *state);
}

static void drum_copy_state(drum_state *to, const drum_state *from)
{
    size_t const n = (size_t)from->n;
    memcpy(to->pos, from->pos, 4 * n * sizeof(float));
    memcpy(to->vel, from->vel, 4 * n * sizeof(float));
    memcpy(to->spin, from->spin, 4 * n * sizeof(float));
    memcpy(to->sums, from->sums, DEM_SUMS * n * sizeof(float));
    memcpy(to->id, from->id, n * sizeof(int32_t));
}

/* Is every sphere there once? */
static int drum_is_whole(const drum_state *state)
{
    unsigned char *seen = (unsigned char *)zeros((size_t)state->n, 1);
    int32_t i, whole = 1;
    for (i = 0; i < state->n; i++) {
        if (state->id[i] < 0 || state->id[i] >= state->n || seen[state->id[i]]) whole = 0;
        else seen[state->id[i]] = 1;
    }
    free(seen);
    return (int)whole;
}

/* The sites of a lattice in a box around the drum. Each sphere is moved from its site by less
   than half of the gap of two. */
typedef struct drum_lattice {
    float radius, spacing, jitter, corner[3];
    int32_t count[3];
} drum_lattice;

static drum_lattice drum_lattice_in(const drum_mesh *mesh, float radius, float spacing)
{
    float const low[3] = {-mesh->radius, mesh->low, -mesh->radius},
                high[3] = {mesh->radius, mesh->high, mesh->radius};
    drum_lattice lattice;
    int a;
    lattice.radius = radius;
    lattice.spacing = 2 * spacing * radius;
    lattice.jitter = 0.9f * fabsf(spacing - 1) * radius;
    for (a = 0; a < 3; a++) {
        lattice.count[a] = (int32_t)((high[a] - low[a]) / lattice.spacing);
        lattice.corner[a] =
            0.5f * (low[a] + high[a]) - 0.5f * lattice.spacing * (float)(lattice.count[a] - 1);
    }
    return lattice;
}

/* Fills the drum from below with n spheres; returns how many found room. */
static int32_t drum_fill(const drum_mesh *mesh, const drum_lattice *lattice, uint64_t seed,
                         int32_t n, float *pos)
{
    nlist_mesh const surface = drum_list_mesh(mesh);
    lbvh_desc const desc = drum_tree_desc(&surface);
    lbvh tree;
    int32_t x, y, z, filled = 0;
    memset(&tree, 0, sizeof tree);
    MUST(lbvh, lbvh_build(&tree, &desc, mesh->now, 0, mesh->triangles), "the tree over the drum");
    for (z = 0; z < lattice->count[2]; z++)
        for (y = 0; y < lattice->count[1]; y++)
            for (x = 0; x < lattice->count[0] && filled < n; x++) {
                int32_t const at[3] = {x, y, z};
                float *p = pos + 4 * (size_t)filled;
                int a;
                for (a = 0; a < 3; a++)
                    p[a] = lattice->corner[a] + lattice->spacing * (float)at[a] +
                           lattice->jitter * (2 * random_float(&seed) - 1);
                p[3] = lattice->radius;
                if (drum_inside(&tree, &surface, mesh->high, p) &&
                    drum_clear(&tree, &surface, p, 1.01f * lattice->radius))
                    filled++;
            }
    lbvh_free(&tree);
    return filled;
}

static void drum_exchange(float *array, size_t i, size_t j)
{
    float keep[4];
    memcpy(keep, array + 4 * i, sizeof keep);
    memcpy(array + 4 * i, array + 4 * j, sizeof keep);
    memcpy(array + 4 * j, keep, sizeof keep);
}

/* Each order has the same chance (Knuth 2, 3.4.2, P). Sums stay: they are made anew. */
static void drum_shuffle(uint64_t seed, drum_state *state)
{
    int32_t i;
    for (i = state->n - 1; i > 0; i--) {
        size_t const j = (size_t)((random_bits(&seed) >> 33) % ((uint64_t)i + 1));
        int32_t const id = state->id[i];
        drum_exchange(state->pos, (size_t)i, j);
        drum_exchange(state->vel, (size_t)i, j);
        drum_exchange(state->spin, (size_t)i, j);
        state->id[i] = state->id[j];
        state->id[j] = id;
    }
}

/* Spheres at rest. */
static drum_state drum_start(const drum_options *o, const drum_mesh *mesh, float radius, float mass)
{
    drum_lattice const lattice = drum_lattice_in(mesh, radius, o->spacing);
    uint64_t seed = random_seed(o->seed);
    drum_state state = drum_state_new(o->n);
    int32_t i, filled;
    for (i = 0; i < 16; i++) random_bits(&seed); /* the first few still look like the seed */
    filled = drum_fill(mesh, &lattice, seed, o->n, state.pos);
    if (filled < o->n)
        stop(1,
             "only %ld of %ld spheres of radius %g found room in the drum: a smaller --fill, or "
             "more of them (--n)",
             (long)filled, (long)o->n, (double)radius);
    if (o->shuffle) drum_shuffle(seed, &state);
    for (i = 0; i < o->n; i++) {
        state.vel[4 * (size_t)i + 3] = 1 / mass;
        state.id[i] = i; /* by place: also where they were shuffled */
    }
    return state;
}

/* -------------------------------------------------------------------------------------------------
   >>setup
   ---------------------------------------------------------------------------------------------- */

#define DRUM_GRAVITY 9.81
#define DRUM_DENSITY 2500.0     /* glass, kg/m^3 */
#define DRUM_PACKING 0.6        /* part of the room that spheres fill where they lie as they fell */

/* What both programs need to make a step. */
typedef struct drum_setup {
    drum_mesh mesh;
    dem_system system;          /* its arrays are set by the programs */
    float radius, mass;         /* of a sphere */
    /* radians per second round the y axis: at the bottom, the wall goes to -x */
    double omega;
    ugrid_desc grid;
    nlist_desc pairs, walls;    /* sphere and sphere, sphere and triangle */
    nlist_sums pair_sums, wall_sums;
} drum_setup;

/* So stiff that two spheres overlap by softness * radius when they meet as fast as after a fall
   of half the drum's radius. Real glass is a thousand times stiffer and takes steps 30 times
   smaller, but moves in the same way. */
static dem_material drum_material(const drum_options *o, const drum_setup *setup)
{
    double const speed2 = DRUM_GRAVITY * (double)setup->mesh.radius,
                 overlap = (double)o->softness * (double)setup->radius;
    return dem_material_of(0.5 * (double)setup->mass * speed2 / (overlap * overlap), 0.6, 0.3,
                           (double)o->friction);
}

static void drum_set_system(const drum_options *o, drum_setup *setup)
{
    dem_system *s = &setup->system;
    s->n = o->n;
    s->between = s->walls = drum_material(o, setup);
    s->mesh = drum_list_mesh(&setup->mesh);
    s->mesh_motion.omega[1] = (float)setup->omega;
    s->gravity[2] = (float)-DRUM_GRAVITY;
    s->dt =
        o->dt > 0 ? o->dt : (float)(dem_contact_time(&s->between, 0.5 * (double)setup->mass) / 30);
    s->history_off = !o->history;
}

/* Cells as wide as the lists reach: then all partners of a sphere are in the cells around it. */
static void drum_set_grid(const drum_options *o, drum_setup *setup)
{
    ugrid_desc *desc = &setup->grid;
    const drum_mesh *mesh = &setup->mesh;
    desc->min[0] = desc->min[2] = -mesh->radius;
    desc->max[0] = desc->max[2] = mesh->radius;
    desc->min[1] = mesh->low;
    desc->max[1] = mesh->high;
    desc->cell = (2 + o->skin) * setup->radius;
    desc->method = UGRID_SORT;
    desc->inverse = o->sort_every > 0;
    desc->max_cells = INT32_MAX / 2;
}

static void drum_set_lists(const drum_options *o, drum_setup *setup)
{
    int32_t const history = o->history ? DEM_HISTORY : 0;
    setup->pairs.radius = 2 * setup->radius;
    setup->pairs.skin = o->skin * setup->radius;
    setup->pairs.layout = o->layout;
    setup->pairs.width = o->layout == NLIST_HYBRID || o->layout == NLIST_STATIC ? o->width : 0;
    setup->pairs.half = o->half;
    setup->pairs.history = history;
    setup->walls.radius = setup->radius;
    setup->walls.layout = NLIST_DYNAMIC;
    setup->walls.history = history;
    setup->pairs.deterministic = setup->walls.deterministic = o->deterministic;
    setup->pair_sums.values = setup->wall_sums.values = DEM_SUMS;
    setup->pair_sums.mode = o->mode;
    /* 2^40 units are the force of an overlap by two radii: no force is as large. Torques, which
       are added in the same units, are smaller by a radius, and still have as many digits as a
       float. */
    if (o->deterministic)
        setup->pair_sums.unit = setup->wall_sums.unit =
            2 * (double)(setup->system.between.k_n * setup->radius) / 1099511627776.0;
}

static drum_setup drum_setup_new(const drum_options *o)
{
    drum_soup soup = drum_get_soup(o->stl, o->out, o->length, o->ascii);
    drum_setup setup;
    memset(&setup, 0, sizeof setup);
    setup.mesh = drum_mesh_new(&soup);
    free(soup.corner);
    setup.radius =
        (float)cbrt((double)o->fill * setup.mesh.volume * DRUM_PACKING / (o->n * 4.0 / 3.0 * PI));
    setup.mass = (float)dem_mass((double)setup.radius, DRUM_DENSITY);
    setup.omega = (double)o->rpm * 2 * PI / 60;
    drum_set_system(o, &setup);
    drum_set_grid(o, &setup);
    drum_set_lists(o, &setup);
    return setup;
}

static double drum_angle(const drum_setup *setup, int64_t step)
{
    return setup->omega * (double)setup->system.dt * (double)step;
}

/* Does `step` begin with sorting all particle data? */
static int drum_sorts(const drum_options *o, int64_t step)
{
    return o->sort_every > 0 && step % o->sort_every == 0;
}

#endif /* DRUM_H */
