/* test_nbody_plain.c - the plain text of nbody.h (NBODY_PLAIN) against its faster forms: the same
   bits, and errors within the bars of the method.
   SPDX-License-Identifier: MIT OR Unlicense

   This file compiles its own nbody.h, plain and static. The faster forms are those of the linked
   object, tests/common/headers.c, by their names as a linker knows them. So it needs that object:

       make build/tests/test_nbody_plain.plain && build/tests/test_nbody_plain.plain */

#undef NBODY_IMPLEMENTATION_DONE
#include "tests/common/nbody_parts.h"
#define NBODY_IMPLEMENTATION
#define NBODY_PLAIN
#  define NBODY_STATIC
#include "nbody.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#if NBODY_I_REAL_KIND == 2
#define FASTER(name) __asm__("nbody_f64_" name)
#else
#define FASTER(name) __asm__("nbody_" name)
#endif

extern nbody_result faster_fields(nbody *sim, const nbody_desc *desc, const nbody_real *pos,
                                  size_t stride, const nbody_real *mass, int32_t n,
                                  nbody_real *acc, nbody_real *potential) FASTER("fields");
extern nbody_result faster_sets(nbody *sim, int32_t sets, const nbody_real *mass, nbody_real *acc,
                                nbody_real *potential) FASTER("fields_sets");
extern nbody_result faster_at(const nbody *sim, const nbody_real *points, size_t stride, int32_t m,
                              nbody_real *acc, nbody_real *potential,
                              int32_t *bad_id) FASTER("fields_at");
extern void faster_free(nbody *sim) FASTER("free");

enum { N = 1000, SETS = 3, POINTS = 300 };

typedef struct fields { nbody_real acc[2 * SETS * N], potential[SETS * N]; } fields;

static nbody_real pos[2 * N], mass[SETS * N], points[2 * POINTS];
static fields plain, faster;

static double next_number(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) / 16777216.0;
}

/* Evenly spread, or clumped at the origin. */
static void fill(int clumped)
{
    uint32_t seed = 7;
    int i;
    for (i = 0; i < 2 * N; i++) {
        double const x = next_number(&seed);
        pos[i] = (nbody_real)(clumped ? x * x * x * x : x);
    }
    for (i = 0; i < SETS * N; i++) mass[i] = (nbody_real)(0.5 + next_number(&seed));
    for (i = 0; i < 2 * POINTS; i++) points[i] = (nbody_real)(1.2 * next_number(&seed) - 0.1);
}

static void clear(void)
{
    memset(&plain, 0, sizeof plain);
    memset(&faster, 0, sizeof faster);
}

/* Fields of bodies, of further masses, and at points, by both. */
static void compare(const nbody_desc *desc, int32_t n)
{
    nbody a = {0}, b = {0};
    clear();
    assert_int_equal(nbody_fields(&a, desc, pos, 0, mass, n, plain.acc, plain.potential),
                     faster_fields(&b, desc, pos, 0, mass, n, faster.acc, faster.potential));
    assert_memory_equal(&plain, &faster, sizeof plain);
    assert_int_equal(a.desc.method, b.desc.method);
    clear();
    assert_int_equal(nbody_fields_sets(&a, SETS, mass, plain.acc, plain.potential),
                     faster_sets(&b, SETS, mass, faster.acc, faster.potential));
    assert_memory_equal(&plain, &faster, sizeof plain);
    clear();
    assert_int_equal(
        nbody_fields_at(&a, points, 0, POINTS, plain.acc, plain.potential, NULL),
        faster_at(&b, points, 0, POINTS, faster.acc, faster.potential, NULL));
    assert_memory_equal(&plain, &faster, sizeof plain);
    nbody_free(&a);
    faster_free(&b);
}

static const struct { nbody_method method; int32_t order, levels; } methods[] = {
    {NBODY_AUTO, 0, 0},
    {NBODY_DIRECT, 0, 0},
    {NBODY_VIRTUAL_PARTICLES, 1, 4},
    {NBODY_VIRTUAL_PARTICLES, 2, 0},
    {NBODY_FORCE_NODES, 1, 4},
    {NBODY_FORCE_NODES, 4, 0},
    {NBODY_FORCE_NODES, 7, 4},
};
enum { METHODS = sizeof methods / sizeof *methods };

static nbody_desc desc_of(int m)
{
    nbody_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.method = methods[m].method;
    desc.order = methods[m].order;
    desc.levels = methods[m].levels;
    return desc;
}

static void test_same_bits(void **state)
{
    int m, law, soft, clumped;
    (void)state;
    for (clumped = 0; clumped < 2; clumped++) {
        fill(clumped);
        for (m = 0; m < METHODS; m++)
            for (law = NBODY_INVERSE_SQUARE; law <= NBODY_VORTEX; law++)
                for (soft = 0; soft < 2; soft++) {
                    nbody_desc desc = desc_of(m);
                    desc.law = (nbody_law)law;
                    desc.softening = soft ? (nbody_real)0.01 : 0;
                    if (law == NBODY_VORTEX) desc.core = NBODY_GAUSSIAN;
                    compare(&desc, getenv("TEST_SMALL") ? N / 4 : N);
                }
    }
}

static void test_same_bits_of_few(void **state)
{
    static const int32_t few[] = {0, 1, 2, 17};
    int m, k;
    (void)state;
    fill(0);
    for (m = 0; m < METHODS; m++)
        for (k = 0; k < 4; k++) {
            nbody_desc const desc = desc_of(m);
            compare(&desc, few[k]);
        }
}

static void test_same_bits_in_a_periodic_square(void **state)
{
    nbody_desc desc;
    (void)state;
    fill(0);
    memset(&desc, 0, sizeof desc);
    desc.periodic = 1;
    desc.size = 1;
    desc.method = NBODY_FORCE_NODES;
    compare(&desc, N / 2);
    desc.law = NBODY_INVERSE;
    compare(&desc, N / 2);
}

/* Mean errors: largest of a thousand evenly spread bodies. */
static void test_errors(void **state)
{
    static const double bars[METHODS] = {1e-3, 1e-5, 1.6e-4, 1e-4, 2.7e-3, 1e-3, 1e-5};
    int m;
    (void)state;
    fill(0);
    for (m = 0; m < METHODS; m++) {
        nbody_desc const desc = desc_of(m);
        nbody_error error;
        nbody sim = {0};
        assert_int_equal(nbody_accelerations(&sim, &desc, pos, 0, mass, N, plain.acc), NBODY_OK);
        assert_int_equal(nbody_estimate(&sim, plain.acc, N, 1, &error), NBODY_OK);
        if (!(error.mean <= bars[m])) fail_msg("method %d: mean error %g", m, error.mean);
        nbody_free(&sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_same_bits_of_few),
        cmocka_unit_test(test_same_bits_in_a_periodic_square),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
