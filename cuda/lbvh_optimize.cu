/* cuda/lbvh_optimize.cu - v0.2.0 - the CUDA part of more/lbvh_optimize.h, which includes this file.
   SPDX-License-Identifier: MIT OR Unlicense

   >>contents: search for >>, the name and a colon. rotations, cuda-optimize */

#ifndef LBVH_OPTIMIZE_H
#error "cuda/lbvh_optimize.cu is a part of more/lbvh_optimize.h: include that"
#elif 10000 * LBVH_VERSION_MAJOR + 100 * LBVH_VERSION_MINOR + LBVH_VERSION_PATCH != 200
#error "cuda/lbvh_optimize.cu 0.2.0 and lbvh.h are of different versions: copy both from one \
release"
#endif

namespace {

/* ------------------------------------------------------------------------------------------------
   >>rotations: lbvh_cuda_optimize (rules and figure: more/lbvh_optimize.h)

   What a rotation does depends on the subtrees of its node alone. So a thread per leaf ascends, as
   in cuda/lbvh.cu, >>split: the second child to arrive rotates at the parent. A rotation leaves the
   numbers of all nodes above as they are. Then each leaf adds up its new place on its way to the
   root, moves there, and the tree is merged anew.
   ---------------------------------------------------------------------------------------------- */

struct lbvh_i_rotations {
    int32_t *arrived;   /* [n] by inner node */
    int32_t *leaves;    /* [n] below an inner node */
    int32_t *parent;    /* [2 n] -1: the root */
    int32_t *before;    /* [2 n] leaves of the left sibling; during rotations, by inner node, the
                           largest height */
    int32_t *done;      /* rotations */
};

/* Inner nodes: the right child replaces the skip. */
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_begin_rotations_kernel(__grid_constant__ const lbvh_device device, lbvh_i_rotations work)
{
    const lbvh &tree = device.tree;
    int32_t const at = lbvh_i_thread();
    if (at >= tree.first_leaf) return;
    lbvh_node *node = &tree.node[at];
    int32_t const right = lbvh_right_child(&tree, node);
    work.before[at] = LBVH_STACK - tree.prefix[lbvh_split_place(&tree, node) + 1];
    work.arrived[at] = 0;
    work.parent[node->link] = work.parent[right] = at;
    node->skip = right;
    if (at == 0) work.parent[0] = -1;
    if (at == 0) *work.done = 0;
}

/* Leaves below a node. */
__device__ __forceinline__ int32_t lbvh_i_leaves_below(const lbvh &tree,
                                                       const lbvh_i_rotations &work, int32_t at)
{
    return at < tree.first_leaf ? work.leaves[at] : 1;
}

/* The same of an inner node, from its children. */
__device__ __forceinline__ void lbvh_i_note_leaves(const lbvh &tree, const lbvh_i_rotations &work,
                                                   int32_t at)
{
    if (at >= tree.first_leaf) return;
    work.leaves[at] = lbvh_i_leaves_below(tree, work, tree.node[at].link) +
                      lbvh_i_leaves_below(tree, work, tree.node[at].skip);
}

/* A thread per leaf. The fences: as in lbvh_i_boxes_up_kernel. */
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_rotate_kernel(__grid_constant__ const lbvh_device device, lbvh_i_rotations work)
{
    const lbvh &tree = device.tree;
    int32_t const k = lbvh_i_thread(), dim = tree.desc.dim;
    if (k >= tree.n) return;
    for (int32_t at = work.parent[tree.first_leaf + k]; at >= 0; at = work.parent[at]) {
        __threadfence();
        if (atomicAdd(&work.arrived[at], 1) == 0) return;
        __threadfence();
        int32_t const left = tree.node[at].link, right = tree.node[at].skip;
        const lbvh_node *const l = &tree.node[left], *const r = &tree.node[right];
        if (lbvh_i_rotate(&tree, at, lbvh_i_area(dim, l->min, l->max),
                          lbvh_i_area(dim, r->min, r->max), work.before[at]))
            (void)atomicAdd(work.done, 1);
        lbvh_i_note_leaves(tree, work, left);
        lbvh_i_note_leaves(tree, work, right);
        lbvh_i_note_leaves(tree, work, at);
    }
}

/* Inner nodes: what each of their children has before it. */
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_end_rotations_kernel(__grid_constant__ const lbvh_device device, lbvh_i_rotations work)
{
    const lbvh &tree = device.tree;
    int32_t const at = lbvh_i_thread();
    if (at >= tree.first_leaf) return;
    int32_t const left = tree.node[at].link, right = tree.node[at].skip;
    work.parent[left] = work.parent[right] = at;
    work.before[left] = 0;
    work.before[right] = lbvh_i_leaves_below(tree, work, left);
}

/* Leaves to their new places, where inner nodes were (the last one behind all nodes), and prefixes
   as in lbvh_i_number_kernel. Without rotations all is as it was. */
__global__ void __launch_bounds__(lbvh_i_block_threads)
    lbvh_i_move_leaves_kernel(__grid_constant__ const lbvh_device device, lbvh_i_rotations work)
{
    const lbvh &tree = device.tree;
    int32_t const k = lbvh_i_thread();
    if (k >= tree.n) return;
    int32_t place = k;
    if (*work.done > 0) {
        int depth = 0, from_split = 0;
        place = 0;
        for (int32_t at = tree.first_leaf + k; work.parent[at] >= 0; at = work.parent[at]) {
            if (place == 0) from_split++;
            place += work.before[at];
            depth++;
        }
        if (place > 0) tree.prefix[place] = (uint8_t)(1 + depth - from_split);
    }
    int32_t const to = place == tree.first_leaf ? 2 * tree.n - 1 : place;
    lbvh_i_store(&tree.node[to], lbvh_i_fetch(&tree.node[tree.first_leaf + k]));
    if (tree.mask) tree.mask[to] = tree.mask[tree.first_leaf + k];
}

/* Work space of lbvh_cuda_optimize. */
lbvh_result lbvh_i_prepare_rotations(lbvh_cuda *gpu, lbvh_i_rotations *work, cudaStream_t stream)
{
    size_t const n = (size_t)gpu->device.tree.n;
    size_t scratch[LBVH_CUDA_SCRATCH] = {};
    scratch[LBVH_I_LINKS] = (6 * n + 1) * sizeof(int32_t);
    lbvh_result const result = lbvh_i_grow_scratch(gpu, scratch, LBVH_I_AHEAD, stream);
    if (result != LBVH_OK) return result;
    work->arrived = lbvh_i_scratch<int32_t>(gpu, LBVH_I_LINKS);
    work->leaves = work->arrived + n;
    work->parent = work->leaves + n;
    work->before = work->parent + 2 * n;
    work->done = work->before + 2 * n;
    return LBVH_OK;
}

/* Leaves from where lbvh_i_move_leaves_kernel has put them. */
lbvh_result lbvh_i_take_leaves(lbvh_cuda *gpu, cudaStream_t stream)
{
    const lbvh &tree = gpu->device.tree;
    size_t const inner = (size_t)tree.first_leaf, last = 2 * inner;
    cudaMemcpyKind const kind = cudaMemcpyDeviceToDevice;
    lbvh_result result = lbvh_i_copy(gpu, tree.node + inner, tree.node, inner * sizeof *tree.node,
                                     kind, stream);
    if (result == LBVH_OK)
        result = lbvh_i_copy(gpu, tree.node + last, tree.node + last + 1, sizeof *tree.node, kind,
                             stream);
    if (result != LBVH_OK || !tree.mask) return result;
    result = lbvh_i_copy(gpu, tree.mask + inner, tree.mask, inner * sizeof *tree.mask, kind,
                         stream);
    if (result != LBVH_OK) return result;
    return lbvh_i_copy(gpu, tree.mask + last, tree.mask + last + 1, sizeof *tree.mask, kind,
                       stream);
}

/* All stages. */
lbvh_result lbvh_i_cuda_rotate(lbvh_cuda *gpu, const lbvh_i_rotations &work, cudaStream_t stream)
{
    int32_t const n = gpu->device.tree.n;
    lbvh_result result = lbvh_i_launch(gpu, stream, n, lbvh_i_block_threads,
                                       lbvh_i_begin_rotations_kernel, gpu->device, work);
    if (result == LBVH_OK)
        result = lbvh_i_launch(gpu, stream, n, lbvh_i_block_threads, lbvh_i_rotate_kernel,
                               gpu->device, work);
    if (result == LBVH_OK)
        result = lbvh_i_launch(gpu, stream, n, lbvh_i_block_threads, lbvh_i_end_rotations_kernel,
                               gpu->device, work);
    if (result == LBVH_OK)
        result = lbvh_i_launch(gpu, stream, n, lbvh_i_block_threads, lbvh_i_move_leaves_kernel,
                               gpu->device, work);
    if (result == LBVH_OK) result = lbvh_i_take_leaves(gpu, stream);
    if (result != LBVH_OK) return result;
    lbvh_i_input const none = {nullptr, 0};
    return lbvh_i_cuda_merge(gpu, none, lbvh_i_sorted_codes(), nullptr,
                             lbvh_i_scratch<int32_t>(gpu, LBVH_I_IDS_A),
                             lbvh_i_scratch<int32_t>(gpu, LBVH_I_IDS_B), stream);
}

} // namespace

/* ------------------------------------------------------------------------------------------------
   >>cuda-optimize: the functions that more/lbvh_optimize.h declares
   ---------------------------------------------------------------------------------------------- */

extern "C" {

LBVH_API lbvh_result lbvh_cuda_optimize(lbvh_cuda *gpu, int32_t *rotations,
                                        struct CUstream_st *stream)
{
    lbvh_i_rotations work;
    if (rotations) *rotations = 0;
    if (!gpu) return LBVH_BAD_ARGUMENT;
    lbvh *tree = &gpu->device.tree;
    if (!tree->built) return LBVH_NOT_BUILT;
    if (tree->n < 3) return LBVH_OK;
    lbvh_result result = lbvh_i_prepare_rotations(gpu, &work, stream);
    if (result != LBVH_OK) return result;
    tree->code = nullptr;
    tree->mixed = 1;
    tree->desc.keep_codes = 0;
    if (tree->desc.builder == LBVH_SPLIT) tree->desc.builder = LBVH_MERGE;
    result = lbvh_i_cuda_rotate(gpu, work, stream);
    if (result == LBVH_OK && rotations)
        result = lbvh_i_copy(gpu, rotations, work.done, sizeof *rotations, cudaMemcpyDeviceToHost,
                             stream);
    if (result == LBVH_OK && rotations && lbvh_i_failed(gpu, cudaStreamSynchronize(stream)))
        result = LBVH_CUDA_ERROR;
    /* it may be half made */
    if (result != LBVH_OK) tree->built = tree->n = tree->first_leaf = 0;
    return result;
}

} /* extern "C" */
