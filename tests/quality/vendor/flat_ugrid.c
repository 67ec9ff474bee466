/* A user of ugrid.h in 2D, built by run.sh with the optimizer's warnings: a point is two numbers,
   in an array of exactly two, and no function may look as if it read a third. Returns 1 when the
   answers are right. C99 and C++ alike. */
#ifdef WITH_STB_DS
#include <stb_ds.h>
#endif
#include "ugrid.h"

#ifdef __cplusplus
#define EMPTY {}    /* C++ compilers warn about {0}, C99 does not know {} */
#else
#define EMPTY {0}
#endif

int USE(void);

/* The inline functions. Two of the three points are within 0.2 of (0.1, 0.5), and all in the cells
   around it. */
static int walks(const ugrid *grid)
{
    const ugrid_real p[2] = {(ugrid_real)0.1, (ugrid_real)0.5},
                     q[2] = {(ugrid_real)1.2, (ugrid_real)0.5};
    ugrid_real d[3];
    ugrid_near walk = ugrid_near_within(grid, p, (ugrid_real)0.2);
    int near_p = 0, around = 0;
    while (ugrid_next(&walk)) {
        ugrid_real at[3];
        ugrid_point(grid, walk.place, at);
        near_p += ugrid_distance2(grid, p, at) <= (ugrid_real)0.04;
    }
    walk = ugrid_near_point(grid, p);
    while (ugrid_next(&walk)) around++;
    ugrid_offset(grid, p, q, d);
    return near_p == 2 && around == 3 && ugrid_cell_at(grid, p) == ugrid_cell_at(grid, q) &&
           d[0] > (ugrid_real)0.09 && d[0] < (ugrid_real)0.11;
}

/* One particle: no loop hides that its array has two numbers. */
static int alone(ugrid *grid, const ugrid_desc *desc)
{
    const ugrid_real one[2] = {(ugrid_real)0.5, (ugrid_real)0.5};
    int32_t found = 0;
    if (ugrid_build(grid, desc, one, 0, 1) != UGRID_OK || ugrid_validate(grid) != UGRID_OK)
        return 0;
    return ugrid_query(grid, one, (ugrid_real)0.1, NULL, 0, &found) == UGRID_BUFFER_TOO_SMALL &&
           found == 1;
}

int USE(void)
{
    const ugrid_real pos[6] = {(ugrid_real)0.1, (ugrid_real)0.5,  (ugrid_real)0.2,
                               (ugrid_real)0.5, (ugrid_real)0.35, (ugrid_real)0.5};
    const ugrid_real at[2] = {(ugrid_real)0.1, (ugrid_real)0.5};
    int64_t offsets[2], needed = 0, pairs = 0;
    int32_t ids[4], found = 0;
    ugrid grid = EMPTY;
    ugrid_desc desc = EMPTY;
    int right = 1;
    desc.dim = 2;
    desc.max[0] = desc.max[1] = 1;
    desc.periodic[0] = 1;
    desc.cell = (ugrid_real)0.25;
    if (ugrid_build(&grid, &desc, pos, 0, 3) != UGRID_OK) return 0;
    right = right && walks(&grid);
    right =
        right && ugrid_query(&grid, at, (ugrid_real)0.2, ids, 4, &found) == UGRID_OK && found == 2;
    right = right &&
            ugrid_neighbors_at(&grid, at, 0, 1, (ugrid_real)0.2, offsets, ids, 4, &needed) ==
                UGRID_OK &&
            needed == 2;
    right = right && ugrid_count_pairs(&grid, (ugrid_real)0.2, &pairs) == UGRID_OK && pairs == 2;
#ifdef WITH_STB_DS
    {
        int32_t *hits = NULL;
        right = right && ugrid_arr_within(&grid, at, (ugrid_real)0.2, &hits) == UGRID_OK &&
                arrlen(hits) == 2;
        arrfree(hits);
    }
#endif
    right = right && alone(&grid, &desc);
    ugrid_free(&grid);
    return right;
}
