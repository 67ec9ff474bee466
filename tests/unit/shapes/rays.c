/* rays.c - examples/common/shape_ray.h: where a ray enters a sphere or a tablet. A part of
   test_shapes.c.
   SPDX-License-Identifier: MIT OR Unlicense

   The oracle goes along the ray in small steps, asks at each point whether it is inside by the
   heights of band and caps, and then halves. It solves no equation. */

#include "examples/common/shape_ray.h"

/* A tablet, by the sizes of the figure in shapes.h. */
typedef struct sizes { double radius, band, cap; } sizes;

static double cap_height(const sizes *s, double r)
{
    double const big = (s->radius * s->radius + s->cap * s->cap) / (2 * s->cap);
    return s->cap - (big - sqrt(big * big - r * r));
}

static int is_inside(const sizes *s, const shape_placed *at, const double p[3])
{
    double own[3] = {0, 0, 0}, r;
    int a, k;
    for (a = 0; a < 3; a++)
        for (k = 0; k < 3; k++) own[a] += (double)at->axes[a][k] * p[k];
    r = length2(own[0], own[1]);
    return r <= s->radius && fabs(own[2]) <= s->band / 2 + cap_height(s, r);
}

static int inside_at(const sizes *s, const shape_placed *at, const double o[3], const double d[3],
                     double t)
{
    double p[3];
    int a;
    for (a = 0; a < 3; a++) p[a] = o[a] + t * d[a];
    return is_inside(s, at, p);
}

/* Where the ray enters, -1: nowhere. */
static double march(const sizes *s, const shape_placed *at, const double o[3], const double d[3],
                    double far, int steps)
{
    int k, half;
    for (k = 0; k <= steps; k++) {
        double low = far * (k - 1) / steps, high = far * k / steps;
        if (!inside_at(s, at, o, d, high)) continue;
        if (k == 0) return 0;
        for (half = 0; half < 50; half++) {
            double const middle = 0.5 * (low + high);
            if (inside_at(s, at, o, d, middle)) high = middle;
            else low = middle;
        }
        return high;
    }
    return -1;
}

/* One random ray. Returns 1: a hit, 0: a miss; a ray that is hardly inside may be missed by steps,
   or by rounding. */
static int check_ray(const sizes *s, const shape_placed *at, uint64_t *seed)
{
    double const exact = IS_FLOAT ? 2e-4 : 1e-9;
    shape_span span = {0, 100, {0, 0, 0}};
    dem_real o[3], d[3], n[3], length;
    double origin[3], along[3], entered;
    int found, a;
    random_direction(seed, 3, n);
    for (a = 0; a < 3; a++) {
        o[a] = 4 * n[a];
        d[a] = (dem_real)(0.7 * random_double(seed) - 0.35) - n[a];
    }
    length = dem_root(dem_dot(d, d));
    for (a = 0; a < 3; a++) {
        d[a] *= (dem_real)1.5 / length; /* of any length */
        origin[a] = (double)o[a];
        along[a] = (double)d[a];
    }
    found = shape_ray(at, o, d, &span);
    entered = march(s, at, origin, along, 6, 1000);
    if (entered < 0 && found) CHECK_BELOW((double)(span.to - span.from), 0.012);
    if (entered >= 0 && !found) CHECK(!inside_at(s, at, origin, along, entered + 10 * exact));
    if (entered < 0 || !found) return 0;
    if ((double)(span.to - span.from) < 0.05) return 1; /* a grazing ray is not well-conditioned */
    CHECK_BELOW(fabs((double)span.from - entered), exact);
    CHECK_BELOW(fabs((double)dem_dot(span.n, span.n) - 1), exact);
    CHECK(dem_dot(span.n, d) < 0);
    return 1;
}

static void test_ray_random(void **state)
{
    static const sizes kinds_of[4] = {{1, 0.4, 0.3}, {1, 0.1, 0.05}, {0.5, 1, 0.5}, {1, 2, 1}};
    int const rays = environment("TEST_SMALL", 0) || SANITIZED ? 200 : 3000;
    uint64_t seed = random_seed(11);
    int k, i, hits = 0;
    (void)state;
    for (k = 0; k < 4; k++) {
        shape const t = shape_tablet(kinds_of[k].radius, kinds_of[k].band, kinds_of[k].cap, 0.03);
        CHECK(t.kind == SHAPE_TABLET);
        for (i = 0; i < rays; i++) {
            shape_placed const at = place_at(&seed, &t, 0, 0, 0);
            hits += check_ray(&kinds_of[k], &at, &seed);
        }
    }
    CHECK(hits > rays && hits < 4 * rays);
}

/* Straight down on a cap, from the side on the band, along the axis of a sphere; from inside. */
static void test_ray_on_paper(void **state)
{
    shape const t = shape_tablet(1, 0.4, 0.3, 0.15), ball = shape_sphere(2);
    shape_placed const flat = tilted(&t, 0, 0, 0, 0), round = tilted(&ball, 0, 0, 0, 0);
    double const exact = IS_FLOAT ? 3e-6 : 1e-12;
    dem_real const above[3] = {0, 0, 5}, down[3] = {0, 0, -2}, left[3] = {-3, 0, 0},
                   right[3] = {1, 0, 0}, past[3] = {-3, 0, (dem_real)0.3}, zero[3] = {0, 0, 0};
    shape_span span = {0, 100, {0, 0, 0}}, side = span, over = span, in = span, s = span,
               end = span;
    (void)state;
    CHECK(shape_ray(&flat, above, down, &span));
    CHECK_BELOW(fabs((double)span.from - 2.25), exact);
    CHECK_BELOW(fabs((double)span.to - 2.75), exact);
    CHECK_BELOW(fabs((double)span.n[2] - 1), exact);
    CHECK(shape_ray(&flat, left, right, &side));
    CHECK_BELOW(fabs((double)side.from - 2), exact);
    CHECK_BELOW(fabs((double)side.n[0] + 1), exact);
    /* 0.3 high the cap has the radius r, r^2 = big^2 - (big - 0.2)^2, big = 1.09 / 0.6. */
    CHECK(shape_ray(&flat, past, right, &over));
    CHECK_BELOW(fabs((double)over.from - (3 - sqrt(0.4 * 1.09 / 0.6 - 0.04))), exact);
    CHECK_BELOW(fabs((double)over.n[2] - (1 - 0.2 * 0.6 / 1.09)), exact);
    CHECK(shape_ray(&flat, zero, right, &in) && in.from == 0);
    CHECK(shape_ray(&round, above, down, &s));
    CHECK_BELOW(fabs((double)s.from - 1.5), exact);
    end.to = (dem_real)2.2;
    CHECK(!shape_ray(&flat, above, down, &end));
}

/* No corner of the solid is outside of reach and bound, and the reach is reached. */
static void test_ray_reach(void **state)
{
    shape const t = shape_tablet(1, 0.4, 0.3, 0.15);
    shape_solid const solid = shape_solid_of(&t);
    sizes const s = {1, 0.4, 0.3};
    int k, j;
    (void)state;
    for (k = 0; k <= 90; k++) {
        double const angle = TURN / 180 * k;
        double most = 0;
        for (j = 0; j <= 1000; j++) {
            double const r = j / 1000.0, z = 0.2 + cap_height(&s, r);
            CHECK_BELOW(length2(r, z), (double)shape_ray_bound(&t) * 1.000001);
            most = fmax(most, r * sin(angle) + z * cos(angle));
        }
        CHECK_BELOW(fabs((double)shape_solid_reach(&solid, (dem_real)cos(angle)) - most), 2e-6);
        CHECK_BELOW(fabs((double)shape_solid_reach(&solid, (dem_real)-cos(angle)) - most), 2e-6);
    }
}
