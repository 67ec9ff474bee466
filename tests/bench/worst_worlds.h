/* worst_worlds.h - group `defaults` of bench_lbvh: worlds of the hardest inputs. Include it after
   lbvh.h with LBVH_WITH_WORLD, defaults.h and workloads.h; C99, everything static.
   SPDX-License-Identifier: MIT OR Unlicense

   A world has no options that change the time alone: margins and states are the caller's. So a row
   has the world as it comes, beside the same objects as a world likes them: in another order, in
   another state, without the object that disturbs. */

#ifndef BENCH_WORST_WORLDS_H
#define BENCH_WORST_WORLDS_H

#include <float.h>

typedef struct worst_world {
    lbvh_world world;
    lbvh_world_desc desc;
    lbvh_id *id;
    float *box;             /* 2 dim numbers each */
    lbvh_state state;
    int32_t n, movers, step;
    int32_t again;          /* 1: objects are inserted anew instead of moved */
} worst_world;

static void worst_must(lbvh_result result)
{
    if (result == LBVH_OK) return;
    printf("%s\n", lbvh_result_text(result));
    exit(1);
}

static worst_world worst_new(int32_t n, int dim, lbvh_state state)
{
    worst_world w;
    memset(&w, 0, sizeof w);
    w.n = n;
    w.state = state;
    w.desc.dim = dim;
    w.id = (lbvh_id *)bench_alloc((size_t)n * sizeof *w.id);
    w.box = (float *)bench_alloc((size_t)n * 6 * sizeof *w.box);
    return w;
}

static void worst_free(worst_world *w)
{
    lbvh_world_free(&w->world);
    free(w->id);
    free(w->box);
}

/* The first `movers` move, the others are in the state of w. */
static void worst_insert(worst_world *w, int32_t i)
{
    worst_must(lbvh_world_insert(&w->world, w->box + 2 * w->desc.dim * i, NULL,
                                 i < w->movers ? LBVH_MOVING : w->state, 0, &w->id[i]));
}

static void worst_begin(worst_world *w)
{
    int32_t i;
    worst_must(lbvh_world_begin(&w->world, &w->desc));
    for (i = 0; i < w->n; i++) worst_insert(w, i);
    worst_must(lbvh_world_update(&w->world));
}

/* ---- objects that come one by one ---- */

static void worst_work_one_by_one(void *user)
{
    worst_world *w = (worst_world *)user;
    int32_t i;
    lbvh_world_free(&w->world);
    worst_must(lbvh_world_begin(&w->world, &w->desc));
    for (i = 0; i < w->n; i++) {
        worst_insert(w, i);
        worst_must(lbvh_world_update(&w->world));
    }
}

/* A row of ground tiles from left to right, from right to left, and in no order. */
static void worst_row_of_tiles(int32_t n)
{
    static const char *const names[3] = {"left to right", "in no order", "right to left"};
    worst_world w[3];
    bench_setting settings[3];
    wl_random dice = wl_seed(4);
    int32_t i, k;
    int s;
    for (s = 0; s < 3; s++) {
        w[s] = worst_new(n, 2, LBVH_FIXED);
        for (i = 0; i < n; i++) {
            float *const box = w[s].box + 4 * i;
            box[0] = (float)(s == 2 ? n - i : i);
            box[2] = box[0] + 0.5f;
            box[1] = 0;
            box[3] = 0.5f;
        }
        settings[s].name = names[s];
        settings[s].work = worst_work_one_by_one;
        settings[s].job = &w[s];
    }
    for (i = n - 1; i > 0; i--) {
        float swap[4], *const a = w[1].box + 4 * i, *b;
        k = (int32_t)wl_below(&dice, (uint32_t)i + 1);
        b = w[1].box + 4 * k;
        memcpy(swap, a, sizeof swap);
        memmove(a, b, sizeof swap);
        memcpy(b, swap, sizeof swap);
    }
    bench_defaults_row("tiles in a row", n, "insert + update, each", settings, 3, bench_turn_ms,
                       "");
    for (s = 0; s < 3; s++) worst_free(&w[s]);
}

/* ---- steps ---- */

enum { WORST_STEPS = 100 };

static void worst_put(worst_world *w, int32_t i, const float *box)
{
    if (!w->again) {
        worst_must(lbvh_world_move(&w->world, w->id[i], box, NULL));
        return;
    }
    worst_must(lbvh_world_remove(&w->world, w->id[i]));
    worst_must(lbvh_world_insert(&w->world, box, NULL, LBVH_MOVING, 0, &w->id[i]));
}

/* Movers go to and fro along y. */
static void worst_work_steps(void *user)
{
    worst_world *w = (worst_world *)user;
    int const dim = w->desc.dim;
    int32_t s, i;
    for (s = 0; s < WORST_STEPS; s++, w->step++) {
        for (i = 0; i < w->movers; i++) {
            float box[6], *const from = w->box + 2 * dim * i;
            memcpy(box, from, 2 * (size_t)dim * sizeof *box);
            box[1] += 0.1f * (float)(w->step & 7);
            box[1 + dim] += 0.1f * (float)(w->step & 7);
            worst_put(w, i, box);
        }
        worst_must(lbvh_world_update(&w->world));
    }
}

/* Unit boxes, 2 apart, in a square or a cube; movers lie between them. */
static worst_world worst_lattice(int32_t n, int dim, int32_t movers, lbvh_state state)
{
    worst_world w = worst_new(n, dim, state);
    int32_t const side = (int32_t)ceil(dim == 2 ? sqrt(n) : cbrt(n));
    int32_t i;
    int a;
    w.movers = movers;
    for (i = 0; i < n; i++) {
        float *const box = w.box + 2 * dim * i;
        int32_t at = (int32_t)((int64_t)i * 7919 % n);
        for (a = 0; a < dim; a++, at /= side) {
            box[a] = 2 * (float)(at % side) + (i < movers ? 0.8f : 0);
            box[a + dim] = box[a] + 1;
        }
    }
    return w;
}

static void worst_crowd(int32_t n)
{
    static const struct { const char *name; lbvh_state state; } ways[3] = {
        {"FIXED", LBVH_FIXED}, {"SLEEPING", LBVH_SLEEPING}, {"MOVING", LBVH_MOVING}};
    worst_world w[3];
    bench_setting settings[3];
    int32_t movers;
    int s;
    for (movers = 1; movers <= 100; movers *= 100) {
        for (s = 0; s < 3; s++) {
            w[s] = worst_lattice(n, 2, movers, ways[s].state);
            worst_begin(&w[s]);
            settings[s].name = ways[s].name;
            settings[s].work = worst_work_steps;
            settings[s].job = &w[s];
        }
        bench_defaults_row("static crowd", n, movers == 1 ? "100 steps, 1 moves"
                                                          : "100 steps, 100 move",
                           settings, 3, bench_turn_ms, "");
        for (s = 0; s < 3; s++) worst_free(&w[s]);
    }
}

/* One object in `n` boxes at rest was large for one step: moved on, or removed and inserted. */
static void worst_once_large(int32_t n)
{
    static const char *const names[2] = {"move", "remove and insert"};
    worst_world w[2];
    bench_setting settings[2];
    int s, k;
    for (s = 0; s < 2; s++) {
        float const large[4] = {-1e4f, -1e4f, 1e4f, 1e4f};
        w[s] = worst_lattice(n, 2, 1, LBVH_FIXED);
        w[s].desc.margin = 0.05f;
        worst_begin(&w[s]);
        worst_must(lbvh_world_move(&w[s].world, w[s].id[0], large, NULL));
        worst_must(lbvh_world_update(&w[s].world));
        w[s].again = s;
        for (k = 0; k < 2; k++) worst_work_steps(&w[s]);
        bench_check(w[s].world.pairs < 10, "worlds: pairs of a box that was large once");
        settings[s].name = names[s];
        settings[s].work = worst_work_steps;
        settings[s].job = &w[s];
    }
    bench_defaults_row("once large", n, "100 steps, 1 moves", settings, 2, bench_turn_ms, "");
    for (s = 0; s < 2; s++) worst_free(&w[s]);
}

/* With an object far below the others, or a half space, and without. */
static void worst_far(int32_t n, int dim)
{
    static const char *const names[3] = {"one is far", "a half space", "without"};
    worst_world w[3];
    int k, s, a;
    for (k = 0; k < 2; k++) {
        bench_setting settings[2];
        for (s = 0; s < 2; s++) {
            worst_world *const of = &w[s ? 2 : k];
            float *box;
            *of = worst_lattice(n, dim, n / 10, LBVH_MOVING);
            box = of->box + 2 * dim * (n - 1);
            for (a = 0; a < dim && !s; a++) {
                box[a] = k ? -FLT_MAX : 0;
                box[dim + a] = k ? FLT_MAX : 1;
            }
            if (!s && !k) box[1] = -1e8f, box[dim + 1] = -1e8f + 16;
            if (!s && k) box[dim + 1] = -1;
            worst_begin(of);
            settings[s].name = names[s ? 2 : k];
            settings[s].work = worst_work_steps;
            settings[s].job = of;
        }
        bench_defaults_row(names[k], n, dim == 2 ? "100 steps, 2D" : "100 steps, 3D", settings, 2,
                           bench_turn_ms, "");
        worst_free(&w[k]);
        worst_free(&w[2]);
    }
}

static void worst_worlds(int32_t n)
{
    bench_defaults_title("defaults: worlds of hard inputs, beside the same objects otherwise");
    worst_row_of_tiles(n);
    worst_crowd(n);
    worst_once_large(n);
    worst_far(n, 2);
    worst_far(n, 3);
    bench_defaults_end();
}

#endif /* BENCH_WORST_WORLDS_H */
