/* galaxy.h - what galaxy.c (serial) and galaxy.cu (GPU) share: options, bodies, and the start.
   SPDX-License-Identifier: MIT OR Unlicense

   >>options   the command line
   >>state     bodies: positions, velocities, masses
   >>text      bodies from and to a text file
   >>disc      a disc that turns so fast that it holds together
   >>orbit     two of them on their way to each other

   (galaxy_run.h: the loop over all steps and the figures; galaxy_draw.h: pictures.) */

#ifndef GALAXY_H
#define GALAXY_H

#include "../common/base.h"
#include "../common/options.h"
#include "../common/table.h"
#include "../common/window.h"

#define NBODY_WITH_STEP /* more/nbody_step.h: integrators, and the error against direct sums */
#include "../../nbody.h"

/* -------------------------------------------------------------------------------------------------
   >>options
   ---------------------------------------------------------------------------------------------- */

#ifdef __CUDACC__
enum { GALAXY_BODIES = 1000000 };
#else
enum { GALAXY_BODIES = 20000 };
#endif

typedef struct galaxy_options {
    int32_t n, steps, order, levels, leaf, samples, report, frames, seed;
    int32_t retrograde, sheet, window, demo, check; /* flags */
    const char *method_name, *law_name, *integrator_name, *read, *write, *out;
    double dt, softening, ratio, heart, dispersion, apart, pericentre, turn, view;
    /* found from the names */
    nbody_method method;
    nbody_law law;
    nbody_integrator integrator;
} galaxy_options;

static inline void galaxy_must(nbody_result result, const char *what)
{
    if (result == NBODY_NOT_FINITE)
        stop(1, "%s: a number is infinite or none at all (a smaller --dt may help)", what);
    if (result != NBODY_OK) stop(1, "%s: %s", what, nbody_result_text(result));
}

static const option_name galaxy_methods[] = {
    {"auto", NBODY_AUTO}, {"direct", NBODY_DIRECT}, {"virtual-particles", NBODY_VIRTUAL_PARTICLES},
    {"force-nodes", NBODY_FORCE_NODES}, {NULL, 0}
};
static const option_name galaxy_laws[] = {
    {"inverse-square", NBODY_INVERSE_SQUARE}, {"inverse", NBODY_INVERSE}, {NULL, 0}};
static const option_name galaxy_integrators[] = {
    {"leapfrog", NBODY_LEAPFROG}, {"euler", NBODY_EULER}, {NULL, 0}};

static void galaxy_read_options(int argc, char **argv, galaxy_options *o)
{
    const option_line table[] = {
        INT("-n", "N", &o->n, 2, 1e9, "bodies in both discs (default 20000; on a GPU 1000000)"),
        INT("--steps", "N", &o->steps, 0, INT_MAX / 2, "time steps (default 1000)"),
        DOUBLE("--dt", "T", &o->dt, 1e-9, 1e3,
               "time step (default 0.005; the rim of the larger disc turns in about 6)"),
        DOUBLE("--softening", "E", &o->softening, 0, 1e3,
               "a length added to every distance, by squares (default 0.05)"),
        TEXT("--method", "NAME", &o->method_name,
             "auto (default), direct, virtual-particles, force-nodes"),
        TEXT("--law", "NAME", &o->law_name,
             "how the force falls with distance: inverse-square (default), inverse"),
        INT("--order", "N", &o->order, 0, NBODY_MAX_ORDER,
            "accuracy: 1 is the source's (default 0: that of nbody.h)"),
        INT("--levels", "N", &o->levels, 0, NBODY_MAX_LEVELS,
            "of a tree with all leaves on the last (default 0: adaptive)"),
        INT("--leaf", "N", &o->leaf, 0, 1e6, "most bodies in a leaf (default 0: that of nbody.h)"),
        TEXT("--integrator", "NAME", &o->integrator_name, "leapfrog (default), euler"),
        INT("--samples", "N", &o->samples, 1, 1e6,
            "bodies compared with the direct sum at each report (default 64)"),
        INT("--report", "N", &o->report, 0, 1e9,
            "steps between two reports (default 0: a fifth of the run)"),
        DOUBLE("--ratio", "R", &o->ratio, 0.001, 1000,
               "mass of the second disc, of the first's (default 0.6)"),
        DOUBLE("--heart", "C", &o->heart, 0, 0.99,
               "part of a disc's mass in one heavy body in its middle (default 0.5)"),
        DOUBLE("--dispersion", "S", &o->dispersion, 0, 1,
               "random part of the velocities, of the circular one (default 0.06)"),
        DOUBLE("--apart", "D", &o->apart, 0.1, 1e3,
               "distance of the discs at the start (default 3; the larger has radius 1)"),
        DOUBLE("--pericentre", "Q", &o->pericentre, 0.001, 1e3,
               "how near they would come as points (default 1.3)"),
        DOUBLE("--turn", "A", &o->turn, -360, 360,
               "turns the whole start by so many degrees (default 35)"),
        FLAG("--retrograde", &o->retrograde,
             "the second disc turns the other way: no tail grows from it"),
        INT("--seed", "N", &o->seed, 0, INT_MAX, "of all that is random at the start (default 1)"),
        TEXT("--read", "FILE", &o->read, "start with these bodies, a line \"x y vx vy m\" each"),
        TEXT("--write", "FILE", &o->write, "write the bodies at the end, in the same form"),
        INT("--frames", "N", &o->frames, 1, 100000,
            "draw N pictures of the run, frame_0000.png ..."),
        FLAG("--sheet", &o->sheet, "draw six moments of the run on one sheet, sheet.png"),
        DOUBLE("--view", "W", &o->view, 0, 1e9,
               "width of pictures (default 0: 2.7 times the reach of the bodies at the start)"),
        FLAG("--window", &o->window, "show the run while it goes on; keys: space waits, q ends"),
        TEXT("--out", "DIR", &o->out, "where pictures go (default build/demo)"),
        FLAG("--demo", &o->demo, "the sheet of the default run"),
        FLAG("--check", &o->check, "print nothing but \"name value\" lines"),
        OPTIONS_END};
    options_read(argc, argv, table, NULL, "Two discs of bodies collide in a plane.",
                 "-n 50000 --retrograde --frames 100 --out pictures");
}

static galaxy_options galaxy_defaults(void)
{
    galaxy_options o;
    memset(&o, 0, sizeof o);
    o.n = GALAXY_BODIES;
    o.steps = 1000;
    o.samples = 64;
    o.seed = 1;
    o.method_name = "auto";
    o.law_name = "inverse-square";
    o.integrator_name = "leapfrog";
    o.out = "build/demo";
    o.dt = 0.005;
    o.softening = 0.05;
    o.ratio = 0.6;
    o.heart = 0.5;
    o.dispersion = 0.06;
    o.apart = 3;
    o.pericentre = 1.3;
    o.turn = 35;
    return o;
}

/* How forces are summed. */
static nbody_desc galaxy_desc(const galaxy_options *o)
{
    nbody_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.method = o->method;
    desc.law = o->law;
    desc.order = o->order;
    desc.levels = o->levels;
    desc.leaf = o->leaf;
    desc.softening = (nbody_real)o->softening;
    return desc;
}

static galaxy_options galaxy_parse(int argc, char **argv)
{
    galaxy_options o = galaxy_defaults();
    nbody_desc desc, resolved;
    galaxy_read_options(argc, argv, &o);
    o.sheet |= o.demo;
    o.method = (nbody_method)option_find(galaxy_methods, "--method", o.method_name);
    o.law = (nbody_law)option_find(galaxy_laws, "--law", o.law_name);
    o.integrator =
        (nbody_integrator)option_find(galaxy_integrators, "--integrator", o.integrator_name);
    if (o.window) window_must_exist();
    if (o.pericentre >= o.apart)
        stop(2, "--pericentre %g: must be less than --apart, %g", o.pericentre, o.apart);
    desc = galaxy_desc(&o);
    if (nbody_defaults(&resolved, &desc, o.n) != NBODY_OK)
        stop(2, "--method %s --order %ld --levels %ld --leaf %ld: %s", o.method_name, (long)o.order,
             (long)o.levels, (long)o.leaf,
             nbody_result_text(nbody_defaults(&resolved, &desc, o.n)));
    return o;
}

/* -------------------------------------------------------------------------------------------------
   >>state
   ---------------------------------------------------------------------------------------------- */

typedef struct galaxy_state {
    int32_t n;
    /* the bodies from here on are drawn in another color: the second disc */
    int32_t second;
    nbody_real *pos, *vel;  /* [2 n] */
    nbody_real *mass;       /* [n] */
} galaxy_state;

static galaxy_state galaxy_state_new(int32_t n)
{
    galaxy_state state;
    state.n = state.second = n;
    state.pos = (nbody_real *)zeros(2 * (size_t)n, sizeof(nbody_real));
    state.vel = (nbody_real *)zeros(2 * (size_t)n, sizeof(nbody_real));
    state.mass = (nbody_real *)zeros((size_t)n, sizeof(nbody_real));
    return state;
}

static void galaxy_state_free(galaxy_state *state)
{
    free(state->pos);
    free(state->vel);
    free(state->mass);
    memset(state, 0, sizeof *state);
}

/* Mass, and where its centre is and goes. Without mass: zeros. */
typedef struct galaxy_centre { double mass, at[2], velocity[2]; } galaxy_centre;

static galaxy_centre galaxy_centre_of(const galaxy_state *state)
{
    galaxy_centre c = {0, {0, 0}, {0, 0}};
    int32_t i;
    int a;
    for (i = 0; i < state->n; i++) {
        double const m = (double)state->mass[i];
        c.mass += m;
        for (a = 0; a < 2; a++) {
            c.at[a] += m * (double)state->pos[2 * (size_t)i + (size_t)a];
            c.velocity[a] += m * (double)state->vel[2 * (size_t)i + (size_t)a];
        }
    }
    for (a = 0; a < 2; a++) {
        c.at[a] = c.mass > 0 ? c.at[a] / c.mass : 0;
        c.velocity[a] = c.mass > 0 ? c.velocity[a] / c.mass : 0;
    }
    return c;
}

/* How far the outermost body is from a point. */
static double galaxy_reach(const galaxy_state *state, const double from[2])
{
    double most = 0;
    int32_t i;
    for (i = 0; i < state->n; i++) {
        const nbody_real *p = state->pos + 2 * (size_t)i;
        most = fmax(most, hypot((double)p[0] - from[0], (double)p[1] - from[1]));
    }
    return most;
}

/* -------------------------------------------------------------------------------------------------
   >>text
   ---------------------------------------------------------------------------------------------- */

static galaxy_state galaxy_read(const char *name)
{
    table bodies = table_read(name, 5, "five finite numbers x y vx vy m", "body");
    galaxy_state state = galaxy_state_new(bodies.rows);
    int32_t i;
    int a;
    for (i = 0; i < bodies.rows; i++) {
        const double *row = table_row(&bodies, i);
        if (row[4] < 0) stop(1, "%s:%ld: the mass %g is negative", name, bodies.line[i], row[4]);
        for (a = 0; a < 2; a++) {
            state.pos[2 * (size_t)i + (size_t)a] = (nbody_real)row[a];
            state.vel[2 * (size_t)i + (size_t)a] = (nbody_real)row[2 + a];
        }
        state.mass[i] = (nbody_real)row[4];
    }
    table_free(&bodies);
    return state;
}

/* 9 digits bring back every float as it was, 17 every double. */
static void galaxy_write(const char *name, const galaxy_state *state, int32_t step)
{
    int const digits = sizeof(nbody_real) == sizeof(float) ? 9 : 17;
    out_file const out = create_file(name);
    int32_t i;
    fprintf(out.file, "# x y vx vy m of %ld bodies after step %ld\n", (long)state->n, (long)step);
    for (i = 0; i < state->n; i++) {
        const nbody_real *p = state->pos + 2 * (size_t)i, *v = state->vel + 2 * (size_t)i;
        fprintf(out.file, "%.*g %.*g %.*g %.*g %.*g\n", digits, (double)p[0], digits, (double)p[1],
                digits, (double)v[0], digits, (double)v[1], digits, (double)state->mass[i]);
    }
    close_file(&out);
}

/* -------------------------------------------------------------------------------------------------
   >>disc: bodies around a heavy one, denser towards the middle:

                     .  . .  .
                 .  . :.:::: . .  .         density at distance r: exp(-r / scale), up to the rim
                .  ..:::(O):::..  . .       at 3 scales
                 .  . ::::.: . .
                      . .   .

   Each moves on a circle, v^2 = a r with the force a of all others that really acts there. A random
   part is added, so that the disc does not break into clumps at once (Toomre, 1964).
   ---------------------------------------------------------------------------------------------- */

typedef struct galaxy_disc {
    int32_t first, n;       /* bodies first .. first + n - 1; the first one is the heavy one */
    double mass, radius;
    int spin;               /* 1: against the clock, as the orbit; -1 */
} galaxy_disc;

/* A number from 0 to 1, and the state of the generator advanced (Marsaglia's xorshift, 64 bits). */
static double galaxy_random(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (double)(*random >> 11) / 9007199254740992.0;
}

/* Nearly normal, with mean 0 and variance 1: four random numbers have variance 4 / 12. */
static double galaxy_normal(uint64_t *random)
{
    double sum = -2;
    int k;
    for (k = 0; k < 4; k++) sum += galaxy_random(random);
    return sqrt(3.0) * sum;
}

/* The part of an exponential disc's mass that lies within x scales of its middle. */
static double galaxy_within(double x) { return 1 - (1 + x) * exp(-x); }

enum { GALAXY_SCALES = 3 };

/* Where within is `part` of what it is at the rim: halving, 40 times. */
static double galaxy_radius(double part)
{
    double low = 0, high = GALAXY_SCALES;
    int k;
    for (k = 0; k < 40; k++) {
        double const x = 0.5 * (low + high);
        if (galaxy_within(x) < part * galaxy_within(GALAXY_SCALES)) low = x;
        else high = x;
    }
    return 0.5 * (low + high) / GALAXY_SCALES;
}

/* Bodies in ascending distance from the middle, which is at 0, 0. */
static void galaxy_place(const galaxy_disc *disc, double heart, galaxy_state *state,
                         uint64_t *random)
{
    int32_t const others = disc->n - 1;
    int32_t k;
    if (disc->n) state->mass[disc->first] = (nbody_real)(others ? heart * disc->mass : disc->mass);
    for (k = 0; k < others; k++) {
        size_t const i = (size_t)(disc->first + 1 + k);
        double const r = disc->radius * galaxy_radius((k + galaxy_random(random)) / others);
        double const angle = 2 * PI * galaxy_random(random);
        state->mass[i] = (nbody_real)((1 - heart) * disc->mass / others);
        state->pos[2 * i] = (nbody_real)(r * cos(angle));
        state->pos[2 * i + 1] = (nbody_real)(r * sin(angle));
    }
}

/* pull[k] = a r of body k of a disc: sums of -(acceleration . position) up to body k, first;
   then averages over neighbours in radius, so that one close neighbour does not decide how fast
   a body is. */
static void galaxy_average_pull(const galaxy_disc *disc, const galaxy_state *state,
                                const nbody_real *acc, double *pull)
{
    int32_t const reach = 8 + disc->n / 100;
    double *sum = (double *)zeros((size_t)disc->n + 1, sizeof(double));
    int32_t k;
    for (k = 0; k < disc->n; k++) {
        const nbody_real *p = state->pos + 2 * (size_t)(disc->first + k), *a = acc + 2 * (size_t)k;
        sum[k + 1] = sum[k] - (double)(p[0] * a[0] + p[1] * a[1]);
    }
    for (k = 1; k < disc->n; k++) { /* the heavy body, at distance 0, would spoil the average */
        int32_t const below = k - 1, above = disc->n - 1 - k, most = below < above ? below : above,
                      w = most < reach ? most : reach;
        pull[k] = (sum[k + w + 1] - sum[k - w]) / (2 * w + 1);
    }
    free(sum);
}

static void galaxy_spin(const galaxy_disc *disc, const galaxy_options *o, galaxy_state *state,
                        uint64_t *random)
{
    nbody sim;
    nbody_desc const desc = galaxy_desc(o);
    nbody_real *acc = (nbody_real *)zeros(2 * (size_t)disc->n, sizeof(nbody_real));
    double *pull = (double *)zeros((size_t)disc->n, sizeof(double));
    int32_t k;
    memset(&sim, 0, sizeof sim);
    galaxy_must(nbody_accelerations(&sim, &desc, state->pos + 2 * (size_t)disc->first, 0,
                                    state->mass + disc->first, disc->n, acc),
                "the forces in a disc");
    galaxy_average_pull(disc, state, acc, pull);
    for (k = 1; k < disc->n; k++) {
        size_t const i = (size_t)(disc->first + k);
        double const x = (double)state->pos[2 * i], y = (double)state->pos[2 * i + 1],
                     r = hypot(x, y);
        double const speed = pull[k] > 0 ? sqrt(pull[k]) : 0,
                     turn = r > 0 ? disc->spin * speed / r : 0;
        state->vel[2 * i] = (nbody_real)(-turn * y + o->dispersion * speed * galaxy_normal(random));
        state->vel[2 * i + 1] =
            (nbody_real)(turn * x + o->dispersion * speed * galaxy_normal(random));
    }
    nbody_free(&sim);
    free(acc);
    free(pull);
}

/* -------------------------------------------------------------------------------------------------
   >>orbit: two points that come from far away and pass at distance q, against the clock

        1 <----- d -----> 2 ,
         ` .                `  v
           q ` .           .  V
                ` - . . -'

   At distance d, 2 moves at speed v relative to 1. Its energy is that of a fall from far away
   (1 / d^2: a parabola, v^2 = 2 M / d; with 1 / d there is no escape: the speed of a circle,
   v^2 = M). The part of v across the line at d follows from distance q, where all of v is across
   it: d across = q v(q).
   ---------------------------------------------------------------------------------------------- */

/* (speed towards each other, speed across) at distance d. */
static void galaxy_orbit(const galaxy_options *o, double mass, double velocity[2])
{
    double const d = o->apart, q = o->pericentre;
    double const v2 = o->law == NBODY_INVERSE ? mass : 2 * mass / d;
    double const fallen =
        o->law == NBODY_INVERSE ? 2 * mass * log(d / q) : 2 * mass * (1 / q - 1 / d);
    velocity[1] = q * sqrt(v2 + fallen) / d;
    velocity[0] = sqrt(fmax(0, v2 - velocity[1] * velocity[1]));
}

/* Shifts a disc. */
static void galaxy_shift(const galaxy_disc *disc, galaxy_state *state, const double at[2],
                         const double velocity[2])
{
    int32_t k;
    int a;
    for (k = 0; k < disc->n; k++)
        for (a = 0; a < 2; a++) {
            size_t const i = 2 * (size_t)(disc->first + k) + (size_t)a;
            state->pos[i] = (nbody_real)((double)state->pos[i] + at[a]);
            state->vel[i] = (nbody_real)((double)state->vel[i] + velocity[a]);
        }
}

/* Puts the discs on their orbit; the centre of mass stays at 0, 0. */
static void galaxy_approach(const galaxy_options *o, const galaxy_disc disc[2], galaxy_state *state)
{
    double const mass = disc[0].mass + disc[1].mass, c = cos(o->turn * PI / 180),
                 s = sin(o->turn * PI / 180);
    double speed[2];
    int k;
    galaxy_orbit(o, mass, speed);
    for (k = 0; k < 2; k++) {
        double const part = (k ? disc[0].mass : -disc[1].mass) / mass;
        double const at[2] = {part * o->apart * c, part * o->apart * s};
        double const velocity[2] = {part * (-speed[0] * c - speed[1] * s),
                                    part * (-speed[0] * s + speed[1] * c)};
        galaxy_shift(&disc[k], state, at, velocity);
    }
}

/* Both discs have mass in proportion to their area. What their random parts add up to is taken
   out. */
static galaxy_state galaxy_collision(const galaxy_options *o)
{
    galaxy_state state = galaxy_state_new(o->n);
    galaxy_disc disc[2];
    galaxy_disc all;
    galaxy_centre centre;
    uint64_t random = 0x9E3779B97F4A7C15u ^ ((uint64_t)o->seed << 20);
    int k;
    disc[1].n = (int32_t)(o->n * o->ratio / (1 + o->ratio) + 0.5);
    disc[1].n = disc[1].n < 1 ? 1 : disc[1].n > o->n - 1 ? o->n - 1 : disc[1].n;
    disc[0].n = o->n - disc[1].n;
    disc[0].first = 0;
    disc[1].first = state.second = disc[0].n;
    disc[0].mass = disc[0].radius = 1;
    disc[1].mass = o->ratio;
    disc[1].radius = sqrt(o->ratio);
    disc[0].spin = 1;
    disc[1].spin = o->retrograde ? -1 : 1;
    for (k = 0; k < 2; k++) {
        galaxy_place(&disc[k], o->heart, &state, &random);
        galaxy_spin(&disc[k], o, &state, &random);
    }
    galaxy_approach(o, disc, &state);
    all = disc[0];
    all.n = o->n;
    centre = galaxy_centre_of(&state);
    for (k = 0; k < 2; k++) {
        centre.at[k] = -centre.at[k];
        centre.velocity[k] = -centre.velocity[k];
    }
    galaxy_shift(&all, &state, centre.at, centre.velocity);
    return state;
}

/* That there is no place for pictures, or for the bodies at the end, is told before the run. */
static void galaxy_try_places(const galaxy_options *o)
{
    FILE *file = o->write ? fopen(o->write, "ab") : NULL;
    if (o->write && !file) stop(1, "%s: %s", o->write, strerror(errno));
    if (file) fclose(file);
    if (o->frames || o->sheet) make_folder(o->out);
}

/* The bodies of the first step; sets o->n. */
static galaxy_state galaxy_start(galaxy_options *o)
{
    galaxy_state const state = o->read ? galaxy_read(o->read) : galaxy_collision(o);
    galaxy_try_places(o);
    o->n = state.n;
    return state;
}

#endif /* GALAXY_H */
