/* A small user of ugrid.h, built in every way by run.sh. USE: the name of the function, so that two
   copies fit into one program. It returns 1 when the answers are right. C99 and C++ alike.
   UGRID_WITH_TUNE: the part. */
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
int USE(void)
{
    /* Four points along x, 0.1 apart: with radius 0.15 each sees the next, 3 pairs. */
    const ugrid_real pos[12] = {
        (ugrid_real)0.1, (ugrid_real)0.5, (ugrid_real)0.5,
        (ugrid_real)0.2, (ugrid_real)0.5, (ugrid_real)0.5,
        (ugrid_real)0.3, (ugrid_real)0.5, (ugrid_real)0.5,
        (ugrid_real)0.4, (ugrid_real)0.5, (ugrid_real)0.5
    };
    const ugrid_real radius = (ugrid_real)0.15;
    ugrid grid = EMPTY;
    ugrid_desc desc = EMPTY;
    ugrid_near near;
    int64_t pairs = -1;
    int met = 0, right = 1;
    desc.dim = 3;
    desc.max[0] = desc.max[1] = desc.max[2] = 1;
    desc.cell = (ugrid_real)0.25;
    if (ugrid_build(&grid, &desc, pos, 0, 4) != UGRID_OK) return 0;
    near = ugrid_near_point(&grid, pos);
    while (ugrid_next(&near)) met += near.id >= 0;
    right = right && met == 4;  /* all four lie in the cells next to the first one's */
    right = right && ugrid_count_pairs(&grid, radius, &pairs) == UGRID_OK && pairs == 3;
#ifdef WITH_STB_DS
    {
        int32_t *hits = NULL;
        ugrid_arr_within(&grid, pos, radius, &hits);
        right = right && arrlen(hits) == 2;
        arrfree(hits);
    }
#endif
#ifdef UGRID_WITH_NEAREST
    {
        ugrid_real d2[2];
        int32_t ids[2], found;
        right = right &&
                ugrid_nearest(&grid, pos, 2, 1, ids, d2, &found) == UGRID_OK && found == 2;
    }
#endif
#ifdef UGRID_WITH_TUNE
    {
        ugrid_tuner tuner = EMPTY;
        tuner.desc = desc;
        tuner.radius = radius;
        ugrid_next_desc(&tuner, &desc);
        ugrid_tune(&tuner, 0.5);
        right = right && tuner.reason != NULL && tuner.desc.dim == desc.dim;
    }
#endif
    ugrid_free(&grid);
    return right;
}
