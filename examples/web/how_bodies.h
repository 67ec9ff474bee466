/* how_bodies.h - the cells, masses and nodes of a fast multipole method, and what acts on one body,
   by nbody.h, for how.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef HOW_BODIES_H
#define HOW_BODIES_H

enum {
    BODIES_LEVELS = 5,
    BODIES_ORDER = 3,
    BODIES_POINTS = BODIES_ORDER * BODIES_ORDER,
    BODIES_CELLS = 1 + 4 + 16 + 2 * HOW_MOST,
    BODIES_ACTORS = 64 * BODIES_LEVELS  /* at most 27 far cells a level, 9 near ones */
};

/* In units of the arrays of an nbody; `unit` has them in the page's. */
static struct bodies_steps {
    nbody sim;
    float acc[2 * HOW_MOST];
    float unit[4];              /* a length, a mass, an acceleration, the square's edge */
    float node[BODIES_ORDER];   /* the points of a cell along each axis, 0 .. 1 */
    /* by cell */
    int32_t level[BODIES_CELLS], x[BODIES_CELLS], y[BODIES_CELLS];
    int32_t first[BODIES_CELLS], count[BODIES_CELLS], parent[BODIES_CELLS], child[BODIES_CELLS];
    float down[2 * BODIES_POINTS * BODIES_CELLS]; /* x and y at its points, from its parent (L2L) */
    int32_t chain[BODIES_LEVELS]; /* the cells that hold the body, from the root */
    /* What acts: a far cell on the chain's cell of a level, or a near one (BODIES_LEVELS) on the
       body. All leaves are on the last level, so a cell acts on cells of its own level. */
    int32_t actor[BODIES_ACTORS], on[BODIES_ACTORS], actors;
} bodies_steps;

static void bodies_read_cells(void)
{
    struct bodies_steps *s = &bodies_steps;
    const nbody *sim = &s->sim;
    int32_t c, a;
    for (c = 0; c < sim->frame->cells; c++) {
        const nbody_cell *cell = &sim->cell[c];
        s->level[c] = cell->level;
        s->x[c] = cell->x;
        s->y[c] = cell->y;
        s->first[c] = cell->first;
        s->count[c] = cell->count;
        s->parent[c] = cell->parent;
        s->child[c] = cell->child;
        for (a = 0; a < sim->nodes; a++) {
            float *to = s->down + 2 * (c * sim->nodes + a);
            to[0] = cell->level > 2 ? nbody_i_l2l(sim, cell, a, sim->fx) : 0;
            to[1] = cell->level > 2 ? nbody_i_l2l(sim, cell, a, sim->fy) : 0;
        }
    }
}

static void bodies_add_actor(int32_t cell, int32_t on)
{
    struct bodies_steps *s = &bodies_steps;
    s->actor[s->actors] = cell;
    s->on[s->actors++] = on;
}

/* From the root to the leaf that holds the place. */
static void bodies_follow(int32_t place)
{
    struct bodies_steps *s = &bodies_steps;
    const nbody_cell *cell = s->sim.cell;
    int32_t at = 0, level;
    for (level = 0; level < BODIES_LEVELS; level++) {
        s->chain[level] = at;
        for (at = cell[at].child; at >= 0 && place >= cell[at].first + cell[at].count;) at++;
    }
}

static void bodies_collect(void)
{
    struct bodies_steps *s = &bodies_steps;
    const nbody *sim = &s->sim;
    nbody_near rest = nbody_near_of(sim, s->chain[BODIES_LEVELS - 1]);
    int32_t level;
    s->actors = 0;
    for (level = 2; level < BODIES_LEVELS; level++) {
        nbody_far there = nbody_far_of(sim, s->chain[level]);
        while (nbody_next_far(&there)) bodies_add_actor(there.cell, level);
    }
    while (nbody_next_near(&rest)) bodies_add_actor(rest.cell, BODIES_LEVELS);
}

static void bodies_give(int32_t n)
{
    struct bodies_steps *s = &bodies_steps;
    const nbody *sim = &s->sim;
    int32_t const cells = sim->frame->cells;
    how_floats("unit", s->unit, 4);
    how_floats("node", s->node, BODIES_ORDER);
    how_ints("id", sim->id, n);
    how_floats("acc", s->acc, 2 * n);
    how_ints("level", s->level, cells);
    how_ints("x", s->x, cells);
    how_ints("y", s->y, cells);
    how_ints("first", s->first, cells);
    how_ints("count", s->count, cells);
    how_ints("parent", s->parent, cells);
    how_ints("child", s->child, cells);
    /* of the cells of level 2 and below: above, nothing is far, and nothing was written */
    how_floats("mass", sim->vm, BODIES_POINTS * cells);
    how_floats("force_x", sim->fx, BODIES_POINTS * cells);
    how_floats("force_y", sim->fy, BODIES_POINTS * cells);
    how_floats("down", s->down, 2 * BODIES_POINTS * cells);
    how_ints("chain", s->chain, BODIES_LEVELS);
    how_ints("actor", s->actor, s->actors);
    how_ints("on", s->on, s->actors);
}

static void bodies_set(nbody_desc *desc)
{
    memset(desc, 0, sizeof *desc);
    desc->method = NBODY_FORCE_NODES;
    desc->levels = BODIES_LEVELS;
    desc->order = BODIES_ORDER;
    desc->sources = NBODY_CHEBYSHEV;
    desc->softening = 0.02f;
    desc->size = 4;
}

/* n >= 1 bodies of mass 1; `body` is the one that is looked at. */
static const char *bodies_make(int32_t n, int32_t body)
{
    struct bodies_steps *s = &bodies_steps;
    const nbody *sim = &s->sim;
    nbody_desc desc;
    nbody_result result;
    int32_t place = 0, k;
    bodies_set(&desc);
    result = nbody_accelerations(&s->sim, &desc, how.pos, 0, NULL, n, s->acc);
    if (result != NBODY_OK) return nbody_result_text(result);
    s->unit[0] = (float)sim->frame->length;
    s->unit[1] = (float)sim->frame->mass;
    s->unit[2] = s->unit[1] / (s->unit[0] * s->unit[0]);
    s->unit[3] = (float)sim->frame->size;
    for (k = 0; k < BODIES_ORDER; k++) s->node[k] = sim->rule.t[k];
    while (sim->id[place] != body) place++;
    bodies_follow(place);
    bodies_read_cells();
    bodies_collect();
    bodies_give(n);
    return NULL;
}

#endif /* HOW_BODIES_H */
