/* test_nbody.c - tests of the serial part of nbody.h: numbers, trees and walks, against the direct
   sum and a dense pyramid; refusals, defaults, memory, strides. nbody_oracle.h has the oracles.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/nbody/test_nbody.c -o test_nbody -lcmocka -lm && ./test_nbody
       (add -DNBODY_REAL=double for the double build; package: libcmocka-dev)

   Environment:
       NBODY_TEST_ONLY=p    runs the tests whose names match p, such as 'test_step*'
       NBODY_LARGE=1        also the bars of 100 thousand and a million bodies (minutes)
       TEST_GROUP=calls     runs one group: fields or calls
       TEST_SMALL=1         a small part of everything, for valgrind */

#include "tests/common/nbody_parts.h"
#define NBODY_IMPLEMENTATION
#include "nbody.h"
#include "../../common/nbody_oracle.h"
#include "../../common/testing.h"

#include "settings.c"
#include "direct.c"
#include "pyramid.c"
#include "bars.c"
#include "inputs.c"
#include "motion.c"
#include "points.c"
#include "estimates.c"
#include "deep.c"
#include "validate.c"
#include "bad_calls.c"
#include "choices.c"
#include "strides.c"
#include "memory.c"
#include "several.c"
#include "again.c"
#include "sets.c"
#include "function.c"
#include "files.c"
#include "crowds.c"
#include "bound.c"
#include "blocks.c"

static const struct CMUnitTest fields[] = {
    TEST(test_two_by_hand),
    TEST(test_three_by_hand),
    TEST(test_few_bodies),
    TEST(test_all_at_one_place),
    TEST(test_direct),
    TEST(test_length_error),
    TEST(test_pyramid),
    TEST(test_known_values),
    TEST(test_cases),
    TEST(test_shallow_trees_are_direct),
    TEST(test_bars),
    TEST(test_orders),
    TEST(test_displaced_sources),
    TEST(test_any_input),
    TEST(test_near_points),
    TEST(test_cell_of_many),
    TEST(test_deep),
    TEST(test_deep_given),
    TEST(test_deep_terms),
    TEST(test_deep_points),
    TEST(test_deep_heavy_cells),
    TEST(test_deep_or_not),
    TEST(test_weights_of_levels),
    TEST(test_two_deep_clusters),
    TEST(test_crowd_pairs),
    TEST(test_crowd_fields),
    TEST(test_crowd_potentials),
    TEST(test_square),
    TEST(test_units),
    TEST(test_any_units),
    TEST(test_very_near),
    TEST(test_far_from_the_origin),
    TEST(test_momentum),
    TEST(test_step_by_hand),
    TEST(test_step_fresh),
    TEST(test_step_round_a_circle),
    TEST(test_step_drift),
    TEST(test_energy),
    TEST(test_blocks_of_all),
    TEST(test_blocks_of_a_binary),
    TEST(test_blocks_by_methods),
    TEST(test_fields_at),
    TEST(test_many_points),
    TEST(test_estimate_of_all),
    TEST(test_estimate_of_raised_softening),
    TEST(test_estimate_sample),
    TEST(test_estimate_of_nonsense),
    TEST(test_counts),
    TEST(test_counts_of_many),
    TEST(test_validate_finds_damage),
    TEST(test_validate_tiny_masses),
    TEST(test_validate_reads_numbers),
    TEST(test_validate_large),
};

static const struct CMUnitTest calls[] = {
    TEST(test_bad_descs),
    TEST(test_bad_bodies),
    TEST(test_bad_calls),
    TEST(test_too_large),
    TEST(test_failing_step),
    TEST(test_blocks_refused),
    TEST(test_not_built),
    TEST(test_points_without_numbers),
    TEST(test_few_are_not_cut),
    TEST(test_texts),
    TEST(test_defaults),
    TEST(test_even_leaves),
    TEST(test_automatic_method),
    TEST(test_levels_for),
    TEST(test_strides),
    TEST(test_step_ignores_strides),
    TEST(test_no_bodies),
    TEST(test_reuse),
    TEST(test_kept_tables),
    TEST(test_softened_tables),
    TEST(test_tables_without_logarithms),
    TEST(test_no_sources),
    TEST(test_again_takes_no_memory),
    TEST(test_reserve),
    TEST(test_growth),
    TEST(test_out_of_memory),
    TEST(test_change_of_allocator),
    TEST(test_crooked_memory),
    TEST(test_several_in_turn),
    TEST(test_stages),
    TEST(test_same_bits),
    TEST(test_again),
    TEST(test_again_in_tasks),
    TEST(test_again_for_points),
    TEST(test_again_refused),
    TEST(test_sets),
    TEST(test_sets_in_clumps),
    TEST(test_sets_are_right),
    TEST(test_sets_in_tasks),
    TEST(test_sets_set_masses),
    TEST(test_sets_refused),
    TEST(test_files),
    TEST(test_files_of_choices),
    TEST(test_files_of_options),
    TEST(test_files_of_extremes),
    TEST(test_damaged_files),
    TEST(test_forged_files),
    TEST(test_calls_for_files),
    TEST(test_function_errors),
    TEST(test_function_of_the_laws),
    TEST(test_function_bits),
    TEST(test_function_momentum),
    TEST(test_function_calls),
    TEST(test_function_units),
    TEST(test_function_refused),
    TEST(test_function_step),
};

int main(void)
{
    int failed = 0;
    if (getenv("NBODY_TEST_ONLY")) cmocka_set_test_filter(getenv("NBODY_TEST_ONLY"));
    RUN_GROUP(failed, fields, NULL);
    RUN_GROUP(failed, calls, NULL);
    return failed;
}
