/* mpi_slabs.h - spheres in a box that is cut into slabs, one for each MPI rank: what mpi_slabs.c
   and mpi_slabs.cu share.
   SPDX-License-Identifier: MIT OR Unlicense

        rank 0          rank 1          rank 2
     |            . |.            . |.            |
     |   own    . * | * .  own    . | * .  own    |       * a ghost: the copy of a sphere
     |            . |.            . |.            |
                  <- halo ->

   A rank owns the spheres whose centre lies in its slab. Those that touch them lie there too, or
   within one diameter of a border: in each step the ranks send each other copies of these spheres,
   the ghosts, and migrate the spheres that have crossed a border.

   All values are integers: positions, velocities, forces. Sums of integers do not depend on their
   order, and a difference of two positions is exact. So any number of ranks gives the same contacts
   and the same spheres, bit for bit, on CPUs and on GPUs. Floats are used only for the candidate
   search by ugrid.h.

   >>model     spheres and the rules. One text for CPU and GPU.
   >>map       the rank that owns a place, the ranks that need a copy. One text for CPU and GPU.
   >>run       the state of a rank
   >>work      the phases of a step, which mpi_slabs.c and mpi_slabs.cu do each in its way
   >>messages  all of MPI that a step needs, 60 lines
   >>step      a step
   >>borders   slabs that hold equally many

   (mpi_slabs_run.h: options, figures, the same with all pairs, the table of --weak.) */

#ifndef MPI_SLABS_H
#define MPI_SLABS_H

#define PROGRAM "mpi_slabs"
#define PROGRAM_EXIT slabs_exit
static void slabs_exit(int status);
#include "../common/base.h"
#include "../common/options.h"

#define OMPI_SKIP_MPICXX 1 /* not the C++ interface of old: MPI is C here */
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include "../../ugrid.h"

/* Of the command line all ranks know, and rank 0 says it; else one ends all. */
static void slabs_exit(int status)
{
    fflush(stderr);
    if (status == 1) MPI_Abort(MPI_COMM_WORLD, 1);
    /* mpirun ends all as soon as one has ended badly: let it be said first */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    exit(status);
}

/* -------------------------------------------------------------------------------------------------
   >>model: all spheres have one diameter and one mass. Time is counted in steps.
   ---------------------------------------------------------------------------------------------- */

enum {
    SLABS_DIAMETER = 1 << 16,   /* units of length in a diameter */
    SLABS_TICKS = 256,          /* a velocity is counted in 1/256 unit of length a step */
    SLABS_FASTEST = 1 << 30,    /* no velocity is larger: 64 diameters a step */
    /* diameters: no edge of the box is longer, so that places fit into 31 bits */
    SLABS_LONGEST = 1 << 14
};

/* How far a search in floats has to reach, in diameters: a place that is rounded to a float
   moves by up to 2^-10 of a diameter. */
#define SLABS_REACH (1 + 1.0f / 128)

/* 32 bytes, and a message is an array of them. */
typedef struct UGRID_ALIGN_RECORD slabs_particle {
    int32_t x[3], v[3];
    int64_t id;                 /* the same on all ranks, 0 .. n-1; -1: none */
} slabs_particle;

typedef struct slabs_model {
    int64_t n;
    /* 0 .. box-1, in units of length: walls, where the centres turn back */
    int32_t box[3];
    /* 1: along x there are no walls, what leaves on the right comes in on the left */
    int32_t periodic;
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

UGRID_FN int32_t slabs_random(uint64_t k, int64_t below)
{
    return (int32_t)((int64_t)(slabs_scramble(k) >> 32) * below >> 32);
}

/* Sphere `id` at the start. Every rank can compute it. */
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

/* What a sphere meets: how hard it is pushed, and its contacts, those in which its own id is the
   lower one. So one of the two spheres, which may be on two ranks, counts it. */
typedef struct slabs_view { int64_t push[3], contacts; } slabs_view;

/* `other` as `me` sees it. With d the way to it, D the diameter and u its velocity against mine,
   the push is a spring and a dashpot along d:

       - (D^2 - d^2) / D^2 * d / 128  +  (u . d) d / D^2 / 32

   C divides towards zero, so the other is pushed by exactly the opposite: the sum of all velocities
   is conserved to the last bit. No product exceeds 2^50. */
UGRID_FN void slabs_meet(const slabs_model *model, const slabs_particle *me,
                         const slabs_particle *other, slabs_view *view)
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
    for (a = 0; a < 3; a++)
        view->push[a] += rate / D * d[a] / (32 * D) - (D * D - d2) * d[a] / stiff;
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

/* -------------------------------------------------------------------------------------------------
   >>map: slab r is border[r] .. border[r + 1] - 1. It may be empty, and thinner than a diameter
   ---------------------------------------------------------------------------------------------- */

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

/* The ranks that need a copy of a sphere: every slab within a diameter of it, or of one of its two
   images where x repeats. Usually none, else one neighbour; where slabs are thin, the neighbours of
   the neighbours too.

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
    int const inside = x - SLABS_DIAMETER >= map->border[map->self] &&
                       x + SLABS_DIAMETER < map->border[map->self + 1];
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
            /* that is the sphere itself */
            if (visit->rank == map->self && visit->image == 0) continue;
            /* an empty slab has no spheres */
            if (map->border[visit->rank] < map->border[visit->rank + 1]) return 1;
        }
    } while (slabs_next_image(visit));
    return 0;
}

/* -------------------------------------------------------------------------------------------------
   >>run: what a rank knows
   ---------------------------------------------------------------------------------------------- */

enum { SLABS_MOVE, SLABS_MIGRATE, SLABS_HALO, SLABS_GRID, SLABS_CONTACTS, SLABS_PHASES };

enum { SLABS_BINS = 4096 };     /* of the histogram behind balanced borders */

typedef struct slabs_options {
    int64_t n;
    int32_t steps, every, balance, box[3], periodic, forces, seed, weak, check, device;
    double density, fill, speed;
    const char *write;
} slabs_options;

/* How many go to each rank: particles for rank r lie behind each other, in the order of the
   ranks. */
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

static void slabs_mpi(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (code == MPI_SUCCESS) return;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
        strcpy(text, "an error without a name");
    stop(1, "%s: %s", what, text);
}

/* MPI and ugrid.h count with int. */
static int slabs_int(int64_t count, const char *what)
{
    if (count > INT_MAX - 1024)
        stop(1, "%s: %lld, but an int counts them: take more ranks", what, (long long)count);
    return (int)count;
}

/* -------------------------------------------------------------------------------------------------
   >>work: the phases of a step, in mpi_slabs.c by loops, in mpi_slabs.cu by kernels
   ---------------------------------------------------------------------------------------------- */

static struct slabs_work *slabs_work_new(const slabs_run *run);
static void slabs_work_free(struct slabs_work *work);
/* own: ids begin .. end-1, wherever they lie */
static void slabs_work_start(slabs_run *run, int64_t begin, int64_t end);
static void slabs_work_move(slabs_run *run);
/* how many lie in each SLABS_BINS-th of the box */
static void slabs_work_bins(slabs_run *run, int64_t *bins);
static void slabs_work_migrate(slabs_run *run);
static void slabs_work_halo(slabs_run *run);
static void slabs_work_grid(slabs_run *run);
static void slabs_work_contacts(slabs_run *run);                            /* and pushes */
/* copies own particles, in any order */
static void slabs_work_fetch(slabs_run *run, slabs_particle *own);

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

/* -------------------------------------------------------------------------------------------------
   >>messages: first how many, then the particles, between ranks that have any
   ---------------------------------------------------------------------------------------------- */

/* mail.count is known; all ranks are told. Afterwards the rest of mail is known. */
static void slabs_announce(slabs_run *run)
{
    slabs_mail *mail = &run->mail;
    int32_t r;
    for (r = 0; r < run->map.ranks; r++)
        mail->out[r] = slabs_int(mail->count[r], "particles in a message");
    slabs_mpi(MPI_Alltoall(mail->out, 1, MPI_INT, mail->in, 1, MPI_INT, run->comm),
              "telling how many will come");
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
            slabs_mpi(MPI_Irecv(in, mail->in[r], run->particle, r, 0, run->comm,
                                &run->requests[posted++]),
                      "receiving");
    for (r = 0; r < run->map.ranks; out += mail->out[r++])
        if (mail->out[r])
            slabs_mpi(MPI_Isend(out, mail->out[r], run->particle, r, 0, run->comm,
                                &run->requests[posted++]),
                      "sending");
    slabs_mpi(MPI_Waitall(posted, run->requests, MPI_STATUSES_IGNORE), "waiting for messages");
}

/* How many of them go to others. */
static int64_t slabs_sent(const slabs_run *run)
{
    return run->mail.out_total - run->mail.out[run->map.self];
}

static int64_t slabs_sum(const slabs_run *run, int64_t mine)
{
    int64_t sum = 0;
    slabs_mpi(MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, run->comm), "a sum");
    return sum;
}

/* -------------------------------------------------------------------------------------------------
   >>borders
   ---------------------------------------------------------------------------------------------- */

/* Slabs of equal width. */
static void slabs_equal_borders(slabs_run *run)
{
    int32_t r;
    for (r = 0; r <= run->map.ranks; r++)
        run->border[r] = (int32_t)((int64_t)run->map.edge * r / run->map.ranks);
}

/* Slabs with equally many particles, as nearly as SLABS_BINS slices of the box allow. All ranks
   see the same sums, so all draw the same borders. */
static void slabs_balance(slabs_run *run)
{
    int64_t *bins = (int64_t *)zeros((size_t)(2 * SLABS_BINS), sizeof *bins),
            *all = bins + SLABS_BINS, below = 0;
    int32_t r = 1, bin;
    slabs_work_bins(run, bins);
    slabs_mpi(MPI_Allreduce(bins, all, SLABS_BINS, MPI_INT64_T, MPI_SUM, run->comm),
              "the histogram");
    for (bin = 0; bin < SLABS_BINS; bin++) { /* `below` particles lie in the bins before this one */
        while (r < run->map.ranks &&
               below >= (run->model.n * r + run->map.ranks - 1) / run->map.ranks)
            run->border[r++] =
                (int32_t)(((int64_t)run->map.edge * bin + SLABS_BINS - 1) / SLABS_BINS);
        below += all[bin];
    }
    while (r < run->map.ranks) run->border[r++] = run->map.edge;
    free(bins);
}

/* -------------------------------------------------------------------------------------------------
   >>step
   ---------------------------------------------------------------------------------------------- */

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
    if (phase != SLABS_MIGRATE && phase != SLABS_HALO)
        run->cpu += (double)(now.cpu - begun->cpu) / CLOCKS_PER_SEC;
    *begun = now;
}

/* Spheres move, migrate, are sent as ghosts, and push those that they touch. The first step is like
   all others: at the start no sphere is in its slab, and migration moves all of them. */
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
    run.border = (int32_t *)zeros((size_t)((int64_t)ranks + 1), sizeof(int32_t));
    run.mail.count = (int64_t *)zeros((size_t)ranks, sizeof(int64_t));
    run.mail.out = (int *)zeros((size_t)ranks, sizeof(int));
    run.mail.in = (int *)zeros((size_t)ranks, sizeof(int));
    run.requests = (MPI_Request *)zeros((size_t)(2 * (int64_t)ranks), sizeof(MPI_Request));
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

#endif /* MPI_SLABS_H */
