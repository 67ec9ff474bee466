/* mpi_slabs_gpu.h - the arrays of mpi_slabs.cu, and the helpers that fill and select.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef MPI_SLABS_GPU_H
#define MPI_SLABS_GPU_H

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <cub/cub.cuh>
#include <utility>

#include "../common/gpu.h"

namespace {

typedef unsigned long long slabs_count; /* what atomicAdd knows */

__device__ int64_t slabs_thread()
{
    return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

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

__global__ void slabs_bins_kernel(int32_t edge, const slabs_particle *p, int64_t n,
                                  slabs_count *bins)
{
    int64_t const i = slabs_thread();
    if (i < n)
        atomicAdd(&bins[static_cast<int64_t>(p[i].x[0]) * SLABS_BINS / edge], slabs_count(1));
}

__global__ void slabs_place_kernel(const slabs_particle *p, int64_t n, int32_t from, float *place)
{
    int64_t const i = slabs_thread();
    if (i < n) slabs_place(&p[i], from, place + 3 * i);
}

/* What a selection keeps. */
struct slabs_in {
    int32_t from, to;
    __host__ __device__ bool operator()(const slabs_particle &p) const
    {
        return p.x[0] >= from && p.x[0] < to;
    }
};
struct slabs_out {
    int32_t from, to;
    __host__ __device__ bool operator()(const slabs_particle &p) const
    {
        return p.x[0] < from || p.x[0] >= to;
    }
};
struct slabs_own {
    __host__ __device__ bool operator()(const slabs_particle &p) const { return p.id >= 0; }
};

/* Memory that grows, and forgets what was in it. */
template <class T> struct slabs_array {
    T *data;
    int64_t room;
    bool host; /* pinned, so that copies are fast */

    void release()
    {
        if (data) gpu_must(host ? cudaFreeHost(data) : cudaFree(data), "freeing");
        data = nullptr;
    }
    void grow(int64_t count)
    {
        void *memory = nullptr;
        if (count <= room) return;
        release();
        room = count + count / 4;
        size_t const bytes = static_cast<size_t>(room) * sizeof(T);
        gpu_must(host ? cudaMallocHost(&memory, bytes) : cudaMalloc(&memory, bytes),
                 host ? "pinned memory" : "GPU memory");
        data = static_cast<T *>(memory);
    }
};

} // namespace

struct slabs_work {
    cudaStream_t stream;
    ugrid_cuda grid;
    slabs_array<slabs_particle> all;        /* own ones, then ghosts */
    /* the same in the order of the grid; and where particles are copied to */
    slabs_array<slabs_particle> sorted;
    /* what becomes of them, with gaps; and those that leave */
    slabs_array<slabs_particle> next;
    slabs_array<slabs_particle> out;        /* what is to be sent, in the order of the ranks */
    slabs_array<slabs_particle> host_out, host_in;
    slabs_array<float> place;               /* [3 room] what the grid is built of */
    slabs_array<slabs_count> cursor;        /* [ranks] */
    /* [SLABS_BINS] of a histogram; the first also of contacts and of selections */
    slabs_array<slabs_count> counters;
    slabs_array<int32_t> border;            /* [ranks + 1] */
    slabs_array<char> temp;                 /* for CUB */
};

namespace {

void slabs_wait(const slabs_work *work) { gpu_wait(work->stream); }

template <class T>
void slabs_copy(const slabs_work *work, T *to, const T *from, int64_t count, cudaMemcpyKind kind)
{
    if (count)
        gpu_must(
            cudaMemcpyAsync(to, from, static_cast<size_t>(count) * sizeof(T), kind, work->stream),
            "copying");
}

template <class T> void slabs_zero(const slabs_work *work, slabs_array<T> &array, int64_t count)
{
    gpu_must(cudaMemsetAsync(array.data, 0, static_cast<size_t>(count) * sizeof(T), work->stream),
             "clearing");
}

template <class... Parameters, class... Arguments>
void slabs_launch(const slabs_work *work, int64_t threads, void (*kernel)(Parameters...),
                  Arguments... arguments)
{
    if (threads > 0) gpu_launch(work->stream, threads, kernel, arguments...);
}

/* Copies those of n that `keep` says, in their order. How many they are comes back. */
template <class Keep>
int64_t slabs_select(slabs_work *work, const slabs_particle *from, int64_t n, slabs_particle *to,
                     Keep keep)
{
    size_t bytes = 0;
    slabs_count kept = 0;
    if (n == 0) return 0;
    gpu_must(
        cub::DeviceSelect::If(nullptr, bytes, from, to, work->counters.data, n, keep, work->stream),
        "selecting");
    work->temp.grow(static_cast<int64_t>(bytes));
    gpu_must(cub::DeviceSelect::If(work->temp.data, bytes, from, to, work->counters.data, n, keep,
                                   work->stream),
             "selecting");
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

/* A kernel that packs is run twice: to count, and, when all ranks are told, to put copies into
   `out`. */
typedef void slabs_pack_kernel(slabs_map map, const slabs_particle *p, int64_t n,
                               slabs_count *cursor, slabs_particle *out);

void slabs_pack(slabs_run *run, slabs_pack_kernel *kernel, const slabs_particle *p, int64_t n)
{
    slabs_work *work = run->work;
    slabs_map const map = slabs_device_map(run);
    slabs_count *counts = reinterpret_cast<slabs_count *>(run->mail.count), begin = 0;
    slabs_zero(work, work->cursor, map.ranks);
    slabs_launch(work, n, kernel, map, p, n, work->cursor.data,
                 static_cast<slabs_particle *>(nullptr));
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
    slabs_copy(work, work->host_out.data, work->out.data, run->mail.out_total,
               cudaMemcpyDeviceToHost);
    slabs_wait(work);
    slabs_deliver(run, work->host_out.data, work->host_in.data);
    slabs_copy(work, work->all.data + run->own, work->host_in.data, run->mail.in_total,
               cudaMemcpyHostToDevice);
    slabs_wait(work);
}

} // namespace

static slabs_work *slabs_work_new(const slabs_run *run)
{
    slabs_work *work = static_cast<slabs_work *>(zeros((size_t)1, sizeof *work));
    work->stream = gpu_stream();
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
    for (slabs_array<slabs_particle> *array :
         {&work->all, &work->sorted, &work->next, &work->out, &work->host_out, &work->host_in})
        array->release();
    work->place.release();
    work->cursor.release();
    work->counters.release();
    work->border.release();
    work->temp.release();
    gpu_must(cudaStreamDestroy(work->stream), "the stream");
    free(work);
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
    slabs_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine),
              "ranks of this machine");
    slabs_mpi(MPI_Comm_rank(machine, &rank), "the rank");
    slabs_mpi(MPI_Comm_free(&machine), "ranks of this machine");
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) stop(1, "no GPU to run on");
    gpu_must(cudaSetDevice(rank % devices), "choosing a GPU");
    return wanted >= 0 ? wanted : slabs_mpi_reads_gpu();
}

#endif /* MPI_SLABS_GPU_H */
