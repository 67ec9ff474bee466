/* moving.h - elements in motion, step by step: a mesh that is bent and twisted, and particles of a
   rotating drum.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef MOVING_H
#define MOVING_H

#include <math.h>
#include <stdint.h>

#include "tests/common/workloads.h"

/* count points of a mesh in -size .. size, `time` seconds after it was at rest: twisted about the z
   axis, the more the larger z is, with two waves. */
WL_FN void mv_bend(int32_t count, const float *rest, double size, double time, float *moved)
{
    size_t i;
    for (i = 0; i < (size_t)count; i++) {
        double const x = (double)rest[3 * i] / size, y = (double)rest[3 * i + 1] / size,
                     z = (double)rest[3 * i + 2] / size, angle = 3 * sin(0.3 * time) * z,
                     c = cos(angle), s = sin(angle);
        moved[3 * i] = (float)(size * (c * x - s * y));
        moved[3 * i + 1] = (float)(size * (s * x + c * y + 0.15 * sin(0.7 * time + 3 * x)));
        moved[3 * i + 2] = (float)(size * (z + 0.15 * sin(time + 4 * x)));
    }
}

/* Particles that fill the lower half of a drum, a cylinder of radius 1 and length 2 along z. */
WL_FN void mv_fill_drum(int32_t n, uint64_t seed, float *pos)
{
    wl_random r = wl_seed(seed);
    int32_t i;
    for (i = 0; i < n; i++) {
        float *p = pos + 3 * (size_t)i;
        do {
            p[0] = 2 * wl_u(&r) - 1;
            p[1] = -wl_u(&r);
        } while (p[0] * p[0] + p[1] * p[1] > 1);
        p[2] = 2 * wl_u(&r);
    }
}

/* The particles after the drum has turned by `angle`. Below a layer they turn with the drum; in the
   layer they flow down and are mixed (Khakhar, McCarthy, Shinbrot and Ottino 1997: the depth of the
   layer is 0.2 (1 - x^2), its velocity falls linearly to 0 below), by random steps of `most`. */
WL_FN void mv_turn_drum(int32_t n, float angle, float most, wl_random *r, float *pos)
{
    int32_t i;
    int a;
    for (i = 0; i < n; i++) {
        float *p = pos + 3 * (size_t)i;
        float const depth = 0.2f * (1 - p[0] * p[0]), x = p[0], y = p[1];
        if (-y >= depth) {
            p[0] += angle * y;
            p[1] -= angle * x;
        } else {
            p[0] += angle * 5 * (1 + y / depth);
            p[1] -= angle * x * (y / depth) * (y / depth);
            for (a = 0; a < 3; a++) p[a] += most * (2 * wl_u(r) - 1);
        }
        if (p[1] > 0) p[1] = -p[1];
        if (p[2] < 0) p[2] = -p[2];
        if (p[2] > 2) p[2] = 4 - p[2];
        if (p[0] * p[0] + p[1] * p[1] > 1) { /* the wall */
            float const back = 1 / sqrtf(p[0] * p[0] + p[1] * p[1]);
            p[0] *= back;
            p[1] *= back;
        }
    }
}

#endif
