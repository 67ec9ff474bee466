/* more/lbvh_wide.h - v0.2.0 - a part of lbvh.h: trees of nodes with up to 8 children.
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   A finished tree, collapsed to nodes of 8 children in a fifth of the memory (without desc.copy):
   for rays in bulk, nearest elements, closest points on meshes, and trees that are searched often.
   Added by

       #define LBVH_WITH_WIDE

   before lbvh.h is included, in every file that uses it and in the one with LBVH_IMPLEMENTATION.
   With LBVH_CUDA it needs cuda/lbvh_wide.cu as well.

   >>contents: the banners in order; search for >>, the name and a colon

       manual          rules
       declarations    wide
       serial          wide-build, wide-rays, wide-lanes, wide-trace, wide-packs, wide-hits,
                       wide-near, wide-points, wide-overlaps, wide-validate, wide-save
       CUDA            cuda/lbvh_wide.cu, with a list of its own

   >>rules: those of lbvh.h, and

   Memory   lbvh_wide_build, lbvh_wide_load and lbvh_wide_validate allocate, by desc.allocator. How
            much is told at >>wide. Searches in tasks need the stack of lbvh.h.
   Threads  Any number of threads may search one wide tree. With desc.parallel lbvh_wide_build,
            lbvh_closest_hits, lbvh_any_hits (where fn is NULL) and lbvh_closest_points run in tasks
            (lbvh.h, >>parallel). LBVH_NOT_RUN: the tree is empty; rays and points have found
            nothing.

   To learn it from this file, read >>wide, >>wide-build, >>wide-rays and >>wide-near.

   Sources  Ylitie:  H. Ylitie, T. Karras, S. Laine, Efficient Incoherent Ray Traversal on GPUs
                     Through Compressed Wide BVHs, HPG 2017.
*/

#ifndef LBVH_H
#error "more/lbvh_wide.h is a part of lbvh.h: define LBVH_WITH_WIDE and include lbvh.h"
#elif 10000 * LBVH_VERSION_MAJOR + 100 * LBVH_VERSION_MINOR + LBVH_VERSION_PATCH != 200
#error "more/lbvh_wide.h 0.2.0 and lbvh.h are of different versions: copy both from one release"
#endif

#ifndef LBVH_WIDE_H
#define LBVH_WIDE_H

/* In a double build every function gets a second name, as in lbvh.h. */
#if LBVH_I_REAL_KIND == 2 && !defined(NEARFIELD_NAMESPACE)
#define lbvh_wide_build          lbvh_f64_wide_build
#define lbvh_wide_bytes_for      lbvh_f64_wide_bytes_for
#define lbvh_wide_free           lbvh_f64_wide_free
#define lbvh_wide_bytes          lbvh_f64_wide_bytes
#define lbvh_wide_validate       lbvh_f64_wide_validate
#define lbvh_wide_save           lbvh_f64_wide_save
#define lbvh_wide_load           lbvh_f64_wide_load
#define lbvh_closest_hits        lbvh_f64_closest_hits
#define lbvh_any_hits            lbvh_f64_any_hits
#define lbvh_wide_nearest        lbvh_f64_wide_nearest
#define lbvh_closest_points      lbvh_f64_closest_points
#define lbvh_closest_points_each lbvh_f64_closest_points_each
#define lbvh_wide_overlaps       lbvh_f64_wide_overlaps
#define lbvh_cuda_wide_reserve   lbvh_f64_cuda_wide_reserve
#define lbvh_cuda_wide_build     lbvh_f64_cuda_wide_build
#define lbvh_cuda_wide_upload    lbvh_f64_cuda_wide_upload
#define lbvh_cuda_wide_download  lbvh_f64_cuda_wide_download
#define lbvh_cuda_wide_free      lbvh_f64_cuda_wide_free
#define lbvh_cuda_wide_nearest   lbvh_f64_cuda_wide_nearest
#define lbvh_cuda_wide_overlaps  lbvh_f64_cuda_wide_overlaps
#define lbvh_cuda_closest_hits   lbvh_f64_cuda_closest_hits
#define lbvh_cuda_any_hits       lbvh_f64_cuda_any_hits
#define lbvh_cuda_closest_points lbvh_f64_cuda_closest_points
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------
   >>wide: a tree of nodes with up to 8 children, collapsed from a finished one, for trees that are
   searched often: rays in bulk, nearest elements, closest points on meshes, overlaps.

       lbvh_wide wide = {0};
       lbvh_wide_desc desc = {0};
       desc.copy = 1;                                   // triangles lie beside each other
       lbvh_wide_build(&wide, &desc, &tree, triangles, 0);
       lbvh_closest_hits(&wide, &rays, NULL, NULL, hits);
       lbvh_wide_free(&wide);

   A wide tree owns all that it reads: `tree` may be freed. After a refit or a build of `tree`,
   build it again: the memory is reused. lbvh_wide_build, _load and _validate allocate. Any number
   of threads may search one wide tree.

   A node keeps the boxes of its children in 48 bytes (float: the node in 80; Ylitie). The numbers
   of a box are counted in quanta, which are powers of two, from a corner of the node:

           low[c]       high[c]
       |-----[============]------------|      plane = (corner + q) * quantum,   q = 0 .. 255
       corner                          corner + 255

   Low numbers are rounded down, high ones up: a quantised box contains the exact one. Nothing is
   lost in decoding: corner is an integer, corner + q is at most 2^24 (double: 2^53), which a real
   holds exactly, and a product with a power of two is exact. If it overflows, it does so outward.
   Far from the origin the quantum is as large as that bound asks for: it is then at most two units
   in the last place of the largest coordinate.

   Memory without desc.copy: with desc.leaf = 4 at most 22.3 bytes an element (float), whatever the
   tree, from 5 elements on. A node either has 8 children (there are a of them), or all its children
   are leaves (b); and a subtree of at most 4 elements is a leaf. With l leaves right below nodes of
   the first kind, 8 a = a - 1 + b + l, and 5 b + l <= n: so a + b is largest where l = 0, at most
   n/5 + n/35, and 80 (a + b) + 4 n bytes follow. As a rule it is half to two thirds of that.
   ---------------------------------------------------------------------------------------------- */

enum {
    LBVH_WIDE = 8,          /* children of a node at most */
    LBVH_WIDE_LEAF = 4,     /* elements of a leaf at most; lanes of a block */
    LBVH_WIDE_STACK = 7 * (LBVH_STACK - 1) + 1  /* every level leaves 7 children or fewer behind */
};

#if LBVH_I_REAL_KIND == 1
typedef uint8_t lbvh_exponent;
#else
typedef uint16_t lbvh_exponent;
#endif

typedef struct lbvh_wide_node {
    lbvh_real corner[3];        /* in quanta: an integer */
    lbvh_exponent exponent[3];  /* of the quanta: the bits of a real's exponent, which is 127
                                   (double: 1023) more */
    lbvh_exponent used;         /* bit c: there is a child c */
    uint32_t child;         /* the first inner child; the others follow */
    uint32_t first;         /* the first element of the leaves, with desc.copy: their first block */
    uint8_t kind[LBVH_WIDE];    /* inner child: 224 + its number among those; leaf: 32 * elements +
                                   where it begins, from `first`; 0: none */
    uint8_t plane[6][LBVH_WIDE];    /* low x y z, high x y z of each child */
} lbvh_wide_node;

typedef struct lbvh_wide_desc {
    int32_t leaf;           /* elements of a leaf at most, 1 .. 4 (default: 4) */
    int32_t copy;           /* 1: the elements are copied: triangles of 3D as triangles, all others
                               as their boxes; in blocks of 4, one for each leaf; needed where the
                               comment of a search says so (default: 0) */
    lbvh_allocator allocator;   /* (default: malloc and free) */
    lbvh_cuda_allocator cuda_allocator; /* (default: cudaMallocAsync and cudaFreeAsync) */
    lbvh_parallel parallel;     /* a hook for threads, for the build and for searches of many rays
                                   or points; may be changed in wide.desc (default: serial) */
} lbvh_wide_desc;

typedef struct lbvh_wide {
    lbvh_wide_desc desc;    /* with defaults filled in */
    int32_t dim, built;     /* as in lbvh */
    int32_t elements;       /* those that were not left out */
    int32_t nodes, leaves;
    int32_t numbers;        /* of a copied element: 9 (a, b, c), 6 (min, max), 0: none are */
    int32_t piles;          /* 1: there are nodes whose elements lie at one point, and there they
                               stand by id, so that lbvh_wide_nearest need not visit all; 0: none,
                               or not by id, or not known (made on a GPU) */
    lbvh_wide_node *node;   /* [nodes] node 0 is the root */
    int32_t *id;            /* [elements] by leaf; with desc.copy [4 * leaves], -1: none */
    uint32_t *mask;         /* the same for masks, where the tree has them; else NULL */
    lbvh_real *element;     /* desc.copy: [leaves][numbers][4] */
    lbvh_block block[LBVH_BLOCKS];
} lbvh_wide;

/* Collapses a tree of any builder. Of the children of a wide node, at first those of the binary
   node, the one with the largest area that is no leaf of the wide tree is replaced by its own two,
   until there are 8. data and stride: the elements, as at the last build or refit of `tree`; read
   with desc.copy only. desc NULL: all defaults. LBVH_BAD_OPTION: desc.leaf, desc.parallel.tasks.
   After a refusal, and LBVH_NOT_RUN, the wide tree is empty, and keeps its memory. O(n), on the
   CPU about as long as a build. (On a GPU a build is faster: an H200 takes 4.7 times as long.) */
LBVH_API lbvh_result lbvh_wide_build(lbvh_wide *wide, const lbvh_wide_desc *desc, const lbvh *tree,
                                     const lbvh_real *data, size_t stride);

/* The bytes that a first lbvh_wide_build takes: *bytes; 0 where it refuses. O(n). */
LBVH_API lbvh_result lbvh_wide_bytes_for(const lbvh_wide_desc *desc, const lbvh *tree,
                                         int64_t *bytes);

/* Frees the memory and empties the wide tree; an empty one is fine. */
LBVH_API void lbvh_wide_free(lbvh_wide *wide);

/* Bytes of memory that it holds. */
LBVH_API int64_t lbvh_wide_bytes(const lbvh_wide *wide);

/* LBVH_OK, or LBVH_INVALID where a leaf of `tree` is not in `wide` exactly once, or is not inside
   all boxes above it. Both are built; the arrays are trusted. For tests and students. O(n). */
LBVH_API lbvh_result lbvh_wide_validate(const lbvh_wide *wide, const lbvh *tree);

/* As lbvh_save. A loaded tree has all that was searched in the saved one. */
LBVH_API lbvh_result lbvh_wide_save(const lbvh_wide *wide, void *bytes, int64_t capacity,
                                    int64_t *needed);

/* As lbvh_load: any bytes are refused (LBVH_BAD_FILE) or make a tree that can be searched: every
   node and slot has one parent, no walk is deeper than its stack, boxes enclose the copied elements
   below. Ids are 0 or above; that they are below the number of your elements, and that boxes
   without copies are true, only you can know. desc: the allocators and `parallel`; all else is in
   the file. */
LBVH_API lbvh_result lbvh_wide_load(lbvh_wide *wide, const lbvh_wide_desc *desc, const void *bytes,
                                    int64_t size);

/* Many rays. */
typedef struct lbvh_rays {
    const lbvh_real *data;  /* 2 dim numbers each: origin, direction (of any length) */
    size_t stride;          /* bytes between two rays (default: tightly packed) */
    int32_t n;
    lbvh_real t_max;        /* up to where, in lengths of the direction (default, 0: infinity) */
    const lbvh_real *t_ends;    /* [n] the same for each ray, as it stands: 0 is 0 (default: t_max
                                   for all) */
    uint32_t filter;        /* only elements whose mask shares a bit with it (default, 0: all). Of
                               no effect, as filters, where the tree has no masks */
    const uint32_t *filters;    /* [n] one for each ray, 0 finds none (default: filter for all) */
    int flags;              /* LBVH_SORTED: consecutive rays are near each other, as those of a
                               picture: faster then on a CPU; the answers are the same */
} lbvh_rays;

typedef struct lbvh_ray_hit {
    lbvh_real t, u, v;      /* as lbvh_ray_triangle gives them; 0 where nothing is hit */
    int32_t id;             /* the element, -1: nothing is hit */
} lbvh_ray_hit;

/* Your test of a ray and element id: 1 where it is hit, and then *t, *u, *v. */
typedef int lbvh_ray_fn(void *user, int32_t id, const lbvh_real *origin, const lbvh_real *direction,
                        lbvh_real *t, lbvh_real *u, lbvh_real *v);

/* hits[i]: the first element that ray i hits, 0 <= t <= t_max; of those at the same t the lowest
   id. fn NULL: lbvh_ray_triangle, by its bits; needs copied triangles (else LBVH_NOT_BUILT). Rays
   with NaN or infinite numbers (except t_max) hit nothing. */
LBVH_API lbvh_result lbvh_closest_hits(const lbvh_wide *wide, const lbvh_rays *rays,
                                       lbvh_ray_fn *fn, void *user, lbvh_ray_hit *hits);

/* hit[i] = 1 where ray i hits anything, else 0: shadows, lines of sight. fn as above. */
LBVH_API lbvh_result lbvh_any_hits(const lbvh_wide *wide, const lbvh_rays *rays, lbvh_ray_fn *fn,
                                   void *user, uint8_t *hit);

/* As lbvh_nearest, and the same answer. fn NULL: the distance to the copied triangle (2D: to its
   box) or box; needs desc.copy (else LBVH_NOT_BUILT). Many elements at one point: wide.piles. */
LBVH_API lbvh_result lbvh_wide_nearest(const lbvh_wide *wide, const lbvh_real *p, int32_t k,
                                       lbvh_real reach, lbvh_distance2_fn *fn, void *user,
                                       int32_t *ids, lbvh_real *distances2, int32_t *found);

/* The point of a mesh that is closest to another one. */
typedef struct lbvh_closest {
    lbvh_real point[3];
    lbvh_real distance2;
    int32_t id;             /* the triangle, of those at the same distance the lowest; -1: none is
                               within reach, all else is 0 */
    lbvh_feature feature;   /* the part of the triangle */
} lbvh_closest;

/* closest[i] for each of n points (3 numbers each, `stride` bytes apart, 0: tightly packed), by
   lbvh_closest_on_triangle. Needs copied triangles (else LBVH_NOT_BUILT). */
LBVH_API lbvh_result lbvh_closest_points(const lbvh_wide *wide, const lbvh_real *points,
                                         size_t stride, int32_t n, lbvh_real reach,
                                         lbvh_closest *closest);

/* The same with a reach for each point: [n] numbers, reach_stride bytes apart (0: tightly packed).
   A negative one or NaN finds nothing. Short reaches take less time: where a distance is known to
   be at most so large, as from the step before, give it. */
LBVH_API lbvh_result lbvh_closest_points_each(const lbvh_wide *wide, const lbvh_real *points,
                                              size_t stride, int32_t n, const lbvh_real *reaches,
                                              size_t reach_stride, lbvh_closest *closest);

/* Elements that overlap a box (2 dim numbers): ids, room for `capacity`, in the order of the wide
   tree; `*needed`: their number, also when they did not fit (LBVH_BUFFER_TOO_SMALL). filter as in
   lbvh_rays. With desc.copy the answer of lbvh_overlap_box (triangles: by their boxes). Without,
   the elements of all leaves that touch the box: yours to test. */
LBVH_API lbvh_result lbvh_wide_overlaps(const lbvh_wide *wide, const lbvh_real *box,
                                        uint32_t filter, int32_t *ids, int64_t capacity,
                                        int64_t *needed);

#ifdef LBVH_CUDA
/* The same on a GPU: the same arrays, bit for bit, and the same answers. As in lbvh.h,
   >>cuda-api, pointers d_... and those of lbvh_rays are device memory, and no call waits unless it
   says so. Points and boxes are sorted by place inside a call, unless its flags have LBVH_SORTED.
   Rays are traced as they come: sorting them takes about as long as it saves. */

/* What kernels take by value. After lbvh_cuda_wide_build its nodes, leaves and elements are upper
   bounds; the true numbers are on the device. */
typedef struct lbvh_wide_device { lbvh_wide wide; } lbvh_wide_device;

typedef struct lbvh_cuda_wide {
    lbvh_wide_device device;    /* argument for kernels */
    int32_t *d_counts;          /* nodes, leaves, elements; rays that are taken */
    lbvh_cuda work;             /* device memory, and device.tree.cuda_error; its tree is empty */
} lbvh_cuda_wide;

/* Allocates all memory that collapses of trees of up to n elements of the kind of `tree_desc`, and
   searches of up to `queries` queries, need. They then allocate nothing. Since no call waits for
   counts, it is enough for any tree: with desc.copy 180 bytes an element (triangles, float), else
   23, and 40 for the collapse. */
LBVH_API lbvh_result lbvh_cuda_wide_reserve(lbvh_cuda_wide *gpu, const lbvh_wide_desc *desc,
                                            const lbvh_desc *tree_desc, int32_t n, int32_t queries,
                                            struct CUstream_st *stream);

/* As lbvh_wide_build, from a tree and elements on the device, of the same stream. */
LBVH_API lbvh_result lbvh_cuda_wide_build(lbvh_cuda_wide *gpu, const lbvh_wide_desc *desc,
                                          const lbvh_cuda *tree, const lbvh_real *d_data,
                                          size_t stride, struct CUstream_st *stream);

/* Copies a host tree to the device, in its exact size. May return before the copy is done: keep the
   tree until then. */
LBVH_API lbvh_result lbvh_cuda_wide_upload(lbvh_cuda_wide *gpu, const lbvh_wide *wide,
                                           struct CUstream_st *stream);

/* Copies a device tree into a host tree (its memory reused). Waits for the stream. */
LBVH_API lbvh_result lbvh_cuda_wide_download(lbvh_wide *wide, lbvh_cuda_wide *gpu,
                                             struct CUstream_st *stream);

/* Frees the device memory, in the order of the stream that it was last used on. */
LBVH_API void lbvh_cuda_wide_free(lbvh_cuda_wide *gpu);

/* As lbvh_closest_hits and lbvh_any_hits, on copied triangles. */
LBVH_API lbvh_result lbvh_cuda_closest_hits(lbvh_cuda_wide *gpu, const lbvh_rays *rays,
                                            lbvh_ray_hit *d_hits, struct CUstream_st *stream);
LBVH_API lbvh_result lbvh_cuda_any_hits(lbvh_cuda_wide *gpu, const lbvh_rays *rays, uint8_t *d_hit,
                                        struct CUstream_st *stream);

/* As lbvh_cuda_nearest, by the distances of lbvh_wide_nearest with fn NULL. */
LBVH_API lbvh_result lbvh_cuda_wide_nearest(lbvh_cuda_wide *gpu, const lbvh_real *d_points,
                                            size_t stride, int32_t m, int32_t k, lbvh_real reach,
                                            int flags, int32_t *d_ids, lbvh_real *d_distances2,
                                            int32_t *d_found, struct CUstream_st *stream);

/* As lbvh_closest_points. */
LBVH_API lbvh_result lbvh_cuda_closest_points(lbvh_cuda_wide *gpu, const lbvh_real *d_points,
                                              size_t stride, int32_t m, lbvh_real reach, int flags,
                                              lbvh_closest *d_closest, struct CUstream_st *stream);

/* As lbvh_wide_overlaps for m boxes: row q of d_ids begins at d_offsets[q] (m + 1 of them). Where
   `capacity` is too small the list ends there, and d_offsets[m] is the size needed. */
LBVH_API lbvh_result lbvh_cuda_wide_overlaps(lbvh_cuda_wide *gpu, const lbvh_real *d_boxes,
                                             size_t stride, int32_t m, uint32_t filter, int flags,
                                             int64_t *d_offsets, int32_t *d_ids, int64_t capacity,
                                             struct CUstream_st *stream);
#endif /* LBVH_CUDA */

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
} /* extern "C" */
#endif

#endif /* LBVH_WIDE_H */

/* ================================================================================================
   The implementation: serial, and the reference for cuda/lbvh_wide.cu
   ============================================================================================== */

#if defined(LBVH_IMPLEMENTATION) && !defined(LBVH_WIDE_IMPLEMENTATION_DONE)
#define LBVH_WIDE_IMPLEMENTATION_DONE

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------
   >>wide-build: a binary tree is collapsed (figure and bounds at >>wide)
   ---------------------------------------------------------------------------------------------- */

enum { LBVH_I_WIDE_NODE, LBVH_I_WIDE_ID, LBVH_I_WIDE_MASK, LBVH_I_WIDE_ELEMENT };
enum { LBVH_I_INNER = 224 };    /* kind of the first inner child */

/* A node of the binary tree, and its places. */
typedef struct lbvh_i_span { int32_t at, first, last; } lbvh_i_span;

/* A subtree that a task collapses: how many nodes, leaves and elements it has, and how many come
   before it. */
typedef struct lbvh_i_branch {
    lbvh_i_span span;
    int32_t at, above;      /* its wide node; what waits above it in the stack */
    int32_t nodes, leaves, elements, first_node, first_leaf, first_element;
} lbvh_i_branch;

/* Beyond these, subtrees stay in the calling thread. */
#ifndef LBVH_I_BRANCHES /* tests: fewer */
#define LBVH_I_BRANCHES 512
#endif
typedef struct lbvh_i_branches {
    lbvh_i_branch branch[LBVH_I_BRANCHES];
    int32_t count, largest, pieces;
} lbvh_i_branches;

/* Where the numbers of a copied element begin: v[number][lane]. */
LBVH_FN_HOT lbvh_real *lbvh_i_lane_of(const lbvh_wide *wide, size_t slot)
{
    size_t const block = slot / LBVH_WIDE_LEAF;
    return wide->element + block * (size_t)wide->numbers * LBVH_WIDE_LEAF + slot % LBVH_WIDE_LEAF;
}

/* One collapse. The first run counts, the second fills. */
typedef struct lbvh_i_collapse {
    const lbvh *tree;
    const lbvh_wide *wide;  /* whose arrays are filled; NULL: only count */
    const lbvh_real *data;
    size_t stride;
    int32_t leaf, nodes, leaves, elements;
    lbvh_i_branches *branches;  /* in pieces; else NULL */
} lbvh_i_collapse;

/* 1 if a span becomes a leaf. */
LBVH_FN int lbvh_i_span_is_leaf(lbvh_i_span span, int32_t leaf)
{
    return span.last - span.first < leaf;
}

/* Appends a span, unless all its elements were left out. */
LBVH_FN int lbvh_i_add_span(const lbvh *tree, lbvh_i_span *child, int count, int32_t at,
                            int32_t first, int32_t last)
{
    if (lbvh_left_out(&tree->node[at])) return count;
    child[count].at = at;
    child[count].first = first;
    child[count].last = last;
    return count + 1;
}

/* Half of the surface of a box, in 2D of its perimeter; all roundings are the same on both
   sides. */
LBVH_FN lbvh_real lbvh_i_span_area(int dim, const lbvh_node *box)
{
    lbvh_real const x = box->max[0] - box->min[0], y = box->max[1] - box->min[1],
                    z = box->max[2] - box->min[2];
    if (dim == 2) return x + y;
    return lbvh_i_kept(lbvh_i_kept(lbvh_i_times(x, y) + lbvh_i_times(y, z)) + lbvh_i_times(z, x));
}

/* The child with the largest area among those that may be replaced, -1 = none. */
LBVH_FN int lbvh_i_largest_span(const lbvh *tree, const lbvh_i_span *child, int count, int32_t leaf)
{
    lbvh_real largest = -1;
    int c, best = -1;
    for (c = 0; c < count; c++) {
        lbvh_real const area = lbvh_i_span_area(tree->desc.dim, &tree->node[child[c].at]);
        if (lbvh_i_span_is_leaf(child[c], leaf) || area <= largest) continue;
        largest = area;
        best = c;
    }
    return best;
}

/* The children of a wide node, from the span of the binary node; their number. */
LBVH_FN int lbvh_i_collapse_span(const lbvh *tree, lbvh_i_span span, int32_t leaf,
                                 lbvh_i_span child[LBVH_WIDE + 1])
{
    int open, count = lbvh_i_add_span(tree, child, 0, span.at, span.first, span.last);
    while (count < LBVH_WIDE && (open = lbvh_i_largest_span(tree, child, count, leaf)) >= 0) {
        lbvh_i_span const parent = child[open];
        const lbvh_node *node = &tree->node[parent.at];
        int32_t const split = lbvh_split_place(tree, node);
        lbvh_i_span right[1];
        int const left = lbvh_i_add_span(tree, child + open, 0, node->link, parent.first, split);
        int c;
        if (!lbvh_i_add_span(tree, right, 0, lbvh_right_child(tree, node), split + 1, parent.last))
            continue;
        if (left) /* they stay in order (wide.piles) */
            for (c = count++; c > open + 1; c--) child[c] = child[c - 1];
        child[open + left] = right[0];
    }
    return count;
}

/* The largest integer below or at x, |x| < 2^62. */
LBVH_FN double lbvh_i_floor(double x)
{
    double const whole = (double)(int64_t)x;
    return whole > x ? whole - 1 : whole;
}

/* The exponent field of |x|: 0 for denormal numbers and 0. */
LBVH_FN int lbvh_i_exponent(lbvh_real x)
{
    return (int)((lbvh_i_bits_of(x) & LBVH_I_INFINITE) >> LBVH_I_MANTISSA_BITS);
}

/* 2 to the power that an exponent field says. */
LBVH_FN_HOT lbvh_real lbvh_i_quantum(int exponent)
{
    lbvh_i_bits const bits = (lbvh_i_bits)exponent << LBVH_I_MANTISSA_BITS;
    lbvh_real power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* x in quanta, rounded down; exact, as the quantum is a power of two. */
LBVH_FN double lbvh_i_quanta(lbvh_real x, int exponent)
{
    return lbvh_i_floor((double)x / (double)lbvh_i_quantum(exponent));
}

/* The smallest quantum that a box can be counted in, along one axis. */
LBVH_FN int lbvh_i_find_exponent(lbvh_real min, lbvh_real max)
{
    int const digits = LBVH_I_REAL_KIND == 1 ? 24 : 53;
    double const most = (double)((int64_t)1 << digits);
    lbvh_real const one_half = (lbvh_real)0.5,
                    extent_half = lbvh_i_times(max, one_half) - lbvh_i_times(min, one_half);
    int const extent = lbvh_i_exponent(extent_half) + 1 - 8,
              size = lbvh_i_exponent(lbvh_i_max(max, -min)) + 1 - digits;
    int exponent = extent > size ? extent : size;
    if (exponent < 1) exponent = 1;
    for (;; exponent++) {
        double const low = lbvh_i_quanta(min, exponent), high = -lbvh_i_quanta(-max, exponent);
        if (high - low <= 255 && low >= -most && high <= most) return exponent;
    }
}

/* Corner, quanta, and the boxes of the children. */
LBVH_FN void lbvh_i_quantise(const lbvh *tree, lbvh_wide_node *node, lbvh_i_span span,
                             const lbvh_i_span *child, int count)
{
    const lbvh_node *box = &tree->node[span.at];
    int a, c;
    for (a = 0; a < 3; a++) {
        int const exponent = lbvh_i_find_exponent(box->min[a], box->max[a]);
        double const corner = lbvh_i_quanta(box->min[a], exponent);
        node->corner[a] = (lbvh_real)corner;
        node->exponent[a] = (lbvh_exponent)exponent;
        for (c = 0; c < LBVH_WIDE; c++) {
            node->plane[a][c] = 255; /* no child: inverted */
            node->plane[a + 3][c] = 0;
            if (c >= count) continue;
            box = &tree->node[child[c].at];
            node->plane[a][c] = (uint8_t)(lbvh_i_quanta(box->min[a], exponent) - corner);
            node->plane[a + 3][c] = (uint8_t)(-lbvh_i_quanta(-box->max[a], exponent) - corner);
        }
        box = &tree->node[span.at];
    }
}

/* The numbers of an element into its lane of a block; id < 0: zeros. */
LBVH_FN void lbvh_i_copy_element(const lbvh_i_collapse *job, int32_t id, lbvh_real *v)
{
    const lbvh_desc *desc = &job->tree->desc;
    int k;
    if (id < 0) {
        for (k = 0; k < job->wide->numbers; k++) v[k * LBVH_WIDE_LEAF] = 0;
    } else if (job->wide->numbers == 9) {
        const lbvh_real *corner[3];
        (void)lbvh_triangle(desc, job->data, job->stride, id, corner);
        for (k = 0; k < 9; k++) v[k * LBVH_WIDE_LEAF] = corner[k / 3][k % 3];
    } else {
        lbvh_real min[3], max[3];
        (void)lbvh_box_of(desc, job->data, job->stride, id, min, max);
        for (k = 0; k < 3; k++) {
            v[k * LBVH_WIDE_LEAF] = min[k];
            v[(k + 3) * LBVH_WIDE_LEAF] = max[k];
        }
    }
}

/* Elements of a span that were not left out. */
LBVH_FN int32_t lbvh_i_span_elements(const lbvh *tree, lbvh_i_span span)
{
    int32_t place, found = 0;
    for (place = span.first; place <= span.last; place++)
        found += !lbvh_left_out(lbvh_i_leaf(tree, place));
    return found;
}

/* An element into wide->id[slot], and beside it; place -1: none, the rest of a block. */
LBVH_FN void lbvh_i_fill_slot(const lbvh_i_collapse *job, size_t slot, int32_t place)
{
    const lbvh *tree = job->tree;
    const lbvh_wide *wide = job->wide;
    int32_t const at = tree->first_leaf + place, id = place < 0 ? -1 : tree->node[at].link;
    wide->id[slot] = id;
    if (wide->mask) wide->mask[slot] = id < 0 ? 0 : tree->mask[at];
    if (wide->numbers) lbvh_i_copy_element(job, id, lbvh_i_lane_of(wide, slot));
}

/* The elements of the next leaf. */
LBVH_FN void lbvh_i_fill_leaf(const lbvh_i_collapse *job, lbvh_i_span span)
{
    const lbvh *tree = job->tree;
    int const in_blocks = job->wide->numbers > 0;
    size_t const slot = in_blocks ? (size_t)job->leaves * LBVH_WIDE_LEAF : (size_t)job->elements;
    int32_t place, found = 0, rest;
    for (place = span.first; place <= span.last; place++)
        if (!lbvh_left_out(lbvh_i_leaf(tree, place)))
            lbvh_i_fill_slot(job, slot + (size_t)found++, place);
    if (!in_blocks) return;
    for (rest = found; rest < LBVH_WIDE_LEAF; rest++)
        lbvh_i_fill_slot(job, slot + (size_t)rest, -1);
}

/* A wide node whose inner children, and leaves, are the next ones of the job. */
LBVH_FN void lbvh_i_make_node(const lbvh_i_collapse *job, lbvh_wide_node *node, lbvh_i_span span,
                              const lbvh_i_span *child, int count)
{
    int const in_blocks = job->wide->numbers > 0;
    uint32_t inner = 0, begin = 0;
    int c;
    lbvh_i_quantise(job->tree, node, span, child, count);
    node->child = (uint32_t)job->nodes;
    node->first = (uint32_t)(in_blocks ? job->leaves : job->elements);
    node->used = (lbvh_exponent)((1 << count) - 1);
    for (c = 0; c < LBVH_WIDE; c++) {
        node->kind[c] = 0;
        if (c >= count) continue;
        if (lbvh_i_span_is_leaf(child[c], job->leaf)) {
            uint32_t const filled = (uint32_t)lbvh_i_span_elements(job->tree, child[c]);
            node->kind[c] = (uint8_t)(32 * filled + begin);
            begin += in_blocks ? 1 : filled;
        } else node->kind[c] = (uint8_t)(LBVH_I_INNER + inner++);
    }
}

/* One wide node: its leaves are filled, its inner children get numbers, and into the stack. */
static int lbvh_i_collapse_node(lbvh_i_collapse *job, lbvh_i_span span, int32_t at,
                                lbvh_i_span *pending, int32_t *number)
{
    lbvh_i_span child[LBVH_WIDE + 1];
    int const count = lbvh_i_collapse_span(job->tree, span, job->leaf, child);
    int c, top = 0;
    if (job->wide) lbvh_i_make_node(job, &job->wide->node[at], span, child, count);
    for (c = 0; c < count; c++) {
        if (lbvh_i_span_is_leaf(child[c], job->leaf)) {
            if (job->wide) lbvh_i_fill_leaf(job, child[c]);
            job->elements += lbvh_i_span_elements(job->tree, child[c]);
            job->leaves++;
        } else {
            pending[top] = child[c];
            number[top++] = job->nodes++;
        }
    }
    return top;
}

/* 1 if a task collapses this span: the job counts what it has, and goes on behind it. */
static int lbvh_i_leave_branch(lbvh_i_collapse *job, lbvh_i_span span, int32_t at, int32_t above)
{
    lbvh_i_branches *all = job->branches;
    lbvh_i_branch *branch;
    if (!all || span.last - span.first >= all->largest || all->count == LBVH_I_BRANCHES) return 0;
    branch = &all->branch[all->count++];
    branch->span = span;
    branch->at = at;
    branch->above = above;
    branch->first_node = job->nodes;
    branch->first_leaf = job->leaves;
    branch->first_element = job->elements;
    job->nodes += branch->nodes;
    job->leaves += branch->leaves;
    job->elements += branch->elements;
    return 1;
}

/* The wide nodes of a span, depth first, from node `at` on. LBVH_INVALID: no builder makes a tree
   that is so deep. */
static lbvh_result lbvh_i_collapse_from(lbvh_i_collapse *job, lbvh_i_span span, int32_t at,
                                        int32_t above)
{
    lbvh_i_span pending[LBVH_WIDE_STACK + LBVH_WIDE];
    int32_t number[LBVH_WIDE_STACK + LBVH_WIDE];
    int top = 1;
    pending[0] = span;
    number[0] = at;
    while (top > 0) {
        span = pending[--top];
        if (above + top >= LBVH_WIDE_STACK - LBVH_WIDE) return LBVH_INVALID;
        if (lbvh_i_leave_branch(job, span, number[top], above + top)) continue;
        top += lbvh_i_collapse_node(job, span, number[top], pending + top, number + top);
    }
    return LBVH_OK;
}

/* All wide nodes, but those of branches. */
static lbvh_result lbvh_i_collapse_all(lbvh_i_collapse *job)
{
    lbvh_i_span root;
    job->nodes = job->leaves = job->elements = 0;
    if (job->branches) job->branches->count = 0;
    if (job->tree->n == 0 ||
        lbvh_i_add_span(job->tree, &root, 0, 0, 0, job->tree->n - 1) == 0)
        return LBVH_OK;
    job->nodes = 1;
    return lbvh_i_collapse_from(job, root, 0, 0);
}

/* The branches of a piece: counted, or filled. */
static void lbvh_i_collapse_piece(void *context, int32_t k)
{
    const lbvh_i_collapse *job = (const lbvh_i_collapse *)context;
    lbvh_i_branches *all = job->branches;
    int32_t const end = (int32_t)lbvh_i_cut(all->count, all->pieces, k + 1);
    int32_t i;
    for (i = (int32_t)lbvh_i_cut(all->count, all->pieces, k); i < end; i++) {
        lbvh_i_branch *branch = &all->branch[i];
        lbvh_i_collapse own = *job;
        lbvh_result result;
        own.branches = NULL;
        own.nodes = branch->first_node;
        own.leaves = branch->first_leaf;
        own.elements = branch->first_element;
        result = lbvh_i_collapse_from(&own, branch->span, branch->at, branch->above);
        branch->nodes = result == LBVH_OK ? own.nodes - branch->first_node : -1;
        branch->leaves = own.leaves - branch->first_leaf;
        branch->elements = own.elements - branch->first_element;
    }
}

/* 1 if the collapse of n elements is worth pieces: branches for some subtrees a piece. */
static int lbvh_i_begin_branches(lbvh_i_branches *all, const lbvh_wide_desc *desc, int32_t n)
{
    int32_t const fewest = LBVH_I_LIGHT * LBVH_I_PIECE;
    memset(all, 0, sizeof *all);
    all->pieces = lbvh_i_pieces_of(&desc->parallel, n, fewest < 32 ? 32 : fewest,
                                   LBVH_I_BUILD_TASKS / 2);
    all->largest = n / all->pieces / 2;
    return all->pieces > 1;
}

/* The same in pieces: what lies above the branches, then these; and where they are counted, the
   former again, with what they have. */
static lbvh_result lbvh_i_collapse_in_pieces(lbvh_i_collapse *job, const lbvh_parallel *parallel)
{
    lbvh_i_branches *all = job->branches;
    lbvh_result result = lbvh_i_collapse_all(job);
    int32_t i;
    if (result != LBVH_OK || !all || all->count == 0) return result;
    if (all->pieces > all->count) all->pieces = all->count;
    result = lbvh_i_in_pieces(parallel, all->pieces, lbvh_i_collapse_piece, job);
    if (result != LBVH_OK) return result;
    for (i = 0; i < all->count; i++)
        if (all->branch[i].nodes < 0) return LBVH_INVALID;
    return job->wide ? LBVH_OK : lbvh_i_collapse_all(job);
}

/* `*out` = `*desc` with its defaults, checked. */
static lbvh_result lbvh_i_wide_defaults(lbvh_wide_desc *out, const lbvh_wide_desc *desc)
{
    memset(out, 0, sizeof *out);
    if (desc) *out = *desc;
    if (out->leaf == 0) out->leaf = LBVH_WIDE_LEAF;
    if (out->leaf < 1 || out->leaf > LBVH_WIDE_LEAF) return LBVH_BAD_OPTION;
    if (!lbvh_i_tasks_valid(&out->parallel)) return LBVH_BAD_OPTION;
    if (!out->allocator.alloc != !out->allocator.free) return LBVH_BAD_ALLOCATOR;
    if (!out->cuda_allocator.alloc != !out->cuda_allocator.free) return LBVH_BAD_ALLOCATOR;
    return LBVH_OK;
}

/* Numbers that a copied element has. */
static int32_t lbvh_i_wide_numbers(const lbvh_wide_desc *desc, const lbvh *tree)
{
    if (!desc->copy) return 0;
    return tree->desc.kind == LBVH_TRIANGLES && tree->desc.dim == 3 ? 9 : 6;
}

/* The sizes of the arrays. */
static lbvh_result lbvh_i_wide_array_bytes(int32_t numbers, int masks, int64_t nodes,
                                           int64_t leaves, int64_t elements,
                                           size_t bytes[LBVH_BLOCKS])
{
    size_t const slots = numbers > 0 ? (size_t)leaves * LBVH_WIDE_LEAF : (size_t)elements;
    memset(bytes, 0, LBVH_BLOCKS * sizeof *bytes);
    /* 32-bit size_t */
    if ((uint64_t)leaves > SIZE_MAX / 4 / LBVH_WIDE_LEAF / 9 / sizeof(lbvh_real) ||
        (uint64_t)nodes > SIZE_MAX / 4 / sizeof(lbvh_wide_node))
        return LBVH_OUT_OF_MEMORY;
    bytes[LBVH_I_WIDE_NODE] = (size_t)nodes * sizeof(lbvh_wide_node);
    bytes[LBVH_I_WIDE_ID] = slots * sizeof(int32_t);
    if (masks) bytes[LBVH_I_WIDE_MASK] = slots * sizeof(uint32_t);
    bytes[LBVH_I_WIDE_ELEMENT] = (size_t)numbers * slots * sizeof(lbvh_real);
    return LBVH_OK;
}

/* Counts, and from that the sizes of the arrays. */
static lbvh_result lbvh_i_wide_sizes(const lbvh_wide_desc *desc, lbvh_i_collapse *job,
                                     size_t bytes[LBVH_BLOCKS])
{
    lbvh_result const result = lbvh_i_collapse_in_pieces(job, &desc->parallel);
    memset(bytes, 0, LBVH_BLOCKS * sizeof *bytes);
    if (result != LBVH_OK) return result;
    return lbvh_i_wide_array_bytes(lbvh_i_wide_numbers(desc, job->tree), job->tree->mask != NULL,
                                   job->nodes, job->leaves, job->elements, bytes);
}

/* Points the arrays at their blocks. */
static void lbvh_i_wide_bind(lbvh_wide *wide, const lbvh_block *block, int masks)
{
    wide->node = (lbvh_wide_node *)block[LBVH_I_WIDE_NODE].memory;
    wide->id = (int32_t *)block[LBVH_I_WIDE_ID].memory;
    wide->element = (lbvh_real *)block[LBVH_I_WIDE_ELEMENT].memory;
    wide->mask = masks ? (uint32_t *)block[LBVH_I_WIDE_MASK].memory : NULL;
}

/* Memory for the sizes. */
static lbvh_result lbvh_i_wide_prepare(lbvh_wide *wide, const size_t bytes[LBVH_BLOCKS])
{
    lbvh_result const result =
        lbvh_i_grow_blocks(&wide->desc.allocator, wide->block, bytes, LBVH_I_AHEAD);
    lbvh_i_wide_bind(wide, wide->block, bytes[LBVH_I_WIDE_MASK] > 0);
    return result;
}

LBVH_API int64_t lbvh_wide_bytes(const lbvh_wide *wide)
{
    return wide ? lbvh_i_block_bytes(wide->block) : 0;
}

/* Empties the wide tree and stores a checked desc. */
static lbvh_result lbvh_i_wide_begin(lbvh_wide *wide, const lbvh_wide_desc *desc)
{
    lbvh_wide_desc given;
    lbvh_result const result = lbvh_i_wide_defaults(&given, desc);
    wide->built = wide->elements = wide->nodes = wide->leaves = wide->numbers = 0;
    if (result != LBVH_OK) return result;
    if (lbvh_wide_bytes(wide) > 0 &&
        !lbvh_i_same_allocator(&wide->desc.allocator, &given.allocator))
        return LBVH_BAD_ALLOCATOR;
    wide->desc = given;
    return LBVH_OK;
}

/* wide.piles of a tree. */
static int32_t lbvh_i_has_piles(const lbvh *tree)
{
    int32_t at, piles = 0;
    for (at = 0; at < tree->first_leaf; at++) {
        const lbvh_node *node = &tree->node[at];
        if (node->min[0] == node->max[0] && node->min[1] == node->max[1] &&
            node->min[2] == node->max[2]) {
            int32_t const split = lbvh_split_place(tree, node);
            if (lbvh_i_id(tree, split) > lbvh_i_id(tree, split + 1)) return 0;
            piles = 1;
        }
    }
    return piles;
}

LBVH_API lbvh_result lbvh_wide_build(lbvh_wide *wide, const lbvh_wide_desc *desc, const lbvh *tree,
                                     const lbvh_real *data, size_t stride)
{
    lbvh_i_collapse job;
    lbvh_i_branches branches;
    size_t bytes[LBVH_BLOCKS];
    lbvh_result result;
    if (!wide) return LBVH_BAD_ARGUMENT;
    result = lbvh_i_wide_begin(wide, desc);
    if (result != LBVH_OK) return result;
    if (!tree) return LBVH_BAD_ARGUMENT;
    if (!tree->built) return LBVH_NOT_BUILT;
    stride = lbvh_i_stride(&tree->desc, stride);
    if (wide->desc.copy && tree->n > 0 && (!data || stride == 0)) return LBVH_BAD_ARGUMENT;
    memset(&job, 0, sizeof job);
    job.tree = tree;
    job.leaf = wide->desc.leaf;
    job.data = data;
    job.stride = stride;
    if (lbvh_i_begin_branches(&branches, &wide->desc, tree->n)) job.branches = &branches;
    result = lbvh_i_wide_sizes(&wide->desc, &job, bytes);
    if (result == LBVH_OK) result = lbvh_i_wide_prepare(wide, bytes);
    if (result != LBVH_OK) return result;
    wide->numbers = lbvh_i_wide_numbers(&wide->desc, tree);
    job.wide = wide;
    result = lbvh_i_collapse_in_pieces(&job, &wide->desc.parallel);
    if (result != LBVH_OK) return result;
    wide->dim = tree->desc.dim;
    wide->elements = job.elements;
    wide->nodes = job.nodes;
    wide->leaves = job.leaves;
    wide->piles = lbvh_i_has_piles(tree);
    wide->built = 1;
    return LBVH_OK;
}

LBVH_API lbvh_result lbvh_wide_bytes_for(const lbvh_wide_desc *desc, const lbvh *tree,
                                         int64_t *bytes)
{
    lbvh_wide_desc given;
    lbvh_i_collapse job;
    size_t sizes[LBVH_BLOCKS];
    lbvh_result result;
    int b;
    if (!bytes) return LBVH_BAD_ARGUMENT;
    *bytes = 0;
    result = lbvh_i_wide_defaults(&given, desc);
    if (result != LBVH_OK) return result;
    if (!tree) return LBVH_BAD_ARGUMENT;
    if (!tree->built) return LBVH_NOT_BUILT;
    memset(&job, 0, sizeof job);
    job.tree = tree;
    job.leaf = given.leaf;
    result = lbvh_i_wide_sizes(&given, &job, sizes);
    if (result != LBVH_OK) return result;
    for (b = 0; b < LBVH_BLOCKS; b++) *bytes += (int64_t)sizes[b];
    return LBVH_OK;
}

LBVH_API void lbvh_wide_free(lbvh_wide *wide)
{
    if (!wide) return;
    lbvh_i_release_all(&wide->desc.allocator, wide->block, LBVH_BLOCKS);
    memset(wide, 0, sizeof *wide);
}

/* ------------------------------------------------------------------------------------------------
   >>wide-rays: many rays through a wide tree, each by itself, nearer children first

   The planes of a child are low or high numbers q, by the signs of the direction. The ray is there
   at t = ((corner + q) quantum - origin) / direction = (corner + q) * step - origin / direction,
   with step = quantum / direction. Each of at most 8 roundings is an error of half a unit in the
   last place of the largest of these numbers in the whole tree. `pad` is 16 of them: the ray enters
   a quantised box where it enters the exact one, or earlier. (The other 8 are for the roundings of
   an element's own t, so that none is lost that lies at the same t as the closest.)

   A ray that is parallel to an axis, or so far from the tree that numbers could overflow, is
   careful: it decodes each plane and takes the slab test of lbvh.h, >>ray. Every ray is in nodes
   that are small beside `pad`: where an element lies far from all others.
   ---------------------------------------------------------------------------------------------- */

#define LBVH_I_LEAF_BIT 0x80000000u     /* a child in the stack is 8 * node + c, and this */

/* One ray. */
typedef struct lbvh_i_beam {
    lbvh_real origin[4], direction[4], inverse[4];  /* [3]: 0 */
    lbvh_real before[4], after[4];  /* origin / direction, and `pad` more or less */
    int32_t in[4], out[4];      /* rows of lbvh_wide_node.plane where the ray comes and goes */
    int32_t i, j, k;            /* axes: k is the direction's longest */
    int32_t careful;            /* 1: planes are decoded */
    int32_t coarse;             /* of the tracer */
    uint32_t filter;
    int32_t number;             /* of the caller */
    lbvh_real t_max;            /* of the closest hit so far */
    size_t slot;                /* where it lies in wide->id, LBVH_I_NO_SLOT = none */
} lbvh_i_beam;

#define LBVH_I_NO_SLOT ((size_t)-1)

/* Where nodes [0] and leaves [1] lie, and the bytes of one: for prefetching. */
typedef struct lbvh_i_next {
    const char *base[2];
    size_t bytes[2];
} lbvh_i_next;

/* How elements are tested, and what is wanted. */
typedef struct lbvh_i_tracer {
    const lbvh_wide *wide;
    lbvh_ray_fn *fn;        /* NULL: copied triangles */
    void *user;
    int any;                /* 1: the walk ends at the first hit */
    int lanes;              /* 1: AVX2 */
    lbvh_real size[4];      /* the largest coordinate of a plane; 0 */
    int32_t coarse;         /* exponent of a sixteenth of the pad, as a length */
    lbvh_i_next next;
} lbvh_i_tracer;

#if LBVH_I_REAL_KIND == 1
#define LBVH_I_PAD_UNIT 9.5367431640625e-7f /* 2^-20 */
#define LBVH_I_PAD_LEAST 1e-30f
#else
#define LBVH_I_PAD_UNIT 1.7763568394002505e-15
#define LBVH_I_PAD_LEAST 1e-290
#endif

/* origin / direction with its pads, along one axis; 0: parallel, or numbers could overflow. */
LBVH_FN int lbvh_i_pad_ray(const lbvh_i_tracer *tracer, lbvh_i_beam *ray, int a)
{
    lbvh_real const unit = LBVH_I_PAD_UNIT, least = LBVH_I_PAD_LEAST,
                    offset = ray->origin[a] * ray->inverse[a],
                    largest = (lbvh_i_absolute(ray->origin[a]) + tracer->size[a]) *
                              lbvh_i_absolute(ray->inverse[a]),
                    pad = largest * unit + least;
    ray->before[a] = offset + pad;
    ray->after[a] = offset - pad;
    return lbvh_i_finite(ray->inverse[a]) && largest < 1 / least;
}

/* The axis along which the ray goes fastest, and the other two. */
LBVH_FN_HOT void lbvh_i_pick_axes(lbvh_i_beam *ray)
{
    lbvh_real const x = lbvh_i_absolute(ray->direction[0]), y = lbvh_i_absolute(ray->direction[1]),
                    z = lbvh_i_absolute(ray->direction[2]);
    int const k = (2 - (y >= z)) & -!((x >= y) & (x >= z)); /* 0, 1, 2, and no branch */
    ray->k = k;
    ray->i = (k + 1) & -(k < 2);
    ray->j = k - 1 + 3 * (k == 0);
}

/* 0: the ray hits nothing. */
LBVH_FN int lbvh_i_begin_beam(const lbvh_i_tracer *tracer, const lbvh_real *numbers,
                              lbvh_real t_max, lbvh_i_beam *ray)
{
    const lbvh_wide *wide = tracer->wide;
    int const origin_finite = lbvh_i_read_point(wide->dim, numbers, ray->origin),
              direction_finite = lbvh_i_read_point(wide->dim, numbers + wide->dim, ray->direction);
    int a;
    ray->careful = 0;
    ray->coarse = tracer->coarse;
    ray->origin[3] = ray->direction[3] = ray->inverse[3] = ray->before[3] = ray->after[3] = 0;
    for (a = 0; a < 3; a++) {
        lbvh_real const along = ray->direction[a];
        ray->inverse[a] = lbvh_i_infinity();
        if (along != 0) ray->inverse[a] = lbvh_i_over(1, along);
        ray->in[a] = along < 0 ? a + 3 : a;
        ray->out[a] = along < 0 ? a : a + 3;
        if (!lbvh_i_pad_ray(tracer, ray, a)) ray->careful = 1;
    }
    lbvh_i_pick_axes(ray);
    ray->t_max = lbvh_i_min(t_max, lbvh_i_largest());
    ray->slot = LBVH_I_NO_SLOT;
    return wide->nodes > 0 && t_max >= 0 && !lbvh_i_is_nan(t_max) && origin_finite &&
           direction_finite;
}

/* A row of planes, or the numbers of a block, in one load: on a GPU the loads bound a walk. There a
   byte q becomes a real without a conversion, which is slow: 2^23 + q has q as its last bits. */
LBVH_FN_HOT void lbvh_i_read_row(const uint8_t plane[LBVH_WIDE], lbvh_real q[LBVH_WIDE])
{
    int c;
#if defined(__CUDA_ARCH__) && LBVH_I_REAL_KIND == 1
    uint2 const bytes = *reinterpret_cast<const uint2 *>(plane);
#pragma unroll
    for (c = 0; c < LBVH_WIDE; c++)
        q[c] = __uint_as_float(__byte_perm(c < 4 ? bytes.x : bytes.y, 0x4B000000u,
                                           0x7650u + (unsigned)c % 4u)) - 8388608.0f;
#else
    for (c = 0; c < LBVH_WIDE; c++) q[c] = (lbvh_real)plane[c];
#endif
}

/* The four numbers of a block from here on. */
LBVH_FN_HOT void lbvh_i_read_lanes(const lbvh_real *from, lbvh_real to[LBVH_WIDE_LEAF])
{
#if defined(__CUDA_ARCH__) && LBVH_I_REAL_KIND == 1
    float4 const all = *reinterpret_cast<const float4 *>(from);
    to[0] = all.x;
    to[1] = all.y;
    to[2] = all.z;
    to[3] = all.w;
#else
    int lane;
    for (lane = 0; lane < LBVH_WIDE_LEAF; lane++) to[lane] = from[lane];
#endif
}

/* Where the ray comes and goes along one axis, for all children. (cuda/lbvh.cu has its own.) */
LBVH_FN_HOT void lbvh_i_slab(const lbvh_i_beam *ray, const lbvh_wide_node *node, int a,
                             lbvh_real enters[LBVH_WIDE], lbvh_real leaves[LBVH_WIDE])
{
    lbvh_real const step = lbvh_i_quantum(node->exponent[a]) * ray->inverse[a],
                    corner = node->corner[a], before = ray->before[a], after = ray->after[a];
    lbvh_real in[LBVH_WIDE], out[LBVH_WIDE];
    int c;
    lbvh_i_read_row(node->plane[ray->in[a]], in);
    lbvh_i_read_row(node->plane[ray->out[a]], out);
    for (c = 0; c < LBVH_WIDE; c++) {
        lbvh_real const comes = lbvh_i_times(in[c] + corner, step) - before,
                        goes = lbvh_i_times(out[c] + corner, step) - after;
        enters[c] = comes > enters[c] ? comes : enters[c];
        leaves[c] = goes < leaves[c] ? goes : leaves[c];
    }
}

/* lbvh_i_slab for any ray: each plane is decoded. */
LBVH_FN void lbvh_i_careful_slab(const lbvh_i_beam *ray, const lbvh_wide_node *node, int a,
                                 lbvh_real enters[LBVH_WIDE], lbvh_real leaves[LBVH_WIDE])
{
    lbvh_real const wider = LBVH_I_REAL_KIND == 1 ? (lbvh_real)1.000001
                                                  : (lbvh_real)1.000000000000002,
                    quantum = lbvh_i_quantum(node->exponent[a]);
    int const parallel = !lbvh_i_finite(ray->inverse[a]);
    int c;
    for (c = 0; c < LBVH_WIDE; c++) {
        lbvh_real const from = (node->corner[a] + (lbvh_real)node->plane[ray->in[a]][c]) * quantum,
                        to = (node->corner[a] + (lbvh_real)node->plane[ray->out[a]][c]) * quantum;
        if (parallel) { /* between the planes, or never */
            if (lbvh_i_min(from, to) > ray->origin[a] || lbvh_i_max(from, to) < ray->origin[a])
                leaves[c] = -1;
        } else {
            lbvh_real const comes = (from - ray->origin[a]) * ray->inverse[a] / wider,
                            goes = (to - ray->origin[a]) * ray->inverse[a] * wider;
            if (comes > enters[c]) enters[c] = comes;
            if (goes < leaves[c]) leaves[c] = goes;
        }
    }
}

/* Are the planes of a node to be decoded? */
LBVH_FN_HOT int lbvh_i_is_careful(const lbvh_i_beam *ray, const lbvh_wide_node *node)
{
    return ray->careful || (node->exponent[0] < ray->coarse && node->exponent[1] < ray->coarse &&
                            node->exponent[2] < ray->coarse);
}

/* The children that the ray enters up to t_max, as bits, and where. */
LBVH_FN_HOT uint32_t lbvh_i_enter_children(const lbvh_i_beam *ray, const lbvh_wide_node *node,
                                           lbvh_real enters[LBVH_WIDE])
{
    lbvh_real leaves[LBVH_WIDE];
    int const careful = lbvh_i_is_careful(ray, node);
    uint32_t met = 0;
    int a, c;
    for (c = 0; c < LBVH_WIDE; c++) {
        enters[c] = 0;
        leaves[c] = ray->t_max;
    }
    for (a = 0; a < 3; a++) {
        if (careful) lbvh_i_careful_slab(ray, node, a, enters, leaves);
        else lbvh_i_slab(ray, node, a, enters, leaves);
    }
    for (c = 0; c < LBVH_WIDE; c++) met |= (uint32_t)(enters[c] <= leaves[c]) << c;
    return met & node->used;
}

/* The triangles of a block that the ray hits up to t_max, as bits, and where: lbvh_ray_triangle. */
LBVH_FN_HOT uint32_t lbvh_i_hit_block(const lbvh_i_beam *ray, const lbvh_real *v,
                                      lbvh_real t[LBVH_WIDE_LEAF])
{
    lbvh_real number[9][LBVH_WIDE_LEAF];
    uint32_t hit = 0;
    int lane, k;
    for (k = 0; k < 9; k++) lbvh_i_read_lanes(v + LBVH_WIDE_LEAF * k, number[k]);
    for (lane = 0; lane < LBVH_WIDE_LEAF; lane++) {
        lbvh_real corner[9], b, c;
        for (k = 0; k < 9; k++) corner[k] = number[k][lane];
        if (!lbvh_ray_triangle(ray->origin, ray->direction, corner, corner + 3, corner + 6,
                               &t[lane], &b, &c))
            continue;
        hit |= (uint32_t)(t[lane] >= 0 && t[lane] <= ray->t_max) << lane;
    }
    return hit;
}

/* Children that wait, the nearest of each node last: inner nodes by their number, leaves by that
   of their block, or, where the caller tests, as 8 * node + c; and LBVH_I_LEAF_BIT. */
typedef struct lbvh_i_waiting {
    uint32_t child[LBVH_WIDE_STACK + LBVH_WIDE];
    lbvh_real enters[LBVH_WIDE_STACK + LBVH_WIDE];
} lbvh_i_waiting;

/* The root waits; returns the top. */
LBVH_I_HOT int lbvh_i_push_root(lbvh_i_waiting *stack)
{
    stack->child[0] = 0;
    stack->enters[0] = 0;
    return 1;
}

/* The next child within reach; 0: there is none. */
LBVH_I_HOT int lbvh_i_pop(const lbvh_i_waiting *stack, int *top, lbvh_real reach, uint32_t *at)
{
    int last = *top;
    while (last > 0 && !(stack->enters[last - 1] <= reach)) last--;
    *top = last - (last > 0);
    *at = stack->child[*top];
    return last > 0;
}

/* ------------------------------------------------------------------------------------------------
   >>wide-lanes: the same two tests by vectors of 8 and 4 floats, for AVX2

   Chosen at run time where gcc or clang makes x86-64 code of float; LBVH_PLAIN_LANES leaves the
   plain ones alone. The same operations in the same order, none fused: the same bits. Children
   are pushed without branches: a sorting network, and all 8 lanes are stored, of which those that
   were met count.
   ---------------------------------------------------------------------------------------------- */

#ifdef LBVH_I_AVX2

#define LBVH_I_LANES_FN LBVH_I_AVX2 static inline __attribute__((always_inline))

/* Distances of at least 0 as numbers that sort alike, the last 3 bits replaced by the child's
   number; -1: it is missed, or there is no child. */
LBVH_I_LANES_FN __m256i lbvh_i_key_lanes(__m256i kind, __m256 distance, __m256 missed)
{
    __m256i const child = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                  none = _mm256_cmpeq_epi32(kind, _mm256_setzero_si256()),
                  start = _mm256_and_si256(_mm256_castps_si256(distance), _mm256_set1_epi32(-8));
    return _mm256_or_si256(_mm256_or_si256(start, child),
                           _mm256_or_si256(none, _mm256_castps_si256(missed)));
}

/* The kinds of the 8 children. */
LBVH_I_LANES_FN __m256i lbvh_i_kind_lanes(const lbvh_wide_node *node)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)node->kind));
}

/* One stage of a sorting network: lanes and their partners, the larger one where `upper` has a
   bit. */
#define LBVH_I_SORT_STAGE(v, partners, upper)                                                      \
    other = partners;                                                                              \
    v = _mm256_blend_epi32(_mm256_min_epi32(v, other), _mm256_max_epi32(v, other), upper)

/* 8 numbers, the largest first (bitonic: Batcher 1968). There is no branch, which a processor could
   not guess. */
LBVH_I_LANES_FN __m256i lbvh_i_sort_lanes(__m256i v)
{
    __m256i other;
    LBVH_I_SORT_STAGE(v, _mm256_shuffle_epi32(v, 0xB1), 0x55);
    LBVH_I_SORT_STAGE(v, _mm256_shuffle_epi32(v, 0x1B), 0x33);
    LBVH_I_SORT_STAGE(v, _mm256_shuffle_epi32(v, 0xB1), 0x55);
    LBVH_I_SORT_STAGE(v, _mm256_permute4x64_epi64(_mm256_shuffle_epi32(v, 0x1B), 0x4E), 0x0F);
    LBVH_I_SORT_STAGE(v, _mm256_shuffle_epi32(v, 0x4E), 0x33);
    LBVH_I_SORT_STAGE(v, _mm256_shuffle_epi32(v, 0xB1), 0x55);
    return v;
}

/* lbvh_i_child for 8 children. */
LBVH_I_LANES_FN __m256i lbvh_i_child_lanes(const lbvh_wide_node *node, __m256i kind,
                                           uint32_t number, int calls)
{
    __m256i const child = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                  low = _mm256_and_si256(kind, _mm256_set1_epi32(31)),
                  inner = _mm256_add_epi32(low, _mm256_set1_epi32((int)node->child)),
                  is_inner = _mm256_cmpgt_epi32(kind, _mm256_set1_epi32(LBVH_I_INNER - 1));
    uint32_t const first = (calls ? number * LBVH_WIDE : node->first) | LBVH_I_LEAF_BIT;
    __m256i const leaf = _mm256_add_epi32(_mm256_set1_epi32((int)first), calls ? child : low);
    return _mm256_blendv_epi8(leaf, inner, is_inner);
}

/* Puts the children that are entered on the stack, the nearest one on top: the new top. */
LBVH_I_LANES_FN int lbvh_i_push_lanes(lbvh_i_waiting *stack, int top,
                                      const lbvh_wide_node *node, uint32_t number, __m256i kind,
                                      __m256i key, int calls)
{
    __m256i const sorted = lbvh_i_sort_lanes(key);
    _mm256_storeu_ps(&stack->enters[top],
                     _mm256_castsi256_ps(_mm256_and_si256(sorted, _mm256_set1_epi32(-8))));
    _mm256_storeu_si256((__m256i *)(void *)&stack->child[top],
                        _mm256_permutevar8x32_epi32(
                            lbvh_i_child_lanes(node, kind, number, calls), sorted));
    return top + 8 - _mm_popcnt_u32((unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(key)));
}

/* (corner + q) * step for 8 planes. */
LBVH_I_LANES_FN __m256 lbvh_i_planes(const uint8_t plane[8], __m256 corner, __m256 step)
{
    __m128i const bytes = _mm_loadl_epi64((const __m128i *)(const void *)plane);
    __m256 const q = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    return _mm256_mul_ps(_mm256_add_ps(q, corner), step);
}

/* Lanes that are neither NaN nor infinite: lbvh_i_finite. */
LBVH_I_LANES_FN __m128i lbvh_i_finite_lanes(__m128 x)
{
    __m128i const exponent = _mm_set1_epi32(0x7F800000);
    return _mm_cmpgt_epi32(exponent, _mm_and_si128(_mm_castps_si128(x), exponent));
}

/* lbvh_i_begin_beam in 3D, all axes together. */
LBVH_I_AVX2 static int lbvh_i_begin_lanes(const lbvh_i_tracer *tracer, const float *numbers,
                                          float t_max, lbvh_i_beam *ray)
{
    __m128 const three = _mm_castsi128_ps(_mm_setr_epi32(-1, -1, -1, 0)),
                 size = _mm_castsi128_ps(_mm_set1_epi32(0x7FFFFFFF)),
                 last = _mm_loadu_ps(numbers + 2),
                 origin = _mm_and_ps(_mm_loadu_ps(numbers), three),
                 direction = _mm_and_ps(_mm_shuffle_ps(last, last, 0x39), three),
                 inverse = _mm_and_ps(_mm_div_ps(_mm_set1_ps(1), direction), three),
                 offset = _mm_mul_ps(origin, inverse),
                 largest = _mm_mul_ps(_mm_add_ps(_mm_and_ps(origin, size),
                                                 _mm_loadu_ps(tracer->size)),
                                      _mm_and_ps(inverse, size)),
                 pad = _mm_add_ps(_mm_mul_ps(largest, _mm_set1_ps(LBVH_I_PAD_UNIT)),
                                  _mm_set1_ps(LBVH_I_PAD_LEAST)),
                 fits = _mm_cmplt_ps(largest, _mm_set1_ps(1 / LBVH_I_PAD_LEAST));
    __m128i const swap = _mm_and_si128(_mm_castps_si128(_mm_cmplt_ps(direction, _mm_setzero_ps())),
                                       _mm_set1_epi32(3)),
                  axis = _mm_setr_epi32(0, 1, 2, 3),
                  finite = _mm_and_si128(lbvh_i_finite_lanes(origin),
                                         lbvh_i_finite_lanes(direction)),
                  safe = _mm_and_si128(lbvh_i_finite_lanes(inverse), _mm_castps_si128(fits));
    _mm_storeu_ps(ray->origin, origin);
    _mm_storeu_ps(ray->direction, direction);
    _mm_storeu_ps(ray->inverse, inverse);
    _mm_storeu_ps(ray->before, _mm_add_ps(offset, pad));
    _mm_storeu_ps(ray->after, _mm_sub_ps(offset, pad));
    _mm_storeu_si128((__m128i *)(void *)ray->in, _mm_add_epi32(axis, swap));
    _mm_storeu_si128((__m128i *)(void *)ray->out,
                     _mm_sub_epi32(_mm_add_epi32(axis, _mm_set1_epi32(3)), swap));
    ray->careful = _mm_movemask_ps(_mm_castsi128_ps(safe)) != 15;
    ray->coarse = tracer->coarse;
    ray->t_max = lbvh_i_min(t_max, lbvh_i_largest());
    ray->slot = LBVH_I_NO_SLOT;
    lbvh_i_pick_axes(ray);
    return tracer->wide->nodes > 0 && t_max >= 0 && !lbvh_i_is_nan(t_max) &&
           _mm_movemask_ps(_mm_castsi128_ps(finite)) == 15;
}

/* lbvh_i_slab, where step is lane a of steps. */
#define LBVH_I_SLAB_OF_LANES(a)                                                                    \
    step = _mm256_broadcastss_ps(_mm_permute_ps(steps, 0x55 * (a)));                               \
    corner = _mm256_broadcast_ss(&node->corner[a]);                                                \
    in = lbvh_i_planes(node->plane[ray->in[a]], corner, step);                                     \
    out = lbvh_i_planes(node->plane[ray->out[a]], corner, step);                                   \
    begin = _mm256_max_ps(_mm256_sub_ps(in, _mm256_broadcast_ss(&ray->before[a])), begin);         \
    end = _mm256_min_ps(_mm256_sub_ps(out, _mm256_broadcast_ss(&ray->after[a])), end)

/* lbvh_i_enter_children of a ray that is not careful: the bits of where, -1: not entered. */
LBVH_I_LANES_FN __m256i lbvh_i_enter_lanes(const lbvh_i_beam *ray,
                                                     const lbvh_wide_node *node, __m256i kind)
{
    __m128i const exponents = _mm_cvtepu8_epi32(_mm_loadu_si32(node->exponent));
    __m128 const quanta = _mm_castsi128_ps(_mm_slli_epi32(exponents, 23)),
                 steps = _mm_mul_ps(quanta, _mm_loadu_ps(ray->inverse));
    __m256 begin = _mm256_setzero_ps(), end = _mm256_set1_ps(ray->t_max), step, corner, in, out;
    LBVH_I_SLAB_OF_LANES(0);
    LBVH_I_SLAB_OF_LANES(1);
    LBVH_I_SLAB_OF_LANES(2);
    return lbvh_i_key_lanes(kind, begin, _mm256_cmp_ps(begin, end, _CMP_NLE_UQ));
}

/* a * b, rounded: lbvh_i_times */
LBVH_I_LANES_FN __m128 lbvh_i_times_lanes(__m128 a, __m128 b)
{
    __m128 product = _mm_mul_ps(a, b);
#if defined(LBVH_I_KEEP_BY_ASM)
    __asm__("" : "+x"(product));
#endif
    return product;
}

/* a * b - c * d */
LBVH_I_LANES_FN __m128 lbvh_i_cross_lanes(__m128 a, __m128 b, __m128 c, __m128 d)
{
    return _mm_sub_ps(lbvh_i_times_lanes(a, b), lbvh_i_times_lanes(c, d));
}

/* lbvh_i_hit_block: where, infinity: no hit. */
LBVH_I_LANES_FN __m128 lbvh_i_hit_lanes(const lbvh_i_beam *ray, const float *v)
{
    int const i = ray->i, j = ray->j, k = ray->k;
    __m128 const oi = _mm_set1_ps(ray->origin[i]), oj = _mm_set1_ps(ray->origin[j]),
                 ok = _mm_set1_ps(ray->origin[k]), di = _mm_set1_ps(ray->direction[i]),
                 dj = _mm_set1_ps(ray->direction[j]), dk = _mm_set1_ps(ray->direction[k]),
                 zero = _mm_setzero_ps();
    __m128 deep[3], x[3], y[3], of_a, of_b, of_c, total, depth, at, hit;
    int c;
    LBVH_I_UNROLL
    for (c = 0; c < 3; c++) {
        const float *corner = v + 12 * c;
        deep[c] = _mm_sub_ps(_mm_loadu_ps(corner + 4 * k), ok);
        x[c] = lbvh_i_cross_lanes(_mm_sub_ps(_mm_loadu_ps(corner + 4 * i), oi), dk, deep[c], di);
        y[c] = lbvh_i_cross_lanes(_mm_sub_ps(_mm_loadu_ps(corner + 4 * j), oj), dk, deep[c], dj);
    }
    of_a = lbvh_i_cross_lanes(x[1], y[2], y[1], x[2]);
    of_b = lbvh_i_cross_lanes(x[2], y[0], y[2], x[0]);
    of_c = lbvh_i_cross_lanes(x[0], y[1], y[0], x[1]);
    total = _mm_add_ps(_mm_add_ps(of_a, of_b), of_c);
    hit = _mm_or_ps(_mm_and_ps(_mm_and_ps(_mm_cmpge_ps(of_a, zero), _mm_cmpge_ps(of_b, zero)),
                               _mm_cmpge_ps(of_c, zero)),
                    _mm_and_ps(_mm_and_ps(_mm_cmple_ps(of_a, zero), _mm_cmple_ps(of_b, zero)),
                               _mm_cmple_ps(of_c, zero)));
    depth = _mm_add_ps(_mm_add_ps(lbvh_i_times_lanes(of_a, deep[0]),
                                  lbvh_i_times_lanes(of_b, deep[1])),
                       lbvh_i_times_lanes(of_c, deep[2]));
    at = _mm_div_ps(_mm_div_ps(depth, total), dk);
    hit = _mm_and_ps(_mm_and_ps(hit, _mm_cmpneq_ps(total, zero)),
                     _mm_and_ps(_mm_cmpge_ps(at, zero),
                                _mm_cmple_ps(at, _mm_set1_ps(ray->t_max))));
    return _mm_blendv_ps(_mm_castsi128_ps(_mm_set1_epi32(0x7F800000)), at, hit);
}

#endif /* LBVH_I_AVX2 */

/* ------------------------------------------------------------------------------------------------
   >>wide-trace: the walk of a ray; several rays in turn
   ---------------------------------------------------------------------------------------------- */

/* The number of the lowest bit that is set. */
LBVH_FN_HOT int lbvh_i_lowest_bit(uint32_t bits)
{
#if defined(__CUDA_ARCH__)
    return __ffs((int)bits) - 1;
#elif defined(__GNUC__) || defined(__clang__)
    return __builtin_ctz(bits);
#else
    int at = 0;
    while (!(bits >> at & 1)) at++;
    return at;
#endif
}

LBVH_FN_HOT int lbvh_i_has_hit(const lbvh_i_beam *ray)
{
    return ray->slot != LBVH_I_NO_SLOT;
}

/* 1 if a search with this filter takes the element. */
LBVH_FN_HOT int lbvh_i_slot_passes(const lbvh_wide *wide, size_t slot, uint32_t filter)
{
    return !wide->mask || (wide->mask[slot] & filter) != 0;
}

/* A hit at t: kept, if it is the closest so far. Ids are read where two are at the same t only:
   they lie far from the triangles. */
LBVH_FN_HOT void lbvh_i_keep_hit(const lbvh_wide *wide, lbvh_i_beam *ray, size_t slot,
                                 lbvh_real t)
{
    if (!lbvh_i_slot_passes(wide, slot, ray->filter)) return;
    if (!(t >= 0 && t <= ray->t_max)) return;
    if (t == ray->t_max && lbvh_i_has_hit(ray) && wide->id[slot] > wide->id[ray->slot]) return;
    ray->t_max = t;
    ray->slot = slot;
}

/* Where the elements of a leaf lie in wide->id; their number. */
LBVH_FN int32_t lbvh_i_leaf_slots(const lbvh_wide *wide, uint32_t leaf, size_t *first)
{
    const lbvh_wide_node *node = &wide->node[leaf / LBVH_WIDE];
    uint32_t const kind = node->kind[leaf % LBVH_WIDE];
    *first = (size_t)node->first + (kind & 31);
    if (wide->numbers) *first *= LBVH_WIDE_LEAF;
    return (int32_t)(kind >> 5);
}

/* Tests the elements of a leaf by the caller's function. */
static void lbvh_i_hit_by_call(const lbvh_i_tracer *tracer, lbvh_i_beam *ray, uint32_t leaf)
{
    const lbvh_wide *wide = tracer->wide;
    size_t slot;
    int32_t count = lbvh_i_leaf_slots(wide, leaf, &slot);
    for (; count > 0; count--, slot++) {
        lbvh_real t = 0, u = 0, v = 0;
        if (!lbvh_i_slot_passes(wide, slot, ray->filter)) continue;
        if (tracer->fn(tracer->user, wide->id[slot], ray->origin, ray->direction, &t, &u, &v))
            lbvh_i_keep_hit(wide, ray, slot, t);
    }
}

/* Hits in a block of triangles, as bits. */
LBVH_I_HOT void lbvh_i_keep_hits(const lbvh_wide *wide, lbvh_i_beam *ray, size_t block,
                                 uint32_t hit, const lbvh_real t[LBVH_WIDE_LEAF])
{
    for (; hit; hit &= hit - 1) {
        int const lane = lbvh_i_lowest_bit(hit);
        lbvh_i_keep_hit(wide, ray, block * LBVH_WIDE_LEAF + (size_t)lane, t[lane]);
    }
}

/* Tests the triangles of a block. */
LBVH_I_HOT void lbvh_i_hit_triangles(const lbvh_wide *wide, lbvh_i_beam *ray, size_t block)
{
    lbvh_real t[LBVH_WIDE_LEAF];
    uint32_t const hit = lbvh_i_hit_block(ray, wide->element + block * 9 * LBVH_WIDE_LEAF, t);
    lbvh_i_keep_hits(wide, ray, block, hit, t);
}

/* How the stack names child c of a node: an inner node, or a leaf (with `calls` its place in the
   node). */
LBVH_FN_HOT uint32_t lbvh_i_child(const lbvh_wide_node *node, uint32_t number, int c,
                                  int calls)
{
    uint32_t const kind = node->kind[c];
    if (kind >= LBVH_I_INNER) return node->child + (kind - LBVH_I_INNER);
    if (calls) return LBVH_I_LEAF_BIT | number * LBVH_WIDE | (uint32_t)c;
    return LBVH_I_LEAF_BIT | (node->first + (kind & 31));
}

/* Pushes the children of a node that were entered, farthest first (of equal ones the first child on
   top); the new top. */
LBVH_I_HOT int lbvh_i_push_children(lbvh_i_waiting *stack, int top, const lbvh_wide_node *node,
                                    uint32_t number, uint32_t met, const lbvh_real *enters,
                                    int calls)
{
    int const base = top;
    for (; met; met &= met - 1) {
        int const c = lbvh_i_lowest_bit(met);
        lbvh_real const t = enters[c];
        int slot = top++;
        for (; slot > base && stack->enters[slot - 1] <= t; slot--) {
            stack->enters[slot] = stack->enters[slot - 1];
            stack->child[slot] = stack->child[slot - 1];
        }
        stack->enters[slot] = t;
        stack->child[slot] = lbvh_i_child(node, number, c, calls);
    }
    return top;
}

/* Several rays walk in turn, one step each: while one waits for its next node from memory, the
   others compute. A step begins with what the last one pushed: what it decides then is known by
   now, so a processor that guessed wrong notices at once. */
enum { LBVH_I_WALKERS = 8 };

typedef struct lbvh_i_walker {
    lbvh_i_beam ray;
    int top;
    lbvh_i_waiting stack;
} lbvh_i_walker;

/* Pushes the children of a node that the ray enters. */
static void lbvh_i_step_node(const lbvh_i_tracer *tracer, lbvh_i_walker *walker, uint32_t number)
{
    const lbvh_wide_node *const node = &tracer->wide->node[number];
    lbvh_real enters[LBVH_WIDE];
    uint32_t const met = lbvh_i_enter_children(&walker->ray, node, enters);
    walker->top = lbvh_i_push_children(&walker->stack, walker->top, node, number, met, enters,
                                       tracer->fn != NULL);
}

/* Asks for what the next step reads. No branch, as what waits was just pushed. */
LBVH_I_HOT void lbvh_i_prefetch(const lbvh_i_next *next, const lbvh_i_waiting *stack, int top)
{
#if defined(__GNUC__) || defined(__clang__)
    uint32_t const child = stack->child[top > 0 ? top - 1 : 0];
    size_t const bytes = next->bytes[child >> 31];
    const char *at = next->base[child >> 31] + (child & ~LBVH_I_LEAF_BIT) * bytes;
    __builtin_prefetch(at);
    __builtin_prefetch(at + 64);
    __builtin_prefetch(at + bytes - 1);
#else
    (void)next;
    (void)stack;
    (void)top;
#endif
}

/* The child to visit next; 0: the walk is done. */
LBVH_I_HOT int lbvh_i_next_child(const lbvh_i_tracer *tracer, lbvh_i_walker *walker, uint32_t *at)
{
    if (tracer->any && lbvh_i_has_hit(&walker->ray)) return 0;
    return lbvh_i_pop(&walker->stack, &walker->top, walker->ray.t_max, at);
}

/* One node or leaf; 0: the walk is done. */
LBVH_I_HOT int lbvh_i_step(const lbvh_i_tracer *tracer, lbvh_i_walker *walker)
{
    uint32_t at;
    if (!lbvh_i_next_child(tracer, walker, &at)) return 0;
    if (!(at & LBVH_I_LEAF_BIT)) lbvh_i_step_node(tracer, walker, at);
    else if (tracer->fn) lbvh_i_hit_by_call(tracer, &walker->ray, at & ~LBVH_I_LEAF_BIT);
    else lbvh_i_hit_triangles(tracer->wide, &walker->ray, at & ~LBVH_I_LEAF_BIT);
    lbvh_i_prefetch(&tracer->next, &walker->stack, walker->top);
    return 1;
}

/* Rays of a call, and what becomes of them. */
typedef struct lbvh_i_bundle {
    const lbvh_i_tracer *tracer;
    const lbvh_rays *rays;
    int32_t next, end;
    int32_t pieces;         /* of the call */
    lbvh_ray_hit *hits;     /* NULL: `hit` is wanted */
    uint8_t *hit;
} lbvh_i_bundle;

static void lbvh_i_end_ray(const lbvh_i_bundle *bundle, const lbvh_i_beam *ray);

/* t_max of ray r. */
LBVH_FN lbvh_real lbvh_i_reach_of(const lbvh_rays *rays, int32_t r)
{
    if (rays->t_ends) return rays->t_ends[r];
    return rays->t_max > 0 ? rays->t_max : lbvh_i_infinity();
}

/* The filter of ray r. */
LBVH_FN uint32_t lbvh_i_filter_of(const lbvh_rays *rays, int32_t r)
{
    if (rays->filters) return rays->filters[r];
    return rays->filter ? rays->filter : LBVH_I_ANY_MASK;
}

/* Ray r of a call; 0: it hits nothing. */
LBVH_FN int lbvh_i_take_ray(const lbvh_i_tracer *tracer, const lbvh_rays *rays, int32_t r,
                            lbvh_i_beam *ray)
{
    lbvh_real const t_max = lbvh_i_reach_of(rays, r);
    ray->number = r;
    ray->filter = lbvh_i_filter_of(rays, r);
#ifdef LBVH_I_AVX2
    if (tracer->lanes && tracer->wide->dim == 3)
        return lbvh_i_begin_lanes(tracer, lbvh_i_at(rays->data, rays->stride, r), t_max, ray);
#endif
    return lbvh_i_begin_beam(tracer, lbvh_i_at(rays->data, rays->stride, r), t_max, ray);
}

/* The next ray of the bundle that can hit anything; 0: there is none. */
static int lbvh_i_next_beam(lbvh_i_bundle *bundle, lbvh_i_beam *ray)
{
    while (bundle->next < bundle->end) {
        if (lbvh_i_take_ray(bundle->tracer, bundle->rays, bundle->next++, ray)) return 1;
        lbvh_i_end_ray(bundle, ray);
    }
    return 0;
}

/* The next ray of the bundle begins at the root. 0: there is none. */
static int lbvh_i_begin_walk(lbvh_i_bundle *bundle, lbvh_i_walker *walker)
{
    walker->top = lbvh_i_push_root(&walker->stack);
    return lbvh_i_next_beam(bundle, &walker->ray);
}

/* The first rays; their number. */
static int lbvh_i_begin_walks(lbvh_i_bundle *bundle, lbvh_i_walker *walker, lbvh_i_walker **live)
{
    int count = 0;
    while (count < LBVH_I_WALKERS && lbvh_i_begin_walk(bundle, &walker[count])) {
        live[count] = &walker[count];
        count++;
    }
    return count;
}

/* Ray w is done: another one comes in its place, or the last walker. The next w. */
static int lbvh_i_end_walk(lbvh_i_bundle *bundle, lbvh_i_walker **live, int w, int *count)
{
    lbvh_i_end_ray(bundle, &live[w]->ray);
    if (lbvh_i_begin_walk(bundle, live[w])) return w + 1;
    live[w] = live[--*count];
    return w;
}

/* Several rays in turn, one step each. */
static void lbvh_i_walk_scalar(lbvh_i_bundle *bundle)
{
    lbvh_i_walker walker[LBVH_I_WALKERS], *live[LBVH_I_WALKERS];
    int w, count = lbvh_i_begin_walks(bundle, walker, live);
    while (count > 0)
        for (w = 0; w < count;) {
            if (lbvh_i_step(bundle->tracer, live[w])) w++;
            else w = lbvh_i_end_walk(bundle, live, w, &count);
        }
}

#ifdef LBVH_I_AVX2
/* lbvh_i_hit_triangles. Where one triangle is hit before all others, there is no branch. */
LBVH_I_LANES_FN void lbvh_i_hit_triangle_lanes(const lbvh_wide *wide, lbvh_i_beam *ray,
                                               size_t block)
{
    __m128 const at = lbvh_i_hit_lanes(ray, wide->element + block * 9 * LBVH_WIDE_LEAF),
                 halves = _mm_min_ps(at, _mm_shuffle_ps(at, at, 0x4E)),
                 least = _mm_min_ps(halves, _mm_shuffle_ps(halves, halves, 0xB1));
    uint32_t const first = (uint32_t)_mm_movemask_ps(_mm_cmpeq_ps(at, least));
    float const t = _mm_cvtss_f32(least), t_max = ray->t_max;
    size_t const slot = block * LBVH_WIDE_LEAF + (size_t)lbvh_i_lowest_bit(first),
                 nearer = (size_t)0 - (size_t)(t < t_max);
    if (wide->mask || t == t_max || (first & (first - 1) && t < t_max)) {
        float every[LBVH_WIDE_LEAF];
        _mm_storeu_ps(every, at);
        lbvh_i_keep_hits(wide, ray, block, 15, every);
        return;
    }
    ray->t_max = lbvh_i_min(t, t_max);
    ray->slot = (slot & nearer) | (ray->slot & ~nearer);
}

/* lbvh_i_step */
LBVH_I_LANES_FN int lbvh_i_step_lanes(const lbvh_i_tracer *tracer, lbvh_i_walker *walker)
{
    uint32_t at;
    if (!lbvh_i_next_child(tracer, walker, &at)) return 0;
    if (at & LBVH_I_LEAF_BIT) {
        size_t const leaf = at & ~LBVH_I_LEAF_BIT;
        if (tracer->fn) lbvh_i_hit_by_call(tracer, &walker->ray, (uint32_t)leaf);
        else lbvh_i_hit_triangle_lanes(tracer->wide, &walker->ray, leaf);
    } else if (lbvh_i_is_careful(&walker->ray, &tracer->wide->node[at]))
        lbvh_i_step_node(tracer, walker, at);
    else {
        const lbvh_wide_node *const node = &tracer->wide->node[at];
        __m256i const kind = lbvh_i_kind_lanes(node);
        walker->top = lbvh_i_push_lanes(&walker->stack, walker->top, node, at, kind,
                                        lbvh_i_enter_lanes(&walker->ray, node, kind),
                                        tracer->fn != NULL);
    }
    lbvh_i_prefetch(&tracer->next, &walker->stack, walker->top);
    return 1;
}

/* The same by lanes. */
LBVH_I_AVX2 static void lbvh_i_walk_lanes(lbvh_i_bundle *bundle)
{
    lbvh_i_walker walker[LBVH_I_WALKERS], *live[LBVH_I_WALKERS];
    int w, count = lbvh_i_begin_walks(bundle, walker, live);
    while (count > 0)
        for (w = 0; w < count;) {
            if (lbvh_i_step_lanes(bundle->tracer, live[w])) w++;
            else w = lbvh_i_end_walk(bundle, live, w, &count);
        }
}

#endif /* LBVH_I_AVX2 */

/* ------------------------------------------------------------------------------------------------
   >>wide-packs: packet traversal, for LBVH_SORTED and AVX2

   16 consecutive rays walk together, as a pack. A node is tested once: a child is entered if a ray
   could enter it whose origin and direction lie between theirs. A triangle is tested for 8 rays in
   8 lanes, by the operations of lbvh_i_hit_lanes: each ray finds what it finds alone.
   ---------------------------------------------------------------------------------------------- */

#ifdef LBVH_I_AVX2

enum { LBVH_I_PACK = 16, LBVH_I_PACKS = 4 };

#define LBVH_I_PACK_NONE 0xFFFFFFFFu    /* a slot: fewer than 2^32 - 1 are used */

typedef struct lbvh_i_pack {
    int32_t number, count;      /* the first ray, of the caller; the last one fills what is left */
    int32_t axis[3], in[3], out[3]; /* as in lbvh_i_beam, for all: i, j, k */
    float origin[3][LBVH_I_PACK], direction[3][LBVH_I_PACK];
    float t_maxs[LBVH_I_PACK];  /* of the closest hits so far, -1: the ray wants nothing more */
    float u[LBVH_I_PACK], v[LBVH_I_PACK];
    uint32_t slot[LBVH_I_PACK];
    float t_max;                /* the largest of t_maxs */
    float origin_in[3], origin_out[3];  /* those that come first and go last */
    float inverse[2][3];        /* smallest and largest */
    int top;
    lbvh_i_waiting stack;
} lbvh_i_pack;

/* The least and the largest of the numbers of a pack. */
LBVH_I_LANES_FN float lbvh_i_least_of_pack(const float v[LBVH_I_PACK])
{
    __m256 const all = _mm256_min_ps(_mm256_loadu_ps(v), _mm256_loadu_ps(v + 8));
    __m128 least = _mm_min_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
    least = _mm_min_ps(least, _mm_shuffle_ps(least, least, 0x4E));
    return _mm_cvtss_f32(_mm_min_ps(least, _mm_shuffle_ps(least, least, 0xB1)));
}

LBVH_I_LANES_FN float lbvh_i_largest_of_pack(const float v[LBVH_I_PACK])
{
    __m256 const all = _mm256_max_ps(_mm256_loadu_ps(v), _mm256_loadu_ps(v + 8));
    __m128 largest = _mm_max_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
    largest = _mm_max_ps(largest, _mm_shuffle_ps(largest, largest, 0x4E));
    return _mm_cvtss_f32(_mm_max_ps(largest, _mm_shuffle_ps(largest, largest, 0xB1)));
}

/* The next rays of a bundle, side by side. */
LBVH_I_LANES_FN void lbvh_i_load_pack(lbvh_i_bundle *bundle, lbvh_i_pack *pack)
{
    const lbvh_rays *rays = bundle->rays;
    int r, a;
    pack->number = bundle->next;
    pack->count = bundle->end - bundle->next < LBVH_I_PACK ? bundle->end - bundle->next
                                                           : LBVH_I_PACK;
    bundle->next += pack->count;
    for (r = 0; r < LBVH_I_PACK; r++) {
        int32_t const ray = pack->number + (r < pack->count ? r : pack->count - 1);
        const float *numbers = lbvh_i_at(rays->data, rays->stride, ray);
        float const t_max = lbvh_i_reach_of(rays, ray);
        for (a = 0; a < 3; a++) {
            pack->origin[a][r] = numbers[a];
            pack->direction[a][r] = numbers[3 + a];
        }
        pack->t_maxs[r] = lbvh_i_is_nan(t_max) ? -1 : lbvh_i_min(t_max, lbvh_i_largest());
        pack->u[r] = pack->v[r] = 0;
        pack->slot[r] = LBVH_I_PACK_NONE;
    }
    pack->t_max = lbvh_i_largest_of_pack(pack->t_maxs);
}

/* 1 if no number of the rays is NaN or infinite. */
LBVH_I_LANES_FN int lbvh_i_finite_pack(const lbvh_i_pack *pack)
{
    __m256i const exponent = _mm256_set1_epi32(0x7F800000);
    __m256i largest = _mm256_setzero_si256();
    int a, r;
    for (a = 0; a < 3; a++)
        for (r = 0; r < LBVH_I_PACK; r += 8) {
            __m256i const o = _mm256_castps_si256(_mm256_loadu_ps(pack->origin[a] + r)),
                          d = _mm256_castps_si256(_mm256_loadu_ps(pack->direction[a] + r));
            largest = _mm256_max_epi32(largest, _mm256_and_si256(o, exponent));
            largest = _mm256_max_epi32(largest, _mm256_and_si256(d, exponent));
        }
    return _mm256_movemask_epi8(_mm256_cmpeq_epi32(largest, exponent)) == 0;
}

/* The longest axis of all directions: lbvh_i_pick_axes; -1: they differ. */
LBVH_I_LANES_FN int lbvh_i_longest_of_pack(const lbvh_i_pack *pack)
{
    __m256 const size = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
    int r, is_x[2], is_y[2];
    for (r = 0; r < 2; r++) {
        __m256 const x = _mm256_and_ps(_mm256_loadu_ps(pack->direction[0] + 8 * r), size),
                     y = _mm256_and_ps(_mm256_loadu_ps(pack->direction[1] + 8 * r), size),
                     z = _mm256_and_ps(_mm256_loadu_ps(pack->direction[2] + 8 * r), size);
        is_x[r] = _mm256_movemask_ps(_mm256_and_ps(_mm256_cmp_ps(x, y, _CMP_GE_OQ),
                                                   _mm256_cmp_ps(x, z, _CMP_GE_OQ)));
        is_y[r] = _mm256_movemask_ps(_mm256_cmp_ps(y, z, _CMP_GE_OQ)) & ~is_x[r];
    }
    if ((is_x[0] & is_x[1]) == 255) return 0;
    if ((is_y[0] & is_y[1]) == 255) return 1;
    return (is_x[0] | is_x[1] | is_y[0] | is_y[1]) == 0 ? 2 : -1;
}

/* The bounds of the rays along an axis; 0: they are too far apart for a pack, or (nearly) parallel
   to the axis' planes. The inverse of the largest number is the least. */
LBVH_I_LANES_FN int lbvh_i_bound_pack(const lbvh_i_tracer *tracer, lbvh_i_pack *pack, int a)
{
    float const low = lbvh_i_least_of_pack(pack->origin[a]),
                high = lbvh_i_largest_of_pack(pack->origin[a]),
                least = lbvh_i_least_of_pack(pack->direction[a]),
                most = lbvh_i_largest_of_pack(pack->direction[a]),
                longest = lbvh_i_absolute(pack->direction[pack->axis[2]][0]);
    int const back = most < 0;
    pack->in[a] = back ? a + 3 : a;
    pack->out[a] = back ? a : a + 3;
    pack->inverse[0][a] = 1 / most;
    pack->inverse[1][a] = 1 / least;
    pack->origin_in[a] = back ? low : high;
    pack->origin_out[a] = back ? high : low;
    return (back ? -most : least) > LBVH_I_PAD_LEAST && most - least <= longest / 16 &&
           high - low <= tracer->size[a] / 64;
}

/* lbvh_i_enter_children for the pack: lower bounds of where the rays come, upper ones of where they
   go. Each has three roundings, relative to itself; they are moved by 16. */
LBVH_I_LANES_FN __m256i lbvh_i_enter_pack(const lbvh_i_pack *pack, const lbvh_wide_node *node,
                                          __m256i kind)
{
    __m256 begin = _mm256_setzero_ps(), end = _mm256_set1_ps(pack->t_max);
    int a;
    for (a = 0; a < 3; a++) {
        __m256 const corner = _mm256_broadcast_ss(&node->corner[a]),
                     quantum = _mm256_set1_ps(lbvh_i_quantum(node->exponent[a])),
                     one = _mm256_broadcast_ss(&pack->inverse[0][a]),
                     two = _mm256_broadcast_ss(&pack->inverse[1][a]),
                     in = lbvh_i_planes(node->plane[pack->in[a]], corner, quantum),
                     out = lbvh_i_planes(node->plane[pack->out[a]], corner, quantum),
                     to_in = _mm256_sub_ps(in, _mm256_broadcast_ss(&pack->origin_in[a])),
                     to_out = _mm256_sub_ps(out, _mm256_broadcast_ss(&pack->origin_out[a]));
        begin = _mm256_max_ps(
            _mm256_min_ps(_mm256_mul_ps(to_in, one), _mm256_mul_ps(to_in, two)), begin);
        end = _mm256_min_ps(
            _mm256_max_ps(_mm256_mul_ps(to_out, one), _mm256_mul_ps(to_out, two)), end);
    }
    begin = _mm256_mul_ps(begin, _mm256_set1_ps(0.999999f));
    return lbvh_i_key_lanes(kind, begin, _mm256_cmp_ps(begin, end, _CMP_NLE_UQ));
}

/* Lanes of a block that hold a triangle with any coordinate that is not 0, as bits. */
LBVH_I_LANES_FN uint32_t lbvh_i_filled_lanes(const float *v)
{
    __m128 any = _mm_loadu_ps(v);
    int k;
    for (k = 1; k < 9; k++) any = _mm_or_ps(any, _mm_loadu_ps(v + 4 * k));
    return 15 & ~(uint32_t)_mm_movemask_ps(
                    _mm_castsi128_ps(_mm_cmpeq_epi32(_mm_castps_si128(any), _mm_setzero_si128())));
}

/* a * b, rounded: lbvh_i_times */
LBVH_I_LANES_FN __m256 lbvh_i_times_pack(__m256 a, __m256 b)
{
    __m256 product = _mm256_mul_ps(a, b);
#if defined(LBVH_I_KEEP_BY_ASM)
    __asm__("" : "+x"(product));
#endif
    return product;
}

/* a * b - c * d */
LBVH_I_LANES_FN __m256 lbvh_i_cross_pack(__m256 a, __m256 b, __m256 c, __m256 d)
{
    return _mm256_sub_ps(lbvh_i_times_pack(a, b), lbvh_i_times_pack(c, d));
}

/* Of 8 rays that hit an element at t those that keep it, as lanes: lbvh_i_keep_hit. */
LBVH_I_LANES_FN __m256 lbvh_i_closest_lanes(const lbvh_i_bundle *bundle, const lbvh_i_pack *pack,
                                            int ray, uint32_t slot, __m256 t, __m256 hit)
{
    const lbvh_wide *wide = bundle->tracer->wide;
    uint32_t const same = (uint32_t)_mm256_movemask_ps(_mm256_and_ps(
        hit, _mm256_cmp_ps(t, _mm256_loadu_ps(pack->t_maxs + ray), _CMP_EQ_OQ)));
    int32_t keeps[8];
    int r;
    if (!wide->mask && !same) return hit;
    for (r = 0; r < 8; r++) {
        uint32_t const had = pack->slot[ray + r];
        int32_t const number = pack->number + ray + r;
        keeps[r] = -1;
        if (same >> r & 1 && had != LBVH_I_PACK_NONE && wide->id[slot] > wide->id[had])
            keeps[r] = 0;
        if (ray + r < pack->count &&
            !lbvh_i_slot_passes(wide, slot, lbvh_i_filter_of(bundle->rays, number)))
            keeps[r] = 0;
    }
    return _mm256_and_ps(
        hit, _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)(const void *)keeps)));
}

/* Replaces the numbers where the mask says so. */
LBVH_I_LANES_FN void lbvh_i_keep_lanes(float to[8], __m256 v, __m256 where)
{
    _mm256_storeu_ps(to, _mm256_blendv_ps(_mm256_loadu_ps(to), v, where));
}

/* What lbvh_ray_triangle calculates, of 8 rays. */
typedef struct lbvh_i_weights {
    __m256 of_a, of_b, of_c, total;
    __m256 deep[3];         /* of the vertices, along the longest axis */
    __m256 along;           /* of the directions, likewise */
} lbvh_i_weights;

/* A triangle, whose numbers are 4 apart, and 8 rays. */
LBVH_I_LANES_FN lbvh_i_weights lbvh_i_weigh_pack(const lbvh_i_pack *pack, int ray, const float *v)
{
    int const i = pack->axis[0], j = pack->axis[1], k = pack->axis[2];
    __m256 const oi = _mm256_loadu_ps(pack->origin[i] + ray),
                 oj = _mm256_loadu_ps(pack->origin[j] + ray),
                 ok = _mm256_loadu_ps(pack->origin[k] + ray),
                 di = _mm256_loadu_ps(pack->direction[i] + ray),
                 dj = _mm256_loadu_ps(pack->direction[j] + ray);
    lbvh_i_weights w;
    __m256 x[3], y[3];
    int c;
    w.along = _mm256_loadu_ps(pack->direction[k] + ray);
    LBVH_I_UNROLL
    for (c = 0; c < 3; c++) {
        const float *corner = v + 12 * c;
        w.deep[c] = _mm256_sub_ps(_mm256_broadcast_ss(corner + 4 * k), ok);
        x[c] = lbvh_i_cross_pack(_mm256_sub_ps(_mm256_broadcast_ss(corner + 4 * i), oi), w.along,
                                 w.deep[c], di);
        y[c] = lbvh_i_cross_pack(_mm256_sub_ps(_mm256_broadcast_ss(corner + 4 * j), oj), w.along,
                                 w.deep[c], dj);
    }
    w.of_a = lbvh_i_cross_pack(x[1], y[2], y[1], x[2]);
    w.of_b = lbvh_i_cross_pack(x[2], y[0], y[2], x[0]);
    w.of_c = lbvh_i_cross_pack(x[0], y[1], y[0], x[1]);
    w.total = _mm256_add_ps(_mm256_add_ps(w.of_a, w.of_b), w.of_c);
    return w;
}

/* Rays whose lines pass inside: all weights have one sign. */
LBVH_I_LANES_FN __m256 lbvh_i_inside_pack(const lbvh_i_weights *w)
{
    __m256 const zero = _mm256_setzero_ps(),
                 above = _mm256_and_ps(_mm256_and_ps(_mm256_cmp_ps(w->of_a, zero, _CMP_GE_OQ),
                                                     _mm256_cmp_ps(w->of_b, zero, _CMP_GE_OQ)),
                                       _mm256_cmp_ps(w->of_c, zero, _CMP_GE_OQ)),
                 below = _mm256_and_ps(_mm256_and_ps(_mm256_cmp_ps(w->of_a, zero, _CMP_LE_OQ),
                                                     _mm256_cmp_ps(w->of_b, zero, _CMP_LE_OQ)),
                                       _mm256_cmp_ps(w->of_c, zero, _CMP_LE_OQ));
    return _mm256_and_ps(_mm256_or_ps(above, below),
                         _mm256_cmp_ps(w->total, zero, _CMP_NEQ_UQ));
}

/* Where the lines meet the triangle. */
LBVH_I_LANES_FN __m256 lbvh_i_meet_pack(const lbvh_i_weights *w)
{
    __m256 const depth = _mm256_add_ps(_mm256_add_ps(lbvh_i_times_pack(w->of_a, w->deep[0]),
                                                     lbvh_i_times_pack(w->of_b, w->deep[1])),
                                       lbvh_i_times_pack(w->of_c, w->deep[2]));
    return _mm256_div_ps(_mm256_div_ps(depth, w->total), w->along);
}

/* Those of 8 rays that hit a triangle up to their t_max keep it. 0: there are none. */
LBVH_I_LANES_FN int lbvh_i_hit_pack(const lbvh_i_bundle *bundle, lbvh_i_pack *pack, int ray,
                                    const float *v, uint32_t slot)
{
    lbvh_i_weights const w = lbvh_i_weigh_pack(pack, ray, v);
    __m256 hit = lbvh_i_inside_pack(&w), at;
    if (_mm256_movemask_ps(hit) == 0) return 0;
    at = lbvh_i_meet_pack(&w);
    hit = _mm256_and_ps(hit, _mm256_and_ps(_mm256_cmp_ps(at, _mm256_setzero_ps(), _CMP_GE_OQ),
                                           _mm256_cmp_ps(at, _mm256_loadu_ps(pack->t_maxs + ray),
                                                         _CMP_LE_OQ)));
    if (_mm256_movemask_ps(hit) == 0) return 0;
    hit = lbvh_i_closest_lanes(bundle, pack, ray, slot, at, hit);
    lbvh_i_keep_lanes(pack->t_maxs + ray, bundle->tracer->any ? _mm256_set1_ps(-1) : at, hit);
    lbvh_i_keep_lanes(pack->u + ray, _mm256_div_ps(w.of_b, w.total), hit);
    lbvh_i_keep_lanes(pack->v + ray, _mm256_div_ps(w.of_c, w.total), hit);
    _mm256_maskstore_epi32((int *)(void *)(pack->slot + ray), _mm256_castps_si256(hit),
                           _mm256_set1_epi32((int)slot));
    return 1;
}

/* The triangles of a block. */
LBVH_I_LANES_FN void lbvh_i_hit_by_pack(const lbvh_i_bundle *bundle, lbvh_i_pack *pack,
                                        size_t block)
{
    const float *v = bundle->tracer->wide->element + block * 9 * LBVH_WIDE_LEAF;
    uint32_t left = lbvh_i_filled_lanes(v);
    int any = 0;
    for (; left; left &= left - 1) {
        int const lane = lbvh_i_lowest_bit(left);
        uint32_t const slot = (uint32_t)(block * LBVH_WIDE_LEAF) + (uint32_t)lane;
        any |= lbvh_i_hit_pack(bundle, pack, 0, v + lane, slot);
        any |= lbvh_i_hit_pack(bundle, pack, 8, v + lane, slot);
    }
    if (any) pack->t_max = lbvh_i_largest_of_pack(pack->t_maxs);
}

/* One node or leaf; 0: the walk is done. */
LBVH_I_LANES_FN int lbvh_i_step_pack(const lbvh_i_bundle *bundle, lbvh_i_pack *pack)
{
    const lbvh_i_tracer *const tracer = bundle->tracer;
    uint32_t at;
    if (pack->t_max < 0 || !lbvh_i_pop(&pack->stack, &pack->top, pack->t_max, &at)) return 0;
    if (at & LBVH_I_LEAF_BIT) lbvh_i_hit_by_pack(bundle, pack, at & ~LBVH_I_LEAF_BIT);
    else {
        const lbvh_wide_node *const node = &tracer->wide->node[at];
        __m256i const kind = lbvh_i_kind_lanes(node);
        pack->top = lbvh_i_push_lanes(&pack->stack, pack->top, node, at, kind,
                                      lbvh_i_enter_pack(pack, node, kind), 0);
    }
    lbvh_i_prefetch(&tracer->next, &pack->stack, pack->top);
    return 1;
}

/* 1 if the rays are near enough for a pack; 0 also where one is not finite. */
LBVH_I_LANES_FN int lbvh_i_is_pack(const lbvh_i_tracer *tracer, lbvh_i_pack *pack)
{
    int const k = lbvh_i_longest_of_pack(pack);
    if (tracer->wide->nodes == 0 || k < 0 || !lbvh_i_finite_pack(pack)) return 0;
    pack->axis[0] = k < 2 ? k + 1 : 0;
    pack->axis[1] = k > 0 ? k - 1 : 2;
    pack->axis[2] = k;
    return lbvh_i_bound_pack(tracer, pack, 0) && lbvh_i_bound_pack(tracer, pack, 1) &&
           lbvh_i_bound_pack(tracer, pack, 2);
}

/* The next rays that are a pack; 0: there are none. Rays that are not walk one by one. */
LBVH_I_AVX2 static int lbvh_i_begin_pack(lbvh_i_bundle *bundle, lbvh_i_pack *pack)
{
    while (bundle->next < bundle->end) {
        lbvh_i_bundle alone = *bundle;
        lbvh_i_load_pack(bundle, pack);
        if (lbvh_i_is_pack(bundle->tracer, pack)) {
            pack->top = lbvh_i_push_root(&pack->stack);
            return 1;
        }
        alone.end = bundle->next;
        lbvh_i_walk_lanes(&alone);
    }
    return 0;
}

/* Stores the results of a pack. */
static void lbvh_i_end_pack(const lbvh_i_bundle *bundle, const lbvh_i_pack *pack)
{
    int r;
    for (r = 0; r < pack->count; r++) {
        int const found = pack->slot[r] != LBVH_I_PACK_NONE;
        if (!bundle->hits) bundle->hit[pack->number + r] = (uint8_t)found;
        else {
            lbvh_ray_hit *hit = &bundle->hits[pack->number + r];
            hit->t = found ? pack->t_maxs[r] : 0;
            hit->u = pack->u[r];
            hit->v = pack->v[r];
            hit->id = found ? bundle->tracer->wide->id[pack->slot[r]] : -1;
        }
    }
}

/* All rays in packs, which walk in turn. */
LBVH_I_AVX2 static void lbvh_i_walk_packs(lbvh_i_bundle *bundle)
{
    lbvh_i_pack pack[LBVH_I_PACKS], *live[LBVH_I_PACKS];
    int p, count = 0;
    while (count < LBVH_I_PACKS && lbvh_i_begin_pack(bundle, &pack[count])) {
        live[count] = &pack[count];
        count++;
    }
    while (count > 0)
        for (p = 0; p < count;) {
            if (lbvh_i_step_pack(bundle, live[p])) {
                p++;
                continue;
            }
            lbvh_i_end_pack(bundle, live[p]);
            if (!lbvh_i_begin_pack(bundle, live[p])) live[p] = live[--count];
        }
}

#endif /* LBVH_I_AVX2 */

/* ------------------------------------------------------------------------------------------------
   >>wide-hits: the calls for many rays, and their results
   ---------------------------------------------------------------------------------------------- */

/* The numbers of a copied element. */
LBVH_FN void lbvh_i_copied_numbers(const lbvh_wide *wide, size_t slot, lbvh_real number[9])
{
    const lbvh_real *v = lbvh_i_lane_of(wide, slot);
    int k;
    for (k = 0; k < 9; k++) number[k] = k < wide->numbers ? v[LBVH_WIDE_LEAF * k] : 0;
}

LBVH_FN lbvh_ray_hit lbvh_i_no_hit(void)
{
    lbvh_ray_hit none;
    memset(&none, 0, sizeof none);
    none.id = -1;
    return none;
}

/* The hit of a ray on a copied triangle, with its weights. */
LBVH_FN lbvh_ray_hit lbvh_i_copied_hit(const lbvh_wide *wide, const lbvh_i_beam *ray)
{
    lbvh_real corner[9];
    lbvh_ray_hit hit = lbvh_i_no_hit();
    if (!lbvh_i_has_hit(ray)) return hit;
    hit.id = wide->id[ray->slot];
    lbvh_i_copied_numbers(wide, ray->slot, corner);
    (void)lbvh_ray_triangle(ray->origin, ray->direction, corner, corner + 3, corner + 6, &hit.t,
                            &hit.u, &hit.v);
    return hit;
}

/* The hit of a ray, with the weights that its test gives. */
static lbvh_ray_hit lbvh_i_hit_of(const lbvh_i_tracer *tracer, const lbvh_i_beam *ray)
{
    lbvh_ray_hit hit = lbvh_i_no_hit();
    if (!tracer->fn) return lbvh_i_copied_hit(tracer->wide, ray);
    if (!lbvh_i_has_hit(ray)) return hit;
    hit.id = tracer->wide->id[ray->slot];
    (void)tracer->fn(tracer->user, hit.id, ray->origin, ray->direction, &hit.t, &hit.u, &hit.v);
    return hit;
}

/* Checks rays; `*checked` has their stride. */
static lbvh_result lbvh_i_check_rays(const lbvh_wide *wide, const lbvh_rays *rays, lbvh_ray_fn *fn,
                                     const void *out, lbvh_rays *checked)
{
    if (!wide || !rays || rays->n < 0 || (rays->n > 0 && (!rays->data || !out)))
        return LBVH_BAD_ARGUMENT;
    if (rays->n > LBVH_I_N_MAX) return LBVH_TOO_MANY;
    if (rays->flags & ~LBVH_SORTED) return LBVH_BAD_OPTION;
    if (rays->t_max < 0 || lbvh_i_is_nan(rays->t_max)) return LBVH_BAD_RADIUS;
    if (!wide->built || (!fn && wide->numbers != 9 && wide->elements > 0)) return LBVH_NOT_BUILT;
    *checked = *rays;
    checked->stride = lbvh_i_stride_of(2 * wide->dim, rays->stride);
    return checked->stride ? LBVH_OK : LBVH_BAD_ARGUMENT;
}

/* The largest coordinate of a plane along an axis. */
LBVH_FN lbvh_real lbvh_i_wide_size(const lbvh_wide *wide, int a)
{
    const lbvh_wide_node *root = wide->node;
    return wide->nodes == 0 ? 0
                            : (lbvh_i_absolute(root->corner[a]) + 512) *
                                  lbvh_i_quantum(root->exponent[a]);
}

/* Where the memory of children lies, for prefetching. */
static lbvh_i_next lbvh_i_next_of(const lbvh_wide *wide, int calls)
{
    lbvh_i_next next;
    next.base[0] = (const char *)wide->node;
    next.bytes[0] = sizeof(lbvh_wide_node);
    next.base[1] = calls ? next.base[0] : (const char *)wide->element;
    next.bytes[1] = calls ? sizeof(lbvh_wide_node) / LBVH_WIDE
                          : 9 * LBVH_WIDE_LEAF * sizeof(lbvh_real);
    return next;
}

/* What all rays of a call share. */
static lbvh_i_tracer lbvh_i_tracer_of(const lbvh_wide *wide, lbvh_ray_fn *fn, void *user, int any)
{
    lbvh_i_tracer tracer;
    int a;
    for (a = 0; a < 3; a++) tracer.size[a] = lbvh_i_wide_size(wide, a);
    tracer.size[3] = 0;
    tracer.coarse = lbvh_i_exponent(lbvh_i_max(lbvh_i_max(tracer.size[0], tracer.size[1]),
                                               tracer.size[2]) * (LBVH_I_PAD_UNIT / 16));
    tracer.wide = wide;
    tracer.fn = fn;
    tracer.user = user;
    tracer.any = any;
    tracer.next = lbvh_i_next_of(wide, fn != NULL);
    tracer.lanes = LBVH_I_HAS_AVX2() != 0;
    return tracer;
}

/* The result of a ray. */
static void lbvh_i_end_ray(const lbvh_i_bundle *bundle, const lbvh_i_beam *ray)
{
    if (bundle->hits) bundle->hits[ray->number] = lbvh_i_hit_of(bundle->tracer, ray);
    else bundle->hit[ray->number] = lbvh_i_has_hit(ray) != 0;
}

/* Into how many pieces n rays or points are cut. A ray takes about a microsecond. */
static int32_t lbvh_i_wide_pieces(const lbvh_wide *wide, int32_t n)
{
    return lbvh_i_pieces_of(&wide->desc.parallel, n, LBVH_I_PIECE / 4, LBVH_I_MOST_PIECES);
}

/* All rays of a bundle, by what the processor has. */
static void lbvh_i_walk_bundle(lbvh_i_bundle *bundle)
{
#ifdef LBVH_I_AVX2
    const lbvh_i_tracer *const tracer = bundle->tracer;
    if (tracer->lanes && !tracer->fn && (bundle->rays->flags & LBVH_SORTED)) {
        lbvh_i_walk_packs(bundle);
        return;
    }
    if (tracer->lanes) {
        lbvh_i_walk_lanes(bundle);
        return;
    }
#endif
    lbvh_i_walk_scalar(bundle);
}

/* A task: a part of the rays. */
static void lbvh_i_rays_piece(void *all, int32_t k)
{
    lbvh_i_bundle piece = *(const lbvh_i_bundle *)all;
    piece.next = (int32_t)lbvh_i_cut(piece.rays->n, piece.pieces, k);
    piece.end = (int32_t)lbvh_i_cut(piece.rays->n, piece.pieces, k + 1);
    lbvh_i_walk_bundle(&piece);
}

/* No ray hits anything. */
static void lbvh_i_hit_nothing(const lbvh_i_bundle *bundle)
{
    int32_t r;
    for (r = 0; r < bundle->rays->n; r++) {
        if (bundle->hits) bundle->hits[r] = lbvh_i_no_hit();
        else bundle->hit[r] = 0;
    }
}

/* lbvh_closest_hits (hits) and lbvh_any_hits (hit). */
static lbvh_result lbvh_i_trace(const lbvh_wide *wide, const lbvh_rays *rays, lbvh_ray_fn *fn,
                                void *user, lbvh_ray_hit *hits, uint8_t *hit)
{
    lbvh_rays checked;
    lbvh_i_tracer tracer;
    lbvh_i_bundle bundle;
    const void *out = hits ? (const void *)hits : (const void *)hit;
    lbvh_result result = lbvh_i_check_rays(wide, rays, fn, out, &checked);
    if (result != LBVH_OK) return result;
    tracer = lbvh_i_tracer_of(wide, fn, user, hits == NULL);
    bundle.tracer = &tracer;
    bundle.rays = &checked;
    bundle.next = 0;
    bundle.end = checked.n;
    bundle.pieces = fn ? 1 : lbvh_i_wide_pieces(wide, checked.n);
    bundle.hits = hits;
    bundle.hit = hit;
    if (bundle.pieces == 1) {
        lbvh_i_walk_bundle(&bundle);
        return LBVH_OK;
    }
    result = lbvh_i_in_pieces(&wide->desc.parallel, bundle.pieces, lbvh_i_rays_piece, &bundle);
    if (result != LBVH_OK) lbvh_i_hit_nothing(&bundle);
    return result;
}

LBVH_API lbvh_result lbvh_closest_hits(const lbvh_wide *wide, const lbvh_rays *rays,
                                       lbvh_ray_fn *fn, void *user, lbvh_ray_hit *hits)
{
    return lbvh_i_trace(wide, rays, fn, user, hits, NULL);
}

LBVH_API lbvh_result lbvh_any_hits(const lbvh_wide *wide, const lbvh_rays *rays, lbvh_ray_fn *fn,
                                   void *user, uint8_t *hit)
{
    return lbvh_i_trace(wide, rays, fn, user, NULL, hit);
}

/* ------------------------------------------------------------------------------------------------
   >>wide-near: elements around a point. Decoded planes are exact (>>wide).
   ---------------------------------------------------------------------------------------------- */

/* A decoded plane of child c: row 0 .. 2 low x y z, 3 .. 5 high. */
LBVH_FN_HOT lbvh_real lbvh_i_plane(const lbvh_wide_node *node, int row, int c)
{
    int const a = row % 3;
    return (node->corner[a] + (lbvh_real)node->plane[row][c]) * lbvh_i_quantum(node->exponent[a]);
}

/* One search around a point. */
typedef struct lbvh_i_around {
    const lbvh_wide *wide;
    lbvh_real p[3], reach2;
    lbvh_distance2_fn *fn;      /* NULL: copied elements */
    void *user;
    const lbvh_real *given;     /* the caller's p, for fn */
    int32_t k, found;
    int32_t *ids;               /* [k] NULL: `closest` is wanted */
    lbvh_real *distances2;
    lbvh_closest *closest;
} lbvh_i_around;

/* Squared distances to the boxes of the children, a little less: an element's own distance, which
   has roundings of its own, is not below that of its box. */
LBVH_FN_HOT void lbvh_i_children_away2(const lbvh_real point[3], const lbvh_wide_node *node,
                                       lbvh_real away2[LBVH_WIDE])
{
    lbvh_real const less = LBVH_I_REAL_KIND == 1 ? (lbvh_real)0.999999
                                                 : (lbvh_real)0.999999999999998;
    lbvh_real sum[LBVH_WIDE];
    int a, c;
    for (c = 0; c < LBVH_WIDE; c++) sum[c] = 0;
    for (a = 0; a < 3; a++) {
        lbvh_real const quantum = lbvh_i_quantum(node->exponent[a]), corner = node->corner[a],
                        p = point[a];
        lbvh_real low[LBVH_WIDE], high[LBVH_WIDE];
        lbvh_i_read_row(node->plane[a], low);
        lbvh_i_read_row(node->plane[a + 3], high);
        for (c = 0; c < LBVH_WIDE; c++) {
            lbvh_real const min = (low[c] + corner) * quantum, max = (high[c] + corner) * quantum;
            lbvh_real at = p > min ? p : min;
            at = at < max ? at : max;
            sum[c] += lbvh_i_times(p - at, p - at);
        }
    }
    for (c = 0; c < LBVH_WIDE; c++) away2[c] = sum[c] * less;
}

/* The point of a copied triangle closest to p. */
LBVH_FN lbvh_feature lbvh_i_closest_in_block(const lbvh_wide *wide, size_t slot, const lbvh_real *p,
                                             lbvh_real q[3])
{
    lbvh_real corner[9];
    lbvh_i_copied_numbers(wide, slot, corner);
    return lbvh_closest_on_triangle(p, corner, corner + 3, corner + 6, q);
}

/* The box of a copied element. */
LBVH_FN void lbvh_i_copied_box(const lbvh_wide *wide, size_t slot, lbvh_node *box)
{
    lbvh_real number[9];
    int k;
    lbvh_i_copied_numbers(wide, slot, number);
    if (wide->numbers == 9) {
        lbvh_triangle_box(3, number, number + 3, number + 6, box->min, box->max);
        return;
    }
    for (k = 0; k < 3; k++) {
        box->min[k] = number[k];
        box->max[k] = number[k + 3];
    }
}

/* The squared distance from p to a copied element. */
LBVH_FN lbvh_real lbvh_i_copied_distance2(const lbvh_wide *wide, size_t slot,
                                          const lbvh_real p[3])
{
    lbvh_real q[3];
    lbvh_node box;
    if (wide->numbers == 9) {
        (void)lbvh_i_closest_in_block(wide, slot, p, q);
        return lbvh_i_distance2(q, p);
    }
    lbvh_i_copied_box(wide, slot, &box);
    return lbvh_box_distance2(&box, p);
}

/* The closest point of a triangle: kept, if it is near enough. */
LBVH_FN void lbvh_i_keep_closest(const lbvh_wide *wide, size_t slot, const lbvh_real *p,
                                 lbvh_closest *best, lbvh_real *reach2)
{
    lbvh_closest now;
    now.feature = lbvh_i_closest_in_block(wide, slot, p, now.point);
    now.distance2 = lbvh_i_distance2(now.point, p);
    now.id = wide->id[slot];
    if (!(now.distance2 <= *reach2)) return;
    if (best->id >= 0 && now.distance2 == best->distance2 && now.id > best->id) return;
    *best = now;
    *reach2 = now.distance2;
}

/* An element: kept, if it is near enough. */
static void lbvh_i_visit_element(lbvh_i_around *search, size_t slot)
{
    int32_t const id = search->wide->id[slot];
    if (!lbvh_i_slot_passes(search->wide, slot, LBVH_I_ANY_MASK)) return;
    if (search->ids) {
        lbvh_real const distance2 =
            search->fn ? search->fn(search->user, id, search->given)
                       : lbvh_i_copied_distance2(search->wide, slot, search->p);
        search->reach2 = lbvh_i_keep_nearest(search->ids, search->distances2, search->k,
                                             &search->found, search->reach2, id, distance2);
    } else lbvh_i_keep_closest(search->wide, slot, search->p, search->closest, &search->reach2);
}

/* The lowest id at or below child c of a node, all of whose elements lie at one point. */
LBVH_FN int32_t lbvh_i_first_id(const lbvh_wide *wide, const lbvh_wide_node *node, int c)
{
    size_t slot;
    for (; node->kind[c] >= LBVH_I_INNER; c = 0)
        node = &wide->node[node->child + (node->kind[c] - (uint32_t)LBVH_I_INNER)];
    slot = (size_t)node->first + (node->kind[c] & 31);
    return wide->id[wide->numbers ? slot * LBVH_WIDE_LEAF : slot];
}

/* 1 if child c is a point, not nearer than the last of k elements that are found, and its ids are
   larger than that one's. */
LBVH_FN int lbvh_i_loses_tie(const lbvh_i_around *search, const lbvh_wide_node *node, int c)
{
    lbvh_node box;
    int a;
    for (a = 0; a < 3; a++) {
        box.min[a] = lbvh_i_plane(node, a, c);
        box.max[a] = lbvh_i_plane(node, a + 3, c);
        if (box.min[a] != box.max[a]) return 0;
    }
    return lbvh_box_distance2(&box, search->p) >= search->reach2 &&
           lbvh_i_first_id(search->wide, node, c) > lbvh_i_last_id(search->ids, search->k);
}

/* The children that are met, without those that lose a tie. */
LBVH_FN_RARE uint32_t lbvh_i_drop_ties(const lbvh_i_around *search, const lbvh_wide_node *node,
                                       const lbvh_real away2[LBVH_WIDE], uint32_t met)
{
    lbvh_real const nearly = search->reach2 * (lbvh_real)0.99999; /* ties, and more */
    uint32_t left = met;
    if (search->found < search->k || !search->ids) return met;
    for (; left; left &= left - 1) {
        int const c = lbvh_i_lowest_bit(left);
        if (away2[c] >= nearly && lbvh_i_loses_tie(search, node, c)) met &= ~((uint32_t)1 << c);
    }
    return met;
}

/* The walk around a point, nearer children first. */
LBVH_I_HOT void lbvh_i_walk_around(lbvh_i_around *search)
{
    const lbvh_wide *wide = search->wide;
    lbvh_i_waiting stack;
    uint32_t at;
    int top = lbvh_i_push_root(&stack);
    while (lbvh_i_pop(&stack, &top, search->reach2, &at)) {
        if (at & LBVH_I_LEAF_BIT) {
            size_t slot;
            int32_t left = lbvh_i_leaf_slots(wide, at & ~LBVH_I_LEAF_BIT, &slot);
            for (; left > 0; left--) lbvh_i_visit_element(search, slot++);
        } else {
            const lbvh_wide_node *node = &wide->node[at];
            lbvh_real away2[LBVH_WIDE];
            uint32_t met = 0;
            int c;
            lbvh_i_children_away2(search->p, node, away2);
            for (c = 0; c < LBVH_WIDE; c++) met |= (uint32_t)(away2[c] <= search->reach2) << c;
            met &= node->used;
            if (wide->piles) met = lbvh_i_drop_ties(search, node, away2, met);
            top = lbvh_i_push_children(&stack, top, node, at, met, away2, 1);
        }
    }
}

LBVH_I_MAYBE_AVX2 void lbvh_i_around_lanes(lbvh_i_around *search) { lbvh_i_walk_around(search); }

/* lbvh_i_read_point; 0: nothing can be near it. */
LBVH_FN int lbvh_i_take_point(const lbvh_wide *wide, const lbvh_real *p, lbvh_real point[3])
{
    return lbvh_i_read_point(wide->dim, p, point) && wide->nodes > 0;
}

/* Walks, if the point and the reach are numbers. */
static void lbvh_i_search_around(lbvh_i_around *search, const lbvh_real *p, lbvh_real reach)
{
    search->given = p;
    search->reach2 = lbvh_i_min(lbvh_i_times(reach, reach), lbvh_i_largest());
    if (!lbvh_i_take_point(search->wide, p, search->p)) return;
    if (LBVH_I_HAS_AVX2()) lbvh_i_around_lanes(search);
    else lbvh_i_walk_around(search);
}

LBVH_API lbvh_result lbvh_wide_nearest(const lbvh_wide *wide, const lbvh_real *p, int32_t k,
                                       lbvh_real reach, lbvh_distance2_fn *fn, void *user,
                                       int32_t *ids, lbvh_real *distances2, int32_t *found)
{
    lbvh_i_around search;
    if (!wide || !p || k < 0 || (k > 0 && (!ids || !distances2)) || !found)
        return LBVH_BAD_ARGUMENT;
    if (!(reach >= 0)) return LBVH_BAD_RADIUS;
    if (!wide->built || (!fn && !wide->numbers)) return LBVH_NOT_BUILT;
    *found = 0;
    if (k == 0) return LBVH_OK;
    memset(&search, 0, sizeof search);
    search.wide = wide;
    search.fn = fn;
    search.user = user;
    search.k = k;
    search.ids = ids;
    search.distances2 = distances2;
    lbvh_i_search_around(&search, p, reach);
    lbvh_i_sort_nearest(ids, distances2, k, search.found);
    *found = search.found;
    return LBVH_OK;
}

/* ------------------------------------------------------------------------------------------------
   >>wide-points: closest points on triangles, for many points
   ---------------------------------------------------------------------------------------------- */

/* The points of a call. */
typedef struct lbvh_i_points {
    const lbvh_wide *wide;
    const lbvh_real *points;
    size_t stride;
    int32_t n, pieces;
    lbvh_real reach;
    const lbvh_real *reaches;   /* one for each point, or NULL */
    size_t reach_stride;
    lbvh_closest *closest;
} lbvh_i_points;

/* The reach of point i. */
LBVH_FN lbvh_real lbvh_i_point_reach(const lbvh_i_points *job, int32_t i)
{
    return job->reaches ? *lbvh_i_at(job->reaches, job->reach_stride, i) : job->reach;
}

LBVH_FN lbvh_closest lbvh_i_no_point(void)
{
    lbvh_closest none;
    memset(&none, 0, sizeof none);
    none.id = -1;
    return none;
}

/* The points i .. end-1, one after another. */
static void lbvh_i_points_scalar(const lbvh_i_points *job, int32_t i, int32_t end)
{
    lbvh_i_around search;
    memset(&search, 0, sizeof search);
    search.wide = job->wide;
    for (; i < end; i++) {
        job->closest[i] = lbvh_i_no_point();
        search.closest = &job->closest[i];
        if (!(lbvh_i_point_reach(job, i) >= 0)) continue;
        lbvh_i_search_around(&search, lbvh_i_at(job->points, job->stride, i),
                             lbvh_i_point_reach(job, i));
    }
}

#ifdef LBVH_I_AVX2

/* By lanes, as rays in >>wide-trace: 8 boxes, or 4 triangles, are tested together, and several
   points walk in turn. The walk keeps where the closest triangle lies, and its distance by the
   operations of lbvh_closest_on_triangle, which is called once, at the end. */
typedef struct lbvh_i_seeker {
    const lbvh_real *p;
    lbvh_closest *closest;
    float reach2;
    size_t slot;            /* LBVH_I_NO_SLOT: nothing is within reach */
    int top;
    lbvh_i_waiting stack;
} lbvh_i_seeker;

/* lbvh_i_children_away2 as keys. */
LBVH_I_LANES_FN __m256i lbvh_i_away_lanes(const float *p, const lbvh_wide_node *node, __m256i kind,
                                          float reach2)
{
    __m256 sum = _mm256_setzero_ps();
    int a;
    LBVH_I_UNROLL
    for (a = 0; a < 3; a++) {
        __m256 const corner = _mm256_broadcast_ss(&node->corner[a]),
                     quantum = _mm256_set1_ps(lbvh_i_quantum(node->exponent[a])),
                     low = lbvh_i_planes(node->plane[a], corner, quantum),
                     high = lbvh_i_planes(node->plane[a + 3], corner, quantum),
                     at = _mm256_broadcast_ss(&p[a]),
                     away = _mm256_sub_ps(at, _mm256_min_ps(_mm256_max_ps(at, low), high));
        sum = _mm256_add_ps(sum, _mm256_mul_ps(away, away));
    }
    sum = _mm256_mul_ps(sum, _mm256_set1_ps(0.999999f));
    return lbvh_i_key_lanes(kind, sum, _mm256_cmp_ps(sum, _mm256_set1_ps(reach2), _CMP_NLE_UQ));
}

/* Vectors of 4 triangles, by axis. */
typedef struct lbvh_i_lanes3 { __m128 x, y, z; } lbvh_i_lanes3;

/* A point, four times. */
LBVH_I_LANES_FN lbvh_i_lanes3 lbvh_i_point_lanes(const float *at)
{
    lbvh_i_lanes3 p;
    p.x = _mm_broadcast_ss(at);
    p.y = _mm_broadcast_ss(at + 1);
    p.z = _mm_broadcast_ss(at + 2);
    return p;
}

/* A vertex of four triangles. */
LBVH_I_LANES_FN lbvh_i_lanes3 lbvh_i_corner_lanes(const float *v)
{
    lbvh_i_lanes3 a;
    a.x = _mm_loadu_ps(v);
    a.y = _mm_loadu_ps(v + 4);
    a.z = _mm_loadu_ps(v + 8);
    return a;
}

LBVH_I_LANES_FN lbvh_i_lanes3 lbvh_i_minus_lanes(lbvh_i_lanes3 a, lbvh_i_lanes3 b)
{
    a.x = _mm_sub_ps(a.x, b.x);
    a.y = _mm_sub_ps(a.y, b.y);
    a.z = _mm_sub_ps(a.z, b.z);
    return a;
}

LBVH_I_LANES_FN __m128 lbvh_i_dot_lanes(lbvh_i_lanes3 a, lbvh_i_lanes3 b)
{
    return _mm_add_ps(_mm_add_ps(lbvh_i_times_lanes(a.x, b.x), lbvh_i_times_lanes(a.y, b.y)),
                      lbvh_i_times_lanes(a.z, b.z));
}

LBVH_I_LANES_FN lbvh_i_lanes3 lbvh_i_normal_lanes(lbvh_i_lanes3 a, lbvh_i_lanes3 b)
{
    lbvh_i_lanes3 c;
    c.x = lbvh_i_cross_lanes(a.y, b.z, a.z, b.y);
    c.y = lbvh_i_cross_lanes(a.z, b.x, a.x, b.z);
    c.z = lbvh_i_cross_lanes(a.x, b.y, a.y, b.x);
    return c;
}

LBVH_I_LANES_FN lbvh_i_lanes3 lbvh_i_along_lanes(lbvh_i_lanes3 a, lbvh_i_lanes3 d, __m128 t)
{
    a.x = _mm_add_ps(a.x, lbvh_i_times_lanes(t, d.x));
    a.y = _mm_add_ps(a.y, lbvh_i_times_lanes(t, d.y));
    a.z = _mm_add_ps(a.z, lbvh_i_times_lanes(t, d.z));
    return a;
}

LBVH_I_LANES_FN lbvh_i_lanes3 lbvh_i_pick_lanes(lbvh_i_lanes3 a, lbvh_i_lanes3 b, __m128 of_b)
{
    a.x = _mm_blendv_ps(a.x, b.x, of_b);
    a.y = _mm_blendv_ps(a.y, b.y, of_b);
    a.z = _mm_blendv_ps(a.z, b.z, of_b);
    return a;
}

LBVH_I_LANES_FN __m128 lbvh_i_away2_lanes(lbvh_i_lanes3 q, lbvh_i_lanes3 p)
{
    lbvh_i_lanes3 const d = lbvh_i_minus_lanes(q, p);
    return lbvh_i_dot_lanes(d, d);
}

/* lbvh_i_closest_on_edge: the squared distance; between: not at a vertex. to_p: p - a */
LBVH_I_LANES_FN __m128 lbvh_i_edge_lanes(lbvh_i_lanes3 p, lbvh_i_lanes3 a, lbvh_i_lanes3 b,
                                         lbvh_i_lanes3 to_p, __m128 *between)
{
    lbvh_i_lanes3 const d = lbvh_i_minus_lanes(b, a);
    __m128 const along = lbvh_i_dot_lanes(d, to_p), length2 = lbvh_i_dot_lanes(d, d),
                 from_a = _mm_cmpgt_ps(along, _mm_setzero_ps()),
                 to_b = _mm_cmpge_ps(along, length2);
    lbvh_i_lanes3 q = lbvh_i_along_lanes(a, d, _mm_div_ps(along, length2));
    q = lbvh_i_pick_lanes(q, b, to_b);
    q = lbvh_i_pick_lanes(a, q, from_a);
    *between = _mm_andnot_ps(to_b, from_a);
    return lbvh_i_away2_lanes(q, p);
}

/* lbvh_i_closest_on_edges: the squared distance; between: not at a vertex. */
LBVH_I_LANES_FN __m128 lbvh_i_edges_lanes(lbvh_i_lanes3 p, lbvh_i_lanes3 a, lbvh_i_lanes3 b,
                                          lbvh_i_lanes3 c, __m128 *between)
{
    __m128 on_bc, on_ca;
    __m128 const ab = lbvh_i_edge_lanes(p, a, b, lbvh_i_minus_lanes(p, a), between),
                 bc = lbvh_i_edge_lanes(p, b, c, lbvh_i_minus_lanes(p, b), &on_bc),
                 ca = lbvh_i_edge_lanes(p, c, a, lbvh_i_minus_lanes(p, c), &on_ca),
                 least = _mm_min_ps(bc, ab);
    *between = _mm_blendv_ps(*between, on_bc, _mm_cmplt_ps(bc, ab));
    *between = _mm_blendv_ps(*between, on_ca, _mm_cmplt_ps(ca, least));
    return _mm_min_ps(ca, least);
}

/* lbvh_i_into_sliver: the squared distance to the projection, or `to_edge` where that is less. */
LBVH_I_LANES_FN __m128 lbvh_i_into_lanes(lbvh_i_lanes3 p, lbvh_i_lanes3 a, lbvh_i_lanes3 b,
                                         lbvh_i_lanes3 c, __m128 to_edge)
{
    lbvh_i_lanes3 const ab = lbvh_i_minus_lanes(b, a), ac = lbvh_i_minus_lanes(c, a),
                        ap = lbvh_i_minus_lanes(p, a);
    __m128 const zero = _mm_setzero_ps(), minus = _mm_set1_ps(-0.0f),
                 length2 = lbvh_i_dot_lanes(ab, ab),
                 foot = _mm_div_ps(lbvh_i_dot_lanes(ab, ac), length2),
                 along = _mm_div_ps(lbvh_i_dot_lanes(ab, ap), length2);
    lbvh_i_lanes3 const height = lbvh_i_along_lanes(ac, ab, _mm_xor_ps(foot, minus)),
                        above = lbvh_i_along_lanes(ap, ab, _mm_xor_ps(along, minus));
    __m128 const up = _mm_div_ps(lbvh_i_dot_lanes(height, above), lbvh_i_dot_lanes(height, height)),
                 of_b = _mm_sub_ps(along, lbvh_i_times_lanes(up, foot)),
                 inside = _mm_and_ps(_mm_and_ps(_mm_cmpgt_ps(up, zero), _mm_cmpgt_ps(of_b, zero)),
                                     _mm_cmplt_ps(_mm_add_ps(up, of_b), _mm_set1_ps(1)));
    lbvh_i_lanes3 const r = lbvh_i_along_lanes(lbvh_i_along_lanes(a, ab, of_b), ac, up);
    return _mm_blendv_ps(to_edge, _mm_min_ps(lbvh_i_away2_lanes(r, p), to_edge), inside);
}

/* lbvh_i_closest_on_sliver: the squared distance, for those lanes that are slivers; of the others
   `away2`. */
LBVH_I_AVX2 __attribute__((noinline)) static __m128 lbvh_i_sliver_lanes(const float *at,
                                                                        const float *v,
                                                                        __m128 away2, __m128 sliver,
                                                                        __m128 inside)
{
    lbvh_i_lanes3 const a = lbvh_i_corner_lanes(v), b = lbvh_i_corner_lanes(v + 12),
                        c = lbvh_i_corner_lanes(v + 24), p = lbvh_i_point_lanes(at);
    __m128 between;
    __m128 const ab = lbvh_i_away2_lanes(a, b), bc = lbvh_i_away2_lanes(b, c),
                 ca = lbvh_i_away2_lanes(c, a), to_edge = lbvh_i_edges_lanes(p, a, b, c, &between),
                 from_b = _mm_cmpge_ps(bc, ca),
                 from_a = _mm_and_ps(_mm_cmpge_ps(ab, bc), _mm_cmpge_ps(ab, ca));
    lbvh_i_lanes3 const from = lbvh_i_pick_lanes(lbvh_i_pick_lanes(c, b, from_b), a, from_a),
                        to = lbvh_i_pick_lanes(lbvh_i_pick_lanes(a, c, from_b), b, from_a),
                        apex = lbvh_i_pick_lanes(lbvh_i_pick_lanes(b, a, from_b), c, from_a);
    away2 = _mm_blendv_ps(away2, to_edge, sliver);
    return _mm_blendv_ps(away2, lbvh_i_into_lanes(p, from, to, apex, to_edge),
                         _mm_and_ps(sliver, _mm_or_ps(inside, between)));
}

/* The squared distance of lbvh_closest_on_triangle to 4 triangles. */
LBVH_I_LANES_FN __m128 lbvh_i_triangle_lanes(const float *at, const float *v)
{
    lbvh_i_lanes3 const p = lbvh_i_point_lanes(at), a = lbvh_i_corner_lanes(v),
                        b = lbvh_i_corner_lanes(v + 12), c = lbvh_i_corner_lanes(v + 24),
                        ab = lbvh_i_minus_lanes(b, a), ca = lbvh_i_minus_lanes(a, c),
                        ap = lbvh_i_minus_lanes(p, a), bp = lbvh_i_minus_lanes(p, b),
                        cp = lbvh_i_minus_lanes(p, c), normal = lbvh_i_normal_lanes(ca, ab);
    __m128 const zero = _mm_setzero_ps(),
                 edges2 = _mm_add_ps(lbvh_i_dot_lanes(ab, ab), lbvh_i_dot_lanes(ca, ca)),
                 sliver = _mm_cmplt_ps(lbvh_i_dot_lanes(normal, normal),
                                       _mm_mul_ps(lbvh_i_times_lanes(edges2, edges2),
                                                  _mm_set1_ps(LBVH_I_SLIVER))),
                 from_a = lbvh_i_dot_lanes(normal, lbvh_i_normal_lanes(bp, cp)),
                 from_b = lbvh_i_dot_lanes(normal, lbvh_i_normal_lanes(cp, ap)),
                 from_c = lbvh_i_dot_lanes(normal, lbvh_i_normal_lanes(ap, bp)),
                 total = _mm_add_ps(_mm_add_ps(from_a, from_b), from_c),
                 inside = _mm_and_ps(_mm_and_ps(_mm_cmpgt_ps(from_a, zero),
                                                _mm_cmpgt_ps(from_b, zero)),
                                     _mm_and_ps(_mm_cmpgt_ps(from_c, zero),
                                                _mm_castsi128_ps(lbvh_i_finite_lanes(total))));
    lbvh_i_lanes3 q = lbvh_i_along_lanes(a, ab, _mm_div_ps(from_b, total));
    __m128 away2, between;
    q = lbvh_i_along_lanes(q, ca, _mm_div_ps(from_c, _mm_sub_ps(zero, total)));
    away2 = lbvh_i_edges_lanes(p, a, b, c, &between);
    away2 = _mm_blendv_ps(away2, lbvh_i_away2_lanes(q, p), inside);
    if (_mm_movemask_ps(sliver)) return lbvh_i_sliver_lanes(at, v, away2, sliver, inside);
    return away2;
}

/* As lbvh_i_keep_closest, of a triangle at distance2. */
LBVH_FN void lbvh_i_keep_slot(const lbvh_wide *wide, lbvh_i_seeker *seeker, size_t slot,
                              float distance2)
{
    if (!(distance2 <= seeker->reach2) || wide->id[slot] < 0) return;
    if (!lbvh_i_slot_passes(wide, slot, LBVH_I_ANY_MASK)) return;
    if (seeker->slot != LBVH_I_NO_SLOT && distance2 == seeker->reach2 &&
        wide->id[slot] > wide->id[seeker->slot])
        return;
    seeker->reach2 = distance2;
    seeker->slot = slot;
}

/* The triangles of a block. */
LBVH_I_LANES_FN void lbvh_i_seek_block(const lbvh_wide *wide, lbvh_i_seeker *seeker, size_t block)
{
    float distance2[LBVH_WIDE_LEAF];
    __m128 const away2 = lbvh_i_triangle_lanes(seeker->p,
                                               wide->element + block * 9 * LBVH_WIDE_LEAF);
    uint32_t within =
        (uint32_t)_mm_movemask_ps(_mm_cmple_ps(away2, _mm_set1_ps(seeker->reach2)));
    _mm_storeu_ps(distance2, away2);
    for (; within; within &= within - 1) {
        int const lane = lbvh_i_lowest_bit(within);
        lbvh_i_keep_slot(wide, seeker, block * LBVH_WIDE_LEAF + (size_t)lane, distance2[lane]);
    }
}

/* One node or leaf; 0: the walk is done. */
LBVH_I_LANES_FN int lbvh_i_step_seeker(const lbvh_wide *wide, const lbvh_i_next *next,
                                       lbvh_i_seeker *seeker)
{
    uint32_t at;
    if (!lbvh_i_pop(&seeker->stack, &seeker->top, seeker->reach2, &at)) return 0;
    if (at & LBVH_I_LEAF_BIT) lbvh_i_seek_block(wide, seeker, at & ~LBVH_I_LEAF_BIT);
    else {
        const lbvh_wide_node *const node = &wide->node[at];
        __m256i const kind = lbvh_i_kind_lanes(node);
        seeker->top = lbvh_i_push_lanes(&seeker->stack, seeker->top, node, at, kind,
                                        lbvh_i_away_lanes(seeker->p, node, kind, seeker->reach2),
                                        0);
    }
    lbvh_i_prefetch(next, &seeker->stack, seeker->top);
    return 1;
}

/* The next point that can be near anything; 0: there is none. */
static int lbvh_i_begin_seeker(const lbvh_i_points *job, lbvh_i_seeker *seeker, int32_t *i,
                               int32_t end)
{
    lbvh_real point[3];
    for (; *i < end; ++*i) {
        lbvh_real const reach = lbvh_i_point_reach(job, *i);
        seeker->p = lbvh_i_at(job->points, job->stride, *i);
        seeker->closest = &job->closest[*i];
        *seeker->closest = lbvh_i_no_point();
        if (!lbvh_i_take_point(job->wide, seeker->p, point) || !(reach >= 0)) continue;
        seeker->reach2 = lbvh_i_min(lbvh_i_times(reach, reach), lbvh_i_largest());
        seeker->slot = LBVH_I_NO_SLOT;
        seeker->top = lbvh_i_push_root(&seeker->stack);
        ++*i;
        return 1;
    }
    return 0;
}

/* The search of a point ends. */
static void lbvh_i_end_seeker(const lbvh_wide *wide, const lbvh_i_seeker *seeker)
{
    lbvh_closest *closest = seeker->closest;
    if (seeker->slot == LBVH_I_NO_SLOT) return;
    closest->feature = lbvh_i_closest_in_block(wide, seeker->slot, seeker->p, closest->point);
    closest->distance2 = lbvh_i_distance2(closest->point, seeker->p);
    closest->id = wide->id[seeker->slot];
}

enum { LBVH_I_SEEKERS = 6 };

/* The same by lanes, several points in turn. */
LBVH_I_AVX2 static void lbvh_i_points_lanes(const lbvh_i_points *job, int32_t i, int32_t end)
{
    lbvh_i_next const next = lbvh_i_next_of(job->wide, 0);
    lbvh_i_seeker seeker[LBVH_I_SEEKERS], *live[LBVH_I_SEEKERS];
    int s, count = 0;
    while (count < LBVH_I_SEEKERS && lbvh_i_begin_seeker(job, &seeker[count], &i, end)) {
        live[count] = &seeker[count];
        count++;
    }
    while (count > 0)
        for (s = 0; s < count;) {
            if (lbvh_i_step_seeker(job->wide, &next, live[s])) {
                s++;
                continue;
            }
            lbvh_i_end_seeker(job->wide, live[s]);
            if (!lbvh_i_begin_seeker(job, live[s], &i, end)) live[s] = live[--count];
        }
}

#endif /* LBVH_I_AVX2 */

/* A task: a part of the points. */
static void lbvh_i_points_piece(void *context, int32_t k)
{
    const lbvh_i_points *job = (const lbvh_i_points *)context;
    int32_t const begin = (int32_t)lbvh_i_cut(job->n, job->pieces, k),
                  end = (int32_t)lbvh_i_cut(job->n, job->pieces, k + 1);
#ifdef LBVH_I_AVX2
    if (LBVH_I_HAS_AVX2()) {
        lbvh_i_points_lanes(job, begin, end);
        return;
    }
#endif
    lbvh_i_points_scalar(job, begin, end);
}

/* All points of a call, in pieces. */
static lbvh_result lbvh_i_closest_of(lbvh_i_points *job)
{
    const lbvh_wide *wide = job->wide;
    lbvh_result result = LBVH_OK;
    int32_t i;
    if (!wide || job->n < 0 || (job->n > 0 && (!job->points || !job->closest)))
        return LBVH_BAD_ARGUMENT;
    job->stride = lbvh_i_stride_of(3, job->stride);
    job->reach_stride = lbvh_i_stride_of(1, job->reach_stride);
    if (job->stride == 0 || job->reach_stride == 0) return LBVH_BAD_ARGUMENT;
    if (!(job->reach >= 0)) return LBVH_BAD_RADIUS;
    if (!wide->built || wide->numbers != 9) return LBVH_NOT_BUILT;
    job->pieces = lbvh_i_wide_pieces(wide, job->n);
    if (job->pieces == 1) lbvh_i_points_piece(job, 0);
    else result = lbvh_i_in_pieces(&wide->desc.parallel, job->pieces, lbvh_i_points_piece, job);
    if (result != LBVH_OK)
        for (i = 0; i < job->n; i++) job->closest[i] = lbvh_i_no_point();
    return result;
}

LBVH_API lbvh_result lbvh_closest_points(const lbvh_wide *wide, const lbvh_real *points,
                                         size_t stride, int32_t n, lbvh_real reach,
                                         lbvh_closest *closest)
{
    lbvh_i_points job;
    memset(&job, 0, sizeof job);
    job.wide = wide;
    job.points = points;
    job.stride = stride;
    job.n = n;
    job.reach = reach;
    job.closest = closest;
    return lbvh_i_closest_of(&job);
}

LBVH_API lbvh_result lbvh_closest_points_each(const lbvh_wide *wide, const lbvh_real *points,
                                              size_t stride, int32_t n, const lbvh_real *reaches,
                                              size_t reach_stride, lbvh_closest *closest)
{
    lbvh_i_points job;
    if (n > 0 && !reaches) return LBVH_BAD_ARGUMENT;
    memset(&job, 0, sizeof job);
    job.wide = wide;
    job.points = points;
    job.stride = stride;
    job.n = n;
    job.reaches = reaches;
    job.reach_stride = reach_stride;
    job.closest = closest;
    return lbvh_i_closest_of(&job);
}

/* ------------------------------------------------------------------------------------------------
   >>wide-overlaps: elements that overlap a box
   ---------------------------------------------------------------------------------------------- */

/* The children whose boxes touch the box of the search, as bits. */
LBVH_FN uint32_t lbvh_i_touch_children(const lbvh_overlap *o, const lbvh_wide_node *node)
{
    uint32_t met = 0;
    int a, c;
    for (c = 0; c < LBVH_WIDE; c++) {
        int touch = 1;
        for (a = 0; a < 3; a++) {
            touch &= lbvh_i_plane(node, a, c) <= o->max[a];
            touch &= lbvh_i_plane(node, a + 3, c) >= o->min[a];
        }
        met |= (uint32_t)touch << c;
    }
    return met & node->used;
}

/* A search for a box, by the rules of lbvh_overlap_box; at < 0: it finds nothing. */
LBVH_FN lbvh_overlap lbvh_i_overlap_wide(const lbvh_wide *wide, const lbvh_real *box,
                                         uint32_t filter)
{
    lbvh_overlap o = lbvh_i_overlap_of(NULL, wide->dim, wide->elements > 0 ? 0 : -1, box,
                                       box + wide->dim);
    o.filter = filter ? filter : LBVH_I_ANY_MASK;
    return o;
}

/* 1: the element is one of the search. */
LBVH_FN int lbvh_i_takes_element(const lbvh_wide *wide, const lbvh_overlap *o, size_t slot)
{
    lbvh_node box;
    if (!lbvh_i_slot_passes(wide, slot, o->filter)) return 0;
    if (!wide->numbers) return 1;
    lbvh_i_copied_box(wide, slot, &box);
    return lbvh_boxes_touch(&box, o->min, o->max);
}

/* The elements of a leaf that the search takes, after *found others. */
static void lbvh_i_overlap_leaf(const lbvh_wide *wide, const lbvh_overlap *o, uint32_t leaf,
                                int32_t *ids, int64_t capacity, int64_t *found)
{
    size_t slot;
    int32_t left = lbvh_i_leaf_slots(wide, leaf, &slot);
    for (; left > 0; left--, slot++) {
        if (!lbvh_i_takes_element(wide, o, slot)) continue;
        if (*found < capacity) ids[*found] = wide->id[slot];
        ++*found;
    }
}

LBVH_API lbvh_result lbvh_wide_overlaps(const lbvh_wide *wide, const lbvh_real *box,
                                        uint32_t filter, int32_t *ids, int64_t capacity,
                                        int64_t *needed)
{
    uint32_t stack[LBVH_WIDE_STACK + LBVH_WIDE];
    lbvh_overlap o;
    int c, top = 0;
    if (!wide || !box || !needed || capacity < 0 || (capacity > 0 && !ids))
        return LBVH_BAD_ARGUMENT;
    if (!wide->built) return LBVH_NOT_BUILT;
    *needed = 0;
    o = lbvh_i_overlap_wide(wide, box, filter);
    stack[0] = 0;
    if (o.at >= 0) top = 1;
    while (top > 0) {
        uint32_t const at = stack[--top];
        if (at & LBVH_I_LEAF_BIT)
            lbvh_i_overlap_leaf(wide, &o, at & ~LBVH_I_LEAF_BIT, ids, capacity, needed);
        else {
            const lbvh_wide_node *node = &wide->node[at];
            uint32_t const met = lbvh_i_touch_children(&o, node);
            for (c = LBVH_WIDE - 1; c >= 0; c--)
                if (met >> c & 1) stack[top++] = lbvh_i_child(node, at, c, 1);
        }
    }
    return *needed > capacity ? LBVH_BUFFER_TOO_SMALL : LBVH_OK;
}

/* ------------------------------------------------------------------------------------------------
   >>wide-validate: the leaves of a wide tree against those of the tree that it was made of
   ---------------------------------------------------------------------------------------------- */

/* The box of the tree's leaf by id; 0: there is none, or it was asked for before. */
static int lbvh_i_claim_leaf(const lbvh *tree, int32_t *place_of, int32_t id, lbvh_node *box)
{
    if (id < 0 || id >= tree->n || place_of[id] < 0) return 0;
    *box = *lbvh_i_leaf(tree, place_of[id]);
    place_of[id] = -1;
    return !lbvh_left_out(box);
}

static int lbvh_i_has_child(const lbvh_wide_node *node, int c) { return node->used >> c & 1; }

/* The box of a child, within that of its parent. */
static lbvh_node lbvh_i_within(const lbvh_node *outer, const lbvh_wide_node *node, int c)
{
    lbvh_node box = *outer;
    int a;
    for (a = 0; a < 3; a++) {
        box.min[a] = lbvh_i_max(box.min[a], lbvh_i_plane(node, a, c));
        box.max[a] = lbvh_i_min(box.max[a], lbvh_i_plane(node, a + 3, c));
    }
    return box;
}

/* The box of all space. */
static lbvh_node lbvh_i_everywhere(void)
{
    lbvh_node all;
    int a;
    memset(&all, 0, sizeof all);
    for (a = 0; a < 3; a++) {
        all.min[a] = -lbvh_i_infinity();
        all.max[a] = lbvh_i_infinity();
    }
    return all;
}

/* A leaf whose boxes above have this intersection; its elements, -1 = damage. */
static int32_t lbvh_i_check_leaf(const lbvh_wide *wide, const lbvh *tree, int32_t *place_of,
                                 uint32_t leaf, const lbvh_node *above)
{
    lbvh_node box;
    size_t slot;
    int32_t const count = lbvh_i_leaf_slots(wide, leaf, &slot);
    int32_t k;
    for (k = 0; k < count; k++)
        if (!lbvh_i_claim_leaf(tree, place_of, wide->id[slot++], &box) ||
            !lbvh_i_holds(above, &box))
            return -1;
    return count;
}

/* Visits all nodes with the intersection of the boxes above; the elements found, -1 = damage. */
static int64_t lbvh_i_check_wide(const lbvh_wide *wide, const lbvh *tree, int32_t *place_of)
{
    lbvh_node above[LBVH_WIDE_STACK + LBVH_WIDE];
    uint32_t stack[LBVH_WIDE_STACK + LBVH_WIDE];
    int64_t found = 0;
    int c, top = wide->nodes > 0;
    stack[0] = 0;
    above[0] = lbvh_i_everywhere();
    while (top > 0) {
        uint32_t const at = stack[--top];
        lbvh_node const box = above[top];
        const lbvh_wide_node *node = &wide->node[at];
        for (c = 0; c < LBVH_WIDE; c++) {
            uint32_t const child = lbvh_i_child(node, at, c, 1);
            int32_t count = 0;
            if (!lbvh_i_has_child(node, c)) continue;
            above[top] = lbvh_i_within(&box, node, c);
            if (child & LBVH_I_LEAF_BIT)
                count = lbvh_i_check_leaf(wide, tree, place_of, child & ~LBVH_I_LEAF_BIT,
                                          &above[top]);
            else stack[top++] = child;
            if (count < 0) return -1;
            found += count;
        }
    }
    return found;
}

LBVH_API lbvh_result lbvh_wide_validate(const lbvh_wide *wide, const lbvh *tree)
{
    lbvh_block block;
    int32_t *place_of, place, there = 0;
    int64_t found;
    if (!wide || !tree) return LBVH_BAD_ARGUMENT;
    if (!wide->built || !tree->built) return LBVH_NOT_BUILT;
    if (tree->n == 0) return wide->elements == 0 ? LBVH_OK : LBVH_INVALID;
    block = lbvh_i_take_block(&wide->desc.allocator, (size_t)tree->n * sizeof *place_of);
    if (!block.memory) return LBVH_OUT_OF_MEMORY;
    place_of = (int32_t *)block.memory;
    for (place = 0; place < tree->n; place++) {
        const lbvh_node *leaf = lbvh_i_leaf(tree, place);
        place_of[leaf->link] = place;
        there += !lbvh_left_out(leaf);
    }
    found = lbvh_i_check_wide(wide, tree, place_of);
    lbvh_i_release(&wide->desc.allocator, &block);
    return found == there && found == wide->elements ? LBVH_OK : LBVH_INVALID;
}

/* ------------------------------------------------------------------------------------------------
   >>wide-save: a file is as in lbvh.h, >>save. The order of nodes, leaves and elements in the
   arrays is that of the walk of >>wide-build; so a file is checked by that walk, which knows what
   must come next.
   ---------------------------------------------------------------------------------------------- */

/* What the header of a file says of a wide tree. */
typedef struct lbvh_i_wide_facts {
    int32_t dim, nodes, leaves, elements, numbers, flags, leaf; /* 1: masks; 2: piles */
} lbvh_i_wide_facts;

/* The header, and the arrays in the order of the file; 0: the sizes are beyond a size_t. */
static int lbvh_i_wide_header_of(const lbvh_wide *wide, lbvh_i_header *header,
                                 size_t bytes[LBVH_BLOCKS])
{
    lbvh_i_wide_facts facts;
    int b;
    facts.dim = wide->dim;
    facts.nodes = wide->nodes;
    facts.leaves = wide->leaves;
    facts.elements = wide->elements;
    facts.numbers = wide->numbers;
    facts.flags = (wide->mask ? 1 : 0) + (wide->piles ? 2 : 0);
    facts.leaf = wide->desc.leaf;
    *header = lbvh_i_begin_header("lbvhw.h\n");
    memcpy(header->of.part, &facts, sizeof facts);
    if (lbvh_i_wide_array_bytes(wide->numbers, wide->mask != NULL, wide->nodes, wide->leaves,
                                wide->elements, bytes) != LBVH_OK)
        return 0;
    for (b = 0; b < LBVH_BLOCKS; b++) header->bytes += bytes[b];
    return 1;
}

/* The arrays in the order of the file: nodes, ids, masks, elements. */
static void lbvh_i_wide_arrays_of(const lbvh_wide *wide, const size_t bytes[LBVH_BLOCKS],
                                  lbvh_block array[LBVH_BLOCKS])
{
    int b;
    for (b = 0; b < LBVH_BLOCKS; b++) {
        array[b].memory = wide->block[b].memory;
        array[b].bytes = bytes[b];
    }
}

LBVH_API lbvh_result lbvh_wide_save(const lbvh_wide *wide, void *bytes, int64_t capacity,
                                    int64_t *needed)
{
    lbvh_i_header header;
    lbvh_block array[LBVH_BLOCKS];
    size_t sizes[LBVH_BLOCKS];
    if (!wide || !needed || capacity < 0 || (capacity > 0 && !bytes)) return LBVH_BAD_ARGUMENT;
    *needed = 0;
    if (!wide->built) return LBVH_NOT_BUILT;
    if (!lbvh_i_wide_header_of(wide, &header, sizes)) return LBVH_OUT_OF_MEMORY;
    lbvh_i_wide_arrays_of(wide, sizes, array);
    return lbvh_i_write_file(header, array, bytes, capacity, needed);
}

/* 1 if the header is one that lbvh_wide_save makes, for this many bytes; then *shape has its
   numbers, and bytes the sizes of the arrays. */
static int lbvh_i_wide_header_valid(const lbvh_i_header *header, int64_t size, lbvh_wide *shape,
                                    size_t bytes[LBVH_BLOCKS])
{
    static uint32_t some_masks;
    lbvh_i_header expected;
    lbvh_i_wide_facts facts;
    memcpy(&facts, header->of.part, sizeof facts);
    memset(shape, 0, sizeof *shape);
    shape->dim = facts.dim;
    shape->nodes = facts.nodes;
    shape->leaves = facts.leaves;
    shape->elements = facts.elements;
    shape->numbers = facts.numbers;
    shape->desc.leaf = facts.leaf;
    shape->desc.copy = shape->numbers > 0;
    shape->mask = facts.flags & 1 ? &some_masks : NULL;
    shape->piles = facts.flags >> 1 & 1;
    if (shape->dim != 2 && shape->dim != 3) return 0;
    if (shape->numbers != 0 && shape->numbers != 6 && (shape->numbers != 9 || shape->dim != 3))
        return 0;
    if (shape->nodes < 0 || shape->leaves < 0 || shape->elements < 0 ||
        shape->nodes > LBVH_I_N_MAX || shape->leaves > LBVH_I_N_MAX ||
        shape->elements > LBVH_I_N_MAX)
        return 0;
    if (shape->desc.leaf < 1 || shape->desc.leaf > LBVH_WIDE_LEAF) return 0;
    if (shape->mask && shape->elements == 0) return 0;
    return lbvh_i_wide_header_of(shape, &expected, bytes) &&
           lbvh_i_same_header(expected, header, size);
}

/* Where the checking walk is: what must come next in the arrays. */
typedef struct lbvh_i_inspection {
    const lbvh_wide *wide;
    uint32_t nodes, leaves, elements;
} lbvh_i_inspection;

/* Corner, exponents and planes decode to numbers; children that are not there have no box. */
static int lbvh_i_planes_valid(const lbvh_wide_node *node)
{
    lbvh_real const most = LBVH_I_REAL_KIND == 1 ? (lbvh_real)16777216
                                                 : (lbvh_real)9007199254740992.0;
    int const top = LBVH_I_REAL_KIND == 1 ? 254 : 2046;
    int a, c;
    for (a = 0; a < 3; a++) {
        lbvh_real const corner = node->corner[a];
        if (!lbvh_i_finite(corner) || corner < -most || corner > most) return 0;
        if (lbvh_i_floor((double)corner) != (double)corner) return 0;
        if (node->exponent[a] < 1 || node->exponent[a] > top) return 0;
        for (c = 0; c < LBVH_WIDE; c++) {
            int const low = node->plane[a][c], high = node->plane[a + 3][c];
            if (lbvh_i_has_child(node, c) ? low > high : low != 255 || high != 0) return 0;
        }
    }
    return 1;
}

/* The slots of a leaf: `count` elements inside the box, and nothing in the rest of a block. */
static int lbvh_i_slots_valid(const lbvh_wide *wide, size_t slot, int32_t count,
                             const lbvh_node *above)
{
    int32_t const slots = wide->numbers ? LBVH_WIDE_LEAF : count;
    int32_t s;
    int k;
    for (s = 0; s < slots; s++, slot++) {
        lbvh_real number[9];
        lbvh_node box;
        if (wide->numbers) lbvh_i_copied_numbers(wide, slot, number);
        if (s < count) {
            if (wide->id[slot] < 0 || wide->id[slot] > LBVH_I_N_MAX) return 0;
            if (!wide->numbers) continue;
            lbvh_i_copied_box(wide, slot, &box);
            for (k = 0; k < wide->numbers; k++) if (!lbvh_i_finite(number[k])) return 0;
            if (lbvh_left_out(&box) || !lbvh_i_holds(above, &box)) return 0;
        } else {
            if (wide->id[slot] != -1 || (wide->mask && wide->mask[slot] != 0)) return 0;
            for (k = 0; k < wide->numbers; k++) if (!(number[k] == 0)) return 0;
        }
    }
    return 1;
}

/* One node, as lbvh_i_make_node makes it; its leaves are counted. *inner: its inner children. */
static int lbvh_i_wide_node_valid(lbvh_i_inspection *walk, const lbvh_wide_node *node,
                             const lbvh_node *above, uint32_t *inner)
{
    const lbvh_wide *wide = walk->wide;
    uint32_t const first = wide->numbers ? walk->leaves : walk->elements, used = node->used;
    int c;
    *inner = 0;
    if (node->child != walk->nodes || node->first != first) return 0;
    if (used == 0 || (used & (used + 1)) != 0 || used > 255) return 0;
    if (!lbvh_i_planes_valid(node)) return 0;
    for (c = 0; c < LBVH_WIDE; c++) {
        uint32_t const kind = node->kind[c], count = kind >> 5,
                       next = wide->numbers ? walk->leaves : walk->elements;
        lbvh_node const box = lbvh_i_within(above, node, c);
        if (!lbvh_i_has_child(node, c)) {
            if (kind != 0) return 0;
        } else if (kind >= LBVH_I_INNER) {
            if (kind != LBVH_I_INNER + (*inner)++) return 0;
        } else {
            size_t const slot = (size_t)next * (wide->numbers ? LBVH_WIDE_LEAF : 1);
            if (count < 1 || count > (uint32_t)wide->desc.leaf || (kind & 31) != next - first)
                return 0;
            if (walk->leaves >= (uint32_t)wide->leaves ||
                walk->elements + count > (uint32_t)wide->elements)
                return 0;
            if (!lbvh_i_slots_valid(wide, slot, (int32_t)count, &box)) return 0;
            walk->leaves++;
            walk->elements += count;
        }
    }
    return 1;
}

/* All nodes, in the order of lbvh_i_collapse_all. */
static int lbvh_i_wide_valid(const lbvh_wide *wide)
{
    lbvh_node above[LBVH_WIDE_STACK + LBVH_WIDE];
    uint32_t number[LBVH_WIDE_STACK + LBVH_WIDE], inner;
    int32_t level[LBVH_WIDE_STACK + LBVH_WIDE];
    lbvh_i_inspection walk;
    int c, top = wide->nodes > 0;
    memset(&walk, 0, sizeof walk);
    walk.wide = wide;
    walk.nodes = (uint32_t)top;
    number[0] = 0;
    level[0] = 0;
    above[0] = lbvh_i_everywhere();
    while (top > 0) {
        lbvh_node const box = above[--top];
        const lbvh_wide_node *node = &wide->node[number[top]];
        int32_t const depth = level[top];
        if (depth >= LBVH_STACK - 1 || !lbvh_i_wide_node_valid(&walk, node, &box, &inner)) return 0;
        if (inner > (uint32_t)wide->nodes - walk.nodes) return 0;
        for (c = 0; c < LBVH_WIDE; c++) {
            if (!lbvh_i_has_child(node, c) || node->kind[c] < LBVH_I_INNER) continue;
            above[top] = lbvh_i_within(&box, node, c);
            level[top] = depth + 1;
            number[top++] = walk.nodes++;
        }
    }
    return walk.nodes == (uint32_t)wide->nodes && walk.leaves == (uint32_t)wide->leaves &&
           walk.elements == (uint32_t)wide->elements;
}

LBVH_API lbvh_result lbvh_wide_load(lbvh_wide *wide, const lbvh_wide_desc *desc, const void *bytes,
                                    int64_t size)
{
    lbvh_wide_desc given;
    lbvh_i_header header;
    lbvh_wide shape;
    lbvh_block array[LBVH_BLOCKS];
    size_t sizes[LBVH_BLOCKS];
    lbvh_result result;
    if (!wide) return LBVH_BAD_ARGUMENT;
    memset(&given, 0, sizeof given);
    if (desc) given.allocator = desc->allocator;
    if (desc) given.cuda_allocator = desc->cuda_allocator;
    if (desc) given.parallel = desc->parallel;
    result = lbvh_i_wide_begin(wide, &given);
    if (result != LBVH_OK) return result;
    if (size < 0 || (size > 0 && !bytes)) return LBVH_BAD_ARGUMENT;
    if ((uint64_t)size < sizeof header) return LBVH_BAD_FILE;
    memcpy(&header, bytes, sizeof header);
    if (!lbvh_i_wide_header_valid(&header, size, &shape, sizes)) return LBVH_BAD_FILE;
    result = lbvh_i_wide_prepare(wide, sizes);
    if (result != LBVH_OK) return result;
    given.leaf = shape.desc.leaf;
    given.copy = shape.desc.copy;
    shape.desc = given;
    memcpy(shape.block, wide->block, sizeof shape.block);
    lbvh_i_wide_bind(&shape, wide->block, shape.mask != NULL);
    lbvh_i_wide_arrays_of(&shape, sizes, array);
    if (!lbvh_i_read_file(header, array, bytes) || !lbvh_i_wide_valid(&shape))
        return LBVH_BAD_FILE;
    *wide = shape;
    wide->built = 1;
    return LBVH_OK;
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
} /* extern "C" */
#endif

#ifdef LBVH_CUDA
#include "../cuda/lbvh_wide.cu"
#endif

#endif /* LBVH_WIDE_IMPLEMENTATION_DONE */

/* Licence: MIT or Unlicense, as in lbvh.h, >>licence. */
