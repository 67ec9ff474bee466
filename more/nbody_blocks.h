/* more/nbody_blocks.h - v0.2.0 - block time steps: a part of nbody.h
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   Shorter time steps for the bodies that need them. Every body has a step of its own: the longest
   one, or that halved once or several times. Bodies of one level form a block and move together.
   (Kalms, section 3.1.1, suggests shorter steps for sets of particles. Steps in powers of two:
   Hayli 1967; McMillan 1986; Makino, PASJ 43 (1991) 859.)

   >>contents

       manual         use
       declarations   blocks-api
       one element    blocks
       serial         blocks-serial
       CUDA           cuda/nbody_blocks.cu

   >>use

   #define NBODY_WITH_BLOCKS before the include of nbody.h, in each file that calls these functions
   and in the one with NBODY_IMPLEMENTATION. It adds the parts NBODY_WITH_STEP and
   NBODY_WITH_POINTS, too. Options, units, threads and results are those of nbody.h, and so is the
   licence, at its end.

       nbody_bodies bodies = {pos, vel, acc, NULL, n, 0};
       nbody_blocks blocks = {0};
       for (i = 0; i < 1000 && r == NBODY_OK; i++)
           r = nbody_blocks_step(&blocks, NULL, &sim, &desc, &bodies, 0.01f);
       nbody_blocks_free(&blocks);
*/

#ifndef NBODY_H
#error "more/nbody_blocks.h is a part of nbody.h: define NBODY_WITH_BLOCKS and include nbody.h"
#endif
#if 10000 * NBODY_VERSION_MAJOR + 100 * NBODY_VERSION_MINOR + NBODY_VERSION_PATCH != 200
#error "more/nbody_blocks.h 0.2.0 and nbody.h are of different versions: copy both from one release"
#endif

#ifndef NBODY_BLOCKS_H
#define NBODY_BLOCKS_H

/* In a double build every function has another name, as in nbody.h. */
#if NBODY_I_REAL_KIND == 2 && !defined(NEARFIELD_NAMESPACE)
#define nbody_blocks_step       nbody_f64_blocks_step
#define nbody_blocks_free       nbody_f64_blocks_free
#define nbody_cuda_blocks_step  nbody_f64_cuda_blocks_step
#define nbody_cuda_blocks_free  nbody_f64_cuda_blocks_free
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>blocks-api
   ---------------------------------------------------------------------------------------------- */

/* How steps are chosen. All zero is valid. */
typedef struct nbody_blocks_desc {
    int32_t levels;             /* the shortest step is dt / 2^levels: 1 to 24 (default: 16) */
    double accuracy;            /* a step is at most accuracy * |a| / |da/dt|, where da/dt is what
                                   the body's last step changed (default: 0.03). Not far below the
                                   error of the forces: their jumps look like changes */
} nbody_blocks_desc;

/* The steps of the bodies. All zero is empty: all begin with the shortest step, and double it where
   they may. */
typedef struct nbody_blocks {
    int32_t n;                  /* bodies; another number of them begins anew */
    uint8_t *level;             /* [n] the step is dt / 2^level. Permute it with your bodies. CUDA:
                                   device memory */
    int32_t evaluations;        /* of the last call: how often forces were evaluated */
    int64_t forces;             /* of the last call: bodies whose forces were evaluated, added up
                                   over its evaluations */
    nbody_block memory;         /* private, and all that follows */
    nbody_allocator allocator;
    nbody_cuda_allocator cuda_allocator;
} nbody_blocks;

/* Advances all bodies by dt, in blocks (leapfrog: half a kick, a drift, half a kick, each body with
   its step). At the end all have the same time, and acc is that of the new positions. how: NULL,
   all defaults; desc: as in nbody_step.
   Cost     One tree for each of the shortest steps in use; forces for the bodies whose step ends,
            only. Few of them (below n / 16 and 256) cost 3 to 20 times what each costs among many.
   Memory   33 bytes a body, double 57; from desc.allocator.
   Errors   second order in each step. Momentum is conserved to the errors of the steps, not to
            rounding as with NBODY_LEAPFROG, since two bodies with different steps act on each other
            at different times. The forces of a few bodies are those of nbody_fields_at: within the
            error of the method.
   Results  NBODY_BAD_NUMBER: dt is not finite, or accuracy is negative or not finite;
            NBODY_BAD_OPTION: levels, NBODY_VORTEX; else as nbody_step. Refusals move nothing. A
            failure on the way (memory, numbers that are not finite, a task that did not run) leaves
            bodies at different times: bodies->fresh is 0 and blocks is empty then. */
NBODY_API nbody_result nbody_blocks_step(nbody_blocks *blocks, const nbody_blocks_desc *how,
                                         nbody *sim, const nbody_desc *desc, nbody_bodies *bodies,
                                         nbody_real dt);

/* Gives the memory back; blocks is empty afterwards. */
NBODY_API void nbody_blocks_free(nbody_blocks *blocks);

#ifdef NBODY_CUDA
/* As nbody_blocks_step; bodies in device memory. It waits for the stream once for each evaluation:
   how many bodies move decides what is launched. So it cannot be captured into a graph. The same
   bytes a body, and what CUB takes to select from n. */
NBODY_API nbody_result nbody_cuda_blocks_step(nbody_blocks *blocks, const nbody_blocks_desc *how,
                                              nbody_cuda *gpu, const nbody_desc *desc,
                                              nbody_bodies *bodies, nbody_real dt,
                                              struct CUstream_st *stream);
NBODY_API void nbody_cuda_blocks_free(nbody_blocks *blocks, struct CUstream_st *stream);
#endif

/* ----------------------------------------------------------------------------------------------
   >>blocks: one body. Time is counted in ticks, the shortest step of all: a call has 2^levels of
   them, and a body's step 2^(levels - level). Steps begin at multiples of their length, so that
   blocks meet:

       tick          0   1   2   3   4   5   6   7   8
       level 0       |-------------------------------|
       level 1       |---------------|---------------|
       level 3       |---|---|---|---|---|---|---|---|

   A step may be halved as often as is needed when it ends. It may be doubled once, if the longer
   one begins there.
   ---------------------------------------------------------------------------------------------- */

typedef struct nbody_i_blocks {
    nbody_bodies bodies;
    nbody_real *from;           /* [2 n] where the step began */
    nbody_real *next, *points;  /* [2 n] of bodies in the order of `active`: new accelerations, and
                                   positions */
    int32_t *since, *active;    /* [n] the tick at which the step began; bodies whose step ends */
    uint8_t *level;             /* [n] */
    double dt, accuracy;
    int32_t levels;
} nbody_i_blocks;

/* Ticks of a step of this level. */
NBODY_FN int32_t nbody_i_ticks(const nbody_i_blocks *b, int level)
{
    return (int32_t)1 << (b->levels - level);
}

/* So many ticks as a time. */
NBODY_FN double nbody_i_block_time(const nbody_i_blocks *b, int32_t ticks)
{
    return b->dt * (double)ticks / (double)((int32_t)1 << b->levels);
}

/* The tick at which the step of body i ends. */
NBODY_FN int32_t nbody_i_step_ends(const nbody_i_blocks *b, int32_t i)
{
    return b->since[i] + nbody_i_ticks(b, b->level[i]);
}

/* A step of body i begins: half a kick. */
NBODY_FN void nbody_i_begin_step(const nbody_i_blocks *b, int32_t i, int32_t tick)
{
    nbody_real const half_step =
        (nbody_real)(0.5 * nbody_i_block_time(b, nbody_i_ticks(b, b->level[i])));
    size_t const e = 2 * (size_t)i;
    int a;
    for (a = 0; a < 2; a++) {
        nbody_i_kick(&b->bodies, e + (size_t)a, half_step);
        b->from[e + (size_t)a] = b->bodies.pos[e + (size_t)a];
    }
    b->since[i] = tick;
}

/* The drift of body i since its step began: one rounding, however many ticks it takes. */
NBODY_FN void nbody_i_drift_to(const nbody_i_blocks *b, int32_t i, int32_t tick)
{
    nbody_real const time = (nbody_real)nbody_i_block_time(b, tick - b->since[i]);
    size_t const e = 2 * (size_t)i;
    b->bodies.pos[e] = b->from[e] + nbody_i_times(b->bodies.vel[e], time);
    b->bodies.pos[e + 1] = b->from[e + 1] + nbody_i_times(b->bodies.vel[e + 1], time);
}

/* The level of the step that begins at `tick`. The last one took `time`, and changed the
   acceleration, of this length now, by `change`. */
NBODY_FN int nbody_i_next_level(const nbody_i_blocks *b, int level, int32_t tick, double length,
                                double change, double time)
{
    double const most = b->accuracy * length * time; /* a step s fits: s change <= this */
    double step = nbody_i_block_time(b, nbody_i_ticks(b, level));
    step = step < 0 ? -step : step;
    if (level > 0 && tick % nbody_i_ticks(b, level - 1) == 0 && 2 * step * change <= most)
        return level - 1;
    while (level < b->levels && !(step * change <= most)) {
        step /= 2;
        level++;
    }
    return level;
}

/* The step of the k-th active body ends: its new acceleration, the other half of the kick, and the
   level of its next step. */
NBODY_FN void nbody_i_end_step(const nbody_i_blocks *b, int32_t k, int32_t tick)
{
    int32_t const i = b->active[k];
    int const level = b->level[i];
    double const time = nbody_i_block_time(b, nbody_i_ticks(b, level));
    size_t const e = 2 * (size_t)i;
    double length = 0, change = 0;
    int a;
    for (a = 0; a < 2; a++) {
        nbody_real const now = b->next[2 * (size_t)k + (size_t)a];
        double const d = (double)now - (double)b->bodies.acc[e + (size_t)a];
        length += (double)now * (double)now;
        change += d * d;
        b->bodies.acc[e + (size_t)a] = now;
        nbody_i_kick(&b->bodies, e + (size_t)a, (nbody_real)(0.5 * time));
    }
    b->level[i] = (uint8_t)nbody_i_next_level(b, level, tick, sqrt(length), sqrt(change),
                                              time < 0 ? -time : time);
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif
#endif /* NBODY_BLOCKS_H */

#if defined(NBODY_I_IMPLEMENTED) && !defined(NBODY_BLOCKS_IMPLEMENTATION_DONE)
#define NBODY_BLOCKS_IMPLEMENTATION_DONE

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>blocks-serial
   ---------------------------------------------------------------------------------------------- */

/* Bytes of a body's arrays. */
enum { NBODY_I_BLOCK_BYTES = 6 * sizeof(nbody_real) + 2 * sizeof(int32_t) + 1 };

/* Resolves defaults, and checks what a step is given. */
static nbody_result nbody_i_check_blocks(nbody_blocks_desc *how, const nbody_blocks_desc *given,
                                         const nbody_desc *desc, const nbody_bodies *bodies,
                                         nbody_real dt)
{
    nbody_desc resolved;
    nbody_result const result = nbody_i_check_step(bodies, dt, NBODY_LEAPFROG);
    memset(how, 0, sizeof *how);
    if (result != NBODY_OK) return result;
    if (given) *how = *given;
    if (how->levels == 0) how->levels = 16;
    if (how->levels < 1 || how->levels > 24) return NBODY_BAD_OPTION;
    if (!(how->accuracy >= 0) || !nbody_i_finite(how->accuracy)) return NBODY_BAD_NUMBER;
    if (how->accuracy <= 0) how->accuracy = 0.03;
    return nbody_i_defaults_of_step(&resolved, desc, bodies->n);
}

/* Points the arrays into the memory. n > 0 */
static nbody_i_blocks nbody_i_bind_blocks(nbody_blocks *blocks, const nbody_blocks_desc *how,
                                          const nbody_bodies *bodies, nbody_real dt)
{
    size_t const n = (size_t)bodies->n;
    nbody_i_blocks b;
    b.bodies = *bodies;
    b.from = (nbody_real *)blocks->memory.memory;
    b.next = b.from + 2 * n;
    b.points = b.next + 2 * n;
    b.since = (int32_t *)(void *)(b.points + 2 * n);
    b.active = b.since + n;
    b.level = (uint8_t *)(void *)(b.active + n);
    b.dt = (double)dt;
    b.accuracy = how->accuracy;
    b.levels = how->levels;
    blocks->level = b.level;
    return b;
}

NBODY_API void nbody_blocks_free(nbody_blocks *blocks)
{
    if (!blocks) return;
    nbody_i_give_back(&blocks->allocator, blocks->memory.memory, blocks->memory.bytes);
    memset(blocks, 0, sizeof *blocks);
}

/* Memory for n bodies. Where their number changed, all begin with the shortest step. */
static nbody_result nbody_i_reserve_blocks(nbody_blocks *blocks, const nbody_blocks_desc *how,
                                           const nbody_desc *desc, int32_t n)
{
    size_t const bytes = (size_t)n * NBODY_I_BLOCK_BYTES;
    if (blocks->n == n && blocks->memory.memory) return NBODY_OK;
    nbody_blocks_free(blocks);
    if (desc) blocks->allocator = desc->allocator;
    if (n == 0) return NBODY_OK;
    if ((size_t)n > SIZE_MAX / 2 / NBODY_I_BLOCK_BYTES) return NBODY_OUT_OF_MEMORY;
    blocks->memory.memory = nbody_i_alloc(&blocks->allocator, bytes);
    if (!blocks->memory.memory) return NBODY_OUT_OF_MEMORY;
    blocks->memory.bytes = bytes;
    blocks->n = n;
    memset((char *)blocks->memory.memory + (bytes - (size_t)n), how->levels, (size_t)n);
    return NBODY_OK;
}

/* New accelerations of the first m of `active`. Few of the bodies: as points in a tree of all. A
   body exerts no force on a point at its own position. */
static nbody_result nbody_i_block_forces(const nbody_i_blocks *b, nbody *sim,
                                         const nbody_desc *desc, int32_t m)
{
    nbody_bodies all = b->bodies;
    nbody_desc tight;
    nbody_result result;
    int32_t k;
    if (2 * (int64_t)m >= all.n) {
        all.acc = b->points;
        result = nbody_i_evaluate(sim, desc, &all);
        for (k = 0; result == NBODY_OK && k < m; k++)
            memcpy(b->next + 2 * (size_t)k, b->points + 2 * (size_t)b->active[k],
                   2 * sizeof *b->next);
        return result;
    }
    memset(&tight, 0, sizeof tight);
    if (desc) tight = *desc;
    tight.mass_stride = tight.acc_stride = 0;
    result = nbody_build(sim, &tight, all.pos, 0, all.mass, all.n);
    if (result != NBODY_OK) return result;
    for (k = 0; k < m; k++)
        memcpy(b->points + 2 * (size_t)k, all.pos + 2 * (size_t)b->active[k],
               2 * sizeof *b->points);
    return nbody_fields_at(sim, b->points, 0, m, b->next, NULL, NULL);
}

/* A tick, and whom the tasks of a step move. */
typedef struct nbody_i_block_move {
    const nbody_i_blocks *b;
    int32_t tick, count;        /* bodies, or active bodies */
    int last;                   /* 1: no step begins any more */
} nbody_i_block_move;

static void nbody_i_begin_task(void *job, int32_t piece, int32_t pieces)
{
    const nbody_i_block_move *move = (const nbody_i_block_move *)job;
    int32_t const end = nbody_i_begin_of(move->count, piece + 1, pieces);
    int32_t i = nbody_i_begin_of(move->count, piece, pieces);
    for (; i < end; i++) nbody_i_begin_step(move->b, i, move->tick);
}

static void nbody_i_drift_to_task(void *job, int32_t piece, int32_t pieces)
{
    const nbody_i_block_move *move = (const nbody_i_block_move *)job;
    int32_t const end = nbody_i_begin_of(move->count, piece + 1, pieces);
    int32_t i = nbody_i_begin_of(move->count, piece, pieces);
    for (; i < end; i++) nbody_i_drift_to(move->b, i, move->tick);
}

/* Steps of active bodies end, and the next ones begin. */
static void nbody_i_end_task(void *job, int32_t piece, int32_t pieces)
{
    const nbody_i_block_move *move = (const nbody_i_block_move *)job;
    int32_t const end = nbody_i_begin_of(move->count, piece + 1, pieces);
    int32_t k = nbody_i_begin_of(move->count, piece, pieces);
    for (; k < end; k++) {
        nbody_i_end_step(move->b, k, move->tick);
        if (!move->last) nbody_i_begin_step(move->b, move->b->active[k], move->tick);
    }
}

static nbody_result nbody_i_move_blocks(const nbody_parallel *parallel, nbody_i_work *task,
                                        nbody_i_block_move *move, int32_t count)
{
    move->count = count;
    return nbody_i_run_pieces(parallel, nbody_i_pieces(parallel, 4 * (int64_t)count), task, move);
}

/* The first tick at which a step ends, and the bodies whose steps do, in ascending order. */
static int32_t nbody_i_next_block(const nbody_i_blocks *b, int32_t *m)
{
    int32_t first = nbody_i_step_ends(b, 0), i;
    for (i = 1; i < b->bodies.n; i++) {
        int32_t const ends = nbody_i_step_ends(b, i);
        if (ends < first) first = ends;
    }
    for (*m = 0, i = 0; i < b->bodies.n; i++)
        if (nbody_i_step_ends(b, i) == first) b->active[(*m)++] = i;
    return first;
}

/* The levels of an earlier call with more of them. */
static void nbody_i_clamp_levels(const nbody_i_blocks *b)
{
    int32_t i;
    for (i = 0; i < b->bodies.n; i++)
        if (b->level[i] > b->levels) b->level[i] = (uint8_t)b->levels;
}

/* From one tick at which steps end to the last: drift, forces, kicks. */
static nbody_result nbody_i_run_blocks(nbody_blocks *blocks, const nbody_i_blocks *b, nbody *sim,
                                       const nbody_desc *desc)
{
    int32_t const n = b->bodies.n, end = nbody_i_ticks(b, 0);
    nbody_parallel parallel;
    nbody_i_block_move move;
    nbody_result result;
    int32_t m;
    memset(&parallel, 0, sizeof parallel);
    if (desc && desc->stage != NBODY_ONE_THREAD) parallel = desc->parallel;
    move.b = b;
    move.last = 0;
    move.tick = 0;
    result = nbody_i_move_blocks(&parallel, nbody_i_begin_task, &move, n);
    while (result == NBODY_OK && move.tick < end) {
        move.tick = nbody_i_next_block(b, &m);
        move.last = move.tick == end;
        result = nbody_i_move_blocks(&parallel, nbody_i_drift_to_task, &move, n);
        if (result != NBODY_OK) return result;
        result = nbody_i_block_forces(b, sim, desc, m);
        if (result != NBODY_OK) return result;
        result = nbody_i_move_blocks(&parallel, nbody_i_end_task, &move, m);
        blocks->evaluations++;
        blocks->forces += m;
    }
    return result;
}

NBODY_API nbody_result nbody_blocks_step(nbody_blocks *blocks, const nbody_blocks_desc *how,
                                         nbody *sim, const nbody_desc *desc, nbody_bodies *bodies,
                                         nbody_real dt)
{
    nbody_blocks_desc resolved;
    nbody_i_blocks b;
    nbody_result result = nbody_i_check_blocks(&resolved, how, desc, bodies, dt);
    if (result != NBODY_OK) return result;
    if (!blocks || !sim) return NBODY_BAD_ARGUMENT;
    result = nbody_i_reserve_blocks(blocks, &resolved, desc, bodies->n);
    if (result != NBODY_OK) return result;
    if (!bodies->fresh) result = nbody_i_evaluate(sim, desc, bodies);
    if (result != NBODY_OK) return result;
    blocks->evaluations = 0;
    blocks->forces = 0;
    if (bodies->n == 0) return NBODY_OK;
    b = nbody_i_bind_blocks(blocks, &resolved, bodies, dt);
    nbody_i_clamp_levels(&b);
    result = nbody_i_run_blocks(blocks, &b, sim, desc);
    if (result == NBODY_OK) return NBODY_OK;
    bodies->fresh = 0;
    nbody_blocks_free(blocks);
    return result;
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif

#ifdef NBODY_CUDA
#include "../cuda/nbody_blocks.cu"
#endif

#endif /* NBODY_BLOCKS_IMPLEMENTATION_DONE */
