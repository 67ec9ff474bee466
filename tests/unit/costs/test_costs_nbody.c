/* test_costs_nbody.c - every cost that nbody.h and its parts promise, held against inputs that
   break promises.
   SPDX-License-Identifier: MIT OR Unlicense

   tests/README.md has the list: promise, input, count, bar. COSTS_SHOW=1 prints figures. */

#include "../../common/nbody_parts.h"
#define NBODY_IMPLEMENTATION
#include "nbody.h"
#define TESTED nbody
#include "../../common/testing.h"
#include "costs.h"

/* Besides the scenes of points: half of the bodies massless at the origin; a ring; a chain, each of
   whose distances is half of the one before, 40 times over; bodies near to each other far from the
   origin. */
enum { PARKED = SCENES, RING, CHAIN, FAR_FROM_ORIGIN, BODY_SCENES };

static const char *scene_of(int s)
{
    static const char *const name[] = {"parked", "ring", "chain", "far from 0"};
    return s < SCENES ? scene_name[s] : name[s - SCENES];
}

typedef struct bodies { real *pos, *mass, *acc, *potential; int32_t n; } bodies;

static bodies bodies_of(int s, int32_t n)
{
    bodies b;
    int32_t i;
    b.n = n;
    b.pos = scene_points(s < SCENES ? (scene)s : EVEN, n, 2);
    b.mass = NEW(real, n);
    b.acc = NEW(real, 2 * n);
    b.potential = NEW(real, n);
    for (i = 0; i < n; i++) {
        real *p = b.pos + 2 * i;
        double const turn = 6.283185307179586 * i / n;
        b.mass[i] = 1;
        if (s == PARKED && i % 2) p[0] = p[1] = b.mass[i] = 0;
        if (s == RING) p[0] = (real)cos(turn), p[1] = (real)sin(turn);
        if (s == CHAIN) p[0] = p[1] = (real)pow(0.5, 40.0 * i / n);
        if (s == FAR_FROM_ORIGIN) p[0] += 100, p[1] += 50;
    }
    return b;
}

static void free_bodies(bodies *b)
{
    free(b->pos);
    free(b->mass);
    free(b->acc);
    free(b->potential);
}

static nbody_desc desc_of(nbody_method method, int32_t order)
{
    nbody_desc d;
    memset(&d, 0, sizeof d);
    d.method = method;
    d.order = order;
    return d;
}

typedef struct figures { double work, terms; } figures;

/* One evaluation: work and terms a body. */
static figures evaluate(nbody_desc d, int s, int32_t n, int potentials)
{
    bodies b = bodies_of(s, n);
    nbody sim = {0};
    nbody_counts counts;
    figures f;
    nbody_fields(&sim, &d, b.pos, 0, b.mass, n, b.acc, NULL); /* tables are kept: a warm call */
    costs_begin();
    CHECK_RESULT(nbody_fields(&sim, &d, b.pos, 0, b.mass, n, b.acc,
                              potentials ? b.potential : NULL), NBODY_OK);
    f.work = costs_end() / n;
    CHECK_RESULT(nbody_count(&sim, &counts), NBODY_OK);
    f.terms = (double)(counts.near_terms + counts.far_terms + counts.table_terms) / n;
    nbody_free(&sim);
    free_bodies(&b);
    return f;
}

/* Terms of a body in the tree of a scene: no force is computed. */
static double terms_of(nbody_method method, int32_t order, int s, int32_t n)
{
    bodies b = bodies_of(s, n);
    nbody sim = {0};
    nbody_desc const d = desc_of(method, order);
    nbody_counts counts;
    CHECK_RESULT(nbody_build(&sim, &d, b.pos, 0, b.mass, n), NBODY_OK);
    CHECK_RESULT(nbody_count(&sim, &counts), NBODY_OK);
    nbody_free(&sim);
    free_bodies(&b);
    return (double)(counts.near_terms + counts.far_terms + counts.table_terms) / n;
}

/* FORCE_NODES: O(n) terms, down to the smallest cells; VIRTUAL_PARTICLES: O(n log n); DIRECT:
   n^2. */
static void test_terms(void **state)
{
    static const nbody_method method[] = {NBODY_FORCE_NODES, NBODY_FORCE_NODES,
        NBODY_VIRTUAL_PARTICLES};
    static const int32_t order[] = {1, 4, 1};
    int32_t const n = size_of_run(1000);
    int m, s;
    (void)state;
    CHECK(terms_of(NBODY_DIRECT, 0, EVEN, 100) == 100);
    for (m = 0; m < COUNT_OF(method); m++) {
        double const even = terms_of(method[m], order[m], EVEN, 4 * n);
        for (s = 0; s < BODY_SCENES; s++) {
            double const many = terms_of(method[m], order[m], s, 4 * n);
            costs_show(m == 2 ? "VIRTUAL_PARTICLES, terms" : "FORCE_NODES, terms", scene_of(s),
                       many);
            costs_show("    over a quarter of the bodies", "",
                       many / terms_of(method[m], order[m], s, n));
            CHECK_BELOW(many, 3 * even);
        }
        CHECK_GROWTH(even, terms_of(method[m], order[m], EVEN, n), 2.4);
    }
}

/* Bodies at one point, or at few, or parked, cost no n^2: work of a body. */
static void test_crowds(void **state)
{
    static const int crowd[] = {ONE_POINT, FEW_POINTS, PARKED};
    int32_t const n = size_of_run(900);
    int k, m;
    (void)state;
    NEED_COUNT();
    for (m = NBODY_AUTO; m <= NBODY_FORCE_NODES; m++) {
        nbody_desc const d = desc_of((nbody_method)m, 0);
        double even;
        if (m == NBODY_DIRECT) continue;
        even = evaluate(d, EVEN, m == NBODY_VIRTUAL_PARTICLES ? n / 4 : n, 0).work;
        for (k = 0; k < COUNT_OF(crowd); k++) {
            double const work = evaluate(d, crowd[k], n, 0).work;
            costs_show("crowds: work of a body, over even", scene_of(crowd[k]), work / even);
            CHECK_BELOW(work, 3 * even);
        }
    }
}

/* What is not counted in terms: work of a body, where it is in deep cells. */
static void test_work(void **state)
{
    static const int deep[] = {ONE_FAR, TWO_CLUSTERS, NESTED, CHAIN};
    int32_t const n = size_of_run(700);
    double even;
    int k;
    (void)state;
    NEED_COUNT();
    even = evaluate(desc_of(NBODY_FORCE_NODES, 4), EVEN, n, 0).work;
    for (k = 0; k < COUNT_OF(deep); k++) {
        double const work = evaluate(desc_of(NBODY_FORCE_NODES, 4), deep[k], n, 0).work;
        costs_show("FORCE_NODES, work of a body", scene_of(deep[k]), work / even);
        CHECK_BELOW(work, 5 * even);
    }
}

/* NBODY_AUTO chooses what costs least, for few bodies by their number alone: never much more than
   DIRECT and FORCE_NODES, and never more than DIRECT. */
static void test_auto(void **state)
{
    int32_t const n = size_of_run(300);
    int s;
    (void)state;
    NEED_COUNT();
    for (s = 0; s < BODY_SCENES; s += quick_run() ? 3 : 1) {
        figures const chosen = evaluate(desc_of(NBODY_AUTO, 0), s, n, 0),
                      direct = evaluate(desc_of(NBODY_DIRECT, 0), s, n, 0),
                      nodes = evaluate(desc_of(NBODY_FORCE_NODES, 4), s, n, 0);
        double const least = direct.work < nodes.work ? direct.work : nodes.work;
        costs_show("AUTO, over the cheaper one", scene_of(s), chosen.work / least);
        CHECK_BELOW(chosen.work, s == ONE_POINT || s == FEW_POINTS || s == PARKED
                                     ? 1.1 * direct.work : 2.5 * least);
        CHECK(direct.terms == n);
    }
}

/* Potentials about double the cost; NBODY_INVERSE: two to three times. */
static void test_potentials(void **state)
{
    int32_t const n = size_of_run(400);
    int law;
    (void)state;
    NEED_COUNT();
    for (law = NBODY_INVERSE_SQUARE; law <= NBODY_INVERSE; law++) {
        nbody_desc d = desc_of(NBODY_FORCE_NODES, 4);
        figures forces, both;
        d.law = (nbody_law)law;
        forces = evaluate(d, EVEN, n, 0);
        both = evaluate(d, EVEN, n, 1);
        costs_show("with potentials, over without", law ? "1/d" : "1/d^2", both.work / forces.work);
        CHECK_BELOW(both.work, (law ? 4 : 3) * forces.work);
    }
}

/* nbody_build, _validate: O(n levels); nbody_count: O(cells); nbody_save: O(n); nbody_load: as a
   build. */
static double call_work(int call, int s, int32_t n)
{
    bodies b = bodies_of(s, n);
    nbody sim = {0}, other = {0};
    nbody_desc d = desc_of(NBODY_FORCE_NODES, 4);
    nbody_counts counts;
    nbody_energies energies;
    nbody_bodies moving;
    nbody_error error;
    unsigned char *bytes = NULL;
    int64_t needed = 0;
    double work;
    d.leaf = 80; /* for any n */
    memset(&moving, 0, sizeof moving);
    moving.pos = b.pos;
    moving.vel = b.acc;
    moving.mass = b.mass;
    moving.n = n;
    memset(b.acc, 0, 2 * (size_t)n * sizeof *b.acc);
    CHECK_RESULT(nbody_build(&sim, &d, b.pos, 0, b.mass, n), NBODY_OK);
    CHECK(nbody_save(&sim, NULL, 0, &needed) == NBODY_BUFFER_TOO_SMALL);
    bytes = NEW(unsigned char, needed);
    CHECK_RESULT(nbody_save(&sim, bytes, needed, &needed), NBODY_OK);
    costs_begin();
    if (call == 0) CHECK_RESULT(nbody_build(&sim, &d, b.pos, 0, b.mass, n), NBODY_OK);
    if (call == 1) CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
    if (call == 2) CHECK_RESULT(nbody_count(&sim, &counts), NBODY_OK);
    if (call == 3) CHECK_RESULT(nbody_save(&sim, bytes, needed, &needed), NBODY_OK);
    if (call == 4) CHECK_RESULT(nbody_load(&other, NULL, bytes, needed), NBODY_OK);
    if (call == 5) CHECK_RESULT(nbody_energy(&moving, NULL, &energies), NBODY_OK);
    if (call == 6) CHECK_RESULT(nbody_estimate(&sim, b.acc, 4, 1, &error), NBODY_OK);
    work = costs_end() / n;
    nbody_free(&sim);
    nbody_free(&other);
    free(bytes);
    free_bodies(&b);
    return work;
}

static void test_linear(void **state)
{
    static const char *const name[] = {"nbody_build", "nbody_validate", "nbody_count",
        "nbody_save", "nbody_load", "nbody_energy", "nbody_estimate"};
    int32_t const n = size_of_run(300);
    int call, s;
    (void)state;
    NEED_COUNT();
    for (call = 0; call < COUNT_OF(name); call++) {
        double const even = call_work(call, EVEN, n);
        for (s = 0; s < BODY_SCENES; s++) {
            double const few = call_work(call, s, n), many = call_work(call, s, 4 * n);
            costs_show(name[call], scene_of(s), many);
            CHECK_BELOW(many, 12 * even);
            CHECK_BELOW(few, 25 * even);        /* levels: 49 for 300 bodies */
        }
    }
}

/* After a first evaluation a second of as many bodies allocates nothing; a reserve is enough for
   bodies that are spread evenly; memory grows with n, wherever they are. */
static void test_memory(void **state)
{
    int32_t const n = 200;
    int s;
    double even = 0;
    (void)state;
    for (s = 0; s < BODY_SCENES; s++) {
        bodies b = bodies_of(s, n);
        nbody sim = {0};
        nbody_desc d = desc_of(NBODY_FORCE_NODES, 4);
        purse p = {0, 0, 0, 0, 0, 0};
        int64_t calls;
        d.allocator = allocator_from(&p);
        CHECK_RESULT(nbody_reserve(&sim, &d, n), NBODY_OK);
        calls = p.calls;
        CHECK_RESULT(nbody_fields(&sim, &d, b.pos, 0, b.mass, n, b.acc, b.potential), NBODY_OK);
        if (s == EVEN) CHECK(p.calls == calls);
        calls = p.calls;
        CHECK_RESULT(nbody_fields(&sim, &d, b.pos, 0, b.mass, n, b.acc, b.potential), NBODY_OK);
        CHECK(p.calls == calls);
        if (s == EVEN) even = (double)p.held;
        costs_show("bytes a body", scene_of(s), (double)p.held / n);
        CHECK_BELOW((double)p.held, 6 * even);
        nbody_free(&sim);
        CHECK(p.held == 0);
        free_bodies(&b);
    }
}

/* Builds of one body more each time allocate O(log n) times. */
static void test_growth(void **state)
{
    int32_t const n = 300;
    bodies b = bodies_of(EVEN, n);
    nbody sim = {0};
    nbody_desc d = desc_of(NBODY_FORCE_NODES, 4);
    purse p = {0, 0, 0, 0, 0, 0};
    int32_t i;
    (void)state;
    d.allocator = allocator_from(&p);
    for (i = 20; i <= n; i++)
        CHECK_RESULT(nbody_build(&sim, &d, b.pos, 0, b.mass, i), NBODY_OK);
    costs_show("allocations of 280 builds", "growing", (double)p.calls);
    CHECK_BELOW((double)p.calls, 150);
    nbody_free(&sim);
    free_bodies(&b);
}

/* Work of fields at m points of a scene, among evenly spread bodies, a point. */
static double points_work(int s, int32_t n, int32_t m)
{
    bodies b = bodies_of(EVEN, n);
    real *at = scene_points((scene)s, m, 2), *acc = NEW(real, 2 * m);
    nbody sim = {0};
    nbody_desc d = desc_of(NBODY_FORCE_NODES, 4);
    double work;
    CHECK_RESULT(nbody_accelerations(&sim, &d, b.pos, 0, b.mass, n, b.acc), NBODY_OK);
    costs_begin();
    CHECK_RESULT(nbody_fields_at(&sim, at, 0, m, acc, NULL, NULL), NBODY_OK);
    work = costs_end() / m;
    nbody_free(&sim);
    free(acc);
    free(at);
    free_bodies(&b);
    return work;
}

/* nbody_fields_at: m points take about the time of m bodies; fewer up to 20 times that. */
static void test_points(void **state)
{
    int32_t const n = size_of_run(400);
    double bodies_cost;
    int s;
    (void)state;
    NEED_COUNT();
    bodies_cost = evaluate(desc_of(NBODY_FORCE_NODES, 4), EVEN, n, 0).work;
    for (s = 0; s < SCENES; s++) {
        double const many = points_work(s, n, n), few = points_work(s, n, 30);
        costs_show("fields_at, over a body", scene_name[s], many / bodies_cost);
        costs_show("fields_at 30 points, over a body", scene_name[s], few / bodies_cost);
        CHECK_BELOW(many, 3 * bodies_cost);
        CHECK_BELOW(few, 20 * bodies_cost);
    }
}

static double count_call(double d, void *user)
{
    ++*(int64_t *)user;
    return 1 / (d + 1);
}

/* NBODY_FUNCTION: one call for each near pair, 40 order^4 for the tables of each level. */
static void test_function(void **state)
{
    int32_t const n = size_of_run(150);
    int s;
    (void)state;
    for (s = 0; s < BODY_SCENES; s += quick_run() ? 3 : 1) {
        bodies b = bodies_of(s, n);
        nbody sim = {0};
        nbody_desc d = desc_of(NBODY_FORCE_NODES, 4);
        nbody_counts counts;
        int64_t calls = 0;
        d.law = NBODY_FUNCTION;
        d.function.force = count_call;
        d.function.user = &calls;
        CHECK_RESULT(nbody_accelerations(&sim, &d, b.pos, 0, b.mass, n, b.acc), NBODY_OK);
        CHECK_RESULT(nbody_count(&sim, &counts), NBODY_OK);
        costs_show("calls of the law, a body", scene_of(s), (double)calls / n);
        CHECK_BELOW((double)calls, (double)counts.near_terms + (double)counts.far_terms +
                                       40.0 * 256 * counts.levels);
        nbody_free(&sim);
        free_bodies(&b);
    }
}

/* nbody_fields_sets: with FORCE_NODES four sets share a pass; nbody_fields_again sorts nothing. */
static void test_sets(void **state)
{
    int32_t const n = size_of_run(300);
    bodies b = bodies_of(EVEN, n);
    nbody sim = {0};
    nbody_desc d = desc_of(NBODY_FORCE_NODES, 4);
    real *mass = NEW(real, 4 * n), *acc = NEW(real, 8 * n);
    double first, again, four;
    int32_t i;
    (void)state;
    NEED_COUNT();
    for (i = 0; i < 4 * n; i++) mass[i] = (real)(1 + i % 3);
    costs_begin();
    CHECK_RESULT(nbody_accelerations(&sim, &d, b.pos, 0, mass, n, acc), NBODY_OK);
    first = costs_end();
    costs_begin();
    CHECK_RESULT(nbody_fields_again(&sim, mass, acc, NULL), NBODY_OK);
    again = costs_end();
    costs_begin();
    CHECK_RESULT(nbody_fields_sets(&sim, 4, mass, acc, NULL), NBODY_OK);
    four = costs_end();
    costs_show("again, over first", "even", again / first);
    costs_show("four sets, over four calls", "even", four / (4 * again));
    CHECK_BELOW(again, first);
    CHECK_BELOW(four, 4 * again);
    nbody_free(&sim);
    free(acc);
    free(mass);
    free_bodies(&b);
}

/* A softened law: work of a first call, and of a second one. */
static void softened_calls(int s, int32_t n, double *first, double *second)
{
    bodies b = bodies_of(s, n);
    nbody sim = {0};
    nbody_desc d = desc_of(NBODY_FORCE_NODES, 6);
    d.softening = (real)0.01;
    costs_begin();
    CHECK_RESULT(nbody_accelerations(&sim, &d, b.pos, 0, b.mass, n, b.acc), NBODY_OK);
    *first = costs_end();
    costs_begin();
    CHECK_RESULT(nbody_accelerations(&sim, &d, b.pos, 0, b.mass, n, b.acc), NBODY_OK);
    *second = costs_end();
    nbody_free(&sim);
    free_bodies(&b);
}

/* Tables are computed once: of softened laws, while the square and the softening stay. Only for
   levels where cells act by them: not on the way down to a clump. */
static void test_tables(void **state)
{
    static const int deep[] = {ONE_POINT, PARKED, ONE_FAR, TWO_CLUSTERS};
    int32_t const n = size_of_run(1000);
    double first, second, even;
    int k;
    (void)state;
    NEED_COUNT();
    softened_calls(EVEN, n, &even, &second);
    costs_show("a second call, over the first", "softened", second / even);
    CHECK_BELOW(second, 0.9 * even);
    for (k = 0; k < COUNT_OF(deep); k++) {
        softened_calls(deep[k], n, &first, &second);
        costs_show("a first call, softened, over even", scene_of(deep[k]), first / even);
        CHECK_BELOW(first, 1.5 * even);
    }
}

static void run_all(nbody_task *task, void *context, int32_t tasks, void *user)
{
    int32_t i, *most = (int32_t *)user;
    if (tasks > *most) *most = tasks;
    for (i = 0; i < tasks; i++) task(context, i);
}

/* In tasks: at most desc.parallel.tasks at a time, and about the work of the serial call. */
static void test_tasks(void **state)
{
    int32_t const n = size_of_run(3000);
    int s;
    (void)state;
    NEED_COUNT();
    for (s = 0; s < BODY_SCENES; s += quick_run() ? BODY_SCENES : 3) {
        bodies b = bodies_of(s, n);
        double work[2];
        int k;
        for (k = 0; k < 2; k++) {
            nbody sim = {0};
            nbody_desc d = desc_of(NBODY_FORCE_NODES, 4);
            int32_t most = 0;
            if (k) {
                d.parallel.run = run_all;
                d.parallel.user = &most;
                d.parallel.tasks = 8;
            }
            costs_begin();
            CHECK_RESULT(nbody_accelerations(&sim, &d, b.pos, 0, b.mass, n, b.acc), NBODY_OK);
            work[k] = costs_end();
            CHECK(most <= 8 && (most > 1) == k);
            nbody_free(&sim);
        }
        costs_show("in 8 tasks, over serial", scene_of(s), work[1] / work[0]);
        CHECK_BELOW(work[1], 1.5 * work[0]);
        free_bodies(&b);
    }
}

/* nbody_step: LEAPFROG evaluates forces once a step, twice in the first; EULER once. */
static void test_steps(void **state)
{
    int32_t const n = size_of_run(200);
    bodies b = bodies_of(EVEN, n);
    nbody sim = {0};
    nbody_desc d = desc_of(NBODY_FORCE_NODES, 4);
    nbody_bodies moving;
    double forces, first, next;
    (void)state;
    NEED_COUNT();
    memset(&moving, 0, sizeof moving);
    moving.pos = b.pos;
    moving.vel = ZEROS(real, 2 * n);
    moving.acc = b.acc;
    moving.mass = b.mass;
    moving.n = n;
    CHECK_RESULT(nbody_accelerations(&sim, &d, b.pos, 0, b.mass, n, b.acc), NBODY_OK);
    costs_begin();
    CHECK_RESULT(nbody_accelerations(&sim, &d, b.pos, 0, b.mass, n, b.acc), NBODY_OK);
    forces = costs_end();
    costs_begin();
    CHECK_RESULT(nbody_step(&sim, &d, &moving, (real)1e-6, NBODY_LEAPFROG), NBODY_OK);
    first = costs_end();
    costs_begin();
    CHECK_RESULT(nbody_step(&sim, &d, &moving, (real)1e-6, NBODY_LEAPFROG), NBODY_OK);
    next = costs_end();
    costs_show("leapfrog, over its forces", "first", first / forces);
    costs_show("leapfrog, over its forces", "next", next / forces);
    CHECK_BELOW(first, 2.3 * forces);
    CHECK_BELOW(next, 1.3 * forces);
    nbody_free(&sim);
    free(moving.vel);
    free_bodies(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_terms), TEST(test_crowds), TEST(test_work), TEST(test_auto),
        TEST(test_potentials), TEST(test_linear), TEST(test_memory), TEST(test_growth),
        TEST(test_points), TEST(test_function), TEST(test_sets), TEST(test_tables),
        TEST(test_tasks),
        TEST(test_steps),
    };
    cmocka_set_test_filter(getenv("COSTS_TEST_ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
