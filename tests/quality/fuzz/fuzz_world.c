/* fuzz_world.c - lbvh_world: objects that come, move, sleep and go, beside a model: plain arrays,
   and all pairs.
   SPDX-License-Identifier: MIT OR Unlicense
   See README.md here.

   The model keeps what it gave for each index. After every update it compares the pairs, the events
   and the bytes kept with each pair; after every search what was found. */

#include "fuzz.h"
#define LBVH_WITH_WORLD
#define LBVH_IMPLEMENTATION
#include "lbvh.h"

enum { HEAP_MOST = 1 << 24, MOST = 96, OPERATIONS = 48, BYTES = 4 };

typedef struct thing {
    lbvh_id id; /* 0: none */
    uint64_t user;
    real box[6];
    lbvh_filter filter;
    lbvh_state state;
} thing;

typedef struct model {
    lbvh_world world;
    lbvh_world_desc desc;
    fz_heap heap;
    thing things[MOST];
    uint32_t kept[MOST][MOST]; /* [lower][higher]: 0 no pair, else what the pair's bytes hold */
    uint32_t next_user, next_bytes;
    lbvh_id stale;
    int missing; /* the last update found no memory: pairs may be missing */
} model;

static lbvh_filter any_filter(fz *f)
{
    lbvh_filter filter;
    int const c = fz_u8(f);
    memset(&filter, 0, sizeof filter);
    if (c & 1) filter.category = (uint64_t)1 << (c >> 5) * 9;
    if (c & 2) filter.mask = (uint64_t)fz_u8(f) << 8 | 1;
    if (c & 4) filter.group = (c >> 3) % 5 - 2;
    return filter;
}

static lbvh_filter with_defaults(lbvh_filter filter)
{
    if (filter.category == 0) filter.category = ~(uint64_t)0;
    if (filter.mask == 0) filter.mask = ~(uint64_t)0;
    return filter;
}

static int pass(lbvh_filter a, lbvh_filter b)
{
    a = with_defaults(a);
    b = with_defaults(b);
    if (a.group && a.group == b.group) return a.group > 0;
    return (a.category & b.mask) && (b.category & a.mask);
}

/* A box, with how it must be refused. */
static fz_codes any_box(fz *f, int dim, real *box)
{
    fz_codes codes = {0, 0};
    int a, odd = fz_u8(f) > 250, not_finite = 0, inverted = 0;
    for (a = 0; a < dim; a++) {
        real const edge = (real)(fz_u8(f) / 32.0);
        box[a] = odd ? fz_real(f) : (real)((fz_u8(f) - 100) / 8.0);
        box[dim + a] = odd ? fz_real(f) : box[a] + edge;
        not_finite |= !fz_finite(box[a]) || !fz_finite(box[dim + a]);
        inverted |= box[a] > box[dim + a];
    }
    fz_must(&codes, not_finite, LBVH_NOT_FINITE);
    fz_must(&codes, inverted && !not_finite, LBVH_INVERTED);
    return codes;
}

static int touch(int dim, const real *l, const real *r)
{
    int a;
    for (a = 0; a < dim; a++)
        if (l[a] > r[dim + a] || r[a] > l[dim + a]) return 0;
    return 1;
}

/* The stored box, read from the world: where it lies is the header's choice. */
static void stored(const model *m, int i, real *box)
{
    int a;
    for (a = 0; a < m->desc.dim; a++) {
        box[a] = m->world.box[2 * i + 1].min[a];
        box[m->desc.dim + a] = m->world.box[2 * i + 1].max[a];
    }
}

/* ---- calls ---- */

static void op_insert(fz *f, model *m)
{
    real *box = FZ_NEW(real, 2 * m->desc.dim);
    fz_codes codes = any_box(f, m->desc.dim, box);
    lbvh_filter const filter = any_filter(f);
    int const state = fz_choice(f, 3);
    uint64_t const user = (uint64_t)++m->next_user << 31;
    lbvh_id id = 77;
    int32_t index = -1;
    if (m->world.objects < MOST / 2) {
        lbvh_result r;
        if (state < 0 || state > 2) codes.must = 0;
        fz_must(&codes, state < 0 || state > 2, LBVH_BAD_OPTION);
        fz_plan_failure(f, &m->heap);
        r = lbvh_world_insert(&m->world, box, &filter, (lbvh_state)state, user, &id);
        fz_may(&codes, m->heap.failed, LBVH_OUT_OF_MEMORY);
        FZ_TRACE("insert: %s", lbvh_result_text(r));
        FZ_CHECK_CODE(fz_right(&codes, (int)r), lbvh_result_text(r));
        FZ_CHECK((r == LBVH_OK) == (id != 0));
        m->heap.fail_at = 0;
        if (r == LBVH_OK) {
            FZ_CHECK(lbvh_world_index(&m->world, id, &index) == LBVH_OK && index < MOST);
            FZ_CHECK(m->things[index].id == 0 && lbvh_world_id(&m->world, index) == id);
            m->things[index].id = id;
            m->things[index].user = user;
            m->things[index].filter = filter;
            m->things[index].state = (lbvh_state)state;
            memcpy(m->things[index].box, box, 2 * (size_t)m->desc.dim * sizeof *box);
        }
    }
    free(box);
}

static void op_move(fz *f, model *m, thing *t)
{
    real *box = FZ_NEW(real, 2 * m->desc.dim), *way = FZ_NEW(real, m->desc.dim);
    fz_codes codes = any_box(f, m->desc.dim, box);
    int const how = fz_u8(f);
    lbvh_result r;
    int a;
    for (a = 0; a < m->desc.dim; a++) way[a] = (real)((fz_u8(f) - 128) / 16.0);
    if (how % 4 == 1) way[0] = fz_special(f);
    /* a displacement is added to a coordinate: what overflows is refused */
    fz_may(&codes, how % 2 && !(fabs((double)way[0]) < 1e30), LBVH_NOT_FINITE);
    if (how >= 128) { /* a little, from where it was */
        for (a = 0; a < 2 * m->desc.dim; a++)
            box[a] = t->box[a] + (real)((how % 16 - 8) / 32.0);
        codes.must = 0;
        fz_may(&codes, 1, LBVH_NOT_FINITE);
        for (a = 0; a < m->desc.dim; a++)
            fz_may(&codes, box[a] > box[m->desc.dim + a], LBVH_INVERTED);
    }
    if (how % 8 == 6 && codes.must == 0) {
        if (lbvh_world_stay(&m->world, t->id, box))
            memcpy(t->box, box, 2 * (size_t)m->desc.dim * sizeof *box);
    } else {
        r = lbvh_world_move(&m->world, t->id, box, how % 2 ? way : NULL);
        FZ_TRACE("move: %s", lbvh_result_text(r));
        FZ_CHECK_CODE(fz_right(&codes, (int)r), lbvh_result_text(r));
        if (r == LBVH_OK) memcpy(t->box, box, 2 * (size_t)m->desc.dim * sizeof *box);
    }
    free(box);
    free(way);
}

static void op_remove(model *m, thing *t)
{
    m->stale = t->id;
    FZ_CHECK(lbvh_world_remove(&m->world, t->id) == LBVH_OK);
    memset(t, 0, sizeof *t);
}

static void op_stale(model *m)
{
    real const box[6] = {0, 0, 0, 1, 1, 1};
    int32_t index = 5;
    FZ_CHECK(lbvh_world_remove(&m->world, m->stale) == LBVH_BAD_ID);
    FZ_CHECK(lbvh_world_move(&m->world, m->stale, box, NULL) == LBVH_BAD_ID);
    FZ_CHECK(lbvh_world_stay(&m->world, m->stale, box) == 0);
    FZ_CHECK(lbvh_world_set_state(&m->world, m->stale, LBVH_FIXED) == LBVH_BAD_ID);
    FZ_CHECK(lbvh_world_set_filter(&m->world, m->stale, NULL) == LBVH_BAD_ID);
    FZ_CHECK(lbvh_world_index(&m->world, m->stale, &index) == LBVH_BAD_ID && index == -1);
}

/* ---- what must hold ---- */

static void check_events(model *m)
{
    const lbvh_world *w = &m->world;
    int32_t k;
    for (k = 0; k < w->ended_count; k++) {
        int32_t const x = w->ended[2 * k], y = w->ended[2 * k + 1], a = x < y ? x : y,
                      b = x + y - a;
        uint32_t bytes;
        memcpy(&bytes, w->ended_data + BYTES * k, BYTES);
        FZ_CHECK(m->kept[a][b] != 0 && m->kept[a][b] == bytes);
        m->kept[a][b] = 0;
    }
    for (k = 0; k < w->begun_count; k++) {
        int32_t const x = w->begun[2 * k], y = w->begun[2 * k + 1], a = x < y ? x : y;
        int32_t const b = x + y - a, p = lbvh_world_find_pair(w, x, y);
        uint32_t bytes = 1;
        FZ_CHECK(p >= 0 && m->kept[a][b] == 0);
        memcpy(&bytes, w->pair_data + BYTES * p, BYTES);
        FZ_CHECK(bytes == 0);
        m->kept[a][b] = ++m->next_bytes;
        memcpy(w->pair_data + BYTES * p, &m->kept[a][b], BYTES);
    }
}

static void check_pairs(const model *m)
{
    const lbvh_world *w = &m->world;
    int a, b, dim = m->desc.dim, expected = 0;
    for (a = 0; a < MOST; a++)
        for (b = a + 1; b < MOST; b++) {
            const thing *l = &m->things[a], *r = &m->things[b];
            real own[6], other[6];
            int should = l->id && r->id && (l->state != LBVH_FIXED || r->state != LBVH_FIXED) &&
                         pass(l->filter, r->filter);
            if (should) {
                stored(m, a, own);
                stored(m, b, other);
                should = touch(dim, own, other);
            }
            FZ_CHECK(m->missing ? should || !m->kept[a][b] : should == (m->kept[a][b] != 0));
            expected += m->kept[a][b] != 0;
        }
    FZ_CHECK(w->pairs == expected);
    for (a = 0; a < w->pairs; a++) {
        int32_t const x = w->pair[a].object[0], y = w->pair[a].object[1], low = x < y ? x : y;
        uint32_t bytes;
        memcpy(&bytes, w->pair_data + BYTES * a, BYTES);
        FZ_CHECK(bytes == m->kept[low][x + y - low]);
    }
}

static void check_boxes(const model *m)
{
    int i, a, dim = m->desc.dim;
    for (i = 0; i < MOST; i++) {
        real fat[6];
        if (!m->things[i].id) continue;
        stored(m, i, fat);
        FZ_CHECK(lbvh_world_user(&m->world, i) == m->things[i].user);
        for (a = 0; a < dim; a++) {
            FZ_CHECK(fat[a] <= m->things[i].box[a] && fat[dim + a] >= m->things[i].box[dim + a]);
            FZ_CHECK(m->world.box[2 * i].min[a] == m->things[i].box[a]);
            FZ_CHECK(m->world.box[2 * i].max[a] == m->things[i].box[dim + a]);
        }
    }
}

static void op_update(fz *f, model *m)
{
    lbvh_result r;
    fz_plan_failure(f, &m->heap);
    r = lbvh_world_update(&m->world);
    FZ_TRACE("update: %s, reason %d", lbvh_result_text(r), (int)m->world.reason);
    FZ_CHECK(r == LBVH_OK || (r == LBVH_OUT_OF_MEMORY && m->heap.failed));
    m->missing = r != LBVH_OK;
    m->heap.fail_at = 0;
    FZ_CHECK(lbvh_world_validate(&m->world) == LBVH_OK);
    check_events(m);
    check_pairs(m);
    check_boxes(m);
}

/* What is known to searches: objects of the last update that were not removed since. */
static void op_search(fz *f, model *m)
{
    int const dim = m->desc.dim, how = fz_u8(f);
    real box[6];
    unsigned char found[MOST] = {0};
    lbvh_world_overlap o;
    int i;
    op_update(f, m);
    (void)any_box(f, dim, box);
    o = lbvh_world_overlap_box(&m->world, box);
    o.fit = how & 1 ? LBVH_FAT : LBVH_TIGHT;
    if (how & 2) o.filter = any_filter(f);
    while (lbvh_next_object(&o)) {
        FZ_CHECK(o.index >= 0 && o.index < MOST && !found[o.index]);
        FZ_CHECK(o.user == m->things[o.index].user);
        found[o.index] = 1;
    }
    for (i = 0; i < MOST; i++) {
        const thing *t = &m->things[i];
        real fat[6];
        int a, hit = t->id != 0;
        if (hit) stored(m, i, fat);
        for (a = 0; a < dim; a++) hit = hit && box[a] <= box[dim + a];
        hit = hit && pass(t->filter, o.filter) && touch(dim, box, o.fit == LBVH_FAT ? fat : t->box);
        FZ_CHECK(hit == found[i]);
    }
}

/* A cast and a nearest walk may report each object once, and only what lives. */
static void op_walks(fz *f, model *m)
{
    real p[3], way[3], length;
    unsigned char found[MOST] = {0};
    lbvh_world_cast cast;
    lbvh_world_near search;
    int a;
    for (a = 0; a < 3; a++) p[a] = fz_real(f);
    for (a = 0; a < 3; a++) way[a] = fz_real(f);
    length = fz_length(f);
    cast = length > 1 ? lbvh_world_cast_sphere(&m->world, p, length, way)
                      : lbvh_world_cast_capsule(&m->world, p, way, length, way);
    while (lbvh_next_cast(&cast)) {
        FZ_CHECK(cast.index < MOST && m->things[cast.index].id && !found[cast.index]);
        FZ_CHECK(cast.t >= 0 && cast.t <= 1);
        found[cast.index] = 1;
    }
    search = lbvh_world_near_point(&m->world, p, fz_length(f));
    while (lbvh_next_near_object(&search)) {
        FZ_CHECK(search.index < MOST && m->things[search.index].id && !(found[search.index] & 2));
        FZ_CHECK(search.distance2 <= search.reach2);
        found[search.index] |= 2;
    }
}

static int any_world(fz *f, model *m)
{
    memset(m, 0, sizeof *m);
    m->heap = fz_heap_of(HEAP_MOST);
    m->desc.dim = fz_below(f, 2) + 2;
    m->desc.margin = (real)(fz_u8(f) / 128.0);
    m->desc.margin_part = (real)(fz_u8(f) / 512.0);
    m->desc.pair_bytes = BYTES;
    m->desc.allocator.alloc = fz_alloc;
    m->desc.allocator.free = fz_free;
    m->desc.allocator.user = &m->heap;
    return lbvh_world_begin(&m->world, &m->desc) == LBVH_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static model m;
    fz f = fz_of(data, size);
    int k;
    FZ_CHECK(any_world(&f, &m));
    for (k = 0; k < 4 * OPERATIONS && (k < 4 || fz_left(&f) > 0); k++) {
        int const what = fz_u8(&f) % 16;
        thing *t = &m.things[fz_below(&f, MOST)];
        if (what < 5) op_insert(&f, &m);
        else if (what == 5) op_update(&f, &m);
        else if (what == 6) op_search(&f, &m);
        else if (what == 7) op_walks(&f, &m);
        else if (what == 8) op_stale(&m);
        else if (!t->id) continue;
        else if (what < 13) op_move(&f, &m, t);
        else if (what == 13) op_remove(&m, t);
        else if (what == 14) {
            t->state = (lbvh_state)fz_below(&f, 3);
            FZ_CHECK(lbvh_world_set_state(&m.world, t->id, t->state) == LBVH_OK);
        } else {
            t->filter = any_filter(&f);
            FZ_CHECK(lbvh_world_set_filter(&m.world, t->id, &t->filter) == LBVH_OK);
        }
    }
    op_update(&f, &m);
    op_update(&f, &m);
    lbvh_world_free(&m.world);
    FZ_CHECK(m.heap.live == 0 && m.heap.blocks == 0);
    return 0;
}
