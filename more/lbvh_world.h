/* more/lbvh_world.h - v0.2.0 - a part of lbvh.h: objects that come, move, sleep and go.
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   The broad phase of a game or a simulation: dynamic trees of boxes, with pairs that last, events,
   filters, casts and nearest objects. lbvh.h builds a tree over a set of elements; a world keeps
   its trees up to date, object by object, and rebuilds them where that is cheaper. Added by

       #define LBVH_WITH_WORLD

   before lbvh.h is included, in every file that uses it and in the one with LBVH_IMPLEMENTATION.
   No CUDA form.

   >>contents: the banners in order; search for >>, the name and a colon

       manual          rules
       declarations    world
       per element     world-overlap, world-cast, world-near
       serial          world-memory, world-trees, world-pairs, round-casts, world-calls,
                       world-update, world-validate
       in tasks        parallel-world

   >>rules: those of lbvh.h, and

   Memory   about 420 bytes an object, 40 and twice desc.pair_bytes a pair (float); arrays double,
            in lbvh_world_insert and, for pairs, in lbvh_world_update. With desc.parallel 52 and 12
            more, and 110 KB for each piece of an update.
   Threads  One thread at a time may change a world; any number may search one that does not change.
            With desc.parallel lbvh_world_update refits, rebuilds and searches in tasks (lbvh.h,
            >>parallel); what has an order is done by the calling thread: leaves that change their
            place, and the pairs that begin and end. LBVH_NOT_RUN leaves a complete world.
   Limits   2^28 objects, and pairs.

   To learn it from this file, read >>world, >>world-trees, and lbvh_world_update at the end of
   >>world-update.
*/

#ifndef LBVH_H
#error "more/lbvh_world.h is a part of lbvh.h: define LBVH_WITH_WORLD and include lbvh.h"
#elif 10000 * LBVH_VERSION_MAJOR + 100 * LBVH_VERSION_MINOR + LBVH_VERSION_PATCH != 200
#error "more/lbvh_world.h 0.2.0 and lbvh.h are of different versions: copy both from one release"
#endif

#ifndef LBVH_WORLD_H
#define LBVH_WORLD_H

/* In a double build every function gets a second name, as in lbvh.h. */
#if LBVH_I_REAL_KIND == 2 && !defined(NEARFIELD_NAMESPACE)
#define lbvh_world_begin      lbvh_f64_world_begin
#define lbvh_world_free       lbvh_f64_world_free
#define lbvh_world_insert     lbvh_f64_world_insert
#define lbvh_world_move       lbvh_f64_world_move
#define lbvh_world_stay       lbvh_f64_world_stay
#define lbvh_world_remove     lbvh_f64_world_remove
#define lbvh_world_set_state  lbvh_f64_world_set_state
#define lbvh_world_set_filter lbvh_f64_world_set_filter
#define lbvh_i_test_pairs     lbvh_f64_i_test_pairs
#define lbvh_i_cast_touches   lbvh_f64_i_cast_touches
#define lbvh_world_update     lbvh_f64_world_update
#define lbvh_world_id         lbvh_f64_world_id
#define lbvh_world_index      lbvh_f64_world_index
#define lbvh_world_box        lbvh_f64_world_box
#define lbvh_world_find_pair  lbvh_f64_world_find_pair
#define lbvh_world_validate   lbvh_f64_world_validate
#define lbvh_box_of_doubles   lbvh_f64_box_of_doubles
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------
   >>world: objects that come, move, sleep and go: the broad phase of a simulation. No CUDA form.

       lbvh_world world = {0};
       lbvh_world_desc desc = {0};
       desc.dim = 2;
       desc.margin = 0.1f;                          // boxes are stored larger by this on every side
       lbvh_world_begin(&world, &desc);
       lbvh_world_insert(&world, box, NULL, LBVH_MOVING, my_number, &id);
       for (;;) {                                   // a step
           lbvh_world_move(&world, id, box, displacement);
           lbvh_world_update(&world);               // takes in what changed
           lbvh_pair_walk walk = lbvh_world_pairs(&world, LBVH_TIGHT);
           while (lbvh_next_pair(&walk)) collide(walk.user_a, walk.user_b, walk.data);
       }
       lbvh_world_free(&world);

   Two dynamic trees, one of the moving objects, one of those at rest (sleeping and static). A leaf
   holds an object's stored box: the given one, larger by the margin, and longer along its
   displacement. An object that stays in its stored box costs one comparison in a step, and keeps
   its pairs. Any other one gets a new leaf box, in its place or elsewhere, and searches again, in
   groups of eight (lbvh_i_group).

   Siblings lie side by side: `link` is the left child, link + 1 the right one, ~index in a leaf;
   `skip` is as in lbvh.h, >>nodes. A leaf is added by splitting another one in two, in its slot s:
   no skip link into s changes. A leaf is removed by moving its sibling into the parent's slot;
   the skips of the sibling's last leaf and of the nodes that end with it are set to the parent's:

         add C beside B                      remove A, C's sibling
            s: B    ->   s: *                   s: *         ->    s: C
                            / \                    / \
                        u: B   u+1: C          u: A   u+1: C       u, u+1: free

   A leaf is added beside the node that it enlarges least, and rotations on the way up make nodes
   there smaller (lbvh_i_rotate_limb). Where more than 2 log2(n) + 16 inner nodes are above a leaf,
   ways to the deepest ones are shortened alone (lbvh_i_shorten). So in updates that change few
   leaves, at most one of 128, a change costs O(log n), in whatever order objects come, and the tree
   stays as good as a new one. Updates that change more leave leaves that move a little in their
   places, which is cheaper (in tasks all nodes are refitted, where more than one of 16 changes),
   and build the tree again (lbvh_build, then the nodes in depth-first order) when more than a
   quarter of its leaves change, or as many as it has have changed in such updates: a change costs
   O(log n) in the mean. A rebuild looks at no object outside its tree.
   ---------------------------------------------------------------------------------------------- */

/* An object's name: its generation in the upper 32 bits, its index in the lower ones. Indices are
   small numbers 0, 1, 2, ..., reused after removal: for arrays of your own. An id is never reused
   (before 2^32 removals of its index). 0 is no object. */
typedef uint64_t lbvh_id;

typedef enum lbvh_state {
    LBVH_MOVING = 0,
    LBVH_SLEEPING,      /* at rest: pairs of two objects at rest are kept, and not walked */
    LBVH_FIXED          /* static: no pair of two such objects exists */
} lbvh_state;

/* Which objects may make pairs. Two of the same group: always where it is positive, never where it
   is negative. Others: where the category of each shares a bit with the mask of the other. A search
   finds what an object with its filter would meet. */
typedef struct lbvh_filter {
    uint64_t category;      /* (default, 0: all bits) */
    uint64_t mask;          /* (default, 0: all bits) */
    int32_t group;          /* (default: 0, none) */
} lbvh_filter;

/* Your own filter, for two indices, asked when a pair would begin. 0: no pair. It must not change
   the world. */
typedef int lbvh_allow_fn(void *user, int32_t a, int32_t b);

typedef struct lbvh_world_desc {
    int32_t dim;            /* 2 or 3 (default: 3) */
    lbvh_real margin;       /* a stored box is larger by this on every side (default: 0) ... */
    lbvh_real margin_part;  /* ... and by this part of the box's own edge (default: 0) */
    int32_t pair_bytes;     /* bytes of yours with every pair (default: 0) */
    lbvh_allow_fn *allow;   /* (default: none) */
    void *user;             /* for allow */
    lbvh_allocator allocator; /* (default: malloc and free) */
    lbvh_parallel parallel; /* a hook for threads, for updates (default: serial) */
} lbvh_world_desc;

typedef struct lbvh_object {
    lbvh_filter filter;     /* with defaults filled in; to change it: lbvh_world_set_filter */
    uint32_t generation;
    int32_t leaf;           /* its node, -1: none yet */
    int32_t first_pair;     /* entry 2 pair + side of its list of pairs, -1: none */
    uint8_t state;          /* lbvh_state */
    uint8_t wanted;         /* the state from the next update on */
    uint8_t tree;           /* of its leaf: 0 moving, 1 at rest */
    uint8_t alive;
    uint8_t changed;        /* what the next update has to do */
} lbvh_object;

typedef struct lbvh_pair {
    int32_t object[2];          /* indices, in the order found */
    int32_t next[2], prev[2];   /* entries of the lists of both objects, -1: none */
} lbvh_pair;

typedef struct lbvh_world_tree {
    lbvh_node *node;        /* node 0 is the root where there are leaves */
    int32_t *parent;
    uint64_t *category;     /* by node: all categories below it */
    uint8_t *height;        /* by node: most nodes between it and a leaf below it, and 1; leaf: 0 */
    int32_t leaves;
    int32_t used;           /* nodes below it have been used */
    int32_t unused;         /* first of a list of pairs of nodes that are free, -1: none */
    int32_t changes;        /* leaves changed since the last rebuild, by updates of many changes */
    int32_t too_deep;       /* a leaf is deeper than walks have room for: the tree is rebuilt */
} lbvh_world_tree;

/* What an update did: the most expensive of its ways. */
typedef enum lbvh_reason {
    LBVH_NOTHING = 0,   /* no stored box changed */
    LBVH_REFIT,         /* leaves got new boxes in their places */
    LBVH_REPLACED,      /* leaves were added, removed, or put elsewhere */
    LBVH_REBUILT        /* a tree was built again */
} lbvh_reason;

/* A node, or an object, that one of several searches visits. */
typedef struct lbvh_visit { int32_t at, search; } lbvh_visit;

enum { LBVH_WORLD_BLOCKS = 23 };

typedef struct lbvh_world {
    lbvh_world_desc desc;       /* with defaults filled in */
    int32_t count;              /* indices in use are below this */
    int32_t objects, sleepers;  /* alive; and sleeping */
    lbvh_object *object;        /* [count] */
    lbvh_node *box;             /* [2 count] by index: the given box, then the stored one; to read
                                   them: lbvh_world_box. What a step reads of an object lies side by
                                   side: link and skip, which a box does not need, hold the user
                                   number (lbvh_world_user), the generation (lbvh_i_generation) and
                                   a count (LBVH_I_CALLS) */
    lbvh_pair *pair;            /* [pairs]; the first `active` have an object that moves */
    unsigned char *pair_data;   /* [pairs * desc.pair_bytes] */
    int32_t pairs, active;
    int32_t *begun;             /* [2 begun_count] indices of pairs that the last update began */
    int32_t *ended;             /* [2 ended_count] and ended; an object of theirs may be removed:
                                   its user number is readable until the next insertion */
    unsigned char *ended_data;  /* [ended_count * desc.pair_bytes] */
    int32_t begun_count, ended_count;
    lbvh_reason reason;         /* what the last update did */
    int32_t searched;           /* objects that searched again in it */
    /* private */
    lbvh_world_tree tree[2];
    int32_t *changed;           /* indices with something to do */
    int32_t *vacant;            /* removed indices, to be used again */
    lbvh_visit *waiting;        /* nodes whose children searches have still to visit */
    lbvh_visit *met;            /* objects that searches met */
    int32_t *found;             /* the same, search after search */
    int32_t *mark;              /* by index: the last search that met it */
    int32_t changed_count, vacant_count, capacity, pair_capacity, token;
    int32_t not_run;            /* desc.parallel.run left a task of this update out */
    int32_t rebuilt;            /* it rebuilt the moving tree, which is the scratch one, too */
    lbvh_real *gathered;        /* boxes of a rebuild */
    int32_t *gathered_index;
    lbvh scratch;
    lbvh_block block[LBVH_WORLD_BLOCKS];
} lbvh_world;

/* Empties the world and sets its desc (NULL: defaults). LBVH_BAD_DIM, LBVH_BAD_RADIUS (a margin is
   negative or not finite), LBVH_BAD_ARGUMENT (pair_bytes < 0), LBVH_BAD_ALLOCATOR, LBVH_BAD_OPTION
   (parallel.tasks is not 0 .. 1024). */
LBVH_API lbvh_result lbvh_world_begin(lbvh_world *world, const lbvh_world_desc *desc);

/* Frees the memory and empties the world; an empty world is fine. */
LBVH_API void lbvh_world_free(lbvh_world *world);

/* A new object. box: 2 dim numbers. filter NULL: all defaults. Searches and pairs know it from the
   next update on. LBVH_NOT_FINITE, LBVH_INVERTED, LBVH_BAD_OPTION (no such state), LBVH_TOO_MANY,
   LBVH_OUT_OF_MEMORY: the world is unchanged, and *id is 0. The only call besides update that
   allocates. O(1). */
LBVH_API lbvh_result lbvh_world_insert(lbvh_world *world, const lbvh_real *box,
                                       const lbvh_filter *filter, lbvh_state state, uint64_t user,
                                       lbvh_id *id);

/* The object's new box. displacement: dim numbers, how far it will probably move before its box is
   stored again (NULL: none); a stored box is longer by it. The box is stored anew where the stored
   one does not hold the new one; and where that is too large for it, at which every 64th call
   looks: larger along an axis than one stored anew, by more than the sum of 8 margins, an eighth of
   the box's edge, and the displacement. So of several moves the displacement of the last one that
   stored counts. Stored boxes reach to the largest numbers, and no further. Does not wake, and may
   move static objects. LBVH_NOT_FINITE (the box; or the displacement, where the box is stored
   anew), LBVH_INVERTED, LBVH_BAD_ID: the object is as it was. O(1). */
LBVH_API lbvh_result lbvh_world_move(lbvh_world *world, lbvh_id id, const lbvh_real *box,
                                     const lbvh_real *displacement);

/* Where the stored box holds the new one: moves the object, and returns 1. Else 0, and nothing is
   changed: call lbvh_world_move. Every 64th call looks whether the stored box is too large, for an
   object without displacement: then 0, until it is stored anew or lbvh_world_move finds it fit. For
   callers whose displacement costs something to find. O(1). */
LBVH_API int lbvh_world_stay(lbvh_world *world, lbvh_id id, const lbvh_real *box);

/* Removes an object: its id is refused from now on, and searches do not find it. Its pairs end with
   the next update. O(1). */
LBVH_API lbvh_result lbvh_world_remove(lbvh_world *world, lbvh_id id);

/* State and filter (NULL: all defaults) from the next update on. LBVH_BAD_ID; LBVH_BAD_OPTION: no
   such state. O(1). */
LBVH_API lbvh_result lbvh_world_set_state(lbvh_world *world, lbvh_id id, lbvh_state state);
LBVH_API lbvh_result lbvh_world_set_filter(lbvh_world *world, lbvh_id id,
                                           const lbvh_filter *filter);

/* Takes in all changes: the trees, then the pairs. LBVH_OUT_OF_MEMORY: no room for all pairs; those
   found are there, all others come with a later update that succeeds. world.begun and world.ended
   list what this update did, then too: a pair is listed once when it begins and once when it ends,
   whichever update fails. The same calls give the same pairs in the same order, whatever
   world.desc.parallel, which you may change. In its tasks run refits, rebuilds and searches.
   Searches take memory in proportion to the objects and pairs; where there is none the calling
   thread does them. LBVH_NOT_RUN: so it did where `run` left a task out; the update is complete. */
LBVH_API lbvh_result lbvh_world_update(lbvh_world *world);

/* The id of an index; 0 where no object has it. And back: LBVH_BAD_ID, *index is -1. */
LBVH_API lbvh_id lbvh_world_id(const lbvh_world *world, int32_t index);
LBVH_API lbvh_result lbvh_world_index(const lbvh_world *world, lbvh_id id, int32_t *index);

/* The pair of two indices: its place in world.pair, -1: there is none. O(pairs of the one that has
   fewer). */
LBVH_API int32_t lbvh_world_find_pair(const lbvh_world *world, int32_t a, int32_t b);

/* LBVH_OK, or LBVH_INVALID where trees, lists or pairs are damaged. For tests. O(n + pairs). */
LBVH_API lbvh_result lbvh_world_validate(const lbvh_world *world);

/* Rounds a box of doubles outward: the least box of LBVH_REAL that contains it. LBVH_NOT_FINITE
   where there is none. Inverted boxes stay inverted: what takes them refuses them.
   LBVH_BAD_ARGUMENT: dim. */
LBVH_API lbvh_result lbvh_box_of_doubles(int dim, const double *box, lbvh_real *out);

/* Fills in the defaults of a filter. */
LBVH_FN void lbvh_i_complete(lbvh_filter *filter)
{
    if (filter->category == 0) filter->category = ~(uint64_t)0;
    if (filter->mask == 0) filter->mask = ~(uint64_t)0;
}

/* 1 if the filters let two objects make a pair. */
LBVH_FN int lbvh_filters_allow(const lbvh_filter *a, const lbvh_filter *b)
{
    lbvh_filter p = *a, q = *b;
    if (p.group != 0 && p.group == q.group) return p.group > 0;
    lbvh_i_complete(&p);
    lbvh_i_complete(&q);
    return (p.category & q.mask) != 0 && (q.category & p.mask) != 0;
}

/* The two boxes of an object: as given, and as stored. */
LBVH_FN_WALK lbvh_node *lbvh_i_box_given(const lbvh_world *world, int32_t index)
{
    return &world->box[2 * (size_t)index];
}
LBVH_FN_WALK lbvh_node *lbvh_i_box_stored(const lbvh_world *world, int32_t index)
{
    return &world->box[2 * (size_t)index + 1];
}

/* The user number of the object with this index; of a removed one, until an insertion uses its
   index again. Its halves are the link and the skip of the given box. */
LBVH_FN_WALK uint64_t lbvh_world_user(const lbvh_world *world, int32_t index)
{
    const lbvh_node *box = lbvh_i_box_given(world, index);
    return (uint64_t)(uint32_t)box->link << 32 | (uint32_t)box->skip;
}
LBVH_FN void lbvh_i_set_user(const lbvh_world *world, int32_t index, uint64_t user)
{
    lbvh_node *box = lbvh_i_box_given(world, index);
    box->link = (int32_t)(uint32_t)(user >> 32);
    box->skip = (int32_t)(uint32_t)user;
}

/* The generation of the object with this index, 0 while there is none: the link of the stored box.
   (lbvh_object.generation goes on where an object was removed.) */
LBVH_FN_WALK uint32_t lbvh_i_generation(const lbvh_world *world, int32_t index)
{
    return (uint32_t)lbvh_i_box_stored(world, index)->link;
}
LBVH_FN void lbvh_i_set_generation(const lbvh_world *world, int32_t index, uint32_t generation)
{
    lbvh_i_box_stored(world, index)->link = (int32_t)generation;
}

/* Which of an object's boxes counts: the given one, or the stored one, larger by the margin. */
typedef enum lbvh_fit { LBVH_TIGHT = 0, LBVH_FAT } lbvh_fit;

/* The box of the object with this index, 2 dim numbers: as given last, or as stored (of an object
   moved since the last update: what that update will store). LBVH_BAD_ID: no object has it;
   LBVH_BAD_OPTION: no such fit. */
LBVH_API lbvh_result lbvh_world_box(const lbvh_world *world, int32_t index, lbvh_fit fit,
                                    lbvh_real *box);

/* Pairs that a walk tests at a time. */
enum { LBVH_WALK_PAIRS = 32 };

/* All pairs with an object that moves, of the boxes asked for. They are those of the last update;
   LBVH_TIGHT tests the boxes as given since (of an object moved during the walk, before or after).
   Data stays with its pair, and moves in memory with updates. An update ends a walk: begin
   another. */
typedef struct lbvh_pair_walk {
    int32_t a, b;           /* indices */
    uint64_t user_a, user_b;
    void *data;             /* desc.pair_bytes of yours, zero when the pair was new; NULL: none */
    /* private */
    const lbvh_world *world;
    lbvh_fit fit;
    int32_t at;             /* the first pair that is not tested yet */
    int32_t next, hits;     /* of those that were, these touch: */
    int32_t hit[LBVH_WALK_PAIRS];
} lbvh_pair_walk;

static inline lbvh_pair_walk lbvh_world_pairs(const lbvh_world *world, lbvh_fit fit)
{
    lbvh_pair_walk walk;
    memset(&walk, 0, sizeof walk);
    walk.world = world;
    walk.fit = fit;
    return walk;
}

/* Tests the next LBVH_WALK_PAIRS pairs, until some touch. */
LBVH_API void lbvh_i_test_pairs(lbvh_pair_walk *walk);

/* The next pair; 0 when there are no more. */
static inline int lbvh_next_pair(lbvh_pair_walk *walk)
{
    const lbvh_world *world = walk->world;
    const lbvh_pair *pair;
    int32_t p;
    if (walk->next == walk->hits) lbvh_i_test_pairs(walk);
    if (walk->next == walk->hits || walk->hit[walk->next] >= world->active) return 0;
    p = walk->hit[walk->next++];
    pair = &world->pair[p];
    walk->a = pair->object[0];
    walk->b = pair->object[1];
    walk->user_a = lbvh_world_user(world, walk->a);
    walk->user_b = lbvh_world_user(world, walk->b);
    walk->data = world->pair_data
                     ? world->pair_data + (size_t)p * (size_t)world->desc.pair_bytes : NULL;
    return 1;
}

/* ------------------------------------------------------------------------------------------------
   >>world-overlap: objects whose boxes touch a box, by the last update

       lbvh_world_overlap o = lbvh_world_overlap_box(&world, box);
       while (lbvh_next_object(&o)) use(o.user);

   All searches go by the boxes that the last update stored. LBVH_TIGHT then tests the box as given
   since: an object that has left its stored box after that update is found where both boxes touch,
   and at its new place from the next update on. LBVH_FAT does not ask where it is now. Objects
   removed since are not found. Order: as the trees have it, the same after the same calls.
   ---------------------------------------------------------------------------------------------- */

typedef struct lbvh_world_overlap {
    int32_t index;          /* the object found */
    uint64_t user;
    lbvh_filter filter;     /* may be set by you (initially all; 0: all bits) */
    lbvh_fit fit;           /* may be set by you (initially LBVH_TIGHT) */
    /* private */
    const lbvh_world *world;
    lbvh_node box;
    int32_t tree, at;
} lbvh_world_overlap;

/* A filter that every object passes. */
LBVH_FN lbvh_filter lbvh_i_all(void)
{
    lbvh_filter filter;
    filter.category = filter.mask = ~(uint64_t)0;
    filter.group = 0;
    return filter;
}

/* box: 2 dim numbers. NaN and inverted boxes find nothing. */
LBVH_FN lbvh_world_overlap lbvh_world_overlap_box(const lbvh_world *world, const lbvh_real *box)
{
    lbvh_world_overlap o;
    int const dim = world->desc.dim;
    int a;
    memset(&o, 0, sizeof o);
    o.index = -1;
    o.filter = lbvh_i_all();
    o.world = world;
    o.at = world->tree[0].leaves > 0 ? 0 : -1;
    for (a = 0; a < dim; a++) {
        o.box.min[a] = box[a];
        o.box.max[a] = box[dim + a];
        if (!(box[a] <= box[dim + a])) o.tree = 2;
    }
    return o;
}

/* 1 if a search with this filter, of these boxes, takes the object. */
LBVH_FN int lbvh_i_takes(const lbvh_world *world, int32_t index, const lbvh_filter *filter)
{
    const lbvh_object *object = &world->object[index];
    return object->alive && lbvh_filters_allow(&object->filter, filter);
}

/* 1 if such an object may lie at or below a node of the tree. */
LBVH_FN_WALK int lbvh_i_may_hold(const lbvh_world_tree *tree, int32_t at, const lbvh_filter *filter)
{
    return filter->group > 0 || (tree->category[at] & filter->mask) != 0;
}

/* The next object; 0 when there are no more. */
LBVH_FN int lbvh_next_object(lbvh_world_overlap *o)
{
    const lbvh_world *world = o->world;
    lbvh_i_complete(&o->filter);
    for (; o->tree < 2; o->tree++) {
        const lbvh_world_tree *tree = &world->tree[o->tree];
        while (o->at >= 0) {
            const lbvh_node *node = &tree->node[o->at];
            int const meets = lbvh_boxes_touch(node, o->box.min, o->box.max) &&
                              lbvh_i_may_hold(tree, o->at, &o->filter);
            int32_t index;
            o->at = meets && node->link >= 0 ? node->link : node->skip;
            if (!meets || node->link >= 0) continue;
            index = ~node->link;
            if (!lbvh_i_takes(world, index, &o->filter) ||
                (o->fit == LBVH_TIGHT &&
                 !lbvh_boxes_touch(lbvh_i_box_given(world, index), o->box.min, o->box.max)))
                continue;
            o->index = index;
            o->user = lbvh_world_user(world, index);
            return 1;
        }
        o->at = o->tree == 0 && world->tree[1].leaves > 0 ? 0 : -1;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------
   >>world-cast: objects that a shape meets while it is swept along a vector, nearer subtrees first.
   A ray and a segment are casts of a point. The caller tests what is in the boxes:

       lbvh_world_cast cast = lbvh_world_cast_sphere(&world, centre, radius, vector);
       while (lbvh_next_cast(&cast))                            // any hit at all: break
           if (hits(cast.user, &t) && t < cast.t_max) cast.t_max = t, closest = cast.user;

   `t` is where the shape itself first touches the object's box: a sphere passes a corner that the
   box around it would touch (>>round-casts).
   ---------------------------------------------------------------------------------------------- */

typedef struct lbvh_world_cast {
    int32_t index;          /* the object found */
    uint64_t user;
    lbvh_real t;            /* where its box is touched, in lengths of the vector; 0: at once */
    lbvh_real t_max;        /* may be shrunk by you: boxes entered later are skipped */
    lbvh_filter filter;     /* may be set by you (initially all; 0: all bits) */
    lbvh_fit fit;           /* may be set by you (initially LBVH_TIGHT) */
    /* private */
    const lbvh_world *world;
    lbvh_ray ray;           /* from 0 along the vector; its stack holds 2 node + tree */
    lbvh_real low[3], high[3];  /* the shape's box */
    int round;              /* 1: all points within radius of the segment between two ends */
    lbvh_real end[2][3], vector[3], radius;
} lbvh_world_cast;

/* 1 if the shape's box enters the box up to t_max: a point that starts at 0 enters the box of all
   ways by which the shape's box touches the other one (Minkowski difference; Ericson section
   5.5.8). Of a round shape, `*t` is lowered and t_max raised by more than the rounding: its own
   test decides. */
LBVH_FN int lbvh_i_cast_enters(lbvh_world_cast *cast, const lbvh_node *node, lbvh_real *t)
{
    lbvh_real const spare = LBVH_I_REAL_KIND == 1 ? (lbvh_real)1e-6 : (lbvh_real)2e-15;
    lbvh_node ways = *node;
    int a, enters;
    for (a = 0; a < 3; a++) {
        ways.min[a] = node->min[a] - cast->high[a];
        ways.max[a] = node->max[a] - cast->low[a];
    }
    cast->ray.t_max = cast->t_max;
    if (cast->round) cast->ray.t_max += spare * cast->t_max;
    enters = lbvh_i_ray_enters(&cast->ray, &ways, t);
    if (cast->round) *t -= spare * *t;
    return enters;
}

/* 1 if a round shape touches the box up to t_max; `*t`: where. */
LBVH_API int lbvh_i_cast_touches(const lbvh_world_cast *cast, const lbvh_node *box, lbvh_real *t);

/* Puts node `at` of tree t on the stack. */
LBVH_FN void lbvh_i_cast_push(lbvh_world_cast *cast, int32_t t, int32_t at, lbvh_real enters)
{
    cast->ray.node[cast->ray.top] = 2 * at + t;
    cast->ray.enters[cast->ray.top++] = enters;
}

/* A cast of the box from min to max, which a radius makes larger on every side, and a little more:
   no box that is touched is missed. */
LBVH_FN lbvh_world_cast lbvh_i_cast(const lbvh_world *world, const lbvh_real *min,
                                    const lbvh_real *max, lbvh_real radius,
                                    const lbvh_real *vector, lbvh_real t_max)
{
    lbvh_real const more = LBVH_I_REAL_KIND == 1 ? (lbvh_real)5e-7 : (lbvh_real)1e-15,
                    zero[3] = {0, 0, 0};
    lbvh_world_cast cast;
    lbvh_real enters;
    int32_t t;
    int a, usable;
    memset(&cast, 0, sizeof cast);
    cast.index = -1;
    cast.world = world;
    cast.filter = lbvh_i_all();
    lbvh_i_begin_ray(&cast.ray, world->desc.dim, zero, vector, t_max);
    cast.t_max = cast.ray.t_max;
    usable = cast.ray.top && radius >= 0 && lbvh_i_finite(radius);
    cast.ray.top = 0;
    for (a = 0; a < world->desc.dim; a++) {
        usable = usable && min[a] <= max[a] && lbvh_i_finite(min[a]) && lbvh_i_finite(max[a]);
        cast.low[a] = min[a];
        cast.high[a] = max[a];
        if (!(radius > 0)) continue;
        cast.low[a] -= radius + more * (radius + lbvh_i_absolute(min[a]));
        cast.high[a] += radius + more * (radius + lbvh_i_absolute(max[a]));
    }
    if (!usable) return cast;
    for (t = 1; t >= 0; t--)
        if (world->tree[t].leaves > 0 &&
            lbvh_i_cast_enters(&cast, &world->tree[t].node[0], &enters))
            lbvh_i_cast_push(&cast, t, 0, enters);
    return cast;
}

/* A ray from origin along direction, for t in 0 .. t_max; and a segment, t in 0 .. 1. As
   lbvh_ray_cast: NaN finds nothing. */
LBVH_FN lbvh_world_cast lbvh_world_ray(const lbvh_world *world, const lbvh_real *origin,
                                       const lbvh_real *direction, lbvh_real t_max)
{
    return lbvh_i_cast(world, origin, origin, 0, direction, t_max);
}
LBVH_FN lbvh_world_cast lbvh_world_segment(const lbvh_world *world, const lbvh_real *from,
                                           const lbvh_real *to)
{
    lbvh_real along[3] = {0, 0, 0};
    int a;
    for (a = 0; a < world->desc.dim; a++) along[a] = to[a] - from[a];
    return lbvh_world_ray(world, from, along, 1);
}

/* A box of 2 dim numbers, swept along the vector, t in 0 .. 1. NaN, infinite numbers and inverted
   boxes find nothing. */
LBVH_FN lbvh_world_cast lbvh_world_cast_box(const lbvh_world *world, const lbvh_real *box,
                                            const lbvh_real *vector)
{
    return lbvh_i_cast(world, box, box + world->desc.dim, 0, vector, 1);
}

/* A capsule: all points within radius of the segment from a to b; and a sphere, swept along the
   vector, t in 0 .. 1. Exact: `t` is where it comes within radius of a box, to 2^-46 of the largest
   coordinate, then rounded. Radius 0: a segment, a point. A vector of 0: what it touches, at t = 0.
   NaN, infinite numbers and negative radii find nothing. */
LBVH_FN lbvh_world_cast lbvh_world_cast_capsule(const lbvh_world *world, const lbvh_real *a,
                                                const lbvh_real *b, lbvh_real radius,
                                                const lbvh_real *vector)
{
    lbvh_real min[3] = {0, 0, 0}, max[3] = {0, 0, 0};
    lbvh_world_cast cast;
    int x, usable = lbvh_i_finite(radius);
    for (x = 0; x < world->desc.dim; x++) {
        min[x] = lbvh_i_min(a[x], b[x]);
        max[x] = lbvh_i_max(a[x], b[x]);
        usable = usable && lbvh_i_finite(a[x]) && lbvh_i_finite(b[x]);
    }
    cast = lbvh_i_cast(world, min, max, usable ? radius : -1, vector, 1);
    cast.round = 1;
    cast.radius = radius;
    for (x = 0; x < world->desc.dim; x++) {
        cast.end[0][x] = a[x];
        cast.end[1][x] = b[x];
        cast.vector[x] = vector[x];
    }
    return cast;
}
LBVH_FN lbvh_world_cast lbvh_world_cast_sphere(const lbvh_world *world, const lbvh_real *centre,
                                               lbvh_real radius, const lbvh_real *vector)
{
    return lbvh_world_cast_capsule(world, centre, centre, radius, vector);
}

/* Goes on with the children of a node that the shape enters, the nearer one on top. */
LBVH_FN void lbvh_i_cast_open(lbvh_world_cast *cast, int32_t t, int32_t at)
{
    const lbvh_world_tree *tree = &cast->world->tree[t];
    int32_t const l = tree->node[at].link;
    lbvh_real to_left, to_right;
    int const left = lbvh_i_cast_enters(cast, &tree->node[l], &to_left),
              right = lbvh_i_cast_enters(cast, &tree->node[l + 1], &to_right),
              left_first = to_left <= to_right;
    if (left_first && right) lbvh_i_cast_push(cast, t, l + 1, to_right);
    if (left) lbvh_i_cast_push(cast, t, l, to_left);
    if (!left_first && right) lbvh_i_cast_push(cast, t, l + 1, to_right);
}

/* The next object whose box the shape touches at or before t_max; 0 when there are no more. */
static inline int lbvh_next_cast(lbvh_world_cast *cast)
{
    const lbvh_world *world = cast->world;
    lbvh_i_complete(&cast->filter);
    while (cast->ray.top > 0) {
        int32_t const entry = cast->ray.node[--cast->ray.top], t = entry % 2, at = entry / 2;
        const lbvh_node *const node = &world->tree[t].node[at], *box = node;
        lbvh_real enters = cast->ray.enters[cast->ray.top];
        if (!(enters <= cast->t_max)) continue;
        if (!lbvh_i_may_hold(&world->tree[t], at, &cast->filter)) continue;
        if (node->link >= 0) {
            lbvh_i_cast_open(cast, t, at);
            continue;
        }
        if (!lbvh_i_takes(world, ~node->link, &cast->filter)) continue;
        if (cast->fit == LBVH_TIGHT) box = lbvh_i_box_given(world, ~node->link);
        if (box != node && !lbvh_i_cast_enters(cast, box, &enters)) continue;
        if (cast->round && !lbvh_i_cast_touches(cast, box, &enters)) continue;
        cast->index = ~node->link;
        cast->user = lbvh_world_user(world, cast->index);
        cast->t = enters;
        return 1;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------
   >>world-near: objects around a point, nearer subtrees first. The caller shrinks the reach, by the
   distance to the object's box or by a distance of its own, which is at least that:

       lbvh_world_near search = lbvh_world_near_point(&world, p, reach);
       while (lbvh_next_near_object(&search)) {
           float d2 = my_distance2(search.user, p);             // or search.distance2
           search.reach2 = lbvh_keep_nearest(ids, d2s, k, &found, search.reach2,
                                             search.index, d2);
       }
   ---------------------------------------------------------------------------------------------- */

typedef struct lbvh_world_near {
    int32_t index;          /* the object found */
    uint64_t user;
    lbvh_real distance2;    /* from the point to its box, squared */
    lbvh_real reach2;       /* may be shrunk by you: boxes further away are skipped */
    lbvh_filter filter;     /* may be set by you (initially all; 0: all bits) */
    lbvh_fit fit;           /* may be set by you (initially LBVH_TIGHT) */
    /* private */
    const lbvh_world *world;
    lbvh_near walk;         /* its stack holds 2 node + tree */
} lbvh_world_near;

/* Puts node `at` of tree t on the stack, if it is within reach. */
LBVH_FN void lbvh_i_near_object_push(lbvh_world_near *search, int32_t t, int32_t at,
                                     lbvh_real away2)
{
    if (!(away2 <= search->reach2)) return;
    search->walk.node[search->walk.top] = 2 * at + t;
    search->walk.away2[search->walk.top++] = away2;
}

/* Objects around p (dim numbers), up to `reach` away. NaN and negative reaches find nothing. */
LBVH_FN lbvh_world_near lbvh_world_near_point(const lbvh_world *world, const lbvh_real *p,
                                              lbvh_real reach)
{
    lbvh_world_near search;
    int32_t t;
    int usable;
    memset(&search, 0, sizeof search);
    search.index = -1;
    search.world = world;
    search.filter = lbvh_i_all();
    lbvh_i_begin_near(&search.walk, world->desc.dim, p, reach);
    search.reach2 = search.walk.reach2;
    usable = search.walk.top;
    search.walk.top = 0;
    if (!usable) return search;
    for (t = 1; t >= 0; t--)
        if (world->tree[t].leaves > 0)
            lbvh_i_near_object_push(&search, t, 0,
                                    lbvh_box_distance2(&world->tree[t].node[0], search.walk.p));
    return search;
}

/* Goes on with the children of a node, the nearer one on top. */
LBVH_FN_HOT void lbvh_i_near_object_open(lbvh_world_near *search, int32_t t, int32_t at)
{
    const lbvh_node *const nodes = search->world->tree[t].node;
    int32_t const l = nodes[at].link;
    lbvh_real const to_left = lbvh_box_distance2(&nodes[l], search->walk.p),
                    to_right = lbvh_box_distance2(&nodes[l + 1], search->walk.p);
    int const left_first = to_left <= to_right;
    lbvh_i_near_object_push(search, t, l + left_first, left_first ? to_right : to_left);
    lbvh_i_near_object_push(search, t, l + !left_first, left_first ? to_left : to_right);
}

/* The next object within reach2; 0 when there are no more. */
LBVH_FN int lbvh_next_near_object(lbvh_world_near *search)
{
    const lbvh_world *world = search->world;
    lbvh_near *walk = &search->walk;
    lbvh_i_complete(&search->filter);
    while (walk->top > 0) {
        int32_t const entry = walk->node[--walk->top], t = entry % 2, at = entry / 2;
        const lbvh_node *const node = &world->tree[t].node[at];
        lbvh_real away2 = walk->away2[walk->top];
        if (!(away2 <= search->reach2)) continue;
        if (!lbvh_i_may_hold(&world->tree[t], at, &search->filter)) continue;
        if (node->link >= 0) {
            lbvh_i_near_object_open(search, t, at);
            continue;
        }
        if (!lbvh_i_takes(world, ~node->link, &search->filter)) continue;
        if (search->fit == LBVH_TIGHT)
            away2 = lbvh_box_distance2(lbvh_i_box_given(world, ~node->link), walk->p);
        if (!(away2 <= search->reach2)) continue;
        search->index = ~node->link;
        search->user = lbvh_world_user(world, search->index);
        search->distance2 = away2;
        return 1;
    }
    return 0;
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
} /* extern "C" */
#endif

#endif /* LBVH_WORLD_H */

/* ================================================================================================
   The implementation
   ============================================================================================== */

#if defined(LBVH_IMPLEMENTATION) && !defined(LBVH_WORLD_IMPLEMENTATION_DONE)
#define LBVH_WORLD_IMPLEMENTATION_DONE

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------
   >>world-memory: arrays of a world, which grow and keep their content
   ---------------------------------------------------------------------------------------------- */

enum {
    LBVH_I_OBJECTS, LBVH_I_BOXES_OF, LBVH_I_CHANGED, LBVH_I_VACANT, LBVH_I_GATHERED,
    LBVH_I_GATHERED_INDEX, LBVH_I_FOUND, LBVH_I_MARK, LBVH_I_WAITING, LBVH_I_MET,
    LBVH_I_TREE_BLOCKS, /* node, parent, category, height; twice */
    LBVH_I_PAIRS = LBVH_I_TREE_BLOCKS + 8, LBVH_I_PAIR_DATA, LBVH_I_BEGUN,
    LBVH_I_ENDED,       /* with pair_bytes, the data of ended pairs follows their indices */
    LBVH_I_PIECES_OF    /* of an update in pieces */
};

enum { LBVH_I_LINE = 64 };      /* bytes of a cache line */

enum {
    LBVH_I_GROUP = 8,           /* searches of a group, which goes through a tree once */
    LBVH_I_VISITS = 512         /* room for their visits, beside one for each object */
};

/* What lbvh_world_update has to do with an object. */
enum { LBVH_I_LEAF = 1, LBVH_I_SEARCH = 2, LBVH_I_GONE = 4, LBVH_I_REFILTER = 8, LBVH_I_STATE = 16,
       LBVH_I_LISTED = 32 };

/* An update in tasks (>>parallel-world). */
static int32_t lbvh_i_world_pieces(const lbvh_world *world, int32_t n);
static int lbvh_i_update_pairs_in_pieces(lbvh_world *world, const int32_t *index, int32_t n,
                                         int later, int *fits);
static int32_t lbvh_i_gather_in_pieces(lbvh_world *world, int t, int32_t n);
struct lbvh_i_ways;
static int32_t lbvh_i_place_in_pieces(lbvh_world *world, const struct lbvh_i_ways *ways);
static int lbvh_i_refit_in_world_pieces(lbvh_world *world, lbvh_world_tree *tree);
struct lbvh_i_copied;
static int lbvh_i_copy_in_pieces(lbvh_world *world, lbvh_world_tree *tree,
                                 const struct lbvh_i_copied *root);

/* Where an array begins in its block: at a multiple of a cache line. */
static char *lbvh_i_start(const lbvh_block *block)
{
    size_t const over = (size_t)(uintptr_t)block->memory % LBVH_I_LINE;
    return block->memory ? (char *)block->memory + (over ? LBVH_I_LINE - over : 0) : NULL;
}

/* The nodes of a tree begin so that siblings (1 and 2, 3 and 4, ...) share a line. */
static lbvh_node *lbvh_i_start_of_nodes(const lbvh_block *block)
{
    char *const start = lbvh_i_start(block);
    if (!start) return NULL;
    return (lbvh_node *)(void *)(start + LBVH_I_LINE - sizeof(lbvh_node) % LBVH_I_LINE);
}

/* Points the arrays at their blocks. */
static void lbvh_i_bind_world(lbvh_world *world)
{
    lbvh_block *b = world->block;
    int t;
    world->object = (lbvh_object *)(void *)lbvh_i_start(&b[LBVH_I_OBJECTS]);
    world->box = (lbvh_node *)(void *)lbvh_i_start(&b[LBVH_I_BOXES_OF]);
    world->changed = (int32_t *)(void *)lbvh_i_start(&b[LBVH_I_CHANGED]);
    world->vacant = (int32_t *)(void *)lbvh_i_start(&b[LBVH_I_VACANT]);
    world->found = (int32_t *)(void *)lbvh_i_start(&b[LBVH_I_FOUND]);
    world->mark = (int32_t *)(void *)lbvh_i_start(&b[LBVH_I_MARK]);
    world->waiting = (lbvh_visit *)(void *)lbvh_i_start(&b[LBVH_I_WAITING]);
    world->met = (lbvh_visit *)(void *)lbvh_i_start(&b[LBVH_I_MET]);
    world->gathered = (lbvh_real *)(void *)lbvh_i_start(&b[LBVH_I_GATHERED]);
    world->gathered_index = (int32_t *)(void *)lbvh_i_start(&b[LBVH_I_GATHERED_INDEX]);
    for (t = 0; t < 2; t++) {
        const lbvh_block *of = &b[LBVH_I_TREE_BLOCKS + 4 * t];
        world->tree[t].node = lbvh_i_start_of_nodes(&of[0]);
        world->tree[t].parent = (int32_t *)(void *)lbvh_i_start(&of[1]);
        world->tree[t].category = (uint64_t *)(void *)lbvh_i_start(&of[2]);
        world->tree[t].height = (uint8_t *)lbvh_i_start(&of[3]);
    }
    world->pair = (lbvh_pair *)(void *)lbvh_i_start(&b[LBVH_I_PAIRS]);
    world->pair_data = (unsigned char *)lbvh_i_start(&b[LBVH_I_PAIR_DATA]);
    world->begun = (int32_t *)(void *)lbvh_i_start(&b[LBVH_I_BEGUN]);
    world->ended = (int32_t *)(void *)lbvh_i_start(&b[LBVH_I_ENDED]);
    world->ended_data = world->desc.pair_bytes && world->ended
                            ? (unsigned char *)(world->ended + 2 * (size_t)world->pair_capacity)
                            : NULL;
}

/* A block of room for `count` entries of `size` bytes, with the old content where that counts. */
static int lbvh_i_extend(lbvh_world *world, int b, size_t count, size_t size, int keep)
{
    lbvh_block *old = &world->block[b], larger;
    if (count > SIZE_MAX / 2 / size) return 0;
    larger.bytes = count * size + 2 * LBVH_I_LINE;
    if (larger.bytes <= old->bytes) return 1;
    larger.memory = lbvh_i_alloc(&world->desc.allocator, larger.bytes);
    if (!larger.memory) return 0;
    if (keep && old->bytes)
        memcpy(lbvh_i_start(&larger), lbvh_i_start(old), old->bytes - LBVH_I_LINE);
    lbvh_i_release(&world->desc.allocator, old);
    *old = larger;
    lbvh_i_bind_world(world);
    return 1;
}

/* The next capacity, twice as many and 16; 0: too many. */
static int32_t lbvh_i_more(int32_t had)
{
    int32_t const most = LBVH_I_N_MAX / 4;
    if (had >= most) return 0;
    if (had > (most - 16) / 2) return most;
    return 2 * had + 16;
}

/* No search has met any object. */
static void lbvh_i_forget_marks(lbvh_world *world)
{
    world->token = 0;
    memset(world->mark, 0, (size_t)world->capacity * sizeof *world->mark);
}

/* Room for trees of n leaves. */
static int lbvh_i_grow_trees(lbvh_world *world, int32_t n)
{
    size_t const nodes = 2 * (size_t)n + 2;
    lbvh_desc desc;
    lbvh scratch;
    int t;
    for (t = 0; t < 2; t++) {
        int const b = LBVH_I_TREE_BLOCKS + 4 * t, keep = world->tree[t].leaves > 0;
        if (!lbvh_i_extend(world, b, nodes, sizeof(lbvh_node), keep) ||
            !lbvh_i_extend(world, b + 1, nodes, sizeof(int32_t), keep) ||
            !lbvh_i_extend(world, b + 2, nodes, sizeof(uint64_t), keep) ||
            !lbvh_i_extend(world, b + 3, nodes, sizeof(uint8_t), keep))
            return 0;
    }
    memset(&desc, 0, sizeof desc);
    desc.dim = world->desc.dim;
    desc.allocator = world->desc.allocator;
    memset(&scratch, 0, sizeof scratch);
    if (lbvh_reserve(&scratch, &desc, n) != LBVH_OK) {
        lbvh_free(&scratch);
        return 0;
    }
    lbvh_free(&world->scratch);
    world->scratch = scratch;
    return 1;
}

/* Room for one object more, in every array that an update needs. */
static lbvh_result lbvh_i_grow_objects(lbvh_world *world)
{
    int32_t const room = lbvh_i_more(world->capacity);
    size_t const n = (size_t)room, d = 2 * (size_t)world->desc.dim;
    if (room == 0) return LBVH_TOO_MANY;
    if (!lbvh_i_extend(world, LBVH_I_OBJECTS, n, sizeof(lbvh_object), 1) ||
        !lbvh_i_extend(world, LBVH_I_BOXES_OF, 2 * n, sizeof(lbvh_node), 1) ||
        !lbvh_i_extend(world, LBVH_I_CHANGED, n, sizeof(int32_t), 1) ||
        !lbvh_i_extend(world, LBVH_I_VACANT, n, sizeof(int32_t), world->vacant_count > 0) ||
        !lbvh_i_extend(world, LBVH_I_GATHERED, d * n, sizeof(lbvh_real), 0) ||
        !lbvh_i_extend(world, LBVH_I_GATHERED_INDEX, n, sizeof(int32_t), 0) ||
        !lbvh_i_extend(world, LBVH_I_FOUND, n + LBVH_I_VISITS, sizeof(int32_t), 0) ||
        !lbvh_i_extend(world, LBVH_I_MARK, n, sizeof(int32_t), 1) ||
        !lbvh_i_extend(world, LBVH_I_WAITING, n + LBVH_I_VISITS, sizeof(lbvh_visit), 0) ||
        !lbvh_i_extend(world, LBVH_I_MET, n + LBVH_I_VISITS, sizeof(lbvh_visit), 0) ||
        !lbvh_i_grow_trees(world, room))
        return LBVH_OUT_OF_MEMORY;
    world->capacity = room;
    lbvh_i_forget_marks(world);
    return LBVH_OK;
}

/* Room for one pair more, and for its events. One pair of room stays spare, to swap pairs. */
static int lbvh_i_grow_pairs(lbvh_world *world)
{
    int32_t const room = lbvh_i_more(world->pair_capacity);
    size_t const n = (size_t)room, bytes = (size_t)world->desc.pair_bytes;
    if (room == 0) return 0;
    if (!lbvh_i_extend(world, LBVH_I_PAIRS, n + 1, sizeof(lbvh_pair), 1)) return 0;
    if (bytes && !lbvh_i_extend(world, LBVH_I_PAIR_DATA, n + 1, bytes, 1)) return 0;
    if (!lbvh_i_extend(world, LBVH_I_BEGUN, n, 2 * sizeof(int32_t), 1)) return 0;
    if (!lbvh_i_extend(world, LBVH_I_ENDED, n, 2 * sizeof(int32_t) + bytes, 1)) return 0;
    if (bytes && world->ended_count)
        memmove(world->ended + 2 * n, world->ended + 2 * (size_t)world->pair_capacity,
                bytes * (size_t)world->ended_count);
    world->pair_capacity = room;
    lbvh_i_bind_world(world);
    return 1;
}

LBVH_API void lbvh_world_free(lbvh_world *world)
{
    if (!world) return;
    lbvh_i_release_all(&world->desc.allocator, world->block, LBVH_WORLD_BLOCKS);
    lbvh_free(&world->scratch);
    memset(world, 0, sizeof *world);
}

LBVH_API lbvh_result lbvh_world_begin(lbvh_world *world, const lbvh_world_desc *desc)
{
    lbvh_world_desc given;
    if (!world) return LBVH_BAD_ARGUMENT;
    lbvh_world_free(world);
    memset(&given, 0, sizeof given);
    if (desc) given = *desc;
    if (given.dim == 0) given.dim = 3;
    if (given.dim != 2 && given.dim != 3) return LBVH_BAD_DIM;
    if (!(given.margin >= 0) || !lbvh_i_finite(given.margin)) return LBVH_BAD_RADIUS;
    if (!(given.margin_part >= 0) || !lbvh_i_finite(given.margin_part)) return LBVH_BAD_RADIUS;
    if (given.pair_bytes < 0) return LBVH_BAD_ARGUMENT;
    if (!given.allocator.alloc != !given.allocator.free) return LBVH_BAD_ALLOCATOR;
    if (!lbvh_i_tasks_valid(&given.parallel)) return LBVH_BAD_OPTION;
    world->desc = given;
    world->tree[0].unused = world->tree[1].unused = -1;
    return LBVH_OK;
}

/* ------------------------------------------------------------------------------------------------
   >>world-trees: leaves added, removed and refitted (figure at >>world)
   ---------------------------------------------------------------------------------------------- */

/* The height of a node with children u and u + 1. */
static uint8_t lbvh_i_height_over(const lbvh_world_tree *tree, int32_t u)
{
    uint8_t const l = tree->height[u], r = tree->height[u + 1], most = l > r ? l : r;
    return (uint8_t)(most < 255 ? most + 1 : 255);
}

/* Corrects an inner node by its children; 0: it was right. */
LBVH_FN_HOT int lbvh_i_refit_node(lbvh_world_tree *tree, int32_t at)
{
    lbvh_node *node = &tree->node[at];
    int32_t const l = node->link, r = l + 1;
    uint64_t const category = tree->category[l] | tree->category[r];
    lbvh_node united = *node;
    lbvh_i_unite(&united, &tree->node[l], &tree->node[r]);
    if (category == tree->category[at] && lbvh_i_same_box(&united, node)) return 0;
    *node = united;
    tree->category[at] = category;
    return 1;
}

/* Corrects the nodes from `at` up to the first one that was right. */
static void lbvh_i_refit_up(lbvh_world_tree *tree, int32_t at)
{
    while (at >= 0 && lbvh_i_refit_node(tree, at)) at = tree->parent[at];
}

/* An eighth of the edges of the union of two boxes, added up. (Edges, not surfaces, also in 3D:
   neither they nor their growth leave the range of numbers, whatever the boxes.) */
LBVH_FN_HOT lbvh_real lbvh_i_united_size(const lbvh_node *l, const lbvh_node *r)
{
#ifdef LBVH_I_SSE2
    /* min, link, max, skip: the fourth numbers are left out (as floats, many would be denormal) */
    const float *const a = (const float *)(const void *)l, *b = (const float *)(const void *)r;
    __m128 const three = _mm_castsi128_ps(_mm_set_epi32(0, -1, -1, -1)),
                 eighth = _mm_and_ps(three, _mm_set1_ps(0.125f)),
                 lower = _mm_and_ps(three, _mm_min_ps(_mm_loadu_ps(a), _mm_loadu_ps(b))),
                 upper = _mm_and_ps(three, _mm_max_ps(_mm_loadu_ps(a + 4), _mm_loadu_ps(b + 4))),
                 edge = _mm_sub_ps(_mm_mul_ps(upper, eighth), _mm_mul_ps(lower, eighth)),
                 two = _mm_add_ps(edge, _mm_movehl_ps(edge, edge));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
#else
    lbvh_real size = 0;
    int a;
    for (a = 0; a < 3; a++)
        size += lbvh_i_max(l->max[a], r->max[a]) / 8 - lbvh_i_min(l->min[a], r->min[a]) / 8;
    return size;
#endif
}

/* The lowest node from `from` up that holds a new box, or else the root; the nodes above it take in
   its category. From there a leaf that moves a little is put back in a few steps, in nodes that its
   removal has read (as btDbvt of Bullet does). */
static int32_t lbvh_i_climb(lbvh_world_tree *tree, int32_t from, const lbvh_node *box,
                            uint64_t category)
{
    int32_t at = from, up;
    while (at > 0 && !lbvh_i_holds(&tree->node[at], box)) at = tree->parent[at];
    for (up = tree->parent[at]; up >= 0; up = tree->parent[up]) {
        if ((tree->category[up] & category) == category) break;
        tree->category[up] |= category;
    }
    return at;
}

/* The node from `at` down beside which a new leaf enlarges the tree least: greedily, by what a new
   parent costs here, and what it costs further down at least (Catto, Dynamic Bounding Volume
   Hierarchies, 2019). Every node on the way takes in the new box. */
static int32_t lbvh_i_descend(lbvh_world_tree *tree, int32_t at, const lbvh_node *box,
                              uint64_t category)
{
    while (tree->node[at].link >= 0) {
        lbvh_node *node = &tree->node[at];
        int32_t const l = node->link;
        const lbvh_node *left = &tree->node[l], *right = left + 1;
        lbvh_real const here = lbvh_i_united_size(node, node);
        LBVH_I_PREFETCH(&tree->node[left->link < 0 ? l : left->link]);
        LBVH_I_PREFETCH(&tree->node[right->link < 0 ? l : right->link]);
        lbvh_real in_left = lbvh_i_united_size(left, box),
                  in_right = lbvh_i_united_size(right, box);
        if (left->link >= 0) in_left -= lbvh_i_united_size(left, left);
        if (right->link >= 0) in_right -= lbvh_i_united_size(right, right);
        /* a new parent costs the united size; below, the node grows to that from `here` */
        if ((here < in_left) & (here < in_right)) break;
        lbvh_i_unite(node, node, box);
        tree->category[at] |= category;
        at = in_left <= in_right ? l : l + 1;
    }
    return at;
}

/* Node `at`, whose box and skip are there, becomes the leaf of an object. */
static void lbvh_i_bind_leaf(lbvh_world *world, lbvh_world_tree *tree, int32_t at, int32_t index)
{
    lbvh_object *object = &world->object[index];
    tree->node[at].link = ~index;
    tree->category[at] = object->filter.category;
    tree->height[at] = 0;
    object->leaf = at;
    object->tree = (uint8_t)(tree - world->tree);
}

static void lbvh_i_put_leaf(lbvh_world *world, lbvh_world_tree *tree, int32_t at, int32_t index,
                            int32_t skip)
{
    lbvh_node *node = &tree->node[at];
    *node = *lbvh_i_box_stored(world, index);
    lbvh_i_fill_gaps(node);
    node->skip = skip;
    lbvh_i_bind_leaf(world, tree, at, index);
}

/* A node apart from its tree, with what is below it. */
typedef struct lbvh_i_limb {
    lbvh_node node;
    uint64_t category;
    uint8_t height;
} lbvh_i_limb;

/* Two free nodes, side by side. There always are: see lbvh_i_grow_trees. */
static int32_t lbvh_i_take_two(lbvh_world_tree *tree)
{
    int32_t const u = tree->unused;
    if (u >= 0) {
        tree->unused = tree->node[u].link;
        return u;
    }
    tree->used += 2;
    return tree->used - 2;
}

/* 1 if so many inner nodes above a leaf are more than 2 log2(leaves) + 16, the logarithm rounded
   down: then insertions shorten the way to it. */
LBVH_FN_HOT int lbvh_i_deeper(int32_t height, int32_t leaves)
{
    int32_t const bits = (height - 15) / 2;
    return height > 16 && (bits > 30 || leaves >> bits == 0);
}

/* Sets the skip of the last leaf below a node, and of all nodes that end with it. */
static void lbvh_i_end_with(lbvh_world_tree *tree, int32_t at, int32_t skip)
{
    for (; tree->node[at].link >= 0; at = tree->node[at].link + 1) tree->node[at].skip = skip;
    tree->node[at].skip = skip;
}

/* Node `at` becomes another one, with all that is below it. */
static void lbvh_i_put_limb(lbvh_world *world, lbvh_world_tree *tree, int32_t at,
                               const lbvh_i_limb *from, int32_t skip)
{
    int32_t const link = from->node.link;
    tree->node[at] = from->node;
    tree->category[at] = from->category;
    tree->height[at] = from->height;
    if (link < 0) world->object[~link].leaf = at;
    else tree->parent[link] = tree->parent[link + 1] = at;
    lbvh_i_end_with(tree, at, skip);
}

static lbvh_i_limb lbvh_i_limb_at(const lbvh_world_tree *tree, int32_t at)
{
    lbvh_i_limb subtree;
    subtree.node = tree->node[at];
    subtree.category = tree->category[at];
    subtree.height = tree->height[at];
    return subtree;
}

/* Corrects the heights from `at` up to the first one that was right. */
static void lbvh_i_measure_up(lbvh_world_tree *tree, int32_t at)
{
    for (; at >= 0; at = tree->parent[at]) {
        uint8_t const height = lbvh_i_height_over(tree, tree->node[at].link);
        if (tree->height[at] == height) return;
        tree->height[at] = height;
    }
}

/* Swaps a node and a child of its sibling, with all that is below them. */
static void lbvh_i_swap(lbvh_world *world, lbvh_world_tree *tree, int32_t node, int32_t nephew)
{
    lbvh_i_limb const up = lbvh_i_limb_at(tree, nephew), down = lbvh_i_limb_at(tree, node);
    int32_t const inner = tree->parent[nephew], l = tree->node[inner].link;
    lbvh_i_put_limb(world, tree, node, &up, down.node.skip);
    lbvh_i_put_limb(world, tree, nephew, &down, up.node.skip);
    lbvh_i_unite(&tree->node[inner], &tree->node[l], &tree->node[l + 1]);
    tree->category[inner] = tree->category[l] | tree->category[l + 1];
    tree->height[inner] = lbvh_i_height_over(tree, l);
}

/* A rotation (Kopta et al., Fast, Effective BVH Updates for Animated Scenes, 2012): the sibling of
   an inner node and one of its children swap places, where that makes the node smaller. One that
   makes a tree deeper that is deep enough is left out. 0: nothing was swapped.

              *                      *
             / \                    / \
            B   inner     ->       F   inner: becomes the box of B and G
                / \                    / \
               F   G                  B   G
*/
static int lbvh_i_rotate_limb(lbvh_world *world, lbvh_world_tree *tree, int32_t inner)
{
    int32_t const sibling = inner % 2 ? inner + 1 : inner - 1, f = tree->node[inner].link;
    const lbvh_node *left = &tree->node[f], *other = &tree->node[sibling];
    lbvh_real const size = lbvh_i_united_size(&tree->node[inner], &tree->node[inner]),
                    with_left = lbvh_i_united_size(other, left),
                    with_right = lbvh_i_united_size(other, left + 1);
    if ((with_left >= size) & (with_right >= size)) return 0;
    if (tree->height[sibling] >= tree->height[inner] &&
        lbvh_i_deeper(tree->height[0] + 1, tree->leaves))
        return 0;
    lbvh_i_swap(world, tree, sibling, with_left < with_right ? f + 1 : f);
    return 1;
}

/* A leaf that is deepest below the root. */
static int32_t lbvh_i_deepest(const lbvh_world_tree *tree)
{
    int32_t at = 0;
    while (tree->node[at].link >= 0) {
        int32_t const l = tree->node[at].link;
        at = tree->height[l] > tree->height[l + 1] ? l : l + 1;
    }
    return at;
}

/* The subtrees beside the way from a leaf up, and the leaf; and the pairs of nodes between them. */
typedef struct lbvh_i_path {
    lbvh_i_limb part[LBVH_STACK];
    int32_t two[LBVH_STACK];
    int32_t parts, twos;
} lbvh_i_path;

/* How much a subtree weighs: the leaves of a full tree of its height. */
static uint64_t lbvh_i_weight(const lbvh_i_limb *part)
{
    return (uint64_t)1 << (part->height < 56 ? part->height : 56);
}

/* Sorts some of the parts by their centres along the axis on which these are furthest apart. */
static void lbvh_i_sort_parts(lbvh_i_limb *part, int32_t count)
{
    lbvh_real low[3] = {0, 0, 0}, high[3] = {0, 0, 0};
    int32_t i, k;
    int a, along = 0;
    for (i = 0; i < count; i++)
        for (a = 0; a < 3; a++) {
            lbvh_real const c = lbvh_i_half_centre(part[i].node.min[a], part[i].node.max[a]);
            if (i == 0 || c < low[a]) low[a] = c;
            if (i == 0 || c > high[a]) high[a] = c;
        }
    for (a = 1; a < 3; a++)
        if (high[a] - low[a] > high[along] - low[along]) along = a;
    for (i = 1; i < count; i++) {
        lbvh_i_limb const held = part[i];
        lbvh_real const c = lbvh_i_half_centre(held.node.min[along], held.node.max[along]);
        for (k = i; k > 0 && lbvh_i_half_centre(part[k - 1].node.min[along],
                                                part[k - 1].node.max[along]) > c; k--)
            part[k] = part[k - 1];
        part[k] = held;
    }
}

/* How many of the first parts weigh half of all, as nearly as possible; some on both sides. */
static int32_t lbvh_i_half_of_parts(const lbvh_i_limb *part, int32_t count)
{
    uint64_t all = 0, before = 0;
    int32_t k;
    for (k = 0; k < count; k++) all += lbvh_i_weight(&part[k]);
    for (k = 0; k < count - 1; k++) {
        uint64_t const weight = lbvh_i_weight(&part[k]);
        if (2 * before + weight >= all) break; /* it lies beyond the middle, mostly */
        before += weight;
    }
    return k > 0 ? k : 1;
}

/* Builds a tree of parts in node `at`, by halves of their weight. No part of weight w of W is then
   below more than 2 + log2(W / w) nodes (Mehlhorn, Nearly Optimal Binary Search Trees, 1975). */
static void lbvh_i_join_parts(lbvh_world *world, lbvh_world_tree *tree, lbvh_i_path *way,
                              int32_t at, int32_t begin, int32_t end, int32_t skip)
{
    int32_t u, middle;
    if (end - begin == 1) {
        lbvh_i_put_limb(world, tree, at, &way->part[begin], skip);
        return;
    }
    lbvh_i_sort_parts(way->part + begin, end - begin);
    middle = begin + lbvh_i_half_of_parts(way->part + begin, end - begin);
    u = way->two[--way->twos];
    tree->parent[u] = tree->parent[u + 1] = at;
    lbvh_i_join_parts(world, tree, way, u, begin, middle, u + 1);
    lbvh_i_join_parts(world, tree, way, u + 1, middle, end, skip);
    lbvh_i_unite(&tree->node[at], &tree->node[u], &tree->node[u + 1]);
    lbvh_i_fill_gaps(&tree->node[at]);
    tree->node[at].link = u;
    tree->node[at].skip = skip;
    tree->category[at] = tree->category[u] | tree->category[u + 1];
    tree->height[at] = lbvh_i_height_over(tree, u);
}

/* Goes up from a deepest leaf, until what lies beside the way makes, with the leaf, a tree that is
   lower by 8 nodes or more, and builds that. O(LBVH_STACK^2), whatever the tree's size. 0: there is
   no such place. */
static int lbvh_i_shorten(lbvh_world *world, lbvh_world_tree *tree, int32_t deepest)
{
    enum { GAIN = 8 };
    lbvh_i_path way;
    uint64_t weight = 1;
    int32_t at = deepest, bits = 0;
    way.part[0] = lbvh_i_limb_at(tree, deepest);
    way.twos = 0;
    for (way.parts = 1; at > 0 && way.parts < LBVH_STACK;) {
        way.part[way.parts] = lbvh_i_limb_at(tree, at % 2 ? at + 1 : at - 1);
        weight += lbvh_i_weight(&way.part[way.parts++]);
        at = tree->parent[at];
        way.two[way.twos++] = tree->node[at].link;
        while (bits < 63 && weight >> bits > 1) bits++;
        if (way.twos - (bits + 3) < GAIN) continue;
        lbvh_i_join_parts(world, tree, &way, at, 0, way.parts, tree->node[at].skip);
        lbvh_i_measure_up(tree, tree->parent[at]);
        return 1;
    }
    return 0;
}

/* Keeps the tree's depth within O(log n), and within what walks have room for. One leaf that is
   added high in the tree can deepen many ways. So a few are shortened; where that is not enough,
   time after time, the tree is built again. */
static void lbvh_i_limit_depth(lbvh_world *world, lbvh_world_tree *tree)
{
    enum { WAYS = 8 };
    int way;
    for (way = 0; way < WAYS && lbvh_i_deeper(tree->height[0], tree->leaves); way++)
        if (!lbvh_i_shorten(world, tree, lbvh_i_deepest(tree))) break;
    if (tree->height[0] > LBVH_STACK - 2) tree->too_deep = 1;
}

/* Adds the leaf of an object to a tree that has some (an empty one is built); `beside`: a node that
   is probably not far from it. */
static void lbvh_i_add_leaf(lbvh_world *world, lbvh_world_tree *tree, int32_t index, int32_t beside)
{
    lbvh_node const *box = lbvh_i_box_stored(world, index);
    uint64_t const category = world->object[index].filter.category;
    lbvh_i_limb split;
    int32_t at, from, u, skip;
    tree->leaves++;
    from = lbvh_i_climb(tree, beside, box, category);
    at = lbvh_i_descend(tree, from, box, category);
    u = lbvh_i_take_two(tree);
    skip = tree->node[at].skip;
    /* a leaf that is split has its old stored box still, where that has changed meanwhile */
    split = lbvh_i_limb_at(tree, at);
    lbvh_i_put_limb(world, tree, u, &split, u + 1);
    lbvh_i_put_leaf(world, tree, u + 1, index, skip);
    lbvh_i_unite(&tree->node[at], &tree->node[at], box);
    tree->category[at] |= category;
    tree->node[at].link = u;
    tree->node[at].skip = skip;
    tree->parent[u] = tree->parent[u + 1] = at;
    lbvh_i_measure_up(tree, at);
    for (; at != from; at = tree->parent[at]) {
        int32_t const other = at % 2 ? at + 1 : at - 1;
        int swapped = lbvh_i_rotate_limb(world, tree, at);
        if (tree->height[other] > tree->height[at])
            swapped |= lbvh_i_rotate_limb(world, tree, other);
        if (swapped) lbvh_i_measure_up(tree, tree->parent[at]);
    }
    lbvh_i_limit_depth(world, tree);
}

/* Removes an object's leaf. The node where its sibling is now. */
static int32_t lbvh_i_drop_leaf(lbvh_world *world, int32_t index)
{
    lbvh_object *object = &world->object[index];
    lbvh_world_tree *tree = &world->tree[object->tree];
    int32_t const leaf = object->leaf;
    lbvh_i_limb sibling;
    int32_t p, u;
    object->leaf = -1;
    if (--tree->leaves == 0) return 0;
    p = tree->parent[leaf];
    u = tree->node[p].link;
    sibling = lbvh_i_limb_at(tree, u == leaf ? u + 1 : u);
    lbvh_i_put_limb(world, tree, p, &sibling, tree->node[p].skip);
    tree->node[u].link = tree->unused;
    tree->unused = u;
    lbvh_i_refit_up(tree, tree->parent[p]);
    lbvh_i_measure_up(tree, tree->parent[p]);
    return p;
}

/* Prefetches the object that lbvh_i_bind_leaf writes a few leaves after this one of scratch. */
LBVH_FN_HOT void lbvh_i_prefetch_bound(const lbvh_world *world, int32_t leaf)
{
    const lbvh *from = &world->scratch;
    int32_t const last = 2 * from->n - 2, coming = leaf + 8 < last ? leaf + 8 : last;
    LBVH_I_PREFETCH(&world->object[world->gathered_index[from->node[coming].link]].leaf);
}

/* Categories and heights of the inner nodes among begin .. end - 1, whose children come after them,
   from those of leaves. */
static void lbvh_i_unite_categories(lbvh_world_tree *tree, int32_t begin, int32_t end)
{
    int32_t at;
    for (at = end - 1; at >= begin; at--) {
        int32_t const l = tree->node[at].link;
        if (l < 0) continue;
        tree->category[at] = tree->category[l] | tree->category[l + 1];
        tree->height[at] = lbvh_i_height_over(tree, l);
    }
}

/* A node of the scratch tree and its first leaf; where it goes, and where what is below it does. */
typedef struct lbvh_i_copied { int32_t from, first, at, below; } lbvh_i_copied;

static int32_t lbvh_i_leaves_of(const lbvh_world *world, lbvh_i_copied which)
{
    return lbvh_last_place(&world->scratch, &world->scratch.node[which.from]) - which.first + 1;
}

/* Copies a node. An inner one: its children are the first two of `next`, the left one last; 1. */
static int lbvh_i_copy_node(lbvh_world *world, lbvh_world_tree *tree, lbvh_i_copied which,
                            lbvh_i_copied *next)
{
    const lbvh *from = &world->scratch;
    const lbvh_node *node = &from->node[which.from];
    int32_t const at = which.at, u = which.below;
    tree->node[at] = *node;
    tree->node[at].skip = at == 0 ? -1 : at % 2 ? at + 1 : tree->node[tree->parent[at]].skip;
    if (lbvh_is_leaf(from, which.from)) {
        lbvh_i_prefetch_bound(world, which.from);
        lbvh_i_bind_leaf(world, tree, at, world->gathered_index[node->link]);
        return 0;
    }
    tree->node[at].link = u;
    tree->parent[u] = tree->parent[u + 1] = at;
    next[1].from = node->link;
    next[1].first = which.first;
    next[1].at = u;
    next[1].below = u + 2;
    next[0].from = lbvh_right_child(from, node);
    next[0].first = lbvh_split_place(from, node) + 1;
    next[0].at = u + 1;
    next[0].below = u + 2 + 2 * (next[0].first - which.first - 1);
    return 1;
}

/* Copies a node and all below it. */
static void lbvh_i_copy_below(lbvh_world *world, lbvh_world_tree *tree, lbvh_i_copied which)
{
    lbvh_i_copied waiting[LBVH_STACK + 2];
    int32_t const nodes = 2 * lbvh_i_leaves_of(world, which) - 2;
    int32_t top = 1;
    waiting[0] = which;
    while (top > 0) {
        lbvh_i_copied const next = waiting[--top];
        top += 2 * lbvh_i_copy_node(world, tree, next, waiting + top);
    }
    lbvh_i_unite_categories(tree, which.below, which.below + nodes);
    lbvh_i_unite_categories(tree, which.at, which.at + 1);
}

/* The nodes of the built scratch tree, in depth-first order, siblings side by side. */
static void lbvh_i_copy_scratch(lbvh_world *world, lbvh_world_tree *tree)
{
    lbvh_i_copied root;
    int32_t const n = world->scratch.n;
    tree->leaves = n;
    tree->used = n > 0 ? 2 * n - 1 : 1;
    tree->unused = -1;
    tree->changes = tree->too_deep = 0;
    tree->parent[0] = -1;
    root.from = root.first = root.at = 0;
    root.below = 1;
    if (n > 0 && !lbvh_i_copy_in_pieces(world, tree, &root))
        lbvh_i_copy_below(world, tree, root);
}

/* The leaves begin .. end - 1 of the scratch tree, in their order, as a balanced tree in node
   `at`. */
static void lbvh_i_halve_leaves(lbvh_world *world, lbvh_world_tree *tree, int32_t at, int32_t begin,
                                int32_t end)
{
    const lbvh *from = &world->scratch;
    int32_t const u = tree->used, middle = begin + (end - begin) / 2;
    lbvh_node *node = &tree->node[at];
    if (end - begin == 1) {
        int32_t const index = world->gathered_index[from->node[from->first_leaf + begin].link],
                      skip = node->skip;
        *node = from->node[from->first_leaf + begin];
        node->skip = skip;
        lbvh_i_bind_leaf(world, tree, at, index);
        return;
    }
    tree->used += 2;
    tree->parent[u] = tree->parent[u + 1] = at;
    tree->node[u].skip = u + 1;
    tree->node[u + 1].skip = node->skip;
    lbvh_i_halve_leaves(world, tree, u, begin, middle);
    lbvh_i_halve_leaves(world, tree, u + 1, middle, end);
    lbvh_i_unite(node, &tree->node[u], &tree->node[u + 1]);
    lbvh_i_fill_gaps(node);
    node->link = u;
}

/* The same tree as deep as log2 of its leaves: for boxes whose sizes and places span so many powers
   of two that lbvh_build's tree is deep. */
static void lbvh_i_halve(lbvh_world *world, lbvh_world_tree *tree)
{
    tree->used = 1;
    tree->node[0].skip = -1;
    lbvh_i_halve_leaves(world, tree, 0, 0, tree->leaves);
    lbvh_i_unite_categories(tree, 0, tree->used);
}

/* Of the reasons of an update the gravest counts. */
static void lbvh_i_give_reason(lbvh_world *world, lbvh_reason reason)
{
    if (world->reason < reason) world->reason = reason;
}

/* The tree in which an object's leaf belongs: 0 moving, 1 at rest. */
static int lbvh_i_tree_wanted(const lbvh_object *object) { return object->wanted != LBVH_MOVING; }

enum { LBVH_I_NO_OBJECT = INT32_MAX };  /* in a leaf of a tree that is rebuilt next: forgotten */

/* Adds a box to those of a rebuild; their number. */
LBVH_FN_HOT int32_t lbvh_i_gather(const lbvh_world *world, int32_t index, const lbvh_node *box,
                                  int32_t n)
{
    int const dim = world->desc.dim;
    lbvh_real *to = world->gathered + 2 * (size_t)dim * (size_t)n;
    int a;
    for (a = 0; a < dim; a++) {
        to[a] = box->min[a];
        to[dim + a] = box->max[a];
    }
    world->gathered_index[n] = index;
    return n + 1;
}

/* Of the changed objects begin .. end - 1 those without a leaf that belong into tree t, from number
   n on; `write` 0: only counts them. The number after the last one. */
static int32_t lbvh_i_gather_some(const lbvh_world *world, int t, int32_t begin, int32_t end,
                                  int32_t n, int write)
{
    int32_t k;
    for (k = begin; k < end; k++) {
        int32_t const index = world->changed[k];
        const lbvh_object *object = &world->object[index];
        if (!object->alive || object->leaf >= 0 || lbvh_i_tree_wanted(object) != t) continue;
        if (write) (void)lbvh_i_gather(world, index, lbvh_i_box_stored(world, index), n);
        n++;
    }
    return n;
}

/* The objects of a rebuild, with their boxes: those whose leaves did not change, in the order of
   the tree, and the changed ones, which have none. Their number. No other object is looked at. */
static int32_t lbvh_i_gather_tree(lbvh_world *world, int t, int32_t unchanged)
{
    const lbvh_world_tree *tree = &world->tree[t];
    int32_t at = 0, n = 0, k;
    while (n < unchanged) {
        const lbvh_node *node = &tree->node[at];
        int32_t const index = ~node->link;
        at = node->link < 0 ? node->skip : node->link;
        if (index < 0 || index == LBVH_I_NO_OBJECT) continue;
        n = lbvh_i_gather(world, index, node, n);
    }
    k = lbvh_i_gather_in_pieces(world, t, n);
    return k >= 0 ? k : lbvh_i_gather_some(world, t, 0, world->changed_count, n, 1);
}

/* Builds one tree again, of the leaves that did not change and the changed objects that belong
   there. It cannot fail: the memory is reserved, the boxes were checked, and where a task is left
   out the build is repeated without tasks. */
static void lbvh_i_rebuild(lbvh_world *world, int t, int32_t unchanged)
{
    lbvh_desc desc = world->scratch.desc;
    lbvh_world_tree *tree = &world->tree[t];
    int32_t const n = lbvh_i_gather_tree(world, t, unchanged);
    int const halve = tree->too_deep;
    desc.parallel = world->desc.parallel;
    if (lbvh_build(&world->scratch, &desc, world->gathered, 0, n) != LBVH_OK) {
        world->not_run = 1;
        desc.parallel.run = NULL;
        (void)lbvh_build(&world->scratch, &desc, world->gathered, 0, n);
    }
    lbvh_i_copy_scratch(world, tree);
    if (n > 1 && (halve || lbvh_i_deeper(tree->height[0], n))) lbvh_i_halve(world, tree);
    lbvh_i_give_reason(world, LBVH_REBUILT);
}

/* ------------------------------------------------------------------------------------------------
   >>world-pairs: the lists of pairs. Entry 2 p + side is pair p in the list of its object[side].
   ---------------------------------------------------------------------------------------------- */

/* The caller's bytes of a pair. */
static void *lbvh_i_data_of(const lbvh_world *world, int32_t p)
{
    return world->pair_data + (size_t)p * (size_t)world->desc.pair_bytes;
}

/* Moves a pair to another place, and the links to it. *follow: an entry that is kept track of. */
static void lbvh_i_move_pair(lbvh_world *world, int32_t from, int32_t to, int32_t *follow)
{
    lbvh_pair *pair = &world->pair[to];
    int32_t side;
    if (from == to) return;
    *pair = world->pair[from];
    if (world->desc.pair_bytes)
        memcpy(lbvh_i_data_of(world, to), lbvh_i_data_of(world, from),
               (size_t)world->desc.pair_bytes);
    for (side = 0; side < 2; side++) {
        int32_t const entry = 2 * to + side, next = pair->next[side], prev = pair->prev[side];
        if (next >= 0) world->pair[next / 2].prev[next % 2] = entry;
        if (prev >= 0) world->pair[prev / 2].next[prev % 2] = entry;
        else world->object[pair->object[side]].first_pair = entry;
    }
    if (*follow >= 0 && *follow / 2 == from) *follow = 2 * to + *follow % 2;
}

/* Moves a pair to those with an object that moves, or to the others, by its objects' states. */
static void lbvh_i_sort_in(lbvh_world *world, int32_t p, int32_t *follow)
{
    const lbvh_pair *pair = &world->pair[p];
    int const moves = world->object[pair->object[0]].state == LBVH_MOVING ||
                      world->object[pair->object[1]].state == LBVH_MOVING;
    int32_t const border = moves ? world->active : world->active - 1;
    if (moves == (p < world->active)) return;
    if (p != border) {
        int32_t const spare = world->pair_capacity;
        lbvh_i_move_pair(world, p, spare, follow);
        lbvh_i_move_pair(world, border, p, follow);
        lbvh_i_move_pair(world, spare, border, follow);
    }
    world->active += moves ? 1 : -1;
}

/* Takes a pair out of the lists of both objects. */
static void lbvh_i_unlink(lbvh_world *world, const lbvh_pair *pair)
{
    int side;
    for (side = 0; side < 2; side++) {
        int32_t const next = pair->next[side], prev = pair->prev[side];
        if (next >= 0) world->pair[next / 2].prev[next % 2] = prev;
        if (prev >= 0) world->pair[prev / 2].next[prev % 2] = next;
        else world->object[pair->object[side]].first_pair = next;
    }
}

/* Ends a pair; the last ones of both parts move into the gaps. */
static void lbvh_i_end_pair(lbvh_world *world, int32_t p, int32_t *follow)
{
    const lbvh_pair *pair = &world->pair[p];
    size_t const bytes = (size_t)world->desc.pair_bytes, e = (size_t)world->ended_count++;
    world->ended[2 * e] = pair->object[0];
    world->ended[2 * e + 1] = pair->object[1];
    if (bytes) memcpy(world->ended_data + bytes * e, lbvh_i_data_of(world, p), bytes);
    lbvh_i_unlink(world, pair);
    if (p < world->active) {
        lbvh_i_move_pair(world, --world->active, p, follow);
        p = world->active;
    }
    lbvh_i_move_pair(world, --world->pairs, p, follow);
}

/* Puts pair p first in the list of its object on that side. */
static void lbvh_i_link(lbvh_world *world, int32_t p, int side, int32_t index)
{
    lbvh_pair *pair = &world->pair[p];
    int32_t const first = world->object[index].first_pair;
    pair->object[side] = index;
    pair->prev[side] = -1;
    pair->next[side] = first;
    if (first >= 0) world->pair[first / 2].prev[first % 2] = 2 * p + side;
    world->object[index].first_pair = 2 * p + side;
}

/* Begins a pair; 0: no memory. */
static int lbvh_i_begin_pair(lbvh_world *world, int32_t a, int32_t b)
{
    size_t const e = (size_t)world->begun_count;
    int32_t p = world->pairs, follow = -1;
    if (p == world->pair_capacity && !lbvh_i_grow_pairs(world)) return 0;
    world->pairs++;
    world->begun_count++;
    lbvh_i_link(world, p, 0, a);
    lbvh_i_link(world, p, 1, b);
    if (world->desc.pair_bytes)
        memset(lbvh_i_data_of(world, p), 0, (size_t)world->desc.pair_bytes);
    world->begun[2 * e] = a;
    world->begun[2 * e + 1] = b;
    lbvh_i_sort_in(world, p, &follow);
    return 1;
}

/* 1 if these two objects may be a pair at all. */
static int lbvh_i_may_pair(const lbvh_object *a, const lbvh_object *b)
{
    return (a->state != LBVH_FIXED || b->state != LBVH_FIXED) &&
           lbvh_filters_allow(&a->filter, &b->filter);
}

/* Ends those pairs of an object that no longer hold, and sorts the others in. An object that was
   met and is paired already loses its mark: that pair does not begin. */
static void lbvh_i_review_pairs(lbvh_world *world, int32_t index)
{
    const lbvh_object *own = &world->object[index];
    const lbvh_node *box = lbvh_i_box_stored(world, index);
    int32_t entry = own->first_pair;
    while (entry >= 0) {
        int32_t const p = entry / 2;
        const lbvh_pair *pair = &world->pair[p];
        int32_t const other = pair->object[1 - entry % 2];
        int const met = world->mark[other] == world->token;
        entry = pair->next[entry % 2];
        world->mark[other] &= met - 1;
        if (!own->alive ||
            (!met && !lbvh_i_nodes_touch(lbvh_i_box_stored(world, other), box)) ||
            ((own->changed & (LBVH_I_REFILTER | LBVH_I_STATE)) &&
             !lbvh_i_may_pair(own, &world->object[other])))
            lbvh_i_end_pair(world, p, &entry);
        else if (own->changed & LBVH_I_STATE) lbvh_i_sort_in(world, p, &entry);
    }
}

/* Prefetches what lbvh_i_review_pairs will read for these objects. A list is a chain of dependent
   loads: those of several objects are followed at the same time, without branches (of a list that
   has ended pair 0 is read). (Inline: gcc 12 takes a function that only prefetches for one without
   effects, and leaves its calls out.) */
LBVH_FN_HOT void lbvh_i_prefetch_pairs(const lbvh_world *world, const int32_t *index,
                                       int32_t count)
{
    int32_t entry[LBVH_I_GROUP], k, step, left = world->pairs;
    for (k = 0; k < count; k++) entry[k] = world->object[index[k]].first_pair;
    for (step = 0; left > 0 && step < 2 * LBVH_I_GROUP; step++)
        for (left = k = 0; k < count; k++) {
            int32_t const more = entry[k] >= 0, at = entry[k] & -more, side = at & 1;
            const lbvh_pair *pair = &world->pair[at >> 1];
            LBVH_I_PREFETCH(lbvh_i_box_given(world, pair->object[1 - side]));
            entry[k] = pair->next[side] | (more - 1);
            LBVH_I_PREFETCH(&world->pair[(entry[k] & -(entry[k] >= 0)) >> 1]);
            left += more;
        }
}

/* Begins the pairs of an object with what its search met and no pair has. 0: no memory. */
static int lbvh_i_begin_pairs(lbvh_world *world, int32_t index, const int32_t *found,
                              int32_t count)
{
    int32_t k;
    for (k = 0; k < count; k++) {
        int32_t const other = found[k];
        if (world->mark[other] != world->token) continue;
        if (!lbvh_i_may_pair(&world->object[index], &world->object[other])) continue;
        if (world->desc.allow && !world->desc.allow(world->desc.user, index, other)) continue;
        if (!lbvh_i_begin_pair(world, index, other)) return 0;
    }
    return 1;
}

/* What a search compares with the nodes. */
typedef struct lbvh_i_wanted {
    lbvh_node box;
    uint64_t mask;
} lbvh_i_wanted;

/* Searches that go through a tree together. Each one's way down is a chain of loads, each of which
   waits for the one before; those of several searches overlap. */
typedef struct lbvh_i_group {
    int32_t index[LBVH_I_GROUP];
    int32_t first[LBVH_I_GROUP + 1]; /* where in `found` what each one met begins */
    lbvh_i_wanted wanted[LBVH_I_GROUP];
    lbvh_visit *waiting, *visited;      /* [room] nodes to go into; ~objects met */
    int32_t *found;                     /* [found_room] objects met, by search */
    int32_t count, met, room, found_room;
    int masked;     /* some mask leaves something out */
    int later;      /* only leaves of the own tree that follow the own one: all of them search */
} lbvh_i_group;

/* Where the next node that waits is written, and the next object met. */
typedef struct lbvh_i_visited {
    lbvh_visit *waiting, *met;
} lbvh_i_visited;

/* Tests a node for search s. It is written behind what waits and behind what was met, and counted
   in one of them or in none: no branch depends on the test, which would often be mispredicted. */
LBVH_FN_HOT void lbvh_i_visit_node(const lbvh_world_tree *tree, const lbvh_i_group *group,
                                   int32_t at, int32_t s, lbvh_i_visited *visited)
{
    const lbvh_i_wanted *const wanted = &group->wanted[s];
    int wants = lbvh_i_nodes_touch(&tree->node[at], &wanted->box);
    lbvh_visit next;
    next.at = tree->node[at].link;
    next.search = s;
    if (group->masked) wants &= (tree->category[at] & wanted->mask) != 0;
    *visited->waiting = *visited->met = next;
    visited->waiting += wants & (next.at >= 0);
    visited->met += wants & (next.at < 0);
}

/* Where search s begins in tree t; -1: nowhere. Static objects meet no other ones at rest, unless
   some sleep. */
static int32_t lbvh_i_search_from(const lbvh_world *world, const lbvh_i_group *group, int t,
                                  int32_t s)
{
    const lbvh_object *own = &world->object[group->index[s]];
    if (world->tree[t].leaves == 0) return -1;
    if (own->tree != t) return 0;
    if (own->state == LBVH_FIXED && world->sleepers == 0) return -1;
    return group->later ? world->tree[t].node[own->leaf].skip : 0;
}

/* Searches tree t, breadth first. 0: what they visit has no room. */
static int lbvh_i_search_tree(const lbvh_world *world, lbvh_i_group *group, int t)
{
    const lbvh_world_tree *tree = &world->tree[t];
    const lbvh_visit *const waiting_end = group->waiting + group->room - 2,
                     *const met_end = group->visited + group->room - 2;
    const lbvh_visit *visit;
    lbvh_i_visited visited;
    int32_t s, at;
    visited.waiting = group->waiting;
    visited.met = group->visited + group->met;
    for (s = 0; s < group->count; s++)
        for (at = lbvh_i_search_from(world, group, t, s); at >= 0; at = tree->node[at].skip) {
            if (visited.waiting > waiting_end || visited.met > met_end) return 0;
            lbvh_i_visit_node(tree, group, at, s, &visited);
        }
    for (visit = group->waiting; visit < visited.waiting; visit++) {
        if (visited.waiting > waiting_end || visited.met > met_end) return 0;
        at = visit->at;
        s = visit->search;
        lbvh_i_visit_node(tree, group, at, s, &visited);
        lbvh_i_visit_node(tree, group, at + 1, s, &visited);
    }
    group->met = (int32_t)(visited.met - group->visited);
    return 1;
}

/* Sorts what the searches met by search, stable. */
static void lbvh_i_sort_met(const lbvh_world *world, lbvh_i_group *group)
{
    int32_t next[LBVH_I_GROUP], k, s, sum = 0;
    memset(next, 0, sizeof next);
    for (k = 0; k < group->met; k++) next[group->visited[k].search]++;
    for (s = 0; s < group->count; s++) {
        int32_t const count = next[s];
        group->first[s] = next[s] = sum;
        sum += count;
    }
    group->first[group->count] = sum;
    for (k = 0; k < group->met; k++) {
        LBVH_I_PREFETCH(&world->object[~group->visited[k].at]);
        group->found[next[group->visited[k].search]++] = ~group->visited[k].at;
    }
}

/* Finds what touches objects that have a new stored box, state or filter; of each one in the same
   order, whoever searches with it. 0: what they visit or find has no room; for one object the
   world's own arrays always have. */
static int lbvh_i_search_group(const lbvh_world *world, lbvh_i_group *group)
{
    int32_t s;
    group->masked = 0;
    for (s = 0; s < group->count; s++) {
        const lbvh_filter *filter = &world->object[group->index[s]].filter;
        lbvh_i_wanted *wanted = &group->wanted[s];
        wanted->box = *lbvh_i_box_stored(world, group->index[s]);
        wanted->mask = filter->group > 0 ? ~(uint64_t)0 : filter->mask;
        group->masked |= wanted->mask != ~(uint64_t)0;
    }
    group->met = 0;
    if (!lbvh_i_search_tree(world, group, 1) || !lbvh_i_search_tree(world, group, 0)) return 0;
    if (group->met > group->found_room) return 0;
    lbvh_i_sort_met(world, group);
    return 1;
}

/* (No branch depends on a test, as in lbvh_i_visit_node.) */
LBVH_API void lbvh_i_test_pairs(lbvh_pair_walk *walk)
{
    const lbvh_world *world = walk->world;
    int const fat = walk->fit == LBVH_FAT;
    walk->next = walk->hits = 0;
    while (walk->hits == 0 && walk->at < world->active) {
        int32_t const left = world->active - walk->at,
                      end = walk->at + (left < LBVH_WALK_PAIRS ? left : LBVH_WALK_PAIRS),
                      ahead = left > 2 * LBVH_WALK_PAIRS ? LBVH_WALK_PAIRS : 0;
        int32_t p, hits = 0;
        for (p = walk->at; p < end; p++) {
            const lbvh_pair *pair = &world->pair[p], *coming = pair + ahead;
            LBVH_I_PREFETCH(lbvh_i_box_given(world, coming->object[0]));
            LBVH_I_PREFETCH(lbvh_i_box_given(world, coming->object[1]));
            walk->hit[hits] = p;
            hits += fat | lbvh_i_nodes_touch(lbvh_i_box_given(world, pair->object[0]),
                                             lbvh_i_box_given(world, pair->object[1]));
        }
        walk->at = end;
        walk->hits = hits;
    }
}

/* ------------------------------------------------------------------------------------------------
   >>round-casts: where a sphere or a capsule, swept along a line, first touches a box

   A capsule is a segment with a radius; of a sphere both ends are one point. It touches the box
   where the distance from the segment to the box falls to the radius, on faces, edges and corners
   alike (the box rounded by the radius; Ericson section 5.5.7). The distance between two convex
   bodies, of which one moves along a line, is a convex function of the way. So Newton's method,
   from the beginning of the way, never passes the first touch (conservative advancement; Mirtich
   1996, section 2.3; the step is that of van den Bergen, Ray Casting against General Convex
   Objects, 2004):

       distance |\                       step = (distance - radius) / speed,
                | \ .                    speed: of the nearest points towards each other
         radius |--\--.--------          speed <= 0 while the distance is larger: never
                |  step  .  .
                +---------------- way

   Numbers are doubles, in units of the largest coordinate, so that no square overflows.
   ---------------------------------------------------------------------------------------------- */

typedef struct lbvh_i_sweep {
    double at[3], along[3];     /* one end of the segment now, and the other end seen from there */
    double low[3], high[3];     /* the box */
    double way[3], radius;      /* the vector, its largest number 1 */
    double away[3];             /* from the box's nearest point to that of the segment */
} lbvh_i_sweep;

/* The square root of x > 0: Heron's method, from half the exponent, where it is at most 6 % off.
   (No math.h: nothing to link.) */
static double lbvh_i_root(double x)
{
    uint64_t bits;
    double root;
    int k;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits >> 1) + ((uint64_t)1023 << 51);
    memcpy(&root, &bits, sizeof root);
    for (k = 0; k < 4; k++) root = (root + x / root) / 2;
    return root;
}

/* How far the segment's point s is from the box, as a vector. Returns half the derivative by s of
   its squared length. */
static double lbvh_i_slope(lbvh_i_sweep *sweep, double s)
{
    double slope = 0;
    int a;
    for (a = 0; a < 3; a++) {
        double const x = sweep->at[a] + s * sweep->along[a];
        sweep->away[a] = x < sweep->low[a]    ? x - sweep->low[a]
                         : x > sweep->high[a] ? x - sweep->high[a]
                                              : 0;
        slope += sweep->away[a] * sweep->along[a];
    }
    return slope;
}

/* The nearest points of segment and box. The slope rises with s, in straight pieces that end where
   the segment crosses a plane of the box: the six planes narrow the range in which it is 0. */
static void lbvh_i_find_nearest(lbvh_i_sweep *sweep)
{
    double first = 0, last = 1, down = lbvh_i_slope(sweep, 0), up;
    int k;
    if (down >= 0) return;
    up = lbvh_i_slope(sweep, 1);
    if (up <= 0) return;
    for (k = 0; k < 6; k++) {
        int const a = k % 3;
        double const plane = k < 3 ? sweep->low[a] : sweep->high[a],
                     s = sweep->along[a] != 0 ? (plane - sweep->at[a]) / sweep->along[a] : 0;
        double slope;
        if (!(s > first && s < last)) continue;
        slope = lbvh_i_slope(sweep, s);
        if (slope < 0) first = s, down = slope;
        else last = s, up = slope;
    }
    (void)lbvh_i_slope(sweep, first + (last - first) * (down / (down - up)));
}

/* The larger one of `most` and |x|. */
static double lbvh_i_magnitude(double most, double x)
{
    double const size = x < 0 ? -x : x;
    return size > most ? size : most;
}

/* The part of a box along axis a that the sweep can come near: beyond it nothing is nearest to any
   point of the way, or of twice the way. So a half space does not set the unit. */
static void lbvh_i_clip_box(lbvh_i_sweep *sweep, const lbvh_world_cast *cast, const lbvh_node *box,
                            int a)
{
    double const one = (double)cast->end[0][a], other = (double)cast->end[1][a],
                 way = 2 * (double)cast->vector[a], low = (double)box->min[a],
                 high = (double)box->max[a],
                 lowest = (one < other ? one : other) + (way < 0 ? way : 0),
                 highest = (one < other ? other : one) + (way < 0 ? 0 : way);
    sweep->low[a] = low < lowest ? lowest : low;
    sweep->high[a] = high > highest ? highest : high;
    if (sweep->low[a] > high) sweep->low[a] = high;
    if (sweep->high[a] < low) sweep->high[a] = low;
}

/* The sweep in units of the largest coordinate. Returns how often the vector goes into that unit: 0
   where all numbers are 0. */
static double lbvh_i_begin_sweep(lbvh_i_sweep *sweep, const lbvh_world_cast *cast,
                                 const lbvh_node *box)
{
    double unit = (double)cast->radius, longest = 0;
    int a;
    memset(sweep, 0, sizeof *sweep);
    for (a = 0; a < 3; a++) {
        lbvh_i_clip_box(sweep, cast, box, a);
        unit = lbvh_i_magnitude(lbvh_i_magnitude(unit, sweep->low[a]), sweep->high[a]);
        unit = lbvh_i_magnitude(unit, (double)cast->end[0][a]);
        unit = lbvh_i_magnitude(unit, (double)cast->end[1][a]);
        longest = lbvh_i_magnitude(longest, (double)cast->vector[a]);
    }
    if (unit == 0) return 0;
    for (a = 0; a < 3; a++) {
        sweep->low[a] /= unit;
        sweep->high[a] /= unit;
        sweep->at[a] = (double)cast->end[0][a] / unit;
        sweep->along[a] = (double)cast->end[1][a] / unit - sweep->at[a];
        if (longest > 0) sweep->way[a] = (double)cast->vector[a] / longest;
    }
    sweep->radius = (double)cast->radius / unit;
    return longest > 0 ? unit / longest : 0;
}

LBVH_API int lbvh_i_cast_touches(const lbvh_world_cast *cast, const lbvh_node *box, lbvh_real *t)
{
    enum { STEPS = 64 };    /* a grazing touch halves the way in each: 24 */
    double const near_enough = 1.0 / ((int64_t)1 << 46);
    lbvh_i_sweep sweep;
    double const length = lbvh_i_begin_sweep(&sweep, cast, box);
    double travelled = 0;
    int a, step;
    for (step = 0; step < STEPS; step++) {
        double square = 0, speed = 0, distance, by;
        lbvh_i_find_nearest(&sweep);
        for (a = 0; a < 3; a++) {
            square += sweep.away[a] * sweep.away[a];
            speed -= sweep.away[a] * sweep.way[a]; /* times distance */
        }
        if (square <= near_enough * near_enough) break;
        distance = lbvh_i_root(square);
        if (distance - sweep.radius <= near_enough) break;
        if (!(speed > 0)) return 0;
        by = (square - sweep.radius * distance) / speed;
        travelled += by;
        if (!(travelled * length <= 2 * (double)cast->t_max)) return 0; /* rounding: below */
        for (a = 0; a < 3; a++) sweep.at[a] += by * sweep.way[a];
    }
    *t = (lbvh_real)(travelled * length);
    return *t <= cast->t_max;
}

/* ------------------------------------------------------------------------------------------------
   >>world-calls: what becomes of an object
   ---------------------------------------------------------------------------------------------- */

/* The object of an id; NULL: there is none. */
static lbvh_object *lbvh_i_object(const lbvh_world *world, lbvh_id id)
{
    uint64_t const index = id & 0xFFFFFFFFu;
    if (!world || id >> 32 == 0 || index >= (uint64_t)world->count) return NULL;
    if (lbvh_i_generation(world, (int32_t)index) != (uint32_t)(id >> 32)) return NULL;
    return &world->object[index];
}

/* Notes what the next update has to do with an object, which it then lists. */
static void lbvh_i_note_change(lbvh_world *world, int32_t index, int what)
{
    lbvh_object *object = &world->object[index];
    if (!(object->changed & LBVH_I_LISTED)) world->changed[world->changed_count++] = index;
    object->changed = (uint8_t)(object->changed | what | LBVH_I_LISTED);
}

/* The caller's box as a node; LBVH_NOT_FINITE, LBVH_INVERTED. (Adding 0 turns -0 into 0.) */
static lbvh_result lbvh_i_read_box(const lbvh_world *world, const lbvh_real *box, lbvh_node *node)
{
    int const dim = world->desc.dim;
    int a, finite = 1, inverted = 0;
    memset(node, 0, sizeof *node);
    for (a = 0; a < dim; a++) {
        node->min[a] = box[a] + 0;
        node->max[a] = box[dim + a] + 0;
        finite &= lbvh_i_finite(box[a]) & lbvh_i_finite(box[dim + a]);
        inverted |= box[a] > box[dim + a];
    }
    if (!finite) return LBVH_NOT_FINITE;
    return inverted ? LBVH_INVERTED : LBVH_OK;
}

/* How much larger a stored box is on each side along axis a; infinite where that overflows. */
LBVH_FN_HOT lbvh_real lbvh_i_margin(const lbvh_world *world, const lbvh_node *box, int a)
{
    lbvh_real const part = world->desc.margin_part;
    return world->desc.margin + (part > 0 ? part * (box->max[a] - box->min[a]) : 0);
}

/* The box to store: larger by the margin, longer along the displacement; as large as there are
   numbers. LBVH_NOT_FINITE: the displacement is not. */
static lbvh_result lbvh_i_store_box(const lbvh_world *world, const lbvh_node *box,
                                    const lbvh_real *displacement, lbvh_node *stored)
{
    lbvh_real const largest = lbvh_i_largest();
    int a;
    *stored = *box;
    for (a = 0; a < world->desc.dim; a++) {
        lbvh_real const along = displacement ? displacement[a] : 0,
                        more = lbvh_i_margin(world, box, a);
        lbvh_real min = box->min[a] - more, max = box->max[a] + more;
        if (!lbvh_i_finite(along)) return LBVH_NOT_FINITE;
        if (along < 0) min += along;
        else max += along;
        stored->min[a] = lbvh_i_max(min, -largest);
        stored->max[a] = lbvh_i_min(max, largest);
    }
    return LBVH_OK;
}

/* One of so many calls for an object that stays in its stored box looks whether that is too large:
   they are counted down in the skip of the stored box. */
enum { LBVH_I_CALLS = 63 };

/* 1 if a stored box that holds a given one is too large for it: larger than one stored anew by 8
   margins along an axis, and by an eighth of the given edge and the displacement (NULL: none). */
static int lbvh_i_too_large(const lbvh_world *world, const lbvh_node *box, const lbvh_node *stored,
                            const lbvh_real *displacement)
{
    int a;
    for (a = 0; a < world->desc.dim; a++) {
        lbvh_real const along = displacement ? lbvh_i_absolute(displacement[a]) : 0,
                        spare = (box->min[a] - stored->min[a]) + (stored->max[a] - box->max[a]);
        if (spare > 10 * lbvh_i_margin(world, box, a) + (box->max[a] - box->min[a]) / 8 + 2 * along)
            return 1;
    }
    return 0;
}

/* A filter with its defaults. */
static lbvh_filter lbvh_i_resolve_filter(const lbvh_filter *filter)
{
    lbvh_filter given = filter ? *filter : lbvh_i_all();
    lbvh_i_complete(&given);
    return given;
}

/* An index for a new object. */
static lbvh_result lbvh_i_new_index(lbvh_world *world, int32_t *index)
{
    lbvh_result result = LBVH_OK;
    if (world->vacant_count > 0) {
        *index = world->vacant[--world->vacant_count];
        return LBVH_OK;
    }
    if (world->count == world->capacity) result = lbvh_i_grow_objects(world);
    if (result != LBVH_OK) return result;
    *index = world->count++;
    world->object[*index].generation = 1;
    return LBVH_OK;
}

/* A new object at an index, with its boxes. */
static void lbvh_i_put_object(lbvh_world *world, int32_t index, const lbvh_node *given,
                              const lbvh_node *stored, const lbvh_filter *filter, lbvh_state state,
                              uint64_t user)
{
    lbvh_object *object = &world->object[index];
    *lbvh_i_box_given(world, index) = *given;
    *lbvh_i_box_stored(world, index) = *stored;
    lbvh_i_box_stored(world, index)->skip = 0;
    lbvh_i_set_user(world, index, user);
    lbvh_i_set_generation(world, index, object->generation);
    object->filter = lbvh_i_resolve_filter(filter);
    object->leaf = object->first_pair = -1;
    object->state = object->wanted = (uint8_t)state;
    object->tree = state != LBVH_MOVING;
    object->alive = 1;
    object->changed = 0;
}

LBVH_API lbvh_result lbvh_world_insert(lbvh_world *world, const lbvh_real *box,
                                       const lbvh_filter *filter, lbvh_state state, uint64_t user,
                                       lbvh_id *id)
{
    lbvh_node given, stored;
    lbvh_result result;
    int32_t index;
    if (!world || !box || !id) return LBVH_BAD_ARGUMENT;
    *id = 0;
    if (world->desc.dim == 0) return LBVH_NOT_BUILT;
    if ((int)state < 0 || state > LBVH_FIXED) return LBVH_BAD_OPTION;
    result = lbvh_i_read_box(world, box, &given);
    if (result == LBVH_OK) result = lbvh_i_store_box(world, &given, NULL, &stored);
    if (result == LBVH_OK) result = lbvh_i_new_index(world, &index);
    if (result != LBVH_OK) return result;
    lbvh_i_put_object(world, index, &given, &stored, filter, state, user);
    world->objects++;
    world->sleepers += state == LBVH_SLEEPING;
    lbvh_i_note_change(world, index, LBVH_I_LEAF | LBVH_I_SEARCH);
    *id = lbvh_world_id(world, index);
    return LBVH_OK;
}

/* Stores the numbers of a box, and leaves what else its node holds. */
static void lbvh_i_set_box(lbvh_node *node, const lbvh_node *box)
{
    int a;
    for (a = 0; a < 3; a++) {
        node->min[a] = box->min[a];
        node->max[a] = box->max[a];
    }
}

/* boxes: an object's two, the given one and the stored one. If the stored one holds the caller's
   box, that becomes the given one, with -0 as 0. What is within a stored box is finite. In 2D the
   last axis is the second one, again. */
LBVH_FN_HOT int lbvh_i_stay_within(lbvh_node boxes[2], int dim, const lbvh_real *box)
{
#ifdef LBVH_I_SSE2
    /* min, link, max, skip: the fourth numbers do not count, and stay */
    float *const at = (float *)(void *)&boxes[0], *const stored = (float *)(void *)&boxes[1];
    __m128 const none = _mm_setzero_ps(), first = _mm_add_ps(_mm_loadu_ps(box), none),
                 last = _mm_add_ps(_mm_loadu_ps(box + 2 * (dim - 2)), none), /* 3D: z to z */
                 lower = dim == 2 ? _mm_movelh_ps(first, none) : first,
                 upper = dim == 2 ? _mm_movehl_ps(none, first)
                                  : _mm_shuffle_ps(last, last, _MM_SHUFFLE(3, 3, 2, 1)),
                 within = _mm_and_ps(_mm_cmple_ps(_mm_loadu_ps(stored), lower),
                                     _mm_cmple_ps(upper, _mm_loadu_ps(stored + 4)));
    if ((_mm_movemask_ps(_mm_and_ps(within, _mm_cmple_ps(lower, upper))) & 7) != 7) return 0;
    _mm_storel_pi((__m64 *)(void *)at, lower);
    _mm_storel_pi((__m64 *)(void *)(at + 4), upper);
    at[2] = _mm_cvtss_f32(_mm_movehl_ps(lower, lower));
    at[6] = _mm_cvtss_f32(_mm_movehl_ps(upper, upper));
    return 1;
#else
    lbvh_node *const given = &boxes[0];
    const lbvh_node *const stored = &boxes[1];
    int const last = dim - 1;
    lbvh_real const x = box[0], y = box[1], z = box[last], right = box[last + 1],
                    top = box[last + 2], back = box[2 * last + 1];
    if (!((stored->min[0] <= x) & (x <= right) & (right <= stored->max[0]) &
          (stored->min[1] <= y) & (y <= top) & (top <= stored->max[1]) &
          (stored->min[last] <= z) & (z <= back) & (back <= stored->max[last])))
        return 0;
    given->min[0] = x + 0;
    given->min[1] = y + 0;
    given->min[last] = z + 0;
    given->max[0] = right + 0;
    given->max[1] = top + 0;
    given->max[last] = back + 0;
    return 1;
#endif
}

/* lbvh_world_stay in the call that looks whether the stored box is too large; while it is, the next
   call does, too. */
static int lbvh_i_stay_if_fits(const lbvh_world *world, lbvh_node boxes[2], const lbvh_real *box)
{
    lbvh_node given;
    if (lbvh_i_read_box(world, box, &given) != LBVH_OK) return 0;
    if (!lbvh_i_holds(&boxes[1], &given)) return 0;
    if (lbvh_i_too_large(world, &given, &boxes[1], NULL)) return 0;
    lbvh_i_set_box(&boxes[0], &given);
    boxes[1].skip = LBVH_I_CALLS;
    return 1;
}

LBVH_API int lbvh_world_stay(lbvh_world *world, lbvh_id id, const lbvh_real *box)
{
    const lbvh_object *const object = box ? lbvh_i_object(world, id) : NULL;
    lbvh_node *boxes;
    int32_t left;
    if (!object) return 0;
    boxes = world->box + 2 * (id & 0xFFFFFFFFu);
    left = boxes[1].skip;
    if (left <= 0) return lbvh_i_stay_if_fits(world, boxes, box);
    if (lbvh_i_stay_within(boxes, world->desc.dim, box)) {
        boxes[1].skip = left - 1;
        return 1;
    }
    LBVH_I_PREFETCH(&object->changed); /* lbvh_world_move comes next */
    return 0;
}

/* Stores an object's box anew. */
static lbvh_result lbvh_i_store_anew(lbvh_world *world, int32_t index, const lbvh_node *given,
                                     const lbvh_real *displacement)
{
    lbvh_node stored;
    lbvh_result const result = lbvh_i_store_box(world, given, displacement, &stored);
    if (result != LBVH_OK) return result;
    lbvh_i_set_box(lbvh_i_box_stored(world, index), &stored);
    lbvh_i_box_stored(world, index)->skip = LBVH_I_CALLS;
    lbvh_i_note_change(world, index, LBVH_I_LEAF | LBVH_I_SEARCH);
    return LBVH_OK;
}

LBVH_API lbvh_result lbvh_world_move(lbvh_world *world, lbvh_id id, const lbvh_real *box,
                                     const lbvh_real *displacement)
{
    const lbvh_object *object = lbvh_i_object(world, id);
    lbvh_node given, *boxes;
    lbvh_result result;
    int stays;
    if (!world || !box) return LBVH_BAD_ARGUMENT;
    if (!object) return LBVH_BAD_ID;
    boxes = world->box + 2 * (id & 0xFFFFFFFFu);
    result = lbvh_i_read_box(world, box, &given);
    if (result != LBVH_OK) return result;
    stays = lbvh_i_holds(&boxes[1], &given);
    if (stays && --boxes[1].skip < 0) {
        stays = !lbvh_i_too_large(world, &given, &boxes[1], displacement);
        boxes[1].skip = stays ? LBVH_I_CALLS : 0;
    }
    if (!stays)
        result = lbvh_i_store_anew(world, (int32_t)(object - world->object), &given, displacement);
    if (result != LBVH_OK) return result;
    lbvh_i_set_box(&boxes[0], &given);
    return LBVH_OK;
}

LBVH_API lbvh_result lbvh_world_remove(lbvh_world *world, lbvh_id id)
{
    lbvh_object *object = lbvh_i_object(world, id);
    if (!world) return LBVH_BAD_ARGUMENT;
    if (!object) return LBVH_BAD_ID;
    object->alive = 0;
    lbvh_i_set_generation(world, (int32_t)(object - world->object), 0);
    world->objects--;
    world->sleepers -= object->wanted == LBVH_SLEEPING;
    lbvh_i_note_change(world, (int32_t)(object - world->object), LBVH_I_GONE);
    return LBVH_OK;
}

LBVH_API lbvh_result lbvh_world_set_state(lbvh_world *world, lbvh_id id, lbvh_state state)
{
    lbvh_object *object = lbvh_i_object(world, id);
    int what = LBVH_I_STATE | LBVH_I_LEAF;
    if (!world) return LBVH_BAD_ARGUMENT;
    if (!object) return LBVH_BAD_ID;
    if ((int)state < 0 || state > LBVH_FIXED) return LBVH_BAD_OPTION;
    if (object->wanted == (uint8_t)state) return LBVH_OK;
    if (state == LBVH_FIXED || object->wanted == LBVH_FIXED) what |= LBVH_I_SEARCH;
    world->sleepers += (state == LBVH_SLEEPING) - (object->wanted == LBVH_SLEEPING);
    object->wanted = (uint8_t)state;
    lbvh_i_note_change(world, (int32_t)(object - world->object), what);
    return LBVH_OK;
}

LBVH_API lbvh_result lbvh_world_set_filter(lbvh_world *world, lbvh_id id, const lbvh_filter *filter)
{
    lbvh_object *object = lbvh_i_object(world, id);
    if (!world) return LBVH_BAD_ARGUMENT;
    if (!object) return LBVH_BAD_ID;
    object->filter = lbvh_i_resolve_filter(filter);
    lbvh_i_note_change(world, (int32_t)(object - world->object),
                       LBVH_I_LEAF | LBVH_I_SEARCH | LBVH_I_REFILTER);
    return LBVH_OK;
}

LBVH_API lbvh_id lbvh_world_id(const lbvh_world *world, int32_t index)
{
    if (!world || index < 0 || index >= world->count || !world->object[index].alive) return 0;
    return (uint64_t)world->object[index].generation << 32 | (uint32_t)index;
}

LBVH_API lbvh_result lbvh_world_index(const lbvh_world *world, lbvh_id id, int32_t *index)
{
    const lbvh_object *object = lbvh_i_object(world, id);
    if (!world || !index) return LBVH_BAD_ARGUMENT;
    *index = object ? (int32_t)(object - world->object) : -1;
    return object ? LBVH_OK : LBVH_BAD_ID;
}

LBVH_API lbvh_result lbvh_world_box(const lbvh_world *world, int32_t index, lbvh_fit fit,
                                    lbvh_real *box)
{
    const lbvh_node *node;
    int a;
    if (!world || !box) return LBVH_BAD_ARGUMENT;
    if (fit != LBVH_TIGHT && fit != LBVH_FAT) return LBVH_BAD_OPTION;
    if (lbvh_world_id(world, index) == 0) return LBVH_BAD_ID;
    node = fit == LBVH_FAT ? lbvh_i_box_stored(world, index) : lbvh_i_box_given(world, index);
    for (a = 0; a < world->desc.dim; a++) {
        box[a] = node->min[a];
        box[world->desc.dim + a] = node->max[a];
    }
    return LBVH_OK;
}

LBVH_API int32_t lbvh_world_find_pair(const lbvh_world *world, int32_t a, int32_t b)
{
    int32_t of_a, of_b;
    if (!world || a < 0 || a >= world->count || b < 0 || b >= world->count) return -1;
    of_a = world->object[a].first_pair;
    of_b = world->object[b].first_pair;
    while (of_a >= 0 && of_b >= 0) { /* a pair is in both lists */
        const lbvh_pair *p = &world->pair[of_a / 2], *q = &world->pair[of_b / 2];
        if (p->object[1 - of_a % 2] == b) return of_a / 2;
        if (q->object[1 - of_b % 2] == a) return of_b / 2;
        of_a = p->next[of_a % 2];
        of_b = q->next[of_b % 2];
    }
    return -1;
}

/* ------------------------------------------------------------------------------------------------
   >>world-update: the trees first, by the cheaper way; then, for each changed object, the pairs
   that end and those that begin
   ---------------------------------------------------------------------------------------------- */

enum { LBVH_I_FEW_OF = 128,     /* of so many leaves one: few changes */
       LBVH_I_WHOLE_OF = 16,    /* more than that: leaves that stay come first (in tasks: then all
                                   inner nodes) */
       LBVH_I_UNSORTED = 256 }; /* so few changes are taken in as they came */

/* 1 if the leaf of a changed object gets its new box in its place: the parent's box holds that
   (many changes: it touches the leaf's old one). */
static int lbvh_i_leaf_stays(const lbvh_world *world, int32_t index, int many)
{
    const lbvh_object *object = &world->object[index];
    const lbvh_world_tree *tree = &world->tree[object->tree];
    lbvh_node const *box = lbvh_i_box_stored(world, index);
    int32_t const leaf = object->leaf;
    if (!object->alive || leaf < 0 || lbvh_i_tree_wanted(object) != object->tree) return 0;
    if (leaf == 0) return 1;
    return many ? lbvh_i_nodes_touch(&tree->node[leaf], box)
                : lbvh_i_holds(&tree->node[tree->parent[leaf]], box);
}

/* The leaf of a changed object: dropped, added, moved to the other tree, or refitted. */
static void lbvh_i_place_leaf(lbvh_world *world, int32_t index, int many)
{
    lbvh_object *object = &world->object[index];
    lbvh_world_tree *tree = &world->tree[object->tree],
                    *target = &world->tree[lbvh_i_tree_wanted(object)];
    int32_t const leaf = object->leaf;
    int32_t beside = 0;
    if (lbvh_i_leaf_stays(world, index, many)) {
        lbvh_i_put_leaf(world, tree, leaf, index, tree->node[leaf].skip);
        lbvh_i_refit_up(tree, tree->parent[leaf]);
        lbvh_i_give_reason(world, LBVH_REFIT);
        return;
    }
    if (leaf >= 0) beside = lbvh_i_drop_leaf(world, index);
    if (object->alive) lbvh_i_add_leaf(world, target, index, tree == target ? beside : 0);
    lbvh_i_give_reason(world, LBVH_REPLACED);
}

/* Leaves that changes take out of, put into, or refit in a tree; those that none does; and those
   that will be there. */
typedef struct lbvh_i_changes { int32_t changed, unchanged, members; } lbvh_i_changes;

/* Gives objects their new states, too. */
static void lbvh_i_count_changes(lbvh_world *world, lbvh_i_changes leaves[2])
{
    int32_t k;
    int t;
    for (t = 0; t < 2; t++) {
        leaves[t].changed = 0;
        leaves[t].unchanged = leaves[t].members = world->tree[t].leaves;
    }
    for (k = 0; k < world->changed_count; k++) {
        lbvh_object *object = &world->object[world->changed[k]];
        int const to = lbvh_i_tree_wanted(object);
        object->state = object->wanted;
        if (!(object->changed & (LBVH_I_LEAF | LBVH_I_GONE))) continue;
        if (object->leaf >= 0) {
            leaves[object->tree].changed++;
            leaves[object->tree].unchanged--;
            leaves[object->tree].members--;
        }
        if (!object->alive) continue;
        leaves[to].members++;
        if (object->leaf < 0 || object->tree != to) leaves[to].changed++;
    }
}

/* Prefetches what lbvh_i_place_leaf will read for the changes after the k-th, before `end`: others
   may be another task's. */
LBVH_FN_HOT void lbvh_i_prefetch_leaves(const lbvh_world *world, int32_t k, int32_t end)
{
    int32_t const last = end - 1, later = k + 8 < last ? k + 8 : last,
                  soon = k + 4 < last ? k + 4 : last;
    const lbvh_object *object = &world->object[world->changed[soon]];
    int32_t const leaf = object->leaf < 0 ? 0 : object->leaf;
    LBVH_I_PREFETCH(lbvh_i_box_given(world, world->changed[later]));
    LBVH_I_PREFETCH(&world->tree[object->tree].node[leaf]);
    LBVH_I_PREFETCH(&world->tree[object->tree].parent[leaf]);
}

/* How an update treats a tree. */
typedef struct lbvh_i_ways {
    int rebuild[2], many[2];
    int whole[2];       /* leaves that stay get their boxes first, all others their places then */
} lbvh_i_ways;

/* Of the changed objects begin .. end - 1: leaves of trees that are rebuilt next are forgotten, and
   those that stay in a tree that is refitted as a whole get their boxes; `up`: the nodes above
   them, too. How many are left. */
static int32_t lbvh_i_place_some(lbvh_world *world, const lbvh_i_ways *ways, int32_t begin,
                                 int32_t end, int up)
{
    int32_t k, left = 0;
    for (k = begin; k < end; k++) {
        int32_t const index = world->changed[k];
        lbvh_object *object = &world->object[index];
        lbvh_world_tree *tree = &world->tree[object->tree];
        lbvh_i_prefetch_leaves(world, k, end);
        if (!(object->changed & (LBVH_I_LEAF | LBVH_I_GONE))) continue;
        if (object->leaf >= 0 && ways->rebuild[object->tree]) {
            tree->node[object->leaf].link = ~LBVH_I_NO_OBJECT;
            object->leaf = -1;
        } else if (ways->whole[object->tree] && lbvh_i_leaf_stays(world, index, 1)) {
            lbvh_i_put_leaf(world, tree, object->leaf, index, tree->node[object->leaf].skip);
            object->changed = (uint8_t)(object->changed & ~(int)LBVH_I_LEAF);
            if (up) lbvh_i_refit_up(tree, tree->parent[object->leaf]);
            continue;
        }
        left += object->leaf >= 0 || (object->alive && !ways->rebuild[lbvh_i_tree_wanted(object)]);
    }
    return left;
}

/* Boxes and categories of a node and all inner nodes below it, children first. */
static void lbvh_i_refit_below(lbvh_world_tree *tree, int32_t root)
{
    int32_t at = root;
    for (;;) {
        while (tree->node[at].link >= 0) at = tree->node[at].link;
        while (at != root && at % 2 == 0) {     /* a right child: all below its parent is done */
            at = tree->parent[at];
            lbvh_i_refit_node(tree, at);
        }
        if (at == root) return;
        at++;
    }
}

/* All leaves of changed objects, except those of trees that are rebuilt next. */
static void lbvh_i_place_leaves(lbvh_world *world, const lbvh_i_ways *ways)
{
    int32_t k, t, left = lbvh_i_place_in_pieces(world, ways);
    int const up = left < 0 && !world->not_run; /* the same boxes, serially in less time */
    if (left < 0) left = lbvh_i_place_some(world, ways, 0, world->changed_count, up);
    for (t = 0; t < 2; t++) {
        if (!ways->whole[t]) continue;
        if (!up && !lbvh_i_refit_in_world_pieces(world, &world->tree[t]))
            lbvh_i_refit_below(&world->tree[t], 0);
        lbvh_i_give_reason(world, LBVH_REFIT);
    }
    for (k = 0; left > 0 && k < world->changed_count; k++) {
        int32_t const index = world->changed[k];
        lbvh_object *object = &world->object[index];
        int const stays = object->alive && !ways->rebuild[lbvh_i_tree_wanted(object)];
        lbvh_i_prefetch_leaves(world, k, world->changed_count);
        if (!(object->changed & (LBVH_I_LEAF | LBVH_I_GONE))) continue;
        if (stays) lbvh_i_place_leaf(world, index, ways->many[object->tree]);
        else if (object->leaf >= 0) {
            (void)lbvh_i_drop_leaf(world, index);
            lbvh_i_give_reason(world, LBVH_REPLACED);
        }
    }
}

/* The trees, by the cheaper way. (A rebuild takes about 90 ns for each leaf, a change of a leaf 200
   to 400.) */
static void lbvh_i_update_trees(lbvh_world *world)
{
    lbvh_i_changes leaves[2];
    lbvh_i_ways ways;
    int t;
    lbvh_i_count_changes(world, leaves);
    for (t = 0; t < 2; t++) {
        int const alone = world->tree[t].leaves == 1 && leaves[t].members == 1 &&
                          leaves[t].changed == 1;   /* the root is a leaf, and stays one */
        ways.many[t] = leaves[t].changed > leaves[t].members / LBVH_I_FEW_OF;
        if (ways.many[t]) world->tree[t].changes += leaves[t].changed;
        ways.rebuild[t] = ways.many[t] && !alone &&
                          (leaves[t].changed > leaves[t].members / 4 ||
                           world->tree[t].changes > leaves[t].members);
        ways.whole[t] = ways.many[t] && !ways.rebuild[t] &&
                        leaves[t].changed > world->tree[t].leaves / LBVH_I_WHOLE_OF;
    }
    world->rebuilt = ways.rebuild[0];
    lbvh_i_place_leaves(world, &ways);
    for (t = 1; t >= 0; t--) { /* the moving one last: lbvh_i_update_pairs_of_tree */
        if (ways.rebuild[t]) lbvh_i_rebuild(world, t, leaves[t].unchanged);
        else if (world->tree[t].too_deep) lbvh_i_rebuild(world, t, world->tree[t].leaves);
    }
}

/* 1 if an update has to search for what touches this object. */
static int lbvh_i_searches(const lbvh_object *object)
{
    return object->alive && (object->changed & LBVH_I_SEARCH);
}

/* The pairs of a changed object: those that end, and, while there is memory, those that begin with
   what its search found. */
static void lbvh_i_update_pairs_of(lbvh_world *world, int32_t index, const int32_t *found,
                                   int32_t count, int *fits)
{
    lbvh_object *object = &world->object[index];
    int32_t k;
    world->token++;
    if (*fits)
        for (k = 0; k < count; k++) world->mark[found[k]] = world->token;
    world->mark[index] = 0;
    lbvh_i_review_pairs(world, index);
    if (!lbvh_i_searches(object)) return;
    world->searched++;
    if (*fits) *fits = lbvh_i_begin_pairs(world, index, found, count);
    if (*fits) object->changed = (uint8_t)(object->changed & ~(int)LBVH_I_SEARCH);
}

/* How many of `left` objects search together. */
static int32_t lbvh_i_group_of(int32_t left)
{
    return left < LBVH_I_GROUP ? left : (int32_t)LBVH_I_GROUP;
}

/* Those of up to LBVH_I_GROUP objects that search. */
static void lbvh_i_begin_group(const lbvh_world *world, lbvh_i_group *group, const int32_t *index,
                               int32_t count, int later)
{
    int32_t k;
    group->later = later;
    group->count = 0;
    for (k = 0; k < count; k++)
        if (lbvh_i_searches(&world->object[index[k]])) group->index[group->count++] = index[k];
}

/* The pairs of up to LBVH_I_GROUP changed objects. */
static void lbvh_i_update_pairs_of_group(lbvh_world *world, const int32_t *index, int32_t count,
                                         int later, int *fits)
{
    lbvh_i_group group;
    int32_t k, s = 0;
    lbvh_i_prefetch_pairs(world, index, count);
    group.waiting = world->waiting;
    group.visited = world->met;
    group.found = world->found;
    group.room = group.found_room = world->capacity + LBVH_I_VISITS;
    lbvh_i_begin_group(world, &group, index, *fits ? count : 0, later);
    if (!lbvh_i_search_group(world, &group)) {
        for (k = 0; k < count; k++)
            lbvh_i_update_pairs_of_group(world, index + k, 1, later, fits);
        return;
    }
    for (k = 0; k < count; k++) {
        int const searched = s < group.count && group.index[s] == index[k];
        lbvh_i_update_pairs_of(world, index[k], world->found + group.first[s],
                               searched ? group.first[s + 1] - group.first[s] : 0, fits);
        s += searched;
    }
}

/* The pairs of n changed objects, in this order. */
static void lbvh_i_update_pairs_of_list(lbvh_world *world, const int32_t *index, int32_t n,
                                        int later, int *fits)
{
    int32_t k;
    if (*fits && !world->not_run && lbvh_i_world_pieces(world, n) > 1 &&
        lbvh_i_update_pairs_in_pieces(world, index, n, later, fits))
        return;
    for (k = 0; k < n; k += LBVH_I_GROUP)
        lbvh_i_update_pairs_of_group(world, index + k, lbvh_i_group_of(n - k), later, fits);
}

/* 1 if every leaf of the moving tree has to search: then each pair is looked for once. */
static int lbvh_i_all_search(const lbvh_world *world)
{
    int32_t k, moving = 0;
    for (k = 0; k < world->changed_count; k++) {
        const lbvh_object *object = &world->object[world->changed[k]];
        moving += lbvh_i_searches(object) && object->tree == 0;
    }
    return moving > 0 && moving == world->tree[0].leaves;
}

/* The pairs of all leaves of the moving tree, in its order. */
static void lbvh_i_update_pairs_of_tree(lbvh_world *world, int *fits)
{
    int32_t at = 0, n = 0;
    if (world->rebuilt && lbvh_i_world_pieces(world, world->tree[0].leaves) > 1 &&
        lbvh_i_update_pairs_in_pieces(world, NULL, world->tree[0].leaves, 1, fits))
        return;
    while (at >= 0) {
        const lbvh_node *node = &world->tree[0].node[at];
        at = node->link < 0 ? node->skip : node->link;
        if (node->link < 0) world->gathered_index[n++] = ~node->link;
    }
    lbvh_i_update_pairs_of_list(world, world->gathered_index, n, 1, fits);
}

/* Puts the changes in the order of their leaves: the searches then meet the same nodes again. A
   stable radix sort, by 11 bits of the leaf's node at a time. */
static void lbvh_i_sort_changes(lbvh_world *world)
{
    int32_t *from = world->changed, *to = world->gathered_index;
    int32_t const n = world->changed_count;
    int shift;
    for (shift = 0; shift < 22; shift += 11) {
        int32_t begin[2048], k, sum = 0;
        memset(begin, 0, sizeof begin);
        for (k = 0; k < n; k++) begin[(world->object[from[k]].leaf >> shift) & 2047]++;
        for (k = 0; k < 2048; k++) {
            int32_t const count = begin[k];
            begin[k] = sum;
            sum += count;
        }
        for (k = 0; k < n; k++)
            to[begin[(world->object[from[k]].leaf >> shift) & 2047]++] = from[k];
        to = from;
        from = world->gathered_index;
    }
}

/* 1 if no search can find anything: all objects are static. */
static int lbvh_i_all_static(const lbvh_world *world)
{
    return world->tree[0].leaves == 0 && world->sleepers == 0;
}

/* The pairs of all changed objects; those of the moving tree in its order, if all of them search.
   0: no memory. */
static int lbvh_i_update_pairs(lbvh_world *world)
{
    int32_t n = 0, k;
    int fits = 1;
    if (!lbvh_i_all_search(world)) {
        if (world->changed_count > LBVH_I_UNSORTED && !lbvh_i_all_static(world))
            lbvh_i_sort_changes(world);
        lbvh_i_update_pairs_of_list(world, world->changed, world->changed_count, 0, &fits);
        return fits;
    }
    lbvh_i_update_pairs_of_tree(world, &fits);
    for (k = 0; k < world->changed_count; k++) {
        const lbvh_object *object = &world->object[world->changed[k]];
        if (!object->alive || object->tree != 0) world->gathered_index[n++] = world->changed[k];
    }
    lbvh_i_update_pairs_of_list(world, world->gathered_index, n, 0, &fits);
    return fits;
}

/* Removed objects give their indices back; where memory ended, those that have to search again stay
   listed. (What was done in pieces does so once more.) */
static void lbvh_i_end_changes(lbvh_world *world, int fits)
{
    int32_t k, kept = 0;
    for (k = 0; k < world->changed_count; k++) {
        int32_t const index = world->changed[k];
        lbvh_object *object = &world->object[index];
        int const search = !fits && lbvh_i_searches(object);
        if (search) world->changed[kept++] = index;
        object->changed = (uint8_t)(search ? LBVH_I_SEARCH | LBVH_I_LISTED : 0);
        if (object->alive) continue;
        world->vacant[world->vacant_count++] = index;
        if (++object->generation == 0) object->generation = 1;
    }
    world->changed_count = kept;
}

LBVH_API lbvh_result lbvh_world_update(lbvh_world *world)
{
    int fits;
    if (!world) return LBVH_BAD_ARGUMENT;
    if (world->desc.dim == 0) return LBVH_NOT_BUILT;
    world->begun_count = world->ended_count = world->searched = 0;
    world->reason = LBVH_NOTHING;
    world->not_run = 0;
    if (world->changed_count == 0) return LBVH_OK;
    lbvh_i_update_trees(world);
    if (world->token > INT32_MAX / 2) lbvh_i_forget_marks(world);
    fits = lbvh_i_update_pairs(world);
    lbvh_i_end_changes(world, fits);
    if (!fits) return LBVH_OUT_OF_MEMORY;
    return world->not_run ? LBVH_NOT_RUN : LBVH_OK;
}

/* The largest number not above x; an infinity: there is none. No branch depends on what rounding
   did: it would be mispredicted every other time. */
LBVH_FN_HOT lbvh_real lbvh_i_round_down(double x)
{
#if LBVH_I_REAL_KIND == 2
    return x;
#else
    uint32_t bits, above;
    float rounded;
    if (x > (double)lbvh_i_largest()) /* infinity: there is none below it either */
        return lbvh_i_finite((float)(x * 1e-280)) ? lbvh_i_largest() : lbvh_i_infinity();
    if (x < -(double)lbvh_i_largest()) return -lbvh_i_infinity();
    rounded = (float)x;
    memcpy(&bits, &rounded, sizeof bits);
    above = (double)rounded > x;
    bits += above * (2 * (bits >> 31) - 1);
    memcpy(&rounded, &bits, sizeof rounded);
    return rounded;
#endif
}

#ifdef LBVH_I_SSE2
/* The 2D box of lbvh_box_of_doubles at once; 0: not finite. The nearest floats, of which a lower
   one that is above its double goes down, and an upper one that is below goes up: as integers,
   floats of one sign follow each other. */
LBVH_FN_HOT int lbvh_i_round_outward(const double *box, lbvh_real *out)
{
    __m128d const lower = _mm_loadu_pd(box), upper = _mm_loadu_pd(box + 2);
    __m128 const near_lower = _mm_cvtpd_ps(lower), near_upper = _mm_cvtpd_ps(upper),
                 nearest = _mm_movelh_ps(near_lower, near_upper);
    __m128d const above = _mm_cmpgt_pd(_mm_cvtps_pd(near_lower), lower),
                  below = _mm_cmplt_pd(_mm_cvtps_pd(near_upper), upper);
    __m128i const bits = _mm_castps_si128(nearest), sign = _mm_srai_epi32(bits, 31),
                  away = _mm_or_si128(_mm_xor_si128(sign, _mm_set_epi32(0, 0, -1, -1)),
                                      _mm_set1_epi32(1)),
                  wrong = _mm_castps_si128(
                      _mm_shuffle_ps(_mm_castpd_ps(above), _mm_castpd_ps(below), 0x88));
    __m128 const rounded =
        _mm_castsi128_ps(_mm_add_epi32(bits, _mm_and_si128(away, wrong)));
    _mm_storeu_ps(out, rounded);
    return _mm_movemask_ps(_mm_cmplt_ps(_mm_sub_ps(rounded, rounded), _mm_set1_ps(1))) == 15;
}
#endif

LBVH_API lbvh_result lbvh_box_of_doubles(int dim, const double *box, lbvh_real *out)
{
    int a;
    if ((dim != 2 && dim != 3) || !box || !out) return LBVH_BAD_ARGUMENT;
#ifdef LBVH_I_SSE2
    if (dim == 2) return lbvh_i_round_outward(box, out) ? LBVH_OK : LBVH_NOT_FINITE;
#endif
    for (a = 0; a < dim; a++) {
        out[a] = lbvh_i_round_down(box[a]);
        out[dim + a] = -lbvh_i_round_down(-box[dim + a]);
        if (!lbvh_i_finite(out[a]) || !lbvh_i_finite(out[dim + a])) return LBVH_NOT_FINITE;
    }
    return LBVH_OK;
}

/* ------------------------------------------------------------------------------------------------
   >>world-validate: what must hold between two updates
   ---------------------------------------------------------------------------------------------- */

/* A leaf holds its object's box, as the last update saw it. */
static int lbvh_i_world_leaf_valid(const lbvh_world *world, int t, int32_t at)
{
    int32_t const index = ~world->tree[t].node[at].link;
    const lbvh_object *object = index < world->count ? &world->object[index] : NULL;
    if (!object || object->leaf != at || object->tree != t || world->tree[t].height[at]) return 0;
    return object->changed || (object->alive && object->state == object->wanted &&
                               (object->state != LBVH_MOVING) == t &&
                               world->tree[t].category[at] == object->filter.category &&
                               lbvh_i_same_box(&world->tree[t].node[at],
                                               lbvh_i_box_stored(world, index)));
}

/* Links, skips, boxes, categories and heights of a node with its two children. */
static int lbvh_i_world_inner_valid(const lbvh_world_tree *tree, int32_t at)
{
    const lbvh_node *node = &tree->node[at];
    int32_t const l = node->link;
    lbvh_node united = *node;
    if (l % 2 == 0 || l + 1 >= tree->used) return 0;
    lbvh_i_unite(&united, &tree->node[l], &tree->node[l + 1]);
    return tree->parent[l] == at && tree->parent[l + 1] == at && tree->node[l].skip == l + 1 &&
           tree->node[l + 1].skip == node->skip && lbvh_i_same_box(&united, node) &&
           tree->category[at] == (tree->category[l] | tree->category[l + 1]) &&
           tree->height[at] == lbvh_i_height_over(tree, l);
}

/* A walk over all nodes, which must end after 2 leaves - 1 of them. */
static int lbvh_i_world_tree_valid(const lbvh_world *world, int t)
{
    const lbvh_world_tree *tree = &world->tree[t];
    int32_t at = tree->leaves > 0 ? 0 : -1, left = 2 * tree->leaves - 1, depth = 0, up;
    for (; at >= 0; left--) {
        const lbvh_node *node = &tree->node[at];
        if (left <= 0) return 0;
        if (node->link < 0) {
            if (!lbvh_i_world_leaf_valid(world, t, at)) return 0;
            for (depth = 0, up = at; up > 0 && depth <= LBVH_STACK; depth++) up = tree->parent[up];
            if (depth > LBVH_STACK - 2) return 0;
            at = node->skip;
        } else if (!lbvh_i_world_inner_valid(tree, at)) return 0;
        else at = node->link;
    }
    return left <= 0;
}

/* The list of an object's pairs; their number is added to *entries. */
static int lbvh_i_world_list_valid(const lbvh_world *world, int32_t index, int64_t *entries)
{
    int32_t entry = world->object[index].first_pair, before = -1;
    for (; entry >= 0; entry = world->pair[entry / 2].next[entry % 2]) {
        const lbvh_pair *pair = &world->pair[entry / 2];
        if (entry / 2 >= world->pairs || ++*entries > 2 * (int64_t)world->pairs) return 0;
        if (pair->object[entry % 2] != index || pair->prev[entry % 2] != before) return 0;
        before = entry;
    }
    return 1;
}

LBVH_API lbvh_result lbvh_world_validate(const lbvh_world *world)
{
    int64_t entries = 0;
    int32_t index, alive = 0, p;
    if (!world) return LBVH_BAD_ARGUMENT;
    if (world->desc.dim == 0) return LBVH_NOT_BUILT;
    if (!lbvh_i_world_tree_valid(world, 0) || !lbvh_i_world_tree_valid(world, 1))
        return LBVH_INVALID;
    for (index = 0; index < world->count; index++) {
        const lbvh_object *object = &world->object[index];
        alive += object->alive;
        if (!object->alive && !object->changed) continue;
        if (!lbvh_i_world_list_valid(world, index, &entries)) return LBVH_INVALID;
    }
    for (p = 0; p < world->pairs; p++) {
        const lbvh_object *a = &world->object[world->pair[p].object[0]],
                          *b = &world->object[world->pair[p].object[1]];
        if ((a->state == LBVH_MOVING || b->state == LBVH_MOVING) != (p < world->active))
            return LBVH_INVALID;
    }
    return alive == world->objects && entries == 2 * (int64_t)world->pairs ? LBVH_OK
                                                                            : LBVH_INVALID;
}

/* ------------------------------------------------------------------------------------------------
   >>parallel-world: an update in pieces

   Trees stay as they are while pairs begin and end, and pairs while objects search. So tasks search
   first, compare what objects meet with the pairs they have, and write down what has to be done:
   deeds. Then the calling thread does them, in the serial order. A piece has a room of its own. A
   group that finds none, or in which an object is removed or gets another state or filter, is left
   to the calling thread: whatever the rooms, the pairs are the same.

   Objects a and b are both listed: what both see counts for the first one. While tasks run, mark is
   job.base + 2 place + 1 for a listed object that searches, and one less for another listed one.
   ---------------------------------------------------------------------------------------------- */

enum { LBVH_I_PIECE_VISITS = 2 * LBVH_I_PIECE < 512 ? 512 : 2 * LBVH_I_PIECE, /* a piece's room */
       LBVH_I_PIECE_SPARE = LBVH_I_PIECE / 2,   /* deeds of a piece beyond its share */
       LBVH_I_OWN_PAIRS = 64 };                 /* more are left to the calling thread */

/* pair >= 0: it ends, if it is still that of these two; else it has moved. */
typedef struct lbvh_i_deed { int32_t object, other, pair; } lbvh_i_deed;
enum { LBVH_I_BEGINS = -1, LBVH_I_LEFT = -2 }; /* left: the group at place `object` of the list */

typedef struct lbvh_i_world_job {
    const lbvh_world *world;
    const int32_t *index;       /* [n] the objects, in the order in which their pairs change */
    int32_t *order;             /* [n] index, if that is the order of the scratch tree; or NULL */
    lbvh_visit *visits;         /* [pieces][3][LBVH_I_PIECE_VISITS]; a third of them: found */
    lbvh_i_deed *deed;          /* [pieces][room] */
    int32_t *count;             /* [pieces] deeds */
    int32_t n, pieces, room, base;
    int later;
} lbvh_i_world_job;

/* A search of a world costs more than one in a tree of the caller's: it is in no order. */
static int32_t lbvh_i_world_pieces(const lbvh_world *world, int32_t n)
{
    int32_t const fewest = LBVH_I_PIECE / 4;
    return lbvh_i_pieces_of(&world->desc.parallel, n, fewest < 8 ? 8 : fewest, LBVH_I_BUILD_TASKS);
}

enum { LBVH_I_MOST_PARTS = 4 * LBVH_I_BUILD_TASKS };

/* A tree in parts: the calling thread has what is above them, which it finds first. */
typedef struct lbvh_i_parts_job {
    lbvh_world *world;
    lbvh_world_tree *tree;
    lbvh_i_copied part[LBVH_I_MOST_PARTS];  /* for a refit only `at` counts */
    int32_t above[LBVH_I_MOST_PARTS];
    int32_t parts, others, pieces;
} lbvh_i_parts_job;

static void lbvh_i_begin_parts(lbvh_i_parts_job *job, lbvh_world *world, lbvh_world_tree *tree)
{
    memset(&job->part[0], 0, sizeof job->part[0]);
    job->world = world;
    job->tree = tree;
    job->pieces = lbvh_i_world_pieces(world, tree->leaves);
    job->parts = 1;
    job->others = 0;
}

/* Part k becomes two. */
static void lbvh_i_part(lbvh_i_parts_job *job, int32_t k, lbvh_i_copied left, lbvh_i_copied right)
{
    job->above[job->others++] = job->part[k].at;
    job->part[k] = left;
    job->part[job->parts++] = right;
}

/* A task: every pieces-th part is copied. */
static void lbvh_i_copy_piece(void *context, int32_t piece)
{
    lbvh_i_parts_job *job = (lbvh_i_parts_job *)context;
    int32_t k;
    for (k = piece; k < job->parts; k += job->pieces)
        lbvh_i_copy_below(job->world, job->tree, job->part[k]);
}

/* lbvh_i_copy_below for the whole tree, in pieces: parts have at most half a piece's leaves, or so.
   0: it has to be done yet. */
static int lbvh_i_copy_in_pieces(lbvh_world *world, lbvh_world_tree *tree,
                                 const lbvh_i_copied *root)
{
    lbvh_i_parts_job job;
    lbvh_i_copied two[2];
    int32_t k;
    memset(two, 0, sizeof two);
    lbvh_i_begin_parts(&job, world, tree);
    if (job.pieces < 2) return 0;
    job.part[0] = *root;
    for (k = 0; k < job.parts; k++)
        while (job.parts < LBVH_I_MOST_PARTS &&
               lbvh_i_leaves_of(world, job.part[k]) > tree->leaves / (2 * job.pieces) + 1) {
            (void)lbvh_i_copy_node(world, tree, job.part[k], two);
            lbvh_i_part(&job, k, two[1], two[0]);
        }
    world->not_run |=
        lbvh_i_in_pieces(&world->desc.parallel, job.pieces, lbvh_i_copy_piece, &job) != LBVH_OK;
    while (job.others-- > 0)
        lbvh_i_unite_categories(tree, job.above[job.others], job.above[job.others] + 1);
    return !world->not_run;
}

/* A task: every pieces-th part is refitted. */
static void lbvh_i_refit_world_piece(void *context, int32_t piece)
{
    lbvh_i_parts_job *job = (lbvh_i_parts_job *)context;
    int32_t k;
    for (k = piece; k < job->parts; k += job->pieces)
        lbvh_i_refit_below(job->tree, job->part[k].at);
}

/* lbvh_i_refit_below for the whole tree, in pieces: some parts for each, by levels of the tree. 0:
   it has to be done yet. */
static int lbvh_i_refit_in_world_pieces(lbvh_world *world, lbvh_world_tree *tree)
{
    lbvh_i_parts_job job;
    int32_t end = 0, k;
    lbvh_i_begin_parts(&job, world, tree);
    if (job.pieces < 2) return 0;
    while (job.parts < 4 * job.pieces && job.parts > end)
        for (k = 0, end = job.parts; k < end; k++) {
            lbvh_i_copied left = job.part[k], right = left;
            left.at = tree->node[left.at].link;
            right.at = left.at + 1;
            if (left.at >= 0 && job.parts < LBVH_I_MOST_PARTS) lbvh_i_part(&job, k, left, right);
        }
    world->not_run |= lbvh_i_in_pieces(&world->desc.parallel, job.pieces,
                                       lbvh_i_refit_world_piece, &job) != LBVH_OK;
    while (job.others-- > 0) (void)lbvh_i_refit_node(tree, job.above[job.others]);
    return !world->not_run;
}

/* Work on the changed objects. */
typedef struct lbvh_i_changes_job {
    lbvh_world *world;
    const lbvh_i_ways *ways;
    int32_t pieces, t;
    int32_t count[LBVH_I_BUILD_TASKS];      /* by piece: leaves left; objects to gather, then the
                                               first one's place */
} lbvh_i_changes_job;

/* A task: lbvh_i_place_some. */
static void lbvh_i_place_piece(void *context, int32_t k)
{
    lbvh_i_changes_job *job = (lbvh_i_changes_job *)context;
    int32_t const n = job->world->changed_count;
    job->count[k] = lbvh_i_place_some(job->world, job->ways, (int32_t)lbvh_i_cut(n, job->pieces, k),
                                      (int32_t)lbvh_i_cut(n, job->pieces, k + 1), 0);
}

/* lbvh_i_place_some for all; -1: it has to be done yet. */
static int32_t lbvh_i_place_in_pieces(lbvh_world *world, const lbvh_i_ways *ways)
{
    lbvh_i_changes_job job;
    int32_t k, left = 0;
    memset(&job, 0, sizeof job);
    job.world = world;
    job.ways = ways;
    job.pieces = lbvh_i_world_pieces(world, world->changed_count);
    if (job.pieces < 2) return -1;
    if (lbvh_i_in_pieces(&world->desc.parallel, job.pieces, lbvh_i_place_piece, &job) != LBVH_OK)
        world->not_run = 1;
    for (k = 0; k < job.pieces; k++) left += job.count[k];
    return world->not_run ? -1 : left;
}

/* A task: how many objects of its there are to gather; then, with their places, it gathers them. */
static void lbvh_i_count_gathered(void *context, int32_t k)
{
    lbvh_i_changes_job *job = (lbvh_i_changes_job *)context;
    int32_t const n = job->world->changed_count;
    job->count[k] = lbvh_i_gather_some(job->world, job->t, (int32_t)lbvh_i_cut(n, job->pieces, k),
                                       (int32_t)lbvh_i_cut(n, job->pieces, k + 1), 0, 0);
}
static void lbvh_i_gather_piece(void *context, int32_t k)
{
    const lbvh_i_changes_job *job = (const lbvh_i_changes_job *)context;
    int32_t const n = job->world->changed_count;
    (void)lbvh_i_gather_some(job->world, job->t, (int32_t)lbvh_i_cut(n, job->pieces, k),
                             (int32_t)lbvh_i_cut(n, job->pieces, k + 1), job->count[k], 1);
}

/* lbvh_i_gather_some for all, from number n on; -1: it has to be done yet. */
static int32_t lbvh_i_gather_in_pieces(lbvh_world *world, int t, int32_t n)
{
    const lbvh_parallel *parallel = &world->desc.parallel;
    lbvh_i_changes_job job;
    int32_t k;
    memset(&job, 0, sizeof job);
    job.world = world;
    job.t = t;
    job.pieces = lbvh_i_world_pieces(world, world->changed_count);
    if (job.pieces < 2 || world->not_run) return -1;
    world->not_run = lbvh_i_in_pieces(parallel, job.pieces, lbvh_i_count_gathered, &job) != LBVH_OK;
    for (k = 0; k < job.pieces; k++) {
        int32_t const count = job.count[k];
        job.count[k] = n;
        n += count;
    }
    if (world->not_run) return -1;
    world->not_run = lbvh_i_in_pieces(parallel, job.pieces, lbvh_i_gather_piece, &job) != LBVH_OK;
    return world->not_run ? -1 : n;
}

/* Memory for n searches. By the room for objects and pairs, so that it seldom grows. */
static int lbvh_i_begin_world_job(lbvh_i_world_job *job, lbvh_world *world, int32_t n)
{
    size_t const most = (size_t)lbvh_i_world_pieces(world, world->capacity),
                 deeds = 4 * (size_t)world->capacity + (size_t)world->pair_capacity +
                         most * LBVH_I_PIECE_SPARE,
                 visits = 3 * most * LBVH_I_PIECE_VISITS;
    if (!lbvh_i_extend(world, LBVH_I_PIECES_OF,
                       2 * visits + 3 * deeds + most + (size_t)world->capacity, sizeof(int32_t),
                       0))
        return 0;
    job->world = world;
    job->n = n;
    job->pieces = lbvh_i_world_pieces(world, n);
    job->visits = (lbvh_visit *)(void *)lbvh_i_start(&world->block[LBVH_I_PIECES_OF]);
    job->deed = (lbvh_i_deed *)(void *)(job->visits + visits);
    job->count = (int32_t *)(void *)(job->deed + deeds);
    job->order = job->count + most;
    job->room = (int32_t)(deeds / (size_t)job->pieces > INT32_MAX / 2
                              ? INT32_MAX / 2 : deeds / (size_t)job->pieces);
    return 1;
}

/* 1 if an object is listed before place k; `searches`: and searches, too. */
LBVH_FN_HOT int lbvh_i_is_before(const lbvh_i_world_job *job, int32_t index, int32_t k,
                                 int searches)
{
    int32_t const place = job->world->mark[index] - job->base;
    return place >= 0 && place < 2 * k && (place % 2 || !searches);
}

/* The deeds of the object at place k of the list, which met what `found` says: its pairs that do
   not touch end, and those that it has not begin. Their number, -1: there is no room for them.
   (lbvh_i_review_pairs and lbvh_i_begin_pairs, where only its box has changed.) */
static int32_t lbvh_i_find_deeds(const lbvh_i_world_job *job, int32_t k, const int32_t *found,
                                 int32_t count, lbvh_i_deed *to, int32_t room)
{
    const lbvh_world *world = job->world;
    int32_t const index = job->index[k];
    const lbvh_object *own = &world->object[index];
    const lbvh_node *box = lbvh_i_box_stored(world, index);
    int32_t has[LBVH_I_OWN_PAIRS], pairs = 0, deeds = 0, entry, f, i;
    for (entry = own->first_pair; entry >= 0; entry = world->pair[entry / 2].next[entry % 2]) {
        int32_t const other = world->pair[entry / 2].object[1 - entry % 2];
        if (pairs == LBVH_I_OWN_PAIRS || deeds == room) return -1;
        has[pairs] = other;
        to[deeds].object = index;
        to[deeds].other = other;
        to[deeds].pair = entry / 2;
        if (lbvh_i_nodes_touch(lbvh_i_box_stored(world, other), box)) pairs++;
        else deeds += !lbvh_i_is_before(job, other, k, 0);
    }
    for (f = 0; f < count; f++) {
        int32_t const other = found[f];
        for (i = 0; i < pairs && has[i] != other; i++) continue;
        if (i < pairs || other == index) continue;
        if (!world->desc.allow && lbvh_i_is_before(job, other, k, 1)) continue;
        if (!lbvh_i_may_pair(own, &world->object[other])) continue;
        if (deeds == room) return -1;
        to[deeds].object = index;
        to[deeds].other = other;
        to[deeds++].pair = LBVH_I_BEGINS;
    }
    return deeds;
}

/* The deeds of the group of `count` objects from place k on; -1: it is left. */
static int32_t lbvh_i_search_for_deeds(const lbvh_i_world_job *job, lbvh_i_group *group, int32_t k,
                                       int32_t count, lbvh_i_deed *to, int32_t room)
{
    int32_t i, deeds = 0;
    for (i = 0; i < count; i++) {
        const lbvh_object *object = &job->world->object[job->index[k + i]];
        if (!lbvh_i_searches(object) || (object->changed & (LBVH_I_REFILTER | LBVH_I_STATE)))
            return -1;
    }
    lbvh_i_prefetch_pairs(job->world, job->index + k, count);
    lbvh_i_begin_group(job->world, group, job->index + k, count, job->later);
    if (!lbvh_i_search_group(job->world, group)) return -1;
    for (i = 0; i < count; i++) {
        int32_t const more =
            lbvh_i_find_deeds(job, k + i, group->found + group->first[i],
                              group->first[i + 1] - group->first[i], to + deeds, room - deeds);
        if (more < 0) return -1;
        deeds += more;
    }
    return deeds;
}

/* A task: the deeds of its objects, group by group. */
static void lbvh_i_search_world_piece(void *context, int32_t piece)
{
    lbvh_i_world_job *job = (lbvh_i_world_job *)context;
    int32_t const end = (int32_t)lbvh_i_cut(job->n, job->pieces, piece + 1);
    lbvh_i_deed *to = job->deed + (size_t)piece * (size_t)job->room;
    int32_t k = (int32_t)lbvh_i_cut(job->n, job->pieces, piece), done = 0;
    int32_t left = (end - k + LBVH_I_GROUP - 1) / LBVH_I_GROUP; /* each may be left: a deed */
    lbvh_i_group group;
    group.room = group.found_room = LBVH_I_PIECE_VISITS;
    group.waiting = job->visits + 3 * (size_t)piece * LBVH_I_PIECE_VISITS;
    group.visited = group.waiting + LBVH_I_PIECE_VISITS;
    group.found = (int32_t *)(void *)(group.visited + LBVH_I_PIECE_VISITS);
    for (; k < end; k += LBVH_I_GROUP) {
        int32_t const deeds = lbvh_i_search_for_deeds(job, &group, k, lbvh_i_group_of(end - k),
                                                      to + done, job->room - done - left--);
        if (deeds < 0) {
            to[done].object = k;
            to[done].other = 0;
            to[done++].pair = LBVH_I_LEFT;
        } else done += deeds;
    }
    job->count[piece] = done;
}

/* Prefetches what a deed needs: its pair and its objects, or, `soon`, the pairs beside it. */
LBVH_FN_HOT void lbvh_i_prefetch_deed(const lbvh_world *world, const lbvh_i_deed *deed, int soon)
{
    const lbvh_object *own = &world->object[deed->object], *other = &world->object[deed->other];
    if (deed->pair == LBVH_I_LEFT) return;
    if (!soon) {
        LBVH_I_PREFETCH(own);
        LBVH_I_PREFETCH(other);
        if (deed->pair >= 0) LBVH_I_PREFETCH(&world->pair[deed->pair]);
    } else if (deed->pair < 0) {
        if (own->first_pair >= 0) LBVH_I_PREFETCH(&world->pair[own->first_pair / 2]);
        if (other->first_pair >= 0) LBVH_I_PREFETCH(&world->pair[other->first_pair / 2]);
    } else {
        const lbvh_pair *pair = &world->pair[deed->pair];
        LBVH_I_PREFETCH(&world->pair[pair->next[0] / 2]);
        LBVH_I_PREFETCH(&world->pair[pair->prev[0] / 2]);
        LBVH_I_PREFETCH(&world->pair[pair->next[1] / 2]);
        LBVH_I_PREFETCH(&world->pair[pair->prev[1] / 2]);
    }
}

/* Ends or begins a pair. 0: no memory. (A filter of the caller's may have refused the other object
   what it allows this one.) */
static int lbvh_i_do_deed(lbvh_world *world, const lbvh_i_deed *deed)
{
    int32_t const a = deed->object, b = deed->other;
    int32_t none = -1;
    if (deed->pair >= 0) {
        const lbvh_pair *pair = &world->pair[deed->pair];
        int const there = deed->pair < world->pairs &&
                          ((pair->object[0] == a && pair->object[1] == b) ||
                           (pair->object[0] == b && pair->object[1] == a));
        lbvh_i_end_pair(world, there ? deed->pair : lbvh_world_find_pair(world, a, b), &none);
        return 1;
    }
    if (world->desc.allow && (lbvh_world_find_pair(world, a, b) >= 0 ||
                              !world->desc.allow(world->desc.user, a, b)))
        return 1;
    return lbvh_i_begin_pair(world, a, b);
}

/* Does the deeds of a piece. */
static void lbvh_i_do_deeds(const lbvh_i_world_job *job, lbvh_world *world, int32_t piece,
                            int *fits)
{
    enum { SOON = 6, LATER = 12 };
    const lbvh_i_deed *deed = job->deed + (size_t)piece * (size_t)job->room;
    int32_t const count = job->count[piece],
                  end = (int32_t)lbvh_i_cut(job->n, job->pieces, piece + 1);
    int32_t i;
    for (i = 0; i < count; i++) {
        if (i + LATER < count) lbvh_i_prefetch_deed(world, deed + i + LATER, 0);
        if (i + SOON < count) lbvh_i_prefetch_deed(world, deed + i + SOON, 1);
        if (deed[i].pair == LBVH_I_LEFT) {
            int32_t const k = deed[i].object, searched = world->searched;
            lbvh_i_update_pairs_of_group(world, job->index + k, lbvh_i_group_of(end - k),
                                         job->later, fits);
            world->searched = searched; /* they are counted with all */
        } else if (*fits || deed[i].pair >= 0) *fits &= lbvh_i_do_deed(world, deed + i);
    }
}

/* A task: the listed objects of a piece, in mark, and how many of them search. */
static void lbvh_i_mark_piece(void *context, int32_t piece)
{
    lbvh_i_world_job *job = (lbvh_i_world_job *)context;
    int32_t const end = (int32_t)lbvh_i_cut(job->n, job->pieces, piece + 1);
    const lbvh *from = &job->world->scratch;
    int32_t k, searches = 0;
    for (k = (int32_t)lbvh_i_cut(job->n, job->pieces, piece); k < end; k++) {
        int one;
        if (job->order) job->order[k] = job->world->gathered_index[lbvh_i_id(from, k)];
        one = lbvh_i_searches(&job->world->object[job->index[k]]);
        job->world->mark[job->index[k]] = job->base + 2 * k + one;
        searches += one;
    }
    job->count[piece] = searches;
}

/* The pairs of n changed objects, in this order, their searches in pieces; index NULL: in the order
   of the scratch tree. 0: no memory for that, or a task was left out, and nothing was done. */
static int lbvh_i_update_pairs_in_pieces(lbvh_world *world, const int32_t *index, int32_t n,
                                         int later, int *fits)
{
    const lbvh_parallel *parallel = &world->desc.parallel;
    lbvh_i_world_job job;
    int32_t k, searches = 0;
    if (!lbvh_i_begin_world_job(&job, world, n)) return 0;
    job.index = index ? index : job.order;
    if (index) job.order = NULL;
    job.later = later;
    if (world->token > INT32_MAX / 4) lbvh_i_forget_marks(world);
    job.base = world->token + 1;
    world->token += 2 * n + 1;
    world->not_run |= lbvh_i_in_pieces(parallel, job.pieces, lbvh_i_mark_piece, &job) != LBVH_OK;
    if (world->not_run) return 0;
    for (k = 0; k < job.pieces; k++) searches += job.count[k];
    world->not_run =
        lbvh_i_in_pieces(parallel, job.pieces, lbvh_i_search_world_piece, &job) != LBVH_OK;
    if (world->not_run) return 0;
    for (k = 0; k < job.pieces; k++) lbvh_i_do_deeds(&job, world, k, fits);
    world->searched += searches;
    return 1;
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
} /* extern "C" */
#endif

#endif /* LBVH_WORLD_IMPLEMENTATION_DONE */

/* Licence: MIT or Unlicense, as in lbvh.h, >>licence. */
