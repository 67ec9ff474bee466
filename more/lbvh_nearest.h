/* more/lbvh_nearest.h - v0.2.0 - a part of lbvh.h: the k nearest elements by runs of leaves, faster
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   lbvh_nearest (without a function of yours) and lbvh_nearest_rows take 0.4 to 0.7 of the time, and
   give the same bits. Added by

       #define LBVH_WITH_NEAREST

   before lbvh.h is included, in the file with LBVH_IMPLEMENTATION; other files need not know. It
   declares nothing. With LBVH_PLAIN it adds nothing.

   >>contents: the banners in order; search for >>, the name and a colon

       manual          method, rules
       serial          run-list, run-distances, runs, run-rows

   >>method

   Leaves are stored in the order of the tree, so each subtree is a run of leaves, from a first
   place to a last one. A walk to single leaves decides for each of them what comes next, and the
   processor mispredicts many of these branches. Here a walk ends at subtrees of at most 16 leaves,
   as a k-d tree has buckets (Friedman, Bentley and Finkel 1977, section 3), and tests all of their
   leaves, four at a time, without a branch for each.

   A search begins at the run that the point lies in, and then takes the subtrees beside the way to
   it that are within reach. For k = 1 and 2 the bits of the point's code lead there: no step waits
   for distances to boxes. (tree.coded; other trees are gone down by distances.)

   Points that follow each other in lbvh_nearest_rows mostly begin in the same run. So the way from
   the root is kept: the next point goes up to a node that contains it, and down again.

   >>rules: those of lbvh.h, and

   Masks    A tree with desc.masks is searched by the walk of lbvh.h.
   Memory   nothing is allocated. Stack: 5 KB (double: 7).
   Double   and processors without SSE2: no vectors and no keys, and less is gained.

   Source   J. H. Friedman, J. L. Bentley, R. A. Finkel, An Algorithm for Finding Best Matches in
            Logarithmic Expected Time, ACM Transactions on Mathematical Software 3 (1977).
*/

#ifndef LBVH_H
#error "more/lbvh_nearest.h is a part of lbvh.h: define LBVH_WITH_NEAREST and include lbvh.h"
#elif 10000 * LBVH_VERSION_MAJOR + 100 * LBVH_VERSION_MINOR + LBVH_VERSION_PATCH != 200
#error "more/lbvh_nearest.h 0.2.0 and lbvh.h are of different versions: copy both from one release"
#endif
#if defined(LBVH_IMPLEMENTATION) && !defined(LBVH_I_BY_RUNS) && !defined(LBVH_PLAIN) && \
    !defined(LBVH_NEAREST_IMPLEMENTATION_DONE)
#error "lbvh.h: define LBVH_WITH_NEAREST before LBVH_IMPLEMENTATION, in the same include"
#endif

#if defined(LBVH_IMPLEMENTATION) && defined(LBVH_I_BY_RUNS) && \
    !defined(LBVH_NEAREST_IMPLEMENTATION_DONE)
#define LBVH_NEAREST_IMPLEMENTATION_DONE

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* RUN: leaves of a run at most. KEYS: k at most for a list of keys. CODED_K: k at most for the way
   by codes. */
enum { LBVH_I_RUN = 16, LBVH_I_KEYS = 64, LBVH_I_CODED_K = 2 };

/* A subtree: the squared distance to its box, its node and the node's link, its first and its last
   place. */
typedef struct lbvh_i_run { lbvh_real away2; int32_t at, link, first, last; } lbvh_i_run;

/* The search around a point. */
typedef struct lbvh_i_run_search {
    const lbvh *tree;
    lbvh_real p[3], reach2;
    int32_t k, found;           /* found: elements within reach so far, also those that were
                                   replaced by nearer ones (without keys: those that are kept) */
    int32_t few;                /* k, where it is 1 or 2 and elements are points; else 0 */
    int32_t last_id;            /* of leaves at exactly reach2, those with a larger id are not
                                   wanted */
    int32_t pairs;              /* pairs of keys; 0: the list is ids and distances2 */
    int32_t *ids;               /* [k] */
    lbvh_real *distances2;      /* [k] */
    double key[LBVH_I_KEYS];
    int32_t top;
    lbvh_i_run stack[LBVH_STACK];
} lbvh_i_run_search;

/* The way from the root to the run of a point: the nodes on it, and the child beside it of each. */
typedef struct lbvh_i_level { int32_t at, first, last, beside; } lbvh_i_level;
typedef struct lbvh_i_run_path {
    int32_t levels;
    lbvh_i_level step[LBVH_STACK + 3];   /* the root .. the run: step[levels] */
} lbvh_i_run_path;

/* ------------------------------------------------------------------------------------------------
   >>run-list: the k nearest so far

   With SSE2 and floats an entry is one key of 64 bits, which ascends with the distance, then with
   the id:

       bits 63 .. 32: the bits of the squared distance, + 2^20      31 .. 0: the id

   Bits of floats that are not negative ascend as these do. The sum makes of each key the bits of a
   normal double (it stays below infinity), and so a minimum of doubles is one of keys. A new key
   moves into a sorted list without a branch:

       list        10   20   30   50       new key 25
       minimum     10   20   25   25       of each entry and the new key
       list        10   20   25   30       the maximum of that and the entry before
   ---------------------------------------------------------------------------------------------- */

#ifdef LBVH_I_SSE2

static double lbvh_i_near_key(uint32_t distance2_bits, int32_t id)
{
    uint64_t const bits = (uint64_t)(distance2_bits + 0x100000u) << 32 | (uint32_t)id;
    double key;
    memcpy(&key, &bits, sizeof key);
    return key;
}

/* The distance and the id of a key. */
static float lbvh_i_key_distance2(const double *key, int32_t *id)
{
    uint64_t bits;
    uint32_t distance2_bits;
    float distance2;
    memcpy(&bits, key, sizeof bits);
    distance2_bits = (uint32_t)(bits >> 32) - 0x100000u;
    memcpy(&distance2, &distance2_bits, sizeof distance2);
    *id = (int32_t)(uint32_t)bits;
    return distance2;
}

/* A list in which every entry is at the reach, with an id that is above all. */
static void lbvh_i_begin_list(lbvh_i_run_search *s)
{
    double const none = lbvh_i_near_key(lbvh_i_bits_of(s->reach2), INT32_MAX);
    int32_t e;
    s->pairs = s->k <= LBVH_I_KEYS ? (s->k + 1) / 2 : 0;
    for (e = 0; e < 2 * s->pairs; e++) s->key[e] = none;
}

/* Inserts a key. */
LBVH_I_HOT void lbvh_i_list_key(double *list, int32_t pairs, double new_key)
{
    __m128d const key = _mm_set1_pd(new_key);
    __m128d entry = _mm_loadu_pd(list + 2 * pairs - 2), before;
    int32_t at;
    for (at = 2 * pairs - 2; at > 0; at -= 2, entry = before) {
        before = _mm_loadu_pd(list + at - 2);
        _mm_storeu_pd(list + at, _mm_max_pd(_mm_shuffle_pd(before, entry, 1),
                                            _mm_min_pd(entry, key)));
    }
    before = _mm_unpacklo_pd(_mm_setzero_pd(), entry);
    _mm_storeu_pd(list, _mm_max_pd(before, _mm_min_pd(entry, key)));
}

/* Keeps the nearest of four elements with these distances, of which the first `count` exist. A list
   that is short takes all four: those beyond the reach as infinity, which goes nowhere. */
LBVH_I_HOT void lbvh_i_list_four(lbvh_i_run_search *s, const lbvh_node *const leaf[4],
                                 const float d2[4], int32_t count)
{
    static const uint8_t ones[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
    __m128 const infinite = _mm_set1_ps(lbvh_i_infinity()), all = _mm_loadu_ps(d2);
    __m128 const hit = _mm_and_ps(_mm_cmple_ps(all, _mm_set1_ps(s->reach2)),
                                  _mm_castsi128_ps(_mm_cmpgt_epi32(_mm_set1_epi32(count),
                                                                   _mm_setr_epi32(0, 1, 2, 3))));
    int const hits = _mm_movemask_ps(hit);
    float near2[4];
    int e;
    if (!hits) return;
    _mm_storeu_ps(near2, _mm_or_ps(_mm_and_ps(hit, all), _mm_andnot_ps(hit, infinite)));
    for (e = 0; e < 4; e++)
        if (s->pairs <= 4 || hits >> e & 1)
            lbvh_i_list_key(s->key, s->pairs,
                            lbvh_i_near_key(lbvh_i_bits_of(near2[e]), leaf[e]->link));
    s->found += ones[hits];
    s->reach2 = lbvh_i_key_distance2(s->key + s->k - 1, &s->last_id);
}

/* The list as the caller wants it. */
static void lbvh_i_end_list(lbvh_i_run_search *s)
{
    int32_t e;
    if (!s->pairs) return;
    if (s->found > s->k) s->found = s->k;
    for (e = 0; e < s->found; e++)
        s->distances2[e] = lbvh_i_key_distance2(s->key + e, &s->ids[e]);
}

#else

static void lbvh_i_begin_list(lbvh_i_run_search *s) { s->pairs = 0; }
static void lbvh_i_list_four(lbvh_i_run_search *s, const lbvh_node *const leaf[4],
                             const lbvh_real d2[4], int32_t count)
{
    (void)s;
    (void)leaf;
    (void)d2;
    (void)count;
}
static void lbvh_i_end_list(lbvh_i_run_search *s) { (void)s; }

#endif

/* Keeps the nearest of four leaves, of which the first `count` exist (more than 4: all do). */
LBVH_I_HOT void lbvh_i_keep_four(lbvh_i_run_search *s, const lbvh_node *const leaf[4],
                                 const lbvh_real d2[4], int32_t count)
{
    int32_t e;
    if (s->pairs) {
        lbvh_i_list_four(s, leaf, d2, count);
        return;
    }
    for (e = 0; e < 4 && e < count; e++) {
        if (!(d2[e] <= s->reach2)) continue;
        s->reach2 = lbvh_i_keep_nearest(s->ids, s->distances2, s->k, &s->found, s->reach2,
                                        leaf[e]->link, d2[e]);
        if (s->found == s->k) s->last_id = lbvh_i_last_id(s->ids, s->k);
    }
}

/* ------------------------------------------------------------------------------------------------
   >>run-distances: lbvh_box_distance2 of two and of four boxes
   ---------------------------------------------------------------------------------------------- */

#ifdef LBVH_I_SSE2

LBVH_I_HOT __m128 lbvh_i_squares(__m128 x)
{
    x = _mm_mul_ps(x, x);
#ifdef __GNUC__
    __asm__("" : "+x"(x)); /* lbvh_i_kept of a vector */
#endif
    return x;
}

/* Coordinates and link of a node's lower corner. */
LBVH_I_HOT __m128 lbvh_i_corner(const lbvh_node *node)
{
    return _mm_loadu_ps((const float *)(const void *)node);
}

/* The squares of the three distances along axes, and 0. */
LBVH_I_HOT __m128 lbvh_i_axis_squares(const lbvh_node *node, __m128 p)
{
    __m128 const axes = _mm_castsi128_ps(_mm_setr_epi32(-1, -1, -1, 0)),
                 upper = _mm_loadu_ps((const float *)(const void *)node + 4),
                 away = _mm_sub_ps(p, _mm_min_ps(_mm_max_ps(p, lbvh_i_corner(node)), upper));
    /* the fourth numbers are link and skip: 0 before the product, where denormals would be slow */
    return lbvh_i_squares(_mm_and_ps(away, axes));
}

LBVH_I_HOT int lbvh_i_any_within(const float d2[4], float reach2)
{
    return _mm_movemask_ps(_mm_cmple_ps(_mm_loadu_ps(d2), _mm_set1_ps(reach2))) != 0;
}

LBVH_I_HOT void lbvh_i_two_distances(const float p[3], const lbvh_node *a, const lbvh_node *b,
                                     float d2[2])
{
    __m128 const at = _mm_setr_ps(p[0], p[1], p[2], 0);
    __m128 const l = lbvh_i_axis_squares(a, at), r = lbvh_i_axis_squares(b, at);
    __m128 const xy = _mm_unpacklo_ps(l, r), z = _mm_unpackhi_ps(l, r);
    _mm_storel_pi((__m64 *)(void *)d2, _mm_add_ps(_mm_add_ps(xy, _mm_movehl_ps(xy, xy)), z));
}

LBVH_I_HOT void lbvh_i_four_distances(const float p[3], const lbvh_node *const node[4],
                                      float d2[4])
{
    __m128 const at = _mm_setr_ps(p[0], p[1], p[2], 0);
    __m128 x = lbvh_i_axis_squares(node[0], at), y = lbvh_i_axis_squares(node[1], at),
           z = lbvh_i_axis_squares(node[2], at), none = lbvh_i_axis_squares(node[3], at);
    _MM_TRANSPOSE4_PS(x, y, z, none);
    _mm_storeu_ps(d2, _mm_add_ps(_mm_add_ps(x, y), z));
}

#else

LBVH_I_HOT int lbvh_i_any_within(const lbvh_real d2[4], lbvh_real reach2)
{
    return d2[0] <= reach2 || d2[1] <= reach2 || d2[2] <= reach2 || d2[3] <= reach2;
}

LBVH_I_HOT void lbvh_i_two_distances(const lbvh_real p[3], const lbvh_node *a, const lbvh_node *b,
                                     lbvh_real d2[2])
{
    d2[0] = lbvh_box_distance2(a, p);
    d2[1] = lbvh_box_distance2(b, p);
}

LBVH_I_HOT void lbvh_i_four_distances(const lbvh_real p[3], const lbvh_node *const node[4],
                                      lbvh_real d2[4])
{
    int e;
    for (e = 0; e < 4; e++) d2[e] = lbvh_box_distance2(node[e], p);
}

#endif

/* ------------------------------------------------------------------------------------------------
   >>runs: the walk
   ---------------------------------------------------------------------------------------------- */

#ifdef LBVH_I_SSE2

/* The keys of four points, 4 numbers each; where `none`, of one at infinity. */
LBVH_I_HOT void lbvh_i_four_keys(const float p[3], const lbvh_node *const leaf[4], __m128i none,
                                 __m128d key[2])
{
    __m128 x = lbvh_i_corner(leaf[0]), y = lbvh_i_corner(leaf[1]), z = lbvh_i_corner(leaf[2]),
           id = lbvh_i_corner(leaf[3]);
    __m128i d2;
    _MM_TRANSPOSE4_PS(x, y, z, id);
    x = lbvh_i_squares(_mm_sub_ps(_mm_set1_ps(p[0]), x));
    y = lbvh_i_squares(_mm_sub_ps(_mm_set1_ps(p[1]), y));
    z = lbvh_i_squares(_mm_sub_ps(_mm_set1_ps(p[2]), z));
    d2 = _mm_castps_si128(_mm_add_ps(_mm_add_ps(x, y), z));
    d2 = _mm_or_si128(_mm_andnot_si128(none, _mm_add_epi32(d2, _mm_set1_epi32(0x100000))),
                      _mm_and_si128(none, _mm_set1_epi32(0x7F900000)));
    key[0] = _mm_castsi128_pd(_mm_unpacklo_epi32(_mm_castps_si128(id), d2));
    key[1] = _mm_castsi128_pd(_mm_unpackhi_epi32(_mm_castps_si128(id), d2));
}

/* Tests a run of points for the nearest and, with k = 2, the next: of each half of the registers,
   then of both. */
static void lbvh_i_test_points(lbvh_i_run_search *s, int32_t first, int32_t last)
{
    __m128i const end = _mm_set1_epi32(last);
    const lbvh_node *const leaf = lbvh_i_leaf(s->tree, 0);
    double const none = lbvh_i_near_key(lbvh_i_bits_of(lbvh_i_infinity()), INT32_MAX);
    __m128d best = _mm_set_pd(none, s->key[0]), next = _mm_set_pd(none, s->key[1]), key[2];
    int32_t at, e;
    for (at = first; at <= last; at += 4) {
        const lbvh_node *const four[4] = {leaf + at, leaf + (at + 1 < last ? at + 1 : last),
                                          leaf + (at + 2 < last ? at + 2 : last),
                                          leaf + (at + 3 < last ? at + 3 : last)};
        __m128i const places = _mm_setr_epi32(at, at + 1, at + 2, at + 3);
        lbvh_i_four_keys(s->p, four, _mm_cmpgt_epi32(places, end), key);
        for (e = 0; e < 2; e++) {
            next = _mm_min_pd(next, _mm_max_pd(best, key[e]));
            best = _mm_min_pd(best, key[e]);
        }
    }
    key[0] = _mm_shuffle_pd(best, best, 1);
    next = _mm_min_pd(_mm_max_pd(best, key[0]), _mm_min_pd(next, _mm_shuffle_pd(next, next, 1)));
    _mm_storeu_pd(s->key, _mm_unpacklo_pd(_mm_min_pd(best, key[0]), next));
    for (s->found = 0, e = 1; e >= 0; e--) {
        s->reach2 = lbvh_i_key_distance2(s->key + e, &s->last_id);
        s->found += s->last_id != INT32_MAX;
    }
    if (s->few == 2) s->reach2 = lbvh_i_key_distance2(s->key + 1, &s->last_id);
}

#endif

/* Tests a run of leaves. */
LBVH_I_HOT void lbvh_i_test_run(lbvh_i_run_search *s, int32_t first, int32_t last)
{
    int32_t const leaves = last - first + 1;
    int32_t at;
#ifdef LBVH_I_SSE2
    if (s->few) {
        lbvh_i_test_points(s, first, last);
        return;
    }
#endif
    for (at = 0; at < leaves; at += 4) {
        int32_t const count = leaves - at;
        const lbvh_node *const leaf = lbvh_i_leaf(s->tree, first) + at;
        const lbvh_node *const four[4] = {leaf, leaf + (count > 1), leaf + 2 * (count > 2),
                                          leaf + 3 * (count > 3)};
        lbvh_real d2[4];
        lbvh_i_four_distances(s->p, four, d2);
        lbvh_i_keep_four(s, four, d2, count);
    }
}

/* A subtree that waits will be needed soon: its first leaves, or its children. */
LBVH_I_HOT void lbvh_i_prefetch_run(const lbvh_i_run_search *s, const lbvh_i_run *run)
{
    const lbvh_node *leaf = lbvh_i_leaf(s->tree, run->first);
    if (run->last - run->first >= LBVH_I_RUN) LBVH_I_PREFETCH(&s->tree->node[run->link]);
    else {
        LBVH_I_PREFETCH(leaf);
        LBVH_I_PREFETCH((const char *)leaf + 64);
        LBVH_I_PREFETCH((const char *)leaf + 128);
        LBVH_I_PREFETCH((const char *)leaf + 192);
    }
}

/* *run becomes its nearer child, *beside the other one. */
LBVH_I_HOT void lbvh_i_open_run(const lbvh_i_run_search *s, lbvh_i_run *run, lbvh_i_run *beside)
{
    const lbvh *tree = s->tree;
    int32_t const link = run->link,
                  split = link < tree->first_leaf ? link : link - tree->first_leaf,
                  begin = split + 1, first = run->first, last = run->last,
                  right = begin == last ? tree->first_leaf + begin : begin,
                  left_link = tree->node[link].link, right_link = tree->node[right].link;
    lbvh_real d2[2];
    int left_first;
    lbvh_i_two_distances(s->p, &tree->node[link], &tree->node[right], d2);
    left_first = d2[0] <= d2[1];
    beside->away2 = left_first ? d2[1] : d2[0];
    beside->at = left_first ? right : link;
    beside->link = left_first ? right_link : left_link;
    beside->first = left_first ? begin : first;
    beside->last = left_first ? last : split;
    run->away2 = left_first ? d2[0] : d2[1];
    run->at = left_first ? link : right;
    run->link = left_first ? left_link : right_link;
    run->first = left_first ? first : begin;
    run->last = left_first ? split : last;
    lbvh_i_prefetch_run(s, beside);
}

/* 1 if a subtree can hold one of the k nearest. */
LBVH_I_HOT int lbvh_i_run_wanted(const lbvh_i_run_search *s, const lbvh_i_run *run)
{
    if (run->away2 < s->reach2) return 1;
    return run->away2 <= s->reach2 && !lbvh_i_ids_above(s->tree, run->at, s->last_id);
}

/* Takes a subtree from the stack, and goes down to a run of it. The farther children on the way
   stay. 0: the run is beyond the reach. */
LBVH_I_HOT int lbvh_i_next_run(lbvh_i_run_search *s, lbvh_i_run *run)
{
    *run = s->stack[--s->top];
    while (lbvh_i_run_wanted(s, run)) {
        if (run->last - run->first < LBVH_I_RUN) return 1;
        lbvh_i_open_run(s, run, &s->stack[s->top]);
        s->top += s->stack[s->top].away2 <= s->reach2;
    }
    return 0;
}

/* The path of the point before becomes that of this one: up to a node whose box contains the point,
   and down to a run, to the nearer child each time. */
static void lbvh_i_move_path(const lbvh_i_run_search *s, lbvh_i_run_path *path)
{
    const lbvh_node *node = s->tree->node;
    lbvh_i_level *step = &path->step[path->levels];
    lbvh_i_run run, beside;
    while (step > path->step && lbvh_box_distance2(&node[step->at], s->p) > 0) step--;
    run.at = step->at;
    run.link = node[run.at].link;
    run.first = step->first;
    run.last = step->last;
    while (run.last - run.first >= LBVH_I_RUN) {
        lbvh_i_open_run(s, &run, &beside);
        step++->beside = beside.at;
        step->at = run.at;
        step->first = run.first;
        step->last = run.last;
    }
    path->levels = (int32_t)(step - path->step);
}

/* The first 30 bits of a point's code in space, at the top. (All bits take twice as long.) */
LBVH_I_HOT uint64_t lbvh_i_first_bits(const lbvh *tree, const lbvh_real p[3])
{
    const lbvh_lattice *lattice = &tree->lattice;
    int const lower = lbvh_i_axis_bits(3, tree->desc.bits) - 10;
    uint32_t const x = lbvh_i_coordinate(lattice, 0, lbvh_i_times(p[0], (lbvh_real)0.5)) >> lower,
                   y = lbvh_i_coordinate(lattice, 1, lbvh_i_times(p[1], (lbvh_real)0.5)) >> lower,
                   z = lbvh_i_coordinate(lattice, 2, lbvh_i_times(p[2], (lbvh_real)0.5)) >> lower;
    return lbvh_i_interleave(3, 30, x, y, z) << 34;
}

/* A path by the bits of the point's code: right where the bit after the common prefix is 1. */
LBVH_I_HOT void lbvh_i_code_path(const lbvh_i_run_search *s, lbvh_i_run_path *path)
{
    const lbvh *tree = s->tree;
    int const code_bits = lbvh_i_code_bits(&tree->desc);
    uint64_t code = lbvh_i_first_bits(tree, s->p);
    lbvh_i_level *step = path->step;
    int32_t at = 0, first = 0, last = tree->n - 1, bits = tree->desc.dim == 3 ? 30 : 0;
    while (last - first >= LBVH_I_RUN) {
        int32_t const link = tree->node[at].link,
                      split = link < tree->first_leaf ? link : link - tree->first_leaf,
                      begin = split + 1, right = begin == last ? tree->first_leaf + begin : begin,
                      prefix = tree->prefix[begin];
        if (prefix > bits) { /* all bits, once */
            code = lbvh_i_code(&tree->lattice, tree->desc.dim, tree->desc.bits, s->p, s->p)
                   << (64 - code_bits);
            bits = INT32_MAX;
        }
        LBVH_I_PREFETCH(&tree->node[link]);
        LBVH_I_PREFETCH(&tree->node[right]);
        step->first = first;
        step->last = last;
        if (code << ((prefix - 1) & 63) >> 63) {
            step++->beside = link;
            at = first = begin;
        } else {
            step++->beside = right;
            at = last = split;
        }
    }
    step->first = first;
    step->last = last;
    path->levels = (int32_t)(step - path->step);
}

/* The subtree beside a step. */
LBVH_I_HOT lbvh_i_run lbvh_i_beside(const lbvh *tree, const lbvh_i_level *step, lbvh_real away2)
{
    int const to_right = step[1].first > step->first;
    lbvh_i_run run;
    run.away2 = away2;
    run.at = step->beside;
    run.link = tree->node[run.at].link;
    run.first = to_right ? step->first : step[1].last + 1;
    run.last = to_right ? step[1].first - 1 : step->last;
    return run;
}

/* Tests the run that a path leads to, and leaves the subtrees beside it on the stack. */
LBVH_I_HOT void lbvh_i_take_path(lbvh_i_run_search *s, lbvh_i_run_path *path)
{
    int32_t const levels = path->levels;
    lbvh_i_level *step = path->step;
    int32_t at, e;
    lbvh_i_test_run(s, step[levels].first, step[levels].last);
    for (e = 0; e < 3; e++) step[levels + e].beside = levels > 0 ? step[levels - 1].beside : 0;
    for (at = 0; at < levels; at += 4) {
        const lbvh_node *four[4];
        lbvh_real d2[4];
        for (e = 0; e < 4; e++) four[e] = &s->tree->node[step[at + e].beside];
        lbvh_i_four_distances(s->p, four, d2);
        if (!lbvh_i_any_within(d2, s->reach2)) continue;
        for (e = 0; e < 4 && at + e < levels; e++)
            if (d2[e] <= s->reach2)
                s->stack[s->top++] = lbvh_i_beside(s->tree, &step[at + e], d2[e]);
    }
}

/* The same by the point's code. */
LBVH_I_HOT void lbvh_i_take_coded(lbvh_i_run_search *s)
{
    lbvh_i_run_path path;
    lbvh_i_code_path(s, &path);
    lbvh_i_take_path(s, &path);
}

/* All leaves. */
LBVH_I_HOT lbvh_i_run lbvh_i_whole_run(const lbvh *tree)
{
    lbvh_i_run run;
    run.away2 = 0;
    run.at = run.first = 0;
    run.link = tree->node[0].link;
    run.last = tree->n - 1;
    return run;
}

/* The k nearest, of a point that is finite. path: of the point before, or NULL. */
LBVH_I_HOT void lbvh_i_search_runs(lbvh_i_run_search *s, lbvh_i_run_path *path)
{
    lbvh_i_run run;
    lbvh_i_begin_list(s);
    if (path) lbvh_i_move_path(s, path);
    if (path) lbvh_i_take_path(s, path);
    else if (s->tree->coded && s->k <= LBVH_I_CODED_K) lbvh_i_take_coded(s);
    else s->stack[s->top++] = lbvh_i_whole_run(s->tree);
    while (s->top > 0) if (lbvh_i_next_run(s, &run)) lbvh_i_test_run(s, run.first, run.last);
    lbvh_i_end_list(s);
}

/* lbvh_nearest by runs, of checked arguments, with k > 0 and elements. */
static int32_t lbvh_i_nearest_of(const lbvh *tree, const lbvh_real *p, int32_t k, lbvh_real reach,
                                 lbvh_i_run_path *path, int32_t *ids, lbvh_real *distances2)
{
    lbvh_i_run_search s;
    s.tree = tree;
    s.reach2 = lbvh_i_min(lbvh_i_times(reach, reach), lbvh_i_largest());
    s.k = k;
    s.few = 0;
#ifdef LBVH_I_SSE2
    if (k <= LBVH_I_CODED_K && tree->desc.kind == LBVH_POINTS && tree->desc.radius >= 0 &&
        tree->desc.radius <= 0)
        s.few = k;
#endif
    s.last_id = INT32_MAX;
    s.ids = ids;
    s.distances2 = distances2;
    s.found = s.top = 0;
    if (!lbvh_i_read_point(tree->desc.dim, p, s.p)) return 0;
    lbvh_i_search_runs(&s, path);
    lbvh_i_sort_nearest(ids, distances2, s.pairs ? 1 : k, s.found);
    return s.found;
}

/* The seam of lbvh_nearest. */
static int lbvh_i_nearest_by_runs(const lbvh *tree, const lbvh_real *p, int32_t k, lbvh_real reach,
                                  int32_t *ids, lbvh_real *distances2, int32_t *found)
{
    if (tree->mask || tree->n == 0) return 0;
    *found = lbvh_i_nearest_of(tree, p, k, reach, NULL, ids, distances2);
    return 1;
}

/* ------------------------------------------------------------------------------------------------
   >>run-rows: many points
   ---------------------------------------------------------------------------------------------- */

/* The seam of a piece of lbvh_nearest_rows: the rows of the points begin .. end-1, of their keys'
   order where there are keys. */
static int lbvh_i_rows_by_runs(const lbvh_i_rows *rows, const uint64_t *key, int32_t begin,
                               int32_t end)
{
    int32_t const k = rows->k;
    lbvh_i_run_path path;
    int32_t at;
    if (rows->tree->mask || k == 0 || rows->tree->n == 0) return 0;
    path.levels = path.step[0].at = path.step[0].first = 0;
    path.step[0].last = rows->tree->n - 1;
    for (at = begin; at < end; at++) {
        int32_t const q = key ? lbvh_i_key_id(key[at]) : at;
        size_t const row = (size_t)q * (size_t)k;
        int32_t const found =
            lbvh_i_nearest_of(rows->tree, lbvh_i_at(rows->points, rows->stride, q), k, rows->reach,
                              &path, rows->ids + row, rows->distances2 + row);
        lbvh_i_end_row(rows, q, k - found);
    }
    return 1;
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
} /* extern "C" */
#endif

#endif /* LBVH_IMPLEMENTATION */
