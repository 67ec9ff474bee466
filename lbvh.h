/* lbvh.h - v0.1.0 - linear bounding volume hierarchies (LBVH) in 2D and 3D, in C99 and CUDA.
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   A binary tree of axis-aligned bounding boxes (AABBs) over boxes, points, spheres or triangles.
   The elements are sorted by Morton code, and the tree follows from the common prefixes of the
   codes: a build is O(n). Two builders make the same tree: bottom-up (Apetrei) and top-down
   (Karras). A third one, PLOC, merges by area: a better tree for triangles of mixed sizes.

   Searches: boxes that overlap a box or come within a radius of a point; all overlapping pairs,
   each once; lists of overlaps in CSR form for many queries at once; rays; the k nearest elements.
   Exact tests for triangles: watertight ray-triangle intersection, closest point with its feature.
   Also: refit after motion, tree rotations, filter masks, save and load, quality measures, a
   checker of the structure.

   lbvh_world (>>world) keeps objects that come, move, sleep and go: the broad phase of a game or a
   simulation, with pairs that last, events, filters and casts.

   lbvh_wide (>>wide) is a finished tree, collapsed to nodes of 8 children in a fifth of the memory:
   for rays in bulk, closest points on meshes, and trees that are searched often.

   Searches by iterators work in plain C and in kernels alike. The serial code is the reference for
   CUDA: both give the same bits. CUDA calls take a stream and do not wait, unless they say so.

   >>contents: the banners in order; search for >> and the name

       manual          use, example, options, rules, method, limits, not-here, changes
       declarations    strict-math, config, results, parallel, desc, tree, api, cuda-api
       per element     numbers, elements, codes, nodes, overlap, near, ray, triangles,
                       queries, stb_ds, clusters
       worlds          world, world-overlap, world-cast, world-near
       wide trees      wide
       kernels         cuda-templates
       serial          memory, resolve, sort, build, refit, packets, pairs, queries-serial,
                       validate, measure, save
       better trees    ploc, rotations, top
       worlds          world-memory, world-trees, world-pairs, round-casts, world-calls,
                       world-update, world-validate
       in tasks        parallel-run, parallel-search, nearest-rows, parallel-build,
                       parallel-world
       wide trees      wide-build, wide-rays, wide-lanes, wide-trace, wide-packs, wide-hits,
                       wide-near, wide-points, wide-overlaps, wide-validate, wide-save
       CUDA            cuda/lbvh.cu, with a list of its own
       end             licence

   >>use

   In one C or C++ file:             #define LBVH_IMPLEMENTATION
                                     #include "lbvh.h"
   everywhere else:                  #include "lbvh.h"
   on the GPU, in one .cu file:      #define LBVH_IMPLEMENTATION
                                     #define LBVH_CUDA
                                     #include "lbvh.h"           (needs cuda/lbvh.cu beside it)
   and in every file that calls it:  #define LBVH_CUDA before the include
                                     (C files too: they need no CUDA header)

   Build: cc -O3 program.c          GPU: nvcc -O3 -arch=native program.cu
   A compiler may fuse a product with a sum (gcc with -march=native or for ARM) or keep more digits
   (32-bit x86). Then add -ffp-contract=off, or -msse2 -mfpmath=sse: else results can differ in the
   last bit. Under -ffast-math (-Ofast, /fp:fast) pragmas compile this file without it. The results
   are the same, except that denormals count as zero where the flag links a start file that says
   so. clang with FMA: add -ffp-contract=off after the flag. nvcc's -use_fast_math flushes denormals
   on the GPU and breaks the promise of equal bits.

   >>example: compiles as it stands

       #define LBVH_IMPLEMENTATION
       #include "lbvh.h"
       #include <stdio.h>

       int main(void)
       {                    // min x y z, max x y z
           float boxes[] = {0, 0, 0,  2, 2, 2,     1, 1, 1,  3, 3, 3,     8, 8, 8,  9, 9, 9};
           float window[] = {0, 0, 0,  1, 1, 1}, mouse[] = {8.5f, 8.5f, 0}, ahead[] = {0, 0, 1};
           lbvh tree = {0};
           lbvh_overlap o;
           lbvh_ray ray;
           int64_t pairs;
           lbvh_result r = lbvh_build(&tree, NULL, boxes, 0, 3);
           if (r != LBVH_OK) { puts(lbvh_result_text(r)); return 1; }
           o = lbvh_overlap_box(&tree, window);
           while (lbvh_next(&o)) printf("box %d is in the window\n", o.id);
           ray = lbvh_ray_cast(&tree, mouse, ahead, 100);
           while (lbvh_next_ray(&ray)) {         // nearer boxes first, as a rule:
               printf("box %d is ahead, at %g\n", ray.id, ray.t);
               ray.t_max = ray.t;                // test what is in them, and shorten the ray
           }
           lbvh_count_pairs(&tree, &pairs);      // overlapping boxes, each pair once
           lbvh_free(&tree);
           return pairs == 1 ? 0 : 1;
       }

   >>options

       name                  default   where              meaning
       LBVH_IMPLEMENTATION   -         one file           makes the functions
       LBVH_CUDA             -         all files, or none adds the GPU functions
       LBVH_STATIC           -         each file          functions are static, one copy per file
       LBVH_API              extern    all files          linkage of the functions, e.g. dllexport
       LBVH_REAL             float     all files          float or double; a program that mixes them
                                                          does not link
       LBVH_PLAIN_LANES      -         one file           no AVX2

   >>rules

   Memory   Of the calls for a tree, only lbvh_build, lbvh_reserve, lbvh_load, lbvh_split_top,
            lbvh_nearest_rows, lbvh_validate and lbvh_verify allocate, by desc.allocator. (Worlds,
            wide trees and lbvh_cuda_...: >>world, >>wide, >>cuda-api.) Memory is kept: after
            lbvh_reserve(n), builds up to n allocate nothing. The first build and lbvh_reserve take
            exactly the bytes below. An array that is too small for a later build becomes half as
            large again, or as large as needed if that is more.
            a leaf    65 (float: two nodes of 32, a prefix of 1; Kureck section 3.3 counts 64,
                      without the boxes of the leaves); double 129. 8 more with masks, 8 more with
                      keep_codes or a builder other than MERGE
            CUDA      work space, a leaf: 26, 18 with codes of 30 bits, 12 more for LBVH_SPLIT, 24
                      more for lbvh_cuda_optimize, 44 more for lists of pairs; 16 a query of your
                      own, and 196 a query of a list (none beyond 2 GiB of them: lists then take
                      twice as long). For the sort: 16 more for each of the first 1.6M leaves or
                      queries (24 with codes of 30 bits, and for queries; fewer of them on small
                      GPUs); beyond, what CUB asks for
            a world   about 420 an object, 40 and twice desc.pair_bytes a pair (float); its arrays
                      double, in lbvh_world_insert and, for pairs, in lbvh_world_update. With
                      desc.parallel 36 and 16 more, and 72 KB for each piece of an update
            stack     45 KB for searches in bulk (70 KB for double); 60 KB for a call with
                      desc.parallel, or a build by LBVH_PLOC and its tasks (100 KB); 110 KB where it
                      is both (150 KB); 1 KB for a ray or a nearest walk
   Threads  No global state. Any number of threads may search one tree; one at a time may build or
            refit it. One call uses many threads, yours, through desc.parallel (>>parallel).
   Errors   Every function that can fail returns a lbvh_result; lbvh_result_text names the field to
            change. Nothing is printed, nothing aborts, nothing is truncated silently: where
            something did not fit, the exact size needed is returned.
   Built    A call that reads a tree returns LBVH_NOT_BUILT where there is none: before the first
            build (load, upload, download), and after lbvh_reserve, lbvh_free and a refused build.
            A tree over n = 0 elements is built: searches find nothing in it. The walks return no
            result code; without a tree they find nothing.
   Boxes    Closed: boxes that touch overlap, and a box at exactly the radius is within it. Units
            are those of your input; radii are distances, not squares; t of a ray is in lengths of
            its direction.
   Ids      int32_t, 0 .. n-1 in the order of your array. Totals and offsets are int64_t. A place is
            the index of a leaf, in Morton order (LBVH_PLOC: depth first): leaf k is node
            first_leaf + k, and its link is the id.
   Bits     The serial code and CUDA make the same tree and the same answers, bit for bit. MERGE and
            SPLIT make the same tree. PLOC makes another: it finds the same, in another order.

   >>method

   Leaves are the AABBs of the elements, sorted by the Morton codes of their centres (>>codes has a
   figure). The root covers all leaves. An inner node covers a range of leaves, and is split where
   the highest differing bit of their codes turns from 0 to 1 (Karras; >>nodes has a figure). Equal
   codes are told apart by their places, as if those were appended to the codes (Kureck equation
   3.3). A node has two links: `link` to its left child, `skip` to the node that follows its
   subtree. With them a walk needs no stack (>>nodes). Searches in bulk use packet traversal
   (>>packets, here and in cuda/lbvh.cu). examples/lbvh_steps.c prints all of this for points of
   your choice.

   LBVH_PLOC merges by area instead, and hands the same arrays to the same walks (>>ploc).

   To learn it from this file, read >>codes, >>nodes and >>sort, of >>build lbvh_i_split (top-down)
   and then lbvh_i_merge, and >>overlap. All else builds on these.

   Sources  Karras:  T. Karras, Maximizing Parallelism in the Construction of BVHs, Octrees, and k-d
                     Trees, HPG 2012; and his posts Thinking Parallel I to III, NVIDIA developer
                     blog, 2012.
            Apetrei: C. Apetrei, Fast and Simple Agglomerative LBVH Construction, CGVC 2014.
            Kureck:  H. G. Kureck, Design and Implementation of Massively Parallel Algorithms on
                     GPUs for Particle Simulation, master's thesis, TU Graz 2016, section 3.1.
            Prokopenko: A. Prokopenko, D. Lebrun-Grandie, Revising Apetrei's bounding volume
                     hierarchy construction algorithm to allow stackless traversal, 2024 (the skip
                     links).
            Meister: D. Meister, J. Bittner, Parallel Locally-Ordered Clustering for Bounding
                     Volume Hierarchy Construction, IEEE TVCG 2018 (>>ploc).
            Benthin: C. Benthin, D. Meister, J. Barczak, R. Mehalwal, J. Tsakok, A. Kensler, H-PLOC:
                     Hierarchical Parallel Locally-Ordered Clustering for BVH Construction, HPG 2024
                     (>>ploc).
            Ericson: C. Ericson, Real-Time Collision Detection, 2005.
            Ylitie:  H. Ylitie, T. Karras, S. Laine, Efficient Incoherent Ray Traversal on GPUs
                     Through Compressed Wide BVHs, HPG 2017 (>>wide).
            Kensler: A. Kensler, Tree Rotations for Improving Bounding Volume Hierarchies, IEEE
                     Symposium on Interactive Ray Tracing 2008 (>>rotations).
            Kopta:   D. Kopta, T. Ize, J. Spjut, E. Brunvand, A. Davis, A. Kensler, Fast, Effective
                     BVH Updates for Animated Scenes, I3D 2012 (>>rotations).
            Ize:     T. Ize, Robust BVH Ray Traversal, JCGT 2013.
            Woop:    S. Woop, C. Benthin, I. Wald, Watertight Ray/Triangle Intersection, JCGT 2013.

   >>limits

   n up to 2^30 - 512; 2^28 objects, and pairs, in a world. Depth: a node has more common bits than
   its parent, so at most 63 bits of code + 30 of place = 93 inner nodes are above a leaf, whatever
   the input (LBVH_PLOC: 93 too, or the tree of MERGE; >>rotations: 93 too). Walks that keep a stack
   (rays, nearest) push one node for each of them, and one more: the LBVH_STACK = 94 entries cannot
   overflow (the 64 of Kureck section 3.1.6 can). NaN and infinite numbers, inverted boxes and
   negative radii are refused with the index of the first (desc.skip_invalid: left out; CUDA: left
   out, and reported by lbvh_cuda_check). Squared distances must be representable: radii below 1e-19
   and distances above 1e19 (float) lose their meaning.

   >>not-here

   Full surface-area builders, instances, motion blur (ray tracers have them); periodic boxes
   (search again with the box moved by a period; lists of nlist.h do so); neighbours of particles of
   equal size (ugrid.h is faster); file formats, threads, timers.

   >>changes

   0.2.0  lbvh_world: a broad phase; pairs of sparse boxes faster; threads; lbvh_wide; LBVH_PLOC;
          lbvh_optimize; lbvh_split_top; lbvh_nearest_rows
   0.1.0  first version
*/

/* ------------------------------------------------------------------------------------------------
   >>strict-math: -ffast-math and its parts (-Ofast, -ffinite-math-only, /fp:fast ...): this file is
   compiled without them. From here to the end of the file the compiler respects NaN, infinity and
   the order of roundings; after it the caller's options hold again.
   ---------------------------------------------------------------------------------------------- */
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0) ||       \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) ||                               \
    defined(__NO_SIGNED_ZEROS__) || defined(_M_FP_FAST)
#define LBVH_I_FAST_MATH
#if defined(__clang__) && __clang_major__ >= 11 && !defined(__wasm__) &&                           \
    (defined(__i386__) || defined(__x86_64__) || defined(_M_X64) || defined(__s390x__) ||          \
     defined(__powerpc64__) || __clang_major__ >= 16)
#define LBVH_I_STRICT_CLANG
#if defined(__FMA__) || !(defined(__i386__) || defined(__x86_64__) || defined(_M_X64))
#define LBVH_I_KEEP_BY_ASM
#endif
#pragma float_control(push)
#pragma float_control(precise, on)
#pragma clang fp contract(off)
#elif defined(_MSC_VER) && !defined(__clang__)
#define LBVH_I_STRICT_MSVC
#pragma float_control(precise, on, push)
#pragma fp_contract(off)
#elif defined(__GNUC__) && !defined(__clang__) && !defined(__INTEL_COMPILER) && \
    !defined(__NVCOMPILER)
#define LBVH_I_STRICT_GCC
#if __GNUC__ >= 12 && !defined(__NVCC__)
#define LBVH_I_KEEP_BY_BARRIER
#elif !defined(__CUDA_ARCH__)
#define LBVH_I_KEEP_BY_ASM
#endif
#ifdef __NVCC__
#pragma nv_diag_push
#pragma nv_diag_suppress 1675 /* nvcc passes the next lines to gcc, and warns */
#endif
#pragma GCC push_options
#pragma GCC optimize("no-fast-math", "no-unsafe-math-optimizations", "no-finite-math-only")
#pragma GCC optimize("no-associative-math", "no-reciprocal-math", "signed-zeros")
#pragma GCC optimize("trapping-math", "fp-contract=off")
#ifdef __NVCC__
#pragma nv_diag_pop
#endif
#elif defined(LBVH_IMPLEMENTATION)
#error "lbvh.h: with this compiler, compile the file with LBVH_IMPLEMENTATION without -ffast-math"
#endif
#endif

#ifndef LBVH_H
#define LBVH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LBVH_VERSION_MAJOR 0
#define LBVH_VERSION_MINOR 1
#define LBVH_VERSION_PATCH 0

/* ------------------------------------------------------------------------------------------------
   >>config: compile-time choices (the table of >>options says where each must be defined)
   ---------------------------------------------------------------------------------------------- */

#ifndef LBVH_REAL
#define LBVH_REAL float
#endif

/* 1 for float, 2 for double: numbers that the preprocessor can compare. */
#define LBVH_I_REAL_float  1
#define LBVH_I_REAL_double 2
#define LBVH_I_PASTE(a, b) a##b
#define LBVH_I_KIND_OF(real) LBVH_I_PASTE(LBVH_I_REAL_, real)
#define LBVH_I_REAL_KIND LBVH_I_KIND_OF(LBVH_REAL)

#if LBVH_I_REAL_KIND != 1 && LBVH_I_REAL_KIND != 2
#error "lbvh.h: LBVH_REAL must be float or double"
#endif

#if defined(LBVH_IMPLEMENTATION) && defined(LBVH_CUDA) && !defined(__CUDACC__)
#error "lbvh.h: LBVH_IMPLEMENTATION with LBVH_CUDA needs nvcc: put both into one .cu file"
#endif

#ifndef LBVH_API
#ifdef LBVH_STATIC
#if defined(__GNUC__) || defined(__clang__)
#define LBVH_API __attribute__((unused)) static
#else
#define LBVH_API static inline
#endif
#else
#define LBVH_API extern
#endif
#endif

/* Functions of one element, the same text on both sides: `static inline` in C, and under nvcc also
   for the device. LBVH_FN_WALK: those of a caller's innermost loop. gcc does not inline functions
   that keep NaN and the order of roundings into a file with -ffast-math, except by force. Forced,
   they are compiled with the caller's options, and keep the order by lbvh_i_kept. */
#ifdef __CUDACC__
#include <cuda_runtime.h>
#if defined(LBVH_I_FAST_MATH) && !defined(__CUDA_ARCH__)
#define LBVH_FN static __host__ __device__ inline
#else
#define LBVH_FN static __host__ __device__ __forceinline__
#endif
#define LBVH_FN_WALK static __host__ __device__ __forceinline__
#define LBVH_FN_HOT LBVH_FN
#define LBVH_ALIGN_NODE __align__(16)
#else
#define LBVH_FN static inline
#ifdef LBVH_I_STRICT_GCC
#define LBVH_FN_WALK static inline __attribute__((always_inline))
#else
#define LBVH_FN_WALK static inline
#endif
#if defined(__GNUC__) || defined(__clang__)
/* forced: else clang 14 takes 118 ms instead of 74 for a build of 1M boxes */
#define LBVH_FN_HOT static inline __attribute__((always_inline))
#else
#define LBVH_FN_HOT static inline
#endif
#define LBVH_ALIGN_NODE
#endif

/* For gcc at -O2. It does not unroll a loop over three axes: LBVH_I_UNROLL asks for it. gcc 12
   unrolls a longer loop of constant length before it looks for vectors, and then finds none:
   LBVH_I_KEEP_LOOP forbids that. */
#if defined(__GNUC__) && __GNUC__ >= 8 && !defined(__clang__) && !defined(__INTEL_COMPILER) && \
    !defined(__CUDACC__)
#define LBVH_I_UNROLL _Pragma("GCC unroll 3")
#define LBVH_I_KEEP_LOOP _Pragma("GCC unroll 1")
#else
#define LBVH_I_UNROLL
#define LBVH_I_KEEP_LOOP
#endif

/* In a double build every function gets a second name. A program that mixes float and double builds
   then does not link, instead of computing wrong results. */
#if LBVH_I_REAL_KIND == 2
#define lbvh_version            lbvh_f64_version
#define lbvh_result_text        lbvh_f64_result_text
#define lbvh_defaults           lbvh_f64_defaults
#define lbvh_reserve            lbvh_f64_reserve
#define lbvh_bytes_for          lbvh_f64_bytes_for
#define lbvh_build              lbvh_f64_build
#define lbvh_refit              lbvh_f64_refit
#define lbvh_optimize           lbvh_f64_optimize
#define lbvh_split_top          lbvh_f64_split_top
#define lbvh_free               lbvh_f64_free
#define lbvh_bytes              lbvh_f64_bytes
#define lbvh_validate           lbvh_f64_validate
#define lbvh_verify             lbvh_f64_verify
#define lbvh_measure            lbvh_f64_measure
#define lbvh_save               lbvh_f64_save
#define lbvh_load               lbvh_f64_load
#define lbvh_boxes              lbvh_f64_boxes
#define lbvh_count_pairs        lbvh_f64_count_pairs
#define lbvh_pairs              lbvh_f64_pairs
#define lbvh_each_pair          lbvh_f64_each_pair
#define lbvh_count_overlaps     lbvh_f64_count_overlaps
#define lbvh_overlaps           lbvh_f64_overlaps
#define lbvh_nearest            lbvh_f64_nearest
#define lbvh_world_begin             lbvh_f64_world_begin
#define lbvh_world_free              lbvh_f64_world_free
#define lbvh_world_insert            lbvh_f64_world_insert
#define lbvh_world_move              lbvh_f64_world_move
#define lbvh_world_stay              lbvh_f64_world_stay
#define lbvh_world_remove            lbvh_f64_world_remove
#define lbvh_world_set_state         lbvh_f64_world_set_state
#define lbvh_world_set_filter        lbvh_f64_world_set_filter
#define lbvh_i_test_pairs            lbvh_f64_i_test_pairs
#define lbvh_i_cast_touches          lbvh_f64_i_cast_touches
#define lbvh_world_update            lbvh_f64_world_update
#define lbvh_world_id                lbvh_f64_world_id
#define lbvh_world_index             lbvh_f64_world_index
#define lbvh_world_find_pair         lbvh_f64_world_find_pair
#define lbvh_world_validate          lbvh_f64_world_validate
#define lbvh_box_of_doubles      lbvh_f64_box_of_doubles
#define lbvh_wide_build         lbvh_f64_wide_build
#define lbvh_wide_bytes_for     lbvh_f64_wide_bytes_for
#define lbvh_wide_free          lbvh_f64_wide_free
#define lbvh_wide_bytes         lbvh_f64_wide_bytes
#define lbvh_wide_validate      lbvh_f64_wide_validate
#define lbvh_wide_save          lbvh_f64_wide_save
#define lbvh_wide_load          lbvh_f64_wide_load
#define lbvh_closest_hits       lbvh_f64_closest_hits
#define lbvh_any_hits           lbvh_f64_any_hits
#define lbvh_wide_nearest       lbvh_f64_wide_nearest
#define lbvh_closest_points     lbvh_f64_closest_points
#define lbvh_nearest_rows       lbvh_f64_nearest_rows
#define lbvh_wide_overlaps      lbvh_f64_wide_overlaps
#define lbvh_cuda_reserve           lbvh_f64_cuda_reserve
#define lbvh_cuda_bytes_for         lbvh_f64_cuda_bytes_for
#define lbvh_cuda_build             lbvh_f64_cuda_build
#define lbvh_cuda_refit             lbvh_f64_cuda_refit
#define lbvh_cuda_optimize          lbvh_f64_cuda_optimize
#define lbvh_cuda_check             lbvh_f64_cuda_check
#define lbvh_cuda_free              lbvh_f64_cuda_free
#define lbvh_cuda_upload            lbvh_f64_cuda_upload
#define lbvh_cuda_download          lbvh_f64_cuda_download
#define lbvh_cuda_boxes             lbvh_f64_cuda_boxes
#define lbvh_cuda_count_pairs       lbvh_f64_cuda_count_pairs
#define lbvh_cuda_pairs             lbvh_f64_cuda_pairs
#define lbvh_cuda_count_overlaps    lbvh_f64_cuda_count_overlaps
#define lbvh_cuda_overlaps          lbvh_f64_cuda_overlaps
#define lbvh_cuda_nearest           lbvh_f64_cuda_nearest
#define lbvh_cuda_wide_reserve     lbvh_f64_cuda_wide_reserve
#define lbvh_cuda_wide_build       lbvh_f64_cuda_wide_build
#define lbvh_cuda_wide_upload      lbvh_f64_cuda_wide_upload
#define lbvh_cuda_wide_download    lbvh_f64_cuda_wide_download
#define lbvh_cuda_wide_free        lbvh_f64_cuda_wide_free
#define lbvh_cuda_wide_nearest     lbvh_f64_cuda_wide_nearest
#define lbvh_cuda_wide_overlaps    lbvh_f64_cuda_wide_overlaps
#define lbvh_cuda_closest_hits      lbvh_f64_cuda_closest_hits
#define lbvh_cuda_any_hits          lbvh_f64_cuda_any_hits
#define lbvh_cuda_closest_points    lbvh_f64_cuda_closest_points
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------
   >>results: codes and their texts
   ---------------------------------------------------------------------------------------------- */

/* One list makes the codes and their texts. */
#define LBVH_RESULTS(X)                                                                            \
    X(LBVH_OK, "all is well")                                                                      \
    X(LBVH_STOPPED, "the callback returned non-zero and so ended the search")                      \
    X(LBVH_BAD_ARGUMENT, "a pointer is NULL, a count is negative, or stride, in bytes, is "        \
                         "neither 0 nor a multiple of sizeof(LBVH_REAL), of one element's "        \
                         "bytes at least")                                                         \
    X(LBVH_BAD_DIM, "desc.dim must be 2 or 3 (0 means 3)")                                         \
    X(LBVH_BAD_OPTION, "an enum or a flag has a value that does not exist, desc.bits is "          \
                       "not 30 or 63, desc.parallel.tasks is not 0 .. 1024, or the search does "   \
                       "not take this queries.kind or flag")                                       \
    X(LBVH_BAD_BOUNDS, "desc.min must be at most desc.max on every axis, both finite (all "        \
                       "zero: measured)")                                                          \
    X(LBVH_BAD_RADIUS, "desc.radius, queries.radius, a world's desc.margin and desc.margin_part "  \
                       "must be finite and not negative; the reach not negative or NaN")           \
    X(LBVH_BAD_ALLOCATOR, "desc.allocator needs both alloc and free, or neither, gives memory "    \
                          "aligned to 16 bytes, and stays the same until lbvh_free")               \
    X(LBVH_BAD_INDEX, "a triangle names a vertex that is not in 0 .. desc.vertices - 1: "          \
                      "tree.bad_id is the first such triangle")                                    \
    X(LBVH_NOT_FINITE, "an element has a NaN or infinite number, or its box reaches beyond "       \
                       "the largest one: tree.bad_id is the first such element; "                  \
                       "desc.skip_invalid leaves them out (a world: the object stays as it was)")  \
    X(LBVH_INVERTED, "a box has min above max, or a sphere a negative radius: "                    \
                     "tree.bad_id is the first such element; desc.skip_invalid leaves them out")   \
    X(LBVH_TOO_MANY, "more than 2^30 - 512 elements or queries: split them into several "          \
                     "trees or calls")                                                             \
    X(LBVH_BUFFER_TOO_SMALL, "the caller's array is too small: the size needed was returned, and " \
                             "is exact")                                                           \
    X(LBVH_OUT_OF_MEMORY, "an allocation failed: desc.allocator or malloc returned NULL")          \
    X(LBVH_NOT_BUILT, "the tree holds nothing this call can use: call lbvh_build first "           \
                      "(and see what the call needs); a wide tree: lbvh_wide_build, with "         \
                      "lbvh_wide_desc.copy where the call has no fn; a world: lbvh_world_begin")   \
    X(LBVH_BAD_FILE, "these bytes are not a tree saved by this version, with this real "           \
                     "type and byte order, undamaged")                                             \
    X(LBVH_INVALID, "lbvh_validate or lbvh_verify found the structure damaged")                    \
    X(LBVH_BAD_ID, "no object has this id: it was removed, or never inserted")                     \
    X(LBVH_CUDA_ERROR, "a CUDA call failed: tree.cuda_error has its cudaError_t")                  \
    X(LBVH_NOT_RUN, "desc.parallel.run did not run every task: it must call each, once")

#define LBVH_I_CODE(code, text) code,
typedef enum lbvh_result { LBVH_RESULTS(LBVH_I_CODE) LBVH_RESULT_COUNT } lbvh_result;

/* ------------------------------------------------------------------------------------------------
   >>parallel: a hook for threads of yours. The header starts none. Where desc.parallel has a
   function, a call cuts its work into tasks that share nothing they write, and has them run by it:

       static void run(lbvh_task *task, void *context, int32_t tasks, void *user)
       {
           int32_t i;
           #pragma omp parallel for schedule(dynamic, 1)
           for (i = 0; i < tasks; i++) task(context, i);
       }

   Every result is that of the serial code, bit for bit, for any number of tasks in any order.

   In tasks run lbvh_build, lbvh_refit, lbvh_optimize, lbvh_count_pairs, lbvh_pairs,
   lbvh_count_overlaps, lbvh_overlaps, lbvh_nearest_rows; with the hook of a world
   lbvh_world_update; with that of a wide tree lbvh_wide_build, lbvh_closest_hits, lbvh_any_hits
   (where fn is NULL) and lbvh_closest_points. All else runs in the calling thread: walks, your
   functions, and what has an order (the places of LBVH_PLOC and of rotations, the pairs of a world
   that begin and end). A tree uses the hook of its last build, tree.desc.parallel, which you may
   change; lbvh_load takes it from its desc. Threads that search one tree at once call its `run` at
   once.

   A task needs the stack of a search in bulk, or of LBVH_PLOC (>>rules). Nothing is allocated for
   tasks, but in a world. Lists may write anywhere below `capacity`, also behind the last entry.

   LBVH_NOT_RUN: a task was left out. A build, refit or lbvh_optimize has then left no tree; a
   world is complete. Numbers, counts and offsets of a search are 0, rays and points have found
   nothing, and other arrays are not specified.
   ---------------------------------------------------------------------------------------------- */

typedef void lbvh_task(void *context, int32_t index);
typedef void lbvh_run(lbvh_task *task, void *context, int32_t tasks, void *user);

typedef struct lbvh_parallel {
    lbvh_run *run;      /* calls task(context, 0 .. tasks-1), each once, in any order, on any
                           threads, and returns when all are done (default, NULL: serial) */
    void *user;         /* handed to run */
    int32_t tasks;      /* into how many pieces to cut at most, some times the number of threads;
                           fewer where the work is not worth it; 0 and 1: serial; at most 1024 */
} lbvh_parallel;

/* ------------------------------------------------------------------------------------------------
   >>desc: what to build. All zero is valid; every field says its default.
   ---------------------------------------------------------------------------------------------- */

typedef LBVH_REAL lbvh_real;

/* The kind of the elements, and so how many numbers each has (dim = 2 or 3). */
typedef enum lbvh_kind {
    LBVH_BOXES = 0,     /* 2 dim numbers: min x y (z), max x y (z) */
    LBVH_POINTS,        /* dim numbers; each becomes the box of edge 2 desc.radius around it */
    LBVH_SPHERES,       /* dim + 1 numbers: centre, radius */
    LBVH_TRIANGLES      /* 3 dim numbers, the vertices; with desc.indices: dim numbers per vertex, 3
                           indices per triangle */
} lbvh_kind;

/* The algorithm. MERGE and SPLIT make the same tree, on both sides; PLOC makes one of its own. */
typedef enum lbvh_builder {
    LBVH_MERGE = 0,     /* bottom-up: neighbouring subtrees merge (Apetrei); serial in one pass,
                           CUDA in rounds; the faster one */
    LBVH_SPLIT,         /* top-down: ranges are split at the highest differing bit; serial by
                           recursion, CUDA all nodes at once (Karras; Kureck section 3.1.4); the one
                           to read first. Keeps the codes, as keep_codes does. */
    LBVH_PLOC           /* bottom-up by area: subtrees whose common box is small merge first
                           (Meister, Bittner; >>ploc); CUDA in one kernel, a window a warp
                           (Benthin). Slower to build, faster to search where elements differ in
                           size: triangles. Needs 8 more bytes a leaf. */
} lbvh_builder;

/* What alloc returns must be aligned to 16 bytes; else LBVH_BAD_ALLOCATOR. */
typedef struct lbvh_allocator {
    void *(*alloc)(size_t bytes, void *user);
    void (*free)(void *memory, size_t bytes, void *user);
    void *user;
} lbvh_allocator;

struct CUstream_st; /* cudaStream_t is a pointer to it: plain C needs no CUDA header */

/* Device memory for lbvh_cuda. What alloc returns must be usable in stream order on `stream`, and
   aligned to 256 bytes. */
typedef struct lbvh_cuda_allocator {
    void *(*alloc)(size_t bytes, struct CUstream_st *stream, void *user);
    void (*free)(void *memory, size_t bytes, struct CUstream_st *stream, void *user);
    void *user;
} lbvh_cuda_allocator;

/* Switches: 0 is off, anything else is on. */
typedef struct lbvh_desc {
    int32_t dim;                /* 2 or 3 (default: 3) */
    lbvh_kind kind;             /* kind of the elements (default: LBVH_BOXES) */
    lbvh_real radius;           /* LBVH_POINTS: half the edge of the box around each (default: 0) */
    const int32_t *indices;     /* LBVH_TRIANGLES: 3 vertex numbers per triangle; CUDA: device
                                   memory (default: none, 3 vertices for each triangle in data) */
    int32_t vertices;           /* LBVH_TRIANGLES with indices: number of vertices (no default) */
    lbvh_real min[3], max[3];   /* bounds of the centres, if known: saves a pass on the GPU. Centres
                                   outside count as on the border, which costs quality only
                                   (default, all zero: measured) */
    int32_t bits;               /* of a Morton code, 30 or 63: 10 or 21 per axis; 2D 15 or 31
                                   (default: 63) */
    lbvh_builder builder;       /* (default: LBVH_MERGE) */
    const uint32_t *masks;      /* [n] filter bits by element, read by the build: an element with
                                   mask 0 is found by no search; CUDA: device memory (default: no
                                   masks, all are found) */
    int32_t keep_codes;         /* 1 = tree.code is kept, for inspection (default: 0) */
    int32_t skip_invalid;       /* 1 = elements with NaN, infinite, inverted numbers or bad indices
                                   become leaves that nothing overlaps (default: 0, refused; CUDA
                                   always does this, and lbvh_cuda_check tells) */
    lbvh_allocator allocator;   /* (default: malloc and free) */
    lbvh_cuda_allocator cuda_allocator; /* (default: cudaMallocAsync and cudaFreeAsync) */
    lbvh_parallel parallel;     /* a hook for threads (default: serial) */
} lbvh_desc;

/* ------------------------------------------------------------------------------------------------
   >>tree: the object. All zero is empty. The caller may read every array. The arrays hold no
   pointers: they can be copied, moved, saved and sent to a GPU as they are.
   ---------------------------------------------------------------------------------------------- */

/* A node: hierarchy and box in one record of 32 bytes (float), two 16-byte loads on a GPU. (Kureck
   section 3.1.8 has 52 bytes in three arrays: children, their types and the parent; the box and a
   counter; the rightmost index.) */
typedef struct LBVH_ALIGN_NODE lbvh_node {
    lbvh_real min[3];   /* 2D: min[2] = max[2] = 0 */
    int32_t link;       /* inner node: the left child; leaf: the element's id */
#if LBVH_I_REAL_KIND == 2
    int32_t gap_min;    /* 0: padding is always written */
#endif
    lbvh_real max[3];   /* where an element was left out, or all below the node were: min is
                           infinity, max minus infinity */
    int32_t skip;       /* the next node once this one and all below it are done, -1 = none */
#if LBVH_I_REAL_KIND == 2
    int32_t gap_max;
#endif
} lbvh_node;

typedef struct lbvh_block { void *memory; size_t bytes; } lbvh_block;
enum { LBVH_BLOCKS = 4 };

/* The quantisation grid of the Morton codes. Its cells are cubes, so that long boxes are split
   across their length first. All numbers are at half scale, where no difference of two
   overflows. */
typedef struct lbvh_lattice {
    lbvh_real origin[3];    /* half of the smallest centre along each axis */
    lbvh_real scale;        /* cells per half unit of length; 0 when all centres are equal */
    lbvh_real last;         /* cells along an axis - 1 */
} lbvh_lattice;

typedef struct lbvh {
    lbvh_desc desc;         /* with defaults filled in */
    int32_t n;              /* leaves; places are 0 .. n-1 */
    int32_t first_leaf;     /* nodes 0 .. first_leaf-1 are inner nodes, leaf k is node first_leaf +
                               k: n - 1, or 0 when n = 0 */
    int32_t built;          /* 1: a tree exists, even where n = 0; 0: LBVH_NOT_BUILT */
    lbvh_lattice lattice;   /* CUDA: not known on the host */
    lbvh_node *node;        /* [2 n - 1] inner nodes, then leaves by place */
    uint8_t *prefix;        /* [n + 1] of border k: 1 + number of common leading bits of the codes
                               at places k-1 and k (PLOC: 1 + depth of the node split there), 0
                               at both ends; the tree's shape follows from it */
    uint32_t *mask;         /* desc.masks: [2 n - 1] filter bits by node, for an inner node the OR
                               of its leaves'; else NULL */
    uint64_t *code;         /* desc.keep_codes, LBVH_SPLIT: [n] Morton codes by place; else NULL */
    int32_t bad_id;         /* the first element that was refused or left out, else -1 */
    int32_t cuda_error;     /* LBVH_CUDA_ERROR: the cudaError_t */
    lbvh_block block[LBVH_BLOCKS]; /* the memory behind the arrays */
} lbvh;

/* Stack entries that a walk needs at most, in every tree that can be built: see >>limits. */
enum { LBVH_STACK = 94 };

/* ------------------------------------------------------------------------------------------------
   >>api: functions. Unless a comment says otherwise, calls on a const lbvh may run in many threads
   at once. The inline walks are defined further down:

       >>overlap   lbvh_overlap_box, _between, _point, _sphere, _later; lbvh_next
       >>near      lbvh_near_point, lbvh_next_near, lbvh_keep_nearest
       >>ray       lbvh_ray_cast, lbvh_next_ray
       >>triangles lbvh_closest_on_triangle, lbvh_ray_triangle
       >>wide      lbvh_wide_build and its searches
   ---------------------------------------------------------------------------------------------- */

/* The version of the implementation, 10000 * major + 100 * minor + patch. */
LBVH_API int lbvh_version(void);

/* What a result means and which field to change. Never NULL. */
LBVH_API const char *lbvh_result_text(lbvh_result result);

/* `*out` = `*desc` (NULL: all defaults) with every default filled in. Refuses what lbvh_build
   refuses because of desc. */
LBVH_API lbvh_result lbvh_defaults(lbvh_desc *out, const lbvh_desc *desc);

/* Allocates the memory that lbvh_build needs for n elements: builds up to n then allocate nothing
   (desc.masks: any pointer says that there will be masks). The tree is empty afterwards. Not
   thread-safe on one tree. */
LBVH_API lbvh_result lbvh_reserve(lbvh *tree, const lbvh_desc *desc, int32_t n);

/* The bytes that lbvh_reserve, or a first build, of n elements will take: *bytes. For budgets, and
   arenas of a fixed size. Refusals as lbvh_reserve; *bytes is then 0. */
LBVH_API lbvh_result lbvh_bytes_for(const lbvh_desc *desc, int32_t n, int64_t *bytes);

/* Builds the tree over n elements. data: elements of desc.kind, `stride` bytes apart (0 = tightly
   packed); with desc.indices the vertices, and n is the number of triangles. desc NULL = all
   defaults. No pointer to the input is kept, except desc.indices, which lbvh_refit reads again.
   Building again reuses the memory. After any refusal the tree is empty (n = 0) and keeps its
   memory; bad_id is the first bad element, -1 if the reason was another. Cost: O(n), a radix sort
   and three passes over the elements; LBVH_PLOC about twice as much. Not thread-safe on one tree;
   different trees may be built at once. */
LBVH_API lbvh_result lbvh_build(lbvh *tree, const lbvh_desc *desc, const lbvh_real *data,
                                size_t stride, int32_t n);

/* New boxes for the same tree, after elements moved: ids and hierarchy stay as they are. n and all
   of desc are those of the build; masks are kept. Refusals as lbvh_build; the tree is then
   unchanged. Searches stay exact after any motion. They become slower as the order of the elements
   in space changes: build again then, or call lbvh_optimize. O(n), a third to a half of a build. */
LBVH_API lbvh_result lbvh_refit(lbvh *tree, const lbvh_real *data, size_t stride);

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
   of memory during the call; LBVH_OUT_OF_MEMORY: the tree is as it was. Serial, no CUDA form.
   O(n log n), 0.5 to 1 of a build by LBVH_MERGE. */
LBVH_API lbvh_result lbvh_split_top(lbvh *tree, double *gain);

/* Frees the memory and empties the tree; an empty tree is fine. */
LBVH_API void lbvh_free(lbvh *tree);

/* Bytes of memory that the tree holds. */
LBVH_API int64_t lbvh_bytes(const lbvh *tree);

/* LBVH_OK, or LBVH_INVALID when the structure is damaged. Checked: every leaf reached once, links
   and skips, each box the union of its children's, ids each once, masks and prefixes. Safe on any
   content of the arrays. For tests and students. Allocates n bytes. O(n). */
LBVH_API lbvh_result lbvh_validate(const lbvh *tree);

/* lbvh_validate, then a comparison with brute force: the overlaps of `samples` leaves, against a
   test of every leaf. The samples are spread evenly over the places, and shifted by the seed; more
   than n: all. LBVH_INVALID: `*bad_id` (may be NULL) is the first element with a wrong answer, -1
   where the structure is damaged. For your own tests, with your data. Allocates n bytes. O(n +
   samples * n). */
LBVH_API lbvh_result lbvh_verify(const lbvh *tree, int32_t samples, uint32_t seed, int32_t *bad_id);

/* Quality of a tree. Areas are surfaces (2D: perimeters); elements left out have none. */
typedef struct lbvh_quality {
    double sah;             /* cost by the surface area heuristic (Goldsmith, Salmon 1987): areas of
                               all nodes over that of the root. It is the mean number of nodes that
                               a random long line through the root's box meets */
    double overlap;         /* sum over inner nodes of the area shared by both children, over the
                               area of the root */
    double mean_depth;      /* inner nodes above a leaf, on average */
    int32_t depth;          /* largest number of inner nodes above a leaf, at most 93 */
} lbvh_quality;

/* Measures the tree. O(n). */
LBVH_API lbvh_result lbvh_measure(const lbvh *tree, lbvh_quality *quality);

/* Writes the tree into `bytes` (room: `capacity`): a header of 64 bytes, then the arrays.
   `*needed`: the size, also when it did not fit (LBVH_BUFFER_TOO_SMALL; NULL with 0 asks for it).
   Files are for machines of the same byte order and the same LBVH_REAL. */
LBVH_API lbvh_result lbvh_save(const lbvh *tree, void *bytes, int64_t capacity, int64_t *needed);

/* Reads a saved tree. desc (NULL: defaults) gives allocator and parallel; all else comes from the
   bytes. They hold no codes, and the kind of the elements becomes LBVH_BOXES: refit a loaded tree
   with boxes. Any bytes are safe: damaged ones are refused (LBVH_BAD_FILE) after a checksum and the
   checks of lbvh_validate. The tree is empty after a refusal. */
LBVH_API lbvh_result lbvh_load(lbvh *tree, const lbvh_desc *desc, const void *bytes, int64_t size);

/* boxes[2 dim i ..] = the AABB of element i, for elements of desc.kind, as the build uses it.
   Refusals as lbvh_build; `*bad_id` (may be NULL) is the first bad element. */
LBVH_API lbvh_result lbvh_boxes(const lbvh_desc *desc, const lbvh_real *data, size_t stride,
                                int32_t n, lbvh_real *boxes, int32_t *bad_id);

/* `*pairs`: the number of pairs of elements whose boxes overlap, each once. With masks: pairs whose
   masks share a bit. Cost, here and below: as a rule O(log n) for a search and O(1) for a hit. */
LBVH_API lbvh_result lbvh_count_pairs(const lbvh *tree, int64_t *pairs);

/* The pairs themselves: ids pairs[2 p] and pairs[2 p + 1], room for `capacity` pairs. `*needed`:
   the number of pairs, also when they did not fit (LBVH_BUFFER_TOO_SMALL; `capacity` of them are
   written). Ordered by the place of the first, then by that of the second. As fast as a loop of
   your own over lbvh_overlap_later, or faster:
       for (place = 0; place < tree.n; place++) {
           int32_t i = tree.node[tree.first_leaf + place].link;
           lbvh_overlap o = lbvh_overlap_later(&tree, place);
           while (lbvh_next(&o)) use(i, o.id);                      // each pair once
       } */
LBVH_API lbvh_result lbvh_pairs(const lbvh *tree, int32_t *pairs, int64_t capacity,
                                int64_t *needed);

/* fn(user, i, j) for every pair of ids, in the order of lbvh_pairs, until fn returns non-zero
   (LBVH_STOPPED). */
typedef int lbvh_pair_fn(void *user, int32_t i, int32_t j);
LBVH_API lbvh_result lbvh_each_pair(const lbvh *tree, lbvh_pair_fn *fn, void *user);

/* Flags of lbvh_queries. */
enum {
    LBVH_HALF   = 1,    /* own elements only: each pair once, in the row of the lower place, whose
                           search decides (LBVH_POINTS: its centre against the other's box;
                           symmetric in a tree of points) */
    LBVH_PLACES = 2,    /* own elements only: rows and entries are places, not ids; the fastest */
    LBVH_SORTED = 4     /* CUDA: consecutive queries are near each other already: do not sort
                           them */
};

/* Many searches at once. All zero: every element of the tree against all others. */
typedef struct lbvh_queries {
    lbvh_kind kind;         /* LBVH_BOXES, LBVH_POINTS (within `radius`) or, with data, LBVH_SPHERES
                               (each within its own radius) */
    const lbvh_real *data;  /* as for lbvh_build (CUDA: device memory). NULL: the tree's own
                               elements, row i for element i, without itself; BOXES: their boxes,
                               POINTS: the centres of their boxes */
    size_t stride;          /* bytes between two queries (default: tightly packed) */
    int32_t n;              /* queries, with data; else 0 (LBVH_BAD_ARGUMENT) */
    lbvh_real radius;       /* POINTS: search radius; not read for other kinds (default: 0) */
    uint32_t filter;        /* only leaves whose mask shares a bit with it (default, 0: any bit);
                               own elements: and with their mask. Of no effect, as filters, where
                               the tree has no masks */
    const uint32_t *filters;/* [n] one filter per query (own elements: by id), 0 finds none
                               (default: `filter` for all) */
    int flags;
} lbvh_queries;

/* counts[q] = number of leaves whose boxes overlap query q (BOXES) or come within its radius
   (POINTS, SPHERES). counts: [queries]. Queries with NaN, inverted boxes and negative radii find
   nothing. */
LBVH_API lbvh_result lbvh_count_overlaps(const lbvh *tree, const lbvh_queries *queries,
                                         int32_t *counts);

/* The lists in CSR form: row q is ids[offsets[q]] .. ids[offsets[q+1] - 1], by ascending place.
   offsets: [queries + 1], always filled. ids: room for `capacity` (NULL with 0: only count).
   `*needed`: offsets[queries]. LBVH_BUFFER_TOO_SMALL: needed > capacity; rows that fit whole are
   filled. */
LBVH_API lbvh_result lbvh_overlaps(const lbvh *tree, const lbvh_queries *queries, int64_t *offsets,
                                   int32_t *ids, int64_t capacity, int64_t *needed);

/* Squared distance from p to element id, by your function; at least that to its box. */
typedef lbvh_real lbvh_distance2_fn(void *user, int32_t id, const lbvh_real *p);

/* The k elements nearest to point p (dim numbers), at most `reach` away (any number >= 0, infinity
   too): ids and squared distances, nearest first, equal ones by ascending id. `*found` <= k: their
   number. A point p that is NaN finds nothing. fn NULL: the distance to the element's box. ids,
   distances2: [k]. Insertion sort: for small k. */
LBVH_API lbvh_result lbvh_nearest(const lbvh *tree, const lbvh_real *p, int32_t k, lbvh_real reach,
                                  lbvh_distance2_fn *fn, void *user, int32_t *ids,
                                  lbvh_real *distances2, int32_t *found);

/* The same for each of m points, with the distance to the boxes, in tasks (>>parallel): row q of
   ids and distances2 ([m * k]) and found ([m]); unused entries are -1 and infinity. The points may
   be the elements themselves. They are taken in Morton order (flags 0), for which 16 bytes a point
   are allocated during the call (so threads that call this at once call desc.allocator at once);
   without that memory, or with LBVH_SORTED, as they come. Refusals: a wrong stride, pointer or
   count, flags, a reach that is negative or NaN. LBVH_NOT_RUN: all rows are empty. */
LBVH_API lbvh_result lbvh_nearest_rows(const lbvh *tree, const lbvh_real *points, size_t stride,
                                       int32_t m, int32_t k, lbvh_real reach, int flags,
                                       int32_t *ids, lbvh_real *distances2, int32_t *found);

/* ------------------------------------------------------------------------------------------------
   >>cuda-api: the same on a GPU. Plain C may call these functions; one .cu file with
   LBVH_IMPLEMENTATION and LBVH_CUDA makes them. All pointers d_... are device memory. No call waits
   for the GPU unless its comment says so; every launch error is returned as LBVH_CUDA_ERROR. A call
   may clear a CUDA error that the caller left unread before.
   ---------------------------------------------------------------------------------------------- */

#ifdef LBVH_CUDA

/* What kernels take by value: a tree whose arrays lie in device memory. A type of its own: host
   code that would read device pointers does not compile. */
typedef struct lbvh_device { lbvh tree; } lbvh_device;

/* Device-side status, until lbvh_cuda_check fetches it. */
typedef struct lbvh_cuda_facts {
    uint64_t least[3], most[3]; /* bounds of the half centres, as integers of the same order; least:
                                   the maximum of the negated ones */
    int32_t first_bad[3];       /* INT32_MAX - (first element that is not finite, inverted, badly
                                   indexed), 0 = none */
    /* many elements, and codes of 63 bits: */
    int32_t clustered;          /* 1 if two samples of them are alike */
    int32_t runs;               /* long runs of elements with equal keys */
} lbvh_cuda_facts;

enum { LBVH_CUDA_SCRATCH = 9 };

typedef struct lbvh_cuda {
    lbvh_device device;         /* argument for your kernels */
    lbvh_cuda_facts *d_facts;
    struct CUstream_st *stream; /* of the last call */
    lbvh_block block[LBVH_BLOCKS];           /* device memory: the arrays of the tree */
    lbvh_block scratch[LBVH_CUDA_SCRATCH];   /* device memory: work space of builds and searches */
} lbvh_cuda;

/* Allocates all memory that builds over up to n elements, and searches of up to `queries` queries,
   need. They then allocate nothing, so that a step can be captured in a CUDA graph. (queries 0: no
   searches. Own elements are n queries: from n on, lists of pairs are included.) A graph keeps n,
   desc and addresses: a later call that needs more memory, or a build over another n, invalidates
   it. */
LBVH_API lbvh_result lbvh_cuda_reserve(lbvh_cuda *gpu, const lbvh_desc *desc, int32_t n,
                                       int32_t queries, struct CUstream_st *stream);

/* The bytes of device memory that lbvh_cuda_reserve will take, on the current device: *bytes.
   Allocates nothing. Refusals as lbvh_cuda_reserve; *bytes is then 0. */
LBVH_API lbvh_result lbvh_cuda_bytes_for(const lbvh_desc *desc, int32_t n, int32_t queries,
                                         int64_t *bytes);

/* As lbvh_build, and the same tree, bit for bit. Invalid elements become leaves that nothing
   overlaps; lbvh_cuda_check reports them. */
LBVH_API lbvh_result lbvh_cuda_build(lbvh_cuda *gpu, const lbvh_desc *desc, const lbvh_real *d_data,
                                     size_t stride, int32_t n, struct CUstream_st *stream);

/* As lbvh_refit. Elements that are invalid now are left out; elements left out before and valid now
   are included again. After LBVH_CUDA_ERROR the tree is empty. */
LBVH_API lbvh_result lbvh_cuda_refit(lbvh_cuda *gpu, const lbvh_real *d_data, size_t stride,
                                     struct CUstream_st *stream);

/* As lbvh_optimize, and the same tree, bit for bit; codes are dropped whatever is rotated. Takes 24
   more bytes a leaf of work space, at the first call. rotations NULL: does not wait; else waits for
   the stream: *rotations. After LBVH_CUDA_ERROR the tree is empty. */
LBVH_API lbvh_result lbvh_cuda_optimize(lbvh_cuda *gpu, int32_t *rotations,
                                        struct CUstream_st *stream);

/* LBVH_NOT_BUILT at once where there is no tree. Else waits for the stream, for n = 0 as well, and
   returns the status of the last build or refit: LBVH_OK, or LBVH_NOT_FINITE, LBVH_INVERTED,
   LBVH_BAD_INDEX with device.tree.bad_id, the first such element; the tree is usable, without those
   elements. */
LBVH_API lbvh_result lbvh_cuda_check(lbvh_cuda *gpu, struct CUstream_st *stream);

/* Frees the device memory, in the order of the stream that the tree was last used on: that stream
   must still exist. One lbvh_cuda belongs to one stream at a time; to use it on another, or in your
   own kernels there, order the two by an event. */
LBVH_API void lbvh_cuda_free(lbvh_cuda *gpu);

/* Copies a host tree to the device. May return before the copy is done: keep the tree until then. A
   tree of indexed triangles must be refitted with boxes afterwards, because the indices are not
   copied; so must a downloaded one. */
LBVH_API lbvh_result lbvh_cuda_upload(lbvh_cuda *gpu, const lbvh *tree, struct CUstream_st *stream);

/* Copies a device tree into a host tree (its memory reused). Waits for the stream. */
LBVH_API lbvh_result lbvh_cuda_download(lbvh *tree, const lbvh_cuda *gpu,
                                        struct CUstream_st *stream);

/* As lbvh_boxes; an invalid element gets the box of an element left out. */
LBVH_API lbvh_result lbvh_cuda_boxes(lbvh_cuda *gpu, const lbvh_desc *desc, const lbvh_real *d_data,
                                     size_t stride, int32_t n, lbvh_real *d_boxes,
                                     struct CUstream_st *stream);

/* As the searches above; results stay on the device. d_pairs_found, d_needed: one int64_t. A list
   that does not fit ends at `capacity`, and d_needed, or d_offsets[queries], is the size needed.
   Queries are processed in the order of their Morton codes. */
LBVH_API lbvh_result lbvh_cuda_count_pairs(lbvh_cuda *gpu, int64_t *d_pairs_found,
                                           struct CUstream_st *stream);
LBVH_API lbvh_result lbvh_cuda_pairs(lbvh_cuda *gpu, int32_t *d_pairs, int64_t capacity,
                                     int64_t *d_needed, struct CUstream_st *stream);
LBVH_API lbvh_result lbvh_cuda_count_overlaps(lbvh_cuda *gpu, const lbvh_queries *queries,
                                              int32_t *d_counts, struct CUstream_st *stream);
LBVH_API lbvh_result lbvh_cuda_overlaps(lbvh_cuda *gpu, const lbvh_queries *queries,
                                        int64_t *d_offsets, int32_t *d_ids, int64_t capacity,
                                        struct CUstream_st *stream);

/* As lbvh_nearest_rows. For your own distances, use lbvh_near_point in a kernel. */
LBVH_API lbvh_result lbvh_cuda_nearest(lbvh_cuda *gpu, const lbvh_real *d_points, size_t stride,
                                       int32_t m, int32_t k, lbvh_real reach, int flags,
                                       int32_t *d_ids, lbvh_real *d_distances2, int32_t *d_found,
                                       struct CUstream_st *stream);
#endif /* LBVH_CUDA */

/* Stop here if you only need the API; the inline walks that follow are part of it. */

/* ------------------------------------------------------------------------------------------------
   >>numbers: arithmetic that both sides must round alike
   ---------------------------------------------------------------------------------------------- */

/* x; no compiler moves an operation across it. Needed where -ffast-math is in force nevertheless
   (LBVH_FN_WALK), and for products that clang fuses with sums despite the pragma, where the
   processor has FMA. */
LBVH_FN_WALK lbvh_real lbvh_i_kept(lbvh_real x)
{
#if defined(LBVH_I_KEEP_BY_BARRIER)
    x = __builtin_assoc_barrier(x);
#elif defined(LBVH_I_KEEP_BY_ASM) && defined(__SSE2_MATH__)
    __asm__("" : "+x"(x));
#elif defined(LBVH_I_KEEP_BY_ASM) && defined(__aarch64__)
    __asm__("" : "+w"(x));
#elif defined(LBVH_I_KEEP_BY_ASM)
    __asm__("" : "+m"(x));
#endif
    return x;
}

/* a * b, rounded. nvcc would fuse a plain product with a following sum, round once, and give other
   bits. */
LBVH_FN_WALK lbvh_real lbvh_i_times(lbvh_real a, lbvh_real b)
{
#if defined(__CUDA_ARCH__) && LBVH_I_REAL_KIND == 1
    return __fmul_rn(a, b);
#elif defined(__CUDA_ARCH__)
    return __dmul_rn(a, b);
#else
    return lbvh_i_kept(a * b);
#endif
}

/* a / b, rounded, whatever nvcc's -prec-div says. */
LBVH_FN lbvh_real lbvh_i_over(lbvh_real a, lbvh_real b)
{
#if defined(__CUDA_ARCH__) && LBVH_I_REAL_KIND == 1
    return __fdiv_rn(a, b);
#else
    return a / b;
#endif
}

/* Minimum and maximum of two numbers, neither NaN, not 0 and -0: then the GPU's single instruction
   and the comparison agree. */
LBVH_FN_WALK lbvh_real lbvh_i_min(lbvh_real a, lbvh_real b)
{
#if defined(__CUDA_ARCH__)
    return LBVH_I_REAL_KIND == 1 ? (lbvh_real)fminf((float)a, (float)b)
                                 : (lbvh_real)fmin((double)a, (double)b);
#else
    if (a < b) return a; /* not by ?:, which clang assumes finite under -ffast-math */
    return b;
#endif
}

LBVH_FN_WALK lbvh_real lbvh_i_max(lbvh_real a, lbvh_real b)
{
#if defined(__CUDA_ARCH__)
    return LBVH_I_REAL_KIND == 1 ? (lbvh_real)fmaxf((float)a, (float)b)
                                 : (lbvh_real)fmax((double)a, (double)b);
#else
    if (a > b) return a;
    return b;
#endif
}

/* The bits of a number: sign, exponent field, mantissa. LBVH_I_INFINITE: those of infinity, which
   has all bits of the exponent field set, and no other. */
#if LBVH_I_REAL_KIND == 1
typedef uint32_t lbvh_i_bits;
#define LBVH_I_MANTISSA_BITS 23
#define LBVH_I_INFINITE 0x7F800000u
#else
typedef uint64_t lbvh_i_bits;
#define LBVH_I_MANTISSA_BITS 52
#define LBVH_I_INFINITE 0x7FF0000000000000u
#endif

LBVH_FN_HOT lbvh_i_bits lbvh_i_bits_of(lbvh_real x)
{
    lbvh_i_bits bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Neither NaN nor infinite; NaN. By their bits: comparisons fail under -ffinite-math-only. */
LBVH_FN int lbvh_i_finite(lbvh_real x)
{
    return (lbvh_i_bits_of(x) & LBVH_I_INFINITE) != LBVH_I_INFINITE;
}
LBVH_FN int lbvh_i_is_nan(lbvh_real x)
{
    return lbvh_i_bits_of(x) << 1 > LBVH_I_INFINITE << 1; /* the sign is shifted out */
}

/* The largest finite number, and infinity. */
LBVH_FN lbvh_real lbvh_i_largest(void)
{
    return LBVH_I_REAL_KIND == 1 ? (lbvh_real)3.40282347e+38 : (lbvh_real)1.7976931348623157e+308;
}
LBVH_FN lbvh_real lbvh_i_infinity(void)
{
#if defined(__GNUC__) && !defined(__CUDACC__)
    return (lbvh_real)__builtin_inf(); /* with wide registers (x87) twice the largest number is
                                          finite */
#else
    return lbvh_i_largest() * 2;
#endif
}

/* x*x + y*y + z*z, rounded after every operation, so that both sides agree on leaves exactly at the
   radius. */
LBVH_FN_WALK lbvh_real lbvh_i_square(lbvh_real x, lbvh_real y, lbvh_real z)
{
    return lbvh_i_kept(lbvh_i_kept(lbvh_i_times(x, x) + lbvh_i_times(y, y)) + lbvh_i_times(z, z));
}

/* Leading zeros of v > 0. */
LBVH_FN int lbvh_i_leading_zeros(uint64_t v)
{
#if defined(__CUDA_ARCH__)
    return __clzll((long long)v);
#elif defined(__GNUC__) || defined(__clang__)
    return __builtin_clzll((unsigned long long)v);
#else
    int zeros = 0, half;
    for (half = 32; half > 0; half /= 2)
        if (v >> (64 - half) == 0) { zeros += half; v <<= half; }
    return zeros;
#endif
}

/* ------------------------------------------------------------------------------------------------
   >>elements: from the caller's numbers to a box
   ---------------------------------------------------------------------------------------------- */

/* The caller's numbers of element (or vertex) i. */
LBVH_FN const lbvh_real *lbvh_i_at(const lbvh_real *data, size_t stride, int32_t i)
{
    return (const lbvh_real *)(const void *)((const char *)data + stride * (size_t)i);
}

/* The caller's point of dim numbers as 3, in 2D the last is 0. Returns 0 where one is NaN or
   infinite. */
LBVH_FN int lbvh_i_read_point(int dim, const lbvh_real *p, lbvh_real point[3])
{
    int a, finite = 1;
    for (a = 0; a < 3; a++) {
        point[a] = 0;
        if (a < dim) point[a] = p[a];
        finite &= lbvh_i_finite(point[a]);
    }
    return finite;
}

/* The AABB of a, b and c, each of dim numbers; min[2] = max[2] = 0 in 2D. A number that is NaN or
   infinite makes both sides of its axis infinity. */
LBVH_FN void lbvh_triangle_box(int dim, const lbvh_real *a, const lbvh_real *b, const lbvh_real *c,
                               lbvh_real min[3], lbvh_real max[3])
{
    int x;
    for (x = 0; x < 3; x++) {
        lbvh_real ax = 0, bx = 0, cx = 0;
        if (x < dim) {
            ax = a[x];
            bx = b[x];
            cx = c[x];
        }
        min[x] = lbvh_i_min(ax, lbvh_i_min(bx, cx));
        max[x] = lbvh_i_max(ax, lbvh_i_max(bx, cx));
        if (!lbvh_i_finite(ax) || !lbvh_i_finite(bx) || !lbvh_i_finite(cx))
            min[x] = max[x] = lbvh_i_infinity();
    }
}

/* The vertices of triangle i, as pointers into data; 0 if an index is out of range. */
LBVH_FN int lbvh_triangle(const lbvh_desc *desc, const lbvh_real *data, size_t stride, int32_t i,
                          const lbvh_real *corner[3])
{
    int v, named = 1;
    for (v = 0; v < 3; v++) {
        if (desc->indices) {
            int32_t const vertex = desc->indices[3 * (size_t)i + (size_t)v];
            int const exists = vertex >= 0 && vertex < desc->vertices;
            corner[v] = lbvh_i_at(data, stride, exists ? vertex : 0);
            named &= exists;
        } else corner[v] = lbvh_i_at(data, stride, i) + v * desc->dim;
    }
    return named;
}

/* The AABB of a point or sphere of `dim` numbers and the given radius. */
LBVH_FN void lbvh_i_box_around(int dim, const lbvh_real *centre, lbvh_real radius, lbvh_real min[3],
                               lbvh_real max[3])
{
    /* Three independent loads. (`centre[2]` under a condition would make compilers warn for arrays
       of two numbers. No ?:, which clang assumes finite under -ffast-math.) */
    lbvh_real const x = centre[0], y = centre[1], last = centre[dim - 1];
    min[0] = x - radius;
    max[0] = x + radius;
    min[1] = y - radius;
    max[1] = y + radius;
    min[2] = max[2] = 0;
    if (dim == 3) {
        min[2] = last - radius;
        max[2] = last + radius;
    }
    if (radius < 0 && lbvh_i_finite(min[0]) && lbvh_i_finite(max[0])) {
        /* inverted, also where rounding would hide it */
        min[0] = 1;
        max[0] = 0;
    }
}

/* The box as given, without any check. LBVH_BAD_INDEX: there is none. */
LBVH_FN_HOT lbvh_result lbvh_i_given_box(const lbvh_desc *desc, const lbvh_real *data,
                                         size_t stride, int32_t i, lbvh_real min[3],
                                         lbvh_real max[3])
{
    const lbvh_real *corner[3];
    const lbvh_real *x;
    if (desc->kind == LBVH_TRIANGLES) {
        if (!lbvh_triangle(desc, data, stride, i, corner)) return LBVH_BAD_INDEX;
        lbvh_triangle_box(desc->dim, corner[0], corner[1], corner[2], min, max);
        return LBVH_OK;
    }
    x = lbvh_i_at(data, stride, i);
    if (desc->kind == LBVH_POINTS) lbvh_i_box_around(desc->dim, x, desc->radius, min, max);
    else if (desc->kind == LBVH_SPHERES) lbvh_i_box_around(desc->dim, x, x[desc->dim], min, max);
    else {
        /* (as in lbvh_i_box_around) */
        lbvh_real const last_min = x[desc->dim - 1], last_max = x[2 * desc->dim - 1];
        min[0] = x[0];
        min[1] = x[1];
        min[2] = max[2] = 0;
        if (desc->dim == 3) min[2] = last_min;
        max[0] = x[desc->dim];
        max[1] = x[desc->dim + 1];
        if (desc->dim == 3) max[2] = last_max;
    }
    return LBVH_OK;
}

/* The AABB of element i. Where the element is invalid (LBVH_NOT_FINITE, LBVH_INVERTED,
   LBVH_BAD_INDEX): the box of an element left out, from infinity down to minus infinity, which
   overlaps nothing and widens no union. Adding 0 turns -0 into 0: else the bits of a minimum of
   both would depend on their order. */
LBVH_FN_HOT lbvh_result lbvh_box_of(const lbvh_desc *desc, const lbvh_real *data, size_t stride,
                                    int32_t i, lbvh_real min[3], lbvh_real max[3])
{
    lbvh_result result = lbvh_i_given_box(desc, data, stride, i, min, max);
    int a;
    if (result == LBVH_OK) {
        int finite = 1;
        for (a = 0; a < 3; a++) finite &= lbvh_i_finite(min[a]) & lbvh_i_finite(max[a]);
        if (!finite) result = LBVH_NOT_FINITE;
        else if (!(min[0] <= max[0] && min[1] <= max[1] && min[2] <= max[2]))
            result = LBVH_INVERTED;
    }
    for (a = 0; a < 3; a++) {
        if (result == LBVH_OK) {
            min[a] += 0;
            max[a] += 0;
        } else {
            min[a] = lbvh_i_infinity();
            max[a] = -lbvh_i_infinity();
        }
    }
    return result;
}

/* 1 if the element, or all elements below the node, were left out. */
LBVH_FN_WALK int lbvh_left_out(const lbvh_node *node) { return !(node->min[0] <= node->max[0]); }

/* ------------------------------------------------------------------------------------------------
   >>codes: Morton codes and their common prefixes (Kureck sections 3.1.1, where 63 bits are 3 times
   21, and 3.1.2)

   The centres are quantised to a grid; a code interleaves the bits of the cell's coordinates, x
   first (Kureck equation 3.2; m is the code):

       3D: m = 4 spread(x) + 2 spread(y) + spread(z)       spread: 101 -> 1000001
       2D: m = 2 spread(x) + spread(y)                     spread: 101 -> 10001

        y
       3 | 5   7  13  15     4 x 4 cells: the cell x = 2 = binary 10, y = 3 = binary 11 has the
       2 | 4   6  12  14     code 1101 = 13. From 0 to 15 runs the Z curve (with x first, an N).
       1 | 1   3   9  11     Each half, quarter, eighth ... of the square is a range of codes with a
       0 | 0   2   8  10     common prefix: x < 2 is 0---, x < 2 and y >= 2 is 01--.
           0   1   2   3  x
   ---------------------------------------------------------------------------------------------- */

/* Two zero bits between any two of the lower 21 bits: ...43210 -> ...4--3--2--1--0. The upper half
   is shifted up, then the upper half of each half. (Kureck's factors do the same: x * 0x00010001 is
   x | x << 16 where no bits overlap.) */
LBVH_FN uint64_t lbvh_i_spread3(uint32_t v)
{
    uint64_t x = v & 0x1FFFFFu;
    x = (x | x << 32) & 0x001F00000000FFFFull;
    x = (x | x << 16) & 0x001F0000FF0000FFull;
    x = (x | x << 8) & 0x100F00F00F00F00Full;
    x = (x | x << 4) & 0x10C30C30C30C30C3ull;
    return (x | x << 2) & 0x1249249249249249ull;
}

/* The same for 10 bits, in half as many instructions on a GPU. */
LBVH_FN uint32_t lbvh_i_spread3_short(uint32_t v)
{
    v = (v | v << 16) & 0x030000FFu;
    v = (v | v << 8) & 0x0300F00Fu;
    v = (v | v << 4) & 0x030C30C3u;
    return (v | v << 2) & 0x09249249u;
}

/* One zero bit between any two of the lower 31 bits. */
LBVH_FN uint64_t lbvh_i_spread2(uint32_t v)
{
    uint64_t x = v & 0x7FFFFFFFu;
    x = (x | x << 16) & 0x0000FFFF0000FFFFull;
    x = (x | x << 8) & 0x00FF00FF00FF00FFull;
    x = (x | x << 4) & 0x0F0F0F0F0F0F0F0Full;
    x = (x | x << 2) & 0x3333333333333333ull;
    return (x | x << 1) & 0x5555555555555555ull;
}

/* Bits of a code along one axis. */
LBVH_FN int lbvh_i_axis_bits(int dim, int bits) { return dim == 3 ? bits / 3 : bits / 2; }

/* Bits of a whole code. */
LBVH_FN int lbvh_i_code_bits(const lbvh_desc *desc)
{
    return lbvh_i_axis_bits(desc->dim, desc->bits) * desc->dim;
}

/* Half of the centre (min + max) / 2: no difference of two such numbers overflows. */
LBVH_FN lbvh_real lbvh_i_half_centre(lbvh_real min, lbvh_real max)
{
    return lbvh_i_times(min, (lbvh_real)0.25) + lbvh_i_times(max, (lbvh_real)0.25);
}

/* The lattice over half centres from least to most; no elements: least > most. (Kureck equation 3.1
   divides each axis by its own length. Here all axes are divided by the longest one, and cells are
   cubes: the boxes of nodes are closer to cubes.) */
LBVH_FN lbvh_lattice lbvh_i_lattice_of(int dim, int bits, const lbvh_real least[3],
                                       const lbvh_real most[3])
{
    lbvh_lattice lattice;
    lbvh_real longest = 0, cells = (lbvh_real)((uint32_t)1 << lbvh_i_axis_bits(dim, bits));
    int a;
    for (a = 0; a < 3; a++) {
        lattice.origin[a] = a < dim && least[a] <= most[a] ? least[a] : 0;
        if (a < dim && least[a] <= most[a]) longest = lbvh_i_max(longest, most[a] - least[a]);
    }
    lattice.scale = longest > 0 ? lbvh_i_over(cells, longest) : 0;
    /* the float before 2^31 */
    lattice.last = dim == 2 && bits == 63 ? (lbvh_real)2147483520 : cells - 1;
    return lattice;
}

/* Lattice coordinate of a half centre, min(floor((half_centre - origin) * scale), last) (Kureck
   equation 3.1). A NaN becomes 0. */
LBVH_FN uint32_t lbvh_i_coordinate(const lbvh_lattice *lattice, int a, lbvh_real half_centre)
{
    lbvh_real t = (half_centre - lattice->origin[a]) * lattice->scale;
    t = t > 0 ? t : 0;
    t = t < lattice->last ? t : lattice->last;
    return (uint32_t)(int32_t)t; /* below 2^31; vectors have this conversion only */
}

/* The code of a cell of the lattice (Kureck equation 3.2, see above). */
LBVH_FN uint64_t lbvh_i_interleave(int dim, int bits, uint32_t x, uint32_t y, uint32_t z)
{
    if (dim == 2) return lbvh_i_spread2(x) << 1 | lbvh_i_spread2(y);
    if (bits == 30)
        return lbvh_i_spread3_short(x) << 2 | lbvh_i_spread3_short(y) << 1 |
               lbvh_i_spread3_short(z);
    return lbvh_i_spread3(x) << 2 | lbvh_i_spread3(y) << 1 | lbvh_i_spread3(z);
}

/* The code of the last cell, which elements left out get. */
LBVH_FN uint64_t lbvh_i_last_code(int dim, int bits)
{
    return ((uint64_t)1 << (dim == 3 ? bits : bits / 2 * 2)) - 1;
}

/* The Morton code of a half centre. */
LBVH_FN uint64_t lbvh_i_code_at(const lbvh_lattice *lattice, int dim, int bits,
                                const lbvh_real half_centre[3])
{
    uint32_t const x = lbvh_i_coordinate(lattice, 0, half_centre[0]),
                   y = lbvh_i_coordinate(lattice, 1, half_centre[1]),
                   z = dim == 3 ? lbvh_i_coordinate(lattice, 2, half_centre[2]) : 0;
    return lbvh_i_interleave(dim, bits, x, y, z);
}

/* The Morton code of a box. */
LBVH_FN uint64_t lbvh_i_code(const lbvh_lattice *lattice, int dim, int bits, const lbvh_real min[3],
                             const lbvh_real max[3])
{
    lbvh_real half_centre[3];
    int a;
    if (!(min[0] <= max[0])) return lbvh_i_last_code(dim, bits);
    for (a = 0; a < 3; a++) half_centre[a] = lbvh_i_half_centre(min[a], max[a]);
    return lbvh_i_code_at(lattice, dim, bits, half_centre);
}

/* delta(i, j): number of common leading bits of the codes a and b at places i and j, of `bits`.
   Equal codes are told apart by their places, of 30 bits (Karras; Kureck equation 3.3):

       delta(i, j) = clz(a ^ b) if a != b, else bits + clz(i ^ j)          clz: count leading zeros

   prefix[k] is 1 + delta(k - 1, k). (Kureck counts in words of 32 bits; only the order of the
   deltas matters.) */
LBVH_FN int lbvh_i_common(int bits, uint64_t a, uint64_t b, int32_t i, int32_t j)
{
    if (a != b) return lbvh_i_leading_zeros(a ^ b) - (64 - bits);
    return bits + lbvh_i_leading_zeros((uint64_t)(uint32_t)(i ^ j)) - 34;
}

/* ------------------------------------------------------------------------------------------------
   >>nodes: the numbers and links of nodes, which all follow from the prefixes

   The codes of Karras' example. Below them a line over the leaves of each inner node, | at its
   split:

       place     0     1     2     3     4     5     6     7
       code    00001 00010 00100 00101 10011 11000 11001 11110
       prefix 0     4     3     5     1     2     5     3     0     of border k, which lies before
                                                                    place k: 1 + common leading bits
       inner     0--------------------|---------------------        of the codes on its two sides,
       nodes     ---------|--------3     4--|---------------        0 at both ends
                 ---|--1     2--|---           5--------|---
                                               ---|--6

   The numbers are Karras': the children of a split after leaf s are inner nodes s and s + 1 (or
   leaves s and s + 1, where a child is one leaf). So a left child has the number of its last leaf,
   the root and a right child that of their first, and no two have the same. A node needs two links
   only. `link`: the left child (leaf: the element's id). `skip` (rope, or escape index): the node
   that follows when this one and its subtree are done, which begins right of its last leaf. So skip
   also gives the last leaf ("rightmost index", Kureck), and a walk needs no stack:

       at = root;
       while (at is a node) at = (overlaps(at) and inner) ? link : skip    (reports leaves it meets)

   If leaf 3 alone overlaps: 0, 3, 1 (misses: skip to 2), 2, leaf 2 (misses: skip to leaf 3), leaf
   3, 4 (misses: its skip is the end).

   Left or right child? The prefixes at the two borders of a node differ, except at the root, which
   has 0 at both. (If they were equal, then after as many common bits the next bit would be 1, for
   the node follows its left neighbour, and 0, for it precedes its right one.) The side with the
   larger prefix is its sibling's, and at the other side their parent ends.

        prefix[first]            prefix[last+1]
              |  first ... last  |     prefix[last+1] > prefix[first]: a left child, number `last`
                                       else: a right child, or the root, number `first`  (Karras)
   ---------------------------------------------------------------------------------------------- */

LBVH_FN int lbvh_i_is_left(const uint8_t *prefix, int32_t first, int32_t last)
{
    return prefix[last + 1] > prefix[first];
}

/* The node with leaves first .. last. */
LBVH_FN int32_t lbvh_i_number(const uint8_t *prefix, int32_t first_leaf, int32_t first,
                              int32_t last)
{
    if (first == last) return first_leaf + first;
    return lbvh_i_is_left(prefix, first, last) ? last : first;
}

/* The left child of the node that begins with leaf `first` and is split after leaf `split`. */
LBVH_FN int32_t lbvh_i_left_child(int32_t first_leaf, int32_t first, int32_t split)
{
    return first == split ? first_leaf + split : split;
}

/* The skip of all nodes that end with leaf `last`: the largest node that begins after it. That is a
   right child (the parent of a left one begins there, too), and so has the number of its first
   leaf; it is that leaf itself, if the leaf is a right child. */
LBVH_FN int32_t lbvh_i_skip(const uint8_t *prefix, int32_t n, int32_t last)
{
    int32_t const next = last + 1;
    if (next == n) return -1;
    return prefix[next + 1] < prefix[next] ? n - 1 + next : next;
}

/* The node's last leaf ("rightmost index", Kureck section 3.1.7), from its skip. */
LBVH_FN int32_t lbvh_last_place(const lbvh *tree, const lbvh_node *node)
{
    if (node->skip < 0) return tree->n - 1;
    return (node->skip < tree->first_leaf ? node->skip : node->skip - tree->first_leaf) - 1;
}

/* The last leaf of an inner node's left child. */
LBVH_FN int32_t lbvh_split_place(const lbvh *tree, const lbvh_node *node)
{
    return node->link < tree->first_leaf ? node->link : node->link - tree->first_leaf;
}

/* The right child of an inner node; the left one is its link. */
LBVH_FN int32_t lbvh_right_child(const lbvh *tree, const lbvh_node *node)
{
    int32_t const begin = lbvh_split_place(tree, node) + 1;
    return begin == lbvh_last_place(tree, node) ? tree->first_leaf + begin : begin;
}

/* The split of first .. last: the last place whose code has a 0 in the highest bit that differs
   between the first and the last code. That is the largest s with delta(first, s) > delta(first,
   last). By bisection (Kureck section 3.1.4, who prints the parallel form of this search with `s +=
   1` where `s += l` is meant). */
LBVH_FN int32_t lbvh_i_find_split(const uint64_t *code, int bits, int32_t first, int32_t last)
{
    int const common = lbvh_i_common(bits, code[first], code[last], first, last);
    int32_t low = first, high = last; /* low is left of the split, high right of it */
    while (high - low > 1) {
        int32_t const middle = low + (high - low) / 2;
        if (lbvh_i_common(bits, code[first], code[middle], first, middle) > common) low = middle;
        else high = middle;
    }
    return low;
}

/* 1 if node `at` is a leaf. */
LBVH_FN_WALK int lbvh_is_leaf(const lbvh *tree, int32_t at) { return at >= tree->first_leaf; }

/* Where a walk begins: node 0, -1 in an empty tree. */
LBVH_FN int32_t lbvh_root(const lbvh *tree) { return tree->n > 0 ? 0 : -1; }

/* The leaf at a place, and its element. */
LBVH_FN_WALK lbvh_node *lbvh_i_leaf(const lbvh *tree, int32_t place)
{
    return &tree->node[tree->first_leaf + place];
}
LBVH_FN_WALK int32_t lbvh_i_id(const lbvh *tree, int32_t place)
{
    return lbvh_i_leaf(tree, place)->link;
}

/* A filter that every mask passes, but 0. */
#define LBVH_I_ANY_MASK 0xFFFFFFFFu

/* 1 if a search with this filter takes the node: there are no masks, or they share a bit. */
LBVH_FN_WALK int lbvh_i_passes(const lbvh *tree, int32_t at, uint32_t filter)
{
    if (!tree->mask) return 1;
    return (tree->mask[at] & filter) != 0;
}

/* Writes the padding of a node, where it has any. */
LBVH_FN void lbvh_i_fill_gaps(lbvh_node *node)
{
#if LBVH_I_REAL_KIND == 2
    node->gap_min = node->gap_max = 0;
#else
    (void)node;
#endif
}

/* A node in two loads of 16 bytes. nvcc would load it number by number, and walks are bound by the
   number of loads. */
LBVH_FN_WALK lbvh_node lbvh_i_fetch(const lbvh_node *from)
{
#if defined(__CUDA_ARCH__) && LBVH_I_REAL_KIND == 1
    const float4 *const words = reinterpret_cast<const float4 *>(from);
    float4 const low = words[0], high = words[1];
    lbvh_node node;
    node.min[0] = low.x;
    node.min[1] = low.y;
    node.min[2] = low.z;
    node.link = __float_as_int(low.w);
    node.max[0] = high.x;
    node.max[1] = high.y;
    node.max[2] = high.z;
    node.skip = __float_as_int(high.w);
    return node;
#else
    return *from;
#endif
}

/* The box of a node becomes the one around the boxes of l and r. */
LBVH_FN void lbvh_i_unite(lbvh_node *node, const lbvh_node *l, const lbvh_node *r)
{
    int a;
    for (a = 0; a < 3; a++) {
        node->min[a] = lbvh_i_min(l->min[a], r->min[a]);
        node->max[a] = lbvh_i_max(l->max[a], r->max[a]);
    }
}

/* Extends the box of a node to include that of another. */
LBVH_FN void lbvh_i_widen(lbvh_node *node, const lbvh_node *other)
{
    lbvh_i_unite(node, node, other);
}

LBVH_FN int lbvh_i_same_box(const lbvh_node *l, const lbvh_node *r)
{
    return l->min[0] == r->min[0] && l->min[1] == r->min[1] && l->min[2] == r->min[2] &&
           l->max[0] == r->max[0] && l->max[1] == r->max[1] && l->max[2] == r->max[2];
}

/* 1 if the outer box contains the inner one. */
LBVH_FN int lbvh_i_holds(const lbvh_node *outer, const lbvh_node *inner)
{
    return (outer->min[0] <= inner->min[0]) & (outer->min[1] <= inner->min[1]) &
           (outer->min[2] <= inner->min[2]) & (outer->max[0] >= inner->max[0]) &
           (outer->max[1] >= inner->max[1]) & (outer->max[2] >= inner->max[2]);
}

/* An inner node from its children: box, mask, links. Its skip is that of its right child: both end
   with the same leaf. */
LBVH_FN void lbvh_i_join(const lbvh *tree, int32_t at, int32_t left, int32_t right)
{
    const lbvh_node *l = &tree->node[left], *r = &tree->node[right];
    lbvh_node *node = &tree->node[at];
    lbvh_i_unite(node, l, r);
    node->link = left;
    node->skip = r->skip;
    lbvh_i_fill_gaps(node);
    if (tree->mask) tree->mask[at] = tree->mask[left] | tree->mask[right];
}

/* Distance along one axis from p to the closest point of a box, which is p clamped to the box.
   Signed. */
LBVH_FN_WALK lbvh_real lbvh_i_outside(lbvh_real min, lbvh_real max, lbvh_real p)
{
    return lbvh_i_kept(p - lbvh_i_min(lbvh_i_max(p, min), max));
}

/* Square of the distance from p to the node's box, 0 inside. */
LBVH_FN_WALK lbvh_real lbvh_box_distance2(const lbvh_node *node, const lbvh_real p[3])
{
    return lbvh_i_square(lbvh_i_outside(node->min[0], node->max[0], p[0]),
                         lbvh_i_outside(node->min[1], node->max[1], p[1]),
                         lbvh_i_outside(node->min[2], node->max[2], p[2]));
}

/* 1 if two closed boxes share a point. */
LBVH_FN_WALK int lbvh_boxes_touch(const lbvh_node *node, const lbvh_real min[3],
                                  const lbvh_real max[3])
{
    return (node->min[0] <= max[0]) & (node->min[1] <= max[1]) & (node->min[2] <= max[2]) &
           (node->max[0] >= min[0]) & (node->max[1] >= min[1]) & (node->max[2] >= min[2]);
}

/* ------------------------------------------------------------------------------------------------
   >>overlap: the walk over leaves that overlap a box or come near a point

       lbvh_overlap o = lbvh_overlap_box(&tree, box);
       while (lbvh_next(&o)) use(o.id);

   In a kernel the same, on a lbvh_device. Ids come by ascending place. Skip links (>>nodes) replace
   the stack of Thinking Parallel II and Kureck section 3.1.6.
   ---------------------------------------------------------------------------------------------- */

typedef struct lbvh_overlap {
    int32_t id;             /* the element found */
    int32_t place;          /* its place */
    uint32_t filter;        /* may be set by you: only leaves whose mask shares a bit with it
                               (initially all; no effect in a tree without masks) */
    /* private */
    const lbvh *tree;
    lbvh_real min[3], max[3];   /* the box; for a sphere, min is the centre */
    lbvh_real reach2;           /* sphere: square of the radius; a box: -1 */
    int32_t at;                 /* the next node, -1 = done */
} lbvh_overlap;

LBVH_FN lbvh_overlap lbvh_i_overlap(const lbvh *tree, const lbvh_real min[3],
                                    const lbvh_real max[3], lbvh_real reach2, int32_t at)
{
    lbvh_overlap o;
    int a;
    o.id = o.place = -1;
    o.filter = LBVH_I_ANY_MASK;
    o.tree = tree;
    o.reach2 = reach2;
    o.at = at;
    for (a = 0; a < 3; a++) {
        o.min[a] = min[a];
        o.max[a] = max[a];
    }
    return o;
}

/* The search for a box of dim numbers each, which begins at node `root`. */
LBVH_FN lbvh_overlap lbvh_i_overlap_of(const lbvh *tree, int dim, int32_t root,
                                       const lbvh_real *min, const lbvh_real *max)
{
    lbvh_real low[3], high[3];
    int32_t at = root;
    int a;
    for (a = 0; a < 3; a++) {
        low[a] = high[a] = 0;
        if (a < dim) {
            low[a] = min[a];
            high[a] = max[a];
        }
        if (!(low[a] <= high[a])) at = -1;
        /* excludes elements left out, which are at infinity */
        if (low[a] < -lbvh_i_largest()) low[a] = -lbvh_i_largest();
        if (high[a] > lbvh_i_largest()) high[a] = lbvh_i_largest();
    }
    return lbvh_i_overlap(tree, low, high, -1, at);
}

/* Leaves that overlap the box between min and max, of tree.desc.dim numbers. NaN and inverted boxes
   find nothing, infinite ones are fine. */
LBVH_FN lbvh_overlap lbvh_overlap_between(const lbvh *tree, const lbvh_real *min,
                                          const lbvh_real *max)
{
    return lbvh_i_overlap_of(tree, tree->desc.dim, lbvh_root(tree), min, max);
}

/* The same, the box as 2 dim numbers: min x y (z), max x y (z). */
LBVH_FN lbvh_overlap lbvh_overlap_box(const lbvh *tree, const lbvh_real *box)
{
    return lbvh_overlap_between(tree, box, box + tree->desc.dim);
}

/* Leaves that contain point p (dim numbers). */
LBVH_FN lbvh_overlap lbvh_overlap_point(const lbvh *tree, const lbvh_real *p)
{
    return lbvh_overlap_between(tree, p, p);
}

/* Leaves that come within `radius` of point p, of dim numbers (distance to the box <= radius). In a
   tree of points: the points of the sphere. NaN and negative radii find nothing; squares must be
   normal numbers for exact answers. */
LBVH_FN lbvh_overlap lbvh_overlap_sphere(const lbvh *tree, const lbvh_real *p, lbvh_real radius)
{
    lbvh_real centre[3], reach2 = lbvh_i_times(radius, radius);
    int32_t at = lbvh_root(tree);
    if (!lbvh_i_read_point(tree->desc.dim, p, centre) || !(radius >= 0)) at = -1;
    if (reach2 > lbvh_i_largest()) reach2 = lbvh_i_largest();
    return lbvh_i_overlap(tree, centre, centre, reach2, at);
}

/* The filter of a leaf's own search: its mask. */
LBVH_FN uint32_t lbvh_i_own_filter(const lbvh *tree, int32_t place)
{
    return tree->mask ? tree->mask[tree->first_leaf + place] : LBVH_I_ANY_MASK;
}

/* Leaves at higher places that overlap the leaf at `place` and, where there are masks, share a bit
   with its mask. Over all places: each overlapping pair once. The walk begins at the leaf's skip,
   so it visits neither earlier leaves nor their ancestors (Kureck section 3.1.7 begins at the root,
   and skips nodes whose rightmost index is too low). */
LBVH_FN lbvh_overlap lbvh_overlap_later(const lbvh *tree, int32_t place)
{
    lbvh_node const leaf = lbvh_i_fetch(lbvh_i_leaf(tree, place));
    lbvh_overlap o = lbvh_i_overlap(tree, leaf.min, leaf.max, -1, leaf.skip);
    o.filter = lbvh_i_own_filter(tree, place);
    return o;
}

/* 1 if the query overlaps this node's box. (Boxes: Kureck figure 3.3, an overlap along each
   axis.) */
LBVH_FN_WALK int lbvh_i_meets(const lbvh_overlap *o, const lbvh_node *node)
{
    if (o->reach2 >= 0) return lbvh_box_distance2(node, o->min) <= o->reach2;
    return lbvh_boxes_touch(node, o->min, o->max);
}

/* The next leaf; 0 when there are no more. Cost: per call, the nodes between two hits. */
LBVH_FN_WALK int lbvh_next(lbvh_overlap *o)
{
    const lbvh *tree = o->tree;
    int32_t at = o->at;
    while (at >= 0) {
        lbvh_node const node = lbvh_i_fetch(&tree->node[at]);
        /* lbvh_i_passes, written out: nvcc then spills fewer registers */
        int const meets = lbvh_i_meets(o, &node) && (!tree->mask || (tree->mask[at] & o->filter));
        if (meets && lbvh_is_leaf(tree, at)) {
            o->id = node.link;
            o->place = at - tree->first_leaf;
            o->at = node.skip;
            return 1;
        }
        at = meets ? node.link : node.skip;
    }
    o->at = -1;
    return 0;
}

/* ------------------------------------------------------------------------------------------------
   >>near: ordered traversal around a point, nearer subtrees first. The caller shrinks its reach:

       lbvh_near walk = lbvh_near_point(&tree, p, reach);
       while (lbvh_next_near(&walk)) {
           float d2 = my_distance2(walk.id, p);       // of the element; walk.distance2: of its box
           if (d2 < walk.reach2) walk.reach2 = d2, nearest = walk.id;
       }
   ---------------------------------------------------------------------------------------------- */

typedef struct lbvh_near {
    int32_t id, place;      /* the element found, and its place */
    lbvh_real distance2;    /* from the point to the box found, squared */
    lbvh_real reach2;       /* may be shrunk by you: boxes further away are skipped */
    uint32_t filter;        /* may be set by you, as for lbvh_overlap */
    /* private */
    const lbvh *tree;
    lbvh_real p[3];
    int32_t top;                    /* entries of the stack */
    int32_t node[LBVH_STACK];       /* pending subtrees, the nearest of each level last */
    lbvh_real away2[LBVH_STACK];    /* and their squared distances */
} lbvh_near;

/* Begins a walk around p, of dim numbers; top: 1, or 0 where it finds nothing. */
LBVH_FN void lbvh_i_begin_near(lbvh_near *walk, int dim, const lbvh_real *p, lbvh_real reach)
{
    walk->id = walk->place = -1;
    walk->filter = LBVH_I_ANY_MASK;
    walk->tree = NULL;
    walk->distance2 = 0;
    walk->reach2 = lbvh_i_min(lbvh_i_times(reach, reach), lbvh_i_largest());
    walk->top = lbvh_i_read_point(dim, p, walk->p) && reach >= 0;
    walk->node[0] = 0;
    walk->away2[0] = 0;
}

/* Leaves around p (dim numbers), up to `reach` away (infinity: all of them, within the square root
   of the largest number). */
LBVH_FN lbvh_near lbvh_near_point(const lbvh *tree, const lbvh_real *p, lbvh_real reach)
{
    lbvh_near walk;
    lbvh_i_begin_near(&walk, tree->desc.dim, p, reach);
    walk.tree = tree;
    if (tree->n == 0) walk.top = 0;
    if (walk.top) walk.away2[0] = lbvh_box_distance2(&tree->node[0], walk.p);
    return walk;
}

LBVH_FN void lbvh_i_near_push(lbvh_near *walk, int32_t at, lbvh_real away2)
{
    if (!(away2 <= walk->reach2) || !lbvh_i_passes(walk->tree, at, walk->filter)) return;
    walk->node[walk->top] = at;
    walk->away2[walk->top] = away2;
    walk->top++;
}

/* Goes on with the children of a node, the nearer one on top. */
LBVH_FN_HOT void lbvh_i_near_open(lbvh_near *walk, const lbvh_node *node)
{
    const lbvh *tree = walk->tree;
    int32_t const left = node->link, right = lbvh_right_child(tree, node);
    lbvh_node const l = lbvh_i_fetch(&tree->node[left]), r = lbvh_i_fetch(&tree->node[right]);
    lbvh_real const to_left = lbvh_box_distance2(&l, walk->p),
                    to_right = lbvh_box_distance2(&r, walk->p);
    int const left_first = to_left <= to_right;
    lbvh_i_near_push(walk, left_first ? right : left, left_first ? to_right : to_left);
    lbvh_i_near_push(walk, left_first ? left : right, left_first ? to_left : to_right);
}

/* The next leaf within reach2; 0 when there are no more. Distances do not always ascend: to find
   the nearest, shrink the reach. */
LBVH_FN int lbvh_next_near(lbvh_near *walk)
{
    const lbvh *tree = walk->tree;
    while (walk->top > 0) {
        int32_t const at = walk->node[--walk->top];
        lbvh_real const away2 = walk->away2[walk->top];
        lbvh_node node;
        if (!(away2 <= walk->reach2)) continue;
        node = lbvh_i_fetch(&tree->node[at]);
        if (!lbvh_is_leaf(tree, at)) {
            lbvh_i_near_open(walk, &node);
            continue;
        }
        /* a root that is a leaf was not tested before */
        if (!lbvh_i_passes(tree, at, walk->filter)) continue;
        walk->id = node.link;
        walk->place = at - tree->first_leaf;
        walk->distance2 = away2;
        return 1;
    }
    return 0;
}

/* Inserts a candidate into the k nearest so far, nearest first, equal distances by ascending id:
   ids and distances2 hold `*found` of them. Returns the new squared reach: the k-th distance, or
   `reach2` while there are fewer. */
LBVH_FN lbvh_real lbvh_keep_nearest(int32_t *ids, lbvh_real *distances2, int32_t k, int32_t *found,
                                    lbvh_real reach2, int32_t id, lbvh_real distance2)
{
    int32_t slot = *found;
    if (k < 1 || !(distance2 <= reach2)) return reach2;
    if (slot == k) {
        if (distance2 > distances2[k - 1] || (distance2 == distances2[k - 1] && id > ids[k - 1]))
            return reach2;
        slot--;
    } else ++*found;
    for (; slot > 0 && (distances2[slot - 1] > distance2 ||
                        (distances2[slot - 1] == distance2 && ids[slot - 1] > id));
         slot--) {
        ids[slot] = ids[slot - 1];
        distances2[slot] = distances2[slot - 1];
    }
    ids[slot] = id;
    distances2[slot] = distance2;
    return *found == k ? distances2[k - 1] : reach2;
}

/* ------------------------------------------------------------------------------------------------
   >>ray: ordered traversal along a ray, nearer subtrees first. The caller tests what is in a box:

       lbvh_ray ray = lbvh_ray_cast(&tree, origin, direction, t_max);
       while (lbvh_next_ray(&ray))                              // any hit at all: break
           if (hits(ray.id, &t) && t < ray.t_max) ray.t_max = t, closest = ray.id;

   Of elements at exactly the same t any may come first, and the others not at all. For the lowest
   id, keep t_max a little longer.
   ---------------------------------------------------------------------------------------------- */

typedef struct lbvh_ray {
    int32_t id, place;      /* the element found, and its place */
    lbvh_real t;            /* where the ray enters the box found, 0 if it begins inside */
    lbvh_real t_max;        /* may be shrunk by you: boxes entered later are skipped */
    uint32_t filter;        /* may be set by you, as for lbvh_overlap */
    /* private */
    const lbvh *tree;
    lbvh_real origin[3], inverse[3];    /* of the direction; infinite where it is 0 */
    int32_t negative[3];                /* 1 where the direction is negative */
    int32_t top;
    int32_t node[LBVH_STACK];           /* pending subtrees, the nearest of each level last */
    lbvh_real enters[LBVH_STACK];       /* and where the ray enters them */
} lbvh_ray;

/* Slab test: 1 if the ray meets the node's box up to t_max; `*t`: where it enters. Along each axis
   the ray is between the box's planes from in to out, at a plane when t = (plane - origin) /
   direction, and so in the box from the largest in to the smallest out (Ericson section 5.3.3). Out
   is widened by the rounding error, so that a ray along a face or an edge does not slip through: in
   and out have three roundings each, half a unit in the last place or less, together 3 units (Ize
   adds 2). A NaN is 0 times infinity: the ray lies in that plane, which then bounds nothing, as
   comparisons with NaN are false. */
LBVH_FN_HOT int lbvh_i_ray_enters(const lbvh_ray *ray, const lbvh_node *node, lbvh_real *t)
{
    lbvh_real const widen = LBVH_I_REAL_KIND == 1 ? (lbvh_real)1.00000036
                                                  : (lbvh_real)1.0000000000000007;
    lbvh_real begin = 0, end = ray->t_max;
    int a;
    LBVH_I_UNROLL
    for (a = 0; a < 3; a++) {
        lbvh_real const down = (node->min[a] - ray->origin[a]) * ray->inverse[a],
                        up = (node->max[a] - ray->origin[a]) * ray->inverse[a];
        lbvh_real in = down, out = up;
        if (ray->negative[a]) {
            in = up;
            out = down;
        }
        out *= widen;
        if (in > begin) begin = in;
        if (out < end) end = out;
    }
    *t = begin;
    return begin <= end && begin <= lbvh_i_largest();
}

LBVH_FN void lbvh_i_ray_push(lbvh_ray *ray, int32_t at, lbvh_real enters)
{
    if (!lbvh_i_passes(ray->tree, at, ray->filter)) return;
    ray->node[ray->top] = at;
    ray->enters[ray->top] = enters;
    ray->top++;
}

/* Begins a ray, of dim numbers each; top: 1, or 0 where it finds nothing. */
LBVH_FN void lbvh_i_begin_ray(lbvh_ray *ray, int dim, const lbvh_real *origin,
                              const lbvh_real *direction, lbvh_real t_max)
{
    lbvh_real along[3];
    int const from = lbvh_i_read_point(dim, origin, ray->origin),
              to = lbvh_i_read_point(dim, direction, along);
    int a;
    ray->id = ray->place = -1;
    ray->filter = LBVH_I_ANY_MASK;
    ray->tree = NULL;
    ray->t = 0;
    /* a plane parallel to the ray is at infinity */
    ray->t_max = lbvh_i_min(t_max, lbvh_i_largest());
    ray->top = from && to && t_max >= 0;
    ray->node[0] = 0;
    ray->enters[0] = 0;
    LBVH_I_UNROLL
    for (a = 0; a < 3; a++) {
        ray->inverse[a] = lbvh_i_infinity();
        if (along[a] != 0) ray->inverse[a] = lbvh_i_over(1, along[a]);
        ray->negative[a] = along[a] < 0;
    }
}

/* A ray from origin along direction (dim numbers each; any length, t counts in it), for t in 0 ..
   t_max. NaN and infinite numbers (except t_max) find nothing; a direction of 0 finds the boxes
   that contain the origin. */
LBVH_FN lbvh_ray lbvh_ray_cast(const lbvh *tree, const lbvh_real *origin,
                               const lbvh_real *direction, lbvh_real t_max)
{
    lbvh_ray ray;
    lbvh_i_begin_ray(&ray, tree->desc.dim, origin, direction, t_max);
    ray.tree = tree;
    if (tree->n == 0) ray.top = 0;
    if (ray.top) ray.top = lbvh_i_ray_enters(&ray, &tree->node[0], &ray.enters[0]);
    return ray;
}

/* Goes on with the children of a node that the ray enters, the nearer one on top. */
LBVH_FN_HOT void lbvh_i_ray_open(lbvh_ray *ray, const lbvh_node *node)
{
    const lbvh *tree = ray->tree;
    int32_t const left = node->link, right = lbvh_right_child(tree, node);
    lbvh_node const l = lbvh_i_fetch(&tree->node[left]), r = lbvh_i_fetch(&tree->node[right]);
    lbvh_real t_left, t_right;
    int const in_left = lbvh_i_ray_enters(ray, &l, &t_left),
              in_right = lbvh_i_ray_enters(ray, &r, &t_right);
    int const left_first = t_left <= t_right;
    if (left_first && in_right) lbvh_i_ray_push(ray, right, t_right);
    if (in_left) lbvh_i_ray_push(ray, left, t_left);
    if (!left_first && in_right) lbvh_i_ray_push(ray, right, t_right);
}

/* The next leaf whose box the ray enters at or before t_max; 0 when there are no more. */
LBVH_FN int lbvh_next_ray(lbvh_ray *ray)
{
    const lbvh *tree = ray->tree;
    while (ray->top > 0) {
        int32_t const at = ray->node[--ray->top];
        lbvh_real const enters = ray->enters[ray->top];
        lbvh_node node;
        if (!(enters <= ray->t_max)) continue;
        node = lbvh_i_fetch(&tree->node[at]);
        if (!lbvh_is_leaf(tree, at)) {
            lbvh_i_ray_open(ray, &node);
            continue;
        }
        /* a root that is a leaf was not tested before */
        if (!lbvh_i_passes(tree, at, ray->filter)) continue;
        ray->id = node.link;
        ray->place = at - tree->first_leaf;
        ray->t = enters;
        return 1;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------
   >>triangles: exact tests for the triangles in the boxes. Points have 3 numbers.
   ---------------------------------------------------------------------------------------------- */

/* The part of a triangle that a point belongs to: a vertex or edge that triangles share can so be
   counted once. */
typedef enum lbvh_feature {
    LBVH_FACE = 0,
    LBVH_EDGE_AB, LBVH_EDGE_BC, LBVH_EDGE_CA,
    LBVH_VERTEX_A, LBVH_VERTEX_B, LBVH_VERTEX_C
} lbvh_feature;

LBVH_FN lbvh_real lbvh_i_dot(const lbvh_real a[3], const lbvh_real b[3])
{
    return lbvh_i_times(a[0], b[0]) + lbvh_i_times(a[1], b[1]) + lbvh_i_times(a[2], b[2]);
}

LBVH_FN void lbvh_i_minus(const lbvh_real *a, const lbvh_real *b, lbvh_real d[3])
{
    d[0] = a[0] - b[0];
    d[1] = a[1] - b[1];
    d[2] = a[2] - b[2];
}

/* a * b - c * d. Swapping the products negates it exactly, which a fused multiply-add would
   break. */
LBVH_FN lbvh_real lbvh_i_cross2(lbvh_real a, lbvh_real b, lbvh_real c, lbvh_real d)
{
    return lbvh_i_times(a, b) - lbvh_i_times(c, d);
}

LBVH_FN void lbvh_i_cross(const lbvh_real a[3], const lbvh_real b[3], lbvh_real c[3])
{
    c[0] = lbvh_i_cross2(a[1], b[2], a[2], b[1]);
    c[1] = lbvh_i_cross2(a[2], b[0], a[0], b[2]);
    c[2] = lbvh_i_cross2(a[0], b[1], a[1], b[0]);
}

LBVH_FN void lbvh_i_along(const lbvh_real *a, const lbvh_real d[3], lbvh_real t, lbvh_real q[3])
{
    q[0] = a[0] + lbvh_i_times(t, d[0]);
    q[1] = a[1] + lbvh_i_times(t, d[1]);
    q[2] = a[2] + lbvh_i_times(t, d[2]);
}

LBVH_FN lbvh_feature lbvh_i_vertex(lbvh_feature feature, const lbvh_real *v, lbvh_real q[3])
{
    q[0] = v[0];
    q[1] = v[1];
    q[2] = v[2];
    return feature;
}

/* The point q of the segment from a to b closest to p, and its feature. A segment of length 0 is
   its first end. */
LBVH_FN lbvh_feature lbvh_i_closest_on_edge(const lbvh_real *p, const lbvh_real *a,
                                            const lbvh_real *b, lbvh_feature at_a,
                                            lbvh_feature between, lbvh_feature at_b, lbvh_real q[3])
{
    lbvh_real d[3], to_p[3], along, length2;
    lbvh_i_minus(b, a, d);
    lbvh_i_minus(p, a, to_p);
    along = lbvh_i_dot(d, to_p);
    length2 = lbvh_i_dot(d, d);
    if (!(along > 0)) return lbvh_i_vertex(at_a, a, q);
    if (along >= length2) return lbvh_i_vertex(at_b, b, q);
    lbvh_i_along(a, d, lbvh_i_over(along, length2), q);
    return between;
}

LBVH_FN lbvh_real lbvh_i_distance2(const lbvh_real *a, const lbvh_real *b)
{
    return lbvh_i_square(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

/* The closest point on the three edges: where p does not project into the face, or there is no face
   (all vertices on a line). */
LBVH_FN lbvh_feature lbvh_i_closest_on_edges(const lbvh_real *p, const lbvh_real *a,
                                             const lbvh_real *b, const lbvh_real *c, lbvh_real q[3])
{
    lbvh_real r[3];
    lbvh_feature best, other;
    best = lbvh_i_closest_on_edge(p, a, b, LBVH_VERTEX_A, LBVH_EDGE_AB, LBVH_VERTEX_B, q);
    other = lbvh_i_closest_on_edge(p, b, c, LBVH_VERTEX_B, LBVH_EDGE_BC, LBVH_VERTEX_C, r);
    if (lbvh_i_distance2(r, p) < lbvh_i_distance2(q, p)) best = lbvh_i_vertex(other, r, q);
    other = lbvh_i_closest_on_edge(p, c, a, LBVH_VERTEX_C, LBVH_EDGE_CA, LBVH_VERTEX_A, r);
    if (lbvh_i_distance2(r, p) < lbvh_i_distance2(q, p)) best = lbvh_i_vertex(other, r, q);
    return best;
}

/* The point q of triangle a b c closest to p, and its feature: face, edge or vertex. A sphere
   touches the triangle where q is no further than its radius from p. Triangles without area are
   segments or points. Products of four lengths must be representable: in float, edges and distances
   of 1e-9 to 1e9.

   from_a : from_b : from_c are the areas of the triangles p b c, p c a and p a b, projected along
   the normal: the barycentric weights of p's projection q = a + (from_b ab + from_c ac) / total
   (Ericson section 3.4). If one is not above 0, the projection lies outside, and q is the nearest
   point of the edges, found by clamping (section 5.1.2). */
LBVH_FN lbvh_feature lbvh_closest_on_triangle(const lbvh_real *p, const lbvh_real *a,
                                              const lbvh_real *b, const lbvh_real *c,
                                              lbvh_real q[3])
{
    lbvh_real ab[3], ac[3], ap[3], bp[3], cp[3], normal[3], part[3], from_a, from_b, from_c, total;
    lbvh_i_minus(b, a, ab);
    lbvh_i_minus(c, a, ac);
    lbvh_i_minus(p, a, ap);
    lbvh_i_minus(p, b, bp);
    lbvh_i_minus(p, c, cp);
    lbvh_i_cross(ab, ac, normal);
    lbvh_i_cross(bp, cp, part);
    from_a = lbvh_i_dot(normal, part);
    lbvh_i_cross(cp, ap, part);
    from_b = lbvh_i_dot(normal, part);
    lbvh_i_cross(ap, bp, part);
    from_c = lbvh_i_dot(normal, part);
    if (!(from_a > 0 && from_b > 0 && from_c > 0)) return lbvh_i_closest_on_edges(p, a, b, c, q);
    total = from_a + from_b + from_c;
    if (!lbvh_i_finite(total)) return lbvh_i_closest_on_edges(p, a, b, c, q);
    lbvh_i_along(a, ab, lbvh_i_over(from_b, total), q);
    lbvh_i_along(q, ac, lbvh_i_over(from_c, total), q);
    return LBVH_FACE;
}

LBVH_FN lbvh_real lbvh_i_absolute(lbvh_real x) { return x < 0 ? -x : x; }

LBVH_FN lbvh_real lbvh_i_pick(const lbvh_real v[3], int k)
{
    return k == 0 ? v[0] : k == 1 ? v[1] : v[2];
}

/* A vertex, sheared so that the line becomes axis k: its other two coordinates times direction[k],
   which avoids a division: (corner[i] - corner[k] direction[i] / direction[k]) direction[k]
   (Woop). */
LBVH_FN void lbvh_i_shear(const lbvh_real corner[3], const lbvh_real direction[3], int k,
                          lbvh_real seen[2])
{
    int const i = k == 2 ? 0 : k + 1, j = k == 0 ? 2 : k - 1;
    lbvh_real const depth = lbvh_i_pick(corner, k), along = lbvh_i_pick(direction, k);
    seen[0] = lbvh_i_cross2(lbvh_i_pick(corner, i), along, depth, lbvh_i_pick(direction, i));
    seen[1] = lbvh_i_cross2(lbvh_i_pick(corner, j), along, depth, lbvh_i_pick(direction, j));
}

/* 1 if the line from origin along direction meets the triangle, from either side. `*t`: where, in
   lengths of direction (negative: behind); u, v: barycentric weights of b and c (of a: 1 - u - v).
   A line in the triangle's plane, and a triangle without area, are missed.

   of_a, of_b and of_c are in proportion to the areas, projected along the line, of the triangles
   that the edges make with it. They have one sign if the line passes inside, and then are the
   weights of the vertices. Watertight (Woop): a vertex is sheared alike for all triangles that
   share it. The side of an edge on which the line passes is the sign of a difference of two rounded
   products: never wrong, and exactly opposite for the neighbouring triangle. On the edge both hit.
   So rounding never opens a gap. It can add a hit: a line that passes a triangle at 10^5 of its
   sizes or more (double: 10^14) may be on all its edges. Searches through boxes leave such hits
   out.

   The cubed distance from origin to the vertices times the squared length of direction must be
   representable, else hits are missed or wrong: with a direction of length 1, float distances of
   1e-10 to 1e12; with one as long as the distance, 1e-6 to 1e7. */
LBVH_FN int lbvh_ray_triangle(const lbvh_real *origin, const lbvh_real *direction,
                              const lbvh_real *a, const lbvh_real *b, const lbvh_real *c,
                              lbvh_real *t, lbvh_real *u, lbvh_real *v)
{
    lbvh_real const x = lbvh_i_absolute(direction[0]), y = lbvh_i_absolute(direction[1]),
                    z = lbvh_i_absolute(direction[2]);
    int const k = x >= y && x >= z ? 0 : y >= z ? 1 : 2; /* the longest axis */
    lbvh_real oa[3], ob[3], oc[3], seen_a[2], seen_b[2], seen_c[2], of_a, of_b, of_c, total, depth;
    lbvh_i_minus(a, origin, oa);
    lbvh_i_minus(b, origin, ob);
    lbvh_i_minus(c, origin, oc);
    lbvh_i_shear(oa, direction, k, seen_a);
    lbvh_i_shear(ob, direction, k, seen_b);
    lbvh_i_shear(oc, direction, k, seen_c);
    of_a = lbvh_i_cross2(seen_b[0], seen_c[1], seen_b[1], seen_c[0]);
    of_b = lbvh_i_cross2(seen_c[0], seen_a[1], seen_c[1], seen_a[0]);
    of_c = lbvh_i_cross2(seen_a[0], seen_b[1], seen_a[1], seen_b[0]);
    if (!(of_a >= 0 && of_b >= 0 && of_c >= 0) && !(of_a <= 0 && of_b <= 0 && of_c <= 0)) return 0;
    total = of_a + of_b + of_c;
    if (total == 0) return 0;
    depth = lbvh_i_times(of_a, lbvh_i_pick(oa, k)) + lbvh_i_times(of_b, lbvh_i_pick(ob, k)) +
            lbvh_i_times(of_c, lbvh_i_pick(oc, k));
    *t = lbvh_i_over(lbvh_i_over(depth, total), lbvh_i_pick(direction, k));
    if (!lbvh_i_finite(*t)) return 0;
    *u = lbvh_i_over(of_b, total);
    *v = lbvh_i_over(of_c, total);
    return 1;
}

/* ------------------------------------------------------------------------------------------------
   >>queries: one search of a lbvh_queries. `q` numbers the searches: by place for own elements,
   else by row of the caller's array.
   ---------------------------------------------------------------------------------------------- */

/* 1 if the tree's own elements search. */
LBVH_FN int lbvh_i_own(const lbvh_queries *queries) { return queries->data == NULL; }

/* The desc for reading the queries' numbers. */
LBVH_FN lbvh_desc lbvh_i_query_desc(const lbvh *tree, const lbvh_queries *queries)
{
    lbvh_desc desc = tree->desc;
    desc.indices = NULL;
    desc.radius = 0;
    desc.kind = queries->kind;
    return desc;
}

/* The search of an own element. HALF begins after its leaf. */
LBVH_FN lbvh_overlap lbvh_i_search_own(const lbvh *tree, const lbvh_queries *queries, int32_t place)
{
    lbvh_node const leaf = lbvh_i_fetch(lbvh_i_leaf(tree, place));
    lbvh_overlap o;
    if (queries->kind == LBVH_POINTS) {
        lbvh_real centre[3];
        int a;
        for (a = 0; a < 3; a++) centre[a] = 2 * lbvh_i_half_centre(leaf.min[a], leaf.max[a]);
        o = lbvh_overlap_sphere(tree, centre, queries->radius);
    } else o = lbvh_overlap_between(tree, leaf.min, leaf.max);
    if (lbvh_left_out(&leaf)) o.at = -1;
    else if (queries->flags & LBVH_HALF) o.at = leaf.skip;
    return o;
}

/* The search of one of the caller's queries. */
LBVH_FN lbvh_overlap lbvh_i_search_at(const lbvh *tree, const lbvh_queries *queries, int32_t q)
{
    const lbvh_real *const x = lbvh_i_at(queries->data, queries->stride, q);
    if (queries->kind == LBVH_BOXES) return lbvh_overlap_box(tree, x);
    return lbvh_overlap_sphere(tree, x,
                               queries->kind == LBVH_POINTS ? queries->radius : x[tree->desc.dim]);
}

/* The caller's number of search q: an own element's id. */
LBVH_FN int32_t lbvh_i_query_id(const lbvh *tree, const lbvh_queries *queries, int32_t q)
{
    return lbvh_i_own(queries) ? lbvh_i_id(tree, q) : q;
}

/* The row of its results. */
LBVH_FN int32_t lbvh_i_row(const lbvh *tree, const lbvh_queries *queries, int32_t q)
{
    return queries->flags & LBVH_PLACES ? q : lbvh_i_query_id(tree, queries, q);
}

/* Search q. */
LBVH_FN lbvh_overlap lbvh_i_search(const lbvh *tree, const lbvh_queries *queries, int32_t q)
{
    lbvh_overlap o = lbvh_i_own(queries) ? lbvh_i_search_own(tree, queries, q)
                                         : lbvh_i_search_at(tree, queries, q);
    o.filter = queries->filters ? queries->filters[lbvh_i_query_id(tree, queries, q)]
                                : queries->filter;
    if (lbvh_i_own(queries)) o.filter &= lbvh_i_own_filter(tree, q);
    return o;
}

/* ------------------------------------------------------------------------------------------------
   >>stb_ds: the walks as arrays, where stb_ds.h was included before. Ids are appended to `*hits`,
   an stb_ds array (NULL is an empty one).
   ---------------------------------------------------------------------------------------------- */

#ifdef INCLUDE_STB_DS_H

/* Leaves that overlap a box, within a radius of a point, and pairs of overlapping boxes (two ids
   each). */
static inline void lbvh_arr_overlaps(const lbvh *tree, const lbvh_real *box, int32_t **hits)
{
    lbvh_overlap o = lbvh_overlap_box(tree, box);
    while (lbvh_next(&o)) stbds_arrput(*hits, o.id);
}

static inline void lbvh_arr_within(const lbvh *tree, const lbvh_real *p, lbvh_real radius,
                                   int32_t **hits)
{
    lbvh_overlap o = lbvh_overlap_sphere(tree, p, radius);
    while (lbvh_next(&o)) stbds_arrput(*hits, o.id);
}

static inline void lbvh_arr_pairs(const lbvh *tree, int32_t **hits)
{
    int32_t place;
    for (place = 0; place < tree->n; place++) {
        lbvh_overlap o = lbvh_overlap_later(tree, place);
        int32_t const id = lbvh_i_id(tree, place);
        while (lbvh_next(&o)) {
            stbds_arrput(*hits, id);
            stbds_arrput(*hits, o.id);
        }
    }
}
#endif

/* ------------------------------------------------------------------------------------------------
   >>clusters: what LBVH_PLOC compares (figure at >>ploc)

   A cluster is a subtree whose parent is not made yet. Two clusters may merge at a cost: half the
   surface of the box around both (2D: half the perimeter). Of at most LBVH_I_WINDOW clusters,
   i and j are numbers below 32. The key of a pair is its cost with the 5 lowest bits replaced by
   i ^ j:

       cost, as an integer of the same order | i ^ j       (^: exclusive or)

   Both clusters of a pair have the same key for it, and the key of i names its partner:
   j = i ^ (key & 31). No two pairs with the same i have the same key, so every cluster has one
   nearest partner, and the smallest key of all is that of two clusters that choose each other.
   Where all costs are equal, i and i ^ 1 do: half of the clusters are left after a round.
   ---------------------------------------------------------------------------------------------- */

enum { LBVH_I_WINDOW = 32, LBVH_I_CLUSTERS = 16, LBVH_I_RADIUS = 8 };

#if LBVH_I_REAL_KIND == 1
typedef int32_t lbvh_i_pair;
#else
typedef int64_t lbvh_i_pair;
#endif

/* The edge of the box around two boxes, along one axis. */
LBVH_FN_HOT lbvh_real lbvh_i_edge(lbvh_real min, lbvh_real max, lbvh_real other_min,
                                  lbvh_real other_max)
{
    return lbvh_i_max(max, other_max) - lbvh_i_min(min, other_min);
}

/* Half the surface of a box with these edges. */
LBVH_FN_HOT lbvh_real lbvh_i_half_area(int dim, lbvh_real x, lbvh_real y, lbvh_real z)
{
    if (dim == 2) return x + y;
    return lbvh_i_kept(lbvh_i_times(x, lbvh_i_kept(y + z)) + lbvh_i_times(y, z));
}

/* The largest key, which is that of no pair. */
LBVH_FN_HOT lbvh_i_pair lbvh_i_no_pair(void)
{
    return (lbvh_i_pair)~((uint64_t)1 << (8 * sizeof(lbvh_i_pair) - 1));
}

/* The sign is dropped: in 2D two inverted boxes have a negative cost. */
LBVH_FN_HOT lbvh_i_pair lbvh_i_pair_key(lbvh_real cost, int32_t i, int32_t j)
{
    lbvh_i_pair bits;
    memcpy(&bits, &cost, sizeof bits);
    return (bits & lbvh_i_no_pair() & ~(lbvh_i_pair)31) | (i ^ j);
}

/* A coordinate for costs: bounded, so that no cost is a NaN. The box of an element left out becomes
   the inverted box of all space. */
LBVH_FN lbvh_real lbvh_i_bounded(lbvh_real x)
{
    lbvh_real const most = LBVH_I_REAL_KIND == 1 ? (lbvh_real)5e18 : (lbvh_real)3e153;
    return lbvh_i_min(lbvh_i_max(x, -most), most);
}

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
   its pairs. Any other one is replaced in its tree, and searches again, in groups of eight
   (lbvh_i_group).

   Siblings lie side by side: `link` is the left child, link + 1 the right one, ~index in a leaf;
   `skip` is as in >>nodes. A leaf is added by splitting another one in two, in its slot s, so that
   no skip link into s changes. A leaf is removed by moving its sibling into the parent's slot; the
   skips of the sibling's last leaf and of the nodes that end with it are set to the parent's:

         add C beside B                      remove A, C's sibling
            s: B    ->   s: *                   s: *         ->    s: C
                            / \                    / \
                        u: B   u+1: C          u: A   u+1: C       u, u+1: free

   A rebuild (lbvh_build, then the nodes in depth-first order) restores the quality. It comes when
   the leaves changed since the last one are as many as half of all leaves, or when it is cheaper
   than replacing leaf by leaf. So no update costs more than a rebuild and the searches, and a
   change costs O(log n) in the mean.
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
   is negative. Others: where the category of each shares a bit with the mask of the other. */
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
    int32_t leaves;
    int32_t used;           /* nodes below it have been used */
    int32_t unused;         /* first of a list of pairs of nodes that are free, -1: none */
    int32_t changes;        /* leaves changed since the last rebuild */
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

enum { LBVH_WORLD_BLOCKS = 21 };

typedef struct lbvh_world {
    lbvh_world_desc desc;       /* with defaults filled in */
    int32_t count;              /* indices in use are below this */
    int32_t objects, sleepers;  /* alive; and sleeping */
    lbvh_object *object;        /* [count] */
    lbvh_node *box;             /* [2 count] by index: the given box, then the stored one. What a
                                   step reads of an object lies side by side: the link and skip of
                                   the first hold its user number, the link of the second its
                                   generation (0: removed) */
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
    int32_t changed_count, vacant_count, capacity, pair_capacity, token, too_deep;
    int32_t not_run;            /* desc.parallel.run left a task of this update out */
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

/* The object's new box. displacement: dim numbers, how far it will probably move before its box
   is stored again (NULL: none); the stored box is longer by it. It is not read where the stored box
   holds the new one. Does not wake, and may move static objects. LBVH_NOT_FINITE, LBVH_INVERTED,
   LBVH_BAD_ID: the object is as it was. O(1). */
LBVH_API lbvh_result lbvh_world_move(lbvh_world *world, lbvh_id id, const lbvh_real *box,
                                     const lbvh_real *displacement);

/* Where the stored box holds the new one: moves the object, and returns 1. Else 0: call
   lbvh_world_move. For callers whose displacement costs something to find. O(1). */
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
   found are there, all others come with a later update that succeeds. The same calls give the same
   pairs in the same order, whatever world.desc.parallel, which you may change. In its tasks run
   rebuilds and searches; they take memory in proportion to the objects and pairs, and where there
   is none the calling thread does all. LBVH_NOT_RUN: so it did where `run` left a task out; the
   update is complete. */
LBVH_API lbvh_result lbvh_world_update(lbvh_world *world);

/* The id of an index; 0 where no object has it. And back: LBVH_BAD_ID, *index is -1. */
LBVH_API lbvh_id lbvh_world_id(const lbvh_world *world, int32_t index);
LBVH_API lbvh_result lbvh_world_index(const lbvh_world *world, lbvh_id id, int32_t *index);

/* The pair of two indices: its place in world.pair, -1: there is none. O(pairs of a). */
LBVH_API int32_t lbvh_world_find_pair(const lbvh_world *world, int32_t a, int32_t b);

/* LBVH_OK, or LBVH_INVALID where trees, lists or pairs are damaged. For tests. O(n + pairs). */
LBVH_API lbvh_result lbvh_world_validate(const lbvh_world *world);

/* Rounds a box of doubles outward: the least box of LBVH_REAL that contains it. LBVH_NOT_FINITE
   where there is none. Inverted boxes stay inverted: what takes them refuses them.
   LBVH_BAD_ARGUMENT: dim. */
LBVH_API lbvh_result lbvh_box_of_doubles(int dim, const double *box, lbvh_real *out);

/* 1 if the filters let two objects make a pair. */
LBVH_FN int lbvh_filters_allow(const lbvh_filter *a, const lbvh_filter *b)
{
    if (a->group != 0 && a->group == b->group) return a->group > 0;
    return (a->category & b->mask) != 0 && (b->category & a->mask) != 0;
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
   index again. */
LBVH_FN_WALK uint64_t lbvh_world_user(const lbvh_world *world, int32_t index)
{
    const lbvh_node *box = lbvh_i_box_given(world, index);
    return (uint64_t)(uint32_t)box->link << 32 | (uint32_t)box->skip;
}

/* Which of an object's boxes counts: the given one, or the stored one, larger by the margin. */
typedef enum lbvh_fit { LBVH_TIGHT = 0, LBVH_FAT } lbvh_fit;

/* Prefetches what a loop will read later. nvcc refuses it in functions of both sides. */
#if (defined(__GNUC__) || defined(__clang__)) && !defined(__CUDA_ARCH__)
#define LBVH_I_PREFETCH(address) __builtin_prefetch(address)
#else
#define LBVH_I_PREFETCH(address) ((void)(address))
#endif

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

   Objects removed since are not found. Order: as the trees have it, the same after the same calls.
   ---------------------------------------------------------------------------------------------- */

typedef struct lbvh_world_overlap {
    int32_t index;          /* the object found */
    uint64_t user;
    lbvh_filter filter;     /* may be set by you (initially all) */
    lbvh_fit fit;           /* may be set by you (initially LBVH_TIGHT) */
    /* private */
    const lbvh_world *world;
    lbvh_node box;
    int32_t tree, at;
} lbvh_world_overlap;

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
    lbvh_filter filter;     /* may be set by you (initially all) */
    lbvh_fit fit;           /* may be set by you (initially LBVH_TIGHT) */
    /* private */
    const lbvh_world *world;
    lbvh_ray ray;           /* of the shape's centre; its stack holds 2 node + tree */
    lbvh_real half[3];      /* half the edges of the shape's box */
    int round;              /* 1: all points within radius of the segment between two ends */
    lbvh_real end[2][3], vector[3], radius;
} lbvh_world_cast;

/* 1 if the shape's box enters the box up to t_max: the ray of its centre enters the box grown by
   its half edges (Minkowski sum; Ericson section 5.5.8). Of a round shape, `*t` is lowered and
   t_max raised by more than the rounding: its own test decides. */
LBVH_FN int lbvh_i_cast_enters(lbvh_world_cast *cast, const lbvh_node *node, lbvh_real *t)
{
    lbvh_real const spare = LBVH_I_REAL_KIND == 1 ? (lbvh_real)1e-6 : (lbvh_real)2e-15;
    lbvh_node grown = *node;
    int a, enters;
    for (a = 0; a < 3; a++) {
        grown.min[a] -= cast->half[a];
        grown.max[a] += cast->half[a];
    }
    cast->ray.t_max = cast->t_max;
    if (cast->round) cast->ray.t_max += spare * cast->t_max;
    enters = lbvh_i_ray_enters(&cast->ray, &grown, t);
    if (cast->round) *t -= spare * *t;
    return enters;
}

/* 1 if a round shape touches the box up to t_max; `*t`: where. */
LBVH_API int lbvh_i_cast_touches(const lbvh_world_cast *cast, const lbvh_node *box, lbvh_real *t);

LBVH_FN void lbvh_i_cast_push(lbvh_world_cast *cast, int32_t t, int32_t at, lbvh_real enters)
{
    cast->ray.node[cast->ray.top] = 2 * at + t;
    cast->ray.enters[cast->ray.top++] = enters;
}

/* A cast of the box with centre `origin` and these half edges. */
LBVH_FN lbvh_world_cast lbvh_i_cast(const lbvh_world *world, const lbvh_real *origin,
                                    const lbvh_real extents[3], const lbvh_real *vector,
                                    lbvh_real t_max)
{
    lbvh_world_cast cast;
    lbvh_real enters;
    int32_t t;
    int a, usable;
    memset(&cast, 0, sizeof cast);
    cast.index = -1;
    cast.world = world;
    cast.filter = lbvh_i_all();
    lbvh_i_begin_ray(&cast.ray, world->desc.dim, origin, vector, t_max);
    cast.t_max = cast.ray.t_max;
    usable = cast.ray.top;
    cast.ray.top = 0;
    for (a = 0; a < world->desc.dim; a++) {
        cast.half[a] = extents[a];
        usable = usable && extents[a] >= 0;
    }
    for (t = 1; t >= 0 && usable; t--)
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
    lbvh_real const extents[3] = {0, 0, 0};
    return lbvh_i_cast(world, origin, extents, direction, t_max);
}
LBVH_FN lbvh_world_cast lbvh_world_segment(const lbvh_world *world, const lbvh_real *from,
                                           const lbvh_real *to)
{
    lbvh_real along[3] = {0, 0, 0};
    int a;
    for (a = 0; a < world->desc.dim; a++) along[a] = to[a] - from[a];
    return lbvh_world_ray(world, from, along, 1);
}

/* A box between min and max, grown by radius, swept along vector, t in 0 .. 1. Half edges are
   rounded up: no box that is touched is missed. */
LBVH_FN lbvh_world_cast lbvh_i_cast_between(const lbvh_world *world, const lbvh_real *min,
                                            const lbvh_real *max, lbvh_real radius,
                                            const lbvh_real *vector)
{
    lbvh_real const up = LBVH_I_REAL_KIND == 1 ? (lbvh_real)5e-7 : (lbvh_real)1e-15;
    lbvh_real centre[3] = {0, 0, 0}, extents[3] = {0, 0, 0};
    int a;
    for (a = 0; a < world->desc.dim; a++) {
        centre[a] = 2 * lbvh_i_half_centre(min[a], max[a]);
        extents[a] = radius >= 0 && min[a] <= max[a] ? max[a] - centre[a] + radius : -1;
        if (extents[a] >= 0) extents[a] += up * (extents[a] + lbvh_i_absolute(centre[a]));
    }
    return lbvh_i_cast(world, centre, extents, vector, 1);
}

/* A box of 2 dim numbers, swept along the vector. Inverted boxes find nothing. */
LBVH_FN lbvh_world_cast lbvh_world_cast_box(const lbvh_world *world, const lbvh_real *box,
                                            const lbvh_real *vector)
{
    return lbvh_i_cast_between(world, box, box + world->desc.dim, 0, vector);
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
    cast = lbvh_i_cast_between(world, min, max, usable ? radius : -1, vector);
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
    lbvh_filter filter;     /* may be set by you (initially all) */
    lbvh_fit fit;           /* may be set by you (initially LBVH_TIGHT) */
    /* private */
    const lbvh_world *world;
    lbvh_near walk;         /* its stack holds 2 node + tree */
} lbvh_world_near;

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
    for (t = 1; t >= 0 && usable; t--)
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
   After a refusal, and LBVH_NOT_RUN, the wide tree is empty, and keeps its memory. O(n), about as
   long as a build. */
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
    const lbvh_real *t_maxs;    /* [n] one for each ray, 0 is 0 (default: t_max for all) */
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
   box) or box; needs desc.copy (else LBVH_NOT_BUILT). */
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

/* Elements that overlap a box (2 dim numbers): ids, room for `capacity`, in the order of the wide
   tree; `*needed`: their number, also when they did not fit (LBVH_BUFFER_TOO_SMALL). filter as in
   lbvh_rays. With desc.copy the answer of lbvh_overlap_box (triangles: by their boxes). Without,
   the elements of all leaves that touch the box: yours to test. */
LBVH_API lbvh_result lbvh_wide_overlaps(const lbvh_wide *wide, const lbvh_real *box,
                                        uint32_t filter, int32_t *ids, int64_t capacity,
                                        int64_t *needed);

#ifdef LBVH_CUDA
/* The same on a GPU: the same arrays, bit for bit, and the same answers. As at >>cuda-api, pointers
   d_... and those of lbvh_rays are device memory, and no call waits unless it says so. Points and
   boxes are sorted by place inside a call, unless its flags have LBVH_SORTED. Rays are traced as
   they come: sorting them takes about as long as it saves. */

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

#ifdef __cplusplus
} /* extern "C" */
#endif

/* ------------------------------------------------------------------------------------------------
   >>cuda-templates: for .cu files: the walks on a lbvh_device, and a kernel over all pairs
   ---------------------------------------------------------------------------------------------- */

#if defined(LBVH_CUDA) && defined(__CUDACC__)

/* The walks, in kernels. They exist on the device only. */
#define LBVH_I_DEVICE static __device__ __forceinline__
LBVH_I_DEVICE lbvh_overlap lbvh_overlap_box(const lbvh_device *device, const lbvh_real *box)
{
    return lbvh_overlap_box(&device->tree, box);
}
LBVH_I_DEVICE lbvh_overlap lbvh_overlap_between(const lbvh_device *device, const lbvh_real *min,
                                                const lbvh_real *max)
{
    return lbvh_overlap_between(&device->tree, min, max);
}
LBVH_I_DEVICE lbvh_overlap lbvh_overlap_point(const lbvh_device *device, const lbvh_real *p)
{
    return lbvh_overlap_point(&device->tree, p);
}
LBVH_I_DEVICE lbvh_overlap lbvh_overlap_sphere(const lbvh_device *device, const lbvh_real *p,
                                               lbvh_real radius)
{
    return lbvh_overlap_sphere(&device->tree, p, radius);
}
LBVH_I_DEVICE lbvh_overlap lbvh_overlap_later(const lbvh_device *device, int32_t place)
{
    return lbvh_overlap_later(&device->tree, place);
}
LBVH_I_DEVICE lbvh_near lbvh_near_point(const lbvh_device *device, const lbvh_real *p,
                                        lbvh_real reach)
{
    return lbvh_near_point(&device->tree, p, reach);
}
LBVH_I_DEVICE lbvh_ray lbvh_ray_cast(const lbvh_device *device, const lbvh_real *origin,
                                     const lbvh_real *direction, lbvh_real t_max)
{
    return lbvh_ray_cast(&device->tree, origin, direction, t_max);
}

/* Launches a kernel: the compiler checks the argument types, the error is stored and returned. No
   other function launches kernels. */
template <class... Parameters, class... Arguments>
static lbvh_result lbvh_i_launch_config(lbvh_cuda *gpu, const cudaLaunchConfig_t &config,
                                        void (*kernel)(Parameters...), Arguments... arguments)
{
    gpu->stream = config.stream;
    cudaError_t const error = cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
    if (error == cudaSuccess) return LBVH_OK;
    gpu->device.tree.cuda_error = (int32_t)error;
    (void)cudaGetLastError(); /* reported; cleared for the next call */
    return LBVH_CUDA_ERROR;
}

/* The same with `threads` threads, in blocks of `block`. */
template <class... Parameters, class... Arguments>
static lbvh_result lbvh_i_launch(lbvh_cuda *gpu, struct CUstream_st *stream, int64_t threads,
                                 int block, void (*kernel)(Parameters...), Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    gpu->stream = stream;
    if (threads <= 0) return LBVH_OK;
    config.gridDim = dim3((unsigned)((threads + block - 1) / block));
    config.blockDim = dim3((unsigned)block);
    config.stream = stream;
    return lbvh_i_launch_config(gpu, config, kernel, arguments...);
}

template <class F>
__global__ void __launch_bounds__(128)
    lbvh_i_each_pair_kernel(__grid_constant__ const lbvh_device device, F f)
{
    int32_t const place = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (place >= device.tree.n) return;
    lbvh_overlap o = lbvh_overlap_later(&device, place);
    int32_t const id = lbvh_i_id(&device.tree, place);
    while (lbvh_next(&o)) f(id, o.id);
}

/* f(i, j), on the device, for every pair of elements whose boxes overlap, each once, in no fixed
   order. Does not wait. */
template <class F>
static lbvh_result lbvh_cuda_each_pair(lbvh_cuda *gpu, F f, struct CUstream_st *stream)
{
    if (!gpu) return LBVH_BAD_ARGUMENT;
    if (!gpu->device.tree.built) return LBVH_NOT_BUILT;
    return lbvh_i_launch(gpu, stream, gpu->device.tree.n, 128, lbvh_i_each_pair_kernel<F>,
                         gpu->device, f);
}
#endif /* LBVH_CUDA && __CUDACC__ */

#endif /* LBVH_H */

/* ================================================================================================
   The implementation: serial, and the reference for cuda/lbvh.cu
   ============================================================================================== */

#if defined(LBVH_IMPLEMENTATION) && !defined(LBVH_IMPLEMENTATION_DONE)
#define LBVH_IMPLEMENTATION_DONE

#include <stdlib.h>

#if LBVH_I_REAL_KIND == 1 && (defined(__SSE2__) || defined(_M_X64)) && !defined(__TINYC__) &&      \
    !defined(__CUDACC__)
#include <emmintrin.h>
#define LBVH_I_SSE2
#endif

/* Vectors of 8 floats (AVX2) for Morton codes, >>packets, >>ploc and >>wide-lanes, chosen at run
   time. LBVH_I_MAYBE_AVX2: a function that calls plain, inlined ones; it is compiled for AVX2 where
   that exists. Not on Windows, where gcc does not align the stack for such vectors. */
#if LBVH_I_REAL_KIND == 1 && defined(__x86_64__) && defined(__GNUC__) && !defined(_WIN32) &&       \
    !defined(__TINYC__) && !defined(__INTEL_COMPILER) && !defined(__NVCOMPILER) &&                 \
    !defined(__CUDACC__) && !defined(LBVH_PLAIN_LANES)
#include <immintrin.h>
#define LBVH_I_AVX2 __attribute__((target("avx2")))
#define LBVH_I_MAYBE_AVX2 LBVH_I_AVX2 static
#ifdef LBVH_I_HAS_AVX2 /* tests choose */
#elif defined(__AVX2__)
#define LBVH_I_HAS_AVX2() 1
#else
#define LBVH_I_HAS_AVX2() __builtin_cpu_supports("avx2")
#endif
#else
#define LBVH_I_MAYBE_AVX2 static
#undef LBVH_I_HAS_AVX2
#define LBVH_I_HAS_AVX2() 0
#endif

/* Functions of the CPU only that are inlined, also into those for AVX2; LBVH_FN_HOT: of both
   sides. */
#if defined(__GNUC__) || defined(__clang__)
#define LBVH_I_HOT static inline __attribute__((always_inline))
#else
#define LBVH_I_HOT static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define LBVH_I_N_MAX ((1 << 30) - 512)     /* leaves at most */

LBVH_API int lbvh_version(void)
{
    return 10000 * LBVH_VERSION_MAJOR + 100 * LBVH_VERSION_MINOR + LBVH_VERSION_PATCH;
}

#define LBVH_I_TEXT(code, text) #code ": " text,
LBVH_API const char *lbvh_result_text(lbvh_result result)
{
    static const char *const texts[] = {LBVH_RESULTS(LBVH_I_TEXT)};
    if ((int)result < 0 || result >= LBVH_RESULT_COUNT) return "not a result of lbvh.h";
    return texts[result];
}

/* ------------------------------------------------------------------------------------------------
   >>memory: blocks that grow and are kept
   ---------------------------------------------------------------------------------------------- */

enum { LBVH_I_NODE, LBVH_I_PREFIX, LBVH_I_MASK, LBVH_I_CODE };
enum { LBVH_I_TASKS = 1024 };   /* the most that desc.parallel takes */

/* What desc.parallel does in pieces (>>parallel-run and on). */
static int32_t lbvh_i_build_pieces(const lbvh *tree, int32_t n);
static lbvh_result lbvh_i_build_in_pieces(lbvh *tree, const lbvh_real *data, size_t stride,
                                          int32_t n);
static lbvh_result lbvh_i_refit_in_pieces(lbvh *tree, const lbvh_real *data, size_t stride);
static lbvh_result lbvh_i_optimize_in_pieces(lbvh *tree, int32_t *rotations);
static int32_t lbvh_i_world_pieces(const lbvh_world *world, int32_t n);
static int lbvh_i_update_pairs_in_pieces(lbvh_world *world, const int32_t *index, int32_t n,
                                         int later, int *fits);
static int32_t lbvh_i_search_pieces(const lbvh *tree, int32_t searches);
static lbvh_result lbvh_i_count_pairs_in_pieces(const lbvh *tree, int64_t *pairs);
static lbvh_result lbvh_i_pairs_in_pieces(const lbvh *tree, int32_t *pairs, int64_t capacity,
                                          int64_t *needed);

static void *lbvh_i_alloc(const lbvh_allocator *allocator, size_t bytes)
{
    return allocator->alloc ? allocator->alloc(bytes, allocator->user) : malloc(bytes);
}

/* A block; memory NULL: there is none. */
static lbvh_block lbvh_i_take_block(const lbvh_allocator *allocator, size_t bytes)
{
    lbvh_block block;
    block.memory = lbvh_i_alloc(allocator, bytes);
    block.bytes = bytes;
    return block;
}

static void lbvh_i_release(const lbvh_allocator *allocator, lbvh_block *block)
{
    if (block->memory && allocator->free)
        allocator->free(block->memory, block->bytes, allocator->user);
    else free(block->memory);
    block->memory = NULL;
    block->bytes = 0;
}

/* Sizes of the arrays of a tree with n leaves. There is one node more than used: the sort works
   there (>>sort). */
static lbvh_result lbvh_i_sizes(const lbvh_desc *desc, int32_t n, size_t bytes[LBVH_BLOCKS])
{
    int const codes = desc->keep_codes || desc->builder != LBVH_MERGE; /* PLOC: work space */
    memset(bytes, 0, LBVH_BLOCKS * sizeof *bytes);
    if (n > LBVH_I_N_MAX) return LBVH_TOO_MANY;
    if (n == 0) return LBVH_OK;
    /* 32-bit size_t */
    if ((uint64_t)n > SIZE_MAX / 4 / sizeof(lbvh_node)) return LBVH_OUT_OF_MEMORY;
    bytes[LBVH_I_NODE] = 2 * (size_t)n * sizeof(lbvh_node);
    bytes[LBVH_I_PREFIX] = (size_t)n + 1;
    if (desc->masks) bytes[LBVH_I_MASK] = 2 * (size_t)n * sizeof(uint32_t);
    if (codes) bytes[LBVH_I_CODE] = (size_t)n * sizeof(uint64_t);
    return LBVH_OK;
}

/* The new size of a block that had `had` bytes and needs `bytes`, which are more. EXACT: `bytes`.
   AHEAD: half as much again as it had, so that trees that grow a little with every build seldom
   allocate; a first allocation is exact. */
typedef enum lbvh_i_growth { LBVH_I_EXACT, LBVH_I_AHEAD } lbvh_i_growth;
static size_t lbvh_i_room(lbvh_i_growth growth, size_t had, size_t bytes)
{
    size_t const more = had + had / 2; /* had < bytes <= SIZE_MAX / 2 */
    return growth == LBVH_I_AHEAD && more > bytes ? more : bytes;
}

/* Replaces a block by a larger one; the content is not copied. Where the larger size cannot be
   allocated, the needed size is tried. */
static int lbvh_i_grow(const lbvh_allocator *allocator, lbvh_block *block, size_t bytes,
                       lbvh_i_growth growth)
{
    size_t const room = lbvh_i_room(growth, block->bytes, bytes);
    lbvh_i_release(allocator, block);
    *block = lbvh_i_take_block(allocator, room);
    if (!block->memory && room > bytes) *block = lbvh_i_take_block(allocator, bytes);
    if (!block->memory) block->bytes = 0;
    return block->memory != NULL;
}

static void lbvh_i_release_all(const lbvh_allocator *allocator, lbvh_block *block, int count)
{
    int b;
    for (b = 0; b < count; b++) lbvh_i_release(allocator, &block[b]);
}

static int64_t lbvh_i_block_bytes(const lbvh_block block[LBVH_BLOCKS])
{
    int64_t bytes = 0;
    int b;
    for (b = 0; b < LBVH_BLOCKS; b++) bytes += (int64_t)block[b].bytes;
    return bytes;
}

/* Blocks of at least these bytes. Their content is lost where they grow. */
static lbvh_result lbvh_i_grow_blocks(const lbvh_allocator *allocator,
                                      lbvh_block block[LBVH_BLOCKS],
                                      const size_t bytes[LBVH_BLOCKS], lbvh_i_growth growth)
{
    int b, misaligned = 0;
    for (b = 0; b < LBVH_BLOCKS; b++) {
        if (bytes[b] <= block[b].bytes) continue;
        if (!lbvh_i_grow(allocator, &block[b], bytes[b], growth)) break;
        misaligned |= allocator->alloc && (uintptr_t)block[b].memory % 16 != 0;
    }
    if (misaligned) return LBVH_BAD_ALLOCATOR;
    return b == LBVH_BLOCKS ? LBVH_OK : LBVH_OUT_OF_MEMORY;
}

/* Points the arrays at their blocks; those that this desc does not use become NULL. */
static void lbvh_i_bind(lbvh *tree, const lbvh_block *block)
{
    int const codes = tree->desc.keep_codes || tree->desc.builder == LBVH_SPLIT;
    tree->node = (lbvh_node *)block[LBVH_I_NODE].memory;
    tree->prefix = (uint8_t *)block[LBVH_I_PREFIX].memory;
    tree->mask = tree->desc.masks ? (uint32_t *)block[LBVH_I_MASK].memory : NULL;
    tree->code = codes ? (uint64_t *)block[LBVH_I_CODE].memory : NULL;
}

/* Memory for n leaves. */
static lbvh_result lbvh_i_prepare(lbvh *tree, int32_t n, lbvh_i_growth growth)
{
    size_t bytes[LBVH_BLOCKS];
    lbvh_result result = lbvh_i_sizes(&tree->desc, n, bytes);
    if (result != LBVH_OK) return result;
    result = lbvh_i_grow_blocks(&tree->desc.allocator, tree->block, bytes, growth);
    lbvh_i_bind(tree, tree->block);
    return result;
}

LBVH_API void lbvh_free(lbvh *tree)
{
    if (!tree) return;
    lbvh_i_release_all(&tree->desc.allocator, tree->block, LBVH_BLOCKS);
    memset(tree, 0, sizeof *tree);
}

LBVH_API int64_t lbvh_bytes(const lbvh *tree)
{
    return tree ? lbvh_i_block_bytes(tree->block) : 0;
}

/* ------------------------------------------------------------------------------------------------
   >>resolve: defaults, and checks that need no element
   ---------------------------------------------------------------------------------------------- */

/* 1 if a block of one allocator may be freed by the other. */
static int lbvh_i_same_allocator(const lbvh_allocator *a, const lbvh_allocator *b)
{
    return a->alloc == b->alloc && a->free == b->free && a->user == b->user;
}

static int lbvh_i_tasks_valid(const lbvh_parallel *parallel)
{
    return parallel->tasks >= 0 && parallel->tasks <= LBVH_I_TASKS;
}

static int lbvh_i_bounds_given(const lbvh_desc *desc)
{
    int a;
    /* a NaN counts as given */
    for (a = 0; a < desc->dim; a++) if (!(desc->min[a] == 0 && desc->max[a] == 0)) return 1;
    return 0;
}

static int lbvh_i_bounds_valid(const lbvh_desc *desc)
{
    int a;
    for (a = 0; a < desc->dim; a++)
        if (!(desc->min[a] <= desc->max[a]) || !lbvh_i_finite(desc->min[a]) ||
            !lbvh_i_finite(desc->max[a]))
            return 0;
    return 1;
}

LBVH_API lbvh_result lbvh_defaults(lbvh_desc *out, const lbvh_desc *desc)
{
    lbvh_desc given;
    if (!out) return LBVH_BAD_ARGUMENT;
    memset(&given, 0, sizeof given);
    if (desc) given = *desc;
    if (given.dim == 0) given.dim = 3;
    if (given.bits == 0) given.bits = 63;
    *out = given;
    if (given.dim != 2 && given.dim != 3) return LBVH_BAD_DIM;
    if ((int)given.kind < 0 || given.kind > LBVH_TRIANGLES) return LBVH_BAD_OPTION;
    if ((int)given.builder < 0 || given.builder > LBVH_PLOC) return LBVH_BAD_OPTION;
    if (given.bits != 30 && given.bits != 63) return LBVH_BAD_OPTION;
    if (!lbvh_i_tasks_valid(&given.parallel)) return LBVH_BAD_OPTION;
    if (!(given.radius >= 0) || !lbvh_i_finite(given.radius)) return LBVH_BAD_RADIUS;
    if (given.vertices < 0) return LBVH_BAD_ARGUMENT;
    if (!lbvh_i_bounds_valid(&given)) return LBVH_BAD_BOUNDS;
    if (!given.allocator.alloc != !given.allocator.free) return LBVH_BAD_ALLOCATOR;
    if (!given.cuda_allocator.alloc != !given.cuda_allocator.free) return LBVH_BAD_ALLOCATOR;
    return LBVH_OK;
}

/* Numbers of one element; with indices, of one vertex. */
static int lbvh_i_width(const lbvh_desc *desc)
{
    if (desc->kind == LBVH_BOXES) return 2 * desc->dim;
    if (desc->kind == LBVH_SPHERES) return desc->dim + 1;
    return desc->kind == LBVH_TRIANGLES && !desc->indices ? 3 * desc->dim : desc->dim;
}

/* The stride in bytes of `numbers` each, with its default; 0 if it is invalid. */
static size_t lbvh_i_stride_of(int numbers, size_t stride)
{
    size_t const tight = (size_t)numbers * sizeof(lbvh_real);
    if (stride == 0) return tight;
    return stride >= tight && stride % sizeof(lbvh_real) == 0 ? stride : 0;
}

/* The same, of elements. */
static size_t lbvh_i_stride(const lbvh_desc *desc, size_t stride)
{
    return lbvh_i_stride_of(lbvh_i_width(desc), stride);
}

/* Marks the tree as not built; memory and desc stay. */
static void lbvh_i_make_empty(lbvh *tree)
{
    tree->built = 0;
    tree->n = tree->first_leaf = 0;
    tree->bad_id = -1;
    tree->cuda_error = 0;
    memset(&tree->lattice, 0, sizeof tree->lattice);
}

/* Empties the tree and stores a checked desc. */
static lbvh_result lbvh_i_begin(lbvh *tree, const lbvh_desc *desc)
{
    lbvh_desc given;
    lbvh_result const result = lbvh_defaults(&given, desc);
    lbvh_i_make_empty(tree);
    if (result != LBVH_OK) return result;
    if (lbvh_bytes(tree) > 0 && !lbvh_i_same_allocator(&tree->desc.allocator, &given.allocator))
        return LBVH_BAD_ALLOCATOR;
    tree->desc = given;
    return LBVH_OK;
}

LBVH_API lbvh_result lbvh_reserve(lbvh *tree, const lbvh_desc *desc, int32_t n)
{
    lbvh_result result;
    if (!tree) return LBVH_BAD_ARGUMENT;
    lbvh_i_make_empty(tree);
    if (n < 0) return LBVH_BAD_ARGUMENT;
    result = lbvh_i_begin(tree, desc);
    return result == LBVH_OK ? lbvh_i_prepare(tree, n, LBVH_I_EXACT) : result;
}

LBVH_API lbvh_result lbvh_bytes_for(const lbvh_desc *desc, int32_t n, int64_t *bytes)
{
    lbvh_desc given;
    lbvh_result result;
    size_t sizes[LBVH_BLOCKS];
    int b;
    if (!bytes) return LBVH_BAD_ARGUMENT;
    *bytes = 0;
    if (n < 0) return LBVH_BAD_ARGUMENT;
    result = lbvh_defaults(&given, desc);
    if (result == LBVH_OK) result = lbvh_i_sizes(&given, n, sizes);
    for (b = 0; b < LBVH_BLOCKS && result == LBVH_OK; b++) *bytes += (int64_t)sizes[b];
    return result;
}

/* ------------------------------------------------------------------------------------------------
   >>sort: radix sort of ids by code, ascending within equal codes

   A key is one word: the upper 32 bits of the code, then the id. The lower bits of the code, `low`
   by id, are compared only where the upper ones are equal, which is rare: the sort moves 8 bytes
   instead of 16.

   Keys and low bits lie where the nodes will be, 64 bytes for each leaf:

       | keys 8 n | spare 8 n | low 4 n | ........ |          the sort
       | inner nodes 32 (n - 1)         | leaves 32 n  | 32 |   then leaves, by the ids of the keys;
                                                              then, over the keys, inner nodes
   (PLOC, between sort and leaves: new keys in spare, new prefixes over the last n bytes.)
   (n = 1: the leaf is written over its key, which is read before.)
   ---------------------------------------------------------------------------------------------- */

typedef struct lbvh_i_keys {
    uint64_t *key, *spare;  /* [n] */
    uint32_t *low;          /* [n] by id */
    int shift;              /* bits of the code that are in low */
} lbvh_i_keys;

static lbvh_i_keys lbvh_i_key_room(const lbvh *tree)
{
    lbvh_i_keys keys;
    int const bits = lbvh_i_code_bits(&tree->desc);
    keys.key = (uint64_t *)(void *)tree->node;
    keys.spare = keys.key + tree->n;
    keys.low = (uint32_t *)(void *)(keys.spare + tree->n);
    keys.shift = bits > 32 ? bits - 32 : 0;
    return keys;
}

static int32_t lbvh_i_key_id(uint64_t key) { return (int32_t)(uint32_t)key; }

/* The whole code of a key. */
static uint64_t lbvh_i_key_code(const lbvh_i_keys *keys, uint64_t key)
{
    return (key >> 32) << keys->shift | (keys->shift ? keys->low[lbvh_i_key_id(key)] : 0);
}

/* Digit counts of the keys: four digits of 8 bits. */
typedef struct lbvh_i_histogram { int32_t count[4][256]; } lbvh_i_histogram;

static void lbvh_i_count_digits(lbvh_i_histogram *histogram, uint32_t upper)
{
    histogram->count[0][upper & 255]++;
    histogram->count[1][upper >> 8 & 255]++;
    histogram->count[2][upper >> 16 & 255]++;
    histogram->count[3][upper >> 24]++;
}

/* One pass: deals the keys first .. last-1 out, each to the next place of its digit. */
static void lbvh_i_deal(const uint64_t *from, uint64_t *to, int32_t first, int32_t last,
                        int32_t begin[256], int pass)
{
    int const down = 32 + 8 * pass;
    int32_t k;
    for (k = first; k < last; k++) {
        uint64_t const moving = from[k];
        to[begin[moving >> down & 255]++] = moving;
    }
}

/* LSD radix sort of n keys by their upper 32 bits: four stable passes of 8 bits, the lowest first.
   The number of passes is even: the result is in key. */
static void lbvh_i_radix(uint64_t *key, uint64_t *spare, int32_t n, lbvh_i_histogram *histogram)
{
    int pass, digit;
    for (pass = 0; pass < 4; pass++) {
        int32_t *begin = histogram->count[pass];
        int32_t sum = 0;
        for (digit = 0; digit < 256; digit++) {
            int32_t const count = begin[digit];
            begin[digit] = sum;
            sum += count;
        }
        lbvh_i_deal(pass % 2 ? spare : key, pass % 2 ? key : spare, 0, n, begin, pass);
    }
}

/* Insertion sort of a few keys with the same upper bits, by their lower ones. */
static void lbvh_i_insertion(const lbvh_i_keys *keys, uint64_t *key, int32_t n)
{
    int32_t k;
    for (k = 1; k < n; k++) {
        uint64_t const moving = key[k];
        uint32_t const low = keys->low[lbvh_i_key_id(moving)];
        int32_t slot = k;
        for (; slot > 0 && keys->low[lbvh_i_key_id(key[slot - 1])] > low; slot--)
            key[slot] = key[slot - 1];
        key[slot] = moving;
    }
}

/* Many such keys: radix sort with the lower bits in place of the upper ones. */
static void lbvh_i_radix_low(const lbvh_i_keys *keys, uint64_t *key, uint64_t *spare, int32_t n)
{
    uint64_t const upper = key[0] >> 32 << 32;
    lbvh_i_histogram histogram;
    int32_t k;
    memset(&histogram, 0, sizeof histogram);
    for (k = 0; k < n; k++) {
        uint32_t const low = keys->low[lbvh_i_key_id(key[k])];
        key[k] = (uint64_t)low << 32 | (uint32_t)key[k];
        lbvh_i_count_digits(&histogram, low);
    }
    lbvh_i_radix(key, spare, n, &histogram);
    for (k = 0; k < n; k++) key[k] = upper | (uint32_t)key[k];
}

/* Sorts the keys first .. last-1, whose upper bits are sorted, by the lower ones. */
static void lbvh_i_sort_low(const lbvh_i_keys *keys, int32_t first, int32_t last)
{
    int32_t begin, end;
    for (begin = first; begin < last && keys->shift; begin = end) {
        uint64_t const upper = keys->key[begin] >> 32;
        for (end = begin + 1; end < last && keys->key[end] >> 32 == upper; end++) {}
        if (end - begin > 64)
            lbvh_i_radix_low(keys, keys->key + begin, keys->spare + begin, end - begin);
        else if (end - begin > 1) lbvh_i_insertion(keys, keys->key + begin, end - begin);
    }
}

static void lbvh_i_sort(const lbvh_i_keys *keys, int32_t n, lbvh_i_histogram *histogram)
{
    lbvh_i_radix(keys->key, keys->spare, n, histogram);
    lbvh_i_sort_low(keys, 0, n);
}

/* ------------------------------------------------------------------------------------------------
   >>build: a tree over n elements, in the steps of lbvh_i_build_serial at the end
   ---------------------------------------------------------------------------------------------- */

/* Notes the first invalid element. Returns its error, or LBVH_OK where desc.skip_invalid leaves it
   out. */
static lbvh_result lbvh_i_note_invalid(lbvh *tree, lbvh_result result, int32_t i)
{
    if (result == LBVH_OK) return LBVH_OK;
    if (tree->bad_id < 0) tree->bad_id = i;
    return tree->desc.skip_invalid ? LBVH_OK : result;
}

/* The lattice of the caller's bounds. */
LBVH_FN lbvh_lattice lbvh_i_given_lattice(const lbvh_desc *desc)
{
    lbvh_real least[3], most[3];
    int a;
    for (a = 0; a < 3; a++) {
        least[a] = desc->min[a] / 2;
        most[a] = desc->max[a] / 2;
    }
    return lbvh_i_lattice_of(desc->dim, desc->bits, least, most);
}

/* The bounds of the half centres of the elements first .. last-1, which are checked on the way. */
static lbvh_result lbvh_i_measure_centres(lbvh *tree, const lbvh_real *data, size_t stride,
                                          int32_t first, int32_t last, lbvh_real least[3],
                                          lbvh_real most[3])
{
    const lbvh_desc *desc = &tree->desc;
    lbvh_real min[3], max[3];
    int32_t i;
    int a;
    for (a = 0; a < 3; a++) {
        least[a] = lbvh_i_infinity();
        most[a] = -lbvh_i_infinity();
    }
    for (i = first; i < last; i++) {
        lbvh_result const box = lbvh_box_of(desc, data, stride, i, min, max),
                          result = lbvh_i_note_invalid(tree, box, i);
        if (result != LBVH_OK) return result;
        for (a = 0; a < 3 && box == LBVH_OK; a++) {
            lbvh_real const half_centre = lbvh_i_half_centre(min[a], max[a]);
            least[a] = lbvh_i_min(least[a], half_centre);
            most[a] = lbvh_i_max(most[a], half_centre);
        }
    }
    return LBVH_OK;
}

/* The lattice of desc.min and max, or around the centres of all elements. */
static void lbvh_i_make_lattice(lbvh *tree, const lbvh_real least[3], const lbvh_real most[3])
{
    const lbvh_desc *desc = &tree->desc;
    tree->lattice = lbvh_i_bounds_given(desc)
                        ? lbvh_i_given_lattice(desc)
                        : lbvh_i_lattice_of(desc->dim, desc->bits, least, most);
}

enum { LBVH_I_CODES = 16 }; /* elements whose codes are made together, in vectors */

typedef struct lbvh_i_coding {
    lbvh_real half_centre[3][LBVH_I_CODES];
    unsigned char left_out[LBVH_I_CODES];
    uint64_t code[LBVH_I_CODES];
} lbvh_i_coding;

/* lbvh_i_code of all. */
LBVH_FN_HOT void lbvh_i_code_all(const lbvh_lattice *given, int dim, int bits, lbvh_i_coding *c)
{
    lbvh_lattice const lattice = *given;
    uint32_t x[LBVH_I_CODES], y[LBVH_I_CODES], z[LBVH_I_CODES];
    int k;
    LBVH_I_KEEP_LOOP
    for (k = 0; k < LBVH_I_CODES; k++) {
        x[k] = lbvh_i_coordinate(&lattice, 0, c->half_centre[0][k]);
        y[k] = lbvh_i_coordinate(&lattice, 1, c->half_centre[1][k]);
        z[k] = lbvh_i_coordinate(&lattice, 2, c->half_centre[2][k]);
    }
    LBVH_I_KEEP_LOOP
    for (k = 0; k < LBVH_I_CODES; k++)
        c->code[k] = lbvh_i_interleave(dim, bits, x[k], y[k], z[k]);
    for (k = 0; k < LBVH_I_CODES; k++)
        if (c->left_out[k]) c->code[k] = lbvh_i_last_code(dim, bits);
}

/* The same, specialised for constants. */
LBVH_FN_HOT void lbvh_i_code_some(const lbvh *tree, lbvh_i_coding *c)
{
    int const bits = tree->desc.bits;
    if (tree->desc.dim == 2) lbvh_i_code_all(&tree->lattice, 2, bits, c);
    else if (bits == 30) lbvh_i_code_all(&tree->lattice, 3, 30, c);
    else lbvh_i_code_all(&tree->lattice, 3, bits, c);
}

LBVH_I_MAYBE_AVX2 void lbvh_i_code_some_lanes(const lbvh *tree, lbvh_i_coding *c)
{
    lbvh_i_code_some(tree, c);
}

/* The codes of `count` elements from `first` on. */
static void lbvh_i_code_elements(const lbvh *tree, const lbvh_real *data, size_t stride,
                                 int32_t first, int32_t count, lbvh_i_coding *c)
{
    lbvh_real min[3], max[3];
    int32_t k;
    int a;
    for (k = 0; k < count; k++) {
        (void)lbvh_box_of(&tree->desc, data, stride, first + k, min, max);
        c->left_out[k] = !(min[0] <= max[0]);
        for (a = 0; a < 3; a++) c->half_centre[a][k] = lbvh_i_half_centre(min[a], max[a]);
    }
    if (LBVH_I_HAS_AVX2()) lbvh_i_code_some_lanes(tree, c);
    else lbvh_i_code_some(tree, c);
}

/* The keys of the elements first .. last-1, and the counts of their digits. */
static void lbvh_i_make_keys(const lbvh *tree, const lbvh_real *data, size_t stride,
                             const lbvh_i_keys *keys, lbvh_i_histogram *histogram, int32_t first,
                             int32_t last)
{
    lbvh_i_coding some;
    int32_t i, k, count;
    memset(histogram, 0, sizeof *histogram);
    memset(&some, 0, sizeof some);
    for (i = first; i < last; i += count) {
        count = last - i < LBVH_I_CODES ? last - i : (int32_t)LBVH_I_CODES;
        lbvh_i_code_elements(tree, data, stride, i, count, &some);
        for (k = 0; k < count; k++) {
            uint64_t const code = some.code[k];
            keys->key[i + k] = code >> keys->shift << 32 | (uint32_t)(i + k);
            keys->low[i + k] = (uint32_t)(code & (((uint64_t)1 << keys->shift) - 1));
            lbvh_i_count_digits(histogram, (uint32_t)(code >> keys->shift));
        }
    }
}

/* The prefixes of the borders before the places first .. last-1, and of the last border. */
static void lbvh_i_make_prefixes(lbvh *tree, const lbvh_i_keys *keys, int32_t first, int32_t last)
{
    int const bits = lbvh_i_code_bits(&tree->desc);
    int32_t k;
    if (first == 0) tree->prefix[0] = tree->prefix[tree->n] = 0;
    for (k = first > 1 ? first : 1; k < last; k++) {
        uint64_t const left = keys->key[k - 1], right = keys->key[k], differ = (left ^ right) >> 32;
        int const upper_bits = bits - keys->shift;
        int const common = differ ? lbvh_i_leading_zeros(differ) - (64 - upper_bits)
                                  : lbvh_i_common(bits, lbvh_i_key_code(keys, left),
                                                  lbvh_i_key_code(keys, right), k - 1, k);
        tree->prefix[k] = (uint8_t)(1 + common);
    }
}

/* The codes at the places first .. last-1, where they are kept: before the leaves, which may lie
   over the keys' low bits. */
static void lbvh_i_make_codes(lbvh *tree, const lbvh_i_keys *keys, int32_t first, int32_t last)
{
    int32_t k;
    for (k = first; k < last && tree->code; k++)
        tree->code[k] = lbvh_i_key_code(keys, keys->key[k]);
}

/* Prefetches the element that will be read some places after k: in the order of the keys access is
   random. */
LBVH_I_HOT void lbvh_i_prefetch_element(const lbvh *tree, const lbvh_real *data, size_t stride,
                                        const lbvh_i_keys *keys, int32_t k, int32_t last)
{
    int32_t const ahead = 24;
    if (k < last - ahead && !tree->desc.indices)
        LBVH_I_PREFETCH(lbvh_i_at(data, stride, lbvh_i_key_id(keys->key[k + ahead])));
}

/* The leaves first .. last-1. */
static void lbvh_i_make_leaves(lbvh *tree, const lbvh_real *data, size_t stride,
                               const lbvh_i_keys *keys, int32_t first, int32_t last)
{
    lbvh_node *leaves = tree->node + tree->first_leaf;
    int32_t k;
    for (k = first; k < last; k++) {
        int32_t const id = lbvh_i_key_id(keys->key[k]);
        lbvh_i_prefetch_element(tree, data, stride, keys, k, last);
        if (tree->mask) tree->mask[tree->first_leaf + k] = tree->desc.masks[id];
        (void)lbvh_box_of(&tree->desc, data, stride, id, leaves[k].min, leaves[k].max);
        leaves[k].link = id;
        lbvh_i_fill_gaps(&leaves[k]);
    }
}

/* LBVH_MERGE: inner nodes from leaves and prefixes, in one pass over the leaves (the serial form of
   Apetrei's algorithm). A finished left child waits on a stack for its sibling; a finished right
   child is joined with the top of the stack, repeatedly:

       leaf      0     1     2       3     4       5         6           7      (codes of >>nodes)
       made            0-1           2-3                     5-6         5-7    ranges of leaves,
                                     0-3                                 4-7    the root last
                                                                         0-7
       waiting   0     0-1   0-1 2   0-3   0-3 4   0-3 4 5   0-3 4 5-6          the stack afterwards

   Prefixes increase along the stack, so it holds at most as many entries as a code and a place have
   bits. */
static void lbvh_i_merge(lbvh *tree)
{
    const uint8_t *prefix = tree->prefix;
    int32_t waiting[LBVH_STACK]; /* the first leaf of each */
    int32_t k, top = 0;
    for (k = 0; k < tree->n; k++) {
        int32_t first = k, at = tree->first_leaf + k;
        lbvh_node node = tree->node[at]; /* the ancestor so far, in registers */
        node.skip = lbvh_i_skip(prefix, tree->n, k);
        tree->node[at].skip = node.skip;
        while (top > 0 && !lbvh_i_is_left(prefix, first, k)) {
            int32_t const split = first - 1, right = at;
            first = waiting[--top];
            at = lbvh_i_number(prefix, tree->first_leaf, first, k);
            node.link = lbvh_i_left_child(tree->first_leaf, first, split);
            lbvh_i_widen(&node, &tree->node[node.link]);
            tree->node[at] = node;
            if (tree->mask) tree->mask[at] = tree->mask[node.link] | tree->mask[right];
        }
        if (k < tree->n - 1) waiting[top++] = first;
    }
}

/* LBVH_SPLIT: the node of leaves first .. last, top-down (Kureck section 3.1.4, the sequential
   algorithm). Recursion depth: at most LBVH_STACK. */
static void lbvh_i_split(lbvh *tree, int32_t at, int32_t first, int32_t last, int32_t skip)
{
    int32_t split, left, right;
    tree->node[at].skip = skip;
    if (first == last) return;
    split = lbvh_i_find_split(tree->code, lbvh_i_code_bits(&tree->desc), first, last);
    left = lbvh_i_left_child(tree->first_leaf, first, split);
    right = split + 1 == last ? tree->first_leaf + last : split + 1;
    lbvh_i_split(tree, left, first, split, right);
    lbvh_i_split(tree, right, split + 1, last, skip);
    lbvh_i_join(tree, at, left, right);
}

/* LBVH_PLOC: sorted keys and their prefixes become those of its places (>>ploc). */
static void lbvh_i_ploc(const lbvh *tree, const lbvh_real *data, size_t stride, lbvh_i_keys *keys);

static lbvh_result lbvh_i_build_serial(lbvh *tree, const lbvh_real *data, size_t stride,
                                       int32_t n)
{
    lbvh_i_keys keys;
    lbvh_i_histogram histogram;
    lbvh_real least[3], most[3];
    lbvh_result const result = lbvh_i_measure_centres(tree, data, stride, 0, n, least, most);
    if (result == LBVH_OK) lbvh_i_make_lattice(tree, least, most);
    tree->built = result == LBVH_OK;
    if (result != LBVH_OK || n == 0) return result;
    tree->n = n;
    tree->first_leaf = n - 1;
    keys = lbvh_i_key_room(tree);
    lbvh_i_make_keys(tree, data, stride, &keys, &histogram, 0, n);
    lbvh_i_sort(&keys, n, &histogram);
    lbvh_i_make_prefixes(tree, &keys, 0, n);
    if (tree->desc.builder == LBVH_PLOC) lbvh_i_ploc(tree, data, stride, &keys);
    lbvh_i_make_codes(tree, &keys, 0, n);
    lbvh_i_make_leaves(tree, data, stride, &keys, 0, n);
    if (tree->desc.builder == LBVH_SPLIT) lbvh_i_split(tree, 0, 0, n - 1, -1);
    else lbvh_i_merge(tree);
    return LBVH_OK;
}

LBVH_API lbvh_result lbvh_build(lbvh *tree, const lbvh_desc *desc, const lbvh_real *data,
                                size_t stride, int32_t n)
{
    lbvh_result result;
    if (!tree) return LBVH_BAD_ARGUMENT;
    lbvh_i_make_empty(tree);
    if (n < 0 || (n > 0 && !data)) return LBVH_BAD_ARGUMENT;
    result = lbvh_i_begin(tree, desc);
    if (result != LBVH_OK) return result;
    stride = lbvh_i_stride(&tree->desc, stride);
    if (stride == 0) return LBVH_BAD_ARGUMENT;
    result = lbvh_i_prepare(tree, n, LBVH_I_AHEAD);
    if (result != LBVH_OK) return result;
    if (lbvh_i_build_pieces(tree, n) > 1) return lbvh_i_build_in_pieces(tree, data, stride, n);
    return lbvh_i_build_serial(tree, data, stride, n);
}

/* ------------------------------------------------------------------------------------------------
   >>refit: new boxes for the same tree
   ---------------------------------------------------------------------------------------------- */

/* New boxes of the leaves first .. end-1. */
static void lbvh_i_refit_leaves(lbvh *tree, const lbvh_real *data, size_t stride, int32_t first,
                                int32_t end)
{
    lbvh_node *leaves = tree->node + tree->first_leaf;
    int32_t k;
    for (k = first; k < end; k++)
        (void)lbvh_box_of(&tree->desc, data, stride, leaves[k].link, leaves[k].min, leaves[k].max);
}

LBVH_API lbvh_result lbvh_refit(lbvh *tree, const lbvh_real *data, size_t stride)
{
    lbvh_real min[3], max[3];
    int32_t k;
    if (!tree || (tree->n > 0 && !data)) return LBVH_BAD_ARGUMENT;
    if (!tree->built) return LBVH_NOT_BUILT;
    stride = lbvh_i_stride(&tree->desc, stride);
    if (stride == 0) return LBVH_BAD_ARGUMENT;
    tree->bad_id = -1;
    if (lbvh_i_build_pieces(tree, tree->n) > 1) return lbvh_i_refit_in_pieces(tree, data, stride);
    for (k = 0; k < tree->n; k++) { /* all are checked before the first is changed */
        lbvh_result const box = lbvh_box_of(&tree->desc, data, stride, k, min, max),
                          result = lbvh_i_note_invalid(tree, box, k);
        if (result != LBVH_OK) return result;
    }
    if (tree->n == 0) return LBVH_OK; /* no array may exist */
    lbvh_i_refit_leaves(tree, data, stride, 0, tree->n);
    lbvh_i_merge(tree);
    return LBVH_OK;
}

LBVH_API lbvh_result lbvh_boxes(const lbvh_desc *desc, const lbvh_real *data, size_t stride,
                                int32_t n, lbvh_real *boxes, int32_t *bad_id)
{
    lbvh_desc given;
    lbvh_real min[3], max[3];
    int32_t i;
    int a;
    lbvh_result result = lbvh_defaults(&given, desc);
    if (bad_id) *bad_id = -1;
    if (result != LBVH_OK) return result;
    stride = lbvh_i_stride(&given, stride);
    if (stride == 0 || n < 0 || (n > 0 && (!data || !boxes))) return LBVH_BAD_ARGUMENT;
    if (n > LBVH_I_N_MAX) return LBVH_TOO_MANY;
    for (i = 0; i < n; i++) {
        result = lbvh_box_of(&given, data, stride, i, min, max);
        if (result != LBVH_OK && bad_id && *bad_id < 0) *bad_id = i;
        if (result != LBVH_OK && !given.skip_invalid) return result;
        for (a = 0; a < given.dim; a++) {
            boxes[2 * (size_t)i * (size_t)given.dim + (size_t)a] = min[a];
            boxes[(2 * (size_t)i + 1) * (size_t)given.dim + (size_t)a] = max[a];
        }
    }
    return LBVH_OK;
}

/* ------------------------------------------------------------------------------------------------
   >>packets: packet traversal, for the searches of all own elements

   Neighbouring leaves visit nearly the same nodes. So the leaves of a small subtree traverse the
   tree once, as a packet. The leaves near any of its searches are copied into a batch, as a
   structure of arrays. Then each search tests the batch, in a plain loop without branches, by
   the vectors that the processor has. Places ascend in the batch, so every row equals that of
   lbvh_next, in its order. (On the GPU: the 32 searches of a warp.)
   ---------------------------------------------------------------------------------------------- */

enum {
    LBVH_I_PACKET = 32,     /* searches of a packet at most */
    LBVH_I_FEW = 16,        /* subtrees of at most this many leaves are tested whole */
    LBVH_I_LANES = 8,       /* entries of a batch that are tested together */
    LBVH_I_BATCH = 1024     /* leaves of a batch; searches of a packet with more candidates run one
                               by one */
};

/* The union of a packet's searches: the box around their boxes or centres, and their squared radius
   (boxes: -1). */
typedef struct lbvh_i_packet {
    lbvh_real min[3], max[3], reach2;
} lbvh_i_packet;

typedef struct lbvh_i_batch {
    lbvh_real min[3][LBVH_I_BATCH + LBVH_I_FEW], max[3][LBVH_I_BATCH + LBVH_I_FEW];
    int32_t place[LBVH_I_BATCH + LBVH_I_FEW];
    int32_t count;
} lbvh_i_batch;

/* The searches of all own elements, by ascending place. */
typedef struct lbvh_i_finder {
    const lbvh *tree;
    const lbvh_queries *queries;
    int32_t end;                        /* searches are those of the places before it */
    int32_t begin, last, next;          /* places of this packet, and the node where the next one
                                           begins */
    lbvh_overlap search[LBVH_I_PACKET];
    int32_t place;                      /* of the current search */
    int fits;                           /* 1: the batch holds all candidates of the packet; 0: the
                                           searches run one by one */
    int lists;                          /* 1: places are wanted; 0: only their number */
    int32_t hits, given;                /* of the current search: entries of hit, and those
                                           returned */
    int32_t hit[LBVH_I_BATCH + LBVH_I_FEW]; /* results of the tests, then places that are met */
    lbvh_i_batch batch;
} lbvh_i_finder;

/* 1 if any search of the packet could overlap this node. Rounded as each search rounds, so that no
   gap comes out larger than theirs. */
LBVH_FN_HOT int lbvh_i_packet_near(const lbvh_i_packet *packet, const lbvh_node *node)
{
    lbvh_real gap[3];
    int a;
    if (packet->reach2 < 0) return lbvh_boxes_touch(node, packet->min, packet->max);
    LBVH_I_UNROLL
    for (a = 0; a < 3; a++)
        gap[a] = lbvh_i_max(
            lbvh_i_max(node->min[a] - packet->max[a], packet->min[a] - node->max[a]), 0);
    return lbvh_i_square(gap[0], gap[1], gap[2]) <= packet->reach2;
}

/* Appends those of the leaves first .. last that the packet could overlap. All are written, without
   a branch; the next one overwrites a leaf that is not counted. */
static void lbvh_i_append_leaves(lbvh_i_batch *batch, const lbvh *tree, const lbvh_i_packet *packet,
                                 int32_t first, int32_t last)
{
    int32_t place, slot = batch->count;
    int a;
    for (place = first; place <= last; place++) {
        const lbvh_node *leaf = lbvh_i_leaf(tree, place);
        LBVH_I_UNROLL
        for (a = 0; a < 3; a++) {
            batch->min[a][slot] = leaf->min[a];
            batch->max[a][slot] = leaf->max[a];
        }
        batch->place[slot] = place;
        slot += lbvh_i_packet_near(packet, leaf);
    }
    batch->count = slot;
}

/* Fills the lanes behind the last entry, which are tested too: their answers are not read. */
static void lbvh_i_pad_batch(lbvh_i_batch *batch)
{
    int32_t k;
    int a;
    for (a = 0; a < 3; a++)
        for (k = batch->count; k < batch->count + LBVH_I_LANES; k++)
            batch->min[a][k] = batch->max[a][k] = 0;
}

/* Collects the batch of a packet from node `at`, whose first leaf is at place `first`; 0 if it does
   not fit. */
static int lbvh_i_fill_batch(lbvh_i_batch *batch, const lbvh *tree, const lbvh_i_packet *packet,
                             int32_t at, int32_t first)
{
    batch->count = 0;
    while (at >= 0) {
        const lbvh_node *node = &tree->node[at];
        int32_t const last = lbvh_last_place(tree, node);
        if (lbvh_i_packet_near(packet, node)) {
            if (last - first >= LBVH_I_FEW) {
                at = node->link;
                continue;
            }
            if (batch->count > LBVH_I_BATCH) return 0;
            lbvh_i_append_leaves(batch, tree, packet, first, last);
        }
        first = last + 1;
        at = node->skip;
    }
    if (batch->count > LBVH_I_BATCH) return 0;
    lbvh_i_pad_batch(batch);
    return 1;
}

/* The places of the next packet: the largest subtree from here on that is small enough. Returns its
   node. */
static int32_t lbvh_i_next_subtree(lbvh_i_finder *finder)
{
    const lbvh *tree = finder->tree;
    int32_t at = finder->next;
    finder->begin = finder->last + 1;
    while (lbvh_last_place(tree, &tree->node[at]) - finder->begin >= LBVH_I_PACKET)
        at = tree->node[at].link;
    finder->last = lbvh_last_place(tree, &tree->node[at]);
    if (finder->last >= finder->end) finder->last = finder->end - 1;
    finder->next = tree->node[at].skip;
    return at;
}

/* The searches of the packet at this node, and their batch. */
static void lbvh_i_collect(lbvh_i_finder *finder, int32_t at)
{
    const lbvh *tree = finder->tree;
    lbvh_i_packet packet;
    int32_t k;
    int a;
    for (a = 0; a < 3; a++) {
        packet.min[a] = lbvh_i_infinity();
        packet.max[a] = -lbvh_i_infinity();
    }
    packet.reach2 = -1;
    for (k = finder->begin; k <= finder->last; k++) {
        lbvh_overlap *o = &finder->search[k - finder->begin];
        *o = lbvh_i_search(tree, finder->queries, k);
        if (lbvh_left_out(lbvh_i_leaf(tree, k))) continue;
        packet.reach2 = o->reach2;
        for (a = 0; a < 3; a++) {
            packet.min[a] = lbvh_i_min(packet.min[a], o->min[a]);
            packet.max[a] = lbvh_i_max(packet.max[a], o->max[a]);
        }
    }
    if (!(finder->queries->flags & LBVH_HALF))
        finder->fits = lbvh_i_fill_batch(&finder->batch, tree, &packet, lbvh_root(tree), 0);
    else finder->fits = lbvh_i_fill_batch(&finder->batch, tree, &packet, at, finder->begin);
}

/* met[c] = -1 where entry c of the batch, from `from` on, overlaps the search's box, else 0. Some
   behind the last entry are written too. (By LBVH_I_LANES, because with plain flags compilers make
   vectors of loops of constant length only.) */
LBVH_FN_HOT void lbvh_i_test_boxes(const lbvh_i_batch *batch, int32_t from, const lbvh_overlap *o,
                                   int32_t *met)
{
    lbvh_real const x0 = o->min[0], y0 = o->min[1], z0 = o->min[2], x1 = o->max[0], y1 = o->max[1],
                    z1 = o->max[2];
    int32_t const count = batch->count;
    int32_t first, c;
    for (first = from; first < count; first += LBVH_I_LANES) {
        LBVH_I_KEEP_LOOP
        for (c = first; c < first + LBVH_I_LANES; c++)
            met[c] = -((batch->min[0][c] <= x1) & (batch->min[1][c] <= y1) &
                       (batch->min[2][c] <= z1) & (batch->max[0][c] >= x0) &
                       (batch->max[1][c] >= y0) & (batch->max[2][c] >= z0));
    }
}

/* The same for a search within a radius. */
LBVH_FN_HOT void lbvh_i_test_spheres(const lbvh_i_batch *batch, int32_t from, const lbvh_overlap *o,
                                     int32_t *met)
{
    lbvh_real const x = o->min[0], y = o->min[1], z = o->min[2], reach2 = o->reach2;
    int32_t const count = batch->count;
    int32_t first, c;
    for (first = from; first < count; first += LBVH_I_LANES) {
        LBVH_I_KEEP_LOOP
        for (c = first; c < first + LBVH_I_LANES; c++)
            met[c] = -(lbvh_i_square(lbvh_i_outside(batch->min[0][c], batch->max[0][c], x),
                                     lbvh_i_outside(batch->min[1][c], batch->max[1][c], y),
                                     lbvh_i_outside(batch->min[2][c], batch->max[2][c], z)) <=
                       reach2);
    }
}

/* The number of entries that are met. */
LBVH_FN_HOT int32_t lbvh_i_count_met(const lbvh_i_batch *batch, int32_t from, const int32_t *met)
{
    int32_t const count = batch->count;
    int32_t sum[LBVH_I_LANES] = {0}, hits = 0, first, k;
    for (first = from; first <= count - LBVH_I_LANES; first += LBVH_I_LANES) {
        LBVH_I_KEEP_LOOP
        for (k = 0; k < LBVH_I_LANES; k++) sum[k] -= met[first + k];
    }
    for (k = 0; k < LBVH_I_LANES; k++) hits += sum[k];
    for (; first < count; first++) hits -= met[first];
    return hits;
}

/* Tests the batch, from `from` on, into met. Returns how many are met. */
LBVH_FN_HOT int32_t lbvh_i_test_batch(const lbvh_i_batch *batch, int32_t from,
                                      const lbvh_overlap *o, int32_t *met)
{
    if (o->reach2 >= 0) lbvh_i_test_spheres(batch, from, o, met);
    else lbvh_i_test_boxes(batch, from, o, met);
    return lbvh_i_count_met(batch, from, met);
}

/* The places of the entries that are met, over met: an entry is read before a place takes its room.
   `hits` are there already. */
static void lbvh_i_list_met(const lbvh_i_batch *batch, int32_t from, int32_t *met, int32_t hits)
{
    int32_t c;
    for (c = from; c < batch->count; c++) {
        int32_t const one = met[c];
        met[hits] = batch->place[c];
        hits -= one;
    }
}

LBVH_I_MAYBE_AVX2 int32_t lbvh_i_test_lanes(const lbvh_i_batch *batch, int32_t from,
                                            const lbvh_overlap *o, int32_t *met)
{
    return lbvh_i_test_batch(batch, from, o, met);
}

/* lbvh_i_list_met, 4 at a time: the places of those met are moved to the front and written with
   the others, and the end advances by their number. */
LBVH_I_MAYBE_AVX2 void lbvh_i_list_lanes(const lbvh_i_batch *batch, int32_t from, int32_t *met)
{
#ifdef LBVH_I_AVX2
    static const int32_t front[16][4] = {
        {0, 0, 0, 0}, {0, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 0}, {2, 0, 0, 0}, {0, 2, 0, 0},
        {1, 2, 0, 0}, {0, 1, 2, 0}, {3, 0, 0, 0}, {0, 3, 0, 0}, {1, 3, 0, 0}, {0, 1, 3, 0},
        {2, 3, 0, 0}, {0, 2, 3, 0}, {1, 2, 3, 0}, {0, 1, 2, 3}};
    int32_t c, hits = 0;
    for (c = from; c <= batch->count - 4; c += 4) {
        __m128 const places = _mm_loadu_ps((const float *)(const void *)(batch->place + c)),
                     meets = _mm_loadu_ps((const float *)(const void *)(met + c));
        int const bits = _mm_movemask_ps(meets);
        __m128i const order = _mm_loadu_si128((const __m128i *)(const void *)front[bits]);
        _mm_storeu_ps((float *)(void *)(met + hits), _mm_permutevar_ps(places, order));
        hits += __builtin_popcount((unsigned)bits);
    }
    lbvh_i_list_met(batch, c, met, hits);
#else
    lbvh_i_list_met(batch, from, met, 0);
#endif
}

/* Tests the batch for a search: finder->hits, and in finder->hit, if places are wanted, which. */
static void lbvh_i_find_in_batch(lbvh_i_finder *finder, int32_t from, const lbvh_overlap *o)
{
    const lbvh_i_batch *const batch = &finder->batch;
    if (LBVH_I_HAS_AVX2()) {
        finder->hits = lbvh_i_test_lanes(batch, from, o, finder->hit);
        if (finder->lists) lbvh_i_list_lanes(batch, from, finder->hit);
    } else {
        finder->hits = lbvh_i_test_batch(batch, from, o, finder->hit);
        if (finder->lists) lbvh_i_list_met(batch, from, finder->hit, 0);
    }
}

/* The largest subtree of a packet's size that begins at this place: its node. */
static int32_t lbvh_i_subtree_from(const lbvh *tree, int32_t place)
{
    int32_t at = lbvh_root(tree), first = 0;
    while (first < place || lbvh_last_place(tree, &tree->node[at]) - first >= LBVH_I_PACKET) {
        int32_t const left = tree->node[at].link,
                      middle = lbvh_last_place(tree, &tree->node[left]);
        at = place <= middle ? left : tree->node[left].skip;
        if (place > middle) first = middle + 1;
    }
    return at;
}

/* The searches of the places first .. end-1. */
static void lbvh_i_begin_finder(lbvh_i_finder *finder, const lbvh *tree,
                                const lbvh_queries *queries, int lists, int32_t first, int32_t end)
{
    finder->tree = tree;
    finder->queries = queries;
    finder->begin = finder->last = finder->place = first - 1;
    finder->end = end;
    finder->next = first < end ? lbvh_i_subtree_from(tree, first) : -1;
    finder->hits = finder->given = finder->fits = 0;
    finder->lists = lists || tree->mask; /* masks are tested place by place */
}

/* Begins the search of the next place; -1 after the last place. */
static int32_t lbvh_i_next_place(lbvh_i_finder *finder)
{
    int32_t from = 0;
    if (finder->place + 1 >= finder->end) return -1;
    if (++finder->place > finder->last) lbvh_i_collect(finder, lbvh_i_next_subtree(finder));
    if (!finder->fits) return finder->place;
    if (finder->queries->flags & LBVH_HALF)
        while (from < finder->batch.count && finder->batch.place[from] <= finder->place) from++;
    lbvh_i_find_in_batch(finder, from, &finder->search[finder->place - finder->begin]);
    finder->given = 0;
    return finder->place;
}

/* The next place that the search has found, except its own; -1 when there are no more. */
static int32_t lbvh_i_next_found(lbvh_i_finder *finder)
{
    const lbvh *tree = finder->tree;
    lbvh_overlap *o = &finder->search[finder->place - finder->begin];
    while (!finder->fits && lbvh_next(o))
        if (o->place != finder->place) return o->place;
    while (finder->fits && finder->given < finder->hits) {
        int32_t const place = finder->hit[finder->given++];
        if (place != finder->place && lbvh_i_passes(tree, tree->first_leaf + place, o->filter))
            return place;
    }
    return -1;
}

/* The number of places that the search finds, except its own. */
static int32_t lbvh_i_count_found(lbvh_i_finder *finder)
{
    const lbvh_overlap *o = &finder->search[finder->place - finder->begin];
    int32_t found = 0;
    if (finder->fits && !finder->lists) {
        /* else its own leaf is among the hits, if it overlaps */
        int const halved = (finder->queries->flags & LBVH_HALF) != 0;
        return finder->hits -
               (!halved &&
                lbvh_i_meets(o, lbvh_i_leaf(finder->tree, finder->place)));
    }
    while (lbvh_i_next_found(finder) >= 0) found++;
    return found;
}

/* ------------------------------------------------------------------------------------------------
   >>pairs: overlapping boxes, each pair once

   A batch (>>packets) pays where leaves have many partners. Where they have few, each leaf walks
   alone, as lbvh_overlap_later does: the order is the same. A running mean of the hits decides.
   ---------------------------------------------------------------------------------------------- */

enum { LBVH_I_MANY = 5 };       /* partners of a leaf at higher places from which batches pay */

/* Where pairs go: to fn, or into an array; and their number so far. */
typedef struct lbvh_i_taker {
    lbvh_pair_fn *fn;
    void *user;
    int32_t *pairs;
    int64_t capacity, found;
    int32_t whole;      /* all pairs of the places before it have been written */
    int64_t written;    /* how many these are */
} lbvh_i_taker;

LBVH_FN_HOT int lbvh_i_take(lbvh_i_taker *taker, int32_t i, int32_t j)
{
    int64_t const slot = taker->found++;
    if (taker->fn) return taker->fn(taker->user, i, j);
    if (slot < taker->capacity) {
        taker->pairs[2 * slot] = i;
        taker->pairs[2 * slot + 1] = j;
    }
    return 0;
}

/* 1 if the boxes of two nodes share a point. Where the processor can, two comparisons of four
   numbers replace six. The fourth ones, link and skip, are not read. */
LBVH_FN_HOT int lbvh_i_nodes_touch(const lbvh_node *node, const lbvh_node *box)
{
#ifdef LBVH_I_SSE2
    const float *const l = (const float *)(const void *)node, *r = (const float *)(const void *)box;
    __m128 const above = _mm_cmpgt_ps(_mm_loadu_ps(l), _mm_loadu_ps(r + 4)),
                 below = _mm_cmpgt_ps(_mm_loadu_ps(r), _mm_loadu_ps(l + 4));
    return (_mm_movemask_ps(_mm_or_ps(above, below)) & 7) == 0;
#else
    return lbvh_boxes_touch(node, box->min, box->max);
#endif
}

/* The partners of one leaf at higher places, in a tree without masks: lbvh_overlap_later. */
LBVH_FN_HOT int lbvh_i_take_later(const lbvh *tree, const lbvh_node *leaf, lbvh_i_taker *taker)
{
    const lbvh_node *const node = tree->node;
    lbvh_node const box = *leaf;
    int32_t const first_leaf = tree->first_leaf;
    int32_t at = box.skip;
    while (at >= 0) {
        if (!lbvh_i_nodes_touch(&node[at], &box)) {
            at = node[at].skip;
        } else if (at < first_leaf) {
            at = node[at].link;
        } else {
            if (lbvh_i_take(taker, box.link, node[at].link)) return 1;
            at = node[at].skip;
        }
    }
    return 0;
}

/* The searches of a packet, each alone. */
static int lbvh_i_take_alone(const lbvh *tree, int32_t begin, int32_t last, lbvh_i_taker *taker)
{
    int32_t place;
    for (place = begin; place <= last; place++) {
        const lbvh_node *leaf = lbvh_i_leaf(tree, place);
        lbvh_overlap o;
        if (!tree->mask) {
            if (lbvh_i_take_later(tree, leaf, taker)) return 1;
            continue;
        }
        o = lbvh_overlap_later(tree, place);
        while (lbvh_next(&o))
            if (lbvh_i_take(taker, leaf->link, o.id)) return 1;
    }
    return 0;
}

/* The searches of a packet by their batch. */
static int lbvh_i_take_batch(lbvh_i_finder *finder, int32_t at, lbvh_i_taker *taker)
{
    const lbvh *tree = finder->tree;
    int32_t other;
    lbvh_i_collect(finder, at);
    finder->place = finder->begin - 1;
    while (finder->place < finder->last) {
        int32_t const id = lbvh_i_id(tree, lbvh_i_next_place(finder));
        if (!finder->lists) taker->found += lbvh_i_count_found(finder);
        else
            while ((other = lbvh_i_next_found(finder)) >= 0)
                if (lbvh_i_take(taker, id, lbvh_i_id(tree, other))) return 1;
    }
    return 0;
}

/* The pairs of the places first .. end-1 with later ones, until the taker returns non-zero. */
static int lbvh_i_take_pairs(const lbvh *tree, lbvh_i_taker *taker, int32_t first, int32_t end)
{
    lbvh_queries queries;
    lbvh_i_finder finder;
    double mean = 0; /* partners of a leaf */
    memset(&queries, 0, sizeof queries);
    queries.filter = LBVH_I_ANY_MASK;
    queries.flags = LBVH_HALF | LBVH_PLACES;
    lbvh_i_begin_finder(&finder, tree, &queries, taker->fn || taker->capacity > 0, first, end);
    taker->whole = first;
    taker->written = taker->found;
    while (finder.last + 1 < end) {
        int64_t const before = taker->found;
        int32_t const at = lbvh_i_next_subtree(&finder);
        if (mean < (double)LBVH_I_MANY
                ? lbvh_i_take_alone(tree, finder.begin, finder.last, taker)
                : lbvh_i_take_batch(&finder, at, taker))
            return 1;
        mean += ((double)(taker->found - before) / (finder.last - finder.begin + 1) - mean) / 4;
        if (taker->found > taker->capacity) continue;
        taker->whole = finder.last + 1;
        taker->written = taker->found;
    }
    return 0;
}

LBVH_API lbvh_result lbvh_each_pair(const lbvh *tree, lbvh_pair_fn *fn, void *user)
{
    lbvh_i_taker taker;
    if (!tree || !fn) return LBVH_BAD_ARGUMENT;
    if (!tree->built) return LBVH_NOT_BUILT;
    memset(&taker, 0, sizeof taker);
    taker.fn = fn;
    taker.user = user;
    return lbvh_i_take_pairs(tree, &taker, 0, tree->n) ? LBVH_STOPPED : LBVH_OK;
}

LBVH_API lbvh_result lbvh_pairs(const lbvh *tree, int32_t *pairs, int64_t capacity, int64_t *needed)
{
    lbvh_i_taker taker;
    if (!tree || !needed || capacity < 0 || (capacity > 0 && !pairs)) return LBVH_BAD_ARGUMENT;
    if (!tree->built) return LBVH_NOT_BUILT;
    if (lbvh_i_search_pieces(tree, tree->n) > 1)
        return lbvh_i_pairs_in_pieces(tree, pairs, capacity, needed);
    memset(&taker, 0, sizeof taker);
    taker.pairs = pairs;
    taker.capacity = capacity;
    (void)lbvh_i_take_pairs(tree, &taker, 0, tree->n);
    *needed = taker.found;
    return taker.found > capacity ? LBVH_BUFFER_TOO_SMALL : LBVH_OK;
}

LBVH_API lbvh_result lbvh_count_pairs(const lbvh *tree, int64_t *pairs)
{
    lbvh_i_taker taker;
    if (!tree || !pairs) return LBVH_BAD_ARGUMENT;
    if (!tree->built) return LBVH_NOT_BUILT;
    if (lbvh_i_search_pieces(tree, tree->n) > 1) return lbvh_i_count_pairs_in_pieces(tree, pairs);
    memset(&taker, 0, sizeof taker);
    (void)lbvh_i_take_pairs(tree, &taker, 0, tree->n);
    *pairs = taker.found;
    return LBVH_OK;
}

/* ------------------------------------------------------------------------------------------------
   >>queries-serial: many searches at once
   ---------------------------------------------------------------------------------------------- */

/* Checks queries; `*resolved` has the defaults filled in. */
static lbvh_result lbvh_i_check_queries(const lbvh *tree, const lbvh_queries *queries,
                                        lbvh_queries *resolved)
{
    int const flags = queries->flags, own = lbvh_i_own(queries);
    lbvh_desc desc;
    if (queries->n < 0 || (own && queries->n != 0)) return LBVH_BAD_ARGUMENT;
    if (queries->n > LBVH_I_N_MAX) return LBVH_TOO_MANY;
    if ((int)queries->kind < 0 || queries->kind > LBVH_SPHERES ||
        (own && queries->kind == LBVH_SPHERES))
        return LBVH_BAD_OPTION;
    if (flags & ~((int)LBVH_HALF | (int)LBVH_PLACES | (int)LBVH_SORTED)) return LBVH_BAD_OPTION;
    if (!own && (flags & ((int)LBVH_HALF | (int)LBVH_PLACES))) return LBVH_BAD_OPTION;
    if (!(queries->radius >= 0) || !lbvh_i_finite(queries->radius)) return LBVH_BAD_RADIUS;
    if (!tree->built) return LBVH_NOT_BUILT;
    *resolved = *queries;
    desc = lbvh_i_query_desc(tree, queries);
    resolved->stride = lbvh_i_stride(&desc, queries->stride);
    if (own) resolved->n = tree->n;
    if (resolved->filter == 0) resolved->filter = LBVH_I_ANY_MASK;
    return resolved->stride ? LBVH_OK : LBVH_BAD_ARGUMENT;
}

/* Many searches, and where their results go. */
typedef struct lbvh_i_lists {
    const lbvh *tree;
    const lbvh_queries *queries;    /* with defaults filled in; NULL: pairs */
    int32_t *counts;                /* [queries] or NULL */
    int64_t *offsets;               /* [queries + 1]; where counts is NULL, also for counts */
    int32_t *ids;                   /* [capacity] or pairs */
    int64_t capacity;
} lbvh_i_lists;

/* The same by desc.parallel. */
static lbvh_result lbvh_i_counts_in_pieces(const lbvh_i_lists *lists);
static lbvh_result lbvh_i_lists_in_pieces(const lbvh_i_lists *lists, int64_t *needed);

static lbvh_i_lists lbvh_i_lists_of(const lbvh *tree, const lbvh_queries *queries)
{
    lbvh_i_lists lists;
    memset(&lists, 0, sizeof lists);
    lists.tree = tree;
    lists.queries = queries;
    return lists;
}

/* Counts of the searches first .. end-1. */
static void lbvh_i_count_rows(const lbvh_i_lists *lists, int32_t first, int32_t end)
{
    const lbvh *tree = lists->tree;
    const lbvh_queries *queries = lists->queries;
    lbvh_i_finder finder;
    int32_t q, found;
    if (lbvh_i_own(queries)) lbvh_i_begin_finder(&finder, tree, queries, 0, first, end);
    for (q = first; q < end; q++) {
        int32_t const row = lbvh_i_row(tree, queries, q);
        found = 0;
        if (lbvh_i_own(queries)) {
            (void)lbvh_i_next_place(&finder);
            found = lbvh_i_count_found(&finder);
        } else {
            lbvh_overlap o = lbvh_i_search(tree, queries, q);
            while (lbvh_next(&o)) found++;
        }
        if (lists->counts) lists->counts[row] = found;
        else lists->offsets[row] = found;
    }
}

LBVH_API lbvh_result lbvh_count_overlaps(const lbvh *tree, const lbvh_queries *queries,
                                         int32_t *counts)
{
    lbvh_queries resolved;
    lbvh_i_lists lists;
    lbvh_result result;
    if (!tree || !queries) return LBVH_BAD_ARGUMENT;
    result = lbvh_i_check_queries(tree, queries, &resolved);
    if (result != LBVH_OK) return result;
    if (resolved.n > 0 && !counts) return LBVH_BAD_ARGUMENT;
    lists = lbvh_i_lists_of(tree, &resolved);
    lists.counts = counts;
    if (lbvh_i_search_pieces(tree, resolved.n) > 1) return lbvh_i_counts_in_pieces(&lists);
    lbvh_i_count_rows(&lists, 0, resolved.n);
    return LBVH_OK;
}

/* The rows of the caller's queries first .. end-1, in one pass. found: entries before these rows.
   Returns those after them: counting goes on when the capacity is reached. */
static int64_t lbvh_i_fill_at(const lbvh_i_lists *lists, int64_t found, int64_t capacity,
                              int32_t first, int32_t end)
{
    int32_t q;
    for (q = first; q < end; q++) {
        lbvh_overlap o = lbvh_i_search(lists->tree, lists->queries, q);
        lists->offsets[q] = found;
        for (; lbvh_next(&o); found++)
            if (found < capacity) lists->ids[found] = o.id;
    }
    return found;
}

/* The same for own elements, rows by place. */
static int64_t lbvh_i_fill_by_place(const lbvh_i_lists *lists, int64_t found, int64_t capacity,
                                    int32_t first, int32_t end)
{
    lbvh_i_finder finder;
    int32_t place, other;
    lbvh_i_begin_finder(&finder, lists->tree, lists->queries, 1, first, end);
    while ((place = lbvh_i_next_place(&finder)) >= 0) {
        lists->offsets[place] = found;
        for (; (other = lbvh_i_next_found(&finder)) >= 0; found++)
            if (found < capacity) lists->ids[found] = other;
    }
    return found;
}

/* Counts become offsets. */
static int64_t lbvh_i_sum_offsets(int64_t *offsets, int32_t n)
{
    int64_t sum = 0;
    int32_t q;
    for (q = 0; q < n; q++) {
        int64_t const count = offsets[q];
        offsets[q] = sum;
        sum += count;
    }
    offsets[n] = sum;
    return sum;
}

/* The rows by id that fit whole. */
static void lbvh_i_fill_rows(const lbvh_i_lists *lists, int32_t first, int32_t end)
{
    const lbvh *tree = lists->tree;
    lbvh_i_finder finder;
    int32_t q, other;
    lbvh_i_begin_finder(&finder, tree, lists->queries, 1, first, end);
    while (lists->capacity > 0 && (q = lbvh_i_next_place(&finder)) >= 0) {
        int32_t const row = lbvh_i_id(tree, q);
        int64_t slot = lists->offsets[row];
        if (lists->offsets[row + 1] > lists->capacity) continue;
        while ((other = lbvh_i_next_found(&finder)) >= 0)
            lists->ids[slot++] = lbvh_i_id(tree, other);
    }
}

/* Own elements, rows by id: count, prefix sum, fill. */
static int64_t lbvh_i_fill_by_id(const lbvh_i_lists *lists)
{
    int32_t const n = lists->queries->n;
    int64_t sum;
    lbvh_i_count_rows(lists, 0, n);
    sum = lbvh_i_sum_offsets(lists->offsets, n);
    lbvh_i_fill_rows(lists, 0, n);
    return sum;
}

LBVH_API lbvh_result lbvh_overlaps(const lbvh *tree, const lbvh_queries *queries, int64_t *offsets,
                                   int32_t *ids, int64_t capacity, int64_t *needed)
{
    lbvh_queries resolved;
    lbvh_i_lists lists;
    lbvh_result result;
    if (!tree || !queries || !offsets || !needed || capacity < 0 || (capacity > 0 && !ids))
        return LBVH_BAD_ARGUMENT;
    result = lbvh_i_check_queries(tree, queries, &resolved);
    if (result != LBVH_OK) return result;
    lists = lbvh_i_lists_of(tree, &resolved);
    lists.offsets = offsets;
    lists.ids = ids;
    lists.capacity = capacity;
    if (lbvh_i_search_pieces(tree, resolved.n) > 1) return lbvh_i_lists_in_pieces(&lists, needed);
    if (!lbvh_i_own(&resolved)) *needed = lbvh_i_fill_at(&lists, 0, capacity, 0, resolved.n);
    else if (resolved.flags & LBVH_PLACES)
        *needed = lbvh_i_fill_by_place(&lists, 0, capacity, 0, tree->n);
    else *needed = lbvh_i_fill_by_id(&lists);
    offsets[resolved.n] = *needed;
    return *needed > capacity ? LBVH_BUFFER_TOO_SMALL : LBVH_OK;
}

LBVH_API lbvh_result lbvh_nearest(const lbvh *tree, const lbvh_real *p, int32_t k, lbvh_real reach,
                                  lbvh_distance2_fn *fn, void *user, int32_t *ids,
                                  lbvh_real *distances2, int32_t *found)
{
    lbvh_near walk;
    if (!tree || !p || k < 0 || (k > 0 && (!ids || !distances2)) || !found)
        return LBVH_BAD_ARGUMENT;
    if (!(reach >= 0)) return LBVH_BAD_RADIUS;
    if (!tree->built) return LBVH_NOT_BUILT;
    *found = 0;
    if (k == 0) return LBVH_OK;
    walk = lbvh_near_point(tree, p, reach);
    while (lbvh_next_near(&walk)) {
        lbvh_real const distance2 = fn ? fn(user, walk.id, p) : walk.distance2;
        walk.reach2 = lbvh_keep_nearest(ids, distances2, k, found, walk.reach2, walk.id, distance2);
    }
    return LBVH_OK;
}

/* ------------------------------------------------------------------------------------------------
   >>validate: the arrays against the tree that the prefixes define
   ---------------------------------------------------------------------------------------------- */

/* 1 if sorted codes, or the depths of clusters, can have these prefixes. Then a pass such as
   lbvh_i_merge's stays within its stack. Codes that are kept must agree (not those of PLOC, which
   are in another order). */
static int lbvh_i_prefixes_valid(const lbvh *tree)
{
    int const most = LBVH_STACK - 1, sorted = tree->code && tree->desc.builder != LBVH_PLOC;
    int32_t k;
    if (tree->prefix[0] != 0 || tree->prefix[tree->n] != 0) return 0;
    for (k = 1; k < tree->n; k++) {
        if (tree->prefix[k] < 1 || tree->prefix[k] > most || tree->prefix[k] == tree->prefix[k - 1])
            return 0;
        if (sorted &&
            (tree->code[k - 1] > tree->code[k] ||
             tree->prefix[k] != 1 + lbvh_i_common(lbvh_i_code_bits(&tree->desc), tree->code[k - 1],
                                                  tree->code[k], k - 1, k)))
            return 0;
    }
    return 1;
}

/* 1 if the leaf has a finite box, or that of an element left out, and an id that no other leaf
   has. */
static int lbvh_i_leaf_valid(const lbvh *tree, int32_t place, unsigned char *seen)
{
    const lbvh_node *leaf = lbvh_i_leaf(tree, place);
    int a;
    if (leaf->link < 0 || leaf->link >= tree->n || seen[leaf->link]) return 0;
    seen[leaf->link] = 1;
    if (leaf->skip != lbvh_i_skip(tree->prefix, tree->n, place)) return 0;
    for (a = 0; a < 3; a++) {
        int const finite = leaf->min[a] <= leaf->max[a] && lbvh_i_finite(leaf->min[a]) &&
                           lbvh_i_finite(leaf->max[a]);
        int const out = leaf->min[a] == lbvh_i_infinity() && leaf->max[a] == -lbvh_i_infinity();
        if (lbvh_left_out(leaf) ? !out : !finite) return 0;
    }
    /* searches in 2D use 0 there */
    if (tree->desc.dim == 2 && !lbvh_left_out(leaf) && !(leaf->min[2] == 0 && leaf->max[2] == 0))
        return 0;
    return 1;
}

/* 1 if the node at `at` equals the join of its children. */
static int lbvh_i_join_valid(const lbvh *tree, int32_t at, int32_t left, int32_t right)
{
    const lbvh_node *r = &tree->node[right], *node = &tree->node[at];
    lbvh_node united;
    lbvh_i_unite(&united, &tree->node[left], r);
    if (tree->mask && tree->mask[at] != (tree->mask[left] | tree->mask[right])) return 0;
    return node->link == left && node->skip == r->skip && lbvh_i_same_box(node, &united);
}

/* The pass of lbvh_i_merge, comparing instead of writing. */
static int lbvh_i_nodes_valid(const lbvh *tree, unsigned char *seen)
{
    int32_t waiting[LBVH_STACK];
    int32_t k, top = 0;
    for (k = 0; k < tree->n; k++) {
        int32_t first = k, at = tree->first_leaf + k;
        if (!lbvh_i_leaf_valid(tree, k, seen)) return 0;
        while (top > 0 && !lbvh_i_is_left(tree->prefix, first, k)) {
            int32_t const split = first - 1, right = at;
            first = waiting[--top];
            /* prefixes increase from parent to child, which bounds the depth */
            if (tree->prefix[split + 1] <= tree->prefix[first] ||
                tree->prefix[split + 1] <= tree->prefix[k + 1])
                return 0;
            at = lbvh_i_number(tree->prefix, tree->first_leaf, first, k);
            if (!lbvh_i_join_valid(tree, at, lbvh_i_left_child(tree->first_leaf, first, split),
                                   right))
                return 0;
        }
        if (k < tree->n - 1) waiting[top++] = first;
    }
    return top == 0;
}

LBVH_API lbvh_result lbvh_validate(const lbvh *tree)
{
    lbvh_block seen;
    int valid;
    if (!tree) return LBVH_BAD_ARGUMENT;
    if (!tree->built) return LBVH_NOT_BUILT;
    if (tree->n == 0) return LBVH_OK;
    if (tree->n < 0 || tree->first_leaf != tree->n - 1 || !tree->node || !tree->prefix)
        return LBVH_INVALID;
    seen = lbvh_i_take_block(&tree->desc.allocator, (size_t)tree->n);
    if (!seen.memory) return LBVH_OUT_OF_MEMORY;
    memset(seen.memory, 0, seen.bytes);
    valid = lbvh_i_prefixes_valid(tree) && lbvh_i_nodes_valid(tree, (unsigned char *)seen.memory);
    lbvh_i_release(&tree->desc.allocator, &seen);
    return valid ? LBVH_OK : LBVH_INVALID;
}

/* Sample k: evenly spaced in 0 .. n - 1, from a start that depends on the seed (Knuth's
   multiplicative hash). */
static int32_t lbvh_i_sample(int32_t n, int32_t samples, uint32_t seed, int32_t k)
{
    uint64_t const start = (uint64_t)(seed * 2654435761u) * (uint64_t)n >> 32;
    return (int32_t)((start + (uint64_t)k * (uint64_t)n / (uint64_t)samples) % (uint64_t)n);
}

/* 1 if the search around the leaf at `place` finds what brute force finds, each once, by ascending
   place. met: [n] zeros, before and after. */
static int lbvh_i_search_valid(const lbvh *tree, int32_t place, unsigned char *met)
{
    const lbvh_node *leaves = tree->node + tree->first_leaf, *own = &leaves[place];
    lbvh_overlap o = lbvh_overlap_between(tree, own->min, own->max);
    int32_t other, last = -1;
    int right = 1;
    while (lbvh_next(&o)) {
        if (o.place <= last || o.id != leaves[o.place].link) right = 0;
        met[o.place] = 1;
        last = o.place;
    }
    for (other = 0; other < tree->n; other++) {
        int const touches = !lbvh_left_out(own) &&
                            lbvh_boxes_touch(&leaves[other], own->min, own->max) &&
                            lbvh_i_passes(tree, tree->first_leaf + other, LBVH_I_ANY_MASK);
        if (met[other] != touches) right = 0;
        met[other] = 0;
    }
    return right;
}

LBVH_API lbvh_result lbvh_verify(const lbvh *tree, int32_t samples, uint32_t seed, int32_t *bad_id)
{
    lbvh_block met;
    lbvh_result result;
    int32_t k;
    if (bad_id) *bad_id = -1;
    if (!tree || samples < 0) return LBVH_BAD_ARGUMENT;
    result = lbvh_validate(tree);
    if (result != LBVH_OK || tree->n == 0) return result;
    if (samples > tree->n) samples = tree->n;
    met = lbvh_i_take_block(&tree->desc.allocator, (size_t)tree->n);
    if (!met.memory) return LBVH_OUT_OF_MEMORY;
    memset(met.memory, 0, met.bytes);
    for (k = 0; k < samples && result == LBVH_OK; k++) {
        int32_t const place = lbvh_i_sample(tree->n, samples, seed, k);
        if (lbvh_i_search_valid(tree, place, (unsigned char *)met.memory)) continue;
        if (bad_id) *bad_id = lbvh_i_id(tree, place);
        result = LBVH_INVALID;
    }
    lbvh_i_release(&tree->desc.allocator, &met);
    return result;
}

/* ------------------------------------------------------------------------------------------------
   >>measure: quality of a tree
   ---------------------------------------------------------------------------------------------- */

/* a * b, rounded, as lbvh_i_times. */
LBVH_FN double lbvh_i_product(double a, double b)
{
#if defined(__CUDA_ARCH__)
    return __dmul_rn(a, b);
#else
    return a * b;
#endif
}

/* Surface of a box, in 2D its perimeter; 0 for an element left out. */
LBVH_FN double lbvh_i_area(int dim, const lbvh_real min[3], const lbvh_real max[3])
{
    double const x = (double)max[0] - (double)min[0], y = (double)max[1] - (double)min[1],
                 z = (double)max[2] - (double)min[2];
    if (!(x >= 0 && y >= 0 && z >= 0)) return 0;
    if (dim == 2) return 2 * (x + y);
    return 2 * (lbvh_i_product(x, y) + lbvh_i_product(y, z) + lbvh_i_product(z, x));
}

/* The area that two nodes share. */
static double lbvh_i_shared_area(int dim, const lbvh_node *l, const lbvh_node *r)
{
    lbvh_real min[3], max[3];
    int a;
    for (a = 0; a < 3; a++) {
        min[a] = lbvh_i_max(l->min[a], r->min[a]);
        max[a] = lbvh_i_min(l->max[a], r->max[a]);
    }
    return lbvh_i_area(dim, min, max);
}

LBVH_API lbvh_result lbvh_measure(const lbvh *tree, lbvh_quality *quality)
{
    int32_t inner[LBVH_STACK]; /* last places of the inner nodes above */
    int32_t at, place = 0, depth = 0;
    double areas = 0, shared = 0, levels = 0, root;
    if (!tree || !quality) return LBVH_BAD_ARGUMENT;
    if (!tree->built) return LBVH_NOT_BUILT;
    memset(quality, 0, sizeof *quality);
    if (tree->n == 0) return LBVH_OK;
    for (at = 0; at >= 0;) { /* a walk over all nodes */
        const lbvh_node *node = &tree->node[at];
        while (depth > 0 && inner[depth - 1] < place) depth--;
        areas += lbvh_i_area(tree->desc.dim, node->min, node->max);
        if (lbvh_is_leaf(tree, at)) {
            if (quality->depth < depth) quality->depth = depth;
            levels += depth;
            place++;
            at = node->skip;
        } else {
            shared += lbvh_i_shared_area(tree->desc.dim, &tree->node[node->link],
                                         &tree->node[lbvh_right_child(tree, node)]);
            inner[depth++] = lbvh_last_place(tree, node);
            at = node->link;
        }
    }
    root = lbvh_i_area(tree->desc.dim, tree->node[0].min, tree->node[0].max);
    quality->mean_depth = levels / tree->n;
    if (root > 0) {
        quality->sah = areas / root;
        quality->overlap = shared / root;
    }
    return LBVH_OK;
}

/* ------------------------------------------------------------------------------------------------
   >>save: trees as bytes, with a checksum
   ---------------------------------------------------------------------------------------------- */

/* A file: this header of 64 bytes, then the arrays without gaps. */
typedef struct lbvh_i_header {
    char magic[8];
    uint32_t byte_order;    /* 0x01020304 as the writer stores it */
    uint32_t version;       /* of this layout */
    int32_t real_bytes;
    union {
        struct { int32_t dim, bits, n, has_masks; } tree;
        struct { int32_t dim, nodes, leaves, elements, numbers, has_masks, leaf; } wide;
    } of;
    uint64_t bytes;         /* of header and arrays */
    uint64_t checksum;      /* of the arrays, and of the header with 0 here */
} lbvh_i_header;

static uint64_t lbvh_i_checksum(uint64_t sum, const void *bytes, size_t size)
{
    const unsigned char *at = (const unsigned char *)bytes;
    size_t i;
    /* FNV-1a, Fowler, Noll and Vo */
    for (i = 0; i < size; i++) sum = (sum ^ at[i]) * 0x100000001B3ull;
    return sum;
}

/* The checksum of a header, with which that of the arrays begins. */
static uint64_t lbvh_i_header_checksum(lbvh_i_header header)
{
    header.checksum = 0;
    return lbvh_i_checksum(0xCBF29CE484222325ull, &header, sizeof header);
}

static lbvh_i_header lbvh_i_begin_header(const char magic[8])
{
    lbvh_i_header header;
    memset(&header, 0, sizeof header);
    memcpy(header.magic, magic, sizeof header.magic);
    header.byte_order = 0x01020304u;
    header.version = 1;
    header.real_bytes = (int32_t)sizeof(lbvh_real);
    header.bytes = sizeof header;
    return header;
}

/* Writes header and arrays where the capacity is enough for them. */
static lbvh_result lbvh_i_write_file(lbvh_i_header header, const lbvh_block array[LBVH_BLOCKS],
                                     void *bytes, int64_t capacity, int64_t *needed)
{
    unsigned char *out = (unsigned char *)bytes;
    int b;
    *needed = (int64_t)header.bytes;
    if (*needed > capacity) return LBVH_BUFFER_TOO_SMALL;
    header.checksum = lbvh_i_header_checksum(header);
    out += sizeof header;
    for (b = 0; b < LBVH_BLOCKS; b++) {
        if (array[b].bytes) memcpy(out, array[b].memory, array[b].bytes);
        header.checksum = lbvh_i_checksum(header.checksum, out, array[b].bytes);
        out += array[b].bytes;
    }
    memcpy(bytes, &header, sizeof header);
    return LBVH_OK;
}

/* Fills arrays from a file; 1 if its checksum agrees. */
static int lbvh_i_read_file(lbvh_i_header header, const lbvh_block array[LBVH_BLOCKS],
                            const void *bytes)
{
    const unsigned char *in = (const unsigned char *)bytes + sizeof header;
    uint64_t sum = lbvh_i_header_checksum(header);
    int b;
    for (b = 0; b < LBVH_BLOCKS; b++) {
        if (array[b].bytes) memcpy(array[b].memory, in, array[b].bytes);
        sum = lbvh_i_checksum(sum, in, array[b].bytes);
        in += array[b].bytes;
    }
    return sum == header.checksum;
}

/* The arrays of a tree, in the order of the file: nodes, prefixes, masks. */
static void lbvh_i_arrays_of(const lbvh *tree, lbvh_block array[LBVH_BLOCKS])
{
    size_t const nodes = tree->n > 0 ? 2 * (size_t)tree->n - 1 : 0;
    memset(array, 0, LBVH_BLOCKS * sizeof *array);
    array[0].memory = tree->node;
    array[0].bytes = nodes * sizeof(lbvh_node);
    array[1].memory = tree->prefix;
    array[1].bytes = tree->n > 0 ? (size_t)tree->n + 1 : 0;
    array[2].memory = tree->mask;
    array[2].bytes = tree->mask ? nodes * sizeof(uint32_t) : 0;
}

static lbvh_i_header lbvh_i_header_of(const lbvh *tree)
{
    lbvh_i_header header = lbvh_i_begin_header("lbvh.h\r\n");
    header.of.tree.dim = tree->desc.dim;
    header.of.tree.bits = tree->desc.bits;
    header.of.tree.n = tree->n;
    header.of.tree.has_masks = tree->mask != NULL;
    if (tree->n > 0) {
        uint64_t const nodes = 2 * (uint64_t)tree->n - 1;
        header.bytes += nodes * sizeof(lbvh_node) + (uint64_t)tree->n + 1;
        if (tree->mask) header.bytes += nodes * sizeof(uint32_t);
    }
    return header;
}

LBVH_API lbvh_result lbvh_save(const lbvh *tree, void *bytes, int64_t capacity, int64_t *needed)
{
    lbvh_block array[LBVH_BLOCKS];
    if (!tree || !needed || capacity < 0 || (capacity > 0 && !bytes)) return LBVH_BAD_ARGUMENT;
    *needed = 0;
    if (!tree->built) return LBVH_NOT_BUILT;
    lbvh_i_arrays_of(tree, array);
    return lbvh_i_write_file(lbvh_i_header_of(tree), array, bytes, capacity, needed);
}

/* 1 if this header, for this many bytes, is `expected` but for the checksum. */
static int lbvh_i_same_header(lbvh_i_header expected, const lbvh_i_header *header, int64_t size)
{
    expected.checksum = header->checksum;
    return memcmp(&expected, header, sizeof expected) == 0 && (uint64_t)size == header->bytes;
}

/* 1 if lbvh_i_header_of could have made this header, for this many bytes and this real type. */
static int lbvh_i_header_valid(const lbvh_i_header *header, int64_t size)
{
    int32_t const dim = header->of.tree.dim, bits = header->of.tree.bits, n = header->of.tree.n,
                  has_masks = header->of.tree.has_masks;
    lbvh shape;
    if ((dim != 2 && dim != 3) || (bits != 30 && bits != 63)) return 0;
    if (n < 0 || n > LBVH_I_N_MAX || (has_masks & ~1)) return 0;
    memset(&shape, 0, sizeof shape);
    shape.desc.dim = dim;
    shape.desc.bits = bits;
    shape.n = n;
    shape.mask = has_masks ? (uint32_t *)(void *)&shape : NULL;
    return lbvh_i_same_header(lbvh_i_header_of(&shape), header, size);
}

LBVH_API lbvh_result lbvh_load(lbvh *tree, const lbvh_desc *desc, const void *bytes, int64_t size)
{
    static const uint32_t some_masks = 0;
    lbvh_i_header header;
    lbvh_block array[LBVH_BLOCKS];
    lbvh_desc given;
    lbvh_result result;
    if (!tree) return LBVH_BAD_ARGUMENT;
    lbvh_i_make_empty(tree);
    if (size < 0 || (size > 0 && !bytes)) return LBVH_BAD_ARGUMENT;
    memset(&given, 0, sizeof given);
    if (desc) given.allocator = desc->allocator;
    if (desc) given.cuda_allocator = desc->cuda_allocator;
    if (desc) given.parallel = desc->parallel;
    result = lbvh_i_begin(tree, &given);
    if (result != LBVH_OK) return result;
    if ((uint64_t)size < sizeof header) return LBVH_BAD_FILE;
    memcpy(&header, bytes, sizeof header);
    if (!lbvh_i_header_valid(&header, size)) return LBVH_BAD_FILE;
    tree->desc.dim = header.of.tree.dim;
    tree->desc.bits = header.of.tree.bits;
    /* masks exist, without the caller's array */
    tree->desc.masks = header.of.tree.has_masks ? &some_masks : NULL;
    result = lbvh_i_prepare(tree, header.of.tree.n, LBVH_I_AHEAD);
    if (result != LBVH_OK) return result;
    tree->built = 1;
    tree->n = header.of.tree.n;
    tree->first_leaf = tree->n > 0 ? tree->n - 1 : 0;
    lbvh_i_arrays_of(tree, array);
    result = lbvh_i_read_file(header, array, bytes) ? lbvh_validate(tree) : LBVH_INVALID;
    if (result == LBVH_INVALID) result = LBVH_BAD_FILE;
    if (result != LBVH_OK) lbvh_i_make_empty(tree);
    return result;
}

/* ------------------------------------------------------------------------------------------------
   >>ploc: LBVH_PLOC, clusters whose common box is small merge first (Meister and Bittner 2018; by
   subtrees of the sorted leaves: Benthin 2024)

   MERGE joins what has the longest common prefix, even where a large triangle meets a small one.
   PLOC chooses by area. It begins with the sorted leaves, each of which is a cluster, and goes up
   the tree of MERGE: a subtree joins the clusters of its two children. Where these are more than 16
   (32 at most), rounds follow until 16 are left or fewer (in the root: 1). In a round every cluster
   finds the partner with which its box is smallest (>>clusters), and two that choose each other
   merge. Five points on a line:

       place    0   4 6       14    20
                A   B C       D     E     round 1: A chooses B, B and C each other, D and E too
                |   \_/       \_____/     B, C become cluster 1 (edge 2), D, E cluster 2 (edge 6)
                A    1           2        round 2: A and 1 choose each other (edge 6; 1 and 2: 16)
                \____/           |        they become cluster 3
                   3             2        round 3: the root
       border 0     1 2        3     4 5
       prefix 0     2 3        1     2 0  1 + the depth of the node that is split there

   A window holds as many clusters as a warp has lanes. A cluster compares itself to the 8 before
   and the 8 after it, and each pair is computed once. A round merges one pair at least. So a window
   takes 31 rounds at most, all windows together n - 1, and a build O(n) time, whatever the input.

   A merged cluster has number r - 1 of an inner node, where r is the larger one of the first places
   of its children. That place is nobody's first from then on: no two clusters have the same number,
   and no counter is needed. Then the tree is walked depth first, which gives leaves their new
   places; border k gets 1 + the depth of the node that is split there as its prefix. This is all
   that the shape needs (>>nodes): boxes, links and skips are made by lbvh_i_merge, and a refit, a
   file and every walk see a tree like any other. Where a leaf would lie below more than
   LBVH_STACK - 1 nodes, the tree stays that of MERGE.
   ---------------------------------------------------------------------------------------------- */

/* A stack of clusters, as a structure of arrays for vectors: 50 KB (double: 90). Its last
   ones are the window, with room behind it. Keys have room before the first: keys with nobody. */
enum { LBVH_I_ROOM = (int)LBVH_STACK * LBVH_I_CLUSTERS + LBVH_I_WINDOW + LBVH_I_RADIUS };
typedef struct lbvh_i_clusters {
    lbvh_real min[3][LBVH_I_ROOM], max[3][LBVH_I_ROOM];
    int32_t node[LBVH_I_ROOM], first[LBVH_I_ROOM]; /* the first place of its subtree */
    int32_t all;                                   /* clusters on the stack */
    int32_t waiting[LBVH_STACK], many[LBVH_STACK]; /* of each subtree on it: first leaf, clusters */
    int32_t top;                                   /* subtrees on it */
    int32_t *child;     /* [n - 1][2] the children of a cluster, by number: where codes will be */
    int lanes;          /* vectors of 8 floats may be used */
    lbvh_i_pair key[LBVH_I_RADIUS][LBVH_I_RADIUS + LBVH_I_WINDOW]; /* of clusters i and i + 1 + k */
    lbvh_i_pair hidden[LBVH_I_WINDOW + LBVH_I_RADIUS]; /* 0; behind the last cluster all ones */
    lbvh_i_pair best[LBVH_I_WINDOW];                   /* the smallest key of each */
} lbvh_i_clusters;

/* An empty stack. No cluster has one before the first as its partner. */
static void lbvh_i_begin_clusters(const lbvh *tree, lbvh_i_clusters *c)
{
    int32_t i, k;
    memset(c, 0, sizeof *c);
    for (k = 0; k < LBVH_I_RADIUS; k++)
        for (i = 0; i < LBVH_I_RADIUS; i++) c->key[k][i] = lbvh_i_no_pair();
    c->child = (int32_t *)tree->block[LBVH_I_CODE].memory;
    c->lanes = LBVH_I_HAS_AVX2();
}

/* The keys of eight clusters, from i on, with those behind them. (Every loop has a fixed number of
   turns: compilers make vectors of them at -O2 too.) */
LBVH_FN_HOT void lbvh_i_compare(lbvh_i_clusters *c, int dim, int32_t window, int32_t i)
{
    int32_t k, p;
    for (k = 0; k < LBVH_I_RADIUS; k++)
        for (p = i; p < i + LBVH_I_RADIUS; p++) {
            int32_t const q = p + 1 + k, at = window + p, by = window + q;
            lbvh_real const
                x = lbvh_i_edge(c->min[0][at], c->max[0][at], c->min[0][by], c->max[0][by]),
                y = lbvh_i_edge(c->min[1][at], c->max[1][at], c->min[1][by], c->max[1][by]),
                z = lbvh_i_edge(c->min[2][at], c->max[2][at], c->min[2][by], c->max[2][by]);
            c->key[k][LBVH_I_RADIUS + p] =
                lbvh_i_pair_key(lbvh_i_half_area(dim, x, y, z), p, q) | c->hidden[q];
        }
}

/* The smallest keys of eight clusters, from i on: with those behind them and those before. */
LBVH_FN_HOT void lbvh_i_choose(lbvh_i_clusters *c, int32_t i)
{
    int32_t k, p;
    for (p = i; p < i + LBVH_I_RADIUS; p++) c->best[p] = lbvh_i_no_pair();
    for (k = 0; k < LBVH_I_RADIUS; k++)
        for (p = i; p < i + LBVH_I_RADIUS; p++) {
            lbvh_i_pair const behind = c->key[k][LBVH_I_RADIUS + p],
                              before = c->key[k][LBVH_I_RADIUS + p - 1 - k],
                              least = behind < before ? behind : before, best = c->best[p];
            c->best[p] = least < best ? least : best;
        }
}

/* best[i] of all `count` clusters of a window. */
LBVH_FN_HOT void lbvh_i_choose_all(lbvh_i_clusters *c, int dim, int32_t count)
{
    int32_t i;
    for (i = 0; i < count; i += LBVH_I_RADIUS) {
        if (dim == 2) lbvh_i_compare(c, 2, c->all - count, i);
        else lbvh_i_compare(c, 3, c->all - count, i);
    }
    for (i = 0; i < count; i += LBVH_I_RADIUS) lbvh_i_choose(c, i);
}

LBVH_I_MAYBE_AVX2 void lbvh_i_choose_lanes(lbvh_i_clusters *c, int dim, int32_t count)
{
    lbvh_i_choose_all(c, dim, count);
}

static void lbvh_i_find_partners(lbvh_i_clusters *c, int dim, int32_t count)
{
    int32_t i;
    for (i = 0; i < LBVH_I_WINDOW + LBVH_I_RADIUS; i++)
        c->hidden[i] = i < count ? 0 : lbvh_i_no_pair();
    if (c->lanes) lbvh_i_choose_lanes(c, dim, count);
    else lbvh_i_choose_all(c, dim, count);
}

/* Cluster i of the stack becomes the node of itself and j. */
static void lbvh_i_merge_clusters(lbvh_i_clusters *c, int32_t i, int32_t j)
{
    int32_t const one = c->first[i], other = c->first[j], at = (one > other ? one : other) - 1;
    int32_t *const child = c->child + 2 * (size_t)at;
    int a;
    for (a = 0; a < 3; a++) {
        c->min[a][i] = lbvh_i_min(c->min[a][i], c->min[a][j]);
        c->max[a][i] = lbvh_i_max(c->max[a][i], c->max[a][j]);
    }
    child[0] = c->node[i];
    child[1] = c->node[j];
    c->node[i] = at;
    c->first[i] = one < other ? one : other;
}

/* Cluster `from` of the stack moves to `to`. */
static void lbvh_i_move_cluster(lbvh_i_clusters *c, int32_t to, int32_t from)
{
    int a;
    for (a = 0; a < 3; a++) {
        c->min[a][to] = c->min[a][from];
        c->max[a][to] = c->max[a][from];
    }
    c->node[to] = c->node[from];
    c->first[to] = c->first[from];
}

/* Merges all pairs of a window that chose each other: both have the same key. Those left keep their
   order. Returns their number. (By lists: branches on who chose whom are mispredicted.) */
static int32_t lbvh_i_merge_partners(lbvh_i_clusters *c, int32_t count)
{
    int32_t const window = c->all - count;
    int32_t merge[LBVH_I_WINDOW], keep[LBVH_I_WINDOW], i, k, merges = 0, left = 0;
    for (i = 0; i < count; i++) {
        int32_t const j = i ^ (int32_t)(c->best[i] & 31);
        int const chosen = c->best[j] == c->best[i];
        merge[merges] = keep[left] = i;
        merges += chosen & (i < j);
        left += !(chosen & (j < i));
    }
    for (k = 0; k < merges; k++) {
        i = merge[k];
        lbvh_i_merge_clusters(c, window + i, window + (i ^ (int32_t)(c->best[i] & 31)));
    }
    for (k = 0; k < left && keep[k] == k; k++) {}
    for (; k < left; k++) lbvh_i_move_cluster(c, window + k, window + keep[k]);
    c->all = window + left;
    return left;
}

/* Puts a cluster on the stack. */
LBVH_I_HOT void lbvh_i_push_cluster(lbvh_i_clusters *c, const lbvh_real min[3],
                                    const lbvh_real max[3], int32_t node, int32_t first)
{
    int32_t const at = c->all++;
    int a;
    LBVH_I_UNROLL
    for (a = 0; a < 3; a++) {
        c->min[a][at] = min[a];
        c->max[a][at] = max[a];
    }
    c->node[at] = node;
    c->first[at] = first;
}

/* Puts leaf k on the stack. */
static void lbvh_i_push_leaf(const lbvh *tree, const lbvh_real *data, size_t stride,
                             const lbvh_i_keys *keys, lbvh_i_clusters *c, int32_t k)
{
    lbvh_real min[3], max[3];
    int a;
    lbvh_i_prefetch_element(tree, data, stride, keys, k, tree->n);
    (void)lbvh_box_of(&tree->desc, data, stride, lbvh_i_key_id(keys->key[k]), min, max);
    for (a = 0; a < 3; a++) {
        min[a] = lbvh_i_bounded(min[a]);
        max[a] = lbvh_i_bounded(max[a]);
    }
    lbvh_i_push_cluster(c, min, max, tree->first_leaf + k, k);
}

/* Goes up from a subtree of MERGE, whose `count` clusters are on top of the stack, to the first one
   that is a left child. Those of its left sibling lie below them: where both are too many for the
   parent, rounds follow. */
static void lbvh_i_join_clusters(const lbvh *tree, lbvh_i_clusters *c, int32_t first, int32_t last,
                                 int32_t count)
{
    while (c->top > 0 && !lbvh_i_is_left(tree->prefix, first, last)) {
        first = c->waiting[--c->top];
        count += c->many[c->top];
        while (count > (first == 0 && last == tree->n - 1 ? 1 : LBVH_I_CLUSTERS)) {
            lbvh_i_find_partners(c, tree->desc.dim, count);
            count = lbvh_i_merge_partners(c, count);
        }
    }
    c->waiting[c->top] = first;
    c->many[c->top++] = count;
}

/* All clusters, in the order in which lbvh_i_merge meets the subtrees. Returns the root. */
static int32_t lbvh_i_cluster(const lbvh *tree, const lbvh_real *data, size_t stride,
                              const lbvh_i_keys *keys)
{
    lbvh_i_clusters c;
    int32_t k;
    lbvh_i_begin_clusters(tree, &c);
    for (k = 0; k < tree->n; k++) {
        lbvh_i_push_leaf(tree, data, stride, keys, &c, k);
        lbvh_i_join_clusters(tree, &c, k, k, 1);
    }
    return c.node[0];
}

/* Walks the clusters depth first: the keys in the order of the new places, and the new prefixes. 0:
   a leaf would lie too deep, and nothing was changed. */
static int lbvh_i_number_clusters(const lbvh *tree, lbvh_i_keys *keys, int32_t root)
{
    const int32_t *child = (const int32_t *)tree->block[LBVH_I_CODE].memory;
    /* where the last leaves will be */
    uint8_t *const prefix = (uint8_t *)(tree->node + 2 * (size_t)tree->n) - tree->n;
    int32_t pending[LBVH_STACK], depth[LBVH_STACK]; /* right children, and the depth of parents */
    int32_t at = root, level = 0, place = 0, top = 0;
    uint64_t *const old = keys->key;
    for (;;) {
        for (; at < tree->first_leaf; level++) {
            if (level == LBVH_STACK - 1) return 0;
            pending[top] = child[2 * (size_t)at + 1];
            depth[top++] = level;
            at = child[2 * (size_t)at];
        }
        keys->spare[place++] = old[at - tree->first_leaf];
        if (top == 0) break;
        at = pending[--top];
        level = depth[top] + 1;
        prefix[place] = (uint8_t)level;
    }
    memcpy(tree->prefix + 1, prefix + 1, (size_t)tree->n - 1);
    keys->key = keys->spare;
    keys->spare = old;
    return 1;
}

static void lbvh_i_ploc(const lbvh *tree, const lbvh_real *data, size_t stride, lbvh_i_keys *keys)
{
    if (tree->n == 2) tree->prefix[1] = 1; /* the depth of the root, and 1 */
    if (tree->n > 2)
        (void)lbvh_i_number_clusters(tree, keys, lbvh_i_cluster(tree, data, stride, keys));
}

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
   that is split there as its prefix, as in >>ploc, and lbvh_i_merge makes all nodes anew.
   ---------------------------------------------------------------------------------------------- */

/* The roots of subtrees whose parents are still to come: the first leaf of each. */
typedef struct lbvh_i_roots { int32_t first[2 * LBVH_STACK], count; } lbvh_i_roots;

/* A rotation: the subtrees at two links change places. */
typedef struct lbvh_i_rotation {
    int32_t *one, *other;
    double gain;            /* by which the areas shrink */
} lbvh_i_rotation;

/* Inner nodes on the longest way from here to a leaf, during the pass. */
LBVH_FN int32_t lbvh_i_height(const lbvh *tree, int32_t at)
{
    return lbvh_is_leaf(tree, at) ? 0 : tree->node[tree->first_leaf + at].skip;
}

LBVH_FN void lbvh_i_note_height(const lbvh *tree, int32_t at)
{
    const lbvh_node *node = &tree->node[at];
    int32_t const left = lbvh_i_height(tree, node->link), right = lbvh_i_height(tree, node->skip);
    tree->node[tree->first_leaf + at].skip = 1 + (left > right ? left : right);
}

/* The area of the box around two nodes. */
LBVH_FN double lbvh_i_area_around(const lbvh *tree, int32_t p, int32_t q)
{
    lbvh_node around;
    lbvh_i_unite(&around, &tree->node[p], &tree->node[q]);
    return lbvh_i_area(tree->desc.dim, around.min, around.max);
}

LBVH_FN void lbvh_i_offer(lbvh_i_rotation *best, double gain, int32_t *one, int32_t *other)
{
    if (!(gain > best->gain)) return; /* nor a NaN */
    best->gain = gain;
    best->one = one;
    best->other = other;
}

/* A child, at link `child`, with each of the children of its sibling, whose box has `area`. That
   box becomes the one around the child and the grandchild that stays. */
LBVH_FN void lbvh_i_offer_child(const lbvh *tree, int32_t *child, int32_t sibling, double area,
                               lbvh_i_rotation *best)
{
    lbvh_node *of = &tree->node[sibling];
    lbvh_i_offer(best, area - lbvh_i_area_around(tree, *child, of->skip), child, &of->link);
    lbvh_i_offer(best, area - lbvh_i_area_around(tree, *child, of->link), child, &of->skip);
}

/* Two grandchildren, one from each side. (To exchange the other two is the same, mirrored.) */
LBVH_FN void lbvh_i_offer_grandchildren(const lbvh *tree, int32_t left, int32_t right, double area,
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
LBVH_FN lbvh_i_rotation lbvh_i_best_rotation(const lbvh *tree, int32_t at, double left_area,
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
LBVH_FN void lbvh_i_renew(const lbvh *tree, int32_t at)
{
    lbvh_node *node = &tree->node[at];
    if (lbvh_is_leaf(tree, at)) return;
    lbvh_i_unite(node, &tree->node[node->link], &tree->node[node->skip]);
    lbvh_i_note_height(tree, at);
}

/* Exchanges the two subtrees; left and right are the children of `at` before. */
LBVH_FN void lbvh_i_exchange(const lbvh *tree, const lbvh_i_rotation *rotation, int32_t at,
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
LBVH_FN int32_t lbvh_i_rotate(const lbvh *tree, int32_t at, double left_area, double right_area,
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

/* Goes up from the node of the leaves first .. last while it is a right child, and rotates at each
   parent; its left siblings are the last roots. The node reached becomes a root. The first `fixed`
   roots are right children whose siblings begin before the piece. Returns their new number. */
static int32_t lbvh_i_rotate_up(const lbvh *tree, lbvh_i_roots *roots, int32_t fixed, int32_t first,
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
static int32_t lbvh_i_rotate_all(const lbvh *tree)
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
    tree->desc.keep_codes = 0;
    if (tree->desc.builder == LBVH_SPLIT) tree->desc.builder = LBVH_MERGE;
}

LBVH_API lbvh_result lbvh_optimize(lbvh *tree, int32_t *rotations)
{
    int32_t done;
    if (rotations) *rotations = 0;
    if (!tree) return LBVH_BAD_ARGUMENT;
    if (!tree->built) return LBVH_NOT_BUILT;
    if (tree->n < 3) return LBVH_OK;
    if (lbvh_i_build_pieces(tree, tree->n) > 1) return lbvh_i_optimize_in_pieces(tree, rotations);
    done = lbvh_i_rotate_all(tree);
    if (done > 0) lbvh_i_number_leaves(tree);
    if (done > 0) lbvh_i_take_places(tree);
    lbvh_i_merge(tree);
    if (rotations) *rotations = done;
    return LBVH_OK;
}

/* ------------------------------------------------------------------------------------------------
   >>top: lbvh_split_top, top-down splits by area above subtrees that stay (the surface area
   heuristic: Goldsmith and Salmon 1987; over subtrees of a finished tree: Garanzha, Pantaleoni and
   McAllister 2011; opened by area: Karras and Aila 2013, section 3.1)

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
    lbvh_i_radix(top->key, top->spare, top->count, &histogram);
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
        lbvh_i_widen(&around, &node[top->subtree[order[k]].node]);
        top->right[k] = lbvh_i_product(lbvh_i_area(dim, around.min, around.max), last - k + 1);
    }
    around = node[top->subtree[order[first]].node];
    for (k = first; k < last; k++) {
        int32_t const off = 2 * k + 1 - first - last, uneven = off < 0 ? -off : off;
        double cost;
        lbvh_i_widen(&around, &node[top->subtree[order[k]].node]);
        cost = lbvh_i_product(lbvh_i_area(dim, around.min, around.max), k - first + 1) +
               top->right[k + 1];
        if (!(cost < best->cost || (cost == best->cost && uneven < best->uneven))) continue;
        best->cost = cost;
        best->at = k + 1;
        best->uneven = uneven;
        best->axis = axis;
    }
    lbvh_i_widen(&around, &node[top->subtree[order[last]].node]);
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

/* ------------------------------------------------------------------------------------------------
   >>world-memory: arrays of a world, which grow and keep their content
   ---------------------------------------------------------------------------------------------- */

enum {
    LBVH_I_OBJECTS, LBVH_I_BOXES_OF, LBVH_I_CHANGED, LBVH_I_VACANT, LBVH_I_GATHERED,
    LBVH_I_GATHERED_INDEX, LBVH_I_FOUND, LBVH_I_MARK, LBVH_I_WAITING, LBVH_I_MET,
    LBVH_I_TREE_BLOCKS, /* node, parent, category; twice */
    LBVH_I_PAIRS = LBVH_I_TREE_BLOCKS + 6, LBVH_I_PAIR_DATA, LBVH_I_BEGUN,
    LBVH_I_ENDED,       /* with pair_bytes, the data of ended pairs follows their indices */
    LBVH_I_PIECES_OF    /* of an update in pieces */
};

enum { LBVH_I_LINE = 64 };      /* bytes of a cache line */

enum {
    LBVH_I_TOGETHER = 8,        /* searches that go through a tree together */
    LBVH_I_VISITS = 512         /* room for their visits, beside one for each object */
};

/* What lbvh_world_update has to do with an object. */
enum { LBVH_I_LEAF = 1, LBVH_I_SEARCH = 2, LBVH_I_GONE = 4, LBVH_I_REFILTER = 8, LBVH_I_STATE = 16,
       LBVH_I_LISTED = 32 };

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
        world->tree[t].node = lbvh_i_start_of_nodes(&b[LBVH_I_TREE_BLOCKS + 3 * t]);
        world->tree[t].parent = (int32_t *)(void *)lbvh_i_start(&b[LBVH_I_TREE_BLOCKS + 3 * t + 1]);
        world->tree[t].category =
            (uint64_t *)(void *)lbvh_i_start(&b[LBVH_I_TREE_BLOCKS + 3 * t + 2]);
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
        int const b = LBVH_I_TREE_BLOCKS + 3 * t, keep = world->tree[t].leaves > 0;
        if (!lbvh_i_extend(world, b, nodes, sizeof(lbvh_node), keep) ||
            !lbvh_i_extend(world, b + 1, nodes, sizeof(int32_t), keep) ||
            !lbvh_i_extend(world, b + 2, nodes, sizeof(uint64_t), keep))
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

/* Corrects the nodes from `at` up to the first one that was right. */
static void lbvh_i_refit_up(lbvh_world_tree *tree, int32_t at)
{
    for (; at >= 0; at = tree->parent[at]) {
        lbvh_node *node = &tree->node[at];
        int32_t const l = node->link, r = l + 1;
        uint64_t const category = tree->category[l] | tree->category[r];
        lbvh_node united = *node;
        lbvh_i_unite(&united, &tree->node[l], &tree->node[r]);
        if (category == tree->category[at] && lbvh_i_same_box(&united, node)) return;
        *node = united;
        tree->category[at] = category;
    }
}

/* Half the surface of the union of two boxes (2D: of the perimeter), with its edges. */
LBVH_FN_HOT lbvh_real lbvh_i_united_size(int dim, const lbvh_node *l, const lbvh_node *r)
{
#ifdef LBVH_I_SSE2
    /* min, link, max, skip: the fourth numbers are left out (as floats, many would be denormal) */
    const float *const a = (const float *)(const void *)l, *b = (const float *)(const void *)r;
    __m128 const three = _mm_castsi128_ps(_mm_set_epi32(0, -1, -1, -1)),
                 lower = _mm_and_ps(three, _mm_min_ps(_mm_loadu_ps(a), _mm_loadu_ps(b))),
                 upper = _mm_and_ps(three, _mm_max_ps(_mm_loadu_ps(a + 4), _mm_loadu_ps(b + 4))),
                 edge = _mm_sub_ps(upper, lower),
                 next = _mm_shuffle_ps(edge, edge, _MM_SHUFFLE(3, 0, 2, 1)), /* y z x */
                 side = dim == 2 ? edge : _mm_mul_ps(edge, next),
                 two = _mm_add_ss(side, _mm_shuffle_ps(side, side, 1));
    return _mm_cvtss_f32(dim == 2 ? two : _mm_add_ss(two, _mm_movehl_ps(side, side)));
#else
    lbvh_real const x = lbvh_i_max(l->max[0], r->max[0]) - lbvh_i_min(l->min[0], r->min[0]),
                    y = lbvh_i_max(l->max[1], r->max[1]) - lbvh_i_min(l->min[1], r->min[1]);
    lbvh_real z;
    if (dim == 2) return x + y;
    z = lbvh_i_max(l->max[2], r->max[2]) - lbvh_i_min(l->min[2], r->min[2]);
    return x * y + y * z + z * x;
#endif
}

/* The lowest node from `from` up that holds a new box, or else the root; the nodes above it take in
   its category. Their number is returned in *depth. From there a leaf that moves a little is put
   back in a few steps, in nodes that its removal has read (as btDbvt of Bullet does). */
static int32_t lbvh_i_climb(lbvh_world_tree *tree, int32_t from, const lbvh_node *box,
                            uint64_t category, int32_t *depth)
{
    int32_t at = from, up;
    while (at > 0 && !lbvh_i_holds(&tree->node[at], box)) at = tree->parent[at];
    *depth = 0;
    for (up = tree->parent[at]; up >= 0; up = tree->parent[up]) {
        tree->category[up] |= category;
        ++*depth;
    }
    return at;
}

/* The leaf below `at` beside which a new one enlarges the tree least: greedily. Every node on the
   way takes in the new box, and is counted in *depth. */
static int32_t lbvh_i_descend(lbvh_world_tree *tree, int dim, int32_t at, const lbvh_node *box,
                              uint64_t category, int32_t *depth)
{
    while (tree->node[at].link >= 0) {
        int32_t const l = tree->node[at].link;
        const lbvh_node *left = &tree->node[l], *right = left + 1;
        lbvh_real const in_left = lbvh_i_united_size(dim, left, box) -
                                  lbvh_i_united_size(dim, left, left),
                        in_right = lbvh_i_united_size(dim, right, box) -
                                   lbvh_i_united_size(dim, right, right);
        lbvh_i_unite(&tree->node[at], &tree->node[at], box);
        tree->category[at] |= category;
        at = in_left <= in_right ? l : l + 1;
        ++*depth;
    }
    return at;
}

/* Node `at`, whose box and skip are there, becomes the leaf of an object. */
static void lbvh_i_bind_leaf(lbvh_world *world, lbvh_world_tree *tree, int32_t at, int32_t index)
{
    lbvh_object *object = &world->object[index];
    tree->node[at].link = ~index;
    tree->category[at] = object->filter.category;
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

/* Adds the leaf of an object; `beside`: a node that is probably not far from it. */
static void lbvh_i_add_leaf(lbvh_world *world, lbvh_world_tree *tree, int32_t index, int32_t beside)
{
    lbvh_node const *box = lbvh_i_box_stored(world, index);
    uint64_t const category = world->object[index].filter.category;
    int32_t at, u, old, skip, depth;
    tree->changes++;
    if (tree->leaves++ == 0) {
        tree->used = 1;
        tree->unused = -1;
        tree->parent[0] = -1;
        lbvh_i_put_leaf(world, tree, 0, index, -1);
        return;
    }
    at = lbvh_i_climb(tree, beside, box, category, &depth);
    at = lbvh_i_descend(tree, world->desc.dim, at, box, category, &depth);
    if (depth + 2 > LBVH_STACK - 2) world->too_deep = 1;
    u = lbvh_i_take_two(tree);
    old = ~tree->node[at].link;
    skip = tree->node[at].skip;
    lbvh_i_put_leaf(world, tree, u, old, u + 1);
    lbvh_i_put_leaf(world, tree, u + 1, index, skip);
    /* the leaf split has its old stored box still, where that has changed meanwhile */
    lbvh_i_unite(&tree->node[u], &tree->node[at], &tree->node[at]);
    lbvh_i_unite(&tree->node[at], &tree->node[at], box);
    tree->category[u] = tree->category[at];
    tree->category[at] |= tree->category[u + 1];
    tree->node[at].link = u;
    tree->parent[u] = tree->parent[u + 1] = at;
}

/* Removes an object's leaf. The node where its sibling is now. */
static int32_t lbvh_i_drop_leaf(lbvh_world *world, int32_t index)
{
    lbvh_object *object = &world->object[index];
    lbvh_world_tree *tree = &world->tree[object->tree];
    int32_t const leaf = object->leaf;
    int32_t p, u, sibling, skip, at;
    object->leaf = -1;
    tree->changes++;
    if (--tree->leaves == 0) return 0;
    p = tree->parent[leaf];
    u = tree->node[p].link;
    sibling = u == leaf ? u + 1 : u;
    skip = tree->node[p].skip;
    tree->node[p] = tree->node[sibling];
    tree->category[p] = tree->category[sibling];
    if (tree->node[p].link < 0) world->object[~tree->node[p].link].leaf = p;
    else tree->parent[tree->node[p].link] = tree->parent[tree->node[p].link + 1] = p;
    for (at = p; tree->node[at].link >= 0; at = tree->node[at].link + 1)
        tree->node[at].skip = skip;
    tree->node[at].skip = skip;
    tree->node[u].link = tree->unused;
    tree->unused = u;
    lbvh_i_refit_up(tree, tree->parent[p]);
    return p;
}

/* Prefetches the object that lbvh_i_bind_leaf writes a few leaves after this one of scratch. */
LBVH_FN_HOT void lbvh_i_prefetch_bound(const lbvh_world *world, int32_t leaf)
{
    const lbvh *from = &world->scratch;
    int32_t const last = 2 * from->n - 2, coming = leaf + 8 < last ? leaf + 8 : last;
    LBVH_I_PREFETCH(&world->object[world->gathered_index[from->node[coming].link]].leaf);
}

/* The categories of inner nodes, whose children come after them, from those of leaves. */
static void lbvh_i_unite_categories(lbvh_world_tree *tree)
{
    int32_t at;
    for (at = tree->used - 1; at >= 0; at--) {
        int32_t const l = tree->node[at].link;
        if (l >= 0) tree->category[at] = tree->category[l] | tree->category[l + 1];
    }
}

/* The nodes of the built scratch tree, in depth-first order, siblings side by side. */
static void lbvh_i_copy_scratch(lbvh_world *world, lbvh_world_tree *tree)
{
    const lbvh *from = &world->scratch;
    int32_t waiting[2][LBVH_STACK + 1]; /* nodes of scratch, and where they go */
    int32_t top = 0, at;
    tree->leaves = from->n;
    tree->used = 1;
    tree->unused = -1;
    tree->changes = 0;
    tree->parent[0] = -1;
    waiting[0][top] = waiting[1][top] = 0;
    for (top = from->n > 0; top > 0;) {
        const lbvh_node *node = &from->node[waiting[0][--top]];
        int32_t const u = tree->used;
        at = waiting[1][top];
        tree->node[at] = *node;
        tree->node[at].skip = at == 0 ? -1 : at % 2 ? at + 1 : tree->node[tree->parent[at]].skip;
        if (lbvh_is_leaf(from, waiting[0][top])) {
            lbvh_i_prefetch_bound(world, waiting[0][top]);
            lbvh_i_bind_leaf(world, tree, at, world->gathered_index[node->link]);
            continue;
        }
        tree->used += 2;
        tree->node[at].link = u;
        tree->parent[u] = tree->parent[u + 1] = at;
        waiting[0][top] = lbvh_right_child(from, node);
        waiting[1][top++] = u + 1;
        waiting[0][top] = node->link;
        waiting[1][top++] = u;
    }
    if (from->n > 0) lbvh_i_unite_categories(tree);
}

static void lbvh_i_give_reason(lbvh_world *world, lbvh_reason reason)
{
    if (world->reason < reason) world->reason = reason;
}

/* The tree in which an object's leaf belongs: 0 moving, 1 at rest. */
static int lbvh_i_tree_wanted(const lbvh_object *object) { return object->wanted != LBVH_MOVING; }

/* Builds one tree again, of all objects that belong there. It cannot fail: the memory is reserved,
   the boxes were checked, and where a task is left out the build is repeated without tasks. */
static void lbvh_i_rebuild(lbvh_world *world, int t)
{
    lbvh_desc desc = world->scratch.desc;
    int const dim = world->desc.dim;
    int32_t index, n = 0;
    int a;
    desc.parallel = world->desc.parallel;
    for (index = 0; index < world->count; index++) {
        const lbvh_node *box = lbvh_i_box_stored(world, index);
        const lbvh_object *object = &world->object[index];
        lbvh_real *to = world->gathered + 2 * (size_t)dim * (size_t)n;
        if (!object->alive || lbvh_i_tree_wanted(object) != t) continue;
        for (a = 0; a < dim; a++) {
            to[a] = box->min[a];
            to[dim + a] = box->max[a];
        }
        world->gathered_index[n++] = index;
    }
    if (lbvh_build(&world->scratch, &desc, world->gathered, 0, n) != LBVH_OK) {
        world->not_run = 1;
        desc.parallel.run = NULL;
        (void)lbvh_build(&world->scratch, &desc, world->gathered, 0, n);
    }
    lbvh_i_copy_scratch(world, &world->tree[t]);
    lbvh_i_give_reason(world, LBVH_REBUILT);
}

/* ------------------------------------------------------------------------------------------------
   >>world-pairs: the lists of pairs. Entry 2 p + side is pair p in the list of its object[side].
   ---------------------------------------------------------------------------------------------- */

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
        if (met) world->mark[other] = 0;
        if (!own->alive ||
            (!met && !lbvh_i_nodes_touch(lbvh_i_box_stored(world, other), box)) ||
            ((own->changed & (LBVH_I_REFILTER | LBVH_I_STATE)) &&
             !lbvh_i_may_pair(own, &world->object[other])))
            lbvh_i_end_pair(world, p, &entry);
        else if (own->changed & LBVH_I_STATE) lbvh_i_sort_in(world, p, &entry);
    }
}

/* Prefetches what lbvh_i_review_pairs will read for these objects. A list is a chain of dependent
   loads: those of several objects are followed at the same time. (Inline: gcc 12 takes a function
   that only prefetches for one without effects, and leaves its calls out.) */
LBVH_FN_HOT void lbvh_i_prefetch_pairs(const lbvh_world *world, const int32_t *index,
                                       int32_t count)
{
    int32_t entry[LBVH_I_TOGETHER], k, step, left = count;
    for (k = 0; k < count; k++) entry[k] = world->object[index[k]].first_pair;
    for (step = 0; left > 0 && step < 2 * LBVH_I_TOGETHER; step++)
        for (left = k = 0; k < count; k++) {
            const lbvh_pair *pair;
            int32_t const side = entry[k] % 2;
            if (entry[k] < 0) continue;
            left++;
            pair = &world->pair[entry[k] / 2];
            LBVH_I_PREFETCH(lbvh_i_box_given(world, pair->object[1 - side]));
            entry[k] = pair->next[side];
            if (entry[k] >= 0) LBVH_I_PREFETCH(&world->pair[entry[k] / 2]);
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
    int32_t index[LBVH_I_TOGETHER];
    int32_t first[LBVH_I_TOGETHER + 1]; /* where in `found` what each one met begins */
    lbvh_i_wanted wanted[LBVH_I_TOGETHER];
    lbvh_visit *waiting, *visited;      /* [room] nodes to go into; objects met */
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
    int32_t const link = tree->node[at].link;
    int wants = lbvh_i_nodes_touch(&tree->node[at], &wanted->box);
    if (group->masked) wants &= (tree->category[at] & wanted->mask) != 0;
    visited->waiting->at = link;
    visited->met->at = ~link;
    visited->waiting->search = visited->met->search = s;
    visited->waiting += wants & (link >= 0);
    visited->met += wants & (link < 0);
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
    int32_t next[LBVH_I_TOGETHER], k, s, sum = 0;
    memset(next, 0, sizeof next);
    for (k = 0; k < group->met; k++) next[group->visited[k].search]++;
    for (s = 0; s < group->count; s++) {
        int32_t const count = next[s];
        group->first[s] = next[s] = sum;
        sum += count;
    }
    group->first[group->count] = sum;
    for (k = 0; k < group->met; k++) {
        LBVH_I_PREFETCH(&world->object[group->visited[k].at]);
        group->found[next[group->visited[k].search]++] = group->visited[k].at;
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

static double lbvh_i_magnitude(double most, lbvh_real x)
{
    double const size = x < 0 ? -(double)x : (double)x;
    return size > most ? size : most;
}

/* The sweep in units of the largest coordinate. Returns how often the vector goes into that unit: 0
   where all numbers are 0. */
static double lbvh_i_begin_sweep(lbvh_i_sweep *sweep, const lbvh_world_cast *cast,
                                 const lbvh_node *box)
{
    double unit = (double)cast->radius, longest = 0;
    int a;
    for (a = 0; a < 3; a++) {
        unit = lbvh_i_magnitude(lbvh_i_magnitude(unit, box->min[a]), box->max[a]);
        unit = lbvh_i_magnitude(lbvh_i_magnitude(unit, cast->end[0][a]), cast->end[1][a]);
        longest = lbvh_i_magnitude(longest, cast->vector[a]);
    }
    memset(sweep, 0, sizeof *sweep);
    if (unit == 0) return 0;
    for (a = 0; a < 3; a++) {
        sweep->low[a] = (double)box->min[a] / unit;
        sweep->high[a] = (double)box->max[a] / unit;
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

static lbvh_object *lbvh_i_object(const lbvh_world *world, lbvh_id id)
{
    uint64_t const index = id & 0xFFFFFFFFu;
    if (!world || id >> 32 == 0 || index >= (uint64_t)world->count) return NULL;
    if ((uint32_t)world->box[2 * index + 1].link != (uint32_t)(id >> 32)) return NULL;
    return &world->object[index];
}

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

/* The box to store: larger by the margin, longer along the displacement. */
static lbvh_result lbvh_i_store_box(const lbvh_world *world, const lbvh_node *box,
                                    const lbvh_real *displacement, lbvh_node *stored)
{
    int a;
    *stored = *box;
    for (a = 0; a < world->desc.dim; a++) {
        lbvh_real const along = displacement ? displacement[a] : 0,
                        more = world->desc.margin +
                               world->desc.margin_part * (box->max[a] - box->min[a]);
        stored->min[a] -= more;
        stored->max[a] += more;
        if (along < 0) stored->min[a] += along;
        else stored->max[a] += along;
        if (!lbvh_i_finite(stored->min[a]) || !lbvh_i_finite(stored->max[a]))
            return LBVH_NOT_FINITE;
    }
    return LBVH_OK;
}

static lbvh_filter lbvh_i_resolve_filter(const lbvh_filter *filter)
{
    lbvh_filter given = lbvh_i_all();
    if (!filter) return given;
    if (filter->category) given.category = filter->category;
    if (filter->mask) given.mask = filter->mask;
    given.group = filter->group;
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

/* A new object at an index, with its boxes, in which further numbers lie (lbvh_world.box). */
static void lbvh_i_put_object(lbvh_world *world, int32_t index, lbvh_node given, lbvh_node stored,
                              const lbvh_filter *filter, lbvh_state state, uint64_t user)
{
    lbvh_object *object = &world->object[index];
    given.link = (int32_t)(uint32_t)(user >> 32);
    given.skip = (int32_t)(uint32_t)user;
    stored.link = (int32_t)object->generation;
    stored.skip = 0;
    *lbvh_i_box_given(world, index) = given;
    *lbvh_i_box_stored(world, index) = stored;
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
    lbvh_i_put_object(world, index, given, stored, filter, state, user);
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

/* If the stored box of `given` holds the caller's box, that becomes the given one, with -0 as 0.
   What is within a stored box is finite. In 2D the last axis is the second one, again. */
LBVH_FN_HOT int lbvh_i_stay_within(lbvh_node *given, int dim, const lbvh_real *box)
{
#ifdef LBVH_I_SSE2
    /* min, link, max, skip: the fourth numbers do not count, and stay */
    float *const at = (float *)(void *)given, *const stored = at + 8;
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
    const lbvh_node *const stored = given + 1;
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

LBVH_API int lbvh_world_stay(lbvh_world *world, lbvh_id id, const lbvh_real *box)
{
    const lbvh_object *const object = box ? lbvh_i_object(world, id) : NULL;
    if (!object) return 0;
    if (lbvh_i_stay_within(world->box + 2 * (id & 0xFFFFFFFFu), world->desc.dim, box)) return 1;
    LBVH_I_PREFETCH(&object->changed); /* lbvh_world_move comes next */
    return 0;
}

LBVH_API lbvh_result lbvh_world_move(lbvh_world *world, lbvh_id id, const lbvh_real *box,
                                     const lbvh_real *displacement)
{
    const lbvh_object *object = lbvh_i_object(world, id);
    lbvh_node given, stored, *boxes;
    lbvh_result result;
    if (!world || !box) return LBVH_BAD_ARGUMENT;
    if (!object) return LBVH_BAD_ID;
    boxes = world->box + 2 * (id & 0xFFFFFFFFu);
    result = lbvh_i_read_box(world, box, &given);
    if (result != LBVH_OK) return result;
    if (!lbvh_i_holds(&boxes[1], &given)) {
        result = lbvh_i_store_box(world, &given, displacement, &stored);
        if (result != LBVH_OK) return result;
        lbvh_i_set_box(&boxes[1], &stored);
        lbvh_i_note_change(world, (int32_t)(object - world->object), LBVH_I_LEAF | LBVH_I_SEARCH);
    }
    lbvh_i_set_box(&boxes[0], &given);
    return LBVH_OK;
}

LBVH_API lbvh_result lbvh_world_remove(lbvh_world *world, lbvh_id id)
{
    lbvh_object *object = lbvh_i_object(world, id);
    if (!world) return LBVH_BAD_ARGUMENT;
    if (!object) return LBVH_BAD_ID;
    object->alive = 0;
    lbvh_i_box_stored(world, (int32_t)(object - world->object))->link = 0;
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

LBVH_API int32_t lbvh_world_find_pair(const lbvh_world *world, int32_t a, int32_t b)
{
    int32_t entry;
    if (!world || a < 0 || a >= world->count) return -1;
    entry = world->object[a].first_pair;
    while (entry >= 0 && world->pair[entry / 2].object[1 - entry % 2] != b)
        entry = world->pair[entry / 2].next[entry % 2];
    return entry < 0 ? -1 : entry / 2;
}

/* ------------------------------------------------------------------------------------------------
   >>world-update: the trees first, by the cheaper way; then, for each changed object, the pairs
   that end and those that begin
   ---------------------------------------------------------------------------------------------- */

enum { LBVH_I_UNSORTED = 256 };     /* so few changes are taken in as they came */

/* The leaf of a changed object: dropped, added, moved to the other tree, or refitted in its place,
   where the new box touches the parent's. */
static void lbvh_i_place_leaf(lbvh_world *world, int32_t index)
{
    lbvh_object *object = &world->object[index];
    lbvh_world_tree *tree = &world->tree[object->tree],
                    *target = &world->tree[lbvh_i_tree_wanted(object)];
    lbvh_node const *box = lbvh_i_box_stored(world, index);
    int32_t const leaf = object->leaf;
    int32_t beside = 0;
    if (object->alive && leaf >= 0 && tree == target &&
        (leaf == 0 || lbvh_i_nodes_touch(&tree->node[leaf], box))) {
        lbvh_i_put_leaf(world, tree, leaf, index, tree->node[leaf].skip);
        lbvh_i_refit_up(tree, tree->parent[leaf]);
        tree->changes++;
        lbvh_i_give_reason(world, LBVH_REFIT);
        return;
    }
    if (leaf >= 0) beside = lbvh_i_drop_leaf(world, index);
    if (object->alive) lbvh_i_add_leaf(world, target, index, tree == target ? beside : 0);
    lbvh_i_give_reason(world, LBVH_REPLACED);
}

/* Leaves that changes take out of, put into, or refit in a tree: their number. */
static void lbvh_i_count_changes(const lbvh_world *world, int32_t changes[2], int32_t members[2])
{
    int32_t k;
    int t;
    for (t = 0; t < 2; t++) {
        changes[t] = 0;
        members[t] = world->tree[t].leaves;
    }
    for (k = 0; k < world->changed_count; k++) {
        const lbvh_object *object = &world->object[world->changed[k]];
        int const to = lbvh_i_tree_wanted(object);
        if (!(object->changed & (LBVH_I_LEAF | LBVH_I_GONE))) continue;
        if (object->leaf >= 0) changes[object->tree]++;
        if (object->leaf >= 0) members[object->tree]--;
        if (!object->alive) continue;
        members[to]++;
        if (object->leaf < 0 || object->tree != to) changes[to]++;
    }
}

/* Prefetches what lbvh_i_place_leaf will read for the changes after the k-th. */
LBVH_FN_HOT void lbvh_i_prefetch_leaves(const lbvh_world *world, int32_t k)
{
    int32_t const last = world->changed_count - 1, later = k + 8 < last ? k + 8 : last,
                  soon = k + 4 < last ? k + 4 : last;
    const lbvh_object *object = &world->object[world->changed[soon]];
    int32_t const leaf = object->leaf < 0 ? 0 : object->leaf;
    LBVH_I_PREFETCH(lbvh_i_box_given(world, world->changed[later]));
    LBVH_I_PREFETCH(&world->tree[object->tree].node[leaf]);
    LBVH_I_PREFETCH(&world->tree[object->tree].parent[leaf]);
}

/* All leaves of changed objects, except those of trees that are rebuilt next, which are
   forgotten. */
static void lbvh_i_place_leaves(lbvh_world *world, const int rebuild[2])
{
    int32_t k;
    for (k = 0; k < world->changed_count; k++) {
        int32_t const index = world->changed[k];
        lbvh_object *object = &world->object[index];
        int const stays = object->alive && !rebuild[lbvh_i_tree_wanted(object)];
        lbvh_i_prefetch_leaves(world, k);
        if (!(object->changed & (LBVH_I_LEAF | LBVH_I_GONE))) continue;
        if (object->leaf >= 0 && rebuild[object->tree]) object->leaf = -1;
        if (stays) lbvh_i_place_leaf(world, index);
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
    int32_t changes[2], members[2], k;
    int rebuild[2], t;
    lbvh_i_count_changes(world, changes, members);
    for (t = 0; t < 2; t++)
        rebuild[t] = changes[t] > 0 &&
                     ((int64_t)changes[t] * 4 > members[t] ||
                      ((int64_t)world->tree[t].changes + changes[t]) > members[t]);
    world->too_deep = 0;
    lbvh_i_place_leaves(world, rebuild);
    for (t = 0; t < 2; t++)
        if (rebuild[t] || world->too_deep) lbvh_i_rebuild(world, t);
    for (k = 0; k < world->changed_count; k++) {
        lbvh_object *object = &world->object[world->changed[k]];
        object->state = object->wanted;
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
    for (k = 0; *fits && k < count; k++) world->mark[found[k]] = world->token;
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
    return left < LBVH_I_TOGETHER ? left : (int32_t)LBVH_I_TOGETHER;
}

/* Those of up to LBVH_I_TOGETHER objects that search. */
static void lbvh_i_begin_group(const lbvh_world *world, lbvh_i_group *group, const int32_t *index,
                               int32_t count, int later)
{
    int32_t k;
    group->later = later;
    group->count = 0;
    for (k = 0; k < count; k++)
        if (lbvh_i_searches(&world->object[index[k]])) group->index[group->count++] = index[k];
}

/* The pairs of up to LBVH_I_TOGETHER changed objects. */
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
    if (*fits && lbvh_i_world_pieces(world, n) > 1 &&
        lbvh_i_update_pairs_in_pieces(world, index, n, later, fits))
        return;
    for (k = 0; k < n; k += LBVH_I_TOGETHER)
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

/* Removed objects give their indices back; those that have to search again stay listed. */
static void lbvh_i_end_changes(lbvh_world *world)
{
    int32_t k, kept = 0;
    for (k = 0; k < world->changed_count; k++) {
        int32_t const index = world->changed[k];
        lbvh_object *object = &world->object[index];
        int const search = lbvh_i_searches(object);
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
    lbvh_i_end_changes(world);
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
    if (!object || object->leaf != at || object->tree != t) return 0;
    return object->changed || (object->alive && object->state == object->wanted &&
                               (object->state != LBVH_MOVING) == t &&
                               world->tree[t].category[at] == object->filter.category &&
                               lbvh_i_same_box(&world->tree[t].node[at],
                                               lbvh_i_box_stored(world, index)));
}

/* Links, skips, boxes and categories of a node with its two children. */
static int lbvh_i_world_inner_valid(const lbvh_world_tree *tree, int32_t at)
{
    const lbvh_node *node = &tree->node[at];
    int32_t const l = node->link;
    lbvh_node united = *node;
    if (l % 2 == 0 || l + 1 >= tree->used) return 0;
    lbvh_i_unite(&united, &tree->node[l], &tree->node[l + 1]);
    return tree->parent[l] == at && tree->parent[l + 1] == at && tree->node[l].skip == l + 1 &&
           tree->node[l + 1].skip == node->skip && lbvh_i_same_box(&united, node) &&
           tree->category[at] == (tree->category[l] | tree->category[l + 1]);
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
   >>parallel-run: work in pieces, each of which is a task of desc.parallel.run (>>parallel)

   A piece is a range of searches, elements or places, and no two pieces write to the same number.
   What must be joined is joined by the calling thread, in the order of the pieces.
   ---------------------------------------------------------------------------------------------- */

/* The fewest searches for which a task is worth its start: some tenths of a millisecond. */
#ifndef LBVH_I_PIECE
#define LBVH_I_PIECE 2048
#endif
enum { LBVH_I_MOST_PIECES = 256 };

/* Into how many pieces work on n elements is cut. */
static int32_t lbvh_i_pieces_of(const lbvh_parallel *parallel, int32_t n, int32_t fewest,
                                int32_t most)
{
    int32_t const worth = n / fewest;
    if (parallel->tasks < most) most = parallel->tasks;
    if (!parallel->run || most < 2 || worth < 2) return 1;
    return worth < most ? worth : most;
}

static int32_t lbvh_i_search_pieces(const lbvh *tree, int32_t searches)
{
    return tree->n == 0 ? 1 : lbvh_i_pieces_of(&tree->desc.parallel, searches, LBVH_I_PIECE,
                                               LBVH_I_MOST_PIECES);
}

/* Where piece k of n elements begins, and piece k - 1 ends. */
static int64_t lbvh_i_cut(int64_t n, int32_t pieces, int32_t k)
{
    return n / pieces * k + n % pieces * k / pieces;
}

/* A piece sets its byte when it is done. */
typedef struct lbvh_i_job {
    lbvh_task *work;
    void *context;
    unsigned char done[LBVH_I_MOST_PIECES];
} lbvh_i_job;

static void lbvh_i_do_piece(void *context, int32_t k)
{
    lbvh_i_job *job = (lbvh_i_job *)context;
    job->work(job->context, k);
    job->done[k] = 1;
}

/* work(context, k) for every piece k. */
static lbvh_result lbvh_i_in_pieces(const lbvh_parallel *parallel, int32_t pieces, lbvh_task *work,
                                    void *context)
{
    lbvh_i_job job;
    int32_t k;
    job.work = work;
    job.context = context;
    memset(job.done, 0, sizeof job.done);
    parallel->run(lbvh_i_do_piece, &job, pieces, parallel->user);
    for (k = 0; k < pieces; k++) if (!job.done[k]) return LBVH_NOT_RUN;
    return LBVH_OK;
}

/* ------------------------------------------------------------------------------------------------
   >>parallel-search: pieces of the searches, by place or by the caller's order

   A list is made in one pass, though no piece knows how many entries come before its own. Each
   writes to a room of its own in the caller's array:

       rooms     |0 0 0 0 . .|1 1 1 1 1 1|2 2 . . . .|      piece 1 has two entries more than room
       moved     |0 0 0 0|1 1 1 1 1 1 ~ ~|2 2|              then each is moved to its end, and
                                                            searches without room are repeated
   ---------------------------------------------------------------------------------------------- */

typedef struct lbvh_i_piece_of_list {
    int32_t whole;              /* all entries of the searches before it have been written */
    int64_t written;            /* entries of the piece that have been written */
    int64_t found;              /* entries of the piece */
    int64_t start;              /* entries of the pieces before it */
} lbvh_i_piece_of_list;

typedef struct lbvh_i_search_job {
    lbvh_i_lists lists;
    int32_t n, pieces, width;   /* searches; numbers of an entry */
    lbvh_i_piece_of_list piece[LBVH_I_MOST_PIECES];
} lbvh_i_search_job;

static void lbvh_i_begin_search(lbvh_i_search_job *job, const lbvh_i_lists *lists)
{
    memset(job, 0, sizeof *job);
    job->lists = *lists;
    job->n = lists->queries ? lists->queries->n : lists->tree->n;
    job->pieces = lbvh_i_search_pieces(lists->tree, job->n);
    job->width = lists->queries ? 1 : 2;
}

static lbvh_result lbvh_i_search_in_pieces(lbvh_i_search_job *job, lbvh_task *work)
{
    return lbvh_i_in_pieces(&job->lists.tree->desc.parallel, job->pieces, work, job);
}

/* The first search of piece k. */
static int32_t lbvh_i_first_search(const lbvh_i_search_job *job, int32_t k)
{
    return (int32_t)lbvh_i_cut(job->n, job->pieces, k);
}

static void lbvh_i_count_piece(void *context, int32_t k)
{
    lbvh_i_search_job *job = (lbvh_i_search_job *)context;
    lbvh_i_count_rows(&job->lists, lbvh_i_first_search(job, k), lbvh_i_first_search(job, k + 1));
}

static lbvh_result lbvh_i_counts_in_pieces(const lbvh_i_lists *lists)
{
    lbvh_i_search_job job;
    lbvh_result result;
    lbvh_i_begin_search(&job, lists);
    result = lbvh_i_search_in_pieces(&job, lbvh_i_count_piece);
    if (result != LBVH_OK) memset(lists->counts, 0, (size_t)job.n * sizeof *lists->counts);
    return result;
}

/* Rows of the searches first .. end-1, from entry `found` on, up to `capacity`. `*piece`: entries
   found, and up to where whole rows were written, counted from entry 0. */
static void lbvh_i_list_rows(const lbvh_i_lists *lists, lbvh_i_piece_of_list *piece, int64_t found,
                             int64_t capacity, int32_t first, int32_t end)
{
    piece->found = lbvh_i_own(lists->queries)
                       ? lbvh_i_fill_by_place(lists, found, capacity, first, end)
                       : lbvh_i_fill_at(lists, found, capacity, first, end);
    piece->written = piece->found;
    for (piece->whole = end; piece->written > capacity && piece->whole > first;)
        piece->written = lists->offsets[--piece->whole];
}

/* The same for pairs of the places first .. end-1. */
static void lbvh_i_list_pairs(const lbvh_i_lists *lists, lbvh_i_piece_of_list *piece,
                              int64_t found, int64_t capacity, int32_t first, int32_t end)
{
    lbvh_i_taker taker;
    memset(&taker, 0, sizeof taker);
    taker.pairs = lists->ids;
    taker.capacity = capacity;
    taker.found = found;
    (void)lbvh_i_take_pairs(lists->tree, &taker, first, end);
    piece->found = taker.found;
    piece->whole = taker.whole;
    piece->written = taker.written;
}

/* The list of either; found and written are then those of this range. */
static void lbvh_i_list_range(const lbvh_i_lists *lists, lbvh_i_piece_of_list *piece,
                              int64_t found, int64_t capacity, int32_t first, int32_t end)
{
    if (lists->queries) lbvh_i_list_rows(lists, piece, found, capacity, first, end);
    else lbvh_i_list_pairs(lists, piece, found, capacity, first, end);
    piece->found -= found;
    piece->written -= found;
}

/* The first entry of the room of piece k. */
static int64_t lbvh_i_room_of(const lbvh_i_search_job *job, int32_t k)
{
    return lbvh_i_cut(job->lists.capacity, job->pieces, k);
}

/* Into the room of the piece. */
static void lbvh_i_list_piece(void *context, int32_t k)
{
    lbvh_i_search_job *job = (lbvh_i_search_job *)context;
    lbvh_i_list_range(&job->lists, &job->piece[k], lbvh_i_room_of(job, k),
                      lbvh_i_room_of(job, k + 1), lbvh_i_first_search(job, k),
                      lbvh_i_first_search(job, k + 1));
}

/* Moves what piece k has written from its room to where it belongs. */
static void lbvh_i_move_piece(const lbvh_i_search_job *job, int32_t k)
{
    const lbvh_i_piece_of_list *piece = &job->piece[k];
    int64_t const room = lbvh_i_room_of(job, k), left = job->lists.capacity - piece->start,
                  moving = piece->written < left ? piece->written : left;
    int32_t *const ids = job->lists.ids;
    if (moving > 0 && room != piece->start)
        memmove(ids + piece->start * job->width, ids + room * job->width,
                (size_t)moving * (size_t)job->width * sizeof *ids);
}

/* Towards the front in ascending order, then towards the end in descending order: nothing is
   overwritten before it has moved. Returns the number of all entries. */
static int64_t lbvh_i_move_pieces(lbvh_i_search_job *job)
{
    int64_t sum = 0;
    int32_t k;
    for (k = 0; k < job->pieces; k++) {
        job->piece[k].start = sum;
        sum += job->piece[k].found;
        if (job->piece[k].start < lbvh_i_room_of(job, k)) lbvh_i_move_piece(job, k);
    }
    for (k = job->pieces; k-- > 0;)
        if (job->piece[k].start > lbvh_i_room_of(job, k)) lbvh_i_move_piece(job, k);
    return sum;
}

/* The offsets of what was moved, and the list of the searches that had no room. */
static void lbvh_i_finish_piece(void *context, int32_t k)
{
    lbvh_i_search_job *job = (lbvh_i_search_job *)context;
    const lbvh_i_lists *lists = &job->lists;
    lbvh_i_piece_of_list const piece = job->piece[k];
    lbvh_i_piece_of_list rest;
    int64_t const shift = piece.start - lbvh_i_room_of(job, k);
    int32_t const end = lbvh_i_first_search(job, k + 1);
    int32_t q;
    for (q = lbvh_i_first_search(job, k); q < piece.whole && lists->queries; q++)
        lists->offsets[q] += shift;
    if (piece.whole < end && (lists->queries || piece.start + piece.written < lists->capacity))
        lbvh_i_list_range(lists, &rest, piece.start + piece.written, lists->capacity, piece.whole,
                          end);
}

/* The list, without the last offset. */
static lbvh_result lbvh_i_list_in_pieces(lbvh_i_search_job *job, int64_t *needed)
{
    lbvh_result result = lbvh_i_search_in_pieces(job, lbvh_i_list_piece);
    *needed = 0;
    if (result != LBVH_OK) return result;
    *needed = lbvh_i_move_pieces(job);
    result = lbvh_i_search_in_pieces(job, lbvh_i_finish_piece);
    if (result != LBVH_OK) *needed = 0;
    return result;
}

static void lbvh_i_count_pairs_piece(void *context, int32_t k)
{
    lbvh_i_search_job *job = (lbvh_i_search_job *)context;
    lbvh_i_taker taker;
    memset(&taker, 0, sizeof taker);
    (void)lbvh_i_take_pairs(job->lists.tree, &taker, lbvh_i_first_search(job, k),
                            lbvh_i_first_search(job, k + 1));
    job->piece[k].found = taker.found;
}

static lbvh_result lbvh_i_count_pairs_in_pieces(const lbvh *tree, int64_t *pairs)
{
    lbvh_i_lists const lists = lbvh_i_lists_of(tree, NULL);
    lbvh_i_search_job job;
    lbvh_result result;
    int32_t k;
    lbvh_i_begin_search(&job, &lists);
    *pairs = 0;
    result = lbvh_i_search_in_pieces(&job, lbvh_i_count_pairs_piece);
    for (k = 0; k < job.pieces && result == LBVH_OK; k++) *pairs += job.piece[k].found;
    return result;
}

static lbvh_result lbvh_i_pairs_in_pieces(const lbvh *tree, int32_t *pairs, int64_t capacity,
                                          int64_t *needed)
{
    lbvh_i_lists lists = lbvh_i_lists_of(tree, NULL);
    lbvh_i_search_job job;
    lbvh_result result;
    if (capacity == 0) {
        result = lbvh_i_count_pairs_in_pieces(tree, needed);
        return result == LBVH_OK && *needed > 0 ? LBVH_BUFFER_TOO_SMALL : result;
    }
    lists.ids = pairs;
    lists.capacity = capacity;
    lbvh_i_begin_search(&job, &lists);
    result = lbvh_i_list_in_pieces(&job, needed);
    return result == LBVH_OK && *needed > capacity ? LBVH_BUFFER_TOO_SMALL : result;
}

static void lbvh_i_fill_piece(void *context, int32_t k)
{
    lbvh_i_search_job *job = (lbvh_i_search_job *)context;
    lbvh_i_fill_rows(&job->lists, lbvh_i_first_search(job, k), lbvh_i_first_search(job, k + 1));
}

/* Own elements, rows by id: count, prefix sum, fill. */
static lbvh_result lbvh_i_fill_by_id_in_pieces(lbvh_i_search_job *job, int64_t *needed)
{
    lbvh_result const result = lbvh_i_search_in_pieces(job, lbvh_i_count_piece);
    if (result != LBVH_OK) return result;
    *needed = lbvh_i_sum_offsets(job->lists.offsets, job->n);
    return job->lists.capacity > 0 ? lbvh_i_search_in_pieces(job, lbvh_i_fill_piece) : LBVH_OK;
}

static lbvh_result lbvh_i_lists_in_pieces(const lbvh_i_lists *lists, int64_t *needed)
{
    const lbvh_queries *queries = lists->queries;
    lbvh_i_search_job job;
    lbvh_result result;
    lbvh_i_begin_search(&job, lists);
    result = lbvh_i_own(queries) && !(queries->flags & LBVH_PLACES)
                 ? lbvh_i_fill_by_id_in_pieces(&job, needed)
                 : lbvh_i_list_in_pieces(&job, needed);
    if (result != LBVH_OK) {
        memset(lists->offsets, 0, ((size_t)queries->n + 1) * sizeof *lists->offsets);
        *needed = 0;
        return result;
    }
    lists->offsets[queries->n] = *needed;
    return *needed > lists->capacity ? LBVH_BUFFER_TOO_SMALL : LBVH_OK;
}

/* ------------------------------------------------------------------------------------------------
   >>nearest-rows: the nearest elements of many points

   Points are taken in Morton order: a search then finds in the cache what the one before has read.
   Each piece sorts its own points, by keys that hold both:

       key    bits 63 .. 32: the upper bits of the Morton code      bits 31 .. 0: the point
   ---------------------------------------------------------------------------------------------- */

typedef struct lbvh_i_rows_job {
    const lbvh *tree;
    const lbvh_real *points;
    size_t stride;
    int32_t m, k, pieces, *ids, *found;
    lbvh_real reach, *distances2;
    uint64_t *key;                  /* [2 m] a half to sort into; NULL: points as they come */
} lbvh_i_rows_job;

static uint64_t lbvh_i_point_key(const lbvh_i_rows_job *job, int32_t q)
{
    const lbvh *tree = job->tree;
    int const bits = lbvh_i_code_bits(&tree->desc), dim = tree->desc.dim;
    lbvh_real at[3];
    uint64_t code;
    (void)lbvh_i_read_point(dim, lbvh_i_at(job->points, job->stride, q), at);
    code = lbvh_i_code(&tree->lattice, dim, tree->desc.bits, at, at);
    return (bits > 32 ? code >> (bits - 32) : code) << 32 | (uint32_t)q;
}

/* Row q without its last `left` neighbours. */
static void lbvh_i_end_row(const lbvh_i_rows_job *job, int32_t q, int32_t left)
{
    size_t const end = ((size_t)q + 1) * (size_t)job->k;
    size_t e;
    for (e = end - (size_t)left; e < end; e++) {
        job->ids[e] = -1;
        job->distances2[e] = lbvh_i_infinity();
    }
    job->found[q] = job->k - left;
}

static void lbvh_i_find_row(const lbvh_i_rows_job *job, int32_t q)
{
    size_t const row = (size_t)q * (size_t)job->k;
    int32_t found = 0;
    if (job->k > 0) /* all else that it could refuse was checked */
        (void)lbvh_nearest(job->tree, lbvh_i_at(job->points, job->stride, q), job->k, job->reach,
                           NULL, NULL, job->ids + row, job->distances2 + row, &found);
    lbvh_i_end_row(job, q, job->k - found);
}

/* The points begin .. end-1 in Morton order. */
static const uint64_t *lbvh_i_order_points(const lbvh_i_rows_job *job, int32_t begin, int32_t end)
{
    uint64_t *const key = job->key + begin;
    lbvh_i_histogram histogram;
    int32_t q;
    memset(&histogram, 0, sizeof histogram);
    for (q = 0; q < end - begin; q++) {
        key[q] = lbvh_i_point_key(job, begin + q);
        lbvh_i_count_digits(&histogram, (uint32_t)(key[q] >> 32));
    }
    lbvh_i_radix(key, key + job->m, end - begin, &histogram);
    return key;
}

static void lbvh_i_rows_piece(void *context, int32_t piece)
{
    const lbvh_i_rows_job *job = (const lbvh_i_rows_job *)context;
    int32_t const begin = (int32_t)lbvh_i_cut(job->m, job->pieces, piece),
                  end = (int32_t)lbvh_i_cut(job->m, job->pieces, piece + 1);
    const uint64_t *key = job->key ? lbvh_i_order_points(job, begin, end) : NULL;
    int32_t q;
    for (q = begin; q < end; q++)
        lbvh_i_find_row(job, key ? lbvh_i_key_id(key[q - begin]) : q);
}

static lbvh_result lbvh_i_check_rows(const lbvh_i_rows_job *job, int flags)
{
    int const points = job->m > 0, neighbours = points && job->k > 0;
    if (job->m < 0 || job->k < 0) return LBVH_BAD_ARGUMENT;
    if (points && (!job->points || !job->found)) return LBVH_BAD_ARGUMENT;
    if (neighbours && (!job->ids || !job->distances2)) return LBVH_BAD_ARGUMENT;
    if (flags & ~(int)LBVH_SORTED) return LBVH_BAD_OPTION;
    if (!(job->reach >= 0)) return LBVH_BAD_RADIUS;
    if (!job->tree->built) return LBVH_NOT_BUILT;
    return job->stride ? LBVH_OK : LBVH_BAD_ARGUMENT;
}

/* Memory for the keys of m points; none, where there is nothing to sort, or no memory. */
static lbvh_block lbvh_i_take_keys(const lbvh *tree, int32_t m, int flags)
{
    size_t const each = 2 * sizeof(uint64_t), bytes = each * (size_t)m;
    lbvh_block none;
    memset(&none, 0, sizeof none);
    if (m < 2 || flags || bytes / each != (size_t)m) return none;
    return lbvh_i_take_block(&tree->desc.allocator, bytes);
}

LBVH_API lbvh_result lbvh_nearest_rows(const lbvh *tree, const lbvh_real *points, size_t stride,
                                       int32_t m, int32_t k, lbvh_real reach, int flags,
                                       int32_t *ids, lbvh_real *distances2, int32_t *found)
{
    lbvh_result result;
    lbvh_i_rows_job job;
    lbvh_block keys;
    int32_t q;
    if (!tree) return LBVH_BAD_ARGUMENT;
    job.tree = tree;
    job.points = points;
    job.stride = lbvh_i_stride_of(tree->desc.dim, stride);
    job.m = m;
    job.k = k;
    job.ids = ids;
    job.found = found;
    job.reach = reach;
    job.distances2 = distances2;
    result = lbvh_i_check_rows(&job, flags);
    if (result != LBVH_OK) return result;
    job.pieces = lbvh_i_search_pieces(tree, m);
    keys = lbvh_i_take_keys(tree, m, flags);
    job.key = (uint64_t *)keys.memory;
    if (job.pieces == 1) lbvh_i_rows_piece(&job, 0);
    else result = lbvh_i_in_pieces(&tree->desc.parallel, job.pieces, lbvh_i_rows_piece, &job);
    for (q = 0; q < m && result != LBVH_OK; q++) lbvh_i_end_row(&job, q, k);
    if (keys.memory) lbvh_i_release(&tree->desc.allocator, &keys);
    return result;
}

/* ------------------------------------------------------------------------------------------------
   >>parallel-build: the same tree in pieces

       measure   piece of elements   bounds of the half centres, the first invalid element
       keys      piece of elements   keys and low bits
       count     piece of keys       how often it has each digit; four times with
       deal      piece of keys       each key to its place among equal digits of the pieces before
       low       piece of places     keys with equal upper bits, none of which two pieces share
       prefixes  piece of places     } PLOC: the clusters of the subtrees within the piece; those
       clusters  piece of places     } that are left are joined, and the places numbered, after
       leaves    piece of places     prefixes and leaves
       merge     piece of places     subtrees within the piece; those that are left are merged after

   Counts of digits, then clusters that are left, lie behind the keys, where leaves will be
   (>>sort): 1024 bytes for each piece, or 36 for each place, which has 44 there (double: 64 of
   104).
   ---------------------------------------------------------------------------------------------- */

enum { LBVH_I_BUILD_TASKS = 64, LBVH_I_LIGHT = 8 };

/* Building costs less for each element than searching. */
static int32_t lbvh_i_build_pieces(const lbvh *tree, int32_t n)
{
    int32_t const fewest = LBVH_I_LIGHT * LBVH_I_PIECE;
    return lbvh_i_pieces_of(&tree->desc.parallel, n, fewest < 32 ? 32 : fewest, LBVH_I_BUILD_TASKS);
}

/* What a piece found out about its elements. */
typedef struct lbvh_i_centres {
    lbvh_real least[3], most[3];
    lbvh_result result;
    int32_t bad_id;
} lbvh_i_centres;

/* A cluster that a piece leaves: of a subtree whose parent is not within the piece. */
typedef struct lbvh_i_left_cluster {
    lbvh_real min[3], max[3];
    int32_t node, first;
    int32_t last;               /* the last place of that subtree */
} lbvh_i_left_cluster;

typedef struct lbvh_i_build_job {
    lbvh *tree;
    const lbvh_real *data;
    size_t stride;
    int32_t n, pieces, pass;
    int rotates;                /* 1: a pass of rotations; 0: a merge */
    lbvh_i_keys keys;
    int32_t *counts;            /* [pieces][256] */
    lbvh_i_left_cluster *cluster; /* [n] in the same memory; a piece's from its first place on */
    int32_t left[LBVH_I_BUILD_TASKS]; /* of each piece: its clusters, or its rotations */
    int32_t cut[LBVH_I_BUILD_TASKS + 1]; /* of the places, for low */
    union {
        lbvh_i_centres centres[LBVH_I_BUILD_TASKS];
        lbvh_i_roots roots[LBVH_I_BUILD_TASKS];
    } of;
} lbvh_i_build_job;

static void lbvh_i_begin_build(lbvh_i_build_job *job, lbvh *tree, const lbvh_real *data,
                               size_t stride, int32_t n)
{
    job->tree = tree;
    job->data = data;
    job->stride = stride;
    job->n = n;
    job->pieces = lbvh_i_build_pieces(tree, n);
    job->rotates = 0;
}

static int32_t lbvh_i_first_of(const lbvh_i_build_job *job, int32_t k)
{
    return (int32_t)lbvh_i_cut(job->n, job->pieces, k);
}

static void lbvh_i_measure_piece(void *context, int32_t k)
{
    lbvh_i_build_job *job = (lbvh_i_build_job *)context;
    lbvh_i_centres *own = &job->of.centres[k];
    lbvh tree = *job->tree;
    tree.bad_id = -1;
    own->result = lbvh_i_measure_centres(&tree, job->data, job->stride, lbvh_i_first_of(job, k),
                                         lbvh_i_first_of(job, k + 1), own->least, own->most);
    own->bad_id = tree.bad_id;
}

/* Joins what the pieces measured, up to the first that refuses. */
static lbvh_result lbvh_i_join_centres(lbvh_i_build_job *job)
{
    lbvh_i_centres *all = &job->of.centres[0];
    int32_t k;
    int a;
    for (k = 0; k < job->pieces; k++) {
        const lbvh_i_centres *own = &job->of.centres[k];
        if (job->tree->bad_id < 0) job->tree->bad_id = own->bad_id;
        if (own->result != LBVH_OK) return own->result;
        for (a = 0; a < 3; a++) {
            all->least[a] = lbvh_i_min(all->least[a], own->least[a]);
            all->most[a] = lbvh_i_max(all->most[a], own->most[a]);
        }
    }
    return LBVH_OK;
}

static void lbvh_i_keys_piece(void *context, int32_t k)
{
    lbvh_i_build_job *job = (lbvh_i_build_job *)context;
    lbvh_i_histogram unused;
    lbvh_i_make_keys(job->tree, job->data, job->stride, &job->keys, &unused,
                     lbvh_i_first_of(job, k), lbvh_i_first_of(job, k + 1));
}

static void lbvh_i_count_digit_piece(void *context, int32_t k)
{
    lbvh_i_build_job *job = (lbvh_i_build_job *)context;
    const uint64_t *from = job->pass % 2 ? job->keys.spare : job->keys.key;
    int32_t const last = lbvh_i_first_of(job, k + 1);
    int32_t count[256], i;
    memset(count, 0, sizeof count);
    for (i = lbvh_i_first_of(job, k); i < last; i++)
        count[from[i] >> (32 + 8 * job->pass) & 255]++;
    memcpy(job->counts + 256 * (size_t)k, count, sizeof count);
}

/* Where each piece writes its first key of each digit. */
static void lbvh_i_sum_digits(lbvh_i_build_job *job)
{
    int32_t digit, k, sum = 0;
    for (digit = 0; digit < 256; digit++)
        for (k = 0; k < job->pieces; k++) {
            int32_t *const begin = &job->counts[256 * (size_t)k + (size_t)digit];
            int32_t const count = *begin;
            *begin = sum;
            sum += count;
        }
}

static void lbvh_i_deal_piece(void *context, int32_t k)
{
    lbvh_i_build_job *job = (lbvh_i_build_job *)context;
    const uint64_t *from = job->pass % 2 ? job->keys.spare : job->keys.key;
    uint64_t *to = job->pass % 2 ? job->keys.key : job->keys.spare;
    int32_t begin[256];
    memcpy(begin, job->counts + 256 * (size_t)k, sizeof begin);
    lbvh_i_deal(from, to, lbvh_i_first_of(job, k), lbvh_i_first_of(job, k + 1), begin, job->pass);
}

/* Pieces of places that begin where the upper bits of the keys change. */
static void lbvh_i_cut_keys(lbvh_i_build_job *job)
{
    const uint64_t *key = job->keys.key;
    int32_t k, place = 0;
    for (k = 0; k <= job->pieces; k++) {
        int32_t const begin = lbvh_i_first_of(job, k);
        if (place < begin) place = begin;
        while (place > 0 && place < job->n && key[place] >> 32 == key[place - 1] >> 32) place++;
        job->cut[k] = place;
    }
}

static void lbvh_i_low_piece(void *context, int32_t k)
{
    lbvh_i_build_job *job = (lbvh_i_build_job *)context;
    lbvh_i_sort_low(&job->keys, job->cut[k], job->cut[k + 1]);
}

static void lbvh_i_prefixes_piece(void *context, int32_t k)
{
    lbvh_i_build_job *job = (lbvh_i_build_job *)context;
    lbvh_i_make_prefixes(job->tree, &job->keys, lbvh_i_first_of(job, k),
                         lbvh_i_first_of(job, k + 1));
}

/* Takes all clusters off the stack, into `*to` and on; `last`: the last place of the topmost
   subtree. Returns their number. */
static int32_t lbvh_i_leave_clusters(lbvh_i_clusters *c, int32_t last, lbvh_i_left_cluster *to)
{
    int32_t const left = c->all;
    int32_t i = left, m;
    int a;
    for (; c->top > 0; last = c->waiting[c->top] - 1)
        for (m = c->many[--c->top]; m > 0; m--) {
            lbvh_i_left_cluster *one = &to[--i];
            for (a = 0; a < 3; a++) {
                one->min[a] = c->min[a][i];
                one->max[a] = c->max[a][i];
            }
            one->node = c->node[i];
            one->first = c->first[i];
            one->last = last;
        }
    c->all = 0;
    return left;
}

/* Puts the `count` clusters of a subtree on the stack, and joins them as lbvh_i_cluster does. */
static void lbvh_i_take_clusters(const lbvh *tree, lbvh_i_clusters *c, int32_t first,
                                 const lbvh_i_left_cluster *from, int32_t count)
{
    int32_t i;
    for (i = 0; i < count; i++)
        lbvh_i_push_cluster(c, from[i].min, from[i].max, from[i].node, from[i].first);
    lbvh_i_join_clusters(tree, c, first, from->last, count);
}

/* lbvh_i_cluster within a piece. A right subtree whose sibling begins before the piece is alone on
   the stack: it is left for later. */
static void lbvh_i_cluster_piece(void *context, int32_t k)
{
    lbvh_i_build_job *job = (lbvh_i_build_job *)context;
    int32_t const begin = lbvh_i_first_of(job, k), end = lbvh_i_first_of(job, k + 1);
    lbvh_i_left_cluster *const to = job->cluster + begin;
    lbvh_i_clusters c;
    int32_t place, left = 0;
    lbvh_i_begin_clusters(job->tree, &c);
    for (place = begin; place < end; place++) {
        lbvh_i_push_leaf(job->tree, job->data, job->stride, &job->keys, &c, place);
        lbvh_i_join_clusters(job->tree, &c, place, place, 1);
        if (c.top == 1 && !lbvh_i_is_left(job->tree->prefix, c.waiting[0], place))
            left += lbvh_i_leave_clusters(&c, place, to + left);
    }
    job->left[k] = left + lbvh_i_leave_clusters(&c, end - 1, to + left);
}

/* Joins what the pieces have left. Returns the root. */
static int32_t lbvh_i_cluster_the_rest(const lbvh_i_build_job *job)
{
    lbvh_i_clusters c;
    int32_t k, i, count, first = 0;
    lbvh_i_begin_clusters(job->tree, &c);
    for (k = 0; k < job->pieces; k++)
        for (i = 0; i < job->left[k]; i += count) {
            const lbvh_i_left_cluster *from = job->cluster + lbvh_i_first_of(job, k) + i;
            for (count = 1; i + count < job->left[k] && from[count].last == from->last;) count++;
            lbvh_i_take_clusters(job->tree, &c, first, from, count);
            first = from->last + 1;
        }
    return c.node[0];
}

/* (PLOC has its prefixes already.) */
static void lbvh_i_leaves_piece(void *context, int32_t k)
{
    lbvh_i_build_job *job = (lbvh_i_build_job *)context;
    int32_t const first = lbvh_i_first_of(job, k), last = lbvh_i_first_of(job, k + 1);
    if (job->tree->desc.builder != LBVH_PLOC) lbvh_i_prefixes_piece(context, k);
    lbvh_i_make_codes(job->tree, &job->keys, first, last);
    lbvh_i_make_leaves(job->tree, job->data, job->stride, &job->keys, first, last);
}

/* The same as lbvh_i_rotate_up for a merge: joins the node with its left sibling instead. */
static int32_t lbvh_i_raise(lbvh *tree, lbvh_i_roots *roots, int32_t fixed, int32_t first,
                            int32_t last)
{
    const uint8_t *prefix = tree->prefix;
    int32_t at = lbvh_i_number(prefix, tree->first_leaf, first, last);
    lbvh_node node = tree->node[at];
    while (roots->count > fixed && !lbvh_i_is_left(prefix, first, last)) {
        int32_t const split = first - 1, right = at;
        first = roots->first[--roots->count];
        at = lbvh_i_number(prefix, tree->first_leaf, first, last);
        node.link = lbvh_i_left_child(tree->first_leaf, first, split);
        lbvh_i_widen(&node, &tree->node[node.link]);
        tree->node[at] = node;
        if (tree->mask) tree->mask[at] = tree->mask[node.link] | tree->mask[right];
    }
    roots->first[roots->count++] = first;
    return lbvh_i_is_left(prefix, first, last) ? fixed : roots->count;
}

/* The subtree of the leaves first .. last, in a merge or in a pass of rotations. */
static int32_t lbvh_i_raise_subtree(const lbvh_i_build_job *job, lbvh_i_roots *roots, int32_t fixed,
                                    int32_t first, int32_t last, int32_t *rotations)
{
    return job->rotates ? lbvh_i_rotate_up(job->tree, roots, fixed, first, last, rotations)
                        : lbvh_i_raise(job->tree, roots, fixed, first, last);
}

/* lbvh_i_merge, or lbvh_i_rotate_all, within a piece: nothing changes outside of the subtrees that
   lie within it. A right child whose sibling begins before the piece is fixed. Along fixed roots
   prefixes decrease, along the others they increase: at most LBVH_STACK of each. */
static void lbvh_i_raise_piece(void *context, int32_t k)
{
    lbvh_i_build_job *job = (lbvh_i_build_job *)context;
    lbvh *tree = job->tree;
    lbvh_i_roots *roots = &job->of.roots[k];
    int32_t const last = lbvh_i_first_of(job, k + 1);
    int32_t place, fixed = 0, rotations = 0;
    roots->count = 0;
    for (place = lbvh_i_first_of(job, k); place < last; place++) {
        if (!job->rotates)
            lbvh_i_leaf(tree, place)->skip = lbvh_i_skip(tree->prefix, tree->n, place);
        fixed = lbvh_i_raise_subtree(job, roots, fixed, place, place, &rotations);
    }
    job->left[k] = rotations;
}

/* The same with the roots of all pieces, as if they were leaves. Returns all rotations. */
static int32_t lbvh_i_raise_roots(const lbvh_i_build_job *job)
{
    lbvh_i_roots waiting;
    int32_t k, i, rotations = 0;
    waiting.count = 0;
    for (k = 0; k < job->pieces; k++) {
        const lbvh_i_roots *own = &job->of.roots[k];
        int32_t const end = lbvh_i_first_of(job, k + 1);
        rotations += job->left[k];
        for (i = 0; i < own->count; i++)
            (void)lbvh_i_raise_subtree(job, &waiting, 0, own->first[i],
                                       (i + 1 < own->count ? own->first[i + 1] : end) - 1,
                                       &rotations);
    }
    return rotations;
}

static lbvh_result lbvh_i_run_build(lbvh_i_build_job *job, lbvh_task *work)
{
    return lbvh_i_in_pieces(&job->tree->desc.parallel, job->pieces, work, job);
}

static lbvh_result lbvh_i_sort_in_pieces(lbvh_i_build_job *job)
{
    lbvh_result result = lbvh_i_run_build(job, lbvh_i_keys_piece);
    for (job->pass = 0; job->pass < 4 && result == LBVH_OK; job->pass++) {
        result = lbvh_i_run_build(job, lbvh_i_count_digit_piece);
        if (result != LBVH_OK) return result;
        lbvh_i_sum_digits(job);
        result = lbvh_i_run_build(job, lbvh_i_deal_piece);
    }
    if (result != LBVH_OK) return result;
    lbvh_i_cut_keys(job);
    return lbvh_i_run_build(job, lbvh_i_low_piece);
}

static lbvh_result lbvh_i_merge_in_pieces(lbvh_i_build_job *job)
{
    lbvh_result const result = lbvh_i_run_build(job, lbvh_i_raise_piece);
    if (result == LBVH_OK) (void)lbvh_i_raise_roots(job);
    return result;
}

/* LBVH_PLOC, as lbvh_i_ploc, but for two leaves, which are no pieces. */
static lbvh_result lbvh_i_ploc_in_pieces(lbvh_i_build_job *job)
{
    size_t const align = sizeof(lbvh_node);
    uintptr_t const behind = (uintptr_t)(job->keys.low + job->n) + align - 1;
    lbvh_result result = lbvh_i_run_build(job, lbvh_i_prefixes_piece);
    job->cluster = (lbvh_i_left_cluster *)(behind - behind % align);
    if (result == LBVH_OK) result = lbvh_i_run_build(job, lbvh_i_cluster_piece);
    if (result != LBVH_OK) return result;
    (void)lbvh_i_number_clusters(job->tree, &job->keys, lbvh_i_cluster_the_rest(job));
    return LBVH_OK;
}

/* All builders: MERGE and SPLIT share a tree. */
static lbvh_result lbvh_i_build_in_pieces(lbvh *tree, const lbvh_real *data, size_t stride,
                                          int32_t n)
{
    lbvh_i_build_job job;
    lbvh_result result;
    lbvh_i_begin_build(&job, tree, data, stride, n);
    result = lbvh_i_run_build(&job, lbvh_i_measure_piece);
    if (result == LBVH_OK) result = lbvh_i_join_centres(&job);
    if (result != LBVH_OK) return result;
    lbvh_i_make_lattice(tree, job.of.centres[0].least, job.of.centres[0].most);
    tree->n = n;
    tree->first_leaf = n - 1;
    tree->built = 1;
    job.keys = lbvh_i_key_room(tree);
    job.counts = (int32_t *)(void *)(job.keys.low + n);
    result = lbvh_i_sort_in_pieces(&job);
    if (result == LBVH_OK && tree->desc.builder == LBVH_PLOC) result = lbvh_i_ploc_in_pieces(&job);
    if (result == LBVH_OK) result = lbvh_i_run_build(&job, lbvh_i_leaves_piece);
    if (result == LBVH_OK) result = lbvh_i_merge_in_pieces(&job);
    if (result != LBVH_OK) lbvh_i_make_empty(tree);
    return result;
}

static void lbvh_i_refit_piece(void *context, int32_t k)
{
    lbvh_i_build_job *job = (lbvh_i_build_job *)context;
    lbvh_i_refit_leaves(job->tree, job->data, job->stride, lbvh_i_first_of(job, k),
                        lbvh_i_first_of(job, k + 1));
}

static lbvh_result lbvh_i_refit_in_pieces(lbvh *tree, const lbvh_real *data, size_t stride)
{
    lbvh_i_build_job job;
    lbvh_result result;
    lbvh_i_begin_build(&job, tree, data, stride, tree->n);
    result = lbvh_i_run_build(&job, lbvh_i_measure_piece);
    if (result == LBVH_OK) {
        result = lbvh_i_join_centres(&job);
        if (result != LBVH_OK) return result; /* the tree is unchanged */
        result = lbvh_i_run_build(&job, lbvh_i_refit_piece);
    }
    if (result == LBVH_OK) result = lbvh_i_merge_in_pieces(&job);
    if (result != LBVH_OK) lbvh_i_make_empty(tree);
    return result;
}

static lbvh_result lbvh_i_optimize_in_pieces(lbvh *tree, int32_t *rotations)
{
    lbvh_i_build_job job;
    lbvh_result result;
    int32_t done = 0;
    lbvh_i_begin_build(&job, tree, NULL, 0, tree->n);
    job.rotates = 1;
    result = lbvh_i_run_build(&job, lbvh_i_raise_piece);
    if (result == LBVH_OK) {
        done = lbvh_i_raise_roots(&job);
        if (done > 0) {
            lbvh_i_number_leaves(tree);
            lbvh_i_take_places(tree);
        }
        job.rotates = 0;
        result = lbvh_i_merge_in_pieces(&job);
    }
    if (result != LBVH_OK) lbvh_i_make_empty(tree);
    if (rotations && result == LBVH_OK) *rotations = done;
    return result;
}

/* ------------------------------------------------------------------------------------------------
   >>parallel-world: what changed objects meet, in pieces

   A search reads the trees, which stay as they are while pairs begin and end. So all objects search
   first, in tasks; then the calling thread goes through them in the serial order, and takes what
   each one met. A piece has a room of its own for what it finds. A group of searches that has none
   is left to the calling thread: whatever the rooms, the pairs are the same.
   ---------------------------------------------------------------------------------------------- */

/* Room of a piece for visits, and for objects met beyond its share. */
enum { LBVH_I_PIECE_VISITS = 2 * LBVH_I_PIECE < 512 ? 512 : 2 * LBVH_I_PIECE,
       LBVH_I_PIECE_SPARE = LBVH_I_PIECE / 2 };

typedef struct lbvh_i_world_job {
    const lbvh_world *world;
    const int32_t *index;       /* [n] the objects, in the order in which their pairs change */
    int32_t *met;               /* [n] how many objects each one met, -1: not searched */
    lbvh_visit *visits;         /* [pieces][2][LBVH_I_PIECE_VISITS] */
    int32_t *found;             /* [pieces][room] objects met */
    int32_t n, pieces, room;
    int later;
} lbvh_i_world_job;

/* A search of a world costs more than one in a tree of the caller's: it is in no order. */
static int32_t lbvh_i_world_pieces(const lbvh_world *world, int32_t n)
{
    int32_t const fewest = LBVH_I_PIECE / 4;
    return lbvh_i_pieces_of(&world->desc.parallel, n, fewest < 8 ? 8 : fewest, LBVH_I_BUILD_TASKS);
}

/* Memory for n searches. By the room for objects and pairs, so that it seldom grows. */
static int lbvh_i_begin_world_job(lbvh_i_world_job *job, lbvh_world *world, int32_t n)
{
    size_t const most = (size_t)lbvh_i_world_pieces(world, world->capacity),
                 all = 8 * (size_t)world->capacity + 4 * (size_t)world->pair_capacity,
                 spare = most * LBVH_I_PIECE_SPARE, visits = most * 2 * LBVH_I_PIECE_VISITS;
    if (!lbvh_i_extend(world, LBVH_I_PIECES_OF,
                       2 * visits + (size_t)world->capacity + all + spare, sizeof(int32_t), 0))
        return 0;
    job->world = world;
    job->n = n;
    job->pieces = lbvh_i_world_pieces(world, n);
    job->visits = (lbvh_visit *)(void *)lbvh_i_start(&world->block[LBVH_I_PIECES_OF]);
    job->met = (int32_t *)(void *)(job->visits + visits);
    job->found = job->met + world->capacity;
    job->room = (int32_t)((all + spare) / (size_t)job->pieces > INT32_MAX / 2
                              ? INT32_MAX / 2 : (all + spare) / (size_t)job->pieces);
    return 1;
}

/* The objects that piece k has, from *begin on, end at *end. */
static void lbvh_i_range_of_world(const lbvh_i_world_job *job, int32_t k, int32_t *begin,
                                  int32_t *end)
{
    *begin = (int32_t)lbvh_i_cut(job->n, job->pieces, k);
    *end = (int32_t)lbvh_i_cut(job->n, job->pieces, k + 1);
}

static void lbvh_i_search_world_piece(void *context, int32_t k)
{
    lbvh_i_world_job *job = (lbvh_i_world_job *)context;
    lbvh_i_group group;
    int32_t i, m, end, used = 0;
    group.room = LBVH_I_PIECE_VISITS;
    group.waiting = job->visits + 2 * (size_t)k * LBVH_I_PIECE_VISITS;
    group.visited = group.waiting + LBVH_I_PIECE_VISITS;
    lbvh_i_range_of_world(job, k, &i, &end);
    for (; i < end; i += LBVH_I_TOGETHER) {
        int32_t const count = lbvh_i_group_of(end - i);
        int32_t s = 0;
        int searched;
        group.found = job->found + (size_t)k * (size_t)job->room + used;
        group.found_room = job->room - used;
        lbvh_i_begin_group(job->world, &group, job->index + i, count, job->later);
        searched = lbvh_i_search_group(job->world, &group);
        for (m = 0; m < count; m++) {
            job->met[i + m] = searched ? 0 : -1;
            if (!searched || s == group.count || group.index[s] != job->index[i + m]) continue;
            job->met[i + m] = group.first[s + 1] - group.first[s];
            s++;
        }
        if (searched) used += group.met;
    }
}

/* Takes what the objects of a piece have met. */
static void lbvh_i_take_world_piece(const lbvh_i_world_job *job, lbvh_world *world, int32_t k,
                                    int *fits)
{
    const int32_t *found = job->found + (size_t)k * (size_t)job->room;
    int32_t i, m, end;
    lbvh_i_range_of_world(job, k, &i, &end);
    for (; i < end; i += LBVH_I_TOGETHER) {
        int32_t const count = lbvh_i_group_of(end - i);
        if (job->met[i] < 0) {
            lbvh_i_update_pairs_of_group(world, job->index + i, count, job->later, fits);
            continue;
        }
        lbvh_i_prefetch_pairs(world, job->index + i, count);
        for (m = i; m < i + count; m++) {
            lbvh_i_update_pairs_of(world, job->index[m], found, job->met[m], fits);
            found += job->met[m];
        }
    }
}

/* The pairs of n changed objects, in this order; their searches in pieces. 0: no memory for that,
   and nothing was done. */
static int lbvh_i_update_pairs_in_pieces(lbvh_world *world, const int32_t *index, int32_t n,
                                         int later, int *fits)
{
    lbvh_i_world_job job;
    int32_t k;
    if (!lbvh_i_begin_world_job(&job, world, n)) return 0;
    job.index = index;
    job.later = later;
    if (lbvh_i_in_pieces(&world->desc.parallel, job.pieces, lbvh_i_search_world_piece, &job) !=
        LBVH_OK) {
        world->not_run = 1;
        for (k = 0; k < n; k++) job.met[k] = -1;
    }
    for (k = 0; k < job.pieces; k++) lbvh_i_take_world_piece(&job, world, k, fits);
    return 1;
}

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
        child[open] = child[--count];
        count = lbvh_i_add_span(tree, child, count, node->link, parent.first, split);
        count = lbvh_i_add_span(tree, child, count, lbvh_right_child(tree, node), split + 1,
                                parent.last);
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
    lbvh_real const half = (lbvh_real)0.5,
                    extent_half = lbvh_i_times(max, half) - lbvh_i_times(min, half);
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
    for (rest = found; in_blocks && rest < LBVH_WIDE_LEAF; rest++)
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
    for (i = 0; i < all->count && result == LBVH_OK; i++)
        if (all->branch[i].nodes < 0) return LBVH_INVALID;
    return result == LBVH_OK && !job->wide ? lbvh_i_collapse_all(job) : result;
}

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
    for (b = 0; b < LBVH_BLOCKS && result == LBVH_OK; b++) *bytes += (int64_t)sizes[b];
    return result;
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
   careful: it decodes each plane and takes the slab test of >>ray.
   ---------------------------------------------------------------------------------------------- */

#define LBVH_I_LEAF_BIT 0x80000000u     /* a child in the stack is 8 * node + c, and this */

/* One ray. */
typedef struct lbvh_i_beam {
    lbvh_real origin[4], direction[4], inverse[4];  /* [3]: 0 */
    lbvh_real before[4], after[4];  /* origin / direction, and `pad` more or less */
    int32_t in[4], out[4];      /* rows of lbvh_wide_node.plane where the ray comes and goes */
    int32_t i, j, k;            /* axes: k is the direction's longest */
    int32_t careful;            /* 1: planes are decoded */
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

/* The children that the ray enters up to t_max, as bits, and where. */
LBVH_FN_HOT uint32_t lbvh_i_enter_children(const lbvh_i_beam *ray, const lbvh_wide_node *node,
                                           lbvh_real enters[LBVH_WIDE])
{
    lbvh_real leaves[LBVH_WIDE];
    uint32_t met = 0;
    int a, c;
    for (c = 0; c < LBVH_WIDE; c++) {
        enters[c] = 0;
        leaves[c] = ray->t_max;
    }
    for (a = 0; a < 3; a++) {
        if (ray->careful) lbvh_i_careful_slab(ray, node, a, enters, leaves);
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
#if defined(LBVH_I_STRICT_CLANG) && defined(LBVH_I_KEEP_BY_ASM)
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

LBVH_FN_HOT uint32_t lbvh_i_child(const lbvh_wide_node *node, uint32_t number, int c,
                                  int calls)
{
    uint32_t const kind = node->kind[c];
    if (kind >= LBVH_I_INNER) return node->child + (kind - LBVH_I_INNER);
    if (calls) return LBVH_I_LEAF_BIT | number * LBVH_WIDE | (uint32_t)c;
    return LBVH_I_LEAF_BIT | (node->first + (kind & 31));
}

/* Pushes the children of a node that were entered, farthest first; the new top. */
LBVH_I_HOT int lbvh_i_push_children(lbvh_i_waiting *stack, int top, const lbvh_wide_node *node,
                                    uint32_t number, uint32_t met, const lbvh_real *enters,
                                    int calls)
{
    int const base = top;
    for (; met; met &= met - 1) {
        int const c = lbvh_i_lowest_bit(met);
        lbvh_real const t = enters[c];
        int slot = top++;
        for (; slot > base && stack->enters[slot - 1] < t; slot--) {
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

LBVH_FN lbvh_real lbvh_i_reach_of(const lbvh_rays *rays, int32_t r)
{
    if (rays->t_maxs) return rays->t_maxs[r];
    return rays->t_max > 0 ? rays->t_max : lbvh_i_infinity();
}

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

static void lbvh_i_walk_plain(lbvh_i_bundle *bundle)
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
    } else if (walker->ray.careful) lbvh_i_step_node(tracer, walker, at);
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
#if defined(LBVH_I_STRICT_CLANG) && defined(LBVH_I_KEEP_BY_ASM)
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

static lbvh_i_tracer lbvh_i_tracer_of(const lbvh_wide *wide, lbvh_ray_fn *fn, void *user, int any)
{
    lbvh_i_tracer tracer;
    int a;
    for (a = 0; a < 3; a++) tracer.size[a] = lbvh_i_wide_size(wide, a);
    tracer.size[3] = 0;
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
    lbvh_i_walk_plain(bundle);
}

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
        search->reach2 = lbvh_keep_nearest(search->ids, search->distances2, search->k,
                                           &search->found, search->reach2, id, distance2);
    } else lbvh_i_keep_closest(search->wide, slot, search->p, search->closest, &search->reach2);
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
            top = lbvh_i_push_children(&stack, top, node, at, met & node->used, away2, 1);
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
    lbvh_closest *closest;
} lbvh_i_points;

LBVH_FN lbvh_closest lbvh_i_no_point(void)
{
    lbvh_closest none;
    memset(&none, 0, sizeof none);
    none.id = -1;
    return none;
}

static void lbvh_i_points_plain(const lbvh_i_points *job, int32_t i, int32_t end)
{
    lbvh_i_around search;
    memset(&search, 0, sizeof search);
    search.wide = job->wide;
    for (; i < end; i++) {
        job->closest[i] = lbvh_i_no_point();
        search.closest = &job->closest[i];
        lbvh_i_search_around(&search, lbvh_i_at(job->points, job->stride, i), job->reach);
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

/* lbvh_i_closest_on_edge: the squared distance. to_p: p - a */
LBVH_I_LANES_FN __m128 lbvh_i_edge_lanes(lbvh_i_lanes3 p, lbvh_i_lanes3 a, lbvh_i_lanes3 b,
                                         lbvh_i_lanes3 to_p)
{
    lbvh_i_lanes3 const d = lbvh_i_minus_lanes(b, a);
    __m128 const along = lbvh_i_dot_lanes(d, to_p), length2 = lbvh_i_dot_lanes(d, d);
    lbvh_i_lanes3 q = lbvh_i_along_lanes(a, d, _mm_div_ps(along, length2));
    q = lbvh_i_pick_lanes(q, b, _mm_cmpge_ps(along, length2));
    q = lbvh_i_pick_lanes(a, q, _mm_cmpgt_ps(along, _mm_setzero_ps()));
    return lbvh_i_away2_lanes(q, p);
}

/* The squared distance of lbvh_closest_on_triangle to 4 triangles. */
LBVH_I_LANES_FN __m128 lbvh_i_triangle_lanes(lbvh_i_lanes3 p, const float *v)
{
    lbvh_i_lanes3 const a = lbvh_i_corner_lanes(v), b = lbvh_i_corner_lanes(v + 12),
                        c = lbvh_i_corner_lanes(v + 24), ab = lbvh_i_minus_lanes(b, a),
                        ac = lbvh_i_minus_lanes(c, a), ap = lbvh_i_minus_lanes(p, a),
                        bp = lbvh_i_minus_lanes(p, b), cp = lbvh_i_minus_lanes(p, c),
                        normal = lbvh_i_normal_lanes(ab, ac);
    __m128 const zero = _mm_setzero_ps(),
                 from_a = lbvh_i_dot_lanes(normal, lbvh_i_normal_lanes(bp, cp)),
                 from_b = lbvh_i_dot_lanes(normal, lbvh_i_normal_lanes(cp, ap)),
                 from_c = lbvh_i_dot_lanes(normal, lbvh_i_normal_lanes(ap, bp)),
                 total = _mm_add_ps(_mm_add_ps(from_a, from_b), from_c),
                 inside = _mm_and_ps(_mm_and_ps(_mm_cmpgt_ps(from_a, zero),
                                                _mm_cmpgt_ps(from_b, zero)),
                                     _mm_and_ps(_mm_cmpgt_ps(from_c, zero),
                                                _mm_castsi128_ps(lbvh_i_finite_lanes(total)))),
                 to_ab = lbvh_i_edge_lanes(p, a, b, ap), to_bc = lbvh_i_edge_lanes(p, b, c, bp),
                 to_ca = lbvh_i_edge_lanes(p, c, a, cp),
                 to_edge = _mm_min_ps(to_ca, _mm_min_ps(to_bc, to_ab));
    lbvh_i_lanes3 q = lbvh_i_along_lanes(a, ab, _mm_div_ps(from_b, total));
    q = lbvh_i_along_lanes(q, ac, _mm_div_ps(from_c, total));
    return _mm_blendv_ps(to_edge, lbvh_i_away2_lanes(q, p), inside);
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
    lbvh_i_lanes3 p;
    __m128 away2;
    uint32_t within;
    p.x = _mm_broadcast_ss(seeker->p);
    p.y = _mm_broadcast_ss(seeker->p + 1);
    p.z = _mm_broadcast_ss(seeker->p + 2);
    away2 = lbvh_i_triangle_lanes(p, wide->element + block * 9 * LBVH_WIDE_LEAF);
    within = (uint32_t)_mm_movemask_ps(_mm_cmple_ps(away2, _mm_set1_ps(seeker->reach2)));
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
        seeker->p = lbvh_i_at(job->points, job->stride, *i);
        seeker->closest = &job->closest[*i];
        *seeker->closest = lbvh_i_no_point();
        if (!lbvh_i_take_point(job->wide, seeker->p, point)) continue;
        seeker->reach2 = lbvh_i_min(lbvh_i_times(job->reach, job->reach), lbvh_i_largest());
        seeker->slot = LBVH_I_NO_SLOT;
        seeker->top = lbvh_i_push_root(&seeker->stack);
        ++*i;
        return 1;
    }
    return 0;
}

static void lbvh_i_end_seeker(const lbvh_wide *wide, const lbvh_i_seeker *seeker)
{
    lbvh_closest *closest = seeker->closest;
    if (seeker->slot == LBVH_I_NO_SLOT) return;
    closest->feature = lbvh_i_closest_in_block(wide, seeker->slot, seeker->p, closest->point);
    closest->distance2 = lbvh_i_distance2(closest->point, seeker->p);
    closest->id = wide->id[seeker->slot];
}

enum { LBVH_I_SEEKERS = 6 };

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
    lbvh_i_points_plain(job, begin, end);
}

LBVH_API lbvh_result lbvh_closest_points(const lbvh_wide *wide, const lbvh_real *points,
                                         size_t stride, int32_t n, lbvh_real reach,
                                         lbvh_closest *closest)
{
    lbvh_i_points job;
    lbvh_result result = LBVH_OK;
    int32_t i;
    if (!wide || n < 0 || (n > 0 && (!points || !closest))) return LBVH_BAD_ARGUMENT;
    stride = lbvh_i_stride_of(3, stride);
    if (stride == 0) return LBVH_BAD_ARGUMENT;
    if (!(reach >= 0)) return LBVH_BAD_RADIUS;
    if (!wide->built || wide->numbers != 9) return LBVH_NOT_BUILT;
    job.wide = wide;
    job.points = points;
    job.stride = stride;
    job.n = n;
    job.reach = reach;
    job.closest = closest;
    job.pieces = lbvh_i_wide_pieces(wide, n);
    if (job.pieces == 1) lbvh_i_points_piece(&job, 0);
    else result = lbvh_i_in_pieces(&wide->desc.parallel, job.pieces, lbvh_i_points_piece, &job);
    for (i = 0; i < n && result != LBVH_OK; i++) closest[i] = lbvh_i_no_point();
    return result;
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
   >>wide-save: a file is as at >>save. The order of nodes, leaves and elements in the arrays is
   that of the walk of >>wide-build; so a file is checked by that walk, which knows what must come
   next.
   ---------------------------------------------------------------------------------------------- */

/* The header, and the arrays in the order of the file; 0: the sizes are beyond a size_t. */
static int lbvh_i_wide_header_of(const lbvh_wide *wide, lbvh_i_header *header,
                                 size_t bytes[LBVH_BLOCKS])
{
    int b;
    *header = lbvh_i_begin_header("lbvhw.h\n");
    header->of.wide.dim = wide->dim;
    header->of.wide.nodes = wide->nodes;
    header->of.wide.leaves = wide->leaves;
    header->of.wide.elements = wide->elements;
    header->of.wide.numbers = wide->numbers;
    header->of.wide.has_masks = wide->mask != NULL;
    header->of.wide.leaf = wide->desc.leaf;
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
    memset(shape, 0, sizeof *shape);
    shape->dim = header->of.wide.dim;
    shape->nodes = header->of.wide.nodes;
    shape->leaves = header->of.wide.leaves;
    shape->elements = header->of.wide.elements;
    shape->numbers = header->of.wide.numbers;
    shape->desc.leaf = header->of.wide.leaf;
    shape->desc.copy = shape->numbers > 0;
    shape->mask = header->of.wide.has_masks ? &some_masks : NULL;
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

#ifdef __cplusplus
} /* extern "C" */
#endif

#ifdef LBVH_CUDA
#include "cuda/lbvh.cu"
#endif

#endif /* LBVH_IMPLEMENTATION */

#if defined(LBVH_I_STRICT_CLANG)
#pragma float_control(pop)
#undef LBVH_I_STRICT_CLANG
#elif defined(LBVH_I_STRICT_MSVC)
#pragma float_control(pop)
#pragma fp_contract(on)
#undef LBVH_I_STRICT_MSVC
#elif defined(LBVH_I_STRICT_GCC)
#pragma GCC pop_options
#undef LBVH_I_STRICT_GCC
#endif

/* ------------------------------------------------------------------------------------------------
   >>licence
   ------------------------------------------------------------------------------------------------
   nearfield is available under two licenses: choose whichever you prefer. SPDX-License-Identifier:
   MIT OR Unlicense

   ALTERNATIVE A - MIT License Copyright (c) 2026 nearfield authors Permission is hereby granted,
   free of charge, to any person obtaining a copy of this software and associated documentation
   files (the "Software"), to deal in the Software without restriction, including without limitation
   the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of
   the Software, and to permit persons to whom the Software is furnished to do so, subject to the
   following conditions: The above copyright notice and this permission notice shall be included in
   all copies or substantial portions of the Software. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT
   WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
   MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
   AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN
   ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR
   THE USE OR OTHER DEALINGS IN THE SOFTWARE.

   ALTERNATIVE B - Public Domain (www.unlicense.org) This is free and unencumbered software released
   into the public domain. Anyone is free to copy, modify, publish, use, compile, sell, or
   distribute this software, either in source code form or as a compiled binary, for any purpose,
   commercial or non-commercial, and by any means. In jurisdictions that recognize copyright laws,
   the author or authors of this software dedicate any and all copyright interest in the software to
   the public domain. We make this dedication for the benefit of the public at large and to the
   detriment of our heirs and successors. We intend this dedication to be an overt act of
   relinquishment in perpetuity of all present and future rights to this software under copyright
   law. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED,
   INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE
   AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
   LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN
   CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
   ---------------------------------------------------------------------------------------------- */
