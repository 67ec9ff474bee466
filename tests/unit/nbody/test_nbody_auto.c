/* test_nbody_auto.c - what NBODY_AUTO chooses costs at most 1.2 times the best of the direct sum
   and of trees of all depths, by counted terms; and the choice changes no force.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/nbody/test_nbody_auto.c -o test_nbody_auto -lcmocka -lm &&
       ./test_nbody_auto

   Environment: NBODY_LARGE=1, up to a million bodies (minutes); TEST_SMALL=1, a small part. */

#include "tests/common/nbody_parts.h"
#define NBODY_IMPLEMENTATION
#include "nbody.h"
#include "../../common/nbody_oracle.h"
#include "../../common/testing.h"

/* ---- three inputs ---- */

enum { UNIFORM, GAUSSIANS, PLUMMER, INPUTS };

static double normal(void)
{
    double const u = oracle_between(&dice, 1e-9, 1), v = oracle_between(&dice, 0, 1);
    return sqrt(-2 * log(u)) * cos(2 * ORACLE_PI * v);
}

static real *bodies_of(int input, int32_t n)
{
    real *pos = NEW(real, 2 * n);
    double clump[20][3];
    int32_t i;
    int k;
    for (k = 0; k < 20; k++) {
        clump[k][0] = oracle_between(&dice, 0, 1);
        clump[k][1] = oracle_between(&dice, 0, 1);
        clump[k][2] = pow(10, oracle_between(&dice, -3, -1));
    }
    for (i = 0; i < n; i++) {
        double x = oracle_between(&dice, 0, 1), y = oracle_between(&dice, 0, 1);
        double const *c = clump[roll(20)];
        if (input == GAUSSIANS) {
            x = c[0] + c[2] * normal();
            y = c[1] + c[2] * normal();
        } else if (input == PLUMMER) { /* the share of mass within r is r^2 / (1 + r^2) */
            double const r = sqrt(x / (1 - 0.999 * x)), turn = 2 * ORACLE_PI * y;
            x = r * cos(turn);
            y = r * sin(turn);
        }
        pos[2 * i] = (real)x;
        pos[2 * i + 1] = (real)y;
    }
    return pos;
}

/* ---- the cost, from nbody_count and the leaves, in terms of 1/d^2 ---- */

static struct { int input, order, law; int32_t n; double softening; } now;

static double whole_lanes(double count) { return ceil(count / 16) * 16; }

static double direct_cost(void)
{
    return whole_lanes(now.n) * now.n * (now.law ? 0.52 : 1);
}

/* One term is 1 (1/d: 0.52), a product and a sum of a table 0.32, of powers 0.45, an entry of a
   table that is filled 29 (for all three parts); a cell 2450, a body 57 and 5.5 a node;
   16 targets begin with a run of sources: 110. */
static double cost_of(const nbody *sim)
{
    double const term = now.law ? 0.52 : 1, k2 = now.order == 1 ? 4 : now.order * now.order;
    double cost = now.n * (57 + 5.5 * k2), near_terms = 0;
    nbody_counts counts;
    int32_t c;
    CHECK_RESULT(nbody_count(sim, &counts), NBODY_OK);
    if (!sim->cell) return direct_cost();
    for (c = 0; c < counts.cells; c++) { /* lanes without a body */
        nbody_near walk;
        if (sim->cell[c].child >= 0) continue;
        walk = nbody_near_of(sim, c);
        while (nbody_next_near(&walk))
        {
            double const lanes = whole_lanes(sim->cell[c].count);
            if (walk.whole) near_terms += (double)sim->cell[walk.cell].count * lanes;
            cost += 110 * lanes / 16;
        }
    }
    cost += term * (near_terms + (double)counts.far_terms) + 2450.0 * counts.cells;
    cost += (double)counts.table_terms *
        (sim->series ? 0.45 : 2 * 0.32 * whole_lanes(k2) / k2);
    if (now.softening > 0 && now.order > 1 && counts.levels > 2)
        cost += (counts.levels - 2) * 29.0 * 40 * k2 * whole_lanes(k2);
    return cost;
}

static void describe_case(void)
{
    print_error("  input %d, n %d, order %d, law %d, softening %g\n", now.input, (int)now.n,
        now.order, now.law, now.softening);
}

static nbody_desc desc_of(void)
{
    nbody_desc d;
    memset(&d, 0, sizeof d);
    d.order = now.order;
    d.law = (nbody_law)now.law;
    d.softening = (real)now.softening;
    return d;
}

static void try_tree(nbody *sim, const nbody_desc *d, const real *pos, double *best)
{
    double cost;
    CHECK_RESULT(nbody_build(sim, d, pos, 0, NULL, now.n), NBODY_OK);
    cost = cost_of(sim);
    if (cost < *best) *best = cost;
}

/* The least cost of all: leaves of 8 to 2048 bodies, few levels with leaves of 45, and the direct
   sum. */
static double best_of_all(const real *pos)
{
    double best = direct_cost(), leaf;
    nbody sim = {0};
    nbody_desc d = desc_of();
    d.method = NBODY_FORCE_NODES;
    for (leaf = 8; leaf < 2100; leaf *= 1.5) {
        d.leaf = (int32_t)leaf;
        try_tree(&sim, &d, pos, &best);
    }
    d.leaf = 45;
    for (d.levels = 3; d.levels <= 6; d.levels++) try_tree(&sim, &d, pos, &best);
    nbody_free(&sim);
    return best;
}

static double worst;

static void check_choice(const real *pos)
{
    nbody sim = {0};
    nbody_desc d = desc_of();
    double cost, best;
    CHECK_RESULT(nbody_build(&sim, &d, pos, 0, NULL, now.n), NBODY_OK);
    CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
    CHECK(!sim.cell == (sim.desc.method == NBODY_DIRECT));
    cost = cost_of(&sim);
    best = best_of_all(pos);
    if (cost / best > worst) worst = cost / best;
    CHECK_BELOW(cost / best, 1.2);
    nbody_free(&sim);
}

static void test_costs(void **state)
{
    static const int32_t sizes[] = {1, 10, 100, 250, 350, 420, 520, 650, 800, 1000, 1300, 1700,
        2300, 3000, 4200, 6000, 9000, 14000, 24000, 50000, 100000, 250000, 1000000};
    int k;
    (void)state;
    describe = describe_case;
    for (now.input = 0; now.input < INPUTS; now.input++) for (k = 0; k < COUNT_OF(sizes); k++) {
        real *pos;
        if (sizes[k] > 10000 && !getenv("NBODY_LARGE")) continue;
        if ((SANITIZED || small_run()) && sizes[k] > 800) continue;
        pos = bodies_of(now.input, sizes[k]);
        now.n = sizes[k];
        for (now.order = 1; now.order <= NBODY_MAX_ORDER; now.order++)
        for (now.law = 0; now.law < 2; now.law++) {
            if ((SANITIZED || small_run() || now.n > 100000) && (now.order + k) % 4) continue;
            now.softening = 0;
            check_choice(pos);
            now.softening = 0.01;
            check_choice(pos);
        }
        free(pos);
    }
    print_message("  at worst %.3f times the best\n", worst);
}

/* Whatever is chosen gives the bits of that method, given by name; and nothing is taken from the
   allocator after a reserve. */
static void test_same_forces(void **state)
{
    int32_t const sizes[] = {300, 600, 1500, 4000};
    int k, potentials;
    (void)state;
    describe = describe_case;
    for (now.input = 0; now.input < INPUTS; now.input++) for (k = 0; k < COUNT_OF(sizes); k++)
    for (now.law = 0; now.law < 2; now.law++) for (potentials = 0; potentials < 2; potentials++) {
        real *pos, *acc[2], *potential[2];
        nbody sim[2];
        nbody_desc d;
        int i;
        if ((SANITIZED || small_run()) && sizes[k] > 1000) continue;
        now.n = sizes[k];
        now.order = 2 + 3 * roll(4);
        now.softening = roll(2) ? 0.01 : 0;
        pos = bodies_of(now.input, now.n);
        memset(sim, 0, sizeof sim);
        d = desc_of();
        for (i = 0; i < 2; i++) {
            acc[i] = NEW(real, 2 * now.n);
            potential[i] = NEW(real, now.n);
            CHECK_RESULT(nbody_fields(&sim[i], &d, pos, 0, NULL, now.n, acc[i],
                potentials ? potential[i] : NULL), NBODY_OK);
            d.method = sim[0].desc.method;
            d.levels = sim[0].desc.levels;
            d.leaf = sim[0].desc.leaf;
        }
        CHECK(same(acc[0], acc[1], 2 * (size_t)now.n * sizeof(real)));
        if (potentials) CHECK(same(potential[0], potential[1], (size_t)now.n * sizeof(real)));
        CHECK(sim[0].frame->levels == sim[1].frame->levels);
        CHECK(sim[0].frame->chunks == sim[1].frame->chunks);
        for (i = 0; i < 2; i++) {
            nbody_free(&sim[i]);
            free(acc[i]);
            free(potential[i]);
        }
        free(pos);
    }
}

static void test_reserved(void **state)
{
    (void)state;
    describe = describe_case;
    now.input = UNIFORM;
    for (now.order = 1; now.order <= 12; now.order++) for (now.law = 0; now.law < 2; now.law++)
    for (now.n = 300; now.n < (small_run() || SANITIZED ? 700 : 9000); now.n *= 2) {
        real *pos = bodies_of(UNIFORM, now.n), *acc = NEW(real, 2 * now.n),
            *potential = NEW(real, now.n);
        int64_t calls;
        nbody sim = {0};
        nbody_desc d;
        heap h;
        now.softening = roll(2) ? 0.01 : 0;
        d = desc_of();
        memset(&h, 0, sizeof h);
        d.allocator = allocator_of(&h);
        CHECK_RESULT(nbody_reserve(&sim, &d, now.n), NBODY_OK);
        calls = h.calls;
        CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, NULL, now.n, acc, NULL), NBODY_OK);
        CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, NULL, now.n, acc, potential), NBODY_OK);
        CHECK(h.calls == calls);
        nbody_free(&sim);
        free(pos);
        free(acc);
        free(potential);
    }
}

/* A tree where it must be one, and none where it cannot pay; more bodies are never direct again. */
static void test_order_of_sizes(void **state)
{
    int32_t n;
    (void)state;
    describe = describe_case;
    for (now.order = 1; now.order <= 12; now.order++) for (now.law = 0; now.law < 2; now.law++) {
        int tree = 0;
        for (n = 1; n < 20000; n += 1 + n / 8) {
            nbody_desc d, out;
            now.n = n;
            now.softening = 0.01 * roll(2);
            d = desc_of();
            d.softening = 0;
            CHECK_RESULT(nbody_defaults(&out, &d, n), NBODY_OK);
            CHECK(!tree || out.method == NBODY_FORCE_NODES);
            tree = out.method == NBODY_FORCE_NODES;
            CHECK(n > 150 || !tree);
        }
        CHECK(tree);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(test_costs),
    TEST(test_same_forces),
    TEST(test_reserved),
    TEST(test_order_of_sizes),
};

int main(void)
{
    int failed = 0;
    RUN_GROUP(failed, tests, NULL);
    return failed;
}
