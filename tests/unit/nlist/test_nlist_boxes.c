/* test_nlist_boxes.c - tests of the serial part of nlist.h: boxes of any shape, all images, many
   systems, the nearest, arrays.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/nlist/test_nlist_boxes.c -o boxes -lcmocka -lm && ./boxes
       (add -DNLIST_REAL=double for the double build; package: libcmocka-dev)

   The oracle: brute force over all images (nlist_boxes_oracle.h). */

#define NLIST_IMPLEMENTATION
#define NLIST_WITH_BOXES
#include "nlist.h"
#define TESTED nlist
#define SHARE  environment("NLIST_TEST_SHARE", small_run() ? 20 : SANITIZED ? 3 : 1)
#include "../../common/testing.h"
#include "../../common/nlist_boxes_oracle.h"

static const nlist_layout layouts[] = {NLIST_COMPACT, NLIST_STATIC, NLIST_DYNAMIC, NLIST_HYBRID};

static nlist_desc desc_of(const boxes_system *s)
{
    nlist_desc d;
    memset(&d, 0, sizeof d);
    d.dim = s->dim;
    d.radius = s->radius;
    d.shifts = d.distances = d.offsets = 1;
    return d;
}

/* Compares a list with the oracle; both are freed. ordered: rows are as in the oracle. */
static void check_list(const nlist *list, boxes_truth want, int ordered)
{
    boxes_truth got = boxes_of_list(list);
    if (!ordered) boxes_sort(&got);
    CHECK_FINE(boxes_differ(&got, &want, 1));
    CHECK(list->total == want.count);
    CHECK_RESULT(nlist_validate(list), NLIST_OK);
    free(got.entry);
    free(want.entry);
}

/* ---- one box ---- */

static boxes_system shown;
static void describe_system(void)
{
    print_error("dim %d, n %d, radius %.9g, periodic %d%d%d, cell %g %g %g, %g %g %g, %g %g %g\n",
                shown.dim, (int)shown.n, (double)shown.radius, shown.box.periodic[0],
                shown.box.periodic[1], shown.box.periodic[2], (double)shown.box.cell[0][0],
                (double)shown.box.cell[0][1], (double)shown.box.cell[0][2],
                (double)shown.box.cell[1][0], (double)shown.box.cell[1][1],
                (double)shown.box.cell[1][2], (double)shown.box.cell[2][0],
                (double)shown.box.cell[2][1], (double)shown.box.cell[2][2]);
}

static void make(boxes_system *s, int kind, int dim, int periodic, int32_t n)
{
    boxes_make(s, kind, dim, periodic, n, &dice);
    shown = *s;
    describe = describe_system;
}

static void check_one_box(nlist *list, const boxes_system *s, nlist_layout layout, int half,
                          int sorted)
{
    nlist_desc d = desc_of(s);
    boxes_truth want = boxes_brute(s, s->radius);
    d.layout = layout;
    d.grow = 1;
    d.half = half;
    d.sorted = sorted;
    if (half) boxes_halve(&want);
    if (layout == NLIST_STATIC) d.width = 1024;
    CHECK_RESULT(nlist_build_box(list, &d, &s->box, s->pos, 0, s->n), NLIST_OK);
    check_list(list, want, sorted);
}

static void test_all_shapes(void **state)
{
    nlist list = {0};
    int kind, dim, periodic, turn, counter = 0;
    (void)state;
    for (kind = 0; kind < BOXES_KINDS; kind++)
        for (dim = 2; dim <= 3; dim++)
            for (periodic = 0; periodic < 1 << dim; periodic++)
                for (turn = 0; turn < 16; turn++) {
                    boxes_system s;
                    if (!chosen(counter++)) continue;
                    make(&s, kind, dim, periodic, 1 + roll(turn % 4 == 3 ? 60 : 12));
                    check_one_box(&list, &s, layouts[turn % 4], turn / 4 % 2, turn / 8);
                    boxes_forget(&s);
                }
    nlist_free(&list);
}

/* Enough particles for many cells, so that the walk has several rows. */
static void test_many_cells(void **state)
{
    nlist list = {0};
    int kind, turn;
    (void)state;
    for (kind = 0; kind <= BOXES_FAR; kind++) {
        for (turn = 0; turn < (small_run() ? 2 : 8); turn++) {
            boxes_system s;
            make(&s, kind, 3, 7 & ~(turn > 5 ? 1 << turn % 3 : 0), 500);
            s.radius = (real)(kind == BOXES_NEEDLE ? 0.6 : kind == BOXES_TINY ? 0.13 : 0.37);
            check_one_box(&list, &s, NLIST_COMPACT, turn % 2, turn / 2 % 2);
            boxes_forget(&s);
        }
    }
    nlist_free(&list);
}

/* The same content in other vectors of the same lattice: the same distances. */
static void test_sheared_far(void **state)
{
    boxes_system s;
    nlist list = {0};
    nlist_desc d;
    int64_t total;
    int k;
    (void)state;
    make(&s, BOXES_ORTHOGONAL, 3, 7, 30);
    d = desc_of(&s);
    CHECK_RESULT(nlist_build_box(&list, &d, &s.box, s.pos, 0, s.n), NLIST_OK);
    total = list.total;
    for (k = 0; k < 3; k++) s.box.cell[2][k] += 60 * s.box.cell[0][k] - 21 * s.box.cell[1][k];
    CHECK_RESULT(nlist_build_box(&list, &d, &s.box, s.pos, 0, s.n), NLIST_OK);
    CHECK(list.total > total - 4 &&
          list.total < total + 4); /* rounding may decide otherwise at the rim */
    check_list(&list, boxes_brute(&s, s.radius), 0);
    nlist_free(&list);
    boxes_forget(&s);
}

/* Radii, masks and exclusions: the oracle is filtered. */
static void test_criteria(void **state)
{
    nlist list = {0};
    int turn;
    (void)state;
    for (turn = 0; turn < (small_run() ? 6 : 12); turn++) {
        boxes_system s;
        nlist_desc d;
        boxes_truth all, want = {NULL, 0, 0};
        real *radii;
        uint32_t *masks;
        int64_t *start, k;
        int32_t *exclude, i;
        make(&s, turn % 3 == 2 ? BOXES_TINY : BOXES_TRICLINIC, 3, 7, quick_run() ? 8 : 20);
        radii = NEW(real, s.n);
        masks = NEW(uint32_t, s.n);
        start = NEW(int64_t, s.n + 1);
        exclude = NEW(int32_t, s.n);
        for (i = 0; i < s.n; i++) {
            radii[i] = (real)0.25 * (real)roll(3);
            masks[i] = (uint32_t)roll(4);
            start[i] = i;
            exclude[i] = roll(s.n);
        }
        start[s.n] = s.n;
        all = boxes_brute(&s, s.radius + 1);
        for (k = 0; k < all.count; k++) {
            const boxes_entry *e = &all.entry[k];
            real const reach = s.radius + (radii[e->i] + radii[e->j]);
            if (turn % 2 && !boxes_in_half(e)) continue;
            if (e->d2 <= reach * reach && (masks[e->i] & masks[e->j]) && exclude[e->i] != e->j &&
                exclude[e->j] != e->i)
                boxes_add(&want, e);
        }
        d = desc_of(&s);
        d.half = turn % 2;
        d.radii = radii;
        d.masks = masks;
        d.exclude_start = start;
        d.exclude = exclude;
        CHECK_RESULT(nlist_build_box(&list, &d, &s.box, s.pos, 0, s.n), NLIST_OK);
        check_list(&list, want, 0);
        free(all.entry);
        free(radii);
        free(masks);
        free(start);
        free(exclude);
        boxes_forget(&s);
    }
    nlist_free(&list);
}

/* ---- arrays ---- */

static nlist_arrays take_arrays(int64_t capacity)
{
    nlist_arrays a;
    memset(&a, 0, sizeof a);
    a.capacity = capacity;
    a.i = NEW(int32_t, capacity);
    a.j = NEW(int32_t, capacity);
    a.shift = NEW(int32_t, 3 * capacity);
    a.distance = NEW(real, capacity);
    a.offset = NEW(real, 3 * capacity);
    return a;
}

static void drop_arrays(nlist_arrays *a)
{
    free(a->i);
    free(a->j);
    free(a->shift);
    free(a->distance);
    free(a->offset);
}

static void check_arrays(const nlist_arrays *a, const boxes_truth *want, int ordered)
{
    boxes_truth got = boxes_of_arrays(a);
    int64_t k;
    for (k = 1; k < got.count && ordered; k++)
        CHECK(boxes_order(&got.entry[k - 1], &got.entry[k]) < 0);
    boxes_sort(&got);
    CHECK_FINE(boxes_differ(&got, want, 1));
    free(got.entry);
}

static void test_arrays(void **state)
{
    nlist list = {0};
    int turn;
    (void)state;
    for (turn = 0; turn < (small_run() ? 8 : 40); turn++) {
        boxes_system s;
        nlist_desc d;
        nlist_arrays mine, theirs;
        boxes_truth want;
        int const half = turn & 1, sorted = turn >> 1 & 1;
        make(&s, turn % BOXES_KINDS, 3, 7, 40);
        d = desc_of(&s);
        d.shifts = d.distances = d.offsets = 0; /* rows are not made */
        d.half = half;
        d.sorted = sorted;
        want = boxes_brute(&s, s.radius);
        if (half) boxes_halve(&want);
        mine = take_arrays(want.count);
        CHECK_RESULT(nlist_search_box(&list, &d, &s.box, s.pos, 0, s.n, &mine), NLIST_OK);
        CHECK(mine.count == want.count && mine.rows_cut == 0);
        check_arrays(&mine, &want, sorted);
        memset(&theirs, 0, sizeof theirs);
        theirs.wanted = 31;
        CHECK_RESULT(nlist_search_box(&list, &d, &s.box, s.pos, 0, s.n, &theirs), NLIST_OK);
        CHECK(theirs.count == want.count && list.built == 0);
        check_arrays(&theirs, &want, sorted);
        if (want.count > 0) {
            mine.capacity--;
            CHECK_RESULT(nlist_search_box(&list, &d, &s.box, s.pos, 0, s.n, &mine),
                         NLIST_BUFFER_TOO_SMALL);
            CHECK(mine.count == want.count);
        }
        drop_arrays(&mine);
        free(want.entry);
        boxes_forget(&s);
    }
    nlist_free(&list);
}

/* Arrays that are not wanted are left alone, and counting needs none. */
static void test_some_arrays(void **state)
{
    nlist list = {0};
    boxes_system s;
    nlist_desc d;
    nlist_arrays all, some;
    (void)state;
    make(&s, BOXES_TRICLINIC, 3, 7, 50);
    d = desc_of(&s);
    memset(&some, 0, sizeof some);
    CHECK_RESULT(nlist_search_box(&list, &d, &s.box, s.pos, 0, s.n, &some), NLIST_BUFFER_TOO_SMALL);
    CHECK(some.count > 0);
    all = take_arrays(some.count);
    CHECK_RESULT(nlist_search_box(&list, &d, &s.box, s.pos, 0, s.n, &all), NLIST_OK);
    some.wanted = NLIST_WANT_J | NLIST_WANT_DISTANCE;
    CHECK_RESULT(nlist_search_box(&list, &d, &s.box, s.pos, 0, s.n, &some), NLIST_OK);
    CHECK(!some.i && !some.shift && !some.offset);
    CHECK(same(some.j, all.j, (size_t)all.count * sizeof(int32_t)));
    CHECK(same(some.distance, all.distance, (size_t)all.count * sizeof(real)));
    drop_arrays(&all);
    nlist_free(&list);
    boxes_forget(&s);
}

/* ---- many systems ---- */

static void test_many_systems(void **state)
{
    enum { SYSTEMS = 40 };
    boxes_system s[SYSTEMS];
    nlist_box boxes[SYSTEMS];
    int32_t starts[SYSTEMS + 1] = {0}, i, k;
    nlist list = {0}, one = {0};
    nlist_desc d;
    real *pos;
    int half;
    (void)state;
    for (k = 0; k < SYSTEMS; k++) {
        make(&s[k], k % BOXES_KINDS, 3, roll(8), k == 7 ? 700 : 1 + roll(30));
        s[k].radius = (real)0.7;
        boxes[k] = s[k].box;
        starts[k + 1] = starts[k] + s[k].n;
    }
    describe = NULL;
    pos = NEW(real, 3 * starts[SYSTEMS]);
    for (k = 0; k < SYSTEMS; k++)
        if (s[k].n) memcpy(pos + 3 * starts[k], s[k].pos, (size_t)(3 * s[k].n) * sizeof *pos);
    for (half = 0; half < 2; half++) {
        d = desc_of(&s[0]);
        d.half = half;
        CHECK_RESULT(nlist_build_boxes(&list, &d, boxes, starts, SYSTEMS, pos, 0), NLIST_OK);
        CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        for (k = 0; k < SYSTEMS; k++) {
            CHECK_RESULT(nlist_build_box(&one, &d, &boxes[k], s[k].pos, 0, s[k].n), NLIST_OK);
            for (i = 0; i < s[k].n; i++) {
                nlist_each a = nlist_of(&list, starts[k] + i), b = nlist_of(&one, i);
                while (nlist_next(&b)) {
                    CHECK(nlist_next(&a) && a.id == starts[k] + b.id &&
                          same(a.shift, b.shift, sizeof(int32_t[3])));
                    CHECK(same(nlist_offset_of(&list, a.entry), nlist_offset_of(&one, b.entry),
                               sizeof(real[3])));
                }
                CHECK(!nlist_next(&a));
            }
        }
    }
    boxes[3].cell[0][0] = boxes[3].cell[0][1] = boxes[3].cell[0][2] = 0;
    boxes[3].periodic[0] = 1;
    CHECK_RESULT(nlist_build_boxes(&list, &d, boxes, starts, SYSTEMS, pos, 0), NLIST_BAD_BOX);
    CHECK(list.bad_id == 3 && list.built && list.n == starts[SYSTEMS]); /* the list is as it was */
    CHECK_RESULT(nlist_validate(&list), NLIST_OK);
    starts[5] = starts[4] - 1;
    CHECK_RESULT(nlist_build_boxes(&list, &d, boxes, starts, SYSTEMS, pos, 0), NLIST_BAD_STARTS);
    starts[0] = 1;
    CHECK_RESULT(nlist_build_boxes(&list, &d, boxes, starts, 2, pos, 0), NLIST_BAD_STARTS);
    starts[0] = 0;
    CHECK_RESULT(nlist_build_boxes(&list, &d, boxes, starts, 0, pos, 0), NLIST_OK);
    CHECK(list.n == 0 && list.built);
    for (k = 0; k < SYSTEMS; k++) boxes_forget(&s[k]);
    free(pos);
    nlist_free(&list);
    nlist_free(&one);
}

/* ---- the nearest ---- */

static void test_nearest(void **state)
{
    nlist list = {0};
    int turn;
    (void)state;
    for (turn = 0; turn < (small_run() ? 10 : 60); turn++) {
        boxes_system s;
        nlist_desc d;
        boxes_truth all, want;
        int32_t const most = 1 + roll(9);
        int32_t i, cut = 0, k;
        int64_t at = 0;
        make(&s, turn % BOXES_KINDS, 3, roll(8),
             25); /* the lattice has ties, also of several images of one particle */
        d = desc_of(&s);
        d.nearest = most;
        d.layout = layouts[turn % 4];
        d.width = most;
        CHECK_RESULT(nlist_build_box(&list, &d, &s.box, s.pos, 0, s.n), NLIST_OK);
        all = boxes_brute(&s, s.radius);
        want = boxes_brute(&s, s.radius);
        boxes_keep_nearest(&want, most);
        for (i = 0; i < s.n; i++) {
            int32_t within = 0;
            for (; at < all.count && all.entry[at].i == i; at++) within++;
            CHECK(list.rows[list.current].within[i] == within);
            CHECK(list.rows[list.current].count[i] == (within < most ? within : most));
            cut += within > most;
            for (k = within; k < most && list.rows[list.current].slot; k++) /* padding */
                CHECK(list.rows[list.current].slot[i * list.rows[list.current].width + k] == -1);
        }
        CHECK(list.rows_cut == cut);
        check_list(&list, want, 1);
        free(all.entry);
        boxes_forget(&s);
    }
    nlist_free(&list);
}

/* A ghost becomes a local: its row is new, and nothing is left out of it. (An array of one row more
   would be read if it had an old one.) */
static void test_nearest_of_a_ghost(void **state)
{
    static const real pos[] = {0, 0, 0, (real)0.1, 0, 0, (real)0.3, 0, 0, (real)0.6, 0, 0};
    static const int32_t new_id[] = {3, 1, 2, 0};
    nlist_box const closed = {{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, {0, 0, 0}};
    nlist list = {0};
    nlist_desc d = {0};
    const nlist_rows *rows;
    (void)state;
    d.radius = 1;
    d.nearest = 1;
    d.rows = 1;
    CHECK_RESULT(nlist_build_box(&list, &d, &closed, pos, 0, 4), NLIST_OK);
    CHECK(list.rows[list.current].within[0] == 3 && list.rows_cut == 1);
    CHECK_RESULT(nlist_remap_rows(&list, new_id, 4, 4), NLIST_OK);
    rows = &list.rows[list.current];
    CHECK(rows->within[0] == 0 && rows->within[1] == 0 && rows->within[2] == 0);
    CHECK(rows->within[3] == 3 && rows->count[3] == 1);
    CHECK_RESULT(nlist_validate(&list), NLIST_OK);
    nlist_free(&list);
    d.rows = NLIST_NO_ROWS; /* no row has an array to read */
    CHECK_RESULT(nlist_build_box(&list, &d, &closed, pos, 0, 4), NLIST_OK);
    CHECK_RESULT(nlist_remap_rows(&list, new_id, 4, 4), NLIST_OK);
    rows = &list.rows[list.current];
    CHECK(!rows->within[0] && !rows->within[1] && !rows->within[2] && !rows->within[3]);
    nlist_free(&list);
}

/* ---- lists that last ---- */

/* Positions a little later: up to `step` further along each axis. */
static void move(boxes_system *s, double step)
{
    int32_t k;
    for (k = 0; k < s->dim * s->n; k++) s->pos[k] += (real)boxes_between(&dice, -step, step);
}

static void test_skin(void **state)
{
    boxes_system s;
    nlist list = {0};
    nlist_desc d;
    int32_t moved, k;
    (void)state;
    make(&s, BOXES_TRICLINIC, 3, 7, 60);
    d = desc_of(&s);
    d.skin = (real)0.3;
    CHECK_RESULT(nlist_build_box(&list, &d, &s.box, s.pos, 0, s.n), NLIST_OK);
    check_list(&list, boxes_brute(&s, s.radius + d.skin), 0);
    move(&s, 0.08);
    CHECK_RESULT(nlist_moved(&list, s.pos, 0, &moved), NLIST_OK);
    CHECK(!moved);
    for (k = 0; k < 3; k++) s.pos[k] += s.box.cell[1][k]; /* wrapped: the shifts no longer hold */
    CHECK_RESULT(nlist_moved(&list, s.pos, 0, &moved), NLIST_OK);
    CHECK(moved);
    nlist_free(&list);
    boxes_forget(&s);
}

/* What the history of an entry must be: how long it has lasted. */
static void check_ages(const nlist *list, const boxes_truth *before, const int32_t *ages_before,
                       int32_t **ages)
{
    int64_t k = 0, found = 0, begun = 0, persisted = 0;
    int32_t i;
    *ages = NEW(int32_t, list->total);
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        for (; nlist_next(&e); k++) {
            boxes_entry key;
            const boxes_entry *was;
            int32_t age = 0, is;
            memset(&key, 0, sizeof key);
            key.i = i;
            key.j = e.id;
            memcpy(key.s, e.shift, sizeof key.s);
            was = before->count
                      ? (const boxes_entry *)bsearch(&key, before->entry, (size_t)before->count,
                                                     sizeof key, boxes_order)
                      : NULL;
            if (was) age = ages_before[was - before->entry];
            memcpy(&is, e.history, sizeof is);
            CHECK(is == age);
            is++;
            memcpy(e.history, &is, sizeof is);
            (*ages)[k] = is;
            found += was != NULL;
            if (boxes_in_half(&key)) was ? persisted++ : begun++;
        }
    }
    CHECK(list->event_count[NLIST_BEGUN] == begun &&
          list->event_count[NLIST_PERSISTED] == persisted);
}

static void test_history(void **state)
{
    int turn, step;
    (void)state;
    for (turn = 0; turn < 8; turn++) {
        boxes_system s;
        nlist list = {0};
        nlist_desc d;
        boxes_truth before = {NULL, 0, 0};
        int32_t *ages = NULL;
        int64_t all_ended = 0;
        make(&s, turn % 2 ? BOXES_TINY : BOXES_SHEARED, 3, 7, 12);
        s.radius = (real)(turn % 2 ? 0.7 : 1.2);
        d = desc_of(&s);
        d.shifts = 0; /* on by itself */
        d.sorted = 1;
        d.half = turn / 2 % 2;
        d.layout = layouts[turn / 2];
        d.width = 1024;
        d.history = sizeof(int32_t);
        d.events = 1;
        for (step = 0; step < 6; step++) {
            int32_t *next;
            int64_t ended = 0, k;
            boxes_truth now;
            CHECK_RESULT(nlist_build_box(&list, &d, &s.box, s.pos, 0, s.n), NLIST_OK);
            CHECK(list.desc.shifts);
            check_ages(&list, &before, ages, &next);
            now = boxes_of_list(&list);
            for (k = 0; k < before.count; k++)
                ended += boxes_in_half(&before.entry[k]) &&
                         !bsearch(&before.entry[k], now.entry, (size_t)now.count, sizeof *now.entry,
                                  boxes_order);
            CHECK(list.event_count[NLIST_ENDED] == ended);
            all_ended += ended;
            free(before.entry);
            free(ages);
            before = now;
            ages = next;
            move(&s, 0.05);
        }
        CHECK(list.event_count[NLIST_PERSISTED] > 0 && all_ended > 0);
        free(before.entry);
        free(ages);
        nlist_free(&list);
        boxes_forget(&s);
    }
}

/* New ids: entries, shifts, offsets, history follow. */
static void test_remap(void **state)
{
    int turn;
    (void)state;
    for (turn = 0; turn < 16; turn++) {
        boxes_system s;
        nlist list = {0};
        nlist_desc d;
        boxes_truth was, is;
        int32_t new_id[15], k, gone = turn / 8 ? roll(15) : -1, last = 14;
        int64_t e, left = 0;
        make(&s, BOXES_TINY, 3, 7, 15);
        s.radius = (real)0.7;
        s.n = 15;
        boxes_forget(&s);
        s.pos = ZEROS(real, 45);
        for (k = 0; k < 45; k++) s.pos[k] = between(0, 1);
        d = desc_of(&s);
        d.half = turn / 4 % 2;
        d.layout = layouts[turn % 4];
        d.width = 1024;
        d.history = turn % 3 ? 4 : 0;
        CHECK_RESULT(nlist_build_box(&list, &d, &s.box, s.pos, 0, 15), NLIST_OK);
        was = boxes_of_list(&list);
        for (k = 0; k < 15; k++) new_id[k] = (k * 7 + 3) % 15;
        if (gone >= 0) {
            for (k = 0; k < 15; k++)
                if (new_id[k] == last) new_id[k] = new_id[gone];
            new_id[gone] = -1;
        }
        CHECK_RESULT(nlist_remap(&list, new_id, 15 - (gone >= 0)), NLIST_OK);
        CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        for (e = 0; e < was.count; e++) {
            boxes_entry *entry = &was.entry[e];
            entry->i = new_id[entry->i];
            entry->j = new_id[entry->j];
            if (entry->i >= 0 && entry->j >= 0) was.entry[left++] = *entry;
        }
        was.count = left;
        boxes_sort(&was);
        is = boxes_of_list(&list);
        boxes_sort(&is);
        CHECK(is.count == was.count);
        for (e = 0; e < was.count; e++)
            CHECK(boxes_order(&is.entry[e], &was.entry[e]) == 0 &&
                  same(is.entry[e].d, was.entry[e].d, sizeof is.entry[e].d) &&
                  same(&is.entry[e].d2, &was.entry[e].d2, sizeof(real)));
        free(was.entry);
        free(is.entry);
        nlist_free(&list);
        boxes_forget(&s);
    }
}

/* nlist_pairs hands out the shifts of the list. */
static void test_pairs(void **state)
{
    boxes_system s;
    nlist list = {0};
    nlist_desc d;
    boxes_truth want;
    int32_t *pair, *shift;
    int64_t needed, k;
    (void)state;
    make(&s, BOXES_TINY, 3, 7, 8);
    d = desc_of(&s);
    d.sorted = 1;
    CHECK_RESULT(nlist_build_box(&list, &d, &s.box, s.pos, 0, s.n), NLIST_OK);
    want = boxes_brute(&s, s.radius);
    pair = NEW(int32_t, 2 * want.count);
    shift = NEW(int32_t, 3 * want.count);
    CHECK_RESULT(nlist_pairs(&list, pair, want.count, &needed, s.pos, 0, shift), NLIST_OK);
    CHECK(needed == want.count);
    for (k = 0; k < needed; k++)
        CHECK(pair[2 * k] == want.entry[k].i && pair[2 * k + 1] == want.entry[k].j &&
              same(shift + 3 * k, want.entry[k].s, 12));
    CHECK_RESULT(nlist_save(&list, NULL, 0, &needed), NLIST_BAD_OPTION);
    CHECK_RESULT(nlist_verify(&list, &d, s.pos, 0, 3, 1, NULL), NLIST_BAD_OPTION);
    free(pair);
    free(shift);
    free(want.entry);
    CHECK_RESULT(nlist_build_box(&list, &d, &s.box, s.pos, 0, 0), NLIST_OK);
    CHECK_RESULT(nlist_verify(&list, &d, s.pos, 0, 3, 1, NULL), NLIST_BAD_OPTION);
    nlist_free(&list);
    boxes_forget(&s);
}

/* ---- refusals ---- */

static nlist_result build_with(nlist *list, const nlist_box *box, double radius, const real *pos,
                               int32_t n)
{
    nlist_desc d;
    memset(&d, 0, sizeof d);
    d.radius = (real)radius;
    return nlist_build_box(list, &d, box, pos, 0, n);
}

static void test_bad_boxes(void **state)
{
    real pos[9] = {0, 0, 0, (real)0.5, 0, 0, 0, (real)0.5, 0};
    nlist list = {0};
    nlist_box cube, box;
    nlist_desc d;
    int a;
    (void)state;
    memset(&cube, 0, sizeof cube);
    for (a = 0; a < 3; a++) cube.cell[a][a] = cube.periodic[a] = 1;
    CHECK_RESULT(build_with(&list, &cube, 0.6, pos, 3), NLIST_OK);
    CHECK(list.total == 8); /* 0-1 and 0-2 at half a period: two images each, in both rows */
    for (a = 0; a < 3; a++) {
        box = cube;
        box.cell[a][a] = 0;
        CHECK_RESULT(build_with(&list, &box, 0.6, pos, 3), NLIST_BAD_BOX);
        CHECK(list.bad_id == 0);
        box.cell[a][a] = REAL_NAN;
        CHECK_RESULT(build_with(&list, &box, 0.6, pos, 3), NLIST_BAD_BOX);
        box.cell[a][a] = REAL_INFINITY;
        CHECK_RESULT(build_with(&list, &box, 0.6, pos, 3), NLIST_BAD_BOX);
        memcpy(box.cell[a], box.cell[(a + 1) % 3], sizeof box.cell[a]);
        CHECK_RESULT(build_with(&list, &box, 0.6, pos, 3), NLIST_BAD_BOX);
        box.periodic[a] = 0; /* then it does not matter */
        CHECK_RESULT(build_with(&list, &box, 0.6, pos, 3), NLIST_OK);
    }
    box = cube;
    box.cell[2][0] = box.cell[2][1] = 1; /* c = a + b */
    box.cell[2][2] = 0;
    CHECK_RESULT(build_with(&list, &box, 0.6, pos, 3), NLIST_BAD_BOX);
    box.cell[2][2] = (real)1e-20; /* a lattice, but a very dense one */
    CHECK_RESULT(build_with(&list, &box, 0.6, pos, 3), NLIST_TOO_MANY_IMAGES);
    CHECK_RESULT(build_with(&list, &cube, 0, pos, 3), NLIST_BAD_RADIUS);
    CHECK_RESULT(build_with(&list, &cube, -1, pos, 3), NLIST_BAD_RADIUS);
    CHECK_RESULT(build_with(&list, &cube, 1000, pos, 3), NLIST_TOO_MANY_IMAGES);
    CHECK_RESULT(build_with(&list, &cube, 0.6, pos, -1), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(build_with(&list, &cube, 0.6, NULL, 3), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_box(&list, NULL, &cube, pos, 0, 3), NLIST_BAD_ARGUMENT);
    pos[4] = REAL_NAN;
    CHECK_RESULT(build_with(&list, &cube, 0.6, pos, 3), NLIST_NOT_FINITE);
    CHECK(list.bad_id == 1);
    pos[4] = IS_FLOAT ? (real)1e12 : (real)1e10;
    CHECK_RESULT(build_with(&list, &cube, 0.6, pos, 3), NLIST_TOO_MANY_IMAGES);
    pos[4] = 0;
    memset(&d, 0, sizeof d);
    d.radius = 1;
    d.nearest = -1;
    CHECK_RESULT(nlist_build_box(&list, &d, &cube, pos, 0, 3), NLIST_BAD_OPTION);
    d.nearest = 3;
    d.half = 1;
    CHECK_RESULT(nlist_build_box(&list, &d, &cube, pos, 0, 3), NLIST_BAD_OPTION);
    d.nearest = 0;
    d.shifts = 1;
    CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 3), NLIST_BAD_OPTION);
    d.layout = NLIST_STATIC;
    d.width = 2;
    CHECK_RESULT(nlist_build_box(&list, &d, &cube, pos, 0, 3), NLIST_ROW_FULL);
    CHECK(list.needed_width > 2);
    nlist_free(&list);
}

/* ---- memory ---- */

static void test_no_allocation(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0};
    nlist list = {0};
    int turn;
    (void)state;
    for (turn = 0; turn < 4; turn++) {
        boxes_system s;
        nlist_desc d;
        nlist_arrays a;
        int64_t calls;
        int again;
        make(&s, turn, 3, 7, 200);
        d = desc_of(&s);
        d.allocator = allocator_of(&h);
        d.sorted = turn % 2;
        for (again = 0; again < 3; again++) {
            calls = h.calls;
            memset(&a, 0, sizeof a);
            a.wanted = 31;
            CHECK_RESULT(nlist_search_box(&list, &d, &s.box, s.pos, 0, s.n, &a), NLIST_OK);
            CHECK_RESULT(nlist_build_box(&list, &d, &s.box, s.pos, 0, s.n), NLIST_OK);
            CHECK(again == 0 || h.calls == calls);
        }
        CHECK(h.live_bytes == nlist_bytes(&list));
        boxes_forget(&s);
    }
    nlist_free(&list);
    CHECK(h.live_blocks == 0 && !h.wrong);
}

/* Every allocation fails once. */
static void test_out_of_memory(void **state)
{
    boxes_system s;
    int64_t total = 0, all_failures = 0, k;
    (void)state;
    make(&s, BOXES_TRICLINIC, 3, 7, 80);
    for (k = 0; k <= total; k++) {
        heap h = {0, 0, 0, 0, 0, 0};
        nlist list = {0};
        nlist_desc d = desc_of(&s);
        nlist_arrays a;
        int failures = 0;
        h.fail_at = k;
        d.allocator = allocator_of(&h);
        d.nearest = 5;
        d.history = 4;
        for (;;) {
            nlist_result r;
            memset(&a, 0, sizeof a);
            a.wanted = 31;
            r = nlist_search_box(&list, &d, &s.box, s.pos, 0, s.n, &a);
            if (r == NLIST_OK) r = nlist_build_box(&list, &d, &s.box, s.pos, 0, s.n);
            if (r == NLIST_OK) break;
            CHECK_RESULT(r, NLIST_OUT_OF_MEMORY);
            CHECK(++failures < 2);
        }
        CHECK(failures <= (k > 0)); /* none where less memory did */
        all_failures += failures;
        h.fail_at = 0;
        CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        if (k == 0) total = h.calls;
        nlist_free(&list);
        CHECK(h.live_blocks == 0 && !h.wrong);
    }
    CHECK(total > 10 && all_failures > total / 3);
    boxes_forget(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_all_shapes),   TEST(test_many_cells),    TEST(test_sheared_far),
        TEST(test_criteria),     TEST(test_arrays),        TEST(test_some_arrays),
        TEST(test_many_systems), TEST(test_nearest),       TEST(test_nearest_of_a_ghost),
        TEST(test_skin),         TEST(test_history),       TEST(test_remap),
        TEST(test_pairs),        TEST(test_bad_boxes),     TEST(test_no_allocation),
        TEST(test_out_of_memory),
    };
    if (getenv("NLIST_TEST_ONLY")) cmocka_set_test_filter(getenv("NLIST_TEST_ONLY"));
    return cmocka_run_group_tests_name("nlist boxes", tests, NULL, NULL);
}
