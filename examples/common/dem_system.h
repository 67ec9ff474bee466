/* dem_system.h - what dem.h computes with: vectors, the material of a contact, and the system of
   spheres and walls.
   SPDX-License-Identifier: MIT OR Unlicense

   >>vector     three numbers
   >>material   stiffness, damping and friction, from coefficients of restitution
   >>system     the particles and walls that a time step needs, as a plain struct: kernels take it
                by value */

#ifndef DEM_SYSTEM_H
#define DEM_SYSTEM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#ifndef NLIST_H
#error "dem.h: include lbvh.h and nlist.h first"
#endif

#ifdef __CUDACC__
#define DEM_FN static __host__ __device__ __forceinline__
#else
#define DEM_FN static inline
#endif

typedef nlist_real dem_real;

/* -------------------------------------------------------------------------------------------------
   >>vector
   ---------------------------------------------------------------------------------------------- */

DEM_FN dem_real dem_root(dem_real x)
{
#if NLIST_I_REAL_KIND == 1
    return sqrtf(x);
#else
    return sqrt(x);
#endif
}

DEM_FN dem_real dem_dot(const dem_real a[3], const dem_real b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

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

/* -------------------------------------------------------------------------------------------------
   >>material
   ---------------------------------------------------------------------------------------------- */

typedef struct dem_material {
    /* stiffness along the normal and along the surface, force per length */
    dem_real k_n, k_t;
    /* dashpots, force per speed and per root of the mass: so spheres of every mass rebound alike */
    dem_real c_n, c_t;
    dem_real mu;                /* friction */
} dem_material;

/* How long a contact lasts, in units of sqrt(m / k_n), when its damping is zeta (1: critical); and
   the part e of the speed that is left.

   The overlap x of a contact moves as m x'' + 2 zeta sqrt(k m) x' + k x = 0, x = 0, x' = v at the
   start. Spheres do not pull at each other, so the contact is over when the force is 0, a little
   before x is 0 (T. Schwager, T. Poeschel, Coefficient of restitution and linear-dashpot model
   revisited, Granular Matter 9, 2007). With s = sqrt(1 - zeta^2), the speed of the swing:

       duration = (pi - atan2(2 zeta s, 1 - 2 zeta^2)) / s         e = exp(-zeta duration) */
static inline double dem_duration(double zeta, double *e)
{
    double const swing = sqrt(1 - zeta * zeta);
    double const duration =
        (3.14159265358979323846 - atan2(2 * zeta * swing, 1 - 2 * zeta * zeta)) / swing;
    *e = exp(-zeta * duration);
    return duration;
}

/* The damping that gives back e of the speed, 0 < e <= 1: by halving, as there is no formula for
   it. */
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

/* A material of stiffness k_n that gives back e of the speed along the normal, turns round beta of
   the speed along the surface while it does not slide, and slides at mu times the normal force.

   Along the surface the spheres' inertia against turning counts too: 1/m + r^2/I = 7/2 1/m for a
   ball. So there a mass of 2/7 m swings at the end of spring and dashpot. It leaves with -beta of
   its speed if it makes just half a swing while the contact lasts, and is damped by beta meanwhile:

       w duration = pi,   exp(-h duration) = beta,   k_t = 2/7 m (w^2 + h^2),   c_t = 2/7 m 2 h

   (N. Deen et al., Review of discrete particle modeling of fluidized beds, Chemical Engineering
   Science 62, 2007, have the same for contacts that may pull: k_t / k_n = 2/7 (pi^2 + ln^2 beta)
   / (pi^2 + ln^2 e).) Where both dashpots are strong the contact slides for a moment at its end:
   with e = 0.5, beta = 0.2 beta comes out by a tenth too large. */
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

/* Seconds that a contact lasts, for a mass m: that of a sphere at a wall, m_i m_j / (m_i + m_j)
   for two spheres. A time step should be a thirtieth of it or less. */
static inline double dem_contact_time(const dem_material *material, double m)
{
    double e;
    return dem_duration((double)material->c_n / 2 / sqrt((double)material->k_n), &e) *
           sqrt(m / (double)material->k_n);
}

static inline double dem_mass(double radius, double density)
{
    return 4.0 / 3.0 * 3.14159265358979323846 * radius * radius * radius * density;
}

/* -------------------------------------------------------------------------------------------------
   >>system
   ---------------------------------------------------------------------------------------------- */

enum { DEM_SUMS = 6, DEM_PLANES = 12 };

/* Bytes that a contact keeps, desc.history: 4 numbers, {the spring along the surface x y z, the
   force along the normal}. The last one is not needed to go on; it is for pictures of force
   chains, and fills the record up to what a GPU reads at once. */
#define DEM_HISTORY ((int32_t)(4 * sizeof(dem_real)))

/* How a rigid wall moves: the speed at x is velocity + omega x (x - origin). */
typedef struct dem_motion { dem_real velocity[3], omega[3], origin[3]; } dem_motion;

/* The points x with normal . x = offset. normal has length 1 and points to where the spheres
   are. */
typedef struct dem_plane {
    dem_real normal[3], offset;
    dem_motion motion;
} dem_plane;

/* Records of 4 numbers (16 bytes as floats), so that a GPU reads one at once; there arrays begin
   at multiples of 16 bytes. pos with stride DEM_STRIDE is what grids, trees and lists take. What
   is said to be "of a sphere" goes along when spheres are sorted. */
#define DEM_STRIDE (4 * sizeof(dem_real))

typedef struct dem_system {
    int32_t n;
    dem_real *pos;              /* [4 n] of a sphere: x y z, radius */
    dem_real *vel;              /* [4 n] of a sphere: velocity, 1 / mass (0: it never moves) */
    dem_real *spin;             /* [4 n] of a sphere: angular velocity, and a number of yours */
    /* [4 n planes] of a sphere: as DEM_HISTORY, for each plane; 0 at the start. NULL: none is
       kept */
    dem_real *plane_history;
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

#endif /* DEM_SYSTEM_H */
