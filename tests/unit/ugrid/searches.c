/* searches.c - a part of test_ugrid.c: every form of search on one grid. Each marks the pairs
   that it met in a table, which one function compares with the oracle. Configurations: every
   build x walk x placement x cell order x records.
   SPDX-License-Identifier: MIT OR Unlicense */

typedef struct config {
    ugrid_method method;
    ugrid_slot_layout layout;
    ugrid_placement placement;
    double size;    /* in cells */
    ugrid_walk walk;
    ugrid_cell_order order;
    int no_records;
} config;

static const char *const method_names[] = {"AUTO", "COUNT", "SORT", "FIXED", "LIST", "LIST_PACKED"};
static const char *const walk_names[] = {"AUTO", "CELLS", "STRIPS", "MODULAR", "HYBRID"};

static int sorting(const config *c) { return c->method == UGRID_COUNT || c->method == UGRID_SORT; }
static int strips(const config *c) { return c->walk == UGRID_STRIPS || c->walk == UGRID_HYBRID; }

/* Which combinations mean something. The header must accept all of these (test_product), and refuse
   those without meaning (test_walk_rules). */
static int sensible(const config *c)
{
    int const tight = c->placement == UGRID_TIGHT;
    if (strips(c) && (!sorting(c) || tight || c->order != UGRID_ROWS)) return 0;
    if (c->method == UGRID_LIST_PACKED && tight) return 0;
    if (c->no_records && (!sorting(c) || tight)) return 0;
    return c->method == UGRID_FIXED || c->layout == UGRID_SLOTS_BY_COLUMN;
}

static config *all_configs(void)
{
    static const double sizes[] = {0 /* LOOSE */, 0.4, 1, 1.7};
    config *list = NULL, c;
    int method, layout, size, walk, order, no_records;
    for (method = UGRID_COUNT; method <= UGRID_LIST_PACKED; method++)
        for (layout = 0; layout < 2; layout++)
            for (size = 0; size < COUNT_OF(sizes); size++)
                for (walk = UGRID_CELLS; walk <= UGRID_HYBRID; walk++)
                    for (order = 0; order < 2; order++)
                        for (no_records = 0; no_records < 2; no_records++) {
                            c.method = (ugrid_method)method;
                            c.layout = (ugrid_slot_layout)layout;
                            c.placement = size ? UGRID_TIGHT : UGRID_LOOSE;
                            c.size = sizes[size];
                            c.walk = (ugrid_walk)walk;
                            c.order = (ugrid_cell_order)order;
                            c.no_records = no_records;
                            if (sensible(&c)) arrput(list, c);
                        }
    return list;
}

/* Without a box there are no strips, and the order of the cells means nothing. */
static int possible(const config *c, const scene *s)
{
    return s->bounds < 8 || (!strips(c) && c->order == UGRID_ROWS);
}

static int32_t split = 1; /* desc.split of every grid: cells are cut into this many along x */

static ugrid_desc desc_of(const scene *s, const config *c)
{
    ugrid_desc d;
    int a;
    memset(&d, 0, sizeof d);
    d.dim = s->dim;
    for (a = 0; a < 3; a++) {
        d.min[a] = s->min[a];
        d.max[a] = s->max[a];
        d.periodic[a] = periodic_axis(s, a);
    }
    d.cell = s->cell;
    d.unbounded = s->bounds >= 8;
    d.buckets = s->bounds == CROWDED ? 4 : 0;
    d.method = c->method;
    d.placement = c->placement;
    d.size = (real)c->size * s->cell;
    d.walk = c->walk;
    d.cell_order = c->order;
    d.slot_layout = c->layout;
    d.slots = s->n > 0 ? s->n : 1;
    d.no_records = c->no_records;
    d.inverse = sorting(c);
    d.split = split;
    return d;
}

static const scene *current_scene;
static const config *current_config;
static int current_radius;

static void describe_case(void)
{
    const scene *s = current_scene;
    const config *c = current_config;
    if (s) print_error("  input %s, n %d, dim %d, bounds %d (8, 9: unbounded; else periodic axes), "
        "cells %d %d %d, radius %.9g (number %d), cell %.9g\n", s->input, (int)s->n, s->dim,
        s->bounds, s->cells[0], s->cells[1], s->cells[2], (double)s->radius[current_radius],
        current_radius, (double)s->cell);
    if (c) print_error("  method %s, slots by %s, %s (size %g cells), walk %s, order %s, "
        "no_records %d\n", method_names[c->method], c->layout ? "row" : "column",
        c->placement ? "TIGHT" : "LOOSE", c->size, walk_names[c->walk],
        c->order ? "MORTON" : "ROWS", c->no_records);
}

/* Builds; in hashed buckets a particle of a TIGHT grid can be entered more than once, so the slots
   may need a second try. */
static void build(ugrid *g, const scene *s, const config *c)
{
    ugrid_desc d = desc_of(s, c);
    ugrid_result r = ugrid_build(g, &d, s->pos, 0, s->n);
    if (r == UGRID_CELL_FULL && d.unbounded && d.placement == UGRID_TIGHT) {
        d.slots = g->needed_slots;
        r = ugrid_build(g, &d, s->pos, 0, s->n);
    }
    CHECK_RESULT(r, UGRID_OK);
    CHECK(g->n == s->n && g->bad_id == -1);
}

/* ------------------------------------------------------------------------------------------------
   One grid against the oracle: each form of search marks what it met in a table
   ---------------------------------------------------------------------------------------------- */

enum {
    /* does (i, j) have to be met from both sides, or from one of the two? */
    FULL = 0, HALF = 1,
    SUPERSET = 0, EXACT = 2,/* may more be met than is within the radius? */
    SELF = 4                /* is (i, i) to be met? */
};

static uint8_t *met;        /* stb_ds: [row * n + id], how often */
static int32_t met_n;

static void begin_marks(int32_t rows, int32_t n)
{
    arrsetlen(met, (size_t)rows * (size_t)n);
    met_n = n;
    if (rows > 0 && n > 0) memset(met, 0, (size_t)rows * (size_t)n);
}

static void mark(int32_t row, int32_t id)
{
    CHECK(id >= 0 && id < met_n);
    CHECK(met[(size_t)row * (size_t)met_n + (size_t)id] < 255);
    met[(size_t)row * (size_t)met_n + (size_t)id]++;
}

static void judge_pair(int truth, int times, int kind)
{
    if (truth == WITHIN) CHECK(times == 1 && "found, and once");
    else if (truth == OUTSIDE && (kind & EXACT)) CHECK(times == 0 && "not found");
    else CHECK(times <= 1 && "met at most once");
}

static void judge(const scene *s, const uint8_t *truth, int kind)
{
    int32_t i, j;
    size_t const n = (size_t)s->n;
    for (i = 0; i < s->n; i++) {
        CHECK(met[(size_t)i * n + (size_t)i] == ((kind & SELF) != 0));
        for (j = 0; j < s->n; j++) {
            int times = met[(size_t)i * n + (size_t)j];
            if (i == j) continue;
            if (kind & HALF) times += met[(size_t)j * n + (size_t)i];
            judge_pair(truth[(size_t)i * n + (size_t)j], times, kind);
        }
    }
}

static void judge_rows(const scene *s, const uint8_t *truth, int32_t rows, int kind)
{
    int32_t q, j;
    for (q = 0; q < rows; q++)
        for (j = 0; j < s->n; j++)
            judge_pair(truth[(size_t)q * (size_t)s->n + (size_t)j],
                met[(size_t)q * (size_t)s->n + (size_t)j], kind);
}

/* What the first exact search of a grid found: all others must find the same, the rim included. */
static uint8_t *agreed;     /* stb_ds */

static void agree(const scene *s, int half)
{
    size_t const n = (size_t)s->n;
    size_t i, j;
    for (i = 0; i < n; i++)
        for (j = i + 1; j < n; j++) {
            CHECK(agreed[i * n + j] == agreed[j * n + i] && "i sees j and j sees i");
            if (half) CHECK(met[i * n + j] + met[j * n + i] == agreed[i * n + j]);
            else CHECK(met[i * n + j] == agreed[i * n + j] && met[j * n + i] == agreed[j * n + i]);
        }
}

/* ---- iterators ---- */

static void meet(const ugrid *g, int32_t row, ugrid_near *near)
{
    while (ugrid_next(near)) {
        CHECK(near->place >= 0 && near->place < g->n && ugrid_id(g, near->place) == near->id);
        mark(row, near->id);
    }
    CHECK(!ugrid_next(near)); /* it stays at its end */
}

static void check_near_within(const ugrid *g, const scene *s, int k)
{
    int32_t place, q;
    begin_marks(s->n, s->n);
    for (place = 0; place < s->n; place++) {
        ugrid_near near = ugrid_near_within(g, s->pos + ugrid_id(g, place) * s->dim, s->radius[k]);
        meet(g, ugrid_id(g, place), &near);
    }
    judge(s, s->truth[k], FULL | SUPERSET | SELF);
    begin_marks(s->m, s->n);
    for (q = 0; q < s->m; q++) {
        ugrid_near near = ugrid_near_within(g, s->query + q * s->dim, s->radius[k]);
        meet(g, q, &near);
    }
    judge_rows(s, s->truth_at[k], s->m, SUPERSET);
}

static void check_near_place(const ugrid *g, const scene *s, int k)
{
    int32_t place;
    begin_marks(s->n, s->n);
    for (place = 0; place < s->n; place++) {
        ugrid_near near = ugrid_near_place(g, place, s->radius[k]);
        meet(g, ugrid_id(g, place), &near);
    }
    judge(s, s->truth[k], FULL | SUPERSET);
}

static void check_near_half(const ugrid *g, const scene *s, int k)
{
    int32_t place;
    begin_marks(s->n, s->n);
    for (place = 0; place < s->n; place++) {
        ugrid_near near = ugrid_near_half(g, place, s->radius[k]);
        meet(g, ugrid_id(g, place), &near);
    }
    judge(s, s->truth[k], HALF | SUPERSET);
}

/* The ranges of a walk are the same places in the same order. A grid without ranges says so. */
static void check_ranges(const ugrid *g, const scene *s, int k)
{
    int32_t place, at;
    int half;
    CHECK(ugrid_has_ranges(g) ==
        (s->n > 0 && g->start && g->desc.placement == UGRID_LOOSE && !g->desc.unbounded));
    for (place = 0; place < s->n; place++) {
        for (half = 0; half < 2; half++) {
            ugrid_near one = half ? ugrid_near_half(g, place, s->radius[k]) :
                ugrid_near_place(g, place, s->radius[k]);
            ugrid_near range = one;
            if (!ugrid_has_ranges(g)) {
                CHECK(!ugrid_next_range(&range));
                return;
            }
            while (ugrid_next_range(&range)) {
                CHECK(0 <= range.begin && range.begin < range.end && range.end <= g->n);
                for (at = range.begin; at < range.end; at++)
                    if (at != place) CHECK(ugrid_next(&one) && one.place == at);
            }
            CHECK(!ugrid_next(&one) && !ugrid_next_range(&range));
        }
    }
}

static void check_iterators(const ugrid *g, const scene *s, int k)
{
    check_near_within(g, s, k);
    check_near_place(g, s, k);
    check_near_half(g, s, k);
    check_ranges(g, s, k);
}

/* ---- lists ---- */

typedef struct lists { int64_t *offsets; int32_t *ids; int64_t needed; } lists;

static void free_lists(lists *l)
{
    free(l->offsets);
    free(l->ids);
}

/* The list into a buffer that has room for more. */
static lists get_lists(const ugrid *g, real radius, int flags)
{
    lists l;
    int64_t const room = (int64_t)g->n * g->n;
    l.needed = -1;
    l.offsets = NEW(int64_t, g->n + 1);
    l.ids = NEW(int32_t, room);
    CHECK_RESULT(ugrid_neighbors(g, radius, flags, l.offsets, l.ids, room, &l.needed), UGRID_OK);
    CHECK(l.needed == l.offsets[g->n] && l.offsets[0] == 0);
    return l;
}

/* The same list again: count only, into a buffer that is exactly full, and into one that is one
   short. */
static void check_buffers(const ugrid *g, real radius, int flags, const lists *l)
{
    int64_t *offsets = NEW(int64_t, g->n + 1), needed = -1;
    int32_t *ids = NEW(int32_t, l->needed), *fewer = NEW(int32_t, l->needed - (l->needed > 0)),
        row = 0;
    size_t const bytes = sizeof *offsets * ((size_t)g->n + 1);
    CHECK_RESULT(ugrid_neighbors(g, radius, flags, offsets, NULL, 0, &needed),
        l->needed ? UGRID_BUFFER_TOO_SMALL : UGRID_OK);
    CHECK(needed == l->needed && memcmp(l->offsets, offsets, bytes) == 0);
    memset(offsets, 0xA5, bytes);
    CHECK_RESULT(ugrid_neighbors(g, radius, flags, offsets, ids, needed, &needed), UGRID_OK);
    CHECK(needed == l->needed && memcmp(l->offsets, offsets, bytes) == 0);
    CHECK(memcmp(l->ids, ids, sizeof *ids * (size_t)needed) == 0);
    memset(offsets, 0xA5, bytes);
    if (needed > 0) {
        CHECK_RESULT(ugrid_neighbors(g, radius, flags, offsets, fewer, needed - 1, &needed),
            UGRID_BUFFER_TOO_SMALL);
        CHECK(needed == l->needed && memcmp(l->offsets, offsets, bytes) == 0);
        while (row < g->n && offsets[row + 1] < needed) row++;
        CHECK(memcmp(l->ids, fewer, sizeof *fewer * (size_t)offsets[row]) == 0 &&
            "the rows that fit whole are there");
    }
    free(fewer);
    free(ids);
    free(offsets);
}

/* In a half list each pair stands in the row that near_half promises. */
static void check_half_row(const ugrid *g, int32_t row, int32_t other)
{
    real p[3], q[3];
    int sorted = g->start && g->desc.placement == UGRID_LOOSE;
    if (sorted || g->desc.placement == UGRID_TIGHT) {
        CHECK(row < other);
        return;
    }
    ugrid_point(g, row, p);
    ugrid_point(g, other, q);
    CHECK(ugrid_cell_at(g, p) < ugrid_cell_at(g, q) ||
        (ugrid_cell_at(g, p) == ugrid_cell_at(g, q) && row < other));
}

static void check_list(const ugrid *g, const scene *s, int k, int flags)
{
    lists l = get_lists(g, s->radius[k], flags);
    int32_t *place_of = NEW(int32_t, s->n);
    int32_t row, place;
    int64_t e;
    int const half = (flags & UGRID_HALF) != 0, places = (flags & UGRID_PLACES) != 0;
    for (place = 0; place < s->n; place++) place_of[ugrid_id(g, place)] = place;
    begin_marks(s->n, s->n);
    for (row = 0; row < s->n; row++) {
        CHECK(l.offsets[row] <= l.offsets[row + 1]);
        for (e = l.offsets[row]; e < l.offsets[row + 1]; e++) {
            int32_t const other = l.ids[e];
            CHECK(other >= 0 && other < s->n);
            mark(places ? ugrid_id(g, row) : row, places ? ugrid_id(g, other) : other);
            if (half)
                check_half_row(g, places ? row : place_of[row], places ? other : place_of[other]);
        }
    }
    judge(s, s->truth[k], EXACT | (half ? HALF : FULL));
    if (flags == 0) {
        arrsetlen(agreed, arrlenu(met));
        if (arrlenu(met)) memcpy(agreed, met, arrlenu(met));
    }
    if (s->inside) agree(s, half);
    if (roll(3) == 0) check_buffers(g, s->radius[k], flags, &l);
    free(place_of);
    free_lists(&l);
}

static int32_t row_sum(const scene *s, int32_t id)
{
    int32_t j, sum = 0;
    for (j = 0; j < s->n; j++) sum += met[(size_t)id * (size_t)s->n + (size_t)j];
    return sum;
}

/* Counts against the list with the same flags, which is in `met`. */
static void check_counts(const ugrid *g, const scene *s, int k, int flags)
{
    int32_t *counts = NEW(int32_t, s->n);
    int32_t i;
    CHECK_RESULT(ugrid_count_neighbors(g, s->radius[k], flags, counts), UGRID_OK);
    for (i = 0; i < s->n; i++)
        CHECK(counts[i] == row_sum(s, flags & UGRID_PLACES ? ugrid_id(g, i) : i));
    free(counts);
}

/* ---- pairs ---- */

typedef struct pair_log { int64_t calls, stop_after; } pair_log;

static int log_pair(void *user, int32_t i, int32_t j)
{
    pair_log *log = (pair_log *)user;
    CHECK(i >= 0 && i < met_n && i != j);
    mark(i, j);
    return ++log->calls == log->stop_after;
}

static void check_pairs(const ugrid *g, const scene *s, int k)
{
    pair_log full = {0, -1}, half = {0, -1}, stopped = {0, 1};
    int64_t pairs = -1;
    begin_marks(s->n, s->n);
    CHECK_RESULT(ugrid_each_pair(g, s->radius[k], 0, log_pair, &full), UGRID_OK);
    judge(s, s->truth[k], FULL | EXACT);
    if (s->inside) agree(s, 0);
    begin_marks(s->n, s->n);
    CHECK_RESULT(ugrid_each_pair(g, s->radius[k], UGRID_HALF, log_pair, &half), UGRID_OK);
    judge(s, s->truth[k], HALF | EXACT);
    if (s->inside) agree(s, 1);
    CHECK_RESULT(ugrid_count_pairs(g, s->radius[k], &pairs), UGRID_OK);
    CHECK(pairs == half.calls);
    if (s->inside) CHECK(2 * pairs == full.calls);
    if (pairs == 0) return;
    stopped.stop_after = 1 + pairs / 2;
    CHECK_RESULT(ugrid_each_pair(g, s->radius[k], UGRID_HALF, log_pair, &stopped), UGRID_STOPPED);
    CHECK(stopped.calls == stopped.stop_after && "not called again after it said stop");
}

/* ---- query points ---- */

/* One point: exactly full, one short, and no room at all. */
static void check_query(const ugrid *g, const scene *s, int k, int32_t q)
{
    const real *p = s->query + q * s->dim;
    int32_t found = -1, again = -1, *ids, e;
    ugrid_result const r = ugrid_query(g, p, s->radius[k], NULL, 0, &found);
    CHECK(r == (found > 0 ? UGRID_BUFFER_TOO_SMALL : UGRID_OK));
    ids = NEW(int32_t, found);
    CHECK_RESULT(ugrid_query(g, p, s->radius[k], ids, found, &again), UGRID_OK);
    CHECK(again == found);
    for (e = 0; e < found; e++) mark(q, ids[e]);
    if (found > 0) {
        CHECK_RESULT(ugrid_query(g, p, s->radius[k], ids, found - 1, &again),
            UGRID_BUFFER_TOO_SMALL);
        CHECK(again == found);
    }
    free(ids);
}

static void check_queries(const ugrid *g, const scene *s, int k)
{
    int32_t q;
    begin_marks(s->m, s->n);
    for (q = 0; q < s->m; q++) {
        const real last = s->query[(q + 1) * s->dim - 1];
        if (last == last) check_query(g, s, k, q);
    }
    judge_rows(s, s->truth_at[k], s->m, EXACT);
}

static void check_neighbors_at(const ugrid *g, const scene *s, int k)
{
    int64_t *offsets = NEW(int64_t, s->m + 1), needed = -1, again = -1, e;
    int32_t *ids, q;
    CHECK_RESULT(ugrid_neighbors_at(g, s->query, 0, s->m, s->radius[k], offsets, NULL, 0, &needed),
                 needed > 0 ? UGRID_BUFFER_TOO_SMALL : UGRID_OK);
    ids = NEW(int32_t, needed);
    CHECK_RESULT(ugrid_neighbors_at(g, s->query, 0, s->m, s->radius[k], offsets, ids, needed,
        &again), UGRID_OK);
    CHECK(again == needed && offsets[0] == 0 && offsets[s->m] == needed);
    begin_marks(s->m, s->n);
    for (q = 0; q < s->m; q++) for (e = offsets[q]; e < offsets[q + 1]; e++) mark(q, ids[e]);
    judge_rows(s, s->truth_at[k], s->m, EXACT);
    if (needed > 0) {
        int32_t *fewer = NEW(int32_t, needed - 1);
        CHECK_RESULT(ugrid_neighbors_at(g, s->query, 0, s->m, s->radius[k], offsets, fewer,
            needed - 1, &again), UGRID_BUFFER_TOO_SMALL);
        CHECK(again == needed && offsets[s->m] == needed &&
            memcmp(ids, fewer, sizeof *ids * (size_t)(needed - 1)) == 0);
        free(fewer);
    }
    free(ids);
    free(offsets);
}

/* ---- stb_ds forms ---- */

static void check_stb(const ugrid *g, const scene *s, int k)
{
    ugrid_pair *pairs = NULL;
    int32_t *hits = NULL, q;
    ptrdiff_t e;
    begin_marks(s->m, s->n);
    for (q = 0; q < s->m; q++) {
        ptrdiff_t const from = arrlen(hits); /* it appends */
        real const last = s->query[(q + 1) * s->dim - 1];
        CHECK_RESULT(ugrid_arr_within(g, s->query + q * s->dim, s->radius[k], &hits),
            last == last ? UGRID_OK : UGRID_NOT_FINITE);
        for (e = from; e < arrlen(hits); e++) mark(q, hits[e]);
    }
    judge_rows(s, s->truth_at[k], s->m, EXACT);
    begin_marks(s->n, s->n);
    CHECK_RESULT(ugrid_arr_pairs(g, s->radius[k], &pairs), UGRID_OK);
    for (e = 0; e < arrlen(pairs); e++) mark(pairs[e].i, pairs[e].j);
    judge(s, s->truth[k], HALF | EXACT);
    if (s->inside) agree(s, 1);
    arrfree(hits);
    arrfree(pairs);
}

/* The full list is always checked, because the rest has to agree with it; of what shares its code,
   some by lot. */
static void check_searches(const ugrid *g, const scene *s, int k)
{
    int const flags = 1 + roll(3);
    check_list(g, s, k, 0);
    if (roll(2)) check_counts(g, s, k, 0);
    check_list(g, s, k, flags);
    if (roll(2)) check_counts(g, s, k, flags);
    if (roll(2)) check_pairs(g, s, k);
    else check_stb(g, s, k);
    check_queries(g, s, k);
    check_neighbors_at(g, s, k);
}

static void check_grid(ugrid *g, const scene *s, const config *c)
{
    int k;
    current_scene = s;
    current_config = c;
    build(g, s, c);
    CHECK_RESULT(ugrid_validate(g), UGRID_OK);
    for (k = 0; k < s->radii; k++) {
        current_radius = k;
        check_iterators(g, s, k);
        check_searches(g, s, k);
    }
}
