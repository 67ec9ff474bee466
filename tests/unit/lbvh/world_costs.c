/* world_costs.c - a part of test_lbvh_world.c: what an update and a search cost, counted in nodes,
   rebuilds and searches, for orders and boxes that break promises of cost; stored boxes that were
   large once; boxes of the largest numbers.
   SPDX-License-Identifier: MIT OR Unlicense */

#if defined(__unix__) && !defined(_WIN32)
#include <sys/mman.h>
#include <unistd.h>
#define HAVE_PAGES 1
#endif

static lbvh_world new_world(int dim, double margin)
{
    lbvh_world world;
    lbvh_world_desc desc;
    memset(&world, 0, sizeof world);
    memset(&desc, 0, sizeof desc);
    desc.dim = dim;
    desc.margin = (real)margin;
    CHECK_RESULT(lbvh_world_begin(&world, &desc), LBVH_OK);
    return world;
}

/* A box around p. */
static void box_around(real *box, const double *p, int dim, double half)
{
    int a;
    for (a = 0; a < dim; a++) {
        box[a] = (real)(p[a] - half);
        box[dim + a] = (real)(p[a] + half);
    }
}

static lbvh_id put_in(lbvh_world *world, const double *p, double half, lbvh_state state)
{
    real box[6];
    lbvh_id id = 0;
    box_around(box, p, world->desc.dim, half);
    CHECK_RESULT(lbvh_world_insert(world, box, NULL, state, 0, &id), LBVH_OK);
    return id;
}

/* Nodes that a search at p visits in a tree. */
static int64_t visits_at(const lbvh_world_tree *tree, const double *p, int dim)
{
    int32_t at = tree->leaves > 0 ? 0 : -1;
    int64_t count = 0;
    int a;
    for (; at >= 0; count++) {
        const lbvh_node *node = &tree->node[at];
        int meets = 1;
        for (a = 0; a < dim; a++)
            meets &= (double)node->min[a] <= p[a] && p[a] <= (double)node->max[a];
        at = meets && node->link >= 0 ? node->link : node->skip;
    }
    return count;
}

/* ------------------------------------------------------------------------------------------------
   Orders of insertion
   ------------------------------------------------------------------------------------------------
   */

enum { ROW, SNAKE, STRIP, SPIRAL, DIAGONAL, RANDOM, SCATTERED, ORDERS };

static void place_of(int order, int k, int n, wl_random *dice, double *p)
{
    int const side = (int)ceil(sqrt((double)n));
    double const root = sqrt((double)k);
    p[0] = k;
    p[1] = p[2] = 0;
    if (order == SNAKE) p[0] = k / side % 2 ? side - 1 - k % side : k % side;
    if (order == SNAKE) p[1] = k / side;
    if (order == STRIP) p[0] = k / 4, p[1] = k % 4;
    if (order == SPIRAL) p[0] = root * cos(3.5449 * root), p[1] = root * sin(3.5449 * root);
    if (order == DIAGONAL) p[0] = p[1] = p[2] = -k;
    if (order == RANDOM) p[0] = side * (double)wl_u(dice), p[1] = side * (double)wl_u(dice);
    if (order == SCATTERED) p[0] = (k % 2 ? 1 : -1) * pow(1.02, k % 1500);
}

/* All at once: how many nodes searches visit then. */
static double visits_of_build(int order, int n, int dim)
{
    lbvh_world world = new_world(dim, 0);
    wl_random dice = wl_seed(3);
    int64_t visits = 0;
    double p[3];
    int k;
    for (k = 0; k < n; k++) {
        place_of(order, k, n, &dice, p);
        put_in(&world, p, 0.25, LBVH_FIXED);
    }
    CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
    for (k = 0, dice = wl_seed(3); k < n; k++) {
        place_of(order, k, n, &dice, p);
        visits += visits_at(&world.tree[1], p, dim);
    }
    lbvh_world_free(&world);
    return (double)visits / n;
}

/* One by one, in any order: nothing is rebuilt, no tree is deep, and searches visit at most twice
   the nodes. */
static void insert_in_order(int order, int n, int dim)
{
    double const most = 2 * visits_of_build(order, n, dim);
    lbvh_world world = new_world(dim, 0);
    wl_random dice = wl_seed(3);
    int64_t visits = 0;
    double p[3];
    int k, rebuilt = 0, height;
    for (k = 0; k < n; k++) {
        place_of(order, k, n, &dice, p);
        put_in(&world, p, 0.25, LBVH_FIXED);
        CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
        rebuilt += k >= 4 && world.reason == LBVH_REBUILT;
    }
    CHECK_RESULT(lbvh_world_validate(&world), LBVH_OK);
    for (k = 0, dice = wl_seed(3); k < n; k++) {
        place_of(order, k, n, &dice, p);
        visits += visits_at(&world.tree[1], p, dim);
    }
    height = world.tree[1].height[0];
    if (rebuilt || (double)visits / n > most || height > 2 * log2((double)n) + 17)
        print_error("order %d, %dD: rebuilt %d, height %d, visits %g, at most %g\n", order, dim,
                    rebuilt, height, (double)visits / n, most);
    assert_int_equal(rebuilt, 0);
    assert_true(height <= 2 * log2((double)n) + 17);
    assert_true((double)visits / n <= most);
    lbvh_world_free(&world);
}

static void test_orders(void **state)
{
    int const n = small_run() ? 1500 : 20000;
    int order, dim;
    (void)state;
    for (dim = 2; dim <= 3; dim++)
        for (order = 0; order < ORDERS; order++) insert_in_order(order, n, dim);
}

/* Boxes whose places and sizes are powers of two, up and down, on both sides, inside each other:
   the tree of the least boxes is a chain. None is deeper than allowed after any insertion. */
static void power_box(int kind, int i, real *box)
{
    real const up = (real)ldexp(1, i / 2 - 60), down = (real)ldexp(1, 60 - i / 2),
               size = (kind % 2 ? down : up) * (real)(i % 2 ? 1 : 0.75);
    int a;
    for (a = 0; a < 2; a++) {
        box[a] = kind < 2 ? (a == 0 ? (i % 2 ? size : -size) : 0) : kind < 4 ? -size : 0;
        box[2 + a] = kind < 2 ? box[a] : size;
    }
}

static void test_powers(void **state)
{
    enum { N = 240 };
    int kind, i;
    (void)state;
    for (kind = 0; kind < 6; kind++) {
        lbvh_world world = new_world(2, 0);
        const lbvh_world_tree *tree = &world.tree[1];
        lbvh_id id;
        real box[4];
        int most = 0;
        for (i = 0; i < N; i++) {
            power_box(kind, i, box);
            CHECK_RESULT(lbvh_world_insert(&world, box, NULL, LBVH_FIXED, 0, &id), LBVH_OK);
            CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
            CHECK_RESULT(lbvh_world_validate(&world), LBVH_OK);
            assert_true(i < 4 || world.reason != LBVH_REBUILT);
            assert_true(tree->height[0] <= 2 * ceil(log2((double)i + 1)) + 16);
            if (tree->height[0] > most) most = tree->height[0];
        }
        assert_true(most > 20); /* so ways were shortened */
        /* as if that had not helped: the tree alone is built, as deep as log2 of its leaves */
        world.tree[1].too_deep = 1;
        CHECK_RESULT(lbvh_world_insert(&world, box, NULL, LBVH_FIXED, 0, &id), LBVH_OK);
        CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
        CHECK_RESULT(lbvh_world_validate(&world), LBVH_OK);
        assert_true(world.reason == LBVH_REBUILT && tree->height[0] == 8 && !tree->too_deep);
        lbvh_world_free(&world);
    }
}

/* Few of many move for long: the tree is kept as good as a new one, without rebuilds. */
static void test_few_move(void **state)
{
    enum { N = 1000, STEPS = 3000 };
    static double p[N][3];
    lbvh_world world = new_world(2, 0.1), fresh = new_world(2, 0.1);
    wl_random dice = wl_seed(8);
    lbvh_id id[N];
    int64_t visits = 0, least = 0;
    real box[6];
    int i, a, step;
    (void)state;
    for (i = 0; i < N; i++) {
        for (a = 0; a < 2; a++) p[i][a] = 30 * (double)wl_u(&dice);
        id[i] = put_in(&world, p[i], 0.4, LBVH_MOVING);
    }
    CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
    for (step = 0; step < STEPS * 5; step++) {
        i = (int)wl_below(&dice, N);
        for (a = 0; a < 2; a++) p[i][a] = fabs(p[i][a] + (double)wl_u(&dice) - 0.5);
        box_around(box, p[i], 2, 0.4);
        CHECK_RESULT(lbvh_world_move(&world, id[i], box, NULL), LBVH_OK);
        if (step % 5) continue;
        CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
        assert_int_not_equal(world.reason, LBVH_REBUILT);
    }
    for (i = 0; i < N; i++) put_in(&fresh, p[i], 0.4, LBVH_MOVING);
    CHECK_RESULT(lbvh_world_update(&fresh), LBVH_OK);
    for (i = 0; i < N; i++) {
        visits += visits_at(&world.tree[0], p[i], 2);
        least += visits_at(&fresh.tree[0], p[i], 2);
    }
    assert_true(2 * visits <= 3 * least);
    lbvh_world_free(&world);
    lbvh_world_free(&fresh);
}

/* 128 ways that are as deep as allowed, and objects far off, each of which deepens all of them: no
   leaf may be deeper than walks have room for, whatever is shortened meanwhile. */
static void test_many_deep_ways(void **state)
{
    lbvh_world world = new_world(3, 0);
    double const unit = ldexp(1, -41), corner = 2097151 * unit;
    double const ends[2][3] = {{0, 0, 0}, {corner, corner, corner}};
    double at = ldexp(1, -15);
    int c, j, bit, i;
    (void)state;
    for (i = 0; i < 2; i++) (void)put_in(&world, ends[i], 0, LBVH_MOVING);
    for (c = 0; c < 128; c++)
        for (j = 0; j < 32; j++) {
            uint64_t const code = (uint64_t)c << 56 | (uint64_t)1 << (55 - j);
            double p[3] = {0, 0, 0};
            for (bit = 0; bit < 63; bit++)
                if (code >> bit & 1) p[(62 - bit) % 3] += ldexp(unit, bit / 3);
            (void)put_in(&world, p, 0, LBVH_MOVING);
        }
    CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
    for (i = 0; i < 60; i++, at *= 2.1) {
        double const p[3] = {at, 0, 0};
        (void)put_in(&world, p, 0, LBVH_MOVING);
        CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
        CHECK_RESULT(lbvh_world_validate(&world), LBVH_OK);
    }
    lbvh_world_free(&world);
}

/* ------------------------------------------------------------------------------------------------
   Far objects, half spaces; objects at rest
   ------------------------------------------------------------------------------------------------
   */

/* Mean visits among n objects that come one by one, with `others` that fall, or with a half space
   that was first. */
static double visits_beside(int dim, int n, int others, int half_space, double far)
{
    lbvh_world world = new_world(dim, 0.02);
    wl_random dice = wl_seed(6);
    lbvh_id fallen[8] = {0};
    double p[3] = {0, 0, 0};
    int64_t visits = 0;
    real box[6];
    int i, a;
    for (a = 0; a < dim; a++) box[a] = (real)-far, box[dim + a] = (real)(a == 1 ? -1 : far);
    if (half_space)
        CHECK_RESULT(lbvh_world_insert(&world, box, NULL, LBVH_MOVING, 0, fallen), LBVH_OK);
    for (i = 0; i < n; i++) {
        for (a = 0; a < dim; a++) p[a] = (double)wl_u(&dice) * (dim == 2 ? 40 : 12);
        put_in(&world, p, 0.15, LBVH_MOVING);
        if (others && i % (n / 8) == 0) fallen[i / (n / 8)] = put_in(&world, p, 0.15, LBVH_MOVING);
        if (others && i % (n / 8) == 9) {
            p[1] = -far * (1 + i);
            box_around(box, p, dim, 0.15);
            CHECK_RESULT(lbvh_world_move(&world, fallen[i / (n / 8)], box, NULL), LBVH_OK);
        }
        CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
    }
    for (i = 0; i < 200; i++) {
        for (a = 0; a < dim; a++) p[a] = (double)wl_u(&dice) * (dim == 2 ? 40 : 12);
        visits += visits_at(&world.tree[0], p, dim);
    }
    lbvh_world_free(&world);
    return (double)visits / 200;
}

static void test_far_objects(void **state)
{
    static const double far[] = {1e4, 1e9, 1e30};
    int const n = small_run() ? 800 : 4000;
    int dim, k;
    (void)state;
    for (dim = 2; dim <= 3; dim++) {
        double const alone = visits_beside(dim, n, 0, 0, 0);
        for (k = 0; k < COUNT_OF(far); k++) {
            assert_true(visits_beside(dim, n, 0, 1, far[k]) <= 2 * alone);
            assert_true(visits_beside(dim, n, 1, 0, far[k]) <= 2 * alone);
        }
    }
}

#if HAVE_PAGES
/* Forbids to read the whole pages of an array, or allows it again. */
static void forbid(void *array, size_t bytes, int access)
{
    size_t const page = (size_t)sysconf(_SC_PAGESIZE);
    char *const begin = (char *)array + (page - (size_t)(uintptr_t)array % page) % page;
    size_t const left = bytes - (size_t)(begin - (char *)array);
    assert_true(left / page > 3);
    assert_int_equal(mprotect(begin, left / page * page, access), 0);
}
#endif

/* Steps with one mover look at no object at rest, nor at its boxes: they cannot be read. */
/* The one object that moves passes others at rest; now and then it leaves, and another one comes in
   the same update, or none. Its pairs are those that overlap. */
static void test_one_moves(void **state)
{
    enum { N = 100, STEPS = 60 };
    static const lbvh_state rest[2] = {LBVH_SLEEPING, LBVH_FIXED};
    int kind, i, step;
    (void)state;
    for (kind = 0; kind < 2; kind++) {
        lbvh_world world = new_world(2, 0);
        double p[3] = {0, 0, 0};
        lbvh_id id = 0;
        for (i = 0; i < N; i++) {
            p[0] = i % 10;
            p[1] = i / 10;
            put_in(&world, p, 0.25, rest[kind]);
        }
        for (step = 0; step < STEPS; step++) {
            int pairs = 0;
            real box[6];
            p[0] = 0.15 * step + 0.01;
            p[1] = 0.1 * step + 0.01;
            if (step % 14 == 5 || step % 14 == 12)
                CHECK_RESULT(lbvh_world_remove(&world, id), LBVH_OK);
            if (step % 14 == 0 || step % 14 == 5) id = put_in(&world, p, 0.4, LBVH_MOVING);
            box_around(box, p, 2, 0.4);
            if (step % 14 < 12) CHECK_RESULT(lbvh_world_move(&world, id, box, NULL), LBVH_OK);
            CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
            CHECK_RESULT(lbvh_world_validate(&world), LBVH_OK);
            for (i = 0; i < N && step % 14 < 12; i++)
                pairs += fabs(p[0] - i % 10) < 0.65 && fabs(p[1] - i / 10) < 0.65;
            assert_int_equal(world.pairs, pairs);
        }
        lbvh_world_free(&world);
    }
}

static void test_rest(void **state)
{
#if HAVE_PAGES
    enum { N = 2000 };
    int kind, i, step;
    (void)state;
    for (kind = LBVH_SLEEPING; kind <= LBVH_FIXED; kind++) {
        double p[3] = {0, 0, 0};
        lbvh_world world = new_world(2, 0);
        lbvh_id id;
        real box[6];
        id = put_in(&world, p, 0.25, LBVH_MOVING);
        for (i = 0; i < N; i++) {
            p[0] = 1000 + i % 40;
            p[1] = i / 40;
            put_in(&world, p, 0.25, (lbvh_state)kind);
        }
        CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
        forbid(world.object + 1, N * sizeof *world.object, PROT_NONE);
        forbid(world.box + 2, 2 * N * sizeof *world.box, PROT_NONE);
        for (step = 1; step < 20; step++) {
            p[0] = 0;
            p[1] = step;
            box_around(box, p, 2, 0.25);
            CHECK_RESULT(lbvh_world_move(&world, id, box, NULL), LBVH_OK);
            CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
            assert_int_equal(world.searched, 1);
        }
        forbid(world.object + 1, N * sizeof *world.object, PROT_READ | PROT_WRITE);
        forbid(world.box + 2, 2 * N * sizeof *world.box, PROT_READ | PROT_WRITE);
        lbvh_world_free(&world);
    }
#else
    (void)state;
#endif
}

/* ------------------------------------------------------------------------------------------------
   Stored boxes
   ------------------------------------------------------------------------------------------------
   */

/* Moves to where p is now, by both calls or by the second one; 1: both boxes are in it. */
static void step_to(lbvh_world *world, lbvh_id id, const double *p, const real *way, int stays)
{
    real box[6];
    box_around(box, p, 2, 0.1);
    if (!stays || !lbvh_world_stay(world, id, box))
        CHECK_RESULT(lbvh_world_move(world, id, box, way), LBVH_OK);
    CHECK_RESULT(lbvh_world_update(world), LBVH_OK);
}

/* Large for one step, or one large displacement: the stored box shrinks, and the pairs end. */
static void test_boxes_shrink(void **state)
{
    int kind, stays, i;
    (void)state;
    for (kind = 0; kind < 2; kind++)
        for (stays = 0; stays < 2; stays++) {
            lbvh_world world = new_world(2, 0.05);
            real const explosion[4] = {-20, -20, 20, 20}, way[2] = {100, 100};
            double p[3] = {1.5, 1.5, 0}, q[3];
            lbvh_id id;
            for (i = 0; i < 100; i++) {
                q[0] = 2 * (i % 10) + 0.5;
                q[1] = 2 * (i / 10) + 0.5;
                put_in(&world, q, 0.5, LBVH_FIXED);
            }
            id = put_in(&world, p, 0.1, LBVH_MOVING);
            CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
            if (kind) CHECK_RESULT(lbvh_world_move(&world, id, explosion, NULL), LBVH_OK);
            p[0] = 1.2;
            if (kind) CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
            else step_to(&world, id, p, way, 0);
            assert_true(world.pairs > 80);
            for (i = 0; i < 80; i++) {
                p[0] = 1.5 + i * 0.0001;
                step_to(&world, id, p, NULL, stays);
            }
            assert_true(world.pairs <= 1);
            assert_int_equal(world.searched, 0);
            lbvh_world_free(&world);
        }
}

/* Fast ones with a displacement of ten steps search in every tenth, whatever their margin, also
   when they slow down; those that stay ask for it every 64 steps. */
static void test_boxes_last(void **state)
{
    static const double margins[] = {0, 0.001, 0.3};
    int k, stays, step;
    (void)state;
    for (k = 0; k < COUNT_OF(margins); k++)
        for (stays = 0; stays < 2; stays++) {
            lbvh_world world = new_world(2, margins[k]);
            double p[3] = {0, 0, 0};
            lbvh_id const id = put_in(&world, p, 0.1, LBVH_MOVING);
            int searched = 0;
            for (step = 0; step < 200; step++) {
                double const speed = 1 - step / 400.0;
                real const way[2] = {(real)(10 * speed), (real)(-5 * speed)};
                p[0] += speed;
                p[1] -= speed / 2;
                step_to(&world, id, p, way, stays);
                searched += world.searched;
            }
            assert_true(searched >= 10 && searched <= 30);
            lbvh_world_free(&world);
        }
}

/* Half spaces and points at the ends of the numbers: with and without margins, found by searches
   and pairs; a cast's t is not lost in their size. */
static void test_largest_boxes(void **state)
{
    real const most = REAL_LARGEST, floors[2][4] = {{-most, -most, most, 0},
                                                    {-most / 2, -most / 2, most / 2, 0}},
               ball[4] = {0, (real)-0.1, 1, 1}, above[4] = {6, 5, 7, 6}, down[2] = {0, -10},
               centre[2] = {6, 5}, infinite[2] = {0, REAL_INFINITY}, way[2] = {most, -most};
    int k;
    (void)state;
    for (k = 0; k < 6; k++) {
        lbvh_world world = new_world(2, k % 3 == 1 ? 0.1 : 0);
        lbvh_world_cast cast;
        lbvh_id id, moves;
        real box[4];
        int a;
        world.desc.margin_part = k % 3 == 2 ? 10 : 0;
        CHECK_RESULT(lbvh_world_insert(&world, floors[k / 3], NULL, LBVH_FIXED, 7, &id), LBVH_OK);
        CHECK_RESULT(lbvh_world_insert(&world, ball, NULL, LBVH_MOVING, 2, &moves), LBVH_OK);
        CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
        CHECK_RESULT(lbvh_world_validate(&world), LBVH_OK);
        assert_int_equal(world.pairs, 1);
        CHECK_RESULT(lbvh_world_box(&world, 0, LBVH_TIGHT, box), LBVH_OK);
        assert_memory_equal(box, floors[k / 3], sizeof box);
        CHECK_RESULT(lbvh_world_box(&world, 0, LBVH_FAT, box), LBVH_OK);
        for (a = 0; a < 4; a++) assert_true(box[a] >= -most && box[a] <= most);
        cast = lbvh_world_cast_box(&world, above, down);
        assert_true(lbvh_next_cast(&cast) && cast.user == 7 && cast.t == (real)0.5);
        cast = lbvh_world_ray(&world, centre, down, 1);
        assert_true(lbvh_next_cast(&cast) && cast.user == 7 && cast.t == (real)0.5);
        cast = lbvh_world_cast_sphere(&world, centre, 2, down);
        assert_true(lbvh_next_cast(&cast) && cast.user == 7);
        assert_true(fabs((double)cast.t - 0.3) < 1e-6);
        if (k % 3 < 2)
            CHECK_RESULT(lbvh_world_move(&world, moves, above, infinite), LBVH_NOT_FINITE);
        CHECK_RESULT(lbvh_world_move(&world, moves, above, way), LBVH_OK);
        CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
        CHECK_RESULT(lbvh_world_validate(&world), LBVH_OK);
        lbvh_world_free(&world);
    }
}

/* ------------------------------------------------------------------------------------------------
   What the manual says of casts, of times between updates, and of filters
   ------------------------------------------------------------------------------------------------
   */

/* A box of integers, swept along an axis, touches at exactly the quotient. */
static void test_box_casts_by_hand(void **state)
{
    wl_random dice = wl_seed(12);
    int k;
    (void)state;
    for (k = 0; k < 300; k++) {
        int const gap = 1 + (int)wl_below(&dice, 9), times = 1 << wl_below(&dice, 3),
                  from = (int)wl_below(&dice, 1000), back = k % 2;
        real const wall[4] = {0, 0, 1, 1},
                   box[4] = {(real)(back ? 1 + gap : -gap - from), 0,
                             (real)(back ? 1 + gap + from : -gap), 1},
                   vector[2] = {(real)(back ? -gap * times : gap * times), 0};
        lbvh_world world = world_of_boxes(2, wall, 1);
        lbvh_world_cast cast = lbvh_world_cast_box(&world, box, vector);
        assert_int_equal(lbvh_next_cast(&cast), 1);
        assert_true(cast.t == 1 / (real)times);
        lbvh_world_free(&world);
    }
}

static int finds(const lbvh_world *world, const double *p, lbvh_fit fit)
{
    lbvh_world_overlap o;
    real box[6];
    box_around(box, p, world->desc.dim, 0.01);
    o = lbvh_world_overlap_box(world, box);
    o.fit = fit;
    return lbvh_next_object(&o);
}

/* Between a move and the update searches go by the old stored box, and LBVH_TIGHT by the new one
   too; of several moves the last one that stored a box gave the displacement. */
static void test_between_updates(void **state)
{
    double const old[3] = {0, 0, 0}, far[3] = {5, 0, 0}, near[3] = {0.9, 0, 0},
                 edge[3] = {1.3, 0, 0};
    real const way[2] = {8, 0}, back[2] = {-9, 0};
    lbvh_world world = new_world(2, 0.5);
    lbvh_id const id = put_in(&world, old, 0.5, LBVH_MOVING);
    real box[6];
    (void)state;
    CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
    box_around(box, far, 2, 0.5);
    CHECK_RESULT(lbvh_world_move(&world, id, box, NULL), LBVH_OK);
    assert_true(!finds(&world, far, LBVH_TIGHT) && !finds(&world, far, LBVH_FAT));
    assert_true(!finds(&world, old, LBVH_TIGHT) && finds(&world, old, LBVH_FAT));
    box_around(box, edge, 2, 0.5);
    CHECK_RESULT(lbvh_world_move(&world, id, box, way), LBVH_OK);
    assert_true(finds(&world, near, LBVH_TIGHT) && !finds(&world, old, LBVH_TIGHT));
    box_around(box, near, 2, 0.5);
    CHECK_RESULT(lbvh_world_move(&world, id, box, back), LBVH_OK);
    CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
    CHECK_RESULT(lbvh_world_box(&world, 0, LBVH_FAT, box), LBVH_OK);
    assert_true(box[2] > 10 && box[0] > -1);    /* edge + 0.5 + 8, and near is within it */
    assert_true(finds(&world, near, LBVH_TIGHT) && !finds(&world, edge + 1, LBVH_TIGHT));
    CHECK_RESULT(lbvh_world_box(&world, 1, LBVH_FAT, box), LBVH_BAD_ID);
    CHECK_RESULT(lbvh_world_box(&world, 0, (lbvh_fit)2, box), LBVH_BAD_OPTION);
    CHECK_RESULT(lbvh_world_box(&world, 0, LBVH_FAT, NULL), LBVH_BAD_ARGUMENT);
    lbvh_world_free(&world);
}

/* 0 are all bits, of objects and of searches. */
static void test_bits_of_zero(void **state)
{
    double const p[3] = {0, 0, 0};
    real const point[2] = {0, 0}, box[4] = {-1, -1, 1, 1}, vector[2] = {1, 0};
    lbvh_world world = new_world(2, 0);
    lbvh_filter none;
    lbvh_world_overlap o;
    lbvh_world_cast cast;
    lbvh_world_near near;
    (void)state;
    memset(&none, 0, sizeof none);
    put_in(&world, p, 0.5, LBVH_MOVING);
    CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
    o = lbvh_world_overlap_box(&world, box);
    o.filter = none;
    assert_true(lbvh_next_object(&o));
    cast = lbvh_world_ray(&world, point, vector, 1);
    cast.filter = none;
    assert_true(lbvh_next_cast(&cast));
    near = lbvh_world_near_point(&world, point, 1);
    near.filter = none;
    assert_true(lbvh_next_near_object(&near));
    assert_true(lbvh_filters_allow(&none, &none));
    lbvh_world_free(&world);
}
