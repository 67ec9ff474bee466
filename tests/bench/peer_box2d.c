/* peer_box2d.c - lbvh_world beside the dynamic tree of Box2D v3 (github.com/erincatto/box2d), in
   2D, one thread.
   Optional: BOX2D is a folder with Box2D's sources (its hash set has no public header), in which
   its library has been built as its own page says. Nothing of it is part of this repository.

       cc -std=gnu99 -O3 -I. -I$BOX2D/include -I$BOX2D/src tests/bench/peer_box2d.c \
           $BOX2D/build/src/libbox2d.a -o build/peer_box2d -lm -lpthread
       build/peer_box2d 1000 10000 100000

   Its broad phase has a tree of stored boxes, moves the leaves of objects that left theirs, and
   then searches for each of them; of two that both moved, the pair counts once. What is found is
   looked up in a hash set of the pairs that exist, and a new one is added; pairs end in the narrow
   phase, which is not timed here. A world keeps its pairs too, with ends and beginnings.

       inserted, tree     until searches find all: fixed objects, of which no two are a pair
       inserted, pairs    and until all pairs are found and kept: moving objects
       1 % moved, all     moved, until the pairs are found and kept
       rebuilt            the same, where Box2D's tree is enlarged and rebuilt instead
       found only         the same, without Box2D's hash set: nothing of the pairs is kept

   Printed: least times of all runs, in turns, by CPU time of the thread, and their ratio.

   SPDX-License-Identifier: MIT OR Unlicense */

#define _POSIX_C_SOURCE 200809L
#define LBVH_STATIC
#define LBVH_WITH_WORLD
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#include "tests/bench/bench.h"
#include "tests/common/workloads.h"

#include <box2d/collision.h>
#include "table.h"

enum { STEPS = 8 };     /* of each kind, with each new tree and world */
enum { TREE, PAIRS, SOME, ALL, REBUILT, SOME_FOUND, ALL_FOUND, ROWS };
static const char *const row_names[ROWS] = {"inserted, tree", "inserted, pairs", "1 % moved",
                                            "all moved", "all, rebuilt", "1 %, found only",
                                            "all, found only"};
static float const margin = 0.1f;

typedef struct scene {
    int32_t n;
    float edge;                 /* of the square */
    float (*box)[4];
    int32_t *proxy;
    lbvh_id *id;
    unsigned char *moved;
    int32_t *list;
    int32_t listed;
    b2DynamicTree tree;
    b2HashSet pairs;
    int found_only;
    lbvh_world world;
    wl_random random;
    int32_t self;               /* who searches */
    int64_t met;
} scene;

static void must(int right)
{
    if (right) return;
    fprintf(stderr, "a call failed, or other pairs were found\n");
    exit(1);
}

static void least(double *ms, double begin)
{
    double const spent = bench_thread_ms() - begin;
    if (*ms == 0 || spent < *ms) *ms = spent;
}

static b2AABB stored(const float *box)
{
    b2AABB aabb;
    aabb.lowerBound.x = box[0] - margin;
    aabb.lowerBound.y = box[1] - margin;
    aabb.upperBound.x = box[2] + margin;
    aabb.upperBound.y = box[3] + margin;
    return aabb;
}

/* ---- Box2D's tree ---- */

static uint64_t pair_key(int32_t a, int32_t b)
{
    uint64_t const l = (uint64_t)(a < b ? a : b), r = (uint64_t)(a < b ? b : a);
    return (l << 32 | r) + 1; /* 0 is none */
}

static bool meet(int proxy, uint64_t user, void *context)
{
    scene *s = (scene *)context;
    int32_t const other = (int32_t)user;
    (void)proxy;
    if (other == s->self || (other < s->self && s->moved[other])) return true;
    s->met++;
    if (!s->found_only) {
        uint64_t const pair = pair_key(s->self, other);
        if (!b2ContainsKey(&s->pairs, pair)) b2AddKey(&s->pairs, pair);
    }
    return true;
}

static void search_theirs(scene *s)
{
    int32_t k;
    s->met = 0;
    for (k = 0; k < s->listed; k++) {
        s->self = s->list[k];
        b2DynamicTree_QueryAll(&s->tree, stored(s->box[s->self]), meet, s);
    }
}

static void insert_theirs(scene *s)
{
    int32_t i;
    s->tree = b2DynamicTree_Create(16);
    s->pairs = b2CreateSet(32);
    for (i = 0; i < s->n; i++)
        s->proxy[i] = b2DynamicTree_CreateProxy(&s->tree, stored(s->box[i]), 1, (uint64_t)i);
}

static void move_theirs(scene *s)
{
    int32_t k;
    for (k = 0; k < s->listed; k++)
        b2DynamicTree_MoveProxy(&s->tree, s->proxy[s->list[k]], stored(s->box[s->list[k]]));
    search_theirs(s);
}

static void rebuild_theirs(scene *s)
{
    int32_t k;
    for (k = 0; k < s->listed; k++)
        b2DynamicTree_EnlargeProxy(&s->tree, s->proxy[s->list[k]], stored(s->box[s->list[k]]));
    b2DynamicTree_Rebuild(&s->tree, false);
    search_theirs(s);
}

/* ---- a world ---- */

static void insert_ours(scene *s, lbvh_state state)
{
    lbvh_world_desc desc;
    int32_t i;
    memset(&desc, 0, sizeof desc);
    desc.dim = 2;
    desc.margin = margin;
    must(lbvh_world_begin(&s->world, &desc) == LBVH_OK);
    for (i = 0; i < s->n; i++)
        must(lbvh_world_insert(&s->world, s->box[i], NULL, state, (uint64_t)i, &s->id[i]) ==
                   LBVH_OK);
    must(lbvh_world_update(&s->world) == LBVH_OK);
}

static void move_ours(scene *s)
{
    int32_t k;
    for (k = 0; k < s->listed; k++)
        (void)lbvh_world_move(&s->world, s->id[s->list[k]], s->box[s->list[k]], NULL);
    must(lbvh_world_update(&s->world) == LBVH_OK);
}

/* Pairs of the world with an object that moved. */
static int64_t pairs_of_moved(const scene *s)
{
    int64_t count = 0;
    int32_t p;
    for (p = 0; p < s->world.pairs; p++)
        count += s->moved[s->world.pair[p].object[0]] | s->moved[s->world.pair[p].object[1]];
    return count;
}

/* The hash set becomes that of the world's pairs. */
static void end_theirs(scene *s)
{
    int32_t k;
    for (k = 0; k < s->world.ended_count; k++)
        b2RemoveKey(&s->pairs, pair_key(s->world.ended[2 * k], s->world.ended[2 * k + 1]));
    for (k = 0; k < s->world.begun_count && s->found_only; k++)
        b2AddKey(&s->pairs, pair_key(s->world.begun[2 * k], s->world.begun[2 * k + 1]));
}

/* ---- turns ---- */

static void new_scene(scene *s, int32_t n)
{
    size_t const all = (size_t)n;
    int32_t i;
    memset(s, 0, sizeof *s);
    s->n = n;
    s->edge = 2 * sqrtf((float)n);
    s->random = wl_seed(1);
    s->box = (float(*)[4])bench_alloc(all * sizeof *s->box);
    s->proxy = (int32_t *)bench_alloc(all * sizeof *s->proxy);
    s->id = (lbvh_id *)bench_alloc(all * sizeof *s->id);
    s->moved = (unsigned char *)bench_alloc(all);
    s->list = (int32_t *)bench_alloc(all * sizeof *s->list);
    memset(s->moved, 0, all);
    for (i = 0; i < n; i++) {
        float const size = 0.5f + wl_u(&s->random);
        s->box[i][0] = s->edge * wl_u(&s->random);
        s->box[i][1] = s->edge * wl_u(&s->random);
        s->box[i][2] = s->box[i][0] + size;
        s->box[i][3] = s->box[i][1] + size;
    }
}

static void free_scene(scene *s)
{
    free(s->box);
    free(s->proxy);
    free(s->id);
    free(s->moved);
    free(s->list);
}

static void move_box(scene *s, int32_t i)
{
    int32_t axis;
    s->list[s->listed++] = i;
    s->moved[i] = 1;
    for (axis = 0; axis < 2; axis++) {
        float const way = 0.2f + 1.8f * wl_u(&s->random),
                    step = s->box[i][axis] > s->edge * wl_u(&s->random) ? -way : way;
        s->box[i][axis] += step;
        s->box[i][axis + 2] += step;
    }
}

/* Moves one box of every `part`, out of its stored box. */
static void move_boxes(scene *s, int32_t part)
{
    int32_t k;
    for (k = 0; k < s->listed; k++) s->moved[s->list[k]] = 0;
    s->listed = 0;
    for (k = 0; k + part <= s->n; k += part)
        move_box(s, k + (int32_t)wl_below(&s->random, (uint32_t)part));
}

/* The first is theirs in every other turn. */
static void turn(scene *s, int first, int row, double ms[ROWS][2], void (*theirs)(scene *))
{
    int which;
    for (which = first; which < first + 2; which++) {
        double const begin = bench_thread_ms();
        if (which % 2) move_ours(s);
        else theirs(s);
        least(&ms[row][which % 2], begin);
    }
}

static void insert_both(scene *s, int first, int row, double ms[ROWS][2])
{
    int which;
    move_boxes(s, 1);
    for (which = first; which < first + 2; which++) {
        double const begin = bench_thread_ms();
        if (which % 2) insert_ours(s, row == TREE ? LBVH_FIXED : LBVH_MOVING);
        else insert_theirs(s);
        if (which % 2 == 0 && row == PAIRS) search_theirs(s);
        least(&ms[row][which % 2], begin);
    }
    if (row == PAIRS) must(s->met == s->world.pairs);
}

static void end_both(scene *s)
{
    b2DynamicTree_Destroy(&s->tree);
    b2DestroySet(&s->pairs);
    lbvh_world_free(&s->world);
}

static void compare(int32_t n)
{
    scene s;
    double ms[ROWS][2];
    int const rounds = n > 50000 ? 2 : 7;
    int round, step, row;
    memset(ms, 0, sizeof ms);
    new_scene(&s, n);
    for (round = 0; round < rounds; round++) {
        insert_both(&s, round % 2, TREE, ms);
        end_both(&s);
        insert_both(&s, round % 2, PAIRS, ms);
        for (step = 0; step < (ROWS - SOME) * STEPS; step++) {
            row = SOME + step / STEPS;
            s.found_only = row >= SOME_FOUND;
            move_boxes(&s, row == SOME || row == SOME_FOUND ? 100 : 1);
            turn(&s, step % 2, row, ms, row == REBUILT ? rebuild_theirs : move_theirs);
            must(s.met == pairs_of_moved(&s));
            end_theirs(&s);
        }
        s.found_only = 0;
        end_both(&s);
    }
    for (row = 0; row < ROWS; row++)
        printf("%8d  %-16s  Box2D %10.4f ms  lbvh %10.4f ms  ratio %.2f\n", (int)n, row_names[row],
               ms[row][0], ms[row][1], ms[row][1] / ms[row][0]);
    fflush(stdout);
    free_scene(&s);
}

int main(int argc, char **argv)
{
    int k;
    for (k = 1; k < argc; k++) compare(atoi(argv[k]));
    if (argc < 2) fprintf(stderr, "usage: peer_box2d N [N ...]\n");
    return argc < 2;
}
