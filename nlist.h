/* nlist.h - v0.2.0 - neighbour and contact lists with history for particles, for C99 and CUDA.
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   Neighbour lists within a cutoff (Verlet lists) and contact lists, as particle methods use them
   (DEM, MD, SPH), in 2D and 3D. The serial code and CUDA give the same bits.

   - The search is done by a grid (ugrid.h), a tree (lbvh.h) or brute force; or you give the pairs.
   - Four layouts: fixed slots per row, pairs behind a counter, both together, and CSR.
   - A contact keeps bytes of its own, its history, while it lasts, also when particles are
     renumbered. Events report the contacts that began, persist and ended. (With a skin: nlist_touch
     says which touch.)
   - Spheres against a triangle mesh: one contact for each face, edge or vertex that is touched.
   - Full lists, or half lists with each pair once (Newton's third law); periodic boxes by the
     minimum-image convention; masks, exclusions, a Verlet skin.
   - Parts, in the folder more: boxes of any shape with all images within reach, many systems, the
     k nearest (nlist_boxes.h); when to build, with what skin, by which search (nlist_tune.h).
   - A callback for each contact, with sums per particle: by atomics, by reductions in a warp, or in
     fixed point, which does not depend on the order.

   >>contents: the banners in order; search for >>, the name and a colon

       manual          use, example, options, rules, layout, history, mesh, limits, not-here,
                       literature, changes
       declarations    strict-math, config, results, parallel, desc, list, api
       per element     numbers, match, each, carry, walls, units
       the method      blocks, build
       more of it      sources, skin, remap, process; resolve, memory
       faster forms    faster, parallel-run, carry-rows, parallel-build, parallel-find, find-lbvh,
                       find-mesh
       stored, checked save, reserve, validate
       CUDA            cuda-api, cuda-templates; cuda/nlist.cu and cuda/nlist_templates.cu have
                       lists of their own
       end             parts, licence

   To learn it from this file, read the figure at >>list; then, from top to bottom, >>match, >>each
   and >>carry (which pairs are listed, how a row is read, how a contact is found again), and the
   method itself, >>build; then >>skin, >>remap and >>process, as you need them. The rest makes it
   faster, or stores and checks lists.

   >>use

   In one C or C++ file:             #include "ugrid.h"     (or lbvh.h, or both: the sources; their
                                                             own IMPLEMENTATION macros apply)
                                     #define NLIST_IMPLEMENTATION
                                     #include "nlist.h"
   everywhere else:                  #include "ugrid.h"
                                     #include "nlist.h"
   on the GPU, in one .cu file:      UGRID_CUDA, LBVH_CUDA as told there, and
                                     #define NLIST_IMPLEMENTATION
                                     #define NLIST_CUDA
                                     #include "nlist.h"     (the folder cuda beside it)
   and in every file that calls it:  #define NLIST_CUDA before the include
                                     (C files too: they need no CUDA header)

   nlist_build_brute and _pairs need no other header. nlist_build_ugrid is there where ugrid.h was
   included before nlist.h, nlist_build_lbvh and nlist_build_mesh where lbvh.h was. A part is added
   by its macro (>>options), in every file that uses it and in the one with NLIST_IMPLEMENTATION.

   Build: cc -O3 program.c          GPU: nvcc -O3 -arch=native program.cu
   The bits are the same with -march=native, where gcc would fuse products with sums. Where a
   compiler keeps more digits (32-bit x86), add -msse2 -mfpmath=sse: else results can differ in the
   last bit. Under -ffast-math (-Ofast, /fp:fast) pragmas compile this header without it. The
   results are the same, except that denormals count as zero where the flag links a start file that
   says so. clang with FMA: add -ffp-contract=off after that flag.

   >>example: compiles as it stands

       #define UGRID_IMPLEMENTATION
       #include "ugrid.h"
       #define NLIST_IMPLEMENTATION
       #include "nlist.h"
       #include <stdio.h>

       int main(void)
       {
           float pos[] = {0.10f, 0.10f, 0.10f,   0.12f, 0.10f, 0.10f,   0.90f, 0.90f, 0.90f};
           ugrid grid = {0};
           ugrid_desc cells = {0};
           nlist list = {0};
           nlist_desc desc = {0};
           int step, contacts = 0;
           cells.max[0] = cells.max[1] = cells.max[2] = 1;       // the box 0 .. 1
           cells.cell = 0.05f;
           desc.radius = 0.05f;                                  // pairs up to it are listed,
           desc.half = 1;                                        // each pair once,
           desc.history = sizeof(float);                         // and every pair keeps a number
           for (step = 0; step < 3; step++) {
               nlist_each e;
               nlist_result r;
               ugrid_build(&grid, &cells, pos, 0, 3);
               r = nlist_build_ugrid(&list, &desc, &grid, pos, 0, 3);
               if (r != NLIST_OK) { puts(nlist_result_text(r)); return 1; }
               e = nlist_of(&list, 0);
               while (nlist_next(&e)) {
                   float *steps_together = (float *)e.history;   // 0 when the contact begins
                   *steps_together += 1;
                   printf("0 and %d have been together for %g steps\n", e.id, *steps_together);
                   contacts++;
               }
           }
           nlist_free(&list);
           ugrid_free(&grid);
           return contacts == 3 ? 0 : 1;
       }

   >>options

       name                  default   where               meaning (parts: the folder more)
       NLIST_IMPLEMENTATION  -         one file            makes the functions
       NLIST_CUDA            -         all files, or none  adds the GPU functions
       NLIST_STATIC          -         each file           functions are static: a copy in each file
                                                           (each then implements, too; a layout has
                                                           this name)
       NLIST_API             extern    all files           linkage of the functions (dllexport)
       NLIST_REAL            float     all files           float or double, as in ugrid.h and
                                                           lbvh.h; a mix does not link
       NLIST_WITH_BOXES      -         users, and the      adds more/nlist_boxes.h
       NLIST_WITH_TUNE       -         one file            adds more/nlist_tune.h
       NLIST_PLAIN           -         the file that       the text of >>build alone, without its
                                       implements          faster forms and tasks; the lists are
                                                           the same

   >>rules

   Words    row         the partners of one particle; an entry is one partner in one row
            contact     a listed pair, touching or not: one entry in half lists, two in full ones
            reach       cutoff: i and j are listed up to radius + radii[i] + radii[j] + skin
            slots       a fixed number of places per row; entries without a slot are the rest
            source      broad phase: what finds the candidates (grid, tree, pairs, triangles)
            generation  the arrays of one build
            carry       contact tracking: a new list takes the history of contacts from the old one
            wander      a contact with a mesh continues on a neighbouring triangle, with its history
   Memory   Only builds, nlist_reserve, nlist_remap, nlist_sum with a unit, nlist_load,
            nlist_validate and nlist_verify allocate, by desc.allocator (nlist_cuda_... as told
            there). Memory grows and is kept. An array that is too small grows by half at least.
            Where memory has no such block a build counts on, takes what is needed, and searches
            once more. A first build and a reserve take exactly the size needed. Bytes per particle
            and per entry, in float:
               STATIC   4 + 4 width
               DYNAMIC  12, and 12 an entry
               COMPACT  12, and 4 an entry
               HYBRID   8 + 4 width, and 12 an entry of the rest
               skin     12 a particle (2D: 8)
            Lists with history or events keep two generations, the last and the one before; others
            only after a nlist_remap. An entry takes desc.history bytes more, and events 48 (49 with
            desc.contacts). After a nlist_remap, half lists with either take 8 a particle more. Work
            space, serial: 12 a particle, 4 to 8 an entry; half lists by a grid 4 more of each;
            lists of triangles up to 172 a particle more (double 220).
            CUDA: 16 a particle where rows are counted first, with a grid; with history, 8 an entry
            that has no slot, where a row is long.
   Threads  There is no global state. Any number of threads may read one list; one at a time may
            build it. One build uses many threads, yours, through desc.parallel (>>parallel).
            nlist_sum calls your function in the calling thread.
   Errors   Every function that can fail returns a nlist_result, and nlist_result_text names the
            field to change. Nothing is printed and nothing aborts. No result is truncated silently:
            on overflow the exact size needed is returned. A refused build leaves the list as it
            was, with its history (or empty: out of memory in a build without history or events).
   Built    A call that reads a list returns NLIST_NOT_BUILT before the first build, and after
            nlist_reserve and nlist_free. A list of no particles is built. (nlist_moved needs no
            list: its answer is to build.)
   Units    Those of your positions. Radii are distances, not squares. The test is <= everywhere: a
            particle at the reach is listed.
   Ids      int32_t, 0 .. n-1 in the order of your array. Totals and offsets are int64_t. A particle
            is never its own neighbour; others at the same point are.
   Order    Row i holds the partners of particle i in the order of the source: ugrid.h that of its
            lists, lbvh.h by place, brute force and pairs by ascending id. CUDA half lists from a
            tree or a `coherent` grid have any order in a row, unless desc.deterministic.
   Half     A pair is in one row, that of the lower id. In lists with history or events it stays in
            the row of that particle through every nlist_remap, as long as the list exists. So the
            data that you keep about a contact never changes its sign. (UGRID_HALF of ugrid.h is
            another rule: mostly the lower place, which costs no sorting, and changes as particles
            move.)
   Ghosts   With desc.rows the particles from there on are ghosts, such as copies of particles of
            another domain: partners that own no row. The pair of a local and a ghost is in the row
            of the local, half or not. A contact whose row would move, because a local has become a
            ghost or a ghost a local, begins anew. nlist_sum adds the shares of ghosts in half
            lists, too: sums has n rows.
   Bits     Serial builds are reproducible. CUDA with desc.deterministic (and a source whose order
            is defined) makes the same lists, events and history, bit for bit; sums too: see
            nlist_sums.

   >>layout: which one (figure: >>list)

       STATIC     `width` slots per particle, for rows of known length: a longer one is an error
                  that returns the number of slots needed. (Kureck, 4.1; with history he has slots
                  with a rest only, 5.5.)
       DYNAMIC    pairs behind one counter, for lists where few particles have partners (walls), or
                  where most entries do no work. The entries of a row are chained as they are
                  written; Kureck (4.2) sorts them to find a row.
       COMPACT    rows of exact length one after the other (CSR), for many neighbours (SPH, MD), and
                  for use by other programs. The CUDA build searches twice, to count and to fill;
                  Kureck (figure 4.2) sorts.
       HYBRID     `width` slots, and a DYNAMIC rest for what does not fit: the robust choice where
                  row lengths vary (Kureck, 4.3). His best width was 8 for spheres, and 0 to 4 for
                  tablets, whose entries are not all collisions (tables 6.2 to 6.5).

   >>history: what a contact keeps (how it is carried: >>carry)

   desc.history bytes belong to every entry: all zero when the contact begins, yours to read and
   write while it lasts. The carry keeps them when the list is built again, in any layout, and when
   particles are sorted, inserted or deleted (nlist_remap). In full lists the two entries of a pair
   have bytes of their own. An example is the tangential spring of a friction law (Kureck, sections
   2.4.3 and 4.4):

       theta_ij(t) = integral of v_t from t0, when the contact began, to t       (equation 2.4)
       each step: theta += v_t dt

   Events (desc.events) come from the same comparison of old and new rows: arrays of begun,
   persisting and ended contacts, each pair once.

   A pair that is listed need not touch: with a skin, or where radius is more than a touch, it stays
   listed after it has separated, and keeps its bytes: a spring that outlives its contact is wrong
   physics. So say in each step which entries touch: history is zero when a contact begins again.

       while (nlist_next(&e)) {                        or, with desc.contacts, by nlist_sum or
           if (!nlist_touch(&e, overlap > 0)) continue;   nlist_cuda_sum: a function that returns
           ... e.history ...                              0 says that the two do not touch
       }

       the list                   history lasts while     events tell
       no skin, reach = touch     the pair is listed      which contacts began, persist, ended
       a skin, no nlist_touch     the pair is listed (!)  of entries: too early, too late, too few
       nlist_touch in each step   the two touch           of entries
       ... and desc.contacts      the two touch           of contacts

   Events of desc.contacts come with the next build: a contact began since the last one and is still
   there; was there, and has been ever since; or was there and has ended. One that ended and began
   again is in both arrays; one that began and ended between two builds in none.
   With desc.contacts an entry is no contact before the first step that says so. The last bytes of
   one that ended are zero, unless it left the list while it touched.
   Costs: docs/performance-gpu.md, tests/bench/bench_nlist --only history.

   >>mesh: contacts with triangles (figure: >>walls)

   nlist_build_mesh lists particles against triangles. A face, edge or vertex that several triangles
   share is listed once. Entries are keys: nlist_key_triangle(e.id) and nlist_key_feature(e.id), a
   face, an edge or a vertex of it. History belongs to the key. When a contact moves across an edge
   to the next triangle, the wander search takes its history along.

   >>limits

   n up to 2^31 - 1024; entries of DYNAMIC, and of the rest of HYBRID, up to 2^31 - 1024, others
   2^62; width up to 1024; history up to 4096 bytes. Distances in a periodic box are to the nearest
   image: no reach may exceed half of a period (more/nlist_boxes.h: any reach). Triangles: 2^28, 3D,
   not periodic. The square of the reach must be a normal number.

   >>not-here

   Neighbour search (ugrid.h, lbvh.h, more/nlist_boxes.h); force laws (one: examples/common/dem.h);
   integration; file formats, threads, timers.

   >>literature

   Kureck    H. G. Kureck, Design and Implementation of Massively Parallel Algorithms on GPUs for
             Particle Simulation, master's thesis, TU Graz 2016: layouts 4.1 to 4.3, processing 5.1
             to 5.3, walls 5.4, history 2.4.3, 4.4 and 5.5, sorted particles 5.5.1. Not from there:
             skin, chains, carrying by comparison, the choice among triangles, sums in units.
   Blog      NVIDIA developer blog: Faster Parallel Reductions on Kepler; Voting and Shuffling to
             Optimize Atomic Operations; Warp-Aggregated Atomics.
   Verlet    L. Verlet, Computer "Experiments" on Classical Fluids, Physical Review 159, 1967 (the
             skin).

   >>changes

   0.2.0  2026-11-28. Boxes of any shape (a part), a skin chosen by measuring (a part); rows for
          some; particles that are not finite left out; tasks; nlist_touch. Files of 0.1.0 are
          refused.
   0.1.0  first version
*/

/* The option NLIST_STATIC ends here: further down the name is that of a layout. */
#ifdef NLIST_STATIC
#ifndef NLIST_API
#if defined(__GNUC__) || defined(__clang__)
#define NLIST_API __attribute__((unused)) static
#else
#define NLIST_API static inline
#endif
#endif
#undef NLIST_STATIC
#endif

/* ----------------------------------------------------------------------------------------------
   >>strict-math: -ffast-math and its parts (-Ofast, -ffinite-math-only, /fp:fast ...) are disabled
   here. From here to the end of this file the compiler respects NaN, infinity and the order of
   roundings. After it the caller's options apply again.
   ---------------------------------------------------------------------------------------------- */
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0) || \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || \
    defined(__NO_SIGNED_ZEROS__) || defined(_M_FP_FAST)
#define NLIST_I_FAST_MATH
#if defined(__clang__) && \
    (defined(__i386__) || defined(__x86_64__) || defined(_M_X64) || defined(__s390x__) || \
     defined(__powerpc64__) || __clang_major__ >= 16) && \
    __clang_major__ >= 11 && !defined(__wasm__)
#define NLIST_I_STRICT_CLANG
#if defined(__FMA__) || !(defined(__i386__) || defined(__x86_64__) || defined(_M_X64))
#define NLIST_I_KEEP_BY_ASM
#endif
#pragma float_control(push)
#pragma float_control(precise, on)
#pragma clang fp contract(off)
#elif defined(_MSC_VER) && !defined(__clang__)
#define NLIST_I_STRICT_MSVC
#pragma float_control(precise, on, push)
#pragma fp_contract(off)
#elif defined(__GNUC__) && !defined(__clang__) && !defined(__INTEL_COMPILER) && \
    !defined(__NVCOMPILER)
#define NLIST_I_STRICT_GCC
#if __GNUC__ >= 12 && !defined(__NVCC__)
#define NLIST_I_KEEP_BY_BARRIER
#elif !defined(__CUDA_ARCH__)
#define NLIST_I_KEEP_BY_ASM
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
#elif defined(NLIST_IMPLEMENTATION)
#error "nlist.h: this compiler cannot keep the order of roundings: compile without -ffast-math"
#endif
#elif defined(__GNUC__) && !defined(__clang__) && !defined(__CUDA_ARCH__) && \
    (defined(__FMA__) || !(defined(__i386__) || defined(__x86_64__)))
/* gcc fuses a product with a sum, unless -std=c99 or its like is given. */
#define NLIST_I_KEEP_BY_ASM
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

#ifndef NLIST_H
#define NLIST_H

#include <math.h>   /* sqrt, where there is no instruction for it; NAN */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NLIST_VERSION_MAJOR 0
#define NLIST_VERSION_MINOR 2
#define NLIST_VERSION_PATCH 0

/* ----------------------------------------------------------------------------------------------
   >>config: compile-time choices (>>options says where each must be defined)
   ---------------------------------------------------------------------------------------------- */

#ifndef NLIST_REAL
#define NLIST_REAL float
#endif

/* 1 for float, 2 for double: numbers that the preprocessor can compare. */
#define NLIST_I_REAL_float  1
#define NLIST_I_REAL_double 2
#define NLIST_I_PASTE(a, b) a##b
#define NLIST_I_KIND_OF(real) NLIST_I_PASTE(NLIST_I_REAL_, real)
#define NLIST_I_REAL_KIND NLIST_I_KIND_OF(NLIST_REAL)

#if NLIST_I_REAL_KIND != 1 && NLIST_I_REAL_KIND != 2
#error "nlist.h: NLIST_REAL must be float or double"
#endif

#if defined(UGRID_H) && 10000 * UGRID_VERSION_MAJOR + 100 * UGRID_VERSION_MINOR + \
    UGRID_VERSION_PATCH != 10000 * NLIST_VERSION_MAJOR + 100 * NLIST_VERSION_MINOR + \
    NLIST_VERSION_PATCH
#error "nlist.h and ugrid.h are of different versions: copy both from one release"
#endif

#if defined(LBVH_H) && 10000 * LBVH_VERSION_MAJOR + 100 * LBVH_VERSION_MINOR + \
    LBVH_VERSION_PATCH != 10000 * NLIST_VERSION_MAJOR + 100 * NLIST_VERSION_MINOR + \
    NLIST_VERSION_PATCH
#error "nlist.h and lbvh.h are of different versions: copy both from one release"
#endif

/* Which headers can be sources: decided where this file is included first. */
#ifdef UGRID_H
#define NLIST_I_UGRID
#endif
#ifdef LBVH_H
#define NLIST_I_LBVH
#endif
#if defined(UGRID_H) && defined(UGRID_CUDA)
#define NLIST_I_UGRID_CUDA
#endif
#if defined(LBVH_H) && defined(LBVH_CUDA)
#define NLIST_I_LBVH_CUDA
#endif

#if defined(UGRID_H) && NLIST_I_REAL_KIND != UGRID_I_REAL_KIND
#error "nlist.h: NLIST_REAL and UGRID_REAL must be the same"
#endif

#if defined(LBVH_H) && NLIST_I_REAL_KIND != LBVH_I_REAL_KIND
#error "nlist.h: NLIST_REAL and LBVH_REAL must be the same"
#endif

#if defined(NLIST_IMPLEMENTATION) && defined(NLIST_CUDA) && !defined(__CUDACC__)
#error "nlist.h: NLIST_IMPLEMENTATION with NLIST_CUDA needs nvcc: put both into one .cu file"
#endif

#ifndef NLIST_API
#define NLIST_API extern
#endif

/* Functions of one element, shared by CPU and GPU: `static inline` in C, and under nvcc also for
   the device. NLIST_FN_WALK marks those of an innermost loop: they are inlined in large files
   too. In a file with -ffast-math, gcc does not inline a function that respects NaN and the order
   of roundings. These are therefore compiled with the caller's options, and nlist_i_kept keeps
   their order of operations. */
#ifdef __CUDACC__
#include <cuda_runtime.h>
#if defined(NLIST_I_FAST_MATH) && !defined(__CUDA_ARCH__)
#define NLIST_FN static __host__ __device__ inline
#else
#define NLIST_FN static __host__ __device__ __forceinline__
#endif
#define NLIST_FN_WALK static __host__ __device__ __forceinline__
#else
#define NLIST_FN static inline
#ifdef __GNUC__
#define NLIST_FN_WALK static inline __attribute__((always_inline))
#else
#define NLIST_FN_WALK static inline
#endif
#endif

/* In a double build every function gets a second name. So a program that mixes float and double
   builds does not link, instead of computing wrong numbers. */
#if NLIST_I_REAL_KIND == 2 && !defined(NEARFIELD_NAMESPACE)
#define nlist_version           nlist_f64_version
#define nlist_result_text       nlist_f64_result_text
#define nlist_defaults          nlist_f64_defaults
#define nlist_reserve           nlist_f64_reserve
#define nlist_build_brute       nlist_f64_build_brute
#define nlist_build_pairs       nlist_f64_build_pairs
#define nlist_build_ugrid       nlist_f64_build_ugrid
#define nlist_build_lbvh        nlist_f64_build_lbvh
#define nlist_build_mesh        nlist_f64_build_mesh
#define nlist_free              nlist_f64_free
#define nlist_bytes             nlist_f64_bytes
#define nlist_moved             nlist_f64_moved
#define nlist_remap             nlist_f64_remap
#define nlist_remap_rows        nlist_f64_remap_rows
#define nlist_sum               nlist_f64_sum
#define nlist_pairs             nlist_f64_pairs
#define nlist_save              nlist_f64_save
#define nlist_load              nlist_f64_load
#define nlist_validate          nlist_f64_validate
#define nlist_verify            nlist_f64_verify
#define nlist_cuda_reserve          nlist_f64_cuda_reserve
#define nlist_cuda_build_brute      nlist_f64_cuda_build_brute
#define nlist_cuda_build_pairs      nlist_f64_cuda_build_pairs
#define nlist_cuda_build_ugrid      nlist_f64_cuda_build_ugrid
#define nlist_cuda_build_lbvh       nlist_f64_cuda_build_lbvh
#define nlist_cuda_build_mesh       nlist_f64_cuda_build_mesh
#define nlist_cuda_check            nlist_f64_cuda_check
#define nlist_cuda_free             nlist_f64_cuda_free
#define nlist_cuda_moved            nlist_f64_cuda_moved
#define nlist_cuda_remap            nlist_f64_cuda_remap
#define nlist_cuda_remap_rows       nlist_f64_cuda_remap_rows
#define nlist_cuda_upload           nlist_f64_cuda_upload
#define nlist_cuda_download         nlist_f64_cuda_download
#define nlist_i_cuda_begin_sum      nlist_f64_i_cuda_begin_sum
#define nlist_i_cuda_end_sum        nlist_f64_i_cuda_end_sum
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>results: codes and their texts
   ---------------------------------------------------------------------------------------------- */

/* One list defines the codes and their texts. */
#define NLIST_RESULTS(X) \
    X(NLIST_OK,               "all is well") \
    X(NLIST_BAD_ARGUMENT, \
      "a pointer is NULL, a count is negative, or stride is wrong: it counts bytes (not " \
      "numbers), 0 or a multiple of sizeof(nlist_real), and holds a point (mesh.stride: a " \
      "vertex, or a triangle without indices)") \
    X(NLIST_BAD_DIM, \
      "desc.dim must be 2 or 3 (0 means 3), that of the grid or tree, and 3 for triangles") \
    X(NLIST_BAD_RADIUS, \
      "desc.radius must be positive, or 0 where desc.radii are given, none of them negative, " \
      "radii_stride a multiple of their size; the square of the reach must be a normal number; " \
      "mesh.thickness must not be negative, infinite or above mesh.thickest, which CUDA needs") \
    X(NLIST_BAD_SKIN, \
      "desc.skin must not be negative, and desc.if_moved needs one; lists of given pairs have " \
      "none, and a file without positions cannot serve one") \
    X(NLIST_BAD_OPTION, \
      "desc.layout or how.mode has a value that does not exist, desc.parallel.tasks is not 0 .. " \
      "1024, triangles (also those of a file) meet another layout than NLIST_DYNAMIC, " \
      "desc.shifts, distances, offsets, sorted or nearest (not negative, not with half) meet " \
      "another build than those of boxes (more/nlist_boxes.h, NLIST_WITH_BOXES), or a list from " \
      "boxes is to be saved or verified") \
    X(NLIST_BAD_WIDTH, \
      "desc.width must be 1 .. 1024, for NLIST_HYBRID 0 .. 1024; NLIST_REDUCE needs 1, 2, 4, 8, " \
      "16 or 32") \
    X(NLIST_BAD_HISTORY, \
      "desc.history must be 0 .. 4096 bytes; while a list keeps history or events, desc.history, " \
      "half, dim, contacts (with events) and the kind of list stay as they are") \
    X(NLIST_BAD_CAPACITY,     "desc.capacity must not be negative") \
    X(NLIST_BAD_BOX, \
      "a periodic axis needs desc.min below desc.max, both finite; box.cell: vectors of periodic " \
      "axes are finite and linearly independent (list.bad_id: which box)") \
    X(NLIST_BAD_PERIOD, \
      "triangles meet a periodic axis, or the reach (radius + skin, and twice the largest of " \
      "desc.radii) exceeds half of a period: take a larger box, or nlist_build_box " \
      "(more/nlist_boxes.h), which lists all images") \
    X(NLIST_BAD_STARTS, \
      "starts begins with 0, does not descend, and has one number more than there are systems") \
    X(NLIST_TOO_MANY_IMAGES, \
      "the reach covers 2^31 - 1024 images of a box or more, or a particle is 2^28 periods away " \
      "(list.bad_id: which box): a smaller desc.radius, or a larger box.cell") \
    X(NLIST_BAD_SOURCE, \
      "the grid or tree is not built (look at the result of its build), of another n, leaves " \
      "particles out by desc.outside, or has boxes too far from them, or desc.deterministic " \
      "meets one without a defined order: UGRID_SORT, or deterministic there too") \
    X(NLIST_BAD_EXCLUSIONS, \
      "desc.exclude_start needs desc.exclude, begins with 0 and must not descend (checked by " \
      "serial builds)") \
    X(NLIST_BAD_ALLOCATOR, \
      "desc.allocator needs both alloc and free, or neither, gives memory aligned to 16 bytes, " \
      "and stays the same until nlist_free") \
    X(NLIST_BAD_INDEX, \
      "an id is not in 0 .. n-1, a pair is a particle with itself, two particles get one new " \
      "id, or a triangle names a vertex that is not there: list.bad_id is the first such pair, " \
      "particle or triangle") \
    X(NLIST_BAD_UNIT, \
      "how.unit must be positive and finite; a deterministic list needs one unless it is full " \
      "and processed per particle or by NLIST_REDUCE in slots") \
    X(NLIST_BAD_VALUES,       "how.values must be 1 .. 16, and that of the call") \
    X(NLIST_SUM_OVERFLOW,     "a value is NaN, or 2^40 units or more: a larger how.unit") \
    X(NLIST_NOT_FINITE, \
      "a position or radius is NaN or infinite (CUDA: or a radius negative): list.bad_id is the " \
      "first such particle; desc.skip_invalid leaves out those without a position") \
    X(NLIST_TOO_MANY, \
      "more than 2^31 - 1024 particles or, in NLIST_DYNAMIC and the rest of NLIST_HYBRID, " \
      "entries: use NLIST_COMPACT, or more slots") \
    X(NLIST_ROW_FULL, \
      "a row of NLIST_STATIC has more than desc.width partners (or, with desc.grow, than 1024): " \
      "set it to list.needed_width, up to 1024, set desc.grow, or use NLIST_HYBRID") \
    X(NLIST_LIST_FULL, \
      "the entries exceed desc.capacity: set it to list.needed_entries, or set desc.grow") \
    X(NLIST_BUFFER_TOO_SMALL, \
      "the caller's array is too small: the size needed was returned, and is exact") \
    X(NLIST_OUT_OF_MEMORY, \
      "an allocation failed: desc.allocator or malloc returned NULL; list.needed_entries " \
      "(nlist_search_box: arrays.count) says how many entries need memory, or 0: not known") \
    X(NLIST_NOT_BUILT, \
      "the list holds nothing this call can use: build it first (of no particles is a build, " \
      "too)") \
    X(NLIST_BAD_FILE, \
      "these bytes are not a list in this version's format (those of 0.1.0 are not: build and " \
      "save again), with this real type and byte order, undamaged") \
    X(NLIST_INVALID,          "nlist_validate or nlist_verify found the structure damaged") \
    X(NLIST_CUDA_ERROR,       "a CUDA call failed: list.cuda_error has its cudaError_t") \
    X(NLIST_BAD_ROWS, \
      "desc.rows must be 0 .. n (0 means n), or NLIST_NO_ROWS") \
    X(NLIST_NOT_RUN, \
      "desc.parallel.run returned before it had run every task: it must call each, once")

#define NLIST_I_CODE(code, text) code,
typedef enum nlist_result { NLIST_RESULTS(NLIST_I_CODE) NLIST_RESULT_COUNT } nlist_result;

/* ----------------------------------------------------------------------------------------------
   >>parallel: a hook for threads of yours, as in ugrid.h (example: >>parallel there). The list, its
   history and its events are those of the serial build, bit for bit, for any number of tasks in any
   order.

   In tasks run: nlist_build_ugrid and nlist_build_lbvh; of the other serial builds and of
   nlist_remap what follows the search (layout, history, events); the builds and searches of boxes.
   nlist_sum calls your function in the calling thread. CUDA builds ignore the hook. A task needs
   the stack of a search (>>rules in ugrid.h) and allocates nothing. The hook is called from 4,096
   particles on (of a grid, a tree, a box), and for what follows the search from 32,768.

   NLIST_NOT_RUN: a task was left out. A search that fails so leaves the list as it was. If it was a
   later step, a list with history or events is as it was, but without events and without its
   generation before; any other list is empty.
   ---------------------------------------------------------------------------------------------- */

typedef void nlist_task(void *context, int32_t index);
typedef void nlist_run(nlist_task *task, void *context, int32_t tasks, void *user);

typedef struct nlist_parallel {
    nlist_run *run;     /* calls task(context, 0 .. tasks-1), each once, in any order, on any
                           threads, and returns when all are done (default, NULL: serial) */
    void *user;         /* passed to run */
    int32_t tasks;      /* into how many pieces to cut at most, some times the number of threads;
                           fewer where the work is not worth it; 0 and 1: serial; at most 1024 */
} nlist_parallel;

/* ----------------------------------------------------------------------------------------------
   >>desc: what to build. All zero but the radius is valid; every field says its default.
   ---------------------------------------------------------------------------------------------- */

typedef NLIST_REAL nlist_real;

/* How the entries are stored (>>layout). */
typedef enum nlist_layout {
    NLIST_COMPACT = 0,  /* rows of exact length, one after the other (Kureck figure 4.2) */
    NLIST_STATIC,       /* desc.width slots per row (Kureck section 4.1) */
    NLIST_DYNAMIC,      /* pairs behind one counter (Kureck section 4.2) */
    NLIST_HYBRID        /* slots, and a dynamic rest (Kureck section 4.3) */
} nlist_layout;

/* What alloc returns must be aligned to 16 bytes; else NLIST_BAD_ALLOCATOR. */
typedef struct nlist_allocator {
    void *(*alloc)(size_t bytes, void *user);
    void (*free)(void *memory, size_t bytes, void *user);
    void *user;
} nlist_allocator;

struct CUstream_st; /* cudaStream_t is a pointer to it: plain C needs no CUDA header */

/* Device memory for nlist_cuda. What alloc returns must be usable in order on `stream`, and aligned
   to 256 bytes. */
typedef struct nlist_cuda_allocator {
    void *(*alloc)(size_t bytes, struct CUstream_st *stream, void *user);
    void (*free)(void *memory, size_t bytes, struct CUstream_st *stream, void *user);
    void *user;
} nlist_cuda_allocator;

enum { NLIST_NO_ROWS = -1 }; /* desc.rows: all particles are ghosts */

/* Fields that switch something: 0 is off, anything else is on. Arrays are borrowed during a call
   only; CUDA: device memory. */
typedef struct nlist_desc {
    int32_t dim;                /* coordinates per point, 2 or 3 (default: 3) */
    nlist_real radius;          /* i and j are listed when no further apart than radius + radii[i] +
                                   radii[j] + skin (default with radii: 0; else none).
                                   nlist_build_pairs does not test distances. */
    const nlist_real *radii;    /* [n] a radius per particle (default: none, all 0) */
    nlist_real skin;            /* Verlet skin: lists reach this much further and serve several
                                   steps, until nlist_moved finds a particle that has moved by more
                                   than half of it; with history: nlist_touch (default: 0) */
    nlist_layout layout;        /* (default: NLIST_COMPACT) */
    int32_t width;              /* STATIC: slots per row (default: 8 if half, else 16). HYBRID: the
                                   same (default: 0, all entries are in the rest) */
    int32_t half;               /* 1 = each pair once (Newton's third law), in the row of the lower
                                   id, so in that of a local rather than a ghost (default: 0, in
                                   both rows) */
    int32_t rows;               /* particles 0 .. rows-1, the locals, have rows; the others, ghosts,
                                   are partners only, and pairs of ghosts are not searched for
                                   (default: all have rows; NLIST_NO_ROWS: none) */
    int32_t history;            /* bytes kept per entry, while it is listed, or touches (>>history)
                                   (default: 0) */
    int32_t events;             /* 1 = builds fill list.event[], by kind; of entries, or of
                                   desc.contacts (default: 0) */
    const uint32_t *masks;      /* [n] lists only pairs whose masks share a bit (default: all) */
    const int64_t *exclude_start; /* [n + 1] with exclude: pairs that are not listed, such as bonded
                                     ones; one of its rows is enough. Each candidate costs
                                     O(both rows): short ones (default: none) */
    const int32_t *exclude;     /* particle i excludes exclude[exclude_start[i]] ..
                                   exclude[exclude_start[i+1] - 1] */
    int32_t periodic[3];        /* per axis: 1 = the box min .. max repeats. With a grid as source:
                                   the grid's box instead */
    nlist_real min[3], max[3];  /* the box, on periodic axes */
                                /* the next five: builds of boxes only (more/nlist_boxes.h) */
    int32_t shifts;             /* boxes: 1 = entries carry three integers, which image of the
                                   partner's cell (default: 0; 1 with history, events or
                                   sorted) */
    int32_t distances, offsets; /* boxes: 1 = entries carry their distance, their offset D (three
                                   numbers) at the build (default: 0) */
    int32_t sorted;             /* boxes: 1 = rows ascend by partner, then by shift; no effect with
                                   nearest, which has its own order (default: 0, that of cells) */
    int32_t nearest;            /* boxes, full lists: rows keep this many nearest entries, in the
                                   order of distance, then id, then shift; list.rows_cut counts the
                                   rows that left some out. Events then are those of the entries in
                                   the row of the lower id (default: 0, all) */
    int32_t deterministic;      /* CUDA: 1 = every array, and sums (see nlist_sums), equals that of
                                   the serial build in every bit, at the cost of a second search for
                                   DYNAMIC and HYBRID (default: 0; serial builds always are) */
    int32_t skip_invalid;       /* 1 = particles with a NaN or infinite position (those that died)
                                   have empty rows and are no partners; list.bad_id is the first. A
                                   grid or tree needs its own skip_invalid (default: 0, refused;
                                   CUDA always does this, and nlist_cuda_check tells) */
    int64_t capacity;           /* most entries of COMPACT, DYNAMIC and the rest of HYBRID. Serial
                                   (default: as many as needed). CUDA (default: a row COMPACT 16,
                                   DYNAMIC 8, HYBRID 1; more if a check has asked for it) */
    int32_t grow;               /* 1 = where a row or the list is full, more memory is taken and the
                                   build is repeated, until all fits. CUDA: the build then waits for
                                   the stream, and later builds keep the larger width (default: 0,
                                   NLIST_ROW_FULL or NLIST_LIST_FULL) */
    int32_t if_moved;           /* CUDA: 1 = the build does nothing, decided on the device, where
                                   the last nlist_cuda_moved found no particle; events stay those of
                                   the last build that ran (default: 0) */
    nlist_allocator allocator;  /* (default: malloc and free) */
    nlist_cuda_allocator cuda_allocator; /* (default: cudaMallocAsync and cudaFreeAsync) */
    nlist_parallel parallel;    /* a hook for threads (default: serial) */
    int32_t contacts;           /* 1 = an entry is a contact only while the two touch, as
                                   nlist_touch or the function of a sum says: for lists that reach
                                   further than contacts do (>>history) (default: 0, every entry
                                   is one) */
    size_t radii_stride;        /* bytes between two of radii (default: tightly packed) */
} nlist_desc;

/* ----------------------------------------------------------------------------------------------
   >>list: the object. All zero is empty. You may read every array.

   A half list of 7 particles, from the pairs 0-1 0-3 1-2 3-4 3-5 3-6. Rows 4 to 6 are empty. A dot
   is -1, nothing.

       row  STATIC, width 4  HYBRID, width 2         entry             0  1  2  3  4  5
        0   [ 1  3  .  . ]   [ 1  3 ]                DYNAMIC  own      0  0  1  3  3  3
        1   [ 2  .  .  . ]   [ 2  . ]                         partner  1  3  2  4  5  6
        2   [ .  .  .  . ]   [ .  . ]                         link     1  .  .  4  5  .
        3   [ 4  5  6  . ]   [ 4  5 ], rest 6        COMPACT  partner  1  3  2  4  5  6

       row                   0  1  2  3  4  5  6
       DYNAMIC  head         0  2  .  3  .  .  .     first entry of the row; link leads to the next
                touched      0  1  3                 rows that have entries
       COMPACT  start        0  2  3  3  6  6  6  6

   The rest of the HYBRID list is one entry: own 3, partner 6, link . ; head of row 3 is 0. On a GPU
   the entries of DYNAMIC and of the rest come in any order, and links lead from one entry of a row
   to the next.
   ---------------------------------------------------------------------------------------------- */

/* One generation of rows (figure above). Entries are numbered: slot k of row i is entry i * width +
   k, and partner[e] is entry n * width + e. (Without slots width is 0, and the number is the index
   in partner.) */
typedef struct nlist_rows {
    int32_t n;              /* rows: list.row_count */
    int32_t particles;      /* list.n: rows and ghosts */
    int32_t width;          /* slots per row: STATIC, HYBRID; else 0 */
    int64_t entries;        /* entries of partner in use: COMPACT, DYNAMIC, the rest of HYBRID
                               (CUDA: -1, only the device knows) */
    int64_t capacity;       /* entries that partner has room for */
    int32_t touched_count;  /* DYNAMIC: rows that have entries (CUDA: -1, only the device knows) */
    int32_t *count;         /* [n] partners of each row, whether they fitted or not */
    int32_t *slot;          /* STATIC, HYBRID: [n * width] partners; -1 = unused, at the end */
    int64_t *start;         /* COMPACT: [n + 1] row i is partner[start[i] .. start[i+1] - 1] */
    int32_t *partner;       /* COMPACT, DYNAMIC, HYBRID: [capacity] */
    int32_t *own;           /* DYNAMIC, HYBRID: [capacity] the row that the entry belongs to */
    int32_t *link;          /* DYNAMIC, HYBRID: [capacity] next entry of the row, -1 = last */
    int32_t *head;          /* DYNAMIC, HYBRID: [n] first entry of the row, -1 = none */
    int32_t *touched;       /* DYNAMIC: [touched_count] rows that have entries (Kureck 5.4) */
    int64_t *uid;           /* half lists with history or events, after a nlist_remap: [list.n] a
                               number that a particle keeps when it is renumbered (2^62 more while
                               it is a ghost); a pair is in the row of the lower uid. Else NULL: ids
                               decide */
    nlist_real *reference;  /* desc.skin: [list.n * dim] positions at the build; else NULL */
    unsigned char *history; /* [n * width + capacity] x desc.history bytes, by entry, or NULL (CUDA:
                               both generations can have the same array) */
    int32_t *shift;         /* [n * width + capacity] x 3, by entry, with desc.shifts, or NULL */
    nlist_real *distance;   /* [n * width + capacity] by entry, with desc.distances, or NULL */
    nlist_real *offset;     /* [n * width + capacity] x 3, by entry, with desc.offsets, or NULL */
    int32_t *within;        /* [n] partners within reach, with desc.nearest: more than `count` where
                               some were left out; else NULL */
    unsigned char *state;   /* desc.contacts with events: [n * width + capacity] by entry, whether
                               the two touch: bits NLIST_I_TOUCH_...; else NULL */
    int32_t adjacent;       /* private: 1: the entries of a chain follow one another in partner */
} nlist_rows;

/* A contact that began, persists or ended. */
typedef struct nlist_event {
    int32_t i, j;           /* ids: i < j; triangles: the particle and the key */
    int64_t entry;          /* begun, persisted: its entry now; ended: its entry before
                               (nlist_history_before) */
} nlist_event;

enum { NLIST_BEGUN, NLIST_PERSISTED, NLIST_ENDED, NLIST_EVENT_KINDS };

/* One axis of the box. */
typedef struct nlist_axis {
    nlist_real min, max;
    nlist_real length;      /* max - min where periodic, else 0 */
    nlist_real half;        /* length / 2 where periodic, else the largest number: no limit */
    int32_t periodic;
} nlist_axis;

typedef struct nlist_block { void *memory; size_t bytes; } nlist_block;
enum { NLIST_BLOCKS = 64 };

typedef struct nlist {
    nlist_desc desc;        /* as resolved: defaults filled in (its arrays are not kept) */
    nlist_axis axis[3];
    int32_t n;              /* particles */
    int32_t row_count;      /* rows: n, or as desc.rows says. Particles from there on are ghosts */
    int32_t keys;           /* 1: a list of triangles, ids are keys */
    int32_t remembers;      /* 1: built with history or events; the next build compares with it */
    int32_t built;          /* 1: built, also of no particles; 0: NLIST_NOT_BUILT */
    int32_t triangles;      /* lists of triangles: those of the mesh; nlist_key_triangle of every
                               key is below. Else 0 */
    int32_t boxed;          /* 1: built by nlist_build_box or nlist_build_boxes; a partner can be in
                               a row several times, with different shifts */
    int32_t exact;          /* private: 1 in nlist_reserve: takes the exact size only */
    int32_t current;        /* rows[current] is the list, rows[1 - current] the generation before */
    const int32_t *d_current; /* CUDA: where the device keeps `current`; else NULL */
    nlist_rows rows[2];
    nlist_event *event[NLIST_EVENT_KINDS]; /* desc.events: contacts that began, persisted, ended
                                              with the last build */
    int64_t event_count[NLIST_EVENT_KINDS];/* how many (CUDA: fetched by nlist_cuda_check) */
    int64_t total;          /* entries in all rows (CUDA: fetched by nlist_cuda_check) */
    int32_t rows_cut;       /* desc.nearest: rows that left entries out (CUDA: fetched by
                               nlist_cuda_check) */
    int64_t next_uid;       /* above every uid in use: for particles that come later */
    int32_t bad_id;         /* the first particle (or pair) that was refused, or left out by
                               desc.skip_invalid, else -1 */
    int32_t needed_width;   /* slots that the fullest row takes */
    int64_t needed_entries; /* entries that partner must have room for, also where memory ended
                               before (0: before they were counted, or STATIC; CUDA,
                               deterministic, DYNAMIC or HYBRID: 2^33 - 1 for more) */
    int32_t cuda_error;     /* NLIST_CUDA_ERROR: the cudaError_t */
    nlist_block block[NLIST_BLOCKS]; /* the memory behind the arrays */
} nlist;

/* ----------------------------------------------------------------------------------------------
   >>api: functions. Unless a comment says otherwise, a call on a const nlist may run in many
   threads at once. Any call may return NLIST_BAD_ARGUMENT, and one that reads a list
   NLIST_NOT_BUILT. The iterator (nlist_of, nlist_next) and nlist_find are inline functions, defined
   at >>each.

   A build makes the list of n particles. pos: n points of desc.dim coordinates, `stride` bytes
   apart (0 = tightly packed). Another build reuses the memory and, with desc.history, carries the
   history over: particle i is the same as before, particles from the old n on are new (otherwise:
   nlist_remap). After a refusal the list is as it was (>>rules, Errors), and bad_id, needed_width
   and needed_entries say what was wrong. Builds are not thread-safe on one list; different lists
   may be built at once. Costs are those of the search. Carrying history and events adds O(entries)
   where rows keep their order, and O(row log row) for a row that does not, or loses many; O(row^2)
   in CUDA, in lists of boxes or triangles, and with events of desc.contacts (>>carry).
   ---------------------------------------------------------------------------------------------- */

/* The version of the implementation, 10000 * major + 100 * minor + patch. */
NLIST_API int nlist_version(void);

/* What a result means, and which field to change. Never NULL. */
NLIST_API const char *nlist_result_text(nlist_result result);

/* `*out` = `*desc` with every default filled in. Makes the checks that need neither particles nor a
   source. */
NLIST_API nlist_result nlist_defaults(nlist_desc *out, const nlist_desc *desc);

/* Allocates the memory for n particles and `entries` entries in partner, so that builds up to these
   sizes allocate nothing (except nlist_build_pairs: 12 bytes per pair and direction, for its sort).
   The list is empty and not built afterwards; where desc is refused it is as it was. Not
   thread-safe on one list. */
NLIST_API nlist_result nlist_reserve(nlist *list, const nlist_desc *desc, int32_t n,
                                     int64_t entries);

/* By brute force, O(n^2): for tests, and for a few hundred particles. */
NLIST_API nlist_result nlist_build_brute(nlist *list, const nlist_desc *desc, const nlist_real *pos,
                                         size_t stride, int32_t n);

/* From pairs that you provide: ids pair[2 p] and pair[2 p + 1], m pairs in any order. Repeated
   pairs are listed once. Masks and exclusions apply; distances are not tested, and there is no
   skin. O(n + m log row). */
NLIST_API nlist_result nlist_build_pairs(nlist *list, const nlist_desc *desc, const int32_t *pair,
                                         int64_t m, int32_t n);

#ifdef NLIST_I_UGRID
/* From a grid that was built from these positions, by any method. Cells about as wide as the reach
   (radius + skin + twice the largest radius) are fastest; other widths give the same list. One
   large particle, or a box that is mostly empty, may want a tree: nlist_choose
   (more/nlist_tune.h). NLIST_BAD_SOURCE: the grid was refused, or may have left out particles by
   desc.outside. O(n + candidates): a test for each particle in the cells within the reach. */
NLIST_API nlist_result nlist_build_ugrid(nlist *list, const nlist_desc *desc, const ugrid *grid,
                                         const nlist_real *pos, size_t stride, int32_t n);
#endif

#ifdef NLIST_I_LBVH
/* From a tree, for radii that differ much: element i of the tree is particle i. Fastest when the
   boxes hold the spheres of desc.radii (LBVH_SPHERES), or with desc.radius alone when the elements
   are points. The list is correct whatever the boxes are, also when they are out of date. On
   periodic axes every image is searched. O(n log n). */
NLIST_API nlist_result nlist_build_lbvh(nlist *list, const nlist_desc *desc, const lbvh *tree,
                                        const nlist_real *pos, size_t stride, int32_t n);

/* Triangles, as lbvh_build takes them. CUDA: device memory. */
typedef struct nlist_mesh {
    const nlist_real *vertices; /* 3 numbers per vertex */
    size_t stride;              /* bytes between two vertices; without indices between two triangles
                                   (default: tightly packed) */
    int32_t vertex_count;       /* with indices */
    const int32_t *indices;     /* 3 per triangle, checked serially only (default: none, the corners
                                   come in threes) */
    int32_t triangles;
    const nlist_real *thickness; /* [triangles] beside desc.radius (default: none, all 0) */
    size_t thickness_stride;    /* bytes between two (default: tightly packed) */
    nlist_real thickest;        /* none is above it (default: found; CUDA needs it, unchecked) */
    const uint32_t *masks;      /* [triangles] with desc.masks: as of a pair (default: all) */
} nlist_mesh;

/* Particles against triangles: row i has a key for each face, edge or vertex of contact that is no
   further from particle i than radius + radii[i] + thickness, once. Where triangles meet, the
   nearest one has the contact; points within a thousandth of that reach are one (>>walls). tree:
   over these triangles, as they are now (LBVH_TRIANGLES; refitted when they move). NLIST_DYNAMIC,
   without half, exclusions and periodic axes. O(n log triangles), and beside the tip of a fan of m
   triangles up to m^2 tests a particle. With a skin all triangles within reach are listed, as
   faces, until a particle (nlist_moved) or a triangle has moved by half of it; nlist_mesh_touch
   (more/nlist_tune.h) says which are contacts. */
NLIST_API nlist_result nlist_build_mesh(nlist *list, const nlist_desc *desc, const lbvh *tree,
                                        const nlist_mesh *mesh, const nlist_real *pos,
                                        size_t stride, int32_t n);
#endif

/* Frees the memory and empties the list; an empty list is accepted. */
NLIST_API void nlist_free(nlist *list);

/* Bytes of memory that the list holds. */
NLIST_API int64_t nlist_bytes(const nlist *list);

/* `*moved` = 1 when a particle has moved by more than half the skin since the build, and when there
   is no list, or one of no particles: build again before the list is used (figure: >>skin; Verlet).
   Also when a position has become NaN or infinite, or is no longer. The box is that of the build:
   where it has changed, build again, or ask nlist_moved_in (more/nlist_tune.h).
   NLIST_BAD_SKIN: the list has no skin. O(n). */
NLIST_API nlist_result nlist_moved(const nlist *list, const nlist_real *pos, size_t stride,
                                   int32_t *moved);

/* Renumbers the list after particles were sorted, inserted or deleted (figure: >>remap; Kureck
   section 5.5.1). new_id: a number for each particle of the list (NULL if it has no particles; for
   the order of ugrid.h pass grid.inverse). new_id[i], 0 .. n-1, is the new id of particle i; -1: it
   was deleted, with its contacts. Unused ids denote new particles without contacts. History,
   rows and their order are kept, and the reference positions of the skin; those of new particles
   are NaN, so that nlist_moved answers 1. Events stay as they were, with old ids and entries. With
   ghosts list.row_count stays as it is, as far as there are particles. NLIST_BAD_INDEX: list.bad_id
   is the first particle whose new id is out of range or taken; the list is as it was. O(n +
   entries). */
NLIST_API nlist_result nlist_remap(nlist *list, const int32_t *new_id, int32_t n);

/* nlist_remap, and particles 0 .. rows-1 are the locals from now on. Rows of particles that become
   ghosts are deleted. NLIST_BAD_ROWS: rows is not in 0 .. n. */
NLIST_API nlist_result nlist_remap_rows(nlist *list, const int32_t *new_id, int32_t n,
                                        int32_t rows);

/* How contributions are summed (Kureck sections 5.1 to 5.3). Serially the modes differ in the order
   of the sum only. */
typedef enum nlist_mode {
    NLIST_AUTO = 0,         /* NLIST_PER_PARTICLE; NLIST_REDUCE in DYNAMIC, unless it is full and
                               deterministic */
    NLIST_PER_PARTICLE,     /* a thread per row: full lists need no atomics. DYNAMIC: only touched
                               rows get a thread */
    NLIST_PER_CONTACT,      /* a thread per entry (COMPACT: eight per row), and an atomic for every
                               number that it adds */
    NLIST_REDUCE            /* the same threads; the lanes of a warp that share a row are reduced
                               first: slots by width (1, 2, 4, 8, 16 or 32), the rest by key */
} nlist_mode;

/* Sums in fixed point do not depend on the order of addition, so `unit` makes any mode
   deterministic: each value is truncated to a whole number of units (towards 0), below 2^40 of
   them, and summed in 64 bits (2^23 of the largest fit). A unit of 2^-30 of the largest expected
   value is finer than a float. Without a unit sums are in floating point, and their last bits
   depend on the order, which is defined for full lists with NLIST_PER_PARTICLE, and for full STATIC
   lists with NLIST_REDUCE. */
typedef struct nlist_sums {
    int32_t values;         /* numbers summed per particle: 1 .. 16 */
    nlist_mode mode;        /* (default: NLIST_AUTO) */
    double unit;            /* (default: 0, add in floating point) */
} nlist_sums;

/* The contribution of contact i, j to own[values] of i and, in half lists, to other[values] of j;
   both are 0 before the call. history: the entry's bytes, or NULL. Returns 0 when it adds nothing
   (the two do not touch; with desc.contacts the contact ends by that), else 1. In full lists it is
   called twice for a pair, and `other` is ignored; in lists of triangles j is a key. */
typedef int nlist_contact_fn(void *user, int32_t i, int32_t j, void *history, nlist_real *own,
                             nlist_real *other);

/* sums[values * i + v] += contributions, for every entry of the list. sums: n * values numbers.
   With a unit: NLIST_SUM_OVERFLOW leaves sums as they were. `list` is not const only because the
   units need work space. O(entries). */
NLIST_API nlist_result nlist_sum(nlist *list, const nlist_sums *how, nlist_contact_fn *fn,
                                 void *user, nlist_real *sums);

/* All entries as pairs, row by row: ids pair[2 e] (the row) and pair[2 e + 1], room for `capacity`
   pairs. shift (NULL, or 3 numbers per pair): how many periods to add to the partner's position, as
   given in pos, for its nearest image. `*needed`: the number of pairs, also when they did not fit
   (NLIST_BUFFER_TOO_SMALL). pos may be NULL where shift is; for triangles shift must be.
   NLIST_NOT_BUILT: `*needed` is 0. NLIST_NOT_FINITE: a position is NaN, or 2^30 periods away. O(n +
   entries). */
NLIST_API nlist_result nlist_pairs(const nlist *list, int32_t *pair, int64_t capacity,
                                   int64_t *needed, const nlist_real *pos, size_t stride,
                                   int32_t *shift);

/* Writes rows, history and reference positions into `bytes` (room: `capacity`). `*needed`: the
   size, also when it did not fit (NLIST_BUFFER_TOO_SMALL; pass NULL and 0 to ask for it). For
   machines of the same byte order and the same NLIST_REAL. O(n + entries). */
NLIST_API nlist_result nlist_save(const nlist *list, void *bytes, int64_t capacity,
                                  int64_t *needed);

/* Reads what nlist_save wrote: the same rows, order and history, in the layout of desc, and the box
   of the file. desc.history must be that of the file, or 0 (any; with desc.width it determines the
   memory: set it for files that you do not trust); desc.skin at most that of the saved list. Any
   bytes are safe: damaged ones, and files of 0.1.0, are refused (NLIST_BAD_FILE) after a checksum
   and a check of every row, and the list stays as it was. Triangles: the layout is NLIST_DYNAMIC,
   and every key is a feature of a triangle below list.triangles. That number is the file's: before
   you process such a list, check that list.triangles <= mesh.triangles, and that the indices of
   your mesh are below its vertex_count. O(n + entries log entries). */
NLIST_API nlist_result nlist_load(nlist *list, const nlist_desc *desc, const void *bytes,
                                  int64_t size);

/* NLIST_OK, or NLIST_INVALID when the structure is damaged: counts, slots, chains, starts, touched
   rows, pairs listed twice, keys without a feature. Safe on any content of the arrays. For tests
   and students. Allocates n bytes, or as many as partner has entries, if more. O(n + entries *
   row). */
NLIST_API nlist_result nlist_validate(const nlist *list);

/* nlist_validate, then the rows of `samples` particles against brute force. desc (its arrays are
   read), pos, stride: those that the list was built from. Not for lists from pairs; from triangles:
   NLIST_BAD_ARGUMENT. Samples are spread over the ids and vary with the seed; more than n: all.
   NLIST_INVALID: `*bad_id` (may be NULL) is the first particle with a wrong row, -1 if the
   structure is damaged. For tests with your own data. Allocates as nlist_validate does. O(n +
   entries * row + samples * n). */
NLIST_API nlist_result nlist_verify(const nlist *list, const nlist_desc *desc,
                                    const nlist_real *pos, size_t stride, int32_t samples,
                                    uint32_t seed, int32_t *bad_id);

/* Stop here if you only need the API. Its inline functions follow: the offset of two points (at
   >>numbers), the iterator and what belongs to an entry (>>each). The same on a GPU: >>cuda-api,
   near the end. */

/* ----------------------------------------------------------------------------------------------
   >>numbers: arithmetic that rounds alike on CPU and GPU
   ---------------------------------------------------------------------------------------------- */

/* x, as a barrier for the optimizer. It is needed where -ffast-math applies in spite of the pragmas
   (NLIST_FN_WALK), and for products that compilers fuse with sums if the processor has FMA. */
#if defined(NLIST_I_KEEP_BY_BARRIER)
#define NLIST_I_KEEP(x) x = __builtin_assoc_barrier(x)
#elif defined(NLIST_I_KEEP_BY_ASM) && defined(__SSE2_MATH__)
#define NLIST_I_KEEP(x) __asm__("" : "+x"(x))
#elif defined(NLIST_I_KEEP_BY_ASM) && defined(__aarch64__)
#define NLIST_I_KEEP(x) __asm__("" : "+w"(x))
#elif defined(NLIST_I_KEEP_BY_ASM)
#define NLIST_I_KEEP(x) __asm__("" : "+m"(x))
#else
#define NLIST_I_KEEP(x) ((void)(x))
#endif
NLIST_FN_WALK nlist_real nlist_i_kept(nlist_real x)
{
    NLIST_I_KEEP(x);
    return x;
}

/* a * b, rounded. nvcc would fuse a product with a sum that follows, round once, and give
   other bits. */
NLIST_FN_WALK nlist_real nlist_i_times(nlist_real a, nlist_real b)
{
#if defined(__CUDA_ARCH__) && NLIST_I_REAL_KIND == 1
    return __fmul_rn(a, b);
#elif defined(__CUDA_ARCH__)
    return __dmul_rn(a, b);
#else
    return nlist_i_kept(a * b);
#endif
}

/* a / b, correctly rounded, whatever nvcc's -prec-div says. */
NLIST_FN nlist_real nlist_i_over(nlist_real a, nlist_real b)
{
#if defined(__CUDA_ARCH__) && NLIST_I_REAL_KIND == 1
    return __fdiv_rn(a, b);
#else
    return a / b;
#endif
}

/* Neither NaN nor infinite: not all exponent bits are set. (-ffinite-math-only would remove
   comparisons.) */
NLIST_FN int nlist_i_finite(nlist_real x)
{
#if NLIST_I_REAL_KIND == 1
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7F800000u) != 0x7F800000u;
#else
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7FF0000000000000u) != 0x7FF0000000000000u;
#endif
}

NLIST_FN int nlist_i_point_finite(const nlist_real p[3])
{
    return nlist_i_finite(p[0]) & nlist_i_finite(p[1]) & nlist_i_finite(p[2]);
}

/* floor(t) as a real: the number of periods. From 2^52 on every number is an integer. */
NLIST_FN nlist_real nlist_i_periods(nlist_real t)
{
    nlist_real const limit = (nlist_real)4503599627370496.0;
    nlist_real below;
    if (!(t > -limit) || t >= limit) return t;
    below = (nlist_real)(int64_t)t;
    return below > t ? below - 1 : below;
}

/* The caller's point i, as given; p[2] = 0 in 2D. */
NLIST_FN void nlist_i_load(const nlist_real *pos, size_t stride, int dim, int32_t i,
                           nlist_real p[3])
{
    const nlist_real *at = (const nlist_real *)(const void *)((const char *)pos +
                                                              stride * (size_t)i);
    nlist_real const last = at[dim - 1]; /* `at[2]` after the test would make compilers warn where
                                            an array of two numbers is passed */
    p[0] = at[0];
    p[1] = at[1];
    p[2] = 0;
    if (dim == 3) p[2] = last; /* not by ?:, which clang assumes to be finite under -ffast-math */
}

/* x outside the box of a periodic axis, wrapped into it. */
NLIST_FN nlist_real nlist_i_wrap_outside(const nlist_axis *axis, nlist_real x)
{
    if (!nlist_i_finite(x)) return x;
    x -= nlist_i_times(axis->length, nlist_i_periods(nlist_i_over(x - axis->min, axis->length)));
    /* rounding can leave x on the upper border, which is min */
    return (x >= axis->min && x < axis->max) ? x : axis->min;
}

/* x wrapped into the box of a periodic axis, as ugrid.h does it. On a closed axis, inside the box,
   and if not finite: x itself, bit for bit. */
NLIST_FN_WALK nlist_real nlist_i_wrap(const nlist_axis *axis, nlist_real x)
{
    if (!axis->periodic || (x >= axis->min && x < axis->max)) return x;
    return nlist_i_wrap_outside(axis, x);
}

/* A particle's point, wrapped on periodic axes: distances are measured from it. */
NLIST_FN void nlist_i_point(const nlist *list, const nlist_real *pos, size_t stride, int32_t i,
                            nlist_real p[3])
{
    int a;
    nlist_i_load(pos, stride, list->desc.dim, i, p);
    for (a = 0; a < 3; a++) p[a] = nlist_i_wrap(&list->axis[a], p[a]);
}

/* A difference of two coordinates in the box by the minimum-image convention: |d| < length, so at
   most one period is subtracted. */
NLIST_FN_WALK nlist_real nlist_i_nearest(const nlist_axis *axis, nlist_real d)
{
    nlist_real const above = d > axis->half ? axis->length : 0,
                     below = d < -axis->half ? axis->length : 0;
    return nlist_i_kept(nlist_i_kept(d - above) + below);
}

/* Square of the distance of two points in the box, rounded after every operation, so that CPU and
   GPU find the same pairs at the reach. */
NLIST_FN nlist_real nlist_i_distance2(const nlist *list, const nlist_real p[3],
                                      const nlist_real q[3])
{
    nlist_real const x = nlist_i_nearest(&list->axis[0], q[0] - p[0]),
                     y = nlist_i_nearest(&list->axis[1], q[1] - p[1]),
                     z = nlist_i_nearest(&list->axis[2], q[2] - p[2]);
    return nlist_i_times(x, x) + nlist_i_times(y, y) + nlist_i_times(z, z);
}

/* d = q - p for two of the caller's points, by the minimum-image convention on periodic axes: for
   your force law. dim numbers. */
NLIST_FN_WALK void nlist_offset(const nlist *list, const nlist_real *p, const nlist_real *q,
                                nlist_real *d)
{
    int a;
    for (a = 0; a < list->desc.dim; a++)
        d[a] = nlist_i_nearest(&list->axis[a], nlist_i_kept(nlist_i_wrap(&list->axis[a], q[a]) -
                                                            nlist_i_wrap(&list->axis[a], p[a])));
}

/* ----------------------------------------------------------------------------------------------
   >>match: which candidates are listed. One text for the serial code and the kernels.
   ---------------------------------------------------------------------------------------------- */

/* A query: the particle whose partners are searched for. */
typedef struct nlist_i_query {
    int32_t i;
    nlist_real p[3];    /* its point, in the box */
    nlist_real radius;  /* its own, 0 without radii */
    nlist_real limit;   /* square of the reach where that is the same for all pairs */
} nlist_i_query;

/* Reach of two particles = gap + their radii. */
NLIST_FN nlist_real nlist_i_gap(const nlist_desc *desc) { return desc->radius + desc->skin; }

/* The largest reach of a list. */
NLIST_FN nlist_real nlist_i_largest_reach(const nlist_desc *desc, nlist_real largest)
{
    return nlist_i_gap(desc) + (largest + largest);
}

/* Square of the reach of particles with radii a and b. The sum a + b comes first, so that (i, j)
   and (j, i) give the same bits. */
NLIST_FN nlist_real nlist_i_limit(const nlist_desc *desc, nlist_real a, nlist_real b)
{
    nlist_real const reach = nlist_i_gap(desc) + (a + b);
    return nlist_i_times(reach, reach);
}

/* desc.radii of particle i. */
NLIST_FN nlist_real nlist_i_given_radius(const nlist_desc *desc, int32_t i)
{
    size_t const stride = desc->radii_stride ? desc->radii_stride : sizeof(nlist_real);
    return *(const nlist_real *)(const void *)((const char *)desc->radii + stride * (size_t)i);
}

/* The radius of particle i beside desc.radius: 0 without desc.radii. */
NLIST_FN nlist_real nlist_i_radius(const nlist_desc *desc, int32_t i)
{
    if (desc->radii) return nlist_i_given_radius(desc, i);
    return 0;
}

/* The query of particle i, which is at p. */
NLIST_FN nlist_i_query nlist_i_query_of(const nlist_desc *desc, int32_t i, const nlist_real p[3])
{
    nlist_i_query query;
    query.i = i;
    query.p[0] = p[0];
    query.p[1] = p[1];
    query.p[2] = p[2];
    query.radius = nlist_i_radius(desc, i);
    query.limit = nlist_i_limit(desc, 0, 0);
    return query;
}

/* The radius for a search of the source that misses no partner: a little more than the reach, since
   sources round differently. 2^-20 are 8 units in the last place of a float, 2^-48 are 16 of a
   double. */
NLIST_FN nlist_real nlist_i_search_radius(nlist_real reach, const nlist_real p[3])
{
    nlist_real const part = NLIST_I_REAL_KIND == 1 ? (nlist_real)(1.0 / 1048576.0)
                                                   : (nlist_real)(1.0 / 281474976710656.0);
    nlist_real const size = (p[0] < 0 ? -p[0] : p[0]) + (p[1] < 0 ? -p[1] : p[1]) +
                            (p[2] < 0 ? -p[2] : p[2]);
    return reach + (reach + size) * part;
}

/* 1 if row i lists j. Full lists: for every other particle. Half lists: if i has the lower id, or
   uid (nlist_rows). */
NLIST_FN int nlist_i_owns(const nlist_desc *desc, const int64_t *uid, int32_t i, int32_t j)
{
    if (!desc->half) return i != j;
    return uid ? uid[i] < uid[j] : i < j;
}

#define NLIST_I_GHOST 4611686018427387904 /* 2^62: in the uids of ghosts */

/* The uid of particle i, as a local or as a ghost. */
NLIST_FN int64_t nlist_i_uid(int64_t uid, int32_t i, int32_t rows)
{
    return (uid & (NLIST_I_GHOST - 1)) | (i < rows ? 0 : NLIST_I_GHOST);
}

/* 1 if a remap leaves a contact in the row of i. (A ghost that becomes a local can be the owner
   now: the contact begins anew.) */
NLIST_FN int nlist_i_stays(const int64_t *uid, int32_t i, int32_t j)
{
    return !uid || i == j || uid[i] < uid[j];
}

/* 1 if j stands in the row of i of the exclusions. */
NLIST_FN int nlist_i_excludes(const nlist_desc *desc, int32_t i, int32_t j)
{
    int64_t e;
    for (e = desc->exclude_start[i]; e < desc->exclude_start[i + 1]; e++)
        if (desc->exclude[e] == j) return 1;
    return 0;
}

/* 1 if masks and exclusions allow a pair. */
NLIST_FN int nlist_i_allows(const nlist_desc *desc, int32_t i, int32_t j)
{
    if (desc->masks && !(desc->masks[i] & desc->masks[j])) return 0;
    if (desc->exclude_start && (nlist_i_excludes(desc, i, j) || nlist_i_excludes(desc, j, i)))
        return 0;
    return 1;
}

/* 1 if a pair is listed by all criteria except the distance. */
NLIST_FN int nlist_i_may_list(const nlist_desc *desc, const int64_t *uid, int32_t i, int32_t j)
{
    return nlist_i_owns(desc, uid, i, j) && nlist_i_allows(desc, i, j);
}

/* 1 if a pair is listed, by all criteria. q: the point of j, in the box. */
NLIST_FN int nlist_i_lists(const nlist *list, const int64_t *uid, const nlist_i_query *query,
                           int32_t j, const nlist_real q[3])
{
    nlist_real const d2 = nlist_i_distance2(list, query->p, q);
    nlist_real limit = query->limit;
    if (list->desc.radii)
        limit = nlist_i_limit(&list->desc, query->radius, nlist_i_given_radius(&list->desc, j));
    return d2 <= limit && nlist_i_may_list(&list->desc, uid, query->i, j);
}

/* 1 if the distance and the order of the two ids are the only criteria. */
NLIST_FN int nlist_i_only_distance(const nlist_desc *desc, const int64_t *uid)
{
    return !desc->radii && !desc->masks && !desc->exclude_start && !uid;
}

/* ----------------------------------------------------------------------------------------------
   >>each: the partners of a particle

       nlist_each e = nlist_of(&list, i);
       while (nlist_next(&e)) use(e.id, e.history);

   and in a kernel the same on the list of a nlist_device. The slots or the COMPACT row come first,
   then the row's chain in the rest.
   ---------------------------------------------------------------------------------------------- */

typedef struct nlist_each {
    int32_t id;         /* out: the partner; triangles: the key */
    void *history;      /* out: the entry's bytes, or NULL */
    int64_t entry;      /* out: the entry */
    const int32_t *shift; /* out: three integers, which image of the partner; NULL without
                             desc.shifts */
    /* private */
    const int32_t *ids; /* of slots, or of partner */
    int64_t at, end;    /* entries left there */
    int32_t rest;       /* next entry in partner, -1 = none */
    int32_t bytes;      /* of history per entry */
    int32_t first, last; /* nlist_mesh_touch: which of the row to try first, or -1 */
    int64_t slots;      /* entries before those of the rest */
    const int32_t *partner, *link;
    unsigned char *all_history, *all_states;
    const int32_t *all_shifts;
} nlist_each;

/* The rows that are the list; on a GPU the device knows which of the two. */
NLIST_FN_WALK const nlist_rows *nlist_i_rows(const nlist *list)
{
    return &list->rows[list->d_current ? *list->d_current : list->current];
}

/* The iterator before row i; empty for an i that is no row. bytes: of history per entry. */
NLIST_FN_WALK nlist_each nlist_i_row(const nlist_rows *rows, int32_t bytes, int32_t i)
{
    nlist_each e;
    e.id = -1;
    e.entry = -1;
    e.history = NULL;
    e.ids = rows->slot;
    e.at = e.end = 0;
    e.rest = -1;
    e.bytes = bytes;
    e.first = e.last = -1;
    e.slots = (int64_t)rows->n * rows->width;
    e.partner = rows->partner;
    e.link = rows->link;
    e.all_history = rows->history;
    e.all_states = rows->state;
    e.all_shifts = rows->shift;
    e.shift = NULL;
    if (i < 0 || i >= rows->n) return e;
    if (rows->start) {
        e.ids = rows->partner;
        e.at = rows->start[i];
        /* CUDA: the rest did not fit */
        e.end = rows->start[i + 1] < rows->capacity ? rows->start[i + 1] : rows->capacity;
        return e;
    }
    if (rows->slot) {
        e.at = (int64_t)i * rows->width;
        e.end = e.at + (rows->count[i] < rows->width ? rows->count[i] : rows->width);
    }
    if (rows->head) e.rest = rows->head[i];
    return e;
}

/* The partners of particle i; none for an i that is not in the list. */
NLIST_FN_WALK nlist_each nlist_of(const nlist *list, int32_t i)
{
    return nlist_i_row(nlist_i_rows(list), list->desc.history, i);
}

/* The next partner; 0 when there are no more. */
NLIST_FN_WALK int nlist_next(nlist_each *e)
{
    if (e->at < e->end) {
        e->id = e->ids[e->at];
        e->entry = e->at++;
    } else if (e->rest >= 0) {
        e->id = e->partner[e->rest];
        e->entry = e->slots + e->rest;
        e->rest = e->link[e->rest];
    } else {
        return 0;
    }
    if (e->all_history) e->history = e->all_history + e->entry * e->bytes;
    if (e->all_shifts) e->shift = e->all_shifts + 3 * e->entry;
    return 1;
}

/* The bytes of an entry, of a begun or persisting event for example. NULL without history. */
NLIST_FN void *nlist_history(const nlist *list, int64_t entry)
{
    unsigned char *history = nlist_i_rows(list)->history;
    return history ? history + entry * list->desc.history : NULL;
}

/* The last bytes of a contact that ended, by the entry of its event. Valid until the next build or
   remap, also one that is refused. NULL without history, and in a list that was downloaded. */
NLIST_FN void *nlist_history_before(const nlist *list, int64_t entry)
{
    unsigned char *history =
        list->rows[1 - (list->d_current ? *list->d_current : list->current)].history;
    return history ? history + entry * list->desc.history : NULL;
}

/* Zeros for the bytes of an entry. What is zero already is not written. */
NLIST_FN void nlist_i_clear(unsigned char *history, int32_t bytes)
{
    int32_t k = 0;
    for (; bytes % 4 == 0 && k < bytes; k += 4) {
        uint32_t word;
#ifdef __CUDA_ARCH__
        word = *(const uint32_t *)(const void *)(history + k);
#else
        memcpy(&word, history + k, sizeof word);
#endif
        if (word) history[k] = history[k + 1] = history[k + 2] = history[k + 3] = 0;
    }
    for (; k < bytes; k++) if (history[k]) history[k] = 0;
}

/* The state of an entry (nlist_rows, state). */
enum {
    NLIST_I_TOUCH_NOW = 1,      /* they touch */
    NLIST_I_TOUCH_SINCE = 2,    /* and have since the build, without a break */
    NLIST_I_TOUCH_BEFORE = 4    /* they touched at the build */
};

/* nlist_touch, for an entry of these rows. */
NLIST_FN void nlist_i_touch(unsigned char *state, unsigned char *history, int32_t bytes,
                            int touching)
{
    if (history && !touching) nlist_i_clear(history, bytes);
    if (state) *state = (unsigned char)(touching ? *state | NLIST_I_TOUCH_NOW
                                                 : *state & NLIST_I_TOUCH_BEFORE);
}

/* Says whether the two of entry e touch, in each step, before its history is used. While they do
   not, the history is zero, and so it is when a contact begins (again). Without it, or a sum with
   desc.contacts, history lasts as long as the pair is listed: with a skin too long. Returns
   `touching`. No two threads may do it for one entry at once. */
NLIST_FN_WALK int nlist_touch(nlist_each *e, int touching)
{
    nlist_i_touch(e->all_states ? e->all_states + e->entry : NULL, (unsigned char *)e->history,
                  e->bytes, touching);
    return touching;
}

/* The same for an entry by its number. */
NLIST_FN int nlist_touch_entry(const nlist *list, int64_t entry, int touching)
{
    const nlist_rows *rows = nlist_i_rows(list);
    int32_t const bytes = list->desc.history;
    nlist_i_touch(rows->state ? rows->state + entry : NULL,
                  rows->history ? rows->history + entry * bytes : NULL, bytes, touching);
    return touching;
}

/* The entry of j in row i, -1 = none. O(row). */
NLIST_FN int64_t nlist_find(const nlist *list, int32_t i, int32_t j)
{
    nlist_each e = nlist_of(list, i);
    while (nlist_next(&e))
        if (e.id == j) return e.entry;
    return -1;
}

/* The entry of a pair in a half list, in the row of either; -1 = not listed. O(row). */
NLIST_FN int64_t nlist_find_pair(const nlist *list, int32_t i, int32_t j)
{
    int64_t const entry = nlist_find(list, i, j);
    return entry >= 0 ? entry : nlist_find(list, j, i);
}

/* Keys of lists of triangles: the triangle, and its feature as a lbvh_feature: 0 face, 1 .. 3 edge
   AB BC CA, 4 .. 6 vertex A B C. */
NLIST_FN int32_t nlist_key(int32_t triangle, int32_t feature) { return triangle * 8 + feature; }
NLIST_FN int32_t nlist_key_triangle(int32_t key) { return key / 8; }
NLIST_FN int32_t nlist_key_feature(int32_t key) { return key % 8; }

#define NLIST_I_TRIANGLES 268435456     /* 2^28: most triangles of a mesh, so that keys fit
                                           int32_t */

/* Ids in rows are below this: particles, or keys of triangles 0 .. triangles - 1. (With 2^28
   triangles the last key is of no feature.) */
NLIST_FN int32_t nlist_i_id_limit(int32_t keys, int32_t triangles, int32_t n)
{
    return !keys ? n : triangles < NLIST_I_TRIANGLES ? 8 * triangles : INT32_MAX;
}

#ifdef NLIST_I_LBVH
/* The corners of a triangle, 0 .. mesh->triangles - 1. */
NLIST_FN void nlist_mesh_corners(const nlist_mesh *mesh, int32_t triangle,
                                 const nlist_real *corner[3])
{
    size_t const stride = mesh->stride ? mesh->stride
                                       : (mesh->indices ? 3 : 9) * sizeof(nlist_real);
    const char *const base = (const char *)mesh->vertices;
    int v;
    for (v = 0; v < 3; v++) {
        int32_t const at = mesh->indices ? mesh->indices[3 * (size_t)triangle + (size_t)v]
                                         : triangle;
        corner[v] = (const nlist_real *)(const void *)(base + stride * (size_t)at) +
                    (mesh->indices ? 0 : 3 * v);
    }
}

NLIST_FN nlist_real nlist_mesh_thickness(const nlist_mesh *mesh, int32_t triangle)
{
    size_t const stride = mesh->thickness_stride ? mesh->thickness_stride : sizeof(nlist_real);
    const char *const base = (const char *)mesh->thickness;
    return base ? *(const nlist_real *)(const void *)(base + stride * (size_t)triangle) : 0;
}

/* The point q of a triangle, 0 .. mesh->triangles - 1, that is closest to p: where a contact acts.
   Returns the feature that q belongs to. The triangle is not checked: for a list from a file, see
   nlist_load. */
NLIST_FN int32_t nlist_mesh_closest(const nlist_mesh *mesh, int32_t triangle, const nlist_real *p,
                                    nlist_real q[3])
{
    const nlist_real *corner[3];
    nlist_mesh_corners(mesh, triangle, corner);
    return (int32_t)lbvh_closest_on_triangle(p, corner[0], corner[1], corner[2], q);
}
#endif

/* ----------------------------------------------------------------------------------------------
   >>carry: contact tracking

   The carry gives each entry of the new list the history of the same contact in the old one. The
   new list is made beside the old one, as if there were no history. Then each new entry is looked
   up in the old row, which is short:

       old row   [ 7  9  4  2 ]    new row   [ 9  4  8 ]    9, 4: persist, their bytes are copied
       bytes       a  b  c  d      bytes       b  c  0      8: begins with zeros     7, 2: end

   Rows mostly keep their order from build to build. So the partners after the last one found are
   tried first, then those before it:

       9: after 7, which has ended: entry 1
       4: follows 9, found at once: entry 2
       8: 2 follows, then 7 and 9 from the beginning, and none is 8: new

   A row whose order is kept costs O(row), and O(row) more for each contact that began (with events:
   or ended); O(row^2) at worst, and O(row log row) in the faster form (>>carry-rows). (Kureck,
   section 5.5, marks the contacts of the old list that persist, appends the new ones and sorts.)
   ---------------------------------------------------------------------------------------------- */

typedef struct nlist_i_matcher {
    const nlist_rows *rows;
    const int32_t *new_of;  /* new ids of old particles, or NULL: unchanged, and keys */
    nlist_each cursor;      /* after the last one found */
    int32_t i;
} nlist_i_matcher;

/* A matcher for row i of `rows`, the old ones (nlist_i_add_ended: the new ones); it finds nothing
   if there is no such row. */
NLIST_FN nlist_i_matcher nlist_i_match_row(const nlist_rows *rows, int32_t bytes, int32_t i,
                                           const int32_t *new_of, int32_t keys)
{
    nlist_i_matcher matcher;
    matcher.rows = rows;
    matcher.new_of = keys ? NULL : new_of;
    matcher.cursor = nlist_i_row(rows, bytes, i);
    matcher.i = i;
    return matcher;
}

/* 1 if the first of three integers that is not 0 is positive: of the images S and -S of a particle
   one is. */
NLIST_FN int nlist_i_positive(const int32_t *shift)
{
    if (shift[0] != 0) return shift[0] > 0;
    return shift[1] != 0 ? shift[1] > 0 : shift[2] > 0;
}

/* 1 if two entries are of the same image; entries without shifts are. */
NLIST_FN int nlist_i_same_image(const int32_t *a, const int32_t *b)
{
    return !a || !b || (a[0] == b[0] && a[1] == b[1] && a[2] == b[2]);
}

/* The entry of `id` in the matcher's row (new_of: a new id, in an old row), with this shift (or
   NULL), -1 = none: from the last one found to the end, then from the beginning to there. */
NLIST_FN_WALK int64_t nlist_i_match(nlist_i_matcher *matcher, int32_t id, const int32_t *shift)
{
    const int32_t *const new_of = matcher->new_of;
    nlist_each e = matcher->cursor;
    while (nlist_next(&e)) {
        if ((new_of ? new_of[e.id] : e.id) != id || !nlist_i_same_image(e.shift, shift)) continue;
        matcher->cursor = e;
        return e.entry;
    }
    e = nlist_i_row(matcher->rows, matcher->cursor.bytes, matcher->i);
    while (matcher->cursor.entry >= 0 && nlist_next(&e) && e.entry != matcher->cursor.entry) {
        if ((new_of ? new_of[e.id] : e.id) != id || !nlist_i_same_image(e.shift, shift)) continue;
        matcher->cursor = e;
        return e.entry;
    }
    return -1;
}

/* The state of a new entry whose old one is `old`, -1 = none. A remap keeps it. */
NLIST_FN unsigned char nlist_i_next_state(const nlist_rows *old_rows, int64_t old, int remap)
{
    int const state = old >= 0 && old_rows->state ? old_rows->state[old] : 0;
    if (remap) return (unsigned char)state;
    if (!(state & NLIST_I_TOUCH_NOW)) return 0;
    return NLIST_I_TOUCH_NOW | NLIST_I_TOUCH_SINCE | NLIST_I_TOUCH_BEFORE;
}

/* The event of a new entry whose old one is `old`, -1 = none. With desc.contacts contacts begin and
   persist, else entries. */
NLIST_FN int nlist_i_event_of(const nlist_rows *old_rows, const nlist_rows *rows, int64_t old)
{
    int state;
    if (!rows->state) return old >= 0 ? NLIST_PERSISTED : NLIST_BEGUN;
    state = old >= 0 && old_rows->state ? old_rows->state[old] : 0;
    if (state & NLIST_I_TOUCH_SINCE) return NLIST_PERSISTED;
    return state & NLIST_I_TOUCH_NOW ? NLIST_BEGUN : -1;
}

/* 1 if an old entry, which is listed again or not, was a contact that has ended. (Where no entry is
   listed any more, the new rows have no states.) */
NLIST_FN int nlist_i_has_ended(const nlist_rows *old_rows, int64_t old, int listed)
{
    int state;
    if (!old_rows->state) return !listed;
    state = old_rows->state[old];
    return (state & NLIST_I_TOUCH_BEFORE) && !(listed && (state & NLIST_I_TOUCH_SINCE));
}

#ifdef NLIST_I_LBVH
/* ----------------------------------------------------------------------------------------------
   >>walls: particle against triangle (Kureck section 5.4)

   Neighbouring triangles share edges and vertices. A sphere that touches such a feature must have
   one contact there, not two or six; and on a flat patch only contacts with faces:

             p                The surface from the side. The point of T closest to p is q, on the
             |\               edge that it shares with U. But U continues towards p: its own closest
        -----u-q--------      point u is nearer. So (T, edge), at q, is dropped, and (U, face), at
           U   |   T          u, is listed. If both are equally near, at q, the triangle with the
                              lower number is listed.

   With a thickness, T is dropped where the point s of its surface, between q and p, lies within U;
   the nearest is that of the smallest distance less its thickness.

   The wander search (nlist_i_wander) is contact tracking across shared edges: a new contact takes
   over the history of an old one on a neighbouring triangle, so that friction is continuous over
   the mesh.
   ---------------------------------------------------------------------------------------------- */

/* Points closer than this are one point of contact: a thousandth of the reach. */
NLIST_FN nlist_real nlist_i_same_point(nlist_real reach, const nlist_real p[3])
{
    return nlist_i_search_radius(reach * (nlist_real)(1.0 / 1024.0), p);
}

/* The square of the distance of two points, without a period. */
NLIST_FN nlist_real nlist_i_square_between(const nlist_real a[3], const nlist_real b[3])
{
    nlist_real const x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
    return nlist_i_times(x, x) + nlist_i_times(y, y) + nlist_i_times(z, z);
}

/* A particle beside walls, and a wall beside it. */
typedef struct nlist_i_ball { nlist_real p[3], reach; uint32_t mask; } nlist_i_ball;
typedef struct nlist_i_wall {
    nlist_real q[3], d2;    /* its closest point, and the square of its distance */
    nlist_real s[3];        /* the point of its surface towards p, or p where that is inside */
    nlist_real gap, thickness;  /* gap: distance - thickness; both 0 without thicknesses */
    int32_t triangle, feature;
} nlist_i_wall;

/* wall->gap and wall->s; the root is Newton's, from above: the same bits everywhere. d2 > 0. */
NLIST_FN void nlist_i_thicken(nlist_i_wall *wall, const nlist_i_ball *ball)
{
    nlist_real const guess = ball->reach + wall->thickness;
    nlist_real root, next = (guess + nlist_i_over(wall->d2, guess)) / 2;
    int a;
    do {
        root = next;
        next = (root + nlist_i_over(wall->d2, root)) / 2;
    } while (next < root);
    wall->gap = root - wall->thickness;
    for (a = 0; a < 3; a++)
        wall->s[a] = wall->gap <= 0 ? ball->p[a] : wall->q[a] +
            nlist_i_times(ball->p[a] - wall->q[a], nlist_i_over(wall->thickness, root));
}

NLIST_FN nlist_i_wall nlist_i_wall_of(const nlist_mesh *mesh, const nlist_i_ball *ball, int32_t t)
{
    nlist_i_wall wall;
    wall.triangle = t;
    wall.feature = nlist_mesh_closest(mesh, t, ball->p, wall.q);
    wall.d2 = nlist_i_square_between(ball->p, wall.q);
    wall.thickness = nlist_mesh_thickness(mesh, t);
    wall.gap = -wall.thickness;
    memcpy(wall.s, wall.q, sizeof wall.s);
    if (mesh->thickness && wall.d2 > 0) nlist_i_thicken(&wall, ball);
    return wall;
}

/* 1 if this wall, with its thickness, holds the point s, and comes nearer to the particle than
   `best`, or as near with a lower number. */
NLIST_FN int nlist_i_precedes(const nlist_mesh *mesh, const nlist_i_ball *ball,
                              const nlist_real s[3], const nlist_i_wall *wall,
                              const nlist_i_wall *best)
{
    nlist_real through[3], within;
    if (wall->gap > best->gap || (wall->gap == best->gap && wall->d2 > best->d2)) return 0;
    if (wall->gap == best->gap && wall->d2 == best->d2 && wall->triangle > best->triangle)
        return 0;
    (void)nlist_mesh_closest(mesh, wall->triangle, s, through);
    within = nlist_i_same_point(ball->reach, ball->p) + wall->thickness;
    return nlist_i_square_between(s, through) <= nlist_i_times(within, within);
}

/* 1 if triangle u precedes `*best`; it is then the best. */
NLIST_FN int nlist_i_comes_first(const nlist_mesh *mesh, const nlist_i_ball *ball,
                                 const nlist_real s[3], int32_t u, nlist_i_wall *best)
{
    nlist_i_wall wall;
    if (u == best->triangle || (mesh->masks && !(mesh->masks[u] & ball->mask))) return 0;
    wall = nlist_i_wall_of(mesh, ball, u);
    if (!nlist_i_precedes(mesh, ball, s, &wall, best)) return 0;
    *best = wall;
    return 1;
}

/* 1 if another triangle comes first where this wall is closest to p: then it is dropped. Distance,
   then number, order all triangles: of those that meet there the first is listed.
   `*first`: the one that it or, before, another triangle was dropped for, -1: none. It is tried
   before the search: of many that meet in one point, each but the first takes one test. */
NLIST_FN int nlist_i_superseded(const lbvh *tree, const nlist_mesh *mesh, const nlist_i_ball *ball,
                                const nlist_i_wall *wall, int32_t *first)
{
    nlist_real const same = nlist_i_same_point(ball->reach, ball->p) + mesh->thickest;
    nlist_i_wall best = *wall;
    int32_t tests;
    lbvh_overlap o;
    if (*first >= 0 && nlist_i_comes_first(mesh, ball, wall->s, *first, &best)) return 1;
    o = lbvh_overlap_sphere(tree, wall->s, nlist_i_search_radius(same, wall->s));
    for (tests = 0; lbvh_next(&o); tests++) /* of few any will do; of many the first of all */
        if (nlist_i_comes_first(mesh, ball, wall->s, o.id, &best) && tests < 16) break;
    if (best.triangle == wall->triangle) return 0;
    *first = best.triangle;
    return 1;
}

/* The search for the walls of particle i at p. */
NLIST_FN lbvh_overlap nlist_i_walls_near(const lbvh *tree, const nlist_mesh *mesh,
    const nlist_desc *desc, int32_t i, const nlist_real p[3], nlist_i_ball *ball)
{
    memcpy(ball->p, p, sizeof ball->p);
    ball->reach = nlist_i_gap(desc) + nlist_i_radius(desc, i);
    ball->mask = desc->masks ? desc->masks[i] : UINT32_MAX;
    return lbvh_overlap_sphere(tree, p, nlist_i_search_radius(ball->reach + mesh->thickest, p));
}

/* The key under which triangle t is listed, or -1: too far, masked, or superseded by another (with
   a skin nlist_mesh_touch decides that). `*first`: -1 for the first triangle of a particle. */
NLIST_FN int32_t nlist_i_wall_key(const lbvh *tree, const nlist_mesh *mesh, const nlist_desc *desc,
                                  const nlist_i_ball *ball, int32_t t, int32_t *first)
{
    nlist_i_wall const wall = nlist_i_wall_of(mesh, ball, t);
    nlist_real const reach = ball->reach + wall.thickness;
    if (mesh->masks && !(mesh->masks[t] & ball->mask)) return -1;
    if (!(wall.d2 <= nlist_i_times(reach, reach))) return -1;
    if (desc->skin > 0) return nlist_key(t, 0);
    return nlist_i_superseded(tree, mesh, ball, &wall, first) ? -1 : nlist_key(t, wall.feature);
}

/* The wander search: the old entry whose contact has moved on to this new key, -1 = none. The old
   key must not be in the new row, and its triangle must come within reach / 16 of the new contact
   point. Each old entry can be taken once: bit k of `taken` is entry k of the old row, for the
   first 64. */
NLIST_FN int64_t nlist_i_wander(const nlist_rows *old_rows, const nlist_rows *new_rows,
                                int32_t bytes, int32_t i, const nlist_mesh *mesh,
                                const nlist_real p[3], nlist_real reach, int32_t key,
                                uint64_t *taken)
{
    nlist_real q[3], r[3];
    nlist_real const near_by = nlist_i_times(reach, (nlist_real)(1.0 / 16.0)),
                     near2 = nlist_i_times(near_by, near_by);
    nlist_each was = nlist_i_row(old_rows, bytes, i);
    int k;
    (void)nlist_mesh_closest(mesh, nlist_key_triangle(key), p, q);
    for (k = 0; k < 64 && nlist_next(&was); k++) {
        nlist_i_matcher still = nlist_i_match_row(new_rows, bytes, i, NULL, 1);
        if (*taken >> k & 1 || nlist_i_match(&still, was.id, NULL) >= 0 ||
            nlist_key_triangle(was.id) >= mesh->triangles)
            continue;
        (void)nlist_mesh_closest(mesh, nlist_key_triangle(was.id), q, r);
        if (!(nlist_i_square_between(q, r) <= near2)) continue;
        *taken |= (uint64_t)1 << k;
        return was.entry;
    }
    return -1;
}

#endif

/* ----------------------------------------------------------------------------------------------
   >>units: fixed-point sums, independent of the order of addition

       sum = unit * (x0 / unit + x1 / unit + ...)

   Quotients are truncated; whole numbers are added without rounding.
   ---------------------------------------------------------------------------------------------- */

/* x in whole units, truncated towards 0; returns 0 where x is NaN, or 2^40 units and more. */
NLIST_FN int nlist_i_units(nlist_real x, double units_per_one, int64_t *units)
{
    double const t = (double)x * units_per_one;
    *units = 0;
    if (!(t > -1099511627776.0 && t < 1099511627776.0)) return 0;
    *units = (int64_t)t;
    return 1;
}

/* A sum of units as a number. */
NLIST_FN nlist_real nlist_i_from_units(int64_t units, double unit)
{
#if defined(__CUDA_ARCH__)
    return (nlist_real)__dmul_rn((double)units, unit);
#else
    return (nlist_real)((double)units * unit);
#endif
}

/* 1 if the order in which a list is summed up without units is defined. */
NLIST_FN int nlist_i_order_defined(const nlist_desc *desc, nlist_mode mode)
{
    if (desc->half) return 0;
    return mode == NLIST_PER_PARTICLE || (mode == NLIST_REDUCE && desc->layout == NLIST_STATIC);
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif

#endif /* NLIST_H */

/* ==============================================================================================
   Implementation
   ============================================================================================== */

#if defined(NLIST_IMPLEMENTATION) && !defined(NLIST_IMPLEMENTATION_DONE)
#define NLIST_IMPLEMENTATION_DONE
#define NLIST_I_IMPLEMENTED /* in this file: its parts are, too */

#include <float.h>
#include <stdlib.h>

/* Loops over candidates (>>find-lbvh, boxes) are compiled a second time for AVX2, and chosen at run
   time: with gcc and clang on x86-64. Not with gcc on Windows, where it does not align the stack
   for it (its bug 54412). */
#if defined(__x86_64__) && defined(__GNUC__) && (!defined(_WIN32) || defined(__clang__)) && \
    !defined(__TINYC__) && \
    !defined(__INTEL_COMPILER) && !defined(__NVCOMPILER) && !defined(__CUDACC__) && \
    !defined(NLIST_PLAIN_LANES) && !defined(NLIST_PLAIN)
#include <immintrin.h>
#define NLIST_I_AVX2 __attribute__((target("avx2")))
#ifdef NLIST_I_HAS_AVX2 /* tests choose */
#elif defined(__AVX2__)
#define NLIST_I_HAS_AVX2() 1
#else
#define NLIST_I_HAS_AVX2() __builtin_cpu_supports("avx2")
#endif
#define NLIST_I_CHOSEN(portable, avx2) (NLIST_I_HAS_AVX2() ? avx2 : portable)
#else
#define NLIST_I_CHOSEN(portable, avx2) portable
#endif

enum { NLIST_I_LANES = 8 }; /* candidates that are tested together */

/* Compilers vectorise loops of constant length; gcc 12 would unroll them first, and then not
   vectorise them. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define NLIST_I_KEEP_LOOP _Pragma("GCC unroll 1")
#else
#define NLIST_I_KEEP_LOOP
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* A function that is never inlined, so that registers suffice for its loop (boxes); and one that
   always is. */
#ifdef __GNUC__
#define NLIST_I_NOINLINE static __attribute__((noinline))
#define NLIST_I_ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define NLIST_I_NOINLINE static
#define NLIST_I_ALWAYS_INLINE static inline
#endif

#if NLIST_I_REAL_KIND == 1
#define NLIST_I_REAL_MAX FLT_MAX
#define NLIST_I_REAL_MIN FLT_MIN
#else
#define NLIST_I_REAL_MAX DBL_MAX
#define NLIST_I_REAL_MIN DBL_MIN
#endif

#define NLIST_I_INT_MAX 2147482624      /* 2^31 - 1024: ids and entries, rounded up to whole blocks
                                           of threads, fit int32_t */
#define NLIST_I_VALUES 16               /* most values of a sum */

NLIST_API int nlist_version(void)
{
    return 10000 * NLIST_VERSION_MAJOR + 100 * NLIST_VERSION_MINOR + NLIST_VERSION_PATCH;
}

NLIST_API const char *nlist_result_text(nlist_result result)
{
#define NLIST_I_TEXT(code, text) #code ": " text,
    static const char *const texts[] = { NLIST_RESULTS(NLIST_I_TEXT) };
#undef NLIST_I_TEXT
    return (int)result >= 0 && result < NLIST_RESULT_COUNT ? texts[result] : "unknown nlist_result";
}

/* ----------------------------------------------------------------------------------------------
   >>blocks: the memory of a list, and which arrays each layout has
   ---------------------------------------------------------------------------------------------- */

/* Numbers of list.block. Those of generation g begin at g * NLIST_I_GENERATION. */
enum {
    NLIST_I_COUNT, NLIST_I_SLOT, NLIST_I_START, NLIST_I_PARTNER, NLIST_I_OWN, NLIST_I_LINK,
    NLIST_I_HEAD, NLIST_I_TOUCHED, NLIST_I_UID, NLIST_I_REFERENCE, NLIST_I_HISTORY, NLIST_I_SHIFT,
    NLIST_I_DISTANCE, NLIST_I_OFFSET, NLIST_I_WITHIN, NLIST_I_STATE,
    NLIST_I_GENERATION,                         /* blocks of one generation */
    NLIST_I_EVENT = 2 * NLIST_I_GENERATION,     /* three: begun, persisted, ended */
    NLIST_I_BEGIN = NLIST_I_EVENT + NLIST_EVENT_KINDS,  /* work: where each found row begins */
    NLIST_I_FOUND,                              /* work: partners as they are found */
    NLIST_I_WORK,                               /* work: pairs to sort, old ids, sums in units */
    NLIST_I_PART_BLOCKS                         /* the first of those of a part */
};

/* Does this layout have slots, a rest with chains, the array partner? */
static int nlist_i_has_slots(const nlist_desc *desc)
{
    return desc->layout == NLIST_STATIC || (desc->layout == NLIST_HYBRID && desc->width > 0);
}
static int nlist_i_has_rest(const nlist_desc *desc)
{
    return desc->layout == NLIST_DYNAMIC || desc->layout == NLIST_HYBRID;
}
static int nlist_i_has_partners(const nlist_desc *desc) { return desc->layout != NLIST_STATIC; }

/* 1 if two generations are kept, so that the next build can compare with the last. */
static int nlist_i_keeps_two(const nlist_desc *desc) { return desc->history > 0 || desc->events; }

/* 1 if entries have a state. */
static int nlist_i_has_states(const nlist_desc *desc) { return desc->contacts && desc->events; }

/* Defined behind the method, at >>memory and >>resolve. */
static void nlist_i_release(const nlist_allocator *allocator, nlist_block *block);
static nlist_result nlist_i_grow(nlist *list, int which, int64_t count, size_t size, size_t keep);
static nlist_result nlist_i_reserve_generation(nlist *list, int32_t g, int32_t n, int32_t rows,
                                               int64_t capacity, int uids);
static void nlist_i_axes(nlist *list);
static int nlist_i_periods_fit(const nlist *list, nlist_real largest);
static size_t nlist_i_stride(size_t stride, int dim);

/* ----------------------------------------------------------------------------------------------
   >>build: the method, from top to bottom: a list from a grid, with history

   A build makes the new rows beside the old ones, in seven steps, which follow in this order:

       begin      takes over desc, and checks it against the list that is there
       prepare    checks the particles
       find       searches the partners of every particle
       measure    compares what was found with what is allowed, and takes memory
       lay out    copies the rows to the arrays of the layout, in the order of ids
       carry      gives each new entry the history of the same contact in the old list
       end        makes the new rows the list; or, after a refusal, restores what was

   nlist_build_ugrid calls begin, prepare and nlist_i_build, which calls find and nlist_i_finish:
   measure to end (both under end). Uids, which find needs, stand with carry (nlist_i_keep_uids).

   Rows are found in the order of the source, one after the other. begin and length say where each
   is. Here row 1 was found first, then row 0. Row 2 is empty: a grid does not report it, and its
   begin is any value (.):

       found   [ 5  7 | 4 ]      row      0  1  2
                                 begin    2  0  .
                                 length   1  2  0

   Four steps have faster forms, in tasks or for common cases (>>faster): prepare, find, lay out and
   carry. They are entered here by functions ..._faster, which return 1 where they did the
   work. NLIST_PLAIN leaves them out: then this text is all that runs.
   ---------------------------------------------------------------------------------------------- */

struct nlist_i_finder;
typedef struct nlist_i_finder nlist_i_finder;

/* Finds all rows, each once, in any order: nlist_i_begin_row, _append ..., _end_row. It can be
   called twice (nlist_i_find_again). */
typedef nlist_result nlist_i_collect_fn(nlist_i_finder *finder);

/* Fills in what entries have beside the partner (desc.shifts, distances, offsets), and
   rows->within, for rows first .. last-1, which are laid out. */
typedef void nlist_i_extras_fn(const nlist_i_finder *finder, const nlist_rows *old_rows,
                               const nlist_rows *rows, int32_t first, int32_t last);

/* The old entry whose contact goes on in row i under this key, which is new there; -1 = none.
   `taken`: 0 at the first call for a row. */
typedef int64_t nlist_i_wander_fn(const nlist_i_finder *finder, const nlist_rows *old_rows,
                                  const nlist_rows *rows, int32_t i, int32_t key, uint64_t *taken);

/* A build in progress. */
struct nlist_i_finder {
    nlist *list;
    int32_t n;
    int32_t rows;           /* to be found: those of particles 0 .. rows-1 */
    int32_t to;             /* the generation that is written */
    const nlist_real *pos;  /* positions; NULL: given pairs, a remap */
    size_t stride;
    nlist_real largest;     /* the largest of the radii */
    const int32_t *new_of;  /* a remap: new ids of old particles; else NULL */
    const int32_t *old_of;  /* and old ids of new ones, -1 = new */
    const int64_t *uid;     /* uids that decide which row owns a pair (nlist_rows), or NULL: ids */
    void *source;           /* what is searched: a struct for each source */
    nlist_i_extras_fn *extras; /* boxes, and a remap; else NULL */
    nlist_i_wander_fn *wander; /* triangles; else NULL */

    int64_t *begin;         /* results: [rows] where a row begins in found */
    int32_t *length;        /* [rows] partners of a row */
    int32_t *found;         /* partners */
    int64_t used, room;     /* of found */
    int32_t row;            /* the row in progress */
    int fixed;              /* 1: no memory is taken, and partners without room are counted: in a
                               task, and where memory has ended */
    int32_t clean;          /* rows below it are overwritten, and their unused slots are -1 */
};

/* The steps. */
static nlist_result nlist_i_begin(nlist *list, const nlist_desc *desc, int keys, nlist *before);
static nlist_result nlist_i_prepare(nlist_i_finder *finder, const nlist_real *pos, size_t stride);
static nlist_result nlist_i_build(nlist_i_finder *finder, nlist_i_collect_fn *collect);
static nlist_result nlist_i_end_build(nlist *list, const nlist *before, nlist_result result);

/* Their faster forms. */
#ifdef NLIST_PLAIN
#define nlist_i_check_faster(finder, result)                       0
#define nlist_i_lay_out_faster(finder, old_rows, result)           0
#define nlist_i_carry_faster(finder, old_rows, rows, first, last)  0
#define nlist_i_ended_faster(finder, old_rows, rows, i)            0
#define nlist_i_in_place_faster(finder, old_rows)                  0
#define nlist_i_ugrid_faster(finder, result)                       0
#define nlist_i_lbvh_faster(finder, result)                        0
#define nlist_i_mesh_faster(finder, result)                        0
#else
static int nlist_i_check_faster(nlist_i_finder *finder, nlist_result *result);
static int nlist_i_lay_out_faster(nlist_i_finder *finder, const nlist_rows *old_rows,
                                  nlist_result *result);
static int nlist_i_carry_faster(nlist_i_finder *finder, const nlist_rows *old_rows,
                                const nlist_rows *rows, int32_t first, int32_t last);
static int nlist_i_ended_faster(nlist_i_finder *finder, const nlist_rows *old_rows,
                                const nlist_rows *rows, int32_t i);
static int nlist_i_in_place_faster(nlist_i_finder *finder, const nlist_rows *old_rows);
#ifdef NLIST_I_UGRID
static int nlist_i_ugrid_faster(nlist_i_finder *finder, nlist_result *result);
#endif
#ifdef NLIST_I_LBVH
static int nlist_i_lbvh_faster(nlist_i_finder *finder, nlist_result *result);
static int nlist_i_mesh_faster(nlist_i_finder *finder, nlist_result *result);
#endif
#endif

/* A build of n particles, of which none is refused yet. */
static nlist_i_finder nlist_i_finder_of(nlist *list, int32_t n)
{
    nlist_i_finder finder;
    if (list) list->bad_id = -1;
    memset(&finder, 0, sizeof finder);
    finder.list = list;
    finder.n = n;
    return finder;
}

#ifdef NLIST_I_UGRID
static nlist_result nlist_i_collect_ugrid(nlist_i_finder *finder);

/* A grid as the source of a build. */
typedef struct nlist_i_from_grid {
    ugrid *grid;            /* a copy, without its filter: the list has its own */
    nlist_result result;    /* of the rows taken so far */
} nlist_i_from_grid;

/* desc without its box, which is neither used nor checked: the grid has one. */
static nlist_desc nlist_i_ugrid_desc(const nlist_desc *desc)
{
    nlist_desc resolved = *desc;
    memset(resolved.periodic, 0, sizeof resolved.periodic);
    return resolved;
}

/* A grid of n points must have all of them. */
static nlist_result nlist_i_check_ugrid(const nlist *list, const ugrid *grid, int32_t n)
{
    if (grid->n != n || (n > 0 && grid->cell_count == 0)) return NLIST_BAD_SOURCE;
    if (grid->desc.outside == UGRID_LEAVE_OUT) return NLIST_BAD_SOURCE;
    return n > 0 && grid->desc.dim != list->desc.dim ? NLIST_BAD_DIM : NLIST_OK;
}

/* Takes the periodic box from the grid. */
static void nlist_i_ugrid_axes(nlist *list, const ugrid *grid)
{
    int a;
    for (a = 0; a < 3; a++) {
        const ugrid_axis *axis = &grid->axis[a];
        list->desc.periodic[a] = axis->periodic;
        list->desc.min[a] = axis->min;
        list->desc.max[a] = axis->max;
    }
    nlist_i_axes(list);
}

NLIST_API nlist_result nlist_build_ugrid(nlist *list, const nlist_desc *desc, const ugrid *grid,
                                         const nlist_real *pos, size_t stride, int32_t n)
{
    nlist_i_finder finder = nlist_i_finder_of(list, n);
    nlist_i_from_grid from;
    ugrid searched;
    nlist before;
    nlist_desc resolved;
    nlist_result result;
    if (!list || !desc || !grid) return NLIST_BAD_ARGUMENT;
    searched = *grid;
    memset(&searched.filter, 0, sizeof searched.filter);
    from.grid = &searched;
    from.result = NLIST_OK;
    finder.source = &from;
    resolved = nlist_i_ugrid_desc(desc);
    result = nlist_i_begin(list, &resolved, 0, &before);
    if (result == NLIST_OK) result = nlist_i_check_ugrid(list, grid, n);
    if (result == NLIST_OK && n > 0) nlist_i_ugrid_axes(list, grid);
    if (result == NLIST_OK) result = nlist_i_prepare(&finder, pos, stride);
    if (result == NLIST_OK) result = nlist_i_build(&finder, nlist_i_collect_ugrid);
    return nlist_i_end_build(list, &before, result);
}
#endif

/* ---- begin ---- */

/* Refuses a desc that the current list cannot change to. */
static nlist_result nlist_i_check_change(const nlist *list, const nlist_desc *desc, int keys)
{
    const nlist_desc *had = &list->desc;
    int holds = 0, b;
    for (b = 0; b < NLIST_BLOCKS; b++) holds |= list->block[b].memory != NULL;
    if (holds && (had->allocator.alloc != desc->allocator.alloc ||
                  had->allocator.free != desc->allocator.free ||
                  had->allocator.user != desc->allocator.user))
        return NLIST_BAD_ALLOCATOR;
    if (list->n == 0 || !nlist_i_keeps_two(had)) return NLIST_OK;
    if (had->history != desc->history || !had->half != !desc->half || list->keys != keys ||
        had->dim != desc->dim || !had->shifts != !desc->shifts ||
        nlist_i_has_states(had) != nlist_i_has_states(desc))
        return NLIST_BAD_HISTORY;
    return NLIST_OK;
}

/* Takes over desc. keys: 1 for a list of triangles. `before` is what nlist_i_end_build restores if
   the build is refused. */
static nlist_result nlist_i_begin(nlist *list, const nlist_desc *desc, int keys, nlist *before)
{
    nlist_desc resolved;
    nlist_result result;
    *before = *list;
    list->bad_id = -1;
    result = nlist_defaults(&resolved, desc);
    if (result == NLIST_OK) result = nlist_i_check_change(list, &resolved, keys);
    if (result != NLIST_OK) return result;
    list->desc = resolved;
    list->keys = keys;
    list->triangles = list->boxed = list->rows_cut = 0;
    list->needed_width = 0;
    list->needed_entries = 0;
    nlist_i_axes(list);
    return NLIST_OK;
}

/* ---- prepare ---- */

/* Checks that positions and radii are finite, and finds the largest radius (as on a GPU, of
   particles that are left out, too). */
static nlist_result nlist_i_check_particles(nlist_i_finder *finder)
{
    const nlist_desc *desc = &finder->list->desc;
    int32_t i, left_out = -1;
    finder->largest = 0;
    for (i = 0; i < finder->n; i++) {
        nlist_real const radius = nlist_i_radius(desc, i);
        nlist_real p[3];
        nlist_i_load(finder->pos, finder->stride, desc->dim, i, p);
        finder->list->bad_id = i; /* if it is refused */
        if (desc->skip_invalid && !nlist_i_point_finite(p)) {
            if (left_out < 0) left_out = i;
        } else {
            if (!nlist_i_point_finite(p) || !nlist_i_finite(radius)) return NLIST_NOT_FINITE;
            if (radius < 0) return NLIST_BAD_RADIUS;
        }
        if (radius > finder->largest && nlist_i_finite(radius)) finder->largest = radius;
    }
    finder->list->bad_id = left_out;
    return NLIST_OK;
}

/* The rows that desc.rows asks for. */
static nlist_result nlist_i_set_rows(const nlist_desc *desc, int32_t n, int32_t *rows)
{
    *rows = desc->rows > 0 ? desc->rows : desc->rows == 0 ? n : 0;
    return desc->rows > n || desc->rows < NLIST_NO_ROWS ? NLIST_BAD_ROWS : NLIST_OK;
}

/* Takes over the positions, with the checks that all builds from positions begin with. The largest
   reach must be at most half of a period, and its square a normal number. */
static nlist_result nlist_i_prepare(nlist_i_finder *finder, const nlist_real *pos, size_t stride)
{
    const nlist_desc *desc = &finder->list->desc;
    nlist_real reach, square;
    nlist_result result;
    finder->pos = pos;
    finder->stride = nlist_i_stride(stride, desc->dim);
    if (finder->n < 0 || (finder->n > 0 && !pos) || finder->stride == 0) return NLIST_BAD_ARGUMENT;
    if (finder->n > NLIST_I_INT_MAX) return NLIST_TOO_MANY;
    result = nlist_i_set_rows(desc, finder->n, &finder->rows);
    if (result != NLIST_OK) return result;
    if (!nlist_i_check_faster(finder, &result)) result = nlist_i_check_particles(finder);
    if (result != NLIST_OK || finder->n == 0) return result;
    reach = nlist_i_largest_reach(desc, finder->largest);
    square = reach * reach;
    if (!(square >= NLIST_I_REAL_MIN) || !nlist_i_finite(square)) return NLIST_BAD_RADIUS;
    return nlist_i_periods_fit(finder->list, finder->largest) ? NLIST_OK : NLIST_BAD_PERIOD;
}

/* desc.exclude_start begins with 0, and does not descend. */
static nlist_result nlist_i_check_exclusions(const nlist_desc *desc, int32_t n)
{
    int32_t i;
    if (!desc->exclude_start) return NLIST_OK;
    if (desc->exclude_start[0] != 0) return NLIST_BAD_EXCLUSIONS;
    for (i = 0; i < n; i++)
        if (desc->exclude_start[i + 1] < desc->exclude_start[i]) return NLIST_BAD_EXCLUSIONS;
    return NLIST_OK;
}

/* ---- find ---- */

/* Work space for rows as they are found: begin and length share a block, 8 and 4 bytes a row. */
static nlist_result nlist_i_reserve_found(nlist_i_finder *finder)
{
    nlist *list = finder->list;
    nlist_result const result = nlist_i_grow(list, NLIST_I_BEGIN, (int64_t)finder->n + 1,
                                             sizeof(int64_t) + sizeof(int32_t), 0);
    if (result != NLIST_OK) return result;
    finder->begin = (int64_t *)list->block[NLIST_I_BEGIN].memory;
    finder->length = (int32_t *)(void *)(finder->begin + finder->n);
    finder->found = (int32_t *)list->block[NLIST_I_FOUND].memory;
    finder->room = (int64_t)(list->block[NLIST_I_FOUND].bytes / sizeof(int32_t));
    return NLIST_OK;
}

/* Room for `count` partners. Those that were found are kept. */
static nlist_result nlist_i_take_found(nlist_i_finder *finder, int64_t count)
{
    nlist_result const result = nlist_i_grow(finder->list, NLIST_I_FOUND, count, sizeof(int32_t),
                                             (size_t)finder->used * sizeof(int32_t));
    finder->found = (int32_t *)finder->list->block[NLIST_I_FOUND].memory;
    finder->room = (int64_t)(finder->list->block[NLIST_I_FOUND].bytes / sizeof(int32_t));
    return result;
}

/* Room for `more` further partners: half as much again at least, so that n partners are copied O(1)
   times. Where memory has no such block, partners without room are counted from now on
   (nlist_i_find_again). */
static nlist_result nlist_i_need(nlist_i_finder *finder, int64_t more)
{
    int64_t const least = finder->used + more, half = finder->room + finder->room / 2;
    nlist_result result;
    if (least <= finder->room) return NLIST_OK;
    result = nlist_i_take_found(finder, least > half ? least : half);
    finder->fixed = result == NLIST_OUT_OF_MEMORY;
    return finder->fixed ? NLIST_OK : result;
}

/* The partners that follow are those of this row. */
static void nlist_i_begin_row(nlist_i_finder *finder, int32_t row)
{
    finder->row = row;
    finder->begin[row] = finder->used;
}

/* The row has all partners that were appended. */
static void nlist_i_end_row(nlist_i_finder *finder)
{
    finder->length[finder->row] = (int32_t)(finder->used - finder->begin[finder->row]);
}

/* Appends a partner to the row; with finder.fixed those that have no room are counted. */
static nlist_result nlist_i_append(nlist_i_finder *finder, int32_t j)
{
    nlist_result const result = finder->fixed ? NLIST_OK : nlist_i_need(finder, 1);
    if (result != NLIST_OK) return result;
    if (finder->used < finder->room) finder->found[finder->used] = j;
    finder->used++;
    return NLIST_OK;
}

/* Tests the candidate j, at q, and appends it to the row if it is listed. */
static nlist_result nlist_i_test_candidate(nlist_i_finder *finder, const nlist_i_query *query,
                                           int32_t j, const nlist_real q[3])
{
    return nlist_i_lists(finder->list, finder->uid, query, j, q) ? nlist_i_append(finder, j)
                                                                 : NLIST_OK;
}

#ifdef NLIST_I_UGRID
/* A row of ugrid_each_row: the places of the particles near that at `place`, or some of them (then
   the row is continued by the next call). A place is an index in the order of the grid. */
static int nlist_i_receive_row(void *user, int32_t place, const int32_t *places, int32_t count)
{
    nlist_i_finder *finder = (nlist_i_finder *)user;
    nlist_i_from_grid *from = (nlist_i_from_grid *)finder->source;
    nlist_i_query query;
    nlist_real p[3], q[3];
    int32_t k;
    ugrid_point(from->grid, place, p);
    query = nlist_i_query_of(&finder->list->desc, ugrid_id(from->grid, place), p);
    if (finder->row != query.i) nlist_i_begin_row(finder, query.i);
    for (k = 0; k < count; k++) {
        ugrid_point(from->grid, places[k], q);
        from->result = nlist_i_test_candidate(finder, &query, ugrid_id(from->grid, places[k]), q);
        if (from->result != NLIST_OK) return 1;
    }
    nlist_i_end_row(finder);
    return 0;
}

/* Finds the rows by a search of ugrid.h for each particle. */
static nlist_result nlist_i_collect_ugrid(nlist_i_finder *finder)
{
    nlist_i_from_grid *from = (nlist_i_from_grid *)finder->source;
    nlist_real const reach = nlist_i_largest_reach(&finder->list->desc, finder->largest);
    ugrid_result searched;
    nlist_result result;
    int32_t i;
    if (finder->n == 0) return NLIST_OK;
    from->grid->rows = finder->rows;
    finder->row = -1;
    for (i = 0; i < finder->rows; i++) finder->begin[i] = finder->length[i] = 0;
    if (nlist_i_ugrid_faster(finder, &result)) return result;
    searched = ugrid_each_row(from->grid, reach, UGRID_PLACES, nlist_i_receive_row, finder);
    if (searched == UGRID_STOPPED) return from->result;
    return searched == UGRID_OK ? NLIST_OK : NLIST_BAD_SOURCE;
}
#endif

/* ---- measure ---- */

/* The number of entries of a row beyond its slots. */
static int64_t nlist_i_beyond(const nlist_desc *desc, int32_t length)
{
    int32_t const slots = nlist_i_has_slots(desc) ? desc->width : 0;
    return length > slots && nlist_i_has_partners(desc) ? length - slots : 0;
}

/* The slots and entries that the found rows need, compared with those allowed. Widens desc.width
   where rows are longer and desc.grow allows it. */
static nlist_result nlist_i_check_sizes(nlist_i_finder *finder)
{
    nlist *list = finder->list;
    nlist_desc *desc = &list->desc;
    int32_t i;
    for (i = 0; i < finder->rows; i++) {
        if (finder->length[i] > list->needed_width) list->needed_width = finder->length[i];
        list->needed_entries += nlist_i_beyond(desc, finder->length[i]);
    }
    if (desc->layout == NLIST_STATIC && list->needed_width > desc->width) {
        if (!desc->grow || list->needed_width > 1024) return NLIST_ROW_FULL;
        /* a power of two stays one: NLIST_REDUCE, up to 32 */
        while (desc->width < list->needed_width) desc->width *= 2;
        if (desc->width > 1024) desc->width = 1024;
    }
    if (nlist_i_has_rest(desc) && list->needed_entries > NLIST_I_INT_MAX) return NLIST_TOO_MANY;
    if (desc->capacity > 0 && list->needed_entries > desc->capacity && !desc->grow)
        return NLIST_LIST_FULL;
    return NLIST_OK;
}

/* Memory for the three arrays of events: at most all new entries begin or persist, and at most all
   old ones end. */
static nlist_result nlist_i_reserve_events(nlist_i_finder *finder, const nlist_rows *old_rows)
{
    nlist *list = finder->list;
    int64_t were = 0;
    int32_t i;
    int kind;
    if (!list->desc.events || finder->new_of) return NLIST_OK;
    for (i = 0; i < old_rows->n; i++) were += old_rows->count[i];
    for (kind = 0; kind < NLIST_EVENT_KINDS; kind++) {
        int64_t const most = kind == NLIST_ENDED ? were : finder->used;
        nlist_result const result =
            nlist_i_grow(list, NLIST_I_EVENT + kind, most, sizeof(nlist_event),
                         (size_t)list->event_count[kind] * sizeof(nlist_event));
        list->event[kind] = (nlist_event *)list->block[NLIST_I_EVENT + kind].memory;
        if (result != NLIST_OK) return result;
    }
    return NLIST_OK;
}

/* Takes the memory of the rows that are written, with room for desc.capacity entries or as many as
   were found, and begins them. */
static nlist_result nlist_i_reserve_rows(nlist_i_finder *finder, int uids)
{
    nlist *list = finder->list;
    nlist_rows *rows = &list->rows[finder->to];
    nlist_rows const was = *rows;
    int64_t const needed = list->needed_entries, asked = list->desc.capacity;
    nlist_result const result =
        nlist_i_reserve_generation(list, finder->to, finder->n, finder->rows,
                                   asked > needed ? asked : needed, uids);
    if (result != NLIST_OK) return result;
    if (rows->start) rows->start[0] = 0;
    rows->entries = needed;
    rows->adjacent = 1;
    if (finder->to == list->current && list->built && rows->slot == was.slot &&
        rows->count == was.count && rows->width == was.width)
        finder->clean = was.n; /* slots that are -1 already are not written again */
    return NLIST_OK;
}

/* ---- lay out ---- */

/* Writes row i to its slots, of which `used` are not -1, and beyond them to the rest, from entry
   `at` on. Returns the next free entry. */
static int64_t nlist_i_put_row(nlist_rows *rows, int32_t i, int32_t used, const int32_t *found,
                               int32_t length, int64_t at)
{
    int32_t *const slot = rows->width > 0 ? rows->slot + (int64_t)i * rows->width : NULL;
    int32_t const slots = length < rows->width ? length : rows->width;
    int32_t k;
    if (slots > 0) memcpy(slot, found, (size_t)slots * sizeof *slot);
    for (k = slots; k < used && k < rows->width; k++) slot[k] = -1;
    if (!rows->head) return at;
    rows->head[i] = length > rows->width ? (int32_t)at : -1;
    for (k = rows->width; k < length; k++, at++) {
        rows->own[at] = i;
        rows->partner[at] = found[k];
        rows->link[at] = k + 1 < length ? (int32_t)at + 1 : -1;
    }
    return at;
}

/* Rows are found in the order of the source, and laid out by ids: so their memory is prefetched. */
#ifdef __GNUC__
#define NLIST_I_PREFETCH(address) __builtin_prefetch(address)
#else
#define NLIST_I_PREFETCH(address) ((void)(address))
#endif
enum { NLIST_I_ROWS_AHEAD = 16 };

/* Copies the found rows first .. last-1 to the arrays of the layout, from entry `at` on. */
static void nlist_i_lay_out(const nlist_i_finder *finder, nlist_rows *rows, int32_t first,
                            int32_t last, int64_t at)
{
    int32_t i, used;
    for (i = first; i < last; i++) {
        int32_t const length = finder->length[i];
        const int32_t *found = length > 0 ? finder->found + finder->begin[i] : NULL;
        if (i < last - NLIST_I_ROWS_AHEAD && finder->length[i + NLIST_I_ROWS_AHEAD] > 0)
            NLIST_I_PREFETCH(finder->found + finder->begin[i + NLIST_I_ROWS_AHEAD]);
        used = i < finder->clean ? rows->count[i] : rows->width;
        rows->count[i] = length;
        if (rows->start) {
            if (length > 0) memcpy(rows->partner + at, found, (size_t)length * sizeof *found);
            at += length;
            rows->start[i + 1] = at;
            continue;
        }
        at = nlist_i_put_row(rows, i, used, found, length, at);
        if (rows->touched && length > 0) rows->touched[rows->touched_count++] = i;
    }
}

/* The reference positions of the skin: those of the build. A remap keeps those of the last build,
   and sets NaN for new particles. */
static void nlist_i_keep_reference(const nlist_i_finder *finder, const nlist_rows *old_rows,
                                   nlist_rows *rows, int32_t first, int32_t last)
{
    int const dim = finder->list->desc.dim;
    int32_t i;
    int a;
    if (!rows->reference) return;
    for (i = first; i < last; i++) {
        nlist_real *to = rows->reference + (size_t)i * (size_t)dim;
        int32_t const was = finder->old_of ? finder->old_of[i] : -1;
        nlist_real p[3];
        if (!finder->old_of && finder->pos) nlist_i_load(finder->pos, finder->stride, dim, i, p);
        for (a = 0; a < dim; a++) {
            if (was >= 0) to[a] = old_rows->reference[(size_t)was * (size_t)dim + (size_t)a];
            else to[a] = !finder->old_of && finder->pos ? p[a] : (nlist_real)NAN;
        }
    }
}

/* ---- carry ---- */

/* Notes that a contact began, persists or ended. */
static void nlist_i_add_event(nlist *list, int kind, int32_t i, int32_t j, int64_t entry)
{
    nlist_event *event = &list->event[kind][list->event_count[kind]++];
    event->i = !list->keys && j < i ? j : i;
    event->j = !list->keys && j < i ? i : j;
    event->entry = entry;
}

/* 1 if events report this entry: each pair is reported once. */
static int nlist_i_reports(const nlist *list, int32_t i, const nlist_each *e)
{
    return list->keys || list->desc.half || i < e->id ||
           (i == e->id && nlist_i_positive(e->shift));
}

/* Copies the bytes of each new entry of row i from row `was` of the old ones, or zeros; notes
   contacts that began or persist. */
static void nlist_i_carry_row(nlist_i_finder *finder, const nlist_rows *old_rows, int32_t was,
                              const nlist_rows *rows, int32_t i)
{
    nlist *list = finder->list;
    int32_t const bytes = list->desc.history;
    nlist_i_matcher matcher = nlist_i_match_row(old_rows, bytes, was, finder->new_of, list->keys);
    nlist_each e = nlist_i_row(rows, bytes, i);
    int const events = list->desc.events && !finder->new_of;
    uint64_t taken = 0;
    int kind;
    while (nlist_next(&e)) {
        int64_t old = nlist_i_match(&matcher, e.id, e.shift);
        if (old < 0 && finder->wander)
            old = finder->wander(finder, old_rows, rows, i, e.id, &taken);
        if (bytes > 0 && old >= 0) memcpy(e.history, old_rows->history + old * bytes,
                                          (size_t)bytes);
        else if (bytes > 0) memset(e.history, 0, (size_t)bytes);
        if (rows->state)
            rows->state[e.entry] = nlist_i_next_state(old_rows, old, finder->new_of != NULL);
        if (!events || !nlist_i_reports(list, i, &e)) continue;
        kind = nlist_i_event_of(old_rows, rows, old);
        if (kind >= 0) nlist_i_add_event(list, kind, i, e.id, e.entry);
    }
}

/* Notes the old entries of row i whose partner is not in the new row. (Triangles: a contact that
   moved to a neighbouring triangle ends under its old key, and persists under the new one.) */
static void nlist_i_add_ended(nlist *list, const nlist_rows *old_rows, const nlist_rows *rows,
                              int32_t i)
{
    nlist_i_matcher matcher = nlist_i_match_row(rows, list->desc.history, i, NULL, list->keys);
    nlist_each e = nlist_i_row(old_rows, list->desc.history, i);
    while (nlist_next(&e))
        if (nlist_i_reports(list, i, &e) &&
            nlist_i_has_ended(old_rows, e.entry, nlist_i_match(&matcher, e.id, e.shift) >= 0))
            nlist_i_add_event(list, NLIST_ENDED, i, e.id, e.entry);
}

/* History of rows first .. last-1, and which of their contacts began or persist. */
static void nlist_i_carry_rows(nlist_i_finder *finder, const nlist_rows *old_rows,
                               const nlist_rows *rows, int32_t first, int32_t last)
{
    int32_t i;
    if (nlist_i_carry_faster(finder, old_rows, rows, first, last)) return;
    for (i = first; i < last; i++)
        nlist_i_carry_row(finder, old_rows, finder->old_of ? finder->old_of[i] : i, rows, i);
}

/* Which contacts of the old rows first .. last-1 have ended. */
static void nlist_i_end_rows(nlist_i_finder *finder, const nlist_rows *old_rows,
                             const nlist_rows *rows, int32_t first, int32_t last)
{
    int32_t i;
    for (i = first; i < last; i++)
        if (!nlist_i_ended_faster(finder, old_rows, rows, i))
            nlist_i_add_ended(finder->list, old_rows, rows, i);
}

/* History and events of all rows. (A remap changes no contact: it makes no events.) */
static void nlist_i_carry(nlist_i_finder *finder, const nlist_rows *old_rows,
                          const nlist_rows *rows)
{
    nlist *list = finder->list;
    if (!nlist_i_keeps_two(&list->desc)) return;
    if (!finder->new_of) memset(list->event_count, 0, sizeof list->event_count);
    nlist_i_carry_rows(finder, old_rows, rows, 0, finder->rows);
    if (list->desc.events && !finder->new_of)
        nlist_i_end_rows(finder, old_rows, rows, 0, old_rows->n);
}

/* Uids of half lists with history or events, once particles have been renumbered. New particles
   get higher ones than all before. They are made before the search, which needs them. Figure:
   >>remap. */
static nlist_result nlist_i_keep_uids(nlist_i_finder *finder)
{
    nlist *list = finder->list;
    const int64_t *had = list->rows[list->current].uid;
    int const block = finder->to * NLIST_I_GENERATION + NLIST_I_UID;
    nlist_result result;
    int64_t *uid;
    int32_t i;
    if (list->n == 0 || !list->desc.half || !nlist_i_keeps_two(&list->desc)) return NLIST_OK;
    if (!finder->new_of && !had) return NLIST_OK;
    result = nlist_i_grow(list, block, finder->n, sizeof(int64_t), 0);
    if (result != NLIST_OK) return result;
    uid = (int64_t *)list->block[block].memory;
    for (i = 0; i < finder->n; i++) {
        int32_t const was = finder->new_of ? finder->old_of[i] : i < list->n ? i : -1;
        uid[i] = nlist_i_uid(was < 0 ? list->next_uid + i : had ? had[was] : was, i,
                             finder->rows);
    }
    finder->uid = uid;
    return NLIST_OK;
}

/* ---- end ---- */

/* The rows that were written are the list from now on. */
static void nlist_i_take_over(const nlist_i_finder *finder, int64_t next_uid)
{
    nlist *list = finder->list;
    list->current = finder->to;
    list->n = finder->n;
    list->row_count = finder->rows;
    list->total = finder->used;
    list->next_uid = next_uid;
    list->remembers = nlist_i_keeps_two(&list->desc);
    list->built = 1;
}

/* The rows are found: lays them out, carries history, and makes them the list. */
static nlist_result nlist_i_finish(nlist_i_finder *finder)
{
    nlist *list = finder->list;
    nlist_rows *const rows = &list->rows[finder->to];
    nlist_rows old_rows;
    nlist_result result = nlist_i_check_sizes(finder);
    if (result != NLIST_OK) return result;
    memset(&old_rows, 0, sizeof old_rows); /* no rows: all contacts are new */
    if (list->n > 0 && (list->remembers || finder->new_of)) old_rows = list->rows[list->current];
    if (nlist_i_in_place_faster(finder, &old_rows)) {
        nlist_i_take_over(finder, finder->uid ? list->next_uid + finder->n : finder->n);
        return NLIST_OK;
    }
    result = nlist_i_reserve_events(finder, &old_rows);
    if (result == NLIST_OK) result = nlist_i_reserve_rows(finder, finder->uid != NULL);
    if (result != NLIST_OK) return result;
    if (!nlist_i_lay_out_faster(finder, &old_rows, &result)) {
        nlist_i_lay_out(finder, rows, 0, finder->rows, 0);
        if (finder->extras) finder->extras(finder, &old_rows, rows, 0, finder->rows);
        nlist_i_keep_reference(finder, &old_rows, rows, 0, finder->n);
        nlist_i_carry(finder, &old_rows, rows);
    }
    if (result != NLIST_OK) return result;
    nlist_i_take_over(finder, finder->uid ? list->next_uid + finder->n : finder->n);
    return NLIST_OK;
}

/* 1 if the desc asks for what only boxes have. */
static int nlist_i_has_extras(const nlist_desc *desc)
{
    return desc->shifts || desc->distances || desc->offsets || desc->sorted || desc->nearest;
}

/* Memory ended before all partners were found, and they were counted. Takes room for exactly these,
   without what was found so far, and searches once more. NLIST_OUT_OF_MEMORY: list.needed_entries
   says what the list needs. */
static nlist_result nlist_i_find_again(nlist_i_finder *finder, nlist_i_collect_fn *collect)
{
    int64_t const all = finder->used;
    nlist_result result;
    finder->used = 0;
    nlist_i_release(&finder->list->desc.allocator, &finder->list->block[NLIST_I_FOUND]);
    result = nlist_i_take_found(finder, all);
    if (result != NLIST_OK) return result;
    finder->fixed = 0;
    return collect(finder);
}

/* Find, and all that follows. The new rows are written beside the old ones where these are still
   needed, else over them. */
static nlist_result nlist_i_build(nlist_i_finder *finder, nlist_i_collect_fn *collect)
{
    nlist *list = finder->list;
    int const beside = list->n > 0 && (nlist_i_keeps_two(&list->desc) || finder->new_of);
    nlist_result result = nlist_i_check_exclusions(&list->desc, finder->n);
    if (!finder->extras && nlist_i_has_extras(&list->desc)) return NLIST_BAD_OPTION;
    finder->to = beside ? 1 - list->current : list->current;
    if (result == NLIST_OK) result = nlist_i_reserve_found(finder);
    if (result == NLIST_OK) result = nlist_i_keep_uids(finder);
    if (result == NLIST_OK) result = collect(finder);
    if (result == NLIST_OK && finder->fixed) result = nlist_i_find_again(finder, collect);
    if (result == NLIST_OUT_OF_MEMORY && finder->fixed) (void)nlist_i_check_sizes(finder);
    return result == NLIST_OK ? nlist_i_finish(finder) : result;
}

/* Arrays of a call are borrowed until it ends: forgets them. */
static nlist_result nlist_i_forget_borrowed(nlist *list, nlist_result result)
{
    list->desc.radii = NULL;
    list->desc.masks = NULL;
    list->desc.exclude_start = NULL;
    list->desc.exclude = NULL;
    return result;
}

/* list->built while a build ends: tasks (>>parallel-build) wrote to this generation, and one of
   them failed. */
enum { NLIST_I_OVERWRITTEN = -1 };

/* Empties generation g. If that is the current one, the list is no longer built; a list of no
   particles stays built, as it loses nothing. */
static void nlist_i_lose_generation(nlist *list, int32_t g)
{
    memset(&list->rows[g], 0, sizeof list->rows[g]);
    if (g != list->current) return;
    list->built = list->built && list->n == 0;
    list->n = list->row_count = 0;
    list->total = 0;
}

/* Ends a build. After a refusal everything is restored except the diagnostics, and memory that
   grew. */
static nlist_result nlist_i_end_build(nlist *list, const nlist *before, nlist_result result)
{
    nlist const after = *list;
    int kind, g;
    if (result == NLIST_OK) return nlist_i_forget_borrowed(list, result);
    *list = *before;
    memcpy(list->block, after.block, sizeof list->block);
    list->desc.allocator = after.desc.allocator;
    list->bad_id = after.bad_id;
    list->needed_width = after.needed_width;
    list->needed_entries = after.needed_entries;
    for (kind = 0; kind < NLIST_EVENT_KINDS; kind++)
        list->event[kind] = (nlist_event *)list->block[NLIST_I_EVENT + kind].memory;
    for (g = 0; g < 2; g++) {
        int const first = g * NLIST_I_GENERATION;
        if (memcmp(after.block + first, before->block + first,
                   NLIST_I_GENERATION * sizeof *after.block) != 0)
            nlist_i_lose_generation(list, g); /* its arrays were freed or replaced */
    }
    if (after.built == NLIST_I_OVERWRITTEN) {
        nlist_i_lose_generation(list, after.current);
        memset(list->event_count, 0, sizeof list->event_count);
    }
    return nlist_i_forget_borrowed(list, result);
}

/* ----------------------------------------------------------------------------------------------
   >>sources: brute force, given pairs, trees, triangles
   ---------------------------------------------------------------------------------------------- */

/* Tests all particles for each row, by ascending id. */
static nlist_result nlist_i_collect_brute(nlist_i_finder *finder)
{
    const nlist *list = finder->list;
    nlist_real p[3], q[3];
    int32_t i, j;
    for (i = 0; i < finder->rows; i++) {
        nlist_i_query query;
        nlist_i_point(list, finder->pos, finder->stride, i, p);
        query = nlist_i_query_of(&list->desc, i, p);
        nlist_i_begin_row(finder, i);
        for (j = 0; j < finder->n; j++) {
            nlist_result result;
            if (j == i) continue;
            nlist_i_point(list, finder->pos, finder->stride, j, q);
            result = nlist_i_test_candidate(finder, &query, j, q);
            if (result != NLIST_OK) return result;
        }
        nlist_i_end_row(finder);
    }
    return NLIST_OK;
}

NLIST_API nlist_result nlist_build_brute(nlist *list, const nlist_desc *desc, const nlist_real *pos,
                                         size_t stride, int32_t n)
{
    nlist_i_finder finder = nlist_i_finder_of(list, n);
    nlist before;
    nlist_result result;
    if (!list) return NLIST_BAD_ARGUMENT;
    result = nlist_i_begin(list, desc, 0, &before);
    if (result == NLIST_OK) result = nlist_i_prepare(&finder, pos, stride);
    if (result == NLIST_OK) result = nlist_i_build(&finder, nlist_i_collect_brute);
    return nlist_i_end_build(list, &before, result);
}

/* The caller's pairs as a source. */
typedef struct nlist_i_from_pairs {
    const int32_t *pair;    /* [2 * pairs] ids */
    int64_t pairs;
} nlist_i_from_pairs;

/* The ids of pair p. Returns 0 where one is out of range, or both are the same. */
static int nlist_i_pair(const nlist_i_finder *finder, int64_t p, int32_t *a, int32_t *b)
{
    const nlist_i_from_pairs *from = (const nlist_i_from_pairs *)finder->source;
    *a = from->pair[2 * p];
    *b = from->pair[2 * p + 1];
    return *a >= 0 && *a < finder->n && *b >= 0 && *b < finder->n && *a != *b;
}

/* Row and partner of pair p, or swapped. Returns 0 where it is not listed in that direction (half
   lists, masks, exclusions). */
static int nlist_i_directed_pair(const nlist_i_finder *finder, int64_t p, int swapped, int32_t *row,
                                 int32_t *partner)
{
    const nlist_desc *desc = &finder->list->desc;
    int32_t a, b;
    (void)nlist_i_pair(finder, p, &a, &b);
    *row = swapped ? b : a;
    *partner = swapped ? a : b;
    return *row < finder->rows && nlist_i_may_list(desc, finder->uid, *row, *partner);
}

/* Exclusive prefix sum: counts in at[0 .. n-1] become begins. Returns their sum. */
static int64_t nlist_i_prefix_sum(int64_t *at, int32_t n)
{
    int64_t sum = 0;
    int32_t i;
    for (i = 0; i < n; i++) {
        int64_t const count = at[i];
        at[i] = sum;
        sum += count;
    }
    return sum;
}

/* First pass of the radix sort (nlist_i_collect_pairs): a counting sort of (row, partner) by
   partner, into WORK. */
static nlist_result nlist_i_sort_by_partner(nlist_i_finder *finder, int32_t **sorted,
                                            int64_t *count)
{
    nlist *list = finder->list;
    int64_t const pairs = ((const nlist_i_from_pairs *)finder->source)->pairs;
    nlist_result result;
    int32_t row, partner, i;
    int64_t p;
    int swapped;
    for (i = 0; i < finder->n; i++) finder->begin[i] = 0;
    for (p = 0; p < pairs; p++)
        for (swapped = 0; swapped < 2; swapped++)
            if (nlist_i_directed_pair(finder, p, swapped, &row, &partner)) finder->begin[partner]++;
    *count = nlist_i_prefix_sum(finder->begin, finder->n);
    result = nlist_i_grow(list, NLIST_I_WORK, *count, 2 * sizeof(int32_t), 0);
    if (result != NLIST_OK) return result;
    *sorted = (int32_t *)list->block[NLIST_I_WORK].memory;
    for (p = 0; p < pairs; p++) {
        for (swapped = 0; swapped < 2; swapped++) {
            int64_t at;
            if (!nlist_i_directed_pair(finder, p, swapped, &row, &partner)) continue;
            at = finder->begin[partner]++;
            (*sorted)[2 * at] = row;
            (*sorted)[2 * at + 1] = partner;
        }
    }
    return NLIST_OK;
}

/* Second pass: a counting sort by row, stable. Equal pairs are adjacent then, and are listed
   once. */
static nlist_result nlist_i_sort_by_row(nlist_i_finder *finder, const int32_t *sorted,
                                        int64_t count)
{
    nlist_result const result = nlist_i_take_found(finder, count);
    int64_t k;
    int32_t i;
    if (result != NLIST_OK) return result;
    for (i = 0; i < finder->rows; i++) finder->begin[i] = finder->length[i] = 0;
    for (k = 0; k < count; k++) finder->begin[sorted[2 * k]]++;
    (void)nlist_i_prefix_sum(finder->begin, finder->rows);
    for (k = 0; k < count; k++) {
        int32_t const row = sorted[2 * k], partner = sorted[2 * k + 1];
        int64_t const at = finder->begin[row] + finder->length[row];
        if (finder->length[row] > 0 && finder->found[at - 1] == partner) continue;
        finder->found[at] = partner;
        finder->length[row]++;
    }
    for (i = 0; i < finder->rows; i++) finder->used += finder->length[i];
    return NLIST_OK;
}

/* The caller's pairs: a radix sort, least significant digit first, with ids as digits: by partner,
   then by row. So rows ascend. */
static nlist_result nlist_i_collect_pairs(nlist_i_finder *finder)
{
    int64_t const pairs = ((const nlist_i_from_pairs *)finder->source)->pairs;
    nlist_result result;
    int32_t *sorted = NULL, a, b;
    int64_t p, count = 0;
    for (p = 0; p < pairs; p++) {
        if (nlist_i_pair(finder, p, &a, &b)) continue;
        finder->list->bad_id = p < NLIST_I_INT_MAX ? (int32_t)p : NLIST_I_INT_MAX;
        return NLIST_BAD_INDEX;
    }
    result = nlist_i_sort_by_partner(finder, &sorted, &count);
    return result == NLIST_OK ? nlist_i_sort_by_row(finder, sorted, count) : result;
}

NLIST_API nlist_result nlist_build_pairs(nlist *list, const nlist_desc *desc, const int32_t *pair,
                                         int64_t m, int32_t n)
{
    nlist_i_finder finder = nlist_i_finder_of(list, n);
    nlist_i_from_pairs from;
    nlist before;
    nlist_result result;
    if (!list || n < 0 || m < 0 || (m > 0 && !pair)) return NLIST_BAD_ARGUMENT;
    if (n > NLIST_I_INT_MAX) return NLIST_TOO_MANY;
    result = nlist_i_begin(list, desc, 0, &before);
    if (result == NLIST_OK && list->desc.skin > 0) result = NLIST_BAD_SKIN;
    from.pair = pair;
    from.pairs = m;
    finder.source = &from;
    if (result == NLIST_OK) result = nlist_i_set_rows(&list->desc, n, &finder.rows);
    if (result == NLIST_OK) result = nlist_i_build(&finder, nlist_i_collect_pairs);
    return nlist_i_end_build(list, &before, result);
}

/* A list of triangles is full, and DYNAMIC: COMPACT (0) means the default here. */
static nlist_desc nlist_i_mesh_desc(const nlist_desc *desc)
{
    nlist_desc resolved = *desc;
    if (resolved.layout == NLIST_COMPACT) resolved.layout = NLIST_DYNAMIC;
    resolved.half = 0;
    return resolved;
}

#ifdef NLIST_I_LBVH
/* The leaf at a place: its link is the id of the particle. */
NLIST_FN const lbvh_node *nlist_i_leaf(const lbvh *tree, int32_t place)
{
    return &tree->node[tree->first_leaf + place];
}

/* 1 if a search that reaches boxes this far from their particles has a finite squared radius. */
NLIST_FN int nlist_i_search_is_finite(const nlist_desc *desc, nlist_real largest, nlist_real out)
{
    nlist_real const far_off = nlist_i_gap(desc) + (largest + 2 * out);
    return nlist_i_finite(far_off * far_off);
}

/* By how much the sphere of a particle exceeds its leaf's box (AABB), along the worst axis; below 0
   where the box is larger. */
NLIST_FN nlist_real nlist_i_excess(const nlist *list, const lbvh_node *leaf, const nlist_real p[3],
                                   nlist_real radius)
{
    nlist_real most = -NLIST_I_REAL_MAX;
    int a;
    for (a = 0; a < list->desc.dim; a++) {
        nlist_real const below = leaf->min[a] - (p[a] - radius),
                         above = p[a] + radius - leaf->max[a];
        if (!(below <= most)) most = below;
        if (!(above <= most)) most = above;
    }
    return most;
}

/* 1 if this image of p (nlist_i_image) is the one nearest to q, so that q is found once. Along
   each axis: the image a period after (image % 3 = 2) where d > half, the one before (0) where d <
   -half, else p itself (1). */
NLIST_FN int nlist_i_in_image(const nlist *list, const nlist_real p[3], const nlist_real q[3],
                              int image)
{
    int a;
    for (a = 0; a < 3; a++, image /= 3) {
        nlist_real const d = q[a] - p[a];
        if ((d > list->axis[a].half) - (d < -list->axis[a].half) != image % 3 - 1) return 0;
    }
    return 1;
}

/* Image 0 .. 26 of p: along each axis a period before, p itself, or a period after.
   Returns 0 where an axis does not repeat. */
NLIST_FN int nlist_i_image(const nlist *list, const nlist_real p[3], int image, nlist_real at[3])
{
    int a;
    for (a = 0; a < 3; a++, image /= 3) {
        int const step = image % 3 - 1;
        if (step != 0 && !list->axis[a].periodic) return 0;
        at[a] = p[a] + (nlist_real)step * list->axis[a].length;
    }
    return 1;
}

/* A tree as the source of a build. */
typedef struct nlist_i_from_tree {
    const lbvh *tree;
    nlist_real excess;      /* the most by which spheres exceed their boxes, */
    nlist_real out;         /* and at least 0 */
} nlist_i_from_tree;

/* Finds the row of the particle at a place of the tree. The partner's radius is not added to the
   search radius: its box holds it, up to from->out. */
static nlist_result nlist_i_lbvh_row(nlist_i_finder *finder, int32_t place)
{
    const nlist_i_from_tree *from = (const nlist_i_from_tree *)finder->source;
    const lbvh *tree = from->tree;
    const nlist *list = finder->list;
    int const repeats = list->axis[0].periodic | list->axis[1].periodic | list->axis[2].periodic;
    int const first = repeats ? 0 : 13, last = repeats ? 26 : 13; /* 13: the particle itself */
    nlist_real p[3], q[3], at[3], reach;
    nlist_i_query query;
    int image;
    nlist_i_point(list, finder->pos, finder->stride, nlist_i_leaf(tree, place)->link, p);
    query = nlist_i_query_of(&list->desc, nlist_i_leaf(tree, place)->link, p);
    reach = nlist_i_gap(&list->desc) + query.radius + from->out * 2;
    nlist_i_begin_row(finder, query.i);
    for (image = first; image <= last; image++) {
        lbvh_overlap o;
        if (!nlist_i_point_finite(p)) break; /* left out */
        if (!nlist_i_image(list, p, image, at)) continue;
        o = lbvh_overlap_sphere(tree, at, nlist_i_search_radius(reach, at));
        while (lbvh_next(&o)) {
            nlist_result result;
            nlist_i_point(list, finder->pos, finder->stride, o.id, q);
            if (!nlist_i_in_image(list, p, q, image)) continue;
            result = nlist_i_test_candidate(finder, &query, o.id, q);
            if (result != NLIST_OK) return result;
        }
    }
    nlist_i_end_row(finder);
    return NLIST_OK;
}

/* Finds the rows by a search of the tree for each leaf, from left to right. First pass: by how much
   spheres exceed their boxes. */
static nlist_result nlist_i_collect_lbvh(nlist_i_finder *finder)
{
    nlist_i_from_tree *from = (nlist_i_from_tree *)finder->source;
    const lbvh *tree = from->tree;
    const nlist *list = finder->list;
    nlist_real p[3];
    nlist_result result;
    int32_t place;
    for (place = 0; place < finder->n; place++) {
        int32_t const i = nlist_i_leaf(tree, place)->link;
        nlist_real excess;
        nlist_i_point(list, finder->pos, finder->stride, i, p);
        if (!nlist_i_point_finite(p)) continue; /* left out */
        excess = nlist_i_excess(list, nlist_i_leaf(tree, place), p,
                                nlist_i_radius(&list->desc, i));
        if (!(excess <= from->excess)) from->excess = excess;
    }
    from->out = from->excess <= 0 ? 0 : from->excess;
    if (!nlist_i_search_is_finite(&list->desc, finder->largest, from->out)) return NLIST_BAD_SOURCE;
    if (nlist_i_lbvh_faster(finder, &result)) return result;
    for (place = 0; place < finder->n; place++) {
        if (nlist_i_leaf(tree, place)->link >= finder->rows) continue;
        result = nlist_i_lbvh_row(finder, place);
        if (result != NLIST_OK) return result;
    }
    return NLIST_OK;
}

/* A tree of n elements of the list's dimension. */
static nlist_result nlist_i_check_tree(const nlist *list, const lbvh *tree, int32_t n)
{
    if (tree->n != n) return NLIST_BAD_SOURCE;
    return n > 0 && tree->desc.dim != list->desc.dim ? NLIST_BAD_DIM : NLIST_OK;
}

NLIST_API nlist_result nlist_build_lbvh(nlist *list, const nlist_desc *desc, const lbvh *tree,
                                        const nlist_real *pos, size_t stride, int32_t n)
{
    nlist_i_finder finder = nlist_i_finder_of(list, n);
    nlist_i_from_tree from;
    nlist before;
    nlist_result result;
    if (!list || !tree) return NLIST_BAD_ARGUMENT;
    from.tree = tree;
    from.excess = -NLIST_I_REAL_MAX;
    from.out = 0;
    finder.source = &from;
    result = nlist_i_begin(list, desc, 0, &before);
    if (result == NLIST_OK) result = nlist_i_check_tree(list, tree, n);
    if (result == NLIST_OK) result = nlist_i_prepare(&finder, pos, stride);
    if (result == NLIST_OK) result = nlist_i_build(&finder, nlist_i_collect_lbvh);
    return nlist_i_end_build(list, &before, result);
}

/* Triangles as a source. */
typedef struct nlist_i_from_mesh { const lbvh *tree; nlist_mesh mesh; } nlist_i_from_mesh;

/* Finds the keys of the triangles that particle i touches, by a search of the tree over them. */
static nlist_result nlist_i_mesh_row(nlist_i_finder *finder, int32_t i)
{
    const nlist_i_from_mesh *from = (const nlist_i_from_mesh *)finder->source;
    const nlist_desc *desc = &finder->list->desc;
    nlist_real p[3];
    nlist_i_ball ball;
    lbvh_overlap o;
    int32_t first = -1;
    nlist_i_load(finder->pos, finder->stride, 3, i, p);
    nlist_i_begin_row(finder, i);
    o = nlist_i_walls_near(from->tree, &from->mesh, desc, i, p, &ball);
    while (lbvh_next(&o)) {
        int32_t const key = nlist_i_wall_key(from->tree, &from->mesh, desc, &ball, o.id, &first);
        nlist_result result;
        if (key < 0) continue;
        result = nlist_i_append(finder, key);
        if (result != NLIST_OK) return result;
    }
    nlist_i_end_row(finder);
    return NLIST_OK;
}

/* Finds the row of each particle. */
static nlist_result nlist_i_collect_mesh(nlist_i_finder *finder)
{
    nlist_result result;
    int32_t i;
    if (nlist_i_mesh_faster(finder, &result)) return result;
    for (i = 0; i < finder->rows; i++) {
        result = nlist_i_mesh_row(finder, i);
        if (result != NLIST_OK) return result;
    }
    return NLIST_OK;
}

/* The wander search of the carry: nlist_i_wander for particle i. */
static int64_t nlist_i_wander_on_mesh(const nlist_i_finder *finder, const nlist_rows *old_rows,
                                      const nlist_rows *rows, int32_t i, int32_t key,
                                      uint64_t *taken)
{
    const nlist_i_from_mesh *from = (const nlist_i_from_mesh *)finder->source;
    const nlist_desc *desc = &finder->list->desc;
    nlist_real p[3];
    nlist_i_load(finder->pos, finder->stride, 3, i, p);
    return nlist_i_wander(old_rows, rows, desc->history, i, &from->mesh, p,
                          nlist_i_gap(desc) + nlist_i_radius(desc, i), key, taken);
}

/* The triangles, the tree over them and desc fit together. */
static nlist_result nlist_i_check_mesh(const nlist_desc *desc, const lbvh *tree,
                                       const nlist_mesh *mesh)
{
    size_t const least = (mesh->indices ? 3 : 9) * sizeof(nlist_real);
    if (mesh->triangles < 0 || mesh->vertex_count < 0 || (mesh->triangles > 0 && !mesh->vertices))
        return NLIST_BAD_ARGUMENT;
    if ((mesh->stride != 0 && mesh->stride < least) ||
        (mesh->stride | mesh->thickness_stride) % sizeof(nlist_real) != 0)
        return NLIST_BAD_ARGUMENT;
    if (!(mesh->thickest >= 0) || !nlist_i_finite(mesh->thickest)) return NLIST_BAD_RADIUS;
    if (mesh->triangles > NLIST_I_TRIANGLES) return NLIST_TOO_MANY;
    if (tree->n != mesh->triangles) return NLIST_BAD_SOURCE;
    if (desc->dim != 3 || (tree->n > 0 && tree->desc.dim != 3)) return NLIST_BAD_DIM;
    if (desc->periodic[0] || desc->periodic[1] || desc->periodic[2]) return NLIST_BAD_PERIOD;
    return desc->layout == NLIST_DYNAMIC ? NLIST_OK : NLIST_BAD_OPTION;
}

/* Finds mesh->thickest where it is 0. */
static nlist_result nlist_i_check_thickness(nlist *list, nlist_mesh *mesh)
{
    nlist_real most = mesh->thickest > 0 ? mesh->thickest : NLIST_I_REAL_MAX, found = 0, thickness;
    int32_t t;
    for (t = 0; mesh->thickness && t < mesh->triangles; t++) {
        thickness = nlist_mesh_thickness(mesh, t);
        list->bad_id = t;
        if (!(thickness >= 0 && thickness <= most)) return NLIST_BAD_RADIUS;
        if (thickness > found) found = thickness;
    }
    if (mesh->thickest == 0) mesh->thickest = found;
    if (found == 0) mesh->thickness = NULL;
    return NLIST_OK;
}

/* Checks that triangles name vertices that exist. (On a GPU the caller is responsible.) */
static nlist_result nlist_i_check_indices(nlist *list, const nlist_mesh *mesh)
{
    int64_t k;
    if (!mesh->indices) return NLIST_OK;
    for (k = 0; k < 3 * (int64_t)mesh->triangles; k++) {
        if (mesh->indices[k] >= 0 && mesh->indices[k] < mesh->vertex_count) continue;
        list->bad_id = (int32_t)(k / 3);
        return NLIST_BAD_INDEX;
    }
    return NLIST_OK;
}

NLIST_API nlist_result nlist_build_mesh(nlist *list, const nlist_desc *desc, const lbvh *tree,
                                        const nlist_mesh *mesh, const nlist_real *pos,
                                        size_t stride, int32_t n)
{
    nlist_i_finder finder = nlist_i_finder_of(list, n);
    nlist_i_from_mesh from;
    nlist before;
    nlist_desc resolved;
    nlist_result result;
    if (!list || !desc || !tree || !mesh) return NLIST_BAD_ARGUMENT;
    resolved = nlist_i_mesh_desc(desc);
    result = nlist_i_begin(list, &resolved, 1, &before);
    if (result == NLIST_OK) result = nlist_i_check_mesh(&list->desc, tree, mesh);
    if (result == NLIST_OK) result = nlist_i_check_indices(list, mesh);
    from.tree = tree;
    from.mesh = *mesh;
    if (result == NLIST_OK) result = nlist_i_check_thickness(list, &from.mesh);
    if (result == NLIST_OK) list->triangles = mesh->triangles;
    if (result == NLIST_OK) result = nlist_i_prepare(&finder, pos, stride);
    finder.source = &from;
    if (!(desc->skin > 0)) finder.wander = nlist_i_wander_on_mesh;
    if (result == NLIST_OK) result = nlist_i_build(&finder, nlist_i_collect_mesh);
    return nlist_i_end_build(list, &before, result);
}
#endif /* NLIST_I_LBVH */

/* ----------------------------------------------------------------------------------------------
   >>skin: how long a list may serve (Verlet)

   All pairs within reach = r + skin were listed. While no particle has moved by more than skin / 2,
   no other pair is within r. Here r is 1 and skin 0.25:

       build   p <------------ 1.375 ------------> q       further than 1.25: not listed
       now      0.125 -> p' <---- 1.125 ----> q' <- 0.125  each has moved by skin / 2

   |q' - p'| >= |q - p| - skin, which is still above r.
   ---------------------------------------------------------------------------------------------- */

/* 1 if a particle has moved by more than half the skin since the build, or has no reference
   position (NaN). Not where desc.skip_invalid left it out, and would again. */
NLIST_FN int nlist_i_has_moved(const nlist *list, const nlist_rows *rows, const nlist_real *pos,
                               size_t stride, int32_t i)
{
    nlist_real const halved = list->desc.skin / 2;
    nlist_real p[3], was[3];
    int a;
    nlist_i_point(list, pos, stride, i, p);
    nlist_i_load(rows->reference, (size_t)list->desc.dim * sizeof(nlist_real), list->desc.dim, i,
                 was);
    for (a = 0; a < 3; a++) was[a] = nlist_i_wrap(&list->axis[a], was[a]);
    if (nlist_i_distance2(list, was, p) <= nlist_i_times(halved, halved)) return 0;
    return !list->desc.skip_invalid || nlist_i_point_finite(p) || nlist_i_point_finite(was);
}

/* From i on, the next particle that nlist_i_has_moved has to look at. Where nothing wraps, those
   that have not moved are passed over. */
static int32_t nlist_i_next_moved(const nlist *list, const nlist_rows *rows, const nlist_real *pos,
                                  size_t stride, int32_t i)
{
    size_t const tight = (size_t)list->desc.dim * sizeof(nlist_real);
    nlist_real const halved = list->desc.skin / 2, most = nlist_i_times(halved, halved);
    if (list->axis[0].periodic || list->axis[1].periodic || list->axis[2].periodic) return i;
    for (; i < list->n; i++) {
        nlist_real p[3], was[3];
        nlist_i_load(pos, stride, list->desc.dim, i, p);
        nlist_i_load(rows->reference, tight, list->desc.dim, i, was);
        if (!(nlist_i_distance2(list, was, p) <= most)) break;
    }
    return i;
}

NLIST_API nlist_result nlist_moved(const nlist *list, const nlist_real *pos, size_t stride,
                                   int32_t *moved)
{
    const nlist_rows *rows;
    size_t bytes;
    int32_t i;
    if (!list || !moved) return NLIST_BAD_ARGUMENT;
    *moved = 1;
    if (list->n == 0) return NLIST_OK;
    rows = nlist_i_rows(list);
    bytes = nlist_i_stride(stride, list->desc.dim);
    if (!pos || bytes == 0) return NLIST_BAD_ARGUMENT;
    if (!rows->reference) return NLIST_BAD_SKIN;
    for (i = nlist_i_next_moved(list, rows, pos, bytes, 0); i < list->n;
         i = nlist_i_next_moved(list, rows, pos, bytes, i + 1))
        if (nlist_i_has_moved(list, rows, pos, bytes, i)) return NLIST_OK;
    *moved = 0;
    return NLIST_OK;
}

/* ----------------------------------------------------------------------------------------------
   >>remap: particles get new ids (Kureck section 5.5.1, figure 5.5)

   The old rows are the source of the new ones: row i of the new list is row old_of[i] of the old
   one, with its partners renumbered. (Kureck makes new_id by a sort; ugrid.h: grid.inverse.) A half
   list, from which particle 1 is deleted:

       particle          0       1      2      3                     0   1   2   3
       old row       [ 1  2 ]  [  ]  [ 3 ]  [  ]      new_id[old]    2  -1   0   1
       new row       [ 1 ]     [  ]  [ 0 ]            old_of[new]    2   3   0
                                                      uid[new]       2   3   0    first: the old ids

   The pair 0-2 is now 2-0, and stays in the row of the same particle, although its id is the higher
   one: from now on nlist_i_owns compares uids, 0 < 2.
   ---------------------------------------------------------------------------------------------- */

/* Copies what entries of the old rows have beside the partner (lists of boxes). rows->within: those
   that were left out stay left out. */
static void nlist_i_copy_extras(const nlist_i_finder *finder, const nlist_rows *old_rows,
                                const nlist_rows *rows, int32_t first, int32_t last)
{
    int32_t i;
    if (!rows->shift && !rows->distance && !rows->offset && !rows->within) return;
    for (i = first; i < last; i++) {
        int32_t const was = finder->old_of[i];
        nlist_each old = nlist_i_row(old_rows, 0, was), e = nlist_i_row(rows, 0, i);
        while (nlist_next(&old)) {
            int32_t const id = finder->new_of[old.id];
            if (id < 0 || !nlist_i_stays(finder->uid, i, id) || !nlist_next(&e)) continue;
            if (rows->shift)
                memcpy(rows->shift + 3 * e.entry, old_rows->shift + 3 * old.entry,
                       3 * sizeof *rows->shift);
            if (rows->distance) rows->distance[e.entry] = old_rows->distance[old.entry];
            if (rows->offset)
                memcpy(rows->offset + 3 * e.entry, old_rows->offset + 3 * old.entry,
                       3 * sizeof *rows->offset);
        }
        if (!rows->within) continue;
        rows->within[i] = rows->count[i];
        if (was >= 0 && was < old_rows->n)
            rows->within[i] += old_rows->within[was] - old_rows->count[was];
    }
}

/* A remap: the partners of the old rows that are left, under their new ids. */
static nlist_result nlist_i_collect_old_rows(nlist_i_finder *finder)
{
    nlist *list = finder->list;
    const nlist_rows old_rows = list->rows[list->current];
    int32_t i;
    for (i = 0; i < finder->rows; i++) {
        nlist_each e = nlist_i_row(&old_rows, 0, finder->old_of[i]);
        nlist_i_begin_row(finder, i);
        while (nlist_next(&e)) {
            int32_t const id = list->keys ? e.id : finder->new_of[e.id];
            nlist_result result;
            if (id < 0 || !nlist_i_stays(finder->uid, i, id)) continue;
            result = nlist_i_append(finder, id);
            if (result != NLIST_OK) return result;
        }
        nlist_i_end_row(finder);
    }
    return NLIST_OK;
}

/* old_of[new_id[i]] = i; -1 for new particles. New ids must be in range and unique. */
static nlist_result nlist_i_invert(nlist *list, const int32_t *new_id, int32_t *old_of, int32_t n)
{
    int32_t i;
    for (i = 0; i < n; i++) old_of[i] = -1;
    for (i = 0; i < list->n; i++) {
        if (new_id[i] == -1) continue;
        if (new_id[i] < -1 || new_id[i] >= n || old_of[new_id[i]] >= 0) {
            list->bad_id = i;
            return NLIST_BAD_INDEX;
        }
        old_of[new_id[i]] = i;
    }
    return NLIST_OK;
}

NLIST_API nlist_result nlist_remap(nlist *list, const int32_t *new_id, int32_t n)
{
    int const all = list && list->row_count == list->n;
    return nlist_remap_rows(list, new_id, n, !list || all || list->row_count > n ? n
                                                                               : list->row_count);
}

NLIST_API nlist_result nlist_remap_rows(nlist *list, const int32_t *new_id, int32_t n,
                                        int32_t rows)
{
    nlist_i_finder finder = nlist_i_finder_of(list, n);
    nlist before;
    nlist_result result;
    if (!list || n < 0 || (list->n > 0 && !new_id)) return NLIST_BAD_ARGUMENT;
    if (!list->built) return NLIST_NOT_BUILT;
    if (n > NLIST_I_INT_MAX) return NLIST_TOO_MANY;
    if (rows < 0 || rows > n) return NLIST_BAD_ROWS;
    before = *list;
    finder.rows = rows;
    finder.new_of = new_id;
    finder.extras = nlist_i_copy_extras;
    list->needed_width = 0;
    list->needed_entries = 0;
    result = nlist_i_grow(list, NLIST_I_WORK, n, sizeof(int32_t), 0);
    if (result == NLIST_OK)
        result = nlist_i_invert(list, new_id, (int32_t *)list->block[NLIST_I_WORK].memory, n);
    finder.old_of = (const int32_t *)list->block[NLIST_I_WORK].memory;
    if (result == NLIST_OK) result = nlist_i_build(&finder, nlist_i_collect_old_rows);
    return nlist_i_end_build(list, &before, result);
}

/* ----------------------------------------------------------------------------------------------
   >>process: the caller's function for every entry, and sums (Kureck sections 5.1 to 5.3)
   ---------------------------------------------------------------------------------------------- */

/* A sum in progress. */
typedef struct nlist_i_adder {
    const nlist *list;
    const nlist_rows *rows;
    nlist_contact_fn *fn;
    void *user;
    nlist_real *sums;
    int64_t *units;         /* where sums are made in units, else NULL */
    double units_per_one;
    int32_t values;
    int overflow;
} nlist_i_adder;

/* sums of particle i += x. */
static void nlist_i_add(nlist_i_adder *adder, int32_t i, const nlist_real *x)
{
    size_t const at = (size_t)i * (size_t)adder->values;
    int32_t v;
    for (v = 0; v < adder->values; v++) {
        int64_t units;
        if (!adder->units) {
            adder->sums[at + (size_t)v] += x[v];
            continue;
        }
        if (!nlist_i_units(x[v], adder->units_per_one, &units)) adder->overflow = 1;
        adder->units[at + (size_t)v] += units;
    }
}

/* Calls the function for one entry. own: what it adds to the row's particle; the partner's share is
   added at once. Returns 0 where it adds nothing. */
static int nlist_i_call(nlist_i_adder *adder, int32_t i, int32_t j, int64_t entry,
                        nlist_real own[NLIST_I_VALUES])
{
    nlist_real other[NLIST_I_VALUES];
    size_t const bytes = (size_t)adder->list->desc.history;
    int adds;
    memset(own, 0, (size_t)adder->values * sizeof *own);
    memset(other, 0, (size_t)adder->values * sizeof *other);
    adds = adder->fn(adder->user, i, j,
                     bytes ? adder->rows->history + (size_t)entry * bytes : NULL, own, other);
    if (adder->list->desc.contacts) (void)nlist_touch_entry(adder->list, entry, adds != 0);
    if (!adds) return 0;
    if (adder->list->desc.half && !adder->list->keys) nlist_i_add(adder, j, other);
    return 1;
}

/* Adds what an entry of row i gives to sum. With units each value is truncated before any rounding,
   so it is added at once. Returns 0 where the entry adds nothing. */
NLIST_I_ALWAYS_INLINE int nlist_i_sum_entry(nlist_i_adder *adder, int32_t i, int32_t j,
                                            int64_t entry, nlist_real sum[NLIST_I_VALUES])
{
    nlist_real own[NLIST_I_VALUES];
    int32_t v;
    if (!nlist_i_call(adder, i, j, entry, own)) return 0;
    if (adder->units) nlist_i_add(adder, i, own);
    else for (v = 0; v < adder->values; v++) sum[v] += own[v];
    return 1;
}

/* A row is summed first, then added once. */
static void nlist_i_sum_row(nlist_i_adder *adder, int32_t i)
{
    nlist_real sum[NLIST_I_VALUES] = {0};
    nlist_each e = nlist_i_row(adder->rows, adder->list->desc.history, i);
    int any = 0;
    while (nlist_next(&e)) any |= nlist_i_sum_entry(adder, i, e.id, e.entry, sum);
    /* not where nothing is added: that would turn -0 into 0 */
    if (any && !adder->units) nlist_i_add(adder, i, sum);
}

/* Entries in the order of the arrays: slots, then partner. */
static void nlist_i_sum_entries(nlist_i_adder *adder)
{
    const nlist_rows *rows = adder->rows;
    nlist_real own[NLIST_I_VALUES];
    int64_t const slots = (int64_t)rows->n * rows->width;
    int64_t e;
    int32_t i;
    for (e = 0; e < slots; e++) {
        if (rows->slot[e] < 0) continue;
        i = (int32_t)(e / rows->width);
        if (nlist_i_call(adder, i, rows->slot[e], e, own)) nlist_i_add(adder, i, own);
    }
    if (rows->own)
        for (e = 0; e < rows->entries; e++)
            if (nlist_i_call(adder, rows->own[e], rows->partner[e], slots + e, own))
                nlist_i_add(adder, rows->own[e], own);
    if (!rows->start) return;
    for (i = 0; i < rows->n; i++)
        for (e = rows->start[i]; e < rows->start[i + 1]; e++)
            if (nlist_i_call(adder, i, rows->partner[e], e, own)) nlist_i_add(adder, i, own);
}

/* Adds the slots of a row in the order of the lanes of a warp (figure: nlist_i_sum_slots_kernel),
   so that both sides get the same bits. */
static void nlist_i_sum_slots(nlist_i_adder *adder, int32_t i)
{
    const nlist_rows *rows = adder->rows;
    int32_t const width = rows->width;
    nlist_real own[32][NLIST_I_VALUES];
    int32_t k, v, step;
    int any = 0;
    for (k = 0; k < width; k++) {
        int64_t const e = (int64_t)i * width + k;
        int const adds = rows->slot[e] >= 0 && nlist_i_call(adder, i, rows->slot[e], e, own[k]);
        any |= adds;
        if (!adds) memset(own[k], 0, sizeof own[k]);
        else if (adder->units) nlist_i_add(adder, i, own[k]);
    }
    for (step = width / 2; step > 0; step /= 2)
        for (k = 0; k < step; k++)
            for (v = 0; v < adder->values; v++) own[k][v] += own[k + step][v];
    if (any && !adder->units) nlist_i_add(adder, i, own[0]);
}

/* Sums adjacent entries of the rest that belong to one row before they are added. */
static void nlist_i_sum_runs(nlist_i_adder *adder)
{
    const nlist_rows *rows = adder->rows;
    int64_t const slots = (int64_t)rows->n * rows->width;
    int64_t e = 0;
    while (e < rows->entries) {
        nlist_real sum[NLIST_I_VALUES] = {0};
        int32_t const i = rows->own[e];
        int any = 0;
        for (; e < rows->entries && rows->own[e] == i; e++)
            any |= nlist_i_sum_entry(adder, i, rows->partner[e], slots + e, sum);
        if (any && !adder->units) nlist_i_add(adder, i, sum);
    }
}

/* 1 if the lanes of a warp can be reduced by rows of this width. */
static int nlist_i_width_reduces(int32_t width)
{
    return width > 0 && width <= 32 && (width & (width - 1)) == 0;
}

/* The mode of NLIST_AUTO. A thread per row is fastest, except for chains, whose entries are
   scattered in memory. (Forces of 10M spheres on an H200, 7.6 contacts each, half lists,
   PER_PARTICLE against REDUCE: STATIC 1.7 and 3.0 ms, HYBRID 1.65 and 1.74, COMPACT 1.6 and 3.1,
   DYNAMIC 4.7 and 2.1. Kureck, section 6.3.1, found REDUCE in slots a little faster, on a Titan
   X.) */
static nlist_mode nlist_i_mode(const nlist *list, nlist_mode mode)
{
    /* then PER_PARTICLE needs no unit */
    int const ordered = list->desc.deterministic && !list->desc.half;
    if (mode != NLIST_AUTO) return mode;
    return list->desc.layout == NLIST_DYNAMIC && !ordered ? NLIST_REDUCE : NLIST_PER_PARTICLE;
}

/* The checks of nlist_sum and nlist_cuda_sum. */
static nlist_result nlist_i_check_sum(const nlist *list, const nlist_sums *how, int32_t values)
{
    nlist_mode mode;
    int32_t width;
    if (!list->built) return NLIST_NOT_BUILT;
    if (list->n == 0) return NLIST_OK;
    if ((int)how->mode < 0 || how->mode > NLIST_REDUCE) return NLIST_BAD_OPTION;
    if (values < 1 || values > NLIST_I_VALUES) return NLIST_BAD_VALUES;
    mode = nlist_i_mode(list, how->mode);
    width = nlist_i_has_slots(&list->desc) ? list->desc.width : 0;
    if (mode == NLIST_REDUCE && width > 0 && !nlist_i_width_reduces(width)) return NLIST_BAD_WIDTH;
    if (!(how->unit >= 0) || how->unit - how->unit != 0) return NLIST_BAD_UNIT;
    if (how->unit > 0 && !(1 / how->unit - 1 / how->unit == 0)) return NLIST_BAD_UNIT;
    return how->unit == 0 && list->desc.deterministic && !nlist_i_order_defined(&list->desc, mode)
               ? NLIST_BAD_UNIT
               : NLIST_OK;
}

/* Sums all entries in the order of a mode. */
static void nlist_i_sum_by(nlist_i_adder *adder, nlist_mode mode)
{
    const nlist_rows *rows = adder->rows;
    int32_t i, t;
    if (mode == NLIST_PER_CONTACT) {
        nlist_i_sum_entries(adder);
    } else if (mode == NLIST_REDUCE && !rows->start) {
        if (rows->slot)
            for (i = 0; i < rows->n; i++) nlist_i_sum_slots(adder, i);
        if (rows->own) nlist_i_sum_runs(adder);
    } else if (rows->touched) {
        for (t = 0; t < rows->touched_count; t++) nlist_i_sum_row(adder, rows->touched[t]);
    } else {
        for (i = 0; i < rows->n; i++) nlist_i_sum_row(adder, i);
    }
}

NLIST_API nlist_result nlist_sum(nlist *list, const nlist_sums *how, nlist_contact_fn *fn,
                                 void *user, nlist_real *sums)
{
    nlist_i_adder adder;
    nlist_result result;
    size_t k, numbers;
    if (!list || !how || !fn) return NLIST_BAD_ARGUMENT;
    result = nlist_i_check_sum(list, how, how->values);
    if (result != NLIST_OK || list->n == 0) return result;
    if (!sums) return NLIST_BAD_ARGUMENT;
    numbers = (size_t)list->n * (size_t)how->values;
    if (how->unit > 0) {
        result = nlist_i_grow(list, NLIST_I_WORK, (int64_t)list->n * how->values, sizeof(int64_t),
                              0);
        if (result != NLIST_OK) return result;
        memset(list->block[NLIST_I_WORK].memory, 0, numbers * sizeof(int64_t));
    }
    memset(&adder, 0, sizeof adder);
    adder.list = list;
    adder.rows = nlist_i_rows(list);
    adder.fn = fn;
    adder.user = user;
    adder.sums = sums;
    adder.units = how->unit > 0 ? (int64_t *)list->block[NLIST_I_WORK].memory : NULL;
    adder.units_per_one = how->unit > 0 ? 1 / how->unit : 0;
    adder.values = how->values;
    nlist_i_sum_by(&adder, nlist_i_mode(list, how->mode));
    if (adder.overflow) return NLIST_SUM_OVERFLOW;
    if (!adder.units) return NLIST_OK;
    for (k = 0; k < numbers; k++)
        sums[k] += nlist_i_from_units(adder.units[k], how->unit);
    return NLIST_OK;
}

/* How many periods to add to q's coordinates for the image of q that is nearest to p; 0 = more than
   2^30. */
static int nlist_i_shift(const nlist *list, const nlist_real *pos, size_t stride, int32_t i,
                         int32_t j, int32_t shift[3])
{
    nlist_real p[3], q[3], near_p[3], near_q[3];
    int a;
    nlist_i_load(pos, stride, list->desc.dim, i, p);
    nlist_i_load(pos, stride, list->desc.dim, j, q);
    nlist_i_point(list, pos, stride, i, near_p);
    nlist_i_point(list, pos, stride, j, near_q);
    for (a = 0; a < 3; a++) {
        const nlist_axis *axis = &list->axis[a];
        /* = q + shift * length - p */
        nlist_real const d = nlist_i_nearest(axis, near_q[a] - near_p[a]);
        nlist_real const periods =
            axis->periodic ? nlist_i_periods((d - (q[a] - p[a])) / axis->length + (nlist_real)0.5)
                           : 0;
        if (!(periods > -1073741824 && periods < 1073741824)) return 0;
        shift[a] = (int32_t)periods;
    }
    return 1;
}

NLIST_API nlist_result nlist_pairs(const nlist *list, int32_t *pair, int64_t capacity,
                                   int64_t *needed, const nlist_real *pos, size_t stride,
                                   int32_t *shift)
{
    const nlist_rows *rows;
    int64_t at = 0;
    size_t bytes;
    int32_t i;
    if (!list || !needed || capacity < 0 || (capacity > 0 && !pair) || (shift && !pos))
        return NLIST_BAD_ARGUMENT;
    if (shift && list->keys) return NLIST_BAD_ARGUMENT;
    bytes = nlist_i_stride(stride, list->desc.dim ? list->desc.dim : 3);
    if (bytes == 0) return NLIST_BAD_ARGUMENT;
    *needed = 0;
    if (!list->built) return NLIST_NOT_BUILT;
    rows = nlist_i_rows(list);
    *needed = list->total;
    if (*needed > capacity) return NLIST_BUFFER_TOO_SMALL;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_i_row(rows, 0, i);
        for (; nlist_next(&e); at++) {
            pair[2 * at] = i;
            pair[2 * at + 1] = e.id;
            if (shift && e.shift) memcpy(shift + 3 * at, e.shift, 3 * sizeof *shift);
            else if (shift && !nlist_i_shift(list, pos, bytes, i, e.id, shift + 3 * at))
                return NLIST_NOT_FINITE;
        }
    }
    return NLIST_OK;
}

/* ----------------------------------------------------------------------------------------------
   >>resolve: defaults, and the checks that read no particle
   ---------------------------------------------------------------------------------------------- */

/* radius and skin are numbers that are not negative, and the square of their sum is a normal
   number. */
static nlist_result nlist_i_check_reach(const nlist_desc *desc)
{
    nlist_real const gap = desc->radius + desc->skin, square = gap * gap;
    if (!(desc->radius >= 0) || !nlist_i_finite(desc->radius)) return NLIST_BAD_RADIUS;
    if (desc->radii_stride % sizeof(nlist_real) != 0) return NLIST_BAD_RADIUS;
    if (!(desc->skin >= 0) || !nlist_i_finite(desc->skin)) return NLIST_BAD_SKIN;
    if (!nlist_i_finite(square) || (gap > 0 && !(square >= NLIST_I_REAL_MIN)))
        return NLIST_BAD_RADIUS;
    return NLIST_OK;
}

/* A periodic axis has a box: min below max, and a finite length. */
static nlist_result nlist_i_check_box(const nlist_desc *desc)
{
    int a;
    for (a = 0; a < desc->dim; a++) {
        if (!desc->periodic[a]) continue;
        if (!nlist_i_finite(desc->min[a]) || !nlist_i_finite(desc->max[a]) ||
            !(desc->min[a] < desc->max[a]))
            return NLIST_BAD_BOX;
        if (!nlist_i_finite(desc->max[a] - desc->min[a])) return NLIST_BAD_BOX;
    }
    return NLIST_OK;
}

/* The layout, and the fields that are in a range, or NULL together. */
static nlist_result nlist_i_check_layout(const nlist_desc *desc)
{
    int const least = desc->layout == NLIST_HYBRID ? 0 : 1;
    if ((int)desc->layout < 0 || desc->layout > NLIST_HYBRID) return NLIST_BAD_OPTION;
    if (desc->parallel.tasks < 0 || desc->parallel.tasks > 1024) return NLIST_BAD_OPTION;
    if (desc->width < least || desc->width > 1024) return NLIST_BAD_WIDTH;
    if (desc->rows < NLIST_NO_ROWS) return NLIST_BAD_ROWS;
    if (desc->history < 0 || desc->history > 4096) return NLIST_BAD_HISTORY;
    if (desc->capacity < 0) return NLIST_BAD_CAPACITY;
    if (!desc->exclude_start != !desc->exclude) return NLIST_BAD_EXCLUSIONS;
    if (!desc->allocator.alloc != !desc->allocator.free) return NLIST_BAD_ALLOCATOR;
    if (!desc->cuda_allocator.alloc != !desc->cuda_allocator.free) return NLIST_BAD_ALLOCATOR;
    return NLIST_OK;
}

NLIST_API nlist_result nlist_defaults(nlist_desc *out, const nlist_desc *desc)
{
    nlist_result result;
    if (!out || !desc) return NLIST_BAD_ARGUMENT;
    *out = *desc;
    if (out->dim == 0) out->dim = 3;
    if (out->radii_stride == 0) out->radii_stride = sizeof(nlist_real);
    if (out->dim != 2 && out->dim != 3) return NLIST_BAD_DIM;
    if (out->width == 0 && out->layout != NLIST_HYBRID) out->width = out->half ? 8 : 16;
    if (out->width < 0 && out->layout == NLIST_HYBRID) return NLIST_BAD_WIDTH;
    result = nlist_i_check_reach(out);
    if (result == NLIST_OK) result = nlist_i_check_box(out);
    return result == NLIST_OK ? nlist_i_check_layout(out) : result;
}

/* list->axis, by desc. */
static void nlist_i_axes(nlist *list)
{
    const nlist_desc *desc = &list->desc;
    int a;
    for (a = 0; a < 3; a++) {
        nlist_axis *axis = &list->axis[a];
        axis->periodic = a < desc->dim && desc->periodic[a];
        axis->min = axis->periodic ? desc->min[a] : 0;
        axis->max = axis->periodic ? desc->max[a] : 0;
        axis->length = axis->max - axis->min;
        axis->half = axis->periodic ? axis->length / 2 : NLIST_I_REAL_MAX;
    }
}

/* 1 if the reach is at most half of every period. */
static int nlist_i_periods_fit(const nlist *list, nlist_real largest)
{
    nlist_real const reach = nlist_i_largest_reach(&list->desc, largest);
    int a;
    for (a = 0; a < 3; a++)
        if (list->axis[a].periodic && !(reach <= list->axis[a].half)) return 0;
    return 1;
}

/* The caller's stride, as bytes between two points; 0 = refused. */
static size_t nlist_i_stride(size_t stride, int dim)
{
    size_t const least = (size_t)dim * sizeof(nlist_real);
    if (stride == 0) return least;
    return stride >= least && stride % sizeof(nlist_real) == 0 ? stride : 0;
}

/* ----------------------------------------------------------------------------------------------
   >>memory: blocks that grow and are kept (their numbers: >>blocks)
   ---------------------------------------------------------------------------------------------- */

/* Memory from the allocator, or from malloc. */
static void *nlist_i_alloc(const nlist_allocator *allocator, size_t bytes)
{
    return allocator->alloc ? allocator->alloc(bytes, allocator->user) : malloc(bytes);
}

/* Frees a block, which is empty afterwards. */
static void nlist_i_release(const nlist_allocator *allocator, nlist_block *block)
{
    if (block->memory && allocator->free)
        allocator->free(block->memory, block->bytes, allocator->user);
    else free(block->memory);
    block->memory = NULL;
    block->bytes = 0;
}

/* count * size in bytes, 0 where size_t cannot hold them. */
static int nlist_i_bytes(size_t *bytes, int64_t count, size_t size)
{
    if (count < 0 || (size > 0 && (uint64_t)count > (uint64_t)(SIZE_MAX / 2) / size)) return 0;
    *bytes = (size_t)count * size;
    return 1;
}

/* The size to ask for where a block of `had` bytes must hold `bytes`: 1.5 times `had` at least, or
   exactly `bytes`. */
static size_t nlist_i_grown_size(const nlist *list, size_t had, size_t bytes)
{
    /* had < bytes <= SIZE_MAX / 2 (nlist_i_bytes) */
    size_t const more = list->exact ? 0 : had + had / 2;
    return more > bytes ? more : bytes;
}

/* Replaces a block by one of `bytes` bytes; the first `keep` bytes are copied. On failure it is as
   it was. */
static nlist_result nlist_i_replace(nlist *list, nlist_block *block, size_t bytes, size_t keep)
{
    nlist_block larger;
    larger.bytes = bytes;
    larger.memory = nlist_i_alloc(&list->desc.allocator, bytes);
    if (!larger.memory) return NLIST_OUT_OF_MEMORY;
    if (list->desc.allocator.alloc && (uintptr_t)larger.memory % 16 != 0) {
        nlist_i_release(&list->desc.allocator, &larger);
        return NLIST_BAD_ALLOCATOR;
    }
    if (keep > 0) memcpy(larger.memory, block->memory, keep);
    nlist_i_release(&list->desc.allocator, block);
    *block = larger;
    return NLIST_OK;
}

/* Room for `count` elements of `size` bytes. The first `keep` bytes are kept. On failure the block
   is as it was. */
static nlist_result nlist_i_grow(nlist *list, int which, int64_t count, size_t size, size_t keep)
{
    nlist_block *block = &list->block[which];
    nlist_result result;
    size_t bytes, grown;
    if (!nlist_i_bytes(&bytes, count, size)) return NLIST_OUT_OF_MEMORY;
    if (bytes <= block->bytes) return NLIST_OK;
    grown = nlist_i_grown_size(list, block->bytes, bytes);
    result = nlist_i_replace(list, block, grown, keep);
    return result == NLIST_OUT_OF_MEMORY && grown > bytes
               ? nlist_i_replace(list, block, bytes, keep)
               : result;
}

NLIST_API void nlist_free(nlist *list)
{
    int b;
    if (!list) return;
    for (b = 0; b < NLIST_BLOCKS; b++) nlist_i_release(&list->desc.allocator, &list->block[b]);
    memset(list, 0, sizeof *list);
}

NLIST_API int64_t nlist_bytes(const nlist *list)
{
    int64_t bytes = 0;
    int b;
    if (!list) return 0;
    for (b = 0; b < NLIST_BLOCKS; b++) bytes += (int64_t)list->block[b].bytes;
    return bytes;
}

/* Number and size of the elements of each block of a generation; size 0: not in use. */
typedef struct nlist_i_sizes {
    int64_t count[NLIST_I_GENERATION];
    size_t size[NLIST_I_GENERATION];
} nlist_i_sizes;

/* Elements and size of one block. */
static void nlist_i_set_size(nlist_i_sizes *sizes, int which, int64_t count, size_t size)
{
    sizes->count[which] = count;
    sizes->size[which] = size;
}

/* The blocks that rows of this desc use: n particles of which `rows` have rows, `capacity` entries
   in partner. */
static nlist_i_sizes nlist_i_generation_sizes(const nlist_desc *desc, int32_t n, int32_t rows,
                                              int64_t capacity, int uids)
{
    int64_t const slots = nlist_i_has_slots(desc) ? (int64_t)rows * desc->width : 0;
    nlist_i_sizes sizes;
    int64_t entries; /* of all arrays by entry; -1: more than memory has */
    if (!nlist_i_has_partners(desc)) capacity = 0;
    entries = capacity <= INT64_MAX / 2 ? slots + capacity : -1;
    memset(&sizes, 0, sizeof sizes);
    nlist_i_set_size(&sizes, NLIST_I_COUNT, rows, sizeof(int32_t));
    if (nlist_i_has_slots(desc)) nlist_i_set_size(&sizes, NLIST_I_SLOT, slots, sizeof(int32_t));
    if (nlist_i_has_partners(desc))
        nlist_i_set_size(&sizes, NLIST_I_PARTNER, capacity, sizeof(int32_t));
    if (desc->layout == NLIST_COMPACT)
        nlist_i_set_size(&sizes, NLIST_I_START, (int64_t)rows + 1, sizeof(int64_t));
    if (nlist_i_has_rest(desc)) {
        nlist_i_set_size(&sizes, NLIST_I_OWN, capacity, sizeof(int32_t));
        nlist_i_set_size(&sizes, NLIST_I_LINK, capacity, sizeof(int32_t));
        nlist_i_set_size(&sizes, NLIST_I_HEAD, rows, sizeof(int32_t));
    }
    if (desc->layout == NLIST_DYNAMIC)
        nlist_i_set_size(&sizes, NLIST_I_TOUCHED, rows, sizeof(int32_t));
    if (uids) nlist_i_set_size(&sizes, NLIST_I_UID, n, sizeof(int64_t));
    if (desc->skin > 0)
        nlist_i_set_size(&sizes, NLIST_I_REFERENCE, (int64_t)n * desc->dim, sizeof(nlist_real));
    if (desc->history > 0)
        nlist_i_set_size(&sizes, NLIST_I_HISTORY, entries, (size_t)desc->history);
    if (desc->shifts) nlist_i_set_size(&sizes, NLIST_I_SHIFT, entries, 3 * sizeof(int32_t));
    if (desc->distances) nlist_i_set_size(&sizes, NLIST_I_DISTANCE, entries, sizeof(nlist_real));
    if (desc->offsets) nlist_i_set_size(&sizes, NLIST_I_OFFSET, entries, 3 * sizeof(nlist_real));
    if (desc->nearest > 0) nlist_i_set_size(&sizes, NLIST_I_WITHIN, rows, sizeof(int32_t));
    if (nlist_i_has_states(desc)) nlist_i_set_size(&sizes, NLIST_I_STATE, entries, 1);
    return sizes;
}

/* Points the arrays of a generation to their blocks; those that are not in use become NULL. */
static void nlist_i_bind(nlist_rows *rows, const nlist_block *block, const nlist_desc *desc,
                         int32_t n, int32_t row_count, int64_t capacity, int uids)
{
    nlist_i_sizes const sizes = nlist_i_generation_sizes(desc, n, row_count, capacity, uids);
    void *at[NLIST_I_GENERATION];
    int b;
    for (b = 0; b < NLIST_I_GENERATION; b++)
        at[b] = sizes.size[b] > 0 ? block[b].memory : NULL;
    memset(rows, 0, sizeof *rows);
    rows->n = row_count;
    rows->particles = n;
    rows->width = nlist_i_has_slots(desc) ? desc->width : 0;
    rows->capacity = nlist_i_has_partners(desc) ? capacity : 0;
    rows->count = (int32_t *)at[NLIST_I_COUNT];
    rows->slot = (int32_t *)at[NLIST_I_SLOT];
    rows->start = (int64_t *)at[NLIST_I_START];
    rows->partner = (int32_t *)at[NLIST_I_PARTNER];
    rows->own = (int32_t *)at[NLIST_I_OWN];
    rows->link = (int32_t *)at[NLIST_I_LINK];
    rows->head = (int32_t *)at[NLIST_I_HEAD];
    rows->touched = (int32_t *)at[NLIST_I_TOUCHED];
    rows->uid = (int64_t *)at[NLIST_I_UID];
    rows->reference = (nlist_real *)at[NLIST_I_REFERENCE];
    rows->history = (unsigned char *)at[NLIST_I_HISTORY];
    rows->shift = (int32_t *)at[NLIST_I_SHIFT];
    rows->distance = (nlist_real *)at[NLIST_I_DISTANCE];
    rows->offset = (nlist_real *)at[NLIST_I_OFFSET];
    rows->within = (int32_t *)at[NLIST_I_WITHIN];
    rows->state = (unsigned char *)at[NLIST_I_STATE];
}

/* Takes the memory of generation g and binds its arrays. On failure the arrays are as they were. */
static nlist_result nlist_i_reserve_generation(nlist *list, int32_t g, int32_t n, int32_t rows,
                                               int64_t capacity, int uids)
{
    nlist_i_sizes const sizes = nlist_i_generation_sizes(&list->desc, n, rows, capacity, uids);
    int b;
    for (b = 0; b < NLIST_I_GENERATION; b++) {
        nlist_result const result = nlist_i_grow(list, g * NLIST_I_GENERATION + b, sizes.count[b],
                                                 sizes.size[b], 0);
        if (result != NLIST_OK) return result;
    }
    nlist_i_bind(&list->rows[g], list->block + g * NLIST_I_GENERATION, &list->desc, n, rows,
                 capacity, uids);
    return NLIST_OK;
}

/* ----------------------------------------------------------------------------------------------
   >>faster: the faster forms of four steps of >>build. The lists are the same, bit for bit.

       prepare   checks the particles in tasks (>>parallel-build)
       find      from a grid or a tree: by vectors, in tasks (>>parallel-find, >>find-lbvh);
                 triangles: by cells (>>find-mesh)
       lay out   with carry, in tasks (>>parallel-build); in place (>>carry-rows)
       carry     by rows that agree, and of long rows by sorting (>>carry-rows)
   ---------------------------------------------------------------------------------------------- */

#ifndef NLIST_PLAIN

/* ----------------------------------------------------------------------------------------------
   >>parallel-run: work in pieces, each of which is a task of desc.parallel.run (>>parallel)

   A piece is a range of rows or particles, and so no two pieces write to the same number. What must
   be joined is joined by the calling thread, in the order of the pieces.
   ---------------------------------------------------------------------------------------------- */

/* The fewest particles of a search for which a task is worth its start: some tenths of a
   millisecond. What costs less for each row takes NLIST_I_LIGHT times as many. */
#ifndef NLIST_I_PIECE
#define NLIST_I_PIECE 2048
#endif
enum { NLIST_I_LIGHT = 8, NLIST_I_MOST_PIECES = 256 };

/* Into how many pieces work on n particles is cut. */
static int32_t nlist_i_pieces(const nlist_parallel *parallel, int32_t n, int32_t fewest)
{
    int32_t const worth = n / fewest;
    int32_t most = NLIST_I_MOST_PIECES;
    if (parallel->tasks < most) most = parallel->tasks;
    if (!parallel->run || most < 2 || worth < 2) return 1;
    return worth < most ? worth : most;
}

/* Pieces of the steps that cost less for each row than its search. */
static int32_t nlist_i_light_pieces(const nlist_i_finder *finder)
{
    return nlist_i_pieces(&finder->list->desc.parallel, finder->n, NLIST_I_LIGHT * NLIST_I_PIECE);
}

/* Where piece k of n elements begins, and piece k - 1 ends. */
static int32_t nlist_i_cut_at(int32_t n, int32_t pieces, int32_t k)
{
    return (int32_t)((int64_t)n * k / pieces);
}

/* A piece sets its byte when it is done. */
typedef struct nlist_i_all_tasks {
    nlist_task *work;
    void *context;
    unsigned char done[NLIST_I_MOST_PIECES];
} nlist_i_all_tasks;

/* Does one piece, and says so. */
static inline void nlist_i_do_piece(void *context, int32_t k)
{
    nlist_i_all_tasks *job = (nlist_i_all_tasks *)context;
    job->work(job->context, k);
    job->done[k] = 1;
}

/* work(context, k) for every piece k. */
static inline nlist_result nlist_i_in_pieces(const nlist_parallel *parallel, int32_t pieces,
                                             nlist_task *work, void *context)
{
    nlist_i_all_tasks job;
    int32_t k;
    job.work = work;
    job.context = context;
    memset(job.done, 0, sizeof job.done);
    parallel->run(nlist_i_do_piece, &job, pieces, parallel->user);
    for (k = 0; k < pieces; k++) if (!job.done[k]) return NLIST_NOT_RUN;
    return NLIST_OK;
}

/* ----------------------------------------------------------------------------------------------
   >>carry-rows: the carry for rows that changed little; long rows; history in place

   Most contacts persist, and most rows are the old ones. So the new ids are compared with the old
   ones from the first on, and the bytes of all that agree, also over many rows, are copied at once.
   Only behind the first difference is each new entry looked up. Where that takes too many
   comparisons, positions are sorted by id: O(row log row).

   In place (NLIST_STATIC, NLIST_HYBRID, no events): rows keep their slots from build to build, so a
   row with the same partners is neither read beyond its ids nor written. A row that changed is
   copied aside, to memory of the generation before, written anew, and carried from there:

       slots    [ 7  9  4  2 ]      found    [ 7  4  8 ]        7: stays where it is
       aside       [ 9  4  2 ]      slots    [ 7  4  8  . ]     4: from aside; 8: zeros
   ---------------------------------------------------------------------------------------------- */

/* Entries of a row that follow one another in memory. */
typedef struct nlist_i_stretch {
    const int32_t *id;
    unsigned char *history; /* of the first; NULL without */
    int64_t entry;          /* the first */
    int32_t count;
} nlist_i_stretch;

/* A copy that is still to be made: adjacent ones are made as one. */
typedef struct nlist_i_pending {
    unsigned char *to;
    const unsigned char *from;
    size_t size;
} nlist_i_pending;

static inline void nlist_i_copy_pending(nlist_i_pending *pending)
{
    if (pending->size > 0) memcpy(pending->to, pending->from, pending->size);
    pending->size = 0;
}

static inline void nlist_i_copy_later(nlist_i_pending *pending, unsigned char *to,
                                      const unsigned char *from, size_t size)
{
    if (to == pending->to + pending->size && from == pending->from + pending->size) {
        pending->size += size;
        return;
    }
    nlist_i_copy_pending(pending);
    pending->to = to;
    pending->from = from;
    pending->size = size;
}

/* Row i, which has `count` entries, as a stretch. Returns 0 where they are in several places. */
NLIST_I_ALWAYS_INLINE int nlist_i_stretch_of(const nlist_rows *rows, int32_t bytes, int32_t i,
                                             int32_t count, nlist_i_stretch *stretch)
{
    stretch->count = count;
    stretch->id = rows->partner;
    stretch->entry = 0;
    stretch->history = rows->history;
    if (count == 0) return 1;
    if (rows->start) {
        stretch->entry = rows->start[i];
    } else if (rows->slot) {
        stretch->entry = (int64_t)i * rows->width;
        stretch->id = rows->slot;
        if (count > rows->width) return 0;
    } else {
        stretch->entry = rows->head[i];
        if (!rows->adjacent) return 0;
    }
    stretch->id += stretch->entry;
    if (bytes > 0) stretch->history += stretch->entry * bytes;
    return 1;
}

/* Partners of row i; none where there is no such row. */
NLIST_I_ALWAYS_INLINE int32_t nlist_i_count_of(const nlist_rows *rows, int32_t i)
{
    return i >= 0 && i < rows->n ? rows->count[i] : 0;
}

/* How many entries two stretches have in common from the first on. new_of: as in
   nlist_i_matcher. */
NLIST_I_ALWAYS_INLINE int32_t nlist_i_same_begin(const nlist_i_stretch *old,
                                                 const nlist_i_stretch *now, const int32_t *new_of)
{
    int32_t const count = old->count < now->count ? old->count : now->count;
    int32_t k = 0;
    if (new_of) while (k < count && new_of[old->id[k]] == now->id[k]) k++;
    else while (k < count && old->id[k] == now->id[k]) k++;
    return k;
}

/* Where `id` is in old[first .. count-1], -1 = nowhere: from `at` on, then from `first` on. */
static inline int32_t nlist_i_find_from(const nlist_i_stretch *old, const int32_t *new_of,
                                        int32_t first, int32_t at, int32_t id)
{
    int32_t k;
    for (k = at; k < old->count; k++)
        if ((new_of ? new_of[old->id[k]] : old->id[k]) == id) return k;
    for (k = first; k < at; k++)
        if ((new_of ? new_of[old->id[k]] : old->id[k]) == id) return k;
    return -1;
}

/* A contact of row i that began or persists. */
static inline void nlist_i_note(nlist_i_finder *finder, int kind, int32_t i, int32_t id,
                                int64_t entry)
{
    if (finder->list->keys || finder->list->desc.half || i < id)
        nlist_i_add_event(finder->list, kind, i, id, entry);
}

/* Entries same .. count-1 of row i, behind those that agree. Returns 0 where it takes many
   comparisons: long rows can. */
static int nlist_i_carry_changed(nlist_i_finder *finder, nlist_i_pending *pending, int32_t i,
                                 const nlist_i_stretch *old, const nlist_i_stretch *now,
                                 int32_t same)
{
    const int32_t *const new_of = finder->list->keys ? NULL : finder->new_of;
    int const notes = finder->list->desc.events && !finder->new_of;
    size_t const bytes = (size_t)finder->list->desc.history;
    int64_t left = 64 + 16 * (int64_t)now->count; /* comparisons */
    int32_t at = same, k;
    for (k = same; k < now->count; k++) {
        int32_t const was = nlist_i_find_from(old, new_of, same, at, now->id[k]);
        unsigned char *const to = bytes > 0 ? now->history + (size_t)k * bytes : NULL;
        left -= was >= at ? was - at : old->count - same;
        if (left < 0) return 0;
        if (notes)
            nlist_i_note(finder, was < 0 ? NLIST_BEGUN : NLIST_PERSISTED, i, now->id[k],
                         now->entry + k);
        if (bytes > 0 && was < 0) memset(to, 0, bytes);
        else if (bytes > 0)
            nlist_i_copy_later(pending, to, old->history + (size_t)was * bytes, bytes);
        if (was >= 0) at = was + 1;
    }
    return 1;
}

/* ---- long rows ---- */

enum { NLIST_I_LONG = 64 }; /* rows of which all entries may be compared with all */

/* The entry at position k of a row that was laid out here: its rest is adjacent. */
static inline int64_t nlist_i_entry_at(const nlist_rows *rows, int32_t i, int32_t k)
{
    if (rows->start) return rows->start[i] + k;
    if (k < rows->width) return (int64_t)i * rows->width + k;
    return (int64_t)rows->n * rows->width + rows->head[i] + k - rows->width;
}

/* The partner at position k. */
static inline int32_t nlist_i_id_at(const nlist_rows *rows, int32_t i, int32_t k)
{
    int64_t const entry = nlist_i_entry_at(rows, i, k), slots = (int64_t)rows->n * rows->width;
    return entry < slots ? rows->slot[entry] : rows->partner[entry - slots];
}

/* Sifts order[at] down in a heap of positions of row i, by their partners. */
static void nlist_i_sift_position(const nlist_rows *rows, int32_t i, int32_t *order, int32_t at,
                                  int32_t count)
{
    int32_t const moving = order[at], id = nlist_i_id_at(rows, i, moving);
    int64_t child;
    for (; (child = 2 * (int64_t)at + 1) < count; at = (int32_t)child) {
        if (child + 1 < count && nlist_i_id_at(rows, i, order[child + 1]) >
                                     nlist_i_id_at(rows, i, order[child]))
            child++;
        if (nlist_i_id_at(rows, i, order[child]) <= id) break;
        order[at] = order[child];
    }
    order[at] = moving;
}

/* The positions of row i by ascending partner, where the row was found: it is laid out now, and
   that memory is free. Heapsort. */
static int32_t *nlist_i_positions(const nlist_i_finder *finder, const nlist_rows *rows, int32_t i)
{
    int32_t *const order = finder->found + finder->begin[i];
    int32_t const count = rows->count[i];
    int32_t k;
    for (k = 0; k < count; k++) order[k] = k;
    for (k = count / 2; k > 0; k--) nlist_i_sift_position(rows, i, order, k - 1, count);
    for (k = count - 1; k > 0; k--) {
        int32_t const last = order[0];
        order[0] = order[k];
        order[k] = last;
        nlist_i_sift_position(rows, i, order, 0, k);
    }
    return order;
}

/* Positions that were found are marked: ~position, which is negative. */
static inline int32_t nlist_i_unmarked(int32_t position)
{
    return position < 0 ? ~position : position;
}

/* Where in `order` the partner `id` of row i is, -1 = nowhere: binary search. */
static int32_t nlist_i_find_sorted(const nlist_rows *rows, int32_t i, const int32_t *order,
                                   int32_t id)
{
    int32_t first = 0, last = rows->count[i];
    while (first < last) {
        int32_t const middle = first + (last - first) / 2;
        int32_t const is = nlist_i_id_at(rows, i, nlist_i_unmarked(order[middle]));
        if (is == id) return middle;
        if (is < id) first = middle + 1;
        else last = middle;
    }
    return -1;
}

/* Events of a long row. Each position is swapped to its place, so that they ascend again. */
static void nlist_i_note_long(nlist_i_finder *finder, const nlist_rows *rows, int32_t i,
                              int32_t *order)
{
    int32_t const count = rows->count[i];
    int32_t k, at;
    for (k = 0; k < count; k++) {
        while ((at = nlist_i_unmarked(order[k])) != k) {
            int32_t const other = order[at];
            order[at] = order[k];
            order[k] = other;
        }
    }
    for (k = 0; k < count; k++)
        nlist_i_note(finder, order[k] < 0 ? NLIST_PERSISTED : NLIST_BEGUN, i,
                     nlist_i_id_at(rows, i, k), nlist_i_entry_at(rows, i, k));
}

/* nlist_i_carry_row for a long row: each old entry is looked up among the new ones. */
static void nlist_i_carry_long(nlist_i_finder *finder, const nlist_rows *old_rows, int32_t was,
                               const nlist_rows *rows, int32_t i)
{
    const int32_t *const new_of = finder->list->keys ? NULL : finder->new_of;
    int32_t *const order = nlist_i_positions(finder, rows, i);
    int32_t const bytes = finder->list->desc.history;
    nlist_each old = nlist_i_row(old_rows, bytes, was), e = nlist_i_row(rows, bytes, i);
    while (bytes > 0 && nlist_next(&e)) memset(e.history, 0, (size_t)bytes);
    while (nlist_next(&old)) {
        int32_t const id = new_of ? new_of[old.id] : old.id,
                      k = nlist_i_find_sorted(rows, i, order, id);
        if (k < 0) continue;
        if (bytes > 0)
            memcpy(rows->history + nlist_i_entry_at(rows, i, order[k]) * bytes, old.history,
                   (size_t)bytes);
        order[k] = ~order[k];
    }
    if (finder->list->desc.events && !finder->new_of) nlist_i_note_long(finder, rows, i, order);
}

/* ---- all rows ---- */

/* nlist_i_carry_row for a row whose entries are in several places, or long. */
static void nlist_i_carry_rare(nlist_i_finder *finder, const nlist_rows *old_rows, int32_t was,
                               const nlist_rows *rows, int32_t i)
{
    if (rows->count[i] > NLIST_I_LONG && rows->adjacent)
        nlist_i_carry_long(finder, old_rows, was, rows, i);
    else nlist_i_carry_row(finder, old_rows, was, rows, i);
}

/* Carries row i from row `was`, by the method that suits it. */
NLIST_I_ALWAYS_INLINE void nlist_i_carry_one(nlist_i_finder *finder, nlist_i_pending *pending,
                                             const nlist_rows *old_rows, int32_t was,
                                             const nlist_rows *rows, int32_t i)
{
    nlist *list = finder->list;
    int32_t const bytes = list->desc.history;
    int64_t const begun = list->event_count[NLIST_BEGUN],
                  persisted = list->event_count[NLIST_PERSISTED];
    nlist_i_stretch old, now;
    int32_t same, k;
    if (rows->count[i] == 0) return;
    if (!nlist_i_stretch_of(old_rows, bytes, was, nlist_i_count_of(old_rows, was), &old) ||
        !nlist_i_stretch_of(rows, bytes, i, rows->count[i], &now)) {
        nlist_i_carry_rare(finder, old_rows, was, rows, i);
        return;
    }
    same = nlist_i_same_begin(&old, &now, list->keys ? NULL : finder->new_of);
    if (bytes > 0 && same > 0)
        nlist_i_copy_later(pending, now.history, old.history, (size_t)same * (size_t)bytes);
    if (list->desc.events && !finder->new_of)
        for (k = 0; k < same; k++)
            nlist_i_note(finder, NLIST_PERSISTED, i, now.id[k], now.entry + k);
    if (same == now.count || nlist_i_carry_changed(finder, pending, i, &old, &now, same)) return;
    list->event_count[NLIST_BEGUN] = begun;
    list->event_count[NLIST_PERSISTED] = persisted;
    nlist_i_carry_rare(finder, old_rows, was, rows, i);
}

/* nlist_i_carry_rows of a list of triangles, where most rows are empty. */
static int nlist_i_full_rows(nlist_i_finder *finder, const nlist_rows *old_rows,
                             const nlist_rows *rows, int32_t first, int32_t last)
{
    int32_t i;
    if (!finder->wander || finder->old_of) return 0;
    for (i = first; i < last; i++)
        if (rows->count[i] > 0) nlist_i_carry_row(finder, old_rows, i, rows, i);
    return 1;
}

/* nlist_i_carry_rows; not where contacts wander, entries have states, or a partner is in a row
   several times. */
static int nlist_i_carry_faster(nlist_i_finder *finder, const nlist_rows *old_rows,
                                const nlist_rows *rows, int32_t first, int32_t last)
{
    nlist_i_pending pending = {rows->history, old_rows->history, 0};
    int32_t i = first;
    if (finder->wander) return nlist_i_full_rows(finder, old_rows, rows, first, last);
    if (rows->shift || rows->state) return 0;
    for (; i < last; i++) nlist_i_carry_one(finder, &pending, old_rows,
                                            finder->old_of ? finder->old_of[i] : i, rows, i);
    nlist_i_copy_pending(&pending);
    return 1;
}

/* nlist_i_add_ended for a row that is as it was, and for long ones. */
static int nlist_i_ended_faster(nlist_i_finder *finder, const nlist_rows *old_rows,
                                const nlist_rows *rows, int32_t i)
{
    nlist *list = finder->list;
    int32_t const count = nlist_i_count_of(rows, i);
    nlist_each e = nlist_i_row(old_rows, 0, i);
    nlist_i_stretch old, now;
    const int32_t *order;
    if (rows->shift || rows->state) return 0;
    if (nlist_i_stretch_of(old_rows, 0, i, old_rows->count[i], &old) &&
        nlist_i_stretch_of(rows, 0, i, count, &now) &&
        nlist_i_same_begin(&old, &now, NULL) == old.count)
        return 1;
    if (count <= NLIST_I_LONG || !rows->adjacent) return 0;
    order = nlist_i_positions(finder, rows, i);
    while (nlist_next(&e))
        if (nlist_i_reports(list, i, &e) && nlist_i_find_sorted(rows, i, order, e.id) < 0)
            nlist_i_add_event(list, NLIST_ENDED, i, e.id, e.entry);
    return 1;
}

/* ---- in place ---- */

/* What a row was, as row 0 of a list of its own, and the rest of all rows. */
typedef struct nlist_i_aside {
    nlist_rows rows;
    int32_t count, head;    /* of row 0 */
} nlist_i_aside;

/* Memory of the generation before, for a row of slots and a rest. */
static nlist_result nlist_i_reserve_aside(nlist *list, int64_t width, int64_t rest)
{
    int const first = (1 - list->current) * NLIST_I_GENERATION;
    nlist_result result = nlist_i_grow(list, first + NLIST_I_SLOT, width, sizeof(int32_t), 0);
    if (result == NLIST_OK)
        result = nlist_i_grow(list, first + NLIST_I_PARTNER, rest, sizeof(int32_t), 0);
    if (result == NLIST_OK)
        result = nlist_i_grow(list, first + NLIST_I_LINK, rest, sizeof(int32_t), 0);
    return result == NLIST_OK ? nlist_i_grow(list, first + NLIST_I_HISTORY, width + rest,
                                             (size_t)list->desc.history, 0)
                              : result;
}

/* Copies the rest of all rows aside. */
static nlist_result nlist_i_set_aside(nlist_i_finder *finder, const nlist_rows *old_rows,
                                      nlist_i_aside *aside)
{
    nlist *list = finder->list;
    const nlist_block *block = list->block + (1 - list->current) * NLIST_I_GENERATION;
    size_t const bytes = (size_t)list->desc.history, width = (size_t)old_rows->width,
                 rest = old_rows->head ? (size_t)old_rows->entries : 0;
    nlist_result const result = nlist_i_reserve_aside(list, (int64_t)width, (int64_t)rest);
    memset(&list->rows[1 - list->current], 0, sizeof list->rows[0]);
    if (result != NLIST_OK) return result;
    memset(aside, 0, sizeof *aside);
    aside->rows.n = aside->rows.adjacent = 1;
    aside->rows.width = old_rows->width;
    aside->rows.count = &aside->count;
    aside->rows.slot = (int32_t *)block[NLIST_I_SLOT].memory;
    aside->rows.partner = (int32_t *)block[NLIST_I_PARTNER].memory;
    aside->rows.link = (int32_t *)block[NLIST_I_LINK].memory;
    aside->rows.head = old_rows->head ? &aside->head : NULL;
    aside->rows.history = (unsigned char *)block[NLIST_I_HISTORY].memory;
    if (rest == 0) return NLIST_OK;
    memcpy(aside->rows.partner, old_rows->partner, rest * sizeof(int32_t));
    memcpy(aside->rows.link, old_rows->link, rest * sizeof(int32_t));
    memcpy(aside->rows.history + width * bytes,
           old_rows->history + (size_t)old_rows->n * width * bytes, rest * bytes);
    return NLIST_OK;
}

/* Copies row i aside, writes what was found in its place, and carries it from there. Returns the
   next free entry of the rest. */
static int64_t nlist_i_change_row(nlist_i_finder *finder, nlist_i_aside *aside, nlist_rows *rows,
                                  int32_t i, int64_t at)
{
    size_t const bytes = (size_t)finder->list->desc.history, width = (size_t)rows->width,
                 first = (size_t)i * width;
    size_t const slots = (size_t)rows->count[i] < width ? (size_t)rows->count[i] : width;
    int32_t const length = finder->length[i];
    nlist_i_pending pending = {aside->rows.history, aside->rows.history, 0};
    memcpy(aside->rows.slot, rows->slot + first, width * sizeof(int32_t));
    memcpy(aside->rows.history, rows->history + first * bytes, slots * bytes);
    aside->count = rows->count[i];
    if (rows->head) aside->head = rows->head[i];
    rows->count[i] = length;
    at = nlist_i_put_row(rows, i, aside->count,
                         length > 0 ? finder->found + finder->begin[i] : NULL, length, at);
    nlist_i_carry_one(finder, &pending, &aside->rows, 0, rows, i);
    nlist_i_copy_pending(&pending);
    return at;
}

/* How many slots of row i hold what was found, from the first on. */
static inline int32_t nlist_i_same_slots(const nlist_i_finder *finder, const nlist_rows *rows,
                                         int32_t i)
{
    const int32_t *const slot = rows->slot + (size_t)i * (size_t)rows->width;
    int32_t const length = finder->length[i], had = rows->count[i];
    int32_t const both = length < had ? length : had,
                  most = both < rows->width ? both : rows->width;
    const int32_t *const found = most > 0 ? finder->found + finder->begin[i] : NULL;
    int32_t k = 0;
    while (k < most && slot[k] == found[k]) k++;
    return k;
}

/* 1 if the new rows fit in the arrays of the old ones, slot by slot. Not in tasks, where a refusal
   must leave the old ones. */
static int nlist_i_fits_in_place(const nlist_i_finder *finder, const nlist_rows *old_rows)
{
    const nlist *list = finder->list;
    const nlist_desc *desc = &list->desc;
    const nlist_block *block = list->block + list->current * NLIST_I_GENERATION;
    int64_t const needed = list->needed_entries, asked = desc->capacity;
    nlist_i_sizes const sizes =
        nlist_i_generation_sizes(desc, finder->n, finder->rows, asked > needed ? asked : needed,
                                 finder->uid != NULL);
    int b;
    if (!old_rows->history || !old_rows->slot || desc->events || finder->new_of || finder->extras)
        return 0;
    if (old_rows->n != finder->rows || old_rows->particles != finder->n ||
        old_rows->width != desc->width || !nlist_i_has_slots(desc) ||
        !old_rows->head != !nlist_i_has_rest(desc) || nlist_i_light_pieces(finder) > 1)
        return 0;
    for (b = 0; b < NLIST_I_GENERATION; b++)
        if ((uint64_t)sizes.count[b] > block[b].bytes / (sizes.size[b] > 0 ? sizes.size[b] : 1))
            return 0;
    return 1;
}

/* Steps lay out and carry of nlist_i_finish, in place. The generation before is empty then. */
static int nlist_i_in_place_faster(nlist_i_finder *finder, const nlist_rows *old_rows)
{
    nlist *list = finder->list;
    nlist_rows *const rows = &list->rows[list->current];
    int64_t const needed = list->needed_entries, asked = list->desc.capacity;
    nlist_i_aside aside;
    int64_t at = 0;
    int32_t i;
    if (!nlist_i_fits_in_place(finder, old_rows)) return 0;
    if (nlist_i_set_aside(finder, old_rows, &aside) != NLIST_OK) return 0;
    finder->to = list->current;
    nlist_i_bind(rows, list->block + finder->to * NLIST_I_GENERATION, &list->desc, finder->n,
                 finder->rows, asked > needed ? asked : needed, finder->uid != NULL);
    rows->entries = needed;
    rows->adjacent = 1;
    for (i = 0; i < finder->rows; i++) {
        int32_t const same = nlist_i_same_slots(finder, rows, i);
        if (finder->length[i] != same || rows->count[i] != same)
            at = nlist_i_change_row(finder, &aside, rows, i, at);
    }
    nlist_i_keep_reference(finder, old_rows, rows, 0, finder->n);
    return 1;
}

/* ----------------------------------------------------------------------------------------------
   >>parallel-build: the steps of a build (>>build) before and after its search

       measure   entries of the rows of a piece
                 sums over the pieces before: where it writes entries, touched rows, events
       lay out   rows
       carry     history and events of the new rows, then of the old ones
                 events of the pieces are moved together
   ---------------------------------------------------------------------------------------------- */

/* A piece: first how much it has, then where it writes. */
typedef struct nlist_i_part {
    int64_t found, beyond, old; /* entries: all, beyond the slots, of old rows */
    int64_t event[NLIST_EVENT_KINDS]; /* events that it wrote */
    int32_t touched;            /* rows that have entries */
    int32_t bad_id;
    nlist_real largest;         /* radius */
    nlist_result result;
} nlist_i_part;

typedef struct nlist_i_split {
    nlist_i_finder *finder;
    const nlist_rows *old_rows;
    nlist_rows *rows;
    int32_t pieces;
    nlist_i_part part[NLIST_I_MOST_PIECES];
} nlist_i_split;

/* Cuts the rows, or the particles, into pieces. */
static void nlist_i_begin_split(nlist_i_split *split, nlist_i_finder *finder)
{
    memset(split, 0, sizeof *split);
    split->finder = finder;
    split->pieces = nlist_i_light_pieces(finder);
}

/* nlist_i_check_particles for a piece, as a list of its own. */
static void nlist_i_particles_piece(void *context, int32_t k)
{
    nlist_i_split *split = (nlist_i_split *)context;
    nlist_i_part *part = &split->part[k];
    nlist_i_finder finder = *split->finder;
    nlist list = *finder.list;
    int32_t const first = nlist_i_cut_at(finder.n, split->pieces, k);
    finder.list = &list;
    finder.n = nlist_i_cut_at(finder.n, split->pieces, k + 1) - first;
    finder.pos = (const nlist_real *)((const char *)finder.pos + (size_t)first * finder.stride);
    if (list.desc.radii)
        list.desc.radii += (size_t)first * (list.desc.radii_stride / sizeof(nlist_real));
    part->result = nlist_i_check_particles(&finder);
    part->bad_id = list.bad_id < 0 ? -1 : first + list.bad_id;
    part->largest = finder.largest;
}

/* nlist_i_check_particles in tasks. */
static int nlist_i_check_faster(nlist_i_finder *finder, nlist_result *result)
{
    nlist *list = finder->list;
    nlist_i_split split;
    int32_t k;
    if (nlist_i_light_pieces(finder) < 2) return 0;
    nlist_i_begin_split(&split, finder);
    *result = nlist_i_in_pieces(&list->desc.parallel, split.pieces, nlist_i_particles_piece,
                                &split);
    finder->largest = 0;
    list->bad_id = -1;
    for (k = 0; *result == NLIST_OK && k < split.pieces; k++) {
        *result = split.part[k].result;
        if (*result != NLIST_OK || list->bad_id < 0) list->bad_id = split.part[k].bad_id;
        if (split.part[k].largest > finder->largest) finder->largest = split.part[k].largest;
    }
    return 1;
}

/* How much a piece has: of new rows, and of old ones. */
static void nlist_i_measure_piece(void *context, int32_t k)
{
    nlist_i_split *split = (nlist_i_split *)context;
    const nlist_i_finder *finder = split->finder;
    nlist_i_part *part = &split->part[k];
    int32_t const last = nlist_i_cut_at(finder->rows, split->pieces, k + 1),
                  old_last = nlist_i_cut_at(split->old_rows->n, split->pieces, k + 1);
    int32_t i;
    for (i = nlist_i_cut_at(finder->rows, split->pieces, k); i < last; i++) {
        part->found += finder->length[i];
        part->beyond += nlist_i_beyond(&finder->list->desc, finder->length[i]);
        part->touched += finder->length[i] > 0;
    }
    for (i = nlist_i_cut_at(split->old_rows->n, split->pieces, k); i < old_last; i++)
        part->old += split->old_rows->count[i];
}

/* How much the pieces have becomes where they begin. */
static void nlist_i_begin_parts(nlist_i_split *split)
{
    int64_t found = 0, beyond = 0, old = 0;
    int32_t k, touched = 0;
    for (k = 0; k < split->pieces; k++) {
        nlist_i_part *part = &split->part[k];
        nlist_i_part const has = *part;
        part->found = found;
        part->beyond = beyond;
        part->old = old;
        part->touched = touched;
        found += has.found;
        beyond += has.beyond;
        old += has.old;
        touched += has.touched;
    }
    if (split->rows->touched) split->rows->touched_count = touched;
}

/* nlist_i_lay_out for a piece. It notes its touched rows in a part of the array of its own. */
static void nlist_i_lay_out_piece(void *context, int32_t k)
{
    nlist_i_split *split = (nlist_i_split *)context;
    nlist_i_part const part = split->part[k];
    int32_t const n = split->finder->rows;
    nlist_rows rows = *split->rows;
    if (rows.touched) rows.touched += part.touched;
    rows.touched_count = 0;
    nlist_i_lay_out(split->finder, &rows, nlist_i_cut_at(n, split->pieces, k),
                    nlist_i_cut_at(n, split->pieces, k + 1), part.beyond);
}

/* Events of a piece begin where those of the pieces before would end if all their entries gave
   one. */
static void nlist_i_carry_piece(void *context, int32_t k)
{
    nlist_i_split *split = (nlist_i_split *)context;
    nlist_i_part *part = &split->part[k];
    nlist_i_finder finder = *split->finder;
    nlist list = *finder.list;
    int32_t const old = split->old_rows->n, pieces = split->pieces;
    int32_t const first = nlist_i_cut_at(finder.rows, pieces, k),
                  last = nlist_i_cut_at(finder.rows, pieces, k + 1),
                  old_last = nlist_i_cut_at(old, pieces, k + 1);
    int const keeps = nlist_i_keeps_two(&list.desc), events = list.desc.events && !finder.new_of;
    finder.list = &list;
    if (events) {
        list.event[NLIST_BEGUN] += part->found;
        list.event[NLIST_PERSISTED] += part->found;
        list.event[NLIST_ENDED] += part->old;
    }
    memset(list.event_count, 0, sizeof list.event_count);
    if (finder.extras) finder.extras(&finder, split->old_rows, split->rows, first, last);
    nlist_i_keep_reference(&finder, split->old_rows, split->rows,
                           nlist_i_cut_at(finder.n, pieces, k),
                           nlist_i_cut_at(finder.n, pieces, k + 1));
    if (keeps) nlist_i_carry_rows(&finder, split->old_rows, split->rows, first, last);
    if (events)
        nlist_i_end_rows(&finder, split->old_rows, split->rows, nlist_i_cut_at(old, pieces, k),
                         old_last);
    memcpy(part->event, list.event_count, sizeof part->event);
}

/* Moves the events of the pieces together. */
static void nlist_i_join_events(const nlist_i_split *split)
{
    nlist *list = split->finder->list;
    int32_t k;
    int kind;
    if (!nlist_i_keeps_two(&list->desc) || split->finder->new_of) return;
    memset(list->event_count, 0, sizeof list->event_count);
    if (!list->desc.events) return;
    for (k = 0; k < split->pieces; k++) {
        const nlist_i_part *part = &split->part[k];
        for (kind = 0; kind < NLIST_EVENT_KINDS; kind++) {
            nlist_event *const all = list->event[kind];
            int64_t const from = kind == NLIST_ENDED ? part->old : part->found;
            if (part->event[kind] > 0)
                memmove(all + list->event_count[kind], all + from,
                        (size_t)part->event[kind] * sizeof *all);
            list->event_count[kind] += part->event[kind];
        }
    }
}

/* Steps lay out and carry of nlist_i_finish, in tasks. */
static int nlist_i_lay_out_faster(nlist_i_finder *finder, const nlist_rows *old_rows,
                                  nlist_result *result)
{
    nlist *list = finder->list;
    nlist_i_split split;
    if (nlist_i_light_pieces(finder) < 2) return 0;
    nlist_i_begin_split(&split, finder);
    split.old_rows = old_rows;
    split.rows = &list->rows[finder->to];
    *result = nlist_i_in_pieces(&list->desc.parallel, split.pieces, nlist_i_measure_piece, &split);
    if (*result == NLIST_OK) {
        nlist_i_begin_parts(&split);
        *result = nlist_i_in_pieces(&list->desc.parallel, split.pieces, nlist_i_lay_out_piece,
                                    &split);
    }
    if (*result == NLIST_OK)
        *result = nlist_i_in_pieces(&list->desc.parallel, split.pieces, nlist_i_carry_piece,
                                    &split);
    if (*result == NLIST_OK) {
        nlist_i_join_events(&split);
    } else {
        list->current = finder->to;
        list->built = NLIST_I_OVERWRITTEN;
    }
    return 1;
}

#if defined(NLIST_I_UGRID) || defined(NLIST_I_LBVH)
/* ----------------------------------------------------------------------------------------------
   >>parallel-find: the rows of a piece of the source, in a part of `found` of its own

   The parts are of equal size at first. A row that does not fit is counted only. If there was one,
   each piece gets the room that it needs, and all search again: mostly in a first build.
   ---------------------------------------------------------------------------------------------- */

/* Partners of the row in progress, all of which are listed. */
static nlist_result nlist_i_take_ids(nlist_i_finder *finder, const int32_t *ids, int32_t count)
{
    nlist_result const result = finder->fixed ? NLIST_OK : nlist_i_need(finder, count);
    if (result != NLIST_OK) return result;
    if (count > 0 && finder->used + count <= finder->room)
        memcpy(finder->found + finder->used, ids, (size_t)count * sizeof *ids);
    finder->used += count;
    return NLIST_OK;
}

/* Those that uids, masks and exclusions allow. */
static nlist_result nlist_i_take_allowed(nlist_i_finder *finder, const int32_t *ids, int32_t count)
{
    int32_t k;
    for (k = 0; k < count; k++) {
        nlist_result result;
        if (!nlist_i_may_list(&finder->list->desc, finder->uid, finder->row, ids[k])) continue;
        result = nlist_i_append(finder, ids[k]);
        if (result != NLIST_OK) return result;
    }
    return NLIST_OK;
}

/* 1 if a search that tests distances, radii and ids lists all that it finds. */
static int nlist_i_all_allowed(const nlist_i_finder *finder)
{
    const nlist_desc *desc = &finder->list->desc;
    return !desc->masks && !desc->exclude_start && !finder->uid;
}

/* A search of places or cells in pieces; `search` finds the rows of one of them. */
struct nlist_i_search_split;
typedef struct nlist_i_search_split nlist_i_search_split;
typedef nlist_result nlist_i_search_fn(nlist_i_finder *finder, const nlist_i_search_split *split,
                                       int32_t piece);
struct nlist_i_search_split {
    nlist_i_finder *finder;
    nlist_i_search_fn *search;
    int32_t pieces;
    nlist_real radius;          /* grids: of ugrid_each_row, */
    int flags;                  /* and its flags */
    int64_t begin[NLIST_I_MOST_PIECES + 1];   /* the part of each piece */
    int64_t used[NLIST_I_MOST_PIECES];        /* entries that it found */
    nlist_result result[NLIST_I_MOST_PIECES];
};

/* The rows of one piece, to its part of `found`. */
static void nlist_i_search_piece(void *context, int32_t k)
{
    nlist_i_search_split *split = (nlist_i_search_split *)context;
    nlist_i_finder finder = *split->finder;
    finder.row = -1;
    finder.fixed = 1;
    finder.used = split->begin[k];
    finder.room = split->begin[k + 1];
    split->result[k] = split->search(&finder, split, k);
    split->used[k] = finder.used - split->begin[k];
}

/* One search. `*all`: entries found; `*fit`: 1 if each part held them. */
static nlist_result nlist_i_search_once(nlist_i_search_split *split, int64_t *all, int *fit)
{
    const nlist_i_finder *finder = split->finder;
    nlist_result result;
    int32_t i, k;
    for (i = 0; i < finder->rows; i++) finder->begin[i] = finder->length[i] = 0;
    result = nlist_i_in_pieces(&finder->list->desc.parallel, split->pieces, nlist_i_search_piece,
                               split);
    *all = 0;
    *fit = 1;
    for (k = 0; result == NLIST_OK && k < split->pieces; k++) {
        result = split->result[k];
        *all += split->used[k];
        *fit &= split->used[k] <= split->begin[k + 1] - split->begin[k];
    }
    return result;
}

/* Room for all that was found, and an eighth more where memory is taken, so that the next build
   fits at once. */
static nlist_result nlist_i_need_parts(nlist_i_finder *finder, int64_t all)
{
    nlist_result result;
    finder->used = 0;
    if (finder->room >= all) return NLIST_OK;
    nlist_i_release(&finder->list->desc.allocator, &finder->list->block[NLIST_I_FOUND]);
    result = nlist_i_take_found(finder, all + all / 8);
    if (result == NLIST_OUT_OF_MEMORY) result = nlist_i_take_found(finder, all);
    finder->fixed = result == NLIST_OUT_OF_MEMORY; /* all are counted */
    return result;
}

/* Searches once; and once more where a part was too small. */
static nlist_result nlist_i_search_in_pieces(nlist_i_search_split *split)
{
    nlist_i_finder *finder = split->finder;
    nlist_result result;
    int64_t all;
    int32_t k;
    int fit;
    for (k = 0; k <= split->pieces; k++) split->begin[k] = finder->room / split->pieces * k;
    result = nlist_i_search_once(split, &all, &fit);
    if (result == NLIST_OK && !fit) {
        result = nlist_i_need_parts(finder, all);
        if (result != NLIST_OK) return result;
        for (split->begin[0] = 0, k = 0; k < split->pieces; k++)
            split->begin[k + 1] = split->begin[k] + split->used[k];
        result = nlist_i_search_once(split, &all, &fit);
    }
    finder->used = all;
    return result;
}

/* The rows of all pieces: in tasks, or in one search here. */
static nlist_result nlist_i_search_rows(nlist_i_search_split *split)
{
    nlist_i_finder *finder = split->finder;
    split->pieces = nlist_i_pieces(&finder->list->desc.parallel, finder->n, NLIST_I_PIECE);
    return split->pieces > 1 ? nlist_i_search_in_pieces(split) : split->search(finder, split, 0);
}
#endif

#ifdef NLIST_I_UGRID
/* A row of the grid, or a part of it, which lists what the list does. */
static int nlist_i_receive_ids(void *user, int32_t i, const int32_t *ids, int32_t count)
{
    nlist_i_finder *finder = (nlist_i_finder *)user;
    nlist_i_from_grid *from = (nlist_i_from_grid *)finder->source;
    if (finder->row != i) nlist_i_begin_row(finder, i);
    from->result = nlist_i_take_ids(finder, ids, count);
    nlist_i_end_row(finder);
    return from->result != NLIST_OK;
}

/* The same where uids, masks and exclusions decide, too. */
static int nlist_i_receive_allowed(void *user, int32_t i, const int32_t *ids, int32_t count)
{
    nlist_i_finder *finder = (nlist_i_finder *)user;
    nlist_i_from_grid *from = (nlist_i_from_grid *)finder->source;
    if (finder->row != i) nlist_i_begin_row(finder, i);
    from->result = nlist_i_take_allowed(finder, ids, count);
    nlist_i_end_row(finder);
    return from->result != NLIST_OK;
}

/* A piece of the grid. */
static nlist_result nlist_i_find_ugrid(nlist_i_finder *finder, const nlist_i_search_split *split,
                                       int32_t piece)
{
    nlist_i_from_grid from = *(const nlist_i_from_grid *)finder->source;
    void *const source = finder->source;
    ugrid_result searched;
    finder->source = &from;
    searched = ugrid_each_row_in(from.grid, split->radius, split->flags, piece, split->pieces,
                                 nlist_i_all_allowed(finder) ? nlist_i_receive_ids
                                                             : nlist_i_receive_allowed,
                                 finder);
    finder->source = source;
    if (searched == UGRID_STOPPED) return from.result;
    return searched == UGRID_OK ? NLIST_OK : NLIST_BAD_SOURCE;
}

/* 1 if the grid may test the radii: not where one that is left out has none that is valid. */
static int nlist_i_radii_valid(const nlist_i_finder *finder)
{
    const nlist_desc *desc = &finder->list->desc;
    int32_t i;
    if (!desc->radii || finder->list->bad_id < 0) return 1;
    for (i = 0; i < finder->n; i++) {
        nlist_real const radius = nlist_i_given_radius(desc, i);
        if (!(radius >= 0) || !(radius <= finder->largest)) return 0;
    }
    return 1;
}

/* ---- half lists of few pairs ----

   A half search of ugrid.h tests each pair once, and passes the pairs on by ascending place, first
   of the one, then of the other particle. Each is appended to the row of its owner. There it comes
   in the order of a full search: partners by ascending place. To append a pair costs more than some
   tests, so this pays where few candidates are partners, as in the last build. */

/* The most pairs of a particle, in the mean: measured (bench_nlist --only half). A test of floats
   of one radius is the cheapest. */
static int nlist_i_few_pairs(const nlist_desc *desc)
{
    return desc->radii || NLIST_I_REAL_KIND == 2 ? 8 : 4;
}

/* The pairs as they come: ~i before those of particle i, then its partners. */
typedef struct nlist_i_stream {
    nlist_i_finder *finder;
    int32_t *word;
    int64_t used, room;
    int32_t row;            /* the last particle i, or -1 */
} nlist_i_stream;

/* The particle whose row has the pair i, j of a half list. */
static inline int32_t nlist_i_owner(const int64_t *uid, int32_t i, int32_t j)
{
    if (uid) return uid[i] < uid[j] ? i : j;
    return i < j ? i : j;
}

/* Room for `more` words. */
static nlist_result nlist_i_widen_stream(nlist_i_stream *stream, int64_t more)
{
    nlist *list = stream->finder->list;
    const nlist_block *block = &list->block[NLIST_I_WORK];
    nlist_result const result = nlist_i_grow(list, NLIST_I_WORK, stream->used + more,
                                             sizeof *stream->word,
                                             (size_t)stream->used * sizeof *stream->word);
    stream->word = (int32_t *)block->memory;
    stream->room = (int64_t)(block->bytes / sizeof *stream->word);
    return result;
}

/* Half a row of the grid, or a part of it: partners at higher places. */
static int nlist_i_receive_half(void *user, int32_t i, const int32_t *ids, int32_t count)
{
    nlist_i_stream *stream = (nlist_i_stream *)user;
    const nlist_i_finder *finder = stream->finder;
    int32_t *word, k;
    if (stream->used + count >= stream->room &&
        nlist_i_widen_stream(stream, count + 1) != NLIST_OK)
        return 1;
    if (i != stream->row) stream->word[stream->used++] = ~i;
    stream->row = i;
    word = stream->word + stream->used;
    for (k = 0; k < count; k++) {
        word[k] = ids[k];
        finder->length[nlist_i_owner(finder->uid, i, ids[k])]++;
    }
    stream->used += count;
    return 0;
}

/* Appends the pairs to the rows of their owners. */
static void nlist_i_append_pairs(nlist_i_finder *finder, const nlist_i_stream *stream)
{
    int64_t *const begin = finder->begin;
    int64_t at;
    int32_t i = 0;
    for (at = 0; at < stream->used; at++) {
        int32_t const j = stream->word[at];
        int32_t row;
        if (j < 0) {
            i = ~j;
            continue;
        }
        row = nlist_i_owner(finder->uid, i, j);
        finder->found[begin[row]++] = row == i ? j : i;
    }
    for (i = 0; i < finder->rows; i++) begin[i] -= finder->length[i];
}

/* Finds the rows by a half search. 0: it does not pay, or memory has ended. */
static int nlist_i_find_halves(nlist_i_finder *finder, ugrid *grid)
{
    const nlist *list = finder->list;
    nlist_i_stream stream = {finder, NULL, 0, 0, -1};
    int64_t all = 0;
    int32_t i;
    if (!list->desc.half || list->n != finder->n || finder->rows != finder->n ||
        list->total > nlist_i_few_pairs(&list->desc) * (int64_t)finder->n)
        return 0;
    if (list->desc.masks || list->desc.exclude_start || !grid->record || !ugrid_has_ranges(grid) ||
        grid->desc.cell_order != UGRID_ROWS ||
        nlist_i_pieces(&list->desc.parallel, finder->n, NLIST_I_PIECE) > 1)
        return 0;
    (void)nlist_i_widen_stream(&stream, 0);
    if (ugrid_each_row(grid, nlist_i_gap(&list->desc), UGRID_HALF, nlist_i_receive_half,
                       &stream) != UGRID_OK)
        return 0;
    for (i = 0; i < finder->rows; i++) {
        finder->begin[i] = all;
        all += finder->length[i];
    }
    if (all > finder->room && nlist_i_take_found(finder, all) != NLIST_OK) return 0;
    finder->used = all;
    nlist_i_append_pairs(finder, &stream);
    return 1;
}

/* nlist_i_collect_ugrid, from its search on, in tasks: ugrid.h tests distances, radii, and unless
   uids decide which row holds a pair, by vectors. (A half search of ugrid.h tests each pair once.
   But half of its pairs belong to the row of the other particle, and to move them there takes
   longer than the tests, unless they are few: bench_nlist --only half.) */
static int nlist_i_ugrid_faster(nlist_i_finder *finder, nlist_result *result)
{
    ugrid *grid = ((nlist_i_from_grid *)finder->source)->grid;
    const nlist_desc *desc = &finder->list->desc;
    nlist_i_search_split split;
    int32_t i;
    if (!nlist_i_radii_valid(finder)) return 0;
    grid->filter.radii = desc->radii;
    grid->filter.radii_stride = desc->radii_stride;
    grid->filter.largest = finder->largest;
    *result = NLIST_OK;
    if (nlist_i_find_halves(finder, grid)) return 1;
    finder->used = 0;
    for (i = 0; i < finder->rows; i++) finder->begin[i] = finder->length[i] = 0;
    split.finder = finder;
    split.search = nlist_i_find_ugrid;
    split.radius = nlist_i_gap(desc);
    split.flags = desc->half && !finder->uid ? UGRID_HALF_IDS : 0;
    *result = nlist_i_search_rows(&split);
    return 1;
}
#endif /* NLIST_I_UGRID */

#ifdef NLIST_I_LBVH
/* ----------------------------------------------------------------------------------------------
   >>find-lbvh: the rows of adjacent leaves of a tree, which share their candidates

   Up to NLIST_I_BLOCK leaves of a subtree are a block. One walk through the tree collects the
   leaves near any of them, as a structure of arrays. Then the row of each is a plain loop over
   these, without a branch, by vectors. Places ascend, so the rows are those of nlist_i_lbvh_row.

   A pair is listed if |p - q| <= gap + r + r' along each axis. The box of q holds its sphere but
   for `excess`, so it begins at most at q - r' + excess, which is p + gap + r + excess.
   ---------------------------------------------------------------------------------------------- */

enum {
    NLIST_I_BLOCK = 32,         /* leaves of a block at most */
    NLIST_I_FEW = 16,           /* leaves of a subtree that is tested whole */
    NLIST_I_MOST_NEAR = 1024,   /* candidates of a block; of more, each leaf walks alone */
    NLIST_I_NEAR_ROOM = NLIST_I_MOST_NEAR + NLIST_I_FEW
};

typedef struct nlist_i_leaves {
    nlist_real min[3], max[3];  /* boxes that touch this one have the candidates */
    nlist_real x[NLIST_I_NEAR_ROOM], y[NLIST_I_NEAR_ROOM], z[NLIST_I_NEAR_ROOM],
               radius[NLIST_I_NEAR_ROOM];
    int32_t id[NLIST_I_NEAR_ROOM], hit[NLIST_I_NEAR_ROOM], listed[NLIST_I_NEAR_ROOM];
    int32_t count;
} nlist_i_leaves;

/* 1 if the box of a node touches that of the block. */
static inline int nlist_i_leaf_near(const nlist_i_leaves *near, const lbvh_node *node)
{
    return (node->min[0] <= near->max[0]) & (node->min[1] <= near->max[1]) &
           (node->min[2] <= near->max[2]) & (node->max[0] >= near->min[0]) &
           (node->max[1] >= near->min[1]) & (node->max[2] >= near->min[2]);
}

/* The ids of the candidates; 0 if there are too many. */
static int nlist_i_find_leaves(const nlist_i_finder *finder, nlist_i_leaves *near)
{
    const lbvh *tree = ((const nlist_i_from_tree *)finder->source)->tree;
    const char *const pos = (const char *)finder->pos;
    int32_t at = lbvh_root(tree), first = 0, place;
    near->count = 0;
    while (at >= 0) {
        const lbvh_node *node = &tree->node[at];
        int32_t const last = lbvh_last_place(tree, node);
        if (nlist_i_leaf_near(near, node)) {
            if (last - first >= NLIST_I_FEW) {
                at = node->link;
                continue;
            }
            if (near->count > NLIST_I_MOST_NEAR - NLIST_I_FEW) return 0;
            for (place = first; place <= last; place++) { /* the next one overwrites one that is not
                                                             near */
                int32_t const id = nlist_i_leaf(tree, place)->link;
                NLIST_I_PREFETCH(pos + finder->stride * (size_t)id);
                near->id[near->count] = id;
                near->count += nlist_i_leaf_near(near, nlist_i_leaf(tree, place));
            }
        }
        first = last + 1;
        at = node->skip;
    }
    return 1;
}

/* Their points and radii, and NaN in the lanes behind the last. */
static void nlist_i_load_leaves(const nlist_i_finder *finder, nlist_i_leaves *near)
{
    const nlist *list = finder->list;
    nlist_real q[3];
    int32_t k;
    for (k = 0; k < near->count; k++) {
        nlist_i_point(list, finder->pos, finder->stride, near->id[k], q);
        near->x[k] = q[0];
        near->y[k] = q[1];
        near->z[k] = q[2];
        near->radius[k] = nlist_i_radius(&list->desc, near->id[k]);
    }
    for (; k % NLIST_I_LANES != 0; k++) {
        near->x[k] = near->y[k] = near->z[k] = (nlist_real)NAN;
        near->radius[k] = 0;
        near->id[k] = -1;
    }
}

/* hit[k] = -1 where candidate k is within reach, of another id than the row's, and above `above`;
   else 0. */
NLIST_I_ALWAYS_INLINE void nlist_i_test_leaves(nlist_i_leaves *near, nlist_real gap,
                                      const nlist_i_query *query, int32_t above)
{
    nlist_real const x = query->p[0], y = query->p[1], z = query->p[2], radius = query->radius;
    int32_t const i = query->i, count = near->count;
    int32_t first, k;
    for (first = 0; first < count; first += NLIST_I_LANES) {
        NLIST_I_KEEP_LOOP
        for (k = first; k < first + NLIST_I_LANES; k++) {
            nlist_real const dx = near->x[k] - x, dy = near->y[k] - y, dz = near->z[k] - z;
            nlist_real const reach = gap + (radius + near->radius[k]);
            nlist_real const d2 =
                nlist_i_times(dx, dx) + nlist_i_times(dy, dy) + nlist_i_times(dz, dz);
            near->hit[k] =
                -((d2 <= nlist_i_times(reach, reach)) & (near->id[k] > above) & (near->id[k] != i));
        }
    }
}

/* The ids of those hit from candidate k on, to ids[at] and so on. Returns the end. What is written
   there and behind it does not count. */
NLIST_I_ALWAYS_INLINE int32_t nlist_i_list_leaves(const nlist_i_leaves *near, int32_t k,
                                                  int32_t *ids, int32_t at)
{
    for (; k < near->count; k++) {
        ids[at] = near->id[k];
        at -= near->hit[k];
    }
    return at;
}

#ifdef NLIST_I_AVX2
/* Both for AVX2. Ids are listed 4 at a time: those hit are moved to the front and written with the
   others, and the end advances by their number. */
NLIST_I_AVX2 static int32_t nlist_i_hit_leaves_avx2(nlist_i_leaves *near, nlist_real gap,
                                                    const nlist_i_query *query, int32_t above,
                                                    int32_t *ids)
{
    static const int32_t front[16][4] = {
        {0, 0, 0, 0}, {0, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 0}, {2, 0, 0, 0}, {0, 2, 0, 0},
        {1, 2, 0, 0}, {0, 1, 2, 0}, {3, 0, 0, 0}, {0, 3, 0, 0}, {1, 3, 0, 0}, {0, 1, 3, 0},
        {2, 3, 0, 0}, {0, 2, 3, 0}, {1, 2, 3, 0}, {0, 1, 2, 3}};
    int32_t k, at = 0;
    nlist_i_test_leaves(near, gap, query, above);
    for (k = 0; k <= near->count - 4; k += 4) {
        __m128 const some = _mm_loadu_ps((const float *)(const void *)(near->id + k)),
                     hits = _mm_loadu_ps((const float *)(const void *)(near->hit + k));
        int const bits = _mm_movemask_ps(hits);
        __m128i const order = _mm_loadu_si128((const __m128i *)(const void *)front[bits]);
        _mm_storeu_ps((float *)(void *)(ids + at), _mm_permutevar_ps(some, order));
        at += __builtin_popcount((unsigned)bits);
    }
    return nlist_i_list_leaves(near, k, ids, at);
}
#endif

/* The partners of a row among the candidates: their number. ids: room for all candidates. */
static int32_t nlist_i_hit_leaves(nlist_i_leaves *near, nlist_real gap, const nlist_i_query *query,
                                  int32_t above, int32_t *ids)
{
#ifdef NLIST_I_AVX2
    if (NLIST_I_HAS_AVX2()) return nlist_i_hit_leaves_avx2(near, gap, query, above, ids);
#endif
    nlist_i_test_leaves(near, gap, query, above);
    return nlist_i_list_leaves(near, 0, ids, 0);
}

/* Keeps those of the partners whose nearest image is the candidate itself. */
static int32_t nlist_i_keep_own_images(const nlist_i_finder *finder, const nlist_i_query *query,
                                       int32_t *ids, int32_t count)
{
    const nlist *list = finder->list;
    nlist_real q[3];
    int32_t k, kept = 0;
    for (k = 0; k < count; k++) {
        nlist_i_point(list, finder->pos, finder->stride, ids[k], q);
        if (nlist_i_in_image(list, query->p, q, 13)) ids[kept++] = ids[k];
    }
    return kept;
}

/* The row of a leaf of the block. Its ids are written where they belong, if all are listed and
   there is room for all candidates. */
static nlist_result nlist_i_leaf_row(nlist_i_finder *finder, nlist_i_leaves *near, int32_t i)
{
    const nlist *list = finder->list;
    const nlist_desc *desc = &list->desc;
    int const all = nlist_i_all_allowed(finder),
              repeats = list->axis[0].periodic | list->axis[1].periodic | list->axis[2].periodic;
    int const direct = all && !repeats && near->count > 0 &&
                       finder->used + near->count <= finder->room;
    int32_t *const ids = direct ? finder->found + finder->used : near->listed;
    nlist_i_query query;
    nlist_result result = NLIST_OK;
    nlist_real p[3];
    int32_t count;
    nlist_i_point(list, finder->pos, finder->stride, i, p);
    query = nlist_i_query_of(desc, i, p);
    nlist_i_begin_row(finder, i);
    count = nlist_i_hit_leaves(near, nlist_i_gap(desc), &query,
                               desc->half && !finder->uid ? i : -1, ids);
    if (repeats) count = nlist_i_keep_own_images(finder, &query, ids, count);
    if (direct) finder->used += count;
    else if (all) result = nlist_i_take_ids(finder, ids, count);
    else result = nlist_i_take_allowed(finder, ids, count);
    nlist_i_end_row(finder);
    return result;
}

/* The box of all that the leaves first .. last can list. 0 if one of them can see an image of the
   tree. */
static int nlist_i_extend_leaves(const nlist_i_finder *finder, int32_t first, int32_t last,
                               nlist_i_leaves *near)
{
    const nlist_i_from_tree *from = (const nlist_i_from_tree *)finder->source;
    const lbvh_node *root = &from->tree->node[lbvh_root(from->tree)];
    const nlist *list = finder->list;
    nlist_real p[3];
    int32_t place;
    int a;
    for (a = 0; a < 3; a++) near->min[a] = NLIST_I_REAL_MAX, near->max[a] = -NLIST_I_REAL_MAX;
    for (place = first; place <= last; place++) {
        int32_t const i = nlist_i_leaf(from->tree, place)->link;
        nlist_real reach;
        nlist_i_point(list, finder->pos, finder->stride, i, p);
        if (i >= finder->rows || !nlist_i_point_finite(p)) continue;
        reach = nlist_i_gap(&list->desc) + nlist_i_radius(&list->desc, i) + from->excess;
        reach = nlist_i_search_radius(reach > 0 ? reach : 0, p);
        for (a = 0; a < 3; a++) {
            if (p[a] - reach < near->min[a]) near->min[a] = p[a] - reach;
            if (p[a] + reach > near->max[a]) near->max[a] = p[a] + reach;
        }
    }
    for (a = 0; a < 3; a++)
        if (list->axis[a].periodic && (near->max[a] >= root->min[a] + list->axis[a].length ||
                                       near->min[a] <= root->max[a] - list->axis[a].length))
            return 0;
    return 1;
}

/* The rows of the leaves first .. last. */
static nlist_result nlist_i_find_block(nlist_i_finder *finder, int32_t first, int32_t last,
                                       nlist_i_leaves *near)
{
    const lbvh *tree = ((const nlist_i_from_tree *)finder->source)->tree;
    int const fits = nlist_i_extend_leaves(finder, first, last, near) &&
                     nlist_i_find_leaves(finder, near);
    int32_t place;
    if (fits) nlist_i_load_leaves(finder, near);
    for (place = first; place <= last; place++) {
        int32_t const i = nlist_i_leaf(tree, place)->link;
        nlist_result result;
        if (i >= finder->rows) continue;
        result = fits ? nlist_i_leaf_row(finder, near, i) : nlist_i_lbvh_row(finder, place);
        if (result != NLIST_OK) return result;
    }
    return NLIST_OK;
}

/* A piece of the tree: the largest subtrees that are small enough, from left to right. */
static nlist_result nlist_i_find_lbvh(nlist_i_finder *finder, const nlist_i_search_split *split,
                                      int32_t piece)
{
    const lbvh *tree = ((const nlist_i_from_tree *)finder->source)->tree;
    int32_t const begin = nlist_i_cut_at(finder->n, split->pieces, piece),
                  end = nlist_i_cut_at(finder->n, split->pieces, piece + 1);
    int32_t at = lbvh_root(tree), first = 0;
    nlist_i_leaves near;
    while (at >= 0 && first < end) {
        const lbvh_node *node = &tree->node[at];
        int32_t const last = lbvh_last_place(tree, node);
        if (last >= begin) {
            nlist_result result;
            if (first < begin || last >= end || last - first >= NLIST_I_BLOCK) {
                at = node->link;
                continue;
            }
            result = nlist_i_find_block(finder, first, last, &near);
            if (result != NLIST_OK) return result;
        }
        first = last + 1;
        at = node->skip;
    }
    return NLIST_OK;
}

/* nlist_i_collect_lbvh, from its search on, in tasks. (Leaves with masks of the tree walk.) */
static int nlist_i_lbvh_faster(nlist_i_finder *finder, nlist_result *result)
{
    nlist_i_search_split split;
    if (((const nlist_i_from_tree *)finder->source)->tree->mask) return 0;
    split.finder = finder;
    split.search = nlist_i_find_lbvh;
    *result = nlist_i_search_rows(&split);
    return 1;
}

/* ----------------------------------------------------------------------------------------------
   >>find-mesh: the rows of a list of triangles, by cells that list the leaves near them

   The box of the particles is cut into cells. The box of each leaf of the tree is enlarged on every
   side, by the reach of a particle whose radius is 1.5 times the mean. The leaf is listed in the
   cells that this box overlaps. Along one axis:

       leaf                        TTTTTT
       enlarged               [....TTTTTT....]
       cells         |    0    |    1    |    2    |    3    |      listed in 0, 1, 2

   A particle of that reach, or less, tests the leaves of its own cell; most cells list none. One of
   a wider reach looks into the cells around it, too. A particle searches the tree where its cells
   list many leaves, where its radius is more than 4 times the mean (at most a quarter are such),
   and where particles before it have tested many leaves that they do not meet (NLIST_I_MISSED).

   A leaf is tested by the plane of its triangle, then by its box, as the tree does it. Leaves are
   taken by ascending place, so the rows are those of nlist_i_mesh_row. A triangle that precedes
   another one (>>walls) is no further from the particle. So it is among the leaves found, and needs
   no search of its own.
   ---------------------------------------------------------------------------------------------- */

enum {
    NLIST_I_CELL_LEAVES = 8,    /* leaves that all cells list: for each particle, about at most */
    NLIST_I_MOST_LINES = 16,    /* lines of cells of a particle */
    NLIST_I_MOST_LISTED = 128,  /* leaves that these list */
    NLIST_I_MISSED = 32,        /* boxes that it is tested with and misses: at most, in the mean */
    NLIST_I_MOST_MET = 32       /* leaves that the particle's search sphere meets */
};

/* A leaf near the particles, and the cells that list it. */
typedef struct nlist_i_near_leaf { int32_t place, low[3], high[3]; } nlist_i_near_leaf;

/* The plane of a triangle: points x with normal x = at. The largest number of the normal is 1, or
   all are 0. */
typedef struct nlist_i_plane {
    nlist_real normal[3], at;
    nlist_real square;          /* of the normal */
    nlist_real unsure;          /* what rounding adds to a distance from it, at most */
} nlist_i_plane;

typedef struct nlist_i_wall_cells {
    nlist_real low[3], high[3]; /* their box; particles elsewhere touch nothing */
    nlist_real per_length[3];   /* cells of a unit of length */
    int32_t along[3];           /* cells along each axis */
    nlist_real reach, out;      /* of most particles; and by how much boxes are larger for them */
    nlist_real most;            /* reach of a particle; a wider one searches the tree */
    nlist_real rounding;        /* of sums of coordinates, at most */
    nlist_i_near_leaf *leaf;    /* [leaves] */
    int32_t leaves;
    int32_t *start, *listed;    /* cell c lists the leaves listed[start[c]] .. */
    nlist_i_plane *plane;       /* [leaves] */
} nlist_i_wall_cells;

/* A little more than this reach, as a search adds, and another one around a point at it. */
static nlist_real nlist_i_beyond_rounding(const nlist_i_wall_cells *cells, nlist_real reach)
{
    return reach * (nlist_real)(1 + 1.0 / 512.0) + cells->rounding;
}

/* The box of the particles that own rows, and the reaches. */
static void nlist_i_survey_rows(const nlist_i_finder *finder, nlist_i_wall_cells *cells)
{
    const nlist_i_from_mesh *from = (const nlist_i_from_mesh *)finder->source;
    const nlist_desc *desc = &finder->list->desc;
    nlist_real corner[3], p[3];
    double sum = 0;
    int32_t i;
    int a;
    for (a = 0; a < 3; a++) cells->low[a] = NLIST_I_REAL_MAX, cells->high[a] = -NLIST_I_REAL_MAX;
    for (i = 0; i < finder->rows; i++) {
        nlist_i_load(finder->pos, finder->stride, 3, i, p);
        if (!nlist_i_point_finite(p)) continue; /* left out */
        sum += (double)nlist_i_radius(desc, i);
        for (a = 0; a < 3; a++) {
            if (p[a] < cells->low[a]) cells->low[a] = p[a];
            if (p[a] > cells->high[a]) cells->high[a] = p[a];
        }
    }
    for (a = 0; a < 3; a++)
        corner[a] = -cells->low[a] > cells->high[a] ? -cells->low[a] : cells->high[a];
    sum /= finder->rows;
    cells->rounding = 4 * nlist_i_search_radius(0, corner);
    cells->most = cells->reach = nlist_i_gap(desc) + finder->largest;
    if (4 * sum < (double)finder->largest) cells->most = nlist_i_gap(desc) + (nlist_real)(4 * sum);
    if (1.5 * sum < (double)finder->largest)
        cells->reach = nlist_i_gap(desc) + (nlist_real)(1.5 * sum);
    cells->out = nlist_i_beyond_rounding(cells, cells->reach + from->mesh.thickest);
}

/* Finds the leaves near the box of the particles, and shrinks it to where they can be reached.
   `mean`: the mean edges of their boxes. 0: more than two leaves a particle, or no memory. */
static int nlist_i_find_near_leaves(nlist_i_finder *finder, nlist_i_wall_cells *cells,
                                    nlist_real mean[3])
{
    const nlist_i_from_mesh *from = (const nlist_i_from_mesh *)finder->source;
    int64_t const enough = 2 * (int64_t)finder->rows;
    int64_t const most = from->tree->n < enough ? from->tree->n : enough;
    nlist_real const out = nlist_i_beyond_rounding(cells, cells->most + from->mesh.thickest);
    nlist_real low[3], high[3];
    lbvh_overlap o;
    int a;
    if (nlist_i_grow(finder->list, NLIST_I_WORK, most, sizeof *cells->leaf, 0) != NLIST_OK)
        return 0;
    cells->leaf = (nlist_i_near_leaf *)finder->list->block[NLIST_I_WORK].memory;
    cells->leaves = 0;
    for (a = 0; a < 3; a++) {
        low[a] = cells->low[a] - out;
        high[a] = cells->high[a] + out;
    }
    o = lbvh_overlap_between(from->tree, low, high);
    for (a = 0; a < 3; a++) low[a] = NLIST_I_REAL_MAX, high[a] = -NLIST_I_REAL_MAX, mean[a] = 0;
    while (lbvh_next(&o)) {
        const lbvh_node *box = nlist_i_leaf(from->tree, o.place);
        if (cells->leaves == most) return 0;
        cells->leaf[cells->leaves++].place = o.place;
        for (a = 0; a < 3; a++) {
            if (box->min[a] < low[a]) low[a] = box->min[a];
            if (box->max[a] > high[a]) high[a] = box->max[a];
            mean[a] += box->max[a] - box->min[a];
        }
    }
    for (a = 0; a < 3; a++) {
        if (low[a] - out > cells->low[a]) cells->low[a] = low[a] - out;
        if (high[a] + out < cells->high[a]) cells->high[a] = high[a] + out;
        if (cells->leaves > 0) mean[a] /= (nlist_real)cells->leaves;
    }
    return 1;
}

/* The cell of x along an axis: it never descends while x ascends. */
static inline int32_t nlist_i_cell_along(const nlist_i_wall_cells *cells, int a, nlist_real x)
{
    nlist_real const at = (x - cells->low[a]) * cells->per_length[a];
    if (!(at > 0)) return 0;
    return at < (nlist_real)cells->along[a] ? (int32_t)at : cells->along[a] - 1;
}

/* Cuts the box into cells->along cells along each axis, and finds the cells of each leaf. Returns
   their number, summed over the leaves. */
static int64_t nlist_i_cut_cells(const lbvh *tree, nlist_i_wall_cells *cells)
{
    int64_t all = 0;
    int32_t k;
    int a;
    for (a = 0; a < 3; a++) {
        nlist_real const length = cells->high[a] - cells->low[a];
        cells->per_length[a] = length > 0 ? (nlist_real)cells->along[a] / length : 0;
    }
    for (k = 0; k < cells->leaves; k++) {
        nlist_i_near_leaf *leaf = &cells->leaf[k];
        const lbvh_node *box = nlist_i_leaf(tree, leaf->place);
        int64_t covered = 1;
        for (a = 0; a < 3; a++) {
            leaf->low[a] = nlist_i_cell_along(cells, a, box->min[a] - cells->out);
            leaf->high[a] = nlist_i_cell_along(cells, a, box->max[a] + cells->out);
            covered *= leaf->high[a] - leaf->low[a] + 1;
        }
        all += covered;
    }
    return all;
}

/* Chooses the cells. They are halved along their longest edge, as long as they are wider than the
   reach, not too many, and a leaf of the mean size is not in too many of them. If the leaves as
   they are turn out to be in too many, cells are doubled again. Returns the number of cells;
   `*listed`: how many leaves they list, in all. */
static int32_t nlist_i_choose_cells(const nlist_i_finder *finder, nlist_i_wall_cells *cells,
                                    const nlist_real mean[3], int64_t *listed)
{
    const lbvh *tree = ((const nlist_i_from_mesh *)finder->source)->tree;
    double const room = (double)NLIST_I_CELL_LEAVES * finder->rows;
    nlist_real edge[3];
    int32_t count = 1;
    int a, axis;
    for (a = 0; a < 3; a++) {
        edge[a] = cells->high[a] - cells->low[a];
        cells->along[a] = 1;
    }
    for (;;) {
        double covered = cells->leaves;
        axis = edge[1] > edge[0] ? 1 : 0;
        if (edge[2] > edge[axis]) axis = 2;
        if (!(edge[axis] > cells->out) || 2 * count > finder->rows) break;
        edge[axis] /= 2;
        for (a = 0; a < 3; a++)
            if (cells->along[a] > 1 || a == axis)
                covered *= 1 + (double)(mean[a] + 2 * cells->out) / (double)edge[a];
        if (covered > room) break;
        cells->along[axis] *= 2;
        count *= 2;
    }
    for (;;) {
        *listed = nlist_i_cut_cells(tree, cells);
        if ((double)*listed <= 2 * room) return count;
        axis = cells->along[1] > cells->along[0] ? 1 : 0;
        if (cells->along[2] > cells->along[axis]) axis = 2;
        cells->along[axis] /= 2;
        count /= 2;
    }
}

static inline int32_t nlist_i_cell_at(const nlist_i_wall_cells *cells, int32_t x, int32_t y,
                                      int32_t z)
{
    return (z * cells->along[1] + y) * cells->along[0] + x;
}

static inline nlist_real nlist_i_absolute(nlist_real x) { return x < 0 ? -x : x; }

/* The plane of leaf k. The normal of a sliver is not exact enough: 0. Else each of its numbers is
   wrong by 2^-14 of the largest at most (float). */
static nlist_i_plane nlist_i_plane_of(const nlist_i_from_mesh *from,
                                      const nlist_i_wall_cells *cells, int32_t k)
{
    nlist_real const part = (nlist_real)(1.0 / 8192.0);
    const nlist_real *corner[3];
    nlist_real b[3], c[3], b2 = 0, c2 = 0, largest = 0;
    nlist_i_plane plane;
    int a;
    memset(&plane, 0, sizeof plane);
    nlist_mesh_corners(&from->mesh, nlist_i_leaf(from->tree, cells->leaf[k].place)->link, corner);
    for (a = 0; a < 3; a++) {
        b[a] = corner[1][a] - corner[0][a];
        c[a] = corner[2][a] - corner[0][a];
        b2 += b[a] * b[a];
        c2 += c[a] * c[a];
        plane.unsure += (nlist_i_absolute(b[a]) + nlist_i_absolute(c[a])) * part;
    }
    for (a = 0; a < 3; a++) {
        int const x = (a + 1) % 3, y = (a + 2) % 3;
        plane.normal[a] = b[x] * c[y] - b[y] * c[x];
        if (nlist_i_absolute(plane.normal[a]) > largest)
            largest = nlist_i_absolute(plane.normal[a]);
    }
    if (!(largest * largest > b2 * c2 / 4096) || !nlist_i_finite(largest * largest) ||
        !(largest * largest > NLIST_I_REAL_MIN)) largest = (nlist_real)INFINITY;
    for (a = 0; a < 3; a++) {
        plane.normal[a] = nlist_i_finite(largest) ? plane.normal[a] / largest : 0;
        plane.at += plane.normal[a] * corner[0][a];
        plane.square += plane.normal[a] * plane.normal[a];
    }
    plane.unsure += cells->rounding;
    return plane;
}

/* Memory for the cells, behind the leaves. 0: none. */
static int nlist_i_take_cells(nlist *list, nlist_i_wall_cells *cells, int64_t count, int64_t listed)
{
    size_t const leaves = (size_t)cells->leaves,
                 align = sizeof(nlist_real) / sizeof(int32_t),
                 used = leaves * (sizeof *cells->leaf / sizeof(int32_t)),
                 plane = (used + align - 1) / align * align,
                 start = plane + leaves * (sizeof *cells->plane / sizeof(int32_t));
    int32_t *memory;
    if (nlist_i_grow(list, NLIST_I_WORK, (int64_t)start + count + 2 + listed, sizeof(int32_t),
                     used * sizeof(int32_t)) != NLIST_OK)
        return 0;
    memory = (int32_t *)list->block[NLIST_I_WORK].memory;
    cells->leaf = (nlist_i_near_leaf *)(void *)memory;
    cells->plane = (nlist_i_plane *)(void *)(memory + plane);
    cells->start = memory + start;
    cells->listed = cells->start + count + 2;
    memset(cells->start, 0, ((size_t)count + 2) * sizeof *cells->start);
    return 1;
}

/* Lists the leaves in their cells: a counting sort. (start[c + 2] counts cell c, and start[c + 1]
   is where its next leaf goes.) 0: no memory. */
static int nlist_i_fill_cells(nlist_i_finder *finder, nlist_i_wall_cells *cells,
                              const nlist_real mean[3])
{
    int64_t listed;
    int32_t const count = nlist_i_choose_cells(finder, cells, mean, &listed);
    int32_t k, x, y, z, pass;
    if (!nlist_i_take_cells(finder->list, cells, count, listed)) return 0;
    for (k = 0; k < cells->leaves; k++)
        cells->plane[k] = nlist_i_plane_of((const nlist_i_from_mesh *)finder->source, cells, k);
    for (pass = 0; pass < 2; pass++) {
        for (k = 0; k < cells->leaves; k++) {
            const nlist_i_near_leaf *leaf = &cells->leaf[k];
            for (z = leaf->low[2]; z <= leaf->high[2]; z++)
                for (y = leaf->low[1]; y <= leaf->high[1]; y++)
                    for (x = leaf->low[0]; x <= leaf->high[0]; x++) {
                        int32_t *const at = cells->start + nlist_i_cell_at(cells, x, y, z);
                        if (pass == 0) at[2]++;
                        else cells->listed[at[1]++] = k;
                    }
        }
        for (k = 2; pass == 0 && k < count + 2; k++) cells->start[k] += cells->start[k - 1];
    }
    return 1;
}

/* The leaves that a search finds: their numbers ascend, each once. */
typedef struct nlist_i_leaves_met {
    nlist_i_ball ball;
    int32_t leaf[NLIST_I_MOST_MET], leaves;
    int32_t spare;              /* boxes that may still be missed */
} nlist_i_leaves_met;

/* Adds those leaves of adjacent cells that meet the sphere of the search. 0: they are too many, or
   too many others are tested. */
static inline int nlist_i_meet_leaves(const nlist_i_wall_cells *cells, const lbvh_overlap *o,
                                      nlist_real away, int32_t first, int32_t end,
                                      nlist_i_leaves_met *met)
{
    const nlist_real *p = o->min;
    int32_t k, j, m;
    for (k = first; k < end; k++) {
        int32_t const l = cells->listed[k];
        const nlist_i_plane *plane = &cells->plane[l];
        nlist_real const height = plane->normal[0] * p[0] + plane->normal[1] * p[1] +
                                  plane->normal[2] * p[2] - plane->at,
                         most = away + plane->unsure;
        if (height * height > most * most * plane->square) continue;
        if (!lbvh_i_meets(o, nlist_i_leaf(o->tree, cells->leaf[l].place))) {
            if (--met->spare < 0) return 0;
            continue;
        }
        for (j = met->leaves; j > 0 && met->leaf[j - 1] >= l; j--) {}
        if (j < met->leaves && met->leaf[j] == l) continue;
        if (met->leaves == NLIST_I_MOST_MET) return 0;
        for (m = met->leaves++; m > j; m--) met->leaf[m] = met->leaf[m - 1];
        met->leaf[j] = l;
    }
    return 1;
}

/* The row of particle i by its cells. 0: a search of the tree is as fast, or faster. */
static inline int nlist_i_cells_row(nlist_i_finder *finder, const nlist_i_wall_cells *cells,
                                    int32_t i, const nlist_real p[3], nlist_i_leaves_met *met)
{
    const nlist_i_from_mesh *from = (const nlist_i_from_mesh *)finder->source;
    const nlist_desc *desc = &finder->list->desc;
    nlist_real const reach = nlist_i_gap(desc) + nlist_i_radius(desc, i);
    nlist_real const more = reach > cells->reach
        ? nlist_i_beyond_rounding(cells, reach - cells->reach) : 0;
    int32_t low[3], high[3], first[NLIST_I_MOST_LINES], end[NLIST_I_MOST_LINES];
    int32_t lines = 0, all = 0, y, z;
    lbvh_overlap o;
    nlist_real away;
    int a;
    met->leaves = 0;
    met->spare += NLIST_I_MISSED;
    if (!(reach <= cells->most)) return 0;
    for (a = 0; a < 3; a++) {
        if (!(p[a] >= cells->low[a] && p[a] <= cells->high[a])) return 1;
        low[a] = nlist_i_cell_along(cells, a, p[a] - more);
        high[a] = reach > cells->reach ? nlist_i_cell_along(cells, a, p[a] + more) : low[a];
    }
    if (((int64_t)high[1] - low[1] + 1) * (high[2] - low[2] + 1) > NLIST_I_MOST_LINES) return 0;
    for (z = low[2]; z <= high[2]; z++) {
        for (y = low[1]; y <= high[1]; y++) {
            first[lines] = cells->start[nlist_i_cell_at(cells, low[0], y, z)];
            end[lines] = cells->start[nlist_i_cell_at(cells, high[0], y, z) + 1];
            all += end[lines] - first[lines];
            if (all > NLIST_I_MOST_LISTED) return 0;
            lines += end[lines] > first[lines];
        }
    }
    if (lines == 0) return 1;
    o = nlist_i_walls_near(from->tree, &from->mesh, desc, i, p, &met->ball);
    away = nlist_i_search_radius(reach + from->mesh.thickest, p) * (nlist_real)(1 + 1.0 / 8192.0);
    for (y = 0; y < lines; y++)
        if (!nlist_i_meet_leaves(cells, &o, away, first[y], end[y], met)) return 0;
    return 1;
}

/* Appends those that nlist_i_wall_key lists. */
static nlist_result nlist_i_append_walls(nlist_i_finder *finder, const nlist_i_wall_cells *cells,
                                         const nlist_i_leaves_met *met)
{
    const nlist_i_from_mesh *from = (const nlist_i_from_mesh *)finder->source;
    const nlist_mesh *mesh = &from->mesh;
    int const skin = finder->list->desc.skin > 0;
    const nlist_i_ball *ball = &met->ball;
    nlist_i_wall wall[NLIST_I_MOST_MET];
    int32_t walls = 0, k, t, u;
    for (k = 0; k < met->leaves; k++) {
        int32_t const id = nlist_i_leaf(from->tree, cells->leaf[met->leaf[k]].place)->link;
        if (!mesh->masks || (mesh->masks[id] & ball->mask))
            wall[walls++] = nlist_i_wall_of(mesh, ball, id);
    }
    for (t = 0; t < walls; t++) {
        nlist_real const reach = ball->reach + wall[t].thickness;
        nlist_result result;
        if (!(wall[t].d2 <= nlist_i_times(reach, reach))) continue;
        for (u = 0; u < walls && !skin; u++)
            if (u != t && nlist_i_precedes(mesh, ball, wall[t].s, &wall[u], &wall[t])) break;
        if (u < walls && !skin) continue;
        result = nlist_i_append(finder, nlist_key(wall[t].triangle, skin ? 0 : wall[t].feature));
        if (result != NLIST_OK) return result;
    }
    return NLIST_OK;
}

/* nlist_i_collect_mesh. */
static int nlist_i_mesh_faster(nlist_i_finder *finder, nlist_result *result)
{
    const nlist_i_from_mesh *from = (const nlist_i_from_mesh *)finder->source;
    nlist_i_wall_cells cells;
    nlist_i_leaves_met met;
    nlist_real mean[3], p[3];
    int32_t i;
    if (finder->rows < 64 || finder->rows > 1 << 26 || from->tree->mask) return 0;
    nlist_i_survey_rows(finder, &cells);
    if (!nlist_i_find_near_leaves(finder, &cells, mean)) return 0;
    if (!nlist_i_fill_cells(finder, &cells, mean)) return 0;
    met.spare = 0;
    for (i = 0, *result = NLIST_OK; i < finder->rows && *result == NLIST_OK; i++) {
        nlist_i_load(finder->pos, finder->stride, 3, i, p);
        if (!nlist_i_cells_row(finder, &cells, i, p, &met)) {
            *result = nlist_i_mesh_row(finder, i);
            continue;
        }
        nlist_i_begin_row(finder, i);
        if (met.leaves > 0) *result = nlist_i_append_walls(finder, &cells, &met);
        nlist_i_end_row(finder);
    }
    return 1;
}
#endif /* NLIST_I_LBVH */

#endif /* NLIST_PLAIN */

/* ----------------------------------------------------------------------------------------------
   >>save: lists as bytes, with a checksum
   ---------------------------------------------------------------------------------------------- */

#define NLIST_I_FILE_VERSION 3          /* 1, of 0.1.0, had no count of triangles and no empty
                                           lists; 2 no states */

/* The header of a file: 136 bytes. Counts, partners, history, uids and reference positions
   follow. */
typedef struct nlist_i_header {
    char magic[8];              /* "nlist\n\x1a" */
    uint32_t version, real;     /* bytes of a real; both also tell the byte order */
    int32_t n, dim, half, keys, history, has_uid;
    int32_t has_reference;      /* 1: reference positions; 2: states */
    int32_t periodic, triangles, rows;
    int64_t total, next_uid;
    double min[3], max[3], skin;
    uint64_t sum;               /* checksum of this with sum = 0, and of all that follows */
} nlist_i_header;

/* Goes on with a checksum (FNV-1a: Fowler, Noll, Vo), which begins with 0xCBF29CE484222325. */
static uint64_t nlist_i_checksum(uint64_t sum, const void *bytes, size_t size)
{
    const unsigned char *at = (const unsigned char *)bytes;
    size_t i;
    for (i = 0; i < size; i++) sum = (sum ^ at[i]) * 0x100000001B3ull;
    return sum;
}

/* The checksum of a whole file: its header, with 0 for the checksum, and what follows. */
static uint64_t nlist_i_file_checksum(const nlist_i_header *header, const unsigned char *file,
                                      int64_t size)
{
    nlist_i_header blank = *header;
    uint64_t sum;
    blank.sum = 0;
    sum = nlist_i_checksum(14695981039346656037u, &blank, sizeof blank);
    return nlist_i_checksum(sum, file + sizeof blank, (size_t)size - sizeof blank);
}

/* The header of the file of a list; its checksum is still 0. */
static nlist_i_header nlist_i_header_of(const nlist *list)
{
    const nlist_rows *rows = nlist_i_rows(list);
    nlist_i_header header;
    int a;
    memset(&header, 0, sizeof header);
    memcpy(header.magic, "nlist\n\x1a", 8);
    header.version = NLIST_I_FILE_VERSION;
    header.real = (uint32_t)sizeof(nlist_real);
    header.n = list->n;
    header.dim = list->desc.dim;
    header.half = list->desc.half != 0;
    header.keys = list->keys;
    header.triangles = list->triangles;
    header.rows = list->row_count;
    header.history = list->desc.history;
    header.has_uid = rows->uid != NULL;
    header.has_reference = (list->desc.skin > 0) | (rows->state ? 2 : 0);
    header.total = list->total;
    header.next_uid = list->next_uid;
    header.skin = (double)list->desc.skin;
    for (a = 0; a < 3; a++) {
        header.periodic |= list->axis[a].periodic << a;
        header.min[a] = (double)list->axis[a].min;
        header.max[a] = (double)list->axis[a].max;
    }
    return header;
}

/* Size of a file with this header in bytes, -1 = too large. */
static int64_t nlist_i_file_size(const nlist_i_header *header)
{
    int64_t const n = header->n,
                  entry = 4 + (int64_t)header->history + (header->has_reference >> 1);
    int64_t const particle = 8 * (int64_t)(header->has_uid != 0) +
                             header->dim * (int64_t)header->real * (header->has_reference & 1);
    if (header->total > (INT64_MAX >> 1) / entry) return -1;
    return (int64_t)sizeof *header + 4 * (int64_t)header->rows + n * particle +
           header->total * entry;
}

/* Copies bytes to a file. Returns where the next go. */
static unsigned char *nlist_i_write(unsigned char *to, const void *from, size_t size)
{
    if (size > 0) memcpy(to, from, size);
    return to + size;
}

/* Partners, then the bytes of the same entries, row by row. */
static unsigned char *nlist_i_write_entries(unsigned char *to, const nlist *list,
                                            const nlist_rows *rows)
{
    int32_t const bytes = list->desc.history;
    int32_t i;
    int pass;
    for (pass = 0; pass < (bytes > 0 ? 2 : 1); pass++) {
        for (i = 0; i < list->n; i++) {
            nlist_each e = nlist_i_row(rows, bytes, i);
            while (nlist_next(&e))
                to = pass == 0 ? nlist_i_write(to, &e.id, sizeof e.id)
                               : nlist_i_write(to, e.history, (size_t)bytes);
        }
    }
    return to;
}

NLIST_API nlist_result nlist_save(const nlist *list, void *bytes, int64_t capacity, int64_t *needed)
{
    unsigned char *to = (unsigned char *)bytes;
    const nlist_rows *rows;
    nlist_i_header header;
    size_t n;
    int32_t i;
    if (!list || !needed || capacity < 0 || (capacity > 0 && !bytes)) return NLIST_BAD_ARGUMENT;
    if (!list->built) return NLIST_NOT_BUILT;
    if (list->boxed) return NLIST_BAD_OPTION;
    rows = nlist_i_rows(list);
    header = nlist_i_header_of(list);
    *needed = nlist_i_file_size(&header);
    if (*needed < 0) return NLIST_TOO_MANY;
    if (*needed > capacity) return NLIST_BUFFER_TOO_SMALL;
    n = (size_t)list->n;
    to = nlist_i_write(to + sizeof header, rows->count, (size_t)list->row_count * sizeof(int32_t));
    to = nlist_i_write_entries(to, list, rows);
    if (rows->uid) to = nlist_i_write(to, rows->uid, n * sizeof(int64_t));
    if (header.has_reference & 1)
        to = nlist_i_write(to, rows->reference, n * (size_t)header.dim * sizeof(nlist_real));
    for (i = 0; rows->state && i < list->row_count; i++) {
        nlist_each e = nlist_i_row(rows, 0, i);
        while (nlist_next(&e)) to = nlist_i_write(to, rows->state + e.entry, 1);
    }
    header.sum = nlist_i_file_checksum(&header, (const unsigned char *)bytes, *needed);
    memcpy(bytes, &header, sizeof header);
    return NLIST_OK;
}

/* 1 if the ends of an axis are as nlist_i_header_of writes them: numbers that are exactly reals, 0
   on axes that do not repeat. */
static int nlist_i_file_axis_valid(int periodic, double min, double max)
{
    double const most = (double)NLIST_I_REAL_MAX;
    if (!periodic) return min == 0 && max == 0;
    if (!(min >= -most && min < max && max <= most)) return 0;
    return (double)(nlist_real)min == min && (double)(nlist_real)max == max &&
           nlist_i_finite((nlist_real)max - (nlist_real)min);
}

/* 1 if the counts and sizes of a file are in range. */
static int nlist_i_header_counts_valid(const nlist_i_header *header)
{
    if (header->n < 0 || header->n > NLIST_I_INT_MAX || header->total < 0 ||
        (header->dim != 2 && header->dim != 3))
        return 0;
    if (header->triangles < 0 || header->triangles > NLIST_I_TRIANGLES || header->rows < 0 ||
        header->rows > header->n)
        return 0;
    if (header->history < 0 || header->history > 4096 || header->next_uid < 0 ||
        header->next_uid > INT64_MAX >> 1)
        return 0;
    return header->periodic >= 0 && header->periodic <= 7;
}

/* 1 if the fields of a header are consistent. */
static int nlist_i_header_consistent(const nlist_i_header *header)
{
    if ((header->keys | header->half | header->has_uid | header->has_reference >> 1) & ~1) return 0;
    if (header->periodic >> header->dim != 0) return 0;
    if (!header->has_uid && header->next_uid < header->n) return 0;
    if (!header->keys) return header->triangles == 0;
    return !header->half && !header->has_uid && !header->periodic && header->dim == 3;
}

/* 1 if this is the header of a complete, undamaged file. */
static int nlist_i_header_valid(nlist_i_header *header, const unsigned char *bytes, int64_t size)
{
    int a;
    if (size < (int64_t)sizeof *header) return 0;
    memcpy(header, bytes, sizeof *header);
    if (memcmp(header->magic, "nlist\n\x1a", 8) != 0) return 0;
    if (header->version != NLIST_I_FILE_VERSION || header->real != sizeof(nlist_real)) return 0;
    if (!nlist_i_header_counts_valid(header) || !nlist_i_header_consistent(header) ||
        nlist_i_file_size(header) != size)
        return 0;
    for (a = 0; a < 3; a++)
        if (!nlist_i_file_axis_valid(header->periodic >> a & 1, header->min[a], header->max[a]))
            return 0;
    return nlist_i_file_checksum(header, bytes, size) == header->sum;
}

/* Sifts v[at] down to its place in the binary heap v[0] .. v[count - 1]. */
static void nlist_i_sift(uint64_t *v, int64_t at, int64_t count)
{
    uint64_t const moving = v[at];
    int64_t child;
    for (; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && v[child + 1] > v[child]) child++;
        if (v[child] <= moving) break;
        v[at] = v[child];
    }
    v[at] = moving;
}

/* 1 if all are different. Heapsort, in place: rows of an untrusted file may be long, and comparing
   all pairs would be quadratic. */
static int nlist_i_all_differ(uint64_t *v, int64_t count)
{
    int64_t k;
    for (k = count / 2; k > 0; k--) nlist_i_sift(v, k - 1, count);
    for (k = count - 1; k > 0; k--) {
        uint64_t const largest = v[0];
        v[0] = v[k];
        v[k] = largest;
        nlist_i_sift(v, 0, k);
    }
    for (k = 1; k < count; k++) if (v[k] == v[k - 1]) return 0;
    return 1;
}

/* A file as a source. */
typedef struct nlist_i_from_file {
    const nlist_i_header *header;
    const unsigned char *bytes; /* after the header */
} nlist_i_from_file;

/* The uid of particle i in a file. */
static int64_t nlist_i_file_uid(const nlist_i_finder *finder, int32_t i)
{
    const nlist_i_from_file *from = (const nlist_i_from_file *)finder->source;
    const nlist_i_header *header = from->header;
    size_t const before = (size_t)header->rows * sizeof(int32_t) +
                          (size_t)header->total * (sizeof(int32_t) + (size_t)header->history);
    int64_t uid;
    memcpy(&uid, from->bytes + before + (size_t)i * sizeof uid, sizeof uid);
    return uid;
}

/* No partner twice, no particle with itself, and a half list has a pair in one row only, that of
   the lower uid. */
static nlist_result nlist_i_check_file_pairs(nlist_i_finder *finder)
{
    const nlist_i_header *header = ((const nlist_i_from_file *)finder->source)->header;
    nlist_result const result = nlist_i_grow(finder->list, NLIST_I_WORK, header->total,
                                             sizeof(uint64_t), 0);
    uint64_t *const pair = (uint64_t *)finder->list->block[NLIST_I_WORK].memory;
    int64_t k = 0;
    int32_t i;
    if (result != NLIST_OK) return result;
    for (i = 0; i < finder->rows; i++) {
        int64_t const end = finder->begin[i] + finder->length[i];
        for (; k < end; k++) {
            int32_t const j = finder->found[k];
            if (!header->keys && j == i) return NLIST_BAD_FILE;
            if (header->half && header->has_uid &&
                nlist_i_file_uid(finder, i) >= nlist_i_file_uid(finder, j))
                return NLIST_BAD_FILE;
            pair[k] = header->half && j < i ? (uint64_t)j << 32 | (uint64_t)i
                                          : (uint64_t)i << 32 | (uint64_t)j;
        }
    }
    return nlist_i_all_differ(pair, header->total) ? NLIST_OK : NLIST_BAD_FILE;
}

/* Uids must be unique and below next_uid. */
static nlist_result nlist_i_check_file_uids(nlist_i_finder *finder)
{
    const nlist_i_header *header = ((const nlist_i_from_file *)finder->source)->header;
    nlist_result const result = nlist_i_grow(finder->list, NLIST_I_WORK, finder->n,
                                             sizeof(uint64_t), 0);
    uint64_t *const uid = (uint64_t *)finder->list->block[NLIST_I_WORK].memory;
    int32_t i;
    if (result != NLIST_OK) return result;
    for (i = 0; i < finder->n; i++) {
        int64_t const is = nlist_i_file_uid(finder, i), local = nlist_i_uid(is, 0, 1);
        if (local >= header->next_uid || nlist_i_uid(local, i, finder->rows) != is)
            return NLIST_BAD_FILE;
        uid[i] = (uint64_t)local;
    }
    return nlist_i_all_differ(uid, finder->n) ? NLIST_OK : NLIST_BAD_FILE;
}

/* Reads the rows of a file: counts must add up, partners must exist. */
static nlist_result nlist_i_collect_file(nlist_i_finder *finder)
{
    const nlist_i_header *header = ((const nlist_i_from_file *)finder->source)->header;
    const unsigned char *at = ((const nlist_i_from_file *)finder->source)->bytes;
    int32_t const limit = nlist_i_id_limit(header->keys, header->triangles, header->n);
    nlist_result result = nlist_i_take_found(finder, header->total);
    int64_t k;
    int32_t i;
    if (result != NLIST_OK) return result;
    for (i = 0; i < finder->rows; i++) {
        finder->begin[i] = finder->used;
        memcpy(&finder->length[i], at + (size_t)i * sizeof(int32_t), sizeof(int32_t));
        if (finder->length[i] < 0 || finder->length[i] > header->total - finder->used)
            return NLIST_BAD_FILE;
        finder->used += finder->length[i];
    }
    if (finder->used != header->total) return NLIST_BAD_FILE;
    if (header->total > 0)
        memcpy(finder->found, at + (size_t)finder->rows * sizeof(int32_t),
               (size_t)header->total * sizeof(int32_t));
    for (k = 0; k < header->total; k++) {
        int32_t const id = finder->found[k];
        if (id < 0 || id >= limit || (header->keys && nlist_key_feature(id) > 6))
            return NLIST_BAD_FILE;
    }
    result = nlist_i_check_file_pairs(finder);
    return result == NLIST_OK && header->has_uid ? nlist_i_check_file_uids(finder) : result;
}

/* Reads history, uids and reference positions of a file into rows that are laid out. */
static void nlist_i_read_rest(const nlist *list, const nlist_i_header *header,
                              const unsigned char *at, nlist_rows *rows)
{
    size_t const n = (size_t)header->n, bytes = (size_t)header->history,
                 total = (size_t)header->total;
    int32_t i;
    at += (size_t)header->rows * sizeof(int32_t) + total * sizeof(int32_t);
    if (rows->history) {
        for (i = 0; i < header->rows; i++) {
            nlist_each e = nlist_i_row(rows, list->desc.history, i);
            for (; nlist_next(&e); at += bytes) memcpy(e.history, at, bytes);
        }
    } else {
        at += total * bytes;
    }
    if (header->has_uid && rows->uid) memcpy(rows->uid, at, n * sizeof(int64_t));
    if (header->has_uid) at += n * sizeof(int64_t);
    if (rows->reference) memcpy(rows->reference, at, n * (size_t)header->dim * sizeof(nlist_real));
    if (header->has_reference & 1) at += n * (size_t)header->dim * sizeof(nlist_real);
    for (i = 0; rows->state && i < header->rows; i++) {
        nlist_each e = nlist_i_row(rows, 0, i);
        while (nlist_next(&e))
            rows->state[e.entry] = header->has_reference & 2 ? *at++ & 7 : 0;
    }
}

/* Takes over desc, with the fields that the file determines. */
static nlist_result nlist_i_load_begin(nlist *list, const nlist_desc *desc,
                                       const nlist_i_header *header, nlist *before)
{
    nlist_desc resolved = header->keys ? nlist_i_mesh_desc(desc) : *desc;
    nlist empty = *list;
    nlist_result result;
    int a;
    if (header->keys && resolved.layout != NLIST_DYNAMIC) return NLIST_BAD_OPTION;
    if (desc->history != 0 && desc->history != header->history) return NLIST_BAD_HISTORY;
    if (desc->dim != 0 && desc->dim != header->dim) return NLIST_BAD_DIM;
    if (desc->skin > 0 && (!(header->has_reference & 1) || !((double)desc->skin <= header->skin)))
        return NLIST_BAD_SKIN;
    resolved.history = header->history;
    resolved.dim = header->dim;
    resolved.half = header->half;
    for (a = 0; a < 3; a++) {
        resolved.periodic[a] = header->periodic >> a & 1;
        resolved.min[a] = (nlist_real)header->min[a];
        resolved.max[a] = (nlist_real)header->max[a];
    }
    if (!(header->has_reference & 1)) resolved.skin = 0;
    empty.n = 0; /* the old list does not restrict the new one */
    result = nlist_i_begin(&empty, &resolved, header->keys, before);
    *before = *list;
    if (result == NLIST_OK) *list = empty;
    return result;
}

NLIST_API nlist_result nlist_load(nlist *list, const nlist_desc *desc, const void *bytes,
                                  int64_t size)
{
    nlist_i_finder finder;
    nlist_i_from_file from;
    nlist_i_header header;
    nlist before;
    nlist_result result;
    if (!list || !desc || !bytes || size < 0) return NLIST_BAD_ARGUMENT;
    if (!nlist_i_header_valid(&header, (const unsigned char *)bytes, size)) return NLIST_BAD_FILE;
    result = nlist_i_load_begin(list, desc, &header, &before);
    if (result != NLIST_OK) return result;
    finder = nlist_i_finder_of(list, header.n);
    finder.rows = header.rows;
    from.header = &header;
    from.bytes = (const unsigned char *)bytes + sizeof header;
    finder.source = &from;
    list->current = 1 - list->current; /* beside the old rows, until all is read */
    finder.to = list->current;
    result = nlist_i_reserve_found(&finder);
    if (result == NLIST_OK) result = nlist_i_collect_file(&finder);
    if (result == NLIST_OK) result = nlist_i_check_sizes(&finder);
    if (result == NLIST_OK) result = nlist_i_reserve_rows(&finder, header.has_uid);
    if (result == NLIST_OK) {
        nlist_i_lay_out(&finder, &list->rows[finder.to], 0, finder.rows, 0);
        nlist_i_read_rest(list, &header, from.bytes, &list->rows[finder.to]);
        memset(list->event_count, 0, sizeof list->event_count);
        list->triangles = header.triangles;
        nlist_i_take_over(&finder, header.next_uid);
    }
    return nlist_i_end_build(list, &before, result);
}

/* ----------------------------------------------------------------------------------------------
   >>reserve: memory ahead of builds
   ---------------------------------------------------------------------------------------------- */

/* Memory of a build of n particles that finds `found` entries: work space and events. */
static nlist_result nlist_i_reserve_work(nlist *list, int32_t n, int64_t found)
{
    int kind;
    nlist_result result =
        nlist_i_grow(list, NLIST_I_BEGIN, (int64_t)n + 1, sizeof(int64_t) + sizeof(int32_t), 0);
    if (result == NLIST_OK) result = nlist_i_grow(list, NLIST_I_FOUND, found, sizeof(int32_t), 0);
    if (result == NLIST_OK && list->desc.half) /* nlist_i_find_halves */
        result = nlist_i_grow(list, NLIST_I_WORK, found + n, sizeof(int32_t), 0);
    if (!list->desc.events) return result;
    for (kind = 0; kind < NLIST_EVENT_KINDS && result == NLIST_OK; kind++)
        result = nlist_i_grow(list, NLIST_I_EVENT + kind, found, sizeof(nlist_event), 0);
    return result;
}

/* Memory of the generations, for n rows with `entries` entries in partner. */
static nlist_result nlist_i_reserve_generations(nlist *list, int32_t n, int64_t entries)
{
    nlist_result result = nlist_i_reserve_generation(list, 0, n, n, entries, 0);
    if (result == NLIST_OK && nlist_i_keeps_two(&list->desc))
        result = nlist_i_reserve_generation(list, 1, n, n, entries, 0);
    return result;
}

/* The list is empty and not built; its memory is kept. */
static void nlist_i_empty(nlist *list)
{
    memset(list->rows, 0, sizeof list->rows);
    memset(list->event_count, 0, sizeof list->event_count);
    list->row_count = list->built = list->current = 0;
    list->total = list->next_uid = 0;
}

NLIST_API nlist_result nlist_reserve(nlist *list, const nlist_desc *desc, int32_t n,
                                     int64_t entries)
{
    nlist before;
    nlist_result result;
    int64_t slots;
    int32_t had, rows;
    if (!list || n < 0 || entries < 0) return NLIST_BAD_ARGUMENT;
    if (n > NLIST_I_INT_MAX) return NLIST_TOO_MANY;
    if (desc && nlist_i_set_rows(desc, n, &rows) != NLIST_OK) return NLIST_BAD_ROWS;
    had = list->n;
    list->n = 0; /* so that every field may change */
    result = nlist_i_begin(list, desc, list->keys, &before);
    list->n = result == NLIST_OK ? 0 : had;
    if (result != NLIST_OK) return nlist_i_forget_borrowed(list, result);
    list->exact = 1;
    slots = nlist_i_has_slots(&list->desc) ? (int64_t)n * list->desc.width : 0;
    if (nlist_i_has_rest(&list->desc) && entries > NLIST_I_INT_MAX) result = NLIST_TOO_MANY;
    if (result == NLIST_OK)
        result = nlist_i_reserve_work(list, n, entries > INT64_MAX / 2 ? -1 : entries + slots);
    if (result == NLIST_OK) result = nlist_i_reserve_generations(list, n, entries);
    list->exact = 0;
    nlist_i_empty(list);
    return nlist_i_forget_borrowed(list, result);
}

/* ----------------------------------------------------------------------------------------------
   >>validate: what must hold in a list, and a comparison with brute force
   ---------------------------------------------------------------------------------------------- */

/* Row i's slots: its partners first, then -1. */
static int nlist_i_slots_valid(const nlist_rows *rows, int32_t i, int32_t limit)
{
    int32_t k;
    for (k = 0; k < rows->width; k++) {
        int32_t const id = rows->slot[(int64_t)i * rows->width + k];
        if (k < rows->count[i] ? id < 0 || id >= limit : id != -1) return 0;
    }
    return 1;
}

/* Row i's chain: as long as the part of the row beyond the slots, every entry its own and visited
   once. */
static int nlist_i_chain_valid(const nlist_rows *rows, int32_t i, int32_t limit, unsigned char *met)
{
    int64_t left = rows->count[i] > rows->width ? rows->count[i] - rows->width : 0;
    int32_t e = rows->head[i];
    for (; left > 0; left--) {
        if (e < 0 || e >= rows->entries || met[e] || rows->own[e] != i) return 0;
        if (rows->partner[e] < 0 || rows->partner[e] >= limit) return 0;
        met[e] = 1;
        e = rows->link[e];
    }
    return e == -1;
}

/* Row i of COMPACT: as long as count says, with partners that exist. */
static int nlist_i_compact_valid(const nlist_rows *rows, int32_t i, int32_t limit)
{
    int64_t e;
    if (rows->start[i] < 0 || rows->start[i + 1] < rows->start[i] ||
        rows->start[i + 1] > rows->entries)
        return 0;
    if (rows->start[i + 1] - rows->start[i] != rows->count[i]) return 0;
    for (e = rows->start[i]; e < rows->start[i + 1]; e++)
        if (rows->partner[e] < 0 || rows->partner[e] >= limit) return 0;
    return 1;
}

/* Touched rows: those with entries, each once. */
static int nlist_i_touched_valid(const nlist_rows *rows, unsigned char *met)
{
    int32_t t, i, with = 0;
    if (rows->touched_count < 0 || rows->touched_count > rows->n) return 0;
    memset(met, 0, (size_t)rows->n);
    for (t = 0; t < rows->touched_count; t++) {
        i = rows->touched[t];
        if (i < 0 || i >= rows->n || met[i] || rows->count[i] == 0) return 0;
        met[i] = 1;
    }
    for (i = 0; i < rows->n; i++) with += rows->count[i] > 0;
    return with == rows->touched_count;
}

/* 1 if a particle may be its own partner by this entry: an image of itself. */
static int nlist_i_own_image_valid(const nlist *list, const nlist_each *e)
{
    if (!list->boxed || !e->shift) return list->boxed;
    return list->desc.half ? nlist_i_positive(e->shift)
                           : (e->shift[0] | e->shift[1] | e->shift[2]) != 0;
}

/* No partner twice, no particle with itself, and a half list has a pair in one row only. */
static int nlist_i_partners_valid(const nlist *list, const nlist_rows *rows, int32_t i)
{
    nlist_each e = nlist_i_row(rows, 0, i);
    while (nlist_next(&e)) {
        nlist_each other = e;
        while (nlist_next(&other))
            if (other.id == e.id && (e.shift ? nlist_i_same_image(e.shift, other.shift)
                                             : !list->boxed))
                return 0;
        if (list->keys && nlist_key_feature(e.id) > 6) return 0;
        if (list->keys || (e.id == i && nlist_i_own_image_valid(list, &e))) continue;
        if (e.id == i) return 0;
        if (list->desc.half && rows->uid && rows->uid[i] >= rows->uid[e.id]) return 0;
        if (list->desc.half && nlist_find(list, e.id, i) >= 0) return 0;
    }
    return 1;
}

/* All rows, and what they add up to. */
static int nlist_i_rows_valid(const nlist *list, const nlist_rows *rows, unsigned char *met)
{
    int32_t const limit = nlist_i_id_limit(list->keys, list->triangles, list->n);
    int const has_partners = !rows->slot || rows->head;
    int64_t total = 0, beyond = 0;
    int32_t i;
    for (i = 0; i < rows->n; i++) {
        if (rows->count[i] < 0) return 0;
        if (rows->slot && !nlist_i_slots_valid(rows, i, limit)) return 0;
        if (rows->slot && !rows->head && rows->count[i] > rows->width) return 0;
        if (rows->start && !nlist_i_compact_valid(rows, i, limit)) return 0;
        if (rows->head && !nlist_i_chain_valid(rows, i, limit, met)) return 0;
        total += rows->count[i];
        beyond += rows->count[i] > rows->width ? rows->count[i] - rows->width : 0;
    }
    if (total != list->total || (has_partners && beyond != rows->entries)) return 0;
    if (rows->start && (rows->start[0] != 0 || rows->start[rows->n] != rows->entries)) return 0;
    if (rows->touched && !nlist_i_touched_valid(rows, met)) return 0;
    for (i = 0; i < rows->n; i++) if (!nlist_i_partners_valid(list, rows, i)) return 0;
    return 1;
}

NLIST_API nlist_result nlist_validate(const nlist *list)
{
    const nlist_rows *rows;
    nlist_block met;
    nlist_result result;
    if (!list) return NLIST_BAD_ARGUMENT;
    if (!list->built) return NLIST_NOT_BUILT;
    if (list->n == 0) return NLIST_OK;
    if (list->current != 0 && list->current != 1) return NLIST_INVALID;
    rows = nlist_i_rows(list);
    if (list->row_count < 0 || list->row_count > list->n) return NLIST_INVALID;
    if (rows->n != list->row_count || rows->entries < 0 || rows->entries > rows->capacity ||
        (rows->n > 0 && !rows->count))
        return NLIST_INVALID;
    met.bytes = (size_t)(rows->entries > list->n ? rows->entries : list->n);
    met.memory = nlist_i_alloc(&list->desc.allocator, met.bytes);
    if (!met.memory) return NLIST_OUT_OF_MEMORY;
    memset(met.memory, 0, met.bytes);
    result = nlist_i_rows_valid(list, rows, (unsigned char *)met.memory) ? NLIST_OK : NLIST_INVALID;
    nlist_i_release(&list->desc.allocator, &met);
    return result;
}

/* Sample k: evenly spread over 0 .. n - 1, from a start that depends on the seed (Knuth's
   multiplicative hash). */
static int32_t nlist_i_sample(int32_t n, int32_t samples, uint32_t seed, int32_t k)
{
    uint64_t const start = (uint64_t)(seed * 2654435761u) * (uint64_t)n >> 32;
    return (int32_t)((start + (uint64_t)k * (uint64_t)n / (uint64_t)samples) % (uint64_t)n);
}

/* 1 if row i has the partners that brute force finds, each once. met: [n] zeros, before and
   after. */
static int nlist_i_row_right(const nlist *list, const nlist_real *pos, size_t stride, int32_t i,
                             unsigned char *met)
{
    const int64_t *uid = nlist_i_rows(list)->uid;
    nlist_each e = nlist_of(list, i);
    nlist_i_query query;
    nlist_real p[3];
    int32_t j;
    int right = 1;
    while (nlist_next(&e)) met[e.id] = 1;
    nlist_i_point(list, pos, stride, i, p);
    query = nlist_i_query_of(&list->desc, i, p);
    for (j = 0; j < list->n; j++) {
        nlist_real q[3];
        nlist_i_point(list, pos, stride, j, q);
        if (met[j] != (j != i && nlist_i_lists(list, uid, &query, j, q))) right = 0;
        met[j] = 0;
    }
    return right;
}

NLIST_API nlist_result nlist_verify(const nlist *list, const nlist_desc *desc,
                                    const nlist_real *pos, size_t stride, int32_t samples,
                                    uint32_t seed, int32_t *bad_id)
{
    nlist with_arrays;
    nlist_block met;
    nlist_result result;
    int32_t k;
    if (bad_id) *bad_id = -1;
    if (!list || !desc || samples < 0 || list->keys || (list->n > 0 && !pos))
        return NLIST_BAD_ARGUMENT;
    stride = nlist_i_stride(stride, list->desc.dim);
    if (list->n > 0 && stride == 0) return NLIST_BAD_ARGUMENT;
    result = nlist_validate(list);
    if (result == NLIST_OK && list->boxed) return NLIST_BAD_OPTION;
    if (result != NLIST_OK || list->n == 0) return result;
    with_arrays = *list;
    with_arrays.desc.radii = desc->radii;
    with_arrays.desc.radii_stride = desc->radii_stride;
    with_arrays.desc.masks = desc->masks;
    with_arrays.desc.exclude_start = desc->exclude_start;
    with_arrays.desc.exclude = desc->exclude;
    if (samples > list->row_count) samples = list->row_count;
    met.bytes = (size_t)list->n;
    met.memory = nlist_i_alloc(&list->desc.allocator, met.bytes);
    if (!met.memory) return NLIST_OUT_OF_MEMORY;
    memset(met.memory, 0, met.bytes);
    for (k = 0; k < samples && result == NLIST_OK; k++) {
        int32_t const i = nlist_i_sample(list->row_count, samples, seed, k);
        if (nlist_i_row_right(&with_arrays, pos, stride, i, (unsigned char *)met.memory)) continue;
        if (bad_id) *bad_id = i;
        result = NLIST_INVALID;
    }
    nlist_i_release(&list->desc.allocator, &met);
    return result;
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif

#endif /* NLIST_IMPLEMENTATION */

#if defined(NLIST_CUDA) && !defined(NLIST_CUDA_H)
#define NLIST_CUDA_H

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>cuda-api: the same on a GPU. Plain C may call these functions; one .cu file with
   NLIST_IMPLEMENTATION and NLIST_CUDA defines them. All pointers d_... are device memory. No call
   waits for the stream unless its comment says so. Every launch error is returned as
   NLIST_CUDA_ERROR. A pending CUDA error from before the call may be cleared.
   ---------------------------------------------------------------------------------------------- */

/* Kernel argument, passed by value: a list whose arrays are in device memory. It is a type of its
   own so that host code cannot follow device pointers by accident. */
typedef struct nlist_device { nlist list; } nlist_device;

/* Device-side status, read by nlist_cuda_check. */
typedef struct nlist_cuda_facts {
    int32_t current;            /* rows[current] is the list: a build swaps the two only when
                                   everything has fitted */
    int32_t filled;             /* builds that took effect */
    int32_t needed_width;       /* of the last build: slots of the fullest row */
    int32_t first_bad;          /* INT32_MAX - (first particle, or pair, that was left out), so that
                                   atomicMax finds it; 0 = none */
    int32_t moved;              /* of the last nlist_cuda_moved: particles that moved by more than
                                   half the skin */
    int32_t reach_bits;         /* bits of the largest of desc.radii, as a float */
    int32_t sticks_bits;        /* bits, as a float, of the most by which a sphere exceeds its box
                                   in the tree; Inf: too far */
    int32_t touched[2];         /* by generation: rows that have entries */
    uint64_t entries[2];        /* by generation: entries of partner that were needed, whether they
                                   fitted or not */
    uint64_t total;             /* entries in all rows */
    uint64_t events[NLIST_EVENT_KINDS];
    int64_t next_uid;           /* as list.next_uid */
    double skin;                /* of the list */
    int32_t triangles;          /* of the list, as list.triangles */
    int32_t overflow;           /* of the last nlist_cuda_sum: values beyond 2^40 units */
    int32_t full;               /* of the last build: something did not fit */
    int32_t bad_box;            /* INT32_MAX - (first box that was refused); 0 = none */
    int32_t bad_images;         /* the same, for NLIST_TOO_MANY_IMAGES */
    int32_t bad_starts;         /* 1: starts are not in order */
    int32_t rows_cut;           /* as list.rows_cut */
    int32_t blocks_done;        /* of the kernel that ends a build; else 0 */
} nlist_cuda_facts;

enum { NLIST_CUDA_SCRATCH = 16 };
enum { NLIST_I_BY_ROW = 1, NLIST_I_BY_PAIR = 2 };

typedef struct nlist_cuda {
    nlist_device device;        /* the argument of your kernels */
    nlist_cuda_facts *d_facts;
    struct CUstream_st *stream; /* of the last call */
    int64_t wanted_entries;     /* what the last check found to be needed, for the next build */
    int32_t wanted_width;
    int32_t by_radii;           /* the last build had desc.radii: only the device knows the
                                   largest */
    int32_t by_index;           /* the last call took ids: first_bad is an invalid one */
    nlist_block scratch[NLIST_CUDA_SCRATCH]; /* device memory: temporary storage */
    int32_t search;             /* private: 0, or NLIST_I_BY_ROW, NLIST_I_BY_PAIR for half lists */
} nlist_cuda;

/* Takes all memory for builds from positions and for sums over up to n particles, with `values`
   numbers per particle (0: no sums with a unit). After it these calls allocate nothing, so that a
   step can be captured in a CUDA graph. (Lists of triangles: set desc.layout to NLIST_DYNAMIC here,
   too. nlist_cuda_build_pairs and nlist_cuda_remap allocate in their first call.) Waits for the
   stream. The list is empty afterwards. */
NLIST_API nlist_result nlist_cuda_reserve(nlist_cuda *gpu, const nlist_desc *desc, int32_t n,
                                          int32_t values, struct CUstream_st *stream);

/* As the builds above, with the same costs. The grid, the tree and pos must be complete on
   `stream`. Particles with NaN and pairs with ids out of range are left out; nlist_cuda_check
   reports them. Without desc.deterministic the order of partner and touched in DYNAMIC and HYBRID
   is unspecified; that within rows: >>rules, Order. On overflow the size needed is still computed,
   nlist_cuda_check reports it, and the next build takes the missing memory. (desc.grow does all
   that within the call, and waits.) With history or events, and after a nlist_cuda_remap, the
   previous list then stays the list; otherwise rows hold what fits, and `count` the full lengths.
   Until a check, calls use the n and the mesh of the last build: sums and nlist_cuda_each leave out
   rows and partners from n on, and triangles that the mesh does not have; kernels of your own must
   do the same. A build that needs other memory than the last (another n, width, capacity) waits for
   the stream where two generations are kept. */
NLIST_API nlist_result nlist_cuda_build_brute(nlist_cuda *gpu, const nlist_desc *desc,
                                              const nlist_real *d_pos, size_t stride, int32_t n,
                                              struct CUstream_st *stream);
NLIST_API nlist_result nlist_cuda_build_pairs(nlist_cuda *gpu, const nlist_desc *desc,
                                              const int32_t *d_pair, int64_t m, int32_t n,
                                              struct CUstream_st *stream);
#ifdef NLIST_I_UGRID_CUDA
NLIST_API nlist_result nlist_cuda_build_ugrid(nlist_cuda *gpu, const nlist_desc *desc,
                                              const ugrid_cuda *grid, const nlist_real *d_pos,
                                              size_t stride, int32_t n, struct CUstream_st *stream);
#endif
#ifdef NLIST_I_LBVH_CUDA
NLIST_API nlist_result nlist_cuda_build_lbvh(nlist_cuda *gpu, const nlist_desc *desc,
                                             const lbvh_cuda *tree, const nlist_real *d_pos,
                                             size_t stride, int32_t n, struct CUstream_st *stream);
NLIST_API nlist_result nlist_cuda_build_mesh(nlist_cuda *gpu, const nlist_desc *desc,
                                             const lbvh_cuda *tree, const nlist_mesh *mesh,
                                             const nlist_real *d_pos, size_t stride, int32_t n,
                                             struct CUstream_st *stream);
#endif

/* Waits for the stream and returns the status of the last build, remap or sum: NLIST_OK,
   NLIST_ROW_FULL (device.list.needed_width), NLIST_LIST_FULL (needed_entries), NLIST_NOT_FINITE or
   NLIST_BAD_INDEX (bad_id), NLIST_BAD_RADIUS, NLIST_BAD_PERIOD, NLIST_BAD_SOURCE, NLIST_BAD_BOX,
   NLIST_TOO_MANY_IMAGES (bad_id: the box), NLIST_BAD_STARTS, NLIST_SUM_OVERFLOW. With
   desc.skip_invalid NLIST_NOT_FINITE comes last. The status of a build is kept until the next
   build. Fetches n, built, triangles, total, event_count, current, and
   entries and touched_count of both generations. */
NLIST_API nlist_result nlist_cuda_check(nlist_cuda *gpu, struct CUstream_st *stream);

/* Frees the device memory in the order of the stream that the list was last used on: that stream
   must still exist. One nlist_cuda belongs to one stream at a time. Before you use it on another
   stream, or in kernels of your own there, order the two streams by an event. */
NLIST_API void nlist_cuda_free(nlist_cuda *gpu);

/* As nlist_moved, with the box of the build: build again where it changes. The answer stays on the
   device, in d_facts->moved: for desc.if_moved of the next build, for the condition of a graph, or
   to be read after nlist_cuda_check. Without a list nothing is written, and d_facts may be NULL. */
NLIST_API nlist_result nlist_cuda_moved(nlist_cuda *gpu, const nlist_real *d_pos, size_t stride,
                                        struct CUstream_st *stream);

/* As nlist_remap. New ids out of range or given twice are left out; nlist_cuda_check reports them.
   d_new_id has as many numbers as the last build had particles, or, after a nlist_cuda_check,
   list.n. Where that build did not fit and no check was made, the previous list is renumbered: its
   particles beyond d_new_id are deleted, and ids of particles that it does not have denote new
   ones. */
NLIST_API nlist_result nlist_cuda_remap(nlist_cuda *gpu, const int32_t *d_new_id, int32_t n,
                                        struct CUstream_st *stream);

/* As nlist_remap_rows. */
NLIST_API nlist_result nlist_cuda_remap_rows(nlist_cuda *gpu, const int32_t *d_new_id, int32_t n,
                                             int32_t rows, struct CUstream_st *stream);

/* Copies a host list to the device, and a device list into a host list: rows, history, reference
   positions, and (download) events. Both wait for the stream. NLIST_NOT_BUILT: there is nothing to
   copy (download: or rows were cut, see nlist_cuda_check). */
NLIST_API nlist_result nlist_cuda_upload(nlist_cuda *gpu, const nlist *list,
                                         struct CUstream_st *stream);
NLIST_API nlist_result nlist_cuda_download(nlist *list, const nlist_cuda *gpu,
                                           struct CUstream_st *stream);

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif

/* ----------------------------------------------------------------------------------------------
   >>cuda-templates: for .cu files

   Kernels call nlist_of and nlist_next on the list of a nlist_device; the host passes a functor,
   which is called for each entry, or for sums.
   ---------------------------------------------------------------------------------------------- */

#ifdef __CUDACC__

/* The iterator for a nlist_device. These functions exist on the device only. */
static __device__ __forceinline__ nlist_each nlist_of(const nlist_device *device, int32_t i);
static __device__ __forceinline__ void *nlist_history(const nlist_device *device, int64_t entry);
static __device__ __forceinline__ int nlist_touch_entry(const nlist_device *device, int64_t entry,
                                                        int touching);

/* d_sums[Values * i + v] += contributions, as nlist_sum. The contact is a functor with

       __device__ int operator()(int32_t i, int32_t j, void *history, nlist_real *own, nlist_real
       *other) const

   own, other: Values numbers, 0 before the call; returns 0 when it adds nothing. how.values:
   Values, or 0. Does not wait; NLIST_SUM_OVERFLOW comes from nlist_cuda_check, and then the sums
   are those of the values that were not too large. */
template <int Values, class Contact>
static nlist_result nlist_cuda_sum(nlist_cuda *gpu, const nlist_sums *how, const Contact &contact,
                                   nlist_real *d_sums, struct CUstream_st *stream);

/* contact(int32_t i, int32_t j, void *history, int64_t entry), a __device__ functor, once per entry
   of the list. */
template <class Contact>
static nlist_result nlist_cuda_each(nlist_cuda *gpu, const Contact &contact,
                                    struct CUstream_st *stream);

#include "cuda/nlist_templates.cu" /* the definitions */

#endif /* __CUDACC__ */

#endif /* NLIST_CUDA_H */

#if defined(NLIST_CUDA) && defined(NLIST_I_IMPLEMENTED) && !defined(NLIST_CUDA_IMPLEMENTATION_DONE)
#define NLIST_CUDA_IMPLEMENTATION_DONE
#include "cuda/nlist.cu"
#endif

/* ----------------------------------------------------------------------------------------------
   >>parts: files of the folder more (>>options); each has guards of its own
   ---------------------------------------------------------------------------------------------- */
#ifdef NLIST_WITH_BOXES
#if defined(__has_include)
#if !__has_include("more/nlist_boxes.h")
#error "nlist.h: NLIST_WITH_BOXES needs the file more/nlist_boxes.h: \
copy the folder more beside nlist.h"
#endif
#endif
#include "more/nlist_boxes.h"
#endif
#ifdef NLIST_WITH_TUNE
#if defined(__has_include)
#if !__has_include("more/nlist_tune.h")
#error "nlist.h: NLIST_WITH_TUNE needs the file more/nlist_tune.h: \
copy the folder more beside nlist.h"
#endif
#endif
#include "more/nlist_tune.h"
#endif

#if defined(__cplusplus) && (defined(__GNUC__) || defined(__clang__))
#pragma GCC diagnostic pop
#endif

#if defined(NLIST_I_STRICT_CLANG)
#pragma float_control(pop)
#undef NLIST_I_STRICT_CLANG
#elif defined(NLIST_I_STRICT_MSVC)
#pragma float_control(pop)
#pragma fp_contract(on) /* as /fp:fast has it, where alone this is read */
#undef NLIST_I_STRICT_MSVC
#elif defined(NLIST_I_STRICT_GCC)
#pragma GCC pop_options
#undef NLIST_I_STRICT_GCC
#endif

/* ----------------------------------------------------------------------------------------------
   >>licence: choose one of two
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
