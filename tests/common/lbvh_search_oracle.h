/* lbvh_search_oracle.h - the second half of lbvh_oracle.h, which includes it: every search of
   lbvh.h (overlaps, distances, nearest elements, rays, pairs, lists) against brute force over the
   elements.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef LBVH_SEARCH_ORACLE_H
#define LBVH_SEARCH_ORACLE_H

WL_FN int touch(const box *a, const box *b, int dim)
{
    int x;
    for (x = 0; x < dim; x++) {
        if (!(a->min[x] <= a->max[x] && b->min[x] <= b->max[x])) return 0;
        if (a->max[x] < b->min[x] || b->max[x] < a->min[x]) return 0;
    }
    return 1;
}

/* Squared distance from p to a box: per axis 0 inside, else how far; every operation rounded, x
   first. */
WL_FN real distance2_by_hand(const box *b, const real *p, int dim)
{
    real d[3] = {0, 0, 0}, square;
    int a;
    for (a = 0; a < dim; a++)
        d[a] = p[a] < b->min[a] ? b->min[a] - p[a] : p[a] > b->max[a] ? p[a] - b->max[a] : 0;
    square = d[0] * d[0];
    square = square + d[1] * d[1];
    square = square + d[2] * d[2];
    return square;
}

/* Is the box within the radius? The rounded rule, and a look whether it is off by more than
   rounding. */
WL_FN int within(const box *b, const real *p, real radius, int dim)
{
    long double square = 0, slack, distance;
    int a, hit;
    for (a = 0; a < dim; a++) {
        long double const low = (long double)b->min[a] - (long double)p[a],
            high = (long double)p[a] - (long double)b->max[a];
        long double const d = low > 0 ? low : high > 0 ? high : 0;
        square += d * d;
    }
    for (a = 0; a < dim; a++)
        if (!(fabsl((long double)p[a]) <= (long double)REAL_LARGEST)) return 0;
    if (is_out(b) || !(radius >= 0)) return 0;
    hit = distance2_by_hand(b, p, dim) <= radius * radius;
    distance = sqrtl(square);
    slack = 8 * (long double)REAL_EPSILON * (distance + (long double)radius);
    if (distance < (long double)radius - slack) CHECK(hit);
    if (distance > (long double)radius + slack) CHECK(!hit);
    return hit;
}

WL_FN int passes(const scene *s, int32_t id, uint32_t filter)
{
    return !s->masks || (s->masks[id] & filter) != 0;
}

static uint8_t *wanted; /* stb_ds: by id, to be found once */

WL_FN void want_nothing(const scene *s)
{
    arrsetlen(wanted, (size_t)s->n + 1);
    memset(wanted, 0, (size_t)s->n + 1);
}

WL_FN void want_touching(const scene *s, const box *q, uint32_t filter)
{
    int32_t i;
    want_nothing(s);
    for (i = 0; i < s->n; i++)
        wanted[i] = (uint8_t)(touch(&s->truth[i], q, s->dim) && passes(s, i, filter));
}

WL_FN void want_within(const scene *s, const real *p, real radius, uint32_t filter)
{
    int32_t i;
    want_nothing(s);
    for (i = 0; i < s->n; i++)
        wanted[i] = (uint8_t)(within(&s->truth[i], p, radius, s->dim) && passes(s, i, filter));
}

/* The walk finds all that is wanted, once, by ascending place, and stays at its end. Returns how
   many. */
WL_FN int32_t check_walk(const scene *s, lbvh_overlap o)
{
    int32_t found = 0, before = -1, i;
    while (lbvh_next(&o)) {
        CHECK(o.place > before && o.place < s->n &&
            o.tree->node[o.tree->first_leaf + o.place].link == o.id);
        CHECK(o.id >= 0 && o.id < s->n && wanted[o.id] == 1);
        wanted[o.id] = 0;
        before = o.place;
        found++;
    }
    CHECK(!lbvh_next(&o));
    for (i = 0; i < s->n; i++) CHECK(wanted[i] == 0 && "nothing was missed");
    return found;
}

WL_FN int32_t check_box(const lbvh *t, const scene *s, const box *q, uint32_t filter)
{
    real given[6];
    lbvh_overlap o;
    int32_t found;
    int a;
    for (a = 0; a < s->dim; a++) given[a] = q->min[a], given[s->dim + a] = q->max[a];
    want_touching(s, q, filter);
    o = lbvh_overlap_box(t, given);
    o.filter = filter;
    found = check_walk(s, o);
    want_touching(s, q, filter);
    o = lbvh_overlap_between(t, q->min, q->max);
    o.filter = filter;
    CHECK(check_walk(s, o) == found);
    return found;
}

WL_FN void check_point(const lbvh *t, const scene *s, const real *p, uint32_t filter)
{
    box q;
    lbvh_overlap o = lbvh_overlap_point(t, p);
    memcpy(q.min, p, sizeof(real) * (size_t)s->dim);
    memcpy(q.max, p, sizeof(real) * (size_t)s->dim);
    o.filter = filter;
    want_touching(s, &q, filter);
    check_walk(s, o);
}

WL_FN int32_t check_sphere(const lbvh *t, const scene *s, const real *p, real radius,
    uint32_t filter)
{
    lbvh_overlap o = lbvh_overlap_sphere(t, p, radius);
    o.filter = filter;
    want_within(s, p, radius, filter);
    return check_walk(s, o);
}

/* A number somewhere around the elements: among them, on a border of a box, or one bit beside
   it. */
WL_FN real interesting_number(const scene *s, int a)
{
    const box *b = s->n ? &s->truth[roll(s->n)] : NULL;
    if (!b || is_out(b)) return between(-2, 2);
    switch (roll(4)) {
    case 0: return beside(b->min[a], roll(3) - 1);
    case 1: return beside(b->max[a], roll(3) - 1);
    case 2: return b->min[a] + (b->max[a] - b->min[a]) * (real)wl_u(&dice) +
        between((real)-0.1, (real)0.1);
    default: return b->min[a] + between(-1, 1);
    }
}

/* The numbers beside 0 have squares that are not normal and inverses that are infinite. */
WL_FN real interesting(const scene *s, int a)
{
    real const x = interesting_number(s, a);
    return fabs((double)x) < 1e-15 ? 0 : x;
}

WL_FN void interesting_point(const scene *s, real p[3])
{
    int a;
    for (a = 0; a < 3; a++) p[a] = interesting(s, a);
}

WL_FN uint32_t some_filter(void) { return roll(2) ? 0xFFFFFFFFu : (uint32_t)1 << roll(5); }

WL_FN void check_searches(const lbvh *t, const scene *s, int count)
{
    while (count-- > 0) {
        box q;
        real p[3];
        int a;
        interesting_point(s, p);
        for (a = 0; a < 3; a++) {
            real const x = interesting(s, a);
            q.min[a] = x < p[a] ? x : p[a];
            q.max[a] = x < p[a] ? p[a] : x;
            if (roll(12) == 0) q.min[a] = -REAL_INFINITY;
            if (roll(12) == 0) q.max[a] = REAL_INFINITY;
        }
        check_box(t, s, &q, some_filter());
        check_point(t, s, p, some_filter());
        check_sphere(t, s, p, (real)pow(10, 1.5 - 4 * (double)wl_u(&dice)), some_filter());
        if (s->n) { /* the sphere that just reaches an element, and the box that is one */
            const box *b = &s->truth[roll(s->n)];
            real const d2 = distance2_by_hand(b, p, s->dim);
            if (!is_out(b)) check_sphere(t, s, p, (real)sqrt((double)d2), some_filter());
            check_box(t, s, b, some_filter());
        }
    }
}

/* ---- nearest ---- */

typedef struct near_one { int32_t id; real d2; } near_one;

WL_FN int nearer(const void *left, const void *right)
{
    const near_one *a = (const near_one *)left, *b = (const near_one *)right;
    if (a->d2 != b->d2) return a->d2 < b->d2 ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* A distance of the caller's own: to the centre of the box. Never less than that to the box, as the
   manual asks. */
WL_FN real to_centre(void *user, int32_t id, const real *p)
{
    const scene *s = (const scene *)user;
    const box *b = &s->truth[id];
    box centre = {{0, 0, 0}, {0, 0, 0}};
    int a;
    for (a = 0; a < s->dim; a++)
        centre.min[a] = centre.max[a] = b->min[a] + (b->max[a] - b->min[a]) / 2;
    return distance2_by_hand(&centre, p, s->dim);
}

/* All within the reach, sorted. */
WL_FN near_one *nearest_by_hand(const scene *s, const real *p, real reach, int own_distance)
{
    near_one *list = NULL, one;
    int32_t i;
    real const reach2 = reach * reach > REAL_LARGEST ? REAL_LARGEST : reach * reach;
    for (i = 0; i < s->n; i++) {
        if (is_out(&s->truth[i]) || !passes(s, i, 0xFFFFFFFFu)) continue;
        one.id = i;
        one.d2 = own_distance ? to_centre((void *)(size_t)s, i, p) :
            distance2_by_hand(&s->truth[i], p, s->dim);
        if (one.d2 <= reach2) arrput(list, one);
    }
    if (arrlen(list) > 1) qsort(list, (size_t)arrlen(list), sizeof *list, nearer);
    return list;
}

WL_FN void check_nearest(const lbvh *t, const scene *s, const real *p, int32_t k, real reach,
    int own_distance)
{
    near_one *want = nearest_by_hand(s, p, reach, own_distance);
    int32_t const most = arrlen(want) < k ? (int32_t)arrlen(want) : k;
    int32_t *ids = NEW(int32_t, k), found = -7, i;
    real *d2 = NEW(real, k);
    CHECK_RESULT(lbvh_nearest(t, p, k, reach, own_distance ? to_centre : NULL, (void *)(size_t)s,
        ids, d2, &found), LBVH_OK);
    CHECK(found == most);
    for (i = 0; i < most; i++) CHECK(ids[i] == want[i].id && d2[i] == want[i].d2);
    free(ids);
    free(d2);
    arrfree(want);
}

/* The walk itself, its reach left as it is: everything within it, with the distances; never further
   than asked. */
WL_FN void check_near_walk(const lbvh *t, const scene *s, const real *p, real reach,
    uint32_t filter)
{
    lbvh_near walk = lbvh_near_point(t, p, reach);
    real const reach2 = reach * reach > REAL_LARGEST ? REAL_LARGEST : reach * reach;
    int32_t i;
    want_nothing(s);
    for (i = 0; i < s->n; i++)
        wanted[i] = (uint8_t)(!is_out(&s->truth[i]) && passes(s, i, filter) &&
                              distance2_by_hand(&s->truth[i], p, s->dim) <= reach2);
    walk.filter = filter;
    while (lbvh_next_near(&walk)) {
        CHECK(walk.id >= 0 && walk.id < s->n && wanted[walk.id] == 1 &&
            t->node[t->first_leaf + walk.place].link == walk.id);
        CHECK(walk.distance2 == distance2_by_hand(&s->truth[walk.id], p, s->dim) &&
            walk.top < LBVH_STACK);
        wanted[walk.id] = 0;
    }
    CHECK(!lbvh_next_near(&walk));
    for (i = 0; i < s->n; i++) CHECK(wanted[i] == 0);
}

WL_FN void check_nears(const lbvh *t, const scene *s, int count)
{
    static const int32_t ks[] = {1, 2, 7, 40};
    while (count-- > 0) {
        real p[3], reach = roll(2) ? REAL_INFINITY : (real)pow(10, 1 - 3 * (double)wl_u(&dice));
        interesting_point(s, p);
        check_nearest(t, s, p, ks[roll(COUNT_OF(ks))], reach, roll(2));
        check_near_walk(t, s, p, reach, some_filter());
    }
}

/* ---- rays ---- */

enum { MISSED, GRAZED, MET };

/* Where the ray is in the box, in long double. Met when it truly is; missed when by more than
   rounding. */
WL_FN int slab(const scene *s, int32_t i, const real *o, const real *d, real t_max,
    long double *enters)
{
    const box *b = &s->truth[i];
    long double in = 0, out = (long double)t_max, slack;
    int a;
    *enters = 0;
    if (is_out(b)) return MISSED;
    for (a = 0; a < s->dim; a++) {
        long double const low = (long double)b->min[a] - (long double)o[a],
            high = (long double)b->max[a] - (long double)o[a];
        long double near_end, far_end;
        if (!(d[a] > 0) && !(d[a] < 0)) {
            if (low > 0 || high < 0) return MISSED;
            continue;
        }
        near_end = (d[a] > 0 ? low : high) / (long double)d[a];
        far_end = (d[a] > 0 ? high : low) / (long double)d[a];
        if (near_end > in) in = near_end;
        if (far_end < out) out = far_end;
    }
    *enters = in;
    slack = 12 * (long double)REAL_EPSILON * (fabsl(in) + fabsl(out));
    return in <= out ? MET : in <= out + slack ? GRAZED : MISSED;
}

/* All boxes along the ray, the closest by shrinking t_max, and whether there is any. */
WL_FN void check_ray(const lbvh *t, const scene *s, const real *o, const real *d, real t_max,
    uint32_t filter)
{
    lbvh_ray ray = lbvh_ray_cast(t, o, d, t_max);
    real least = REAL_INFINITY, closest = REAL_INFINITY;
    long double const tiny = IS_FLOAT ? 1e-37L : 1e-300L; /* where numbers have fewer digits */
    uint8_t *found = NEW(uint8_t, s->n);
    int32_t i, any = 0;
    memset(found, 0, (size_t)s->n);
    ray.filter = filter;
    ray.t_max = t_max; /* infinity too is the caller's to set */
    while (lbvh_next_ray(&ray)) {
        long double enters;
        CHECK(ray.id >= 0 && ray.id < s->n && !found[ray.id] &&
            t->node[t->first_leaf + ray.place].link == ray.id);
        CHECK(passes(s, ray.id, filter) && slab(s, ray.id, o, d, t_max, &enters) != MISSED);
        CHECK(ray.t >= 0 && ray.t <= t_max && fabsl((long double)ray.t - enters) <= 4 *
            (long double)REAL_EPSILON * enters + tiny);
        found[ray.id] = 1;
        if (ray.t < least) least = ray.t;
        any = 1;
    }
    CHECK(!lbvh_next_ray(&ray));
    for (i = 0; i < s->n; i++) {
        long double enters;
        if (slab(s, i, o, d, t_max, &enters) == MET && passes(s, i, filter))
            CHECK(found[i] && "no box slips through");
    }
    ray = lbvh_ray_cast(t, o, d, t_max);
    ray.filter = filter;
    while (lbvh_next_ray(&ray)) {
        CHECK(ray.t <= closest);
        ray.t_max = closest = ray.t;
    }
    CHECK(closest == (any ? least : REAL_INFINITY));
    free(found);
}

WL_FN void check_rays(const lbvh *t, const scene *s, int count)
{
    while (count-- > 0) {
        real o[3], d[3], to[3];
        int const kind = roll(6);
        int a;
        interesting_point(s, o);
        interesting_point(s, to);
        for (a = 0; a < 3; a++) {
            d[a] = to[a] - o[a]; /* often exactly at a corner */
            if (kind == 1) d[a] = 0;
            /* along the axes and diagonals, often in a face */
            if (kind == 2) d[a] = (real)(roll(3) - 1);
            if (kind == 3 && roll(2)) d[a] = roll(2) ? (real)0 : -(real)0;
            if (kind == 4) d[a] = (real)(1 << roll(10)) * (real)(roll(3) - 1);
        }
        check_ray(t, s, o, d, roll(3) ? REAL_INFINITY : (real)(2 * wl_u(&dice)), some_filter());
    }
}

/* ---- pairs ---- */

typedef struct pair_log { int64_t calls, stop_at; int32_t *ids; } pair_log;

WL_FN int log_pair(void *user, int32_t i, int32_t j)
{
    pair_log *log = (pair_log *)user;
    log->calls++;
    arrput(log->ids, i);
    arrput(log->ids, j);
    return log->calls == log->stop_at;
}

/* Places by id. */
WL_FN int32_t *places_of(const lbvh *t)
{
    int32_t *place = NEW(int32_t, t->n), k;
    for (k = 0; k < t->n; k++) place[t->node[t->first_leaf + k].link] = k;
    return place;
}

/* Pairs by brute force, in the order that the manual states: by the first's place, then the
   second's. */
WL_FN int32_t *pairs_by_hand(const lbvh *t, const scene *s)
{
    int32_t *list = NULL, i, j;
    for (i = 0; i < s->n; i++) for (j = i + 1; j < s->n; j++) {
        int32_t const p = t->node[t->first_leaf + i].link, q = t->node[t->first_leaf + j].link;
        if (!touch(&s->truth[p], &s->truth[q], s->dim) ||
            (s->masks && !(s->masks[p] & s->masks[q])))
            continue;
        arrput(list, p);
        arrput(list, q);
    }
    return list;
}

WL_FN void check_pairs(const lbvh *t, const scene *s)
{
    int32_t *want = pairs_by_hand(t, s), *stb = NULL;
    int64_t const count = arrlen(want) / 2;
    int64_t pairs = -1, needed = -1;
    int32_t *got = NEW(int32_t, 2 * count + 2);
    pair_log log = {0, 0, NULL};
    CHECK_RESULT(lbvh_count_pairs(t, &pairs), LBVH_OK);
    CHECK(pairs == count);
    CHECK_RESULT(lbvh_pairs(t, got, count, &needed), LBVH_OK);
    CHECK(needed == count && same(got, want, (size_t)count * 8) &&
        got[2 * count] == (int32_t)0xA5A5A5A5u);
    CHECK_RESULT(lbvh_each_pair(t, log_pair, &log), LBVH_OK);
    CHECK(log.calls == count && same(log.ids, want, (size_t)count * 8));
    lbvh_arr_pairs(t, &stb);
    CHECK(arrlen(stb) == 2 * count && same(stb, want, (size_t)count * 8));
    if (count > 0) {
        int64_t const room = roll((int)count);
        memset(got, 0xA5, (size_t)(2 * count + 2) * sizeof *got);
        CHECK_RESULT(lbvh_pairs(t, got, room, &needed), LBVH_BUFFER_TOO_SMALL);
        CHECK(needed == count && same(got, want, (size_t)room * 8) &&
            got[2 * room] == (int32_t)0xA5A5A5A5u);
        CHECK_RESULT(lbvh_pairs(t, NULL, 0, &needed), LBVH_BUFFER_TOO_SMALL);
        CHECK(needed == count);
        log.calls = 0;
        log.stop_at = 1 + room;
        CHECK_RESULT(lbvh_each_pair(t, log_pair, &log), LBVH_STOPPED);
        CHECK(log.calls == 1 + room);
    }
    free(got);
    arrfree(want);
    arrfree(stb);
    arrfree(log.ids);
}

/* ---- lists ---- */

/* The rows that a lbvh_queries ought to give, in one array behind another. */
WL_FN void rows_by_hand(const lbvh *t, const scene *s, const lbvh_queries *q, int64_t *offsets,
    int32_t **ids)
{
    int const own = !q->data, dim = s->dim;
    int32_t const rows = own ? s->n : q->n;
    int32_t *place = places_of(t), row, k;
    for (row = 0; row < rows; row++) {
        int32_t const id = own && (q->flags & LBVH_PLACES) ? t->node[t->first_leaf + row].link :
            row;
        uint32_t const own_mask = own && s->masks ? s->masks[id] : 0xFFFFFFFFu;
        uint32_t const filter = (q->filters ? q->filters[id] : q->filter ? q->filter :
            0xFFFFFFFFu) & own_mask;
        const real *x = own ? NULL : q->data + (size_t)row * (q->stride / sizeof(real));
        real p[3] = {0, 0, 0}, radius = q->radius;
        box b = own ? s->truth[id] : s->truth[0];
        int a;
        for (a = 0; a < dim; a++) {
            if (!own && q->kind == LBVH_BOXES) b.min[a] = x[a], b.max[a] = x[dim + a];
            p[a] = own ? 2 * (b.min[a] * (real)0.25 + b.max[a] * (real)0.25) : x[a];
        }
        if (!own && q->kind == LBVH_SPHERES) radius = x[dim];
        offsets[row] = arrlen(*ids);
        for (k = 0; k < s->n; k++) {
            int32_t const other = t->node[t->first_leaf + k].link;
            if (own && (other == id || ((q->flags & LBVH_HALF) && k < place[id]) ||
                is_out(&s->truth[id])))
                continue;
            if (!passes(s, other, filter)) continue;
            if (q->kind == LBVH_BOXES ? !touch(&b, &s->truth[other], dim) :
                !within(&s->truth[other], p, radius, dim))
                continue;
            arrput(*ids, q->flags & LBVH_PLACES ? k : other);
        }
    }
    offsets[rows] = arrlen(*ids);
    free(place);
}

/* Counts and lists, whole and into too little room. */
WL_FN void check_rows(const lbvh *t, const scene *s, const lbvh_queries *q)
{
    int32_t const rows = q->data ? q->n : s->n;
    int64_t *want_offsets = NEW(int64_t, rows + 1), *offsets = NEW(int64_t, rows + 2), needed = -1,
        total, room;
    int32_t *want = NULL, *ids, *counts = NEW(int32_t, rows + 1), row;
    rows_by_hand(t, s, q, want_offsets, &want);
    total = arrlen(want);
    CHECK_RESULT(lbvh_count_overlaps(t, q, counts), LBVH_OK);
    for (row = 0; row < rows; row++)
        CHECK(counts[row] == want_offsets[row + 1] - want_offsets[row]);
    CHECK(counts[rows] == (int32_t)0xA5A5A5A5u);
    for (room = total; room >= 0; room = room == 0 ? -1 : room == total && total > 1 ?
            (int64_t)roll((int)total) : 0) {
        ids = NEW(int32_t, room + 1);
        memset(offsets, 0xA5, sizeof *offsets * (size_t)(rows + 2));
        CHECK_RESULT(lbvh_overlaps(t, q, offsets, room ? ids : NULL, room, &needed),
                     room < total ? LBVH_BUFFER_TOO_SMALL : LBVH_OK);
        CHECK(needed == total && same(offsets, want_offsets, sizeof *offsets * (size_t)(rows + 1)));
        CHECK(offsets[rows + 1] == (int64_t)0xA5A5A5A5A5A5A5A5u &&
            ids[room] == (int32_t)0xA5A5A5A5u);
        for (row = 0; row < rows; row++) {
            size_t const bytes = sizeof *ids * (size_t)(offsets[row + 1] - offsets[row]);
            if (offsets[row + 1] <= room)
                CHECK(same(ids + offsets[row], want + offsets[row], bytes));
        }
        free(ids);
    }
    free(want_offsets);
    free(offsets);
    free(counts);
    arrfree(want);
}

WL_FN void check_own_rows(const lbvh *t, const scene *s)
{
    lbvh_queries q;
    uint32_t *filters = NEW(uint32_t, s->n);
    int32_t i;
    int kind, flags;
    for (i = 0; i < s->n; i++) filters[i] = roll(3) ? 0xFFFFFFFFu : (uint32_t)roll(32);
    for (kind = LBVH_BOXES; kind <= LBVH_POINTS; kind++)
        for (flags = 0; flags < 8; flags++) {
            memset(&q, 0, sizeof q);
            q.kind = (lbvh_kind)kind;
            q.flags = flags;
            q.radius = roll(2) ? (real)(0.3 * wl_u(&dice)) : (real)roll(3);
            if (roll(2)) q.filter = some_filter();
            if (roll(2)) q.filters = filters;
            check_rows(t, s, &q);
        }
    free(filters);
}

/* Queries of the caller's, with a stride; some of them are nonsense and find nothing. */
WL_FN void check_given_rows(const lbvh *t, const scene *s)
{
    static const int widths[] = {2, 1, 1};
    uint32_t filters[9];
    lbvh_queries q;
    int kind, a;
    int32_t i;
    for (kind = LBVH_BOXES; kind <= LBVH_SPHERES; kind++) {
        int const width = widths[kind] * s->dim + (kind == LBVH_SPHERES), step = width + roll(2);
        real *x = NEW(real, 9 * step);
        memset(&q, 0, sizeof q);
        for (i = 0; i < 9; i++) {
            filters[i] = roll(2) ? 0xFFFFFFFFu : (uint32_t)roll(32);
            for (a = 0; a < s->dim; a++) x[i * step + a] = interesting(s, a);
            for (a = 0; a < s->dim && kind == LBVH_BOXES; a++)
                x[i * step + s->dim + a] = x[i * step + a] + between(0, (real)0.7);
            if (kind == LBVH_SPHERES) x[i * step + s->dim] = between(0, (real)0.7);
        }
        x[3 * step + roll(width)] = REAL_NAN;
        if (kind == LBVH_BOXES) x[4 * step + s->dim] = x[4 * step] - 1;
        if (kind == LBVH_SPHERES) x[4 * step + s->dim] = -1;
        if (kind != LBVH_BOXES) x[5 * step] = REAL_INFINITY;
        q.kind = (lbvh_kind)kind;
        q.data = x;
        q.stride = (size_t)step * sizeof(real);
        q.n = 9;
        q.radius = kind == LBVH_POINTS ? between(0, (real)0.7) : 0;
        q.flags = roll(2) ? (int)LBVH_SORTED : 0;
        if (roll(2)) q.filter = some_filter();
        if (roll(2)) q.filters = filters;
        if (s->n) check_rows(t, s, &q);
        free(x);
    }
}

WL_FN void check_stb(const lbvh *t, const scene *s)
{
    int32_t *hits = NULL;
    box q = {{-1, -1, -1}, {1, 1, 1}};
    real given[6] = {-1, -1, -1, 1, 1, 1}, p[3] = {0, 0, 0};
    ptrdiff_t k, first;
    if (s->dim == 2) given[2] = given[3] = 1;
    arrput(hits, -5); /* what is there stays */
    lbvh_arr_overlaps(t, given, &hits);
    want_touching(s, &q, 0xFFFFFFFFu);
    for (k = 1; k < arrlen(hits); k++) CHECK(wanted[hits[k]]-- == 1);
    for (k = 0; k < s->n; k++) CHECK(!wanted[k]);
    first = arrlen(hits);
    lbvh_arr_within(t, p, 1, &hits);
    want_within(s, p, 1, 0xFFFFFFFFu);
    for (k = first; k < arrlen(hits); k++) CHECK(wanted[hits[k]]-- == 1);
    for (k = 0; k < s->n; k++) CHECK(!wanted[k]);
    CHECK(hits[0] == -5);
    arrfree(hits);
}

/* Every search that there is. */
WL_FN void check_everything(const lbvh *t, const scene *s, int count)
{
    check_searches(t, s, count);
    check_nears(t, s, count);
    check_rays(t, s, 2 * count);
    if (s->n <= 1000) check_pairs(t, s);
    if (s->n <= 120) check_own_rows(t, s);
    check_given_rows(t, s);
    check_stb(t, s);
}

#endif /* LBVH_SEARCH_ORACLE_H */
