/* dem_shapes.h - rigid bodies of any shape in shapes.h: contacts with the law and the history of
   dem.h, rotation by quaternions; one text for C and CUDA.
   SPDX-License-Identifier: MIT OR Unlicense

   >>bodies     what a time step needs
   >>touch      body and body (entries of a list), body and planes
   >>rotate     a free body turns as Euler's equations say

   Include lbvh.h and nlist.h first. A time step is that of dem.h with other names:

       build the lists     radius: of the spheres around the bodies; desc.history = DEM_BODY_HISTORY
       clear the sums      6 numbers per body: force, torque
       add the contacts    nlist_sum(&list, &how, dem_bodies_fn, &bodies, sums)
       planes, motion      dem_body_planes(&bodies, i, sums + 6 * i),
                           dem_body_move(&bodies, i, sums + 6 * i)

   Damping along the surface is that of a ball (dem_material_of): other bodies turn more easily, or
   less. */

#ifndef DEM_SHAPES_H
#define DEM_SHAPES_H

#include "dem.h"
#include "shapes.h"

/* -------------------------------------------------------------------------------------------------
   >>bodies
   ---------------------------------------------------------------------------------------------- */

/* Bytes that a contact of two bodies keeps: as DEM_HISTORY, and the direction from i to j with
   which the next search of their common normal begins, which is kept also while they are apart. */
#define DEM_BODY_HISTORY (2 * DEM_HISTORY)

/* Of base.pos the fourth number is shape.bound, of base.spin the number of the shape. */
typedef struct dem_bodies {
    dem_system base;
    dem_real *turn;             /* [4 n] quaternion w x y z of length 1: from body to room */
    dem_real *momentum;         /* [4 n] angular momentum, and a number of yours */
    const shape *shapes;
    int32_t *deep;              /* counts contacts deeper than the roundings, which do not push;
                                   not exact on a GPU, but above 0 where there are any */
} dem_bodies;

DEM_FN const shape *dem_body_shape(const dem_bodies *s, int32_t i)
{
    return &s->shapes[(int32_t)s->base.spin[4 * (size_t)i + 3]];
}

/* Body i at `middle`. */
DEM_FN shape_placed dem_body_at(const dem_bodies *s, int32_t i, const dem_real middle[3])
{
    dem_real turn[4];
    dem_load(s->turn, (size_t)i, turn);
    return shape_place(dem_body_shape(s, i), turn, middle);
}

/* -------------------------------------------------------------------------------------------------
   >>touch
   ---------------------------------------------------------------------------------------------- */

/* u: velocity of body i at `arm` from its middle. Returns 1 / mass. */
DEM_FN dem_real dem_body_speed(const dem_bodies *s, int32_t i, const dem_real arm[3],
                               dem_real u[3])
{
    dem_real v[4], spin[4];
    dem_load(s->base.vel, (size_t)i, v);
    dem_load(s->base.spin, (size_t)i, spin);
    dem_cross(spin, arm, u);
    dem_add(u, 1, v);
    return v[3];
}

DEM_FN void dem_body_push(dem_real sum[6], const dem_real arm[3], const dem_real force[3])
{
    dem_real torque[3];
    dem_cross(arm, force, torque);
    dem_add(sum, 1, force);
    dem_add(sum + 3, 1, torque);
}

/* Found no contact: the entry forgets. */
DEM_FN int dem_bodies_apart(const dem_bodies *s, shape_result found, dem_real *history)
{
    if (found == SHAPE_DEEP) ++*s->deep;
    return dem_apart(history);
}

/* The common normal of a and b, sought from where the entry has seen it last. */
DEM_FN shape_result dem_bodies_normal(const shape_placed *a, const shape_placed *b, dem_real *entry,
                                      shape_touch *touch)
{
    dem_real way[4] = {0, 0, 0, 0};
    shape_result found;
    if (entry) dem_load(entry, 1, way);
    found = shape_contact_from(a, b, way, touch);
    if (entry) dem_store(entry, 1, way);
    return found;
}

/* Entry i, j of a list of bodies: DEM_BODY_HISTORY bytes or NULL. Without history it keeps the
   direction alone. All places are measured from the middle of i. */
DEM_FN int dem_bodies_pair(const dem_bodies *s, int32_t i, int32_t j, void *entry, dem_real *own,
                           dem_real *other)
{
    dem_real *history = s->base.history_off ? NULL : (dem_real *)entry;
    dem_real const zero[3] = {0, 0, 0};
    dem_real p[4], q[4], d[3], arm[3], u[3], ui[3], force[3], reach, w;
    shape_placed a, b;
    shape_touch touch;
    shape_result found;
    int k;
    dem_load(s->base.pos, (size_t)i, p);
    dem_load(s->base.pos, (size_t)j, q);
    for (k = 0; k < 3; k++) d[k] = q[k] - p[k];
    reach = p[3] + q[3];
    if (!(dem_dot(d, d) < reach * reach)) return dem_apart(history);
    a = dem_body_at(s, i, zero);
    b = dem_body_at(s, j, d);
    found = dem_bodies_normal(&a, &b, (dem_real *)entry, &touch);
    if (found != SHAPE_TOUCH) return dem_bodies_apart(s, found, history);
    for (k = 0; k < 3; k++) arm[k] = touch.at[k] - d[k];
    w = dem_body_speed(s, i, touch.at, ui) + dem_body_speed(s, j, arm, u);
    if (!(w > 0)) return dem_apart(history);
    dem_add(u, -1, ui);
    dem_law(&s->base.between, touch.overlap, touch.n, u, 1 / w, s->base.dt, history, force);
    dem_body_push(own, touch.at, force);
    for (k = 0; k < 3; k++) force[k] = -force[k];
    dem_body_push(other, arm, force);
    return 1;
}

/* Body i against a wall that moves with `wall` where they touch. */
DEM_FN int dem_body_wall(const dem_bodies *s, int32_t i, const shape_touch *touch,
                         const dem_real wall[3], dem_real *history, dem_real *own)
{
    dem_real u[3], ui[3], force[3];
    dem_real const w = dem_body_speed(s, i, touch->at, ui);
    int k;
    if (!(w > 0)) return dem_apart(history);
    for (k = 0; k < 3; k++) u[k] = wall[k] - ui[k];
    dem_law(&s->base.walls, touch->overlap, touch->n, u, 1 / w, s->base.dt, history, force);
    dem_body_push(own, touch->at, force);
    return 1;
}

/* Body i and all planes; the history of plane k belongs to the body, as in dem_planes. */
DEM_FN void dem_body_planes(const dem_bodies *s, int32_t i, dem_real *own)
{
    dem_real const zero[3] = {0, 0, 0};
    shape_placed const a = dem_body_at(s, i, zero);
    dem_real p[4];
    int32_t k;
    int x;
    dem_load(s->base.pos, (size_t)i, p);
    for (k = 0; k < s->base.planes; k++) {
        const dem_plane *plane = &s->base.plane[k];
        size_t const place = 4 * ((size_t)i * (size_t)s->base.planes + (size_t)k);
        dem_real *history = s->base.history_off ? NULL : s->base.plane_history + place;
        dem_real const distance = dem_dot(plane->normal, p) - plane->offset;
        dem_real at[3], wall[3];
        shape_touch touch;
        if (!(distance < p[3]) ||
            shape_plane(&a, plane->normal, -distance, &touch) != SHAPE_TOUCH) {
            dem_apart(history);
            continue;
        }
        for (x = 0; x < 3; x++) at[x] = p[x] + touch.at[x];
        dem_wall_surface(&plane->motion, at, wall);
        dem_body_wall(s, i, &touch, wall, history, own);
    }
}

/* For nlist_sum: user is the dem_bodies, how.values is DEM_SUMS. */
static inline int dem_bodies_fn(void *user, int32_t i, int32_t j, void *history, dem_real *own,
                                dem_real *other)
{
    return dem_bodies_pair((const dem_bodies *)user, i, j, history, own, other);
}

#ifdef __CUDACC__
/* For nlist_cuda_sum<DEM_SUMS>: all arrays are device memory. */
struct dem_bodies_op {
    dem_bodies bodies;
    __device__ int operator()(int32_t i, int32_t j, void *history, dem_real *own,
                              dem_real *other) const
    {
        return dem_bodies_pair(&bodies, i, j, history, own, other);
    }
};
#endif

/* -------------------------------------------------------------------------------------------------
   >>rotate

   The angular momentum L, in the room, changes by torques alone. Between two of them the body turns
   about one of its own axes after the other, x y z y x, by L . axis / I of the axis times the time
   step, or half of it where an axis comes twice. Each of these turns is exact. Together they keep L
   to the last digit, and energy for any length of time (A. Dullweber, B. Leimkuhler, R. McLachlan,
   Symplectic splitting methods for rigid body molecular dynamics, Journal of Chemical Physics 107,
   1997).
   ---------------------------------------------------------------------------------------------- */

/* c = a b for quaternions; c is neither of the two. */
DEM_FN void dem_quaternion(const dem_real a[4], const dem_real b[4], dem_real c[4])
{
    c[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
    c[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
    c[2] = a[0] * b[2] + a[2] * b[0] + a[3] * b[1] - a[1] * b[3];
    c[3] = a[0] * b[3] + a[3] * b[0] + a[1] * b[2] - a[2] * b[1];
}

DEM_FN dem_real dem_sine(dem_real x)
{
#if NLIST_I_REAL_KIND == 1
    return sinf(x);
#else
    return sin(x);
#endif
}

/* Turns by its own axis for `time`. i: moment of inertia about the axis. */
DEM_FN void dem_turn_about(int axis, dem_real time, dem_real i, const dem_real momentum[3],
                           dem_real turn[4])
{
    dem_real axes[3][3], by[4] = {1, 0, 0, 0}, result[4];
    int a;
    shape_axes(turn, axes);
    by[axis + 1] = dem_sine(time * dem_dot(axes[axis], momentum) / i / 2);
    by[0] = dem_root(1 - by[axis + 1] * by[axis + 1]);
    dem_quaternion(turn, by, result);
    for (a = 0; a < 4; a++) turn[a] = result[a];
}

DEM_FN void dem_turn_free(dem_real dt, const dem_real i[3], const dem_real momentum[3],
                          dem_real turn[4])
{
    dem_real scale;
    int a;
    dem_turn_about(0, dt / 2, i[0], momentum, turn);
    dem_turn_about(1, dt / 2, i[1], momentum, turn);
    dem_turn_about(2, dt, i[2], momentum, turn);
    dem_turn_about(1, dt / 2, i[1], momentum, turn);
    dem_turn_about(0, dt / 2, i[0], momentum, turn);
    scale = 1 / dem_root(turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2] +
                         turn[3] * turn[3]);
    for (a = 0; a < 4; a++) turn[a] *= scale;
}

/* The angular velocity that goes with an angular momentum. */
DEM_FN void dem_spin_of(const dem_real turn[4], const dem_real i[3], const dem_real momentum[3],
                        dem_real spin[3])
{
    dem_real axes[3][3];
    int a;
    shape_axes(turn, axes);
    spin[0] = spin[1] = spin[2] = 0;
    for (a = 0; a < 3; a++) dem_add(spin, dem_dot(axes[a], momentum) / i[a], axes[a]);
}

/* A time step of body i under sum[6] and gravity, as dem_move: first velocity and angular momentum,
   then with these the place. */
DEM_FN void dem_body_move(const dem_bodies *s, int32_t i, const dem_real *sum)
{
    dem_real p[4], v[4], spin[4], turn[4], momentum[4], inertia[3];
    const shape *body = dem_body_shape(s, i);
    int a;
    dem_load(s->base.vel, (size_t)i, v);
    if (!(v[3] > 0)) return;
    for (a = 0; a < 3; a++) inertia[a] = body->inertia[a] / v[3];
    dem_load(s->base.pos, (size_t)i, p);
    dem_load(s->base.spin, (size_t)i, spin);
    dem_load(s->turn, (size_t)i, turn);
    dem_load(s->momentum, (size_t)i, momentum);
    dem_add(v, s->base.dt * v[3], sum);
    dem_add(v, s->base.dt, s->base.gravity);
    dem_add(momentum, s->base.dt, sum + 3);
    dem_add(p, s->base.dt, v);
    dem_turn_free(s->base.dt, inertia, momentum, turn);
    dem_spin_of(turn, inertia, momentum, spin);
    dem_store(s->base.vel, (size_t)i, v);
    dem_store(s->momentum, (size_t)i, momentum);
    dem_store(s->base.pos, (size_t)i, p);
    dem_store(s->turn, (size_t)i, turn);
    dem_store(s->base.spin, (size_t)i, spin);
}

#endif /* DEM_SHAPES_H */
