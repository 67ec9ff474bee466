/* test_lbvh_parallel.c - desc.parallel of lbvh.h: any number of tasks, in any order and on threads,
   gives the bits of the serial code.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O1 -g -fsanitize=thread ...                          (tests/quality/flags/run.sh)

   A scene is built and searched serially and with each hook, and whatever comes out is compared:
   nodes, results, lists. A piece is worth a task from 4 searches on. */

static int lanes; /* does the processor have AVX2? */
#define LBVH_I_HAS_AVX2() lanes

#define LBVH_I_PIECE 4
#define LBVH_I_BRANCHES 24
#define LBVH_WITH_NEAREST
#define LBVH_WITH_OPTIMIZE
#define LBVH_WITH_WIDE
#define LBVH_WITH_WORLD
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define TESTED lbvh
#define SHARE environment("LBVH_TEST_SHARE", quick_run() ? 150 : small_run() ? 48 : 3)
#define LOT environment("LBVH_TEST_LOT", 0)
#include "../../common/parallel.h"
#include "../../common/testing.h"

enum { MOST = 400, QUERIES = 100, ROOM = MOST * MOST };
enum { UNIFORM, CLUSTERED, COINCIDENT, EMPTY, ONE, LATTICE, FEW, PILES, INPUTS };
enum { PLAIN, MASKED, SPLIT, SHORT_CODES, FLAT, POINTS, CODES, HOLES, BOUNDED, PLOC, VARIANTS };

typedef struct scene {
    lbvh_desc desc;
    int input, variant;
    int32_t n;
    real data[6 * MOST], boxes[6 * QUERIES], centres[3 * QUERIES];
    uint32_t masks[MOST];
} scene;

/* What one function gave: its result, and a number of all that it wrote. */
enum { BUILD, REFIT, OPTIMIZE, REFIT_AGAIN, PAIRS, LISTED, LISTED_SHORT, LISTED_EXACT,
       COUNTS = LISTED_EXACT + 1, LISTS = COUNTS + 8, ROWS = LISTS + 24,
       ANSWERS = ROWS + 2 };
typedef struct answers {
    lbvh_result result[ANSWERS];
    uint64_t sum[ANSWERS];
} answers;

static const scene *tested;
static int tested_tasks, tested_hook, tested_answer;

static void tell(void)
{
    print_error("input %d, variant %d, n %d: hook %d, %d tasks, answer %d\n", tested->input,
                tested->variant, (int)tested->n, tested_hook, tested_tasks, tested_answer);
}

static void make_boxes(scene *s)
{
    static const int32_t sizes[INPUTS] = { MOST, MOST, 300, 0, 1, 343, 9, MOST };
    int const width = s->variant == POINTS ? 3 : s->variant == FLAT ? 4 : 6, dim = width / 2;
    int32_t i;
    int a;
    s->n = sizes[s->input];
    for (i = 0; i < s->n; i++) {
        real *const p = s->data + width * i;
        real const cluster = s->input == CLUSTERED && i % 8 ? (real)0.0625 : 1;
        real corner[3];
        for (a = 0; a < 3; a++) corner[a] = cluster * between(-1, 1);
        if (s->input == COINCIDENT) corner[0] = corner[1] = corner[2] = (real)0.375;
        for (a = 0; a < 3 && s->input == PILES; a++) /* codes differ in lower bits */
            corner[a] = (real)(i % 16) / 16 + (real)0.0001 * corner[a];
        if (s->input == LATTICE) corner[0] = (real)(i % 7) / 8, corner[1] = (real)(i / 7 % 7) / 8,
                                 corner[2] = (real)(i / 49) / 8;
        memcpy(p, corner, (size_t)(width == 3 ? 3 : dim) * sizeof *p);
        for (a = 0; a < dim && width > 3; a++)
            p[dim + a] = p[a] + (s->input == LATTICE ? (real)0.125 : between(0, (real)0.25));
    }
}

static void make_queries(scene *s)
{
    int32_t i;
    int a;
    for (i = 0; i < QUERIES; i++)
        for (a = 0; a < 3; a++) {
            s->centres[3 * i + a] = between(-1, 1);
            s->boxes[6 * i + a] = between(-1, 1);
            s->boxes[6 * i + a + 3] = s->boxes[6 * i + a] + (real)0.3;
        }
    for (i = 0; i < QUERIES; i += 17) s->centres[3 * i] = s->boxes[6 * i] = REAL_NAN;
}

static void make_scene(scene *s, int input, int variant)
{
    lbvh_desc *d = &s->desc;
    int32_t i;
    memset(s, 0, sizeof *s);
    s->input = input;
    s->variant = variant;
    make_boxes(s);
    make_queries(s);
    for (i = 0; i < MOST; i++) s->masks[i] = (uint32_t)i % 4;
    if (variant == MASKED) d->masks = s->masks;
    if (variant == SPLIT) d->builder = LBVH_SPLIT;
    if (variant == PLOC) d->builder = LBVH_PLOC, d->keep_codes = 1;
    if (variant == SHORT_CODES) d->bits = 30;
    if (variant == FLAT) d->dim = 2;
    if (variant == POINTS) d->kind = LBVH_POINTS, d->radius = (real)0.1;
    if (variant == CODES) d->keep_codes = 1;
    if (variant == BOUNDED) d->min[0] = (real)-0.5, d->max[0] = d->max[1] = (real)0.5;
    if (variant != HOLES) return;
    d->skip_invalid = 1;
    for (i = 5; i < s->n; i += 11) s->data[6 * i + i % 6] = REAL_NAN;
}

/* Everything that a build leaves. */
static uint64_t sum_tree(const lbvh *t)
{
    int32_t const facts[] = { t->n, t->first_leaf, t->built, t->bad_id };
    uint64_t sum = 1;
    MIX(sum, facts, COUNT_OF(facts));
    if (!t->built) return sum;
    MIX(sum, t->lattice.origin, 3);
    MIX(sum, &t->lattice.scale, 1);
    if (t->n == 0) return sum;
    MIX(sum, t->node, 2 * t->n - 1);
    MIX(sum, t->prefix, t->n + 1);
    if (t->mask) MIX(sum, t->mask, 2 * t->n - 1);
    if (t->code) MIX(sum, t->code, t->n);
    return sum;
}

/* The pairs: counted, with room for all, for half, and for exactly all. */
static void ask_pairs(answers *out, const lbvh *t)
{
    int32_t *const pairs = NEW(int32_t, ROOM);
    int64_t needed = 0, rooms[3] = { ROOM / 2, 0, 0 };
    int k;
    out->result[PAIRS] = lbvh_count_pairs(t, &needed);
    MIX(out->sum[PAIRS], &needed, 1);
    for (k = 0; k < 3; k++) {
        out->result[LISTED + k] = lbvh_pairs(t, pairs, rooms[k], &needed);
        if (k == 0) rooms[1] = needed / 2, rooms[2] = needed;
        MIX(out->sum[LISTED + k], &needed, 1);
        MIX(out->sum[LISTED + k], pairs, 2 * (needed < rooms[k] ? needed : rooms[k]));
    }
    free(pairs);
}

/* Search number `which`: own boxes, own centres by flags, the caller's boxes and points. */
static lbvh_queries queries_of(const scene *s, int which)
{
    static const int flags[4] = { 0, LBVH_HALF, LBVH_PLACES, LBVH_HALF | LBVH_PLACES };
    lbvh_queries q;
    memset(&q, 0, sizeof q);
    q.kind = which % 2 ? LBVH_POINTS : LBVH_BOXES;
    q.radius = (real)0.15;
    if (which < 6) q.flags = flags[which < 4 ? which / 2 * 2 + which % 2 : 3];
    if (which == 5) q.flags = LBVH_PLACES;
    if (which < 6) return q;
    q.data = which % 2 ? s->centres : s->boxes;
    q.stride = (size_t)(which % 2 ? 3 : 6) * sizeof(real);
    q.n = QUERIES;
    return q;
}

static void ask_lists(answers *out, const lbvh *t, const scene *s, int which)
{
    lbvh_queries const q = queries_of(s, which);
    int32_t const rows = q.data ? q.n : t->n;
    int32_t *const counts = NEW(int32_t, MOST), *const ids = NEW(int32_t, ROOM);
    int64_t *const offsets = NEW(int64_t, MOST + 1);
    int64_t needed = 0, rooms[3] = { ROOM, 0, 0 };
    int k;
    out->result[COUNTS + which] = lbvh_count_overlaps(t, &q, counts);
    MIX(out->sum[COUNTS + which], counts, rows);
    for (k = 0; k < 3; k++) {
        int const a = LISTS + 3 * which + k;
        out->result[a] = lbvh_overlaps(t, &q, offsets, ids, rooms[k], &needed);
        if (k == 0) rooms[1] = needed / 2, rooms[2] = needed;
        MIX(out->sum[a], &needed, 1);
        MIX(out->sum[a], offsets, t->built ? rows + 1 : 0);
        if (k != 1) MIX(out->sum[a], ids, needed);
    }
    free(counts);
    free(offsets);
    free(ids);
}

/* The nearest elements of the caller's points, in Morton order and as they come. */
static void ask_rows(answers *out, const lbvh *t, const scene *s)
{
    enum { K = 5 };
    static int32_t ids[K * QUERIES], found[QUERIES];
    static real distances2[K * QUERIES];
    int k;
    memset(ids, 0, sizeof ids);
    memset(found, 0, sizeof found);
    memset(distances2, 0, sizeof distances2);
    for (k = 0; k < 2; k++) {
        out->result[ROWS + k] = lbvh_nearest_rows(t, s->centres, 3 * sizeof(real), QUERIES, K, 1,
            k ? LBVH_SORTED : 0, ids, distances2, found);
        MIX(out->sum[ROWS + k], ids, K * QUERIES);
        MIX(out->sum[ROWS + k], distances2, K * QUERIES);
        MIX(out->sum[ROWS + k], found, QUERIES);
    }
}

/* Builds, searches and refits, builds and searches each with a hook of its own. */
static void ask(answers *out, const scene *s, lbvh_parallel built, lbvh_parallel searched)
{
    static real moved[6 * MOST], mixed[6 * MOST];
    int const width = s->variant == POINTS ? 3 : s->variant == FLAT ? 4 : 6;
    lbvh tree;
    lbvh_desc desc = s->desc;
    int k;
    memset(&tree, 0, sizeof tree);
    memset(out, 0, sizeof *out);
    desc.parallel = built;
    out->result[BUILD] = lbvh_build(&tree, &desc, s->data, 0, s->n);
    out->sum[BUILD] = sum_tree(&tree);
    tree.desc.parallel = searched;
    ask_pairs(out, &tree);
    for (k = 0; k < 8; k++) ask_lists(out, &tree, s, k);
    ask_rows(out, &tree, s);
    for (k = 0; k < 6 * MOST; k++) moved[k] = s->data[k] * (real)1.5 + (real)0.25;
    tree.desc.parallel = built;
    out->result[REFIT] = lbvh_refit(&tree, moved, 0);
    out->sum[REFIT] = sum_tree(&tree);
    for (k = 0; k < width * s->n; k++) /* each element moves to another's place */
        mixed[k] = moved[(k / width * 5 + 2) % s->n * width + k % width];
    if (tree.built) CHECK_RESULT(lbvh_refit(&tree, mixed, 0), LBVH_OK);
    out->result[OPTIMIZE] = lbvh_optimize(&tree, NULL);
    out->sum[OPTIMIZE] = sum_tree(&tree);
    out->result[REFIT_AGAIN] = lbvh_refit(&tree, moved, 0);
    out->sum[REFIT_AGAIN] = sum_tree(&tree);
    if (tree.built) CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
    lbvh_free(&tree);
}

static void compare(const answers *got, const answers *want)
{
    for (tested_answer = 0; tested_answer < ANSWERS; tested_answer++) {
        CHECK_RESULT(got->result[tested_answer], want->result[tested_answer]);
        CHECK(got->sum[tested_answer] == want->sum[tested_answer]);
    }
}

/* ---- hooks ---- */

static parallel_pool pool;
static uint64_t shuffle = 5;

static lbvh_parallel hook(int which, int32_t tasks)
{
    static lbvh_run *const runs[] = { parallel_threads, parallel_forward, parallel_backward,
                                      parallel_shuffled, parallel_refuse, parallel_last_missing };
    lbvh_parallel parallel;
    parallel.run = runs[which];
    parallel.user = which == 0 ? (void *)&pool : which == 3 ? (void *)&shuffle : NULL;
    parallel.tasks = tasks;
    tested_hook = which;
    tested_tasks = tasks;
    return parallel;
}

static lbvh_parallel serial(void)
{
    lbvh_parallel none;
    memset(&none, 0, sizeof none);
    return none;
}

#if defined(__x86_64__) && defined(__GNUC__)
static int has_lanes(void) { return __builtin_cpu_supports("avx2") != 0; }
#else
static int has_lanes(void) { return 0; }
#endif

/* Every hook and number of tasks; vectors too give what plain code does. */
static void same_bits(void **state)
{
    static const int32_t tasks[] = { 1, 2, 3, 7, 64 };
    static scene s;
    static answers want, got;
    int input, variant, k, counter = 0;
    (void)state;
    tested = &s;
    describe = tell;
    for (input = 0; input < INPUTS; input++)
        for (variant = 0; variant < VARIANTS; variant++) {
            int asked = 0;
            make_scene(&s, input, variant);
            for (k = 0; k < 4 * COUNT_OF(tasks); k++) {
                lbvh_parallel parallel;
                if (!chosen(counter++)) continue;
                if (!asked++) {
                    lanes = 0;
                    ask(&want, &s, serial(), serial());
                    lanes = has_lanes();
                    ask(&got, &s, serial(), serial());
                    compare(&got, &want);
                }
                parallel = hook(k % 4, tasks[k / 4]);
                ask(&got, &s, parallel, parallel);
                compare(&got, &want);
            }
        }
}

/* ---- the hook is used ---- */

static int32_t most_seen;

static void watch(lbvh_task *task, void *context, int32_t tasks, void *user)
{
    if (tasks > most_seen) most_seen = tasks;
    parallel_forward(task, context, tasks, user);
}

static void cuts_what_is_worth_it(void **state)
{
    static scene s;
    lbvh tree;
    int64_t pairs;
    int32_t n;
    (void)state;
    memset(&tree, 0, sizeof tree);
    make_scene(&s, UNIFORM, PLAIN);
    for (n = 0; n < 40; n++) {
        CHECK_RESULT(lbvh_build(&tree, NULL, s.data, 0, n), LBVH_OK);
        tree.desc.parallel.run = watch;
        tree.desc.parallel.tasks = 1024;
        most_seen = 0;
        CHECK_RESULT(lbvh_count_pairs(&tree, &pairs), LBVH_OK);
        CHECK(most_seen == (n < 2 * LBVH_I_PIECE ? 0 : n / LBVH_I_PIECE));
        tree.desc.parallel.tasks = 1;
        most_seen = 0;
        CHECK_RESULT(lbvh_count_pairs(&tree, &pairs), LBVH_OK);
        CHECK(most_seen == 0);
    }
    lbvh_free(&tree);
}

/* ---- hooks that lose tasks ---- */

static int all_zero(const void *memory, size_t bytes)
{
    const char *const at = (const char *)memory;
    return at[0] == 0 && memcmp(at, at + 1, bytes - 1) == 0;
}

static int32_t rounds_left;

static void lose_in_a_round(lbvh_task *task, void *context, int32_t tasks, void *user)
{
    parallel_forward(task, context, rounds_left-- == 0 ? tasks - 1 : tasks, user);
}

/* A list of search `which` that loses a task in its first or second round. */
static void lose_in_a_list(const lbvh *tree, const scene *s, int which, int round)
{
    lbvh_queries const q = queries_of(s, which);
    int32_t const rows = q.data ? q.n : tree->n;
    int64_t *const offsets = NEW(int64_t, rows + 1);
    int32_t *const ids = NEW(int32_t, ROOM);
    int64_t needed = 1;
    rounds_left = round;
    CHECK_RESULT(lbvh_overlaps(tree, &q, offsets, ids, ROOM, &needed), LBVH_NOT_RUN);
    CHECK(rounds_left < 0 && needed == 0);
    CHECK(all_zero(offsets, (size_t)(rows + 1) * sizeof *offsets));
    rounds_left = 0;
    CHECK_RESULT(lbvh_count_overlaps(tree, &q, ids), LBVH_NOT_RUN);
    CHECK(all_zero(ids, (size_t)rows * sizeof *ids));
    free(offsets);
    free(ids);
}

static void lose_in_rows(const lbvh *tree, const scene *s)
{
    static int32_t ids[2 * QUERIES], found[QUERIES];
    static real distances2[2 * QUERIES];
    int32_t q;
    rounds_left = 0;
    CHECK_RESULT(lbvh_nearest_rows(tree, s->centres, 0, QUERIES, 2, 1, 0, ids, distances2, found),
                 LBVH_NOT_RUN);
    CHECK(all_zero(found, sizeof found));
    for (q = 0; q < 2 * QUERIES; q++) CHECK(ids[q] == -1 && distances2[q] > REAL_LARGEST);
}

static void searches_that_lose_tasks(void **state)
{
    static scene s;
    lbvh tree;
    int32_t *const pairs = NEW(int32_t, ROOM);
    int64_t needed = 1;
    int round, which, h;
    (void)state;
    memset(&tree, 0, sizeof tree);
    make_scene(&s, UNIFORM, PLAIN);
    CHECK_RESULT(lbvh_build(&tree, &s.desc, s.data, 0, s.n), LBVH_OK);
    for (h = 4; h < 6; h++) {
        tree.desc.parallel = hook(h, 3);
        CHECK_RESULT(lbvh_count_pairs(&tree, &needed), LBVH_NOT_RUN);
        CHECK(needed == 0);
    }
    tree.desc.parallel.run = lose_in_a_round;
    for (round = 0; round < 2; round++) {
        rounds_left = round;
        needed = 1;
        CHECK_RESULT(lbvh_pairs(&tree, pairs, ROOM / 2, &needed), LBVH_NOT_RUN);
        CHECK(needed == 0 && rounds_left < 0);
        for (which = 0; which < 8; which++) lose_in_a_list(&tree, &s, which, round);
    }
    lose_in_rows(&tree, &s);
    rounds_left = 0;
    CHECK_RESULT(lbvh_pairs(&tree, NULL, 0, &needed), LBVH_NOT_RUN);
    CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
    lbvh_free(&tree);
    free(pairs);
}

/* A build, refit or pass of rotations that loses tasks leaves no tree, in whichever round; the next
   build succeeds. */
static void builds_that_lose_tasks(void **state)
{
    static scene s;
    int which, round, lost = 0;
    (void)state;
    make_scene(&s, UNIFORM, PLAIN);
    for (which = 0; which < 4; which++) /* build, refit, PLOC, rotations */
        for (round = 0; round < 16; round++) {
            int const later = which % 2;
            lbvh tree;
            lbvh_result result;
            memset(&tree, 0, sizeof tree);
            s.desc.builder = which == 2 ? LBVH_PLOC : LBVH_MERGE;
            s.desc.parallel = hook(1, 3);
            s.desc.parallel.run = lose_in_a_round;
            rounds_left = later ? -1 : round;
            result = lbvh_build(&tree, &s.desc, s.data, 0, s.n);
            rounds_left = later ? round : rounds_left;
            if (which == 1) result = lbvh_refit(&tree, s.data, 0);
            if (which == 3) result = lbvh_optimize(&tree, NULL);
            lost += result == LBVH_NOT_RUN;
            CHECK_RESULT(result, rounds_left < 0 ? LBVH_NOT_RUN : LBVH_OK); /* it was reached */
            CHECK(tree.built == (result == LBVH_OK) && (tree.built || tree.n == 0));
            rounds_left = -1;
            CHECK_RESULT(lbvh_build(&tree, &s.desc, s.data, 0, s.n), LBVH_OK);
            CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
            lbvh_free(&tree);
        }
    CHECK(lost == 14 + 3 + 15 + 2);
}

/* ---- refusals, memory ---- */

/* The lowest index, whichever piece ends first; a refused refit leaves the tree as it was. */
static void names_the_first_bad_element(void **state)
{
    static scene s;
    lbvh tree;
    int32_t bad;
    uint64_t sum;
    int h;
    (void)state;
    memset(&tree, 0, sizeof tree);
    for (bad = 0; bad < MOST; bad += 19)
        for (h = 0; h < 4; h++) {
            make_scene(&s, UNIFORM, PLAIN);
            s.desc.parallel = hook(h, 7);
            CHECK_RESULT(lbvh_build(&tree, &s.desc, s.data, 0, s.n), LBVH_OK);
            sum = sum_tree(&tree);
            s.data[6 * bad + 4] = REAL_NAN;
            if (bad < MOST / 2) s.data[6 * (bad + MOST / 2)] = REAL_INFINITY;
            CHECK_RESULT(lbvh_refit(&tree, s.data, 0), LBVH_NOT_FINITE);
            CHECK(tree.bad_id == bad && tree.built);
            tree.bad_id = -1;
            CHECK(sum_tree(&tree) == sum);
            CHECK_RESULT(lbvh_build(&tree, &s.desc, s.data, 0, s.n), LBVH_NOT_FINITE);
            CHECK(tree.bad_id == bad && !tree.built && tree.n == 0);
        }
    lbvh_free(&tree);
}

/* Tasks allocate nothing: what is reserved is what a serial build needs. */
static void allocates_as_serial(void **state)
{
    static scene s;
    lbvh tree;
    heap h = { 0, 0, 0, 0, 0, 0 };
    int64_t bytes, calls, fail;
    (void)state;
    memset(&tree, 0, sizeof tree);
    make_scene(&s, UNIFORM, MASKED);
    s.desc.allocator.alloc = heap_alloc;
    s.desc.allocator.free = heap_free;
    s.desc.allocator.user = &h;
    CHECK_RESULT(lbvh_bytes_for(&s.desc, s.n, &bytes), LBVH_OK);
    s.desc.parallel = hook(0, 7);
    CHECK_RESULT(lbvh_reserve(&tree, &s.desc, s.n), LBVH_OK);
    CHECK(lbvh_bytes(&tree) == bytes);
    calls = h.calls;
    CHECK_RESULT(lbvh_build(&tree, &s.desc, s.data, 0, s.n), LBVH_OK);
    CHECK_RESULT(lbvh_count_pairs(&tree, &bytes), LBVH_OK);
    CHECK(h.calls == calls);
    lbvh_free(&tree);
    for (fail = 1; fail <= calls; fail++) {
        h.calls = 0;
        h.fail_at = fail;
        CHECK_RESULT(lbvh_build(&tree, &s.desc, s.data, 0, s.n), LBVH_OUT_OF_MEMORY);
        CHECK(!tree.built && tree.n == 0);
        lbvh_free(&tree);
    }
    CHECK(h.live_blocks == 0 && !h.wrong);
}


static void refuses_numbers_of_tasks(void **state)
{
    static scene s;
    lbvh tree;
    (void)state;
    memset(&tree, 0, sizeof tree);
    make_scene(&s, UNIFORM, PLAIN);
    s.desc.parallel.tasks = 1025;
    CHECK_RESULT(lbvh_build(&tree, &s.desc, s.data, 0, s.n), LBVH_BAD_OPTION);
    s.desc.parallel.tasks = -1;
    CHECK_RESULT(lbvh_build(&tree, &s.desc, s.data, 0, s.n), LBVH_BAD_OPTION);
    CHECK(strstr(lbvh_result_text(LBVH_BAD_OPTION), "desc.parallel.tasks") != NULL);
    CHECK(strstr(lbvh_result_text(LBVH_NOT_RUN), "desc.parallel.run") != NULL);
    s.desc.parallel.tasks = 1024;
    CHECK_RESULT(lbvh_build(&tree, &s.desc, s.data, 0, s.n), LBVH_OK);
    lbvh_free(&tree);
}

/* A saved tree gets the hook of the desc that it is loaded with. */
static void loaded_trees_have_the_hook(void **state)
{
    static scene s;
    lbvh tree;
    int64_t needed, pairs;
    char *bytes;
    (void)state;
    memset(&tree, 0, sizeof tree);
    make_scene(&s, UNIFORM, PLAIN);
    CHECK_RESULT(lbvh_build(&tree, &s.desc, s.data, 0, s.n), LBVH_OK);
    (void)lbvh_save(&tree, NULL, 0, &needed);
    bytes = NEW(char, needed);
    CHECK_RESULT(lbvh_save(&tree, bytes, needed, &needed), LBVH_OK);
    s.desc.parallel = hook(1, 3);
    s.desc.parallel.run = watch;
    CHECK_RESULT(lbvh_load(&tree, &s.desc, bytes, needed), LBVH_OK);
    most_seen = 0;
    CHECK_RESULT(lbvh_count_pairs(&tree, &pairs), LBVH_OK);
    CHECK(most_seen == 3);
    free(bytes);
    lbvh_free(&tree);
}

/* ---- rays and points of a wide tree ---- */

enum { RAYS = 203 };    /* no multiple of the tasks, walkers and packs */

typedef struct found {
    lbvh_result result[3];
    lbvh_ray_hit hits[RAYS];
    uint8_t hit[RAYS];
    lbvh_closest closest[RAYS];
} found;

static real corners[9 * MOST], lines[6 * RAYS];

/* Triangles in a cube, and rays from a square before it: half of them nearly parallel, some with
   numbers that are none. */
static void put_rays(void)
{
    int32_t i;
    int a;
    for (i = 0; i < 9 * MOST; i++)
        corners[i] = i % 9 < 3 ? between(-1, 1)
                               : corners[i - i % 9 + i % 3] + between(0, (real)0.2);
    for (i = 0; i < RAYS; i++)
        for (a = 0; a < 3; a++) {
            lines[6 * i + a] = a == 2 ? -2 : between(-1, 1) * (i % 50 < 25 ? (real)0.01 : 1);
            lines[6 * i + 3 + a] = (a == 2) + between(0, (real)0.01);
        }
    for (i = 3; i < RAYS; i += 60) lines[6 * i + i % 6] = REAL_NAN;
}

static void trace(const lbvh_wide *wide, int flags, found *out)
{
    lbvh_rays rays;
    memset(&rays, 0, sizeof rays);
    memset(out, 7, sizeof *out);
    rays.data = lines;
    rays.n = RAYS;
    rays.flags = flags;
    out->result[0] = lbvh_closest_hits(wide, &rays, NULL, NULL, out->hits);
    out->result[1] = lbvh_any_hits(wide, &rays, NULL, NULL, out->hit);
    out->result[2] = lbvh_closest_points(wide, lines, 6 * sizeof(real), RAYS, 2, out->closest);
}

static void check_nothing_found(const found *out)
{
    int32_t i;
    int k;
    for (k = 0; k < 3; k++) CHECK_RESULT(out->result[k], LBVH_NOT_RUN);
    for (i = 0; i < RAYS; i++) {
        CHECK(out->hits[i].id == -1 && out->hits[i].t == 0 && out->hit[i] == 0);
        CHECK(out->closest[i].id == -1 && out->closest[i].distance2 == 0);
    }
}

static int never(void *user, int32_t id, const real *origin, const real *direction, real *t,
                 real *u, real *v)
{
    (void)user, (void)id, (void)origin, (void)direction, (void)t, (void)u, (void)v;
    return 0;
}

/* Your own test runs in the calling thread. */
static void check_own_test(lbvh_wide *wide)
{
    static uint8_t hit[RAYS];
    lbvh_rays rays;
    memset(&rays, 0, sizeof rays);
    rays.data = lines;
    rays.n = RAYS;
    wide->desc.parallel = hook(4, 64);
    CHECK_RESULT(lbvh_any_hits(wide, &rays, never, NULL, hit), LBVH_OK);
    CHECK(all_zero(hit, sizeof hit));
}

/* The bytes of a wide tree that this hook collapses. */
static uint64_t collapse(const lbvh *tree, int copy, int32_t leaf, lbvh_parallel parallel)
{
    lbvh_wide_desc desc;
    lbvh_wide wide;
    uint64_t sum = 1;
    int64_t needed;
    char *bytes;
    memset(&wide, 0, sizeof wide);
    memset(&desc, 0, sizeof desc);
    desc.copy = copy;
    desc.leaf = leaf;
    desc.parallel = parallel;
    CHECK_RESULT(lbvh_wide_build(&wide, &desc, tree, tested->data, 0), LBVH_OK);
    CHECK_RESULT(lbvh_wide_validate(&wide, tree), LBVH_OK);
    (void)lbvh_wide_save(&wide, NULL, 0, &needed);
    bytes = NEW(char, needed);
    CHECK_RESULT(lbvh_wide_save(&wide, bytes, needed, &needed), LBVH_OK);
    MIX(sum, bytes, needed);
    free(bytes);
    lbvh_wide_free(&wide);
    return sum;
}

/* All inputs and variants; a hook that loses tasks, in either round, leaves an empty wide tree. */
static void wide_builds(void **state)
{
    static const int32_t tasks[] = {2, 3, 7, 64};
    static scene s;
    int input, variant, k, round;
    (void)state;
    tested = &s;
    for (input = 0; input < INPUTS; input++)
        for (variant = 0; variant < VARIANTS; variant++) {
            lbvh tree;
            uint64_t sum;
            memset(&tree, 0, sizeof tree);
            make_scene(&s, input, variant);
            CHECK_RESULT(lbvh_build(&tree, &s.desc, s.data, 0, s.n), LBVH_OK);
            k = (input + variant) % 4;
            sum = collapse(&tree, input % 2, 1 + k, serial());
            CHECK(collapse(&tree, input % 2, 1 + k, hook((input + 1) % 4, tasks[k])) == sum);
            for (round = 0; round < 2 && variant == PLAIN; round++) {
                lbvh_wide wide;
                lbvh_wide_desc desc;
                memset(&wide, 0, sizeof wide);
                memset(&desc, 0, sizeof desc);
                desc.parallel = hook(1, 3);
                desc.parallel.run = lose_in_a_round;
                rounds_left = round;
                CHECK_RESULT(lbvh_wide_build(&wide, &desc, &tree, NULL, 0),
                             s.n < 64 ? LBVH_OK : LBVH_NOT_RUN);
                CHECK(wide.built == (s.n < 64));
                lbvh_wide_free(&wide);
            }
            lbvh_free(&tree);
        }
}

static void wide_searches(void **state)
{
    static const int32_t tasks[] = { 1, 2, 3, 7, 64 };
    static found want, got;
    lbvh tree;
    lbvh_desc desc;
    lbvh_wide wide;
    lbvh_wide_desc with;
    int k, flags, some = 0;
    (void)state;
    memset(&tree, 0, sizeof tree);
    memset(&wide, 0, sizeof wide);
    memset(&desc, 0, sizeof desc);
    memset(&with, 0, sizeof with);
    put_rays();
    desc.kind = LBVH_TRIANGLES;
    with.copy = 1;
    with.parallel.tasks = 1025;
    CHECK_RESULT(lbvh_build(&tree, &desc, corners, 0, MOST), LBVH_OK);
    CHECK_RESULT(lbvh_wide_build(&wide, &with, &tree, corners, 0), LBVH_BAD_OPTION);
    with.parallel = serial();
    CHECK_RESULT(lbvh_wide_build(&wide, &with, &tree, corners, 0), LBVH_OK);
    for (flags = 0; flags <= LBVH_SORTED; flags += LBVH_SORTED) {
        lanes = 0;
        wide.desc.parallel = serial();
        trace(&wide, flags, &want);
        lanes = has_lanes();
        for (k = 0; k < 4 * COUNT_OF(tasks); k++) {
            wide.desc.parallel = hook(k % 4, tasks[k / 4]);
            trace(&wide, flags, &got);
            CHECK(same(&got, &want, sizeof got));
        }
        for (k = 4; k < 6; k++) {
            wide.desc.parallel = hook(k, 3);
            trace(&wide, flags, &got);
            check_nothing_found(&got);
        }
        wide.desc.parallel.run = watch;
        most_seen = 0;
        trace(&wide, flags, &got);
        CHECK(most_seen == 3);
    }
    for (k = 0; k < RAYS; k++) some += want.hit[k];
    CHECK(some > RAYS / 4 && some < RAYS);
    check_own_test(&wide);
    lbvh_wide_free(&wide);
    lbvh_free(&tree);
}

#include "parallel_worlds.c"

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
        TEST(cuts_what_is_worth_it),
        TEST(searches_that_lose_tasks),
        TEST(builds_that_lose_tasks),
        TEST(names_the_first_bad_element),
        TEST(allocates_as_serial),
        TEST(refuses_numbers_of_tasks),
        TEST(loaded_trees_have_the_hook),
        TEST(wide_builds),
        TEST(wide_searches),
        TEST(worlds),
        TEST(worlds_without_memory),
        TEST(worlds_refuse_tasks),
    };
    int failed = 0;
    parallel_all_used();
    parallel_start(&pool, 3);
    RUN_GROUP(failed, parallel, stop_pool);
    return failed;
}
