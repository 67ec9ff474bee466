/* dem.h - the force between touching spheres, and between spheres and walls, with contact history: one text for C and CUDA.
   SPDX-License-Identifier: MIT OR Unlicense

   >>vector     three numbers
   >>material   stiffness, damping and friction, from coefficients of restitution
   >>system     the particles and walls that a time step needs, as a plain struct: kernels take it by value
   >>law        the force in one contact: spring and dashpot along the normal, spring and dashpot along the surface, Coulomb's limit
   >>contacts   who touches: sphere and sphere, sphere and triangle (entries of a list), sphere and plane
   >>motion     one time step of one sphere

   rebound.c, pyramid.c and drum.c/.cu use it. In one file, before this: the IMPLEMENTATION macros of lbvh.h and nlist.h (and
   ugrid.h, included first, where a grid finds the neighbours). A time step reads:

       build the lists             nlist_build_ugrid(&list, ...), nlist_build_mesh(&walls, ...); desc.history = DEM_HISTORY
       clear sums                  6 numbers per sphere: force, torque
       add the contacts            nlist_sum(&list, &how, dem_spheres_fn, &system, sums); how.values = DEM_SUMS
                                   nlist_sum(&walls, &how, dem_triangle_fn, &system, sums)
       planes, gravity, motion     for each sphere: dem_planes(&system, i, sums + 6 * i), dem_move(&system, i, sums + 6 * i)

   and on the GPU the same with dem_spheres_op and dem_triangle_op for nlist_cuda_sum, and a kernel for the last line. */

#ifndef DEM_H
#define DEM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "../lbvh.h"
#include "../nlist.h"

#ifdef __CUDACC__
#define DEM_FN static __host__ __device__ __forceinline__
#else
#define DEM_FN static inline
#endif

typedef nlist_real dem_real;

/* ------------------------------------------------------------------------------------------------
   >>vector
   ------------------------------------------------------------------------------------------------ */

DEM_FN dem_real dem_root(dem_real x)
{
#if NLIST_I_REAL_KIND == 1
    return sqrtf(x);
#else
    return sqrt(x);
#endif
}

DEM_FN dem_real dem_dot(const dem_real a[3], const dem_real b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/* c = a x b; c is neither of the two. */
DEM_FN void dem_cross(const dem_real a[3], const dem_real b[3], dem_real c[3])
{
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

/* a += t b */
DEM_FN void dem_add(dem_real a[3], dem_real t, const dem_real b[3])
{
    a[0] += t * b[0];
    a[1] += t * b[1];
    a[2] += t * b[2];
}

/* ------------------------------------------------------------------------------------------------
   >>material
   ------------------------------------------------------------------------------------------------ */

typedef struct dem_material {
    dem_real k_n, k_t;          /* stiffness along the normal and along the surface, force per length */
    dem_real c_n, c_t;          /* dashpots, force per speed and per root of the mass: so spheres of every mass rebound alike */
    dem_real mu;                /* friction */
} dem_material;

/* How long a contact lasts, in units of sqrt(m / k_n), when its damping is zeta (1: critical); and the part e of the speed that is
   left.

   The overlap x of a contact moves as m x'' + 2 zeta sqrt(k m) x' + k x = 0, x = 0, x' = v at the start. Spheres do not pull at
   each other, so the contact is over when the force is 0, a little before x is 0 (T. Schwager, T. Poeschel, Coefficient of
   restitution and linear-dashpot model revisited, Granular Matter 9, 2007). With s = sqrt(1 - zeta^2), the speed of the swing:

       duration = (pi - atan2(2 zeta s, 1 - 2 zeta^2)) / s         e = exp(-zeta duration) */
static inline double dem_duration(double zeta, double *e)
{
    double const swing = sqrt(1 - zeta * zeta);
    double const duration = (3.14159265358979323846 - atan2(2 * zeta * swing, 1 - 2 * zeta * zeta)) / swing;
    *e = exp(-zeta * duration);
    return duration;
}

/* The damping that gives back e of the speed, 0 < e <= 1: by halving, as there is no formula for it. */
static inline double dem_damping(double e)
{
    double low = 0, high = 0.999, found;
    int k;
    for (k = 0; k < 60; k++) {
        double const middle = 0.5 * (low + high);
        dem_duration(middle, &found);
        if (found > e) low = middle;
        else high = middle;
    }
    return 0.5 * (low + high);
}

/* A material of stiffness k_n that gives back e of the speed along the normal, turns round beta of the speed along the surface
   while it does not slide, and slides at mu times the normal force.

   Along the surface the spheres' inertia against turning counts too: 1/m + r^2/I = 7/2 1/m for a ball. So there a mass of 2/7 m
   swings at the end of spring and dashpot. It leaves with -beta of its speed if it makes just half a swing while the contact
   lasts, and is damped by beta meanwhile:

       w duration = pi,   exp(-h duration) = beta,   k_t = 2/7 m (w^2 + h^2),   c_t = 2/7 m 2 h

   (N. Deen et al., Review of discrete particle modeling of fluidized beds, Chemical Engineering Science 62, 2007, have the same for
   contacts that may pull: k_t / k_n = 2/7 (pi^2 + ln^2 beta) / (pi^2 + ln^2 e).) Where both dashpots are strong the contact slides
   for a moment at its end: with e = 0.5, beta = 0.2 beta comes out by a tenth too large. */
static inline dem_material dem_material_of(double k_n, double e, double beta, double mu)
{
    double const zeta = dem_damping(e);
    double found, w, h;
    double const duration = dem_duration(zeta, &found);
    dem_material m;
    w = 3.14159265358979323846 / duration;
    h = -log(beta) / duration;
    m.k_n = (dem_real)k_n;
    m.c_n = (dem_real)(2 * zeta * sqrt(k_n));
    m.k_t = (dem_real)(2.0 / 7.0 * k_n * (w * w + h * h));
    m.c_t = (dem_real)(2.0 / 7.0 * 2 * h * sqrt(k_n));
    m.mu = (dem_real)mu;
    return m;
}

/* Seconds that a contact lasts, for a mass m: that of a sphere at a wall, m_i m_j / (m_i + m_j) for two spheres. A time step should
   be a thirtieth of it or less. */
static inline double dem_contact_time(const dem_material *material, double m)
{
    double e;
    return dem_duration((double)material->c_n / 2 / sqrt((double)material->k_n), &e) * sqrt(m / (double)material->k_n);
}

static inline double dem_mass(double radius, double density)
{
    return 4.0 / 3.0 * 3.14159265358979323846 * radius * radius * radius * density;
}

/* ------------------------------------------------------------------------------------------------
   >>system
   ------------------------------------------------------------------------------------------------ */

enum { DEM_SUMS = 6, DEM_PLANES = 6 };

/* Bytes that a contact keeps, desc.history: 4 numbers, {the spring along the surface x y z, the force along the normal}. The last
   one is not needed to go on; it is for pictures of force chains, and fills the record up to what a GPU reads at once. */
#define DEM_HISTORY ((int32_t)(4 * sizeof(dem_real)))

/* How a rigid wall moves: the speed at x is velocity + omega x (x - origin). */
typedef struct dem_motion { dem_real velocity[3], omega[3], origin[3]; } dem_motion;

/* The points x with normal . x = offset. normal has length 1 and points to where the spheres are. */
typedef struct dem_plane {
    dem_real normal[3], offset;
    dem_motion motion;
} dem_plane;

/* Records of 4 numbers (16 bytes as floats), so that a GPU reads one at once; there arrays begin at multiples of 16 bytes. pos with
   stride DEM_STRIDE is what grids, trees and lists take. What is said to be "of a sphere" goes along when spheres are sorted. */
#define DEM_STRIDE (4 * sizeof(dem_real))

typedef struct dem_system {
    int32_t n;
    dem_real *pos;              /* [4 n] of a sphere: x y z, radius */
    dem_real *vel;              /* [4 n] of a sphere: velocity, 1 / mass (0: it never moves) */
    dem_real *spin;             /* [4 n] of a sphere: angular velocity, and a number of yours */
    dem_real *plane_history;    /* [4 n planes] of a sphere: as DEM_HISTORY, for each plane; 0 at the start. NULL: none is kept */
    dem_material between;       /* spheres and spheres */
    dem_material walls;         /* spheres and planes or triangles */
    dem_plane plane[DEM_PLANES];
    int32_t planes;
    nlist_mesh mesh;            /* CUDA: its arrays are device memory, as all others here */
    dem_motion mesh_motion;
    dem_real gravity[3];
    dem_real dt;
    int32_t history_off;        /* 1: friction without springs, for comparison */
} dem_system;

/* Record i. */
DEM_FN void dem_load(const dem_real *records, size_t i, dem_real to[4])
{
#if defined(__CUDA_ARCH__) && NLIST_I_REAL_KIND == 1
    float4 const record = *(const float4 *)(const void *)(records + 4 * i);
    to[0] = record.x;
    to[1] = record.y;
    to[2] = record.z;
    to[3] = record.w;
#else
    int a;
    for (a = 0; a < 4; a++) to[a] = records[4 * i + (size_t)a];
#endif
}

DEM_FN void dem_store(dem_real *records, size_t i, const dem_real from[4])
{
#if defined(__CUDA_ARCH__) && NLIST_I_REAL_KIND == 1
    *(float4 *)(void *)(records + 4 * i) = make_float4(from[0], from[1], from[2], from[3]);
#else
    int a;
    for (a = 0; a < 4; a++) records[4 * i + (size_t)a] = from[a];
#endif
}

/* ------------------------------------------------------------------------------------------------
   >>law: the force in one contact (Kureck section 2.4.3)

   With n from i to j, and u the velocity of j's surface against i's, u_t its part along the surface:

       F_n = k_n overlap - c_n (u . n)         pushes i away from j; 0 where it would be negative: spheres do not pull
       F_t = k_t xi + c_t u_t                  drags i along with j's surface; at most mu F_n

   xi is the spring: how far j's surface has moved against i's since the contact began, as long as it sticks. It is the contact's
   history. Where more than mu F_n were needed the contact slides: the force is cut, and the spring keeps what fits the cut force,
   xi = (F_t - c_t u_t) / k_t (S. Luding, Cohesive, frictional powders, Granular Matter 10, 2008; H. Kruggel-Emden et al., Chemical
   Engineering Science 63, 2008, compare such rules).

   The contact turns as the spheres roll around each other. So the spring is laid into the present tangent plane first, with the
   length that it had. Without history there is no xi: friction only slows down, as a liquid does, and a heap flows away.
   ------------------------------------------------------------------------------------------------ */

/* xi without its part along n, as long as before. */
DEM_FN void dem_lay_down(dem_real xi[3], const dem_real n[3])
{
    dem_real const before = dem_dot(xi, xi);
    dem_real after;
    dem_add(xi, -dem_dot(xi, n), n);
    after = dem_dot(xi, xi);
    if (after > 0) dem_add(xi, dem_root(before / after) - 1, xi);
}

/* The force on i. n: from i to j, length 1; u: velocity of j's surface against i's; m: 1 / (1/m_i + 1/m_j); history: DEM_HISTORY
   bytes or NULL. */
DEM_FN void dem_law(const dem_material *material, dem_real overlap, const dem_real n[3], const dem_real u[3], dem_real m,
                    dem_real dt, dem_real *history, dem_real force[3])
{
    dem_real const along = dem_dot(u, n), root = dem_root(m), c_n = material->c_n * root, c_t = material->c_t * root;
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

/* The contact is over, or has not begun: an entry of the list with nothing to keep. Most are 0 already, and reading that costs less
   than writing it. */
DEM_FN int dem_apart(dem_real *history)
{
    dem_real const none[4] = {0, 0, 0, 0};
    dem_real was[4];
    if (!history) return 0;
    dem_load(history, 0, was);
    if (was[0] != 0 || was[1] != 0 || was[2] != 0 || was[3] != 0) dem_store(history, 0, none);
    return 0;
}

/* ------------------------------------------------------------------------------------------------
   >>contacts: each adds force and torque, own[6] to i, other[6] to j, and returns 0 where nothing touches
   ------------------------------------------------------------------------------------------------ */

/* u: velocity of the surface of sphere i at `arm` from its middle along n. Returns 1 / mass. */
DEM_FN dem_real dem_surface(const dem_system *s, int32_t i, dem_real arm, const dem_real n[3], dem_real u[3])
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
    dem_real const d[3] = {x[0] - motion->origin[0], x[1] - motion->origin[1], x[2] - motion->origin[2]};
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
DEM_FN int dem_spheres(const dem_system *s, int32_t i, int32_t j, void *entry, dem_real *own, dem_real *other)
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

/* Sphere i against a wall whose nearest point is at `distance` along n, and moves with velocity `wall`. */
DEM_FN int dem_wall(const dem_system *s, int32_t i, dem_real radius, dem_real distance, const dem_real n[3],
                    const dem_real wall[3], dem_real *history, dem_real *own)
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
    if (!(distance > 0)) return dem_apart(history); /* the middle is on the triangle: there is no direction to part in */
    dem_add(n, 1 / distance - 1, n);
    dem_wall_surface(&s->mesh_motion, q, wall);
    return dem_wall(s, i, p[3], distance, n, wall, history, own);
}

/* Sphere i and all planes. A sphere touches a plane in one place or not at all, so there is nothing to search, and no list: the
   history of plane k belongs to the sphere, as its velocity does. */
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
static inline int dem_spheres_fn(void *user, int32_t i, int32_t j, void *history, dem_real *own, dem_real *other)
{
    return dem_spheres((const dem_system *)user, i, j, history, own, other);
}

static inline int dem_triangle_fn(void *user, int32_t i, int32_t key, void *history, dem_real *own, dem_real *other)
{
    (void)other;
    return dem_triangle((const dem_system *)user, i, key, history, own);
}

#ifdef __CUDACC__
/* For nlist_cuda_sum<DEM_SUMS>: the system's arrays are device memory. */
struct dem_spheres_op {
    dem_system system;
    __device__ int operator()(int32_t i, int32_t j, void *history, dem_real *own, dem_real *other) const
    {
        return dem_spheres(&system, i, j, history, own, other);
    }
};

struct dem_triangle_op {
    dem_system system;
    __device__ int operator()(int32_t i, int32_t key, void *history, dem_real *own, dem_real *) const
    {
        return dem_triangle(&system, i, key, history, own);
    }
};
#endif

/* ------------------------------------------------------------------------------------------------
   >>motion
   ------------------------------------------------------------------------------------------------ */

/* A time step of sphere i under sum[6], force and torque, and gravity: first velocity and spin, then, with the new velocity, the
   position (symplectic Euler). A ball has I = 2/5 m r^2. */
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
