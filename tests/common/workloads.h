/* workloads.h - the inputs that tests and benchmarks share. Single header, everything static,
   prefix wl_.
   SPDX-License-Identifier: MIT OR Unlicense

   The random numbers are a fixed recipe, so that the totals in the tests can be compared with those
   of other programs: xorshift64*, seeded with 0x9E3779B97F4A7C15 * (seed + 1), the first 16 numbers
   thrown away, and u = (the upper 24 bits) * 2^-24: a float in [0, 1) that every machine computes
   alike.

       float *pos = malloc(3 * n * sizeof *pos);
       wl_uniform(n, 1, pos);                          x y z x y z ...
       float radius = wl_radius(n, 30);                about 30 others within it
       wl_sort_morton(n, pos);                         the same points, in the order in which a
                                                       simulation would keep them
       wl_move(n, pos, 0.2f * cell, 5);                the same points a little later */

#ifndef WORKLOADS_H
#define WORKLOADS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) || defined(__clang__)
#define WL_FN __attribute__((unused)) static
#else
#define WL_FN static
#endif

/* ---- random numbers ---- */

typedef struct wl_random { uint64_t s; } wl_random;

WL_FN uint64_t wl_next(wl_random *r)
{
    r->s ^= r->s >> 12;
    r->s ^= r->s << 25;
    r->s ^= r->s >> 27;
    return r->s * 0x2545F4914F6CDD1Du;
}

WL_FN wl_random wl_seed(uint64_t seed)
{
    wl_random r;
    int k;
    r.s = 0x9E3779B97F4A7C15u * (seed + 1);
    if (r.s == 0) r.s = 1; /* only for seed = 2^64 - 1: zero would stay zero */
    for (k = 0; k < 16; k++) wl_next(&r);
    return r;
}

/* A float in [0, 1), a multiple of 2^-24. */
WL_FN float wl_u(wl_random *r)
{
    return (float)(wl_next(r) >> 40) * (1.0f / 16777216.0f);
}

/* An integer in 0 .. below-1. */
WL_FN uint32_t wl_below(wl_random *r, uint32_t below)
{
    return (uint32_t)((wl_next(r) >> 32) * below >> 32);
}

/* The number next to x, `steps` (-1, 0, 1) further, among floats or doubles: those of `size`
   bytes. */
WL_FN double wl_beside(double x, int steps, size_t size)
{
    double const toward = steps < 0 ? -(double)INFINITY : (double)INFINITY;
    if (steps == 0) return x;
    return size == sizeof(float) ? (double)nextafterf((float)x, (float)toward) :
        nextafter(x, toward);
}

/* ---- workloads: out receives n * 3 numbers, x y z x y z ... ---- */

/* The radius within which a particle of n in the unit cube has about `neighbors` others. */
WL_FN float wl_radius(int32_t n, double neighbors)
{
    return (float)cbrt(neighbors / (4.0 / 3.0 * 3.14159265358979323846 * n));
}

/* n points in the unit cube. uniform-1M: seed 1; -10M: seed 2; -100k: seed 7. */
WL_FN void wl_uniform(int32_t n, uint64_t seed, float *out)
{
    wl_random r = wl_seed(seed);
    size_t k;
    for (k = 0; k < 3 * (size_t)n; k++) out[k] = wl_u(&r);
}

/* n points in the unit square, z = 0. nbody-2D. */
WL_FN void wl_square(int32_t n, uint64_t seed, float *out)
{
    wl_random r = wl_seed(seed);
    int32_t i;
    for (i = 0; i < n; i++) {
        float *p = out + 3 * (size_t)i;
        p[0] = wl_u(&r);
        p[1] = wl_u(&r);
        p[2] = 0;
    }
}

/* A column of water, dense at the bottom: x = u/8, y = u^3, z = u. dam-1M: seed 3, radius
   0.005577566. */
WL_FN void wl_dam(int32_t n, uint64_t seed, float *out)
{
    wl_random r = wl_seed(seed);
    int32_t i;
    for (i = 0; i < n; i++) {
        float *p = out + 3 * (size_t)i;
        float u;
        p[0] = wl_u(&r) / 8;
        u = wl_u(&r);
        p[1] = u * u * u;
        p[2] = wl_u(&r);
    }
}

/* ---- two sizes ---- */

#define WL_SMALL  1000000       /* spheres of radius 1 mm, on 100^3 sites */
#define WL_BIG    276           /* spheres of radius 10 mm, on 276 of 7^3 sites */
#define WL_BOTH   (WL_SMALL + WL_BIG)
#define WL_EDGE   0.2203f       /* of the cube, in m: half of it is spheres */
#define WL_JITTER 1.0f          /* of a site's width, from -half to +half: 2.7 M overlapping boxes
                                   (the text says about 2.88 M) */

/* Site number `site` of count^3 in a cube, moved by the jitter. */
WL_FN void wl_site(wl_random *r, int32_t site, int32_t count, float edge, float *p)
{
    float const width = edge / (float)count;
    int a;
    for (a = 0; a < 3; a++, site /= count)
        p[a] = width * ((float)(site % count) + 0.5f + WL_JITTER * (wl_u(r) - 0.5f));
}

WL_FN void wl_swap_particles(float *pos, float *radius, int32_t i, int32_t j)
{
    float p[3], s = radius[i];
    memcpy(p, pos + 3 * (size_t)i, sizeof p);
    memmove(pos + 3 * (size_t)i, pos + 3 * (size_t)j, sizeof p);
    memcpy(pos + 3 * (size_t)j, p, sizeof p);
    radius[i] = radius[j];
    radius[j] = s;
}

/* `many` spheres on as many of the sites, of which each has the same chance (Knuth 2, 3.4.2, S). */
WL_FN void wl_on_sites(wl_random *r, int32_t many, int32_t count, float edge, float size,
    float *pos, float *radius)
{
    int32_t const sites = count * count * count;
    int32_t site, left = many;
    for (site = 0; site < sites && left > 0; site++) {
        if (sites > many && (int32_t)wl_below(r, (uint32_t)(sites - site)) >= left) continue;
        wl_site(r, site, count, edge, pos + 3 * (size_t)(many - left));
        radius[many - left] = size;
        left--;
    }
}

/* The least count for which count^3 * per >= many * of. */
WL_FN int32_t wl_side(int64_t many, int64_t per, int64_t of)
{
    int32_t count = 1;
    while ((int64_t)count * count * count * per < many * of) count++;
    return count;
}

/* Large spheres that go with `small` ones, at least one. */
WL_FN int32_t wl_big(int32_t small)
{
    int32_t const big = (int32_t)(((int64_t)small * WL_BIG + WL_SMALL / 2) / WL_SMALL);
    return big > 0 ? big : 1;
}

/* The same mixture with any number of small spheres: small + wl_big(small) in all, shuffled, in a
   cube that is as full. */
WL_FN void wl_two_sizes(int32_t small, uint64_t seed, float *pos, float *radius)
{
    float const edge = WL_EDGE * (float)cbrt((double)small / WL_SMALL);
    int32_t const big = wl_big(small);
    wl_random r = wl_seed(seed);
    int32_t i;
    wl_on_sites(&r, small, wl_side(small, 1, 1), edge, 0.001f, pos, radius);
    wl_on_sites(&r, big, wl_side(big, WL_BIG, 343), edge, 0.01f, pos + 3 * (size_t)small,
        radius + small);
    for (i = small + big - 1; i > 0; i--)
        wl_swap_particles(pos, radius, i, (int32_t)wl_below(&r, (uint32_t)i + 1));
}

/* bidisperse-1M: WL_BOTH spheres in a cube of edge WL_EDGE, shuffled. pos: 3 * WL_BOTH numbers,
   radius: WL_BOTH. */
WL_FN void wl_bidisperse(uint64_t seed, float *pos, float *radius)
{
    wl_two_sizes(WL_SMALL, seed, pos, radius);
}

/* ---- triangles ---- */

/* A point of the tube around the torus knot (2, 3), at `along` and `around` from 0 to 2 pi. The
   tube has ribs and waves. */
WL_FN void wl_knot_point(double along, double around, float *p)
{
    double const wide = 2 + cos(3 * along),
        tube = 0.42 * (1 + 0.08 * sin(24 * along) * cos(6 * around));
    double const c[3] = {wide * cos(2 * along), wide * sin(2 * along), -sin(3 * along)};
    double const shrink = -3 * sin(3 * along);
    /* tangent */
    double const t[3] = {shrink * cos(2 * along) - 2 * c[1], shrink * sin(2 * along) + 2 * c[0],
        -3 * cos(3 * along)};
    double const b[3] = {t[1] * c[2] - t[2] * c[1], t[2] * c[0] - t[0] * c[2],
        t[0] * c[1] - t[1] * c[0]};
    double const n[3] = {b[1] * t[2] - b[2] * t[1], b[2] * t[0] - b[0] * t[2],
        b[0] * t[1] - b[1] * t[0]};
    double const of_b = tube * sin(around) / sqrt(b[0] * b[0] + b[1] * b[1] + b[2] * b[2]);
    double const of_n = tube * cos(around) / sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    int a;
    for (a = 0; a < 3; a++) p[a] = (float)(c[a] + of_b * b[a] + of_n * n[a]);
}

/* 2 * along * around triangles, closed, in -3.5 .. 3.5: corners[9 i ..] are those of triangle i.
   640 x 80: knot-102k. */
WL_FN void wl_knot(int32_t along, int32_t around, float *corners)
{
    double const full = 2 * 3.14159265358979323846;
    int32_t u, v, k;
    for (u = 0; u < along; u++)
        for (v = 0; v < around; v++) {
            /* the corners of a quadrangle: (u, v), (u + 1, v), (u, v + 1), (u + 1, v + 1) */
            float p[4][3];
            float *to = corners + 18 * ((size_t)u * (size_t)around + (size_t)v);
            for (k = 0; k < 4; k++)
                wl_knot_point(full * ((u + k % 2) % along) / along,
                    full * ((v + k / 2) % around) / around, p[k]);
            memcpy(to, p[0], 6 * sizeof *to);
            memcpy(to + 6, p[2], 3 * sizeof *to);
            memcpy(to + 9, p[1], 3 * sizeof *to);
            memcpy(to + 12, p[3], 3 * sizeof *to);
            memcpy(to + 15, p[2], 3 * sizeof *to);
        }
}

/* width * width rays through the pixels of a camera that looks at the knot: 6 numbers each, origin
   and direction. */
WL_FN void wl_primary_rays(int32_t width, float *rays)
{
    static float const eye[3] = {2.5f, -6.5f, 5.0f};
    float forward[3], right[3], up[3], length;
    int32_t x, y;
    int a;
    length = sqrtf(eye[0] * eye[0] + eye[1] * eye[1] + eye[2] * eye[2]);
    for (a = 0; a < 3; a++) forward[a] = -eye[a] / length;
    length = sqrtf(forward[0] * forward[0] + forward[1] * forward[1]);
    right[0] = forward[1] / length;
    right[1] = -forward[0] / length;
    right[2] = 0;
    up[0] = right[1] * forward[2];
    up[1] = -right[0] * forward[2];
    up[2] = right[0] * forward[1] - right[1] * forward[0];
    for (y = 0; y < width; y++)
        for (x = 0; x < width; x++) {
            float *ray = rays + 6 * ((size_t)y * (size_t)width + (size_t)x);
            float const s = 0.8f * ((float)x + 0.5f) / (float)width - 0.4f,
                t = 0.4f - 0.8f * ((float)y + 0.5f) / (float)width;
            for (a = 0; a < 3; a++) {
                ray[a] = eye[a];
                ray[3 + a] = forward[a] + s * right[a] + t * up[a];
            }
        }
}

/* n rays from random points of the cube -3.5 .. 3.5 to others. */
WL_FN void wl_random_rays(int32_t n, uint64_t seed, float *rays)
{
    wl_random r = wl_seed(seed);
    int32_t i;
    int a;
    for (i = 0; i < n; i++)
        for (a = 0; a < 3; a++) {
            float *ray = rays + 6 * (size_t)i;
            ray[a] = 7 * wl_u(&r) - 3.5f;
            ray[3 + a] = 7 * wl_u(&r) - 3.5f - ray[a];
        }
}

/* ---- order and motion ---- */

/* Bit k of v goes to bit 3 k: v has 10 bits. */
WL_FN uint32_t wl_spread(uint32_t v)
{
    uint32_t out = 0;
    int bit;
    for (bit = 0; bit < 10; bit++) out |= (v >> bit & 1u) << 3 * bit;
    return out;
}

/* The 30-bit Morton code of floor(1024 p), x lowest. Points outside the unit cube count as on its
   border. */
WL_FN uint32_t wl_morton(const float *p)
{
    uint32_t code = 0;
    int a;
    for (a = 0; a < 3; a++) {
        float const cell = floorf(1024 * p[a]);
        code |= wl_spread(cell > 0 ? cell < 1023 ? (uint32_t)cell : 1023u : 0u) << a;
    }
    return code;
}

/* The "-sorted" workloads: the points in stable order of their Morton codes. `was` (may be NULL)
   gets the old index of each. 0 when out of memory; then nothing has changed. */
WL_FN int wl_sort_morton(int32_t n, float *pos, int32_t *was)
{
    size_t const m = (size_t)n;
    uint64_t *keys = (uint64_t *)malloc((m ? m : 1) * sizeof *keys),
        *other = (uint64_t *)malloc((m ? m : 1) * sizeof *other);
    float *old = (float *)malloc((m ? m : 1) * 3 * sizeof *old);
    int const fine = keys && other && old;
    int pass;
    size_t i;
    for (i = 0; fine && i < m; i++) keys[i] = (uint64_t)wl_morton(pos + 3 * i) << 32 | (uint64_t)i;
    for (pass = 0; fine && pass < 3; pass++) { /* radix sort by 10 bits at a time */
        size_t begin[1025] = {0};
        uint64_t *swap = keys;
        int const shift = 32 + 10 * pass;
        int digit;
        for (i = 0; i < m; i++) begin[(keys[i] >> shift & 1023u) + 1]++;
        for (digit = 0; digit < 1024; digit++) begin[digit + 1] += begin[digit];
        for (i = 0; i < m; i++) other[begin[keys[i] >> shift & 1023u]++] = keys[i];
        keys = other;
        other = swap;
    }
    if (fine) memcpy(old, pos, m * 3 * sizeof *old);
    for (i = 0; fine && i < m; i++) {
        size_t const from = (size_t)(keys[i] & 0xFFFFFFFFu);
        memcpy(pos + 3 * i, old + 3 * from, 3 * sizeof *pos);
        if (was) was[i] = (int32_t)from;
    }
    free(keys);
    free(other);
    free(old);
    return fine;
}

/* Frame-coherent motion: every coordinate moves by up to `most` (0.2 of a cell), and stays in [0,
   1). */
WL_FN void wl_move(int32_t n, float *pos, float most, uint64_t seed)
{
    wl_random r = wl_seed(seed);
    size_t k;
    for (k = 0; k < 3 * (size_t)n; k++) {
        float const x = pos[k] + most * (2 * wl_u(&r) - 1);
        if (x >= 0 && x < 1) pos[k] = x;
    }
}

#endif /* WORKLOADS_H */
