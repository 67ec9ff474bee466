/* A small user of nlist.h, built in every way by run.sh. USE: the name of the function, so that two
   copies fit into one program. It returns 1 when the answers are right. C99 and C++ alike.
   WITH_UGRID, WITH_LBVH: what finds the neighbours is included before it, and used;
   NLIST_WITH_BOXES, NLIST_WITH_TUNE: the parts. */
#ifdef WITH_STB_DS
#include <stb_ds.h>
#endif
#ifdef WITH_UGRID
#include "ugrid.h"
#endif
#ifdef WITH_LBVH
#include "lbvh.h"
#endif
#include "nlist.h"

#ifdef __cplusplus
#define EMPTY {}    /* C++ compilers warn about {0}, C99 does not know {} */
#else
#define EMPTY {0}
#endif

int USE(void);

/* What a contact adds: 1 to both. */
static int add_one(void *user, int32_t i, int32_t j, void *history, nlist_real *own,
                   nlist_real *other)
{
    (void)user;
    (void)i;
    (void)j;
    (void)history;
    own[0] = 1;
    other[0] = 1;
    return 1;
}

int USE(void)
{
    /* Four points along x, 0.1 apart: with radius 0.15 each sees the next, 3 pairs. */
    const nlist_real pos[12] = {
        (nlist_real)0.1, (nlist_real)0.5, (nlist_real)0.5,
        (nlist_real)0.2, (nlist_real)0.5, (nlist_real)0.5,
        (nlist_real)0.3, (nlist_real)0.5, (nlist_real)0.5,
        (nlist_real)0.4, (nlist_real)0.5, (nlist_real)0.5
    };
    const int32_t pair[6] = {1, 0, 3, 2, 2, 1};
    nlist list = EMPTY;
    nlist_desc desc = EMPTY;
    nlist_sums how = EMPTY;
    nlist_real sums[4] = {0, 0, 0, 0};
    nlist_each e;
    int32_t met = 0;
    int64_t entry;
    int right = 1;
    desc.radius = (nlist_real)0.15;
    desc.half = 1;
    desc.history = (int32_t)sizeof(int32_t);
    if (nlist_build_brute(&list, &desc, pos, 0, 4) != NLIST_OK) return 0;
    right = right && list.total == 3;
    e = nlist_of(&list, 1);
    while (nlist_next(&e)) {
        met += e.id;
        *(int32_t *)e.history = 7;
    }
    right = right && met == 2; /* the pair with 0 is in the row of 0 */
    how.values = 1;
    right = right && nlist_sum(&list, &how, add_one, NULL, sums) == NLIST_OK;
    right =
        right && (int)sums[0] == 1 && (int)sums[1] == 2 && (int)sums[2] == 2 && (int)sums[3] == 1;

    /* Built again, in another layout, from pairs of another origin: the contact keeps its bytes. */
    desc.layout = NLIST_HYBRID;
    desc.width = 1;
    right = right && nlist_build_pairs(&list, &desc, pair, 3, 4) == NLIST_OK && list.total == 3;
    entry = nlist_find_pair(&list, 2, 1);
    right = right && entry >= 0 && *(int32_t *)nlist_history(&list, entry) == 7;

#ifdef WITH_UGRID
    {
        ugrid grid = EMPTY;
        ugrid_desc cells = EMPTY;
        cells.max[0] = cells.max[1] = cells.max[2] = 1;
        cells.cell = (ugrid_real)0.2;
        right = right && ugrid_build(&grid, &cells, pos, 0, 4) == UGRID_OK;
        right = right && nlist_build_ugrid(&list, &desc, &grid, pos, 0, 4) == NLIST_OK &&
                list.total == 3;
        entry = nlist_find_pair(&list, 2, 1);
        right = right && entry >= 0 && *(int32_t *)nlist_history(&list, entry) == 7;
        ugrid_free(&grid);
    }
#endif
#ifdef WITH_LBVH
    {
        const nlist_real corner[9] = {0, 0, (nlist_real)0.45, 1, 0, (nlist_real)0.45,
                                      0, 1, (nlist_real)0.45};
        lbvh tree = EMPTY;
        lbvh_desc kind = EMPTY;
        nlist wall = EMPTY;
        nlist_desc walls = EMPTY;
        nlist_mesh mesh = EMPTY;
        kind.kind = LBVH_POINTS;
        right = right && lbvh_build(&tree, &kind, pos, 0, 4) == LBVH_OK;
        right = right && nlist_build_lbvh(&list, &desc, &tree, pos, 0, 4) == NLIST_OK &&
                list.total == 3;
        entry = nlist_find_pair(&list, 2, 1);
        right = right && entry >= 0 && *(int32_t *)nlist_history(&list, entry) == 7;

        kind.kind = LBVH_TRIANGLES;     /* one, 0.05 below all four: each touches its face */
        right = right && lbvh_build(&tree, &kind, corner, 0, 1) == LBVH_OK;
        mesh.vertices = corner;
        mesh.triangles = 1;
        walls.radius = (nlist_real)0.06;
        walls.layout = NLIST_DYNAMIC;
        right = right && nlist_build_mesh(&wall, &walls, &tree, &mesh, pos, 0, 4) == NLIST_OK;
        right = right && wall.total == 4 && nlist_find(&wall, 3, nlist_key(0, 0)) >= 0;
        nlist_free(&wall);
        lbvh_free(&tree);
    }
#endif
#ifdef NLIST_WITH_BOXES
    {
        nlist_box box = EMPTY;          /* as long as the row of points: the ends meet, too */
        nlist around = EMPTY;
        nlist_desc images = EMPTY;
        box.cell[0][0] = (nlist_real)0.4;
        box.cell[1][1] = box.cell[2][2] = 1;
        box.periodic[0] = 1;
        images.radius = (nlist_real)0.15;
        images.half = 1;
        right = right && nlist_build_box(&around, &images, &box, pos, 0, 4) == NLIST_OK &&
                around.total == 4;
        nlist_free(&around);
    }
#endif
#ifdef NLIST_WITH_TUNE
    {
        nlist_tuner tuner = EMPTY;
        tuner.radius = (nlist_real)0.1;
        right = right && nlist_next_skin(&tuner) > 0;
        nlist_tune(&tuner, 1, 0.5);
        right = right && tuner.reason != NULL;
    }
    {
        nlist_choice choice;
        nlist_desc radius = EMPTY;
        radius.radius = (nlist_real)0.1;
        right = right && nlist_choose(&choice, &radius, pos, 0, 4) == NLIST_OK &&
                choice.search == NLIST_BY_GRID;
    }
#endif
    nlist_free(&list);
    return right;
}
