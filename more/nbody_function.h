/* more/nbody_function.h - v0.2.0 - a force law of the caller: a part of nbody.h
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   Forces and potentials of a law of yours: a function of the distance, desc.function.

   >>contents

       manual         use, function
       one element    pair
       serial         cost, function-serial

   >>use

   #define NBODY_WITH_FUNCTION before the first include of nbody.h, in each file that includes it.
   Then desc.law = NBODY_FUNCTION, with desc.function. Options, units, memory, threads and results
   are those of nbody.h, and so is the licence, at its end.

   >>function: a law of the caller, NBODY_FUNCTION

   With r = sqrt(d^2 + softening^2), the force of unit mass on unit mass is f(r) d / r, and the
   potential phi(r); phi and phi + constant have the same force. Virtual particles and force nodes
   interpolate the law between points of cells that do not touch. So any f that is smooth there will
   do (Kalms section 5.6; Fong), and its singularity at 0, if any, does not matter: mean errors of
   1e-4 to 1e-3 of the sum of all |terms| with order 4, below 1e-6 with order 8 (docs/start-law.md).
   The functions are called

       for each near pair, in double: one call of f, and one of phi where potentials are requested
       for each entry of the M2L tables, which each level has of its own, in each evaluation: 40
       order^4 (order 4: 10,240; 8: 163,840). nbody_fields_sets shares them among four sets

   Tables are not kept from one call to the next: `user` could have changed. desc.function_ns tells
   NBODY_AUTO what a call takes. What the functions return enters sums as nbody_real, and must be
   in its range: NaN gives NaN. The least distance is not raised (>>limits), and bodies at one point
   exert no force on each other. VIRTUAL_PARTICLES of order 2 would need derivatives of f, and
   NBODY_GAUSSIAN is a core of 1 / d: both are NBODY_BAD_OPTION.

   By name    The file with NBODY_IMPLEMENTATION may name the functions:

       static inline double spring(double d, void *user) { return d; }
       #define NBODY_WITH_FUNCTION
       #define NBODY_FORCE spring                      and NBODY_POTENTIAL, if there is one
       #define NBODY_IMPLEMENTATION
       #include "nbody.h"

   and desc.function is as always, {spring, NULL, NULL}. Where it has these functions, near pairs
   call them in loops over 4 bodies, which the compiler inlines, and makes vector instructions of
   where they call nothing themselves (>>function-serial): of few operations, 0.3 to 0.4 of the
   time. The bits are the same (where the compiler fuses products and sums: with
   -ffp-contract=off). They are called for bodies besides, whose results are dropped; never with 0.
   Any other function, and both where the potential is another one, are called by pointer.

   On a GPU   A kernel cannot call a function of the host by its address. So there the names are
   needed, in the .cu file, of functions that are __host__ __device__. Calls nbody_cuda_... refuse
   all others with NBODY_BAD_OPTION; `user`, which may tell several laws apart, is then read on the
   GPU. NBODY_FAST is NBODY_SHARED_MEMORY. Forces have the bits of the serial code if f has the same
   bits on both sides: that takes nvcc -fmad=false, and exp, log and the like differ.
*/

#ifndef NBODY_H
#error "more/nbody_function.h is a part of nbody.h: define NBODY_WITH_FUNCTION and include nbody.h"
#endif
#if 10000 * NBODY_VERSION_MAJOR + 100 * NBODY_VERSION_MINOR + NBODY_VERSION_PATCH != 200
#error "more/nbody_function.h 0.2.0 and nbody.h are of different versions: copy both from one \
release"
#endif

#ifndef NBODY_I_FUNCTION
#error "nbody.h: define NBODY_WITH_FUNCTION before the first include of nbody.h in this file"
#endif

#ifndef NBODY_FUNCTION_H
#define NBODY_FUNCTION_H

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>pair: the term of one source and one target
   ---------------------------------------------------------------------------------------------- */

/* Is it a law of yours? Never on a GPU without NBODY_FORCE: the compiler drops what follows. */
NBODY_FN int nbody_i_by_function(const nbody_i_law *law)
{
#if defined(__CUDA_ARCH__) && !defined(NBODY_FORCE)
    (void)law;
    return 0;
#else
    return law->law == NBODY_FUNCTION;
#endif
}

/* The functions that the file names, without a name that could hide theirs. */
#ifdef NBODY_FORCE
NBODY_I_LANE_FN double nbody_i_named_force(double nbody_i_d, void *nbody_i_user)
{
    return NBODY_FORCE(nbody_i_d, nbody_i_user);
}
#endif
#ifdef NBODY_POTENTIAL
NBODY_I_LANE_FN double nbody_i_named_potential(double nbody_i_d, void *nbody_i_user)
{
    return NBODY_POTENTIAL(nbody_i_d, nbody_i_user);
}
#endif

/* Are the functions those that the file names? both: is a potential needed? */
static inline int nbody_i_is_named(const nbody_function *nbody_i_given, int nbody_i_both)
{
    int nbody_i_same_force = 0, nbody_i_same_potential = 0;
#ifdef NBODY_FORCE
    nbody_i_same_force = nbody_i_given->force == NBODY_FORCE;
#endif
#ifdef NBODY_POTENTIAL
    nbody_i_same_potential = nbody_i_given->potential == NBODY_POTENTIAL;
#endif
    (void)nbody_i_given;
    return nbody_i_same_force && (nbody_i_same_potential || !nbody_i_both);
}

/* f(r) / r for u = r^2, in the units of the arrays. */
NBODY_FN double nbody_i_function_strength(const nbody_i_law *law, double u)
{
    double const r = sqrt(u), d = nbody_i_product(r, law->length);
#if !defined(__CUDA_ARCH__)
    return law->function.force(d, law->function.user) / r;
#elif defined(NBODY_FORCE)
    return nbody_i_named_force(d, law->function.user) / r;
#else
    return d; /* not reached: nbody_i_by_function */
#endif
}

NBODY_FN double nbody_i_function_potential(const nbody_i_law *law, double u)
{
    double const d = nbody_i_product(sqrt(u), law->length);
#if !defined(__CUDA_ARCH__)
    return law->function.potential(d, law->function.user);
#elif defined(NBODY_POTENTIAL)
    return nbody_i_named_potential(d, law->function.user);
#else
    return d; /* not reached: none may be requested */
#endif
}

/* What a source does to a target, per unit mass. The product with the mass is in double too:
   f(r) / r may be out of the range of a float where m f(r) is not. */
typedef struct nbody_i_own_term { double dx, dy, strength, phi; } nbody_i_own_term;

NBODY_FN nbody_i_own_term nbody_i_function_pair(const nbody_i_law *law, const nbody_i_source *s,
                                            const nbody_i_target *t)
{
    nbody_i_own_term pair;
    double d2, u;
    int const is_self = s->place == t->place && s->place >= 0;
    pair.dx = (double)s->x - (double)t->x;
    pair.dy = (double)s->y - (double)t->y;
    d2 = nbody_i_product(pair.dx, pair.dx) + nbody_i_product(pair.dy, pair.dy);
    u = d2 + (double)law->soften2;
    pair.strength = d2 > 0 ? nbody_i_function_strength(law, u) : 0;
    pair.phi = 0;
    if (law->potential && (law->softened ? !is_self && u > 0 : d2 > 0))
        pair.phi = nbody_i_function_potential(law, u);
    return pair;
}

/* Adds the term, as nbody_i_add. */
NBODY_FN void nbody_i_add_pair(const nbody_i_own_term *pair, nbody_real mass,
                               nbody_real partial[NBODY_I_PARTS])
{
    double const m = (double)mass, mg = nbody_i_product(m, pair->strength);
    partial[NBODY_I_X] += (nbody_real)nbody_i_product(mg, pair->dx);
    partial[NBODY_I_Y] += (nbody_real)nbody_i_product(mg, pair->dy);
    partial[NBODY_I_POTENTIAL] += (nbody_real)nbody_i_product(m, pair->phi);
}

NBODY_FN void nbody_i_add_function(const nbody_i_law *law, const nbody_i_source *s,
                                   nbody_i_target *t)
{
    nbody_i_own_term const pair = nbody_i_function_pair(law, s, t);
    nbody_i_add_pair(&pair, s->m, t->partial);
    if (++t->terms == NBODY_CHUNK) nbody_i_carry_target(t);
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif
#endif /* NBODY_FUNCTION_H */

#if defined(NBODY_I_IMPLEMENTED) && !defined(NBODY_FUNCTION_IMPLEMENTATION_DONE)
#define NBODY_FUNCTION_IMPLEMENTATION_DONE

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>cost: a call, in terms of NBODY_INVERSE_SQUARE, as >>cost in nbody.h: desc.function_ns, twice
   with potentials, and 6 besides, by name 3
   ---------------------------------------------------------------------------------------------- */

/* A function of yours. Without function_ns: between a few operations (5 ns, by name 0.7) and an
   exp. */
static double nbody_i_call_cost(const nbody_desc *desc, int potential)
{
    int const named = nbody_i_is_named(&desc->function, potential);
    double const ns = desc->function_ns > 0 ? desc->function_ns : named ? 2.5 : 8;
    return ns / 0.47 * (potential ? 2 : 1) + (named ? 3 : 6);
}

#ifndef NBODY_PLAIN

/* ----------------------------------------------------------------------------------------------
   >>function-serial: a law of the caller, 16 targets at a time

   By pointer each pair is a call. Functions that the file names by NBODY_FORCE and NBODY_POTENTIAL
   (>>function) are compiled into loops over 4 targets: numbers and bits are the same, and a loop
   whose function holds no call becomes vector instructions. As in >>lanes, they are compiled twice.
   ---------------------------------------------------------------------------------------------- */

#ifdef NBODY_FORCE
enum { NBODY_I_FOUR = 4 }; /* targets, as doubles: one register of AVX2 */

#ifdef NBODY_I_AVX2
NBODY_I_AVX2 static inline void nbody_i_avx2_four_roots(double *root, const double *u)
{
    _mm256_storeu_pd(root, _mm256_sqrt_pd(_mm256_loadu_pd(u)));
}
#endif

/* root[k] = sqrt(u[k]): intrinsics, as in nbody_i_inverse_roots. */
NBODY_I_INLINE void nbody_i_four_roots(int avx2, double *root, const double *u)
{
    int k;
#ifdef NBODY_I_AVX2
    if (avx2) {
        nbody_i_avx2_four_roots(root, u);
        return;
    }
#endif
    (void)avx2;
#if defined(NBODY_I_X86) && defined(__AVX__)
    for (k = 0; k < NBODY_I_FOUR; k += 4)
        _mm256_storeu_pd(root + k, _mm256_sqrt_pd(_mm256_loadu_pd(u + k)));
#elif defined(NBODY_I_X86)
    for (k = 0; k < NBODY_I_FOUR; k += 2) _mm_storeu_pd(root + k, _mm_sqrt_pd(_mm_loadu_pd(u + k)));
#elif defined(NBODY_I_NEON)
    for (k = 0; k < NBODY_I_FOUR; k += 2) vst1q_f64(root + k, vsqrtq_f64(vld1q_f64(u + k)));
#else
    for (k = 0; k < NBODY_I_FOUR; k++) root[k] = sqrt(u[k]);
#endif
}

/* What a source does to four targets, as nbody_i_own_term; u = 0 where the two are at one point. */
typedef struct nbody_i_four_targets {
    double x[NBODY_I_FOUR], y[NBODY_I_FOUR]; /* the targets */
    double dx[NBODY_I_FOUR], dy[NBODY_I_FOUR], d2[NBODY_I_FOUR], u[NBODY_I_FOUR];
    double strength[NBODY_I_FOUR], phi[NBODY_I_FOUR];
} nbody_i_four_targets;

/* As nbody_i_function_pair. The functions are not called with 0: where u is 0 they get the unit of
   length, and what they return does not count. */
NBODY_I_INLINE void nbody_i_named_pairs(int avx2, int potential, const nbody_i_law *law, double x,
                                        double y, nbody_i_four_targets *four)
{
    double const soften2 = (double)law->soften2, length = law->length;
    double safe[NBODY_I_FOUR], r[NBODY_I_FOUR], f[NBODY_I_FOUR];
    void *const user = law->function.user;
    int k;
    NBODY_I_KEEP_LOOP
    for (k = 0; k < NBODY_I_FOUR; k++) {
        four->dx[k] = x - four->x[k];
        four->dy[k] = y - four->y[k];
        four->d2[k] = nbody_i_product(four->dx[k], four->dx[k]) +
                      nbody_i_product(four->dy[k], four->dy[k]);
        four->u[k] = four->d2[k] + soften2;
        safe[k] = four->u[k] > 0 ? four->u[k] : 1;
    }
    nbody_i_four_roots(avx2, r, safe);
    NBODY_I_KEEP_LOOP
    for (k = 0; k < NBODY_I_FOUR; k++)
        f[k] = nbody_i_named_force(nbody_i_product(r[k], length), user);
    NBODY_I_KEEP_LOOP
    for (k = 0; k < NBODY_I_FOUR; k++) four->strength[k] = four->d2[k] > 0 ? f[k] / r[k] : 0;
#ifdef NBODY_POTENTIAL
    if (!potential) return;
    NBODY_I_KEEP_LOOP
    for (k = 0; k < NBODY_I_FOUR; k++)
        f[k] = nbody_i_named_potential(nbody_i_product(r[k], length), user);
    NBODY_I_KEEP_LOOP
    for (k = 0; k < NBODY_I_FOUR; k++) four->phi[k] = four->u[k] > 0 ? f[k] : 0;
#else
    (void)potential;
#endif
}

/* Adds the terms to lanes first .. first + 3, as nbody_i_add_pair. */
NBODY_I_INLINE void nbody_i_add_four_pairs(int potential, const nbody_i_four_targets *four,
                                           nbody_real mass, int first, nbody_i_lanes *lanes)
{
    nbody_real *const x = lanes->partial[NBODY_I_X] + first,
                      *const y = lanes->partial[NBODY_I_Y] + first,
                      *const phi = lanes->partial[NBODY_I_POTENTIAL] + first;
    double const m = (double)mass;
    int k;
    NBODY_I_KEEP_LOOP
    for (k = 0; k < NBODY_I_FOUR; k++) {
        double const mg = nbody_i_product(m, four->strength[k]);
        x[k] += (nbody_real)nbody_i_product(mg, four->dx[k]);
        y[k] += (nbody_real)nbody_i_product(mg, four->dy[k]);
    }
    if (!potential) return;
    NBODY_I_KEEP_LOOP
    for (k = 0; k < NBODY_I_FOUR; k++) phi[k] += (nbody_real)nbody_i_product(m, four->phi[k]);
}

/* Sources first .. end - 1 of a run on lanes lane .. lane + 3 of each set. */
NBODY_I_INLINE void nbody_i_named_sums(int avx2, int potential, const nbody_i_law *law,
                                       const nbody_i_run *run, const nbody_real *const *mass,
                                       int sets, int32_t first, int32_t end, int lane,
                                       nbody_i_lanes *lanes)
{
    nbody_i_four_targets four;
    int32_t i;
    int k, s;
    for (k = 0; k < NBODY_I_FOUR; k++) {
        four.x[k] = (double)lanes->x[lane + k];
        four.y[k] = (double)lanes->y[lane + k];
    }
    for (i = first; i < end; i++) {
        int32_t const self = run->place < 0 ? -1 : run->place + i - lanes->place[0] - lane;
        nbody_i_named_pairs(avx2, potential, law, (double)run->x[i], (double)run->y[i], &four);
        if (potential && lanes->place[0] >= 0 && self >= 0 && self < NBODY_I_FOUR)
            four.phi[self] = 0;
        for (s = 0; s < sets; s++)
            nbody_i_add_four_pairs(potential, &four, mass[s][i], lane, &lanes[s]);
    }
}

/* nbody_i_named_sums on all lanes. Of bodies, where the first occurs again, lanes are unused. */
NBODY_I_INLINE void nbody_i_named_lanes(int avx2, const nbody_i_law *law, const nbody_i_run *run,
                                        const nbody_real *const *mass, int sets, int32_t first,
                                        int32_t end, nbody_i_lanes *lanes)
{
    int lane;
    for (lane = 0; lane < NBODY_I_LANES; lane += NBODY_I_FOUR) {
        if (lane > 0 && lanes->place[0] >= 0 && lanes->place[lane] == lanes->place[0]) break;
        if (law->potential)
            nbody_i_named_sums(avx2, 1, law, run, mass, sets, first, end, lane, lanes);
        else nbody_i_named_sums(avx2, 0, law, run, mass, sets, first, end, lane, lanes);
    }
}

static void nbody_i_base_named(const nbody_i_law *law, const nbody_i_run *run,
                                const nbody_real *const *mass, int sets, int32_t first,
                                int32_t end, nbody_i_lanes *lanes)
{
    nbody_i_named_lanes(0, law, run, mass, sets, first, end, lanes);
}

#ifdef NBODY_I_AVX2
NBODY_I_AVX2 static void nbody_i_avx2_named(const nbody_i_law *law, const nbody_i_run *run,
                                            const nbody_real *const *mass, int sets, int32_t first,
                                            int32_t end, nbody_i_lanes *lanes)
{
    nbody_i_named_lanes(1, law, run, mass, sets, first, end, lanes);
}
#endif
#endif /* NBODY_FORCE */

/* Functions by pointer: each call serves all sets. Bodies: where the first occurs again, lanes are
   unused. */
static void nbody_i_called_lanes(const nbody *sim, int sets, const nbody_i_law *law,
                                 const nbody_i_run *run, const nbody_real *const *mass,
                                 int32_t first, int32_t end, nbody_i_lanes *lanes)
{
    int32_t i;
    int k, p, s;
    for (k = 0; k < NBODY_I_LANES; k++) {
        nbody_i_target const t = nbody_i_target_at(lanes->x[k], lanes->y[k], lanes->place[k]);
        if (k > 0 && t.place >= 0 && t.place == lanes->place[0]) break;
        for (i = first; i < end; i++) {
            nbody_i_source const source = nbody_i_source_of(sim, run, i);
            nbody_i_own_term const pair = nbody_i_function_pair(law, &source, &t);
            for (s = 0; s < sets; s++) {
                nbody_real partial[NBODY_I_PARTS];
                for (p = 0; p < NBODY_I_PARTS; p++) partial[p] = lanes[s].partial[p][k];
                nbody_i_add_pair(&pair, mass[s][i], partial);
                for (p = 0; p < NBODY_I_PARTS; p++) lanes[s].partial[p][k] = partial[p];
            }
        }
    }
}

/* Sources first .. end - 1 of a run, as nbody_i_add_function. */
static void nbody_i_lanes_function(const nbody *sim, int sets, const nbody_i_law *law,
                                   const nbody_i_run *run, int32_t first, int32_t end,
                                   nbody_i_lanes *lanes)
{
    const nbody_real *mass[NBODY_I_SETS];
    nbody_i_masses_in_sets(sim, sets, run, mass);
#ifdef NBODY_FORCE
    if (nbody_i_is_named(&law->function, law->potential) && run->x) {
        NBODY_I_CHOSEN(nbody_i_base_named, nbody_i_avx2_named)
        (law, run, mass, sets, first, end, lanes);
        return;
    }
#endif
    nbody_i_called_lanes(sim, sets, law, run, mass, first, end, lanes);
}

#endif /* NBODY_PLAIN */

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif

#endif /* NBODY_FUNCTION_IMPLEMENTATION_DONE */
