/* more/nbody_vortex.h - v0.2.0 - vortices, and Gaussian cores: a part of nbody.h
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   Velocities and stream functions of point vortices and vortex blobs; Gaussian cores of 1 / d.

   >>contents

       manual         use, vortex, another-core
       one element    core

   >>use

   #define NBODY_WITH_VORTEX before the first include of nbody.h, in each file that includes it.
   Then desc.law = NBODY_VORTEX, or desc.core = NBODY_GAUSSIAN. Options, units, memory, threads and
   results are those of nbody.h, and so is the licence, at its end.

   >>vortex: velocities of vortices, and Gaussian cores

   A vortex of circulation C (its mass) moves the fluid at distance d with C / (2 pi d), at right
   angles to the line between the two, counter-clockwise where C > 0. That is the force of
   NBODY_INVERSE, turned by a right angle and divided by 2 pi (Cottet, Koumoutsakos: Vortex Methods,
   2000, chapter 2). So everything is computed for NBODY_INVERSE, and turned when it is stored: the
   velocity (f_y, -f_x) / (2 pi) in place of a force f, the stream function psi = -phi / (2 pi) in
   place of a potential: v_x = d psi / dy, v_y = -d psi / dx.

   Cores keep the velocity finite. With s = desc.softening, q = d^2 / s^2 (E_1: the exponential
   integral):

                        g                        phi
       NBODY_PLUMMER    1 / (d^2 + s^2)          ln(d^2 + s^2) / 2
       NBODY_GAUSSIAN   (1 - exp(-q)) / d^2      (ln d^2 + E_1(q)) / 2    (Lamb-Oseen)

   The first differs from 1 / d^2 at all distances: it has tables of its own on each level. The
   second differs by exp(-q) of it, which is less than the rounding of 1 from q = NBODY_I_CORE_END
   on. So no cell is made with a side below sqrt(NBODY_I_CORE_END) s: 4.3 s for float, 6.4 s for
   double. Cells that do not touch are then beyond each other's cores, and sources and nodes know
   the bare law only. Nothing is approximated; but bodies that cluster in one core are summed pair
   by pair, and all of them where s is above 1/17 of the square's side (double: 1/25).

   >>another-core: docs/contributing.md, "Add a softening or a force law", lists the places that a
   softening of another kind takes.
*/

#ifndef NBODY_H
#error "more/nbody_vortex.h is a part of nbody.h: define NBODY_WITH_VORTEX and include nbody.h"
#endif
#if 10000 * NBODY_VERSION_MAJOR + 100 * NBODY_VERSION_MINOR + NBODY_VERSION_PATCH != 200
#error "more/nbody_vortex.h 0.2.0 and nbody.h are of different versions: copy both from one release"
#endif

#ifndef NBODY_I_VORTEX
#error "nbody.h: define NBODY_WITH_VORTEX before the first include of nbody.h in this file"
#endif

#ifndef NBODY_VORTEX_H
#define NBODY_VORTEX_H

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>core: the factors of a Gaussian core, and what is stored for a vortex
   ---------------------------------------------------------------------------------------------- */

/* (1 - exp(-r)) / r: a Taylor series, for |r| <= ln(2) / 2, and a little worse up to ln 2 (rounding
   modes other than to nearest). */
NBODY_I_LANE_FN nbody_real nbody_i_core_series(nbody_real r)
{
#if NBODY_I_REAL_KIND == 1
    nbody_real h = 2.48015873e-05f;
    h = 0.000198412698f - nbody_i_times(r, h);
    h = 0.00138888889f - nbody_i_times(r, h);
    h = 0.00833333333f - nbody_i_times(r, h);
    h = 0.0416666667f - nbody_i_times(r, h);
    h = 0.166666667f - nbody_i_times(r, h);
    h = 0.5f - nbody_i_times(r, h);
    h = 1 - nbody_i_times(r, h);
#else
    nbody_real h = 1.1470745597729725e-11;
    h = 1.6059043836821613e-10 - nbody_i_times(r, h);
    h = 2.08767569878681e-09 - nbody_i_times(r, h);
    h = 2.505210838544172e-08 - nbody_i_times(r, h);
    h = 2.7557319223985888e-07 - nbody_i_times(r, h);
    h = 2.7557319223985893e-06 - nbody_i_times(r, h);
    h = 2.4801587301587302e-05 - nbody_i_times(r, h);
    h = 0.00019841269841269841 - nbody_i_times(r, h);
    h = 0.0013888888888888889 - nbody_i_times(r, h);
    h = 0.0083333333333333332 - nbody_i_times(r, h);
    h = 0.041666666666666664 - nbody_i_times(r, h);
    h = 0.16666666666666666 - nbody_i_times(r, h);
    h = 0.5 - nbody_i_times(r, h);
    h = 1 - nbody_i_times(r, h);
#endif
    return h;
}

/* 1 - exp(-q) for q >= 0; 1 from NBODY_I_CORE_END on. exp(-q) = 2^-k exp(-r), with r = q - k ln 2.
   k is rounded by adding 1.5 * 2^23 (2^52), and read from the bits of that sum: without branches,
   as in nbody_i_log. For k = 0 nothing cancels. */
NBODY_I_LANE_FN nbody_real nbody_i_core_share(nbody_real q)
{
    nbody_real const most = NBODY_I_CORE_END, at = q < most ? q : most;
#if NBODY_I_REAL_KIND == 1
    nbody_real const large = 12582912.0f, lead = 0.693359375f, rest = -2.12194440e-4f;
    uint32_t bits;
#else
    nbody_real const large = 6755399441055744.0, lead = 0.693147180369123816490,
                     rest = 1.90821492927058770002e-10;
    uint64_t bits;
#endif
    nbody_real const sum = nbody_i_times(at, (nbody_real)1.4426950408889634) + large,
                     k = sum - large,
                     r = (at - nbody_i_times(k, lead)) - nbody_i_times(k, rest);
    nbody_real power; /* 2^-k */
    memcpy(&bits, &sum, sizeof bits);
#if NBODY_I_REAL_KIND == 1
    bits = (127 - (bits & 0xFFu)) << 23;
#else
    bits = (1023 - (bits & 0xFFu)) << 52;
#endif
    memcpy(&power, &bits, sizeof power);
    return (1 - power) + nbody_i_times(power, nbody_i_times(r, nbody_i_core_series(r)));
}

/* (ln u + E_1(q)) / 2, in double. Near: E_1(q) = -gamma - ln q + Ein(q), where Ein is an
   alternating series. Far: a continued fraction (Abramowitz, Stegun, 5.1.11 and 5.1.22). */
NBODY_I_UNSEEN_FN nbody_real nbody_i_core_potential(nbody_real core2, nbody_real u)
{
    double const gamma = 0.57721566490153286, q = (double)u / (double)core2;
    double sum = 1;
    int k;
    if (q >= NBODY_I_CORE_END) return nbody_i_times((nbody_real)0.5, nbody_i_log_of(u));
    if (q < 6) {
        for (k = 40; k >= 1; k--)
            sum = 1 - nbody_i_product(nbody_i_product(q, sum), k) / ((k + 1) * (k + 1));
        sum = nbody_i_log((double)core2) - gamma + nbody_i_product(q, sum);
    } else {
        sum = q + 51;
        for (k = 25; k >= 1; k--) sum = q + (2 * k - 1) - (double)(k * k) / sum;
        sum = nbody_i_log((double)u) + (1 - (double)nbody_i_core_share((nbody_real)q)) / sum;
    }
    return (nbody_real)nbody_i_product(0.5, sum);
}

/* The core in the units of the arrays, and the deepest level that it allows. */
NBODY_FN void nbody_i_set_core(nbody_frame *frame, const nbody_desc *desc)
{
    double const core = (double)desc->softening / frame->length,
                 least = nbody_i_power(NBODY_I_REAL_KIND == 1 ? -82 : -680); /* 1 / it is finite */
    double side = frame->edge / 2;
    frame->core2 = nbody_i_product(core, core);
    if (frame->core2 < least) frame->core2 = least;
    for (frame->deepest = 0; frame->deepest < NBODY_MAX_LEVELS; frame->deepest++, side /= 2)
        if (side < sqrt(NBODY_I_CORE_END * frame->core2)) break;
}

#define NBODY_I_OVER_TURN 0.15915494309189535 /* 1 / (2 pi) */

/* The velocity in place of a force, and the unit of the stream function. */
NBODY_FN void nbody_i_turn_force(double x, double y, double force, nbody_i_vector *v)
{
    v->x = nbody_i_product(y, force * NBODY_I_OVER_TURN);
    v->y = nbody_i_product(x, -force * NBODY_I_OVER_TURN);
}

NBODY_FN double nbody_i_stream_unit(double unit) { return -unit * NBODY_I_OVER_TURN; }

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif
#endif /* NBODY_VORTEX_H */
