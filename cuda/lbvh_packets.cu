/* cuda/lbvh_packets.cu - v0.2.0 - searches of a tree by whole warps: a part of cuda/lbvh.cu and of
   cuda/nlist.cu, which include it; names are those of lbvh.h.
   SPDX-License-Identifier: MIT OR Unlicense

   >>contents: search for >>, the name and a colon. packets. */

#ifndef LBVH_H
#error "cuda/lbvh_packets.cu is a part of lbvh.h: include that"
#elif 10000 * LBVH_VERSION_MAJOR + 100 * LBVH_VERSION_MINOR + LBVH_VERSION_PATCH != 200
#error "cuda/lbvh_packets.cu 0.2.0 and lbvh.h are of different versions: copy both from one release"
#endif

#ifndef LBVH_I_PACKETS
#define LBVH_I_PACKETS

#include <cfloat>

namespace {

/* The number of this thread in the launch. */
__device__ __forceinline__ int32_t lbvh_i_thread()
{
    return (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
}

/* Leaves side by side whose common box is stored (cuda/lbvh.cu, >>leaves): half as many as a warp
   has lanes. */
constexpr int lbvh_i_slice = 16;

/* Behind the nodes lie the boxes of slices, for >>packets. */
__device__ __forceinline__ lbvh_node *lbvh_i_slices(const lbvh &tree)
{
    return tree.node + 2 * (size_t)tree.n;
}

/* ------------------------------------------------------------------------------------------------
   >>packets: warp-cooperative packet traversal, for the 32 searches of a warp

   Searches near each other visit nearly the same nodes. A thread for each would load 32 addresses
   at a time, and the throughput of the caches would limit the search. So a warp traverses the tree
   as one packet, without divergence (the subject of Thinking Parallel II): at each node, which all
   lanes load at once, they vote whether any search overlaps it. A small subtree is not traversed:
   each lane loads one of its leaves. Those near any of the searches go to a batch in shared memory,
   and every lane tests the batch for its own search. Searches for boxes stop at larger subtrees:
   each lane looks at a slice first, the common box of 16 leaves side by side.

       walk      o            vote per node: does any search overlap it?
                / \
       fetch   a b c d e f .. 32 leaves at a time, one per lane
       batch   b d e          those near the warp's searches as a whole
       test    every lane its own search against b, d, e

   Leaves stay in the order of their places, so the results are those of lbvh_next, in its order.
   ---------------------------------------------------------------------------------------------- */

/* Threads of a block in searches: fewer than in builds, for one long search keeps its whole block
   resident. 12 blocks fit an SM when a thread has at most 40 registers: 0.56 ms instead of 0.61
   with 8, for the radius counts of uniform-1M on an H200. (sm_75 has room for 8.) */
constexpr int lbvh_i_search_block = 128;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int lbvh_i_search_blocks = 8;
#else
constexpr int lbvh_i_search_blocks = 12;
#endif

/* The kind of test, a template argument: each kernel contains one test only. */
enum lbvh_i_test {
    LBVH_I_BOX,         /* boxes that overlap a box */
    LBVH_I_SPHERE,      /* boxes within a radius */
    LBVH_I_POINT_LEAVES /* within a radius, where all leaves are points: half the work */
};

/* Candidate leaves, tested 32 at a time: a ring of two halves, one of which is tested while the
   other is filled. */
struct lbvh_i_warp_batch {
    lbvh_node leaf[64]; /* `skip` holds the place */
    uint32_t mask[64];
};

/* The batch of a thread's warp. */
__device__ __forceinline__ lbvh_i_warp_batch &lbvh_i_my_batch()
{
    __shared__ lbvh_i_warp_batch batches[lbvh_i_search_block / 32];
    return batches[threadIdx.x / 32];
}

/* lbvh_i_meets for a test that is known when compiling. */
template <lbvh_i_test Test>
__device__ __forceinline__ bool lbvh_i_meets_leaf(const lbvh_overlap &o, const lbvh_node &leaf)
{
    if (Test == LBVH_I_BOX) return lbvh_boxes_touch(&leaf, o.min, o.max);
    if (Test == LBVH_I_SPHERE) return lbvh_box_distance2(&leaf, o.min) <= o.reach2;
    return lbvh_i_square(leaf.min[0] - o.min[0], leaf.min[1] - o.min[1], leaf.min[2] - o.min[2]) <=
           o.reach2;
}

/* The same for inner nodes. */
template <lbvh_i_test Test>
__device__ __forceinline__ bool lbvh_i_meets_node(const lbvh_overlap &o, const lbvh_node &node)
{
    /* an inner node is never a point */
    constexpr lbvh_i_test as_a_box = Test == LBVH_I_BOX ? LBVH_I_BOX : LBVH_I_SPHERE;
    return lbvh_i_meets_leaf<as_a_box>(o, node);
}

/* The union of the searches of a warp, by butterfly shuffles. */
__device__ __forceinline__ lbvh_i_packet lbvh_i_gather_packet(const lbvh_overlap &o)
{
    lbvh_i_packet packet;
    packet.reach2 = o.reach2;
    for (int a = 0; a < 3; a++) {
        packet.min[a] = o.min[a];
        packet.max[a] = o.max[a];
    }
    for (int step = 16; step > 0; step /= 2) {
        packet.reach2 = lbvh_i_max(packet.reach2,
                                   __shfl_xor_sync(0xFFFFFFFFu, packet.reach2, step));
        for (int a = 0; a < 3; a++) {
            packet.min[a] = lbvh_i_min(packet.min[a],
                                       __shfl_xor_sync(0xFFFFFFFFu, packet.min[a], step));
            packet.max[a] = lbvh_i_max(packet.max[a],
                                       __shfl_xor_sync(0xFFFFFFFFu, packet.max[a], step));
        }
    }
    return packet;
}

/* 1 if any search of the packet could overlap this leaf. The distance from the leaf to the box of
   centres, rounded as each search rounds, is not above that to any of them. */
template <lbvh_i_test Test>
__device__ __forceinline__ bool lbvh_i_packet_near_leaf(const lbvh_i_packet &packet,
                                                        const lbvh_node &leaf)
{
    lbvh_real away[3] = {0, 0, 0};
    if (Test != LBVH_I_BOX) {
        for (int a = 0; a < 3; a++)
            away[a] = Test == LBVH_I_POINT_LEAVES
                          ? lbvh_i_outside(packet.min[a], packet.max[a], leaf.min[a])
                          : lbvh_i_max(lbvh_i_max(leaf.min[a] - packet.max[a],
                                                  packet.min[a] - leaf.max[a]),
                                       0);
    }
    return Test == LBVH_I_BOX ? lbvh_boxes_touch(&leaf, packet.min, packet.max)
                              : lbvh_i_square(away[0], away[1], away[2]) <= packet.reach2;
}

/* An empty search, for lanes without one: from infinity down to minus infinity. */
__device__ __forceinline__ lbvh_overlap lbvh_i_no_search(const lbvh *tree)
{
    lbvh_real const high[3] = {lbvh_i_infinity(), lbvh_i_infinity(), lbvh_i_infinity()},
                    low[3] = {-high[0], -high[0], -high[0]};
    return lbvh_i_overlap(tree, high, low, -1, -1);
}

/* Leaves of a batch are tested so many at a time. */
constexpr int lbvh_i_at_once = 8;

/* Every lane tests its own search against the first `many` leaves of a half, and some more of the
   last step. Returns a bit for each hit. */
template <lbvh_i_test Test, bool Later, bool Masked>
__device__ __forceinline__ unsigned lbvh_i_test_leaves(const lbvh_overlap &o, int32_t after,
                                                       const lbvh_node *leaf, const uint32_t *mask,
                                                       int many)
{
    unsigned hits = 0;
#pragma unroll 1
    for (int begin = 0; begin < many; begin += lbvh_i_at_once)
#pragma unroll
        for (int c = 0; c < lbvh_i_at_once; c++) {
            lbvh_node const other = lbvh_i_fetch(&leaf[begin + c]);
            bool meets = lbvh_i_meets_leaf<Test>(o, other);
            if (Later) meets = meets & (other.skip > after);
            if (Masked) meets = meets & ((mask[begin + c] & o.filter) != 0);
            hits |= meets ? 1u << (begin + c) : 0u;
        }
    return hits;
}

/* The same for points by fused operations, of which there are three fewer each: the sign of x*x +
   y*y + z*z - reach2. Let u = 2^-24, and S the sum of the squares without rounding. Up to S = 2
   reach2, the three roundings here change it by at most 6 u reach2, and those of lbvh_i_square by 7
   u reach2; above, both are far from reach2. So the sign is right where the result exceeds 16 u
   reach2; FLT_MIN is for numbers so small that they have fewer digits. Otherwise (a batch of some
   thousand) the leaves are tested as everywhere. */
__device__ __forceinline__ unsigned lbvh_i_test_points(const lbvh_overlap &o, const lbvh_node *leaf,
                                                       int many)
{
    int const tested = (many + lbvh_i_at_once - 1) / lbvh_i_at_once * lbvh_i_at_once;
    float const limit = (float)o.reach2;
    float closest = limit;
    unsigned hits = 0;
#pragma unroll 1
    for (int begin = 0; begin < many; begin += lbvh_i_at_once)
#pragma unroll
        for (int c = 0; c < lbvh_i_at_once; c++) {
            lbvh_node const other = lbvh_i_fetch(&leaf[begin + c]);
            float const x = (float)(other.min[0] - o.min[0]), y = (float)(other.min[1] - o.min[1]),
                        z = (float)(other.min[2] - o.min[2]),
                        excess = __fmaf_rn(z, z, __fmaf_rn(y, y, __fmaf_rn(x, x, -limit)));
            hits = hits << 1 | __float_as_uint(excess) >> 31;
            closest = fminf(closest, fabsf(excess));
        }
    if (closest > limit * 0x1p-20f + FLT_MIN) return __brev(hits) >> (32 - tested);
    return lbvh_i_test_leaves<LBVH_I_POINT_LEAVES, false, false>(o, -1, leaf, nullptr, many);
}

/* Tests the half of the batch that begins at `from`. Places ascend: where the first leaf is later
   than those of the warp, all are. (Later: a lane's own place is its thread's number.) */
template <lbvh_i_test Test, bool Later, bool Masked>
__device__ __forceinline__ unsigned lbvh_i_test_batch(const lbvh_overlap &o, int32_t after,
                                                      const lbvh_i_warp_batch &batch, int from,
                                                      int waiting)
{
    constexpr bool fuses = Test == LBVH_I_POINT_LEAVES && !Masked && LBVH_I_REAL_KIND == 1;
    const lbvh_node *const leaf = batch.leaf + from;
    bool const all_count = !Later || leaf[0].skip > (lbvh_i_thread() | 31);
    unsigned const hits =
        fuses && all_count ? lbvh_i_test_points(o, leaf, waiting)
                           : lbvh_i_test_leaves<Test, Later, Masked>(o, after, leaf,
                                                                     batch.mask + from, waiting);
    return waiting < 32 ? hits & ((1u << waiting) - 1) : hits;
}

/* Boxes: a subtree that lies in at most so many slices is not walked. Those near the packet are
   found first. (For searches within a radius it does not pay: tests/bench/notes/lbvh.md.) There a
   subtree of at most so many leaves is not walked. */
#ifdef CUDA_EMU
constexpr int32_t lbvh_i_most_slices = 3;
template <bool Shrinks> constexpr int32_t lbvh_i_most_leaves = 40;
#else
constexpr int32_t lbvh_i_most_slices = 32;
template <bool Shrinks> constexpr int32_t lbvh_i_most_leaves = Shrinks ? 96 : 128;
#endif

/* A bit for each slice, from `slice` on, that holds some of the leaves up to `last`, and is near
   the packet. */
__device__ __forceinline__ unsigned lbvh_i_near_slices(const lbvh &tree,
                                                       const lbvh_i_packet &packet, int32_t slice,
                                                       int32_t last)
{
    int32_t const most = last / lbvh_i_slice, own = slice + (int32_t)(threadIdx.x % 32),
                  at = own < most ? own : most;
    lbvh_node const box = lbvh_i_fetch(&lbvh_i_slices(tree)[at]);
    return __ballot_sync(0xFFFFFFFFu,
                         own <= most && lbvh_i_packet_near_leaf<LBVH_I_BOX>(packet, box));
}

/* Takes the first two slices out of these, numbered from `slice` on: half of the lanes get a place
   in the one, half in the other. -1: there is none, or not in first .. last. */
__device__ __forceinline__ int32_t lbvh_i_place_in_slices(unsigned *slices, int32_t slice,
                                                          int32_t first, int32_t last)
{
    int const lane = (int)(threadIdx.x % 32);
    unsigned const others = *slices & (*slices - 1), own = lane < lbvh_i_slice ? *slices : others;
    int32_t const place = (slice + __ffs((int)own) - 1) * lbvh_i_slice + lane % lbvh_i_slice;
    *slices = others & (others - 1);
    return own && place >= first && place <= last ? place : -1;
}

/* As lbvh_i_fetch, of a leaf for a batch, and as lbvh_i_store. Of a point the first word is enough,
   and the skip. */
template <lbvh_i_test Test>
__device__ __forceinline__ lbvh_node lbvh_i_fetch_leaf(const lbvh_node *from)
{
#if defined(__CUDA_ARCH__) && LBVH_I_REAL_KIND == 1
    if (Test == LBVH_I_POINT_LEAVES) {
        float4 const word = *reinterpret_cast<const float4 *>(from);
        lbvh_node leaf = {};
        leaf.min[0] = word.x;
        leaf.min[1] = word.y;
        leaf.min[2] = word.z;
        leaf.link = __float_as_int(word.w);
        return leaf;
    }
#endif
    return lbvh_i_fetch(from);
}

/* Stores a leaf of a batch; of a point not its max, which is its min. */
template <lbvh_i_test Test>
__device__ __forceinline__ void lbvh_i_store_leaf(lbvh_node *to, const lbvh_node &leaf)
{
#if defined(__CUDA_ARCH__) && LBVH_I_REAL_KIND == 1
    if (Test == LBVH_I_POINT_LEAVES) {
        *reinterpret_cast<float4 *>(to) = make_float4(leaf.min[0], leaf.min[1], leaf.min[2],
                                                      __int_as_float(leaf.link));
        to->skip = leaf.skip;
        return;
    }
#endif
    *to = leaf;
}

/* Appends to the batch the leaves near the packet, of those at the lanes' places. `waiting` leaves
   wait, from `from` on. */
template <lbvh_i_test Test, bool Masked>
__device__ __forceinline__ int lbvh_i_append_warp_leaves(const lbvh &tree,
                                                         const lbvh_i_packet &packet, int32_t place,
                                                         bool has_leaf, lbvh_i_warp_batch &batch,
                                                         int from, int waiting)
{
    int const lane = (int)(threadIdx.x % 32);
    lbvh_node leaf = lbvh_i_fetch_leaf<Test>(&tree.node[tree.first_leaf + place]);
    leaf.skip = place;
    bool const is_near = lbvh_i_packet_near_leaf<Test>(packet, leaf) & has_leaf;
    unsigned const nears = __ballot_sync(0xFFFFFFFFu, is_near);
    if (is_near) {
        int const slot = (from + waiting + __popc(nears & ((1u << lane) - 1))) & 63;
        lbvh_i_store_leaf<Test>(&batch.leaf[slot], leaf);
        if (Masked) batch.mask[slot] = tree.mask[tree.first_leaf + place];
    }
    return waiting + __popc(nears);
}

/* The largest reach of the warp's searches. */
__device__ __forceinline__ lbvh_real lbvh_i_warp_reach2(lbvh_real reach2)
{
    for (int step = 16; step > 0; step /= 2)
        reach2 = lbvh_i_max(reach2, __shfl_xor_sync(0xFFFFFFFFu, reach2, step));
    return reach2;
}

/* The walk of a packet from node `at`. Every lane calls hits(bits, leaf) for every batch: bit c is
   set where its own search overlaps leaf[c]. Batches come by ascending place. Later: only places
   above `after`, the lane's own. Shrinks: hits may shrink o.reach2, where ids above o.id are not
   wanted at exactly that distance. The target of a skip is a right
   child or a leaf, so its number gives its first leaf. */
template <lbvh_i_test Test, bool Later, bool Masked, bool Shrinks, class Hits>
__device__ __forceinline__ void lbvh_i_walk_packet_masked(const lbvh &tree, const lbvh_overlap &o,
                                                          int32_t after, int32_t at,
                                                          lbvh_i_warp_batch &batch, Hits hits)
{
    constexpr bool by_slices = Test == LBVH_I_BOX;
    int32_t const lane = (int32_t)(threadIdx.x % 32);
    lbvh_i_packet packet = lbvh_i_gather_packet(o);
    int32_t first = at < tree.first_leaf ? at : at - tree.first_leaf;
    int from = 0, waiting = 0;
    while (at >= 0) {
        lbvh_node const node = lbvh_i_fetch(&tree.node[at]);
        bool meets = lbvh_i_meets_node<Test>(o, node);
        if (Shrinks && meets && lbvh_box_distance2(&node, o.min) == o.reach2)
            meets = !lbvh_i_ids_above(&tree, at, o.id);
        if (Masked) meets = meets & ((tree.mask[at] & o.filter) != 0);
        if (__any_sync(0xFFFFFFFFu, meets)) {
            int32_t const last = lbvh_last_place(&tree, &node), slice = first / lbvh_i_slice;
            if (by_slices ? last / lbvh_i_slice - slice >= lbvh_i_most_slices
                          : last - first >= lbvh_i_most_leaves<Shrinks>) {
                at = node.link;
                continue;
            }
            unsigned slices = by_slices ? lbvh_i_near_slices(tree, packet, slice, last) : 0;
            while (by_slices ? slices != 0 : first <= last) {
                int32_t const own = by_slices
                                        ? lbvh_i_place_in_slices(&slices, slice, first, last)
                                        : first + lane,
                              place = own < 0 ? 0 : own < last ? own : last;
                if (!by_slices) first += 32;
                waiting = lbvh_i_append_warp_leaves<Test, Masked>(tree, packet, place, own == place,
                                                                  batch, from, waiting);
                if (waiting < 32) continue;
                __syncwarp();
                hits(lbvh_i_test_batch<Test, Later, Masked>(o, after, batch, from, 32),
                     batch.leaf + from);
                __syncwarp();
                from ^= 32;
                waiting -= 32;
                if (Shrinks) packet.reach2 = lbvh_i_warp_reach2(o.reach2);
            }
        }
        at = node.skip;
        first = at < tree.first_leaf ? at : at - tree.first_leaf;
    }
    __syncwarp();
    if (waiting > 0)
        hits(lbvh_i_test_batch<Test, Later, Masked>(o, after, batch, from, waiting),
             batch.leaf + from);
    __syncwarp();
}

/* The walk of a packet, compiled with masks and without. */
template <lbvh_i_test Test, bool Later, bool Shrinks = false, class Hits>
__device__ __forceinline__ void lbvh_i_walk_packet(const lbvh &tree, const lbvh_overlap &o,
                                                   int32_t after, int32_t at,
                                                   lbvh_i_warp_batch &batch, Hits hits)
{
    if (tree.mask)
        lbvh_i_walk_packet_masked<Test, Later, true, Shrinks>(tree, o, after, at, batch, hits);
    else lbvh_i_walk_packet_masked<Test, Later, false, Shrinks>(tree, o, after, at, batch, hits);
}

/* The node where walks to later places than a warp's own begin: the largest one that begins at its
   first. -1: it has none. */
__device__ __forceinline__ int32_t lbvh_i_begin_later(const lbvh &tree, int32_t begin)
{
    if (begin == 0) return lbvh_root(&tree);
    return begin < tree.n ? tree.node[tree.first_leaf + begin - 1].skip : -1;
}

/* met(id, place) for each bit of hits, the lowest first. */
template <class Met>
__device__ __forceinline__ void lbvh_i_each_hit(const lbvh_node *leaf, unsigned hits, Met met)
{
    for (; hits; hits &= hits - 1) {
        const lbvh_node &other = leaf[__ffs((int)hits) - 1];
        met(other.link, other.skip);
    }
}

} // namespace

#endif /* LBVH_I_PACKETS */
