/* parallel_worlds.c - a part of test_lbvh_parallel.c: two worlds get the same calls; one updates
   serially, one in tasks. All that an update leaves is the same, bit for bit.
   SPDX-License-Identifier: MIT OR Unlicense */

enum { OBJECTS = 260, STEPS = 10 };
enum { SPARSE, SOLID, CROWD, CROWDS, RESTING, LIVES };

typedef struct life {
    lbvh_world world;
    lbvh_id id[OBJECTS]; /* 0: none */
    wl_random dice;
    int kind, dim;
} life;

static int fall(life *l, uint32_t sides) { return (int)wl_below(&l->dice, sides); }

/* In a crowd all boxes share a point: each meets all others, more than a piece has room to visit.
   Of several crowds, what a group meets has room, and what the piece meets has none. */
static void put_box(life *l, real *box)
{
    int const crowd = l->kind == CROWD || l->kind == CROWDS;
    real const edge = l->kind == SOLID ? (real)0.3 : (real)0.08,
               shared = l->kind == CROWDS ? (real)(2 * fall(l, 6)) : 0;
    int a;
    for (a = 0; a < l->dim; a++) {
        real const x = (real)wl_u(&l->dice), y = (real)wl_u(&l->dice);
        box[a] = crowd ? shared - x : x;
        box[l->dim + a] = crowd ? shared + y : x + edge * y;
    }
}

static lbvh_filter put_filter(life *l)
{
    lbvh_filter filter;
    memset(&filter, 0, sizeof filter);
    if (fall(l, 2)) filter.category = (uint64_t)1 << fall(l, 3), filter.mask = 3;
    if (fall(l, 9) == 0) filter.group = fall(l, 3) - 1;
    return filter;
}

static void call_object(life *l, lbvh_id *id)
{
    lbvh_world *const world = &l->world;
    lbvh_filter const filter = put_filter(l);
    lbvh_state const state = l->kind == RESTING ? (lbvh_state)fall(l, 3) : LBVH_MOVING;
    int const what = fall(l, 20);
    real box[6];
    put_box(l, box);
    if (*id == 0) CHECK_RESULT(lbvh_world_insert(world, box, &filter, state, 7, id), LBVH_OK);
    else if (what == 0) {
        CHECK_RESULT(lbvh_world_remove(world, *id), LBVH_OK);
        *id = 0;
    } else if (what == 1) CHECK_RESULT(lbvh_world_set_filter(world, *id, &filter), LBVH_OK);
    else if (what == 2) CHECK_RESULT(lbvh_world_set_state(world, *id, state), LBVH_OK);
    else CHECK_RESULT(lbvh_world_move(world, *id, box, NULL), LBVH_OK);
}

/* Calls before an update: for all objects, for a third, for a few, or for an eighth: then trees are
   refitted as a whole. */
static void call_objects(life *l, int step)
{
    uint32_t const of = step % 3 == 0 ? 1u : step % 3 == 1 ? 3u : step % 6 == 2 ? 20u : 8u;
    int i;
    for (i = 0; i < OBJECTS; i++)
        if (fall(l, of) == 0) call_object(l, &l->id[i]);
}

static void begin_life(life *l, int kind, lbvh_parallel parallel)
{
    lbvh_world_desc desc;
    memset(l, 0, sizeof *l);
    memset(&desc, 0, sizeof desc);
    l->dice = wl_seed(31);
    l->kind = kind;
    l->dim = desc.dim = kind == SOLID ? 3 : 2;
    desc.margin = kind == CROWD ? 0 : (real)0.01;
    desc.pair_bytes = 8;
    desc.parallel = parallel;
    CHECK_RESULT(lbvh_world_begin(&l->world, &desc), LBVH_OK);
}

static void same_tree_of_world(const lbvh_world_tree *l, const lbvh_world_tree *r)
{
    int32_t at = l->leaves > 0 ? 0 : -1;
    CHECK(l->leaves == r->leaves && l->used == r->used && l->changes == r->changes);
    while (at >= 0) {
        CHECK(same(&l->node[at], &r->node[at], sizeof *l->node));
        CHECK(l->category[at] == r->category[at] && l->parent[at] == r->parent[at]);
        at = l->node[at].link < 0 ? l->node[at].skip : l->node[at].link;
    }
}

/* What an update leaves. Bytes of pairs are written by the test: they stay with their pairs. */
static void same_world(const lbvh_world *l, const lbvh_world *r)
{
    size_t const pairs = (size_t)l->pairs, begun = (size_t)l->begun_count,
                 ended = (size_t)l->ended_count;
    CHECK(l->pairs == r->pairs && l->active == r->active && l->begun_count == r->begun_count);
    CHECK(l->ended_count == r->ended_count && l->searched == r->searched);
    CHECK(l->reason == r->reason && l->objects == r->objects && l->count == r->count);
    CHECK(same(l->pair, r->pair, pairs * sizeof *l->pair));
    CHECK(same(l->pair_data, r->pair_data, pairs * 8));
    CHECK(same(l->begun, r->begun, begun * 2 * sizeof *l->begun));
    CHECK(same(l->ended, r->ended, ended * 2 * sizeof *l->ended));
    CHECK(same(l->ended_data, r->ended_data, ended * 8));
    same_tree_of_world(&l->tree[0], &r->tree[0]);
    same_tree_of_world(&l->tree[1], &r->tree[1]);
}

static void write_data(lbvh_world *world)
{
    int32_t p;
    for (p = 0; p < world->pairs; p++) {
        uint64_t const number = (uint64_t)p * 77 + (uint64_t)world->begun_count;
        memcpy(world->pair_data + 8 * (size_t)p, &number, 8);
    }
}

/* One step of both lives. A hook that loses tasks is told of, unless too little changed for it. */
static void live(life *alone, life *together, int step, int loses)
{
    lbvh_result result;
    call_objects(alone, step);
    call_objects(together, step);
    CHECK_RESULT(lbvh_world_update(&alone->world), LBVH_OK);
    result = lbvh_world_update(&together->world);
    if (!loses || (step % 3 == 2 && result == LBVH_OK)) CHECK_RESULT(result, LBVH_OK);
    else CHECK_RESULT(result, LBVH_NOT_RUN);
    same_world(&alone->world, &together->world);
    CHECK_RESULT(lbvh_world_validate(&together->world), LBVH_OK);
    write_data(&alone->world);
    write_data(&together->world);
}

/* Every hook and number of tasks; those that lose tasks say so, and lose nothing else. */
static void worlds(void **state)
{
    static const int32_t tasks[] = {1, 2, 3, 7, 64};
    static const int always[LIVES] = {12, 23, 26, 7, 16};
    int kind, k, step, counter = 0;
    int64_t pairs = 0;
    (void)state;
    for (kind = 0; kind < LIVES; kind++)
        for (k = 0; k < 6 * COUNT_OF(tasks); k++) {
            static life alone, together;
            int const lost = k % 6 > 3 && tasks[k / 6] > 1;
            if (!chosen(counter++) && k != always[kind]) continue;
            begin_life(&alone, kind, serial());
            begin_life(&together, kind, hook(k % 6, tasks[k / 6]));
            for (step = 0; step < STEPS; step++)
                live(&alone, &together, step, lost);
            pairs += alone.world.pairs;
            lbvh_world_free(&alone.world);
            lbvh_world_free(&together.world);
        }
    CHECK(pairs > 0);
}

/* Where there is no memory for tasks the calling thread does it all. More than one piece: the hook
   is called. */
static void worlds_without_memory(void **state)
{
    static life alone, together;
    heap h = {0, 0, 0, 0, 0, 0};
    int step;
    (void)state;
    begin_life(&alone, SPARSE, serial());
    begin_life(&together, SPARSE, hook(1, 3));
    together.world.desc.parallel.run = watch;
    together.world.desc.allocator.alloc = heap_alloc;
    together.world.desc.allocator.free = heap_free;
    together.world.desc.allocator.user = &h;
    for (step = 0; step < 2; step++) {
        call_objects(&alone, 0);
        call_objects(&together, 0);
        CHECK_RESULT(lbvh_world_update(&alone.world), LBVH_OK);
        most_seen = 0;
        h.fail_at = step == 0 ? h.calls + 1 : 0;
        CHECK_RESULT(lbvh_world_update(&together.world), LBVH_OK);
        same_world(&alone.world, &together.world);
        CHECK(most_seen == 3);
    }
    lbvh_world_free(&alone.world);
    lbvh_world_free(&together.world);
    CHECK(h.live_blocks == 0 && !h.wrong);
}

static void worlds_refuse_tasks(void **state)
{
    lbvh_world world;
    lbvh_world_desc desc;
    (void)state;
    memset(&world, 0, sizeof world);
    memset(&desc, 0, sizeof desc);
    desc.parallel.tasks = 1025;
    CHECK_RESULT(lbvh_world_begin(&world, &desc), LBVH_BAD_OPTION);
    desc.parallel.tasks = -1;
    CHECK_RESULT(lbvh_world_begin(&world, &desc), LBVH_BAD_OPTION);
}
