/* workloads.h - the inputs that tests and benchmarks share. Single header, everything static, prefix wl_.
   SPDX-License-Identifier: MIT OR Unlicense

   The random numbers are a fixed recipe, so that the totals in the tests can be compared with those of other programs:
   xorshift64*, seeded with 0x9E3779B97F4A7C15 * (seed + 1), the first 16 numbers thrown away, and
   u = (the upper 24 bits) * 2^-24: a float in [0, 1) that every machine computes alike.

       float *pos = malloc(3 * n * sizeof *pos);
       wl_uniform(n, 1, pos);                          x y z x y z ...
       float radius = wl_radius(n, 30);                about 30 others within it
       wl_sort_morton(n, pos);                         the same points, in the order a simulation would keep them in
       wl_move(n, pos, 0.2f * cell, 5);                the same points a little later                                     */

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

/* A column of water, dense at the bottom: x = u/8, y = u^3, z = u. dam-1M: seed 3, radius 0.005577566. */
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
#define WL_JITTER 1.0f          /* of a site's width, from -half to +half: 2.7 M overlapping boxes (the text says about 2.88 M) */

/* Site number `site` of count^3, moved by the jitter. */
WL_FN void wl_site(wl_random *r, int site, int count, float *p)
{
    float const width = WL_EDGE / (float)count;
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

/* bidisperse-1M: WL_BOTH spheres in a cube of edge WL_EDGE, shuffled. pos: 3 * WL_BOTH numbers, radius: WL_BOTH. */
WL_FN void wl_bidisperse(uint64_t seed, float *pos, float *radius)
{
    wl_random r = wl_seed(seed);
    int32_t i, site, left = WL_BIG;
    for (i = 0; i < WL_SMALL; i++) {
        wl_site(&r, i, 100, pos + 3 * (size_t)i);
        radius[i] = 0.001f;
    }
    for (site = 0; site < 343 && left > 0; site++) { /* each of the 343 sites with the same chance (Knuth 2, 3.4.2, S) */
        if ((int32_t)wl_below(&r, (uint32_t)(343 - site)) >= left) continue;
        wl_site(&r, site, 7, pos + 3 * (size_t)i);
        radius[i++] = 0.01f;
        left--;
    }
    for (i = WL_BOTH - 1; i > 0; i--) wl_swap_particles(pos, radius, i, (int32_t)wl_below(&r, (uint32_t)i + 1));
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

/* The 30-bit Morton code of floor(1024 p), x lowest. Points outside the unit cube count as on its border. */
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

/* The "-sorted" workloads: the points in stable order of their Morton codes. `was` (may be NULL) gets the old index of
   each. 0 when out of memory; then nothing has changed. */
WL_FN int wl_sort_morton(int32_t n, float *pos, int32_t *was)
{
    size_t const m = (size_t)n;
    uint64_t *keys = (uint64_t *)malloc((m ? m : 1) * sizeof *keys), *other = (uint64_t *)malloc((m ? m : 1) * sizeof *other);
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

/* Frame-coherent motion: every coordinate moves by up to `most` (0.2 of a cell), and stays in [0, 1). */
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
