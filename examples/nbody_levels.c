/* nbody_levels.c - who acts on one body, level by level: the trees of nbody.h, drawn and counted.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: the pictures of source 002 (Kalms, Figures 5 to 15), made from the arrays and the walks of a real tree:

       1_grids              bodies in a grid, and the hierarchy of grids above it              Figures 5, 6
       2_distance           rings where the error of a distance may double; near and far       Figures 7, 8, 9
       3_virtual_particles  what stands for the bodies of 2 x 2 cells, and of larger ones      Figures 10, 11
       4_on_a_body          virtual particles act on one body, level by level                  Figure 12
       5_force_nodes        nodes in one layer, and on all levels                              Figures 13, 14
       6_on_nodes           virtual particles act on nodes; nodes hand on what they feel       Figure 15
       7_adaptive           the default of nbody.h, on clumps: cells are divided where bodies crowd
       8_adaptive_on_nodes  the same walk through that tree

   For each it prints counts, and adds up what was drawn: every body must be counted once, and the force on the one body, made from
   the drawn points alone, must be that of nbody_accelerations. What acts is also written as text, for other programs to check.

   How to run it:

       make build/nbody_levels && build/nbody_levels       (from the top of the repository), or
       cc -O3 examples/nbody_levels.c -o nbody_levels -lstb -lm
       ./nbody_levels -n 500 --levels 6 --body 17

   What to look at: >>walks and >>sums below: that is the method. The pictures are made in nbody_levels_draw.h. */

#define _POSIX_C_SOURCE 200809L /* mkdir */

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dem_draw.h"

#define NBODY_IMPLEMENTATION
#include "../nbody.h"

enum { MOST_LEVELS = 9, MOST_NODES = 64 };

/* Everything here is in the units of the arrays of an nbody. */
typedef struct point { double x, y, m; } point;
typedef struct vector { double x, y; } vector;

/* A cell that acts on the body: at one of the levels of the cells around the body, or, at the end, on the body itself. */
typedef enum kind { FAR_SOURCES, FAR_BODIES, NEAR_SOURCES, NEAR_BODIES } kind;
typedef struct actor {
    int32_t cell, level;
    kind how;
    int32_t first, count;   /* the points that stand for it */
    double mass;
} actor;

typedef struct scene {
    const char *name;
    nbody sim;
    nbody_real *pos, *acc;
    int32_t n, id, place;           /* the body */
    int32_t chain[NBODY_MAX_LEVELS], levels; /* the cells that hold it: the root, ..., its leaf */
    actor *actor;
    int32_t actors;
    point *point;
    int32_t points;
} scene;

typedef struct options {
    int32_t n, levels, body;    /* body -1: chosen */
    uint64_t seed;
    const char *out;
} options;

/* ------------------------------------------------------------------------------------------------
   >>options
   ------------------------------------------------------------------------------------------------ */

#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 1, 2)))
#endif
static void stop(const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    fputs("nbody_levels: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static void must(nbody_result result, const char *what)
{
    if (result != NBODY_OK) stop("%s: %s", what, nbody_result_text(result));
}

static void *room_for(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory) stop("out of memory");
    return memory;
}

static void help(void)
{
    puts("usage: nbody_levels [options]\n\n"
         "Draws which virtual particles and force nodes act on one body, level by level, and counts them. Options:\n\n"
         "  -n N          bodies, 1 to 100000 (default 3000)\n"
         "  --seed N      where they are (default 1)\n"
         "  --levels L    levels of the source's tree, 1 to 9 (default 5); the adaptive tree chooses its own\n"
         "  --body I      the body to look at, 0 to N - 1 (default: one where there is much to see)\n"
         "  --out DIR     where the pictures go, and source.txt and adaptive.txt, what acts as text (default build/levels)\n"
         "  --help        this text");
    exit(0);
}

static int64_t whole_number(const char *option, const char *text, int64_t least, int64_t most)
{
    char *end;
    double value;
    if (!text) stop("%s needs a value (--help tells)", option);
    value = strtod(text, &end);
    if (end == text || *end || !(value >= (double)least && value <= (double)most) || value != floor(value))
        stop("%s %s: a whole number from %ld to %ld is needed", option, text, (long)least, (long)most);
    return (int64_t)value;
}

static options parse(char **argument)
{
    options o = {3000, 5, -1, 1, "build/levels"};
    while (*++argument) {
        const char *name = *argument;
        if (strcmp(name, "--help") == 0) help();
        else if (strcmp(name, "-n") == 0) o.n = (int32_t)whole_number(name, *++argument, 1, 100000);
        else if (strcmp(name, "--seed") == 0) o.seed = (uint64_t)whole_number(name, *++argument, 0, 1000000000);
        else if (strcmp(name, "--levels") == 0) o.levels = (int32_t)whole_number(name, *++argument, 1, MOST_LEVELS);
        else if (strcmp(name, "--body") == 0) o.body = (int32_t)whole_number(name, *++argument, 0, 99999);
        else if (strcmp(name, "--out") == 0 && argument[1]) o.out = *++argument;
        else if (strcmp(name, "--out") == 0) stop("--out needs a value (--help tells)");
        else stop("unknown option %s (--help lists them)", name);
    }
    if (o.body >= o.n) stop("--body %ld: the last of %ld bodies is %ld", (long)o.body, (long)o.n, (long)o.n - 1);
    return o;
}

/* ------------------------------------------------------------------------------------------------
   >>bodies: all of mass 1, so that masses are counts
   ------------------------------------------------------------------------------------------------ */

/* The next random number from 0 to 1 (xorshift64*). */
static double next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)((*state * UINT64_C(0x2545F4914F6CDD1D)) >> 11) / 9007199254740992.0;
}

static uint64_t random_state(uint64_t seed) { return (seed + 1) * UINT64_C(0x9E3779B97F4A7C15); }

static void even_bodies(nbody_real *pos, int32_t n, uint64_t seed)
{
    uint64_t state = random_state(seed);
    int32_t k;
    for (k = 0; k < 2 * n; k++) pos[k] = (nbody_real)next_random(&state);
}

/* Three clumps, the narrower the denser, and one body in eight anywhere. */
static void clumped_bodies(nbody_real *pos, int32_t n, uint64_t seed)
{
    static const double clump[3][3] = {{0.30, 0.66, 0.10}, {0.70, 0.72, 0.04}, {0.62, 0.26, 0.015}}; /* x, y, width */
    uint64_t state = random_state(seed);
    int32_t i;
    for (i = 0; i < n; i++) {
        const double *c = clump[i % 3];
        double const u = 0.9 * next_random(&state), turn = 6.283185307179586 * next_random(&state);
        double const r = c[2] * sqrt(u / (1 - u)); /* half of them within the width, the last 3 widths out */
        int const anywhere = i % 8 == 7;
        pos[2 * i] = (nbody_real)(anywhere ? next_random(&state) : c[0] + r * cos(turn));
        pos[2 * i + 1] = (nbody_real)(anywhere ? next_random(&state) : c[1] + r * sin(turn));
    }
}

/* ------------------------------------------------------------------------------------------------
   >>walks: the tree as it is in memory
   ------------------------------------------------------------------------------------------------ */

static double side_at(const nbody *sim, int32_t level) { return sim->frame->edge / (double)(1L << level); }

/* Lower left corner of a cell. */
static vector corner_of(const nbody *sim, int32_t cell)
{
    const nbody_cell *c = &sim->cell[cell];
    double const side = side_at(sim, c->level);
    vector corner;
    corner.x = sim->frame->origin[0] + side * c->x;
    corner.y = sim->frame->origin[1] + side * c->y;
    return corner;
}

static int holds(const nbody *sim, int32_t cell, int32_t place)
{
    const nbody_cell *c = &sim->cell[cell];
    return place >= c->first && place < c->first + c->count;
}

/* From the root down, always to the child that holds the body. */
static void follow(scene *s)
{
    const nbody *sim = &s->sim;
    int32_t at = 0;
    for (s->levels = 0;; s->levels++) {
        s->chain[s->levels] = at;
        if (sim->cell[at].child < 0) break;
        for (at = sim->cell[at].child; !holds(sim, at, s->place);) at++;
    }
    s->levels++;
}

static void add_point(scene *s, double x, double y, double m)
{
    point *p;
    if (s->points % 1024 == 0) {
        void *memory = realloc(s->point, ((size_t)s->points + 1024) * sizeof *s->point);
        if (!memory) stop("out of memory");
        s->point = (point *)memory;
    }
    p = &s->point[s->points++];
    p->x = x;
    p->y = y;
    p->m = m;
}

static void add_bodies(scene *s, int32_t cell)
{
    const nbody_cell *c = &s->sim.cell[cell];
    int32_t k;
    for (k = c->first; k < c->first + c->count; k++) add_point(s, (double)s->sim.x[k], (double)s->sim.y[k], (double)s->sim.m[k]);
}

/* Chebyshev: fixed points, the same in each cell. */
static int32_t fixed_sources(const nbody *sim, int32_t cell, point out[MOST_NODES])
{
    vector const corner = corner_of(sim, cell);
    double const side = side_at(sim, sim->cell[cell].level);
    int32_t const k = sim->rule.side;
    int32_t i, j;
    for (j = 0; j < k; j++)
        for (i = 0; i < k; i++) {
            point *p = &out[i + k * j];
            p->x = corner.x + side * (double)sim->rule.t[i];
            p->y = corner.y + side * (double)sim->rule.t[j];
            p->m = (double)sim->vm[(size_t)cell * (size_t)sim->per_cell + (size_t)(i + k * j)];
        }
    return k * k;
}

/* The virtual particles of a cell. The source's: as many as sub-cells are not empty. Returns how many. */
static int32_t sources_of(const nbody *sim, int32_t cell, point out[MOST_NODES])
{
    size_t const at = (size_t)cell * (size_t)sim->per_cell;
    int32_t k;
    if (sim->desc.sources == NBODY_CHEBYSHEV) return fixed_sources(sim, cell, out);
    for (k = 0; k < sim->made[cell]; k++) {
        out[k].x = (double)sim->vx[at + (size_t)k];
        out[k].y = (double)sim->vy[at + (size_t)k];
        out[k].m = (double)sim->vm[at + (size_t)k];
    }
    return k;
}

static void add_sources(scene *s, int32_t cell)
{
    point source[MOST_NODES];
    int32_t const count = sources_of(&s->sim, cell, source);
    int32_t k;
    for (k = 0; k < count; k++) add_point(s, source[k].x, source[k].y, source[k].m);
}

/* Does the cell act through its virtual particles? Bodies act where the cell is a leaf larger than what it acts on, in the
   source's tree any leaf, and in others a leaf with no more bodies than it would have virtual particles. */
static int by_sources(const nbody *sim, int32_t cell, int32_t level)
{
    const nbody_cell *c = &sim->cell[cell];
    if (c->level < level) return 0;
    return c->child >= 0 || (sim->desc.sources == NBODY_CHEBYSHEV && c->count > sim->per_cell);
}

static void add_actor(scene *s, int32_t cell, int32_t level, kind how)
{
    actor *a;
    int32_t k;
    void *memory = realloc(s->actor, ((size_t)s->actors + 1) * sizeof *s->actor);
    if (!memory) stop("out of memory");
    s->actor = (actor *)memory;
    a = &s->actor[s->actors++];
    a->cell = cell;
    a->level = level;
    a->how = how;
    a->first = s->points;
    if (how == FAR_BODIES || how == NEAR_BODIES) add_bodies(s, cell);
    else add_sources(s, cell);
    a->count = s->points - a->first;
    a->mass = 0;
    for (k = a->first; k < s->points; k++) a->mass += s->point[k].m;
}

/* All that acts on the body: far cells of the cells that hold it, from level 2 down, and what is left at its leaf. */
static void collect(scene *s)
{
    const nbody *sim = &s->sim;
    int32_t const leaf = s->levels - 1;
    nbody_near rest;
    int32_t level;
    for (level = 2; level < s->levels; level++) {
        nbody_far there = nbody_far_of(sim, s->chain[level]);
        while (nbody_next_far(&there))
            add_actor(s, there.cell, level, by_sources(sim, there.cell, level) ? FAR_SOURCES : FAR_BODIES);
    }
    rest = nbody_near_of(sim, s->chain[leaf]);
    while (nbody_next_near(&rest))
        add_actor(s, rest.cell, leaf, !rest.whole && by_sources(sim, rest.cell, leaf) ? NEAR_SOURCES : NEAR_BODIES);
}

static void forget(scene *s)
{
    free(s->actor);
    free(s->point);
    s->actor = NULL;
    s->point = NULL;
    s->actors = s->points = 0;
}

static void look_at(scene *s, int32_t place)
{
    forget(s);
    s->place = place;
    s->id = s->sim.id[place];
    follow(s);
    collect(s);
}

static int32_t place_of(const nbody *sim, int32_t id)
{
    int32_t place = 0;
    while (sim->id[place] != id) place++;
    return place;
}

static scene scene_new(const char *name, const nbody_desc *desc, nbody_real *pos, int32_t n)
{
    scene s;
    memset(&s, 0, sizeof s);
    s.name = name;
    s.pos = pos;
    s.n = n;
    s.acc = (nbody_real *)room_for(2 * (size_t)n, sizeof *s.acc);
    must(nbody_accelerations(&s.sim, desc, pos, 0, NULL, n, s.acc), name);
    must(nbody_validate(&s.sim), name);
    return s;
}

static void scene_free(scene *s)
{
    forget(s);
    nbody_free(&s->sim);
    free(s->acc);
}

/* Bodies, points and mass of what acts at a level in one of two ways. */
typedef struct tally { long cells, bodies, points; double mass; } tally;

static tally tally_of(const scene *s, int32_t level, kind one, kind other)
{
    tally t = {0, 0, 0, 0};
    int32_t k;
    for (k = 0; k < s->actors; k++) {
        const actor *a = &s->actor[k];
        if (a->level != level || (a->how != one && a->how != other)) continue;
        t.cells++;
        t.bodies += s->sim.cell[a->cell].count;
        t.points += a->count;
        t.mass += a->mass * s->sim.frame->mass;
    }
    return t;
}

static double mass_of_all(const scene *s)
{
    double sum = 0;
    int32_t k;
    for (k = 0; k < s->actors; k++) sum += s->actor[k].mass;
    return sum * s->sim.frame->mass;
}

/* ------------------------------------------------------------------------------------------------
   >>sums: forces, from the drawn points alone, in double
   ------------------------------------------------------------------------------------------------ */

/* What a point does to a unit mass at (x, y); *terms: lengths of all such terms (may be NULL). */
static void add_pull(const nbody *sim, vector *sum, double x, double y, const point *q, double *terms)
{
    double const dx = q->x - x, dy = q->y - y, r2 = dx * dx + dy * dy;
    double const d2 = r2 + sim->frame->soften2;
    double f;
    if (!(r2 > 0)) return;
    f = q->m / (d2 * sqrt(d2));
    sum->x += f * dx;
    sum->y += f * dy;
    if (terms) *terms += fabs(f) * sqrt(r2);
}

static vector in_your_units(const nbody *sim, vector f)
{
    double const unit = (double)sim->desc.gravity * sim->frame->mass / (sim->frame->length * sim->frame->length);
    f.x *= unit;
    f.y *= unit;
    return f;
}

/* The oracle: every body, one by one. */
static vector direct_sum(const scene *s, double *terms)
{
    const nbody *sim = &s->sim;
    vector sum = {0, 0};
    int32_t k;
    *terms = 0;
    for (k = 0; k < s->n; k++) {
        point q;
        q.x = (double)sim->x[k];
        q.y = (double)sim->y[k];
        q.m = (double)sim->m[k];
        add_pull(sim, &sum, (double)sim->x[s->place], (double)sim->y[s->place], &q, terms);
    }
    return sum;
}

/* What acts at a level in one of two ways, on a unit mass at (x, y). */
static void add_level(const scene *s, int32_t level, kind one, kind other, double x, double y, vector *sum)
{
    int32_t k, p;
    for (k = 0; k < s->actors; k++) {
        const actor *a = &s->actor[k];
        if (a->level != level || (a->how != one && a->how != other)) continue;
        for (p = a->first; p < a->first + a->count; p++) add_pull(&s->sim, sum, x, y, &s->point[p], NULL);
    }
}

/* Where node (i, j) of a cell is. */
static vector node_at(const nbody *sim, int32_t cell, int32_t i, int32_t j)
{
    vector at = corner_of(sim, cell);
    double const side = side_at(sim, sim->cell[cell].level);
    at.x += side * (double)sim->rule.t[i];
    at.y += side * (double)sim->rule.t[j];
    return at;
}

/* Forces at the nodes of the cell that holds the body, level by level: what the parent's nodes felt, interpolated, and the far
   cells of this level. `f` has those of the parent, and then those of the cell. */
static void descend(const scene *s, int32_t level, vector f[MOST_NODES])
{
    const nbody *sim = &s->sim;
    int32_t const cell = s->chain[level], k = sim->rule.side;
    const nbody_real (*wx)[NBODY_MAX_ORDER] = (const nbody_real (*)[NBODY_MAX_ORDER])sim->rule.to_child[sim->cell[cell].x & 1];
    const nbody_real (*wy)[NBODY_MAX_ORDER] = (const nbody_real (*)[NBODY_MAX_ORDER])sim->rule.to_child[sim->cell[cell].y & 1];
    vector child[MOST_NODES];
    int32_t a, b, i, j;
    for (b = 0; b < k; b++)
        for (a = 0; a < k; a++) {
            vector const at = node_at(sim, cell, a, b);
            vector sum = {0, 0};
            for (j = 0; level > 2 && j < k; j++)
                for (i = 0; i < k; i++) {
                    double const w = (double)wx[a][i] * (double)wy[b][j];
                    sum.x += w * f[i + k * j].x;
                    sum.y += w * f[i + k * j].y;
                }
            add_level(s, level, FAR_SOURCES, FAR_BODIES, at.x, at.y, &sum);
            child[a + k * b] = sum;
        }
    memcpy(f, child, sizeof child);
}

/* How much each node of a row counts at u, 0 to 1: the two beside it (linear), or all of them (the polynomial through them). */
static void weights_at(const nbody_rule *rule, double u, double w[NBODY_MAX_ORDER])
{
    int32_t const k = rule->side;
    int32_t i, j;
    if (rule->linear) {
        double const at = u * k - 0.5;
        int32_t const first = at < 0 ? 0 : at >= k - 1 ? k - 2 : (int32_t)at; /* beyond the last node the line goes on */
        for (i = 0; i < k; i++) w[i] = 0;
        w[first] = 1 - (at - first);
        w[first + 1] = at - first;
        return;
    }
    for (i = 0; i < k; i++) {
        w[i] = 1;
        for (j = 0; j < k; j++)
            if (j != i) w[i] *= (u - (double)rule->t[j]) / ((double)rule->t[i] - (double)rule->t[j]);
    }
}

static void body_weights(const scene *s, double wx[NBODY_MAX_ORDER], double wy[NBODY_MAX_ORDER])
{
    const nbody *sim = &s->sim;
    int32_t const leaf = s->chain[s->levels - 1];
    vector const corner = corner_of(sim, leaf);
    double const side = side_at(sim, sim->cell[leaf].level);
    weights_at(&sim->rule, ((double)sim->x[s->place] - corner.x) / side, wx);
    weights_at(&sim->rule, ((double)sim->y[s->place] - corner.y) / side, wy);
}

/* The far part by way of the nodes. */
static vector through_nodes(const scene *s)
{
    int32_t const k = s->sim.rule.side;
    double wx[NBODY_MAX_ORDER], wy[NBODY_MAX_ORDER];
    vector f[MOST_NODES], sum = {0, 0};
    int32_t level, i, j;
    if (s->levels <= 2) return sum;
    for (level = 2; level < s->levels; level++) descend(s, level, f);
    body_weights(s, wx, wy);
    for (j = 0; j < k; j++)
        for (i = 0; i < k; i++) {
            sum.x += wx[i] * wy[j] * f[i + k * j].x;
            sum.y += wx[i] * wy[j] * f[i + k * j].y;
        }
    return sum;
}

/* The force on the body, from what was drawn. */
static vector drawn_sum(const scene *s)
{
    const nbody *sim = &s->sim;
    double const x = (double)sim->x[s->place], y = (double)sim->y[s->place];
    vector sum = {0, 0};
    int32_t level;
    if (sim->desc.method == NBODY_FORCE_NODES) sum = through_nodes(s);
    else for (level = 2; level < s->levels; level++) add_level(s, level, FAR_SOURCES, FAR_BODIES, x, y, &sum);
    add_level(s, s->levels - 1, NEAR_SOURCES, NEAR_BODIES, x, y, &sum);
    return sum;
}

/* ------------------------------------------------------------------------------------------------
   >>text: counts, sums, and a file of what acts
   ------------------------------------------------------------------------------------------------ */

typedef struct out_name { char path[1024]; } out_name;

static out_name in_folder(const char *folder, const char *name, const char *ending)
{
    out_name out;
    int const length = snprintf(out.path, sizeof out.path, "%s/%s%s", folder, name, ending);
    if (length >= (int)sizeof out.path) stop("--out: the name is too long");
    return out;
}

/* As mkdir -p. */
static void make_folder(const char *path)
{
    char part[512];
    size_t k, length = strlen(path);
    if (length >= sizeof part) stop("--out: the name is too long");
    for (k = 1; k <= length; k++) {
        if (path[k] != '/' && path[k] != 0) continue;
        memcpy(part, path, k);
        part[k] = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST) stop("%s: %s", part, strerror(errno));
    }
}

static const char *how_text(kind how)
{
    static const char *const text[] = {"far sources", "far bodies", "near sources", "near bodies"};
    return text[how];
}

/* In your units, with all digits: the square, the bodies, then each acting cell (the level at which it acts, its own level, its
   column and row, and how) with its points. tests/examples/test_nbody_levels.sh makes all of it a second time from the bodies. */
static void write_text(const scene *s, const char *folder)
{
    const nbody *sim = &s->sim;
    out_name const out = in_folder(folder, s->name, ".txt");
    double const length = sim->frame->length, mass = sim->frame->mass;
    FILE *file = fopen(out.path, "w");
    int32_t i, k, p;
    if (!file) stop("%s: %s", out.path, strerror(errno));
    fprintf(file, "square %.17g %.17g %.17g\n", sim->frame->min[0], sim->frame->min[1], sim->frame->size);
    fprintf(file, "look %ld leaf %ld levels %ld\n", (long)s->id, (long)s->levels - 1, (long)sim->frame->levels);
    for (i = 0; i < s->n; i++) fprintf(file, "body %.9g %.9g 1\n", (double)s->pos[2 * i], (double)s->pos[2 * i + 1]);
    for (k = 0; k < s->actors; k++) {
        const actor *a = &s->actor[k];
        const nbody_cell *c = &sim->cell[a->cell];
        fprintf(file, "cell %ld %d %ld %ld %s\n", (long)a->level, c->level, (long)c->x, (long)c->y, how_text(a->how));
        for (p = a->first; p < a->first + a->count; p++)
            fprintf(file, "point %.9g %.9g %.9g\n", s->point[p].x * length, s->point[p].y * length, s->point[p].m * mass);
    }
    if (ferror(file) | fclose(file)) stop("%s: could not be written: %s", out.path, strerror(errno));
}

static void print_tally(const char *what, tally t, const char *points)
{
    printf("   %-9s  %5ld cells with %6ld bodies act through %6ld %-17s", what, t.cells, t.bodies, t.points, points);
    printf(" of mass %.6g\n", t.mass);
}

static void print_level(const scene *s, int32_t level)
{
    tally const sources = tally_of(s, level, FAR_SOURCES, FAR_SOURCES), bodies = tally_of(s, level, FAR_BODIES, FAR_BODIES);
    char what[32];
    snprintf(what, sizeof what, "level %ld", (long)level);
    if (sources.cells || !bodies.cells) print_tally(what, sources, "virtual particles");
    if (bodies.cells) print_tally(what, bodies, "bodies");
}

/* Who acts, level by level; the masses must be those of all bodies. */
static void print_actors(const scene *s)
{
    tally const whole = tally_of(s, s->levels - 1, NEAR_BODIES, NEAR_BODIES);
    tally const parts = tally_of(s, s->levels - 1, NEAR_SOURCES, NEAR_SOURCES);
    double const all = mass_of_all(s);
    long bodies = 0;
    int32_t level, k;
    for (k = 0; k < s->actors; k++) bodies += s->sim.cell[s->actor[k].cell].count;
    for (level = 2; level < s->levels; level++) print_level(s, level);
    if (parts.cells) print_tally("near", parts, "virtual particles");
    print_tally("near", whole, "bodies");
    printf("   all        %5ld cells with %6ld bodies act through %6ld points            of mass %.6g\n", (long)s->actors, bodies,
           (long)s->points, all);
    if (bodies != s->n || fabs(all - s->n) > 1e-4 * s->n)
        stop("%s: what acts stands for %ld bodies and has the mass %.9g; there are %ld bodies", s->name, bodies, all, (long)s->n);
}

/* The force, made of what was drawn, beside the library's and the direct sum. Returns the error, as a share of the sum of all
   lengths. */
static double print_force(const scene *s)
{
    const nbody *sim = &s->sim;
    double terms, difference, error;
    vector const exact = direct_sum(s, &terms), drawn = drawn_sum(s);
    vector const e = in_your_units(sim, exact), d = in_your_units(sim, drawn);
    double const ax = (double)s->acc[2 * s->id], ay = (double)s->acc[2 * s->id + 1], length = hypot(e.x, e.y);
    vector unit = {1, 0};
    terms *= in_your_units(sim, unit).x;
    printf("   acceleration, from what is drawn:      %14.8g %14.8g\n", d.x, d.y);
    printf("   nbody_accelerations:                   %14.8g %14.8g\n", ax, ay);
    printf("   all bodies one by one, in double:      %14.8g %14.8g", e.x, e.y);
    difference = hypot(d.x - e.x, d.y - e.y);
    printf(length > 0 ? "   off by %.1e of its length\n" : "\n", difference / length);
    error = terms > 0 ? difference / terms : 0;
    if (hypot(d.x - ax, d.y - ay) > 1e-5 * terms)
        stop("%s: what is drawn gives another force than nbody_accelerations", s->name);
    return error;
}

#include "nbody_levels_draw.h"

/* ------------------------------------------------------------------------------------------------
   >>main
   ------------------------------------------------------------------------------------------------ */

/* The body nearest to a place that is not too central. */
static int32_t nearest_place(const nbody *sim, double u, double v)
{
    const nbody_frame *f = sim->frame;
    double least = 1e300;
    int32_t k, found = 0;
    for (k = 0; k < sim->n; k++) {
        double const d = hypot((double)sim->x[k] - f->origin[0] - u * f->edge, (double)sim->y[k] - f->origin[1] - v * f->edge);
        if (d < least) { least = d; found = k; }
    }
    return found;
}

/* In the adaptive tree: a body on which larger leaves and smaller cells act, some levels down. */
static int32_t telling_place(scene *s)
{
    const nbody *sim = &s->sim;
    int32_t k, j, best = 0, most = -1;
    for (k = 0; k < sim->frame->cells; k++) {
        int32_t score = 0, larger = 0, smaller = 0;
        if (sim->cell[k].child >= 0) continue;
        look_at(s, sim->cell[k].first);
        for (j = 0; j < s->actors; j++) {
            larger += s->actor[j].how == FAR_BODIES && sim->cell[s->actor[j].cell].level < s->actor[j].level;
            smaller += s->actor[j].how == NEAR_SOURCES;
        }
        score = 2 * (larger > 0) + 2 * (smaller > 0) + (s->levels >= 5) + (s->levels % COLUMNS == 2); /* full rows of panels */
        if (score > most) { most = score; best = sim->cell[k].first; }
    }
    return best;
}

static void say_scene(const scene *s, const char *what)
{
    printf("%ld bodies of mass 1, %s; the body looked at: %ld, at (%.6g, %.6g)\n", (long)s->n, what, (long)s->id,
           (double)s->pos[2 * s->id], (double)s->pos[2 * s->id + 1]);
}

static void say_terms(const scene *s, const char *what)
{
    nbody_counts c;
    must(nbody_count(&s->sim, &c), "counting");
    printf("   all bodies, %s: %lld near terms, %lld far, %lld by table; all pairs: %lld\n", what, (long long)c.near_terms,
           (long long)c.far_terms, (long long)c.table_terms, (long long)s->n * s->n);
}

/* The tree of the source, all leaves on one level. */
static void show_source(const options *o, nbody_real *pos)
{
    nbody_desc desc;
    scene s;
    double by_particles, by_nodes;
    even_bodies(pos, o->n, o->seed);
    memset(&desc, 0, sizeof desc);
    desc.levels = o->levels;
    desc.method = NBODY_VIRTUAL_PARTICLES;
    s = scene_new("source", &desc, pos, o->n);
    look_at(&s, o->body < 0 ? nearest_place(&s.sim, 0.28, 0.59) : place_of(&s.sim, o->body));
    say_scene(&s, "evenly spread");
    picture_grids(&s, o->out);
    picture_distance(&s, o->out);
    picture_virtual(&s, o->out);
    by_particles = picture_on_a_body(&s, o->out);
    say_terms(&s, "virtual particles");
    write_text(&s, o->out);
    scene_free(&s);

    desc.method = NBODY_FORCE_NODES;
    desc.order = 1;
    s = scene_new("source", &desc, pos, o->n);
    look_at(&s, o->body < 0 ? nearest_place(&s.sim, 0.28, 0.59) : place_of(&s.sim, o->body));
    picture_nodes(&s, o->out);
    by_nodes = picture_on_nodes(&s, o->out);
    say_terms(&s, "force nodes");
    printf("\nfigures of the source's tree: body %ld points %ld error %.3e node_error %.3e\n", (long)s.id, (long)s.points,
           by_particles, by_nodes);
    scene_free(&s);
}

/* What nbody.h does where nothing is chosen, but the method: it would take the direct sum for so few. */
static void show_default(const options *o, nbody_real *pos)
{
    nbody_desc desc;
    scene s;
    double error;
    clumped_bodies(pos, o->n, o->seed);
    memset(&desc, 0, sizeof desc);
    desc.method = NBODY_FORCE_NODES;
    s = scene_new("adaptive", &desc, pos, o->n);
    look_at(&s, o->body < 0 ? telling_place(&s) : place_of(&s.sim, o->body));
    printf("\n");
    say_scene(&s, "in clumps");
    picture_adaptive(&s, o->out);
    error = picture_adaptive_walk(&s, o->out);
    say_terms(&s, "the default");
    write_text(&s, o->out);
    printf("\nfigures of the adaptive tree: body %ld points %ld levels %ld error %.3e\n", (long)s.id, (long)s.points,
           (long)s.levels, error);
    scene_free(&s);
}

int main(int argc, char **argv)
{
    options const o = parse(argv);
    nbody_real *pos = (nbody_real *)room_for(2 * (size_t)o.n, sizeof *pos);
    (void)argc;
    make_folder(o.out);
    show_source(&o, pos);
    show_default(&o, pos);
    free(pos);
    printf("\nThe pictures are in %s\n", o.out);
    return 0;
}
