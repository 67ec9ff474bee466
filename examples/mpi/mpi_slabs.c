/* mpi_slabs.c - spheres on any number of MPI ranks: slabs, ghosts, migration, and the same contacts
   as on one rank, bit for bit.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: ugrid.h beyond one machine. Each rank builds a grid over its own spheres and over
   copies of those just beyond its borders, and needs nothing else of the others. One grid knows
   nothing of another, so nothing in ugrid.h had to change for this.

   How to run it (Debian: libopenmpi-dev openmpi-bin):

       make build/mpi_slabs && mpirun -n 2 build/mpi_slabs     (from the top of the repository), or
       mpicc -O3 examples/mpi/mpi_slabs.c -o mpi_slabs -lm
       mpirun -n 4 ./mpi_slabs --check --particles 2000
       mpirun -n 2 ./mpi_slabs --weak --particles 200000

   What to look at: >>map, >>messages and >>step in mpi_slabs.h, then the phases below, which are
   100 lines. mpi_slabs.cu is the same program with one GPU for each rank. */

#define UGRID_IMPLEMENTATION
#include "mpi_slabs_run.h"
#include "mpi_slabs_serial.h"

/* -------------------------------------------------------------------------------------------------
   >>start, move, bins
   ---------------------------------------------------------------------------------------------- */

static void slabs_work_start(slabs_run *run, int64_t begin, int64_t end)
{
    int64_t id;
    slabs_room(run, slabs_int(end - begin, "particles of a rank"));
    for (id = begin; id < end; id++) run->work->all[run->own++] = slabs_first(&run->model, id);
}

static void slabs_work_move(slabs_run *run)
{
    int64_t i;
    for (i = 0; i < run->own; i++) slabs_move(&run->model, &run->work->all[i]);
}

static void slabs_work_bins(slabs_run *run, int64_t *bins)
{
    int64_t i;
    for (i = 0; i < run->own; i++)
        bins[(int64_t)run->work->all[i].x[0] * SLABS_BINS / run->map.edge]++;
}

/* -------------------------------------------------------------------------------------------------
   >>migrate: those outside of the slab go to the owner of their place, on whatever rank
   ---------------------------------------------------------------------------------------------- */

static void slabs_work_migrate(slabs_run *run)
{
    struct slabs_work *work = run->work;
    int64_t i, stay = 0;
    memset(run->mail.count, 0, (size_t)run->map.ranks * sizeof *run->mail.count);
    for (i = 0; i < run->own; i++) {
        int32_t const owner = slabs_owner(&run->map, work->all[i].x[0]);
        if (owner != run->map.self) run->mail.count[owner]++;
    }
    slabs_address(run);
    for (i = 0; i < run->own; i++) {
        int32_t const owner = slabs_owner(&run->map, work->all[i].x[0]);
        if (owner != run->map.self) work->out[work->cursor[owner]++] = work->all[i];
        else work->all[stay++] = work->all[i];
    }
    run->own = stay;
    slabs_room(run, run->own + run->mail.in_total);
    slabs_deliver(run, work->out, work->all + run->own);
    run->own += run->mail.in_total;
    run->migrated = slabs_sent(run);
}

/* -------------------------------------------------------------------------------------------------
   >>halo: copies of those near a border go to all ranks that need them; of an image, with its x
   ---------------------------------------------------------------------------------------------- */

static void slabs_work_halo(slabs_run *run)
{
    struct slabs_work *work = run->work;
    int64_t i;
    memset(run->mail.count, 0, (size_t)run->map.ranks * sizeof *run->mail.count);
    for (i = 0; i < run->own; i++) {
        slabs_visit visit = slabs_visits(&run->map, work->all[i].x[0]);
        while (slabs_next(&visit)) run->mail.count[visit.rank]++;
    }
    slabs_address(run);
    for (i = 0; i < run->own; i++) {
        slabs_visit visit = slabs_visits(&run->map, work->all[i].x[0]);
        while (slabs_next(&visit)) {
            slabs_particle *copy = &work->out[work->cursor[visit.rank]++];
            *copy = work->all[i];
            copy->x[0] += visit.shift;
        }
    }
    slabs_room(run, run->own + run->mail.in_total);
    slabs_deliver(run, work->out, work->all + run->own);
    run->ghosts = run->mail.in_total;
    run->copied = slabs_sent(run);
}

/* -------------------------------------------------------------------------------------------------
   >>grid and >>contacts
   ---------------------------------------------------------------------------------------------- */

static void slabs_work_grid(slabs_run *run)
{
    struct slabs_work *work = run->work;
    ugrid_desc const desc = slabs_desc(run);
    int64_t const n = run->own + run->ghosts;
    int64_t i;
    for (i = 0; i < n; i++)
        slabs_place(&work->all[i], run->border[run->map.self], work->place + 3 * i);
    MUST(ugrid,
         ugrid_build(&work->grid, &desc, work->place, 0, slabs_int(n, "particles of a rank")),
         "ugrid");
    MUST(ugrid, ugrid_gather(&work->grid, work->all, sizeof *work->all, work->sorted), "ugrid");
}

/* All near the one at a place, in whole ranges of places: a plain loop over particles that lie
   side by side. */
static slabs_view slabs_look(const slabs_run *run, int32_t place)
{
    const struct slabs_work *work = run->work;
    ugrid_near near = ugrid_near_place(&work->grid, place, SLABS_REACH);
    slabs_view view;
    int32_t k;
    memset(&view, 0, sizeof view);
    while (ugrid_next_range(&near))
        for (k = near.begin; k < near.end; k++)
            slabs_meet(&run->model, &work->sorted[place], &work->sorted[k], &view);
    return view;
}

/* Ghosts only are looked at: their owners do the same with them. Own ones are left in the order
   of the grid, so that near ones lie near each other in memory. */
static void slabs_work_contacts(slabs_run *run)
{
    struct slabs_work *work = run->work;
    int32_t place;
    int64_t k = 0;
    run->contacts = 0;
    for (place = 0; place < work->grid.n; place++)
        if (ugrid_id(&work->grid, place) < run->own) {
            slabs_view const view = slabs_look(run, place);
            run->contacts += view.contacts;
            work->all[k++] = slabs_pushed(work->sorted[place], &view);
        }
}

/* -------------------------------------------------------------------------------------------------
   >>main
   ---------------------------------------------------------------------------------------------- */

static void slabs_work_fetch(slabs_run *run, slabs_particle *own)
{
    if (run->own) memcpy(own, run->work->all, (size_t)run->own * sizeof *own);
}

static int32_t slabs_device(int32_t wanted)
{
    if (wanted >= 0) stop(2, "--messages: there is no GPU's memory here, only in mpi_slabs.cu");
    return 0;
}

int main(int argc, char **argv) { return slabs_main(argc, argv, slabs_device); }
