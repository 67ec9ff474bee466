/* test_ugrid_tune.c - ugrid_tuner: method, cells and walk chosen by measuring.
   SPDX-License-Identifier: MIT OR Unlicense

   Time is a model: a number for each method, cell, split and walk, whose cheapest combination is
   found by trying all. Then grids of points, where it is counted how many candidates a search
   tests. */

#define UGRID_IMPLEMENTATION
#define UGRID_WITH_TUNE
#include "ugrid.h"
#define TESTED ugrid
#define SHARE 1
#include "../../common/testing.h"

/* What a choice costs; the radius is 1. Costs of fields are factors, so that each is best alone. */
typedef struct model {
    double method[6], cell[5], split[3], walk[5];
    int refused_method; /* -1: none */
} model;

static int cell_of(double cell)
{
    static const double cells[] = {0, 1, 0.5, 1.0 / 3, 2};
    int k, nearest = 0;
    for (k = 0; k < 5; k++)
        if (fabs(cell - cells[k]) < fabs(cell - cells[nearest])) nearest = k;
    CHECK(fabs(cell - cells[nearest]) < 1e-6);
    return nearest;
}

static double cost_of(const model *m, const ugrid_desc *d)
{
    if ((int)d->method == m->refused_method) return -1;
    return m->method[d->method] * m->cell[cell_of((double)d->cell)] *
           m->split[d->split / 2] * m->walk[d->walk];
}

static model model_of(void)
{
    model m;
    int k;
    memset(&m, 0, sizeof m);
    for (k = 0; k < 6; k++) m.method[k] = 0.5 + (double)wl_u(&dice);
    for (k = 0; k < 5; k++) m.cell[k] = 0.5 + (double)wl_u(&dice);
    for (k = 0; k < 5; k++) m.walk[k] = 0.5 + (double)wl_u(&dice);
    for (k = 0; k < 3; k++) m.split[k] = 0.5 + (double)wl_u(&dice);
    m.refused_method = -1;
    return m;
}

/* Steps until the tuner has settled. */
static int settle(ugrid_tuner *tuner, const model *m)
{
    int steps = 0;
    do {
        ugrid_desc d;
        ugrid_next_desc(tuner, &d);
        ugrid_tune(tuner, cost_of(m, &d));
        CHECK(++steps < 1000);
        if (steps >= 1000) break;
    } while (!tuner->settled);
    return steps;
}

/* The cheapest desc that ugrid_defaults allows; fields that are set in `fixed` stay. */
static double cheapest(const model *m, const ugrid_desc *fixed)
{
    static const double cells[] = {0, 1, 0.5, 1.0 / 3, 2};
    double best = 1e30;
    int k[4];
    for (k[0] = 0; k[0] < 6; k[0]++) for (k[1] = 0; k[1] < 5; k[1]++)
    for (k[2] = 0; k[2] < 3; k[2]++) for (k[3] = 0; k[3] < 5; k[3]++) {
        ugrid_desc d = *fixed, resolved;
        double cost;
        if (!d.method) d.method = (ugrid_method)k[0];
        if (d.cell == 0) d.cell = (ugrid_real)cells[k[1]];
        if (!d.split) d.split = 2 * k[2];
        if (!d.walk) d.walk = (ugrid_walk)k[3];
        if (ugrid_defaults(&resolved, &d) != UGRID_OK) continue;
        cost = cost_of(m, &d);
        if (cost >= 0 && cost < best) best = cost;
    }
    return best;
}

static ugrid_desc box(void)
{
    ugrid_desc d;
    int a;
    memset(&d, 0, sizeof d);
    for (a = 0; a < 3; a++) d.max[a] = 16;
    return d;
}

static void test_model(void **state)
{
    int round, rounds = small_run() ? 30 : 300;
    (void)state;
    for (round = 0; round < rounds; round++) {
        model m = model_of();
        ugrid_tuner tuner;
        ugrid_desc d, start;
        memset(&tuner, 0, sizeof tuner);
        tuner.desc = box();
        tuner.radius = 1;
        tuner.trials = 1 + round % 3;
        if (round % 4 == 1) tuner.desc.method = UGRID_COUNT;
        if (round % 5 == 1) tuner.desc.cell = 1;
        if (round % 6 == 1) tuner.desc.walk = UGRID_CELLS;
        if (round % 7 == 1) tuner.desc.split = 2;
        if (round % 8 == 1) m.refused_method = UGRID_LIST;
        if ((int)tuner.desc.method == m.refused_method) m.refused_method = -1;
        start = tuner.desc;
        settle(&tuner, &m);
        ugrid_next_desc(&tuner, &d);
        CHECK(same(&d, &tuner.best, sizeof d));
        CHECK(tuner.tried >= 1 && tuner.tried < 60);
        CHECK(fabs(tuner.cost - cost_of(&m, &d)) <= 0);
        CHECK(tuner.cost <= cost_of(&m, &start) && tuner.gain <= 1);
        CHECK(fabs(tuner.gain - tuner.cost / cost_of(&m, &start)) < 1e-12);
        /* each field that can change alone has been tried: no choice is cheaper by 1 % */
        if (tuner.desc.method && tuner.desc.walk)
            CHECK(tuner.cost <= cheapest(&m, &start) * 1.05);
        if (start.method) CHECK(d.method == start.method);
        if (start.walk) CHECK(d.walk == start.walk);
        if (start.split) CHECK(d.split == start.split);
        if (start.cell > 0) CHECK(d.cell <= start.cell && d.cell >= start.cell);
        CHECK((int)d.method != m.refused_method);
        CHECK(strncmp(tuner.reason, "settled", 7) == 0);
    }
}

/* The cost of the chosen one changes by more than a quarter: the search begins anew. */
static void test_changes(void **state)
{
    model m = model_of();
    ugrid_tuner tuner;
    ugrid_desc d;
    int k, steps;
    (void)state;
    memset(&tuner, 0, sizeof tuner);
    tuner.desc = box();
    tuner.radius = 1;
    settle(&tuner, &m);
    ugrid_next_desc(&tuner, &d);
    for (k = 0; k < 20; k++) { /* a peak alone, and a fifth, are nothing */
        ugrid_next_desc(&tuner, &d);
        ugrid_tune(&tuner, cost_of(&m, &d) * (k == 7 ? 9 : 1.2));
        CHECK(tuner.settled);
    }
    ugrid_tune(&tuner, -1); /* a refusal by a build of the chosen one: the caller's to mend */
    CHECK(tuner.settled);
    for (k = 0; k < 6; k++) m.method[k] *= 2;
    m.method[d.method] *= 8;
    for (steps = 0; tuner.settled && steps < 10; steps++) {
        ugrid_next_desc(&tuner, &d);
        ugrid_tune(&tuner, cost_of(&m, &d));
    }
    CHECK(steps < 10);
    settle(&tuner, &m);
    CHECK(tuner.best.method != d.method);
}

static void test_nothing(void **state)
{
    ugrid_tuner tuner;
    ugrid_desc d = box(), out;
    (void)state;
    memset(&tuner, 0, sizeof tuner);
    tuner.desc = d;
    ugrid_next_desc(&tuner, &out);
    CHECK(same(&d, &out, sizeof d) && !tuner.begun);
    ugrid_tune(&tuner, 1);
    tuner.radius = (ugrid_real)INFINITY;
    ugrid_next_desc(&tuner, &out);
    ugrid_tune(&tuner, 1);
    tuner.radius = 1;
    ugrid_tune(&tuner, 1); /* no desc was taken */
    CHECK(!tuner.begun && tuner.tried == 0);
    ugrid_next_desc(NULL, &out);
    ugrid_next_desc(&tuner, NULL);
    ugrid_tune(NULL, 1);
}

/* Real grids: every desc that the tuner proposes finds the same pairs. */
static void test_grids(void **state)
{
    enum { N = 600 };
    static ugrid_real pos[3 * N];
    ugrid_tuner tuner;
    int64_t pairs = -1;
    int i, kind;
    (void)state;
    for (i = 0; i < 3 * N; i++) pos[i] = (ugrid_real)(8 * (double)wl_u(&dice));
    for (kind = 0; kind < 3; kind++) { /* a box, a periodic one, hashed cells */
        pairs = -1;
        memset(&tuner, 0, sizeof tuner);
        tuner.desc.unbounded = kind == 2;
        if (kind == 2) tuner.desc.cell = 1;
        for (i = 0; kind < 2 && i < 3; i++) tuner.desc.max[i] = 8;
        tuner.desc.periodic[0] = kind == 1;
        tuner.radius = (ugrid_real)0.9;
        tuner.trials = 1;
        for (i = 0; i < 100 && !tuner.settled; i++) {
            ugrid grid;
            ugrid_desc d;
            int64_t found;
            memset(&grid, 0, sizeof grid);
            ugrid_next_desc(&tuner, &d);
            CHECK_RESULT(ugrid_build(&grid, &d, pos, 0, N), UGRID_OK);
            CHECK_RESULT(ugrid_count_pairs(&grid, tuner.radius, &found), UGRID_OK);
            CHECK(pairs < 0 || found == pairs);
            pairs = found;
            ugrid_tune(&tuner, 1 + 0.1 * (double)wl_u(&dice));
            ugrid_free(&grid);
        }
        CHECK(tuner.settled && tuner.tried > 5 && pairs > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_model),
        TEST(test_changes),
        TEST(test_nothing),
        TEST(test_grids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
