/* more/lbvh_optimize.h - v0.2.0 - a part of lbvh.h: better trees, by rotations and by splits.
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   lbvh_optimize restores the quality that refits have lost, by tree rotations. lbvh_split_top makes
   the large nodes of a tree anew, by the surface area heuristic. Added by

       #define LBVH_WITH_OPTIMIZE

   before lbvh.h is included, in every file that uses it and in the one with LBVH_IMPLEMENTATION.
   There are no kernels: a GPU gets the tree by lbvh_cuda_upload.

   >>contents: the banners in order; search for >>, the name and a colon

       manual          rules
       declarations    optimize-api
       serial          rotations, parallel-rotations, top

   >>rules: those of lbvh.h, and

   Memory   lbvh_optimize allocates nothing, lbvh_split_top 4 bytes a leaf during the call.
   Limits   Depth: 93 inner nodes above a leaf at most, as in lbvh.h.

   To learn it from this file, read >>rotations, then >>top.

   Sources  Kensler: A. Kensler, Tree Rotations for Improving Bounding Volume Hierarchies, IEEE
                     Symposium on Interactive Ray Tracing 2008 (>>rotations).
            Kopta:   D. Kopta, T. Ize, J. Spjut, E. Brunvand, A. Davis, A. Kensler, Fast, Effective
                     BVH Updates for Animated Scenes, I3D 2012 (>>rotations).
            Lauterbach, Garland, Sengupta, Luebke, Manocha, Fast BVH Construction on GPUs,
                     Eurographics 2009 ([LGS+09] of Kureck, section 7.1: codes and areas in one
                     tree);
            Garanzha, Pantaleoni, McAllister, Simpler and Faster HLBVH with Work Queues, HPG 2011;
            Karras, Aila, Fast Parallel Construction of High-Quality Bounding Volume Hierarchies,
                     HPG 2013 (>>top).
*/

#ifndef LBVH_H
#error "more/lbvh_optimize.h is a part of lbvh.h: define LBVH_WITH_OPTIMIZE and include lbvh.h"
#elif 10000 * LBVH_VERSION_MAJOR + 100 * LBVH_VERSION_MINOR + LBVH_VERSION_PATCH != 200
#error "more/lbvh_optimize.h 0.2.0 and lbvh.h are of different versions: copy both from one release"
#endif

#ifndef LBVH_OPTIMIZE_H
#define LBVH_OPTIMIZE_H

/* In a double build every function gets a second name, as in lbvh.h. */
#if LBVH_I_REAL_KIND == 2 && !defined(NEARFIELD_NAMESPACE)
#define lbvh_optimize  lbvh_f64_optimize
#define lbvh_split_top lbvh_f64_split_top
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------
   >>optimize-api: functions
   ---------------------------------------------------------------------------------------------- */

/* Improves a tree that was refitted often, by one pass of tree rotations (>>rotations): subtrees
   change places where that makes the surface of the nodes smaller. Call it after lbvh_refit, in
   every step or in every 8th. `*rotations` (may be NULL): how many there were; 0: a further call
   changes nothing. A call never raises lbvh_quality.sah. Searches stay exact. Boxes, ids and masks
   stay; places change, and with them the order of hits. Where anything was rotated, codes that were
   kept are dropped (tree.code NULL, desc.keep_codes 0; SPLIT becomes MERGE). Allocates nothing. The
   same result for every desc.parallel; LBVH_NOT_RUN leaves no tree. O(n), 1.2 to 1.8 times a
   refit. */
LBVH_API lbvh_result lbvh_optimize(lbvh *tree, int32_t *rotations);

/* Improves a tree that is searched often: the nodes above n / 20 of its subtrees (64 at least) are
   made again, by the surface area heuristic (>>top). Meant for LBVH_PLOC, whose trees then cost at
   most 1.05 of a full SAH build's on the meshes measured (docs/choosing.md). lbvh_quality.sah falls
   by what `gain` says (may be NULL); 0: nothing was changed, because it would not fall, or a leaf
   would lie too deep. What stays and what changes is as told at lbvh_optimize. Needs 4 bytes a leaf
   of memory during the call; LBVH_OUT_OF_MEMORY: the tree is as it was. Serial.
   O(n log n), 0.5 to 1 of a build by LBVH_MERGE. */
LBVH_API lbvh_result lbvh_split_top(lbvh *tree, double *gain);

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
} /* extern "C" */
#endif

#endif /* LBVH_OPTIMIZE_H */

/* ================================================================================================
   The implementation
   ============================================================================================== */

#if defined(LBVH_IMPLEMENTATION) && !defined(LBVH_OPTIMIZE_IMPLEMENTATION_DONE)
#define LBVH_OPTIMIZE_IMPLEMENTATION_DONE

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------
   >>rotations: lbvh_optimize, which restores quality that refits have lost (Kensler 2008; Kopta,
   Ize, Spjut, Brunvand, Davis and Kensler 2012, who rotate in every refit)

   Elements move, the tree keeps its shape, and boxes of far elements grow together. A rotation at a
   node N lets two subtrees below N change places: a child and a grandchild, or two grandchildren.

            N                   N                       N                       N
          /   \               /   \                   /   \                   /   \
         A     B     ->      c     B'                A     B      ->        A'     B'
              / \                 / \               / \   / \              / \     / \
             c   d               A   d             a   b c   d            c   b   a   d

   N holds the same leaves before and after, so only the boxes of its children change. The cost
   (lbvh_quality.sah) falls by the area of B less that of B', or of A and B less A' and B'. Of the
   six rotations at N, the one that gains most is done. Children come before parents.

   A rotation must lower these areas by 1/1024 at least. That is far more than the rounding of an
   area (some 2^-50): no rotation raises the cost, and none is done for nothing.

   Depth: the height of a node (a leaf: 0) and the prefix of its split are 94 together at most. That
   is so at a node that was not rotated, if it is at its children: the prefix of a child is larger
   by 1 at least. A rotation that would break it is refused. The root's split has prefix 1 or more,
   so at most LBVH_STACK - 1 nodes are above a leaf.

   The pass goes over the old tree as lbvh_i_merge does, and reads its prefixes. `link` and `skip`
   of an inner node become its two children. The skip of leaf k, which nothing reads, is the height
   of inner node k. Then leaves are numbered depth first, border k gets 1 + the depth of the node
   that is split there as its prefix, as in lbvh.h, >>ploc, and lbvh_i_merge makes all nodes anew.
   ---------------------------------------------------------------------------------------------- */

/* A rotation: the subtrees at two links change places. */
typedef struct lbvh_i_rotation {
    int32_t *one, *other;
    double gain;            /* by which the areas shrink */
} lbvh_i_rotation;

/* Inner nodes on the longest way from here to a leaf, during the pass. */
static int32_t lbvh_i_height(const lbvh *tree, int32_t at)
{
    return lbvh_is_leaf(tree, at) ? 0 : tree->node[tree->first_leaf + at].skip;
}

/* The height of a node from those of its children. */
static void lbvh_i_note_height(const lbvh *tree, int32_t at)
{
    const lbvh_node *node = &tree->node[at];
    int32_t const left = lbvh_i_height(tree, node->link), right = lbvh_i_height(tree, node->skip);
    tree->node[tree->first_leaf + at].skip = 1 + (left > right ? left : right);
}

/* The area of the box around two nodes. */
static double lbvh_i_area_around(const lbvh *tree, int32_t p, int32_t q)
{
    lbvh_node around;
    lbvh_i_unite(&around, &tree->node[p], &tree->node[q]);
    return lbvh_i_area(tree->desc.dim, around.min, around.max);
}

/* Keeps the rotation that gains most. */
static void lbvh_i_offer(lbvh_i_rotation *best, double gain, int32_t *one, int32_t *other)
{
    if (!(gain > best->gain)) return; /* nor a NaN */
    best->gain = gain;
    best->one = one;
    best->other = other;
}

/* A child, at link `child`, with each of the children of its sibling, whose box has `area`. That
   box becomes the one around the child and the grandchild that stays. */
static void lbvh_i_offer_child(const lbvh *tree, int32_t *child, int32_t sibling, double area,
                               lbvh_i_rotation *best)
{
    lbvh_node *of = &tree->node[sibling];
    lbvh_i_offer(best, area - lbvh_i_area_around(tree, *child, of->skip), child, &of->link);
    lbvh_i_offer(best, area - lbvh_i_area_around(tree, *child, of->link), child, &of->skip);
}

/* Two grandchildren, one from each side. (To exchange the other two is the same, mirrored.) */
static void lbvh_i_offer_grandchildren(const lbvh *tree, int32_t left, int32_t right, double area,
                                       lbvh_i_rotation *best)
{
    lbvh_node *l = &tree->node[left], *r = &tree->node[right];
    lbvh_i_offer(best, area - lbvh_i_area_around(tree, l->skip, r->link) -
                           lbvh_i_area_around(tree, l->link, r->skip), &l->link, &r->link);
    lbvh_i_offer(best, area - lbvh_i_area_around(tree, l->skip, r->skip) -
                           lbvh_i_area_around(tree, l->link, r->link), &l->link, &r->skip);
}

/* The best rotation at node `at`, from the areas of its children; gain 0: none. A child with a
   larger area than its sibling's cannot make the sibling smaller. */
static lbvh_i_rotation lbvh_i_best_rotation(const lbvh *tree, int32_t at, double left_area,
                                            double right_area)
{
    lbvh_node *node = &tree->node[at];
    int32_t const left = node->link, right = node->skip;
    int const left_inner = !lbvh_is_leaf(tree, left), right_inner = !lbvh_is_leaf(tree, right);
    double const most = 1 - 1.0 / 1024; /* of an area may be left */
    lbvh_i_rotation best = {NULL, NULL, 0};
    if (left_inner && left_area > right_area)
        lbvh_i_offer_child(tree, &node->skip, left, lbvh_i_product(most, left_area), &best);
    if (right_inner && right_area > left_area)
        lbvh_i_offer_child(tree, &node->link, right, lbvh_i_product(most, right_area), &best);
    if (left_inner && right_inner)
        lbvh_i_offer_grandchildren(tree, left, right,
                                   lbvh_i_product(most, left_area + right_area), &best);
    return best;
}

/* Box and height of a node from its children, during the pass. */
static void lbvh_i_renew(const lbvh *tree, int32_t at)
{
    lbvh_node *node = &tree->node[at];
    if (lbvh_is_leaf(tree, at)) return;
    lbvh_i_unite(node, &tree->node[node->link], &tree->node[node->skip]);
    lbvh_i_note_height(tree, at);
}

/* Exchanges the two subtrees; left and right are the children of `at` before. */
static void lbvh_i_exchange(const lbvh *tree, const lbvh_i_rotation *rotation, int32_t at,
                            int32_t left, int32_t right)
{
    int32_t const moved = *rotation->one;
    *rotation->one = *rotation->other;
    *rotation->other = moved;
    lbvh_i_renew(tree, left);
    lbvh_i_renew(tree, right);
    lbvh_i_note_height(tree, at);
}

/* Node `at`, whose children are finished: returns the rotations done there, 0 or 1. */
static int32_t lbvh_i_rotate(const lbvh *tree, int32_t at, double left_area, double right_area,
                             int32_t highest)
{
    const lbvh_node *node = &tree->node[at];
    int32_t const left = node->link, right = node->skip;
    lbvh_i_rotation const best = lbvh_i_best_rotation(tree, at, left_area, right_area);
    lbvh_i_note_height(tree, at);
    if (!best.one) return 0;
    lbvh_i_exchange(tree, &best, at, left, right);
    if (lbvh_i_height(tree, at) <= highest) return 1;
    lbvh_i_exchange(tree, &best, at, left, right); /* back */
    return 0;
}

/* Rotates at each parent on an ascent, and counts the rotations. */
static int32_t lbvh_i_rotate_up(lbvh *tree, lbvh_i_roots *roots, int32_t fixed, int32_t first,
                                int32_t last, int32_t *rotations)
{
    const uint8_t *prefix = tree->prefix;
    int const dim = tree->desc.dim;
    int32_t at = lbvh_i_number(prefix, tree->first_leaf, first, last);
    double area = lbvh_i_area(dim, tree->node[at].min, tree->node[at].max);
    while (roots->count > fixed && !lbvh_i_is_left(prefix, first, last)) {
        int32_t const split = first - 1, right = at;
        const lbvh_node *left;
        first = roots->first[--roots->count];
        at = lbvh_i_number(prefix, tree->first_leaf, first, last);
        left = &tree->node[tree->node[at].link]; /* the left child already */
        tree->node[at].skip = right;
        *rotations += lbvh_i_rotate(tree, at, lbvh_i_area(dim, left->min, left->max), area,
                                    LBVH_STACK - prefix[split + 1]);
        area = lbvh_i_area(dim, tree->node[at].min, tree->node[at].max);
    }
    roots->first[roots->count++] = first;
    return lbvh_i_is_left(prefix, first, last) ? fixed : roots->count;
}

/* Rotations at all nodes, in the order of lbvh_i_merge: their number. */
static int32_t lbvh_i_rotate_all(lbvh *tree)
{
    lbvh_i_roots roots;
    int32_t k, rotations = 0;
    roots.count = 0;
    for (k = 0; k < tree->n; k++) (void)lbvh_i_rotate_up(tree, &roots, 0, k, k, &rotations);
    return rotations;
}

/* Depth first: the new place of each leaf into its skip, and the new prefixes. */
static void lbvh_i_number_leaves(const lbvh *tree)
{
    int32_t pending[LBVH_STACK], depth[LBVH_STACK]; /* right children, and the depth of parents */
    int32_t at = 0, level = 0, place = 0, top = 0;
    for (;;) {
        for (; !lbvh_is_leaf(tree, at); level++) {
            pending[top] = tree->node[at].skip;
            depth[top++] = level;
            at = tree->node[at].link;
        }
        tree->node[at].skip = place++;
        if (top == 0) return;
        at = pending[--top];
        level = depth[top] + 1;
        tree->prefix[place] = (uint8_t)level;
    }
}

/* Moves each leaf to the place in its skip, by way of the inner nodes, which are made later. */
static void lbvh_i_reorder_leaves(const lbvh *tree)
{
    lbvh_node *const leaf = tree->node + tree->first_leaf;
    uint32_t *const mask = tree->mask ? tree->mask + tree->first_leaf : NULL;
    int32_t const last = tree->n - 1;
    int32_t k, from = 0; /* who becomes the last leaf: there are n - 1 inner nodes */
    lbvh_node moved;
    uint32_t moved_mask;
    for (k = 0; k < tree->n; k++) {
        int32_t const to = leaf[k].skip;
        if (to == last) from = k;
        else tree->node[to] = leaf[k];
        if (to != last && mask) tree->mask[to] = mask[k];
    }
    moved = leaf[from];
    moved_mask = mask ? mask[from] : 0;
    memcpy(leaf, tree->node, (size_t)last * sizeof *leaf);
    leaf[last] = moved;
    if (mask) memcpy(mask, tree->mask, (size_t)last * sizeof *mask);
    if (mask) mask[last] = moved_mask;
}

/* Moves the leaves; codes no longer follow them. */
static void lbvh_i_take_places(lbvh *tree)
{
    lbvh_i_reorder_leaves(tree);
    tree->code = NULL;
    tree->coded = 0;
    tree->mixed = 1;
    tree->desc.keep_codes = 0;
    if (tree->desc.builder == LBVH_SPLIT) tree->desc.builder = LBVH_MERGE;
}

#ifndef LBVH_PLAIN
/* The seam to >>parallel-rotations (lbvh.h, >>seams). */
LBVH_I_HOT int lbvh_i_optimize_faster(lbvh *tree, int32_t *rotations, lbvh_result *result);
#endif

LBVH_API lbvh_result lbvh_optimize(lbvh *tree, int32_t *rotations)
{
    lbvh_result result;
    int32_t done;
    if (rotations) *rotations = 0;
    if (!tree) return LBVH_BAD_ARGUMENT;
    if (!tree->built) return LBVH_NOT_BUILT;
    if (tree->n < 3) return LBVH_OK;
    if (LBVH_I_SEAM(lbvh_i_optimize_faster(tree, rotations, &result))) return result;
    done = lbvh_i_rotate_all(tree);
    if (done > 0) lbvh_i_number_leaves(tree);
    if (done > 0) lbvh_i_take_places(tree);
    lbvh_i_merge(tree);
    if (rotations) *rotations = done;
    return LBVH_OK;
}

/* ------------------------------------------------------------------------------------------------
   >>parallel-rotations: the same pass in tasks (lbvh.h, >>parallel-build)
   ---------------------------------------------------------------------------------------------- */

#ifndef LBVH_PLAIN

/* A task: the ascents of its leaves. */
static void lbvh_i_rotate_piece(void *context, int32_t k)
{
    lbvh_i_ascend_piece((lbvh_i_build_job *)context, k, lbvh_i_rotate_up);
}

/* lbvh_optimize in tasks. */
static lbvh_result lbvh_i_optimize_in_pieces(lbvh *tree, int32_t *rotations)
{
    lbvh_i_build_job job;
    lbvh_result result;
    int32_t done = 0;
    lbvh_i_begin_build(&job, tree, NULL, 0, tree->n);
    result = lbvh_i_run_build(&job, lbvh_i_rotate_piece);
    if (result == LBVH_OK) {
        done = lbvh_i_ascend_roots(&job, lbvh_i_rotate_up);
        if (done > 0) {
            lbvh_i_number_leaves(tree);
            lbvh_i_take_places(tree);
        }
        result = lbvh_i_merge_in_pieces(&job);
    }
    if (result != LBVH_OK) lbvh_i_make_empty(tree);
    if (rotations && result == LBVH_OK) *rotations = done;
    return result;
}

LBVH_I_HOT int lbvh_i_optimize_faster(lbvh *tree, int32_t *rotations, lbvh_result *result)
{
    if (lbvh_i_build_pieces(tree, tree->n) < 2) return 0;
    *result = lbvh_i_optimize_in_pieces(tree, rotations);
    return 1;
}

#endif /* LBVH_PLAIN */

/* ------------------------------------------------------------------------------------------------
   >>top: lbvh_split_top, top-down splits by area above subtrees that stay (the surface area
   heuristic: Goldsmith and Salmon 1987; one tree by Morton codes and by areas: Lauterbach and
   others 2009, whose areas split the small nodes; over subtrees of a finished tree, as here:
   Garanzha, Pantaleoni and McAllister 2011; opened by area: Karras and Aila 2013, section 3.1)

   LBVH_PLOC decides from below, by what lies near. So its small nodes are good, even better than
   those of a full SAH build, and its large ones worse. These few are made again from above:

   1. Open the root, then always the subtree with the largest area, until there are n / 20. (A
      large triangle among small ones is so soon a subtree of its own.)
   2. Sort the subtrees by the centres of their boxes, along each axis.
   3. Split them in two where the area of the left box times the subtrees there, and the same of the
      right, is least: all places along all axes are tried, of equal ones the nearest to the middle
      is taken. Then split both parts, down to single subtrees.

         sorted along x     a   b   c | d   e      3 area(abc) + 2 area(de): the least of all
         parts              a   b | c   d | e      prefixes of borders 2 3 | 1 2: 1 + the depth

   The subtrees, in the order that the splits leave, give the leaves their new places. Borders
   between subtrees get 1 + the depth of the node that is split there as their prefix; those within
   a subtree change by as much as its root's. Then lbvh_i_merge makes all nodes anew, as after
   rotations. Where a prefix would become LBVH_STACK or more, the tree stays as it is.
   ---------------------------------------------------------------------------------------------- */

/* A subtree that stays. */
typedef struct lbvh_i_subtree {
    double area;            /* of its box; -1: a leaf, which cannot be opened */
    int32_t node, first;    /* its root, and its first leaf */
} lbvh_i_subtree;

typedef struct lbvh_i_top {
    lbvh *tree;
    int32_t count;
    lbvh_i_subtree *subtree;    /* [count] while they are opened a heap, the largest one first */
    uint64_t *key, *spare;      /* [count] for sorting */
    double *right;              /* [count] area times number, of what lies right of a split */
    int32_t *order[3], *later;  /* [count] subtrees by centre, along each axis; room */
    uint8_t *is_right;          /* [count] of the split at hand */
    uint8_t *border, *level;    /* [count] by place: the prefix before a subtree; its depth */
    uint8_t *prefix;            /* [n + 1] the new ones */
    double root, gain;          /* area of the root; of all nodes before, less those after */
} lbvh_i_top;

/* A split: the subtrees from `at` on, in the order along `axis`, become the right child. */
typedef struct lbvh_i_top_split { double cost; int32_t at, uneven; int axis; } lbvh_i_top_split;

/* The subtree of a node, whose first leaf is `first`. */
static lbvh_i_subtree lbvh_i_subtree_at(const lbvh *tree, int32_t node, int32_t first)
{
    lbvh_i_subtree s;
    s.node = node;
    s.first = first;
    s.area = lbvh_i_area(tree->desc.dim, tree->node[node].min, tree->node[node].max);
    if (!(s.area >= 0)) s.area = 0; /* 0 times infinity: boxes as large as numbers get */
    if (lbvh_is_leaf(tree, node)) s.area = -1;
    return s;
}

/* Restores the heap where its first entry has changed. */
static void lbvh_i_sift_down(lbvh_i_subtree *heap, int32_t count)
{
    lbvh_i_subtree const moving = heap[0];
    int32_t at = 0;
    for (;;) {
        int32_t child = 2 * at + 1;
        if (child + 1 < count && heap[child + 1].area > heap[child].area) child++;
        if (child >= count || !(heap[child].area > moving.area)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

/* The same where the entry at `at` is new. */
static void lbvh_i_sift_up(lbvh_i_subtree *heap, int32_t at)
{
    lbvh_i_subtree const moving = heap[at];
    for (; at > 0 && moving.area > heap[(at - 1) / 2].area; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = moving;
}

/* Step 1: opens the largest subtree until there are enough. */
static void lbvh_i_open_top(lbvh_i_top *top)
{
    const lbvh *tree = top->tree;
    int32_t count = 1;
    top->subtree[0] = lbvh_i_subtree_at(tree, 0, 0);
    for (; count < top->count; count++) {
        lbvh_i_subtree const opened = top->subtree[0];
        const lbvh_node *node = &tree->node[opened.node];
        top->gain += opened.area;
        top->subtree[0] = lbvh_i_subtree_at(tree, node->link, opened.first);
        lbvh_i_sift_down(top->subtree, count);
        top->subtree[count] = lbvh_i_subtree_at(tree, lbvh_right_child(tree, node),
                                                lbvh_split_place(tree, node) + 1);
        lbvh_i_sift_up(top->subtree, count);
    }
}

/* An integer of the same order as x: of a NaN (an element left out) the same always. */
static uint32_t lbvh_i_ordered(float x)
{
    uint32_t bits;
    if (!(x == x)) return 0;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 31 ? ~bits : bits | (uint32_t)1 << 31;
}

/* Step 2: sorts the subtrees along one axis. */
static void lbvh_i_order_top(const lbvh_i_top *top, int axis)
{
    lbvh_i_histogram histogram;
    int32_t k;
    memset(&histogram, 0, sizeof histogram);
    for (k = 0; k < top->count; k++) {
        const lbvh_node *node = &top->tree->node[top->subtree[k].node];
        uint32_t const upper =
            lbvh_i_ordered((float)lbvh_i_half_centre(node->min[axis], node->max[axis]));
        top->key[k] = (uint64_t)upper << 32 | (uint32_t)k;
        lbvh_i_count_digits(&histogram, upper);
    }
    lbvh_i_radix_counted(top->key, top->spare, top->count, &histogram);
    for (k = 0; k < top->count; k++) top->order[axis][k] = lbvh_i_key_id(top->key[k]);
}

/* Step 3: tries all splits along one axis. Returns the area around all these subtrees. */
static double lbvh_i_try_splits(const lbvh_i_top *top, int axis, int32_t first, int32_t last,
                                lbvh_i_top_split *best)
{
    const lbvh_node *const node = top->tree->node;
    const int32_t *order = top->order[axis];
    int const dim = top->tree->desc.dim;
    lbvh_node around = node[top->subtree[order[last]].node];
    int32_t k;
    for (k = last; k > first; k--) {
        lbvh_i_unite(&around, &around, &node[top->subtree[order[k]].node]);
        top->right[k] = lbvh_i_product(lbvh_i_area(dim, around.min, around.max), last - k + 1);
    }
    around = node[top->subtree[order[first]].node];
    for (k = first; k < last; k++) {
        int32_t const off = 2 * k + 1 - first - last, uneven = off < 0 ? -off : off;
        double cost;
        lbvh_i_unite(&around, &around, &node[top->subtree[order[k]].node]);
        cost = lbvh_i_product(lbvh_i_area(dim, around.min, around.max), k - first + 1) +
               top->right[k + 1];
        if (!(cost < best->cost || (cost == best->cost && uneven < best->uneven))) continue;
        best->cost = cost;
        best->at = k + 1;
        best->uneven = uneven;
        best->axis = axis;
    }
    lbvh_i_unite(&around, &around, &node[top->subtree[order[last]].node]);
    return lbvh_i_area(dim, around.min, around.max);
}

/* Partitions the orders along the other axes alike; each part keeps its order. */
static void lbvh_i_partition(const lbvh_i_top *top, lbvh_i_top_split split, int32_t first,
                             int32_t last)
{
    int32_t k;
    int a;
    for (k = first; k <= last; k++) top->is_right[top->order[split.axis][k]] = k >= split.at;
    for (a = 0; a < top->tree->desc.dim; a++) {
        int32_t *const order = top->order[a];
        int32_t kept = first, moved = 0;
        if (a == split.axis) continue;
        for (k = first; k <= last; k++) {
            int32_t const subtree = order[k];
            order[kept] = top->later[moved] = subtree;
            kept += !top->is_right[subtree];
            moved += top->is_right[subtree];
        }
        memcpy(order + kept, top->later, (size_t)moved * sizeof *order);
    }
}

/* Where to split the subtrees first .. last. */
static lbvh_i_top_split lbvh_i_best_split(lbvh_i_top *top, int32_t first, int32_t last)
{
    double area = 0;
    lbvh_i_top_split best;
    int a;
    best.cost = lbvh_i_product(top->root, last - first + 2); /* none is so large */
    best.axis = 0;
    best.at = last;
    best.uneven = last - first;
    for (a = 0; a < top->tree->desc.dim; a++) area = lbvh_i_try_splits(top, a, first, last, &best);
    top->gain -= area;
    return best;
}

/* Splits down to single subtrees. 0: too deep. */
static int lbvh_i_split_all(lbvh_i_top *top)
{
    int32_t end[LBVH_STACK], depth[LBVH_STACK]; /* right parts that wait: their last subtree */
    int32_t first = 0, last = top->count - 1, level = 0, waiting = 0;
    for (;;) {
        for (; first < last; level++) {
            lbvh_i_top_split const split = lbvh_i_best_split(top, first, last);
            if (level == LBVH_STACK - 1) return 0;
            lbvh_i_partition(top, split, first, last);
            top->border[split.at] = (uint8_t)(level + 1);
            end[waiting] = last;
            depth[waiting++] = level + 1;
            last = split.at - 1;
        }
        top->level[first] = (uint8_t)level;
        if (waiting == 0) return 1;
        first = last + 1;
        last = end[--waiting];
        level = depth[waiting];
    }
}

/* The new places of a subtree's leaves, from `place` on, and the prefixes between them. Returns the
   place behind them, or -1: too deep. */
static int32_t lbvh_i_place_subtree(const lbvh_i_top *top, const lbvh_i_subtree *subtree,
                                    int32_t place, int32_t level)
{
    const lbvh *tree = top->tree;
    const lbvh_node *node = &tree->node[subtree->node];
    int const leaf = lbvh_is_leaf(tree, subtree->node);
    int32_t const last = leaf ? subtree->first : lbvh_last_place(tree, node),
                  deeper = leaf ? 0 : level + 1 - tree->prefix[lbvh_split_place(tree, node) + 1];
    int32_t k;
    lbvh_i_leaf(tree, subtree->first)->skip = place++;
    for (k = subtree->first + 1; k <= last; k++) {
        int32_t const prefix = tree->prefix[k] + deeper;
        if (prefix >= LBVH_STACK) return -1;
        top->prefix[place] = (uint8_t)prefix;
        lbvh_i_leaf(tree, k)->skip = place++;
    }
    return place;
}

/* The new places of all leaves. 0: too deep; the skips of leaves are then to be made again. */
static int lbvh_i_place_all(const lbvh_i_top *top)
{
    int32_t k, place = 0;
    top->prefix[0] = top->prefix[top->tree->n] = 0;
    for (k = 0; k < top->count; k++) {
        if (k > 0) top->prefix[place] = top->border[k];
        place = lbvh_i_place_subtree(top, &top->subtree[top->order[0][k]], place, top->level[k]);
        if (place < 0) return 0;
    }
    return 1;
}

/* Bytes for `count` subtrees; with memory, the arrays. Those of 8 bytes come first. */
static size_t lbvh_i_top_room(lbvh_i_top *top, int32_t count, void *memory)
{
    size_t const n = (size_t)count;
    if (memory) {
        top->subtree = (lbvh_i_subtree *)memory;
        top->key = (uint64_t *)(void *)(top->subtree + n);
        top->spare = top->key + n;
        top->right = (double *)(void *)(top->spare + n);
        top->order[0] = (int32_t *)(void *)(top->right + n);
        top->order[1] = top->order[0] + n;
        top->order[2] = top->order[1] + n;
        top->later = top->order[2] + n;
        top->is_right = (uint8_t *)(void *)(top->later + n);
        top->border = top->is_right + n;
        top->level = top->border + n;
        top->prefix = top->level + n;
    }
    return n * (sizeof *top->subtree + 2 * sizeof *top->key + sizeof *top->right +
                4 * sizeof *top->later + 3) + (size_t)top->tree->n + 1;
}

/* Steps 1 to 3. 1: the tree has changed. */
static int lbvh_i_renew_top(lbvh_i_top *top)
{
    lbvh *tree = top->tree;
    int a, placed;
    lbvh_i_open_top(top);
    for (a = 0; a < tree->desc.dim; a++) lbvh_i_order_top(top, a);
    if (!lbvh_i_split_all(top) || !(top->gain > 0)) return 0;
    placed = lbvh_i_place_all(top);
    if (placed) {
        memcpy(tree->prefix, top->prefix, (size_t)tree->n + 1);
        lbvh_i_take_places(tree);
    }
    lbvh_i_merge(tree);
    return placed;
}

LBVH_API lbvh_result lbvh_split_top(lbvh *tree, double *gain)
{
    lbvh_block room;
    lbvh_i_top top;
    if (gain) *gain = 0;
    if (!tree) return LBVH_BAD_ARGUMENT;
    if (!tree->built) return LBVH_NOT_BUILT;
    if (tree->n < 3) return LBVH_OK;
    memset(&top, 0, sizeof top);
    top.tree = tree;
    top.count = tree->n / 20 > 64 ? tree->n / 20 : tree->n < 64 ? tree->n : 64;
    room = lbvh_i_take_block(&tree->desc.allocator, lbvh_i_top_room(&top, top.count, NULL));
    if (!room.memory) return LBVH_OUT_OF_MEMORY;
    (void)lbvh_i_top_room(&top, top.count, room.memory);
    top.root = lbvh_i_area(tree->desc.dim, tree->node[0].min, tree->node[0].max);
    if (lbvh_i_renew_top(&top) && gain && top.root > 0) *gain = top.gain / top.root;
    lbvh_i_release(&tree->desc.allocator, &room);
    return LBVH_OK;
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
} /* extern "C" */
#endif

#endif /* LBVH_OPTIMIZE_IMPLEMENTATION_DONE */

/* Licence: MIT or Unlicense, as in lbvh.h, >>licence. */
