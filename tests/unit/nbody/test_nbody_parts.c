/* test_nbody_parts.c - nbody.h without its parts: what belongs to a part is refused, by name; all
   else works.
   SPDX-License-Identifier: MIT OR Unlicense */

#undef NBODY_IMPLEMENTATION_DONE /* not the linked object, which has all parts */
#define NBODY_IMPLEMENTATION
#define NBODY_STATIC
#include "nbody.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static double constant(double d, void *user)
{
    (void)user;
    return d > 0;
}

static void refuse(const nbody_desc *desc)
{
    static const nbody_real pos[] = {0, 0, 1, 0, 0, 1};
    nbody_real acc[6];
    nbody sim = {0};
    nbody_desc resolved;
    assert_int_equal(nbody_accelerations(&sim, desc, pos, 0, NULL, 3, acc), NBODY_NO_PART);
    assert_int_equal(nbody_reserve(&sim, desc, 3), NBODY_NO_PART);
    assert_int_equal(nbody_defaults(&resolved, desc, 3), NBODY_NO_PART);
    assert_null(sim.frame);
    nbody_free(&sim);
}

static void test_refused(void **state)
{
    nbody_desc desc = {0};
    (void)state;
    desc.periodic = 1;
    desc.size = 1;
    refuse(&desc);
    memset(&desc, 0, sizeof desc);
    desc.law = NBODY_VORTEX;
    refuse(&desc);
    desc.law = NBODY_INVERSE;
    desc.core = NBODY_GAUSSIAN;
    refuse(&desc);
    memset(&desc, 0, sizeof desc);
    desc.law = NBODY_FUNCTION;
    desc.function.force = constant;
    refuse(&desc);
    assert_non_null(strstr(nbody_result_text(NBODY_NO_PART), "NBODY_WITH_FUNCTION"));
    assert_non_null(strstr(nbody_result_text(NBODY_NO_PART), "NBODY_WITH_VORTEX"));
    assert_non_null(strstr(nbody_result_text(NBODY_NO_PART), "NBODY_WITH_PERIODIC"));
}

static void test_core_alone(void **state)
{
    static const nbody_real pos[] = {0, 0, 2, 0}, mass[] = {1, 3};
    nbody_real acc[4];
    nbody sim = {0};
    (void)state;
    assert_int_equal(nbody_accelerations(&sim, NULL, pos, 0, mass, 2, acc), NBODY_OK);
    assert_true(acc[0] > (nbody_real)0.7499 && acc[0] < (nbody_real)0.7501); /* 3 / 2^2 */
    assert_true(acc[2] > (nbody_real)-0.2501 && acc[2] < (nbody_real)-0.2499);
    assert_int_equal(nbody_validate(&sim), NBODY_OK);
    nbody_free(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_core_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
