/* mpi_slabs_serial.h - the arrays of mpi_slabs.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef MPI_SLABS_SERIAL_H
#define MPI_SLABS_SERIAL_H

struct slabs_work {
    ugrid grid;
    slabs_particle *all;        /* own ones, then ghosts */
    slabs_particle *sorted;     /* the same in the order of the grid */
    slabs_particle *out;        /* what is to be sent, in the order of the ranks */
    float *place;               /* [3 room] what the grid is built of */
    int64_t *cursor;            /* [ranks] where the next one for each rank goes in `out` */
    int64_t room, out_room;
};

static struct slabs_work *slabs_work_new(const slabs_run *run)
{
    struct slabs_work *work = (struct slabs_work *)zeros((size_t)1, sizeof *work);
    work->cursor = (int64_t *)zeros((size_t)run->map.ranks, sizeof *work->cursor);
    return work;
}

static void slabs_work_free(struct slabs_work *work)
{
    ugrid_free(&work->grid);
    free(work->all);
    free(work->sorted);
    free(work->out);
    free(work->place);
    free(work->cursor);
    free(work);
}

/* Room for so many, and a quarter more; own particles stay. */
static void slabs_room(slabs_run *run, int64_t count)
{
    struct slabs_work *work = run->work;
    slabs_particle *all;
    if (count <= work->room) return;
    work->room = count + count / 4;
    all = (slabs_particle *)zeros((size_t)work->room, sizeof *all);
    if (run->own) memcpy(all, work->all, (size_t)run->own * sizeof *all);
    free(work->all);
    free(work->sorted);
    free(work->place);
    work->all = all;
    work->sorted = (slabs_particle *)zeros((size_t)work->room, sizeof *work->sorted);
    work->place = (float *)zeros((size_t)work->room, 3 * sizeof *work->place);
}

/* mail.count is known, and so where in `out` each rank's part begins; tells all ranks, and makes
   room for what will come. */
static void slabs_address(slabs_run *run)
{
    struct slabs_work *work = run->work;
    int64_t begin = 0;
    int32_t r;
    for (r = 0; r < run->map.ranks; begin += run->mail.count[r++]) work->cursor[r] = begin;
    slabs_announce(run);
    if (run->mail.out_total > work->out_room) {
        free(work->out);
        work->out_room = run->mail.out_total + run->mail.out_total / 4;
        work->out = (slabs_particle *)zeros((size_t)work->out_room, sizeof *work->out);
    }
}

#endif /* MPI_SLABS_SERIAL_H */
