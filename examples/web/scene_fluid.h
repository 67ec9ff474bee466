/* scene_fluid.h - water in the plane by smoothed particle hydrodynamics (../fluid_model.h), with
   nlist.h, for nearfield.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef SCENE_FLUID_H
#define SCENE_FLUID_H

/* -------------------------------------------------------------------------------------------------
   >>fluid: a column collapses between walls of particles. Units: the distance of particles at the
   start, the density of water, its weight. Setting: how much of the box it fills, 10 .. 50 %.
   ---------------------------------------------------------------------------------------------- */

enum { FLUID_WALL = 4 };            /* layers of a wall's particles */

static struct fluid {
    fluid_model model;
    fluid_particles now;
    float *next;                    /* [4 n] velocities */
    fluid_kept *kept;               /* [room] by entry of the list */
    int64_t room;
    ugrid grid;
    nlist list;
    int32_t n;                      /* with the walls, which come after the page's */
    float box[2], scale, fast;      /* scale: a unit on the page; fast: from the top to the floor */
} fluid;

static void fluid_end(void)
{
    ugrid_free(&fluid.grid);
    nlist_free(&fluid.list);
    free(fluid.now.pos);
    free(fluid.now.vel);
    free(fluid.now.density);
    free(fluid.next);
    free(fluid.kept);
    memset(&fluid, 0, sizeof fluid);
}

static void fluid_put(int32_t i, float x, float y, int wall)
{
    float *p = fluid.now.pos + 4 * (size_t)i;
    p[0] = x;
    p[1] = y;
    p[3] = wall ? 0 : 1;
}

/* Both sides and the floor; counts them where there is no memory yet. */
static int32_t fluid_walls(void)
{
    int32_t const wide = (int32_t)fluid.box[0], high = 2 * (int32_t)fluid.box[1];
    int32_t x, y, count = page.n;
    for (y = -FLUID_WALL; y < high; y++)
        for (x = -FLUID_WALL; x < wide + FLUID_WALL; x++) {
            if (y >= 0 && x >= 0 && x < wide) continue;
            if (fluid.now.pos) fluid_put(count, (float)x + 0.5f, (float)y + 0.5f, 1);
            count++;
        }
    return count;
}

/* The speed of sound is 7 times that of a fall from the top. */
static void fluid_set_model(void)
{
    fluid_model *m = &fluid.model;
    float const sound = 7 * (fluid.fast = sqrtf(2 * fluid.box[1])), h = 1.5f;
    m->dim = 2;
    m->h = h;
    m->support = 2 * h;
    m->scale = 7 / (4 * 3.14159265f * h * h);
    m->rho = 1;
    m->stiffness = sound * sound / 7;
    m->drag = 0.1f * sound * h;
    m->gravity = 1;
    m->dt = 0.3f * h / sound;
}

static void fluid_place(int32_t rows)
{
    int32_t i;
    fluid_walls();
    for (i = 0; i < page.n; i++)
        fluid_put(i, (float)(i / rows) + 0.5f, (float)(i % rows) + 0.5f, 0);
    for (i = 0; i < fluid.n; i++) {
        float const depth = i < page.n ? (float)rows - fluid.now.pos[4 * (size_t)i + 1] : 0;
        fluid.now.density[2 * (size_t)i] = powf(1 + depth / fluid.model.stiffness, 1 / 7.0f);
    }
}

/* Densities, whose gradients are kept beside the list, then the pressure at the walls. */
static void fluid_densities(void)
{
    const float *pos = fluid.now.pos;
    float *vel = fluid.now.vel, *density = fluid.now.density;
    int32_t i;
    for (i = 0; i < page.n; i++) {
        float sum = fluid_kernel(&fluid.model, 1);
        nlist_each e = nlist_of(&fluid.list, i);
        while (nlist_next(&e))
            sum += fluid_meet(&fluid.model, pos + 4 * i, pos + 4 * e.id, &fluid.kept[e.entry]);
        fluid_set_fluid(&fluid.model, sum, vel + 4 * i, density + 2 * i);
    }
    for (; i < fluid.n; i++) {
        float sums[2] = {0, 0};
        nlist_each e = nlist_of(&fluid.list, i);
        while (nlist_next(&e))
            fluid_lean(&fluid.model, pos + 4 * i, pos + 4 * e.id, vel + 4 * e.id,
                       density + 2 * e.id, sums);
        fluid_set_wall(&fluid.model, sums, vel + 4 * i, density + 2 * i);
    }
}

/* A new list where a particle has moved by half of the skin. */
static const char *fluid_look(void)
{
    float const reach = fluid.model.support;
    ugrid_desc cells;
    nlist_desc desc;
    int32_t moved = 1;
    int result = fluid.list.built
                     ? (int)nlist_moved(&fluid.list, fluid.now.pos, FLUID_STRIDE, &moved) : 0;
    if (result) return nlist_result_text((nlist_result)result);
    memset(&cells, 0, sizeof cells);
    memset(&desc, 0, sizeof desc);
    cells.dim = desc.dim = 2;
    cells.min[0] = cells.min[1] = -reach;
    cells.max[0] = fluid.box[0] + reach;
    cells.max[1] = 2 * fluid.box[1];
    desc.radius = reach;
    desc.skin = 0.3f;
    cells.cell = reach + desc.skin;
    desc.layout = NLIST_COMPACT;
    desc.grow = 1;
    if (moved) {
        result = (int)ugrid_build(&fluid.grid, &cells, fluid.now.pos, FLUID_STRIDE, fluid.n);
        if (result) return ugrid_result_text((ugrid_result)result);
        result = (int)nlist_build_ugrid(&fluid.list, &desc, &fluid.grid, fluid.now.pos,
                                        FLUID_STRIDE, fluid.n);
        if (result) return nlist_result_text((nlist_result)result);
    }
    if (fluid.list.total > fluid.room) {
        free(fluid.kept);
        fluid.room = fluid.list.total + fluid.list.total / 8;
        fluid.kept = (fluid_kept *)malloc((size_t)fluid.room * sizeof *fluid.kept);
        if (!fluid.kept) return no_memory;
    }
    fluid_densities();
    return NULL;
}

static const char *fluid_begin(void)
{
    float const part = 0.1f + 0.4f * page.setting;
    const char *wrong;
    int32_t rows, i;
    fluid.scale = sqrtf(part * page.wide * page.high / (float)page.n);
    fluid.box[0] = floorf(page.wide / fluid.scale);
    fluid.box[1] = page.high / fluid.scale;
    rows = (int32_t)(0.85f * fluid.box[1]) > 1 ? (int32_t)(0.85f * fluid.box[1]) : 1;
    fluid.n = fluid_walls();
    fluid.now.pos = (float *)calloc(4 * (size_t)fluid.n, sizeof(float));
    fluid.now.vel = (float *)calloc(4 * (size_t)fluid.n, sizeof(float));
    fluid.now.density = (float *)calloc(2 * (size_t)fluid.n, sizeof(float));
    fluid.next = (float *)calloc(4 * (size_t)fluid.n, sizeof(float));
    if (!fluid.now.pos || !fluid.now.vel || !fluid.now.density || !fluid.next) wrong = no_memory;
    else {
        fluid_set_model();
        fluid_place(rows);
        wrong = fluid_look(); /* what densities lack at the start they lack from then on */
        for (i = 0; i < page.n && !wrong; i++)
            fluid.now.density[2 * i] = 2 * fluid.now.density[2 * i] - fluid.now.density[2 * i + 1];
    }
    if (wrong) fluid_end();
    page.size = 0.55f * fluid.scale;
    return wrong;
}

/* Forces, and the mouse, which pushes; none moves by more than a tenth of a unit in a step. */
static void fluid_go_on(int32_t i)
{
    float *p = fluid.now.pos + 4 * (size_t)i, *next = fluid.next + 4 * (size_t)i,
          acceleration[3] = {0, 0, 0};
    const float *v = fluid.now.vel + 4 * (size_t)i;
    float const away[2] = {p[0] - page.mouse.x / fluid.scale, p[1] - page.mouse.y / fluid.scale},
                reach = 1.2f / fluid.scale, most = 0.1f / fluid.model.dt;
    float const distance = sqrtf(away[0] * away[0] + away[1] * away[1]);
    nlist_each e = nlist_of(&fluid.list, i);
    int a;
    while (nlist_next(&e))
        fluid_push(&fluid.kept[e.entry], v, fluid.now.vel + 4 * (size_t)e.id, acceleration);
    for (a = 0; a < 2; a++) {
        if (page.mouse.down && distance < reach && distance > 0)
            acceleration[a] += 20 * (1 - distance / reach) * away[a] / distance;
        if (acceleration[a] * fluid.model.dt > most) acceleration[a] = most / fluid.model.dt;
        if (acceleration[a] * fluid.model.dt < -most) acceleration[a] = -most / fluid.model.dt;
    }
    fluid_move(&fluid.model, acceleration, v, p, next);
}

static const char *fluid_go(void)
{
    const char *wrong = fluid_look();
    float *old = fluid.now.vel;
    int32_t i;
    if (wrong) return wrong;
    for (i = 0; i < page.n; i++) fluid_go_on(i);
    for (; i < fluid.n; i++) memset(fluid.next + 4 * (size_t)i, 0, 4 * sizeof(float));
    fluid.now.vel = fluid.next;
    fluid.next = old;
    for (i = 0; i < page.n; i++) {
        const float *p = fluid.now.pos + 4 * (size_t)i, *v = fluid.now.vel + 4 * (size_t)i;
        web_put(i, fluid.scale * p[0], fluid.scale * p[1], v[0] / fluid.fast, v[1] / fluid.fast);
    }
    page.figure = (double)fluid.list.total / fluid.n;
    return NULL;
}

#endif /* SCENE_FLUID_H */
