/* test_costs_world.c - every cost that lbvh_world.h promises, held against inputs that break
   promises.
   SPDX-License-Identifier: MIT OR Unlicense

   tests/README.md has the list: promise, input, count, bar. COSTS_SHOW=1 prints figures. */

#define LBVH_IMPLEMENTATION
#define LBVH_WITH_WORLD
#include "lbvh.h"
#define TESTED lbvh
#include "../../common/testing.h"
#include "costs.h"

static lbvh_world world_of(int dim, real margin, purse *p)
{
    lbvh_world world = {0};
    lbvh_world_desc d;
    memset(&d, 0, sizeof d);
    d.dim = dim;
    d.margin = margin;
    if (p) d.allocator = allocator_from(p);
    CHECK_RESULT(lbvh_world_begin(&world, &d), LBVH_OK);
    return world;
}

/* A square or cube around a point. */
static void box_at(int dim, const real *p, real half, real *box)
{
    int a;
    for (a = 0; a < dim; a++) {
        box[a] = p[a] - half;
        box[dim + a] = p[a] + half;
    }
}

static lbvh_id insert_box(lbvh_world *world, const real *box, lbvh_state state)
{
    lbvh_id id;
    CHECK_RESULT(lbvh_world_insert(world, box, NULL, state, 0, &id), LBVH_OK);
    return id;
}

/* ---- what comes in order ---- */

enum { IN_ROW, IN_SNAKE, IN_STRIP, IN_SPIRAL, IN_NEST, IN_NO_ORDER, ORDERS };

static const char *const order_name[ORDERS] = {
    "row", "snake", "strip", "spiral", "nest", "no order"};

static void place_of(int order, int32_t i, int32_t n, real *box)
{
    int32_t const side = (int32_t)sqrt((double)n) + 1, y = i / side, x = i % side;
    double const turn = sqrt((double)i) * 6;
    real p[2];
    p[0] = (real)x;
    p[1] = (real)y;
    if (order == IN_ROW) p[0] = (real)i, p[1] = 0;
    if (order == IN_SNAKE && y % 2) p[0] = (real)(side - 1 - x);
    if (order == IN_STRIP) p[0] = (real)(i / 3), p[1] = (real)(i % 3);
    if (order == IN_SPIRAL) p[0] = (real)(turn * cos(turn)), p[1] = (real)(turn * sin(turn));
    if (order == IN_NEST) p[0] = p[1] = 0;
    if (order == IN_NO_ORDER) p[0] = between(0, (real)side), p[1] = between(0, (real)side);
    box_at(2, p, order == IN_NEST ? (real)(1 + i) : (real)0.25, box);
}

typedef struct coming { double rebuilds, work, most; } coming;

/* n objects come one by one, each with an update. */
static coming come(int order, int32_t n, lbvh_state state)
{
    lbvh_world world = world_of(2, 0, NULL);
    coming sum = {0, 0, 0};
    int32_t i;
    dice = wl_seed(3);
    for (i = 0; i < n; i++) {
        real box[4];
        double work;
        place_of(order, i, n, box);
        costs_begin();
        insert_box(&world, box, state);
        CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
        work = costs_end();
        sum.work += work;
        if (work > sum.most) sum.most = work;
        if (i >= 64) sum.rebuilds += world.reason == LBVH_REBUILT;
    }
    CHECK_RESULT(lbvh_world_validate(&world), LBVH_OK);
    lbvh_world_free(&world);
    return sum;
}

/* Insertion in any order: a change costs O(log n) in the mean, and rebuilds grow as log n. */
static void test_order(void **state)
{
    int32_t const n = size_of_run(1000);
    int order;
    (void)state;
    for (order = 0; order < ORDERS; order++) {
        coming const few = come(order, n / 4, LBVH_FIXED), many = come(order, n, LBVH_FIXED);
        costs_show("rebuilds while n come", order_name[order], many.rebuilds);
        costs_show("work of a change", order_name[order], many.work / n);
        CHECK_BELOW(many.rebuilds, 16);
        CHECK_BELOW(many.rebuilds - few.rebuilds, 5);
#ifdef COSTS_COUNTED
        CHECK_GROWTH(many.work, few.work, 4 * 1.6);
#else
        (void)few;
#endif
    }
}

/* No update costs more than a rebuild and the searches. */
static void test_worst_update(void **state)
{
    int32_t const n = size_of_run(1000);
    lbvh_world world;
    double all;
    int order;
    int32_t i;
    (void)state;
    NEED_COUNT();
    for (order = 0; order < ORDERS; order++) {
        coming const one_by_one = come(order, n, LBVH_FIXED);
        world = world_of(2, 0, NULL);
        dice = wl_seed(3);
        for (i = 0; i < n; i++) {
            real box[4];
            place_of(order, i, n, box);
            insert_box(&world, box, LBVH_FIXED);
        }
        costs_begin();
        CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
        all = costs_end();
        costs_show("dearest update, over all at once", order_name[order], one_by_one.most / all);
        CHECK_BELOW(one_by_one.most, 1.5 * all);
        lbvh_world_free(&world);
    }
}

/* ---- objects at rest ---- */

/* Work of a step where one object moves beside n at rest. */
static double step_beside(int32_t n, lbvh_state state, int overlap)
{
    lbvh_world world = world_of(2, 0, NULL);
    real box[4], p[2];
    lbvh_id mover;
    double work;
    int32_t i;
    int k;
    for (i = 0; i < n; i++) {
        p[0] = (real)(1000 + i % 700);
        p[1] = (real)(i / 700);
        box_at(2, p, overlap ? (real)0.55 : (real)0.25, box);
        insert_box(&world, box, state);
    }
    p[0] = p[1] = 0;
    box_at(2, p, (real)0.25, box);
    mover = insert_box(&world, box, LBVH_MOVING);
    CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
    costs_begin();
    for (k = 0; k < 16; k++) {
        lbvh_pair_walk walk;
        p[1] = (real)k;
        box_at(2, p, (real)0.25, box);
        CHECK_RESULT(lbvh_world_move(&world, mover, box, NULL), LBVH_OK);
        CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
        walk = lbvh_world_pairs(&world, LBVH_TIGHT);
        while (lbvh_next_pair(&walk)) CHECK(0);
    }
    work = costs_end() / 16;
    lbvh_world_free(&world);
    return work;
}

/* Objects at rest, and their pairs, cost nothing in a step. Nor does it cost anything to say that
   they are at rest: where one object moves, its tree is not built again. */
static void test_rest(void **state)
{
    int32_t const n = size_of_run(200);
    int s;
    (void)state;
    NEED_COUNT();
    for (s = LBVH_SLEEPING; s <= LBVH_FIXED; s++) {
        int overlap;
        for (overlap = 0; overlap < 2; overlap++) {
            double const few = step_beside(n, (lbvh_state)s, overlap),
                         many = step_beside(16 * n, (lbvh_state)s, overlap);
            costs_show("a step beside many, over few", s == LBVH_FIXED ? "fixed" : "sleeping",
                       many / few);
            CHECK_BELOW(many, 1.5 * few);
            if (!overlap) CHECK_BELOW(few, 1.1 * step_beside(n, LBVH_MOVING, 0));
        }
    }
}

/* An object that stays in its stored box costs O(1): a step in which all stay does no search. */
static void test_stay(void **state)
{
    int32_t const n = size_of_run(400);
    real *pos = scene_points(EVEN, n, 2);
    lbvh_id *ids = NEW(lbvh_id, n);
    lbvh_world world = world_of(2, (real)0.01, NULL);
    int32_t i;
    double work;
    (void)state;
    NEED_COUNT();
    for (i = 0; i < n; i++) {
        real box[4];
        box_at(2, pos + 2 * i, (real)0.02, box);
        ids[i] = insert_box(&world, box, LBVH_MOVING);
    }
    CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
    costs_begin();
    for (i = 0; i < n; i++) {
        real box[4];
        box_at(2, pos + 2 * i, (real)0.021, box);
        CHECK_RESULT(lbvh_world_move(&world, ids[i], box, NULL), LBVH_OK);
    }
    CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
    work = costs_end() / n;
    CHECK(world.reason == LBVH_NOTHING && world.searched == 0);
    costs_show("an object that stays", "even", work);
    CHECK_BELOW(work, 200);
    lbvh_world_free(&world);
    free(ids);
    free(pos);
}

/* ---- boxes that were large once ---- */

static void test_shrink(void **state)
{
    enum { SIDE = 30 };
    int kind;
    (void)state;
    for (kind = 0; kind < 2; kind++) {
        lbvh_world world = world_of(2, (real)0.05, NULL);
        real box[4], p[2], far[2] = {1000, 1000};
        lbvh_id id;
        int32_t i;
        int k;
        for (i = 0; i < SIDE * SIDE; i++) {
            p[0] = (real)(2 * (i % SIDE)) + (real)0.5;
            p[1] = (real)(2 * (i / SIDE)) + (real)0.5;
            box_at(2, p, (real)0.5, box);
            insert_box(&world, box, LBVH_FIXED);
        }
        p[0] = p[1] = (real)1.5;
        box_at(2, p, (real)0.1, box);
        id = insert_box(&world, box, LBVH_MOVING);
        CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
        box_at(2, p, kind == 0 ? 200 : (real)0.2, box);
        CHECK_RESULT(lbvh_world_move(&world, id, box, kind == 0 ? NULL : far), LBVH_OK);
        CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
        for (k = 0; k < 300; k++) {
            box_at(2, p, (real)0.1, box);
            if (!lbvh_world_stay(&world, id, box))
                CHECK_RESULT(lbvh_world_move(&world, id, box, NULL), LBVH_OK);
            CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
        }
        costs_show("pairs, once large", kind ? "displacement" : "box", world.pairs);
        CHECK_BELOW(world.pairs, 4);
        lbvh_world_free(&world);
    }
}

/* ---- O(1) calls, and memory ---- */

/* Work of n calls of one kind in a world of n, a call. */
static double calls_work(int call, int32_t n)
{
    lbvh_world world = world_of(2, 0, NULL);
    real *pos = scene_points(EVEN, n, 2);
    lbvh_id *ids = NEW(lbvh_id, n);
    double work = 0;
    int32_t i;
    for (i = 0; i < n; i++) {
        real box[4];
        box_at(2, pos + 2 * i, (real)0.001, box);
        costs_begin();
        ids[i] = insert_box(&world, box, LBVH_MOVING);
        if (call == 0) work += costs_end();
    }
    CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
    for (i = 0; i < n && call > 0; i++) {
        real box[4];
        box_at(2, pos + 2 * i, (real)0.002, box);
        costs_begin();
        if (call == 1) CHECK_RESULT(lbvh_world_move(&world, ids[i], box, NULL), LBVH_OK);
        if (call == 2) lbvh_world_stay(&world, ids[i], box);
        if (call == 3) CHECK_RESULT(lbvh_world_set_state(&world, ids[i], LBVH_SLEEPING), LBVH_OK);
        if (call == 4) CHECK_RESULT(lbvh_world_set_filter(&world, ids[i], NULL), LBVH_OK);
        if (call == 5) CHECK_RESULT(lbvh_world_remove(&world, ids[i]), LBVH_OK);
        work += costs_end();
    }
    lbvh_world_free(&world);
    free(ids);
    free(pos);
    return work / n;
}

static void test_constant(void **state)
{
    static const char *const name[] = {"lbvh_world_insert", "lbvh_world_move", "lbvh_world_stay",
        "lbvh_world_set_state", "lbvh_world_set_filter", "lbvh_world_remove"};
    int32_t const n = size_of_run(500);
    int call;
    (void)state;
    NEED_COUNT();
    for (call = 0; call < COUNT_OF(name); call++) {
        double const few = calls_work(call, n), many = calls_work(call, 4 * n);
        costs_show(name[call], "even", many);
        CHECK_BELOW(many, 1.3 * few);
    }
}

/* About 420 bytes an object; arrays double; steps of a world that is full allocate nothing. */
static void test_memory(void **state)
{
    int32_t const n = 4080; /* rooms are 16 * (2^k - 1) */
    purse p = {0, 0, 0, 0, 0, 0};
    lbvh_world world = world_of(2, 0, &p);
    real *pos = scene_points(EVEN, n, 2);
    lbvh_id *ids = NEW(lbvh_id, n);
    int64_t calls;
    int32_t i;
    int k;
    (void)state;
    for (i = 0; i < n; i++) {
        real box[4];
        box_at(2, pos + 2 * i, (real)0.001, box);
        ids[i] = insert_box(&world, box, LBVH_MOVING);
    }
    CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
    costs_show("bytes an object", "even", (double)p.held / n);
    if (IS_FLOAT) CHECK_BELOW((double)p.held, 430.0 * n + 2 * 2 * 40.0 * world.pairs);
    CHECK_BELOW((double)p.calls, 21 * 14);
    calls = p.calls;
    for (k = 0; k < 3; k++) {
        for (i = 0; i < n; i += 1 + k) {
            real box[4];
            pos[2 * i] += (real)0.003;
            box_at(2, pos + 2 * i, (real)0.0001, box);
            CHECK_RESULT(lbvh_world_move(&world, ids[i], box, NULL), LBVH_OK);
        }
        CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
    }
    CHECK(p.calls == calls);
    lbvh_world_free(&world);
    CHECK(p.held == 0);
    free(ids);
    free(pos);
}

/* ---- far objects, giants ---- */

/* What one object of a scene is besides: over all, or a half space given as a box. */
enum { NO_GIANT, OVER_ALL, HALF_SPACE };

static void mover_at(int32_t i, int giant, const real *p, real half, real *box)
{
    int a;
    box_at(3, p, i == 0 && giant == OVER_ALL ? 2 : half, box);
    if (i > 0 || giant != HALF_SPACE) return;
    for (a = 0; a < 3; a++) box[a] = (real)-FAR_AWAY, box[3 + a] = (real)FAR_AWAY;
    box[4] = -1;
}

/* Work of some steps of n movers of a scene, an object and pair. */
static double steps_work(int s, int32_t n, int giant)
{
    lbvh_world world = world_of(3, 0, NULL);
    real *pos = scene_points((scene)s, n, 3);
    real const half = (real)0.3 / (real)cbrt((double)n);
    lbvh_id *ids = NEW(lbvh_id, n);
    double work, pairs = 0;
    int32_t i;
    int k;
    for (i = 0; i < n; i++) {
        real box[6];
        mover_at(i, giant, pos + 3 * i, half, box);
        ids[i] = insert_box(&world, box, LBVH_MOVING);
    }
    CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
    costs_begin();
    for (k = 0; k < 3; k++) {
        for (i = 1; i < n; i++) {
            real box[6];
            pos[3 * i] += (real)(i % 3 - 1) * half / 3;
            mover_at(i, giant, pos + 3 * i, half, box);
            CHECK_RESULT(lbvh_world_move(&world, ids[i], box, NULL), LBVH_OK);
        }
        CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
        pairs += world.pairs;
    }
    work = costs_end() / (3 * n + pairs);
    lbvh_world_free(&world);
    free(ids);
    free(pos);
    return work;
}

static void test_far(void **state)
{
    int32_t const n = size_of_run(1000);
    double even;
    int s;
    (void)state;
    NEED_COUNT();
    even = steps_work(EVEN, n, NO_GIANT);
    for (s = 0; s <= TEN_CLUSTERS; s++) {
        double const work = steps_work(s, n, NO_GIANT);
        costs_show("a step, an object and pair", scene_name[s], work);
        CHECK_BELOW(work, 4 * even);
    }
    CHECK_BELOW(steps_work(EVEN, n, OVER_ALL), 4 * even);
    CHECK_BELOW(steps_work(EVEN, n, HALF_SPACE), 4 * even);
}

/* Searches in a world, after lives that break its trees: an object and hit. */
static double search_work(int order, int call)
{
    int32_t const n = size_of_run(1000);
    lbvh_world world = world_of(2, 0, NULL);
    double work, found = 0;
    int32_t i;
    dice = wl_seed(3);
    for (i = 0; i < n; i++) {
        real box[4];
        place_of(order, i, n, box);
        insert_box(&world, box, LBVH_FIXED);
        CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
    }
    dice = wl_seed(3);
    costs_begin();
    for (i = 0; i < n; i++) {
        real box[4], to[2] = {2, 1};
        place_of(order, i, n, box);
        if (call == 0) {
            lbvh_world_overlap o = lbvh_world_overlap_box(&world, box);
            while (lbvh_next_object(&o)) found++;
        } else {
            lbvh_world_cast cast = lbvh_world_cast_box(&world, box, to);
            while (lbvh_next_cast(&cast)) found++;
        }
    }
    work = costs_end() / (n + found);
    lbvh_world_free(&world);
    return work;
}

static void test_searches(void **state)
{
    int order, call;
    (void)state;
    NEED_COUNT();
    for (call = 0; call < 2; call++) {
        double const even = search_work(IN_NO_ORDER, call);
        for (order = 0; order < ORDERS; order++) {
            double work;
            if (order == IN_NEST) continue;
            work = search_work(order, call);
            costs_show(call ? "lbvh_world_cast_box" : "lbvh_world_overlap_box",
                       order_name[order], work);
            CHECK_BELOW(work, 4 * even);
        }
    }
}

/* lbvh_world_find_pair: O(pairs of the one that has fewer); lbvh_world_validate: O(n + pairs). */
static void test_checks(void **state)
{
    int32_t const n = size_of_run(500);
    double find[2], check[2];
    int k;
    (void)state;
    NEED_COUNT();
    for (k = 0; k < 2; k++) {
        int32_t const m = n << 2 * k;
        lbvh_world world = world_of(2, 0, NULL);
        real *pos = scene_points(EVEN, m, 2);
        int32_t i;
        real all[4] = {-1, -1, 2, 2};
        insert_box(&world, all, LBVH_MOVING);
        for (i = 0; i < m; i++) {
            real box[4];
            box_at(2, pos + 2 * i, 0, box);
            insert_box(&world, box, LBVH_MOVING);
        }
        CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
        CHECK(world.pairs >= m);
        costs_begin();
        for (i = 1; i <= m; i++)
            CHECK(lbvh_world_find_pair(&world, i, 0) >= 0 &&
                  lbvh_world_find_pair(&world, i, 0) == lbvh_world_find_pair(&world, 0, i));
        find[k] = costs_end() / m;
        costs_begin();
        CHECK_RESULT(lbvh_world_validate(&world), LBVH_OK);
        check[k] = costs_end() / m;
        lbvh_world_free(&world);
        free(pos);
    }
    costs_show("lbvh_world_find_pair", "giant", find[1]);
    CHECK_BELOW(find[1], 1.3 * find[0]);
    CHECK_BELOW(check[1], 1.4 * check[0]);
}

/* ---- tasks ---- */

static void run_all(lbvh_task *task, void *context, int32_t tasks, void *user)
{
    int32_t k;
    (void)user;
    for (k = 0; k < tasks; k++) task(context, k);
}

/* user: the largest share that one task has had of all of its call. */
static void run_and_weigh(lbvh_task *task, void *context, int32_t tasks, void *user)
{
    double *share = (double *)user, sum = 0, most = 0;
    int32_t k;
    for (k = 0; k < tasks; k++) {
        double work;
        costs_begin();
        task(context, k);
        work = costs_end();
        sum += work;
        if (work > most) most = work;
    }
    if (most > *share * sum) *share = most / sum;
}

static int allow_all(void *user, int32_t a, int32_t b)
{
    (void)user;
    return a != b;
}

/* The work of an update that takes in n boxes, of which 1 of 100 meets many. */
static double work_of_hubs(int32_t n, int32_t tasks)
{
    lbvh_world world = world_of(3, 0, NULL);
    double work;
    int32_t i;
    dice = wl_seed(7);
    world.desc.allow = allow_all;
    world.desc.parallel.run = run_all;
    world.desc.parallel.tasks = tasks;
    for (i = 0; i < n; i++) {
        real box[6], p[3];
        p[0] = between(0, 1), p[1] = between(0, 1), p[2] = between(0, 1);
        box_at(3, p, i % 100 ? (real)0.0005 : (real)0.2, box);
        insert_box(&world, box, LBVH_MOVING);
    }
    costs_begin();
    CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
    work = costs_end();
    CHECK(world.pairs > 2 * n);
    lbvh_world_free(&world);
    return work;
}

static void test_tasks(void **state)
{
    enum { N = 20000 };
    lbvh_world world = world_of(3, 0, NULL);
    real *pos = scene_points(EVEN, N, 3), box[6];
    lbvh_id *id = NEW(lbvh_id, N);
    double share = 0, serial, together;
    int32_t i;
    (void)state;
    NEED_COUNT();
    for (i = 0; i < N; i++) {
        box_at(3, pos + 3 * i, (real)0.01, box);
        id[i] = insert_box(&world, box, LBVH_MOVING);
    }
    CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
    for (i = 0; i < N; i += 10) {
        box_at(3, pos + 3 * i, (real)0.011, box);
        CHECK_RESULT(lbvh_world_move(&world, id[i], box, NULL), LBVH_OK);
    }
    world.desc.parallel.run = run_and_weigh;
    world.desc.parallel.tasks = 4;
    world.desc.parallel.user = &share;
    CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
    costs_show("lbvh_world_update, one task of 4", "even", share);
    CHECK(share > 0);
    CHECK_BELOW(share, 0.4);
    serial = work_of_hubs(N, 1);
    together = work_of_hubs(N, 4);
    costs_show("lbvh_world_update, in tasks", "hubs", together / serial);
    CHECK_BELOW(together, 3 * serial);
    lbvh_world_free(&world);
    free(pos);
    free(id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_order), TEST(test_worst_update), TEST(test_rest), TEST(test_stay),
        TEST(test_shrink), TEST(test_constant), TEST(test_memory), TEST(test_far),
        TEST(test_searches), TEST(test_checks), TEST(test_tasks),
    };
    cmocka_set_test_filter(getenv("COSTS_TEST_ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
