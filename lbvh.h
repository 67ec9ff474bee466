/* lbvh.h - v0.2.0 - linear bounding volume hierarchies (LBVH) in 2D and 3D, in C99 and CUDA.
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   A binary tree of axis-aligned bounding boxes (AABBs) over boxes, points, spheres or triangles.
   The elements are sorted by Morton code, and the tree follows from the common prefixes of the
   codes: a build is O(n). Two builders make the same tree: bottom-up (LBVH_MERGE, the default;
   Apetrei) and top-down (LBVH_SPLIT; Karras). A third, LBVH_PLOC, merges by area: a better tree for
   triangles of mixed sizes.

   Searches: boxes that overlap a box or come within a radius of a point; all overlapping pairs,
   each once; lists of overlaps in CSR form for many queries at once; rays; the k nearest elements.
   Tests of triangles themselves: watertight ray-triangle intersection, closest point with feature.
   Also: refit after motion, filter masks, save and load, quality measures, a checker of the
   structure.

   Parts of this header stand in files of their own, each added by a macro (>>options):

       more/lbvh_world.h     LBVH_WITH_WORLD     objects that come, move and go: a broad phase
       more/lbvh_wide.h      LBVH_WITH_WIDE      trees of 8 children, a fifth of the memory without
                                                 desc.copy: rays in bulk, closest points on
                                                 meshes
       more/lbvh_nearest.h   LBVH_WITH_NEAREST   the k nearest, in half the time
       more/lbvh_optimize.h  LBVH_WITH_OPTIMIZE  better trees: rotations after refits, the upper
                                                 nodes by the surface area heuristic

   Searches by iterators work in plain C and in kernels alike. The serial code is the reference for
   CUDA: both give the same bits. CUDA calls take a stream and do not wait, unless they say so.

   >>contents: the banners in order; search for >>, the name and a colon

       manual          use, example, options, rules, method, limits, not-here, changes
       declarations    strict-math, config, results, parallel, desc, tree, api
       per element     numbers, codes, quantiles, nodes, elements, overlap, near, ray, triangles,
                       queries, stb_ds, packet
       kernels         cuda-api, cuda-templates
       the text        sort, build, ploc, sample, refit, pairs, queries-serial, memory, resolve,
                       version
       faster forms    faster, parallel-run, faster-build, faster-ploc, packets, faster-pairs,
                       faster-queries, parallel-search, faster-rows, parallel-build, seams
       checks, files   validate, measure, save
       CUDA            cuda/lbvh.cu, with a list of its own
       end             parts, licence

   >>use

   In one C or C++ file:             #define LBVH_IMPLEMENTATION
                                     #include "lbvh.h"
   everywhere else:                  #include "lbvh.h"
   with a part, in all files that    #define LBVH_WITH_WORLD      (also in the one above)
   use it:                           #include "lbvh.h"           (needs more/lbvh_world.h beside it)
   on the GPU, in one .cu file:      #define LBVH_IMPLEMENTATION
                                     #define LBVH_CUDA
                                     #include "lbvh.h"           (needs cuda/lbvh.cu beside it)
   and in every file that calls it:  #define LBVH_CUDA before the include
                                     (C files too: they need no CUDA header)

   Build: cc -O3 program.c          GPU: nvcc -O3 -arch=native program.cu
   The bits are the same with -march=native, where gcc would fuse products with sums. Where a
   compiler keeps more digits (32-bit x86), add -msse2 -mfpmath=sse: else results can differ in the
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
       LBVH_PLAIN            -         one file           the plain forms alone (>>faster)
       LBVH_PLAIN_LANES      -         one file           no AVX2
       LBVH_WITH_WORLD       -         all that use it,   adds a part; so do LBVH_WITH_WIDE,
                                       and the one file   LBVH_WITH_NEAREST and LBVH_WITH_OPTIMIZE

   >>rules

   Memory   Only lbvh_build, lbvh_reserve, lbvh_load, lbvh_nearest_rows, lbvh_validate and
            lbvh_verify allocate, by desc.allocator (lbvh_cuda_...: >>cuda-api). Memory is kept:
            after lbvh_reserve(n), builds up to n allocate nothing. The first build and lbvh_reserve
            take exactly the bytes below. An array that is too small for a later build becomes half
            as large again, or as large as needed if that is more.
            a leaf    65 (float: two nodes of 32, a prefix of 1; Kureck section 3.3 counts 64,
                      without the boxes of the leaves); double 129. 8 more with masks, 8 more with
                      keep_codes or a builder other than MERGE
            CUDA      work space, a leaf: 26, 18 with codes of 30 bits, 12 more for LBVH_SPLIT, 44
                      more for lists of pairs; 16 a query of your own, and 196 a query of a list
                      (none beyond 2 GiB of them: lists then take twice as long). For the sort: 16
                      more for each of the first 1.6M leaves or queries (24 with codes of 30 bits,
                      and for queries; fewer of them on small GPUs); beyond, what CUB asks for
            stack     45 KB for searches in bulk (70 KB for double); 60 KB for a call with
                      desc.parallel, or a build by LBVH_PLOC and its tasks (100 KB); 110 KB where it
                      is both (150 KB); 10 KB for another build; 1 KB for a ray or a nearest walk
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
   figure; >>quantiles: where some lie far from the others). The root covers all leaves. An inner
   node covers a range of leaves, and is split where the highest differing bit of their codes turns
   from 0 to 1 (Karras; >>nodes has a figure). Equal codes are told apart by their places, as if
   those were appended to the codes (Kureck equation 3.3). A node has two links: `link` to its left
   child, `skip` to the node that follows its subtree. With them a walk needs no stack (>>nodes).
   LBVH_PLOC merges by area instead, and hands the same arrays to the same walks (>>ploc).

   To learn it from this file, read >>codes and >>nodes; then >>sort, >>build and >>ploc, which are
   the whole build; then >>overlap and >>pairs, which search it. Each is short, and stands alone.
   What makes them faster, with the same bits, comes after (>>faster); no method needs it.
   examples/lbvh_steps/lbvh_steps.c prints all of this for points of your choice.

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
            Ize:     T. Ize, Robust BVH Ray Traversal, JCGT 2013.
            Woop:    S. Woop, C. Benthin, I. Wald, Watertight Ray/Triangle Intersection, JCGT 2013.

   >>limits

   n up to 2^30 - 512. Depth: a node has more common bits than its parent, so at most 63 bits of
   code + 30 of place = 93 inner nodes are above a leaf (a PLOC tree that is deeper is replaced by
   that of MERGE). Walks that keep a stack (rays, nearest) push at most one node for each inner node
   above a leaf, and one more: the LBVH_STACK = 94 entries cannot overflow (the 64 of Kureck section
   3.1.6 can). NaN and infinite numbers, inverted boxes and negative radii are refused with the
   index of the first (desc.skip_invalid: left out; CUDA: left out, and reported by
   lbvh_cuda_check). Squared distances must be representable: radii below 1e-19 and distances above
   1e19 (float) lose their meaning.

   >>not-here

   Full surface-area builders, instances, motion blur (ray tracers have them); periodic boxes
   (search again with the box moved by a period; lists of nlist.h do so); neighbours of particles of
   equal size (ugrid.h is faster); file formats, threads, timers.

   >>changes

   0.2.0  2026-11-28. Parts: lbvh_world, lbvh_wide, lbvh_nearest, lbvh_optimize. LBVH_PLOC;
          threads; lbvh_nearest_rows; pairs of sparse boxes faster
   0.1.0  first version
*/

/* ------------------------------------------------------------------------------------------------
   >>strict-math: -ffast-math and its parts (-Ofast, -ffinite-math-only, /fp:fast ...) are disabled
   here. From here to the end of this file the compiler respects NaN, infinity and the order of
   roundings. After it the caller's options apply again.
   ---------------------------------------------------------------------------------------------- */
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0) || \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || \
    defined(__NO_SIGNED_ZEROS__) || defined(_M_FP_FAST)
#define LBVH_I_FAST_MATH
#if defined(__clang__) && \
    (defined(__i386__) || defined(__x86_64__) || defined(_M_X64) || defined(__s390x__) || \
     defined(__powerpc64__) || __clang_major__ >= 16) && \
    __clang_major__ >= 11 && !defined(__wasm__)
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
#error "lbvh.h: this compiler cannot keep the order of roundings: compile without -ffast-math"
#endif
#elif defined(__GNUC__) && !defined(__clang__) && !defined(__CUDA_ARCH__) && \
    (defined(__FMA__) || !(defined(__i386__) || defined(__x86_64__)))
/* gcc fuses a product with a sum, unless -std=c99 or its like is given. */
#define LBVH_I_KEEP_BY_ASM
#endif

/* C++ compilers can warn about what C needs: its casts, NULL. From here to the end of this file
   they do not (-Weverything, -Wold-style-cast, -Wuseless-cast). */
#if defined(__cplusplus) && (defined(__GNUC__) || defined(__clang__))
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"
#pragma GCC diagnostic ignored "-Wfloat-equal"
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wused-but-marked-unused"
#else
#pragma GCC diagnostic ignored "-Wuseless-cast"
#endif
#endif

#ifndef LBVH_H
#define LBVH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LBVH_VERSION_MAJOR 0
#define LBVH_VERSION_MINOR 2
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
#define LBVH_FN_RARE LBVH_FN
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
#define LBVH_FN_RARE static __attribute__((noinline, unused))
#else
#define LBVH_FN_HOT static inline
#define LBVH_FN_RARE static inline
#endif
#define LBVH_ALIGN_NODE
#endif

/* In a double build every function gets a second name. A program that mixes float and double builds
   then does not link, instead of computing wrong results. */
#if LBVH_I_REAL_KIND == 2 && !defined(NEARFIELD_NAMESPACE)
#define lbvh_version            lbvh_f64_version
#define lbvh_result_text        lbvh_f64_result_text
#define lbvh_defaults           lbvh_f64_defaults
#define lbvh_reserve            lbvh_f64_reserve
#define lbvh_bytes_for          lbvh_f64_bytes_for
#define lbvh_build              lbvh_f64_build
#define lbvh_refit              lbvh_f64_refit
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
#define lbvh_nearest_rows       lbvh_f64_nearest_rows
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
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
                       "not 30 or 63, desc.parallel.tasks is not 0 .. 1024, the search does not "  \
                       "take this queries.kind or flag, or LBVH_PLOC is given to a GPU: call "     \
                       "lbvh_build, then lbvh_cuda_upload")                                        \
    X(LBVH_BAD_BOUNDS, "desc.min must be at most desc.max on every axis, both finite (all "        \
                       "zero: measured)")                                                          \
    X(LBVH_BAD_RADIUS, "desc.radius, queries.radius, a world's desc.margin and desc.margin_part "  \
                       "must be finite and not negative; the reach not negative or NaN")           \
    X(LBVH_BAD_ALLOCATOR, "desc.allocator needs both alloc and free, or neither, gives memory "    \
                          "aligned to 16 bytes, and stays the same until lbvh_free")               \
    X(LBVH_BAD_INDEX, "a triangle names a vertex that is not in 0 .. desc.vertices - 1: "          \
                      "tree.bad_id is the first such triangle")                                    \
    X(LBVH_NOT_FINITE, "an element has a NaN or infinite number, or its box reaches beyond "       \
                       "the largest one: of a tree, tree.bad_id is the first such element, and "   \
                       "desc.skip_invalid leaves them out; of a world, the object is as it was")   \
    X(LBVH_INVERTED, "a box has min above max, or a sphere a negative radius: of a tree, "         \
                     "tree.bad_id is the first such element, and desc.skip_invalid leaves them "   \
                     "out; of a world, the object is as it was")                                   \
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

   In tasks run lbvh_build, lbvh_refit, lbvh_count_pairs, lbvh_pairs, lbvh_count_overlaps,
   lbvh_overlaps and lbvh_nearest_rows. All else runs in the calling thread: walks, your functions,
   and what has an order (the places of LBVH_PLOC). A tree uses the hook of its last build,
   tree.desc.parallel, which you may change; lbvh_load takes it from its desc. Threads that search
   one tree at once call its `run` at once.

   A task needs the stack of a search in bulk, or of LBVH_PLOC (>>rules). Nothing is allocated for
   tasks. Lists may write anywhere below `capacity`, also behind the last entry.

   LBVH_NOT_RUN: a task was left out. A build or refit has then left no tree. Numbers, counts and
   offsets of a search are 0, and other arrays are not specified.
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

/* The algorithm. MERGE and SPLIT make the same tree, on both sides; PLOC makes one of its own, and
   is serial: a GPU gets its trees by lbvh_cuda_upload. */
typedef enum lbvh_builder {
    LBVH_MERGE = 0,     /* bottom-up: neighbouring subtrees merge (Apetrei); serial in one pass,
                           CUDA in rounds; the faster one */
    LBVH_SPLIT,         /* top-down: ranges are split at the highest differing bit; serial by
                           recursion, CUDA all nodes at once (Karras; Kureck section 3.1.4); the one
                           to read first. Keeps the codes, as keep_codes does. */
    LBVH_PLOC           /* bottom-up by area: subtrees whose common box is small merge first
                           (Meister, Bittner; Benthin; >>ploc). Slower to build, faster to search
                           where elements differ in size: triangles. Needs 8 more bytes a leaf. */
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
                                   outside count as on the border, which costs quality only; bounds
                                   much too large cost a second sort (default, all zero: measured)
                                 */
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
    lbvh_lattice lattice;   /* of the codes; where these are made by quantiles, one over most of
                               the elements. CUDA: not known on the host */
    lbvh_node *node;        /* [2 n - 1] inner nodes, then leaves by place */
    uint8_t *prefix;        /* [n + 1] of border k: 1 + number of common leading bits of the codes
                               at places k-1 and k (PLOC: 1 + depth of the node split there), 0
                               at both ends; the tree's shape follows from it */
    uint32_t *mask;         /* desc.masks: [2 n - 1] filter bits by node, for an inner node the OR
                               of its leaves'; else NULL */
    uint64_t *code;         /* desc.keep_codes, LBVH_SPLIT: [n] Morton codes by place; else NULL */
    int32_t bad_id;         /* the first element that was refused or left out, else -1 */
    int32_t cuda_error;     /* LBVH_CUDA_ERROR: the cudaError_t */
    int32_t mixed;          /* 0: the first leaf of a node has the lowest id below it, if all codes
                               there are equal (its split has a prefix of more bits than codes
                               have; LBVH_PLOC: if its box is a point). So the k nearest need not
                               visit all of many elements at one distance. 1: not known, after
                               rotations; LBVH_PLOC: after a refit, or loaded */
    lbvh_block block[LBVH_BLOCKS]; /* the memory behind the arrays */
    int32_t coded;          /* 1: lattice and prefix are those of the elements' codes, so bits of
                               a point's code lead to it. 0: quantiles, PLOC, after a refit or
                               rotations, loaded; CUDA */
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
   in space changes: build again then, or improve the tree (more/lbvh_optimize.h). O(n), about half
   of a build. */
LBVH_API lbvh_result lbvh_refit(lbvh *tree, const lbvh_real *data, size_t stride);

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
   distances2: [k]. An element that is found costs O(k) up to k = 256, beyond that O(log k). Of many
   elements with one code (at one point) at the k-th distance about k are visited (tree.mixed).
   With LBVH_WITH_NEAREST (more/lbvh_nearest.h) this and the next call take half the time without
   fn. Points that are spread evenly: ugrid_nearest (more/ugrid_nearest.h) is faster still from
   k = 4 on. */
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

/* Stop here if you only need the API; the inline walks that follow are part of it. */

/* ------------------------------------------------------------------------------------------------
   >>numbers: arithmetic that both sides must round alike
   ---------------------------------------------------------------------------------------------- */

/* x, as a barrier for the optimizer. It is needed where -ffast-math applies in spite of the pragmas
   (LBVH_FN_WALK), and for products that compilers fuse with sums if the processor has FMA. */
#if defined(LBVH_I_KEEP_BY_BARRIER)
#define LBVH_I_KEEP(x) x = __builtin_assoc_barrier(x)
#elif defined(LBVH_I_KEEP_BY_ASM) && defined(__SSE2_MATH__)
#define LBVH_I_KEEP(x) __asm__("" : "+x"(x))
#elif defined(LBVH_I_KEEP_BY_ASM) && defined(__aarch64__)
#define LBVH_I_KEEP(x) __asm__("" : "+w"(x))
#elif defined(LBVH_I_KEEP_BY_ASM)
#define LBVH_I_KEEP(x) __asm__("" : "+m"(x))
#else
#define LBVH_I_KEEP(x) ((void)(x))
#endif
LBVH_FN_WALK lbvh_real lbvh_i_kept(lbvh_real x)
{
    LBVH_I_KEEP(x);
    return x;
}

/* a * b, rounded. nvcc would fuse a product with a sum that follows, round once, and give
   other bits. */
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

/* a / b, correctly rounded, whatever nvcc's -prec-div says. */
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
   >>codes: Morton codes and their common prefixes (Kureck sections 3.1.1, where 63 bits are 3 times
   21, and 3.1.2)

   The centres are quantised to a grid; a code interleaves the bits of the cell's coordinates, x
   highest (Kureck equation 3.2; m is the code. ugrid.h has x lowest):

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

/* The Morton code of a cell of the lattice: of each three bits (2D: two) that of x is the highest
   (Kureck equation 3.2). In ugrid.h it is the lowest. */
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

/* The code of a half centre. */
LBVH_FN uint64_t lbvh_i_code_at(const lbvh_lattice *lattice, int dim, int bits,
                                const lbvh_real half_centre[3])
{
    uint32_t const x = lbvh_i_coordinate(lattice, 0, half_centre[0]),
                   y = lbvh_i_coordinate(lattice, 1, half_centre[1]),
                   z = dim == 3 ? lbvh_i_coordinate(lattice, 2, half_centre[2]) : 0;
    return lbvh_i_interleave(dim, bits, x, y, z);
}

/* The lattice's second form (>>quantiles): each axis is divided at its quantiles, so that about
   as many elements lie in one of the 256 intervals as in another, and each interval evenly.
   knot[a][j]: where interval j of axis a begins; the last one ends the last interval. */
enum { LBVH_I_QUANTILES = 256, LBVH_I_QUANTILE_BITS = 8 };
typedef struct lbvh_i_quantiles { lbvh_real knot[3][LBVH_I_QUANTILES + 1]; } lbvh_i_quantiles;

/* Coordinate of a half centre by the knots of its axis. It ascends with the half centre, since each
   rounding does. */
LBVH_FN uint32_t lbvh_i_quantile_coordinate(const lbvh_real *knot, int axis_bits,
                                            lbvh_real half_centre)
{
    int32_t const cells = (int32_t)1 << (axis_bits - LBVH_I_QUANTILE_BITS); /* of an interval */
    int32_t low = 0, high = LBVH_I_QUANTILES;
    lbvh_real length, t;
    while (high - low > 1) {
        int32_t const middle = (low + high) / 2;
        if (knot[middle] <= half_centre) low = middle;
        else high = middle;
    }
    length = knot[low + 1] - knot[low];
    t = length > 0 ? lbvh_i_over(half_centre - knot[low], length) * (lbvh_real)cells : 0;
    t = t > 0 ? t : 0;
    t = t < (lbvh_real)(cells - 1) ? t : (lbvh_real)(cells - 1);
    return (uint32_t)(low * cells + (int32_t)t);
}

/* The code of a half centre; quantiles NULL: by the lattice. */
LBVH_FN uint64_t lbvh_i_code_by(const lbvh_lattice *lattice, const lbvh_i_quantiles *quantiles,
                                int dim, int bits, const lbvh_real half_centre[3])
{
    int const of_axis = lbvh_i_axis_bits(dim, bits);
    uint32_t x, y, z = 0;
    if (!quantiles) return lbvh_i_code_at(lattice, dim, bits, half_centre);
    x = lbvh_i_quantile_coordinate(quantiles->knot[0], of_axis, half_centre[0]);
    y = lbvh_i_quantile_coordinate(quantiles->knot[1], of_axis, half_centre[1]);
    if (dim == 3) z = lbvh_i_quantile_coordinate(quantiles->knot[2], of_axis, half_centre[2]);
    return lbvh_i_interleave(dim, bits, x, y, z);
}

/* The code of a box; of one left out that of the last cell. */
LBVH_FN uint64_t lbvh_i_code_of_box(const lbvh_lattice *lattice, const lbvh_i_quantiles *quantiles,
                                    int dim, int bits, const lbvh_real min[3],
                                    const lbvh_real max[3])
{
    lbvh_real half_centre[3];
    int a;
    if (!(min[0] <= max[0])) return lbvh_i_last_code(dim, bits);
    for (a = 0; a < 3; a++) half_centre[a] = lbvh_i_half_centre(min[a], max[a]);
    return lbvh_i_code_by(lattice, quantiles, dim, bits, half_centre);
}

/* The same by the lattice. */
LBVH_FN uint64_t lbvh_i_code(const lbvh_lattice *lattice, int dim, int bits, const lbvh_real min[3],
                             const lbvh_real max[3])
{
    return lbvh_i_code_of_box(lattice, NULL, dim, bits, min, max);
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
   >>quantiles: codes for elements of which some lie far from the others

   Where one element lies far from all others, or clusters lie far apart, many elements share a cell
   of the lattice, and their order is that of their ids: searches visit all of them. Then codes are
   made by quantiles (histogram equalisation, of one axis at a time: Gonzalez and Woods, Digital
   Image Processing). With a lattice of 8 cells, and 8 intervals of one cell, ideally:

       centres       A  B    C D   E    F   G                                        H
       lattice       0  0    0 0   0    0   0                                        7
       quantiles     0  1    2 3   4    5   6                                        7

   Codes have as many bits as before: sort, prefixes and depth need not know.

   Both sides decide by the same sample of up to 1024 elements. The lattice is not fit if the sample
   has 16 different centres or more beyond its different codes. Elements at one point are no fault
   of the lattice. Knots are elements of the sample, equally far apart in the order along an axis;
   all centres lie between the first and the last one. The serial build looks at the sample only
   where 16 neighbours in the sorted order have equal codes: if the sample has 16, so have all.
   ---------------------------------------------------------------------------------------------- */

enum { LBVH_I_SAMPLE = 1024, LBVH_I_ALIKE = 16 };

/* Mixes the bits of x: what it returns looks random. */
LBVH_FN uint32_t lbvh_i_hash(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7FEB352Du;
    x = (x ^ x >> 15) * 0x846CA68Bu;
    return x ^ x >> 16;
}

/* Element s of a sample of n elements: of all, or one of each of 1024 equal parts, at random, since
   elements may lie in memory with a period. */
LBVH_FN int32_t lbvh_i_sample_id(int32_t s, int32_t n)
{
    int32_t const begin = (int32_t)((int64_t)s * n / LBVH_I_SAMPLE),
                  end = (int32_t)((int64_t)(s + 1) * n / LBVH_I_SAMPLE);
    if (n <= LBVH_I_SAMPLE) return s;
    return begin + (int32_t)(lbvh_i_hash((uint32_t)s) % (uint32_t)(end - begin));
}

/* A number that ascends with x. */
LBVH_FN uint64_t lbvh_i_ascending(lbvh_real x)
{
    lbvh_i_bits const bits = lbvh_i_bits_of(x),
                      sign = (lbvh_i_bits)1 << (8 * sizeof bits - 1);
    return bits & sign ? (lbvh_i_bits)~bits : bits | sign;
}

/* A number for a centre; for others other ones (as good as surely). */
LBVH_FN uint64_t lbvh_i_centre_hash(const lbvh_real half_centre[3])
{
    uint64_t hash = 0;
    int a;
    for (a = 0; a < 3; a++) {
        hash = (hash ^ lbvh_i_bits_of(half_centre[a])) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return hash >> 1;
}

/* The element of a sorted sample that is knot j. */
LBVH_FN int32_t lbvh_i_knot_rank(int j, int32_t count)
{
    return (int32_t)(j * (count - 1) / LBVH_I_QUANTILES);
}

/* ------------------------------------------------------------------------------------------------
   >>nodes: the numbers and links of nodes, which all follow from the prefixes

   The codes of Karras' example. Below them, each inner node is a line that spans its leaves, with |
   at its split:

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
   has 0 at both. (Suppose they were equal, with b bits in common at both sides. The codes of the
   node share more than these, so bit b + 1 as well. It would have to be 1, as the node follows its
   left neighbour, and 0, as it precedes its right one.) The side with the larger prefix is its
   sibling's, and at the other side their parent ends.

        prefix[first]            prefix[last+1]
              |  first ... last  |     prefix[last+1] > prefix[first]: a left child, number `last`
                                       else: a right child, or the root, number `first`  (Karras)
   ---------------------------------------------------------------------------------------------- */

/* 1 if the node with leaves first .. last is a left child (see above). */
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

/* The box of a node becomes the one around the boxes of l and r, of which one may be the node. */
LBVH_FN void lbvh_i_unite(lbvh_node *node, const lbvh_node *l, const lbvh_node *r)
{
    int a;
    for (a = 0; a < 3; a++) {
        node->min[a] = lbvh_i_min(l->min[a], r->min[a]);
        node->max[a] = lbvh_i_max(l->max[a], r->max[a]);
    }
}

LBVH_FN int lbvh_i_same_box(const lbvh_node *l, const lbvh_node *r)
{
    return (l->min[0] == r->min[0]) & (l->min[1] == r->min[1]) & (l->min[2] == r->min[2]) &
           (l->max[0] == r->max[0]) & (l->max[1] == r->max[1]) & (l->max[2] == r->max[2]);
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

/* A walk that begins at node `at`, for what the constructors below have checked. */
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

/* gcc does not unroll a loop over three axes at -O2: this asks for it. */
#if defined(__GNUC__) && __GNUC__ >= 8 && !defined(__clang__) && !defined(__INTEL_COMPILER) && \
    !defined(__CUDACC__)
#define LBVH_I_UNROLL _Pragma("GCC unroll 3")
#else
#define LBVH_I_UNROLL
#endif

typedef struct lbvh_near {
    int32_t id, place;      /* the element found, and its place */
    lbvh_real distance2;    /* from the point to the box found, squared */
    lbvh_real reach2;       /* may be shrunk by you: boxes further away are skipped */
    uint32_t filter;        /* may be set by you, as for lbvh_overlap */
    int32_t last_id;        /* may be set by you: of leaves at exactly reach2, those with a larger
                               id are not wanted (initially: the largest number) */
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
    walk->last_id = INT32_MAX;
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

/* Puts a subtree that is within reach on the stack. */
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

/* 1 if the first leaf below an inner node has the lowest id (tree.mixed). Equal codes are sorted by
   id. LBVH_PLOC puts the cluster that begins first on the left, so a node begins with the first of
   its leaves in Morton order, and at one point all codes are equal. */
LBVH_FN int lbvh_i_begins_with_lowest(const lbvh *tree, const lbvh_node *node)
{
    if (tree->mixed) return 0;
    if (tree->desc.builder != LBVH_PLOC)
        return tree->prefix[lbvh_split_place(tree, node) + 1] > lbvh_i_code_bits(&tree->desc);
    return node->min[0] == node->max[0] && node->min[1] == node->max[1] &&
           node->min[2] == node->max[2];
}

/* 1 if the ids of all elements below a node are known to be above `id`. */
LBVH_FN_RARE int lbvh_i_ids_above(const lbvh *tree, int32_t at, int32_t id)
{
    if (id == INT32_MAX) return 0;
    if (!lbvh_is_leaf(tree, at) && !lbvh_i_begins_with_lowest(tree, &tree->node[at])) return 0;
    while (!lbvh_is_leaf(tree, at)) at = tree->node[at].link;
    return tree->node[at].link > id &&
           tree->node[at].min[0] <= tree->node[at].max[0]; /* else it was left out */
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
        if (!(away2 < walk->reach2)) /* further, or as far */
            if (away2 != walk->reach2 || lbvh_i_ids_above(tree, at, walk->last_id)) continue;
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
   `reach2` while there are fewer. O(k): for small k (lbvh_nearest takes a heap for others). */
LBVH_FN lbvh_real lbvh_keep_nearest(int32_t *ids, lbvh_real *distances2, int32_t k, int32_t *found,
                                    lbvh_real reach2, int32_t id, lbvh_real distance2)
{
    int32_t slot = *found;
    if (k < 1 || !(distance2 <= reach2)) return reach2;
    if (slot >= k) {
        if (distance2 > distances2[k - 1] || (distance2 == distances2[k - 1] && id > ids[k - 1]))
            return reach2;
        slot = k - 1;
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

/* The same for many nearest (k > LBVH_I_KEPT), in O(log k): a heap as soon as there are k, in which
   entry e is no nearer than entries 2 e + 1 and 2 e + 2 (Williams 1964). Entry 0 is the furthest.
   */
enum { LBVH_I_KEPT = 256 };

/* 1 if an entry is nearer than another, or as near and of a lower id. */
LBVH_FN int lbvh_i_nearer(lbvh_real distance2, int32_t id, lbvh_real other2, int32_t other)
{
    return distance2 < other2 || (distance2 == other2 && id < other);
}

/* Puts an entry at `at` of a heap of `count`, or further down. */
LBVH_FN void lbvh_i_sink(int32_t *ids, lbvh_real *distances2, int32_t count, int32_t at, int32_t id,
                         lbvh_real distance2)
{
    while (at < count / 2) {
        int32_t below = 2 * at + 1;
        if (below + 1 < count && lbvh_i_nearer(distances2[below], ids[below],
                                               distances2[below + 1], ids[below + 1]))
            below++;
        if (!lbvh_i_nearer(distance2, id, distances2[below], ids[below])) break;
        ids[at] = ids[below];
        distances2[at] = distances2[below];
        at = below;
    }
    ids[at] = id;
    distances2[at] = distance2;
}

LBVH_FN void lbvh_i_make_heap(int32_t *ids, lbvh_real *distances2, int32_t count)
{
    int32_t at = count / 2;
    while (at-- > 0) lbvh_i_sink(ids, distances2, count, at, ids[at], distances2[at]);
}

/* lbvh_keep_nearest by a heap. */
LBVH_FN_RARE lbvh_real lbvh_i_keep_in_heap(int32_t *ids, lbvh_real *distances2, int32_t k,
                                           int32_t *found, lbvh_real reach2, int32_t id,
                                           lbvh_real distance2)
{
    if (!(distance2 <= reach2)) return reach2;
    if (*found < k) {
        ids[*found] = id;
        distances2[*found] = distance2;
        if (++*found < k) return reach2;
        lbvh_i_make_heap(ids, distances2, k);
    } else if (lbvh_i_nearer(distance2, id, distances2[0], ids[0]))
        lbvh_i_sink(ids, distances2, k, 0, id, distance2);
    return distances2[0];
}

/* lbvh_keep_nearest for any k: lbvh_i_sort_nearest puts them in order at the end. */
LBVH_FN lbvh_real lbvh_i_keep_nearest(int32_t *ids, lbvh_real *distances2, int32_t k,
                                      int32_t *found, lbvh_real reach2, int32_t id,
                                      lbvh_real distance2)
{
    return k > LBVH_I_KEPT
               ? lbvh_i_keep_in_heap(ids, distances2, k, found, reach2, id, distance2)
               : lbvh_keep_nearest(ids, distances2, k, found, reach2, id, distance2);
}

/* Of k: the last one's id, which another at the same distance must be below. */
LBVH_FN int32_t lbvh_i_last_id(const int32_t *ids, int32_t k)
{
    return ids[k <= LBVH_I_KEPT ? k - 1 : 0];
}

/* The furthest one goes to the end, the others are a heap; and so on. */
LBVH_FN void lbvh_i_sort_nearest(int32_t *ids, lbvh_real *distances2, int32_t k, int32_t found)
{
    int32_t last;
    if (k <= LBVH_I_KEPT) return;
    if (found < k) lbvh_i_make_heap(ids, distances2, found);
    for (last = found - 1; last > 0; last--) {
        int32_t const id = ids[last];
        lbvh_real const distance2 = distances2[last];
        ids[last] = ids[0];
        distances2[last] = distances2[0];
        lbvh_i_sink(ids, distances2, last, 0, id, distance2);
    }
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

/* Puts a subtree that the ray enters on the stack. */
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
   that contain the origin. Numbers of a direction below 3e-39 (double: 6e-309) count as 0. */
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
   >>triangles: tests for the triangles in the boxes. Points have 3 numbers.
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

/* a + t d: a point on an edge. */
LBVH_FN void lbvh_i_along(const lbvh_real *a, const lbvh_real d[3], lbvh_real t, lbvh_real q[3])
{
    q[0] = a[0] + lbvh_i_times(t, d[0]);
    q[1] = a[1] + lbvh_i_times(t, d[1]);
    q[2] = a[2] + lbvh_i_times(t, d[2]);
}

/* q = v. Returns the feature. */
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

#define LBVH_I_SLIVER ((lbvh_real)0.0009765625) /* 2^-10 */

/* 1 if the area is small for the edges: the height above the longest one is at most 1/64 to 1/16 of
   it. normal: ab x ac */
LBVH_FN int lbvh_i_is_sliver(const lbvh_real ab[3], const lbvh_real ac[3],
                             const lbvh_real normal[3])
{
    lbvh_real const edges2 = lbvh_i_dot(ab, ab) + lbvh_i_dot(ac, ac);
    return lbvh_i_dot(normal, normal) < lbvh_i_times(edges2, edges2) * LBVH_I_SLIVER;
}

/* The projection r of p into the face of a sliver whose longest edge is ab; 0: it lies outside. In
   coordinates along ab and along the height, whose rounding errors are those of ab, not those of
   the small area: of p - a, the part along ab goes first, and what is left is compared with the
   height. */
LBVH_FN int lbvh_i_into_sliver(const lbvh_real *p, const lbvh_real *a, const lbvh_real *b,
                               const lbvh_real *c, lbvh_real r[3])
{
    lbvh_real ab[3], ac[3], ap[3], height[3], above[3], length2, foot, along, up, of_b;
    lbvh_i_minus(b, a, ab);
    lbvh_i_minus(c, a, ac);
    lbvh_i_minus(p, a, ap);
    length2 = lbvh_i_dot(ab, ab);
    foot = lbvh_i_over(lbvh_i_dot(ab, ac), length2);
    along = lbvh_i_over(lbvh_i_dot(ab, ap), length2);
    lbvh_i_along(ac, ab, -foot, height);
    lbvh_i_along(ap, ab, -along, above);
    up = lbvh_i_over(lbvh_i_dot(height, above), lbvh_i_dot(height, height));
    of_b = along - lbvh_i_times(up, foot);
    lbvh_i_along(a, ab, of_b, r);
    lbvh_i_along(r, ac, up, r);
    return up > 0 && of_b > 0 && up + of_b < 1;
}

/* q, the closest point of the edges of a sliver, becomes the projection of p, where that is nearer.
   Returns the feature. */
LBVH_FN_RARE lbvh_feature lbvh_i_closest_on_sliver(const lbvh_real *p, const lbvh_real *a,
                                                   const lbvh_real *b, const lbvh_real *c,
                                                   lbvh_feature edge, lbvh_real q[3])
{
    lbvh_real const ab = lbvh_i_distance2(a, b), bc = lbvh_i_distance2(b, c),
                    ca = lbvh_i_distance2(c, a);
    lbvh_real r[3];
    int const inside = ab >= bc && ab >= ca ? lbvh_i_into_sliver(p, a, b, c, r)
                       : bc >= ca           ? lbvh_i_into_sliver(p, b, c, a, r)
                                            : lbvh_i_into_sliver(p, c, a, b, r);
    if (!inside || !(lbvh_i_distance2(r, p) < lbvh_i_distance2(q, p))) return edge;
    return lbvh_i_vertex(LBVH_FACE, r, q);
}

/* The point q of triangle a b c closest to p, and its feature: face, edge or vertex. A sphere
   touches the triangle where q is no further than its radius from p. Triangles without area are
   segments or points. q is at most 1e-5 of the longest edge further from p than the closest point
   is, whatever the height of the triangle, beside the rounding of coordinates and distances.
   Products of four lengths must be representable: in float, edges and distances of 1e-9 to 1e9.

   from_a : from_b : from_c are the areas of the triangles p b c, p c a and p a b, projected along
   the normal: the barycentric weights of p's projection q = a + (from_b ab + from_c ac) / total
   (Ericson section 3.4). If one is not above 0, the projection lies outside, and q is the nearest
   point of the edges, found by clamping (section 5.1.2). The rounding errors of these areas are
   small for an ordinary triangle, but not for a sliver. (Where p projects into the face, the
   nearest point of the edges is not a vertex.) */
LBVH_FN lbvh_feature lbvh_closest_on_triangle(const lbvh_real *p, const lbvh_real *a,
                                              const lbvh_real *b, const lbvh_real *c,
                                              lbvh_real q[3])
{
    lbvh_real ab[3], ac[3], ap[3], bp[3], cp[3], normal[3], part[3], from_a, from_b, from_c, total;
    lbvh_feature edge;
    int inside;
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
    total = from_a + from_b + from_c;
    inside = from_a > 0 && from_b > 0 && from_c > 0 && lbvh_i_finite(total);
    if (inside && !lbvh_i_is_sliver(ab, ac, normal)) {
        lbvh_i_along(a, ab, lbvh_i_over(from_b, total), q);
        lbvh_i_along(q, ac, lbvh_i_over(from_c, total), q);
        return LBVH_FACE;
    }
    edge = lbvh_i_closest_on_edges(p, a, b, c, q);
    if (!inside && (edge >= LBVH_VERTEX_A || !lbvh_i_is_sliver(ab, ac, normal))) return edge;
    return lbvh_i_closest_on_sliver(p, a, b, c, edge, q);
}

LBVH_FN lbvh_real lbvh_i_absolute(lbvh_real x) { return x < 0 ? -x : x; }

/* v[k], without an index that is not known when compiling. */
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

   The point a + u (b - a) + v (c - a) is on the triangle. origin + t direction is off it by some
   units in the last place of the distance, and of edge * edge / height; the more, the flatter the
   line meets it. For a height of 1e-3 edges that is 1e-4 edges as a rule (float), and a tenth of an
   edge where the line is nearly in the plane: on slivers take the point of u and v.

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
   >>packet: what several searches have in common (>>packets, here and in cuda/lbvh_packets.cu)
   ---------------------------------------------------------------------------------------------- */

/* The union of a packet's searches: the box around their boxes or centres, and their squared radius
   (boxes: -1). */
typedef struct lbvh_i_packet {
    lbvh_real min[3], max[3], reach2;
} lbvh_i_packet;

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

/* ------------------------------------------------------------------------------------------------
   >>cuda-api: the same on a GPU. Plain C may call these functions; one .cu file with
   LBVH_IMPLEMENTATION and LBVH_CUDA makes them. All pointers d_... are device memory. No call waits
   for the GPU unless its comment says so; every launch error is returned as LBVH_CUDA_ERROR. A call
   may clear a CUDA error that the caller left unread before.
   ---------------------------------------------------------------------------------------------- */

#ifdef LBVH_CUDA

#if LBVH_I_REAL_KIND == 2 && !defined(NEARFIELD_NAMESPACE)
#define lbvh_cuda_reserve        lbvh_f64_cuda_reserve
#define lbvh_cuda_bytes_for      lbvh_f64_cuda_bytes_for
#define lbvh_cuda_build          lbvh_f64_cuda_build
#define lbvh_cuda_refit          lbvh_f64_cuda_refit
#define lbvh_cuda_check          lbvh_f64_cuda_check
#define lbvh_cuda_free           lbvh_f64_cuda_free
#define lbvh_cuda_upload         lbvh_f64_cuda_upload
#define lbvh_cuda_download       lbvh_f64_cuda_download
#define lbvh_cuda_boxes          lbvh_f64_cuda_boxes
#define lbvh_cuda_count_pairs    lbvh_f64_cuda_count_pairs
#define lbvh_cuda_pairs          lbvh_f64_cuda_pairs
#define lbvh_cuda_count_overlaps lbvh_f64_cuda_count_overlaps
#define lbvh_cuda_overlaps       lbvh_f64_cuda_overlaps
#define lbvh_cuda_nearest        lbvh_f64_cuda_nearest
#endif

/* What kernels take by value: a tree whose arrays lie in device memory. A type of its own: host
   code that would read device pointers does not compile. */
typedef struct lbvh_device { lbvh tree; } lbvh_device;

/* Device-side status, until lbvh_cuda_check fetches it. */
typedef struct lbvh_cuda_facts {
    uint64_t least[3], most[3]; /* bounds of the half centres, as integers of the same order; least:
                                   the maximum of the negated ones */
    int32_t first_bad[3];       /* INT32_MAX - (first element that is not finite, inverted, badly
                                   indexed), 0 = none */
    /* many elements: */
    int32_t by_quantiles;       /* 1 if codes are made by quantiles */
    /* and codes of 63 bits: */
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
   overlaps; lbvh_cuda_check reports them. LBVH_BAD_OPTION also for LBVH_PLOC, which is serial. */
LBVH_API lbvh_result lbvh_cuda_build(lbvh_cuda *gpu, const lbvh_desc *desc, const lbvh_real *d_data,
                                     size_t stride, int32_t n, struct CUstream_st *stream);

/* As lbvh_refit. Elements that are invalid now are left out; elements left out before and valid now
   are included again. After LBVH_CUDA_ERROR the tree is empty. */
LBVH_API lbvh_result lbvh_cuda_refit(lbvh_cuda *gpu, const lbvh_real *d_data, size_t stride,
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

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
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

/* Inlined wherever it is called, on the CPU alone; LBVH_FN_HOT: on both sides. */
#if defined(__GNUC__) || defined(__clang__)
#define LBVH_I_HOT static inline __attribute__((always_inline))
#else
#define LBVH_I_HOT static inline
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

enum { LBVH_I_N_MAX = (1 << 30) - 512 };                            /* leaves at most */
enum { LBVH_I_NODE, LBVH_I_PREFIX, LBVH_I_MASK, LBVH_I_CODE };      /* blocks of a tree */

/* Memory, defaults and checks: >>memory and >>resolve. */
typedef enum lbvh_i_growth { LBVH_I_EXACT, LBVH_I_AHEAD } lbvh_i_growth;
static lbvh_result lbvh_i_prepare(lbvh *tree, int32_t n, lbvh_i_growth growth);
static void lbvh_i_make_empty(lbvh *tree);
static lbvh_result lbvh_i_begin(lbvh *tree, const lbvh_desc *desc);
static size_t lbvh_i_stride(const lbvh_desc *desc, size_t stride);
static size_t lbvh_i_stride_of(int numbers, size_t stride);

/* The seams: where a plain form below enters its faster ones (>>seams). Each of these functions
   returns 1 if it has done the work, with its `*result`. */
#ifdef LBVH_PLAIN
#define LBVH_I_SEAM(faster) 0
#else
#ifndef LBVH_I_FASTER
#define LBVH_I_FASTER() 1 /* tests choose */
#endif
#define LBVH_I_SEAM(faster) (LBVH_I_FASTER() && (faster))
struct lbvh_i_taker;
struct lbvh_i_lists;
struct lbvh_i_rows;
LBVH_I_HOT int lbvh_i_build_faster(lbvh *tree, const lbvh_real *data, size_t stride, int32_t n,
                                   lbvh_result *result);
LBVH_I_HOT int lbvh_i_refit_faster(lbvh *tree, const lbvh_real *data, size_t stride,
                                   lbvh_result *result);
LBVH_I_HOT int lbvh_i_pairs_faster(const lbvh *tree, struct lbvh_i_taker *taker,
                                   lbvh_result *result);
LBVH_I_HOT int lbvh_i_counts_faster(const struct lbvh_i_lists *lists, lbvh_result *result);
LBVH_I_HOT int lbvh_i_lists_faster(const struct lbvh_i_lists *lists, int64_t *needed,
                                   lbvh_result *result);
LBVH_I_HOT int lbvh_i_rows_faster(const struct lbvh_i_rows *rows, int flags, lbvh_result *result);
#endif
#if defined(LBVH_WITH_NEAREST) && !defined(LBVH_PLAIN)
#define LBVH_I_BY_RUNS
#define LBVH_I_RUNS(by_runs) LBVH_I_SEAM(by_runs)
static int lbvh_i_nearest_by_runs(const lbvh *tree, const lbvh_real *p, int32_t k, lbvh_real reach,
                                  int32_t *ids, lbvh_real *distances2, int32_t *found);
static int lbvh_i_rows_by_runs(const struct lbvh_i_rows *rows, const uint64_t *key, int32_t begin,
                               int32_t end);
#else
#define LBVH_I_RUNS(by_runs) 0
#endif

/* ------------------------------------------------------------------------------------------------
   >>sort: radix sort of ids by code, ascending within equal codes

   A key is one word: 32 bits to sort by, then the id. Elements are sorted by the lower half of
   their codes first, then by the upper half. A radix sort is stable: where upper halves are equal,
   the order of the lower halves stays.

   Keys and codes lie where the nodes will be, 64 bytes for each leaf:

       | keys 8 n | spare 8 n | codes 8 n | ...... |          the sort
       | inner nodes 32 (n - 1)         | leaves 32 n  | 32 |   then leaves, by the ids of the keys;
                                                              then, over the keys, inner nodes
   PLOC, between sort and leaves: new keys in spare, new prefixes over the last n bytes. n = 1: the
   leaf is written over its key, which is read before.
   ---------------------------------------------------------------------------------------------- */

typedef struct lbvh_i_order {
    uint64_t *key, *spare;  /* [n] after the sort by place */
    uint64_t *code;         /* [n] by id */
} lbvh_i_order;

static int32_t lbvh_i_key_id(uint64_t key) { return (int32_t)(uint32_t)key; }

/* Digit counts of the keys: four digits of 8 bits. */
typedef struct lbvh_i_histogram { int32_t count[4][256]; } lbvh_i_histogram;

/* Counts the digits of one key. */
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

/* Sorts n keys by their upper 32 bits, whose digits are counted: four stable passes of 8 bits, the
   lowest first (LSD). The number of passes is even: the result is in key. */
static void lbvh_i_radix_counted(uint64_t *key, uint64_t *spare, int32_t n,
                                 lbvh_i_histogram *histogram)
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

/* The same, with the digits not counted yet. */
static void lbvh_i_radix(uint64_t *key, uint64_t *spare, int32_t n)
{
    lbvh_i_histogram histogram;
    int32_t k;
    memset(&histogram, 0, sizeof histogram);
    for (k = 0; k < n; k++) lbvh_i_count_digits(&histogram, (uint32_t)(key[k] >> 32));
    lbvh_i_radix_counted(key, spare, n, &histogram);
}

/* Sorts n elements by code: by the lower half, then by the upper one. */
static void lbvh_i_sort(const lbvh_i_order *order, int32_t n)
{
    int32_t k;
    for (k = 0; k < n; k++) order->key[k] = order->code[k] << 32 | (uint32_t)k;
    lbvh_i_radix(order->key, order->spare, n);
    for (k = 0; k < n; k++) {
        int32_t const id = lbvh_i_key_id(order->key[k]);
        order->key[k] = order->code[id] >> 32 << 32 | (uint32_t)id;
    }
    lbvh_i_radix(order->key, order->spare, n);
}

/* ------------------------------------------------------------------------------------------------
   >>build: a tree over n elements, in the steps of lbvh_i_build_plain at the end

       1. the bounds of all centres, and the lattice over them     lbvh_i_measure_centres
       2. a Morton code for each element (>>codes)
       3. the elements sorted by code (>>sort)
       4. the prefix of each border between two leaves             lbvh_i_make_prefixes
          2 to 4 again, if the lattice was not fit (>>quantiles)   lbvh_i_take_quantiles
       5. PLOC alone: another order, and its prefixes (>>ploc)     lbvh_i_ploc
       6. the leaves, in this order                                lbvh_i_make_leaf
       7. the inner nodes, top-down from the codes                 lbvh_i_split
          or bottom-up from the prefixes                           lbvh_i_merge

   Every faster form (>>faster) makes the same bits.
   ---------------------------------------------------------------------------------------------- */

/* 1 if desc.min and desc.max are set. */
static int lbvh_i_bounds_given(const lbvh_desc *desc)
{
    int a;
    /* a NaN counts as given */
    for (a = 0; a < desc->dim; a++) if (!(desc->min[a] == 0 && desc->max[a] == 0)) return 1;
    return 0;
}

/* Notes the first invalid element. Returns its error, or LBVH_OK where desc.skip_invalid leaves it
   out. */
static lbvh_result lbvh_i_note_invalid(lbvh *tree, lbvh_result result, int32_t i)
{
    if (result == LBVH_OK) return LBVH_OK;
    if (tree->bad_id < 0) tree->bad_id = i;
    return tree->desc.skip_invalid ? LBVH_OK : result;
}

/* The caller's bounds, of half centres. */
LBVH_FN void lbvh_i_given_bounds(const lbvh_desc *desc, lbvh_real least[3], lbvh_real most[3])
{
    int a;
    for (a = 0; a < 3; a++) {
        least[a] = desc->min[a] / 2;
        most[a] = desc->max[a] / 2;
    }
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
        if (box != LBVH_OK) continue; /* left out */
        for (a = 0; a < 3; a++) {
            lbvh_real const half_centre = lbvh_i_half_centre(min[a], max[a]);
            least[a] = lbvh_i_min(least[a], half_centre);
            most[a] = lbvh_i_max(most[a], half_centre);
        }
    }
    return LBVH_OK;
}

/* The lattice, over the centres of all elements, or over the caller's bounds, which replace them;
   and how many nodes there will be. From here nothing fails: the tree counts as built. */
static void lbvh_i_begin_nodes(lbvh *tree, int32_t n, lbvh_real least[3], lbvh_real most[3])
{
    const lbvh_desc *desc = &tree->desc;
    if (lbvh_i_bounds_given(desc)) lbvh_i_given_bounds(desc, least, most);
    tree->lattice = lbvh_i_lattice_of(desc->dim, desc->bits, least, most);
    tree->built = 1;
    tree->coded = desc->builder != LBVH_PLOC;
    tree->n = n;
    tree->first_leaf = n > 0 ? n - 1 : 0;
}

/* The prefixes of all borders. Returns the number of borders between equal codes. */
static int32_t lbvh_i_make_prefixes(lbvh *tree, const lbvh_i_order *order)
{
    int const bits = lbvh_i_code_bits(&tree->desc);
    int32_t k, equal = 0;
    tree->prefix[0] = tree->prefix[tree->n] = 0;
    for (k = 1; k < tree->n; k++) {
        uint64_t const left = order->code[lbvh_i_key_id(order->key[k - 1])],
                       right = order->code[lbvh_i_key_id(order->key[k])];
        tree->prefix[k] = (uint8_t)(1 + lbvh_i_common(bits, left, right, k - 1, k));
        equal += left == right;
    }
    return equal;
}

/* Steps 2 to 4; quantiles: NULL, or what codes are made by. Returns the number of borders between
   equal codes. */
static int32_t lbvh_i_order_elements(lbvh *tree, const lbvh_real *data, size_t stride,
                                     const lbvh_i_quantiles *quantiles, const lbvh_i_order *order)
{
    lbvh_real min[3], max[3];
    int32_t i;
    for (i = 0; i < tree->n; i++) {
        (void)lbvh_box_of(&tree->desc, data, stride, i, min, max);
        order->code[i] = lbvh_i_code_of_box(&tree->lattice, quantiles, tree->desc.dim,
                                            tree->desc.bits, min, max);
    }
    lbvh_i_sort(order, tree->n);
    return lbvh_i_make_prefixes(tree, order);
}

/* Quantiles, if the lattice, from least to most, is not fit for these elements: `equal` borders lie
   between equal codes (>>sample). Else NULL. memory: where no keys and codes lie. */
static const lbvh_i_quantiles *lbvh_i_take_quantiles(lbvh *tree, const lbvh_real *data,
                                                     size_t stride, int32_t equal,
                                                     const lbvh_real least[3],
                                                     const lbvh_real most[3], uint64_t *memory,
                                                     lbvh_i_quantiles *room);

/* The leaf at a place, of element `id`. Its skip comes with the inner nodes. */
LBVH_FN_HOT void lbvh_i_make_leaf(const lbvh *tree, const lbvh_real *data, size_t stride,
                                  int32_t place, int32_t id)
{
    lbvh_node *leaf = lbvh_i_leaf(tree, place);
    if (tree->mask) tree->mask[tree->first_leaf + place] = tree->desc.masks[id];
    (void)lbvh_box_of(&tree->desc, data, stride, id, leaf->min, leaf->max);
    leaf->link = id;
    lbvh_i_fill_gaps(leaf);
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
            lbvh_i_unite(&node, &node, &tree->node[node.link]);
            tree->node[at] = node;
            if (tree->mask) tree->mask[at] = tree->mask[node.link] | tree->mask[right];
        }
        if (k < tree->n - 1) waiting[top++] = first;
    }
}

/* LBVH_PLOC: another order of the elements, with its prefixes (>>ploc). */
static void lbvh_i_ploc(const lbvh *tree, const lbvh_real *data, size_t stride,
                        lbvh_i_order *order);

/* All steps. */
static lbvh_result lbvh_i_build_plain(lbvh *tree, const lbvh_real *data, size_t stride, int32_t n)
{
    lbvh_i_order order;
    lbvh_i_quantiles room;
    const lbvh_i_quantiles *quantiles;
    lbvh_real least[3], most[3];
    int32_t k, equal;
    lbvh_result const result = lbvh_i_measure_centres(tree, data, stride, 0, n, least, most);
    if (result != LBVH_OK) return result;
    lbvh_i_begin_nodes(tree, n, least, most);
    if (n == 0) return LBVH_OK;
    order.key = (uint64_t *)(void *)tree->node;
    order.spare = order.key + n;
    order.code = order.spare + n;
    equal = lbvh_i_order_elements(tree, data, stride, NULL, &order);
    quantiles = lbvh_i_take_quantiles(tree, data, stride, equal, least, most, order.code + n,
                                      &room);
    if (quantiles) (void)lbvh_i_order_elements(tree, data, stride, quantiles, &order);
    if (tree->desc.builder == LBVH_PLOC) lbvh_i_ploc(tree, data, stride, &order);
    if (tree->code) /* kept; before the leaves, which may lie over order.code */
        for (k = 0; k < n; k++) tree->code[k] = order.code[lbvh_i_key_id(order.key[k])];
    for (k = 0; k < n; k++)
        lbvh_i_make_leaf(tree, data, stride, k, lbvh_i_key_id(order.key[k]));
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
    if (LBVH_I_SEAM(lbvh_i_build_faster(tree, data, stride, n, &result))) return result;
    return lbvh_i_build_plain(tree, data, stride, n);
}

/* ------------------------------------------------------------------------------------------------
   >>ploc: LBVH_PLOC, clusters whose common box is small merge first (Meister and Bittner 2018; by
   subtrees of the sorted leaves: Benthin 2024)

   MERGE joins what has the longest common prefix, even where a large triangle meets a small one.
   PLOC chooses by area. It begins with the sorted leaves, each of which is a cluster, and goes up
   the tree of MERGE: a subtree joins the clusters of its two children. Where these are more than 16
   (32 at most), rounds follow until 16 are left or fewer (in the root: 1). In a round every cluster
   finds the partner with which its box is smallest, and two that choose each other
   merge. Five points on a line:

       place    0   4 6       14    20
                A   B C       D     E     round 1: A chooses B, B and C each other, D and E too
                |   \_/       \_____/     B, C become cluster 1 (edge 2), D, E cluster 2 (edge 6)
                A    1           2        round 2: A and 1 choose each other (edge 6; 1 and 2: 16)
                \____/           |        they become cluster 3
                   3             2        round 3: the root
       border 0     1 2        3     4 5
       prefix 0     2 3        1     2 0  1 + the depth of the node that is split there

   A window is a row of at most LBVH_I_WINDOW clusters, numbered from 0; i and j are such numbers.
   Two clusters may merge at a cost: half the surface of the box around both (2D: half the
   perimeter). The key of a pair is its cost with the 5 lowest bits replaced by i ^ j:

       cost, as an integer of the same order | i ^ j       (^: exclusive or)

   Both clusters of a pair have the same key for it, and the key of i names its partner:
   j = i ^ (key & 31). No two pairs with the same i have the same key, so every cluster has one
   nearest partner, and the smallest key of all is that of two clusters that choose each other.
   Where all costs are equal, i and i ^ 1 do: half of the clusters are left after a round.

   A cluster compares itself to the 8 before and the 8 after it (each pair is computed twice here,
   once in >>faster-ploc). A round merges one pair at least. So a window takes 31 rounds at most,
   all windows together n - 1, and a build O(n) time, whatever the input.

   A merged cluster has number r - 1 of an inner node, where r is the larger one of the first places
   of its children. That place is nobody's first from then on: no two clusters have the same number,
   and no counter is needed. Then the tree is walked depth first, which gives leaves their new
   places; border k gets 1 + the depth of the node that is split there as its prefix. This is all
   that the shape needs (>>nodes): boxes, links and skips are made by lbvh_i_merge, and a refit, a
   file and every walk see a tree like any other. Where a leaf would lie below more than
   LBVH_STACK - 1 nodes, the tree stays that of MERGE.
   ---------------------------------------------------------------------------------------------- */

enum {
    LBVH_I_WINDOW = 32,     /* clusters compared at once */
    LBVH_I_CLUSTERS = 16,   /* that a subtree hands up */
    LBVH_I_RADIUS = 8       /* neighbours compared, on either side */
};

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

typedef struct lbvh_i_cluster {
    lbvh_real min[3], max[3];   /* bounded: no cost is a NaN */
    int32_t node, first;        /* its node, and the first place of its subtree */
} lbvh_i_cluster;

/* The clusters of subtrees whose siblings are still to come: those of the current one lie last. */
typedef struct lbvh_i_clusters {
    lbvh_i_cluster cluster[(int)LBVH_STACK * LBVH_I_CLUSTERS + LBVH_I_WINDOW];
    int32_t all;
    int32_t waiting[LBVH_STACK], many[LBVH_STACK]; /* of each subtree: first leaf, clusters */
    int32_t top;                                   /* subtrees that wait */
} lbvh_i_clusters;

/* The children of cluster `node`: where codes will be. */
static int32_t *lbvh_i_cluster_children(const lbvh *tree, int32_t node)
{
    return (int32_t *)tree->block[LBVH_I_CODE].memory + 2 * (size_t)node;
}

/* The key of clusters i and j of a window. */
static lbvh_i_pair lbvh_i_key_of(int dim, const lbvh_i_cluster *window, int32_t i, int32_t j)
{
    const lbvh_i_cluster *p = &window[i], *q = &window[j];
    return lbvh_i_pair_key(
        lbvh_i_half_area(dim, lbvh_i_edge(p->min[0], p->max[0], q->min[0], q->max[0]),
                         lbvh_i_edge(p->min[1], p->max[1], q->min[1], q->max[1]),
                         lbvh_i_edge(p->min[2], p->max[2], q->min[2], q->max[2])), i, j);
}

/* The partner of cluster i of a window: of the 8 before and the 8 after it, the one with the
   smallest key. */
static int32_t lbvh_i_find_partner(int dim, const lbvh_i_cluster *window, int32_t count, int32_t i)
{
    int32_t const begin = i < LBVH_I_RADIUS ? 0 : i - LBVH_I_RADIUS,
                  end = i + LBVH_I_RADIUS < count ? i + LBVH_I_RADIUS : count - 1;
    lbvh_i_pair best = lbvh_i_no_pair();
    int32_t j, partner = i;
    for (j = begin; j <= end; j++) {
        lbvh_i_pair key;
        if (j == i) continue;
        key = lbvh_i_key_of(dim, window, i, j);
        if (key >= best) continue;
        best = key;
        partner = j;
    }
    return partner;
}

/* Cluster i becomes that of itself and j. */
static void lbvh_i_merge_clusters(const lbvh *tree, lbvh_i_cluster *i, const lbvh_i_cluster *j)
{
    int32_t const at = (i->first > j->first ? i->first : j->first) - 1;
    int32_t *const child = lbvh_i_cluster_children(tree, at);
    int a;
    for (a = 0; a < 3; a++) {
        i->min[a] = lbvh_i_min(i->min[a], j->min[a]);
        i->max[a] = lbvh_i_max(i->max[a], j->max[a]);
    }
    child[0] = i->node;
    child[1] = j->node;
    i->node = at;
    if (j->first < i->first) i->first = j->first;
}

/* A round: merges all pairs of a window that chose each other. Those left keep their order. Returns
   their number. */
static int32_t lbvh_i_merge_partners(const lbvh *tree, lbvh_i_cluster *window, int32_t count)
{
    int32_t partner[LBVH_I_WINDOW], i, left = 0;
    for (i = 0; i < count; i++)
        partner[i] = lbvh_i_find_partner(tree->desc.dim, window, count, i);
    for (i = 0; i < count; i++) {
        int32_t const j = partner[i];
        int const chosen = partner[j] == i;
        if (chosen && j < i) continue; /* merged into j */
        if (chosen) lbvh_i_merge_clusters(tree, &window[i], &window[j]);
        window[left++] = window[i];
    }
    return left;
}

/* Leaf k as a cluster. */
static lbvh_i_cluster lbvh_i_leaf_cluster(const lbvh *tree, const lbvh_real *data, size_t stride,
                                          int32_t k, int32_t id)
{
    lbvh_i_cluster c;
    int a;
    (void)lbvh_box_of(&tree->desc, data, stride, id, c.min, c.max);
    for (a = 0; a < 3; a++) {
        c.min[a] = lbvh_i_bounded(c.min[a]);
        c.max[a] = lbvh_i_bounded(c.max[a]);
    }
    c.node = tree->first_leaf + k;
    c.first = k;
    return c;
}

/* All clusters, in the order in which lbvh_i_merge makes its nodes: from leaf k up to the first
   subtree that is a left child. Returns the root. */
static int32_t lbvh_i_cluster_all(const lbvh *tree, const lbvh_real *data, size_t stride,
                                  const uint64_t *key)
{
    lbvh_i_clusters c;
    int32_t k;
    c.all = c.top = 0;
    for (k = 0; k < tree->n; k++) {
        int32_t first = k, count = 1;
        c.cluster[c.all++] = lbvh_i_leaf_cluster(tree, data, stride, k, lbvh_i_key_id(key[k]));
        while (c.top > 0 && !lbvh_i_is_left(tree->prefix, first, k)) {
            int32_t most;
            first = c.waiting[--c.top];
            count += c.many[c.top];
            most = first == 0 && k == tree->n - 1 ? 1 : (int32_t)LBVH_I_CLUSTERS;
            while (count > most) {
                c.all -= count;
                count = lbvh_i_merge_partners(tree, &c.cluster[c.all], count);
                c.all += count;
            }
        }
        c.waiting[c.top] = first;
        c.many[c.top++] = count;
    }
    return c.cluster[0].node;
}

/* Walks the clusters depth first: their keys to `moved`, in the order of the new places, and the
   new prefixes. 0: a leaf would lie too deep; prefixes are as they were. */
static int lbvh_i_number_clusters(const lbvh *tree, const uint64_t *key, uint64_t *moved,
                                  int32_t root)
{
    /* where the last leaves will be */
    uint8_t *const prefix = (uint8_t *)(tree->node + 2 * (size_t)tree->n) - tree->n;
    int32_t pending[LBVH_STACK], depth[LBVH_STACK]; /* right children, and the depth of parents */
    int32_t at = root, level = 0, place = 0, top = 0;
    for (;;) {
        for (; at < tree->first_leaf; level++) {
            const int32_t *child = lbvh_i_cluster_children(tree, at);
            if (level == LBVH_STACK - 1) return 0;
            pending[top] = child[1];
            depth[top++] = level;
            at = child[0];
        }
        moved[place++] = key[at - tree->first_leaf];
        if (top == 0) break;
        at = pending[--top];
        level = depth[top] + 1;
        prefix[place] = (uint8_t)level;
    }
    memcpy(tree->prefix + 1, prefix + 1, (size_t)tree->n - 1);
    return 1;
}

/* All steps. A tree of two leaves has one form. */
static void lbvh_i_ploc(const lbvh *tree, const lbvh_real *data, size_t stride,
                        lbvh_i_order *order)
{
    int32_t root;
    if (tree->n == 2) tree->prefix[1] = 1; /* the depth of the root, and 1 */
    if (tree->n < 3) return;
    root = lbvh_i_cluster_all(tree, data, stride, order->key);
    if (lbvh_i_number_clusters(tree, order->key, order->spare, root)) order->key = order->spare;
}

/* ------------------------------------------------------------------------------------------------
   >>sample: is the lattice fit, and if not, the knots (>>quantiles)
   ---------------------------------------------------------------------------------------------- */

typedef struct lbvh_i_sampled {
    lbvh_i_order order;             /* its codes: numbers to sort by */
    lbvh_real (*half_centre)[3];
    int32_t count;
} lbvh_i_sampled;

/* The sample, without elements that are left out, in 48 bytes each (float: 36) of `memory`. */
static void lbvh_i_take_sample(const lbvh *tree, const lbvh_real *data, size_t stride,
                               uint64_t *memory, lbvh_i_sampled *sample)
{
    int32_t const size = tree->n < LBVH_I_SAMPLE ? tree->n : (int32_t)LBVH_I_SAMPLE;
    int32_t s;
    sample->order.key = memory;
    sample->order.spare = memory + size;
    sample->order.code = memory + 2 * size;
    sample->half_centre = (lbvh_real (*)[3])(void *)(memory + 3 * size);
    sample->count = 0;
    for (s = 0; s < size; s++) {
        int32_t const i = lbvh_i_sample_id(s, tree->n);
        lbvh_real *const half_centre = sample->half_centre[sample->count];
        lbvh_real min[3], max[3];
        int a;
        if (lbvh_box_of(&tree->desc, data, stride, i, min, max) != LBVH_OK) continue;
        for (a = 0; a < 3; a++) half_centre[a] = lbvh_i_half_centre(min[a], max[a]);
        sample->count++;
    }
}

/* Sorts the sample by its numbers. Returns how many of them are different. */
static int32_t lbvh_i_sort_sample(const lbvh_i_sampled *sample)
{
    const lbvh_i_order *order = &sample->order;
    int32_t k, different = sample->count > 0;
    lbvh_i_sort(order, sample->count);
    for (k = 1; k < sample->count; k++)
        different += order->code[lbvh_i_key_id(order->key[k - 1])] !=
                     order->code[lbvh_i_key_id(order->key[k])];
    return different;
}

/* 1 if the lattice gives the sample too few codes. */
static int lbvh_i_lattice_fails(const lbvh *tree, const lbvh_i_sampled *sample)
{
    int32_t s, codes;
    for (s = 0; s < sample->count; s++)
        sample->order.code[s] = lbvh_i_code_at(&tree->lattice, tree->desc.dim, tree->desc.bits,
                                               sample->half_centre[s]);
    codes = lbvh_i_sort_sample(sample);
    if (sample->count - codes < LBVH_I_ALIKE) return 0;
    for (s = 0; s < sample->count; s++)
        sample->order.code[s] = lbvh_i_centre_hash(sample->half_centre[s]);
    return lbvh_i_sort_sample(sample) - codes >= LBVH_I_ALIKE;
}

/* The knots along an axis on which all half centres are from least to most. */
static void lbvh_i_make_knots(const lbvh_i_sampled *sample, int a, lbvh_real least, lbvh_real most,
                              lbvh_real knot[LBVH_I_QUANTILES + 1])
{
    int32_t s;
    int j;
    for (s = 0; s < sample->count; s++)
        sample->order.code[s] = lbvh_i_ascending(sample->half_centre[s][a]);
    (void)lbvh_i_sort_sample(sample);
    for (j = 0; j <= LBVH_I_QUANTILES; j++) {
        s = lbvh_i_key_id(sample->order.key[lbvh_i_knot_rank(j, sample->count)]);
        knot[j] = sample->half_centre[s][a];
    }
    knot[0] = lbvh_i_min(knot[0], least);
    knot[LBVH_I_QUANTILES] = lbvh_i_max(knot[LBVH_I_QUANTILES], most);
}

/* Where quantiles are taken, tree.lattice becomes one over the middle three quarters of each axis:
   points that search are put in order by it. */
static const lbvh_i_quantiles *lbvh_i_take_quantiles(lbvh *tree, const lbvh_real *data,
                                                     size_t stride, int32_t equal,
                                                     const lbvh_real least[3],
                                                     const lbvh_real most[3], uint64_t *memory,
                                                     lbvh_i_quantiles *room)
{
    int const eighth = LBVH_I_QUANTILES / 8;
    lbvh_real low[3] = {0, 0, 0}, high[3] = {0, 0, 0};
    lbvh_i_sampled sample;
    int a;
    if (equal < LBVH_I_ALIKE) return NULL;
    lbvh_i_take_sample(tree, data, stride, memory, &sample);
    if (!lbvh_i_lattice_fails(tree, &sample)) return NULL;
    for (a = 0; a < tree->desc.dim; a++) {
        lbvh_i_make_knots(&sample, a, least[a], most[a], room->knot[a]);
        low[a] = room->knot[a][eighth];
        high[a] = room->knot[a][LBVH_I_QUANTILES - eighth];
    }
    tree->lattice = lbvh_i_lattice_of(tree->desc.dim, tree->desc.bits, low, high);
    tree->coded = 0;
    return room;
}

/* ------------------------------------------------------------------------------------------------
   >>refit: new boxes for the same tree; and boxes without a tree (lbvh_boxes)

   The prefixes stay, so lbvh_i_merge makes the same nodes again, with boxes around the new leaves.
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
    lbvh_result result;
    lbvh_real min[3], max[3];
    int32_t k;
    if (!tree) return LBVH_BAD_ARGUMENT;
    tree->bad_id = -1;
    if (tree->n > 0 && !data) return LBVH_BAD_ARGUMENT;
    if (!tree->built) return LBVH_NOT_BUILT;
    stride = lbvh_i_stride(&tree->desc, stride);
    if (stride == 0) return LBVH_BAD_ARGUMENT;
    if (tree->desc.builder == LBVH_PLOC) tree->mixed = 1;
    tree->coded = 0;
    if (LBVH_I_SEAM(lbvh_i_refit_faster(tree, data, stride, &result))) return result;
    for (k = 0; k < tree->n; k++) { /* all are checked before the first is changed */
        result = lbvh_box_of(&tree->desc, data, stride, k, min, max);
        result = lbvh_i_note_invalid(tree, result, k);
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
   >>pairs: overlapping boxes, each pair once: each leaf searches the leaves at higher places
   ---------------------------------------------------------------------------------------------- */

/* Where pairs go: to fn, or into an array; and their number so far. */
typedef struct lbvh_i_taker {
    lbvh_pair_fn *fn;
    void *user;
    int32_t *pairs;
    int64_t capacity, found;
} lbvh_i_taker;

/* Takes a pair. Returns what fn returns. */
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

/* All pairs, until fn stops them. */
static lbvh_result lbvh_i_all_pairs(const lbvh *tree, lbvh_i_taker *taker)
{
    lbvh_result result;
    int32_t place;
    if (LBVH_I_SEAM(lbvh_i_pairs_faster(tree, taker, &result))) return result;
    for (place = 0; place < tree->n; place++) {
        lbvh_overlap o = lbvh_overlap_later(tree, place);
        while (lbvh_next(&o))
            if (lbvh_i_take(taker, lbvh_i_id(tree, place), o.id)) return LBVH_STOPPED;
    }
    return LBVH_OK;
}

LBVH_API lbvh_result lbvh_each_pair(const lbvh *tree, lbvh_pair_fn *fn, void *user)
{
    lbvh_i_taker taker;
    if (!tree || !fn) return LBVH_BAD_ARGUMENT;
    if (!tree->built) return LBVH_NOT_BUILT;
    memset(&taker, 0, sizeof taker);
    taker.fn = fn;
    taker.user = user;
    return lbvh_i_all_pairs(tree, &taker);
}

LBVH_API lbvh_result lbvh_pairs(const lbvh *tree, int32_t *pairs, int64_t capacity, int64_t *needed)
{
    lbvh_i_taker taker;
    lbvh_result result;
    if (!tree || !needed || capacity < 0 || (capacity > 0 && !pairs)) return LBVH_BAD_ARGUMENT;
    if (!tree->built) return LBVH_NOT_BUILT;
    memset(&taker, 0, sizeof taker);
    taker.pairs = pairs;
    taker.capacity = capacity;
    result = lbvh_i_all_pairs(tree, &taker);
    *needed = taker.found;
    if (result != LBVH_OK) return result;
    return taker.found > capacity ? LBVH_BUFFER_TOO_SMALL : LBVH_OK;
}

LBVH_API lbvh_result lbvh_count_pairs(const lbvh *tree, int64_t *pairs)
{
    lbvh_i_taker taker;
    lbvh_result result;
    if (!tree || !pairs) return LBVH_BAD_ARGUMENT;
    if (!tree->built) return LBVH_NOT_BUILT;
    memset(&taker, 0, sizeof taker);
    result = lbvh_i_all_pairs(tree, &taker);
    *pairs = taker.found;
    return result;
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
    const lbvh_queries *queries;    /* with defaults filled in (NULL: pairs, >>parallel-search) */
    int32_t *counts;                /* [queries] or NULL */
    int64_t *offsets;               /* [queries + 1]; where counts is NULL, also for counts */
    int32_t *ids;                   /* [capacity]; pairs: two each */
    int64_t capacity;
} lbvh_i_lists;

/* The next leaf that search q has found, except its own; 0 when there are no more. */
static int lbvh_i_next_other(const lbvh_i_lists *lists, int32_t q, lbvh_overlap *o)
{
    while (lbvh_next(o))
        if (!lbvh_i_own(lists->queries) || o->place != q) return 1;
    return 0;
}

/* How many leaves search q finds. */
static int32_t lbvh_i_count_row(const lbvh_i_lists *lists, int32_t q)
{
    lbvh_overlap o = lbvh_i_search(lists->tree, lists->queries, q);
    int32_t found = 0;
    while (lbvh_i_next_other(lists, q, &o)) found++;
    return found;
}

/* The leaves that search q finds: their ids, with LBVH_PLACES their places. */
static void lbvh_i_fill_row(const lbvh_i_lists *lists, int32_t q, int32_t *ids)
{
    lbvh_overlap o = lbvh_i_search(lists->tree, lists->queries, q);
    while (lbvh_i_next_other(lists, q, &o))
        *ids++ = lists->queries->flags & LBVH_PLACES ? o.place : o.id;
}

LBVH_API lbvh_result lbvh_count_overlaps(const lbvh *tree, const lbvh_queries *queries,
                                         int32_t *counts)
{
    lbvh_queries resolved;
    lbvh_i_lists lists;
    lbvh_result result;
    int32_t q;
    if (!tree || !queries) return LBVH_BAD_ARGUMENT;
    result = lbvh_i_check_queries(tree, queries, &resolved);
    if (result != LBVH_OK) return result;
    if (resolved.n > 0 && !counts) return LBVH_BAD_ARGUMENT;
    memset(&lists, 0, sizeof lists);
    lists.tree = tree;
    lists.queries = &resolved;
    lists.counts = counts;
    if (LBVH_I_SEAM(lbvh_i_counts_faster(&lists, &result))) return result;
    for (q = 0; q < resolved.n; q++)
        counts[lbvh_i_row(tree, &resolved, q)] = lbvh_i_count_row(&lists, q);
    return LBVH_OK;
}

/* Counts become offsets. Returns their sum. */
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

/* Count, prefix sum, fill: a row is filled where it fits whole. */
LBVH_API lbvh_result lbvh_overlaps(const lbvh *tree, const lbvh_queries *queries, int64_t *offsets,
                                   int32_t *ids, int64_t capacity, int64_t *needed)
{
    lbvh_queries resolved;
    lbvh_i_lists lists;
    lbvh_result result;
    int32_t q;
    if (!tree || !queries || !offsets || !needed || capacity < 0 || (capacity > 0 && !ids))
        return LBVH_BAD_ARGUMENT;
    result = lbvh_i_check_queries(tree, queries, &resolved);
    if (result != LBVH_OK) return result;
    memset(&lists, 0, sizeof lists);
    lists.tree = tree;
    lists.queries = &resolved;
    lists.offsets = offsets;
    lists.ids = ids;
    lists.capacity = capacity;
    if (LBVH_I_SEAM(lbvh_i_lists_faster(&lists, needed, &result))) return result;
    for (q = 0; q < resolved.n; q++)
        offsets[lbvh_i_row(tree, &resolved, q)] = lbvh_i_count_row(&lists, q);
    *needed = lbvh_i_sum_offsets(offsets, resolved.n);
    for (q = 0; q < resolved.n; q++) {
        int32_t const row = lbvh_i_row(tree, &resolved, q);
        if (offsets[row] == offsets[row + 1] || offsets[row + 1] > capacity) continue;
        lbvh_i_fill_row(&lists, q, ids + offsets[row]);
    }
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
    if (!fn && LBVH_I_RUNS(lbvh_i_nearest_by_runs(tree, p, k, reach, ids, distances2, found)))
        return LBVH_OK;
    walk = lbvh_near_point(tree, p, reach);
    while (lbvh_next_near(&walk)) {
        lbvh_real const distance2 = fn ? fn(user, walk.id, p) : walk.distance2;
        walk.reach2 = lbvh_i_keep_nearest(ids, distances2, k, found, walk.reach2, walk.id,
                                          distance2);
        if (*found == k) walk.last_id = lbvh_i_last_id(ids, k);
    }
    lbvh_i_sort_nearest(ids, distances2, k, *found);
    return LBVH_OK;
}

/* The arguments of lbvh_nearest_rows. */
typedef struct lbvh_i_rows {
    const lbvh *tree;
    const lbvh_real *points;
    size_t stride;
    int32_t m, k, *ids, *found;
    lbvh_real reach, *distances2;
} lbvh_i_rows;

/* Row q without its last `left` neighbours. */
static void lbvh_i_end_row(const lbvh_i_rows *rows, int32_t q, int32_t left)
{
    size_t const end = ((size_t)q + 1) * (size_t)rows->k;
    size_t e;
    for (e = end - (size_t)left; e < end; e++) {
        rows->ids[e] = -1;
        rows->distances2[e] = lbvh_i_infinity();
    }
    rows->found[q] = rows->k - left;
}

/* The whole row q. */
static void lbvh_i_find_row(const lbvh_i_rows *rows, int32_t q)
{
    size_t const row = (size_t)q * (size_t)rows->k;
    int32_t found = 0;
    if (rows->k > 0) /* all else that it could refuse was checked */
        (void)lbvh_nearest(rows->tree, lbvh_i_at(rows->points, rows->stride, q), rows->k,
                           rows->reach, NULL, NULL, rows->ids + row, rows->distances2 + row,
                           &found);
    lbvh_i_end_row(rows, q, rows->k - found);
}

/* What lbvh_nearest_rows refuses. */
static lbvh_result lbvh_i_check_rows(const lbvh_i_rows *rows, int flags)
{
    int const points = rows->m > 0, neighbours = points && rows->k > 0;
    if (rows->m < 0 || rows->k < 0) return LBVH_BAD_ARGUMENT;
    if (points && (!rows->points || !rows->found)) return LBVH_BAD_ARGUMENT;
    if (neighbours && (!rows->ids || !rows->distances2)) return LBVH_BAD_ARGUMENT;
    if (flags & ~(int)LBVH_SORTED) return LBVH_BAD_OPTION;
    if (!(rows->reach >= 0)) return LBVH_BAD_RADIUS;
    if (!rows->tree->built) return LBVH_NOT_BUILT;
    return rows->stride ? LBVH_OK : LBVH_BAD_ARGUMENT;
}

LBVH_API lbvh_result lbvh_nearest_rows(const lbvh *tree, const lbvh_real *points, size_t stride,
                                       int32_t m, int32_t k, lbvh_real reach, int flags,
                                       int32_t *ids, lbvh_real *distances2, int32_t *found)
{
    lbvh_result result;
    lbvh_i_rows rows;
    int32_t q;
    if (!tree) return LBVH_BAD_ARGUMENT;
    rows.tree = tree;
    rows.points = points;
    rows.stride = lbvh_i_stride_of(tree->desc.dim, stride);
    rows.m = m;
    rows.k = k;
    rows.ids = ids;
    rows.found = found;
    rows.reach = reach;
    rows.distances2 = distances2;
    result = lbvh_i_check_rows(&rows, flags);
    if (result != LBVH_OK) return result;
    if (LBVH_I_SEAM(lbvh_i_rows_faster(&rows, flags, &result))) return result;
    for (q = 0; q < m; q++) lbvh_i_find_row(&rows, q);
    return LBVH_OK;
}

/* ------------------------------------------------------------------------------------------------
   >>memory: blocks that grow and are kept
   ---------------------------------------------------------------------------------------------- */

enum { LBVH_I_TASKS = 1024 };   /* the most that desc.parallel takes */

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

/* Frees a block and empties it. */
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

/* The stride in bytes of `numbers` each, with its default; 0 if it is invalid. */
static size_t lbvh_i_stride_of(int numbers, size_t stride)
{
    size_t const tight = (size_t)numbers * sizeof(lbvh_real);
    if (stride == 0) return tight;
    return stride >= tight && stride % sizeof(lbvh_real) == 0 ? stride : 0;
}

/* The same, of elements; with indices, of vertices. */
static size_t lbvh_i_stride(const lbvh_desc *desc, size_t stride)
{
    int numbers = desc->dim;
    if (desc->kind == LBVH_BOXES) numbers = 2 * desc->dim;
    if (desc->kind == LBVH_SPHERES) numbers = desc->dim + 1;
    if (desc->kind == LBVH_TRIANGLES && !desc->indices) numbers = 3 * desc->dim;
    return lbvh_i_stride_of(numbers, stride);
}

/* Marks the tree as not built; memory and desc stay. */
static void lbvh_i_make_empty(lbvh *tree)
{
    tree->built = 0;
    tree->n = tree->first_leaf = 0;
    tree->bad_id = -1;
    tree->cuda_error = tree->mixed = tree->coded = 0;
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
    if (result != LBVH_OK) return result;
    for (b = 0; b < LBVH_BLOCKS; b++) *bytes += (int64_t)sizes[b];
    return LBVH_OK;
}

/* ------------------------------------------------------------------------------------------------
   >>version: and the texts of results
   ---------------------------------------------------------------------------------------------- */

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
   >>faster: forms of the above that take less time, and make the same bits. From here to >>seams no
   algorithm is new. LBVH_PLAIN leaves them out.

   What they use: keys of 8 bytes instead of 16 in the sort; loops over 8 or 16 elements side by
   side, which compilers make vectors of (AVX2, chosen at run time: LBVH_PLAIN_LANES leaves that
   out); prefetching; packets of searches; and tasks of desc.parallel. The plain form enters each at
   one place, its seam (>>seams).
   ---------------------------------------------------------------------------------------------- */

#if LBVH_I_REAL_KIND == 1 && (defined(__SSE2__) || defined(_M_X64)) && !defined(__TINYC__) &&      \
    !defined(__CUDACC__) && !defined(LBVH_PLAIN)
#include <emmintrin.h>
#define LBVH_I_SSE2
#endif

/* Vectors of 8 floats (AVX2), chosen at run time. LBVH_I_MAYBE_AVX2: a function that calls plain,
   inlined ones; it is compiled for AVX2 where that exists. Not with gcc on Windows, where it does
   not align the stack for such vectors (its bug 54412). */
#if LBVH_I_REAL_KIND == 1 && defined(__x86_64__) && defined(__GNUC__) &&                           \
    (!defined(_WIN32) || defined(__clang__)) && !defined(__TINYC__) &&                             \
    !defined(__INTEL_COMPILER) && !defined(__NVCOMPILER) && !defined(__CUDACC__) &&                \
    !defined(LBVH_PLAIN_LANES) && !defined(LBVH_PLAIN)
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

/* gcc 12 unrolls a longer loop of constant length before it looks for vectors, and then finds none:
   this forbids that. */
#if defined(__GNUC__) && __GNUC__ >= 8 && !defined(__clang__) && !defined(__INTEL_COMPILER) && \
    !defined(__CUDACC__)
#define LBVH_I_KEEP_LOOP _Pragma("GCC unroll 1")
#else
#define LBVH_I_KEEP_LOOP
#endif

/* Prefetches what a loop will read later. nvcc refuses it in functions of both sides. */
#if (defined(__GNUC__) || defined(__clang__)) && !defined(__CUDA_ARCH__)
#define LBVH_I_PREFETCH(address) __builtin_prefetch(address)
#else
#define LBVH_I_PREFETCH(address) ((void)(address))
#endif

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

/* ------------------------------------------------------------------------------------------------
   >>parallel-run: work in pieces, each of which is a task of desc.parallel.run (>>parallel)

   A piece is a range of searches, elements or places, and no two pieces write to the same number.
   What must be joined is joined by the calling thread, in the order of the pieces.
   ---------------------------------------------------------------------------------------------- */

/* The fewest searches for which a task is worth its start: some tenths of a millisecond. */
#ifndef LBVH_I_PIECE
#define LBVH_I_PIECE 2048
#endif
enum { LBVH_I_MOST_PIECES = 256, LBVH_I_BUILD_TASKS = 64, LBVH_I_LIGHT = 8 };

/* Into how many pieces work on n elements is cut. (Parts of this header call this, too.) */
static inline int32_t lbvh_i_pieces_of(const lbvh_parallel *parallel, int32_t n, int32_t fewest,
                                       int32_t most)
{
    int32_t const worth = n / fewest;
#ifdef LBVH_PLAIN
    most = 1;
#endif
    if (parallel->tasks < most) most = parallel->tasks;
    if (!parallel->run || most < 2 || worth < 2) return 1;
    return worth < most ? worth : most;
}

/* Where piece k of n elements begins, and piece k - 1 ends. */
static inline int64_t lbvh_i_cut(int64_t n, int32_t pieces, int32_t k)
{
    return n / pieces * k + n % pieces * k / pieces;
}

/* A piece sets its byte when it is done. */
typedef struct lbvh_i_all_tasks {
    lbvh_task *work;
    void *context;
    unsigned char done[LBVH_I_MOST_PIECES];
} lbvh_i_all_tasks;

/* Does one piece, and says so. */
static inline void lbvh_i_do_piece(void *context, int32_t k)
{
    lbvh_i_all_tasks *job = (lbvh_i_all_tasks *)context;
    job->work(job->context, k);
    job->done[k] = 1;
}

/* work(context, k) for every piece k. */
static inline lbvh_result lbvh_i_in_pieces(const lbvh_parallel *parallel, int32_t pieces,
                                           lbvh_task *work, void *context)
{
    lbvh_i_all_tasks job;
    int32_t k;
    job.work = work;
    job.context = context;
    memset(job.done, 0, sizeof job.done);
    parallel->run(lbvh_i_do_piece, &job, pieces, parallel->user);
    for (k = 0; k < pieces; k++) if (!job.done[k]) return LBVH_NOT_RUN;
    return LBVH_OK;
}

/* The roots of subtrees whose parents are still to come: the first leaf of each. */
typedef struct lbvh_i_roots { int32_t first[2 * LBVH_STACK], count; } lbvh_i_roots;

#ifndef LBVH_PLAIN

/* ------------------------------------------------------------------------------------------------
   >>faster-build: a build by short keys

   A key is one word: the upper 32 bits of the code, then the id. The lower bits of the code, `low`
   by id, are compared only where the upper ones are equal, which is rare: one sort by 32 bits
   instead of two.

       | keys 8 n | spare 8 n | low 4 n | ........ |    where codes are in >>sort
   ---------------------------------------------------------------------------------------------- */

typedef struct lbvh_i_keys {
    uint64_t *key, *spare;  /* [n] */
    uint32_t *low;          /* [n] by id */
    int shift;              /* bits of the code that are in low */
    const lbvh_i_quantiles *quantiles;  /* what codes are made by; NULL: the lattice */
} lbvh_i_keys;

/* The keys of a tree, where its nodes will be. */
static lbvh_i_keys lbvh_i_key_room(const lbvh *tree)
{
    lbvh_i_keys keys;
    int const bits = lbvh_i_code_bits(&tree->desc);
    keys.key = (uint64_t *)(void *)tree->node;
    keys.spare = keys.key + tree->n;
    keys.low = (uint32_t *)(void *)(keys.spare + tree->n);
    keys.shift = bits > 32 ? bits - 32 : 0;
    keys.quantiles = NULL;
    return keys;
}

/* The memory behind them. */
static uint64_t *lbvh_i_behind_keys(const lbvh_i_keys *keys, int32_t n)
{
    return keys->spare + n + ((size_t)n + 1) / 2;
}

/* The whole code of a key. */
static uint64_t lbvh_i_key_code(const lbvh_i_keys *keys, uint64_t key)
{
    return (key >> 32) << keys->shift | (keys->shift ? keys->low[lbvh_i_key_id(key)] : 0);
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
    int32_t k;
    for (k = 0; k < n; k++)
        key[k] = (uint64_t)keys->low[lbvh_i_key_id(key[k])] << 32 | (uint32_t)key[k];
    lbvh_i_radix(key, spare, n);
    for (k = 0; k < n; k++) key[k] = upper | (uint32_t)key[k];
}

/* Sorts the keys first .. last-1, whose upper bits are sorted, by the lower ones. */
static void lbvh_i_sort_low(const lbvh_i_keys *keys, int32_t first, int32_t last)
{
    int32_t begin, end;
    if (keys->shift == 0) return;
    for (begin = first; begin < last; begin = end) {
        uint64_t const upper = keys->key[begin] >> 32;
        for (end = begin + 1; end < last && keys->key[end] >> 32 == upper; end++) {}
        if (end - begin > 64)
            lbvh_i_radix_low(keys, keys->key + begin, keys->spare + begin, end - begin);
        else if (end - begin > 1) lbvh_i_insertion(keys, keys->key + begin, end - begin);
    }
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

/* The same for AVX2. */
LBVH_I_MAYBE_AVX2 void lbvh_i_code_some_lanes(const lbvh *tree, lbvh_i_coding *c)
{
    lbvh_i_code_some(tree, c);
}

/* lbvh_i_quantile_coordinate of all. The searches go side by side, so that none waits. */
LBVH_I_HOT void lbvh_i_quantile_coordinates(const lbvh_real *knot, int axis_bits,
                                            const lbvh_real *half_centre, uint32_t *coordinate)
{
    int32_t const cells = (int32_t)1 << (axis_bits - LBVH_I_QUANTILE_BITS);
    lbvh_real const last = (lbvh_real)(cells - 1);
    lbvh_real begin[LBVH_I_CODES], length[LBVH_I_CODES];
    int32_t low[LBVH_I_CODES], step, k;
    for (k = 0; k < LBVH_I_CODES; k++) low[k] = 0;
    for (step = LBVH_I_QUANTILES / 2; step > 0; step /= 2)
        for (k = 0; k < LBVH_I_CODES; k++)
            low[k] += knot[low[k] + step] <= half_centre[k] ? step : 0;
    for (k = 0; k < LBVH_I_CODES; k++) {
        begin[k] = knot[low[k]];
        length[k] = knot[low[k] + 1] - begin[k];
    }
    for (k = 0; k < LBVH_I_CODES; k++) {
        lbvh_real t = length[k] > 0 ? lbvh_i_over(half_centre[k] - begin[k], length[k]) *
                                          (lbvh_real)cells
                                    : 0;
        t = t > 0 ? t : 0;
        t = t < last ? t : last;
        coordinate[k] = (uint32_t)(low[k] * cells + (int32_t)t);
    }
}

/* The same by quantiles. */
LBVH_I_HOT void lbvh_i_code_by_quantiles(const lbvh *tree, const lbvh_i_quantiles *quantiles,
                                         lbvh_i_coding *c)
{
    int const dim = tree->desc.dim, bits = tree->desc.bits, of_axis = lbvh_i_axis_bits(dim, bits);
    uint32_t x[LBVH_I_CODES], y[LBVH_I_CODES], z[LBVH_I_CODES];
    int k;
    memset(z, 0, sizeof z);
    lbvh_i_quantile_coordinates(quantiles->knot[0], of_axis, c->half_centre[0], x);
    lbvh_i_quantile_coordinates(quantiles->knot[1], of_axis, c->half_centre[1], y);
    if (dim == 3)
        lbvh_i_quantile_coordinates(quantiles->knot[2], of_axis, c->half_centre[2], z);
    for (k = 0; k < LBVH_I_CODES; k++)
        c->code[k] = c->left_out[k] ? lbvh_i_last_code(dim, bits)
                                    : lbvh_i_interleave(dim, bits, x[k], y[k], z[k]);
}

/* The codes of `count` elements from `first` on. */
static void lbvh_i_code_elements(const lbvh *tree, const lbvh_real *data, size_t stride,
                                 const lbvh_i_quantiles *quantiles, int32_t first, int32_t count,
                                 lbvh_i_coding *c)
{
    lbvh_real min[3], max[3];
    int32_t k;
    int a;
    for (k = 0; k < count; k++) {
        (void)lbvh_box_of(&tree->desc, data, stride, first + k, min, max);
        c->left_out[k] = !(min[0] <= max[0]);
        for (a = 0; a < 3; a++) c->half_centre[a][k] = lbvh_i_half_centre(min[a], max[a]);
    }
    if (quantiles) lbvh_i_code_by_quantiles(tree, quantiles, c);
    else if (LBVH_I_HAS_AVX2()) lbvh_i_code_some_lanes(tree, c);
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
        lbvh_i_code_elements(tree, data, stride, keys->quantiles, i, count, &some);
        for (k = 0; k < count; k++) {
            uint64_t const code = some.code[k];
            keys->key[i + k] = code >> keys->shift << 32 | (uint32_t)(i + k);
            keys->low[i + k] = (uint32_t)(code & (((uint64_t)1 << keys->shift) - 1));
            lbvh_i_count_digits(histogram, (uint32_t)(code >> keys->shift));
        }
    }
}

/* The prefixes of the borders before the places first .. last-1, and of the last border. As a rule
   the upper bits differ. Returns the number of borders between equal codes. */
static int32_t lbvh_i_key_prefixes(lbvh *tree, const lbvh_i_keys *keys, int32_t first, int32_t last)
{
    int const bits = lbvh_i_code_bits(&tree->desc), upper_bits = bits - keys->shift;
    int32_t k, equal = 0;
    if (first == 0) tree->prefix[0] = tree->prefix[tree->n] = 0;
    for (k = first > 1 ? first : 1; k < last; k++) {
        uint64_t const left = keys->key[k - 1], right = keys->key[k], differ = (left ^ right) >> 32;
        int common;
        if (differ) {
            common = lbvh_i_leading_zeros(differ) - (64 - upper_bits);
        } else {
            common = lbvh_i_common(bits, lbvh_i_key_code(keys, left), lbvh_i_key_code(keys, right),
                                   k - 1, k);
            equal += common >= bits;
        }
        tree->prefix[k] = (uint8_t)(1 + common);
    }
    return equal;
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

/* The leaves first .. last-1; their codes, where they are kept, before: leaves may lie over low. */
static void lbvh_i_key_leaves(lbvh *tree, const lbvh_real *data, size_t stride,
                              const lbvh_i_keys *keys, int32_t first, int32_t last)
{
    int32_t k;
    if (tree->code)
        for (k = first; k < last; k++) tree->code[k] = lbvh_i_key_code(keys, keys->key[k]);
    for (k = first; k < last; k++) {
        lbvh_i_prefetch_element(tree, data, stride, keys, k, last);
        lbvh_i_make_leaf(tree, data, stride, k, lbvh_i_key_id(keys->key[k]));
    }
}

static void lbvh_i_key_ploc(const lbvh *tree, const lbvh_real *data, size_t stride,
                            lbvh_i_keys *keys);

/* lbvh_i_order_elements. */
static int32_t lbvh_i_order_by_keys(lbvh *tree, const lbvh_real *data, size_t stride,
                                    const lbvh_i_keys *keys)
{
    lbvh_i_histogram histogram;
    lbvh_i_make_keys(tree, data, stride, keys, &histogram, 0, tree->n);
    lbvh_i_radix_counted(keys->key, keys->spare, tree->n, &histogram);
    lbvh_i_sort_low(keys, 0, tree->n);
    return lbvh_i_key_prefixes(tree, keys, 0, tree->n);
}

enum { LBVH_I_GLANCE = 16, LBVH_I_CLOSE_BITS = 11 };

/* Will quantiles probably be taken? Then the sample comes first, and the elements are sorted once.
   So it is where half of the neighbours by code, of a few elements, differ in the last bits alone:
   on 2^15 cells, as many as they then fill, the sample has about LBVH_I_ALIKE equal codes. */
static int lbvh_i_seems_coarse(const lbvh *tree, const lbvh_real *data, size_t stride)
{
    uint64_t code[LBVH_I_GLANCE];
    lbvh_real min[3], max[3];
    int32_t const apart = (int32_t)LBVH_I_SAMPLE / (int32_t)LBVH_I_GLANCE; /* in the sample */
    int32_t k, slot, close = 0;
    if (tree->n < LBVH_I_SAMPLE) return 0;
    for (k = 0; k < LBVH_I_GLANCE; k++) {
        uint64_t own;
        (void)lbvh_box_of(&tree->desc, data, stride,
                          lbvh_i_sample_id(k * apart, tree->n), min, max);
        own = lbvh_i_code(&tree->lattice, tree->desc.dim, tree->desc.bits, min, max);
        for (slot = k; slot > 0 && code[slot - 1] > own; slot--) code[slot] = code[slot - 1];
        code[slot] = own;
    }
    for (k = 1; k < LBVH_I_GLANCE; k++)
        close += (code[k - 1] ^ code[k]) >> LBVH_I_CLOSE_BITS == 0;
    return close >= LBVH_I_GLANCE / 2;
}

/* The steps of lbvh_i_build_plain. */
static lbvh_result lbvh_i_build_by_keys(lbvh *tree, const lbvh_real *data, size_t stride,
                                        int32_t n)
{
    lbvh_i_keys keys;
    lbvh_i_quantiles room;
    lbvh_real least[3], most[3];
    int32_t equal;
    int early;
    lbvh_result const result = lbvh_i_measure_centres(tree, data, stride, 0, n, least, most);
    if (result != LBVH_OK) return result;
    lbvh_i_begin_nodes(tree, n, least, most);
    if (n == 0) return LBVH_OK;
    keys = lbvh_i_key_room(tree);
    early = lbvh_i_seems_coarse(tree, data, stride);
    equal = early ? LBVH_I_ALIKE : lbvh_i_order_by_keys(tree, data, stride, &keys);
    keys.quantiles = lbvh_i_take_quantiles(tree, data, stride, equal, least, most,
                                           lbvh_i_behind_keys(&keys, n), &room);
    if (early || keys.quantiles) (void)lbvh_i_order_by_keys(tree, data, stride, &keys);
    if (tree->desc.builder == LBVH_PLOC) lbvh_i_key_ploc(tree, data, stride, &keys);
    lbvh_i_key_leaves(tree, data, stride, &keys, 0, n);
    if (tree->desc.builder == LBVH_SPLIT) lbvh_i_split(tree, 0, 0, n - 1, -1);
    else lbvh_i_merge(tree);
    return LBVH_OK;
}

/* ------------------------------------------------------------------------------------------------
   >>faster-ploc: clusters side by side, and each pair compared once

   Eight clusters compare themselves to one behind each at a time. A cluster's key with one before
   it is that one's key with it.
   ---------------------------------------------------------------------------------------------- */

/* A stack of clusters, as a structure of arrays for vectors: 50 KB (double: 90). Its last
   ones are the window, with room behind it. Keys have room before the first: keys with nobody. */
enum { LBVH_I_ROOM = (int)LBVH_STACK * LBVH_I_CLUSTERS + LBVH_I_WINDOW + LBVH_I_RADIUS };
typedef struct lbvh_i_cluster_arrays {
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
} lbvh_i_cluster_arrays;

/* An empty stack. No cluster has one before the first as its partner. */
static void lbvh_i_begin_arrays(const lbvh *tree, lbvh_i_cluster_arrays *c)
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
LBVH_FN_HOT void lbvh_i_compare(lbvh_i_cluster_arrays *c, int dim, int32_t window, int32_t i)
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
LBVH_FN_HOT void lbvh_i_choose(lbvh_i_cluster_arrays *c, int32_t i)
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
LBVH_FN_HOT void lbvh_i_choose_all(lbvh_i_cluster_arrays *c, int dim, int32_t count)
{
    int32_t i;
    for (i = 0; i < count; i += LBVH_I_RADIUS) {
        if (dim == 2) lbvh_i_compare(c, 2, c->all - count, i);
        else lbvh_i_compare(c, 3, c->all - count, i);
    }
    for (i = 0; i < count; i += LBVH_I_RADIUS) lbvh_i_choose(c, i);
}

/* The same for AVX2. */
LBVH_I_MAYBE_AVX2 void lbvh_i_choose_lanes(lbvh_i_cluster_arrays *c, int dim, int32_t count)
{
    lbvh_i_choose_all(c, dim, count);
}

/* best[i] of all `count` clusters of the window, by what the processor has. */
static void lbvh_i_find_partners(lbvh_i_cluster_arrays *c, int dim, int32_t count)
{
    int32_t i;
    for (i = 0; i < LBVH_I_WINDOW + LBVH_I_RADIUS; i++)
        c->hidden[i] = i < count ? 0 : lbvh_i_no_pair();
    if (c->lanes) lbvh_i_choose_lanes(c, dim, count);
    else lbvh_i_choose_all(c, dim, count);
}

/* Cluster i of the stack becomes the node of itself and j. */
static void lbvh_i_merge_entries(lbvh_i_cluster_arrays *c, int32_t i, int32_t j)
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
static void lbvh_i_move_entry(lbvh_i_cluster_arrays *c, int32_t to, int32_t from)
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
static int32_t lbvh_i_merge_chosen(lbvh_i_cluster_arrays *c, int32_t count)
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
        lbvh_i_merge_entries(c, window + i, window + (i ^ (int32_t)(c->best[i] & 31)));
    }
    for (k = 0; k < left && keep[k] == k; k++) {}
    for (; k < left; k++) lbvh_i_move_entry(c, window + k, window + keep[k]);
    c->all = window + left;
    return left;
}

/* Puts a cluster on the stack. */
LBVH_I_HOT void lbvh_i_push_entry(lbvh_i_cluster_arrays *c, const lbvh_real min[3],
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
                             const lbvh_i_keys *keys, lbvh_i_cluster_arrays *c, int32_t k)
{
    lbvh_real min[3], max[3];
    int a;
    lbvh_i_prefetch_element(tree, data, stride, keys, k, tree->n);
    (void)lbvh_box_of(&tree->desc, data, stride, lbvh_i_key_id(keys->key[k]), min, max);
    for (a = 0; a < 3; a++) {
        min[a] = lbvh_i_bounded(min[a]);
        max[a] = lbvh_i_bounded(max[a]);
    }
    lbvh_i_push_entry(c, min, max, tree->first_leaf + k, k);
}

/* Goes up from a subtree of MERGE, whose `count` clusters are on top of the stack, to the first one
   that is a left child. Those of its left sibling lie below them: where both are too many for the
   parent, rounds follow. */
static void lbvh_i_join_entries(const lbvh *tree, lbvh_i_cluster_arrays *c, int32_t first,
                                int32_t last, int32_t count)
{
    while (c->top > 0 && !lbvh_i_is_left(tree->prefix, first, last)) {
        first = c->waiting[--c->top];
        count += c->many[c->top];
        while (count > (first == 0 && last == tree->n - 1 ? 1 : LBVH_I_CLUSTERS)) {
            lbvh_i_find_partners(c, tree->desc.dim, count);
            count = lbvh_i_merge_chosen(c, count);
        }
    }
    c->waiting[c->top] = first;
    c->many[c->top++] = count;
}

/* All clusters, in the order in which lbvh_i_merge meets the subtrees. Returns the root. */
static int32_t lbvh_i_cluster_by_keys(const lbvh *tree, const lbvh_real *data, size_t stride,
                              const lbvh_i_keys *keys)
{
    lbvh_i_cluster_arrays c;
    int32_t k;
    lbvh_i_begin_arrays(tree, &c);
    for (k = 0; k < tree->n; k++) {
        lbvh_i_push_leaf(tree, data, stride, keys, &c, k);
        lbvh_i_join_entries(tree, &c, k, k, 1);
    }
    return c.node[0];
}

/* lbvh_i_ploc for keys. */
static void lbvh_i_key_ploc(const lbvh *tree, const lbvh_real *data, size_t stride,
                            lbvh_i_keys *keys)
{
    uint64_t *const old = keys->key;
    int32_t root;
    if (tree->n == 2) tree->prefix[1] = 1; /* the depth of the root, and 1 */
    if (tree->n < 3) return;
    root = lbvh_i_cluster_by_keys(tree, data, stride, keys);
    if (!lbvh_i_number_clusters(tree, old, keys->spare, root)) return;
    keys->key = keys->spare;
    keys->spare = old;
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

/* The same for AVX2. */
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
   >>faster-pairs: by packets, or alone

   A batch (>>packets) pays where leaves have many partners. Where they have few, each leaf walks
   alone, as lbvh_overlap_later does: the order is the same. A running mean of the hits decides.
   ---------------------------------------------------------------------------------------------- */

enum { LBVH_I_MANY = 5 };       /* partners of a leaf at higher places from which batches pay */

/* What a piece of a list has found, and how much of it is written. */
typedef struct lbvh_i_piece_of_list {
    int32_t whole;              /* all entries of the searches before it have been written */
    int64_t written;            /* entries of the piece that have been written */
    int64_t found;              /* entries of the piece */
    int64_t start;              /* entries of the pieces before it */
} lbvh_i_piece_of_list;

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

/* The pairs of the places first .. end-1 with later ones, until the taker returns non-zero.
   `*piece` (may be NULL): up to where whole searches were written. */
static int lbvh_i_take_pairs(const lbvh *tree, lbvh_i_taker *taker, int32_t first, int32_t end,
                             lbvh_i_piece_of_list *piece)
{
    lbvh_queries queries;
    lbvh_i_finder finder;
    double mean = 0; /* partners of a leaf */
    memset(&queries, 0, sizeof queries);
    queries.filter = LBVH_I_ANY_MASK;
    queries.flags = LBVH_HALF | LBVH_PLACES;
    lbvh_i_begin_finder(&finder, tree, &queries, taker->fn || taker->capacity > 0, first, end);
    while (finder.last + 1 < end) {
        int64_t const before = taker->found;
        int32_t const at = lbvh_i_next_subtree(&finder);
        if (mean < (double)LBVH_I_MANY
                ? lbvh_i_take_alone(tree, finder.begin, finder.last, taker)
                : lbvh_i_take_batch(&finder, at, taker))
            return 1;
        mean += ((double)(taker->found - before) / (finder.last - finder.begin + 1) - mean) / 4;
        if (!piece || taker->found > taker->capacity) continue;
        piece->whole = finder.last + 1;
        piece->written = taker->found;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------
   >>faster-queries: own elements by packets; rows in order in one pass
   ---------------------------------------------------------------------------------------------- */

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

/* The lists of all searches. */
static lbvh_result lbvh_i_list_all(const lbvh_i_lists *lists, int64_t *needed)
{
    const lbvh_queries *queries = lists->queries;
    if (!lbvh_i_own(queries))
        *needed = lbvh_i_fill_at(lists, 0, lists->capacity, 0, queries->n);
    else if (queries->flags & LBVH_PLACES)
        *needed = lbvh_i_fill_by_place(lists, 0, lists->capacity, 0, queries->n);
    else *needed = lbvh_i_fill_by_id(lists);
    lists->offsets[queries->n] = *needed;
    return *needed > lists->capacity ? LBVH_BUFFER_TOO_SMALL : LBVH_OK;
}

/* ------------------------------------------------------------------------------------------------
   >>parallel-search: pieces of the searches, by place or by the caller's order

   A list is made in one pass, though no piece knows how many entries come before its own. Each
   writes to a room of its own in the caller's array:

       rooms     |0 0 0 0 . .|1 1 1 1 1 1|2 2 . . . .|      piece 1 has two entries more than room
       moved     |0 0 0 0|1 1 1 1 1 1 ~ ~|2 2|              then each is moved to its end, and
                                                            searches without room are repeated
   ---------------------------------------------------------------------------------------------- */

/* Into how many pieces so many searches are cut. */
static int32_t lbvh_i_search_pieces(const lbvh *tree, int32_t searches)
{
    return tree->n == 0 ? 1 : lbvh_i_pieces_of(&tree->desc.parallel, searches, LBVH_I_PIECE,
                                               LBVH_I_MOST_PIECES);
}

typedef struct lbvh_i_search_job {
    lbvh_i_lists lists;
    int32_t n, pieces, width;   /* searches; numbers of an entry */
    lbvh_i_piece_of_list piece[LBVH_I_MOST_PIECES];
} lbvh_i_search_job;

/* A job of all searches. */
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

/* A task: counts. */
static void lbvh_i_count_piece(void *context, int32_t k)
{
    lbvh_i_search_job *job = (lbvh_i_search_job *)context;
    lbvh_i_count_rows(&job->lists, lbvh_i_first_search(job, k), lbvh_i_first_search(job, k + 1));
}

/* lbvh_i_count_rows in tasks. */
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
    piece->whole = first;
    piece->written = found;
    (void)lbvh_i_take_pairs(lists->tree, &taker, first, end, piece);
    piece->found = taker.found;
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
    if (lists->queries)
        for (q = lbvh_i_first_search(job, k); q < piece.whole; q++) lists->offsets[q] += shift;
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

/* A task: counts pairs. */
static void lbvh_i_count_pairs_piece(void *context, int32_t k)
{
    lbvh_i_search_job *job = (lbvh_i_search_job *)context;
    lbvh_i_taker taker;
    memset(&taker, 0, sizeof taker);
    (void)lbvh_i_take_pairs(job->lists.tree, &taker, lbvh_i_first_search(job, k),
                            lbvh_i_first_search(job, k + 1), NULL);
    job->piece[k].found = taker.found;
}

static lbvh_result lbvh_i_count_pairs_in_pieces(lbvh_i_search_job *job, int64_t *pairs)
{
    lbvh_result const result = lbvh_i_search_in_pieces(job, lbvh_i_count_pairs_piece);
    int32_t k;
    *pairs = 0;
    if (result != LBVH_OK) return result;
    for (k = 0; k < job->pieces; k++) *pairs += job->piece[k].found;
    return LBVH_OK;
}

/* lbvh_i_take_pairs in tasks: counts, or a list. */
static lbvh_result lbvh_i_pairs_in_pieces(const lbvh *tree, lbvh_i_taker *taker)
{
    lbvh_i_lists lists;
    lbvh_i_search_job job;
    memset(&lists, 0, sizeof lists);
    lists.tree = tree;
    lists.ids = taker->pairs;
    lists.capacity = taker->capacity;
    lbvh_i_begin_search(&job, &lists);
    return taker->capacity == 0 ? lbvh_i_count_pairs_in_pieces(&job, &taker->found)
                                : lbvh_i_list_in_pieces(&job, &taker->found);
}

/* A task: fills rows by id. */
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

/* lbvh_i_list_all in tasks. */
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
   >>faster-rows: the nearest elements of many points, in an order

   Points are taken in Morton order: a search then finds in the cache what the one before has read.
   Several pieces deal the points by their highest bits first, so that each has a region of its own.
   Each piece sorts its own points, by keys that hold both:

       key    bits 63 .. 32: the upper bits of the Morton code      bits 31 .. 0: the point
   ---------------------------------------------------------------------------------------------- */

typedef struct lbvh_i_rows_job {
    const lbvh_i_rows *rows;
    int32_t pieces;
    uint64_t *key;                  /* [2 m] a half to sort into; NULL: points as they come */
    int dealt;                      /* the keys are in that half, by their highest bits */
} lbvh_i_rows_job;

/* The key of a point. */
static uint64_t lbvh_i_point_key(const lbvh_i_rows *rows, int32_t q)
{
    const lbvh *tree = rows->tree;
    int const bits = lbvh_i_code_bits(&tree->desc), dim = tree->desc.dim;
    lbvh_real at[3];
    uint64_t code;
    (void)lbvh_i_read_point(dim, lbvh_i_at(rows->points, rows->stride, q), at);
    code = lbvh_i_code(&tree->lattice, dim, tree->desc.bits, at, at);
    return (bits > 32 ? code >> (bits - 32) : code) << 32 | (uint32_t)q;
}

/* The key of point q, or of place q where keys are dealt. */
static uint64_t lbvh_i_row_key(const lbvh_i_rows_job *job, int32_t q)
{
    return job->dealt ? (job->key + job->rows->m)[q] : lbvh_i_point_key(job->rows, q);
}

/* A task: the rows of its points, in their order. */
static void lbvh_i_rows_piece(void *context, int32_t piece)
{
    const lbvh_i_rows_job *job = (const lbvh_i_rows_job *)context;
    const lbvh_i_rows *rows = job->rows;
    int32_t const begin = (int32_t)lbvh_i_cut(rows->m, job->pieces, piece),
                  end = (int32_t)lbvh_i_cut(rows->m, job->pieces, piece + 1);
    int32_t q;
    if (job->key) {
        for (q = begin; q < end; q++) job->key[q] = lbvh_i_row_key(job, q);
        lbvh_i_radix(job->key + begin, job->key + rows->m + begin, end - begin);
    }
    if (LBVH_I_RUNS(lbvh_i_rows_by_runs(rows, job->key, begin, end))) return;
    for (q = begin; q < end; q++)
        lbvh_i_find_row(rows, job->key ? lbvh_i_key_id(job->key[q]) : q);
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

/* A task: the keys of its points. */
static void lbvh_i_point_keys_piece(void *context, int32_t piece)
{
    const lbvh_i_rows_job *job = (const lbvh_i_rows_job *)context;
    int32_t const end = (int32_t)lbvh_i_cut(job->rows->m, job->pieces, piece + 1);
    int32_t q;
    for (q = (int32_t)lbvh_i_cut(job->rows->m, job->pieces, piece); q < end; q++)
        job->key[q] = lbvh_i_point_key(job->rows, q);
}

/* All rows, in several pieces. (The deal is a hundredth of the searches: it is not cut.) */
static lbvh_result lbvh_i_rows_in_pieces(lbvh_i_rows_job *job)
{
    const lbvh_parallel *parallel = &job->rows->tree->desc.parallel;
    int32_t const m = job->rows->m;
    int32_t begin[256], q, d, sum = 0;
    if (!job->key) return lbvh_i_in_pieces(parallel, job->pieces, lbvh_i_rows_piece, job);
    if (lbvh_i_in_pieces(parallel, job->pieces, lbvh_i_point_keys_piece, job) != LBVH_OK)
        return LBVH_NOT_RUN;
    memset(begin, 0, sizeof begin);
    for (q = 0; q < m; q++) begin[job->key[q] >> 56]++;
    for (d = 0; d < 256; d++) {
        int32_t const count = begin[d];
        begin[d] = sum;
        sum += count;
    }
    lbvh_i_deal(job->key, job->key + m, 0, m, begin, 3);
    job->dealt = 1;
    return lbvh_i_in_pieces(parallel, job->pieces, lbvh_i_rows_piece, job);
}

/* All rows, by one piece or by several. */
static lbvh_result lbvh_i_nearest_in_pieces(const lbvh_i_rows *rows, int flags)
{
    const lbvh *tree = rows->tree;
    lbvh_block keys = lbvh_i_take_keys(tree, rows->m, flags);
    lbvh_result result = LBVH_OK;
    lbvh_i_rows_job job;
    int32_t q;
    job.rows = rows;
    job.pieces = lbvh_i_search_pieces(tree, rows->m);
    job.key = (uint64_t *)keys.memory;
    job.dealt = 0;
    if (job.pieces == 1) lbvh_i_rows_piece(&job, 0);
    else result = lbvh_i_rows_in_pieces(&job);
    if (result != LBVH_OK)
        for (q = 0; q < rows->m; q++) lbvh_i_end_row(rows, q, rows->k);
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
    lbvh_i_keys keys;
    int32_t *counts;            /* [pieces][256] */
    lbvh_i_left_cluster *cluster; /* [n] in the same memory; a piece's from its first place on */
    int32_t left[LBVH_I_BUILD_TASKS]; /* of each piece: its clusters, or its changes */
    int32_t cut[LBVH_I_BUILD_TASKS + 1]; /* of the places, for low */
    union {
        lbvh_i_centres centres[LBVH_I_BUILD_TASKS];
        lbvh_i_roots roots[LBVH_I_BUILD_TASKS];
    } of;
} lbvh_i_build_job;

/* A job over n elements or places. */
static void lbvh_i_begin_build(lbvh_i_build_job *job, lbvh *tree, const lbvh_real *data,
                               size_t stride, int32_t n)
{
    job->tree = tree;
    job->data = data;
    job->stride = stride;
    job->n = n;
    job->pieces = lbvh_i_build_pieces(tree, n);
}

/* The first element, or place, of piece k. */
static int32_t lbvh_i_first_of(const lbvh_i_build_job *job, int32_t k)
{
    return (int32_t)lbvh_i_cut(job->n, job->pieces, k);
}

/* A task: measure. */
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

/* A task: keys. (Its digits are counted later, by pieces of keys.) */
static void lbvh_i_keys_piece(void *context, int32_t k)
{
    lbvh_i_build_job *job = (lbvh_i_build_job *)context;
    lbvh_i_histogram unused;
    lbvh_i_make_keys(job->tree, job->data, job->stride, &job->keys, &unused,
                     lbvh_i_first_of(job, k), lbvh_i_first_of(job, k + 1));
}

/* A task: count. */
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

/* A task: deal. */
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

/* A task: low. */
static void lbvh_i_low_piece(void *context, int32_t k)
{
    lbvh_i_build_job *job = (lbvh_i_build_job *)context;
    lbvh_i_sort_low(&job->keys, job->cut[k], job->cut[k + 1]);
}

/* A task: prefixes. `left` becomes the number of borders between equal codes. */
static void lbvh_i_prefixes_piece(void *context, int32_t k)
{
    lbvh_i_build_job *job = (lbvh_i_build_job *)context;
    job->left[k] = lbvh_i_key_prefixes(job->tree, &job->keys, lbvh_i_first_of(job, k),
                                       lbvh_i_first_of(job, k + 1));
}

/* Takes all clusters off the stack, into `*to` and on; `last`: the last place of the topmost
   subtree. Returns their number. */
static int32_t lbvh_i_leave_clusters(lbvh_i_cluster_arrays *c, int32_t last,
                                     lbvh_i_left_cluster *to)
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

/* Puts the `count` clusters of a subtree on the stack, and joins them as lbvh_i_cluster_by_keys
   does. */
static void lbvh_i_take_clusters(const lbvh *tree, lbvh_i_cluster_arrays *c, int32_t first,
                                 const lbvh_i_left_cluster *from, int32_t count)
{
    int32_t i;
    for (i = 0; i < count; i++)
        lbvh_i_push_entry(c, from[i].min, from[i].max, from[i].node, from[i].first);
    lbvh_i_join_entries(tree, c, first, from->last, count);
}

/* lbvh_i_cluster_by_keys within a piece. A right subtree whose sibling begins before the piece is
   alone on the stack: it is left for later. */
static void lbvh_i_cluster_piece(void *context, int32_t k)
{
    lbvh_i_build_job *job = (lbvh_i_build_job *)context;
    int32_t const begin = lbvh_i_first_of(job, k), end = lbvh_i_first_of(job, k + 1);
    lbvh_i_left_cluster *const to = job->cluster + begin;
    lbvh_i_cluster_arrays c;
    int32_t place, left = 0;
    lbvh_i_begin_arrays(job->tree, &c);
    for (place = begin; place < end; place++) {
        lbvh_i_push_leaf(job->tree, job->data, job->stride, &job->keys, &c, place);
        lbvh_i_join_entries(job->tree, &c, place, place, 1);
        if (c.top == 1 && !lbvh_i_is_left(job->tree->prefix, c.waiting[0], place))
            left += lbvh_i_leave_clusters(&c, place, to + left);
    }
    job->left[k] = left + lbvh_i_leave_clusters(&c, end - 1, to + left);
}

/* Joins what the pieces have left. Returns the root. */
static int32_t lbvh_i_cluster_the_rest(const lbvh_i_build_job *job)
{
    lbvh_i_cluster_arrays c;
    int32_t k, i, count, first = 0;
    lbvh_i_begin_arrays(job->tree, &c);
    for (k = 0; k < job->pieces; k++)
        for (i = 0; i < job->left[k]; i += count) {
            const lbvh_i_left_cluster *from = job->cluster + lbvh_i_first_of(job, k) + i;
            for (count = 1; i + count < job->left[k] && from[count].last == from->last;) count++;
            lbvh_i_take_clusters(job->tree, &c, first, from, count);
            first = from->last + 1;
        }
    return c.node[0];
}

/* A task: leaves. */
static void lbvh_i_leaves_piece(void *context, int32_t k)
{
    lbvh_i_build_job *job = (lbvh_i_build_job *)context;
    int32_t const first = lbvh_i_first_of(job, k), last = lbvh_i_first_of(job, k + 1);
    lbvh_i_key_leaves(job->tree, job->data, job->stride, &job->keys, first, last);
}

/* An ascent begins at the node of the leaves first .. last, which is finished. While that is a
   right child, the last root is its left sibling: their parent is finished. The node reached
   becomes a root. The first `fixed` roots are right children whose siblings begin before the piece.
   Returns their new number; adds to `*changes` what it counts. */
typedef int32_t lbvh_i_ascent(lbvh *tree, lbvh_i_roots *roots, int32_t fixed, int32_t first,
                              int32_t last, int32_t *changes);

/* The ascent of a merge: nothing is counted. */
static int32_t lbvh_i_raise(lbvh *tree, lbvh_i_roots *roots, int32_t fixed, int32_t first,
                            int32_t last, int32_t *changes)
{
    const uint8_t *prefix = tree->prefix;
    int32_t at = lbvh_i_number(prefix, tree->first_leaf, first, last);
    lbvh_node node;
    (void)changes;
    if (first == last) tree->node[at].skip = lbvh_i_skip(prefix, tree->n, last);
    node = tree->node[at];
    while (roots->count > fixed && !lbvh_i_is_left(prefix, first, last)) {
        int32_t const split = first - 1, right = at;
        first = roots->first[--roots->count];
        at = lbvh_i_number(prefix, tree->first_leaf, first, last);
        node.link = lbvh_i_left_child(tree->first_leaf, first, split);
        lbvh_i_unite(&node, &node, &tree->node[node.link]);
        tree->node[at] = node;
        if (tree->mask) tree->mask[at] = tree->mask[node.link] | tree->mask[right];
    }
    roots->first[roots->count++] = first;
    return lbvh_i_is_left(prefix, first, last) ? fixed : roots->count;
}

/* The ascents of all leaves of a piece: nothing changes outside of the subtrees that lie within it.
   A right child whose sibling begins before the piece is fixed. Along fixed roots prefixes
   decrease, along the others they increase: at most LBVH_STACK of each. */
LBVH_I_HOT void lbvh_i_ascend_piece(lbvh_i_build_job *job, int32_t k, lbvh_i_ascent *ascent)
{
    lbvh_i_roots *roots = &job->of.roots[k];
    int32_t const last = lbvh_i_first_of(job, k + 1);
    int32_t place, fixed = 0, changes = 0;
    roots->count = 0;
    for (place = lbvh_i_first_of(job, k); place < last; place++)
        fixed = ascent(job->tree, roots, fixed, place, place, &changes);
    job->left[k] = changes;
}

/* A task: merge. */
static void lbvh_i_raise_piece(void *context, int32_t k)
{
    lbvh_i_ascend_piece((lbvh_i_build_job *)context, k, lbvh_i_raise);
}

/* The same with the roots of all pieces, as if they were leaves. Returns all changes. */
static int32_t lbvh_i_ascend_roots(const lbvh_i_build_job *job, lbvh_i_ascent *ascent)
{
    lbvh_i_roots waiting;
    int32_t k, i, changes = 0;
    waiting.count = 0;
    for (k = 0; k < job->pieces; k++) {
        const lbvh_i_roots *own = &job->of.roots[k];
        int32_t const end = lbvh_i_first_of(job, k + 1);
        changes += job->left[k];
        for (i = 0; i < own->count; i++)
            (void)ascent(job->tree, &waiting, 0, own->first[i],
                         (i + 1 < own->count ? own->first[i + 1] : end) - 1, &changes);
    }
    return changes;
}

/* Runs a task for each piece. */
static lbvh_result lbvh_i_run_build(lbvh_i_build_job *job, lbvh_task *work)
{
    return lbvh_i_in_pieces(&job->tree->desc.parallel, job->pieces, work, job);
}

/* lbvh_i_order_elements in tasks; *equal: what that returns. */
static lbvh_result lbvh_i_order_in_pieces(lbvh_i_build_job *job, int32_t *equal)
{
    lbvh_result result = lbvh_i_run_build(job, lbvh_i_keys_piece);
    int32_t k;
    if (result != LBVH_OK) return result;
    for (job->pass = 0; job->pass < 4; job->pass++) {
        result = lbvh_i_run_build(job, lbvh_i_count_digit_piece);
        if (result != LBVH_OK) return result;
        lbvh_i_sum_digits(job);
        result = lbvh_i_run_build(job, lbvh_i_deal_piece);
        if (result != LBVH_OK) return result;
    }
    lbvh_i_cut_keys(job);
    result = lbvh_i_run_build(job, lbvh_i_low_piece);
    if (result == LBVH_OK) result = lbvh_i_run_build(job, lbvh_i_prefixes_piece);
    *equal = 0;
    for (k = 0; result == LBVH_OK && k < job->pieces; k++) *equal += job->left[k];
    return result;
}

/* lbvh_i_merge in tasks. */
static lbvh_result lbvh_i_merge_in_pieces(lbvh_i_build_job *job)
{
    lbvh_result const result = lbvh_i_run_build(job, lbvh_i_raise_piece);
    if (result == LBVH_OK) (void)lbvh_i_ascend_roots(job, lbvh_i_raise);
    return result;
}

/* LBVH_PLOC, as lbvh_i_key_ploc, but for two leaves, which are no pieces. */
static lbvh_result lbvh_i_ploc_in_pieces(lbvh_i_build_job *job)
{
    size_t const align = sizeof(lbvh_node);
    uintptr_t const behind = (uintptr_t)(job->keys.low + job->n) + align - 1;
    lbvh_result result;
    int32_t root;
    job->cluster = (lbvh_i_left_cluster *)(behind - behind % align);
    result = lbvh_i_run_build(job, lbvh_i_cluster_piece);
    if (result != LBVH_OK) return result;
    root = lbvh_i_cluster_the_rest(job);
    if (lbvh_i_number_clusters(job->tree, job->keys.key, job->keys.spare, root))
        job->keys.key = job->keys.spare;
    return LBVH_OK;
}

/* All builders: MERGE and SPLIT share a tree. */
static lbvh_result lbvh_i_build_in_pieces(lbvh *tree, const lbvh_real *data, size_t stride,
                                          int32_t n)
{
    lbvh_i_build_job job;
    lbvh_i_centres centres;
    lbvh_i_quantiles room;
    lbvh_result result;
    int32_t equal;
    int early;
    lbvh_i_begin_build(&job, tree, data, stride, n);
    result = lbvh_i_run_build(&job, lbvh_i_measure_piece);
    if (result == LBVH_OK) result = lbvh_i_join_centres(&job);
    if (result != LBVH_OK) return result;
    lbvh_i_begin_nodes(tree, n, job.of.centres[0].least, job.of.centres[0].most);
    job.keys = lbvh_i_key_room(tree);
    job.counts = (int32_t *)(void *)(job.keys.low + n);
    centres = job.of.centres[0];
    early = lbvh_i_seems_coarse(tree, data, stride);
    if (early) equal = LBVH_I_ALIKE;
    else result = lbvh_i_order_in_pieces(&job, &equal);
    if (result == LBVH_OK)
        job.keys.quantiles = lbvh_i_take_quantiles(tree, data, stride, equal, centres.least,
                                                   centres.most,
                                                   lbvh_i_behind_keys(&job.keys, n), &room);
    if (result == LBVH_OK && (early || job.keys.quantiles))
        result = lbvh_i_order_in_pieces(&job, &equal);
    if (result == LBVH_OK && tree->desc.builder == LBVH_PLOC) result = lbvh_i_ploc_in_pieces(&job);
    if (result == LBVH_OK) result = lbvh_i_run_build(&job, lbvh_i_leaves_piece);
    if (result == LBVH_OK) result = lbvh_i_merge_in_pieces(&job);
    if (result != LBVH_OK) lbvh_i_make_empty(tree);
    return result;
}

/* A task: new boxes of leaves. */
static void lbvh_i_refit_piece(void *context, int32_t k)
{
    lbvh_i_build_job *job = (lbvh_i_build_job *)context;
    lbvh_i_refit_leaves(job->tree, job->data, job->stride, lbvh_i_first_of(job, k),
                        lbvh_i_first_of(job, k + 1));
}

/* lbvh_refit in tasks: all elements are checked before the first leaf is changed. */
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

/* ------------------------------------------------------------------------------------------------
   >>seams: where the plain forms enter the faster ones. 1: the work is done, with its result
   ---------------------------------------------------------------------------------------------- */

LBVH_I_HOT int lbvh_i_build_faster(lbvh *tree, const lbvh_real *data, size_t stride, int32_t n,
                                   lbvh_result *result)
{
    *result = lbvh_i_build_pieces(tree, n) > 1 ? lbvh_i_build_in_pieces(tree, data, stride, n)
                                               : lbvh_i_build_by_keys(tree, data, stride, n);
    return 1;
}

LBVH_I_HOT int lbvh_i_refit_faster(lbvh *tree, const lbvh_real *data, size_t stride,
                                   lbvh_result *result)
{
    if (lbvh_i_build_pieces(tree, tree->n) < 2) return 0;
    *result = lbvh_i_refit_in_pieces(tree, data, stride);
    return 1;
}

LBVH_I_HOT int lbvh_i_pairs_faster(const lbvh *tree, lbvh_i_taker *taker, lbvh_result *result)
{
    if (!taker->fn && lbvh_i_search_pieces(tree, tree->n) > 1)
        *result = lbvh_i_pairs_in_pieces(tree, taker);
    else *result = lbvh_i_take_pairs(tree, taker, 0, tree->n, NULL) ? LBVH_STOPPED : LBVH_OK;
    return 1;
}

LBVH_I_HOT int lbvh_i_counts_faster(const lbvh_i_lists *lists, lbvh_result *result)
{
    *result = LBVH_OK;
    if (lbvh_i_search_pieces(lists->tree, lists->queries->n) > 1)
        *result = lbvh_i_counts_in_pieces(lists);
    else lbvh_i_count_rows(lists, 0, lists->queries->n);
    return 1;
}

LBVH_I_HOT int lbvh_i_lists_faster(const lbvh_i_lists *lists, int64_t *needed, lbvh_result *result)
{
    *result = lbvh_i_search_pieces(lists->tree, lists->queries->n) > 1
                  ? lbvh_i_lists_in_pieces(lists, needed) : lbvh_i_list_all(lists, needed);
    return 1;
}

LBVH_I_HOT int lbvh_i_rows_faster(const lbvh_i_rows *rows, int flags, lbvh_result *result)
{
    *result = lbvh_i_nearest_in_pieces(rows, flags);
    return 1;
}

#endif /* LBVH_PLAIN */

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
    a *= b;
    LBVH_I_KEEP(a);
    return a;
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
        struct { int32_t dim, bits, n, has_masks, by_id; } tree;
        int32_t part[7];    /* of an object of a part of this header (>>parts) */
    } of;
    uint64_t bytes;         /* of header and arrays */
    uint64_t checksum;      /* of the arrays, and of the header with 0 here */
} lbvh_i_header;

/* Goes on with a checksum (FNV-1a: Fowler, Noll, Vo), which begins with 0xCBF29CE484222325. */
static uint64_t lbvh_i_checksum(uint64_t sum, const void *bytes, size_t size)
{
    const unsigned char *at = (const unsigned char *)bytes;
    size_t i;
    for (i = 0; i < size; i++) sum = (sum ^ at[i]) * 0x100000001B3ull;
    return sum;
}

/* The checksum of a header, with which that of the arrays begins. */
static uint64_t lbvh_i_header_checksum(lbvh_i_header header)
{
    header.checksum = 0;
    return lbvh_i_checksum(0xCBF29CE484222325ull, &header, sizeof header);
}

/* A header but for what its object is. */
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

/* The header of a tree. */
static lbvh_i_header lbvh_i_header_of(const lbvh *tree)
{
    lbvh_i_header header = lbvh_i_begin_header("lbvh.h\r\n");
    header.of.tree.dim = tree->desc.dim;
    header.of.tree.bits = tree->desc.bits;
    header.of.tree.n = tree->n;
    header.of.tree.has_masks = tree->mask != NULL;
    header.of.tree.by_id = !tree->mixed && tree->desc.builder != LBVH_PLOC;
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
                  has_masks = header->of.tree.has_masks, by_id = header->of.tree.by_id;
    lbvh shape;
    if ((dim != 2 && dim != 3) || (bits != 30 && bits != 63)) return 0;
    if (n < 0 || n > LBVH_I_N_MAX || ((has_masks | by_id) & ~1)) return 0;
    memset(&shape, 0, sizeof shape);
    shape.mixed = !by_id;
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
    tree->mixed = !header.of.tree.by_id;
    tree->first_leaf = tree->n > 0 ? tree->n - 1 : 0;
    lbvh_i_arrays_of(tree, array);
    result = lbvh_i_read_file(header, array, bytes) ? lbvh_validate(tree) : LBVH_INVALID;
    if (result == LBVH_INVALID) result = LBVH_BAD_FILE;
    if (result != LBVH_OK) lbvh_i_make_empty(tree);
    return result;
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
} /* extern "C" */
#endif

#ifdef LBVH_CUDA
#include "cuda/lbvh.cu"
#endif

#endif /* LBVH_IMPLEMENTATION */

/* ------------------------------------------------------------------------------------------------
   >>parts: each where its macro is defined, at the first include or at a later one
   ---------------------------------------------------------------------------------------------- */

#ifdef LBVH_WITH_OPTIMIZE
#if defined(__has_include)
#if !__has_include("more/lbvh_optimize.h")
#error "lbvh.h: LBVH_WITH_OPTIMIZE needs the file more/lbvh_optimize.h: copy the folder more \
beside lbvh.h"
#endif
#endif
#include "more/lbvh_optimize.h"
#endif

#ifdef LBVH_WITH_NEAREST
#if defined(__has_include)
#if !__has_include("more/lbvh_nearest.h")
#error "lbvh.h: LBVH_WITH_NEAREST needs the file more/lbvh_nearest.h: copy the folder more \
beside lbvh.h"
#endif
#endif
#include "more/lbvh_nearest.h"
#endif

#ifdef LBVH_WITH_WORLD
#if defined(__has_include)
#if !__has_include("more/lbvh_world.h")
#error "lbvh.h: LBVH_WITH_WORLD needs the file more/lbvh_world.h: copy the folder more \
beside lbvh.h"
#endif
#endif
#include "more/lbvh_world.h"
#endif

#ifdef LBVH_WITH_WIDE
#if defined(__has_include)
#if !__has_include("more/lbvh_wide.h")
#error "lbvh.h: LBVH_WITH_WIDE needs the file more/lbvh_wide.h: copy the folder more beside lbvh.h"
#endif
#endif
#include "more/lbvh_wide.h"
#endif

#if defined(__cplusplus) && (defined(__GNUC__) || defined(__clang__))
#pragma GCC diagnostic pop
#endif

#if defined(LBVH_I_STRICT_CLANG)
#pragma float_control(pop)
#undef LBVH_I_STRICT_CLANG
#elif defined(LBVH_I_STRICT_MSVC)
#pragma float_control(pop)
#pragma fp_contract(on) /* as /fp:fast has it, where alone this is read */
#undef LBVH_I_STRICT_MSVC
#elif defined(LBVH_I_STRICT_GCC)
#pragma GCC pop_options
#undef LBVH_I_STRICT_GCC
#endif

/* ------------------------------------------------------------------------------------------------
   >>licence: choose one of two
   ------------------------------------------------------------------------------------------------
   nearfield is available under two licenses: choose whichever you prefer.
   SPDX-License-Identifier: MIT OR Unlicense

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
