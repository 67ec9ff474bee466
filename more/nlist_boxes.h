/* more/nlist_boxes.h - v0.2.0 - a part of nlist.h: neighbour lists in boxes of any shape.
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   A search of its own, without a grid or tree, for particles in a periodic box of any shape
   (triclinic cells), as simulations of atoms use them.

   - All images within reach are listed, also where the box is smaller than the radius. An entry
     says by three integers, its shift, which image of the partner it is.
   - Many systems, each in a box of its own, in one call; the k nearest partners only.
   - Entries as a list, with history and events as in nlist.h, or as arrays of their own.
   - The serial code and CUDA give the same bits.

   >>contents: the banners in order; search for >>, the name and a colon

       manual          use, example, options, rules, limits, literature, changes
       declarations    boxes-api
       per element     boxes: the lattice, cells, images
       serial          boxes-serial, lanes, parallel-boxes
       CUDA            cuda/nlist_boxes.cu

   To learn it from this file, read >>boxes, then >>boxes-serial from nlist_build_boxes at its end
   upwards.

   >>use: in every file that calls it, and in the one with NLIST_IMPLEMENTATION

       #define NLIST_WITH_BOXES
       #include "nlist.h"

   desc.shifts, distances, offsets, sorted and nearest of nlist_desc are for the builds and searches
   of this part; others refuse them. (With NLIST_CUDA: cuda/nlist_boxes.cu beside cuda/nlist.cu.)

   >>example: compiles as it stands

       #define NLIST_WITH_BOXES
       #define NLIST_IMPLEMENTATION
       #include "nlist.h"
       #include <stdio.h>

       int main(void)
       {
           float pos[] = {1, 1, 1,   9, 9, 9};
           nlist_box box = {{{10, 0, 0}, {2, 10, 0}, {0, 0, 10}}, {1, 1, 1}};
           nlist list = {0};
           nlist_desc desc = {0};
           nlist_each e;
           int found = 0;
           desc.radius = 6;
           desc.shifts = 1;
           if (nlist_build_box(&list, &desc, &box, pos, 0, 2) != NLIST_OK) return 1;
           for (e = nlist_of(&list, 0); nlist_next(&e); found++)
               printf("0 and image %d %d %d of %d\n", e.shift[0], e.shift[1], e.shift[2], e.id);
           nlist_free(&list);
           return found > 0 ? 0 : 1;
       }

   >>options

       NLIST_PLAIN_LANES, in the file that implements: no AVX2 (>>lanes). NLIST_PLAIN: neither AVX2
       nor tasks. The results are the same.

   >>rules

   Memory   nlist_search_box and _search_boxes allocate, too, by desc.allocator. Bytes per entry,
            in float: shifts 12, distances 4, offsets 12; nearest 4 a particle. Work space: 76 a
            particle (CUDA: 64), and what the entries take once more (nlist_search_box, sorted or
            nearest: 4 an entry; both up to 5 times that where the first cells are much denser than
            the rest). A box in tasks takes more: the candidates around a cell once for each task,
            and 4 bytes an entry (64 a particle at least) until all are found.
   Order    Rows are in the order of the cells, then of ids, or as desc.sorted and desc.nearest say.
   Threads  With desc.parallel each box large enough is cut into tasks; boxes come one after the
            other.

   >>limits

   Any reach: less than 2^31 - 1024 images, particles up to 2^28 periods outside. Even density is
   fast; one particle far away on an axis that is not periodic makes it slow, and so does one large
   radius among small ones. Without images nlist_build_lbvh is the way then. Lists from boxes are
   neither saved (nlist_save) nor compared with brute force (nlist_verify).

   >>literature

   M. P. Allen, D. J. Tildesley, Computer Simulation of Liquids, 2017, sections 1.6 and 5.3 (linked
   cells, images). H. Cohen, A Course in Computational Algebraic Number Theory, 1993, section 1.3
   (reduction of a lattice; Lagrange, Gauss).

   >>changes

   0.2.0  2026-11-28. First version.
*/

#ifndef NLIST_H
#error "more/nlist_boxes.h is a part of nlist.h: define NLIST_WITH_BOXES and include nlist.h"
#elif 10000 * NLIST_VERSION_MAJOR + 100 * NLIST_VERSION_MINOR + NLIST_VERSION_PATCH != 200
#error "more/nlist_boxes.h 0.2.0 and nlist.h are of different versions: copy both from one release"
#endif

#ifndef NLIST_BOXES_H
#define NLIST_BOXES_H

#if NLIST_I_REAL_KIND == 2 && !defined(NEARFIELD_NAMESPACE)
#define nlist_build_box         nlist_f64_build_box
#define nlist_build_boxes       nlist_f64_build_boxes
#define nlist_search_box        nlist_f64_search_box
#define nlist_search_boxes      nlist_f64_search_boxes
#define nlist_cuda_build_box    nlist_f64_cuda_build_box
#define nlist_cuda_build_boxes  nlist_f64_cuda_build_boxes
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>boxes-api: what nlist.h says at >>api and >>cuda-api holds here, too
   ---------------------------------------------------------------------------------------------- */

/* The distance of an entry, and its offset: three numbers. For lists with desc.distances and
   desc.offsets. */
NLIST_FN nlist_real nlist_distance_of(const nlist *list, int64_t entry)
{
    return nlist_i_rows(list)->distance[entry];
}
NLIST_FN const nlist_real *nlist_offset_of(const nlist *list, int64_t entry)
{
    return nlist_i_rows(list)->offset + 3 * entry;
}

/* A box of any shape: see >>boxes. Vectors of axes that are not periodic are ignored, and the
   particles may be anywhere along them. 2D: the first two vectors, of two numbers. */
typedef struct nlist_box {
    nlist_real cell[3][3];  /* the vectors a, b, c, of any handedness, a vector per row */
    int32_t periodic[3];    /* per vector: 1 = the box repeats along it */
} nlist_box;

/* The list of all images within reach, in a box of any shape and size, also smaller than the
   radius. An entry is a partner and a shift S (desc.shifts), with

       D = pos[j] + S . cell - pos[i]          positions as given: nothing is wrapped in them

   desc.distances and desc.offsets store |D| and D at the build. A particle is a partner of its own
   images: in full lists once for S and once for -S, in half lists for that whose first number other
   than 0 is positive. A contact is a pair and a shift; otherwise radii, masks, exclusions (of a
   pair: of all its images), skin, history and nlist_remap work as in other lists. Wrapping a
   particle between two builds changes its shifts: its history is lost, and nlist_moved answers 1.
   nlist_moved compares positions, not boxes: build again when a box changes.
   desc.periodic is not used. nlist_save and nlist_verify return NLIST_BAD_OPTION for any list from
   boxes. NLIST_BAD_BOX:
   vectors of periodic axes are linearly dependent or not finite. NLIST_TOO_MANY_IMAGES: before
   memory is taken. O(n + entries) for particles that are spread evenly. */
NLIST_API nlist_result nlist_build_box(nlist *list, const nlist_desc *desc, const nlist_box *box,
                                       const nlist_real *pos, size_t stride, int32_t n);

/* Many systems in one list: particles starts[s] .. starts[s+1] - 1 are system s, in box boxes[s].
   No system sees another. starts: systems + 1 numbers; the last is the number of particles. Ids are
   those of pos. NLIST_BAD_STARTS; NLIST_BAD_BOX and NLIST_TOO_MANY_IMAGES: list.bad_id is the
   system. Of a system without particles the box is checked for NLIST_BAD_BOX, and nothing else
   (CUDA: not even that, where no system has particles). */
NLIST_API nlist_result nlist_build_boxes(nlist *list, const nlist_desc *desc,
                                         const nlist_box *boxes, const int32_t *starts,
                                         int32_t systems, const nlist_real *pos, size_t stride);

/* Which arrays nlist_search_box provides. */
enum {
    NLIST_WANT_I = 1, NLIST_WANT_J = 2, NLIST_WANT_SHIFT = 4, NLIST_WANT_DISTANCE = 8,
    NLIST_WANT_OFFSET = 16
};

/* Entries as arrays of their own. */
typedef struct nlist_arrays {
    int32_t wanted;         /* sum of NLIST_WANT_...: these arrays are memory of the list, valid
                               until the next call that changes it. 0: your arrays are filled, those
                               that are not NULL */
    int64_t capacity;       /* room in your arrays, in entries */
    int32_t *i, *j;         /* [capacity] */
    int32_t *shift;         /* [3 * capacity] */
    nlist_real *distance;   /* [capacity] */
    nlist_real *offset;     /* [3 * capacity] */
    int64_t count;          /* out: entries, also where they do not fit */
    int32_t rows_cut;       /* out: as list.rows_cut */
} nlist_arrays;

/* The entries of nlist_build_box in one pass, without a list: `list` provides memory only, and
   stays as it is. desc.sorted: by i, then j, then shift; desc.nearest, with or without sorted: by
   i, then as in its rows;
   else in the order of cells, rows together. NLIST_BUFFER_TOO_SMALL: arrays.count is the capacity
   needed; what your arrays hold is unspecified. Where memory ends the entries are counted, and
   searched once more; NLIST_OUT_OF_MEMORY: arrays.count is how many there are (0: memory ended
   before they were counted). O(n + candidates + entries): candidates are the particles in the cells
   within the largest reach, so few for radii of about one size. */
NLIST_API nlist_result nlist_search_box(nlist *list, const nlist_desc *desc, const nlist_box *box,
                                        const nlist_real *pos, size_t stride, int32_t n,
                                        nlist_arrays *arrays);
NLIST_API nlist_result nlist_search_boxes(nlist *list, const nlist_desc *desc,
                                          const nlist_box *boxes, const int32_t *starts,
                                          int32_t systems, const nlist_real *pos, size_t stride,
                                          nlist_arrays *arrays);

#ifdef NLIST_CUDA
/* Boxes, as nlist_build_box and nlist_build_boxes. `box` is host memory; d_boxes and d_starts are
   device memory, and n is the number of particles, at least the last of d_starts. The number of
   kernels does not depend on the number of systems. A box, or a particle 2^28 periods away, that
   is refused leaves the rows of its system empty; nlist_cuda_check reports it. These builds
   allocate in their first call, and after it where n or `systems` grows. desc.nearest searches anew
   for each 8 of the nearest. */
NLIST_API nlist_result nlist_cuda_build_box(nlist_cuda *gpu, const nlist_desc *desc,
                                            const nlist_box *box, const nlist_real *d_pos,
                                            size_t stride, int32_t n, struct CUstream_st *stream);
NLIST_API nlist_result nlist_cuda_build_boxes(nlist_cuda *gpu, const nlist_desc *desc,
                                              const nlist_box *d_boxes, const int32_t *d_starts,
                                              int32_t systems, const nlist_real *d_pos,
                                              size_t stride, int32_t n,
                                              struct CUstream_st *stream);
#endif

/* Stop here if you only need the API. */

/* ----------------------------------------------------------------------------------------------
   >>boxes: cells of any shape, and all images within reach

   A box is a lattice of up to three vectors a, b, c. Particle j has an image at pos[j] + S . cell
   for each three integers S = (s0, s1, s2); s is 0 on axes that are not periodic. The entry (i, j,
   S) is listed where |D| <= reach. All decisions are made by this formula, in nlist_real, every
   operation rounded:

       T = (s0 a + s1 b) + s2 c            D = (pos[j] - pos[i]) + T           d2 = D . D

   D of (i, j, S) is exactly -D of (j, i, -S), so full lists are symmetric.

   The search is in double, and only finds candidates:

       lattice   the vectors are replaced by shorter ones of the same lattice (pairwise reduction:
                 Lagrange, Gauss). Axes that are not periodic get unit vectors that are orthogonal
                 to the lattice; their extent is that of the particles.
       place     f = fraction of p along each vector; floor(f) is its wrap W, f - W its cell.
                 Cells are at least as thick as the reach between their faces, or the box is one
                 cell thick there.
       walk      cells around that of i, `range` to each side. Cell x of n cells on an axis is cell
                 x mod n of image k = floor(x / n):

                     x        -1 |  0   1   2 |  3          n = 3
                     k        -1 |  0   0   0 |  1
                     cell      2 |  0   1   2 |  0

                 A candidate j there has S = k - W[j] + W[i].

   Small boxes are one cell, and the walk is a loop over images. Candidates come cell by cell, in
   ascending order of x, and by ascending id in a cell: that is the order of rows. (Allen and
   Tildesley, Computer Simulation of Liquids, 2017, sections 1.6 and 5.3; Lagrange: H. Cohen, A
   Course in Computational Algebraic Number Theory, 1993, section 1.3.)
   ---------------------------------------------------------------------------------------------- */

/* a * b, rounded, in double. */
NLIST_FN double nlist_i_product(double a, double b)
{
#if defined(__CUDA_ARCH__)
    return __dmul_rn(a, b);
#else
    a *= b;
    NLIST_I_KEEP(a);
    return a;
#endif
}

/* a . b, every operation rounded. */
NLIST_FN double nlist_i_dot(const double a[3], const double b[3])
{
    return (nlist_i_product(a[0], b[0]) + nlist_i_product(a[1], b[1])) +
           nlist_i_product(a[2], b[2]);
}

/* c = a x b, every operation rounded. */
NLIST_FN void nlist_i_cross(const double a[3], const double b[3], double c[3])
{
    c[0] = nlist_i_product(a[1], b[2]) - nlist_i_product(a[2], b[1]);
    c[1] = nlist_i_product(a[2], b[0]) - nlist_i_product(a[0], b[2]);
    c[2] = nlist_i_product(a[0], b[1]) - nlist_i_product(a[1], b[0]);
}

/* The square root, correctly rounded, on both sides; without libm where the processor has it. */
NLIST_FN double nlist_i_root(double x)
{
#if defined(__CUDA_ARCH__)
    return __dsqrt_rn(x);
#elif defined(__GNUC__) && defined(__AVX__) && !defined(__wasm__)
    __asm__("vsqrtsd %0, %0, %0" : "+x"(x));
    return x;
#elif defined(__GNUC__) && defined(__SSE2__) && !defined(__wasm__)
    __asm__("sqrtsd %0, %0" : "+x"(x));
    return x;
#elif defined(__GNUC__) && defined(__aarch64__)
    __asm__("fsqrt %d0, %d0" : "+w"(x));
    return x;
#else
    return sqrt(x);
#endif
}

/* nlist_i_root of a real: the root of a double, rounded to float, is the rounded root. */
NLIST_FN nlist_real nlist_i_root_real(nlist_real x)
{
#if defined(__CUDA_ARCH__) && NLIST_I_REAL_KIND == 1
    return __fsqrt_rn(x);
#else
    return (nlist_real)nlist_i_root((double)x);
#endif
}

NLIST_FN double nlist_i_magnitude(double x) { return x < 0 ? -x : x; }

/* floor(x) for |x| < 2^62. */
NLIST_FN double nlist_i_floor(double x)
{
    double const below = (double)(int64_t)x;
    return below > x ? below - 1 : below;
}

#define NLIST_I_CROWD 16                /* particles per cell from which cells are cut smaller */
#define NLIST_I_PERIODS 268435456.0     /* 2^28: wraps and images are below it, so that sums of four
                                           fit int32_t */

/* How a box is cut into cells. */
typedef struct nlist_i_frame {
    nlist_real cell[3][3];  /* the caller's vectors; 0 on axes that are not periodic */
    double vector[3][3];    /* those of the search */
    int32_t basis[3][3];     /* periodic axes: vector a = sum over b of basis[a][b] cell[b] */
    double to[3][3];        /* the fraction along vector a of p is to[a] . p */
    double thick[3];        /* |to[a]|: fractions per length between the faces */
    double least[3];        /* the fraction where cell 0 begins */
    double per[3];          /* cells per fraction */
    int32_t cells[3];
    int32_t range[3];       /* cells to search on each side */
    int32_t periodic[3];
    int32_t first, n;       /* particles */
    int64_t first_cell;     /* in the array of all cells */
    double reach;           /* of the search: a little more than that of the list */
} nlist_i_frame;

/* The extent of the particles of a box. */
typedef struct nlist_i_extent {
    double low[3], high[3]; /* of the fractions */
    double most;            /* largest |coordinate| */
} nlist_i_extent;

/* Makes vector a shorter by a multiple of vector b, where that is possible. Returns 1 if it did. */
NLIST_FN int nlist_i_shorten(nlist_i_frame *frame, int a, int b)
{
    double const length2 = nlist_i_dot(frame->vector[b], frame->vector[b]);
    double const times = nlist_i_dot(frame->vector[a], frame->vector[b]) / length2;
    double whole;
    int k;
    /* ties stay: a half, up to rounding; so does what is not a number */
    if (!(times > 0.5000001 || times < -0.5000001) || !(times > -1e6 && times < 1e6)) return 0;
    whole = nlist_i_floor(times + 0.5);
    for (k = 0; k < 3; k++) {
        double const sum = (double)frame->basis[a][k] - nlist_i_product(whole, frame->basis[b][k]);
        if (!(sum > -1e6 && sum < 1e6)) return 0;
    }
    for (k = 0; k < 3; k++) {
        frame->basis[a][k] -= (int32_t)whole * frame->basis[b][k];
        frame->vector[a][k] -= nlist_i_product(whole, frame->vector[b][k]);
    }
    return 1;
}

/* Pairwise reduction of the periodic vectors. It ends: each step makes one shorter. */
NLIST_FN void nlist_i_reduce(nlist_i_frame *frame)
{
    int changed = 1, rounds, a, b;
    for (rounds = 0; changed && rounds < 64; rounds++) {
        changed = 0;
        for (a = 0; a < 3; a++)
            for (b = 0; b < 3; b++)
                if (a != b && frame->periodic[a] && frame->periodic[b])
                    changed |= nlist_i_shorten(frame, a, b);
    }
}

/* v becomes a unit vector along a x b. */
NLIST_FN void nlist_i_normal(const double a[3], const double b[3], double v[3])
{
    double length;
    int k;
    nlist_i_cross(a, b, v);
    length = nlist_i_root(nlist_i_dot(v, v));
    for (k = 0; k < 3; k++) v[k] = v[k] / length;
}

/* The vectors of the two other axes, where only axis a is periodic. dim 2: the plane stays a
   plane. */
NLIST_FN void nlist_i_complete_one(nlist_i_frame *frame, int dim, int a)
{
    double helper[3] = {0, 0, 0};
    int const first = dim == 2 ? 1 - a : (a + 1) % 3;
    int least = 0, k;
    for (k = 1; k < 3; k++)
        if (nlist_i_magnitude(frame->vector[a][k]) < nlist_i_magnitude(frame->vector[a][least]))
            least = k;
    helper[dim == 2 ? 2 : least] = 1;
    nlist_i_normal(frame->vector[a], helper, frame->vector[first]);
    nlist_i_normal(frame->vector[a], frame->vector[first], frame->vector[3 - a - first]);
}

/* Unit vectors, orthogonal to the lattice, on axes that are not periodic. */
NLIST_FN void nlist_i_complete(nlist_i_frame *frame, int dim)
{
    int const many = frame->periodic[0] + frame->periodic[1] + frame->periodic[2];
    int a;
    for (a = 0; a < 3; a++) {
        if (many == 0) frame->vector[a][a] = 1;
        if (many == 1 && frame->periodic[a]) nlist_i_complete_one(frame, dim, a);
        if (many == 2 && !frame->periodic[a])
            nlist_i_normal(frame->vector[(a + 1) % 3], frame->vector[(a + 2) % 3],
                           frame->vector[a]);
    }
}

/* to = the inverse of the vectors. Returns 0 where they are linearly dependent, as far as the
   numbers tell. */
NLIST_FN int nlist_i_invert_frame(nlist_i_frame *frame)
{
    double lengths = 1, volume;
    int a, k;
    for (a = 0; a < 3; a++) {
        nlist_i_cross(frame->vector[(a + 1) % 3], frame->vector[(a + 2) % 3], frame->to[a]);
        lengths = nlist_i_product(lengths, nlist_i_root(nlist_i_dot(frame->vector[a],
                                                                    frame->vector[a])));
    }
    volume = nlist_i_dot(frame->vector[0], frame->to[0]);
    if (!(nlist_i_magnitude(volume) > nlist_i_product(lengths, 1e-9))) return 0;
    for (a = 0; a < 3; a++) {
        for (k = 0; k < 3; k++) frame->to[a][k] = frame->to[a][k] / volume;
        frame->thick[a] = nlist_i_root(nlist_i_dot(frame->to[a], frame->to[a]));
        if (!(frame->thick[a] > 0 && frame->thick[a] < 1e300)) return 0;
    }
    return 1;
}

/* The vectors of a box. Returns 0 where it is refused. */
NLIST_FN int nlist_i_frame_of(nlist_i_frame *frame, const nlist_box *box, int dim)
{
    int a, k;
    for (a = 0; a < 3; a++) {
        frame->periodic[a] = a < dim && box->periodic[a];
        for (k = 0; k < 3; k++) {
            int const is = frame->periodic[a] && k < dim;
            if (is && !nlist_i_finite(box->cell[a][k])) return 0;
            frame->cell[a][k] = is ? box->cell[a][k] : 0;
            frame->vector[a][k] = (double)frame->cell[a][k];
            frame->basis[a][k] = a == k;
        }
    }
    nlist_i_reduce(frame);
    nlist_i_complete(frame, dim);
    return nlist_i_invert_frame(frame);
}

/* The fraction of p along vector a. */
NLIST_FN double nlist_i_fraction(const nlist_i_frame *frame, int a, const nlist_real p[3])
{
    double const q[3] = {(double)p[0], (double)p[1], (double)p[2]};
    return nlist_i_dot(frame->to[a], q);
}

/* By how much D may differ from the exact offset: the roundings of T and D (nlist_i_offset).
   Without a periodic axis offsets within reach are exact up to their own last digit. */
NLIST_FN double nlist_i_blur(const nlist_i_frame *frame, double reach, double most)
{
    double const unit = NLIST_I_REAL_KIND == 1 ? 5.9604644775390625e-8 : 1.1102230246251565e-16;
    double terms = 2 * most;
    int a, b;
    if (!frame->periodic[0] && !frame->periodic[1] && !frame->periodic[2]) return 0;
    for (a = 0; a < 3; a++) {
        /* |s of vector a| <= images, and it contributes |basis| times the caller's vectors */
        double const images = nlist_i_product(frame->thick[a], reach + 4 * most);
        if (!frame->periodic[a]) continue;
        for (b = 0; b < 3; b++) {
            double const v[3] = {(double)frame->cell[b][0], (double)frame->cell[b][1],
                                 (double)frame->cell[b][2]};
            double const times = nlist_i_magnitude(frame->basis[a][b]);
            terms += nlist_i_product(nlist_i_product(images, times),
                                     nlist_i_root(nlist_i_dot(v, v)));
        }
    }
    return nlist_i_product(8 * unit, terms);
}

/* The length of axis a that is cut into cells, as a fraction of its vector. */
NLIST_FN double nlist_i_axis_length(const nlist_i_frame *frame, const nlist_i_extent *extent, int a)
{
    return frame->periodic[a] ? 1 : extent->high[a] - extent->low[a];
}

/* Cells on axis a: at least as thick as the search reaches. */
NLIST_FN void nlist_i_cut_axis(nlist_i_frame *frame, const nlist_i_extent *extent, int a,
                               double slack)
{
    double const reach = nlist_i_product(frame->reach, frame->thick[a]) + slack;
    double const length = nlist_i_axis_length(frame, extent, a);
    double cells = nlist_i_floor(length / reach < 1e6 ? length / reach : 1e6);
    if (!(cells >= 1)) cells = 1;
    frame->cells[a] = (int32_t)cells;
    frame->least[a] = frame->periodic[a] ? 0 : extent->low[a];
}

/* Fewer cells where there would be more than particles: all axes shrink by eighths. (In an array of
   its own: gcc 12 takes loads of frame->cells[0] out of loops that store frame->cells[a], where the
   same function also says search->frame.cells. tests/bench/notes/nlist.md.) */
NLIST_FN void nlist_i_limit_cells(nlist_i_frame *frame)
{
    double const most = frame->n > 8 ? (double)frame->n : 8;
    int32_t cells[3] = {frame->cells[0], frame->cells[1], frame->cells[2]};
    int a;
    while ((double)cells[0] * (double)cells[1] * (double)cells[2] > most)
        for (a = 0; a < 3; a++)
            if (cells[a] > 1) cells[a] -= cells[a] / 8 > 0 ? cells[a] / 8 : 1;
    for (a = 0; a < 3; a++) frame->cells[a] = cells[a];
}

/* More cells where there are many particles in each: candidates far from a small cell are left out
   for all of its particles at once. The axis with the thickest cells is halved, and again. */
NLIST_FN void nlist_i_refine_cells(nlist_i_frame *frame, const nlist_i_extent *extent)
{
    int32_t cells[3] = {frame->cells[0], frame->cells[1], frame->cells[2]};
    double all = (double)cells[0] * (double)cells[1] * (double)cells[2];
    int a;
    for (; (double)frame->n > NLIST_I_CROWD * all; all *= 2) {
        double thickest = 0;
        int axis = 0;
        for (a = 0; a < 3; a++) {
            double const thickness = nlist_i_axis_length(frame, extent, a) /
                                     (frame->thick[a] * (double)cells[a]);
            if (!(thickness > thickest) || cells[a] > 1000000) continue;
            thickest = thickness;
            axis = a;
        }
        if (!(thickest * 4 > frame->reach)) break;
        cells[axis] *= 2;
    }
    for (a = 0; a < 3; a++) frame->cells[a] = cells[a];
}

/* Cells per fraction of axis a, and how many a search visits to each side. */
NLIST_FN void nlist_i_set_range(nlist_i_frame *frame, const nlist_i_extent *extent, int a,
                                double slack)
{
    double const length = nlist_i_axis_length(frame, extent, a);
    double const reach = nlist_i_product(frame->reach, frame->thick[a]) + slack;
    double range;
    frame->per[a] = length > 0 ? frame->cells[a] / length : 0;
    range = nlist_i_product(frame->per[a], reach);
    if (!(range < 1e9)) range = frame->periodic[a] ? 1e9 : frame->cells[a];
    range = -nlist_i_floor(-range);
    if (!frame->periodic[a] && range > frame->cells[a] - 1) range = frame->cells[a] - 1;
    frame->range[a] = (int32_t)range;
}

/* Cuts the box into cells. gap: radius + skin + twice the largest of the radii. Returns 0 where the
   walk would be over 2^31 - 1024 cells or more. */
NLIST_FN int nlist_i_cut(nlist_i_frame *frame, const nlist_i_extent *extent, double gap)
{
    double walk = 1, images = 0, slack[3];
    int a, b;
    frame->reach = nlist_i_product(gap + nlist_i_blur(frame, gap, extent->most), 1.00001);
    for (a = 0; a < 3; a++) {
        slack[a] = nlist_i_product(nlist_i_product(frame->thick[a], extent->most) + 1, 1e-14);
        nlist_i_cut_axis(frame, extent, a, slack[a]);
    }
    nlist_i_limit_cells(frame);
    nlist_i_refine_cells(frame, extent);
    for (a = 0; a < 3; a++) {
        nlist_i_set_range(frame, extent, a, slack[a]);
        walk *= 2 * (double)frame->range[a] + 1;
        for (b = 0; b < 3; b++)
            images += frame->range[a] * nlist_i_magnitude(frame->basis[a][b]);
    }
    return walk < 2147482624.0 && images < NLIST_I_PERIODS;
}

/* How far a box is searched. The largest of the radii is rounded up to a float: that is what a GPU
   has (nlist_cuda_facts), and both sides cut the same cells. */
NLIST_FN double nlist_i_box_gap(const nlist_desc *desc, nlist_real largest)
{
    float f = (float)largest;
    if ((double)f < (double)largest) {
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        bits++;
        memcpy(&f, &bits, sizeof f);
    }
    return (double)nlist_i_gap(desc) + 2 * (double)f;
}

/* The cell of a point, and its wrap in the caller's vectors. Returns 0 where that is 2^28 or
   more. */
NLIST_FN int nlist_i_place(const nlist_i_frame *frame, const nlist_real p[3], int32_t *cell,
                           int32_t wrap[3])
{
    int32_t at = 0;
    double whole[3];
    int a, b;
    for (a = 0; a < 3; a++) {
        double f = nlist_i_fraction(frame, a, p), x;
        if (frame->periodic[a] && !(f > -NLIST_I_PERIODS && f < NLIST_I_PERIODS)) return 0;
        whole[a] = frame->periodic[a] ? nlist_i_floor(f) : 0;
        x = nlist_i_product(f - whole[a] - frame->least[a], frame->per[a]);
        if (!(x > 0)) x = 0;
        if (x > frame->cells[a] - 1) x = frame->cells[a] - 1;
        at = at * frame->cells[a] + (int32_t)x;
    }
    *cell = at;
    for (b = 0; b < 3; b++) {
        double w = 0;
        for (a = 0; a < 3; a++) w += nlist_i_product(whole[a], frame->basis[a][b]);
        if (!(w > -NLIST_I_PERIODS && w < NLIST_I_PERIODS)) return 0;
        wrap[b] = (int32_t)w;
    }
    return 1;
}

/* T = (s0 a + s1 b) + s2 c: how far image S of a particle is from the particle. */
NLIST_FN void nlist_i_translation(const nlist_i_frame *frame, const int32_t s[3], nlist_real t[3])
{
    nlist_real const u = (nlist_real)s[0], v = (nlist_real)s[1], w = (nlist_real)s[2];
    int k;
    for (k = 0; k < 3; k++)
        t[k] = nlist_i_kept(nlist_i_times(u, frame->cell[0][k]) +
                            nlist_i_times(v, frame->cell[1][k])) +
               nlist_i_times(w, frame->cell[2][k]);
}

/* D = (q - p) + T, and its square d2. */
NLIST_FN nlist_real nlist_i_offset(const nlist_real p[3], const nlist_real q[3],
                                   const nlist_real t[3], nlist_real d[3])
{
    d[0] = nlist_i_kept(q[0] - p[0]) + t[0];
    d[1] = nlist_i_kept(q[1] - p[1]) + t[1];
    d[2] = nlist_i_kept(q[2] - p[2]) + t[2];
    return nlist_i_times(d[0], d[0]) + nlist_i_times(d[1], d[1]) + nlist_i_times(d[2], d[2]);
}

/* 1 if the entry (i, j, shift) is listed by all criteria except the distance. */
NLIST_FN int nlist_i_may_list_image(const nlist_desc *desc, const int64_t *uid, int32_t i,
                                    int32_t j, const int32_t shift[3])
{
    if (i != j) return nlist_i_may_list(desc, uid, i, j);
    if (!(shift[0] | shift[1] | shift[2])) return 0;
    return (!desc->half || nlist_i_positive(shift)) && nlist_i_allows(desc, i, i);
}

/* The walk through the cells around one: runs of cells that follow each other in memory, in one
   image.

       nlist_i_walk walk = nlist_i_walk_of(&frame, cell);
       while (nlist_i_next_run(&walk)) ... cells walk.begin .. walk.end - 1, walk.image ... */
typedef struct nlist_i_walk {
    int32_t begin, end;     /* out: cells */
    int32_t image[3];       /* out: k, in the caller's vectors */
    const nlist_i_frame *frame;
    int32_t low[3], high[3]; /* x along each axis */
    int32_t at[3];
} nlist_i_walk;

/* The walk around a cell. */
NLIST_FN nlist_i_walk nlist_i_walk_of(const nlist_i_frame *frame, int32_t cell)
{
    nlist_i_walk walk;
    int a;
    walk.begin = walk.end = 0;
    walk.image[0] = walk.image[1] = walk.image[2] = 0;
    walk.frame = frame;
    for (a = 2; a >= 0; a--) {
        int32_t const x = cell % frame->cells[a];
        cell /= frame->cells[a];
        walk.low[a] = x - frame->range[a];
        walk.high[a] = x + frame->range[a];
        if (!frame->periodic[a] && walk.low[a] < 0) walk.low[a] = 0;
        if (!frame->periodic[a] && walk.high[a] > frame->cells[a] - 1)
            walk.high[a] = frame->cells[a] - 1;
        walk.at[a] = walk.low[a];
    }
    return walk;
}

/* floor(x / n) */
NLIST_FN int32_t nlist_i_floor_over(int32_t x, int32_t n)
{
    return x >= 0 ? (x < n ? 0 : x / n) : x >= -n ? -1 : -1 - (-1 - x) / n;
}

/* The next run of cells; 0 at the end. A run ends where its row of cells does, or the image. */
NLIST_FN int nlist_i_next_run(nlist_i_walk *walk)
{
    const nlist_i_frame *frame = walk->frame;
    int32_t k[3], row, last;
    int a, b;
    if (walk->at[2] > walk->high[2]) {
        walk->at[2] = walk->low[2];
        if (++walk->at[1] > walk->high[1]) {
            walk->at[1] = walk->low[1];
            if (++walk->at[0] > walk->high[0]) return 0;
        }
    }
    for (a = 0; a < 3; a++) k[a] = nlist_i_floor_over(walk->at[a], frame->cells[a]);
    row = (walk->at[0] - k[0] * frame->cells[0]) * frame->cells[1] + walk->at[1] -
          k[1] * frame->cells[1];
    last = (k[2] + 1) * frame->cells[2] - 1;
    if (last > walk->high[2]) last = walk->high[2];
    walk->begin = row * frame->cells[2] + walk->at[2] - k[2] * frame->cells[2];
    walk->end = walk->begin + last - walk->at[2] + 1;
    walk->at[2] = last + 1;
    for (b = 0; b < 3; b++) {
        walk->image[b] = 0;
        for (a = 0; a < 3; a++) walk->image[b] += k[a] * frame->basis[a][b];
    }
    return 1;
}

/* 1 if shift a comes before b. */
NLIST_FN int nlist_i_shift_before(const int32_t a[3], const int32_t b[3])
{
    int k;
    for (k = 0; k < 3; k++) if (a[k] != b[k]) return a[k] < b[k];
    return 0;
}

/* 1 if an entry comes before another in a row of the nearest: by distance, id, shift. */
NLIST_FN int nlist_i_nearer(nlist_real d2, int32_t j, const int32_t shift[3], nlist_real other_d2,
                            int32_t other_j, const int32_t other_shift[3])
{
    if (d2 != other_d2) return d2 < other_d2;
    if (j != other_j) return j < other_j;
    return nlist_i_shift_before(shift, other_shift);
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif

#endif /* NLIST_BOXES_H */

/* ==============================================================================================
   Implementation
   ============================================================================================== */

#if defined(NLIST_I_IMPLEMENTED) && !defined(NLIST_BOXES_IMPLEMENTATION_DONE)
#define NLIST_BOXES_IMPLEMENTATION_DONE

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

#if defined(__GNUC__) || defined(_MSC_VER)
#define NLIST_I_RESTRICT __restrict
#else
#define NLIST_I_RESTRICT
#endif

/* Blocks of list.block (nlist.h: >>memory). */
enum {
    NLIST_I_OUT = NLIST_I_PART_BLOCKS,          /* five arrays of entries */
    NLIST_I_WITHIN_FOUND = NLIST_I_OUT + 5,     /* partners within reach */
    NLIST_I_PLACES,                             /* particles in the order of cells */
    NLIST_I_CELLS,                              /* where each cell begins */
    NLIST_I_RUNS,                               /* runs of the walk around a cell */
    NLIST_I_NEAR,                               /* candidates of a cell */
    NLIST_I_HITS,                               /* candidates that are listed */
    NLIST_I_PARTS                               /* where each part of these begins */
};

/* ----------------------------------------------------------------------------------------------
   >>boxes-serial: the search of nlist_build_box and nlist_search_box (the formula: >>boxes)

   Cell by cell. The candidates of a cell are gathered once: those within reach of the box (AABB)
   around its particles, as floats relative to its centre, in units of the reach. Each particle of
   the cell tests them in a loop without a branch; where rounding could decide, the formula does.

       . . . . . . . . .        o   particles of the cell       |  |  their AABB
       . . .|o   o|. . .        .   candidates: those further than the reach from the AABB are
       . . .|  o  |. . .            left out once, for all particles of the cell
       . . . . . . . . .

   What is found is the number of a candidate: 4 bytes. nlist_i_write_row computes and writes the
   entry, at once, or (rows in the order of ids) when all rows are found and the place of each is
   known. So entries are written once, and memory is what the caller has and 4 bytes an entry.
   ---------------------------------------------------------------------------------------------- */

/* Boxes as the source of a build or search (finder.source). */
typedef struct nlist_i_boxes {
    const nlist_box *box;   /* [systems] */
    const int32_t *starts;  /* [systems + 1] the first particle of each */
    int32_t systems;
    nlist_arrays found;     /* a list: what its entries have beside the partner, as found */
    int32_t *within;        /* desc.nearest: [n] partners within reach, else NULL */
} nlist_i_boxes;

/* A particle, in the order of cells. */
typedef struct nlist_i_placed {
    nlist_real p[4];        /* as given, and 0 */
    int32_t wrap[4];        /* W, and 1 where that is not 0 0 0 */
} nlist_i_placed;

/* A run of the walk around a cell: particles that follow each other, in one image. */
typedef struct nlist_i_run {
    nlist_real t[4];        /* T, where no particle is wrapped, and 0 */
    int32_t image[4];       /* k, and 0 */
    int32_t begin, count;   /* places */
} nlist_i_run;

/* A candidate: an image of a particle. Those around a cell are numbered, run by run. */
typedef struct nlist_i_candidate {
    int32_t place, run;
} nlist_i_candidate;

/* An entry of the row in progress; the last number of d and shift is not used. */
typedef struct nlist_i_hit {
    nlist_real d[4], d2;
    int32_t shift[4];
    int32_t id;
} nlist_i_hit;

typedef struct nlist_i_search {
    nlist_i_finder *finder;
    nlist_i_boxes *source;  /* that of the finder */
    nlist_arrays out;       /* where entries go: arrays that are NULL are not wanted */
    int64_t *long_i, *long_j; /* the same ids with 64 bits */
    int owned;              /* 1: out is memory of the list, and grows */
    int counted;            /* 1: memory has ended; what has no room is counted from now on */
    int serial;             /* 1: without tasks, also where they took more memory than there is */
    int64_t most;           /* numbers of hits that one row took at most */
    int64_t used;           /* entries, written or not */
    int32_t rows;           /* found so far */
    int32_t rows_cut;       /* of these: as list.rows_cut */
    int self;               /* 1: each particle is a partner of itself, the first of its row */
    int (*keeps)(const void *user, int32_t i, int32_t j, nlist_real distance);
    const void *user;       /* a further criterion, or NULL. (long_i, long_j, self, keeps: for
                               packaging/python/library/search.h) */
    int ordered;            /* 1: rows are found first (hits), and written in the order of ids */
    int32_t *hits;          /* numbers of candidates: of all rows, or of the row in progress */
    int64_t stored;         /* in hits */
    int64_t hit_room;       /* a task: where its part of hits ends; else 0, and hits grow */
    int32_t next;           /* a task: the first place whose row is not found */
    int32_t cut;            /* systems so far that were cut into pieces */
    int32_t system;         /* whose particles are in the arrays below, or -1 */
    nlist_i_frame frame;
    int only_distance;      /* 1: distance and ids are the only criteria */
    nlist_i_placed *placed; /* [n] */
    double *q[3];           /* [n + LANES] coordinates in the box */
    int32_t *id;            /* [n + LANES] by place */
    int32_t *start;         /* [cells + 1] */
    int32_t *cell;          /* [n] */
    nlist_i_run *run;       /* of the walk around the cell */
    int32_t runs, own;      /* how many; the number of the first particle of the cell */
    int32_t room;           /* of the arrays below */
    nlist_i_candidate *candidate; /* by number */
    nlist_i_hit *hit;       /* the row in progress, to sort it */
    uint64_t *key;          /* [2 * room] */
    int32_t *work;
    int repeats;            /* a row of this system had an id twice */
    int32_t count;          /* near candidates: those within reach of the AABB */
    float *x, *y, *z, *d2;
    int32_t *number, *near_id;
    int32_t *passed;        /* near candidates that passed the loop */
    double centre[3], scale;
    double sure;            /* distances up to this one are within the limit, whatever rounds */
    float inner;            /* its square, scaled; -1: there is none */
    float half[3];          /* of the AABB, scaled */
} nlist_i_search;

/* Faster forms of what follows: for AVX2 (>>lanes), and in tasks (>>parallel-boxes). */
#ifdef NLIST_I_AVX2
static void nlist_i_values_avx2(const nlist_i_search *search, int32_t place, const int32_t *number,
                                int32_t count, int64_t at);
static int32_t nlist_i_test_near_avx2(const nlist_i_search *search, int32_t place, const float p[3],
                                      int32_t *number, int32_t at);
static void nlist_i_gather_run_avx2(nlist_i_search *search, const double move[3], int32_t begin,
                                    int32_t count, int32_t number);
#endif
#ifndef NLIST_PLAIN
static int32_t nlist_i_box_pieces(const nlist_i_search *search);
static nlist_result nlist_i_find_in_pieces(nlist_i_search *search);
static nlist_result nlist_i_write_in_pieces(nlist_i_search *search);
#endif

/* ---- arrays of entries ---- */

/* Blocks of the arrays that the list owns, from `first` on. */
enum { NLIST_I_ARRAY_I, NLIST_I_ARRAY_J, NLIST_I_ARRAY_SHIFT, NLIST_I_ARRAY_DISTANCE,
       NLIST_I_ARRAY_OFFSET };

/* Array a, whose bit of `wanted` is 1 << a (NLIST_WANT_...); NULL if that is not set. */
static void *nlist_i_array(const nlist_block *block, int32_t wanted, int a)
{
    return wanted >> a & 1 ? block[a].memory : NULL;
}

/* Room for `more` entries after the first `used`, in the arrays that `wanted` names. out: points
   to them. */
static nlist_result nlist_i_grow_arrays(nlist *list, int first, int32_t wanted, int64_t used,
                                        int64_t more, nlist_arrays *out)
{
    static const size_t size[5] = {sizeof(int32_t), sizeof(int32_t), 3 * sizeof(int32_t),
                                   sizeof(nlist_real), 3 * sizeof(nlist_real)};
    const nlist_block *block = list->block + first;
    nlist_result result = NLIST_OK;
    int a;
    for (a = 0; a < 5 && result == NLIST_OK; a++)
        if (wanted >> a & 1)
            result = nlist_i_grow(list, first + a, used + more, size[a], (size_t)used * size[a]);
    out->i = (int32_t *)nlist_i_array(block, wanted, NLIST_I_ARRAY_I);
    out->j = (int32_t *)nlist_i_array(block, wanted, NLIST_I_ARRAY_J);
    out->shift = (int32_t *)nlist_i_array(block, wanted, NLIST_I_ARRAY_SHIFT);
    out->distance = (nlist_real *)nlist_i_array(block, wanted, NLIST_I_ARRAY_DISTANCE);
    out->offset = (nlist_real *)nlist_i_array(block, wanted, NLIST_I_ARRAY_OFFSET);
    if (result == NLIST_OK) out->capacity = used + more;
    return result;
}

/* What the search of a list writes. */
static int32_t nlist_i_wanted(const nlist_desc *desc)
{
    return NLIST_WANT_J | (desc->shifts ? NLIST_WANT_SHIFT : 0) |
           (desc->distances ? NLIST_WANT_DISTANCE : 0) | (desc->offsets ? NLIST_WANT_OFFSET : 0);
}

/* ---- entries ---- */

/* The entry of a particle and a candidate: id, shift, D, d2. (Loops over 4: a vector each.) */
NLIST_I_ALWAYS_INLINE void nlist_i_hit_of(const nlist_i_search *search, const nlist_i_placed *own,
                                          int32_t number, nlist_i_hit *hit)
{
    nlist_i_candidate const c = search->candidate[number];
    const nlist_i_placed *other = &search->placed[c.place];
    const nlist_i_run *run = &search->run[c.run];
    nlist_real t[4];
    int a;
    for (a = 0; a < 4; a++) hit->shift[a] = run->image[a] - other->wrap[a] + own->wrap[a];
    for (a = 0; a < 4; a++) t[a] = run->t[a];
    if (own->wrap[3] | other->wrap[3]) nlist_i_translation(&search->frame, hit->shift, t);
    hit->id = search->id[c.place];
    hit->d2 = nlist_i_offset(own->p, other->p, t, hit->d);
}

/* Writes the ids of the entries of a row, from entry `at` on. */
static void nlist_i_write_ids(const nlist_i_search *search, int32_t i, const int32_t *number,
                              int32_t count, int64_t at)
{
    const nlist_arrays *out = &search->out;
    const nlist_i_candidate *candidate = search->candidate;
    const int32_t *id = search->id;
    int32_t k;
    if (out->i)
        for (k = 0; k < count; k++) out->i[at + k] = i;
    if (out->j)
        for (k = 0; k < count; k++) out->j[at + k] = id[candidate[number[k]].place];
    if (search->long_i)
        for (k = 0; k < count; k++) search->long_i[at + k] = i;
    if (search->long_j)
        for (k = 0; k < count; k++) search->long_j[at + k] = id[candidate[number[k]].place];
}

/* Writes the offsets, distances and shifts of the entries of a row, from entry `at` on. */
NLIST_I_NOINLINE void nlist_i_values(const nlist_i_search *search, int32_t place,
                                     const int32_t *number, int32_t count, int64_t at)
{
    nlist_arrays const out = search->out;
    const nlist_i_placed *const own = &search->placed[place];
    int32_t k;
    for (k = 0; k < count; k++, at++) {
        nlist_i_hit hit;
        nlist_i_hit_of(search, own, number[k], &hit);
        if (out.shift) memcpy(out.shift + 3 * at, hit.shift, 3 * sizeof *hit.shift);
        if (out.distance) out.distance[at] = nlist_i_root_real(hit.d2);
        if (out.offset) memcpy(out.offset + 3 * at, hit.d, 3 * sizeof *hit.d);
    }
}

/* Writes the row of the particle at a place, from entry `at` on. */
static void nlist_i_write_row(const nlist_i_search *search, int32_t place, const int32_t *number,
                              int32_t count, int64_t at)
{
    const nlist_arrays *out = &search->out;
    nlist_i_write_ids(search, search->id[place], number, count, at);
    if (out->shift || out->distance || out->offset)
        NLIST_I_CHOSEN(nlist_i_values, nlist_i_values_avx2)(search, place, number, count, at);
}

/* nlist_i_write_row where the arrays may end before: what has no room is not written. */
static void nlist_i_write_some(const nlist_i_search *search, int32_t place, const int32_t *number,
                               int32_t count, int64_t at)
{
    int64_t const left = search->out.capacity - at;
    nlist_i_write_row(search, place, number, left < count ? (left > 0 ? (int32_t)left : 0) : count,
                      at);
}

/* By how much an array that holds `used` numbers of the rows so far is to grow for `count` more: by
   half at least, and by what the rows so far let expect, up to four times. */
static int64_t nlist_i_growth(const nlist_i_search *search, int64_t used, int32_t count)
{
    double const left = (double)(search->finder->rows - search->rows) /
                        (double)(search->rows + 1);
    if (left >= 4) return count + 4 * used;
    if ((double)used * left > (double)count && left > 0.5) return (int64_t)((double)used * left);
    return count > used / 2 ? count : used / 2;
}

/* Writes a row at the end; what has no room is counted only. Of the caller's arrays there is what
   there is. */
static nlist_result nlist_i_append_row(nlist_i_search *search, int32_t place, const int32_t *number,
                                       int32_t count)
{
    int64_t const at = search->used;
    nlist_result result = NLIST_OK;
    if (search->owned && !search->counted && at + count > search->out.capacity)
        result = nlist_i_grow_arrays(search->finder->list, NLIST_I_OUT, search->out.wanted, at,
                                     nlist_i_growth(search, at, count), &search->out);
    if (result == NLIST_OUT_OF_MEMORY && search->serial) search->counted = 1;
    else if (result != NLIST_OK) return result;
    nlist_i_write_some(search, place, number, count, at);
    search->used += count;
    return NLIST_OK;
}

/* ---- rows are put in order ---- */

/* Sorts keys, ascending: insertion up to 24, else two halves that are merged. work: as many. */
static void nlist_i_sort_keys(uint64_t *key, uint64_t *work, int32_t count)
{
    int32_t const middle = count / 2;
    int32_t a = 0, b = middle, k;
    if (count <= 24) {
        for (k = 1; k < count; k++) {
            uint64_t const moving = key[k];
            for (a = k; a > 0 && key[a - 1] > moving; a--) key[a] = key[a - 1];
            key[a] = moving;
        }
        return;
    }
    nlist_i_sort_keys(key, work, middle);
    nlist_i_sort_keys(key + middle, work + middle, count - middle);
    memcpy(work, key, (size_t)count * sizeof *key);
    for (k = 0; k < count; k++)
        key[k] = b >= count || (a < middle && work[a] <= work[b]) ? work[a++] : work[b++];
}

enum { NLIST_I_MOST_RANKED = 128 };

/* rank[k]: how many of the ids are below id[k]. Both have room for a multiple of NLIST_I_LANES. */
NLIST_I_ALWAYS_INLINE void nlist_i_rank_ids(const int32_t *id, int32_t *rank, int32_t count)
{
    int32_t first, k;
    int lane;
    for (first = 0; first < count; first += NLIST_I_LANES) {
        int32_t below[NLIST_I_LANES] = {0};
        for (k = 0; k < count; k++) {
            int32_t const other = id[k];
            NLIST_I_KEEP_LOOP
            for (lane = 0; lane < NLIST_I_LANES; lane++) below[lane] += other < id[first + lane];
        }
        for (lane = 0; lane < NLIST_I_LANES; lane++) rank[first + lane] = below[lane];
    }
}
NLIST_I_NOINLINE void nlist_i_rank(const int32_t *id, int32_t *rank, int32_t count)
{
    nlist_i_rank_ids(id, rank, count);
}
#ifdef NLIST_I_AVX2
NLIST_I_AVX2 NLIST_I_NOINLINE void nlist_i_rank_avx2(const int32_t *id, int32_t *rank,
                                                     int32_t count)
{
    nlist_i_rank_ids(id, rank, count);
    _mm256_zeroupper(); /* gcc 12 has none here */
}
#endif

/* The order of a row by id, where all comparisons take less than a sort. 0: too many hits, or two
   of one id. */
static int nlist_i_order_by_rank(nlist_i_search *search, int32_t count)
{
    int32_t id[NLIST_I_MOST_RANKED], rank[NLIST_I_MOST_RANKED], k;
    if (search->repeats || count < 1 || count > NLIST_I_MOST_RANKED) return 0;
    for (k = 0; k < count; k++) id[k] = search->id[search->candidate[search->work[k]].place];
    for (; k % NLIST_I_LANES != 0; k++) id[k] = 0;
    NLIST_I_CHOSEN(nlist_i_rank, nlist_i_rank_avx2)(id, rank, count);
    for (k = 0; k < count; k++) search->key[k] = UINT64_MAX;
    for (k = 0; k < count; k++) search->key[rank[k]] = (uint64_t)k;
    for (k = 0; k < count; k++) search->repeats |= search->key[k] == UINT64_MAX;
    return !search->repeats;
}

/* The hits of a row: what the formula says of each. */
static void nlist_i_take_hits(nlist_i_search *search, int32_t place, int32_t count)
{
    int32_t k;
    for (k = 0; k < count; k++)
        nlist_i_hit_of(search, &search->placed[place], search->work[k], &search->hit[k]);
}

/* The order of the row by id, then shift. Hits with one id mostly are in order already. */
static void nlist_i_sort_row(nlist_i_search *search, int32_t place, int32_t count)
{
    uint64_t *key = search->key;
    int32_t k, a;
    if (nlist_i_order_by_rank(search, count)) return;
    nlist_i_take_hits(search, place, count);
    for (k = 0; k < count; k++) key[k] = (uint64_t)search->hit[k].id << 32 | (uint32_t)k;
    nlist_i_sort_keys(key, key + search->room, count);
    for (k = 1; k < count; k++) {
        uint64_t const moving = key[k];
        for (a = k; a > 0 && key[a - 1] >> 32 == moving >> 32 &&
                    nlist_i_shift_before(search->hit[(uint32_t)moving].shift,
                                         search->hit[(uint32_t)key[a - 1]].shift);
             a--)
            key[a] = key[a - 1];
        key[a] = moving;
    }
}

/* 1 if hit a of the row stands before hit b: the nearer one. */
static int nlist_i_hit_before(const nlist_i_search *search, uint64_t a, uint64_t b)
{
    const nlist_i_hit *hit = &search->hit[a], *other = &search->hit[b];
    return nlist_i_nearer(hit->d2, hit->id, hit->shift, other->d2, other->id, other->shift);
}

/* Sifts heap[at] down to its place: each of the `count` hits is at least as far as its children. */
static void nlist_i_sift_hit(const nlist_i_search *search, uint64_t *heap, int32_t at,
                             int32_t count)
{
    uint64_t const moving = heap[at];
    int32_t child = 2 * at + 1;
    for (; child < count; child = 2 * at + 1) {
        if (child + 1 < count && nlist_i_hit_before(search, heap[child], heap[child + 1])) child++;
        if (!nlist_i_hit_before(search, moving, heap[child])) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

/* The `size` nearest of hits first .. count-1 in order, by insertion: fastest for a few. */
static void nlist_i_insert_nearest(const nlist_i_search *search, uint64_t *nearest, int32_t size,
                                   int32_t first, int32_t count)
{
    int32_t kept = 0, k, a;
    for (k = first; k < count; k++) {
        for (a = kept; a > 0 && nlist_i_hit_before(search, (uint64_t)k, nearest[a - 1]); a--)
            if (a < size) nearest[a] = nearest[a - 1];
        if (a < size) nearest[a] = (uint64_t)k;
        if (kept < size) kept++;
    }
}

/* The same for any size: a heap holds the nearest so far, the farthest on top, and is sorted at the
   end. O(hits + (size + replacements) log size). */
static void nlist_i_heap_nearest(const nlist_i_search *search, uint64_t *heap, int32_t size,
                                 int32_t first, int32_t count)
{
    int32_t k;
    for (k = 0; k < size; k++) heap[k] = (uint64_t)(first + k);
    for (k = size / 2 - 1; k >= 0; k--) nlist_i_sift_hit(search, heap, k, size);
    for (k = first + size; k < count; k++) {
        if (!nlist_i_hit_before(search, (uint64_t)k, heap[0])) continue;
        heap[0] = (uint64_t)k;
        nlist_i_sift_hit(search, heap, 0, size);
    }
    for (k = size - 1; k > 0; k--) {
        uint64_t const last = heap[0];
        heap[0] = heap[k];
        heap[k] = last;
        nlist_i_sift_hit(search, heap, 0, k);
    }
}

/* The order of the `most` nearest of the row; the first `kept` hits stay where they are. Returns
   how many. */
static int32_t nlist_i_nearest_of(nlist_i_search *search, int32_t count, int32_t most, int32_t kept)
{
    int32_t const size = (count < most ? count : most) - kept;
    int32_t k;
    for (k = 0; k < kept; k++) search->key[k] = (uint64_t)k;
    if (size <= 32) nlist_i_insert_nearest(search, search->key + kept, size, kept, count);
    else nlist_i_heap_nearest(search, search->key + kept, size, kept, count);
    return kept + size;
}

/* Puts the row of a particle in the order that desc asks for; its first `own` entries are the
   particle itself. Returns how many entries stay. */
static int32_t nlist_i_order_row(nlist_i_search *search, int32_t place, int32_t *number,
                                 int32_t count, int32_t own)
{
    const nlist_desc *desc = &search->finder->list->desc;
    int32_t k;
    memcpy(search->work, number, (size_t)count * sizeof *number);
    if (desc->nearest > 0) {
        nlist_i_take_hits(search, place, count);
        count = nlist_i_nearest_of(search, count,
                                   desc->nearest < count - own ? desc->nearest + own : count, own);
    } else {
        nlist_i_sort_row(search, place, count);
    }
    for (k = 0; k < count; k++) number[k] = search->work[(uint32_t)search->key[k]];
    return count;
}

/* The row of a particle is found: puts it in order; it stays, or is written. */
static nlist_result nlist_i_close_row(nlist_i_search *search, int32_t place, int32_t *number,
                                      int32_t count, int32_t own)
{
    nlist_i_finder *finder = search->finder;
    const nlist_desc *desc = &finder->list->desc;
    int32_t const i = search->id[place], within = count;
    if (desc->nearest > 0 || desc->sorted)
        count = nlist_i_order_row(search, place, number, count, own);
    if (search->source->within) search->source->within[i] = within;
    search->rows_cut += within > count;
    finder->begin[i] = search->used;
    finder->length[i] = count;
    search->rows++;
    if (!search->ordered) return nlist_i_append_row(search, place, number, count);
    search->used += count;
    if (!search->counted) search->stored += count;
    return NLIST_OK;
}

/* ---- one particle ---- */

/* 1 if the entry of the particle at a place and a candidate is listed: the formula, and all other
   criteria. */
NLIST_I_NOINLINE int nlist_i_listed(const nlist_i_search *search, int32_t place, int32_t number)
{
    const nlist_i_finder *finder = search->finder;
    const nlist_desc *desc = &finder->list->desc;
    int32_t const i = search->id[place];
    nlist_real limit = nlist_i_limit(desc, finder->largest, finder->largest);
    nlist_i_hit hit;
    nlist_i_hit_of(search, &search->placed[place], number, &hit);
    if (desc->radii)
        limit = nlist_i_limit(desc, nlist_i_given_radius(desc, i),
                              nlist_i_given_radius(desc, hit.id));
    if (!(hit.d2 <= limit) || !nlist_i_may_list_image(desc, finder->uid, i, hit.id, hit.shift))
        return 0;
    return !search->keeps || search->keeps(search->user, i, hit.id, nlist_i_root_real(hit.d2));
}

/* 1 if ids alone tell that a candidate is not listed: in half lists those below. */
static int nlist_i_halves(const nlist_i_search *search)
{
    return search->only_distance && search->finder->list->desc.half;
}

/* d2 of all near candidates, and the padding. */
static void nlist_i_distances(const nlist_i_search *search, const float p[3])
{
    float const px = p[0], py = p[1], pz = p[2];
    int32_t k;
    int lane;
    for (k = 0; k < search->count; k += NLIST_I_LANES) {
        const float *const x = search->x + k, *const y = search->y + k, *const z = search->z + k;
        float *const NLIST_I_RESTRICT d2 = search->d2 + k;
        NLIST_I_KEEP_LOOP
        for (lane = 0; lane < NLIST_I_LANES; lane++) {
            float const dx = x[lane] - px, dy = y[lane] - py, dz = z[lane] - pz;
            d2[lane] = dx * dx + dy * dy + dz * dz;
        }
    }
}

/* Near candidates within 1 of the point, in units of the reach. Every one is written, and the end
   advances for those that pass: there is no branch to mispredict. Comparing as integers is exact
   for numbers that are not negative, and faster. */
static int32_t nlist_i_pick_near(const nlist_i_search *search)
{
    const float *NLIST_I_RESTRICT d2 = search->d2;
    int32_t *NLIST_I_RESTRICT passed = search->passed;
    int32_t const count = search->count;
    float const one = 1;
    int32_t limit, k, found = 0;
    memcpy(&limit, &one, sizeof limit);
    for (k = 0; k < count; k++) {
        int32_t bits;
        memcpy(&bits, &d2[k], sizeof bits);
        passed[found] = k;
        found += bits <= limit;
    }
    return found;
}

/* Appends the numbers of the candidates that are listed. The formula is asked where rounding could
   decide, and for images of the particle itself. Returns the end. */
NLIST_I_NOINLINE int32_t nlist_i_test_near(const nlist_i_search *search, int32_t place,
                                           const float p[3], int32_t *number, int32_t at)
{
    int32_t const i = search->id[place];
    int const halves = nlist_i_halves(search);
    int32_t k, passed;
    nlist_i_distances(search, p);
    passed = nlist_i_pick_near(search);
    for (k = 0; k < passed; k++) {
        int32_t const c = search->passed[k], id = search->near_id[c];
        int listed = halves ? id > i : id != i;
        if (id == i || !(search->d2[c] <= search->inner))
            listed = nlist_i_listed(search, place, search->number[c]);
        number[at] = search->number[c];
        at += listed;
    }
    return at;
}

/* Room for the hits of a row. A task, which must not allocate: NLIST_BUFFER_TOO_SMALL. Where memory
   ends rows are counted from now on, each at the beginning of a block for one row. */
static nlist_result nlist_i_hit_room(nlist_i_search *search)
{
    nlist *list = search->finder->list;
    int64_t const row = search->count + NLIST_I_LANES, need = search->stored + row;
    int64_t const room = (int64_t)(list->block[NLIST_I_HITS].bytes / sizeof(int32_t));
    int64_t more = row;
    nlist_result result;
    search->hits = (int32_t *)list->block[NLIST_I_HITS].memory;
    if (search->hit_room > 0) return need <= search->hit_room ? NLIST_OK : NLIST_BUFFER_TOO_SMALL;
    if (row > search->most) search->most = row;
    if (need <= room) return NLIST_OK;
    if (search->stored) more += nlist_i_growth(search, search->stored, search->count);
    result = nlist_i_grow(list, NLIST_I_HITS, search->stored + more, sizeof(int32_t),
                          (size_t)search->stored * sizeof(int32_t));
    if (result == NLIST_OUT_OF_MEMORY && search->serial && search->stored) {
        search->counted = 1;
        search->stored = 0;
        nlist_i_release(&list->desc.allocator, &list->block[NLIST_I_HITS]);
        result = nlist_i_grow(list, NLIST_I_HITS, row, sizeof(int32_t), 0);
    }
    search->hits = (int32_t *)list->block[NLIST_I_HITS].memory;
    return result;
}

/* The row of the particle at a place, which is candidate `number` itself. */
static nlist_result nlist_i_find_row(nlist_i_search *search, int32_t place, int32_t number)
{
    int32_t const i = search->id[place];
    nlist_result const result = nlist_i_hit_room(search);
    int32_t *hits, count = 0, own;
    float p[3];
    int a;
    if (result != NLIST_OK) return result;
    hits = search->hits + search->stored;
    for (a = 0; a < 3; a++)
        p[a] = (float)((search->q[a][place] - search->centre[a]) * search->scale);
    if (search->self && (!search->keeps || search->keeps(search->user, i, i, 0)))
        hits[count++] = number;
    own = count;
    count = NLIST_I_CHOSEN(nlist_i_test_near, nlist_i_test_near_avx2)(search, place, p, hits,
                                                                      count);
    return nlist_i_close_row(search, place, hits, count, own);
}

/* ---- one cell ---- */

/* 2^-20, 16 roundings of a float: a number that was made with a few roundings is surely below the
   exact one when it is shortened by this part, and above it when it is lengthened. */
#define NLIST_I_FLOAT_SLACK (1.0 / 1048576.0)

/* The AABB of the particles of a cell: its centre, and the scale. */
static void nlist_i_bound_cell(nlist_i_search *search, int32_t begin, int32_t end)
{
    double low[3], high[3], size = 0, blur, reach, inner;
    int32_t k;
    int a;
    for (a = 0; a < 3; a++) low[a] = high[a] = search->q[a][begin];
    for (k = begin + 1; k < end; k++) {
        for (a = 0; a < 3; a++) {
            double const q = search->q[a][k];
            if (q < low[a]) low[a] = q;
            if (q > high[a]) high[a] = q;
        }
    }
    for (a = 0; a < 3; a++) {
        search->centre[a] = low[a] + (high[a] - low[a]) / 2;
        size += high[a] - low[a];
    }
    /* 2^-18: coordinates here are below size + 2 reaches, and are rounded to 2^-24 of that */
    blur = (search->frame.reach + size) * (1.0 / 262144.0);
    reach = search->frame.reach + blur;
    search->scale = 1 / reach;
    inner = (search->sure - blur) * search->scale;
    search->inner = inner > 0 ? (float)(inner * inner * (1 - NLIST_I_FLOAT_SLACK)) : -1;
    for (a = 0; a < 3; a++)
        search->half[a] = (float)((high[a] - low[a]) / 2 * search->scale *
                                  (1 + NLIST_I_FLOAT_SLACK));
}

/* The runs of the walk around a cell that begins at a place. Returns the number of candidates, or
   -1 where they are too many. */
static int64_t nlist_i_list_runs(nlist_i_search *search, int32_t cell, int32_t begin)
{
    nlist_i_walk walk = nlist_i_walk_of(&search->frame, cell);
    int64_t number = 0;
    int a;
    search->runs = 0;
    while (nlist_i_next_run(&walk)) {
        nlist_i_run *run = &search->run[search->runs];
        run->begin = search->start[walk.begin];
        run->count = search->start[walk.end] - run->begin;
        if (run->count == 0) continue;
        for (a = 0; a < 3; a++) run->image[a] = walk.image[a];
        nlist_i_translation(&search->frame, walk.image, run->t);
        run->t[3] = 0;
        run->image[3] = 0;
        if (walk.begin <= cell && cell < walk.end &&
            !(walk.image[0] | walk.image[1] | walk.image[2]))
            search->own = (int32_t)number + begin - run->begin;
        number += run->count;
        search->runs++;
        if (number > NLIST_I_INT_MAX) return -1;
    }
    return number;
}

/* Bytes of a candidate, in all arrays. */
static size_t nlist_i_candidate_bytes(void)
{
    return sizeof(nlist_i_candidate) + sizeof(nlist_i_hit) + 2 * sizeof(uint64_t) +
           4 * sizeof(float) + 4 * sizeof(int32_t);
}

/* The arrays of `room` candidates begin at `memory`. */
static void nlist_i_set_candidates(nlist_i_search *search, char *memory, int32_t room)
{
    search->room = room;
    search->key = (uint64_t *)(void *)memory;
    search->hit = (nlist_i_hit *)(void *)(search->key + 2 * (size_t)room);
    search->candidate = (nlist_i_candidate *)(void *)(search->hit + room);
    search->x = (float *)(void *)(search->candidate + room);
    search->y = search->x + room;
    search->z = search->y + room;
    search->d2 = search->z + room;
    search->number = (int32_t *)(void *)(search->d2 + room);
    search->near_id = search->number + room;
    search->passed = search->near_id + room;
    search->work = search->passed + room;
}

/* Room for the candidates of a cell. */
static nlist_result nlist_i_take_candidates(nlist_i_search *search, int64_t count)
{
    nlist *list = search->finder->list;
    size_t const each = nlist_i_candidate_bytes();
    nlist_result result;
    size_t room;
    if (count + NLIST_I_LANES <= search->room) return NLIST_OK;
    result = nlist_i_grow(list, NLIST_I_NEAR, count + NLIST_I_LANES, each, 0);
    if (result != NLIST_OK) return result;
    room = list->block[NLIST_I_NEAR].bytes / each;
    nlist_i_set_candidates(search, (char *)list->block[NLIST_I_NEAR].memory,
                           (int32_t)(room < NLIST_I_INT_MAX ? room : NLIST_I_INT_MAX));
    return NLIST_OK;
}

/* Numbers the candidates around a cell. */
static nlist_result nlist_i_number_candidates(nlist_i_search *search, int32_t cell, int32_t begin)
{
    int64_t const count = nlist_i_list_runs(search, cell, begin);
    nlist_result const result = count < 0 ? NLIST_TOO_MANY : nlist_i_take_candidates(search, count);
    nlist_i_candidate *at = search->candidate;
    int32_t r, k;
    if (result != NLIST_OK) return result;
    for (r = 0; r < search->runs; r++) {
        int32_t const first = search->run[r].begin;
        for (k = 0; k < search->run[r].count; k++, at++) {
            at->place = first + k;
            at->run = r;
        }
    }
    return NLIST_OK;
}

/* Coordinates relative to the centre, in units of the reach, of the places of a run; d2: four times
   the square of the distance from the AABB. */
static void nlist_i_scale_points(const nlist_i_search *search, const double move[3], int32_t begin,
                                 int32_t count)
{
    double const scale = search->scale, mx = move[0], my = move[1], mz = move[2];
    float const hx = search->half[0], hy = search->half[1], hz = search->half[2];
    const double *NLIST_I_RESTRICT qx = search->q[0] + begin;
    const double *NLIST_I_RESTRICT qy = search->q[1] + begin;
    const double *NLIST_I_RESTRICT qz = search->q[2] + begin;
    float *NLIST_I_RESTRICT x = search->x + search->count;
    float *NLIST_I_RESTRICT y = search->y + search->count;
    float *NLIST_I_RESTRICT z = search->z + search->count;
    float *NLIST_I_RESTRICT d2 = search->d2;
    int32_t k;
    for (k = 0; k < count; k++) {
        float const px = (float)((qx[k] + mx) * scale), py = (float)((qy[k] + my) * scale),
                    pz = (float)((qz[k] + mz) * scale);
        /* |p| - half, and twice that where it is positive: compilers vectorise no branch */
        float const ax = fabsf(px) - hx, ay = fabsf(py) - hy, az = fabsf(pz) - hz;
        float const dx = ax + fabsf(ax), dy = ay + fabsf(ay), dz = az + fabsf(az);
        x[k] = px;
        y[k] = py;
        z[k] = pz;
        d2[k] = dx * dx + dy * dy + dz * dz;
    }
}

/* Appends the places of a run that are within reach of the AABB to the near candidates, without a
   branch. number: of the first. */
NLIST_I_NOINLINE void nlist_i_gather_run(nlist_i_search *search, const double move[3],
                                         int32_t begin, int32_t count, int32_t number)
{
    float *const x = search->x + search->count, *const y = search->y + search->count,
          *const z = search->z + search->count;
    int32_t *const numbers = search->number + search->count;
    int32_t *const ids = search->near_id + search->count;
    const float *const d2 = search->d2;
    float const four = 4;
    int32_t limit, kept = 0, k;
    nlist_i_scale_points(search, move, begin, count);
    memcpy(&limit, &four, sizeof limit);
    for (k = 0; k < count; k++) {
        int32_t bits;
        memcpy(&bits, &d2[k], sizeof bits);
        x[kept] = x[k];
        y[kept] = y[k];
        z[kept] = z[k];
        numbers[kept] = number + k;
        ids[kept] = search->id[begin + k];
        kept += bits <= limit;
    }
    search->count += kept;
}

/* Gathers the near candidates of a cell. */
static void nlist_i_gather(nlist_i_search *search)
{
    const nlist_i_frame *frame = &search->frame;
    int32_t number = 0, r, k;
    search->count = 0;
    for (r = 0; r < search->runs; r++) {
        const nlist_i_run *run = &search->run[r];
        double move[3];
        int a;
        for (a = 0; a < 3; a++)
            move[a] = run->image[0] * (double)frame->cell[0][a] +
                      run->image[1] * (double)frame->cell[1][a] +
                      run->image[2] * (double)frame->cell[2][a] - search->centre[a];
        NLIST_I_CHOSEN(nlist_i_gather_run, nlist_i_gather_run_avx2)(search, move, run->begin,
                                                                    run->count, number);
        number += run->count;
    }
    for (k = search->count; k % NLIST_I_LANES != 0; k++)
        search->x[k] = search->y[k] = search->z[k] = 0;
}

/* Gathers the candidates of a cell, then finds the rows of its particles from search->next on. */
static nlist_result nlist_i_search_cell(nlist_i_search *search, int32_t cell)
{
    int32_t const begin = search->start[cell], end = search->start[cell + 1],
                  rows = search->finder->rows;
    nlist_result result;
    int32_t k;
    if (begin == end) return NLIST_OK;
    result = nlist_i_number_candidates(search, cell, begin);
    if (result != NLIST_OK) return result;
    nlist_i_bound_cell(search, begin, end);
    nlist_i_gather(search);
    for (k = begin > search->next ? begin : search->next; k < end; k++) {
        if (search->id[k] < rows)
            result = nlist_i_find_row(search, k, search->own + k - begin);
        if (result != NLIST_OK) break;
    }
    search->next = k;
    return result;
}

/* Writes the rows of a cell, which are found, each to its place; where rows are not in the order of
   ids, one after the other. */
static nlist_result nlist_i_write_cell(nlist_i_search *search, int32_t cell)
{
    const nlist_i_finder *finder = search->finder;
    int32_t const begin = search->start[cell], end = search->start[cell + 1];
    nlist_result result;
    int32_t k;
    if (begin == end) return NLIST_OK;
    result = nlist_i_number_candidates(search, cell, begin);
    for (k = begin; k < end && result == NLIST_OK; k++) {
        int32_t const i = search->id[k];
        const int32_t *number;
        if (i >= finder->rows) continue;
        number = search->hits + search->stored;
        if (search->ordered) {
            nlist_i_write_row(search, k, number, finder->length[i], finder->begin[i]);
        } else {
            finder->begin[i] = search->used;
            nlist_i_write_some(search, k, number, finder->length[i], search->used);
            search->used += finder->length[i];
        }
        search->stored += finder->length[i];
    }
    return result;
}

/* ---- one system ---- */

/* The point of particle i. Returns 0 where desc.skip_invalid leaves it out. */
static int nlist_i_load_valid(const nlist_i_finder *finder, int32_t i, nlist_real p[3])
{
    nlist_i_load(finder->pos, finder->stride, finder->list->desc.dim, i, p);
    return !finder->list->desc.skip_invalid || nlist_i_point_finite(p);
}

/* The extent of the particles of the system. */
static void nlist_i_extent_of(const nlist_i_search *search, nlist_i_extent *extent)
{
    const nlist_i_finder *finder = search->finder;
    const nlist_i_frame *frame = &search->frame;
    nlist_real p[3];
    int32_t k;
    int a, first = 1;
    memset(extent, 0, sizeof *extent);
    for (k = 0; k < frame->n; k++) {
        if (!nlist_i_load_valid(finder, frame->first + k, p)) continue;
        for (a = 0; a < 3; a++) {
            double const x = nlist_i_magnitude((double)p[a]);
            double f;
            if (x > extent->most) extent->most = x;
            if (frame->periodic[a]) continue;
            f = nlist_i_fraction(frame, a, p);
            if (first || f < extent->low[a]) extent->low[a] = f;
            if (first || f > extent->high[a]) extent->high[a] = f;
        }
        first = 0;
    }
}

/* No walk around a cell has more runs: on the last axis one for each image, of which two may be
   cut. */
static int64_t nlist_i_most_runs(const nlist_i_frame *frame)
{
    return (2 * (int64_t)frame->range[0] + 1) * (2 * (int64_t)frame->range[1] + 1) *
           ((2 * (int64_t)frame->range[2] + 1) / frame->cells[2] + 2);
}

/* The cells of a box. */
static int32_t nlist_i_cell_count(const nlist_i_frame *frame)
{
    return frame->cells[0] * frame->cells[1] * frame->cells[2];
}

/* Memory for the particles and cells of the system. */
static nlist_result nlist_i_take_places(nlist_i_search *search)
{
    nlist *list = search->finder->list;
    int64_t const all = nlist_i_cell_count(&search->frame);
    int64_t const n = (int64_t)search->frame.n + NLIST_I_LANES;
    nlist_result result = nlist_i_grow(list, NLIST_I_PLACES, n,
                                       3 * sizeof(double) + sizeof(nlist_i_placed) +
                                           2 * sizeof(int32_t), 0);
    int64_t k;
    int a;
    if (result == NLIST_OK) result = nlist_i_grow(list, NLIST_I_CELLS, all + 1, sizeof(int32_t), 0);
    if (result == NLIST_OK)
        result = nlist_i_grow(list, NLIST_I_RUNS, nlist_i_most_runs(&search->frame),
                              sizeof(nlist_i_run), 0);
    if (result != NLIST_OK) return result;
    for (a = 0; a < 3; a++)
        search->q[a] = (double *)list->block[NLIST_I_PLACES].memory + a * n;
    search->placed = (nlist_i_placed *)(void *)(search->q[2] + n);
    search->cell = (int32_t *)(void *)(search->placed + n);
    search->id = search->cell + n;
    for (k = list->desc.skip_invalid ? 0 : search->frame.n; k < n; k++) {
        for (a = 0; a < 3; a++) search->q[a][k] = 0;
        search->id[k] = 0;
    }
    search->start = (int32_t *)list->block[NLIST_I_CELLS].memory;
    search->run = (nlist_i_run *)list->block[NLIST_I_RUNS].memory;
    memset(search->start, 0, (size_t)(all + 1) * sizeof(int32_t));
    return NLIST_OK;
}

/* Writes a particle to its place. */
static void nlist_i_put_particle(const nlist_i_search *search, int32_t place, int32_t i,
                                 const nlist_real p[3], const int32_t wrap[3])
{
    const nlist_i_frame *frame = &search->frame;
    nlist_i_placed *to = &search->placed[place];
    int a;
    to->p[3] = 0;
    to->wrap[3] = (wrap[0] | wrap[1] | wrap[2]) != 0;
    for (a = 0; a < 3; a++) {
        to->p[a] = p[a];
        to->wrap[a] = wrap[a];
        search->q[a][place] = (double)p[a];
        if (to->wrap[3])
            search->q[a][place] -= wrap[0] * (double)frame->cell[0][a] +
                                   wrap[1] * (double)frame->cell[1][a] +
                                   wrap[2] * (double)frame->cell[2][a];
    }
    search->id[place] = i;
}

/* A particle that is in no cell: its row is empty. */
enum { NLIST_I_NO_CELL = INT32_MIN };

/* A counting sort of the particles by cell. start[c + 1] counts, then is the begin of c, then its
   end. cell: ~c where the particle is wrapped. */
static nlist_result nlist_i_sort_particles(nlist_i_search *search)
{
    const nlist_i_finder *finder = search->finder;
    const nlist_i_frame *frame = &search->frame;
    int32_t const cells = nlist_i_cell_count(frame);
    int32_t *start = search->start, sum = 0, cell, k;
    nlist_real p[3];
    for (k = 0; k < frame->n; k++) {
        int32_t wrap[3];
        search->cell[k] = NLIST_I_NO_CELL;
        if (!nlist_i_load_valid(finder, frame->first + k, p)) continue;
        if (!nlist_i_place(frame, p, &cell, wrap)) return NLIST_TOO_MANY_IMAGES;
        start[cell + 1]++;
        search->cell[k] = wrap[0] | wrap[1] | wrap[2] ? ~cell : cell;
    }
    for (k = 1; k <= cells; k++) {
        int32_t const count = start[k];
        start[k] = sum;
        sum += count;
    }
    for (k = 0; k < frame->n; k++) {
        int32_t wrap[3] = {0, 0, 0};
        cell = search->cell[k];
        if (cell == NLIST_I_NO_CELL) continue;
        (void)nlist_i_load_valid(finder, frame->first + k, p);
        if (cell < 0) (void)nlist_i_place(frame, p, &cell, wrap);
        nlist_i_put_particle(search, start[cell + 1]++, frame->first + k, p, wrap);
    }
    return NLIST_OK;
}

/* Cuts the box of system s into cells, and sorts its particles into them. */
static nlist_result nlist_i_enter_system(nlist_i_search *search, int32_t s)
{
    const nlist_i_finder *finder = search->finder;
    const nlist_i_boxes *source = search->source;
    nlist_i_frame *frame = &search->frame;
    double const gap = nlist_i_box_gap(&finder->list->desc, finder->largest);
    nlist_i_extent extent;
    nlist_result result;
    if (search->system == s) return NLIST_OK;
    search->system = s;
    search->repeats = 0;
    frame->first = source->starts[s];
    frame->n = source->starts[s + 1] - frame->first;
    if (!nlist_i_frame_of(frame, &source->box[s], finder->list->desc.dim)) return NLIST_BAD_BOX;
    if (frame->n == 0) return NLIST_OK;
    nlist_i_extent_of(search, &extent);
    if (!nlist_i_cut(frame, &extent, gap)) return NLIST_TOO_MANY_IMAGES;
    search->sure = search->only_distance
                       ? gap * (1 - 1e-5) - 2 * nlist_i_blur(frame, gap, extent.most) : -1;
    result = nlist_i_take_places(search);
    return result == NLIST_OK ? nlist_i_sort_particles(search) : result;
}

/* Finds (or, where they are found, writes) the rows of the cells `first` to `last` - 1. */
static nlist_result nlist_i_each_cell(nlist_i_search *search, int32_t first, int32_t last,
                                      nlist_result (*work)(nlist_i_search *, int32_t))
{
    nlist_result result = NLIST_OK;
    int32_t cell;
    for (cell = first; cell < last && result == NLIST_OK; cell++) result = work(search, cell);
    return result;
}

/* Finds the rows of one system. */
static nlist_result nlist_i_find_system(nlist_i_search *search)
{
    search->next = 0;
#ifndef NLIST_PLAIN
    if (nlist_i_box_pieces(search) > 1) return nlist_i_find_in_pieces(search);
#endif
    return nlist_i_each_cell(search, 0, nlist_i_cell_count(&search->frame), nlist_i_search_cell);
}

/* Writes the rows of one system, which are found. */
static nlist_result nlist_i_write_system(nlist_i_search *search)
{
#ifndef NLIST_PLAIN
    if (nlist_i_box_pieces(search) > 1) return nlist_i_write_in_pieces(search);
#endif
    return nlist_i_each_cell(search, 0, nlist_i_cell_count(&search->frame), nlist_i_write_cell);
}

/* Finds or writes the rows of all systems. */
static nlist_result nlist_i_each_system(nlist_i_search *search,
                                        nlist_result (*work)(nlist_i_search *))
{
    nlist_i_finder *finder = search->finder;
    nlist_result result = NLIST_OK;
    int32_t s;
    for (s = 0; s < search->source->systems && result == NLIST_OK; s++) {
        result = nlist_i_enter_system(search, s);
        if (result == NLIST_BAD_BOX || result == NLIST_TOO_MANY_IMAGES) finder->list->bad_id = s;
        if (result == NLIST_OK && search->frame.n > 0) result = work(search);
    }
    return result;
}

/* A search that has found nothing yet. */
static void nlist_i_begin_search(nlist_i_search *search, nlist_i_finder *finder)
{
    memset(search, 0, sizeof *search);
    search->finder = finder;
    search->source = (nlist_i_boxes *)finder->source;
    search->system = -1;
    search->serial = finder->list->desc.parallel.tasks < 2;
}

/* Finds all rows, or counts their entries where memory ends. */
static nlist_result nlist_i_find_once(nlist_i_search *search)
{
    nlist_i_finder *finder = search->finder;
    int32_t i;
    if (finder->list->desc.skip_invalid) {
        for (i = 0; i < finder->rows; i++) {
            finder->begin[i] = finder->length[i] = 0; /* of those that are in no cell */
            if (search->source->within) search->source->within[i] = 0;
        }
    }
    return nlist_i_each_system(search, nlist_i_find_system);
}

/* Frees what the search has taken for entries, and takes room for so many, exactly. */
static nlist_result nlist_i_begin_again(nlist_i_search *search, int64_t entries)
{
    nlist *list = search->finder->list;
    nlist_result result = NLIST_OK;
    int b;
    for (b = 0; search->out.wanted && b <= NLIST_I_ARRAY_OFFSET; b++)
        nlist_i_release(&list->desc.allocator, &list->block[(int)NLIST_I_OUT + b]);
    nlist_i_release(&list->desc.allocator, &list->block[NLIST_I_HITS]);
    nlist_i_release(&list->desc.allocator, &list->block[NLIST_I_NEAR]);
    search->serial = 1;
    search->counted = 0;
    search->system = -1;
    search->used = search->stored = 0;
    search->rows = search->rows_cut = search->cut = search->room = 0;
    if (search->owned)
        result = nlist_i_grow_arrays(list, NLIST_I_OUT, search->out.wanted, 0, entries,
                                     &search->out);
    else if (search->ordered && entries > 0)
        result = nlist_i_grow(list, NLIST_I_HITS, entries + search->most, sizeof(int32_t), 0);
    return result;
}

/* nlist_i_find_once, and once more where memory ended: without tasks, and with room for exactly the
   entries that were counted. NLIST_OUT_OF_MEMORY: search->used is how many there are, or 0 where
   memory ended before they were counted. */
static nlist_result nlist_i_find_in_memory(nlist_i_search *search)
{
    for (;;) {
        nlist_result result = nlist_i_find_once(search);
        int64_t const entries = result == NLIST_OK ? search->used : 0;
        if (result == NLIST_OK && !search->counted) return result;
        if (result == NLIST_OUT_OF_MEMORY && search->serial) search->used = 0;
        if (result != NLIST_OK && (result != NLIST_OUT_OF_MEMORY || search->serial)) return result;
        result = nlist_i_begin_again(search, entries);
        if (result != NLIST_OK) search->used = entries;
        if (result != NLIST_OK) return result;
    }
}

/* Finds all rows. With search->ordered finder.begin says then where each belongs, in the order of
   ids. */
static nlist_result nlist_i_find_rows(nlist_i_search *search)
{
    nlist_i_finder *finder = search->finder;
    nlist_result result;
    int64_t sum = 0;
    int32_t i;
    search->only_distance = !search->keeps &&
                            nlist_i_only_distance(&finder->list->desc, finder->uid);
    result = nlist_i_find_in_memory(search);
    finder->list->rows_cut = search->rows_cut;
    if (result != NLIST_OK || !search->ordered) return result;
    for (i = 0; i < finder->rows; i++) {
        finder->begin[i] = sum;
        sum += finder->length[i];
    }
    return NLIST_OK;
}

/* Writes the rows that nlist_i_find_rows has found, in the order of ids. It takes no memory, and
   fails only where the hook of desc.parallel leaves a task out. */
static nlist_result nlist_i_write_rows(nlist_i_search *search)
{
    search->stored = 0;
    search->cut = 0;
    return nlist_i_each_system(search, nlist_i_write_system);
}

/* ---- the calls ---- */

/* starts begins with 0, and does not descend. */
static nlist_result nlist_i_check_starts(const int32_t *starts, int32_t systems)
{
    int32_t s;
    if (starts[0] != 0) return NLIST_BAD_STARTS;
    for (s = 0; s < systems; s++) if (starts[s + 1] < starts[s]) return NLIST_BAD_STARTS;
    return NLIST_OK;
}

/* desc.nearest is not negative, and only of full lists. */
static nlist_result nlist_i_check_box_desc(const nlist_desc *desc)
{
    return desc->nearest < 0 || (desc->nearest > 0 && desc->half) ? NLIST_BAD_OPTION : NLIST_OK;
}

/* desc without the box of other builds, which is neither used nor checked; contacts are told apart
   by their shifts. */
static nlist_desc nlist_i_box_desc(const nlist_desc *desc)
{
    nlist_desc resolved = *desc;
    memset(resolved.periodic, 0, sizeof resolved.periodic);
    if (nlist_i_keeps_two(desc) || desc->sorted) resolved.shifts = 1;
    return resolved;
}

/* Finds the rows of a list. */
static nlist_result nlist_i_collect_boxes(nlist_i_finder *finder)
{
    nlist *list = finder->list;
    nlist_i_search search;
    nlist_result result = NLIST_OK;
    int64_t room;
    nlist_i_begin_search(&search, finder);
    search.owned = 1;
    search.out.wanted = nlist_i_wanted(&list->desc);
    if (list->desc.nearest > 0) {
        result = nlist_i_grow(list, NLIST_I_WITHIN_FOUND, finder->n, sizeof(int32_t), 0);
        search.source->within = (int32_t *)list->block[NLIST_I_WITHIN_FOUND].memory;
    }
    room = (int64_t)(list->block[(int)NLIST_I_OUT + (int)NLIST_I_ARRAY_J].bytes / sizeof(int32_t));
    if (result == NLIST_OK)
        result = nlist_i_grow_arrays(list, NLIST_I_OUT, search.out.wanted, 0, room, &search.out);
    if (result == NLIST_OK) result = nlist_i_find_rows(&search);
    search.source->found = search.out;
    finder->found = search.out.j;
    finder->used = search.used;
    if (result == NLIST_OUT_OF_MEMORY) finder->fixed = search.used > 0; /* all are counted */
    return result;
}

/* Copies what was found beside the partners of rows first .. last-1, entry by entry. */
static void nlist_i_lay_out_extras(const nlist_i_finder *finder, const nlist_rows *old_rows,
                                   const nlist_rows *rows, int32_t first, int32_t last)
{
    const nlist_i_boxes *source = (const nlist_i_boxes *)finder->source;
    const nlist_arrays *found = &source->found;
    int32_t i;
    (void)old_rows;
    if (rows->within && source->within && last > first)
        memcpy(rows->within + first, source->within + first,
               (size_t)(last - first) * sizeof *rows->within);
    if (!rows->shift && !rows->distance && !rows->offset) return;
    for (i = first; i < last; i++) {
        nlist_each e = nlist_i_row(rows, 0, i);
        size_t from = (size_t)finder->begin[i];
        for (; nlist_next(&e); from++) {
            size_t const to = (size_t)e.entry;
            if (rows->shift)
                memcpy(rows->shift + 3 * to, found->shift + 3 * from, 3 * sizeof *rows->shift);
            if (rows->distance) rows->distance[to] = found->distance[from];
            if (rows->offset)
                memcpy(rows->offset + 3 * to, found->offset + 3 * from, 3 * sizeof *rows->offset);
        }
    }
}

/* `systems` boxes as the source of a build. */
static nlist_i_boxes nlist_i_boxes_of(const nlist_box *box, const int32_t *starts, int32_t systems)
{
    nlist_i_boxes source;
    memset(&source, 0, sizeof source);
    source.box = box;
    source.starts = starts;
    source.systems = systems;
    return source;
}

/* A build from boxes. */
static nlist_i_finder nlist_i_finder_of_boxes(nlist *list, nlist_i_boxes *source)
{
    nlist_i_finder finder = nlist_i_finder_of(list, source->starts[source->systems]);
    finder.source = source;
    finder.extras = nlist_i_lay_out_extras;
    return finder;
}

/* Takes over desc for boxes, and checks the particles. */
static nlist_result nlist_i_begin_boxes(nlist_i_finder *finder, const nlist_desc *desc,
                                        const nlist_real *pos, size_t stride, nlist *before)
{
    const nlist_i_boxes *source = (const nlist_i_boxes *)finder->source;
    nlist_desc const resolved = nlist_i_box_desc(desc);
    nlist_result result = nlist_i_begin(finder->list, &resolved, 0, before);
    if (result == NLIST_OK) result = nlist_i_check_box_desc(&finder->list->desc);
    if (result == NLIST_OK) result = nlist_i_check_starts(source->starts, source->systems);
    return result == NLIST_OK ? nlist_i_prepare(finder, pos, stride) : result;
}

NLIST_API nlist_result nlist_build_boxes(nlist *list, const nlist_desc *desc,
                                         const nlist_box *boxes, const int32_t *starts,
                                         int32_t systems, const nlist_real *pos, size_t stride)
{
    nlist_i_boxes source = nlist_i_boxes_of(boxes, starts, systems);
    nlist_i_finder finder;
    nlist before;
    nlist_result result;
    if (!list || !desc || !boxes || !starts || systems < 0) return NLIST_BAD_ARGUMENT;
    finder = nlist_i_finder_of_boxes(list, &source);
    result = nlist_i_begin_boxes(&finder, desc, pos, stride, &before);
    if (result == NLIST_OK) result = nlist_i_build(&finder, nlist_i_collect_boxes);
    if (result == NLIST_OK) list->boxed = 1;
    return nlist_i_end_build(list, &before, result);
}

NLIST_API nlist_result nlist_build_box(nlist *list, const nlist_desc *desc, const nlist_box *box,
                                       const nlist_real *pos, size_t stride, int32_t n)
{
    int32_t const starts[2] = {0, n};
    if (n < 0) return NLIST_BAD_ARGUMENT;
    return nlist_build_boxes(list, desc, box, starts, 1, pos, stride);
}

/* Entries in the order of cells are written as they are found. For those in the order of ids rows
   are found first; then each entry is written once, to its place. */
static nlist_result nlist_i_search_arrays(nlist_i_finder *finder, nlist_arrays *arrays)
{
    nlist *list = finder->list;
    int const owned = arrays->wanted != 0;
    int32_t const wanted = arrays->wanted;
    nlist_i_search search;
    nlist_result result;
    nlist_i_begin_search(&search, finder);
    search.ordered = list->desc.sorted || list->desc.nearest > 0;
    search.owned = owned && !search.ordered;
    if (owned) search.out.wanted = wanted;
    else search.out = *arrays;
    result = nlist_i_find_rows(&search);
    arrays->count = search.out.count = search.used;
    arrays->rows_cut = search.out.rows_cut = list->rows_cut;
    if (result != NLIST_OK) return result;
    if (!owned && search.used > arrays->capacity) return NLIST_BUFFER_TOO_SMALL;
    if (search.ordered) {
        if (owned)
            result = nlist_i_grow_arrays(list, NLIST_I_OUT, wanted, 0, search.used, &search.out);
        if (result == NLIST_OK) result = nlist_i_write_rows(&search);
        if (result != NLIST_OK) return result;
    }
    if (owned) *arrays = search.out;
    return NLIST_OK;
}

/* Begins a search of the boxes that the finder names. Its list provides memory; nothing it holds
   restricts the search. */
static nlist_result nlist_i_begin_arrays(nlist_i_finder *finder, const nlist_desc *desc,
                                         const nlist_real *pos, size_t stride)
{
    nlist_desc wanted = *desc;
    nlist before;
    nlist_result result;
    wanted.history = wanted.events = 0;
    finder->list->n = 0;
    result = nlist_i_begin_boxes(finder, &wanted, pos, stride, &before);
    if (result == NLIST_OK) result = nlist_i_check_exclusions(&finder->list->desc, finder->n);
    return result == NLIST_OK ? nlist_i_reserve_found(finder) : result;
}

NLIST_API nlist_result nlist_search_boxes(nlist *list, const nlist_desc *desc,
                                          const nlist_box *boxes, const int32_t *starts,
                                          int32_t systems, const nlist_real *pos, size_t stride,
                                          nlist_arrays *arrays)
{
    nlist_i_boxes source = nlist_i_boxes_of(boxes, starts, systems);
    nlist_i_finder finder;
    nlist work;
    nlist_result result;
    if (!list || !desc || !boxes || !starts || systems < 0 || !arrays || arrays->capacity < 0)
        return NLIST_BAD_ARGUMENT;
    arrays->count = 0;
    arrays->rows_cut = 0;
    work = *list;
    finder = nlist_i_finder_of_boxes(&work, &source);
    result = nlist_i_begin_arrays(&finder, desc, pos, stride);
    if (result == NLIST_OK) result = nlist_i_search_arrays(&finder, arrays);
    memcpy(list->block, work.block, sizeof list->block);
    list->desc.allocator = work.desc.allocator;
    list->bad_id = work.bad_id;
    return result;
}

NLIST_API nlist_result nlist_search_box(nlist *list, const nlist_desc *desc, const nlist_box *box,
                                        const nlist_real *pos, size_t stride, int32_t n,
                                        nlist_arrays *arrays)
{
    int32_t const starts[2] = {0, n};
    if (n < 0) return NLIST_BAD_ARGUMENT;
    return nlist_search_boxes(list, desc, box, starts, 1, pos, stride, arrays);
}

/* ----------------------------------------------------------------------------------------------
   >>lanes: the loops of >>boxes-serial over candidates and entries, written by hand for AVX2

   On x86-64 with gcc and clang a search takes them where the CPU has AVX2 (NLIST_I_CHOSEN),
   otherwise the portable form of each. Both give the same bits
   (tests/unit/nlist/test_nlist_lanes.c).
   ---------------------------------------------------------------------------------------------- */

#ifdef NLIST_I_AVX2

/* Four reals, and what differs between float and double. */
#if NLIST_I_REAL_KIND == 1
typedef __m128 nlist_i_four;
#define NLIST_I_FOUR(name) _mm_##name##_ps
#else
typedef __m256d nlist_i_four;
#define NLIST_I_FOUR(name) _mm256_##name##_pd
#endif

/* Squares of the lengths of four vectors of 3 numbers and a 0. */
NLIST_I_AVX2 NLIST_I_ALWAYS_INLINE nlist_i_four nlist_i_d2_avx2(const nlist_i_four d[4])
{
    nlist_i_four x, y, z;
#if NLIST_I_REAL_KIND == 1
    __m128 const low = _mm_unpacklo_ps(d[0], d[1]), high = _mm_unpacklo_ps(d[2], d[3]);
    x = _mm_movelh_ps(low, high);
    y = _mm_movehl_ps(high, low);
    z = _mm_movelh_ps(_mm_unpackhi_ps(d[0], d[1]), _mm_unpackhi_ps(d[2], d[3]));
#else
    __m256d const even = _mm256_unpacklo_pd(d[0], d[1]), odd = _mm256_unpackhi_pd(d[0], d[1]),
                  even2 = _mm256_unpacklo_pd(d[2], d[3]), odd2 = _mm256_unpackhi_pd(d[2], d[3]);
    x = _mm256_permute2f128_pd(even, even2, 0x20);
    y = _mm256_permute2f128_pd(odd, odd2, 0x20);
    z = _mm256_permute2f128_pd(even, even2, 0x31);
#endif
    return NLIST_I_FOUR(add)(NLIST_I_FOUR(add)(NLIST_I_FOUR(mul)(x, x), NLIST_I_FOUR(mul)(y, y)),
                             NLIST_I_FOUR(mul)(z, z));
}

/* nlist_i_values, four entries at a time, each by vectors of 4. A stored vector is one number
   too long and reaches into the next entry, which is written later. So the last entries are left to
   the portable form, as are wrapped particles. */
NLIST_I_AVX2 NLIST_I_NOINLINE void nlist_i_values_avx2(const nlist_i_search *search, int32_t place,
                                                       const int32_t *number, int32_t count,
                                                       int64_t at)
{
    nlist_arrays const out = search->out;
    const nlist_i_placed *const own = &search->placed[place];
    nlist_i_four const p = NLIST_I_FOUR(loadu)(own->p);
    nlist_i_four d[4];
    int32_t k, e;
    for (k = 0; k < count - 4 && !own->wrap[3]; k += 4, at += 4) {
        int32_t wrapped = 0;
        for (e = 0; e < 4; e++) {
            nlist_i_candidate const c = search->candidate[number[k + e]];
            const nlist_i_placed *other = &search->placed[c.place];
            const nlist_i_run *run = &search->run[c.run];
            wrapped |= other->wrap[3];
            d[e] = NLIST_I_FOUR(add)(NLIST_I_FOUR(sub)(NLIST_I_FOUR(loadu)(other->p), p),
                                     NLIST_I_FOUR(loadu)(run->t));
            if (out.offset) NLIST_I_FOUR(storeu)(out.offset + 3 * (at + e), d[e]);
            if (out.shift)
                _mm_storeu_si128((__m128i *)(void *)(out.shift + 3 * (at + e)),
                                 _mm_loadu_si128((const __m128i *)(const void *)run->image));
        }
        if (wrapped) nlist_i_values(search, place, number + k, 4, at);
        else if (out.distance)
            NLIST_I_FOUR(storeu)(out.distance + at, NLIST_I_FOUR(sqrt)(nlist_i_d2_avx2(d)));
    }
    _mm256_zeroupper(); /* gcc leaves it out before a call in last place: SSE code is then slow */
    nlist_i_values(search, place, number + k, count - k, at);
}

/* Writes those of four numbers whose bits are set; `to` has room for four. Returns how many. */
NLIST_I_AVX2 NLIST_I_ALWAYS_INLINE int32_t nlist_i_put_avx2(void *to, __m128 numbers, unsigned bits)
{
    static const int32_t front[16][4] = {
        {0, 0, 0, 0}, {0, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 0}, {2, 0, 0, 0}, {0, 2, 0, 0},
        {1, 2, 0, 0}, {0, 1, 2, 0}, {3, 0, 0, 0}, {0, 3, 0, 0}, {1, 3, 0, 0}, {0, 1, 3, 0},
        {2, 3, 0, 0}, {0, 2, 3, 0}, {1, 2, 3, 0}, {0, 1, 2, 3}};
    __m128i const order = _mm_loadu_si128((const __m128i *)(const void *)front[bits]);
    _mm_storeu_ps((float *)to, _mm_permutevar_ps(numbers, order));
    return (int32_t)__builtin_popcount(bits);
}

/* Of the candidates number[0 .. 7] whose bits are set, those that are listed, as bits. */
NLIST_I_NOINLINE unsigned nlist_i_ask(const nlist_i_search *search, int32_t place,
                                      const int32_t *number, unsigned bits)
{
    unsigned listed = 0;
    int lane;
    for (lane = 0; bits >> lane; lane++)
        if (bits >> lane & 1 && nlist_i_listed(search, place, number[lane])) listed |= 1u << lane;
    return listed;
}

/* nlist_i_test_near, eight near candidates at a time. Those that pass and are not certain are
   asked about. */
NLIST_I_AVX2 NLIST_I_NOINLINE int32_t nlist_i_test_near_avx2(const nlist_i_search *search,
                                                             int32_t place, const float p[3],
                                                             int32_t *number, int32_t at)
{
    __m256 const px = _mm256_set1_ps(p[0]), py = _mm256_set1_ps(p[1]), pz = _mm256_set1_ps(p[2]),
                 one = _mm256_set1_ps(1), inner = _mm256_set1_ps(search->inner);
    __m256i const i = _mm256_set1_epi32(search->id[place]),
                  halves = _mm256_set1_epi32(-nlist_i_halves(search));
    int32_t k;
    for (k = 0; k < search->count; k += NLIST_I_LANES) {
        const float *const from = (const float *)(const void *)(search->number + k);
        __m256 const dx = _mm256_sub_ps(_mm256_loadu_ps(search->x + k), px),
                     dy = _mm256_sub_ps(_mm256_loadu_ps(search->y + k), py),
                     dz = _mm256_sub_ps(_mm256_loadu_ps(search->z + k), pz),
                     d2 = _mm256_add_ps(_mm256_add_ps(_mm256_mul_ps(dx, dx),
                                                      _mm256_mul_ps(dy, dy)),
                                        _mm256_mul_ps(dz, dz));
        __m256i const id = _mm256_loadu_si256((const __m256i *)(const void *)(search->near_id + k)),
                      below = _mm256_and_si256(halves, _mm256_cmpgt_epi32(i, id)),
                      own = _mm256_cmpeq_epi32(i, id);
        __m256 const within = _mm256_andnot_ps(_mm256_castsi256_ps(below),
                                               _mm256_cmp_ps(d2, one, _CMP_LE_OQ)),
                     sure = _mm256_andnot_ps(_mm256_castsi256_ps(own),
                                             _mm256_and_ps(within,
                                                           _mm256_cmp_ps(d2, inner, _CMP_LE_OQ)));
        int32_t const left = search->count - k;
        unsigned const there = left < NLIST_I_LANES ? (1u << left) - 1 : 0xFF,
                       asked = (unsigned)_mm256_movemask_ps(_mm256_andnot_ps(sure, within)) & there;
        unsigned bits = (unsigned)_mm256_movemask_ps(sure) & there;
        if (asked) bits |= nlist_i_ask(search, place, search->number + k, asked);
        at += nlist_i_put_avx2(number + at, _mm_loadu_ps(from), bits & 15);
        at += nlist_i_put_avx2(number + at, _mm_loadu_ps(from + 4), bits >> 4);
    }
    return at;
}

/* nlist_i_gather_run, four places at a time. */
NLIST_I_AVX2 NLIST_I_NOINLINE void nlist_i_gather_run_avx2(nlist_i_search *search,
                                                           const double move[3], int32_t begin,
                                                           int32_t count, int32_t number)
{
    __m256d const scale = _mm256_set1_pd(search->scale), mx = _mm256_set1_pd(move[0]),
                  my = _mm256_set1_pd(move[1]), mz = _mm256_set1_pd(move[2]);
    __m128 const hx = _mm_set1_ps(search->half[0]), hy = _mm_set1_ps(search->half[1]),
                 hz = _mm_set1_ps(search->half[2]), sign = _mm_set1_ps(-0.0f),
                 zero = _mm_setzero_ps();
    __m128i const ascending = _mm_setr_epi32(0, 1, 2, 3);
    int32_t k, at = search->count;
    for (k = 0; k < count; k += 4) {
        __m256d const qx = _mm256_loadu_pd(search->q[0] + begin + k),
                      qy = _mm256_loadu_pd(search->q[1] + begin + k),
                      qz = _mm256_loadu_pd(search->q[2] + begin + k);
        __m128 const x = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_add_pd(qx, mx), scale)),
                     y = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_add_pd(qy, my), scale)),
                     z = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_add_pd(qz, mz), scale)),
                     dx = _mm_max_ps(_mm_sub_ps(_mm_andnot_ps(sign, x), hx), zero),
                     dy = _mm_max_ps(_mm_sub_ps(_mm_andnot_ps(sign, y), hy), zero),
                     dz = _mm_max_ps(_mm_sub_ps(_mm_andnot_ps(sign, z), hz), zero),
                     d2 = _mm_add_ps(_mm_add_ps(_mm_mul_ps(dx, dx), _mm_mul_ps(dy, dy)),
                                     _mm_mul_ps(dz, dz)),
                     id = _mm_loadu_ps((const float *)(const void *)(search->id + begin + k)),
                     numbers = _mm_castsi128_ps(_mm_add_epi32(_mm_set1_epi32(number + k),
                                                              ascending));
        unsigned const there = count - k < 4 ? (1u << (count - k)) - 1 : 15,
                       bits = (unsigned)_mm_movemask_ps(_mm_cmple_ps(d2, _mm_set1_ps(1))) & there;
        (void)nlist_i_put_avx2(search->x + at, x, bits);
        (void)nlist_i_put_avx2(search->y + at, y, bits);
        (void)nlist_i_put_avx2(search->z + at, z, bits);
        (void)nlist_i_put_avx2(search->number + at, numbers, bits);
        at += nlist_i_put_avx2(search->near_id + at, id, bits);
    }
    search->count = at;
}

#endif /* NLIST_I_AVX2 */

#ifndef NLIST_PLAIN
/* ----------------------------------------------------------------------------------------------
   >>parallel-boxes: the cells of a box (>>boxes-serial) in pieces of about as many particles

       measure   the most candidates around a cell of a piece: then memory is taken
       find      each piece has a part of hits, and stops at the row that does not fit; the parts
                 get room for what is left, and the pieces go on from there
       write     where entries go is known then

   So tasks take no memory, and no row is searched twice.
   ---------------------------------------------------------------------------------------------- */

enum { NLIST_I_FIRST_HITS = 16 }; /* per particle: room of the first round */

typedef struct nlist_i_span {
    int32_t first, cell, last;  /* cells: begin of the piece, where it goes on, end */
    int32_t begin, next, end;   /* places */
    int64_t at, room, stored;   /* its part of hits: begin, size, hits in it */
    int64_t before;             /* hits of the pieces before it */
    int64_t candidates;         /* the most around a cell */
    int32_t rows, rows_cut;     /* found */
    nlist_result result;
} nlist_i_span;

typedef struct nlist_i_spans {
    const nlist_i_search *search;
    int64_t runs;               /* work space of each piece: runs, candidates */
    int32_t room;
    int32_t pieces;
    nlist_i_span span[NLIST_I_MOST_PIECES];
} nlist_i_spans;

/* Into how many pieces the search of a box is cut. */
static int32_t nlist_i_box_pieces(const nlist_i_search *search)
{
    const nlist_parallel *parallel = &search->finder->list->desc.parallel;
    return search->serial ? 1 : nlist_i_pieces(parallel, search->frame.n, NLIST_I_PIECE);
}

/* The first cell that begins at a place or after it. */
static int32_t nlist_i_cell_from(const nlist_i_search *search, int32_t place)
{
    int32_t low = 0, high = nlist_i_cell_count(&search->frame);
    while (low < high) {
        int32_t const middle = low + (high - low) / 2;
        if (search->start[middle] < place) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Cuts the cells of a box into pieces. */
static void nlist_i_begin_spans(nlist_i_spans *spans, const nlist_i_search *search)
{
    int32_t const n = search->frame.n;
    int32_t k;
    memset(spans, 0, sizeof *spans);
    spans->search = search;
    spans->runs = nlist_i_most_runs(&search->frame);
    spans->pieces = nlist_i_box_pieces(search);
    for (k = 0; k < spans->pieces; k++) {
        nlist_i_span *span = &spans->span[k];
        span->first = nlist_i_cell_from(search, nlist_i_cut_at(n, spans->pieces, k));
        span->last = nlist_i_cell_from(search, nlist_i_cut_at(n, spans->pieces, k + 1));
        span->begin = span->next = search->start[span->first];
        span->end = search->start[span->last];
        span->cell = span->first;
    }
}

/* The search of a piece, with its own work space. */
static nlist_i_search nlist_i_search_of(const nlist_i_spans *spans, int32_t k)
{
    const nlist_block *block = spans->search->finder->list->block;
    nlist_i_search own = *spans->search;
    own.run = (nlist_i_run *)block[NLIST_I_RUNS].memory + spans->runs * k;
    if (spans->room > 0)
        nlist_i_set_candidates(&own, (char *)block[NLIST_I_NEAR].memory +
                                     (size_t)spans->room * nlist_i_candidate_bytes() * (size_t)k,
                               spans->room);
    own.hits = (int32_t *)block[NLIST_I_HITS].memory;
    own.rows = own.rows_cut = 0;
    return own;
}

/* The most candidates around a cell of a piece. */
static void nlist_i_measure_span(void *context, int32_t k)
{
    nlist_i_spans *spans = (nlist_i_spans *)context;
    nlist_i_span *span = &spans->span[k];
    nlist_i_search own = nlist_i_search_of(spans, k);
    int32_t cell;
    for (cell = span->first; cell < span->last; cell++) {
        int64_t count;
        if (own.start[cell] == own.start[cell + 1]) continue;
        count = nlist_i_list_runs(&own, cell, own.start[cell]);
        if (count < 0) span->result = NLIST_TOO_MANY;
        if (count > span->candidates) span->candidates = count;
    }
}

/* Work space of the pieces. What the search itself has there is not valid then. */
static nlist_result nlist_i_take_spans(nlist_i_search *search, nlist_i_spans *spans)
{
    nlist *list = search->finder->list;
    int64_t most = 0;
    nlist_result result;
    int32_t k;
    result = nlist_i_grow(list, NLIST_I_RUNS, spans->runs * spans->pieces, sizeof(nlist_i_run), 0);
    search->run = (nlist_i_run *)list->block[NLIST_I_RUNS].memory;
    if (result == NLIST_OK)
        result = nlist_i_in_pieces(&list->desc.parallel, spans->pieces, nlist_i_measure_span,
                                   spans);
    for (k = 0; k < spans->pieces && result == NLIST_OK; k++) {
        result = spans->span[k].result;
        if (spans->span[k].candidates > most) most = spans->span[k].candidates;
    }
    if (result != NLIST_OK) return result;
    search->room = 0;
    spans->room = (int32_t)(most + 2 * NLIST_I_LANES - most % NLIST_I_LANES);
    return nlist_i_grow(list, NLIST_I_NEAR, (int64_t)spans->room * spans->pieces,
                        nlist_i_candidate_bytes(), 0);
}

/* ---- find ---- */

/* Finds rows of a piece until one has no room. */
static void nlist_i_find_span(void *context, int32_t k)
{
    nlist_i_spans *spans = (nlist_i_spans *)context;
    nlist_i_span *span = &spans->span[k];
    nlist_i_search own = nlist_i_search_of(spans, k);
    own.ordered = 1; /* found first, written later */
    own.stored = span->at + span->stored;
    own.hit_room = span->at + span->room;
    own.next = span->next;
    span->result = NLIST_OK;
    while (span->cell < span->last) {
        span->result = nlist_i_search_cell(&own, span->cell);
        if (span->result != NLIST_OK) break;
        span->cell++;
    }
    span->next = own.next;
    span->stored = own.stored - span->at;
    span->rows += own.rows;
    span->rows_cut += own.rows_cut;
}

/* NLIST_BUFFER_TOO_SMALL: pieces had no room. */
static nlist_result nlist_i_spans_result(const nlist_i_spans *spans)
{
    nlist_result result = NLIST_OK;
    int32_t k;
    for (k = 0; k < spans->pieces; k++) {
        nlist_result const own = spans->span[k].result;
        if (own != NLIST_OK && own != NLIST_BUFFER_TOO_SMALL) return own;
        if (spans->span[k].next < spans->span[k].end) result = NLIST_BUFFER_TOO_SMALL;
    }
    return result;
}

/* Moves the parts of the pieces together, after the hits of other systems. Returns where they
   end. */
static int64_t nlist_i_join_hits(nlist_i_spans *spans)
{
    int32_t *hits = (int32_t *)spans->search->finder->list->block[NLIST_I_HITS].memory;
    int64_t to = spans->search->stored;
    int32_t k;
    for (k = 0; k < spans->pieces; k++) {
        nlist_i_span *span = &spans->span[k];
        if (span->at != to && span->stored > 0)
            memmove(hits + to, hits + span->at, (size_t)span->stored * sizeof *hits);
        span->at = to;
        to += span->stored;
    }
    return to;
}

/* Room of a part: what it has and, where rows are left, what those found let expect and an eighth
   more, up to four times. */
static int64_t nlist_i_span_room(const nlist_i_spans *spans, const nlist_i_span *span)
{
    int64_t const left = span->end - span->next, had = span->next - span->begin;
    int64_t more = NLIST_I_FIRST_HITS * left;
    if (left == 0) return span->stored;
    if (had > 0) {
        double const expected = (double)span->stored * (double)left / (double)had * 1.125;
        double const most = 4.0 * (double)span->stored;
        more = (int64_t)(expected < most ? expected : most);
    }
    return span->stored + more + spans->room;
}

/* Gives room to the parts. What memory is left is shared equally by those that need room. */
static nlist_result nlist_i_spread_hits(nlist_i_spans *spans)
{
    nlist *list = spans->search->finder->list;
    int64_t const used = nlist_i_join_hits(spans);
    int64_t end = spans->search->stored, share;
    int32_t *hits;
    int32_t k, open = 0;
    nlist_result result;
    for (k = 0; k < spans->pieces; k++) {
        nlist_i_span *span = &spans->span[k];
        span->room = nlist_i_span_room(spans, span);
        end += span->room;
        open += span->next < span->end;
    }
    result = nlist_i_grow(list, NLIST_I_HITS, end, sizeof *hits, (size_t)used * sizeof *hits);
    if (result != NLIST_OK) return result;
    hits = (int32_t *)list->block[NLIST_I_HITS].memory;
    share = ((int64_t)(list->block[NLIST_I_HITS].bytes / sizeof *hits) - end) / (open ? open : 1);
    end += share * open;
    for (k = spans->pieces - 1; k >= 0; k--) {
        nlist_i_span *span = &spans->span[k];
        if (span->next < span->end) span->room += share;
        end -= span->room;
        if (span->stored > 0 && span->at != end)
            memmove(hits + end, hits + span->at, (size_t)span->stored * sizeof *hits);
        span->at = end;
    }
    return NLIST_OK;
}

/* ---- write ---- */

/* Writes the rows of a piece, which are found. */
static void nlist_i_write_span(void *context, int32_t k)
{
    nlist_i_spans *spans = (nlist_i_spans *)context;
    const nlist_i_span *span = &spans->span[k];
    nlist_i_search own = nlist_i_search_of(spans, k);
    own.used += span->before;
    own.stored = span->at;
    (void)nlist_i_each_cell(&own, span->first, span->last, nlist_i_write_cell);
}

/* Writes what was found, after the entries of other systems. */
static nlist_result nlist_i_append_spans(nlist_i_search *search, nlist_i_spans *spans,
                                         int64_t count)
{
    nlist *list = search->finder->list;
    nlist_result result = NLIST_OK;
    if (search->owned && search->used + count > search->out.capacity)
        result = nlist_i_grow_arrays(list, NLIST_I_OUT, search->out.wanted, search->used, count,
                                     &search->out);
    if (result == NLIST_OK)
        result = nlist_i_in_pieces(&list->desc.parallel, spans->pieces, nlist_i_write_span, spans);
    return result;
}

/* Keeps where the parts begin, and the last one ends, for nlist_i_write_in_pieces. Hits of other
   systems follow without gaps. */
static nlist_result nlist_i_keep_parts(nlist_i_search *search, nlist_i_spans *spans)
{
    nlist *list = search->finder->list;
    int64_t const had = (int64_t)search->cut * (NLIST_I_MOST_PIECES + 1);
    nlist_result const result = nlist_i_grow(list, NLIST_I_PARTS, had + NLIST_I_MOST_PIECES + 1,
                                             sizeof(int64_t), (size_t)had * sizeof(int64_t));
    int64_t *at;
    int32_t k;
    if (result != NLIST_OK) return result;
    at = (int64_t *)list->block[NLIST_I_PARTS].memory + had;
    if (search->source->systems > 1) (void)nlist_i_join_hits(spans);
    for (k = 0; k < spans->pieces; k++) {
        at[k] = spans->span[k].at;
        at[k + 1] = at[k] + spans->span[k].stored;
    }
    search->stored = at[spans->pieces];
    search->cut++;
    return NLIST_OK;
}

/* ---- one system ---- */

/* nlist_i_find_system in tasks: measure; find, in rounds, until no row is left; write. */
static nlist_result nlist_i_find_in_pieces(nlist_i_search *search)
{
    nlist *list = search->finder->list;
    nlist_i_spans spans;
    nlist_result result;
    int64_t count = 0;
    int32_t k;
    nlist_i_begin_spans(&spans, search);
    result = nlist_i_take_spans(search, &spans);
    if (result == NLIST_OK) result = nlist_i_spans_result(&spans);
    while (result == NLIST_BUFFER_TOO_SMALL) {
        result = nlist_i_spread_hits(&spans);
        if (result == NLIST_OK)
            result = nlist_i_in_pieces(&list->desc.parallel, spans.pieces, nlist_i_find_span,
                                       &spans);
        if (result == NLIST_OK) result = nlist_i_spans_result(&spans);
    }
    if (result != NLIST_OK) return result;
    for (k = 0; k < spans.pieces; k++) {
        spans.span[k].before = count;
        count += spans.span[k].stored;
        search->rows += spans.span[k].rows;
        search->rows_cut += spans.span[k].rows_cut;
    }
    search->hits = (int32_t *)list->block[NLIST_I_HITS].memory;
    result = search->ordered ? nlist_i_keep_parts(search, &spans)
                             : nlist_i_append_spans(search, &spans, count);
    search->used += count;
    return result;
}

/* nlist_i_write_system in tasks, with the parts that nlist_i_find_in_pieces kept. */
static nlist_result nlist_i_write_in_pieces(nlist_i_search *search)
{
    const nlist *list = search->finder->list;
    const int64_t *at = (const int64_t *)list->block[NLIST_I_PARTS].memory +
                        (size_t)search->cut * (NLIST_I_MOST_PIECES + 1);
    nlist_i_spans spans;
    nlist_result result;
    int32_t k;
    nlist_i_begin_spans(&spans, search);
    result = nlist_i_take_spans(search, &spans);
    for (k = 0; k < spans.pieces; k++) spans.span[k].at = at[k];
    if (result == NLIST_OK)
        result = nlist_i_in_pieces(&list->desc.parallel, spans.pieces, nlist_i_write_span, &spans);
    search->stored = at[spans.pieces];
    search->cut++;
    return result;
}
#endif /* NLIST_PLAIN */

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif

#ifdef NLIST_CUDA
#include "../cuda/nlist_boxes.cu"
#endif

#endif /* NLIST_BOXES_IMPLEMENTATION_DONE */

/* Licence: MIT OR Unlicense, as at >>licence in nlist.h. */
