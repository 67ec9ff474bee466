/* test_lbvh.c - tests of the serial part of lbvh.h: trees and searches against brute force;
   refusals, memory, files; triangles. lbvh_oracle.h has the oracles, and the environment variables.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/lbvh/test_lbvh.c -o test_lbvh -lcmocka -lm && ./test_lbvh
       (add -DLBVH_REAL=double for the double build; packages: libcmocka-dev libstb-dev)

   TEST_GROUP=calls runs one group: trees or calls. */

#if defined(__unix__) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE /* mmap */
#endif

#define LBVH_WITH_NEAREST
#define LBVH_WITH_OPTIMIZE
#include "../../common/lbvh_oracle.h"

#ifdef __unix__
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "ploc.c"
#include "trees.c"
#include "far.c"
#include "borders.c"
#include "bad_elements.c"
#include "refit.c"
#include "optimize.c"
#include "top.c"
#include "random_steps.c"
#include "large.c"
#include "bad_calls.c"
#include "memory.c"
#include "ties.c"
#include "rows.c"
#include "files.c"
#include "validate.c"
#include "triangles.c"

static const struct CMUnitTest trees[] = {
    TEST(test_product_2d),
    TEST(test_product_3d),
    TEST(test_larger),
    TEST(test_packets),
    TEST(test_empty),
    TEST(test_karras),
    TEST(test_deepest),
    TEST(test_ploc_by_hand),
    TEST(test_ploc_too_deep),
    TEST(test_ploc_left_out),
    TEST(test_ploc_quality),
    TEST(test_stack),
    TEST(test_far_elements),
    TEST(test_few_points),
    TEST(test_borders),
    TEST(test_rim),
    TEST(test_odd_queries),
    TEST(test_extreme_numbers),
    TEST(test_minus_zero),
    TEST(test_bad_elements),
    TEST(test_all_left_out),
    TEST(test_refit),
    TEST(test_refit_left_out),
    TEST(test_optimize),
    TEST(test_optimize_left_out),
    TEST(test_optimize_by_hand),
    TEST(test_optimize_deepest),
    TEST(test_optimize_refusals),
    TEST(test_optimize_quality),
    TEST(test_split_top),
    TEST(test_split_top_any),
    TEST(test_split_top_equal),
    TEST(test_split_top_deepest),
    TEST(test_split_top_refusals),
    TEST(test_random_operations),
    TEST(test_uniform_100k),
};

static const struct CMUnitTest calls[] = {
    TEST(test_bad_descs),
    TEST(test_defaults),
    TEST(test_no_vertices),
    TEST(test_bad_calls),
    TEST(test_not_built),
    TEST(test_queries_without_numbers),
    TEST(test_query_rules),
    TEST(test_texts),
    TEST(test_reserve), TEST(test_bytes_for),
    TEST(test_growth),
    TEST(test_growth_without_memory),
    TEST(test_bounds_that_touch_the_origin),
    TEST(test_verify_memory),
    TEST(test_verify_with_masks),
    TEST(test_out_of_memory),
    TEST(test_nearest_rows),
    TEST(test_nearest_runs), TEST(test_nearest_two),
    TEST(test_nearest_rows_memory),
    TEST(test_nearest_rows_refused),
    TEST(test_nearest_ties), TEST(test_nearest_ties_later),
    TEST(test_nearest_many),
    TEST(test_change_of_allocator),
    TEST(test_files),
    TEST(test_head_of_a_file),
    TEST(test_largest_numbers),
    TEST(test_box_of_a_bad_triangle),
    TEST(test_negative_radius_at_the_end),
    TEST(test_relocation),
    TEST(test_damaged_files),
    TEST(test_short_files),
    TEST(test_counts_in_files),
    TEST(test_forged_files),
    TEST(test_validate_finds_damage),
    TEST(test_validate_finds_combs),
    TEST(test_validate_is_safe),
    TEST(test_far_spheres_and_crooked_memory),
    TEST(test_ray_triangle_lengths),
    TEST(test_closest_by_hand),
    TEST(test_closest),
    TEST(test_closest_on_segments),
    TEST(test_closest_on_slivers), TEST(test_weights_on_slivers),
    TEST(test_ray_triangle),
    TEST(test_ray_triangle_by_hand),
    TEST(test_ray_triangle_range),
    TEST(test_watertight),
};

int main(void)
{
    int failed = 0;
    if (getenv("LBVH_TEST_ONLY")) cmocka_set_test_filter(getenv("LBVH_TEST_ONLY"));
    RUN_GROUP(failed, trees, tear_down);
    RUN_GROUP(failed, calls, tear_down);
    return failed;
}
