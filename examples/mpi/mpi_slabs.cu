/* mpi_slabs.cu - mpi_slabs.c with one GPU for each MPI rank: the same command line, the same
   messages, the same bits.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: the particles stay on the GPU. What goes through the host is how many go where,
   and, if MPI cannot read the GPU's memory, the few that migrate or are ghosts elsewhere. Kernels
   find and pack them.

   How to run it (Debian: libopenmpi-dev openmpi-bin):

       make mpi && mpirun -n 2 build/mpi_slabs_gpu             (from the top of the repository), or
       nvcc -O3 -arch=native -ccbin mpicxx examples/mpi/mpi_slabs.cu -o mpi_slabs_gpu
       mpirun -n 2 ./mpi_slabs_gpu --particles 4000000
       mpirun -n 4 ./mpi_slabs_gpu --weak --particles 10000000 --messages host

   Ranks of one machine take its GPUs in turn. --messages device hands MPI pointers to the GPU's
   memory; that is what happens by itself where MPI says that it can read it
   (MPIX_Query_cuda_support).

   What to look at: >>migrate and >>halo beside those of mpi_slabs.c. Their order within a
   message is not defined here, since atomics give out the places; no sum minds. */

#define UGRID_IMPLEMENTATION
#define UGRID_CUDA
#include "mpi_slabs_run.h"

#include "mpi_slabs_gpu.h"

namespace {

/* -------------------------------------------------------------------------------------------------
   >>kernels: one thread for each particle
   ---------------------------------------------------------------------------------------------- */

/* Run twice. First without `out`: cursor, all zero before, is then how many go to each rank.
   Then cursor is where in `out` the next one for each rank is put. */
__global__ void slabs_leave_kernel(slabs_map map, const slabs_particle *p, int64_t n,
                                   slabs_count *cursor, slabs_particle *out)
{
    int64_t const i = slabs_thread();
    if (i >= n) return;
    slabs_count const at = atomicAdd(&cursor[slabs_owner(&map, p[i].x[0])], slabs_count(1));
    if (out) out[at] = p[i];
}

__global__ void slabs_halo_kernel(slabs_map map, const slabs_particle *p, int64_t n,
                                  slabs_count *cursor, slabs_particle *out)
{
    int64_t const i = slabs_thread();
    if (i >= n) return;
    slabs_visit visit = slabs_visits(&map, p[i].x[0]);
    while (slabs_next(&visit)) {
        slabs_count const at = atomicAdd(&cursor[visit.rank], slabs_count(1));
        if (!out) continue;
        out[at] = p[i];
        out[at].x[0] += visit.shift;
    }
}

/* Ghosts are only met, and leave id -1 at their place. */
__global__ void __launch_bounds__(gpu_block)
    slabs_contacts_kernel(__grid_constant__ const ugrid_device device, slabs_model model,
                          int32_t own, const slabs_particle *sorted, slabs_particle *next,
                          slabs_count *contacts)
{
    int32_t const place = static_cast<int32_t>(slabs_thread());
    slabs_view view = {};
    if (place < device.grid.n) {
        slabs_particle const me = sorted[place];
        if (ugrid_id(&device.grid, place) < own) {
            ugrid_for_each(device.grid, place, SLABS_REACH, false, [&](const ugrid_contact &near) {
                slabs_meet(&model, &me, &sorted[near.place_j], &view);
            });
            next[place] = slabs_pushed(me, &view);
        } else {
            next[place] = me;
            next[place].id = -1;
        }
    }
    slabs_count count = static_cast<slabs_count>(view.contacts);
    for (int distance = 16; distance > 0; distance /= 2)
        count += __shfl_down_sync(0xffffffffu, count, distance);
    if (threadIdx.x % 32 == 0 && count) atomicAdd(contacts, count);
}

} // namespace

/* -------------------------------------------------------------------------------------------------
   >>start, move, bins
   ---------------------------------------------------------------------------------------------- */

static void slabs_work_start(slabs_run *run, int64_t begin, int64_t end)
{
    int64_t const n = slabs_int(end - begin, "particles of a rank");
    slabs_room(run, n);
    slabs_launch(run->work, n, slabs_start_kernel, run->model, begin, n, run->work->all.data);
    run->own = n;
}

static void slabs_work_move(slabs_run *run)
{
    slabs_launch(run->work, run->own, slabs_move_kernel, run->model, run->work->all.data, run->own);
    slabs_wait(run->work); /* only for the clock */
}

static void slabs_work_bins(slabs_run *run, int64_t *bins)
{
    slabs_work *work = run->work;
    slabs_zero(work, work->counters, SLABS_BINS);
    slabs_launch(work, run->own, slabs_bins_kernel, run->map.edge, work->all.data, run->own,
                 work->counters.data);
    slabs_copy(work, reinterpret_cast<slabs_count *>(bins), work->counters.data, SLABS_BINS,
               cudaMemcpyDeviceToHost);
    slabs_wait(work);
}

/* -------------------------------------------------------------------------------------------------
   >>migrate
   ---------------------------------------------------------------------------------------------- */

static void slabs_work_migrate(slabs_run *run)
{
    slabs_work *work = run->work;
    int32_t const from = run->border[run->map.self], to = run->border[run->map.self + 1];
    int64_t const leave =
        slabs_select(work, work->all.data, run->own, work->next.data, slabs_out{from, to});
    if (leave) {
        int64_t const stay =
            slabs_select(work, work->all.data, run->own, work->sorted.data, slabs_in{from, to});
        std::swap(work->all, work->sorted);
        run->own = stay;
    }
    slabs_pack(run, slabs_leave_kernel, work->next.data, leave);
    slabs_exchange(run);
    run->own += run->mail.in_total;
    run->migrated = slabs_sent(run);
}

/* -------------------------------------------------------------------------------------------------
   >>halo
   ---------------------------------------------------------------------------------------------- */

static void slabs_work_halo(slabs_run *run)
{
    slabs_pack(run, slabs_halo_kernel, run->work->all.data, run->own);
    slabs_exchange(run);
    run->ghosts = run->mail.in_total;
    run->copied = slabs_sent(run);
}

/* -------------------------------------------------------------------------------------------------
   >>grid and >>contacts
   ---------------------------------------------------------------------------------------------- */

static void slabs_work_grid(slabs_run *run)
{
    slabs_work *work = run->work;
    ugrid_desc const desc = slabs_desc(run);
    int64_t const n = run->own + run->ghosts;
    slabs_launch(work, n, slabs_place_kernel, work->all.data, n, run->border[run->map.self],
                 work->place.data);
    MUST(ugrid,
         ugrid_cuda_build(&work->grid, &desc, work->place.data, 0,
                          slabs_int(n, "particles of a rank"), work->stream),
         "ugrid");
    if (n)
        MUST(ugrid,
             ugrid_cuda_gather(&work->grid, work->all.data, sizeof(slabs_particle),
                               work->sorted.data, work->stream),
             "ugrid");
    slabs_wait(work); /* only for the clock */
}

static void slabs_work_contacts(slabs_run *run)
{
    slabs_work *work = run->work;
    int64_t const n = run->own + run->ghosts;
    slabs_count contacts = 0;
    slabs_zero(work, work->counters, 1);
    slabs_launch(work, n, slabs_contacts_kernel, work->grid.device, run->model,
                 static_cast<int32_t>(run->own), work->sorted.data, work->next.data,
                 work->counters.data);
    slabs_copy(work, &contacts, work->counters.data, 1, cudaMemcpyDeviceToHost);
    slabs_wait(work);
    run->contacts = static_cast<int64_t>(contacts);
    (void)slabs_select(work, work->next.data, n, work->all.data, slabs_own{});
}

/* -------------------------------------------------------------------------------------------------
   >>main
   ---------------------------------------------------------------------------------------------- */

static void slabs_work_fetch(slabs_run *run, slabs_particle *own)
{
    slabs_copy(run->work, own, run->work->all.data, run->own, cudaMemcpyDeviceToHost);
    slabs_wait(run->work);
}

int main(int argc, char **argv) { return slabs_main(argc, argv, slabs_device); }
