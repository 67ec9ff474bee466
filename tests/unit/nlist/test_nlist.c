/* test_nlist.c - tests of the serial part of nlist.h: rows, sums, history and events against brute
   force and a map; refusals, memory, files; contacts with triangles. nlist_oracle.h has the
   oracles, surfaces.c the one of triangles.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/nlist/test_nlist.c -o test_nlist -lcmocka -lm && ./test_nlist
       (add -DUGRID_REAL=double -DLBVH_REAL=double -DNLIST_REAL=double for the double build;
       packages: libcmocka-dev libstb-dev)

   Environment:
       NLIST_TEST_SHARE=k   runs one k-th of the big products (default: 1; 4 under a sanitizer)
       NLIST_TEST_ONLY=p    runs the tests whose names match p, such as 'test_sum*'
       NLIST_TEST_SEED=s    replays the random steps with the seed that a failing run printed
       NLIST_TEST_STEPS=k   number of random steps
       TEST_GROUP=walls     runs one group: lists, calls or walls
       TEST_SMALL=1         a small part of everything, for valgrind */

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_WITH_OPTIMIZE
#define LBVH_IMPLEMENTATION
#include "lbvh.h"

/* nlist.h's calls of this function are counted. */
static int64_t closest_calls;

static lbvh_feature counted_closest(const lbvh_real *p, const lbvh_real *a, const lbvh_real *b,
    const lbvh_real *c, lbvh_real *q)
{
    closest_calls++;
    return lbvh_closest_on_triangle(p, a, b, c, q);
}

#define lbvh_closest_on_triangle counted_closest
#define NLIST_I_PIECE 32 /* test_left_out gives a hook for tasks */
#define NLIST_IMPLEMENTATION
#define NLIST_WITH_BOXES
#define NLIST_WITH_TUNE
#include "nlist.h"
#include "../../common/nlist_oracle.h"
#include "../../common/testing.h"

#include "sources.c"
#include "rows.c"
#include "skin.c"
#include "left_out.c"
#include "sums.c"
#include "history.c"
#include "touch.c"
#include "bad_calls.c"
#include "choices.c"
#include "memory.c"
#include "files.c"
#include "empty.c"
#include "validate.c"
#include "pairs.c"
#include "surfaces.c"
#include "walls.c"
#include "rolling.c"
#include "wall_calls.c"
#include "thick.c"

static const struct CMUnitTest lists[] = {
    TEST(test_product_2d),
    TEST(test_product_3d),
    TEST(test_larger),
    TEST(test_uniform),
    TEST(test_too_small),
    TEST(test_half_a_skin),
    TEST(test_skin_across_the_border),
    TEST(test_skin_follows_names),
    TEST(test_skin_keeps_its_promise),
    TEST(test_left_out),
    TEST(test_left_out_ends_contacts),
    TEST(test_sums),
    TEST(test_momentum),
    TEST(test_sum_overflow),
    TEST(test_sum_without_unit),
    TEST(test_sum_writes_history),
    TEST(test_born_and_dead),
    TEST(test_long_rows),
    TEST(test_touching),
    TEST(test_last_contact),
    TEST(test_random_walks),
};

static const struct CMUnitTest calls[] = {
    TEST(test_bad_descs),
    TEST(test_bad_changes),
    TEST(test_memory_turned_on),
    TEST(test_bad_particles),
    TEST(test_bad_calls),
    TEST(test_bad_sources),
    TEST(test_bad_pairs),
    TEST(test_defaults),
    TEST(test_texts),
    TEST(test_bad_sums),
    TEST(test_deterministic_sums),
    TEST(test_empty),
    TEST(test_half_a_period),
    TEST(test_reserve),
    TEST(test_reserve_long_rows),
    TEST(test_growth),
    TEST(test_exact_memory),
    TEST(test_tight_memory),
    TEST(test_out_of_memory),
    TEST(test_load_out_of_memory),
    TEST(test_change_of_allocator),
    TEST(test_crooked_memory),
    TEST(test_files),
    TEST(test_files_refused),
    TEST(test_damaged_files),
    TEST(test_forged_files),
    TEST(test_heads_of_keys),
    TEST(test_keys_of_a_file),
    TEST(test_doubles_in_a_file),
    TEST(test_versions_of_files),
    TEST(test_box_of_a_file),
    TEST(test_file_of_nobody),
    TEST(test_domain_empties),
    TEST(test_nobody_out_of_memory),
    TEST(test_verify),
    TEST(test_sums_of_little),
    TEST(test_sums_end),
    TEST(test_reserved_is_empty),
    TEST(test_refused_reserve),
    TEST(test_validate_finds_damage),
    TEST(test_validate_touched_rows),
    TEST(test_validate_is_safe),
    TEST(test_pairs),
    TEST(test_find),
    TEST(test_remap_by_hand),
};

static const struct CMUnitTest walls[] = {
    TEST(test_one_triangle),
    TEST(test_shared_edge),
    TEST(test_fan),
    TEST(test_roof_and_gutter),
    TEST(test_corner),
    TEST(test_degenerate),
    TEST(test_random_surfaces), TEST(test_many_particles),
    TEST(test_rolling),
    TEST(test_rolling_over_a_ridge),
    TEST(test_rolling_in_a_valley),
    TEST(test_another_wall),
    TEST(test_fewer_triangles),
    TEST(test_six_walls),
    TEST(test_random_moves),
    TEST(test_walls_keep_history),
    TEST(test_wall_sums_and_pairs),
    TEST(test_bad_meshes),
    TEST(test_walls_out_of_memory),
    TEST(test_thick_walls),
    TEST(test_no_thickness),
    TEST(test_thick_by_hand),
    TEST(test_bad_thickness),
    TEST(test_thick_walls_with_a_skin),
    TEST(test_rolling_with_a_skin),
    TEST(test_touching_a_fan),
};

int main(void)
{
    int failed = 0;
    if (getenv("NLIST_TEST_ONLY")) cmocka_set_test_filter(getenv("NLIST_TEST_ONLY"));
    RUN_GROUP(failed, lists, NULL);
    RUN_GROUP(failed, calls, NULL);
    RUN_GROUP(failed, walls, NULL);
    return failed;
}
