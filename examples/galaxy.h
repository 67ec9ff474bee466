/* galaxy.h - what galaxy.c (serial) and galaxy.cu (GPU) share: everything but the time step itself.
   SPDX-License-Identifier: MIT OR Unlicense

   (galaxy_draw.h has the pictures, galaxy_window.h the live window.)

   >>options   the command line
   >>state     bodies: positions, velocities, masses
   >>text      bodies from and to a text file
   >>disc      a disc that turns so fast that it holds together
   >>orbit     two of them on their way to each other
   >>figures   energy, momentum, angular momentum, and how far the forces are from the direct sum
   >>progress  the bar with steps/s and time left
   >>run       the loop over all steps: pictures, window, reports

   The same text is C99 and C++17, so memory from malloc is cast. */

#ifndef GALAXY_H
#define GALAXY_H

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

#include "../nbody.h"

#define GALAXY_PI 3.14159265358979323846

/* Text for both sides: plain C, and device code under nvcc. */
#ifdef __CUDACC__
#define GALAXY_FN static __host__ __device__ inline
#else
#define GALAXY_FN static inline
#endif

/* ------------------------------------------------------------------------------------------------
   >>options
   ------------------------------------------------------------------------------------------------ */

#ifdef __CUDACC__
enum { GALAXY_BODIES = 1000000 };
#define GALAXY_BODIES_TEXT "1000000"
#else
enum { GALAXY_BODIES = 20000 };
#define GALAXY_BODIES_TEXT "20000"
#endif

typedef struct galaxy_options {
    int32_t n, steps, order, levels, leaf, samples, report, frames, seed;
    int32_t retrograde, sheet, window, demo, check, help; /* flags */
    const char *method_name, *law_name, *integrator_name, *read, *write, *out;
    double dt, softening, ratio, heart, dispersion, apart, pericentre, turn, view;
    /* found from the names */
    nbody_method method;
    nbody_law law;
    nbody_integrator integrator;
} galaxy_options;

/* Ends the program with a sentence. `status`: 1 = a file or the machine, 2 = the command line. */
#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 2, 3)))
#endif
static void galaxy_stop(int status, const char *format, ...)
{
    va_list arguments;
    fputs("galaxy: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(status);
}

static void galaxy_must(nbody_result result, const char *what)
{
    if (result == NBODY_NOT_FINITE) galaxy_stop(1, "%s: a number is infinite or none at all (a smaller --dt may help)", what);
    if (result != NBODY_OK) galaxy_stop(1, "%s: %s", what, nbody_result_text(result));
}

static void *galaxy_alloc(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory) galaxy_stop(1, "out of memory (%.0f MB wanted)", (double)count * (double)bytes / 1e6);
    return memory;
}

typedef struct galaxy_name { const char *name; int value; } galaxy_name;

static const galaxy_name galaxy_methods[] = {
    {"auto", NBODY_AUTO}, {"direct", NBODY_DIRECT}, {"virtual-particles", NBODY_VIRTUAL_PARTICLES},
    {"force-nodes", NBODY_FORCE_NODES}, {NULL, 0}
};
static const galaxy_name galaxy_laws[] = {{"inverse-square", NBODY_INVERSE_SQUARE}, {"inverse", NBODY_INVERSE}, {NULL, 0}};
static const galaxy_name galaxy_integrators[] = {{"leapfrog", NBODY_LEAPFROG}, {"euler", NBODY_EULER}, {NULL, 0}};

/* One line of --help, and where the value goes: exactly one of the three pointers is set. */
typedef struct galaxy_flag {
    const char *name, *value, *help;    /* value NULL: a flag that takes none */
    int32_t *whole;
    double *real;
    const char **text;
    double least, most;
} galaxy_flag;

enum { GALAXY_FLAGS = 30 };

static void galaxy_flag_table(galaxy_options *o, galaxy_flag table[GALAXY_FLAGS])
{
    const galaxy_flag flags[GALAXY_FLAGS] = {
        {"-n", "N", "bodies in both discs (default " GALAXY_BODIES_TEXT ")", &o->n, NULL, NULL, 2, 1e9},
        {"--steps", "N", "time steps (default 1000)", &o->steps, NULL, NULL, 0, INT_MAX / 2},
        {"--dt", "T", "time step (default 0.005; the rim of the larger disc turns once in about 6)", NULL, &o->dt, NULL, 1e-9, 1e3},
        {"--softening", "E", "a length added to every distance, by squares (default 0.05)", NULL, &o->softening, NULL, 0, 1e3},
        {"--method", "NAME", "auto (default), direct, virtual-particles, force-nodes", NULL, NULL, &o->method_name, 0, 0},
        {"--law", "NAME", "inverse-square (default), inverse: how the force falls with the distance",
         NULL, NULL, &o->law_name, 0, 0},
        {"--order", "N", "how exact: 1 is the source's, more is better (default 0: that of nbody.h)",
         &o->order, NULL, NULL, 0, NBODY_MAX_ORDER},
        {"--levels", "N", "of the tree, all leaves on the last (default 0: by the density of each place)",
         &o->levels, NULL, NULL, 0, NBODY_MAX_LEVELS},
        {"--leaf", "N", "bodies that stay together in one leaf (default 0: that of nbody.h)", &o->leaf, NULL, NULL, 0, 1e6},
        {"--integrator", "NAME", "leapfrog (default), euler", NULL, NULL, &o->integrator_name, 0, 0},
        {"--samples", "N", "bodies whose forces are compared with the direct sum, at each report (default 64)",
         &o->samples, NULL, NULL, 1, 1e6},
        {"--report", "N", "steps between two reports (default 0: a fifth of the run)", &o->report, NULL, NULL, 0, 1e9},
        {"--ratio", "R", "mass of the second disc, of the first's (default 0.6)", NULL, &o->ratio, NULL, 0.001, 1000},
        {"--heart", "C", "part of a disc's mass that is one heavy body in its middle (default 0.5)",
         NULL, &o->heart, NULL, 0, 0.99},
        {"--dispersion", "S", "random part of the velocities, of the circular one (default 0.06)",
         NULL, &o->dispersion, NULL, 0, 1},
        {"--apart", "D", "distance of the discs at the start (default 3; the larger has radius 1)",
         NULL, &o->apart, NULL, 0.1, 1e3},
        {"--pericentre", "Q", "how near they would come if they were points (default 1.3)", NULL, &o->pericentre, NULL, 0.001, 1e3},
        {"--turn", "A", "turns the whole start by so many degrees (default 35)", NULL, &o->turn, NULL, -360, 360},
        {"--retrograde", NULL, "the second disc turns the other way: no tail grows from it", &o->retrograde, NULL, NULL, 0, 1},
        {"--seed", "N", "of all that is random at the start (default 1)", &o->seed, NULL, NULL, 0, INT_MAX},
        {"--read", "FILE", "start with these bodies, a line \"x y vx vy m\" each", NULL, NULL, &o->read, 0, 0},
        {"--write", "FILE", "write the bodies at the end, in the same form", NULL, NULL, &o->write, 0, 0},
        {"--frames", "N", "draw N pictures of the run, frame_0000.png ...", &o->frames, NULL, NULL, 1, 100000},
        {"--sheet", NULL, "draw six moments of the run on one sheet, sheet.png", &o->sheet, NULL, NULL, 0, 1},
        {"--view", "W", "width of what the pictures show (default 0: 2.7 times as far as the outermost body is at the start)",
         NULL, &o->view, NULL, 0, 1e9},
        {"--window", NULL, "show the run while it goes on; keys: space waits, q ends", &o->window, NULL, NULL, 0, 1},
        {"--out", "DIR", "where pictures go (default build/demo)", NULL, NULL, &o->out, 0, 0},
        {"--demo", NULL, "the sheet of the default run", &o->demo, NULL, NULL, 0, 1},
        {"--check", NULL, "print nothing but \"name value\" lines", &o->check, NULL, NULL, 0, 1},
        {"--help", NULL, "this text", &o->help, NULL, NULL, 0, 1}
    };
    memcpy(table, flags, sizeof flags);
}

static void galaxy_help(const galaxy_flag *flags, const char *program)
{
    int k;
    printf("usage: %s [options]\n\nTwo discs of bodies collide in a plane. Options:\n\n", program);
    for (k = 0; k < GALAXY_FLAGS; k++)
        printf("  %-13s %-4s %s\n", flags[k].name, flags[k].value ? flags[k].value : "", flags[k].help);
    printf("\nexample: %s -n 50000 --retrograde --frames 100 --out pictures\n", program);
}

static double galaxy_number(const galaxy_flag *flag, const char *text)
{
    char *end;
    double const value = strtod(text, &end);
    if (end == text || *end || !(value >= flag->least && value <= flag->most))
        galaxy_stop(2, "%s %s: a number from %g to %g is needed", flag->name, text, flag->least, flag->most);
    if (flag->whole && value != floor(value)) galaxy_stop(2, "%s %s: a whole number is needed", flag->name, text);
    return value;
}

/* Stores one option; returns how many arguments it took. "--name=value" is understood too. */
static int galaxy_take_flag(const galaxy_flag *flags, char **arguments)
{
    const char *equals = strchr(arguments[0], '=');
    size_t const length = equals && arguments[0][1] == '-' ? (size_t)(equals - arguments[0]) : strlen(arguments[0]);
    const char *value = arguments[0][length] ? arguments[0] + length + 1 : NULL;
    int const taken = value ? 1 : 2;
    int k;
    for (k = 0; k < GALAXY_FLAGS; k++)
        if (strlen(flags[k].name) == length && strncmp(flags[k].name, arguments[0], length) == 0) break;
    if (k == GALAXY_FLAGS) galaxy_stop(2, "unknown option %s (--help lists them)", arguments[0]);
    if (!flags[k].value) {
        if (value) galaxy_stop(2, "%s takes no value", flags[k].name);
        *flags[k].whole = 1;
        return 1;
    }
    if (!value) value = arguments[1];
    if (!value) galaxy_stop(2, "%s needs a value: %s", flags[k].name, flags[k].value);
    if (flags[k].text) *flags[k].text = value;
    if (flags[k].whole) *flags[k].whole = (int32_t)galaxy_number(&flags[k], value);
    if (flags[k].real) *flags[k].real = galaxy_number(&flags[k], value);
    return taken;
}

static int galaxy_find(const galaxy_name *names, const char *flag, const char *name)
{
    int k;
    for (k = 0; names[k].name; k++)
        if (strcmp(names[k].name, name) == 0) return names[k].value;
    galaxy_stop(2, "%s %s: there is no such name (--help lists them)", flag, name);
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
    galaxy_flag flags[GALAXY_FLAGS];
    nbody_desc desc, resolved;
    int k;
    galaxy_flag_table(&o, flags);
    for (k = 1; k < argc;) k += galaxy_take_flag(flags, argv + k);
    if (o.help) { galaxy_help(flags, argv[0]); exit(0); }
    o.sheet |= o.demo;
    o.method = (nbody_method)galaxy_find(galaxy_methods, "--method", o.method_name);
    o.law = (nbody_law)galaxy_find(galaxy_laws, "--law", o.law_name);
    o.integrator = (nbody_integrator)galaxy_find(galaxy_integrators, "--integrator", o.integrator_name);
#ifndef GALAXY_WINDOW
    if (o.window) galaxy_stop(2, "--window: this program was made without SDL2 (Debian: libsdl2-dev), or without -DGALAXY_WINDOW");
#endif
    if (o.pericentre >= o.apart) galaxy_stop(2, "--pericentre %g: must be less than --apart, %g", o.pericentre, o.apart);
    desc = galaxy_desc(&o);
    if (nbody_defaults(&resolved, &desc, o.n) != NBODY_OK)
        galaxy_stop(2, "--method %s --order %ld --levels %ld --leaf %ld: %s", o.method_name, (long)o.order, (long)o.levels,
                    (long)o.leaf, nbody_result_text(nbody_defaults(&resolved, &desc, o.n)));
    return o;
}

/* ------------------------------------------------------------------------------------------------
   >>state
   ------------------------------------------------------------------------------------------------ */

typedef struct galaxy_state {
    int32_t n;
    int32_t second;         /* the bodies from here on are drawn in another color: the second disc */
    nbody_real *pos, *vel;  /* [2 n] */
    nbody_real *mass;       /* [n] */
} galaxy_state;

static galaxy_state galaxy_state_new(int32_t n)
{
    galaxy_state state;
    state.n = state.second = n;
    state.pos = (nbody_real *)galaxy_alloc(2 * (size_t)n, sizeof(nbody_real));
    state.vel = (nbody_real *)galaxy_alloc(2 * (size_t)n, sizeof(nbody_real));
    state.mass = (nbody_real *)galaxy_alloc((size_t)n, sizeof(nbody_real));
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

/* ------------------------------------------------------------------------------------------------
   >>text: x y vx vy m per line; "#" begins a comment
   ------------------------------------------------------------------------------------------------ */

enum { GALAXY_LINE = 512, GALAXY_COLUMNS = 5 };

/* Reads a line without its end and cuts off a comment. 0 at the end of the file; -1 when it is too long. */
static int galaxy_read_line(FILE *file, char line[GALAXY_LINE])
{
    int length = 0, any = 0, comment = 0, c;
    while ((c = getc(file)) != EOF && c != '\n') {
        any = 1;
        if (c == '#') comment = 1;
        if (comment) continue;
        if (length == GALAXY_LINE - 1) return -1;
        line[length++] = c ? (char)c : '?'; /* a zero byte is no end of line */
    }
    line[length] = 0;
    return any || c == '\n';
}

static const char *galaxy_after_space(const char *text)
{
    while (*text == ' ' || *text == '\t' || *text == '\r') text++;
    return text;
}

/* Five finite numbers and nothing else? */
static int galaxy_parse_body(const char *text, nbody_real body[GALAXY_COLUMNS])
{
    int k;
    for (k = 0; k < GALAXY_COLUMNS; k++) {
        char *end;
        double const value = strtod(text, &end);
        if (end == text || !(fabs(value) <= 3e38)) return 0;
        if (*end && galaxy_after_space(end) == end) return 0; /* "1.5x" */
        body[k] = (nbody_real)value;
        text = end;
    }
    return *galaxy_after_space(text) == 0;
}

/* Appends a body; the array doubles when it is full. */
static void galaxy_append(nbody_real **table, int32_t *n, int32_t *room, const nbody_real body[GALAXY_COLUMNS])
{
    if (*n == *room) {
        int32_t const more = *room ? 2 * *room : 1024;
        size_t const bytes = (size_t)more * GALAXY_COLUMNS * sizeof(nbody_real);
        nbody_real *grown = *n < INT32_MAX / 4 ? (nbody_real *)realloc(*table, bytes) : NULL;
        if (!grown) galaxy_stop(1, "out of memory after %ld bodies", (long)*n);
        *table = grown;
        *room = more;
    }
    memcpy(*table + GALAXY_COLUMNS * (size_t)(*n)++, body, GALAXY_COLUMNS * sizeof *body);
}

static galaxy_state galaxy_state_of_table(const nbody_real *table, int32_t n)
{
    galaxy_state state = galaxy_state_new(n);
    int32_t i;
    for (i = 0; i < n; i++) {
        const nbody_real *body = table + GALAXY_COLUMNS * (size_t)i;
        memcpy(state.pos + 2 * (size_t)i, body, 2 * sizeof *body);
        memcpy(state.vel + 2 * (size_t)i, body + 2, 2 * sizeof *body);
        state.mass[i] = body[4];
    }
    return state;
}

static galaxy_state galaxy_read(const char *name)
{
    FILE *file = fopen(name, "r");
    galaxy_state state;
    nbody_real *table = NULL, body[GALAXY_COLUMNS];
    int32_t n = 0, room = 0;
    long number = 0;
    int got;
    char line[GALAXY_LINE];
    if (!file) galaxy_stop(1, "%s: %s", name, strerror(errno));
    while ((got = galaxy_read_line(file, line)) != 0) {
        number++;
        if (got < 0) galaxy_stop(1, "%s:%ld: the line is longer than %d characters", name, number, GALAXY_LINE - 1);
        if (*galaxy_after_space(line) == 0) continue;
        if (!galaxy_parse_body(line, body))
            galaxy_stop(1, "%s:%ld: \"%.60s\" is not five finite numbers x y vx vy m", name, number, line);
        if (body[4] < 0) galaxy_stop(1, "%s:%ld: the mass %g is negative", name, number, (double)body[4]);
        galaxy_append(&table, &n, &room, body);
    }
    if (ferror(file)) galaxy_stop(1, "%s: %s", name, strerror(errno));
    fclose(file);
    if (n == 0) galaxy_stop(1, "%s: holds no body", name);
    state = galaxy_state_of_table(table, n);
    free(table);
    return state;
}

static FILE *galaxy_create(const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file) galaxy_stop(1, "%s: %s", path, strerror(errno));
    return file;
}

static void galaxy_close(FILE *file, const char *path)
{
    if (ferror(file) | fclose(file)) galaxy_stop(1, "%s: could not be written: %s", path, strerror(errno));
}

/* 9 digits bring back every float as it was, 17 every double. */
static void galaxy_write(const char *name, const galaxy_state *state, int32_t step)
{
    int const digits = sizeof(nbody_real) == sizeof(float) ? 9 : 17;
    FILE *file = galaxy_create(name);
    int32_t i;
    fprintf(file, "# x y vx vy m of %ld bodies after step %ld\n", (long)state->n, (long)step);
    for (i = 0; i < state->n; i++) {
        const nbody_real *p = state->pos + 2 * (size_t)i, *v = state->vel + 2 * (size_t)i;
        fprintf(file, "%.*g %.*g %.*g %.*g %.*g\n", digits, (double)p[0], digits, (double)p[1], digits, (double)v[0], digits,
                (double)v[1], digits, (double)state->mass[i]);
    }
    galaxy_close(file, name);
}

/* As mkdir -p. */
static void galaxy_make_folder(const char *path)
{
    char part[1024];
    size_t k, length = strlen(path);
    if (length >= sizeof part) galaxy_stop(2, "--out: the name is too long");
    for (k = 1; k <= length; k++) {
        if (path[k] != '/' && path[k] != 0) continue;
        memcpy(part, path, k);
        part[k] = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST) galaxy_stop(1, "%s: %s", part, strerror(errno));
    }
}

/* ------------------------------------------------------------------------------------------------
   >>disc: bodies around a heavy one, denser towards the middle:

                     .  . .  .                    density at distance r: exp(-r / scale), up to the rim at 3 scales
                 .  . :.:::: . .  .
                .  ..:::(O):::..  . .             Each moves on a circle, v^2 = a r with the force a of all others that really
                 .  . ::::.: . .                  acts there; a random part is added, so that the disc does not fall apart into
                      . .   .                     clumps at once (Toomre, 1964).
   ------------------------------------------------------------------------------------------------ */

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
static void galaxy_place(const galaxy_disc *disc, double heart, galaxy_state *state, uint64_t *random)
{
    int32_t const others = disc->n - 1;
    int32_t k;
    if (disc->n) state->mass[disc->first] = (nbody_real)(others ? heart * disc->mass : disc->mass);
    for (k = 0; k < others; k++) {
        size_t const i = (size_t)(disc->first + 1 + k);
        double const r = disc->radius * galaxy_radius((k + galaxy_random(random)) / others);
        double const angle = 2 * GALAXY_PI * galaxy_random(random);
        state->mass[i] = (nbody_real)((1 - heart) * disc->mass / others);
        state->pos[2 * i] = (nbody_real)(r * cos(angle));
        state->pos[2 * i + 1] = (nbody_real)(r * sin(angle));
    }
}

/* pull[k] = a r of body k of a disc: sums of -(acceleration . position) up to body k, first; then averages over neighbours in
   radius, so that one close neighbour does not decide how fast a body is. */
static void galaxy_average_pull(const galaxy_disc *disc, const galaxy_state *state, const nbody_real *acc, double *pull)
{
    int32_t const reach = 8 + disc->n / 100;
    double *sum = (double *)galaxy_alloc((size_t)disc->n + 1, sizeof(double));
    int32_t k;
    for (k = 0; k < disc->n; k++) {
        const nbody_real *p = state->pos + 2 * (size_t)(disc->first + k), *a = acc + 2 * (size_t)k;
        sum[k + 1] = sum[k] - (double)(p[0] * a[0] + p[1] * a[1]);
    }
    for (k = 1; k < disc->n; k++) { /* the heavy body, at distance 0, would spoil the average */
        int32_t const below = k - 1, above = disc->n - 1 - k, most = below < above ? below : above, w = most < reach ? most : reach;
        pull[k] = (sum[k + w + 1] - sum[k - w]) / (2 * w + 1);
    }
    free(sum);
}

static void galaxy_spin(const galaxy_disc *disc, const galaxy_options *o, galaxy_state *state, uint64_t *random)
{
    nbody sim;
    nbody_desc const desc = galaxy_desc(o);
    nbody_real *acc = (nbody_real *)galaxy_alloc(2 * (size_t)disc->n, sizeof(nbody_real));
    double *pull = (double *)galaxy_alloc((size_t)disc->n, sizeof(double));
    int32_t k;
    memset(&sim, 0, sizeof sim);
    galaxy_must(nbody_accelerations(&sim, &desc, state->pos + 2 * (size_t)disc->first, 0, state->mass + disc->first, disc->n, acc),
                "the forces in a disc");
    galaxy_average_pull(disc, state, acc, pull);
    for (k = 1; k < disc->n; k++) {
        size_t const i = (size_t)(disc->first + k);
        double const x = (double)state->pos[2 * i], y = (double)state->pos[2 * i + 1], r = hypot(x, y);
        double const speed = pull[k] > 0 ? sqrt(pull[k]) : 0, turn = r > 0 ? disc->spin * speed / r : 0;
        state->vel[2 * i] = (nbody_real)(-turn * y + o->dispersion * speed * galaxy_normal(random));
        state->vel[2 * i + 1] = (nbody_real)(turn * x + o->dispersion * speed * galaxy_normal(random));
    }
    nbody_free(&sim);
    free(acc);
    free(pull);
}

/* ------------------------------------------------------------------------------------------------
   >>orbit: two points that come from far away and pass at distance q, against the clock

        1 <----- d -----> 2 ,         At distance d, 2 moves at speed v relative to 1. Its energy is that of a fall from far away
         ` .                `  v      (1 / d^2: a parabola, v^2 = 2 M / d; with 1 / d nobody ever gets away: there it is the speed
           q ` .           .  V       of a circle, v^2 = M). What goes across the line at d follows from distance q, where all of it
                ` - . . -'            does: d across = q v(q).
   ------------------------------------------------------------------------------------------------ */

/* (speed towards each other, speed across) at distance d. */
static void galaxy_orbit(const galaxy_options *o, double mass, double velocity[2])
{
    double const d = o->apart, q = o->pericentre;
    double const v2 = o->law == NBODY_INVERSE ? mass : 2 * mass / d;
    double const fallen = o->law == NBODY_INVERSE ? 2 * mass * log(d / q) : 2 * mass * (1 / q - 1 / d);
    velocity[1] = q * sqrt(v2 + fallen) / d;
    velocity[0] = sqrt(fmax(0, v2 - velocity[1] * velocity[1]));
}

/* Shifts a disc. */
static void galaxy_shift(const galaxy_disc *disc, galaxy_state *state, const double at[2], const double velocity[2])
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
    double const mass = disc[0].mass + disc[1].mass, c = cos(o->turn * GALAXY_PI / 180), s = sin(o->turn * GALAXY_PI / 180);
    double speed[2];
    int k;
    galaxy_orbit(o, mass, speed);
    for (k = 0; k < 2; k++) {
        double const part = (k ? disc[0].mass : -disc[1].mass) / mass;
        double const at[2] = {part * o->apart * c, part * o->apart * s};
        double const velocity[2] = {part * (-speed[0] * c - speed[1] * s), part * (-speed[0] * s + speed[1] * c)};
        galaxy_shift(&disc[k], state, at, velocity);
    }
}

/* Both discs have mass in proportion to their area. What their random parts add up to is taken out. */
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
    if (o->write && !file) galaxy_stop(1, "%s: %s", o->write, strerror(errno));
    if (file) galaxy_close(file, o->write);
    if (o->frames || o->sheet) galaxy_make_folder(o->out);
}

/* The bodies of the first step; sets o->n. */
static galaxy_state galaxy_start(galaxy_options *o)
{
    galaxy_state const state = o->read ? galaxy_read(o->read) : galaxy_collision(o);
    galaxy_try_places(o);
    o->n = state.n;
    return state;
}

/* ------------------------------------------------------------------------------------------------
   >>figures
   ------------------------------------------------------------------------------------------------ */

typedef struct galaxy_figures {
    nbody_energies sums;
    nbody_error error;      /* of forces */
} galaxy_figures;

static double galaxy_energy(const galaxy_figures *f) { return f->sums.kinetic + f->sums.potential; }

static double galaxy_share(double change, double whole) { return fabs(whole) > 0 ? fabs(change / whole) : fabs(change); }

/* What has changed since the start, as a share: of both energies; of the momentum that all bodies would have if they moved into one
   direction with these energies; of the angular momentum. */
typedef struct galaxy_drift { double energy, momentum, angular; } galaxy_drift;

static galaxy_drift galaxy_drift_of(const galaxy_figures *start, const galaxy_figures *now)
{
    double const energies = start->sums.kinetic + fabs(start->sums.potential);
    galaxy_drift drift;
    drift.energy = galaxy_share(galaxy_energy(now) - galaxy_energy(start), energies);
    drift.momentum = galaxy_share(hypot(now->sums.momentum[0] - start->sums.momentum[0],
                                        now->sums.momentum[1] - start->sums.momentum[1]), sqrt(2 * energies * start->sums.mass));
    drift.angular = galaxy_share(now->sums.angular - start->sums.angular, start->sums.angular);
    return drift;
}

static void galaxy_print_report(const galaxy_options *o, const galaxy_figures *start, const galaxy_figures *now, int32_t step)
{
    galaxy_drift const drift = galaxy_drift_of(start, now);
    printf("step %6ld, time %7.3f: energy %11.6f (drift %.1e), forces of %ld bodies wrong by %.1e on average, %.1e at most\n",
           (long)step, step * o->dt, galaxy_energy(now), drift.energy, (long)now->error.samples, now->error.mean, now->error.worst);
    fflush(stdout);
}

static void galaxy_print_figures(const galaxy_figures *start, const galaxy_figures *now, double seconds, int32_t step)
{
    printf("            %14s %14s\n", "start", "end");
    printf("  kinetic   %14.8g %14.8g\n", start->sums.kinetic, now->sums.kinetic);
    printf("  potential %14.8g %14.8g\n", start->sums.potential, now->sums.potential);
    printf("  energy    %14.8g %14.8g\n", galaxy_energy(start), galaxy_energy(now));
    printf("  momentum  %14.3g %14.3g  x\n", start->sums.momentum[0], now->sums.momentum[0]);
    printf("            %14.3g %14.3g  y\n", start->sums.momentum[1], now->sums.momentum[1]);
    printf("  angular   %14.8g %14.8g\n", start->sums.angular, now->sums.angular);
    if (step) printf("%.2f ms a step (%.1f steps/s)\n", 1e3 * seconds / step, step / (seconds + 1e-9));
}

/* The last line, the same for both programs. */
static void galaxy_print_line(const galaxy_options *o, const galaxy_figures *start, const galaxy_figures *now, int32_t step)
{
    galaxy_drift const drift = galaxy_drift_of(start, now);
    printf("bodies %ld, steps %ld, energy %.6f, drift of energy %.1e, of momentum %.1e, of angular momentum %.1e, ", (long)o->n,
           (long)step, galaxy_energy(now), drift.energy, drift.momentum, drift.angular);
    printf("force error %.1e\n", now->error.mean);
}

static void galaxy_print_sums(const char *when, const nbody_energies *sums)
{
    printf("%s_kinetic %.9e\n%s_potential %.9e\n", when, sums->kinetic, when, sums->potential);
    printf("%s_momentum_x %.9e\n%s_momentum_y %.9e\n", when, sums->momentum[0], when, sums->momentum[1]);
    printf("%s_angular %.9e\n", when, sums->angular);
    printf("%s_centre_x %.9e\n%s_centre_y %.9e\n", when, sums->centre[0], when, sums->centre[1]);
}

static void galaxy_print_check(const galaxy_options *o, const galaxy_figures *start, const galaxy_figures *now, int32_t step)
{
    galaxy_drift const drift = galaxy_drift_of(start, now);
    printf("bodies %ld\nsteps %ld\nmass %.9e\n", (long)o->n, (long)step, now->sums.mass);
    galaxy_print_sums("start", &start->sums);
    galaxy_print_sums("end", &now->sums);
    printf("energy_drift %.3e\nmomentum_drift %.3e\nangular_drift %.3e\n", drift.energy, drift.momentum, drift.angular);
    printf("samples %ld\nforce_error %.3e\nforce_worst %.3e\nforce_share %.3e\n", (long)now->error.samples, now->error.mean,
           now->error.worst, now->error.share);
}

/* ------------------------------------------------------------------------------------------------
   >>progress
   ------------------------------------------------------------------------------------------------ */

static double galaxy_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { GALAXY_BAR = 30 };

typedef struct galaxy_progress {
    int terminal;       /* stderr is one: a bar that moves; else a line every tenth of the way */
    int tenths;         /* lines written */
    double start, last;
} galaxy_progress;

static galaxy_progress galaxy_progress_begin(void)
{
    galaxy_progress progress;
    memset(&progress, 0, sizeof progress);
    progress.terminal = isatty(2);
    progress.start = progress.last = galaxy_now();
    return progress;
}

static int galaxy_progress_due(const galaxy_progress *progress, int32_t step, int32_t steps)
{
    if (progress->terminal) return step == steps || galaxy_now() - progress->last > 0.1;
    return (int64_t)10 * step >= (int64_t)(progress->tenths + 1) * steps;
}

static void galaxy_progress_show(galaxy_progress *progress, int32_t step, int32_t steps)
{
    double const now = galaxy_now(), rate = step / (now - progress->start + 1e-9);
    char bar[GALAXY_BAR + 1];
    int k;
    progress->last = now;
    progress->tenths = (int)((int64_t)10 * step / steps);
    for (k = 0; k < GALAXY_BAR; k++) bar[k] = (int64_t)k * steps < (int64_t)step * GALAXY_BAR ? '=' : ' ';
    bar[GALAXY_BAR] = 0;
    if (progress->terminal) fprintf(stderr, "\r[%s] ", bar);
    fprintf(stderr, "step %ld of %ld, %.0f steps/s, %.0f s left", (long)step, (long)steps, rate, (steps - step) / rate);
    fputs(progress->terminal && step < steps ? "  " : "\n", stderr);
    fflush(stderr);
}

/* Before a line is printed: the bar goes away, and comes back under it. */
static void galaxy_progress_clear(const galaxy_progress *progress)
{
    if (progress->terminal) fprintf(stderr, "\r%*s\r", GALAXY_BAR + 60, "");
}

/* ------------------------------------------------------------------------------------------------
   >>run
   ------------------------------------------------------------------------------------------------ */

#include "galaxy_draw.h"
#include "galaxy_window.h"

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
    galaxy_window window;
    galaxy_progress progress;
    galaxy_figures start, now;
    int32_t step;           /* made so far */
    double seconds;         /* that steps took */
} galaxy_show;

static int32_t galaxy_report_every(const galaxy_options *o) { return o->report ? o->report : o->steps / 5 + (o->steps < 5); }

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
        if (galaxy_frame_step(o, k) == show->step) {
            galaxy_view const view = galaxy_view_of(&show->album, GALAXY_FRAME_WIDTH, show->step);
            galaxy_bin(show, &view, show->album.density);
            galaxy_save_frame(&show->album, &view, show->step, k);
        }
    for (k = 0; o->sheet && k < GALAXY_SHEET_VIEWS; k++)
        if (galaxy_sheet_step(o, k) == show->step) {
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
    galaxy_progress_clear(&show->progress);
    galaxy_print_report(show->options, &show->start, &show->now, show->step);
}

/* Draws into the window when it is time for that. 0: it was closed. */
static int galaxy_live(galaxy_show *show, int now)
{
    if (!galaxy_window_due(&show->window, now)) return galaxy_window_poll(&show->window);
    {
        galaxy_view const view = galaxy_view_of(&show->album, GALAXY_FRAME_WIDTH, show->step);
        double const begun = galaxy_now();
        galaxy_bin(show, &view, show->album.density);
        galaxy_draw_frame(&show->album, &view, show->step);
        galaxy_window_show(&show->window, &show->album.frame, galaxy_now() - begun);
    }
    return galaxy_window_poll(&show->window);
}

/* Makes the steps up to the next stop or up to the engine's stride, and what is to be done there. */
static void galaxy_go_on(galaxy_show *show)
{
    const galaxy_options *o = show->options;
    int32_t const stop = galaxy_next_stop(o, show->step);
    int32_t const todo = stop - show->step < show->engine->stride ? stop - show->step : show->engine->stride;
    double const begun = galaxy_now();
    show->engine->advance(show->engine->user, todo);
    show->seconds += galaxy_now() - begun;
    show->step += todo;
    if (show->step == stop) galaxy_shoot(show);
    if (show->step % galaxy_report_every(o) == 0) galaxy_report(show);
    if (!o->check && galaxy_progress_due(&show->progress, show->step, o->steps))
        galaxy_progress_show(&show->progress, show->step, o->steps);
}

/* Makes all steps, until the window is closed. */
static galaxy_show galaxy_run(galaxy_options *o, const galaxy_engine *engine, const galaxy_state *start)
{
    galaxy_show show;
    memset(&show, 0, sizeof show);
    show.options = o;
    show.engine = engine;
    show.album = galaxy_album_begin(o, start);
    if (o->window) galaxy_window_open(&show.window, &show.album.frame);
    show.progress = galaxy_progress_begin();
    galaxy_shoot(&show);
    galaxy_report(&show);
    while (show.step < o->steps && galaxy_live(&show, 0)) galaxy_go_on(&show);
    if (show.step % galaxy_report_every(o) != 0) galaxy_report(&show);
    while (galaxy_live(&show, 1) && galaxy_window_wait(&show.window)) { }
    galaxy_window_close(&show.window);
    return show;
}

/* What there is to say at the end. */
static void galaxy_finish(galaxy_show *show)
{
    const galaxy_options *o = show->options;
    galaxy_album_end(&show->album);
    if (show->step < o->steps) galaxy_progress_clear(&show->progress);
    if (o->write) galaxy_write(o->write, show->engine->look(show->engine->user), show->step);
    if (o->check) {
        galaxy_print_check(o, &show->start, &show->now, show->step);
        return;
    }
    galaxy_print_figures(&show->start, &show->now, show->seconds, show->step);
    if (o->frames) printf("pictures: %s/frame_0000.png to frame_%04ld.png\n", o->out, (long)show->album.frames - 1);
    if (o->sheet) printf("picture: %s/sheet.png\n", o->out);
    galaxy_print_line(o, &show->start, &show->now, show->step);
}

#endif /* GALAXY_H */
