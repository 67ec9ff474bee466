/* test_nbody_parallel.c - desc.parallel of nbody.h: the same bits for any number of tasks, in any
   order, on threads; hooks that lose tasks; memory.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/nbody/test_nbody_parallel.c -o test_nbody_parallel -lcmocka -lm \
           -lpthread && ./test_nbody_parallel
       cc -O1 -g -fsanitize=thread ...                          (tests/quality/flags/run.sh)

   Environment: TEST_SMALL=1, a small part of everything. */

/* A hundred bodies are cut into many pieces, and a leaf of 40 by itself. */
#define NBODY_I_PIECE 16
#define NBODY_I_LARGE_LEAF 40
#define NBODY_I_AT_ONCE 16
#define NBODY_I_MANY_POINTS 40
#include "tests/common/nbody_parts.h"
#define NBODY_IMPLEMENTATION
#include "nbody.h"
#include "../../common/nbody_oracle.h"
#include "../../common/parallel.h"
#include "../../common/testing.h"

/* ---- what is computed ---- */

static const struct {
    const char *name;
    nbody_method method;
    int order;
    nbody_sources sources;
    nbody_law law;
    double softening;
    int levels;
} kinds[] = {
    {"direct", NBODY_DIRECT, 0, NBODY_SOURCES_AUTO, NBODY_INVERSE_SQUARE, 0, 0},
    {"direct, 1/d", NBODY_DIRECT, 0, NBODY_SOURCES_AUTO, NBODY_INVERSE, 0.1, 0},
    {"virtual", NBODY_VIRTUAL_PARTICLES, 1, NBODY_SOURCES_AUTO, NBODY_INVERSE_SQUARE, 0, 0},
    {"moments", NBODY_VIRTUAL_PARTICLES, 2, NBODY_SOURCES_AUTO, NBODY_INVERSE, 0, 4},
    {"linear", NBODY_FORCE_NODES, 1, NBODY_SOURCES_AUTO, NBODY_INVERSE_SQUARE, 0.01, 0},
    {"centres", NBODY_FORCE_NODES, 4, NBODY_MASS_CENTRES, NBODY_INVERSE_SQUARE, 0, 5},
    {"order 4", NBODY_FORCE_NODES, 4, NBODY_CHEBYSHEV, NBODY_INVERSE_SQUARE, 0, 0},
    {"order 4, soft", NBODY_FORCE_NODES, 4, NBODY_CHEBYSHEV, NBODY_INVERSE_SQUARE, 0.05, 0},
    {"order 3, 1/d, soft", NBODY_FORCE_NODES, 3, NBODY_CHEBYSHEV, NBODY_INVERSE, 0.02, 4},
    {"order 5, 1/d", NBODY_FORCE_NODES, 5, NBODY_CHEBYSHEV, NBODY_INVERSE, 0, 0},
    {"order 8", NBODY_FORCE_NODES, 8, NBODY_CHEBYSHEV, NBODY_INVERSE_SQUARE, 0, 4},
    {"auto", NBODY_AUTO, 0, NBODY_SOURCES_AUTO, NBODY_INVERSE_SQUARE, 0, 0},
    {"vortices", NBODY_FORCE_NODES, 4, NBODY_CHEBYSHEV, NBODY_VORTEX, 0.005, 0},
    {"function", NBODY_FORCE_NODES, 3, NBODY_CHEBYSHEV, NBODY_FUNCTION, 0, 0},
};
enum { KINDS = COUNT_OF(kinds) };

static double spring(double d, void *user) { return d + 0 * *(double *)user; }
static double well(double d, void *user) { return d * d / 2 + 0 * *(double *)user; }

static nbody_desc desc_of(int kind)
{
    static double user;
    nbody_desc d;
    memset(&d, 0, sizeof d);
    d.method = kinds[kind].method;
    d.order = kinds[kind].order;
    d.sources = kinds[kind].sources;
    d.law = kinds[kind].law;
    d.softening = (real)kinds[kind].softening;
    d.levels = kinds[kind].levels;
    d.core = d.law == NBODY_VORTEX ? NBODY_GAUSSIAN : NBODY_PLUMMER;
    d.function.force = spring;
    d.function.potential = well;
    d.function.user = &user;
    if (!d.levels && d.method > NBODY_DIRECT) d.leaf = 8;
    return d;
}

typedef struct outcome { nbody sim; real *acc, *potential, *at, *at_potential; } outcome;

enum { POINTS = 50 };

static real points[2 * POINTS];

static void make_points(void)
{
    int32_t k;
    for (k = 0; k < 2 * POINTS; k++) points[k] = (real)oracle_between(&dice, -1, 2);
}

static void make_room(outcome *o, int32_t n)
{
    memset(o, 0, sizeof *o);
    o->acc = NEW(real, 2 * (size_t)n);
    o->potential = NEW(real, n);
    o->at = NEW(real, 2 * POINTS);
    o->at_potential = NEW(real, POINTS);
}

static void drop(outcome *o)
{
    nbody_free(&o->sim);
    free(o->acc);
    free(o->potential);
    free(o->at);
    free(o->at_potential);
}

static nbody_result evaluate(outcome *o, const nbody_desc *d, const oracle_scene *s)
{
    nbody_result r = nbody_fields(&o->sim, d, s->pos, 0, s->mass, s->n, o->acc, o->potential);
    if (r == NBODY_OK)
        r = nbody_fields_at(&o->sim, points, 0, POINTS, o->at, o->at_potential, NULL);
    return r;
}

/* Are the points of a call ordered by cell? That is one round of tasks more, and an allocation. */
static int orders_points(const nbody *sim) { return sim->cell && !nbody_i_points_alone(sim); }

static void check_array(const void *a, const void *b, size_t count, size_t width)
{
    CHECK(!a == !b);
    if (a && count > 0) CHECK(same(a, b, count * width));
}

/* Every array of the tree, and the frame. */
static void check_same_tree(const nbody *a, const nbody *b)
{
    size_t const n = (size_t)a->n, one = sizeof(real);
    size_t cells, sources;
    CHECK(a->n == b->n && same(a->frame, b->frame, sizeof *a->frame));
    check_array(a->id, b->id, n, sizeof *a->id);
    check_array(a->x, b->x, n, one);
    check_array(a->y, b->y, n, one);
    check_array(a->m, b->m, n, one);
    CHECK(!a->cell == !b->cell);
    if (!a->cell) return;
    cells = (size_t)a->frame->cells;
    sources = (size_t)a->frame->level_first[2];
    check_array(a->cell, b->cell, cells, sizeof *a->cell);
    if (a->desc.sources == NBODY_CHEBYSHEV) {
        size_t const skip = sources * (size_t)a->per_cell;
        check_array(a->vm + skip, b->vm + skip, (cells - sources) * (size_t)a->per_cell, one);
    }
    if (a->made) {
        size_t const last = (size_t)a->frame->level_first[a->frame->levels - 1];
        if (last > sources)
            check_array(a->made + sources, b->made + sources, last - sources, sizeof *a->made);
    }
    if (a->fx && cells > sources) {
        size_t const skip = sources * (size_t)a->nodes, rest = cells * (size_t)a->nodes - skip;
        check_array(a->fx + skip, b->fx + skip, rest, one);
        check_array(a->fy + skip, b->fy + skip, rest, one);
        check_array(a->fp + skip, b->fp + skip, rest, one);
    }
}

static void check_same(const outcome *a, const outcome *b, int32_t n)
{
    check_same_tree(&a->sim, &b->sim);
    CHECK(same(a->acc, b->acc, 2 * (size_t)n * sizeof(real)));
    CHECK(same(a->potential, b->potential, (size_t)n * sizeof(real)));
    CHECK(same(a->at, b->at, 2 * POINTS * sizeof(real)));
    CHECK(same(a->at_potential, b->at_potential, POINTS * sizeof(real)));
}

/* ---- hooks ---- */

static parallel_pool pool;
static uint64_t order_of_tasks = 5;
static int64_t calls;

static void counted(nbody_task *task, void *context, int32_t tasks, void *user)
{
    calls++;
    parallel_forward(task, context, tasks, user);
}

static const struct { nbody_run *run; void *user; } hooks[] = {
    {counted, NULL}, {parallel_backward, NULL}, {parallel_shuffled, &order_of_tasks},
    {parallel_threads, &pool},
};
enum { HOOKS = COUNT_OF(hooks) };
static const int32_t tasks_of[] = {1, 2, 3, 7, 64};

static nbody_parallel hook_of(int hook, int32_t tasks)
{
    nbody_parallel p;
    p.run = hooks[hook].run;
    p.user = hooks[hook].user;
    p.tasks = tasks;
    return p;
}

static struct { int input, kind, hook; int32_t n, tasks; } now;

static void describe_case(void)
{
    print_error("  %s, n %d, %s, hook %d, tasks %d\n", oracle_input_name(now.input), (int)now.n,
        kinds[now.kind].name, now.hook, (int)now.tasks);
}

/* ---- the same bits ---- */

/* squeeze: of every second body, for a deep tree; 1: none. */
static void same_bits(int input, int32_t n, int kind, double squeeze)
{
    oracle_scene s;
    outcome serial;
    nbody_desc d = desc_of(kind);
    int k;
    if (input == ORACLE_SIGNS && d.method != NBODY_DIRECT && d.sources != NBODY_CHEBYSHEV) return;
    oracle_make(&s, input, n, 0, &dice);
    if (squeeze < 1) oracle_squeeze(&s, squeeze);
    make_room(&serial, s.n);
    CHECK_RESULT(evaluate(&serial, &d, &s), NBODY_OK);
    for (now.hook = 0; now.hook < HOOKS; now.hook++) for (k = 0; k < COUNT_OF(tasks_of); k++) {
        outcome cut;
        if ((SANITIZED || small_run()) && (now.hook + k + kind) % 8) continue;
        now.input = input;
        now.kind = kind;
        now.n = s.n;
        now.tasks = tasks_of[k];
        make_room(&cut, s.n);
        calls = 0;
        d.parallel = hook_of(now.hook, now.tasks);
        CHECK_RESULT(evaluate(&cut, &d, &s), NBODY_OK);
        CHECK(now.hook > 0 || (calls > 0) == (now.tasks > 1 && s.n > 0));
        if (s.n > 0) check_same(&serial, &cut, s.n);
        CHECK_RESULT(nbody_validate(&cut.sim), NBODY_OK);
        drop(&cut);
    }
    drop(&serial);
    oracle_forget(&s);
}

static void test_same_bits(void **state)
{
    int input, kind;
    (void)state;
    describe = describe_case;
    make_points();
    for (kind = 0; kind < KINDS; kind++) {
        for (input = 0; input < ORACLE_INPUTS; input++) {
            if ((SANITIZED || small_run()) && (input + kind) % (quick_run() ? 15 : 5)) continue;
            same_bits(input, SANITIZED || small_run() ? 150 : 400, kind, 1);
        }
        same_bits(ORACLE_UNIFORM, 1, kind, 1);
        same_bits(ORACLE_UNIFORM, 2, kind, 1);
        same_bits(ORACLE_UNIFORM, 17, kind, 1);
        same_bits(ORACLE_UNIFORM, SANITIZED || small_run() ? 150 : 400, kind, 1e-9);
    }
}

/* NBODY_ONE_THREAD does not use the hook, nor does an object without bodies need it. */
static void test_not_cut(void **state)
{
    oracle_scene s;
    outcome o;
    nbody_desc d = desc_of(6);
    (void)state;
    oracle_make(&s, ORACLE_UNIFORM, 200, 0, &dice);
    make_room(&o, s.n);
    calls = 0;
    d.parallel = hook_of(0, 8);
    d.stage = NBODY_ONE_THREAD;
    CHECK_RESULT(evaluate(&o, &d, &s), NBODY_OK);
    CHECK(calls == 0);
    d.stage = NBODY_FAST;
    CHECK_RESULT(nbody_fields(&o.sim, &d, s.pos, 0, s.mass, 0, o.acc, o.potential), NBODY_OK);
    d.parallel.run = NULL; /* tasks without a hook: serial */
    CHECK_RESULT(evaluate(&o, &d, &s), NBODY_OK);
    d.parallel.tasks = NBODY_MAX_TASKS;
    CHECK_RESULT(evaluate(&o, &d, &s), NBODY_OK);
    d.parallel.tasks = NBODY_MAX_TASKS + 1;
    CHECK_RESULT(evaluate(&o, &d, &s), NBODY_BAD_OPTION);
    d.parallel.tasks = -1;
    CHECK_RESULT(evaluate(&o, &d, &s), NBODY_BAD_OPTION);
    CHECK(strstr(nbody_result_text(NBODY_BAD_OPTION), "desc.parallel.tasks") != NULL);
    drop(&o);
    oracle_forget(&s);
}

/* The error that nbody_estimate finds, and 20 steps of both integrators. */
static void test_estimate_and_steps(void **state)
{
    enum { N = 300 };
    int hook, k, i, step, way; /* integrators, then block time steps */
    (void)state;
    for (hook = 0; hook < HOOKS; hook++) for (k = 0; k < COUNT_OF(tasks_of); k++)
    for (way = 0; way < 3; way++) {
        nbody_integrator const integrator = way == 1 ? NBODY_EULER : NBODY_LEAPFROG;
        nbody_error error[2];
        nbody_energies energy[2];
        real pos[2][2 * N], vel[2][2 * N], acc[2][2 * N];
        if (quick_run() && (hook + k + way) % 4) continue;
        for (i = 0; i < 2; i++) {
            nbody sim;
            nbody_desc d = desc_of(7);
            nbody_bodies bodies;
            nbody_blocks blocks;
            nbody_blocks_desc const how = {3, 0.05};
            wl_random r = wl_seed(9);
            int32_t e;
            memset(&sim, 0, sizeof sim);
            memset(&blocks, 0, sizeof blocks);
            memset(&bodies, 0, sizeof bodies);
            for (e = 0; e < 2 * N; e++) {
                pos[i][e] = (real)wl_u(&r);
                vel[i][e] = (real)wl_u(&r) - (real)0.5;
            }
            bodies.pos = pos[i];
            bodies.vel = vel[i];
            bodies.acc = acc[i];
            bodies.n = N;
            if (i) d.parallel = hook_of(hook, tasks_of[k]);
            for (step = 0; step < (SANITIZED || small_run() ? 3 : 20); step++)
                CHECK_RESULT(way < 2
                    ? nbody_step(&sim, &d, &bodies, (real)1e-3, integrator)
                    : nbody_blocks_step(&blocks, &how, &sim, &d, &bodies, (real)4e-3), NBODY_OK);
            CHECK(bodies.fresh == (integrator == NBODY_LEAPFROG));
            CHECK_RESULT(nbody_estimate(&sim, acc[i], 150, 3, &error[i]), NBODY_OK);
            CHECK_RESULT(nbody_energy(&bodies, NULL, &energy[i]), NBODY_OK);
            nbody_blocks_free(&blocks);
            nbody_free(&sim);
        }
        CHECK(same(pos[0], pos[1], sizeof pos[0]) && same(vel[0], vel[1], sizeof vel[0]));
        CHECK(same(acc[0], acc[1], sizeof acc[0]) && error[0].samples == error[1].samples);
        CHECK(same(&error[0].mean, &error[1].mean, 9 * sizeof(double)) && error[0].mean > 0);
        CHECK(same(&energy[0], &energy[1], sizeof energy[0]));
    }
}

/* ---- what goes wrong ---- */

/* The first bad body and the first bad point, as serially. */
static void test_first_bad(void **state)
{
    enum { N = 200 };
    int hook, k, round, kind;
    (void)state;
    for (hook = 0; hook < HOOKS; hook++) for (k = 0; k < COUNT_OF(tasks_of); k++)
    for (round = 0; round < 12; round++) for (kind = 0; kind < 7; kind += 3) {
        real pos[2 * N], mass[N], acc[2 * N];
        int32_t const one = roll(N), other = roll(N), low = one < other ? one : other;
        nbody_desc d = desc_of(kind);
        nbody sim;
        nbody_result expected;
        int32_t i, bad;
        memset(&sim, 0, sizeof sim);
        for (i = 0; i < N; i++) {
            pos[2 * i] = (real)oracle_between(&dice, 0, 1);
            pos[2 * i + 1] = (real)oracle_between(&dice, 0, 1);
            mass[i] = 1;
        }
        CHECK_RESULT(nbody_build(&sim, &d, pos, 0, mass, N), NBODY_OK);
        d.parallel = hook_of(hook, tasks_of[k]);
        CHECK_RESULT(nbody_build(&sim, &d, pos, 0, mass, N), NBODY_OK);
        if (round % 2) mass[one] = -1;
        else pos[2 * one + round % 4 / 2] = (real)NAN;
        pos[2 * other] = (real)INFINITY;
        CHECK_RESULT(nbody_fields_at(&sim, pos, 0, N, acc, NULL, &bad), NBODY_NOT_FINITE);
        CHECK(bad == (round % 2 ? other : low));
        expected = round % 2 && kind == 3 && one < other ? NBODY_BAD_MASS : NBODY_NOT_FINITE;
        if (round % 2 && kind == 3 && one == other) expected = NBODY_NOT_FINITE;
        CHECK_RESULT(nbody_build(&sim, &d, pos, 0, mass, N), expected);
        CHECK(sim.bad_id == (round % 2 && kind != 3 ? other : low) && !sim.frame);
        nbody_free(&sim);
    }
}

static int64_t lose_at;     /* the call that loses tasks */

static void losing(nbody_task *task, void *context, int32_t tasks, void *user)
{
    if (++calls == lose_at) parallel_last_missing(task, context, tasks, user);
    else parallel_forward(task, context, tasks, user);
}

/* A hook that runs no task, and one that loses a task, in each call that there is: a result, an
   empty object, and the next evaluation is right. */
static void test_lost_tasks(void **state)
{
    enum { N = 200 };
    int kind;
    (void)state;
    make_points();
    for (kind = 0; kind < KINDS; kind++) {
        oracle_scene s;
        outcome serial, o;
        nbody_desc d = desc_of(kind);
        int64_t all, build; /* calls of run */
        oracle_make(&s, ORACLE_CLUMPS, N, 0, &dice);
        make_room(&serial, s.n);
        CHECK_RESULT(evaluate(&serial, &d, &s), NBODY_OK);
        make_room(&o, s.n);
        d.parallel.tasks = 4;
        d.parallel.run = parallel_refuse;
        CHECK_RESULT(evaluate(&o, &d, &s), NBODY_NOT_RUN);
        CHECK(!o.sim.frame && o.sim.n == 0);
        d.parallel.run = losing;
        calls = lose_at = 0;
        CHECK_RESULT(evaluate(&o, &d, &s), NBODY_OK);
        all = calls;
        build = all - 2 - orders_points(&o.sim);
        CHECK(all > 3);
        for (lose_at = 1; lose_at <= all; lose_at++) {
            calls = 0;
            o.sim.kept.levels = 0; /* tables are filled as in the first evaluation */
            CHECK_RESULT(evaluate(&o, &d, &s), NBODY_NOT_RUN);
            CHECK(calls == lose_at);
            CHECK(lose_at > build || (!o.sim.frame && o.sim.n == 0)); /* points: it is kept */
            CHECK(nbody_validate(&o.sim) == (lose_at > build ? NBODY_OK : NBODY_NOT_BUILT));
        }
        calls = 0;
        CHECK_RESULT(evaluate(&o, &d, &s), NBODY_OK);
        check_same(&serial, &o, s.n);
        drop(&o);
        drop(&serial);
        oracle_forget(&s);
    }
}

/* Points of a tree without nodes, which are made for the call: the bits of those of an evaluation;
   with lost tasks or without memory the tree stays. */
static void test_points_of_a_build(void **state)
{
    enum { N = 200 };
    int kind;
    (void)state;
    make_points();
    for (kind = 0; kind < KINDS; kind++) {
        oracle_scene s;
        outcome serial, o;
        heap h;
        nbody_desc d = desc_of(kind);
        int64_t all, blocks, fail = 0;
        nbody_result r;
        oracle_make(&s, ORACLE_CLUMPS, N, 0, &dice);
        make_room(&serial, s.n);
        CHECK_RESULT(evaluate(&serial, &d, &s), NBODY_OK);
        make_room(&o, s.n);
        memset(&h, 0, sizeof h);
        d = serial.sim.desc; /* what NBODY_AUTO chose for potentials */
        d.allocator = allocator_of(&h);
        d.parallel.tasks = 4;
        d.parallel.run = losing;
        lose_at = 0;
        CHECK_RESULT(nbody_build(&o.sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        calls = 0;
        CHECK_RESULT(nbody_fields_at(&o.sim, points, 0, POINTS, o.at, o.at_potential, NULL),
            NBODY_OK);
        CHECK(same(serial.at, o.at, 2 * POINTS * sizeof(real)));
        CHECK(same(serial.at_potential, o.at_potential, POINTS * sizeof(real)));
        all = calls;
        blocks = h.live_blocks;
        for (lose_at = 1; lose_at <= all; lose_at++) {
            calls = 0;
            CHECK_RESULT(nbody_fields_at(&o.sim, points, 0, POINTS, o.at, o.at_potential, NULL),
                NBODY_NOT_RUN);
            CHECK(calls == lose_at && h.live_blocks == blocks);
        }
        do { /* each allocation fails in turn */
            calls = 0;
            h.fail_at = h.calls + ++fail;
            r = nbody_fields_at(&o.sim, points, 0, POINTS, o.at, o.at_potential, NULL);
            CHECK(r == NBODY_OK || (r == NBODY_OUT_OF_MEMORY && o.sim.nodes > 0));
            CHECK(h.live_blocks == blocks);
        } while (r != NBODY_OK);
        CHECK(same(serial.at, o.at, 2 * POINTS * sizeof(real)));
        h.fail_at = 0;
        CHECK(nbody_validate(&o.sim) == NBODY_OK);
        drop(&o);
        CHECK(h.live_blocks == 0 && !h.wrong);
        drop(&serial);
        oracle_forget(&s);
    }
}

/* Steps and estimates that lose tasks say so. */
static void test_lost_steps(void **state)
{
    enum { N = 200 };
    real pos[2 * N], vel[2 * N], acc[2 * N], before[2 * N];
    nbody_desc d = desc_of(6);
    nbody_bodies bodies;
    nbody_error error;
    nbody sim;
    int32_t e;
    (void)state;
    memset(&sim, 0, sizeof sim);
    memset(&bodies, 0, sizeof bodies);
    memset(vel, 0, sizeof vel);
    for (e = 0; e < 2 * N; e++) pos[e] = (real)oracle_between(&dice, 0, 1);
    bodies.pos = pos;
    bodies.vel = vel;
    bodies.acc = acc;
    bodies.n = N;
    d.parallel.tasks = 4;
    d.parallel.run = losing;
    lose_at = 0;
    memcpy(before, pos, sizeof pos);
    d.parallel.run = parallel_refuse;
    CHECK_RESULT(nbody_step(&sim, &d, &bodies, (real)0.01, NBODY_LEAPFROG), NBODY_NOT_RUN);
    CHECK(same(before, pos, sizeof pos) && vel[0] == 0 && !bodies.fresh); /* nothing moved */
    d.parallel.run = losing;
    CHECK_RESULT(nbody_step(&sim, &d, &bodies, (real)0.01, NBODY_LEAPFROG), NBODY_OK);
    CHECK(bodies.fresh);
    CHECK_RESULT(nbody_estimate(&sim, acc, 10, 1, &error), NBODY_OK);
    lose_at = calls + 1;
    CHECK_RESULT(nbody_estimate(&sim, acc, 10, 1, &error), NBODY_NOT_RUN);
    lose_at = calls + 1;
    CHECK_RESULT(nbody_step(&sim, &d, &bodies, (real)0.01, NBODY_LEAPFROG), NBODY_NOT_RUN);
    CHECK(!bodies.fresh);
    lose_at = 0;
    CHECK_RESULT(nbody_step(&sim, &d, &bodies, (real)0.01, NBODY_EULER), NBODY_OK);
    nbody_free(&sim);
}

/* ---- memory ---- */

/* Each allocation fails in turn; and after a reserve there are none. */
static void test_memory(void **state)
{
    int kind;
    (void)state;
    make_points();
    for (kind = 0; kind < KINDS; kind++) {
        oracle_scene s;
        outcome serial, o;
        heap h;
        nbody_desc d = desc_of(kind);
        int64_t fail = 1;
        nbody_result r;
        oracle_make(&s, ORACLE_UNIFORM, 200, 0, &dice);
        make_room(&serial, s.n);
        CHECK_RESULT(evaluate(&serial, &d, &s), NBODY_OK);
        make_room(&o, s.n);
        memset(&h, 0, sizeof h);
        d.allocator = allocator_of(&h);
        d.allocator.alloc = scarce_alloc;
        d.parallel = hook_of(3, 7);
        do {
            h.calls = 0;
            h.fail_at = fail++;
            r = evaluate(&o, &d, &s);
            CHECK(r == NBODY_OK || (r == NBODY_OUT_OF_MEMORY && !o.sim.frame));
            if (r == NBODY_OK) check_same(&serial, &o, s.n);
            nbody_free(&o.sim);
            CHECK(h.live_blocks == 0 && !h.wrong);
        } while (r != NBODY_OK);
        CHECK(fail > 3);
        h.fail_at = 0;
        CHECK_RESULT(nbody_reserve(&o.sim, &d, s.n), NBODY_OK);
        h.calls = 0;
        CHECK_RESULT(evaluate(&o, &d, &s), NBODY_OK);
        CHECK(h.calls == orders_points(&o.sim));
        drop(&o);
        CHECK(h.live_blocks == 0 && !h.wrong);
        drop(&serial);
        oracle_forget(&s);
    }
}

/* Many bodies: a key has four digits, a level has many batches. */
static void test_many(void **state)
{
    (void)state;
    make_points();
    describe = describe_case;
    if (small_run() || SANITIZED) return;
    same_bits(ORACLE_CLUMPS, 20000, 6, 1);
    same_bits(ORACLE_UNIFORM, 20000, 9, 1);
    same_bits(ORACLE_PILES, 20000, 7, 1);
    same_bits(ORACLE_UNIFORM, 5000, 2, 1);
}

static const struct CMUnitTest tests[] = {
    TEST(test_same_bits),
    TEST(test_not_cut),
    TEST(test_estimate_and_steps),
    TEST(test_first_bad),
    TEST(test_lost_tasks),
    TEST(test_points_of_a_build),
    TEST(test_lost_steps),
    TEST(test_memory),
    TEST(test_many),
};

int main(void)
{
    int failed = 0;
    parallel_all_used();
    parallel_start(&pool, 4);
    RUN_GROUP(failed, tests, NULL);
    parallel_stop(&pool);
    return failed;
}
