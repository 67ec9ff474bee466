/* vec.h - vectors of three numbers as values, and a camera. Define VEC_REAL to have another type
   than double.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef EXAMPLES_VEC_H
#define EXAMPLES_VEC_H

#include "../common/base.h"

#ifndef VEC_REAL
#define VEC_REAL double
#endif

typedef VEC_REAL real;
typedef struct vec { real x[3]; } vec;

static inline vec vec_of(double x, double y, double z)
{
    vec v;
    v.x[0] = (real)x;
    v.x[1] = (real)y;
    v.x[2] = (real)z;
    return v;
}

/* a + t b */
static inline vec along(vec a, real t, vec b)
{
    int k;
    for (k = 0; k < 3; k++) a.x[k] += t * b.x[k];
    return a;
}

static inline vec minus(vec a, vec b) { return along(a, -1, b); }
static inline vec times(real t, vec a) { return along(vec_of(0, 0, 0), t, a); }
static inline real dot(vec a, vec b)
{
    return a.x[0] * b.x[0] + a.x[1] * b.x[1] + a.x[2] * b.x[2];
}
static inline real length(vec a) { return (real)sqrt((double)dot(a, a)); }
static inline vec between(vec a, vec b, double t)
{
    return along(times((real)(1 - t), a), (real)t, b);
}

static inline vec cross(vec a, vec b)
{
    vec c;
    c.x[0] = a.x[1] * b.x[2] - a.x[2] * b.x[1];
    c.x[1] = a.x[2] * b.x[0] - a.x[0] * b.x[2];
    c.x[2] = a.x[0] * b.x[1] - a.x[1] * b.x[0];
    return c;
}

/* Length 1; a vector of length 0 stays what it is. */
static inline vec unit(vec a)
{
    real const size = length(a);
    return size > 0 ? times(1 / size, a) : a;
}

#endif /* EXAMPLES_VEC_H */
