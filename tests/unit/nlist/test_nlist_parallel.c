/* test_nlist_parallel.c - desc.parallel of nlist.h: any number of tasks, in any order and on
   threads, gives the lists, history and events of the serial code, bit for bit.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O1 -g -fsanitize=thread ...                          (tests/quality/flags/run.sh)

   Two lists live through the same story: builds while particles move, bytes that are written into
   the entries, a remap. One is serial, the other has a hook; after each step all of both is
   compared. A piece is worth a task from 4 particles on. */

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_I_PIECE 4
#define NLIST_IMPLEMENTATION
#define NLIST_WITH_BOXES
#include "nlist.h"
#define TESTED nlist
#define SHARE environment("NLIST_TEST_SHARE", quick_run() ? 200 : small_run() ? 64 : 4)
#define LOT environment("NLIST_TEST_LOT", 0)
#include "../../common/parallel.h"
#include "../../common/testing.h"
#include "plain_bits.h"

enum { MOST = 160, STEPS = 5 };
enum { UNIFORM, CLUSTERED, COINCIDENT, EMPTY, ONE, LATTICE, INPUTS };
enum { BY_GRID, BY_LINKS, BY_MORTON, BY_BRUTE, BY_TREE, BY_BOX, SOURCES };
enum { HALF = 1, RADII = 2, MASKS = 4, EXCLUDE = 8, GHOSTS = 16, HISTORY = 32, EVENTS = 64,
       SKIN = 128, PERIODIC = 256, OPTIONS = 512 };

typedef struct scene {
    int input, source, options;
    int32_t n;
    nlist_desc desc;
    real pos[3 * MOST], radii[MOST];
    uint32_t masks[MOST];
    int64_t exclude_start[MOST + 1];
    int32_t exclude[MOST];
} scene;

static const scene *tested;
static int tested_step, tested_hook, tested_tasks;

static void tell(void)
{
    print_error("input %d, source %d, options %d, layout %d, n %d: step %d, hook %d, %d tasks\n",
                tested->input, tested->source, tested->options, (int)tested->desc.layout,
                (int)tested->n, tested_step, tested_hook, tested_tasks);
}

static void make_points(scene *s)
{
    static const int32_t sizes[INPUTS] = { MOST, MOST, 40, 0, 1, 147 };
    int32_t i;
    int a;
    s->n = sizes[s->input];
    for (i = 0; i < s->n; i++) {
        real *const p = s->pos + 3 * i;
        real const cluster = s->input == CLUSTERED && i % 4 ? (real)0.25 : 1;
        for (a = 0; a < 3; a++) p[a] = cluster * between(0, 1);
        if (s->input == COINCIDENT) p[0] = p[1] = p[2] = (real)0.375;
        if (s->input != LATTICE) continue;
        p[0] = (real)(i % 7) / 8;
        p[1] = (real)(i / 7 % 7) / 8;
        p[2] = (real)(i / 49) / 8;
    }
}

static void make_scene(scene *s, int input, int source, int options, nlist_layout layout)
{
    nlist_desc *d = &s->desc;
    int32_t i;
    memset(s, 0, sizeof *s);
    s->input = input;
    s->source = source;
    s->options = options;
    make_points(s);
    for (i = 0; i < MOST; i++) {
        s->radii[i] = between(0, (real)0.03);
        s->masks[i] = 1u << roll(2) | 4u * (uint32_t)roll(2);
        s->exclude_start[i + 1] = s->exclude_start[i] + roll(2);
        s->exclude[i] = roll(MOST);
    }
    d->radius = (real)0.125;
    d->layout = layout;
    d->width = layout == NLIST_STATIC ? 200 : 3;
    d->half = (options & HALF) != 0;
    d->radii = options & RADII ? s->radii : NULL;
    d->masks = options & MASKS ? s->masks : NULL;
    d->exclude_start = options & EXCLUDE ? s->exclude_start : NULL;
    d->exclude = options & EXCLUDE ? s->exclude : NULL;
    d->rows = options & GHOSTS && s->n > 3 ? 2 * s->n / 3 : 0;
    d->history = options & HISTORY ? 12 : 0;
    d->events = (options & EVENTS) != 0;
    d->skin = options & SKIN ? (real)0.02 : 0;
    for (i = 0; i < 3; i++) {
        d->periodic[i] = options & PERIODIC && i != 1;
        d->max[i] = 1;
    }
    if (source == BY_BOX) d->distances = d->offsets = d->sorted = 1;
}

/* ---- one list ---- */

static nlist_result build_by_grid(nlist *list, const nlist_desc *desc, const scene *s)
{
    ugrid grid;
    ugrid_desc cells;
    nlist_result result;
    int a;
    memset(&grid, 0, sizeof grid);
    memset(&cells, 0, sizeof cells);
    cells.cell = (real)0.125;
    cells.method = s->source == BY_LINKS ? UGRID_LIST : UGRID_COUNT;
    cells.cell_order = s->source == BY_MORTON ? UGRID_MORTON : UGRID_ROWS;
    for (a = 0; a < 3; a++) {
        cells.max[a] = 1;
        cells.periodic[a] = desc->periodic[a];
    }
    if (ugrid_build(&grid, &cells, s->pos, 0, s->n) != UGRID_OK) abort();
    result = nlist_build_ugrid(list, desc, &grid, s->pos, 0, s->n);
    ugrid_free(&grid);
    return result;
}

static nlist_result build_by_tree(nlist *list, const nlist_desc *desc, const scene *s)
{
    lbvh tree;
    lbvh_desc points;
    nlist_result result;
    memset(&tree, 0, sizeof tree);
    memset(&points, 0, sizeof points);
    points.kind = LBVH_POINTS;
    if (lbvh_build(&tree, &points, s->pos, 0, s->n) != LBVH_OK) abort();
    result = nlist_build_lbvh(list, desc, &tree, s->pos, 0, s->n);
    lbvh_free(&tree);
    return result;
}

static nlist_result build_by_box(nlist *list, const nlist_desc *desc, const scene *s)
{
    nlist_box box;
    int a;
    memset(&box, 0, sizeof box);
    for (a = 0; a < 3; a++) {
        box.cell[a][a] = 1;
        box.periodic[a] = desc->periodic[a];
    }
    return nlist_build_box(list, desc, &box, s->pos, 0, s->n);
}

static nlist_result build(nlist *list, const scene *s, nlist_parallel parallel)
{
    nlist_desc desc = s->desc;
    desc.parallel = parallel;
    if (s->source == BY_BRUTE) return nlist_build_brute(list, &desc, s->pos, 0, s->n);
    if (s->source == BY_TREE) return build_by_tree(list, &desc, s);
    if (s->source == BY_BOX) return build_by_box(list, &desc, s);
    return build_by_grid(list, &desc, s);
}

/* Every entry gets bytes that tell which it is. */
static void write_history(nlist *list, int step)
{
    int32_t i;
    for (i = 0; list->desc.history && i < list->row_count; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) {
            int32_t const bytes[3] = { i, e.id, step };
            memcpy(e.history, bytes, sizeof bytes);
        }
    }
}

/* ---- both lists ---- */

static void same_array(const void *a, const void *b, int64_t count, size_t size)
{
    if (count == 0) return; /* memory of no element is there or not */
    CHECK(!a == !b);
    if (a) CHECK(same(a, b, (size_t)count * size));
}

static void same_entries(const nlist *a, const nlist *b, int32_t i)
{
    nlist_each x = nlist_of(a, i), y = nlist_of(b, i);
    while (nlist_next(&x)) {
        CHECK(nlist_next(&y) && x.id == y.id && x.entry == y.entry);
        if (x.history) CHECK(same(x.history, y.history, (size_t)a->desc.history));
        if (x.shift) CHECK(same(x.shift, y.shift, 3 * sizeof *x.shift));
        if (a->desc.distances)
            CHECK(nlist_distance_of(a, x.entry) == nlist_distance_of(b, x.entry));
        if (a->desc.offsets)
            CHECK(same(nlist_offset_of(a, x.entry), nlist_offset_of(b, x.entry), 3 * sizeof(real)));
    }
    CHECK(!nlist_next(&y));
}

static void same_lists(const nlist *a, const nlist *b)
{
    const nlist_rows *x = &a->rows[a->current], *y = &b->rows[b->current];
    int32_t i;
    int kind;
    CHECK(a->n == b->n && a->row_count == b->row_count && a->total == b->total);
    CHECK(a->built == b->built && a->bad_id == b->bad_id && a->next_uid == b->next_uid);
    CHECK(a->needed_width == b->needed_width && a->needed_entries == b->needed_entries);
    CHECK(x->n == y->n && x->entries == y->entries && x->touched_count == y->touched_count);
    same_array(x->count, y->count, x->n, sizeof(int32_t));
    same_array(x->slot, y->slot, (int64_t)x->n * x->width, sizeof(int32_t));
    same_array(x->start, y->start, x->n + 1, sizeof(int64_t));
    same_array(x->partner, y->partner, x->entries, sizeof(int32_t));
    same_array(x->own, y->own, x->entries, sizeof(int32_t));
    same_array(x->link, y->link, x->entries, sizeof(int32_t));
    same_array(x->head, y->head, x->n, sizeof(int32_t));
    same_array(x->touched, y->touched, x->touched_count, sizeof(int32_t));
    same_array(x->uid, y->uid, a->n, sizeof(int64_t));
    same_array(x->reference, y->reference, 3 * (int64_t)a->n, sizeof(real));
    for (i = 0; i < a->row_count; i++) same_entries(a, b, i);
    for (kind = 0; kind < NLIST_EVENT_KINDS && a->desc.events; kind++) {
        int64_t k;
        CHECK(a->event_count[kind] == b->event_count[kind]);
        for (k = 0; k < a->event_count[kind]; k++) {
            nlist_event const e = a->event[kind][k], f = b->event[kind][k];
            CHECK(e.i == f.i && e.j == f.j && e.entry == f.entry);
        }
    }
}

/* The next step of the story: particles move. */
static void move(scene *s)
{
    int32_t k;
    for (k = 0; k < 3 * s->n; k++) {
        real const x = s->pos[k] + between((real)-0.03, (real)0.03);
        s->pos[k] = x < 0 ? 0 : x >= 1 ? (real)0.99 : x;
    }
}

/* Particles get new ids: backwards, and some are gone. */
static void renumber(scene *s, nlist *a, nlist *b)
{
    int32_t new_id[MOST + 1], i;
    int32_t const left = s->n > 8 ? s->n - 5 : s->n, rows = s->desc.rows ? left / 2 : left;
    real pos[3 * MOST];
    for (i = 0; i < s->n; i++) new_id[i] = left - 1 - i;
    for (i = 0; i < s->n; i++) if (new_id[i] < 0) new_id[i] = -1;
    memcpy(pos, s->pos, sizeof pos);
    for (i = 0; i < s->n; i++)
        if (new_id[i] >= 0) memcpy(s->pos + 3 * new_id[i], pos + 3 * i, 3 * sizeof *pos);
    CHECK_RESULT(nlist_remap_rows(a, new_id, left, rows), NLIST_OK);
    CHECK_RESULT(nlist_remap_rows(b, new_id, left, rows), NLIST_OK);
    s->n = left;
    s->desc.rows = s->desc.rows ? rows : 0;
    if (s->n > 0 && s->desc.rows == 0 && rows < left) s->desc.rows = NLIST_NO_ROWS;
}

static void live(scene *s, nlist_parallel parallel)
{
    static const nlist_parallel serial;
    nlist a, b;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    for (tested_step = 0; tested_step < STEPS; tested_step++) {
        nlist_result const want = build(&a, s, serial);
        CHECK_RESULT(build(&b, s, parallel), want);
        same_lists(&a, &b);
        if (want == NLIST_OK) CHECK_RESULT(nlist_validate(&b), NLIST_OK);
        write_history(&a, tested_step);
        write_history(&b, tested_step);
        if (tested_step == 2 && want == NLIST_OK) {
            renumber(s, &a, &b);
            same_lists(&a, &b);
        }
        move(s);
    }
    nlist_free(&a);
    nlist_free(&b);
}

/* ---- hooks ---- */

static parallel_pool pool;
static uint64_t shuffle = 5;

static nlist_parallel hook(int which, int32_t tasks)
{
    static nlist_run *const runs[] = { parallel_threads, parallel_forward, parallel_backward,
                                       parallel_shuffled, parallel_refuse, parallel_last_missing };
    nlist_parallel parallel;
    parallel.run = runs[which];
    parallel.user = which == 0 ? (void *)&pool : which == 3 ? (void *)&shuffle : NULL;
    parallel.tasks = tasks;
    tested_hook = which;
    tested_tasks = tasks;
    return parallel;
}

static void same_bits(void **state)
{
    static const int32_t tasks[] = { 1, 2, 3, 7, 64 };
    static scene s;
    int input, source, options, layout, counter = 0;
    (void)state;
    tested = &s;
    describe = tell;
    for (input = 0; input < INPUTS; input++)
        for (source = 0; source < SOURCES; source++)
            for (options = 0; options < OPTIONS; options += 1 + roll(5))
                for (layout = NLIST_COMPACT; layout <= NLIST_HYBRID; layout++) {
                    if (!chosen(counter++)) continue;
                    make_scene(&s, input, source, options, (nlist_layout)layout);
                    live(&s, hook(counter % 4, tasks[roll(5)]));
                }
}

static void calls_the_hook(void **state)
{
    static scene s;
    nlist list;
    int64_t calls;
    (void)state;
    memset(&list, 0, sizeof list);
    make_scene(&s, UNIFORM, BY_GRID, 0, NLIST_COMPACT);
    calls = pool.calls;
    CHECK_RESULT(build(&list, &s, hook(0, 1)), NLIST_OK);
    CHECK(pool.calls == calls);
    CHECK_RESULT(build(&list, &s, hook(0, 7)), NLIST_OK);
    CHECK(pool.calls >= calls + 4); /* particles, search, layout, carry */
    nlist_free(&list);
}

/* ---- hooks that lose tasks ---- */

static int32_t rounds_left;

static void lose_in_a_round(nlist_task *task, void *context, int32_t tasks, void *user)
{
    parallel_forward(task, context, rounds_left-- == 0 ? tasks - 1 : tasks, user);
}

/* Whichever round loses a task: the list is valid, and the one that it was, or empty. */
static void builds_that_lose_tasks(void **state)
{
    static scene s;
    int options, round, source, lost = 0, kept = 0;
    (void)state;
    tested = &s;
    describe = tell;
    for (options = 0; options < OPTIONS; options += HISTORY)
        for (round = 0; round < 16; round++) {
            static const nlist_parallel serial;
            nlist_parallel parallel = hook(1, 3);
            nlist list, other;
            nlist_result result;
            parallel.run = lose_in_a_round;
            memset(&list, 0, sizeof list);
            memset(&other, 0, sizeof other);
            source = round % 2 ? BY_BOX : BY_GRID;
            make_scene(&s, UNIFORM, source, options, NLIST_HYBRID);
            CHECK_RESULT(build(&list, &s, serial), NLIST_OK);
            CHECK_RESULT(build(&other, &s, serial), NLIST_OK);
            move(&s);
            rounds_left = round / 2;
            result = build(&list, &s, parallel);
            CHECK_RESULT(result, rounds_left < 0 ? NLIST_NOT_RUN : NLIST_OK);
            rounds_left = -1;
            lost += result != NLIST_OK;
            if (result != NLIST_OK && list.built) {
                memset(other.event_count, 0, sizeof other.event_count);
                memset(list.event_count, 0, sizeof list.event_count);
                list.needed_width = other.needed_width; /* what the refused build needed */
                list.needed_entries = other.needed_entries;
                same_lists(&list, &other);
                kept++;
            }
            if (options & (HISTORY | EVENTS)) CHECK(list.built);
            if (list.built) CHECK_RESULT(nlist_validate(&list), NLIST_OK);
            else CHECK(list.n == 0 && list.total == 0);
            CHECK_RESULT(build(&list, &s, parallel), NLIST_OK);
            CHECK_RESULT(nlist_validate(&list), NLIST_OK);
            nlist_free(&list);
            nlist_free(&other);
        }
    CHECK(lost > 80 && kept > 40);
}

/* ---- searches of boxes ---- */

enum { BOXES = 4 };

/* Systems of very different size: some are cut, some are not. Or one of all particles. */
typedef struct systems {
    scene s;
    int32_t count;
    nlist_box box[BOXES];
    int32_t starts[BOXES + 1];
} systems;

static void make_systems(systems *all, int32_t count, int input, int options, int order)
{
    int k, a;
    make_scene(&all->s, input, BY_BOX, options, NLIST_COMPACT);
    all->count = count;
    all->s.desc.sorted = order == 1;
    all->s.desc.nearest = order == 2 && !(options & HALF) ? 5 : 0;
    memset(all->box, 0, sizeof all->box);
    for (k = 0; k < BOXES; k++) {
        for (a = 0; a < 3; a++) {
            all->box[k].cell[a][a] = 1;
            all->box[k].periodic[a] = options & PERIODIC && a != k % 3;
        }
        all->box[k].cell[1][0] = (real)0.25;
        all->starts[k + 1] = k == 0 ? all->s.n / 2 : k == 1 ? all->s.n / 2 : all->s.n;
    }
    if (all->s.n > 20) all->starts[2] += 3;
    if (count == 1) all->starts[1] = all->s.n;
}

static nlist_result search(nlist *list, const systems *all, nlist_parallel parallel,
                           nlist_arrays *found)
{
    nlist_desc desc = all->s.desc;
    desc.parallel = parallel;
    return nlist_search_boxes(list, &desc, all->box, all->starts, all->count, all->s.pos, 0, found);
}

static void same_found(const nlist_arrays *a, const nlist_arrays *b)
{
    CHECK(a->count == b->count && a->rows_cut == b->rows_cut);
    same_array(a->i, b->i, a->count, sizeof *a->i);
    same_array(a->j, b->j, a->count, sizeof *a->j);
    same_array(a->shift, b->shift, 3 * a->count, sizeof *a->shift);
    same_array(a->distance, b->distance, a->count, sizeof *a->distance);
    same_array(a->offset, b->offset, 3 * a->count, sizeof *a->offset);
}

/* All arrays, in memory of the list, then of the caller: as many as needed, then too few. */
static void same_searches(const systems *all, nlist *a, nlist *b, nlist_parallel parallel)
{
    static const nlist_parallel serial;
    nlist_arrays x, y;
    int32_t *i, *j;
    int64_t room;
    memset(&x, 0, sizeof x);
    memset(&y, 0, sizeof y);
    x.wanted = y.wanted = 31;
    CHECK_RESULT(search(a, all, serial, &x), NLIST_OK);
    CHECK_RESULT(search(b, all, parallel, &y), NLIST_OK);
    same_found(&x, &y);
    room = x.count;
    i = NEW(int32_t, room + 1);
    j = NEW(int32_t, room + 1);
    memset(&y, 0, sizeof y);
    y.i = i;
    y.j = j;
    for (y.capacity = room; y.capacity >= 0 && y.capacity > room - 9; y.capacity -= 4) {
        i[y.capacity] = j[y.capacity] = -7;
        CHECK_RESULT(search(b, all, parallel, &y),
                     y.capacity < room ? NLIST_BUFFER_TOO_SMALL : NLIST_OK);
        CHECK(y.count == room && i[y.capacity] == -7 && j[y.capacity] == -7);
        if (y.capacity < room) continue;
        CHECK(same(i, x.i, (size_t)room * sizeof *i) && same(j, x.j, (size_t)room * sizeof *j));
    }
    free(i);
    free(j);
}

static void same_builds(const systems *all, nlist *a, nlist *b, nlist_parallel parallel)
{
    nlist_desc desc = all->s.desc;
    CHECK_RESULT(nlist_build_boxes(a, &desc, all->box, all->starts, all->count, all->s.pos, 0),
                 NLIST_OK);
    desc.parallel = parallel;
    CHECK_RESULT(nlist_build_boxes(b, &desc, all->box, all->starts, all->count, all->s.pos, 0),
                 NLIST_OK);
    CHECK(a->rows_cut == b->rows_cut);
    same_lists(a, b);
    CHECK_RESULT(nlist_validate(b), NLIST_OK);
}

static void same_bits_of_boxes(void **state)
{
    static const int32_t tasks[] = { 1, 2, 3, 7, 64 };
    static systems all;
    int input, order, k, counter = 0;
    (void)state;
    tested = &all.s;
    describe = tell;
    for (input = 0; input < INPUTS; input++)
        for (order = 0; order < 3; order++)
            for (k = 0; k < COUNT_OF(tasks); k++) {
                nlist a, b;
                make_systems(&all, counter % 2 ? 1 : BOXES, input,
                             roll(HISTORY) | (roll(4) ? PERIODIC : 0), order);
                memset(&a, 0, sizeof a);
                memset(&b, 0, sizeof b);
                same_searches(&all, &a, &b, hook(counter % 4, tasks[k]));
                move(&all.s);
                same_searches(&all, &a, &b, hook(++counter % 4, tasks[k])); /* memory is kept */
                same_builds(&all, &a, &b, hook(counter % 4, tasks[k]));
                nlist_free(&a);
                nlist_free(&b);
            }
}

/* Tasks must not allocate; `user` is the heap. */
static int32_t rounds;

static void run_without_memory(nlist_task *task, void *context, int32_t tasks, void *user)
{
    const heap *h = (const heap *)user;
    int64_t const before = h->calls;
    rounds++;
    parallel_backward(task, context, tasks, NULL);
    CHECK(h->calls == before);
}

/* A first search has no memory for what it finds, and pieces stop and go on; a second has. */
static void tasks_take_no_memory(void **state)
{
    static systems all;
    heap h = { 0, 0, 0, 0, 0, 0 };
    nlist_parallel parallel = hook(2, 7);
    nlist_arrays found;
    nlist list;
    int32_t first;
    int64_t calls;
    (void)state;
    parallel.run = run_without_memory;
    parallel.user = &h;
    memset(&list, 0, sizeof list);
    memset(&found, 0, sizeof found);
    make_systems(&all, BOXES, COINCIDENT, 0, 1);
    all.s.desc.radius = (real)1.25; /* periodic, so that each has many images */
    memset(all.box[0].periodic, 1, sizeof all.box[0].periodic);
    all.s.desc.allocator = allocator_of(&h);
    rounds = 0;
    found.wanted = 31;
    CHECK_RESULT(search(&list, &all, parallel, &found), NLIST_OK);
    first = rounds;
    calls = h.calls;
    rounds = 0;
    CHECK_RESULT(search(&list, &all, parallel, &found), NLIST_OK);
    CHECK(first > rounds && rounds > 6 && h.calls == calls);
    nlist_free(&list);
    CHECK(!h.wrong && h.live_blocks == 0);
}

/* A refused round: a code, and a list that was built before is as it was. */
static void searches_that_lose_tasks(void **state)
{
    static systems all;
    int round, order, lost = 0;
    (void)state;
    for (order = 0; order < 3; order++)
        for (round = 0; round < 12; round++) {
            nlist_parallel parallel = hook(1, 3);
            nlist a, b;
            nlist_arrays found;
            nlist_result result;
            parallel.run = lose_in_a_round;
            memset(&a, 0, sizeof a);
            memset(&b, 0, sizeof b);
            memset(&found, 0, sizeof found);
            found.wanted = 31;
            make_systems(&all, round % 2 ? 1 : BOXES, UNIFORM, PERIODIC, order);
            rounds_left = -1;
            same_builds(&all, &a, &b, hook(1, 1));
            parallel.run = lose_in_a_round;
            rounds_left = round;
            result = search(&b, &all, parallel, &found);
            CHECK_RESULT(result, rounds_left < 0 ? NLIST_NOT_RUN : NLIST_OK);
            rounds_left = -1;
            lost += result != NLIST_OK;
            same_lists(&a, &b);
            same_searches(&all, &a, &b, hook(3, 3));
            nlist_free(&a);
            nlist_free(&b);
        }
    CHECK(lost >= 3 * 5);
}

static void names_the_first_bad_box(void **state)
{
    static const nlist_parallel serial;
    static systems all;
    int first;
    (void)state;
    for (first = 0; first < BOXES; first++) {
        nlist_arrays found;
        nlist a, b;
        int k, a_axis;
        memset(&a, 0, sizeof a);
        memset(&b, 0, sizeof b);
        memset(&found, 0, sizeof found);
        found.wanted = 1;
        make_systems(&all, BOXES, UNIFORM, PERIODIC, 0);
        for (k = first; k < BOXES; k++)
            for (a_axis = 0; a_axis < 3; a_axis++)
                all.box[k].periodic[a_axis] = 1, all.box[k].cell[2][a_axis] = 0;
        CHECK_RESULT(search(&a, &all, serial, &found), NLIST_BAD_BOX);
        CHECK_RESULT(search(&b, &all, hook(first, 7), &found), NLIST_BAD_BOX);
        CHECK(a.bad_id == first && b.bad_id == first);
        nlist_free(&a);
        nlist_free(&b);
    }
}

/* ---- memory, refusals ---- */

static void reserved_builds_allocate_nothing(void **state)
{
    static scene s;
    int layout, k;
    (void)state;
    for (layout = NLIST_COMPACT; layout <= NLIST_HYBRID; layout++)
        for (k = 0; k < 2; k++) {
            nlist list;
            heap h = { 0, 0, 0, 0, 0, 0 };
            int64_t calls;
            memset(&list, 0, sizeof list);
            make_scene(&s, UNIFORM, BY_GRID, k ? HALF | HISTORY | EVENTS : 0,
                       (nlist_layout)layout);
            s.desc.allocator = allocator_of(&h);
            CHECK_RESULT(nlist_reserve(&list, &s.desc, s.n, 4000), NLIST_OK);
            calls = h.calls;
            for (tested_step = 0; tested_step < 3; tested_step++) {
                CHECK_RESULT(build(&list, &s, hook(2, 7)), NLIST_OK);
                move(&s);
            }
            CHECK(h.calls == calls);
            nlist_free(&list);
            CHECK(!h.wrong && h.live_blocks == 0);
        }
}

static void every_allocation_fails(void **state)
{
    static scene s;
    int fail, failures = 0;
    (void)state;
    for (fail = 1; fail < 70; fail++) {
        nlist list;
        nlist_result result;
        heap h = { 0, 0, 0, 0, 0, 0 };
        memset(&list, 0, sizeof list);
        make_scene(&s, UNIFORM, fail % 2 ? BY_GRID : BY_BOX, HISTORY | EVENTS, NLIST_HYBRID);
        s.desc.allocator.alloc = scarce_alloc;
        s.desc.allocator.free = heap_free;
        s.desc.allocator.user = &h;
        h.fail_at = (fail + 1) / 2;
        result = build(&list, &s, hook(3, 3));
        /* where the search itself lacks memory, it counts, or goes on without tasks */
        CHECK(result == NLIST_OK || (result == NLIST_OUT_OF_MEMORY && h.calls >= (fail + 1) / 2));
        failures += result != NLIST_OK;
        h.fail_at = 0;
        CHECK_RESULT(build(&list, &s, hook(3, 3)), NLIST_OK);
        CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        nlist_free(&list);
        CHECK(!h.wrong && h.live_blocks == 0);
    }
    CHECK(failures >= 30);
}

/* A heap of `limit` bytes. asked: bytes of all blocks that it gave, which bounds the copies. */
typedef struct purse { heap h; int64_t limit, asked; } purse;

static void *purse_alloc(size_t bytes, void *user)
{
    purse *p = (purse *)user;
    if (p->h.live_bytes + (int64_t)bytes > p->limit) return NULL;
    p->asked += (int64_t)bytes;
    return heap_alloc(bytes, user);
}

enum { CROWD = 150, CROWD_ENTRIES = CROWD * (CROWD - 1) };
enum { SHORT_BRUTE, SHORT_GRID, SHORT_TREE, SHORT_PAIRS, SHORT_BOX, SHORT_NEAREST, SHORT_SEARCH,
       SHORT_SORTED, SHORT_KINDS };

/* All of a crowd are partners of all, by whatever source. `*count`: the entries, or how many the
   call says that there are. */
static nlist_result build_short(nlist *list, int kind, nlist_desc d, const ugrid *grid,
                                const lbvh *tree, const real *pos, int64_t *count)
{
    static int32_t pairs[CROWD_ENTRIES];
    nlist_box box = {{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, {0, 0, 0}};
    nlist_arrays a;
    nlist_result r;
    int32_t i, j, m = 0;
    memset(&a, 0, sizeof a);
    a.wanted = 31;
    d.nearest = kind == SHORT_NEAREST ? CROWD : 0;
    d.sorted = kind == SHORT_SORTED;
    if (kind == SHORT_PAIRS)
        for (i = 0; i < CROWD; i++)
            for (j = 0; j < i; j++) pairs[m++] = i, pairs[m++] = j;
    switch (kind) {
    case SHORT_BRUTE: r = nlist_build_brute(list, &d, pos, 0, CROWD); break;
    case SHORT_GRID: r = nlist_build_ugrid(list, &d, grid, pos, 0, CROWD); break;
    case SHORT_TREE: r = nlist_build_lbvh(list, &d, tree, pos, 0, CROWD); break;
    case SHORT_PAIRS: r = nlist_build_pairs(list, &d, pairs, CROWD_ENTRIES / 2, CROWD); break;
    case SHORT_BOX:
    case SHORT_NEAREST: r = nlist_build_box(list, &d, &box, pos, 0, CROWD); break;
    default: r = nlist_search_box(list, &d, &box, pos, 0, CROWD, &a);
    }
    *count = kind >= SHORT_SEARCH ? a.count : r == NLIST_OK ? list->total : list->needed_entries;
    return r;
}

/* With any amount of memory a build copies little, and ends with the list or with the size that it
   needs, also where half as much again is not to be had. */
static void short_of_memory(void **state)
{
    static real pos[3 * CROWD];
    ugrid grid = {0};
    ugrid_desc cells = {0};
    lbvh tree = {0};
    lbvh_desc points = {0};
    int kind, tasks, k;
    (void)state;
    for (k = 0; k < 3 * CROWD; k++) pos[k] = (real)wl_u(&dice);
    cells.cell = 2;
    points.kind = LBVH_POINTS;
    CHECK(ugrid_build(&grid, &cells, pos, 0, CROWD) == UGRID_OK);
    CHECK(lbvh_build(&tree, &points, pos, 0, CROWD) == LBVH_OK);
    for (kind = 0; kind < SHORT_KINDS; kind++) for (tasks = 0; tasks < 2; tasks++) {
        int64_t limit;
        int told = 0, built = 0;
        for (limit = 2000; limit < 4000000; limit += limit / 11) {
            purse p;
            nlist list = {0};
            nlist_desc d = {0};
            nlist_result r;
            int64_t count;
            memset(&p, 0, sizeof p);
            p.limit = limit;
            d.radius = 2;
            d.allocator.alloc = purse_alloc;
            d.allocator.free = heap_free;
            d.allocator.user = &p;
            if (tasks) d.parallel = hook(1, 5);
            r = build_short(&list, kind, d, &grid, &tree, pos, &count);
            CHECK(r == NLIST_OK || r == NLIST_OUT_OF_MEMORY);
            CHECK(count == CROWD_ENTRIES || (r != NLIST_OK && count == 0));
            CHECK_BELOW((double)p.asked, 20 * (double)limit);
            told += r != NLIST_OK && count == CROWD_ENTRIES;
            built += r == NLIST_OK;
            p.limit = INT64_MAX;
            CHECK_RESULT(nlist_validate(&list), list.built ? NLIST_OK : NLIST_NOT_BUILT);
            nlist_free(&list);
            CHECK(!p.h.wrong && p.h.live_blocks == 0);
            if (built == 6) break;
        }
        CHECK((told > 3 || kind == SHORT_PAIRS) && built == 6);
    }
    ugrid_free(&grid);
    lbvh_free(&tree);
}

static void refuses_numbers_of_tasks(void **state)
{
    static scene s;
    static const int32_t bad[] = { -1, 1025, INT32_MAX, INT32_MIN };
    nlist list;
    int k;
    (void)state;
    memset(&list, 0, sizeof list);
    make_scene(&s, UNIFORM, BY_GRID, 0, NLIST_COMPACT);
    for (k = 0; k < COUNT_OF(bad); k++)
        CHECK_RESULT(build(&list, &s, hook(1, bad[k])), NLIST_BAD_OPTION);
    CHECK(strstr(nlist_result_text(NLIST_BAD_OPTION), "desc.parallel.tasks"));
    nlist_free(&list);
}

static void names_the_first_bad_particle(void **state)
{
    static const nlist_parallel serial;
    static scene s;
    int counter;
    (void)state;
    tested = &s;
    describe = tell;
    for (counter = 0; counter < 40; counter++) {
        nlist a, b;
        nlist_result want;
        memset(&a, 0, sizeof a);
        memset(&b, 0, sizeof b);
        make_scene(&s, UNIFORM, BY_BRUTE, RADII, NLIST_COMPACT);
        s.pos[3 * roll(s.n)] = REAL_NAN;
        s.radii[roll(s.n)] = counter % 2 ? -1 : REAL_INFINITY;
        want = build(&a, &s, serial);
        CHECK(want != NLIST_OK);
        CHECK_RESULT(build(&b, &s, hook(counter % 4, 7)), want);
        CHECK(a.bad_id == b.bad_id && a.bad_id >= 0);
        nlist_free(&a);
        nlist_free(&b);
    }
}

/* The faster forms, serial and in tasks, make the lists of the plain form (test_nlist_plain.c). */
enum { BLOCKS = 3000, HEAP = 1100 };

/* Do two lists have the same rows, in any order? */
static void check_same_sets(const nlist *one, const nlist *other)
{
    static uint8_t seen[BLOCKS];
    int32_t i;
    CHECK(one->total == other->total);
    for (i = 0; i < one->n; i++) {
        nlist_each e = nlist_of(one, i);
        memset(seen, 0, sizeof seen);
        while (nlist_next(&e)) seen[e.id]++;
        e = nlist_of(other, i);
        while (nlist_next(&e)) CHECK(seen[e.id]-- == 1);
    }
}

/* Blocks of leaves inside a periodic box and at its borders, and of more candidates than are
   collected, beside lists from a grid whose cells are smaller than the reach. */
static void blocks_of_leaves(void **state)
{
    static real pos[3 * BLOCKS], radii[BLOCKS];
    int options;
    int32_t i;
    (void)state;
    dice = wl_seed(7);
    for (options = 0; options < 8; options++) {
        int const crowd = options == 7, n = crowd ? HEAP : BLOCKS;
        nlist by_tree = {0}, by_grid = {0};
        lbvh tree = {0};
        ugrid grid = {0};
        lbvh_desc points;
        ugrid_desc cells;
        nlist_desc d;
        int a;
        memset(&points, 0, sizeof points);
        memset(&cells, 0, sizeof cells);
        memset(&d, 0, sizeof d);
        for (i = 0; i < 3 * n; i++) pos[i] = crowd ? (real)0.5 : (real)wl_u(&dice);
        for (i = 0; i < n; i++) radii[i] = (real)wl_u(&dice) / 64;
        points.kind = LBVH_POINTS;
        points.radius = options & 4 ? (real)0.0625 : 0;
        cells.cell = (real)0.03125;
        d.radius = (real)0.0625;
        d.half = options & 1;
        d.radii = options & 2 ? radii : NULL;
        for (a = 0; a < 3; a++) {
            cells.max[a] = d.max[a] = 1;
            cells.periodic[a] = d.periodic[a] = 1;
        }
        CHECK(lbvh_build(&tree, &points, pos, 0, n) == LBVH_OK);
        CHECK(ugrid_build(&grid, &cells, pos, 0, n) == UGRID_OK);
        CHECK(nlist_build_lbvh(&by_tree, &d, &tree, pos, 0, n) == NLIST_OK);
        CHECK(nlist_build_ugrid(&by_grid, &d, &grid, pos, 0, n) == NLIST_OK);
        check_same_sets(&by_tree, &by_grid);
        CHECK(nlist_verify(&by_grid, &d, pos, 0, 50, 1, NULL) == NLIST_OK);
        nlist_free(&by_tree);
        nlist_free(&by_grid);
        lbvh_free(&tree);
        ugrid_free(&grid);
    }
}

/* Slots that are -1 already are not written again: rows that become shorter, longer, fewer; other
   widths and layouts between. */
static void slots_built_again(void **state)
{
    static real pos[3 * BLOCKS];
    nlist list = {0};
    nlist_desc d;
    int step;
    int32_t i, k;
    (void)state;
    memset(&d, 0, sizeof d);
    dice = wl_seed(8);
    for (step = 0; step < 40; step++) {
        int32_t const n = 20 + (int32_t)(60 * wl_u(&dice));
        const nlist_rows *rows;
        for (i = 0; i < 3 * n; i++) pos[i] = (real)wl_u(&dice);
        d.radius = (real)(0.1 + 0.4 * wl_u(&dice));
        d.layout = step % 5 == 4 ? NLIST_COMPACT : step % 5 == 3 ? NLIST_HYBRID : NLIST_STATIC;
        d.width = d.layout == NLIST_COMPACT ? 0 : step % 5 == 3 ? 4 : step % 7 == 6 ? 81 : 80;
        if (step % 6 == 5) {
            d.width = 1;
            d.layout = NLIST_STATIC; /* refused: the list stays */
            (void)nlist_build_brute(&list, &d, pos, 0, n);
        } else CHECK(nlist_build_brute(&list, &d, pos, 0, n) == NLIST_OK);
        rows = &list.rows[list.current];
        for (i = 0; rows->slot && i < rows->n; i++)
            for (k = 0; k < rows->width; k++)
                CHECK((rows->slot[i * rows->width + k] >= 0) == (k < rows->count[i]));
        CHECK(nlist_validate(&list) == NLIST_OK);
    }
    nlist_free(&list);
}

static void bits_of_the_plain_form(void **state)
{
    static const nlist_parallel serial;
    (void)state;
    plain_check(serial);
    plain_check(hook(1, 7));
}

static int stop_pool(void **state)
{
    (void)state;
    parallel_stop(&pool);
    return 0;
}

int main(void)
{
    const struct CMUnitTest parallel[] = {
        TEST(same_bits),
        TEST(calls_the_hook),
        TEST(builds_that_lose_tasks),
        TEST(same_bits_of_boxes),
        TEST(tasks_take_no_memory),
        TEST(searches_that_lose_tasks),
        TEST(names_the_first_bad_box),
        TEST(reserved_builds_allocate_nothing),
        TEST(every_allocation_fails),
        TEST(short_of_memory),
        TEST(refuses_numbers_of_tasks),
        TEST(names_the_first_bad_particle),
        TEST(blocks_of_leaves),
        TEST(slots_built_again),
        TEST(bits_of_the_plain_form),
    };
    int failed = 0;
    parallel_all_used();
    parallel_start(&pool, 3);
    RUN_GROUP(failed, parallel, stop_pool);
    return failed;
}
