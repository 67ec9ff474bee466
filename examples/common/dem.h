/* dem.h - the force between touching spheres, and between spheres and walls, with contact history:
   one text for C and CUDA.
   SPDX-License-Identifier: MIT OR Unlicense

   >>law        the force in one contact: spring and dashpot along the normal and along the surface,
                Coulomb's limit
   >>contacts   sphere and sphere, sphere and triangle (entries of a list), sphere and plane
   >>motion     one time step of one sphere

   Include lbvh.h and nlist.h first (and before them ugrid.h, where a grid finds the neighbours). A
   time step:

       build the lists     nlist_build_ugrid(&list, ...), nlist_build_mesh(&walls, ...);
                           desc.history = DEM_HISTORY
       clear the sums      6 numbers per sphere: force, torque
       add the contacts    nlist_sum(&list, &how, dem_spheres_fn, &system, sums);
                           nlist_sum(&walls, &how, dem_triangle_fn, &system, sums);
                           how.values = DEM_SUMS
       planes, motion      for each sphere: dem_planes(&system, i, sums + 6 * i),
                           dem_move(&system, i, sums + 6 * i)

   On the GPU dem_spheres_op and dem_triangle_op for nlist_cuda_sum, and a kernel for the last
   line. */

#ifndef DEM_H
#define DEM_H

#include "dem_system.h"

/* -------------------------------------------------------------------------------------------------
   >>law: the force in one contact (Kureck section 2.4.3)

   With n from i to j, and u the velocity of j's surface against i's, u_t its part along the
   surface:

       F_n = k_n overlap - c_n (u . n)         pushes i away from j; 0 where it would be negative:
                                               spheres do not pull
       F_t = k_t xi + c_t u_t                  drags i along with j's surface; at most mu F_n

   xi is the spring: how far j's surface has moved against i's since the contact began, as long as
   it sticks. It is the contact's history. Where more than mu F_n were needed the contact slides:
   the force is cut, and the spring keeps what fits the cut force, xi = (F_t - c_t u_t) / k_t (S.
   Luding, Cohesive, frictional powders, Granular Matter 10, 2008; H. Kruggel-Emden et al., Chemical
   Engineering Science 63, 2008, compare such rules).

   The contact turns as the spheres roll around each other. So the spring is laid into the present
   tangent plane first, with the length that it had. Without history there is no xi: friction only
   slows down, as a liquid does, and a heap flows away.
   ---------------------------------------------------------------------------------------------- */

/* xi without its part along n, as long as before. */
DEM_FN void dem_lay_down(dem_real xi[3], const dem_real n[3])
{
    dem_real const before = dem_dot(xi, xi);
    dem_real after;
    dem_add(xi, -dem_dot(xi, n), n);
    after = dem_dot(xi, xi);
    if (after > 0) dem_add(xi, dem_root(before / after) - 1, xi);
}

/* The force on i. n: from i to j, length 1; u: velocity of j's surface against i's; m: 1 /
   (1/m_i + 1/m_j); history: DEM_HISTORY bytes or NULL. */
DEM_FN void dem_law(const dem_material *material, dem_real overlap, const dem_real n[3],
                    const dem_real u[3], dem_real m, dem_real dt, dem_real *history,
                    dem_real force[3])
{
    dem_real const along = dem_dot(u, n), root = dem_root(m), c_n = material->c_n * root,
                   c_t = material->c_t * root;
    dem_real normal = material->k_n * overlap - c_n * along;
    dem_real slip[3] = {u[0], u[1], u[2]}, xi[4] = {0, 0, 0, 0}, drag, limit, cut;
    int a;
    if (!(normal > 0)) normal = 0;
    limit = material->mu * normal;
    dem_add(slip, -along, n);
    if (history) {
        dem_load(history, 0, xi);
        dem_lay_down(xi, n);
        dem_add(xi, dt, slip);
    }
    for (a = 0; a < 3; a++) force[a] = material->k_t * xi[a] + c_t * slip[a];
    drag = dem_root(dem_dot(force, force));
    if (drag > limit) {
        cut = limit / drag;
        for (a = 0; a < 3; a++) {
            force[a] *= cut;
            xi[a] = (force[a] - c_t * slip[a]) / material->k_t;
        }
    }
    xi[3] = normal;
    if (history) dem_store(history, 0, xi);
    dem_add(force, -normal, n);
}

/* The contact is over, or has not begun: an entry of the list with nothing to keep. Most are 0
   already, and reading that costs less than writing it. */
DEM_FN int dem_apart(dem_real *history)
{
    dem_real const none[4] = {0, 0, 0, 0};
    dem_real was[4];
    if (!history) return 0;
    dem_load(history, 0, was);
    if (was[0] != 0 || was[1] != 0 || was[2] != 0 || was[3] != 0) dem_store(history, 0, none);
    return 0;
}

/* -------------------------------------------------------------------------------------------------
   >>contacts: each adds force and torque, own[6] to i, other[6] to j; 0 where nothing touches
   ---------------------------------------------------------------------------------------------- */

/* u: velocity of the surface of sphere i at `arm` from its middle along n. Returns 1 / mass. */
DEM_FN dem_real dem_surface(const dem_system *s, int32_t i, dem_real arm, const dem_real n[3],
                            dem_real u[3])
{
    dem_real v[4], spin[4];
    dem_load(s->vel, (size_t)i, v);
    dem_load(s->spin, (size_t)i, spin);
    dem_cross(spin, n, u);
    u[0] = v[0] + arm * u[0];
    u[1] = v[1] + arm * u[1];
    u[2] = v[2] + arm * u[2];
    return v[3];
}

/* Velocity of a wall at x. */
DEM_FN void dem_wall_surface(const dem_motion *motion, const dem_real x[3], dem_real u[3])
{
    dem_real const d[3] = {x[0] - motion->origin[0], x[1] - motion->origin[1],
                           x[2] - motion->origin[2]};
    dem_cross(motion->omega, d, u);
    dem_add(u, 1, motion->velocity);
}

/* sum[0..2] += force, sum[3..5] += torque of the force at arm * n. */
DEM_FN void dem_apply(dem_real sum[6], dem_real arm, const dem_real n[3], const dem_real force[3])
{
    dem_real turn[3];
    dem_cross(n, force, turn);
    dem_add(sum, 1, force);
    dem_add(sum + 3, arm, turn);
}

/* Entry i, j of a list of spheres. */
DEM_FN int dem_spheres(const dem_system *s, int32_t i, int32_t j, void *entry, dem_real *own,
                       dem_real *other)
{
    dem_real *history = s->history_off ? NULL : (dem_real *)entry;
    dem_real p[4], q[4], n[3], u[3], ui[3], force[3], reach, d2, distance, half, w;
    int a;
    dem_load(s->pos, (size_t)i, p);
    dem_load(s->pos, (size_t)j, q);
    for (a = 0; a < 3; a++) n[a] = q[a] - p[a];
    reach = p[3] + q[3];
    d2 = dem_dot(n, n);
    if (!(d2 < reach * reach) || !(d2 > 0)) return dem_apart(history);
    distance = dem_root(d2);
    half = (reach - distance) / 2; /* the contact is in the middle of the overlap */
    dem_add(n, 1 / distance - 1, n);
    w = dem_surface(s, i, p[3] - half, n, ui) + dem_surface(s, j, half - q[3], n, u);
    if (!(w > 0)) return dem_apart(history); /* neither can move */
    dem_add(u, -1, ui);
    dem_law(&s->between, 2 * half, n, u, 1 / w, s->dt, history, force);
    dem_apply(own, p[3] - half, n, force);
    for (a = 0; a < 3; a++) force[a] = -force[a];
    dem_apply(other, half - q[3], n, force);
    return 1;
}

/* Sphere i against a wall whose nearest point is at `distance` along n, and moves with velocity
   `wall`. */
DEM_FN int dem_wall(const dem_system *s, int32_t i, dem_real radius, dem_real distance,
                    const dem_real n[3], const dem_real wall[3], dem_real *history, dem_real *own)
{
    dem_real u[3], ui[3], force[3], w;
    int a;
    if (!(distance < radius)) return dem_apart(history);
    w = dem_surface(s, i, distance, n, ui);
    if (!(w > 0)) return dem_apart(history);
    for (a = 0; a < 3; a++) u[a] = wall[a] - ui[a];
    dem_law(&s->walls, radius - distance, n, u, 1 / w, s->dt, history, force);
    dem_apply(own, distance, n, force);
    return 1;
}

/* Entry i, key of a list of triangles. */
DEM_FN int dem_triangle(const dem_system *s, int32_t i, int32_t key, void *entry, dem_real *own)
{
    dem_real *history = s->history_off ? NULL : (dem_real *)entry;
    dem_real p[4], q[3], n[3], wall[3], distance;
    int a;
    dem_load(s->pos, (size_t)i, p);
    nlist_mesh_closest(&s->mesh, nlist_key_triangle(key), p, q);
    for (a = 0; a < 3; a++) n[a] = q[a] - p[a];
    distance = dem_root(dem_dot(n, n));
    /* the middle is on the triangle: there is no direction to part in */
    if (!(distance > 0)) return dem_apart(history);
    dem_add(n, 1 / distance - 1, n);
    dem_wall_surface(&s->mesh_motion, q, wall);
    return dem_wall(s, i, p[3], distance, n, wall, history, own);
}

/* Sphere i and all planes. A sphere touches a plane in one place or not at all, so there is
   nothing to search, and no list: the history of plane k belongs to the sphere, as its velocity
   does. */
DEM_FN void dem_planes(const dem_system *s, int32_t i, dem_real *own)
{
    dem_real p[4];
    int32_t k;
    dem_load(s->pos, (size_t)i, p);
    for (k = 0; k < s->planes; k++) {
        const dem_plane *plane = &s->plane[k];
        size_t const place = 4 * ((size_t)i * (size_t)s->planes + (size_t)k);
        dem_real *history = s->plane_history && !s->history_off ? s->plane_history + place : NULL;
        dem_real const distance = dem_dot(plane->normal, p) - plane->offset;
        dem_real const n[3] = {-plane->normal[0], -plane->normal[1], -plane->normal[2]};
        dem_real q[3] = {p[0], p[1], p[2]}, wall[3];
        dem_add(q, distance, n);
        dem_wall_surface(&plane->motion, q, wall);
        dem_wall(s, i, p[3], distance, n, wall, history, own);
    }
}

/* For nlist_sum: user is the dem_system, how.values is DEM_SUMS. */
static inline int dem_spheres_fn(void *user, int32_t i, int32_t j, void *history, dem_real *own,
                                 dem_real *other)
{
    return dem_spheres((const dem_system *)user, i, j, history, own, other);
}

static inline int dem_triangle_fn(void *user, int32_t i, int32_t key, void *history, dem_real *own,
                                  dem_real *other)
{
    (void)other;
    return dem_triangle((const dem_system *)user, i, key, history, own);
}

#ifdef __CUDACC__
/* For nlist_cuda_sum<DEM_SUMS>: the system's arrays are device memory. */
struct dem_spheres_op {
    dem_system system;
    __device__ int operator()(int32_t i, int32_t j, void *history, dem_real *own,
                              dem_real *other) const
    {
        return dem_spheres(&system, i, j, history, own, other);
    }
};

struct dem_triangle_op {
    dem_system system;
    __device__ int operator()(int32_t i, int32_t key, void *history, dem_real *own,
                              dem_real *) const
    {
        return dem_triangle(&system, i, key, history, own);
    }
};
#endif

/* -------------------------------------------------------------------------------------------------
   >>motion
   ---------------------------------------------------------------------------------------------- */

/* A time step of sphere i under sum[6], force and torque, and gravity: first velocity and spin,
   then, with the new velocity, the position (symplectic Euler). A ball has I = 2/5 m r^2. */
DEM_FN void dem_move(const dem_system *s, int32_t i, const dem_real *sum)
{
    dem_real p[4], v[4], spin[4], w;
    dem_load(s->vel, (size_t)i, v);
    w = v[3];
    if (!(w > 0)) return;
    dem_load(s->pos, (size_t)i, p);
    dem_load(s->spin, (size_t)i, spin);
    dem_add(v, s->dt * w, sum);
    dem_add(v, s->dt, s->gravity);
    dem_add(spin, s->dt * w * (dem_real)2.5 / (p[3] * p[3]), sum + 3);
    dem_add(p, s->dt, v);
    dem_store(s->vel, (size_t)i, v);
    dem_store(s->spin, (size_t)i, spin);
    dem_store(s->pos, (size_t)i, p);
}

#endif /* DEM_H */
