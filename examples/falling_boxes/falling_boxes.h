/* falling_boxes.h - the game of falling_boxes.c: boxes, what the mouse does to them, and a frame.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef EXAMPLES_FALLING_BOXES_H
#define EXAMPLES_FALLING_BOXES_H

#include "../common/base.h"

#define LBVH_WITH_WORLD /* more/lbvh_world.h: boxes that come, move and go */
#define LBVH_STATIC
#define LBVH_IMPLEMENTATION
#include "../../lbvh.h"

enum { WIDTH = 960, HEIGHT = 640, MOST = 2000, LEFT = 1, RIGHT = 2 };

typedef struct box {
    float x, y, half_x, half_y, vx, vy; /* centre, half edges, pixels a frame */
    lbvh_id id;                         /* 0: deleted */
    int fixed;
} box;

typedef struct game {
    lbvh_world world;
    box boxes[MOST];
    int32_t count, boxes_wanted, frames, window, check, hand[3]; /* the hand: x, y, button */
    int held, touching, wrong;
    const char *png;
} game;

static void must(lbvh_result r) { if (r != LBVH_OK) stop(1, "%s", lbvh_result_text(r)); }

static void corners(const box *b, float c[4])
{
    c[0] = b->x - b->half_x;
    c[1] = b->y - b->half_y;
    c[2] = b->x + b->half_x;
    c[3] = b->y + b->half_y;
}

static void add_box(game *g, float x, float y, float half_x, float half_y, int fixed)
{
    box *b = &g->boxes[g->count];
    float c[4];
    b->x = x; b->y = y; b->half_x = half_x; b->half_y = half_y; b->fixed = fixed;
    corners(b, c);
    must(lbvh_world_insert(&g->world, c, NULL, fixed ? LBVH_FIXED : LBVH_MOVING,
                           (uint64_t)g->count, &b->id));
    g->count++;
}

static void set_up(game *g)
{
    lbvh_world_desc desc = {0};
    uint32_t k;
    desc.dim = 2;
    desc.margin = 2;
    desc.pair_bytes = sizeof(int);      /* frames that the pair has lasted */
    must(lbvh_world_begin(&g->world, &desc));
    add_box(g, WIDTH / 2, HEIGHT + 30, WIDTH, 40, 1);
    add_box(g, -30, HEIGHT / 2, 40, 4 * HEIGHT, 1);
    add_box(g, WIDTH + 30, HEIGHT / 2, 40, 4 * HEIGHT, 1);
    for (k = 0; k < (uint32_t)g->boxes_wanted; k++)
        add_box(g, 60 + (float)(k * 97 % 840), 500 - 14 * (float)k, 6 + (float)(k * 5 % 13),
                6 + (float)(k * 7 % 11), 0);
    g->held = -1;
}

/* ---- >>frame -------------------------------------------------------------------------------- */

/* The box under a point, -1: none that moves. */
static int box_at(const game *g, float x, float y)
{
    float const point[4] = {x, y, x, y};
    lbvh_world_overlap o = lbvh_world_overlap_box(&g->world, point);
    while (lbvh_next_object(&o))
        if (!g->boxes[o.user].fixed) return (int)o.user;
    return -1;
}

/* The mouse: the left button holds a box, the right one deletes it. */
static void use_hand(game *g, int x, int y, int button)
{
    int const at = box_at(g, (float)x, (float)y);
    if (button != LEFT) g->held = -1;
    if (button == LEFT && g->held < 0) g->held = at;
    if (button == RIGHT && at >= 0) {
        must(lbvh_world_remove(&g->world, g->boxes[at].id));
        g->boxes[at].id = 0;
    }
    if (g->held < 0) return;
    g->boxes[g->held].vx = ((float)x - g->boxes[g->held].x) / 2;
    g->boxes[g->held].vy = ((float)y - g->boxes[g->held].y) / 2 - 0.1f;
}

static void move_boxes(game *g)
{
    int k;
    for (k = 0; k < g->count; k++) {
        box *b = &g->boxes[k];
        float c[4], ahead[2];
        if (b->fixed || !b->id) continue;
        b->vy = fminf(b->vy + 0.1f, 8);
        b->x += b->vx;
        b->y = fminf(b->y + b->vy, HEIGHT - 10 - b->half_y);    /* not through the floor */
        corners(b, c);
        ahead[0] = 4 * b->vx;           /* where it will probably be in four frames */
        ahead[1] = 4 * b->vy;
        must(lbvh_world_move(&g->world, b->id, c, ahead));
    }
}

/* Pushes two boxes apart along the axis on which they overlap less, and stops them there. */
static void push_apart(box *a, box *b)
{
    float const dx = b->x - a->x, dy = b->y - a->y;
    float const over_x = a->half_x + b->half_x - fabsf(dx),
                over_y = a->half_y + b->half_y - fabsf(dy);
    float const share_a = a->fixed ? 0 : b->fixed ? 1 : 0.5f, share_b = 1 - share_a;
    int const along_x = over_x < over_y, fits = over_x > 0 && over_y > 0;
    float const over = along_x ? copysignf(over_x, dx) : copysignf(over_y, dy);
    float *const va = along_x ? &a->vx : &a->vy, *const vb = along_x ? &b->vx : &b->vy;
    float const common = share_b * *va + share_a * *vb;     /* 0 where one is fixed */
    if (!fits) return;
    *(along_x ? &a->x : &a->y) -= 0.6f * share_a * over;
    *(along_x ? &b->x : &b->y) += 0.6f * share_b * over;
    if ((*vb - *va) * over >= 0) return;
    *va = *vb = common;
}

/* The pairs stay the same until the next update: several rounds push the pile apart. */
static void collide(game *g)
{
    int round;
    g->touching = 0;
    for (round = 0; round < 6; round++) {
        lbvh_pair_walk walk = lbvh_world_pairs(&g->world, LBVH_TIGHT);
        while (lbvh_next_pair(&walk)) {
            push_apart(&g->boxes[walk.user_a], &g->boxes[walk.user_b]);
            if (round > 0) continue;
            ++*(int *)walk.data;
            g->touching++;
        }
    }
}

/* All pairs of boxes, to compare. */
static int count_pairs(const game *g)
{
    int a, b, pairs = 0;
    for (a = 0; a < g->count; a++)
        for (b = a + 1; b < g->count; b++) {
            float l[4], r[4];
            const box *x = &g->boxes[a], *y = &g->boxes[b];
            corners(x, l);
            corners(y, r);
            pairs += x->id && y->id && !(x->fixed && y->fixed) && l[0] <= r[2] && r[0] <= l[2] &&
                     l[1] <= r[3] && r[1] <= l[3];
        }
    return pairs;
}

static void frame(game *g)
{
    int expected;
    move_boxes(g);
    must(lbvh_world_update(&g->world));
    expected = g->check ? count_pairs(g) : 0;
    collide(g);
    g->wrong += g->check && expected != g->touching;
}

#endif /* EXAMPLES_FALLING_BOXES_H */
