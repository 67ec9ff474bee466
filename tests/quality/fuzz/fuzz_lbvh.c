/* fuzz_lbvh.c - any bytes become a desc, elements and calls on lbvh.h; answers are compared with
   brute force over the boxes.
   SPDX-License-Identifier: MIT OR Unlicense
   See README.md here. */

#include "fuzz.h"
#define LBVH_WITH_NEAREST
#define LBVH_WITH_OPTIMIZE
#define LBVH_IMPLEMENTATION
#include "lbvh.h"

enum { OPS = 14, HEAP_MOST = 1 << 22 };

typedef struct box { real min[3], max[3]; int out; } box;

typedef struct state {
    fz *f;
    fz_heap heap[2];
    int which;
    lbvh tree;
    lbvh_desc given;        /* of the build that made the tree */
    fz_points points;       /* elements or vertices */
    int32_t n;              /* elements */
    int32_t *indices;
    uint32_t *masks;
    box *truth;             /* by id */
    int32_t *place;         /* by id */
    int built;
} state;

static int enum_bad(int value, int last) { return value < 0 || value > last; }

static int width_of(const lbvh_desc *d)
{
    int const dim = d->dim == 2 ? 2 : 3;
    switch ((int)d->kind) {
    case LBVH_POINTS: return dim;
    case LBVH_SPHERES: return dim + 1;
    case LBVH_TRIANGLES: return d->indices ? dim : 3 * dim;
    default: return 2 * dim;
    }
}

static lbvh_desc any_desc(state *s)
{
    fz *f = s->f;
    lbvh_desc d;
    int const kind = fz_u8(f), more = fz_u8(f);
    int a;
    memset(&d, 0, sizeof d);
    d.dim = kind & 1 ? 2 : kind & 2 ? 3 : 0;
    if (kind >= 253) d.dim = fz_u8(f) - 4;
    d.kind = (lbvh_kind)(kind >> 2 & 3);
    if (kind >= 250) d.kind = (lbvh_kind)fz_choice(f, 4);
    if (d.kind == LBVH_POINTS && more & 1) d.radius = fz_length(f);
    d.bits = kind & 16 ? 30 : kind & 32 ? 63 : 0;
    d.builder = more & 64 ? LBVH_PLOC : (lbvh_builder)(more >> 1 & 1);
    if (more >= 250) d.builder = (lbvh_builder)fz_choice(f, 3), d.bits = fz_choice(f, 64);
    d.keep_codes = more >> 2 & 1;
    d.skip_invalid = more >> 3 & 1;
    if ((more & 0x30) == 0x30)
        for (a = 0; a < 3; a++) {
            d.min[a] = fz_real(f);
            d.max[a] = fz_u8(f) < 240 ? d.min[a] + fz_length(f) : fz_real(f);
        }
    if (fz_u8(f) >= 250) s->which = (s->which + 1) % 3;
    if (s->which < 2) {
        d.allocator.alloc = fz_alloc;
        d.allocator.free = fz_free;
        d.allocator.user = &s->heap[s->which];
    }
    if (more == 249) d.allocator.free = d.allocator.free ? NULL : fz_free;
    return d;
}

static fz_codes codes_of_desc(const lbvh_desc *d)
{
    fz_codes c = {0, 0};
    int const dim = d->dim == 0 ? 3 : d->dim, known = dim == 2 || dim == 3;
    int a, bad = 0;
    for (a = 0; a < dim && known; a++)
        bad |= !(d->min[a] <= d->max[a]) || !fz_finite(d->min[a]) || !fz_finite(d->max[a]);
    fz_must(&c, !known, LBVH_BAD_DIM);
    fz_must(&c,
            enum_bad((int)d->kind, 3) || enum_bad((int)d->builder, 2) ||
                (d->bits != 0 && d->bits != 30 && d->bits != 63),
            LBVH_BAD_OPTION);
    fz_must(&c, !(d->radius >= 0) || !fz_finite(d->radius), LBVH_BAD_RADIUS);
    fz_must(&c, d->vertices < 0, LBVH_BAD_ARGUMENT);
    fz_must(&c, bad, LBVH_BAD_BOUNDS);
    fz_must(&c, !d->allocator.alloc != !d->allocator.free, LBVH_BAD_ALLOCATOR);
    return c;
}

static int allocator_changed(const state *s, const lbvh_desc *d)
{
    const lbvh_allocator *had = &s->tree.desc.allocator;
    return lbvh_bytes(&s->tree) > 0 &&
           (had->alloc != d->allocator.alloc || had->free != d->allocator.free ||
            had->user != d->allocator.user);
}

/* The box of element i by the words of the manual; returns the code of what is wrong with it. */
static int box_of(const lbvh_desc *d, const fz_points *p, int32_t i, box *b)
{
    int const dim = d->dim == 2 ? 2 : 3;
    int a, v, code = LBVH_OK;
    memset(b, 0, sizeof *b);
    if (d->kind == LBVH_TRIANGLES) {
        for (v = 0; v < 3; v++) {
            const real *corner;
            if (d->indices && (d->indices[3 * i + v] < 0 || d->indices[3 * i + v] >= d->vertices)) {
                b->out = 1;
                return LBVH_BAD_INDEX;
            }
            corner = d->indices ? fz_point(p, d->indices[3 * i + v]) : fz_point(p, i) + v * dim;
            for (a = 0; a < dim; a++) {
                if (!fz_finite(corner[a])) code = LBVH_NOT_FINITE;
                if (v == 0 || corner[a] < b->min[a]) b->min[a] = corner[a];
                if (v == 0 || corner[a] > b->max[a]) b->max[a] = corner[a];
            }
        }
    } else {
        const real *x = fz_point(p, i);
        for (a = 0; a < dim; a++) {
            real const r = d->kind == LBVH_POINTS    ? d->radius
                           : d->kind == LBVH_SPHERES ? x[dim]
                                                     : 0;
            b->min[a] = d->kind == LBVH_BOXES ? x[a] : x[a] - r;
            b->max[a] = d->kind == LBVH_BOXES ? x[dim + a] : x[a] + r;
        }
        for (a = 0; a < dim; a++)
            if (!fz_finite(b->min[a]) || !fz_finite(b->max[a])) code = LBVH_NOT_FINITE;
        for (a = 0; a < dim && code == LBVH_OK; a++)
            if (b->min[a] > b->max[a]) code = LBVH_INVERTED;
        if (code == LBVH_OK && d->kind == LBVH_SPHERES && x[dim] < 0) code = LBVH_INVERTED;
    }
    b->out = code != LBVH_OK;
    return code;
}

static void forget(state *s)
{
    free(s->truth);
    free(s->place);
    s->truth = NULL;
    s->place = NULL;
    s->built = 0;
}

/* What a call that reads the tree says: nothing is wrong, or there is none. */
static lbvh_result there(const state *s) { return s->tree.built ? LBVH_OK : LBVH_NOT_BUILT; }

static void check_empty(state *s, int built)
{
    real const all[6] = {-9, -9, -9, 9, 9, 9};
    lbvh_overlap o = lbvh_overlap_box(&s->tree, all);
    int64_t pairs = 0;
    FZ_CHECK(s->tree.n == 0 && s->tree.built == built && !lbvh_next(&o));
    FZ_CHECK(lbvh_validate(&s->tree) == there(s));
    FZ_CHECK(lbvh_count_pairs(&s->tree, &pairs) == there(s) && pairs == 0);
    forget(s);
}

/* Every leaf has the box of its element. */
static void check_tree(state *s)
{
    const lbvh *t = &s->tree;
    int const dim = t->desc.dim;
    lbvh_result r;
    int32_t k;
    int a;
    FZ_CHECK(t->n == s->n && t->first_leaf == (s->n > 0 ? s->n - 1 : 0));
    if (s->which < 2) s->heap[s->which].fail_at = 0, s->heap[s->which].failed = 0;
    r = lbvh_verify(t, 3, (uint32_t)t->n, NULL);
    FZ_CHECK(r == LBVH_OK);
    free(s->place);
    s->place = FZ_NEW(int32_t, s->n);
    for (k = 0; k < t->n; k++) {
        const lbvh_node *leaf = &t->node[t->first_leaf + k];
        const box *b = &s->truth[leaf->link];
        s->place[leaf->link] = k;
        FZ_CHECK(lbvh_left_out(leaf) == b->out);
        for (a = 0; a < 3 && !b->out; a++)
            FZ_CHECK(a < dim ? leaf->min[a] == b->min[a] && leaf->max[a] == b->max[a]
                             : leaf->min[a] == 0 && leaf->max[a] == 0);
        if (t->mask) FZ_CHECK(t->mask[t->first_leaf + k] == s->masks[leaf->link]);
    }
    s->built = 1;
}

static void op_build(state *s)
{
    lbvh_desc d = any_desc(s);
    int const use = fz_u8(s->f), lie = fz_u8(s->f), fresh = lbvh_bytes(&s->tree) == 0;
    int32_t n = fz_count(s->f), i, first = -1, rows = n;
    int first_code = LBVH_OK, k;
    int32_t *indices = NULL;
    uint32_t *masks = NULL;
    fz_points points;
    fz_codes codes;
    box *truth;
    lbvh_result r;
    int const changed = allocator_changed(s, &d);
    if (d.kind == LBVH_TRIANGLES && use & 1) {
        rows = 1 + fz_u8(s->f) % 60;
        indices = FZ_NEW(int32_t, 3 * n);
        fz_seed(s->f);
        for (i = 0; i < 3 * n; i++) indices[i] = (int32_t)fz_roll(s->f, (uint32_t)rows);
        if (use & 4 && n > 0) indices[fz_u16(s->f) % (3 * n)] = fz_choice(s->f, rows);
        d.indices = indices;
        d.vertices = lie == 250 ? -1 : lie == 249 ? 0 : rows;
    }
    if (use & 2) {
        masks = FZ_NEW(uint32_t, n);
        fz_seed(s->f);
        for (i = 0; i < n; i++)
            masks[i] = fz_roll(s->f, 8)
                           ? 1u << fz_roll(s->f, 4) | (fz_roll(s->f, 5) == 0) * 0x80000000u
                           : 0;
        d.masks = masks;
    }
    points = fz_points_of(s->f, rows, width_of(&d));
    /* mostly not inverted */
    for (i = 0;
         i < rows && width_of(&d) == 2 * (d.dim == 2 ? 2 : 3) && d.kind == LBVH_BOXES && !(use & 8);
         i++) {
        int const dim = d.dim == 2 ? 2 : 3;
        real *x = points.x + (size_t)i * (size_t)points.step;
        for (k = 0; k < dim; k++)
            if (x[k] > x[dim + k]) {
                real const t = x[k];
                x[k] = x[dim + k];
                x[dim + k] = t;
            }
    }
    truth = FZ_NEW(box, n);
    codes = codes_of_desc(&d);
    for (i = 0; i < n && codes.must == 0; i++) {
        int const code = box_of(&d, &points, i, &truth[i]);
        if (code != LBVH_OK && first < 0) first = i, first_code = code;
    }
    fz_must(&codes, changed, LBVH_BAD_ALLOCATOR);
    fz_must(&codes, points.stride_bad || lie >= 254 || (lie == 253 && n > 0), LBVH_BAD_ARGUMENT);
    fz_must(&codes, first >= 0 && !d.skip_invalid, first_code);
    if (s->which < 2) {
        fz_plan_failure(s->f, &s->heap[s->which]);
        s->heap[s->which].crooked = lie == 251;
        fz_may(&codes, lie == 251, LBVH_BAD_ALLOCATOR);
    }
    r = lbvh_build(&s->tree, &d, lie == 253 ? NULL : points.x, points.stride,
                   lie >= 254 ? -lie : n);
    FZ_TRACE("build n %d dim %d kind %d bits %d builder %d radius %g masks %d skip %d: %s", n,
             d.dim, (int)d.kind, d.bits, (int)d.builder, (double)d.radius, masks != NULL,
             d.skip_invalid, lbvh_result_text(r));
    if (s->which < 2)
        s->heap[s->which].crooked = 0, fz_may(&codes, s->heap[s->which].failed, LBVH_OUT_OF_MEMORY);
    FZ_CHECK_CODE(fz_right(&codes, (int)r), lbvh_result_text(r));
    fz_drop_points(&s->points);
    free(s->indices);
    free(s->masks);
    forget(s);
    s->points = points;
    s->indices = indices;
    s->masks = masks;
    s->truth = truth;
    s->given = d;
    s->n = n;
    if (first >= 0 && (r == LBVH_OK || (int)r == first_code) &&
        codes.must == (d.skip_invalid ? 0 : (uint64_t)1 << first_code))
        FZ_CHECK(s->tree.bad_id == first);
    if (r != LBVH_OK) { check_empty(s, 0); return; }
    if (first < 0) FZ_CHECK(s->tree.bad_id == -1);
    if (fresh && n > 0)
        FZ_CHECK((double)lbvh_bytes(&s->tree) <=
                 (FZ_IS_FLOAT ? 65.0 : 129.0) * n + 8.0 * n * (masks != NULL) +
                     8.0 * n * (d.keep_codes || d.builder != LBVH_MERGE) + 64);
    check_tree(s);
}

static void op_reserve(state *s)
{
    lbvh_desc d = any_desc(s);
    int32_t const n = fz_u8(s->f) < 250 ? fz_count(s->f) : (int32_t)fz_u32(s->f);
    fz_codes codes = codes_of_desc(&d);
    uint32_t some = 0;
    lbvh_result r;
    if (s->which == 2 && n > 4096 && n <= (1 << 30) - 512) return;
    if (fz_u8(s->f) & 1) d.masks = &some;
    fz_must(&codes, n < 0, LBVH_BAD_ARGUMENT);
    fz_must(&codes, n > (1 << 30) - 512, LBVH_TOO_MANY);
    fz_must(&codes, allocator_changed(s, &d), LBVH_BAD_ALLOCATOR);
    if (s->which < 2) fz_plan_failure(s->f, &s->heap[s->which]);
    r = lbvh_reserve(&s->tree, &d, n);
    FZ_TRACE("reserve %d: %s", n, lbvh_result_text(r));
    if (s->which < 2) fz_may(&codes, s->heap[s->which].failed, LBVH_OUT_OF_MEMORY);
    FZ_CHECK_CODE(fz_right(&codes, (int)r), lbvh_result_text(r));
    check_empty(s, 0);
    if (r == LBVH_OK && n > 0 && n < 300 && s->which < 2 && d.kind == LBVH_POINTS) {
        int64_t const calls = s->heap[s->which].calls;
        real *x = FZ_NEW(real, 3 * n);
        uint32_t *masks = FZ_NEW(uint32_t, n);
        int32_t k;
        for (k = 0; k < 3 * n; k++) x[k] = (real)fz_roll(s->f, 100);
        memset(masks, 255, (size_t)n * sizeof *masks);
        if (d.masks) d.masks = masks;
        FZ_CHECK(lbvh_build(&s->tree, &d, x, 0, n) == LBVH_OK && s->heap[s->which].calls == calls);
        free(masks);
        free(x);
        FZ_CHECK(lbvh_build(&s->tree, &d, NULL, 0, 0) == LBVH_OK);
        check_empty(s, 1);
    }
}

/* New boxes for the same tree: all, or the one with a fault is named and nothing changes. */
static void op_refit(state *s)
{
    int32_t i, first = -1;
    int first_code = LBVH_OK;
    fz_points points;
    fz_codes codes = {0, 0};
    box *truth;
    lbvh_result r;
    if (!s->built) {
        real const x[9] = {0, 0, 0, 1, 1, 1, 2, 2, 2};
        r = lbvh_refit(&s->tree, x, 0);
        FZ_CHECK(s->tree.n > 0 || r == there(s));
        return;
    }
    points = fz_points_of(s->f, s->points.n, width_of(&s->given));
    truth = FZ_NEW(box, s->n);
    for (i = 0; i < s->n; i++) {
        int const code = box_of(&s->given, &points, i, &truth[i]);
        if (code != LBVH_OK && first < 0) first = i, first_code = code;
    }
    fz_must(&codes, points.stride_bad, LBVH_BAD_ARGUMENT);
    fz_must(&codes, first >= 0 && !s->given.skip_invalid, first_code);
    r = lbvh_refit(&s->tree, points.x, points.stride);
    FZ_TRACE("refit: %s", lbvh_result_text(r));
    FZ_CHECK_CODE(fz_right(&codes, (int)r), lbvh_result_text(r));
    if (!points.stride_bad) FZ_CHECK(s->tree.bad_id == first);
    if (r == LBVH_OK) {
        free(s->truth);
        s->truth = truth;
        fz_drop_points(&s->points);
        s->points = points;
    } else {
        free(truth);
        fz_drop_points(&points);
    }
    check_tree(s);
}

/* Rotations: the same elements, no higher cost, no memory; none, and nothing has changed. */
static void op_optimize(state *s)
{
    int64_t const calls = s->which < 2 ? s->heap[s->which].calls : 0;
    size_t const bytes = s->tree.n > 0 ? (2 * (size_t)s->tree.n - 1) * sizeof *s->tree.node : 0;
    lbvh_quality before, after;
    lbvh_node *was = (lbvh_node *)fz_exactly(bytes);
    int32_t rotations = -1;
    lbvh_result const measured = lbvh_measure(&s->tree, &before);
    if (bytes > 0) memcpy(was, s->tree.node, bytes);
    FZ_CHECK(lbvh_optimize(&s->tree, &rotations) == there(s) && measured == there(s));
    FZ_TRACE("optimize: %d rotations", rotations);
    FZ_CHECK(rotations >= 0 && rotations <= s->tree.n);
    if (s->which < 2) FZ_CHECK(s->heap[s->which].calls == calls);
    if (rotations == 0 && bytes > 0) FZ_CHECK(memcmp(was, s->tree.node, bytes) == 0);
    free(was);
    if (measured != LBVH_OK) return;
    FZ_CHECK(lbvh_measure(&s->tree, &after) == LBVH_OK && after.depth < LBVH_STACK);
    FZ_CHECK(!(after.sah > before.sah * (1 + 1e-9)));
    if (s->built) check_tree(s);
}

/* ------------------------------------------------------------------------------------------------
   Searches
   ---------------------------------------------------------------------------------------------- */

/* Do two closed boxes touch? Comparisons only: exact. */
static int touch(int dim, const real *amin, const real *amax, const box *b)
{
    int a;
    for (a = 0; a < dim; a++)
        if (!(amin[a] <= b->max[a] && b->min[a] <= amax[a])) return 0;
    return !b->out;
}

/* Square of the distance from p to a box, each operation rounded. */
static real distance2(int dim, const real *p, const box *b)
{
    real d[3] = {0, 0, 0};
    int a;
    for (a = 0; a < dim; a++)
        d[a] = p[a] < b->min[a] ? p[a] - b->min[a] : p[a] > b->max[a] ? p[a] - b->max[a] : 0;
    return fz_square(d);
}

static real reach2_of(real radius)
{
    volatile real square = radius * radius;
    return square > FZ_MAX ? FZ_MAX : square;
}

static int within(int dim, const real *p, real radius, const box *b)
{
    int a;
    for (a = 0; a < dim; a++) if (!fz_finite(p[a])) return 0;
    return !b->out && radius >= 0 && distance2(dim, p, b) <= reach2_of(radius);
}

static uint32_t mask_of(const state *s, int32_t id)
{
    return s->given.masks ? s->masks[id] : 0xFFFFFFFFu;
}

/* Without masks all are found, whatever the filter. */
static int passes(const state *s, int32_t id, uint32_t filter)
{
    return !s->given.masks || (s->masks[id] & filter);
}

/* Which leaves a query of this kind meets. x: its numbers. */
static int meets(const state *s, int kind, const real *x, real radius, int32_t id, uint32_t filter)
{
    int const dim = s->tree.desc.dim;
    int a;
    if (!passes(s, id, filter)) return 0;
    if (kind != LBVH_BOXES)
        return within(dim, x, kind == LBVH_POINTS ? radius : x[dim], &s->truth[id]);
    for (a = 0; a < dim; a++) if (!(x[a] <= x[dim + a])) return 0;
    return touch(dim, x, x + dim, &s->truth[id]);
}

static void op_queries(state *s)
{
    fz *f = s->f;
    int const kind = fz_choice(f, 3), own = fz_u8(f) & 1, more = fz_u8(f),
              dim = s->tree.desc.dim ? s->tree.desc.dim : 3;
    int32_t const n = s->tree.n, m = own ? n : fz_below(f, 12);
    int64_t *offsets, needed = -1, capacity, k;
    int32_t *counts, *ids, i, j;
    uint32_t *filters = NULL;
    lbvh_queries q;
    fz_points data;
    fz_codes codes = {0, 0};
    lbvh_result r;
    if (own && n > 500) return;
    memset(&q, 0, sizeof q);
    memset(&data, 0, sizeof data);
    q.kind = (lbvh_kind)kind;
    q.flags = more < 128 ? more & 3 : more < 250 ? 0 : fz_u8(f);
    q.radius = more & 4 ? 0 : fz_length(f);
    q.filter = more & 8 ? (uint32_t)fz_u8(f) : 0;
    if (more & 16) {
        filters = FZ_NEW(uint32_t, m);
        for (i = 0; i < m; i++) filters[i] = fz_roll(f, 3) ? fz_roll(f, 16) : 0xFFFFFFFFu;
        q.filters = filters;
    }
    if (!own) {
        lbvh_desc d;
        memset(&d, 0, sizeof d);
        d.dim = dim;
        d.kind = kind >= 0 && kind <= 2 ? (lbvh_kind)kind : LBVH_BOXES;
        data = fz_points_of(f, m, width_of(&d));
        q.data = data.x;
        q.stride = data.stride;
        q.n = more == 249 ? -1 : more == 248 ? (1 << 30) - 511 : m;
    }
    fz_must(&codes,
            kind < 0 || kind > 2 || (own && kind == LBVH_SPHERES) || q.flags & ~7 ||
                (!own && q.flags & 3),
            LBVH_BAD_OPTION);
    fz_must(&codes, !(q.radius >= 0) || !fz_finite(q.radius), LBVH_BAD_RADIUS);
    fz_must(&codes, q.n < 0 || (!own && data.stride_bad), LBVH_BAD_ARGUMENT);
    fz_must(&codes, q.n > (1 << 30) - 512, LBVH_TOO_MANY);
    fz_must(&codes, !s->tree.built, LBVH_NOT_BUILT);
    offsets = FZ_NEW(int64_t, m + 1);
    counts = FZ_NEW(int32_t, m);
    r = lbvh_count_overlaps(&s->tree, &q, counts);
    FZ_TRACE("queries kind %d own %d m %d flags %d radius %g: %s", kind, own, m, q.flags,
             (double)q.radius, lbvh_result_text(r));
    FZ_CHECK_CODE(fz_right(&codes, (int)r), lbvh_result_text(r));
    r = lbvh_overlaps(&s->tree, &q, offsets, NULL, 0, &needed);
    fz_may(&codes, 1, LBVH_BUFFER_TOO_SMALL);
    FZ_CHECK_CODE(fz_right(&codes, (int)r), lbvh_result_text(r));
    if (codes.must == 0) {
        int const places = q.flags & LBVH_PLACES, half = q.flags & LBVH_HALF;
        FZ_CHECK((r == LBVH_BUFFER_TOO_SMALL) == (needed > 0) && offsets[m] == needed &&
                 offsets[0] == 0);
        capacity = more & 32 ? needed : needed * (fz_u8(f) % 4) / 4;
        ids = FZ_NEW(int32_t, capacity);
        r = lbvh_overlaps(&s->tree, &q, offsets, capacity ? ids : NULL, capacity, &k);
        FZ_CHECK(r == (needed > capacity ? LBVH_BUFFER_TOO_SMALL : LBVH_OK) && k == needed);
        for (i = 0; i < m; i++) { /* row i must be exactly the leaves met, by ascending place */
            int32_t const row_id =
                own ? (places ? s->tree.node[s->tree.first_leaf + i].link : i) : -1;
            uint32_t const given_filter = q.filters  ? filters[own ? row_id : i]
                                          : q.filter ? q.filter
                                                     : 0xFFFFFFFFu;
            uint32_t const filter = own ? given_filter & mask_of(s, row_id) : given_filter;
            int64_t at = offsets[i];
            real x[8];
            int a, sure = 1;
            FZ_CHECK(offsets[i + 1] - offsets[i] == counts[i]);
            if (offsets[i + 1] > capacity) continue;
            if (own) {
                const box *b = &s->truth[row_id];
                for (a = 0; a < dim && kind == LBVH_BOXES; a++)
                    x[a] = b->min[a], x[dim + a] = b->max[a];
                for (a = 0; a < dim && kind == LBVH_POINTS; a++) {
                    x[a] = (real)(((double)b->min[a] + (double)b->max[a]) / 2);
                    /* a half of a denormal rounds */
                    sure &= fabs((double)x[a]) < 1e-30 ? x[a] == 0 : FZ_IS_FLOAT;
                }
                if (b->out) { FZ_CHECK(counts[i] == 0); continue; }
                if (!sure) continue;
            } else memcpy(x, fz_point(&data, i), (size_t)data.width * sizeof *x);
            for (j = 0; j < n; j++) {
                int32_t const id = s->tree.node[s->tree.first_leaf + j].link;
                if (own && (id == row_id || (half && j < s->place[row_id]))) continue;
                if (!meets(s, kind, x, q.radius, id, filter)) continue;
                FZ_CHECK(at < offsets[i + 1] && ids[at] == (places ? j : id));
                at++;
            }
            FZ_CHECK(at == offsets[i + 1]);
        }
        free(ids);
    }
    free(counts);
    free(offsets);
    free(filters);
    fz_drop_points(&data);
}

typedef struct pair_user { const state *s; int32_t *pairs; int64_t count, stop; } pair_user;

static int on_pair(void *user, int32_t i, int32_t j)
{
    pair_user *u = (pair_user *)user;
    FZ_CHECK(u->pairs[2 * u->count] == i && u->pairs[2 * u->count + 1] == j);
    return ++u->count == u->stop;
}

static void op_pairs(state *s)
{
    int32_t const n = s->tree.n;
    int64_t pairs = 0, needed = 0, at = 0, walked = 0, capacity;
    int32_t *list, p, q;
    pair_user u;
    lbvh_result r;
    if (n > 500) return;
    FZ_CHECK(lbvh_count_pairs(&s->tree, &pairs) == there(s));
    capacity = fz_u8(s->f) & 1 ? pairs : pairs / 2;
    list = FZ_NEW(int32_t, 2 * capacity);
    r = lbvh_pairs(&s->tree, capacity ? list : NULL, capacity, &needed);
    FZ_TRACE("pairs: %lld", (long long)pairs);
    FZ_CHECK(r == (needed > capacity ? LBVH_BUFFER_TOO_SMALL : there(s)) && needed == pairs);
    for (p = 0; p < n; p++) {
        lbvh_overlap later = lbvh_overlap_later(&s->tree, p);
        for (; lbvh_next(&later); walked++)
            if (walked < capacity)
                FZ_CHECK(list[2 * walked] == s->tree.node[s->tree.first_leaf + p].link &&
                         list[2 * walked + 1] == later.id);
    }
    FZ_CHECK(walked == pairs);
    for (p = 0; p < n; p++) for (q = p + 1; q < n; q++) {
            int32_t const i = s->tree.node[s->tree.first_leaf + p].link,
                          j = s->tree.node[s->tree.first_leaf + q].link;
            if (s->truth[i].out || !(mask_of(s, i) & mask_of(s, j)) ||
                !touch(s->tree.desc.dim, s->truth[i].min, s->truth[i].max, &s->truth[j]))
                continue;
            if (at < capacity) FZ_CHECK(list[2 * at] == i && list[2 * at + 1] == j);
            at++;
    }
    FZ_CHECK(at == pairs);
    u.s = s;
    u.pairs = list;
    u.count = 0;
    u.stop = fz_u8(s->f);
    if (capacity == pairs) {
        r = lbvh_each_pair(&s->tree, on_pair, &u);
        FZ_CHECK(r == (u.stop > 0 && u.stop <= pairs ? LBVH_STOPPED : there(s)) &&
                 u.count == (r == LBVH_STOPPED ? u.stop : pairs));
    }
    free(list);
}

/* An exact distance that is never less than that to the box. */
static real twice(void *user, int32_t id, const real *p)
{
    const state *s = (const state *)user;
    return 2 * distance2(s->tree.desc.dim, p, &s->truth[id]);
}

static void any_point(state *s, real p[3])
{
    int a;
    for (a = 0; a < 3; a++)
        p[a] = s->built && s->n > 0 && fz_u8(s->f) & 1 ? s->truth[fz_u8(s->f) % s->n].min[a]
                                                       : fz_real(s->f);
}

static void op_nearest(state *s)
{
    int32_t const n = s->tree.n, k = fz_u8(s->f) < 250 ? fz_below(s->f, 20) : -1;
    int const own_fn = fz_u8(s->f) & 1, dim = s->tree.desc.dim ? s->tree.desc.dim : 3;
    real const reach = fz_u8(s->f) % 3 ? fz_length(s->f) : fz_infinity(), reach2 = reach2_of(reach);
    real p[3], *d2 = FZ_NEW(real, k > 0 ? k : 0);
    int32_t *ids = FZ_NEW(int32_t, k > 0 ? k : 0), found = -1, i, j, want = 0,
            *best = FZ_NEW(int32_t, k > 0 ? k : 0);
    int a, finite = 1;
    fz_codes codes = {0, 0};
    lbvh_result r;
    any_point(s, p);
    for (a = 0; a < dim; a++) finite &= fz_finite(p[a]);
    fz_must(&codes, k < 0, LBVH_BAD_ARGUMENT);
    fz_must(&codes, !(reach >= 0), LBVH_BAD_RADIUS);
    fz_must(&codes, !s->tree.built, LBVH_NOT_BUILT);
    r = lbvh_nearest(&s->tree, p, k, reach, own_fn ? twice : NULL, s, ids, d2, &found);
    FZ_TRACE("nearest %d to %g %g %g reach %g: %s, %d", k, (double)p[0], (double)p[1], (double)p[2],
             (double)reach, lbvh_result_text(r), found);
    FZ_CHECK_CODE(fz_right(&codes, (int)r), lbvh_result_text(r));
    if (r == LBVH_OK) {
        for (j = 0; j < n && finite && k > 0; j++) {
            real const d = distance2(dim, p, &s->truth[j]), e = own_fn ? 2 * d : d;
            if (s->truth[j].out || !passes(s, j, 0xFFFFFFFFu) || !(e <= reach2)) continue;
            /* insert behind those that are nearer, or as near with a lower id */
            for (i = want < k ? want++ : k; i > 0; i--) {
                real const other = distance2(dim, p, &s->truth[best[i - 1]]) * (own_fn ? 2 : 1);
                if (other <= e) break;
                if (i < k) best[i] = best[i - 1];
            }
            if (i < k) best[i] = j;
        }
        FZ_CHECK(found == want);
        for (i = 0; i < found; i++)
            FZ_CHECK(ids[i] == best[i] &&
                     d2[i] == distance2(dim, p, &s->truth[best[i]]) * (own_fn ? 2 : 1));
    }
    free(best);
    free(ids);
    free(d2);
}

/* Walks of overlaps: by ascending place, exactly those that meet. */
static void op_walks(state *s)
{
    int const dim = s->tree.desc.dim ? s->tree.desc.dim : 3, kind = fz_below(s->f, 3);
    real x[6], radius = kind == 0 ? 0 : fz_length(s->f);
    lbvh_overlap o;
    lbvh_near walk;
    uint8_t *seen = (uint8_t *)fz_exactly((size_t)s->n + 1);
    int32_t j, last = -1;
    uint32_t const filter = fz_u8(s->f) & 1 ? 0xFFFFFFFFu : (uint32_t)fz_u8(s->f);
    int a, finite = 1;
    any_point(s, x);
    for (a = 0; a < dim; a++)
        x[dim + a] = kind == 1 ? x[a] : x[a] + fz_length(s->f), finite &= fz_finite(x[a]);
    o = kind == 0   ? lbvh_overlap_box(&s->tree, x)
        : kind == 1 ? lbvh_overlap_point(&s->tree, x)
                    : lbvh_overlap_sphere(&s->tree, x, radius);
    o.filter = filter;
    for (j = 0; j < s->tree.n; j++) {
        int32_t const id = s->tree.node[s->tree.first_leaf + j].link;
        if (!meets(s, kind == 2 ? LBVH_POINTS : LBVH_BOXES, x, radius, id, filter)) continue;
        FZ_CHECK(lbvh_next(&o) && o.id == id && o.place == j && o.place > last);
        last = o.place;
    }
    FZ_CHECK(!lbvh_next(&o) && !lbvh_next(&o));
    /* all within the reach, each once, with the right distance */
    memset(seen, 0, (size_t)s->n + 1);
    walk = lbvh_near_point(&s->tree, x, radius);
    walk.filter = filter;
    while (lbvh_next_near(&walk)) {
        FZ_CHECK(walk.id >= 0 && walk.id < s->tree.n && !seen[walk.id]);
        seen[walk.id] = 1;
        FZ_CHECK(walk.distance2 == distance2(dim, x, &s->truth[walk.id]));
    }
    for (j = 0; j < s->tree.n; j++)
        FZ_CHECK(seen[j] ==
                 (finite && passes(s, j, filter) && within(dim, x, radius, &s->truth[j])));
    free(seen);
}

/* Rays: boxes that are met for sure must be found, those missed by more than rounding must not. */
static void op_ray(state *s)
{
    int const dim = s->tree.desc.dim ? s->tree.desc.dim : 3;
    real from[3], along[3], t_max = fz_u8(s->f) % 3 ? fz_length(s->f) : fz_infinity();
    uint8_t *seen = (uint8_t *)fz_exactly((size_t)s->n + 1);
    lbvh_ray ray;
    int32_t j, calls = 0;
    int a, usable = t_max >= 0;
    any_point(s, from);
    for (a = 0; a < 3; a++) along[a] = fz_u8(s->f) & 1 ? fz_real(s->f) : 0;
    memset(seen, 0, (size_t)s->n + 1);
    for (a = 0; a < dim; a++) usable &= fz_finite(from[a]) && fz_finite(along[a]);
    ray = lbvh_ray_cast(&s->tree, from, along, t_max);
    FZ_TRACE("ray from %g %g %g along %g %g %g to %g", (double)from[0], (double)from[1],
             (double)from[2], (double)along[0], (double)along[1], (double)along[2], (double)t_max);
    while (lbvh_next_ray(&ray)) {
        FZ_CHECK(ray.id >= 0 && ray.id < s->tree.n && !seen[ray.id] && usable);
        FZ_CHECK(ray.t >= 0 && ray.t <= ray.t_max * (real)1.000001 && !s->truth[ray.id].out);
        seen[ray.id] = 1;
        calls++;
    }
    FZ_CHECK(calls <= s->tree.n);
    for (j = 0; j < s->tree.n && usable; j++) {
        const box *b = &s->truth[j];
        long double begin = 0,
                    end = (long double)t_max < (long double)FZ_MAX ? (long double)t_max
                                                                   : (long double)FZ_MAX,
                    slack = 0;
        int sane = 1, outside = 0;
        if (b->out || !passes(s, j, 0xFFFFFFFFu)) { FZ_CHECK(!seen[j]); continue; }
        for (a = 0; a < dim; a++) {
            long double const low = (long double)b->min[a] - (long double)from[a],
                              high = (long double)b->max[a] - (long double)from[a],
                              d = (long double)along[a];
            long double size = fabsl(low) > fabsl(high) ? fabsl(low) : fabsl(high), t0, t1;
            sane &= size < 1e15L && (d == 0 || (fabsl(d) > 1e-15L && fabsl(d) < 1e15L)) &&
                    (size == 0 || size > 1e-15L);
            if (d == 0) { outside |= low > 0 || high < 0; continue; }
            t0 = d > 0 ? low / d : high / d;
            t1 = d > 0 ? high / d : low / d;
            if (t0 > begin) begin = t0;
            if (t1 < end) end = t1;
            slack = fmaxl(slack, 4 * (long double)FZ_EPSILON * size / fabsl(d));
        }
        if (!sane) continue;
        if (outside) { FZ_CHECK(!seen[j]); continue; }
        if (begin <= end)
            FZ_CHECK(seen[j] || begin > end - 2 * slack * (begin > (long double)t_max - slack));
        if (begin > end + 2 * slack) FZ_CHECK(!seen[j]);
    }
    free(seen);
}

static void op_file(state *s)
{
    int64_t needed = -1, again;
    uint8_t *bytes;
    lbvh copy;
    lbvh_result r = lbvh_save(&s->tree, NULL, 0, &needed);
    memset(&copy, 0, sizeof copy);
    if (!s->tree.built) { FZ_CHECK(r == LBVH_NOT_BUILT); return; }
    FZ_CHECK(r == LBVH_BUFFER_TOO_SMALL && needed >= 64);
    bytes = (uint8_t *)fz_exactly((size_t)needed);
    FZ_CHECK(lbvh_save(&s->tree, bytes, needed, &again) == LBVH_OK && again == needed);
    r = lbvh_load(&copy, NULL, bytes, needed);
    FZ_CHECK(r == (s->tree.desc.dim == 2 || s->tree.desc.dim == 3 ? LBVH_OK : LBVH_BAD_FILE));
    if (r == LBVH_OK) {
        FZ_CHECK(copy.n == s->tree.n && !copy.mask == !(s->tree.n > 0 ? s->tree.mask : copy.mask));
        if (copy.n > 0)
            FZ_CHECK(
                memcmp(copy.node, s->tree.node, (2 * (size_t)copy.n - 1) * sizeof *copy.node) == 0);
        if (fz_u8(s->f) & 1)
            bytes[fz_u32(s->f) % (uint32_t)needed] ^= (uint8_t)(1 + fz_u8(s->f) % 255);
        else needed -= 1 + fz_u8(s->f) % 64;
        /* one byte changed: the checksum tells */
        FZ_CHECK(lbvh_load(&copy, NULL, bytes, needed) == LBVH_BAD_FILE && copy.n == 0);
    }
    lbvh_free(&copy);
    free(bytes);
}

static void op_plain(state *s)
{
    lbvh_desc d = any_desc(s), out;
    fz_points points = fz_points_of(s->f, fz_count(s->f) % 40, width_of(&d));
    int const dim = d.dim == 2 ? 2 : 3;
    real *boxes = FZ_NEW(real, points.n * 2 * dim);
    fz_codes codes = codes_of_desc(&d);
    int32_t bad = -2, first = -1, i;
    int code, a, first_code = LBVH_OK;
    lbvh_quality quality;
    lbvh_result r = lbvh_defaults(&out, &d);
    FZ_CHECK_CODE(fz_right(&codes, (int)r), lbvh_result_text(r));
    for (i = 0; i < points.n && codes.must == 0; i++) {
        box b;
        code = box_of(&d, &points, i, &b);
        if (code && first < 0) first = i, first_code = code;
    }
    fz_must(&codes, points.stride_bad, LBVH_BAD_ARGUMENT);
    fz_must(&codes, first >= 0 && !d.skip_invalid, first_code);
    r = lbvh_boxes(&d, points.x, points.stride, points.n, boxes, &bad);
    FZ_CHECK_CODE(fz_right(&codes, (int)r), lbvh_result_text(r));
    for (i = 0; i < points.n && r == LBVH_OK; i++) {
        box b;
        code = box_of(&d, &points, i, &b);
        for (a = 0; a < dim && code == LBVH_OK; a++)
            FZ_CHECK(boxes[2 * dim * i + a] == b.min[a] &&
                     boxes[2 * dim * i + dim + a] == b.max[a]);
    }
    if (r == LBVH_OK) FZ_CHECK(bad == first);
    FZ_CHECK(lbvh_measure(&s->tree, &quality) == there(s));
    if (s->tree.built)
        FZ_CHECK(quality.depth >= 0 && quality.depth <= LBVH_STACK - 1 &&
                 quality.mean_depth <= quality.depth);
    for (code = -1; code <= LBVH_RESULT_COUNT; code++)
        FZ_CHECK(lbvh_result_text((lbvh_result)code) != NULL);
    FZ_CHECK(lbvh_version() > 0);
    lbvh_free(NULL);
    free(boxes);
    fz_drop_points(&points);
}

/* Point and line against a triangle: the answers must be in it. */
static void op_triangle(state *s)
{
    real v[15], q[3], t = 0, u = 0, w = 0;
    double scale = 0, gap;
    int k, a, sane = 1;
    lbvh_feature feature;
    for (k = 0; k < 15; k++) {
        v[k] = fz_real(s->f);
        sane &= fz_finite(v[k]) &&
                (v[k] == 0 || (fabs((double)v[k]) < 1e4 && fabs((double)v[k]) > 1e-4));
        scale = fmax(scale, fabs((double)v[k]));
    }
    feature = lbvh_closest_on_triangle(v, v + 3, v + 6, v + 9, q);
    FZ_CHECK((int)feature >= 0 && (int)feature <= 6);
    if (feature >= LBVH_VERTEX_A)
        for (a = 0; a < 3; a++) FZ_CHECK(fz_equal(q[a], v[3 + 3 * (feature - LBVH_VERTEX_A) + a]));
    if (sane) { /* no corner is nearer, and q lies in the triangle's box */
        for (a = 0; a < 3; a++) {
            double const low = fmin(fmin((double)v[3 + a], (double)v[6 + a]), (double)v[9 + a]),
                         high = fmax(fmax((double)v[3 + a], (double)v[6 + a]), (double)v[9 + a]);
            FZ_CHECK((double)q[a] >= low - 1e-3 * scale && (double)q[a] <= high + 1e-3 * scale);
        }
        gap = sqrt(pow((double)(q[0] - v[0]), 2) + pow((double)(q[1] - v[1]), 2) +
                   pow((double)(q[2] - v[2]), 2));
        for (k = 0; k < 3; k++) {
            const real *c = v + 3 + 3 * k;
            FZ_CHECK(gap <= sqrt(pow((double)(c[0] - v[0]), 2) + pow((double)(c[1] - v[1]), 2) +
                                 pow((double)(c[2] - v[2]), 2)) +
                                2e-3 * scale);
        }
    }
    if (lbvh_ray_triangle(v, v + 12, v + 3, v + 6, v + 9, &t, &u, &w)) {
        FZ_CHECK(fz_finite(t));
        if (sane) FZ_CHECK(u >= 0 && w >= 0 && u <= (real)1.001 && w <= (real)1.001);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fz f = fz_of(data, size);
    state s;
    int ops, other;
    memset(&s, 0, sizeof s);
    s.f = &f;
    s.heap[0] = fz_heap_of(HEAP_MOST);
    s.heap[1] = fz_heap_of(HEAP_MOST);
    s.which = fz_below(&f, 3);
    op_build(&s);
    for (ops = 0; ops < OPS && fz_left(&f) > 0; ops++) {
        if (!s.built && ops % 2) { op_build(&s); continue; }
        switch (fz_below(&f, 14)) {
        case 0: op_build(&s); break;
        case 1: op_reserve(&s); break;
        case 2: op_refit(&s); break;
        case 3: case 4: case 5: op_queries(&s); break;
        case 6: op_pairs(&s); break;
        case 7: op_nearest(&s); break;
        case 8: op_walks(&s); break;
        case 9: case 10: op_ray(&s); break;
        case 11: op_file(&s); break;
        case 12: op_plain(&s); break;
        default:
            other = fz_u8(&f);
            if (other & 1) op_triangle(&s);
            else if (other & 2) op_optimize(&s);
            else { lbvh_free(&s.tree); forget(&s); s.n = 0; memset(&s.given, 0, sizeof s.given); }
        }
    }
    lbvh_free(&s.tree);
    forget(&s);
    fz_drop_points(&s.points);
    free(s.indices);
    free(s.masks);
    FZ_CHECK(s.heap[0].blocks == 0 && s.heap[1].blocks == 0);
    return 0;
}
