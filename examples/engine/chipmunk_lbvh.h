/* chipmunk_lbvh.h - lbvh.h as the spatial index of Chipmunk2D 7: both indices of a space share one
   lbvh_world. SPDX-License-Identifier: MIT OR Unlicense

       space->dynamicShapes = chipmunk_lbvh(&space->staticShapes);   before the first shape is added

   Chipmunk counts in doubles: boxes are rounded outward to floats. Its index of static shapes holds
   sleeping ones too. The bytes of a pair hold its cpCollisionID: where the narrow phase begins its
   search for the closest features. */

#ifndef CHIPMUNK_LBVH_H
#define CHIPMUNK_LBVH_H

#include <stdlib.h>
#include <chipmunk/chipmunk_private.h>

#ifndef LBVH_WITH_WORLD
#define LBVH_WITH_WORLD /* more/lbvh_world.h: boxes that come, move and go */
#endif
#include "lbvh.h"

/* Shapes lie all over the memory: those needed soon are prefetched. */
#if defined(__GNUC__) || defined(__clang__)
#define CHIP_PREFETCH(address) __builtin_prefetch(address)
#else
#define CHIP_PREFETCH(address) ((void)(address))
#endif

typedef struct chip_world {
    lbvh_world world;
    int users;
} chip_world;
/* One of the two indices: its shapes, in no order, and where each one is, by Chipmunk's number of
   the shape. */
typedef struct chip_entry {
    void *shape;
    const cpVect *velocity; /* of its body, which stays the same */
    cpHashValue number;
    lbvh_id id;
} chip_entry;
typedef struct chip_index {
    cpSpatialIndex base;
    chip_world *shared;
    lbvh_state state;
    chip_entry *entry;
    int count, capacity;
    int *place; /* [places] by number: index of entry, -1: not here */
    size_t places;
} chip_index;

static void chip_must(int fits)
{
    if (!fits) abort();
} /* as Chipmunk itself does */
static void chip_box(void *shape, float box[4])
{
    cpBB const bb = ((cpShape *)shape)->bb; /* what bbfunc returns */
    double const given[4] = {bb.l, bb.b, bb.r, bb.t};
    (void)lbvh_box_of_doubles(2, given, box); /* what is not finite is refused by insert and move */
}

static int chip_find(const chip_index *index, cpHashValue number)
{
    return number < index->places ? index->place[number] : -1;
}

static void chip_grow(chip_index *index, cpHashValue number)
{
    if (index->count == index->capacity) {
        index->capacity = 2 * index->capacity + 64;
        index->entry =
            (chip_entry *)realloc(index->entry, (size_t)index->capacity * sizeof *index->entry);
    }
    if (number >= index->places) {
        size_t const places = 2 * number + 64;
        index->place = (int *)realloc(index->place, places * sizeof *index->place);
        chip_must(index->place != NULL);
        for (; index->places < places; index->places++) index->place[index->places] = -1;
    }
    chip_must(index->entry != NULL);
}

static void chip_insert(cpSpatialIndex *base, void *shape, cpHashValue number)
{
    chip_index *index = (chip_index *)base;
    chip_entry *entry;
    float box[4];
    chip_grow(index, number);
    chip_box(shape, box);
    entry = &index->entry[index->count];
    entry->shape = shape;
    entry->velocity = &((cpShape *)shape)->body->v;
    entry->number = number;
    chip_must(lbvh_world_insert(&index->shared->world, box, NULL, index->state,
                                (uint64_t)(uintptr_t)shape, &entry->id) != LBVH_OUT_OF_MEMORY);
    index->place[number] = index->count++;
}

static void chip_remove(cpSpatialIndex *base, void *shape, cpHashValue number)
{
    chip_index *index = (chip_index *)base;
    int const at = chip_find(index, number);
    (void)shape;
    if (at < 0) return;
    (void)lbvh_world_remove(&index->shared->world, index->entry[at].id);
    index->entry[at] = index->entry[--index->count];
    index->place[index->entry[at].number] = at;
    index->place[number] = -1;
}

static int chip_count(cpSpatialIndex *base) { return ((chip_index *)base)->count; }

static cpBool chip_contains(cpSpatialIndex *base, void *shape, cpHashValue number)
{
    (void)shape;
    return chip_find((chip_index *)base, number) >= 0;
}

static void chip_each(cpSpatialIndex *base, cpSpatialIndexIteratorFunc func, void *data)
{
    chip_index *index = (chip_index *)base;
    int k;
    for (k = 0; k < index->count; k++) func(index->entry[k].shape, data);
}

/* A shape that leaves its stored box gets a new one, which reaches as far as it will fly in a tenth
   of a second, six steps of 1/60 s. */
static void chip_leave(const chip_index *index, const chip_entry *entry, const float box[4])
{
    float const way[2] = {(float)(entry->velocity->x * 0.1), (float)(entry->velocity->y * 0.1)};
    (void)lbvh_world_move(&index->shared->world, entry->id, box, way);
}

static void chip_move(const chip_index *index, const chip_entry *entry)
{
    float box[4];
    chip_box(entry->shape, box);
    if (!lbvh_world_stay(&index->shared->world, entry->id, box)) chip_leave(index, entry, box);
}

static void chip_reindex(cpSpatialIndex *base)
{
    chip_index *index = (chip_index *)base;
    int k;
    for (k = 0; k < index->count; k++) {
        int const coming = k + 8 < index->count ? k + 8 : k;
        const cpBB *bb = &((cpShape *)index->entry[coming].shape)->bb;
        CHIP_PREFETCH(&bb->l);
        CHIP_PREFETCH(&bb->t); /* it may lie in two cache lines */
        chip_move(index, &index->entry[k]);
    }
}

static void chip_reindex_object(cpSpatialIndex *base, void *shape, cpHashValue number)
{
    chip_index *index = (chip_index *)base;
    int const at = chip_find(index, number);
    (void)shape;
    if (at >= 0) chip_move(index, &index->entry[at]);
}

static void chip_reindex_query(cpSpatialIndex *base, cpSpatialIndexQueryFunc func, void *data)
{
    chip_index *index = (chip_index *)base;
    lbvh_pair_walk walk;
    chip_reindex(base);
    chip_must(lbvh_world_update(&index->shared->world) == LBVH_OK);
    walk = lbvh_world_pairs(&index->shared->world, LBVH_TIGHT);
    while (lbvh_next_pair(&walk)) {
        cpCollisionID *id = (cpCollisionID *)walk.data;
        *id = func((void *)(uintptr_t)walk.user_a, (void *)(uintptr_t)walk.user_b, *id, data);
    }
}

static void chip_query(cpSpatialIndex *base, void *object, cpBB bb, cpSpatialIndexQueryFunc func,
                       void *data)
{
    chip_index *index = (chip_index *)base;
    double const given[4] = {bb.l, bb.b, bb.r, bb.t};
    lbvh_world_overlap o;
    float box[4];
    chip_must(lbvh_world_update(&index->shared->world) == LBVH_OK);
    if (lbvh_box_of_doubles(2, given, box) != LBVH_OK) return;
    o = lbvh_world_overlap_box(&index->shared->world, box);
    while (lbvh_next_object(&o))
        if (index->shared->world.object[o.index].state == index->state)
            func(object, (void *)(uintptr_t)o.user, 0, data);
}

static void chip_segment_query(cpSpatialIndex *base, void *object, cpVect a, cpVect b,
                               cpFloat t_exit, cpSpatialIndexSegmentQueryFunc func, void *data)
{
    chip_index *index = (chip_index *)base;
    float const from[2] = {(float)a.x, (float)a.y},
                along[2] = {(float)(b.x - a.x), (float)(b.y - a.y)};
    lbvh_world_cast cast;
    chip_must(lbvh_world_update(&index->shared->world) == LBVH_OK);
    cast = lbvh_world_ray(&index->shared->world, from, along, (float)t_exit);
    while (lbvh_next_cast(&cast))
        if (index->shared->world.object[cast.index].state == index->state)
            cast.t_max =
                (float)cpfmin(cast.t_max, func(object, (void *)(uintptr_t)cast.user, data));
}

static void chip_destroy(cpSpatialIndex *base)
{
    chip_index *index = (chip_index *)base;
    free(index->entry);
    free(index->place);
    if (--index->shared->users > 0) return;
    lbvh_world_free(&index->shared->world);
    free(index->shared);
}

static cpSpatialIndexClass chip_class = {chip_destroy,  chip_count,          chip_each,
                                         chip_contains, chip_insert,         chip_remove,
                                         chip_reindex,  chip_reindex_object, chip_reindex_query,
                                         chip_query,    chip_segment_query};

static cpSpatialIndex *chip_new(chip_world *shared, lbvh_state state, cpSpatialIndex *statics)
{
    chip_index *index = (chip_index *)calloc(1, sizeof *index);
    chip_must(index != NULL);
    index->shared = shared;
    index->state = state;
    shared->users++;
    return cpSpatialIndexInit(&index->base, &chip_class, (cpSpatialIndexBBFunc)cpShapeGetBB,
                              statics);
}

/* Both indices; statics is returned in *statics. */
static cpSpatialIndex *chipmunk_lbvh(cpSpatialIndex **statics)
{
    chip_world *shared = (chip_world *)calloc(1, sizeof *shared);
    lbvh_world_desc desc = {0};
    chip_must(shared != NULL);
    desc.dim = 2;
    desc.margin_part = 0.1f;
    desc.pair_bytes = sizeof(cpCollisionID);
    chip_must(lbvh_world_begin(&shared->world, &desc) == LBVH_OK);
    *statics = chip_new(shared, LBVH_FIXED, NULL);
    return chip_new(shared, LBVH_MOVING, *statics);
}
#endif
