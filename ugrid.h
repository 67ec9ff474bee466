/* ugrid.h - v0.2.0 - uniform grids for neighbour search among particles in 2D and 3D, C99 and CUDA.
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   A uniform grid (cell list) divides the box of n particles into equal cells and stores which
   particles each cell holds. A search within a fixed radius visits only the cells that the cube
   around the query point overlaps, instead of all n particles.

   Five builds: counting sort (COUNT), radix sort (SORT), bins of fixed size (FIXED) and linked
   lists (LIST, LIST_PACKED). Four walks order the cells of a search: one by one (CELLS), as strips
   of adjacent cells (STRIPS), and Chisholm's MODULAR and HYBRID. Each axis of the box is closed or
   periodic (minimum-image convention); an unbounded grid hashes its cells. Complete searches
   return counts, pairs and neighbour lists in CSR form, on request each pair once (Newton's third
   law). The serial code and the CUDA kernels call the same functions for one particle. So both
   give the same bits wherever an order is defined.

   >>contents: the banners in order; search for >>, the name and a colon

       manual          use, example, options, rules, method, limits, not-here, literature, changes
       declarations    strict-math, config, results, parallel, desc, filter, grid, api
       per element     cells, roundings, periodic, outside, points, entries, walk, walk-special,
                       boxes, passes, cuda-api, stb_ds, cuda-templates
       method          memory, resolve, fit, build, attributes, search, query, each
       faster forms    faster, count-faster, search-faster, entries-faster, hashed-faster, lanes,
                       query-faster, parallel-run, parallel-build, parallel-search,
                       parallel-points, parallel-attributes
       checks          validate, save
       CUDA            cuda/ugrid.cu, with a list of its own
       end             parts, licence

   To learn it from this file, read in this order: >>cells (numbers, the example), >>periodic
   (ugrid_cell_at, ugrid_i_wrap_point), >>points (ugrid_point, ugrid_i_distance2_in_box), >>build
   (the five builds, from ugrid_build at its end; axes: >>resolve), >>walk (strips, half walks);
   then >>search and >>query: a list of neighbours is a walk around each particle. TIGHT is at
   >>entries. Functions ..._faster are seams: skip them, the text below does the same. That is the
   method, whole: UGRID_PLAIN compiles no more. What makes it faster begins at >>faster. In
   cuda/ugrid.cu the sections have the same names.

   >>use

   In one C or C++ file:             #define UGRID_IMPLEMENTATION
                                     #include "ugrid.h"
   everywhere else:                  #include "ugrid.h"
   on the GPU, in one .cu file:      #define UGRID_IMPLEMENTATION
                                     #define UGRID_CUDA
                                     #include "ugrid.h"        (.cu files: cuda/ugrid.cu beside it)
   and in every file that calls it:  #define UGRID_CUDA before the include
                                     (C files too: they need no CUDA header)

   Build: cc -O3 program.c          GPU: nvcc -O3 -arch=native program.cu
   The bits are the same with -march=native, where gcc would fuse products with sums. Where a
   compiler keeps more digits (32-bit x86), add -msse2 -mfpmath=sse: else two functions can disagree
   about pairs whose distance is within a rounding of the radius.
   Under -ffast-math (-Ofast, /fp:fast) pragmas compile this header without it. The results are the
   same, except that denormals count as zero where the flag links a start file that says so.
   clang with FMA: add -ffp-contract=off after that flag.

   >>example: compiles as it stands

       #define UGRID_IMPLEMENTATION
       #include "ugrid.h"
       #include <stdio.h>

       int main(void)
       {
           float pos[] = {0.10f, 0.10f, 0.10f,   0.12f, 0.10f, 0.10f,   0.90f, 0.90f, 0.90f};
           float const radius = 0.05f;
           ugrid grid = {0};
           ugrid_desc desc = {0};
           int64_t pairs;
           int32_t i;
           ugrid_result r;
           desc.max[0] = desc.max[1] = desc.max[2] = 1;    // the box 0 .. 1
           desc.radius = radius;                           // the largest one of searches
           r = ugrid_build(&grid, &desc, pos, 0, 3);
           if (r != UGRID_OK) { puts(ugrid_result_text(r)); return 1; }
           for (i = 0; i < 3; i++) {
               const float *p = pos + 3 * i;
               ugrid_near walk = ugrid_near_point(&grid, p);
               while (ugrid_next(&walk)) {                 // candidates: test the distance yourself
                   float const d2 = ugrid_distance2(&grid, p, pos + 3 * walk.id);
                   if (walk.id != i && d2 <= radius * radius) printf("%d is near %d\n", walk.id, i);
               }
           }
           ugrid_count_pairs(&grid, radius, &pairs);       // a complete search, and faster
           ugrid_free(&grid);
           return pairs == 1 ? 0 : 1;
       }

   >>options

       name                  default   where               meaning
       UGRID_IMPLEMENTATION  -         one file            makes the functions
       UGRID_CUDA            -         all files, or none  adds the GPU functions
       UGRID_STATIC          -         each file           functions are static: a copy in each file
                                                           (each then implements, too)
       UGRID_API             extern    all files           linkage of the functions (dllexport)
       UGRID_REAL            float     all files           float or double; a mix does not link
       UGRID_WITH_TUNE       -         users, that one     adds more/ugrid_tune.h: method, cells and
                                                           walk by measuring (ugrid_tune)
       UGRID_WITH_NEAREST    -         users, that one     adds more/ugrid_nearest.h: the k nearest
                                                           particles (ugrid_nearest)
       UGRID_PLAIN           -         the file that       the method without its faster forms: no
                                       implements          vectors, no prefetching, no threads; the
                                                           results are the same
       UGRID_PLAIN_LANES     -         the same            no choice of instructions at run time
                                                           (x86: AVX-512 or AVX2 where the CPU has
                                                           it); the results are the same

   >>rules

   Words    entry   one particle in one cell: one per particle (LOOSE), or one per cell that the
                    bounding box of the particle touches (TIGHT).
            place   sorted index. SORT and COUNT: particle order[k] is at place k. FIXED, LIST and
                    TIGHT keep your order: place k is particle k.
            ghost   a particle that others list, and that has no row of its own (desc.rows); all
                    others are locals.
            row     all cells with the same y (and z); a strip is a piece of one. Row i of a list:
                    the neighbours of particle i.
            ring    a layer of cells around a cell: n rings make 2 n + 1 cells along each axis.
   Memory   Only ugrid_build, ugrid_reserve, ugrid_load, ugrid_validate, ugrid_verify, and those
            ugrid_cuda_... functions that say so, allocate, by desc.allocator. Memory grows and is
            kept. After ugrid_reserve(n), builds up to n allocate nothing. An array that is too
            small for a build grows by half at least (by what is needed, where memory is short), so
            it may hold 1.5 times the figures below. A first build and a reserve take exactly these.
            Searches need about 70 KB of stack (110 KB for double), with a filter 80 KB (120 KB).
            Bytes for n particles and c cells, float, LOOSE:
               COUNT         24 n + 4 c      records 16, order 4, work 4; inverse: 4 more
               SORT          36 n + 4 c      records 16, order 4, work 16; inverse: 4 more
               FIXED         4 c + 4 c slots
               LIST          4 n + 4 c
               LIST_PACKED   16 n + 4 c
            COUNT with desc.parallel: 8 n more; both: 4 KB more for each of up to 64 pieces.
            no_records: 16 n less. TIGHT: entries are 8 n (2D: 4 n). CUDA: the work of COUNT is
            16 n, or 8 n without records.
   Threads  There is no global state. Any number of threads may search one grid; one at a time may
            build it. One call uses many threads, yours, through desc.parallel (>>parallel).
   Errors   Every function that can fail returns a ugrid_result, and ugrid_result_text names the
            field to change. Nothing is printed and nothing aborts. No result is truncated silently:
            on overflow the exact size needed is returned.
   Units    Those of your positions. Radii are distances, not squares. The test is <= everywhere: a
            particle at the radius is a neighbour.
   Ids      int32_t, 0 .. n-1 in the order of your array. Totals and offsets are int64_t.
   Bits     The serial code and CUDA give the same cells, order, records, lists and counts, bit for
            bit, where an order is defined: UGRID_SORT, or desc.deterministic. Sums of attributes on
            the GPU have no fixed order.

   >>method: which one (figures: docs/choosing.md, docs/performance*.md)

       COUNT        the default. Particles in cell order: a strip is one contiguous range, the
                    fastest to search
       SORT         the same order, and on a GPU the same in every run; serially a counting sort
                    as COUNT's, and faster than that only from 40 cells a particle on
       FIXED        no prefix sum, and memory per cell: for lattices and fluids of known density
       LIST         the fastest build, 4 bytes per particle: for few searches per build
       LIST_PACKED  LIST with position and link in one 16-byte record
       LIST, TIGHT  8 cells per search instead of 27, for 8 entries per particle; slower, here and
                    in Barbieri's measurements. For boxes of several sizes that overlap (>>boxes)

       complete searches             ugrid_neighbors, ...: the fastest, where one fits
       ugrid_next_range, STRIPS      the default walk; SORT and COUNT only
       ugrid_next_range, HYBRID      faster than STRIPS in few cases (docs/choosing.md)
       ugrid_next_range, MODULAR     never the fastest here; on Chisholm's GPU up to 2.5 times as
                                     fast as CELLS (2D)
       ugrid_next                    any method; one particle at a time

   >>limits

   n, entries and cells: up to 2^31 - 1024; cells: 2^27 unless max_cells is raised. Cells along one
   axis: 2^24 (2^28 for double); Morton: 1024 in 3D, 32768 in 2D. TIGHT: a box spans at most 16
   cells an axis. A periodic axis may have fewer than 3 cells: each particle is found once, as its
   nearest image. Positions outside the box: a closed axis assigns them to its border cells (or as
   desc.outside says), a periodic one wraps them. NaN and infinite positions are refused with the
   index of the first (desc.skip_invalid: left out; CUDA: left out, and reported by
   ugrid_cuda_check). The square of a radius must be a normal number: 1.1e-19 .. 1.8e19 for float,
   1.5e-154 .. 1.3e154 for double.

   >>not-here

   Triclinic boxes; several cell sizes (lbvh.h is for particles of very different sizes); lists that
   persist across time steps, and contact history (nlist.h); files of other programs, threads,
   timers.

   >>literature

   Barbieri   D. Barbieri, V. Cardellini, S. Filippone: Fast Uniform Grid Construction on GPGPUs
              Using Atomic Operations.
   Chisholm   R. Chisholm, P. Richmond, S. Maddock: Optimising Scattered Memory Access of Uniform
              Spatial Partitioning.
   Kureck     H. G. Kureck: Design and Implementation of Massively Parallel Algorithms on GPUs for
              Particle Simulation, master's thesis, TU Graz 2016.
   Blog       NVIDIA developer blog: Voting and Shuffling to Optimize Atomic Operations; Fast
              Histograms Using Shared Atomics on Maxwell; Optimized Filtering with Warp-Aggregated
              Atomics; Faster Parallel Reductions on Kepler.
   Green      S. Green: CUDA Particles, NVIDIA 2008.
   Teschner   M. Teschner et al.: Optimized Spatial Hashing, 2003.

   >>changes

   0.2.0  2026-11-28: rows for some; a filter of pairs; particles outside the box, or not finite,
          left out; UGRID_FIXED grows; a box for each particle (>>boxes); threads; save, load,
          upload; UGRID_PLAIN
   0.1.0  first version
*/

/* ----------------------------------------------------------------------------------------------
   >>strict-math: -ffast-math and its parts (-Ofast, -ffinite-math-only, /fp:fast ...) are disabled
   here. From here to the end of this file the compiler respects NaN, infinity and the order of
   roundings. After it the caller's options apply again.
   ---------------------------------------------------------------------------------------------- */
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0) || \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || \
    defined(__NO_SIGNED_ZEROS__) || defined(_M_FP_FAST)
#define UGRID_I_FAST_MATH
#if defined(__clang__) && \
    (defined(__i386__) || defined(__x86_64__) || defined(_M_X64) || defined(__s390x__) || \
     defined(__powerpc64__) || __clang_major__ >= 16) && \
    __clang_major__ >= 11 && !defined(__wasm__)
#define UGRID_I_STRICT_CLANG
#if defined(__FMA__) || !(defined(__i386__) || defined(__x86_64__) || defined(_M_X64))
#define UGRID_I_KEEP_BY_ASM
#endif
#pragma float_control(push)
#pragma float_control(precise, on)
#pragma clang fp contract(off)
#elif defined(_MSC_VER) && !defined(__clang__)
#define UGRID_I_STRICT_MSVC
#pragma float_control(precise, on, push)
#pragma fp_contract(off)
#elif defined(__GNUC__) && !defined(__clang__) && !defined(__INTEL_COMPILER) && \
    !defined(__NVCOMPILER)
#define UGRID_I_STRICT_GCC
#if __GNUC__ >= 12 && !defined(__NVCC__)
#define UGRID_I_KEEP_BY_BARRIER
#elif !defined(__CUDA_ARCH__)
#define UGRID_I_KEEP_BY_ASM
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
#elif defined(UGRID_IMPLEMENTATION)
#error "ugrid.h: this compiler cannot keep the order of roundings: compile without -ffast-math"
#endif
#elif defined(__GNUC__) && !defined(__clang__) && !defined(__CUDA_ARCH__) && \
    (defined(__FMA__) || !(defined(__i386__) || defined(__x86_64__)))
/* gcc fuses a product with a sum, unless -std=c99 or its like is given. */
#define UGRID_I_KEEP_BY_ASM
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

#ifndef UGRID_H
#define UGRID_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define UGRID_VERSION_MAJOR 0
#define UGRID_VERSION_MINOR 2
#define UGRID_VERSION_PATCH 0

/* ----------------------------------------------------------------------------------------------
   >>config: compile-time choices (>>options says where each must be defined)
   ---------------------------------------------------------------------------------------------- */

#ifndef UGRID_REAL
#define UGRID_REAL float
#endif

/* 1 for float, 2 for double: a number that the preprocessor can compare. */
#define UGRID_I_REAL_float  1
#define UGRID_I_REAL_double 2
#define UGRID_I_PASTE(a, b) a##b
#define UGRID_I_KIND_OF(real) UGRID_I_PASTE(UGRID_I_REAL_, real)
#define UGRID_I_REAL_KIND UGRID_I_KIND_OF(UGRID_REAL)

#if UGRID_I_REAL_KIND != 1 && UGRID_I_REAL_KIND != 2
#error "ugrid.h: UGRID_REAL must be float or double"
#endif

#if defined(UGRID_IMPLEMENTATION) && defined(UGRID_CUDA) && !defined(__CUDACC__)
#error "ugrid.h: UGRID_IMPLEMENTATION with UGRID_CUDA needs nvcc: put both into one .cu file"
#endif

#ifndef UGRID_API
#ifdef UGRID_STATIC
#if defined(__GNUC__) || defined(__clang__)
#define UGRID_API __attribute__((unused)) static
#else
#define UGRID_API static inline
#endif
#else
#define UGRID_API extern
#endif
#endif

/* Functions of one element, shared by CPU and GPU: `static inline` in C, and under nvcc also for
   the device. UGRID_FN_WALK marks those of a caller's innermost loop. In a file with -ffast-math,
   gcc does not inline a function that respects NaN and the order of roundings. These are therefore
   compiled with the caller's options, and ugrid_i_kept keeps their order of operations.
   UGRID_FN_RARE: not inlined, where it would take the registers of such a loop. */
#ifdef __CUDACC__
#include <cuda_runtime.h>
#include <float.h>
#if defined(UGRID_I_FAST_MATH) && !defined(__CUDA_ARCH__)
#define UGRID_FN static __host__ __device__ inline
#else
#define UGRID_FN static __host__ __device__ __forceinline__
#endif
#define UGRID_FN_WALK static __host__ __device__ __forceinline__
#define UGRID_FN_RARE static __host__ __device__ __forceinline__
#define UGRID_ALIGN_RECORD __align__(16)
#else
#define UGRID_FN static inline
#ifdef UGRID_I_STRICT_GCC
#define UGRID_FN_WALK static inline __attribute__((always_inline))
#else
#define UGRID_FN_WALK static inline
#endif
#ifdef __GNUC__
#define UGRID_FN_RARE static __attribute__((noinline, unused))
#else
#define UGRID_FN_RARE static inline
#endif
#define UGRID_ALIGN_RECORD
#endif

/* In a double build every function gets a second name. So a program that mixes float and double
   builds does not link, instead of computing wrong numbers. */
#if UGRID_I_REAL_KIND == 2 && !defined(NEARFIELD_NAMESPACE)
#define ugrid_defaults          ugrid_f64_defaults
#define ugrid_choose            ugrid_f64_choose
#define ugrid_fit               ugrid_f64_fit
#define ugrid_reserve           ugrid_f64_reserve
#define ugrid_build             ugrid_f64_build
#define ugrid_free              ugrid_f64_free
#define ugrid_bytes             ugrid_f64_bytes
#define ugrid_validate          ugrid_f64_validate
#define ugrid_verify            ugrid_f64_verify
#define ugrid_save              ugrid_f64_save
#define ugrid_load              ugrid_f64_load
#define ugrid_gather            ugrid_f64_gather
#define ugrid_scatter           ugrid_f64_scatter
#define ugrid_cell_sums         ugrid_f64_cell_sums
#define ugrid_query             ugrid_f64_query
#define ugrid_query_box         ugrid_f64_query_box
#define ugrid_count_pairs       ugrid_f64_count_pairs
#define ugrid_count_overlaps    ugrid_f64_count_overlaps
#define ugrid_count_neighbors   ugrid_f64_count_neighbors
#define ugrid_neighbors         ugrid_f64_neighbors
#define ugrid_neighbors_at      ugrid_f64_neighbors_at
#define ugrid_each_pair         ugrid_f64_each_pair
#define ugrid_each_row          ugrid_f64_each_row
#define ugrid_each_row_in       ugrid_f64_each_row_in
#define ugrid_result_text       ugrid_f64_result_text
#define ugrid_version           ugrid_f64_version
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>results: what calls return
   ---------------------------------------------------------------------------------------------- */

/* One list defines the codes and their texts. */
#define UGRID_RESULTS(X) \
    X(UGRID_OK, "all is well") \
    X(UGRID_STOPPED, "the callback returned non-zero and so ended the search") \
    X(UGRID_BAD_ARGUMENT, \
      "a pointer is NULL (ids too, unless capacity is 0), a count or capacity is negative, or " \
      "stride is wrong: it is in bytes, 0 (tightly packed) or a multiple of sizeof(ugrid_real) " \
      "that holds dim of them") \
    X(UGRID_BAD_DIM, "desc.dim must be 2 or 3 (0 means 3)") \
    X(UGRID_BAD_BOX, \
      "desc.min must be below desc.max on every axis, both finite; a periodic axis, a " \
      "reserve and a CUDA build need them given") \
    X(UGRID_BAD_CELL, \
      "desc.cell must be positive and finite (0: chosen from n and the box; an unbounded " \
      "grid, a reserve and a CUDA build need it, or desc.radius, given)") \
    X(UGRID_BAD_SIZE, \
      "desc.size must be positive and finite and span at most 16 cells an axis: enlarge " \
      "desc.cell; desc.half_extents needs desc.placement UGRID_TIGHT, and each of them must be 0 " \
      ".. size / 2: grid.bad_id is the first") \
    X(UGRID_BAD_SLOTS, \
      "desc.slots must be positive (0 means 32), and cells * slots below 2^31: fewer slots, " \
      "or a larger desc.cell") \
    X(UGRID_BAD_OPTION, \
      "an enum of desc or a flag of the call has a value that does not exist, desc.split is " \
      "not 0 .. 64, desc.parallel.tasks is not 0 .. 1024, buckets or max_cells is negative, or " \
      "unbounded meets periodic") \
    X(UGRID_BAD_WALK, \
      "UGRID_STRIPS and UGRID_HYBRID need UGRID_SORT or UGRID_COUNT, UGRID_ROWS, " \
      "UGRID_LOOSE and a box: choose another desc.walk") \
    X(UGRID_BAD_PLACEMENT, \
      "UGRID_LIST_PACKED has one link per particle and so only UGRID_LOOSE: choose another " \
      "desc.method") \
    X(UGRID_BAD_ALLOCATOR, \
      "desc.allocator needs both alloc and free, or neither, and stays the same until " \
      "ugrid_free") \
    X(UGRID_BAD_RADIUS, \
      "radius must be positive and finite, and its square a normal number: 1.1e-19 .. 1.8e19 " \
      "for float") \
    X(UGRID_NOT_FINITE, \
      "a position is NaN or infinite: of a build, grid.bad_id is the first such particle; " \
      "desc.skip_invalid leaves them out") \
    X(UGRID_TOO_MANY_CELLS, \
      "grid.needed_cells exceeds desc.max_cells: enlarge desc.cell, raise max_cells, or set " \
      "desc.unbounded") \
    X(UGRID_TOO_MANY_ENTRIES, \
      "more than 2^31 - 1024 entries: fewer particles, or a smaller desc.size against " \
      "desc.cell") \
    X(UGRID_CELL_FULL, \
      "a cell of UGRID_FIXED holds more than desc.slots: set desc.slots to " \
      "grid.needed_slots, or set desc.grow") \
    X(UGRID_BUFFER_TOO_SMALL, \
      "the caller's array is too small: the size needed was returned, and is exact") \
    X(UGRID_OUT_OF_MEMORY, "an allocation failed: desc.allocator or malloc returned NULL") \
    X(UGRID_NOT_BUILT, \
      "there was no build, or it was refused, or grid.pos is not set after a download: call " \
      "ugrid_build first, and look at its result") \
    X(UGRID_INVALID, "ugrid_validate or ugrid_verify found the structure damaged") \
    X(UGRID_CUDA_ERROR, "a CUDA call failed: grid.cuda_error has its cudaError_t") \
    X(UGRID_BOX_TOO_WIDE, \
      "the points, or desc.min and desc.max, span more than the largest ugrid_real along an " \
      "axis: scale the positions down") \
    X(UGRID_BAD_ROWS, "desc.rows must be 0 .. n (0 means n), or UGRID_NO_ROWS; CUDA: 0") \
    X(UGRID_OUTSIDE_BOX, \
      "desc.outside refuses particles outside the box: grid.bad_id is the first, grid.outside " \
      "their number; a larger desc.max, or another desc.outside") \
    X(UGRID_BAD_FILTER, \
      "grid.filter.exclude_start needs exclude, filter.largest must be finite and not negative, " \
      "each of filter.radii 0 .. filter.largest, and radii_stride a multiple of their size") \
    X(UGRID_NOT_RUN, \
      "desc.parallel.run returned before it had run every task: it must call each, once") \
    X(UGRID_BAD_FILE, \
      "these bytes are not a grid saved by this version, with this real type and byte order, " \
      "undamaged")

#define UGRID_I_CODE(code, text) code,
typedef enum ugrid_result { UGRID_RESULTS(UGRID_I_CODE) UGRID_RESULT_COUNT } ugrid_result;

/* ----------------------------------------------------------------------------------------------
   >>parallel: a hook for threads of yours. The header starts none. Where desc.parallel has a
   function, a call cuts its work into tasks that share nothing they write, and has them run by it:

       static void run(ugrid_task *task, void *context, int32_t tasks, void *user)
       {
           int32_t i;
           #pragma omp parallel for schedule(dynamic, 1)
           for (i = 0; i < tasks; i++) task(context, i);
       }

   Every result is that of the serial code, bit for bit, for any number of tasks in any order.
   In tasks run ugrid_build with COUNT and SORT (the orders of FIXED and LIST come from entering the
   particles one by one), ugrid_fit, ugrid_count_pairs, ugrid_count_neighbors, ugrid_neighbors,
   ugrid_neighbors_at, ugrid_gather, ugrid_scatter, and ugrid_cell_sums where places ascend with
   cells (SORT and COUNT, LOOSE). A search uses the hook of the grid's last build,
   grid.desc.parallel, which you may change. Threads that search one grid at once call one `run` at
   once. Walks, queries, each_pair and each_row stay in the calling thread, and so do CUDA calls. A
   task needs the stack of a search (>>rules) and allocates nothing. With UGRID_PLAIN all is serial.
   The hook is called from 4,096 particles (ugrid_neighbors_at: points) on for a search, and from
   32,768 on for all else.

   UGRID_NOT_RUN: a task was left out. A build has then left the grid not built, as any refusal
   does. Sums, counts and offsets of a search are 0, and its other arrays are not specified.
   ---------------------------------------------------------------------------------------------- */

typedef void ugrid_task(void *context, int32_t index);
typedef void ugrid_run(ugrid_task *task, void *context, int32_t tasks, void *user);

typedef struct ugrid_parallel {
    ugrid_run *run;     /* calls task(context, 0 .. tasks-1), each once, in any order, on any
                           threads, and returns when all are done (default, NULL: serial) */
    void *user;         /* passed to run */
    int32_t tasks;      /* into how many pieces to cut at most, some times the number of threads;
                           fewer where the work is not worth it; 0 and 1: serial; at most 1024 */
} ugrid_parallel;

/* ----------------------------------------------------------------------------------------------
   >>desc: what to build. All zero is valid; every field says its default.
   ---------------------------------------------------------------------------------------------- */

typedef UGRID_REAL ugrid_real;

/* How the particles of a cell are stored. */
typedef enum ugrid_method {
    UGRID_AUTO = 0,     /* chosen from n and the number of cells; grid.desc.method and grid.reason
                           tell the choice */
    UGRID_COUNT,        /* count per cell, prefix sum, scatter (Barbieri section 1) */
    UGRID_SORT,         /* radix sort of (cell, id), starts by comparing neighbours (Barbieri
                           section 1; Kureck section 2.3.1) */
    UGRID_FIXED,        /* a counter and desc.slots slots per cell (Barbieri section 1) */
    UGRID_LIST,         /* linked lists: head per cell, next per entry (Barbieri section 2) */
    UGRID_LIST_PACKED   /* the same, with the link beside the position in one record */
} ugrid_method;

/* In which cells a particle is entered (Barbieri section 1). */
typedef enum ugrid_placement {
    UGRID_LOOSE = 0,    /* once, in the cell of its centre */
    UGRID_TIGHT         /* in every cell that its box touches: of edge desc.size, or a box for each
                           (>>boxes) */
} ugrid_placement;

/* In which order the cells near a point are visited (Chisholm; drawn at >>walk). */
typedef enum ugrid_walk {
    UGRID_WALK_AUTO = 0,/* strips where the grid allows them, else cells */
    UGRID_CELLS,        /* one by one: 9 in 2D, 27 in 3D */
    UGRID_STRIPS,       /* strip by strip, each one range of places: 3 in 2D, 9 in 3D */
    UGRID_MODULAR,      /* one by one, in the order of their coordinates modulo 3 */
    UGRID_HYBRID        /* strips along x, modulo 3 along the other axes */
} ugrid_walk;

/* How cells are numbered (Barbieri section 1, where ROWS concatenates the bits of z, y, x: the same
   number where the cells per axis are powers of two). */
typedef enum ugrid_cell_order {
    UGRID_ROWS = 0,     /* (z * cells_y + y) * cells_x + x */
    UGRID_MORTON        /* bits of x, y, z interleaved: nearby cells get nearby numbers */
} ugrid_cell_order;

/* Where a cell's slots lie (UGRID_FIXED). */
typedef enum ugrid_slot_layout {
    UGRID_SLOTS_BY_COLUMN = 0,  /* slot s of cell c at s * cells + c: adjacent cells, adjacent
                                   words */
    UGRID_SLOTS_BY_ROW          /* slot s of cell c at c * slots + s: a cell is contiguous */
} ugrid_slot_layout;

/* What becomes of particles outside the box on an axis that is not periodic (>>outside). */
typedef enum ugrid_outside {
    UGRID_CLAMP = 0,    /* they belong to the border cells */
    UGRID_REFUSE,       /* UGRID_OUTSIDE_BOX: grid.bad_id is the first */
    UGRID_LEAVE_OUT     /* they are in no cell: no search finds them, and their rows are empty */
} ugrid_outside;

typedef struct ugrid_allocator {
    void *(*alloc)(size_t bytes, void *user);
    void (*free)(void *memory, size_t bytes, void *user);
    void *user;
} ugrid_allocator;

struct CUstream_st; /* cudaStream_t is a pointer to it: plain C needs no CUDA header */

/* Device memory for ugrid_cuda. The memory must be usable in stream order on `stream`. */
typedef struct ugrid_cuda_allocator {
    void *(*alloc)(size_t bytes, struct CUstream_st *stream, void *user);
    void (*free)(void *memory, size_t bytes, struct CUstream_st *stream, void *user);
    void *user;
} ugrid_cuda_allocator;

enum { UGRID_NO_ROWS = -1 }; /* desc.rows: all particles are ghosts */

/* Fields that switch something: 0 is off, anything else is on. */
typedef struct ugrid_desc {
    int32_t dim;                     /* coordinates per point, 2 or 3 (default: 3) */
    ugrid_real min[3], max[3];       /* the box (default, all zero: the points' own bounding box) */
    ugrid_real cell;                 /* edge of a cell; an axis gets floor(length / cell) cells, at
                                        least 1, of equal width (default: as ugrid_fit says, by
                                        `radius`, which a caller knows) */
    int32_t split;                   /* each cell is divided into this many along x, so that the
                                        strips of a search exceed its radius by less (default: 1;
                                        CUDA with UGRID_AUTO: 4 for many particles in crowded
                                        cells, on average or as the last ugrid_cuda_check saw it,
                                        >>split in cuda/ugrid.cu, and grid.reason says so; 1 keeps
                                        the cells that `cell` gives; at most 64) */
    int32_t periodic[3];             /* per axis: 1 = periodic; 0 = closed, see outside */
    ugrid_outside outside;           /* particles outside the box (default: UGRID_CLAMP) */
    int32_t unbounded;               /* 1: no box; cells of edge `cell` everywhere, hashed into
                                        `buckets` (default: 0, but see ugrid_fit) */
    int32_t buckets;                 /* unbounded: hash buckets, rounded up to a power of two
                                        (default: about n) */
    ugrid_method method;             /* (default: UGRID_AUTO) */
    ugrid_placement placement;       /* (default: UGRID_LOOSE) */
    ugrid_real size;                 /* UGRID_TIGHT: edge of each particle's box; with half_extents
                                        no edge is larger (>>boxes; default: cell) */
    ugrid_walk walk;                 /* (default: UGRID_WALK_AUTO) */
    ugrid_cell_order cell_order;     /* (default: UGRID_ROWS) */
    int32_t slots;                   /* UGRID_FIXED: slots per cell (default: 32) */
    int32_t grow;                    /* UGRID_FIXED: 1 = where a cell is full, slots is doubled
                                        until all fit, and stays so in later builds with grow: one
                                        crowded cell makes all as large. CUDA:
                                        the build then waits for the stream (default: 0,
                                        UGRID_CELL_FULL) */
    ugrid_slot_layout slot_layout;   /* UGRID_FIXED (default: UGRID_SLOTS_BY_COLUMN) */
    int32_t no_records;              /* SORT, COUNT: 1 = ids only, no copy of the positions in cell
                                        order (default: 0) */
    int32_t coherent;                /* CUDA, COUNT: 1 = pos is nearly in cell order, as some steps
                                        after ugrid_cuda_gather: one round of counting is then
                                        faster than the two of >>parts (cuda/ugrid.cu), for
                                        particles that exceed half of the L2 cache. Both are correct
                                        (default: 0, decided by what earlier builds saw, >>order
                                        there; in a CUDA graph, two rounds) */
    int32_t inverse;                 /* SORT, COUNT: 1 = fill grid.inverse, the place of each
                                        particle (default: 0) */
    int32_t deterministic;           /* CUDA: 1 = every array equals that of the serial build, bit
                                        for bit. The serial build and UGRID_SORT on a GPU always are
                                        deterministic (default: 0) */
    int32_t rows;                    /* particles 0 .. rows-1 have rows in searches; the others,
                                        ghosts, are neighbours only (default: all; UGRID_NO_ROWS:
                                        none. CUDA: only the default) */
    int32_t skip_invalid;            /* 1 = particles with a NaN or infinite position are in no
                                        cell, as those of UGRID_LEAVE_OUT (default: 0, refused; CUDA
                                        always does this, and ugrid_cuda_check tells) */
    int64_t max_cells;               /* more cells are refused (default: 2^27; at most 2^31 -
                                        1024) */
    ugrid_allocator allocator;       /* (default: malloc and free) */
    ugrid_cuda_allocator cuda_allocator; /* (default: cudaMallocAsync and cudaFreeAsync) */
    ugrid_parallel parallel;         /* a hook for threads (default: serial) */
    const ugrid_real *half_extents;  /* UGRID_TIGHT only: half the edges of the box of each
                                        particle, dim numbers a particle, 0 .. size / 2; borrowed as
                                        pos is (>>boxes; default: all are size / 2) */
    size_t half_extent_stride;       /* of half_extents, as the stride of pos (default: tightly
                                        packed) */
    ugrid_real radius;               /* the largest radius of searches, by which a cell that is 0 is
                                        chosen (default: 0, not known) */
} ugrid_desc;

/* ----------------------------------------------------------------------------------------------
   >>filter: which pairs the searches over all particles list: count_pairs, count_neighbors,
   neighbors, each_pair, each_row, arr_pairs (CUDA: the first three, ugrid_cuda_each and
   ugrid_cuda_sum). Set it in a grid that is built; the next build clears it. Arrays are borrowed
   (CUDA: device memory). Walks, queries and cell sums do not read it.

       ugrid_build(&grid, &desc, pos, 0, n);            // fluid and wall in one grid
       grid.filter.sets = sets;                         // 0 fluid, 1 wall
       grid.filter.sees[0] = 1 << 0 | 1 << 1;           // fluid lists fluid and wall,
       grid.filter.sees[1] = 0;                         // wall lists nothing
       ugrid_neighbors(&grid, radius, 0, ...);

   With radii two particles are listed within radius + radii[i] + radii[j]; radius may then be 0
   (CUDA: not). It is one search with the largest reach, of whose hits it keeps some: for radii that
   differ much, use lbvh.h.
   ---------------------------------------------------------------------------------------------- */

typedef struct ugrid_filter {
    const ugrid_real *radii;        /* [n] a radius per particle (default: none, all 0) */
    ugrid_real largest;             /* with radii: the largest of them. CUDA: larger ones count as
                                       this one */
    const uint32_t *masks;          /* [n] only pairs whose masks share a bit (default: all) */
    const int64_t *exclude_start;   /* [n + 1] with exclude: pairs that are not listed; one of its
                                       two rows is enough (default: none) */
    const int32_t *exclude;         /* particle i excludes exclude[exclude_start[i]] ..
                                       exclude[exclude_start[i+1] - 1] */
    const uint8_t *sets;            /* [n] the set of each particle, 0 .. 31 (default: one set) */
    uint32_t sees[32];              /* with sets: bit t of sees[s]: rows of set s list particles of
                                       set t. UGRID_HALF, count_pairs: one of both directions is
                                       enough */
    size_t radii_stride;            /* bytes between two radii (default, 0: tightly packed) */
} ugrid_filter;

/* ----------------------------------------------------------------------------------------------
   >>grid: the object. All zero is empty. You may read every array; those that the method does not
   use are NULL.
   ---------------------------------------------------------------------------------------------- */

/* A position and one number: 16 bytes for float, one load on a GPU. For double 32, the last 4 of
   which are padding, and not defined. */
typedef struct UGRID_ALIGN_RECORD ugrid_record {
    ugrid_real x[3];    /* 2D: x[2] = 0; periodic axes: wrapped into the box */
    int32_t link;       /* SORT, COUNT: the particle's id; LIST_PACKED: the next particle of the
                           cell, -1 = last */
} ugrid_record;

typedef struct ugrid_axis {
    ugrid_real min, max;
    ugrid_real length;  /* max - min where periodic, else 0 */
    ugrid_real half;    /* length / 2 where periodic, else the largest number: no distance exceeds
                           it */
    ugrid_real per_cell;/* cells per unit of length */
    ugrid_real last;    /* cells - 1, as a real */
    ugrid_real margin;  /* added to the extent of a search, against rounding */
    int32_t cells;      /* 1 on the third axis in 2D */
    int32_t periodic;
    int32_t span;       /* the most cells along this axis that one particle is entered in: 1 for
                           LOOSE, 2 for TIGHT with size <= cell */
} ugrid_axis;

typedef struct ugrid_block { void *memory; size_t bytes; } ugrid_block;
enum { UGRID_BLOCKS = 8 };

typedef struct ugrid {
    ugrid_desc desc;        /* resolved: defaults and automatic choices are filled in */
    ugrid_filter filter;    /* which pairs searches list; set by you (default: all) */
    const char *reason;     /* why UGRID_AUTO chose this method, and on CUDA this split */
    int32_t n;              /* particles; places are 0 .. n-1 */
    int32_t rows;           /* particles with rows: n, or as desc.rows says */
    int32_t cell_count;     /* cell numbers are 0 .. cell_count-1: cells, Morton codes or buckets */
    int32_t entries;        /* LOOSE: n; TIGHT: cells touched, summed over all particles (CUDA: -1,
                               unknown on the host) */
    int32_t spans;          /* entry e belongs to particle e / spans: 1 for LOOSE, 8 for TIGHT in 3D
                               with size <= cell */
    ugrid_axis axis[3];
    ugrid_real tight_half;  /* TIGHT: size / 2, else 0 */
    int32_t third;          /* index of the third coordinate: 2; in 2D 0, and not read. (`p[2]`
                               would make compilers warn where an array of two numbers is
                               passed.) */
    int32_t built;          /* 1: the last build succeeded (n = 0 included); 0: no build, or it was
                               refused */

    int32_t *start;         /* SORT, COUNT: [cell_count + 1] cell c holds places start[c] ..
                               start[c+1]-1 */
    int32_t *order;         /* SORT, COUNT: [entries] the entry (LOOSE: the particle) at each
                               place */
    int32_t *inverse;       /* SORT, COUNT with desc.inverse, LOOSE: [n] the place of each
                               particle */
    ugrid_record *record;   /* SORT, COUNT, LOOSE: [n] by place; LIST_PACKED: [n] by particle */
    int32_t *count;         /* FIXED: [cell_count] entries of each cell, stored or not */
    int32_t *slot;          /* FIXED: [cell_count * slots] entries */
    int32_t *head;          /* LIST, LIST_PACKED: [cell_count] first entry of the cell, -1 = none */
    int32_t *next;          /* LIST: [n * spans] the following entry, -1 = last */

    const ugrid_real *pos;  /* the caller's positions, borrowed: FIXED, LIST, TIGHT and no_records
                               read them in searches */
    size_t stride;          /* bytes from one position to the next */

    int32_t bad_id;         /* the first particle that was refused, or left out as not finite, else
                               -1 */
    int32_t outside;        /* UGRID_REFUSE, UGRID_LEAVE_OUT: particles outside the box (CUDA:
                               fetched by ugrid_cuda_check) */
    int32_t invalid;        /* desc.skip_invalid: particles left out as not finite (CUDA: fetched by
                               ugrid_cuda_check) */
    int32_t needed_slots;   /* FIXED: entries in the fullest cell (CUDA: 0 where all fit) */
    int64_t needed_cells;   /* number of cells that box and cell require */
    int32_t cuda_error;     /* UGRID_CUDA_ERROR: the cudaError_t */

    ugrid_block block[UGRID_BLOCKS]; /* the memory behind the arrays */
    ugrid_real tight_least; /* every box reaches so far from its centre: tight_half, or 0 with
                               desc.half_extents */
    const char *cell_reason; /* why the last build, or load, took this cell */
} ugrid;

/* ----------------------------------------------------------------------------------------------
   >>api: functions. Unless a comment says otherwise, a call on a const ugrid may run in many
   threads at once, allocates nothing, and writes only to arrays of yours. Any call may return
   UGRID_BAD_ARGUMENT, which a NULL pointer does before anything else; a search also
   UGRID_BAD_RADIUS, and UGRID_BAD_OPTION for an unknown flag. Every call that reads a grid returns
   UGRID_NOT_BUILT if the last build was refused, or if there was none since the object was zeroed,
   reserved or freed. A grid built with n = 0 is built. The walks (ugrid_near_...) have no result:
   they visit nothing there. The cost of a search is one distance test for each particle in the
   cells that it visits, and a look at each of these cells: at a row of them along x at once
   (strips), and in an unbounded grid at no more than all buckets.
   ---------------------------------------------------------------------------------------------- */

/* The version of the implementation, 10000 * major + 100 * minor + patch. */
UGRID_API int ugrid_version(void);

/* What a result means, and which field to change. Never NULL. */
UGRID_API const char *ugrid_result_text(ugrid_result result);

/* `*out` = `*desc` (NULL: all defaults), with every default that does not depend on the points
   filled in, also when the desc is refused. Results: any refusal of ugrid_build that does not
   depend on the points. */
UGRID_API ugrid_result ugrid_defaults(ugrid_desc *out, const ugrid_desc *desc);

/* The method that UGRID_AUTO chooses for n particles in `cells` cells; `*reason` (may be NULL) says
   why. */
UGRID_API ugrid_method ugrid_choose(const ugrid_desc *desc, int32_t n, int64_t cells,
                                    const char **reason);

/* Sets desc->min and desc->max to the bounding box of the points if both are all zero, and
   desc->cell if it is 0: to about 2 particles per cell, or to desc->radius if that is larger (a
   half or a third of it where such cells would hold 64 particles and more). Where it sets both, for
   4,096 points and more, it looks at a sample. If three quarters of the points would be in crowded
   cells (one is far away, clusters are far apart, or they are a curve), it sets desc->unbounded,
   and the cell by the density where the points are; not with options that an unbounded grid has
   not, or with an outside other than UGRID_CLAMP. Crowded: 180 points and more, or n / 750 where n
   is above 131,072. ugrid_build calls it. pos, stride: as there. UGRID_NOT_FINITE: `*bad_id` (may
   be NULL) is the first such point; desc->skip_invalid leaves them out of the box. UGRID_BAD_BOX: a
   periodic axis needs a given box. UGRID_BOX_TOO_WIDE: no box of ugrid_real holds the points; an
   unbounded grid needs none. O(n). */
UGRID_API ugrid_result ugrid_fit(ugrid_desc *desc, const ugrid_real *pos, size_t stride, int32_t n,
                                 int32_t *bad_id);

/* Allocates the memory that ugrid_build needs for n particles, so that builds up to n allocate
   nothing. Needs desc.min and desc.max (or unbounded) and desc.cell or desc.radius. Results: any
   refusal of ugrid_build that does not depend on the points, or UGRID_OUT_OF_MEMORY. The grid is
   empty and not built afterwards. Not thread-safe on one grid. */
UGRID_API ugrid_result ugrid_reserve(ugrid *grid, const ugrid_desc *desc, int32_t n);

/* Assigns n points to cells. pos: n points of desc->dim coordinates, `stride` bytes apart (0 =
   tightly packed). desc NULL = all defaults. Another build reuses the memory. Results: any that
   concerns desc, the points or memory. After any refusal the grid is empty and not built (n = 0),
   keeps its memory, and bad_id, needed_slots and needed_cells say what was wrong. outside and
   desc.skip_invalid cost a pass over the points.
   Order: ids ascend within a cell (SORT, COUNT, FIXED); LIST and LIST_PACKED: ids descend.
   UGRID_FIXED, UGRID_LIST, UGRID_TIGHT and desc.no_records borrow pos until the next build or free.
   Cost: O(n + cells). Not thread-safe on one grid; different grids may be built at once. */
UGRID_API ugrid_result ugrid_build(ugrid *grid, const ugrid_desc *desc, const ugrid_real *pos,
                                   size_t stride, int32_t n);

/* Frees the memory and empties the grid; an empty grid is fine. */
UGRID_API void ugrid_free(ugrid *grid);

/* Bytes of memory that the grid holds. */
UGRID_API int64_t ugrid_bytes(const ugrid *grid);

/* Checks the invariants: UGRID_OK, or UGRID_INVALID unless every particle is in its cells, each
   once, and nothing else is. For tests and students. Needs the positions of the build:
   UGRID_NOT_BUILT after a download, and after ugrid_load where the grid has records, until
   grid->pos and grid->stride are set. Allocates n * spans bytes. O(n + cells). */
UGRID_API ugrid_result ugrid_validate(const ugrid *grid);

/* Checks the structure as ugrid_validate does, then the answers: the particles that walks find
   within `radius` of `samples` particles, against brute force. Samples are spread over the ids and
   vary with the seed; more than n: all. UGRID_INVALID: `*bad_id` (may be NULL) is the first
   particle with a wrong answer, -1 if the structure is damaged. For tests with your own data.
   Allocates n * spans bytes. O(n + cells + samples * n). */
UGRID_API ugrid_result ugrid_verify(const ugrid *grid, ugrid_real radius, int32_t samples,
                                    uint32_t seed, int32_t *bad_id);

/* dst[k] = src[particle at place k] for n elements of `bytes` bytes: permutes any attribute into
   the grid's order. FIXED, LIST and TIGHT keep the caller's order: a plain copy. src and dst must
   not overlap. O(n * bytes). */
UGRID_API ugrid_result ugrid_gather(const ugrid *grid, const void *src, size_t bytes, void *dst);

/* dst[particle at place k] = src[k]: the inverse permutation. */
UGRID_API ugrid_result ugrid_scatter(const ugrid *grid, const void *src, size_t bytes, void *dst);

/* sums[c * width + w] = sum of values[i * width + w] over the particles i whose centre lies in cell
   c: particle-in-cell averaging (Blog). values: n * width numbers by particle; sums: cell_count *
   width numbers, overwritten. Added in ascending order of ids. The cell of a point: ugrid_cell_at.
   O((n + cells) * width). */
UGRID_API ugrid_result ugrid_cell_sums(const ugrid *grid, const ugrid_real *values, int32_t width,
                                       ugrid_real *sums);

/* The particles within `radius` of point p (distance <= radius; nearest image on periodic axes), in
   no fixed order. ids: room for `capacity`. `*found`: their number, also when they did not fit
   (UGRID_BUFFER_TOO_SMALL; `capacity` of them are written). A particle at p itself is found too.
   UGRID_NOT_FINITE: p is NaN or infinite, whether the grid is empty or not. */
UGRID_API ugrid_result ugrid_query(const ugrid *grid, const ugrid_real *p, ugrid_real radius,
                                   int32_t *ids, int32_t capacity, int32_t *found);

/* The particles in a box of 2 dim numbers, the least ones first, with its borders; on periodic axes
   those of which an image is in it. ids, capacity and `*found` as above. UGRID_NOT_FINITE: a number
   is NaN or infinite. A box whose least number is above the largest one holds nothing. */
UGRID_API ugrid_result ugrid_query_box(const ugrid *grid, const ugrid_real *box, int32_t *ids,
                                       int32_t capacity, int32_t *found);

/* Flags of the searches below. */
enum {
    UGRID_HALF   = 1,  /* each pair once (half list), in the row of the partner from which
                          ugrid_near_half finds it: mostly that of the lower place, which changes
                          when particles move. (nlist.h: that of the lower id, which does not.) The
                          pair of a local and a ghost is in the row of the local, in both */
    UGRID_PLACES = 2,  /* rows and entries are places, not ids: the grid's own order, the fastest */
    UGRID_HALF_IDS = 8 /* each pair once, in the row of the lower id: a full search that keeps half.
                          Not with UGRID_HALF or UGRID_PLACES (CUDA: not at all) */
};

/* With desc.rows only particles 0 .. rows-1, the locals, have rows. The others, ghosts, are listed
   in them. Pairs of ghosts are neither searched nor counted. Arrays by id have grid.rows elements
   instead of n; with UGRID_PLACES they have n, and the rows of ghosts are empty. */

/* The number of pairs within `radius`, each counted once. */
UGRID_API ugrid_result ugrid_count_pairs(const ugrid *grid, ugrid_real radius, int64_t *pairs);

/* The number of pairs of particles whose boxes overlap or touch, each counted once (>>boxes).
   UGRID_TIGHT only: UGRID_BAD_OPTION for others. Pairs of ghosts and the filter: as if there were
   none. */
UGRID_API ugrid_result ugrid_count_overlaps(const ugrid *grid, int64_t *pairs);

/* counts[i] = neighbours of particle i (UGRID_PLACES: of place i) within radius, without itself.
   counts: [n]; with desc.rows see above. */
UGRID_API ugrid_result ugrid_count_neighbors(const ugrid *grid, ugrid_real radius, int flags,
                                             int32_t *counts);

/* Neighbour lists in CSR form: row i is ids[offsets[i]] .. ids[offsets[i+1] - 1]. offsets: [n + 1]
   (desc.rows: [grid.rows + 1]), always filled. ids: room for `capacity` (NULL with
   0: only count). `*needed`: the last offset.
   UGRID_BUFFER_TOO_SMALL: needed > capacity; the rows that fit completely are written. Order within
   a row: SORT and COUNT, LOOSE, with a box: by cell coordinates z, y, x, and within a cell by place
   (so with UGRID_ROWS places ascend), independent of desc.walk; otherwise the order of desc.walk.
   With UGRID_PLACES the list of a grid in cell order is made in one pass, and ids[] after the last
   entry may change. */
UGRID_API ugrid_result ugrid_neighbors(const ugrid *grid, ugrid_real radius, int flags,
                                       int64_t *offsets, int32_t *ids, int64_t capacity,
                                       int64_t *needed);

/* The same for m query points that are not in the grid. Row q holds the ids of the particles within
   radius of point q, ghosts too; it is empty if point q is NaN or infinite. points, stride: as pos
   of ugrid_build, in any order: they are visited sorted by cell. offsets: [m + 1]. The entries that
   fit are written. */
UGRID_API ugrid_result ugrid_neighbors_at(const ugrid *grid, const ugrid_real *points,
                                          size_t stride, int32_t m, ugrid_real radius,
                                          int64_t *offsets, int32_t *ids, int64_t capacity,
                                          int64_t *needed);

/* fn(user, i, j) for every pair of ids within radius, until fn returns non-zero (UGRID_STOPPED).
   With UGRID_HALF in flags each pair comes once, without it twice, as (i, j) and as (j, i). Not
   with UGRID_PLACES. */
typedef int ugrid_pair_fn(void *user, int32_t i, int32_t j);
UGRID_API ugrid_result ugrid_each_pair(const ugrid *grid, ugrid_real radius, int flags,
                                       ugrid_pair_fn *fn, void *user);

/* fn(user, i, ids, count) for the rows of ugrid_neighbors, until fn returns non-zero
   (UGRID_STOPPED). Rows come in the order of the grid (FIXED, LIST, TIGHT, hashed: cell by cell, or
   by ids), empty ones not at all, and a long row in pieces, one after the other. UGRID_PLACES: i
   and ids are places. ids are valid during the call. */
typedef int ugrid_row_fn(void *user, int32_t i, const int32_t *ids, int32_t count);
UGRID_API ugrid_result ugrid_each_row(const ugrid *grid, ugrid_real radius, int flags,
                                      ugrid_row_fn *fn, void *user);

/* ugrid_each_row for piece 0 .. pieces-1 of the grid, in the calling thread: for threads of yours,
   each of which takes other pieces. Together they are the rows of all. A piece is some adjacent
   cells with about n / pieces particles. */
UGRID_API ugrid_result ugrid_each_row_in(const ugrid *grid, ugrid_real radius, int flags,
                                         int32_t piece, int32_t pieces, ugrid_row_fn *fn,
                                         void *user);

/* Writes the grid into `bytes` (room: `capacity`): a header, then its arrays. `*needed`: the size,
   also when it did not fit (UGRID_BUFFER_TOO_SMALL; NULL with 0 asks for it). FIXED, LIST, TIGHT
   and no_records: with the positions that they borrow (UGRID_NOT_BUILT after a download until
   grid->pos is set). A grid that lost entries in full cells of a GPU: UGRID_CELL_FULL. With
   desc.half_extents: UGRID_BAD_OPTION. Files are for machines of the same byte order and the same
   UGRID_REAL. O(n + cells). */
UGRID_API ugrid_result ugrid_save(const ugrid *grid, void *bytes, int64_t capacity,
                                  int64_t *needed);

/* Reads a saved grid: every array in the same bits, so all searches give the same, in the same
   order, without a build and without your positions (grid->filter is not saved: set it again). It
   keeps what a new build of the same points cannot repeat: the order within cells that a GPU made
   without desc.deterministic. (For the time alone it is not worth it: the checks take as long as a
   build.) desc (NULL: defaults) gives allocators and parallel; all else comes from the bytes.
   grid->pos is NULL where the grid has records, else a copy in its memory, until the next build;
   grid->bad_id is -1.
   Any bytes are safe: damaged ones are refused (UGRID_BAD_FILE) after a checksum and the checks of
   ugrid_validate. The grid is empty after a refusal. Allocates the grid's memory, and while it
   checks n * spans bytes, and n positions. */
UGRID_API ugrid_result ugrid_load(ugrid *grid, const ugrid_desc *desc, const void *bytes,
                                  int64_t size);

/* Walks and points: inline functions, defined with their comments at >>periodic (ugrid_cell_at),
   >>points, >>walk and >>boxes. A walk returns candidates, some of them further away than the
   radius. */
struct ugrid_near;
UGRID_FN struct ugrid_near ugrid_near_within(const ugrid *grid, const ugrid_real *p,
                                             ugrid_real radius);
UGRID_FN struct ugrid_near ugrid_near_point(const ugrid *grid, const ugrid_real *p);
UGRID_FN struct ugrid_near ugrid_near_place(const ugrid *grid, int32_t place, ugrid_real radius);
UGRID_FN struct ugrid_near ugrid_near_half(const ugrid *grid, int32_t place, ugrid_real radius);
UGRID_FN struct ugrid_near ugrid_near_overlaps(const ugrid *grid, int32_t place);
UGRID_FN struct ugrid_near ugrid_near_overlaps_half(const ugrid *grid, int32_t place);
UGRID_FN int ugrid_overlap(const ugrid *grid, int32_t i, int32_t j);
UGRID_FN_WALK int ugrid_next(struct ugrid_near *walk);
UGRID_FN int ugrid_next_range(struct ugrid_near *walk);
UGRID_FN int ugrid_has_ranges(const ugrid *grid);
UGRID_FN int32_t ugrid_cell_at(const ugrid *grid, const ugrid_real *p);
UGRID_FN_WALK int32_t ugrid_id(const ugrid *grid, int32_t place);
UGRID_FN_WALK void ugrid_point(const ugrid *grid, int32_t place, ugrid_real p[3]);
UGRID_FN_WALK void ugrid_offset(const ugrid *grid, const ugrid_real *a, const ugrid_real *b,
                                ugrid_real d[3]);
UGRID_FN_WALK ugrid_real ugrid_distance2(const ugrid *grid, const ugrid_real *a,
                                         const ugrid_real *b);

/* Stop here if you only need the API. The walk through nearby particles follows, and is part of
   it; the same on a GPU is >>cuda-api. */

/* ----------------------------------------------------------------------------------------------
   >>cells: from a position to a cell number

   The box is divided into floor((max - min) / cell) cells along each axis, at least 1, so that no
   cell is narrower than `cell`. A particle is entered in the cell of its centre (LOOSE; Kureck
   section 2.3.1 with equation 2.3):

       x = floor((pos_x - min_x) * cells_x / (max_x - min_x)), y and z likewise
       number = (z * cells_y + y) * cells_x + x

   In 2D, with 4 x 3 cells and six particles (the example of >>walk and >>build):

       numbers of the cells    ids of the particles
       +----+----+----+----+   +----+----+----+----+
       |  8 |  9 | 10 | 11 |   |    |    |  1 |    |
       +----+----+----+----+   +----+----+----+----+
       |  4 |  5 |  6 |  7 |   |    | 2 4|  5 |    |
       +----+----+----+----+   +----+----+----+----+
       |  0 |  1 |  2 |  3 |   |    |  3 |    |  0 |
       +----+----+----+----+   +----+----+----+----+
   ---------------------------------------------------------------------------------------------- */

/* Cell coordinate of x along one axis of a box: floor((x - min) * cells / (max - min)), clamped to
   0 .. cells - 1 (Kureck equation 2.3); 0 for a NaN. Every rounding here is monotone, so x <= y
   gives cell(x) <= cell(y): a particle between the two ends of a search is in a cell between
   theirs, whatever was rounded. */
UGRID_FN int32_t ugrid_i_coordinate(const ugrid_axis *axis, ugrid_real x)
{
    ugrid_real t = (x - axis->min) * axis->per_cell;
    t = t > 0 ? t : 0;
    t = t < axis->last ? t : axis->last;
    return (int32_t)t;
}

/* Inserts two zero bits (2D: one) after each bit. Each line moves the upper half of every group up:
     9876543210 -> 98 76543210 -> 98 7654 3210 -> 98 76 54 32 10 -> 9 8 7 6 5 4 3 2 1 0. */
UGRID_FN uint32_t ugrid_i_spread(int dim, int32_t coordinate)
{
    uint32_t v = (uint32_t)coordinate; /* 3D: below 2^10, 2D: below 2^15 */
    if (dim == 3) {
        v = (v | (v << 16)) & 0x030000FFu;
        v = (v | (v << 8)) & 0x0300F00Fu;
        v = (v | (v << 4)) & 0x030C30C3u;
        return (v | (v << 2)) & 0x09249249u;
    }
    v = (v | (v << 8)) & 0x00FF00FFu;
    v = (v | (v << 4)) & 0x0F0F0F0Fu;
    v = (v | (v << 2)) & 0x33333333u;
    return (v | (v << 1)) & 0x55555555u;
}

/* Morton code, bits ... y1 x1 y0 x0 (3D: ... z0 y0 x0), the Z-order curve: along x, y = 0: 0 1 4 5,
   y = 1: 2 3 6 7, y = 2: 8 9 12 13, and so on. The lowest bit is of x. (In the codes of lbvh.h it
   is of the last axis, and the highest of x: these are other numbers.) */
UGRID_FN int32_t ugrid_i_morton(int dim, int32_t x, int32_t y, int32_t z)
{
    uint32_t const xy = ugrid_i_spread(dim, x) | ugrid_i_spread(dim, y) << 1;
    return (int32_t)(dim == 2 ? xy : xy | ugrid_i_spread(dim, z) << 2);
}

/* The hash bucket of a cell of an unbounded grid. Teschner hashes each cell to (x p1 xor y p2 xor
   z p3) mod buckets. Here a piece of a row of cells is hashed, with these primes and sums. Its
   cells follow each other in x: they are a range of buckets, which goes on with bucket 0 after the
   last. The modulus is a power of two and takes the low bits only; the shifts mix higher bits into
   them. */
enum { UGRID_I_ROW_PIECE = 256 };   /* cells; a power of two */

UGRID_FN int32_t ugrid_i_hash(int32_t x, int32_t y, int32_t z, int32_t buckets)
{
    uint32_t h = (uint32_t)x / UGRID_I_ROW_PIECE * 73856093u + (uint32_t)y * 19349663u +
                 (uint32_t)z * 83492791u;
    h = (h ^ h >> 15) * 739982445u;
    return (int32_t)(((uint32_t)x + (h ^ h >> 12)) & (uint32_t)(buckets - 1));
}

/* The end of the cells from x on whose buckets follow each other: `end`, or before it that of the
   piece, or of the table. bucket: that of x. */
UGRID_FN int32_t ugrid_i_end_of_piece(int32_t x, int32_t end, int32_t bucket, int32_t buckets)
{
    int32_t const piece = (x | (UGRID_I_ROW_PIECE - 1)) + 1, table = x + (buckets - bucket),
                  most = piece < table ? piece : table;
    return end < most ? end : most;
}

/* Has each row of cells consecutive numbers? Then a strip of cells is one range of places. */
UGRID_FN int ugrid_i_has_strips(ugrid_cell_order order) { return order == UGRID_ROWS; }

/* The lowest number of a strip: of the cells x .. last in row y, z. Of UGRID_ROWS it is that of x.
   An order that numbers some rows backwards has it at `last` there; on a periodic axis the piece of
   a strip at the end of such a row comes first (ugrid_i_strip; cuda's ugrid_i_each_strip). */
UGRID_FN int32_t ugrid_i_strip_number(const ugrid *grid, int32_t x, int32_t last, int32_t y,
                                      int32_t z)
{
    (void)last;
    return (z * grid->axis[1].cells + y) * grid->axis[0].cells + x;
}

/* The number of a cell (Kureck section 2.3.1, `hash`; Barbieri section 1 for the curve). */
UGRID_FN int32_t ugrid_i_number(const ugrid *grid, int32_t x, int32_t y, int32_t z)
{
    if (grid->desc.unbounded) return ugrid_i_hash(x, y, z, grid->cell_count);
    if (grid->desc.cell_order == UGRID_MORTON) return ugrid_i_morton(grid->desc.dim, x, y, z);
    return (z * grid->axis[1].cells + y) * grid->axis[0].cells + x;
}

/* ----------------------------------------------------------------------------------------------
   >>roundings: that no compiler may change; numbers that are not finite
   ---------------------------------------------------------------------------------------------- */

/* x, as a barrier for the optimizer. It is needed where -ffast-math applies in spite of the pragmas
   (UGRID_FN_WALK), and for products that compilers fuse with sums if the processor has FMA. */
#if defined(UGRID_I_KEEP_BY_BARRIER)
#define UGRID_I_KEEP(x) x = __builtin_assoc_barrier(x)
#elif defined(UGRID_I_KEEP_BY_ASM) && defined(__SSE2_MATH__)
#define UGRID_I_KEEP(x) __asm__("" : "+x"(x))
#elif defined(UGRID_I_KEEP_BY_ASM) && defined(__aarch64__)
#define UGRID_I_KEEP(x) __asm__("" : "+w"(x))
#elif defined(UGRID_I_KEEP_BY_ASM)
#define UGRID_I_KEEP(x) __asm__("" : "+m"(x))
#else
#define UGRID_I_KEEP(x) ((void)(x))
#endif
UGRID_FN_WALK ugrid_real ugrid_i_kept(ugrid_real x)
{
    UGRID_I_KEEP(x);
    return x;
}

/* a * b, rounded. nvcc would fuse a product with a sum that follows, round once, and give
   other bits. */
UGRID_FN_WALK ugrid_real ugrid_i_times(ugrid_real a, ugrid_real b)
{
#if defined(__CUDA_ARCH__) && UGRID_I_REAL_KIND == 1
    return __fmul_rn(a, b);
#elif defined(__CUDA_ARCH__)
    return __dmul_rn(a, b);
#else
    return ugrid_i_kept(a * b);
#endif
}

/* Neither NaN nor infinite: not all exponent bits are set. (-ffinite-math-only would remove
   comparisons.) */
UGRID_FN int ugrid_i_finite(ugrid_real x)
{
#if UGRID_I_REAL_KIND == 1
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7F800000u) != 0x7F800000u;
#else
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7FF0000000000000u) != 0x7FF0000000000000u;
#endif
}

UGRID_FN int ugrid_i_point_finite(const ugrid_real p[3])
{
    return ugrid_i_finite(p[0]) & ugrid_i_finite(p[1]) & ugrid_i_finite(p[2]);
}

/* A NaN, or infinity, by its bits: the same on every machine. */
UGRID_FN_WALK ugrid_real ugrid_i_not_finite(int nan)
{
#if UGRID_I_REAL_KIND == 1
    uint32_t const bits = 0x7F800000u | (uint32_t)nan << 22;
#else
    uint64_t const bits = 0x7FF0000000000000u | (uint64_t)nan << 51;
#endif
    ugrid_real x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* floor(t) as an integer, clamped to +-2^29 (NaN: -2^29), so that the sum of two fits int32_t. No
   cast overflows, no libm is called. */
UGRID_FN int32_t ugrid_i_floor(ugrid_real t)
{
    ugrid_real const limit = (ugrid_real)536870912;
    int32_t below;
    if (!(t > -limit)) return -536870912;
    if (t >= limit) return 536870912;
    below = (int32_t)t;
    return below - (t < (ugrid_real)below);
}

/* A bound of the rounding errors of the few operations that give a distance: 16 of them, x * 2^-20
   (double: 32, x * 2^-48). Multiplication by a power of two is exact, so a fused multiply-add gives
   the same bits. */
UGRID_FN ugrid_real ugrid_i_rounding(ugrid_real x)
{
    return x * (UGRID_I_REAL_KIND == 1 ? (ugrid_real)(1.0 / 1048576.0)
                                       : (ugrid_real)(1.0 / 281474976710656.0));
}

/* ----------------------------------------------------------------------------------------------
   >>periodic: positions on a periodic axis, wrapped into the box; the cell of a point
   ---------------------------------------------------------------------------------------------- */

/* x outside the box of a periodic axis, wrapped into it. `periods` is floor(t), as a real: from
   2^52 on every number is an integer. */
UGRID_FN_RARE ugrid_real ugrid_i_wrap_outside(const ugrid_axis *axis, ugrid_real x)
{
    ugrid_real const limit = (ugrid_real)4503599627370496.0;
#if defined(__CUDA_ARCH__) && UGRID_I_REAL_KIND == 1 /* whatever nvcc's -prec-div says */
    ugrid_real const t = __fdiv_rn(x - axis->min, axis->length);
#else
    ugrid_real const t = (x - axis->min) / axis->length;
#endif
    ugrid_real periods = t;
    if (!ugrid_i_finite(x)) return x;
    if (t > -limit && t < limit) {
        periods = (ugrid_real)(int64_t)t;
        if (periods > t) periods -= 1;
    }
    x -= ugrid_i_times(axis->length, periods);
    /* rounding can leave x on the upper border, which is min */
    return (x >= axis->min && x < axis->max) ? x : axis->min;
}

/* x wrapped into the box of a periodic axis. On a closed axis, inside the box, and if not finite: x
   itself, bit for bit. */
UGRID_FN_WALK ugrid_real ugrid_i_wrap(const ugrid_axis *axis, ugrid_real x)
{
    if (!axis->periodic || (x >= axis->min && x < axis->max)) return x;
    return ugrid_i_wrap_outside(axis, x);
}

/* Cell coordinate of x before it is wrapped or clamped. */
UGRID_FN int32_t ugrid_i_raw_coordinate(const ugrid_axis *axis, ugrid_real x)
{
    return ugrid_i_floor((x - axis->min) * axis->per_cell);
}

/* Cell coordinate of a point: within 0 .. cells-1, or any integer in an unbounded grid. */
UGRID_FN int32_t ugrid_i_cell_along(const ugrid *grid, int a, ugrid_real x)
{
    const ugrid_axis *axis = &grid->axis[a];
    if (grid->desc.unbounded) return ugrid_i_raw_coordinate(axis, x);
    return ugrid_i_coordinate(axis, ugrid_i_wrap(axis, x));
}

/* The index of the third coordinate, in 3D. A constant in kernels: a variable index would move the
   point from registers to local memory. */
UGRID_FN_WALK int ugrid_i_third(const ugrid *grid)
{
#ifdef __CUDA_ARCH__
    (void)grid;
    return 2;
#else
    return grid->third;
#endif
}

/* The number of the cell (unbounded: of the bucket) of a point. */
UGRID_FN int32_t ugrid_cell_at(const ugrid *grid, const ugrid_real *p)
{
    int32_t const x = ugrid_i_cell_along(grid, 0, p[0]), y = ugrid_i_cell_along(grid, 1, p[1]);
    int32_t const z =
        grid->desc.dim == 3 ? ugrid_i_cell_along(grid, 2, p[ugrid_i_third(grid)]) : 0;
    return ugrid_i_number(grid, x, y, z);
}

/* ----------------------------------------------------------------------------------------------
   >>outside: particles beyond a closed axis of the box (desc.outside), or with a position that is
   not finite (desc.skip_invalid). Those that are left out are in no cell: no search finds them,
   their rows are empty, and walks around them visit nothing. Their position in a record is NaN, or
   as given where that is not finite. SORT and COUNT: they take the last places, start[cell_count]
   and up, by ascending id.
   ---------------------------------------------------------------------------------------------- */

/* 1 if a particle at p is left out, or refused. p: three coordinates, as given. */
UGRID_FN_WALK int ugrid_i_is_outside(const ugrid *grid, const ugrid_real *p)
{
    int a, outside = 0;
    if (grid->desc.outside == UGRID_CLAMP || grid->desc.unbounded) return 0;
    for (a = 0; a < 3; a++)
        if (!grid->axis[a].periodic)
            outside |= (p[a] < grid->axis[a].min) | (p[a] > grid->axis[a].max);
    return outside;
}

/* Is a particle at p in no cell, of a build that was not refused? */
UGRID_FN int ugrid_i_is_left_out(const ugrid *grid, const ugrid_real p[3])
{
    return !ugrid_i_point_finite(p) || ugrid_i_is_outside(grid, p);
}

/* ----------------------------------------------------------------------------------------------
   >>points: positions and distances
   ---------------------------------------------------------------------------------------------- */

/* The caller's point i, as given; p[2] = 0 in 2D. */
UGRID_FN_WALK void ugrid_i_load(const ugrid_real *pos, size_t stride, int dim, int32_t i,
                                ugrid_real p[3])
{
    const ugrid_real *at =
        (const ugrid_real *)(const void *)((const char *)pos + stride * (size_t)i);
    ugrid_real const last = at[dim - 1]; /* not `at[2]` after the test: see grid->third */
    p[0] = at[0];
    p[1] = at[1];
    p[2] = 0;
    if (dim == 3) p[2] = last; /* not by ?:, which clang assumes to be finite under -ffast-math */
}

/* Has a particle an entry in every cell that it touches (>>entries)? */
UGRID_FN_WALK int ugrid_i_tight(const ugrid *grid) { return grid->desc.placement == UGRID_TIGHT; }

/* SORT and COUNT with LOOSE: the particles are sorted by cell. All others keep the caller's
   order. */
UGRID_FN_WALK int ugrid_i_sorted(const ugrid *grid) { return grid->start && !ugrid_i_tight(grid); }

/* The particle at a place. */
UGRID_FN_WALK int32_t ugrid_id(const ugrid *grid, int32_t place)
{
    return ugrid_i_sorted(grid) ? grid->order[place] : place;
}

/* A record in one load. nvcc would load it number by number, and the searches are bound by the
   number of loads. */
UGRID_FN_WALK ugrid_record ugrid_i_fetch_record(const ugrid_record *from)
{
#if defined(__CUDA_ARCH__) && UGRID_I_REAL_KIND == 1
    float4 const words = *reinterpret_cast<const float4 *>(from);
    ugrid_record record;
    record.x[0] = words.x;
    record.x[1] = words.y;
    record.x[2] = words.z;
    record.link = __float_as_int(words.w);
    return record;
#else
    return *from;
#endif
}

/* A point with its periodic coordinates wrapped into the box; at[2] = 0 in 2D. */
UGRID_FN_WALK void ugrid_i_wrap_point(const ugrid *grid, const ugrid_real *p, ugrid_real at[3])
{
    at[0] = ugrid_i_wrap(&grid->axis[0], p[0]);
    at[1] = ugrid_i_wrap(&grid->axis[1], p[1]);
    if (grid->desc.dim == 3) at[2] = ugrid_i_wrap(&grid->axis[2], p[ugrid_i_third(grid)]);
    else at[2] = 0;
}

/* The position of the particle at a place, on periodic axes in the box: from its record, or from
   the caller's array. A particle that was left out: not finite in a record, else as given. */
UGRID_FN_WALK void ugrid_point(const ugrid *grid, int32_t place, ugrid_real p[3])
{
    if (grid->record) {
        const ugrid_record record = ugrid_i_fetch_record(&grid->record[place]);
        p[0] = record.x[0];
        p[1] = record.x[1];
        p[2] = record.x[2];
    } else {
        ugrid_i_load(grid->pos, grid->stride, grid->desc.dim, ugrid_id(grid, place), p);
        ugrid_i_wrap_point(grid, p, p);
    }
}

/* The difference of two coordinates in the box, to the nearest image if the axis is periodic: it is
   at most one length too large. No branch. */
UGRID_FN_WALK ugrid_real ugrid_i_nearest(ugrid_real d, const ugrid_axis *axis)
{
    ugrid_real const above = d > axis->half ? axis->length : 0,
                     below = d < -axis->half ? axis->length : 0;
    return ugrid_i_kept(ugrid_i_kept(d - above) + below);
}

/* Is some axis periodic? */
UGRID_FN_WALK int ugrid_i_is_periodic(const ugrid *grid)
{
    return grid->axis[0].periodic | grid->axis[1].periodic | grid->axis[2].periodic;
}

/* The minimum image of b - a, where some axis is periodic. Both points are moved into the box
   first. */
UGRID_FN void ugrid_i_periodic_offset(const ugrid *grid, const ugrid_real *a, const ugrid_real *b,
                                      ugrid_real d[3])
{
    ugrid_real from[3], to[3];
    int axis;
    ugrid_i_wrap_point(grid, a, from);
    ugrid_i_wrap_point(grid, b, to);
    for (axis = 0; axis < 3; axis++) {
        d[axis] = ugrid_i_nearest(to[axis] - from[axis], &grid->axis[axis]);
    }
}

/* d = b - a, to the minimum image on periodic axes; d[2] = 0 in 2D. */
UGRID_FN_WALK void ugrid_offset(const ugrid *grid, const ugrid_real *a, const ugrid_real *b,
                                ugrid_real d[3])
{
    int const third = ugrid_i_third(grid);
    if (ugrid_i_is_periodic(grid)) {
        ugrid_i_periodic_offset(grid, a, b, d);
        return;
    }
    d[0] = ugrid_i_kept(b[0] - a[0]);
    d[1] = ugrid_i_kept(b[1] - a[1]);
    d[2] = 0;
    if (grid->desc.dim == 3) d[2] = ugrid_i_kept(b[third] - a[third]);
}

/* x*x + y*y + z*z, rounded after every operation, so that CPU and GPU find the same pairs at the
   radius. */
UGRID_FN_WALK ugrid_real ugrid_i_square(ugrid_real x, ugrid_real y, ugrid_real z)
{
    return ugrid_i_kept(ugrid_i_kept(ugrid_i_times(x, x) + ugrid_i_times(y, y)) +
                        ugrid_i_times(z, z));
}

/* The square of the radius decides every test. It must be a normal number: no underflow, no
   overflow. */
UGRID_FN int ugrid_i_radius_valid(ugrid_real radius)
{
    ugrid_real const square = radius * radius;
    ugrid_real const least =
        UGRID_I_REAL_KIND == 1 ? (ugrid_real)1.17549436e-38 : (ugrid_real)2.2250738585072014e-308;
    return radius > 0 && square >= least && ugrid_i_finite(square);
}

/* The checks of every search. */
UGRID_FN ugrid_result ugrid_i_check_search(const ugrid *grid, ugrid_real radius, int flags)
{
    if (!grid) return UGRID_BAD_ARGUMENT;
    if (flags & ~(UGRID_HALF | UGRID_PLACES)) return UGRID_BAD_OPTION;
    if (!ugrid_i_radius_valid(radius)) return UGRID_BAD_RADIUS;
    return grid->built ? UGRID_OK : UGRID_NOT_BUILT;
}

/* Squared distance between two points, to the nearest image, inside the box or not. The test of
   every search is d2 <= radius * radius. */
UGRID_FN_WALK ugrid_real ugrid_distance2(const ugrid *grid, const ugrid_real *a,
                                         const ugrid_real *b)
{
    ugrid_real d[3];
    ugrid_offset(grid, a, b, d);
    return ugrid_i_square(d[0], d[1], d[2]);
}

/* ugrid_distance2 of two points in the box (as from ugrid_point), of three coordinates each. */
UGRID_FN ugrid_real ugrid_i_distance2_in_box(const ugrid *grid, const ugrid_real a[3],
                                             const ugrid_real b[3])
{
    return ugrid_i_square(ugrid_i_nearest(b[0] - a[0], &grid->axis[0]),
                          ugrid_i_nearest(b[1] - a[1], &grid->axis[1]),
                          ugrid_i_nearest(b[2] - a[2], &grid->axis[2]));
}

/* ----------------------------------------------------------------------------------------------
   >>entries: which cells a particle is entered in (Barbieri section 1)

   LOOSE: one entry, e = i, in the cell of the centre. (Barbieri: in that of the lowest corner of
   the AABB.)
   TIGHT: one entry in each cell that the AABB of the particle touches, up to `span` along an axis:
   e = i * spans + local, where local = (lz * span_y + ly) * span_x + lx, and l = 0 .. span-1 counts
   from the first cell of the AABB. An entry has one bit per axis: 1 if l > 0, that is, if the AABB
   touches the previous cell as well. Barbieri's AABBs are no wider than a cell: there span is 2,
   and local consists of the bits. Two particles A and B, bits in the order y x:

       LOOSE                           TIGHT
       +-------+-------+-------+       +-------+-------+-------+
       |       |       |       |       | A 10  | A 11  |       |
       |       |       |       |       |       | B 10  | B 11  |
       +-------+-------+-------+       +-------+-------+-------+
       |       |       |       |       | A 00  | A 01  |       |
       |     A |   B   |       |       |       | B 00  | B 01  |
       +-------+-------+-------+       +-------+-------+-------+

   AABBs that overlap share a block of cells, here the middle column. The pair is reported in the
   cell where (bits & bits') == 0: in the lower one, 01 & 00, and not in the upper one, 11 & 10.
   There is exactly one such cell: in the first cell of the block, one of the two AABBs begins on
   every axis; in the others both bits of some axis are 1.
   ---------------------------------------------------------------------------------------------- */

/* Half the edge of the AABB of particle i along an axis. (CUDA does not refuse what is not 0 ..
   size / 2.) */
UGRID_FN ugrid_real ugrid_i_half_of(const ugrid *grid, int32_t i, int a)
{
    ugrid_real const most = grid->tight_half;
    const char *at = (const char *)grid->desc.half_extents;
    ugrid_real half;
    if (!at) return most;
    at += grid->desc.half_extent_stride * (size_t)i;
    half = ((const ugrid_real *)(const void *)at)[a];
    if (!(half < most)) return most;
    return half > 0 ? half : 0;
}

/* First cell and number of cells that the AABB of particle i at x touches along one axis, at most
   axis->span. (Only rounding can give one more, where the AABB ends on a border of cells. That cell
   gets no entry: searches are widened, see ugrid_i_walk_extent, and find the particle anyway.) */
UGRID_FN int32_t ugrid_i_touched(const ugrid *grid, int a, int32_t i, ugrid_real x, int32_t *low)
{
    const ugrid_axis *axis = &grid->axis[a];
    ugrid_real const extent = ugrid_i_half_of(grid, i, a);
    int32_t high, touched;
    if (grid->desc.unbounded || axis->periodic) {
        x = ugrid_i_wrap(axis, x);
        *low = ugrid_i_raw_coordinate(axis, x - extent);
        high = ugrid_i_raw_coordinate(axis, x + extent);
    } else {
        *low = ugrid_i_coordinate(axis, x - extent);
        high = ugrid_i_coordinate(axis, x + extent);
    }
    touched = high - *low + 1;
    return touched < axis->span ? touched : axis->span;
}

/* A cell coordinate of a periodic axis, wrapped into 0 .. cells-1. */
UGRID_FN int32_t ugrid_i_wrap_cell(const ugrid_axis *axis, int32_t c)
{
    if (!axis->periodic || (c >= 0 && c < axis->cells)) return c;
    c %= axis->cells;
    return c < 0 ? c + axis->cells : c;
}

/* The cell of entry `local` of TIGHT particle i at p; 0 if the AABB touches fewer cells. */
UGRID_FN int ugrid_i_tight_cell(const ugrid *grid, const ugrid_real *p, int32_t i, int32_t local,
                                int32_t *x, int32_t *y, int32_t *z)
{
    int32_t const span_x = grid->axis[0].span, span_y = grid->axis[1].span;
    int32_t const step_x = local % span_x, step_y = local / span_x % span_y,
                  step_z = local / (span_x * span_y);
    int32_t low_x, low_y, low_z = 0;
    if (step_x >= ugrid_i_touched(grid, 0, i, p[0], &low_x)) return 0;
    if (step_y >= ugrid_i_touched(grid, 1, i, p[1], &low_y)) return 0;
    if (grid->desc.dim == 3 &&
        step_z >= ugrid_i_touched(grid, 2, i, p[ugrid_i_third(grid)], &low_z))
        return 0;
    *x = ugrid_i_wrap_cell(&grid->axis[0], low_x + step_x);
    *y = ugrid_i_wrap_cell(&grid->axis[1], low_y + step_y);
    *z = ugrid_i_wrap_cell(&grid->axis[2], low_z + step_z);
    return 1;
}

/* The cell number of entry `local` of particle i at p; -1: it is in no cell, or touches fewer. */
UGRID_FN int32_t ugrid_i_entry_number(const ugrid *grid, const ugrid_real *p, int32_t i,
                                      int32_t local)
{
    int32_t x, y, z;
    if (ugrid_i_is_left_out(grid, p)) return -1;
    if (!ugrid_i_tight(grid)) return ugrid_cell_at(grid, p);
    return ugrid_i_tight_cell(grid, p, i, local, &x, &y, &z) ? ugrid_i_number(grid, x, y, z) : -1;
}

/* ----------------------------------------------------------------------------------------------
   >>walk: the candidates around a point

       ugrid_near walk = ugrid_near_within(&grid, p, radius);
       while (ugrid_next(&walk)) use(walk.id);

   A walk visits each cell that the cube p +- radius touches once, and returns the entries there:
   all particles within `radius`, and some that are further away. The cube touches at most 9 cells
   in 2D and 27 in 3D if the radius is no larger than a cell (where it is a whole cell, a point on a
   border of cells may touch one more on that axis, by rounding). On a periodic axis with few cells
   each cell is still visited once, so each particle is returned once for any radius (its nearest
   image counts). If particles are sorted by cell number, a strip of cells is one range of places,
   so 27 cells are 9 ranges (Chisholm). In the example of >>cells, around a point in cell 5:

       cells 8 .. 10   places start[8] .. start[11] - 1 = 5         id  1
       cells 4 .. 6    places start[4] .. start[7] - 1  = 2 .. 4    ids 2 4 5
       cells 0 .. 2    places start[0] .. start[3] - 1  = 0         id  3

   A half walk returns each pair once: only places above the own one (Newton's third law). The order
   is 3 0 2 4 5 1: from place 2, particle 2, these are 3, 4 and 5. The walk does not read the row of
   cells 0 .. 2 at all (Kureck section 3.2).

   desc.walk selects the order of the cells (Chisholm). Around a point in cell (2, 2), by the step
   of the walk in which a cell is visited (equal numbers: one range):

       the labels                CELLS       STRIPS      MODULAR     HYBRID
       y 3   0 1 2 0 1 2         6 7 8       2 2 2       1 2 0       0 0 0
         2   6 7 8 6 7 8         3 4 5       1 1 1       7 8 6       2 2 2
         1   3 4 5 3 4 5         0 1 2       0 0 0       4 5 3       1 1 1
         0   0 1 2 0 1 2
       x     0 1 2 3 4 5

   MODULAR labels all cells of the grid by their coordinates modulo 3. Any 3 x 3 cells contain each
   label once, and each walk visits its cells by label. So all threads at the same step read cells
   of one label, a ninth of the grid (3D: 1/27), while with CELLS they read anywhere. HYBRID does
   the same with strips. For n rings, which the source does not treat, labels are modulo 2 n + 1 (up
   to 1023; beyond, cells ascend).
   Across the border of a periodic axis labels continue beyond the last cell.

   Around a point of a LOOSE grid with a box this section is all there is. TIGHT grids, unbounded
   ones and half walks with ghosts test each entry once more: >>walk-special.
   ---------------------------------------------------------------------------------------------- */

/* The cells of one axis that a walk visits, each once. */
typedef struct ugrid_sweep {
    int32_t low;    /* the first, before wrapping */
    int32_t width;  /* how many */
    int32_t turn;   /* 0 .. width-1, in the order of the walk; strips: 0 or 1 */
} ugrid_sweep;

/* Few words, as they take registers in a kernel: what follows from others is not stored. */
typedef struct ugrid_near {
    int32_t id;         /* out: a particle */
    int32_t place;      /* out: its place (ugrid_point(grid, place, p) is its position) */
    int32_t begin, end; /* out, after ugrid_next_range: places begin .. end-1 */
    /* private from here on */
    const ugrid *grid;
    ugrid_sweep x, y, z;
    int32_t labels;     /* of ugrid_i_first_label, 10 bits an axis; 0: cells ascend */
    int32_t self;       /* the place to exclude, or -1 */
    int32_t own_number; /* half walk, LOOSE: the cell of self; else -1 */
    int32_t above;      /* half walk, LOOSE. Sorted: only higher places count, everywhere; others:
                           in own_number, only higher ids; -1: none */
    int32_t above_local;/* half walk with ghosts, sorted: locals up to this place do not count */
    int32_t only_above; /* only higher places count: in the visited cell; TIGHT half walk: in all */
    int32_t bits;       /* >>walk-special: of the visited cell, 1 to 4 where it is not the first
                           along x, y, z; 16 to 64: axes on which only first cells of particles
                           count; UGRID_I_WHOLE and others */
    int32_t row;        /* the number of the first cell of the visited row */
    int32_t number;     /* of the cell visited */
    int32_t cursor, left; /* remaining entries of this cell: index, number; lists: left = 1 until
                             the end */
} ugrid_near;

/* Bits of a walk. WHOLE: all buckets of an unbounded grid are visited. RARE: the walk goes on by
   ugrid_i_next_rare_cell. SIFTS: entries are looked at once more. HASHED_ROW: RARE, and within a
   piece of a row of cells the next one is the next bucket. */
enum { UGRID_I_WHOLE = 128, UGRID_I_RARE = 256, UGRID_I_SIFTS = 512, UGRID_I_HASHED_ROW = 1024 };
enum { UGRID_I_BY_LABELS = 1 << 30 };   /* with the labels of a walk */

/* What walks of >>walk-special do otherwise. */
UGRID_FN_RARE ugrid_sweep ugrid_i_special_sweep(const ugrid *grid, int a, ugrid_real from,
                                                ugrid_real to, ugrid_real radius);
UGRID_FN void ugrid_i_begin_special(ugrid_near *walk);
UGRID_FN_WALK int32_t ugrid_i_visited_bits(const ugrid_near *walk, int32_t x, int32_t y,
                                           int32_t z);
UGRID_FN_RARE void ugrid_i_next_rare_cell(ugrid_near *walk);
UGRID_FN_RARE int32_t ugrid_i_rare_place(const ugrid *grid, int32_t bits, int32_t above_local,
                                         int32_t entry, int32_t x, int32_t y, int32_t z);
UGRID_FN int ugrid_i_is_in_cell(const ugrid *grid, int32_t place, int32_t local, int32_t x,
                                int32_t y, int32_t z);

/* Does a walk go by strips of cells? */
UGRID_FN_WALK int ugrid_i_by_strips(const ugrid *grid)
{
    return grid->desc.walk == UGRID_STRIPS || grid->desc.walk == UGRID_HYBRID;
}

/* Does a walk visit cells by labels? */
UGRID_FN_WALK int ugrid_i_by_labels(const ugrid *grid)
{
    return grid->desc.walk == UGRID_MODULAR || grid->desc.walk == UGRID_HYBRID;
}

/* Has each particle of a TIGHT grid two entries along each axis? */
UGRID_FN_WALK int ugrid_i_spans_are_two(const ugrid *grid)
{
    return grid->axis[0].span == 2 && grid->axis[1].span == 2 && grid->spans == 1 << grid->desc.dim;
}

/* Is a walk through this grid a rare one? */
UGRID_FN_WALK int ugrid_i_is_rare(const ugrid *grid)
{
    return grid->desc.unbounded || grid->desc.cell_order != UGRID_ROWS ||
           (ugrid_i_tight(grid) && !ugrid_i_spans_are_two(grid));
}

/* The extent of a search beyond a point along an axis: `radius`, and so much more that rounding
   loses no pair at the radius. */
UGRID_FN ugrid_real ugrid_i_walk_extent(const ugrid_axis *axis, ugrid_real radius)
{
    return radius + ugrid_i_rounding(radius) + axis->margin;
}

/* The cells low .. high of a closed axis, clamped to the border cells. */
UGRID_FN ugrid_sweep ugrid_i_closed_sweep(const ugrid_axis *axis, int32_t low, int32_t high)
{
    ugrid_sweep sweep = {0, 0, 0};
    int32_t const last = axis->cells - 1;
    sweep.low = low < 0 ? 0 : low < last ? low : last;
    sweep.width = (high < 0 ? 0 : high < last ? high : last) - sweep.low + 1;
    return sweep;
}

/* The cells low .. high, each once and inside the box. Periodic axis: all cells if the range goes
   around it, else a range from low on, which may wrap. */
UGRID_FN ugrid_sweep ugrid_i_clip_sweep(const ugrid_axis *axis, int32_t low, int32_t high)
{
    ugrid_sweep sweep = {0, 0, 0};
    if (!axis->periodic) return ugrid_i_closed_sweep(axis, low, high);
    sweep.width = high - low + 1;
    if (sweep.width < axis->cells) sweep.low = low < 0 ? low + axis->cells : low;
    else sweep.width = axis->cells;
    if (sweep.low >= axis->cells) sweep.low -= axis->cells;
    return sweep;
}

/* How many cells of a sweep lie beyond the end of a periodic axis, that is, at its beginning. */
UGRID_FN_WALK int32_t ugrid_i_wrapped(const ugrid_axis *axis, const ugrid_sweep *sweep)
{
    int32_t const over = sweep->low + sweep->width - axis->cells;
    return axis->periodic && over > 0 ? over : 0;
}

/* The cells from `radius` below `from` to `radius` above `to`. */
UGRID_FN ugrid_sweep ugrid_i_sweep(const ugrid *grid, int a, ugrid_real from, ugrid_real to,
                                   ugrid_real radius)
{
    const ugrid_axis *axis = &grid->axis[a];
    ugrid_real const extent = ugrid_i_walk_extent(axis, radius);
    ugrid_sweep sweep = {0, 1, 0};
    if (a >= grid->desc.dim) return sweep;
    if (ugrid_i_tight(grid) || grid->desc.unbounded)
        return ugrid_i_special_sweep(grid, a, from, to, radius);
    if (axis->periodic)
        return ugrid_i_clip_sweep(axis, ugrid_i_raw_coordinate(axis, from - extent),
                                  ugrid_i_raw_coordinate(axis, to + extent));
    sweep.low = ugrid_i_coordinate(axis, from - extent);
    sweep.width = ugrid_i_coordinate(axis, to + extent) - sweep.low + 1;
    return sweep;
}

/* A walk that visits nothing. */
UGRID_FN ugrid_near ugrid_i_near_none(const ugrid *grid)
{
    ugrid_sweep const none = {0, 0, 0};
    ugrid_near walk;
    walk.id = walk.place = walk.begin = walk.end = -1;
    walk.grid = grid;
    walk.x = walk.y = walk.z = none;
    walk.labels = 0;
    walk.self = walk.own_number = walk.above = walk.above_local = walk.only_above = -1;
    walk.bits = walk.row = walk.number = walk.cursor = walk.left = 0;
    return walk;
}

/* With which cell of a sweep along axis a a walk by labels begins: the first whose label, its
   coordinate modulo `labels`, is the smallest. The others follow, and those before it come last.
   rings = ceil(radius / width of a cell), at least 1. A sweep that has more cells than labels, and
   one where labels would not fit the axis, take its width. More than 1023 labels: 0. */
UGRID_FN int32_t ugrid_i_first_label(const ugrid *grid, int a, const ugrid_sweep *sweep,
                                     ugrid_real radius)
{
    const ugrid_axis *axis = &grid->axis[a];
    int32_t const rings = -ugrid_i_floor(-(radius * axis->per_cell)),
                  most = grid->desc.unbounded ? sweep->width + 2 : axis->cells;
    int32_t labels = 2 * (rings < 1 ? 1 : rings) + 1, after;
    if (labels < sweep->width || labels > most) labels = sweep->width;
    if (a >= grid->desc.dim || labels <= 1 || labels > 1023) return 0;
    after = sweep->low % labels; /* below 0 where low is, in an unbounded grid */
    if (after < 0) after += labels;
    return after > 0 && labels - after < sweep->width ? labels - after : 0;
}

/* The walk goes by labels that suit searches of this radius. */
UGRID_FN void ugrid_i_set_labels(ugrid_near *walk, ugrid_real radius)
{
    walk->labels = UGRID_I_BY_LABELS | ugrid_i_first_label(walk->grid, 0, &walk->x, radius) |
                   ugrid_i_first_label(walk->grid, 1, &walk->y, radius) << 10 |
                   ugrid_i_first_label(walk->grid, 2, &walk->z, radius) << 20;
}

/* A walk within `radius` of the box from .. to. On periodic axes its corners lie in the grid's
   box. */
UGRID_FN ugrid_near ugrid_i_near_box(const ugrid *grid, const ugrid_real *from,
                                     const ugrid_real *to, ugrid_real radius)
{
    ugrid_near walk = ugrid_i_near_none(grid);
    walk.x = ugrid_i_sweep(grid, 0, from[0], to[0], radius);
    walk.y = ugrid_i_sweep(grid, 1, from[1], to[1], radius);
    walk.z = ugrid_i_sweep(grid, 2, from[2], to[2], radius);
    if (ugrid_i_by_labels(grid)) ugrid_i_set_labels(&walk, radius);
    if (ugrid_i_is_rare(grid)) walk.bits = UGRID_I_RARE;
    if (ugrid_i_tight(grid) || grid->desc.unbounded) ugrid_i_begin_special(&walk);
    walk.x.turn = walk.y.turn = INT32_MAX - 1; /* the first step begins the first row of z = 0 */
    walk.z.turn = -1;
    return walk;
}

/* A walk around a point, in the grid's box. */
UGRID_FN ugrid_near ugrid_i_near_at(const ugrid *grid, const ugrid_real at[3], ugrid_real radius)
{
    int const valid = grid->n > 0 && radius > 0 && ugrid_i_finite(radius);
    if (!valid || !ugrid_i_point_finite(at)) return ugrid_i_near_none(grid);
    return ugrid_i_near_box(grid, at, at, radius);
}

/* A walk within `radius` (> 0) of a point, which need not be a particle. It visits nothing if the
   grid is empty, or if the point or the radius is not finite. */
UGRID_FN ugrid_near ugrid_near_within(const ugrid *grid, const ugrid_real *p, ugrid_real radius)
{
    ugrid_real at[3];
    ugrid_i_wrap_point(grid, p, at);
    return ugrid_i_near_at(grid, at, radius);
}

/* Within one cell's edge of p: one ring of cells. */
UGRID_FN ugrid_near ugrid_near_point(const ugrid *grid, const ugrid_real *p)
{
    return ugrid_near_within(grid, p, grid->desc.cell);
}

/* Around the particle at a place, which alone is excluded: another particle at the same position is
   returned. */
UGRID_FN ugrid_near ugrid_near_place(const ugrid *grid, int32_t place, ugrid_real radius)
{
    ugrid_real p[3];
    ugrid_near walk;
    ugrid_point(grid, place, p);
    if (ugrid_i_is_outside(grid, p)) return ugrid_i_near_none(grid);
    walk = ugrid_i_near_at(grid, p, radius);
    walk.self = place;
    return walk;
}

/* Half of the neighbours of the particle at a place: over all places, each pair is returned exactly
   once (Newton's third law; Kureck section 3.2). SORT, COUNT: by the particle with the lower place.
   Others: by the one in the cell with the lower number; within one cell, and in TIGHT grids, by the
   one with the lower id. With ghosts (desc.rows): a pair of a local and a ghost by the local; the
   walk of a ghost returns nothing; ranges (ugrid_next_range) hold all places around a local, and
   you skip locals up to its own place. */
UGRID_FN ugrid_near ugrid_near_half(const ugrid *grid, int32_t place, ugrid_real radius)
{
    ugrid_real p[3];
    ugrid_near walk = ugrid_near_place(grid, place, radius);
    if (ugrid_id(grid, place) >= grid->rows) return ugrid_i_near_none(grid);
    if (ugrid_i_tight(grid)) {
        walk.only_above = place;
    } else if (grid->rows < grid->n && ugrid_i_sorted(grid)) {
        walk.above_local = place;
        walk.bits |= UGRID_I_SIFTS;
    } else {
        walk.above = place;
        ugrid_point(grid, place, p);
        walk.own_number = ugrid_cell_at(grid, p);
    }
    return walk;
}

/* A sweep that wraps visits its cells in ascending order, too: of 10 cells, from low = 8 on, 0 1 8
   9. */
UGRID_FN_WALK int32_t ugrid_i_ascending(const ugrid_axis *axis, const ugrid_sweep *sweep,
                                        int32_t offset)
{
    int32_t const over = ugrid_i_wrapped(axis, sweep);
    return offset < over ? offset : sweep->low + offset - over;
}

/* The cell of a turn of a sweep along axis a. */
UGRID_FN_WALK int32_t ugrid_i_turn_cell(const ugrid_near *walk, int a, const ugrid_sweep *sweep)
{
    const ugrid_axis *axis = &walk->grid->axis[a];
    int32_t cell;
    if (walk->labels == 0) return ugrid_i_ascending(axis, sweep, sweep->turn);
    cell = sweep->turn + ((walk->labels >> 10 * a) & 1023);
    cell = sweep->low + (cell < sweep->width ? cell : cell - sweep->width);
    return axis->periodic && cell >= axis->cells ? cell - axis->cells : cell;
}

/* The strip of this turn: its cell with the lowest x, and the number of its cells. On a periodic
   axis a strip may wrap: turn 0 is then its piece at the beginning of the row, and turn 1 the one
   at the end. (In a row that runs backwards the one at the end has the lower places.) */
UGRID_FN_WALK int32_t ugrid_i_strip(const ugrid_axis *axis, const ugrid_sweep *x, int32_t *cells)
{
    int32_t const over = ugrid_i_wrapped(axis, x);
    int const at_beginning = over > 0 && x->turn == 0;
    *cells = at_beginning ? over : x->width - over;
    return at_beginning ? 0 : x->low;
}

/* The index of slot s of a cell. */
UGRID_FN int32_t ugrid_i_slot(const ugrid *grid, int32_t number, int32_t s)
{
    return grid->desc.slot_layout == UGRID_SLOTS_BY_ROW ? number * grid->desc.slots + s
                                                        : s * grid->cell_count + number;
}

/* Opens the visited cell, or strip of cells: its entries are returned next. */
UGRID_FN_WALK void ugrid_i_open(ugrid_near *walk, int32_t cells)
{
    const ugrid *grid = walk->grid;
    if (grid->start) {
        walk->cursor = walk->begin = grid->start[walk->number];
        walk->end = grid->start[walk->number + cells];
        walk->left = walk->end - walk->begin;
    } else if (grid->slot) {
        int32_t const count = grid->count[walk->number];
        walk->cursor = ugrid_i_slot(grid, walk->number, 0);
        walk->left = count < grid->desc.slots ? count : grid->desc.slots;
    } else {
        walk->cursor = grid->head[walk->number];
        walk->left = walk->cursor >= 0;
    }
}

/* A half walk, LOOSE: cells below the own one have no partner but ghosts, and are skipped without
   reading them. */
UGRID_FN int ugrid_i_below_own(const ugrid_near *walk, int32_t cells)
{
    const ugrid *grid = walk->grid;
    return walk->number + cells - 1 < walk->own_number &&
           (ugrid_i_sorted(grid) || grid->rows == grid->n);
}

/* In a half walk the own cell, or strip, begins after the particle itself (Kureck section 3.2,
   items 1 to 3; item 4 is the strip). */
UGRID_FN void ugrid_i_halve(ugrid_near *walk)
{
    const ugrid *grid = walk->grid;
    if (ugrid_i_sorted(grid)) {
        if (walk->begin <= walk->above) walk->begin = walk->above + 1;
        if (walk->end < walk->begin) walk->end = walk->begin;
        walk->cursor = walk->begin;
        walk->left = walk->end - walk->begin;
    } else {
        walk->only_above = walk->number < walk->own_number    ? grid->rows - 1
                           : walk->number == walk->own_number ? walk->above
                                                              : -1;
    }
}

/* Goes to the next row of cells, y fastest. 0 after the last: the walk is then one of nothing, and
   stays so. */
UGRID_FN_WALK int ugrid_i_next_row(ugrid_near *walk)
{
    const ugrid_axis *const axis = walk->grid->axis;
    int32_t y;
    walk->x.turn = 0;
    if (++walk->y.turn >= walk->y.width) {
        walk->y.turn = 0;
        if (++walk->z.turn >= walk->z.width) {
            walk->x.width = walk->y.width = walk->z.width = 0;
            return 0;
        }
    }
    y = ugrid_i_turn_cell(walk, 1, &walk->y);
    walk->row = (ugrid_i_turn_cell(walk, 2, &walk->z) * axis[1].cells + y) * axis[0].cells;
    return 1;
}

/* Reads the visited cell, or strip of cells, as far as it belongs to the walk. */
UGRID_FN_WALK void ugrid_i_visit(ugrid_near *walk, int32_t cells)
{
    if (ugrid_i_below_own(walk, cells)) {
        walk->begin = walk->end = 0;
        return;
    }
    ugrid_i_open(walk, cells);
    if (walk->own_number >= 0) ugrid_i_halve(walk);
}

/* The next bucket of a walk through hashed cells, in the same piece of a row. */
UGRID_FN_WALK void ugrid_i_next_bucket(ugrid_near *walk)
{
    int32_t const x = walk->begin + 1, y = walk->end;
    walk->x.turn++;
    walk->number = (walk->number + 1) & (walk->grid->cell_count - 1);
    ugrid_i_visit(walk, 1);
    walk->begin = x;
    walk->end = y;
}

/* The next turn of a walk: some cells of a row, from x on. 0 after the last. */
UGRID_FN_WALK int ugrid_i_next_turn(ugrid_near *walk, int32_t *x, int32_t *cells)
{
    const ugrid_axis *axis = &walk->grid->axis[0];
    int const strips = ugrid_i_by_strips(walk->grid);
    int32_t const turns = !strips ? walk->x.width : ugrid_i_wrapped(axis, &walk->x) > 0 ? 2 : 1;
    if (++walk->x.turn >= turns && !ugrid_i_next_row(walk)) return 0;
    *cells = 1;
    *x = strips ? ugrid_i_strip(axis, &walk->x, cells) : ugrid_i_turn_cell(walk, 0, &walk->x);
    return 1;
}

/* Goes to the next cell, or strip of cells, of the walk. 0 at the end; 1 also where nothing is
   there: then left is 0. */
UGRID_FN_WALK int ugrid_i_next_cell(ugrid_near *walk)
{
    const ugrid *grid = walk->grid;
    int32_t cells, x;
    walk->left = 0;
    if (walk->bits & UGRID_I_RARE) {
        if (walk->bits & UGRID_I_HASHED_ROW && walk->x.turn + 1 < walk->x.width &&
            (walk->begin + 1) % UGRID_I_ROW_PIECE != 0) {
            ugrid_i_next_bucket(walk);
        } else {
            ugrid_near rare = *walk; /* a copy: `walk` itself stays in registers */
            ugrid_i_next_rare_cell(&rare);
            *walk = rare;
        }
        return walk->z.width > 0;
    }
    if (!ugrid_i_next_turn(walk, &x, &cells)) return 0;
    walk->number = walk->row + x;
    if (ugrid_i_tight(grid))
        walk->bits = ugrid_i_visited_bits(
            walk, x, ugrid_i_turn_cell(walk, 1, &walk->y), ugrid_i_turn_cell(walk, 2, &walk->z));
    ugrid_i_visit(walk, cells);
    return 1;
}

/* Takes the next entry of the visited cell, and goes on to the one after it. */
UGRID_FN_WALK int32_t ugrid_i_take_entry(ugrid_near *walk)
{
    const ugrid *grid = walk->grid;
    int32_t const at = walk->cursor;
    if (grid->start) {
        walk->cursor = at + 1;
        walk->left--;
        return ugrid_i_tight(grid) ? grid->order[at] : at;
    }
    if (grid->head) {
        walk->cursor = grid->next ? grid->next[at] : grid->record[at].link;
        walk->left = walk->cursor >= 0;
        return at;
    }
    if (--walk->left > 0)
        walk->cursor += grid->desc.slot_layout == UGRID_SLOTS_BY_ROW ? 1 : grid->cell_count;
    return grid->slot[at];
}

/* >>walk-special: the place of an entry of the visited cell; -1: the entry does not count. */
UGRID_FN_WALK int32_t ugrid_i_entry_place(const ugrid_near *walk, int32_t entry)
{
    const ugrid *grid = walk->grid;
    if (walk->bits & UGRID_I_HASHED_ROW && walk->above_local < 0)
        return ugrid_i_is_in_cell(grid, entry, 0, walk->begin, walk->end, walk->row) ? entry : -1;
    if (walk->bits & UGRID_I_RARE)
        return ugrid_i_rare_place(grid, walk->bits, walk->above_local, entry, walk->begin,
                                  walk->end, walk->row);
    if (ugrid_i_tight(grid)) /* the last bits of an entry are its bits: Barbieri section 1 */
        return (walk->bits | walk->bits >> 4) & entry & (grid->spans - 1) ? -1
                                                                          : entry >> grid->desc.dim;
    return entry <= walk->above_local && ugrid_id(grid, entry) < grid->rows ? -1 : entry;
}

/* Takes one entry; does it count? Then it is in walk->id and walk->place. */
UGRID_FN_WALK int ugrid_i_take(ugrid_near *walk)
{
    const ugrid *grid = walk->grid;
    int32_t place = ugrid_i_take_entry(walk);
    if (walk->bits & UGRID_I_SIFTS) place = ugrid_i_entry_place(walk, place);
    if (place == walk->self || place <= walk->only_above) return 0;
    walk->place = walk->id = place;
    if (ugrid_i_sorted(grid))
        walk->id = grid->record ? grid->record[place].link : grid->order[place];
    return 1;
}

/* The next candidate in walk->id and walk->place; 0 after the last. (Loops with one exit: threads
   of a warp meet there. With a return inside they go on one by one, and take 10 times as long.) */
UGRID_FN_WALK int ugrid_next(ugrid_near *walk)
{
    int more = 1, taken = 0;
    do {
        while (walk->left <= 0 && more) more = ugrid_i_next_cell(walk);
        if (more) taken = ugrid_i_take(walk);
    } while (more && !taken);
    return more;
}

/* Are the walks through this grid ranges of places? SORT and COUNT, LOOSE, with a box. */
UGRID_FN int ugrid_has_ranges(const ugrid *grid)
{
    return grid->n > 0 && ugrid_i_sorted(grid) && !grid->desc.unbounded;
}

/* Are searches over all particles ranges of places, by strips of hashed cells? SORT and COUNT,
   LOOSE, with records and the walk UGRID_CELLS. */
UGRID_FN int ugrid_i_by_buckets(const ugrid *grid)
{
    return grid->n > 0 && grid->desc.unbounded && ugrid_i_sorted(grid) && grid->record &&
           grid->desc.walk == UGRID_CELLS;
}

/* Is a point in row y, z of the cells of an unbounded grid? */
UGRID_FN int ugrid_i_is_in_row(const ugrid *grid, const ugrid_real *p, int32_t y, int32_t z)
{
    return ugrid_i_raw_coordinate(&grid->axis[1], p[1]) == y &&
           (grid->desc.dim == 2 || ugrid_i_raw_coordinate(&grid->axis[2], p[2]) == z);
}

/* Is it in the cells x .. end-1 of that row? */
UGRID_FN int ugrid_i_is_in_strip(const ugrid *grid, const ugrid_real *p, int32_t x, int32_t end,
                                 int32_t y, int32_t z)
{
    int32_t const cell = ugrid_i_raw_coordinate(&grid->axis[0], p[0]);
    return ugrid_i_is_in_row(grid, p, y, z) && cell >= x && cell < end;
}

/* The walk of lists and of searches over all particles. With ranges it is one order of the cells,
   ascending z, y, x, whatever desc.walk says. */
UGRID_FN ugrid_walk ugrid_i_list_walk(const ugrid *grid)
{
    if (!ugrid_has_ranges(grid)) return grid->desc.walk;
    return ugrid_i_has_strips(grid->desc.cell_order) ? UGRID_STRIPS : UGRID_CELLS;
}

/* Walks by ranges, for callers that write the inner loop themselves: places walk->begin ..
   walk->end-1, which may include the particle itself. 0 at the end, and for a grid without ranges
   (ugrid_has_ranges). */
UGRID_FN int ugrid_next_range(ugrid_near *walk)
{
    int more;
    if (!ugrid_has_ranges(walk->grid)) return 0;
    do more = ugrid_i_next_cell(walk);
    while (more && walk->left <= 0);
    return more;
}

/* ----------------------------------------------------------------------------------------------
   >>walk-special: walks through TIGHT grids and unbounded ones, and half walks with ghosts

   They visit cells as the others do, and test each entry once more:

       TIGHT       an entry is one of several of its particle. The mask test (>>entries) takes one
                   of them: the walk has bits as a particle has, 1 on each axis where the visited
                   cell is not its first.
       unbounded   cells that share a bucket share their entries: an entry must be of the visited
                   cell. Where a walk touches more cells than there are buckets, it visits every
                   bucket once instead, and takes each entry (TIGHT: the first of its particle).
       ghosts      (sorted, half) a local takes the locals above its place, and all ghosts.
   ---------------------------------------------------------------------------------------------- */

/* ugrid_i_walk_extent of a TIGHT grid: the AABBs of the partners extend towards x by half an edge.
   So for spheres of diameter `size` that touch (radius = size), the cells of the own AABB are
   enough. */
UGRID_FN ugrid_real ugrid_i_tight_extent(const ugrid *grid, const ugrid_axis *axis, ugrid_real x,
                                        ugrid_real radius)
{
    ugrid_real extent = radius + ugrid_i_rounding(radius);
    extent = extent > grid->tight_least ? extent - grid->tight_least : 0;
    extent += ugrid_i_rounding(x < 0 ? -x : x) + ugrid_i_rounding(2 * grid->tight_half);
    return extent + axis->margin;
}

/* ugrid_i_sweep of these walks. turn = 1: on this axis only first cells of particles count. */
UGRID_FN_RARE ugrid_sweep ugrid_i_special_sweep(const ugrid *grid, int a, ugrid_real from,
                                                ugrid_real to, ugrid_real radius)
{
    const ugrid_axis *axis = &grid->axis[a];
    ugrid_real below = ugrid_i_walk_extent(axis, radius), above = below;
    ugrid_sweep sweep = {0, 1, 0};
    int32_t low, high, first_only = 0;
    if (ugrid_i_tight(grid)) {
        below = ugrid_i_tight_extent(grid, axis, from, radius);
        above = ugrid_i_tight_extent(grid, axis, to, radius);
    }
    low = ugrid_i_raw_coordinate(axis, from - below);
    high = ugrid_i_raw_coordinate(axis, to + above);
    if (axis->periodic && axis->span > 1 && high - low + axis->span > axis->cells) {
        /* the cells of the walk and those of an AABB could overlap in two blocks, one at each end.
           So a particle is taken from the first of its cells only, which may lie span-1 cells
           before the walk */
        first_only = 1;
        low -= axis->span - 1;
    }
    if (grid->desc.unbounded) {
        sweep.low = low;
        sweep.width = high - low + 1;
    } else {
        sweep = ugrid_i_clip_sweep(axis, low, high);
    }
    sweep.turn = first_only;
    return sweep;
}

/* The part of ugrid_i_near_box: which entries count, and whether all buckets are visited. */
UGRID_FN void ugrid_i_begin_special(ugrid_near *walk)
{
    int32_t const buckets = walk->grid->cell_count;
    walk->bits |= UGRID_I_SIFTS | 16 * (walk->x.turn | walk->y.turn << 1 | walk->z.turn << 2);
    if (!walk->grid->desc.unbounded) return;
    if (!ugrid_i_tight(walk->grid) && walk->labels == 0) walk->bits |= UGRID_I_HASHED_ROW;
    if ((double)walk->x.width * walk->y.width * walk->z.width <= (double)buckets) return;
    walk->bits = (walk->bits & ~UGRID_I_HASHED_ROW) | 16 * 7 | UGRID_I_WHOLE;
    walk->labels = 0;
    walk->x.low = walk->y.low = walk->z.low = 0;
    walk->x.width = buckets;
    walk->y.width = walk->z.width = 1;
}

/* walk->bits in the visited cell. */
UGRID_FN_WALK int32_t ugrid_i_visited_bits(const ugrid_near *walk, int32_t x, int32_t y, int32_t z)
{
    return (walk->bits & ~15) | (x != walk->x.low) | (y != walk->y.low) << 1 |
           (z != walk->z.low) << 2;
}

/* ugrid_i_next_cell of a rare walk. Unbounded: begin, end and row are x, y and z of the cell. */
UGRID_FN_RARE void ugrid_i_next_rare_cell(ugrid_near *walk)
{
    const ugrid *grid = walk->grid;
    int const unbounded = grid->desc.unbounded,
              same_row = unbounded && walk->x.turn + 1 < walk->x.width;
    int32_t x, y = walk->end, z = walk->row, cells;
    if (!ugrid_i_next_turn(walk, &x, &cells)) return;
    if (!same_row) {
        y = ugrid_i_turn_cell(walk, 1, &walk->y);
        z = ugrid_i_turn_cell(walk, 2, &walk->z);
    }
    if (ugrid_i_tight(grid)) walk->bits = ugrid_i_visited_bits(walk, x, y, z);
    if (walk->bits & UGRID_I_WHOLE) walk->number = x;
    else if (unbounded || grid->desc.cell_order != UGRID_ROWS)
        walk->number = ugrid_i_number(grid, x, y, z);
    else walk->number = walk->row + x;
    ugrid_i_visit(walk, cells);
    if (!unbounded) return;
    walk->begin = x;
    walk->end = y;
    walk->row = z;
}

/* Bit a is set if the entry is not in the first cell of its AABB along axis a. */
UGRID_FN int32_t ugrid_i_entry_bits(const ugrid *grid, int32_t local)
{
    int32_t const x = grid->axis[0].span, y = grid->axis[1].span;
    return (local % x != 0) | (local / x % y != 0) << 1 | (local / (x * y) != 0) << 2;
}

/* Unbounded: is particle i, at x, entered in cell c along axis a by its entry number `step`
   there? */
UGRID_FN int ugrid_i_is_step(const ugrid *grid, int a, int32_t i, ugrid_real x, int32_t step,
                             int32_t c)
{
    ugrid_real const half = ugrid_i_half_of(grid, i, a);
    int32_t const low = ugrid_i_raw_coordinate(&grid->axis[a], x - half),
                  high = ugrid_i_raw_coordinate(&grid->axis[a], x + half);
    return low + step == c && c <= high;
}

/* Is the entry of a particle in this cell of an unbounded grid, or does it only share the
   bucket? */
UGRID_FN int ugrid_i_is_in_cell(const ugrid *grid, int32_t place, int32_t local, int32_t x,
                                int32_t y, int32_t z)
{
    int32_t const wide = grid->axis[0].span, high = grid->axis[1].span;
    ugrid_real p[3];
    if (grid->record) memcpy(p, grid->record[place].x, sizeof p);
    else ugrid_i_load(grid->pos, grid->stride, grid->desc.dim, ugrid_id(grid, place), p);
    if (!ugrid_i_tight(grid))
        return x == ugrid_i_raw_coordinate(&grid->axis[0], p[0]) &&
               y == ugrid_i_raw_coordinate(&grid->axis[1], p[1]) &&
               (grid->desc.dim == 2 || z == ugrid_i_raw_coordinate(&grid->axis[2], p[2]));
    return ugrid_i_is_step(grid, 0, place, p[0], local % wide, x) &&
           ugrid_i_is_step(grid, 1, place, p[1], local / wide % high, y) &&
           (grid->desc.dim == 2 ||
            ugrid_i_is_step(grid, 2, place, p[2], local / (wide * high), z));
}

/* ugrid_i_entry_place of a rare walk in cell x, y, z. */
UGRID_FN_RARE int32_t ugrid_i_rare_place(const ugrid *grid, int32_t bits, int32_t above_local,
                                         int32_t entry, int32_t x, int32_t y, int32_t z)
{
    int32_t place = entry, local = 0;
    if (ugrid_i_tight(grid)) {
        place = entry / grid->spans;
        local = entry % grid->spans;
        if ((bits | bits >> 4) & 7 & ugrid_i_entry_bits(grid, local)) return -1;
    }
    if (place <= above_local && ugrid_id(grid, place) < grid->rows) return -1;
    if (!grid->desc.unbounded || bits & UGRID_I_WHOLE) return place;
    return ugrid_i_is_in_cell(grid, place, local, x, y, z) ? place : -1;
}

/* ----------------------------------------------------------------------------------------------
   >>boxes: TIGHT with a box for each particle, desc.half_extents (Barbieri section 1): each is
   entered in the cells that its own AABB touches, and looks for partners in these alone

       desc.placement = UGRID_TIGHT;
       desc.size = desc.cell = 2 * largest;             // the largest number in `half`: no AABB is
                                                        // wider, at most 8 entries each (2D: 4)
       desc.half_extents = half;                        // [n * dim], half of each edge
       ugrid_build(&grid, &desc, pos, 0, n);            // pos: the centre of each box
       walk = ugrid_near_overlaps_half(&grid, i);       // each pair once; i: a place, here the id
       while (ugrid_next(&walk)) if (ugrid_overlap(&grid, i, walk.id)) ...

   The mask test (>>entries) takes each candidate once. There is no ready list of overlaps: walk as
   here, or count them (ugrid_count_overlaps). Neither reads the filter. Searches within a radius
   work too. They visit as many cells as in a LOOSE grid, since a box may be a point.
   ---------------------------------------------------------------------------------------------- */

/* The candidates whose AABB touches a cell that the AABB of this particle touches, without itself:
   all that overlap it, and some that do not. LOOSE: nothing. */
UGRID_FN ugrid_near ugrid_near_overlaps(const ugrid *grid, int32_t place)
{
    ugrid_real from[3], to[3];
    ugrid_near walk;
    int a;
    if (!ugrid_i_tight(grid) || grid->n == 0) return ugrid_i_near_none(grid);
    ugrid_point(grid, place, from);
    if (ugrid_i_is_left_out(grid, from)) return ugrid_i_near_none(grid);
    for (a = 0; a < 3; a++) {
        ugrid_real const half = a < grid->desc.dim ? ugrid_i_half_of(grid, place, a) : 0;
        to[a] = from[a] + half;
        from[a] = from[a] - half;
    }
    walk = ugrid_i_near_box(grid, from, to, 0);
    if (ugrid_i_by_labels(grid)) ugrid_i_set_labels(&walk, grid->tight_half);
    walk.self = place;
    return walk;
}

/* Half of them: each pair once, from the lower id; with ghosts (desc.rows) from the local. */
UGRID_FN ugrid_near ugrid_near_overlaps_half(const ugrid *grid, int32_t place)
{
    ugrid_near walk = ugrid_near_overlaps(grid, place);
    if (place >= grid->rows) return ugrid_i_near_none(grid);
    walk.only_above = place;
    return walk;
}

/* Do the AABBs of two particles overlap? They do where they touch. To the nearest image. TIGHT
   only: in LOOSE grids boxes have no extent. */
UGRID_FN int ugrid_overlap(const ugrid *grid, int32_t i, int32_t j)
{
    ugrid_real p[3], q[3], d[3];
    int a;
    ugrid_point(grid, i, p);
    ugrid_point(grid, j, q);
    for (a = 0; a < 3; a++) d[a] = ugrid_i_nearest(q[a] - p[a], &grid->axis[a]);
    for (a = 0; a < 3; a++) {
        ugrid_real reach;
        if (a == grid->desc.dim) break;
        reach = ugrid_i_kept(ugrid_i_half_of(grid, i, a) + ugrid_i_half_of(grid, j, a));
        if (!(d[a] <= reach && -d[a] <= reach)) return 0;
    }
    return 1;
}

/* ----------------------------------------------------------------------------------------------
   >>passes: which hits a filtered search keeps (>>filter)
   ---------------------------------------------------------------------------------------------- */

/* Does the filter keep anything from being listed? */
UGRID_FN int ugrid_i_filters(const ugrid *grid)
{
    const ugrid_filter *filter = &grid->filter;
    return filter->radii || filter->masks || filter->exclude_start || filter->exclude ||
           filter->sets;
}

/* The radius of a filtered search. */
UGRID_FN ugrid_real ugrid_i_largest_reach(const ugrid *grid, ugrid_real radius)
{
    return grid->filter.radii ? radius + (grid->filter.largest + grid->filter.largest) : radius;
}

/* Refuses what needs no particle to be seen. */
UGRID_FN ugrid_result ugrid_i_check_filter(const ugrid *grid, ugrid_real radius)
{
    const ugrid_filter *filter = &grid->filter;
    if (!filter->exclude_start != !filter->exclude) return UGRID_BAD_FILTER;
    if (!filter->radii) return UGRID_OK;
    if (!(filter->largest >= 0) || !ugrid_i_finite(filter->largest)) return UGRID_BAD_FILTER;
    if (filter->radii_stride % sizeof(ugrid_real)) return UGRID_BAD_FILTER;
    return ugrid_i_radius_valid(ugrid_i_largest_reach(grid, radius)) ? UGRID_OK : UGRID_BAD_RADIUS;
}

/* The radius of a particle, as given. */
UGRID_FN ugrid_real ugrid_i_given_radius(const ugrid_filter *filter, int32_t i)
{
    size_t const stride = filter->radii_stride ? filter->radii_stride : sizeof(ugrid_real);
    return *(const ugrid_real *)(const void *)((const char *)filter->radii + stride * (size_t)i);
}

/* The same; CUDA does not refuse those above the largest. */
UGRID_FN ugrid_real ugrid_i_filter_radius(const ugrid_filter *filter, int32_t i)
{
    ugrid_real const radius = ugrid_i_given_radius(filter, i);
    return radius < filter->largest ? radius : filter->largest;
}

/* Is j among those that i excludes? */
UGRID_FN int ugrid_i_excludes(const ugrid_filter *filter, int32_t i, int32_t j)
{
    int64_t e;
    for (e = filter->exclude_start[i]; e < filter->exclude_start[i + 1]; e++)
        if (filter->exclude[e] == j) return 1;
    return 0;
}

/* Does the row of i list particles of the set of j? */
UGRID_FN int ugrid_i_sees(const ugrid_filter *filter, int32_t i, int32_t j)
{
    return filter->sees[filter->sets[i] & 31] >> (filter->sets[j] & 31) & 1;
}

/* Is j, at the squared distance d2, listed with i? once: the pair (i, j) stands for (j, i) too. */
UGRID_FN int ugrid_i_passes(const ugrid *grid, ugrid_real radius, int once, int32_t i, int32_t j,
                            ugrid_real d2)
{
    const ugrid_filter *filter = &grid->filter;
    if (filter->masks && !(filter->masks[i] & filter->masks[j])) return 0;
    if (filter->sets && !ugrid_i_sees(filter, i, j) && !(once && ugrid_i_sees(filter, j, i)))
        return 0;
    if (filter->radii) { /* their sum first: the same bits for (i, j) and (j, i) */
        ugrid_real const reach = radius + (ugrid_i_filter_radius(filter, i) +
                                           ugrid_i_filter_radius(filter, j));
        if (!(d2 <= ugrid_i_times(reach, reach))) return 0;
    }
    return !filter->exclude_start ||
           !(ugrid_i_excludes(filter, i, j) || ugrid_i_excludes(filter, j, i));
}

/* ----------------------------------------------------------------------------------------------
   >>cuda-api: the same on a GPU. Plain C may call these functions; one .cu file with
   UGRID_IMPLEMENTATION and UGRID_CUDA defines them. All pointers d_... are device memory. No call
   synchronises unless its comment says so. Every launch error is returned as UGRID_CUDA_ERROR. A
   pending CUDA error from before the call may be cleared.
   ---------------------------------------------------------------------------------------------- */

#ifdef UGRID_CUDA

/* The second names of a double build (>>config). */
#if UGRID_I_REAL_KIND == 2 && !defined(NEARFIELD_NAMESPACE)
#define ugrid_cuda_fit              ugrid_f64_cuda_fit
#define ugrid_cuda_reserve          ugrid_f64_cuda_reserve
#define ugrid_cuda_build            ugrid_f64_cuda_build
#define ugrid_cuda_free             ugrid_f64_cuda_free
#define ugrid_cuda_check            ugrid_f64_cuda_check
#define ugrid_cuda_upload           ugrid_f64_cuda_upload
#define ugrid_cuda_download         ugrid_f64_cuda_download
#define ugrid_cuda_gather           ugrid_f64_cuda_gather
#define ugrid_cuda_scatter          ugrid_f64_cuda_scatter
#define ugrid_cuda_cell_sums        ugrid_f64_cuda_cell_sums
#define ugrid_cuda_count_pairs      ugrid_f64_cuda_count_pairs
#define ugrid_cuda_count_overlaps   ugrid_f64_cuda_count_overlaps
#define ugrid_cuda_count_neighbors  ugrid_f64_cuda_count_neighbors
#define ugrid_cuda_neighbors        ugrid_f64_cuda_neighbors
#define ugrid_cuda_neighbors_at     ugrid_f64_cuda_neighbors_at
#endif

/* Kernel argument, passed by value: a grid whose arrays are in device memory. It is a type of its
   own so that host code cannot walk through device pointers by accident. */
typedef struct ugrid_device { ugrid grid; } ugrid_device;

/* Device-side status, read by ugrid_cuda_check. All zero: nothing to report. */
typedef struct ugrid_cuda_facts {
    int32_t first_bad;      /* INT32_MAX - (first particle with a NaN or infinite position), 0 =
                               none */
    int32_t needed_slots;   /* FIXED: entries in the fullest cell if they exceed desc.slots (only
                               that many are stored) */
    int32_t first_outside;  /* as first_bad, of particles outside the box */
    int32_t outside;        /* their number */
    int32_t invalid;        /* the number of those not finite */
    int64_t others;         /* in the cells of sampled particles (>>split in cuda/ugrid.cu) */
} ugrid_cuda_facts;

enum { UGRID_CUDA_SCRATCH = 7 };

typedef struct ugrid_cuda {
    ugrid_device device;        /* the argument of your kernels */
    ugrid_cuda_facts *d_facts;
    struct CUstream_st *stream; /* of the last build or search */
    ugrid_block block[UGRID_BLOCKS];         /* device memory: the arrays of the grid */
    ugrid_block scratch[UGRID_CUDA_SCRATCH]; /* device memory: temporary storage of builds and
                                                searches */
    int32_t *near_samples;      /* pinned host memory: what the last build saw (>>order in
                                   cuda/ugrid.cu); null where that does not matter */
    int32_t in_order;           /* 1: the last build took desc.coherent, or what was seen before
                                   it, for its particles being nearly in cell order */
    int32_t may_split;          /* 1: the last build chose desc.split itself */
    double crowd;               /* particles per unit of volume, as those of the grid of the last
                                   ugrid_cuda_check see it, where may_split, or those that the first
                                   such build sampled: for the next choice of desc.split */
    int32_t crowd_known;        /* 1: crowd was sampled */
} ugrid_cuda;

/* As ugrid_fit, for device points, but UGRID_NOT_FINITE does not say which. Synchronises the
   stream. */
UGRID_API ugrid_result ugrid_cuda_fit(ugrid_desc *desc, const ugrid_real *d_pos, size_t stride,
                                      int32_t n, struct CUstream_st *stream);

/* As ugrid_reserve, for builds and for searches of up to n particles (neighbors_at: query points).
   After it they allocate nothing, so that a step can be captured in a CUDA graph. Where lists use
   strips, this includes 72 bytes per particle (2D: 24) for ugrid_cuda_neighbors, which otherwise
   allocates them at its first call. */
UGRID_API ugrid_result ugrid_cuda_reserve(ugrid_cuda *gpu, const ugrid_desc *desc, int32_t n,
                                          struct CUstream_st *stream);

/* As ugrid_build. desc needs min, max (or unbounded) and cell or radius. The first build of half a
   million particles or more that leaves method and split open may sample the positions: it then
   waits for the stream (not while that is captured). Particles with a NaN or infinite
   position are in no cell (SORT, COUNT: at the last places), and so are those that desc.outside
   refuses. A full cell of UGRID_FIXED keeps what fits. ugrid_cuda_check reports all. Order within a
   cell: that of the serial build for UGRID_SORT and desc.deterministic, otherwise unspecified. */
UGRID_API ugrid_result ugrid_cuda_build(ugrid_cuda *gpu, const ugrid_desc *desc,
                                        const ugrid_real *d_pos, size_t stride, int32_t n,
                                        struct CUstream_st *stream);

/* Synchronises the stream and returns the status of the build: UGRID_OK, UGRID_NOT_FINITE or
   UGRID_OUTSIDE_BOX (device.grid.bad_id), or UGRID_CELL_FULL (device.grid.needed_slots). Fetches
   outside and invalid. Of several the first in this order; with desc.skip_invalid UGRID_NOT_FINITE
   comes last: particles were left out, and all else is well. Where desc.split is open, it samples
   how crowded the cells are: the next build may then cut them, which changes the order by place,
   and no list by id. */
UGRID_API ugrid_result ugrid_cuda_check(ugrid_cuda *gpu, struct CUstream_st *stream);

/* Frees the device memory in the order of the stream that the grid was last used on: that stream
   must still exist. Waits for it where near_samples is not null. One ugrid_cuda belongs to one
   stream at a time. Before you use it on another stream, or in kernels of your own there, order the
   two streams by an event. */
UGRID_API void ugrid_cuda_free(ugrid_cuda *gpu);

/* Copies a host grid into a device grid (its memory is reused), for searches there: as built or
   loaded here, every array in the same bits. desc.rows: only the default. desc.cuda_allocator is
   the device grid's if it has one, else the host grid's. Borrowed positions are not copied: set
   gpu->device.grid.pos and .stride (and .desc.half_extents) to a device copy before a search that
   borrows them. Waits for the stream. UGRID_NOT_BUILT: there is nothing to copy. */
UGRID_API ugrid_result ugrid_cuda_upload(ugrid_cuda *gpu, const ugrid *grid,
                                         struct CUstream_st *stream);

/* Copies a device grid into a host grid (its memory is reused), for inspection or for searches on
   the CPU. Borrowed positions are not copied: set grid->pos and grid->stride (and
   grid->desc.half_extents) to a host copy before a search that borrows them, and before
   ugrid_validate and ugrid_verify.
   Synchronises the stream. UGRID_CUDA_ERROR: grid->cuda_error, and the grid is empty. */
UGRID_API ugrid_result ugrid_cuda_download(ugrid *grid, const ugrid_cuda *gpu,
                                           struct CUstream_st *stream);

/* As ugrid_gather and ugrid_scatter; `bytes` below 2^31. */
UGRID_API ugrid_result ugrid_cuda_gather(ugrid_cuda *gpu, const void *d_src, size_t bytes,
                                         void *d_dst, struct CUstream_st *stream);
UGRID_API ugrid_result ugrid_cuda_scatter(ugrid_cuda *gpu, const void *d_src, size_t bytes,
                                          void *d_dst, struct CUstream_st *stream);

/* As ugrid_cell_sums, by atomics in no fixed order; values by particle, or by place with
   UGRID_PLACES. Where the grid has its particles in cell order (SORT, COUNT; desc.coherent; fewer
   than 32 cells), threads of a warp that share a cell are reduced first (Blog), unless flags has
   UGRID_PLAIN_ATOMICS. */
enum { UGRID_PLAIN_ATOMICS = 4 };
UGRID_API ugrid_result ugrid_cuda_cell_sums(ugrid_cuda *gpu, const ugrid_real *d_values,
                                            int32_t width, int flags, ugrid_real *d_sums,
                                            struct CUstream_st *stream);

/* As the searches above; results stay on the device. d_pairs: one int64_t. d_offsets: n + 1
   (neighbors_at: m + 1). A list that does not fit is truncated at `capacity` entries; the last
   offset is the size needed. */
UGRID_API ugrid_result ugrid_cuda_count_pairs(ugrid_cuda *gpu, ugrid_real radius, int64_t *d_pairs,
                                              struct CUstream_st *stream);
UGRID_API ugrid_result ugrid_cuda_count_overlaps(ugrid_cuda *gpu, int64_t *d_pairs,
                                                 struct CUstream_st *stream);
UGRID_API ugrid_result ugrid_cuda_count_neighbors(ugrid_cuda *gpu, ugrid_real radius, int flags,
                                                  int32_t *d_counts, struct CUstream_st *stream);
UGRID_API ugrid_result ugrid_cuda_neighbors(ugrid_cuda *gpu, ugrid_real radius, int flags,
                                            int64_t *d_offsets, int32_t *d_ids, int64_t capacity,
                                            struct CUstream_st *stream);
UGRID_API ugrid_result ugrid_cuda_neighbors_at(ugrid_cuda *gpu, const ugrid_real *d_points,
                                               size_t stride, int32_t m, ugrid_real radius,
                                               int64_t *d_offsets, int32_t *d_ids, int64_t capacity,
                                               struct CUstream_st *stream);
#endif /* UGRID_CUDA */

/* ----------------------------------------------------------------------------------------------
   >>stb_ds: queries that append to an stb_ds array, when stb_ds.h was included before this file
   ---------------------------------------------------------------------------------------------- */

typedef struct ugrid_pair { int32_t i, j; } ugrid_pair;

#ifdef INCLUDE_STB_DS_H

/* Appends one element to an stb_ds array. It calls the functions behind the macros, because the
   macros warn under -Wconversion. */
static inline void *ugrid_i_arr_more(void *array, size_t bytes)
{
    size_t const length = array ? ((stbds_array_header *)array - 1)->length : 0;
    size_t const capacity = array ? ((stbds_array_header *)array - 1)->capacity : 0;
    if (length == capacity) array = stbds_arrgrowf(array, bytes, 1, 0);
    ((stbds_array_header *)array - 1)->length = length + 1;
    return array;
}

/* Appends the ids of the particles within radius of p, the same as ugrid_query: int32_t *hits =
   NULL; ... arrlen(hits) ... arrfree(hits). */
static inline ugrid_result ugrid_arr_within(const ugrid *grid, const ugrid_real *p,
                                            ugrid_real radius, int32_t **hits)
{
    ugrid_real at[3], q[3];
    ugrid_near walk;
    ugrid_result const result = ugrid_i_check_search(grid, radius, 0);
    if (!p || !hits) return UGRID_BAD_ARGUMENT;
    if (result != UGRID_OK) return result;
    ugrid_i_wrap_point(grid, p, at);
    if (!ugrid_i_point_finite(at)) return UGRID_NOT_FINITE;
    walk = ugrid_near_within(grid, at, radius);
    while (ugrid_next(&walk)) {
        ugrid_point(grid, walk.place, q);
        if (ugrid_i_distance2_in_box(grid, at, q) > radius * radius) continue;
        *hits = (int32_t *)ugrid_i_arr_more(*hits, sizeof **hits);
        (*hits)[((stbds_array_header *)(void *)*hits - 1)->length - 1] = walk.id;
    }
    return UGRID_OK;
}

/* Appends every pair within radius (or as the filter says), each once. */
static inline ugrid_result ugrid_arr_pairs(const ugrid *grid, ugrid_real radius, ugrid_pair **pairs)
{
    ugrid_result result = ugrid_i_check_search(grid, radius, 0);
    ugrid_real reach;
    int32_t place;
    if (!pairs) return UGRID_BAD_ARGUMENT;
    if (result == UGRID_OK) result = ugrid_i_check_filter(grid, radius);
    if (result != UGRID_OK) return result;
    reach = ugrid_i_largest_reach(grid, radius);
    for (place = 0; place < grid->n; place++) {
        ugrid_real p[3], q[3], d2;
        int32_t const id = ugrid_id(grid, place);
        ugrid_near walk = ugrid_near_half(grid, place, reach);
        ugrid_point(grid, place, p);
        while (ugrid_next(&walk)) {
            ugrid_pair *last;
            ugrid_point(grid, walk.place, q);
            d2 = ugrid_i_distance2_in_box(grid, p, q);
            if (d2 > reach * reach || !ugrid_i_passes(grid, radius, 1, id, walk.id, d2))
                continue;
            *pairs = (ugrid_pair *)ugrid_i_arr_more(*pairs, sizeof **pairs);
            last = *pairs + ((stbds_array_header *)(void *)*pairs - 1)->length - 1;
            last->i = id;
            last->j = walk.id;
        }
    }
    return UGRID_OK;
}

#endif /* INCLUDE_STB_DS_H */

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
} /* extern "C" */
#endif

/* ----------------------------------------------------------------------------------------------
   >>cuda-templates: for .cu files. In a kernel, the walk of a ugrid_device; on the host, a functor
   for each contact.
   ---------------------------------------------------------------------------------------------- */

#if defined(UGRID_CUDA) && defined(__CUDACC__)

/* The functions of the walk for a ugrid_device. They exist on the device only. */
static __device__ __forceinline__ ugrid_near ugrid_near_within(const ugrid_device *device,
                                                               const ugrid_real *p,
                                                               ugrid_real radius);
static __device__ __forceinline__ ugrid_near ugrid_near_point(const ugrid_device *device,
                                                              const ugrid_real *p);
static __device__ __forceinline__ ugrid_near ugrid_near_place(const ugrid_device *device,
                                                              int32_t place, ugrid_real radius);
static __device__ __forceinline__ ugrid_near ugrid_near_half(const ugrid_device *device,
                                                             int32_t place, ugrid_real radius);
static __device__ __forceinline__ ugrid_near ugrid_near_overlaps(const ugrid_device *device,
                                                                 int32_t place);
static __device__ __forceinline__ ugrid_near ugrid_near_overlaps_half(const ugrid_device *device,
                                                                      int32_t place);

/* Two particles within the radius of each other. */
struct ugrid_contact {
    int32_t i, j;               /* ids */
    int32_t place_i, place_j;
    ugrid_real d[3], d2;        /* from i to j, to the nearest image, and its square */
};

/* In a kernel: f(const ugrid_contact &) for every neighbour of the particle at `place`; half: each
   pair once over all places. A kernel compiled for one kind of grid is faster: cuda/ugrid.cu has
   the same function with a ugrid_path as its first template argument. */
template <class F>
__device__ __forceinline__ void ugrid_for_each(const ugrid &grid, int32_t place, ugrid_real radius,
                                               bool half, F f);

/* Calls f(const ugrid_contact &), a __device__ functor, for every neighbour of every particle
   (UGRID_HALF: each pair once). */
template <class F>
static ugrid_result ugrid_cuda_each(ugrid_cuda *gpu, ugrid_real radius, int flags, F f,
                                    struct CUstream_st *stream);

/* d_sums[i] = sum of f(const ugrid_contact &) over the neighbours of particle i (UGRID_PLACES: of
   place i), added in the order of the walk. T needs T() and +=. */
template <class T, class F>
static ugrid_result ugrid_cuda_sum(ugrid_cuda *gpu, ugrid_real radius, int flags, F f, T *d_sums,
                                   struct CUstream_st *stream);

#include "cuda/ugrid.cu" /* its first part, with the definitions */

#endif /* UGRID_CUDA && __CUDACC__ */

#endif /* UGRID_H */

/* ==============================================================================================
   Implementation. First the method, plain and whole: >>memory to >>each. (What serves speed there:
   copies `view`, and the order that is copied from the records; search.form is for >>faster.) Then
   its faster forms (>>faster), which the file with UGRID_PLAIN does without, and what checks and
   stores a grid.
   ============================================================================================== */

#if defined(UGRID_IMPLEMENTATION) && !defined(UGRID_IMPLEMENTATION_DONE)
#define UGRID_IMPLEMENTATION_DONE
#define UGRID_I_IMPLEMENTED /* in this file: its part is, too */

#include <float.h>
#include <stdlib.h>

/* Instructions chosen at run time (>>lanes): with gcc and clang on x86-64. Not with gcc on Windows,
   where it does not align the stack for them (its bug 54412), nor clang in place of cl. */
#if defined(__x86_64__) && (defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 7)) && \
    (!defined(_WIN32) || (defined(__clang__) && defined(__GNUC__))) && !defined(__TINYC__) && \
    !defined(__INTEL_COMPILER) && !defined(__NVCOMPILER) && !defined(__CUDACC__) && \
    !defined(UGRID_PLAIN_LANES) && !defined(UGRID_PLAIN)
#include <immintrin.h>
#define UGRID_I_FORMS
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

#if UGRID_I_REAL_KIND == 1
#define UGRID_I_REAL_MAX FLT_MAX
#define UGRID_I_REAL_MIN FLT_MIN
#define UGRID_I_EPSILON  FLT_EPSILON
#define UGRID_I_AXIS_CELLS 16777216     /* 2^24: up to here a float holds every integer */
#else
#define UGRID_I_REAL_MAX DBL_MAX
#define UGRID_I_REAL_MIN DBL_MIN
#define UGRID_I_EPSILON  DBL_EPSILON
#define UGRID_I_AXIS_CELLS 268435456    /* 2^28: within the range of ugrid_i_floor */
#endif

#define UGRID_I_INT_MAX 2147482624      /* 2^31 - 1024: ids, places and cell numbers, rounded up to
                                           whole blocks of threads, fit int32_t */

enum { UGRID_I_MOST_PIECES = 1024 };  /* the most pieces of desc.parallel */

/* The seams: where the method goes on to its faster forms (>>faster). Each returns whether it did
   the work; `*result` is then what it came to. The text below needs none of them: both give the
   same bits. UGRID_PLAIN: none does anything. */
struct ugrid_i_list;
struct ugrid_i_queries;
struct ugrid_i_search;
typedef void ugrid_i_range_fn(const void *context, int32_t first, int32_t last);
#ifdef UGRID_PLAIN
#define ugrid_i_faster_words(grid, n)                              0
#define ugrid_i_fit_faster(desc, pos, stride, n, bad_id, result)   0
#define ugrid_i_left_out_faster(grid, result)                      0
#define ugrid_i_build_faster(grid, result)                         0
#define ugrid_i_search_faster(search, stopped)                     0
#define ugrid_i_query_faster(walk, p, limit, ids, capacity, found) 0
#define ugrid_i_run_faster(search, result)                         0
#define ugrid_i_queries_faster(queries, list, radius, result)      0
#define ugrid_i_places_faster(grid, work, context, result)         0
#else
static int64_t ugrid_i_faster_words(const ugrid *grid, int32_t n);
static int ugrid_i_fit_faster(ugrid_desc *desc, const ugrid_real *pos, size_t stride, int32_t n,
                              int32_t *bad_id, ugrid_result *result);
static int ugrid_i_left_out_faster(ugrid *grid, ugrid_result *result);
static int ugrid_i_build_faster(ugrid *grid, ugrid_result *result);
static int ugrid_i_search_faster(const struct ugrid_i_search *search, int *stopped);
static int ugrid_i_query_faster(ugrid_near *walk, const ugrid_real *p, ugrid_real limit,
                                int32_t *ids, int32_t capacity, int32_t *found);
static int ugrid_i_run_faster(const struct ugrid_i_search *search, ugrid_result *result);
static int ugrid_i_queries_faster(const struct ugrid_i_queries *queries, struct ugrid_i_list *list,
                                  ugrid_real radius, ugrid_result *result);
static int ugrid_i_places_faster(const ugrid *grid, ugrid_i_range_fn *work, const void *context,
                                 ugrid_result *result);
#endif

UGRID_API int ugrid_version(void)
{
    return 10000 * UGRID_VERSION_MAJOR + 100 * UGRID_VERSION_MINOR + UGRID_VERSION_PATCH;
}

UGRID_API const char *ugrid_result_text(ugrid_result result)
{
#define UGRID_I_TEXT(code, text) #code ": " text,
    static const char *const texts[] = { UGRID_RESULTS(UGRID_I_TEXT) };
#undef UGRID_I_TEXT
    return (int)result >= 0 && result < UGRID_RESULT_COUNT ? texts[result] : "unknown ugrid_result";
}

/* ----------------------------------------------------------------------------------------------
   >>memory: the arrays live in blocks that only grow
   ---------------------------------------------------------------------------------------------- */

enum {
    UGRID_I_START,
    UGRID_I_ORDER,
    UGRID_I_INVERSE,
    UGRID_I_RECORD,
    UGRID_I_SLOT,
    UGRID_I_NEXT,
    UGRID_I_WORK_A,
    UGRID_I_WORK_B
};

static void *ugrid_i_alloc(const ugrid_allocator *allocator, size_t bytes)
{
    return allocator->alloc ? allocator->alloc(bytes, allocator->user) : malloc(bytes);
}

/* Frees a block and empties it. */
static void ugrid_i_release(const ugrid_allocator *allocator, ugrid_block *block)
{
    if (block->memory && allocator->free)
        allocator->free(block->memory, block->bytes, allocator->user);
    else free(block->memory);
    block->memory = NULL;
    block->bytes = 0;
}

/* The new size of a block that is too small: half as much again, so that n builds of one more
   particle each reallocate O(log n) times. (A sum that wraps is below `bytes`.) A first block, and
   a reserved one, get the size asked for. */
static size_t ugrid_i_grown(const ugrid_block *block, size_t bytes, int exact)
{
    size_t const more = block->bytes + block->bytes / 2;
    return exact || more < bytes ? bytes : more;
}

/* Makes each block at least as large as asked. A block that grows loses its contents. */
static ugrid_result ugrid_i_grow(ugrid *grid, const size_t bytes[UGRID_BLOCKS], int exact)
{
    const ugrid_allocator *allocator = &grid->desc.allocator;
    int b;
    for (b = 0; b < UGRID_BLOCKS; b++) {
        ugrid_block *block = &grid->block[b];
        size_t grown = ugrid_i_grown(block, bytes[b], exact);
        if (bytes[b] <= block->bytes) continue;
        ugrid_i_release(allocator, block);
        block->memory = ugrid_i_alloc(allocator, grown);
        if (!block->memory && grown > bytes[b])
            block->memory = ugrid_i_alloc(allocator, grown = bytes[b]);
        if (!block->memory) return UGRID_OUT_OF_MEMORY;
        block->bytes = grown;
    }
    return UGRID_OK;
}

/* Has each cell a range of places? (SORT and COUNT) */
static int ugrid_i_has_starts(const ugrid_desc *desc)
{
    return desc->method == UGRID_COUNT || desc->method == UGRID_SORT;
}

/* Does it keep the place of each particle? */
static int ugrid_i_has_inverse(const ugrid_desc *desc)
{
    return ugrid_i_has_starts(desc) && desc->placement == UGRID_LOOSE && desc->inverse;
}

/* Does the grid keep records, or read the positions of the caller? */
static int ugrid_i_has_records(const ugrid_desc *desc)
{
    return desc->method == UGRID_LIST_PACKED ||
           (ugrid_i_has_starts(desc) && desc->placement == UGRID_LOOSE && !desc->no_records);
}

/* The bytes that the arrays of a resolved grid with n particles need. */
static ugrid_result ugrid_i_sizes(const ugrid *grid, int32_t n, size_t bytes[UGRID_BLOCKS])
{
    const ugrid_desc *desc = &grid->desc;
    int64_t const entries = (int64_t)n * grid->spans, cells = grid->cell_count,
                  words = ugrid_i_faster_words(grid, n), index = sizeof(int32_t),
                  key = sizeof(uint64_t), record = sizeof(ugrid_record);
    int64_t need[UGRID_BLOCKS] = {0};
    int b;
    need[UGRID_I_START] = (cells + 1) * index; /* start, count or head */
    if (ugrid_i_has_starts(desc)) need[UGRID_I_ORDER] = entries * index;
    if (ugrid_i_has_inverse(desc)) need[UGRID_I_INVERSE] = n * index;
    if (ugrid_i_has_records(desc)) need[UGRID_I_RECORD] = n * record;
    if (desc->method == UGRID_FIXED) need[UGRID_I_SLOT] = cells * desc->slots * index;
    if (desc->method == UGRID_LIST) need[UGRID_I_NEXT] = entries * index;
    if (desc->method == UGRID_COUNT) need[UGRID_I_WORK_A] = entries * index;
    if (desc->method == UGRID_SORT) need[UGRID_I_WORK_A] = need[UGRID_I_WORK_B] = entries * key;
    if (words > 0) need[UGRID_I_WORK_B] = words * key;
    for (b = 0; b < UGRID_BLOCKS; b++) { /* only a 32-bit size_t can overflow */
        if ((uint64_t)need[b] > SIZE_MAX / 2) return UGRID_OUT_OF_MEMORY;
        bytes[b] = (size_t)need[b];
    }
    return UGRID_OK;
}

/* Points the arrays to their blocks; those that the method does not use become NULL. */
static void ugrid_i_bind(ugrid *grid, const ugrid_block *block)
{
    const ugrid_desc *desc = &grid->desc;
    int const starts = ugrid_i_has_starts(desc), fixed = desc->method == UGRID_FIXED;
    int32_t *const by_cell = (int32_t *)block[UGRID_I_START].memory;
    grid->start = starts ? by_cell : NULL;
    grid->count = fixed ? by_cell : NULL;
    grid->head = !starts && !fixed ? by_cell : NULL;
    grid->order = starts ? (int32_t *)block[UGRID_I_ORDER].memory : NULL;
    grid->inverse = ugrid_i_has_inverse(desc) ? (int32_t *)block[UGRID_I_INVERSE].memory : NULL;
    grid->record = ugrid_i_has_records(desc) ? (ugrid_record *)block[UGRID_I_RECORD].memory : NULL;
    grid->slot = fixed ? (int32_t *)block[UGRID_I_SLOT].memory : NULL;
    grid->next = desc->method == UGRID_LIST ? (int32_t *)block[UGRID_I_NEXT].memory : NULL;
}

UGRID_API void ugrid_free(ugrid *grid)
{
    int b;
    if (!grid) return;
    for (b = 0; b < UGRID_BLOCKS; b++) ugrid_i_release(&grid->desc.allocator, &grid->block[b]);
    memset(grid, 0, sizeof *grid);
}

UGRID_API int64_t ugrid_bytes(const ugrid *grid)
{
    int64_t bytes = 0;
    int b;
    if (!grid) return 0;
    for (b = 0; b < UGRID_BLOCKS; b++) bytes += (int64_t)grid->block[b].bytes;
    return bytes;
}

/* ----------------------------------------------------------------------------------------------
   >>resolve: from a desc to axes, cells and a method. Nothing is allocated and no point is read.
   ---------------------------------------------------------------------------------------------- */

/* Did the caller give a box? */
static int ugrid_i_box_given(const ugrid_desc *desc)
{
    int a;
    /* a NaN counts as given */
    for (a = 0; a < 3; a++) if (!(desc->min[a] == 0 && desc->max[a] == 0)) return 1;
    return 0;
}

/* Is some axis that exists periodic? */
static int ugrid_i_any_periodic(const ugrid_desc *desc)
{
    return desc->periodic[0] || desc->periodic[1] || (desc->dim == 3 && desc->periodic[2]);
}

/* An enum from the caller may hold any number. */
static int ugrid_i_options_exist(const ugrid_desc *desc)
{
    if ((int)desc->method < 0 || desc->method > UGRID_LIST_PACKED) return 0;
    if ((int)desc->placement < 0 || desc->placement > UGRID_TIGHT) return 0;
    if ((int)desc->walk < 0 || desc->walk > UGRID_HYBRID) return 0;
    if ((int)desc->cell_order < 0 || desc->cell_order > UGRID_MORTON) return 0;
    if ((int)desc->slot_layout < 0 || desc->slot_layout > UGRID_SLOTS_BY_ROW) return 0;
    if ((int)desc->outside < 0 || desc->outside > UGRID_LEAVE_OUT) return 0;
    if (desc->split < 1 || desc->split > 64) return 0;
    if (desc->buckets < 0 || desc->buckets > 1 << 30 || desc->max_cells < 0) return 0;
    if (desc->parallel.tasks < 0 || desc->parallel.tasks > UGRID_I_MOST_PIECES) return 0;
    return !(desc->unbounded && ugrid_i_any_periodic(desc));
}

/* Is a box one that a grid can have? */
static ugrid_result ugrid_i_check_box(const ugrid_desc *desc)
{
    int a;
    for (a = 0; a < desc->dim; a++) { /* also when one is NaN */
        if (!(desc->max[a] - desc->min[a] > 0)) return UGRID_BAD_BOX;
        if (!ugrid_i_finite(desc->min[a]) || !ugrid_i_finite(desc->max[a])) return UGRID_BAD_BOX;
    }
    for (a = 0; a < desc->dim; a++)
        if (!ugrid_i_finite(desc->max[a] - desc->min[a])) return UGRID_BOX_TOO_WIDE;
    return UGRID_OK;
}

/* Do the cells allow the walk that the caller wants? */
static int ugrid_i_walk_possible(const ugrid_desc *desc)
{
    int const strips = desc->walk == UGRID_STRIPS || desc->walk == UGRID_HYBRID;
    int const starts = desc->method == UGRID_AUTO || ugrid_i_has_starts(desc);
    return !strips || (starts && ugrid_i_has_strips(desc->cell_order) &&
                       desc->placement == UGRID_LOOSE && !desc->unbounded);
}

/* 0, or at least the size of a point and a multiple of the size of a coordinate. */
static int ugrid_i_stride_valid(size_t stride, int32_t dim)
{
    return stride == 0 ||
           (stride >= (size_t)dim * sizeof(ugrid_real) && stride % sizeof(ugrid_real) == 0);
}

/* The refusals that do not depend on the points. */
static ugrid_result ugrid_i_check_desc(const ugrid_desc *desc)
{
    if (desc->dim != 2 && desc->dim != 3) return UGRID_BAD_DIM;
    if (!ugrid_i_options_exist(desc)) return UGRID_BAD_OPTION;
    if (!desc->allocator.alloc != !desc->allocator.free) return UGRID_BAD_ALLOCATOR;
    if (!desc->cuda_allocator.alloc != !desc->cuda_allocator.free) return UGRID_BAD_ALLOCATOR;
    if (!(desc->cell >= 0) || !ugrid_i_finite(desc->cell)) return UGRID_BAD_CELL;
    if (desc->unbounded && desc->cell == 0) return UGRID_BAD_CELL;
    if (!(desc->radius >= 0) || !ugrid_i_finite(desc->radius)) return UGRID_BAD_RADIUS;
    if (!(desc->size >= 0) || !ugrid_i_finite(desc->size)) return UGRID_BAD_SIZE;
    if (desc->half_extents && desc->placement != UGRID_TIGHT) return UGRID_BAD_SIZE;
    if (!ugrid_i_stride_valid(desc->half_extent_stride, desc->dim)) return UGRID_BAD_ARGUMENT;
    if (desc->slots < 0) return UGRID_BAD_SLOTS;
    if (desc->rows < UGRID_NO_ROWS) return UGRID_BAD_ROWS;
    if (desc->placement == UGRID_TIGHT && desc->method == UGRID_LIST_PACKED)
        return UGRID_BAD_PLACEMENT;
    if (!ugrid_i_walk_possible(desc)) return UGRID_BAD_WALK;
    return desc->unbounded || !ugrid_i_box_given(desc) ? UGRID_OK : ugrid_i_check_box(desc);
}

UGRID_API ugrid_result ugrid_defaults(ugrid_desc *out, const ugrid_desc *desc)
{
    ugrid_desc given;
    if (!out) return UGRID_BAD_ARGUMENT;
    memset(&given, 0, sizeof given);
    if (desc) given = *desc;
    if (given.dim == 0) given.dim = 3;
    if (given.cell == 0 && given.unbounded) given.cell = given.radius;
    if (given.split == 0) given.split = 1;
    if (given.slots == 0) given.slots = 32;
    if (given.max_cells == 0) given.max_cells = 1 << 27;
    if (given.max_cells > UGRID_I_INT_MAX) given.max_cells = UGRID_I_INT_MAX;
    if (given.size == 0) given.size = given.cell;
    if (given.half_extent_stride == 0)
        given.half_extent_stride = (size_t)given.dim * sizeof *given.half_extents;
    *out = given;
    return ugrid_i_check_desc(&given);
}

UGRID_API ugrid_method ugrid_choose(const ugrid_desc *desc, int32_t n, int64_t cells,
                                    const char **reason)
{
    const char *why;
    ugrid_method method = UGRID_COUNT;
    if (desc && desc->unbounded) {
        why = "COUNT: hashed buckets are about as many as the particles, one pass over them is "
              "cheap";
    } else if (cells > 64 * ((int64_t)n + 1024)) {
        method = UGRID_SORT;
        why = "SORT: far more cells than particles, and a sort does not count through the empty "
              "ones";
    } else {
        why = "COUNT: not many more cells than particles, so counting is one pass over each and "
              "beats the sort's several";
    }
    if (reason) *reason = why;
    return method;
}

/* Cells of each axis of the box: floor(length / cell), at least 1. Returns the number of cell
   numbers. Hash buckets: a power of two, as given; otherwise about n, within max_cells. As doubles,
   which hold any such number. */
static double ugrid_i_count_cells(const ugrid_desc *desc, int32_t n, double cells[3])
{
    double const least = desc->buckets ? desc->buckets : n < 64 ? 64 : n < 1 << 30 ? n : 1 << 30;
    double most = 1;
    int a;
    cells[0] = cells[1] = cells[2] = 1;
    if (desc->unbounded) {
        while (most < least) most *= 2;
        while (!desc->buckets && most > 1 && most > (double)desc->max_cells) most /= 2;
        return most;
    }
    for (a = 0; a < desc->dim; a++) { /* in ugrid_real: 1 / 0.05f is 20 there, not 19.99... */
        cells[a] = (double)((desc->max[a] - desc->min[a]) / desc->cell);
        if (cells[a] < 1) cells[a] = 1;
        if (cells[a] < 1e9) cells[a] = (double)(int64_t)cells[a];
    }
    cells[0] *= desc->split;
    if (desc->cell_order != UGRID_MORTON) return cells[0] * cells[1] * cells[2];
    for (a = 0; a < desc->dim; a++) while (most < cells[a]) most *= 2;
    return desc->dim == 2 ? most * most : most * most * most;
}

/* An axis with so many cells; the third in 2D and those of an unbounded grid have one, and no
   box. */
static void ugrid_i_resolve_axis(ugrid *grid, int a, double cells)
{
    const ugrid_desc *desc = &grid->desc;
    ugrid_axis *axis = &grid->axis[a];
    memset(axis, 0, sizeof *axis);
    axis->cells = axis->span = 1;
    axis->half = UGRID_I_REAL_MAX;
    if (a >= desc->dim) return;
    axis->min = desc->unbounded ? 0 : desc->min[a];
    axis->max = desc->unbounded ? 0 : desc->max[a];
    axis->periodic = desc->periodic[a] != 0;
    if (desc->unbounded) {
        axis->per_cell = (ugrid_real)(a == 0 ? desc->split : 1) / desc->cell;
        return;
    }
    axis->cells = (int32_t)cells;
    axis->last = (ugrid_real)(axis->cells - 1);
    axis->per_cell = (ugrid_real)axis->cells / (axis->max - axis->min);
    if (axis->periodic || ugrid_i_tight(grid)) {
        /* Across the border, and where a search ends at the end of an AABB, two different sums must
           agree. In them about a dozen numbers up to 2 M, M = max(|min|, |max|), are rounded, by at
           most EPSILON / 2 * 2 M each: so 16 of these. */
        ugrid_real const low = axis->min < 0 ? -axis->min : axis->min,
                         high = axis->max < 0 ? -axis->max : axis->max;
        axis->margin = 16 * (ugrid_real)UGRID_I_EPSILON * (low > high ? low : high);
    }
    if (axis->periodic) {
        axis->length = axis->max - axis->min;
        axis->half = axis->length / 2;
    }
}

/* TIGHT: the number of cells that one AABB can touch along each axis. Size <= cell gives 2. A size
   that exceeds the width of a cell by rounding only must not give 3, hence the factor: it removes
   less than searches are widened by. */
static ugrid_result ugrid_i_resolve_spans(ugrid *grid)
{
    int a;
    int64_t spans = 1;
    grid->tight_half = grid->tight_least = 0;
    grid->spans = 1;
    if (!ugrid_i_tight(grid)) return UGRID_OK;
    grid->tight_half = grid->desc.size / 2;
    if (!grid->desc.half_extents) grid->tight_least = grid->tight_half;
    for (a = 0; a < grid->desc.dim; a++) {
        ugrid_axis *axis = &grid->axis[a];
        double const cells =
            (double)grid->desc.size * (double)axis->per_cell * (1 - 8 * (double)UGRID_I_EPSILON);
        if (!(cells < 15)) return UGRID_BAD_SIZE;
        axis->span = (int32_t)cells + 2;
        if (!grid->desc.unbounded && axis->span > axis->cells) axis->span = axis->cells;
        spans *= axis->span;
    }
    grid->spans = (int32_t)spans;
    return UGRID_OK;
}

/* Sets the axes, cell_count, spans and the automatic choices. desc has its box and its cell. */
static ugrid_result ugrid_i_resolve(ugrid *grid, int32_t n)
{
    ugrid_desc *desc = &grid->desc;
    double cells[3], total;
    int a, too_fine = 0;
    if (desc->size == 0) desc->size = desc->cell;
    total = ugrid_i_count_cells(desc, n, cells);
    for (a = 0; a < 3; a++) too_fine |= cells[a] > UGRID_I_AXIS_CELLS;
    grid->needed_cells = total < 9e18 ? (int64_t)total : INT64_MAX;
    if (too_fine || grid->needed_cells > desc->max_cells) return UGRID_TOO_MANY_CELLS;
    grid->cell_count = (int32_t)grid->needed_cells;
    for (a = 0; a < 3; a++) ugrid_i_resolve_axis(grid, a, cells[a]);
    if (ugrid_i_resolve_spans(grid) != UGRID_OK) return UGRID_BAD_SIZE;
    if ((int64_t)n * grid->spans > UGRID_I_INT_MAX) return UGRID_TOO_MANY_ENTRIES;
    if (desc->method == UGRID_FIXED && grid->needed_cells * desc->slots > UGRID_I_INT_MAX)
        return UGRID_BAD_SLOTS;
    grid->reason = "chosen by the caller";
    if (desc->method == UGRID_AUTO)
        desc->method = ugrid_choose(desc, n, grid->needed_cells, &grid->reason);
    if (desc->walk == UGRID_WALK_AUTO) {
        desc->walk = UGRID_STRIPS;
        if (!ugrid_i_walk_possible(desc)) desc->walk = UGRID_CELLS;
    }
    return UGRID_OK;
}

/* ----------------------------------------------------------------------------------------------
   >>fit: the box and the cell, from the points
   ---------------------------------------------------------------------------------------------- */

/* The dim-th root of v > 0, by Newton's method, without libm. The values decrease until rounding
   ends that. So a larger v never has a smaller root, and fewer particles never get smaller cells
   (ugrid_reserve). A step divides a value that is far too large by at least 1.5: about 1200 steps
   reach the root of any double. */
static double ugrid_i_root(double v, int dim)
{
    double root, next = v > 1 ? v : 1;
    do {
        root = next;
        next = ((dim - 1) * root + v / ((dim > 1 ? root : 1) * (dim > 2 ? root : 1))) / dim;
    } while (next < root);
    return root;
}

/* About 2 particles per cell: cell = (2 * volume / n) ^ (1 / dim). An axis shorter than a cell has
   one cell in any case: the next step leaves it out. */
static ugrid_real ugrid_i_fit_evenly(const ugrid_desc *desc, int32_t n)
{
    double cell = 0;
    int a, step;
    for (step = 0; step < desc->dim; step++) {
        double volume = 2;
        int axes = 0;
        for (a = 0; a < desc->dim; a++) {
            double const length = (double)desc->max[a] - (double)desc->min[a];
            if (!(length > cell)) continue;
            volume *= length;
            axes++;
        }
        if (axes > 0) cell = ugrid_i_root(volume / (n > 1 ? n : 1), axes);
    }
    return cell > (double)UGRID_I_REAL_MIN && cell < (double)UGRID_I_REAL_MAX ? (ugrid_real)cell
                                                                              : 1;
}

/* The larger of this and the radius. Without a box: the radius.
   In cells of the radius a search tests 2 (3D: 6) times as many points as are within it; in halves
   and thirds of it fewer points of more cells. Where cells of the radius hold few, the cells cost
   more (from 64 on both cost the same, measured). Where they hold so many that a block of points
   exceeds UGRID_I_GATHER candidates, a search takes up to 4 times as long: from 128 (2D: 320) on
   also in halves. */
static ugrid_real ugrid_i_fit_cell(const ugrid_desc *desc, int32_t n)
{
    ugrid_real const radius = desc->radius,
                     cell = desc->unbounded && radius > 0 ? 0 : ugrid_i_fit_evenly(desc, n);
    double in_cell = n;
    int a;
    if (!(radius > cell)) return cell;
    if (desc->placement != UGRID_LOOSE || desc->unbounded) return radius;
    for (a = 0; a < desc->dim; a++) {
        double const length = (double)desc->max[a] - (double)desc->min[a];
        if (length > (double)radius) in_cell *= (double)radius / length;
    }
    return radius / (ugrid_real)(in_cell < 64 ? 1 : in_cell < (desc->dim == 2 ? 320 : 128) ? 2 : 3);
}

/* The box of the points, and their number: without those left out, and up to one refused. */
static ugrid_result ugrid_i_fit_box(ugrid_desc *desc, const ugrid_real *pos, size_t stride,
                                    int32_t n, int32_t *points, int32_t *bad_id)
{
    int32_t i;
    int a;
    *points = 0;
    for (i = 0; i < n; i++) {
        ugrid_real p[3];
        ugrid_i_load(pos, stride, desc->dim, i, p);
        if (!ugrid_i_point_finite(p)) {
            if (desc->skip_invalid) continue;
            if (bad_id) *bad_id = i;
            return UGRID_NOT_FINITE;
        }
        for (a = 0; a < desc->dim; a++) {
            if (*points == 0 || p[a] < desc->min[a]) desc->min[a] = p[a];
            if (*points == 0 || p[a] > desc->max[a]) desc->max[a] = p[a];
        }
        ++*points;
    }
    return UGRID_OK;
}

/* Gives an axis of zero length the width of a cell, but at least what the numbers can resolve
   there. A cell that is not given grows to that. */
static void ugrid_i_fit_flat_axes(ugrid_desc *desc, int cell_given)
{
    int a;
    for (a = 0; a < desc->dim; a++) {
        ugrid_real const at = desc->max[a] < 0 ? -desc->max[a] : desc->max[a];
        ugrid_real const step = at * (8 * (ugrid_real)UGRID_I_EPSILON); /* at * 8 could overflow */
        if (desc->max[a] != desc->min[a]) continue;
        if (!cell_given && desc->cell < step) desc->cell = step;
        desc->max[a] += desc->cell > step ? desc->cell : step;
    }
}

/* A sample of the points, at most one from each of `parts` equal parts of 0 .. n-1. */
enum { UGRID_I_SAMPLED = 1024, UGRID_I_SAMPLE_BUCKETS = 8192, UGRID_I_HALVINGS = 160 };
typedef struct ugrid_i_sample {
    int32_t count, parts;
    ugrid_real p[UGRID_I_SAMPLED][3];
} ugrid_i_sample;

/* None of few points: no cell of theirs is too crowded. */
UGRID_FN int32_t ugrid_i_sample_parts(int32_t n)
{
    return n < 4096 ? 0 : n / 128 < UGRID_I_SAMPLED ? n / 128 : UGRID_I_SAMPLED;
}

/* The point of part k, at a place that looks random. */
UGRID_FN int32_t ugrid_i_sampled(int32_t n, int32_t parts, int32_t k)
{
    int64_t const first = (int64_t)n * k / parts, last = (int64_t)n * (k + 1) / parts;
    return (int32_t)(first + (int64_t)((uint32_t)k * 2654435761u >> 7) % (last - first));
}

/* Takes a point into the sample, if it is finite. */
static void ugrid_i_take_sample(ugrid_i_sample *sample, const ugrid_real p[3])
{
    if (ugrid_i_point_finite(p)) memcpy(sample->p[sample->count++], p, sizeof sample->p[0]);
}

/* The part of the sample's points that have a cell of this edge for themselves. Cells are told
   apart by buckets, in which as many meet by chance as `keep` allows for. */
static double ugrid_i_alone_in(const ugrid_i_sample *sample, double cell)
{
    double const keep = 1 - sample->count / (double)UGRID_I_SAMPLE_BUCKETS;
    uint16_t met[UGRID_I_SAMPLE_BUCKETS];
    int32_t alone = 0, k;
    memset(met, 0, sizeof met);
    for (k = 0; k < sample->count; k++) {
        const ugrid_real *p = sample->p[k];
        int32_t const x = ugrid_i_floor((ugrid_real)((double)p[0] / cell)),
                      y = ugrid_i_floor((ugrid_real)((double)p[1] / cell)),
                      z = ugrid_i_floor((ugrid_real)((double)p[2] / cell)),
                      in_cell = ++met[ugrid_i_hash(x, y, z, UGRID_I_SAMPLE_BUCKETS)];
        alone += in_cell == 1 ? 1 : in_cell == 2 ? -1 : 0;
    }
    return alone / (sample->count * keep);
}

/* Chooses hashed cells where most points are in crowded cells of the box: one point is far from all
   others, clusters are far apart, or all lie on a curve. (With a dense cluster among even points
   the cells of the box stay: the even ones would search all buckets.)

   Of points spread evenly, l of the sample in a cell on average, e^-l are alone in one (Poisson).
   The edge is halved until a quarter is. Each halving divides l by 2 where points lie on a curve,
   by 4 on a surface, by 8 in space: so where the part a is alone now, a^2, a^4 or a^8 was before.
   That tells the dimensions that the points fill, and a tells l. So the edge follows with which a
   search meets as many points as in a full box: 2 * 3^dim in 3^dim cells. */
static void ugrid_i_fit_crowded(ugrid_desc *desc, const ugrid_i_sample *sample, int32_t n)
{
    double cell = (double)desc->cell, alone, before, in_cell, want = 2;
    int level, filled, axes;
    ugrid_desc hashed = *desc;
    if (desc->radius > 0 && desc->cell <= desc->radius) return; /* it is that of the searches */
    hashed.unbounded = 1;
    if (desc->outside != UGRID_CLAMP || ugrid_defaults(&hashed, &hashed) != UGRID_OK) return;
    alone = before = ugrid_i_alone_in(sample, cell);
    if (alone >= 0.25) return;
    for (level = 0; alone < 0.25; level++) {
        if (level == UGRID_I_HALVINGS) return; /* most are at one place: no cell helps */
        before = alone;
        cell /= 2;
        alone = ugrid_i_alone_in(sample, cell);
    }
    if (alone > 0.99) alone = 0.99;
    filled = before > alone * alone * alone ? 1
             : before > alone * alone * alone * alone * alone * alone || desc->dim == 2 ? 2
                                                                                       : 3;
    for (axes = filled; axes < desc->dim; axes++) want *= 3;
    in_cell = 2 * (1 - alone) / (1 + alone) * n / sample->count; /* about -log(alone) */
    cell *= ugrid_i_root(want / in_cell, filled);
    if (!(cell > (double)UGRID_I_REAL_MIN) || cell >= (double)desc->cell) return;
    desc->unbounded = 1;
    desc->cell = (ugrid_real)cell > desc->radius ? (ugrid_real)cell : desc->radius;
}

/* The same by points of the caller. */
static void ugrid_i_fit_by_sample(ugrid_desc *desc, const ugrid_real *pos, size_t stride, int32_t n)
{
    ugrid_i_sample sample;
    int32_t k;
    sample.count = 0;
    sample.parts = ugrid_i_sample_parts(n);
    for (k = 0; k < sample.parts; k++) {
        ugrid_real p[3];
        ugrid_i_load(pos, stride, desc->dim, ugrid_i_sampled(n, sample.parts, k), p);
        ugrid_i_take_sample(&sample, p);
    }
    if (sample.count > 1) ugrid_i_fit_crowded(desc, &sample, n);
}

UGRID_API ugrid_result ugrid_fit(ugrid_desc *desc, const ugrid_real *pos, size_t stride, int32_t n,
                                 int32_t *bad_id)
{
    ugrid_result result = UGRID_OK;
    int32_t points;
    int32_t const dim = desc && desc->dim == 2 ? 2 : 3;
    int const cell_given = desc && desc->cell != 0;
    if (!desc || n < 0 || (n > 0 && !pos) || !ugrid_i_stride_valid(stride, dim))
        return UGRID_BAD_ARGUMENT;
    if (desc->dim == 0) desc->dim = 3;
    if (desc->dim != dim) return UGRID_BAD_DIM;
    if (bad_id) *bad_id = -1;
    if (stride == 0) stride = (size_t)dim * sizeof *pos;
    if (!desc->unbounded && !ugrid_i_box_given(desc)) {
        if (ugrid_i_any_periodic(desc)) return UGRID_BAD_BOX;
        if (!ugrid_i_fit_faster(desc, pos, stride, n, bad_id, &result))
            result = ugrid_i_fit_box(desc, pos, stride, n, &points, bad_id);
        if (result != UGRID_OK) return result;
        if (!cell_given) desc->cell = ugrid_i_fit_cell(desc, n);
        ugrid_i_fit_flat_axes(desc, cell_given);
        if (ugrid_i_check_box(desc) != UGRID_OK) return UGRID_BOX_TOO_WIDE;
        if (!cell_given) ugrid_i_fit_by_sample(desc, pos, stride, n);
    }
    if (desc->cell == 0) desc->cell = ugrid_i_fit_cell(desc, n);
    return UGRID_OK;
}

/* ----------------------------------------------------------------------------------------------
   >>build: the particles of the example of >>cells, in cells 3 10 5 1 5 6, become

       COUNT         count   0 1 0 1 0 2 1 0 0 0 1 0      particles of each cell
                     end     0 1 1 2 2 4 5 5 5 5 6 6      inclusive prefix sum of count
       COUNT, SORT   start   0 0 1 1 2 2 4 5 5 5 5 6 6    exclusive prefix sum, and the total: what
                                                          COUNT has after the scatter
                     order   3 0 2 4 5 1                  ids: cell c has order[start[c]] to
                                                          order[start[c+1] - 1]
       FIXED         count   0 1 0 1 0 2 1 0 0 0 1 0
                     slot    . 3 . 0 . 2 5 . . . 1 .      2 slots by column: slot 0 of all cells,
                             . . . . . 4 . . . . . .      then slot 1
       LIST          head    -1 3 -1 0 -1 4 5 -1 -1 -1 1 -1
                     next    -1 -1 -1 -1 2 -1             cell 5: 4, then 2

   In COUNT one array, grid.start, holds counts, then ends, then starts (grid.count is FIXED's).
   Most functions below work on `view`, a copy, so that the compiler need not read its fields again
   after each store.
   ---------------------------------------------------------------------------------------------- */

/* Is a particle at p refused for not being finite? */
static int ugrid_i_refuses(const ugrid *grid, const ugrid_real p[3])
{
    return !grid->desc.skip_invalid && !ugrid_i_point_finite(p);
}

/* COUNT, SORT: the cell number of every entry (-1: none). */
static ugrid_result ugrid_i_cells_of_entries(ugrid *grid, int32_t *numbers)
{
    ugrid const view = *grid;
    int32_t i, local;
    for (i = 0; i < view.n; i++) {
        ugrid_real p[3];
        ugrid_i_load(view.pos, view.stride, view.desc.dim, i, p);
        if (ugrid_i_refuses(&view, p)) { grid->bad_id = i; return UGRID_NOT_FINITE; }
        for (local = 0; local < view.spans; local++)
            numbers[i * view.spans + local] = ugrid_i_entry_number(&view, p, i, local);
    }
    return UGRID_OK;
}

/* start[c] = how many entries have the number c. */
static void ugrid_i_count_numbers(const ugrid *grid, const int32_t *numbers)
{
    int32_t *const start = grid->start;
    int32_t const entries = grid->n * grid->spans;
    int32_t e;
    memset(start, 0, (size_t)grid->cell_count * sizeof *start);
    for (e = 0; e < entries; e++) if (numbers[e] >= 0) start[numbers[e]]++;
}

/* Inclusive prefix sum: counts become ends, end[c] = entries in cells 0 .. c. Returns the total. */
static int32_t ugrid_i_prefix_sum(int32_t *count, int32_t cells)
{
    int32_t c, sum = 0;
    for (c = 0; c < cells; c++) count[c] = sum += count[c];
    return count[cells] = sum;
}

/* A position, wrapped into the box on periodic axes, and one number. */
UGRID_FN ugrid_record ugrid_i_record_at(const ugrid *grid, const ugrid_real p[3], int32_t link)
{
    ugrid_record record;
    record.x[0] =
        ugrid_i_is_outside(grid, p) ? ugrid_i_not_finite(1) : ugrid_i_wrap(&grid->axis[0], p[0]);
    record.x[1] = ugrid_i_wrap(&grid->axis[1], p[1]);
    record.x[2] = ugrid_i_wrap(&grid->axis[2], p[2]);
    record.link = link;
    return record;
}

/* The record of a particle. */
UGRID_FN ugrid_record ugrid_i_record(const ugrid *grid, int32_t id, int32_t link)
{
    ugrid_real p[3];
    ugrid_i_load(grid->pos, grid->stride, grid->desc.dim, id, p);
    return ugrid_i_record_at(grid, p, link);
}

/* SORT and COUNT: puts an entry at place k. The order is copied from the records afterwards
   (ugrid_i_finish_order), which saves a scattered store. */
UGRID_FN void ugrid_i_put_at(const ugrid *grid, int32_t k, int32_t entry)
{
    if (grid->record) grid->record[k] = ugrid_i_record(grid, entry, entry);
    else grid->order[k] = entry;
    if (grid->inverse) grid->inverse[entry] = k;
}

/* Particles that were left out take the last places. Then the order is complete. */
static void ugrid_i_finish_order(ugrid *grid)
{
    ugrid const view = *grid;
    int32_t i, k = view.entries;
    ugrid_real p[3];
    if (ugrid_i_sorted(&view) && view.outside + view.invalid > 0)
        for (i = 0; i < view.n; i++) {
            ugrid_i_load(view.pos, view.stride, view.desc.dim, i, p);
            if (ugrid_i_is_left_out(&view, p)) ugrid_i_put_at(&view, k++, i);
        }
    if (view.record) for (k = 0; k < view.n; k++) view.order[k] = view.record[k].link;
}

/* COUNT, a counting sort (Barbieri section 1): count, prefix sum, scatter. The scatter starts with
   the last entry and fills each cell from its end. So ids ascend, and every end becomes the start
   of its cell: cell 5 ends at 4, so particle 4 goes to place 3 and particle 2 to place 2. */
static ugrid_result ugrid_i_build_count(ugrid *grid)
{
    ugrid const view = *grid;
    int32_t *const numbers = (int32_t *)grid->block[UGRID_I_WORK_A].memory;
    ugrid_result const result = ugrid_i_cells_of_entries(grid, numbers);
    int32_t e;
    if (result != UGRID_OK) return result;
    ugrid_i_count_numbers(grid, numbers);
    grid->entries = ugrid_i_prefix_sum(grid->start, grid->cell_count);
    for (e = view.n * view.spans - 1; e >= 0; e--)
        if (numbers[e] >= 0) ugrid_i_put_at(&view, --view.start[numbers[e]], e);
    ugrid_i_finish_order(grid);
    return UGRID_OK;
}

/* SORT: keys[k] = (cell number, entry) for every used entry; grid->entries: their number. */
static void ugrid_i_make_keys(ugrid *grid, const int32_t *numbers, uint64_t *keys)
{
    int32_t const count = grid->n * grid->spans;
    int32_t e, entries = 0;
    for (e = 0; e < count; e++)
        if (numbers[e] >= 0) keys[entries++] = (uint64_t)numbers[e] << 32 | (uint32_t)e;
    grid->entries = entries;
}

/* One pass of a stable radix sort of keys[0 .. m-1] by `bits` bits (at most 11) from bit `shift`,
   into out[]. */
static void ugrid_i_radix_pass(const uint64_t *keys, uint64_t *out, int32_t m, int shift, int bits)
{
    int32_t begin[1 << 11], digit, i, sum = 0;
    uint64_t const mask = ((uint64_t)1 << bits) - 1;
    memset(begin, 0, sizeof begin);
    for (i = 0; i < m; i++) begin[(keys[i] >> shift) & mask]++;
    for (digit = 0; digit < 1 << bits; digit++) {
        int32_t const count = begin[digit];
        begin[digit] = sum;
        sum += count;
    }
    for (i = 0; i < m; i++) out[begin[(keys[i] >> shift) & mask]++] = keys[i];
}

/* The number of bits of v. */
static int ugrid_i_bit_length(uint32_t v)
{
    int bits = 0;
    while (v) { bits++; v >>= 1; }
    return bits;
}

/* Sorts by the cell number in the upper half of each key, in as few passes of at most 11 bits as
   possible (2048 counters, 8 KB, fit the L1 cache). Returns the array that holds the result. */
static uint64_t *ugrid_i_radix_sort(uint64_t *keys, uint64_t *other, int32_t m, int32_t cells)
{
    int const bits = ugrid_i_bit_length((uint32_t)(cells - 1));
    int const passes = (bits + 10) / 11;
    int pass;
    for (pass = 0; pass < passes; pass++) {
        int const from = bits * pass / passes, to = bits * (pass + 1) / passes;
        uint64_t *const sorted = other;
        ugrid_i_radix_pass(keys, sorted, m, 32 + from, to - from);
        other = keys;
        keys = sorted;
    }
    return keys;
}

/* SORT (Barbieri section 1, Kureck section 2.3.1): sort (cell, entry); a cell starts where the
   number changes. Empty cells in between get the same start, so that a strip of cells is always
   start[first] .. start[last + 1] - 1. (Barbieri stores an end for each cell, Kureck marks empty
   cells.) */
static ugrid_result ugrid_i_build_sort(ugrid *grid)
{
    void *const work = grid->block[UGRID_I_WORK_B].memory; /* cell numbers, then keys */
    uint64_t *keys = (uint64_t *)grid->block[UGRID_I_WORK_A].memory;
    ugrid const view = *grid;
    int32_t k, cell = 0;
    ugrid_result const result = ugrid_i_cells_of_entries(grid, (int32_t *)work);
    if (result != UGRID_OK) return result;
    ugrid_i_make_keys(grid, (const int32_t *)work, keys);
    keys = ugrid_i_radix_sort(keys, (uint64_t *)work, grid->entries, grid->cell_count);
    for (k = 0; k < grid->entries; k++) {
        int32_t const number = (int32_t)(keys[k] >> 32);
        while (cell <= number) view.start[cell++] = k;
        ugrid_i_put_at(&view, k, (int32_t)(keys[k] & 0xFFFFFFFFu));
    }
    while (cell <= view.cell_count) view.start[cell++] = grid->entries;
    ugrid_i_finish_order(grid);
    return UGRID_OK;
}

/* FIXED (Barbieri section 1): the counter gives the slot. It also counts entries that do not fit,
   which gives the size needed. */
static ugrid_result ugrid_i_build_fixed(ugrid *grid)
{
    ugrid const view = *grid;
    int32_t i, local;
    memset(view.count, 0, (size_t)view.cell_count * sizeof *view.count);
    for (i = 0; i < view.n; i++) {
        ugrid_real p[3];
        ugrid_i_load(view.pos, view.stride, view.desc.dim, i, p);
        if (ugrid_i_refuses(&view, p)) { grid->bad_id = i; return UGRID_NOT_FINITE; }
        for (local = 0; local < view.spans; local++) {
            int32_t const number = ugrid_i_entry_number(&view, p, i, local);
            int32_t s;
            if (number < 0) continue;
            s = view.count[number]++;
            if (s < view.desc.slots)
                view.slot[ugrid_i_slot(&view, number, s)] = i * view.spans + local;
            if (s >= grid->needed_slots) grid->needed_slots = s + 1;
            grid->entries++;
        }
    }
    return grid->needed_slots > grid->desc.slots ? UGRID_CELL_FULL : UGRID_OK;
}

/* LIST and LIST_PACKED (Barbieri section 2, figure 1): each entry becomes the head of its cell's
   list, followed by the old head.

       cell 5         head[5]   next[2]   next[4]
       at first         -1
       particle 2        2        -1                 2
       particle 4        4        -1         2       4 -> 2: ids descend */
static ugrid_result ugrid_i_build_list(ugrid *grid)
{
    ugrid const view = *grid;
    int32_t i, local;
    memset(view.head, 0xFF, (size_t)view.cell_count * sizeof *view.head); /* all -1 */
    for (i = 0; i < view.n; i++) {
        ugrid_real p[3];
        ugrid_i_load(view.pos, view.stride, view.desc.dim, i, p);
        if (ugrid_i_refuses(&view, p)) { grid->bad_id = i; return UGRID_NOT_FINITE; }
        for (local = 0; local < view.spans; local++) {
            int32_t const entry = i * view.spans + local,
                          number = ugrid_i_entry_number(&view, p, i, local);
            int32_t const link = number < 0 ? -1 : view.head[number];
            if (view.next) view.next[entry] = link;
            else view.record[i] = ugrid_i_record(&view, i, link);
            if (number < 0) continue;
            view.head[number] = entry;
            grid->entries++;
        }
    }
    return UGRID_OK;
}

/* desc.outside, desc.skip_invalid: counts particles outside the box, and those not finite. */
static ugrid_result ugrid_i_count_left_out(ugrid *grid)
{
    int32_t i, first = -1;
    ugrid_real p[3];
    if (grid->desc.outside == UGRID_CLAMP && !grid->desc.skip_invalid) return UGRID_OK;
    for (i = 0; i < grid->n; i++) {
        ugrid_i_load(grid->pos, grid->stride, grid->desc.dim, i, p);
        if (!ugrid_i_point_finite(p)) {
            if (grid->bad_id < 0) grid->bad_id = i;
            if (!grid->desc.skip_invalid) return UGRID_NOT_FINITE;
            grid->invalid++;
            continue;
        }
        if (!ugrid_i_is_outside(grid, p)) continue;
        if (first < 0) first = i;
        grid->outside++;
    }
    if (grid->desc.outside != UGRID_REFUSE || first < 0) return UGRID_OK;
    grid->bad_id = first;
    return UGRID_OUTSIDE_BOX;
}

/* Fills the arrays of a grid that is prepared. */
static ugrid_result ugrid_i_build_method(ugrid *grid)
{
    ugrid_result result;
    if (ugrid_i_build_faster(grid, &result)) return result;
    switch (grid->desc.method) {
    case UGRID_SORT:        return ugrid_i_build_sort(grid);
    case UGRID_FIXED:       return ugrid_i_build_fixed(grid);
    case UGRID_LIST:
    case UGRID_LIST_PACKED: return ugrid_i_build_list(grid);
    default:                return ugrid_i_build_count(grid);
    }
}

/* Empties the grid and stores a checked desc. The memory is kept, and so the allocator must be the
   same. */
static ugrid_result ugrid_i_begin(ugrid *grid, const ugrid_desc *desc)
{
    ugrid_desc given;
    ugrid_result const result = ugrid_defaults(&given, desc);
    ugrid_allocator const *had = &grid->desc.allocator;
    grid->n = grid->rows = grid->entries = grid->needed_slots = grid->built = 0;
    grid->outside = grid->invalid = 0;
    memset(&grid->filter, 0, sizeof grid->filter);
    grid->needed_cells = 0;
    grid->bad_id = -1;
    grid->cuda_error = 0;
    if (result != UGRID_OK) return result;
    if (ugrid_bytes(grid) > 0 &&
        (had->alloc != given.allocator.alloc || had->free != given.allocator.free ||
         had->user != given.allocator.user))
        return UGRID_BAD_ALLOCATOR;
    if (given.grow && grid->desc.grow && grid->desc.slots > given.slots)
        given.slots = grid->desc.slots;
    grid->desc = given;
    grid->third = given.dim == 3 ? 2 : 0;
    return UGRID_OK;
}

/* Cells, method and memory for n particles. `exact`: memory grows only to the size needed. */
static ugrid_result ugrid_i_prepare(ugrid *grid, int32_t n, int exact)
{
    size_t bytes[UGRID_BLOCKS];
    ugrid_result result = ugrid_i_resolve(grid, n);
    if (result != UGRID_OK) return result;
    result = ugrid_i_sizes(grid, n, bytes);
    if (result != UGRID_OK) return result;
    result = ugrid_i_grow(grid, bytes, exact);
    if (result == UGRID_OK) ugrid_i_bind(grid, grid->block);
    return result;
}

/* Doubles desc.slots until it holds needed_slots. */
static void ugrid_i_double_slots(ugrid *grid)
{
    int64_t slots = grid->desc.slots;
    while (slots < grid->needed_slots) slots *= 2;
    if (slots * grid->cell_count > UGRID_I_INT_MAX) slots = grid->needed_slots;
    grid->desc.slots = (int32_t)slots;
}

/* Repeats the build of FIXED with desc.grow, after a cell was full. */
static ugrid_result ugrid_i_build_again(ugrid *grid)
{
    int32_t const had = grid->desc.slots;
    ugrid_result result;
    ugrid_i_double_slots(grid);
    grid->entries = grid->needed_slots = 0;
    result = ugrid_i_prepare(grid, grid->n, 0);
    if (result == UGRID_OK) result = ugrid_i_build_method(grid);
    if (result != UGRID_OK) grid->desc.slots = had;
    return result;
}

/* Why a desc whose cell was open has this one. */
static const char *ugrid_i_cell_reason(const ugrid_desc *desc, int was_unbounded)
{
    if (desc->unbounded)
        return was_unbounded ? "the radius: an unbounded grid has no other length"
                             : "by the density where the particles are: most would be in crowded "
                               "cells of their box";
    if (!(desc->radius >= desc->cell))
        return "2 particles a cell: more cells would cost more than the tests that they save";
    if (desc->radius > desc->cell)
        return "a part of the radius: cells of the radius would be crowded";
    return "the radius: it holds 2 particles or more";
}

/* The particles that have rows. */
static ugrid_result ugrid_i_set_rows(ugrid *grid, int32_t n)
{
    int32_t const rows = grid->desc.rows;
    if (rows > n || rows < UGRID_NO_ROWS) return UGRID_BAD_ROWS;
    grid->rows = rows > 0 ? rows : rows == 0 ? n : 0;
    return UGRID_OK;
}

UGRID_API ugrid_result ugrid_reserve(ugrid *grid, const ugrid_desc *desc, int32_t n)
{
    ugrid_desc given;
    ugrid_result result;
    if (!grid) return UGRID_BAD_ARGUMENT;
    result = ugrid_i_begin(grid, desc);
    given = grid->desc;
    if (result != UGRID_OK) return result;
    if (n < 0) return UGRID_BAD_ARGUMENT;
    if (!grid->desc.unbounded && !ugrid_i_box_given(&grid->desc)) return UGRID_BAD_BOX;
    if (grid->desc.cell == 0 && grid->desc.radius == 0) return UGRID_BAD_CELL;
    if (given.cell == 0) given.cell = grid->desc.cell = ugrid_i_fit_cell(&given, n);
    /* fewer particles may choose the other method: room for both */
    if (grid->desc.method == UGRID_AUTO) {
        grid->desc.method = UGRID_SORT;
        result = ugrid_i_prepare(grid, n, 1);
        grid->desc = given;
    }
    return result == UGRID_OK ? ugrid_i_prepare(grid, n, 1) : result;
}

/* desc.half_extents: refuses what is not 0 .. size / 2. */
static ugrid_result ugrid_i_check_halves(ugrid *grid)
{
    int32_t i;
    int a;
    if (!ugrid_i_tight(grid) || !grid->desc.half_extents) return UGRID_OK;
    for (i = 0; i < grid->n; i++) {
        ugrid_real half[3];
        ugrid_i_load(grid->desc.half_extents, grid->desc.half_extent_stride, grid->desc.dim, i,
                     half);
        for (a = 0; a < grid->desc.dim; a++) {
            if (half[a] >= 0 && half[a] <= grid->tight_half) continue;
            grid->bad_id = i;
            return UGRID_BAD_SIZE;
        }
    }
    return UGRID_OK;
}

UGRID_API ugrid_result ugrid_build(ugrid *grid, const ugrid_desc *desc, const ugrid_real *pos,
                                   size_t stride, int32_t n)
{
    ugrid_result result;
    int const open = !desc || desc->cell == 0;
    if (!grid) return UGRID_BAD_ARGUMENT;
    result = ugrid_i_begin(grid, desc);
    if (result != UGRID_OK) return result;
    result = ugrid_fit(&grid->desc, pos, stride, n, &grid->bad_id);
    if (result != UGRID_OK) return result;
    grid->cell_reason = open ? ugrid_i_cell_reason(&grid->desc, desc && desc->unbounded)
                             : "chosen by the caller";
    result = ugrid_i_prepare(grid, n, 0);
    if (result != UGRID_OK) return result;
    result = ugrid_i_set_rows(grid, n);
    if (result != UGRID_OK) return result;
    grid->pos = pos;
    grid->stride = stride ? stride : (size_t)grid->desc.dim * sizeof *pos;
    grid->n = n;
    if (!ugrid_i_left_out_faster(grid, &result)) result = ugrid_i_count_left_out(grid);
    if (result == UGRID_OK) result = ugrid_i_check_halves(grid);
    if (result == UGRID_OK) result = ugrid_i_build_method(grid);
    if (result == UGRID_CELL_FULL && grid->desc.grow) result = ugrid_i_build_again(grid);
    grid->built = result == UGRID_OK;
    if (!grid->built) grid->n = grid->rows = grid->entries = 0;
    return result;
}

/* ----------------------------------------------------------------------------------------------
   >>attributes: gather, scatter, sums per cell
   ---------------------------------------------------------------------------------------------- */

typedef struct ugrid_i_mover {
    const ugrid *grid;
    const void *src;
    void *dst;
    size_t bytes;       /* of an element */
    int back;           /* 0: gather, 1: scatter */
} ugrid_i_mover;

/* The elements of the places first .. last-1, into the grid's order or back. `bytes`: that of the
   mover; where it is a constant, an element is moved by a few instructions. */
static inline void ugrid_i_move_elements(const ugrid_i_mover *mover, size_t bytes, int32_t first,
                                         int32_t last)
{
    ugrid const view = *mover->grid;
    const char *const src = (const char *)mover->src;
    char *const dst = (char *)mover->dst;
    int32_t k;
    if (mover->back)
        for (k = first; k < last; k++)
            memcpy(dst + (size_t)ugrid_id(&view, k) * bytes, src + (size_t)k * bytes, bytes);
    else
        for (k = first; k < last; k++)
            memcpy(dst + (size_t)k * bytes, src + (size_t)ugrid_id(&view, k) * bytes, bytes);
}

/* The same by the size of an element: one number to four, as floats or doubles. */
static void ugrid_i_move(const void *context, int32_t first, int32_t last)
{
    const ugrid_i_mover *mover = (const ugrid_i_mover *)context;
    switch (mover->bytes) {
    case 4:  ugrid_i_move_elements(mover, 4, first, last); break;
    case 8:  ugrid_i_move_elements(mover, 8, first, last); break;
    case 12: ugrid_i_move_elements(mover, 12, first, last); break;
    case 16: ugrid_i_move_elements(mover, 16, first, last); break;
    case 24: ugrid_i_move_elements(mover, 24, first, last); break;
    case 32: ugrid_i_move_elements(mover, 32, first, last); break;
    default: ugrid_i_move_elements(mover, mover->bytes, first, last);
    }
}

/* The checks and the work of gather and scatter. */
static ugrid_result ugrid_i_move_all(const ugrid *grid, const void *src, size_t bytes, void *dst,
                                     int back)
{
    ugrid_i_mover const mover = {grid, src, dst, bytes, back};
    ugrid_result result;
    if (!grid || bytes == 0 || (grid->n > 0 && (!src || !dst))) return UGRID_BAD_ARGUMENT;
    if (!grid->built) return UGRID_NOT_BUILT;
    if (ugrid_i_places_faster(grid, ugrid_i_move, &mover, &result)) return result;
    ugrid_i_move(&mover, 0, grid->n);
    return UGRID_OK;
}

UGRID_API ugrid_result ugrid_gather(const ugrid *grid, const void *src, size_t bytes, void *dst)
{
    return ugrid_i_move_all(grid, src, bytes, dst, 0);
}

UGRID_API ugrid_result ugrid_scatter(const ugrid *grid, const void *src, size_t bytes, void *dst)
{
    return ugrid_i_move_all(grid, src, bytes, dst, 1);
}

/* Adds the values of one particle. */
static void ugrid_i_add(ugrid_real *sum, const ugrid_real *value, int32_t width)
{
    int32_t w;
    for (w = 0; w < width; w++) sum[w] += value[w];
}

typedef struct ugrid_i_adder {
    const ugrid *grid;
    const ugrid_real *values;
    ugrid_real *sums;
    int32_t width;
} ugrid_i_adder;

/* The first cell that begins at a place or after it. */
static int32_t ugrid_i_cell_from(const ugrid *grid, int32_t place)
{
    int32_t low = 0, high = grid->cell_count;
    while (low < high) {
        int32_t const middle = low + (high - low) / 2;
        if (grid->start[middle] < place) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* The sums of the cells that begin at the places first .. last-1, of a grid whose places ascend
   through the cells. */
static void ugrid_i_add_cells(const void *context, int32_t first, int32_t last)
{
    const ugrid_i_adder *adder = (const ugrid_i_adder *)context;
    const ugrid *grid = adder->grid;
    int32_t const width = adder->width, end = ugrid_i_cell_from(grid, last);
    int32_t k, cell;
    for (cell = ugrid_i_cell_from(grid, first); cell < end; cell++)
        for (k = grid->start[cell]; k < grid->start[cell + 1]; k++)
            ugrid_i_add(adder->sums + (size_t)cell * (size_t)width,
                        adder->values + (size_t)grid->order[k] * (size_t)width, width);
}

/* Places ascend through the cells, and ids through each cell. So both ways add the particles of a
   cell by ascending id. */
UGRID_API ugrid_result ugrid_cell_sums(const ugrid *grid, const ugrid_real *values, int32_t width,
                                       ugrid_real *sums)
{
    ugrid_i_adder const adder = {grid, values, sums, width};
    ugrid_result result;
    size_t bytes;
    int32_t k;
    if (!grid || width < 1 || !sums || (grid->n > 0 && !values)) return UGRID_BAD_ARGUMENT;
    if (!grid->built) return UGRID_NOT_BUILT;
    bytes = (size_t)grid->cell_count * (size_t)width * sizeof *sums;
    memset(sums, 0, bytes);
    if (grid->n == 0) return UGRID_OK;
    if (ugrid_i_sorted(grid)) {
        if (ugrid_i_places_faster(grid, ugrid_i_add_cells, &adder, &result)) {
            if (result != UGRID_OK) memset(sums, 0, bytes); /* a task was left out */
            return result;
        }
        ugrid_i_add_cells(&adder, 0, grid->n);
        return UGRID_OK;
    }
    for (k = 0; k < grid->n; k++) {
        ugrid_real p[3];
        ugrid_point(grid, k, p);
        if (ugrid_i_is_left_out(grid, p)) continue;
        ugrid_i_add(sums + (size_t)ugrid_cell_at(grid, p) * (size_t)width,
                    values + (size_t)k * (size_t)width, width);
    }
    return UGRID_OK;
}

/* ----------------------------------------------------------------------------------------------
   >>search: the neighbours of each particle, by its walk, passed row by row to a function
   ---------------------------------------------------------------------------------------------- */

/* The names are ids, or places with UGRID_PLACES. If a search only counts, `take` reads their
   number and not the names. The pieces of one row come one after the other, and places ascend. */
typedef struct ugrid_i_search {
    const ugrid *grid;
    ugrid_real radius;
    ugrid_real reach;   /* of the walks: the radius, or as the filter needs */
    int half, places;   /* as flags UGRID_HALF, UGRID_PLACES */
    int above;          /* as UGRID_HALF_IDS: only ids above the row's are listed */
    int filtered;       /* the filter is asked for each hit */
    int radii;          /* the faster loops test the radii of the filter */
    int count_only;     /* `take` does not read the names */
    int32_t first, last;/* places first .. last-1 are searched for */
    int form;           /* of the faster loops: UGRID_I_FORM() */
    ugrid_row_fn *take; /* receives some neighbours of the particle at a place; non-zero: the
                           search ends */
    void *user;
} ugrid_i_search;

enum { UGRID_I_HITS = 256 };    /* the most names in a piece of a row */

/* The row of a point at p by its walk, passed on in pieces; `row`: a place, or a query. */
static int ugrid_i_walk_row(const ugrid_i_search *search, int32_t row, const ugrid_real p[3],
                            ugrid_near walk)
{
    const ugrid *grid = search->grid;
    ugrid_real const limit = search->reach * search->reach;
    ugrid_real q[3], d2;
    int32_t names[UGRID_I_HITS], hits = 0;
    while (ugrid_next(&walk)) {
        ugrid_point(grid, walk.place, q);
        d2 = ugrid_i_distance2_in_box(grid, p, q);
        if (d2 > limit) continue;
        if (search->above && walk.id < ugrid_id(grid, row)) continue;
        if ((search->filtered | search->radii) &&
            !ugrid_i_passes(grid, search->radius, search->half | search->above,
                            ugrid_id(grid, row), walk.id, d2))
            continue;
        names[hits++] = search->places ? walk.place : walk.id;
        if (hits < UGRID_I_HITS) continue;
        if (search->take(search->user, row, names, hits)) return 1;
        hits = 0;
    }
    return hits > 0 && search->take(search->user, row, names, hits);
}

/* The row of the particle at a place. A ghost has none. */
static int ugrid_i_place_row(const ugrid_i_search *search, int32_t place)
{
    const ugrid *grid = search->grid;
    ugrid_real p[3];
    if (ugrid_id(grid, place) >= grid->rows) return 0;
    ugrid_point(grid, place, p);
    return ugrid_i_walk_row(search, place, p,
                            search->half ? ugrid_near_half(grid, place, search->reach)
                                         : ugrid_near_place(grid, place, search->reach));
}

/* The rows of all places. 1 if `take` ended the search. */
static int ugrid_i_place_rows(const ugrid_i_search *search)
{
    int32_t place;
    for (place = search->first; place < search->last; place++)
        if (ugrid_i_place_row(search, place)) return 1;
    return 0;
}

/* A search of the whole grid; the public calls check its arguments. */
static ugrid_i_search ugrid_i_search_of(const ugrid *grid, ugrid_real radius, int flags,
                                        int count_only, ugrid_row_fn *take, void *user)
{
    ugrid_i_search search;
    search.grid = grid;
    search.radius = radius;
    search.reach = ugrid_i_largest_reach(grid, radius);
    search.half = (flags & UGRID_HALF) != 0;
    search.places = (flags & UGRID_PLACES) != 0;
    search.above = (flags & UGRID_HALF_IDS) != 0;
    search.filtered = ugrid_i_filters(grid);
    search.radii = 0;
    search.count_only = count_only;
    search.first = 0;
    search.last = grid->n;
    search.form = 0;
    search.take = take;
    search.user = user;
    return search;
}

/* Runs a search. 1 if `take` ended it. */
static int ugrid_i_run_search(const ugrid_i_search *given)
{
    ugrid_i_search search = *given;
    ugrid view = *given->grid;
    int stopped;
    view.desc.walk = ugrid_i_list_walk(&view);
    search.grid = &view;
    return ugrid_i_search_faster(&search, &stopped) ? stopped : ugrid_i_place_rows(&search);
}

/* A search of the whole grid. UGRID_STOPPED: `take` ended it. */
static ugrid_result ugrid_i_run(const ugrid *grid, ugrid_real radius, int flags, int count_only,
                                ugrid_row_fn *take, void *user)
{
    ugrid_i_search const search = ugrid_i_search_of(grid, radius, flags, count_only, take, user);
    ugrid_result result;
    if (ugrid_i_run_faster(&search, &result)) return result;
    return ugrid_i_run_search(&search) ? UGRID_STOPPED : UGRID_OK;
}

/* ----------------------------------------------------------------------------------------------
   >>query: the public searches
   ---------------------------------------------------------------------------------------------- */

/* Where piece k of n elements begins, and piece k - 1 ends. */
static int32_t ugrid_i_cut(int32_t n, int32_t pieces, int32_t k)
{
    return (int32_t)((int64_t)n * k / pieces);
}

/* The checks of a search over all particles, in piece `piece` of `pieces`: each checks its share of
   the radii. */
static ugrid_result ugrid_i_check_rows(const ugrid *grid, ugrid_real radius, int flags,
                                       int32_t piece, int32_t pieces)
{
    int const only_radii = grid && grid->filter.radii && radius == 0;
    ugrid_result result = ugrid_i_check_search(
        grid, only_radii ? ugrid_i_largest_reach(grid, radius) : radius, flags & ~UGRID_HALF_IDS);
    int32_t i, end;
    if (result == UGRID_OK && flags & UGRID_HALF_IDS && flags != UGRID_HALF_IDS)
        return UGRID_BAD_OPTION;
    if (result != UGRID_OK || !ugrid_i_filters(grid)) return result;
    result = ugrid_i_check_filter(grid, radius);
    if (result != UGRID_OK || !grid->filter.radii) return result;
    end = ugrid_i_cut(grid->n, pieces, piece + 1);
    for (i = ugrid_i_cut(grid->n, pieces, piece); i < end; i++) {
        ugrid_real const own = ugrid_i_given_radius(&grid->filter, i);
        if (!(own >= 0) || !(own <= grid->filter.largest)) return UGRID_BAD_FILTER;
    }
    return UGRID_OK;
}

UGRID_API ugrid_result ugrid_query(const ugrid *grid, const ugrid_real *p, ugrid_real radius,
                                   int32_t *ids, int32_t capacity, int32_t *found)
{
    ugrid_result const result = ugrid_i_check_search(grid, radius, 0);
    ugrid_real at[3], q[3];
    ugrid_near walk;
    if (!p || !found || capacity < 0 || (capacity > 0 && !ids)) return UGRID_BAD_ARGUMENT;
    *found = 0;
    if (result != UGRID_OK) return result;
    ugrid_i_wrap_point(grid, p, at);
    if (!ugrid_i_point_finite(at)) return UGRID_NOT_FINITE;
    walk = ugrid_near_within(grid, at, radius);
    if (!ugrid_i_query_faster(&walk, at, radius * radius, ids, capacity, found))
        while (ugrid_next(&walk)) {
            ugrid_point(grid, walk.place, q);
            if (ugrid_i_distance2_in_box(grid, at, q) > radius * radius) continue;
            if (*found < capacity) ids[*found] = walk.id;
            ++*found;
        }
    return *found > capacity ? UGRID_BUFFER_TOO_SMALL : UGRID_OK;
}

/* A box: its least corner is wrapped into the grid's box, and the other one moves with it. 0: it
   holds nothing. */
static int ugrid_i_wrap_box(const ugrid *grid, const ugrid_real *box, ugrid_real from[3],
                            ugrid_real to[3])
{
    int const dim = grid->desc.dim;
    int a;
    from[2] = to[2] = 0;
    for (a = 0; a < dim; a++) {
        from[a] = to[a] = box[a];
        if (!(box[a] <= box[dim + a])) return 0;
        from[a] = ugrid_i_wrap(&grid->axis[a], box[a]);
        to[a] = box[dim + a];
        if (from[a] < box[a] || from[a] > box[a]) to[a] = from[a] + (box[dim + a] - box[a]);
    }
    return 1;
}

/* Is a particle of the grid's box, or an image of it, in a box that begins there? */
static int ugrid_i_is_in_box(const ugrid *grid, const ugrid_real p[3], const ugrid_real from[3],
                             const ugrid_real to[3])
{
    int a, in = 1;
    for (a = 0; a < 3; a++) {
        ugrid_real const length = grid->axis[a].length;
        int inside = (p[a] >= from[a]) & (p[a] <= to[a]);
        if (grid->axis[a].periodic) inside |= p[a] + length <= to[a];
        in &= inside;
    }
    return in;
}

UGRID_API ugrid_result ugrid_query_box(const ugrid *grid, const ugrid_real *box, int32_t *ids,
                                       int32_t capacity, int32_t *found)
{
    ugrid_real from[3], to[3], q[3];
    ugrid_near walk;
    int a;
    if (!grid || !box || !found || capacity < 0 || (capacity > 0 && !ids))
        return UGRID_BAD_ARGUMENT;
    *found = 0;
    if (!grid->built) return UGRID_NOT_BUILT;
    for (a = 0; a < 2 * grid->desc.dim; a++) if (!ugrid_i_finite(box[a])) return UGRID_NOT_FINITE;
    if (grid->n == 0 || !ugrid_i_wrap_box(grid, box, from, to)) return UGRID_OK;
    walk = ugrid_i_near_box(grid, from, to, 0);
    while (ugrid_next(&walk)) {
        ugrid_point(grid, walk.place, q);
        if (!ugrid_i_is_in_box(grid, q, from, to)) continue;
        if (*found < capacity) ids[*found] = walk.id;
        ++*found;
    }
    return *found > capacity ? UGRID_BUFFER_TOO_SMALL : UGRID_OK;
}

/* Adds the length of a row to a total. */
static int ugrid_i_take_total(void *user, int32_t place, const int32_t *names, int32_t count)
{
    (void)place;
    (void)names;
    *(int64_t *)user += count;
    return 0;
}

UGRID_API ugrid_result ugrid_count_pairs(const ugrid *grid, ugrid_real radius, int64_t *pairs)
{
    ugrid_result const result = ugrid_i_check_rows(grid, radius, 0, 0, 1);
    if (!pairs) return UGRID_BAD_ARGUMENT;
    *pairs = 0;
    if (result != UGRID_OK) return result;
    return ugrid_i_run(grid, radius, UGRID_HALF, 1, ugrid_i_take_total, pairs);
}

/* The checks of a search for overlaps, serial or CUDA. */
UGRID_FN ugrid_result ugrid_i_check_overlaps(const ugrid *grid)
{
    if (!grid->built) return UGRID_NOT_BUILT;
    if (!ugrid_i_tight(grid)) return UGRID_BAD_OPTION;
    return grid->n > 0 && !grid->pos ? UGRID_NOT_BUILT : UGRID_OK;
}

UGRID_API ugrid_result ugrid_count_overlaps(const ugrid *grid, int64_t *pairs)
{
    ugrid_result result;
    int32_t i;
    if (!grid || !pairs) return UGRID_BAD_ARGUMENT;
    *pairs = 0;
    result = ugrid_i_check_overlaps(grid);
    if (result != UGRID_OK) return result;
    for (i = 0; i < grid->rows; i++) {
        ugrid_near walk = ugrid_near_overlaps_half(grid, i);
        while (ugrid_next(&walk)) *pairs += ugrid_overlap(grid, i, walk.id);
    }
    return UGRID_OK;
}

/* Rows of a list: by place there is one for each place, those of ghosts are empty. */
static int32_t ugrid_i_rows(const ugrid *grid, int flags)
{
    return flags & UGRID_PLACES ? grid->n : grid->rows;
}

typedef struct ugrid_i_counter { const ugrid *grid; int32_t *counts; int places; } ugrid_i_counter;

/* Adds the length of a row to its count. */
static int ugrid_i_take_count(void *user, int32_t place, const int32_t *names, int32_t count)
{
    ugrid_i_counter const *counter = (ugrid_i_counter const *)user;
    (void)names;
    counter->counts[counter->places ? place : ugrid_id(counter->grid, place)] += count;
    return 0;
}

UGRID_API ugrid_result ugrid_count_neighbors(const ugrid *grid, ugrid_real radius, int flags,
                                             int32_t *counts)
{
    ugrid_result result = ugrid_i_check_rows(grid, radius, flags, 0, 1);
    int32_t const rows = grid ? ugrid_i_rows(grid, flags) : 0;
    ugrid_i_counter counter = {grid, counts, flags & UGRID_PLACES};
    if (rows > 0 && !counts) return UGRID_BAD_ARGUMENT;
    if (result != UGRID_OK) return result;
    if (rows > 0) memset(counts, 0, (size_t)rows * sizeof *counts);
    result = ugrid_i_run(grid, radius, flags, 1, ugrid_i_take_count, &counter);
    if (result != UGRID_OK && rows > 0) memset(counts, 0, (size_t)rows * sizeof *counts);
    return result;
}

/* A list under construction. */
typedef struct ugrid_i_list {
    const ugrid *grid;
    int64_t *offsets;   /* rows by id: offsets[id] is where the row goes on */
    int32_t *ids;
    int64_t capacity, total;
    int32_t rows;       /* by place: so many offsets are set */
    int32_t last;       /* the place after the last one whose row the list gets */
} ugrid_i_list;

/* Stores names from index `at` on, as far as they fit, unless they are there. */
static void ugrid_i_put_names(int32_t *ids, int64_t capacity, int64_t at, const int32_t *names,
                              int32_t count)
{
    int64_t const room = capacity - at;
    if (room < count) count = room > 0 ? (int32_t)room : 0;
    if (count > 0 && names != ids + at) memcpy(ids + at, names, (size_t)count * sizeof *names);
}

/* Rows by place come in order: each is appended, and the offsets up to it are set. */
static int ugrid_i_take_in_order(void *user, int32_t place, const int32_t *names, int32_t count)
{
    ugrid_i_list *list = (ugrid_i_list *)user;
    while (list->rows <= place) list->offsets[list->rows++] = list->total;
    ugrid_i_put_names(list->ids, list->capacity, list->total, names, count);
    list->total += count;
    return 0;
}

/* Rows by id: adds the length of a row to its offset. */
static int ugrid_i_take_row_length(void *user, int32_t place, const int32_t *names, int32_t count)
{
    ugrid_i_list *list = (ugrid_i_list *)user;
    (void)names;
    list->offsets[ugrid_id(list->grid, place)] += count;
    return 0;
}

/* Rows by id: offsets[id] is the cursor of the row. At the end it is the begin of the next row. */
static int ugrid_i_take_by_id(void *user, int32_t place, const int32_t *names, int32_t count)
{
    ugrid_i_list *list = (ugrid_i_list *)user;
    int64_t *cursor = &list->offsets[ugrid_id(list->grid, place)];
    ugrid_i_put_names(list->ids, list->capacity, *cursor, names, count);
    *cursor += count;
    return 0;
}

/* Exclusive prefix sum: `count` lengths become begins, and the sum follows them. Returns it. */
static int64_t ugrid_i_begins(int64_t *length, int32_t count)
{
    int64_t sum = 0;
    int32_t k;
    for (k = 0; k < count; k++) {
        int64_t const own = length[k];
        length[k] = sum;
        sum += own;
    }
    return length[count] = sum;
}

/* Rows by id, in two passes, count and fill, because rows come in the order of the grid. */
static ugrid_result ugrid_i_list_by_id(ugrid_i_list *list, ugrid_real radius, int flags)
{
    int64_t *const offsets = list->offsets;
    size_t const rows = (size_t)list->grid->rows;
    ugrid_result result;
    memset(offsets, 0, (rows + 1) * sizeof *offsets);
    result = ugrid_i_run(list->grid, radius, flags, 1, ugrid_i_take_row_length, list);
    if (result != UGRID_OK) return result;
    list->total = ugrid_i_begins(offsets, list->grid->rows);
    if (list->capacity == 0) return UGRID_OK;
    result = ugrid_i_run(list->grid, radius, flags, 0, ugrid_i_take_by_id, list);
    memmove(offsets + 1, offsets, rows * sizeof *offsets); /* the ends of rows: begins again */
    offsets[0] = 0;
    return result;
}

UGRID_API ugrid_result ugrid_neighbors(const ugrid *grid, ugrid_real radius, int flags,
                                       int64_t *offsets, int32_t *ids, int64_t capacity,
                                       int64_t *needed)
{
    ugrid_result result = ugrid_i_check_rows(grid, radius, flags, 0, 1);
    ugrid_i_list list = {grid, offsets, ids, capacity, 0, 0, 0};
    if (!offsets || !needed || capacity < 0 || (capacity > 0 && !ids)) return UGRID_BAD_ARGUMENT;
    *needed = 0;
    if (result != UGRID_OK) return result;
    list.last = grid->n;
    if (flags & UGRID_PLACES && (ugrid_i_sorted(grid) || grid->rows < grid->n)) {
        result = ugrid_i_run(grid, radius, flags, capacity == 0, ugrid_i_take_in_order, &list);
        while (list.rows <= grid->n) offsets[list.rows++] = list.total;
    } else {
        result = ugrid_i_list_by_id(&list, radius, flags);
    }
    if (result != UGRID_OK) {
        memset(offsets, 0, ((size_t)ugrid_i_rows(grid, flags) + 1) * sizeof *offsets);
        return result;
    }
    *needed = list.total;
    return list.total > capacity ? UGRID_BUFFER_TOO_SMALL : UGRID_OK;
}

/* The points of ugrid_neighbors_at. */
typedef struct ugrid_i_queries {
    const ugrid_real *points;
    size_t stride;
    int32_t m;
} ugrid_i_queries;

/* Query q, in the box; 0 where it is not finite: its row is empty. */
static int ugrid_i_query_point(const ugrid_i_queries *queries, const ugrid *grid, int32_t q,
                               ugrid_real p[3])
{
    ugrid_i_load(queries->points, queries->stride, grid->desc.dim, q, p);
    ugrid_i_wrap_point(grid, p, p);
    return ugrid_i_point_finite(p);
}

/* Rows in the caller's order, each by its own walk. */
static void ugrid_i_query_rows(const ugrid_i_queries *queries, ugrid_i_list *list,
                               ugrid_real radius)
{
    const ugrid *grid = list->grid;
    ugrid_i_search const search =
        ugrid_i_search_of(grid, radius, 0, 0, ugrid_i_take_in_order, list);
    ugrid_real p[3];
    int32_t q;
    for (q = 0; q < queries->m; q++)
        if (ugrid_i_query_point(queries, grid, q, p))
            (void)ugrid_i_walk_row(&search, q, p, ugrid_near_within(grid, p, radius));
    while (list->rows <= queries->m) list->offsets[list->rows++] = list->total;
}

UGRID_API ugrid_result ugrid_neighbors_at(const ugrid *grid, const ugrid_real *points,
                                          size_t stride, int32_t m, ugrid_real radius,
                                          int64_t *offsets, int32_t *ids, int64_t capacity,
                                          int64_t *needed)
{
    ugrid_result result = ugrid_i_check_search(grid, radius, 0);
    ugrid_i_queries queries;
    ugrid view;
    ugrid_i_list list = {&view, offsets, ids, capacity, 0, 0, 0};
    if (m < 0 || (m > 0 && !points) || !offsets || !needed || capacity < 0 ||
        (capacity > 0 && !ids))
        return UGRID_BAD_ARGUMENT;
    *needed = 0;
    if (result != UGRID_OK) return result;
    if (!ugrid_i_stride_valid(stride, grid->desc.dim)) return UGRID_BAD_ARGUMENT;
    view = *grid;
    view.desc.walk = ugrid_i_list_walk(grid);
    memset(&view.filter, 0, sizeof view.filter); /* which is for pairs of particles */
    queries.points = points;
    queries.stride = stride ? stride : (size_t)grid->desc.dim * sizeof *points;
    queries.m = m;
    if (!ugrid_i_queries_faster(&queries, &list, radius, &result))
        ugrid_i_query_rows(&queries, &list, radius);
    if (result != UGRID_OK) return result;
    *needed = list.total;
    return list.total > capacity ? UGRID_BUFFER_TOO_SMALL : UGRID_OK;
}

/* ----------------------------------------------------------------------------------------------
   >>each: the public searches that call a function of yours
   ---------------------------------------------------------------------------------------------- */

typedef struct ugrid_i_caller {
    const ugrid *grid;
    ugrid_pair_fn *fn;
    ugrid_row_fn *row_fn;
    void *user;
} ugrid_i_caller;

/* fn for each pair of a row. */
static int ugrid_i_take_pairs(void *user, int32_t place, const int32_t *names, int32_t count)
{
    ugrid_i_caller const *caller = (ugrid_i_caller const *)user;
    int32_t const id = ugrid_id(caller->grid, place);
    int32_t k;
    for (k = 0; k < count; k++) if (caller->fn(caller->user, id, names[k])) return 1;
    return 0;
}

UGRID_API ugrid_result ugrid_each_pair(const ugrid *grid, ugrid_real radius, int flags,
                                       ugrid_pair_fn *fn, void *user)
{
    ugrid_result const result = ugrid_i_check_rows(grid, radius, flags, 0, 1);
    ugrid_i_caller caller = {grid, fn, NULL, user};
    if (!fn) return UGRID_BAD_ARGUMENT;
    if (result != UGRID_OK) return result;
    if (flags & UGRID_PLACES) return UGRID_BAD_OPTION;
    return ugrid_i_run(grid, radius, flags, 0, ugrid_i_take_pairs, &caller);
}

/* row_fn for a row, by id. */
static int ugrid_i_take_rows(void *user, int32_t place, const int32_t *names, int32_t count)
{
    ugrid_i_caller const *caller = (ugrid_i_caller const *)user;
    return caller->row_fn(caller->user, ugrid_id(caller->grid, place), names, count);
}

/* Is the grid searched cell by cell? */
static int ugrid_i_by_cells(const ugrid *grid) { return ugrid_has_ranges(grid) && grid->record; }

/* The first place of piece k of a search: where a cell begins, if the grid is searched by cells. */
static int32_t ugrid_i_piece_from(const ugrid *grid, int32_t pieces, int32_t k)
{
    int32_t const place = ugrid_i_cut(grid->n, pieces, k);
    int32_t cell;
    if (!ugrid_i_by_cells(grid) || k == pieces) return place;
    cell = ugrid_i_cell_from(grid, place);
    return cell < grid->cell_count ? grid->start[cell] : grid->n;
}

UGRID_API ugrid_result ugrid_each_row_in(const ugrid *grid, ugrid_real radius, int flags,
                                         int32_t piece, int32_t pieces, ugrid_row_fn *fn,
                                         void *user)
{
    ugrid_i_caller caller = {grid, NULL, fn, user};
    ugrid_i_search search;
    ugrid_result result;
    if (!fn || piece < 0 || piece >= pieces) return UGRID_BAD_ARGUMENT;
    result = ugrid_i_check_rows(grid, radius, flags, piece, pieces);
    if (result != UGRID_OK) return result;
    search = ugrid_i_search_of(grid, radius, flags, 0, ugrid_i_take_rows, &caller);
    if (search.places) search.take = fn, search.user = user;
    search.first = ugrid_i_piece_from(grid, pieces, piece);
    search.last = ugrid_i_piece_from(grid, pieces, piece + 1);
    return ugrid_i_run_search(&search) ? UGRID_STOPPED : UGRID_OK;
}

UGRID_API ugrid_result ugrid_each_row(const ugrid *grid, ugrid_real radius, int flags,
                                      ugrid_row_fn *fn, void *user)
{
    return ugrid_each_row_in(grid, radius, flags, 0, 1, fn, user);
}

/* ==============================================================================================
   >>faster: the faster forms, entered at the seams. They give the bits of the text above.

       fit, left_out, build    >>count-faster; in pieces, for desc.parallel: >>parallel-build
       search                  >>search-faster: blocks of points; of lists, slots and TIGHT:
                               >>entries-faster; of hashed cells: >>hashed-faster; in vector
                              instructions: >>lanes
       query, queries          >>query-faster: ranges, points sorted by cell; >>parallel-points
       run                     >>parallel-search
       places                  >>parallel-attributes
   ============================================================================================== */

#ifndef UGRID_PLAIN

/* The forms of the loops over candidates (>>lanes). */
enum { UGRID_I_PORTABLE, UGRID_I_AVX2, UGRID_I_AVX512 };
#ifdef UGRID_I_FORMS
#define UGRID_I_ON_LINE __attribute__((aligned(64)))  /* of the cache: vectors lie on one */
#define UGRID_I_FOR_AVX2   __attribute__((target("avx2")))
#define UGRID_I_FOR_AVX512 __attribute__((target("avx512f,avx512vl,popcnt")))
#ifndef UGRID_I_FORM /* tests choose */
#define UGRID_I_FORM() \
    (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("popcnt") ? UGRID_I_AVX512 \
     : __builtin_cpu_supports("avx2")                                       ? UGRID_I_AVX2 \
                                                                            : UGRID_I_PORTABLE)
#endif
#else
#define UGRID_I_ON_LINE
#undef UGRID_I_FORM
#define UGRID_I_FORM() UGRID_I_PORTABLE
#endif

/* Compilers vectorise loops of constant length; gcc 12 would unroll them first, and then not
   vectorise them. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define UGRID_I_KEEP_LOOP _Pragma("GCC unroll 1")
#else
#define UGRID_I_KEEP_LOOP
#endif

#if defined(__GNUC__) || defined(_MSC_VER)
#define UGRID_I_RESTRICT __restrict
#else
#define UGRID_I_RESTRICT
#endif

/* Functions that are not inlined, so that registers suffice for their loop, and those that are.
   PREFETCH: of a cache line that will be written soon. */
#ifdef __GNUC__
#define UGRID_I_NOINLINE static __attribute__((noinline))
#define UGRID_I_ALWAYS_INLINE static inline __attribute__((always_inline))
#define UGRID_I_PREFETCH(address) __builtin_prefetch(address, 1)
#else
#define UGRID_I_NOINLINE static
#define UGRID_I_ALWAYS_INLINE static inline
#define UGRID_I_PREFETCH(address) ((void)(address))
#endif

/* Points that are numbered, and candidates that are tested, in one loop of constant length; rows of
   the buffer of candidates have room for as many more. */
enum { UGRID_I_LANES = 16 };

/* ----------------------------------------------------------------------------------------------
   >>count-faster: COUNT. Most grids are simple: their cell numbers come from a loop without a
   branch, and their records are copies of positions. The memory where an entry goes is prefetched.
   Many particles go there in two rounds.
   ---------------------------------------------------------------------------------------------- */

/* The cell number of point i in a box with UGRID_ROWS and closed axes, LOOSE. Returns 1 if the
   point is not finite. There is no branch, so that compilers vectorise loops over it. */
UGRID_I_ALWAYS_INLINE int32_t ugrid_i_number_one(const ugrid_axis axis[3], const ugrid_real *pos,
                                                 size_t stride, int32_t dim, int32_t i,
                                                 int32_t *number)
{
    ugrid_real p[3];
    int32_t x, y, z;
    ugrid_i_load(pos, stride, dim, i, p);
    x = ugrid_i_coordinate(&axis[0], p[0]);
    y = ugrid_i_coordinate(&axis[1], p[1]);
    z = dim == 3 ? ugrid_i_coordinate(&axis[2], p[2]) : 0;
    *number = (z * axis[1].cells + y) * axis[0].cells + x;
    return !ugrid_i_point_finite(p);
}

/* The cell numbers of all points; 0 if some point is not finite. */
UGRID_I_ALWAYS_INLINE int ugrid_i_number_rows(const ugrid *grid, size_t stride, int32_t dim,
                                              int32_t *UGRID_I_RESTRICT numbers)
{
    ugrid_axis const axis[3] = {grid->axis[0], grid->axis[1], grid->axis[2]};
    const ugrid_real *const pos = grid->pos;
    int32_t const n = grid->n;
    int32_t i, bad = 0;
    int lane;
    for (i = 0; i <= n - UGRID_I_LANES; i += UGRID_I_LANES) {
        UGRID_I_KEEP_LOOP
        for (lane = 0; lane < UGRID_I_LANES; lane++)
            bad |= ugrid_i_number_one(axis, pos, stride, dim, i + lane, &numbers[i + lane]);
    }
    for (; i < n; i++) bad |= ugrid_i_number_one(axis, pos, stride, dim, i, &numbers[i]);
    return !bad;
}

/* The same. Tightly packed points, the common case, get loops with these constants. */
UGRID_I_ALWAYS_INLINE int ugrid_i_number_simple(const ugrid *grid, int32_t *numbers)
{
    size_t const tight = (size_t)grid->desc.dim * sizeof(ugrid_real);
    if (grid->stride == tight && grid->desc.dim == 3)
        return ugrid_i_number_rows(grid, 3 * sizeof(ugrid_real), 3, numbers);
    if (grid->stride == tight)
        return ugrid_i_number_rows(grid, 2 * sizeof(ugrid_real), 2, numbers);
    return ugrid_i_number_rows(grid, grid->stride, grid->desc.dim, numbers);
}

#ifdef UGRID_I_FORMS
/* The same for AVX2 (>>lanes). */
UGRID_I_FOR_AVX2 UGRID_I_NOINLINE int ugrid_i_number_simple_avx2(const ugrid *grid,
                                                                 int32_t *numbers)
{
    return ugrid_i_number_simple(grid, numbers);
}
#endif

/* One entry a particle, in a box with UGRID_ROWS and closed axes that holds all. */
static int ugrid_i_is_simple(const ugrid *grid)
{
    return !ugrid_i_tight(grid) && !grid->desc.unbounded && grid->desc.cell_order == UGRID_ROWS &&
           !ugrid_i_any_periodic(&grid->desc) && grid->outside + grid->invalid == 0;
}

/* ugrid_i_cells_of_entries. */
static ugrid_result ugrid_i_number_faster(ugrid *grid, int32_t *numbers)
{
    ugrid const view = *grid;
    int done;
    if (!ugrid_i_is_simple(grid)) return ugrid_i_cells_of_entries(grid, numbers);
#ifdef UGRID_I_FORMS
    if (UGRID_I_FORM() != UGRID_I_PORTABLE) done = ugrid_i_number_simple_avx2(&view, numbers);
    else
#endif
        done = ugrid_i_number_simple(&view, numbers);
    return done ? UGRID_OK : ugrid_i_cells_of_entries(grid, numbers); /* which finds bad_id */
}

enum { UGRID_I_SOON = 24 };     /* entries ahead; measured */

/* Puts the entries begin .. end - 1, from the last one on, as ugrid_i_build_count does. */
static void ugrid_i_scatter_any(const ugrid *grid, const int32_t *numbers, int32_t begin,
                                int32_t end)
{
    ugrid const view = *grid;
    int32_t e;
    for (e = end - 1; e >= begin; e--) {
        int32_t const soon = e - UGRID_I_SOON;
        if (soon >= begin && numbers[soon] >= 0 && view.record)
            UGRID_I_PREFETCH(&view.record[view.start[numbers[soon]] - 1]);
        if (numbers[e] >= 0) ugrid_i_put_at(&view, --view.start[numbers[e]], e);
    }
}

/* The same where a record is a position as it was given, and nothing else is written. */
static void ugrid_i_scatter_records(const ugrid *grid, const int32_t *UGRID_I_RESTRICT numbers,
                                    int32_t begin, int32_t end, size_t stride, int32_t dim)
{
    const ugrid_real *const pos = grid->pos;
    int32_t *UGRID_I_RESTRICT const start = grid->start;
    ugrid_record *UGRID_I_RESTRICT const record = grid->record;
    int32_t e;
    for (e = end - 1; e >= begin; e--) {
        ugrid_record one;
        if (e >= begin + UGRID_I_SOON)
            UGRID_I_PREFETCH(&record[start[numbers[e - UGRID_I_SOON]] - 1]);
        ugrid_i_load(pos, stride, dim, e, one.x);
        one.link = e;
        record[--start[numbers[e]]] = one;
    }
}

/* The same by the form that fits the grid. */
static void ugrid_i_scatter(const ugrid *grid, const int32_t *numbers, int32_t begin, int32_t end)
{
    size_t const tight = (size_t)grid->desc.dim * sizeof(ugrid_real);
    if (!grid->record || grid->inverse || !ugrid_i_is_simple(grid))
        ugrid_i_scatter_any(grid, numbers, begin, end);
    else if (grid->stride == tight && grid->desc.dim == 3) /* constants, as in numbering */
        ugrid_i_scatter_records(grid, numbers, begin, end, 3 * sizeof(ugrid_real), 3);
    else if (grid->stride == tight)
        ugrid_i_scatter_records(grid, numbers, begin, end, 2 * sizeof(ugrid_real), 2);
    else
        ugrid_i_scatter_records(grid, numbers, begin, end, grid->stride, grid->desc.dim);
}

/* COUNT in two rounds, where the records are more than the caches of a core hold: first into
   buckets of adjacent cells, then each bucket by a counting sort, which stays in a cache. The
   numbers of a bucket are in order[] until it is sorted; numbers[] is then memory for a copy of
   it. */
#ifndef UGRID_I_MANY /* tests choose */
#define UGRID_I_MANY 3000000    /* particles from which on; measured */
#endif
enum { UGRID_I_ROUND_BUCKETS = 512, UGRID_I_ORDER_SAMPLES = 256 };

typedef struct ugrid_i_rounds {
    int shift;                  /* bucket = cell >> shift */
    int32_t buckets;
    int32_t end[UGRID_I_ROUND_BUCKETS]; /* the places of each bucket; before that where to go on */
} ugrid_i_rounds;

/* Are the particles in an order in which neighbours in memory are near each other? Then one round
   meets the same cache lines again. */
static int ugrid_i_is_coherent(const ugrid *grid, const int32_t *numbers)
{
    int32_t const step = grid->n / UGRID_I_ORDER_SAMPLES, most = grid->cell_count / 16;
    int32_t k, within = 0;
    for (k = 0; k < UGRID_I_ORDER_SAMPLES; k++) {
        int32_t const distance = numbers[k * step] - numbers[k * step + 8];
        within += distance <= most && -distance <= most;
    }
    return 2 * within > UGRID_I_ORDER_SAMPLES;
}

/* Where each bucket begins. 0 if one is too large for the copy. */
static int ugrid_i_begin_rounds(const ugrid *grid, const int32_t *numbers, ugrid_i_rounds *rounds)
{
    int32_t const room = (int32_t)((size_t)grid->n * sizeof *numbers / sizeof(ugrid_record));
    int32_t e, b, sum = 0, largest = 0;
    memset(rounds, 0, sizeof *rounds);
    while ((grid->cell_count - 1) >> rounds->shift >= UGRID_I_ROUND_BUCKETS) rounds->shift++;
    rounds->buckets = ((grid->cell_count - 1) >> rounds->shift) + 1;
    for (e = 0; e < grid->n; e++) rounds->end[numbers[e] >> rounds->shift]++;
    for (b = 0; b < rounds->buckets; b++) {
        int32_t const count = rounds->end[b];
        largest = count > largest ? count : largest;
        rounds->end[b] = sum;
        sum += count;
    }
    return largest <= room;
}

/* The first round: records, and their numbers in order[], bucket by bucket; ids ascend. */
static void ugrid_i_deal_records(const ugrid *grid, const int32_t *UGRID_I_RESTRICT numbers,
                                 ugrid_i_rounds *rounds)
{
    ugrid_record *UGRID_I_RESTRICT const record = grid->record;
    int32_t *UGRID_I_RESTRICT const order = grid->order;
    const ugrid_real *const pos = grid->pos;
    size_t const stride = grid->stride;
    int32_t const n = grid->n, dim = grid->desc.dim;
    int32_t e;
    for (e = 0; e < n; e++) {
        ugrid_record one;
        int32_t const at = rounds->end[numbers[e] >> rounds->shift]++;
        if (e + UGRID_I_SOON < n)
            UGRID_I_PREFETCH(&record[rounds->end[numbers[e + UGRID_I_SOON] >> rounds->shift]]);
        ugrid_i_load(pos, stride, dim, e, one.x);
        one.link = e;
        record[at] = one;
        order[at] = numbers[e];
    }
}

/* The second round of a bucket: its cells cell .. cell+cells-1 and its places first .. last-1. */
static void ugrid_i_order_bucket(const ugrid *grid, ugrid_record *copy, int32_t cell, int32_t cells,
                                 int32_t first, int32_t last)
{
    int32_t *const start = grid->start, *const order = grid->order;
    ugrid_record *const record = grid->record;
    int32_t k, c, sum = first;
    memset(start + cell, 0, (size_t)cells * sizeof *start);
    for (k = first; k < last; k++) start[order[k]]++;
    for (c = cell; c < cell + cells; c++) start[c] = sum += start[c];
    memcpy(copy, record + first, (size_t)(last - first) * sizeof *copy);
    for (k = last - 1; k >= first; k--) {
        if (k >= first + UGRID_I_SOON)
            UGRID_I_PREFETCH(&record[start[order[k - UGRID_I_SOON]] - 1]);
        record[--start[order[k]]] = copy[k - first];
    }
    for (k = first; k < last; k++) order[k] = record[k].link;
}

/* COUNT of a simple grid in two rounds. Returns 0, and does nothing, where one round is faster. */
static int ugrid_i_build_two_rounds(ugrid *grid, int32_t *numbers)
{
    ugrid_i_rounds rounds;
    int32_t b, first = 0;
    if (grid->n < UGRID_I_MANY || ugrid_i_is_coherent(grid, numbers)) return 0;
    if (!ugrid_i_begin_rounds(grid, numbers, &rounds)) return 0;
    ugrid_i_deal_records(grid, numbers, &rounds);
    for (b = 0; b < rounds.buckets; b++) {
        int32_t const cell = b << rounds.shift, rest = grid->cell_count - cell,
                      width = (int32_t)1 << rounds.shift;
        ugrid_i_order_bucket(grid, (ugrid_record *)(void *)numbers, cell,
                             rest < width ? rest : width, first, rounds.end[b]);
        first = rounds.end[b];
    }
    grid->entries = grid->start[grid->cell_count] = grid->n;
    return 1;
}

/* ugrid_i_build_count. */
static ugrid_result ugrid_i_count_faster(ugrid *grid)
{
    int32_t *const numbers = (int32_t *)grid->block[UGRID_I_WORK_A].memory;
    int const copies = ugrid_i_is_simple(grid) && grid->record && !grid->inverse;
    ugrid_result const result = ugrid_i_number_faster(grid, numbers);
    if (result != UGRID_OK) return result;
    if (copies && ugrid_i_build_two_rounds(grid, numbers)) return UGRID_OK;
    ugrid_i_count_numbers(grid, numbers);
    grid->entries = ugrid_i_prefix_sum(grid->start, grid->cell_count);
    ugrid_i_scatter(grid, numbers, 0, grid->n * grid->spans);
    ugrid_i_finish_order(grid);
    return UGRID_OK;
}

/* ----------------------------------------------------------------------------------------------
   >>search-faster: the neighbours of a block of points, by loops that compilers make vectors of

   A block is the particles of a cell, or of some adjacent cells of a row that hold few, or the
   query points in a cell. If the grid has ranges and records, its points share their candidates:

       block a b c     collect   The box around a, b, c, extended by the radius, touches some cells.
                                 Their records are copied once into a buffer, one array per
                                 coordinate.
       buffer          test      d2 of each candidate to a: one long loop without a branch
         x  . . . .    exclude   a itself; in a half search the places before it, too
         y  . . . .    append    the names within the radius: one loop without a branch
         z  . . . .              Then the same for b and c. (27 cells of 7 particles: 189 copies for
         name                    7 * 189 tests.)

   If a block has more than UGRID_I_GATHER candidates, each of its points has its own walk, whose
   candidates are copied and tested in pieces of so many.
   ---------------------------------------------------------------------------------------------- */

/* GATHER: 27 cells of up to 75 particles; 58 KB of stack for float, 99 for double. RANGES: ranges
   that are copied at a time. JOINED: the most cells of a block. */
enum { UGRID_I_GATHER = 2048, UGRID_I_RANGES = 64, UGRID_I_JOINED = 16 };
enum { UGRID_I_ROOM = (int)UGRID_I_GATHER + (int)UGRID_I_LANES };

typedef struct ugrid_i_candidates {
    ugrid_real x[UGRID_I_ROOM] UGRID_I_ON_LINE, y[UGRID_I_ROOM] UGRID_I_ON_LINE,
               z[UGRID_I_ROOM] UGRID_I_ON_LINE, d2[UGRID_I_ROOM] UGRID_I_ON_LINE,
               radius[UGRID_I_ROOM] UGRID_I_ON_LINE; /* search.radii: each one's; else not set */
    int32_t name[UGRID_I_ROOM] UGRID_I_ON_LINE;
    int32_t hits[UGRID_I_ROOM];
    int32_t begin[UGRID_I_RANGES], end[UGRID_I_RANGES]; /* places that are not yet copied */
    int32_t ranges;     /* the number of these */
    int32_t count;
    int32_t own;        /* particles: the index in the buffer of the first place of the block; in a
                           half search of the second, since no row takes the first. The others
                           follow it */
    int images;         /* the nearest image may differ from the candidate itself */
    ugrid_real row_radius; /* search.radii: that of the row's particle */
    int32_t row_id;     /* search.above: its id */
} ugrid_i_candidates;

/* ugrid_i_row_portable, and ugrid_i_copy of all ranges, in vectors (>>lanes). */
#ifdef UGRID_I_FORMS
static int32_t ugrid_i_row_avx2(const ugrid_i_search *search, ugrid_i_candidates *set,
                                const ugrid_real p[3], int32_t before, int32_t after,
                                int32_t *hits);
static int32_t ugrid_i_row_avx512(const ugrid_i_search *search, ugrid_i_candidates *set,
                                  const ugrid_real p[3], int32_t before, int32_t after,
                                  int32_t *hits);
#if UGRID_I_REAL_KIND == 1
static void ugrid_i_copy_avx2(const ugrid_i_search *search, ugrid_i_candidates *set);
static void ugrid_i_copy_avx512(const ugrid_i_search *search, ugrid_i_candidates *set);
#endif
#endif

/* Where the names of the next row are written: to the end of the list that appends them, where it
   has room for all candidates and a vector; otherwise into the buffer. */
static int32_t *ugrid_i_hits_of(const ugrid_i_search *search, ugrid_i_candidates *set)
{
    const ugrid_i_list *list = (const ugrid_i_list *)search->user;
    if (search->take != ugrid_i_take_in_order ||
        list->capacity - list->total < set->count + UGRID_I_LANES)
        return set->hits;
    return list->ids + list->total;
}

/* Points that share their candidates. */
typedef struct ugrid_i_block_of {
    ugrid_real from[3], to[3];  /* the box around them, in the grid's box */
    int32_t first, count;       /* particles: places first .. first + count-1; queries: first -1 */
} ugrid_i_block_of;

/* Adds a point to the box around a block. */
static void ugrid_i_extend(ugrid_i_block_of *block, const ugrid_real p[3])
{
    int a;
    if (block->count++ == 0)
        for (a = 0; a < 3; a++) block->from[a] = block->to[a] = p[a];
    for (a = 0; a < 3; a++) { /* no branches: they would be mispredicted */
        block->from[a] = p[a] < block->from[a] ? p[a] : block->from[a];
        block->to[a] = p[a] > block->to[a] ? p[a] : block->to[a];
    }
}

/* Can the nearest image of a candidate along this axis differ from the candidate? Not if the cells
   of the block do not wrap and span less than half the box. */
UGRID_FN int ugrid_i_sees_images(const ugrid_axis *axis, const ugrid_sweep *sweep)
{
    return axis->periodic && (ugrid_i_wrapped(axis, sweep) > 0 || 2 * sweep->width >= axis->cells);
}

/* Appends the records begin .. end-1 to the buffer. */
UGRID_I_ALWAYS_INLINE void ugrid_i_copy(const ugrid_i_search *search, int32_t begin, int32_t end,
                                        ugrid_i_candidates *set)
{
    int32_t k;
    for (k = begin; k < end; k++) {
        const ugrid_record *record = &search->grid->record[k];
        set->x[set->count] = record->x[0];
        set->y[set->count] = record->x[1];
        set->z[set->count] = record->x[2];
        set->name[set->count++] = search->places ? k : record->link;
    }
}

/* ugrid_i_copy in a half search with ghosts: all ghosts, and locals above place `first`. Each
   record is written, and the end advances for those that are kept. */
UGRID_I_NOINLINE void ugrid_i_copy_ghosts(const ugrid_i_search *search, int32_t begin, int32_t end,
                                          int32_t first, ugrid_i_candidates *set)
{
    const ugrid_record *const record = search->grid->record;
    int32_t const rows = search->grid->rows;
    int const places = search->places;
    int32_t k, at = set->count;
    for (k = begin; k < end; k++) {
        ugrid_record const one = record[k];
        if (k == first + 1) set->own = at;
        set->x[at] = one.x[0];
        set->y[at] = one.x[1];
        set->z[at] = one.x[2];
        set->name[at] = places ? k : one.link;
        at += (k > first) | (one.link >= rows);
    }
    set->count = at;
}

/* Copies the ranges that were collected, in the form of the search. `first`: the first place of the
   block. */
static void ugrid_i_copy_ranges(const ugrid_i_search *search, int32_t first,
                                ugrid_i_candidates *set)
{
    int32_t r;
    if (search->half && search->grid->rows < search->grid->n)
        for (r = 0; r < set->ranges; r++)
            ugrid_i_copy_ghosts(search, set->begin[r], set->end[r], first, set);
#if defined(UGRID_I_FORMS) && UGRID_I_REAL_KIND == 1
    else if (search->form == UGRID_I_AVX512) ugrid_i_copy_avx512(search, set);
    else if (search->form == UGRID_I_AVX2) ugrid_i_copy_avx2(search, set);
#endif
    else
        for (r = 0; r < set->ranges; r++) ugrid_i_copy(search, set->begin[r], set->end[r], set);
    set->ranges = 0;
}

/* The radii of the candidates. */
UGRID_I_NOINLINE void ugrid_i_load_radii(const ugrid_i_search *search, ugrid_i_candidates *set)
{
    const ugrid *grid = search->grid;
    int32_t k;
    for (k = 0; k < set->count; k++)
        set->radius[k] = ugrid_i_filter_radius(
            &grid->filter, search->places ? ugrid_id(grid, set->name[k]) : set->name[k]);
    for (; k < set->count + UGRID_I_LANES; k++) set->radius[k] = 0, set->name[k] = 0;
}

/* Can the nearest image of any candidate of a walk differ from the candidate? */
static int ugrid_i_walk_sees_images(const ugrid_near *walk)
{
    const ugrid_axis *axis = walk->grid->axis;
    return ugrid_i_sees_images(&axis[0], &walk->x) | ugrid_i_sees_images(&axis[1], &walk->y) |
           ugrid_i_sees_images(&axis[2], &walk->z);
}

/* Copies the last ranges, and what belongs to all candidates. */
UGRID_I_ALWAYS_INLINE void ugrid_i_end_candidates(const ugrid_i_search *search, int32_t first,
                                                  ugrid_i_candidates *set)
{
    ugrid_real const any = search->reach; /* of zeros gcc 12 makes `rep stos`: 20 ns */
    int32_t k;
    ugrid_i_copy_ranges(search, first, set);
    /* vectors may read the lanes after the last candidate */
    for (k = set->count; k < set->count + UGRID_I_LANES; k++)
        set->x[k] = set->y[k] = set->z[k] = any;
    if (search->radii) ugrid_i_load_radii(search, set);
}

/* The ranges of a block, row by row of cells, from place `above` + 1 on. */
typedef struct ugrid_i_ranges {
    const ugrid_i_search *search;
    const ugrid_i_block_of *block;
    int32_t above;
    int32_t most;       /* candidates, at most; */
    int32_t count;      /* and so far */
} ugrid_i_ranges;

/* Adds the places begin .. end-1. 0: they do not fit. */
UGRID_I_ALWAYS_INLINE int ugrid_i_take_range(ugrid_i_ranges *ranges, ugrid_i_candidates *set,
                                             int32_t begin, int32_t end)
{
    int32_t const own = ranges->block->first + ranges->search->half;
    begin = begin <= ranges->above ? ranges->above + 1 : begin;
    end = begin < end ? end : begin;
    if (begin <= own && own < end) set->own = ranges->count + own - begin;
    ranges->count += end - begin;
    if (ranges->count > ranges->most) return 0;
    set->begin[set->ranges] = begin; /* an empty one is overwritten by the next */
    set->end[set->ranges] = end;
    set->ranges += begin < end;
    if (set->ranges == UGRID_I_RANGES)
        ugrid_i_copy_ranges(ranges->search, ranges->block->first, set);
    return 1;
}

/* Those of a walk by strips: ugrid_next_range, as plain loops. */
UGRID_I_ALWAYS_INLINE int ugrid_i_take_strips(ugrid_i_ranges *ranges, const ugrid_near *walk,
                                             ugrid_i_candidates *set)
{
    const ugrid_axis *const axis = walk->grid->axis;
    const int32_t *const start = walk->grid->start;
    int32_t const over = ugrid_i_wrapped(&axis[0], &walk->x), low = walk->x.low,
                  high = low + walk->x.width - over;
    int32_t y, z;
    for (z = 0; z < walk->z.width; z++) {
        int32_t const layer = ugrid_i_ascending(&axis[2], &walk->z, z) * axis[1].cells;
        for (y = 0; y < walk->y.width; y++) {
            const int32_t *const row =
                start + (layer + ugrid_i_ascending(&axis[1], &walk->y, y)) * axis[0].cells;
            if (over > 0 && !ugrid_i_take_range(ranges, set, row[0], row[over])) return 0;
            if (!ugrid_i_take_range(ranges, set, row[low], row[high])) return 0;
        }
    }
    return 1;
}

/* Collects the candidates of a block. 0: there are more than `most`, which is at most
   UGRID_I_GATHER. In a half search with rows for all, the walk begins at the block. */
UGRID_I_ALWAYS_INLINE int ugrid_i_collect(const ugrid_i_search *search,
                                          const ugrid_i_block_of *block, ugrid_i_candidates *set,
                                          int32_t most)
{
    const ugrid *grid = search->grid;
    ugrid_near walk = ugrid_i_near_box(grid, block->from, block->to, search->reach);
    ugrid_i_ranges ranges = {search, block, -1, most, 0};
    set->count = set->own = set->ranges = 0;
    set->images = ugrid_i_walk_sees_images(&walk);
    if (search->half && grid->rows == grid->n) ranges.above = block->first;
    if (!(walk.bits & UGRID_I_RARE)) {
        if (!ugrid_i_take_strips(&ranges, &walk, set)) return 0;
    } else {
        while (ugrid_next_range(&walk))
            if (!ugrid_i_take_range(&ranges, set, walk.begin, walk.end)) return 0;
    }
    if (ranges.count > 0 || !search->half) ugrid_i_end_candidates(search, block->first, set);
    return 1;
}

/* Squared distances from p to all candidates, and to the padding. images: to their nearest images;
   a constant, so that each form is a loop of its own. */
UGRID_I_ALWAYS_INLINE void ugrid_i_distances(const ugrid *grid, ugrid_i_candidates *set,
                                             const ugrid_real p[3], int images)
{
    ugrid_real const px = p[0], py = p[1], pz = p[2];
    ugrid_axis const ax = grid->axis[0], ay = grid->axis[1], az = grid->axis[2];
    int32_t const count = set->count;
    int32_t k;
    int lane;
    for (k = 0; k < count; k += UGRID_I_LANES) {
        const ugrid_real *const x = set->x + k, *const y = set->y + k, *const z = set->z + k;
        ugrid_real *const UGRID_I_RESTRICT d2 = set->d2 + k;
        UGRID_I_KEEP_LOOP
        for (lane = 0; lane < UGRID_I_LANES; lane++) {
            ugrid_real dx = x[lane] - px, dy = y[lane] - py, dz = z[lane] - pz;
            if (images) dx = ugrid_i_nearest(dx, &ax);
            if (images) dy = ugrid_i_nearest(dy, &ay);
            if (images) dz = ugrid_i_nearest(dz, &az);
            d2[lane] = ugrid_i_square(dx, dy, dz);
        }
    }
}

/* The same in one of two loops. */
UGRID_I_ALWAYS_INLINE void ugrid_i_distances_to(const ugrid *grid, ugrid_i_candidates *set,
                                                const ugrid_real p[3])
{
    if (set->images) ugrid_i_distances(grid, set, p, 1);
    else ugrid_i_distances(grid, set, p, 0);
}

/* The number of candidates from .. to-1 within the limit, where no images occur: one by one. */
UGRID_I_ALWAYS_INLINE int32_t ugrid_i_count_some(const ugrid_i_candidates *set,
                                                 const ugrid_real p[3], int32_t from, int32_t to,
                                                 ugrid_real limit)
{
    int32_t k, count = 0;
    for (k = from; k < to; k++)
        count += ugrid_i_square(set->x[k] - p[0], set->y[k] - p[1], set->z[k] - p[2]) <= limit;
    return count;
}

/* The number of candidates from `from` on within the limit, in vectors. The padding after the last
   candidate is counted and subtracted again: its points are all the same. */
UGRID_I_ALWAYS_INLINE int32_t ugrid_i_count_from(const ugrid_i_candidates *set,
                                                 const ugrid_real p[3], int32_t from,
                                                 ugrid_real limit)
{
    ugrid_real const px = p[0], py = p[1], pz = p[2];
    int32_t hits[UGRID_I_LANES] = {0}, count = 0, k;
    int lane;
    for (k = from; k < set->count; k += UGRID_I_LANES) {
        const ugrid_real *const x = set->x + k, *const y = set->y + k, *const z = set->z + k;
        UGRID_I_KEEP_LOOP
        for (lane = 0; lane < UGRID_I_LANES; lane++)
            hits[lane] += ugrid_i_square(x[lane] - px, y[lane] - py, z[lane] - pz) <= limit;
    }
    for (lane = 0; lane < UGRID_I_LANES; lane++) count += hits[lane];
    return count - (k - set->count) * ugrid_i_count_some(set, p, set->count, set->count + 1, limit);
}

/* ugrid_i_count_some by distances that were computed. */
UGRID_I_ALWAYS_INLINE int32_t ugrid_i_count_distances(const ugrid_i_candidates *set, int32_t from,
                                                      int32_t to, ugrid_real limit)
{
    int32_t k, count = 0;
    for (k = from; k < to; k++) count += set->d2[k] <= limit;
    return count;
}

/* Counts all candidates but before .. after-1. */
UGRID_I_ALWAYS_INLINE int32_t ugrid_i_count_row(const ugrid *grid, ugrid_i_candidates *set,
                                                const ugrid_real p[3], int32_t before,
                                                int32_t after, ugrid_real limit)
{
    if (set->images) {
        ugrid_i_distances(grid, set, p, 1);
        return ugrid_i_count_distances(set, 0, before, limit) +
               ugrid_i_count_distances(set, after, set->count, limit);
    }
    if (before == 0) return ugrid_i_count_from(set, p, after, limit);
    return ugrid_i_count_from(set, p, 0, limit) - ugrid_i_count_some(set, p, before, after, limit);
}

/* Appends the names from .. to-1 whose distance is within the limit. Every name is written, and the
   end advances for hits only: there is no branch to mispredict. */
UGRID_I_ALWAYS_INLINE int32_t ugrid_i_append(const ugrid_i_candidates *set, int32_t from,
                                             int32_t to, ugrid_real limit,
                                             int32_t *UGRID_I_RESTRICT hits, int32_t at)
{
    const ugrid_real *UGRID_I_RESTRICT d2 = set->d2;
    const int32_t *UGRID_I_RESTRICT name = set->name;
    int32_t k;
    for (k = from; k < to; k++) {
        hits[at] = name[k];
        at += d2[k] <= limit;
    }
    return at;
}

/* Distances of candidates that are not listed become `beyond`: those beyond their reach, and with
   search.above lower ids. */
UGRID_I_ALWAYS_INLINE void ugrid_i_drop(const ugrid_i_search *search, ugrid_i_candidates *set,
                                        ugrid_real beyond)
{
    ugrid_real const gap = search->radius, own = set->row_radius;
    int32_t const count = set->count, id = set->row_id;
    int32_t k;
    int lane;
    for (k = 0; search->radii && k < count; k += UGRID_I_LANES) {
        const ugrid_real *const radius = set->radius + k;
        ugrid_real *const UGRID_I_RESTRICT d2 = set->d2 + k;
        UGRID_I_KEEP_LOOP
        for (lane = 0; lane < UGRID_I_LANES; lane++) {
            ugrid_real const reach = gap + (own + radius[lane]);
            d2[lane] = d2[lane] <= ugrid_i_times(reach, reach) ? d2[lane] : beyond;
        }
    }
    for (k = 0; search->above && k < count; k += UGRID_I_LANES) {
        const int32_t *const name = set->name + k;
        ugrid_real *const UGRID_I_RESTRICT d2 = set->d2 + k;
        UGRID_I_KEEP_LOOP
        for (lane = 0; lane < UGRID_I_LANES; lane++)
            d2[lane] = name[lane] > id ? d2[lane] : beyond;
    }
}

/* All candidates but before .. after-1 that are within the limit: their number. Their names are
   written to hits[], unless they are only counted. */
UGRID_I_NOINLINE int32_t ugrid_i_row_portable(const ugrid_i_search *search, ugrid_i_candidates *set,
                                              const ugrid_real p[3], int32_t before, int32_t after,
                                              int32_t *hits)
{
    ugrid_real const limit = search->reach * search->reach;
    if (search->count_only) return ugrid_i_count_row(search->grid, set, p, before, after, limit);
    ugrid_i_distances_to(search->grid, set, p);
    if (search->radii | search->above) ugrid_i_drop(search, set, limit + limit);
    return ugrid_i_append(set, after, set->count, limit, hits,
                          ugrid_i_append(set, 0, before, limit, hits, 0));
}

/* The same in the form of the search. */
UGRID_I_ALWAYS_INLINE int32_t ugrid_i_row(const ugrid_i_search *search, ugrid_i_candidates *set,
                                          const ugrid_real p[3], int32_t before, int32_t after,
                                          int32_t *hits)
{
#ifdef UGRID_I_FORMS
    if (search->form == UGRID_I_AVX512)
        return ugrid_i_row_avx512(search, set, p, before, after, hits);
    if (search->form == UGRID_I_AVX2) return ugrid_i_row_avx2(search, set, p, before, after, hits);
#endif
    return ugrid_i_row_portable(search, set, p, before, after, hits);
}

/* The row of a point at p, or a piece of it: all candidates but before .. after-1. */
UGRID_I_ALWAYS_INLINE int ugrid_i_pass_row(const ugrid_i_search *search, ugrid_i_candidates *set,
                                           int32_t row, const ugrid_real p[3], int32_t before,
                                           int32_t after)
{
    int32_t *const hits = ugrid_i_hits_of(search, set);
    int32_t found;
    if (search->above) set->row_id = ugrid_id(search->grid, row);
    if (search->radii)
        set->row_radius = ugrid_i_filter_radius(&search->grid->filter, ugrid_id(search->grid, row));
    found = ugrid_i_row(search, set, p, before, after, hits);
    return found > 0 && search->take(search->user, row, hits, found);
}

/* The row of point j of a block, at p: all candidates but itself; in a half search without the
   places before it in the block, too. */
UGRID_I_ALWAYS_INLINE int ugrid_i_block_row(const ugrid_i_search *search,
                                            const ugrid_i_block_of *block, ugrid_i_candidates *set,
                                            int32_t row, const ugrid_real p[3], int32_t j)
{
    int32_t before = search->half ? set->own : set->own + j,
                  after = set->own + j + !search->half;
    if (block->first < 0) before = after = 0;
    return ugrid_i_pass_row(search, set, row, p, before, after);
}

/* The next candidates of a walk, at most UGRID_I_GATHER: a range that does not fit goes on in the
   next piece. 0 after the last. */
static int ugrid_i_next_piece(const ugrid_i_search *search, ugrid_near *walk,
                              ugrid_i_candidates *set)
{
    int32_t const self = walk->self;
    int32_t count = 0;
    set->count = set->ranges = 0;
    set->own = -1;
    while (count < UGRID_I_GATHER && (walk->begin < walk->end || ugrid_next_range(walk))) {
        int32_t const begin = walk->begin, room = UGRID_I_GATHER - count,
                      end = walk->end - begin < room ? walk->end : begin + room;
        if (begin <= self && self < end) set->own = count + self - begin;
        count += end - begin;
        walk->begin = end;
        set->begin[set->ranges] = begin;
        set->end[set->ranges++] = end;
        if (set->ranges == UGRID_I_RANGES) ugrid_i_copy_ranges(search, self, set);
    }
    ugrid_i_end_candidates(search, self, set);
    return count > 0;
}

/* The row of a point with any number of candidates: those of its walk (half: ugrid_near_half), in
   pieces. */
UGRID_I_NOINLINE int ugrid_i_long_row(const ugrid_i_search *search, int32_t row,
                                      const ugrid_real p[3], ugrid_near walk,
                                      ugrid_i_candidates *set)
{
    set->images = ugrid_i_walk_sees_images(&walk);
    while (ugrid_i_next_piece(search, &walk, set)) {
        int const itself = !search->half && set->own >= 0;
        if (ugrid_i_pass_row(search, set, row, p, itself ? set->own : 0,
                             itself ? set->own + 1 : 0))
            return 1;
    }
    return 0;
}

/* The rows of the places first .. last-1 so. A ghost has none. */
static int ugrid_i_long_rows(const ugrid_i_search *search, int32_t first, int32_t last,
                             ugrid_i_candidates *set)
{
    const ugrid *grid = search->grid;
    int32_t k;
    for (k = first; k < last; k++)
        if (ugrid_id(grid, k) < grid->rows &&
            ugrid_i_long_row(search, k, grid->record[k].x,
                             search->half ? ugrid_near_half(grid, k, search->reach)
                                          : ugrid_near_place(grid, k, search->reach),
                             set))
            return 1;
    return 0;
}

/* The particles at places first .. last-1 that have rows, as a block. They come first in a cell
   where ids ascend: 0 if not. */
static int ugrid_i_block_locals(const ugrid *grid, int32_t first, int32_t last,
                                ugrid_i_block_of *block)
{
    int const all = grid->rows == grid->n;
    int32_t k;
    memset(block, 0, sizeof *block);
    block->first = first;
    for (k = first; k < last; k++) {
        if (!all && ugrid_id(grid, k) >= grid->rows) continue;
        if (first + block->count < k) return 0;
        ugrid_i_extend(block, grid->record[k].x);
    }
    return 1;
}

/* The end of the block that begins with a cell: how many cells of its row share their candidates.
   Few particles, as a walk over cells costs more than the tests that are added. */
static int32_t ugrid_i_block_end(const ugrid_i_search *search, int32_t cell, int32_t last)
{
    const ugrid *grid = search->grid;
    const int32_t *const start = grid->start;
    int32_t const width = grid->axis[0].cells, left = width - cell % width,
                  particles = search->form == UGRID_I_AVX512 ? 20 : 10; /* measured */
    int32_t most = left < UGRID_I_JOINED ? cell + left : cell + UGRID_I_JOINED, end = cell + 1;
    if (!ugrid_i_has_strips(grid->desc.cell_order)) return end;
    if (most > last) most = last;
    while (end < most && start[end + 1] - start[cell] <= particles) end++;
    return end;
}

/* All rows of the cells cell .. end-1, as one block; cell by cell where this does not fit. */
static int ugrid_i_block_rows(const ugrid_i_search *search, int32_t cell, int32_t end,
                              ugrid_i_candidates *set)
{
    const ugrid *grid = search->grid;
    int32_t const first = grid->start[cell], last = grid->start[end];
    int32_t k;
    ugrid_i_block_of block;
    int fits = ugrid_i_block_locals(grid, first, last, &block);
    if (fits && block.count == 0) return 0;
    fits = fits && ugrid_i_collect(search, &block, set, UGRID_I_GATHER);
    if (fits && set->count == 0) return 0; /* a half search: nothing follows */
    if (fits) {
        for (k = 0; k < block.count; k++)
            if (ugrid_i_block_row(search, &block, set, first + k, grid->record[first + k].x, k))
                return 1;
    } else if (cell + 1 < end) {
        for (k = cell; k < end; k++) if (ugrid_i_block_rows(search, k, k + 1, set)) return 1;
    } else {
        return ugrid_i_long_rows(search, first, last, set);
    }
    return 0;
}

/* All rows of a search, block by block. 1 if `take` ended it. */
UGRID_I_NOINLINE int ugrid_i_cell_rows(const ugrid_i_search *search)
{
    const ugrid *grid = search->grid;
    int32_t const last =
        search->last < grid->n ? ugrid_i_cell_from(grid, search->last) : grid->cell_count;
    int32_t cell = ugrid_i_cell_from(grid, search->first), end;
    ugrid_i_candidates set;
    for (; cell < last; cell = end) {
        end = cell + 1;
        if (grid->start[cell] == grid->start[end]) continue;
        end = ugrid_i_block_end(search, cell, last);
        if (ugrid_i_block_rows(search, cell, end, &set)) return 1;
    }
    return 0;
}

/* >>entries-faster. */
UGRID_I_NOINLINE int ugrid_i_rows_by_members(const ugrid_i_search *given);

/* >>hashed-faster. */
UGRID_I_NOINLINE int ugrid_i_hashed_rows(const ugrid_i_search *search);

/* A filtered search by cells has the largest reach, and passes its rows on through the filter. */
typedef struct ugrid_i_filtering {
    const ugrid_i_search *search;       /* the caller's */
    int32_t kept[UGRID_I_GATHER];
} ugrid_i_filtering;

/* Passes on the places that the filter keeps, by the names that the caller wants. */
static int ugrid_i_take_through(void *user, int32_t place, const int32_t *places, int32_t count)
{
    ugrid_i_filtering *filtering = (ugrid_i_filtering *)user;
    const ugrid_i_search *search = filtering->search;
    const ugrid *grid = search->grid;
    int32_t const i = ugrid_id(grid, place);
    int32_t k, kept = 0;
    ugrid_real p[3], q[3];
    ugrid_point(grid, place, p);
    for (k = 0; k < count; k++) {
        int32_t const j = ugrid_id(grid, places[k]);
        if (search->above && j < i) continue;
        ugrid_point(grid, places[k], q);
        if (ugrid_i_passes(grid, search->radius, search->half | search->above, i, j,
                           ugrid_i_distance2_in_box(grid, p, q)))
            filtering->kept[kept++] = search->places ? places[k] : j;
    }
    return kept > 0 && search->take(search->user, place, filtering->kept, kept);
}

/* Rows by id are scattered in memory, and places come in order. So the memory of later rows is
   prefetched: an offset UGRID_I_OFFSETS_AHEAD places before its row, the first 33 ids
   UGRID_I_IDS_AHEAD places before. (Lists of 1M points took 1.5 times as long without it.) */
enum { UGRID_I_OFFSETS_AHEAD = 16, UGRID_I_IDS_AHEAD = 8 };

/* The particle some places after this one; if it has no row, that of this one. */
static int32_t ugrid_i_id_ahead(const ugrid_i_list *list, int32_t place, int32_t distance)
{
    int32_t const id =
        ugrid_id(list->grid, place < list->last - distance ? place + distance : list->last - 1);
    return id < list->grid->rows ? id : ugrid_id(list->grid, place); /* a ghost has no row */
}

/* ugrid_i_take_row_length, and ugrid_i_take_by_id, with prefetching. */
static int ugrid_i_take_row_length_ahead(void *user, int32_t place, const int32_t *names,
                                         int32_t count)
{
    ugrid_i_list *list = (ugrid_i_list *)user;
    UGRID_I_PREFETCH(&list->offsets[ugrid_i_id_ahead(list, place, UGRID_I_OFFSETS_AHEAD)]);
    return ugrid_i_take_row_length(user, place, names, count);
}

static int ugrid_i_take_by_id_ahead(void *user, int32_t place, const int32_t *names,
                                    int32_t count)
{
    ugrid_i_list *list = (ugrid_i_list *)user;
    int64_t const soon = list->offsets[ugrid_i_id_ahead(list, place, UGRID_I_IDS_AHEAD)];
    UGRID_I_PREFETCH(&list->offsets[ugrid_i_id_ahead(list, place, UGRID_I_OFFSETS_AHEAD)]);
    if (soon <= list->capacity - 48) { /* 16 ids per cache line */
        UGRID_I_PREFETCH(list->ids + soon);
        UGRID_I_PREFETCH(list->ids + soon + 16);
        UGRID_I_PREFETCH(list->ids + soon + 32);
    }
    return ugrid_i_take_by_id(user, place, names, count);
}

/* ugrid_i_place_rows. */
static int ugrid_i_search_faster(const ugrid_i_search *given, int *stopped)
{
    ugrid_i_search wanted = *given, search;
    ugrid_i_filtering filtering;
    const ugrid *grid = given->grid;
    const ugrid_filter *filter = &grid->filter;
    int const by_cells = ugrid_i_by_cells(grid), by_buckets = ugrid_i_by_buckets(grid),
              by_places = by_cells | by_buckets,
              by_members = grid->n > 0 && !ugrid_i_sorted(grid) && !grid->desc.unbounded &&
                           !ugrid_i_by_labels(grid) && given->first == 0 &&
                           given->last == grid->n && given->take != ugrid_i_take_in_order;
    wanted.form = UGRID_I_FORM();
    if (by_places && given->take == ugrid_i_take_row_length)
        wanted.take = ugrid_i_take_row_length_ahead;
    if (by_places && given->take == ugrid_i_take_by_id) wanted.take = ugrid_i_take_by_id_ahead;
    search = wanted;
    if (!by_places && !by_members) {
        *stopped = ugrid_i_place_rows(&search);
        return 1;
    }
    if (wanted.filtered | wanted.above) search.filtered = search.count_only = 0; /* hits by name */
    search.radii = by_places && filter->radii != NULL && wanted.filtered;
    if ((wanted.filtered && (filter->masks || filter->exclude_start || filter->sets)) ||
        (by_members && (wanted.filtered | wanted.above))) { /* the loops test radii alone */
        filtering.search = &wanted;
        search.above = 0;
        search.places = 1;
        search.take = ugrid_i_take_through;
        search.user = &filtering;
    }
    *stopped = by_cells     ? ugrid_i_cell_rows(&search)
               : by_buckets ? ugrid_i_hashed_rows(&search)
                            : ugrid_i_rows_by_members(&search);
    return 1;
}

/* ----------------------------------------------------------------------------------------------
   >>entries-faster: LIST, LIST_PACKED, FIXED and TIGHT, whose candidates lie anywhere in memory

   The particles of a cell (LOOSE: of some adjacent cells that hold few) share their candidates, as
   in >>search-faster: each is fetched once for all of them, entry by entry, in the order of the
   walk. So the rows come cell by cell. Which candidates are particles of the block, its members, is
   marked. In a half search they are taken in the order in which they list each other, cell by cell
   and by ascending ids, and one whose row is done is moved to a NaN, where no other row finds it.

       LIST, ids descend        cell 6: 7 5 2    5: 4    9: 8 1     block of cell 6, candidates
       half: below 6 nothing    name   7  5  2  8  1     of row 2: 7 5 8 1
       is fetched                      *  *  *           of row 5: 7 8 1, then of row 7: 8 1

   TIGHT: members must have the same walk, since it decides which entry of a particle counts.
   ---------------------------------------------------------------------------------------------- */

/* Members are particles of the cells first .. last-1. */
typedef struct ugrid_i_crew {
    int32_t first, last;
    ugrid_near walk;                        /* around them */
    int32_t begin[UGRID_I_JOINED + 1];      /* where the candidates of each of these cells begin */
    uint8_t is_member[UGRID_I_ROOM];
    ugrid_i_candidates set;
} ugrid_i_crew;

/* A walk through one cell. */
static ugrid_near ugrid_i_in_cell(const ugrid *grid, int32_t cell)
{
    ugrid_near walk = ugrid_i_near_none(grid);
    walk.number = cell;
    ugrid_i_open(&walk, 1);
    return walk;
}

/* The next particle that has a row and its first entry in this cell; -1 after the last. */
static int32_t ugrid_i_next_member(ugrid_near *walk)
{
    const ugrid *grid = walk->grid;
    while (walk->left > 0) {
        int32_t const entry = ugrid_i_take_entry(walk), place = entry / grid->spans;
        if (place * grid->spans == entry && place < grid->rows) return place;
    }
    return -1;
}

/* Have two walks the same cells? */
static int ugrid_i_same_cells(const ugrid_near *a, const ugrid_near *b)
{
    return a->x.low == b->x.low && a->x.width == b->x.width && a->y.low == b->y.low &&
           a->y.width == b->y.width && a->z.low == b->z.low && a->z.width == b->z.width &&
           a->bits == b->bits;
}

/* Chooses the cells of a block from its first one on, and its walk. Its last cell has members: one
   beyond them may be out of the walk's reach. 0: no cell has members. */
static int ugrid_i_join_cells(const ugrid_i_search *search, ugrid_i_crew *block)
{
    const ugrid *grid = search->grid;
    int const joins = !ugrid_i_tight(grid) && grid->desc.cell_order == UGRID_ROWS;
    int32_t const width = grid->axis[0].cells, left = width - block->first % width,
                  most = search->form == UGRID_I_AVX512 ? 20 : 10;
    int32_t const cells = !joins ? 1 : left < UGRID_I_JOINED ? left : UGRID_I_JOINED;
    int32_t c, joined = 1;
    ugrid_i_block_of box, more;
    memset(&box, 0, sizeof box);
    for (c = 0; c < cells && (c == 0 || box.count > 0); c++) {
        ugrid_near cell = ugrid_i_in_cell(grid, block->first + c);
        ugrid_real p[3];
        int32_t place;
        more = box;
        while ((place = ugrid_i_next_member(&cell)) >= 0) {
            if (ugrid_i_tight(grid) && more.count > 0) continue; /* the walk is that of the first */
            ugrid_point(grid, place, p);
            ugrid_i_extend(&more, p);
        }
        if (c > 0 && more.count > most) break;
        if (more.count > box.count) joined = c + 1;
        box = more;
    }
    block->last = block->first + joined;
    if (box.count > 0) block->walk = ugrid_i_near_box(grid, box.from, box.to, search->reach);
    return box.count > 0;
}

/* Is the candidate of this entry, in a cell of the block, a member? */
static int ugrid_i_is_member(const ugrid_i_search *search, const ugrid_i_crew *block,
                             int32_t entry, int32_t place, const ugrid_real p[3])
{
    const ugrid *grid = search->grid;
    ugrid_near walk;
    if (place >= grid->rows) return 0;
    if (!ugrid_i_tight(grid)) return 1;
    if (place * grid->spans != entry) return 0;
    walk = ugrid_i_near_box(grid, p, p, search->reach);
    return ugrid_i_same_cells(&walk, &block->walk);
}

/* Fetches what counts in the visited cell. 0: they do not fit. */
static int ugrid_i_fetch_cell(const ugrid_i_search *search, ugrid_i_crew *block, ugrid_near *walk,
                              int own)
{
    const ugrid *grid = search->grid;
    int const ghosts_only =
        search->half && !ugrid_i_tight(grid) && walk->number < block->first;
    ugrid_i_candidates *const set = &block->set;
    ugrid_real p[3];
    while (walk->left > 0) {
        int32_t const entry = ugrid_i_take_entry(walk), place = ugrid_i_entry_place(walk, entry);
        if (place < 0 || (ghosts_only && place < grid->rows)) continue;
        if (set->count == UGRID_I_GATHER) return 0;
        ugrid_point(grid, place, p);
        block->is_member[set->count] =
            (uint8_t)(own && ugrid_i_is_member(search, block, entry, place, p));
        set->x[set->count] = p[0];
        set->y[set->count] = p[1];
        set->z[set->count] = p[2];
        set->name[set->count++] = place;
    }
    return 1;
}

/* Fetches the candidates of a block. 0: they do not fit, or members of a TIGHT grid are found in
   another cell than their first one. */
static int ugrid_i_fetch_block(const ugrid_i_search *search, ugrid_i_crew *block)
{
    const ugrid *grid = search->grid;
    ugrid_i_candidates *const set = &block->set;
    ugrid_near walk = block->walk;
    int32_t k, seen = 0;
    int const skips = search->half && !ugrid_i_tight(grid) && grid->rows == grid->n;
    set->count = 0;
    set->images = ugrid_i_walk_sees_images(&walk);
    if (ugrid_i_tight(grid)) set->images = ugrid_i_is_periodic(grid); /* centres may lie beyond */
    if (skips) walk.own_number = block->first; /* cells below are not read: ugrid_i_below_own */
    while (ugrid_i_next_cell(&walk)) {
        int const own = walk.number >= block->first && walk.number < block->last;
        if (own) block->begin[walk.number - block->first] = set->count;
        if (!ugrid_i_fetch_cell(search, block, &walk, own)) return 0;
        seen += own;
        if (own) block->begin[walk.number - block->first + 1] = set->count;
    }
    for (k = set->count; k < set->count + UGRID_I_LANES; k++) set->x[k] = set->y[k] = set->z[k] = 0;
    return seen == block->last - block->first;
}

/* Do the ids of the members among candidates begin .. end-1 go up (1), down (-1), or neither
   (0)? */
static int ugrid_i_direction(const ugrid_i_crew *block, int32_t begin, int32_t end)
{
    int32_t last = -1, k;
    int up = 1, down = 1;
    for (k = begin; k < end; k++) {
        if (!block->is_member[k]) continue;
        if (last >= 0 && block->set.name[k] < last) up = 0;
        if (last >= 0 && block->set.name[k] > last) down = 0;
        last = block->set.name[k];
    }
    return up ? 1 : down ? -1 : 0;
}

/* The row of the member that is candidate k. */
static int ugrid_i_member_row(const ugrid_i_search *search, ugrid_i_crew *block, int32_t k)
{
    ugrid_i_candidates *const set = &block->set;
    ugrid_real const p[3] = {set->x[k], set->y[k], set->z[k]};
    int32_t found = ugrid_i_row(search, set, p, k, k + 1, set->hits), h, kept = 0;
    if (search->half && !ugrid_i_tight(search->grid)) set->x[k] = ugrid_i_not_finite(1);
    if (search->half && ugrid_i_tight(search->grid)) {
        for (h = 0; h < found; h++) {
            set->hits[kept] = set->hits[h];
            kept += set->hits[h] > set->name[k];
        }
        found = kept;
    }
    return found > 0 && search->take(search->user, set->name[k], set->hits, found);
}

/* The rows of the members among the candidates of one cell. */
static int ugrid_i_member_rows(const ugrid_i_search *search, ugrid_i_crew *block, int32_t cell)
{
    int32_t const begin = block->begin[cell], end = block->begin[cell + 1];
    int const step = search->half ? ugrid_i_direction(block, begin, end) : 1;
    int32_t k;
    for (k = step > 0 ? begin : end - 1; k >= begin && k < end; k += step)
        if (block->is_member[k] && ugrid_i_member_row(search, block, k)) return 1;
    return 0;
}

/* Can the members of a half search be taken in order? (Lists made by a GPU have any order.) */
static int ugrid_i_is_ordered(const ugrid_i_search *search, const ugrid_i_crew *block)
{
    int32_t c;
    for (c = 0; search->half && c < block->last - block->first; c++)
        if (!ugrid_i_direction(block, block->begin[c], block->begin[c + 1])) return 0;
    return 1;
}

/* The rows of a block that its walk does not give: each by its own. all: of all members. */
static int ugrid_i_other_rows(const ugrid_i_search *search, const ugrid_i_crew *block, int all)
{
    const ugrid *grid = search->grid;
    int32_t cell, place;
    if (!all && !ugrid_i_tight(grid)) return 0;
    for (cell = block->first; cell < block->last; cell++) {
        ugrid_near within = ugrid_i_in_cell(grid, cell), walk;
        while ((place = ugrid_i_next_member(&within)) >= 0) {
            ugrid_real p[3];
            ugrid_point(grid, place, p);
            walk = ugrid_i_near_box(grid, p, p, search->reach);
            if (!all && ugrid_i_same_cells(&walk, &block->walk)) continue;
            if (ugrid_i_place_row(search, place)) return 1;
        }
    }
    return 0;
}

/* All rows of a search, block by block. 1 if `take` ended it. */
UGRID_I_NOINLINE int ugrid_i_rows_by_members(const ugrid_i_search *given)
{
    ugrid_i_search search = *given;
    ugrid_i_crew block;
    int32_t c;
    if (search.half && ugrid_i_tight(search.grid)) search.count_only = 0; /* hits are sifted */
    for (block.first = 0; block.first < search.grid->cell_count; block.first = block.last) {
        int fits;
        if (!ugrid_i_join_cells(&search, &block)) continue;
        fits = ugrid_i_fetch_block(&search, &block) && ugrid_i_is_ordered(&search, &block);
        for (c = 0; fits && c < block.last - block.first; c++)
            if (ugrid_i_member_rows(&search, &block, c)) return 1;
        if (ugrid_i_other_rows(&search, &block, !fits)) return 1;
    }
    return 0;
}

/* ----------------------------------------------------------------------------------------------
   >>hashed-faster: SORT and COUNT with hashed cells

   A block is some particles at adjacent places that lie in one piece of a row of cells, close to
   each other. Its candidates come by strips of cells: each is a range of places, with the entries
   of all cells that share its buckets. Those of cells far away fail the test of the distance. Where
   two strips share places, an entry counts in the strip of its own cell only, so it is taken once.
   The order is that of a walk by cells.

       strips of a block in row y, z          buckets  12 13 14 15  0  1  2
       y - 1, z   buckets 14 15 0             row y-1        *  *   *
       y, z       buckets 1 2 3               row y                    *  *
       y + 1, z   buckets 13 14 15            row y+1     *  *  *             14 and 15 are shared
   ---------------------------------------------------------------------------------------------- */

/* STRIPS: of one walk. HASHED: the places that are divided into blocks at a time. MOST_JOINED: of
   several cells; the same for all vectors, as the order of rows depends on it. */
enum { UGRID_I_MOST_STRIPS = 64, UGRID_I_HASHED = 64, UGRID_I_MOST_JOINED = 16 };

typedef struct ugrid_i_strips {
    int32_t begin[UGRID_I_MOST_STRIPS], end[UGRID_I_MOST_STRIPS];   /* places */
    int32_t x[UGRID_I_MOST_STRIPS], x_end[UGRID_I_MOST_STRIPS];     /* cells x .. x_end-1 */
    int32_t y[UGRID_I_MOST_STRIPS], z[UGRID_I_MOST_STRIPS];         /* of row y, z */
    uint8_t shared[UGRID_I_MOST_STRIPS];    /* has places of another one, too */
    int32_t count;
} ugrid_i_strips;

/* Adds the places of the cells x .. x_end-1 in row y, z, whose buckets begin with this one. 0:
   there are too many strips. */
static int ugrid_i_add_strip(const ugrid *grid, int32_t bucket, int32_t x, int32_t x_end, int32_t y,
                             int32_t z, ugrid_i_strips *strips)
{
    int32_t const begin = grid->start[bucket], end = grid->start[bucket + x_end - x],
                  at = strips->count;
    int32_t s;
    if (begin == end) return 1;
    if (at == UGRID_I_MOST_STRIPS) return 0;
    strips->begin[at] = begin;
    strips->end[at] = end;
    strips->x[at] = x;
    strips->x_end[at] = x_end;
    strips->y[at] = y;
    strips->z[at] = z;
    strips->shared[at] = 0;
    for (s = 0; s < at; s++)
        if (strips->begin[s] < end && begin < strips->end[s])
            strips->shared[s] = strips->shared[at] = 1;
    strips->count++;
    return 1;
}

/* The strips of a walk, in its order; all places where it visits every bucket. 0: too many. */
static int ugrid_i_strips_of(const ugrid_near *walk, ugrid_i_strips *strips)
{
    const ugrid *grid = walk->grid;
    int32_t const buckets = grid->cell_count, end = walk->x.low + walk->x.width;
    int32_t x, y, z, next;
    strips->count = 0;
    if (walk->bits & UGRID_I_WHOLE) return ugrid_i_add_strip(grid, 0, 0, buckets, 0, 0, strips);
    for (z = walk->z.low; z < walk->z.low + walk->z.width; z++)
        for (y = walk->y.low; y < walk->y.low + walk->y.width; y++)
            for (x = walk->x.low; x < end; x = next) {
                int32_t const bucket = ugrid_i_hash(x, y, z, buckets);
                next = ugrid_i_end_of_piece(x, end, bucket, buckets);
                if (!ugrid_i_add_strip(grid, bucket, x, next, y, z, strips)) return 0;
            }
    return 1;
}

/* Copies the candidates begin .. end-1 of a strip, or notes them as a range to be copied. first:
   as ugrid_i_copy_ghosts. */
static void ugrid_i_copy_strip(const ugrid_i_search *search, const ugrid_i_strips *strips,
                               int32_t s, int32_t begin, int32_t end, int32_t first,
                               ugrid_i_candidates *set)
{
    const ugrid *grid = search->grid;
    int const all = !search->half || grid->rows == grid->n;
    int32_t k;
    if (!strips->shared[s]) {
        set->begin[set->ranges] = begin;
        set->end[set->ranges++] = end;
        if (set->ranges == UGRID_I_RANGES) ugrid_i_copy_ranges(search, first, set);
        return;
    }
    ugrid_i_copy_ranges(search, first, set);
    for (k = begin; k < end; k++)
        if (ugrid_i_is_in_strip(grid, grid->record[k].x, strips->x[s], strips->x_end[s],
                                strips->y[s], strips->z[s]) &&
            (all || k > first || grid->record[k].link >= grid->rows))
            ugrid_i_copy(search, k, k + 1, set);
}

/* Collects the candidates of a block. 0: they do not fit. In a half search from its first place on,
   and 0 where others than of its strip lie between its places. */
static int ugrid_i_collect_strips(const ugrid_i_search *search, const ugrid_i_block_of *block,
                                  ugrid_i_candidates *set)
{
    ugrid_near const walk = ugrid_i_near_box(search->grid, block->from, block->to, search->reach);
    ugrid_i_strips strips;
    int32_t count = 0, s;
    set->count = set->own = set->ranges = set->images = 0;
    if (walk.bits & UGRID_I_WHOLE || !ugrid_i_strips_of(&walk, &strips)) return 0;
    for (s = 0; s < strips.count; s++) {
        int32_t const begin = search->half && strips.begin[s] < block->first ? block->first
                                                                              : strips.begin[s];
        if (begin >= strips.end[s]) continue;
        count += strips.end[s] - begin;
        if (count > UGRID_I_GATHER) return 0;
        if (search->half && begin == block->first && strips.shared[s]) return 0;
        ugrid_i_copy_strip(search, &strips, s, begin, strips.end[s], block->first, set);
    }
    ugrid_i_end_candidates(search, block->first, set);
    return 1;
}

/* Passes on what is near p among the candidates so far, and begins anew. */
static int ugrid_i_end_piece(const ugrid_i_search *search, int32_t row, const ugrid_real p[3],
                             ugrid_i_candidates *set)
{
    int stopped;
    ugrid_i_end_candidates(search, row, set);
    stopped = set->count > 0 && ugrid_i_pass_row(search, set, row, p, 0, 0);
    set->count = 0;
    return stopped;
}

/* The row of a point with any number of candidates: those of its walk but the place of the walk
   itself (half: above it), in pieces. */
static int ugrid_i_hashed_row(const ugrid_i_search *search, int32_t row, const ugrid_real p[3],
                              const ugrid_near *walk, ugrid_i_candidates *set)
{
    const ugrid *grid = search->grid;
    int32_t const place = walk->self;
    int const above = search->half && grid->rows == grid->n;
    ugrid_i_strips strips;
    int32_t count = 0, s;
    if (!ugrid_i_strips_of(walk, &strips))
        return place < 0 ? ugrid_i_walk_row(search, row, p, *walk)
                         : ugrid_i_place_row(search, place);
    set->count = set->own = set->ranges = set->images = 0;
    for (s = 0; s < strips.count; s++) {
        int32_t begin = above && strips.begin[s] <= place ? place + 1 : strips.begin[s];
        while (begin < strips.end[s]) {
            int32_t const room = UGRID_I_GATHER - count, left = strips.end[s] - begin;
            int32_t end = begin + (left < room ? left : room);
            if (begin == place) { /* not itself */
                begin++;
                continue;
            }
            if (begin < place && place < end) end = place;
            ugrid_i_copy_strip(search, &strips, s, begin, end, place, set);
            count += end - begin;
            begin = end;
            if (count < UGRID_I_GATHER) continue;
            if (ugrid_i_end_piece(search, row, p, set)) return 1;
            count = 0;
        }
    }
    return ugrid_i_end_piece(search, row, p, set);
}

/* Some adjacent places, and what becomes of them. */
typedef struct ugrid_i_hashed {
    int32_t first, count;
    int32_t x[UGRID_I_HASHED], y[UGRID_I_HASHED], z[UGRID_I_HASHED];    /* cells */
    uint8_t done[UGRID_I_HASHED];
    int32_t member[UGRID_I_HASHED];                                     /* of the block */
} ugrid_i_hashed;

/* Takes up to UGRID_I_HASHED places. Ghosts have no rows. */
static void ugrid_i_take_places(const ugrid *grid, int32_t first, int32_t last,
                                ugrid_i_hashed *some)
{
    int32_t k;
    some->first = first;
    some->count = last - first < UGRID_I_HASHED ? last - first : UGRID_I_HASHED;
    for (k = 0; k < some->count; k++) {
        const ugrid_record *record = &grid->record[first + k];
        some->x[k] = ugrid_i_raw_coordinate(&grid->axis[0], record->x[0]);
        some->y[k] = ugrid_i_raw_coordinate(&grid->axis[1], record->x[1]);
        some->z[k] =
            grid->desc.dim == 2 ? 0 : ugrid_i_raw_coordinate(&grid->axis[2], record->x[2]);
        some->done[k] = record->link >= grid->rows;
    }
}

/* Chooses the block that begins with place `from` of these: places of one piece of a row, within
   UGRID_I_JOINED cells, and few ones if of several cells. Rows in order: adjacent places only. */
static void ugrid_i_choose_block(const ugrid_i_search *search, ugrid_i_hashed *some, int32_t from,
                                 ugrid_i_block_of *block)
{
    ugrid_row_fn *const take = search->take == ugrid_i_take_through
                                   ? ((const ugrid_i_filtering *)search->user)->search->take
                                   : search->take;
    int const in_order = take == ugrid_i_take_in_order;
    int32_t k;
    memset(block, 0, sizeof *block);
    block->first = some->first + from;
    for (k = from; k < some->count; k++) {
        int32_t const beyond = some->x[k] - some->x[from],
                      cells = block->count < UGRID_I_MOST_JOINED ? (int32_t)UGRID_I_JOINED : 1;
        int const joins = !some->done[k] && some->y[k] == some->y[from] &&
                          some->z[k] == some->z[from] && beyond >= 0 && beyond < cells &&
                          (uint32_t)(some->x[k] ^ some->x[from]) < UGRID_I_ROW_PIECE;
        if (!joins && in_order) return;
        if (!joins) continue;
        some->done[k] = 1;
        some->member[block->count] = some->first + k;
        ugrid_i_extend(block, search->grid->record[some->first + k].x);
    }
}

/* The rows of a block. Members and candidates are in the same order. */
static int ugrid_i_hashed_block(const ugrid_i_search *search, const ugrid_i_hashed *some,
                                const ugrid_i_block_of *block, ugrid_i_candidates *set)
{
    const ugrid *grid = search->grid;
    int const fits = (!search->half || grid->rows == grid->n) &&
                     ugrid_i_collect_strips(search, block, set);
    int32_t at = 0, first = 0, k;
    for (k = 0; k < block->count; k++) {
        int32_t const place = some->member[k];
        const ugrid_record *record = &grid->record[place];
        if (!fits) {
            ugrid_near const walk = ugrid_near_place(grid, place, search->reach);
            if (ugrid_i_hashed_row(search, place, record->x, &walk, set)) return 1;
            continue;
        }
        while (set->name[at] != (search->places ? place : record->link)) at++;
        if (k == 0) first = at;
        if (ugrid_i_pass_row(search, set, place, record->x, search->half ? first : at, at + 1))
            return 1;
    }
    return 0;
}

/* All rows of a search, block by block. 1 if `take` ended it. */
UGRID_I_NOINLINE int ugrid_i_hashed_rows(const ugrid_i_search *search)
{
    const ugrid *grid = search->grid;
    int32_t const entered = grid->start[grid->cell_count],
                  last = search->last < entered ? search->last : entered;
    int32_t place, k;
    ugrid_i_candidates set;
    ugrid_i_hashed some;
    ugrid_i_block_of block;
    for (place = search->first; place < last; place += some.count) {
        ugrid_i_take_places(grid, place, last, &some);
        for (k = 0; k < some.count; k++) {
            if (some.done[k]) continue;
            ugrid_i_choose_block(search, &some, k, &block);
            if (ugrid_i_hashed_block(search, &some, &block, &set)) return 1;
        }
    }
    return 0;
}

/* ----------------------------------------------------------------------------------------------
   >>lanes: the loops of >>search-faster over candidates in vector instructions

   They have three forms, which give the same bits; a search takes the best one that the CPU has.
   UGRID_PLAIN_LANES leaves only the first. Cell numbers (>>count-faster) have the first two.

       portable  C, in >>search-faster. The inner loops of constant length become vectors at -O2,
                 too; without -march of 4 floats, which is what the oldest x86-64 has.
       avx2      The same text compiled for AVX2, 8 floats (_avx2). Only the copy and the append,
                 of which compilers make no vectors, are written by hand.
       avx512    16 floats or 8 doubles, written by hand (_avx512). A comparison gives one bit for
                 each candidate: a count is a sum of numbers of bits, and one instruction moves the
                 names of hits to the front. So distances need not be stored.

   AVX2 has no fused operations. AVX-512 has, and compilers would make them of products and sums,
   which ugrid_i_kept_avx512 keeps apart.
   ---------------------------------------------------------------------------------------------- */

#ifdef UGRID_I_FORMS

/* ugrid_i_append, 4 names at a time: those of hits are moved to the front and written with the
   others, and the end advances by their number. */
UGRID_I_FOR_AVX2 static inline int32_t ugrid_i_append_avx2(const ugrid_i_candidates *set,
                                                           int32_t from, int32_t to,
                                                           ugrid_real limit, int32_t *hits,
                                                           int32_t at)
{
    static const int32_t front[16][4] = {
        {0, 0, 0, 0}, {0, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 0}, {2, 0, 0, 0}, {0, 2, 0, 0},
        {1, 2, 0, 0}, {0, 1, 2, 0}, {3, 0, 0, 0}, {0, 3, 0, 0}, {1, 3, 0, 0}, {0, 1, 3, 0},
        {2, 3, 0, 0}, {0, 2, 3, 0}, {1, 2, 3, 0}, {0, 1, 2, 3}};
    int32_t k;
    for (k = from; k <= to - 4; k += 4) {
        __m128 const names = _mm_loadu_ps((const float *)(const void *)(set->name + k));
#if UGRID_I_REAL_KIND == 1
        int const bits = _mm_movemask_ps(
            _mm_cmp_ps(_mm_loadu_ps(set->d2 + k), _mm_set1_ps(limit), _CMP_LE_OQ));
#else
        int const bits = _mm256_movemask_pd(
            _mm256_cmp_pd(_mm256_loadu_pd(set->d2 + k), _mm256_set1_pd(limit), _CMP_LE_OQ));
#endif
        __m128i const order = _mm_loadu_si128((const __m128i *)(const void *)front[bits]);
        _mm_storeu_ps((float *)(void *)(hits + at), _mm_permutevar_ps(names, order));
        at += __builtin_popcount((unsigned)bits);
    }
    return ugrid_i_append(set, k, to, limit, hits, at);
}

/* ugrid_i_row_portable. */
UGRID_I_FOR_AVX2 UGRID_I_NOINLINE int32_t ugrid_i_row_avx2(const ugrid_i_search *search,
                                                           ugrid_i_candidates *set,
                                                           const ugrid_real p[3], int32_t before,
                                                           int32_t after, int32_t *hits)
{
    ugrid_real const limit = search->reach * search->reach;
    if (search->count_only) return ugrid_i_count_row(search->grid, set, p, before, after, limit);
    ugrid_i_distances_to(search->grid, set, p);
    if (search->radii | search->above) ugrid_i_drop(search, set, limit + limit);
    return ugrid_i_append_avx2(set, after, set->count, limit, hits,
                               ugrid_i_append_avx2(set, 0, before, limit, hits, 0));
}

#define UGRID_I_ALL_AVX512 UGRID_I_FOR_AVX512 static inline __attribute__((always_inline))
#if UGRID_I_REAL_KIND == 1
enum { UGRID_I_WIDTH = 16 };    /* of a vector */
typedef __m512 ugrid_i_vector;
typedef __mmask16 ugrid_i_bits;
#define UGRID_I_512(operation) _mm512_##operation##_ps
#define UGRID_I_512_BITS       _mm512_cmp_ps_mask
#else
enum { UGRID_I_WIDTH = 8 };
typedef __m512d ugrid_i_vector;
typedef __mmask8 ugrid_i_bits;
#define UGRID_I_512(operation) _mm512_##operation##_pd
#define UGRID_I_512_BITS       _mm512_cmp_pd_mask
#endif

/* What the tests of one point need. */
typedef struct ugrid_i_test {
    const ugrid_axis *axis;
    const ugrid_i_candidates *set;
    ugrid_i_vector x, y, z, limit;  /* each the same number in all lanes */
    ugrid_i_vector gap, own;        /* search.radii */
    int images, radii, above;
    int flat;                       /* 2D: z is 0; a constant, as images */
    int32_t *hits;                  /* NULL: only counted */
} ugrid_i_test;

/* ugrid_i_kept of a vector. */
UGRID_I_ALL_AVX512 ugrid_i_vector ugrid_i_kept_avx512(ugrid_i_vector x)
{
    __asm__("" : "+v"(x));
    return x;
}

/* ugrid_i_nearest of a vector. */
UGRID_I_ALL_AVX512 ugrid_i_vector ugrid_i_nearest_avx512(ugrid_i_vector d, const ugrid_axis *axis)
{
    ugrid_i_vector const half = UGRID_I_512(set1)(axis->half),
                         minus_half = UGRID_I_512(set1)(-axis->half),
                         length = UGRID_I_512(set1)(axis->length);
    ugrid_i_bits const above = UGRID_I_512_BITS(d, half, _CMP_GT_OQ),
                       below = UGRID_I_512_BITS(d, minus_half, _CMP_LT_OQ);
    d = ugrid_i_kept_avx512(UGRID_I_512(mask_sub)(d, above, d, length));
    return ugrid_i_kept_avx512(UGRID_I_512(mask_add)(d, below, d, length));
}

/* The squares of the reaches of the candidates from k on. */
UGRID_I_ALL_AVX512 ugrid_i_vector ugrid_i_limit_avx512(const ugrid_i_test *test, int32_t k)
{
    ugrid_i_vector const sum =
        ugrid_i_kept_avx512(UGRID_I_512(add)(test->own, UGRID_I_512(loadu)(test->set->radius + k)));
    ugrid_i_vector const reach = ugrid_i_kept_avx512(UGRID_I_512(add)(test->gap, sum));
    return ugrid_i_kept_avx512(UGRID_I_512(mul)(reach, reach));
}

/* Those of them whose names are above the row's id. */
UGRID_I_ALL_AVX512 unsigned ugrid_i_above_avx512(const ugrid_i_candidates *set, int32_t k)
{
#if UGRID_I_REAL_KIND == 1
    return _mm512_cmpgt_epi32_mask(_mm512_loadu_si512(set->name + k),
                                   _mm512_set1_epi32(set->row_id));
#else
    return _mm256_cmpgt_epi32_mask(
        _mm256_loadu_si256((const __m256i *)(const void *)(set->name + k)),
        _mm256_set1_epi32(set->row_id));
#endif
}

/* The candidates from k on: bit i is 1 if candidate k + i is within the limit. */
UGRID_I_ALL_AVX512 unsigned ugrid_i_bits_avx512(const ugrid_i_test *test, int32_t k)
{
    const ugrid_i_candidates *const set = test->set;
    ugrid_i_vector x = UGRID_I_512(sub)(UGRID_I_512(loadu)(set->x + k), test->x),
                   y = UGRID_I_512(sub)(UGRID_I_512(loadu)(set->y + k), test->y),
                   z, limit = test->limit;
    unsigned bits;
    if (test->images) {
        x = ugrid_i_nearest_avx512(x, &test->axis[0]);
        y = ugrid_i_nearest_avx512(y, &test->axis[1]);
    }
    x = ugrid_i_kept_avx512(UGRID_I_512(mul)(x, x));
    y = ugrid_i_kept_avx512(UGRID_I_512(mul)(y, y));
    x = ugrid_i_kept_avx512(UGRID_I_512(add)(x, y));
    if (!test->flat) {
        z = UGRID_I_512(sub)(UGRID_I_512(loadu)(set->z + k), test->z);
        if (test->images) z = ugrid_i_nearest_avx512(z, &test->axis[2]);
        z = ugrid_i_kept_avx512(UGRID_I_512(mul)(z, z));
        x = UGRID_I_512(add)(x, z);
    }
    if (test->radii) limit = ugrid_i_limit_avx512(test, k);
    bits = UGRID_I_512_BITS(x, limit, _CMP_LE_OQ);
    return test->above ? bits & ugrid_i_above_avx512(set, k) : bits;
}

/* Puts the names of the candidates from k on that have a bit at hits + at: a whole vector, of
   which the first ones count. Returns the end of these. */
UGRID_I_ALL_AVX512 int32_t ugrid_i_put_avx512(const ugrid_i_test *test, int32_t k, unsigned bits,
                                              int32_t at)
{
    const void *const from = test->set->name + k;
#if UGRID_I_REAL_KIND == 1
    if (test->hits)
        _mm512_storeu_si512(
            test->hits + at,
            _mm512_maskz_compress_epi32((ugrid_i_bits)bits, _mm512_loadu_si512(from)));
#else
    if (test->hits)
        _mm256_storeu_si256((__m256i *)(void *)(test->hits + at),
                            _mm256_maskz_compress_epi32(
                                (ugrid_i_bits)bits, _mm256_loadu_si256((const __m256i *)from)));
#endif
    return at + __builtin_popcount(bits);
}

/* Bits of the lanes below n; all if n is the width or more. */
UGRID_I_ALL_AVX512 unsigned ugrid_i_below_avx512(int32_t n)
{
    unsigned const all = (1u << UGRID_I_WIDTH) - 1;
    return n < UGRID_I_WIDTH ? (1u << (n > 0 ? n : 0)) - 1 : all;
}

/* All candidates but before .. after-1: vectors without them, those with some of them, vectors
   without them, and the last one, which is not full. */
UGRID_I_ALL_AVX512 int32_t ugrid_i_all_avx512(ugrid_i_test test, int images, int32_t *hits,
                                              int32_t before, int32_t after)
{
    int32_t const count = test.set->count, own = before - before % UGRID_I_WIDTH;
    int32_t k, at = 0;
    test.images = images;
    test.hits = hits;
    for (k = 0; k < own; k += UGRID_I_WIDTH)
        at = ugrid_i_put_avx512(&test, k, ugrid_i_bits_avx512(&test, k), at);
    for (; k < after; k += UGRID_I_WIDTH) {
        unsigned const others = ~ugrid_i_below_avx512(after - k) | ugrid_i_below_avx512(before - k);
        at = ugrid_i_put_avx512(&test, k, ugrid_i_bits_avx512(&test, k) & others &
                                              ugrid_i_below_avx512(count - k), at);
    }
    for (; k <= count - UGRID_I_WIDTH; k += UGRID_I_WIDTH)
        at = ugrid_i_put_avx512(&test, k, ugrid_i_bits_avx512(&test, k), at);
    if (k < count)
        at = ugrid_i_put_avx512(
            &test, k, ugrid_i_bits_avx512(&test, k) & ugrid_i_below_avx512(count - k), at);
    return at;
}

/* The tests of the row of a point. */
UGRID_I_ALL_AVX512 ugrid_i_test ugrid_i_test_avx512(const ugrid_i_search *search,
                                                    const ugrid_i_candidates *set,
                                                    const ugrid_real p[3])
{
    ugrid_i_test test;
    test.axis = search->grid->axis;
    test.set = set;
    test.x = UGRID_I_512(set1)(p[0]);
    test.y = UGRID_I_512(set1)(p[1]);
    test.z = UGRID_I_512(set1)(p[2]);
    test.limit = test.gap = test.own = UGRID_I_512(set1)(search->reach * search->reach);
    test.radii = test.above = 0;
    test.flat = 0;
    return test;
}

/* ugrid_i_row_portable with radii, or with ids above the row's only; never only counted. */
UGRID_I_FOR_AVX512 UGRID_I_NOINLINE int32_t ugrid_i_kept_row_avx512(const ugrid_i_search *search,
                                                                    ugrid_i_candidates *set,
                                                                    const ugrid_real p[3],
                                                                    int32_t before, int32_t after,
                                                                    int32_t *hits)
{
    ugrid_i_test test = ugrid_i_test_avx512(search, set, p);
    test.above = 1;
    if (!search->radii && !set->images) return ugrid_i_all_avx512(test, 0, hits, before, after);
    test.above = search->above;
    test.radii = search->radii;
    if (test.radii) {
        test.gap = UGRID_I_512(set1)(search->radius);
        test.own = UGRID_I_512(set1)(set->row_radius);
    }
    return ugrid_i_all_avx512(test, set->images, hits, before, after);
}

/* ugrid_i_row_portable. */
UGRID_I_FOR_AVX512 UGRID_I_NOINLINE int32_t ugrid_i_row_avx512(const ugrid_i_search *search,
                                                               ugrid_i_candidates *set,
                                                               const ugrid_real p[3],
                                                               int32_t before, int32_t after,
                                                               int32_t *hits)
{
    ugrid_i_test test = ugrid_i_test_avx512(search, set, p);
    if (search->radii | search->above)
        return ugrid_i_kept_row_avx512(search, set, p, before, after, hits);
    if (search->count_only)
        return set->images ? ugrid_i_all_avx512(test, 1, NULL, before, after)
                           : ugrid_i_all_avx512(test, 0, NULL, before, after);
    if (set->images) return ugrid_i_all_avx512(test, 1, hits, before, after);
    test.flat = 1;
    if (search->grid->desc.dim == 2) return ugrid_i_all_avx512(test, 0, hits, before, after);
    test.flat = 0;
    return ugrid_i_all_avx512(test, 0, hits, before, after);
}

#if UGRID_I_REAL_KIND == 1
/* Two records, side by side. */
UGRID_I_FOR_AVX2 static inline __m256 ugrid_i_two_records(const ugrid_record *one,
                                                          const ugrid_record *other)
{
    __m128 const low = _mm_loadu_ps((const float *)(const void *)one);
    return _mm256_insertf128_ps(_mm256_castps128_ps256(low),
                                _mm_loadu_ps((const float *)(const void *)other), 1);
}

/* ugrid_i_copy of all ranges, 8 records at a time: two matrices of 4 x 4, transposed side by side.
   What was read beyond the end of a range is overwritten by the next one, or lies after the last
   candidate. At the end of the grid some records are copied one by one. */
UGRID_I_FOR_AVX2 UGRID_I_NOINLINE void ugrid_i_copy_avx2(const ugrid_i_search *search,
                                                         ugrid_i_candidates *set)
{
    const ugrid_record *const record = search->grid->record;
    __m256i const ascending = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    int32_t const last = search->grid->entries - 8;
    int32_t r, k;
    for (r = 0; r < set->ranges; r++) {
        int32_t at = set->count;
        for (k = set->begin[r]; k < set->end[r] && k <= last; k += 8, at += 8) {
            __m256 const a = ugrid_i_two_records(&record[k], &record[k + 4]),
                         b = ugrid_i_two_records(&record[k + 1], &record[k + 5]),
                         c = ugrid_i_two_records(&record[k + 2], &record[k + 6]),
                         d = ugrid_i_two_records(&record[k + 3], &record[k + 7]),
                         xy_ab = _mm256_unpacklo_ps(a, b), xy_cd = _mm256_unpacklo_ps(c, d),
                         zn_ab = _mm256_unpackhi_ps(a, b), zn_cd = _mm256_unpackhi_ps(c, d);
            __m256 name = _mm256_shuffle_ps(zn_ab, zn_cd, 0xEE);
            if (search->places)
                name = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_set1_epi32(k), ascending));
            _mm256_storeu_ps(set->x + at, _mm256_shuffle_ps(xy_ab, xy_cd, 0x44));
            _mm256_storeu_ps(set->y + at, _mm256_shuffle_ps(xy_ab, xy_cd, 0xEE));
            _mm256_storeu_ps(set->z + at, _mm256_shuffle_ps(zn_ab, zn_cd, 0x44));
            _mm256_storeu_ps((float *)(void *)(set->name + at), name);
        }
        set->count = k < set->end[r] ? at : at - (k - set->end[r]);
        ugrid_i_copy(search, k, set->end[r], set);
    }
}

/* ugrid_i_copy of all ranges, 16 records at a time: 4 vectors of 4. Index 4 i + c of two of them is
   coordinate c of their record i; 3 is the name. */
UGRID_I_FOR_AVX512 UGRID_I_NOINLINE void ugrid_i_copy_avx512(const ugrid_i_search *search,
                                                             ugrid_i_candidates *set)
{
    const ugrid_record *const record = search->grid->record;
    __m512i const ascending =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i const x_then_y =
        _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
    __m512i const z_then_name = _mm512_add_epi32(x_then_y, _mm512_set1_epi32(2));
    __m512i const lower =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    __m512i const upper = _mm512_add_epi32(lower, _mm512_set1_epi32(8));
    int32_t const last = search->grid->entries - 16;
    int32_t r, k;
    for (r = 0; r < set->ranges; r++) {
        int32_t at = set->count;
        for (k = set->begin[r]; k < set->end[r] && k <= last; k += 16, at += 16) {
            __m512 const a = _mm512_loadu_ps(&record[k]), b = _mm512_loadu_ps(&record[k + 4]),
                         c = _mm512_loadu_ps(&record[k + 8]), d = _mm512_loadu_ps(&record[k + 12]),
                         xy_ab = _mm512_permutex2var_ps(a, x_then_y, b),
                         xy_cd = _mm512_permutex2var_ps(c, x_then_y, d),
                         zn_ab = _mm512_permutex2var_ps(a, z_then_name, b),
                         zn_cd = _mm512_permutex2var_ps(c, z_then_name, d);
            __m512i name = _mm512_castps_si512(_mm512_permutex2var_ps(zn_ab, upper, zn_cd));
            if (search->places) name = _mm512_add_epi32(_mm512_set1_epi32(k), ascending);
            _mm512_storeu_ps(set->x + at, _mm512_permutex2var_ps(xy_ab, lower, xy_cd));
            _mm512_storeu_ps(set->y + at, _mm512_permutex2var_ps(xy_ab, upper, xy_cd));
            _mm512_storeu_ps(set->z + at, _mm512_permutex2var_ps(zn_ab, lower, zn_cd));
            _mm512_storeu_si512(set->name + at, name);
        }
        set->count = k < set->end[r] ? at : at - (k - set->end[r]);
        ugrid_i_copy(search, k, set->end[r], set);
    }
}
#endif
#endif

/* ----------------------------------------------------------------------------------------------
   >>query-faster: points that are no particles: one of them by ranges, and many sorted by cell

   Query points of ugrid_neighbors_at come in any order, and points of one cell share their
   candidates (>>search-faster). So they are visited sorted by cell, and their rows are written in
   the caller's order, in three passes. The only work space is the caller's array of offsets, one
   word of 64 bits a query:

       sort     cell of query | query       sorted in place
       count    visit[k]      | length[q]   upper half: the k-th query of the order; lower half: the
                                            length of row q
       fill     visit[k]      | end[q]      where row q ends so far, counted from the begin of its
                                            section: a section is a 1024th of the rows

   At the end the words become offsets.
   ---------------------------------------------------------------------------------------------- */

/* Fewer queries than FEW are not sorted. QUERY: places that are tested at a time. */
enum { UGRID_I_SECTIONS = 1024, UGRID_I_FEW = 32, UGRID_I_QUERY = 64 };

/* Appends the particles at `count` places that are within reach of a point, up to the capacity.
   Returns found, counted further. Without a branch for each place. */
static int32_t ugrid_i_query_places(const ugrid *grid, int32_t place, int32_t count,
                                    const ugrid_real *at, ugrid_real reach2, int32_t *ids,
                                    int32_t capacity, int32_t found)
{
    int32_t hit[UGRID_I_QUERY], hits = 0, k;
    ugrid_real q[3];
    for (k = 0; k < count; k++) {
        ugrid_point(grid, place + k, q);
        hit[hits] = place + k;
        hits += ugrid_i_distance2_in_box(grid, at, q) <= reach2;
    }
    for (k = 0; k < hits && k < capacity - found; k++) ids[found + k] = ugrid_id(grid, hit[k]);
    return found + hits;
}

/* ugrid_query for all ranges of a walk. */
static int ugrid_i_query_faster(ugrid_near *walk, const ugrid_real *p, ugrid_real limit,
                                int32_t *ids, int32_t capacity, int32_t *found)
{
    const ugrid *grid = walk->grid;
    if (!ugrid_has_ranges(grid)) return 0;
    while (ugrid_next_range(walk)) {
        int32_t place = walk->begin;
        for (; place < walk->end; place += UGRID_I_QUERY) {
            int32_t const left = walk->end - place;
            *found = ugrid_i_query_places(grid, place, left < UGRID_I_QUERY ? left : UGRID_I_QUERY,
                                          p, limit, ids, capacity, *found);
        }
    }
    return 1;
}

typedef struct ugrid_i_points {
    const ugrid *grid;
    ugrid_i_queries queries;
    int32_t section;            /* rows per section */
    int64_t *word;              /* offsets, while they are work space */
    int32_t *ids;
    int64_t capacity, total;
    int64_t begin[UGRID_I_SECTIONS + 1]; /* of the sections */
} ugrid_i_points;

/* For few words, and at the ends of the sort below. */
static void ugrid_i_insertion_sort(int64_t *word, int32_t count)
{
    int32_t k, at;
    for (k = 1; k < count; k++) {
        int64_t const moving = word[k];
        for (at = k; at > 0 && word[at - 1] > moving; at--) word[at] = word[at - 1];
        word[at] = moving;
    }
}

/* Sorts by the bits below `top`, 8 at a time from the highest, in place: each word is swapped to
   the next free place of its bin until all are there (American flag sort: McIlroy, Bostic, McIlroy,
   Engineering Radix Sort, 1993). Bits below 32 are left as they come. */
static void ugrid_i_flag_sort(int64_t *word, int32_t count, int top)
{
    int const shift = top > 40 ? top - 8 : 32;
    int32_t next[256], end[256], bin, sum = 0, k;
    if (count < 32) ugrid_i_insertion_sort(word, count);
    if (count < 32 || top <= 32) return;
    memset(end, 0, sizeof end);
    for (k = 0; k < count; k++) end[(word[k] >> shift) & 255]++;
    for (bin = 0; bin < 256; bin++) {
        next[bin] = sum;
        end[bin] = sum += end[bin];
    }
    for (bin = 0; bin < 256; bin++) {
        while (next[bin] < end[bin]) {
            int64_t moving = word[next[bin]];
            int32_t to = (int32_t)((moving >> shift) & 255);
            for (; to != bin; to = (int32_t)((moving >> shift) & 255)) {
                int64_t const displaced = word[next[to]];
                word[next[to]++] = moving;
                moving = displaced;
            }
            word[next[bin]++] = moving;
        }
    }
    for (bin = 0, k = 0; bin < 256; k = end[bin++])
        ugrid_i_flag_sort(word + k, end[bin] - k, shift);
}

/* word[k] = visit[k] | 0. */
static void ugrid_i_sort_points(ugrid_i_points *at)
{
    int64_t *const word = at->word;
    int32_t const m = at->queries.m;
    int32_t cells = at->grid->cell_count, q;
    int top = 32;
    ugrid_real p[3];
    for (; cells > 0; cells /= 2) top++;
    for (q = 0; q < m; q++) {
        int const finite = ugrid_i_query_point(&at->queries, at->grid, q, p);
        word[q] = (int64_t)(finite ? ugrid_cell_at(at->grid, p) : 0) * ((int64_t)1 << 32) + q;
    }
    ugrid_i_flag_sort(word, m, top);
    for (q = 0; q < m; q++) word[q] = (word[q] & 0x7FFFFFFF) * ((int64_t)1 << 32);
}

/* The row of query q by its own walk. */
static void ugrid_i_lone_point(const ugrid_i_search *search, int32_t q, const ugrid_real p[3],
                               ugrid_i_candidates *set)
{
    ugrid_near const walk = ugrid_near_within(search->grid, p, search->reach);
    if (ugrid_i_by_cells(search->grid)) (void)ugrid_i_long_row(search, q, p, walk, set);
    else if (ugrid_i_by_buckets(search->grid)) (void)ugrid_i_hashed_row(search, q, p, &walk, set);
    else (void)ugrid_i_walk_row(search, q, p, walk);
}

/* Are two points of one bucket in one cell? In a box they are. */
static int ugrid_i_shares_cell(const ugrid *grid, const ugrid_real p[3], const ugrid_real q[3])
{
    int32_t const x = grid->desc.unbounded ? ugrid_i_raw_coordinate(&grid->axis[0], p[0]) : 0;
    return !grid->desc.unbounded ||
           ugrid_i_is_in_strip(grid, q, x, x + 1, ugrid_i_raw_coordinate(&grid->axis[1], p[1]),
                               ugrid_i_raw_coordinate(&grid->axis[2], p[2]));
}

/* The rows of the queries from k on that are in one cell, at most a block of UGRID_I_HITS. Returns
   the next k. */
static int32_t ugrid_i_search_points(const ugrid_i_search *search, const ugrid_i_points *at,
                                     int32_t k, ugrid_i_candidates *set)
{
    const ugrid *grid = at->grid;
    ugrid_real p[UGRID_I_HITS][3];
    int32_t q[UGRID_I_HITS], cell = -1, j;
    ugrid_i_block_of block;
    int fits;
    memset(&block, 0, sizeof block);
    block.first = -1;
    for (; k < at->queries.m && block.count < UGRID_I_HITS; k++) {
        ugrid_real *const point = p[block.count];
        q[block.count] = (int32_t)(at->word[k] >> 32);
        if (!ugrid_i_query_point(&at->queries, grid, q[block.count], point)) continue;
        if (block.count == 0) cell = ugrid_cell_at(grid, point);
        else if (ugrid_cell_at(grid, point) != cell || !ugrid_i_shares_cell(grid, p[0], point))
            break;
        ugrid_i_extend(&block, point);
    }
    if (block.count == 0) return k;
    fits = ugrid_i_by_cells(grid) ? ugrid_i_collect(search, &block, set, UGRID_I_GATHER)
                                  : ugrid_i_by_buckets(grid) &&
                                        ugrid_i_collect_strips(search, &block, set);
    for (j = 0; j < block.count; j++) {
        if (fits) (void)ugrid_i_block_row(search, &block, set, q[j], p[j], j);
        else ugrid_i_lone_point(search, q[j], p[j], set);
    }
    return k;
}

/* Passes the rows of all queries to `take`, in sorted order. */
static void ugrid_i_run_points(ugrid_i_points *at, ugrid_real radius, int count_only,
                               ugrid_row_fn *take)
{
    ugrid_i_search search = ugrid_i_search_of(at->grid, radius, 0, count_only, take, at);
    ugrid_i_candidates set;
    int32_t k = 0;
    search.form = UGRID_I_FORM();
    while (k < at->queries.m) k = ugrid_i_search_points(&search, at, k, &set);
}

/* The pass that counts: adds to the length of a row. */
static int ugrid_i_take_length_at(void *user, int32_t q, const int32_t *names, int32_t count)
{
    (void)names;
    ((ugrid_i_points *)user)->word[q] += count;
    return 0;
}

/* The pass that fills: writes a piece of a row, and advances its end. */
static int ugrid_i_take_ids_at(void *user, int32_t q, const int32_t *names, int32_t count)
{
    ugrid_i_points *at = (ugrid_i_points *)user;
    int64_t const to = at->begin[q / at->section] + (at->word[q] & 0xFFFFFFFF);
    ugrid_i_put_names(at->ids, at->capacity, to, names, count);
    at->word[q] += count;
    return 0;
}

/* Lengths become ends of empty rows: what comes before them in their section. Counts the entries.
   0: a section has 2^32. */
static int ugrid_i_begin_sections(ugrid_i_points *at)
{
    int64_t within = 0;
    int32_t q;
    for (q = 0; q < at->queries.m; q++) {
        int64_t const length = at->word[q] & 0xFFFFFFFF;
        if (q % at->section == 0) {
            at->begin[q / at->section] = at->total;
            within = 0;
        }
        at->word[q] += within - length;
        within += length;
        at->total += length;
        if (within > 0xFFFFFFFF) return 0;
    }
    return 1;
}

/* Sorts the queries and counts their rows. Returns the entries, -1 where a section has 2^32. */
static int64_t ugrid_i_count_points(ugrid_i_points *at, ugrid_real radius)
{
    at->total = 0;
    ugrid_i_sort_points(at);
    ugrid_i_run_points(at, radius, 1, ugrid_i_take_length_at);
    return ugrid_i_begin_sections(at) ? at->total : -1;
}

/* Lists the rows. Then words become the offsets of all rows: before the fill they are begins, after
   it ends. */
static void ugrid_i_fill_points(ugrid_i_points *at, ugrid_real radius)
{
    int const filled = at->capacity > 0;
    int32_t q;
    if (filled) ugrid_i_run_points(at, radius, 0, ugrid_i_take_ids_at);
    for (q = at->queries.m - 1; q >= filled; q--)
        at->word[q] = at->begin[(q - filled) / at->section] + (at->word[q - filled] & 0xFFFFFFFF);
    if (filled) at->word[0] = at->begin[0];
}

/* ----------------------------------------------------------------------------------------------
   >>parallel-run: work in pieces, each of which is a task of desc.parallel.run (>>parallel)

   A piece is a range of what the work writes, and so no two pieces write to the same number. What
   must be joined is joined by the calling thread, in the order of the pieces.
   ---------------------------------------------------------------------------------------------- */

/* The fewest particles of a search for which a task is worth its start: some tenths of a
   millisecond. What costs less for each particle takes UGRID_I_LIGHT times as many. */
#ifndef UGRID_I_PIECE
#define UGRID_I_PIECE 2048
#endif
enum { UGRID_I_LIGHT = 8 };

/* Into how many pieces work on n elements is cut. */
static int32_t ugrid_i_pieces(const ugrid_parallel *parallel, int32_t n, int32_t fewest)
{
    int32_t const worth = n / fewest;
    int32_t most = UGRID_I_MOST_PIECES;
    if (parallel->tasks < most) most = parallel->tasks;
    if (!parallel->run || most < 2 || worth < 2) return 1;
    return worth < most ? worth : most;
}

/* A piece sets its byte when it is done. */
typedef struct ugrid_i_all_tasks {
    ugrid_task *work;
    void *context;
    unsigned char done[UGRID_I_MOST_PIECES];
} ugrid_i_all_tasks;

/* Does one piece, and says so. */
static inline void ugrid_i_do_piece(void *context, int32_t k)
{
    ugrid_i_all_tasks *job = (ugrid_i_all_tasks *)context;
    job->work(job->context, k);
    job->done[k] = 1;
}

/* work(context, k) for every piece k. */
static inline ugrid_result ugrid_i_in_pieces(const ugrid_parallel *parallel, int32_t pieces,
                                             ugrid_task *work, void *context)
{
    ugrid_i_all_tasks job;
    int32_t k;
    job.work = work;
    job.context = context;
    memset(job.done, 0, sizeof job.done);
    parallel->run(ugrid_i_do_piece, &job, pieces, parallel->user);
    for (k = 0; k < pieces; k++) if (!job.done[k]) return UGRID_NOT_RUN;
    return UGRID_OK;
}

/* ----------------------------------------------------------------------------------------------
   >>parallel-build: COUNT and SORT in pieces, which give the same arrays: where cells are few for
   the particles, by counts of all cells for each piece (ugrid_i_build_by_counts); else a counting
   sort in two rounds, each without a number that two pieces write. A bucket is a range of cells.

       tally     piece of particles   cell numbers, and how many are in each bucket
                                      a prefix sum over buckets, and over pieces within each: where
                                      each piece writes in each bucket
       deal      piece of particles   (cell number, entry) to its bucket: entries ascend there
       sort      piece of buckets     the counting sort of ugrid_i_build_count within each bucket
   ---------------------------------------------------------------------------------------------- */

enum { UGRID_I_BUCKETS = 1024, UGRID_I_BUILD_TASKS = 64 };

/* The pieces of a pass over the particles, and those of a build. */
static int32_t ugrid_i_fit_pieces(const ugrid_desc *desc, int32_t n)
{
    int32_t const pieces = ugrid_i_pieces(&desc->parallel, n, UGRID_I_LIGHT * UGRID_I_PIECE);
    return pieces < UGRID_I_BUILD_TASKS ? pieces : UGRID_I_BUILD_TASKS;
}

static int32_t ugrid_i_build_pieces(const ugrid *grid, int32_t n)
{
    return ugrid_i_has_starts(&grid->desc) ? ugrid_i_fit_pieces(&grid->desc, n) : 1;
}

/* Words of 64 bits: a key for each entry, and the tallies of the pieces. */
static int64_t ugrid_i_faster_words(const ugrid *grid, int32_t n)
{
    int64_t const pieces = ugrid_i_build_pieces(grid, n);
    return pieces > 1 ? (int64_t)n * grid->spans + pieces * (UGRID_I_BUCKETS / 2) : 0;
}

/* A pointer to element k of an array of points. */
static const ugrid_real *ugrid_i_from(const ugrid_real *points, size_t stride, int32_t k)
{
    return (const ugrid_real *)(const void *)((const char *)points + (size_t)k * stride);
}

/* The particles of piece k as a grid of their own. Returns the first one. */
static int32_t ugrid_i_piece_of(ugrid *part, int32_t pieces, int32_t k)
{
    int32_t const first = ugrid_i_cut(part->n, pieces, k);
    ugrid_desc *const desc = &part->desc;
    part->n = ugrid_i_cut(part->n, pieces, k + 1) - first;
    part->pos = ugrid_i_from(part->pos, part->stride, first);
    if (desc->half_extents)
        desc->half_extents = ugrid_i_from(desc->half_extents, desc->half_extent_stride, first);
    return first;
}

/* The box of a piece, and its first particle that is refused; or how many are left out. */
typedef struct ugrid_i_surveyed {
    ugrid_real min[3], max[3];
    int32_t points;     /* in the box */
    int32_t bad_id, outside, invalid;
    ugrid_result result;
} ugrid_i_surveyed;

typedef struct ugrid_i_survey {
    ugrid grid;         /* of all particles */
    int fits;           /* 1: the box is wanted */
    int32_t pieces;
    ugrid_i_surveyed of[UGRID_I_BUILD_TASKS];
} ugrid_i_survey;

/* ugrid_i_fit_box or ugrid_i_count_left_out for a piece. */
static void ugrid_i_survey_piece(void *context, int32_t k)
{
    ugrid_i_survey *all = (ugrid_i_survey *)context;
    ugrid_i_surveyed *own = &all->of[k];
    ugrid part = all->grid;
    int32_t const first = ugrid_i_piece_of(&part, all->pieces, k);
    part.bad_id = -1;
    own->result = all->fits ? ugrid_i_fit_box(&part.desc, part.pos, part.stride, part.n,
                                              &own->points, &part.bad_id)
                            : ugrid_i_count_left_out(&part);
    own->outside = part.outside;
    own->invalid = part.invalid;
    own->bad_id = part.bad_id < 0 ? -1 : first + part.bad_id;
    memcpy(own->min, part.desc.min, sizeof own->min);
    memcpy(own->max, part.desc.max, sizeof own->max);
}

/* ugrid_i_fit_box in pieces. */
static int ugrid_i_fit_faster(ugrid_desc *desc, const ugrid_real *pos, size_t stride, int32_t n,
                              int32_t *bad_id, ugrid_result *result)
{
    ugrid_i_survey all;
    int32_t k, points = 0;
    int a;
    memset(&all, 0, sizeof all);
    all.grid.desc = *desc;
    all.grid.pos = pos;
    all.grid.stride = stride;
    all.grid.n = n;
    all.fits = 1;
    all.pieces = ugrid_i_fit_pieces(desc, n);
    if (all.pieces < 2) return 0;
    *result = ugrid_i_in_pieces(&desc->parallel, all.pieces, ugrid_i_survey_piece, &all);
    if (*result != UGRID_OK) return 1;
    for (k = 0; k < all.pieces; k++) {
        const ugrid_i_surveyed *own = &all.of[k];
        for (a = 0; own->points > 0 && a < desc->dim; a++) {
            if (points == 0 || own->min[a] < desc->min[a]) desc->min[a] = own->min[a];
            if (points == 0 || own->max[a] > desc->max[a]) desc->max[a] = own->max[a];
        }
        points += own->points;
        *result = own->result;
        if (*result == UGRID_OK) continue;
        if (bad_id) *bad_id = own->bad_id;
        return 1;
    }
    return 1;
}

/* ugrid_i_count_left_out in pieces. A particle that is not finite and refused ends the count, and
   is reported before one that is outside; one that is left out, after it. */
static int ugrid_i_left_out_faster(ugrid *grid, ugrid_result *result)
{
    ugrid_i_survey all;
    int32_t k;
    if (grid->desc.outside == UGRID_CLAMP && !grid->desc.skip_invalid) return 0;
    memset(&all, 0, sizeof all);
    all.grid = *grid;
    all.pieces = ugrid_i_fit_pieces(&grid->desc, grid->n);
    if (all.pieces < 2) return 0;
    *result = ugrid_i_in_pieces(&grid->desc.parallel, all.pieces, ugrid_i_survey_piece, &all);
    if (*result != UGRID_OK) return 1;
    for (k = 0; k < all.pieces; k++) {
        const ugrid_i_surveyed *own = &all.of[k];
        grid->outside += own->outside;
        grid->invalid += own->invalid;
        if (own->result == UGRID_OK && (*result != UGRID_OK || grid->bad_id >= 0)) continue;
        if (own->result != UGRID_OK && own->result == *result) continue;
        *result = own->result;
        grid->bad_id = own->bad_id;
        if (*result == UGRID_NOT_FINITE) return 1;
    }
    return 1;
}

typedef struct ugrid_i_deal {
    ugrid grid;                 /* a copy */
    int32_t *numbers;           /* [n * spans] cells, -1: unused */
    uint64_t *keys;             /* (cell, entry), by bucket */
    int32_t *tally;             /* [pieces][buckets] entries, then where the piece puts them */
    int32_t pieces, buckets;
    int shift;                  /* bucket = cell >> shift; 0 by counts of all cells */
    int32_t begin[UGRID_I_BUCKETS + 1];     /* the first key of each bucket; by counts: the entries
                                               of each piece of the cells, then those before it */
    int32_t bad_id[UGRID_I_BUILD_TASKS];    /* by piece: its first particle that is not finite, or
                                               -1 */
} ugrid_i_deal;

/* The tally of a piece. */
static int32_t *ugrid_i_tally_of(const ugrid_i_deal *deal, int32_t k)
{
    return deal->tally + (size_t)k * (size_t)deal->buckets;
}

/* Numbers the entries of a piece, and counts them by bucket. */
static void ugrid_i_tally_piece(void *context, int32_t k)
{
    ugrid_i_deal *deal = (ugrid_i_deal *)context;
    int32_t *const tally = ugrid_i_tally_of(deal, k);
    int const shift = deal->shift;
    ugrid part = deal->grid;
    int32_t const first = ugrid_i_piece_of(&part, deal->pieces, k), entries = part.n * part.spans;
    int32_t *const numbers = deal->numbers + (size_t)first * (size_t)part.spans;
    int32_t e;
    deal->bad_id[k] = -1;
    if (ugrid_i_number_faster(&part, numbers) != UGRID_OK) {
        deal->bad_id[k] = first + part.bad_id;
        return;
    }
    part.start = tally;
    if (shift == 0) {
        ugrid_i_count_numbers(&part, numbers);
        return;
    }
    memset(tally, 0, (size_t)deal->buckets * sizeof *tally);
    for (e = 0; e < entries; e++) if (numbers[e] >= 0) tally[numbers[e] >> shift]++;
}

/* Tallies become begins. Returns the number of keys. */
static int32_t ugrid_i_begin_buckets(ugrid_i_deal *deal)
{
    int32_t b, k, sum = 0;
    for (b = 0; b < deal->buckets; b++) {
        deal->begin[b] = sum;
        for (k = 0; k < deal->pieces; k++) {
            int32_t *const tally = ugrid_i_tally_of(deal, k) + b;
            int32_t const count = *tally;
            *tally = sum;
            sum += count;
        }
    }
    return deal->begin[deal->buckets] = sum;
}

/* Puts the keys of a piece into their buckets. */
static void ugrid_i_deal_piece(void *context, int32_t k)
{
    ugrid_i_deal *deal = (ugrid_i_deal *)context;
    int32_t *const at = ugrid_i_tally_of(deal, k);
    const int32_t *const numbers = deal->numbers;
    uint64_t *const keys = deal->keys;
    int32_t const n = deal->grid.n, spans = deal->grid.spans;
    int32_t const end = ugrid_i_cut(n, deal->pieces, k + 1) * spans;
    int const shift = deal->shift;
    int32_t e;
    for (e = ugrid_i_cut(n, deal->pieces, k) * spans; e < end; e++)
        if (numbers[e] >= 0)
            keys[at[numbers[e] >> shift]++] = (uint64_t)numbers[e] << 32 | (uint32_t)e;
}

/* The counting sort of ugrid_i_build_count among the cells and the places of a bucket. */
static void ugrid_i_sort_bucket(const ugrid *grid, const uint64_t *keys, int32_t first,
                                int32_t last, int32_t cell, int32_t cells)
{
    int32_t k, c, sum = first;
    memset(grid->start + cell, 0, (size_t)cells * sizeof *grid->start);
    for (k = first; k < last; k++) grid->start[keys[k] >> 32]++;
    for (c = cell; c < cell + cells; c++) grid->start[c] = sum += grid->start[c];
    for (k = last - 1; k >= first; k--)
        ugrid_i_put_at(grid, --grid->start[keys[k] >> 32], (int32_t)(keys[k] & 0xFFFFFFFFu));
    if (grid->record) for (k = first; k < last; k++) grid->order[k] = grid->record[k].link;
}

/* The first bucket of piece k: pieces have about the same work, which is 8 for a key and 1 for a
   cell. */
static int32_t ugrid_i_bucket_from(const ugrid_i_deal *deal, int32_t k)
{
    int64_t const all = 8 * (int64_t)deal->begin[deal->buckets] + deal->grid.cell_count;
    int32_t b = 0;
    if (k == deal->pieces) return deal->buckets;
    while (b < deal->buckets &&
           8 * (int64_t)deal->begin[b] + ((int64_t)b << deal->shift) < all * k / deal->pieces)
        b++;
    return b;
}

/* Sorts the buckets of a piece. */
static void ugrid_i_sort_piece(void *context, int32_t k)
{
    const ugrid_i_deal *deal = (const ugrid_i_deal *)context;
    ugrid const view = deal->grid;
    int32_t const end = ugrid_i_bucket_from(deal, k + 1), width = (int32_t)1 << deal->shift;
    int32_t b;
    for (b = ugrid_i_bucket_from(deal, k); b < end; b++) {
        int32_t const cell = b << deal->shift, rest = view.cell_count - cell;
        ugrid_i_sort_bucket(&view, deal->keys, deal->begin[b], deal->begin[b + 1], cell,
                            rest < width ? rest : width);
    }
}

/* By counts of all cells: how many entries are in a piece of the cells. */
static void ugrid_i_sum_piece(void *context, int32_t k)
{
    ugrid_i_deal *deal = (ugrid_i_deal *)context;
    int32_t const cells = deal->buckets, end = ugrid_i_cut(cells, deal->pieces, k + 1);
    int32_t piece, c, sum = 0;
    for (piece = 0; piece < deal->pieces; piece++) {
        const int32_t *const count = ugrid_i_tally_of(deal, piece);
        for (c = ugrid_i_cut(cells, deal->pieces, k); c < end; c++) sum += count[c];
    }
    deal->begin[k] = sum;
}

/* Where each cell begins, and where the entries of each piece end in it. */
static void ugrid_i_begin_piece(void *context, int32_t k)
{
    ugrid_i_deal *deal = (ugrid_i_deal *)context;
    int32_t const cells = deal->buckets, end = ugrid_i_cut(cells, deal->pieces, k + 1);
    int32_t piece, c, sum = deal->begin[k];
    for (c = ugrid_i_cut(cells, deal->pieces, k); c < end; c++) {
        int32_t *count = deal->tally + c;
        deal->grid.start[c] = sum;
        for (piece = 0; piece < deal->pieces; piece++, count += cells) *count = sum += *count;
    }
}

/* The scatter of a piece of the particles. */
static void ugrid_i_scatter_piece(void *context, int32_t k)
{
    const ugrid_i_deal *deal = (const ugrid_i_deal *)context;
    ugrid part = deal->grid;
    int32_t const begin = ugrid_i_cut(part.n, deal->pieces, k) * part.spans,
                  end = ugrid_i_cut(part.n, deal->pieces, k + 1) * part.spans;
    part.start = ugrid_i_tally_of(deal, k);
    ugrid_i_scatter(&part, deal->numbers, begin, end);
}

/* The order of a piece of the places, from the records. */
static void ugrid_i_order_piece(void *context, int32_t piece)
{
    const ugrid_i_deal *deal = (const ugrid_i_deal *)context;
    ugrid const view = deal->grid;
    int32_t const end = ugrid_i_cut(view.entries, deal->pieces, piece + 1);
    int32_t k;
    for (k = ugrid_i_cut(view.entries, deal->pieces, piece); k < end; k++)
        view.order[k] = view.record[k].link;
}

/* Into how many pieces a counting sort is cut; 1: buckets are better. The counts lie where the keys
   of buckets would. (With half as many pieces as tasks, two threads take 1.05 times the processor
   time of one; through buckets 1.8 times.) */
static int32_t ugrid_i_count_pieces(const ugrid *grid, int32_t pieces)
{
    int64_t const room = 2 * (int64_t)grid->n * grid->spans / ((int64_t)grid->cell_count + 1);
    int32_t const wanted = pieces < 4 ? 2 : pieces / 2,
                  most = room < wanted ? (int32_t)room : wanted;
    return most < 2 || most < pieces / 8 || grid->n >= UGRID_I_MANY ? 1 : most;
}

/* The steps after the tally, by counts of all cells. */
static ugrid_result ugrid_i_build_by_counts(ugrid_i_deal *deal)
{
    static ugrid_task *const steps[] = {ugrid_i_begin_piece, ugrid_i_scatter_piece,
                                        ugrid_i_order_piece};
    const ugrid_parallel *parallel = &deal->grid.desc.parallel;
    int32_t const count = deal->grid.record ? 3 : 2;
    ugrid_result result = ugrid_i_in_pieces(parallel, deal->pieces, ugrid_i_sum_piece, deal);
    int32_t step, k;
    for (k = 0; result == UGRID_OK && k < deal->pieces; k++) {
        int32_t const entries = deal->begin[k];
        deal->begin[k] = deal->grid.entries;
        deal->grid.entries += entries;
    }
    for (step = 0; result == UGRID_OK && step < count; step++)
        result = ugrid_i_in_pieces(parallel, deal->pieces, steps[step], deal);
    return result;
}

/* The same by buckets. */
static ugrid_result ugrid_i_build_by_buckets(ugrid_i_deal *deal)
{
    const ugrid_parallel *parallel = &deal->grid.desc.parallel;
    ugrid_result result;
    deal->grid.entries = ugrid_i_begin_buckets(deal);
    result = ugrid_i_in_pieces(parallel, deal->pieces, ugrid_i_deal_piece, deal);
    if (result != UGRID_OK) return result;
    return ugrid_i_in_pieces(parallel, deal->pieces, ugrid_i_sort_piece, deal);
}

/* COUNT and SORT in pieces. */
static ugrid_result ugrid_i_build_in_pieces(ugrid *grid)
{
    int32_t const pieces = ugrid_i_build_pieces(grid, grid->n),
                  by_counts = ugrid_i_count_pieces(grid, pieces);
    ugrid_i_deal deal;
    ugrid_result result;
    int32_t k;
    memset(&deal, 0, sizeof deal);
    deal.grid = *grid;
    deal.pieces = by_counts > 1 ? by_counts : pieces;
    deal.numbers = (int32_t *)grid->block[UGRID_I_WORK_A].memory;
    deal.keys = (uint64_t *)grid->block[UGRID_I_WORK_B].memory;
    deal.tally = (int32_t *)deal.keys;
    if (by_counts < 2) {
        deal.tally = (int32_t *)(deal.keys + (size_t)grid->n * (size_t)grid->spans);
        while ((grid->cell_count - 1) >> deal.shift >= UGRID_I_BUCKETS) deal.shift++;
    }
    deal.buckets = ((grid->cell_count - 1) >> deal.shift) + 1;
    result = ugrid_i_in_pieces(&grid->desc.parallel, deal.pieces, ugrid_i_tally_piece, &deal);
    if (result != UGRID_OK) return result;
    for (k = 0; k < deal.pieces; k++) {
        if (deal.bad_id[k] < 0) continue;
        grid->bad_id = deal.bad_id[k];
        return UGRID_NOT_FINITE;
    }
    result = by_counts > 1 ? ugrid_i_build_by_counts(&deal) : ugrid_i_build_by_buckets(&deal);
    if (result != UGRID_OK) return result;
    grid->entries = grid->start[grid->cell_count] = deal.grid.entries;
    if (grid->outside + grid->invalid > 0) ugrid_i_finish_order(grid);
    return UGRID_OK;
}

/* Does it take the counting sort? SORT does, too, where that is faster: it gives the same arrays.
   (Its radix sort is faster from about 40 cells a particle on, measured.) */
static int ugrid_i_is_counted(const ugrid *grid)
{
    if (grid->desc.method == UGRID_COUNT) return 1;
    return grid->desc.method == UGRID_SORT && grid->cell_count / 32 <= grid->n + 512;
}

/* ugrid_i_build_method for COUNT, and for SORT in pieces or where its radix sort takes longer. */
static int ugrid_i_build_faster(ugrid *grid, ugrid_result *result)
{
    if (ugrid_i_build_pieces(grid, grid->n) > 1) *result = ugrid_i_build_in_pieces(grid);
    else if (ugrid_i_is_counted(grid)) *result = ugrid_i_count_faster(grid);
    else return 0;
    return 1;
}

/* ----------------------------------------------------------------------------------------------
   >>parallel-search: the searches over all particles. A piece has the rows of some adjacent cells,
   with about as many particles as the others.
   ---------------------------------------------------------------------------------------------- */

typedef struct ugrid_i_split {
    ugrid_i_search search;      /* of all rows */
    ugrid_i_list *list;         /* of all rows, or NULL */
    int32_t pieces;
    int64_t total[UGRID_I_MOST_PIECES + 1]; /* by piece: where its list begins, or ends */
} ugrid_i_split;

/* The rows of one piece. */
static void ugrid_i_search_piece(void *context, int32_t k)
{
    ugrid_i_split *split = (ugrid_i_split *)context;
    ugrid_i_search search = split->search;
    ugrid_i_list list = {search.grid, NULL, NULL, 0, 0, 0, 0};
    int const in_order = search.take == ugrid_i_take_in_order;
    if (split->list) list = *split->list;
    search.first = list.rows = ugrid_i_piece_from(search.grid, split->pieces, k);
    search.last = list.last = ugrid_i_piece_from(search.grid, split->pieces, k + 1);
    list.total = split->total[k];
    if (in_order && !search.count_only && list.capacity > split->total[k + 1])
        list.capacity = split->total[k + 1]; /* the next piece writes there */
    if (split->list) search.user = &list;
    else if (search.take == ugrid_i_take_total) search.user = &list.total;
    (void)ugrid_i_run_search(&search);
    if (in_order) while (list.rows < list.last) list.offsets[list.rows++] = list.total;
    if (search.count_only) split->total[k] = list.total;
}

/* Runs a search in pieces. */
static ugrid_result ugrid_i_run_split(ugrid_i_split *split)
{
    const ugrid *grid = split->search.grid;
    return ugrid_i_in_pieces(&grid->desc.parallel, split->pieces, ugrid_i_search_piece, split);
}

/* Lists by place: each piece counts its rows, with offsets from its own begin, and lists them when
   the begins are known. Serial lists need no second search. */
static ugrid_result ugrid_i_split_in_order(ugrid_i_split *split)
{
    ugrid_i_list *const list = split->list;
    int64_t const capacity = list->capacity;
    int32_t k, place = 0, last;
    ugrid_result result;
    list->capacity = 0;
    split->search.count_only = 1;
    result = ugrid_i_run_split(split);
    list->capacity = capacity;
    if (result != UGRID_OK) return result;
    list->total = ugrid_i_begins(split->total, split->pieces);
    list->rows = list->grid->n;
    if (capacity > 0) {
        split->search.count_only = 0;
        return ugrid_i_run_split(split);
    }
    for (k = 0; k < split->pieces; k++) {
        last = ugrid_i_piece_from(list->grid, split->pieces, k + 1);
        for (; place < last; place++) list->offsets[place] += split->total[k];
    }
    return UGRID_OK;
}

/* ugrid_i_run in pieces, for what may take the rows of several pieces at once. */
static int ugrid_i_run_faster(const ugrid_i_search *search, ugrid_result *result)
{
    ugrid_row_fn *const take = search->take;
    int const in_order = take == ugrid_i_take_in_order, total = take == ugrid_i_take_total,
              by_id = take == ugrid_i_take_row_length || take == ugrid_i_take_by_id;
    ugrid_i_split split;
    split.pieces = ugrid_i_pieces(&search->grid->desc.parallel, search->grid->n, UGRID_I_PIECE);
    if (split.pieces < 2 || !(in_order | total | by_id | (take == ugrid_i_take_count))) return 0;
    memset(split.total, 0, sizeof split.total);
    split.search = *search;
    split.list = in_order | by_id ? (ugrid_i_list *)search->user : NULL;
    *result = in_order ? ugrid_i_split_in_order(&split) : ugrid_i_run_split(&split);
    if (total && *result == UGRID_OK)
        *(int64_t *)search->user = ugrid_i_begins(split.total, split.pieces);
    return 1;
}

/* ----------------------------------------------------------------------------------------------
   >>parallel-points: the neighbours of query points. A piece has some adjacent queries of the
   caller's order, and their words (>>query-faster). It sorts them by cell and has one section.
   ---------------------------------------------------------------------------------------------- */

typedef struct ugrid_i_points_split {
    const ugrid_i_points *at;   /* all queries */
    ugrid_real radius;
    int32_t pieces;
    int fill;                   /* 0: rows are counted, 1: listed */
    /* by piece: its entries, -1 where a section cannot hold them; then its begin */
    int64_t total[UGRID_I_MOST_PIECES + 1];
} ugrid_i_points_split;

/* Counts or lists the rows of a piece. */
static void ugrid_i_points_piece(void *context, int32_t k)
{
    ugrid_i_points_split *split = (ugrid_i_points_split *)context;
    ugrid_i_points at = *split->at;
    ugrid_i_queries *const queries = &at.queries;
    int32_t const first = ugrid_i_cut(queries->m, split->pieces, k);
    queries->points = ugrid_i_from(queries->points, queries->stride, first);
    at.word += first;
    queries->m = at.section = ugrid_i_cut(queries->m, split->pieces, k + 1) - first;
    at.begin[0] = split->total[k];
    if (split->fill) ugrid_i_fill_points(&at, split->radius);
    else split->total[k] = ugrid_i_count_points(&at, split->radius);
}

/* All rows in pieces. 0: a section has 2^32 entries, or it is not worth it. */
static int ugrid_i_points_in_pieces(ugrid_i_points *at, ugrid_real radius, ugrid_result *result)
{
    const ugrid_parallel *parallel = &at->grid->desc.parallel;
    int32_t const m = at->queries.m;
    ugrid_i_points_split split;
    int32_t k;
    memset(&split, 0, sizeof split);
    split.at = at;
    split.radius = radius;
    split.pieces = ugrid_i_pieces(parallel, m, UGRID_I_PIECE);
    if (split.pieces < 2) return 0;
    at->total = 0;
    *result = ugrid_i_in_pieces(parallel, split.pieces, ugrid_i_points_piece, &split);
    if (*result == UGRID_OK) {
        for (k = 0; k < split.pieces; k++) if (split.total[k] < 0) return 0;
        at->total = at->word[m] = ugrid_i_begins(split.total, split.pieces);
        split.fill = 1;
        *result = ugrid_i_in_pieces(parallel, split.pieces, ugrid_i_points_piece, &split);
    }
    if (*result != UGRID_OK) memset(at->word, 0, ((size_t)m + 1) * sizeof *at->word);
    return 1;
}

/* ugrid_i_query_rows, but for a few queries, and for lists of which a section has 2^32 entries. */
static int ugrid_i_queries_faster(const ugrid_i_queries *queries, ugrid_i_list *list,
                                  ugrid_real radius, ugrid_result *result)
{
    ugrid_i_points at;
    if (queries->m < UGRID_I_FEW || list->grid->n == 0) return 0;
    at.grid = list->grid;
    at.queries = *queries;
    at.section = queries->m / UGRID_I_SECTIONS + 1;
    at.word = list->offsets;
    at.ids = list->ids;
    at.capacity = list->capacity;
    *result = UGRID_OK;
    if (!ugrid_i_points_in_pieces(&at, radius, result)) {
        if (ugrid_i_count_points(&at, radius) < 0) return 0;
        ugrid_i_fill_points(&at, radius);
        at.word[queries->m] = at.total;
    }
    list->total = at.total;
    return 1;
}

/* ----------------------------------------------------------------------------------------------
   >>parallel-attributes: gather and scatter by places, sums by cells
   ---------------------------------------------------------------------------------------------- */

typedef struct ugrid_i_places {
    const ugrid *grid;
    ugrid_i_range_fn *work;
    const void *context;
    int32_t pieces;
} ugrid_i_places;

/* The work on the places of a piece. */
static void ugrid_i_places_piece(void *context, int32_t k)
{
    const ugrid_i_places *all = (const ugrid_i_places *)context;
    int32_t const n = all->grid->n;
    all->work(all->context, ugrid_i_cut(n, all->pieces, k), ugrid_i_cut(n, all->pieces, k + 1));
}

/* work(context, 0, n) in pieces. */
static int ugrid_i_places_faster(const ugrid *grid, ugrid_i_range_fn *work, const void *context,
                                 ugrid_result *result)
{
    const ugrid_parallel *parallel = &grid->desc.parallel;
    ugrid_i_places all = {grid, work, context, 0};
    all.pieces = ugrid_i_pieces(parallel, grid->n, UGRID_I_LIGHT * UGRID_I_PIECE);
    if (all.pieces < 2) return 0;
    *result = ugrid_i_in_pieces(parallel, all.pieces, ugrid_i_places_piece, &all);
    return 1;
}

#endif /* UGRID_PLAIN */

/* ----------------------------------------------------------------------------------------------
   >>validate: are the arrays those of the method?
   ---------------------------------------------------------------------------------------------- */

/* The cell of an entry of the grid; -1: none. */
static int32_t ugrid_i_cell_of_entry(const ugrid *grid, int32_t entry)
{
    ugrid_real p[3];
    ugrid_i_load(grid->pos, grid->stride, grid->desc.dim, entry / grid->spans, p);
    return ugrid_i_entry_number(grid, p, entry / grid->spans, entry % grid->spans);
}

/* Marks an entry as seen: it must exist, be seen for the first time, and belong to cell
   `number`. */
static int ugrid_i_mark_entry(const ugrid *grid, unsigned char *seen, int32_t entry, int32_t number)
{
    if (entry < 0 || entry >= grid->n * grid->spans || seen[entry]) return 0;
    seen[entry] = 1;
    return ugrid_i_cell_of_entry(grid, entry) == number;
}

/* Marks the entries of one cell. Returns their number, or -1. */
static int64_t ugrid_i_mark_cell(const ugrid *grid, unsigned char *seen, int32_t number)
{
    int64_t ticked = 0;
    int32_t k, entry;
    if (grid->start) {
        if (grid->start[number] < 0 || grid->start[number + 1] < grid->start[number] ||
            grid->start[number + 1] > grid->entries)
            return -1;
        for (k = grid->start[number]; k < grid->start[number + 1]; k++, ticked++)
            if (!ugrid_i_mark_entry(grid, seen, grid->order[k], number)) return -1;
    } else if (grid->count) {
        if (grid->count[number] < 0 || grid->count[number] > grid->desc.slots) return -1;
        for (k = 0; k < grid->count[number]; k++, ticked++)
            if (!ugrid_i_mark_entry(grid, seen, grid->slot[ugrid_i_slot(grid, number, k)], number))
                return -1;
    } else {
        for (entry = grid->head[number]; entry != -1; ticked++) {
            /* also at a second visit, so a cycle ends */
            if (!ugrid_i_mark_entry(grid, seen, entry, number)) return -1;
            entry = grid->next ? grid->next[entry] : grid->record[entry].link;
        }
    }
    return ticked;
}

/* Does every place have the record and the inverse of its particle? */
static int ugrid_i_places_agree(const ugrid *grid, unsigned char *seen)
{
    int32_t k, id;
    int a;
    for (k = 0; k < grid->n; k++) {
        id = ugrid_id(grid, k);
        if (ugrid_i_sorted(grid) && k >= grid->entries) { /* left out */
            if (id < 0 || id >= grid->n || seen[id]) return 0;
            seen[id] = 1;
        }
        if (grid->inverse && grid->inverse[id] != k) return 0;
        if (grid->record) {
            ugrid_record const expected = ugrid_i_record(grid, id, id);
            if (ugrid_i_sorted(grid) && grid->record[k].link != id) return 0;
            for (a = 0; a < 3; a++)
                if (memcmp(&grid->record[k].x[a], &expected.x[a], sizeof(ugrid_real)) != 0)
                    return 0;
        }
    }
    return 1;
}

/* Are the arrays consistent? `seen`: a zero for each entry. */
static ugrid_result ugrid_i_validate(const ugrid *grid, unsigned char *seen)
{
    int64_t entries = 0;
    int32_t number, e, left_out = 0;
    for (number = 0; number < grid->cell_count; number++) {
        int64_t const ticked = ugrid_i_mark_cell(grid, seen, number);
        if (ticked < 0) return UGRID_INVALID;
        entries += ticked;
    }
    if (entries != grid->entries) return UGRID_INVALID;
    for (e = 0; e < grid->n * grid->spans; e++) { /* no entry is missing */
        if (!seen[e] && ugrid_i_cell_of_entry(grid, e) >= 0) return UGRID_INVALID;
        left_out += !seen[e] && e % grid->spans == 0; /* the first entry is always in use */
    }
    if (left_out != grid->outside + grid->invalid) return UGRID_INVALID;
    return ugrid_i_places_agree(grid, seen) ? UGRID_OK : UGRID_INVALID;
}

UGRID_API ugrid_result ugrid_validate(const ugrid *grid)
{
    ugrid_result result;
    ugrid_block seen;
    if (!grid) return UGRID_BAD_ARGUMENT;
    if (!grid->built || (grid->n > 0 && !grid->pos)) return UGRID_NOT_BUILT;
    if (grid->n == 0) return UGRID_OK;
    seen.bytes = (size_t)grid->n * (size_t)grid->spans;
    seen.memory = ugrid_i_alloc(&grid->desc.allocator, seen.bytes);
    if (!seen.memory) return UGRID_OUT_OF_MEMORY;
    memset(seen.memory, 0, seen.bytes);
    result = ugrid_i_validate(grid, (unsigned char *)seen.memory);
    ugrid_i_release(&grid->desc.allocator, &seen);
    return result;
}

/* Does the walk around particle i find exactly the neighbours that brute force finds, each once?
   met: [n] zeros, before and after. */
static int ugrid_i_agrees_with_brute_force(const ugrid *grid, ugrid_real radius, int32_t i,
                                           unsigned char *met)
{
    ugrid_real p[3], q[3];
    ugrid_near walk;
    int32_t j;
    int right = 1;
    ugrid_i_load(grid->pos, grid->stride, grid->desc.dim, i, p);
    walk = ugrid_near_within(grid, p, radius);
    ugrid_i_wrap_point(grid, p, p);
    while (ugrid_next(&walk)) {
        ugrid_point(grid, walk.place, q);
        if (ugrid_i_distance2_in_box(grid, p, q) <= radius * radius && met[walk.id]++) right = 0;
    }
    for (j = 0; j < grid->n; j++) {
        ugrid_i_load(grid->pos, grid->stride, grid->desc.dim, j, q);
        if (met[j] != (!ugrid_i_is_left_out(grid, q) &&
                       ugrid_distance2(grid, p, q) <= radius * radius))
            right = 0;
        met[j] = 0;
    }
    return right;
}

UGRID_API ugrid_result ugrid_verify(const ugrid *grid, ugrid_real radius, int32_t samples,
                                    uint32_t seed, int32_t *bad_id)
{
    ugrid_result result;
    ugrid_block met;
    int32_t k;
    if (bad_id) *bad_id = -1;
    if (!grid || samples < 0) return UGRID_BAD_ARGUMENT;
    if (!ugrid_i_radius_valid(radius)) return UGRID_BAD_RADIUS;
    result = ugrid_validate(grid);
    if (result != UGRID_OK || grid->n == 0) return result;
    if (samples > grid->n) samples = grid->n;
    met.bytes = (size_t)grid->n;
    met.memory = ugrid_i_alloc(&grid->desc.allocator, met.bytes);
    if (!met.memory) return UGRID_OUT_OF_MEMORY;
    memset(met.memory, 0, met.bytes);
    for (k = 0; k < samples && result == UGRID_OK; k++) {
        /* evenly spaced, from a start that depends on the seed. 2654435761, near 2^32 / golden
           ratio, spreads small seeds */
        uint64_t const n = (uint64_t)grid->n, start = (uint64_t)(seed * 2654435761u) * n >> 32;
        int32_t const i = (int32_t)((start + (uint64_t)k * n / (uint64_t)samples) % n);
        if (ugrid_i_agrees_with_brute_force(grid, radius, i, (unsigned char *)met.memory)) continue;
        if (bad_id) *bad_id = i;
        result = UGRID_INVALID;
    }
    ugrid_i_release(&grid->desc.allocator, &met);
    return result;
}

/* ----------------------------------------------------------------------------------------------
   >>save: a header, then the arrays without gaps: start, count or head; order; inverse; records, or
   the positions of a grid that borrows them; slots; next
   ---------------------------------------------------------------------------------------------- */

typedef struct ugrid_i_header {
    char magic[8];
    uint32_t byte_order;    /* 0x01020304 as the writer stores it */
    uint32_t version;       /* of this layout */
    int32_t real_bytes;
    int32_t n, entries, cell_count, outside_count;
    int32_t dim, split, flags, buckets, slots, rows;
    int32_t method, placement, walk, cell_order, slot_layout, outside;
    int32_t invalid_count;
    ugrid_real min[3], max[3], cell, size;
    int64_t max_cells;
    uint64_t bytes;         /* of header and arrays */
    uint64_t checksum;      /* of the arrays, and of the header with 0 here */
} ugrid_i_header;

/* The fields of desc that a header has under the same name, and their bits in header.flags (bits 0
   to 2: periodic axes). */
#define UGRID_I_FILE_FIELDS(X) \
    X(dim, int32_t) X(split, int32_t) X(buckets, int32_t) X(slots, int32_t) X(rows, int32_t) \
    X(method, ugrid_method) X(placement, ugrid_placement) X(walk, ugrid_walk) \
    X(cell_order, ugrid_cell_order) X(slot_layout, ugrid_slot_layout) X(outside, ugrid_outside)
#define UGRID_I_FILE_FLAGS(X) \
    X(unbounded, 8) X(no_records, 16) X(inverse, 32) X(grow, 64) X(coherent, 128) \
    X(deterministic, 256) X(skip_invalid, 512)

/* Goes on with a checksum (FNV-1a: Fowler, Noll, Vo), which begins with 0xCBF29CE484222325. */
static uint64_t ugrid_i_checksum(uint64_t sum, const void *bytes, size_t size)
{
    const unsigned char *at = (const unsigned char *)bytes;
    size_t i;
    for (i = 0; i < size; i++) sum = (sum ^ at[i]) * 0x100000001B3ull;
    return sum;
}

/* The checksum of a whole file: its header, with 0 for the checksum, and what follows. */
static uint64_t ugrid_i_file_checksum(const ugrid_i_header *header, const unsigned char *file)
{
    ugrid_i_header blank = *header;
    uint64_t sum;
    blank.checksum = 0;
    sum = ugrid_i_checksum(0xCBF29CE484222325ull, &blank, sizeof blank);
    return ugrid_i_checksum(sum, file + sizeof blank, (size_t)(blank.bytes - sizeof blank));
}

enum { UGRID_I_FILE_PIECES = 6 };

/* Bytes of each array in a file, in their order. */
static void ugrid_i_file_pieces(const ugrid *grid, uint64_t bytes[UGRID_I_FILE_PIECES])
{
    const ugrid_desc *desc = &grid->desc;
    int const starts = ugrid_i_has_starts(desc);
    uint64_t const n = (uint64_t)grid->n, cells = (uint64_t)grid->cell_count,
                   ordered = desc->placement == UGRID_LOOSE ? n : (uint64_t)grid->entries,
                   point = ugrid_i_has_records(desc) ? sizeof(ugrid_record)
                                                     : (size_t)desc->dim * sizeof(ugrid_real);
    bytes[0] = (cells + (starts ? 1 : 0)) * sizeof(int32_t);
    bytes[1] = starts ? ordered * sizeof(int32_t) : 0;
    bytes[2] = ugrid_i_has_inverse(desc) ? n * sizeof(int32_t) : 0;
    bytes[3] = n * point;
    bytes[4] = desc->method == UGRID_FIXED ? cells * (uint64_t)desc->slots * sizeof(int32_t) : 0;
    bytes[5] = desc->method == UGRID_LIST ? n * (uint64_t)grid->spans * sizeof(int32_t) : 0;
}

/* The header of a grid, but for the checksum. */
static ugrid_i_header ugrid_i_header_of(const ugrid *grid)
{
    const ugrid_desc *desc = &grid->desc;
    ugrid_i_header header;
    uint64_t bytes[UGRID_I_FILE_PIECES];
    int k;
    memset(&header, 0, sizeof header);
    memcpy(header.magic, "ugrid.h\n", sizeof header.magic);
    header.byte_order = 0x01020304u;
    header.version = 3; /* 1, 2: other buckets of hashed cells */
    header.real_bytes = (int32_t)sizeof(ugrid_real);
    header.n = grid->n;
    header.entries = grid->entries;
    header.cell_count = grid->cell_count;
    header.outside_count = grid->outside;
    header.invalid_count = grid->invalid;
    for (k = 0; k < 3; k++) if (desc->periodic[k]) header.flags |= 1 << k;
#define UGRID_I_FLAG(field, bit) if (desc->field) header.flags |= bit;
    UGRID_I_FILE_FLAGS(UGRID_I_FLAG)
#undef UGRID_I_FLAG
#define UGRID_I_FIELD(field, type) header.field = (int32_t)desc->field;
    UGRID_I_FILE_FIELDS(UGRID_I_FIELD)
#undef UGRID_I_FIELD
    memcpy(header.min, desc->min, sizeof header.min);
    memcpy(header.max, desc->max, sizeof header.max);
    header.cell = desc->cell;
    header.size = desc->size;
    header.max_cells = desc->max_cells;
    header.bytes = sizeof header;
    ugrid_i_file_pieces(grid, bytes);
    for (k = 0; k < UGRID_I_FILE_PIECES; k++) header.bytes += bytes[k];
    return header;
}

/* Copies an array; returns where the next one goes. */
static unsigned char *ugrid_i_write(unsigned char *to, const void *from, size_t size)
{
    if (size > 0) memcpy(to, from, size);
    return to + size;
}

/* Records (padding is written as 0), or positions. */
static unsigned char *ugrid_i_write_points(unsigned char *to, const ugrid *grid)
{
    size_t const point = (size_t)grid->desc.dim * sizeof(ugrid_real);
    int32_t k;
    for (k = 0; k < grid->n; k++) {
        if (grid->record) {
            ugrid_record record;
            memset(&record, 0, sizeof record);
            memcpy(record.x, grid->record[k].x, sizeof record.x);
            record.link = grid->record[k].link;
            to = ugrid_i_write(to, &record, sizeof record);
        } else to = ugrid_i_write(to, (const char *)grid->pos + grid->stride * (size_t)k, point);
    }
    return to;
}

/* The slots in the order of their indices; those that are not in use as -1. */
static unsigned char *ugrid_i_write_slots(unsigned char *to, const ugrid *grid)
{
    int32_t const by_row = grid->desc.slot_layout == UGRID_SLOTS_BY_ROW, none = -1;
    int32_t const slots = grid->desc.slots, outer = by_row ? grid->cell_count : slots,
                  inner = by_row ? slots : grid->cell_count;
    int32_t i, j;
    for (i = 0; i < outer; i++)
        for (j = 0; j < inner; j++) {
            int32_t const cell = by_row ? i : j, s = by_row ? j : i;
            to = ugrid_i_write(to, s < grid->count[cell]
                                       ? &grid->slot[ugrid_i_slot(grid, cell, s)] : &none,
                               sizeof none);
        }
    return to;
}

/* FIXED: entries in the fullest cell. */
static int32_t ugrid_i_fullest(const ugrid *grid)
{
    int32_t most = 0, c;
    if (!grid->count) return 0;
    for (c = 0; c < grid->cell_count; c++)
        if (grid->count[c] > most) most = grid->count[c];
    return most;
}

UGRID_API ugrid_result ugrid_save(const ugrid *grid, void *bytes, int64_t capacity,
                                  int64_t *needed)
{
    unsigned char *to = (unsigned char *)bytes;
    ugrid_i_header header;
    uint64_t size[UGRID_I_FILE_PIECES];
    const int32_t *by_cell;
    if (!grid || !needed || capacity < 0 || (capacity > 0 && !bytes)) return UGRID_BAD_ARGUMENT;
    *needed = 0;
    if (grid->tight_least < grid->tight_half) return UGRID_BAD_OPTION;
    if (!grid->built || (grid->n > 0 && !grid->record && !grid->pos)) return UGRID_NOT_BUILT;
    if (ugrid_i_fullest(grid) > grid->desc.slots) return UGRID_CELL_FULL;
    header = ugrid_i_header_of(grid);
    *needed = (int64_t)header.bytes;
    if (*needed > capacity) return UGRID_BUFFER_TOO_SMALL;
    ugrid_i_file_pieces(grid, size);
    by_cell = grid->start ? grid->start : grid->count ? grid->count : grid->head;
    to = ugrid_i_write(to + sizeof header, by_cell, (size_t)size[0]);
    to = ugrid_i_write(to, grid->order, (size_t)size[1]);
    to = ugrid_i_write(to, grid->inverse, (size_t)size[2]);
    to = ugrid_i_write_points(to, grid);
    if (grid->slot) to = ugrid_i_write_slots(to, grid);
    (void)ugrid_i_write(to, grid->next, (size_t)size[5]);
    header.checksum = ugrid_i_file_checksum(&header, (const unsigned char *)bytes);
    memcpy(bytes, &header, sizeof header);
    return UGRID_OK;
}

/* A desc with the fields of a header, and the others of `given`. */
static ugrid_desc ugrid_i_desc_of_header(const ugrid_i_header *header, const ugrid_desc *given)
{
    ugrid_desc desc = *given;
    int a;
    for (a = 0; a < 3; a++) desc.periodic[a] = header->flags >> a & 1;
#define UGRID_I_FLAG(field, bit) desc.field = (header->flags & bit) != 0;
    UGRID_I_FILE_FLAGS(UGRID_I_FLAG)
#undef UGRID_I_FLAG
#define UGRID_I_FIELD(field, type) desc.field = (type)header->field;
    UGRID_I_FILE_FIELDS(UGRID_I_FIELD)
#undef UGRID_I_FIELD
    memcpy(desc.min, header->min, sizeof desc.min);
    memcpy(desc.max, header->max, sizeof desc.max);
    desc.cell = header->cell;
    desc.size = header->size;
    desc.max_cells = header->max_cells;
    return desc;
}

/* 1 if ugrid_i_header_of could have made this header, for this many bytes. `*shape`: such a grid,
   without memory. */
static int ugrid_i_header_valid(const ugrid_i_header *header, const ugrid_desc *given,
                                int64_t size, ugrid *shape)
{
    ugrid_desc const desc = ugrid_i_desc_of_header(header, given);
    ugrid_i_header expected;
    memset(shape, 0, sizeof *shape);
    if (ugrid_defaults(&shape->desc, &desc) != UGRID_OK) return 0;
    if (!desc.unbounded && !ugrid_i_box_given(&desc)) return 0;
    if (desc.cell == 0 || header->n < 0 || header->n > UGRID_I_INT_MAX) return 0;
    if (ugrid_i_resolve(shape, header->n) != UGRID_OK) return 0;
    if (ugrid_i_set_rows(shape, header->n) != UGRID_OK) return 0;
    if (header->entries < 0 || header->entries > header->n * shape->spans) return 0;
    if (header->outside_count < 0 || header->outside_count > header->n) return 0;
    if (header->invalid_count < 0 || header->invalid_count > header->n - header->outside_count)
        return 0;
    shape->n = header->n;
    shape->entries = header->entries;
    shape->outside = header->outside_count;
    shape->invalid = header->invalid_count;
    expected = ugrid_i_header_of(shape);
    expected.checksum = header->checksum;
    return memcmp(&expected, header, sizeof expected) == 0 && (uint64_t)size == header->bytes;
}

/* Memory for a grid of this shape. The copy of the positions, where it needs one, takes the block
   of the records. */
static ugrid_result ugrid_i_load_memory(ugrid *grid, const ugrid *shape)
{
    size_t bytes[UGRID_BLOCKS];
    uint64_t piece[UGRID_I_FILE_PIECES];
    ugrid_result result = ugrid_i_resolve(grid, shape->n);
    if (result == UGRID_OK) result = ugrid_i_sizes(grid, shape->n, bytes);
    if (result != UGRID_OK) return result;
    ugrid_i_file_pieces(shape, piece);
    if (piece[3] > SIZE_MAX / 2) return UGRID_OUT_OF_MEMORY;
    bytes[UGRID_I_RECORD] = (size_t)piece[3];
    bytes[UGRID_I_WORK_A] = bytes[UGRID_I_WORK_B] = 0;
    result = ugrid_i_grow(grid, bytes, 0);
    grid->cell_reason = "as it was saved";
    if (result == UGRID_OK) ugrid_i_bind(grid, grid->block);
    return result;
}

/* Fills the arrays of a grid that has the shape and memory for them. */
static void ugrid_i_read_pieces(ugrid *grid, const ugrid *shape, const unsigned char *from)
{
    static const int block[UGRID_I_FILE_PIECES] = {UGRID_I_START,  UGRID_I_ORDER,
                                                   UGRID_I_INVERSE, UGRID_I_RECORD,
                                                   UGRID_I_SLOT,   UGRID_I_NEXT};
    uint64_t piece[UGRID_I_FILE_PIECES];
    int k;
    grid->n = shape->n;
    grid->rows = shape->rows;
    grid->entries = shape->entries;
    grid->outside = shape->outside;
    grid->invalid = shape->invalid;
    grid->stride = (size_t)grid->desc.dim * sizeof(ugrid_real);
    grid->pos = grid->record ? NULL : (const ugrid_real *)grid->block[UGRID_I_RECORD].memory;
    ugrid_i_file_pieces(shape, piece);
    for (k = 0; k < UGRID_I_FILE_PIECES; k++) {
        if (piece[k] > 0) memcpy(grid->block[block[k]].memory, from, (size_t)piece[k]);
        from += piece[k];
    }
}

/* pos[] = the positions in the records, by id; 0 if a record has no id. */
static int ugrid_i_points_of_records(const ugrid *grid, ugrid_real *pos)
{
    int32_t k, id;
    for (k = 0; k < grid->n; k++) {
        id = ugrid_i_sorted(grid) ? grid->record[k].link : k;
        if (id < 0 || id >= grid->n) return 0;
        memcpy(pos + (size_t)id * (size_t)grid->desc.dim, grid->record[k].x, grid->stride);
    }
    return 1;
}

/* The checks of ugrid_validate on what was read; positions are those of the records or the copy. */
static ugrid_result ugrid_i_check_loaded(ugrid *grid)
{
    const ugrid_allocator *allocator = &grid->desc.allocator;
    ugrid_result result = UGRID_OK;
    ugrid_block seen, points;
    seen.bytes = (size_t)grid->n * (size_t)grid->spans + 1;
    seen.memory = ugrid_i_alloc(allocator, seen.bytes);
    points.bytes = grid->record ? (size_t)grid->n * grid->stride + 1 : 0;
    points.memory = points.bytes > 0 ? ugrid_i_alloc(allocator, points.bytes) : NULL;
    if (!seen.memory || (grid->record && !points.memory)) result = UGRID_OUT_OF_MEMORY;
    else memset(seen.memory, 0, seen.bytes);
    if (result == UGRID_OK && grid->record) {
        memset(points.memory, 0, points.bytes);
        grid->pos = (const ugrid_real *)points.memory;
        if (!ugrid_i_points_of_records(grid, (ugrid_real *)points.memory)) result = UGRID_BAD_FILE;
    }
    if (result == UGRID_OK) result = ugrid_i_validate(grid, (unsigned char *)seen.memory);
    if (grid->record) grid->pos = NULL;
    ugrid_i_release(allocator, &seen);
    ugrid_i_release(allocator, &points);
    return result == UGRID_INVALID ? UGRID_BAD_FILE : result;
}

/* Empties the grid and takes over the desc of a file whose header and checksum are right. */
static ugrid_result ugrid_i_load_begin(ugrid *grid, const ugrid_desc *desc, const void *bytes,
                                       int64_t size, ugrid *shape)
{
    ugrid_i_header header;
    ugrid_desc given;
    ugrid_result result;
    memset(&given, 0, sizeof given);
    if (desc) {
        given.allocator = desc->allocator;
        given.cuda_allocator = desc->cuda_allocator;
        given.parallel = desc->parallel;
    }
    grid->desc.grow = 0; /* the slots of an earlier grid do not count */
    result = ugrid_i_begin(grid, &given);
    if (result != UGRID_OK) return result;
    if (size < 0 || (size > 0 && !bytes)) return UGRID_BAD_ARGUMENT;
    if ((uint64_t)size < sizeof header) return UGRID_BAD_FILE;
    memcpy(&header, bytes, sizeof header);
    if (!ugrid_i_header_valid(&header, &given, size, shape)) return UGRID_BAD_FILE;
    if (ugrid_i_file_checksum(&header, (const unsigned char *)bytes) != header.checksum)
        return UGRID_BAD_FILE;
    return ugrid_i_begin(grid, &shape->desc);
}

UGRID_API ugrid_result ugrid_load(ugrid *grid, const ugrid_desc *desc, const void *bytes,
                                  int64_t size)
{
    ugrid shape;
    ugrid_result result;
    if (!grid) return UGRID_BAD_ARGUMENT;
    result = ugrid_i_load_begin(grid, desc, bytes, size, &shape);
    if (result == UGRID_OK) result = ugrid_i_load_memory(grid, &shape);
    if (result != UGRID_OK) return result;
    ugrid_i_read_pieces(grid, &shape, (const unsigned char *)bytes + sizeof(ugrid_i_header));
    result = ugrid_i_check_loaded(grid);
    grid->built = result == UGRID_OK;
    if (grid->built) grid->needed_slots = ugrid_i_fullest(grid);
    else {
        grid->n = grid->rows = grid->entries = grid->outside = grid->invalid = 0;
        grid->pos = NULL;
    }
    return result;
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
} /* extern "C" */
#endif

#ifdef UGRID_CUDA
#include "cuda/ugrid.cu" /* its second part */
#endif

#endif /* UGRID_IMPLEMENTATION */

/* ----------------------------------------------------------------------------------------------
   >>parts: files of the folder more (>>options); each has guards of its own
   ---------------------------------------------------------------------------------------------- */
#ifdef UGRID_WITH_TUNE
#if defined(__has_include)
#if !__has_include("more/ugrid_tune.h")
#error "ugrid.h: UGRID_WITH_TUNE needs the file more/ugrid_tune.h: \
copy the folder more beside ugrid.h"
#endif
#endif
#include "more/ugrid_tune.h"
#endif
#ifdef UGRID_WITH_NEAREST
#if defined(__has_include)
#if !__has_include("more/ugrid_nearest.h")
#error "ugrid.h: UGRID_WITH_NEAREST needs the file more/ugrid_nearest.h: \
copy the folder more beside ugrid.h"
#endif
#endif
#include "more/ugrid_nearest.h"
#endif

#if defined(__cplusplus) && (defined(__GNUC__) || defined(__clang__))
#pragma GCC diagnostic pop
#endif

#if defined(UGRID_I_STRICT_CLANG)
#pragma float_control(pop)
#undef UGRID_I_STRICT_CLANG
#elif defined(UGRID_I_STRICT_MSVC)
#pragma float_control(pop)
#pragma fp_contract(on) /* as /fp:fast has it, where alone this is read */
#undef UGRID_I_STRICT_MSVC
#elif defined(UGRID_I_STRICT_GCC)
#pragma GCC pop_options
#undef UGRID_I_STRICT_GCC
#endif

/* ----------------------------------------------------------------------------------------------
   >>licence
   ----------------------------------------------------------------------------------------------
   nearfield is available under two licenses: choose whichever you prefer.
   SPDX-License-Identifier: MIT OR Unlicense

   ALTERNATIVE A - MIT License
   Copyright (c) 2026 nearfield authors
   Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
   associated documentation files (the "Software"), to deal in the Software without restriction,
   including without limitation the rights to use, copy, modify, merge, publish, distribute,
   sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
   furnished to do so, subject to the following conditions:
   The above copyright notice and this permission notice shall be included in all copies or
   substantial portions of the Software.
   THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
   NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
   NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
   DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
   OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

   ALTERNATIVE B - Public Domain (www.unlicense.org)
   This is free and unencumbered software released into the public domain.
   Anyone is free to copy, modify, publish, use, compile, sell, or distribute this software, either
   in source code form or as a compiled binary, for any purpose, commercial or non-commercial, and
   by any means.
   In jurisdictions that recognize copyright laws, the author or authors of this software dedicate
   any and all copyright interest in the software to the public domain. We make this dedication for
   the benefit of the public at large and to the detriment of our heirs and successors. We intend
   this dedication to be an overt act of relinquishment in perpetuity of all present and future
   rights to this software under copyright law.
   THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
   NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
   NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
   LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN
   CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
*/
