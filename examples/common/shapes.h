/* shapes.h - convex particles that need not be spheres: support functions, mass and inertia, and
   the contact of two by their common normal: one text for C and CUDA.
   SPDX-License-Identifier: MIT OR Unlicense

   >>shapes     sphere, capsule, tablet, ellipsoid, glued spheres: what a shape is; how to add one
   >>support    the point of a core that is furthest in a direction
   >>mass       volume and inertia: exact, or measured on the surface
   >>placed     a shape somewhere, turned by a quaternion; or a triangle
   >>nearest    the point of a simplex that is closest to the origin
   >>contact    two shapes; a shape and a triangle; a shape and a plane

   Include lbvh.h and nlist.h first. The forces: dem_shapes.h. */

#ifndef SHAPES_H
#define SHAPES_H

#include <string.h>

#include "dem_system.h"

/* -------------------------------------------------------------------------------------------------
   >>shapes

   Every shape is a convex core with a ball rolled around it: all points no further than `rounding`
   from the core (a sphero-polyhedron is the same: F. Alonso-Marroquin, Spheropolygons, EPL 83,
   2008). As long as two cores do not overlap, the shortest line between them is unique. It is the
   common normal of both surfaces, and it turns steadily as the shapes move. So the force has a
   potential, and energy is kept.

                z
                |      cap: part of a sphere of radius R, whose middle is at -k
             .--+--.
          .-'   |   '-.       A tablet is what two spheres and a cylinder have in common. Its core
         /______|______\      is the same with R, radius - rounding: another tablet, at the same k.
         |      +------|--    So caps and band stay where they are, and the edge between them is
         \'''''''''''''/      rounded, as that of a pressed tablet is.
          '-.       .-'
             '-----'          radius: of the band;  band: its height;  cap: the height of each cap

   The band bulges by half a hundredth of its height: on a straight one a tablet would touch a plane
   along a line, and the point where the force acts would jump from end to end. So every tablet is
   strictly convex, and wherever it touches, it touches in one point that moves steadily.

   To add a shape: a kind, a function that fills in the struct, and a case in shape_support.
   ---------------------------------------------------------------------------------------------- */

typedef enum shape_kind {
    SHAPE_NONE,                 /* the sizes made no shape */
    SHAPE_SPHERE,               /* core: a point */
    SHAPE_CAPSULE,              /* core: a line along z of length 2 size[0] */
    SHAPE_TABLET,               /* core: edges of radius size[0] at heights -size[1] and size[1];
                                   caps of radius size[2] about -size[3] and size[3]; the band is
                                   an arc of radius size[4] about size[5] from the axis */
    SHAPE_ELLIPSOID,            /* core: an ellipsoid with semi-axes size[0], size[1], size[2] */
    SHAPE_GLUED                 /* core: the hull of spheres, so concave places are filled */
} shape_kind;

enum { SHAPE_SPHERES = 8 };     /* most of SHAPE_GLUED */

/* The middle is the centre of mass, the axes are the principal ones. */
typedef struct shape {
    shape_kind kind;
    dem_real rounding;
    dem_real bound;             /* radius of the sphere about the middle that holds all */
    dem_real size[6];
    int32_t spheres;
    dem_real sphere[SHAPE_SPHERES][4]; /* x y z, radius of the core */
    dem_real volume, inertia[3];/* inertia per mass about x, y, z */
} shape;

/* -------------------------------------------------------------------------------------------------
   >>support
   ---------------------------------------------------------------------------------------------- */

/* What of a tablet has the normal n? across2 = n_x^2 + n_y^2, length2 = n . n. */
typedef enum shape_part { SHAPE_CAP, SHAPE_EDGE, SHAPE_BAND } shape_part;

DEM_FN shape_part shape_part_of(const dem_real *size, const dem_real n[3], dem_real across2,
                                dem_real length2)
{
    if (size[2] * size[2] * across2 <= size[0] * size[0] * length2) return SHAPE_CAP;
    return size[4] * size[4] * n[2] * n[2] < size[1] * size[1] * length2 ? SHAPE_BAND : SHAPE_EDGE;
}

DEM_FN void shape_support_tablet(const dem_real *size, const dem_real n[3], dem_real p[3])
{
    dem_real const across2 = n[0] * n[0] + n[1] * n[1], length2 = across2 + n[2] * n[2];
    dem_real const side = n[2] < 0 ? (dem_real)-1 : (dem_real)1;
    dem_real scale = 1 / dem_root(length2);
    switch (shape_part_of(size, n, across2, length2)) {
    case SHAPE_CAP:
        scale *= size[2];
        p[2] = scale * n[2] - side * size[3];
        break;
    case SHAPE_EDGE:
        scale = size[0] / dem_root(across2);
        p[2] = side * size[1];
        break;
    default:
        p[2] = size[4] * scale * n[2];
        scale = size[4] * scale + size[5] / dem_root(across2);
    }
    p[0] = scale * n[0];
    p[1] = scale * n[1];
}

DEM_FN void shape_support_ellipsoid(const dem_real *size, const dem_real n[3], dem_real p[3])
{
    dem_real const m[3] = {size[0] * n[0], size[1] * n[1], size[2] * n[2]};
    dem_real const length = dem_root(dem_dot(m, m));
    int a;
    for (a = 0; a < 3; a++) p[a] = length > 0 ? size[a] * m[a] / length : 0;
}

DEM_FN void shape_support_glued(const shape *s, const dem_real n[3], dem_real p[3])
{
    dem_real const length = dem_root(dem_dot(n, n));
    dem_real most = 0;
    int32_t k, best = 0;
    int a;
    for (k = 0; k < s->spheres; k++) {
        dem_real const here = dem_dot(s->sphere[k], n) + s->sphere[k][3] * length;
        if (k && !(here > most)) continue;
        most = here;
        best = k;
    }
    for (a = 0; a < 3; a++)
        p[a] = s->sphere[best][a] + s->sphere[best][3] * n[a] / length;
}

/* A point p of the core with the largest n . p; n is not 0, of any length. */
DEM_FN void shape_support(const shape *s, const dem_real n[3], dem_real p[3])
{
    p[0] = p[1] = p[2] = 0;
    switch (s->kind) {
    case SHAPE_CAPSULE: p[2] = n[2] < 0 ? -s->size[0] : s->size[0]; break;
    case SHAPE_TABLET: shape_support_tablet(s->size, n, p); break;
    case SHAPE_ELLIPSOID: shape_support_ellipsoid(s->size, n, p); break;
    case SHAPE_GLUED: shape_support_glued(s, n, p); break;
    default: break;
    }
}

/* y += (dp/dn) x: how the support point moves when n, of length 1, turns by x. A surface with the
   two radii of curvature along the meridian and round the axis. */
DEM_FN void shape_bend_round(dem_real meridian, dem_real round, const dem_real n[3],
                             dem_real across2, const dem_real x[3], dem_real y[3])
{
    dem_real const t[3] = {-n[1], n[0], 0};
    dem_add(y, meridian, x);
    dem_add(y, -meridian * dem_dot(n, x), n);
    if (across2 > 0) dem_add(y, (round - meridian) * dem_dot(t, x) / across2, t);
}

/* The same of any shape. Those without a case here have corners and edges only. */
DEM_FN void shape_bend(const shape *s, const dem_real n[3], const dem_real x[3], dem_real y[3])
{
    dem_real const across2 = n[0] * n[0] + n[1] * n[1], across = dem_root(across2);
    dem_real p[3], d[3], length;
    int a;
    if (s->kind == SHAPE_TABLET) {
        switch (shape_part_of(s->size, n, across2, 1)) {
        case SHAPE_CAP: shape_bend_round(s->size[2], s->size[2], n, across2, x, y); break;
        case SHAPE_EDGE: shape_bend_round(0, s->size[0] / across, n, across2, x, y); break;
        default:
            shape_bend_round(s->size[4], s->size[4] + s->size[5] / across, n, across2, x, y);
        }
    } else if (s->kind == SHAPE_ELLIPSOID) {
        shape_support_ellipsoid(s->size, n, p);
        length = dem_dot(p, n);
        for (a = 0; a < 3; a++) d[a] = s->size[a] * s->size[a] * x[a];
        dem_add(y, 1 / length, d);
        dem_add(y, -dem_dot(p, x) / length, p);
    }
}

/* -------------------------------------------------------------------------------------------------
   >>mass: in double; for the host

   Shapes of revolution are discs of radius r(z) along z:

       volume = pi sum r^2 dz      volume I_z = pi/2 sum r^4 dz      volume I_x = pi sum (r^4/4 +
                                                                                       z^2 r^2) dz

   Their outlines are arcs, r = r0 + R sin t, z = z0 + R cos t. The integrands are polynomials of
   sin t and cos t, for which Gauss's rule of 8 points, on eight parts of an arc, leaves nothing but
   rounding.
   ---------------------------------------------------------------------------------------------- */

/* {volume, volume I_x, volume I_z} of the discs that one arc bounds. */
static inline void shape_arc(double r0, double z0, double radius, double from, double to,
                             double sum[3])
{
    static const double node[4] = {0.18343464249564980, 0.52553240991632899, 0.79666647741362674,
                                   0.96028985649753623};
    static const double weight[4] = {0.36268378337836198, 0.31370664587788729, 0.22238103445337447,
                                     0.10122853629037626};
    double const half = (to - from) / 16;
    int part, k;
    for (part = 0; part < 8; part++)
        for (k = 0; k < 8; k++) {
            double const t = from + half * (2 * part + 1 + (k % 2 ? -1 : 1) * node[k / 2]);
            double const r = r0 + radius * sin(t), z = z0 + radius * cos(t), r2 = r * r;
            double const dz = half * weight[k / 2] * radius * sin(t) * 3.14159265358979323846;
            sum[0] += r2 * dz;
            sum[1] += (r2 * r2 / 4 + z * z * r2) * dz;
            sum[2] += r2 * r2 / 2 * dz;
        }
}

/* The same of a cylinder from -half to half. */
static inline void shape_cylinder(double r, double half, double sum[3])
{
    double const volume = 2 * 3.14159265358979323846 * r * r * half;
    sum[0] += volume;
    sum[1] += volume * (r * r / 4 + half * half / 3);
    sum[2] += volume * r * r / 2;
}

static inline void shape_set_mass(shape *s, double volume, double x, double y, double z)
{
    s->volume = (dem_real)volume;
    s->inertia[0] = (dem_real)(x / volume);
    s->inertia[1] = (dem_real)(y / volume);
    s->inertia[2] = (dem_real)(z / volume);
}

/* One tetrahedron from the middle to a triangle of the surface: volume, and the integrals of x^2,
   y^2, z^2. */
static inline void shape_tetrahedron(const double a[3], const double b[3], const double c[3],
                                     double sum[4])
{
    double const volume = (a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) +
                           a[2] * (b[0] * c[1] - b[1] * c[0])) / 6;
    int k;
    sum[0] += volume;
    for (k = 0; k < 3; k++)
        sum[k + 1] += volume / 10 * (a[k] * a[k] + b[k] * b[k] + c[k] * c[k] + a[k] * b[k] +
                                     b[k] * c[k] + c[k] * a[k]);
}

/* The point of the surface with the normal of latitude and longitude. */
static inline void shape_surface(const shape *s, double latitude, double longitude, double p[3])
{
    double const n[3] = {cos(latitude) * cos(longitude), cos(latitude) * sin(longitude),
                         sin(latitude)};
    dem_real const m[3] = {(dem_real)n[0], (dem_real)n[1], (dem_real)n[2]};
    dem_real q[3];
    int a;
    shape_support(s, m, q);
    for (a = 0; a < 3; a++) p[a] = (double)q[a] + (double)s->rounding * n[a];
}

/* Volume and inertia of any shape from 65 thousand points of its surface: some parts in 10^4 too
   small. */
static inline void shape_measure(const shape *s, double *volume, double inertia[3])
{
    enum { LINES = 180 };
    double const pi = 3.14159265358979323846;
    double sum[4] = {0, 0, 0, 0};
    int i, j, k;
    for (i = 0; i < LINES; i++)
        for (j = 0; j < 2 * LINES; j++) {
            double corner[4][3];
            for (k = 0; k < 4; k++)
                shape_surface(s, pi * ((i + k / 2) / (double)LINES - 0.5),
                              pi * (j + (k % 2)) / LINES, corner[k]);
            shape_tetrahedron(corner[0], corner[1], corner[3], sum);
            shape_tetrahedron(corner[0], corner[3], corner[2], sum);
        }
    *volume = sum[0];
    inertia[0] = (sum[2] + sum[3]) / sum[0];
    inertia[1] = (sum[3] + sum[1]) / sum[0];
    inertia[2] = (sum[1] + sum[2]) / sum[0];
}

static inline void shape_set_measured(shape *s)
{
    double volume, inertia[3];
    shape_measure(s, &volume, inertia);
    shape_set_mass(s, volume, volume * inertia[0], volume * inertia[1], volume * inertia[2]);
}

static inline shape shape_new(shape_kind kind, double rounding, double bound)
{
    shape s;
    memset(&s, 0, sizeof s);
    s.kind = kind;
    s.rounding = (dem_real)rounding;
    s.bound = (dem_real)bound;
    return s;
}

static inline shape shape_sphere(double radius)
{
    double sum[3] = {0, 0, 0};
    shape s = shape_new(radius > 0 ? SHAPE_SPHERE : SHAPE_NONE, radius, radius);
    shape_arc(0, 0, radius, 0, 3.14159265358979323846, sum);
    shape_set_mass(&s, sum[0], sum[1], sum[1], sum[2]);
    return s;
}

/* A cylinder of that length, and half a sphere at each end. */
static inline shape shape_capsule(double radius, double length)
{
    double const half = length / 2, quarter = 3.14159265358979323846 / 2;
    double sum[3] = {0, 0, 0};
    shape s = shape_new(radius > 0 && length >= 0 ? SHAPE_CAPSULE : SHAPE_NONE, radius,
                        radius + half);
    s.size[0] = (dem_real)half;
    shape_arc(0, half, radius, 0, quarter, sum);
    shape_arc(0, -half, radius, quarter, 2 * quarter, sum);
    shape_cylinder(radius, half, sum);
    shape_set_mass(&s, sum[0], sum[1], sum[1], sum[2]);
    return s;
}

/* As in the figure. 0 < cap <= radius; rounding: above 0, and so small that the core has a band
   (SHAPE_NONE otherwise). */
static inline shape shape_tablet(double radius, double band, double cap, double rounding)
{
    double const big = (radius * radius + cap * cap) / (2 * cap), k = big - cap - band / 2;
    double const bulge = 0.005 * band, core = big - rounding, edge = radius - rounding - bulge;
    double const half = sqrt(core * core - edge * edge) - k;
    double const barrel = (half * half + bulge * bulge) / (2 * bulge),
                 middle = edge + bulge - barrel;
    double const lean = asin(edge / core), rise = acos(half / barrel); /* normals at the edge */
    double sum[3] = {0, 0, 0};
    int const fits = band > 0 && cap > 0 && cap <= radius && rounding > 0 && edge > 0 && half > 0;
    shape s = shape_new(fits ? SHAPE_TABLET : SHAPE_NONE, rounding, fmax(cap + band / 2, radius));
    double const sizes[6] = {edge, half, core, k, barrel, middle};
    int a;
    for (a = 0; a < 6; a++) s.size[a] = (dem_real)sizes[a];
    s.bound = (dem_real)fmax((double)s.bound, sqrt(edge * edge + half * half) + rounding);
    shape_arc(0, -k, big, 0, lean, sum);
    shape_arc(edge, half, rounding, lean, rise, sum);
    shape_arc(middle, 0, barrel + rounding, rise, 3.14159265358979323846 / 2, sum);
    for (a = 0; a < 3; a++) sum[a] *= 2; /* the other half */
    shape_set_mass(&s, sum[0], sum[1], sum[1], sum[2]);
    return s;
}

/* Semi-axes a, b, c: the surface at the distance `rounding` from the ellipsoid with that much
   smaller axes. It meets the ellipsoid with axes a, b, c in six points, and is outside of it
   elsewhere. */
static inline shape shape_ellipsoid(double a, double b, double c, double rounding)
{
    double const least = fmin(a, fmin(b, c));
    shape s = shape_new(rounding > 0 && least > rounding ? SHAPE_ELLIPSOID : SHAPE_NONE, rounding,
                        fmax(a, fmax(b, c)));
    s.size[0] = (dem_real)(a - rounding);
    s.size[1] = (dem_real)(b - rounding);
    s.size[2] = (dem_real)(c - rounding);
    shape_set_measured(&s);
    return s;
}

/* The hull of 1 .. SHAPE_SPHERES spheres {x, y, z, radius}. Their common centre of mass must be the
   origin, and the axes their principal ones, which symmetry does. */
static inline shape shape_glued(const double (*sphere)[4], int32_t count)
{
    int const fits = count >= 1 && count <= SHAPE_SPHERES;
    shape s = shape_new(fits ? SHAPE_GLUED : SHAPE_NONE, fits ? sphere[0][3] : 0, 0);
    int32_t k;
    int a;
    if (!fits) return s;
    for (k = 0; k < count; k++)
        if ((dem_real)sphere[k][3] < s.rounding) s.rounding = (dem_real)sphere[k][3];
    if (!(s.rounding > 0)) s.kind = SHAPE_NONE;
    s.spheres = count;
    for (k = 0; k < count; k++) {
        for (a = 0; a < 3; a++) s.sphere[k][a] = (dem_real)sphere[k][a];
        s.sphere[k][3] = (dem_real)sphere[k][3] - s.rounding;
        s.bound = (dem_real)fmax((double)s.bound,
                                 sqrt(sphere[k][0] * sphere[k][0] + sphere[k][1] * sphere[k][1] +
                                      sphere[k][2] * sphere[k][2]) + sphere[k][3]);
    }
    shape_set_measured(&s);
    return s;
}

/* -------------------------------------------------------------------------------------------------
   >>placed
   ---------------------------------------------------------------------------------------------- */

/* shape: axes are those of the body, by rows. NULL: a triangle, axes are its corners. */
typedef struct shape_placed {
    const shape *body;
    dem_real axes[3][3], middle[3];
} shape_placed;

/* The axes of a body that is turned by the quaternion w, x, y, z of length 1. */
DEM_FN void shape_axes(const dem_real q[4], dem_real axes[3][3])
{
    dem_real const w = q[0], x = q[1], y = q[2], z = q[3];
    axes[0][0] = 1 - 2 * (y * y + z * z);
    axes[0][1] = 2 * (x * y + w * z);
    axes[0][2] = 2 * (x * z - w * y);
    axes[1][0] = 2 * (x * y - w * z);
    axes[1][1] = 1 - 2 * (x * x + z * z);
    axes[1][2] = 2 * (y * z + w * x);
    axes[2][0] = 2 * (x * z + w * y);
    axes[2][1] = 2 * (y * z - w * x);
    axes[2][2] = 1 - 2 * (x * x + y * y);
}

DEM_FN shape_placed shape_place(const shape *s, const dem_real turn[4], const dem_real middle[3])
{
    shape_placed placed;
    int a;
    placed.body = s;
    shape_axes(turn, placed.axes);
    for (a = 0; a < 3; a++) placed.middle[a] = middle[a];
    return placed;
}

/* The point of the placed core that is furthest in the direction of `sign` n. */
DEM_FN void shape_furthest(const shape_placed *s, dem_real sign, const dem_real n[3],
                           dem_real p[3])
{
    dem_real along[3], q[3];
    int a, best = 0;
    for (a = 0; a < 3; a++) along[a] = sign * dem_dot(s->axes[a], n);
    if (!s->body) {
        for (a = 1; a < 3; a++)
            if (along[a] > along[best]) best = a;
        for (a = 0; a < 3; a++) p[a] = s->axes[best][a];
        return;
    }
    shape_support(s->body, along, q);
    for (a = 0; a < 3; a++)
        p[a] = s->middle[a] + q[0] * s->axes[0][a] + q[1] * s->axes[1][a] + q[2] * s->axes[2][a];
}

/* y += how the support point of the placed core moves along x, when the direction `sign` n turns
   by `sign` x. */
DEM_FN void shape_placed_bend(const shape_placed *s, dem_real sign, const dem_real n[3],
                              const dem_real x[3], dem_real y[3])
{
    dem_real m[3], turned[3], moved[3] = {0, 0, 0};
    int a;
    if (!s->body) return;
    for (a = 0; a < 3; a++) {
        m[a] = sign * dem_dot(s->axes[a], n);
        turned[a] = dem_dot(s->axes[a], x);
    }
    shape_bend(s->body, m, turned, moved);
    for (a = 0; a < 3; a++) dem_add(y, moved[a], s->axes[a]);
}

/* -------------------------------------------------------------------------------------------------
   >>nearest: the point of a line, triangle or tetrahedron that is closest to the origin (C.
   Ericson, Real-Time Collision Detection, 2005, 5.1). t: the weights of the corners, which add up
   to 1; 0 for corners that it does not need.
   ---------------------------------------------------------------------------------------------- */

/* The square of a length is known to this part of it, by rounding; a direction to its square
   root. */
#define SHAPE_EXACT (sizeof(dem_real) == 4 ? (dem_real)1e-6 : (dem_real)1e-13)

DEM_FN void shape_nearest_line(const dem_real *a, const dem_real *b, dem_real *ta, dem_real *tb)
{
    dem_real const d[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
    dem_real const along = -dem_dot(a, d), length2 = dem_dot(d, d);
    *tb = !(along > 0) ? 0 : along >= length2 ? 1 : along / length2;
    *ta = 1 - *tb;
}

DEM_FN void shape_nearest_triangle(const dem_real *a, const dem_real *b, const dem_real *c,
                                   dem_real *ta, dem_real *tb, dem_real *tc)
{
    dem_real const ab[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]},
                   ac[3] = {c[0] - a[0], c[1] - a[1], c[2] - a[2]};
    dem_real const d1 = -dem_dot(ab, a), d2 = -dem_dot(ac, a), d3 = -dem_dot(ab, b),
                   d4 = -dem_dot(ac, b), d5 = -dem_dot(ab, c), d6 = -dem_dot(ac, c);
    dem_real const va = d3 * d6 - d5 * d4, vb = d5 * d2 - d1 * d6, vc = d1 * d4 - d3 * d2;
    dem_real const all = va + vb + vc;
    *ta = *tb = *tc = 0;
    if (d1 <= 0 && d2 <= 0) {
        *ta = 1;
    } else if (d3 >= 0 && d4 <= d3) {
        *tb = 1;
    } else if (d6 >= 0 && d5 <= d6) {
        *tc = 1;
    } else if (vc <= 0 && d1 >= 0 && d3 <= 0) {
        shape_nearest_line(a, b, ta, tb);
    } else if (vb <= 0 && d2 >= 0 && d6 <= 0) {
        shape_nearest_line(a, c, ta, tc);
    } else if (va <= 0) {
        shape_nearest_line(b, c, tb, tc);
    } else {
        *ta = va / all;
        *tb = vb / all;
        *tc = vc / all;
    }
}

/* sum of t[k] w[k] */
DEM_FN void shape_blend(int count, dem_real w[4][3], const dem_real t[4], dem_real p[3])
{
    int k;
    p[0] = p[1] = p[2] = 0;
    for (k = 0; k < count; k++) dem_add(p, t[k], w[k]);
}

/* Is the origin on the side of a, b, c where d is not? Also where rounding leaves it open. */
DEM_FN int shape_outside(const dem_real *a, const dem_real *b, const dem_real *c, const dem_real *d)
{
    dem_real const ab[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]},
                   ac[3] = {c[0] - a[0], c[1] - a[1], c[2] - a[2]},
                   ad[3] = {d[0] - a[0], d[1] - a[1], d[2] - a[2]};
    dem_real n[3], here, there, least;
    dem_cross(ab, ac, n);
    here = dem_dot(a, n);
    there = dem_dot(ad, n);
    least = SHAPE_EXACT * dem_dot(n, n);
    return !(here * there < 0 && here * here > least * dem_dot(a, a) &&
             there * there > least * dem_dot(ad, ad));
}

/* 0: the origin is inside. */
DEM_FN int shape_nearest_tetrahedron(dem_real w[4][3], dem_real t[4])
{
    static const int face[4][4] = {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 3, 1}, {1, 2, 3, 0}};
    dem_real least = 0;
    int f, found = 0;
    for (f = 0; f < 4; f++) {
        const int *k = face[f];
        dem_real trial[4] = {0, 0, 0, 0}, p[3];
        if (!shape_outside(w[k[0]], w[k[1]], w[k[2]], w[k[3]])) continue;
        shape_nearest_triangle(w[k[0]], w[k[1]], w[k[2]], &trial[k[0]], &trial[k[1]],
                               &trial[k[2]]);
        shape_blend(4, w, trial, p);
        if (found && !(dem_dot(p, p) < least)) continue;
        least = dem_dot(p, p);
        t[0] = trial[0];
        t[1] = trial[1];
        t[2] = trial[2];
        t[3] = trial[3];
        found = 1;
    }
    return found;
}

/* -------------------------------------------------------------------------------------------------
   >>contact: the common normal

   The points p of core A and q of core B that are closest to each other: v = p - q is the point
   closest to the origin of all differences of the two. It is searched in triangles and lines
   between a few of these differences; each round adds the one furthest against v (E. G. Gilbert,
   D. W. Johnson, S. S. Keerthi, IEEE Journal of Robotics and Automation 4, 1988; G. van den Bergen,
   A fast and robust GJK implementation, Journal of Graphics Tools 4, 1999). Along v both surfaces
   have the same normal, so this is the contact of two bi-convex tablets that M. Kodam et al. define
   (Discrete element method modeling of bi-convex pharmaceutical tablets, Chemical Engineering
   Science 69, 2012). They treat cap, band and edge against each other, case by case; here one
   search serves all shapes.

   Flat shapes end after a few rounds. On curved ones triangles close in slowly, 45 rounds to the
   last digit of a double, so Newton's method takes over after a few. It turns n, from A to B, until
   the support points p of A and q of B lie on a common normal. With w = q - p the gap n . w is
   largest there, and its derivatives on the unit sphere are

       gradient = w_t, the part of w across n         second derivative = -(H_A + H_B + n . w)

   with H from shape_bend. While the cores are apart this has a solution in every point; where
   Newton's method finds none in a few steps, such as at corners, the rounds go on.
   ---------------------------------------------------------------------------------------------- */

/* How many rounds at most, after how many Newton's method is tried, and its steps. */
enum { SHAPE_ROUNDS = 60, SHAPE_ROUGH = 3, SHAPE_STEPS = 6 };
/* When w_t is small enough, in parts of w. */
#define SHAPE_ACROSS (sizeof(dem_real) == 4 ? (dem_real)1e-5 : (dem_real)1e-11)

typedef enum shape_result { SHAPE_APART, SHAPE_TOUCH, SHAPE_DEEP } shape_result;

/* n: the common normal, from A to B, length 1; at: the middle of the overlap. */
typedef struct shape_touch { dem_real n[3], at[3], overlap; } shape_touch;

/* Differences of the cores, w = a - b, with the points a of A; t: weights of the closest point. */
typedef struct shape_simplex {
    dem_real w[4][3], a[4][3], t[4];
    int count;
} shape_simplex;

/* t of the closest point; corners that it does not need are dropped. 0: the origin is inside. */
DEM_FN int shape_nearest(shape_simplex *s)
{
    int from, to = 0, a;
    for (a = 0; a < 4; a++) s->t[a] = 0;
    if (s->count == 1) s->t[0] = 1;
    else if (s->count == 2) shape_nearest_line(s->w[0], s->w[1], &s->t[0], &s->t[1]);
    else if (s->count == 3)
        shape_nearest_triangle(s->w[0], s->w[1], s->w[2], &s->t[0], &s->t[1], &s->t[2]);
    else if (!shape_nearest_tetrahedron(s->w, s->t)) return 0;
    for (from = 0; from < s->count; from++) {
        if (!(s->t[from] > 0)) continue;
        for (a = 0; a < 3; a++) {
            s->w[to][a] = s->w[from][a];
            s->a[to][a] = s->a[from][a];
        }
        s->t[to++] = s->t[from];
    }
    s->count = to;
    for (a = to; a < 4; a++) s->t[a] = 0;
    return 1;
}

/* Adds the difference furthest against v. */
DEM_FN void shape_extend(shape_simplex *s, const shape_placed *a, const shape_placed *b,
                         const dem_real v[3])
{
    dem_real *w = s->w[s->count], *p = s->a[s->count];
    dem_real q[3];
    int k;
    shape_furthest(a, -1, v, p);
    shape_furthest(b, 1, v, q);
    for (k = 0; k < 3; k++) w[k] = p[k] - q[k];
}

/* Is the last difference one of those before it? */
DEM_FN int shape_known(const shape_simplex *s)
{
    const dem_real *w = s->w[s->count];
    int k;
    for (k = 0; k < s->count; k++)
        if (s->w[k][0] == w[0] && s->w[k][1] == w[1] && s->w[k][2] == w[2]) return 1;
    return 0;
}

/* Two directions across n and each other, of length 1. */
DEM_FN void shape_across(const dem_real n[3], dem_real e[2][3])
{
    dem_real axis[3] = {0, 0, 0}, scale;
    int a;
    axis[n[0] * n[0] < (dem_real)0.5 ? 0 : 1] = 1;
    dem_cross(n, axis, e[0]);
    scale = 1 / dem_root(dem_dot(e[0], e[0]));
    for (a = 0; a < 3; a++) e[0][a] *= scale;
    dem_cross(n, e[0], e[1]);
}

/* A step of Newton's method: n turns by what w asks for. */
DEM_FN void shape_turn(const shape_placed *a, const shape_placed *b, const dem_real w[3],
                       dem_real n[3])
{
    dem_real const gap = dem_dot(n, w);
    dem_real e[2][3], m[2][2], f[2], det, scale;
    int i, k;
    shape_across(n, e);
    for (i = 0; i < 2; i++) {
        dem_real bent[3] = {0, 0, 0};
        shape_placed_bend(a, 1, n, e[i], bent);
        shape_placed_bend(b, -1, n, e[i], bent);
        for (k = 0; k < 2; k++) m[i][k] = dem_dot(e[k], bent) + (i == k ? gap : 0);
        f[i] = dem_dot(e[i], w);
    }
    det = m[0][0] * m[1][1] - m[0][1] * m[1][0];
    dem_add(n, (f[0] * m[1][1] - f[1] * m[0][1]) / det, e[0]);
    dem_add(n, (f[1] * m[0][0] - f[0] * m[1][0]) / det, e[1]);
    scale = 1 / dem_root(dem_dot(n, n));
    for (k = 0; k < 3; k++) n[k] *= scale;
}

/* v and p as shape_between has them, from a v that is nearly right. SHAPE_APART: by more than
   `reach` along the v that it leaves. SHAPE_DEEP: not found, nothing has changed. */
DEM_FN shape_result shape_newton(const shape_placed *a, const shape_placed *b, dem_real reach,
                                 dem_real v[3], dem_real p[3])
{
    dem_real const scale = -1 / dem_root(dem_dot(v, v));
    dem_real n[3] = {scale * v[0], scale * v[1], scale * v[2]}, w[3], from[3], gap, w2;
    int step, k;
    for (step = 0; step < SHAPE_STEPS; step++) {
        shape_furthest(a, 1, n, from);
        shape_furthest(b, -1, n, w);
        dem_add(w, -1, from);
        gap = dem_dot(n, w);
        w2 = dem_dot(w, w);
        if (!(gap > 0)) return SHAPE_DEEP;
        dem_add(w, -gap, n);
        if (gap > reach || dem_dot(w, w) <= SHAPE_ACROSS * SHAPE_ACROSS * w2) {
            for (k = 0; k < 3; k++) {
                v[k] = -gap * n[k];
                p[k] = from[k];
            }
            return gap > reach ? SHAPE_APART : SHAPE_TOUCH;
        }
        dem_add(w, gap, n);
        shape_turn(a, b, w, n);
    }
    return SHAPE_DEEP;
}

/* Is Newton's method to be tried after this round? */
DEM_FN int shape_is_rough(int round) { return round > 0 && round % SHAPE_ROUGH == 0; }

/* v: the shortest line from B to A, and p: its end at A. SHAPE_APART: they are known to be further
   apart than `reach`; SHAPE_DEEP: they overlap. v begins as any vector but 0. */
DEM_FN shape_result shape_between(const shape_placed *a, const shape_placed *b, dem_real reach,
                                  dem_real v[3], dem_real p[3])
{
    shape_simplex s;
    shape_result found;
    int round, k, separate = 0;
    s.count = 0;
    for (round = 0; round < SHAPE_ROUNDS; round++) {
        dem_real const v2 = dem_dot(v, v);
        dem_real along, shorter[3];
        shape_extend(&s, a, b, v);
        along = dem_dot(v, s.w[s.count]);
        if (along > 0 && along * along > reach * reach * v2) return SHAPE_APART;
        if (s.count && (v2 - along <= SHAPE_EXACT * v2 || shape_known(&s))) break;
        if (along > SHAPE_EXACT * v2) separate = 1; /* by a plane across v, whatever comes */
        s.count++;
        if (!shape_nearest(&s)) {
            if (separate) break;
            return SHAPE_DEEP;
        }
        shape_blend(s.count, s.w, s.t, shorter);
        if (!(dem_dot(shorter, shorter) > SHAPE_EXACT * dem_dot(s.w[0], s.w[0]))) return SHAPE_DEEP;
        if (round && !(dem_dot(shorter, shorter) < v2)) break; /* by rounding */
        for (k = 0; k < 3; k++) v[k] = shorter[k];
        shape_blend(s.count, s.a, s.t, p);
        if (!shape_is_rough(round)) continue;
        found = shape_newton(a, b, reach, v, p);
        if (found != SHAPE_DEEP) return found;
    }
    return SHAPE_TOUCH;
}

/* v: from the middle of B, which may be a triangle, to that of A. */
DEM_FN void shape_middles(const shape_placed *a, const shape_placed *b, dem_real v[3])
{
    int k;
    for (k = 0; k < 3; k++)
        v[k] = a->middle[k] - (b->body ? b->middle[k]
                                       : (b->axes[0][k] + b->axes[1][k] + b->axes[2][k]) / 3);
    if (!(dem_dot(v, v) > 0)) v[0] = 1;
}

/* Two placed shapes, or a shape and a triangle. SHAPE_DEEP: the overlap is larger than the
   roundings, and there is no normal: use smaller steps, a stiffer material or larger roundings.

   way: a direction from A to B that may be close to the common normal, such as that of the last
   step; 0 0 0: none is known. Newton's method begins with it, and the search only where that finds
   nothing. It may be wrong: there is one common normal, so both find the same. Afterwards way is
   the normal or, where they are apart, a direction along which they are. */
DEM_FN shape_result shape_contact_from(const shape_placed *a, const shape_placed *b,
                                       dem_real way[3], shape_touch *touch)
{
    dem_real const ra = a->body->rounding, rb = b->body ? b->body->rounding : 0;
    dem_real v[3] = {-way[0], -way[1], -way[2]}, apart;
    shape_result found = SHAPE_DEEP;
    int k;
    if (dem_dot(v, v) > 0) found = shape_newton(a, b, ra + rb, v, touch->at);
    if (found == SHAPE_DEEP) {
        shape_middles(a, b, v);
        found = shape_between(a, b, ra + rb, v, touch->at);
    }
    for (k = 0; k < 3; k++) way[k] = found == SHAPE_DEEP ? 0 : -v[k];
    if (found != SHAPE_TOUCH) return found;
    apart = dem_root(dem_dot(v, v));
    touch->overlap = ra + rb - apart;
    if (!(touch->overlap > 0)) return SHAPE_APART;
    for (k = 0; k < 3; k++) touch->n[k] = -v[k] / apart;
    dem_add(touch->at, (ra + apart - rb) / 2, touch->n);
    return SHAPE_TOUCH;
}

/* The same where nothing is known. */
DEM_FN shape_result shape_contact(const shape_placed *a, const shape_placed *b, shape_touch *touch)
{
    dem_real way[3] = {0, 0, 0};
    return shape_contact_from(a, b, way, touch);
}

/* The plane normal . x = offset; normal, of length 1, points to where the shape is. */
DEM_FN shape_result shape_plane(const shape_placed *a, const dem_real normal[3], dem_real offset,
                                shape_touch *touch)
{
    dem_real const rounding = a->body->rounding;
    int k;
    shape_furthest(a, -1, normal, touch->at);
    touch->overlap = rounding - (dem_dot(touch->at, normal) - offset);
    if (!(touch->overlap > 0)) return SHAPE_APART;
    for (k = 0; k < 3; k++) touch->n[k] = -normal[k];
    dem_add(touch->at, rounding - touch->overlap / 2, touch->n);
    return SHAPE_TOUCH;
}

/* Is p above or below the inside of the triangle with the normal m of any length? */
DEM_FN int shape_faces(const dem_real *const corner[3], const dem_real m[3], const dem_real p[3])
{
    int v, k;
    for (v = 0; v < 3; v++) {
        const dem_real *from = corner[v], *to = corner[(v + 1) % 3];
        dem_real side[3], d[3], c[3];
        for (k = 0; k < 3; k++) {
            side[k] = to[k] - from[k];
            d[k] = p[k] - from[k];
        }
        dem_cross(side, d, c);
        if (!(dem_dot(c, m) > 0)) return 0;
    }
    return 1;
}

/* The part of the line from one corner to the other that is in the sphere around the shape, as a
   triangle: 0 where there is none. Lines that are long beside the shape would cost digits. */
DEM_FN int shape_part_of_line(const shape_placed *a, const dem_real *from, const dem_real *to,
                              shape_placed *part)
{
    dem_real d[3], away[3], length2, along, across2, half;
    int v, k;
    for (k = 0; k < 3; k++) {
        d[k] = to[k] - from[k];
        away[k] = a->middle[k] - from[k];
    }
    length2 = dem_dot(d, d);
    along = length2 > 0 ? dem_dot(away, d) / length2 : 0;
    dem_add(away, -along, d);
    across2 = a->body->bound * a->body->bound - dem_dot(away, away);
    if (!(across2 >= 0)) return 0;
    half = length2 > 0 ? dem_root(across2 / length2) : 0;
    if (along - half > 1 || along + half < 0) return 0;
    part->body = NULL;
    for (v = 0; v < 3; v++) {
        dem_real const t = v ? along + half : along - half;
        for (k = 0; k < 3; k++) {
            part->axes[v][k] = t < 1 ? from[k] : to[k];
            if (t > 0 && t < 1) part->axes[v][k] += t * d[k];
        }
    }
    return 1;
}

/* Where the shape is closest to the edges and corners of a triangle. */
DEM_FN shape_result shape_outline(const shape_placed *a, const dem_real *const corner[3],
                                  shape_touch *touch)
{
    shape_result best = SHAPE_APART;
    int v;
    for (v = 0; v < 3; v++) {
        shape_placed part;
        shape_touch here;
        shape_result found;
        if (!shape_part_of_line(a, corner[v], corner[(v + 1) % 3], &part)) continue;
        found = shape_contact(a, &part, &here);
        if (found == SHAPE_DEEP) return SHAPE_DEEP;
        if (found == SHAPE_APART || (best == SHAPE_TOUCH && !(here.overlap > touch->overlap)))
            continue;
        *touch = here;
        best = SHAPE_TOUCH;
    }
    return best;
}

/* Above the inside of the triangle it is a plane; elsewhere the closest point is on its outline, as
   the distance of a convex core has one minimum in the plane. */
DEM_FN shape_result shape_triangle(const shape_placed *a, const dem_real *const corner[3],
                                   shape_touch *touch)
{
    shape_placed b;
    dem_real ab[3], ac[3], m[3], length;
    int v, k;
    b.body = NULL;
    for (v = 0; v < 3; v++)
        for (k = 0; k < 3; k++) b.axes[v][k] = corner[v][k];
    for (k = 0; k < 3; k++) {
        ab[k] = corner[1][k] - corner[0][k];
        ac[k] = corner[2][k] - corner[0][k];
    }
    dem_cross(ab, ac, m);
    length = dem_root(dem_dot(m, m));
    if (length > 0) {
        dem_real const to = dem_dot(m, a->middle) < dem_dot(m, corner[0]) ? -length : length;
        for (k = 0; k < 3; k++) m[k] /= to;
        shape_furthest(a, -1, m, ab);
        for (k = 0; k < 3; k++) ac[k] = to * m[k];
        if (shape_faces(corner, ac, ab))
            return dem_dot(m, ab) > dem_dot(m, corner[0])
                       ? shape_plane(a, m, dem_dot(m, corner[0]), touch)
                       : shape_contact(a, &b, touch); /* deep, most often */
    }
    return shape_outline(a, corner, touch);
}

#endif /* SHAPES_H */
