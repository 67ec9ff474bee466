/* more/nbody_step.h - v0.2.0 - motion, energy and errors of forces: a part of nbody.h
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   Moves bodies by their forces, one step of time after the other (leapfrog or Euler), sums their
   energy and momentum, and estimates the error of forces against direct summation in double.

   >>contents

       manual         use
       declarations   estimate-api, step-api
       one element    estimate, step
       serial         estimate-serial, step-serial
       CUDA           cuda/nbody_step.cu

   >>use

   #define NBODY_WITH_STEP before the include of nbody.h, in each file that calls these functions
   and in the one with NBODY_IMPLEMENTATION. Options, units, memory, threads and results are those
   of nbody.h, and so is the licence, at its end. What a call allocates, nbody_accelerations does.

       nbody_bodies bodies = {pos, vel, acc, NULL, n, 0};
       for (i = 0; i < 1000 && r == NBODY_OK; i++)
           r = nbody_step(&sim, &desc, &bodies, 0.01f, NBODY_LEAPFROG);
*/

#ifndef NBODY_H
#error "more/nbody_step.h is a part of nbody.h: define NBODY_WITH_STEP and include nbody.h"
#endif
#if 10000 * NBODY_VERSION_MAJOR + 100 * NBODY_VERSION_MINOR + NBODY_VERSION_PATCH != 200
#error "more/nbody_step.h 0.2.0 and nbody.h are of different versions: copy both from one release"
#endif

#ifndef NBODY_STEP_H
#define NBODY_STEP_H

/* In a double build every function has another name, as in nbody.h. */
#if NBODY_I_REAL_KIND == 2 && !defined(NEARFIELD_NAMESPACE)
#define nbody_estimate        nbody_f64_estimate
#define nbody_verify          nbody_f64_verify
#define nbody_step            nbody_f64_step
#define nbody_energy          nbody_f64_energy
#define nbody_cuda_estimate   nbody_f64_cuda_estimate
#define nbody_cuda_step       nbody_f64_cuda_step
#define nbody_cuda_energy     nbody_f64_cuda_energy
#endif

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>estimate-api: errors of forces
   ---------------------------------------------------------------------------------------------- */

/* Errors of accelerations against direct summation in double, over a sample of bodies. */
typedef struct nbody_error {
    int32_t samples;            /* bodies compared */
    double mean;                /* |a - a_ref| / |a_ref|, mean over the sample */
    double worst;               /* the largest of the sample. It grows where forces cancel: judge a
                                   method by `share` */
    double mean_share, share;   /* |a - a_ref| / sum of all |terms|, which does not: mean and
                                   largest */
    double direction;           /* |a/|a| - a_ref/|a_ref||: the angle between them, in radians where
                                   it is small; mean */
    double length;              /* ||a| - |a_ref|| / |a_ref|, mean */
    double bias;                /* (|a| - |a_ref|) / |a_ref|, mean: below 0 where forces come out
                                   too short */
    double given_mean, given_share; /* mean and share against the law with desc.softening as given.
                                   The others are against frame->soften2, which has a minimum: these
                                   are larger where bodies are nearer than about 1e-12 L, with 1/d
                                   1e-17 L (>>limits). (In double such forces have no squares:
                                   NaN) */
} nbody_error;

/* Compares acc with direct sums in double for a sample of `samples` bodies (more than n: all). acc
   is what nbody_accelerations of the same sim wrote, desc.acc_stride apart. The sample is spread
   over the square; each seed gives another. NBODY_NOT_BUILT. n * samples terms: with 64 samples of
   1M bodies, fewer than one step's. */
NBODY_API nbody_result nbody_estimate(const nbody *sim, const nbody_real *acc, int32_t samples,
                                      uint32_t seed, nbody_error *error);

/* Checks the structure as nbody_validate does, and then the forces as nbody_estimate does:
   NBODY_INVALID when a sample's error exceeds `most` of the sum of all |terms|, or is not a number.
   For tests of your own, with your data. It allocates as nbody_validate does. */
NBODY_API nbody_result nbody_verify(const nbody *sim, const nbody_real *acc, int32_t samples,
                                    uint32_t seed, double most);

#ifdef NBODY_CUDA
/* d_error: one, in device memory. NBODY_NOT_BUILT: there is no evaluation. */
NBODY_API nbody_result nbody_cuda_estimate(nbody_cuda *gpu, const nbody_real *d_acc,
                                           int32_t samples, uint32_t seed, nbody_error *d_error,
                                           struct CUstream_st *stream);
#endif

/* ----------------------------------------------------------------------------------------------
   >>step-api: motion and energy
   ---------------------------------------------------------------------------------------------- */

typedef enum nbody_integrator {
    NBODY_LEAPFROG = 0,         /* half a kick, a drift, half a kick: second order, symplectic; the
                                   energy error stays bounded over long times */
    NBODY_EULER                 /* a kick, then a drift with the new velocity (Kalms equations 7 and
                                   8): first order */
} nbody_integrator;

/* The bodies of a simulation, tightly packed; CUDA: device memory. */
typedef struct nbody_bodies {
    nbody_real *pos, *vel, *acc;/* [2 n] each */
    const nbody_real *mass;     /* [n], NULL: all 1 */
    int32_t n;
    int32_t fresh;              /* 1: acc belongs to pos. nbody_step sets it; clear it when you
                                   changed pos, mass or desc yourself */
} nbody_bodies;

/* One time step: advances vel and pos by dt. acc is then that of the new positions (LEAPFROG) or of
   the old (EULER). LEAPFROG evaluates forces once per step (twice in the first), EULER once;
   strides in desc are not used. NBODY_BAD_NUMBER: dt; NBODY_BAD_OPTION: NBODY_VORTEX, which has
   velocities: pos += velocity * dt is yours. Refusals as nbody_build, before anything moved; but
   LEAPFROG may run out of memory, or into numbers that are not finite, after half a kick and the
   drift, and after NBODY_NOT_RUN some bodies may have moved. With desc.parallel kicks and drifts
   are cut into tasks, too. */
NBODY_API nbody_result nbody_step(nbody *sim, const nbody_desc *desc, nbody_bodies *bodies,
                                  nbody_real dt, nbody_integrator integrator);

typedef struct nbody_energies {
    double kinetic;             /* sum of m v^2 / 2 */
    double potential;           /* sum of m potential / 2: each pair once */
    double mass;
    double momentum[2];         /* sum of m v */
    double angular;             /* sum of m (x v_y - y v_x) */
    double centre[2];           /* sum of m pos / mass; 0 without mass */
} nbody_energies;

/* Sums over all bodies, in double. potential: [n] from nbody_fields, NULL: 0. bodies->acc is not
   read. O(n). */
NBODY_API nbody_result nbody_energy(const nbody_bodies *bodies, const nbody_real *potential,
                                    nbody_energies *energies);

#ifdef NBODY_CUDA
/* As nbody_step. To capture it in a CUDA graph, bodies->fresh must be 1 for LEAPFROG (after one
   step), 0 for EULER: a graph keeps the value at capture. */
NBODY_API nbody_result nbody_cuda_step(nbody_cuda *gpu, const nbody_desc *desc,
                                       nbody_bodies *bodies, nbody_real dt,
                                       nbody_integrator integrator, struct CUstream_st *stream);

/* As nbody_energy; d_energies: one, in device memory. NBODY_NOT_BUILT: before nbody_cuda_reserve or
   a first evaluation. */
NBODY_API nbody_result nbody_cuda_energy(nbody_cuda *gpu, const nbody_bodies *bodies,
                                         const nbody_real *d_potential, nbody_energies *d_energies,
                                         struct CUstream_st *stream);
#endif

/* ----------------------------------------------------------------------------------------------
   >>estimate: the error of one sample

   The force on one body is summed again, directly and in double, and compared with the given one.
   ---------------------------------------------------------------------------------------------- */

/* A direct sum in double: acceleration and the sum of all |terms|, in the units of the arrays; and
   what has to be added for the softening as given. */
typedef struct nbody_i_exact { double x, y, all, more_x, more_y, more_all; } nbody_i_exact;

NBODY_FN double nbody_i_exact_strength(const nbody *sim, double m, double u)
{
    if (sim->desc.law == NBODY_FUNCTION) {
        nbody_i_law const law = nbody_i_law_of(sim, 0);
        return u > 0 ? m * nbody_i_function_strength(&law, u) : 0;
    }
    if (sim->desc.law == NBODY_INVERSE_SQUARE) return m / (u * sqrt(u));
    return sim->frame->core2 > 0 ? m * -expm1(-u / sim->frame->core2) / u : m / u;
}

/* A pair at distance d, whose force per mass is g d: the difference where softening was raised, as
   far as it is more than a rounding. Nearer than 1e-145 even doubles overflow. */
NBODY_FN void nbody_i_add_given(const nbody *sim, double m, double dx, double dy, double g,
                                nbody_i_exact *sum)
{
    const nbody_frame *frame = sim->frame;
    double const d2 = dx * dx + dy * dy, u = d2 + frame->given2;
    double more;
    if (d2 < 1e-290 || u > 1e12 * (frame->soften2 - frame->given2)) return;
    more = nbody_i_exact_strength(sim, m, u) - g;
    sum->more_x += more * dx;
    sum->more_y += more * dy;
    sum->more_all += (more < 0 ? -more : more) * sqrt(d2);
}

NBODY_FN void nbody_i_add_exact(const nbody *sim, int32_t place, int32_t from, nbody_i_exact *sum)
{
    double const dx = (double)sim->x[from] - (double)sim->x[place],
                 dy = (double)sim->y[from] - (double)sim->y[place];
    double const d2 = dx * dx + dy * dy, u = d2 + sim->frame->soften2;
    double const g = nbody_i_exact_strength(sim, (double)sim->m[from], u);
    sum->x += g * dx;
    sum->y += g * dy;
    sum->all += (g < 0 ? -g : g) * sqrt(d2);
    nbody_i_add_given(sim, (double)sim->m[from], dx, dy, g, sum);
}

/* The place of sample k: evenly spaced by place, from a start that depends on the seed (the
   next seed: further on by a golden section of n). */
NBODY_FN int32_t nbody_i_sample_place(int32_t n, int32_t samples, uint32_t seed, int32_t k)
{
    uint64_t const start = (uint64_t)(seed * 2654435761u) * (uint64_t)n >> 32;
    return (int32_t)((start + (uint64_t)k * (uint64_t)n / (uint64_t)samples) % (uint64_t)n);
}

/* The sum of all |terms|, in the units of what is stored. */
NBODY_FN double nbody_i_stored_sum(const nbody *sim, double all)
{
    nbody_i_vector const v = nbody_i_stored(sim, all, 0);
    return sqrt(v.x * v.x + v.y * v.y);
}

/* The errors of a sample against the law with the softening as given. */
NBODY_FN void nbody_i_given_error(const nbody *sim, const nbody_real *a, const nbody_i_exact *exact,
                                  nbody_error *e)
{
    nbody_i_vector const v =
        nbody_i_stored(sim, exact->x + exact->more_x, exact->y + exact->more_y);
    double const all = nbody_i_stored_sum(sim, exact->all + exact->more_all);
    double const ex = (double)a[0] - v.x, ey = (double)a[1] - v.y;
    double const error = sqrt(ex * ex + ey * ey), right = sqrt(v.x * v.x + v.y * v.y);
    if (right > 0) e->given_mean = error / right;
    else if (!(error <= 0)) e->given_mean = 1;
    if (!(all <= 0 && error <= 0)) e->given_share = error / all;
}

/* The errors of one sample; nbody_i_finish_error turns their sums into means. */
NBODY_FN nbody_error nbody_i_sample_error(const nbody *sim, const nbody_real *acc, int32_t place,
                                          const nbody_i_exact *exact)
{
    nbody_error e = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    const nbody_real *a = nbody_i_at(acc, sim->desc.acc_stride, sim->id[place]);
    nbody_i_vector const v = nbody_i_stored(sim, exact->x, exact->y);
    double const x = v.x, y = v.y, all = nbody_i_stored_sum(sim, exact->all);
    double const ax = (double)a[0], ay = (double)a[1], ex = ax - x, ey = ay - y;
    double const error = sqrt(ex * ex + ey * ey), length = sqrt(ax * ax + ay * ay),
                 right = sqrt(x * x + y * y);
    e.samples = 1;
    /* infinite where there should be no force */
    if (!(all <= 0 && error <= 0)) e.mean_share = e.share = error / all;
    if (right > 0) {
        double const ux = length > 0 ? ax / length : 0, uy = length > 0 ? ay / length : 0;
        e.mean = e.worst = error / right;
        e.bias = (length - right) / right;
        e.length = e.bias < 0 ? -e.bias : e.bias;
        e.direction =
            sqrt((ux - x / right) * (ux - x / right) + (uy - y / right) * (uy - y / right));
    } else if (!(error <= 0)) e.mean = e.worst = 1; /* a force where there is none */
    nbody_i_given_error(sim, a, exact, &e);
    return e;
}

NBODY_FN void nbody_i_add_error(nbody_error *sum, const nbody_error *e)
{
    sum->samples += e->samples;
    sum->mean += e->mean;
    sum->mean_share += e->mean_share;
    sum->direction += e->direction;
    sum->length += e->length;
    sum->bias += e->bias;
    sum->given_mean += e->given_mean;
    if (sum->worst <= e->worst || e->worst != e->worst) sum->worst = e->worst; /* a NaN stays */
    if (sum->share <= e->share || e->share != e->share) sum->share = e->share;
    if (sum->given_share <= e->given_share || e->given_share != e->given_share)
        sum->given_share = e->given_share;
}

NBODY_FN void nbody_i_finish_error(nbody_error *sum)
{
    double const over = sum->samples > 0 ? 1.0 / sum->samples : 0;
    sum->mean *= over;
    sum->mean_share *= over;
    sum->direction *= over;
    sum->length *= over;
    sum->bias *= over;
    sum->given_mean *= over;
}

/* ----------------------------------------------------------------------------------------------
   >>step: the motion and energy of one body. The integrators: >>step-serial
   ---------------------------------------------------------------------------------------------- */

/* Element e (of 2 n) of a kick, v_new = v + a dt (Kalms equation 7), and of a drift, p_new =
   p + v_new dt (equation 8). */
NBODY_FN void nbody_i_kick(const nbody_bodies *bodies, size_t e, nbody_real dt)
{
    bodies->vel[e] += nbody_i_times(bodies->acc[e], dt);
}

NBODY_FN void nbody_i_drift(const nbody_bodies *bodies, size_t e, nbody_real dt)
{
    bodies->pos[e] += nbody_i_times(bodies->vel[e], dt);
}

enum { NBODY_I_SUMS = 8 }; /* the number of doubles in nbody_energies */

/* Adds body i to the energies; the centre is still multiplied by the mass. */
NBODY_FN void nbody_i_body_energy(const nbody_bodies *bodies, const nbody_real *potential,
                                  int32_t i, double sum[NBODY_I_SUMS])
{
    size_t const e = 2 * (size_t)i;
    double const m = bodies->mass ? (double)bodies->mass[i] : 1;
    double const x = (double)bodies->pos[e], y = (double)bodies->pos[e + 1];
    double const vx = (double)bodies->vel[e], vy = (double)bodies->vel[e + 1];
    sum[0] += m * (vx * vx + vy * vy) / 2;
    sum[1] += potential ? m * (double)potential[i] / 2 : 0;
    sum[2] += m;
    sum[3] += m * vx;
    sum[4] += m * vy;
    sum[5] += m * (x * vy - y * vx);
    sum[6] += m * x;
    sum[7] += m * y;
}

NBODY_FN void nbody_i_finish_energy(const double sum[NBODY_I_SUMS], nbody_energies *energies)
{
    double const mass = sum[2];
    energies->kinetic = sum[0];
    energies->potential = sum[1];
    energies->mass = mass;
    energies->momentum[0] = sum[3];
    energies->momentum[1] = sum[4];
    energies->angular = sum[5];
    energies->centre[0] = mass < 0 || mass > 0 ? sum[6] / mass : 0;
    energies->centre[1] = mass < 0 || mass > 0 ? sum[7] / mass : 0;
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif
#endif /* NBODY_STEP_H */

#if defined(NBODY_I_IMPLEMENTED) && !defined(NBODY_STEP_IMPLEMENTATION_DONE)
#define NBODY_STEP_IMPLEMENTATION_DONE

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>estimate-serial: direct sums of the samples, 64 at a time, which are also the tasks
   ---------------------------------------------------------------------------------------------- */

#ifdef NBODY_WITH_PERIODIC
/* Periodic squares: as nbody_i_add_exact, body `from` and its images on another body. */
NBODY_FN void nbody_i_add_exact_images(const nbody *sim, int32_t place, int32_t from,
                                       nbody_i_exact *sum)
{
    double const edge = sim->frame->edge, m = (double)sim->m[from],
                 dx = nbody_i_nearest(sim, (double)sim->x[from] - (double)sim->x[place]),
                 dy = nbody_i_nearest(sim, (double)sim->y[from] - (double)sim->y[place]);
    double const g = nbody_i_exact_strength(sim, m, dx * dx + dy * dy + sim->frame->soften2);
    double field[NBODY_I_PARTS], scale[NBODY_I_PARTS], x, y;
    nbody_i_images(sim->lattice, dx / edge, dy / edge, 0, field);
    nbody_i_lattice_scale(sim, scale);
    x = g * dx + m * scale[NBODY_I_X] * field[NBODY_I_X];
    y = g * dy + m * scale[NBODY_I_Y] * field[NBODY_I_Y];
    sum->x += x;
    sum->y += y;
    sum->all += sqrt(x * x + y * y);
    nbody_i_add_given(sim, m, dx, dy, g, sum);
}
#else
#define nbody_i_add_exact_images(sim, place, from, sum) ((void)0)
#endif

/* Samples at once: their errors are added in order. */
enum { NBODY_I_SAMPLES = 64 };

typedef struct nbody_i_samples {
    const nbody *sim;
    const nbody_real *acc;
    int32_t samples, first, count;
    uint32_t seed;
    nbody_error error[NBODY_I_SAMPLES];
} nbody_i_samples;

static nbody_error nbody_i_error_of(const nbody_i_samples *job, int32_t k)
{
    const nbody *sim = job->sim;
    int32_t const place = nbody_i_sample_place(sim->n, job->samples, job->seed, k);
    nbody_i_exact exact = {0, 0, 0, 0, 0, 0};
    int32_t from;
    for (from = 0; from < sim->n; from++) {
        if (nbody_i_is_periodic(sim)) nbody_i_add_exact_images(sim, place, from, &exact);
        else nbody_i_add_exact(sim, place, from, &exact);
    }
    return nbody_i_sample_error(sim, job->acc, place, &exact);
}

static void nbody_i_sample_task(void *of_job, int32_t piece, int32_t pieces)
{
    nbody_i_samples *job = (nbody_i_samples *)of_job;
    int32_t k = nbody_i_begin_of(job->count, piece, pieces);
    for (; k < nbody_i_begin_of(job->count, piece + 1, pieces); k++)
        job->error[k] = nbody_i_error_of(job, job->first + k);
}

/* The next NBODY_I_SAMPLES, or those that are left. */
static nbody_result nbody_i_take_samples(nbody_i_samples *job)
{
    nbody_parallel const *parallel = &job->sim->desc.parallel;
    int32_t const left = job->samples - job->first;
    job->count = left < NBODY_I_SAMPLES ? left : NBODY_I_SAMPLES;
    return nbody_i_run_pieces(parallel,
                              nbody_i_pieces(parallel, 4 * (int64_t)job->count * job->sim->n),
                              nbody_i_sample_task, job);
}

NBODY_API nbody_result nbody_estimate(const nbody *sim, const nbody_real *acc, int32_t samples,
                                      uint32_t seed, nbody_error *error)
{
    nbody_error sum = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    nbody_i_samples job;
    int32_t k;
    if (!sim || !error || samples < 0) return NBODY_BAD_ARGUMENT;
    if (!sim->frame) return NBODY_NOT_BUILT;
    if (samples > sim->n) samples = sim->n;
    if (samples > 0 && !acc) return NBODY_BAD_ARGUMENT;
    job.sim = sim;
    job.acc = acc;
    job.samples = samples;
    job.seed = seed;
    for (job.first = 0; job.first < samples; job.first += NBODY_I_SAMPLES) {
        nbody_result const result = nbody_i_take_samples(&job);
        if (result != NBODY_OK) return result;
        for (k = 0; k < job.count; k++) nbody_i_add_error(&sum, &job.error[k]);
    }
    nbody_i_finish_error(&sum);
    *error = sum;
    return NBODY_OK;
}

NBODY_API nbody_result nbody_verify(const nbody *sim, const nbody_real *acc, int32_t samples,
                                    uint32_t seed, double most)
{
    nbody_error error;
    nbody_result result = nbody_validate(sim);
    if (result != NBODY_OK) return result;
    result = nbody_estimate(sim, acc, samples, seed, &error);
    if (result != NBODY_OK) return result;
    return error.share <= most ? NBODY_OK : NBODY_INVALID;
}

/* ----------------------------------------------------------------------------------------------
   >>step-serial: leapfrog and Euler
   ---------------------------------------------------------------------------------------------- */

/* moves: acc is required too. */
static nbody_result nbody_i_check_bodies(const nbody_bodies *bodies, int moves)
{
    if (!bodies || bodies->n < 0) return NBODY_BAD_ARGUMENT;
    if (bodies->n > 0 && (!bodies->pos || !bodies->vel || (moves && !bodies->acc)))
        return NBODY_BAD_ARGUMENT;
    return bodies->n > NBODY_I_N_MAX ? NBODY_TOO_MANY : NBODY_OK;
}

/* What a step is given, but for its desc. */
static nbody_result nbody_i_check_step(const nbody_bodies *bodies, nbody_real dt,
                                       nbody_integrator integrator)
{
    nbody_result const result = nbody_i_check_bodies(bodies, 1);
    if (result != NBODY_OK) return result;
    if ((int)integrator < 0 || integrator > NBODY_EULER) return NBODY_BAD_OPTION;
    return nbody_i_finite((double)dt) ? NBODY_OK : NBODY_BAD_NUMBER;
}

/* What the tasks of a kick or a drift read. */
typedef struct nbody_i_motion { const nbody_bodies *bodies; nbody_real dt; } nbody_i_motion;

static void nbody_i_kick_task(void *job, int32_t piece, int32_t pieces)
{
    const nbody_i_motion *motion = (const nbody_i_motion *)job;
    int32_t const n = motion->bodies->n;
    size_t const end = 2 * (size_t)nbody_i_begin_of(n, piece + 1, pieces);
    size_t e = 2 * (size_t)nbody_i_begin_of(n, piece, pieces);
    for (; e < end; e++) nbody_i_kick(motion->bodies, e, motion->dt);
}

static void nbody_i_drift_task(void *job, int32_t piece, int32_t pieces)
{
    const nbody_i_motion *motion = (const nbody_i_motion *)job;
    int32_t const n = motion->bodies->n;
    size_t const end = 2 * (size_t)nbody_i_begin_of(n, piece + 1, pieces);
    size_t e = 2 * (size_t)nbody_i_begin_of(n, piece, pieces);
    for (; e < end; e++) nbody_i_drift(motion->bodies, e, motion->dt);
}

static nbody_result nbody_i_move_all(const nbody_desc *desc, nbody_i_work *task,
                                     nbody_bodies *bodies, nbody_real dt)
{
    nbody_i_motion motion;
    int64_t const terms = desc->stage == NBODY_ONE_THREAD ? 0 : (int64_t)bodies->n * 4;
    nbody_result result;
    motion.bodies = bodies;
    motion.dt = dt;
    result = nbody_i_run_pieces(&desc->parallel, nbody_i_pieces(&desc->parallel, terms), task,
                                &motion);
    if (result != NBODY_OK) bodies->fresh = 0;
    return result;
}

static nbody_result nbody_i_evaluate(nbody *sim, const nbody_desc *desc, nbody_bodies *bodies)
{
    nbody_desc tight;
    nbody_result result;
    memset(&tight, 0, sizeof tight);
    if (desc) tight = *desc;
    tight.mass_stride = tight.acc_stride = 0;
    result = nbody_accelerations(sim, &tight, bodies->pos, 0, bodies->mass, bodies->n, bodies->acc);
    bodies->fresh = result == NBODY_OK;
    return result;
}

/* As nbody_defaults. Forces move bodies; vortices have velocities instead. */
static nbody_result nbody_i_defaults_of_step(nbody_desc *out, const nbody_desc *desc, int32_t n)
{
    nbody_result const result = nbody_defaults(out, desc, n);
    return result == NBODY_OK && out->law == NBODY_VORTEX ? NBODY_BAD_OPTION : result;
}

/* v_new = v + a dt, p_new = p + v_new dt */
static nbody_result nbody_i_euler(const nbody_desc *resolved, nbody_bodies *bodies, nbody_real dt)
{
    nbody_result result = nbody_i_move_all(resolved, nbody_i_kick_task, bodies, dt);
    bodies->fresh = 0; /* acc is that of the old positions */
    if (result != NBODY_OK) return result;
    return nbody_i_move_all(resolved, nbody_i_drift_task, bodies, dt);
}

/* v_half = v + a dt / 2, p_new = p + v_half dt, v_new = v_half + a_new dt / 2 */
static nbody_result nbody_i_leapfrog(nbody *sim, const nbody_desc *desc, const nbody_desc *resolved,
                                     nbody_bodies *bodies, nbody_real dt)
{
    nbody_result result = nbody_i_move_all(resolved, nbody_i_kick_task, bodies, dt / 2);
    if (result != NBODY_OK) return result;
    result = nbody_i_move_all(resolved, nbody_i_drift_task, bodies, dt);
    if (result != NBODY_OK) return result;
    result = nbody_i_evaluate(sim, desc, bodies);
    if (result != NBODY_OK) return result;
    return nbody_i_move_all(resolved, nbody_i_kick_task, bodies, dt / 2);
}

NBODY_API nbody_result nbody_step(nbody *sim, const nbody_desc *desc, nbody_bodies *bodies,
                                  nbody_real dt, nbody_integrator integrator)
{
    nbody_desc resolved;
    nbody_result result = nbody_i_check_step(bodies, dt, integrator);
    if (result != NBODY_OK) return result;
    if (!sim) return NBODY_BAD_ARGUMENT;
    /* a bad desc is refused before anything moves */
    result = nbody_i_defaults_of_step(&resolved, desc, bodies->n);
    if (result != NBODY_OK) return result;
    if (!bodies->fresh) result = nbody_i_evaluate(sim, desc, bodies);
    if (result != NBODY_OK) return result;
    return integrator == NBODY_EULER ? nbody_i_euler(&resolved, bodies, dt)
                                     : nbody_i_leapfrog(sim, desc, &resolved, bodies, dt);
}

NBODY_API nbody_result nbody_energy(const nbody_bodies *bodies, const nbody_real *potential,
                                    nbody_energies *energies)
{
    double sum[NBODY_I_SUMS];
    int32_t i;
    nbody_result const result = energies ? nbody_i_check_bodies(bodies, 0) : NBODY_BAD_ARGUMENT;
    if (result != NBODY_OK) return result;
    memset(sum, 0, sizeof sum);
    for (i = 0; i < bodies->n; i++) nbody_i_body_energy(bodies, potential, i, sum);
    nbody_i_finish_energy(sum, energies);
    return NBODY_OK;
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif

#ifdef NBODY_CUDA
#include "../cuda/nbody_step.cu"
#endif

#endif /* NBODY_STEP_IMPLEMENTATION_DONE */
