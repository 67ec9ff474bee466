/* test_nlist_tune.c - nlist_tuner: a skin chosen by measuring. nlist_choose: a grid or a tree, by
   counts. nlist_moved_in: a skin in a box that changes.
   SPDX-License-Identifier: MIT OR Unlicense

   Time is counted, not measured: a model of the cost of a step, whose cheapest skin is found by
   trying all; and particles in motion, where a build costs as much as its candidates and a step as
   much as the entries of the list. */

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define NLIST_IMPLEMENTATION
#define NLIST_WITH_TUNE
#include "nlist.h"
#define TESTED nlist
#define SHARE 1
#include "../../common/testing.h"

/* Particles move by `speed` a step; a step costs (radius + skin)^3, a build `build`. */
typedef struct model { double radius, speed, build; } model;

static double step_cost(const model *m, double skin)
{
    double const reach = m->radius + skin;
    return reach * reach * reach;
}

static int steps_of(const model *m, double skin) { return 1 + (int)(skin / 2 / m->speed); }

static double mean_cost(const model *m, double skin)
{
    return step_cost(m, skin) + m->build / steps_of(m, skin);
}

/* The least mean cost of any skin between least and most. */
static double best_cost(const model *m, double least, double most)
{
    double skin, best = mean_cost(m, least);
    for (skin = least; skin <= most; skin += m->radius / 2000)
        if (mean_cost(m, skin) < best) best = mean_cost(m, skin);
    return best;
}

/* Steps with the tuner. noise: each time is wrong by up to so much. Returns the builds. */
static int run(nlist_tuner *tuner, const model *m, int steps, double noise)
{
    int k, left = 0, builds = 0;
    double skin = 0;
    for (k = 0; k < steps; k++) {
        int const built = left == 0;
        double seconds;
        if (built) skin = (double)nlist_next_skin(tuner), left = steps_of(m, skin), builds++;
        seconds = step_cost(m, skin) + (built ? m->build : 0);
        nlist_tune(tuner, built, seconds * (1 + noise * (2 * (double)wl_u(&dice) - 1)));
        left--;
    }
    return builds;
}

static void test_model(void **state)
{
    static const double builds[] = {0.01, 0.3, 3, 30, 1000}, speeds[] = {0.0003, 0.002, 0.02};
    int b, v, noisy;
    (void)state;
    dice = wl_seed(41);
    for (b = 0; b < COUNT_OF(builds); b++)
        for (v = 0; v < COUNT_OF(speeds); v++)
            for (noisy = 0; noisy < 2; noisy++) {
                model m;
                nlist_tuner tuner;
                double want;
                memset(&tuner, 0, sizeof tuner);
                m.radius = 1;
                m.speed = speeds[v];
                m.build = builds[b];
                tuner.radius = 1;
                (void)run(&tuner, &m, 300000, noisy ? 0.02 : 0);
                want = best_cost(&m, 0.01, 1);
                CHECK(tuner.settled && tuner.best == tuner.skin && tuner.reason);
                CHECK(tuner.skin >= (real)0.0099 && tuner.skin <= 1);
                CHECK(mean_cost(&m, (double)tuner.skin) <= want * (noisy ? 1.08 : 1.04));
                if (!noisy)
                    CHECK(fabs(tuner.cost - mean_cost(&m, (double)tuner.skin)) < 1e-3 * want);
                if (!noisy) CHECK(fabs(tuner.steps - steps_of(&m, (double)tuner.skin)) < 1e-6);
                if (tuner.wider > 0) CHECK(tuner.wider >= 0.98 * tuner.cost);
                if (tuner.narrower > 0) CHECK(tuner.narrower >= 0.98 * tuner.cost);
            }
}

/* The system changes: the search begins anew. */
static void test_change(void **state)
{
    nlist_tuner tuner = {0};
    model m = {1, 0.002, 1};
    nlist_real was;
    (void)state;
    tuner.radius = 1;
    (void)run(&tuner, &m, 100000, 0);
    was = tuner.skin;
    CHECK(tuner.settled);
    m.build = 40;
    (void)run(&tuner, &m, 100000, 0);
    CHECK(tuner.settled && tuner.skin > was);
    CHECK(mean_cost(&m, (double)tuner.skin) <= 1.04 * best_cost(&m, 0.01, 1));
    m.build = 0.05;
    (void)run(&tuner, &m, 100000, 0);
    CHECK(tuner.settled && tuner.skin < was);
    CHECK(mean_cost(&m, (double)tuner.skin) <= 1.04 * best_cost(&m, 0.01, 1));
}

static void test_borders(void **state)
{
    nlist_tuner tuner = {0};
    model m = {1, 0.002, 1000};
    (void)state;
    CHECK(nlist_next_skin(NULL) == 0);
    nlist_tune(NULL, 1, 1);
    CHECK(nlist_next_skin(&tuner) == 0); /* no radius */
    nlist_tune(&tuner, 1, 1);
    CHECK(tuner.count == 0);
    tuner.radius = REAL_NAN;
    CHECK(nlist_next_skin(&tuner) == 0);
    tuner.radius = 1;
    tuner.least = (real)0.2;
    tuner.most = (real)0.3;
    tuner.first = 7;
    tuner.lists = 1;
    CHECK(nlist_next_skin(&tuner) == (real)0.3);
    nlist_tune(&tuner, 1, -1);
    nlist_tune(&tuner, 1, (double)REAL_NAN);
    nlist_tune(&tuner, 1, (double)REAL_INFINITY);
    CHECK(tuner.count == 0);
    (void)run(&tuner, &m, 10000, 0);
    CHECK(tuner.settled && tuner.skin == (real)0.3 && strstr(tuner.reason, "widest"));
    memset(&tuner, 0, sizeof tuner);
    m.build = 0;
    tuner.radius = 1;
    tuner.least = (real)0.3;
    tuner.first = (real)0.9;
    (void)run(&tuner, &m, 30000, 0);
    CHECK(tuner.settled && tuner.skin < (real)0.331 && strstr(tuner.reason, "narrowest"));
}

/* Real lists: no pair is missed while the skin changes. */
static void test_lists(void **state)
{
    enum { N = 60 };
    real pos[3 * N], speed[3 * N];
    nlist list = {0};
    nlist_desc d = {0};
    nlist_tuner tuner = {0};
    int step, k, i, j, skins = 0;
    (void)state;
    dice = wl_seed(42);
    for (k = 0; k < 3 * N; k++) pos[k] = (real)wl_u(&dice);
    for (k = 0; k < 3 * N; k++) speed[k] = (real)0.004 * ((real)wl_u(&dice) - (real)0.5);
    d.radius = tuner.radius = (real)0.25;
    d.half = 1;
    for (step = 0; step < 1500; step++) {
        int32_t moved = 1;
        double seconds;
        CHECK_RESULT(nlist_moved(&list, pos, 0, &moved), NLIST_OK);
        if (moved) {
            nlist_real const skin = nlist_next_skin(&tuner);
            skins += skin != d.skin;
            d.skin = skin;
            CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, N), NLIST_OK);
        }
        for (i = 0; step % 50 == 0 && i < N; i++)
            for (j = i + 1; j < N; j++) {
                double d2 = 0;
                for (k = 0; k < 3; k++)
                    d2 += ((double)pos[3 * i + k] - (double)pos[3 * j + k]) *
                          ((double)pos[3 * i + k] - (double)pos[3 * j + k]);
                if (d2 < 0.0624) CHECK(nlist_find(&list, i, j) >= 0);
            }
        seconds = (double)list.total + (moved ? N * N / 2.0 : 0);
        nlist_tune(&tuner, moved, seconds);
        for (k = 0; k < 3 * N; k++) {
            pos[k] += speed[k];
            if (pos[k] < 0 || pos[k] > 1) speed[k] = -speed[k];
        }
    }
    CHECK(tuner.settled && skins > 4 && tuner.cost > 0);
    nlist_free(&list);
}

/* ---- nlist_moved_in ---- */

/* The distance of two particles, of the nearest image. */
static double image_distance(const real *pos, int i, int j, const real length[3])
{
    double d2 = 0;
    int k;
    for (k = 0; k < 3; k++) {
        double d = (double)pos[3 * i + k] - (double)pos[3 * j + k];
        if (length[k] > 0) d -= (double)length[k] * floor(d / (double)length[k] + 0.5);
        d2 += d * d;
    }
    return sqrt(d2);
}

/* No pair that the list lacks is within the radius, if the answer is 0. */
static void test_changed_box(void **state)
{
    enum { N = 40 };
    real pos[3 * N], at[3 * N], zero[3] = {0, 0, 0};
    int counter, i, j, k, kept = 0, left = 0;
    (void)state;
    dice = wl_seed(44);
    for (counter = 0; counter < 1500; counter++) {
        nlist list = {0};
        nlist_desc d = {0};
        real length[3], new_length[3];
        double const speed = 0.02 * wl_u(&dice), change = (counter % 2 ? 0.02 : 0.2) * wl_u(&dice),
                     turns = counter % 3 == 0 ? 3 : 1;
        int32_t moved, missed = 0;
        d.radius = (real)0.25;
        d.skin = (real)0.1;
        for (k = 0; k < 3; k++) {
            d.periodic[k] = counter >> (k + 1) & 1;
            d.max[k] = length[k] = (real)(0.8 + 0.4 * wl_u(&dice));
            new_length[k] = length[k] + (real)(change * (2 * wl_u(&dice) - 1));
        }
        for (i = 0; i < 3 * N; i++) pos[i] = length[i % 3] * (real)(turns * wl_u(&dice));
        for (i = 0; i < 3 * N; i++) {
            at[i] = pos[i] + (real)(speed * (2 * wl_u(&dice) - 1));
            if (d.periodic[i % 3] && turns < 2) {   /* wrapped into the box as it is now */
                if (at[i] >= new_length[i % 3]) at[i] -= new_length[i % 3];
                if (at[i] < 0) at[i] += new_length[i % 3];
            }
        }
        for (k = 0; k < 3; k++) if (!d.periodic[k]) new_length[k] = 0;
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, N), NLIST_OK);
        CHECK_RESULT(nlist_moved_in(&list, zero, new_length, at, 0, &moved), NLIST_OK);
        for (i = 0; i < N; i++)
            for (j = 0; j < i; j++)
                if (image_distance(at, i, j, new_length) < 0.2499)
                    missed += nlist_find(&list, i, j) < 0;
        CHECK(moved || !missed);
        kept += !moved && d.periodic[0];
        left += missed > 0;
        if (counter == 0) { /* nothing periodic: as nlist_moved */
            int32_t plain;
            CHECK_RESULT(nlist_moved(&list, at, 0, &plain), NLIST_OK);
            CHECK(plain == moved);
        }
        nlist_free(&list);
    }
    CHECK(kept > 50 && left > 50);
}

/* The box shrinks, and nobody moves: two particles meet over the border. */
static void test_shrunk_box(void **state)
{
    static const real pos[] = {(real)0.1, 5, 5, (real)8.8, 5, 5}, min[3] = {0, 0, 0},
                      same_max[3] = {10, 10, 10}, less[3] = {9, 9, 9},
                      bit_less[3] = {(real)9.95, 10, 10}, none[3] = {0, 0, 0};
    nlist list = {0}, again = {0};
    nlist_desc d = {0};
    int32_t moved = 7;
    (void)state;
    d.radius = 1;
    d.skin = (real)0.2;
    d.periodic[0] = d.periodic[1] = d.periodic[2] = 1;
    d.max[0] = d.max[1] = d.max[2] = 10;
    CHECK_RESULT(nlist_moved_in(&list, min, less, pos, 0, &moved), NLIST_OK);
    CHECK(moved == 1); /* no list */
    CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_OK);
    CHECK(list.total == 0);
    CHECK_RESULT(nlist_moved_in(&list, min, same_max, pos, 0, &moved), NLIST_OK);
    CHECK(moved == 0);
    CHECK_RESULT(nlist_moved_in(&list, min, bit_less, pos, 0, &moved), NLIST_OK);
    CHECK(moved == 0);
    CHECK_RESULT(nlist_moved_in(&list, min, less, pos, 0, &moved), NLIST_OK);
    CHECK(moved == 1);
    CHECK_RESULT(nlist_moved_in(&list, min, none, pos, 0, &moved), NLIST_BAD_BOX);
    CHECK_RESULT(nlist_moved_in(&list, NULL, less, pos, 0, &moved), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_moved_in(&list, min, less, NULL, 0, &moved), NLIST_BAD_ARGUMENT);
    list.boxed = 1;
    CHECK_RESULT(nlist_moved_in(&list, min, less, pos, 0, &moved), NLIST_BAD_OPTION);
    list.boxed = 0;
    d.skin = 0;
    CHECK_RESULT(nlist_build_brute(&again, &d, pos, 0, 2), NLIST_OK);
    CHECK_RESULT(nlist_moved_in(&again, min, less, pos, 0, &moved), NLIST_BAD_SKIN);
    nlist_free(&list);
    nlist_free(&again);
}

/* ---- nlist_choose ---- */

enum { CHOSEN = 2000 };
typedef enum scene_kind { EVEN, LARGER, GIANT, FAR, TWO_CLUSTERS, DIAGONAL, ONE_POINT,
    PERIODIC_GIANT, SCENES } scene_kind;

/* Particles of radius 0.5, two or so per unit of volume, but for what the kind says. */
static void make_scene(scene_kind kind, real pos[3 * CHOSEN], real radii[CHOSEN])
{
    int i, k;
    dice = wl_seed(43);
    for (i = 0; i < CHOSEN; i++) {
        for (k = 0; k < 3; k++) pos[3 * i + k] = (real)(10 * wl_u(&dice));
        radii[i] = (real)0.5;
    }
    if (kind == LARGER) radii[7] = (real)0.75;
    if (kind == GIANT || kind == PERIODIC_GIANT) radii[7] = 4;
    for (k = 0; k < 3; k++) {
        if (kind == FAR) pos[3 * 7 + k] = (real)1e6;
        for (i = 0; i < CHOSEN; i++) {
            if (kind == TWO_CLUSTERS && i % 2) pos[3 * i + k] += (real)1e5;
            if (kind == DIAGONAL) pos[3 * i + k] = (real)i * (real)0.5;
            if (kind == ONE_POINT) pos[3 * i + k] = 3;
        }
    }
}

/* The particles in the 27 cells around one, itself included: the mean, counted. */
static double candidates_by_hand(const real *pos, double cell, double length)
{
    int64_t count = 0;
    int i, j, k;
    for (i = 0; i < CHOSEN; i++)
        for (j = 0; j < CHOSEN; j++) {
            int beside = 1;
            for (k = 0; k < 3; k++) {
                double const cells = length > 0 ? floor(length / cell) : 0,
                             edge = length > 0 ? length / cells : cell;
                double d = fabs(floor((double)pos[3 * i + k] / edge) -
                                floor((double)pos[3 * j + k] / edge));
                if (length > 0 && d > cells / 2) d = cells - d;
                beside &= d <= 1;
            }
            count += beside;
        }
    return (double)count / CHOSEN;
}

static void test_choose(void **state)
{
    static const nlist_search want[SCENES] = {NLIST_BY_GRID, NLIST_BY_GRID, NLIST_BY_TREE,
        NLIST_BY_TREE, NLIST_BY_TREE, NLIST_BY_GRID, NLIST_BY_GRID, NLIST_BY_TREE};
    static real pos[3 * CHOSEN], radii[CHOSEN];
    int kind;
    (void)state;
    for (kind = 0; kind < SCENES; kind++) {
        nlist_desc d = {0};
        nlist_choice c, again;
        double counted;
        make_scene((scene_kind)kind, pos, radii);
        d.radii = radii;
        if (kind == PERIODIC_GIANT) {
            d.periodic[0] = d.periodic[1] = d.periodic[2] = 1;
            d.max[0] = d.max[1] = d.max[2] = 10;
        }
        CHECK_RESULT(nlist_choose(&c, &d, pos, 0, CHOSEN), NLIST_OK);
        counted = candidates_by_hand(pos, (double)c.cell, kind == PERIODIC_GIANT ? 10 : 0);
        if (c.search != want[kind] || fabs(c.grid_tests - counted) > 0.25 * counted + 20)
            print_error("scene %d: %s; %g candidates, counted %g; tree %g\n", kind, c.reason,
                        c.grid_tests, counted, c.tree_tests);
        CHECK(c.search == want[kind] && c.reason && c.cell >= 1);
        CHECK(fabs(c.grid_tests - counted) <= 0.25 * counted + 20);
        CHECK((c.search == NLIST_BY_TREE) == (c.tree_tests < c.grid_tests));
        CHECK_RESULT(nlist_choose(&again, &d, pos, 0, CHOSEN), NLIST_OK);
        CHECK(same(&c, &again, sizeof c));
    }
}

static void test_choose_borders(void **state)
{
    static real pos[3 * CHOSEN], radii[CHOSEN];
    nlist_desc d = {0};
    nlist_choice c;
    (void)state;
    make_scene(EVEN, pos, radii);
    CHECK_RESULT(nlist_choose(NULL, &d, pos, 0, 2), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_choose(&c, NULL, pos, 0, 2), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_choose(&c, &d, pos, 0, 2), NLIST_BAD_RADIUS);
    d.radius = 1;
    CHECK_RESULT(nlist_choose(&c, &d, NULL, 0, 2), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_choose(&c, &d, pos, 0, -1), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_choose(&c, &d, pos, 1, 2), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_choose(&c, &d, NULL, 0, 0), NLIST_OK);
    CHECK(c.search == NLIST_BY_GRID && c.cell == 1 && c.grid_tests == 0);
    CHECK_RESULT(nlist_choose(&c, &d, pos, 0, 1), NLIST_OK);
    CHECK(c.search == NLIST_BY_GRID && c.cell == 1);
    pos[0] = REAL_INFINITY; /* it does not count */
    pos[4] = REAL_NAN;
    CHECK_RESULT(nlist_choose(&c, &d, pos, 0, CHOSEN), NLIST_OK);
    CHECK(c.search == NLIST_BY_GRID && c.cell == 1);
    pos[0] = REAL_LARGEST / 4;
    pos[4] = -REAL_LARGEST / 4;
    CHECK_RESULT(nlist_choose(&c, &d, pos, 0, CHOSEN), NLIST_OK);
    CHECK(c.search == NLIST_BY_TREE && strstr(c.reason, "too many"));
    d.dim = 2;
    CHECK_RESULT(nlist_choose(&c, &d, pos, 0, CHOSEN / 2), NLIST_OK);
    d.radius = REAL_LARGEST;
    radii[3] = REAL_LARGEST;
    d.radii = radii;
    CHECK_RESULT(nlist_choose(&c, &d, pos, 0, CHOSEN / 2), NLIST_BAD_RADIUS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_change),
        cmocka_unit_test(test_borders),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_changed_box),
        cmocka_unit_test(test_shrunk_box),
        cmocka_unit_test(test_choose),
        cmocka_unit_test(test_choose_borders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
