/* A user of nlist.h in 2D, built by run.sh with the optimizer's warnings: a point is two numbers,
   in an array of exactly two, and no function may look as if it read a third. Returns 1 when the
   answers are right. C99 and C++ alike. */
#ifdef WITH_STB_DS
#include <stb_ds.h>
#endif
#include "nlist.h"

#ifdef __cplusplus
#define EMPTY {}    /* C++ compilers warn about {0}, C99 does not know {} */
#else
#define EMPTY {0}
#endif

int USE(void);

/* The inline functions, on a list of three points in a row. */
static int walks(const nlist *list)
{
    const nlist_real p[2] = {(nlist_real)0.1, (nlist_real)0.5},
                     q[2] = {(nlist_real)0.3, (nlist_real)0.5};
    nlist_real d[2];
    nlist_each e = nlist_of(list, 1);
    int met = 0;
    while (nlist_next(&e)) met++;
    nlist_offset(list, p, q, d);
    return met == 2 && d[0] > (nlist_real)0.19 && d[0] < (nlist_real)0.21 && d[1] * d[1] <= 0;
}

/* One particle: no loop hides that its array has two numbers. */
static int alone(nlist *list, const nlist_desc *desc)
{
    const nlist_real one[2] = {(nlist_real)0.5, (nlist_real)0.5};
    int32_t moved = 1;
    if (nlist_build_brute(list, desc, one, 0, 1) != NLIST_OK || nlist_validate(list) != NLIST_OK)
        return 0;
    return nlist_moved(list, one, 0, &moved) == NLIST_OK && !moved && list->total == 0;
}

int USE(void)
{
    const nlist_real pos[6] = {(nlist_real)0.1, (nlist_real)0.5, (nlist_real)0.2,
                               (nlist_real)0.5, (nlist_real)0.3, (nlist_real)0.5};
    nlist list = EMPTY;
    nlist_desc desc = EMPTY;
    int right = 1;
    desc.dim = 2;
    desc.radius = (nlist_real)0.12;
    desc.skin = (nlist_real)0.01;
    if (nlist_build_brute(&list, &desc, pos, 0, 3) != NLIST_OK) return 0;
    right = right && walks(&list);
    right = right && nlist_verify(&list, &desc, pos, 0, 3, 0, NULL) == NLIST_OK;
    right = right && alone(&list, &desc);
    nlist_free(&list);
    return right;
}
