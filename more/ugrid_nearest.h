/* more/ugrid_nearest.h - v0.2.0 - a part of ugrid.h: the k particles nearest to a point
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   A grid has no order of distances, but its walks have a radius. So the k nearest are searched for
   in rounds: a round keeps the k nearest of all particles that the walk of some radius visits. If
   the k-th is not further away than that radius, no other particle can be nearer. Else the distance
   of the k-th is a radius that suffices, and the next round is the last one.

   >>contents: the banners in order; search for >>, the name and a colon

       manual          use, rules, changes
       declarations    api
       serial          kept, rounds, many
       faster forms    nearest-faster

   >>use: in every file that calls it, and in the one with UGRID_IMPLEMENTATION

       #define UGRID_WITH_NEAREST
       #include "ugrid.h"

       int32_t ids[8], found;
       float distances2[8];
       ugrid_build(&grid, &desc, pos, 0, n);
       ugrid_nearest(&grid, point, 8, INFINITY, ids, distances2, &found);

   >>rules

   For       particles that are spread evenly over the box, a part of it or a surface, in cells of
             the default size (desc.cell = 0: about 2 in a cell). For tight clusters, for particles
             of which you know nothing, and for elements that are no points, take lbvh_nearest of
             lbvh.h, with LBVH_WITH_NEAREST. SORT and COUNT, LOOSE, with a box, are fastest by far.
   Results   exact, for every grid that can be built, any k, points inside the box and outside. On
             periodic axes each particle counts once, as its nearest image. Limits are those of the
             squares of distances: particles less than 1.1e-19 away can count as at one distance,
             and those more than 1.8e19 away are not found (double: 1.5e-154, 1.3e154).
   Cost      the particles in the cells within the distance of the k-th, those of rounds that were
             too small, and a look at each of these cells. In a crowded cell all are tested. From
             far outside the box, or amid empty cells, each doubling of the radius is a round. In an
             unbounded grid all particles are tested once a round has more cells than buckets.
   Memory    only ugrid_nearest_rows allocates, where it says so. Stack: 12 KB (double: 20 KB);
             ugrid_nearest_rows of particles as the searches of ugrid.h.

   >>changes

   0.2.0  2026-11-28. First version.
*/

#ifndef UGRID_H
#error "more/ugrid_nearest.h is a part of ugrid.h: define UGRID_WITH_NEAREST, include ugrid.h"
#elif 10000 * UGRID_VERSION_MAJOR + 100 * UGRID_VERSION_MINOR + UGRID_VERSION_PATCH != 200
#error "more/ugrid_nearest.h 0.2.0 and ugrid.h are of different versions: copy both together"
#endif

#ifndef UGRID_NEAREST_H
#define UGRID_NEAREST_H

#if UGRID_I_REAL_KIND == 2
#define ugrid_nearest           ugrid_f64_nearest
#define ugrid_nearest_rows      ugrid_f64_nearest_rows
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>api: of one point, and of many. Thread safety and refusals as of the searches of ugrid.h.
   ---------------------------------------------------------------------------------------------- */

/* The k particles nearest to point p (dim numbers), at most `reach` away (any number >= 0, infinity
   too): ids and squared distances (those of ugrid_distance2), nearest first, equal ones by
   ascending id. `*found` <= k: their number. A particle at p itself is found, too.
   ids, distances2: [k]. UGRID_BAD_RADIUS: the reach is negative or NaN. UGRID_NOT_FINITE: p is NaN
   or infinite. grid.filter is not read. */
UGRID_API ugrid_result ugrid_nearest(const ugrid *grid, const ugrid_real *p, int32_t k,
                                     ugrid_real reach, int32_t *ids, ugrid_real *distances2,
                                     int32_t *found);

/* The same for each of m points, `stride` bytes apart (0 = tightly packed): row q of ids and
   distances2 ([m * k]) and found ([m]); unused entries are -1 and infinity. A point that is not
   finite finds nothing. In tasks, where desc.parallel has them. Points of a grid of more than
   131,072 that are in no order are taken by cells, for which 8 bytes a point are allocated during
   the call; without that memory as they come. UGRID_NOT_RUN: all rows are empty.
   points NULL: the particles themselves, each without itself, row i for particle i; m is grid.rows
   (else UGRID_BAD_ARGUMENT). Particles that the build left out find nothing. */
UGRID_API ugrid_result ugrid_nearest_rows(const ugrid *grid, const ugrid_real *points,
                                          size_t stride, int32_t m, int32_t k, ugrid_real reach,
                                          int32_t *ids, ugrid_real *distances2, int32_t *found);

#ifdef __cplusplus
}
#endif

#endif /* UGRID_NEAREST_H */

#if defined(UGRID_I_IMPLEMENTED) && !defined(UGRID_NEAREST_IMPLEMENTATION_DONE)
#define UGRID_NEAREST_IMPLEMENTATION_DONE

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>kept: the k nearest so far. As soon as there are k they are a heap (Williams 1964), in which
   entry e is no nearer than entries 2 e + 1 and 2 e + 2: entry 0 is the furthest, and goes when a
   nearer one comes.
   ---------------------------------------------------------------------------------------------- */

typedef struct ugrid_i_kept_ones {
    int32_t k, count;
    int32_t *ids;               /* [k] */
    ugrid_real *distances2;     /* [k] */
} ugrid_i_kept_ones;

/* 1 if an entry is nearer than another, or as near and of a lower id. */
UGRID_FN int ugrid_i_nearer(ugrid_real distance2, int32_t id, ugrid_real other2, int32_t other)
{
    return distance2 < other2 || (distance2 == other2 && id < other);
}

/* Puts an entry at `at` of a heap of `count`, or further down. */
static void ugrid_i_sink(ugrid_i_kept_ones *kept, int32_t count, int32_t at, int32_t id,
                         ugrid_real distance2)
{
    int32_t *ids = kept->ids;
    ugrid_real *d2 = kept->distances2;
    while (at < count / 2) {
        int32_t below = 2 * at + 1;
        if (below + 1 < count &&
            ugrid_i_nearer(d2[below], ids[below], d2[below + 1], ids[below + 1]))
            below++;
        if (!ugrid_i_nearer(distance2, id, d2[below], ids[below])) break;
        ids[at] = ids[below];
        d2[at] = d2[below];
        at = below;
    }
    ids[at] = id;
    d2[at] = distance2;
}

/* Keeps a particle, if it is one of the k nearest so far. */
static void ugrid_i_keep(ugrid_i_kept_ones *kept, int32_t id, ugrid_real distance2)
{
    int32_t at = kept->k / 2;
    if (kept->count == kept->k) {
        if (ugrid_i_nearer(distance2, id, kept->distances2[0], kept->ids[0]))
            ugrid_i_sink(kept, kept->k, 0, id, distance2);
        return;
    }
    kept->ids[kept->count] = id;
    kept->distances2[kept->count] = distance2;
    if (++kept->count < kept->k) return;
    while (at-- > 0) ugrid_i_sink(kept, kept->k, at, kept->ids[at], kept->distances2[at]);
}

/* Nearest first: the furthest one goes to the end, the others are a heap; and so on. */
static void ugrid_i_sort_kept(ugrid_i_kept_ones *kept)
{
    int32_t at = kept->count / 2, last;
    if (kept->count < kept->k)
        while (at-- > 0) ugrid_i_sink(kept, kept->count, at, kept->ids[at], kept->distances2[at]);
    for (last = kept->count - 1; last > 0; last--) {
        int32_t const id = kept->ids[last];
        ugrid_real const distance2 = kept->distances2[last];
        kept->ids[last] = kept->ids[0];
        kept->distances2[last] = kept->distances2[0];
        ugrid_i_sink(kept, last, 0, id, distance2);
    }
}

/* ----------------------------------------------------------------------------------------------
   >>rounds: walks of growing radius, until no particle outside of them can be one of the k nearest

       round 1    radius: a cell. 5 particles are in the cells of this walk, and k is 3.
                  Their distances: 0.4 0.7 1.2 | 1.3 1.5 cells. The third is beyond the radius:
                  a particle that was not visited could be nearer.
       round 2    radius 1.2 cells. No particle outside of it is nearer than 1.2: the end.
   ---------------------------------------------------------------------------------------------- */

/* One search around a point. */
typedef struct ugrid_i_around {
    const ugrid *grid;
    ugrid_real at[3];           /* the point, in the box */
    int32_t self;               /* the place that does not count, or -1 */
    ugrid_real reach, reach2;   /* at most the largest numbers */
    ugrid_i_kept_ones kept;
} ugrid_i_around;

/* A number not below the square root of x >= 0, above it by at most 1 in 10^5. Half the exponent
   is within 4 % of the root; two steps of Newton's method follow, each of which ends above it.
   (No libm is called.) */
UGRID_FN ugrid_real ugrid_i_root_above(ugrid_real x)
{
    ugrid_real y;
#if UGRID_I_REAL_KIND == 1
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits >> 1) + 0x1FBB4F2Eu;
#else
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits >> 1) + 0x1FF769E5C0000000u;
#endif
    memcpy(&y, &bits, sizeof y);
    y = (ugrid_real)0.5 * (y + x / y);
    y = (ugrid_real)0.5 * (y + x / y);
    return y + ugrid_i_rounding(y);
}

/* A radius as a search takes it: its square is a normal number. */
UGRID_FN ugrid_real ugrid_i_clamp_radius(ugrid_real radius)
{
    ugrid_real const least = UGRID_I_REAL_KIND == 1 ? (ugrid_real)1.1e-19 : (ugrid_real)1.5e-154,
                     most = UGRID_I_REAL_KIND == 1 ? (ugrid_real)1.8e19 : (ugrid_real)1.3e154;
    return radius > most ? most : radius > least ? radius : least;
}

/* The seam (>>nearest-faster). 0: not in this grid, or not so many, or the ball has become too
   large: then *radius is that of the next round. */
static int ugrid_i_around_faster(ugrid_i_around *search, ugrid_real *radius);

/* Does a walk visit every particle of the grid? */
static int ugrid_i_visits_all(const ugrid_near *walk)
{
    const ugrid_axis *axis = walk->grid->axis;
    if (walk->grid->desc.unbounded) return (walk->bits & UGRID_I_WHOLE) != 0;
    return walk->x.width == axis[0].cells && walk->y.width == axis[1].cells &&
           walk->z.width == axis[2].cells;
}

/* Keeps the nearest of all particles that the walk of a radius visits. 1 if it visits all. */
static int ugrid_i_round(ugrid_i_around *search, ugrid_real radius)
{
    const ugrid *grid = search->grid;
    ugrid_near walk = ugrid_i_near_at(grid, search->at, radius);
    int const all = ugrid_i_visits_all(&walk);
    ugrid_real q[3], distance2;
    walk.self = search->self;
    search->kept.count = 0;
    while (ugrid_next(&walk)) {
        ugrid_point(grid, walk.place, q);
        distance2 = ugrid_i_distance2_in_box(grid, search->at, q);
        if (distance2 <= search->reach2) ugrid_i_keep(&search->kept, walk.id, distance2);
    }
    return all;
}

/* The k nearest, in rounds, in order. */
static void ugrid_i_search_around(ugrid_i_around *search)
{
    ugrid_i_kept_ones *kept = &search->kept;
    ugrid_real radius = search->grid->desc.cell;
    int last = search->grid->n == 0;
    if (ugrid_i_around_faster(search, &radius)) return;
    while (!last) {
        radius = ugrid_i_clamp_radius(radius);
        if (radius >= search->reach) last = 1;
        if (ugrid_i_round(search, radius)) last = 1;
        if (kept->count < kept->k) radius = radius + radius;
        else if (kept->distances2[0] <= radius * radius) last = 1;
        else radius = ugrid_i_root_above(kept->distances2[0]);
    }
    ugrid_i_sort_kept(kept);
}

/* Prepares a search around a point of the box; `self`: the place that does not count, or -1. */
static ugrid_i_around ugrid_i_around_of(const ugrid *grid, const ugrid_real at[3], int32_t self,
                                        int32_t k, ugrid_real reach)
{
    ugrid_i_around search;
    memset(&search, 0, sizeof search);
    memcpy(search.at, at, sizeof search.at);
    search.grid = grid;
    search.self = self;
    search.reach = reach < ugrid_i_clamp_radius(reach) ? reach : ugrid_i_clamp_radius(reach);
    search.reach2 = search.reach * search.reach;
    search.kept.k = k;
    return search;
}

UGRID_API ugrid_result ugrid_nearest(const ugrid *grid, const ugrid_real *p, int32_t k,
                                     ugrid_real reach, int32_t *ids, ugrid_real *distances2,
                                     int32_t *found)
{
    ugrid_i_around search;
    ugrid_real at[3];
    if (!grid || !p || k < 0 || (k > 0 && (!ids || !distances2)) || !found)
        return UGRID_BAD_ARGUMENT;
    *found = 0;
    if (!(reach >= 0)) return UGRID_BAD_RADIUS;
    if (!grid->built) return UGRID_NOT_BUILT;
    ugrid_i_wrap_point(grid, p, at);
    if (!ugrid_i_point_finite(at)) return UGRID_NOT_FINITE;
    if (k == 0) return UGRID_OK;
    search = ugrid_i_around_of(grid, at, -1, k, reach);
    search.kept.ids = ids;
    search.kept.distances2 = distances2;
    ugrid_i_search_around(&search);
    *found = search.kept.count;
    return UGRID_OK;
}

/* ----------------------------------------------------------------------------------------------
   >>many: the rows of many points
   ---------------------------------------------------------------------------------------------- */

/* The arguments of ugrid_nearest_rows. */
typedef struct ugrid_i_nearest_job {
    const ugrid *grid;
    const ugrid_real *points;   /* NULL: the particles */
    size_t stride;
    int32_t m, k, *ids, *found;
    ugrid_real reach, *distances2;
    int64_t *order;             /* cell and number of each point, sorted; NULL: as they come */
    int32_t pieces;
} ugrid_i_nearest_job;

/* Row q has so many entries: fills in the others. */
static void ugrid_i_end_nearest(const ugrid_i_nearest_job *job, int32_t q, int32_t count)
{
    size_t const row = (size_t)q * (size_t)job->k;
    int32_t e;
    for (e = count; e < job->k; e++) {
        job->ids[row + (size_t)e] = -1;
        job->distances2[row + (size_t)e] = ugrid_i_not_finite(0);
    }
    job->found[q] = count;
}

/* Row q, of a point of the box. finite 0: it is empty. */
static void ugrid_i_nearest_row(const ugrid_i_nearest_job *job, int32_t q, const ugrid_real at[3],
                                int32_t self, int finite)
{
    size_t const row = (size_t)q * (size_t)job->k;
    ugrid_i_around search = ugrid_i_around_of(job->grid, at, self, job->k, job->reach);
    if (job->k > 0) {
        search.kept.ids = job->ids + row;
        search.kept.distances2 = job->distances2 + row;
    }
    if (finite && job->k > 0) ugrid_i_search_around(&search);
    ugrid_i_end_nearest(job, q, search.kept.count);
}

/* The row of the particle at a place. A ghost has none. */
static void ugrid_i_nearest_of_place(const ugrid_i_nearest_job *job, int32_t place)
{
    int32_t const id = ugrid_id(job->grid, place);
    ugrid_real at[3];
    if (id >= job->grid->rows) return;
    ugrid_point(job->grid, place, at);
    ugrid_i_nearest_row(job, id, at, place, !ugrid_i_is_left_out(job->grid, at));
}

/* The row of point q. */
static void ugrid_i_nearest_of_point(const ugrid_i_nearest_job *job, int32_t q)
{
    ugrid_real at[3];
    ugrid_i_load(job->points, job->stride, job->grid->desc.dim, q, at);
    ugrid_i_wrap_point(job->grid, at, at);
    ugrid_i_nearest_row(job, q, at, -1, ugrid_i_point_finite(at));
}

/* What ugrid_nearest_rows refuses. */
static ugrid_result ugrid_i_check_nearest(const ugrid_i_nearest_job *job)
{
    if (!job->grid || job->m < 0 || job->k < 0) return UGRID_BAD_ARGUMENT;
    if (job->m > 0 && !job->found) return UGRID_BAD_ARGUMENT;
    if (job->m > 0 && job->k > 0 && (!job->ids || !job->distances2)) return UGRID_BAD_ARGUMENT;
    if (!(job->reach >= 0)) return UGRID_BAD_RADIUS;
    if (!job->grid->built) return UGRID_NOT_BUILT;
    if (!job->points && job->m != job->grid->rows) return UGRID_BAD_ARGUMENT;
    return ugrid_i_stride_valid(job->stride, job->grid->desc.dim) ? UGRID_OK : UGRID_BAD_ARGUMENT;
}

/* The seam: in an order, and in tasks. 0: neither is worth it. */
static int ugrid_i_nearest_rows_faster(ugrid_i_nearest_job *job, ugrid_result *result);

UGRID_API ugrid_result ugrid_nearest_rows(const ugrid *grid, const ugrid_real *points,
                                          size_t stride, int32_t m, int32_t k, ugrid_real reach,
                                          int32_t *ids, ugrid_real *distances2, int32_t *found)
{
    ugrid_i_nearest_job job;
    ugrid_result result;
    int32_t q;
    memset(&job, 0, sizeof job);
    job.grid = grid;
    job.points = points;
    job.stride = stride;
    job.m = m;
    job.k = k;
    job.reach = reach;
    job.ids = ids;
    job.distances2 = distances2;
    job.found = found;
    result = ugrid_i_check_nearest(&job);
    if (result != UGRID_OK || m == 0) return result;
    if (stride == 0) job.stride = (size_t)grid->desc.dim * sizeof *points;
    if (ugrid_i_nearest_rows_faster(&job, &result)) return result;
    if (!points) for (q = 0; q < grid->n; q++) ugrid_i_nearest_of_place(&job, q);
    else for (q = 0; q < m; q++) ugrid_i_nearest_of_point(&job, q);
    return UGRID_OK;
}

#ifdef UGRID_PLAIN

static int ugrid_i_around_faster(ugrid_i_around *search, ugrid_real *radius)
{
    (void)search;
    (void)radius;
    return 0;
}

static int ugrid_i_nearest_rows_faster(ugrid_i_nearest_job *job, ugrid_result *result)
{
    (void)job;
    (void)result;
    return 0;
}

#else

/* ----------------------------------------------------------------------------------------------
   >>nearest-faster: k up to 128, in grids with records whose rows of cells are ranges of places

       radius   A ball of this radius would hold somewhat more than k particles, if they were
                everywhere as many as in the cells around the point.
       ranges   Of each row of cells the part that the ball can touch, in pieces of 4 places:

                    . . o o . .     The cells around the point x. A cell that is away by gaps
                    . o o o o .     along x, y and z holds particles of the ball only if
                    . o o x o .     gap_x^2 + gap_y^2 + gap_z^2 <= radius^2.
                    . . o o . .
       test     Each of these places; hits are appended, without a branch.
       rank     The place of a hit in the answer is the number of hits that are nearer.

   Branches would be mispredicted: almost all the time is spent in loops whose length is known. If
   there were fewer than k hits, the radius grows, and all begins anew.
   ---------------------------------------------------------------------------------------------- */

/* MOST: k at most. HITS: that are kept; then those that are not among the k nearest go. BAND: cells
   of the ball along an axis. PIECES: that wait for their test. */
enum { UGRID_I_NEAR_MOST = 128, UGRID_I_NEAR_HITS = 512, UGRID_I_NEAR_BAND = 24,
       UGRID_I_NEAR_PIECES = 256 };
enum { UGRID_I_NEAR_ROOM = (int)UGRID_I_NEAR_HITS + (int)UGRID_I_LANES };

/* The cells of an axis that the ball can touch, and the squared distances to them, or less. */
typedef struct ugrid_i_band {
    int32_t width, own;         /* the point is in cell[own] */
    int32_t cell[UGRID_I_NEAR_BAND];
    ugrid_real gap2[UGRID_I_NEAR_BAND];
} ugrid_i_band;

typedef struct ugrid_i_ball {
    const ugrid_i_around *search;
    ugrid_real reach2;          /* hits are at most so far away */
    int form;                   /* of the loops: UGRID_I_FORM() */
    int images;                 /* some axis is periodic */
    int32_t pieces;             /* places that wait for the test: */
    int32_t begin[UGRID_I_NEAR_PIECES + 2], end[UGRID_I_NEAR_PIECES + 2]; /* at most 4 each */
    int32_t hits;
    ugrid_real d2[UGRID_I_NEAR_ROOM] UGRID_I_ON_LINE;
    int32_t id[UGRID_I_NEAR_ROOM] UGRID_I_ON_LINE;
} ugrid_i_ball;

/* A number not far below or above the square root of x >= 0. */
UGRID_FN ugrid_real ugrid_i_near_root(ugrid_real x)
{
#if defined(UGRID_I_FORMS) && UGRID_I_REAL_KIND == 1
    return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
#elif defined(UGRID_I_FORMS)
    return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_set_sd(x), _mm_set_sd(x)));
#else
    return ugrid_i_root_above(x);
#endif
}

/* The cube root of x > 0, within 4 %: a third of the exponent. */
static ugrid_real ugrid_i_cube_root(ugrid_real x)
{
#if UGRID_I_REAL_KIND == 1
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = bits / 3 + 0x2A5137A0u;
#else
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = bits / 3 + 0x2A9F7893782DA1CEu;
#endif
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* How many particles are in the 3 x 3 cells around a point, of its own z; *cells: in how many
   cells, fewer at a border. */
static int32_t ugrid_i_count_around(const ugrid *grid, const int32_t own[3], int32_t *cells)
{
    const ugrid_axis *axis = grid->axis;
    int32_t const low = own[0] > 0 ? own[0] - 1 : 0,
                  high = own[0] < axis[0].cells - 1 ? own[0] + 1 : own[0],
                  below = own[1] > 0 ? own[1] - 1 : 0,
                  above = own[1] < axis[1].cells - 1 ? own[1] + 1 : own[1];
    int32_t count = 0, y;
    for (y = below; y <= above; y++) {
        const int32_t *row = grid->start + ugrid_i_number(grid, 0, y, own[2]);
        count += row[high + 1] - row[low];
    }
    *cells = (high - low + 1) * (above - below + 1);
    return count;
}

/* The part of a ball that is in the box, about; its centre's distance from the box is *away. */
static ugrid_real ugrid_i_part_inside(const ugrid_i_around *search, ugrid_real radius,
                                      ugrid_real *away)
{
    const ugrid_axis *axis = search->grid->axis;
    ugrid_real part = 1;
    int a;
    *away = 0;
    for (a = 0; a < search->grid->desc.dim; a++) {
        ugrid_real const low = search->at[a] - axis[a].min, high = axis[a].max - search->at[a];
        if (axis[a].periodic) continue;
        if (low < 0) *away -= low;
        if (high < 0) *away -= high;
        if (low < radius) part *= low > 0 ? (radius + low) / (2 * radius) : (ugrid_real)0.5;
        if (high < radius) part *= high > 0 ? (radius + high) / (2 * radius) : (ugrid_real)0.5;
    }
    return part;
}

/* The radius of a ball that would hold somewhat more than k particles: k + 1 + 2 sqrt(k), as its
   number varies by about the root. Volumes are in cubes of a cell's width along x. */
static ugrid_real ugrid_i_guess_radius(const ugrid_i_around *search, const int32_t own[3])
{
    const ugrid *grid = search->grid;
    const ugrid_axis *axis = grid->axis;
    int const flat = grid->desc.dim == 2;
    ugrid_real const k = (ugrid_real)search->kept.k,
                     unit = (axis[0].max - axis[0].min) / (ugrid_real)axis[0].cells;
    ugrid_real cubes = flat ? (ugrid_real)0.3183 : (ugrid_real)0.2387; /* 1 / pi, 3 / (4 pi) */
    ugrid_real radius, part, away;
    int32_t cells, a;
    int32_t const count = ugrid_i_count_around(grid, own, &cells);
    for (a = 1; a < grid->desc.dim; a++)
        cubes *= (axis[a].max - axis[a].min) / (ugrid_real)axis[a].cells / unit;
    cubes *= k + 1 + 2 * ugrid_i_near_root(k);
    cubes *= (ugrid_real)(cells + 1) / (ugrid_real)(count + 2);
    radius = unit * (flat ? ugrid_i_near_root(cubes) : ugrid_i_cube_root(cubes));
    part = ugrid_i_part_inside(search, radius, &away);
    if (part < 1)
        radius = unit * (flat ? ugrid_i_near_root(cubes / part) : ugrid_i_cube_root(cubes / part));
    return radius + away;
}

/* A point along an axis, in cells; the width of these, and more than all roundings of coordinates
   are. */
typedef struct ugrid_i_ruler { ugrid_real t, edge, slack; int32_t own; } ugrid_i_ruler;

UGRID_FN ugrid_i_ruler ugrid_i_ruler_of(const ugrid_axis *axis, ugrid_real at, int32_t own)
{
    ugrid_real const length = axis->max - axis->min;
    ugrid_i_ruler ruler;
    ruler.t = (at - axis->min) * axis->per_cell;
    ruler.edge = length / (ugrid_real)axis->cells;
    ruler.slack = ugrid_i_rounding(length) + axis->margin;
    ruler.own = own;
    return ruler;
}

/* The squared distance of the point from the cells with coordinate c, or less. */
UGRID_FN ugrid_real ugrid_i_gap2(const ugrid_i_ruler *ruler, int32_t c)
{
    ugrid_real gap = c > ruler->own ? (ugrid_real)c - ruler->t : ruler->t - (ugrid_real)(c + 1);
    if (c == ruler->own) return 0;
    gap = gap * ruler->edge;
    gap -= ugrid_i_rounding(gap) + ruler->slack;
    return gap > 0 ? gap * gap : 0;
}

/* The band of axis a. 0: too many cells. */
static int ugrid_i_band_of(const ugrid_i_around *search, int a, ugrid_real radius, int32_t own,
                           ugrid_i_band *band)
{
    const ugrid_axis *axis = &search->grid->axis[a];
    ugrid_real const at = search->at[a], extent = ugrid_i_walk_extent(axis, radius);
    ugrid_i_ruler const ruler = ugrid_i_ruler_of(axis, at, own);
    int32_t low, high, c;
    if (axis->periodic) {
        low = ugrid_i_raw_coordinate(axis, at - extent);
        high = ugrid_i_raw_coordinate(axis, at + extent);
        if (high - low >= axis->cells - 1) low = 0, high = axis->cells - 1;
    } else {
        low = ugrid_i_coordinate(axis, at - extent);
        high = ugrid_i_coordinate(axis, at + extent);
    }
    band->width = high - low + 1;
    band->own = own - low;
    if (band->width > UGRID_I_NEAR_BAND) return 0;
    for (c = low; c <= high; c++) {
        int const all = axis->periodic && band->width == axis->cells;
        band->cell[c - low] = c < 0 ? c + axis->cells : c < axis->cells ? c : c - axis->cells;
        band->gap2[c - low] = all ? 0 : ugrid_i_gap2(&ruler, c);
    }
    return 1;
}

/* Tests the places begin .. end-1, at most 4, and appends the hits. */
UGRID_I_ALWAYS_INLINE void ugrid_i_test_piece(ugrid_i_ball *ball, const ugrid_real at[3],
                                              int32_t self, int images, int32_t begin, int32_t end)
{
    const ugrid *grid = ball->search->grid;
    int32_t hits = ball->hits, l;
    for (l = 0; l < 4; l++) {
        int32_t const place = begin + l < end ? begin + l : begin;
        const ugrid_record *record = &grid->record[place];
        ugrid_real const d2 = images ? ugrid_i_distance2_in_box(grid, at, record->x)
                                     : ugrid_i_square(record->x[0] - at[0], record->x[1] - at[1],
                                                      record->x[2] - at[2]);
        ball->d2[hits] = d2;
        ball->id[hits] = record->link;
        hits += (d2 <= ball->reach2) & (begin + l < end) & (place != self);
    }
    ball->hits = hits;
}

/* Room for more hits: only the k nearest stay, and the reach shrinks. */
static void ugrid_i_thin(ugrid_i_ball *ball);

/* Tests the pieces. */
UGRID_I_NOINLINE void ugrid_i_test_ball_portable(ugrid_i_ball *ball)
{
    ugrid_real const at[3] = {ball->search->at[0], ball->search->at[1], ball->search->at[2]};
    int32_t const self = ball->search->self;
    int32_t p;
    for (p = 0; p < ball->pieces; p++) {
        if (ball->images) ugrid_i_test_piece(ball, at, self, 1, ball->begin[p], ball->end[p]);
        else ugrid_i_test_piece(ball, at, self, 0, ball->begin[p], ball->end[p]);
        if (ball->hits > UGRID_I_NEAR_HITS - 4) ugrid_i_thin(ball);
    }
}

/* Puts each hit where it belongs: as many hits are nearer. (After the hits come LANES entries that
   are nearer than none.) */
UGRID_I_NOINLINE void ugrid_i_rank_portable(const ugrid_i_ball *ball, int32_t *ids,
                                            ugrid_real *distances2)
{
    int32_t i, j, l;
    for (i = 0; i < ball->hits; i++) {
        ugrid_real const d2 = ball->d2[i];
        int32_t const id = ball->id[i];
        int32_t sum[UGRID_I_LANES], rank = 0;
        for (l = 0; l < UGRID_I_LANES; l++) sum[l] = 0;
        for (j = 0; j < ball->hits; j += UGRID_I_LANES) {
            UGRID_I_KEEP_LOOP
            for (l = 0; l < UGRID_I_LANES; l++)
                sum[l] += (ball->d2[j + l] < d2) |
                          ((ball->d2[j + l] <= d2) & (ball->id[j + l] < id));
        }
        for (l = 0; l < UGRID_I_LANES; l++) rank += sum[l];
        ids[rank] = id;
        distances2[rank] = d2;
    }
}

#if defined(UGRID_I_FORMS) && UGRID_I_REAL_KIND == 1

/* ugrid_i_kept of a vector: compilers fuse operations where flags of the file allow it. */
UGRID_I_FOR_AVX2 static inline __m128 ugrid_i_kept_avx2(__m128 x)
{
    __asm__("" : "+x"(x));
    return x;
}

/* ugrid_i_nearest of a vector. */
UGRID_I_FOR_AVX2 static inline __m128 ugrid_i_nearest_avx2(__m128 d, const ugrid_axis *axis)
{
    __m128 const half = _mm_set1_ps(axis->half), minus_half = _mm_set1_ps(-axis->half),
                 length = _mm_set1_ps(axis->length);
    d = _mm_sub_ps(d, _mm_and_ps(_mm_cmp_ps(d, half, _CMP_GT_OQ), length));
    return _mm_add_ps(d, _mm_and_ps(_mm_cmp_ps(d, minus_half, _CMP_LT_OQ), length));
}

/* ugrid_i_test_ball_portable, the 4 places of a piece together. */
UGRID_I_FOR_AVX2 UGRID_I_NOINLINE void ugrid_i_test_ball_avx2(ugrid_i_ball *ball)
{
    static const int32_t front[16][4] = {
        {0, 0, 0, 0}, {0, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 0}, {2, 0, 0, 0}, {0, 2, 0, 0},
        {1, 2, 0, 0}, {0, 1, 2, 0}, {3, 0, 0, 0}, {0, 3, 0, 0}, {1, 3, 0, 0}, {0, 1, 3, 0},
        {2, 3, 0, 0}, {0, 2, 3, 0}, {1, 2, 3, 0}, {0, 1, 2, 3}};
    const ugrid *grid = ball->search->grid;
    const ugrid_real *at = ball->search->at;
    __m128 const px = _mm_set1_ps(at[0]), py = _mm_set1_ps(at[1]), pz = _mm_set1_ps(at[2]);
    int32_t const self = ball->search->self;
    int32_t p, hits = ball->hits;
    for (p = 0; p < ball->pieces; p++) {
        int32_t const begin = ball->begin[p], last = ball->end[p] - begin - 1, own = self - begin;
        const float *from = (const float *)(const void *)&grid->record[begin];
        __m128 x = _mm_loadu_ps(from), y = _mm_loadu_ps(from + (last < 1 ? 4 * last : 4)),
               z = _mm_loadu_ps(from + (last < 2 ? 4 * last : 8)),
               name = _mm_loadu_ps(from + 4 * last), d2;
        unsigned mask = (2u << last) - 1;
        __m128i order;
        _MM_TRANSPOSE4_PS(x, y, z, name);
        x = _mm_sub_ps(x, px);
        y = _mm_sub_ps(y, py);
        z = _mm_sub_ps(z, pz);
        if (ball->images) {
            x = ugrid_i_nearest_avx2(x, &grid->axis[0]);
            y = ugrid_i_nearest_avx2(y, &grid->axis[1]);
            z = ugrid_i_nearest_avx2(z, &grid->axis[2]);
        }
        x = ugrid_i_kept_avx2(_mm_mul_ps(x, x));
        y = ugrid_i_kept_avx2(_mm_mul_ps(y, y));
        z = ugrid_i_kept_avx2(_mm_mul_ps(z, z));
        d2 = _mm_add_ps(_mm_add_ps(x, y), z);
        if (own >= 0 && own < 4) mask &= ~(1u << own);
        mask &= (unsigned)_mm_movemask_ps(
            _mm_cmp_ps(d2, _mm_set1_ps(ball->reach2), _CMP_LE_OQ));
        order = _mm_loadu_si128((const __m128i *)(const void *)front[mask]);
        _mm_storeu_ps(ball->d2 + hits, _mm_permutevar_ps(d2, order));
        _mm_storeu_ps((float *)(void *)(ball->id + hits), _mm_permutevar_ps(name, order));
        hits += __builtin_popcount(mask);
        if (hits <= UGRID_I_NEAR_HITS - 4) continue;
        ball->hits = hits;
        ugrid_i_thin(ball);
        hits = ball->hits;
    }
    ball->hits = hits;
}

/* ugrid_i_rank_portable. */
UGRID_I_FOR_AVX2 UGRID_I_NOINLINE void ugrid_i_rank_avx2(const ugrid_i_ball *ball, int32_t *ids,
                                                         ugrid_real *distances2)
{
    int32_t i, j;
    for (i = 0; i < ball->hits; i++) {
        __m256 const d2 = _mm256_set1_ps(ball->d2[i]);
        __m256i const id = _mm256_set1_epi32(ball->id[i]);
        int rank = 0;
        for (j = 0; j < ball->hits; j += 8) {
            __m256 const other2 = _mm256_loadu_ps(ball->d2 + j);
            __m256i const other =
                _mm256_loadu_si256((const __m256i *)(const void *)(ball->id + j));
            __m256 const lower = _mm256_castsi256_ps(_mm256_cmpgt_epi32(id, other));
            rank += __builtin_popcount((unsigned)_mm256_movemask_ps(_mm256_or_ps(
                _mm256_cmp_ps(other2, d2, _CMP_LT_OQ),
                _mm256_and_ps(_mm256_cmp_ps(other2, d2, _CMP_EQ_OQ), lower))));
        }
        ids[rank] = ball->id[i];
        distances2[rank] = ball->d2[i];
    }
}

/* ugrid_i_test_ball_portable, the 4 places of a piece together: a record is a quarter of a
   vector. */
UGRID_I_FOR_AVX512 UGRID_I_NOINLINE void ugrid_i_test_ball_avx512(ugrid_i_ball *ball)
{
    const ugrid *grid = ball->search->grid;
    int32_t const self = ball->search->self;
    __m512 const at = _mm512_maskz_broadcast_f32x4(0xFFFF,
        _mm_setr_ps(ball->search->at[0], ball->search->at[1], ball->search->at[2], 0));
    __m512 const half = _mm512_maskz_broadcast_f32x4(0xFFFF, _mm_setr_ps(
                     grid->axis[0].half, grid->axis[1].half, grid->axis[2].half, FLT_MAX)),
                 length = _mm512_maskz_broadcast_f32x4(0xFFFF, _mm_setr_ps(
                     grid->axis[0].length, grid->axis[1].length, grid->axis[2].length, 0));
    __m512 const minus_half = _mm512_sub_ps(_mm512_setzero_ps(), half);
    int32_t p, hits = ball->hits;
    for (p = 0; p < ball->pieces; p++) {
        int32_t const begin = ball->begin[p], count = ball->end[p] - begin, own = self - begin;
        unsigned const some = 0xFFFFu >> 4 * (4 - count);
        unsigned const others = own >= 0 && own < 4 ? ~(1u << 4 * own) : ~0u;
        __m512 const record = _mm512_maskz_loadu_ps(
            (__mmask16)some, (const float *)(const void *)&grid->record[begin]);
        __m512 d = _mm512_sub_ps(record, at), d2;
        __m512i names;
        __mmask16 mask;
        if (ball->images) {
            d = _mm512_mask_sub_ps(d, _mm512_cmp_ps_mask(d, half, _CMP_GT_OQ), d, length);
            d = _mm512_mask_add_ps(d, _mm512_cmp_ps_mask(d, minus_half, _CMP_LT_OQ), d, length);
        }
        d = ugrid_i_kept_avx512(_mm512_mul_ps(d, d));
        d2 = ugrid_i_kept_avx512(_mm512_add_ps(d, _mm512_maskz_permute_ps(0xFFFF, d, 0x55)));
        d2 = ugrid_i_kept_avx512(_mm512_add_ps(d2, _mm512_maskz_permute_ps(0xFFFF, d, 0xAA)));
        mask = _mm512_mask_cmp_ps_mask((__mmask16)(some & others & 0x1111u), d2,
                                       _mm512_set1_ps(ball->reach2), _CMP_LE_OQ);
        names = _mm512_castps_si512(_mm512_maskz_permute_ps(0xFFFF, record, 0xFF));
        /* (maskz: gcc 12 warns, in C++, of what forms without it leave undefined) */
        _mm_storeu_ps(ball->d2 + hits, _mm512_maskz_extractf32x4_ps(
                                           0xFF, _mm512_maskz_compress_ps(mask, d2), 0));
        _mm_storeu_si128((__m128i *)(void *)(ball->id + hits),
                         _mm512_maskz_extracti32x4_epi32(
                             0xFF, _mm512_maskz_compress_epi32(mask, names), 0));
        hits += __builtin_popcount(mask);
        if (hits <= UGRID_I_NEAR_HITS - 4) continue;
        ball->hits = hits;
        ugrid_i_thin(ball);
        hits = ball->hits;
    }
    ball->hits = hits;
}

/* ugrid_i_rank_portable. */
UGRID_I_FOR_AVX512 UGRID_I_NOINLINE void ugrid_i_rank_avx512(const ugrid_i_ball *ball,
                                                             int32_t *ids, ugrid_real *distances2)
{
    int32_t i, j;
    for (i = 0; i < ball->hits; i++) {
        __m512 const d2 = _mm512_set1_ps(ball->d2[i]);
        __m512i const id = _mm512_set1_epi32(ball->id[i]);
        int32_t rank = 0;
        for (j = 0; j < ball->hits; j += 16) {
            __m512 const other2 = _mm512_loadu_ps(ball->d2 + j);
            unsigned const lower =
                _mm512_cmplt_epi32_mask(_mm512_loadu_si512(ball->id + j), id);
            rank += __builtin_popcount(
                _mm512_cmp_ps_mask(other2, d2, _CMP_LT_OQ) |
                (_mm512_cmp_ps_mask(other2, d2, _CMP_EQ_OQ) & lower));
        }
        ids[rank] = ball->id[i];
        distances2[rank] = ball->d2[i];
    }
}

#define UGRID_I_NEAR_FORMS
#endif

static void ugrid_i_test_ball(ugrid_i_ball *ball)
{
#ifdef UGRID_I_NEAR_FORMS
    if (ball->form == UGRID_I_AVX512) ugrid_i_test_ball_avx512(ball);
    else if (ball->form == UGRID_I_AVX2) ugrid_i_test_ball_avx2(ball);
    else
#endif
        ugrid_i_test_ball_portable(ball);
    ball->pieces = 0;
}

/* Sorts the hits: the k nearest, or all, into ids and distances2. Returns their number. */
static int32_t ugrid_i_rank(ugrid_i_ball *ball, int32_t *ids, ugrid_real *distances2)
{
    int32_t const k = ball->search->kept.k, count = ball->hits < k ? ball->hits : k;
    int32_t sorted[UGRID_I_NEAR_HITS], l;
    ugrid_real sorted2[UGRID_I_NEAR_HITS];
    for (l = 0; l < UGRID_I_LANES; l++) {
        ball->d2[ball->hits + l] = UGRID_I_REAL_MAX;
        ball->id[ball->hits + l] = INT32_MAX;
    }
#ifdef UGRID_I_NEAR_FORMS
    if (ball->form == UGRID_I_AVX512) ugrid_i_rank_avx512(ball, sorted, sorted2);
    else if (ball->form == UGRID_I_AVX2) ugrid_i_rank_avx2(ball, sorted, sorted2);
    else
#endif
        ugrid_i_rank_portable(ball, sorted, sorted2);
    memcpy(ids, sorted, (size_t)count * sizeof *ids);
    memcpy(distances2, sorted2, (size_t)count * sizeof *distances2);
    return count;
}

static void ugrid_i_thin(ugrid_i_ball *ball)
{
    ball->hits = ugrid_i_rank(ball, ball->id, ball->d2);
    ball->reach2 = ball->d2[ball->hits - 1];
}

/* Cuts a range into pieces, two of which without a branch. */
UGRID_I_ALWAYS_INLINE void ugrid_i_add_range(ugrid_i_ball *ball, int32_t begin, int32_t end)
{
    int32_t at = ball->pieces, k;
    for (k = 0; k < 2 || begin < end; k++, begin += 4) {
        ball->begin[at] = begin;
        ball->end[at] = begin + 4 < end ? begin + 4 : end;
        at += begin < end;
        if (at < UGRID_I_NEAR_PIECES) continue;
        ball->pieces = at;
        ugrid_i_test_ball(ball);
        at = 0;
    }
    ball->pieces = at;
}

/* Of the row of cells that begins with cell `row` those whose squared distance is at most rest2. */
UGRID_I_ALWAYS_INLINE void ugrid_i_add_row(ugrid_i_ball *ball, const ugrid_i_band *x, int32_t row,
                                           ugrid_real rest2)
{
    const ugrid *grid = ball->search->grid;
    const int32_t *start = grid->start + row;
    int32_t low = x->own, high = x->own, c;
    for (c = 0; c < x->own; c++) low -= x->gap2[c] <= rest2;
    for (c = x->own + 1; c < x->width; c++) high += x->gap2[c] <= rest2;
    if (x->cell[low] <= x->cell[high]) {
        int32_t const begin = start[x->cell[low]], end = start[x->cell[high] + 1];
        ugrid_i_add_range(ball, begin, rest2 >= 0 ? end : begin);
    } else if (rest2 >= 0) { /* across the border of a periodic axis */
        ugrid_i_add_range(ball, start[0], start[x->cell[high] + 1]);
        ugrid_i_add_range(ball, start[x->cell[low]], start[grid->axis[0].cells]);
    }
}

/* The particles of a ball: hits. 0: it touches too many cells. */
static int ugrid_i_fill_ball(ugrid_i_ball *ball, const int32_t own[3], ugrid_real radius)
{
    const ugrid *grid = ball->search->grid;
    ugrid_i_band band[3];
    int32_t a, y, z;
    for (a = 0; a < 3; a++)
        if (!ugrid_i_band_of(ball->search, a, radius, own[a], &band[a])) return 0;
    ball->pieces = ball->hits = 0;
    ball->reach2 = radius * radius;
    if (ball->search->reach2 < ball->reach2) ball->reach2 = ball->search->reach2;
    for (z = 0; z < band[2].width; z++)
        for (y = 0; y < band[1].width; y++) {
            int32_t const row = ugrid_i_number(grid, 0, band[1].cell[y], band[2].cell[z]);
            ugrid_real const gap2 = band[1].gap2[y] + band[2].gap2[z];
            ugrid_i_add_row(ball, &band[0], row,
                            ball->reach2 + ugrid_i_rounding(ball->reach2) - gap2);
        }
    ugrid_i_test_ball(ball);
    return 1;
}

/* Is every particle that is not in the point's cell further away than the square root of best2? */
static int ugrid_i_only_own_cell(const ugrid_i_around *search, const int32_t own[3],
                                 ugrid_real best2)
{
    const ugrid_axis *axis = search->grid->axis;
    int a, only = 1;
    for (a = 0; a < search->grid->desc.dim; a++) {
        ugrid_i_ruler const ruler = ugrid_i_ruler_of(&axis[a], search->at[a], own[a]);
        if (own[a] > 0 || axis[a].periodic) only &= best2 < ugrid_i_gap2(&ruler, own[a] - 1);
        if (own[a] < axis[a].cells - 1 || axis[a].periodic)
            only &= best2 < ugrid_i_gap2(&ruler, own[a] + 1);
    }
    return only;
}

/* k = 1: the nearest particle of the own cell is kept. 1: it is the answer. Else *radius is such
   that there is one within it; if the cell is empty, 0. */
static int ugrid_i_nearest_in_cell(ugrid_i_around *search, const int32_t own[3],
                                   ugrid_real *radius)
{
    const ugrid *grid = search->grid;
    int32_t const cell = ugrid_i_number(grid, own[0], own[1], own[2]);
    ugrid_real best2 = UGRID_I_REAL_MAX;
    int32_t place, id = INT32_MAX;
    for (place = grid->start[cell]; place < grid->start[cell + 1]; place++) {
        const ugrid_record *record = &grid->record[place];
        ugrid_real const d2 = ugrid_i_distance2_in_box(grid, search->at, record->x);
        if (place == search->self || !ugrid_i_nearer(d2, record->link, best2, id)) continue;
        best2 = d2;
        id = record->link;
    }
    *radius = 0;
    if (id == INT32_MAX) return 0;
    if (best2 <= search->reach2 && ugrid_i_only_own_cell(search, own, best2)) {
        search->kept.count = 1;
        search->kept.ids[0] = id;
        search->kept.distances2[0] = best2;
        return 1;
    }
    *radius = ugrid_i_root_above(best2);
    return 0;
}

static int ugrid_i_around_faster(ugrid_i_around *search, ugrid_real *radius)
{
    const ugrid *grid = search->grid;
    ugrid_i_ball ball;
    int32_t own[3], a;
    if (!ugrid_has_ranges(grid) || !grid->record || !ugrid_i_has_strips(grid->desc.cell_order) ||
        search->kept.k > UGRID_I_NEAR_MOST)
        return 0;
    ball.search = search;
    ball.form = UGRID_I_FORM();
    ball.images = ugrid_i_is_periodic(grid);
    for (a = 0; a < 3; a++) own[a] = ugrid_i_coordinate(&grid->axis[a], search->at[a]);
    *radius = 0;
    if (search->kept.k == 1 && ugrid_i_nearest_in_cell(search, own, radius)) return 1;
    if (!(*radius > 0)) *radius = ugrid_i_guess_radius(search, own);
    for (;;) {
        *radius = ugrid_i_clamp_radius(*radius);
        if (!ugrid_i_fill_ball(&ball, own, *radius)) return 0;
        if (ball.hits >= search->kept.k || *radius >= search->reach) break;
        *radius += *radius / 2;
    }
    search->kept.count = ugrid_i_rank(&ball, search->kept.ids, search->kept.distances2);
    return 1;
}

/* The row of q will be written soon. */
static void ugrid_i_fetch_row(const ugrid_i_nearest_job *job, int32_t q)
{
    size_t const row = (size_t)q * (size_t)job->k, last = row + (size_t)job->k - 1;
    UGRID_I_PREFETCH(job->found + q);
    if (job->k == 0) return;
    UGRID_I_PREFETCH(job->ids + row);
    UGRID_I_PREFETCH(job->ids + last);
    UGRID_I_PREFETCH(job->distances2 + row);
    UGRID_I_PREFETCH(job->distances2 + last);
}

enum { UGRID_I_ROWS_AHEAD = 4 };

/* The rows of the particles at some places, a ball for each. */
static void ugrid_i_nearest_one_by_one(const ugrid_i_nearest_job *job, int32_t begin, int32_t end)
{
    const ugrid *grid = job->grid;
    int32_t place;
    for (place = begin; place < end; place++) {
        int32_t const ahead = place + UGRID_I_ROWS_AHEAD;
        if (ahead < end && ugrid_id(grid, ahead) < grid->rows)
            ugrid_i_fetch_row(job, ugrid_id(grid, ahead));
        ugrid_i_nearest_of_place(job, place);
    }
}

/* ---- few within the reach ----

   Adjacent particles whose reach holds few share their candidates, as in a search with a radius
   (>>search-faster): all within the reach are hits, and the k nearest of them are kept. */

/* CELLS: of the reach, at most, along an axis. */
enum { UGRID_I_NEAR_CELLS = 3 };

/* The most candidates with which this takes less time than a ball for each particle; measured. */
static int32_t ugrid_i_most_shared(int32_t k)
{
    int32_t const most = 96 + 4 * k;
    return most < UGRID_I_NEAR_HITS ? most : UGRID_I_NEAR_HITS;
}

/* 1 if blocks may have so few candidates. */
static int ugrid_i_shares_candidates(const ugrid_i_nearest_job *job, ugrid_real reach)
{
    const ugrid *grid = job->grid;
    int a;
    if (!ugrid_has_ranges(grid) || !grid->record || !ugrid_i_has_strips(grid->desc.cell_order))
        return 0;
    for (a = 0; a < grid->desc.dim; a++)
        if (!(reach * grid->axis[a].per_cell <= (ugrid_real)UGRID_I_NEAR_CELLS)) return 0;
    return job->k > 1 && job->k <= UGRID_I_NEAR_MOST;
}

/* The row of the particle at the j-th place of a block. */
static void ugrid_i_shared_row(const ugrid_i_nearest_job *job, const ugrid_i_search *search,
                               ugrid_i_candidates *set, int32_t place, int32_t j,
                               ugrid_i_ball *ball)
{
    const ugrid *grid = job->grid;
    const ugrid_record *const own = &grid->record[place];
    size_t const row = (size_t)own->link * (size_t)job->k;
    int32_t h;
    ball->hits = ugrid_i_row(search, set, own->x, set->own + j, set->own + j + 1, set->hits);
    for (h = 0; h < ball->hits; h++) {
        const ugrid_record *const hit = &grid->record[set->hits[h]];
        ball->d2[h] = ugrid_i_distance2_in_box(grid, own->x, hit->x);
        ball->id[h] = hit->link;
    }
    ugrid_i_end_nearest(job, own->link,
                        ugrid_i_rank(ball, job->ids + row, job->distances2 + row));
}

/* The rows of the block that begins at a place, at most up to `end`. Returns its end. */
static int32_t ugrid_i_shared_rows(const ugrid_i_nearest_job *job, const ugrid_i_search *search,
                                   ugrid_i_candidates *set, int32_t place, int32_t end)
{
    const ugrid *grid = search->grid;
    int32_t const cell = ugrid_cell_at(grid, grid->record[place].x),
                  next = grid->start[ugrid_i_block_end(search, cell, grid->cell_count)],
                  last = next < end ? next : end;
    ugrid_i_around around;
    ugrid_i_block_of block;
    ugrid_i_ball ball;
    int32_t j;
    if (!ugrid_i_block_locals(grid, place, last, &block) ||
        !ugrid_i_collect(search, &block, set, ugrid_i_most_shared(job->k))) {
        ugrid_i_nearest_one_by_one(job, place, last);
        return last;
    }
    around.kept.k = job->k;
    ball.search = &around;
    ball.form = search->form;
    for (j = 0; j < block.count; j++) {
        if (j + UGRID_I_ROWS_AHEAD < block.count)
            ugrid_i_fetch_row(job, ugrid_id(grid, place + j + UGRID_I_ROWS_AHEAD));
        ugrid_i_shared_row(job, search, set, place + j, j, &ball);
    }
    return last;
}

/* The rows of the particles at the places begin .. end-1, block by block. */
UGRID_I_NOINLINE void ugrid_i_nearest_of_blocks(const ugrid_i_nearest_job *job, ugrid_real reach,
                                                int32_t begin, int32_t end)
{
    ugrid view = *job->grid;
    ugrid_i_search search = ugrid_i_search_of(&view, reach, UGRID_PLACES, 0, NULL, NULL);
    ugrid_i_candidates set;
    view.desc.walk = ugrid_i_list_walk(&view);
    search.reach = reach;
    search.filtered = 0;
    search.form = UGRID_I_FORM();
    while (begin < end) begin = ugrid_i_shared_rows(job, &search, &set, begin, end);
}

/* The rows of the particles at some places. Those that were left out come last. */
static void ugrid_i_nearest_of_places(const ugrid_i_nearest_job *job, int32_t begin, int32_t end)
{
    ugrid_real const nowhere[3] = {0, 0, 0},
               reach = ugrid_i_around_of(job->grid, nowhere, -1, 0, job->reach).reach;
    int32_t const last = job->grid->entries < end ? job->grid->entries : end;
    if (begin < last && ugrid_i_shares_candidates(job, reach)) {
        ugrid_i_nearest_of_blocks(job, reach, begin, last);
        begin = last;
    }
    ugrid_i_nearest_one_by_one(job, begin, end);
}

/* Sorts some points by cell. 0: most of them are next to the one before, and need no sort. */
static int ugrid_i_order_points(const ugrid_i_nearest_job *job, int32_t begin, int32_t end)
{
    const ugrid *grid = job->grid;
    int64_t const row = grid->axis[0].cells, layer = row * grid->axis[1].cells,
                  ring = ((grid->desc.dim == 3 ? layer : 0) + row + 1) * ((int64_t)1 << 32);
    int32_t cells = grid->cell_count, following = 0, q;
    int top = 32;
    ugrid_real at[3];
    for (q = begin; q < end; q++) {
        ugrid_i_load(job->points, job->stride, grid->desc.dim, q, at);
        job->order[q] = (int64_t)ugrid_cell_at(grid, at) * ((int64_t)1 << 32) + q;
        if (q == begin) continue;
        following += job->order[q] - job->order[q - 1] <= ring &&
                job->order[q - 1] - job->order[q] <= ring;
    }
    if (following > (end - begin) / 2) return 0;
    for (; cells > 0; cells /= 2) top++;
    ugrid_i_flag_sort(job->order + begin, end - begin, top);
    return 1;
}

/* A task: some of the particles, by place, or some of the points. */
static void ugrid_i_nearest_piece(void *context, int32_t piece)
{
    const ugrid_i_nearest_job *job = (const ugrid_i_nearest_job *)context;
    int32_t const count = job->points ? job->m : job->grid->n,
                  begin = ugrid_i_cut(count, job->pieces, piece),
                  end = ugrid_i_cut(count, job->pieces, piece + 1);
    int32_t q;
    int sorted;
    if (!job->points) {
        ugrid_i_nearest_of_places(job, begin, end);
        return;
    }
    sorted = job->order && ugrid_i_order_points(job, begin, end);
    for (q = begin; q < end; q++) {
        int32_t const ahead = q + UGRID_I_ROWS_AHEAD;
        if (sorted && ahead < end)
            ugrid_i_fetch_row(job, (int32_t)(job->order[ahead] & 0x7FFFFFFF));
        ugrid_i_nearest_of_point(job, sorted ? (int32_t)(job->order[q] & 0x7FFFFFFF) : q);
    }
}

/* Points in no order are worth sorting where the grid exceeds a cache. */
#ifndef UGRID_I_UNSORTED
#define UGRID_I_UNSORTED 131072
#endif

static int ugrid_i_nearest_rows_faster(ugrid_i_nearest_job *job, ugrid_result *result)
{
    const ugrid *grid = job->grid;
    size_t const bytes = (size_t)job->m * sizeof *job->order;
    int32_t const count = job->points ? job->m : grid->n;
    ugrid_block order = {NULL, 0};
    int32_t q;
    if (job->points && grid->n > UGRID_I_UNSORTED && job->m >= UGRID_I_FEW &&
        bytes / sizeof *job->order == (size_t)job->m) {
        order.memory = ugrid_i_alloc(&grid->desc.allocator, bytes);
        order.bytes = bytes;
    }
    job->order = (int64_t *)order.memory;
    job->pieces = ugrid_i_pieces(&grid->desc.parallel, count, UGRID_I_PIECE);
    if (job->pieces < 2) ugrid_i_nearest_piece(job, 0);
    else *result = ugrid_i_in_pieces(&grid->desc.parallel, job->pieces, ugrid_i_nearest_piece, job);
    if (*result != UGRID_OK) {
        ugrid_real const nowhere[3] = {0, 0, 0};
        for (q = 0; q < job->m; q++) ugrid_i_nearest_row(job, q, nowhere, -1, 0);
    }
    if (order.memory) ugrid_i_release(&grid->desc.allocator, &order);
    return 1;
}

#endif /* UGRID_PLAIN */

#ifdef __cplusplus
}
#endif

#endif /* UGRID_NEAREST_IMPLEMENTATION_DONE */
