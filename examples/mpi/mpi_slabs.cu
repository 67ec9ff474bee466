/* mpi_slabs.cu - mpi_slabs.c with one GPU for each MPI rank: the same command line, the same messages, the same bits.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: the particles stay on the GPU. What goes through the host is how many go where, and, if MPI cannot read the GPU's memory,
   the few that leave or are shown to others. Who leaves, and who lies near a border, is found and packed by kernels.

   How to run it (Debian: libopenmpi-dev openmpi-bin):

       make mpi && mpirun -n 2 build/mpi_slabs_gpu             (from the top of the repository), or
       nvcc -O3 -arch=native -ccbin mpicxx examples/mpi/mpi_slabs.cu -o mpi_slabs_gpu
       mpirun -n 2 ./mpi_slabs_gpu --particles 4000000
       mpirun -n 4 ./mpi_slabs_gpu --weak --particles 10000000 --messages host

   Ranks of one machine take its GPUs in turn. --messages device hands MPI pointers to the GPU's memory; that is what happens by itself
   where MPI says that it can read it (MPIX_Query_cuda_support).

   What to look at: >>migrate and >>halo beside those of mpi_slabs.c. Their order within a message is not defined here, since atomics give
   out the places; no sum minds. */

#define UGRID_IMPLEMENTATION
#define UGRID_CUDA
#include "mpi_slabs.h"

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <cub/cub.cuh>
#include <cuda_runtime.h>
#include <utility>

namespace {

/* ------------------------------------------------------------------------------------------------
   >>kernels: one thread for each particle
   ------------------------------------------------------------------------------------------------ */

constexpr int slabs_block = 128;

typedef unsigned long long slabs_count; /* what atomicAdd knows */

__device__ int64_t slabs_thread() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }

__global__ void slabs_start_kernel(slabs_model model, int64_t begin, int64_t n, slabs_particle *p)
{
    int64_t const i = slabs_thread();
    if (i < n) p[i] = slabs_first(&model, begin + i);
}

__global__ void slabs_move_kernel(slabs_model model, slabs_particle *p, int64_t n)
{
    int64_t const i = slabs_thread();
    if (i < n) slabs_move(&model, &p[i]);
}

__global__ void slabs_bins_kernel(int32_t edge, const slabs_particle *p, int64_t n, slabs_count *bins)
{
    int64_t const i = slabs_thread();
    if (i < n) atomicAdd(&bins[static_cast<int64_t>(p[i].x[0]) * SLABS_BINS / edge], slabs_count(1));
}

/* Run twice. First without `out`: cursor, all zero before, is then how many go to each rank. Then cursor is where in `out` the next one for
   each rank is put. */
__global__ void slabs_leave_kernel(slabs_map map, const slabs_particle *p, int64_t n, slabs_count *cursor, slabs_particle *out)
{
    int64_t const i = slabs_thread();
    if (i >= n) return;
    slabs_count const at = atomicAdd(&cursor[slabs_owner(&map, p[i].x[0])], slabs_count(1));
    if (out) out[at] = p[i];
}

__global__ void slabs_halo_kernel(slabs_map map, const slabs_particle *p, int64_t n, slabs_count *cursor, slabs_particle *out)
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

__global__ void slabs_place_kernel(const slabs_particle *p, int64_t n, int32_t from, float *place)
{
    int64_t const i = slabs_thread();
    if (i < n) slabs_place(&p[i], from, place + 3 * i);
}

/* Ghosts only are looked at, and leave nobody at their place. */
__global__ void __launch_bounds__(slabs_block)
    slabs_contacts_kernel(__grid_constant__ const ugrid_device device, slabs_model model, int32_t own, const slabs_particle *sorted,
                          slabs_particle *next, slabs_count *contacts)
{
    int32_t const place = static_cast<int32_t>(slabs_thread());
    slabs_view view = {};
    if (place < device.grid.n) {
        slabs_particle const me = sorted[place];
        if (ugrid_id(&device.grid, place) < own) {
            ugrid_for_each(device.grid, place, SLABS_REACH, false,
                           [&](const ugrid_contact &near) { slabs_meet(&model, &me, &sorted[near.place_j], &view); });
            next[place] = slabs_pushed(me, &view);
        } else {
            next[place] = me;
            next[place].id = -1;
        }
    }
    slabs_count count = static_cast<slabs_count>(view.contacts);
    for (int distance = 16; distance > 0; distance /= 2) count += __shfl_down_sync(0xffffffffu, count, distance);
    if (threadIdx.x % 32 == 0 && count) atomicAdd(contacts, count);
}

/* Whom a selection keeps. */
struct slabs_in {
    int32_t from, to;
    __host__ __device__ bool operator()(const slabs_particle &p) const { return p.x[0] >= from && p.x[0] < to; }
};
struct slabs_out {
    int32_t from, to;
    __host__ __device__ bool operator()(const slabs_particle &p) const { return p.x[0] < from || p.x[0] >= to; }
};
struct slabs_own {
    __host__ __device__ bool operator()(const slabs_particle &p) const { return p.id >= 0; }
};

/* ------------------------------------------------------------------------------------------------
   >>arrays
   ------------------------------------------------------------------------------------------------ */

void slabs_cuda_must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) slabs_stop("%s: %s", what, cudaGetErrorString(error));
}

/* Memory that grows, and forgets what was in it. */
template <class T> struct slabs_array {
    T *data;
    int64_t room;
    bool host; /* pinned, so that copies are fast */

    void release() { if (data) slabs_cuda_must(host ? cudaFreeHost(data) : cudaFree(data), "freeing"); data = nullptr; }
    void grow(int64_t count)
    {
        void *memory = nullptr;
        if (count <= room) return;
        release();
        room = count + count / 4;
        size_t const bytes = static_cast<size_t>(room) * sizeof(T);
        slabs_cuda_must(host ? cudaMallocHost(&memory, bytes) : cudaMalloc(&memory, bytes), host ? "pinned memory" : "GPU memory");
        data = static_cast<T *>(memory);
    }
};

} // namespace

struct slabs_work {
    cudaStream_t stream;
    ugrid_cuda grid;
    slabs_array<slabs_particle> all;        /* own ones, then ghosts */
    slabs_array<slabs_particle> sorted;     /* the same in the order of the grid; and where particles are copied to */
    slabs_array<slabs_particle> next;       /* what becomes of them, with gaps; and who leaves */
    slabs_array<slabs_particle> out;        /* what is to be sent, in the order of the ranks */
    slabs_array<slabs_particle> host_out, host_in;
    slabs_array<float> place;               /* [3 room] what the grid is built of */
    slabs_array<slabs_count> cursor;        /* [ranks] */
    slabs_array<slabs_count> counters;      /* [SLABS_BINS] of a histogram; the first also of contacts and of selections */
    slabs_array<int32_t> border;            /* [ranks + 1] */
    slabs_array<char> temp;                 /* for CUB */
};

namespace {

void slabs_wait(const slabs_work *work) { slabs_cuda_must(cudaStreamSynchronize(work->stream), "waiting for the GPU"); }

template <class T> void slabs_copy(const slabs_work *work, T *to, const T *from, int64_t count, cudaMemcpyKind kind)
{
    if (count) slabs_cuda_must(cudaMemcpyAsync(to, from, static_cast<size_t>(count) * sizeof(T), kind, work->stream), "copying");
}

template <class T> void slabs_zero(const slabs_work *work, slabs_array<T> &array, int64_t count)
{
    slabs_cuda_must(cudaMemsetAsync(array.data, 0, static_cast<size_t>(count) * sizeof(T), work->stream), "clearing");
}

template <class... Parameters, class... Arguments>
void slabs_launch(const slabs_work *work, int64_t threads, void (*kernel)(Parameters...), Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    if (threads == 0) return;
    config.gridDim = dim3(static_cast<unsigned>((threads + slabs_block - 1) / slabs_block));
    config.blockDim = dim3(slabs_block);
    config.stream = work->stream;
    slabs_cuda_must(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), "starting a kernel");
}

/* Copies those of n that `keep` says, in their order. How many they are comes back. */
template <class Keep> int64_t slabs_select(slabs_work *work, const slabs_particle *from, int64_t n, slabs_particle *to, Keep keep)
{
    size_t bytes = 0;
    slabs_count kept = 0;
    if (n == 0) return 0;
    slabs_cuda_must(cub::DeviceSelect::If(nullptr, bytes, from, to, work->counters.data, n, keep, work->stream), "selecting");
    work->temp.grow(static_cast<int64_t>(bytes));
    slabs_cuda_must(cub::DeviceSelect::If(work->temp.data, bytes, from, to, work->counters.data, n, keep, work->stream), "selecting");
    slabs_copy(work, &kept, work->counters.data, 1, cudaMemcpyDeviceToHost);
    slabs_wait(work);
    return static_cast<int64_t>(kept);
}

/* Room for so many in each array; own particles stay. */
void slabs_room(slabs_run *run, int64_t count)
{
    slabs_work *work = run->work;
    work->sorted.grow(count);
    if (count > work->all.room) {
        slabs_copy(work, work->sorted.data, work->all.data, run->own, cudaMemcpyDeviceToDevice);
        slabs_wait(work);
        std::swap(work->all, work->sorted);
        work->sorted.grow(count);
    }
    work->next.grow(count);
    work->place.grow(3 * count);
}

/* The map for kernels. */
slabs_map slabs_device_map(const slabs_run *run)
{
    slabs_work *work = run->work;
    slabs_map map = run->map;
    slabs_copy(work, work->border.data, run->border, map.ranks + 1, cudaMemcpyHostToDevice);
    map.border = work->border.data;
    return map;
}

/* A kernel that packs is run twice: to count, and, when all are told, to put copies into `out`. */
typedef void slabs_pack_kernel(slabs_map map, const slabs_particle *p, int64_t n, slabs_count *cursor, slabs_particle *out);

void slabs_pack(slabs_run *run, slabs_pack_kernel *kernel, const slabs_particle *p, int64_t n)
{
    slabs_work *work = run->work;
    slabs_map const map = slabs_device_map(run);
    slabs_count *counts = reinterpret_cast<slabs_count *>(run->mail.count), begin = 0;
    slabs_zero(work, work->cursor, map.ranks);
    slabs_launch(work, n, kernel, map, p, n, work->cursor.data, static_cast<slabs_particle *>(nullptr));
    slabs_copy(work, counts, work->cursor.data, map.ranks, cudaMemcpyDeviceToHost);
    slabs_wait(work);
    slabs_announce(run);
    work->out.grow(run->mail.out_total);
    for (int32_t r = 0; r < map.ranks; r++) { /* from counts to beginnings */
        slabs_count const count = counts[r];
        counts[r] = begin;
        begin += count;
    }
    slabs_copy(work, work->cursor.data, counts, map.ranks, cudaMemcpyHostToDevice);
    slabs_launch(work, n, kernel, map, p, n, work->cursor.data, work->out.data);
    slabs_wait(work);
}

/* What is in `out` goes its ways, and what comes is put behind the own particles. */
void slabs_exchange(slabs_run *run)
{
    slabs_work *work = run->work;
    slabs_room(run, run->own + run->mail.in_total);
    if (run->device) {
        slabs_deliver(run, work->out.data, work->all.data + run->own);
        return;
    }
    work->host_out.grow(run->mail.out_total);
    work->host_in.grow(run->mail.in_total);
    slabs_copy(work, work->host_out.data, work->out.data, run->mail.out_total, cudaMemcpyDeviceToHost);
    slabs_wait(work);
    slabs_deliver(run, work->host_out.data, work->host_in.data);
    slabs_copy(work, work->all.data + run->own, work->host_in.data, run->mail.in_total, cudaMemcpyHostToDevice);
    slabs_wait(work);
}

} // namespace

static slabs_work *slabs_work_new(const slabs_run *run)
{
    slabs_work *work = static_cast<slabs_work *>(slabs_memory(1, sizeof *work));
    slabs_cuda_must(cudaStreamCreateWithFlags(&work->stream, cudaStreamNonBlocking), "no GPU to run on");
    work->host_out.host = work->host_in.host = true;
    work->cursor.grow(run->map.ranks);
    work->counters.grow(SLABS_BINS);
    work->border.grow(run->map.ranks + 1);
    return work;
}

static void slabs_work_free(slabs_work *work)
{
    ugrid_cuda_free(&work->grid);
    slabs_wait(work);
    for (slabs_array<slabs_particle> *array : {&work->all, &work->sorted, &work->next, &work->out, &work->host_out, &work->host_in})
        array->release();
    work->place.release();
    work->cursor.release();
    work->counters.release();
    work->border.release();
    work->temp.release();
    slabs_cuda_must(cudaStreamDestroy(work->stream), "the stream");
    free(work);
}

/* ------------------------------------------------------------------------------------------------
   >>start, move, bins
   ------------------------------------------------------------------------------------------------ */

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
    slabs_launch(work, run->own, slabs_bins_kernel, run->map.edge, work->all.data, run->own, work->counters.data);
    slabs_copy(work, reinterpret_cast<slabs_count *>(bins), work->counters.data, SLABS_BINS, cudaMemcpyDeviceToHost);
    slabs_wait(work);
}

/* ------------------------------------------------------------------------------------------------
   >>migrate
   ------------------------------------------------------------------------------------------------ */

static void slabs_work_migrate(slabs_run *run)
{
    slabs_work *work = run->work;
    int32_t const from = run->border[run->map.self], to = run->border[run->map.self + 1];
    int64_t const leave = slabs_select(work, work->all.data, run->own, work->next.data, slabs_out{from, to});
    if (leave) {
        int64_t const stay = slabs_select(work, work->all.data, run->own, work->sorted.data, slabs_in{from, to});
        std::swap(work->all, work->sorted);
        run->own = stay;
    }
    slabs_pack(run, slabs_leave_kernel, work->next.data, leave);
    slabs_exchange(run);
    run->own += run->mail.in_total;
    run->migrated = slabs_sent(run);
}

/* ------------------------------------------------------------------------------------------------
   >>halo
   ------------------------------------------------------------------------------------------------ */

static void slabs_work_halo(slabs_run *run)
{
    slabs_pack(run, slabs_halo_kernel, run->work->all.data, run->own);
    slabs_exchange(run);
    run->ghosts = run->mail.in_total;
    run->copied = slabs_sent(run);
}

/* ------------------------------------------------------------------------------------------------
   >>grid and >>contacts
   ------------------------------------------------------------------------------------------------ */

static void slabs_work_grid(slabs_run *run)
{
    slabs_work *work = run->work;
    ugrid_desc const desc = slabs_desc(run);
    int64_t const n = run->own + run->ghosts;
    slabs_launch(work, n, slabs_place_kernel, work->all.data, n, run->border[run->map.self], work->place.data);
    slabs_must(ugrid_cuda_build(&work->grid, &desc, work->place.data, 0, slabs_int(n, "particles of a rank"), work->stream));
    if (n) slabs_must(ugrid_cuda_gather(&work->grid, work->all.data, sizeof(slabs_particle), work->sorted.data, work->stream));
    slabs_wait(work); /* only for the clock */
}

static void slabs_work_contacts(slabs_run *run)
{
    slabs_work *work = run->work;
    int64_t const n = run->own + run->ghosts;
    slabs_count contacts = 0;
    slabs_zero(work, work->counters, 1);
    slabs_launch(work, n, slabs_contacts_kernel, work->grid.device, run->model, static_cast<int32_t>(run->own), work->sorted.data,
                 work->next.data, work->counters.data);
    slabs_copy(work, &contacts, work->counters.data, 1, cudaMemcpyDeviceToHost);
    slabs_wait(work);
    run->contacts = static_cast<int64_t>(contacts);
    (void)slabs_select(work, work->next.data, n, work->all.data, slabs_own{});
}

/* ------------------------------------------------------------------------------------------------
   >>main
   ------------------------------------------------------------------------------------------------ */

static void slabs_work_fetch(slabs_run *run, slabs_particle *own)
{
    slabs_copy(run->work, own, run->work->all.data, run->own, cudaMemcpyDeviceToHost);
    slabs_wait(run->work);
}

/* Can MPI read the GPU's memory? */
static bool slabs_mpi_reads_gpu()
{
#if defined(MPIX_CUDA_AWARE_SUPPORT)
    return MPIX_Query_cuda_support() == 1;
#else
    return false;
#endif
}

/* Ranks of one machine take its GPUs in turn. */
static int32_t slabs_device(int32_t wanted)
{
    MPI_Comm machine;
    int rank, devices = 0;
    slabs_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine), "ranks of this machine");
    slabs_mpi(MPI_Comm_rank(machine, &rank), "the rank");
    slabs_mpi(MPI_Comm_free(&machine), "ranks of this machine");
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) slabs_leave(1, "no GPU to run on");
    slabs_cuda_must(cudaSetDevice(rank % devices), "choosing a GPU");
    return wanted >= 0 ? wanted : slabs_mpi_reads_gpu();
}

int main(int argc, char **argv) { return slabs_main(argc, argv, slabs_device); }
