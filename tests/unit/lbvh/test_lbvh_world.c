/* test_lbvh_world.c - tests of lbvh_world: a model (plain arrays, all pairs) beside many random
   calls; refusals; failing allocations.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/lbvh/test_lbvh_world.c -o test_lbvh_world -lcmocka -lm &&
       ./test_lbvh_world
       (add -DLBVH_REAL=double for the double build; package: libcmocka-dev) */

#define LBVH_STATIC
#define LBVH_WITH_WORLD
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define TESTED lbvh
#include "../../common/testing.h"

enum { MOST = 160, BYTES = 8 };

/* ------------------------------------------------------------------------------------------------
   The model: what the test itself knows of each index, and of each pair of indices
   ------------------------------------------------------------------------------------------------
   */

typedef struct mob {
    lbvh_id id; /* 0: none */
    uint64_t user;
    real box[6];
    lbvh_filter filter;
    lbvh_state state;
    int gone; /* removed since the last update */
} mob;

typedef struct model {
    lbvh_world world;
    lbvh_world_desc desc;
    heap memory;
    mob mobs[MOST];
    unsigned char paired[MOST][MOST]; /* [lower][higher] */
    uint64_t data[MOST][MOST];        /* what the test wrote there */
    uint64_t users;
    int objects, incomplete; /* an update found no memory */
    int failures;            /* insertions that found none for an object more */
    uint32_t dice;
} model;

static uint32_t chance(model *m, uint32_t sides)
{
    m->dice = m->dice * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(m->dice >> 4) * sides) >> 28);
}

static real unit(model *m) { return (real)chance(m, 1u << 20) / (real)(1u << 20); }

/* Symmetric in the two indices. */
static int allow_some(void *user, int32_t a, int32_t b)
{
    (void)user;
    return (a * 31 + b * 31) % 7 != 0;
}

static lbvh_filter random_filter(model *m)
{
    lbvh_filter filter;
    memset(&filter, 0, sizeof filter);
    if (chance(m, 3) == 0) return filter;
    filter.category = chance(m, 2) ? (uint64_t)1 << chance(m, 4) : (uint64_t)1 << 63;
    filter.mask = chance(m, 2) ? (uint64_t)chance(m, 16) | (uint64_t)1 << 63 : 0;
    if (chance(m, 4) == 0) filter.group = (int32_t)chance(m, 5) - 2;
    return filter;
}

static void random_box(model *m, real *box)
{
    int const dim = m->desc.dim;
    real const edge = chance(m, 20) ? (real)0.12 : (real)0.8;
    int a;
    for (a = 0; a < dim; a++) {
        box[a] = unit(m);
        box[dim + a] = box[a] + edge * unit(m);
    }
}

static int touch(const lbvh_node *l, const lbvh_node *r)
{
    int a;
    for (a = 0; a < 3; a++)
        if (l->min[a] > r->max[a] || r->min[a] > l->max[a]) return 0;
    return 1;
}

static int allowed(lbvh_filter a, lbvh_filter b)
{
    uint64_t const all = ~(uint64_t)0;
    if (a.group && a.group == b.group) return a.group > 0;
    return ((a.category ? a.category : all) & (b.mask ? b.mask : all)) &&
           ((b.category ? b.category : all) & (a.mask ? a.mask : all));
}

static int should_pair(const model *m, int a, int b)
{
    const mob *l = &m->mobs[a], *r = &m->mobs[b];
    return l->id && r->id && (l->state != LBVH_FIXED || r->state != LBVH_FIXED) &&
           allowed(l->filter, r->filter) &&
           touch(&m->world.box[2 * a + 1], &m->world.box[2 * b + 1]) &&
           (!m->desc.allow || allow_some(NULL, a, b));
}

/* ------------------------------------------------------------------------------------------------
   Random calls
   ------------------------------------------------------------------------------------------------
   */

static void call_insert(model *m)
{
    real box[6];
    lbvh_filter filter = random_filter(m);
    lbvh_state const state = (lbvh_state)chance(m, 3);
    int32_t const room = m->world.capacity, token = m->world.token;
    int32_t marks[4 * MOST], index;
    lbvh_result result;
    lbvh_id id;
    random_box(m, box);
    if (m->objects >= MOST / 2) return;
    if (chance(m, 30) == 0) {
        box[chance(m, 2)] = chance(m, 2) ? REAL_NAN : REAL_INFINITY;
        result = lbvh_world_insert(&m->world, box, &filter, state, 1, &id);
        assert_true(result == LBVH_NOT_FINITE && id == 0);
        return;
    }
    assert_true(room <= COUNT_OF(marks));
    if (room > 0) memcpy(marks, m->world.mark, (size_t)room * sizeof *marks);
    result = lbvh_world_insert(&m->world, box, &filter, state, ++m->users << 33, &id);
    if (result == LBVH_OUT_OF_MEMORY) { /* the world is unchanged, though some of it moved */
        assert_true(m->world.capacity == room && m->world.token == token);
        if (room > 0) assert_memory_equal(m->world.mark, marks, (size_t)room * sizeof *marks);
        m->failures += room > 0;
        return;
    }
    assert_int_equal(result, LBVH_OK);
    assert_int_equal(lbvh_world_index(&m->world, id, &index), LBVH_OK);
    assert_true(index < MOST && !m->mobs[index].id && !m->mobs[index].gone);
    m->mobs[index].id = id;
    m->mobs[index].filter = filter;
    m->mobs[index].state = state;
    memcpy(m->mobs[index].box, box, sizeof box);
    m->mobs[index].user = m->users << 33;
    m->objects++;
}

/* Mostly a little; with NaN now and then, which is refused and changes nothing. */
static void call_move(model *m, mob *o)
{
    real box[6], way[3];
    int const dim = m->desc.dim, far = chance(m, 12) == 0, bad = chance(m, 40) == 0;
    int a;
    if (far) random_box(m, box);
    for (a = 0; a < dim && !far; a++) {
        real const by = (unit(m) - (real)0.5) * (real)0.06;
        box[a] = o->box[a] + by;
        box[dim + a] = o->box[dim + a] + by;
        if (chance(m, 200) == 0) box[dim + a] = box[a];
    }
    for (a = 0; a < dim; a++) way[a] = (unit(m) - (real)0.5) * (real)0.1;
    if (bad) box[chance(m, (uint32_t)dim)] = REAL_NAN;
    assert_int_equal(lbvh_world_move(&m->world, o->id, box, chance(m, 2) ? way : NULL),
                     bad ? LBVH_NOT_FINITE : LBVH_OK);
    if (!bad) memcpy(o->box, box, sizeof box);
}

static void call_remove(model *m, mob *o)
{
    lbvh_id const id = o->id;
    real const box[6] = {0, 0, 0, 1, 1, 1};
    int32_t index;
    assert_int_equal(lbvh_world_remove(&m->world, id), LBVH_OK);
    assert_int_equal(lbvh_world_remove(&m->world, id), LBVH_BAD_ID);
    assert_int_equal(lbvh_world_move(&m->world, id, box, NULL), LBVH_BAD_ID);
    assert_int_equal(lbvh_world_set_state(&m->world, id, LBVH_FIXED), LBVH_BAD_ID);
    assert_int_equal(lbvh_world_set_filter(&m->world, id, NULL), LBVH_BAD_ID);
    assert_int_equal(lbvh_world_index(&m->world, id, &index), LBVH_BAD_ID);
    memset(o, 0, sizeof *o);
    o->gone = 1;
    m->objects--;
}

static void random_call(model *m)
{
    uint32_t const what = chance(m, 100);
    mob *o = &m->mobs[chance(m, MOST)];
    if (what < 8) call_insert(m);
    else if (!o->id) return;
    else if (what < 82) call_move(m, o);
    else if (what < 88) call_remove(m, o);
    else if (what < 94) {
        o->state = (lbvh_state)chance(m, 3);
        assert_int_equal(lbvh_world_set_state(&m->world, o->id, o->state), LBVH_OK);
    } else {
        o->filter = random_filter(m);
        assert_int_equal(lbvh_world_set_filter(&m->world, o->id, &o->filter), LBVH_OK);
    }
}

/* ------------------------------------------------------------------------------------------------
   Checks after an update
   ------------------------------------------------------------------------------------------------
   */

static void order(int32_t *a, int32_t *b)
{
    int32_t const t = *a;
    if (*a <= *b) return;
    *a = *b;
    *b = t;
}

/* The events are the difference between the pairs before and now; ended bytes are those written. */
static void check_events(model *m)
{
    const lbvh_world *w = &m->world;
    int32_t k;
    for (k = 0; k < w->ended_count; k++) {
        int32_t a = w->ended[2 * k], b = w->ended[2 * k + 1];
        order(&a, &b);
        assert_true(m->paired[a][b]);
        assert_memory_equal(&m->data[a][b], w->ended_data + BYTES * k, BYTES);
        m->paired[a][b] = 0;
        m->data[a][b] = 0;
    }
    for (k = 0; k < w->begun_count; k++) {
        int32_t a = w->begun[2 * k], b = w->begun[2 * k + 1];
        order(&a, &b);
        assert_false(m->paired[a][b]);
        m->paired[a][b] = 1;
        assert_true(m->data[a][b] == 0);
    }
}

/* The pairs are those of the model; their bytes are what the test wrote; new ones are written now.
   */
static void check_pairs(model *m)
{
    const lbvh_world *w = &m->world;
    int32_t a, b, p, pairs = 0;
    for (a = 0; a < MOST; a++)
        for (b = a + 1; b < MOST; b++) {
            pairs += m->paired[a][b];
            if (!m->incomplete) assert_int_equal(m->paired[a][b], should_pair(m, a, b));
            else if (m->paired[a][b]) assert_true(should_pair(m, a, b));
        }
    assert_int_equal(w->pairs, pairs);
    for (p = 0; p < w->pairs; p++) {
        a = w->pair[p].object[0];
        b = w->pair[p].object[1];
        assert_int_equal(lbvh_world_find_pair(w, a, b), p);
        assert_int_equal(lbvh_world_find_pair(w, b, a), p);
        order(&a, &b);
        assert_true(m->paired[a][b]);
        assert_memory_equal(&m->data[a][b], w->pair_data + BYTES * p, BYTES);
        m->data[a][b] = ((uint64_t)m->dice << 32) + (uint64_t)p + 1;
        memcpy(w->pair_data + BYTES * p, &m->data[a][b], BYTES);
    }
}

/* The walk gives each pair with an object that moves once; tight boxes only where asked. */
static void check_walk(model *m, lbvh_fit fit)
{
    lbvh_pair_walk walk = lbvh_world_pairs(&m->world, fit);
    int a, b, expected = 0, met = 0;
    for (a = 0; a < MOST; a++)
        for (b = a + 1; b < MOST; b++)
            if (m->paired[a][b] &&
                (m->mobs[a].state == LBVH_MOVING || m->mobs[b].state == LBVH_MOVING))
                expected += fit == LBVH_FAT || touch(&m->world.box[2 * a], &m->world.box[2 * b]);
    for (; lbvh_next_pair(&walk); met++) {
        int32_t i = walk.a, j = walk.b;
        assert_true(walk.user_a == m->mobs[i].user && walk.user_b == m->mobs[j].user);
        order(&i, &j);
        assert_memory_equal(walk.data, &m->data[i][j], BYTES);
    }
    assert_int_equal(met, expected);
}

static void check_boxes(const model *m)
{
    int const dim = m->desc.dim;
    int i, a;
    for (i = 0; i < MOST; i++)
        for (a = 0; a < dim && m->mobs[i].id; a++) {
            const lbvh_node *tight = &m->world.box[2 * i], *fat = tight + 1;
            assert_true(tight->min[a] == m->mobs[i].box[a] &&
                        tight->max[a] == m->mobs[i].box[dim + a]);
            assert_true(fat->min[a] <= tight->min[a] && fat->max[a] >= tight->max[a]);
        }
}

static void check_overlap(model *m)
{
    real box[6];
    lbvh_world_overlap o;
    lbvh_node node;
    unsigned char found[MOST];
    int const filtered = chance(m, 2) == 0;
    int i, a;
    lbvh_filter const wanted = random_filter(m);
    random_box(m, box);
    memset(&node, 0, sizeof node);
    memset(found, 0, sizeof found);
    o = lbvh_world_overlap_box(&m->world, box);
    if (filtered) o.filter = wanted; /* 0: all bits */
    if (chance(m, 2)) o.fit = LBVH_FAT;
    for (a = 0; a < m->desc.dim; a++) {
        node.min[a] = box[a];
        node.max[a] = box[m->desc.dim + a];
    }
    while (lbvh_next_object(&o)) {
        assert_int_equal(found[o.index]++, 0);
        assert_true(o.user == m->mobs[o.index].user);
    }
    for (i = 0; i < MOST; i++)
        assert_int_equal(found[i], m->mobs[i].id &&
                                       touch(&node, &m->world.box[2 * i + (o.fit == LBVH_FAT)]) &&
                                       allowed(m->mobs[i].filter, o.filter));
}

#include "world_casts.c"
#include "world_costs.c"

static real distance2(const model *m, const real *p, int i)
{
    real sum = 0;
    int a;
    for (a = 0; a < m->desc.dim; a++) {
        const lbvh_node *node = &m->world.box[2 * i];
        real const away = p[a] < node->min[a]   ? node->min[a] - p[a]
                          : p[a] > node->max[a] ? p[a] - node->max[a]
                                                : 0;
        sum += away * away;
    }
    return sum;
}

/* The three nearest: none that was not found is nearer. */
static void check_near(model *m)
{
    real p[3], d2[3], worst;
    int32_t ids[3], found = 0;
    lbvh_world_near near;
    int i, k;
    for (i = 0; i < 3; i++) p[i] = unit(m);
    near = lbvh_world_near_point(&m->world, p, (real)0.3);
    while (lbvh_next_near_object(&near))
        near.reach2 =
            lbvh_keep_nearest(ids, d2, 3, &found, near.reach2, near.index, near.distance2);
    worst = found == 3 ? d2[2] : (real)0.09;
    for (i = 0; i < MOST; i++) {
        int in = 0;
        for (k = 0; k < found; k++) in += ids[k] == i;
        if (!m->mobs[i].id) assert_int_equal(in, 0);
        else if (in) assert_true(distance2(m, p, i) <= worst * (real)1.00001);
        else assert_true(distance2(m, p, i) >= worst * (real)0.99999);
    }
}

static void update_and_check(model *m)
{
    lbvh_result result;
    int i;
    result = lbvh_world_update(&m->world);
    if (result != LBVH_OUT_OF_MEMORY) assert_int_equal(result, LBVH_OK);
    m->incomplete = result != LBVH_OK;
    for (i = 0; i < MOST; i++) m->mobs[i].gone = 0;
    assert_int_equal(m->world.objects, m->objects);
    if (!m->incomplete) assert_int_equal(lbvh_world_validate(&m->world), LBVH_OK);
    check_events(m);
    check_pairs(m);
    check_boxes(m);
    check_walk(m, LBVH_TIGHT);
    check_walk(m, LBVH_FAT);
    check_overlap(m);
    for (i = 0; i < 4; i++) check_cast(m);
    check_near(m);
}

/* ------------------------------------------------------------------------------------------------
   The tests
   ------------------------------------------------------------------------------------------------
   */

static model *new_model(int dim, uint32_t seed)
{
    model *m = ZEROS(model, 1);
    m->dice = seed;
    m->desc.dim = dim;
    m->desc.margin = chance(m, 3) ? (real)0.02 : 0;
    m->desc.margin_part = chance(m, 2) ? (real)0.1 : 0;
    m->desc.pair_bytes = BYTES;
    if (seed % 2) m->desc.allow = allow_some;
    m->desc.allocator.alloc = heap_alloc;
    m->desc.allocator.free = heap_free;
    m->desc.allocator.user = &m->memory;
    assert_int_equal(lbvh_world_begin(&m->world, &m->desc), LBVH_OK);
    return m;
}

static void end_model(model *m)
{
    lbvh_world_free(&m->world);
    assert_true(m->memory.live_blocks == 0 && m->memory.live_bytes == 0 && !m->memory.wrong);
    free(m);
}

/* Every way an update can go must have been gone. */
static void random_life(int dim, uint32_t seed, int updates, int reasons[4])
{
    model *m = new_model(dim, seed);
    int u, k;
    for (u = 0; u < updates; u++) {
        int const calls = chance(m, 10) == 0 ? 0 : (int)chance(m, chance(m, 4) ? 12 : 300);
        for (k = 0; k < calls; k++) random_call(m);
        update_and_check(m);
        reasons[m->world.reason]++;
    }
    end_model(m);
}

static void test_random_lives(void **state)
{
    int const updates = environment("TEST_SMALL", 0) ? 150 : 2000;
    int reasons[4] = {0, 0, 0, 0}, dim, k;
    uint32_t seed;
    (void)state;
    for (dim = 2; dim <= 3; dim++)
        for (seed = 1; seed <= 6; seed++) random_life(dim, seed, updates, reasons);
    for (k = 0; k < 4; k++) assert_true(reasons[k] > 0);
}

/* Each allocation fails once: the call returns its code, the world stays usable, and what is
   missing comes later. */
static void test_failing_allocations(void **state)
{
    int64_t fail;
    int u, k, failed = 1, failures = 0;
    (void)state;
    for (fail = 1; failed; fail++) {
        model *m = new_model(2, 4);
        m->memory.fail_at = fail;
        for (u = 0; u < 12; u++) {
            for (k = 0; k < 100; k++) random_call(m);
            update_and_check(m);
        }
        failed = m->memory.calls >= fail;
        failures += m->failures;
        m->memory.fail_at = 0;
        update_and_check(m);
        assert_false(m->incomplete);
        end_model(m);
    }
    assert_true(fail > 20 && failures > 20);
}

/* The same calls give the same pairs in the same order. */
static void test_deterministic(void **state)
{
    model *l = new_model(3, 9), *r = new_model(3, 9);
    int u, k;
    (void)state;
    for (u = 0; u < 60; u++) {
        for (k = 0; k < 60; k++) random_call(l);
        for (k = 0; k < 60; k++) random_call(r);
        update_and_check(l);
        update_and_check(r);
        assert_int_equal(l->world.pairs, r->world.pairs);
        if (l->world.pairs)
            assert_memory_equal(l->world.pair, r->world.pair,
                                sizeof(lbvh_pair) * (size_t)l->world.pairs);
    }
    end_model(l);
    end_model(r);
}

/* A step in which nothing leaves its stored box changes and searches nothing; objects at rest
   neither. */
static void test_cheap_steps(void **state)
{
    lbvh_world world = {0};
    lbvh_world_desc desc = {0};
    lbvh_id id[100];
    real box[4];
    int i, step;
    (void)state;
    desc.dim = 2;
    desc.margin = 1;
    assert_int_equal(lbvh_world_begin(&world, &desc), LBVH_OK);
    for (i = 0; i < 100; i++) {
        box[0] = (real)(i % 10) * 4;
        box[1] = (real)(i / 10) * 4;
        box[2] = box[0] + 3;
        box[3] = box[1] + 3;
        assert_int_equal(
            lbvh_world_insert(&world, box, NULL, i % 2 ? LBVH_FIXED : LBVH_MOVING, 0, &id[i]),
            LBVH_OK);
    }
    assert_int_equal(lbvh_world_update(&world), LBVH_OK);
    assert_int_equal(world.reason, LBVH_REBUILT);
    assert_int_equal(world.searched, 100);
    for (step = 0; step < 9; step++) {
        for (i = 0; i < 100; i += 2) {
            box[0] = (real)(i % 10) * 4 + (real)step / 10;
            box[1] = (real)(i / 10) * 4;
            box[2] = box[0] + 3;
            box[3] = box[1] + 3;
            assert_int_equal(lbvh_world_move(&world, id[i], box, NULL), LBVH_OK);
        }
        assert_int_equal(lbvh_world_update(&world), LBVH_OK);
        assert_int_equal(world.reason, LBVH_NOTHING);
        assert_int_equal(world.searched + world.begun_count + world.ended_count, 0);
    }
    box[0] += 2;
    box[2] += 2;
    assert_int_equal(lbvh_world_move(&world, id[98], box, NULL), LBVH_OK);
    assert_int_equal(lbvh_world_update(&world), LBVH_OK);
    assert_int_equal(world.reason, LBVH_REFIT);
    assert_int_equal(world.searched, 1);
    lbvh_world_free(&world);
}

/* Boxes far apart on a line, each further by a factor: no insertion makes the trees deeper than a
   walk's stack. */
static void test_deep(void **state)
{
    lbvh_world world = {0};
    lbvh_world_desc desc = {0};
    real box[4];
    lbvh_id id;
    int i;
    (void)state;
    desc.dim = 2;
    assert_int_equal(lbvh_world_begin(&world, &desc), LBVH_OK);
    for (i = 0; i < 500; i++) {
        box[0] = box[2] = (real)pow(1.1, i);
        box[1] = box[3] = 0;
        assert_int_equal(lbvh_world_insert(&world, box, NULL, LBVH_MOVING, 0, &id), LBVH_OK);
        assert_int_equal(lbvh_world_update(&world), LBVH_OK);
        assert_int_equal(lbvh_world_validate(&world), LBVH_OK);
    }
    lbvh_world_free(&world);
}

static void test_refusals(void **state)
{
    lbvh_world world = {0};
    lbvh_world_desc desc = {0};
    real const box[6] = {0, 0, 0, 1, 1, 1}, inverted[6] = {0, 0, 0, 1, -1, 1},
               huge[6] = {0, 0, 0, REAL_INFINITY, 1, 1};
    lbvh_id id = 5;
    (void)state;
    assert_int_equal(lbvh_world_insert(&world, box, NULL, LBVH_MOVING, 0, &id), LBVH_NOT_BUILT);
    assert_int_equal(lbvh_world_update(&world), LBVH_NOT_BUILT);
    assert_int_equal(lbvh_world_validate(&world), LBVH_NOT_BUILT);
    desc.dim = 4;
    assert_int_equal(lbvh_world_begin(&world, &desc), LBVH_BAD_DIM);
    desc.dim = 0;
    desc.margin = REAL_NAN;
    assert_int_equal(lbvh_world_begin(&world, &desc), LBVH_BAD_RADIUS);
    desc.margin = 0;
    desc.margin_part = -1;
    assert_int_equal(lbvh_world_begin(&world, &desc), LBVH_BAD_RADIUS);
    desc.margin_part = 1;
    desc.pair_bytes = -1;
    assert_int_equal(lbvh_world_begin(&world, &desc), LBVH_BAD_ARGUMENT);
    desc.pair_bytes = 0;
    desc.allocator.alloc = heap_alloc;
    assert_int_equal(lbvh_world_begin(&world, &desc), LBVH_BAD_ALLOCATOR);
    desc.allocator.alloc = NULL;
    assert_int_equal(lbvh_world_begin(&world, &desc), LBVH_OK);
    assert_int_equal(lbvh_world_insert(&world, inverted, NULL, LBVH_MOVING, 0, &id), LBVH_INVERTED);
    assert_int_equal(lbvh_world_insert(&world, huge, NULL, LBVH_MOVING, 0, &id), LBVH_NOT_FINITE);
    assert_int_equal(lbvh_world_insert(&world, box, NULL, (lbvh_state)3, 0, &id), LBVH_BAD_OPTION);
    assert_int_equal(lbvh_world_insert(&world, NULL, NULL, LBVH_MOVING, 0, &id), LBVH_BAD_ARGUMENT);
    assert_int_equal(lbvh_world_insert(&world, box, NULL, LBVH_MOVING, 0, &id), LBVH_OK);
    assert_int_equal(lbvh_world_set_state(&world, id, (lbvh_state)-1), LBVH_BAD_OPTION);
    assert_int_equal(lbvh_world_move(&world, id + 1, box, NULL), LBVH_BAD_ID);
    assert_int_equal(lbvh_world_move(&world, 0, box, NULL), LBVH_BAD_ID);
    assert_true(lbvh_world_id(&world, 0) == id && lbvh_world_id(&world, 1) == 0);
    lbvh_world_free(&world);
}

/* lbvh_world_stay beside lbvh_world_move in a world like it: it takes a box exactly where the
   stored one holds it, and leaves user data and all boxes as the other call does. */
static void test_stay(void **state)
{
    lbvh_id const user = 0x123456789ABCDEF0u;
    wl_random random = wl_seed(17);
    int dim, k, a, stayed = 0, left = 0;
    (void)state;
    for (dim = 2; dim <= 3; dim++) {
        lbvh_world one, other;
        lbvh_world_desc desc;
        real box[6] = {0, 0, 0, 1, 1, 1};
        lbvh_id id, same;
        memset(&one, 0, sizeof one);
        memset(&other, 0, sizeof other);
        memset(&desc, 0, sizeof desc);
        desc.dim = dim;
        desc.margin = (real)0.5;
        if (dim == 2) box[2] = box[3] = 1;
        assert_int_equal(lbvh_world_begin(&one, &desc), LBVH_OK);
        assert_int_equal(lbvh_world_begin(&other, &desc), LBVH_OK);
        assert_int_equal(lbvh_world_insert(&one, box, NULL, LBVH_MOVING, user, &id), LBVH_OK);
        assert_int_equal(lbvh_world_insert(&other, box, NULL, LBVH_MOVING, user, &same), LBVH_OK);
        for (k = 0; k < 400; k++) {
            const lbvh_node *const node = one.box, *const twin = other.box;
            int within = 1;
            for (a = 0; a < dim; a++) {
                box[a] = (real)(wl_u(&random) - 0.5);
                if (k % 16 == 3) box[a] = -(real)0.0;
                box[dim + a] = box[a] + (real)wl_u(&random);
                if (k % 16 == 4 && a == k / 16 % dim) box[dim + a] = (real)NAN;
                if (k % 16 == 5 && a == k / 16 % dim) box[dim + a] = box[a] - 1;
                if (k % 16 == 6 && a == k / 16 % dim) box[a] = (real)-HUGE_VAL;
                within = within && node[1].min[a] <= box[a] && box[a] <= box[dim + a] &&
                         box[dim + a] <= node[1].max[a];
            }
            assert_int_equal(lbvh_world_stay(&one, id, box), within);
            assert_true(lbvh_world_user(&one, 0) == user);
            stayed += within;
            left += !within;
            if (!within && lbvh_world_move(&one, id, box, NULL) != LBVH_OK) continue;
            assert_int_equal(lbvh_world_move(&other, same, box, NULL), LBVH_OK);
            assert_memory_equal(node, twin, 2 * sizeof *node);
        }
        assert_int_equal(lbvh_world_stay(&one, id + 1, box), 0);
        lbvh_world_free(&one);
        lbvh_world_free(&other);
    }
    assert_true(stayed > 100 && left > 100);
}

static void test_doubles(void **state)
{
    double const box[6] = {0.1, -0.1, 1e-30, 0.1, -0.1, 1e-30},
                 tiny[4] = {-1e-300, 1e-300, -1e-300, 1e-300}, far[4] = {-1e300, 0, 0, 1},
                 over[4] = {0, 0, 1e300, 1};
    volatile float const denormal = 1e-40f;
    real out[6];
    int a;
    (void)state;
    assert_int_equal(lbvh_box_of_doubles(3, box, out), LBVH_OK);
    for (a = 0; a < 3; a++) {
        assert_true((double)out[a] <= box[a] && (double)out[3 + a] >= box[3 + a]);
        if (IS_FLOAT && a < 2) assert_true(nextafterf((float)out[a], 9) == (float)out[3 + a]);
    }
    for (a = 2; a <= 3; a++) { /* infinity is no bound of floats, on either side */
        double none[6] = {0}, lower[6] = {0};
        none[0] = none[a] = -HUGE_VAL;
        lower[0] = HUGE_VAL;
        assert_int_equal(lbvh_box_of_doubles(a, none, out), LBVH_NOT_FINITE);
        assert_int_equal(lbvh_box_of_doubles(a, lower, out), LBVH_NOT_FINITE);
    }
    if (!IS_FLOAT) return;
    assert_int_equal(lbvh_box_of_doubles(2, tiny, out), LBVH_OK);
    if (denormal > 0) /* else they count as zero here */
        assert_true(out[0] < 0 && out[1] == 0 && out[2] == 0 && out[3] > 0);
    assert_int_equal(lbvh_box_of_doubles(2, far, out), LBVH_NOT_FINITE);
    assert_int_equal(lbvh_box_of_doubles(2, over, out), LBVH_NOT_FINITE);
    assert_int_equal(lbvh_box_of_doubles(4, box, out), LBVH_BAD_ARGUMENT);
}

/* Searches that go through a tree together meet more than there is room for: each one alone then
   meets the same. */
static void test_crowd(void **state)
{
    enum { N = 300, MOVED = 20 };
    float const here[4] = {0, 0, 1, 1}, there[4] = {9, 9, 10, 10};
    lbvh_real box[4];
    lbvh_world world = {0};
    lbvh_world_desc desc = {0};
    lbvh_id id[N];
    int i, a, turn;
    (void)state;
    desc.dim = 2;
    assert_int_equal(lbvh_world_begin(&world, &desc), LBVH_OK);
    for (a = 0; a < 4; a++) box[a] = (lbvh_real)here[a];
    for (i = 0; i < N; i++)
        assert_int_equal(lbvh_world_insert(&world, box, NULL, LBVH_MOVING, 0, &id[i]), LBVH_OK);
    assert_int_equal(lbvh_world_update(&world), LBVH_OK);
    assert_int_equal(world.pairs, N * (N - 1) / 2);
    for (turn = 0; turn < 2; turn++) {
        for (a = 0; a < 4; a++) box[a] = (lbvh_real)(turn ? here[a] : there[a]);
        for (i = 0; i < MOVED; i++)
            assert_int_equal(lbvh_world_move(&world, id[i], box, NULL), LBVH_OK);
        assert_int_equal(lbvh_world_update(&world), LBVH_OK);
        assert_int_equal(world.searched, MOVED);
        assert_int_equal(turn ? world.begun_count : world.ended_count, MOVED * (N - MOVED));
        assert_int_equal(world.pairs, N * (N - 1) / 2 - (turn ? 0 : MOVED * (N - MOVED)));
        assert_int_equal(lbvh_world_validate(&world), LBVH_OK);
    }
    lbvh_world_free(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_lives),  cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_deterministic), cmocka_unit_test(test_cheap_steps),
        cmocka_unit_test(test_deep),          cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_doubles),       cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_stay),          cmocka_unit_test(test_round_casts),
        cmocka_unit_test(test_casts_by_hand), cmocka_unit_test(test_bad_casts),
        cmocka_unit_test(test_casts_that_tie), cmocka_unit_test(test_orders),
        cmocka_unit_test(test_powers),        cmocka_unit_test(test_many_deep_ways),
        cmocka_unit_test(test_few_move),
        cmocka_unit_test(test_far_objects),   cmocka_unit_test(test_rest),
        cmocka_unit_test(test_one_moves),
        cmocka_unit_test(test_boxes_shrink),  cmocka_unit_test(test_boxes_last),
        cmocka_unit_test(test_largest_boxes), cmocka_unit_test(test_between_updates),
        cmocka_unit_test(test_box_casts_by_hand), cmocka_unit_test(test_bits_of_zero)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
