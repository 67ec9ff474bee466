/* test_ugrid.c - tests of the serial part of ugrid.h.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/ugrid/test_ugrid.c -o test_ugrid -lcmocka -lm && ./test_ugrid
       (add -DUGRID_REAL=double for the double build; packages: libcmocka-dev libstb-dev)

   The oracle is brute force over the points as they were given to ugrid_build. It shares no code
   with the header: its distances are computed in double, with its own rule for the nearest image.
   Rounding can move a pair that lies on the rim of the search to either side, so the oracle sorts
   pairs into three kinds:

       OUTSIDE   further apart than the radius, by more than a few units in the last place
       RIM       so close to the radius that rounding decides
       WITHIN    closer, by more than a few units in the last place

   WITHIN must be found, OUTSIDE must not. A pair on the RIM is decided by the rule that the header
   states, d2 <= radius * radius with every operation rounded, which is written once more here
   (step_along); but only where all points lie in the box. Elsewhere it depends on how a position
   was moved into the box, and we only ask that all searches of one grid agree. Inputs on a lattice
   whose numbers are short binary fractions have no rounding at all; there the rim is WITHIN.

   Environment:
       UGRID_TEST_SHARE=k   runs one k-th of the big products (default: 1; 6 under a sanitizer; use
                            60 under valgrind)
       UGRID_TEST_LOT=j     which one (default: 0)
       UGRID_TEST_ONLY=p    runs the tests whose names match p, such as 'test_cell*'
       UGRID_TEST_SEED=s    replays the random operations with the seed that a failing run printed
       UGRID_TEST_STEPS=k   number of random operations */

#define STB_DS_IMPLEMENTATION
#include <stb/stb_ds.h>

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define TESTED ugrid
#define SHARE environment("UGRID_TEST_SHARE", SANITIZED ? 6 : 1)
#define LOT environment("UGRID_TEST_LOT", 0)
#include "../../common/testing.h"

#include "oracle.c"
#include "searches.c"
#include "products.c"
#include "cells.c"
#include "outside.c"
#include "bad_calls.c"
#include "limits.c"
#include "memory.c"
#include "files.c"
#include "validate.c"
#include "choices.c"
#include "hashed.c"
#include "random_steps.c"
#include "large.c"

static int set_up_case(void **state)
{
    current_scene = NULL;
    current_config = NULL;
    return set_up(state);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup(name, set_up_case)

static int tear_down(void **state)
{
    (void)state;
    arrfree(met);
    arrfree(agreed);
    return 0;
}

static const struct CMUnitTest tests[] = {
    TEST(test_version),
    TEST(test_texts),
    TEST(test_defaults),
    TEST(test_choose),
    TEST(test_fit),
    TEST(test_radius),
    TEST(test_sort_counts),
    TEST(test_fit_crowded),
    TEST(test_fit_ends),
    TEST(test_fit_needle),
    TEST(test_fit_flat),
    TEST(test_bad_descs),
    TEST(test_refusals_are_forgotten),
    TEST(test_bad_calls),
    TEST(test_room_for_one),
    TEST(test_not_built),
    TEST(test_point_not_finite),
    TEST(test_distance_overflows),
    TEST(test_box_too_wide),
    TEST(test_walk_rules),
    TEST(test_not_finite),
    TEST(test_cell_full),
    TEST(test_too_many_cells),
    TEST(test_too_many_entries),
    TEST(test_near_point),
    TEST(test_walk_order),
    TEST(test_spans),
    TEST(test_rim),
    TEST(test_huge_radius),
    TEST(test_cell_numbers),
    TEST(test_cells_of_borders),
    TEST(test_same_cells),
    TEST(test_sort_sizes),
    TEST(test_row_order),
    TEST(test_permutations),
    TEST(test_optional_arrays),
    TEST(test_cell_sums),
    TEST(test_boxes_of_particles),
    TEST(test_bad_boxes_of_particles),
    TEST(test_stride),
    TEST(test_flat_desc),
    TEST(test_extreme_positions),
    TEST(test_query_of_a_crowd),
    TEST(test_pair_outside),
    TEST(test_periods_outside),
    TEST(test_out_of_memory),
    TEST(test_growth),
    TEST(test_growth_short_of_memory),
    TEST(test_change_of_allocator),
    TEST(test_reserve),
    TEST(test_reserve_for_automatic_method),
    TEST(test_reserve_for_radius),
    TEST(test_files),
    TEST(test_files_of_parts),
    TEST(test_head_of_a_file),
    TEST(test_damaged_files),
    TEST(test_forged_files),
    TEST(test_calls_for_files),
    TEST(test_files_out_of_memory),
    TEST(test_validate_finds_damage),
    TEST(test_two_sizes),
    TEST(test_cells_per_axis),
    TEST(test_crowds),
    TEST(test_hashed),
    TEST(test_hashed_pieces),
    TEST(test_hashed_crowd),
    TEST(test_random_operations),
    TEST(test_workloads),
    TEST(test_uniform_100k),
    TEST(test_million),
    TEST(test_product_2d),
    TEST(test_product_split),
    TEST(test_product_3d),
};

int main(void)
{
    if (getenv("UGRID_TEST_ONLY")) cmocka_set_test_filter(getenv("UGRID_TEST_ONLY"));
    return cmocka_run_group_tests_name("ugrid", tests, NULL, tear_down);
}
