/* example.c - one call of each header of nearfield: is the package whole? Prints "the answers are
   right".
   SPDX-License-Identifier: MIT OR Unlicense */
#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#include "nlist.h"
#define NBODY_IMPLEMENTATION
#include "nbody.h"
#include <math.h>
#include <stdio.h>

/* Four points on a line, at 0, 1, 3 and 6: two pairs are no further apart than 2. */
static float const points[] = {0, 0, 0,   1, 0, 0,   3, 0, 0,   6, 0, 0};

static int grid_is_right(ugrid *grid)
{
    ugrid_desc desc = {0};
    int64_t pairs = 0;
    desc.max[0] = desc.max[1] = desc.max[2] = 8;
    desc.cell = 2;
    return ugrid_build(grid, &desc, points, 0, 4) == UGRID_OK &&
           ugrid_count_pairs(grid, 2, &pairs) == UGRID_OK && pairs == 2;
}

static int list_is_right(const ugrid *grid)
{
    nlist list = {0};
    nlist_desc desc = {0};
    int right;
    desc.radius = 2;
    desc.half = 1;
    right = nlist_build_ugrid(&list, &desc, grid, points, 0, 4) == NLIST_OK && list.total == 2;
    nlist_free(&list);
    return right;
}

static int tree_is_right(void)
{
    lbvh tree = {0};
    lbvh_desc desc = {0};
    float const at[] = {5, 0, 0};
    float d2 = 0;
    int32_t id = -1, found = 0;
    int right;
    desc.kind = LBVH_POINTS;
    right = lbvh_build(&tree, &desc, points, 0, 4) == LBVH_OK &&
            lbvh_nearest(&tree, at, 1, 100, NULL, NULL, &id, &d2, &found) == LBVH_OK && id == 3 &&
            d2 == 1;
    lbvh_free(&tree);
    return right;
}

/* Two bodies 2 apart draw each other with 1/4. */
static int bodies_are_right(void)
{
    float const pos[] = {-1, 0,   1, 0};
    float acc[4] = {0, 0, 0, 0};
    nbody sim = {0};
    int const right = nbody_accelerations(&sim, NULL, pos, 0, NULL, 2, acc) == NBODY_OK &&
                      fabsf(acc[0] - 0.25f) < 1e-3f && fabsf(acc[2] + 0.25f) < 1e-3f;
    nbody_free(&sim);
    return right;
}

int main(void)
{
    ugrid grid = {0};
    int right = grid_is_right(&grid);
    right &= list_is_right(&grid);
    right &= tree_is_right();
    right &= bodies_are_right();
    ugrid_free(&grid);
    puts(right ? "the answers are right" : "the answers are WRONG");
    return !right;
}
