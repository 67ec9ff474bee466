/* nbody_levels.h - what nbody_levels.c needs before its walks: options, bodies, and what acts, as a
   list.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef NBODY_LEVELS_H
#define NBODY_LEVELS_H

#include "../common/options.h"
#include "../common/random.h"

enum { MOST_LEVELS = 9, MOST_NODES = 64 };

/* Everything here is in the units of the arrays of an nbody. */
typedef struct point { double x, y, m; } point;
typedef struct vector { double x, y; } vector;

/* A cell that acts on the body: at one of the levels of the cells around the body, or, at the
   end, on the body itself. */
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
    int32_t n, levels, body, seed;  /* body -1: chosen */
    int32_t vtk;                    /* flag */
    const char *out;
} options;

static options parse(int argc, char **argv)
{
    options o = {3000, 5, -1, 1, 0, "build/levels"};
    const option_line table[] = {
        INT("-n", "N", &o.n, 1, 100000, "bodies (default 3000)"),
        INT("--seed", "N", &o.seed, 0, 1000000000, "where they are (default 1)"),
        INT("--levels", "L", &o.levels, 1, MOST_LEVELS,
            "levels of the source's tree (default 5); the adaptive tree chooses its own"),
        INT("--body", "I", &o.body, 0, 99999,
            "the body to look at (default: one where there is much to see)"),
        FLAG("--vtk", &o.vtk,
             "also cells_0000.vtk (the source's tree), cells_0001.vtk (adaptive), for ParaView"),
        TEXT("--out", "DIR", &o.out,
             "where pictures go, and source.txt and adaptive.txt, what acts as text (default "
             "build/levels)"),
        OPTIONS_END};
    options_read(argc, argv, table, NULL,
                 "Draws which virtual particles and force nodes act on one body, level by level.",
                 NULL);
    if (o.body >= o.n)
        stop(2, "--body %ld: the last of %ld bodies is %ld", (long)o.body, (long)o.n,
             (long)o.n - 1);
    return o;
}

/* -------------------------------------------------------------------------------------------------
   >>bodies: all of mass 1, so that masses are counts
   ---------------------------------------------------------------------------------------------- */

static void even_bodies(nbody_real *pos, int32_t n, int32_t seed)
{
    uint64_t state = random_seed(seed);
    int32_t k;
    for (k = 0; k < 2 * n; k++) pos[k] = (nbody_real)random_double(&state);
}

/* Three clumps, the narrower the denser, and one body in eight anywhere. */
static void clumped_bodies(nbody_real *pos, int32_t n, int32_t seed)
{
    /* x, y, width */
    static const double clump[3][3] = {{0.30, 0.66, 0.10}, {0.70, 0.72, 0.04}, {0.62, 0.26, 0.015}};
    uint64_t state = random_seed(seed);
    int32_t i;
    for (i = 0; i < n; i++) {
        const double *c = clump[i % 3];
        double const u = 0.9 * random_double(&state),
                     turn = 6.283185307179586 * random_double(&state);
        /* half of them within the width, the last 3 widths out */
        double const r = c[2] * sqrt(u / (1 - u));
        int const anywhere = i % 8 == 7;
        pos[2 * i] = (nbody_real)(anywhere ? random_double(&state) : c[0] + r * cos(turn));
        pos[2 * i + 1] = (nbody_real)(anywhere ? random_double(&state) : c[1] + r * sin(turn));
    }
}

static double side_at(const nbody *sim, int32_t level)
{
    return sim->frame->edge / (double)(1L << level);
}

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

static void add_point(scene *s, double x, double y, double m)
{
    point *p;
    if (s->points % 1024 == 0) {
        void *memory = realloc(s->point, ((size_t)s->points + 1024) * sizeof *s->point);
        if (!memory) stop(1, "out of memory");
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
    for (k = c->first; k < c->first + c->count; k++)
        add_point(s, (double)s->sim.x[k], (double)s->sim.y[k], (double)s->sim.m[k]);
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

/* The virtual particles of a cell. The source's: as many as sub-cells are not empty. Returns how
   many. */
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

static void forget(scene *s)
{
    free(s->actor);
    free(s->point);
    s->actor = NULL;
    s->point = NULL;
    s->actors = s->points = 0;
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
    s.acc = (nbody_real *)zeros(2 * (size_t)n, sizeof *s.acc);
    MUST(nbody, nbody_accelerations(&s.sim, desc, pos, 0, NULL, n, s.acc), name);
    MUST(nbody, nbody_validate(&s.sim), name);
    return s;
}

static void scene_free(scene *s)
{
    forget(s);
    nbody_free(&s->sim);
    free(s->acc);
}

#endif /* NBODY_LEVELS_H */
