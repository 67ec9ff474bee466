/* cuda/lbvh_wide.cu - v0.2.0 - the CUDA part of more/lbvh_wide.h, which includes this file.
   Sections and names follow the serial code there. SPDX-License-Identifier: MIT OR Unlicense

   >>contents: search for >>, the name and a colon.
               wide-build, wide-groups, wide-order, wide-rays, wide-near, wide-overlaps,
               cuda-wide */

#ifndef LBVH_WIDE_H
#error "cuda/lbvh_wide.cu is a part of more/lbvh_wide.h: include that"
#elif 10000 * LBVH_VERSION_MAJOR + 100 * LBVH_VERSION_MINOR + LBVH_VERSION_PATCH != 200
#error "cuda/lbvh_wide.cu 0.2.0 and lbvh.h are of different versions: copy both from one release"
#endif

namespace {

/* ------------------------------------------------------------------------------------------------
   >>wide-build: a tree on the device is collapsed (more/lbvh_wide.h, >>wide), to the arrays of the
   serial code

   The serial collapse is one walk, which numbers nodes and leaves as it goes. Here the walk is
   taken apart:

       draft     a level at a time: a thread collapses a node, and begins drafts of its inner
                 children, in any order
       sum       bottom-up: how many nodes, leaves and elements lie below each draft; the last child
                 to arrive goes on with its parent
       place     a draft adds up what the walk meets before it, on its way to the root: from that
                 follow its number, and those of its children and leaves
       fill      a thread for each leaf

   No step waits for the host: the first lbvh_i_wide_levels levels are a launch each, and one block
   does all levels below, of which most trees have none.
   ---------------------------------------------------------------------------------------------- */

/* What a part of the walk meets. */
struct lbvh_i_tally { int32_t nodes, leaves, elements; };

/* What two parts of the walk meet. */
__device__ __forceinline__ lbvh_i_tally lbvh_i_both(const lbvh_i_tally &a, const lbvh_i_tally &b)
{
    return {a.nodes + b.nodes, a.leaves + b.leaves, a.elements + b.elements};
}

/* A wide node that has no number yet. */
struct lbvh_i_draft {
    lbvh_i_span span, child[LBVH_WIDE];
    int32_t count, parent, rank;    /* children; rank: among the inner children of the parent */
    int32_t inner, first_inner;     /* inner children, and the draft of the first */
    int32_t waiting;                /* inner children that are not summed yet */
    lbvh_i_tally below;             /* its leaves, and all below it; without itself */
    lbvh_i_tally before;            /* what the walk meets between its parent and it */
    lbvh_i_tally start;             /* what it meets before its children */
};

/* Drafts of level l are begin[l] and the size[l] - 1 after it. */
struct lbvh_i_levels { int32_t begin[LBVH_STACK + 1], size[LBVH_STACK + 1]; };

constexpr int lbvh_i_wide_levels = 12;

struct lbvh_i_plan {
    lbvh_i_draft *draft;
    lbvh_i_levels *levels;
    int32_t *counts;    /* nodes, leaves, elements */
    int32_t leaf;       /* elements of a leaf at most */
};

/* Nodes that a tree of n leaves can have (more/lbvh_wide.h, >>wide, with `leaf` for 4). */
int64_t lbvh_i_most_wide_nodes(int32_t n, int32_t leaf)
{
    return 8 * (int64_t)n / (7 * ((int64_t)leaf + 1)) + 1;
}

/* The draft of the root. */
__global__ void lbvh_i_draft_root_kernel(__grid_constant__ const lbvh_device device,
                                         lbvh_i_plan plan)
{
    if (lbvh_i_thread() > 0 || lbvh_left_out(&device.tree.node[0])) return;
    plan.draft[0].span = {0, 0, device.tree.n - 1};
    plan.draft[0].parent = -1;
    plan.draft[0].rank = 0;
    plan.levels->size[0] = 1;
}

/* Collapses one draft; its inner children become drafts of the next level. */
__device__ void lbvh_i_draft_node(const lbvh &tree, const lbvh_i_plan &plan, int32_t at,
                                  int level)
{
    lbvh_i_span child[LBVH_WIDE + 1];
    lbvh_i_draft &draft = plan.draft[at];
    lbvh_i_levels &levels = *plan.levels;
    lbvh_i_tally below = {0, 0, 0};
    int const count = lbvh_i_collapse_span(&tree, draft.span, plan.leaf, child);
    for (int c = 0; c < count; c++) {
        draft.child[c] = child[c];
        if (!lbvh_i_span_is_leaf(child[c], plan.leaf)) below.nodes++;
        else below = lbvh_i_both(below, {0, 1, lbvh_i_span_elements(&tree, child[c])});
    }
    int32_t next = levels.begin[level] + levels.size[level];
    if (below.nodes > 0) next += atomicAdd(&levels.size[level + 1], below.nodes);
    draft.count = count;
    draft.inner = draft.waiting = below.nodes;
    draft.first_inner = next;
    draft.below = below;
    for (int c = 0, rank = 0; c < count; c++) {
        if (lbvh_i_span_is_leaf(child[c], plan.leaf)) continue;
        plan.draft[next + rank].span = child[c];
        plan.draft[next + rank].parent = at;
        plan.draft[next + rank].rank = rank;
        rank++;
    }
}

/* A level, a thread for each draft. */
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_draft_kernel(__grid_constant__ const lbvh_device device, lbvh_i_plan plan, int level)
{
    lbvh_i_levels &levels = *plan.levels;
    int32_t const i = lbvh_i_thread(), begin = levels.begin[level], size = levels.size[level];
    if (i == 0) levels.begin[level + 1] = begin + size;
    if (i < size) lbvh_i_draft_node(device.tree, plan, begin + i, level);
}

/* All further levels, by one block. */
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_draft_rest_kernel(__grid_constant__ const lbvh_device device, lbvh_i_plan plan,
                             int level)
{
    lbvh_i_levels &levels = *plan.levels;
    for (; level < LBVH_STACK; level++) {
        int32_t const begin = levels.begin[level], size = levels.size[level];
        if (size == 0) return;
        if (threadIdx.x == 0) levels.begin[level + 1] = begin + size;
        for (int32_t i = (int32_t)threadIdx.x; i < size; i += (int32_t)blockDim.x)
            lbvh_i_draft_node(device.tree, plan, begin + i, level);
        __syncthreads();
    }
}

/* All drafts there are: to the end of the last level. */
__device__ __forceinline__ int32_t lbvh_i_drafts(const lbvh_i_levels &levels)
{
    int32_t all = 0;
    for (int level = 0; level <= LBVH_STACK && levels.size[level] > 0; level++)
        all += levels.size[level];
    return all;
}

/* What the walk meets before each inner child, the last of which comes first; and below the
   node. */
__device__ void lbvh_i_sum_children(const lbvh_i_plan &plan, lbvh_i_draft &draft)
{
    lbvh_i_tally sum = draft.below;
    for (int32_t rank = draft.inner - 1; rank >= 0; rank--) {
        lbvh_i_draft &child = plan.draft[draft.first_inner + rank];
        child.before = sum;
        sum = lbvh_i_both(sum, child.below);
    }
    draft.below = sum;
}

/* A thread for each draft without inner children, which goes up. The fences are as in
   lbvh_i_boxes_up_kernel. */
__global__ void __launch_bounds__(lbvh_i_block_threads) lbvh_i_sum_drafts_kernel(lbvh_i_plan plan)
{
    int32_t const i = lbvh_i_thread();
    if (i >= lbvh_i_drafts(*plan.levels) || plan.draft[i].inner > 0) return;
    for (int32_t at = plan.draft[i].parent; at >= 0; at = plan.draft[at].parent) {
        __threadfence();
        if (atomicAdd(&plan.draft[at].waiting, -1) != 1) return;
        __threadfence();
        lbvh_i_sum_children(plan, plan.draft[at]);
    }
}

/* A thread for each draft: the wide node. */
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_place_drafts_kernel(__grid_constant__ const lbvh_device device,
                               __grid_constant__ const lbvh_wide_device wide, lbvh_i_plan plan)
{
    int32_t const i = lbvh_i_thread();
    lbvh_i_draft &draft = plan.draft[i];
    lbvh_i_collapse job = {};
    lbvh_i_tally start = {1, 0, 0}; /* the root */
    if (i >= lbvh_i_drafts(*plan.levels)) return;
    for (int32_t at = i; plan.draft[at].parent >= 0; at = plan.draft[at].parent)
        start = lbvh_i_both(start, plan.draft[at].before);
    draft.start = start;
    job.tree = &device.tree;
    job.wide = &wide.wide;
    job.leaf = plan.leaf;
    job.nodes = start.nodes;
    job.leaves = start.leaves;
    job.elements = start.elements;
    int32_t const number = draft.parent < 0 ? 0 : start.nodes - draft.before.nodes + draft.rank;
    lbvh_i_make_node(&job, &wide.wide.node[number], draft.span, draft.child, draft.count);
    if (i > 0) return;
    plan.counts[0] = 1 + draft.below.nodes;
    plan.counts[1] = draft.below.leaves;
    plan.counts[2] = draft.below.elements;
}

/* A thread for each child that is a leaf: its elements. */
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_fill_leaves_kernel(__grid_constant__ const lbvh_device device,
                              __grid_constant__ const lbvh_wide_device wide, lbvh_i_input input,
                              lbvh_i_plan plan)
{
    /* with leaves of one element there may be more than 2^31 threads */
    int64_t const thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int32_t const i = (int32_t)(thread / LBVH_WIDE), mine = (int32_t)(thread % LBVH_WIDE);
    lbvh_i_collapse job = {};
    if (i >= lbvh_i_drafts(*plan.levels)) return;
    const lbvh_i_draft &draft = plan.draft[i];
    if (mine >= draft.count || !lbvh_i_span_is_leaf(draft.child[mine], plan.leaf)) return;
    job.tree = &device.tree;
    job.wide = &wide.wide;
    job.data = input.data;
    job.stride = input.stride;
    job.leaves = draft.start.leaves;
    job.elements = draft.start.elements;
    for (int c = 0; c < mine; c++) {
        if (!lbvh_i_span_is_leaf(draft.child[c], plan.leaf)) continue;
        job.leaves++;
        job.elements += lbvh_i_span_elements(&device.tree, draft.child[c]);
    }
    lbvh_i_fill_leaf(&job, draft.child[mine]);
}

/* A tree without nodes: a root without children. */
__global__ void lbvh_i_no_nodes_kernel(__grid_constant__ const lbvh_wide_device wide,
                                       lbvh_i_plan plan)
{
    if (lbvh_i_thread() == 0 && plan.levels->size[0] == 0) wide.wide.node[0] = {};
}

/* Empties the wide tree and stores a checked desc. */
lbvh_result lbvh_i_cuda_wide_begin(lbvh_cuda_wide *gpu, const lbvh_wide_desc *desc,
                                   cudaStream_t stream)
{
    lbvh_wide *wide = &gpu->device.wide;
    lbvh_desc tree_desc = {};
    lbvh_wide_desc given;
    wide->built = wide->elements = wide->nodes = wide->leaves = wide->numbers = 0;
    lbvh_result result = lbvh_i_wide_defaults(&given, desc);
    if (result != LBVH_OK) return result;
    tree_desc.cuda_allocator = given.cuda_allocator;
    result = lbvh_i_cuda_begin(&gpu->work, &tree_desc, stream);
    if (result == LBVH_OK) wide->desc = given;
    return result;
}

/* Bytes of the work space of a collapse: drafts, then levels. */
size_t lbvh_i_draft_bytes(int32_t n, int32_t leaf)
{
    return (size_t)lbvh_i_most_wide_nodes(n, leaf) * sizeof(lbvh_i_draft) + sizeof(lbvh_i_levels);
}

/* Memory for arrays of these sizes, and the counts behind the nodes. */
lbvh_result lbvh_i_cuda_wide_grow(lbvh_cuda_wide *gpu, size_t bytes[LBVH_BLOCKS],
                                  lbvh_i_growth growth, cudaStream_t stream)
{
    lbvh_cuda *work = &gpu->work;
    size_t const nodes = bytes[LBVH_I_WIDE_NODE];
    lbvh_result result = LBVH_OK;
    bytes[LBVH_I_WIDE_NODE] += 4 * sizeof(int32_t);
    for (int b = 0; b < LBVH_BLOCKS && result == LBVH_OK; b++)
        result = lbvh_i_cuda_grow(work, &work->block[b], bytes[b], growth, stream);
    if (result != LBVH_OK) return result;
    lbvh_i_wide_bind(&gpu->device.wide, work->block, bytes[LBVH_I_WIDE_MASK] > 0);
    gpu->d_counts = reinterpret_cast<int32_t *>(static_cast<char *>(
                                                    work->block[LBVH_I_WIDE_NODE].memory) + nodes);
    return LBVH_OK;
}

/* What a collapse of any tree of n elements needs. */
lbvh_result lbvh_i_cuda_wide_sizes(const lbvh_wide_desc *desc, const lbvh_desc *tree_desc,
                                   int32_t n, size_t bytes[LBVH_BLOCKS],
                                   size_t scratch[LBVH_CUDA_SCRATCH])
{
    lbvh shape = {};
    shape.desc = *tree_desc;
    if (n > LBVH_I_N_MAX) return LBVH_TOO_MANY;
    lbvh_i_at_least(&scratch[LBVH_I_LINKS], lbvh_i_draft_bytes(n, desc->leaf));
    return lbvh_i_wide_array_bytes(lbvh_i_wide_numbers(desc, &shape), tree_desc->masks != nullptr,
                                   lbvh_i_most_wide_nodes(n, desc->leaf), n, n, bytes);
}

/* The launches of a collapse, in order. */
lbvh_result lbvh_i_cuda_collapse(lbvh_cuda_wide *gpu, const lbvh_device &device,
                                 lbvh_i_input input, cudaStream_t stream)
{
    lbvh_cuda *work = &gpu->work;
    int const block = lbvh_i_block_threads;
    int64_t const most = lbvh_i_most_wide_nodes(device.tree.n, gpu->device.wide.desc.leaf);
    lbvh_i_plan plan = {lbvh_i_scratch<lbvh_i_draft>(work, LBVH_I_LINKS), nullptr, gpu->d_counts,
                        gpu->device.wide.desc.leaf};
    plan.levels = reinterpret_cast<lbvh_i_levels *>(plan.draft + most);
    if (lbvh_i_failed(work, cudaMemsetAsync(plan.levels, 0, sizeof *plan.levels, stream)) ||
        lbvh_i_failed(work, cudaMemsetAsync(plan.counts, 0, 3 * sizeof *plan.counts, stream)))
        return LBVH_CUDA_ERROR;
    lbvh_result result = lbvh_i_launch(work, stream, 1, 1, lbvh_i_draft_root_kernel, device, plan);
    int64_t threads = 1; /* at most, on this level */
    for (int level = 0; level < lbvh_i_wide_levels && result == LBVH_OK; level++) {
        result = lbvh_i_launch(work, stream, threads, block, lbvh_i_draft_kernel, device, plan,
                               level);
        threads = lbvh_i_at_most(8 * threads, most);
    }
    if (result == LBVH_OK)
        result = lbvh_i_launch(work, stream, block, block, lbvh_i_draft_rest_kernel, device, plan,
                               lbvh_i_wide_levels);
    if (result == LBVH_OK)
        result = lbvh_i_launch(work, stream, most, block, lbvh_i_sum_drafts_kernel, plan);
    if (result == LBVH_OK)
        result = lbvh_i_launch(work, stream, most, block, lbvh_i_place_drafts_kernel, device,
                               gpu->device, plan);
    if (result == LBVH_OK)
        result = lbvh_i_launch(work, stream, LBVH_WIDE * most, block, lbvh_i_fill_leaves_kernel,
                               device, gpu->device, input, plan);
    return result == LBVH_OK ? lbvh_i_launch(work, stream, 1, 1, lbvh_i_no_nodes_kernel,
                                             gpu->device, plan)
                             : result;
}

/* ------------------------------------------------------------------------------------------------
   >>wide-groups: the order in which a thread visits the children of wide nodes, and a warp its
   threads

   The children that a search meets are a group. Each has a ticket of 16 bits: 13 of its distance,
   rounded down, and 3 of its index. Eight tickets lie in four words, so the group that a thread is
   at lies in registers. The thread takes the least ticket of its group; if that child is an inner
   node, the rest of the group goes on the stack, and the children of that node are the next group.

       group at node 7      [ c0 1.25 | - | - | c3 0.5 | - | - | c6 3 | - ]
       take c3: a node      stack: [ c0 1.25 | - | - | - | - | - | c6 3 | - ] of 7
                            group at c3: [ - | c1 0.75 | ... ]

   A group whose tickets are all farther than what was found is dropped. Beside each group in the
   stack is the least ticket of all below it, so a search ends without looking at them.

   The stack has at most one entry for each level: 24 bytes times LBVH_STACK of a thread's memory.
   (Ylitie et al. keep bits of children and order them by octants, without distances.)

   Threads of a warp that are at a node and threads that are at a leaf cannot work together. So the
   warp goes in turns: those go on that are more, and the others wait.
   ---------------------------------------------------------------------------------------------- */

constexpr uint32_t lbvh_i_no_ticket = 0xFFFFu,  /* as all from 0xFFF8 on */
                   lbvh_i_nowhere = 0xFFFFFFFFu;

struct lbvh_i_group {
    uint32_t node;
    uint32_t ticket[4];     /* two a word, the lower half first */
};

struct lbvh_i_group_stack {
    uint4 ticket[LBVH_STACK];
    uint2 node[LBVH_STACK];     /* and the least ticket below it */
};

/* How far a search is. */
struct lbvh_i_way {
    lbvh_i_group here;
    uint32_t at;            /* a node, LBVH_I_LEAF_BIT and a block, or lbvh_i_nowhere */
    uint32_t within;        /* tickets up to this one are taken */
    uint32_t waiting;       /* the least ticket in the stack */
    int top;
};

/* At the root. */
__device__ __forceinline__ lbvh_i_way lbvh_i_begin_way(uint32_t within)
{
    lbvh_i_way way = {};
    for (int k = 0; k < 4; k++) way.here.ticket[k] = lbvh_i_no_ticket * 0x10001u;
    way.waiting = lbvh_i_no_ticket;
    way.within = within;
    return way;
}

/* The least ticket: the nearest child. */
__device__ __forceinline__ uint32_t lbvh_i_least_ticket(const lbvh_i_group &group)
{
    uint32_t const two = __vminu2(__vminu2(group.ticket[0], group.ticket[1]),
                                  __vminu2(group.ticket[2], group.ticket[3])),
                   low = two & 0xFFFF, high = two >> 16;
    return low < high ? low : high;
}

/* The ticket of one child is gone. All indices are constants where the loop is unrolled, so that
   tickets lie in registers. */
__device__ __forceinline__ void lbvh_i_remove_ticket(lbvh_i_group &group, uint32_t c)
{
    uint32_t const gone = 0xFFFFu << c % 2 * 16;
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) group.ticket[k] |= c / 2 == k ? gone : 0;
}

/* What is left of the group here waits. */
__device__ __forceinline__ void lbvh_i_let_wait(lbvh_i_way &way, lbvh_i_group_stack &stack)
{
    uint32_t const least = lbvh_i_least_ticket(way.here), *const ticket = way.here.ticket;
    if (least > way.within) return;
    stack.ticket[way.top] = make_uint4(ticket[0], ticket[1], ticket[2], ticket[3]);
    stack.node[way.top++] = make_uint2(way.here.node, way.waiting);
    if (least < way.waiting) way.waiting = least;
}

__device__ __forceinline__ void lbvh_i_go_back(lbvh_i_way &way, const lbvh_i_group_stack &stack)
{
    uint4 const ticket = stack.ticket[--way.top];
    uint2 const node = stack.node[way.top];
    way.here.ticket[0] = ticket.x;
    way.here.ticket[1] = ticket.y;
    way.here.ticket[2] = ticket.z;
    way.here.ticket[3] = ticket.w;
    way.here.node = node.x;
    way.waiting = node.y;
}

/* Where child c of a node is; lbvh_i_nowhere: there is none. */
__device__ __forceinline__ uint32_t lbvh_i_child_of(const lbvh_wide_node *node, uint32_t c)
{
    static_assert(offsetof(lbvh_wide_node, child) % 16 == 0, "child, first and kind in one load");
    uint4 const links = *reinterpret_cast<const uint4 *>(&node->child);
    uint32_t const kind = __byte_perm(links.z, links.w, c) & 255;
    if (kind == 0) return lbvh_i_nowhere;
    return kind >= LBVH_I_INNER ? links.x + (kind - LBVH_I_INNER)
                                : LBVH_I_LEAF_BIT | (links.y + (kind & 31));
}

/* Takes the least ticket and goes to its child. False: none is within reach. */
__device__ __forceinline__ bool lbvh_i_take_child(const lbvh_wide &wide, lbvh_i_way &way,
                                                  const lbvh_i_group_stack &stack)
{
    uint32_t least = lbvh_i_least_ticket(way.here);
    while (least > way.within) {
        if (way.waiting > way.within) return false;
        lbvh_i_go_back(way, stack);
        least = lbvh_i_least_ticket(way.here);
    }
    lbvh_i_remove_ticket(way.here, least % 8);
    way.at = lbvh_i_child_of(&wide.node[way.here.node], least % 8);
    return true;
}

/* 13 bits of a distance, the first ones after the sign (they order reals above 0 as integers), and
   room for an index. */
__device__ __forceinline__ uint32_t lbvh_i_distance_ticket(lbvh_real distance)
{
#if LBVH_I_REAL_KIND == 1
    return __float_as_uint(distance) >> 18 << 3;
#else
    return (uint32_t)((unsigned long long)__double_as_longlong(distance) >> 50) << 3;
#endif
}

/* The group of the children `met` of a node. */
__device__ __forceinline__ void lbvh_i_group_by_distance(uint32_t met,
                                                         const lbvh_real distance[LBVH_WIDE],
                                                         lbvh_i_group &group)
{
    uint32_t ticket[LBVH_WIDE];
#pragma unroll
    for (uint32_t c = 0; c < LBVH_WIDE; c++)
        ticket[c] = met >> c & 1 ? lbvh_i_distance_ticket(distance[c]) | c : lbvh_i_no_ticket;
#pragma unroll
    for (int k = 0; k < 4; k++) group.ticket[k] = ticket[2 * k] | ticket[2 * k + 1] << 16;
}

/* The walk of a warp's searches, one for each lane where `going`. open(node, distance) gives the
   children that a search meets, as bits, and how far they are; visit(block) its limit from then on,
   negative: it ends. */
template <class Open, class Visit>
__device__ __forceinline__ void lbvh_i_walk_in_turns(const lbvh_wide &wide, bool going,
                                                     lbvh_real limit, Open open, Visit visit)
{
    lbvh_i_group_stack stack;
    lbvh_i_way way = lbvh_i_begin_way(lbvh_i_distance_ticket(limit) | 7);
    for (;;) {
        bool const at_leaf = (way.at & LBVH_I_LEAF_BIT) != 0;
        unsigned const leaves = __ballot_sync(0xFFFFFFFFu, going && at_leaf),
                       nodes = __ballot_sync(0xFFFFFFFFu, going && !at_leaf);
        if ((leaves | nodes) == 0) return;
        if (!going || at_leaf != (__popc(leaves) > __popc(nodes))) continue;
        if (at_leaf) {
            if (way.at != lbvh_i_nowhere) limit = visit(way.at & ~LBVH_I_LEAF_BIT);
            if (limit >= 0) way.within = lbvh_i_distance_ticket(limit) | 7;
        } else {
            lbvh_real distance[LBVH_WIDE];
            lbvh_i_let_wait(way, stack);
            way.here.node = way.at;
            lbvh_i_group_by_distance(open(&wide.node[way.at], distance), distance, way.here);
        }
        going = limit >= 0 && lbvh_i_take_child(wide, way, stack);
    }
}

/* ------------------------------------------------------------------------------------------------
   >>wide-order: points and boxes are sorted, so that neighbouring threads take similar paths
   ---------------------------------------------------------------------------------------------- */

/* The lattice of 30 bits over the box of the tree. */
__device__ __forceinline__ lbvh_lattice lbvh_i_wide_lattice(const lbvh_wide &wide)
{
    lbvh_real least[3], most[3];
    for (int a = 0; a < 3; a++) {
        lbvh_real const half = lbvh_i_quantum(wide.node[0].exponent[a]) / 2;
        least[a] = wide.node[0].corner[a] * half;
        most[a] = (wide.node[0].corner[a] + 255) * half;
    }
    return lbvh_i_lattice_of(wide.dim, 30, least, most);
}

/* Points, or boxes (min, then max: `boxes` 1): the first `bits` of 30. */
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_wide_keys_kernel(__grid_constant__ const lbvh_wide_device device, lbvh_i_input input,
                            int32_t m, int boxes, int bits, uint32_t *keys, int32_t *order)
{
    const lbvh_wide &wide = device.wide;
    lbvh_real min[3] = {0, 0, 0}, max[3] = {0, 0, 0};
    int32_t const q = lbvh_i_thread();
    if (q >= m) return;
    const lbvh_real *const x = lbvh_i_at(input.data, input.stride, q);
#pragma unroll
    for (int a = 0; a < 3; a++) {
        if (a == wide.dim) break;
        min[a] = x[a];
        max[a] = x[boxes ? wide.dim + a : a];
    }
    lbvh_lattice const lattice = lbvh_i_wide_lattice(wide);
    keys[q] = (uint32_t)(lbvh_i_code(&lattice, wide.dim, 30, min, max) >> (30 - bits));
    order[q] = q;
}

/* Checks what all searches around places share; m points, or boxes, of which *input is made. */
lbvh_result lbvh_i_check_near(const lbvh_cuda_wide *gpu, const lbvh_real *data, size_t stride,
                              int boxes, int32_t m, int flags, lbvh_real reach,
                              lbvh_i_input *input)
{
    if (!gpu || m < 0 || (m > 0 && !data)) return LBVH_BAD_ARGUMENT;
    if (m > LBVH_I_N_MAX) return LBVH_TOO_MANY;
    if (flags & ~(int)LBVH_SORTED) return LBVH_BAD_OPTION;
    if (!(reach >= 0)) return LBVH_BAD_RADIUS;
    if (!gpu->device.wide.built) return LBVH_NOT_BUILT;
    size_t const tight = (size_t)gpu->device.wide.dim * sizeof(lbvh_real) * (boxes ? 2 : 1);
    *input = {data, stride ? stride : tight};
    return input->stride < tight || input->stride % sizeof(lbvh_real) ? LBVH_BAD_ARGUMENT : LBVH_OK;
}

/* Sorts points or boxes: *order; NULL: as they are. */
lbvh_result lbvh_i_order_places(lbvh_cuda_wide *gpu, lbvh_i_input input, int32_t m, int boxes,
                                int flags, const int32_t **order, cudaStream_t stream)
{
    lbvh_cuda *work = &gpu->work;
    bool const sorts = !(flags & LBVH_SORTED) && m > 0 && gpu->device.wide.nodes > 0;
    int const bits = lbvh_i_query_bits(m);
    *order = nullptr;
    lbvh_result result = lbvh_i_prepare_search(work, m, sorts, false, LBVH_I_AHEAD, stream);
    if (result != LBVH_OK || !sorts) return result;
    lbvh_i_sort sort = lbvh_i_sort_of(work);
    result = lbvh_i_launch(work, stream, m, lbvh_i_block_threads, lbvh_i_wide_keys_kernel,
                           gpu->device, input, m, boxes, bits, sort.keys.Current(),
                           sort.ids.Current());
    if (result == LBVH_OK) result = lbvh_i_sort_keys(work, &sort, m, bits, stream);
    if (result == LBVH_OK) *order = sort.ids.Current();
    return result;
}

/* ------------------------------------------------------------------------------------------------
   >>wide-rays: the hits of lbvh.h, >>wide-rays, by a walk of its own

   Time. On its way a ray counts time from where it enters the box of the tree (0) to where it
   leaves it (32000), so that the whole part of a time has 15 bits: 12 of them are a ticket's
   distance, at the same resolution all along the way.

   Planes. A byte q between the bytes of a real that is a power of two makes that number, and q
   more: `lbvh_i_plane_bias` + q, without a conversion. A plane is passed at

       (corner + q) step - offset  =  (bias + q) step + (corner step - offset - bias step)

   which is one fused operation for each of 48 planes. What is in brackets is computed for the node,
   with an error of 2^-9 steps: planes are moved outward by 2^-8 of them.

   Pads. Each of at most 10 roundings is an error of half a unit in the last place of the largest
   number along an axis, or of the largest time: `pad` is 32 of them, with room for those of an
   element's own t as in lbvh.h. A ray that is nearly parallel to an axis, or is, gets the slope
   that takes it across 2^-20 (double: 2^-49) of the largest coordinate in all its time, and a pad
   of four times that.

   Rays that end at different times leave a warp half empty. So a warp takes new rays when
   lbvh_i_few_rays or fewer are left of its 32, until there are none; as many blocks run as fit.
   ---------------------------------------------------------------------------------------------- */

/* Blocks of a multiprocessor: more warps are worth a few registers. */
constexpr int lbvh_i_ray_blocks = LBVH_I_REAL_KIND == 1 ? 5 : 3,
              lbvh_i_near_blocks = LBVH_I_REAL_KIND == 1 ? 8 : 4, lbvh_i_few_rays = 16;

/* The more elements a search keeps in registers, the fewer blocks. */
constexpr int lbvh_i_nearest_blocks(int room)
{
    return room <= 8 ? lbvh_i_near_blocks : lbvh_i_near_blocks * (room <= 16 ? 3 : 2) / 4;
}

constexpr lbvh_real lbvh_i_plane_bias = LBVH_I_REAL_KIND == 1 ? 32768 : 4096,
                    lbvh_i_plane_slack = (lbvh_real)0.00390625, lbvh_i_ray_time = 32000;

/* The first bytes of the bias. Kernels get them as an argument: a constant would be moved into a
   register for each plane. */
constexpr uint32_t lbvh_i_plane_bytes = LBVH_I_REAL_KIND == 1 ? 0x47000000u : 0x40B00000u;

/* A ray as triangles see it: along axes i, j, k, of which k is the direction's longest. */
struct lbvh_i_view {
    lbvh_real origin[3], direction[3];
    int32_t axis[3];
};

/* A ray as boxes see it. */
struct lbvh_i_passage {
    lbvh_real slope[3];             /* time for a unit of length */
    lbvh_real before[3], after[3];  /* origin * slope, and `pad` more or less */
    lbvh_real bias[3];              /* of planes where the ray comes; negative */
    lbvh_real power, stretch, shift;    /* t * power * stretch + shift is a time; power is one of
                                           two */
};

__device__ __forceinline__ lbvh_real lbvh_i_fused(lbvh_real a, lbvh_real b, lbvh_real c)
{
#if LBVH_I_REAL_KIND == 1
    return __fmaf_rn(a, b, c);
#else
    return __fma_rn(a, b, c);
#endif
}

/* Reads ray r; false: it hits nothing. Of `ray` only what hits need is set. */
__device__ __forceinline__ bool lbvh_i_read_ray(const lbvh_wide &wide, const lbvh_rays &rays,
                                                int32_t r, lbvh_i_beam &ray,
                                                lbvh_real origin[3], lbvh_real direction[3])
{
    const lbvh_real *const x = lbvh_i_at(rays.data, rays.stride, r);
    lbvh_real const t_max = lbvh_i_reach_of(&rays, r);
    bool usable = wide.nodes > 0 && t_max >= 0 && !lbvh_i_is_nan(t_max);
    ray.filter = lbvh_i_filter_of(&rays, r);
    ray.t_max = lbvh_i_min(t_max, lbvh_i_largest());
    ray.slot = LBVH_I_NO_SLOT;
#pragma unroll
    for (int a = 0; a < 3; a++) {
        origin[a] = x[a];
        direction[a] = x[3 + a];
        usable = usable && lbvh_i_finite(origin[a]) && lbvh_i_finite(direction[a]);
    }
    return usable;
}

__device__ __forceinline__ lbvh_i_view lbvh_i_view_of(const lbvh_real origin[3],
                                                      const lbvh_real direction[3])
{
    lbvh_i_beam axes;
    lbvh_i_view view;
    for (int a = 0; a < 3; a++) axes.direction[a] = direction[a];
    lbvh_i_pick_axes(&axes);
    view.axis[0] = axes.i;
    view.axis[1] = axes.j;
    view.axis[2] = axes.k;
#pragma unroll
    for (int a = 0; a < 3; a++) {
        view.origin[a] = lbvh_i_pick(origin, view.axis[a]);
        view.direction[a] = lbvh_i_pick(direction, view.axis[a]);
    }
    return view;
}

/* Slopes along direction / power, which is from 1 to 2 long (unless that needs more than 2^100 or
   less than 2^-100), and pads. Returns the latest time at which anything can be hit. */
__device__ __forceinline__ lbvh_real lbvh_i_pad_passage(const lbvh_real origin[3],
                                                        const lbvh_real direction[3], int k,
                                                        const lbvh_real size[3],
                                                        lbvh_i_passage &way)
{
    constexpr int middle = LBVH_I_REAL_KIND == 1 ? 127 : 1023;
    lbvh_real const unit = LBVH_I_PAD_UNIT, least = LBVH_I_PAD_LEAST;
    int exponent = lbvh_i_exponent(lbvh_i_pick(direction, k));
    if (exponent < middle - 100) exponent = middle - 100;
    if (exponent > middle + 100) exponent = middle + 100;
    way.power = lbvh_i_quantum(exponent);
    lbvh_real slope[3], reach[3];
#pragma unroll
    for (int a = 0; a < 3; a++) {
        slope[a] = lbvh_i_over(1, direction[a] * lbvh_i_quantum(2 * middle - exponent));
        reach[a] = lbvh_i_absolute(origin[a]) + size[a];
    }
    lbvh_real const latest = lbvh_i_pick(reach, k) * lbvh_i_absolute(lbvh_i_pick(slope, k));
    bool const overflows = !(latest < 1 / least);
#pragma unroll
    for (int a = 0; a < 3; a++) {
        lbvh_real const across = reach[a] * lbvh_i_absolute(slope[a]);
        lbvh_real pad = 2 * unit * (across + latest) + least;
        if (!(across * unit <= latest)) { /* parallel, or nearly */
            lbvh_real const most = lbvh_i_over(latest / unit, reach[a]);
            slope[a] = !(most < 1 / least) ? 0 : direction[a] < 0 ? -most : most;
            pad = 4 * latest + least;
        }
        if (overflows) { /* meets all boxes */
            slope[a] = 0;
            pad = lbvh_i_infinity();
        }
        way.slope[a] = slope[a];
        way.before[a] = origin[a] * slope[a] + pad;
        way.after[a] = origin[a] * slope[a] - pad;
        way.bias[a] = slope[a] < 0 ? lbvh_i_plane_slack - lbvh_i_plane_bias
                                   : -lbvh_i_plane_slack - lbvh_i_plane_bias;
    }
    return latest;
}

/* The passage of a ray through the tree; false: it passes by. */
__device__ __forceinline__ bool lbvh_i_enter_tree(const lbvh_wide_node *root,
                                                  const lbvh_real origin[3],
                                                  const lbvh_real direction[3], int k,
                                                  lbvh_i_passage &way)
{
    lbvh_real const unit = LBVH_I_PAD_UNIT, least = LBVH_I_PAD_LEAST;
    lbvh_real low[3], high[3], size[3];
#pragma unroll
    for (int a = 0; a < 3; a++) {
        lbvh_real const quantum = lbvh_i_quantum(root->exponent[a]), corner = root->corner[a];
        low[a] = corner * quantum;
        high[a] = (corner + 255) * quantum;
        size[a] = lbvh_i_max(lbvh_i_absolute(low[a]), lbvh_i_absolute(high[a]));
    }
    lbvh_real const latest = lbvh_i_pad_passage(origin, direction, k, size, way);
    lbvh_real comes = 0, goes = 2 * latest;
#pragma unroll
    for (int a = 0; a < 3; a++) {
        bool const back = way.slope[a] < 0;
        comes = lbvh_i_max(comes, (back ? high[a] : low[a]) * way.slope[a] - way.before[a]);
        goes = lbvh_i_min(goes, (back ? low[a] : high[a]) * way.slope[a] - way.after[a]);
    }
    if (!(comes <= goes)) return false;
    lbvh_real const length = goes - comes, shortest = latest * unit + least;
    way.stretch = 1;
    if (length < 1 / least)
        way.stretch = lbvh_i_over(lbvh_i_ray_time, lbvh_i_max(length, shortest));
    way.shift = (2 * unit * latest - comes) * way.stretch;
#pragma unroll
    for (int a = 0; a < 3; a++) {
        way.slope[a] *= way.stretch;
        way.before[a] = (way.before[a] + comes) * way.stretch;
        way.after[a] = (way.after[a] + comes) * way.stretch;
    }
    return true;
}

/* The last ticket up to t_max. */
__device__ __forceinline__ uint32_t lbvh_i_time_ticket(const lbvh_i_passage &way, lbvh_real t_max)
{
    lbvh_real const time = lbvh_i_fused(t_max * way.power, way.stretch, way.shift);
    return (uint32_t)lbvh_i_max(0, lbvh_i_min(time, 32767)) | 7;
}

/* lbvh_i_plane_bias + byte c of a word. */
__device__ __forceinline__ lbvh_real lbvh_i_byte_plane(uint32_t word, int c, uint32_t bytes)
{
    uint32_t const upper = __byte_perm(word, bytes, 0x7604u | (unsigned)c << 4);
#if LBVH_I_REAL_KIND == 1
    return __uint_as_float(upper);
#else
    return __longlong_as_double((long long)((unsigned long long)upper << 32));
#endif
}

/* A child that the ray enters and leaves at these times, along each axis: bits 8 to 23 are the
   whole part of the time at which it is inside all. Floats from 0 on are in the order of their bits
   as integers, and those below 0 before them. */
__device__ __forceinline__ uint32_t lbvh_i_child_time(const lbvh_real in[3], const lbvh_real out[3])
{
    constexpr uint32_t none = 0xFFFFFFFFu;
#if LBVH_I_REAL_KIND == 1
    int const enters = __vimax3_s32_relu(__float_as_int(in[0]), __float_as_int(in[1]),
                                         __float_as_int(in[2])),
              leaves = __vimin3_s32(__float_as_int(out[0]), __float_as_int(out[1]),
                                    __float_as_int(out[2]));
    return enters <= leaves ? __float_as_uint(__fadd_rd(__int_as_float(enters), 32768)) : none;
#else
    lbvh_real const enters = lbvh_i_max(lbvh_i_max(in[0], in[1]), lbvh_i_max(in[2], 0)),
                    leaves = lbvh_i_min(lbvh_i_min(out[0], out[1]), out[2]);
    return enters <= leaves && enters < 32768 ? (uint32_t)enters << 8 : none;
#endif
}

/* A wide node in loads of 16 bytes, and its parts, for constant indices. */
struct lbvh_i_node_words {
    static constexpr int exponent_bits = 8 * sizeof(lbvh_exponent),
                         exponents = offsetof(lbvh_wide_node, exponent) / 4,
                         planes = offsetof(lbvh_wide_node, plane) / 4;
    uint32_t word[sizeof(lbvh_wide_node) / 4];

    __device__ __forceinline__ explicit lbvh_i_node_words(const lbvh_wide_node *node)
    {
        static_assert(sizeof *node % 16 == 0 && planes % 4 == 0, "loads of 16 bytes");
        const uint4 *const from = reinterpret_cast<const uint4 *>(node);
#pragma unroll
        for (int k = 0; k < (int)sizeof *node / 16; k++) {
            uint4 const four = from[k];
            word[4 * k] = four.x;
            word[4 * k + 1] = four.y;
            word[4 * k + 2] = four.z;
            word[4 * k + 3] = four.w;
        }
    }
    __device__ __forceinline__ lbvh_real corner(int a) const
    {
#if LBVH_I_REAL_KIND == 1
        return __uint_as_float(word[a]);
#else
        return __longlong_as_double(
            (long long)((unsigned long long)word[2 * a + 1] << 32 | word[2 * a]));
#endif
    }
    __device__ __forceinline__ lbvh_real quantum(int a) const
    {
        int const bit = a * exponent_bits;
        return lbvh_i_quantum((int)(word[exponents + bit / 32] >> bit % 32 &
                                    ((1u << exponent_bits) - 1)));
    }
    /* Four planes of a row. */
    __device__ __forceinline__ uint32_t row(int a, int half) const
    {
        return word[planes + 2 * a + half];
    }
};

/* The group of the children that a ray enters. */
__device__ __forceinline__ void lbvh_i_group_by_time(const lbvh_wide_node *from,
                                                     const lbvh_i_passage &way, uint32_t bytes,
                                                     lbvh_i_group &group)
{
    lbvh_i_node_words const node(from);
    lbvh_real step[3], comes[3], goes[3];
    uint32_t in[3][2], out[3][2], time[LBVH_WIDE];
#pragma unroll
    for (int a = 0; a < 3; a++) {
        bool const back = way.slope[a] < 0;
        for (int half = 0; half < 2; half++) {
            uint32_t const low = node.row(a, half), high = node.row(a + 3, half);
            in[a][half] = back ? high : low;
            out[a][half] = back ? low : high;
        }
        step[a] = node.quantum(a) * way.slope[a];
        comes[a] = lbvh_i_fused(step[a], way.bias[a],
                                lbvh_i_fused(node.corner(a), step[a], -way.before[a]));
        goes[a] = lbvh_i_fused(step[a], -2 * lbvh_i_plane_bias - way.bias[a],
                               lbvh_i_fused(node.corner(a), step[a], -way.after[a]));
    }
#pragma unroll
    for (int c = 0; c < LBVH_WIDE; c++) {
        lbvh_real enters[3], leaves[3];
#pragma unroll
        for (int a = 0; a < 3; a++) {
            enters[a] = lbvh_i_fused(lbvh_i_byte_plane(in[a][c / 4], c % 4, bytes), step[a],
                                     comes[a]);
            leaves[a] = lbvh_i_fused(lbvh_i_byte_plane(out[a][c / 4], c % 4, bytes), step[a],
                                     goes[a]);
        }
        time[c] = lbvh_i_child_time(enters, leaves);
    }
#pragma unroll
    for (uint32_t k = 0; k < 4; k++)
        group.ticket[k] = (__byte_perm(time[2 * k], time[2 * k + 1], 0x6521) & 0xFFF8FFF8u) |
                          (2 * k | (2 * k + 1) << 16);
}

/* A triangle, from the ray's origin: corner[vertex][i, j, k]. of[vertex]: in proportion to the area
   of the opposite triangle (lbvh_ray_triangle). */
__device__ __forceinline__ void lbvh_i_areas(const lbvh_real corner[3][3], const lbvh_i_view &view,
                                             lbvh_real of[3])
{
    const lbvh_real *const d = view.direction;
    lbvh_real seen[3][2];
#pragma unroll
    for (int vertex = 0; vertex < 3; vertex++)
#pragma unroll
        for (int a = 0; a < 2; a++)
            seen[vertex][a] = lbvh_i_cross2(corner[vertex][a], d[2], corner[vertex][2], d[a]);
    of[0] = lbvh_i_cross2(seen[1][0], seen[2][1], seen[1][1], seen[2][0]);
    of[1] = lbvh_i_cross2(seen[2][0], seen[0][1], seen[2][1], seen[0][0]);
    of[2] = lbvh_i_cross2(seen[0][0], seen[1][1], seen[0][1], seen[1][0]);
}

/* Whether none is below 0, or none above it, and not all are 0; NaN may pass. */
__device__ __forceinline__ bool lbvh_i_one_sign(const lbvh_real of[3])
{
#if LBVH_I_REAL_KIND == 1
    uint32_t plus = 0, minus = 0; /* 0 + x and 0 - x are never -0 */
#pragma unroll
    for (int a = 0; a < 3; a++) {
        plus |= __float_as_uint(0 + of[a]);
        minus |= __float_as_uint(0 - of[a]);
    }
    return (int)(plus & minus) >= 0 && (plus | minus) != 0;
#else
    return ((of[0] >= 0 && of[1] >= 0 && of[2] >= 0) || (of[0] <= 0 && of[1] <= 0 && of[2] <= 0)) &&
           (of[0] != 0 || of[1] != 0 || of[2] != 0);
#endif
}

/* lbvh_ray_triangle for a copied triangle, by the same operations: hit.t, u and v. */
__device__ __forceinline__ bool lbvh_i_hit_slot(const lbvh_wide &wide, size_t slot,
                                                const lbvh_i_view &view, lbvh_ray_hit &hit)
{
    const lbvh_real *const from = wide.element + slot / LBVH_WIDE_LEAF * 9 * LBVH_WIDE_LEAF +
                                  slot % LBVH_WIDE_LEAF;
    lbvh_real corner[3][3], of[3];
#pragma unroll
    for (int vertex = 0; vertex < 3; vertex++)
#pragma unroll
        for (int a = 0; a < 3; a++)
            corner[vertex][a] = from[LBVH_WIDE_LEAF * (3 * vertex + view.axis[a])] - view.origin[a];
    lbvh_i_areas(corner, view, of);
    lbvh_real const total = of[0] + of[1] + of[2];
    if (!lbvh_i_one_sign(of) || total == 0) return false;
    lbvh_real const depth = lbvh_i_times(of[0], corner[0][2]) + lbvh_i_times(of[1], corner[1][2]) +
                            lbvh_i_times(of[2], corner[2][2]);
    hit.t = lbvh_i_over(lbvh_i_over(depth, total), view.direction[2]);
    hit.u = lbvh_i_over(of[1], total);
    hit.v = lbvh_i_over(of[2], total);
    return lbvh_i_finite(hit.t);
}

/* The triangles of a block: all four by signs, and then those that the ray passes through. */
__device__ __forceinline__ void lbvh_i_hit_leaf(const lbvh_wide &wide, uint32_t block,
                                                const lbvh_i_view &view, lbvh_i_beam &ray)
{
    const lbvh_real *const from = wide.element + (size_t)block * 9 * LBVH_WIDE_LEAF;
    lbvh_real row[3][3][LBVH_WIDE_LEAF];
    uint32_t passes = 0;
#pragma unroll
    for (int vertex = 0; vertex < 3; vertex++)
#pragma unroll
        for (int a = 0; a < 3; a++)
            lbvh_i_read_lanes(from + LBVH_WIDE_LEAF * (3 * vertex + view.axis[a]), row[vertex][a]);
#pragma unroll
    for (int lane = 0; lane < LBVH_WIDE_LEAF; lane++) {
        lbvh_real corner[3][3], of[3];
#pragma unroll
        for (int vertex = 0; vertex < 3; vertex++)
#pragma unroll
            for (int a = 0; a < 3; a++)
                corner[vertex][a] = row[vertex][a][lane] - view.origin[a];
        lbvh_i_areas(corner, view, of);
        passes |= (uint32_t)lbvh_i_one_sign(of) << lane;
    }
    for (; passes; passes &= passes - 1) {
        size_t const slot = (size_t)block * LBVH_WIDE_LEAF + (size_t)lbvh_i_lowest_bit(passes);
        lbvh_ray_hit hit;
        if (lbvh_i_hit_slot(wide, slot, view, hit)) lbvh_i_keep_hit(&wide, &ray, slot, hit.t);
    }
}

/* A ray that ended. */
template <bool Any>
__device__ __forceinline__ void lbvh_i_store_hit(const lbvh_wide &wide, const lbvh_i_view &view,
                                                 const lbvh_i_beam &ray, int32_t r,
                                                 lbvh_ray_hit *hits, uint8_t *hit)
{
    bool const found = lbvh_i_has_hit(&ray);
    lbvh_ray_hit all;
    if (Any) {
        hit[r] = found;
        return;
    }
    memset(&all, 0, sizeof all); /* (doubles: with its padding) */
    all.id = -1;
    if (found) {
        all.id = wide.id[ray.slot];
        (void)lbvh_i_hit_slot(wide, ray.slot, view, all);
    }
    hits[r] = all;
}

/* As many numbers as there are lanes `ended`, from *next on; a lane's own. All lanes call it. */
__device__ __forceinline__ int32_t lbvh_i_next_number(unsigned ended, int32_t *next)
{
    unsigned const lane = threadIdx.x % 32;
    int32_t first = 0;
    if (lane == 0) first = atomicAdd(next, __popc(ended));
    return __shfl_sync(0xFFFFFFFFu, first, 0) + __popc(ended & ((1u << lane) - 1));
}

/* `next` is 0. */
template <bool Any>
__global__ void __launch_bounds__(lbvh_i_search_block, lbvh_i_ray_blocks)
    lbvh_i_rays_kernel(__grid_constant__ const lbvh_wide_device device,
                       __grid_constant__ const lbvh_rays rays, lbvh_ray_hit *hits, uint8_t *hit,
                       int32_t *next, uint32_t plane_bytes)
{
    const lbvh_wide &wide = device.wide;
    lbvh_i_group_stack stack;
    lbvh_i_way way = lbvh_i_begin_way(0);
    lbvh_i_passage passage;
    lbvh_i_view view;
    lbvh_i_beam ray;
    int32_t r = -1;
    bool going = false, more = true;
    for (;;) {
        bool const at_leaf = (way.at & LBVH_I_LEAF_BIT) != 0;
        unsigned const leaves = __ballot_sync(0xFFFFFFFFu, going && at_leaf),
                       ended = __ballot_sync(0xFFFFFFFFu, !going);
        int const left = 32 - __popc(ended);
        if (left <= (more ? lbvh_i_few_rays : 0)) {
            if (!going && r >= 0) lbvh_i_store_hit<Any>(wide, view, ray, r, hits, hit);
            if (!more) return;
            int32_t const number = lbvh_i_next_number(ended, next);
            more = __all_sync(0xFFFFFFFFu, going || number < rays.n);
            if (going) continue;
            r = -1;
            if (number >= rays.n) continue;
            lbvh_real origin[3], direction[3];
            r = number;
            if (!lbvh_i_read_ray(wide, rays, r, ray, origin, direction)) continue;
            view = lbvh_i_view_of(origin, direction);
            if (!lbvh_i_enter_tree(wide.node, origin, direction, view.axis[2], passage)) continue;
            way = lbvh_i_begin_way(lbvh_i_time_ticket(passage, ray.t_max));
            going = true;
            continue;
        }
        if (!going || at_leaf != (2 * __popc(leaves) > left)) continue;
        if (at_leaf) {
            if (way.at != lbvh_i_nowhere)
                lbvh_i_hit_leaf(wide, way.at & ~LBVH_I_LEAF_BIT, view, ray);
            way.within = lbvh_i_time_ticket(passage, ray.t_max);
        } else {
            lbvh_i_let_wait(way, stack);
            way.here.node = way.at;
            lbvh_i_group_by_time(&wide.node[way.at], passage, plane_bytes, way.here);
        }
        going = !(Any && lbvh_i_has_hit(&ray)) && lbvh_i_take_child(wide, way, stack);
    }
}

/* Threads for n rays: as many as run at the same time. */
int32_t lbvh_i_ray_threads(int32_t n)
{
    int processors = 1;
#ifndef CUDA_EMU /* there a few blocks: some threads take several rays */
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
        (void)cudaGetLastError();
#endif
    int32_t const most = processors * lbvh_i_ray_blocks * lbvh_i_search_block;
    return n < most ? n : most;
}

/* lbvh_closest_hits and lbvh_any_hits. */
lbvh_result lbvh_i_cuda_trace(lbvh_cuda_wide *gpu, const lbvh_rays *rays, lbvh_ray_hit *hits,
                              uint8_t *hit, cudaStream_t stream)
{
    const void *const out = hits ? (const void *)hits : (const void *)hit;
    lbvh_rays checked;
    if (!gpu) return LBVH_BAD_ARGUMENT;
    lbvh_result result = lbvh_i_check_rays(&gpu->device.wide, rays, nullptr, out, &checked);
    if (result != LBVH_OK) return result;
    int32_t *const next = gpu->d_counts + 3;
    if (lbvh_i_failed(&gpu->work, cudaMemsetAsync(next, 0, sizeof *next, stream)))
        return LBVH_CUDA_ERROR;
    return lbvh_i_launch(&gpu->work, stream, lbvh_i_ray_threads(checked.n), lbvh_i_search_block,
                         hits ? lbvh_i_rays_kernel<false> : lbvh_i_rays_kernel<true>, gpu->device,
                         checked, hits, hit, next, lbvh_i_plane_bytes);
}

/* ------------------------------------------------------------------------------------------------
   >>wide-near: a thread for each point
   ---------------------------------------------------------------------------------------------- */

/* Visits the blocks around p, nearer children first: visit(block) returns the squared reach. All
   threads of a warp call it, those without a point with `going` false. */
template <class Visit>
__device__ __forceinline__ void lbvh_i_walk_near(const lbvh_wide &wide, bool going,
                                                 const lbvh_real p[3], lbvh_real &reach2,
                                                 Visit visit)
{
    auto const open = [&](const lbvh_wide_node *node, lbvh_real away2[LBVH_WIDE]) {
        uint32_t met = 0;
        lbvh_i_children_away2(p, node, away2);
#pragma unroll
        for (int c = 0; c < LBVH_WIDE; c++) met |= (uint32_t)(away2[c] <= reach2) << c;
        return met & node->used;
    };
    lbvh_i_walk_in_turns(wide, going, reach2, open, visit);
}

/* Squared distances to the elements of a block: lbvh_i_copied_distance2, in loads of 16 bytes. */
__device__ __forceinline__ void lbvh_i_block_distances2(const lbvh_wide &wide, uint32_t block,
                                                        const lbvh_real p[3],
                                                        lbvh_real distance2[LBVH_WIDE_LEAF])
{
    lbvh_real number[9][LBVH_WIDE_LEAF] = {};
    const lbvh_real *const from = wide.element + (size_t)block * (size_t)wide.numbers *
                                                     LBVH_WIDE_LEAF;
    bool const triangles = wide.numbers == 9;
#pragma unroll
    for (int k = 0; k < 9; k++)
        if (k < 6 || triangles) lbvh_i_read_lanes(from + LBVH_WIDE_LEAF * k, number[k]);
#pragma unroll
    for (int lane = 0; lane < LBVH_WIDE_LEAF; lane++) {
        lbvh_real corner[9], q[3];
        lbvh_node box = {};
#pragma unroll
        for (int k = 0; k < 9; k++) corner[k] = number[k][lane];
        if (triangles) {
            (void)lbvh_closest_on_triangle(p, corner, corner + 3, corner + 6, q);
            distance2[lane] = lbvh_i_distance2(q, p);
            continue;
        }
#pragma unroll
        for (int a = 0; a < 3; a++) {
            box.min[a] = corner[a];
            box.max[a] = corner[a + 3];
        }
        distance2[lane] = lbvh_box_distance2(&box, p);
    }
}

/* The element of a block that a search may find; -1: none. */
__device__ __forceinline__ int32_t lbvh_i_lane_id(const lbvh_wide &wide, uint32_t block, int lane)
{
    size_t const slot = (size_t)block * LBVH_WIDE_LEAF + (size_t)lane;
    if (wide.mask && wide.mask[slot] == 0) return -1;
    return wide.id[slot];
}

/* lbvh_wide_nearest, up to Room elements. */
template <int Room>
__global__ void __launch_bounds__(lbvh_i_search_block, lbvh_i_nearest_blocks(Room))
    lbvh_i_wide_nearest_kernel(__grid_constant__ const lbvh_wide_device device, lbvh_i_input points,
                               int32_t m, const int32_t *order, int32_t k, lbvh_real reach,
                               int32_t *ids, lbvh_real *distances2, int32_t *found)
{
    const lbvh_wide &wide = device.wide;
    lbvh_real p[3], reach2 = lbvh_i_min(lbvh_i_times(reach, reach), lbvh_i_largest());
    int32_t const thread = lbvh_i_thread();
    int32_t const last = thread < m ? thread : m - 1, q = order ? order[last] : last;
    bool const going = lbvh_i_take_point(&wide, lbvh_i_at(points.data, points.stride, q), p) &&
                       thread < m;
    lbvh_i_nearest<Room> list;
    list.clear(k);
    auto const visit = [&](uint32_t block) {
        lbvh_real distance2[LBVH_WIDE_LEAF];
        lbvh_i_block_distances2(wide, block, p, distance2);
#pragma unroll
        for (int lane = 0; lane < LBVH_WIDE_LEAF; lane++) {
            if (!(distance2[lane] <= reach2)) continue;
            int32_t const id = lbvh_i_lane_id(wide, block, lane);
            if (id >= 0) list.insert(distance2[lane], id);
            reach2 = list.reach2(reach2);
        }
        return reach2;
    };
    lbvh_i_walk_near(wide, going, p, reach2, visit);
    if (thread < m) found[q] = list.store(q, k, ids, distances2);
}

/* lbvh_wide_nearest, any k: in the rows themselves. */
__global__ void __launch_bounds__(lbvh_i_search_block)
    lbvh_i_wide_nearest_rows_kernel(__grid_constant__ const lbvh_wide_device device,
                                    lbvh_i_input points, int32_t m, const int32_t *order, int32_t k,
                                    lbvh_real reach, int32_t *ids, lbvh_real *distances2,
                                    int32_t *found)
{
    const lbvh_wide &wide = device.wide;
    lbvh_real p[3], reach2 = lbvh_i_min(lbvh_i_times(reach, reach), lbvh_i_largest());
    int32_t const thread = lbvh_i_thread();
    int32_t const last = thread < m ? thread : m - 1, q = order ? order[last] : last;
    bool const going = lbvh_i_take_point(&wide, lbvh_i_at(points.data, points.stride, q), p) &&
                       thread < m;
    int32_t *const row_ids = ids + (int64_t)q * k;
    lbvh_real *const row_distances2 = distances2 + (int64_t)q * k;
    int32_t count = 0;
    auto const visit = [&](uint32_t block) {
        lbvh_real distance2[LBVH_WIDE_LEAF];
        lbvh_i_block_distances2(wide, block, p, distance2);
#pragma unroll
        for (int lane = 0; lane < LBVH_WIDE_LEAF; lane++) {
            int32_t const id = lbvh_i_lane_id(wide, block, lane);
            if (id >= 0)
                reach2 = lbvh_i_keep_nearest(row_ids, row_distances2, k, &count, reach2, id,
                                             distance2[lane]);
        }
        return reach2;
    };
    lbvh_i_walk_near(wide, going, p, reach2, visit);
    if (thread >= m) return;
    lbvh_i_sort_nearest(row_ids, row_distances2, k, count);
    found[q] = count;
    for (int32_t slot = count; slot < k; slot++) {
        row_ids[slot] = -1;
        row_distances2[slot] = lbvh_i_infinity();
    }
}

/* lbvh_closest_points. */
__global__ void __launch_bounds__(lbvh_i_search_block, lbvh_i_near_blocks)
    lbvh_i_closest_points_kernel(__grid_constant__ const lbvh_wide_device device,
                                 lbvh_i_input points, int32_t m, const int32_t *order,
                                 lbvh_real reach, lbvh_closest *closest)
{
    const lbvh_wide &wide = device.wide;
    lbvh_real p[3], reach2 = lbvh_i_min(lbvh_i_times(reach, reach), lbvh_i_largest());
    lbvh_closest best = {};
    int32_t const thread = lbvh_i_thread();
    int32_t const last = thread < m ? thread : m - 1, q = order ? order[last] : last;
    bool const going = lbvh_i_take_point(&wide, lbvh_i_at(points.data, points.stride, q), p) &&
                       thread < m;
    best.id = -1;
    auto const visit = [&](uint32_t block) {
        lbvh_real distance2[LBVH_WIDE_LEAF];
        lbvh_i_block_distances2(wide, block, p, distance2);
        uint32_t near = 0; /* rarely more than one */
#pragma unroll
        for (int lane = 0; lane < LBVH_WIDE_LEAF; lane++)
            near |= (uint32_t)(distance2[lane] <= reach2) << lane;
        for (; near; near &= near - 1) {
            int const lane = lbvh_i_lowest_bit(near);
            if (lbvh_i_lane_id(wide, block, lane) >= 0)
                lbvh_i_keep_closest(&wide, (size_t)block * LBVH_WIDE_LEAF + (size_t)lane, p, &best,
                                    &reach2);
        }
        return reach2;
    };
    lbvh_i_walk_near(wide, going, p, reach2, visit);
    if (thread < m) closest[q] = best;
}

/* ------------------------------------------------------------------------------------------------
   >>wide-overlaps: a thread for each box, in the order of the tree
   ---------------------------------------------------------------------------------------------- */

/* visit(id) for all elements, in the order of lbvh_wide_overlaps. A group is a node and bits of its
   children that wait. */
template <class Visit>
__device__ __forceinline__ void lbvh_i_walk_overlaps(const lbvh_wide &wide, const lbvh_overlap &o,
                                                     Visit visit)
{
    struct { uint32_t node, met; } waiting[LBVH_STACK];
    uint32_t at = 0, met = lbvh_i_touch_children(&o, &wide.node[0]);
    int top = 0;
    for (;;) {
        for (; met == 0; met = waiting[top].met, at = waiting[top].node)
            if (--top < 0) return;
        int const c = lbvh_i_lowest_bit(met);
        uint32_t const child = lbvh_i_child(&wide.node[at], at, c, 1);
        met &= met - 1;
        if (child & LBVH_I_LEAF_BIT) {
            size_t slot;
            int32_t left = lbvh_i_leaf_slots(&wide, child & ~LBVH_I_LEAF_BIT, &slot);
            for (; left > 0; left--, slot++)
                if (lbvh_i_takes_element(&wide, &o, slot)) visit(wide.id[slot]);
        } else {
            if (met) waiting[top++] = {at, met};
            at = child;
            met = lbvh_i_touch_children(&o, &wide.node[at]);
        }
    }
}

/* ids NULL: the lengths of the rows, to `offsets`. Else the rows. */
__global__ void __launch_bounds__(lbvh_i_search_block)
    lbvh_i_wide_overlaps_kernel(__grid_constant__ const lbvh_wide_device device, lbvh_i_input boxes,
                                int32_t m, const int32_t *order, uint32_t filter, int64_t *offsets,
                                int32_t *ids, int64_t capacity)
{
    const lbvh_wide &wide = device.wide;
    int32_t const thread = lbvh_i_thread();
    if (thread >= m) return;
    int32_t const q = order ? order[thread] : thread;
    lbvh_overlap const o = lbvh_i_overlap_wide(&wide, lbvh_i_at(boxes.data, boxes.stride, q),
                                               filter);
    int64_t slot = ids ? offsets[q] : 0;
    if (o.at >= 0)
        lbvh_i_walk_overlaps(wide, o, [&](int32_t id) {
            if (ids && slot < capacity) ids[slot] = id;
            slot++;
        });
    if (!ids) offsets[q] = slot;
}

} // namespace

/* ------------------------------------------------------------------------------------------------
   >>cuda-wide: the functions that more/lbvh_wide.h declares
   ---------------------------------------------------------------------------------------------- */

extern "C" {

LBVH_API lbvh_result lbvh_cuda_wide_reserve(lbvh_cuda_wide *gpu, const lbvh_wide_desc *desc,
                                            const lbvh_desc *tree_desc, int32_t n, int32_t queries,
                                            struct CUstream_st *stream)
{
    size_t bytes[LBVH_BLOCKS], scratch[LBVH_CUDA_SCRATCH] = {};
    lbvh_desc given;
    if (!gpu) return LBVH_BAD_ARGUMENT;
    lbvh_result result = lbvh_i_cuda_wide_begin(gpu, desc, stream);
    if (result != LBVH_OK) return result;
    if (n < 0 || queries < 0) return LBVH_BAD_ARGUMENT;
    if (queries > LBVH_I_N_MAX) return LBVH_TOO_MANY;
    result = lbvh_defaults(&given, tree_desc);
    if (result == LBVH_OK)
        result = lbvh_i_cuda_wide_sizes(&gpu->device.wide.desc, &given, n, bytes, scratch);
    if (result == LBVH_OK && queries > 0)
        result = lbvh_i_search_sizes(&gpu->work, queries, true, false, scratch);
    if (result == LBVH_OK) result = lbvh_i_cuda_wide_grow(gpu, bytes, LBVH_I_EXACT, stream);
    return result == LBVH_OK ? lbvh_i_grow_scratch(&gpu->work, scratch, LBVH_I_EXACT, stream)
                             : result;
}

LBVH_API lbvh_result lbvh_cuda_wide_build(lbvh_cuda_wide *gpu, const lbvh_wide_desc *desc,
                                          const lbvh_cuda *tree, const lbvh_real *d_data,
                                          size_t stride, struct CUstream_st *stream)
{
    size_t bytes[LBVH_BLOCKS], scratch[LBVH_CUDA_SCRATCH] = {};
    if (!gpu) return LBVH_BAD_ARGUMENT;
    lbvh_result result = lbvh_i_cuda_wide_begin(gpu, desc, stream);
    if (result != LBVH_OK) return result;
    if (!tree) return LBVH_BAD_ARGUMENT;
    const lbvh *from = &tree->device.tree;
    if (!from->built) return LBVH_NOT_BUILT;
    lbvh_wide *wide = &gpu->device.wide;
    lbvh_i_input const input = {d_data, lbvh_i_stride(&from->desc, stride)};
    if (wide->desc.copy && from->n > 0 && (!d_data || input.stride == 0)) return LBVH_BAD_ARGUMENT;
    result = lbvh_i_cuda_wide_sizes(&wide->desc, &from->desc, from->n, bytes, scratch);
    if (result == LBVH_OK) result = lbvh_i_cuda_wide_grow(gpu, bytes, LBVH_I_AHEAD, stream);
    if (result == LBVH_OK)
        result = lbvh_i_grow_scratch(&gpu->work, scratch, LBVH_I_AHEAD, stream);
    if (result != LBVH_OK) return result;
    wide->numbers = lbvh_i_wide_numbers(&wide->desc, from);
    wide->piles = 0;
    wide->dim = from->desc.dim;
    if (from->n > 0) result = lbvh_i_cuda_collapse(gpu, tree->device, input, stream);
    else if (lbvh_i_failed(&gpu->work, cudaMemsetAsync(gpu->d_counts, 0, 3 * sizeof(int32_t),
                                                       stream)))
        result = LBVH_CUDA_ERROR;
    if (result != LBVH_OK) return result;
    wide->elements = wide->leaves = from->n;
    wide->nodes = from->n > 0 ? (int32_t)lbvh_i_most_wide_nodes(from->n, wide->desc.leaf) : 0;
    wide->built = 1;
    return LBVH_OK;
}

LBVH_API lbvh_result lbvh_cuda_wide_upload(lbvh_cuda_wide *gpu, const lbvh_wide *wide,
                                           struct CUstream_st *stream)
{
    size_t bytes[LBVH_BLOCKS], room[LBVH_BLOCKS];
    if (!gpu || !wide) return LBVH_BAD_ARGUMENT;
    if (!wide->built) return LBVH_NOT_BUILT;
    lbvh_wide *device = &gpu->device.wide;
    lbvh_wide_desc desc = wide->desc;
    if (device->desc.cuda_allocator.alloc) desc.cuda_allocator = device->desc.cuda_allocator;
    lbvh_result result = lbvh_i_cuda_wide_begin(gpu, &desc, stream);
    if (result == LBVH_OK)
        result = lbvh_i_wide_array_bytes(wide->numbers, wide->mask != nullptr, wide->nodes,
                                         wide->leaves, wide->elements, bytes);
    memcpy(room, bytes, sizeof room);
    if (result == LBVH_OK) result = lbvh_i_cuda_wide_grow(gpu, room, LBVH_I_AHEAD, stream);
    const void *const from[LBVH_BLOCKS] = {wide->node, wide->id, wide->mask, wide->element};
    int32_t const counts[3] = {wide->nodes, wide->leaves, wide->elements};
    for (int b = 0; b < LBVH_BLOCKS && result == LBVH_OK; b++)
        result = lbvh_i_copy(&gpu->work, gpu->work.block[b].memory, from[b], bytes[b],
                             cudaMemcpyHostToDevice, stream);
    if (result == LBVH_OK)
        result = lbvh_i_copy(&gpu->work, gpu->d_counts, counts, sizeof counts,
                             cudaMemcpyHostToDevice, stream);
    if (result != LBVH_OK) return result;
    device->dim = wide->dim;
    device->numbers = wide->numbers;
    device->piles = wide->piles;
    device->nodes = wide->nodes;
    device->leaves = wide->leaves;
    device->elements = wide->elements;
    device->built = 1;
    return LBVH_OK;
}

LBVH_API lbvh_result lbvh_cuda_wide_download(lbvh_wide *wide, lbvh_cuda_wide *gpu,
                                             struct CUstream_st *stream)
{
    size_t bytes[LBVH_BLOCKS];
    int32_t counts[3] = {};
    if (!wide || !gpu) return LBVH_BAD_ARGUMENT;
    const lbvh_wide *device = &gpu->device.wide;
    lbvh_cuda *work = &gpu->work;
    lbvh_wide_desc desc = device->desc;
    desc.allocator = wide->desc.allocator;
    lbvh_result result = lbvh_i_wide_begin(wide, &desc);
    if (result != LBVH_OK) return result;
    if (!device->built) return LBVH_NOT_BUILT;
    result = lbvh_i_copy(work, counts, gpu->d_counts, sizeof counts, cudaMemcpyDeviceToHost,
                         stream);
    if (result == LBVH_OK && lbvh_i_failed(work, cudaStreamSynchronize(stream)))
        result = LBVH_CUDA_ERROR;
    if (result == LBVH_OK)
        result = lbvh_i_wide_array_bytes(device->numbers, device->mask != nullptr, counts[0],
                                         counts[1], counts[2], bytes);
    if (result == LBVH_OK) result = lbvh_i_wide_prepare(wide, bytes);
    for (int b = 0; b < LBVH_BLOCKS && result == LBVH_OK; b++)
        result = lbvh_i_copy(work, wide->block[b].memory, work->block[b].memory, bytes[b],
                             cudaMemcpyDeviceToHost, stream);
    if (result == LBVH_OK && lbvh_i_failed(work, cudaStreamSynchronize(stream)))
        result = LBVH_CUDA_ERROR;
    if (result != LBVH_OK) return result;
    wide->dim = device->dim;
    wide->numbers = device->numbers;
    wide->piles = device->piles;
    wide->nodes = counts[0];
    wide->leaves = counts[1];
    wide->elements = counts[2];
    wide->built = 1;
    return LBVH_OK;
}

LBVH_API void lbvh_cuda_wide_free(lbvh_cuda_wide *gpu)
{
    if (!gpu) return;
    lbvh_cuda_free(&gpu->work);
    memset(gpu, 0, sizeof *gpu);
}

LBVH_API lbvh_result lbvh_cuda_closest_hits(lbvh_cuda_wide *gpu, const lbvh_rays *rays,
                                            lbvh_ray_hit *d_hits, struct CUstream_st *stream)
{
    return lbvh_i_cuda_trace(gpu, rays, d_hits, nullptr, stream);
}

LBVH_API lbvh_result lbvh_cuda_any_hits(lbvh_cuda_wide *gpu, const lbvh_rays *rays, uint8_t *d_hit,
                                        struct CUstream_st *stream)
{
    return lbvh_i_cuda_trace(gpu, rays, nullptr, d_hit, stream);
}

LBVH_API lbvh_result lbvh_cuda_wide_nearest(lbvh_cuda_wide *gpu, const lbvh_real *d_points,
                                            size_t stride, int32_t m, int32_t k, lbvh_real reach,
                                            int flags, int32_t *d_ids, lbvh_real *d_distances2,
                                            int32_t *d_found, struct CUstream_st *stream)
{
    const int32_t *order;
    lbvh_i_input points;
    if (k < 0 || (m > 0 && (!d_found || (k > 0 && (!d_ids || !d_distances2)))))
        return LBVH_BAD_ARGUMENT;
    lbvh_result result = lbvh_i_check_near(gpu, d_points, stride, 0, m, flags, reach, &points);
    if (result != LBVH_OK) return result;
    if (!gpu->device.wide.numbers && gpu->device.wide.elements > 0) return LBVH_NOT_BUILT;
    if (k == 0)
        return lbvh_i_failed(&gpu->work, cudaMemsetAsync(d_found, 0, (size_t)m * sizeof *d_found,
                                                         stream))
                   ? LBVH_CUDA_ERROR
                   : LBVH_OK;
    result = lbvh_i_order_places(gpu, points, m, 0, flags, &order, stream);
    if (result != LBVH_OK) return result;
    auto const kernel = k == 1    ? lbvh_i_wide_nearest_kernel<1>
                        : k <= 8  ? lbvh_i_wide_nearest_kernel<8>
                        : k <= 16 ? lbvh_i_wide_nearest_kernel<16>
                        : k <= 32 ? lbvh_i_wide_nearest_kernel<32>
                                  : lbvh_i_wide_nearest_rows_kernel;
    return lbvh_i_launch(&gpu->work, stream, m, lbvh_i_search_block, kernel, gpu->device, points,
                         m, order, k, reach, d_ids, d_distances2, d_found);
}

LBVH_API lbvh_result lbvh_cuda_closest_points(lbvh_cuda_wide *gpu, const lbvh_real *d_points,
                                              size_t stride, int32_t m, lbvh_real reach, int flags,
                                              lbvh_closest *d_closest, struct CUstream_st *stream)
{
    const int32_t *order;
    lbvh_i_input points;
    if (m > 0 && !d_closest) return LBVH_BAD_ARGUMENT;
    lbvh_result result = lbvh_i_check_near(gpu, d_points, stride, 0, m, flags, reach, &points);
    if (result != LBVH_OK) return result;
    if (gpu->device.wide.numbers != 9) return LBVH_NOT_BUILT;
    result = lbvh_i_order_places(gpu, points, m, 0, flags, &order, stream);
    if (result != LBVH_OK) return result;
    return lbvh_i_launch(&gpu->work, stream, m, lbvh_i_search_block, lbvh_i_closest_points_kernel,
                         gpu->device, points, m, order, reach, d_closest);
}

LBVH_API lbvh_result lbvh_cuda_wide_overlaps(lbvh_cuda_wide *gpu, const lbvh_real *d_boxes,
                                             size_t stride, int32_t m, uint32_t filter, int flags,
                                             int64_t *d_offsets, int32_t *d_ids, int64_t capacity,
                                             struct CUstream_st *stream)
{
    const int32_t *order;
    lbvh_i_input boxes;
    if (!d_offsets || capacity < 0 || (capacity > 0 && !d_ids)) return LBVH_BAD_ARGUMENT;
    lbvh_result result = lbvh_i_check_near(gpu, d_boxes, stride, 1, m, flags, 0, &boxes);
    if (result != LBVH_OK) return result;
    result = lbvh_i_order_places(gpu, boxes, m, 1, flags, &order, stream);
    if (result != LBVH_OK) return result;
    lbvh_cuda *work = &gpu->work;
    if (lbvh_i_failed(work, cudaMemsetAsync(d_offsets + m, 0, sizeof *d_offsets, stream)))
        return LBVH_CUDA_ERROR;
    result = lbvh_i_launch(work, stream, m, lbvh_i_search_block, lbvh_i_wide_overlaps_kernel,
                           gpu->device, boxes, m, order, filter, d_offsets, (int32_t *)nullptr,
                           (int64_t)0);
    if (result == LBVH_OK) result = lbvh_i_scan_rows(work, d_offsets, m, stream);
    if (result != LBVH_OK || capacity == 0) return result;
    return lbvh_i_launch(work, stream, m, lbvh_i_search_block, lbvh_i_wide_overlaps_kernel,
                         gpu->device, boxes, m, order, filter, d_offsets, d_ids, capacity);
}

} /* extern "C" */
