/* fuzz_nlist.c - any bytes become a desc, particles and calls on nlist.h; lists, history and events
   are compared with a table of all pairs that is kept beside the list.
   SPDX-License-Identifier: MIT OR Unlicense
   See README.md here. */

#include "fuzz.h"
#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#include "nlist.h"

enum { OPS = 14, HEAP_MOST = 1 << 22, MOST = 110 };

/* What the list must hold. Row i has j where has[i * MOST + j]; token: what its history says. */
typedef struct model {
    int32_t n;
    int remembers, half, history, dim, built;
    uint8_t has[MOST * MOST];
    uint32_t token[MOST * MOST];
    int64_t uid[MOST], next_uid;
} model;

typedef struct state {
    fz *f;
    fz_heap heap[2];
    int which;
    nlist list;
    model *now, *old;
    nlist_desc given;       /* of the last build; its arrays are not valid any more */
    fz_box box;
    uint32_t tokens;
    real *pos;              /* of the last build from positions, tight; NULL: pairs */
} state;

/* Arrays that a desc borrows. */
typedef struct loan { real *radii; uint32_t *masks; int64_t *start; int32_t *exclude; } loan;

static void give_back(loan *l)
{
    free(l->radii);
    free(l->masks);
    free(l->start);
    free(l->exclude);
}

static nlist_desc any_desc(state *s)
{
    fz *f = s->f;
    nlist_desc d;
    int const kind = fz_u8(f), more = fz_u8(f), third = fz_u8(f);
    int a;
    memset(&d, 0, sizeof d);
    if (s->now->remembers && kind % 8) { /* most builds go on with the list as it is */
        d.dim = s->now->dim;
        d.half = s->now->half;
        d.history = s->now->history;
    } else {
        static const int sizes[8] = {0, 4, 8, 17, 0, 12, 4, 40};
        d.dim = kind & 8 ? 2 : kind & 16 ? 3 : 0;
        d.half = kind >> 5 & 1;
        d.history = sizes[kind % 8];
        if (kind >= 253) d.dim = fz_u8(f) - 4, d.history = fz_u8(f) * 64 - 64;
    }
    d.events = more & 1;
    d.radius = more & 2 && more & 4 ? 0 : fz_length(f);
    if (more & 8) d.skin = fz_length(f) / 8;
    d.layout = (nlist_layout)(more >> 4 & 3);
    if (more >= 252) d.layout = (nlist_layout)fz_choice(f, 4);
    if (third & 1) d.width = fz_u8(f) % 12;
    if (third >= 252) d.width = fz_u8(f) * 16 - 1040;
    d.grow = third >> 1 & 1;
    d.deterministic = third >> 2 & 1;
    d.skip_invalid = third >> 7;
    if ((third & 0x18) == 0x18) d.capacity = third >= 250 ? -1 : fz_u8(f);
    if ((third & 0x60) == 0x60) {
        for (a = 0; a < 3; a++) {
            d.periodic[a] = fz_u8(f) & 1;
            d.min[a] = fz_real(f);
            d.max[a] = fz_u8(f) < 250 ? d.min[a] + 4 * fz_length(f) : fz_real(f);
        }
    }
    if (fz_u8(f) >= 250) s->which = (s->which + 1) % 3;
    if (s->which < 2) {
        d.allocator.alloc = fz_alloc;
        d.allocator.free = fz_free;
        d.allocator.user = &s->heap[s->which];
    }
    if (third == 249) d.allocator.free = d.allocator.free ? NULL : fz_free;
    return d;
}

static loan any_loan(state *s, nlist_desc *d, int32_t n)
{
    fz *f = s->f;
    int const c = fz_u8(f);
    int32_t i;
    loan l;
    memset(&l, 0, sizeof l);
    fz_seed(f);
    if (c & 1 || d->radius == 0) {
        real const base = fz_length(f) / 4;
        l.radii = FZ_NEW(real, n);
        for (i = 0; i < n; i++) l.radii[i] = fz_roll(f, 4) ? base : base * (real)fz_unit(f);
        if (c >= 248 && n > 0) l.radii[fz_roll(f, (uint32_t)n)] = fz_special(f);
    }
    if (c & 2) {
        l.masks = FZ_NEW(uint32_t, n);
        for (i = 0; i < n; i++) l.masks[i] = fz_roll(f, 6) ? 1u << fz_roll(f, 3) : 0;
    }
    if (c & 4) {
        l.start = FZ_NEW(int64_t, n + 1);
        l.exclude = FZ_NEW(int32_t, 4 * n);
        l.start[0] = 0;
        for (i = 0; i < n; i++) {
            int32_t k, count = (int32_t)fz_roll(f, 5);
            l.start[i + 1] = l.start[i] + count;
            for (k = 0; k < count; k++)
                l.exclude[l.start[i] + k] = fz_roll(f, 30) ? (int32_t)fz_roll(f, (uint32_t)n)
                                                           : (int32_t)fz_roll(f, 2000) - 1000;
        }
        if (c >= 252) l.start[fz_roll(f, (uint32_t)n + 1)] = (int64_t)fz_roll(f, 9) - 4;
    }
    d->radii = l.radii;
    d->masks = l.masks;
    d->exclude_start = l.start;
    d->exclude = c == 251 ? NULL : l.exclude;
    return l;
}

static int periodic_axis(const nlist_desc *d, int a)
{
    return a < (d->dim == 2 ? 2 : 3) && d->periodic[a];
}

/* What the desc alone, and the list as it is, must refuse. */
static fz_codes codes_of(const state *s, const nlist_desc *d, int with_box, int keys)
{
    fz_codes c = {0, 0};
    volatile real gap = d->radius + d->skin, square = gap * gap;
    int a, bad_box = 0, known = d->dim == 0 || d->dim == 2 || d->dim == 3;
    for (a = 0; a < 3 && with_box; a++)
        bad_box |=
            periodic_axis(d, a) && (!fz_finite(d->min[a]) || !fz_finite(d->max[a]) ||
                                    !(d->min[a] < d->max[a]) || !fz_finite(d->max[a] - d->min[a]));
    fz_must(&c, !known, NLIST_BAD_DIM);
    fz_must(&c, !(d->radius >= 0) || !fz_finite(d->radius), NLIST_BAD_RADIUS);
    fz_must(&c, !(d->skin >= 0) || !fz_finite(d->skin), NLIST_BAD_SKIN);
    fz_must(&c, !fz_finite(square) || (gap > 0 && !(square >= FZ_MIN)), NLIST_BAD_RADIUS);
    fz_must(&c, bad_box, NLIST_BAD_BOX);
    fz_must(&c, (int)d->layout < 0 || (int)d->layout > 3, NLIST_BAD_OPTION);
    fz_must(&c, d->width < 0 || d->width > 1024, NLIST_BAD_WIDTH);
    fz_must(&c, d->history < 0 || d->history > 4096, NLIST_BAD_HISTORY);
    fz_must(&c, d->capacity < 0, NLIST_BAD_CAPACITY);
    fz_must(&c, !d->exclude_start != !d->exclude, NLIST_BAD_EXCLUSIONS);
    fz_must(&c, !d->allocator.alloc != !d->allocator.free, NLIST_BAD_ALLOCATOR);
    fz_must(&c,
            nlist_bytes(&s->list) > 0 && (s->list.desc.allocator.alloc != d->allocator.alloc ||
                                          s->list.desc.allocator.free != d->allocator.free ||
                                          s->list.desc.allocator.user != d->allocator.user),
            NLIST_BAD_ALLOCATOR);
    fz_must(&c,
            s->list.n > 0 && s->now->remembers && known &&
                (d->history != s->now->history || !d->half != !s->now->half || keys ||
                 (d->dim == 2 ? 2 : 3) != s->now->dim),
            NLIST_BAD_HISTORY);
    return c;
}

/* ------------------------------------------------------------------------------------------------
   The list against the table
   ---------------------------------------------------------------------------------------------- */

static void check_bytes(const uint8_t *history, int bytes, uint32_t token)
{
    int k;
    for (k = 0; k < bytes; k++) FZ_CHECK(history[k] == (uint8_t)(token >> 8 * (k % 4)));
}

static void put_bytes(uint8_t *history, int bytes, uint32_t token)
{
    int k;
    for (k = 0; k < bytes; k++) history[k] = (uint8_t)(token >> 8 * (k % 4));
}

/* No allocation fails from now on: of either heap, since a refused call may have named the one that
   the list is not of. */
static void quiet(state *s)
{
    int h;
    for (h = 0; h < 2; h++) s->heap[h].fail_at = s->heap[h].failed = 0;
}

/* The list is what the table says, in every row, with every byte of history. */
static void check_list(state *s)
{
    const model *m = s->now;
    int64_t total = 0;
    int32_t i, j;
    quiet(s);
    FZ_CHECK(s->list.n == m->n && s->list.built == m->built);
    {
        nlist_result v = nlist_validate(&s->list);
        FZ_CHECK_CODE(v == (m->built ? NLIST_OK : NLIST_NOT_BUILT), nlist_result_text(v));
    }
    for (i = 0; i < m->n; i++) {
        nlist_each e = nlist_of(&s->list, i);
        int count = 0, want = 0;
        while (nlist_next(&e)) {
            FZ_CHECK(e.id >= 0 && e.id < m->n && m->has[i * MOST + e.id]);
            FZ_CHECK(!e.history == (m->history == 0));
            if (e.history)
                check_bytes((const uint8_t *)e.history, m->history, m->token[i * MOST + e.id]);
            FZ_CHECK(nlist_history(&s->list, e.entry) == e.history &&
                     nlist_find(&s->list, i, e.id) == e.entry);
            count++;
        }
        for (j = 0; j < m->n; j++) want += m->has[i * MOST + j];
        FZ_CHECK(count == want);
        total += count;
    }
    if (m->n > 0) FZ_CHECK(s->list.total == total);
}

/* After a refusal: as it was; out of memory may have emptied it where the list asked for remembers
   nothing: that is made in its place. */
static void check_refused(state *s, const nlist_desc *asked, nlist_result r)
{
    if (r == NLIST_OUT_OF_MEMORY && asked->history == 0 && !asked->events && s->list.n == 0) {
        if (s->now->n > 0) s->now->built = 0;
        s->now->n = 0;
        FZ_CHECK(s->list.built == s->now->built);
        return;
    }
    check_list(s);
}

static void check_events(const state *s)
{
    const model *m = s->now, *o = s->old;
    uint8_t *kind = (uint8_t *)fz_exactly(MOST * MOST);
    int64_t e;
    int32_t i, j, k;
    memset(kind, 0, MOST * MOST);
    for (k = 0; k < NLIST_EVENT_KINDS; k++) {
        for (e = 0; e < s->list.event_count[k]; e++) {
            const nlist_event *ev = &s->list.event[k][e];
            FZ_CHECK(ev->i >= 0 && ev->i < ev->j && ev->j < MOST && !kind[ev->i * MOST + ev->j]);
            kind[ev->i * MOST + ev->j] = (uint8_t)(1 + k);
            if (m->history && k != NLIST_ENDED) {
                uint8_t const *h = (uint8_t const *)nlist_history(&s->list, ev->entry);
                int const here = m->has[ev->i * MOST + ev->j];
                FZ_CHECK(h != NULL);
                check_bytes(h, m->history,
                            m->token[here ? ev->i * MOST + ev->j : ev->j * MOST + ev->i]);
            }
            if (m->history && k == NLIST_ENDED) {
                uint8_t const *h = (uint8_t const *)nlist_history_before(&s->list, ev->entry);
                int const here = o->has[ev->i * MOST + ev->j];
                FZ_CHECK(h != NULL);
                if (o->half || o->token[ev->i * MOST + ev->j] == o->token[ev->j * MOST + ev->i])
                    check_bytes(h, m->history,
                                o->token[here ? ev->i * MOST + ev->j : ev->j * MOST + ev->i]);
            }
        }
    }
    for (i = 0; i < MOST; i++) for (j = i + 1; j < MOST; j++) {
        int const is = i < m->n && j < m->n && (m->has[i * MOST + j] || m->has[j * MOST + i]);
        int const was =
            o->remembers && i < o->n && j < o->n && (o->has[i * MOST + j] || o->has[j * MOST + i]);
        int const want = is    ? (was ? 1 + NLIST_PERSISTED : 1 + NLIST_BEGUN)
                         : was ? 1 + NLIST_ENDED
                               : 0;
        FZ_CHECK(kind[i * MOST + j] == want);
    }
    free(kind);
}

/* A build went well: the rows against brute force (FZ_FAR, _RIM, _NEAR by pair), then they become
   the table. */
static void take_build(state *s, const nlist_desc *d, int32_t n, const uint8_t *truth)
{
    model *const m = s->old, *const o = s->now; /* the table before becomes the old one */
    int32_t i, j;
    s->now = m;
    s->old = o;
    memset(m, 0, sizeof *m);
    m->n = n;
    m->built = 1;
    m->dim = d->dim == 2 ? 2 : 3;
    m->half = d->half != 0;
    m->history = d->history;
    m->remembers = d->history > 0 || d->events;
    m->next_uid = o->remembers ? o->next_uid : 0;
    for (i = 0; i < n; i++)
        m->uid[i] = o->remembers && i < o->n ? o->uid[i] : o->remembers ? m->next_uid++ : i;
    if (!o->remembers) m->next_uid = n;
    quiet(s);
    FZ_CHECK(s->list.n == n && (s->list.bad_id == -1 || d->skip_invalid));
    {
        nlist_result v = nlist_validate(&s->list);
        FZ_CHECK_CODE(v == NLIST_OK, nlist_result_text(v));
    }
    for (i = 0; i < n; i++) {
        nlist_each e = nlist_of(&s->list, i);
        while (nlist_next(&e)) {
            j = e.id;
            FZ_CHECK(j >= 0 && j < n && j != i && !m->has[i * MOST + j] &&
                     truth[i * MOST + j] != FZ_FAR);
            m->has[i * MOST + j] = 1;
            if (d->half) FZ_CHECK(m->remembers ? m->uid[i] < m->uid[j] : i < j);
            if (!e.history) continue;
            m->token[i * MOST + j] = o->remembers && i < o->n && j < o->n && o->has[i * MOST + j]
                                         ? o->token[i * MOST + j]
                                         : 0;
            check_bytes((const uint8_t *)e.history, d->history, m->token[i * MOST + j]);
        }
    }
    for (i = 0; i < n; i++) for (j = 0; j < n; j++) {
        int const listed = m->has[i * MOST + j] || (d->half && m->has[j * MOST + i]);
        if (i != j) FZ_CHECK(listed || truth[i * MOST + j] != FZ_NEAR);
        if (i != j && !d->half && truth[i * MOST + j] == truth[j * MOST + i])
            FZ_CHECK(m->has[i * MOST + j] == m->has[j * MOST + i]);
    }
    if (d->events) check_events(s);
    for (i = 0; i < n && d->history > 0; i++) { /* a new note in most entries */
        nlist_each e = nlist_of(&s->list, i);
        while (nlist_next(&e)) {
            if (fz_roll(s->f, 8) == 0) continue;
            m->token[i * MOST + e.id] = ++s->tokens;
            put_bytes((uint8_t *)e.history, d->history, s->tokens);
        }
    }
    check_list(s);
}

/* Full rows, too many entries: is what is said to be needed right? */
static void check_full(const state *s, const nlist_desc *d, nlist_result r)
{
    int const width = d->width ? d->width : d->layout == NLIST_HYBRID ? 0 : d->half ? 8 : 16;
    if (r == NLIST_ROW_FULL)
        FZ_CHECK(d->layout == NLIST_STATIC && !d->grow && s->list.needed_width > width);
    if (r == NLIST_LIST_FULL)
        FZ_CHECK(d->layout != NLIST_STATIC && !d->grow && d->capacity > 0 &&
                 s->list.needed_entries > d->capacity);
}

static int allowed(const nlist_desc *d, int32_t i, int32_t j)
{
    int64_t k;
    if (d->masks && !(d->masks[i] & d->masks[j])) return 0;
    if (!d->exclude_start) return 1;
    for (k = d->exclude_start[i]; k < d->exclude_start[i + 1]; k++)
        if (d->exclude[k] == j) return 0;
    for (k = d->exclude_start[j]; k < d->exclude_start[j + 1]; k++)
        if (d->exclude[k] == i) return 0;
    return 1;
}

static real largest_of(const nlist_desc *d, int32_t n)
{
    real largest = 0;
    int32_t i;
    for (i = 0; i < n && d->radii; i++)
        if (d->radii[i] > largest && !(d->skip_invalid && !fz_finite(d->radii[i])))
            largest = d->radii[i];
    return largest;
}

/* A grid over these points; 0 if there is none that can serve. */
static int make_grid(state *s, ugrid *grid, const nlist_desc *d, const fz_points *p)
{
    ugrid_desc u;
    int const c = fz_u8(s->f), dim = d->dim == 2 ? 2 : 3;
    int a, any = 0;
    memset(&u, 0, sizeof u);
    memset(grid, 0, sizeof *grid);
    u.dim = dim;
    u.method = (ugrid_method)(c % 6);
    if (c & 64 && u.method != UGRID_LIST_PACKED) u.placement = UGRID_TIGHT;
    if (c & 128 && u.placement == UGRID_LOOSE) u.cell_order = UGRID_MORTON;
    u.slots = p->n + 1;
    u.max_cells = 4000;
    u.no_records = c >> 4 & 1;
    for (a = 0; a < dim; a++) any |= d->periodic[a];
    for (a = 0; a < dim && any; a++) {
        u.periodic[a] = d->periodic[a];
        u.min[a] = d->periodic[a] ? d->min[a] : -2;
        u.max[a] = d->periodic[a] ? d->max[a] : 2;
    }
    u.cell = c & 32 ? fz_length(s->f) : 0;
    if (!any && c & 8 && u.cell > 0) u.unbounded = 1, u.cell_order = UGRID_ROWS;
    return ugrid_build(grid, &u, p->x, p->stride, p->n) == UGRID_OK;
}

/* A tree over these points: points, spheres, or boxes of yesterday. */
static int make_tree(state *s, lbvh *tree, const nlist_desc *d, const fz_points *p)
{
    lbvh_desc t;
    int const c = fz_u8(s->f), dim = d->dim == 2 ? 2 : 3;
    int32_t i;
    int a, made;
    real *x;
    memset(&t, 0, sizeof t);
    memset(tree, 0, sizeof *tree);
    t.dim = dim;
    if (c & 1) {
        t.kind = LBVH_POINTS;
        t.radius = c & 2 ? fz_length(s->f) : 0;
        return lbvh_build(tree, &t, p->x, p->stride, p->n) == LBVH_OK;
    }
    t.kind = LBVH_SPHERES;
    x = FZ_NEW(real, p->n * (dim + 1));
    for (i = 0; i < p->n; i++) {
        for (a = 0; a < dim; a++)
            x[i * (dim + 1) + a] = c & 4 ? (real)fz_roll(s->f, 5) : fz_point(p, i)[a];
        x[i * (dim + 1) + dim] = d->radii && d->radii[i] >= 0 ? d->radii[i] : (real)0.25;
    }
    made = lbvh_build(tree, &t, x, 0, p->n) == LBVH_OK;
    free(x);
    return made;
}

static int32_t few(fz *f) { int32_t const n = fz_count(f); return n < MOST ? n : n % MOST; }

/* 1 if particle i is left out by desc.skip_invalid. */
static int left_out(const nlist_desc *d, const fz_points *p, int32_t i)
{
    int a, finite = 1;
    for (a = 0; a < (d->dim == 2 ? 2 : 3); a++) finite &= fz_finite(fz_point(p, i)[a]);
    return d->skip_invalid && !finite;
}

/* From positions: by brute force, a grid, or a tree. */
static void op_build(state *s)
{
    nlist_desc d = any_desc(s);
    int32_t n = s->now->n > 0 && fz_u8(s->f) % 4 ? s->now->n : few(s->f), i, j;
    int const dim = d.dim == 2 ? 2 : 3, source = fz_below(s->f, 3), lie = fz_u8(s->f);
    fz_points p = fz_points_of(s->f, n, dim);
    loan l = any_loan(s, &d, n);
    ugrid grid;
    lbvh tree;
    int have = 0, a, ordered = 1, bad_radius = 0;
    real largest;
    fz_box box;
    int32_t first, gone = -1;
    fz_codes codes;
    nlist_result r;
    volatile real reach, square;
    /* the same particles, moved a little */
    if (s->now->remembers && s->pos && n == s->now->n && dim == s->now->dim && fz_u8(s->f) % 4) {
        for (i = 0; i < n; i++) for (a = 0; a < dim; a++)
                p.x[(size_t)i * (size_t)p.step + (size_t)a] =
                    s->pos[i * dim + a] +
                    (fz_roll(s->f, 3) ? 0 : (real)(0.25 * (fz_unit(s->f) - 0.5)));
    }
    memset(&grid, 0, sizeof grid);
    memset(&tree, 0, sizeof tree);
    first = fz_first_not_finite(&p);
    if (d.skip_invalid) gone = first, first = -1;
    for (i = 0; i < n && l.radii; i++) {
        if (!p.stride_bad && left_out(&d, &p, i)) continue;
        if (!fz_finite(l.radii[i]) && (first < 0 || i < first)) first = i;
        bad_radius |= l.radii[i] < 0;
    }
    if (source == 1 && first < 0 && gone < 0 && !p.stride_bad) have = make_grid(s, &grid, &d, &p);
    if (source == 2 && first < 0 && gone < 0 && !p.stride_bad) have = make_tree(s, &tree, &d, &p);
    largest = largest_of(&d, n);
    memset(&box, 0, sizeof box);
    box.dim = dim;
    for (a = 0; a < dim; a++) {
        box.periodic[a] = d.periodic[a] != 0;
        box.min[a] = d.min[a];
        box.max[a] = d.max[a];
    }
    codes = codes_of(s, &d, 1, 0);
    fz_must(&codes, p.stride_bad || lie >= 254 || (lie == 253 && n > 0), NLIST_BAD_ARGUMENT);
    fz_must(&codes, first >= 0, NLIST_NOT_FINITE);
    fz_must(&codes, bad_radius, NLIST_BAD_RADIUS);
    reach = d.radius + d.skin;
    reach = reach + (largest + largest);
    square = reach * reach;
    fz_must(&codes, n > 0 && (!(square >= FZ_MIN) || !fz_finite(square)), NLIST_BAD_RADIUS);
    for (a = 0; a < dim && n > 0; a++)
        fz_must(&codes, box.periodic[a] && !(reach <= (d.max[a] - d.min[a]) / 2), NLIST_BAD_PERIOD);
    if (l.start) {
        ordered = l.start[0] == 0;
        for (i = 0; i < n; i++) ordered &= l.start[i + 1] >= l.start[i];
        fz_must(&codes, !ordered, NLIST_BAD_EXCLUSIONS);
    }
    fz_may(&codes, source == 1 && have, NLIST_BAD_SOURCE);
    /* boxes too far from their particles */
    for (i = 0; i < n && source == 2 && have; i++) for (a = 0; a < dim; a++)
            fz_may(&codes, fabs((double)fz_point(&p, i)[a]) > (FZ_IS_FLOAT ? 1e17 : 1e150),
                   NLIST_BAD_SOURCE);
    if (lie >= 253) fz_may(&codes, 1, NLIST_BAD_SOURCE);
    if (s->which < 2) fz_plan_failure(s->f, &s->heap[s->which]);
    if (have && source == 1)
        r = nlist_build_ugrid(&s->list, &d, &grid, lie == 253 ? NULL : p.x, p.stride,
                              lie >= 254 ? -lie : n);
    else if (have)
        r = nlist_build_lbvh(&s->list, &d, &tree, lie == 253 ? NULL : p.x, p.stride,
                             lie >= 254 ? -lie : n);
    else
        r = nlist_build_brute(&s->list, &d, lie == 253 ? NULL : p.x, p.stride,
                              lie >= 254 ? -lie : n);
    FZ_TRACE("build by %d (%d) n %d dim %d radius %g skin %g radii %d layout %d width %d half %d "
             "history %d events %d capacity %lld grow %d periodic %d%d%d: %s",
             source, have, n, d.dim, (double)d.radius, (double)d.skin, l.radii != NULL,
             (int)d.layout, d.width, d.half, d.history, d.events, (long long)d.capacity, d.grow,
             d.periodic[0], d.periodic[1], d.periodic[2], nlist_result_text(r));
    ugrid_free(&grid);  /* also where it was refused: memory is kept */
    lbvh_free(&tree);
    if (s->which < 2) fz_may(&codes, s->heap[s->which].failed, NLIST_OUT_OF_MEMORY);
    fz_may(&codes, d.layout == NLIST_STATIC, NLIST_ROW_FULL);
    fz_may(&codes, d.capacity > 0, NLIST_LIST_FULL);
    FZ_CHECK_CODE(fz_right(&codes, (int)r), nlist_result_text(r));
    if (r == NLIST_NOT_FINITE && !bad_radius) FZ_CHECK(s->list.bad_id == first);
    check_full(s, &d, r);
    if (r == NLIST_OK) {
        FZ_CHECK(s->list.bad_id == gone);
        uint8_t *truth = (uint8_t *)fz_exactly(MOST * MOST);
        for (i = 0; i < n; i++) for (j = 0; j < n; j++) {
            volatile real pair = d.radius + d.skin, own = l.radii ? l.radii[i] + l.radii[j] : 0;
            pair = pair + own;
            truth[i * MOST + j] =
                (uint8_t)(i != j && allowed(&d, i, j) && !left_out(&d, &p, i) &&
                                  !left_out(&d, &p, j)
                              ? fz_near(&box, fz_point(&p, i), fz_point(&p, j), pair)
                              : FZ_FAR);
        }
        free(s->pos);
        s->pos = FZ_NEW(real, n * dim);
        for (i = 0; i < n; i++) for (a = 0; a < dim; a++) s->pos[i * dim + a] = fz_point(&p, i)[a];
        s->given = d;
        s->box = box;
        take_build(s, &d, n, truth);
        free(truth);
    } else check_refused(s, &d, r);
    give_back(&l);
    fz_drop_points(&p);
}

static void op_pairs_build(state *s)
{
    nlist_desc d = any_desc(s);
    int32_t n = s->now->n > 0 && fz_u8(s->f) % 4 ? s->now->n : few(s->f), m = fz_u8(s->f),
            *pair = FZ_NEW(int32_t, 2 * m), i, first = -1;
    loan l = any_loan(s, &d, n);
    uint8_t *truth = (uint8_t *)fz_exactly(MOST * MOST);
    fz_codes codes;
    nlist_result r;
    int ordered = 1;
    memset(truth, FZ_FAR, MOST * MOST);
    if (fz_u8(s->f) % 8) d.skin = 0;
    fz_seed(s->f);
    if (n < 2) m = m > 200 ? 1 : 0;
    for (i = 0; i < m; i++) {
        pair[2 * i] = n ? (int32_t)fz_roll(s->f, (uint32_t)n) : 0;
        pair[2 * i + 1] = n ? (pair[2 * i] + 1 + (int32_t)fz_roll(s->f, (uint32_t)n)) % n : 0;
        if (n > 1 && pair[2 * i] == pair[2 * i + 1]) pair[2 * i + 1] = (pair[2 * i] + 1) % n;
    }
    if (fz_u8(s->f) >= 240 && m > 0) pair[fz_u16(s->f) % (2 * m)] = fz_choice(s->f, n + 1);
    for (i = 0; i < m; i++)
        if (first < 0 && (pair[2 * i] < 0 || pair[2 * i] >= n || pair[2 * i + 1] < 0 ||
                          pair[2 * i + 1] >= n || pair[2 * i] == pair[2 * i + 1]))
            first = i;
    if (l.start) {
        ordered = l.start[0] == 0;
        for (i = 0; i < n; i++) ordered &= l.start[i + 1] >= l.start[i];
    }
    codes = codes_of(s, &d, 1, 0);
    fz_must(&codes, d.skin > 0, NLIST_BAD_SKIN);
    fz_must(&codes, first >= 0, NLIST_BAD_INDEX);
    fz_must(&codes, !ordered, NLIST_BAD_EXCLUSIONS);
    if (s->which < 2) fz_plan_failure(s->f, &s->heap[s->which]);
    r = nlist_build_pairs(&s->list, &d, pair, m, n);
    FZ_TRACE("build from %d pairs n %d layout %d half %d history %d events %d: %s", m, n,
             (int)d.layout, d.half, d.history, d.events, nlist_result_text(r));
    if (s->which < 2) fz_may(&codes, s->heap[s->which].failed, NLIST_OUT_OF_MEMORY);
    fz_may(&codes, d.layout == NLIST_STATIC, NLIST_ROW_FULL);
    fz_may(&codes, d.capacity > 0, NLIST_LIST_FULL);
    FZ_CHECK_CODE(fz_right(&codes, (int)r), nlist_result_text(r));
    if (r == NLIST_BAD_INDEX) FZ_CHECK(s->list.bad_id == first);
    check_full(s, &d, r);
    if (r == NLIST_OK) {
        for (i = 0; i < m; i++)
            if (allowed(&d, pair[2 * i], pair[2 * i + 1]))
                truth[pair[2 * i] * MOST + pair[2 * i + 1]] =
                    truth[pair[2 * i + 1] * MOST + pair[2 * i]] = FZ_NEAR;
        free(s->pos);
        s->pos = NULL;
        s->given = d;
        memset(&s->box, 0, sizeof s->box);
        s->box.dim = d.dim == 2 ? 2 : 3;
        take_build(s, &d, n, truth);
    } else check_refused(s, &d, r);
    free(truth);
    give_back(&l);
    free(pair);
}

/* The particles get new names: rows, their order and every byte follow. */
static void op_remap(state *s)
{
    model *const o = s->now, *const m = s->old;
    int const kind = fz_u8(s->f);
    int32_t n = kind & 1 ? o->n : few(s->f), *name = FZ_NEW(int32_t, o->n), i, j, bad = -1,
            used = 0;
    uint8_t taken[MOST];
    int32_t *before = FZ_NEW(int32_t, MOST * MOST), length[MOST];
    fz_codes codes = {0, 0};
    nlist_result r;
    fz_seed(s->f);
    memset(taken, 0, sizeof taken);
    for (i = 0; i < o->n; i++) { /* a random name that is free; some are gone */
        int32_t try = n > 0 ? (int32_t)fz_roll(s->f, (uint32_t)n) : 0, turns;
        for (turns = 0; turns < n && taken[try]; turns++) try = (try + 1) % n;
        name[i] = n == 0 || taken[try] || (kind & 2 && fz_roll(s->f, 5) == 0) ? -1 : try;
        if (name[i] >= 0) taken[name[i]] = 1, used++;
    }
    if (kind >= 240 && o->n > 0) name[fz_u8(s->f) % o->n] = fz_choice(s->f, n + 1);
    memset(taken, 0, sizeof taken);
    for (i = 0; i < o->n && bad < 0; i++) {
        if (name[i] == -1) continue;
        if (name[i] < -1 || name[i] >= n || taken[name[i]]) bad = i;
        else taken[name[i]] = 1;
    }
    for (i = 0; i < o->n; i++) {
        nlist_each e = nlist_of(&s->list, i);
        length[i] = 0;
        while (nlist_next(&e)) before[i * MOST + length[i]++] = e.id;
    }
    fz_must(&codes, !o->built, NLIST_NOT_BUILT);
    fz_must(&codes, bad >= 0, NLIST_BAD_INDEX);
    if (s->which < 2) fz_plan_failure(s->f, &s->heap[s->which]);
    r = nlist_remap(&s->list, name, n);
    FZ_TRACE("remap %d to %d: %s", o->n, n, nlist_result_text(r));
    if (s->which < 2) fz_may(&codes, s->heap[s->which].failed, NLIST_OUT_OF_MEMORY);
    fz_may(&codes, s->given.layout == NLIST_STATIC, NLIST_ROW_FULL);
    fz_may(&codes, s->given.capacity > 0, NLIST_LIST_FULL);
    FZ_CHECK_CODE(fz_right(&codes, (int)r), nlist_result_text(r));
    if (r == NLIST_BAD_INDEX) FZ_CHECK(s->list.bad_id == bad);
    if (r == NLIST_OK) {
        int32_t *old_of = FZ_NEW(int32_t, n);
        memset(m, 0, sizeof *m);
        m->n = n;
        m->built = 1;
        m->dim = o->dim;
        m->half = o->half;
        m->history = o->history;
        m->remembers = o->remembers;
        for (i = 0; i < n; i++) old_of[i] = -1;
        for (i = 0; i < o->n; i++) if (name[i] >= 0) old_of[name[i]] = i;
        m->next_uid = o->next_uid;
        for (i = 0; i < n; i++) m->uid[i] = old_of[i] >= 0 ? o->uid[old_of[i]] : m->next_uid++;
        for (i = 0; i < o->n; i++) for (j = 0; j < o->n; j++) {
            if (!o->has[i * MOST + j] || name[i] < 0 || name[j] < 0) continue;
            m->has[name[i] * MOST + name[j]] = 1;
            m->token[name[i] * MOST + name[j]] = o->token[i * MOST + j];
        }
        for (i = 0; i < n; i++) { /* the order in a row is kept */
            nlist_each e = nlist_of(&s->list, i);
            int32_t k = 0;
            while (nlist_next(&e)) {
                FZ_CHECK(old_of[i] >= 0);
                while (k < length[old_of[i]] && name[before[old_of[i] * MOST + k]] != e.id) k++;
                FZ_CHECK(k < length[old_of[i]]);
                k++;
            }
        }
        s->now = m;
        s->old = o;
        free(old_of);
        free(s->pos);
        s->pos = NULL;
        if (s->given.skin > 0 && used < n) { /* a new particle: from nowhere */
            real *pos = FZ_NEW(real, 3 * n);
            int32_t moved = -1;
            memset(pos, 0, 3 * (size_t)n * sizeof *pos);
            FZ_CHECK(nlist_moved(&s->list, pos, 0, &moved) == NLIST_OK && moved == 1);
            free(pos);
        }
        check_list(s);
    } else check_refused(s, &s->given, r);
    free(before);
    free(name);
}

static void op_moved(state *s)
{
    int32_t const n = s->now->n;
    int const dim = s->now->dim ? s->now->dim : 3;
    int32_t moved = -1, i;
    int a, must = 0, may = 0;
    real *pos = FZ_NEW(real, n * 3), amount = fz_u8(s->f) & 1 ? s->given.skin / 2 : fz_length(s->f);
    nlist_result r;
    for (i = 0; i < n * dim; i++) pos[i] = s->pos ? s->pos[i] : 0;
    if (n > 0) pos[fz_u8(s->f) % (n * dim)] += amount;
    if (n > 0 && fz_u8(s->f) > 245) pos[0] = fz_special(s->f);
    r = nlist_moved(&s->list, pos, 0, &moved);
    if (n == 0) FZ_CHECK(r == NLIST_OK && moved == 1);
    else if (!(s->list.rows[s->list.current].reference))
        FZ_CHECK(r == NLIST_BAD_SKIN && moved == 1);
    else {
        FZ_CHECK(r == NLIST_OK && (moved == 0 || moved == 1));
        for (i = 0; i < n && s->pos; i++) {
            int near_by = FZ_NEAR, finite = 1, was = 1;
            for (a = 0; a < dim; a++) {
                finite &= fz_finite(pos[i * dim + a]);
                was &= fz_finite(s->pos[i * dim + a]);
            }
            if (s->list.desc.skip_invalid && !finite && !was) continue;
            near_by = finite && was
                          ? fz_near(&s->box, s->pos + i * dim, pos + i * dim, s->list.desc.skin / 2)
                          : FZ_FAR;
            must |= near_by == FZ_FAR;
            may |= near_by != FZ_NEAR;
        }
        if (s->pos) FZ_CHECK(moved ? may : !must);
    }
    free(pos);
}

typedef struct sum_user { const state *s; int64_t calls; int skip, spoil; } sum_user;

static int on_contact(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    sum_user *u = (sum_user *)user;
    const model *m = u->s->now;
    FZ_CHECK(i >= 0 && i < m->n && j >= 0 && j < m->n && m->has[i * MOST + j]);
    FZ_CHECK(!history == (m->history == 0) && own[0] == 0 && other[0] == 0);
    if (history) check_bytes((const uint8_t *)history, m->history, m->token[i * MOST + j]);
    u->calls++;
    if (u->skip && (i + j) % 3 == 0) { own[0] = 99; return 0; }
    own[0] = (real)(j + 1);
    other[0] = (real)(-i - 1);
    if (u->spoil && u->calls == u->spoil) own[0] = fz_nan();
    return 1;
}

static void op_sum(state *s)
{
    const model *m = s->now;
    int const c = fz_u8(s->f);
    real *sums = FZ_NEW(real, m->n * 16), *want = FZ_NEW(real, m->n * 16);
    sum_user u;
    nlist_sums how;
    fz_codes codes = {0, 0};
    nlist_result r;
    int32_t i, j, v;
    int64_t entries = 0;
    int slots = s->list.desc.layout == NLIST_STATIC ||
                (s->list.desc.layout == NLIST_HYBRID && s->list.desc.width > 0);
    memset(&how, 0, sizeof how);
    how.values = c < 240 ? 1 + c % 16 : fz_u8(s->f) - 8;
    how.mode = (nlist_mode)fz_choice(s->f, 4);
    how.unit = c & 1 ? 0 : c & 2 ? 0.5 : c & 4 ? 1.0 / 1024 : (double)fz_length(s->f);
    u.s = s;
    u.calls = 0;
    u.skip = c >> 3 & 1;
    u.spoil = c >= 230 ? c - 229 : 0;
    for (i = 0; i < m->n * 16; i++) sums[i] = want[i] = (real)(i % 5);
    fz_must(&codes, !m->built, NLIST_NOT_BUILT);
    if (m->n > 0) {
        int const reduce = how.mode == NLIST_REDUCE ||
                           (how.mode == NLIST_AUTO && s->list.desc.layout == NLIST_DYNAMIC);
        int const width = s->list.desc.width;
        fz_must(&codes, how.values < 1 || how.values > 16, NLIST_BAD_VALUES);
        fz_must(&codes, (int)how.mode < 0 || (int)how.mode > 3, NLIST_BAD_OPTION);
        fz_must(&codes, !(how.unit >= 0) || how.unit - how.unit != 0, NLIST_BAD_UNIT);
        fz_may(&codes, how.unit < 1e-300 || s->list.desc.deterministic, NLIST_BAD_UNIT);
        fz_must(&codes,
                codes.must == 0 && how.mode == NLIST_REDUCE && slots && width != 1 && width != 2 &&
                    width != 4 && width != 8 && width != 16 && width != 32,
                NLIST_BAD_WIDTH);
        fz_may(&codes, reduce && slots, NLIST_BAD_WIDTH);
    }
    if (s->which < 2) fz_plan_failure(s->f, &s->heap[s->which]);
    r = nlist_sum(&s->list, &how, on_contact, &u, sums);
    FZ_TRACE("sum values %d mode %d unit %g: %s", how.values, (int)how.mode, how.unit,
             nlist_result_text(r));
    if (s->which < 2) fz_may(&codes, s->heap[s->which].failed, NLIST_OUT_OF_MEMORY);
    fz_may(&codes, how.unit > 0, NLIST_SUM_OVERFLOW);
    FZ_CHECK_CODE(fz_right(&codes, (int)r), nlist_result_text(r));
    for (i = 0; i < m->n && r == NLIST_OK; i++) for (j = 0; j < m->n; j++) {
        if (!m->has[i * MOST + j]) continue;
        entries++;
        if (u.skip && (i + j) % 3 == 0) continue;
        want[i * how.values] += (real)(j + 1);
        if (m->half) want[j * how.values] -= (real)(i + 1);
    }
    if (r == NLIST_OK) FZ_CHECK(u.calls == entries);
    if (r == NLIST_OK && !(u.spoil && u.calls >= u.spoil) &&
        (how.unit == 0 || how.unit == 0.5 || how.unit == 1.0 / 1024))
        for (i = 0; i < m->n; i++)
            for (v = 0; v < how.values; v++)
                FZ_CHECK(sums[i * how.values + v] == want[i * how.values + v]);
    if (r == NLIST_OK && how.unit > 0 && u.spoil && !u.skip) FZ_CHECK(u.calls < u.spoil);
    /* as they were */
    if (r != NLIST_OK) for (i = 0; i < m->n * 16; i++) FZ_CHECK(sums[i] == (real)(i % 5));
    free(want);
    free(sums);
}

static void op_pairs(state *s)
{
    const model *m = s->now;
    int64_t needed = -1, entries = 0, k;
    int32_t *pair, *shift = NULL, i, j;
    nlist_result r = nlist_pairs(&s->list, NULL, 0, &needed, NULL, 0, NULL);
    for (i = 0; i < m->n; i++) for (j = 0; j < m->n; j++) entries += m->has[i * MOST + j];
    FZ_CHECK(needed == entries && r == (!m->built     ? NLIST_NOT_BUILT
                                        : entries > 0 ? NLIST_BUFFER_TOO_SMALL
                                                      : NLIST_OK));
    if (!m->built) return;
    pair = FZ_NEW(int32_t, 2 * needed);
    if (s->pos && needed > 0) shift = FZ_NEW(int32_t, 3 * needed);
    r = nlist_pairs(&s->list, pair, needed, &k, shift ? s->pos : NULL, 0, shift);
    FZ_CHECK(r == NLIST_OK || (shift && r == NLIST_NOT_FINITE));
    for (k = 0; k < needed && r == NLIST_OK; k++) {
        int a;
        i = pair[2 * k];
        j = pair[2 * k + 1];
        FZ_CHECK(i >= 0 && i < m->n && j >= 0 && j < m->n && m->has[i * MOST + j] &&
                 (k == 0 || pair[2 * k - 2] <= i));
        if (m->half) FZ_CHECK(nlist_find_pair(&s->list, j, i) == nlist_find(&s->list, i, j));
        if (shift) {
            real d[3] = {0, 0, 0};
            nlist_offset(&s->list, s->pos + i * m->dim, s->pos + j * m->dim, d);
            for (a = 0; a < m->dim; a++)
                if (s->box.periodic[a])
                    FZ_CHECK(fabs((double)d[a]) <=
                             0.5001 * ((double)s->box.max[a] - (double)s->box.min[a]));
                else FZ_CHECK(d[a] == s->pos[j * m->dim + a] - s->pos[i * m->dim + a]);
        }
        for (a = 0; a < m->dim && shift; a++) {
            double const length = (double)s->box.max[a] - (double)s->box.min[a],
                         p = (double)s->pos[i * m->dim + a], q = (double)s->pos[j * m->dim + a];
            double const away = s->box.periodic[a] ? fmax(fabs(p - (double)s->box.min[a]),
                                                          fabs(q - (double)s->box.min[a])) /
                                                         length
                                                   : 0;
            if (!s->box.periodic[a]) { FZ_CHECK(shift[3 * k + a] == 0); continue; }
            if (away > 1e4 || fabs((double)s->box.min[a]) > 1e3 * length) continue;
            FZ_CHECK(fabs(q + shift[3 * k + a] * length - p) <= length * 0.501);
        }
    }
    free(shift);
    free(pair);
}

static void op_file(state *s)
{
    int64_t needed = -1, again;
    uint8_t *bytes;
    nlist copy;
    nlist_desc d;
    int32_t i;
    nlist_result r = nlist_save(&s->list, NULL, 0, &needed);
    if (!s->now->built) { FZ_CHECK(r == NLIST_NOT_BUILT); return; }
    FZ_CHECK(r == NLIST_BUFFER_TOO_SMALL && needed >= 136);
    bytes = (uint8_t *)fz_exactly((size_t)needed);
    FZ_CHECK(nlist_save(&s->list, bytes, needed, &again) == NLIST_OK && again == needed);
    memset(&copy, 0, sizeof copy);
    memset(&d, 0, sizeof d);
    d.layout = (nlist_layout)fz_below(s->f, 4);
    d.width = d.layout == NLIST_STATIC ? MOST : fz_below(s->f, 5);
    d.radius = 1;
    d.events = fz_u8(s->f) & 1;
    r = nlist_load(&copy, &d, bytes, needed);
    FZ_TRACE("load: %s", nlist_result_text(r));
    FZ_CHECK_CODE(r == NLIST_OK, nlist_result_text(r));
    FZ_CHECK(nlist_validate(&copy) == NLIST_OK && copy.n == s->list.n &&
             copy.total == s->list.total);
    for (i = 0; i < copy.n; i++) { /* the same rows, order and history */
        nlist_each e = nlist_of(&copy, i), was = nlist_of(&s->list, i);
        while (nlist_next(&e)) {
            FZ_CHECK(nlist_next(&was) && e.id == was.id && !e.history == !was.history);
            if (e.history) FZ_CHECK(memcmp(e.history, was.history, (size_t)s->now->history) == 0);
        }
        FZ_CHECK(!nlist_next(&was));
    }
    if (fz_u8(s->f) & 1) bytes[fz_u32(s->f) % (uint32_t)needed] ^= (uint8_t)(1 + fz_u8(s->f) % 255);
    else needed -= 1 + fz_u8(s->f) % 100;
    r = nlist_load(&copy, &d, bytes, needed);
    FZ_CHECK(r == NLIST_BAD_FILE && copy.n == s->list.n && nlist_validate(&copy) == NLIST_OK);
    nlist_free(&copy);
    free(bytes);
}

/* Saved, and loaded into the very list, in another layout: it goes on as if nothing had been. */
static void op_reload(state *s)
{
    int64_t needed = 0;
    uint8_t *bytes;
    nlist_desc d;
    nlist_result r;
    if (s->now->n == 0) return;
    (void)nlist_save(&s->list, NULL, 0, &needed);
    bytes = (uint8_t *)fz_exactly((size_t)needed);
    FZ_CHECK(nlist_save(&s->list, bytes, needed, &needed) == NLIST_OK);
    memset(&d, 0, sizeof d);
    d.layout = (nlist_layout)fz_below(s->f, 4);
    d.width = d.layout == NLIST_STATIC ? MOST : 0;
    d.radius = s->given.radius;
    d.events = s->now->remembers && s->now->history == 0;
    d.skin = s->list.desc.skin;
    d.allocator = s->list.desc.allocator;
    quiet(s);
    r = nlist_load(&s->list, &d, bytes, needed);
    FZ_TRACE("reload: %s", nlist_result_text(r));
    FZ_CHECK_CODE(r == NLIST_OK || r == NLIST_BAD_RADIUS ||
                      (r == NLIST_OUT_OF_MEMORY && s->list.desc.allocator.alloc),
                  nlist_result_text(r));
    if (r == NLIST_OK) s->given.layout = d.layout, s->given.width = d.width, s->given.capacity = 0;
    check_refused(s, &d, r);
    free(bytes);
}

static void op_reserve(state *s)
{
    nlist_desc d = any_desc(s);
    int32_t const n = fz_u8(s->f) < 250 ? few(s->f) : (int32_t)fz_u32(s->f);
    int64_t const entries =
        fz_u8(s->f) < 250 ? fz_u8(s->f) : (int64_t)fz_u32(s->f) << (fz_u8(s->f) % 32);
    fz_codes codes;
    nlist_result r;
    if (s->which == 2 && (n > 4096 || entries > 4096)) return;
    s->now->remembers = 0; /* it may change: the list is to be empty */
    codes = codes_of(s, &d, 1, 0);
    s->now->remembers = s->now->history > 0 || s->given.events;
    fz_must(&codes, n < 0 || entries < 0, NLIST_BAD_ARGUMENT);
    fz_must(&codes, n > 2147482624, NLIST_TOO_MANY);
    fz_may(&codes, entries > 2147482624, NLIST_TOO_MANY);
    if (s->which < 2) fz_plan_failure(s->f, &s->heap[s->which]);
    r = nlist_reserve(&s->list, &d, n, entries);
    FZ_TRACE("reserve %d %lld: %s", n, (long long)entries, nlist_result_text(r));
    if (s->which < 2) fz_may(&codes, s->heap[s->which].failed, NLIST_OUT_OF_MEMORY);
    fz_may(&codes, entries > (int64_t)1 << 50, NLIST_OUT_OF_MEMORY);
    FZ_CHECK_CODE(fz_right(&codes, (int)r), nlist_result_text(r));
    if (r == NLIST_OK || !s->list.built) {
        FZ_CHECK(s->list.n == 0 && nlist_validate(&s->list) == NLIST_NOT_BUILT);
        memset(s->now, 0, sizeof *s->now);
        free(s->pos);
        s->pos = NULL;
    } else check_list(s);
}

/* ------------------------------------------------------------------------------------------------
   Triangles: a list of its own
   ---------------------------------------------------------------------------------------------- */

/* Distance from p to a triangle, in double: to the face where p projects into it, else to the
   nearest edge. */
static double to_segment(const double p[3], const double a[3], const double b[3])
{
    double d2 = 0, dp = 0, out = 0, t;
    int k;
    for (k = 0; k < 3; k++) {
        d2 += (b[k] - a[k]) * (b[k] - a[k]);
        dp += (b[k] - a[k]) * (p[k] - a[k]);
    }
    t = d2 > 0 ? fmin(1, fmax(0, dp / d2)) : 0;
    for (k = 0; k < 3; k++) out += pow(a[k] + t * (b[k] - a[k]) - p[k], 2);
    return sqrt(out);
}

static double to_triangle(const real *pp, const real *v)
{
    double p[3], a[3], b[3], c[3], n[3], inside = 1, size = 0, height = 0, best;
    const double *corner[4];
    int k, e;
    for (k = 0; k < 3; k++)
        p[k] = (double)pp[k], a[k] = (double)v[k], b[k] = (double)v[3 + k], c[k] = (double)v[6 + k];
    for (k = 0; k < 3; k++) {
        int const i = (k + 1) % 3, j = (k + 2) % 3;
        n[k] = (b[i] - a[i]) * (c[j] - a[j]) - (b[j] - a[j]) * (c[i] - a[i]);
        size += n[k] * n[k];
    }
    best = fmin(to_segment(p, a, b), fmin(to_segment(p, b, c), to_segment(p, c, a)));
    corner[0] = corner[3] = a;
    corner[1] = b;
    corner[2] = c;
    for (e = 0; e < 3; e++) {
        double side = 0;
        for (k = 0; k < 3; k++) {
            int const i = (k + 1) % 3, j = (k + 2) % 3;
            side += n[k] * ((corner[e + 1][i] - corner[e][i]) * (p[j] - corner[e][j]) -
                            (corner[e + 1][j] - corner[e][j]) * (p[i] - corner[e][i]));
        }
        inside = inside && side > 0;
    }
    if (!inside || size <= 0) return best;
    for (k = 0; k < 3; k++) height += n[k] * (p[k] - a[k]);
    return fmin(best, fabs(height) / sqrt(size));
}

static void op_mesh(state *s)
{
    int const c = fz_u8(s->f);
    int32_t const triangles = fz_u8(s->f) % 24, n = fz_u8(s->f) % 24;
    fz_points corners = fz_points_of(s->f, triangles, 9), p = fz_points_of(s->f, n, 3);
    lbvh tree;
    lbvh_desc t;
    nlist list;
    nlist_desc d;
    nlist_mesh mesh;
    int turn;
    int32_t i, k, nan_triangle = fz_first_not_finite(&corners), nan_point;
    memset(&tree, 0, sizeof tree);
    memset(&list, 0, sizeof list);
    memset(&t, 0, sizeof t);
    memset(&d, 0, sizeof d);
    memset(&mesh, 0, sizeof mesh);
    t.kind = LBVH_TRIANGLES;
    d.radius = fz_length(s->f);
    d.history = c & 1 ? 8 : 0;
    d.events = c >> 1 & 1;
    d.layout = c & 4 ? NLIST_DYNAMIC : NLIST_COMPACT;
    mesh.vertices = corners.x;
    mesh.stride = corners.stride;
    mesh.triangles = triangles;
    if (c >= 250) d.layout = NLIST_STATIC;
    if (c == 249) d.skin = -1;
    if (c == 248) mesh.triangles++;
    if (c == 247) d.dim = 2;
    if (lbvh_build(&tree, &t, corners.x, corners.stride, triangles) != LBVH_OK)
        FZ_CHECK(nan_triangle >= 0 || corners.stride_bad);
    for (turn = 0; turn < 3; turn++) {
        volatile real square = d.radius * d.radius;
        fz_codes codes = {0, 0};
        double size = 0;
        nlist_result r;
        nan_point = fz_first_not_finite(&p);
        fz_must(&codes,
                !(d.radius >= 0) || !fz_finite(square) || (d.radius > 0 && square < FZ_MIN) ||
                    (n > 0 && !(square >= FZ_MIN)),
                NLIST_BAD_RADIUS);
        fz_must(&codes, c >= 250, NLIST_BAD_OPTION);
        fz_must(&codes, c == 249, NLIST_BAD_SKIN);
        fz_must(&codes, c == 248 || tree.n != triangles, NLIST_BAD_SOURCE);
        fz_must(&codes, c == 247, NLIST_BAD_DIM);
        fz_must(&codes, p.stride_bad || corners.stride_bad, NLIST_BAD_ARGUMENT);
        fz_must(&codes, nan_point >= 0, NLIST_NOT_FINITE);
        r = nlist_build_mesh(&list, &d, &tree, &mesh, p.x, p.stride, n);
        FZ_TRACE("mesh of %d, n %d radius %g: %s", triangles, n, (double)d.radius,
                 nlist_result_text(r));
        FZ_CHECK_CODE(fz_right(&codes, (int)r), nlist_result_text(r));
        if (r != NLIST_OK) break;
        FZ_CHECK(list.n == n && (n == 0 || list.keys) && nlist_validate(&list) == NLIST_OK);
        for (i = 0; i < triangles; i++)
            for (k = 0; k < 9; k++) size = fmax(size, fabs((double)fz_point(&corners, i)[k]));
        for (i = 0; i < n; i++) {
            nlist_each e = nlist_of(&list, i);
            double nearest = HUGE_VAL, slack;
            double const here = fmax(size, fmax(fabs((double)fz_point(&p, i)[0]),
                                                fmax(fabs((double)fz_point(&p, i)[1]),
                                                     fabs((double)fz_point(&p, i)[2]))));
            int32_t count = 0;
            slack = 1e-3 * (here + (double)d.radius);
            for (k = 0; k < triangles; k++)
                nearest = fmin(nearest, to_triangle(fz_point(&p, i), fz_point(&corners, k)));
            while (nlist_next(&e)) {
                int32_t const triangle = nlist_key_triangle(e.id);
                FZ_CHECK(triangle >= 0 && triangle < triangles && nlist_key_feature(e.id) <= 6);
                if (here < 1e4 && here > 1e-4)
                    FZ_CHECK(to_triangle(fz_point(&p, i), fz_point(&corners, triangle)) <=
                             (double)d.radius + slack);
                if (e.history) memset(e.history, 0x5A, 8);
                count++;
            }
            if (here < 1e4 && nearest < (double)d.radius - slack) FZ_CHECK(count > 0);
            if (here < 1e4 && nearest > (double)d.radius + slack) FZ_CHECK(count == 0);
        }
        for (i = 0; i < n; i++)
            p.x[(size_t)i * (size_t)p.step + (size_t)fz_roll(s->f, 3)] +=
                (real)(0.1 * fz_unit(s->f));
    }
    nlist_free(&list);
    lbvh_free(&tree);
    fz_drop_points(&p);
    fz_drop_points(&corners);
}

static void op_plain(state *s)
{
    nlist_desc d = any_desc(s), out;
    fz_codes codes;
    nlist_result r;
    state none = *s;
    int code;
    memset(&none.list, 0, sizeof none.list);
    codes = codes_of(&none, &d, 1, 0);
    r = nlist_defaults(&out, &d);
    FZ_CHECK_CODE(fz_right(&codes, (int)r), nlist_result_text(r));
    for (code = -1; code <= NLIST_RESULT_COUNT; code++)
        FZ_CHECK(nlist_result_text((nlist_result)code) != NULL);
    FZ_CHECK(nlist_defaults(&out, NULL) == NLIST_BAD_ARGUMENT && nlist_version() > 0);
    nlist_free(NULL);
    if (fz_u8(s->f) & 1) {
        nlist_free(&s->list);
        memset(s->now, 0, sizeof *s->now);
        memset(&s->given, 0, sizeof s->given);
        free(s->pos);
        s->pos = NULL;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fz f = fz_of(data, size);
    state s;
    model *both = (model *)calloc(2, sizeof *both);
    int ops;
    if (!both) abort();
    memset(&s, 0, sizeof s);
    s.f = &f;
    s.now = both;
    s.old = both + 1;
    s.heap[0] = fz_heap_of(HEAP_MOST);
    s.heap[1] = fz_heap_of(HEAP_MOST);
    s.which = fz_below(&f, 3);
    for (ops = 0; ops < OPS && fz_left(&f) > 0; ops++) {
        switch (fz_below(&f, 16)) {
        case 0: case 1: case 2: case 3: op_build(&s); break;
        case 4: case 5: op_pairs_build(&s); break;
        case 6: case 7: op_remap(&s); break;
        case 8: op_moved(&s); break;
        case 9: op_sum(&s); break;
        case 10: op_pairs(&s); break;
        case 11: op_file(&s); break;
        case 12: op_reload(&s); break;
        case 13: op_reserve(&s); break;
        case 14: op_mesh(&s); break;
        default: op_plain(&s);
        }
    }
    nlist_free(&s.list);
    free(s.pos);
    free(both);
    FZ_CHECK(s.heap[0].blocks == 0 && s.heap[1].blocks == 0);
    return 0;
}
