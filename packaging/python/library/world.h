/* world.h - lbvh_world (more/lbvh_world.h) for arrays of objects and of searches.
   SPDX-License-Identifier: MIT OR Unlicense

   Every object's user number is its id: what searches and events name. */

/* New objects, of one state, a filter each (apart 1) or one for all (0). All or none. */
NEARFIELD_API lbvh_result nearfield_world_insert(lbvh_world *world, const lbvh_real *boxes,
                                                 int32_t m, const lbvh_filter *filters,
                                                 int32_t apart, int32_t state, uint64_t *ids)
{
    int32_t k;
    for (k = 0; k < m; k++) {
        const lbvh_real *box = boxes + 2 * (size_t)world->desc.dim * (size_t)k;
        lbvh_result const result = lbvh_world_insert(world, box, &filters[k * apart],
                                                     (lbvh_state)state, 0, &ids[k]);
        if (result != LBVH_OK) {
            while (k > 0) (void)lbvh_world_remove(world, ids[--k]);
            return result;
        }
        lbvh_i_set_user(world, (int32_t)(uint32_t)ids[k], ids[k]);
    }
    return LBVH_OK;
}

/* 1 if all ids are those of objects; else `*bad` is the place of the first that is not. */
static int nearfield_i_all_live(const lbvh_world *world, const uint64_t *ids, int32_t m,
                                int32_t *bad)
{
    int32_t k, index;
    for (k = 0; k < m; k++) {
        *bad = k;
        if (lbvh_world_index(world, ids[k], &index) != LBVH_OK) return 0;
    }
    *bad = -1;
    return 1;
}

/* New boxes. displacements: dim numbers each, or NULL. `*bad`: where it was refused; those before
   have moved, but with an id that is not there none has. */
NEARFIELD_API lbvh_result nearfield_world_move(lbvh_world *world, const uint64_t *ids,
                                               const lbvh_real *boxes,
                                               const lbvh_real *displacements, int32_t m,
                                               int32_t *bad)
{
    size_t const dim = (size_t)world->desc.dim;
    int32_t k;
    if (!nearfield_i_all_live(world, ids, m, bad)) return LBVH_BAD_ID;
    for (k = 0; k < m; k++) {
        lbvh_result const result =
            lbvh_world_move(world, ids[k], boxes + 2 * dim * (size_t)k,
                            displacements ? displacements + dim * (size_t)k : NULL);
        *bad = k;
        if (result != LBVH_OK) return result;
    }
    *bad = -1;
    return LBVH_OK;
}

NEARFIELD_API lbvh_result nearfield_world_remove(lbvh_world *world, const uint64_t *ids, int32_t m,
                                                 int32_t *bad)
{
    int32_t k;
    if (!nearfield_i_all_live(world, ids, m, bad)) return LBVH_BAD_ID;
    for (k = 0; k < m; k++) {
        *bad = k;
        if (lbvh_world_remove(world, ids[k]) != LBVH_OK) return LBVH_BAD_ID;    /* named twice */
    }
    *bad = -1;
    return LBVH_OK;
}

/* A state (-1: as it is) and filters (NULL: as they are; apart: as for insert). */
NEARFIELD_API lbvh_result nearfield_world_set(lbvh_world *world, const uint64_t *ids, int32_t m,
                                              int32_t state, const lbvh_filter *filters,
                                              int32_t apart, int32_t *bad)
{
    int32_t k;
    if (!nearfield_i_all_live(world, ids, m, bad)) return LBVH_BAD_ID;
    for (k = 0; k < m; k++) {
        if (state >= 0) (void)lbvh_world_set_state(world, ids[k], (lbvh_state)state);
        if (filters) (void)lbvh_world_set_filter(world, ids[k], &filters[k * apart]);
    }
    return LBVH_OK;
}

/* Pairs of ids that touch; `*needed`: their number, also where they did not fit. */
NEARFIELD_API lbvh_result nearfield_world_pairs(const lbvh_world *world, uint64_t *pairs,
                                                int64_t capacity, int64_t *needed)
{
    lbvh_pair_walk walk = lbvh_world_pairs(world, LBVH_TIGHT);
    int64_t count = 0;
    while (lbvh_next_pair(&walk)) {
        if (count < capacity) {
            pairs[2 * count] = walk.user_a;
            pairs[2 * count + 1] = walk.user_b;
        }
        count++;
    }
    *needed = count;
    return count <= capacity ? LBVH_OK : LBVH_BUFFER_TOO_SMALL;
}

/* The pairs that the last update began, or ended: begun_count (ended_count) pairs of ids. */
NEARFIELD_API void nearfield_world_events(const lbvh_world *world, int32_t ended, uint64_t *pairs)
{
    const int32_t *index = ended ? world->ended : world->begun;
    int32_t const count = ended ? world->ended_count : world->begun_count;
    int32_t k;
    for (k = 0; k < 2 * count; k++) pairs[k] = lbvh_world_user(world, index[k]);
}

/* Objects whose boxes touch each of m boxes: rows, as lbvh_overlaps. */
NEARFIELD_API lbvh_result nearfield_world_overlaps(const lbvh_world *world, const lbvh_real *boxes,
                                                   int32_t m, const lbvh_filter *filter,
                                                   int64_t *offsets, uint64_t *ids,
                                                   int64_t capacity, int64_t *needed)
{
    int64_t count = 0;
    int32_t k;
    for (k = 0; k < m; k++) {
        lbvh_world_overlap o =
            lbvh_world_overlap_box(world, boxes + 2 * (size_t)world->desc.dim * (size_t)k);
        o.filter = *filter;
        offsets[k] = count;
        for (; lbvh_next_object(&o); count++)
            if (count < capacity) ids[count] = o.user;
    }
    *needed = offsets[m] = count;
    return count <= capacity ? LBVH_OK : LBVH_BUFFER_TOO_SMALL;
}

/* Shapes of a cast. */
enum { NEARFIELD_I_RAYS, NEARFIELD_I_BOXES, NEARFIELD_I_SPHERES };

static lbvh_world_cast nearfield_i_cast(const lbvh_world *world, int32_t kind,
                                        const lbvh_real *shape, const lbvh_real *vector,
                                        lbvh_real t_max)
{
    if (kind == NEARFIELD_I_BOXES) return lbvh_world_cast_box(world, shape, vector);
    if (kind == NEARFIELD_I_SPHERES)
        return lbvh_world_cast_sphere(world, shape, shape[world->desc.dim], vector);
    return lbvh_world_ray(world, shape, vector, t_max);
}

/* The object whose box each of m shapes touches first on its way along a vector: its id (0: none),
   and where, in lengths of the vector (none: infinity). shapes: `width` numbers each. t_max: of
   rays. Of objects at the same t the lowest id. */
NEARFIELD_API void nearfield_world_cast(const lbvh_world *world, int32_t kind,
                                        const lbvh_real *shapes, int32_t width,
                                        const lbvh_real *vectors, int32_t m, lbvh_real t_max,
                                        const lbvh_filter *filter, uint64_t *ids, lbvh_real *t)
{
    int32_t k;
    for (k = 0; k < m; k++) {
        lbvh_world_cast cast =
            nearfield_i_cast(world, kind, shapes + (size_t)width * (size_t)k,
                             vectors + (size_t)world->desc.dim * (size_t)k, t_max);
        cast.filter = *filter;
        ids[k] = 0;
        t[k] = lbvh_i_infinity();
        while (lbvh_next_cast(&cast)) {
            if (cast.t > t[k] || (cast.t == t[k] && ids[k] != 0 && ids[k] < cast.user)) continue;
            ids[k] = cast.user;
            t[k] = cast.t_max = cast.t;
        }
    }
}

/* The k objects nearest to each of m points, nearest first: ids (0: fewer are within reach), and
   the squares of the distances to their boxes (infinity). */
NEARFIELD_API lbvh_result nearfield_world_nearest(const lbvh_world *world, const lbvh_real *points,
                                                  int32_t m, int32_t k, lbvh_real reach,
                                                  const lbvh_filter *filter, uint64_t *ids,
                                                  lbvh_real *distances2)
{
    int32_t *index = (int32_t *)malloc(sizeof(int32_t) * ((size_t)k + 1));
    int32_t q, e, found;
    if (!index) return LBVH_OUT_OF_MEMORY;
    for (q = 0; q < m; q++) {
        lbvh_world_near walk =
            lbvh_world_near_point(world, points + (size_t)world->desc.dim * (size_t)q, reach);
        lbvh_real *d2 = distances2 + (size_t)k * (size_t)q;
        walk.filter = *filter;
        found = 0;
        while (k > 0 && lbvh_next_near_object(&walk))
            walk.reach2 = lbvh_keep_nearest(index, d2, k, &found, walk.reach2, walk.index,
                                            walk.distance2);
        for (e = 0; e < k; e++) {
            ids[(size_t)k * (size_t)q + (size_t)e] = e < found ? lbvh_world_user(world, index[e])
                                                               : 0;
            if (e >= found) d2[e] = lbvh_i_infinity();
        }
    }
    free(index);
    return LBVH_OK;
}
