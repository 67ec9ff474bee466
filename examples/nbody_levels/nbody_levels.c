/* nbody_levels.c - what acts on one body, level by level: the trees of nbody.h, drawn and counted.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: the pictures of source 002 (Kalms, Figures 5 to 15), made from the arrays and the
   walks of a real tree:

       1_grids              bodies in a grid, and the hierarchy of grids above it (5, 6)
       2_distance           rings where the error of a distance may double; near and far (7, 8, 9)
       3_virtual_particles  what stands for the bodies of 2 x 2 cells, and of larger ones (10, 11)
       4_on_a_body          virtual particles act on one body, level by level (12)
       5_force_nodes        nodes in one layer, and on all levels (13, 14)
       6_on_nodes           virtual particles act on nodes; nodes pass on what they feel (15)
       7_adaptive           the tree of nbody.h by default, on clumps, with leaves of 20 bodies
       8_adaptive_on_nodes  the same walk through that tree

   For each it prints counts, and adds up what was drawn: every body must be counted once, and the
   force on the one body, made from the drawn points alone, must be that of nbody_accelerations.
   What acts is also written as text, for other programs to check.

   How to run it:

       make build/nbody_levels && build/nbody_levels       (from the top of the repository), or
       cc -O3 examples/nbody_levels/nbody_levels.c -o nbody_levels -lstb -lm
       ./nbody_levels -n 500 --levels 6 --body 17

   What to look at: >>walks below and >>sums in nbody_levels_sums.h: that is the method.
   nbody_levels_draw.h has the pictures. */

#define PROGRAM "nbody_levels"
#include "../common/base.h"

#define NBODY_IMPLEMENTATION
#include "../../nbody.h"

#include "nbody_levels.h"

/* -------------------------------------------------------------------------------------------------
   >>walks: the tree as it is in memory
   ---------------------------------------------------------------------------------------------- */

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

/* Does the cell act through its virtual particles? Bodies act where the cell is a leaf larger
   than what it acts on, in the source's tree any leaf, and in others a leaf with no more bodies
   than it would have virtual particles. */
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
    if (!memory) stop(1, "out of memory");
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

/* All that acts on the body: far cells of the cells that hold it, from level 2 down, and what is
   left at its leaf. */
static void collect(scene *s)
{
    const nbody *sim = &s->sim;
    int32_t const leaf = s->levels - 1;
    nbody_near rest;
    int32_t level;
    for (level = 2; level < s->levels; level++) {
        nbody_far there = nbody_far_of(sim, s->chain[level]);
        while (nbody_next_far(&there))
            add_actor(s, there.cell, level,
                      by_sources(sim, there.cell, level) ? FAR_SOURCES : FAR_BODIES);
    }
    rest = nbody_near_of(sim, s->chain[leaf]);
    while (nbody_next_near(&rest))
        add_actor(s, rest.cell, leaf,
                  !rest.whole && by_sources(sim, rest.cell, leaf) ? NEAR_SOURCES : NEAR_BODIES);
}

static void look_at(scene *s, int32_t place)
{
    forget(s);
    s->place = place;
    s->id = s->sim.id[place];
    follow(s);
    collect(s);
}

#include "nbody_levels_sums.h"
#include "nbody_levels_draw.h"

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
    if (o->vtk) write_cells(&s, o->out, 0);
    scene_free(&s);

    desc.method = NBODY_FORCE_NODES;
    desc.order = 1;
    s = scene_new("source", &desc, pos, o->n);
    look_at(&s, o->body < 0 ? nearest_place(&s.sim, 0.28, 0.59) : place_of(&s.sim, o->body));
    picture_nodes(&s, o->out);
    by_nodes = picture_on_nodes(&s, o->out);
    say_terms(&s, "force nodes");
    printf("\nfigures of the source's tree: body %ld points %ld error %.3e node_error %.3e\n",
           (long)s.id, (long)s.points, by_particles, by_nodes);
    scene_free(&s);
}

/* The tree that nbody.h takes where nothing is chosen: cells are divided where bodies crowd. Only
   its leaves are smaller, that so few bodies have several levels. */
static void show_default(const options *o, nbody_real *pos)
{
    nbody_desc desc;
    scene s;
    double error;
    clumped_bodies(pos, o->n, o->seed);
    memset(&desc, 0, sizeof desc);
    desc.method = NBODY_FORCE_NODES;
    desc.leaf = 20;
    s = scene_new("adaptive", &desc, pos, o->n);
    look_at(&s, o->body < 0 ? telling_place(&s) : place_of(&s.sim, o->body));
    printf("\n");
    say_scene(&s, "in clumps");
    picture_adaptive(&s, o->out);
    error = picture_adaptive_walk(&s, o->out);
    say_terms(&s, "the default");
    write_text(&s, o->out);
    if (o->vtk) write_cells(&s, o->out, 1);
    printf("\nfigures of the adaptive tree: body %ld points %ld levels %ld error %.3e\n",
           (long)s.id, (long)s.points, (long)s.levels, error);
    scene_free(&s);
}

int main(int argc, char **argv)
{
    options const o = parse(argc, argv);
    nbody_real *pos = (nbody_real *)zeros(2 * (size_t)o.n, sizeof *pos);
    show_source(&o, pos);
    show_default(&o, pos);
    free(pos);
    printf("\nThe pictures are in %s\n", o.out);
    return 0;
}
