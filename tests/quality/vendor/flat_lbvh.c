/* A user of lbvh.h in 2D, built by run.sh with the optimizer's warnings: a point is two numbers, a
   box four, in arrays of exactly so many, and no function may look as if it read more. Returns 1
   when the answers are right. C99 and C++ alike. */
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

static int count(lbvh_overlap o)
{
    int met = 0;
    while (lbvh_next(&o)) met++;
    return met;
}

/* The inline functions. Three boxes in a row, the middle one touches both others. */
static int walks(const lbvh *tree)
{
    const lbvh_real window[4] = {3, 0, 4, 1}, p[2] = {(lbvh_real)1.5, (lbvh_real)0.5},
                    q[2] = {1, 0};
    lbvh_near walk = lbvh_near_point(tree, p, 1);
    lbvh_ray ray = lbvh_ray_cast(tree, p, q, 100);
    int around = 0, ahead = 0;
    while (lbvh_next_near(&walk)) around++;
    while (lbvh_next_ray(&ray)) ahead++;
    return count(lbvh_overlap_box(tree, window)) == 2 && count(lbvh_overlap_point(tree, p)) == 2 &&
           count(lbvh_overlap_between(tree, p, p)) == 2 &&
           count(lbvh_overlap_sphere(tree, p, 1)) == 2 && around == 2 && ahead == 3;
}

/* One element: no loop hides how many numbers its array has. */
static int alone(lbvh *tree)
{
    const lbvh_real point[2] = {1, 2}, box[4] = {0, 0, 1, 1}, sphere[3] = {0, 0, 1},
                    triangle[6] = {0, 0, 1, 0, 0, 1};
    const lbvh_real *const one[4] = {box, point, sphere, triangle};
    const lbvh_kind kinds[4] = {LBVH_BOXES, LBVH_POINTS, LBVH_SPHERES, LBVH_TRIANGLES};
    lbvh_desc desc = EMPTY;
    lbvh_real min[3], max[3];
    int k, right = 1;
    desc.dim = 2;
    for (k = 0; k < 4; k++) {
        desc.kind = kinds[k];
        right = right && lbvh_build(tree, &desc, one[k], 0, 1) == LBVH_OK &&
                lbvh_validate(tree) == LBVH_OK;
    }
    lbvh_triangle_box(2, triangle, triangle + 2, triangle + 4, min, max);
    desc.kind = LBVH_POINTS;
    return right && max[1] > 0 && lbvh_build(tree, &desc, point, 0, 1) == LBVH_OK &&
           lbvh_box_of(&desc, point, 2 * sizeof *point, 0, min, max) == LBVH_OK && max[1] > 1;
}

#ifdef LBVH_WITH_WORLD
/* A world in 2D: boxes of four numbers, points and vectors of two. */
static int lives(const lbvh_real *box, const lbvh_real *p)
{
    const lbvh_real back[2] = {-9, 0}, displacement[2] = {1, 0},
                    moved[4] = {(lbvh_real)0.5, 0, (lbvh_real)2.5, 1};
    lbvh_world world = EMPTY;
    lbvh_world_desc desc = EMPTY;
    lbvh_world_overlap o;
    lbvh_world_cast cast;
    lbvh_world_near search;
    lbvh_id id = 0;
    int right;
    desc.dim = 2;
    right = lbvh_world_begin(&world, &desc) == LBVH_OK &&
            lbvh_world_insert(&world, box, NULL, LBVH_MOVING, 7, &id) == LBVH_OK &&
            lbvh_world_move(&world, id, moved, displacement) == LBVH_OK &&
            lbvh_world_stay(&world, id, moved) == 1 && lbvh_world_update(&world) == LBVH_OK;
    o = lbvh_world_overlap_box(&world, moved);
    cast = lbvh_world_cast_capsule(&world, p, p, 1, back);
    search = lbvh_world_near_point(&world, p, 100);
    right =
        right && lbvh_next_object(&o) && lbvh_next_cast(&cast) && lbvh_next_near_object(&search);
    cast = lbvh_world_cast_box(&world, moved, back);
    right = right && lbvh_next_cast(&cast);
    cast = lbvh_world_segment(&world, p, box);
    right = right && lbvh_next_cast(&cast);
    lbvh_world_free(&world);
    return right;
}
#endif

int USE(void)
{
    const lbvh_real boxes[12] = {0, 0, 2, 1,  1, 0, 4, 1,  3, 0, 6, 1}, at[2] = {7, 0};
    lbvh_real distance2 = 0;
    int64_t pairs = 0;
    int32_t nearest = -1, found = 0;
    lbvh tree = EMPTY;
    lbvh_desc desc = EMPTY;
    int right = 1;
    desc.dim = 2;
    if (lbvh_build(&tree, &desc, boxes, 0, 3) != LBVH_OK) return 0;
    right = right && walks(&tree);
    right = right &&
            lbvh_nearest(&tree, at, 1, 100, NULL, NULL, &nearest, &distance2, &found) == LBVH_OK &&
            nearest == 2;
    right = right && lbvh_count_pairs(&tree, &pairs) == LBVH_OK && pairs == 2;
#ifdef WITH_STB_DS
    {
        int32_t *hits = NULL;
        lbvh_arr_within(&tree, at, 2, &hits);
        lbvh_arr_overlaps(&tree, boxes, &hits);
        right = right && arrlen(hits) == 1 + 2;
        arrfree(hits);
    }
#endif
    right = right && alone(&tree);
#ifdef LBVH_WITH_WORLD
    right = right && lives(boxes, at);
#endif
    lbvh_free(&tree);
    return right;
}
