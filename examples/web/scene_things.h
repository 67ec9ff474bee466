/* scene_things.h - things that fall and are thrown, by the world of lbvh.h, for nearfield.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef SCENE_THINGS_H
#define SCENE_THINGS_H

/* -------------------------------------------------------------------------------------------------
   >>things: boxes fall into a pit, pile up, and are thrown by the mouse. The world keeps the pairs.
   Setting: the margin of a stored box, 0 .. 40 % of the mean edge: the larger it is, the fewer
   boxes search again, and the more pairs are kept that do not touch. Points: the middle, how many
   others it touches, 1 if the mouse holds it. Boxes: two of each thing, its own and the stored one.
   Lines: the pairs that touch, {x, y, x, y, steps since they began}.
   ---------------------------------------------------------------------------------------------- */

enum { THINGS_WALLS = 3, THINGS_LINES = 8, THINGS_ROUNDS = 6, THINGS_LINE = 5 };

typedef struct thing {
    float mid[2], half[2], vel[2];
    lbvh_id id;
    int32_t fixed, touching;
} thing;

static struct things {
    lbvh_world world;
    thing *thing;               /* [n + THINGS_WALLS] */
    float *line;                /* [THINGS_LINE THINGS_LINES n] */
    float gravity, fastest;     /* in a step */
    int32_t count, lines, held; /* held: a thing, -1: none */
    int32_t was_down;
} things;

static void things_end(void)
{
    lbvh_world_free(&things.world);
    free(things.thing);
    free(things.line);
    memset(&things, 0, sizeof things);
}

static void things_box(const thing *t, float box[4])
{
    int a;
    for (a = 0; a < 2; a++) {
        box[a] = t->mid[a] - t->half[a];
        box[2 + a] = t->mid[a] + t->half[a];
    }
}

static lbvh_result things_add(float x, float y, float half_x, float half_y, lbvh_state state)
{
    thing *t = &things.thing[things.count];
    float box[4];
    t->mid[0] = x;
    t->mid[1] = y;
    t->half[0] = half_x;
    t->half[1] = half_y;
    t->fixed = state == LBVH_FIXED;
    things_box(t, box);
    return lbvh_world_insert(&things.world, box, NULL, state, (uint64_t)things.count++, &t->id);
}

/* In rows, from below; those that find no room in the page wait above it. */
static lbvh_result things_place(float edge)
{
    int32_t const across = (int32_t)((page.wide - edge) / (1.5f * edge)) + 1;
    lbvh_result result = LBVH_OK;
    int32_t i;
    for (i = 0; i < page.n && result == LBVH_OK; i++) {
        float const x = edge * (1 + 1.5f * (float)(i % across) + 0.2f * web_random()),
                    y = edge * (1 + 1.5f * (float)(i / across));
        thing *t = &things.thing[things.count];
        result = things_add(x, y, edge * (0.25f + 0.4f * web_random()),
                            edge * (0.25f + 0.3f * web_random()), LBVH_MOVING);
        t->vel[0] = 0.1f * edge * (web_random() - 0.5f);
    }
    if (result == LBVH_OK) result = things_add(page.wide / 2, -4, page.wide, 4, LBVH_FIXED);
    if (result == LBVH_OK) result = things_add(-4, 50, 4, 99, LBVH_FIXED);
    if (result == LBVH_OK) result = things_add(page.wide + 4, 50, 4, 99, LBVH_FIXED);
    return result;
}

static const char *things_begin(void)
{
    float const edge = sqrtf(0.35f * page.wide * page.high / (float)(page.n > 40 ? page.n : 40));
    size_t const size = (size_t)page.n;
    lbvh_world_desc desc;
    lbvh_result result;
    memset(&desc, 0, sizeof desc);
    desc.dim = 2;
    desc.margin = 0.4f * page.setting * edge;
    desc.pair_bytes = sizeof(int32_t);  /* steps since the pair began to touch */
    things.thing = (thing *)calloc(size + THINGS_WALLS, sizeof *things.thing);
    things.line = (float *)calloc(THINGS_LINE * THINGS_LINES * size, sizeof *things.line);
    things.held = -1;
    things.gravity = 0.003f * edge;
    things.fastest = 0.4f * edge;
    result = lbvh_world_begin(&things.world, &desc);
    if (!things.thing || !things.line) result = LBVH_OUT_OF_MEMORY;
    if (result == LBVH_OK) result = things_place(edge);
    page.size = edge;
    page.boxes = 2 * page.n;
    if (result == LBVH_OK) return NULL;
    things_end();
    return lbvh_result_text(result);
}

/* The thing under the mouse, -1: none. */
static int32_t things_under_mouse(void)
{
    float const point[4] = {page.mouse.x, page.mouse.y, page.mouse.x, page.mouse.y};
    lbvh_world_overlap o = lbvh_world_overlap_box(&things.world, point);
    while (lbvh_next_object(&o))
        if (!things.thing[o.user].fixed) return (int32_t)o.user;
    return -1;
}

/* Pressed over a thing: it follows the mouse. Released: it flies on. */
static void things_use_mouse(void)
{
    thing *t;
    int a;
    if (page.mouse.down && !things.was_down) things.held = things_under_mouse();
    if (!page.mouse.down) things.held = -1;
    things.was_down = page.mouse.down;
    if (things.held < 0) return;
    t = &things.thing[things.held];
    for (a = 0; a < 2; a++) t->vel[a] = ((a ? page.mouse.y : page.mouse.x) - t->mid[a]) / 4;
}

static lbvh_result things_move(thing *t)
{
    float box[4], ahead[2];
    int a;
    t->touching = 0;
    t->vel[1] -= things.gravity;
    for (a = 0; a < 2; a++) {
        if (t->vel[a] > things.fastest) t->vel[a] = things.fastest;
        if (t->vel[a] < -things.fastest) t->vel[a] = -things.fastest;
        t->mid[a] += t->vel[a];
        ahead[a] = 4 * t->vel[a];       /* where it will probably be in four steps */
    }
    if (t->mid[1] < t->half[1]) t->mid[1] = t->half[1];
    things_box(t, box);
    return lbvh_world_move(&things.world, t->id, box, ahead);
}

/* Pushes two apart along the axis on which they overlap less, stops them there, and rubs along the
   other one. 1: they touch. */
static int things_push(thing *a, thing *b)
{
    float const share_a = a->fixed ? 0 : b->fixed ? 1 : 0.5f, share_b = 1 - share_a;
    float const d[2] = {b->mid[0] - a->mid[0], b->mid[1] - a->mid[1]};
    float const over[2] = {a->half[0] + b->half[0] - fabsf(d[0]),
                           a->half[1] + b->half[1] - fabsf(d[1])};
    int const axis = over[1] < over[0], other = !axis;
    float const push = 0.5f * copysignf(over[axis], d[axis]);
    float const slip = 0.1f * (b->vel[other] - a->vel[other]);
    if (!(over[axis] > 0)) return 0;
    a->mid[axis] -= share_a * push;
    b->mid[axis] += share_b * push;
    a->vel[other] += share_a * slip;
    b->vel[other] -= share_b * slip;
    if ((b->vel[axis] - a->vel[axis]) * push >= 0) return 1;
    a->vel[axis] = b->vel[axis] = share_b * a->vel[axis] + share_a * b->vel[axis];
    return 1;
}

static void things_line(const thing *a, const thing *b, int32_t age)
{
    float *line = things.line + THINGS_LINE * things.lines;
    if (a->fixed || b->fixed || things.lines >= THINGS_LINES * page.n) return;
    memcpy(line, a->mid, sizeof a->mid);
    memcpy(line + 2, b->mid, sizeof b->mid);
    line[4] = (float)age;
    things.lines++;
}

/* The pairs stay the same until the next update: several rounds push the pile apart. */
static void things_collide(void)
{
    int round;
    things.lines = 0;
    for (round = 0; round < THINGS_ROUNDS; round++) {
        lbvh_pair_walk walk = lbvh_world_pairs(&things.world, LBVH_TIGHT);
        while (lbvh_next_pair(&walk)) {
            thing *a = &things.thing[walk.user_a], *b = &things.thing[walk.user_b];
            int const touch = things_push(a, b);
            if (round || !touch) continue;
            a->touching++;
            b->touching++;
            things_line(a, b, ++*(int32_t *)walk.data);
        }
    }
}

static const char *things_go(void)
{
    lbvh_result result = LBVH_OK;
    int32_t i;
    things_use_mouse();
    for (i = 0; i < page.n && result == LBVH_OK; i++) result = things_move(&things.thing[i]);
    if (result == LBVH_OK) result = lbvh_world_update(&things.world);
    if (result != LBVH_OK) return lbvh_result_text(result);
    for (i = 0; i < page.n; i++) {
        int32_t index;
        float *box = page.box + 8 * (size_t)i;
        lbvh_world_index(&things.world, things.thing[i].id, &index);
        lbvh_world_box(&things.world, index, LBVH_TIGHT, box);
        lbvh_world_box(&things.world, index, LBVH_FAT, box + 4);
    }
    things_collide();
    for (i = 0; i < page.n; i++)
        web_put(i, things.thing[i].mid[0], things.thing[i].mid[1],
                (float)things.thing[i].touching, (float)(i == things.held));
    page.figure = things.world.searched;
    return NULL;
}

#endif /* SCENE_THINGS_H */
