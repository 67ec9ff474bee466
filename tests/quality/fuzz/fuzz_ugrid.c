/* fuzz_ugrid.c - any bytes become a desc, points and calls on ugrid.h; answers are compared with
   brute force.
   SPDX-License-Identifier: MIT OR Unlicense
   See README.md here. */

#include "fuzz.h"
#define UGRID_IMPLEMENTATION
#include "ugrid.h"

enum { OPS = 14, HEAP_MOST = 1 << 22 };

typedef struct state {
    fz *f;
    fz_heap heap[2];
    int which;              /* the heap in use, 2: malloc */
    ugrid grid;
    ugrid_desc given;       /* of the build that made the grid */
    fz_points points;       /* borrowed by the grid */
    fz_box box;
    int built;
} state;

/* ------------------------------------------------------------------------------------------------
   Descs, and what must be refused
   ---------------------------------------------------------------------------------------------- */

static int roughly(fz *f, int k)
{
    int const c = fz_u8(f);
    return c < 245 ? c % k : c == 245 ? -1 : c == 246 ? k : c == 247 ? INT32_MIN : c % k;
}

static ugrid_desc any_desc(state *s)
{
    fz *f = s->f;
    ugrid_desc d;
    int const kind = fz_u8(f), more = fz_u8(f);
    int a;
    memset(&d, 0, sizeof d);
    d.dim = kind & 1 ? 2 : kind & 2 ? 3 : 0;
    if (kind >= 252) d.dim = fz_u8(f) - 4;
    if (more & 1) {
        for (a = 0; a < 3; a++) {
            d.min[a] = more & 2 ? fz_real(f) : 0;
            d.max[a] = d.min[a] + fz_length(f);
            if (more >= 250) d.max[a] = fz_real(f);
        }
    }
    if (more & 1) for (a = 0; a < 3; a++) d.periodic[a] = (kind >> (2 + a) & 1) && (more & 4);
    d.cell = more & 8 ? 0 : fz_length(f);
    if ((more & 0x30) == 0x30) d.unbounded = 1;
    if (d.unbounded) d.buckets = fz_u8(f) < 250 ? fz_u8(f) : (int32_t)fz_u32(f);
    d.method = (ugrid_method)roughly(f, 6);
    if ((more & 0xC0) == 0x40) d.placement = (ugrid_placement)roughly(f, 2);
    if (d.placement == UGRID_TIGHT && fz_u8(f) & 1) d.size = fz_length(f);
    d.walk = (ugrid_walk)roughly(f, 5);
    if ((more & 0xC0) == 0x80) d.cell_order = (ugrid_cell_order)roughly(f, 2);
    if (d.method == UGRID_FIXED) {
        int const c = fz_u8(f);
        d.slots = c < 100 ? 0 : c < 245 ? c % 9 : (int32_t)fz_u32(f);
        d.slot_layout = (ugrid_slot_layout)roughly(f, 2);
    }
    a = fz_u8(f);
    d.split = a < 128 ? 0 : a < 240 ? a % 6 : a - 200;
    d.no_records = a & 1;
    d.inverse = a >> 1 & 1;
    d.deterministic = a >> 2 & 1;
    d.coherent = a >> 3 & 1;
    d.skip_invalid = a >> 4 & 1;
    a = fz_u8(f);
    d.max_cells = a < 100    ? 0
                  : a < 200  ? 20000
                  : a < 240  ? a
                  : a < 250  ? (int64_t)1 << (a - 210)
                  : a == 255 ? -1
                             : INT64_MAX;
    if (fz_u8(f) >= 250) s->which = (s->which + 1) % 3; /* refused while memory is held */
    if (s->which < 2) {
        d.allocator.alloc = fz_alloc;
        d.allocator.free = fz_free;
        d.allocator.user = &s->heap[s->which];
    } else { /* malloc: the desc itself bounds the memory */
        if (d.max_cells <= 0 || d.max_cells > 20000) d.max_cells = d.max_cells < 0 ? -1 : 20000;
        if (d.method == UGRID_FIXED && d.slots > 64) d.slots = 64;
    }
    if (a == 254) d.allocator.free = d.allocator.free ? NULL : fz_free;
    if (d.allocator.free == fz_free && !d.allocator.alloc) d.allocator.user = &s->heap[0];
    return d;
}

static int enum_bad(int value, int last) { return value < 0 || value > last; }

/* By the comments of the desc alone. */
static fz_codes codes_of_desc(const state *s, const ugrid_desc *d)
{
    fz_codes c = {0, 0};
    int const dim = d->dim == 0 ? 3 : d->dim, known = dim == 2 || dim == 3;
    int const strips = d->walk == UGRID_STRIPS || d->walk == UGRID_HYBRID;
    int const sorts =
        d->method == UGRID_AUTO || d->method == UGRID_SORT || d->method == UGRID_COUNT;
    int periodic = 0, given = 0, a, bad_box = 0, wide = 0;
    for (a = 0; a < 3; a++) given |= !(d->min[a] == 0 && d->max[a] == 0);
    for (a = 0; a < dim && known; a++) {
        periodic |= d->periodic[a] != 0;
        bad_box |= !(d->min[a] < d->max[a]) || !fz_finite(d->min[a]) || !fz_finite(d->max[a]);
        wide |= fz_finite(d->min[a]) && fz_finite(d->max[a]) && !fz_finite(d->max[a] - d->min[a]);
    }
    fz_must(&c, !known, UGRID_BAD_DIM);
    fz_must(&c,
            enum_bad((int)d->method, 5) || enum_bad((int)d->placement, 1) ||
                enum_bad((int)d->walk, 4) || enum_bad((int)d->cell_order, 1) ||
                enum_bad((int)d->slot_layout, 1) || d->split < 0 || d->split > 64 ||
                d->buckets < 0 || d->max_cells < 0 || (d->unbounded && periodic),
            UGRID_BAD_OPTION);
    fz_may(&c, d->buckets > 1 << 30, UGRID_BAD_OPTION);
    fz_must(&c, !d->allocator.alloc != !d->allocator.free, UGRID_BAD_ALLOCATOR);
    fz_must(&c, !(d->cell >= 0) || !fz_finite(d->cell) || (d->unbounded && d->cell == 0),
            UGRID_BAD_CELL);
    fz_must(&c, !(d->size >= 0) || !fz_finite(d->size), UGRID_BAD_SIZE);
    fz_must(&c, d->slots < 0, UGRID_BAD_SLOTS);
    fz_must(&c, d->placement == UGRID_TIGHT && d->method == UGRID_LIST_PACKED, UGRID_BAD_PLACEMENT);
    fz_must(&c,
            strips && (!sorts || d->cell_order != UGRID_ROWS || d->placement != UGRID_LOOSE ||
                       d->unbounded),
            UGRID_BAD_WALK);
    fz_must(&c, !d->unbounded && given && bad_box, UGRID_BAD_BOX);
    fz_must(&c, !d->unbounded && given && !bad_box && wide, UGRID_BOX_TOO_WIDE);
    fz_must(&c, !d->unbounded && periodic && !given, UGRID_BAD_BOX);
    fz_must(&c,
            ugrid_bytes(&s->grid) > 0 && (s->grid.desc.allocator.alloc != d->allocator.alloc ||
                                          s->grid.desc.allocator.free != d->allocator.free ||
                                          s->grid.desc.allocator.user != d->allocator.user),
            UGRID_BAD_ALLOCATOR);
    return c;
}

/* What depends on the points, and what a size may run into. */
static void add_codes_of_sizes(fz_codes *c, const state *s, const ugrid_desc *d)
{
    fz_may(c, d->placement == UGRID_TIGHT, UGRID_BAD_SIZE);
    fz_may(c, d->placement == UGRID_TIGHT, UGRID_TOO_MANY_ENTRIES);
    fz_may(c, d->method == UGRID_FIXED, UGRID_BAD_SLOTS);
    fz_may(c, 1, UGRID_TOO_MANY_CELLS);
    if (s->which < 2) fz_may(c, s->heap[s->which].failed, UGRID_OUT_OF_MEMORY);
}

/* ------------------------------------------------------------------------------------------------
   Build, and what the header says about the object afterwards
   ---------------------------------------------------------------------------------------------- */

static void check_empty(state *s)
{
    real p[3] = {0, 0, 0};
    int64_t pairs = -1;
    ugrid_near walk = ugrid_near_within(&s->grid, p, 1);
    FZ_CHECK(s->grid.n == 0 && s->grid.entries == 0);
    FZ_CHECK(!ugrid_next(&walk));
    FZ_CHECK(ugrid_count_pairs(&s->grid, 1, &pairs) == UGRID_NOT_BUILT && pairs == 0);
    FZ_CHECK(ugrid_validate(&s->grid) == UGRID_NOT_BUILT);
    s->built = 0;
}

/* The bytes that >>rules states, for what the serial build takes; blocks grow and are kept, so only
   of a fresh grid. */
static double stated_bytes(const ugrid *g)
{
    double const n = g->n, c = g->cell_count + 1.0, entries = n * g->spans,
                 word = sizeof(ugrid_record);
    int const loose = g->desc.placement == UGRID_LOOSE;
    switch (g->desc.method) {
    case UGRID_SORT: return entries * 20 + 4 * c + (loose ? (word + 4) * n : 0);
    case UGRID_COUNT: return entries * 8 + 4 * c + (loose ? (word + 4) * n : 0);
    case UGRID_FIXED: return 4 * c + 4 * c * g->desc.slots;
    case UGRID_LIST: return 4 * c + 4 * entries;
    default: return 4 * c + word * n;
    }
}

static int64_t most_cells(const ugrid_desc *d)
{
    int64_t const asked = d->max_cells ? d->max_cells : 1 << 27;
    return asked < 2147482624 ? asked : 2147482624;
}

static int finite_at(const state *s, int32_t i)
{
    int a, finite = 1;
    for (a = 0; a < s->points.width; a++) finite &= fz_finite(fz_point(&s->points, i)[a]);
    return finite;
}

static void check_built(state *s, int fresh)
{
    const ugrid *g = &s->grid;
    const ugrid_desc *d = &s->given;
    int64_t const most = most_cells(d);
    ugrid_result r;
    int32_t k, sum = 0, invalid = 0;
    int a;
    FZ_CHECK(g->n == s->points.n && g->bad_id == fz_first_not_finite(&s->points));
    FZ_CHECK(g->bad_id < 0 || d->skip_invalid);
    FZ_CHECK(g->cell_count >= 1 && g->cell_count <= most);
    FZ_CHECK(g->desc.dim == (d->dim ? d->dim : 3));
    FZ_CHECK(d->method == UGRID_AUTO || g->desc.method == d->method);
    FZ_CHECK(g->desc.walk != UGRID_WALK_AUTO && g->desc.method != UGRID_AUTO && g->reason);
    if (fresh) FZ_CHECK((double)ugrid_bytes(g) <= stated_bytes(g));
    if (s->which < 2) s->heap[s->which].fail_at = 0;
    r = ugrid_validate(g);
    FZ_CHECK(r == UGRID_OK ||
             (r == UGRID_OUT_OF_MEMORY && s->which < 2 && s->heap[s->which].failed));
    for (a = 0; a < 3; a++) {
        s->box.periodic[a] = g->axis[a].periodic;
        s->box.min[a] = g->axis[a].min;
        s->box.max[a] = g->axis[a].max;
        if (a < g->desc.dim && !d->unbounded) FZ_CHECK(g->axis[a].min < g->axis[a].max);
    }
    s->box.dim = g->desc.dim;
    if (!d->unbounded && d->min[0] == 0 && d->max[0] == 0 && d->min[1] == 0 && d->max[1] == 0 &&
        d->min[2] == 0 && d->max[2] == 0)
        for (k = 0; k < g->n; k++) for (a = 0; a < g->desc.dim && finite_at(s, k); a++)
                FZ_CHECK(fz_point(&s->points, k)[a] >= g->axis[a].min &&
                         fz_point(&s->points, k)[a] <= g->axis[a].max);
    for (k = 0; k < g->n; k++) invalid += !finite_at(s, k);
    FZ_CHECK(g->invalid == invalid);
    if (g->start && g->desc.placement == UGRID_LOOSE) { /* ids ascend within a cell, each once */
        for (k = 0; k < g->cell_count; k++) {
            int32_t at;
            FZ_CHECK(g->start[k] == sum);
            for (at = g->start[k]; at < g->start[k + 1]; at++, sum++)
                FZ_CHECK(at == g->start[k] || g->order[at] > g->order[at - 1]);
        }
        FZ_CHECK(sum == g->n - invalid && g->start[g->cell_count] == sum);
        for (; sum < g->n; sum++) FZ_CHECK(!finite_at(s, g->order[sum]));
    }
    if (g->head && g->desc.placement == UGRID_LOOSE) { /* they descend */
        for (k = 0; k < g->n; k++) {
            int32_t const next = g->next ? g->next[k] : g->record[k].link;
            FZ_CHECK(next < k);
        }
    }
    for (k = 0; k < g->n; k++) {
        real p[3];
        ugrid_point(g, k, p);
        FZ_CHECK(ugrid_cell_at(g, p) >= 0 && ugrid_cell_at(g, p) < g->cell_count);
    }
    s->built = 1;
}

/* Moves points by whole periods, up to four, out of a box that was given. */
static void move_outside(state *s, const ugrid_desc *d, fz_points *points)
{
    int32_t k;
    for (k = 0; k < points->n * points->width; k++) {
        int const a = k % points->width;
        real *x = (real *)fz_point(points, k / points->width) + a;
        if (d->periodic[a]) *x += (d->max[a] - d->min[a]) * (real)(fz_roll(s->f, 9) - 4);
    }
}

static void op_build(state *s)
{
    ugrid_desc const d = any_desc(s);
    int32_t const n = fz_count(s->f);
    int const same_points =
        s->built && s->points.width == (d.dim == 2 ? 2 : 3) && fz_u8(s->f) % 4 == 0;
    int const fresh = ugrid_bytes(&s->grid) == 0;
    fz_points points;
    fz_codes codes = codes_of_desc(s, &d);
    ugrid_result r;
    int32_t first;
    int a, lie, wide = 0;
    if (same_points) points = s->points;
    else points = fz_points_of(s->f, n, d.dim == 2 ? 2 : 3);
    lie = fz_u8(s->f);
    if (s->which < 2) fz_plan_failure(s->f, &s->heap[s->which]);
    if (fz_u8(s->f) & 1) move_outside(s, &d, &points);
    first = fz_first_not_finite(&points);
    fz_must(&codes, points.stride_bad || (lie >= 254) || (lie == 253 && points.n > 0),
            UGRID_BAD_ARGUMENT);
    fz_must(&codes, first >= 0 && points.n > 0 && !d.skip_invalid, UGRID_NOT_FINITE);
    for (a = 0; a < points.n * points.width; a++)
        wide |= !(fabs((double)fz_point(&points, a / points.width)[a % points.width]) <
                  (double)FZ_MAX / 4);
    fz_may(&codes, wide, UGRID_BOX_TOO_WIDE); /* the bounding box is wider than a number */
    FZ_TRACE("build n %d dim %d method %d placement %d walk %d order %d cell %g split %d unbounded "
             "%d periodic %d%d%d max_cells %lld slots %d size %g",
             points.n, d.dim, (int)d.method, (int)d.placement, (int)d.walk, (int)d.cell_order,
             (double)d.cell, d.split, d.unbounded, d.periodic[0], d.periodic[1], d.periodic[2],
             (long long)d.max_cells, d.slots, (double)d.size);
    r = ugrid_build(&s->grid, &d, lie == 253 ? NULL : points.x, points.stride,
                    lie >= 254 ? -lie : points.n);
    FZ_TRACE("  %s", ugrid_result_text(r));
    add_codes_of_sizes(&codes, s, &d);
    fz_may(&codes, d.method == UGRID_FIXED, UGRID_CELL_FULL);
    FZ_CHECK_CODE(fz_right(&codes, (int)r), ugrid_result_text(r));
    if (!same_points) fz_drop_points(&s->points);
    s->points = points;
    s->given = d;
    if (r == UGRID_NOT_FINITE) FZ_CHECK(s->grid.bad_id == first);
    if (r == UGRID_OK) { check_built(s, fresh); return; }
    if (r == UGRID_TOO_MANY_CELLS) { /* more than asked for, or than an axis or a curve may have */
        int64_t const most = most_cells(&d);
        if (!(s->grid.needed_cells > most)) {
            double worst = 0;
            for (a = 0; a < points.width; a++)
                worst =
                    fmax(worst, ((double)s->grid.desc.max[a] - (double)s->grid.desc.min[a]) /
                                    (double)s->grid.desc.cell * (a == 0 && d.split ? d.split : 1));
            FZ_CHECK(worst >= (FZ_IS_FLOAT ? 16777216.0 : 268435456.0));
        }
    }
    check_empty(s);
    if (r == UGRID_CELL_FULL) { /* what was said to be needed is enough, and one less is not */
        ugrid_desc better = d;
        int32_t const needed = s->grid.needed_slots;
        FZ_CHECK(needed > (d.slots ? d.slots : 32) && needed <= points.n * 4096);
        if (s->which < 2) s->heap[s->which].fail_at = 0, s->heap[s->which].failed = 0;
        better.slots = needed;
        if ((double)s->grid.cell_count * needed * 4 > HEAP_MOST) return;
        r = ugrid_build(&s->grid, &better, points.x, points.stride, points.n);
        FZ_CHECK(r == UGRID_OK ||
                 (r == UGRID_OUT_OF_MEMORY && s->which < 2 && s->heap[s->which].failed));
        s->given = better;
        if (r == UGRID_OK) check_built(s, 0);
        else s->built = 0;
    }
}

static void op_reserve(state *s)
{
    ugrid_desc const d = any_desc(s);
    int32_t const n = fz_u8(s->f) < 250 ? fz_count(s->f) : (int32_t)fz_u32(s->f);
    fz_codes codes = codes_of_desc(s, &d);
    ugrid_result r;
    int given = 0, a;
    for (a = 0; a < 3; a++) given |= !(d.min[a] == 0 && d.max[a] == 0);
    if (s->which == 2 && (n > 4096)) return;
    fz_must(&codes, n < 0, UGRID_BAD_ARGUMENT);
    fz_must(&codes, !d.unbounded && !given, UGRID_BAD_BOX);
    fz_must(&codes, d.cell == 0, UGRID_BAD_CELL);
    fz_may(&codes, n > 2147482624, UGRID_TOO_MANY_ENTRIES);
    if (s->which < 2) fz_plan_failure(s->f, &s->heap[s->which]);
    r = ugrid_reserve(&s->grid, &d, n);
    FZ_TRACE("reserve %d: %s", n, ugrid_result_text(r));
    add_codes_of_sizes(&codes, s, &d);
    FZ_CHECK_CODE(fz_right(&codes, (int)r), ugrid_result_text(r));
    check_empty(s);
    if (r == UGRID_OK && n > 0 && n <= 300 && s->which < 2) { /* builds up to n allocate nothing */
        fz_points points = fz_points_of(s->f, n, d.dim == 2 ? 2 : 3);
        int64_t const calls = s->heap[s->which].calls;
        s->heap[s->which].fail_at = 0;
        r = ugrid_build(&s->grid, &d, points.x, 0, points.stride ? 0 : n);
        FZ_CHECK(s->heap[s->which].calls == calls);
        fz_drop_points(&s->points);
        s->points = points;
        if (points.stride) s->points.n = 0;
        s->given = d;
        if (r == UGRID_OK) check_built(s, 0);
        else {
            FZ_CHECK(r == UGRID_NOT_FINITE || r == UGRID_CELL_FULL || r == UGRID_BAD_SIZE ||
                     r == UGRID_BAD_SLOTS);
            check_empty(s);
        }
    }
}

/* ------------------------------------------------------------------------------------------------
   Searches
   ---------------------------------------------------------------------------------------------- */

/* Cells that a search visits, as a bound on time. */
static double cost(const state *s, real radius)
{
    const ugrid *g = &s->grid;
    double cells = 1;
    int a;
    for (a = 0; a < g->desc.dim; a++) {
        double across =
            2 * ((double)radius + (double)g->tight_half) * (double)g->axis[a].per_cell + 3;
        if (!g->desc.unbounded && across > g->axis[a].cells) across = g->axis[a].cells;
        cells *= across;
    }
    if (!(cells < g->cell_count) && g->desc.unbounded) cells = g->cell_count;
    return cells * ((double)g->n + 1) + (double)g->n * g->n;
}

static const real *where(const state *s, int32_t i) { return fz_point(&s->points, i); }

static real any_radius(state *s)
{
    int const c = fz_u8(s->f);
    /* from one to another along an axis: exactly at the rim */
    if (c >= 120 && c < 160 && s->built && s->grid.n > 0) {
        int32_t const i = fz_u8(s->f) % s->grid.n, j = fz_u8(s->f) % s->grid.n;
        real const d = where(s, i)[c % s->points.width] - where(s, j)[c % s->points.width];
        if (d != 0) return d < 0 ? -d : d;
    }
    if (c < 80 && s->built) return s->grid.desc.cell * (real)((c + 1) / 16.0);
    return fz_length(s->f);
}

static int radius_bad(real r)
{
    volatile real square = r * r;
    return !(r > 0) || !fz_finite(r) || !fz_finite(square) || square < FZ_MIN;
}

/* Is the set `ids` (each at most once) right for point p? */
static void check_row(const state *s, const real *p, real radius, int32_t self, const int32_t *ids,
                      int64_t count, uint8_t *seen)
{
    int64_t k;
    int32_t j;
    memset(seen, 0, (size_t)s->grid.n + 1);
    for (k = 0; k < count; k++) {
        FZ_CHECK(ids[k] >= 0 && ids[k] < s->grid.n && !seen[ids[k]] && ids[k] != self);
        seen[ids[k]] = 1;
        FZ_CHECK(fz_near(&s->box, p, where(s, ids[k]), radius) != FZ_FAR);
    }
    for (j = 0; j < s->grid.n; j++)
        FZ_CHECK(seen[j] || j == self || fz_near(&s->box, p, where(s, j), radius) != FZ_NEAR);
}

static void op_query(state *s)
{
    real const radius = any_radius(s);
    real *p = FZ_NEW(real, 3);
    int32_t found = -1, capacity = fz_u8(s->f), *ids = FZ_NEW(int32_t, capacity);
    uint8_t *seen = (uint8_t *)fz_exactly((size_t)s->grid.n + 1);
    fz_codes codes = {0, 0};
    ugrid_result r;
    int a, finite = 1;
    for (a = 0; a < 3; a++) {
        p[a] = s->built && s->grid.n > 0 && fz_u8(s->f) & 1
                   ? where(s, fz_u8(s->f) % s->grid.n)[a % s->points.width]
                   : fz_real(s->f);
        finite &= a >= s->grid.desc.dim || fz_finite(p[a]);
    }
    if (cost(s, radius) / (s->grid.n + 1) < 1e6 || radius_bad(radius)) {
        ugrid_near walk;
        fz_must(&codes, radius_bad(radius), UGRID_BAD_RADIUS);
        fz_must(&codes, !s->built, UGRID_NOT_BUILT);
        fz_must(&codes, s->built && !finite, UGRID_NOT_FINITE);
        r = ugrid_query(&s->grid, p, radius, ids, capacity, &found);
        FZ_TRACE("query %g %g %g radius %g: %s, %d", (double)p[0], (double)p[1], (double)p[2],
                 (double)radius, ugrid_result_text(r), found);
        fz_may(&codes, found > capacity, UGRID_BUFFER_TOO_SMALL);
        FZ_CHECK_CODE(fz_right(&codes, (int)r), ugrid_result_text(r));
        FZ_CHECK((r == UGRID_BUFFER_TOO_SMALL) == (found > capacity));
        if (r == UGRID_OK) check_row(s, p, radius, -1, ids, found, seen);
        if (r == UGRID_BUFFER_TOO_SMALL) { /* the size is exact */
            int32_t again;
            free(ids);
            ids = FZ_NEW(int32_t, found);
            FZ_CHECK(ugrid_query(&s->grid, p, radius, ids, found, &again) == UGRID_OK &&
                     again == found);
            check_row(s, p, radius, -1, ids, found, seen);
        }
        /* a walk meets each particle at most once, and all that are near */
        memset(seen, 0, (size_t)s->grid.n + 1);
        walk = ugrid_near_within(&s->grid, p, radius);
        while (ugrid_next(&walk)) {
            FZ_CHECK(walk.id >= 0 && walk.id < s->grid.n && !seen[walk.id]);
            FZ_CHECK(ugrid_id(&s->grid, walk.place) == walk.id);
            seen[walk.id] = 1;
        }
        FZ_CHECK(!ugrid_next(&walk));
        for (found = 0; found < s->grid.n && finite && !radius_bad(radius); found++)
            FZ_CHECK(seen[found] || fz_near(&s->box, p, where(s, found), radius) != FZ_NEAR);
        if (ugrid_has_ranges(&s->grid)) {
            int32_t places = 0, walked = 0;
            for (found = 0; found < s->grid.n; found++) walked += seen[found];
            walk = ugrid_near_within(&s->grid, p, radius);
            while (ugrid_next_range(&walk)) {
                FZ_CHECK(walk.begin >= 0 && walk.begin < walk.end && walk.end <= s->grid.n);
                places += walk.end - walk.begin;
            }
            FZ_CHECK(places == walked);
        }
        if (finite && s->built && s->grid.n > 0) { /* one ring of cells */
            memset(seen, 0, (size_t)s->grid.n + 1);
            walk = ugrid_near_point(&s->grid, p);
            while (ugrid_next(&walk)) {
                FZ_CHECK(walk.id >= 0 && walk.id < s->grid.n && !seen[walk.id]);
                seen[walk.id] = 1;
            }
            for (found = 0; found < s->grid.n && !radius_bad(s->grid.desc.cell); found++)
                FZ_CHECK(seen[found] ||
                         fz_near(&s->box, p, where(s, found), s->grid.desc.cell) != FZ_NEAR);
        }
    }
    free(seen);
    free(ids);
    free(p);
}

/* Lists of all: full or half, by ids or by places. */
static void op_neighbors(state *s)
{
    real const radius = any_radius(s);
    int const flags = fz_choice(s->f, 4), half = flags & UGRID_HALF;
    int32_t const n = s->grid.n;
    int64_t *offsets = FZ_NEW(int64_t, n + 1), needed = -1, capacity, pairs = -1, full = 0, k;
    int32_t *ids, *counts = FZ_NEW(int32_t, n), i;
    uint8_t *seen = (uint8_t *)fz_exactly((size_t)n + 1),
            *met = (uint8_t *)fz_exactly((size_t)n * (size_t)n);
    fz_codes codes = {0, 0};
    ugrid_result r;
    if (n > 600 || (cost(s, radius) > 3e6 && !radius_bad(radius))) goto end;
    fz_must(&codes, flags & ~3, UGRID_BAD_OPTION);
    fz_must(&codes, radius_bad(radius), UGRID_BAD_RADIUS);
    fz_must(&codes, !s->built, UGRID_NOT_BUILT);
    r = ugrid_neighbors(&s->grid, radius, flags, offsets, NULL, 0, &needed);
    FZ_TRACE("neighbors radius %g flags %d: %s, %lld", (double)radius, flags, ugrid_result_text(r),
             (long long)needed);
    fz_may(&codes, needed > 0, UGRID_BUFFER_TOO_SMALL);
    FZ_CHECK_CODE(fz_right(&codes, (int)r), ugrid_result_text(r));
    if (codes.must) goto end;
    FZ_CHECK((r == UGRID_BUFFER_TOO_SMALL) == (needed > 0) && offsets[n] == needed);
    FZ_CHECK(ugrid_count_neighbors(&s->grid, radius, flags, counts) == UGRID_OK);
    for (i = 0; i < n; i++) FZ_CHECK(offsets[i] >= 0 && offsets[i + 1] - offsets[i] == counts[i]);
    FZ_CHECK(ugrid_count_pairs(&s->grid, radius, &pairs) == UGRID_OK);
    FZ_CHECK(half ? pairs == needed : 2 * pairs == needed);
    capacity = fz_u8(s->f) & 1 ? needed : needed - fz_u8(s->f) % 16;
    if (capacity < 0) capacity = 0;
    ids = FZ_NEW(int32_t, capacity);
    r = ugrid_neighbors(&s->grid, radius, flags, offsets, capacity ? ids : NULL, capacity, &full);
    FZ_CHECK(r == (needed > capacity ? UGRID_BUFFER_TOO_SMALL : UGRID_OK) && full == needed &&
             offsets[n] == needed && offsets[0] == 0);
    memset(met, 0, (size_t)n * (size_t)n);
    for (i = 0; i < n; i++) {
        int32_t const me = flags & UGRID_PLACES ? ugrid_id(&s->grid, i) : i;
        int64_t const row = offsets[i + 1] - offsets[i];
        FZ_CHECK(row == counts[i]);
        if (offsets[i + 1] > capacity) continue; /* a row that does not fit whole is not there */
        if (flags & UGRID_PLACES) {
            for (k = offsets[i]; k < offsets[i + 1]; k++) {
                FZ_CHECK(ids[k] >= 0 && ids[k] < n);
                ids[k] = ugrid_id(&s->grid, ids[k]);
            }
        }
        for (k = offsets[i]; k < offsets[i + 1]; k++) {
            FZ_CHECK(ids[k] >= 0 && ids[k] < n && ids[k] != me &&
                     !met[(size_t)me * (size_t)n + (size_t)ids[k]]);
            met[(size_t)me * (size_t)n + (size_t)ids[k]] = 1;
        }
        if (!half) check_row(s, where(s, me), radius, me, ids + offsets[i], row, seen);
    }
    if (half && capacity == needed) {
        int32_t j;
        for (i = 0; i < n; i++) for (j = 0; j < i; j++) {
                int const times =
                    met[(size_t)i * (size_t)n + (size_t)j] + met[(size_t)j * (size_t)n + (size_t)i];
                int const near_by = fz_near(&s->box, where(s, i), where(s, j), radius);
                FZ_CHECK(times <= 1 && (times ? near_by != FZ_FAR : near_by != FZ_NEAR));
        }
    }
    free(ids);
end:
    free(met);
    free(seen);
    free(counts);
    free(offsets);
}

static void op_neighbors_at(state *s)
{
    real const radius = any_radius(s);
    int32_t const m = fz_below(s->f, 12);
    int const dim = s->grid.desc.dim ? s->grid.desc.dim : 3;
    fz_points q = fz_points_of(s->f, m, dim);
    int64_t *offsets = FZ_NEW(int64_t, m + 1), needed = -1, capacity = fz_u8(s->f);
    int32_t *ids = FZ_NEW(int32_t, capacity), i;
    uint8_t *seen = (uint8_t *)fz_exactly((size_t)s->grid.n + 1);
    fz_codes codes = {0, 0};
    ugrid_result r;
    if (cost(s, radius) / (s->grid.n + 1) < 2e5 || radius_bad(radius)) {
        fz_must(&codes, radius_bad(radius), UGRID_BAD_RADIUS);
        fz_must(&codes, !s->built, UGRID_NOT_BUILT);
        fz_must(&codes, q.stride_bad, UGRID_BAD_ARGUMENT);
        r = ugrid_neighbors_at(&s->grid, q.x, q.stride, m, radius, offsets, ids, capacity, &needed);
        FZ_TRACE("neighbors_at m %d radius %g: %s", m, (double)radius, ugrid_result_text(r));
        fz_may(&codes, needed > capacity, UGRID_BUFFER_TOO_SMALL);
        FZ_CHECK_CODE(fz_right(&codes, (int)r), ugrid_result_text(r));
        if (r == UGRID_OK || r == UGRID_BUFFER_TOO_SMALL) {
            FZ_CHECK((needed > capacity) == (r == UGRID_BUFFER_TOO_SMALL) && offsets[m] == needed &&
                     offsets[0] == 0);
            for (i = 0; i < m; i++) {
                int a, finite = 1;
                for (a = 0; a < dim; a++) finite &= fz_finite(fz_point(&q, i)[a]);
                if (!finite) FZ_CHECK(offsets[i] == offsets[i + 1]);
                else if (offsets[i + 1] <= capacity)
                    check_row(s, fz_point(&q, i), radius, -1, ids + offsets[i],
                              offsets[i + 1] - offsets[i], seen);
            }
        }
    }
    free(seen);
    free(ids);
    free(offsets);
    fz_drop_points(&q);
}

typedef struct pair_user { const state *s; real radius; int64_t count, stop; } pair_user;

static int on_pair(void *user, int32_t i, int32_t j)
{
    pair_user *u = (pair_user *)user;
    FZ_CHECK(i >= 0 && i < u->s->grid.n && j >= 0 && j < u->s->grid.n && i != j);
    FZ_CHECK(fz_near(&u->s->box, where(u->s, i), where(u->s, j), u->radius) != FZ_FAR);
    return ++u->count == u->stop;
}

static void op_each_pair(state *s)
{
    pair_user u;
    int const flags = fz_choice(s->f, 4);
    int64_t pairs = 0, all;
    fz_codes codes = {0, 0};
    ugrid_result r;
    int32_t bad = -2;
    u.s = s;
    u.radius = any_radius(s);
    u.count = 0;
    u.stop = fz_u8(s->f);
    if (s->grid.n > 600 || (cost(s, u.radius) > 3e6 && !radius_bad(u.radius))) return;
    fz_must(&codes, flags & ~1, UGRID_BAD_OPTION);
    fz_must(&codes, radius_bad(u.radius), UGRID_BAD_RADIUS);
    fz_must(&codes, !s->built, UGRID_NOT_BUILT);
    r = ugrid_each_pair(&s->grid, u.radius, flags, on_pair, &u);
    fz_may(&codes, u.count == u.stop, UGRID_STOPPED);
    FZ_CHECK_CODE(fz_right(&codes, (int)r), ugrid_result_text(r));
    if (codes.must) return;
    FZ_CHECK((r == UGRID_STOPPED) == (u.stop > 0 && u.count == u.stop));
    FZ_CHECK(ugrid_count_pairs(&s->grid, u.radius, &pairs) == UGRID_OK);
    all = flags & UGRID_HALF ? pairs : 2 * pairs;
    FZ_CHECK(u.stop > 0 && u.stop <= all ? u.count == u.stop : u.count == all);
    if (s->which < 2) s->heap[s->which].fail_at = 0;
    r = ugrid_verify(&s->grid, u.radius, 50, (uint32_t)u.stop, &bad);
    FZ_TRACE("verify radius %g: %s", (double)u.radius, ugrid_result_text(r));
    FZ_CHECK((r == UGRID_OK && bad == -1) ||
             (r == UGRID_OUT_OF_MEMORY && s->which < 2 && s->heap[s->which].failed));
}

/* Half walks: over all places, each pair that is near is met exactly once. */
static void op_half(state *s)
{
    real const radius = any_radius(s);
    int32_t const n = s->grid.n;
    uint8_t *met;
    int32_t k, i, j;
    if (n > 250 || radius_bad(radius) || cost(s, radius) > 2e6) return;
    met = (uint8_t *)fz_exactly((size_t)n * (size_t)n);
    memset(met, 0, (size_t)n * (size_t)n);
    for (k = 0; k < n; k++) {
        ugrid_near walk = ugrid_near_half(&s->grid, k, radius);
        i = ugrid_id(&s->grid, k);
        while (ugrid_next(&walk)) {
            j = walk.id;
            FZ_CHECK(j >= 0 && j < n && j != i);
            FZ_CHECK(!met[(size_t)(i < j ? i : j) * (size_t)n + (size_t)(i < j ? j : i)]);
            met[(size_t)(i < j ? i : j) * (size_t)n + (size_t)(i < j ? j : i)] = 1;
        }
    }
    for (i = 0; i < n; i++) for (j = i + 1; j < n; j++)
            FZ_CHECK(met[(size_t)i * (size_t)n + (size_t)j] ||
                     fz_near(&s->box, where(s, i), where(s, j), radius) != FZ_NEAR);
    free(met);
}

static void op_gather(state *s)
{
    size_t const bytes = (size_t)fz_below(s->f, 9), n = (size_t)s->grid.n;
    uint8_t *from = (uint8_t *)fz_exactly(n * bytes), *to = (uint8_t *)fz_exactly(n * bytes),
            *back = (uint8_t *)fz_exactly(n * bytes);
    ugrid_result const want = bytes == 0 ? UGRID_BAD_ARGUMENT
                              : s->built ? UGRID_OK
                                         : UGRID_NOT_BUILT;
    size_t k;
    for (k = 0; k < n * bytes; k++) from[k] = (uint8_t)fz_roll(s->f, 256);
    FZ_CHECK(ugrid_gather(&s->grid, from, bytes, to) == want);
    FZ_CHECK(ugrid_scatter(&s->grid, to, bytes, back) == want);
    if (want == UGRID_OK) {
        FZ_CHECK(memcmp(from, back, n * bytes) == 0);
        for (k = 0; k < n; k++)
            FZ_CHECK(memcmp(to + k * bytes, from + (size_t)ugrid_id(&s->grid, (int32_t)k) * bytes,
                            bytes) == 0);
    }
    free(back);
    free(to);
    free(from);
}

static void op_cell_sums(state *s)
{
    int32_t const width = fz_below(s->f, 4), cells = s->built ? s->grid.cell_count : 0,
                  n = s->grid.n;
    real *values = FZ_NEW(real, n * width), *sums = FZ_NEW(real, (size_t)cells * (size_t)width + 1),
         *want;
    ugrid_result r;
    int32_t k, w;
    for (k = 0; k < n * width; k++) values[k] = (real)fz_roll(s->f, 64);
    r = ugrid_cell_sums(&s->grid, values, width, sums);
    if (width < 1) FZ_CHECK(r == UGRID_BAD_ARGUMENT);
    else FZ_CHECK(r == (s->built ? UGRID_OK : UGRID_NOT_BUILT));
    if (r == UGRID_OK) {
        want = FZ_NEW(real, (size_t)cells * (size_t)width + 1);
        memset(want, 0, (size_t)cells * (size_t)width * sizeof *want);
        for (k = 0; k < n; k++) {
            real p[3] = {0, 0, 0};
            if (!finite_at(s, k)) continue;     /* skip_invalid: it is in no cell */
            memcpy(p, where(s, k), (size_t)s->grid.desc.dim * sizeof *p);
            for (w = 0; w < width; w++)
                want[(size_t)ugrid_cell_at(&s->grid, p) * (size_t)width + (size_t)w] +=
                    values[k * width + w];
        }
        FZ_CHECK(memcmp(want, sums, (size_t)cells * (size_t)width * sizeof *want) == 0);
        free(want);
    }
    free(sums);
    free(values);
}

/* Functions without a grid. */
static void op_plain(state *s)
{
    ugrid_desc d = any_desc(s), out;
    fz_points points = fz_points_of(s->f, fz_count(s->f) % 40, d.dim == 2 ? 2 : 3);
    fz_codes codes;
    int32_t bad = -2, first = fz_first_not_finite(&points);
    const char *reason = NULL;
    ugrid grid;
    ugrid_result r;
    int code;
    memset(&grid, 0, sizeof grid);
    r = ugrid_defaults(&out, &d);
    FZ_CHECK((int)r >= 0 && r < UGRID_RESULT_COUNT && r != UGRID_CUDA_ERROR);
    codes = codes_of_desc(s, &d);
    /* a periodic axis without a box: told by the build */
    fz_may(&codes, 1, (int)UGRID_BAD_BOX);
    codes.must &= ~(((uint64_t)1 << UGRID_BAD_BOX) | (uint64_t)1 << UGRID_BAD_ALLOCATOR);
    fz_may(&codes, 1, UGRID_BAD_ALLOCATOR);
    FZ_CHECK_CODE(fz_right(&codes, (int)r), ugrid_result_text(r));
    (void)ugrid_choose(&d, fz_count(s->f), fz_u16(s->f), &reason);
    FZ_CHECK(reason != NULL && ugrid_choose(NULL, 1, 1, NULL) != UGRID_AUTO);
    r = ugrid_fit(&d, points.x, points.stride, points.n, &bad);
    FZ_CHECK(r != UGRID_NOT_FINITE || !d.skip_invalid);
    FZ_CHECK(r == UGRID_OK || r == UGRID_BAD_ARGUMENT || r == UGRID_BAD_DIM || r == UGRID_BAD_BOX ||
             r == UGRID_BOX_TOO_WIDE || r == UGRID_NOT_FINITE);
    if (r == UGRID_NOT_FINITE) FZ_CHECK(bad == first);
    for (code = -1; code <= UGRID_RESULT_COUNT; code++)
        FZ_CHECK(ugrid_result_text((ugrid_result)code) != NULL);
    FZ_CHECK(ugrid_build(NULL, &d, points.x, 0, 0) == UGRID_BAD_ARGUMENT && ugrid_version() > 0);
    ugrid_free(NULL);
    ugrid_free(&grid);
    fz_drop_points(&points);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fz f = fz_of(data, size);
    state s;
    int ops;
    memset(&s, 0, sizeof s);
    s.f = &f;
    s.heap[0] = fz_heap_of(HEAP_MOST);
    s.heap[1] = fz_heap_of(HEAP_MOST);
    s.which = fz_below(&f, 3);
    op_build(&s);
    for (ops = 0; ops < OPS && fz_left(&f) > 0; ops++) {
        if (!s.built && ops % 2) { op_build(&s); continue; }
        switch (fz_below(&f, 12)) {
        case 0: op_build(&s); break;
        case 1: op_reserve(&s); break;
        case 2: case 3: op_query(&s); break;
        case 4: case 5: op_neighbors(&s); break;
        case 6: op_neighbors_at(&s); break;
        case 7: op_each_pair(&s); break;
        case 8: op_half(&s); break;
        case 9: op_gather(&s); break;
        case 10: op_cell_sums(&s); break;
        default:
            if (fz_u8(&f) & 1) op_plain(&s);
            else { ugrid_free(&s.grid); s.built = 0; memset(&s.given, 0, sizeof s.given); }
        }
    }
    ugrid_free(&s.grid);
    fz_drop_points(&s.points);
    FZ_CHECK(s.heap[0].blocks == 0 && s.heap[1].blocks == 0 && s.heap[0].live == 0 &&
             s.heap[1].live == 0);
    return 0;
}
