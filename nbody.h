/* nbody.h - v0.2.0 - N-body forces in 2D: direct summation, tree code, FMM; C99 and CUDA
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   Computes the forces and potentials of n bodies on each other. The law is 1 / d^2 or 1 / d, with
   or without softening, or your own function of the distance. It also computes the velocities of
   point vortices and vortex blobs. Parts add to it: >>parts.

   NBODY_DIRECT             direct summation (P2P): n^2 interactions
   NBODY_VIRTUAL_PARTICLES  a tree code, O(n log n): far cells act on bodies as the monopoles of
                            their sub-cells, or also with quadrupoles (order 2)
   NBODY_FORCE_NODES        a fast multipole method (FMM), O(n): multipole and local expansions at
                            interpolation points; with order 2 or more the black-box FMM

   The quadtree is uniform or adaptive. Sums are compensated. CPU and GPU give the same bits, with
   two exceptions: NBODY_FAST on the GPU; and trees of more than 17 levels, which a GPU makes only
   if asked (>>deep).

   >>contents: the banners in order; search for >>name: to find one

       manual         use, example, options, parts, rules, method, limits, not-here, changes
       declarations   strict-math, config, results, parallel, desc, tree, api
       one element    numbers, sums, part-hooks, force, square, cells, deep, walk, crowds, runs,
                      rule, up, table, series, down, near-bodies, store, logarithms, cuda-api
       serial         serial, plain, square-serial, sort, cells-serial, up-serial, down-serial,
                      bodies-serial, api-serial
       behind it      memory, resolve, kept, deep-serial, series-serial, cost, choose, reserve,
                      parallel-run
       faster forms   lanes, up-lanes, down-lanes, bodies-lanes, pieces, faster
       around it      texts, count, validate, save
       end            hooks (parts), licence; CUDA: cuda/nbody.cu, with a list of its own

   To learn it from this file, read >>method, the map at >>plain, >>tree (cell, frame, rule), and
   what happens to one body, cell or node: >>sums to >>store (not >>deep, >>crowds and >>series, at
   first). Then the loops over them, whole: >>plain to >>api-serial. All that makes it faster stands
   behind, and gives the same bits.

   >>use

   In one C or C++ file:             #define NBODY_IMPLEMENTATION
                                     #include "nbody.h"
   everywhere else:                  #include "nbody.h"
   on the GPU, in one .cu file:      #define NBODY_IMPLEMENTATION
                                     #define NBODY_CUDA
                                     #include "nbody.h"      (needs cuda/nbody.cu beside it)
   and in every file that calls it:  #define NBODY_CUDA before the include (C files too: they need
                                     no CUDA header)

   Build: cc -O3 program.c -lm       GPU: nvcc -O3 -arch=native program.cu
   Where the compiler may contract a product and a sum into a fused operation (gcc with
   -march=native or for ARM) or keep more digits (32-bit x86), add -ffp-contract=off, or -msse2
   -mfpmath=sse: else results can differ in the last bit.
   Under -ffast-math (-Ofast, /fp:fast) pragmas compile this header without it. The results are the
   same, except that denormals count as zero where the flag links a start file that says so.
   clang with FMA: add -ffp-contract=off after that flag. nvcc's -use_fast_math flushes denormals on
   the GPU, and breaks the promised bits.

   >>example: compiles as it stands

       #define NBODY_IMPLEMENTATION
       #include "nbody.h"
       #include <stdio.h>

       int main(void)
       {
           // two bodies on a circle of radius 1: the acceleration of each is 1 / 2^2 = v^2 / 1
           float pos[] = {-1, 0,  1, 0}, vel[] = {0, -0.5f,  0, 0.5f}, acc[4], dt = 0.01f;
           nbody sim = {0};
           nbody_desc desc = {0};
           nbody_result r;
           int step, k;
           for (step = 0; step < 1000; step++) {
               r = nbody_accelerations(&sim, &desc, pos, 0, NULL, 2, acc);
               if (r != NBODY_OK) { puts(nbody_result_text(r)); return 1; }
               for (k = 0; k < 4; k++) vel[k] += acc[k] * (step == 0 ? dt / 2 : dt); // half a step
               for (k = 0; k < 4; k++) pos[k] += vel[k] * dt;                        // ahead of pos
           }
           printf("%.2f %.2f\n", pos[2], pos[3]);              // near (cos 5, sin 5)
           nbody_free(&sim);
           return 0;
       }

   >>options

       name                   default   where              meaning
       NBODY_IMPLEMENTATION   -         one file           makes the functions
       NBODY_CUDA             -         all files, or none adds the GPU functions
       NBODY_STATIC           -         each file          functions are static, one copy per file
       NBODY_API              extern    all files          linkage of the functions (a dllexport)
       NBODY_REAL             float     all files          float or double; a program that mixes
                                                           them does not link
       NBODY_WITH_...         -         users, that one    adds a part: >>parts
       NBODY_PLAIN            -         the file that      the text of >>plain, without its faster
                                        implements         forms; the same results
       NBODY_PLAIN_LANES      -         the file that      no AVX2, also where the CPU has it; the
                                        implements         same results

   >>parts

   A macro adds a file of the folder more, which lies beside this one. Define it before the include,
   in each file that uses the part and in the one with NBODY_IMPLEMENTATION (the laws and periodic
   squares: before the first include, in all). What a part is missing for is refused: NBODY_NO_PART.

       NBODY_WITH_STEP        more/nbody_step.h       leapfrog and Euler, energies; the error of
                                                      forces against direct summation (nbody_step,
                                                      _energy, _estimate, _verify)
       NBODY_WITH_POINTS      more/nbody_points.h     fields at any points (nbody_fields_at)
       NBODY_WITH_BLOCKS      more/nbody_blocks.h     a time step for each body, in powers of two
                                                      (nbody_blocks_step); adds _STEP and _POINTS
       NBODY_WITH_VORTEX      more/nbody_vortex.h     velocities of vortices; Gaussian cores
                                                      (law NBODY_VORTEX, core NBODY_GAUSSIAN)
       NBODY_WITH_FUNCTION    more/nbody_function.h   a law of yours (law NBODY_FUNCTION)
       NBODY_WITH_PERIODIC    more/nbody_periodic.h   squares that repeat (desc.periodic)
       NBODY_WITH_SETS        more/nbody_sets.h       the tree for other masses, or several sets of
                                                      them (nbody_fields_again, _fields_sets)

   >>rules

   Words    A body has an id, its index in your arrays, and a place, its index in the arrays sorted
            by cell. A source exerts a force: it is a body, or a point that represents the bodies of
            a cell. A target receives a force: it is a body, a node, or a target point of yours. A
            term is the interaction of one source with one target. Level 0 is the whole square;
            cells of deeper levels are smaller. A cell that is not divided is a leaf. More words,
            with those of the literature: docs/glossary.md.
   Law      The interaction kernel. With d = p_j - p_i and u = |d|^2 + softening^2, the acceleration
            of body i is G times a sum over all bodies j:
            NBODY_INVERSE_SQUARE: of m_j d / u^(3/2), gravity between bodies that stay in a plane
            (Kalms equation 6 over m_i; equations 4 to 6 are printed with p_i - p_j, which repels).
            The potential is that of -G m_j / sqrt(u).
            NBODY_INVERSE: of m_j d / u, the Laplace kernel of the plane: gravity in two
            dimensions, or straight lines of charge. The potential is that of G m_j ln(u) / 2.
            A negative `gravity` repels. NBODY_VORTEX: velocities and stream functions.
            NBODY_FUNCTION: a law of yours. Both are parts.
   Units    Any. Internally, lengths and masses are scaled by powers of two, which is exact.
   Memory   Only nbody_build and what calls it (nbody_accelerations, _fields), nbody_reserve,
            nbody_load and nbody_validate allocate, by desc.allocator, and calls of parts and
            nbody_cuda_... as stated there. Memory is kept. An array that is too small becomes half
            as large again, or as large as needed if that is more. A first one, and all of
            nbody_reserve, have the exact size. See nbody_bytes.
   Built    A call that reads a tree returns NBODY_NOT_BUILT where there is none: before the first
            build, and after nbody_reserve, nbody_free and a refused build. A tree of n = 0 bodies
            is built: its forces are 0. Its desc and strides are checked as any others.
   Threads  No global state. Any number of threads may read one nbody (walks, nbody_count); one at a
            time may change it. With desc.parallel a call itself is cut into tasks for threads of
            yours: >>parallel.
   Errors   Every function that can fail returns a nbody_result; nbody_result_text names the field
            to change. Nothing is printed, nothing aborts, nothing is truncated silently. A refusal
            leaves outputs unwritten, and the nbody empty.
   Sums     Compensated: up to 64 terms are added plainly, and these partial sums by two-sum. The
            error of a float sum does not grow with n. See >>sums.
   Bits     The serial code, NBODY_ONE_THREAD, NBODY_MANY_THREADS and NBODY_SHARED_MEMORY give the
            same forces, bit for bit. (NBODY_AUTO may choose differently on CPU and GPU: give one
            the method, levels and leaf of the other's sim.desc.) NBODY_FAST on the GPU uses its
            approximate reciprocal root and fused products: it differs by rounding only.

   >>method

   The bounding square of all bodies (Kalms: always 0 .. 1) is the root of a quadtree. Level l has
   2^l cells per side; empty cells are not stored. Two cells of a level that touch are near each
   other (adjacent); others are far. The interaction list of a cell has the children of the cells
   near its parent that are not near the cell itself. What is near is left to the next level, and at
   the leaves to direct summation. On levels 0 and 1 nothing is far (Kalms section 5.6.5).

   leaves    With desc.levels, all leaves are on the last level, as with Kalms. Else the tree is
             adaptive: a cell is divided while it has more than desc.leaf bodies.
   sources   The multipole expansion of a cell: few points act in place of its bodies.
             MASS_CENTRES (Kalms): the masses of 8 x 8 sub-cells, at their centres of mass; a leaf
             on the last level acts by its bodies. CHEBYSHEV: order x order fixed points, which get
             the masses by interpolation (masses of either sign).
   nodes     The local expansion of a cell: the force of far cells, known at some points and
             interpolated in between. order 1: 8 x 8 evenly spaced nodes, linear interpolation
             (Kalms). order k: k x k Chebyshev nodes, polynomials of degree k - 1.
   M2L       With CHEBYSHEV sources it is a product with a matrix, the table. For the law 1 / d
             without softening the matrix is smaller: it translates sums of powers of complex
             numbers, as in the FMM of Greengard and Rokhlin (>>series).

       FORCE_NODES (Kalms Figure 15)
       P2M, M2M   bodies -> sources of leaves -> sources of parents   upward pass     >>up
       M2L        sources of far cells -> nodes of each cell          by a table      >>table
       L2L, L2P   bodies <- nodes of leaves <- nodes of parents       downward pass   >>down
       P2P        near bodies -> bodies                               at the leaves   >>near-bodies

       VIRTUAL_PARTICLES has no nodes: the interaction lists of a leaf and of all its ancestors act
       on the leaf's bodies (M2P; Kalms Figure 12).

       The lists of an adaptive tree (Carrier; figure: >>walk):
       list 1 (U)   of a leaf: the leaves that touch it, and itself                         P2P
       list 2 (V)   of a cell: the interaction list, cells of the same level                M2L
       list 3 (W)   of a leaf: smaller cells that do not touch it; their parents touch it   M2P
       list 4 (X)   of a cell: larger leaves that do not touch it, but touch its parent     P2L

   Accuracy: mean relative error of the force, and terms per body, for 100,000 uniformly distributed
   bodies. One term is G m d / d^3 of one pair; a term of the table costs about a tenth of that.
   `make bench` prints more; docs/choosing.md has the times.

       method, order          mean error   terms
       VIRTUAL_PARTICLES      3e-4         6400    Kalms; order 2, with second moments: 1.2e-6
       FORCE_NODES order 1    1e-3         2700    Kalms
       FORCE_NODES order 4    3e-4         240, and 330 by table: the default
       FORCE_NODES order 6    6e-6         840, and 410
       FORCE_NODES order 8    4e-7         840, and 1300 (double: 1.6e-7)

   Kalms:   M. Kalms, High-performance particle simulation using CUDA, master's thesis, Linkoeping
            University, 2015.
   Barnes, Hut: A hierarchical O(N log N) force-calculation algorithm, Nature 324, 1986.
   Greengard: L. Greengard, V. Rokhlin, A fast algorithm for particle simulations, J. Comput.
            Phys. 73, 1987.
   Carrier: J. Carrier, L. Greengard, V. Rokhlin, A fast adaptive multipole algorithm for particle
            simulations, SIAM J. Sci. Stat. Comput. 9, 1988 (lists 1 to 4 of an adaptive tree).
   Fong:    W. Fong, E. Darve, The black-box fast multipole method, J. Comput. Phys. 228, 2009
            (Chebyshev sources and nodes).
   Knuth:   D. Knuth, The Art of Computer Programming 2, section 4.2.2 (the two-sum).

   >>limits

   Bodies     n up to 2^30 - 512.
   Depth      Up to NBODY_MAX_LEVELS = 49 levels, where bodies cluster: the smallest cell is 2^-48
              = 4e-15 of the square's side. The bodies of one such cell are summed pair by pair,
              however many they are, unless all are at one point: they act as one (>>crowds). On a
              GPU that holds for cells of 1/65536 of the side, unless desc.levels is more than
              NBODY_KEY_LEVELS = 17. (desc.levels = 17 and a desc.leaf make the GPU's tree on the
              CPU.) With MASS_CENTRES it holds for clusters away from the origin (see >>deep), with
              desc.levels and no desc.leaf for all cells of the last level.
   Origin     MASS_CENTRES has sources in coordinates like yours. In a square that is f sides away
              from the origin they lose log2 f of their bits, relative to the cell. Shift such a
              scene to the origin.
   Distances  Let L be about the largest of coordinates, square and softening. Points (of a part)
              farther away than 1e18 L (double: 1e150 L) count as at that distance. A float force of
              1/d^2 loses digits from 4e12 L on and is 0 from 1e15 L on. All forces are softened by
              at least 5e-13 to 1e-12 L (1/d: 3e-18 to 7e-18 L; double: 5e-103 to 1e-102 L). At k
              times that distance a force is 1.5 / k^2 too weak (1/d: 1 / k^2). Against the law with
              this softening, clusters over 12 decades are on average as accurate as others; floats
              are rounded on each level: 1e-6 (orders above 8: 1e-5) of a force after 16 of them, at
              most. Bodies at one point exert no force on each other; in softened potentials (desc,
              not the least softening) they count.
   Refused    NaN and infinite numbers, with the index of the first. Give a body that died the mass
              0: it then exerts nothing. Give it a finite position near the others, since the
              square holds it, too. Negative masses with MASS_CENTRES, which have no centre of mass;
              CHEBYSHEV takes any sign. What a periodic square refuses: its part.

   >>not-here

   3D, relativistic or collisional physics; individual time steps; images, windows, files of other
   programs (see examples/galaxy/galaxy.c).

   >>changes

   0.2.0  2026-11-28: threads, sets, lanes, vortices, deep trees, files, parts (see CHANGELOG.md)
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
#define NBODY_I_FAST_MATH
#if defined(__clang__) && \
    (defined(__i386__) || defined(__x86_64__) || defined(_M_X64) || defined(__s390x__) || \
     defined(__powerpc64__) || __clang_major__ >= 16) && \
    __clang_major__ >= 11 && !defined(__wasm__)
#define NBODY_I_STRICT_CLANG
#if defined(__FMA__) || !(defined(__i386__) || defined(__x86_64__) || defined(_M_X64))
#define NBODY_I_KEEP_BY_ASM
#endif
#pragma float_control(push)
#pragma float_control(precise, on)
#pragma clang fp contract(off)
#elif defined(_MSC_VER) && !defined(__clang__)
#define NBODY_I_STRICT_MSVC
#pragma float_control(precise, on, push)
#pragma fp_contract(off)
#elif defined(__GNUC__) && !defined(__clang__) && !defined(__INTEL_COMPILER) && \
    !defined(__NVCOMPILER)
#define NBODY_I_STRICT_GCC
#if __GNUC__ >= 12 && !defined(__NVCC__)
#define NBODY_I_KEEP_BY_BARRIER
#elif !defined(__CUDA_ARCH__)
#define NBODY_I_KEEP_BY_ASM
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
#elif defined(NBODY_IMPLEMENTATION)
#error "nbody.h: this compiler cannot keep the order of roundings: compile without -ffast-math"
#endif
#elif defined(__GNUC__) && !defined(__clang__) && !defined(__CUDA_ARCH__) && \
    (defined(__FMA__) || !(defined(__i386__) || defined(__x86_64__)))
/* gcc fuses a product with a sum, unless -std=c99 or its like is given. */
#define NBODY_I_KEEP_BY_ASM
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

#ifndef NBODY_H
#define NBODY_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NBODY_VERSION_MAJOR 0
#define NBODY_VERSION_MINOR 2
#define NBODY_VERSION_PATCH 0

/* ----------------------------------------------------------------------------------------------
   >>config: compile-time choices (>>options says where each must be defined)
   ---------------------------------------------------------------------------------------------- */

#ifndef NBODY_REAL
#define NBODY_REAL float
#endif

/* 1 for float, 2 for double: what the preprocessor can compare. */
#define NBODY_I_REAL_float  1
#define NBODY_I_REAL_double 2
#define NBODY_I_PASTE(a, b) a##b
#define NBODY_I_KIND_OF(real) NBODY_I_PASTE(NBODY_I_REAL_, real)
#define NBODY_I_REAL_KIND NBODY_I_KIND_OF(NBODY_REAL)

#if NBODY_I_REAL_KIND != 1 && NBODY_I_REAL_KIND != 2
#error "nbody.h: NBODY_REAL must be float or double"
#endif

#if defined(NBODY_IMPLEMENTATION) && defined(NBODY_CUDA) && !defined(__CUDACC__)
#error "nbody.h: NBODY_IMPLEMENTATION with NBODY_CUDA needs nvcc: put both into one .cu file"
#endif

#ifndef NBODY_API
#ifdef NBODY_STATIC
#if defined(__GNUC__) || defined(__clang__)
#define NBODY_API __attribute__((unused)) static
#else
#define NBODY_API static inline
#endif
#else
#define NBODY_API extern
#endif
#endif

/* Functions of one element, the same source text on both sides: `static inline` in C, and under
   nvcc also for the device. */
#ifdef __CUDACC__
#include <cuda_runtime.h>
#if defined(NBODY_I_FAST_MATH) && !defined(__CUDA_ARCH__)
#define NBODY_FN static __host__ __device__ inline
#else
#define NBODY_FN static __host__ __device__ __forceinline__
#endif
#define NBODY_ALIGN_CELL __align__(16)
#else
#define NBODY_FN static inline
#define NBODY_ALIGN_CELL
#endif

/* Functions that loops over lanes call (>>lanes): a loop with a call in it is not vectorised, and
   gcc leaves large ones as calls at -O3. */
#if (defined(__GNUC__) || defined(__clang__)) && !defined(__CUDACC__)
#define NBODY_I_LANE_FN static inline __attribute__((always_inline))
#else
#define NBODY_I_LANE_FN NBODY_FN
#endif

/* A function that is seldom called: the compiler keeps it out of its callers. */
#if (defined(__GNUC__) || defined(__clang__)) && !defined(__CUDACC__)
#define NBODY_I_SELDOM __attribute__((cold))
#else
#define NBODY_I_SELDOM
#endif

/* Loops over arrays that a GPU can keep in registers only when all indices are compile-time
   constants. */
#ifdef __CUDA_ARCH__
#define NBODY_I_UNROLL _Pragma("unroll")
#else
#define NBODY_I_UNROLL
#endif

/* In a double build every function has another name: a program that mixes float and double builds
   does not link. */
#if NBODY_I_REAL_KIND == 2 && !defined(NEARFIELD_NAMESPACE)
#define nbody_version         nbody_f64_version
#define nbody_result_text     nbody_f64_result_text
#define nbody_defaults        nbody_f64_defaults
#define nbody_levels_for      nbody_f64_levels_for
#define nbody_reserve         nbody_f64_reserve
#define nbody_build           nbody_f64_build
#define nbody_accelerations   nbody_f64_accelerations
#define nbody_fields          nbody_f64_fields
#define nbody_count           nbody_f64_count
#define nbody_save            nbody_f64_save
#define nbody_load            nbody_f64_load
#define nbody_validate        nbody_f64_validate
#define nbody_bytes           nbody_f64_bytes
#define nbody_free            nbody_f64_free
#define nbody_cuda_reserve        nbody_f64_cuda_reserve
#define nbody_cuda_build          nbody_f64_cuda_build
#define nbody_cuda_accelerations  nbody_f64_cuda_accelerations
#define nbody_cuda_fields         nbody_f64_cuda_fields
#define nbody_cuda_check          nbody_f64_cuda_check
#define nbody_cuda_upload         nbody_f64_cuda_upload
#define nbody_cuda_download       nbody_f64_cuda_download
#define nbody_cuda_free           nbody_f64_cuda_free
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>results: what functions return. nbody_result_text gives the texts
   ---------------------------------------------------------------------------------------------- */

/* One list makes the codes and their texts. */
#define NBODY_RESULTS(X) \
    X(NBODY_OK,             "all is well") \
    X(NBODY_BAD_ARGUMENT,   "a pointer is NULL (NBODY_FUNCTION: in desc.function), a count is " \
                            "negative, or a stride, in bytes, is neither 0 nor a multiple of " \
                            "sizeof(NBODY_REAL), of one element's bytes at least") \
    X(NBODY_BAD_OPTION,     "an enum has a value that does not exist, or these do not go " \
                            "together: see desc.order (at most 12, double 16; VIRTUAL_PARTICLES " \
                            "2), desc.sources, desc.subcells, desc.stage, desc.core, " \
                            "desc.periodic (DIRECT, or FORCE_NODES of order 2 or more; not " \
                            "NBODY_FUNCTION); or NBODY_VORTEX is given to nbody_step; or " \
                            "desc.function is not NBODY_FORCE on a GPU; or desc.parallel.tasks " \
                            "is not 0 .. NBODY_MAX_TASKS") \
    X(NBODY_BAD_LEVELS,     "desc.levels must be 0 .. NBODY_MAX_LEVELS, and desc.leaf and " \
                            "desc.max_cells not negative; desc.periodic: levels 0 or 3 .. " \
                            "NBODY_KEY_LEVELS") \
    X(NBODY_BAD_NUMBER,     "desc.gravity, desc.softening (not negative) and a time step must be " \
                            "finite; desc.periodic: softening at most 1/4 of desc.size, of a " \
                            "Gaussian core 1/17 (double 1/26)") \
    X(NBODY_BAD_SQUARE,     "desc.min must be finite and desc.size finite and not negative (0: " \
                            "fitted); desc.periodic needs a size above 0, and desc.min at most " \
                            "2^22 (double 2^51) sizes from 0") \
    X(NBODY_BAD_ALLOCATOR,  "desc.allocator needs both alloc and free, or neither, gives memory " \
                            "aligned to 16 bytes, and stays the same until nbody_free") \
    X(NBODY_NOT_FINITE,     "a body or point has a NaN or infinite number: sim.bad_id is the " \
                            "first such body, the call's bad_id the first such point; a body " \
                            "that died gets mass 0 and a finite position") \
    X(NBODY_BAD_MASS,       "a body has a negative mass, sim.bad_id is the first: only " \
                            "desc.sources = NBODY_CHEBYSHEV and NBODY_DIRECT take those") \
    X(NBODY_TOO_LARGE,      "the positions span more than the largest number: scale them") \
    X(NBODY_TOO_MANY,       "more than 2^30 - 512 bodies or points") \
    X(NBODY_OUT_OF_MEMORY,  "an allocation failed: desc.allocator or malloc returned NULL") \
    X(NBODY_NOT_BUILT,      "there is no tree: call nbody_build or nbody_accelerations first") \
    X(NBODY_CELLS_FULL,     "desc.max_cells is too small for the tree: forces are right, but " \
                            "slow; sim.frame->cells_needed is enough") \
    X(NBODY_INVALID,        "nbody_validate or nbody_verify found the structure damaged") \
    X(NBODY_CUDA_ERROR,     "a CUDA call failed: sim.cuda_error has its cudaError_t") \
    X(NBODY_NOT_RUN,        "desc.parallel.run did not run every task before it returned") \
    X(NBODY_BUFFER_TOO_SMALL, "the caller's array is too small: the size needed was returned") \
    X(NBODY_BAD_FILE,       "these bytes are not a tree saved by this version, with this real " \
                            "type and byte order, undamaged") \
    X(NBODY_NO_PART,        "desc asks for what a part adds, which the file with " \
                            "NBODY_IMPLEMENTATION has not: define there, before the include, " \
                            "NBODY_WITH_PERIODIC (desc.periodic), NBODY_WITH_VORTEX (law " \
                            "NBODY_VORTEX, core NBODY_GAUSSIAN), NBODY_WITH_FUNCTION (law " \
                            "NBODY_FUNCTION)")

#define NBODY_I_CODE(code, text) code,
typedef enum nbody_result { NBODY_RESULTS(NBODY_I_CODE) NBODY_RESULT_COUNT } nbody_result;

/* ----------------------------------------------------------------------------------------------
   >>parallel: a hook for threads of yours

   The header has no threads. Where desc.parallel is set, a call cuts its work into tasks and hands
   them to `run`, some dozens of times per evaluation (a level of the tree is one). Results are the
   same bits for any number of tasks, in any order. A task has about 0.1 ms of work at least: a
   thousand bodies with the default options stay serial.

       in tasks      bounds, sort, cells, sources, tables of softened laws, nodes, bodies, DIRECT:
                     nbody_build, _accelerations, _fields; calls of parts as stated there
       not           NBODY_ONE_THREAD, nbody_count, _validate, tables of laws without softening
                     (computed once); CUDA calls ignore the hook

   A task allocates nothing, and needs 96 KB of stack (double: 200). With tasks = 2 .. 4 times the
   threads, unequal tasks even out.
   ---------------------------------------------------------------------------------------------- */

typedef void nbody_task(void *context, int32_t index);

/* Calls task(context, k) for each k of 0 .. tasks - 1 once, in any order, on any threads, and
   returns when all are done. `user` is that of nbody_parallel. */
typedef void nbody_run(nbody_task *task, void *context, int32_t tasks, void *user);

enum { NBODY_MAX_TASKS = 1024 };

/* NBODY_NOT_RUN: run returned before all tasks were done. The nbody is empty then, as after an
   allocation that failed, and outputs are undefined. */
typedef struct nbody_parallel {
    nbody_run *run;             /* NULL: serial */
    void *user;                 /* handed to run */
    int32_t tasks;              /* pieces at most, 0 .. NBODY_MAX_TASKS; 0, 1: serial */
} nbody_parallel;

/* ----------------------------------------------------------------------------------------------
   >>desc: method and accuracy. All zero is valid; every field states its default.
   ---------------------------------------------------------------------------------------------- */

typedef NBODY_REAL nbody_real;

typedef enum nbody_method {
    NBODY_AUTO = 0,             /* DIRECT or FORCE_NODES of this order, and how deep: what costs
                                   least (>>cost); sim.desc says what it was. By n alone: DIRECT in
                                   periodic squares for up to 8 * order bodies; on a GPU for up to
                                   26,000, with potentials 15,000, of 1 / d 12,000 (more for order 1
                                   and above 4), but 1024 with doubles, Gaussian cores, laws of
                                   yours, and in nbody_cuda_build */
    NBODY_DIRECT,               /* direct summation (P2P): n^2 terms, exact except for rounding */
    NBODY_VIRTUAL_PARTICLES,    /* tree code: far cells act on bodies (Kalms section 5.6.3): O(n log
                                   n) terms */
    NBODY_FORCE_NODES           /* FMM: far cells act on force nodes, and the force on a body is
                                   interpolated (Kalms section 5.6.6): O(n) terms */
} nbody_method;

typedef enum nbody_law {
    NBODY_INVERSE_SQUARE = 0,   /* G m_i m_j / d^2 */
    NBODY_INVERSE,              /* G m_i m_j / d */
    NBODY_VORTEX,               /* velocities of vortices: NBODY_WITH_VORTEX */
    NBODY_FUNCTION              /* m_i m_j f(d): desc.function, NBODY_WITH_FUNCTION */
} nbody_law;

/* NBODY_FUNCTION: a law of yours, called for distances d > 0 in your units. Several
   threads may call it at once (desc.parallel). Same d, same result. */
typedef struct nbody_function {
    double (*force)(double d, void *user);     /* f: unit mass on unit mass; positive: attraction */
    double (*potential)(double d, void *user); /* its integral, d phi / d d = f; NULL: none, and no
                                                  potential may be requested */
    void *user;                 /* handed to both */
} nbody_function;

/* What softening, a length s, does near a source: Law in >>rules. */
typedef enum nbody_core {
    NBODY_PLUMMER = 0,          /* u = d^2 + s^2, at every distance */
    NBODY_GAUSSIAN              /* NBODY_INVERSE, NBODY_VORTEX: the mass is spread as
                                   exp(-d^2 / s^2). NBODY_WITH_VORTEX */
} nbody_core;

/* The multipole expansion of a cell: points that represent its bodies. */
typedef enum nbody_sources {
    NBODY_SOURCES_AUTO = 0,     /* MASS_CENTRES for VIRTUAL_PARTICLES and for order 1, else
                                   CHEBYSHEV */
    NBODY_MASS_CENTRES,         /* the masses of subcells x subcells sub-cells, each at its centre
                                   of mass (Kalms section 5.6.1) */
    NBODY_CHEBYSHEV             /* FORCE_NODES: masses at order x order Chebyshev points (Fong) */
} nbody_sources;

/* Which program computes the sums (Kalms sections 6.3.2 to 6.3.4): the same terms, from the
   simplest program to the fastest. The serial code has two: FAST, and ONE_THREAD, which is >>plain;
   the other two are FAST there. */
typedef enum nbody_stage {
    NBODY_FAST = 0,             /* CUDA: registers, warps, few launches; SHARED_MEMORY for
                                   NBODY_GAUSSIAN, NBODY_FUNCTION, periodic squares and orders above
                                   12. Serial: 16 targets at a time, >>faster */
    NBODY_ONE_THREAD,           /* one target after the other. CUDA: one block of one thread
                                   (bounds, sort and table are computed as in the other stages).
                                   Serial: the same bits as FAST, several times slower */
    NBODY_MANY_THREADS,         /* a thread for each body, node or source; one kernel per level */
    NBODY_SHARED_MEMORY         /* a block for each chunk of 64; sources are staged in shared
                                   memory, 64 at a time; one kernel per level */
} nbody_stage;

/* What alloc returns must be aligned to 16 bytes; else NBODY_BAD_ALLOCATOR. */
typedef struct nbody_allocator {
    void *(*alloc)(size_t bytes, void *user);
    void (*free)(void *memory, size_t bytes, void *user);
    void *user;
} nbody_allocator;

struct CUstream_st; /* cudaStream_t is a pointer to it: plain C needs no CUDA header */

/* Device memory for nbody_cuda. What alloc returns must be usable in order on `stream`, and aligned
   to 256 bytes. */
typedef struct nbody_cuda_allocator {
    void *(*alloc)(size_t bytes, struct CUstream_st *stream, void *user);
    void (*free)(void *memory, size_t bytes, struct CUstream_st *stream, void *user);
    void *user;
} nbody_cuda_allocator;

enum {
    NBODY_MAX_LEVELS = 49,      /* three keys of a sort, each with 16 bits of a cell's numbers */
    NBODY_KEY_LEVELS = 17,      /* levels that one key is enough for; CUDA: the default. >>deep */
    NBODY_MAX_ORDER = NBODY_I_REAL_KIND == 1 ? 12 : 16, /* a float's rounding hides the rest */
    NBODY_CHUNK = 64            /* bodies, sources or nodes in one piece of work (Kalms section
                                   5.4), and terms of a partial sum: >>sums */
};

typedef struct nbody_desc {
    nbody_method method;        /* (default: NBODY_AUTO) */
    nbody_law law;              /* (default: NBODY_INVERSE_SQUARE) */
    int32_t levels;             /* levels of the tree, 1 .. NBODY_MAX_LEVELS: the last has
                                   2^(levels - 1) cells per side; up to 2 are the direct sum
                                   (default: adaptive, as many as leaf requires at the local
                                   density, with NBODY_AUTO fewer where that costs less; sim.desc
                                   says how many there could have been; CUDA: 17 at most, more only
                                   if asked for here, with a leaf) */
    int32_t leaf;               /* a cell of so many bodies or fewer is not divided (default: with
                                   levels: 0, all leaves are on the last level, as in the source;
                                   else what was measured best for method and order) */
    int32_t order;              /* VIRTUAL_PARTICLES: 1 = monopoles, 2 = with second moments
                                   (quadrupoles) (default: 1); FORCE_NODES: 1 = 8 x 8 even nodes,
                                   linear; 2 .. NBODY_MAX_ORDER = order x order Chebyshev nodes
                                   (default: 4), up to 12 (double: 16). A higher order is more
                                   accurate: >>method */
    nbody_sources sources;      /* (default: NBODY_SOURCES_AUTO) */
    int32_t subcells;           /* MASS_CENTRES: per side of a cell, 2, 4 or 8 (default: 8) */
    nbody_real gravity;         /* G; negative repels (default: 1) */
    nbody_real softening;       /* a length; what it does: core (default: 0) */
    nbody_real min[2], size;    /* the square: lower corner and side. Bodies outside: the fitted one
                                   is taken; periodic: they have images inside (default: fitted;
                                   periodic: none) */
    size_t mass_stride;         /* bytes from one mass to the next (default: tightly packed) */
    size_t acc_stride;          /* bytes from one acceleration to the next (default: tightly
                                   packed) */
    nbody_stage stage;          /* which program computes the sums (default: NBODY_FAST) */
    int32_t max_cells;          /* CUDA: capacity in cells, before their number is known (default:
                                   enough for levels, or for any but the oddest of inputs). Too few:
                                   cells stay undivided, nbody_cuda_check reports it; periodic: 21
                                   at least */
    nbody_allocator allocator;  /* (default: malloc and free) */
    nbody_cuda_allocator cuda_allocator; /* (default: cudaMallocAsync and cudaFreeAsync) */
    nbody_parallel parallel;    /* a hook for threads: >>parallel (default: serial) */
    nbody_core core;            /* what softening does (default: NBODY_PLUMMER) */
    nbody_function function;    /* the law of NBODY_FUNCTION, which needs it (default: none) */
    int32_t periodic;           /* 1: the square, min and size, repeats without end: >>parts
                                   (default: 0, the plane is empty around it) */
    double function_ns;         /* NBODY_FUNCTION: nanoseconds of one call, by which NBODY_AUTO
                                   chooses; results do not depend on it otherwise (default: 8, of
                                   functions that the file names 2.5) */
} nbody_desc;

/* ----------------------------------------------------------------------------------------------
   >>tree: the object. All zero is empty. You may read every array.
   ---------------------------------------------------------------------------------------------- */

/* A cell: 64 bytes. Cells are stored level by level, and in Morton order (>>square) within a level,
   so that siblings are contiguous in memory, and so are the bodies of a cell. No cell is empty.
   (Kalms section 6.1 has a full grid on each level, and in each cell a linked list of chunks; here
   a cell is a range of arrays that are sorted once.) */
typedef struct NBODY_ALIGN_CELL nbody_cell {
    int32_t x, y;               /* column and row at its level, 0 .. 2^level - 1; deeper than level
                                   31 their low 32 bits, nbody_i_number has all */
    int32_t first, count;       /* its bodies: places first .. first + count - 1 */
    int32_t parent;             /* -1: the root */
    int32_t child;              /* the first of its children; -1: a leaf */
    uint8_t level, children;    /* children: 1 .. 4, or 0 */
    uint8_t beside_count;
    uint8_t quarters;           /* which children exist: bit 0 lower left, 1 lower right, 2 upper
                                   left, 3 upper right; bit 4: a leaf that is a crowd, >>crowds */
    int32_t beside[9];          /* adjacent cells, beside_count of them: the cells of its level that
                                   touch it (colleagues), itself included, and larger leaves that
                                   touch it */
} nbody_cell;

/* What an evaluation determined; in device memory on the GPU (nbody_cuda_download fetches it). */
typedef struct nbody_frame {
    double min[2], size;        /* the square of level 0, in your units */
    double length, mass;        /* powers of two: a body's x is its position / length, its m is its
                                   mass / mass */
    double origin[2], edge;     /* the square in units of `length` */
    double inverse;             /* 1 / edge */
    double soften2;             /* softening^2 in units of length^2, with a minimum that keeps
                                   1 / d^3 finite */
    double given2;              /* the same without that minimum */
    int32_t levels;             /* levels that have cells */
    int32_t cells;              /* total */
    int32_t level_first[NBODY_MAX_LEVELS + 1]; /* cells of level l:
                                                  level_first[l] .. level_first[l + 1] - 1 */
    int32_t cells_needed;       /* CUDA: more than `cells` when desc.max_cells was too small */
    int32_t fitted;             /* 1: the square was fitted to the bodies */
    int32_t deep;               /* 1: more than NBODY_KEY_LEVELS levels, edge is a power of two and
                                   corners of cells are exact: >>deep */
    int32_t chunks;             /* of up to NBODY_CHUNK bodies, all of one leaf: the work items of
                                   the GPU (Kalms section 6.1.2) */
    int32_t bad_finite, bad_mass; /* CUDA: INT32_MAX - (first body that is not finite, that has a
                                     negative mass); 0: none */
    double core2;               /* NBODY_GAUSSIAN: softening^2 in units of length^2; else 0 */
    int32_t deepest;            /* no cell is deeper: NBODY_GAUSSIAN. Else NBODY_MAX_LEVELS */
    int32_t periodic;           /* 1: desc.periodic */
    int32_t light;              /* 1: the sum of masses is 1 at most: >>deep, >>crowds */
} nbody_frame;

/* Force nodes and Chebyshev points along one axis of a cell of side 1: the same for all
   cells. >>rule */
typedef struct nbody_rule {
    int32_t side;               /* nodes per side */
    int32_t linear;             /* 1: even nodes, linear */
    int32_t stencil;            /* nodes per side that one interpolation uses: 2, or side */
    nbody_real t[NBODY_MAX_ORDER];       /* where they are, ascending, 0 .. 1 */
    nbody_real scale[NBODY_MAX_ORDER];   /* of the Lagrange polynomial that is 1 at t[i] and 0 at
                                            the others: 1 / product of t[i] - t[j] */
    nbody_real to_child[2][NBODY_MAX_ORDER][NBODY_MAX_ORDER]; /* [half][a][i]: weight of the
                                                                 parent's node i for node a of the
                                                                 child in that half (L2L). M2M uses
                                                                 the same weights */
} nbody_rule;

/* Serial, laws with tables of their own on each level: those that the block of tables holds, from
   one call to the next. >>kept */
typedef struct nbody_kept {
    double edge, soften2, length;   /* as in the frame; length: of logarithms, else 0 */
    int32_t law;                /* and core: law + 16 core */
    int32_t slots;              /* tables that there is room for; 0: one is held, of all levels or
                                   of the last one */
    uint64_t levels;            /* bit l: that of level l is there */
} nbody_kept;

typedef struct nbody_block { void *memory; size_t bytes; } nbody_block;

enum { NBODY_BLOCKS = 10 };

struct nbody_i_lattice; /* more/nbody_periodic.h */

typedef struct nbody {
    int32_t n;                  /* bodies */
    nbody_desc desc;            /* as resolved: all defaults filled in */
    nbody_frame *frame;         /* NULL: nothing was built */

    int32_t *id;                /* [n] id of the body at a place: by cell, in Morton order; DIRECT:
                                   input order */
    nbody_real *x, *y, *m;      /* [n] by place, in units of frame->length and frame->mass */
    nbody_real *acts;           /* [n] the masses that act: m, but for >>crowds */
    nbody_cell *cell;           /* [frame->cells]; DIRECT: none */

    nbody_rule rule;            /* of nodes, and of CHEBYSHEV sources */
    int32_t per_cell;           /* sources of a cell at most: subcells^2, or order^2 */
    int32_t *made;              /* [cell] MASS_CENTRES: number of sources; a leaf on the last level
                                   has none: its bodies act */
    nbody_real *vx, *vy;        /* [cell * per_cell] MASS_CENTRES: their positions (as x, y) */
    nbody_real *vm;             /* [cell * per_cell] their masses (as m). CHEBYSHEV: point
                                   i + order * j of the rule */
    nbody_real *vxx, *vxy, *vyy;/* [cell * per_cell] VIRTUAL_PARTICLES of order 2: second moments of
                                   mass around vx, vy */
    int32_t nodes;              /* side^2, 0: the method has none */
    nbody_real *fx, *fy, *fp;   /* [cell * nodes] local expansions: force and potential of all far
                                   cells on unit mass, in the units of the arrays; fp only where a
                                   potential was requested */
    nbody_real *table;          /* the M2L table: >>table, >>series */
    size_t table_step;          /* reals from one level's table to the next; 0: there is one */
    int32_t series;             /* numbers of a series, 0: M2L goes without. >>series */
    nbody_real *moment, *local; /* [cell * series] the series of a cell's sources, and of its far
                                   cells */

    struct nbody_i_lattice *lattice; /* sums over images: more/nbody_periodic.h */
    nbody_real *images;         /* and the M2L table of level 2, with all images */

    int32_t bad_id;             /* after NBODY_NOT_FINITE, NBODY_BAD_MASS; else -1 */
    int32_t cuda_error;         /* after NBODY_CUDA_ERROR: the cudaError_t */
    int32_t table_kind;         /* what `table` holds */
    nbody_kept kept;
    int32_t choose;             /* 1: NBODY_AUTO, 3: with potentials; see >>choose. 0: no choice */
    nbody_block block[NBODY_BLOCKS]; /* memory, kept until nbody_free */
} nbody;

/* ----------------------------------------------------------------------------------------------
   >>api: functions. Unless a comment says otherwise, a call on a const nbody may run in many
   threads at once, and a pointer that is NULL, a count below 0 or a bad stride is
   NBODY_BAD_ARGUMENT. The walks (nbody_far_of, nbody_near_of, ...) are declared at >>walk.
   ---------------------------------------------------------------------------------------------- */

/* NBODY_VERSION_... of the file that made the functions, as major * 10000 + minor * 100 + patch. */
NBODY_API int nbody_version(void);

/* English text of a result: what is wrong, and the field to change. Never NULL. */
NBODY_API const char *nbody_result_text(nbody_result result);

/* `*out` = desc with every default filled in for n bodies (desc NULL: all defaults). NBODY_BAD_...
   says what is wrong with desc. */
NBODY_API nbody_result nbody_defaults(nbody_desc *out, const nbody_desc *desc, int32_t n);

/* Number of levels that suits n uniformly distributed bodies, for this method and order: a value
   for desc.levels where all leaves shall be on one level, as in the source. At least 1; 1 where
   desc is refused. */
NBODY_API int32_t nbody_levels_for(const nbody_desc *desc, int32_t n);

/* Allocates the memory that n uniformly distributed bodies need, with potentials, and empties the
   nbody. Refused as nbody_build. Not thread-safe on one nbody. */
NBODY_API nbody_result nbody_reserve(nbody *sim, const nbody_desc *desc, int32_t n);

/* Builds the tree and its sources (DIRECT: copies the bodies), without any force: then
   nbody_fields_at and the walks can be called. pos: 2 numbers per body, `stride` bytes apart (0:
   tightly packed). mass: [n], NULL: all 1. n = 0 is valid. O(n levels). NBODY_BAD_...,
   NBODY_NOT_FINITE, NBODY_TOO_LARGE, NBODY_TOO_MANY, NBODY_OUT_OF_MEMORY, NBODY_NOT_RUN leave it
   empty. Not thread-safe on one nbody. */
NBODY_API nbody_result nbody_build(nbody *sim, const nbody_desc *desc, const nbody_real *pos,
                                   size_t stride, const nbody_real *mass, int32_t n);

/* acc[2 i], acc[2 i + 1] = acceleration of body i: force over mass (Kalms equation 6 over m_i),
   defined for bodies of mass 0 too. Builds the tree; see nbody_build. acc may not overlap the
   input. Cost: the terms of the table at >>method; DIRECT: n^2. */
NBODY_API nbody_result nbody_accelerations(nbody *sim, const nbody_desc *desc,
                                           const nbody_real *pos, size_t stride,
                                           const nbody_real *mass, int32_t n, nbody_real *acc);

/* The same, with the potential [n] at each body, without its own; either output may be NULL.
   Potentials about double the cost (NBODY_INVERSE: two to three times that of forces). */
NBODY_API nbody_result nbody_fields(nbody *sim, const nbody_desc *desc, const nbody_real *pos,
                                    size_t stride, const nbody_real *mass, int32_t n,
                                    nbody_real *acc, nbody_real *potential);

/* Terms of the last evaluation. */
typedef struct nbody_counts {
    int32_t cells, leaves;
    int32_t levels;             /* of the deepest leaf, + 1 */
    int64_t near_terms;         /* P2P: bodies on bodies, itself included (not in crowds) */
    int64_t far_terms;          /* sources on bodies or nodes, bodies on nodes (M2P, P2L, M2L
                                   without table) */
    int64_t table_terms;        /* M2L by table: a product and a sum per force component; by powers:
                                   for all of them */
} nbody_counts;

/* Counts these terms by the walks. NBODY_NOT_BUILT. O(cells). */
NBODY_API nbody_result nbody_count(const nbody *sim, nbody_counts *counts);

/* NBODY_OK, or NBODY_INVALID when the structure is damaged. Checked: cells and their bodies are
   nested and in Morton order, each id occurs once, `beside` is as >>cells makes it, sources have
   the mass of their cells, and all bodies act on every leaf exactly once. For tests and students.
   NBODY_NOT_BUILT, NBODY_OUT_OF_MEMORY: it allocates n bytes. O(n levels). */
NBODY_API nbody_result nbody_validate(const nbody *sim);

/* Writes the tree into `bytes` (room: `capacity`): a header, then position and mass of each body,
   12 bytes (double: 24). `*needed`: the size, also when it did not fit (NBODY_BUFFER_TOO_SMALL;
   NULL with 0 asks for it). NBODY_CELLS_FULL: the tree is one of a GPU whose desc.max_cells was too
   small. Files are for machines of the same byte order and the same NBODY_REAL. O(n). */
NBODY_API nbody_result nbody_save(const nbody *sim, void *bytes, int64_t capacity, int64_t *needed);

/* Reads a saved tree, as nbody_build leaves it: walks, fields at points and fields of other masses
   give the bits of the saved one, without the program that had the bodies, and with
   what NBODY_AUTO chose there. desc (NULL: defaults) gives allocators, parallel and, if the
   file's law is NBODY_FUNCTION, the function (NBODY_BAD_ARGUMENT without one); all else comes
   from the bytes, and strides are the default. Cells and sources are computed, not read: so a
   file has a quarter of the tree's bytes, and any bytes are safe. Damaged ones are refused
   (NBODY_BAD_FILE) after a checksum; and where the tree is not as large as the header says. It
   is empty after a refusal. Cost, memory and other results: nbody_build, and 12 bytes per body
   (double: 24) while it reads. */
NBODY_API nbody_result nbody_load(nbody *sim, const nbody_desc *desc, const void *bytes,
                                  int64_t size);

/* Bytes of memory that sim holds. */
NBODY_API int64_t nbody_bytes(const nbody *sim);

/* Frees the memory and empties sim; an empty one is valid. */
NBODY_API void nbody_free(nbody *sim);

/* Stop here if you only need the API; the walks are next, and are part of it:

       nbody_far far_cells = nbody_far_of(&sim, cell);      lists 2 and 4: what acts on all of
       while (nbody_next_far(&far_cells))                   `cell`, on its own level
           use(far_cells.cell);
       nbody_near nearby = nbody_near_of(&sim, leaf);       lists 1 and 3: what else acts on the
       while (nbody_next_near(&nearby))                     bodies of a leaf
           use(nearby.cell, nearby.whole);              whole: by its bodies; else by its sources */

/* ----------------------------------------------------------------------------------------------
   >>numbers: arithmetic that must round identically on CPU and GPU: products, powers of two, roots
   ---------------------------------------------------------------------------------------------- */

/* a * b, rounded. nvcc would contract a plain product and a following sum into a fused
   multiply-add, which rounds once and gives other bits. */
NBODY_I_LANE_FN nbody_real nbody_i_times(nbody_real a, nbody_real b)
{
#if defined(__CUDA_ARCH__) && NBODY_I_REAL_KIND == 1
    return __fmul_rn(a, b);
#elif defined(__CUDA_ARCH__)
    return __dmul_rn(a, b);
#else
    return a * b;
#endif
}

/* The same for double: cell coordinates, scales and sources are computed in double in every
   build. */
NBODY_I_LANE_FN double nbody_i_product(double a, double b)
{
#if defined(__CUDA_ARCH__)
    return __dmul_rn(a, b);
#else
    return a * b;
#endif
}

/* Neither NaN nor infinite: not all bits of the exponent are set. Comparisons would be optimised
   away under -ffinite-math-only. */
NBODY_FN int nbody_i_finite(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7FF0000000000000u) != 0x7FF0000000000000u;
}

/* clang before 15 compiles a library call under the flags of the file, whatever the pragmas say,
   and would then approximate the square root of a float. */
#if defined(NBODY_I_STRICT_CLANG) && __clang_major__ < 15 && defined(__SSE2__) && defined(__GNUC__)
#ifdef __AVX__
#define NBODY_I_ROOT_BY_ASM "vsqrtps %0, %0"
#else
#define NBODY_I_ROOT_BY_ASM "sqrtps %0, %0"
#endif
#endif

/* 1 / sqrt(u), rounded twice, as on every machine. */
NBODY_FN nbody_real nbody_i_inverse_root(nbody_real u)
{
#if NBODY_I_REAL_KIND == 1 && defined(NBODY_I_ROOT_BY_ASM)
    __asm__(NBODY_I_ROOT_BY_ASM : "+x"(u));
    return 1 / u;
#elif NBODY_I_REAL_KIND == 1 && defined(__CUDA_ARCH__)
    return __fdiv_rn(1, __fsqrt_rn(u)); /* also under -use_fast_math */
#elif NBODY_I_REAL_KIND == 1
    return 1 / sqrtf(u);
#else
    return 1 / sqrt(u);
#endif
}

/* 2^e for |e| <= 1022. */
NBODY_FN double nbody_i_power(int e)
{
    double power = 1, base = e < 0 ? 0.5 : 2;
    int left = e < 0 ? -e : e;
    for (; left > 0; left /= 2, base *= base)
        if (left % 2) power *= base;
    return power;
}

/* The power of two above x: 2^(e - 1) <= x < 2^e. 1 for 0. */
NBODY_FN double nbody_i_unit(double x)
{
    int e = 0;
    (void)frexp(x, &e);
    return x > 0 ? nbody_i_power(e > 1000 ? 1000 : e < -1000 ? -1000 : e) : 1;
}

/* ln u, for normal u > 0: the same bits on both sides. >>logarithms */
NBODY_I_LANE_FN double nbody_i_log(double u);
NBODY_I_LANE_FN nbody_real nbody_i_log_of(nbody_real u);

/* ----------------------------------------------------------------------------------------------
   >>sums: compensated summation of partial sums of NBODY_CHUNK terms

   A plain float sum of n terms loses about log2(n) / 2 bits, and more in an unlucky order. Here a
   plain partial sum has 64 terms at most. The rounding error of adding it to the total is exact to
   compute (Knuth's two-sum) and is accumulated in a second number, the compensation. The error
   stays that of 64 terms, for a dozen operations more per 64 terms. (Kalms section 7.3 saw the
   length of forces go wrong as n grew, and attributed it to such sums. Up to 100,000 bodies the
   error is as large without them: a virtual particle is exact only while its sub-cell holds one
   body.)
   ---------------------------------------------------------------------------------------------- */

enum { NBODY_I_X, NBODY_I_Y, NBODY_I_POTENTIAL, NBODY_I_PARTS };

/* Two-sum: adds `partial` to the sum so far, total + compensation. `seen` is the portion of partial
   that arrived in sum, and sum - seen the portion of total: what is missing of both goes to the
   compensation. Float, 16777216 + 1: sum is 16777216, seen 0, compensation 1. */
NBODY_FN void nbody_i_carry(nbody_real *partial, nbody_real *total, nbody_real *compensation)
{
    nbody_real const sum = *total + *partial, seen = sum - *total;
    *compensation += (*total - (sum - seen)) + (*partial - seen);
    *total = sum;
    *partial = 0;
}

/* A target: where a force is computed, and its sums so far. */
typedef struct nbody_i_target {
    nbody_real x, y;
    int32_t place;              /* of the body, -1: not a body */
    int32_t terms;              /* added to `partial` */
    nbody_real partial[NBODY_I_PARTS], total[NBODY_I_PARTS], compensation[NBODY_I_PARTS];
} nbody_i_target;

/* A target without any sums. place: of its body, -1: not a body. */
NBODY_FN nbody_i_target nbody_i_target_at(nbody_real x, nbody_real y, int32_t place)
{
    nbody_i_target const t = {x, y, place, 0, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}};
    return t;
}

/* Adds the partial sums of a target to its totals. */
NBODY_FN void nbody_i_carry_target(nbody_i_target *t)
{
    int p;
    for (p = 0; p < NBODY_I_PARTS; p++)
        nbody_i_carry(&t->partial[p], &t->total[p], &t->compensation[p]);
    t->terms = 0;
}

/* The law, in the units of the arrays: frame->length and frame->mass. */
typedef struct nbody_i_law {
    nbody_law law;              /* NBODY_VORTEX: NBODY_INVERSE, which is turned when it is stored */
    int softened;               /* desc.softening > 0, with NBODY_PLUMMER */
    int core;                   /* NBODY_GAUSSIAN: g and phi have factors, >>part-hooks */
    int potential;              /* is it requested? */
    nbody_real soften2;         /* frame->soften2 */
    nbody_real core2, over_core2; /* frame->core2, 1 / frame->core2 */
    nbody_real log_length;      /* ln of the unit of length: potentials of NBODY_INVERSE are
                                   logarithms of your lengths */
    nbody_function function;    /* NBODY_FUNCTION: the law, and the unit of length */
    double length;
} nbody_i_law;

/* xx, xy, yy: second moments of mass, >>force. */
typedef struct nbody_i_source { nbody_real x, y, m, xx, xy, yy; int32_t place; } nbody_i_source;

/* ----------------------------------------------------------------------------------------------
   >>part-hooks: what the functions of one element ask parts (>>parts). Without the part the answer
   is constant, and the compiler drops what follows
   ---------------------------------------------------------------------------------------------- */

/* gcc keeps upper halves of registers in use across calls of functions that it has seen, and their
   SSE code then waits for them (>>lanes). It has not seen what is noipa. */
#if defined(__GNUC__) && __GNUC__ >= 8 && !defined(__clang__) && !defined(__CUDACC__)
#define NBODY_I_UNSEEN_FN static __attribute__((noipa, unused))
#else
#define NBODY_I_UNSEEN_FN NBODY_FN
#endif

typedef struct nbody_i_vector { double x, y; } nbody_i_vector;

/* d^2 / softening^2 where a Gaussian core ends. */
#define NBODY_I_CORE_END (NBODY_I_REAL_KIND == 1 ? 18 : 40)

struct nbody_near; /* >>walk */
struct nbody_i_run; /* >>runs */

#ifdef NBODY_WITH_PERIODIC
#define NBODY_I_PERIODIC
/* From the desc, which kernels have among their parameters: they need not read memory. */
NBODY_FN int nbody_i_is_periodic(const nbody *sim) { return sim->desc.periodic; }
NBODY_FN void nbody_i_bound_square(const nbody_desc *desc, double least[2], double most[2]);
NBODY_FN nbody_real nbody_i_wrapped(const nbody_frame *frame, int axis, double value);
NBODY_FN void nbody_i_shift_on_nodes(const nbody *sim, int32_t from, const nbody_cell *cell,
                                     struct nbody_i_run *run);
NBODY_FN void nbody_i_shift_run(const nbody *sim, const struct nbody_near *walk,
                                struct nbody_i_run *run);
#else
#define nbody_i_is_periodic(sim) ((void)(sim), 0)
#define nbody_i_bound_square(desc, least, most) ((void)0)
#define nbody_i_wrapped(frame, axis, value) \
    ((void)(axis), nbody_i_scaled(value, (frame)->length))
#define nbody_i_shift_on_nodes(sim, from, cell, run) ((void)0)
#define nbody_i_shift_run(sim, walk, run) ((void)0)
#endif

/* A Gaussian core: the factor of g, and phi; what it does to the frame. Vortices: what
   is stored. */
#ifdef NBODY_WITH_VORTEX
#define NBODY_I_VORTEX
NBODY_I_LANE_FN nbody_real nbody_i_core_share(nbody_real q);
NBODY_I_UNSEEN_FN nbody_real nbody_i_core_potential(nbody_real core2, nbody_real u);
NBODY_FN void nbody_i_set_core(nbody_frame *frame, const nbody_desc *desc);
NBODY_FN void nbody_i_turn_force(double x, double y, double force, nbody_i_vector *v);
NBODY_FN double nbody_i_stream_unit(double unit);
#else
#define nbody_i_core_share(q) (q)
#define nbody_i_core_potential(core2, u) (u)
#define nbody_i_set_core(frame, desc) ((void)0)
#define nbody_i_turn_force(x, y, force, v) ((void)0)
#define nbody_i_stream_unit(unit) (unit)
#endif

/* NBODY_FUNCTION: g, phi, and a whole term. On a GPU it takes NBODY_FORCE. */
#ifdef NBODY_WITH_FUNCTION
#define NBODY_I_FUNCTION
NBODY_FN int nbody_i_by_function(const nbody_i_law *law);
NBODY_FN double nbody_i_function_strength(const nbody_i_law *law, double u);
NBODY_FN double nbody_i_function_potential(const nbody_i_law *law, double u);
NBODY_FN void nbody_i_add_function(const nbody_i_law *law, const nbody_i_source *s,
                                   nbody_i_target *t);
static inline int nbody_i_is_named(const nbody_function *nbody_i_given, int nbody_i_both);
#else
#ifdef NBODY_FORCE
#error "nbody.h: NBODY_FORCE needs the part of such laws: define NBODY_WITH_FUNCTION"
#endif
#define nbody_i_by_function(law) ((void)(law), 0)
#define nbody_i_function_strength(law, u) ((void)(law), (u))
#define nbody_i_function_potential(law, u) ((void)(law), (u))
#define nbody_i_add_function(law, s, t) ((void)0)
#endif

/* ----------------------------------------------------------------------------------------------
   >>force: the interaction of one source and one target. d = source - target, u =
   d^2 + softening^2, in the units of the arrays; G is applied last.

       force on unit mass   m g d     g = u^(-3/2), NBODY_INVERSE: 1 / u
                                          (Kalms equation 5, with the sign that attracts)
       potential            m phi     phi = -u^(-1/2), NBODY_INVERSE: ln(u) / 2
   ---------------------------------------------------------------------------------------------- */

/* The law of a desc: what can be told without a frame. */
NBODY_FN nbody_i_law nbody_i_law_in(const nbody_desc *desc, int potential)
{
    int const soft = desc->softening > 0, core = desc->core == NBODY_GAUSSIAN && soft;
    nbody_i_law const law = {desc->law == NBODY_VORTEX ? NBODY_INVERSE : desc->law,
                             soft && !core, core, potential, 0, 0, 0, 0, desc->function, 1};
    return law;
}

/* The law of an evaluation. */
NBODY_FN nbody_i_law nbody_i_law_of(const nbody *sim, int potential)
{
    nbody_i_law law = nbody_i_law_in(&sim->desc, potential);
    law.soften2 = (nbody_real)sim->frame->soften2;
    law.length = sim->frame->length;
    if (law.core) {
        law.core2 = (nbody_real)sim->frame->core2;
        law.over_core2 = (nbody_real)(1 / sim->frame->core2);
    }
    if (law.law == NBODY_INVERSE && potential)
        law.log_length = (nbody_real)nbody_i_log(sim->frame->length);
    return law;
}

/* g. root: 1 / sqrt(u), not used by NBODY_INVERSE. */
NBODY_I_LANE_FN nbody_real nbody_i_strength(const nbody_i_law *law, nbody_real u, nbody_real root)
{
    if (law->core)
        return nbody_i_times(nbody_i_core_share(nbody_i_times(u, law->over_core2)), 1 / u);
    if (law->law == NBODY_INVERSE) return 1 / u;
    return nbody_i_times(root, nbody_i_times(root, root));
}

/* phi. */
NBODY_I_LANE_FN nbody_real nbody_i_potential(const nbody_i_law *law, nbody_real u, nbody_real root)
{
    if (law->core) return nbody_i_core_potential(law->core2, u) + law->log_length;
    if (law->law == NBODY_INVERSE)
        return nbody_i_times((nbody_real)0.5, nbody_i_log_of(u)) + law->log_length;
    return -root;
}

/* Does a source at distance^2 d2 count in the potential? Not a body in its own potential, and no
   unsoftened source at the target's position. */
NBODY_FN int nbody_i_in_potential(const nbody_i_law *law, nbody_real d2, int is_self)
{
    return law->softened || law->core ? !is_self : d2 > 0;
}

/* One source, and its second moments of mass (quadrupole) around itself: Q = (xx xy, xy yy), xx the
   sum of m (x - centre)^2, and so on. A body at the offset s from the centre acts by g (d + s). Of
   its Taylor series in s, the first-order terms cancel around a centre of mass, and Q gives the
   second-order ones. With g' = c g / u and g'' = c (c - 1) g / u^2, derivatives by u (c = -3/2,
   NBODY_INVERSE: -1):

       force of m at d + its quadrupole   m g d + g' (2 Q d + trace(Q) d) + 2 g'' (d Q d) d
       potential                          m phi + g trace(Q) / 2 + g' (d Q d)

   Q is divided by u first: powers of 1 / u alone would overflow for near sources. */
NBODY_FN void nbody_i_add_moments(const nbody_i_law *law, const nbody_i_source *s, nbody_real dx,
                                  nbody_real dy, nbody_real u, nbody_real g,
                                  nbody_real partial[NBODY_I_PARTS])
{
    nbody_real const c = law->law == NBODY_INVERSE ? (nbody_real)-1 : (nbody_real)-1.5,
                     over = 1 / u, cg = nbody_i_times(c, g);
    nbody_real const xx = nbody_i_times(s->xx, over), xy = nbody_i_times(s->xy, over),
                     yy = nbody_i_times(s->yy, over);
    nbody_real const qx = nbody_i_times(xx, dx) + nbody_i_times(xy, dy),
                     qy = nbody_i_times(xy, dx) + nbody_i_times(yy, dy);
    nbody_real const spread = nbody_i_times(dx, qx) + nbody_i_times(dy, qy);
    nbody_real const along =
        nbody_i_times(cg, xx + yy + nbody_i_times(2 * (c - 1), nbody_i_times(spread, over)));
    partial[NBODY_I_X] += nbody_i_times(2 * cg, qx) + nbody_i_times(along, dx);
    partial[NBODY_I_Y] += nbody_i_times(2 * cg, qy) + nbody_i_times(along, dy);
    partial[NBODY_I_POTENTIAL] += nbody_i_times(g, (s->xx + s->yy) / 2) + nbody_i_times(cg, spread);
}

/* Adds one term: m g d, m phi. A body adds d = 0 to its own force, so no term has to be skipped
   (Kalms equation 6: j != i). */
NBODY_FN void nbody_i_add(const nbody_i_law *law, const nbody_i_source *s, int moments,
                          nbody_i_target *t)
{
    nbody_real const dx = s->x - t->x, dy = s->y - t->y;
    nbody_real const d2 = nbody_i_times(dx, dx) + nbody_i_times(dy, dy), u = d2 + law->soften2;
    nbody_real const root = nbody_i_inverse_root(u), g = nbody_i_strength(law, u, root),
                     mg = nbody_i_times(s->m, g);
    if (nbody_i_by_function(law)) {
        nbody_i_add_function(law, s, t);
        return;
    }
    t->partial[NBODY_I_X] += nbody_i_times(mg, dx);
    t->partial[NBODY_I_Y] += nbody_i_times(mg, dy);
    if (law->potential && nbody_i_in_potential(law, d2, s->place == t->place && s->place >= 0))
        t->partial[NBODY_I_POTENTIAL] += nbody_i_times(s->m, nbody_i_potential(law, u, root));
    if (moments) nbody_i_add_moments(law, s, dx, dy, u, g, t->partial);
    if (++t->terms == NBODY_CHUNK) nbody_i_carry_target(t);
}

/* ----------------------------------------------------------------------------------------------
   >>square: cells, keys and units of bodies (Kalms section 5.3)

   The square of level 0, the units in which positions and masses are stored, the column and row of
   a coordinate on any level, and the Morton number of a cell, which is the sort key of its bodies.
   ---------------------------------------------------------------------------------------------- */

/* 2^level, by its exponent: a GPU converts integers slowly. */
NBODY_FN double nbody_i_cells_per_side(int level)
{
    uint64_t const bits = (uint64_t)(1023 + level) << 52;
    double cells;
    memcpy(&cells, &bits, sizeof cells);
    return cells;
}

/* Side of a cell of this level, and how many such sides a unit of length has. */
NBODY_FN double nbody_i_edge(const nbody_frame *frame, int level)
{
    return frame->edge / nbody_i_cells_per_side(level);
}
NBODY_FN double nbody_i_cells_per_unit(const nbody_frame *frame, int level)
{
    return frame->inverse * nbody_i_cells_per_side(level);
}

/* The lower border of column (axis 0) or row (axis 1) `at`. */
NBODY_FN double nbody_i_corner(const nbody_frame *frame, int level, int axis, double at)
{
    return frame->origin[axis] + nbody_i_product(nbody_i_edge(frame, level), at);
}

/* Column or row of a coordinate; what lies on or beyond the border goes to the last cell. */
NBODY_FN int32_t nbody_i_column(const nbody_frame *frame, int level, int axis, nbody_real x)
{
    double const at =
        nbody_i_product((double)x - frame->origin[axis], nbody_i_cells_per_unit(frame, level));
    int32_t const last = (1 << level) - 1;
    return at >= last ? last : at > 0 ? (int32_t)at : 0;
}

/* Position of a coordinate within its cell, 0 .. 1: in double, so that no bits are lost in deep
   levels. */
NBODY_FN nbody_real nbody_i_within(const nbody_frame *frame, int level, int axis, int32_t column,
                                   nbody_real x)
{
    double const at =
        nbody_i_product((double)x - frame->origin[axis], nbody_i_cells_per_unit(frame, level)) -
        column;
    return (nbody_real)(at > 1 ? 1 : at > 0 ? at : 0);
}

/* The bits of a 16-bit number, with zeros interleaved. */
NBODY_FN uint32_t nbody_i_spread(uint32_t v)
{
    v = (v | v << 8) & 0x00FF00FFu;
    v = (v | v << 4) & 0x0F0F0F0Fu;
    v = (v | v << 2) & 0x33333333u;
    return (v | v << 1) & 0x55555555u;
}

/* Morton number of a cell: two bits per level, of the row and the column, level 1 first; the column
   is the lower one, as in ugrid.h (lbvh.h has it higher). On level 2:

       row 3   10 11 14 15   column 3 = 11, row 1 = 01 in binary: row and column interleaved,
           2    8  9 12 13   01 11 = 7. The children of cell c are 4 c .. 4 c + 3 on their level:
           1    2  3  6  7   bodies sorted by the number on the last level are contiguous in each
           0    0  1  4  5   cell of every level. */
NBODY_FN uint32_t nbody_i_code(int32_t x, int32_t y)
{
    return nbody_i_spread((uint32_t)y) << 1 | nbody_i_spread((uint32_t)x);
}

/* The square of level 0: the given one, or, where that has no size or not all bodies, the smallest
   at their lower corner. */
NBODY_FN void nbody_i_make_square(nbody_frame *frame, const nbody_desc *desc, const double least[2],
                                  const double most[2])
{
    double const wide = most[0] - least[0], high = most[1] - least[1];
    int a;
    frame->size = (double)desc->size;
    frame->fitted = !(desc->size > 0);
    for (a = 0; a < 2; a++) {
        frame->min[a] = (double)desc->min[a] + 0;
        if (!(least[a] >= frame->min[a] && most[a] <= frame->min[a] + frame->size))
            frame->fitted = 1;
    }
    if (!frame->fitted) return;
    frame->min[0] = least[0] + 0; /* -0 becomes 0 */
    frame->min[1] = least[1] + 0;
    frame->size = wide > high ? wide : high;
}

/* The largest of |coordinates|, the square's side and softening: L of >>limits. */
NBODY_FN double nbody_i_largest_length(const nbody_frame *frame, const nbody_desc *desc,
                                       const double least[2], const double most[2])
{
    double largest = 0;
    int a;
    for (a = 0; a < 2; a++) {
        largest = least[a] < -largest ? -least[a] : largest;
        largest = most[a] > largest ? most[a] : largest;
    }
    if (frame->size > largest) largest = frame->size;
    if ((double)desc->softening > largest) largest = (double)desc->softening;
    return largest > 0 ? largest : 0.75; /* all bodies at the origin */
}

/* The softening in the units of the arrays, and the least one. */
NBODY_FN void nbody_i_set_softening(nbody_frame *frame, const nbody_desc *desc)
{
    nbody_i_law const law = nbody_i_law_in(desc, 0);
    double const softening = law.core ? 0 : (double)desc->softening / frame->length;
    /* 1 / u^(3/2) is 2^123 then at most, in double 2^1020; 1 / u of the law 1/d 2^116 and 2^680 */
    int const least_u = NBODY_I_REAL_KIND == 2     ? -680
                        : law.law == NBODY_INVERSE ? -116
                                                   : -82;
    frame->core2 = 0;
    frame->deepest = NBODY_MAX_LEVELS;
    if (law.core) nbody_i_set_core(frame, desc);
    frame->given2 = nbody_i_product(softening, softening);
    frame->soften2 = frame->given2;
    if (desc->law != NBODY_FUNCTION) frame->soften2 += nbody_i_power(least_u);
}

/* The square and the units, from the bounds of all bodies and their largest |mass|. 0: wider than a
   number can be. */
NBODY_FN int nbody_i_make_frame(nbody_frame *frame, const nbody_desc *desc, const double least[2],
                                const double most[2], double heaviest)
{
    double largest;
    int a;
    frame->deep = 0;
    nbody_i_make_square(frame, desc, least, most);
    largest = nbody_i_largest_length(frame, desc, least, most);
    /* else powers of a cell's side would overflow */
    if (frame->size < largest * nbody_i_power(NBODY_I_REAL_KIND == 1 ? -24 : -300))
        frame->size = nbody_i_unit(largest) * nbody_i_power(NBODY_I_REAL_KIND == 1 ? -24 : -300);
    frame->length = nbody_i_unit(largest);
    frame->mass = nbody_i_unit(heaviest);
    for (a = 0; a < 2; a++) frame->origin[a] = frame->min[a] / frame->length;
    frame->edge = frame->size / frame->length;
    frame->inverse = 1 / frame->edge;
    nbody_i_set_softening(frame, desc);
    return nbody_i_finite(frame->size) && nbody_i_finite(frame->inverse) &&
           nbody_i_finite(frame->soften2);
}

/* Element i of the caller's array. */
NBODY_FN const nbody_real *nbody_i_at(const nbody_real *data, size_t stride, int32_t i)
{
    return (const nbody_real *)(const void *)((const char *)data + stride * (size_t)i);
}

/* The caller's bodies. */
typedef struct nbody_i_input {
    const nbody_real *pos, *mass;
    size_t stride, mass_stride;
} nbody_i_input;

/* The mass of the caller's body i. */
NBODY_FN nbody_real nbody_i_mass(const nbody_i_input *input, int32_t i)
{
    if (input->mass) return *nbody_i_at(input->mass, input->mass_stride, i);
    return 1; /* not by ?:, which clang takes for finite under -ffast-math */
}

/* A body in the units of the arrays: divisions by powers of two, exact. */
NBODY_FN nbody_real nbody_i_scaled(double value, double unit) { return (nbody_real)(value / unit); }

/* A coordinate of a body or point. Bodies outside a periodic square have images inside. */
NBODY_FN nbody_real nbody_i_placed(const nbody_frame *frame, int axis, double value)
{
    return frame->periodic ? nbody_i_wrapped(frame, axis, value)
                           : nbody_i_scaled(value, frame->length);
}

/* A coordinate of a point, in the units of the arrays; clamped to where d^2 does not overflow. */
NBODY_FN nbody_real nbody_i_point_at(double value, double unit)
{
    double const most = NBODY_I_REAL_KIND == 1 ? 1e18 : 1e150, at = value / unit;
    return (nbody_real)(at > most ? most : at < -most ? -most : at);
}

/* Key of body i: the Morton number of its cell on the last level. */
NBODY_FN uint32_t nbody_i_key(const nbody_frame *frame, const nbody_i_input *input, int32_t i,
                              int levels)
{
    const nbody_real *p = nbody_i_at(input->pos, input->stride, i);
    return nbody_i_code(
        nbody_i_column(frame, levels - 1, 0, nbody_i_placed(frame, 0, (double)p[0])),
        nbody_i_column(frame, levels - 1, 1, nbody_i_placed(frame, 1, (double)p[1])));
}

/* Copies the mass of the caller's body i to `place`. */
NBODY_FN void nbody_i_place_mass(const nbody *sim, const nbody_i_input *input, int32_t place,
                                 int32_t i)
{
    sim->m[place] = nbody_i_scaled((double)nbody_i_mass(input, i), sim->frame->mass);
    sim->acts[place] = sim->m[place];
}

/* Copies the caller's body i to `place`. */
NBODY_FN void nbody_i_place(const nbody *sim, const nbody_i_input *input, int32_t place, int32_t i)
{
    const nbody_real *p = nbody_i_at(input->pos, input->stride, i);
    sim->id[place] = i;
    sim->x[place] = nbody_i_placed(sim->frame, 0, (double)p[0]);
    sim->y[place] = nbody_i_placed(sim->frame, 1, (double)p[1]);
    nbody_i_place_mass(sim, input, place, i);
}

/* ----------------------------------------------------------------------------------------------
   >>cells: one level from the level above

   Bodies are sorted by key, so a cell is a range of them, and its children are found by binary
   search. `beside`, the cells that touch a cell, follows from that of its parent.
   ---------------------------------------------------------------------------------------------- */

/* begin[q] = the first of keys first .. end - 1 that lies in quarter q or later; begin[4] = end.
   shift: of the quarter's two bits. Bodies of quarters 0 0 1 3 3 give begin 0 2 3 3 5: quarter 2 is
   empty. */
NBODY_FN void nbody_i_quarters(const uint32_t *keys, int32_t first, int32_t end, int shift,
                               int32_t begin[5])
{
    uint32_t q;
    begin[0] = first;
    begin[4] = end;
    for (q = 1; q < 4; q++) {
        int32_t low = begin[q - 1], high = end;
        while (low < high) {
            int32_t const mid = low + (high - low) / 2;
            if ((keys[mid] >> shift & 3) < q) low = mid + 1;
            else high = mid;
        }
        begin[q] = low;
    }
}

/* More bodies than a leaf has, and a level below? Levels 0 and 1 of a periodic square always. What
   deep trees ask besides: nbody_i_is_divided. */
NBODY_FN int nbody_i_divides(const nbody *sim, const nbody_cell *cell)
{
    if (cell->level < 2 && nbody_i_is_periodic(sim)) return 1;
    return cell->count > sim->desc.leaf && cell->level < sim->desc.levels - 1 &&
           cell->level < sim->frame->deepest;
}

/* Column or row of a child, of which only 32 bits are kept. */
NBODY_FN int32_t nbody_i_half(int32_t parent, int bit)
{
    return (int32_t)(2 * (uint32_t)parent + (uint32_t)bit);
}

/* The child in quarter q (bit 0: right, bit 1: up), which holds bodies first .. end - 1. */
NBODY_FN nbody_cell nbody_i_child(const nbody_cell *parent, int32_t parent_at, int q, int32_t first,
                                  int32_t end)
{
    nbody_cell const child = {
        nbody_i_half(parent->x, q & 1), nbody_i_half(parent->y, q >> 1), first, end - first,
        parent_at, -1, (uint8_t)(parent->level + 1), 0, 0, 0, {-1, -1, -1, -1, -1, -1, -1, -1, -1}};
    return child;
}

/* The cell of level 0: all n bodies, and only itself beside it. */
NBODY_FN nbody_cell nbody_i_root(int32_t n)
{
    nbody_cell const root = {0, 0, 0, n, -1, -1, 0, 0, 1, 0, {0, -1, -1, -1, -1, -1, -1, -1, -1}};
    return root;
}

/* The bits of a column's number that count in comparisons on a level. In a periodic square those of
   the level: so the last column is next to column 0. */
NBODY_FN uint32_t nbody_i_column_bits(const nbody *sim, int level)
{
    return nbody_i_is_periodic(sim) ? (1u << level) - 1 : 0xFFFFFFFFu;
}

/* Along one axis, does a cell touch a smaller one, s levels deeper? On the level of the smaller
   one, the larger has the columns x << s .. ((x + 1) << s) - 1; one more on each side touches it.
   What is asked for lies at most 2 columns farther away, so that 32 bits suffice for s up to 30. */
NBODY_FN int nbody_i_spans(int32_t large, int s, int32_t little, uint32_t bits)
{
    return (((uint32_t)little - ((uint32_t)large << s) + 1) & bits) <= (1u << s) + 1;
}

/* Levels between two cells of which 32 bits can tell whether they touch. */
enum { NBODY_I_SPAN = 30 };

/* The same for more levels: `above`, the ancestor of the smaller cell that is 30 levels deeper than
   the larger one, lies inside, or beside it; then the smaller one must be at its border. deeper: of
   the smaller one below `above`. */
NBODY_FN int nbody_i_spans_deep(int32_t large, int32_t above, int deeper, int32_t little)
{
    uint32_t const at = (uint32_t)above - ((uint32_t)large << NBODY_I_SPAN),
                   last = (1u << deeper) - 1, within = (uint32_t)little & last;
    if (at < 1u << NBODY_I_SPAN) return 1;
    return at == 0xFFFFFFFFu ? within == last : at == 1u << NBODY_I_SPAN && within == 0;
}

/* Do a cell and another of the same level or a deeper one touch? Of cells whose parents do. bits:
   of the deeper one's level. */
NBODY_FN int nbody_i_touch_by(const nbody_cell *cells, const nbody_cell *large,
                              const nbody_cell *little, uint32_t bits)
{
    int const s = little->level - large->level;
    const nbody_cell *above = little;
    if (s <= NBODY_I_SPAN)
        return nbody_i_spans(large->x, s, little->x, bits) &&
               nbody_i_spans(large->y, s, little->y, bits);
    while (above->level > large->level + NBODY_I_SPAN) above = &cells[above->parent];
    return nbody_i_spans_deep(large->x, above->x, s - NBODY_I_SPAN, little->x) &&
           nbody_i_spans_deep(large->y, above->y, s - NBODY_I_SPAN, little->y);
}

/* Do a cell and another of its level or a deeper one touch? */
NBODY_FN int nbody_i_touch(const nbody *sim, const nbody_cell *large, const nbody_cell *little)
{
    return nbody_i_touch_by(sim->cell, large, little, nbody_i_column_bits(sim, little->level));
}

/* Finds the adjacent cells: of the cells adjacent to the parent, the leaves that touch this cell,
   and the children that touch it. (What touches a cell lies in what touches its parent, so nothing
   else needs to be tested.) All nine are read before anything is written: one memory latency on a
   GPU, not nine. The index of a child follows from `quarters`. */
NBODY_FN void nbody_i_find_beside(const nbody *sim, nbody_cell *cell)
{
    const nbody_cell *cells = sim->cell, *parent = &cells[cell->parent];
    int32_t const cx = cell->x, cy = cell->y, level = cell->level;
    uint32_t const bits = nbody_i_column_bits(sim, level);
    int32_t at[9], x[9], y[9], child[9];
    uint8_t deep[9], quarters[9];
    int k, q, found = 0;
    NBODY_I_UNROLL
    for (k = 0; k < 9; k++) at[k] = k < parent->beside_count ? parent->beside[k] : -1;
    NBODY_I_UNROLL
    for (k = 0; k < 9; k++) {
        const nbody_cell *around = &cells[at[k] < 0 ? 0 : at[k]];
        x[k] = around->x;
        y[k] = around->y;
        child[k] = around->child;
        deep[k] = around->level;
        quarters[k] = around->quarters;
    }
    NBODY_I_UNROLL
    for (k = 0; k < 9; k++) {
        int const s = level - deep[k];
        if (at[k] < 0) continue;
        if (child[k] < 0 &&
            (s > NBODY_I_SPAN ? nbody_i_touch(sim, &cells[at[k]], cell)
                              : nbody_i_spans(x[k], s, cx, bits) &&
                                    nbody_i_spans(y[k], s, cy, bits)))
            cell->beside[found++] = at[k];
        NBODY_I_UNROLL
        for (q = 0; q < 4; q++) {
            if (!(quarters[k] >> q & 1)) continue;
            if (nbody_i_spans(nbody_i_half(x[k], q & 1), 0, cx, bits) &&
                nbody_i_spans(nbody_i_half(y[k], q >> 1), 0, cy, bits))
                cell->beside[found++] = child[k];
            child[k]++;
        }
    }
    cell->beside_count = (uint8_t)found;
}

/* ----------------------------------------------------------------------------------------------
   >>deep: trees of more than NBODY_KEY_LEVELS levels

   A key of 32 bits names the cells of 17 levels. Where bodies cluster in a cell of the last of
   them, the tree is made again with up to 49 levels. The sort then has three such keys, for 16
   levels each. A GPU does so only if desc.levels asks for more than 17. A build then waits for the
   stream, to learn whether bodies cluster; where they do, NBODY_FAST is NBODY_SHARED_MEMORY.

   Numbers near 0 resolve more than those near the border of the square: a float 1e-12 from the
   origin has 24 bits of its own. The square of a deep tree is therefore aligned: its side is a
   power of two, its corner a multiple of a quarter of that. Corners of cells are then exact, and so
   is the position of a body from its cell's corner on, which is computed in double: all bits of
   your numbers count, on every level. For that, a cell's side is 2^-52 of frame->length at least.
   The bodies of a cell of the last level are summed pair by pair; it is not divided further.

   MASS_CENTRES has sources and nodes in coordinates like yours, which are rounded. Its cells are
   not divided where that would be seen: where their children were smaller than 2^-16 (double:
   2^-45) of their distance from the origin.

   The least softening (frame->soften2 where desc.softening is 0) counts in the M2L tables of small
   cells too: >>table. Cells may be nearer to each other than it, and heavy: so the sum of masses is
   1 at most (nbody_i_unit_of_masses), and 1 / u^(3/2) times the mass of a cell does not overflow. A
   float mass below 1e-45 n times the largest one counts as 0 then.
   ---------------------------------------------------------------------------------------------- */

/* On a GPU desc.levels is above 17 only where the tree is deep: a kernel need not read memory. */
NBODY_FN int nbody_i_is_deep(const nbody *sim)
{
#ifdef __CUDA_ARCH__
    return sim->desc.levels > NBODY_KEY_LEVELS;
#else
    return sim->frame->deep;
#endif
}

/* Column (axis 0) or row (axis 1) of a cell, with all its bits: those that the cell has not are in
   its ancestor of level 31. */
NBODY_FN double nbody_i_number(const nbody_cell *cells, const nbody_cell *cell, int axis)
{
    const nbody_cell *above = cell;
    int32_t const low = axis == 0 ? cell->x : cell->y;
    int s;
    if (cell->level <= 31) return low;
    while (above->level > 31) above = &cells[above->parent];
    s = cell->level - above->level;
    return (double)(axis == 0 ? above->x : above->y) * (double)(1 << s) +
           (double)((uint32_t)low & ((1u << s) - 1));
}

/* The lower border of a cell's column (axis 0) or row (axis 1). */
NBODY_FN double nbody_i_corner_of(const nbody *sim, const nbody_cell *cell, int axis)
{
    double const number = nbody_i_is_deep(sim) ? nbody_i_number(sim->cell, cell, axis)
                          : axis == 0                 ? cell->x
                                                      : cell->y;
    return nbody_i_corner(sim->frame, cell->level, axis, number);
}

/* As nbody_i_within. */
NBODY_FN nbody_real nbody_i_within_cell(const nbody *sim, const nbody_cell *cell, int axis,
                                        nbody_real x)
{
    double at;
    if (!nbody_i_is_deep(sim))
        return nbody_i_within(sim->frame, cell->level, axis, axis == 0 ? cell->x : cell->y, x);
    at = nbody_i_product((double)x - nbody_i_corner_of(sim, cell, axis),
                         nbody_i_cells_per_unit(sim->frame, cell->level));
    return (nbody_real)(at > 1 ? 1 : at > 0 ? at : 0);
}

/* Column or row of a coordinate on level 48. The difference is rounded; where that went across the
   border of a cell, it is corrected. */
NBODY_FN int64_t nbody_i_deep_column(const nbody_frame *frame, int axis, nbody_real x)
{
    int const level = NBODY_MAX_LEVELS - 1;
    int64_t const last = ((int64_t)1 << level) - 1;
    double const at =
        nbody_i_product((double)x - frame->origin[axis], nbody_i_cells_per_unit(frame, level));
    int64_t const column = at >= (double)last ? last : at > 0 ? (int64_t)at : 0;
    return column > 0 && (double)x < nbody_i_corner(frame, level, axis, (double)column)
               ? column - 1
               : column;
}

/* Key number `part` of a point: the Morton number of its cell on level 16 (part + 1), within that
   cell of level 16 part in which it lies. */
NBODY_FN uint32_t nbody_i_deep_key(const nbody_frame *frame, nbody_real x, nbody_real y, int part)
{
    int const shift = 16 * (2 - part);
    return nbody_i_code((int32_t)(nbody_i_deep_column(frame, 0, x) >> shift & 0xFFFF),
                        (int32_t)(nbody_i_deep_column(frame, 1, y) >> shift & 0xFFFF));
}

/* The unit of masses. In deep trees and where there are crowds all of them together are at most 1:
   the largest 1 / u^(3/2) times the mass of a cell would overflow else. */
NBODY_FN double nbody_i_unit_of_masses(const nbody *sim, double heaviest)
{
    double const unit = nbody_i_unit(heaviest), all = unit * nbody_i_unit((double)sim->n);
    return sim->frame->light && nbody_i_finite(all) ? all : unit;
}

/* That unit, for masses that have their own so far. */
NBODY_FN double nbody_i_lighter(const nbody *sim)
{
    double const all = sim->frame->mass * nbody_i_unit((double)sim->n);
    return sim->frame->light || !nbody_i_finite(all) ? sim->frame->mass : all;
}

/* Where a key has the two bits of the children of a cell on this level. */
NBODY_FN int nbody_i_shift_of(const nbody *sim, int level)
{
    return 2 * (nbody_i_is_deep(sim) ? 15 - level % 16 : sim->desc.levels - 2 - level);
}

/* Deep trees, from level 17 on: not where bodies would stay together, in a cell of the last level.
   (They are sorted: then the first and the last are in it.) Many at one point are one leaf.
   MASS_CENTRES: not where children would be too small. */
NBODY_FN int nbody_i_is_divided_deep(const nbody *sim, const nbody_cell *cell)
{
    int const shift = NBODY_MAX_LEVELS - sim->desc.levels;
    double x, y;
    int a, together = sim->desc.leaf > 0;
    for (a = 0; a < 2; a++) {
        const nbody_real *at = (a == 0 ? sim->x : sim->y) + cell->first;
        together = together && nbody_i_deep_column(sim->frame, a, at[0]) >> shift ==
                                   nbody_i_deep_column(sim->frame, a, at[cell->count - 1]) >> shift;
    }
    if (together || sim->desc.sources == NBODY_CHEBYSHEV) return !together;
    x = fabs(nbody_i_corner_of(sim, cell, 0));
    y = fabs(nbody_i_corner_of(sim, cell, 1));
    return nbody_i_edge(sim->frame, cell->level + 1) >=
           nbody_i_product(nbody_i_power(NBODY_I_REAL_KIND == 1 ? -16 : -45), x > y ? x : y);
}

/* Is a cell to be divided? */
NBODY_FN int nbody_i_is_divided(const nbody *sim, const nbody_cell *cell)
{
    if (!nbody_i_divides(sim, cell)) return 0;
    if (!nbody_i_is_deep(sim) || cell->level < NBODY_KEY_LEVELS) return 1;
    return nbody_i_is_divided_deep(sim, cell);
}

/* ----------------------------------------------------------------------------------------------
   >>walk: interaction lists (Kalms sections 5.5 and 5.6, Figures 6 to 9; Carrier, lists 1 to 4)

   level 2            level 3
                      . . . . . . . .      c: the cell; on the left its parent
   F   F   F   F      . . . . . . . .      F: far, list 2: 7 and 27 cells, never more than 27
                      F F F F F F . .      n: near, left to the next level
   n   n   n   F      F F F F F F . .      .: acted on the parent, one level up
                      F n n n F F . .
   n   c   n   F      F n c n F F . .      4 x 7 + 27 + 9 = 64: each cell acts once, on the coarsest
                      F n n n F F . .      level where it does not touch the target's cell.
   n   n   n   F      F F F F F F . .

   So farther means coarser. A source misplaces the bodies that it represents by the same share e of
   the distance at most, on every level, which changes 1 / d^2 by at most 1 / (1 - e)^2 - 1 of it
   (Kalms equation 9).

   In an adaptive tree a leaf can be near cells of other levels:

       +-------+---+---+   c     this leaf. Its parent has m, c, m, and a cell that is divided again
       |       | m | c |   A     list 4 (X, P2L): a larger leaf that touches the parent, not c. Too
       |   A   +---+-+-+         near for its sources: its bodies act on the nodes of c
       |       | m |t|t|   s     list 3 (W, M2P): smaller, not touching c, in a cell that does. Too
       |       |   |s|s|         near for the nodes of c: its sources act on the bodies of c
       +-------+---+-+-+   t, m  list 1 (U, P2P): touch c. F above: list 2 (V, M2L)
   ---------------------------------------------------------------------------------------------- */

/* Lists 2 and 4 of a cell: the children of the cells adjacent to its parent, and leaves there, that
   do not touch it. (Kalms section 5.6.2: "considered near on the prior level but far on the current
   level"; Carrier, lists 2 and 4.) */
typedef struct nbody_far {
    int32_t cell;               /* the one found: a cell of the same level, or a larger leaf. Larger
                                   leaves contribute their bodies; other cells their sources, but
                                   leaves of MASS_CENTRES their bodies */
    const nbody *sim;
    int32_t of;                 /* the target cell */
    int32_t k, c;               /* next: child c of the k-th cell adjacent to the parent */
} nbody_far;

NBODY_FN nbody_far nbody_far_of(const nbody *sim, int32_t cell)
{
    nbody_far const walk = {-1, sim, cell, 0, 0};
    return walk;
}

NBODY_FN int nbody_next_far(nbody_far *walk)
{
    const nbody_cell *cells = walk->sim->cell, *of = &cells[walk->of], *parent;
    if (of->parent < 0) return 0;
    parent = &cells[of->parent];
    for (; walk->k < parent->beside_count; walk->k++, walk->c = 0) {
        int32_t const at = parent->beside[walk->k];
        const nbody_cell *around = &cells[at];
        if (around->child < 0) {
            if (walk->c++ == 0 && !nbody_i_touch(walk->sim, around, of)) {
                walk->cell = at;
                return 1;
            }
            continue;
        }
        while (walk->c < around->children) {
            walk->cell = around->child + walk->c++;
            if (!nbody_i_touch(walk->sim, &cells[walk->cell], of)) return 1;
        }
    }
    return 0;
}

/* Lists 1 and 3 of a leaf: leaves that touch it, and, inside cells that touch it, smaller ones that
   do not (Carrier, lists 1 and 3). The walk descends from each cell adjacent to the leaf, and not
   below what it finds. For a point that is not a body it starts at the root, or, where the nodes of
   the cell around it say what is far, at the cells adjacent to that one. */
typedef struct nbody_near {
    int32_t cell;               /* the one found */
    int32_t whole;              /* 1: list 1, body by body; 0: list 3, far enough for its sources.
                                   (Leaves of MASS_CENTRES, and those with no more bodies than
                                   sources, contribute their bodies in list 3 too.) */
    const nbody *sim;
    int32_t of;                 /* the leaf, -1: a point; a divided cell: a point in it */
    nbody_real x, y;            /* the point */
    int32_t k;                  /* the walk is below the k-th cell adjacent to the leaf */
    int32_t at;                 /* next, -1: done */
} nbody_near;

NBODY_FN nbody_near nbody_near_of(const nbody *sim, int32_t leaf)
{
    nbody_near const walk = {-1, 0, sim, leaf, 0, 0, 0, sim->cell[leaf].beside[0]};
    return walk;
}

/* The point is in the units of the arrays. */
NBODY_FN nbody_near nbody_near_point(const nbody *sim, nbody_real x, nbody_real y)
{
    nbody_near const walk = {-1, 0, sim, -1, x, y, 0, 0};
    return walk;
}

/* Column of a point that may lie anywhere, in cells of this level; where no cell can be adjacent to
   it, cells + 2 or -3. */
NBODY_FN int32_t nbody_i_any_column(const nbody_frame *frame, int level, int axis, nbody_real x)
{
    double const at =
        nbody_i_product((double)x - frame->origin[axis], nbody_i_cells_per_unit(frame, level));
    int32_t const cells = 1 << level;
    if (at >= cells + 2) return cells + 2;
    return at >= 0 ? (int32_t)at : at >= -1 ? -1 : -3;
}

/* Along one axis, is a point in the cell's column (row), or in one beside it? The point may lie
   anywhere. */
NBODY_FN int nbody_i_beside_point(const nbody *sim, const nbody_cell *cell, int axis, nbody_real x)
{
    int32_t const of_cell = axis == 0 ? cell->x : cell->y;
    int32_t of_point;
    if (nbody_i_is_periodic(sim))
        return nbody_i_spans(nbody_i_column(sim->frame, cell->level, axis, x), 0, of_cell,
                             (1u << cell->level) - 1);
    if (nbody_i_is_deep(sim)) {
        double const at = nbody_i_product((double)x - nbody_i_corner_of(sim, cell, axis),
                                          nbody_i_cells_per_unit(sim->frame, cell->level));
        return at >= -1 && at < 2;
    }
    of_point = nbody_i_any_column(sim->frame, cell->level, axis, x);
    return of_cell >= of_point - 1 && of_cell <= of_point + 1;
}

/* Is a cell too close to the target to act by its sources? Levels 0 and 1 have no sources. */
NBODY_FN int nbody_i_close(const nbody_near *walk, const nbody_cell *cell)
{
    const nbody_cell *leaf;
    if (cell->level < 2) return 1;
    leaf = walk->of >= 0 ? &walk->sim->cell[walk->of] : NULL;
    if (!leaf || leaf->child >= 0)
        return nbody_i_beside_point(walk->sim, cell, 0, walk->x) &&
               nbody_i_beside_point(walk->sim, cell, 1, walk->y);
    return cell->level < leaf->level ? nbody_i_touch(walk->sim, cell, leaf)
                                     : nbody_i_touch(walk->sim, leaf, cell);
}

/* Sets walk->at to the cell after the subtree of walk->at: the next sibling, or that of an
   ancestor. */
NBODY_FN void nbody_i_step_over(nbody_near *walk)
{
    const nbody_cell *cells = walk->sim->cell;
    int32_t const top = walk->of >= 0 ? cells[walk->of].beside[walk->k] : 0;
    while (walk->at != top) {
        const nbody_cell *parent = &cells[cells[walk->at].parent];
        if (walk->at + 1 < parent->child + parent->children) {
            walk->at++;
            return;
        }
        walk->at = cells[walk->at].parent;
    }
    walk->k++;
    walk->at = walk->of >= 0 && walk->k < cells[walk->of].beside_count
                   ? cells[walk->of].beside[walk->k]
                   : -1;
}

NBODY_FN int nbody_next_near(nbody_near *walk)
{
    while (walk->at >= 0) {
        const nbody_cell *cell = &walk->sim->cell[walk->at];
        int const close = nbody_i_close(walk, cell);
        if (close && cell->child >= 0) {
            walk->at = cell->child;
            continue;
        }
        walk->cell = walk->at;
        walk->whole = close;
        nbody_i_step_over(walk);
        /* a periodic square: those of level 2 that are far from a point act with their images */
        if (!close && cell->level == 2 && nbody_i_is_periodic(walk->sim)) continue;
        return 1;
    }
    return 0;
}

/* ----------------------------------------------------------------------------------------------
   >>crowds: leaves of many bodies at one point

   Bodies at one point exert no force on each other, and act on others as one body of their mass M:
   n of them (parked, dead, the start of a layout) need not cost n^2 terms. So a leaf that has more
   than desc.leaf bodies, and more than NBODY_CHUNK, all at one point, is one source: sim->acts has
   M at its first place, and what rounding left of M at the next. In softened potentials a body has
   (M - m) phi(0) of it. M is summed in 32 parts: those of a warp. Since others may be as near as
   the least softening, the unit of masses is that of deep trees.
   ---------------------------------------------------------------------------------------------- */

enum { NBODY_I_CROWD = 16, NBODY_I_CROWD_PARTS = 32 };

/* May a cell be a crowd? */
NBODY_FN int nbody_i_is_crowded(const nbody *sim, const nbody_cell *cell)
{
    return cell->child < 0 && cell->count > sim->desc.leaf && cell->count > NBODY_CHUNK;
}

/* Is body k of a cell not where its first one is? */
NBODY_FN int nbody_i_is_apart(const nbody *sim, const nbody_cell *cell, int32_t k)
{
    const nbody_real *x = sim->x + cell->first, *y = sim->y + cell->first;
    return x[k] < x[0] || x[k] > x[0] || y[k] < y[0] || y[k] > y[0];
}

/* The mass of every 32nd body. */
NBODY_FN double nbody_i_crowd_part(const nbody *sim, const nbody_cell *cell, int32_t part)
{
    double sum = 0;
    for (; part < cell->count; part += NBODY_I_CROWD_PARTS)
        sum += (double)sim->m[cell->first + part];
    return sum;
}

/* The mass at a place in another unit. */
NBODY_FN void nbody_i_lighten(const nbody *sim, double scale, int32_t place)
{
    sim->m[place] = (nbody_real)((double)sim->m[place] * scale);
    sim->acts[place] = (nbody_real)((double)sim->acts[place] * scale);
}

/* M, and the rest. */
NBODY_FN void nbody_i_split_mass(double mass, nbody_real split[2])
{
    split[0] = (nbody_real)mass;
    split[1] = (nbody_real)(mass - (double)split[0]);
}

/* The bodies of a cell, as sources. */
NBODY_FN int32_t nbody_i_acting(const nbody_cell *cell)
{
    return cell->quarters == NBODY_I_CROWD ? 1 : cell->count;
}

/* Is a body, -1: none, one of the crowd that the cell is? */
NBODY_FN int nbody_i_in_crowd(const nbody_cell *cell, int32_t place)
{
    return cell->quarters == NBODY_I_CROWD && place >= cell->first &&
           place < cell->first + cell->count;
}

/* What its crowd adds to the potential of a body; 0 where the leaf is none. */
NBODY_FN nbody_real nbody_i_crowd_potential(const nbody *sim, const nbody_i_law *law,
                                            const nbody_cell *leaf, int32_t place)
{
    nbody_i_source others = {0, 0, 0, 0, 0, 0, -1};
    nbody_i_target t;
    if (!law->potential || !nbody_i_in_crowd(leaf, place)) return 0;
    t = nbody_i_target_at(0, 0, place);
    others.m = (nbody_real)((double)sim->acts[leaf->first] - (double)sim->m[place] +
                            (double)sim->acts[leaf->first + 1]);
    nbody_i_add(law, &others, 0, &t);
    return t.partial[NBODY_I_POTENTIAL];
}

/* ----------------------------------------------------------------------------------------------
   >>runs: the sources of a cell, contiguous in memory

   What acts is always a run: the bodies of a leaf, the virtual particles of a cell, or masses at
   its Chebyshev points. One loop over a run is P2P, M2P or P2L.
   ---------------------------------------------------------------------------------------------- */

typedef struct nbody_i_run {
    const nbody_real *x, *y, *m;        /* x NULL: points of the rule in the cell at corner */
    const nbody_real *xx, *xy, *yy;     /* second moments, NULL: none */
    double corner[2];
    nbody_real edge;
    int32_t local;                      /* 1: sources are given from `corner` on, so that rounding
                                           is small beside the cell, wherever it lies */
    double shift[2];                    /* periodic square: what moves the cell to the image that
                                           acts: 0, or the edge, up or down */
    int32_t moves;                      /* 1: bodies that act from across its border: targets are
                                           moved too */
    int32_t count;
    int32_t place;                      /* of the first, where the sources are bodies; else -1 */
} nbody_i_run;

/* The bodies at places first .. first + count - 1. */
NBODY_FN nbody_i_run nbody_i_bodies(const nbody *sim, int32_t first, int32_t count)
{
    nbody_i_run run = {sim->x, sim->y, sim->acts, NULL,  NULL, NULL,
                       {0, 0}, 0,      0,         {0, 0}, 0,   count, first};
    if (first == 0) return run; /* without bodies they are NULL */
    run.x += first;
    run.y += first;
    run.m += first;
    return run;
}

/* Does a far cell contribute its bodies? Leaves with MASS_CENTRES (in Kalms section 5.6.3, step 2,
   only parents get virtual particles), and where there are no more bodies than sources. */
NBODY_FN int nbody_i_acts_by_bodies(const nbody *sim, const nbody_cell *cell)
{
    return cell->child < 0 &&
           (sim->desc.sources == NBODY_MASS_CENTRES || nbody_i_acting(cell) <= sim->per_cell);
}

/* The virtual particles of a cell, or the masses at its Chebyshev points. */
NBODY_FN nbody_i_run nbody_i_virtual(const nbody *sim, int32_t at)
{
    const nbody_cell *cell = &sim->cell[at];
    size_t const first = (size_t)at * (size_t)sim->per_cell;
    nbody_i_run run = nbody_i_bodies(sim, 0, 0);
    int const centres = sim->desc.sources == NBODY_MASS_CENTRES;
    /* NULL: only counted (>>cost) */
    run.x = centres && sim->vx ? sim->vx + first : NULL;
    run.y = centres && sim->vy ? sim->vy + first : NULL;
    run.m = sim->vm ? sim->vm + first : NULL;
    if (sim->vxx) {
        run.xx = sim->vxx + first;
        run.xy = sim->vxy + first;
        run.yy = sim->vyy + first;
    }
    run.corner[0] = nbody_i_corner_of(sim, cell, 0);
    run.corner[1] = nbody_i_corner_of(sim, cell, 1);
    run.local = !centres;
    run.edge = (nbody_real)nbody_i_edge(sim->frame, cell->level);
    run.count = centres ? sim->made[at] : sim->per_cell;
    run.place = -1;
    return run;
}

/* The sources of a far cell for a target cell of this level (of nbody_near: its own level). A
   larger leaf is too near for its sources. */
NBODY_FN nbody_i_run nbody_i_run_of(const nbody *sim, int32_t at, int level)
{
    const nbody_cell *cell = &sim->cell[at];
    if (cell->level < level || nbody_i_acts_by_bodies(sim, cell))
        return nbody_i_bodies(sim, cell->first, nbody_i_acting(cell));
    return nbody_i_virtual(sim, at);
}

/* nbody_i_run_of for the nodes of a cell, which CHEBYSHEV has from the corner of their cell on. */
NBODY_FN nbody_i_run nbody_i_run_on_nodes(const nbody *sim, int32_t from, const nbody_cell *cell)
{
    nbody_i_run run = nbody_i_run_of(sim, from, cell->level);
    int a;
    if (sim->desc.sources != NBODY_CHEBYSHEV) return run;
    for (a = 0; a < 2; a++) run.corner[a] = nbody_i_corner_of(sim, cell, a);
    run.local = 1;
    if (nbody_i_is_periodic(sim)) nbody_i_shift_on_nodes(sim, from, cell, &run);
    return run;
}

/* Source s of a run, as the law takes it. */
NBODY_FN nbody_i_source nbody_i_source_of(const nbody *sim, const nbody_i_run *run, int32_t s)
{
    nbody_i_source source;
    int const side = sim->rule.side;
    source.x = run->x ? run->x[s] : nbody_i_times(run->edge, sim->rule.t[s % side]);
    source.y = run->x ? run->y[s] : nbody_i_times(run->edge, sim->rule.t[s / side]);
    if (run->x && run->local) {
        source.x = (nbody_real)((double)source.x - run->corner[0]);
        source.y = (nbody_real)((double)source.y - run->corner[1]);
    }
    source.m = run->m[s];
    source.xx = run->xx ? run->xx[s] : 0;
    source.xy = run->xx ? run->xy[s] : 0;
    source.yy = run->xx ? run->yy[s] : 0;
    source.place = run->place < 0 ? -1 : run->place + s;
    return source;
}

/* A target's coordinate from the corner of the image that acts on, where sources are given so. */
NBODY_FN nbody_real nbody_i_target_from_corner(const nbody_i_run *run, int axis, nbody_real x)
{
    return run->local ? (nbody_real)((double)x - (run->corner[axis] + run->shift[axis])) : x;
}

/* Points act on a body: it is moved to their coordinates. */
NBODY_FN void nbody_i_move_target(const nbody_i_run *run, nbody_i_target *t)
{
    if (run->x && !run->moves) return;
    t->x = nbody_i_target_from_corner(run, 0, t->x);
    t->y = nbody_i_target_from_corner(run, 1, t->y);
}

/* Adds all terms of a run to one target. */
NBODY_FN void nbody_i_add_run(const nbody *sim, const nbody_i_law *law, const nbody_i_run *run,
                              nbody_i_target *t)
{
    nbody_real const x = t->x, y = t->y;
    int32_t s;
    nbody_i_move_target(run, t);
    for (s = 0; s < run->count; s++) {
        nbody_i_source const source = nbody_i_source_of(sim, run, s);
        nbody_i_add(law, &source, run->xx != NULL, t);
    }
    t->x = x;
    t->y = y;
}

/* ----------------------------------------------------------------------------------------------
   >>rule: interpolation between nodes

   order 1: Kalms spreads nodes evenly and interpolates between the 2 x 2 around a body (section
   5.6.4); he does not specify how many, nor what happens at the border of a cell. Here each cell
   has 8 x 8, one chunk, at (i + 1/2) / 8 of its side, and uses only its own nodes: those of the
   adjacent cell have other far cells. Between the outer nodes and the border the line is
   extrapolated.

       |--0-----1-----2x----3-----4-----5-----6-----7--|    u: position of a body, 0 .. 1
       0 1/16  3/16  5/16                         15/16 1   s = 8 u - 1/2;  i = floor(s), 0 .. 6

       f = s - i.  Along a row: F = (1 - f) F_i + f F_i+1; then the same across two rows.
       u = 0.34: s = 2.22, nodes 2 and 3 by 0.78 and 0.22
       u = 0.03: s = -0.26, nodes 0 and 1 by 1.26 and -0.26

   order k (Fong): Chebyshev nodes t_i = (1 - cos(pi (i + 1/2) / k)) / 2, for k = 4: 0.038, 0.309,
   0.691, 0.962. They are denser towards the borders, where polynomials through even nodes
   oscillate. F = sum of w_i(u) F_i, with w_i(u) = product of (u - t_j) / (t_i - t_j) over all j
   except i.
   ---------------------------------------------------------------------------------------------- */

typedef struct nbody_i_stencil {
    int32_t first;
    nbody_real weight[NBODY_MAX_ORDER]; /* of nodes first .. first + rule.stencil - 1 */
} nbody_i_stencil;

/* All w_i(u): left is the product of u - t[j] over the nodes before i, right over those after it;
   there is no division by u - t[i]. */
NBODY_FN void nbody_i_polynomials(const nbody_rule *rule, nbody_real u,
                                  nbody_real weight[NBODY_MAX_ORDER])
{
    nbody_real left = 1, right = 1;
    int i;
    for (i = 0; i < rule->side; i++) {
        weight[i] = nbody_i_times(left, rule->scale[i]);
        left = nbody_i_times(left, u - rule->t[i]);
    }
    for (i = rule->side - 1; i >= 0; i--) {
        weight[i] = nbody_i_times(weight[i], right);
        right = nbody_i_times(right, u - rule->t[i]);
    }
}

/* u: 0 .. 1 within the cell. */
NBODY_FN nbody_i_stencil nbody_i_stencil_at(const nbody_rule *rule, nbody_real u)
{
    nbody_i_stencil stencil;
    stencil.first = 0;
    if (rule->linear) {
        nbody_real const s = nbody_i_times(u, (nbody_real)rule->side) - (nbody_real)0.5;
        int32_t const last = rule->side - 2;
        stencil.first = s >= (nbody_real)last ? last : s > 0 ? (int32_t)s : 0;
        stencil.weight[1] = s - (nbody_real)stencil.first;
        stencil.weight[0] = 1 - stencil.weight[1];
    } else nbody_i_polynomials(rule, u, stencil.weight);
    return stencil;
}

/* The interpolated value: along the rows first, then across them. */
NBODY_FN nbody_real nbody_i_interpolate(const nbody_rule *rule, const nbody_i_stencil *sx,
                                        const nbody_i_stencil *sy, const nbody_real *value)
{
    nbody_real sum = 0;
    int i, j;
    for (j = 0; j < rule->stencil; j++) {
        const nbody_real *row = value + (sy->first + j) * rule->side + sx->first;
        nbody_real along = 0;
        for (i = 0; i < rule->stencil; i++) along += nbody_i_times(sx->weight[i], row[i]);
        sum += nbody_i_times(sy->weight[j], along);
    }
    return sum;
}

/* The stencil of a coordinate x (axis 0) or y (1) in a cell. */
NBODY_FN nbody_i_stencil nbody_i_stencil_in(const nbody *sim, const nbody_cell *cell, int axis,
                                            nbody_real x)
{
    return nbody_i_stencil_at(&sim->rule, nbody_i_within_cell(sim, cell, axis, x));
}

/* L2P: the force of all far cells on a body of this leaf, interpolated from the leaf's nodes by its
   stencils. It is the first term of a target. */
NBODY_FN void nbody_i_l2p_by(const nbody *sim, int32_t at, const nbody_i_stencil *sx,
                             const nbody_i_stencil *sy, int potential, nbody_i_target *t)
{
    size_t const first = (size_t)at * (size_t)sim->nodes;
    t->partial[NBODY_I_X] = nbody_i_interpolate(&sim->rule, sx, sy, sim->fx + first);
    t->partial[NBODY_I_Y] = nbody_i_interpolate(&sim->rule, sx, sy, sim->fy + first);
    if (potential)
        t->partial[NBODY_I_POTENTIAL] = nbody_i_interpolate(&sim->rule, sx, sy, sim->fp + first);
    nbody_i_carry_target(t);
}

/* L2P of a target in this cell. */
NBODY_FN void nbody_i_l2p(const nbody *sim, int32_t at, int potential, nbody_i_target *t)
{
    nbody_i_stencil const sx = nbody_i_stencil_in(sim, &sim->cell[at], 0, t->x),
                          sy = nbody_i_stencil_in(sim, &sim->cell[at], 1, t->y);
    nbody_i_l2p_by(sim, at, &sx, &sy, potential, t);
}

/* ----------------------------------------------------------------------------------------------
   >>up: P2M and M2M, the sources of a cell

   MASS_CENTRES (Kalms section 5.6.1, Figure 10): an even grid over a cell's 2 x 2 children. Bodies
   of children that are leaves, and sources of others, are assigned to its sub-cells. Each sub-cell
   that has mass becomes one virtual particle. With subcells = 4, lengths in sub-cells:

       +---+---+---+---+ 4       bodies                    virtual particles: mass, centre of mass
       |   .   |   . d |         a  mass 1  at 0.2, 0.2
       + . + . + . + . +         b       3     0.6, 0.6    a, b  mass 4  at (1 * 0.2 + 3 * 0.6) / 4
       |   .   |   .   |         c       2     1.5, 0.5                   = 0.5, 0.5
       +---+---+---+---+ 2       d       5     3.2, 3.4    c, d  unchanged
       |   .   |   .   |
       + . + . + . + . +
       |a,b. c |   .   |
       +---+---+---+---+ 0

   CHEBYSHEV (Fong): the force F(x) of unit mass at x on something far away is smooth in x, so it
   can be interpolated between masses at the points t_i of >>rule. Then the sum over all bodies b of
   a cell is one over its points:

       sum_b m_b F(x_b)  ~  sum_b m_b sum_i w_i(x_b) F(t_i)  =  sum_i M_i F(t_i)
       M_i = sum_b m_b w_i(x_b)

   Along one axis, order 2, points 0.146 and 0.854: mass 1 at 0.25 becomes 0.854 and 0.146, with the
   same centre. M2M computes the M_i of a parent from those of its children in the same way.

   The functions here are called by >>up-serial and by the CUDA stages, except NBODY_FAST with
   CHEBYSHEV. Faster forms of the CPU: >>up-lanes.
   ---------------------------------------------------------------------------------------------- */

/* Sums over one sub-cell: mass, first and second moments. Lengths are from the corner of the
   cell. */
typedef struct nbody_i_moments { double m, mx, my, mxx, mxy, myy; } nbody_i_moments;

/* Adds a body, or a source of a child with its own moments. */
NBODY_FN void nbody_i_accumulate(nbody_i_moments *moments, double x, double y,
                                 const nbody_i_source *s)
{
    double const m = (double)s->m, mx = nbody_i_product(m, x), my = nbody_i_product(m, y);
    moments->m += m;
    moments->mx += mx;
    moments->my += my;
    moments->mxx += nbody_i_product(mx, x) + (double)s->xx;
    moments->mxy += nbody_i_product(mx, y) + (double)s->xy;
    moments->myy += nbody_i_product(my, y) + (double)s->yy;
}

/* The virtual particle of a sub-cell: its mass at its centre of mass, source number `at` of all.
   Moments around the corner are moved to the centre: sum of m (x - c)^2 = sum of m x^2 - (sum of m
   x) c. */
NBODY_FN void nbody_i_store_centre(const nbody *sim, const nbody_i_moments *moments,
                                   double corner_x, double corner_y, size_t at)
{
    double const x = moments->mx / moments->m, y = moments->my / moments->m;
    sim->vx[at] = (nbody_real)(corner_x + x);
    sim->vy[at] = (nbody_real)(corner_y + y);
    sim->vm[at] = (nbody_real)moments->m;
    if (!sim->vxx) return;
    sim->vxx[at] = (nbody_real)(moments->mxx - nbody_i_product(moments->mx, x));
    sim->vxy[at] = (nbody_real)(moments->mxy - nbody_i_product(moments->mx, y));
    sim->vyy[at] = (nbody_real)(moments->myy - nbody_i_product(moments->my, y));
}

/* The sources that a child contributes to its parent's sub-cells: its bodies if it is a leaf, else
   its own sources. */
NBODY_FN nbody_i_run nbody_i_given_by(const nbody *sim, int32_t child)
{
    const nbody_cell *cell = &sim->cell[child];
    return cell->child < 0 ? nbody_i_bodies(sim, cell->first, nbody_i_acting(cell))
                           : nbody_i_virtual(sim, child);
}

/* The grid of sub-cells: the cell's lower left corner, and sub-cells per unit of length. */
typedef struct nbody_i_subgrid { double x, y, per_unit; int subcells; } nbody_i_subgrid;

/* The sub-cells of a cell. */
NBODY_FN nbody_i_subgrid nbody_i_subgrid_of(const nbody *sim, const nbody_cell *cell)
{
    nbody_i_subgrid grid;
    grid.x = nbody_i_corner_of(sim, cell, 0);
    grid.y = nbody_i_corner_of(sim, cell, 1);
    grid.subcells = sim->desc.subcells;
    grid.per_unit = nbody_i_cells_per_unit(sim->frame, cell->level) * grid.subcells;
    return grid;
}

/* The number of the sub-cell that holds a point. */
NBODY_FN int nbody_i_subcell_at(const nbody_i_subgrid *grid, nbody_real x, nbody_real y)
{
    double const along = nbody_i_product((double)x - grid->x, grid->per_unit),
                 across = nbody_i_product((double)y - grid->y, grid->per_unit);
    int const last = grid->subcells - 1,
              column = along >= last ? last : along > 0 ? (int)along : 0,
              row = across >= last ? last : across > 0 ? (int)across : 0;
    return column + row * grid->subcells;
}

/* The sums of one sub-cell over the sources of all children. */
NBODY_FN nbody_i_moments nbody_i_subcell_moments(const nbody *sim, const nbody_cell *cell,
                                                 int subcell)
{
    nbody_i_subgrid const grid = nbody_i_subgrid_of(sim, cell);
    nbody_i_moments moments = {0, 0, 0, 0, 0, 0};
    int c;
    int32_t s;
    for (c = 0; c < cell->children; c++) {
        nbody_i_run const run = nbody_i_given_by(sim, cell->child + c);
        for (s = 0; s < run.count; s++) {
            nbody_i_source const source = nbody_i_source_of(sim, &run, s);
            if (nbody_i_subcell_at(&grid, source.x, source.y) != subcell) continue;
            nbody_i_accumulate(&moments, (double)source.x - grid.x, (double)source.y - grid.y,
                               &source);
        }
    }
    return moments;
}

/* P2M, CHEBYSHEV: M_ij, the mass at point (i, j) of a leaf. */
NBODY_FN double nbody_i_mass_of_bodies(const nbody *sim, const nbody_cell *cell, int i, int j)
{
    double sum = 0;
    int32_t b;
    for (b = cell->first; b < cell->first + nbody_i_acting(cell); b++) {
        nbody_i_stencil const sx = nbody_i_stencil_in(sim, cell, 0, sim->x[b]),
                              sy = nbody_i_stencil_in(sim, cell, 1, sim->y[b]);
        sum += nbody_i_product((double)sim->acts[b],
                               (double)nbody_i_times(sx.weight[i], sy.weight[j]));
    }
    return sum;
}

/* M2M, CHEBYSHEV: the contribution of one child to its parent's point (i, j). to_child has the
   weight of point i at the child's point a. */
NBODY_FN nbody_real nbody_i_mass_of_child(const nbody *sim, int32_t child, int i, int j)
{
    const nbody_cell *cell = &sim->cell[child];
    const nbody_real *mass = sim->vm + (size_t)child * (size_t)sim->per_cell;
    nbody_real sum = 0;
    int a, b;
    for (b = 0; b < sim->rule.side; b++) {
        nbody_real along = 0;
        for (a = 0; a < sim->rule.side; a++)
            along +=
                nbody_i_times(sim->rule.to_child[cell->x & 1][a][i], mass[a + b * sim->rule.side]);
        sum += nbody_i_times(sim->rule.to_child[cell->y & 1][b][j], along);
    }
    return sum;
}

/* P2M of a leaf, M2M of a parent: the mass at point (i, j). */
NBODY_FN nbody_real nbody_i_point_mass(const nbody *sim, const nbody_cell *cell, int i, int j)
{
    nbody_real sum = 0;
    int c;
    if (cell->child < 0) return (nbody_real)nbody_i_mass_of_bodies(sim, cell, i, j);
    for (c = 0; c < cell->children; c++) sum += nbody_i_mass_of_child(sim, cell->child + c, i, j);
    return sum;
}

/* ----------------------------------------------------------------------------------------------
   >>table: M2L, CHEBYSHEV sources on CHEBYSHEV nodes

   Source b of a cell and node a of another, (dx, dy) cells apart, have the same distance in every
   such pair of cells on a level. The force of unit mass at b on a is computed once for each offset.
   A left child has far cells at dx = -2 .. 3, a right one at -3 .. 2, the same in y, without the 3
   x 3 around it: 27 offsets for one cell, 7 * 7 - 9 = 40 for all. Without softening one table
   serves all levels: forces and potentials scale with a power of the cells' side (logarithms do
   not: they have a table for each level). [level][offset][x, y, potential][b][a], rows padded to
   whole vectors.
   ---------------------------------------------------------------------------------------------- */

enum { NBODY_I_OFFSETS = 49, NBODY_I_LANES = 16 }; /* -3 .. 3 in both directions; targets that the
                                                      serial code computes at once */

/* A number of targets, rounded up to whole vectors. */
NBODY_FN int32_t nbody_i_whole_lanes(int32_t count)
{
    return (count + NBODY_I_LANES - 1) / NBODY_I_LANES * NBODY_I_LANES;
}

/* Numbers of a row of the table: the nodes, and padding. */
NBODY_FN int32_t nbody_i_row(const nbody *sim) { return nbody_i_whole_lanes(sim->nodes); }

/* Reals of the table of one level. */
NBODY_FN size_t nbody_i_table_level(const nbody *sim)
{
    return (size_t)NBODY_I_OFFSETS * (size_t)sim->per_cell * NBODY_I_PARTS *
           (size_t)nbody_i_row(sim);
}

/* Is one table enough for all levels (but small ones)? */
NBODY_FN int nbody_i_scale_free(const nbody_i_law *law)
{
    return !law->softened && law->law != NBODY_FUNCTION &&
           !(law->law == NBODY_INVERSE && law->potential);
}

/* Cells so small that the least softening counts between far ones, by 2^-22: a table of their own
   has it. Larger ones do without, and need one table. */
NBODY_FN int nbody_i_is_small(const nbody *sim, int level)
{
    double const edge = nbody_i_edge(sim->frame, level);
    return nbody_i_is_deep(sim) && nbody_i_product(edge, edge) < 4194304 * sim->frame->soften2;
}

/* The rows of all sources of a cell, for nodes of a cell at `offset`. */
NBODY_FN nbody_real *nbody_i_table_rows(const nbody *sim, int level, int offset, int component)
{
    size_t const rows =
        (size_t)((offset * NBODY_I_PARTS + component) * sim->per_cell) * (size_t)nbody_i_row(sim);
    return sim->table + rows + sim->table_step * (size_t)level;
}

/* dx and dy are -3 .. 3, in a periodic square across the border too: where there are 8 columns or
   more, the bits of a level's numbers tell them apart. */
NBODY_FN int nbody_i_offset(const nbody_cell *source, const nbody_cell *target)
{
    uint32_t const bits =
        target->level > 2 && target->level < 32 ? (1u << target->level) - 1 : 0xFFFFFFFFu;
    uint32_t const x = ((uint32_t)source->x - (uint32_t)target->x + 3) & bits,
                   y = ((uint32_t)source->y - (uint32_t)target->y + 3) & bits;
    return (int)(y * 7 + x);
}

/* Is the offset in the table? Not if both components are at most 1: such cells touch. */
NBODY_FN int nbody_i_offset_is_far(int offset)
{
    int const x = offset % 7 - 3, y = offset / 7 - 3;
    return x < -1 || x > 1 || y < -1 || y > 1;
}

/* Fills the entries of one offset, source and node, for one level, by the law in double; edge 1
   where the table is scale-free. Padding and near offsets are 0. */
NBODY_FN void nbody_i_fill_entry(const nbody *sim, const nbody_i_law *law, int level, int offset,
                                 int32_t b, int32_t a)
{
    int const side = sim->rule.side, tiny = nbody_i_is_small(sim, level);
    double const edge = nbody_i_scale_free(law) && !tiny ? 1 : nbody_i_edge(sim->frame, level),
                 soften2 = law->softened || tiny ? sim->frame->soften2 : 0;
    double entry[NBODY_I_PARTS] = {0, 0, 0};
    int p;
    if (a < sim->nodes && nbody_i_offset_is_far(offset)) {
        double const dx = nbody_i_product(edge, offset % 7 - 3 + (double)sim->rule.t[b % side] -
                                                    (double)sim->rule.t[a % side]);
        double const dy = nbody_i_product(edge, offset / 7 - 3 + (double)sim->rule.t[b / side] -
                                                    (double)sim->rule.t[a / side]);
        double const u = nbody_i_product(dx, dx) + nbody_i_product(dy, dy) + soften2;
        double g = 1 / u, phi = -1 / sqrt(u);
        if (nbody_i_by_function(law)) {
            g = nbody_i_function_strength(law, u);
            phi = law->potential ? nbody_i_function_potential(law, u) : 0;
        } else if (law->law == NBODY_INVERSE) {
            phi = law->potential ? nbody_i_product(0.5, nbody_i_log(u)) + (double)law->log_length
                                 : 0;
        } else g = nbody_i_product(-phi, g);
        entry[NBODY_I_X] = nbody_i_product(g, dx);
        entry[NBODY_I_Y] = nbody_i_product(g, dy);
        entry[NBODY_I_POTENTIAL] = phi;
    }
    for (p = 0; p < NBODY_I_PARTS; p++)
        nbody_i_table_rows(sim, level, offset, p)[b * nbody_i_row(sim) + a] = (nbody_real)entry[p];
}

/* Factors of the entries, or of a series' values at nodes, on a level: of forces, and of the
   potential. */
NBODY_FN void nbody_i_table_scale(const nbody *sim, const nbody_i_law *law, int level,
                                  nbody_real scale[NBODY_I_PARTS])
{
    double const over = 1 / nbody_i_edge(sim->frame, level);
    double const force = law->law == NBODY_INVERSE ? over : nbody_i_product(over, over);
    int const scale_free =
        sim->series || (nbody_i_scale_free(law) && !nbody_i_is_small(sim, level));
    scale[NBODY_I_X] = scale[NBODY_I_Y] = scale_free ? (nbody_real)force : 1;
    scale[NBODY_I_POTENTIAL] =
        scale_free && law->law == NBODY_INVERSE_SQUARE ? (nbody_real)over : 1;
}

/* ----------------------------------------------------------------------------------------------
   >>series: M2L by powers, for NBODY_INVERSE without softening

   Of this law the potential is the real part of ln z, with points as complex numbers: z = x + i y.
   Around the middle of a cell, in units of its side, the masses M_b at the points z_b have moments
   q_i, and far cells make a power series of coefficients l_j (Carrier, section 2):

       q_i = sum_b M_b z_b^i          i = 0 .. P      the moments, from the masses at the points
       l_j = sum_i T_ij q_i           j = 0 .. P      M2L, for each far cell, D away
       T_ij = -(-1)^i (i + j)! / (i! j! (i + j)) / D^(i + j),   T_00 = ln |D side|
       potential at w: Re sum_j l_j w^j       force: -x + i y = sum_j j l_j w^(j - 1)

   It is a product with (2 P + 1)^2 numbers for forces and potential together, where >>table has
   order^4 for each. A point is at most 0.71 from the middle, D at least 2 long: the terms left out
   shrink as fast as those that Chebyshev points leave out.

   As real numbers: 0 is the real part of the power 0, 2 i - 1 and 2 i are the real and imaginary
   parts of the power i. In `table`: [offset][number of q][number of l]; then the powers of the
   points, [b][number of q]; then what the l are worth at the nodes, [x, y, potential][number of
   l][a]. Rows are padded to whole vectors. None depends on the level, except for the logarithm of
   the side.
   ---------------------------------------------------------------------------------------------- */

/* Numbers of a series: 2 P + 1, one less than whole vectors. 0: the law has none. */
NBODY_FN int32_t nbody_i_series(const nbody_desc *desc)
{
    nbody_i_law const law = nbody_i_law_in(desc, 0);
    if (law.law != NBODY_INVERSE || law.softened || desc->sources != NBODY_CHEBYSHEV) return 0;
    return NBODY_I_LANES * ((desc->order + 3) / 4) - 1;
}

/* Reals of the three parts. */
NBODY_FN size_t nbody_i_series_table(const nbody *sim)
{
    size_t const count = (size_t)sim->series;
    return (NBODY_I_OFFSETS * count + (size_t)sim->per_cell) * (count + 1) +
           NBODY_I_PARTS * count * (size_t)nbody_i_row(sim);
}

/* The three parts of the table: T_ij of an offset, powers of the points, values at the nodes. */
NBODY_FN nbody_real *nbody_i_series_rows(const nbody *sim, int offset)
{
    return sim->table + (size_t)offset * (size_t)sim->series * (size_t)(sim->series + 1);
}

NBODY_FN nbody_real *nbody_i_series_powers(const nbody *sim)
{
    return nbody_i_series_rows(sim, NBODY_I_OFFSETS);
}

NBODY_FN nbody_real *nbody_i_series_values(const nbody *sim, int component)
{
    return nbody_i_series_powers(sim) + (size_t)sim->per_cell * (size_t)(sim->series + 1) +
           (size_t)component * (size_t)sim->series * (size_t)nbody_i_row(sim);
}

typedef struct nbody_i_complex { double re, im; } nbody_i_complex;

/* a b, as complex numbers. */
NBODY_FN nbody_i_complex nbody_i_complex_product(nbody_i_complex a, nbody_i_complex b)
{
    nbody_i_complex c;
    c.re = nbody_i_product(a.re, b.re) - nbody_i_product(a.im, b.im);
    c.im = nbody_i_product(a.re, b.im) + nbody_i_product(a.im, b.re);
    return c;
}

/* T_ij, as the products of one q with one l: parts of q are rows, parts of l are columns. */
NBODY_FN void nbody_i_fill_pair(nbody_real *rows, int32_t step, int i, int j, nbody_i_complex t)
{
    nbody_real *re = rows + (i > 0 ? 2 * i - 1 : 0) * step + (j > 0 ? 2 * j - 1 : 0);
    re[0] = (nbody_real)t.re;
    if (j > 0) re[1] = (nbody_real)t.im;
    if (i == 0) return;
    re[step] = (nbody_real)-t.im;
    if (j > 0) re[step + 1] = (nbody_real)t.re;
}

/* All T_ij of an offset and a j. */
NBODY_FN void nbody_i_fill_series(const nbody *sim, int offset, int j)
{
    double const dx = offset % 7 - 3, dy = offset / 7 - 3, d2 = dx * dx + dy * dy;
    nbody_i_complex power = {1, 0}, over, t;
    double choose = 1;
    int i;
    over.re = dx / d2;
    over.im = -dy / d2;
    for (i = 0; i < j; i++) power = nbody_i_complex_product(power, over);
    for (i = 0; i <= sim->series / 2; i++) {
        double factor = 0;
        if (i > 0) choose = nbody_i_product(choose, j + i) / i;
        /* without the last moment, which has no counterpart: action and reaction then cancel */
        if (i + j > 0 && (i < sim->series / 2 || j == 0))
            factor = (i % 2 ? choose : -choose) / (i + j);
        t.re = nbody_i_product(factor, power.re);
        if (i + j == 0) t.re = nbody_i_product(0.5, nbody_i_log(d2));
        t.im = nbody_i_product(factor, power.im);
        nbody_i_fill_pair(nbody_i_series_rows(sim, offset), sim->series + 1, i, j, t);
        power = nbody_i_complex_product(power, over);
    }
}

/* The powers of a point, and what the coefficients are worth at this node: it is the same point. */
NBODY_FN void nbody_i_fill_powers(const nbody *sim, int32_t a)
{
    int const side = sim->rule.side;
    int32_t const row = nbody_i_row(sim);
    nbody_real *powers = nbody_i_series_powers(sim) + a * (sim->series + 1);
    nbody_real *x = nbody_i_series_values(sim, NBODY_I_X) + a,
               *y = nbody_i_series_values(sim, NBODY_I_Y) + a,
               *phi = nbody_i_series_values(sim, NBODY_I_POTENTIAL) + a;
    nbody_i_complex power = {1, 0}, point;
    int j;
    point.re = (double)sim->rule.t[a % side] - 0.5;
    point.im = (double)sim->rule.t[a / side] - 0.5;
    powers[0] = phi[0] = 1;
    x[0] = y[0] = 0;
    for (j = 1; j <= sim->series / 2; j++) {
        int32_t const re = (2 * j - 1) * row, im = re + row;
        x[re] = (nbody_real)-nbody_i_product(j, power.re);
        x[im] = y[re] = (nbody_real)nbody_i_product(j, power.im);
        y[im] = (nbody_real)nbody_i_product(j, power.re);
        power = nbody_i_complex_product(power, point);
        powers[2 * j - 1] = phi[re] = (nbody_real)power.re;
        powers[2 * j] = (nbody_real)power.im;
        phi[im] = (nbody_real)-power.im;
    }
}

/* Number k of a cell's moments. */
NBODY_FN nbody_real nbody_i_moment(const nbody *sim, int32_t at, int32_t k)
{
    const nbody_real *mass = sim->vm + (size_t)at * (size_t)sim->per_cell;
    const nbody_real *power = nbody_i_series_powers(sim) + k;
    nbody_real sum = 0;
    int32_t b;
    for (b = 0; b < sim->per_cell; b++) sum += nbody_i_times(power[b * (sim->series + 1)], mass[b]);
    return sum;
}

/* Logarithm of a cell's side, in your units. */
NBODY_FN nbody_real nbody_i_log_edge(const nbody *sim, int level)
{
    return (nbody_real)nbody_i_log(nbody_i_edge(sim->frame, level) * sim->frame->length);
}

/* ----------------------------------------------------------------------------------------------
   >>down: L2L and M2L, the nodes of a cell (Kalms section 5.6.6, step 3; there the parent
   distributes the first sum, here the child reads it)

       F(node a)  =  sum_i w_i(position of a in the parent) F(parent's node i)      L2L
                     + sum over far cells of this level                             M2L, P2L

   CHEBYSHEV has nodes and points from the corner of their cell on: what acts on nodes, and what
   points act on, is moved there in double, so that rounding is small beside the cell wherever it
   lies.

   nbody_i_node_force is called by >>down-serial, and on the GPU by NBODY_ONE_THREAD and
   NBODY_MANY_THREADS; NBODY_SHARED_MEMORY and NBODY_FAST have kernels of their own. Faster form of
   the CPU: >>down-lanes, 16 nodes at a time.
   ---------------------------------------------------------------------------------------------- */

/* Does a far cell act on the nodes by the table (list 2), or directly (list 4)? */
NBODY_FN int nbody_i_by_table(const nbody *sim, const nbody_cell *source, const nbody_cell *target)
{
    return sim->desc.sources == NBODY_CHEBYSHEV && source->level == target->level;
}

/* L2L: the parent's expansion at node a of the cell. */
NBODY_FN nbody_real nbody_i_l2l(const nbody *sim, const nbody_cell *cell, int32_t a,
                                const nbody_real *nodes)
{
    int const side = sim->rule.side;
    const nbody_real *value = nodes + (size_t)cell->parent * (size_t)sim->nodes;
    const nbody_real *wx = sim->rule.to_child[cell->x & 1][a % side],
                     *wy = sim->rule.to_child[cell->y & 1][a / side];
    nbody_real sum = 0;
    int i, j;
    for (j = 0; j < side; j++) {
        nbody_real along = 0;
        for (i = 0; i < side; i++) along += nbody_i_times(wx[i], value[i + j * side]);
        sum += nbody_i_times(wy[j], along);
    }
    return sum;
}

/* Node a, as a target: CHEBYSHEV, from the corner of the cell on. */
NBODY_FN nbody_i_target nbody_i_node(const nbody *sim, int32_t at, int32_t a)
{
    const nbody_cell *cell = &sim->cell[at];
    nbody_real const edge = (nbody_real)nbody_i_edge(sim->frame, cell->level);
    int const side = sim->rule.side;
    nbody_real x = nbody_i_times(edge, sim->rule.t[a % side]),
               y = nbody_i_times(edge, sim->rule.t[a / side]);
    if (sim->desc.sources == NBODY_MASS_CENTRES) {
        x += (nbody_real)nbody_i_corner_of(sim, cell, 0);
        y += (nbody_real)nbody_i_corner_of(sim, cell, 1);
    }
    return nbody_i_target_at(x, y, -1);
}

/* The far cells that act by the table, indexed by their offset; -1: none. So they are added in the
   same order for all cells. */
typedef struct nbody_i_around { int32_t source[NBODY_I_OFFSETS]; } nbody_i_around;

/* The far cells of a cell that act by the table. */
NBODY_FN void nbody_i_find_around(const nbody *sim, int32_t at, nbody_i_around *around)
{
    nbody_far walk = nbody_far_of(sim, at);
    memset(around, -1, sizeof *around);
    while (nbody_next_far(&walk))
        if (nbody_i_by_table(sim, &sim->cell[walk.cell], &sim->cell[at]))
            around->source[nbody_i_offset(&sim->cell[walk.cell], &sim->cell[at])] = walk.cell;
}

/* M2L by powers: number k of the series of the cells in `around`. */
NBODY_FN nbody_real nbody_i_local(const nbody *sim, int level, const nbody_i_around *around,
                                  int32_t k)
{
    nbody_real const log_edge = k > 0 ? 0 : nbody_i_log_edge(sim, level);
    nbody_real partial = 0, total = 0, compensation = 0;
    int offset, terms = 0;
    int32_t b;
    for (offset = 0; offset < NBODY_I_OFFSETS; offset++) {
        const nbody_real *row = nbody_i_series_rows(sim, offset) + k;
        const nbody_real *moment =
            sim->moment + (size_t)(around->source[offset] < 0 ? 0 : around->source[offset]) *
                              (size_t)sim->series;
        if (around->source[offset] < 0) continue;
        for (b = 0; b < sim->series; b++)
            partial += nbody_i_times(row[b * (sim->series + 1)], moment[b]);
        if (k == 0) partial += nbody_i_times(log_edge, moment[0]);
        terms += sim->series;
        if (terms < NBODY_CHUNK) continue;
        nbody_i_carry(&partial, &total, &compensation);
        terms = 0;
    }
    nbody_i_carry(&partial, &total, &compensation);
    return total + compensation;
}

/* Adds the partial sums of the table to the totals, scaled for the level. */
NBODY_FN void nbody_i_carry_table(nbody_i_target *t, const nbody_real scale[NBODY_I_PARTS])
{
    int p;
    for (p = 0; p < NBODY_I_PARTS; p++) t->partial[p] = nbody_i_times(t->partial[p], scale[p]);
    nbody_i_carry_target(t);
}

/* M2L: the far cells in `around` on node a. */
NBODY_FN void nbody_i_add_table(const nbody *sim, const nbody_i_law *law, int level,
                                const nbody_i_around *around, int32_t a, nbody_i_target *t)
{
    nbody_real scale[NBODY_I_PARTS];
    int offset, p;
    int32_t b;
    nbody_i_table_scale(sim, law, level, scale);
    for (offset = 0; offset < NBODY_I_OFFSETS; offset++) {
        const nbody_real *mass =
            sim->vm + (size_t)(around->source[offset] < 0 ? 0 : around->source[offset]) *
                          (size_t)sim->per_cell;
        if (around->source[offset] < 0) continue;
        for (p = 0; p < NBODY_I_PARTS - !law->potential; p++) {
            const nbody_real *row = nbody_i_table_rows(sim, level, offset, p) + a;
            for (b = 0; b < sim->per_cell; b++)
                t->partial[p] += nbody_i_times(row[b * nbody_i_row(sim)], mass[b]);
        }
        t->terms += sim->per_cell;
        if (t->terms >= NBODY_CHUNK) nbody_i_carry_table(t, scale);
    }
    nbody_i_carry_table(t, scale);
}

/* The series of the far cells at node a. */
NBODY_FN void nbody_i_add_local(const nbody *sim, const nbody_i_law *law, int32_t at, int32_t a,
                                nbody_i_target *t)
{
    const nbody_real *local = sim->local + (size_t)at * (size_t)sim->series;
    nbody_real scale[NBODY_I_PARTS];
    int p;
    int32_t k;
    nbody_i_table_scale(sim, law, sim->cell[at].level, scale);
    for (p = 0; p < NBODY_I_PARTS - !law->potential; p++) {
        const nbody_real *value = nbody_i_series_values(sim, p) + a;
        for (k = 0; k < sim->series; k++)
            t->partial[p] += nbody_i_times(value[k * nbody_i_row(sim)], local[k]);
    }
    nbody_i_carry_table(t, scale);
}

/* The force at node a of a cell: L2L (none on level 2), then the far cells of this level. */
NBODY_FN nbody_i_target nbody_i_node_force(const nbody *sim, const nbody_i_law *law, int32_t at,
                                           int32_t a)
{
    const nbody_cell *cell = &sim->cell[at];
    nbody_i_target t = nbody_i_node(sim, at, a);
    nbody_far walk = nbody_far_of(sim, at);
    nbody_i_around around;
    memset(&around, -1, sizeof around);
    if (cell->level > 2) {
        t.partial[NBODY_I_X] = nbody_i_l2l(sim, cell, a, sim->fx);
        t.partial[NBODY_I_Y] = nbody_i_l2l(sim, cell, a, sim->fy);
        if (law->potential) t.partial[NBODY_I_POTENTIAL] = nbody_i_l2l(sim, cell, a, sim->fp);
        nbody_i_carry_target(&t);
    }
    while (nbody_next_far(&walk)) {
        const nbody_cell *source = &sim->cell[walk.cell];
        if (nbody_i_by_table(sim, source, cell))
            around.source[nbody_i_offset(source, cell)] = walk.cell;
        else {
            nbody_i_run const run = nbody_i_run_on_nodes(sim, walk.cell, cell);
            nbody_i_add_run(sim, law, &run, &t);
        }
    }
    nbody_i_carry_target(&t);
    if (sim->series) nbody_i_add_local(sim, law, at, a, &t);
    else if (sim->desc.sources == NBODY_CHEBYSHEV)
        nbody_i_add_table(sim, law, cell->level, &around, a, &t);
    return t;
}

/* Stores the sums of node a. */
NBODY_FN void nbody_i_store_node(const nbody *sim, const nbody_i_law *law, int32_t at, int32_t a,
                                 const nbody_i_target *t)
{
    size_t const to = (size_t)at * (size_t)sim->nodes + (size_t)a;
    sim->fx[to] = t->total[NBODY_I_X] + t->compensation[NBODY_I_X];
    sim->fy[to] = t->total[NBODY_I_Y] + t->compensation[NBODY_I_Y];
    if (law->potential)
        sim->fp[to] = t->total[NBODY_I_POTENTIAL] + t->compensation[NBODY_I_POTENTIAL];
}

/* ----------------------------------------------------------------------------------------------
   >>near-bodies: L2P, M2P and P2P, the force on one body: far cells (by nodes, or directly), and
   near bodies (Kalms sections 5.6.3 and 5.6.6, steps 3 and 4)

   nbody_i_body is called by >>bodies-serial, and on the GPU by NBODY_ONE_THREAD and
   NBODY_MANY_THREADS; NBODY_SHARED_MEMORY and NBODY_FAST have kernels of their own. Faster form of
   the CPU: >>bodies-lanes, 16 bodies at a time.
   ---------------------------------------------------------------------------------------------- */

/* M2P, VIRTUAL_PARTICLES: the far cells of the leaf and of all its ancestors, from level 2 down. */
NBODY_FN void nbody_i_add_far(const nbody *sim, const nbody_i_law *law, int32_t leaf,
                              nbody_i_target *t)
{
    int const levels = sim->cell[leaf].level;
    int level, up;
    for (level = 2; level <= levels; level++) {
        int32_t cell = leaf;
        nbody_far walk;
        for (up = levels; up > level; up--) cell = sim->cell[cell].parent;
        walk = nbody_far_of(sim, cell);
        while (nbody_next_far(&walk)) {
            nbody_i_run const run = nbody_i_run_of(sim, walk.cell, level);
            nbody_i_add_run(sim, law, &run, t);
        }
    }
}

/* What acts of the cell that a walk found. */
NBODY_FN nbody_i_run nbody_i_near_run(const nbody *sim, const nbody_near *walk)
{
    const nbody_cell *cell = &sim->cell[walk->cell];
    return walk->whole ? nbody_i_bodies(sim, cell->first, nbody_i_acting(cell))
                       : nbody_i_run_of(sim, walk->cell, cell->level);
}

/* P2P and M2P: all that a walk finds, on one target, but its own crowd. */
NBODY_FN void nbody_i_add_near(const nbody *sim, const nbody_i_law *law, nbody_near walk,
                               nbody_i_target *t)
{
    while (nbody_next_near(&walk)) {
        nbody_i_run run = nbody_i_near_run(sim, &walk);
        if (nbody_i_in_crowd(&sim->cell[walk.cell], t->place)) continue;
        if (nbody_i_is_periodic(sim)) nbody_i_shift_run(sim, &walk, &run);
        nbody_i_add_run(sim, law, &run, t);
    }
}

/* The total force on a body. leaf -1: direct summation. */
NBODY_FN nbody_i_target nbody_i_body(const nbody *sim, const nbody_i_law *law, int32_t leaf,
                                     int32_t place)
{
    nbody_i_target t = nbody_i_target_at(sim->x[place], sim->y[place], place);
    if (leaf < 0) {
        nbody_i_run const run = nbody_i_bodies(sim, 0, sim->n);
        nbody_i_add_run(sim, law, &run, &t);
    } else {
        if (sim->desc.method == NBODY_VIRTUAL_PARTICLES) nbody_i_add_far(sim, law, leaf, &t);
        else if (sim->cell[leaf].level >= 2) nbody_i_l2p(sim, leaf, law->potential, &t);
        nbody_i_add_near(sim, law, nbody_near_of(sim, leaf), &t);
        t.partial[NBODY_I_POTENTIAL] += nbody_i_crowd_potential(sim, law, &sim->cell[leaf], place);
    }
    nbody_i_carry_target(&t);
    return t;
}

/* ----------------------------------------------------------------------------------------------
   >>store: forces and potentials in your units, as they are stored
   ---------------------------------------------------------------------------------------------- */

/* The caller's output arrays. */
typedef struct nbody_i_outcome {
    nbody_real *acc, *potential; /* NULL: not requested */
    size_t acc_stride;
} nbody_i_outcome;

/* What is stored for a force. A function of yours has f(d) in your units; vortices have
   velocities. */
NBODY_FN nbody_i_vector nbody_i_stored(const nbody *sim, double x, double y)
{
    double const g = (double)sim->desc.gravity, unit = sim->frame->mass / sim->frame->length;
    double const force = sim->desc.law == NBODY_FUNCTION         ? g * sim->frame->mass
                         : sim->desc.law == NBODY_INVERSE_SQUARE ? g * (unit / sim->frame->length)
                                                                 : g * unit;
    nbody_i_vector v;
    v.x = nbody_i_product(x, force);
    v.y = nbody_i_product(y, force);
    if (sim->desc.law == NBODY_VORTEX) nbody_i_turn_force(x, y, force, &v);
    return v;
}

/* Stores the sums of a target as the fields of body or point i. */
NBODY_FN void nbody_i_store(const nbody *sim, const nbody_i_outcome *out, int32_t i,
                            const nbody_real total[NBODY_I_PARTS],
                            const nbody_real compensation[NBODY_I_PARTS])
{
    if (out->acc) {
        nbody_real *acc = (nbody_real *)(void *)((char *)out->acc + out->acc_stride * (size_t)i);
        nbody_i_vector const v =
            nbody_i_stored(sim, (double)total[NBODY_I_X] + (double)compensation[NBODY_I_X],
                           (double)total[NBODY_I_Y] + (double)compensation[NBODY_I_Y]);
        acc[0] = (nbody_real)v.x;
        acc[1] = (nbody_real)v.y;
    }
    if (out->potential) {
        double const mass = sim->frame->mass,
                     unit = (double)sim->desc.gravity * (sim->desc.law == NBODY_INVERSE_SQUARE
                                                             ? mass / sim->frame->length
                                                             : mass);
        out->potential[i] = (nbody_real)nbody_i_product(
            (double)total[NBODY_I_POTENTIAL] + (double)compensation[NBODY_I_POTENTIAL],
            sim->desc.law == NBODY_VORTEX ? nbody_i_stream_unit(unit) : unit);
    }
}

/* ----------------------------------------------------------------------------------------------
   >>logarithms
   ---------------------------------------------------------------------------------------------- */

/* ln u, for normal u > 0: both sides need the same bits, and libraries differ. By bits and without
   branches, so that compilers make vector instructions of a loop of it. u = 2^e f with f between
   the roots of 1/2 and 2; r = f - 1 is exact. Adding the difference of the bits of 1 and of
   sqrt(1/2) carries into the exponent where the mantissa is above that of sqrt(1/2). A small
   integer, put into the mantissa of 2^52 (2^23), becomes a number there.

   With s = r / (2 + r), ln f = 2 (s + s^3/3 + s^5/5 ..) = r - s (r - R(s^2)). R interpolates at the
   Chebyshev points of the interval. Error below 0.9 ulp. */
NBODY_I_LANE_FN double nbody_i_log(double u)
{
    double const lead = 0.693147180369123816490, rest = 1.90821492927058770002e-10; /* ln 2 */
    uint64_t bits, exponent;
    double r, e, s, z, w, square, even, odd;
    memcpy(&bits, &u, sizeof bits);
    bits += 0x3FF0000000000000u - 0x3FE6A09E667F3BCDu;
    exponent = bits >> 52 | 0x4330000000000000u;
    bits = (bits & 0x000FFFFFFFFFFFFFu) + 0x3FE6A09E667F3BCDu;
    memcpy(&r, &bits, sizeof r);
    memcpy(&e, &exponent, sizeof e);
    e -= 4503599627370496.0 + 1023;
    r -= 1;
    s = r / (2 + r);
    z = nbody_i_product(s, s);
    w = nbody_i_product(z, z);
    odd = nbody_i_product(w, 0.2222221113479507986 + nbody_i_product(w, 0.1533172160055604127));
    even = nbody_i_product(w, 0.1818288912526172208 + nbody_i_product(w, 0.1461644968504340586));
    even = nbody_i_product(w, 0.2857142862597548492 + even);
    odd = nbody_i_product(w, 0.3999999999989950449 + odd);
    even = nbody_i_product(z, 0.6666666666666669686 + even);
    square = nbody_i_product(nbody_i_product(0.5, r), r);
    return nbody_i_product(e, lead) -
           ((square - (nbody_i_product(s, square + (even + odd)) + nbody_i_product(e, rest))) - r);
}

/* The same for a real: in float ln (1 + r) = r - r^2/2 + r^3 Q(r), Q fitted as R: no division,
   and half as many instructions. Error below 0.83 ulp. */
NBODY_I_LANE_FN nbody_real nbody_i_log_of(nbody_real u)
{
#if NBODY_I_REAL_KIND == 1
    uint32_t bits, exponent;
    float r, e, z, p;
    memcpy(&bits, &u, sizeof bits);
    bits += 0x3F800000u - 0x3F3504F3u;
    exponent = bits >> 23 | 0x4B000000u;
    bits = (bits & 0x007FFFFFu) + 0x3F3504F3u;
    memcpy(&r, &bits, sizeof r);
    memcpy(&e, &exponent, sizeof e);
    e -= 8388608.0f + 127;
    r -= 1;
    z = nbody_i_times(r, r);
    p = nbody_i_times(0.069716114715f, r) - 0.11479733847f;
    p = nbody_i_times(p, r) + 0.11685419923f;
    p = nbody_i_times(p, r) - 0.12425687331f;
    p = nbody_i_times(p, r) + 0.14249057646f;
    p = nbody_i_times(p, r) - 0.1666780232f;
    p = nbody_i_times(p, r) + 0.20000715749f;
    p = nbody_i_times(p, r) - 0.24999996958f;
    p = nbody_i_times(p, r) + 0.3333333118f;
    p = nbody_i_times(nbody_i_times(p, r), z) - nbody_i_times(2.12194440e-4f, e);
    return r + (p - nbody_i_times(0.5f, z)) + nbody_i_times(0.693359375f, e);
#else
    return nbody_i_log(u);
#endif
}

/* ----------------------------------------------------------------------------------------------
   >>cuda-api: the same on a GPU. Plain C may call these functions; one .cu file with
   NBODY_IMPLEMENTATION and NBODY_CUDA makes them. All pointers d_... are device memory. Nothing
   here waits for the GPU unless its comment says so; every launch error is returned as
   NBODY_CUDA_ERROR. An earlier CUDA error of your own that you have not read may be cleared.
   ---------------------------------------------------------------------------------------------- */

#ifdef NBODY_CUDA

/* What kernels take by value: an nbody whose arrays are in device memory. It is a type of its own,
   so that host code cannot dereference device pointers by accident (Kalms section 6.3.7). */
typedef struct nbody_device { nbody sim; } nbody_device;

enum { NBODY_CUDA_SCRATCH = 8 };

typedef struct nbody_cuda {
    nbody_device device;        /* give this to your kernels */
    struct CUstream_st *stream; /* of the last call */
    nbody_block block[NBODY_BLOCKS];         /* device memory: the arrays */
    nbody_block scratch[NBODY_CUDA_SCRATCH]; /* device memory: work space */
} nbody_cuda;

/* Allocates all memory that evaluations of up to n bodies need, with potentials: after it they
   allocate nothing, and a step can be captured in a CUDA graph. A graph keeps n, desc and
   addresses: a later call that needs more memory, or another n or desc, makes it stale. Of a
   periodic square it holds 4 KB of the host's memory besides (desc.allocator). */
NBODY_API nbody_result nbody_cuda_reserve(nbody_cuda *gpu, const nbody_desc *desc, int32_t n,
                                          struct CUstream_st *stream);

/* As the serial functions of these names, with these differences:
   Numbers  Bodies that are not finite are not refused: the forces are then undefined, and
            nbody_cuda_check reports it.
   Deep     With desc.levels above NBODY_KEY_LEVELS each build waits for the stream once, to learn
            whether bodies cluster, and cannot be captured (NBODY_CUDA_ERROR). Where they do, the
            tree is that of the serial code, NBODY_FAST is NBODY_SHARED_MEMORY, and tables take
            the memory of all levels. */
NBODY_API nbody_result nbody_cuda_build(nbody_cuda *gpu, const nbody_desc *desc,
                                        const nbody_real *d_pos, size_t stride,
                                        const nbody_real *d_mass, int32_t n,
                                        struct CUstream_st *stream);
NBODY_API nbody_result nbody_cuda_accelerations(nbody_cuda *gpu, const nbody_desc *desc,
                                                const nbody_real *d_pos, size_t stride,
                                                const nbody_real *d_mass, int32_t n,
                                                nbody_real *d_acc, struct CUstream_st *stream);
NBODY_API nbody_result nbody_cuda_fields(nbody_cuda *gpu, const nbody_desc *desc,
                                         const nbody_real *d_pos, size_t stride,
                                         const nbody_real *d_mass, int32_t n, nbody_real *d_acc,
                                         nbody_real *d_potential, struct CUstream_st *stream);
/* NBODY_NOT_BUILT at once where there is no tree. Else waits for the stream, for n = 0 as well, and
   returns the status of the last evaluation: NBODY_OK, NBODY_NOT_FINITE or NBODY_BAD_MASS
   (device.sim.bad_id: the first such body), NBODY_TOO_LARGE, or NBODY_CELLS_FULL, where `*frame`
   (may be NULL) says how many are needed: set desc.max_cells to that. */
NBODY_API nbody_result nbody_cuda_check(nbody_cuda *gpu, nbody_frame *frame,
                                        struct CUstream_st *stream);

/* Builds the tree of a host nbody on the GPU, from its bodies: the same cells and sources (>>rules,
   Bits), as nbody_cuda_build leaves it. desc.cuda_allocator is the device's if it has one, else the
   host's. Waits for the stream. NBODY_NOT_BUILT: there is no tree; else as nbody_cuda_build.
   Strides are the default. Takes 12 bytes per body (double: 24) of both memories while it
   copies. */
NBODY_API nbody_result nbody_cuda_upload(nbody_cuda *gpu, const nbody *sim,
                                         struct CUstream_st *stream);

/* Copies everything into a host nbody (reusing its memory), where fields_at, walks, count and
   validate then work. Waits for the stream. */
NBODY_API nbody_result nbody_cuda_download(nbody *sim, const nbody_cuda *gpu,
                                           struct CUstream_st *stream);

/* Frees the device memory, in the order of the stream that it was last used on: that stream must
   still exist. One nbody_cuda belongs to one stream at a time; to use it on another, or in kernels
   of your own there, order the two by an event. */
NBODY_API void nbody_cuda_free(nbody_cuda *gpu);

#endif /* NBODY_CUDA */

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif
#endif /* NBODY_H */

/* ==============================================================================================
   >>serial: the serial implementation (CPU)
   ============================================================================================== */

#if defined(NBODY_IMPLEMENTATION) && !defined(NBODY_IMPLEMENTATION_DONE)
#define NBODY_IMPLEMENTATION_DONE
#define NBODY_I_IMPLEMENTED /* in this file: its parts are, too (>>hooks) */

#include <stdlib.h>

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>plain: the method, one number at a time

   This is the whole method: short, and correct for every input. The functions that it calls stand
   above. It runs with desc.stage = NBODY_ONE_THREAD, and in all stages of a file that defines
   NBODY_PLAIN. All other stages of the serial code are faster forms, with the same bits: >>faster,
   entered at two seams, nbody_i_build_faster and nbody_i_fields_faster. (A third one has room for
   their sort.) On the GPU, >>one-thread in cuda/nbody.cu is the same loops.

       nbody_accelerations
         nbody_i_build             bounds, square and units     >>square-serial, >>square
           nbody_i_make_tree       bodies sorted by cell        >>sort
                                   cells, from the root down    >>cells-serial, >>cells
           nbody_i_plain_sources   P2M, M2M: from the leaves up >>up-serial, >>up
         nbody_i_fields_of_tree
           nbody_i_plain_nodes     L2L, M2L: from level 2 down  >>down-serial, >>table, >>down
           nbody_i_plain_bodies    L2P, M2P, P2P: leaf by leaf  >>bodies-serial, >>near-bodies

   With order 1 and desc.levels = L, this is the algorithm of Kalms section 5.6.6: sources are its
   step 2, nodes step 3 (b before a, since a child reads from its parent), bodies the last 3 (b) and
   step 4. VIRTUAL_PARTICLES is that of section 5.6.3; its step 3 is in nbody_i_plain_bodies.

   Each step is a loop over the functions of one element above. Behind them stand memory, the
   defaults of a desc, and tables that are kept. A first reading may trust three second forms: what
   NBODY_AUTO chooses (nbody_i_choose_early, nbody_i_choose), deep trees (nbody_i_is_too_shallow,
   nbody_i_deepen, nbody_i_is_divided_deep) and M2L by powers (nbody_i_plain_series,
   nbody_i_add_local).
   ---------------------------------------------------------------------------------------------- */

typedef enum nbody_i_growth { NBODY_I_EXACT, NBODY_I_AHEAD } nbody_i_growth; /* >>memory */
static nbody_result nbody_i_make_room(nbody *sim, int64_t more, nbody_i_growth growth);
static nbody_result nbody_i_prepare_bodies(nbody *sim, int32_t n, nbody_i_growth growth);
static nbody_result nbody_i_prepare_sources(nbody *sim, nbody_i_growth growth);
static nbody_result nbody_i_prepare_nodes(nbody *sim, int potential, nbody_i_growth growth);

/* >>resolve */
static void nbody_i_make_empty(nbody *sim);
static nbody_result nbody_i_check_input(const nbody_i_input *input, int32_t n);
static nbody_i_input nbody_i_input_of(const nbody_desc *desc, const nbody_real *pos, size_t stride,
                                      const nbody_real *mass);
static nbody_result nbody_i_begin(nbody *sim, const nbody_desc *desc, int32_t n, int potential);
static int nbody_i_has_potential(const nbody_desc *desc);

/* Sorts the bodies and makes the cells: this text, or tasks. */
typedef nbody_result nbody_i_leaves(nbody *sim, const nbody_i_input *input);

/* >>choose, >>deep-serial, >>kept, >>series-serial */
static int nbody_i_choose(nbody *sim, const nbody_i_input *input);
static int nbody_i_is_too_shallow(const nbody *sim);
static int nbody_i_deepen(nbody *sim, int32_t levels);
static void nbody_i_next_keys(const nbody *sim, const nbody_cell *cell, uint32_t *keys);
static int nbody_i_find_table(nbody *sim, const nbody_i_law *law, int level);
static void nbody_i_plain_series(nbody *sim, const nbody_i_law *law);

/* more/nbody_periodic.h */
#ifdef NBODY_WITH_PERIODIC
static void nbody_i_choose_periodic(nbody_desc *desc, int32_t n);
static nbody_result nbody_i_check_periodic(const nbody_desc *desc);
static void nbody_i_bind_lattice(nbody *sim, void *memory);
static nbody_result nbody_i_reserve_lattice(nbody *sim);
static nbody_result nbody_i_prepare_lattice(nbody *sim, nbody_i_growth growth);
static void nbody_i_plain_image_nodes(const nbody *sim, const nbody_i_law *law);
static void nbody_i_sum_images_on(const nbody *sim, int sets, const nbody_i_law *law,
                                  const nbody_i_outcome *out, int32_t first, int32_t count);
#else
#define nbody_i_choose_periodic(desc, n) ((void)0)
#define nbody_i_check_periodic(desc) NBODY_OK
#define nbody_i_reserve_lattice(sim) NBODY_OK
#define nbody_i_prepare_lattice(sim, growth) NBODY_OK
#define nbody_i_plain_image_nodes(sim, law) ((void)0)
#define nbody_i_make_image_nodes(sim, sets, law) ((void)0)
#define nbody_i_sum_images_on(sim, sets, law, out, first, count) ((void)0)
#endif

/* The seams. 0: nothing was done, no room is needed. >>faster */
#ifdef NBODY_PLAIN
#define nbody_i_build_faster(sim, input, n, result) 0
#define nbody_i_fields_faster(sim, sets, law, out, result) ((void)(sets), (void)(law), 0)
#define nbody_i_counters_faster(sim, n) 0
#else
static int nbody_i_build_faster(nbody *sim, const nbody_i_input *input, int32_t n,
                                nbody_result *result);
static int nbody_i_fields_faster(nbody *sim, int sets, const nbody_i_law *law,
                                 const nbody_i_outcome *out, nbody_result *result);
static size_t nbody_i_counters_faster(const nbody *sim, int32_t n);
#endif

/* The blocks of an nbody. WORK: keys and ids of the sort; MORE: masses, sources and nodes of
   further sets; LATTICE: sums over the images of a periodic square, and a table. */
enum {
    NBODY_I_FRAME, NBODY_I_BODIES, NBODY_I_CELLS, NBODY_I_MADE,
    NBODY_I_SOURCES, NBODY_I_NODES, NBODY_I_TABLE, NBODY_I_WORK, NBODY_I_MORE,
    NBODY_I_LATTICE
};
enum { NBODY_I_N_MAX = 0x40000000 - 512 };

/* ----------------------------------------------------------------------------------------------
   >>square-serial: bounds of the bodies, their largest mass, and the first bad one
   ---------------------------------------------------------------------------------------------- */

/* Do sources lie where they do whatever the masses are? The bodies of DIRECT and CHEBYSHEV's points
   do: they take masses of any sign, and serve several sets of masses. Centres of mass do not. */
static int nbody_i_has_fixed_sources(const nbody_desc *desc)
{
    return desc->method == NBODY_DIRECT || desc->sources == NBODY_CHEBYSHEV;
}

/* Bounds of bodies and their largest |mass|, and the first bad one, -1: none. */
typedef struct nbody_i_bounds { double least[2], most[2], heaviest; int32_t bad; } nbody_i_bounds;

/* Bounds of bodies first .. end - 1; stops at the first bad one. */
static nbody_result nbody_i_measure(const nbody *sim, const nbody_i_input *input, int32_t first,
                                    int32_t end, nbody_i_bounds *bounds)
{
    int const any_sign = nbody_i_has_fixed_sources(&sim->desc);
    int32_t i;
    int a;
    memset(bounds, 0, sizeof *bounds);
    for (i = first; i < end; i++) {
        const nbody_real *p = nbody_i_at(input->pos, input->stride, i);
        double const m = (double)nbody_i_mass(input, i), weight = m < 0 ? -m : m;
        bounds->bad = i;
        if (!nbody_i_finite((double)p[0]) || !nbody_i_finite((double)p[1]) || !nbody_i_finite(m))
            return NBODY_NOT_FINITE;
        if (m < 0 && !any_sign) return NBODY_BAD_MASS;
        if (weight > bounds->heaviest) bounds->heaviest = weight;
        for (a = 0; a < 2; a++) {
            double const x = (double)p[a];
            if (i == first || x < bounds->least[a]) bounds->least[a] = x;
            if (i == first || x > bounds->most[a]) bounds->most[a] = x;
        }
    }
    bounds->bad = -1;
    return NBODY_OK;
}

/* Memory, the square and the units of n bodies. */
static nbody_result nbody_i_begin_build(nbody *sim, int32_t n, nbody_i_bounds *bounds)
{
    nbody_result const result = nbody_i_prepare_bodies(sim, n, NBODY_I_AHEAD);
    if (result != NBODY_OK) return result;
    sim->n = n;
    if (sim->desc.periodic) nbody_i_bound_square(&sim->desc, bounds->least, bounds->most);
    if (!nbody_i_make_frame(sim->frame, &sim->desc, bounds->least, bounds->most, bounds->heaviest))
        return NBODY_TOO_LARGE;
    sim->frame->periodic = sim->desc.periodic;
    return sim->desc.periodic ? nbody_i_prepare_lattice(sim, NBODY_I_AHEAD) : NBODY_OK;
}

/* ----------------------------------------------------------------------------------------------
   >>sort: bodies by the Morton number of their cell on the last level; a stable radix sort
   ---------------------------------------------------------------------------------------------- */

/* One counting pass over 8 bits of the keys, from a to b. 0: all keys have the same bits, and
   nothing was moved. */
static int nbody_i_radix_pass(const uint32_t *key_a, const uint32_t *id_a, uint32_t *key_b,
                              uint32_t *id_b, int32_t n, int shift)
{
    int32_t place[256], i, at = 0;
    int d;
    memset(place, 0, sizeof place);
    for (i = 0; i < n; i++) place[key_a[i] >> shift & 255]++;
    if (place[key_a[0] >> shift & 255] == n) return 0;
    for (d = 0; d < 256; d++) {
        int32_t const count = place[d];
        place[d] = at;
        at += count;
    }
    for (i = 0; i < n; i++) {
        int32_t const to = place[key_a[i] >> shift & 255]++;
        key_b[to] = key_a[i];
        id_b[to] = id_a[i];
    }
    return 1;
}

/* Keys of a body: one, in deep trees three. The sort begins with the last. */
static int nbody_i_parts_of_key(const nbody *sim) { return sim->frame->deep ? 3 : 1; }

/* Key number `part` of the caller's body i. */
static uint32_t nbody_i_key_of(const nbody *sim, const nbody_i_input *input, int32_t i, int part)
{
    const nbody_real *p = nbody_i_at(input->pos, input->stride, i);
    if (!sim->frame->deep) return nbody_i_key(sim->frame, input, i, sim->desc.levels);
    return nbody_i_deep_key(sim->frame, nbody_i_scaled((double)p[0], sim->frame->length),
                            nbody_i_scaled((double)p[1], sim->frame->length), part);
}

/* Bits of a key that differ between bodies. */
static int nbody_i_bits_of_key(const nbody *sim)
{
    return sim->frame->deep ? 32 : 2 * (sim->desc.levels - 1);
}

/* Sorts from the lowest byte (each pass is stable), places the bodies, and returns their sorted
   keys. */
static uint32_t *nbody_i_sort(nbody *sim, const nbody_i_input *input)
{
    int32_t const n = sim->n;
    uint32_t *key = (uint32_t *)sim->block[NBODY_I_WORK].memory, *id = key + n, *spare_key = id + n,
             *spare_id = spare_key + n;
    int part, shift;
    int32_t i;
    for (i = 0; i < n; i++) id[i] = (uint32_t)i;
    for (part = nbody_i_parts_of_key(sim) - 1; part >= 0; part--) {
        for (i = 0; i < n; i++) key[i] = nbody_i_key_of(sim, input, (int32_t)id[i], part);
        for (shift = 0; shift < nbody_i_bits_of_key(sim); shift += 8) {
            uint32_t *const had_key = key, *const had_id = id;
            if (!nbody_i_radix_pass(key, id, spare_key, spare_id, n, shift)) continue;
            key = spare_key;
            id = spare_id;
            spare_key = had_key;
            spare_id = had_id;
        }
    }
    for (i = 0; i < n; i++) nbody_i_place(sim, input, i, (int32_t)id[i]);
    return key;
}

/* ----------------------------------------------------------------------------------------------
   >>cells-serial: level by level, from the root down (Kalms section 5.3)

   The cells of a level that are to be divided are counted, so that there is room; then they are
   divided, and `beside` of their children is found.
   ---------------------------------------------------------------------------------------------- */

/* Divides one cell; its children are appended at `*end`. */
static void nbody_i_divide(nbody *sim, const uint32_t *keys, int32_t at, int32_t *end)
{
    nbody_cell *cell = &sim->cell[at];
    int32_t begin[5];
    int q;
    nbody_i_quarters(keys, cell->first, cell->first + cell->count,
                     nbody_i_shift_of(sim, cell->level), begin);
    cell->child = *end;
    for (q = 0; q < 4; q++) {
        if (begin[q] == begin[q + 1]) continue;
        sim->cell[(*end)++] = nbody_i_child(cell, at, q, begin[q], begin[q + 1]);
        cell->children++;
        cell->quarters = (uint8_t)(cell->quarters | 1 << q);
    }
}

/* Room for the root, and the root. */
static nbody_result nbody_i_begin_cells(nbody *sim)
{
    nbody_result const result = nbody_i_make_room(sim, 1, NBODY_I_AHEAD);
    if (result != NBODY_OK) return result;
    sim->cell[0] = nbody_i_root(sim->n);
    sim->frame->cells = sim->frame->levels = 1;
    sim->frame->level_first[1] = 1;
    return NBODY_OK;
}

/* Marks a leaf that is a crowd. */
static int nbody_i_find_crowd(const nbody *sim, nbody_cell *leaf)
{
    int32_t k = 1;
    if (!nbody_i_is_crowded(sim, leaf)) return 0;
    while (k < leaf->count && !nbody_i_is_apart(sim, leaf, k)) k++;
    if (k < leaf->count) return 0;
    leaf->quarters = NBODY_I_CROWD;
    return 1;
}

/* After the last level. */
static void nbody_i_finish_cells(nbody *sim)
{
    nbody_frame *frame = sim->frame;
    double const unit = nbody_i_lighter(sim), scale = frame->mass / unit;
    int32_t c, k, crowds = 0;
    for (c = frame->levels; c <= NBODY_MAX_LEVELS; c++) frame->level_first[c] = frame->cells;
    frame->cells_needed = frame->cells;
    for (c = 0; c < frame->cells; c++) {
        if (sim->cell[c].child >= 0) continue;
        frame->chunks += (sim->cell[c].count + NBODY_CHUNK - 1) / NBODY_CHUNK;
        crowds += nbody_i_find_crowd(sim, &sim->cell[c]);
    }
    if (crowds == 0) return;
    for (k = 0; k < sim->n && scale < 1; k++) nbody_i_lighten(sim, scale, k);
    frame->mass = unit;
    frame->light = 1;
}

/* Sorts the bodies and divides them into cells. */
static nbody_result nbody_i_make_cells(nbody *sim, const nbody_i_input *input)
{
    uint32_t *keys = nbody_i_sort(sim, input);
    nbody_frame *frame = sim->frame;
    int32_t c, first = 0, end = 1;
    nbody_result result = nbody_i_begin_cells(sim);
    if (result != NBODY_OK) return result;
    while (end > first) {
        int64_t divided = 0;
        for (c = first; c < end; c++) {
            if (!nbody_i_is_divided(sim, &sim->cell[c])) continue;
            if (frame->deep) nbody_i_next_keys(sim, &sim->cell[c], keys);
            divided++;
        }
        result = nbody_i_make_room(sim, 4 * divided, NBODY_I_AHEAD);
        if (result != NBODY_OK) return result;
        for (c = first; c < end; c++)
            if (nbody_i_is_divided(sim, &sim->cell[c])) nbody_i_divide(sim, keys, c, &frame->cells);
        first = end;
        end = frame->cells;
        for (c = first; c < end; c++) nbody_i_find_beside(sim, &sim->cell[c]);
        if (end > first) frame->level_first[++frame->levels] = end;
    }
    nbody_i_finish_cells(sim);
    return NBODY_OK;
}

/* The cells of n > 0 bodies. One key is enough for most trees; where bodies cluster, three are
   (>>deep), and the tree is made again. NBODY_AUTO may make it with fewer levels, or none. */
static nbody_result nbody_i_make_tree(nbody *sim, const nbody_i_input *input, nbody_i_leaves *make)
{
    int32_t levels;
    nbody_result result;
    if (sim->choose && nbody_i_choose(sim, input)) return NBODY_OK;
    levels = sim->desc.levels;
    if (levels > NBODY_KEY_LEVELS) sim->desc.levels = NBODY_KEY_LEVELS;
    result = make(sim, input);
    if (result != NBODY_OK) return result;
    if (levels > NBODY_KEY_LEVELS && nbody_i_is_too_shallow(sim) && nbody_i_deepen(sim, levels))
        return make(sim, input);
    return NBODY_OK;
}

/* ----------------------------------------------------------------------------------------------
   >>up-serial: P2M and M2M, from the last level to level 2 (Kalms section 5.6.3, step 2; he makes
   the sources of level 1 too, where nothing is far)
   ---------------------------------------------------------------------------------------------- */

/* P2M and M2M with MASS_CENTRES: each sub-cell with mass becomes a virtual particle. */
static void nbody_i_plain_centres(nbody *sim, int32_t at)
{
    const nbody_cell *cell = &sim->cell[at];
    nbody_i_subgrid const grid = nbody_i_subgrid_of(sim, cell);
    size_t const first = (size_t)at * (size_t)sim->per_cell;
    int subcell;
    sim->made[at] = 0;
    for (subcell = 0; subcell < sim->per_cell; subcell++) {
        nbody_i_moments const moments = nbody_i_subcell_moments(sim, cell, subcell);
        if (moments.m > 0)
            nbody_i_store_centre(sim, &moments, grid.x, grid.y, first + (size_t)sim->made[at]++);
    }
}

/* M of a crowd, and the rest. */
static void nbody_i_weigh_crowd(const nbody *sim, const nbody_cell *leaf, nbody_real split[2])
{
    double mass = 0;
    int32_t part;
    for (part = 0; part < NBODY_I_CROWD_PARTS; part++) mass += nbody_i_crowd_part(sim, leaf, part);
    nbody_i_split_mass(mass, split);
}

/* The masses of all crowds. */
static void nbody_i_weigh_crowds(const nbody *sim)
{
    int32_t c;
    for (c = 0; c < sim->frame->cells; c++)
        if (sim->cell[c].quarters == NBODY_I_CROWD)
            nbody_i_weigh_crowd(sim, &sim->cell[c], sim->acts + sim->cell[c].first);
}

/* The sources of all cells of level 2 and deeper. Children stand behind their parents: they come
   first here. Leaves of MASS_CENTRES have none, they act by their bodies. */
static void nbody_i_plain_sources(nbody *sim)
{
    int const side = sim->rule.side;
    int32_t at, k;
    nbody_i_weigh_crowds(sim);
    for (at = sim->frame->cells - 1; at >= sim->frame->level_first[2]; at--) {
        const nbody_cell *cell = &sim->cell[at];
        if (sim->desc.sources == NBODY_CHEBYSHEV)
            for (k = 0; k < sim->per_cell; k++)
                sim->vm[(size_t)at * (size_t)sim->per_cell + (size_t)k] =
                    nbody_i_point_mass(sim, cell, (int)k % side, (int)k / side);
        else if (cell->child >= 0) nbody_i_plain_centres(sim, at);
        else if (cell->level < sim->frame->levels - 1) sim->made[at] = 0; /* the last has no room */
    }
}

/* ----------------------------------------------------------------------------------------------
   >>down-serial: L2L and M2L, from level 2 to the last (Kalms section 5.6.6, step 3)
   ---------------------------------------------------------------------------------------------- */

/* The first level whose nodes are made from lists. */
NBODY_FN int nbody_i_first_level(const nbody *sim) { return nbody_i_is_periodic(sim) ? 3 : 2; }

/* Row offset * per_cell + b of the M2L table. */
static void nbody_i_fill_row(const nbody *sim, const nbody_i_law *law, int level, int32_t row)
{
    int const offset = (int)(row / sim->per_cell);
    int32_t a;
    if (!nbody_i_offset_is_far(offset)) return;
    for (a = 0; a < nbody_i_row(sim); a++)
        nbody_i_fill_entry(sim, law, level, offset, row % sim->per_cell, a);
}

/* Fills the M2L table of a level, unless it is there already, or M2L goes by powers: >>series. */
static void nbody_i_ready_table(nbody *sim, const nbody_i_law *law, int level)
{
    int32_t row;
    if (sim->series || !nbody_i_find_table(sim, law, level)) return;
    for (row = 0; row < NBODY_I_OFFSETS * sim->per_cell; row++)
        nbody_i_fill_row(sim, law, level, row);
}

/* L2L and M2L: the nodes of each level, after those of the level above. */
static void nbody_i_plain_nodes(nbody *sim, const nbody_i_law *law)
{
    int level;
    int32_t at, a;
    if (sim->series) nbody_i_plain_series(sim, law);
    if (nbody_i_is_periodic(sim)) nbody_i_plain_image_nodes(sim, law);
    for (level = nbody_i_first_level(sim); level < sim->frame->levels; level++) {
        nbody_i_ready_table(sim, law, level);
        for (at = sim->frame->level_first[level]; at < sim->frame->level_first[level + 1]; at++)
            for (a = 0; a < sim->nodes; a++) {
                nbody_i_target const t = nbody_i_node_force(sim, law, at, a);
                nbody_i_store_node(sim, law, at, a, &t);
            }
    }
}

/* ----------------------------------------------------------------------------------------------
   >>bodies-serial: L2P, M2P and P2P
   ---------------------------------------------------------------------------------------------- */

/* L2P and P2P: the bodies of a leaf; leaf -1: all bodies, by direct summation. */
static void nbody_i_plain_bodies(const nbody *sim, const nbody_i_law *law,
                                 const nbody_i_outcome *out, int32_t leaf)
{
    int32_t const first = leaf < 0 ? 0 : sim->cell[leaf].first;
    int32_t const end = leaf < 0 ? sim->n : first + sim->cell[leaf].count;
    int32_t place;
    if (nbody_i_is_periodic(sim) && leaf < 0) {
        nbody_i_sum_images_on(sim, 1, law, out, first, end - first);
        return;
    }
    for (place = first; place < end; place++) {
        nbody_i_target const t = nbody_i_body(sim, law, leaf, place);
        nbody_i_store(sim, out, sim->id[place], t.total, t.compensation);
    }
}

/* ----------------------------------------------------------------------------------------------
   >>api-serial: build and evaluate
   ---------------------------------------------------------------------------------------------- */

/* The tree of n bodies and its sources; DIRECT: the bodies. */
static nbody_result nbody_i_build(nbody *sim, const nbody_i_input *input, int32_t n)
{
    nbody_i_bounds bounds;
    int32_t i;
    nbody_result result = NBODY_OK;
    if (nbody_i_build_faster(sim, input, n, &result)) return result;
    result = nbody_i_measure(sim, input, 0, n, &bounds);
    sim->bad_id = bounds.bad;
    if (result != NBODY_OK) return result;
    result = nbody_i_begin_build(sim, n, &bounds);
    if (result != NBODY_OK) return result;
    if (sim->desc.method == NBODY_DIRECT || n == 0) {
        for (i = 0; i < n; i++) nbody_i_place(sim, input, i, i);
        return NBODY_OK;
    }
    result = nbody_i_make_tree(sim, input, nbody_i_make_cells);
    if (result != NBODY_OK || !sim->cell) return result; /* NBODY_AUTO took DIRECT: no cells */
    result = nbody_i_prepare_sources(sim, NBODY_I_AHEAD);
    if (result != NBODY_OK) return result;
    nbody_i_plain_sources(sim);
    return NBODY_OK;
}

/* Checks, resolves and builds; empty after a refusal. */
static nbody_result nbody_i_build_for(nbody *sim, const nbody_desc *desc,
                                      const nbody_i_input *input, int32_t n, int potential)
{
    nbody_result result;
    int32_t bad;
    nbody_i_make_empty(sim);
    result = nbody_i_check_input(input, n);
    if (result != NBODY_OK) return result;
    result = nbody_i_begin(sim, desc, n, potential);
    if (result != NBODY_OK) return result;
    if (potential && !nbody_i_has_potential(&sim->desc)) return NBODY_BAD_ARGUMENT;
    result = nbody_i_build(sim, input, n);
    if (result == NBODY_OK) return NBODY_OK;
    bad = sim->bad_id;
    nbody_i_make_empty(sim);
    sim->bad_id = bad;
    return result;
}

NBODY_API nbody_result nbody_build(nbody *sim, const nbody_desc *desc, const nbody_real *pos,
                                   size_t stride, const nbody_real *mass, int32_t n)
{
    nbody_i_input const input = nbody_i_input_of(desc, pos, stride, mass);
    if (!sim) return NBODY_BAD_ARGUMENT;
    return nbody_i_build_for(sim, desc, &input, n, 0);
}

/* The fields of at least one body, when the tree, its sources and prepare_nodes are done. */
static nbody_result nbody_i_fields_of_tree(nbody *sim, const nbody_i_outcome *out)
{
    nbody_i_law const law = nbody_i_law_of(sim, out->potential != NULL);
    int32_t c;
    nbody_result result = NBODY_OK;
    if (nbody_i_fields_faster(sim, 1, &law, out, &result)) return result;
    if (!sim->cell) nbody_i_plain_bodies(sim, &law, out, -1);
    if (sim->nodes > 0) nbody_i_plain_nodes(sim, &law);
    for (c = 0; c < sim->frame->cells; c++)
        if (sim->cell[c].child < 0) nbody_i_plain_bodies(sim, &law, out, c);
    return NBODY_OK;
}

NBODY_API nbody_result nbody_fields(nbody *sim, const nbody_desc *desc, const nbody_real *pos,
                                    size_t stride, const nbody_real *mass, int32_t n,
                                    nbody_real *acc, nbody_real *potential)
{
    nbody_i_input const input = nbody_i_input_of(desc, pos, stride, mass);
    nbody_i_outcome out;
    nbody_result result;
    if (!sim) return NBODY_BAD_ARGUMENT;
    result = nbody_i_build_for(sim, desc, &input, n, potential != NULL);
    if (result != NBODY_OK || n == 0 || (!acc && !potential)) return result;
    out.acc = acc;
    out.potential = potential;
    out.acc_stride = sim->desc.acc_stride;
    if (sim->cell) result = nbody_i_prepare_nodes(sim, potential != NULL, NBODY_I_AHEAD);
    if (result == NBODY_OK) result = nbody_i_fields_of_tree(sim, &out);
    if (result != NBODY_OK) nbody_i_make_empty(sim);
    return result;
}

NBODY_API nbody_result nbody_accelerations(nbody *sim, const nbody_desc *desc,
                                           const nbody_real *pos, size_t stride,
                                           const nbody_real *mass, int32_t n, nbody_real *acc)
{
    if (n > 0 && !acc) {
        if (sim) nbody_i_make_empty(sim);
        return NBODY_BAD_ARGUMENT;
    }
    return nbody_fields(sim, desc, pos, stride, mass, n, acc, NULL);
}

/* ----------------------------------------------------------------------------------------------
   >>memory: blocks that grow and are reused

   All arrays lie in sim->block. Functions nbody_i_prepare_... make a block large enough, functions
   nbody_i_bind_... set the pointers into it.
   ---------------------------------------------------------------------------------------------- */

/* The M2L table, or several: >>kept. */
static nbody_result nbody_i_prepare_table(nbody *sim, int potential, nbody_i_growth growth);

/* NULL: there is no such memory. */
static void *nbody_i_alloc(const nbody_allocator *allocator, size_t bytes)
{
    return allocator->alloc ? allocator->alloc(bytes, allocator->user) : malloc(bytes);
}

/* Frees what nbody_i_alloc returned; NULL is fine. */
static void nbody_i_give_back(const nbody_allocator *allocator, void *memory, size_t bytes)
{
    if (memory && allocator->free) allocator->free(memory, bytes, allocator->user);
    else free(memory);
}

/* New size of a block of `had` bytes that needs `bytes`, which are more. EXACT: `bytes`. AHEAD:
   half as much again as it had, so that slowly growing n allocates only now and then; a first
   allocation is exact. */
static size_t nbody_i_room(nbody_i_growth growth, size_t had, size_t bytes)
{
    size_t const more = had + had / 2; /* had < bytes <= SIZE_MAX / 2 */
    return growth == NBODY_I_AHEAD && more > bytes ? more : bytes;
}

/* Makes a block of at least `bytes`, keeping the first `keep` bytes of its contents. If the
   allocation with spare room fails, the exact size is tried. */
static nbody_result nbody_i_grow(nbody *sim, int which, size_t bytes, size_t keep,
                                 nbody_i_growth growth)
{
    nbody_block *block = &sim->block[which];
    size_t room;
    void *memory;
    if (bytes <= block->bytes) return NBODY_OK;
    room = nbody_i_room(growth, block->bytes, bytes);
    if (keep == 0) { /* nothing to copy: free it first, so that both need not fit */
        nbody_i_give_back(&sim->desc.allocator, block->memory, block->bytes);
        block->memory = NULL;
        block->bytes = 0;
    }
    memory = nbody_i_alloc(&sim->desc.allocator, room);
    if (!memory && room > bytes) {
        room = bytes;
        memory = nbody_i_alloc(&sim->desc.allocator, room);
    }
    if (!memory) return NBODY_OUT_OF_MEMORY;
    if (sim->desc.allocator.alloc && (uintptr_t)memory % 16 != 0) {
        nbody_i_give_back(&sim->desc.allocator, memory, room);
        return NBODY_BAD_ALLOCATOR;
    }
    if (keep > 0) {
        memcpy(memory, block->memory, keep);
        nbody_i_give_back(&sim->desc.allocator, block->memory, block->bytes);
    }
    block->memory = memory;
    block->bytes = room;
    return NBODY_OK;
}

/* nbody_i_grow, keeping nothing, for `count` elements of `width` bytes. */
static nbody_result nbody_i_grow_array(nbody *sim, int which, size_t count, size_t width,
                                       nbody_i_growth growth)
{
    if (count > SIZE_MAX / 2 / width) return NBODY_OUT_OF_MEMORY;
    return nbody_i_grow(sim, which, count * width, 0, growth);
}

/* Bytes of a body's five arrays. */
enum { NBODY_I_BODY = sizeof(int32_t) + 4 * sizeof(nbody_real) };

/* Sets the bodies' arrays to their block, reals first: they are the wider ones. */
static void nbody_i_bind_bodies(nbody *sim, void *memory, int32_t room)
{
    if (room == 0) return;
    sim->x = (nbody_real *)memory;
    sim->y = sim->x + room;
    sim->m = sim->y + room;
    sim->acts = sim->m + room;
    sim->id = (int32_t *)(void *)(sim->acts + room);
}

/* Number of arrays of sources: CHEBYSHEV has masses alone. */
static int nbody_i_source_arrays(const nbody_desc *desc)
{
    if (desc->sources == NBODY_CHEBYSHEV) return 1;
    return desc->method == NBODY_VIRTUAL_PARTICLES && desc->order == 2 ? 6 : 3;
}

/* `cells`: the number of cells with sources. */
static void nbody_i_bind_sources(nbody *sim, void *sources, void *made, size_t cells)
{
    size_t const step = cells * (size_t)sim->per_cell;
    int const arrays = nbody_i_source_arrays(&sim->desc);
    if (step == 0) return; /* no cell has sources */
    sim->vm = (nbody_real *)sources;
    sim->vx = arrays > 1 ? sim->vm + step : NULL;
    sim->vy = arrays > 1 ? sim->vm + 2 * step : NULL;
    sim->vxx = arrays > 3 ? sim->vm + 3 * step : NULL;
    sim->vxy = arrays > 3 ? sim->vm + 4 * step : NULL;
    sim->vyy = arrays > 3 ? sim->vm + 5 * step : NULL;
    sim->made = arrays > 1 ? (int32_t *)made : NULL;
}

/* Reals of a cell's nodes and series. */
static size_t nbody_i_node_reals(const nbody *sim, int potential)
{
    return (size_t)sim->nodes * (potential ? 3 : 2) + 2 * (size_t)sim->series;
}

/* Sets the arrays of nodes and series, for so many cells. */
static void nbody_i_bind_nodes(nbody *sim, void *memory, size_t cells, int potential)
{
    size_t const step = cells * (size_t)sim->nodes;
    if (step == 0) return;
    sim->fx = (nbody_real *)memory;
    sim->fy = sim->fx + step;
    sim->fp = potential ? sim->fx + 2 * step : NULL;
    sim->moment = sim->series ? sim->fx + (potential ? 3 : 2) * step : NULL;
    sim->local = sim->series ? sim->moment + cells * (size_t)sim->series : NULL;
}

/* The frame, and room for n bodies and their sort. */
static nbody_result nbody_i_prepare_bodies(nbody *sim, int32_t n, nbody_i_growth growth)
{
    size_t const count = (size_t)n, work = 4 * sizeof(uint32_t);
    nbody_result result = nbody_i_grow(sim, NBODY_I_FRAME, sizeof(nbody_frame), 0, growth);
    if (result != NBODY_OK) return result;
    result = nbody_i_grow_array(sim, NBODY_I_BODIES, count, NBODY_I_BODY, growth);
    if (result != NBODY_OK) return result;
    if (sim->desc.method != NBODY_DIRECT)
        result = nbody_i_grow_array(sim, NBODY_I_WORK, count + nbody_i_counters_faster(sim, n),
                                    work, growth);
    if (result != NBODY_OK) return result;
    sim->frame = (nbody_frame *)sim->block[NBODY_I_FRAME].memory;
    memset(sim->frame, 0, sizeof *sim->frame);
    nbody_i_bind_bodies(sim, sim->block[NBODY_I_BODIES].memory, n);
    return NBODY_OK;
}

/* Makes room for `more` cells. */
static nbody_result nbody_i_make_room(nbody *sim, int64_t more, nbody_i_growth growth)
{
    size_t const have = (size_t)sim->frame->cells * sizeof(nbody_cell);
    size_t const had = sim->block[NBODY_I_CELLS].bytes;
    size_t const keep = have <= had ? have : 0; /* nbody_reserve counts cells that do not exist
                                                   yet */
    int64_t const cells = sim->frame->cells + more;
    nbody_result result;
    if (cells > INT32_MAX || (size_t)cells > SIZE_MAX / 2 / sizeof(nbody_cell))
        return NBODY_OUT_OF_MEMORY;
    result = nbody_i_grow(sim, NBODY_I_CELLS, (size_t)cells * sizeof(nbody_cell), keep, growth);
    sim->cell = (nbody_cell *)sim->block[NBODY_I_CELLS].memory;
    return result;
}

/* With MASS_CENTRES the cells of the last level, all leaves, have no sources: they are stored
   last. */
static nbody_result nbody_i_prepare_sources(nbody *sim, nbody_i_growth growth)
{
    int const last = sim->frame->levels - 1, centres = sim->desc.sources == NBODY_MASS_CENTRES;
    size_t const cells = (size_t)(centres ? sim->frame->level_first[last] : sim->frame->cells);
    size_t const width =
        (size_t)sim->per_cell * (size_t)nbody_i_source_arrays(&sim->desc) * sizeof(nbody_real);
    nbody_result result = nbody_i_grow_array(sim, NBODY_I_SOURCES, cells, width, growth);
    if (result != NBODY_OK) return result;
    if (centres) result = nbody_i_grow_array(sim, NBODY_I_MADE, cells, sizeof(int32_t), growth);
    if (result != NBODY_OK) return result;
    nbody_i_bind_sources(sim, sim->block[NBODY_I_SOURCES].memory, sim->block[NBODY_I_MADE].memory,
                         cells);
    return NBODY_OK;
}

/* Room for nodes, series and table, before an evaluation. */
static nbody_result nbody_i_prepare_nodes(nbody *sim, int potential, nbody_i_growth growth)
{
    int const has_table = sim->desc.sources == NBODY_CHEBYSHEV;
    size_t const cells = (size_t)sim->frame->cells,
                 width = nbody_i_node_reals(sim, potential) * sizeof(nbody_real);
    nbody_result result = NBODY_OK;
    if (sim->nodes > 0) result = nbody_i_grow_array(sim, NBODY_I_NODES, cells, width, growth);
    if (result != NBODY_OK) return result;
    if (has_table) result = nbody_i_prepare_table(sim, potential, growth);
    if (result != NBODY_OK) return result;
    nbody_i_bind_nodes(sim, sim->block[NBODY_I_NODES].memory, cells, potential);
    sim->table = has_table ? (nbody_real *)sim->block[NBODY_I_TABLE].memory : NULL;
    sim->table_step = 0; /* a table per level is filled when its level is computed */
    return NBODY_OK;
}

NBODY_API int64_t nbody_bytes(const nbody *sim)
{
    int64_t bytes = 0;
    int b;
    if (!sim) return 0;
    for (b = 0; b < NBODY_BLOCKS; b++) bytes += (int64_t)sim->block[b].bytes;
    return bytes;
}

NBODY_API void nbody_free(nbody *sim)
{
    int b;
    if (!sim) return;
    for (b = 0; b < NBODY_BLOCKS; b++)
        nbody_i_give_back(&sim->desc.allocator, sim->block[b].memory, sim->block[b].bytes);
    memset(sim, 0, sizeof *sim);
}

/* ----------------------------------------------------------------------------------------------
   >>resolve: defaults and checks, before a body is read

   nbody_defaults fills in and checks a desc; nbody_i_begin copies it into an nbody, with the nodes
   that it asks for.
   ---------------------------------------------------------------------------------------------- */

/* Bodies above which a cell is divided in an adaptive tree, about. Measured: the benchmark's groups
   `leaf` and `defaults`. With M2L by powers, forces and potentials take about as long for 40 to
   100. */
static int32_t nbody_i_default_leaf(const nbody_desc *desc)
{
    if (desc->method == NBODY_VIRTUAL_PARTICLES) return desc->order == 1 ? 80 : 160;
    if (desc->sources == NBODY_MASS_CENTRES) return desc->order == 1 ? 128 : 64;
    if (nbody_i_series(desc)) return desc->order <= 8 ? 56 : 72;
    return desc->order <= 4 ? 80 : desc->order <= 6 ? 144 : 200;
}

/* Levels of evenly spread bodies, of which from `leaf` / 4 to `leaf` are in a leaf. */
static int32_t nbody_i_even_levels(int32_t leaf, int32_t n)
{
    int32_t levels = 1;
    int64_t cells = 1;
    for (; levels < NBODY_KEY_LEVELS && n > cells * leaf; cells *= 4) levels++;
    return levels;
}

/* Near `leaf`, so that evenly spread bodies have leaves on one level. The cells of level k have x
   bodies on average; hardly one is away from that by more than 3 + k / 4 times sqrt(x). Where
   `leaf` is as near to x, some cells are divided beside others that are not: that costs more than
   both. */
static int32_t nbody_i_even_leaf(int32_t leaf, int32_t n)
{
    double x = n, away = 3, least, most;
    if (n <= leaf) return leaf;
    for (; x > 1.15 * leaf; x /= 4) away += 0.25;
    least = x + away * sqrt(x);
    most = 4 * x - 2 * away * sqrt(x);
    if (least > most) return (int32_t)(2.5 * x) + 1;
    return leaf < least ? (int32_t)least + 1 : leaf > most ? (int32_t)most : leaf;
}

/* NBODY_AUTO, before a body is read (>>cost): DIRECT, or a tree, which nbody_i_choose may still
   find to cost more. */
static void nbody_i_choose_early(nbody_desc *desc, int32_t n, int potential);

/* Fills in what is 0, but for levels and leaf. */
static void nbody_i_default_options(nbody_desc *desc)
{
    if (desc->order == 0) desc->order = desc->method == NBODY_FORCE_NODES ? 4 : 1;
    if (desc->sources == NBODY_SOURCES_AUTO)
        desc->sources = desc->method == NBODY_FORCE_NODES && desc->order > 1 ? NBODY_CHEBYSHEV
                                                                             : NBODY_MASS_CENTRES;
    if (desc->subcells == 0) desc->subcells = 8;
    if (!(desc->gravity < 0 || desc->gravity > 0 || desc->gravity != desc->gravity))
        desc->gravity = 1;
    if (desc->mass_stride == 0) desc->mass_stride = sizeof(nbody_real);
    if (desc->acc_stride == 0) desc->acc_stride = 2 * sizeof(nbody_real);
}

/* Does the desc ask for a part that was not added? */
static nbody_result nbody_i_check_parts(const nbody_desc *desc)
{
    int missing = 0;
    (void)desc;
#ifndef NBODY_WITH_PERIODIC
    missing = desc->periodic != 0;
#endif
#ifndef NBODY_WITH_VORTEX
    missing = missing || desc->law == NBODY_VORTEX || desc->core == NBODY_GAUSSIAN;
#endif
#ifndef NBODY_WITH_FUNCTION
    missing = missing || desc->law == NBODY_FUNCTION;
#endif
    return missing ? NBODY_NO_PART : NBODY_OK;
}

/* Enums and small numbers, and what does not go together. */
static nbody_result nbody_i_check_options(const nbody_desc *desc)
{
    int const nodes = desc->method == NBODY_FORCE_NODES,
              tree = nodes || desc->method == NBODY_VIRTUAL_PARTICLES;
    if ((int)desc->method < 0 || desc->method > NBODY_FORCE_NODES) return NBODY_BAD_OPTION;
    if ((int)desc->law < 0 || desc->law > NBODY_FUNCTION) return NBODY_BAD_OPTION;
    if ((int)desc->core < 0 || desc->core > NBODY_GAUSSIAN) return NBODY_BAD_OPTION;
    if (desc->core == NBODY_GAUSSIAN &&
        (desc->law == NBODY_INVERSE_SQUARE || desc->law == NBODY_FUNCTION))
        return NBODY_BAD_OPTION;
    if ((int)desc->sources < 0 || desc->sources > NBODY_CHEBYSHEV) return NBODY_BAD_OPTION;
    if ((int)desc->stage < 0 || desc->stage > NBODY_SHARED_MEMORY) return NBODY_BAD_OPTION;
    if (desc->parallel.tasks < 0 || desc->parallel.tasks > NBODY_MAX_TASKS) return NBODY_BAD_OPTION;
    if (desc->order < 1 || (tree && desc->order > (nodes ? NBODY_MAX_ORDER : 2)))
        return NBODY_BAD_OPTION;
    if (tree && desc->sources == NBODY_CHEBYSHEV && (!nodes || desc->order == 1))
        return NBODY_BAD_OPTION;
    if (desc->law == NBODY_FUNCTION && desc->method == NBODY_VIRTUAL_PARTICLES && desc->order == 2)
        return NBODY_BAD_OPTION;
    if (desc->law == NBODY_FUNCTION && !desc->function.force) return NBODY_BAD_ARGUMENT;
    if (desc->subcells != 2 && desc->subcells != 4 && desc->subcells != 8) return NBODY_BAD_OPTION;
    if (desc->levels < 0 || desc->levels > NBODY_MAX_LEVELS || desc->leaf < 0 ||
        desc->max_cells < 0)
        return NBODY_BAD_LEVELS;
    return nbody_i_check_parts(desc);
}

/* May potentials be requested? */
static int nbody_i_has_potential(const nbody_desc *desc)
{
    return desc->law != NBODY_FUNCTION || desc->function.potential != NULL;
}

/* Real numbers, strides and allocators. */
static nbody_result nbody_i_check_numbers(const nbody_desc *desc)
{
    if (!nbody_i_finite((double)desc->gravity)) return NBODY_BAD_NUMBER;
    if (!nbody_i_finite((double)desc->softening) || desc->softening < 0) return NBODY_BAD_NUMBER;
    if (!nbody_i_finite((double)desc->min[0]) || !nbody_i_finite((double)desc->min[1]))
        return NBODY_BAD_SQUARE;
    if (!nbody_i_finite((double)desc->size) || desc->size < 0) return NBODY_BAD_SQUARE;
    if (desc->mass_stride % sizeof(nbody_real) != 0) return NBODY_BAD_ARGUMENT;
    if (desc->acc_stride % sizeof(nbody_real) != 0 || desc->acc_stride < 2 * sizeof(nbody_real))
        return NBODY_BAD_ARGUMENT;
    if (!desc->allocator.alloc != !desc->allocator.free) return NBODY_BAD_ALLOCATOR;
    if (!desc->cuda_allocator.alloc != !desc->cuda_allocator.free) return NBODY_BAD_ALLOCATOR;
    return NBODY_OK;
}

/* nbody_defaults; potential: will potentials be requested? NBODY_AUTO asks. */
static nbody_result nbody_i_resolve(nbody_desc *out, const nbody_desc *desc, int32_t n,
                                    int potential)
{
    nbody_result result;
    if (desc) *out = *desc;
    else memset(out, 0, sizeof *out);
    if (out->method == NBODY_AUTO) nbody_i_choose_early(out, n, potential);
    nbody_i_default_options(out);
    result = nbody_i_check_options(out);
    if (result != NBODY_OK) return result;
    result = nbody_i_check_numbers(out);
    if (result != NBODY_OK) return result;
    result = nbody_i_check_periodic(out);
    if (result != NBODY_OK || out->levels > 0) return result;
    if (out->leaf == 0) out->leaf = nbody_i_even_leaf(nbody_i_default_leaf(out), n);
    out->levels = out->periodic ? NBODY_KEY_LEVELS : NBODY_MAX_LEVELS;
    return NBODY_OK;
}

NBODY_API nbody_result nbody_defaults(nbody_desc *out, const nbody_desc *desc, int32_t n)
{
    return out ? nbody_i_resolve(out, desc, n, 0) : NBODY_BAD_ARGUMENT;
}

NBODY_API int32_t nbody_levels_for(const nbody_desc *desc, int32_t n)
{
    nbody_desc resolved;
    int32_t levels;
    if (nbody_defaults(&resolved, desc, n) != NBODY_OK) return 1;
    levels = nbody_i_even_levels(nbody_i_default_leaf(&resolved), n);
    return resolved.periodic && levels < 3 ? 3 : levels;
}

/* Node i of `side`, 0 .. 1: the formulas of >>rule, one half mirrored. The nodes must have the same
   bits everywhere, and libraries differ: cos x = 1 - x^2/2 (1 - x^2/12 (1 - x^2/30 (..))). */
static double nbody_i_node_at(int linear, int side, int i)
{
    int const mirrored = 2 * i + 1 > side;
    double const pi = 3.14159265358979324,
                 angle = pi * ((mirrored ? side - 1 - i : i) + 0.5) / side;
    double sum = 0, at;
    int k;
    if (linear) return (i + 0.5) / side;
    for (k = 26; k >= 2; k -= 2) sum = (1 - sum) * angle * angle / (k * (k - 1));
    at = (1 - (1 - sum)) / 2;
    return mirrored ? 1 - at : at;
}

/* The nodes, and the weights of L2L and M2M, rounded once: node t of the child in half `bit` is at
   (bit + t) / 2 of the parent. In double: each level of a tree multiplies by such weights. (Between
   even nodes they are exact in any type.) */
static void nbody_i_make_rule(nbody_rule *rule, int linear, int side)
{
    double t[NBODY_MAX_ORDER];
    int a, i, j, bit;
    memset(rule, 0, sizeof *rule);
    rule->linear = linear;
    rule->side = side;
    rule->stencil = linear ? 2 : side;
    for (i = 0; i < side; i++) t[i] = nbody_i_node_at(linear, side, i);
    for (i = 0; i < side; i++) rule->t[i] = (nbody_real)t[i];
    for (i = 0; i < side; i++) {
        double product = 1;
        for (a = 0; a < side; a++) if (a != i) product *= (double)rule->t[i] - (double)rule->t[a];
        rule->scale[i] = (nbody_real)(1 / product);
    }
    for (bit = 0; bit < 2; bit++)
        for (a = 0; a < side; a++) {
            nbody_i_stencil const s = nbody_i_stencil_at(rule, ((nbody_real)bit + rule->t[a]) / 2);
            for (i = 0; i < rule->stencil; i++) {
                double w = 1;
                for (j = 0; j < side; j++)
                    if (j != i) w *= ((bit + t[a]) / 2 - t[j]) / (t[i] - t[j]);
                rule->to_child[bit][a][s.first + i] = linear ? s.weight[i] : (nbody_real)w;
            }
        }
}

/* Marks sim as not built; memory and desc are kept. */
static void nbody_i_make_empty(nbody *sim)
{
    sim->n = 0;
    sim->frame = NULL;
    sim->id = sim->made = NULL;
    sim->cell = NULL;
    sim->acts = NULL;
    sim->x = sim->y = sim->m = sim->vx = sim->vy = sim->vm = sim->vxx = sim->vxy = sim->vyy = NULL;
    sim->fx = sim->fy = sim->fp = sim->table = sim->moment = sim->local = NULL;
    sim->lattice = NULL;
    sim->images = NULL;
    sim->bad_id = -1;
    sim->cuda_error = 0;
}

/* Empties sim, checks and copies a desc, and sets what follows from it. sim->choose: what
   NBODY_AUTO has still to choose, when the cells are known. */
static nbody_result nbody_i_begin(nbody *sim, const nbody_desc *desc, int32_t n, int potential)
{
    int const automatic =
        !desc || (desc->method == NBODY_AUTO && desc->leaf == 0 && desc->levels == 0);
    nbody_desc given;
    nbody_allocator had;
    nbody_result const result = nbody_i_resolve(&given, desc, n, potential);
    int const linear = given.order == 1, side = linear ? 8 : given.order;
    nbody_i_make_empty(sim);
    if (result != NBODY_OK) return result;
    had = sim->desc.allocator;
    if (nbody_bytes(sim) > 0 &&
        (had.alloc != given.allocator.alloc || had.free != given.allocator.free ||
         had.user != given.allocator.user))
        return NBODY_BAD_ALLOCATOR;
    sim->desc = given;
    sim->nodes = given.method == NBODY_FORCE_NODES ? side * side : 0;
    if (sim->nodes > 0 && (sim->rule.side != side || sim->rule.linear != linear)) {
        nbody_i_make_rule(&sim->rule, linear, side);
        sim->table_kind = 0; /* tables of another rule are forgotten */
        memset(&sim->kept, 0, sizeof sim->kept);
    }
    sim->per_cell = given.sources == NBODY_CHEBYSHEV ? sim->nodes : given.subcells * given.subcells;
    sim->series = nbody_i_series(&sim->desc);
    sim->choose = automatic && given.method != NBODY_DIRECT && !given.periodic
                      ? 1 + 2 * (potential != 0)
                      : 0;
    return NBODY_OK;
}

/* The stride in bytes, with the default for 0; returns 0 if it is invalid. */
static size_t nbody_i_stride(size_t stride, int numbers)
{
    size_t const tight = (size_t)numbers * sizeof(nbody_real);
    if (stride == 0) return tight;
    return stride >= tight && stride % sizeof(nbody_real) == 0 ? stride : 0;
}

/* May these arrays be read? */
static nbody_result nbody_i_check_input(const nbody_i_input *input, int32_t n)
{
    if (n < 0 || (n > 0 && !input->pos) || input->stride == 0) return NBODY_BAD_ARGUMENT;
    return n > NBODY_I_N_MAX ? NBODY_TOO_MANY : NBODY_OK;
}

/* The caller's arrays, with default strides; stride 0: it is bad. */
static nbody_i_input nbody_i_input_of(const nbody_desc *desc, const nbody_real *pos, size_t stride,
                                      const nbody_real *mass)
{
    nbody_i_input const input = {
        pos, mass, nbody_i_stride(stride, 2),
        desc && desc->mass_stride ? desc->mass_stride : sizeof(nbody_real)};
    return input;
}

/* ----------------------------------------------------------------------------------------------
   >>kept: M2L tables that are kept from one call to the next

   One table for all levels is filled once in the life of an nbody. A law with a table for each
   level has it filled when the level is computed, if cells of that level act by it, and unless it
   is still there from the last call. So a table depends on what nbody_kept and table_kind say, and
   on nothing else: a law with a parameter of its own needs it there (nbody_i_keep_tables,
   nbody_i_kind_of_table).
   ---------------------------------------------------------------------------------------------- */

/* Laws whose tables on each level depend on the square and the softening alone. */
static int nbody_i_has_kept_tables(const nbody_desc *desc)
{
    return nbody_i_law_in(desc, 0).softened && desc->law != NBODY_FUNCTION &&
           desc->sources == NBODY_CHEBYSHEV;
}

/* Tables of different levels that are kept: up to so many bytes, and one in any case. */
enum { NBODY_I_TABLE_ROOM = 32 * 1024 * 1024 };

/* Tables that are kept at once: of all levels, or as many as there is room for. */
static int32_t nbody_i_slots(const nbody *sim)
{
    int32_t const levels = sim->frame->levels;
    size_t const most = NBODY_I_TABLE_ROOM / (nbody_i_table_level(sim) * sizeof(nbody_real));
    if (!nbody_i_has_kept_tables(&sim->desc)) return 0;
    if (levels <= 3 || most <= 1) return 1;
    return (size_t)levels - 2 < most ? levels - 2 : (int32_t)most;
}

/* Before an evaluation: the tables of the last one stay if they are those of this law, square and
   softening. Tables with the potentials of 1 / d serve forces too. */
static void nbody_i_keep_tables(nbody *sim, int potential)
{
    nbody_kept *kept = &sim->kept, now;
    nbody_i_law const law = nbody_i_law_in(&sim->desc, potential);
    memset(&now, 0, sizeof now);
    now.edge = sim->frame->edge;
    now.soften2 = sim->frame->soften2;
    now.length = law.law == NBODY_INVERSE && potential ? sim->frame->length : 0;
    now.law = (int32_t)law.law + 16 * (int32_t)sim->desc.core;
    now.slots = nbody_i_slots(sim);
    if (law.law == NBODY_INVERSE && !potential) now.length = kept->length;
    if (now.slots > 0 && now.slots <= kept->slots) now.slots = kept->slots;
    if (now.law == kept->law && now.slots == kept->slots &&
        memcmp(&now, kept, 3 * sizeof(double)) == 0)
        now.levels = kept->levels;
    *kept = now;
}

/* Room for the M2L table, or for those of as many levels as are kept. */
static nbody_result nbody_i_prepare_table(nbody *sim, int potential, nbody_i_growth growth)
{
    size_t const room = sim->block[NBODY_I_TABLE].bytes / sizeof(nbody_real),
                 one = sim->series ? nbody_i_series_table(sim) : nbody_i_table_level(sim);
    size_t all;
    nbody_result result;
    nbody_i_keep_tables(sim, potential);
    all = one * (size_t)(sim->kept.slots > 0 ? sim->kept.slots : 1);
    if (all > room) { /* to be filled again */
        sim->table_kind = 0;
        sim->kept.levels = 0;
    }
    result = nbody_i_grow_array(sim, NBODY_I_TABLE, all, sizeof(nbody_real), growth);
    if (result != NBODY_OUT_OF_MEMORY || sim->kept.slots <= 1) return result;
    sim->kept.slots = 1; /* one is enough */
    return nbody_i_grow_array(sim, NBODY_I_TABLE, one, sizeof(nbody_real), growth);
}

/* What `table` would hold for this law on a level; 0: it cannot be reused. */
static int nbody_i_kind_of_table(const nbody *sim, const nbody_i_law *law, int level)
{
    if (sim->series) return 2;
    if (!nbody_i_scale_free(law) || nbody_i_is_small(sim, level)) return 0;
    return 1 + 2 * (law->law == NBODY_INVERSE);
}

/* Do cells of this level act on each other by the table? Not where the bodies of each parent are in
   cells that touch, as on the way down to a small clump. */
static int nbody_i_needs_table(const nbody *sim, int level)
{
    int32_t at;
    for (at = sim->frame->level_first[level]; at < sim->frame->level_first[level + 1]; at++) {
        nbody_far walk = nbody_far_of(sim, at);
        while (nbody_next_far(&walk))
            if (nbody_i_by_table(sim, &sim->cell[walk.cell], &sim->cell[at])) return 1;
    }
    return 0;
}

/* Sets `table` to that of a level. 1: it must be filled. A scale-free table is kept for the life of
   the nbody, and those of a softened law while square and softening are the same: level l has slot
   (l - 2) % slots, so that all levels have their own if there is room. */
static int nbody_i_find_table(nbody *sim, const nbody_i_law *law, int level)
{
    nbody_kept *kept = &sim->kept;
    int const had = sim->table_kind, kind = nbody_i_kind_of_table(sim, law, level);
    int slot, l;
    if (!sim->table || (!sim->series && !nbody_i_needs_table(sim, level))) return 0;
    sim->table_kind = kind;
    if (kept->slots == 0) {
        kept->levels = 0;
        return kind == 0 || kind != had;
    }
    slot = (level - 2) % kept->slots;
    sim->table = (nbody_real *)sim->block[NBODY_I_TABLE].memory +
                 (size_t)slot * nbody_i_table_level(sim);
    if (kept->levels >> level & 1) return 0;
    for (l = 2 + slot; l < NBODY_MAX_LEVELS; l += kept->slots) kept->levels &= ~((uint64_t)1 << l);
    kept->levels |= (uint64_t)1 << level;
    if (!law->potential) kept->length = 0; /* this one has no logarithms */
    return 1;
}

/* ----------------------------------------------------------------------------------------------
   >>deep-serial: trees of more than NBODY_KEY_LEVELS levels, on the CPU: >>deep
   ---------------------------------------------------------------------------------------------- */

/* Deep trees: on levels 0, 16 and 32, the keys that divide the bodies of a cell from here on. */
static void nbody_i_next_keys(const nbody *sim, const nbody_cell *cell, uint32_t *keys)
{
    int32_t b;
    if (cell->level % 16 != 0) return;
    for (b = cell->first; b < cell->first + cell->count; b++)
        keys[b] = nbody_i_deep_key(sim->frame, sim->x[b], sim->y[b], cell->level / 16);
}

/* Is there a cell of the last level that is to be divided, and not one point? */
static int nbody_i_is_too_shallow(const nbody *sim)
{
    int32_t const *first = sim->frame->level_first;
    int32_t c, k;
    if (sim->frame->deepest < NBODY_KEY_LEVELS) return 0;
    for (c = first[NBODY_KEY_LEVELS - 1]; c < first[NBODY_KEY_LEVELS]; c++) {
        const nbody_cell *cell = &sim->cell[c];
        if (sim->desc.leaf == 0) return 1;
        if (cell->count <= sim->desc.leaf) continue;
        for (k = 1; k < cell->count; k++) if (nbody_i_is_apart(sim, cell, k)) return 1;
    }
    return 0;
}

/* The square becomes the smallest aligned one around it, for up to so many levels, and as many as
   have cells that are not too small. 0: no more than there are; nothing is changed. */
static int nbody_i_deepen(nbody *sim, int32_t levels)
{
    nbody_frame *frame = sim->frame;
    double edge = nbody_i_unit(frame->edge) / 4, origin[2], least = nbody_i_power(-52);
    int32_t most = 1;
    int a, fits = 0;
    while (!fits) {
        edge *= 2;
        for (a = 0, fits = 1; a < 2; a++) {
            origin[a] = floor(frame->origin[a] / (edge / 4)) * (edge / 4);
            fits = fits && frame->origin[a] + frame->edge <= origin[a] + edge;
        }
    }
    while (most < levels && nbody_i_product(least, nbody_i_cells_per_side(most)) <= edge) most++;
    if (most <= NBODY_KEY_LEVELS || !nbody_i_finite(edge * frame->length)) return 0;
    sim->desc.levels = most;
    frame->deep = 1;
    frame->edge = edge;
    frame->inverse = 1 / edge;
    frame->size = edge * frame->length;
    for (a = 0; a < 2; a++) {
        frame->origin[a] = origin[a];
        frame->min[a] = origin[a] * frame->length;
    }
    frame->chunks = 0;
    if (nbody_i_law_in(&sim->desc, 0).core) nbody_i_set_core(frame, &sim->desc);
    frame->mass = nbody_i_lighter(sim);
    frame->light = 1;
    return 1;
}

/* ----------------------------------------------------------------------------------------------
   >>series-serial: M2L by powers, one number at a time: >>series
   ---------------------------------------------------------------------------------------------- */

/* Fills the three parts of the table of >>series, unless they are there already. */
static void nbody_i_ready_series(nbody *sim, const nbody_i_law *law)
{
    int offset, j;
    int32_t a;
    if (!nbody_i_find_table(sim, law, 2)) return;
    memset(sim->table, 0, nbody_i_series_table(sim) * sizeof *sim->table);
    for (offset = 0; offset < NBODY_I_OFFSETS; offset++) {
        if (!nbody_i_offset_is_far(offset)) continue;
        for (j = 0; j <= sim->series / 2; j++) nbody_i_fill_series(sim, offset, j);
    }
    for (a = 0; a < sim->per_cell; a++) nbody_i_fill_powers(sim, a);
}

/* M2L by powers. */
static void nbody_i_plain_series(nbody *sim, const nbody_i_law *law)
{
    size_t const count = (size_t)sim->series;
    int32_t const first = sim->frame->level_first[2];
    int32_t at, k;
    nbody_i_ready_series(sim, law);
    for (at = first; at < sim->frame->cells; at++)
        for (k = 0; k < sim->series; k++)
            sim->moment[(size_t)at * count + (size_t)k] = nbody_i_moment(sim, at, k);
    for (at = sim->frame->level_first[nbody_i_first_level(sim)]; at < sim->frame->cells; at++) {
        nbody_i_around around;
        nbody_i_find_around(sim, at, &around);
        for (k = 0; k < sim->series; k++)
            sim->local[(size_t)at * count + (size_t)k] =
                nbody_i_local(sim, sim->cell[at].level, &around, k);
    }
}

/* ----------------------------------------------------------------------------------------------
   >>cost: what methods cost on the CPU, in terms of NBODY_INVERSE_SQUARE: 0.47 ns where these were
   measured, by AVX2. A fit to the times of 1000 evaluations; the benchmark's group `auto` compares
   what is chosen with all else

       one term of 1/d: 0.52, with its logarithm 2.4
       a body       sort, P2M, L2P, results: 57, and 5.5 for each node that it is interpolated from
       16 targets   that a run of sources begins with: 110
       a cell       division, walks, M2M, L2L: 2450
       far cell     by a table: 0.32 for a product and a sum; by powers: 0.45
       an entry of the table of a softened law, which each level has of its own: 29, with a
                    logarithm 56. Filled in each evaluation where the square is fitted to the
                    bodies; kept if it is given, and if there is room for all
   ---------------------------------------------------------------------------------------------- */

#define NBODY_I_CELL_COST 2450.0
#define NBODY_I_RUN_COST (110.0 / (double)NBODY_I_LANES) /* for each target */

#ifdef NBODY_WITH_FUNCTION
static double nbody_i_call_cost(const nbody_desc *desc, int potential);
#else
#define nbody_i_call_cost(desc, potential) 1 /* such a desc is refused */
#endif

/* One term of this law. */
static double nbody_i_term_cost(const nbody_desc *desc, int potential)
{
    if (desc->law == NBODY_FUNCTION) return nbody_i_call_cost(desc, potential);
    if (nbody_i_law_in(desc, potential).core) return potential ? 200 : 4;
    if (desc->law == NBODY_INVERSE_SQUARE) return potential ? 1.1 : 1;
    return potential ? 2.4 : 0.52;
}

/* What a body costs besides its terms. */
static double nbody_i_body_cost(const nbody_desc *desc)
{
    return 57 + 5.5 * (desc->order == 1 ? 4 : desc->order * desc->order);
}

/* Products of a source's masses with the nodes, in whole vectors; 0: there is no table. */
static double nbody_i_table_entries(const nbody_desc *desc)
{
    int const nodes = desc->order * desc->order;
    if (desc->sources != NBODY_CHEBYSHEV) return 0;
    return nodes * (double)nbody_i_whole_lanes(nodes);
}

/* M2L of one cell on another. */
static double nbody_i_pair_cost(const nbody_desc *desc, int potential)
{
    double const numbers = nbody_i_series(desc);
    if (numbers > 0) return 0.45 * numbers * numbers;
    return 0.32 * (potential ? 3 : 2) * nbody_i_table_entries(desc);
}

/* To fill the table of one level in each evaluation, for laws that have one for each. kept: those
   of the last evaluation may stay. (Logarithms without series have tables too: not here.) */
static double nbody_i_fill_cost(const nbody_desc *desc, int kept, int potential)
{
    nbody_i_law const law = nbody_i_law_in(desc, 0);
    double entry = potential && law.law == NBODY_INVERSE ? 56 : 29;
    if (!law.softened && law.law != NBODY_FUNCTION) return 0;
    if (kept && nbody_i_has_kept_tables(desc)) return 0;
    if (law.law == NBODY_FUNCTION) entry += nbody_i_call_cost(desc, potential);
    return entry * 40 * nbody_i_table_entries(desc);
}

/* So few bodies are summed directly, without a look at them. A tree of 4 x 4 leaves would cost
   direct terms for 0.39 n^2 pairs and half a vector of 16 per leaf, 156 pairs of far cells, and
   bodies and cells: K + b n + 0.39 n^2. Up to where that becomes n^2, and a little more, no tree is
   tried: to make one and drop it takes longer. (MASS_CENTRES may cost less: a little less.) */
static int32_t nbody_i_few(const nbody_desc *desc, int potential)
{
    double const term = nbody_i_term_cost(desc, potential), a = 0.61 * term,
                 nodes = desc->sources == NBODY_CHEBYSHEV ? 0
                         : desc->order == 1               ? 64
                                                          : desc->order * desc->order,
                 b = nbody_i_body_cost(desc) - 15 + (50 + 9.75 * nodes) * term,
                 k = 21 * NBODY_I_CELL_COST + 156 * nbody_i_pair_cost(desc, potential) +
                     nbody_i_fill_cost(desc, desc->size > 0, potential);
    double const share = desc->sources == NBODY_CHEBYSHEV ? 1.1 : 0.9;
    return (int32_t)(share * (b + sqrt(b * b + 4 * a * k)) / (2 * a));
}

/* Bodies of a leaf above which four leaves cost less: of n evenly spread bodies, x in a leaf, each
   has 9 x near terms, and 4/3 cells with 27 far ones are shared by x bodies; C / x. 9 x + C / x is
   that of x / 4 where x^2 = 0.444 C; measured 0.38. Few bodies: not below 32, or to count many
   cells would take long; not below 20 by functions of yours, since only some cells of 10 would be
   divided. MASS_CENTRES: by the costs of trees with many sizes of leaves. */
static int32_t nbody_i_cost_leaf(const nbody_desc *desc, int32_t n, int potential)
{
    double const c = (NBODY_I_CELL_COST + 27 * nbody_i_pair_cost(desc, potential)) * 4 / 3;
    double const term = nbody_i_term_cost(desc, potential), leaf = sqrt(0.38 * c / term);
    if (desc->sources != NBODY_CHEBYSHEV) return term < 1 ? 140 : 112;
    if (leaf < 32 && n < 4096) return 32;
    return leaf < 20 && desc->law == NBODY_FUNCTION ? 20 : (int32_t)leaf;
}

/* The method by n alone, and the leaf of a tree. */
static void nbody_i_choose_early(nbody_desc *desc, int32_t n, int potential)
{
    nbody_desc tree = *desc;
    if (desc->periodic) {
        nbody_i_choose_periodic(desc, n);
        return;
    }
    if (tree.order == 0) tree.order = 4;
    if (tree.sources == NBODY_SOURCES_AUTO)
        tree.sources = tree.order > 1 ? NBODY_CHEBYSHEV : NBODY_MASS_CENTRES;
    desc->method = NBODY_FORCE_NODES;
    if (tree.order < 1 || tree.order > NBODY_MAX_ORDER) return; /* refused, or summed directly */
    if (n <= nbody_i_few(&tree, potential)) desc->method = NBODY_DIRECT;
    else if (desc->levels == 0 && desc->leaf == 0)
        desc->leaf = nbody_i_even_leaf(nbody_i_cost_leaf(&tree, n, potential), n);
}

/* ----------------------------------------------------------------------------------------------
   >>choose: NBODY_AUTO, when the square is known: bodies are counted in the cells of a few levels,
   and what a tree of them would cost is added up before it is made, O(n) and 5461 cells at most

   Costs are in the units of >>cost. The sums tell, too, what a tree costs that ends at one of these
   levels: where bodies cluster, that is often less. (MASS_CENTRES: not so.) Above NBODY_I_MANY
   bodies the direct sum cannot win, and fewer levels gain little.
   ---------------------------------------------------------------------------------------------- */

enum { NBODY_I_MANY = 65536 };

/* How many bodies are in each cell of levels 0 to `last`: row by row, a level after the other. */
enum { NBODY_I_COUNTED = 6 };

typedef struct nbody_i_counted {
    int last;
    int32_t bodies[((1 << (2 * NBODY_I_COUNTED + 2)) - 1) / 3];
} nbody_i_counted;

static int nbody_i_counted_at(int level, int x, int y)
{
    return ((1 << 2 * level) - 1) / 3 + (y << level | x);
}

/* To a level on which cells of evenly spread bodies have one to four. */
static void nbody_i_count_bodies(const nbody *sim, const nbody_i_input *input, nbody_i_counted *to)
{
    int level, k;
    int32_t i;
    to->last = 2;
    while (to->last < NBODY_I_COUNTED && sim->n >> (2 * to->last + 2) > 0) to->last++;
    memset(to->bodies, 0, (size_t)nbody_i_counted_at(to->last + 1, 0, 0) * sizeof *to->bodies);
    for (i = 0; i < sim->n; i++) {
        const nbody_real *p = nbody_i_at(input->pos, input->stride, i);
        nbody_real const u = nbody_i_placed(sim->frame, 0, (double)p[0]),
                         v = nbody_i_placed(sim->frame, 1, (double)p[1]);
        to->bodies[nbody_i_counted_at(to->last, nbody_i_column(sim->frame, to->last, 0, u),
                                      nbody_i_column(sim->frame, to->last, 1, v))]++;
    }
    for (level = to->last; level > 0; level--)
        for (k = 0; k < 1 << 2 * level; k++) {
            int const x = k & ((1 << level) - 1), y = k >> level;
            to->bodies[nbody_i_counted_at(level - 1, x / 2, y / 2)] +=
                to->bodies[nbody_i_counted_at(level, x, y)];
        }
}

/* A cell and those adjacent to it: that are not empty, that are divided, and bodies. */
typedef struct nbody_i_surroundings {
    int32_t cells, divided, bodies, in_leaves;
} nbody_i_surroundings;

static nbody_i_surroundings nbody_i_counted_around(const nbody_i_counted *counted, int level, int x,
                                                   int y, int32_t leaf)
{
    int const side = 1 << level;
    nbody_i_surroundings sum = {0, 0, 0, 0};
    int i, j;
    for (j = y > 0 ? y - 1 : 0; j <= y + 1 && j < side; j++)
        for (i = x > 0 ? x - 1 : 0; i <= x + 1 && i < side; i++) {
            int32_t const count = counted->bodies[nbody_i_counted_at(level, i, j)];
            sum.cells += count > 0;
            sum.divided += count > leaf;
            sum.bodies += count;
            sum.in_leaves += count > leaf ? 0 : count;
        }
    return sum;
}

/* M2L of so many cells on one. MASS_CENTRES: of 50 sources at most each. */
static double nbody_i_guess_far(const nbody *sim, double cells, double bodies, int potential)
{
    double const sources = bodies < 50 * cells ? bodies : 50 * cells;
    if (sim->desc.sources == NBODY_CHEBYSHEV)
        return cells * nbody_i_pair_cost(&sim->desc, potential);
    return sim->nodes * (sources * nbody_i_term_cost(&sim->desc, potential) +
                         cells * NBODY_I_RUN_COST);
}

/* Costs of a level: all but P2P on the bodies of cells that are divided; that, if this level were
   the last; on the last that is counted, what their descendants cost, and bodies in the fullest. */
typedef struct nbody_i_level_costs { double cells, whole, below, fullest; } nbody_i_level_costs;

/* The descendants of a cell of so many bodies, spread evenly: a leaf has 0.54 of the most on
   average, of which 9 are near and 27 far, unless there are fewer around. */
static double nbody_i_guess_below(const nbody *sim, double count, double near_bodies, int potential)
{
    double const leaf = sim->desc.leaf, most = 4.9 * leaf,
                 share = near_bodies < most ? near_bodies / most : 1;
    return count * (nbody_i_term_cost(&sim->desc, potential) * most * share +
                    9 * NBODY_I_RUN_COST) +
           2.5 * count / leaf *
               (NBODY_I_CELL_COST +
                nbody_i_guess_far(sim, 27 * share, 14.6 * leaf * share, potential));
}

/* Adds a cell, whose parent and what is around that is `wide`. Far from it are the children of
   those that are divided, and bodies of the others. Of a cell beside a leaf that is divided only as
   many bodies are near as a leaf may have. */
static void nbody_i_guess_cell(const nbody *sim, const nbody_i_counted *counted, int level, int x,
                               int y, const nbody_i_surroundings *wide, int potential,
                               nbody_i_level_costs *sum)
{
    int32_t const leaf = sim->desc.leaf, count = counted->bodies[nbody_i_counted_at(level, x, y)];
    int32_t const lanes = sim->desc.law == NBODY_FUNCTION ? 4 : NBODY_I_LANES;
    double const term = nbody_i_term_cost(&sim->desc, potential),
                 targets = (double)((count + lanes - 1) / lanes) * lanes;
    nbody_i_surroundings const around = nbody_i_counted_around(counted, level, x, y, leaf);
    double const runs = around.cells * NBODY_I_RUN_COST,
                 far_share = 1 - around.cells / (4.0 * wide->cells),
                 near_bodies = around.in_leaves + (double)around.divided * leaf;
    sum->cells += NBODY_I_CELL_COST;
    if (level >= 2)
        sum->cells += far_share * (nbody_i_guess_far(sim, 4.0 * wide->divided,
                                                     wide->bodies - wide->in_leaves, potential) +
                                   sim->nodes * term * wide->in_leaves);
    if (count <= leaf) sum->cells += targets * (term * near_bodies + runs);
    else {
        sum->whole += targets * (term * around.bodies + runs);
        sum->below += nbody_i_guess_below(sim, count, near_bodies, potential);
        if (count > sum->fullest) sum->fullest = count;
    }
}

/* The children of all cells of a level that are divided. */
static nbody_i_level_costs nbody_i_guess_children(const nbody *sim, const nbody_i_counted *counted,
                                                  int level, int potential)
{
    nbody_i_level_costs sum = {0, 0, 0, 0};
    int k, q;
    for (k = 0; k < 1 << 2 * level; k++) {
        int const x = k & ((1 << level) - 1), y = k >> level;
        nbody_i_surroundings wide;
        if (counted->bodies[nbody_i_counted_at(level, x, y)] <= sim->desc.leaf) continue;
        wide = nbody_i_counted_around(counted, level, x, y, sim->desc.leaf);
        for (q = 0; q < 4; q++) {
            int const i = 2 * x + (q & 1), j = 2 * y + (q >> 1);
            if (counted->bodies[nbody_i_counted_at(level + 1, i, j)] > 0)
                nbody_i_guess_cell(sim, counted, level + 1, i, j, &wide, potential, &sum);
        }
    }
    return sum;
}

/* What a tree would cost, about. *levels: with so many it costs least; 0: with all it would
   have. */
static double nbody_i_guess_cost(const nbody *sim, const nbody_i_input *input, int potential,
                                 int32_t *levels)
{
    double const fill = nbody_i_fill_cost(&sim->desc, !sim->frame->fitted, potential);
    nbody_i_counted counted;
    nbody_i_level_costs sum = {0, 0, 0, 0};
    double above = sim->n * nbody_i_body_cost(&sim->desc), least = 1e300;
    int level;
    *levels = 0;
    nbody_i_count_bodies(sim, input, &counted);
    for (level = 1; level <= counted.last; level++) {
        sum = nbody_i_guess_children(sim, &counted, level - 1, potential);
        above += sum.cells + (level >= 2 ? fill : 0);
        if (level < 2 || above + sum.whole >= least) continue;
        least = above + sum.whole;
        *levels = level + 1;
    }
    for (above += sum.below; sum.fullest > sim->desc.leaf; sum.fullest /= 4) above += fill;
    if (above > 1.05 * least) return least;
    *levels = 0;
    return above;
}

/* Takes DIRECT where that costs less than a tree of these bodies, or fewer levels. 1: DIRECT. Four
   times as many bodies as are always summed directly take a tree. */
static int nbody_i_choose(nbody *sim, const nbody_i_input *input)
{
    int const potential = sim->choose > 1;
    double const direct = (double)nbody_i_whole_lanes(sim->n) * sim->n *
                              nbody_i_term_cost(&sim->desc, potential) +
                          15.0 * sim->n;
    int32_t levels, i;
    if (sim->n > NBODY_I_MANY) return 0;
    if (direct > 1.05 * nbody_i_guess_cost(sim, input, potential, &levels) ||
        sim->n / 4 > nbody_i_few(&sim->desc, potential)) {
        if (levels > 0 && sim->desc.sources == NBODY_CHEBYSHEV) sim->desc.levels = levels;
        return 0;
    }
    sim->desc.method = NBODY_DIRECT;
    sim->nodes = sim->series = sim->per_cell = 0;
    for (i = 0; i < sim->n; i++) nbody_i_place(sim, input, i, i);
    return 1;
}

/* ----------------------------------------------------------------------------------------------
   >>reserve: memory for n evenly spread bodies
   ---------------------------------------------------------------------------------------------- */

/* Cells of a tree of n evenly spread bodies, level by level. Some cells hold more than `leaf`
   bodies by chance and have children, so one level more is counted, a quarter filled. */
static void nbody_i_even_frame(const nbody_desc *desc, int32_t n, nbody_frame *frame)
{
    int64_t cells = 0, level_cells = 1;
    int level, spare = 0;
    memset(frame, 0, sizeof *frame);
    for (level = 0; level < desc->levels && spare < 2; level++) {
        frame->level_first[level] = (int32_t)cells;
        frame->levels = level + 1;
        cells += spare ? level_cells / 4 + 64 : level_cells;
        if (cells > NBODY_I_N_MAX) cells = NBODY_I_N_MAX; /* nbody_build then reports it */
        if (level_cells * desc->leaf >= n) spare++;
        level_cells = 4 * level_cells < n ? 4 * level_cells : n;
    }
    frame->cells = (int32_t)cells;
    /* any of them may have sources */
    if (spare) frame->level_first[frame->levels - 1] = frame->cells;
}

/* Bodies, cells, sources and nodes of n evenly spread bodies. */
static nbody_result nbody_i_reserve_tree(nbody *sim, int32_t n)
{
    nbody_frame frame;
    int64_t room;
    nbody_result result = nbody_i_prepare_bodies(sim, n, NBODY_I_EXACT);
    if (result != NBODY_OK || n == 0 || sim->desc.method == NBODY_DIRECT) return result;
    nbody_i_even_frame(&sim->desc, n, &frame);
    sim->frame = &frame;
    room = 3 * ((int64_t)frame.cells - frame.level_first[frame.levels - 1]) + 256;
    result = nbody_i_make_room(sim, room, NBODY_I_EXACT);
    if (result != NBODY_OK) return result;
    result = nbody_i_prepare_sources(sim, NBODY_I_EXACT);
    return result == NBODY_OK ? nbody_i_prepare_nodes(sim, 1, NBODY_I_EXACT) : result;
}

NBODY_API nbody_result nbody_reserve(nbody *sim, const nbody_desc *desc, int32_t n)
{
    nbody_result result;
    if (!sim) return NBODY_BAD_ARGUMENT;
    nbody_i_make_empty(sim);
    if (n < 0) return NBODY_BAD_ARGUMENT;
    if (n > NBODY_I_N_MAX) return NBODY_TOO_MANY;
    result = nbody_i_begin(sim, desc, n, 1);
    if (result != NBODY_OK) return result;
    result = nbody_i_reserve_tree(sim, n);
    if (result == NBODY_OK && sim->desc.periodic) result = nbody_i_reserve_lattice(sim);
    nbody_i_make_empty(sim);
    return result;
}

/* ----------------------------------------------------------------------------------------------
   >>parallel-run: tasks by the caller's hook. What is cut, and how: >>pieces
   ---------------------------------------------------------------------------------------------- */

/* Terms that are worth a task: about 0.1 ms. */
#ifndef NBODY_I_PIECE
#define NBODY_I_PIECE 262144
#endif

/* Does piece number `piece` of a job. */
typedef void nbody_i_work(void *job, int32_t piece, int32_t pieces);

typedef struct nbody_i_tasks {
    nbody_i_work *work;
    void *job;
    int32_t pieces;
    uint8_t done[NBODY_MAX_TASKS]; /* each set by its own task */
} nbody_i_tasks;

/* Into how many pieces to cut work of about so many terms. */
static inline int32_t nbody_i_pieces(const nbody_parallel *parallel, int64_t terms)
{
    int64_t const worth = terms / NBODY_I_PIECE;
    if (!parallel->run || parallel->tasks < 2 || worth < 2) return 1;
    return worth < parallel->tasks ? (int32_t)worth : parallel->tasks;
}

/* What the caller runs: one task. */
static void nbody_i_do_task(void *context, int32_t index)
{
    nbody_i_tasks *tasks = (nbody_i_tasks *)context;
    tasks->work(tasks->job, index, tasks->pieces);
    tasks->done[index] = 1;
}

/* One piece: here and now. */
static inline nbody_result nbody_i_run_pieces(const nbody_parallel *parallel, int32_t pieces,
                                              nbody_i_work *work, void *job)
{
    nbody_i_tasks tasks = {work, job, pieces, {0}};
    int32_t k;
    if (pieces == 1) {
        work(job, 0, 1);
        return NBODY_OK;
    }
    parallel->run(nbody_i_do_task, &tasks, pieces, parallel->user);
    for (k = 0; k < pieces; k++) if (!tasks.done[k]) return NBODY_NOT_RUN;
    return NBODY_OK;
}

/* The first of n elements that piece `piece` has; its end is the begin of the next. */
static inline int32_t nbody_i_begin_of(int32_t n, int32_t piece, int32_t pieces)
{
    return (int32_t)((int64_t)n * piece / pieces);
}

/* Terms that pass by while one body is read and written. */
enum { NBODY_I_TOUCH = 16 };

/* Sets of masses that one pass computes at most (more/nbody_sets.h). A function with a parameter
   `sets` takes `sim` as an array of so many: the same tree, each with masses, sources and nodes of
   its own. */
enum { NBODY_I_SETS = 4 };

#ifndef NBODY_PLAIN

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif

#if (defined(__SSE2__) || defined(_M_X64)) && !defined(__TINYC__) && !defined(__CUDA_ARCH__)
#include <immintrin.h>
#define NBODY_I_X86 1
#elif defined(__aarch64__) && defined(__ARM_NEON) && !defined(__TINYC__)
#include <arm_neon.h>
#define NBODY_I_NEON 1
#endif

/* Compilers vectorise the loops over lanes; gcc 12 would unroll them first, and then not vectorise
   them. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define NBODY_I_KEEP_LOOP _Pragma("GCC unroll 1")
#else
#define NBODY_I_KEEP_LOOP
#endif

#if defined(__GNUC__) || defined(__clang__)
#define NBODY_I_INLINE static inline __attribute__((always_inline))
#else
#define NBODY_I_INLINE static inline
#endif

/* The loops over lanes are compiled a second time for AVX2, and chosen at run time (>>lanes): with
   gcc and clang on x86-64, unless the whole file is for AVX2. Not with gcc on Windows, where it
   does not align the stack (its bug 54412), and not where clang needs assembler for a root (before
   15, -ffast-math). */
#if defined(NBODY_I_X86) && defined(__x86_64__) && defined(__GNUC__) && !defined(__AVX2__) && \
    (!defined(_WIN32) || defined(__clang__)) && !defined(__INTEL_COMPILER) && \
    !defined(__NVCOMPILER) && !defined(__CUDACC__) && !defined(NBODY_I_ROOT_BY_ASM) && \
    !defined(NBODY_PLAIN_LANES)
#ifdef __clang__
#define NBODY_I_AVX2 __attribute__((target("avx2")))
#else /* in C++ gcc would prepare its callers to be unwound */
#define NBODY_I_AVX2 __attribute__((target("avx2"), nothrow))
#endif
#ifndef NBODY_I_HAS_AVX2 /* tests choose */
#define NBODY_I_HAS_AVX2() __builtin_cpu_supports("avx2")
#endif
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>lanes: 16 targets at once, for vector instructions

   The same sums as nbody_i_add, target by target, bit for bit. The loops over the lanes become
   vector instructions (16 lanes: gcc makes poor code of 8, and 32 do not fit the registers).

   Without -march a compiler may use the oldest x86-64 only, 4 floats an instruction. So the two
   functions that take nearly all time, nbody_i_sums and nbody_i_rows, are compiled twice, for any
   x86-64 and for AVX2 with 8 (avx2), and each call of them takes what the CPU has. AVX2 rounds the
   same: there are no fused operations in it. NBODY_PLAIN_LANES leaves the first ones alone.
   ---------------------------------------------------------------------------------------------- */

typedef struct nbody_i_lanes {
    nbody_real x[NBODY_I_LANES], y[NBODY_I_LANES];
    int32_t place[NBODY_I_LANES];
    int32_t terms;
    nbody_real partial[NBODY_I_PARTS][NBODY_I_LANES], total[NBODY_I_PARTS][NBODY_I_LANES],
        compensation[NBODY_I_PARTS][NBODY_I_LANES];
} nbody_i_lanes;

/* nbody_i_inverse_roots for AVX2. */
#ifdef NBODY_I_AVX2
NBODY_I_AVX2 static inline void nbody_i_avx2_roots(nbody_real *root, const nbody_real *u)
{
    int k;
#if NBODY_I_REAL_KIND == 1
    for (k = 0; k < NBODY_I_LANES; k += 8)
        _mm256_storeu_ps(root + k,
                         _mm256_div_ps(_mm256_set1_ps(1), _mm256_sqrt_ps(_mm256_loadu_ps(u + k))));
#else
    for (k = 0; k < NBODY_I_LANES; k += 4)
        _mm256_storeu_pd(root + k,
                         _mm256_div_pd(_mm256_set1_pd(1), _mm256_sqrt_pd(_mm256_loadu_pd(u + k))));
#endif
}
#endif

/* root[k] = 1 / sqrt(u[k]), as nbody_i_inverse_root. By intrinsics, because a compiler may not
   vectorise sqrt(): it could set errno (4 times as long). At most 8 floats at a time, as around it,
   with AVX-512 too: a load of 16 would wait for both stores of 8 (3 times as long, gcc 12). */
NBODY_I_INLINE void nbody_i_inverse_roots(int avx2, nbody_real *root, const nbody_real *u)
{
    int k;
#ifdef NBODY_I_AVX2
    if (avx2) {
        nbody_i_avx2_roots(root, u);
        return;
    }
#endif
    (void)avx2;
#if defined(NBODY_I_ROOT_BY_ASM) && NBODY_I_REAL_KIND == 1
    for (k = 0; k < NBODY_I_LANES; k += 4) {
        __m128 four = _mm_loadu_ps(u + k);
        __asm__(NBODY_I_ROOT_BY_ASM : "+x"(four));
        _mm_storeu_ps(root + k, _mm_div_ps(_mm_set1_ps(1), four));
    }
#elif defined(NBODY_I_X86) && defined(__AVX__) && NBODY_I_REAL_KIND == 1
    for (k = 0; k < NBODY_I_LANES; k += 8)
        _mm256_storeu_ps(root + k,
                         _mm256_div_ps(_mm256_set1_ps(1), _mm256_sqrt_ps(_mm256_loadu_ps(u + k))));
#elif defined(NBODY_I_X86) && NBODY_I_REAL_KIND == 1
    for (k = 0; k < NBODY_I_LANES; k += 4)
        _mm_storeu_ps(root + k, _mm_div_ps(_mm_set1_ps(1), _mm_sqrt_ps(_mm_loadu_ps(u + k))));
#elif defined(NBODY_I_X86) && defined(__AVX__)
    for (k = 0; k < NBODY_I_LANES; k += 4)
        _mm256_storeu_pd(root + k,
                         _mm256_div_pd(_mm256_set1_pd(1), _mm256_sqrt_pd(_mm256_loadu_pd(u + k))));
#elif defined(NBODY_I_X86)
    for (k = 0; k < NBODY_I_LANES; k += 2)
        _mm_storeu_pd(root + k, _mm_div_pd(_mm_set1_pd(1), _mm_sqrt_pd(_mm_loadu_pd(u + k))));
#elif defined(NBODY_I_NEON) && NBODY_I_REAL_KIND == 1
    for (k = 0; k < NBODY_I_LANES; k += 4)
        vst1q_f32(root + k, vdivq_f32(vdupq_n_f32(1), vsqrtq_f32(vld1q_f32(u + k))));
#elif defined(NBODY_I_NEON)
    for (k = 0; k < NBODY_I_LANES; k += 2)
        vst1q_f64(root + k, vdivq_f64(vdupq_n_f64(1), vsqrtq_f64(vld1q_f64(u + k))));
#else
    for (k = 0; k < NBODY_I_LANES; k++) root[k] = nbody_i_inverse_root(u[k]);
#endif
}

/* Lanes without any sums, of each set. */
static void nbody_i_clear_lanes(nbody_i_lanes *lanes, int sets)
{
    memset(lanes, 0, (size_t)sets * sizeof *lanes);
}

/* The sums of one target, to lane k and from it. */
static void nbody_i_set_lane(nbody_i_lanes *lanes, int32_t k, const nbody_i_target *t)
{
    int p;
    for (p = 0; p < NBODY_I_PARTS; p++) {
        lanes->total[p][k] = t->total[p];
        lanes->compensation[p][k] = t->compensation[p];
    }
}

static void nbody_i_get_lane(const nbody_i_lanes *lanes, int32_t k, nbody_i_target *t)
{
    int p;
    for (p = 0; p < NBODY_I_PARTS; p++) {
        t->total[p] = lanes->total[p][k];
        t->compensation[p] = lanes->compensation[p][k];
    }
}

/* nbody_i_carry_target on all lanes of each set. */
static void nbody_i_carry_lanes(nbody_i_lanes *lanes, int sets)
{
    int k, p, s;
    for (s = 0; s < sets; s++)
        for (p = 0; p < NBODY_I_PARTS; p++)
            for (k = 0; k < NBODY_I_LANES; k++)
                nbody_i_carry(&lanes[s].partial[p][k], &lanes[s].total[p][k],
                              &lanes[s].compensation[p][k]);
    lanes->terms = 0;
}

/* Clears the potentials that do not count, as nbody_i_in_potential says. Bodies in lanes have
   places in order. */
NBODY_I_INLINE void nbody_i_not_in_potential(const nbody_i_law *is, const nbody_i_lanes *lanes,
                                             const nbody_real *d2, int32_t self, nbody_real *term)
{
    int32_t const lane = self - lanes->place[0];
    int k;
    if (is->softened || is->core) {
        if (lanes->place[0] >= 0 && lane >= 0 && lane < NBODY_I_LANES) term[lane] = 0;
        return;
    }
    NBODY_I_KEEP_LOOP
    for (k = 0; k < NBODY_I_LANES; k++) term[k] = d2[k] > 0 ? term[k] : 0;
}

/* Sources first .. end - 1 of a run, without moments: nearly all time is spent here. avx2, law and
   potential are compile-time constants where this is called. */
NBODY_I_INLINE void nbody_i_lanes_monopoles(int avx2, const nbody_i_law *is, nbody_law law,
                                            int core, int potential, const nbody_i_run *run,
                                            int32_t first, int32_t end, nbody_i_lanes *lanes)
{
    nbody_real d2[NBODY_I_LANES], u[NBODY_I_LANES], root[NBODY_I_LANES], x[NBODY_I_LANES],
        y[NBODY_I_LANES], phi[NBODY_I_LANES], term[NBODY_I_LANES];
    nbody_real const soften2 = is->soften2;
    nbody_i_law constant = *is;
    int32_t s;
    int k;
    constant.law = law;
    constant.core = core;
    memcpy(x, lanes->partial[NBODY_I_X], sizeof x);
    memcpy(y, lanes->partial[NBODY_I_Y], sizeof y);
    memcpy(phi, lanes->partial[NBODY_I_POTENTIAL], sizeof phi);
    for (s = first; s < end; s++) {
        nbody_real const sx = run->x[s], sy = run->y[s], m = run->m[s];
        int32_t const self = run->place < 0 ? -2 : run->place + s;
        NBODY_I_KEEP_LOOP
        for (k = 0; k < NBODY_I_LANES; k++) {
            nbody_real const dx = sx - lanes->x[k], dy = sy - lanes->y[k];
            d2[k] = nbody_i_times(dx, dx) + nbody_i_times(dy, dy);
            u[k] = d2[k] + soften2;
        }
        if (law == NBODY_INVERSE_SQUARE) nbody_i_inverse_roots(avx2, root, u);
        NBODY_I_KEEP_LOOP
        for (k = 0; k < NBODY_I_LANES; k++) {
            nbody_real const dx = sx - lanes->x[k], dy = sy - lanes->y[k];
            nbody_real const mg = nbody_i_times(
                m, nbody_i_strength(&constant, u[k], law == NBODY_INVERSE ? 0 : root[k]));
            x[k] += nbody_i_times(mg, dx);
            y[k] += nbody_i_times(mg, dy);
        }
        if (!potential) continue;
        NBODY_I_KEEP_LOOP
        for (k = 0; k < NBODY_I_LANES; k++) term[k] = nbody_i_potential(&constant, u[k], root[k]);
        nbody_i_not_in_potential(is, lanes, d2, self, term);
        NBODY_I_KEEP_LOOP
        for (k = 0; k < NBODY_I_LANES; k++) phi[k] += nbody_i_times(m, term[k]);
    }
    memcpy(lanes->partial[NBODY_I_X], x, sizeof x);
    memcpy(lanes->partial[NBODY_I_Y], y, sizeof y);
    memcpy(lanes->partial[NBODY_I_POTENTIAL], phi, sizeof phi);
}

/* nbody_i_lanes_monopoles with second moments and without potentials. */
NBODY_I_INLINE void nbody_i_lanes_moments(int avx2, const nbody_i_law *is, nbody_law law,
                                          const nbody_i_run *run, int32_t first, int32_t end,
                                          nbody_i_lanes *lanes)
{
    nbody_real u[NBODY_I_LANES], root[NBODY_I_LANES], x[NBODY_I_LANES], y[NBODY_I_LANES];
    nbody_i_law constant = *is;
    int32_t s;
    int k;
    constant.law = law;
    memcpy(x, lanes->partial[NBODY_I_X], sizeof x);
    memcpy(y, lanes->partial[NBODY_I_Y], sizeof y);
    for (s = first; s < end; s++) {
        nbody_i_source const source = {run->x[s],  run->y[s],  run->m[s], run->xx[s],
                                       run->xy[s], run->yy[s], -1};
        NBODY_I_KEEP_LOOP
        for (k = 0; k < NBODY_I_LANES; k++) {
            nbody_real const dx = source.x - lanes->x[k], dy = source.y - lanes->y[k];
            u[k] = nbody_i_times(dx, dx) + nbody_i_times(dy, dy) + is->soften2;
        }
        if (law == NBODY_INVERSE_SQUARE) nbody_i_inverse_roots(avx2, root, u);
        NBODY_I_KEEP_LOOP
        for (k = 0; k < NBODY_I_LANES; k++) {
            nbody_real const dx = source.x - lanes->x[k], dy = source.y - lanes->y[k];
            nbody_real const root_k = law == NBODY_INVERSE ? 0 : root[k],
                             g = nbody_i_strength(&constant, u[k], root_k),
                             mg = nbody_i_times(source.m, g);
            nbody_real partial[NBODY_I_PARTS] = {0, 0, 0};
            nbody_i_add_moments(&constant, &source, dx, dy, u[k], g, partial);
            x[k] = x[k] + nbody_i_times(mg, dx) + partial[NBODY_I_X];
            y[k] = y[k] + nbody_i_times(mg, dy) + partial[NBODY_I_Y];
        }
    }
    memcpy(lanes->partial[NBODY_I_X], x, sizeof x);
    memcpy(lanes->partial[NBODY_I_Y], y, sizeof y);
}

/* The general case: nbody_i_add, lane by lane. */
static void nbody_i_lanes_fields(const nbody *sim, const nbody_i_law *law, const nbody_i_run *run,
                                 int32_t first, int32_t end, nbody_i_lanes *lanes)
{
    int32_t s;
    int k, p;
    for (s = first; s < end; s++) {
        nbody_i_source const source = nbody_i_source_of(sim, run, s);
        for (k = 0; k < NBODY_I_LANES; k++) {
            nbody_i_target t = nbody_i_target_at(lanes->x[k], lanes->y[k], lanes->place[k]);
            for (p = 0; p < NBODY_I_PARTS; p++) t.partial[p] = lanes->partial[p][k];
            nbody_i_add(law, &source, run->xx != NULL, &t);
            for (p = 0; p < NBODY_I_PARTS; p++) lanes->partial[p][k] = t.partial[p];
        }
    }
}

static void nbody_i_lanes_range(const nbody *sim, int sets, const nbody_i_law *law,
                                const nbody_i_run *run, int32_t first, int32_t end,
                                nbody_i_lanes *lanes);

/* At most NBODY_CHUNK sources that are given from a corner on: they are computed first. */
static void nbody_i_lanes_moved(const nbody *sim, int sets, const nbody_i_law *law,
                                const nbody_i_run *run, int32_t first, int32_t end,
                                nbody_i_lanes *lanes)
{
    nbody_real source_x[NBODY_CHUNK], source_y[NBODY_CHUNK], x[NBODY_I_LANES], y[NBODY_I_LANES];
    nbody_i_run given = *run;
    int32_t s;
    int k;
    for (s = first; s < end; s++) {
        nbody_i_source const source = nbody_i_source_of(sim, run, s);
        source_x[s - first] = source.x;
        source_y[s - first] = source.y;
    }
    given.local = 0;
    given.x = source_x;
    given.y = source_y;
    given.m = run->m + first;
    if (run->place >= 0) given.place = run->place + first;
    memcpy(x, lanes->x, sizeof x);
    memcpy(y, lanes->y, sizeof y);
    if (!run->x || run->moves)
        for (k = 0; k < NBODY_I_LANES; k++) {
            lanes->x[k] = nbody_i_target_from_corner(run, 0, x[k]);
            lanes->y[k] = nbody_i_target_from_corner(run, 1, y[k]);
        }
    nbody_i_lanes_range(sim, sets, law, &given, 0, end - first, lanes);
    memcpy(lanes->x, x, sizeof x);
    memcpy(lanes->y, y, sizeof y);
}

/* Sources first .. end - 1 of a run, without or with second moments. */
NBODY_I_INLINE void nbody_i_sums(int avx2, const nbody_i_law *law, const nbody_i_run *run,
                                 int32_t first, int32_t end, nbody_i_lanes *lanes)
{
    nbody_law const square = NBODY_INVERSE_SQUARE, other = NBODY_INVERSE;
    int const is_square = law->law == square, fields = law->potential;
    if (run->xx && is_square) nbody_i_lanes_moments(avx2, law, square, run, first, end, lanes);
    else if (run->xx) nbody_i_lanes_moments(avx2, law, other, run, first, end, lanes);
    else if (is_square && !fields)
        nbody_i_lanes_monopoles(avx2, law, square, 0, 0, run, first, end, lanes);
    else if (is_square) nbody_i_lanes_monopoles(avx2, law, square, 0, 1, run, first, end, lanes);
    else if (law->core && !fields)
        nbody_i_lanes_monopoles(avx2, law, other, 1, 0, run, first, end, lanes);
    else if (law->core) nbody_i_lanes_monopoles(avx2, law, other, 1, 1, run, first, end, lanes);
    else if (!fields) nbody_i_lanes_monopoles(avx2, law, other, 0, 0, run, first, end, lanes);
    else nbody_i_lanes_monopoles(avx2, law, other, 0, 1, run, first, end, lanes);
}

/* Adds 16 numbers of each row, times the row's factor, to 16 sums. */
NBODY_I_INLINE void nbody_i_rows(const nbody_real *rows, int32_t step, const nbody_real *factor,
                                 int32_t count, nbody_real sum[NBODY_I_LANES])
{
    nbody_real at[NBODY_I_LANES];
    int32_t b;
    int k;
    memcpy(at, sum, sizeof at);
    for (b = 0; b < count; b++, rows += step) {
        nbody_real const m = factor[b];
        NBODY_I_KEEP_LOOP
        for (k = 0; k < NBODY_I_LANES; k++) at[k] += nbody_i_times(rows[k], m);
    }
    memcpy(sum, at, sizeof at);
}

/* The two loops over lanes, compiled twice: for any CPU of this kind, and for AVX2. */
static void nbody_i_base_sums(const nbody_i_law *law, const nbody_i_run *run, int32_t first,
                               int32_t end, nbody_i_lanes *lanes)
{
    nbody_i_sums(0, law, run, first, end, lanes);
}

static void nbody_i_base_rows(const nbody_real *rows, int32_t step, const nbody_real *factor,
                               int32_t count, nbody_real sum[NBODY_I_LANES])
{
    nbody_i_rows(rows, step, factor, count, sum);
}

#ifdef NBODY_I_AVX2
NBODY_I_AVX2 static void nbody_i_avx2_sums(const nbody_i_law *law, const nbody_i_run *run,
                                           int32_t first, int32_t end, nbody_i_lanes *lanes)
{
    nbody_i_sums(1, law, run, first, end, lanes);
}

NBODY_I_AVX2 static void nbody_i_avx2_rows(const nbody_real *rows, int32_t step,
                                           const nbody_real *factor, int32_t count,
                                           nbody_real sum[NBODY_I_LANES])
{
    nbody_i_rows(rows, step, factor, count, sum);
}

#define NBODY_I_CHOSEN(base, avx2) (NBODY_I_HAS_AVX2() ? avx2 : base)
#else
#define NBODY_I_CHOSEN(base, avx2) base
#endif

/* The masses of a run in each set: of bodies, or of CHEBYSHEV's points. */
static inline void nbody_i_masses_in_sets(const nbody *sim, int sets, const nbody_i_run *run,
                                          const nbody_real *mass[NBODY_I_SETS])
{
    int s;
    mass[0] = run->m;
    for (s = 1; s < sets; s++)
        mass[s] = run->place >= 0 ? sim[s].acts + run->place : sim[s].vm + (run->m - sim->vm);
}

#ifdef NBODY_WITH_FUNCTION
static void nbody_i_lanes_function(const nbody *sim, int sets, const nbody_i_law *law,
                                   const nbody_i_run *run, int32_t first, int32_t end,
                                   nbody_i_lanes *lanes);
#else
#define nbody_i_lanes_function(sim, sets, law, run, first, end, lanes) ((void)0)
#endif

/* Sources first .. end - 1 of a run in each set: more/nbody_sets.h. */
#ifdef NBODY_WITH_SETS
#define NBODY_I_WITH_SETS
static void nbody_i_lanes_sets(const nbody *sim, int sets, const nbody_i_law *law,
                               const nbody_i_run *run, int32_t first, int32_t end,
                               nbody_i_lanes *lanes);
#else
#define nbody_i_lanes_sets(sim, sets, law, run, first, end, lanes) ((void)0)
#endif

/* Sources first .. end - 1 of a run, by the fastest version that applies. */
static void nbody_i_lanes_range(const nbody *sim, int sets, const nbody_i_law *law,
                                const nbody_i_run *run, int32_t first, int32_t end,
                                nbody_i_lanes *lanes)
{
    if (run->local) nbody_i_lanes_moved(sim, sets, law, run, first, end, lanes);
    else if (nbody_i_by_function(law))
        nbody_i_lanes_function(sim, sets, law, run, first, end, lanes);
    else if (sets > 1) nbody_i_lanes_sets(sim, sets, law, run, first, end, lanes);
    else if (run->xx ? law->potential : !run->x)
        nbody_i_lanes_fields(sim, law, run, first, end, lanes);
    else NBODY_I_CHOSEN(nbody_i_base_sums, nbody_i_avx2_sums)(law, run, first, end, lanes);
}

/* All of a run on all lanes; partial sums are added to the totals after every 64 terms. */
static void nbody_i_lanes_run(const nbody *sim, int sets, const nbody_i_law *law,
                              const nbody_i_run *run, nbody_i_lanes *lanes)
{
    int32_t s = 0;
    while (s < run->count) {
        int32_t const room = NBODY_CHUNK - lanes->terms, left = run->count - s,
                      take = left < room ? left : room;
        nbody_i_lanes_range(sim, sets, law, run, s, s + take, lanes);
        s += take;
        lanes->terms += take;
        if (lanes->terms == NBODY_CHUNK) nbody_i_carry_lanes(lanes, sets);
    }
}

/* nbody_i_rows, by the instructions that the CPU has. */
static void nbody_i_lanes_rows(const nbody_real *rows, int32_t step, const nbody_real *factor,
                               int32_t count, nbody_real sum[NBODY_I_LANES])
{
    NBODY_I_CHOSEN(nbody_i_base_rows, nbody_i_avx2_rows)(rows, step, factor, count, sum);
}

/* Of each set: the factors of the rows, and what they are added to. */
typedef struct nbody_i_sides {
    const nbody_real *factor[NBODY_I_SETS];
    nbody_real *sum[NBODY_I_SETS];
} nbody_i_sides;

#ifdef NBODY_WITH_SETS
static void nbody_i_lanes_rows_of_four(const nbody_real *rows, int32_t step, int sets,
                                       nbody_i_sides *sides, int32_t count);
#else
#define nbody_i_lanes_rows_of_four(rows, step, sets, sides, count) ((void)0)
#endif

/* Rows times the factors of each set. */
static void nbody_i_lanes_rows_of_sets(const nbody_real *rows, int32_t step, int sets,
                                       nbody_i_sides *sides, int32_t count)
{
    if (sets == 1) nbody_i_lanes_rows(rows, step, sides->factor[0], count, sides->sum[0]);
    else nbody_i_lanes_rows_of_four(rows, step, sets, sides, count);
}

/* nbody_i_carry_table on all lanes of each set. */
static void nbody_i_carry_lanes_table(nbody_i_lanes *lanes, int sets,
                                      const nbody_real scale[NBODY_I_PARTS])
{
    int k, p, s;
    for (s = 0; s < sets; s++)
        for (p = 0; p < NBODY_I_PARTS; p++)
            for (k = 0; k < NBODY_I_LANES; k++)
                lanes[s].partial[p][k] = nbody_i_times(lanes[s].partial[p][k], scale[p]);
    nbody_i_carry_lanes(lanes, sets);
}

/* ----------------------------------------------------------------------------------------------
   >>up-lanes: P2M and M2M, all sources of a cell at once
   ---------------------------------------------------------------------------------------------- */

/* MASS_CENTRES: as nbody_i_plain_centres, for all sub-cells at once. */
static void nbody_i_make_centres(nbody *sim, int32_t at)
{
    const nbody_cell *cell = &sim->cell[at];
    nbody_i_subgrid const grid = nbody_i_subgrid_of(sim, cell);
    nbody_i_moments moments[64];
    size_t const first = (size_t)at * (size_t)sim->per_cell;
    int c, k;
    int32_t s;
    memset(moments, 0, (size_t)sim->per_cell * sizeof *moments);
    for (c = 0; c < cell->children; c++) {
        nbody_i_run const run = nbody_i_given_by(sim, cell->child + c);
        for (s = 0; s < run.count; s++) {
            nbody_i_source const source = nbody_i_source_of(sim, &run, s);
            nbody_i_accumulate(&moments[nbody_i_subcell_at(&grid, source.x, source.y)],
                               (double)source.x - grid.x, (double)source.y - grid.y, &source);
        }
    }
    sim->made[at] = 0;
    for (k = 0; k < sim->per_cell; k++)
        if (moments[k].m > 0)
            nbody_i_store_centre(sim, &moments[k], grid.x, grid.y, first + (size_t)sim->made[at]++);
}

/* P2M, CHEBYSHEV: as nbody_i_mass_of_bodies, for all points at once. */
static void nbody_i_make_leaf_masses(const nbody *sim, int sets, int32_t at)
{
    const nbody_cell *cell = &sim->cell[at];
    double mass[NBODY_I_SETS][NBODY_MAX_ORDER * NBODY_MAX_ORDER];
    int const side = sim->rule.side;
    int32_t b;
    int i, j, s;
    for (s = 0; s < sets; s++)
        for (i = 0; i < sim->per_cell; i++) mass[s][i] = 0;
    for (b = cell->first; b < cell->first + nbody_i_acting(cell); b++) {
        nbody_i_stencil const sx = nbody_i_stencil_in(sim, cell, 0, sim->x[b]),
                              sy = nbody_i_stencil_in(sim, cell, 1, sim->y[b]);
        for (s = 0; s < sets; s++)
            for (j = 0; j < side; j++)
                for (i = 0; i < side; i++)
                    mass[s][i + j * side] += (double)sim[s].acts[b] *
                                             (double)(sx.weight[i] * sy.weight[j]);
    }
    for (s = 0; s < sets; s++)
        for (i = 0; i < sim->per_cell; i++)
            sim[s].vm[(size_t)at * (size_t)sim->per_cell + (size_t)i] = (nbody_real)mass[s][i];
}

/* M2M, CHEBYSHEV: adds one child. As nbody_i_mass_of_child, but the sums along the child's rows,
   which are the same for all j, are computed once. */
static void nbody_i_m2m(const nbody *sim, int32_t child, nbody_real *to)
{
    const nbody_cell *cell = &sim->cell[child];
    const nbody_real *mass = sim->vm + (size_t)child * (size_t)sim->per_cell;
    int const side = sim->rule.side;
    nbody_real along[NBODY_MAX_ORDER][NBODY_MAX_ORDER];
    int a, b, i, j;
    for (b = 0; b < side; b++) {
        for (i = 0; i < side; i++) along[b][i] = 0;
        for (a = 0; a < side; a++)
            for (i = 0; i < side; i++)
                along[b][i] += sim->rule.to_child[cell->x & 1][a][i] * mass[a + b * side];
    }
    for (j = 0; j < side; j++)
        for (i = 0; i < side; i++) {
            nbody_real sum = 0;
            for (b = 0; b < side; b++) sum += sim->rule.to_child[cell->y & 1][b][j] * along[b][i];
            to[i + j * side] += sum;
        }
}

/* CHEBYSHEV: P2M of a leaf or M2M of a parent, in each set. */
static void nbody_i_make_masses(const nbody *sim, int sets, int32_t at)
{
    const nbody_cell *cell = &sim->cell[at];
    int i, c, s;
    if (cell->child < 0) {
        nbody_i_make_leaf_masses(sim, sets, at);
        return;
    }
    for (s = 0; s < sets; s++) {
        nbody_real *to = sim[s].vm + (size_t)at * (size_t)sim->per_cell;
        for (i = 0; i < sim->per_cell; i++) to[i] = 0;
        for (c = 0; c < cell->children; c++) nbody_i_m2m(&sim[s], cell->child + c, to);
    }
}

/* The sources of one cell, in each set of masses. */
static void nbody_i_make_sources_of(nbody *sim, int sets, int32_t at)
{
    if (sim->desc.sources == NBODY_CHEBYSHEV) nbody_i_make_masses(sim, sets, at);
    else if (sim->cell[at].child >= 0) nbody_i_make_centres(sim, at);
    else if (sim->cell[at].level < sim->frame->levels - 1) sim->made[at] = 0;
}

/* ----------------------------------------------------------------------------------------------
   >>down-lanes: L2L and M2L, 16 nodes at a time, of several cells
   ---------------------------------------------------------------------------------------------- */

/* Cells of a level whose nodes are computed together, so that the table of one offset is read once
   for all of them: at order 8 one offset has 32 KB, all have 1.3 MB. Of more than 144 nodes, as
   many as there is room for. On the stack: 56 KB, 108 KB for double. */
enum {
    NBODY_I_BATCH = 8,
    NBODY_I_BATCH_LANES = NBODY_I_BATCH * 9,
    NBODY_I_NODE_LANES = (NBODY_MAX_ORDER * NBODY_MAX_ORDER + NBODY_I_LANES - 1) / NBODY_I_LANES
};

/* The sums of a series, up to nbody_i_series numbers and one for padding. */
enum { NBODY_I_SERIES_ROOM = (NBODY_MAX_ORDER + 3) / 4 * NBODY_I_LANES };
typedef struct nbody_i_series_sums {
    nbody_real partial[NBODY_I_SERIES_ROOM], total[NBODY_I_SERIES_ROOM],
        compensation[NBODY_I_SERIES_ROOM];
    int32_t terms;
} nbody_i_series_sums;

/* The weights of L2L, [half][i] of the parent's node i at the child's nodes: a row for 16 lanes. */
typedef struct nbody_i_to_child {
    nbody_real row[2][NBODY_MAX_ORDER][NBODY_I_LANES];
} nbody_i_to_child;

typedef struct nbody_i_batch {
    int32_t first, count;                   /* cells: with several sets, fewer */
    nbody_i_around around[NBODY_I_BATCH];
    nbody_i_to_child to_child;
    nbody_i_lanes lanes[NBODY_I_BATCH_LANES]; /* [cell][16 nodes][set] */
} nbody_i_batch;

/* Cells of a batch. */
static int32_t nbody_i_batch_room(const nbody *sim, int sets)
{
    int32_t const groups = nbody_i_row(sim) / NBODY_I_LANES;
    int32_t const room = groups > 9 ? NBODY_I_BATCH_LANES / groups : NBODY_I_BATCH;
    return room / sets;
}

/* The lanes of cell number c. */
static nbody_i_lanes *nbody_i_lanes_of(const nbody *sim, nbody_i_batch *batch, int sets, int32_t c)
{
    return batch->lanes + c * sets * (nbody_i_row(sim) / NBODY_I_LANES);
}

/* 16 nodes of a cell, or the remaining ones: their positions. */
static void nbody_i_load_nodes(const nbody *sim, int sets, int32_t at, int32_t a,
                               nbody_i_lanes *lanes)
{
    int32_t const count = sim->nodes - a < NBODY_I_LANES ? sim->nodes - a : NBODY_I_LANES;
    int32_t k;
    nbody_i_clear_lanes(lanes, sets);
    for (k = 0; k < NBODY_I_LANES; k++) {
        nbody_i_target const t = nbody_i_node(sim, at, a + (k < count ? k : 0));
        lanes->x[k] = t.x;
        lanes->y[k] = t.y;
        lanes->place[k] = -1;
    }
}

/* Turns the weights of a child's nodes into rows of lanes. */
static void nbody_i_transpose_weights(const nbody_rule *rule, nbody_i_to_child *to_child)
{
    int bit, i, a;
    memset(to_child, 0, sizeof *to_child);
    for (bit = 0; bit < 2; bit++)
        for (i = 0; i < rule->side; i++)
            for (a = 0; a < rule->side; a++) to_child->row[bit][i][a] = rule->to_child[bit][a][i];
}

/* L2L of one component: as nbody_i_l2l, but the sums along the parent's rows, which are the same
   for all rows of the child, are computed once. */
static void nbody_i_lanes_l2l(const nbody *sim, int sets, const nbody_i_to_child *to_child,
                              int32_t at, int p, nbody_i_lanes *lanes)
{
    const nbody_cell *cell = &sim->cell[at];
    const nbody_real *nodes = p == NBODY_I_X ? sim->fx : p == NBODY_I_Y ? sim->fy : sim->fp;
    const nbody_real *value = nodes + (size_t)cell->parent * (size_t)sim->nodes;
    int const side = sim->rule.side;
    nbody_real along[NBODY_MAX_ORDER][NBODY_I_LANES], sum[NBODY_I_LANES];
    int i, j;
    memset(along, 0, sizeof along);
    for (j = 0; j < side; j++)
        nbody_i_lanes_rows(to_child->row[cell->x & 1][0], NBODY_I_LANES, value + j * side, side,
                           along[j]);
    for (j = 0; j < side; j++) {
        memset(sum, 0, sizeof sum);
        nbody_i_lanes_rows(along[0], NBODY_I_LANES, sim->rule.to_child[cell->y & 1][j], side, sum);
        for (i = 0; i < side; i++) {
            int const a = i + j * side;
            lanes[a / NBODY_I_LANES * sets].partial[p][a % NBODY_I_LANES] = sum[i];
        }
    }
}

/* L2L, then P2L and M2L without table; the cells that act by the table are noted in `around`. */
static void nbody_i_begin_nodes(const nbody *sim, int sets, const nbody_i_law *law,
                                const nbody_i_to_child *to_child, int32_t at,
                                nbody_i_around *around, nbody_i_lanes *lanes)
{
    const nbody_cell *cell = &sim->cell[at];
    nbody_far walk = nbody_far_of(sim, at);
    int32_t const groups = nbody_i_row(sim) / NBODY_I_LANES;
    int32_t g;
    int p, s;
    memset(around, -1, sizeof *around);
    for (g = 0; g < groups; g++)
        nbody_i_load_nodes(sim, sets, at, g * NBODY_I_LANES, &lanes[g * sets]);
    if (cell->level > 2)
        for (p = 0; p < NBODY_I_PARTS - !law->potential; p++)
            for (s = 0; s < sets; s++) nbody_i_lanes_l2l(&sim[s], sets, to_child, at, p, &lanes[s]);
    for (g = 0; g < groups; g++) nbody_i_carry_lanes(&lanes[g * sets], sets);
    while (nbody_next_far(&walk)) {
        const nbody_cell *source = &sim->cell[walk.cell];
        nbody_i_run run;
        if (nbody_i_by_table(sim, source, cell)) {
            around->source[nbody_i_offset(source, cell)] = walk.cell;
            continue;
        }
        run = nbody_i_run_on_nodes(sim, walk.cell, cell);
        for (g = 0; g < groups; g++) nbody_i_lanes_run(sim, sets, law, &run, &lanes[g * sets]);
    }
    for (g = 0; g < groups; g++) nbody_i_carry_lanes(&lanes[g * sets], sets);
}

/* M2L: the cell at one offset, on all nodes of one cell. */
static void nbody_i_add_offset(const nbody *sim, int sets, const nbody_i_law *law, int level,
                               int offset, int32_t from, const nbody_real scale[NBODY_I_PARTS],
                               nbody_i_lanes *lanes)
{
    int32_t const row = nbody_i_row(sim);
    nbody_i_sides sides;
    int32_t a;
    int p, s;
    for (s = 0; s < sets; s++) sides.factor[s] = sim[s].vm + (size_t)from * (size_t)sim->per_cell;
    for (a = 0; a < row; a += NBODY_I_LANES, lanes += sets) {
        for (p = 0; p < NBODY_I_PARTS - !law->potential; p++) {
            for (s = 0; s < sets; s++) sides.sum[s] = lanes[s].partial[p];
            nbody_i_lanes_rows_of_sets(nbody_i_table_rows(sim, level, offset, p) + a, row, sets,
                                       &sides, sim->per_cell);
        }
        lanes->terms += sim->per_cell;
        if (lanes->terms >= NBODY_CHUNK) nbody_i_carry_lanes_table(lanes, sets, scale);
    }
}

/* M2L by the table for a batch: offset by offset, on all of its cells. */
static void nbody_i_add_tables(const nbody *sim, int sets, const nbody_i_law *law, int level,
                               nbody_i_batch *batch)
{
    int32_t const groups = nbody_i_row(sim) / NBODY_I_LANES;
    nbody_real scale[NBODY_I_PARTS];
    int offset;
    int32_t c, g;
    nbody_i_table_scale(sim, law, level, scale);
    for (offset = 0; offset < NBODY_I_OFFSETS; offset++)
        for (c = 0; c < batch->count; c++) {
            int32_t const from = batch->around[c].source[offset];
            if (from >= 0)
                nbody_i_add_offset(sim, sets, law, level, offset, from, scale,
                                   nbody_i_lanes_of(sim, batch, sets, c));
        }
    for (c = 0; c < batch->count; c++)
        for (g = 0; g < groups; g++)
            nbody_i_carry_lanes_table(nbody_i_lanes_of(sim, batch, sets, c) + g * sets, sets,
                                      scale);
}

/* The moments of a cell, as nbody_i_moment. */
static void nbody_i_lanes_moment(const nbody *sim, int sets, int32_t at)
{
    int32_t const count = sim->series;
    nbody_real sum[NBODY_I_SETS][NBODY_I_SERIES_ROOM];
    nbody_i_sides sides;
    int32_t k;
    int s;
    memset(sum, 0, sizeof sum);
    for (s = 0; s < sets; s++) sides.factor[s] = sim[s].vm + (size_t)at * (size_t)sim->per_cell;
    for (k = 0; k < count; k += NBODY_I_LANES) {
        for (s = 0; s < sets; s++) sides.sum[s] = sum[s] + k;
        nbody_i_lanes_rows_of_sets(nbody_i_series_powers(sim) + k, count + 1, sets, &sides,
                                   sim->per_cell);
    }
    for (s = 0; s < sets; s++)
        memcpy(sim[s].moment + (size_t)at * (size_t)count, sum[s], (size_t)count * sizeof **sum);
}

/* Adds the partial sums of all numbers of a series to their totals, in each set. */
static void nbody_i_carry_series(nbody_i_series_sums *sums, int sets, int32_t count)
{
    int32_t k;
    int s;
    for (s = 0; s < sets; s++)
        for (k = 0; k < count; k++)
            nbody_i_carry(&sums[s].partial[k], &sums[s].total[k], &sums[s].compensation[k]);
    sums->terms = 0;
}

/* M2L by powers: the cell at one offset. */
static void nbody_i_series_offset(const nbody *sim, int sets, nbody_real log_edge, int offset,
                                  int32_t from, nbody_i_series_sums *sums)
{
    int32_t const count = sim->series;
    nbody_i_sides sides;
    int32_t k;
    int s;
    for (s = 0; s < sets; s++) sides.factor[s] = sim[s].moment + (size_t)from * (size_t)count;
    for (k = 0; k < count; k += NBODY_I_LANES) {
        for (s = 0; s < sets; s++) sides.sum[s] = sums[s].partial + k;
        nbody_i_lanes_rows_of_sets(nbody_i_series_rows(sim, offset) + k, count + 1, sets, &sides,
                                   count);
    }
    for (s = 0; s < sets; s++) sums[s].partial[0] += nbody_i_times(log_edge, sides.factor[s][0]);
    sums->terms += count;
    if (sums->terms >= NBODY_CHUNK) nbody_i_carry_series(sums, sets, count);
}

/* The series of a cell's far cells at its nodes. */
static void nbody_i_lanes_local(const nbody *sim, int sets, const nbody_i_law *law, int level,
                                int32_t at, nbody_i_lanes *lanes)
{
    int32_t const row = nbody_i_row(sim);
    nbody_real scale[NBODY_I_PARTS];
    nbody_i_sides sides;
    int32_t a;
    int p, s;
    nbody_i_table_scale(sim, law, level, scale);
    for (s = 0; s < sets; s++) sides.factor[s] = sim[s].local + (size_t)at * (size_t)sim->series;
    for (a = 0; a < row; a += NBODY_I_LANES, lanes += sets) {
        for (p = 0; p < NBODY_I_PARTS - !law->potential; p++) {
            for (s = 0; s < sets; s++) sides.sum[s] = lanes[s].partial[p];
            nbody_i_lanes_rows_of_sets(nbody_i_series_values(sim, p) + a, row, sets, &sides,
                                       sim->series);
        }
        nbody_i_carry_lanes_table(lanes, sets, scale);
    }
}

/* M2L by powers for a batch, and what the series are worth at its nodes. */
static void nbody_i_add_series(const nbody *sim, int sets, const nbody_i_law *law, int level,
                               nbody_i_batch *batch)
{
    nbody_i_series_sums sums[NBODY_I_BATCH]; /* [cell][set] */
    nbody_real const log_edge = nbody_i_log_edge(sim, level);
    int offset, s;
    int32_t c, k;
    memset(sums, 0, sizeof sums);
    for (offset = 0; offset < NBODY_I_OFFSETS; offset++)
        for (c = 0; c < batch->count; c++) {
            int32_t const from = batch->around[c].source[offset];
            if (from >= 0)
                nbody_i_series_offset(sim, sets, log_edge, offset, from, &sums[c * sets]);
        }
    for (c = 0; c < batch->count; c++) {
        nbody_i_carry_series(&sums[c * sets], sets, sim->series);
        for (s = 0; s < sets; s++)
            for (k = 0; k < sim->series; k++)
                sim[s].local[(size_t)(batch->first + c) * (size_t)sim->series + (size_t)k] =
                    sums[c * sets + s].total[k] + sums[c * sets + s].compensation[k];
        nbody_i_lanes_local(sim, sets, law, level, batch->first + c,
                            nbody_i_lanes_of(sim, batch, sets, c));
    }
}

/* Stores the sums of all nodes of a cell. */
static void nbody_i_store_nodes(const nbody *sim, int sets, const nbody_i_law *law, int32_t at,
                                const nbody_i_lanes *lanes)
{
    int32_t a;
    for (a = 0; a < sim->nodes; a++) {
        nbody_i_target t;
        nbody_i_get_lane(&lanes[a / NBODY_I_LANES * sets], a % NBODY_I_LANES, &t);
        nbody_i_store_node(sim, law, at, a, &t);
    }
}

/* The nodes of the cells of a batch. */
static void nbody_i_make_nodes_of(const nbody *sim, int sets, const nbody_i_law *law, int level,
                                  nbody_i_batch *batch)
{
    int32_t c;
    int s;
    for (c = 0; c < batch->count; c++)
        nbody_i_begin_nodes(sim, sets, law, &batch->to_child, batch->first + c, &batch->around[c],
                            nbody_i_lanes_of(sim, batch, sets, c));
    if (sim->series) nbody_i_add_series(sim, sets, law, level, batch);
    else if (sim->table) nbody_i_add_tables(sim, sets, law, level, batch);
    for (c = 0; c < batch->count; c++)
        for (s = 0; s < sets; s++)
            nbody_i_store_nodes(&sim[s], sets, law, batch->first + c,
                                nbody_i_lanes_of(sim, batch, sets, c) + s);
}

#ifdef NBODY_WITH_PERIODIC
static void nbody_i_make_image_nodes(const nbody *sim, int sets, const nbody_i_law *law);
#endif

/* The nodes of all cells, level by level. */
static void nbody_i_make_nodes(nbody *sim, int sets, const nbody_i_law *law)
{
    int32_t const room = nbody_i_batch_room(sim, sets);
    nbody_i_batch batch;
    int level;
    int32_t at;
    nbody_i_transpose_weights(&sim->rule, &batch.to_child);
    if (sim->series) {
        nbody_i_ready_series(sim, law);
        for (at = sim->frame->level_first[2]; at < sim->frame->cells; at++)
            nbody_i_lanes_moment(sim, sets, at);
    }
    if (nbody_i_is_periodic(sim)) nbody_i_make_image_nodes(sim, sets, law);
    for (level = nbody_i_first_level(sim); level < sim->frame->levels; level++) {
        int32_t const end = sim->frame->level_first[level + 1];
        nbody_i_ready_table(sim, law, level);
        for (batch.first = sim->frame->level_first[level]; batch.first < end;
             batch.first += room) {
            batch.count = end - batch.first < room ? end - batch.first : room;
            nbody_i_make_nodes_of(sim, sets, law, level, &batch);
        }
    }
}

/* ----------------------------------------------------------------------------------------------
   >>bodies-lanes: L2P, M2P and P2P, 16 bodies of a leaf at a time
   ---------------------------------------------------------------------------------------------- */

/* Bodies first .. first + count - 1; unused lanes repeat the first, and are not stored. */
static void nbody_i_load_lanes(const nbody *sim, int sets, int32_t first, int32_t count,
                               nbody_i_lanes *lanes)
{
    int32_t k;
    nbody_i_clear_lanes(lanes, sets);
    for (k = 0; k < NBODY_I_LANES; k++) {
        int32_t const place = first + (k < count ? k : 0);
        lanes->x[k] = sim->x[place];
        lanes->y[k] = sim->y[place];
        lanes->place[k] = place;
    }
}

/* Stores the fields of the bodies at places first .. first + count - 1. */
static void nbody_i_store_lanes(const nbody *sim, const nbody_i_outcome *out, int32_t first,
                                int32_t count, const nbody_i_lanes *lanes)
{
    int32_t k;
    for (k = 0; k < count; k++) {
        nbody_i_target t;
        nbody_i_get_lane(lanes, k, &t);
        nbody_i_store(sim, out, sim->id[first + k], t.total, t.compensation);
    }
}

/* M2P, VIRTUAL_PARTICLES: the far cells of the leaf and of its ancestors, as nbody_i_add_far. */
static void nbody_i_lanes_far(const nbody *sim, const nbody_i_law *law, int32_t leaf,
                              nbody_i_lanes *lanes)
{
    int const levels = sim->cell[leaf].level;
    int level, up;
    for (level = 2; level <= levels; level++) {
        int32_t cell = leaf;
        nbody_far walk;
        for (up = levels; up > level; up--) cell = sim->cell[cell].parent;
        walk = nbody_far_of(sim, cell);
        while (nbody_next_far(&walk)) {
            nbody_i_run const run = nbody_i_run_of(sim, walk.cell, level);
            nbody_i_lanes_run(sim, 1, law, &run, lanes);
        }
    }
}

/* L2P, FORCE_NODES. */
static void nbody_i_lanes_l2p(const nbody *sim, int sets, const nbody_i_law *law, int32_t leaf,
                              int32_t count, nbody_i_lanes *lanes)
{
    int32_t k;
    int s;
    for (k = 0; k < count; k++) {
        nbody_i_stencil const sx = nbody_i_stencil_in(sim, &sim->cell[leaf], 0, lanes->x[k]),
                              sy = nbody_i_stencil_in(sim, &sim->cell[leaf], 1, lanes->y[k]);
        for (s = 0; s < sets; s++) {
            nbody_i_target t = nbody_i_target_at(lanes->x[k], lanes->y[k], lanes->place[k]);
            nbody_i_l2p_by(&sim[s], leaf, &sx, &sy, law->potential, &t);
            nbody_i_set_lane(&lanes[s], k, &t);
        }
    }
}

/* The k-th body of a leaf and the 15 after it. */
static void nbody_i_make_forces_from(const nbody *sim, int sets, const nbody_i_law *law,
                                     const nbody_i_outcome *out, int32_t leaf, int32_t k)
{
    const nbody_cell *cell = &sim->cell[leaf];
    int32_t const first = cell->first + k,
                  count = cell->count - k < NBODY_I_LANES ? cell->count - k : NBODY_I_LANES;
    nbody_near walk = nbody_near_of(sim, leaf);
    nbody_i_lanes lanes[NBODY_I_SETS];
    int32_t b;
    int s;
    nbody_i_load_lanes(sim, sets, first, count, lanes);
    if (sim->desc.method == NBODY_VIRTUAL_PARTICLES) nbody_i_lanes_far(sim, law, leaf, lanes);
    else if (cell->level >= 2) nbody_i_lanes_l2p(sim, sets, law, leaf, count, lanes);
    while (nbody_next_near(&walk)) {
        nbody_i_run run = nbody_i_near_run(sim, &walk);
        if (nbody_i_in_crowd(&sim->cell[walk.cell], first)) continue;
        if (nbody_i_is_periodic(sim)) nbody_i_shift_run(sim, &walk, &run);
        nbody_i_lanes_run(sim, sets, law, &run, lanes);
    }
    for (s = 0; s < sets && nbody_i_in_crowd(cell, first); s++)
        for (b = 0; b < count; b++)
            lanes[s].partial[NBODY_I_POTENTIAL][b] +=
                nbody_i_crowd_potential(&sim[s], law, cell, first + b);
    nbody_i_carry_lanes(lanes, sets);
    for (s = 0; s < sets; s++) nbody_i_store_lanes(&sim[s], &out[s], first, count, &lanes[s]);
}

/* The bodies of a leaf, 16 at a time. */
static void nbody_i_make_forces_of(const nbody *sim, int sets, const nbody_i_law *law,
                                   const nbody_i_outcome *out, int32_t leaf)
{
    int32_t k;
    for (k = 0; k < sim->cell[leaf].count; k += NBODY_I_LANES)
        nbody_i_make_forces_from(sim, sets, law, out, leaf, k);
}

/* NBODY_DIRECT (Kalms section 3.1.1): body `first` and the 15 after it. */
static void nbody_i_make_direct_from(const nbody *sim, int sets, const nbody_i_law *law,
                                     const nbody_i_outcome *out, int32_t first)
{
    nbody_i_run const all = nbody_i_bodies(sim, 0, sim->n);
    int32_t const count = sim->n - first < NBODY_I_LANES ? sim->n - first : NBODY_I_LANES;
    nbody_i_lanes lanes[NBODY_I_SETS];
    int s;
    if (nbody_i_is_periodic(sim)) {
        nbody_i_sum_images_on(sim, sets, law, out, first, count);
        return;
    }
    nbody_i_load_lanes(sim, sets, first, count, lanes);
    nbody_i_lanes_run(sim, sets, law, &all, lanes);
    nbody_i_carry_lanes(lanes, sets);
    for (s = 0; s < sets; s++) nbody_i_store_lanes(&sim[s], &out[s], first, count, &lanes[s]);
}

/* ----------------------------------------------------------------------------------------------
   >>pieces: builds and evaluations, cut into tasks for desc.parallel

   Each loop over bodies or cells is divided among tasks, which call the functions above and write
   to places of their own. Nothing is summed across tasks but integers; what must be joined is
   joined in the order of the bodies. Cells are dealt out in turn, NBODY_I_BATCH at a time, so that
   dense and sparse regions are shared; what is sorted or counted is cut into ranges.
   ---------------------------------------------------------------------------------------------- */

/* What the tasks of a build or an evaluation read; none of them changes it. */
typedef struct nbody_i_job {
    nbody *sim;                 /* [sets] */
    int sets;
    const nbody_i_input *input;
    const nbody_i_law *law;
    const nbody_i_outcome *out; /* [sets] */
    uint32_t *keys;             /* sorted */
    uint32_t *key, *id, *spare_key, *spare_id;
    int32_t *place;             /* [pieces][256] of a radix pass */
    int part, shift;            /* of the key */
    int level;
    int32_t first, end;         /* cells, or one large leaf */
    int32_t *made;              /* [pieces] children, and then where they begin */
} nbody_i_job;

/* A job on so many sets; what its tasks read besides is set by those who run it. */
static nbody_i_job nbody_i_job_of(nbody *sim, int sets)
{
    nbody_i_job job;
    memset(&job, 0, sizeof job);
    job.sim = sim;
    job.sets = sets;
    return job;
}

/* Runs a job of about so many terms. */
static nbody_result nbody_i_cut(nbody_i_job *job, int64_t terms, nbody_i_work *work)
{
    nbody_parallel const *parallel = &job->sim->desc.parallel;
    return nbody_i_run_pieces(parallel, nbody_i_pieces(parallel, terms), work, job);
}

/* ---- bounds ---- */

enum { NBODY_I_MEASURES = 64 }; /* pieces at most: memory is the limit here */

typedef struct nbody_i_measures {
    const nbody *sim;
    const nbody_i_input *input;
    int32_t n;
    nbody_i_bounds bounds[NBODY_I_MEASURES];
    nbody_result result[NBODY_I_MEASURES];
} nbody_i_measures;

/* The bounds of a piece. Functions nbody_i_..._task do one piece of a job. */
static void nbody_i_measure_task(void *of_job, int32_t piece, int32_t pieces)
{
    nbody_i_measures *job = (nbody_i_measures *)of_job;
    job->result[piece] = nbody_i_measure(
        job->sim, job->input, nbody_i_begin_of(job->n, piece, pieces),
        nbody_i_begin_of(job->n, piece + 1, pieces), &job->bounds[piece]);
}

/* Adds the bounds of later bodies. */
static void nbody_i_join_bounds(nbody_i_bounds *all, const nbody_i_bounds *part)
{
    int a;
    for (a = 0; a < 2; a++) {
        if (part->least[a] < all->least[a]) all->least[a] = part->least[a];
        if (part->most[a] > all->most[a]) all->most[a] = part->most[a];
    }
    if (part->heaviest > all->heaviest) all->heaviest = part->heaviest;
}

/* The bounds of all bodies, from those of the pieces. */
static nbody_result nbody_i_cut_measure(const nbody *sim, const nbody_i_input *input, int32_t n,
                                        nbody_i_bounds *bounds)
{
    nbody_i_measures job;
    int32_t k, pieces = nbody_i_pieces(&sim->desc.parallel, (int64_t)n * NBODY_I_TOUCH);
    nbody_result result;
    if (pieces > NBODY_I_MEASURES) pieces = NBODY_I_MEASURES;
    if (pieces > n) pieces = 1; /* no piece is empty */
    bounds->bad = -1;
    job.sim = sim;
    job.input = input;
    job.n = n;
    result = nbody_i_run_pieces(&sim->desc.parallel, pieces, nbody_i_measure_task, &job);
    if (result != NBODY_OK) return result;
    for (k = 0; k < pieces && result == NBODY_OK; k++) {
        if (k == 0) *bounds = job.bounds[0];
        else nbody_i_join_bounds(bounds, &job.bounds[k]);
        result = job.result[k];
        bounds->bad = job.bounds[k].bad;
    }
    return result;
}

/* ---- sort: as nbody_i_sort. A pass counts the digits of each range; then the bodies with the same
   digit are placed range by range ---- */

/* The keys of a range of places; before the first sort also the ids. */
static void nbody_i_key_task(void *of_job, int32_t piece, int32_t pieces)
{
    nbody_i_job *job = (nbody_i_job *)of_job;
    const nbody *sim = job->sim;
    int32_t i = nbody_i_begin_of(sim->n, piece, pieces);
    for (; i < nbody_i_begin_of(sim->n, piece + 1, pieces); i++) {
        if (job->part == nbody_i_parts_of_key(sim) - 1) job->id[i] = (uint32_t)i;
        job->key[i] = nbody_i_key_of(sim, job->input, (int32_t)job->id[i], job->part);
    }
}

/* Counts the digits of a range. */
static void nbody_i_digit_task(void *of_job, int32_t piece, int32_t pieces)
{
    nbody_i_job *job = (nbody_i_job *)of_job;
    int32_t const n = job->sim->n, end = nbody_i_begin_of(n, piece + 1, pieces);
    int32_t count[256], i;
    memset(count, 0, sizeof count);
    for (i = nbody_i_begin_of(n, piece, pieces); i < end; i++)
        count[job->key[i] >> job->shift & 255]++;
    memcpy(job->place + 256 * piece, count, sizeof count);
}

/* Moves a range, in order, to where each digit of it begins. */
static void nbody_i_scatter_task(void *of_job, int32_t piece, int32_t pieces)
{
    nbody_i_job *job = (nbody_i_job *)of_job;
    int32_t const n = job->sim->n, end = nbody_i_begin_of(n, piece + 1, pieces);
    int32_t place[256], i;
    memcpy(place, job->place + 256 * piece, sizeof place);
    for (i = nbody_i_begin_of(n, piece, pieces); i < end; i++) {
        int32_t const to = place[job->key[i] >> job->shift & 255]++;
        job->spare_key[to] = job->key[i];
        job->spare_id[to] = job->id[i];
    }
}

/* Counts become places: digit by digit, within a digit piece by piece. 0: all have one digit. */
static int nbody_i_place_digits(int32_t *place, int32_t pieces, int32_t n)
{
    int32_t at = 0, k;
    int d;
    for (d = 0; d < 256; d++) {
        int32_t const before = at;
        for (k = 0; k < pieces; k++) {
            int32_t const count = place[256 * k + d];
            place[256 * k + d] = at;
            at += count;
        }
        if (at - before == n) return 0;
    }
    return 1;
}

/* Copies the bodies of a range of places. */
static void nbody_i_place_task(void *of_job, int32_t piece, int32_t pieces)
{
    nbody_i_job *job = (nbody_i_job *)of_job;
    int32_t const n = job->sim->n;
    int32_t i = nbody_i_begin_of(n, piece, pieces);
    for (; i < nbody_i_begin_of(n, piece + 1, pieces); i++)
        nbody_i_place(job->sim, job->input, i, job->id ? (int32_t)job->id[i] : i);
}

/* nbody_i_radix_pass in tasks. */
static nbody_result nbody_i_cut_pass(nbody_i_job *job, int32_t pieces)
{
    nbody_parallel const *parallel = &job->sim->desc.parallel;
    uint32_t *const key = job->key, *const id = job->id;
    nbody_result result = nbody_i_run_pieces(parallel, pieces, nbody_i_digit_task, job);
    if (result != NBODY_OK || !nbody_i_place_digits(job->place, pieces, job->sim->n)) return result;
    result = nbody_i_run_pieces(parallel, pieces, nbody_i_scatter_task, job);
    job->key = job->spare_key;
    job->id = job->spare_id;
    job->spare_key = key;
    job->spare_id = id;
    return result;
}

/* Pieces of a sort. */
static int32_t nbody_i_sort_pieces(const nbody *sim, int32_t n)
{
    return nbody_i_pieces(&sim->desc.parallel, (int64_t)n * NBODY_I_TOUCH);
}

/* nbody_i_sort in tasks. */
static nbody_result nbody_i_cut_sort(nbody *sim, const nbody_i_input *input, uint32_t **keys)
{
    nbody_parallel const *parallel = &sim->desc.parallel;
    int32_t const n = sim->n, pieces = nbody_i_sort_pieces(sim, n);
    nbody_i_job job = nbody_i_job_of(sim, 1);
    nbody_result result = NBODY_OK;
    if (pieces == 1) {
        *keys = nbody_i_sort(sim, input);
        return NBODY_OK;
    }
    job.input = input;
    job.key = (uint32_t *)sim->block[NBODY_I_WORK].memory;
    job.id = job.key + n;
    job.spare_key = job.id + n;
    job.spare_id = job.spare_key + n;
    job.place = (int32_t *)(void *)(job.spare_id + n);
    job.part = nbody_i_parts_of_key(sim) - 1;
    for (; job.part >= 0; job.part--) {
        result = nbody_i_run_pieces(parallel, pieces, nbody_i_key_task, &job);
        if (result != NBODY_OK) return result;
        for (job.shift = 0; job.shift < nbody_i_bits_of_key(sim); job.shift += 8) {
            result = nbody_i_cut_pass(&job, pieces);
            if (result != NBODY_OK) return result;
        }
    }
    *keys = job.key;
    return nbody_i_run_pieces(parallel, pieces, nbody_i_place_task, &job);
}

/* ---- cells: the children of a level are counted, then made ---- */

/* The range of a level's cells that a piece has. */
static void nbody_i_cells_of(const nbody_i_job *job, int32_t piece, int32_t pieces, int32_t *first,
                             int32_t *end)
{
    *first = job->first + nbody_i_begin_of(job->end - job->first, piece, pieces);
    *end = job->first + nbody_i_begin_of(job->end - job->first, piece + 1, pieces);
}

/* Children that a cell will have. */
static int32_t nbody_i_children_of(const nbody *sim, const uint32_t *keys, const nbody_cell *cell)
{
    int32_t begin[5], count = 0;
    int q;
    nbody_i_quarters(keys, cell->first, cell->first + cell->count,
                     nbody_i_shift_of(sim, cell->level), begin);
    for (q = 0; q < 4; q++) count += begin[q] < begin[q + 1];
    return count;
}

/* Counts the children of a piece's cells. */
static void nbody_i_count_task(void *of_job, int32_t piece, int32_t pieces)
{
    nbody_i_job *job = (nbody_i_job *)of_job;
    const nbody *sim = job->sim;
    int32_t first, end, made = 0;
    nbody_i_cells_of(job, piece, pieces, &first, &end);
    for (; first < end; first++) {
        if (!nbody_i_is_divided(sim, &sim->cell[first])) continue;
        if (sim->frame->deep) nbody_i_next_keys(sim, &sim->cell[first], job->keys);
        made += nbody_i_children_of(sim, job->keys, &sim->cell[first]);
    }
    job->made[piece] = made;
}

/* made[piece]: where its children begin. */
static void nbody_i_divide_task(void *of_job, int32_t piece, int32_t pieces)
{
    nbody_i_job *job = (nbody_i_job *)of_job;
    nbody *sim = job->sim;
    int32_t first, end, at = job->made[piece];
    nbody_i_cells_of(job, piece, pieces, &first, &end);
    for (; first < end; first++)
        if (nbody_i_is_divided(sim, &sim->cell[first])) nbody_i_divide(sim, job->keys, first, &at);
}

/* Finds the adjacent cells of new cells. */
static void nbody_i_beside_task(void *of_job, int32_t piece, int32_t pieces)
{
    nbody_i_job *job = (nbody_i_job *)of_job;
    int32_t first, end;
    nbody_i_cells_of(job, piece, pieces, &first, &end);
    for (; first < end; first++) nbody_i_find_beside(job->sim, &job->sim->cell[first]);
}

/* Terms that pass by while a cell is made. */
enum { NBODY_I_CELL = 256 };

/* Divides the cells of a level. */
static nbody_result nbody_i_cut_level(nbody_i_job *job)
{
    int32_t made[NBODY_MAX_TASKS], k, at = job->end;
    int64_t const terms = (int64_t)(job->end - job->first) * NBODY_I_CELL;
    int32_t const pieces = nbody_i_pieces(&job->sim->desc.parallel, terms);
    nbody_result result;
    job->made = made;
    result = nbody_i_cut(job, terms, nbody_i_count_task);
    if (result != NBODY_OK) return result;
    for (k = 0; k < pieces; k++) {
        int32_t const count = made[k];
        made[k] = at;
        at += count;
    }
    result = nbody_i_make_room(job->sim, at - job->end, NBODY_I_AHEAD);
    if (result != NBODY_OK) return result;
    job->sim->frame->cells = at;
    return nbody_i_cut(job, terms, nbody_i_divide_task);
}

/* The cells of the sorted bodies, in tasks. */
static nbody_result nbody_i_cut_cells(nbody *sim, uint32_t *keys)
{
    nbody_frame *frame = sim->frame;
    nbody_i_job job = nbody_i_job_of(sim, 1);
    nbody_result result = nbody_i_begin_cells(sim);
    if (result != NBODY_OK) return result;
    job.keys = keys;
    job.end = 1;
    while (job.end > job.first) {
        result = nbody_i_cut_level(&job);
        if (result != NBODY_OK) return result;
        job.first = job.end;
        job.end = frame->cells;
        if (job.end == job.first) break;
        frame->level_first[++frame->levels] = job.end;
        result = nbody_i_cut(&job, (int64_t)(job.end - job.first) * NBODY_I_CELL,
                             nbody_i_beside_task);
        if (result != NBODY_OK) return result;
    }
    nbody_i_finish_cells(sim);
    return NBODY_OK;
}

/* nbody_i_make_cells in tasks. */
static nbody_result nbody_i_cut_leaves(nbody *sim, const nbody_i_input *input)
{
    uint32_t *keys = NULL;
    nbody_result const result = nbody_i_cut_sort(sim, input, &keys);
    return result == NBODY_OK ? nbody_i_cut_cells(sim, keys) : result;
}

/* ---- sources and nodes, level by level ---- */

/* Batch number `batch` of the job's cells; 0: there is none. */
static int32_t nbody_i_batch_of(const nbody_i_job *job, int32_t batch, int32_t *first)
{
    int32_t const cells = job->end - job->first, room = nbody_i_batch_room(job->sim, job->sets);
    if (batch >= cells / room + (cells % room > 0)) return 0;
    *first = job->first + batch * room;
    return job->end - *first < room ? job->end - *first : room;
}

/* The sources of every pieces-th batch of cells. */
static void nbody_i_source_task(void *of_job, int32_t piece, int32_t pieces)
{
    nbody_i_job *job = (nbody_i_job *)of_job;
    int32_t c, count, batch = piece;
    for (; (count = nbody_i_batch_of(job, batch, &c)) > 0; batch += pieces)
        for (; count > 0; count--, c++) nbody_i_make_sources_of(job->sim, job->sets, c);
}

/* The moments of the series of some cells. */
static void nbody_i_moment_task(void *of_job, int32_t piece, int32_t pieces)
{
    nbody_i_job *job = (nbody_i_job *)of_job;
    int32_t first, end;
    nbody_i_cells_of(job, piece, pieces, &first, &end);
    for (; first < end; first++) nbody_i_lanes_moment(job->sim, job->sets, first);
}

/* Every pieces-th row of a table. */
static void nbody_i_row_task(void *of_job, int32_t piece, int32_t pieces)
{
    nbody_i_job *job = (nbody_i_job *)of_job;
    int32_t const rows = NBODY_I_OFFSETS * job->sim->per_cell;
    int32_t row = piece;
    for (; row < rows; row += pieces) nbody_i_fill_row(job->sim, job->law, job->level, row);
}

/* The nodes of every pieces-th batch of cells. */
static void nbody_i_node_task(void *of_job, int32_t piece, int32_t pieces)
{
    nbody_i_job *job = (nbody_i_job *)of_job;
    nbody_i_batch batch;
    nbody_i_transpose_weights(&job->sim->rule, &batch.to_child);
    for (; (batch.count = nbody_i_batch_of(job, piece, &batch.first)) > 0; piece += pieces)
        nbody_i_make_nodes_of(job->sim, job->sets, job->law, job->level, &batch);
}

/* The cells of a level are those of the job. */
static void nbody_i_set_level(nbody_i_job *job, int level)
{
    job->level = level;
    job->first = job->sim->frame->level_first[level];
    job->end = job->sim->frame->level_first[level + 1];
}

/* The sources of all cells, level by level. */
static nbody_result nbody_i_cut_sources(nbody *sim, int sets)
{
    nbody_i_job job = nbody_i_job_of(sim, sets);
    int level;
    nbody_result result = NBODY_OK;
    for (level = sim->frame->levels - 1; level >= 2 && result == NBODY_OK; level--) {
        nbody_i_set_level(&job, level);
        result = nbody_i_cut(&job, (int64_t)(job.end - job.first) * sim->per_cell * 64,
                             nbody_i_source_task);
    }
    return result;
}

/* A table of all levels is filled once, serially. */
static nbody_result nbody_i_cut_table(nbody_i_job *job)
{
    nbody *sim = job->sim;
    nbody_result result;
    if (nbody_i_kind_of_table(sim, job->law, job->level) > 0) {
        nbody_i_ready_table(sim, job->law, job->level);
        return NBODY_OK;
    }
    if (!nbody_i_find_table(sim, job->law, job->level)) return NBODY_OK;
    result = nbody_i_cut(job, (int64_t)nbody_i_table_level(sim) * 8, nbody_i_row_task);
    if (result != NBODY_OK) sim->kept.levels = 0;
    return result;
}

/* The nodes of all cells, level by level. */
static nbody_result nbody_i_cut_nodes(nbody_i_job *job)
{
    nbody *sim = job->sim;
    /* 16 far cells; a product and a sum of a table are an eighth of a term */
    int64_t const work = sim->series ? 2 * (int64_t)sim->series * sim->series
                                     : (sim->table ? 4 : 16) * (int64_t)sim->nodes * sim->per_cell;
    int level;
    nbody_result result = NBODY_OK;
    job->level = 2;
    job->first = sim->frame->level_first[2];
    job->end = sim->frame->cells;
    if (sim->series) {
        nbody_i_ready_series(sim, job->law);
        result = nbody_i_cut(job,
                             (int64_t)(job->end - job->first) * sim->series * sim->per_cell / 8,
                             nbody_i_moment_task);
    }
    if (nbody_i_is_periodic(sim) && result == NBODY_OK)
        nbody_i_make_image_nodes(sim, job->sets, job->law);
    for (level = nbody_i_first_level(sim); level < sim->frame->levels && result == NBODY_OK;
         level++) {
        nbody_i_set_level(job, level);
        result = nbody_i_cut_table(job);
        if (result != NBODY_OK) break;
        result = nbody_i_cut(job, (job->end - job->first) * work, nbody_i_node_task);
    }
    return result;
}

/* ---- bodies: leaves are dealt out, and the bodies of a large leaf ---- */

/* Bodies of a leaf that are more than one task. */
#ifndef NBODY_I_LARGE_LEAF
#define NBODY_I_LARGE_LEAF 1024
#endif

/* The bodies of small leaves, of every pieces-th batch of cells. */
static void nbody_i_leaf_task(void *of_job, int32_t piece, int32_t pieces)
{
    nbody_i_job *job = (nbody_i_job *)of_job;
    const nbody_cell *cell = job->sim->cell;
    int32_t c, count, batch = piece;
    for (; (count = nbody_i_batch_of(job, batch, &c)) > 0; batch += pieces)
        for (; count > 0; count--, c++)
            if (cell[c].child < 0 && cell[c].count <= NBODY_I_LARGE_LEAF)
                nbody_i_make_forces_of(job->sim, job->sets, job->law, job->out, c);
}

/* Every pieces-th 16 bodies of one large leaf. */
static void nbody_i_large_leaf_task(void *of_job, int32_t piece, int32_t pieces)
{
    nbody_i_job *job = (nbody_i_job *)of_job;
    int32_t const count = job->sim->cell[job->first].count;
    int32_t k = piece * NBODY_I_LANES;
    for (; k < count; k += pieces * NBODY_I_LANES)
        nbody_i_make_forces_from(job->sim, job->sets, job->law, job->out, job->first, k);
}

/* Every pieces-th 16 bodies, by direct summation. */
static void nbody_i_direct_task(void *of_job, int32_t piece, int32_t pieces)
{
    nbody_i_job *job = (nbody_i_job *)of_job;
    int32_t first = piece * NBODY_I_LANES;
    for (; first < job->sim->n; first += pieces * NBODY_I_LANES)
        nbody_i_make_direct_from(job->sim, job->sets, job->law, job->out, first);
}

/* The bodies of small leaves, then those of each large one. */
static nbody_result nbody_i_cut_bodies(nbody_i_job *job)
{
    const nbody *sim = job->sim;
    int32_t c;
    nbody_result result;
    job->first = 0;
    job->end = sim->frame->cells;
    result = nbody_i_cut(job, (int64_t)sim->n * 256, nbody_i_leaf_task);
    for (c = 0; c < sim->frame->cells && result == NBODY_OK; c++) {
        const nbody_cell *cell = &sim->cell[c];
        if (cell->child >= 0 || cell->count <= NBODY_I_LARGE_LEAF) continue;
        job->first = c;
        result = nbody_i_cut(job, (int64_t)cell->count * cell->count, nbody_i_large_leaf_task);
    }
    return result;
}

/* The fields of all bodies. */
static nbody_result nbody_i_cut_fields(nbody *sim, int sets, const nbody_i_law *law,
                                       const nbody_i_outcome *out)
{
    nbody_i_job job = nbody_i_job_of(sim, sets);
    nbody_result result = NBODY_OK;
    job.law = law;
    job.out = out;
    if (!sim->cell)
        return nbody_i_cut(&job, (nbody_i_is_periodic(sim) ? 64 : 1) * (int64_t)sim->n * sim->n,
                           nbody_i_direct_task);
    if (sim->nodes > 0) result = nbody_i_cut_nodes(&job);
    return result == NBODY_OK ? nbody_i_cut_bodies(&job) : result;
}

#endif /* NBODY_PLAIN */

/* ----------------------------------------------------------------------------------------------
   >>faster: the seams: what is faster than >>plain, with the same bits
   ---------------------------------------------------------------------------------------------- */

/* Does the plain text run? */
static int nbody_i_is_plain(const nbody *sim)
{
#ifdef NBODY_PLAIN
    (void)sim;
    return 1;
#else
    return sim->desc.stage == NBODY_ONE_THREAD;
#endif
}

/* Is the work cut into tasks? */
static inline int nbody_i_is_cut(const nbody *sim)
{
    return sim->desc.parallel.run && sim->desc.parallel.tasks > 1 && !nbody_i_is_plain(sim);
}

#ifndef NBODY_PLAIN

/* All sources, in each set of masses. */
static nbody_result nbody_i_fast_sources(nbody *sim, int sets)
{
    int32_t c;
    int s;
    for (s = 0; s < sets; s++) nbody_i_weigh_crowds(&sim[s]);
    if (nbody_i_is_cut(sim)) return nbody_i_cut_sources(sim, sets);
    for (c = sim->frame->cells - 1; c >= sim->frame->level_first[2]; c--)
        nbody_i_make_sources_of(sim, sets, c);
    return NBODY_OK;
}

/* The steps of nbody_i_build, in tasks or not. */
static nbody_result nbody_i_fast_build(nbody *sim, const nbody_i_input *input, int32_t n)
{
    int const cut = nbody_i_is_cut(sim);
    nbody_i_job job = nbody_i_job_of(sim, 1);
    nbody_i_bounds bounds;
    nbody_result result = cut ? nbody_i_cut_measure(sim, input, n, &bounds)
                              : nbody_i_measure(sim, input, 0, n, &bounds);
    sim->bad_id = bounds.bad;
    if (result != NBODY_OK) return result;
    result = nbody_i_begin_build(sim, n, &bounds);
    if (result != NBODY_OK) return result;
    job.input = input;
    if (sim->desc.method == NBODY_DIRECT || n == 0) /* in the order of the input */
        return nbody_i_cut(&job, (int64_t)n * NBODY_I_TOUCH, nbody_i_place_task);
    result = nbody_i_make_tree(sim, input, cut ? nbody_i_cut_leaves : nbody_i_make_cells);
    if (result != NBODY_OK || !sim->cell) return result;
    result = nbody_i_prepare_sources(sim, NBODY_I_AHEAD);
    return result == NBODY_OK ? nbody_i_fast_sources(sim, 1) : result;
}

static int nbody_i_build_faster(nbody *sim, const nbody_i_input *input, int32_t n,
                                nbody_result *result)
{
    if (nbody_i_is_plain(sim)) return 0;
    *result = nbody_i_fast_build(sim, input, n);
    return 1;
}

static int nbody_i_fields_faster(nbody *sim, int sets, const nbody_i_law *law,
                                 const nbody_i_outcome *out, nbody_result *result)
{
    int32_t k;
    if (nbody_i_is_plain(sim)) return 0;
    *result = NBODY_OK;
    if (nbody_i_is_cut(sim)) {
        *result = nbody_i_cut_fields(sim, sets, law, out);
        return 1;
    }
    for (k = 0; k < sim->n && !sim->cell; k += NBODY_I_LANES)
        nbody_i_make_direct_from(sim, sets, law, out, k);
    if (sim->nodes > 0) nbody_i_make_nodes(sim, sets, law);
    for (k = 0; k < sim->frame->cells; k++)
        if (sim->cell[k].child < 0) nbody_i_make_forces_of(sim, sets, law, out, k);
    return 1;
}

/* Room for the counters of a sort in tasks, as bodies of a sort: 256 a piece are as much as 64. */
static size_t nbody_i_counters_faster(const nbody *sim, int32_t n)
{
    int32_t const pieces = nbody_i_sort_pieces(sim, n);
    return pieces > 1 ? 64 * (size_t)pieces : 0;
}

#endif

/* ----------------------------------------------------------------------------------------------
   >>texts: version and results
   ---------------------------------------------------------------------------------------------- */

#define NBODY_I_TEXT(code, text) #code ": " text,

NBODY_API int nbody_version(void)
{
    return NBODY_VERSION_MAJOR * 10000 + NBODY_VERSION_MINOR * 100 + NBODY_VERSION_PATCH;
}

NBODY_API const char *nbody_result_text(nbody_result result)
{
    static const char *const texts[] = {NBODY_RESULTS(NBODY_I_TEXT) "not a nbody_result"};
    return texts[(int)result >= 0 && result < NBODY_RESULT_COUNT ? (int)result
                                                                 : NBODY_RESULT_COUNT];
}

/* ----------------------------------------------------------------------------------------------
   >>count: terms of the last evaluation, by the walks, without computing any
   ---------------------------------------------------------------------------------------------- */

/* Terms of the far cells of one cell, for `targets` bodies or nodes. */
static void nbody_i_count_far(const nbody *sim, int32_t at, int64_t targets, nbody_counts *counts)
{
    const nbody_cell *cell = &sim->cell[at];
    nbody_far walk = nbody_far_of(sim, at);
    if (cell->level == 2 && nbody_i_is_periodic(sim)) { /* from all 16 */
        counts->table_terms += targets * sim->per_cell *
                               (sim->frame->level_first[3] - sim->frame->level_first[2]);
        return;
    }
    while (nbody_next_far(&walk)) {
        if (sim->nodes > 0 && nbody_i_by_table(sim, &sim->cell[walk.cell], cell))
            counts->table_terms +=
                sim->series ? (int64_t)sim->series * sim->series : targets * sim->per_cell;
        else counts->far_terms += targets * nbody_i_run_of(sim, walk.cell, cell->level).count;
    }
}

/* Terms of lists 1 and 3 of a leaf. */
static void nbody_i_count_near(const nbody *sim, int32_t leaf, nbody_counts *counts)
{
    int64_t const targets = sim->cell[leaf].count;
    nbody_near walk = nbody_near_of(sim, leaf);
    while (nbody_next_near(&walk)) {
        int64_t const terms = targets * nbody_i_near_run(sim, &walk).count;
        if (nbody_i_in_crowd(&sim->cell[walk.cell], sim->cell[leaf].first)) continue;
        if (walk.whole) counts->near_terms += terms;
        else counts->far_terms += terms;
    }
}

NBODY_API nbody_result nbody_count(const nbody *sim, nbody_counts *counts)
{
    int32_t c;
    if (!sim || !counts) return NBODY_BAD_ARGUMENT;
    if (!sim->frame) return NBODY_NOT_BUILT;
    memset(counts, 0, sizeof *counts);
    counts->cells = sim->frame->cells;
    counts->levels = sim->frame->levels;
    if (!sim->cell) counts->near_terms = (int64_t)sim->n * sim->n;
    for (c = 0; c < sim->frame->cells; c++) {
        if (sim->cell[c].level >= 2)
            nbody_i_count_far(sim, c, sim->nodes > 0 ? sim->nodes : sim->cell[c].count, counts);
        if (sim->cell[c].child >= 0) continue;
        counts->leaves++;
        nbody_i_count_near(sim, c, counts);
    }
    return NBODY_OK;
}

/* ----------------------------------------------------------------------------------------------
   >>validate: the invariants of the structure

   First what is used as an index later; then children, `beside` and sources; last, that all bodies
   act on every leaf exactly once.
   ---------------------------------------------------------------------------------------------- */

/* Each id occurs once, and all numbers are finite. */
static int nbody_i_ids_valid(const nbody *sim, uint8_t *seen)
{
    int32_t k;
    memset(seen, 0, (size_t)sim->n);
    for (k = 0; k < sim->n; k++) {
        if (sim->id[k] < 0 || sim->id[k] >= sim->n || seen[sim->id[k]]) return 0;
        seen[sim->id[k]] = 1;
        if (!nbody_i_finite((double)sim->x[k]) || !nbody_i_finite((double)sim->y[k]) ||
            !nbody_i_finite((double)sim->m[k]))
            return 0;
    }
    return 1;
}

/* Levels that follow one another, and a square. */
static int nbody_i_frame_valid(const nbody *sim)
{
    const nbody_frame *frame = sim->frame;
    int level;
    if (frame->levels < 1 || frame->levels > NBODY_MAX_LEVELS || frame->level_first[0] != 0)
        return 0;
    for (level = 0; level < frame->levels; level++)
        if (frame->level_first[level] >= frame->level_first[level + 1]) return 0;
    return frame->level_first[frame->levels] == frame->cells && frame->edge > 0 &&
           nbody_i_finite(frame->edge);
}

/* A cell's own fields, before they are used as indices. `next`: the expected index of its first
   child. */
static int nbody_i_cell_valid(const nbody *sim, int32_t at, int32_t next)
{
    const nbody_cell *cell = &sim->cell[at];
    int32_t const *level_first = sim->frame->level_first;
    int k;
    if (cell->level >= sim->frame->levels || at < level_first[cell->level] ||
        at >= level_first[cell->level + 1])
        return 0;
    if (cell->count < 1 || cell->first < 0 || cell->first > sim->n - cell->count) return 0;
    if (cell->level < 31 && (cell->x < 0 || cell->y < 0 || cell->x >> cell->level != 0 ||
                             cell->y >> cell->level != 0))
        return 0;
    if (cell->level == 31 && (cell->x < 0 || cell->y < 0)) return 0;
    if (at == 0 ? cell->parent != -1 : cell->parent < 0 || cell->parent >= at) return 0;
    if (cell->child < 0) { if (cell->child != -1 || cell->children != 0) return 0;
    } else if (cell->child != next || cell->children < 1 || cell->children > 4 ||
               cell->child > sim->frame->cells - cell->children)
        return 0;
    if (cell->beside_count < 1 || cell->beside_count > 9) return 0;
    for (k = 0; k < cell->beside_count; k++)
        if (cell->beside[k] < 0 || cell->beside[k] >= sim->frame->cells) return 0;
    return 1;
}

/* Children: their quarters, in order, and the parent's bodies divided among them. */
static int nbody_i_children_valid(const nbody *sim, int32_t at)
{
    const nbody_cell *cell = &sim->cell[at];
    int32_t first = cell->first;
    nbody_cell leaf = *cell;
    int c, before = -1, quarters = 0;
    leaf.quarters = 0;
    (void)nbody_i_find_crowd(sim, &leaf);
    quarters = leaf.quarters;
    for (c = 0; c < cell->children; c++) {
        const nbody_cell *child = &sim->cell[cell->child + c];
        int const q = (child->x & 1) + 2 * (child->y & 1);
        if (child->parent != at || child->level != cell->level + 1 || child->first != first ||
            q <= before)
            return 0;
        if (child->x != nbody_i_half(cell->x, q & 1) || child->y != nbody_i_half(cell->y, q >> 1))
            return 0;
        first += child->count;
        quarters |= 1 << q;
        before = q;
    }
    return quarters == cell->quarters && (cell->child < 0 || first == cell->first + cell->count);
}

/* The column or row that a coordinate belongs to. */
static double nbody_i_number_at(const nbody_frame *frame, int level, int axis, nbody_real x)
{
    if (!frame->deep) return nbody_i_column(frame, level, axis, x);
    return (double)(nbody_i_deep_column(frame, axis, x) >> (NBODY_MAX_LEVELS - 1 - level));
}

/* The masses of a leaf that act. */
static int nbody_i_acts_valid(const nbody *sim, const nbody_cell *leaf)
{
    int32_t const others = leaf->quarters == NBODY_I_CROWD ? 2 : 0, count = leaf->count - others;
    const nbody_real *acts = sim->acts + leaf->first, *m = sim->m + leaf->first;
    nbody_real split[2];
    nbody_i_weigh_crowd(sim, leaf, split);
    return memcmp(acts, split, (size_t)others * sizeof *acts) == 0 &&
           memcmp(acts + others, m + others, (size_t)count * sizeof *acts) == 0;
}

/* Do the bodies of a leaf lie in it? */
static int nbody_i_bodies_inside(const nbody *sim, const nbody_cell *leaf)
{
    double const x = nbody_i_number(sim->cell, leaf, 0), y = nbody_i_number(sim->cell, leaf, 1);
    int32_t b;
    for (b = leaf->first; b < leaf->first + leaf->count; b++) {
        double const dx = nbody_i_number_at(sim->frame, leaf->level, 0, sim->x[b]) - x,
                     dy = nbody_i_number_at(sim->frame, leaf->level, 1, sim->y[b]) - y;
        if (dx < 0 || dx > 0 || dy < 0 || dy > 0) return 0;
    }
    return 1;
}

/* `beside`, computed again, must be the same. */
static int nbody_i_beside_valid(const nbody *sim, int32_t at)
{
    nbody_cell again = sim->cell[at];
    int k;
    if (at == 0) return again.beside_count == 1 && again.beside[0] == 0;
    nbody_i_find_beside(sim, &again);
    if (again.beside_count != sim->cell[at].beside_count) return 0;
    for (k = 0; k < again.beside_count; k++)
        if (again.beside[k] != sim->cell[at].beside[k]) return 0;
    return 1;
}

/* Each body acts on each leaf exactly once: the bodies of all far cells of the leaf and its
   ancestors, and of lists 1 and 3, are n in total. */
static int nbody_i_all_counted(const nbody *sim, int32_t leaf)
{
    int64_t bodies = 0;
    int32_t cell;
    nbody_near nearby = nbody_near_of(sim, leaf);
    for (cell = leaf; cell > 0; cell = sim->cell[cell].parent) {
        nbody_far walk = nbody_far_of(sim, cell);
        while (nbody_next_far(&walk)) bodies += sim->cell[walk.cell].count;
    }
    while (nbody_next_near(&nearby)) bodies += sim->cell[nearby.cell].count;
    return bodies == sim->n;
}

/* The sources of a cell have the mass of its bodies, up to rounding; a source below the smallest
   normal number may be lost. */
static int nbody_i_sources_valid(const nbody *sim, int32_t at)
{
    const nbody_cell *cell = &sim->cell[at];
    double const smallest = nbody_i_power(NBODY_I_REAL_KIND == 1 ? -126 : -1022);
    double mass = 0, all = 0, sources = 0, size = 0;
    int32_t k, count;
    if (cell->level < 2 || (cell->child < 0 && sim->desc.sources == NBODY_MASS_CENTRES)) return 1;
    count = sim->desc.sources == NBODY_MASS_CENTRES ? sim->made[at] : sim->per_cell;
    if (count < 0 || count > sim->per_cell) return 0;
    for (k = cell->first; k < cell->first + cell->count; k++) {
        mass += (double)sim->m[k];
        all += fabs((double)sim->m[k]);
    }
    for (k = 0; k < count; k++) {
        double const m = (double)sim->vm[(size_t)at * (size_t)sim->per_cell + (size_t)k];
        sources += m;
        size += fabs(m);
    }
    return fabs(sources - mass) <=
           (all + size) * (NBODY_I_REAL_KIND == 1 ? 1e-5 : 1e-13) + count * smallest;
}

/* All cells, in the order in which one check relies on another. */
static int nbody_i_cells_valid(const nbody *sim)
{
    int32_t c, next = 1;
    for (c = 0; c < sim->frame->cells; c++) {
        if (!nbody_i_cell_valid(sim, c, next)) return 0;
        next += sim->cell[c].children;
    }
    if (next != sim->frame->cells || sim->cell[0].first != 0 || sim->cell[0].count != sim->n)
        return 0;
    for (c = 0; c < sim->frame->cells; c++)
        if (!nbody_i_children_valid(sim, c) ||
            (sim->cell[c].child < 0 && (!nbody_i_bodies_inside(sim, &sim->cell[c]) ||
                                        !nbody_i_acts_valid(sim, &sim->cell[c]))))
            return 0;
    for (c = 0; c < sim->frame->cells; c++)
        if (!nbody_i_beside_valid(sim, c) || !nbody_i_sources_valid(sim, c)) return 0;
    for (c = 0; c < sim->frame->cells; c++)
        if (sim->cell[c].child < 0 && !nbody_i_all_counted(sim, c)) return 0;
    return 1;
}

NBODY_API nbody_result nbody_validate(const nbody *sim)
{
    uint8_t *seen;
    int valid;
    if (!sim) return NBODY_BAD_ARGUMENT;
    if (!sim->frame) return NBODY_NOT_BUILT;
    if (sim->n == 0) return NBODY_OK;
    seen = (uint8_t *)nbody_i_alloc(&sim->desc.allocator, (size_t)sim->n);
    if (!seen) return NBODY_OUT_OF_MEMORY;
    valid = nbody_i_ids_valid(sim, seen);
    nbody_i_give_back(&sim->desc.allocator, seen, (size_t)sim->n);
    if (valid && sim->cell) valid = nbody_i_frame_valid(sim) && nbody_i_cells_valid(sim);
    return valid ? NBODY_OK : NBODY_INVALID;
}

/* ----------------------------------------------------------------------------------------------
   >>save: a header, then positions [2 n] and masses [n] in your units and your order

   Both are the bodies' arrays, times powers of two: exact, unless a position or a mass was so small
   beside the others that it has lost digits, or is 0, in the tree. So the tree of these bodies is
   that of the file.
   ---------------------------------------------------------------------------------------------- */

typedef struct nbody_i_header {
    char magic[8];
    uint32_t byte_order;    /* 0x01020304 as the writer stores it */
    uint32_t version;       /* of this layout */
    int32_t real_bytes, n;
    int32_t method, law, core, stage, sources;
    int32_t levels, leaf, order, subcells, max_cells, periodic; /* of the desc */
    int32_t padding;        /* 0, as is `unused`: no gaps between fields */
    int32_t made_levels, made_cells;                  /* of the tree: what the bodies must give */
    nbody_real gravity, softening, min[2], size, unused;
    double length, mass, edge;
    uint64_t bytes;         /* of header and arrays */
    uint64_t checksum;      /* of the arrays, and of the header with 0 here */
} nbody_i_header;

/* What a header has of the desc: type here, type there, field. */
#define NBODY_I_SAVED(X) \
    X(int32_t, nbody_method, method) X(int32_t, nbody_law, law) X(int32_t, nbody_core, core) \
    X(int32_t, nbody_stage, stage) X(int32_t, nbody_sources, sources) X(int32_t, int32_t, levels) \
    X(int32_t, int32_t, leaf) X(int32_t, int32_t, order) X(int32_t, int32_t, subcells) \
    X(int32_t, int32_t, max_cells) X(int32_t, int32_t, periodic) \
    X(nbody_real, nbody_real, gravity) X(nbody_real, nbody_real, softening) \
    X(nbody_real, nbody_real, min[0]) X(nbody_real, nbody_real, min[1]) \
    X(nbody_real, nbody_real, size)
#define NBODY_I_TO_HEADER(saved, given, field) header.field = (saved)desc->field;
#define NBODY_I_TO_DESC(saved, given, field) desc.field = (given)header->field;

/* Goes on with a checksum (FNV-1a: Fowler, Noll, Vo), which begins with 0xCBF29CE484222325. */
static uint64_t nbody_i_checksum(uint64_t sum, const void *bytes, size_t size)
{
    const unsigned char *at = (const unsigned char *)bytes;
    size_t i;
    for (i = 0; i < size; i++) sum = (sum ^ at[i]) * 0x100000001B3ull;
    return sum;
}

/* Of a whole file: its header, with 0 for the checksum, and what follows. */
static uint64_t nbody_i_file_checksum(const nbody_i_header *header, const unsigned char *file)
{
    nbody_i_header zeroed = *header;
    uint64_t sum;
    zeroed.checksum = 0;
    sum = nbody_i_checksum(0xCBF29CE484222325ull, &zeroed, sizeof zeroed);
    return nbody_i_checksum(sum, file + sizeof zeroed, (size_t)(zeroed.bytes - sizeof zeroed));
}

/* Of a desc that is resolved; a tree of it has `frame` (NULL: not known). */
static nbody_i_header nbody_i_header_of(const nbody_desc *desc, int32_t n, const nbody_frame *frame)
{
    nbody_i_header header;
    memset(&header, 0, sizeof header);
    memcpy(header.magic, "nbody.h\n", sizeof header.magic);
    header.byte_order = 0x01020304u;
    header.version = 1;
    header.real_bytes = (int32_t)sizeof(nbody_real);
    header.n = n;
    NBODY_I_SAVED(NBODY_I_TO_HEADER)
    if (frame && desc->method != NBODY_DIRECT) {
        header.made_levels = frame->levels;
        header.made_cells = frame->cells;
        header.length = frame->length;
        header.mass = frame->mass;
        header.edge = frame->edge;
    }
    header.bytes = sizeof header + (uint64_t)n * 3 * sizeof(nbody_real);
    return header;
}

/* The caller's pos[2 n] and mass[n] again, at any address. */
static void nbody_i_write_bodies(const nbody *sim, unsigned char *pos)
{
    size_t const real = sizeof(nbody_real);
    unsigned char *const mass = pos + 2 * real * (size_t)sim->n;
    int32_t k;
    for (k = 0; k < sim->n; k++) {
        size_t const i = (size_t)sim->id[k];
        nbody_real const x = (nbody_real)((double)sim->x[k] * sim->frame->length),
                         y = (nbody_real)((double)sim->y[k] * sim->frame->length),
                         m = (nbody_real)((double)sim->m[k] * sim->frame->mass);
        memcpy(pos + 2 * real * i, &x, real);
        memcpy(pos + 2 * real * i + real, &y, real);
        memcpy(mass + real * i, &m, real);
    }
}

NBODY_API nbody_result nbody_save(const nbody *sim, void *bytes, int64_t capacity, int64_t *needed)
{
    unsigned char *const out = (unsigned char *)bytes;
    nbody_i_header header;
    if (!sim || !needed || capacity < 0 || (capacity > 0 && !bytes)) return NBODY_BAD_ARGUMENT;
    *needed = 0;
    if (!sim->frame) return NBODY_NOT_BUILT;
    if (sim->frame->cells_needed > sim->frame->cells) return NBODY_CELLS_FULL;
    header = nbody_i_header_of(&sim->desc, sim->n, sim->frame);
    *needed = (int64_t)header.bytes;
    if (*needed > capacity) return NBODY_BUFFER_TOO_SMALL;
    nbody_i_write_bodies(sim, out + sizeof header);
    header.checksum = nbody_i_file_checksum(&header, out);
    memcpy(out, &header, sizeof header);
    return NBODY_OK;
}

/* given: the caller's desc, or NULL. A file cannot hold functions. */
static nbody_desc nbody_i_desc_of_header(const nbody_i_header *header, const nbody_desc *given)
{
    nbody_desc desc;
    memset(&desc, 0, sizeof desc);
    if (given) desc.function = given->function;
    NBODY_I_SAVED(NBODY_I_TO_DESC)
    return desc;
}

/* 1 if nbody_i_header_of could have made this header, but for the tree's own numbers. */
static int nbody_i_header_valid(const nbody_i_header *header, const nbody_desc *given)
{
    nbody_desc const desc = nbody_i_desc_of_header(header, given);
    nbody_i_header expected, plain = *header;
    nbody_desc resolved;
    if (header->n < 0 || header->n > NBODY_I_N_MAX) return 0;
    if (nbody_defaults(&resolved, &desc, header->n) != NBODY_OK) return 0;
    expected = nbody_i_header_of(&resolved, header->n, NULL);
    plain.made_levels = plain.made_cells = 0;
    plain.length = plain.mass = plain.edge = 0;
    plain.checksum = 0;
    return memcmp(&expected, &plain, sizeof expected) == 0;
}

/* The tree of the bodies of a file with this header; it must be of the size that the header has. */
static nbody_result nbody_i_load_bodies(nbody *sim, const nbody_desc *desc,
                                        const nbody_i_header *header, const unsigned char *bytes)
{
    size_t const size = (size_t)(header->bytes - sizeof *header);
    nbody_real *const pos = (nbody_real *)nbody_i_alloc(&desc->allocator, size + 1);
    nbody_i_header made;
    nbody_i_input input;
    nbody_result result;
    if (!pos) return NBODY_OUT_OF_MEMORY;
    memcpy(pos, bytes + sizeof *header, size);
    input = nbody_i_input_of(desc, pos, 0, pos + 2 * (size_t)header->n);
    result = nbody_i_build_for(sim, desc, &input, header->n, 0);
    nbody_i_give_back(&desc->allocator, pos, size + 1);
    if (result == NBODY_OUT_OF_MEMORY || result == NBODY_NOT_RUN || result == NBODY_BAD_ALLOCATOR)
        return result;
    if (result != NBODY_OK) return NBODY_BAD_FILE;
    made = nbody_i_header_of(&sim->desc, sim->n, sim->frame);
    made.checksum = header->checksum;
    return memcmp(&made, header, sizeof made) == 0 ? NBODY_OK : NBODY_BAD_FILE;
}

NBODY_API nbody_result nbody_load(nbody *sim, const nbody_desc *desc, const void *bytes,
                                  int64_t size)
{
    nbody_i_header header;
    nbody_desc given;
    nbody_result result;
    if (!sim) return NBODY_BAD_ARGUMENT;
    nbody_i_make_empty(sim);
    if (size < 0 || (size > 0 && !bytes)) return NBODY_BAD_ARGUMENT;
    if ((uint64_t)size < sizeof header) return NBODY_BAD_FILE;
    memcpy(&header, bytes, sizeof header);
    if (header.bytes != (uint64_t)size ||
        nbody_i_file_checksum(&header, (const unsigned char *)bytes) != header.checksum)
        return NBODY_BAD_FILE;
    if (header.law == NBODY_FUNCTION && (!desc || !desc->function.force)) return NBODY_BAD_ARGUMENT;
    if (!nbody_i_header_valid(&header, desc)) return NBODY_BAD_FILE;
    given = nbody_i_desc_of_header(&header, desc);
    if (desc) {
        given.allocator = desc->allocator;
        given.cuda_allocator = desc->cuda_allocator;
        given.parallel = desc->parallel;
    }
    result = nbody_i_begin(sim, &given, header.n, 0); /* is the allocator that of its memory? */
    if (result == NBODY_OK)
        result = nbody_i_load_bodies(sim, &given, &header, (const unsigned char *)bytes);
    if (result != NBODY_OK) nbody_i_make_empty(sim);
    return result;
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif

#ifdef NBODY_CUDA
#include "cuda/nbody.cu"
#endif

#endif /* NBODY_IMPLEMENTATION */

/* ----------------------------------------------------------------------------------------------
   >>hooks: parts. A file that includes this one again, with another macro, gets that part as well
   ---------------------------------------------------------------------------------------------- */

#ifdef NBODY_WITH_VORTEX
#if defined(__has_include)
#if !__has_include("more/nbody_vortex.h")
#error "nbody.h: NBODY_WITH_VORTEX needs the file more/nbody_vortex.h: copy the folder more beside \
nbody.h"
#endif
#endif
#include "more/nbody_vortex.h"
#endif

#ifdef NBODY_WITH_FUNCTION
#if defined(__has_include)
#if !__has_include("more/nbody_function.h")
#error "nbody.h: NBODY_WITH_FUNCTION needs the file more/nbody_function.h: copy the folder more \
beside nbody.h"
#endif
#endif
#include "more/nbody_function.h"
#endif

#ifdef NBODY_WITH_PERIODIC
#if defined(__has_include)
#if !__has_include("more/nbody_periodic.h")
#error "nbody.h: NBODY_WITH_PERIODIC needs the file more/nbody_periodic.h: copy the folder more \
beside nbody.h"
#endif
#endif
#include "more/nbody_periodic.h"
#endif

#ifdef NBODY_WITH_BLOCKS /* is built on two other parts */
#if defined(__has_include)
#if !__has_include("more/nbody_blocks.h")
#error "nbody.h: NBODY_WITH_BLOCKS needs the file more/nbody_blocks.h: copy the folder more beside \
nbody.h"
#endif
#endif
#ifndef NBODY_WITH_STEP
#define NBODY_WITH_STEP
#endif
#ifndef NBODY_WITH_POINTS
#define NBODY_WITH_POINTS
#endif
#endif

#ifdef NBODY_WITH_STEP
#if defined(__has_include)
#if !__has_include("more/nbody_step.h")
#error "nbody.h: NBODY_WITH_STEP needs the file more/nbody_step.h: copy the folder more beside \
nbody.h"
#endif
#endif
#include "more/nbody_step.h"
#endif

#ifdef NBODY_WITH_POINTS
#if defined(__has_include)
#if !__has_include("more/nbody_points.h")
#error "nbody.h: NBODY_WITH_POINTS needs the file more/nbody_points.h: copy the folder more beside \
nbody.h"
#endif
#endif
#include "more/nbody_points.h"
#endif

#ifdef NBODY_WITH_BLOCKS
#include "more/nbody_blocks.h"
#endif

#ifdef NBODY_WITH_SETS
#if defined(__has_include)
#if !__has_include("more/nbody_sets.h")
#error "nbody.h: NBODY_WITH_SETS needs the file more/nbody_sets.h: copy the folder more beside \
nbody.h"
#endif
#endif
#include "more/nbody_sets.h"
#endif

#if defined(__cplusplus) && (defined(__GNUC__) || defined(__clang__))
#pragma GCC diagnostic pop
#endif

#if defined(NBODY_I_STRICT_CLANG)
#pragma float_control(pop)
#undef NBODY_I_STRICT_CLANG
#elif defined(NBODY_I_STRICT_MSVC)
#pragma float_control(pop)
#pragma fp_contract(on) /* as /fp:fast has it, where alone this is read */
#undef NBODY_I_STRICT_MSVC
#elif defined(NBODY_I_STRICT_GCC)
#pragma GCC pop_options
#undef NBODY_I_STRICT_GCC
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
