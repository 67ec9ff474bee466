/* more/nbody_sets.h - v0.2.0 - other masses for the bodies of a tree: a part of nbody.h
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   Forces and potentials for other masses of the same bodies: for one set, or for several at once.

   >>contents

       manual         use
       declarations   sets-api
       serial         sets-lanes, sets-serial
       CUDA           cuda/nbody_sets.cu

   >>use

   #define NBODY_WITH_SETS before the include of nbody.h, in each file that calls these functions
   and in the one with NBODY_IMPLEMENTATION. Options, units, memory, threads and results are those
   of nbody.h, and so is the licence, at its end.
*/

#ifndef NBODY_H
#error "more/nbody_sets.h is a part of nbody.h: define NBODY_WITH_SETS and include nbody.h"
#endif
#if 10000 * NBODY_VERSION_MAJOR + 100 * NBODY_VERSION_MINOR + NBODY_VERSION_PATCH != 200
#error "more/nbody_sets.h 0.2.0 and nbody.h are of different versions: copy both from one release"
#endif

#ifndef NBODY_SETS_H
#define NBODY_SETS_H

/* In a double build every function has another name, as in nbody.h. */
#if NBODY_I_REAL_KIND == 2 && !defined(NEARFIELD_NAMESPACE)
#define nbody_fields_again       nbody_f64_fields_again
#define nbody_fields_sets        nbody_f64_fields_sets
#define nbody_cuda_fields_again  nbody_f64_cuda_fields_again
#define nbody_cuda_fields_sets   nbody_f64_cuda_fields_sets
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>sets-api
   ---------------------------------------------------------------------------------------------- */

/* nbody_fields with other masses [sim->n] (NULL: all 1), for the bodies of the last build, where
   they were then: strides and all options are those of sim->desc. Nothing is sorted and no cell is
   made; sources, nodes and forces are computed anew. Bits: those of nbody_fields with this tree
   (the same method, levels and leaf). Both outputs NULL: the masses are set, for nbody_fields_at
   and the walks. NBODY_NOT_BUILT. NBODY_NOT_FINITE, NBODY_BAD_MASS, NBODY_OUT_OF_MEMORY,
   NBODY_NOT_RUN leave it empty. Not thread-safe on one nbody. */
NBODY_API nbody_result nbody_fields_again(nbody *sim, const nbody_real *mass, nbody_real *acc,
                                          nbody_real *potential);

/* nbody_fields_again for each of `sets` sets of masses, in order: mass [sets * n] has the n masses
   of one set after the other, acc [sets * 2 n] and potential [sets * n] their fields. With a stride
   in desc, a set begins n strides behind the one before it. The same bits as single calls. sim then
   holds the last set. With DIRECT and with CHEBYSHEV sources, up to four sets share one pass, which
   takes less time; others, and NBODY_ONE_THREAD, are computed one by one. All masses are checked
   first: bad_id is of the first set that has a bad one. sets 0: nothing is done. Memory beyond what
   nbody_reserve takes: up to three times that of masses, sources and nodes. Results as above. */
NBODY_API nbody_result nbody_fields_sets(nbody *sim, int32_t sets, const nbody_real *mass,
                                         nbody_real *acc, nbody_real *potential);

#ifdef NBODY_CUDA
/* A mass that is bad is reported by nbody_cuda_check until the next build. */
NBODY_API nbody_result nbody_cuda_fields_again(nbody_cuda *gpu, const nbody_real *d_mass,
                                               nbody_real *d_acc, nbody_real *d_potential,
                                               struct CUstream_st *stream);
/* One set after the other, on the same tree. A mass that is bad in any set is reported so, too. */
NBODY_API nbody_result nbody_cuda_fields_sets(nbody_cuda *gpu, int32_t sets,
                                              const nbody_real *d_mass, nbody_real *d_acc,
                                              nbody_real *d_potential, struct CUstream_st *stream);
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif
#endif /* NBODY_SETS_H */

#if defined(NBODY_I_IMPLEMENTED) && !defined(NBODY_SETS_IMPLEMENTATION_DONE)
#define NBODY_SETS_IMPLEMENTATION_DONE

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

#ifndef NBODY_PLAIN

#ifndef NBODY_I_WITH_SETS
#error "nbody.h: define NBODY_WITH_SETS before NBODY_IMPLEMENTATION, in the same include"
#endif

/* ----------------------------------------------------------------------------------------------
   >>sets-lanes: one pass for up to four sets, as >>lanes in nbody.h
   ---------------------------------------------------------------------------------------------- */

/* What several sets share: d, g and phi of a chunk of sources on 16 targets. */
typedef struct nbody_i_shared {
    nbody_real dx[NBODY_CHUNK][NBODY_I_LANES], dy[NBODY_CHUNK][NBODY_I_LANES],
        g[NBODY_CHUNK][NBODY_I_LANES], phi[NBODY_CHUNK][NBODY_I_LANES];
} nbody_i_shared;

/* Sources first .. end - 1: as nbody_i_lanes_monopoles, before masses come in. */
NBODY_I_INLINE void nbody_i_share(int avx2, const nbody_i_law *is, nbody_law law, int core,
                                  int potential, const nbody_i_run *run, int32_t first, int32_t end,
                                  const nbody_i_lanes *lanes, nbody_i_shared *shared)
{
    nbody_real d2[NBODY_I_LANES], u[NBODY_I_LANES], root[NBODY_I_LANES];
    nbody_real const soften2 = is->soften2;
    nbody_i_law constant = *is;
    int32_t s;
    int k;
    constant.law = law;
    constant.core = core;
    for (s = first; s < end; s++) {
        nbody_real const sx = run->x[s], sy = run->y[s];
        nbody_real *to_x = shared->dx[s - first], *to_y = shared->dy[s - first],
                   *g = shared->g[s - first], *phi = shared->phi[s - first];
        NBODY_I_KEEP_LOOP
        for (k = 0; k < NBODY_I_LANES; k++) {
            nbody_real const dx = sx - lanes->x[k], dy = sy - lanes->y[k];
            d2[k] = nbody_i_times(dx, dx) + nbody_i_times(dy, dy);
            u[k] = d2[k] + soften2;
            to_x[k] = dx;
            to_y[k] = dy;
        }
        if (law == NBODY_INVERSE_SQUARE) nbody_i_inverse_roots(avx2, root, u);
        NBODY_I_KEEP_LOOP
        for (k = 0; k < NBODY_I_LANES; k++)
            g[k] = nbody_i_strength(&constant, u[k], law == NBODY_INVERSE ? 0 : root[k]);
        if (!potential) continue;
        NBODY_I_KEEP_LOOP
        for (k = 0; k < NBODY_I_LANES; k++) phi[k] = nbody_i_potential(&constant, u[k], root[k]);
        nbody_i_not_in_potential(is, lanes, d2, run->place < 0 ? -2 : run->place + s, phi);
    }
}

/* Adds four sources of nbody_i_shared, times their masses in a set, to 16 sums of x and y, or of
   potentials. Between the four the sums stay in registers. */
NBODY_I_INLINE void nbody_i_add_four(const nbody_real *mass, const nbody_real *g,
                                     const nbody_real *dx, const nbody_real *dy, nbody_real *x,
                                     nbody_real *y)
{
    enum { L = NBODY_I_LANES };
    nbody_real const a = mass[0], b = mass[1], c = mass[2], d = mass[3];
    int k;
    NBODY_I_KEEP_LOOP
    for (k = 0; k < L; k++) {
        nbody_real const ag = nbody_i_times(a, g[k]), bg = nbody_i_times(b, g[L + k]),
                         cg = nbody_i_times(c, g[2 * L + k]), dg = nbody_i_times(d, g[3 * L + k]);
        x[k] = x[k] + nbody_i_times(ag, dx[k]) + nbody_i_times(bg, dx[L + k]) +
               nbody_i_times(cg, dx[2 * L + k]) + nbody_i_times(dg, dx[3 * L + k]);
        y[k] = y[k] + nbody_i_times(ag, dy[k]) + nbody_i_times(bg, dy[L + k]) +
               nbody_i_times(cg, dy[2 * L + k]) + nbody_i_times(dg, dy[3 * L + k]);
    }
}

NBODY_I_INLINE void nbody_i_add_four_potentials(const nbody_real *mass, const nbody_real *phi,
                                                nbody_real *sum)
{
    enum { L = NBODY_I_LANES };
    nbody_real const a = mass[0], b = mass[1], c = mass[2], d = mass[3];
    int k;
    NBODY_I_KEEP_LOOP
    for (k = 0; k < L; k++)
        sum[k] = sum[k] + nbody_i_times(a, phi[k]) + nbody_i_times(b, phi[L + k]) +
                 nbody_i_times(c, phi[2 * L + k]) + nbody_i_times(d, phi[3 * L + k]);
}

/* Adds what is shared, times the masses of one set. */
NBODY_I_INLINE void nbody_i_add_shared(int potential, const nbody_i_shared *shared,
                                       const nbody_real *mass, int32_t count, nbody_i_lanes *lanes)
{
    nbody_real x[NBODY_I_LANES], y[NBODY_I_LANES], phi[NBODY_I_LANES];
    int32_t s;
    int k;
    memcpy(x, lanes->partial[NBODY_I_X], sizeof x);
    memcpy(y, lanes->partial[NBODY_I_Y], sizeof y);
    memcpy(phi, lanes->partial[NBODY_I_POTENTIAL], sizeof phi);
    for (s = 0; s + 4 <= count; s += 4) {
        nbody_i_add_four(mass + s, shared->g[s], shared->dx[s], shared->dy[s], x, y);
        if (potential) nbody_i_add_four_potentials(mass + s, shared->phi[s], phi);
    }
    for (; s < count; s++) {
        nbody_real const m = mass[s];
        NBODY_I_KEEP_LOOP
        for (k = 0; k < NBODY_I_LANES; k++) {
            nbody_real const mg = nbody_i_times(m, shared->g[s][k]);
            x[k] += nbody_i_times(mg, shared->dx[s][k]);
            y[k] += nbody_i_times(mg, shared->dy[s][k]);
        }
        if (!potential) continue;
        NBODY_I_KEEP_LOOP
        for (k = 0; k < NBODY_I_LANES; k++) phi[k] += nbody_i_times(m, shared->phi[s][k]);
    }
    memcpy(lanes->partial[NBODY_I_X], x, sizeof x);
    memcpy(lanes->partial[NBODY_I_Y], y, sizeof y);
    memcpy(lanes->partial[NBODY_I_POTENTIAL], phi, sizeof phi);
}

/* Sources first .. end - 1 of a run, a chunk at most, with the masses of each set. lanes: one for
   each set, the positions in the first. */
NBODY_I_INLINE void nbody_i_sums_of_sets(int avx2, const nbody_i_law *law, const nbody_i_run *run,
                                         const nbody_real *const *mass, int sets, int32_t first,
                                         int32_t end, nbody_i_lanes *lanes)
{
    nbody_law const square = NBODY_INVERSE_SQUARE, other = NBODY_INVERSE;
    int const is_square = law->law == square, potential = law->potential;
    nbody_i_shared shared;
    int s;
    if (is_square && !potential)
        nbody_i_share(avx2, law, square, 0, 0, run, first, end, lanes, &shared);
    else if (is_square) nbody_i_share(avx2, law, square, 0, 1, run, first, end, lanes, &shared);
    else if (law->core && !potential)
        nbody_i_share(avx2, law, other, 1, 0, run, first, end, lanes, &shared);
    else if (law->core) nbody_i_share(avx2, law, other, 1, 1, run, first, end, lanes, &shared);
    else if (!potential) nbody_i_share(avx2, law, other, 0, 0, run, first, end, lanes, &shared);
    else nbody_i_share(avx2, law, other, 0, 1, run, first, end, lanes, &shared);
    for (s = 0; s < sets; s++) {
        if (potential) nbody_i_add_shared(1, &shared, mass[s] + first, end - first, &lanes[s]);
        else nbody_i_add_shared(0, &shared, mass[s] + first, end - first, &lanes[s]);
    }
}

/* nbody_i_rows for four pairs of factors and sums. */
NBODY_I_INLINE void nbody_i_rows_of_sets(const nbody_real *rows, int32_t step,
                                         const nbody_real *const *factor, int32_t count,
                                         nbody_real *const *sum)
{
    nbody_real at0[NBODY_I_LANES], at1[NBODY_I_LANES], at2[NBODY_I_LANES], at3[NBODY_I_LANES];
    int32_t b;
    int k;
    memcpy(at0, sum[0], sizeof at0);
    memcpy(at1, sum[1], sizeof at1);
    memcpy(at2, sum[2], sizeof at2);
    memcpy(at3, sum[3], sizeof at3);
    for (b = 0; b < count; b++, rows += step) {
        nbody_real const m0 = factor[0][b], m1 = factor[1][b], m2 = factor[2][b], m3 = factor[3][b];
        NBODY_I_KEEP_LOOP
        for (k = 0; k < NBODY_I_LANES; k++) {
            at0[k] += nbody_i_times(rows[k], m0);
            at1[k] += nbody_i_times(rows[k], m1);
            at2[k] += nbody_i_times(rows[k], m2);
            at3[k] += nbody_i_times(rows[k], m3);
        }
    }
    memcpy(sum[0], at0, sizeof at0);
    memcpy(sum[1], at1, sizeof at1);
    memcpy(sum[2], at2, sizeof at2);
    memcpy(sum[3], at3, sizeof at3);
}

static void nbody_i_base_sets(const nbody_i_law *law, const nbody_i_run *run,
                               const nbody_real *const *mass, int sets, int32_t first, int32_t end,
                               nbody_i_lanes *lanes)
{
    nbody_i_sums_of_sets(0, law, run, mass, sets, first, end, lanes);
}

static void nbody_i_base_set_rows(const nbody_real *rows, int32_t step,
                                   const nbody_real *const *factor, int32_t count,
                                   nbody_real *const *sum)
{
    nbody_i_rows_of_sets(rows, step, factor, count, sum);
}

#ifdef NBODY_I_AVX2
NBODY_I_AVX2 static void nbody_i_avx2_sets(const nbody_i_law *law, const nbody_i_run *run,
                                           const nbody_real *const *mass, int sets, int32_t first,
                                           int32_t end, nbody_i_lanes *lanes)
{
    nbody_i_sums_of_sets(1, law, run, mass, sets, first, end, lanes);
}

NBODY_I_AVX2 static void nbody_i_avx2_set_rows(const nbody_real *rows, int32_t step,
                                               const nbody_real *const *factor, int32_t count,
                                               nbody_real *const *sum)
{
    nbody_i_rows_of_sets(rows, step, factor, count, sum);
}
#endif

/* Sources first .. end - 1 of a run in each set. */
static void nbody_i_lanes_sets(const nbody *sim, int sets, const nbody_i_law *law,
                               const nbody_i_run *run, int32_t first, int32_t end,
                               nbody_i_lanes *lanes)
{
    const nbody_real *mass[NBODY_I_SETS];
    nbody_i_masses_in_sets(sim, sets, run, mass);
    NBODY_I_CHOSEN(nbody_i_base_sets, nbody_i_avx2_sets)
    (law, run, mass, sets, first, end, lanes);
}

/* Two or three sets cost as much as four. */
static void nbody_i_lanes_rows_of_four(const nbody_real *rows, int32_t step, int sets,
                                       nbody_i_sides *sides, int32_t count)
{
    nbody_real vain[NBODY_I_LANES];
    int s;
    memset(vain, 0, sizeof vain);
    for (s = sets; s < NBODY_I_SETS; s++) {
        sides->factor[s] = sides->factor[0];
        sides->sum[s] = vain;
    }
    NBODY_I_CHOSEN(nbody_i_base_set_rows, nbody_i_avx2_set_rows)
    (rows, step, sides->factor, count, sides->sum);
}

#endif /* NBODY_PLAIN */

/* ----------------------------------------------------------------------------------------------
   >>sets-serial: other masses for the bodies of a tree, and several sets of them

   What does not depend on masses is computed once for up to NBODY_I_SETS sets: the walks, the
   weights of interpolation, d, g and phi of a source and a target (nbody_i_shared), and the M2L
   table, which is read once for all. M2M, L2L, and sums are done for each set. The sums of a set
   are those of a call of its own, in the same order. MASS_CENTRES has sources in other places for
   other masses, and NBODY_ONE_THREAD stays the plain form: there one set follows the other.
   ---------------------------------------------------------------------------------------------- */

/* The largest |mass|, and in sim->bad_id the first bad one. */
static nbody_result nbody_i_measure_masses(nbody *sim, const nbody_i_input *input, double *heaviest)
{
    int const any_sign = nbody_i_has_fixed_sources(&sim->desc);
    int32_t i;
    *heaviest = 0;
    for (i = 0; i < sim->n; i++) {
        double const m = (double)nbody_i_mass(input, i), weight = m < 0 ? -m : m;
        sim->bad_id = i;
        if (!nbody_i_finite(m)) return NBODY_NOT_FINITE;
        if (m < 0 && !any_sign) return NBODY_BAD_MASS;
        if (weight > *heaviest) *heaviest = weight;
    }
    sim->bad_id = -1;
    return NBODY_OK;
}

/* The masses of a set: behind those of the sets before it. */
static nbody_i_input nbody_i_masses_of(const nbody *sim, const nbody_real *mass, int32_t set)
{
    nbody_i_input input = nbody_i_input_of(&sim->desc, NULL, 0, mass);
    size_t const skip = (size_t)set * (size_t)sim->n * input.mass_stride;
    if (mass) input.mass = (const nbody_real *)(const void *)((const char *)mass + skip);
    return input;
}

/* Where the fields of a set go. */
static nbody_i_outcome nbody_i_outcome_of(const nbody *sim, nbody_real *acc, nbody_real *potential,
                                          int32_t set)
{
    nbody_i_outcome out;
    size_t const bodies = (size_t)set * (size_t)sim->n;
    out.acc_stride = sim->desc.acc_stride;
    out.acc = acc ? (nbody_real *)(void *)((char *)acc + bodies * out.acc_stride) : NULL;
    out.potential = potential ? potential + bodies : NULL;
    return out;
}

/* How many of these sets one pass takes. */
static int nbody_i_sets_at_once(const nbody *sim, int32_t sets)
{
    if (!nbody_i_has_fixed_sources(&sim->desc) || nbody_i_is_plain(sim)) return 1;
    return sets < NBODY_I_SETS ? (int)sets : NBODY_I_SETS;
}

/* The sets of one pass: all but the last have arrays in the block MORE. The last one has those of
   the caller's nbody, which so holds it afterwards. */
typedef struct nbody_i_sets {
    nbody sim[NBODY_I_SETS];
    nbody_frame frame[NBODY_I_SETS];
    nbody_i_outcome out[NBODY_I_SETS];
} nbody_i_sets;

/* Makes copies of sim, and gives them arrays of their own. */
static nbody_result nbody_i_prepare_sets(nbody *sim, int sets, int potential, nbody_i_sets *all)
{
    size_t const cells = sim->cell ? (size_t)sim->frame->cells : 0, n = (size_t)sim->n,
                 sources = cells * (size_t)sim->per_cell,
                 reals = 2 * n + sources + cells * nbody_i_node_reals(sim, potential);
    int s;
    if (sets > 1) {
        nbody_result const result = nbody_i_grow_array(
            sim, NBODY_I_MORE, reals, (size_t)(sets - 1) * sizeof(nbody_real), NBODY_I_AHEAD);
        if (result != NBODY_OK) return result;
    }
    for (s = 0; s < sets; s++) all->sim[s] = *sim;
    for (s = 0; s < sets - 1; s++) {
        nbody_real *memory = (nbody_real *)sim->block[NBODY_I_MORE].memory + (size_t)s * reals;
        all->frame[s] = *sim->frame;
        all->sim[s].frame = &all->frame[s];
        all->sim[s].m = memory;
        all->sim[s].acts = memory + n;
        if (!sim->cell) continue;
        nbody_i_bind_sources(&all->sim[s], memory + 2 * n, NULL, cells);
        nbody_i_bind_nodes(&all->sim[s], memory + 2 * n + sources, cells, potential);
    }
    return NBODY_OK;
}

static void nbody_i_place_masses(nbody *sim, const nbody_i_input *input)
{
    double heaviest;
    int32_t place;
    (void)nbody_i_measure_masses(sim, input, &heaviest);
    sim->frame->mass = nbody_i_unit_of_masses(sim, heaviest);
    for (place = 0; place < sim->n; place++) nbody_i_place_mass(sim, input, place, sim->id[place]);
}

/* The sources of each set; the plain text has one set. */
static nbody_result nbody_i_sources_of_sets(nbody *sim, int sets)
{
#ifndef NBODY_PLAIN
    if (!nbody_i_is_plain(sim)) return nbody_i_fast_sources(sim, sets);
#endif
    (void)sets;
    nbody_i_plain_sources(sim);
    return NBODY_OK;
}

static nbody_result nbody_i_fields_of_sets(nbody *sim, int sets, const nbody_i_outcome *out)
{
    nbody_i_law const law = nbody_i_law_of(sim, out->potential != NULL);
    nbody_result result = NBODY_OK;
    if (nbody_i_fields_faster(sim, sets, &law, out, &result)) return result;
    return nbody_i_fields_of_tree(sim, out);
}

/* One pass: sets first .. first + sets - 1, whose masses are checked. Without outputs the masses
   and the sources are made. */
static nbody_result nbody_i_pass(nbody *sim, int32_t first, int sets, const nbody_real *mass,
                                 nbody_real *acc, nbody_real *potential)
{
    int const fields = acc || potential;
    nbody_i_sets all;
    int s;
    nbody_result result = NBODY_OK;
    sim->fx = sim->fy = sim->fp = sim->moment = sim->local = NULL; /* of other masses */
    if (sim->cell && fields) result = nbody_i_prepare_nodes(sim, potential != NULL, NBODY_I_AHEAD);
    if (result == NBODY_OK) result = nbody_i_prepare_sets(sim, sets, potential != NULL, &all);
    if (result != NBODY_OK) return result;
    for (s = 0; s < sets; s++) {
        nbody_i_input const input = nbody_i_masses_of(sim, mass, first + s);
        nbody_i_place_masses(&all.sim[s], &input);
        all.out[s] = nbody_i_outcome_of(sim, acc, potential, first + s);
    }
    if (sim->cell) result = nbody_i_sources_of_sets(all.sim, sets);
    if (result == NBODY_OK && fields) result = nbody_i_fields_of_sets(all.sim, sets, all.out);
    sim->table_kind = all.sim[0].table_kind;
    sim->kept = all.sim[0].kept;
    return result;
}

NBODY_API nbody_result nbody_fields_sets(nbody *sim, int32_t sets, const nbody_real *mass,
                                         nbody_real *acc, nbody_real *potential)
{
    nbody_result result = NBODY_OK;
    int32_t s, bad, at_once;
    double heaviest;
    if (!sim || sets < 0) return NBODY_BAD_ARGUMENT;
    if (!sim->frame) return NBODY_NOT_BUILT;
    if (potential && !nbody_i_has_potential(&sim->desc)) return NBODY_BAD_ARGUMENT;
    if (sim->n == 0) return NBODY_OK;
    for (s = 0; s < sets && result == NBODY_OK; s++) {
        nbody_i_input const input = nbody_i_masses_of(sim, mass, s);
        result = nbody_i_measure_masses(sim, &input, &heaviest);
    }
    for (s = 0; s < sets && result == NBODY_OK; s += at_once) {
        at_once = nbody_i_sets_at_once(sim, sets - s);
        result = nbody_i_pass(sim, s, at_once, mass, acc, potential);
    }
    bad = sim->bad_id;
    if (result != NBODY_OK) nbody_i_make_empty(sim);
    sim->bad_id = bad;
    return result;
}

NBODY_API nbody_result nbody_fields_again(nbody *sim, const nbody_real *mass, nbody_real *acc,
                                          nbody_real *potential)
{
    return nbody_fields_sets(sim, 1, mass, acc, potential);
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif

#ifdef NBODY_CUDA
#include "../cuda/nbody_sets.cu"
#endif

#endif /* NBODY_SETS_IMPLEMENTATION_DONE */
