/* mpi_slabs_run.h - the program around the steps of mpi_slabs.c and mpi_slabs.cu.
   SPDX-License-Identifier: MIT OR Unlicense

   >>figures    what is written and printed
   >>all-pairs  the same spheres on one rank, without slabs, ghosts and grid
   >>options    the command line
   >>weak       as much to do for each rank, however many there are
   >>main       the same for both programs */

#ifndef MPI_SLABS_RUN_H
#define MPI_SLABS_RUN_H

#include "mpi_slabs.h"

/* -------------------------------------------------------------------------------------------------
   >>figures
   ---------------------------------------------------------------------------------------------- */

/* A number that every bit of every particle enters, and their order does not. */
static uint64_t slabs_digest(const slabs_particle *p, int64_t count)
{
    uint64_t sum = 0;
    int64_t i;
    int a;
    for (i = 0; i < count; i++) {
        uint64_t k = slabs_scramble((uint64_t)p[i].id + 1);
        for (a = 0; a < 3; a++)
            k = slabs_scramble(k + ((uint64_t)(uint32_t)p[i].x[a] << 32 | (uint32_t)p[i].v[a]));
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
    out_file const out = create_file(path);
    FILE *const file = out.file;
    int64_t i;
    qsort(all, (size_t)run->model.n, sizeof *all, slabs_by_id);
    fprintf(file, "# box %ld %ld %ld, a diameter is %d: id x y z vx vy vz\n",
            (long)run->model.box[0], (long)run->model.box[1], (long)run->model.box[2],
            (int)SLABS_DIAMETER);
    for (i = 0; i < run->model.n; i++)
        fprintf(file, "%lld %ld %ld %ld %ld %ld %ld\n", (long long)all[i].id, (long)all[i].x[0],
                (long)all[i].x[1], (long)all[i].x[2], (long)all[i].v[0], (long)all[i].v[1],
                (long)all[i].v[2]);
    close_file(&out);
}

/* Rank 0 gets all, and writes them. */
static void slabs_write(slabs_run *run, slabs_particle *own, const char *path)
{
    int const first = run->map.self == 0;
    int32_t const ranks = run->map.ranks;
    slabs_particle *all = (slabs_particle *)zeros((size_t)(first ? run->model.n : 0), sizeof *all);
    int *counts = (int *)zeros((size_t)(2 * (int64_t)ranks), sizeof *counts),
        *begin = counts + ranks, mine = (int)run->own;
    int32_t r;
    (void)slabs_int(run->model.n, "particles to write");
    slabs_mpi(MPI_Gather(&mine, 1, MPI_INT, counts, 1, MPI_INT, 0, run->comm), "gathering");
    for (r = 1; r < ranks; r++) begin[r] = begin[r - 1] + counts[r - 1];
    slabs_mpi(
        MPI_Gatherv(own, mine, run->particle, all, counts, begin, run->particle, 0, run->comm),
        "gathering");
    if (first) slabs_write_file(run, all, path);
    free(counts);
    free(all);
}

static const char *const slabs_titles =
    "    step     contacts  migrated    ghosts   KB sent   move migrate   halo   grid contacts ms";

/* One line: counts of this step over all ranks, and milliseconds of each phase: the mean of
   `steps` steps on the slowest rank. */
static void slabs_print(slabs_run *run, int64_t contacts, int32_t steps)
{
    int64_t mine[2], all[2] = {0, 0};
    double most[SLABS_PHASES];
    mine[0] = run->migrated;
    mine[1] = run->copied;
    slabs_mpi(MPI_Reduce(mine, all, 2, MPI_INT64_T, MPI_SUM, 0, run->comm), "figures");
    slabs_mpi(MPI_Reduce(run->seconds, most, SLABS_PHASES, MPI_DOUBLE, MPI_MAX, 0, run->comm),
              "figures");
    memset(run->seconds, 0, sizeof run->seconds);
    if (run->map.self != 0) return;
    printf("%8ld %12lld %9lld %9lld %9.0f %6.2f %7.2f %6.2f %6.2f %8.2f\n", (long)run->step,
           (long long)contacts, (long long)all[0], (long long)all[1],
           (double)(all[0] + all[1]) * (double)sizeof(slabs_particle) / 1000,
           1e3 * most[SLABS_MOVE] / steps, 1e3 * most[SLABS_MIGRATE] / steps,
           1e3 * most[SLABS_HALO] / steps, 1e3 * most[SLABS_GRID] / steps,
           1e3 * most[SLABS_CONTACTS] / steps);
    fflush(stdout);
}

/* -------------------------------------------------------------------------------------------------
   >>all-pairs: the same spheres on one rank, without slabs, ghosts and grid
   ---------------------------------------------------------------------------------------------- */

typedef struct slabs_outcome { int64_t contacts, all_contacts; uint64_t digest; } slabs_outcome;

/* All pairs, periodic images too. */
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
    slabs_particle *p = (slabs_particle *)zeros((size_t)(2 * model->n), sizeof *p),
                   *next = p + model->n;
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

/* -------------------------------------------------------------------------------------------------
   >>options
   ---------------------------------------------------------------------------------------------- */

static slabs_options slabs_parse(int argc, char **argv)
{
    static const option_name messages[] = {{"auto", -1}, {"host", 0}, {"device", 1}, {NULL, 0}};
    const char *device = "auto";
    double n = 20000;
    int32_t no_forces = 0;
    slabs_options o;
    const option_line table[] = {
        DOUBLE("--particles", "N", &n, 0, 1e12, "how many, over all ranks (default 20000)"),
        INT("--steps", "N", &o.steps, 1, 1e9, "(default 100)"),
        INT("--box", "X Y Z", o.box, 3, SLABS_LONGEST,
            "edges in diameters (default: 4 : 1 : 1, by --density)"),
        DOUBLE("--density", "F", &o.density, 1e-6, 100,
               "particles in a cube as wide as a diameter (default 0.5)"),
        FLAG("--periodic", &o.periodic, "x repeats; else there are walls on all sides"),
        DOUBLE("--fill", "F", &o.fill, 1e-4, 1,
               "at the start all are in the first F of the box's length (default 1)"),
        DOUBLE("--speed", "F", &o.speed, 0, 60,
               "of the start, along each axis, in diameters a step (default 0.01)"),
        FLAG("--no-forces", &no_forces,
             "they pass through each other; contacts are counted all the same"),
        INT("--balance", "K", &o.balance, 1, 1e9,
            "every K steps, borders move so that slabs hold equally many"),
        INT("--seed", "N", &o.seed, 0, 1e9, "of the start (default 1)"),
        INT("--every", "K", &o.every, 0, 1e9, "a line every K steps (default: 10 lines; 0: none)"),
        TEXT("--write", "FILE", &o.write,
             "the end as text, in the order of the ids: equal for any number of ranks"),
        FLAG("--check", &o.check,
             "one rank does all again with all pairs: every bit must agree, else exit status 1"),
        FLAG("--weak", &o.weak,
             "--particles and the box are for each rank: a table for 1, 2, 4, ... ranks"),
        TEXT("--messages", "M", &device,
             "on GPUs: does MPI read the GPU's memory? device, host, auto (default)"),
        OPTIONS_END};
    memset(&o, 0, sizeof o);
    o.steps = 100;
    o.every = -1;
    o.seed = 1;
    o.density = 0.5;
    o.fill = 1;
    o.speed = 0.01;
    options_read(
        argc, argv, table, NULL,
        "Spheres in a box that is cut into slabs along x, one for each rank (mpirun -n RANKS).",
        NULL);
    if (n != floor(n)) stop(2, "--particles %g: a whole number is needed", n);
    o.n = (int64_t)n;
    o.forces = !no_forces;
    o.device = option_find(messages, "--messages", device);
    if (o.every < 0) o.every = (o.steps + 9) / 10;
    if (o.check && o.n > 20000) stop(2, "--check looks at all pairs: --particles 20000 at most");
    if (o.weak && (o.check || o.write))
        stop(2, "--weak only measures: without --check and --write");
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
        if (length > SLABS_LONGEST)
            stop(2, "a box %.0f diameters long: %d at most", length, (int)SLABS_LONGEST);
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

/* -------------------------------------------------------------------------------------------------
   >>weak: each rank gets as much to do, however many there are. Then a step should take as long.
   ---------------------------------------------------------------------------------------------- */

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

/* One line of the table for the ranks of comm; milliseconds of a step come back. `alone`: those
   of one rank, 0: this is it. */
static double slabs_weak_line(const slabs_options *o, MPI_Comm comm, int32_t ranks, double alone)
{
    slabs_model const model = slabs_model_of(o, ranks);
    slabs_run run = slabs_run_new(&model, comm, o->device);
    double *most = (double *)zeros((size_t)((int64_t)SLABS_FIGURES * o->steps), sizeof *most),
           ms[SLABS_FIGURES];
    int64_t sent = 0;
    int32_t step, k;
    slabs_weak_step(&run, o->balance, ms); /* migrates all, and is not counted */
    for (step = 0; step < o->steps; step++) {
        slabs_weak_step(&run, o->balance, ms);
        for (k = 0; k < SLABS_FIGURES; k++)
            slabs_mpi(MPI_Reduce(&ms[k], &most[(int64_t)k * o->steps + step], 1, MPI_DOUBLE,
                                 MPI_MAX, 0, comm),
                      "figures");
        sent += slabs_sum(&run, run.migrated + run.copied);
    }
    for (k = 0; k < SLABS_FIGURES; k++)
        ms[k] = median(most + (int64_t)k * o->steps, o->steps);
    if (run.map.self == 0) {
        printf("%5ld %12lld %12lld %9.0f %6.2f %7.2f %6.2f %6.2f %8.2f %8.2f %8.2f %9.1f %9.0f%%\n",
               (long)ranks, (long long)model.n, (long long)run.all_contacts,
               (double)sent / o->steps * (double)sizeof(slabs_particle) / 1000, ms[SLABS_MOVE],
               ms[SLABS_MIGRATE], ms[SLABS_HALO], ms[SLABS_GRID], ms[SLABS_CONTACTS], ms[SLABS_CPU],
               ms[SLABS_STEP], 1e-3 * (double)model.n / ms[SLABS_STEP],
               100 * (alone > 0 ? alone : ms[SLABS_STEP]) / ms[SLABS_STEP]);
        fflush(stdout);
    }
    free(most);
    slabs_run_free(&run);
    return ms[SLABS_STEP];
}

/* Waits without taking the processor from ranks that compute. */
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
        printf("ranks    particles     contacts   KB sent   move migrate   halo   grid contacts    "
               "  cpu     step  million/s efficiency\n"
               "# ms of a step on the slowest rank, medians; cpu: processor time of move, grid and "
               "contacts; million particles a second\n");
    for (;;) {
        MPI_Comm comm;
        slabs_mpi(MPI_Comm_split(MPI_COMM_WORLD, rank < some ? 0 : MPI_UNDEFINED, rank, &comm),
                  "a part of the ranks");
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

/* -------------------------------------------------------------------------------------------------
   >>main
   ---------------------------------------------------------------------------------------------- */

/* What must be the same for any number of ranks; compared with all pairs where that is asked
   for. 0: it is not the same. */
static int slabs_finish(slabs_run *run, const slabs_options *o, slabs_outcome outcome)
{
    slabs_particle *own = (slabs_particle *)zeros((size_t)run->own, sizeof *own);
    int64_t const lost = run->model.n - slabs_sum(run, run->own);
    int agrees = lost == 0;
    slabs_work_fetch(run, own);
    outcome.digest = (uint64_t)slabs_sum(run, (int64_t)slabs_digest(own, run->own));
    if (lost) stop(1, "%lld particles are lost", (long long)lost);
    if (o->write) slabs_write(run, own, o->write);
    free(own);
    if (run->map.self == 0) {
        printf("particles %lld\nsteps %ld\ncontacts %lld\ncontacts_of_all_steps %lld\ndigest "
               "%016llx\n",
               (long long)run->model.n, (long)run->step, (long long)outcome.contacts,
               (long long)outcome.all_contacts, (unsigned long long)outcome.digest);
        if (o->check) {
            slabs_outcome const expected = slabs_all_pairs(&run->model, run->step);
            agrees = outcome.contacts == expected.contacts &&
                     outcome.all_contacts == expected.all_contacts &&
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
        printf("# %ld ranks; the fullest has %lld particles\n", (long)run.map.ranks,
               (long long)fullest);
    agrees = slabs_finish(&run, o, outcome);
    slabs_run_free(&run);
    return agrees;
}

/* The same for both programs. */
static int slabs_main(int argc, char **argv, int32_t device(int32_t wanted))
{
    slabs_options o;
    int agrees = 1, rank;
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    slabs_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "the rank");
    program_is_silent = rank != 0;
    o = slabs_parse(argc, argv);
    o.device = device(o.device);
    if (o.weak) slabs_weak(&o);
    else agrees = slabs_simulate(&o);
    slabs_mpi(MPI_Finalize(), "the end");
    return agrees ? 0 : 1;
}

#endif /* MPI_SLABS_RUN_H */
