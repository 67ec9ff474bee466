/* A small user of lbvh.h, built in every way by run.sh. USE: the name of the function, so that two
   copies fit into one program. It returns 1 when the answers are right. C99 and C++ alike. What
   is used of the parts, their macros say: LBVH_WITH_WORLD, _WIDE, _OPTIMIZE. */
#ifdef WITH_STB_DS
#include <stb_ds.h>
#endif
#include "lbvh.h"

#ifdef __cplusplus
#define EMPTY {}    /* C++ compilers warn about {0}, C99 does not know {} */
#else
#define EMPTY {0}
#endif

int USE(void);

#ifdef LBVH_WITH_WORLD
/* A world of two boxes that touch, until one leaves. */
static int lives(const lbvh_real *boxes)
{
    const lbvh_real away[6] = {20, 0, 0, 21, 1, 1};
    lbvh_world world = EMPTY;
    lbvh_world_desc desc = EMPTY;
    lbvh_pair_walk walk;
    lbvh_id ids[2] = {0, 0};
    int right, met = 0;
    desc.dim = 3;
    right = lbvh_world_begin(&world, &desc) == LBVH_OK &&
            lbvh_world_insert(&world, boxes, NULL, LBVH_MOVING, 7, &ids[0]) == LBVH_OK &&
            lbvh_world_insert(&world, boxes + 6, NULL, LBVH_FIXED, 8, &ids[1]) == LBVH_OK &&
            lbvh_world_update(&world) == LBVH_OK && world.begun_count == 1;
    walk = lbvh_world_pairs(&world, LBVH_TIGHT);
    while (lbvh_next_pair(&walk)) met += walk.user_a + walk.user_b == 15;
    right = right && met == 1 && lbvh_world_move(&world, ids[0], away, NULL) == LBVH_OK &&
            lbvh_world_update(&world) == LBVH_OK && world.ended_count == 1 &&
            lbvh_world_validate(&world) == LBVH_OK;
    lbvh_world_free(&world);
    return right;
}
#endif

#ifdef LBVH_WITH_WIDE
/* A copy of the tree with nodes of eight children: the boxes that a window overlaps are 1 and 2. */
static int widens(const lbvh *tree, const lbvh_real *boxes, const lbvh_real *window)
{
    lbvh_wide wide = EMPTY;
    lbvh_wide_desc desc = EMPTY;
    int32_t ids[4] = {-1, -1, -1, -1};
    int64_t needed = 0;
    int right;
    desc.copy = 1;
    right = lbvh_wide_build(&wide, &desc, tree, boxes, 0) == LBVH_OK &&
            lbvh_wide_validate(&wide, tree) == LBVH_OK &&
            lbvh_wide_overlaps(&wide, window, 0, ids, 4, &needed) == LBVH_OK;
    right = right && needed == 2 && ids[0] + ids[1] == 3 && lbvh_wide_bytes(&wide) > 0;
    lbvh_wide_free(&wide);
    return right;
}
#endif

int USE(void)
{
    /* Four boxes in a row along x: each overlaps the next, 3 pairs. */
    const lbvh_real boxes[24] = {
        0, 0, 0,  2, 1, 1,      1, 0, 0,  4, 1, 1,      3, 0, 0,  6, 1, 1,      5, 0, 0,  7, 1, 1
    };
    const lbvh_real window[6] = {3, 0, 0, 4, 1, 1}, point[3] = {8, 0, 0}, back[3] = {-1, 0, 0};
    lbvh tree = EMPTY;
    lbvh_overlap o;
    lbvh_ray ray;
    lbvh_real distance2 = 0;
    int64_t pairs = -1;
    int32_t met = 0, ahead = 0, nearest = -1, found = 0;
    int right = 1;
    if (lbvh_build(&tree, NULL, boxes, 0, 4) != LBVH_OK) return 0;
    o = lbvh_overlap_box(&tree, window);
    while (lbvh_next(&o)) met += 1 << o.id;
    right = right && met == 2 + 4;
    ray = lbvh_ray_cast(&tree, point, back, 4);
    while (lbvh_next_ray(&ray)) ahead += 1 << ray.id;
    right = right && ahead == 2 + 4 + 8; /* the second box is met where it ends, at t = 4 */
    right = right &&
            lbvh_nearest(&tree, point, 1, 100, NULL, NULL, &nearest, &distance2, &found) == LBVH_OK;
    right = right && found == 1 && nearest == 3 && distance2 >= 1 && distance2 <= 1;
    right = right && lbvh_count_pairs(&tree, &pairs) == LBVH_OK && pairs == 3;
#ifdef WITH_STB_DS
    {
        int32_t *hits = NULL;
        lbvh_arr_within(&tree, point, 2, &hits);
        right = right && arrlen(hits) == 2;
        lbvh_arr_pairs(&tree, &hits);
        right = right && arrlen(hits) == 2 + 6;
        arrfree(hits);
    }
#endif
#ifdef LBVH_WITH_WIDE
    right = right && widens(&tree, boxes, window);
#endif
#ifdef LBVH_WITH_OPTIMIZE
    {
        int32_t rotations = -1;
        double gain = -1;
        right = right && lbvh_optimize(&tree, &rotations) == LBVH_OK && rotations >= 0 &&
                lbvh_split_top(&tree, &gain) == LBVH_OK && gain >= 0;
        right = right && lbvh_validate(&tree) == LBVH_OK &&
                lbvh_count_pairs(&tree, &pairs) == LBVH_OK && pairs == 3;
    }
#endif
    lbvh_free(&tree);
#ifdef LBVH_WITH_WORLD
    right = right && lives(boxes);
#endif
    return right;
}
