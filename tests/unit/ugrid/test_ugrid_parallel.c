/* test_ugrid_parallel.c - desc.parallel of ugrid.h: any number of tasks, in any order and on
   threads, gives the bits of the serial code.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O1 -g -fsanitize=thread ...                          (tests/quality/flags/run.sh)

   A scene is built and searched serially and with each hook, and whatever comes out is compared:
   arrays, results, counts. A piece is worth a task from 4 particles on. */

#define UGRID_I_PIECE 4
#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define TESTED ugrid
#define SHARE environment("UGRID_TEST_SHARE", small_run() ? 32 : 1)
#define LOT environment("UGRID_TEST_LOT", 0)
#include "../../common/parallel.h"
#include "../../common/testing.h"

enum { MOST = 160, QUERIES = 100, ROOM = 26000, WIDTH = 2 };
enum { UNIFORM, CLUSTERED, COINCIDENT, EMPTY, ONE, LATTICE, FEW, INPUTS };
enum { PLAIN, PERIODIC, UNBOUNDED, TIGHT, BARE, MORTON, GHOSTS, FLAT, LEFT_OUT, FITTED, FILTERED,
       WIDE, SKIPPED, BOXES, VARIANTS };

typedef struct scene {
    ugrid_desc desc;
    int input, variant;
    int32_t n, m;
    real radius;
    real pos[3 * MOST], points[3 * QUERIES], values[WIDTH * MOST], radii[MOST], half[3 * MOST];
    uint32_t masks[MOST];
} scene;

/* What one function gave: its result, and a number of all that it wrote. */
enum { BUILD, PAIRS, COUNTS, LISTS, SHORT, COUNTED, AT, AT_SHORT, AT_COUNTED, GATHER, SCATTER,
       CELL_SUMS, ANSWERS };
typedef struct answers {
    ugrid_result result[ANSWERS];
    uint64_t sum[ANSWERS];
    int32_t bad_id;
} answers;

static const scene *tested;
static int tested_tasks, tested_hook, tested_answer;

static void tell(void)
{
    print_error("input %d, variant %d, method %d, n %d: hook %d, %d tasks, answer %d\n",
                tested->input, tested->variant, (int)tested->desc.method, (int)tested->n,
                tested_hook, tested_tasks, tested_answer);
}

static void make_points(scene *s)
{
    static const int32_t sizes[INPUTS] = { MOST, MOST, MOST, 0, 1, 147, 9 };
    int32_t i;
    int a;
    s->n = sizes[s->input];
    for (i = 0; i < s->n; i++) {
        real *const p = s->pos + 3 * i;
        real const cluster = s->input == CLUSTERED && i % 8 ? (real)0.03125 : 1;
        for (a = 0; a < 3; a++) p[a] = cluster * between(0, 1);
        if (s->input == COINCIDENT) p[0] = p[1] = p[2] = (real)0.375;
        if (s->input != LATTICE) continue;
        p[0] = (real)(i % 7) / 8;
        p[1] = (real)(i / 7 % 7) / 8;
        p[2] = (real)(i / 49) / 8;
    }
    for (i = 0; i < 3 * QUERIES; i++) s->points[i] = between((real)-0.25, (real)1.25);
    for (i = 0; i < QUERIES; i += 17) s->points[3 * i + 1] = i % 2 ? REAL_NAN : REAL_INFINITY;
}

/* desc.skip_invalid: the first pieces may have no particle that is finite; boxes given and not. */
static void skip_some(scene *s)
{
    int32_t i;
    s->desc.skip_invalid = 1;
    s->desc.outside = s->input % 2 ? UGRID_LEAVE_OUT : UGRID_CLAMP;
    if (s->input == LATTICE) for (i = 0; i < 3 * s->n; i++) s->pos[i] += (real)0.5;
    for (i = 0; i < s->n; i++)
        if (i % 7 == 2 || (s->input == LATTICE && i < 40))
            s->pos[3 * i + i % 3] = i % 2 ? REAL_NAN : -REAL_INFINITY;
    if (s->input == LATTICE || s->input == CLUSTERED) memset(s->desc.max, 0, sizeof s->desc.max);
}

/* A box for each particle, up to a cell wide. */
static void give_boxes(scene *s)
{
    int32_t i;
    for (i = 0; i < 3 * MOST; i++) s->half[i] = between(0, (real)0.0625);
    s->desc.placement = UGRID_TIGHT;
    s->desc.half_extents = s->half;
}

static void choose_variant(scene *s)
{
    ugrid_desc *d = &s->desc;
    int a;
    for (a = 0; a < 3; a++) d->max[a] = s->variant == LEFT_OUT ? (real)0.75 : 1;
    d->cell = s->radius = (real)0.125;
    d->inverse = s->variant == BARE || s->variant == MORTON;
    if (s->variant == PERIODIC) d->periodic[0] = d->periodic[2] = 1;
    if (s->variant == UNBOUNDED) d->unbounded = 1, d->buckets = 64;
    if (s->variant == TIGHT) d->placement = UGRID_TIGHT;
    if (s->variant == BARE) d->no_records = 1;
    if (s->variant == MORTON) d->cell_order = UGRID_MORTON;
    if (s->variant == GHOSTS) d->rows = s->n > 3 ? 2 * s->n / 3 : 0;
    if (s->variant == FLAT) d->dim = 2, d->split = 3;
    if (s->variant == LEFT_OUT) d->outside = UGRID_LEAVE_OUT;
    if (s->variant == FITTED) memset(d->max, 0, sizeof d->max), d->cell = 0;
    if (s->variant == WIDE) d->cell = (real)0.0625, s->radius = (real)0.3;
    if (s->variant == SKIPPED) skip_some(s);
    if (s->variant == BOXES) give_boxes(s);
    d->slots = MOST;
}

static void make_scene(scene *s, int input, int variant, ugrid_method method)
{
    int32_t i;
    memset(s, 0, sizeof *s);
    s->input = input;
    s->variant = variant;
    s->desc.method = method;
    s->m = QUERIES;
    make_points(s);
    choose_variant(s);
    for (i = 0; i < WIDTH * MOST; i++) s->values[i] = between(-1, 1);
    for (i = 0; i < MOST; i++) s->radii[i] = between(0, (real)0.0625), s->masks[i] = 1u << i % 3;
}

static void sum_records(uint64_t *sum, const ugrid_record *record, int32_t n)
{
    int32_t k;
    for (k = 0; record && k < n; k++) {
        MIX(*sum, record[k].x, 3);
        MIX(*sum, &record[k].link, 1);
    }
}

/* Everything that a build leaves. */
static uint64_t sum_grid(const ugrid *g)
{
    uint64_t sum = (uint64_t)g->built;
    int32_t const facts[] = { g->n, g->rows, g->cell_count, g->entries, g->bad_id, g->outside,
                              g->invalid, g->needed_slots };
    MIX(sum, facts, COUNT_OF(facts));
    MIX(sum, g->desc.min, 3);
    MIX(sum, g->desc.max, 3);
    MIX(sum, &g->desc.cell, 1);
    if (!g->built) return sum;
    if (g->start) MIX(sum, g->start, g->cell_count + 1);
    if (g->order) MIX(sum, g->order, g->entries);
    if (g->order && g->spans == 1) MIX(sum, g->order, g->n);
    if (g->inverse) MIX(sum, g->inverse, g->n);
    if (g->count) MIX(sum, g->count, g->cell_count);
    if (g->head) MIX(sum, g->head, g->cell_count);
    if (g->next) MIX(sum, g->next, g->n * g->spans);
    sum_records(&sum, g->record, g->n);
    return sum;
}

/* Lists with room for all, for half, for none. */
static void ask_lists(answers *out, const ugrid *g, const scene *s, int flags)
{
    int64_t *const offsets = NEW(int64_t, MOST + 1);
    int32_t *const ids = NEW(int32_t, ROOM);
    int64_t needed = 0, rooms[3] = { ROOM, 0, 0 };
    int k;
    for (k = 0; k < 3; k++) {
        int const a = LISTS + k;
        out->result[a] = ugrid_neighbors(g, s->radius, flags, offsets, ids, rooms[k], &needed);
        if (k == 0) rooms[1] = needed / 2;
        MIX(out->sum[a], &needed, 1);
        if (g->built)
            MIX(out->sum[a], offsets, (flags & UGRID_PLACES ? g->n : g->rows) + 1);
        MIX(out->sum[a], ids, needed < ROOM ? needed : ROOM);
    }
    free(offsets);
    free(ids);
}

static void ask_points(answers *out, const ugrid *g, const scene *s)
{
    int64_t *const offsets = NEW(int64_t, QUERIES + 1);
    int32_t *const ids = NEW(int32_t, ROOM);
    int64_t needed = 0, rooms[3] = { ROOM, 0, 0 };
    int k;
    for (k = 0; k < 3; k++) {
        int const a = AT + k;
        out->result[a] = ugrid_neighbors_at(g, s->points, 3 * sizeof(real), s->m, s->radius,
                                            offsets, ids, rooms[k], &needed);
        if (k == 0) rooms[1] = needed / 2;
        MIX(out->sum[a], &needed, 1);
        MIX(out->sum[a], offsets, s->m + 1);
        MIX(out->sum[a], ids, needed < ROOM ? needed : ROOM);
    }
    free(offsets);
    free(ids);
}

static void ask_attributes(answers *out, const ugrid *g, const scene *s)
{
    real *const moved = NEW(real, WIDTH * MOST);
    real *const sums = NEW(real, (int64_t)g->cell_count * WIDTH + 1);
    out->result[GATHER] = ugrid_gather(g, s->values, WIDTH * sizeof(real), moved);
    MIX(out->sum[GATHER], moved, WIDTH * MOST);
    out->result[SCATTER] = ugrid_scatter(g, s->values, WIDTH * sizeof(real), moved);
    MIX(out->sum[SCATTER], moved, WIDTH * MOST);
    out->result[CELL_SUMS] = ugrid_cell_sums(g, s->values, WIDTH, sums);
    MIX(out->sum[CELL_SUMS], sums, g->cell_count * WIDTH);
    free(moved);
    free(sums);
}

static void ask_counts(answers *out, const ugrid *g, const scene *s, int flags)
{
    int32_t *const counts = NEW(int32_t, MOST);
    int64_t pairs = 0;
    out->result[PAIRS] = ugrid_count_pairs(g, s->radius, &pairs);
    MIX(out->sum[PAIRS], &pairs, 1);
    out->result[COUNTS] = ugrid_count_neighbors(g, s->radius, flags, counts);
    MIX(out->sum[COUNTS], counts, MOST);
    free(counts);
}

/* Builds and searches, each with a hook of its own. */
static void ask(answers *out, const scene *s, int flags, ugrid_parallel built,
                ugrid_parallel searched)
{
    ugrid grid;
    ugrid_desc desc = s->desc;
    memset(&grid, 0, sizeof grid);
    memset(out, 0, sizeof *out);
    desc.parallel = built;
    out->result[BUILD] = ugrid_build(&grid, &desc, s->pos, 3 * sizeof(real), s->n);
    out->sum[BUILD] = sum_grid(&grid);
    out->bad_id = grid.bad_id;
    grid.desc.parallel = searched;
    if (s->variant == FILTERED) {
        grid.filter.radii = s->radii;
        grid.filter.largest = (real)0.0625;
        grid.filter.masks = s->masks;
    }
    ask_counts(out, &grid, s, flags);
    ask_lists(out, &grid, s, flags);
    ask_points(out, &grid, s);
    ask_attributes(out, &grid, s);
    ugrid_free(&grid);
}

static void compare(const answers *got, const answers *want)
{
    for (tested_answer = 0; tested_answer < ANSWERS; tested_answer++) {
        CHECK_RESULT(got->result[tested_answer], want->result[tested_answer]);
        CHECK(got->sum[tested_answer] == want->sum[tested_answer]);
    }
    CHECK(got->bad_id == want->bad_id);
}

/* ---- hooks ---- */

static parallel_pool pool;
static uint64_t shuffle = 5;

static ugrid_parallel hook(int which, int32_t tasks)
{
    static ugrid_run *const runs[] = { parallel_threads, parallel_forward, parallel_backward,
                                       parallel_shuffled, parallel_refuse, parallel_last_missing };
    ugrid_parallel parallel;
    parallel.run = runs[which];
    parallel.user = which == 0 ? (void *)&pool : which == 3 ? (void *)&shuffle : NULL;
    parallel.tasks = tasks;
    tested_hook = which;
    tested_tasks = tasks;
    return parallel;
}

static ugrid_parallel serial(void)
{
    ugrid_parallel none;
    memset(&none, 0, sizeof none);
    return none;
}

/* Every hook and number of tasks; under `share` some of them. */
static void try_scene(const scene *s, int flags, int *counter)
{
    static const int32_t tasks[] = { 1, 2, 3, 7, 64 };
    answers want, got;
    int h, t, asked = 0;
    for (h = 0; h < 4; h++) {
        for (t = 0; t < COUNT_OF(tasks); t++) {
            ugrid_parallel parallel;
            if (!chosen((*counter)++)) continue;
            if (!asked++) ask(&want, s, flags, serial(), serial());
            parallel = hook(h, tasks[t]);
            ask(&got, s, flags, parallel, parallel);
            compare(&got, &want);
        }
    }
}

static int variant_fits(int variant, ugrid_method method)
{
    if (variant == TIGHT || variant == BOXES) return method != UGRID_LIST_PACKED;
    if (variant == BARE || variant == MORTON) return method <= UGRID_SORT;
    return 1;
}

static void same_bits(void **state)
{
    static scene s;
    int input, variant, method, counter = 0;
    (void)state;
    tested = &s;
    describe = tell;
    for (input = 0; input < INPUTS; input++)
        for (variant = 0; variant < VARIANTS; variant++)
            for (method = UGRID_AUTO; method <= UGRID_LIST_PACKED; method++) {
                if (!variant_fits(variant, (ugrid_method)method)) continue;
                make_scene(&s, input, variant, (ugrid_method)method);
                try_scene(&s, (counter >> 3) % 4, &counter);
            }
}

static void lists_have_all_flags(void **state)
{
    static scene s;
    int flags, variant, counter = 0;
    (void)state;
    tested = &s;
    describe = tell;
    for (flags = 0; flags < 4; flags++)
        for (variant = 0; variant < VARIANTS; variant++) {
            make_scene(&s, UNIFORM, variant, UGRID_AUTO);
            try_scene(&s, flags, &counter);
        }
}

/* ---- the hook is used ---- */

static void calls_the_hook(void **state)
{
    static scene s;
    ugrid grid;
    int64_t pairs, calls = pool.calls;
    (void)state;
    memset(&grid, 0, sizeof grid);
    make_scene(&s, UNIFORM, PLAIN, UGRID_COUNT);
    s.desc.parallel = hook(0, 7);
    CHECK_RESULT(ugrid_build(&grid, &s.desc, s.pos, 0, s.n), UGRID_OK);
    calls = pool.calls;
    CHECK_RESULT(ugrid_count_pairs(&grid, s.radius, &pairs), UGRID_OK);
    CHECK(pool.calls == calls + 1);
    grid.desc.parallel.tasks = 1;
    CHECK_RESULT(ugrid_count_pairs(&grid, s.radius, &pairs), UGRID_OK);
    CHECK(pool.calls == calls + 1);
    ugrid_free(&grid);
}

/* Pieces of fewer particles than UGRID_I_PIECE are not worth a task. */
static int32_t most_seen;

static void watch(ugrid_task *task, void *context, int32_t tasks, void *user)
{
    if (tasks > most_seen) most_seen = tasks;
    parallel_forward(task, context, tasks, user);
}

static void cuts_what_is_worth_it(void **state)
{
    static scene s;
    ugrid grid;
    int64_t pairs;
    int32_t n;
    (void)state;
    memset(&grid, 0, sizeof grid);
    make_scene(&s, UNIFORM, PLAIN, UGRID_COUNT);
    s.desc.parallel.run = watch;
    s.desc.parallel.tasks = 1024;
    for (n = 0; n < 40; n++) {
        CHECK_RESULT(ugrid_build(&grid, &s.desc, s.pos, 0, n), UGRID_OK);
        most_seen = 0;
        CHECK_RESULT(ugrid_count_pairs(&grid, s.radius, &pairs), UGRID_OK);
        CHECK(most_seen == (n < 2 * UGRID_I_PIECE ? 0 : n / UGRID_I_PIECE));
    }
    ugrid_free(&grid);
}

/* ---- hooks that lose tasks ---- */

static void all_not_run(const answers *got)
{
    static const int searches[] = { PAIRS, COUNTS, LISTS, SHORT, COUNTED, AT, AT_SHORT, AT_COUNTED,
                                    GATHER, SCATTER, CELL_SUMS };
    int k;
    for (k = 0; k < COUNT_OF(searches); k++) {
        tested_answer = searches[k];
        CHECK_RESULT(got->result[tested_answer], UGRID_NOT_RUN);
    }
}

static int all_zero(const void *memory, size_t bytes)
{
    const char *const at = (const char *)memory;
    return at[0] == 0 && memcmp(at, at + 1, bytes - 1) == 0;
}

static void lost_tasks_are_noticed(void **state)
{
    static scene s;
    answers got;
    int flags, h;
    (void)state;
    tested = &s;
    describe = tell;
    make_scene(&s, UNIFORM, PLAIN, UGRID_COUNT);
    for (flags = 0; flags < 4; flags++)
        for (h = 4; h < 6; h++) {
            ask(&got, &s, flags, serial(), hook(h, 3));
            all_not_run(&got);
        }
}

static void lost_tasks_leave_zeros(void **state)
{
    static scene s;
    ugrid grid;
    int64_t offsets[MOST + 1], needed = 1, pairs = 1;
    int32_t counts[MOST], *ids = NEW(int32_t, ROOM);
    int flags;
    (void)state;
    memset(&grid, 0, sizeof grid);
    make_scene(&s, UNIFORM, PLAIN, UGRID_COUNT);
    CHECK_RESULT(ugrid_build(&grid, &s.desc, s.pos, 0, s.n), UGRID_OK);
    grid.desc.parallel = hook(5, 3);
    CHECK_RESULT(ugrid_count_pairs(&grid, s.radius, &pairs), UGRID_NOT_RUN);
    CHECK(pairs == 0);
    for (flags = 0; flags < 4; flags++) {
        memset(offsets, 0xFF, sizeof offsets);
        memset(counts, 0xFF, sizeof counts);
        CHECK_RESULT(ugrid_count_neighbors(&grid, s.radius, flags, counts), UGRID_NOT_RUN);
        CHECK(all_zero(counts, sizeof counts));
        CHECK_RESULT(ugrid_neighbors(&grid, s.radius, flags, offsets, ids, ROOM, &needed),
                     UGRID_NOT_RUN);
        CHECK(needed == 0 && all_zero(offsets, sizeof offsets));
    }
    memset(offsets, 0xFF, sizeof offsets);
    CHECK_RESULT(ugrid_neighbors_at(&grid, s.pos, 0, s.n, s.radius, offsets, ids, ROOM, &needed),
                 UGRID_NOT_RUN);
    CHECK(needed == 0 && all_zero(offsets, sizeof offsets));
    ugrid_free(&grid);
    free(ids);
}

/* A build that loses tasks is refused, whichever of its rounds it is; the next one succeeds. */
static int32_t rounds_left;

static void lose_in_a_round(ugrid_task *task, void *context, int32_t tasks, void *user)
{
    parallel_forward(task, context, rounds_left-- == 0 ? tasks - 1 : tasks, user);
}

static void builds_that_lose_tasks(void **state)
{
    static scene s;
    int k, round, lost = 0;
    (void)state;
    tested = &s;
    describe = tell;
    for (k = 0; k < 12; k++) {
        ugrid_method const method = k % 2 ? UGRID_SORT : UGRID_COUNT;
        for (round = 0; round < 6; round++) {
            ugrid grid;
            ugrid_result result;
            memset(&grid, 0, sizeof grid);
            make_scene(&s, UNIFORM, k / 2 == 0 ? LEFT_OUT : k / 2 == 1 ? FITTED : k, method);
            s.desc.parallel = hook(1, 3);
            s.desc.parallel.run = lose_in_a_round;
            rounds_left = round;
            result = ugrid_build(&grid, &s.desc, s.pos, 3 * sizeof(real), s.n);
            lost += result == UGRID_NOT_RUN;
            CHECK_RESULT(result, rounds_left < 0 ? UGRID_NOT_RUN : UGRID_OK); /* it was reached */
            if (result != UGRID_OK) CHECK(!grid.built && grid.n == 0 && grid.rows == 0);
            rounds_left = -1;
            CHECK_RESULT(ugrid_build(&grid, &s.desc, s.pos, 3 * sizeof(real), s.n), UGRID_OK);
            CHECK_RESULT(ugrid_validate(&grid), UGRID_OK);
            ugrid_free(&grid);
        }
    }
    CHECK(lost >= 12 * 3);
}

/* ---- refusals, memory ---- */

static void reserved_builds_allocate_nothing(void **state)
{
    static scene s;
    int method, n;
    (void)state;
    for (method = UGRID_AUTO; method <= UGRID_SORT; method++) {
        ugrid grid;
        heap h = { 0, 0, 0, 0, 0, 0 };
        int64_t calls;
        memset(&grid, 0, sizeof grid);
        make_scene(&s, UNIFORM, WIDE, (ugrid_method)method);
        s.desc.allocator = allocator_of(&h);
        s.desc.parallel = hook(2, 64);
        CHECK_RESULT(ugrid_reserve(&grid, &s.desc, s.n), UGRID_OK);
        calls = h.calls;
        for (n = 0; n <= s.n; n += 20)
            CHECK_RESULT(ugrid_build(&grid, &s.desc, s.pos, 0, n), UGRID_OK);
        CHECK(h.calls == calls);
        ugrid_free(&grid);
        CHECK(!h.wrong && h.live_blocks == 0 && h.live_bytes == 0);
    }
}

static void every_allocation_fails(void **state)
{
    static scene s;
    int method, fail, failures = 0;
    (void)state;
    for (method = UGRID_COUNT; method <= UGRID_SORT; method++)
        for (fail = 1; fail < 10; fail++) {
            ugrid grid;
            ugrid_result result;
            heap h = { 0, 0, 0, 0, 0, 0 };
            h.fail_at = fail;
            memset(&grid, 0, sizeof grid);
            make_scene(&s, UNIFORM, PLAIN, (ugrid_method)method);
            s.desc.allocator = allocator_of(&h);
            s.desc.parallel = hook(3, 3);
            result = ugrid_build(&grid, &s.desc, s.pos, 0, s.n);
            CHECK_RESULT(result, h.calls < fail ? UGRID_OK : UGRID_OUT_OF_MEMORY);
            failures += result != UGRID_OK;
            h.fail_at = 0;
            CHECK_RESULT(ugrid_build(&grid, &s.desc, s.pos, 0, s.n), UGRID_OK);
            CHECK_RESULT(ugrid_validate(&grid), UGRID_OK);
            ugrid_free(&grid);
            CHECK(!h.wrong && h.live_blocks == 0);
        }
    CHECK(failures >= 10);
}

static void refuses_numbers_of_tasks(void **state)
{
    static scene s;
    static const int32_t bad[] = { -1, 1025, INT32_MAX, INT32_MIN };
    ugrid grid;
    int k;
    (void)state;
    memset(&grid, 0, sizeof grid);
    make_scene(&s, UNIFORM, PLAIN, UGRID_COUNT);
    for (k = 0; k < COUNT_OF(bad); k++) {
        s.desc.parallel = hook(1, bad[k]);
        CHECK_RESULT(ugrid_build(&grid, &s.desc, s.pos, 0, s.n), UGRID_BAD_OPTION);
        CHECK_RESULT(ugrid_defaults(&grid.desc, &s.desc), UGRID_BAD_OPTION);
    }
    CHECK(strstr(ugrid_result_text(UGRID_BAD_OPTION), "desc.parallel.tasks"));
    s.desc.parallel.run = NULL;
    s.desc.parallel.tasks = 1024;
    CHECK_RESULT(ugrid_build(&grid, &s.desc, s.pos, 0, s.n), UGRID_OK);
    ugrid_free(&grid);
}

static void names_the_first_bad_particle(void **state)
{
    static scene s;
    answers want, got;
    int counter;
    (void)state;
    tested = &s;
    describe = tell;
    for (counter = 0; counter < 40; counter++) {
        make_scene(&s, UNIFORM, counter % 2 ? FITTED : PLAIN, (ugrid_method)(counter % 6));
        if (counter % 3 == 0) s.desc.outside = counter % 2 ? UGRID_CLAMP : UGRID_REFUSE;
        if (counter % 3 == 1) s.desc.outside = UGRID_LEAVE_OUT, s.pos[3 * roll(s.n)] = 2;
        s.pos[3 * roll(s.n)] = REAL_NAN;
        s.pos[3 * roll(s.n) + 2] = REAL_INFINITY;
        ask(&want, &s, 0, serial(), serial());
        CHECK_RESULT(want.result[BUILD], UGRID_NOT_FINITE);
        ask(&got, &s, 0, hook(counter % 4, 7), serial());
        compare(&got, &want);
    }
}

static void names_the_first_outside(void **state)
{
    static scene s;
    answers want, got;
    int counter;
    (void)state;
    tested = &s;
    describe = tell;
    for (counter = 0; counter < 24; counter++) {
        make_scene(&s, UNIFORM, PLAIN, (ugrid_method)(counter % 6));
        s.desc.outside = UGRID_REFUSE;
        s.desc.skip_invalid = counter % 2; /* then those left out are named after it */
        if (counter % 2) s.pos[3 * roll(s.n) + 2] = REAL_NAN;
        s.pos[3 * roll(s.n)] = 2;
        s.pos[3 * roll(s.n) + 1] = -1;
        ask(&want, &s, 0, serial(), serial());
        CHECK_RESULT(want.result[BUILD], UGRID_OUTSIDE_BOX);
        ask(&got, &s, 0, hook(counter % 4, 7), serial());
        compare(&got, &want);
    }
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
        TEST(lists_have_all_flags),
        TEST(calls_the_hook),
        TEST(cuts_what_is_worth_it),
        TEST(lost_tasks_are_noticed),
        TEST(lost_tasks_leave_zeros),
        TEST(builds_that_lose_tasks),
        TEST(reserved_builds_allocate_nothing),
        TEST(every_allocation_fails),
        TEST(refuses_numbers_of_tasks),
        TEST(names_the_first_bad_particle),
        TEST(names_the_first_outside),
    };
    int failed = 0;
    parallel_all_used();
    parallel_start(&pool, 3);
    RUN_GROUP(failed, parallel, stop_pool);
    return failed;
}
