/* dam_break.h - what dam_break.c (serial) and dam_break.cu (GPU) share: everything but the time step itself.
   SPDX-License-Identifier: MIT OR Unlicense

   (dam_break_draw.h has the pictures.)

   >>model     what happens between two touching spheres, and to one sphere in a time step: one text for CPU and GPU
   >>options   the command line
   >>state     particles, and where they start
   >>text      particles from and to a text file
   >>figures   energies, contacts, centre of mass
   >>progress  the bar with steps/s and time left
   >>run       the loop over all steps: pictures, progress, figures

   The same text is C99 and C++17, so memory from malloc is cast. */

#ifndef DAM_BREAK_H
#define DAM_BREAK_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* clock_gettime, isatty, mkdir */
#endif

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../ugrid.h"

/* ------------------------------------------------------------------------------------------------
   >>model: soft spheres of diameter 1 and mass 1 in a closed box of cells of width 1

   Between two touching spheres a and b act the three forces of S. Green, "Particle Simulation using CUDA" (NVIDIA, 2010),
   which source 000 uses too (section 3). With n the unit vector from a to b, r their distance (< 1), u = vb - va:

                                                                          ,-----.
       force on a =  - spring * (1 - r) * n       pushes them apart      /   a ,--+--.
                     + dashpot * u                takes energy out       \     | /  b \     overlap 1 - r
                     + shear * (u - (u.n) n)      friction, viscosity     `----+'     /
                                                                                `----'
   and on b the opposite.

   The numbers. Gravity, spring and dashpot are Green's, converted to a diameter of 1 (his is 1/32): a sphere falls from
   the top to the floor of 64 cells in 115 units of time = 231 steps of 0.5, and moves 0.55 in the last of them. Shear is
   a fifth of his: with his 0.1 the wave dies on its first way through the box, with 0.02 it breaks at the wall,
   comes back twice, and the spheres lie still long before step 2000.

   Stable? For one degree of freedom, symplectic Euler needs  (w dt)^2 + 2 h dt < 4  with stiffness w^2 and damping h.
   A sphere with c contacts has, over all directions, w^2 = c spring / 3 and h = c (dashpot + 2/3 shear); in a regular
   packing the stiffest pattern of motion, neighbours against each other, has twice that:
       c = 12:   1.0 + 0.8 = 1.8 < 4.
   More particles than fit into the box side by side overlap from the start, and c grows with their number: with 76 per cell
   (10 million) to several hundred. So all three forces are divided by the crowd, the particles per cell of the left half
   at the start, when that is above 1. Then c / crowd, and with it every term above and the height at which the heap
   comes to rest, is the same from 130 thousand particles to 10 million: each of them is a smaller sample of the same stuff.
   Tried at 76 per cell in a smaller box with as much more gravity (--grid 12 -n 65900 --gravity 0.0512): up to 490 contacts per
   sphere, and after 600 steps 0.1 % of the energy of the fall is still in motion.
   ------------------------------------------------------------------------------------------------ */

typedef struct dam_model {
    int32_t size[3];    /* of the box, in cells */
    float dt;           /* time step */
    float gravity;      /* along -z */
    float spring, dashpot, shear;
    float bounce;       /* part of the speed that a wall gives back */
} dam_model;

#define DAM_DIAMETER 1.0f
#define DAM_RADIUS   0.5f

/* d = b - a; returns the square of its length. */
UGRID_FN float dam_between(const float a[3], const float b[3], float d[3])
{
    d[0] = b[0] - a[0];
    d[1] = b[1] - a[1];
    d[2] = b[2] - a[2];
    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
}

/* The force on sphere a by sphere b, which touch: d = b - a, d2 its square (< 1), va and vb the velocities.
   Two spheres in the very same place have no direction to part in: only the dashpot and all of the shear act. */
UGRID_FN void dam_contact(const dam_model *model, const float d[3], float d2, const float va[3], const float vb[3], float force[3])
{
    float const distance = sqrtf(d2), inverse = distance > 0 ? 1 / distance : 0;
    float const n[3] = {d[0] * inverse, d[1] * inverse, d[2] * inverse};
    float const u[3] = {vb[0] - va[0], vb[1] - va[1], vb[2] - va[2]};
    float const along = u[0] * n[0] + u[1] * n[1] + u[2] * n[2];
    float const push = model->spring * (DAM_DIAMETER - distance);
    int a;
    for (a = 0; a < 3; a++) force[a] = model->dashpot * u[a] - push * n[a] + model->shear * (u[a] - along * n[a]);
}

/* One time step of one sphere under a force: first the velocity, then, with the new velocity, the position (symplectic
   Euler: it does not gain energy as plain Euler does). A wall stops the sphere's surface and turns its velocity round. */
UGRID_FN void dam_move(const dam_model *model, const float force[3], float p[3], float v[3])
{
    int a;
    for (a = 0; a < 3; a++) {
        float const low = DAM_RADIUS, high = (float)model->size[a] - DAM_RADIUS;
        v[a] += (force[a] - (a == 2 ? model->gravity : 0)) * model->dt;
        p[a] += v[a] * model->dt;
        if (p[a] < low) {
            p[a] = low;
            if (v[a] < 0) v[a] *= -model->bounce;
        } else if (p[a] > high) {
            p[a] = high;
            if (v[a] > 0) v[a] *= -model->bounce;
        }
    }
}

/* ------------------------------------------------------------------------------------------------
   >>options
   ------------------------------------------------------------------------------------------------ */

typedef struct dam_options {
    int32_t n, steps, grid, depth, seed, frames, slots;
    int32_t half, sheet, vtk, demo, check, help;    /* flags */
    const char *method_name, *walk_name, *read, *write, *out;
    float dt, gravity, spring, dashpot, shear, bounce;
    /* found from the names */
    ugrid_method method;
    ugrid_placement placement;
    ugrid_walk walk;
    int32_t reorder;    /* particles are kept in the grid's order */
} dam_options;

/* Ends the program with a sentence. `status`: 1 = a file or the machine, 2 = the command line. */
#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 2, 3)))
#endif
static void dam_stop(int status, const char *format, ...)
{
    va_list arguments;
    fputs("dam_break: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(status);
}

static void dam_must(ugrid_result result, const char *what)
{
    if (result != UGRID_OK) dam_stop(1, "%s: %s", what, ugrid_result_text(result));
}

static void *dam_alloc(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory) dam_stop(1, "out of memory (%.0f MB wanted)", (double)count * (double)bytes / 1e6);
    return memory;
}

typedef struct dam_method {
    const char *name, *title;
    ugrid_method method;
    ugrid_placement placement;
    int32_t reorder;
} dam_method;

static const dam_method dam_methods[] = {
    {"fixed",  "Fixed",        UGRID_FIXED,       UGRID_LOOSE, 0},
    {"count",  "Count",        UGRID_COUNT,       UGRID_LOOSE, 0},
    {"sort",   "Sort",         UGRID_SORT,        UGRID_LOOSE, 1},
    {"list",   "List loose",   UGRID_LIST,        UGRID_LOOSE, 0},
    {"tight",  "List tight",   UGRID_LIST,        UGRID_TIGHT, 0},
    {"packed", "List packed",  UGRID_LIST_PACKED, UGRID_LOOSE, 0}
};
enum { DAM_METHODS = sizeof dam_methods / sizeof dam_methods[0] };

typedef struct dam_walk { const char *name; ugrid_walk walk; } dam_walk;
static const dam_walk dam_walks[] = {
    {"auto", UGRID_WALK_AUTO}, {"cells", UGRID_CELLS}, {"strips", UGRID_STRIPS}, {"modular", UGRID_MODULAR}, {"hybrid", UGRID_HYBRID}
};
enum { DAM_WALKS = sizeof dam_walks / sizeof dam_walks[0] };

/* One line of --help, and where the value goes: exactly one of the three pointers is set. */
typedef struct dam_flag {
    const char *name, *value, *help;    /* value NULL: a flag that takes none */
    int32_t *whole;
    float *real;
    const char **text;
    double least, most;
} dam_flag;

enum { DAM_FLAGS = 24 };

static void dam_flag_table(dam_options *o, dam_flag table[DAM_FLAGS])
{
    double const tiny = 1e-6, huge = 1e6;
    const dam_flag flags[DAM_FLAGS] = {
        {"-n", "N", "particles (default 30000; not with --read)", &o->n, NULL, NULL, 1, 500e6},
        {"--steps", "N", "time steps (default 2000)", &o->steps, NULL, NULL, 0, INT_MAX / 2},
        {"--method", "NAME", "fixed, count, sort (default; the particles are kept in the order of the cells),\n"
                             "                 list, tight (lists, particles entered in up to 8 cells) or packed", NULL, NULL, &o->method_name, 0, 0},
        {"--walk", "NAME", "order of the cells around a particle: auto (default), cells, strips, modular, hybrid", NULL, NULL, &o->walk_name, 0, 0},
        {"--half", NULL, "serial: visit each pair once and give both their force", &o->half, NULL, NULL, 0, 1},
        {"--slots", "N", "method fixed: particles that a cell can hold (default: 4 times the crowd, at least 32)", &o->slots, NULL, NULL, 1, 1e6},
        {"--grid", "N", "cells along each edge of the box (default 64)", &o->grid, NULL, NULL, 2, 1024},
        {"--depth", "N", "cells from front to back (default: as --grid)", &o->depth, NULL, NULL, 1, 1024},
        {"--seed", "N", "of the random offsets at the start (default 1)", &o->seed, NULL, NULL, 0, INT_MAX},
        {"--read", "FILE", "start from a text file: a line \"x y z\" for each particle, # begins a comment", NULL, NULL, &o->read, 0, 0},
        {"--write", "FILE", "write the positions at the end (with --steps 0: at the start) to such a file", NULL, NULL, &o->write, 0, 0},
        {"--frames", "N", "draw N pictures of the run, frame_0000.png ...", &o->frames, NULL, NULL, 1, 100000},
        {"--sheet", NULL, "draw 12 moments of the run into one picture, sheet.png", &o->sheet, NULL, NULL, 0, 1},
        {"--vtk", NULL, "write a file for ParaView with each frame, or of the end: frame_0000.vtk ...", &o->vtk, NULL, NULL, 0, 1},
        {"--out", "DIR", "where pictures go (default build/demo)", NULL, NULL, &o->out, 0, 0},
        {"--demo", NULL, "what `make demo` runs: about 20 seconds, with pictures", &o->demo, NULL, NULL, 0, 1},
        {"--check", NULL, "print nothing but \"name value\" lines", &o->check, NULL, NULL, 0, 1},
        {"--dt", "T", "time step (default 0.5)", NULL, &o->dt, NULL, tiny, huge},
        {"--gravity", "G", "(default 0.0096)", NULL, &o->gravity, NULL, -huge, huge},
        {"--spring", "K", "stiffness of a contact (default 0.5)", NULL, &o->spring, NULL, 0, huge},
        {"--dashpot", "C", "damping of a contact (default 0.02)", NULL, &o->dashpot, NULL, 0, huge},
        {"--shear", "C", "friction of a contact (default 0.02)", NULL, &o->shear, NULL, 0, huge},
        {"--bounce", "E", "part of the speed that a wall gives back (default 0.5)", NULL, &o->bounce, NULL, 0, 1},
        {"--help", NULL, "this text", &o->help, NULL, NULL, 0, 1}
    };
    memcpy(table, flags, sizeof flags);
}

static void dam_help(const dam_flag *flags, const char *program)
{
    int k;
    printf("usage: %s [options]\n\nSpheres fall and spread as a wave in a closed box. Options:\n\n", program);
    for (k = 0; k < DAM_FLAGS; k++) printf("  %-9s %-4s %s\n", flags[k].name, flags[k].value ? flags[k].value : "", flags[k].help);
    printf("\nexample: %s -n 100000 --method packed --walk modular --frames 100 --sheet --out pictures\n", program);
}

static double dam_number(const dam_flag *flag, const char *text)
{
    char *end;
    double const value = strtod(text, &end);
    if (end == text || *end || !(value >= flag->least && value <= flag->most))
        dam_stop(2, "%s %s: a number from %g to %g is needed", flag->name, text, flag->least, flag->most);
    if (flag->whole && value != floor(value)) dam_stop(2, "%s %s: a whole number is needed", flag->name, text);
    return value;
}

/* Stores one option; returns how many arguments it took. "--name=value" is understood too. */
static int dam_take_flag(const dam_flag *flags, char **arguments)
{
    const char *equals = strchr(arguments[0], '=');
    size_t const length = equals && arguments[0][1] == '-' ? (size_t)(equals - arguments[0]) : strlen(arguments[0]);
    const char *value = arguments[0][length] ? arguments[0] + length + 1 : NULL;
    int const taken = value ? 1 : 2;
    int k;
    for (k = 0; k < DAM_FLAGS; k++)
        if (strlen(flags[k].name) == length && strncmp(flags[k].name, arguments[0], length) == 0) break;
    if (k == DAM_FLAGS) dam_stop(2, "unknown option %s (--help lists them)", arguments[0]);
    if (!flags[k].value) {
        if (value) dam_stop(2, "%s takes no value", flags[k].name);
        *flags[k].whole = 1;
        return 1;
    }
    if (!value) value = arguments[1];
    if (!value) dam_stop(2, "%s needs a value: %s", flags[k].name, flags[k].value);
    if (flags[k].text) *flags[k].text = value;
    if (flags[k].whole) *flags[k].whole = (int32_t)dam_number(&flags[k], value);
    if (flags[k].real) *flags[k].real = (float)dam_number(&flags[k], value);
    return taken;
}

/* A slice of the box, 12 cells deep, as full as the whole box is with 128 thousand spheres: the same wave in a tenth of the
   time. About 15 seconds on one core of a server of 2022 (AMD Zen 4); options after --demo change it. */
static void dam_demo(dam_options *o)
{
    o->n = 24000;
    o->depth = 12;
    o->half = 1;
    o->sheet = 1;
    o->frames = 12;
}

static const dam_method *dam_find_method(const char *name)
{
    int k;
    for (k = 0; k < DAM_METHODS; k++) if (strcmp(name, dam_methods[k].name) == 0) return &dam_methods[k];
    dam_stop(2, "--method %s: choose fixed, count, sort, list, tight or packed", name);
}

static void dam_find_names(dam_options *o)
{
    const dam_method *method = dam_find_method(o->method_name);
    int k;
    o->method = method->method;
    o->placement = method->placement;
    o->reorder = method->reorder;
    for (k = 0; k < DAM_WALKS; k++) if (strcmp(o->walk_name, dam_walks[k].name) == 0) break;
    if (k == DAM_WALKS) dam_stop(2, "--walk %s: choose auto, cells, strips, modular or hybrid", o->walk_name);
    o->walk = dam_walks[k].walk;
}

static dam_options dam_parse(int argc, char **argv)
{
    dam_options o;
    dam_flag flags[DAM_FLAGS];
    int k, had_demo;
    dam_flag_table(&o, flags);
    memset(&o, 0, sizeof o);
    o.n = 30000;
    o.steps = 2000;
    o.grid = 64;
    o.seed = 1;
    o.method_name = "sort";
    o.walk_name = "auto";
    o.out = "build/demo";
    o.dt = 0.5f;
    o.gravity = 0.0096f;
    o.spring = 0.5f;
    o.dashpot = 0.02f;
    o.shear = 0.02f;
    o.bounce = 0.5f;
    for (k = 1; k < argc;) {
        had_demo = o.demo;
        k += dam_take_flag(flags, argv + k);
        if (o.demo && !had_demo) dam_demo(&o);
    }
    if (o.help) { dam_help(flags, argv[0]); exit(0); }
    if (o.depth == 0) o.depth = o.grid;
    dam_find_names(&o);
    return o;
}

/* ------------------------------------------------------------------------------------------------
   >>state
   ------------------------------------------------------------------------------------------------ */

/* pos[3 * i], vel[3 * i]: particle i. */
typedef struct dam_state {
    int32_t n;
    float *pos, *vel;
} dam_state;

static dam_state dam_state_new(int32_t n)
{
    dam_state state;
    state.n = n;
    state.pos = (float *)dam_alloc((size_t)n * 3, sizeof(float));
    state.vel = (float *)dam_alloc((size_t)n * 3, sizeof(float));
    return state;
}

static void dam_state_free(dam_state *state)
{
    free(state->pos);
    free(state->vel);
    memset(state, 0, sizeof *state);
}

/* A number from 0 to 1: xorshift64* (Vigna 2016), whose upper bits are the good ones. */
static float dam_random(uint64_t *s)
{
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return (float)((*s * UINT64_C(0x2545F4914F6CDD1D)) >> 40) * (1.0f / 16777216.0f);
}

/* Rows of a lattice along an edge, so that the points are about as far apart in all directions. */
static int32_t dam_rows(double length, double spacing)
{
    double const rows = floor(length / spacing + 0.5);
    return rows < 1 ? 1 : (int32_t)rows;
}

/* Fills the left half of the box evenly with a lattice of n points, each moved by up to a tenth of the spacing. */
static dam_state dam_start(const dam_model *model, int32_t n, int32_t seed)
{
    dam_state state = dam_state_new(n);
    double const room[3] = {0.5 * model->size[0], (double)model->size[1], (double)model->size[2]};
    double const ideal = cbrt(room[0] * room[1] * room[2] / n);
    int32_t const nx = dam_rows(room[0], ideal), ny = dam_rows(room[1], ideal);
    int32_t const nz = (int32_t)(((int64_t)n + (int64_t)nx * ny - 1) / ((int64_t)nx * ny));
    double const step[3] = {room[0] / nx, room[1] / ny, room[2] / nz};
    uint64_t s = UINT64_C(0x9E3779B97F4A7C15) * ((uint64_t)seed + 1);
    int32_t i;
    int a;
    for (i = 0; i < n; i++) {
        int32_t const at[3] = {i % nx, i / nx % ny, i / nx / ny};
        for (a = 0; a < 3; a++) {
            double const x = step[a] * (at[a] + 0.5 + 0.1 * (2 * (double)dam_random(&s) - 1));
            double const low = (double)DAM_RADIUS, high = room[a] - low;
            state.pos[3 * (size_t)i + (size_t)a] = (float)(x < low || high < low ? low : x > high ? high : x);
        }
    }
    return state;
}

/* Particles per cell of the left half, at least 1: see >>model. */
static float dam_crowd(const dam_options *o, int32_t n)
{
    float const crowd = (float)(2.0 * n / ((double)o->grid * o->grid * o->depth));
    return crowd > 1 ? crowd : 1;
}

static dam_model dam_model_for(const dam_options *o, int32_t n)
{
    float const crowd = dam_crowd(o, n);
    dam_model model;
    model.size[0] = model.size[2] = o->grid;
    model.size[1] = o->depth;
    model.dt = o->dt;
    model.gravity = o->gravity;
    model.spring = o->spring / crowd;
    model.dashpot = o->dashpot / crowd;
    model.shear = o->shear / crowd;
    model.bounce = o->bounce;
    return model;
}

/* The grid that every step builds: one cell for each unit of the box. */
static ugrid_desc dam_grid_desc(const dam_options *o, int32_t n)
{
    ugrid_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.max[0] = desc.max[2] = (float)o->grid;
    desc.max[1] = (float)o->depth;
    desc.cell = DAM_DIAMETER;
    desc.method = o->method;
    desc.placement = o->placement;
    desc.walk = o->walk;
    desc.slots = o->slots ? o->slots : (int32_t)(4 * dam_crowd(o, n));
    if (!o->slots && desc.slots < 32) desc.slots = 32;
    return desc;
}

/* ------------------------------------------------------------------------------------------------
   >>text
   ------------------------------------------------------------------------------------------------ */

enum { DAM_LINE = 1024 };

/* Reads a line without its end and cuts off a comment. 0 at the end of the file; -1 when it is too long. */
static int dam_read_line(FILE *file, char line[DAM_LINE])
{
    int length = 0, any = 0, comment = 0, c;
    while ((c = getc(file)) != EOF && c != '\n') {
        any = 1;
        if (c == '#') comment = 1;
        if (comment) continue;
        if (length == DAM_LINE - 1) return -1;
        line[length++] = c ? (char)c : '?'; /* a zero byte is no end of line */
    }
    line[length] = 0;
    return any || c == '\n';
}

static const char *dam_after_space(const char *text)
{
    while (*text == ' ' || *text == '\t' || *text == '\r') text++;
    return text;
}

/* Three finite numbers and nothing else? */
static int dam_parse_point(const char *text, float p[3])
{
    int a;
    for (a = 0; a < 3; a++) {
        char *end;
        double const value = strtod(text, &end);
        if (end == text || !(fabs(value) <= 3e38)) return 0;
        if (*dam_after_space(end) && dam_after_space(end) == end) return 0; /* "1.5x" */
        p[a] = (float)value;
        text = end;
    }
    return *dam_after_space(text) == 0;
}

static int dam_in_box(const dam_model *model, const float p[3])
{
    int a;
    for (a = 0; a < 3; a++) if (p[a] < 0 || p[a] > (float)model->size[a]) return 0;
    return 1;
}

/* Appends a point; the array doubles when it is full. */
static void dam_append(float **pos, int32_t *n, int32_t *room, const float p[3])
{
    if (*n == *room) {
        int32_t const more = *room ? 2 * *room : 1024;
        float *grown = *n < INT32_MAX / 4 ? (float *)realloc(*pos, (size_t)more * 3 * sizeof(float)) : NULL;
        if (!grown) dam_stop(1, "out of memory after %ld points", (long)*n);
        *pos = grown;
        *room = more;
    }
    memcpy(*pos + 3 * (size_t)(*n)++, p, 3 * sizeof(float));
}

/* Particles at rest at the positions of a file. */
static dam_state dam_read(const char *name, const dam_options *o)
{
    FILE *file = fopen(name, "r");
    dam_model const model = dam_model_for(o, 1);
    dam_state state = {0, NULL, NULL};
    int32_t room = 0;
    long number = 0;
    int got;
    char line[DAM_LINE];
    if (!file) dam_stop(1, "%s: %s", name, strerror(errno));
    while ((got = dam_read_line(file, line)) != 0) {
        float p[3];
        number++;
        if (got < 0) dam_stop(1, "%s:%ld: the line is longer than %d characters", name, number, DAM_LINE - 1);
        if (*dam_after_space(line) == 0) continue;
        if (!dam_parse_point(line, p)) dam_stop(1, "%s:%ld: \"%.40s\" is not three finite numbers x y z", name, number, line);
        if (!dam_in_box(&model, p))
            dam_stop(1, "%s:%ld: the point %g %g %g is outside of the box 0 0 0 .. %d %d %d (--grid, --depth)", name, number,
                     (double)p[0], (double)p[1], (double)p[2], (int)model.size[0], (int)model.size[1], (int)model.size[2]);
        dam_append(&state.pos, &state.n, &room, p);
    }
    if (ferror(file)) dam_stop(1, "%s: %s", name, strerror(errno));
    fclose(file);
    if (state.n == 0) dam_stop(1, "%s: holds no point", name);
    state.vel = (float *)dam_alloc((size_t)state.n * 3, sizeof(float));
    return state;
}

/* 9 digits bring back every float as it was. */
static void dam_write(const char *name, const dam_state *state, int32_t step)
{
    FILE *file = fopen(name, "w");
    int32_t i;
    if (!file) dam_stop(1, "%s: %s", name, strerror(errno));
    fprintf(file, "# x y z of %ld spheres after step %ld\n", (long)state->n, (long)step);
    for (i = 0; i < state->n; i++) {
        const float *p = state->pos + 3 * (size_t)i;
        fprintf(file, "%.9g %.9g %.9g\n", (double)p[0], (double)p[1], (double)p[2]);
    }
    if (ferror(file) | fclose(file)) dam_stop(1, "%s: could not be written: %s", name, strerror(errno));
}

/* ------------------------------------------------------------------------------------------------
   >>figures: what the run ended with. Summed in double by ascending ids, so that the same state gives the same figures
   ------------------------------------------------------------------------------------------------ */

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
    double const overlap = 1 - sqrt((double)dam_between(overlaps->pos + 3 * (size_t)i, overlaps->pos + 3 * (size_t)j, d));
    overlaps->sum += overlap * overlap;
    overlaps->contacts++;
    return 0;
}

/* All pairs of touching spheres, each once, from a grid of its own: whatever method the run used, it is counted the same way. */
static void dam_measure_contacts(const dam_options *o, const dam_model *model, const dam_state *state, dam_figures *figures)
{
    ugrid grid;
    ugrid_desc desc = dam_grid_desc(o, state->n);
    dam_overlaps overlaps = {state->pos, 0, 0};
    memset(&grid, 0, sizeof grid);
    desc.method = UGRID_COUNT;
    desc.placement = UGRID_LOOSE;
    desc.walk = UGRID_WALK_AUTO;
    dam_must(ugrid_build(&grid, &desc, state->pos, 0, state->n), "the grid for the figures");
    dam_must(ugrid_each_pair(&grid, DAM_DIAMETER, UGRID_HALF, dam_add_overlap, &overlaps), "counting contacts");
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

static void dam_print_figures(const dam_options *o, const dam_figures *f, const dam_times *t, int32_t n)
{
    printf("after %ld steps of %g (%ld spheres, %ld x %ld x %ld cells, method %s, walk %s%s):\n", (long)o->steps, (double)o->dt, (long)n,
           (long)o->grid, (long)o->depth, (long)o->grid, o->method_name, o->walk_name, o->half ? ", half" : "");
    printf("  kinetic energy      %14.6g\n", f->kinetic);
    printf("  potential energy    %14.6g   gravity %.6g, springs %.6g\n", f->gravity + f->springs, f->gravity, f->springs);
    printf("  contacts            %14lld   %.2f per sphere\n", (long long)f->contacts, 2.0 * (double)f->contacts / n);
    printf("  centre of mass      %.4f %.4f %.4f\n", f->centre[0], f->centre[1], f->centre[2]);
    if (o->steps == 0) return;
    printf("  time per step       %11.3f ms   build %.3f, forces %.3f, integration %.3f\n", 1e3 * t->step,
           1e3 * t->build, 1e3 * t->forces, 1e3 * t->integration);
    printf("  particles moved     %11.3f million per second\n", n / t->step / 1e6);
}

static void dam_print_check(const dam_options *o, const dam_figures *f, int32_t n)
{
    printf("particles %ld\nsteps %ld\n", (long)n, (long)o->steps);
    printf("kinetic_energy %.9e\ngravity_energy %.9e\nspring_energy %.9e\n", f->kinetic, f->gravity, f->springs);
    printf("contacts %lld\nfastest %.9e\n", (long long)f->contacts, f->fastest);
    printf("centre_x %.9e\ncentre_y %.9e\ncentre_z %.9e\n", f->centre[0], f->centre[1], f->centre[2]);
}

/* ------------------------------------------------------------------------------------------------
   >>progress
   ------------------------------------------------------------------------------------------------ */

static double dam_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { DAM_BAR = 24, DAM_COLUMNS = 24 };

typedef struct dam_progress {
    int terminal;       /* stderr is one: a bar that moves; else a line every tenth of the way */
    int utf8;
    int tenths;         /* lines written */
    double start, last;
    char wave[4 * DAM_COLUMNS + 1];
} dam_progress;

static int dam_says_utf8(void)
{
    const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    int k;
    for (k = 0; k < 3; k++) {
        const char *value = getenv(names[k]);
        if (value && *value) return strstr(value, "UTF-8") || strstr(value, "utf8");
    }
    return 0;
}

static dam_progress dam_progress_begin(void)
{
    dam_progress progress;
    memset(&progress, 0, sizeof progress);
    progress.terminal = isatty(2);
    progress.utf8 = dam_says_utf8();
    progress.start = progress.last = dam_now();
    return progress;
}

/* The wave in one line of text: how high the spheres reach (on average, doubled) in each slice of the box. */
static void dam_draw_wave(dam_progress *progress, const dam_model *model, const dam_state *state)
{
    static const char *const blocks[] = {" ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const ascii[] = {" ", "_", ".", "-", ":", "=", "o", "O", "#"};
    double height[DAM_COLUMNS] = {0}, count[DAM_COLUMNS] = {0};
    int32_t i;
    int c;
    for (i = 0; i < state->n; i++) {
        const float *p = state->pos + 3 * (size_t)i;
        c = (int)(p[0] / (float)model->size[0] * DAM_COLUMNS);
        c = c < 0 ? 0 : c < DAM_COLUMNS ? c : DAM_COLUMNS - 1;
        height[c] += 2 * (double)p[2];
        count[c] += 1;
    }
    progress->wave[0] = 0;
    for (c = 0; c < DAM_COLUMNS; c++) {
        double const part = count[c] > 0 ? height[c] / count[c] / (double)model->size[2] : 0;
        int const level = count[c] > 0 ? 1 + (int)(7.99 * (part < 0 ? 0 : part < 1 ? part : 0.999)) : 0;
        strcat(progress->wave, (progress->utf8 ? blocks : ascii)[level]);
    }
}

static void dam_draw_bar(dam_progress *progress, int32_t step, int32_t steps, double rate)
{
    char bar[DAM_BAR + 1];
    int k;
    for (k = 0; k < DAM_BAR; k++) bar[k] = (int64_t)k * steps < (int64_t)step * DAM_BAR ? '=' : ' ';
    bar[DAM_BAR] = 0;
    fprintf(stderr, "\r|%s| step %ld of %ld  %.0f steps/s  %.0f s left  [%s] ", progress->wave, (long)step, (long)steps, rate,
            (steps - step) / rate, bar);
    fflush(stderr);
}

static int dam_progress_due(const dam_progress *progress, int32_t step, int32_t steps)
{
    if (progress->terminal) return step == steps || dam_now() - progress->last > 0.1;
    return (int64_t)10 * step >= (int64_t)(progress->tenths + 1) * steps;
}

static void dam_progress_show(dam_progress *progress, int32_t step, int32_t steps)
{
    double const now = dam_now(), rate = step / (now - progress->start + 1e-9);
    progress->last = now;
    if (progress->terminal) {
        dam_draw_bar(progress, step, steps, rate);
        if (step == steps) fputc('\n', stderr);
        return;
    }
    progress->tenths = (int)((int64_t)10 * step / steps);
    fprintf(stderr, "step %ld of %ld, %.0f steps/s, %.0f s left\n", (long)step, (long)steps, rate, (steps - step) / rate);
}

/* ------------------------------------------------------------------------------------------------
   >>run
   ------------------------------------------------------------------------------------------------ */

/* What a program brings: how to make steps, and how to look at the particles (in the order of the start state). */
typedef struct dam_engine {
    void *user;
    int32_t stride;     /* steps that are best made in one go */
    void (*advance)(void *user, int32_t steps);
    void (*fetch)(void *user, dam_state *state);
    dam_times (*times)(void *user);
} dam_engine;

#include "dam_break_draw.h"

static int dam_wants_wave(const dam_progress *progress, const dam_options *o, int32_t n)
{
    return progress->terminal && n <= 1000000 && !o->check;
}

/* Makes all steps, stopping for pictures and to show how far it is. `state` is the particles at the end. */
static void dam_run(const dam_options *o, const dam_model *model, const dam_engine *engine, dam_state *state)
{
    dam_album album = dam_album_begin(o, model);
    dam_progress progress = dam_progress_begin();
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
        if (!o->check && dam_progress_due(&progress, step, o->steps)) {
            if (dam_wants_wave(&progress, o, state->n)) {
                engine->fetch(engine->user, state);
                dam_draw_wave(&progress, model, state);
            }
            dam_progress_show(&progress, step, o->steps);
        }
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
static void dam_finish(const dam_options *o, const dam_model *model, const dam_engine *engine, const dam_state *state)
{
    dam_figures const figures = dam_measure(o, model, state);
    dam_times const times = engine->times(engine->user);
    if (o->check) {
        dam_print_check(o, &figures, state->n);
        return;
    }
    dam_print_figures(o, &figures, &times, state->n);
    if (o->sheet) printf("pictures: %s/sheet.png shows the whole run\n", o->out);
    if (o->frames) printf("          %s/frame_0000.png to frame_%04d.png, %ld frames\n", o->out, (int)o->frames - 1, (long)o->frames);
}

#endif /* DAM_BREAK_H */
