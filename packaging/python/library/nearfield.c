/* nearfield.c - the four headers as a shared library, for Python and whoever else loads libraries.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -std=c99 -O3 -ffp-contract=off -shared -fPIC -I. packaging/python/library/nearfield.c \
           packaging/python/library/nearfield64.c -o build/libnearfield.so -lm -pthread

   nearfield64.c is this file once more, for doubles: its functions are ugrid_f64_build and so
   on. A library of one of the two does.
   Windows: cl /O2 /LD with /DUGRID_API=__declspec(dllexport), and the same for LBVH_API, NLIST_API,
   NBODY_API and NEARFIELD_API. */

#if defined(__linux__) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE /* search.h: madvise, posix_memalign */
#endif
#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_WITH_WORLD
#define LBVH_WITH_WIDE
#define LBVH_WITH_OPTIMIZE
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_WITH_BOXES
#define NLIST_WITH_TUNE
#define NLIST_IMPLEMENTATION
#include "nlist.h"
#define NBODY_WITH_STEP
#define NBODY_WITH_POINTS
#define NBODY_WITH_SETS
#define NBODY_WITH_PERIODIC
#define NBODY_WITH_VORTEX
#define NBODY_WITH_FUNCTION
#define NBODY_IMPLEMENTATION
#include "nbody.h"

#ifndef NEARFIELD_API
#define NEARFIELD_API extern
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define NEARFIELD_IMPLEMENTATION
#include "search.h"
#include "threads.h"
#include "memory.h"
#include "dlpack.h"
#include "jax.h"
#include "world.h"

/* Whether the caller's structs are these: their sizes; the end is 0. declare.py reads the names, in
   this order, and declares these structs for Python. */
#define NEARFIELD_SIZE(type) (int32_t)sizeof(type),
NEARFIELD_API const int32_t nearfield_sizes[];
const int32_t nearfield_sizes[] = {
    NEARFIELD_SIZE(ugrid_desc) NEARFIELD_SIZE(ugrid_filter) NEARFIELD_SIZE(ugrid_axis)
    NEARFIELD_SIZE(ugrid)
    NEARFIELD_SIZE(lbvh_desc) NEARFIELD_SIZE(lbvh_lattice) NEARFIELD_SIZE(lbvh)
    NEARFIELD_SIZE(lbvh_queries)
    NEARFIELD_SIZE(nlist_desc) NEARFIELD_SIZE(nlist_axis) NEARFIELD_SIZE(nlist_rows)
    NEARFIELD_SIZE(nlist) NEARFIELD_SIZE(nlist_box) NEARFIELD_SIZE(nlist_choice)
    NEARFIELD_SIZE(nbody_desc) NEARFIELD_SIZE(nbody_rule)
    NEARFIELD_SIZE(nbody_kept) NEARFIELD_SIZE(nbody)
    NEARFIELD_SIZE(nbody_error) NEARFIELD_SIZE(nbody_bodies)
    NEARFIELD_SIZE(nlist_arrays) NEARFIELD_SIZE(nearfield_search)
    NEARFIELD_SIZE(lbvh_wide_desc) NEARFIELD_SIZE(lbvh_wide) NEARFIELD_SIZE(lbvh_rays)
    NEARFIELD_SIZE(lbvh_filter) NEARFIELD_SIZE(lbvh_world_desc) NEARFIELD_SIZE(lbvh_world_tree)
    NEARFIELD_SIZE(lbvh_world) NEARFIELD_SIZE(nearfield_memory)
#ifdef UGRID_CUDA
    NEARFIELD_SIZE(ugrid_cuda) NEARFIELD_SIZE(lbvh_cuda) NEARFIELD_SIZE(nlist_cuda_facts)
    NEARFIELD_SIZE(nlist_cuda) NEARFIELD_SIZE(nbody_cuda)
#endif
    0};

/* The pairs of ugrid_each_pair, the lower id first; `*needed`: how many, also where they did not
   fit. */
typedef struct nearfield_i_pairs {
    int32_t *pair;
    int64_t capacity, count;
} nearfield_i_pairs;

static int nearfield_i_add_pair(void *user, int32_t i, int32_t j)
{
    nearfield_i_pairs *to = (nearfield_i_pairs *)user;
    if (to->count < to->capacity) {
        to->pair[2 * to->count] = i < j ? i : j;
        to->pair[2 * to->count + 1] = i < j ? j : i;
    }
    to->count++;
    return 0;
}

NEARFIELD_API ugrid_result nearfield_pairs(const ugrid *grid, ugrid_real radius, int32_t *pairs,
                                           int64_t capacity, int64_t *needed)
{
    nearfield_i_pairs to;
    ugrid_result result;
    to.pair = pairs;
    to.capacity = capacity;
    to.count = 0;
    result = ugrid_each_pair(grid, radius, UGRID_HALF, nearfield_i_add_pair, &to);
    *needed = to.count;
    return result == UGRID_OK && to.count > capacity ? UGRID_BUFFER_TOO_SMALL : result;
}

/* The first triangle that each of m rays meets, from either side: its id (-1: none) and where (t,
   in lengths of the direction; none: t_max). 3D; `data` and `stride` are those that the tree was
   built from. */
NEARFIELD_API lbvh_result nearfield_rays(const lbvh *tree, const lbvh_real *data, size_t stride,
                                         const lbvh_real *origins, const lbvh_real *directions,
                                         int32_t m, lbvh_real t_max, int32_t *ids, lbvh_real *t)
{
    int32_t q;
    if (tree->desc.kind != LBVH_TRIANGLES || tree->desc.dim != 3) return LBVH_NOT_BUILT;
    for (q = 0; q < m; q++) {
        const lbvh_real *origin = origins + 3 * (size_t)q;
        const lbvh_real *direction = directions + 3 * (size_t)q;
        lbvh_ray ray = lbvh_ray_cast(tree, origin, direction, t_max);
        ids[q] = -1;
        while (lbvh_next_ray(&ray)) {
            const lbvh_real *corner[3];
            lbvh_real at, u, v;
            if (!lbvh_triangle(&tree->desc, data, stride, ray.id, corner) ||
                !lbvh_ray_triangle(origin, direction, corner[0], corner[1], corner[2], &at, &u, &v))
                continue;
            if (at < 0 || at > ray.t_max || (at == ray.t_max && ids[q] >= 0)) continue;
            ids[q] = ray.id;
            ray.t_max = at;
        }
        t[q] = ids[q] >= 0 ? ray.t_max : t_max;
    }
    return LBVH_OK;
}

#ifdef __cplusplus
}
#endif
