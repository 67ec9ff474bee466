/* dem_walls.h - rigid bodies of any shape against a mesh of triangles, with contact history: one
   text for C and CUDA.
   SPDX-License-Identifier: MIT OR Unlicense

   >>walls      the mesh, how it moves, what its contacts keep
   >>contact    body and triangle; which of the triangles in touch count
   >>history    a spring that goes along from triangle to triangle
   >>push       one body and all triangles

   Include lbvh.h and nlist.h first. After the contacts of bodies, as dem_body_planes in
   dem_shapes.h: dem_body_walls(&bodies, &walls, i, sums + 6 * i). */

#ifndef DEM_WALLS_H
#define DEM_WALLS_H

#include "dem_shapes.h"

/* -------------------------------------------------------------------------------------------------
   >>walls

   The mesh is rigid and stays where it is. Bodies are looked at from it: so the tree over its
   triangles is built once, however the mesh turns.

   One thread, or one round of a loop, does all triangles of a body: it has to know which of them
   touch (Kureck section 5.4). nlist_build_mesh does not serve here: it drops a triangle where
   another one is closer to the middle of a sphere, and a body may touch the former.
   ---------------------------------------------------------------------------------------------- */

enum { DEM_SLOTS = 8 };         /* most contacts of one body with the mesh */

typedef struct dem_walls {
    nlist_mesh mesh;            /* at rest */
    lbvh tree;                  /* over it (CUDA: lbvh_cuda.device.tree) */
    dem_real turn[4];           /* quaternion: from the mesh to the room, about the origin */
    dem_motion motion;          /* of its surface, in the room */
    int32_t *key;               /* [DEM_SLOTS n] of a body: 1 + triangle; 0: none. All 0 at first */
    dem_real *spring;           /* [4 DEM_SLOTS n] of a body: as DEM_HISTORY */
    int32_t *lost;              /* counts contacts that found no slot; not exact on a GPU, but above
                                   0 where there are any */
} dem_walls;

/* -------------------------------------------------------------------------------------------------
   >>contact

   A core is convex. So its distance to the points x of a triangle has one minimum, at q, and no
   other local one. The contacts with a mesh are the local minima over the whole surface:

                 ______           Triangle T and the core are closest at q, on the edge that it
                (  core )         shares with U. But on U the distance goes on to fall, to its
                 '--.--'          minimum at u: q is none of the whole surface, T is dropped. So
            -----q--u------       coplanar neighbours push once. In a valley both have a minimum
              T  |   U            of their own, off the edge, and both push. On a ridge both end
                                  at the same q, and the one with the lower distance or, where
                                  they are equal, the lower number stays.

   That is the rule of nlist.h for spheres (>>walls there), with the core in the place of the
   middle: q is in the Voronoi region of one face, edge or corner (B. Mirtich, V-Clip, ACM
   Transactions on Graphics 17, 1998). As it asks for points, not for shared edges, meshes may have
   corners that lie on an edge.
   ---------------------------------------------------------------------------------------------- */

/* Points closer than this are one point: at edges a float knows q to a thousandth of the bound. */
#define DEM_SAME(bound) ((bound) / 128)
/* A contact goes on at another triangle that comes so close. */
#define DEM_NEAR(bound) ((bound) / 16)

/* One contact, seen from the mesh; places are measured from the middle of the body. */
typedef struct dem_wall_touch {
    int32_t triangle;
    shape_touch touch;
    dem_real q[3];              /* the point of the triangle */
} dem_wall_touch;

/* p: the middle of the body. */
DEM_FN shape_result dem_wall_meet(const dem_walls *w, const shape_placed *body, const dem_real p[3],
                                  int32_t triangle, dem_wall_touch *found)
{
    const dem_real *corner[3], *from[3];
    dem_real moved[3][3];
    shape_result result;
    int v, k;
    nlist_mesh_corners(&w->mesh, triangle, corner);
    for (v = 0; v < 3; v++) {
        for (k = 0; k < 3; k++) moved[v][k] = corner[v][k] - p[k];
        from[v] = moved[v];
    }
    found->triangle = triangle;
    result = shape_triangle(body, from, &found->touch);
    if (result != SHAPE_TOUCH) return result;
    for (k = 0; k < 3; k++) found->q[k] = found->touch.at[k];
    dem_add(found->q, -found->touch.overlap / 2, found->touch.n);
    return result;
}

/* The square of the distance from the triangle to q, which is measured from p. */
DEM_FN dem_real dem_wall_away2(const dem_walls *w, int32_t triangle, const dem_real p[3],
                               const dem_real q[3])
{
    dem_real const at[3] = {p[0] + q[0], p[1] + q[1], p[2] + q[2]};
    dem_real closest[3];
    (void)nlist_mesh_closest(&w->mesh, triangle, at, closest);
    dem_add(closest, -1, at);
    return dem_dot(closest, closest);
}

/* Does another triangle through q come closer to the core? */
DEM_FN int dem_wall_superseded(const dem_walls *w, const shape_placed *body, const dem_real p[3],
                               const dem_wall_touch *mine)
{
    dem_real const same = DEM_SAME(body->body->bound);
    dem_real const at[3] = {p[0] + mine->q[0], p[1] + mine->q[1], p[2] + mine->q[2]};
    lbvh_overlap near_by = lbvh_overlap_sphere(&w->tree, at, same);
    while (lbvh_next(&near_by)) {
        int32_t const t = near_by.id;
        dem_wall_touch other;
        if (t == mine->triangle || dem_wall_away2(w, t, p, mine->q) > same * same) continue;
        if (dem_wall_meet(w, body, p, t, &other) != SHAPE_TOUCH) continue;
        if (other.touch.overlap > mine->touch.overlap ||
            (other.touch.overlap == mine->touch.overlap && t < mine->triangle))
            return 1;
    }
    return 0;
}

/* By numbers of triangles: forces are added in the same order, however the tree was built. */
DEM_FN int dem_wall_keep(const dem_walls *w, const dem_wall_touch *here, int count,
                         dem_wall_touch found[DEM_SLOTS])
{
    int k = count;
    if (count == DEM_SLOTS) {
        ++*w->lost;
        return count;
    }
    for (; k > 0 && found[k - 1].triangle > here->triangle; k--) found[k] = found[k - 1];
    found[k] = *here;
    return count + 1;
}

/* The contacts that count. deep: as in dem_bodies. */
DEM_FN int dem_wall_touches(const dem_walls *w, const shape_placed *body, const dem_real p[3],
                            int32_t *deep, dem_wall_touch found[DEM_SLOTS])
{
    lbvh_overlap near_by = lbvh_overlap_sphere(&w->tree, p, body->body->bound);
    int count = 0;
    while (lbvh_next(&near_by)) {
        dem_wall_touch here;
        shape_result const result = dem_wall_meet(w, body, p, near_by.id, &here);
        if (result == SHAPE_DEEP) ++*deep;
        if (result != SHAPE_TOUCH || dem_wall_superseded(w, body, p, &here)) continue;
        count = dem_wall_keep(w, &here, count, found);
    }
    return count;
}

/* -------------------------------------------------------------------------------------------------
   >>history: by triangle; a new contact takes that of one which has ended close by
   ---------------------------------------------------------------------------------------------- */

/* was: the keys of the last step. from: the slot whose spring contact k takes, -1: none. */
DEM_FN void dem_wall_follow(const dem_walls *w, const int32_t was[DEM_SLOTS], dem_real near_by,
                            const dem_real p[3], int count, const dem_wall_touch *found,
                            int from[DEM_SLOTS])
{
    int taken[DEM_SLOTS], k, slot;
    for (slot = 0; slot < DEM_SLOTS; slot++) taken[slot] = !was[slot];
    for (k = 0; k < count; k++) {
        from[k] = -1;
        for (slot = 0; slot < DEM_SLOTS; slot++)
            if (was[slot] == 1 + found[k].triangle) from[k] = slot;
        if (from[k] >= 0) taken[from[k]] = 1;
    }
    for (k = 0; k < count; k++)
        for (slot = 0; slot < DEM_SLOTS && from[k] < 0; slot++)
            if (!taken[slot] &&
                dem_wall_away2(w, was[slot] - 1, p, found[k].q) <= near_by * near_by)
                taken[from[k] = slot] = 1;
}

/* -------------------------------------------------------------------------------------------------
   >>push
   ---------------------------------------------------------------------------------------------- */

/* a of the room, as the mesh sees it: its axes in the room are rows. */
DEM_FN void dem_wall_inward(dem_real axes[3][3], const dem_real a[3], dem_real b[3])
{
    int k;
    for (k = 0; k < 3; k++) b[k] = dem_dot(axes[k], a);
}

DEM_FN void dem_wall_outward(dem_real axes[3][3], const dem_real a[3], dem_real b[3])
{
    int k;
    for (k = 0; k < 3; k++) b[k] = axes[0][k] * a[0] + axes[1][k] * a[1] + axes[2][k] * a[2];
}

/* Body i as the mesh sees it, with its middle in the origin. */
DEM_FN shape_placed dem_wall_body(const dem_bodies *s, const dem_walls *w, int32_t i)
{
    dem_real const back[4] = {w->turn[0], -w->turn[1], -w->turn[2], -w->turn[3]},
                   zero[3] = {0, 0, 0};
    dem_real turn[4], seen[4];
    dem_load(s->turn, (size_t)i, turn);
    dem_quaternion(back, turn, seen);
    return shape_place(dem_body_shape(s, i), seen, zero);
}

/* A contact in the room; spring: 4 numbers. */
DEM_FN void dem_wall_push(const dem_bodies *s, const dem_walls *w, int32_t i,
                          dem_real axes[3][3], const dem_wall_touch *found, dem_real *spring,
                          dem_real *own)
{
    shape_touch room;
    dem_real p[4], wall[3];
    dem_load(s->base.pos, (size_t)i, p);
    dem_wall_outward(axes, found->touch.n, room.n);
    dem_wall_outward(axes, found->touch.at, room.at);
    room.overlap = found->touch.overlap;
    dem_add(p, 1, room.at);
    dem_wall_surface(&w->motion, p, wall);
    dem_body_wall(s, i, &room, wall, s->base.history_off ? NULL : spring, own);
}

/* Body i and all triangles: adds force and torque to own[6]. Returns the number of contacts. */
DEM_FN int dem_body_walls(const dem_bodies *s, const dem_walls *w, int32_t i, dem_real *own)
{
    int32_t *key = w->key + DEM_SLOTS * (size_t)i;
    dem_real *kept = w->spring + 4 * DEM_SLOTS * (size_t)i;
    shape_placed const body = dem_wall_body(s, w, i);
    dem_wall_touch found[DEM_SLOTS];
    dem_real axes[3][3], room[4], p[3], spring[DEM_SLOTS][4];
    int from[DEM_SLOTS], count, k, a;
    dem_load(s->base.pos, (size_t)i, room);
    shape_axes(w->turn, axes);
    dem_wall_inward(axes, room, p);
    count = dem_wall_touches(w, &body, p, s->deep, found);
    dem_wall_follow(w, key, DEM_NEAR(room[3]), p, count, found, from);
    for (k = 0; k < count; k++)
        for (a = 0; a < 4; a++) spring[k][a] = from[k] < 0 ? 0 : kept[4 * from[k] + a];
    for (k = 0; k < count; k++) dem_wall_push(s, w, i, axes, &found[k], spring[k], own);
    for (k = 0; k < count; k++) dem_store(kept, (size_t)k, spring[k]);
    for (k = 0; k < DEM_SLOTS; k++) {
        int32_t const now = k < count ? 1 + found[k].triangle : 0;
        if (key[k] != now) key[k] = now;
    }
    return count;
}

#endif /* DEM_WALLS_H */
