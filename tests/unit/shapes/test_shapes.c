/* test_shapes.c - examples/common/shapes.h: contacts of convex shapes, mass and inertia; and
   examples/common/dem_shapes.h: rotation.
   SPDX-License-Identifier: MIT OR Unlicense

   The oracle knows no support function. It knows the point of a core that is closest to any point,
   from the outline of the core, and brings two points, one on each surface, as near to each other
   as they go, in double (projected gradient with momentum: A. Beck, M. Teboulle, SIAM Journal on
   Imaging Sciences 2, 2009). Other cases are worked out on paper. */

#include "lbvh.h"
#include "nlist.h"
#include "examples/common/dem_shapes.h"
#include "examples/common/random.h"
#define TESTED nlist
#include "../../common/testing.h"

#define TURN 3.14159265358979323846

/* ---- the oracle: the closest point of a core, in its own axes ---- */

static double length2(double x, double y) { return sqrt(x * x + y * y); }

/* The outline of a tablet's core, r >= 0 and z >= 0: an arc of the cap, then one of the band. What
   is closest to (r, z) outside of it. */
static void closest_on_outline(const double size[6], double *r, double *z)
{
    double const up = *z + size[3], cap = length2(*r, up), out = *r - size[5],
                 band = length2(out, *z);
    if (cap > 0 && *r / cap * size[2] <= size[0] && up > 0 && *z > size[1]) {
        if (cap <= size[2]) return;
        *r *= size[2] / cap;
        *z = up * size[2] / cap - size[3];
    } else if (out > 0 && *z / band * size[4] <= size[1]) {
        if (band <= size[4]) return;
        *r = size[5] + out * size[4] / band;
        *z *= size[4] / band;
    } else if (cap > size[2] || band > size[4]) {
        *r = size[0];
        *z = size[1];
    }
}

static void closest_of_tablet(const shape *s, double p[3])
{
    double size[6], r = length2(p[0], p[1]), z = fabs(p[2]);
    double const before = r, side = p[2] < 0 ? -1 : 1;
    int k;
    for (k = 0; k < 6; k++) size[k] = (double)s->size[k];
    closest_on_outline(size, &r, &z);
    if (before > 0) p[0] *= r / before;
    if (before > 0) p[1] *= r / before;
    p[2] = side * z;
}

/* sum (a_k p_k / (a_k^2 + t))^2 = 1, by halving; t >= 0 outside. */
static void closest_of_ellipsoid(const shape *s, double p[3])
{
    double low = 0, high = 0;
    int k, round;
    for (k = 0; k < 3; k++) high += fabs((double)s->size[k] * p[k]);
    for (round = 0; round < 200; round++) {
        double const t = (low + high) / 2;
        double sum = 0;
        for (k = 0; k < 3; k++) {
            double const a = (double)s->size[k], x = a * p[k] / (a * a + t);
            sum += x * x;
        }
        if (sum > 1) low = t;
        else high = t;
    }
    for (k = 0; k < 3 && high > 1e-12; k++) {
        double const a = (double)s->size[k];
        p[k] *= a * a / (a * a + low);
    }
}

/* The core of eight equal spheres at the corners of a block is the block. */
static void closest_of_block(const shape *s, double p[3])
{
    int k;
    for (k = 0; k < 3; k++) {
        double const most = fabs((double)s->sphere[0][k]);
        p[k] = fmax(-most, fmin(most, p[k]));
    }
}

static void closest_of(const shape *s, double p[3])
{
    switch (s->kind) {
    case SHAPE_CAPSULE:
        p[0] = p[1] = 0;
        p[2] = fmax(-(double)s->size[0], fmin((double)s->size[0], p[2]));
        break;
    case SHAPE_TABLET: closest_of_tablet(s, p); break;
    case SHAPE_ELLIPSOID: closest_of_ellipsoid(s, p); break;
    case SHAPE_GLUED: closest_of_block(s, p); break;
    default: p[0] = p[1] = p[2] = 0;
    }
}

static void closest_of_corners(const shape_placed *s, const double p[3], double q[3])
{
    nlist_real corner[9], from[3], found[3];
    nlist_mesh mesh = {0};
    int k;
    for (k = 0; k < 9; k++) corner[k] = s->axes[k / 3][k % 3];
    for (k = 0; k < 3; k++) from[k] = (nlist_real)p[k];
    mesh.vertices = corner;
    mesh.triangles = 1;
    (void)nlist_mesh_closest(&mesh, 0, from, found);
    for (k = 0; k < 3; k++) q[k] = (double)found[k];
}

static void closest_of_placed(const shape_placed *s, const double p[3], double q[3])
{
    double own[3] = {0, 0, 0};
    int a, k;
    if (!s->body) {
        closest_of_corners(s, p, q);
        return;
    }
    for (a = 0; a < 3; a++)
        for (k = 0; k < 3; k++) own[a] += (double)s->axes[a][k] * (p[k] - (double)s->middle[k]);
    closest_of(s->body, own);
    for (k = 0; k < 3; k++) {
        q[k] = (double)s->middle[k];
        for (a = 0; a < 3; a++) q[k] += own[a] * (double)s->axes[a][k];
    }
}

/* The distance of two cores; v: from B to A. */
static double apart(const shape_placed *a, const shape_placed *b, double v[3])
{
    double p[3], q[3], old[6], ahead_p[3], ahead_q[3], momentum = 1, last = 1e30, d = 0;
    int round, k, still = 0;
    for (k = 0; k < 3; k++) {
        ahead_p[k] = old[k] = (double)a->middle[k];
        ahead_q[k] = old[3 + k] = b->body ? (double)b->middle[k] : (double)b->axes[0][k];
    }
    for (round = 0; round < 20000 && still < 50; round++) {
        double const next = (1 + sqrt(1 + 4 * momentum * momentum)) / 2;
        double push = (momentum - 1) / next, middle[3];
        for (k = 0; k < 3; k++) middle[k] = (ahead_p[k] + ahead_q[k]) / 2;
        closest_of_placed(a, middle, p);
        closest_of_placed(b, middle, q);
        momentum = next;
        d = sqrt((p[0] - q[0]) * (p[0] - q[0]) + (p[1] - q[1]) * (p[1] - q[1]) +
                 (p[2] - q[2]) * (p[2] - q[2]));
        if (d > last) { momentum = 1; push = 0; } /* too far: begin again from here */
        still = fabs(d - last) < (IS_FLOAT ? 1e-8 : 1e-14) ? still + 1 : 0;
        last = d;
        for (k = 0; k < 3; k++) {
            ahead_p[k] = p[k] + push * (p[k] - old[k]);
            ahead_q[k] = q[k] + push * (q[k] - old[3 + k]);
            old[k] = p[k];
            old[3 + k] = q[k];
            v[k] = p[k] - q[k];
        }
    }
    return d;
}

/* ---- random pairs ---- */

enum { KINDS = 5 };
static shape kinds[KINDS];

static void make_kinds(void)
{
    double block[8][4];
    int k;
    for (k = 0; k < 8; k++) {
        block[k][0] = k & 1 ? 0.5 : -0.5;
        block[k][1] = k & 2 ? 0.4 : -0.4;
        block[k][2] = k & 4 ? 0.3 : -0.3;
        block[k][3] = 0.2;
    }
    kinds[0] = shape_tablet(1, 0.4, 0.3, 0.15);
    kinds[1] = shape_sphere(0.6);
    kinds[2] = shape_capsule(0.3, 1);
    kinds[3] = shape_ellipsoid(1, 0.8, 0.6, 0.2);
    kinds[4] = shape_glued((const double (*)[4])block, 8);
    for (k = 0; k < KINDS; k++) CHECK(kinds[k].kind != SHAPE_NONE);
}

static void random_direction(uint64_t *seed, int count, dem_real *n)
{
    double x[4], sum;
    int k;
    do {
        for (sum = 0, k = 0; k < count; k++) {
            x[k] = 2 * random_double(seed) - 1;
            sum += x[k] * x[k];
        }
    } while (sum > 1 || sum < 0.01);
    for (k = 0; k < count; k++) n[k] = (dem_real)(x[k] / sqrt(sum));
}

static shape_placed place_at(uint64_t *seed, const shape *s, double x, double y, double z)
{
    dem_real const middle[3] = {(dem_real)x, (dem_real)y, (dem_real)z};
    dem_real turn[4];
    random_direction(seed, 4, turn);
    return shape_place(s, turn, middle);
}

/* As floats are: contacts of corners and straight edges, which Newton's method leaves alone, are
   less exact. */
static double bar(const shape_placed *a, const shape_placed *b, double smooth, double sharp)
{
    const shape_placed *const both[2] = {a, b};
    int k;
    for (k = 0; k < 2; k++)
        if (!both[k]->body || both[k]->body->kind == SHAPE_CAPSULE ||
            both[k]->body->kind == SHAPE_GLUED) return sharp;
    return smooth;
}

/* One against the oracle: 1 touch, 0 apart, -1 neither is sure. */
static int compare(const shape_placed *a, const shape_placed *b, shape_result found,
                   const shape_touch *touch)
{
    double const exact = IS_FLOAT ? bar(a, b, 4e-6, 3e-4) : bar(a, b, 1e-9, 1e-7),
                 turned = IS_FLOAT ? bar(a, b, 1e-3, 0.1) : bar(a, b, 1e-6, 1e-4);
    double const reach = (double)a->body->rounding + (b->body ? (double)b->body->rounding : 0);
    double v[3], d, along = 0;
    int k;
    d = apart(a, b, v);
    if (d < 0.02) return -1;
    CHECK(found != SHAPE_DEEP);
    if (fabs(d - reach) < exact) return -1;
    CHECK((found == SHAPE_TOUCH) == (d < reach));
    if (found != SHAPE_TOUCH) return 0;
    CHECK_BELOW(fabs((double)touch->overlap - (reach - d)), exact);
    for (k = 0; k < 3; k++) along += fabs((double)touch->n[k] + v[k] / d);
    CHECK_BELOW(along, turned);
    return 1;
}

/* The middle of the overlap is as deep in one as in the other. */
static void check_middle(const shape_placed *a, const shape_placed *b, const shape_touch *touch)
{
    const shape_placed *const both[2] = {a, b};
    double const exact = IS_FLOAT ? bar(a, b, 4e-6, 3e-4) : bar(a, b, 1e-9, 1e-7);
    int k, side;
    for (side = 0; side < 2; side++) {
        double p[3], q[3], d = 0, r = both[side]->body ? (double)both[side]->body->rounding : 0;
        for (k = 0; k < 3; k++) p[k] = (double)touch->at[k];
        closest_of_placed(both[side], p, q);
        for (k = 0; k < 3; k++) d += (p[k] - q[k]) * (p[k] - q[k]);
        if (r > (double)touch->overlap / 2)
            CHECK_BELOW(fabs(sqrt(d) - (r - (double)touch->overlap / 2)), exact);
    }
}

/* The contact found from nothing, from any direction, and from one near the common normal: all are
   compared with the same minimum. */
static shape_result contact_from(uint64_t *seed, int how, const shape_placed *a,
                                 const shape_placed *b, dem_real way[3], shape_touch *touch)
{
    dem_real aside[3];
    int k;
    for (k = 0; k < 3; k++) way[k] = 0;
    if (how == 0) return shape_contact(a, b, touch);
    random_direction(seed, 3, aside);
    if (how == 2) (void)shape_contact_from(a, b, way, touch);
    for (k = 0; k < 3; k++)
        way[k] = how == 2 ? way[k] / (dem_root(dem_dot(way, way)) + (dem_real)1e-30) +
                                (dem_real)0.05 * aside[k]
                          : aside[k];
    return shape_contact_from(a, b, way, touch);
}

/* way: along it they are apart by `reach`, or it is the normal. */
static void check_way(const shape_placed *a, const shape_placed *b, shape_result found,
                      const dem_real way[3], const shape_touch *touch)
{
    double const length = sqrt((double)dem_dot(way, way));
    double const reach = (double)a->body->rounding + (double)b->body->rounding;
    dem_real p[3], q[3];
    if (found == SHAPE_DEEP) {
        CHECK(length == 0);
        return;
    }
    CHECK(length > 0);
    if (found == SHAPE_TOUCH) {
        CHECK_BELOW(fabs((double)dem_dot(way, touch->n) / length - 1), IS_FLOAT ? 1e-5 : 1e-12);
        return;
    }
    shape_furthest(a, 1, way, p);
    shape_furthest(b, -1, way, q);
    dem_add(q, -1, p);
    CHECK((double)dem_dot(way, q) / length > reach - (IS_FLOAT ? 1e-5 : 1e-9));
}

static void test_pairs(void **state)
{
    int const pairs = environment("TEST_SMALL", 0) || SANITIZED ? 600 : 10000;
    uint64_t seed = random_seed(7);
    int i, seen[3] = {0, 0, 0};
    (void)state;
    make_kinds();
    for (i = 0; i < pairs; i++) {
        const shape *one = &kinds[i % 2 ? i / 2 % KINDS : 0], *two = &kinds[i / 10 % KINDS];
        double const away = (0.5 + 0.5 * random_double(&seed)) * (double)(one->bound + two->bound);
        shape_placed const a = place_at(&seed, one, 1, 2, 3);
        shape_placed b;
        shape_touch touch;
        shape_result found;
        dem_real n[3], way[3];
        int same;
        random_direction(&seed, 3, n);
        b = place_at(&seed, two, 1 + away * (double)n[0], 2 + away * (double)n[1],
                     3 + away * (double)n[2]);
        found = contact_from(&seed, i / 4 % 3, &a, &b, way, &touch);
        if (i / 4 % 3) check_way(&a, &b, found, way, &touch);
        same = compare(&a, &b, found, &touch);
        seen[1 + same]++;
        if (same == 1) check_middle(&a, &b, &touch);
    }
    CHECK(seen[2] > pairs / 8 && seen[1] > pairs / 8 && seen[0] < pairs / 2);
}

static void test_triangles(void **state)
{
    int const pairs = environment("TEST_SMALL", 0) || SANITIZED ? 300 : 4000;
    uint64_t seed = random_seed(8);
    int i, v, k, seen[3] = {0, 0, 0};
    (void)state;
    make_kinds();
    for (i = 0; i < pairs; i++) {
        shape_placed const a = place_at(&seed, &kinds[i % 2 ? 0 : i / 2 % KINDS], 0, 0, 0);
        double const away = 0.3 + 0.9 * random_double(&seed), wide = 0.1 + 3 * random_double(&seed);
        shape_placed b;
        const dem_real *corner[3];
        shape_touch touch;
        dem_real n[3];
        int same;
        b.body = NULL;
        random_direction(&seed, 3, n);
        for (v = 0; v < 3; v++) {
            random_direction(&seed, 3, b.axes[v]);
            for (k = 0; k < 3; k++)
                b.axes[v][k] = (dem_real)(away * (double)n[k] + wide * (double)b.axes[v][k]);
            corner[v] = b.axes[v];
        }
        {
            shape_result const found = shape_triangle(&a, corner, &touch);
            double ignored[3];
            if (apart(&a, &b, ignored) < 0.02) { seen[0]++; continue; }
            same = compare(&a, &b, found, &touch);
        }
        seen[1 + same]++;
        if (same == 1) check_middle(&a, &b, &touch);
    }
    CHECK(seen[2] > pairs / 12 && seen[1] > pairs / 12);
}

/* ---- on paper ---- */

/* Turned by `angle` about y. */
static shape_placed tilted(const shape *s, double angle, double x, double y, double z)
{
    dem_real const turn[4] = {(dem_real)cos(angle / 2), 0, (dem_real)sin(angle / 2), 0};
    dem_real const middle[3] = {(dem_real)x, (dem_real)y, (dem_real)z};
    return shape_place(s, turn, middle);
}

static void check_touch(const shape_placed *a, const shape_placed *b, double overlap, double x,
                        double y, double z)
{
    double const n[3] = {x, y, z}, exact = IS_FLOAT ? 3e-6 : 1e-10;
    shape_touch touch;
    int k;
    CHECK(shape_contact(a, b, &touch) == SHAPE_TOUCH);
    CHECK_BELOW(fabs((double)touch.overlap - overlap), exact);
    for (k = 0; k < 3; k++) CHECK_BELOW(fabs((double)touch.n[k] - n[k]), 10 * exact);
}

/* A tablet of radius 1, 1 high (band 0.4, caps 0.3), against its like: cap on cap, band at band, a
   cap on a band, and a cap at a sphere askew: the sphere of the cap has radius R = (1 + 0.09) / 0.6
   and its middle at R - 0.5 below. */
static void test_tablets_on_paper(void **state)
{
    shape const t = shape_tablet(1, 0.4, 0.3, 0.15), ball = shape_sphere(0.5);
    shape_placed const here = tilted(&t, 0, 0, 0, 0);
    shape_placed there = tilted(&t, 0, 0, 0, 0.99);
    double const big = 1.09 / 0.6, k = big - 0.5, lean = 0.3;
    (void)state;
    check_touch(&here, &there, 0.01, 0, 0, 1);
    there = tilted(&t, 0, 1.98, 0, 0);
    check_touch(&here, &there, 0.02, 1, 0, 0);
    there = tilted(&t, TURN / 2, 0, 0, -1.47); /* the band, as a disc on its edge */
    check_touch(&there, &here, 0.03, 0, 0, 1);
    there = tilted(&ball, 0, (big + 0.49) * sin(lean), 0, (big + 0.49) * cos(lean) - k);
    check_touch(&here, &there, 0.01, sin(lean), 0, cos(lean));
}

/* Capsules that cross, lie side by side, end to end; ellipsoids along an axis; two spheres. */
static void test_others_on_paper(void **state)
{
    shape const rod = shape_capsule(0.3, 2), egg = shape_ellipsoid(1, 0.8, 0.6, 0.1),
                ball = shape_sphere(0.5);
    shape_placed const a = tilted(&rod, 0, 0, 0, 0), e = tilted(&egg, 0, 0, 0, 0),
                       o = tilted(&ball, 0, 3, 4, 0);
    shape_placed b = tilted(&rod, TURN / 2, 0.2, 0.58, 0.4);
    (void)state;
    check_touch(&a, &b, 0.02, 0, 1, 0);
    b = tilted(&rod, 0, 0.55, 0, 1.5);
    check_touch(&a, &b, 0.05, 1, 0, 0);
    b = tilted(&rod, 0, 0, 0, 2.56);
    check_touch(&a, &b, 0.04, 0, 0, 1);
    b = tilted(&egg, 0, 0, 1.59, 0);
    check_touch(&e, &b, 0.01, 0, 1, 0);
    b = tilted(&egg, TURN / 2, 1.58, 0, 0); /* the long axis against the short one */
    check_touch(&e, &b, 0.02, 1, 0, 0);
    b = tilted(&ball, 0, 3 - 0.6 * 0.99, 4 + 0.8 * 0.99, 0);
    check_touch(&o, &b, 0.01, -0.6, 0.8, 0);
}

/* Spheres of 0.5 at -1 and 0.25 at 1: beyond the ends they are spheres, between them the hull is a
   cone, whose normal leans by asin(0.25 / 2). */
static void test_glued_on_paper(void **state)
{
    double const sphere[2][4] = {{-1, 0, 0, 0.5}, {1, 0, 0, 0.25}}, lean = asin(0.125);
    shape const glued = shape_glued(sphere, 2), ball = shape_sphere(0.5);
    shape_placed const a = tilted(&glued, 0, 0, 0, 0);
    shape_placed b = tilted(&ball, 0, -1.98, 0, 0);
    double const middle = 0.375 / cos(lean), reach = 0.49;
    (void)state;
    check_touch(&a, &b, 0.02, -1, 0, 0);
    b = tilted(&ball, 0, 1.74, 0, 0);
    check_touch(&a, &b, 0.01, 1, 0, 0);
    b = tilted(&ball, 0, reach * sin(lean), 0, middle + reach * cos(lean));
    check_touch(&a, &b, 0.01, sin(lean), 0, cos(lean));
}

/* A tilted tablet on a plane rests on a cap up to the lean at the edge, then on the edge, then on
   the band. How high its middle is: by the outline. */
static void test_plane(void **state)
{
    shape const t = shape_tablet(1, 0.4, 0.3, 0.15);
    double const edge = (double)t.size[0], half = (double)t.size[1],
                 exact = IS_FLOAT ? 1e-6 : 1e-12;
    double const lean = asin(edge / (double)t.size[2]), big = 1.09 / 0.6;
    dem_real const up[3] = {0, 0, 1};
    int k;
    (void)state;
    for (k = 0; k <= 90; k++) {
        double const angle = TURN / 180 * k;
        double const high = angle < lean ? big - (big - 0.5) * cos(angle)
                                         : edge * sin(angle) + half * cos(angle) + 0.15;
        shape_placed const a = tilted(&t, angle, 5, 6, 7);
        shape_touch touch;
        double found;
        CHECK(shape_plane(&a, up, (dem_real)(7 - high + 0.01), &touch) == SHAPE_TOUCH);
        found = (double)touch.overlap - 0.01;
        if (k < 88) CHECK_BELOW(fabs(found), 3 * exact);
        else CHECK(found >= -exact && found < 0.0021); /* the bulge of the band */
        CHECK((double)touch.n[2] == -1);
        CHECK(shape_plane(&a, up, (dem_real)(7 - high - 0.01), &touch) == SHAPE_APART);
    }
}

static void test_deep(void **state)
{
    shape const t = shape_tablet(1, 0.4, 0.3, 0.15);
    shape_placed const a = tilted(&t, 0.3, 0, 0, 0), b = tilted(&t, 0, 0.2, 0.1, 0.3);
    shape_placed const c = tilted(&t, 0, 0, 0, 0);
    shape_touch touch;
    (void)state;
    CHECK(shape_contact(&a, &b, &touch) == SHAPE_DEEP);
    CHECK(shape_contact(&a, &a, &touch) == SHAPE_DEEP);
    CHECK(shape_contact(&c, &c, &touch) == SHAPE_DEEP);
}

static void test_sizes(void **state)
{
    double const none[1][4] = {{0, 0, 0, 0}};
    (void)state;
    CHECK(shape_tablet(1, 0.4, 0.3, 0.15).kind == SHAPE_TABLET);
    CHECK(shape_tablet(1, 0.4, 0.3, 0).kind == SHAPE_NONE);
    CHECK(shape_tablet(1, 0.4, 0.3, 0.9).kind == SHAPE_NONE);
    CHECK(shape_tablet(1, 0.4, 0.3, (double)NAN).kind == SHAPE_NONE);
    CHECK(shape_tablet(1, 0, 0.3, 0.1).kind == SHAPE_NONE);
    CHECK(shape_tablet(1, 0.4, 1.1, 0.1).kind == SHAPE_NONE);
    CHECK(shape_tablet(-1, 0.4, 0.3, 0.1).kind == SHAPE_NONE);
    CHECK(shape_sphere(0).kind == SHAPE_NONE && shape_capsule(1, -1).kind == SHAPE_NONE);
    CHECK(shape_ellipsoid(1, 1, 0.1, 0.1).kind == SHAPE_NONE);
    CHECK(shape_glued(none, 0).kind == SHAPE_NONE && shape_glued(none, 9).kind == SHAPE_NONE);
    CHECK(shape_glued(none, 1).kind == SHAPE_NONE);
}

/* ---- mass ---- */

static void check_mass(const shape *s, double volume, double x, double z, double exact)
{
    CHECK_BELOW(fabs((double)s->volume / volume - 1), exact);
    CHECK_BELOW(fabs((double)s->inertia[0] / x - 1), exact);
    CHECK_BELOW(fabs((double)s->inertia[1] / x - 1), exact);
    CHECK_BELOW(fabs((double)s->inertia[2] / z - 1), exact);
}

/* The radius of a tablet at height z: as far out as the core is no further than the rounding. */
static double radius_at(const shape *s, double z)
{
    double low = 0, high = 2 * (double)s->bound;
    int k;
    for (k = 0; k < 60; k++) {
        double const r = (low + high) / 2;
        double p[3] = {0, 0, 0};
        p[0] = r;
        p[2] = z;
        closest_of(s, p);
        if (length2(p[0] - r, p[2] - z) > (double)s->rounding) high = r;
        else low = r;
    }
    return low;
}

/* A tablet as 20 thousand discs; a sphere, a capsule and an ellipsoid by formulas. */
static void test_mass(void **state)
{
    enum { DISCS = 20000 };
    double const exact = IS_FLOAT ? 2e-6 : 1e-13, part = 4.0 / 3.0 * TURN;
    shape const t = shape_tablet(1, 0.4, 0.3, 0.15), ball = shape_sphere(2),
                rod = shape_capsule(1, 3), egg = shape_ellipsoid(1, 0.8, 0.6, 1e-6);
    double volume = 0, x = 0, z = 0, const_ball = 1.6;
    int k;
    (void)state;
    for (k = 0; k < DISCS; k++) {
        double const at = 0.5 * (2 * k + 1 - DISCS) / DISCS, r = radius_at(&t, at),
                     disc = TURN * r * r / DISCS;
        volume += disc;
        x += disc * (r * r / 4 + at * at);
        z += disc * r * r / 2;
    }
    check_mass(&t, volume, x / volume, z / volume, 2e-6);
    check_mass(&ball, part * 8, const_ball, const_ball, exact);
    volume = part + 3 * TURN;
    z = (0.4 * part + 0.5 * 3 * TURN) / volume;
    x = (part * (0.4 + 1.5 * 1.5 + 2 * 1.5 * 0.375) + 3 * TURN * (0.25 + 0.75)) / volume;
    check_mass(&rod, volume, x, z, exact);
    CHECK_BELOW(fabs((double)egg.volume / (part * 0.48) - 1), 5e-4);
    CHECK_BELOW(fabs((double)egg.inertia[0] / (0.2 * (0.64 + 0.36)) - 1), 5e-4);
    CHECK_BELOW(fabs((double)egg.inertia[1] / (0.2 * (1 + 0.36)) - 1), 5e-4);
    CHECK_BELOW(fabs((double)egg.inertia[2] / (0.2 * (1 + 0.64)) - 1), 5e-4);
}

/* No point of the surface is beyond its support point; it is on the surface itself; and it moves as
   shape_bend says. */
static void test_support(void **state)
{
    uint64_t seed = random_seed(9);
    int i, k, a, tried = 0;
    (void)state;
    make_kinds();
    for (k = 0; k < KINDS; k++)
        for (i = 0; i < 300; i++) {
            double const step = IS_FLOAT ? 1e-3 : 1e-6;
            double q[3], beyond[3], change = 0;
            dem_real n[3], p[3], other[3], next[3], x[3], y[3] = {0, 0, 0}, moved[3];
            random_direction(&seed, 3, n);
            random_direction(&seed, 3, x);
            shape_support(&kinds[k], n, p);
            for (a = 0; a < 3; a++) q[a] = beyond[a] = (double)p[a] + 0.5 * (double)n[a];
            closest_of(&kinds[k], q);
            for (a = 0; a < 3; a++) CHECK_BELOW(fabs(q[a] - (double)p[a]), IS_FLOAT ? 2e-6 : 1e-9);
            dem_add(x, -dem_dot(x, n), n);
            for (a = 0; a < 3; a++) next[a] = n[a] + (dem_real)step * x[a];
            shape_support(&kinds[k], next, other);
            if (k == 0 && shape_part_of(kinds[0].size, n, n[0] * n[0] + n[1] * n[1], 1) !=
                              shape_part_of(kinds[0].size, next, next[0] * next[0] +
                                            next[1] * next[1], dem_dot(next, next))) continue;
            if (k == 4) continue;
            shape_bend(&kinds[k], n, x, y);
            for (a = 0; a < 3; a++) {
                moved[a] = (other[a] - p[a]) / (dem_real)step;
                change += fabs((double)(moved[a] - y[a]));
            }
            if (k == 2 && n[2] * next[2] <= 0) continue;
            CHECK_BELOW(change, IS_FLOAT ? 0.2 : 1e-3);
            tried++;
        }
    CHECK(tried > 1000);
}

/* ---- rotation ---- */

static void spin_freely(const dem_real i[3], const dem_real momentum[3], double dt, int steps,
                        dem_real turn[4])
{
    int k;
    for (k = 0; k < steps; k++) dem_turn_free((dem_real)dt, i, momentum, turn);
}

static double spin_energy(const dem_real i[3], const dem_real momentum[3], const dem_real turn[4])
{
    dem_real spin[3];
    dem_spin_of(turn, i, momentum, spin);
    return 0.5 * (double)dem_dot(spin, momentum);
}

/* A top with I = (1, 1, 2), L = (0, 0, 3), its axis tilted by 0.7 to x: the axis goes round L at
   L / I of x, the top about its axis at L cos 0.7 (1 / 2 - 1). After 2 s the axis has turned by 6.
   A half step has a quarter of the error. */
static void test_symmetric_top(void **state)
{
    dem_real const i[3] = {1, 1, 2}, momentum[3] = {0, 0, 3};
    double const tilt = 0.7, x = sin(tilt) * cos(6), y = sin(tilt) * sin(6),
                 own = 6 * cos(tilt) * -0.5;
    double error[2];
    int k;
    (void)state;
    for (k = 0; k < 2; k++) {
        dem_real turn[4] = {(dem_real)cos(tilt / 2), 0, (dem_real)sin(tilt / 2), 0}, axes[3][3];
        double marked;
        spin_freely(i, momentum, 0.02 / (k + 1), 100 * (k + 1), turn);
        shape_axes(turn, axes);
        marked = cos(own) * -sin(tilt); /* height of the body's x */
        error[k] = fabs((double)axes[2][0] - x) + fabs((double)axes[2][1] - y) +
                   fabs((double)axes[2][2] - cos(tilt)) + fabs((double)axes[0][2] - marked);
    }
    CHECK_BELOW(error[0], 2e-3);
    CHECK_BELOW(error[1], IS_FLOAT ? 1e-3 : 0.27 * error[0]);
}

/* A body with three moments tumbles about its middle axis, which is unstable: it turns over again
   and again, and its energy stays within a band that is four times as narrow with half the step. */
static void test_tumbling(void **state)
{
    dem_real const i[3] = {1, 2, 3}, momentum[3] = {(dem_real)0.01, 2, 0};
    double widest[2] = {0, 0};
    int k, step, over = 0;
    (void)state;
    for (k = 0; k < 2; k++) {
        dem_real turn[4] = {1, 0, 0, 0}, axes[3][3];
        double const energy = spin_energy(i, momentum, turn);
        int up = 1;
        for (step = 0; step < 20000 * (k + 1); step++) {
            spin_freely(i, momentum, 0.02 / (k + 1), 1, turn);
            widest[k] = fmax(widest[k], fabs(spin_energy(i, momentum, turn) / energy - 1));
            shape_axes(turn, axes);
            if (!k && (axes[1][1] > (dem_real)0.5) != up && fabs((double)axes[1][1]) > 0.9) {
                up = !up;
                over++;
            }
        }
    }
    CHECK(over > 5);
    CHECK_BELOW(widest[0], 1e-3);
    CHECK_BELOW(widest[1], IS_FLOAT ? 5e-4 : 0.27 * widest[0]);
}

#include "rays.c"
#include "walls.c"

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_support),          cmocka_unit_test(test_tablets_on_paper),
        cmocka_unit_test(test_others_on_paper),  cmocka_unit_test(test_glued_on_paper),
        cmocka_unit_test(test_plane),            cmocka_unit_test(test_deep),
        cmocka_unit_test(test_sizes),            cmocka_unit_test(test_mass),
        cmocka_unit_test(test_pairs),            cmocka_unit_test(test_triangles),
        cmocka_unit_test(test_symmetric_top),    cmocka_unit_test(test_tumbling),
        cmocka_unit_test(test_ray_random),       cmocka_unit_test(test_ray_on_paper),
        cmocka_unit_test(test_ray_reach),        cmocka_unit_test(test_walls_plane),
        cmocka_unit_test(test_walls_slope),      cmocka_unit_test(test_walls_rest),
        cmocka_unit_test(test_walls_valley),     cmocka_unit_test(test_walls_ridge),
        cmocka_unit_test(test_walls_energy),     cmocka_unit_test(test_walls_list),
        cmocka_unit_test(test_walls_room),       cmocka_unit_test(test_walls_stale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
