/* mpi_slabs.h - spheres in a box that is cut into slabs, one for each MPI rank: what mpi_slabs.c and mpi_slabs.cu share.
   SPDX-License-Identifier: MIT OR Unlicense

        rank 0          rank 1          rank 2             A rank owns the spheres whose centre lies in its slab. Whom they touch
     |            . |.            . |.            |        lies there too, or within one diameter of a border: each step the ranks
     |   own    . * | * .  own    . | * .  own    |        send each other copies of those spheres, the ghosts (*), and hand over
     |            . |.            . |.            |        for good whoever has crossed a border.
                  <- halo ->

   Everything is made of whole numbers: positions, velocities, forces. Sums of whole numbers do not depend on their order, and a
   difference of two positions is exact wherever it is taken. So any number of ranks gives the same contacts and the same spheres,
   bit for bit, on CPUs and on GPUs. Floats are used for one thing only: ugrid.h finds with them who may touch whom.

   >>model     spheres and the rules. One text for CPU and GPU.
   >>map       who owns a place, and who must know of it. One text for CPU and GPU.
   >>run       what a rank knows
   >>work      the phases of a step, which mpi_slabs.c and mpi_slabs.cu do each in its way
   >>messages  all of MPI that a step needs, 60 lines
   >>step      a step
   >>borders   slabs that hold equally many
   >>options, >>figures, >>all-pairs, >>weak, >>main: the program around it */

#ifndef MPI_SLABS_H
#define MPI_SLABS_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#endif

#define OMPI_SKIP_MPICXX 1 /* not the C++ interface of old: MPI is C here */
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../ugrid.h"

/* ------------------------------------------------------------------------------------------------
   >>model: all spheres have one diameter and one mass. Time is counted in steps.
   ------------------------------------------------------------------------------------------------ */

enum {
    SLABS_DIAMETER = 1 << 16,   /* units of length in a diameter */
    SLABS_TICKS = 256,          /* a velocity is counted in 1/256 unit of length a step */
    SLABS_FASTEST = 1 << 30,    /* no velocity is larger: 64 diameters a step */
    SLABS_LONGEST = 1 << 14     /* diameters: no edge of the box is longer, so that places fit into 31 bits */
};

/* How far a search in floats has to reach, in diameters: a place that is rounded to a float moves by up to 2^-10 of a diameter. */
#define SLABS_REACH (1 + 1.0f / 128)

/* 32 bytes, and a message is an array of them. */
typedef struct UGRID_ALIGN_RECORD slabs_particle {
    int32_t x[3], v[3];
    int64_t id;                 /* the same on all ranks, 0 .. n-1; -1: nobody */
} slabs_particle;

typedef struct slabs_model {
    int64_t n;
    int32_t box[3];             /* 0 .. box-1, in units of length: walls, where the centres turn back */
    int32_t periodic;           /* 1: along x there are no walls, what leaves on the right comes in on the left */
    int32_t forces;             /* 0: spheres pass through each other */
    int32_t fill;               /* at the start, x is below this */
    int32_t speed;              /* and velocities are no larger, along each axis */
    int32_t seed;
} slabs_model;

/* A scrambled number (the finalizer of SplitMix64), and one from 0 to below-1 made of it. */
UGRID_FN uint64_t slabs_scramble(uint64_t k)
{
    k = (k ^ k >> 30) * 0xbf58476d1ce4e5b9u;
    k = (k ^ k >> 27) * 0x94d049bb133111ebu;
    return k ^ k >> 31;
}

UGRID_FN int32_t slabs_random(uint64_t k, int64_t below) { return (int32_t)((int64_t)(slabs_scramble(k) >> 32) * below >> 32); }

/* Sphere `id` at the start. Every rank can tell it, so nobody has to send it. */
UGRID_FN slabs_particle slabs_first(const slabs_model *model, int64_t id)
{
    uint64_t const key = slabs_scramble((uint64_t)model->seed) + 8 * (uint64_t)id;
    slabs_particle p;
    int a;
    for (a = 0; a < 3; a++) {
        p.x[a] = slabs_random(key + (uint64_t)a, a == 0 ? model->fill : model->box[a]);
        p.v[a] = slabs_random(key + 3 + (uint64_t)a, 2 * (int64_t)model->speed + 1) - model->speed;
    }
    p.id = id;
    return p;
}

/* Back into 0 .. edge-1, however far outside: a wall is a mirror. */
UGRID_FN void slabs_confine(int32_t edge, int periodic, int32_t *x, int32_t *v)
{
    int64_t const period = periodic ? edge : 2 * (int64_t)edge;
    int64_t at;
    if (*x >= 0 && *x < edge) return;
    at = *x % period;
    if (at < 0) at += period;
    if (at >= edge) { /* the way back */
        at = period - 1 - at;
        *v = -*v;
    }
    *x = (int32_t)at;
}

UGRID_FN void slabs_move(const slabs_model *model, slabs_particle *p)
{
    int a;
    for (a = 0; a < 3; a++) {
        p->x[a] += p->v[a] / SLABS_TICKS;
        slabs_confine(model->box[a], a == 0 && model->periodic, &p->x[a], &p->v[a]);
    }
}

/* What a sphere meets: how hard it is pushed, and its contacts, those in which its own id is the lower one. So of the two who see a
   contact, who may live on two ranks, one counts it. */
typedef struct slabs_view { int64_t push[3], contacts; } slabs_view;

/* `other` as `me` sees it. With d the way to it, D the diameter and u its velocity relative to mine, the push is a spring and a dashpot
   along d:   - (D^2 - d^2) / D^2 * d / 128  +  (u . d) d / D^2 / 32.   C divides towards zero, so the other is pushed by exactly the
   opposite: the sum of all velocities is conserved to the last bit. No product exceeds 2^50. */
UGRID_FN void slabs_meet(const slabs_model *model, const slabs_particle *me, const slabs_particle *other, slabs_view *view)
{
    int64_t const D = SLABS_DIAMETER, stiff = 128 * D * D / SLABS_TICKS;
    int64_t d[3], d2 = 0, rate = 0;
    int a;
    for (a = 0; a < 3; a++) {
        d[a] = (int64_t)other->x[a] - me->x[a];
        d2 += d[a] * d[a];
    }
    if (d2 > D * D || other->id == me->id) return;
    view->contacts += me->id < other->id;
    if (!model->forces) return;
    for (a = 0; a < 3; a++) rate += d[a] * ((int64_t)other->v[a] - me->v[a]);
    for (a = 0; a < 3; a++) view->push[a] += rate / D * d[a] / (32 * D) - (D * D - d2) * d[a] / stiff;
}

UGRID_FN slabs_particle slabs_pushed(slabs_particle p, const slabs_view *view)
{
    int64_t const most = SLABS_FASTEST;
    int a;
    for (a = 0; a < 3; a++) {
        int64_t const v = p.v[a] + view->push[a];
        p.v[a] = (int32_t)(v > most ? most : v < -most ? -most : v);
    }
    return p;
}

/* Where the grid of a slab that begins at `from` has it, in diameters. */
UGRID_FN void slabs_place(const slabs_particle *p, int32_t from, float at[3])
{
    at[0] = (float)(p->x[0] - from) / SLABS_DIAMETER;
    at[1] = (float)p->x[1] / SLABS_DIAMETER;
    at[2] = (float)p->x[2] / SLABS_DIAMETER;
}

/* ------------------------------------------------------------------------------------------------
   >>map: slab r reaches from border[r] to border[r + 1] - 1. It may be empty, and thinner than a diameter.
   ------------------------------------------------------------------------------------------------ */

typedef struct slabs_map {
    const int32_t *border;      /* [ranks + 1] the first is 0, the last the edge of the box */
    int32_t ranks, self;        /* self: whose map this is */
    int32_t edge, periodic;
} slabs_map;

/* The rank that owns x, 0 .. edge-1: the last whose slab does not begin above it. */
UGRID_FN int32_t slabs_owner(const slabs_map *map, int32_t x)
{
    int32_t low = 0, high = map->ranks;
    if (x >= map->border[map->self] && x < map->border[map->self + 1]) return map->self;
    while (high - low > 1) {
        int32_t const middle = low + (high - low) / 2;
        if (map->border[middle] <= x) low = middle;
        else high = middle;
    }
    return low;
}

/* Those who must know of a sphere: every slab within a diameter of it, or of one of its two images where x repeats. Usually none, else
   one neighbour; where slabs are thin, the neighbours of the neighbours too.

       slabs_visit visit = slabs_visits(&map, x);
       while (slabs_next(&visit)) send(visit.rank, x + visit.shift); */
typedef struct slabs_visit {
    int32_t rank, shift;        /* out: a rank, and the way to the image that lies near its slab */
    const slabs_map *map;       /* private from here on */
    int32_t x, image, last;     /* image: -1, 0, 1, and 2 at the end */
} slabs_visit;

UGRID_FN slabs_visit slabs_visits(const slabs_map *map, int32_t x)
{
    slabs_visit visit;
    int const inside = x - SLABS_DIAMETER >= map->border[map->self] && x + SLABS_DIAMETER < map->border[map->self + 1];
    visit.map = map;
    visit.x = x;
    visit.rank = visit.last = visit.shift = 0;
    visit.image = inside ? 2 : map->periodic ? -2 : -1; /* the one before the first */
    return visit;
}

/* Goes to the next image, and the ranks that it lies near. 0: there is none. */
UGRID_FN int slabs_next_image(slabs_visit *visit)
{
    const slabs_map *map = visit->map;
    int32_t low, high;
    if (visit->image >= (map->periodic ? 1 : 0)) { visit->image = 2; return 0; }
    visit->shift = ++visit->image * map->edge;
    low = visit->x + visit->shift - SLABS_DIAMETER;
    high = visit->x + visit->shift + SLABS_DIAMETER;
    if (high < 0 || low >= map->edge) {
        visit->rank = visit->last = 0;
    } else {
        visit->rank = slabs_owner(map, low < 0 ? 0 : low) - 1;
        visit->last = slabs_owner(map, high < map->edge ? high : map->edge - 1);
    }
    return 1;
}

UGRID_FN int slabs_next(slabs_visit *visit)
{
    const slabs_map *map = visit->map;
    do {
        while (visit->rank < visit->last) {
            visit->rank++;
            if (visit->rank == map->self && visit->image == 0) continue;            /* that is the sphere itself */
            if (map->border[visit->rank] < map->border[visit->rank + 1]) return 1;  /* nobody lives in an empty slab */
        }
    } while (slabs_next_image(visit));
    return 0;
}

/* ------------------------------------------------------------------------------------------------
   >>run: what a rank knows
   ------------------------------------------------------------------------------------------------ */

enum { SLABS_MOVE, SLABS_MIGRATE, SLABS_HALO, SLABS_GRID, SLABS_CONTACTS, SLABS_PHASES };

enum { SLABS_BINS = 4096 };     /* of the histogram behind balanced borders */

typedef struct slabs_options {
    int64_t n;
    int32_t steps, every, balance, box[3], periodic, forces, seed, weak, check, device;
    double density, fill, speed;
    const char *write;
} slabs_options;

/* Who sends how many to whom: particles for rank r lie behind each other, in the order of the ranks. */
typedef struct slabs_mail {
    int64_t *count;             /* [ranks] to each */
    int *out, *in;              /* [ranks] to and from each, as MPI counts */
    int64_t out_total, in_total;
} slabs_mail;

struct slabs_work;              /* arrays of particles, on the CPU or on the GPU */

typedef struct slabs_run {
    MPI_Comm comm;
    MPI_Datatype particle;
    slabs_model model;
    slabs_map map;
    int32_t *border;            /* [ranks + 1] the map's */
    slabs_mail mail;
    MPI_Request *requests;      /* [2 ranks] */
    int32_t device;             /* 1: MPI is given pointers to the GPU's memory */
    int32_t step;
    int64_t own, ghosts;        /* particles here: own ones, and behind them copies of others */
    int64_t contacts;           /* in this step, counted here, */
    int64_t all_contacts;       /* and on all ranks */
    int64_t migrated, copied;   /* sent in this step, to other ranks */
    double seconds[SLABS_PHASES];
    double cpu;                 /* the processor's seconds in the phases without messages */
    struct slabs_work *work;
} slabs_run;

/* Ends the program on all ranks with a sentence. */
#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 1, 2)))
#endif
static void slabs_stop(const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    fputs("mpi_slabs: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void slabs_mpi(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (code == MPI_SUCCESS) return;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) strcpy(text, "an error without a name");
    slabs_stop("%s: %s", what, text);
}

static void slabs_must(ugrid_result result)
{
    if (result != UGRID_OK) slabs_stop("ugrid: %s", ugrid_result_text(result));
}

static void *slabs_memory(int64_t count, size_t bytes)
{
    void *memory = NULL;
    if ((uint64_t)count < SIZE_MAX / bytes) memory = calloc((size_t)count + 1, bytes);
    if (!memory) slabs_stop("out of memory: %lld times %lu bytes", (long long)count, (unsigned long)bytes);
    return memory;
}

/* MPI and ugrid.h count with int. */
static int slabs_int(int64_t count, const char *what)
{
    if (count > INT_MAX - 1024) slabs_stop("%s: %lld, but an int counts them: take more ranks", what, (long long)count);
    return (int)count;
}

/* ------------------------------------------------------------------------------------------------
   >>work: the phases of a step. mpi_slabs.c does them with loops, mpi_slabs.cu with kernels, in the same order.
   ------------------------------------------------------------------------------------------------ */

static struct slabs_work *slabs_work_new(const slabs_run *run);
static void slabs_work_free(struct slabs_work *work);
static void slabs_work_start(slabs_run *run, int64_t begin, int64_t end);   /* own: ids begin .. end-1, wherever they lie */
static void slabs_work_move(slabs_run *run);
static void slabs_work_bins(slabs_run *run, int64_t *bins);                 /* how many lie in each SLABS_BINS-th of the box */
static void slabs_work_migrate(slabs_run *run);
static void slabs_work_halo(slabs_run *run);
static void slabs_work_grid(slabs_run *run);
static void slabs_work_contacts(slabs_run *run);                            /* and pushes */
static void slabs_work_fetch(slabs_run *run, slabs_particle *own);          /* copies own particles, in any order */

/* The grid of a slab reaches a diameter beyond it. It is not periodic: images come as ghosts. */
static ugrid_desc slabs_desc(const slabs_run *run)
{
    int32_t const width = run->border[run->map.self + 1] - run->border[run->map.self];
    ugrid_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.dim = 3;
    desc.min[0] = -SLABS_REACH;
    desc.max[0] = (float)width / SLABS_DIAMETER + SLABS_REACH;
    desc.max[1] = (float)run->model.box[1] / SLABS_DIAMETER;
    desc.max[2] = (float)run->model.box[2] / SLABS_DIAMETER;
    desc.cell = SLABS_REACH;
    desc.method = UGRID_COUNT;
    desc.coherent = 1;          /* they were in this order a step ago */
    return desc;
}

/* ------------------------------------------------------------------------------------------------
   >>messages: first how many, then the particles, and only between ranks that have something for each other
   ------------------------------------------------------------------------------------------------ */

/* mail.count is known; tells all. Afterwards the rest of mail is known. */
static void slabs_announce(slabs_run *run)
{
    slabs_mail *mail = &run->mail;
    int32_t r;
    for (r = 0; r < run->map.ranks; r++) mail->out[r] = slabs_int(mail->count[r], "particles in a message");
    slabs_mpi(MPI_Alltoall(mail->out, 1, MPI_INT, mail->in, 1, MPI_INT, run->comm), "telling how many will come");
    mail->out_total = mail->in_total = 0;
    for (r = 0; r < run->map.ranks; r++) {
        mail->out_total += mail->out[r];
        mail->in_total += mail->in[r];
    }
    (void)slabs_int(run->own + mail->in_total, "particles of a rank");
}

/* From `out` to `in`. A rank may have mail for itself: the images of its own particles. */
static void slabs_deliver(slabs_run *run, const slabs_particle *out, slabs_particle *in)
{
    const slabs_mail *mail = &run->mail;
    int32_t r;
    int posted = 0;
    for (r = 0; r < run->map.ranks; in += mail->in[r++])
        if (mail->in[r])
            slabs_mpi(MPI_Irecv(in, mail->in[r], run->particle, r, 0, run->comm, &run->requests[posted++]), "receiving");
    for (r = 0; r < run->map.ranks; out += mail->out[r++])
        if (mail->out[r])
            slabs_mpi(MPI_Isend(out, mail->out[r], run->particle, r, 0, run->comm, &run->requests[posted++]), "sending");
    slabs_mpi(MPI_Waitall(posted, run->requests, MPI_STATUSES_IGNORE), "waiting for messages");
}

/* How many of them go to others. */
static int64_t slabs_sent(const slabs_run *run) { return run->mail.out_total - run->mail.out[run->map.self]; }

static int64_t slabs_sum(const slabs_run *run, int64_t mine)
{
    int64_t sum = 0;
    slabs_mpi(MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, run->comm), "a sum");
    return sum;
}

/* ------------------------------------------------------------------------------------------------
   >>borders
   ------------------------------------------------------------------------------------------------ */

/* Slabs of equal width. */
static void slabs_equal_borders(slabs_run *run)
{
    int32_t r;
    for (r = 0; r <= run->map.ranks; r++) run->border[r] = (int32_t)((int64_t)run->map.edge * r / run->map.ranks);
}

/* Slabs with equally many particles, as nearly as SLABS_BINS slices of the box allow. All ranks see the same sums, so all draw the same
   borders. */
static void slabs_balance(slabs_run *run)
{
    int64_t *bins = (int64_t *)slabs_memory(2 * SLABS_BINS, sizeof *bins), *all = bins + SLABS_BINS, below = 0;
    int32_t r = 1, bin;
    slabs_work_bins(run, bins);
    slabs_mpi(MPI_Allreduce(bins, all, SLABS_BINS, MPI_INT64_T, MPI_SUM, run->comm), "the histogram");
    for (bin = 0; bin < SLABS_BINS; bin++) { /* `below` particles lie in the bins before this one */
        while (r < run->map.ranks && below >= (run->model.n * r + run->map.ranks - 1) / run->map.ranks)
            run->border[r++] = (int32_t)(((int64_t)run->map.edge * bin + SLABS_BINS - 1) / SLABS_BINS);
        below += all[bin];
    }
    while (r < run->map.ranks) run->border[r++] = run->map.edge;
    free(bins);
}

/* ------------------------------------------------------------------------------------------------
   >>step
   ------------------------------------------------------------------------------------------------ */

typedef struct slabs_time { double seconds; clock_t cpu; } slabs_time;

static slabs_time slabs_now(void)
{
    slabs_time now;
    now.seconds = MPI_Wtime();
    now.cpu = clock();
    return now;
}

/* Adds the time since `*begun` to a phase, and begins the next. */
static void slabs_clock(slabs_run *run, int phase, slabs_time *begun)
{
    slabs_time const now = slabs_now();
    run->seconds[phase] += now.seconds - begun->seconds;
    if (phase != SLABS_MIGRATE && phase != SLABS_HALO) run->cpu += (double)(now.cpu - begun->cpu) / CLOCKS_PER_SEC;
    *begun = now;
}

/* Spheres move, go to the ranks whose slab they are in, are shown to the ranks nearby, and push those whom they touch. The first step
   is like all others: at the start nobody lives where he belongs, and migration brings all home. */
static void slabs_step(slabs_run *run, int32_t balance)
{
    slabs_time begun = slabs_now();
    slabs_work_move(run);
    slabs_clock(run, SLABS_MOVE, &begun);
    if (balance && run->step % balance == 0) slabs_balance(run);
    slabs_work_migrate(run);
    slabs_clock(run, SLABS_MIGRATE, &begun);
    slabs_work_halo(run);
    slabs_clock(run, SLABS_HALO, &begun);
    slabs_work_grid(run);
    slabs_clock(run, SLABS_GRID, &begun);
    slabs_work_contacts(run);
    slabs_clock(run, SLABS_CONTACTS, &begun);
    run->step++;
}

static slabs_run slabs_run_new(const slabs_model *model, MPI_Comm comm, int32_t device)
{
    slabs_run run;
    int rank, ranks;
    memset(&run, 0, sizeof run);
    slabs_mpi(MPI_Comm_rank(comm, &rank), "the rank");
    slabs_mpi(MPI_Comm_size(comm, &ranks), "the ranks");
    slabs_mpi(MPI_Type_contiguous((int)sizeof(slabs_particle), MPI_BYTE, &run.particle), "a type");
    slabs_mpi(MPI_Type_commit(&run.particle), "a type");
    run.comm = comm;
    run.model = *model;
    run.device = device;
    run.border = (int32_t *)slabs_memory((int64_t)ranks + 1, sizeof(int32_t));
    run.mail.count = (int64_t *)slabs_memory(ranks, sizeof(int64_t));
    run.mail.out = (int *)slabs_memory(ranks, sizeof(int));
    run.mail.in = (int *)slabs_memory(ranks, sizeof(int));
    run.requests = (MPI_Request *)slabs_memory(2 * (int64_t)ranks, sizeof(MPI_Request));
    run.map.border = run.border;
    run.map.ranks = ranks;
    run.map.self = rank;
    run.map.edge = model->box[0];
    run.map.periodic = model->periodic;
    slabs_equal_borders(&run);
    run.work = slabs_work_new(&run);
    slabs_work_start(&run, model->n / ranks * rank + model->n % ranks * rank / ranks,
                     model->n / ranks * (rank + 1) + model->n % ranks * (rank + 1) / ranks);
    return run;
}

static void slabs_run_free(slabs_run *run)
{
    slabs_work_free(run->work);
    slabs_mpi(MPI_Type_free(&run->particle), "a type");
    free(run->border);
    free(run->mail.count);
    free(run->mail.out);
    free(run->mail.in);
    free(run->requests);
}

/* ------------------------------------------------------------------------------------------------
   >>figures
   ------------------------------------------------------------------------------------------------ */

/* A number that every bit of every particle enters, and their order does not. */
static uint64_t slabs_digest(const slabs_particle *p, int64_t count)
{
    uint64_t sum = 0;
    int64_t i;
    int a;
    for (i = 0; i < count; i++) {
        uint64_t k = slabs_scramble((uint64_t)p[i].id + 1);
        for (a = 0; a < 3; a++) k = slabs_scramble(k + ((uint64_t)(uint32_t)p[i].x[a] << 32 | (uint32_t)p[i].v[a]));
        sum += k;
    }
    return sum;
}

static int slabs_by_id(const void *a, const void *b)
{
    int64_t const i = ((const slabs_particle *)a)->id, j = ((const slabs_particle *)b)->id;
    return (i > j) - (i < j);
}

/* All particles, in the order of their ids, as text. */
static void slabs_write_file(const slabs_run *run, slabs_particle *all, const char *path)
{
    FILE *file = fopen(path, "w");
    int64_t i;
    int wrong;
    if (!file) slabs_stop("%s: %s", path, strerror(errno));
    qsort(all, (size_t)run->model.n, sizeof *all, slabs_by_id);
    fprintf(file, "# box %ld %ld %ld, a diameter is %d: id x y z vx vy vz\n", (long)run->model.box[0], (long)run->model.box[1],
            (long)run->model.box[2], (int)SLABS_DIAMETER);
    for (i = 0; i < run->model.n; i++)
        fprintf(file, "%lld %ld %ld %ld %ld %ld %ld\n", (long long)all[i].id, (long)all[i].x[0], (long)all[i].x[1], (long)all[i].x[2],
                (long)all[i].v[0], (long)all[i].v[1], (long)all[i].v[2]);
    wrong = ferror(file);
    if (fclose(file) != 0 || wrong) slabs_stop("%s: could not be written: %s", path, strerror(errno));
}

/* Rank 0 gets all, and writes them. */
static void slabs_write(slabs_run *run, slabs_particle *own, const char *path)
{
    int const first = run->map.self == 0;
    int32_t const ranks = run->map.ranks;
    slabs_particle *all = (slabs_particle *)slabs_memory(first ? run->model.n : 0, sizeof *all);
    int *counts = (int *)slabs_memory(2 * (int64_t)ranks, sizeof *counts), *begin = counts + ranks, mine = (int)run->own;
    int32_t r;
    (void)slabs_int(run->model.n, "particles to write");
    slabs_mpi(MPI_Gather(&mine, 1, MPI_INT, counts, 1, MPI_INT, 0, run->comm), "gathering");
    for (r = 1; r < ranks; r++) begin[r] = begin[r - 1] + counts[r - 1];
    slabs_mpi(MPI_Gatherv(own, mine, run->particle, all, counts, begin, run->particle, 0, run->comm), "gathering");
    if (first) slabs_write_file(run, all, path);
    free(counts);
    free(all);
}

static const char *const slabs_titles = "    step     contacts  migrated    ghosts   KB sent   move migrate   halo   grid contacts ms";

/* One line: counts of this step over all ranks, and milliseconds of each phase: the mean of `steps` steps on the slowest rank. */
static void slabs_print(slabs_run *run, int64_t contacts, int32_t steps)
{
    int64_t mine[2], all[2] = {0, 0};
    double most[SLABS_PHASES];
    mine[0] = run->migrated;
    mine[1] = run->copied;
    slabs_mpi(MPI_Reduce(mine, all, 2, MPI_INT64_T, MPI_SUM, 0, run->comm), "figures");
    slabs_mpi(MPI_Reduce(run->seconds, most, SLABS_PHASES, MPI_DOUBLE, MPI_MAX, 0, run->comm), "figures");
    memset(run->seconds, 0, sizeof run->seconds);
    if (run->map.self != 0) return;
    printf("%8ld %12lld %9lld %9lld %9.0f %6.2f %7.2f %6.2f %6.2f %8.2f\n", (long)run->step, (long long)contacts, (long long)all[0],
           (long long)all[1], (double)(all[0] + all[1]) * (double)sizeof(slabs_particle) / 1000, 1e3 * most[SLABS_MOVE] / steps,
           1e3 * most[SLABS_MIGRATE] / steps, 1e3 * most[SLABS_HALO] / steps, 1e3 * most[SLABS_GRID] / steps,
           1e3 * most[SLABS_CONTACTS] / steps);
    fflush(stdout);
}

/* ------------------------------------------------------------------------------------------------
   >>all-pairs: the same spheres on one rank, without slabs, ghosts and grid
   ------------------------------------------------------------------------------------------------ */

typedef struct slabs_outcome { int64_t contacts, all_contacts; uint64_t digest; } slabs_outcome;

/* Everybody meets everybody, and the images of everybody. */
static slabs_view slabs_look_at_all(const slabs_model *model, const slabs_particle *p, int64_t i)
{
    slabs_view view;
    int64_t j;
    int32_t image;
    memset(&view, 0, sizeof view);
    for (j = 0; j < model->n; j++)
        for (image = -model->periodic; image <= model->periodic; image++) {
            slabs_particle other = p[j];
            other.x[0] += image * model->box[0];
            slabs_meet(model, &p[i], &other, &view);
        }
    return view;
}

static slabs_outcome slabs_all_pairs(const slabs_model *model, int32_t steps)
{
    slabs_particle *p = (slabs_particle *)slabs_memory(2 * model->n, sizeof *p), *next = p + model->n;
    slabs_outcome outcome;
    int64_t i;
    memset(&outcome, 0, sizeof outcome);
    for (i = 0; i < model->n; i++) p[i] = slabs_first(model, i);
    while (steps-- > 0) {
        outcome.contacts = 0;
        for (i = 0; i < model->n; i++) slabs_move(model, &p[i]);
        for (i = 0; i < model->n; i++) {
            slabs_view const view = slabs_look_at_all(model, p, i);
            next[i] = slabs_pushed(p[i], &view);
            outcome.contacts += view.contacts;
        }
        memcpy(p, next, (size_t)model->n * sizeof *p);
        outcome.all_contacts += outcome.contacts;
    }
    outcome.digest = slabs_digest(p, model->n);
    free(p);
    return outcome;
}

/* ------------------------------------------------------------------------------------------------
   >>options
   ------------------------------------------------------------------------------------------------ */

static const char *const slabs_help =
    "usage: mpirun -n RANKS mpi_slabs [options]\n\n"
    "Spheres in a box that is cut into slabs along x, one for each rank. Options:\n\n"
    "  --particles N   how many, over all ranks (default 20000)\n"
    "  --steps N       (default 100)\n"
    "  --box X Y Z     edges in diameters (default: 4 : 1 : 1, as large as --density asks for)\n"
    "  --density F     particles in a cube as wide as a diameter (default 0.5)\n"
    "  --periodic      x repeats; else there are walls on all sides\n"
    "  --fill F        at the start all are in the first F of the box's length (default 1)\n"
    "  --speed F       of the start, along each axis, in diameters a step (default 0.01)\n"
    "  --no-forces     they pass through each other; contacts are counted all the same\n"
    "  --balance K     every K steps, borders are drawn anew so that slabs hold equally many\n"
    "  --seed N        of the start (default 1)\n"
    "  --every K       a line every K steps (default: 10 lines; 0: none)\n"
    "  --write FILE    the end as text, in the order of the ids: equal for any number of ranks\n"
    "  --check         one rank does all steps again with all pairs: contacts and every bit must agree, else exit status 1\n"
    "  --weak          --particles and the box are for each rank: a table for 1, 2, 4, ... ranks\n"
    "  --messages M    mpi_slabs.cu: device, host, or auto (default): does MPI read the GPU's memory, or is it copied to the host?\n"
    "  --help          this text\n\n"
    "The last lines are the same for any number of ranks, on CPUs and on GPUs.\n";

/* Ends the program on all ranks: 0, or 2 with a sentence about the command line, from rank 0. */
#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 2, 3)))
#endif
static void slabs_leave(int status, const char *format, ...)
{
    va_list arguments;
    int rank = 0;
    FILE *to = status ? stderr : stdout;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        if (status) fputs("mpi_slabs: ", to);
        va_start(arguments, format);
        vfprintf(to, format, arguments);
        va_end(arguments);
        if (status) fputs(status == 2 ? " (--help tells)\n" : "\n", to);
        fflush(to);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* mpirun ends all as soon as one has ended badly: let it be said first */
    MPI_Finalize();
    exit(status);
}

static double slabs_number(const char *option, const char *text, double least, double most, int whole)
{
    char *end;
    double value;
    if (!text) slabs_leave(2, "%s needs a value", option);
    value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most) || (whole && value != floor(value)))
        slabs_leave(2, "%s %s: a %snumber from %.10g to %.10g is needed", option, text, whole ? "whole " : "", least, most);
    return value;
}

/* --messages: 1 device, 0 host, -1 automatic. */
static int32_t slabs_messages(const char *text)
{
    if (text && strcmp(text, "device") == 0) return 1;
    if (text && strcmp(text, "host") == 0) return 0;
    if (!text || strcmp(text, "auto") != 0) slabs_leave(2, "--messages: device, host or auto");
    return -1;
}

static slabs_options slabs_parse(char **argument)
{
    slabs_options o;
    int a;
    memset(&o, 0, sizeof o);
    o.n = 20000;
    o.steps = 100;
    o.every = -1;
    o.forces = o.seed = 1;
    o.device = -1;
    o.density = 0.5;
    o.fill = 1;
    o.speed = 0.01;
    while (*++argument) {
        const char *name = *argument;
        if (strcmp(name, "--help") == 0) slabs_leave(0, "%s", slabs_help);
        else if (strcmp(name, "--periodic") == 0) o.periodic = 1;
        else if (strcmp(name, "--no-forces") == 0) o.forces = 0;
        else if (strcmp(name, "--check") == 0) o.check = 1;
        else if (strcmp(name, "--weak") == 0) o.weak = 1;
        else if (strcmp(name, "--particles") == 0) o.n = (int64_t)slabs_number(name, *++argument, 0, 1e12, 1);
        else if (strcmp(name, "--steps") == 0) o.steps = (int32_t)slabs_number(name, *++argument, 1, 1e9, 1);
        else if (strcmp(name, "--box") == 0)
            for (a = 0; a < 3; a++) { argument++; o.box[a] = (int32_t)slabs_number(name, *argument, 3, SLABS_LONGEST, 1); }
        else if (strcmp(name, "--density") == 0) o.density = slabs_number(name, *++argument, 1e-6, 100, 0);
        else if (strcmp(name, "--fill") == 0) o.fill = slabs_number(name, *++argument, 1e-4, 1, 0);
        else if (strcmp(name, "--speed") == 0) o.speed = slabs_number(name, *++argument, 0, 60, 0);
        else if (strcmp(name, "--balance") == 0) o.balance = (int32_t)slabs_number(name, *++argument, 1, 1e9, 1);
        else if (strcmp(name, "--seed") == 0) o.seed = (int32_t)slabs_number(name, *++argument, 0, 1e9, 1);
        else if (strcmp(name, "--every") == 0) o.every = (int32_t)slabs_number(name, *++argument, 0, 1e9, 1);
        else if (strcmp(name, "--messages") == 0) o.device = slabs_messages(*++argument);
        else if (strcmp(name, "--write") == 0) {
            if (!(o.write = *++argument)) slabs_leave(2, "--write needs a file");
        } else slabs_leave(2, "unknown option %s", name);
    }
    if (o.every < 0) o.every = (o.steps + 9) / 10;
    if (o.check && o.n > 20000) slabs_leave(2, "--check looks at all pairs: --particles 20000 at most");
    if (o.weak && (o.check || o.write)) slabs_leave(2, "--weak only measures: without --check and --write");
    return o;
}

/* The model for `times` times what the options say, behind each other along x. */
static slabs_model slabs_model_of(const slabs_options *o, int32_t times)
{
    slabs_model model;
    double const edge = ceil(cbrt((double)o->n / o->density / 4));
    double length;
    int a;
    memset(&model, 0, sizeof model);
    for (a = 0; a < 3; a++) {
        length = o->box[a] ? o->box[a] : edge < 3 ? 3 : a == 0 ? 4 * edge : edge;
        if (a == 0) length *= times;
        if (length > SLABS_LONGEST) slabs_leave(2, "a box %.0f diameters long: %d at most", length, (int)SLABS_LONGEST);
        model.box[a] = (int32_t)length * SLABS_DIAMETER;
    }
    model.n = o->n * times;
    model.periodic = o->periodic;
    model.forces = o->forces;
    model.seed = o->seed;
    model.fill = (int32_t)(o->fill * model.box[0]);
    model.speed = (int32_t)(o->speed * SLABS_DIAMETER * SLABS_TICKS);
    return model;
}

/* ------------------------------------------------------------------------------------------------
   >>weak: each rank gets as much to do, however many there are. Then a step should take as long.
   ------------------------------------------------------------------------------------------------ */

static int slabs_by_value(const void *a, const void *b)
{
    double const x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double slabs_median(double *values, int32_t count)
{
    qsort(values, (size_t)count, sizeof *values, slabs_by_value);
    return values[count / 2];
}

/* Of the table: each figure is that of the slowest rank, and the median over the steps. */
enum { SLABS_STEP = SLABS_PHASES, SLABS_CPU, SLABS_FIGURES };

/* Milliseconds of one step. */
static void slabs_weak_step(slabs_run *run, int32_t balance, double ms[SLABS_FIGURES])
{
    double const begun = MPI_Wtime();
    int phase;
    memset(run->seconds, 0, sizeof run->seconds);
    run->cpu = 0;
    slabs_step(run, balance);
    run->all_contacts = slabs_sum(run, run->contacts);
    for (phase = 0; phase < SLABS_PHASES; phase++) ms[phase] = 1e3 * run->seconds[phase];
    ms[SLABS_STEP] = 1e3 * (MPI_Wtime() - begun);
    ms[SLABS_CPU] = 1e3 * run->cpu;
}

/* One line of the table for the ranks of comm; milliseconds of a step come back. `alone`: those of one rank, 0: this is it. */
static double slabs_weak_line(const slabs_options *o, MPI_Comm comm, int32_t ranks, double alone)
{
    slabs_model const model = slabs_model_of(o, ranks);
    slabs_run run = slabs_run_new(&model, comm, o->device);
    double *most = (double *)slabs_memory((int64_t)SLABS_FIGURES * o->steps, sizeof *most), ms[SLABS_FIGURES];
    int64_t sent = 0;
    int32_t step, k;
    slabs_weak_step(&run, o->balance, ms); /* brings all home, and is not counted */
    for (step = 0; step < o->steps; step++) {
        slabs_weak_step(&run, o->balance, ms);
        for (k = 0; k < SLABS_FIGURES; k++)
            slabs_mpi(MPI_Reduce(&ms[k], &most[(int64_t)k * o->steps + step], 1, MPI_DOUBLE, MPI_MAX, 0, comm), "figures");
        sent += slabs_sum(&run, run.migrated + run.copied);
    }
    for (k = 0; k < SLABS_FIGURES; k++) ms[k] = slabs_median(most + (int64_t)k * o->steps, o->steps);
    if (run.map.self == 0) {
        printf("%5ld %12lld %12lld %9.0f %6.2f %7.2f %6.2f %6.2f %8.2f %8.2f %8.2f %9.1f %9.0f%%\n", (long)ranks, (long long)model.n,
               (long long)run.all_contacts, (double)sent / o->steps * (double)sizeof(slabs_particle) / 1000, ms[SLABS_MOVE],
               ms[SLABS_MIGRATE], ms[SLABS_HALO], ms[SLABS_GRID], ms[SLABS_CONTACTS], ms[SLABS_CPU], ms[SLABS_STEP],
               1e-3 * (double)model.n / ms[SLABS_STEP], 100 * (alone > 0 ? alone : ms[SLABS_STEP]) / ms[SLABS_STEP]);
        fflush(stdout);
    }
    free(most);
    slabs_run_free(&run);
    return ms[SLABS_STEP];
}

/* Waits without taking the processor from those who work. */
static void slabs_wait_for_all(void)
{
    struct timespec const nap = {0, 10000000};
    MPI_Request request;
    int done = 0;
    slabs_mpi(MPI_Ibarrier(MPI_COMM_WORLD, &request), "waiting");
    while (!done) {
        slabs_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "waiting");
        if (!done) nanosleep(&nap, NULL);
    }
}

static void slabs_weak(const slabs_options *o)
{
    int rank, ranks, some = 1;
    double alone = 0;
    slabs_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "the rank");
    slabs_mpi(MPI_Comm_size(MPI_COMM_WORLD, &ranks), "the ranks");
    if (rank == 0)
        printf("ranks    particles     contacts   KB sent   move migrate   halo   grid contacts      cpu     step  million/s efficiency\n"
               "# ms of a step on the slowest rank, medians; cpu: processor time of move, grid and contacts; million particles a second\n");
    for (;;) {
        MPI_Comm comm;
        slabs_mpi(MPI_Comm_split(MPI_COMM_WORLD, rank < some ? 0 : MPI_UNDEFINED, rank, &comm), "a part of the ranks");
        if (comm != MPI_COMM_NULL) {
            double const ms = slabs_weak_line(o, comm, some, alone);
            if (some == 1) alone = ms;
            slabs_mpi(MPI_Comm_free(&comm), "a part of the ranks");
        }
        slabs_wait_for_all();
        if (some == ranks) return;
        some = 2 * some < ranks ? 2 * some : ranks;
    }
}

/* ------------------------------------------------------------------------------------------------
   >>main
   ------------------------------------------------------------------------------------------------ */

/* What must be the same for any number of ranks; compared with all pairs where that is asked for. 0: it is not the same. */
static int slabs_finish(slabs_run *run, const slabs_options *o, slabs_outcome outcome)
{
    slabs_particle *own = (slabs_particle *)slabs_memory(run->own, sizeof *own);
    int64_t const lost = run->model.n - slabs_sum(run, run->own);
    int agrees = lost == 0;
    slabs_work_fetch(run, own);
    outcome.digest = (uint64_t)slabs_sum(run, (int64_t)slabs_digest(own, run->own));
    if (lost) slabs_stop("%lld particles are lost", (long long)lost);
    if (o->write) slabs_write(run, own, o->write);
    free(own);
    if (run->map.self == 0) {
        printf("particles %lld\nsteps %ld\ncontacts %lld\ncontacts_of_all_steps %lld\ndigest %016llx\n", (long long)run->model.n,
               (long)run->step, (long long)outcome.contacts, (long long)outcome.all_contacts, (unsigned long long)outcome.digest);
        if (o->check) {
            slabs_outcome const expected = slabs_all_pairs(&run->model, run->step);
            agrees = outcome.contacts == expected.contacts && outcome.all_contacts == expected.all_contacts &&
                     outcome.digest == expected.digest;
            printf("all_pairs_agree %d\n", agrees);
        }
        fflush(stdout);
    }
    slabs_mpi(MPI_Bcast(&agrees, 1, MPI_INT, 0, run->comm), "the end");
    return agrees;
}

/* The fullest rank, where the particles are not spread evenly. */
static int64_t slabs_fullest(const slabs_run *run)
{
    int64_t most = 0;
    slabs_mpi(MPI_Reduce(&run->own, &most, 1, MPI_INT64_T, MPI_MAX, 0, run->comm), "figures");
    return most;
}

static int slabs_simulate(const slabs_options *o)
{
    slabs_model const model = slabs_model_of(o, 1);
    slabs_run run = slabs_run_new(&model, MPI_COMM_WORLD, o->device);
    slabs_outcome outcome;
    int64_t fullest;
    int agrees;
    memset(&outcome, 0, sizeof outcome);
    if (run.map.self == 0 && o->every) puts(slabs_titles);
    while (run.step < o->steps) {
        slabs_step(&run, o->balance);
        outcome.contacts = slabs_sum(&run, run.contacts);
        outcome.all_contacts += outcome.contacts;
        if (o->every && run.step % o->every == 0) slabs_print(&run, outcome.contacts, o->every);
    }
    fullest = slabs_fullest(&run);
    if (run.map.self == 0)
        printf("# %ld ranks; the fullest has %lld particles\n", (long)run.map.ranks, (long long)fullest);
    agrees = slabs_finish(&run, o, outcome);
    slabs_run_free(&run);
    return agrees;
}

/* The same for both programs. */
static int slabs_main(int argc, char **argv, int32_t device(int32_t wanted))
{
    slabs_options o;
    int agrees = 1;
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    o = slabs_parse(argv);
    o.device = device(o.device);
    if (o.weak) slabs_weak(&o);
    else agrees = slabs_simulate(&o);
    slabs_mpi(MPI_Finalize(), "the end");
    return agrees ? 0 : 1;
}

#endif /* MPI_SLABS_H */
