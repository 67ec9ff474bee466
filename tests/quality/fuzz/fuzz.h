/* fuzz.h - what the fuzzers share: bytes become numbers, points and failing allocators. Everything
   is static.
   SPDX-License-Identifier: MIT OR Unlicense

   A fuzzer is LLVMFuzzerTestOneInput of libFuzzer; standalone.c calls the same function where there
   is none. Bytes that are not there are 0, so every input is one, and a short one too. Most
   coordinates come from a generator that the bytes choose and seed: few bytes make many particles,
   and a changed byte a different scene of the same kind. */

#ifndef FUZZ_H
#define FUZZ_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef FZ_REAL
#define FZ_REAL float
#endif
#define UGRID_REAL FZ_REAL
#define LBVH_REAL FZ_REAL
#define NLIST_REAL FZ_REAL
#define NBODY_REAL FZ_REAL

typedef FZ_REAL real;

#define FZ_IS_FLOAT (sizeof(real) == sizeof(float))
#define FZ_EPSILON (FZ_IS_FLOAT ? 1.1920929e-7 : 2.220446049250313e-16)
#define FZ_MAX (FZ_IS_FLOAT ? (real)FLT_MAX : (real)DBL_MAX)
#define FZ_MIN (FZ_IS_FLOAT ? (real)FLT_MIN : (real)DBL_MIN)

#if defined(__GNUC__) || defined(__clang__)
#define FZ_FN __attribute__((unused)) static
#else
#define FZ_FN static
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ------------------------------------------------------------------------------------------------
   Checks
   ---------------------------------------------------------------------------------------------- */

#define FZ_CHECK(condition)                                                                        \
    do {                                                                                           \
        if (!(condition)) fz_fail(__FILE__, __LINE__, #condition, "");                             \
    } while (0)
#define FZ_CHECK_CODE(condition, text)                                                             \
    do {                                                                                           \
        if (!(condition)) fz_fail(__FILE__, __LINE__, #condition, text);                           \
    } while (0)

FZ_FN void fz_fail(const char *file, int line, const char *what, const char *more)
{
    fprintf(stderr, "%s:%d: check failed: %s %s\n", file, line, what, more);
    fflush(stderr);
    abort();
}

/* FUZZ_TRACE=1: what is called, when a crash is looked at. */
FZ_FN int fz_tracing(void)
{
    static int known = -1;
    if (known < 0) known = getenv("FUZZ_TRACE") != NULL;
    return known;
}
#define FZ_TRACE(...)                                                                              \
    do {                                                                                           \
        if (fz_tracing()) {                                                                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
        }                                                                                          \
    } while (0)

/* Which codes a call may, and which it must, end with: bit c for code c. OK is right when nothing
   must be refused. */
typedef struct fz_codes { uint64_t must, may; } fz_codes;

FZ_FN void fz_must(fz_codes *codes, int condition, int code)
{
    if (condition) codes->must |= (uint64_t)1 << code;
}
FZ_FN void fz_may(fz_codes *codes, int condition, int code)
{
    if (condition) codes->may |= (uint64_t)1 << code;
}
FZ_FN int fz_right(const fz_codes *codes, int code)
{
    return code == 0 ? codes->must == 0
                     : code > 0 && code < 64 && ((codes->must | codes->may) >> code & 1);
}

/* ------------------------------------------------------------------------------------------------
   Bytes
   ---------------------------------------------------------------------------------------------- */

typedef struct fz { const uint8_t *at, *end; uint64_t dice; } fz;

FZ_FN fz fz_of(const uint8_t *data, size_t size)
{
    fz f;
    f.at = data;
    f.end = data + size;
    f.dice = 0x9E3779B97F4A7C15u;
    return f;
}

FZ_FN size_t fz_left(const fz *f) { return (size_t)(f->end - f->at); }
FZ_FN int fz_u8(fz *f) { return f->at < f->end ? *f->at++ : 0; }
FZ_FN int fz_u16(fz *f) { int const low = fz_u8(f); return low | fz_u8(f) << 8; }
FZ_FN uint32_t fz_u32(fz *f)
{
    uint32_t const low = (uint32_t)fz_u16(f);
    return low | (uint32_t)fz_u16(f) << 16;
}
FZ_FN int fz_below(fz *f, int k) { return fz_u8(f) % k; }

/* One of k in most cases, and now and then what does not exist. */
FZ_FN int fz_choice(fz *f, int k)
{
    int const c = fz_u8(f);
    return c < 248    ? c % k
           : c == 248 ? -1
           : c == 249 ? k
           : c == 250 ? 1 << 30
           : c == 251 ? INT32_MIN
                      : c % k;
}

FZ_FN void fz_seed(fz *f) { f->dice = (f->dice ^ (uint64_t)fz_u16(f)) * 0xD1342543DE82EF95u + 1; }

FZ_FN uint32_t fz_roll(fz *f, uint32_t sides)
{
    f->dice ^= f->dice << 13;
    f->dice ^= f->dice >> 7;
    f->dice ^= f->dice << 17;
    return (uint32_t)((f->dice >> 20) % sides);
}

/* In [0, 1). */
FZ_FN double fz_unit(fz *f) { return fz_roll(f, 1u << 24) / 16777216.0; }

FZ_FN real fz_nan(void) { return (real)NAN; }
FZ_FN real fz_infinity(void) { return (real)INFINITY; }

FZ_FN real fz_raw(fz *f)
{
    uint8_t bytes[sizeof(real)];
    real x;
    size_t k;
    for (k = 0; k < sizeof bytes; k++) bytes[k] = (uint8_t)fz_u8(f);
    memcpy(&x, bytes, sizeof x);
    return x;
}

/* Numbers that break things. */
FZ_FN real fz_special(fz *f)
{
    switch (fz_below(f, 20)) {
    case 0: return fz_nan();
    case 1: return fz_infinity();
    case 2: return -fz_infinity();
    case 3: return (real)-0.0;
    case 4: return FZ_MAX;
    case 5: return -FZ_MAX;
    case 6: return FZ_MIN;
    case 7: return FZ_MIN / 64; /* denormal */
    case 8: return (real)1e38;
    case 9: return (real)-1e38;
    case 10: return (real)1e-20;
    case 11: return (real)1e20;
    case 12: return (real)-1e15;
    case 13: return (real)1 + (real)FZ_EPSILON;
    case 14: return (real)1 - (real)FZ_EPSILON / 2;
    case 15: return (real)0.1;
    case 16: return (real)16777216;
    case 17: return (real)2147483648.0;
    case 18: return (real)-1;
    default: return fz_raw(f);
    }
}

/* Eighths between -8 and 20, powers of ten, and now and then a special one. */
FZ_FN real fz_real(fz *f)
{
    int const c = fz_u8(f);
    if (c < 180) return (real)((c - 60) / 8.0);
    if (c < 225) return (real)pow(10, c - 205);
    if (c < 240) return (real)(0.1 * (c - 224));
    return fz_special(f);
}

/* For lengths: seldom refused. */
FZ_FN real fz_length(fz *f)
{
    int const c = fz_u8(f);
    if (c < 160) return (real)((c + 1) / 16.0);
    if (c < 220) return (real)pow(1.5, c - 190);
    if (c < 244) return (real)(0.05 * (c - 219));
    return fz_special(f);
}

FZ_FN int32_t fz_count(fz *f)
{
    int const c = fz_u8(f);
    if (c < 200) return c % 48;
    if (c < 240) return c - 40;
    if (c < 252) return 200 + 10 * (c - 240);
    return c == 255 ? 1000 + fz_u8(f) * 4 : c - 252;
}

FZ_FN int fz_finite(real x) { return x - x == 0; }
FZ_FN int fz_equal(real a, real b) { return a == b || (a != a && b != b); }

/* ------------------------------------------------------------------------------------------------
   Memory: exactly as long as asked for, so that AddressSanitizer sees one number too many
   ---------------------------------------------------------------------------------------------- */

FZ_FN void *fz_exactly(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) abort();
    memset(memory, 0xA5, bytes ? bytes : 1);
    return memory;
}

#define FZ_NEW(type, count) ((type *)fz_exactly((size_t)(count) * sizeof(type)))

/* An allocator that counts, checks the sizes given back, and fails at the k-th call or where more
   than `most` is asked for. */
typedef struct fz_heap {
    int64_t calls, live, blocks, fail_at, most, largest;
    int crooked, failed;
} fz_heap;

enum { FZ_FRONT = 32 };

FZ_FN void *fz_alloc(size_t bytes, void *user)
{
    fz_heap *h = (fz_heap *)user;
    char *memory;
    FZ_CHECK(bytes > 0);
    if ((int64_t)bytes > h->largest) h->largest = (int64_t)bytes;
    if (++h->calls == h->fail_at || (int64_t)bytes > h->most || bytes > (size_t)1 << 40) {
        h->failed = 1;
        return NULL;
    }
    memory = (char *)malloc(bytes + FZ_FRONT);
    if (!memory) { h->failed = 1; return NULL; }
    memory += h->crooked ? FZ_FRONT - 8 : FZ_FRONT;
    memcpy(memory - 8, &bytes, 8 < sizeof bytes ? 8 : sizeof bytes);
    memset(memory, 0xA5, bytes);
    h->live += (int64_t)bytes;
    h->blocks++;
    return memory;
}

FZ_FN void fz_free(void *memory, size_t bytes, void *user)
{
    fz_heap *h = (fz_heap *)user;
    size_t had = 0;
    FZ_CHECK(memory != NULL);
    memcpy(&had, (char *)memory - 8, 8 < sizeof had ? 8 : sizeof had);
    FZ_CHECK(had == bytes);
    h->live -= (int64_t)bytes;
    h->blocks--;
    free((char *)memory - ((uintptr_t)memory % 16 == 0 ? FZ_FRONT : FZ_FRONT - 8));
}

FZ_FN fz_heap fz_heap_of(int64_t most)
{
    fz_heap h;
    memset(&h, 0, sizeof h);
    h.most = most;
    return h;
}

/* The next calls fail as the bytes say: mostly not at all. */
FZ_FN void fz_plan_failure(fz *f, fz_heap *h)
{
    int const c = fz_u8(f);
    h->failed = 0;
    h->fail_at = c < 200 ? 0 : h->calls + 1 + (c - 200) % 20;
}

/* ------------------------------------------------------------------------------------------------
   Points
   ---------------------------------------------------------------------------------------------- */

FZ_FN real fz_beside(real x, int steps)
{
    double const toward = steps < 0 ? -HUGE_VAL : HUGE_VAL;
    if (steps == 0) return x;
    return FZ_IS_FLOAT ? (real)nextafterf((float)x, (float)toward)
                       : (real)nextafter((double)x, toward);
}

/* A coordinate by one of the generators. */
FZ_FN real fz_coordinate(fz *f, int generator, int32_t i, int a, real same)
{
    switch (generator) {
    /* a lattice: ties, and exact borders */
    case 0: return (real)(fz_roll(f, 9) / 4.0);
    case 1: return (real)fz_unit(f);
    case 2: return same;                                                            /* coincident */
    /* clusters in clusters */
    case 3: return (real)((i % 3) + pow(10, -(i % 6)) * (fz_unit(f) - 0.5));
    case 4:
        return (real)((fz_roll(f, 2) ? 1 : -1) *
                      pow(10, fz_unit(f) * 76 - 38)); /* all magnitudes */
    /* byte by byte */
    case 5: return fz_real(f);
    case 6: return a == 0 ? (real)(i % 17 * 0.125) : same;                          /* a line */
    /* one number to each side of a tenth */
    case 7: return fz_beside((real)(0.1 * fz_roll(f, 6)), (int)fz_roll(f, 3) - 1);
    case 8: return (real)((fz_unit(f) - 0.5) * 40);
    /* ever denser towards a point */
    default: return (real)(0.5 + pow(10, -fz_unit(f) * 7) * (fz_roll(f, 2) ? 0.1 : -0.1));
    }
}

/* rows x width numbers, `step` numbers from row to row; what lies between is NaN. */
FZ_FN void fz_fill(fz *f, real *x, int32_t rows, int width, int step)
{
    static const double scales[8] = {1, 1, 1, 1, 1e-3, 1e4, 1e-18, 1e18};
    int const generator = fz_below(f, 10), more = fz_u8(f);
    double const scale = scales[more & 7];
    real const same = fz_real(f);
    int32_t i, specials = more >= 240 ? more - 239 : 0;
    int a;
    fz_seed(f);
    for (i = 0; i < rows; i++) {
        for (a = 0; a < width; a++) {
            double const y = (double)fz_coordinate(f, generator, i, a, same);
            x[(size_t)i * (size_t)step + (size_t)a] = fabs(y) < 1e19 ? (real)(y * scale) : (real)y;
        }
        for (; a < step; a++) x[(size_t)i * (size_t)step + (size_t)a] = fz_nan();
    }
    for (; specials > 0 && rows > 0; specials--) {
        int32_t const row = fz_u16(f) % rows;
        x[(size_t)row * (size_t)step + (size_t)fz_below(f, width)] = fz_special(f);
    }
}

/* Points of a scene. `stride` is what the header is given: right, 0, or (seldom) wrong. */
typedef struct fz_points {
    int32_t n;
    int width, step;    /* numbers of a point, and from one to the next */
    size_t stride;
    int stride_bad;
    real *x;
} fz_points;

FZ_FN fz_points fz_points_of(fz *f, int32_t n, int width)
{
    fz_points p;
    int const c = fz_u8(f);
    p.n = n;
    p.width = width;
    p.step = width + (c % 8 == 1 ? 1 : c % 8 == 2 ? 3 : 0);
    p.stride = c % 2 == 0 && p.step == width ? 0 : (size_t)p.step * sizeof(real);
    p.stride_bad = 0;
    p.x = FZ_NEW(real, (size_t)n * (size_t)p.step);
    fz_fill(f, p.x, n, width, p.step);
    if (c == 255) p.stride = (size_t)width * sizeof(real) + 1, p.stride_bad = 1;
    if (c == 254) p.stride = sizeof(real), p.stride_bad = width > 1;
    return p;
}

FZ_FN const real *fz_point(const fz_points *p, int32_t i)
{
    return p->x + (size_t)i * (size_t)p->step;
}

FZ_FN void fz_drop_points(fz_points *p)
{
    free(p->x);
    memset(p, 0, sizeof *p);
}

/* The first point with a NaN or infinite number, -1: none. */
FZ_FN int32_t fz_first_not_finite(const fz_points *p)
{
    int32_t i;
    int a;
    for (i = 0; i < p->n; i++)
        for (a = 0; a < p->width; a++)
            if (!fz_finite(fz_point(p, i)[a])) return i;
    return -1;
}

/* x*x + y*y + z*z, rounded after every operation, as the headers say. */
FZ_FN real fz_square(const real d[3])
{
    volatile real x = d[0] * d[0], y = d[1] * d[1], z = d[2] * d[2], sum = x + y;
    sum = sum + z;
    return sum;
}

/* ------------------------------------------------------------------------------------------------
   Distances in a box that may repeat: near, far, or so close to the rim that rounding decides
   ---------------------------------------------------------------------------------------------- */

enum { FZ_FAR, FZ_RIM, FZ_NEAR };

typedef struct fz_box { int dim, periodic[3]; real min[3], max[3]; } fz_box;

FZ_FN int fz_any_periodic(const fz_box *box)
{
    int a, any = 0;
    for (a = 0; a < box->dim; a++) any |= box->periodic[a] != 0;
    return any;
}

/* reach: a radius as the header forms it; its square as it forms that. */
FZ_FN int fz_near(const fz_box *box, const real *p, const real *q, real reach)
{
    double square = 0, slack = 8 * FZ_EPSILON * (double)reach, distance;
    int a;
    if (!fz_any_periodic(box)) { /* the rule of the header, exactly */
        real d[3] = {0, 0, 0};
        volatile real limit = reach * reach;
        for (a = 0; a < box->dim; a++) d[a] = q[a] - p[a];
        return fz_square(d) <= limit ? FZ_NEAR : FZ_FAR;
    }
    for (a = 0; a < box->dim; a++) {
        double const min = (double)box->min[a], max = (double)box->max[a], length = max - min,
                     x = (double)p[a], y = (double)q[a];
        double gap = fabs(y - x), away;
        slack += 4 * FZ_EPSILON * (fabs(x) + fabs(y));
        if (box->periodic[a]) {
            away = fmax(fabs(x - min), fabs(y - min)) / length;
            if (!(away < 1048576)) return FZ_RIM;
            slack += 4 * FZ_EPSILON * (2 + away) * (fabs(min) + fabs(max));
            gap = fmod(gap, length);
            gap = fmin(gap, length - gap);
        }
        square += gap * gap;
    }
    distance = sqrt(square);
    return distance < (double)reach - slack   ? FZ_NEAR
           : distance > (double)reach + slack ? FZ_FAR
                                              : FZ_RIM;
}

#endif
