/* dem_walls.h - rigid bodies of any shape against a mesh of triangles, with contact history: one
   text for C and CUDA.
   SPDX-License-Identifier: MIT OR Unlicense

   >>walls      the mesh, how it moves, the list of bodies at it and of their contacts
   >>contact    body and triangle; which of the triangles in touch count
   >>history    a spring that goes along from triangle to triangle
   >>push       one body and all triangles
   >>list       a step: which bodies are at the mesh, and then those alone

   Include lbvh.h and nlist.h first. After the contacts of bodies, as dem_body_planes in
   dem_shapes.h: dem_walls_find(&bodies, &walls), dem_walls_push(&bodies, &walls, sums). On a GPU:
   dem_walls_gpu.h. */

#ifndef DEM_WALLS_H
#define DEM_WALLS_H

#include "dem_shapes.h"

/* -------------------------------------------------------------------------------------------------
   >>walls

   The mesh is rigid and stays where it is. Bodies are looked at from it: so the tree over its
   triangles is built once, however the mesh turns.

   Few of many bodies are at a wall. They are listed in every step, and only they get a thread, or a
   round of a loop, and memory for contacts (Kureck section 5.4). It is one for all triangles of a
   body: it has to know which of them touch.

       row       0    1    2              bodies 4, 9 and 2 are at the mesh; they have 1, 0 and 2
       body      4    9    2              contacts. Rows and contacts come in any order. The list of
       first     0    -    1              the last step is kept beside it, for its springs.
       contact   a         b  c

   nlist_build_mesh does not serve here: it drops a triangle where another one is closer to the
   middle of a sphere, and a body may touch the former.
   ---------------------------------------------------------------------------------------------- */

enum { DEM_SLOTS = 8 };         /* most contacts of one body with the mesh */

typedef struct dem_wall_row {
    int32_t body, first, count; /* its contacts: first .. first + count - 1 */
} dem_wall_row;

/* In CUDA a spring is loaded at once: it begins at a multiple of its 16 bytes. */
#ifdef __cplusplus
#define DEM_ALIGNED alignas(16)
#else
#define DEM_ALIGNED
#endif
typedef struct DEM_ALIGNED dem_wall_kept {
    dem_real spring[4];         /* as DEM_HISTORY */
    int32_t triangle, unused[3];
} dem_wall_kept;

/* How full the lists are: on a GPU nobody but the device knows. */
typedef struct dem_wall_state {
    int32_t now;                /* list 0 or 1 is that of this step, the other of the last */
    int32_t rows[2], kept[2];   /* of each list; may be above what there is room for */
    int32_t lost;               /* counts contacts without room; not exact on a GPU, but above 0
                                   where there are any */
} dem_wall_state;

/* row_of of a body: its row in the list of the last step, if that row is of this body; else the
   body was not at the mesh. So nothing has to be cleared (P. Briggs, L. Torczon, An efficient
   representation for sparse sets, ACM Letters on Programming Languages and Systems 2, 1993). */
typedef struct dem_walls {
    nlist_mesh mesh;            /* at rest */
    lbvh tree;                  /* over it (CUDA: lbvh_cuda.device.tree) */
    dem_real turn[4];           /* quaternion: from the mesh to the room, about the origin */
    dem_motion motion;          /* of its surface, in the room */
    int32_t *row_of;            /* [n] any numbers at first */
    dem_wall_row *row[2];       /* [row_room] */
    dem_wall_kept *kept[2];     /* [kept_room] */
    int32_t row_room, kept_room;
    dem_wall_state *state;      /* all 0 at first */
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
        ++w->state->lost;
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

/* was: the contacts of the last step. from: the one whose spring contact k takes, -1: none. */
DEM_FN void dem_wall_follow(const dem_walls *w, const dem_wall_kept *was, int held,
                            dem_real near_by, const dem_real p[3], int count,
                            const dem_wall_touch *found, int from[DEM_SLOTS])
{
    int taken[DEM_SLOTS], k, slot;
    for (slot = 0; slot < held; slot++) taken[slot] = 0;
    for (k = 0; k < count; k++) {
        from[k] = -1;
        for (slot = 0; slot < held; slot++)
            if (was[slot].triangle == found[k].triangle) from[k] = slot;
        if (from[k] >= 0) taken[from[k]] = 1;
    }
    for (k = 0; k < count; k++)
        for (slot = 0; slot < held && from[k] < 0; slot++)
            if (!taken[slot] &&
                dem_wall_away2(w, was[slot].triangle, p, found[k].q) <= near_by * near_by)
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

/* Body i and all triangles: adds force and torque to own[6]. was: `held` contacts of the last step;
   kept: those of this one. Returns their number. */
DEM_FN int dem_body_walls(const dem_bodies *s, const dem_walls *w, int32_t i,
                          const dem_wall_kept *was, int held, dem_wall_kept kept[DEM_SLOTS],
                          dem_real *own)
{
    shape_placed const body = dem_wall_body(s, w, i);
    dem_wall_touch found[DEM_SLOTS];
    dem_real axes[3][3], room[4], p[3];
    int from[DEM_SLOTS], count, k, a;
    dem_load(s->base.pos, (size_t)i, room);
    shape_axes(w->turn, axes);
    dem_wall_inward(axes, room, p);
    count = dem_wall_touches(w, &body, p, s->deep, found);
    dem_wall_follow(w, was, held, DEM_NEAR(room[3]), p, count, found, from);
    for (k = 0; k < count; k++) {
        kept[k].triangle = found[k].triangle;
        for (a = 0; a < 3; a++) kept[k].unused[a] = 0;
        for (a = 0; a < 4; a++) kept[k].spring[a] = from[k] < 0 ? 0 : was[from[k]].spring[a];
        dem_wall_push(s, w, i, axes, &found[k], kept[k].spring, own);
    }
    return count;
}

/* -------------------------------------------------------------------------------------------------
   >>list: a step of it
   ---------------------------------------------------------------------------------------------- */

/* The list of the last step makes room for that of this one. */
DEM_FN void dem_walls_begin(dem_wall_state *state)
{
    state->now = 1 - state->now;
    state->rows[state->now] = state->kept[state->now] = 0;
}

/* Is a triangle within the reach of body i? (Wider than a contact, by more than is rounded.) */
DEM_FN int dem_wall_near(const dem_bodies *s, const dem_walls *w, int32_t i)
{
    dem_real axes[3][3], room[4], p[3], reach;
    dem_real const here[3] = {0, 0, 0};
    lbvh_overlap near_by;
    dem_load(s->base.pos, (size_t)i, room);
    shape_axes(w->turn, axes);
    dem_wall_inward(axes, room, p);
    reach = room[3] + DEM_SAME(room[3]);
    near_by = lbvh_overlap_sphere(&w->tree, p, reach);
    while (lbvh_next(&near_by))
        if (dem_wall_away2(w, near_by.id, p, here) <= reach * reach) return 1;
    return 0;
}

/* The rows that are there: no more than there is room for. */
DEM_FN int32_t dem_wall_rows(const dem_walls *w, int list)
{
    int32_t const rows = w->state->rows[list];
    return rows < w->row_room ? rows : w->row_room;
}

/* Row r of this step is of body i. */
DEM_FN void dem_wall_list(const dem_walls *w, int32_t r, int32_t i)
{
    if (r < w->row_room) w->row[w->state->now][r].body = i;
    else ++w->state->lost;
}

/* What body i has kept from the last step: returns how many contacts. */
DEM_FN int dem_wall_was(const dem_walls *w, int32_t i, const dem_wall_kept **was)
{
    int const last = 1 - w->state->now;
    int32_t const r = w->row_of[i];
    const dem_wall_row *row;
    *was = w->kept[last];
    if (r < 0 || r >= dem_wall_rows(w, last)) return 0;
    row = &w->row[last][r];
    if (row->body != i) return 0;
    *was += row->first;
    return row->count;
}

/* Row r keeps its contacts from place `first` on. */
DEM_FN void dem_wall_store(const dem_walls *w, int32_t r, int32_t first, int count,
                           const dem_wall_kept *kept)
{
    int const now = w->state->now;
    dem_wall_row *row = &w->row[now][r];
    int k;
    if (first > w->kept_room - count) {
        w->state->lost += count;
        count = 0;
    }
    row->first = first;
    row->count = count;
    for (k = 0; k < count; k++) w->kept[now][first + k] = kept[k];
    w->row_of[row->body] = r;
}

/* Bodies have been sorted, and body i is now new_of[i]: row r of the step that is done. */
DEM_FN void dem_wall_remap(const dem_walls *w, int32_t r, const int32_t *new_of)
{
    dem_wall_row *row = &w->row[w->state->now][r];
    row->body = new_of[row->body];
    w->row_of[row->body] = r;
}

/* Lists the bodies at the mesh, in rising order. Returns their number: where it is above row_room,
   more memory, and once more from dem_walls_refind. */
static inline int32_t dem_walls_refind(const dem_bodies *s, const dem_walls *w)
{
    int32_t i, rows = 0;
    for (i = 0; i < s->base.n; i++) {
        if (!dem_wall_near(s, w, i)) continue;
        if (rows < w->row_room) dem_wall_list(w, rows, i);
        rows++;
    }
    return w->state->rows[w->state->now] = rows;
}

static inline int32_t dem_walls_find(const dem_bodies *s, const dem_walls *w)
{
    dem_walls_begin(w->state);
    return dem_walls_refind(s, w);
}

/* Their forces and torques: adds to sums[6 n]. */
static inline void dem_walls_push(const dem_bodies *s, const dem_walls *w, dem_real *sums)
{
    int32_t const rows = dem_wall_rows(w, w->state->now);
    int32_t *places = &w->state->kept[w->state->now], r;
    for (r = 0; r < rows; r++) {
        int32_t const i = w->row[w->state->now][r].body;
        dem_wall_kept kept[DEM_SLOTS];
        const dem_wall_kept *was;
        int const held = dem_wall_was(w, i, &was);
        int const count = dem_body_walls(s, w, i, was, held, kept, sums + DEM_SUMS * (size_t)i);
        dem_wall_store(w, r, *places, count, kept);
        *places += count;
    }
}

#endif /* DEM_WALLS_H */
