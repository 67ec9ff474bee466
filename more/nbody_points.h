/* more/nbody_points.h - v0.2.0 - fields at points that are not bodies: a part of nbody.h
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   Forces and potentials at any points of the plane, by the tree of the last build.

   >>contents

       manual         use
       declarations   points-api
       one element    points
       serial         points-serial, points-tasks, points-calls
       CUDA           cuda/nbody_points.cu

   >>use

   #define NBODY_WITH_POINTS before the include of nbody.h, in each file that calls these functions
   and in the one with NBODY_IMPLEMENTATION. Options, units, threads and results are those of
   nbody.h, and so is the licence, at its end.

       nbody_build(&sim, &desc, pos, 0, mass, n);
       nbody_fields_at(&sim, points, 0, m, acc, potential, NULL);
*/

#ifndef NBODY_H
#error "more/nbody_points.h is a part of nbody.h: define NBODY_WITH_POINTS and include nbody.h"
#endif
#if 10000 * NBODY_VERSION_MAJOR + 100 * NBODY_VERSION_MINOR + NBODY_VERSION_PATCH != 200
#error "more/nbody_points.h 0.2.0 and nbody.h are of different versions: copy both from one release"
#endif

#ifndef NBODY_POINTS_H
#define NBODY_POINTS_H

/* In a double build every function has another name, as in nbody.h. */
#if NBODY_I_REAL_KIND == 2 && !defined(NEARFIELD_NAMESPACE)
#define nbody_fields_at       nbody_f64_fields_at
#define nbody_cuda_fields_at  nbody_f64_cuda_fields_at
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>points-api
   ---------------------------------------------------------------------------------------------- */

/* acc[2 m] and potential[m] (either may be NULL) at m target points that are not bodies, inside the
   square or not. points: 2 numbers each, `stride` bytes apart (0: tightly packed). acc is tightly
   packed, whatever desc.acc_stride is. After nbody_build, or any call that builds; else
   NBODY_NOT_BUILT. A body exactly at a point exerts no force on it, and counts in its potential
   only if softened. NBODY_NOT_FINITE: bad_id (may be NULL) is the first bad point. The tree stays,
   whatever the result.
   Cost     Give many points at once: those in one cell are summed together. DIRECT: n terms a
            point. FORCE_NODES has two ways, of the same accuracy: results differ within it. Where
            m is at least 256 and n / 16, local expansions are evaluated at the points (L2P), as at
            bodies: m points take about the time of m bodies. Fewer points take the sources of all
            cells that do not touch theirs (M2P), some hundreds of terms per level: 3 to 20 times
            that. In a periodic square a call with FORCE_NODES first takes 256 order^4 products per
            component.
   Tasks    With desc.parallel of the last build the call is cut into tasks.
   Memory   is taken during the call, and given back: threads that call this at once call
            desc.allocator at once.
            The local expansions (nodes) of the last evaluation are used, if they are of these
            masses, and of potentials where those are asked for. Else nodes and a table are made, in
            as much memory as in an evaluation, or NBODY_OUT_OF_MEMORY. More than 4096 points are
            sorted by cell, in 8 bytes a point and 4 a cell. Without that memory points in no order
            may take ten times as long. */
NBODY_API nbody_result nbody_fields_at(const nbody *sim, const nbody_real *points, size_t stride,
                                       int32_t m, nbody_real *acc, nbody_real *potential,
                                       int32_t *bad_id);

#ifdef NBODY_CUDA
/* As nbody_fields_at, with these differences: points that are not finite get NaN. Where points read
   nodes, it takes 16 bytes a point and up to 12 a cell, and memory for nodes if there is none. All
   of it is kept: call it once before a capture. Where it fails, the nbody is empty. */
NBODY_API nbody_result nbody_cuda_fields_at(nbody_cuda *gpu, const nbody_real *d_points,
                                            size_t stride, int32_t m, nbody_real *d_acc,
                                            nbody_real *d_potential, struct CUstream_st *stream);
#endif

/* ----------------------------------------------------------------------------------------------
   >>points: target points that are not bodies, and the cell that contains one. (Sums:
   see >>points-serial.)
   ---------------------------------------------------------------------------------------------- */

/* The smallest cell that contains a point and does not need a second key (>>deep); the root, if
   the point is outside. The bits of its column and row on the deepest level, from the highest on,
   tell the quarter of each level; children are stored in the order of quarters, without the empty
   ones. */
NBODY_FN int32_t nbody_i_cell_containing(const nbody *sim, nbody_real x, nbody_real y)
{
    int const most = NBODY_KEY_LEVELS - 1, repeats = nbody_i_is_periodic(sim);
    int32_t at = 0, column, row;
    if (!sim->cell) return 0;
    column = repeats ? nbody_i_column(sim->frame, most, 0, x)
                     : nbody_i_any_column(sim->frame, most, 0, x);
    row = repeats ? nbody_i_column(sim->frame, most, 1, y)
                  : nbody_i_any_column(sim->frame, most, 1, y);
    if (column < 0 || column >> most || row < 0 || row >> most) return 0;
    while (sim->cell[at].child >= 0 && sim->cell[at].level < most) {
        const nbody_cell *cell = &sim->cell[at];
        int const shift = most - 1 - cell->level,
                  q = (row >> shift & 1) << 1 | (column >> shift & 1),
                  before = cell->quarters & ((1 << q) - 1);
        if (!(cell->quarters >> q & 1)) break;
        at = cell->child + (before & 1) + (before >> 1 & 1) + (before >> 2);
    }
    return at;
}

/* The cell whose local expansion is evaluated at a point (L2P): the one that contains it; -1: it
   has none. by_nodes: do the points of this call read nodes? */
NBODY_FN int32_t nbody_i_l2p_cell(const nbody *sim, int by_nodes, int32_t containing)
{
    return by_nodes && sim->cell[containing].level >= 2 ? containing : -1;
}

/* A coordinate of a point, in the units of the arrays. */
NBODY_FN nbody_real nbody_i_coordinate(const nbody *sim, int axis, double value)
{
    return nbody_i_is_periodic(sim) ? nbody_i_placed(sim->frame, axis, value)
                                    : nbody_i_point_at(value, sim->frame->length);
}

/* Of a point in a cell: what its nodes leave. A leaf's bodies and points have the same walk. */
NBODY_FN nbody_near nbody_i_near_in(const nbody *sim, int32_t cell, nbody_real x, nbody_real y)
{
    nbody_near const walk = {-1, 0, sim, cell, x, y, 0, sim->cell[cell].beside[0]};
    return walk;
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif
#endif /* NBODY_POINTS_H */

#if defined(NBODY_I_IMPLEMENTED) && !defined(NBODY_POINTS_IMPLEMENTATION_DONE)
#define NBODY_POINTS_IMPLEMENTATION_DONE

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>points-serial: the fields at target points that are not bodies

   FORCE_NODES, many points: the local expansion of the cell that contains a point is evaluated
   there (L2P), as for a body. The expansions are those of the last evaluation, or are made for the
   call. In a leaf lists 1 and 3 remain, as for a body. A point may also lie in an empty quarter of
   a cell that is divided: its walk then begins at the cells adjacent to that cell.

   Few points: the sources of far cells act on each point (M2P), as in a tree code. The same holds
   for points that no cell of level 2 contains. It takes 3 to 20 times as long, but needs no
   nodes. Which way is taken depends on the numbers of points and bodies alone.

   The points of a call are sorted by bin: the cell that contains them. All are sorted at once, or,
   without memory for that, in batches of 4096. Up to 16 points of a bin are summed together (as
   bodies are, >>lanes), if their walks are the same. In a periodic square the images that act
   on them are then the same, too. The bits are those of one point after the other. That is how
   NBODY_ONE_THREAD does it, and DIRECT in a periodic square.
   ---------------------------------------------------------------------------------------------- */

#ifdef NBODY_WITH_PERIODIC
/* L2P from the nodes of a point's cell of level 2. */
NBODY_I_SELDOM NBODY_FN void nbody_i_l2p_of_square(const nbody *sim, const nbody_i_law *law,
                                                   const nbody_i_image_nodes *square,
                                                   nbody_i_target *t)
{
    int32_t const column = nbody_i_column(sim->frame, 2, 0, t->x),
                  row = nbody_i_column(sim->frame, 2, 1, t->y);
    nbody_i_stencil const sx = nbody_i_stencil_at(
                              &sim->rule, nbody_i_within(sim->frame, 2, 0, column, t->x)),
                          sy = nbody_i_stencil_at(
                              &sim->rule, nbody_i_within(sim->frame, 2, 1, row, t->y));
    int p;
    for (p = 0; p < NBODY_I_PARTS - !law->potential; p++)
        t->partial[p] =
            nbody_i_interpolate(&sim->rule, &sx, &sy, square->value[p][4 * row + column]);
    nbody_i_carry_target(t);
}
#else
typedef struct nbody_i_image_nodes { int none; } nbody_i_image_nodes;
enum { NBODY_I_IMAGES = 0 };
#define nbody_i_l2p_of_square(sim, law, square, t) ((void)0)
#define nbody_i_sum_images(sim, law, x, y, place) nbody_i_target_at(x, y, place)
#define nbody_i_fill_image_nodes(sim, law, nodes) ((void)(nodes))
#endif

/* The local expansion at a point. square: NULL, or of a periodic square. l2p_cell: as
   nbody_i_l2p_cell returns it. */
NBODY_FN nbody_i_target nbody_i_point_at_nodes(const nbody *sim, const nbody_i_law *law,
                                               const nbody_i_image_nodes *square, int32_t l2p_cell,
                                               nbody_real x, nbody_real y)
{
    nbody_i_target t = nbody_i_target_at(x, y, -1);
    if (l2p_cell >= 0) nbody_i_l2p(sim, l2p_cell, law->potential, &t);
    else if (square) nbody_i_l2p_of_square(sim, law, square, &t);
    return t;
}

NBODY_FN nbody_near nbody_i_near_at(const nbody *sim, int32_t l2p_cell, nbody_real x, nbody_real y)
{
    return l2p_cell >= 0 ? nbody_i_near_in(sim, l2p_cell, x, y) : nbody_near_point(sim, x, y);
}

/* The total force at a target point that is not a body. */
NBODY_FN nbody_i_target nbody_i_point(const nbody *sim, const nbody_i_law *law,
                                      const nbody_i_image_nodes *square, int32_t l2p_cell,
                                      nbody_real x, nbody_real y)
{
    nbody_i_target t;
    if (square && !sim->cell) return nbody_i_sum_images(sim, law, x, y, -1);
    if (!sim->cell) {
        nbody_i_run const run = nbody_i_bodies(sim, 0, sim->n);
        t = nbody_i_target_at(x, y, -1);
        nbody_i_add_run(sim, law, &run, &t);
    } else {
        t = nbody_i_point_at_nodes(sim, law, square, l2p_cell, x, y);
        nbody_i_add_near(sim, law, nbody_i_near_at(sim, l2p_cell, x, y), &t);
    }
    nbody_i_carry_target(&t);
    return t;
}

typedef struct nbody_i_points {
    const nbody *sim;
    const nbody_real *pos;
    size_t stride;
    nbody_i_law law;
    nbody_i_outcome out;
    const nbody_i_image_nodes *square; /* it is periodic: the nodes of level 2; else NULL */
    int by_nodes;                      /* do points read nodes? */
    const int32_t *order;              /* of the points, by bin; NULL: as they come */
    const int32_t *bin;                /* with `order`: of each point */
} nbody_i_points;

/* As many points as this, and a sixteenth of the bodies, read nodes: to make them takes about what
   so many points save. */
#ifndef NBODY_I_MANY_POINTS /* tests choose */
#define NBODY_I_MANY_POINTS 256
#endif

static int nbody_i_reads_nodes(const nbody *sim, int32_t m)
{
    return sim->cell && sim->nodes > 0 && m >= NBODY_I_MANY_POINTS && m >= sim->n / 16;
}

/* The first of points first .. end - 1 that is not finite, or -1. */
static int32_t nbody_i_bad_point(const nbody_i_points *points, int32_t first, int32_t end)
{
    int32_t i;
    for (i = first; i < end; i++) {
        const nbody_real *p = nbody_i_at(points->pos, points->stride, i);
        if (!nbody_i_finite((double)p[0]) || !nbody_i_finite((double)p[1])) return i;
    }
    return -1;
}

/* Points of a batch. On the stack: 64 KB, double 96. */
#ifndef NBODY_I_AT_ONCE /* tests choose */
#define NBODY_I_AT_ONCE 4096
#endif
typedef struct nbody_i_point_batch {
    nbody_real x[NBODY_I_AT_ONCE], y[NBODY_I_AT_ONCE];  /* in the units of the arrays */
    int32_t bin[NBODY_I_AT_ONCE];
    int32_t order[NBODY_I_AT_ONCE];                     /* the points of the batch, by bin */
    int32_t first, count;                               /* of all points in order */
} nbody_i_point_batch;

/* The position of the caller's point i, in the units of the arrays. */
static void nbody_i_read_point(const nbody_i_points *points, int32_t i, nbody_real *x,
                               nbody_real *y)
{
    const nbody_real *p = nbody_i_at(points->pos, points->stride, i);
    *x = nbody_i_coordinate(points->sim, 0, (double)p[0]);
    *y = nbody_i_coordinate(points->sim, 1, (double)p[1]);
}

/* The bin of a point: the cell that contains it. In a periodic square where no cell of level 2
   does, the number of that square of the 16 of level 2, behind all cells: the images that act
   depend on it. */
static int32_t nbody_i_bin_of(const nbody *sim, nbody_real x, nbody_real y)
{
    int32_t const cell = nbody_i_cell_containing(sim, x, y);
    if (!nbody_i_is_periodic(sim) || !sim->cell || sim->cell[cell].level >= 2) return cell;
    return sim->frame->cells + 4 * nbody_i_column(sim->frame, 2, 1, y) +
           nbody_i_column(sim->frame, 2, 0, x);
}

static int32_t nbody_i_bins(const nbody *sim) { return sim->frame->cells + NBODY_I_IMAGES; }

#ifndef NBODY_PLAIN

/* The k-th point in this order. */
static int32_t nbody_i_nth_point(const nbody_i_points *points, int32_t k)
{
    return points->order ? points->order[k] : k;
}

static int32_t nbody_i_l2p_cell_of(const nbody_i_points *points, int32_t bin)
{
    return bin < points->sim->frame->cells ? nbody_i_l2p_cell(points->sim, points->by_nodes, bin)
                                            : -1;
}

/* Sorts a batch by bin: Shell's sort. */
static void nbody_i_sort_point_batch(nbody_i_point_batch *batch)
{
    int32_t gap, k;
    for (k = 0; k < batch->count; k++) batch->order[k] = k;
    for (gap = 1093; gap > 0; gap = (gap - 1) / 3)
        for (k = gap; k < batch->count; k++) {
            int32_t const moved = batch->order[k], bin = batch->bin[moved];
            int32_t to = k;
            for (; to >= gap && batch->bin[batch->order[to - gap]] > bin; to -= gap)
                batch->order[to] = batch->order[to - gap];
            batch->order[to] = moved;
        }
}

static void nbody_i_fill_point_batch(const nbody_i_points *points, int32_t first, int32_t end,
                               nbody_i_point_batch *batch)
{
    const nbody *sim = points->sim;
    int32_t k;
    batch->first = first;
    batch->count = end - first < NBODY_I_AT_ONCE ? end - first : NBODY_I_AT_ONCE;
    for (k = 0; k < batch->count; k++) {
        int32_t const i = nbody_i_nth_point(points, first + k);
        nbody_i_read_point(points, i, &batch->x[k], &batch->y[k]);
        batch->bin[k] =
            points->bin ? points->bin[i] : nbody_i_bin_of(sim, batch->x[k], batch->y[k]);
    }
    nbody_i_sort_point_batch(batch);
}

/* Of up to 16 points of one bin, those with the walk of the first come to the front; the result is
   their number. Walks differ only at cells that are smaller than that of the bin. (In deep trees
   they may differ at any: nbody_i_close has another rule there.) */
static int32_t nbody_i_same_walk(const nbody *sim, const nbody_i_point_batch *batch,
                                 int32_t l2p_cell, int32_t *chosen, int32_t count)
{
    int32_t const bin = batch->bin[chosen[0]];
    int const level = nbody_i_is_deep(sim) ? -1
                      : bin < sim->frame->cells ? sim->cell[bin].level
                                                 : 2;
    nbody_near walk = nbody_i_near_at(sim, l2p_cell, batch->x[chosen[0]], batch->y[chosen[0]]);
    if (l2p_cell >= 0 && sim->cell[l2p_cell].child < 0) return count;
    while (walk.at >= 0 && count > 1) {
        const nbody_cell *cell = &sim->cell[walk.at];
        int const close = nbody_i_close(&walk, cell);
        int32_t k = cell->level > level ? 1 : count;
        while (k < count) {
            int32_t const other = chosen[k];
            nbody_near way = walk;
            way.x = batch->x[other];
            way.y = batch->y[other];
            if (nbody_i_close(&way, cell) == close) {
                k++;
                continue;
            }
            chosen[k] = chosen[--count];
            chosen[count] = other;
        }
        if (close && cell->child >= 0) walk.at = cell->child;
        else nbody_i_step_over(&walk);
    }
    return count;
}

/* `count` points with one walk. */
static void nbody_i_lanes_points(const nbody_i_points *points, const nbody_i_point_batch *batch,
                                 int32_t l2p_cell, const int32_t *chosen, int32_t count)
{
    const nbody *sim = points->sim;
    nbody_near walk = nbody_i_near_at(sim, l2p_cell, batch->x[chosen[0]], batch->y[chosen[0]]);
    nbody_i_lanes lanes;
    int32_t k;
    nbody_i_clear_lanes(&lanes, 1);
    for (k = 0; k < NBODY_I_LANES; k++) {
        lanes.x[k] = batch->x[chosen[k < count ? k : 0]];
        lanes.y[k] = batch->y[chosen[k < count ? k : 0]];
        lanes.place[k] = -1;
    }
    if (!sim->cell) {
        nbody_i_run const all = nbody_i_bodies(sim, 0, sim->n);
        nbody_i_lanes_run(sim, 1, &points->law, &all, &lanes);
    }
    if (l2p_cell >= 0 || points->square)
        for (k = 0; k < count; k++) {
            nbody_i_target const t = nbody_i_point_at_nodes(
                sim, &points->law, points->square, l2p_cell, lanes.x[k], lanes.y[k]);
            nbody_i_set_lane(&lanes, k, &t);
        }
    while (sim->cell && nbody_next_near(&walk)) {
        nbody_i_run run = nbody_i_near_run(sim, &walk);
        if (points->square) nbody_i_shift_run(sim, &walk, &run);
        nbody_i_lanes_run(sim, 1, &points->law, &run, &lanes);
    }
    nbody_i_carry_lanes(&lanes, 1);
    for (k = 0; k < count; k++) {
        nbody_i_target t;
        nbody_i_get_lane(&lanes, k, &t);
        nbody_i_store(sim, &points->out, nbody_i_nth_point(points, batch->first + chosen[k]),
                      t.total, t.compensation);
    }
}

static void nbody_i_fields_of_point_batch(const nbody_i_points *points,
                                          nbody_i_point_batch *batch)
{
    const nbody *sim = points->sim;
    int32_t from, count;
    for (from = 0; from < batch->count; from += count) {
        int32_t *chosen = batch->order + from;
        int32_t const bin = batch->bin[chosen[0]],
                      l2p_cell = sim->cell ? nbody_i_l2p_cell_of(points, bin) : -1;
        for (count = 1; count < NBODY_I_LANES && from + count < batch->count; count++)
            if (batch->bin[chosen[count]] != bin) break;
        if (sim->cell) count = nbody_i_same_walk(sim, batch, l2p_cell, chosen, count);
        if (count > 1) nbody_i_lanes_points(points, batch, l2p_cell, chosen, count);
        else {
            nbody_i_target const t =
                nbody_i_point(sim, &points->law, points->square, l2p_cell, batch->x[chosen[0]],
                              batch->y[chosen[0]]);
            nbody_i_store(sim, &points->out, nbody_i_nth_point(points, batch->first + chosen[0]),
                          t.total, t.compensation);
        }
    }
}

#endif /* NBODY_PLAIN */

/* Are points summed one by one? */
static int nbody_i_points_alone(const nbody *sim)
{
    return nbody_i_is_plain(sim) || (nbody_i_is_periodic(sim) && !sim->cell);
}

/* All points by bin: a counting sort. */
typedef struct nbody_i_order_job {
    const nbody_i_points *points;
    int32_t m, *order, *bin, *begin; /* [m], [m], [bins + 1], one behind the other; order NULL: it
                                         is not needed, or there is no memory */
    size_t bytes;                     /* of all three */
} nbody_i_order_job;

static void nbody_i_bin_task(void *of_job, int32_t piece, int32_t pieces)
{
    nbody_i_order_job *job = (nbody_i_order_job *)of_job;
    const nbody_i_points *points = job->points;
    int32_t i = nbody_i_begin_of(job->m, piece, pieces);
    int32_t const end = nbody_i_begin_of(job->m, piece + 1, pieces);
    for (; i < end; i++) {
        nbody_real x, y;
        nbody_i_read_point(points, i, &x, &y);
        job->bin[i] = nbody_i_bin_of(points->sim, x, y);
    }
}

static void nbody_i_begin_order(nbody_i_order_job *job, const nbody_i_points *points, int32_t m)
{
    const nbody *sim = points->sim;
    uint64_t const count = 2 * (uint64_t)m + (uint64_t)nbody_i_bins(sim) + 1;
    job->points = points;
    job->m = m;
    job->order = NULL;
    job->bytes = (size_t)count * sizeof *job->order;
    if (m <= NBODY_I_AT_ONCE || !sim->cell || nbody_i_points_alone(sim)) return;
    if (job->bytes / sizeof *job->order != count) return;
    job->order = (int32_t *)nbody_i_alloc(&sim->desc.allocator, job->bytes);
    if (!job->order) return;
    job->bin = job->order + m;
    job->begin = job->bin + m;
}

/* Sorts the points when the bin of each is known. */
static void nbody_i_sort_points(const nbody_i_order_job *job)
{
    int32_t const bins = nbody_i_bins(job->points->sim);
    int32_t c, i;
    memset(job->begin, 0, ((size_t)bins + 1) * sizeof *job->begin);
    for (i = 0; i < job->m; i++) job->begin[job->bin[i] + 1]++;
    for (c = 0; c < bins; c++) job->begin[c + 1] += job->begin[c];
    for (i = 0; i < job->m; i++) job->order[job->begin[job->bin[i]]++] = i;
}

/* The points in the order that was found, or as they come. */
static nbody_i_points nbody_i_points_in_order(const nbody_i_points *points,
                                              const nbody_i_order_job *job)
{
    nbody_i_points ordered = *points;
    ordered.order = job->order;
    ordered.bin = job->order ? job->bin : NULL;
    return ordered;
}

static void nbody_i_end_order(const nbody_i_order_job *job)
{
    nbody_i_give_back(&job->points->sim->desc.allocator, job->order, job->bytes);
}

/* One point by itself. */
static void nbody_i_field_of_point(const nbody_i_points *points, int32_t i)
{
    const nbody *sim = points->sim;
    nbody_real x, y;
    int32_t l2p_cell;
    nbody_i_target t;
    nbody_i_read_point(points, i, &x, &y);
    l2p_cell = points->by_nodes ? nbody_i_l2p_cell(sim, 1, nbody_i_cell_containing(sim, x, y)) : -1;
    t = nbody_i_point(sim, &points->law, points->square, l2p_cell, x, y);
    nbody_i_store(sim, &points->out, i, t.total, t.compensation);
}

static void nbody_i_fields_of_points(const nbody_i_points *points, int32_t first, int32_t end)
{
    int32_t i;
    if (nbody_i_points_alone(points->sim)) {
        for (i = first; i < end; i++) nbody_i_field_of_point(points, i);
        return;
    }
#ifndef NBODY_PLAIN
    for (i = first; i < end; i += NBODY_I_AT_ONCE) {
        nbody_i_point_batch batch;
        nbody_i_fill_point_batch(points, i, end, &batch);
        nbody_i_fields_of_point_batch(points, &batch);
    }
#endif
}

/* ----------------------------------------------------------------------------------------------
   >>points-tasks: points for desc.parallel, as in >>pieces
   ---------------------------------------------------------------------------------------------- */

typedef struct nbody_i_points_job {
    const nbody_i_points *points;
    int32_t m;
    int32_t bad[NBODY_MAX_TASKS]; /* [pieces] */
} nbody_i_points_job;

static void nbody_i_bad_task(void *of_job, int32_t piece, int32_t pieces)
{
    nbody_i_points_job *job = (nbody_i_points_job *)of_job;
    job->bad[piece] = nbody_i_bad_point(job->points, nbody_i_begin_of(job->m, piece, pieces),
                                        nbody_i_begin_of(job->m, piece + 1, pieces));
}

static void nbody_i_point_task(void *of_job, int32_t piece, int32_t pieces)
{
    nbody_i_points_job *job = (nbody_i_points_job *)of_job;
    nbody_i_fields_of_points(job->points, nbody_i_begin_of(job->m, piece, pieces),
                             nbody_i_begin_of(job->m, piece + 1, pieces));
}

static nbody_result nbody_i_cut_points(const nbody_i_points *points, int32_t m, int32_t *bad)
{
    nbody_parallel const *parallel = &points->sim->desc.parallel;
    int64_t const direct = (int64_t)points->sim->n * (points->square ? 64 : 1);
    int64_t const terms = (int64_t)m * (points->sim->cell ? 1024 : direct);
    int32_t const checks = nbody_i_pieces(parallel, (int64_t)m * 4);
    nbody_i_points ordered;
    nbody_i_order_job order;
    nbody_i_points_job job;
    int32_t k;
    nbody_result result;
    job.points = points;
    job.m = m;
    result = nbody_i_run_pieces(parallel, checks, nbody_i_bad_task, &job);
    if (result != NBODY_OK) return result;
    for (k = 0; k < checks && *bad < 0; k++) *bad = job.bad[k];
    if (*bad >= 0) return NBODY_NOT_FINITE;
    nbody_i_begin_order(&order, points, m);
    if (order.order) result = nbody_i_run_pieces(parallel, checks, nbody_i_bin_task, &order);
    if (order.order && result == NBODY_OK) nbody_i_sort_points(&order);
    ordered = nbody_i_points_in_order(points, &order);
    job.points = &ordered;
    if (result == NBODY_OK)
        result = nbody_i_run_pieces(parallel, nbody_i_pieces(parallel, terms), nbody_i_point_task,
                                    &job);
    nbody_i_end_order(&order);
    return result;
}

/* ----------------------------------------------------------------------------------------------
   >>points-calls: nbody_fields_at

   The points are checked, ordered by cell and summed, serially or in tasks. Where they read nodes,
   those of the last evaluation serve, or a copy of the nbody gets its own for this call.
   ---------------------------------------------------------------------------------------------- */

static nbody_result nbody_i_all_points(const nbody_i_points *given, int32_t m, int32_t *bad)
{
    nbody_i_order_job order;
    nbody_i_points ordered;
    if (nbody_i_is_cut(given->sim)) return nbody_i_cut_points(given, m, bad);
    *bad = nbody_i_bad_point(given, 0, m);
    if (*bad >= 0) return NBODY_NOT_FINITE;
    nbody_i_begin_order(&order, given, m);
    if (order.order) {
        nbody_i_bin_task(&order, 0, 1);
        nbody_i_sort_points(&order);
    }
    ordered = nbody_i_points_in_order(given, &order);
    nbody_i_fields_of_points(&ordered, 0, m);
    nbody_i_end_order(&order);
    return NBODY_OK;
}

#ifdef NBODY_WITH_PERIODIC
#ifdef NBODY_PLAIN
/* At all nodes of a cell. */
static void nbody_i_image_nodes_of(const nbody *sim, const nbody_i_law *law,
                                   const int32_t sixteen[NBODY_I_IMAGES], int32_t cell,
                                   nbody_real *const to[NBODY_I_PARTS])
{
    int32_t a;
    int p;
    for (a = 0; a < sim->nodes; a++) {
        nbody_i_target const t = nbody_i_image_node(sim, law, sixteen, cell, a);
        for (p = 0; p < NBODY_I_PARTS - !law->potential; p++)
            to[p][a] = t.total[p] + t.compensation[p];
    }
}
#endif

static void nbody_i_fill_image_nodes(const nbody *sim, const nbody_i_law *law,
                                     nbody_i_image_nodes *nodes)
{
    int32_t sixteen[NBODY_I_IMAGES], c;
    int p;
    nbody_i_find_sixteen(sim, sixteen);
    for (c = 0; c < NBODY_I_IMAGES; c++) {
        nbody_real *to[NBODY_I_PARTS];
        for (p = 0; p < NBODY_I_PARTS; p++) to[p] = nodes->value[p][c];
        nbody_i_image_nodes_of(sim, law, sixteen, c, to);
    }
}
#endif

/* In a periodic square the nodes of level 2 come first. */
static nbody_result nbody_i_points_of_square(nbody_i_points *given, int32_t m, int32_t *bad)
{
    nbody_i_image_nodes nodes;
    if (given->sim->cell) nbody_i_fill_image_nodes(given->sim, &given->law, &nodes);
    given->square = &nodes;
    return nbody_i_all_points(given, m, bad);
}

static nbody_result nbody_i_points_of_tree(nbody_i_points *given, int32_t m, int32_t *bad)
{
    return nbody_i_is_periodic(given->sim) ? nbody_i_points_of_square(given, m, bad)
                                           : nbody_i_all_points(given, m, bad);
}

/* The nodes of all cells, after prepare_nodes: in tasks, by lanes, or by the plain text. */
static nbody_result nbody_i_nodes_of_tree(nbody *sim, const nbody_i_law *law)
{
#ifndef NBODY_PLAIN
    if (nbody_i_is_cut(sim)) {
        nbody_i_job job = nbody_i_job_of(sim, 1);
        job.law = law;
        return nbody_i_cut_nodes(&job);
    }
    if (!nbody_i_is_plain(sim)) {
        nbody_i_make_nodes(sim, 1, law);
        return NBODY_OK;
    }
#endif
    nbody_i_plain_nodes(sim, law);
    return NBODY_OK;
}

/* A copy with nodes in memory of its own, and a table. */
static nbody_result nbody_i_copy_with_nodes(nbody *own, const nbody *sim, const nbody_i_law *law)
{
    nbody_block const none = {NULL, 0};
    nbody_result result;
    *own = *sim;
    own->block[NBODY_I_NODES] = own->block[NBODY_I_TABLE] = none;
    own->table_kind = 0;
    memset(&own->kept, 0, sizeof own->kept);
    result = nbody_i_prepare_nodes(own, law->potential, NBODY_I_EXACT);
    return result == NBODY_OK ? nbody_i_nodes_of_tree(own, law) : result;
}

/* The points read nodes: those of the last evaluation, or of a copy. */
static nbody_result nbody_i_points_by_nodes(const nbody_i_points *given, int32_t m, int32_t *bad)
{
    nbody_i_points points = *given;
    int const made = points.sim->fx && (points.sim->fp || !points.law.potential);
    nbody own;
    nbody_result result = NBODY_OK;
    int b;
    if (!made) {
        result = nbody_i_copy_with_nodes(&own, given->sim, &given->law);
        points.sim = &own;
    }
    points.by_nodes = 1;
    if (result == NBODY_OK) result = nbody_i_points_of_tree(&points, m, bad);
    if (made) return result;
    for (b = NBODY_I_NODES; b <= NBODY_I_TABLE; b++)
        nbody_i_give_back(&own.desc.allocator, own.block[b].memory, own.block[b].bytes);
    return result;
}

NBODY_API nbody_result nbody_fields_at(const nbody *sim, const nbody_real *points, size_t stride,
                                       int32_t m, nbody_real *acc, nbody_real *potential,
                                       int32_t *bad_id)
{
    nbody_i_points given;
    int32_t bad = -1;
    nbody_result result;
    given.pos = points;
    given.stride = nbody_i_stride(stride, 2);
    if (bad_id) *bad_id = -1;
    if (!sim || m < 0 || given.stride == 0 || (m > 0 && !points)) return NBODY_BAD_ARGUMENT;
    if (m > NBODY_I_N_MAX) return NBODY_TOO_MANY;
    if (!sim->frame) return NBODY_NOT_BUILT;
    if (potential && !nbody_i_has_potential(&sim->desc)) return NBODY_BAD_ARGUMENT;
    given.sim = sim;
    given.out.acc = acc;
    given.out.potential = potential;
    given.out.acc_stride = 2 * sizeof(nbody_real);
    given.law = nbody_i_law_of(sim, potential != NULL);
    given.square = NULL;
    given.by_nodes = 0;
    given.order = given.bin = NULL;
    if (m == 0) return NBODY_OK;
    result = nbody_i_reads_nodes(sim, m) ? nbody_i_points_by_nodes(&given, m, &bad)
                                         : nbody_i_points_of_tree(&given, m, &bad);
    if (bad_id) *bad_id = bad;
    return result;
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif

#ifdef NBODY_CUDA
#include "../cuda/nbody_points.cu"
#endif

#endif /* NBODY_POINTS_IMPLEMENTATION_DONE */
