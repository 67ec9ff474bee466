/* fluid_gpu.h - what fluid.cu needs besides its kernels and steps: how threads share a row, device
   memory, times, the comparison with serial steps.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef FLUID_GPU_H
#define FLUID_GPU_H

#include "../common/gpu.h"

namespace {

/* ---- rows ---- */

constexpr int lanes = 8; /* of a row */

/* The share of one thread in a row: entries at, at + lanes, ... before end; none beyond the last
   particle. */
struct fluid_share {
    int32_t i, lane;
    int64_t at, end;
    const int32_t *partner;
};

__device__ fluid_share fluid_share_of(const nlist &list)
{
    const nlist_rows &rows = list.rows[list.d_current ? *list.d_current : list.current];
    int32_t const i = gpu_thread() / lanes, lane = gpu_thread() % lanes;
    if (i >= rows.n) return {-1, lane, 0, 0, nullptr};
    return {i, lane, rows.start[i] + lane, rows.start[i + 1], rows.partner};
}

/* The sum over the threads of a row, in each of them. */
__device__ float fluid_total(float x)
{
    for (int apart = lanes / 2; apart > 0; apart /= 2) x += __shfl_xor_sync(0xffffffffu, x, apart);
    return x;
}

__device__ float4 fluid_record(const float *records, int32_t i)
{
    return reinterpret_cast<const float4 *>(records)[i];
}

/* ---- memory ---- */

enum { LISTS = 1, DENSITIES, WALLS, FORCES, PARTS }; /* events at the end of each */

struct fluid_gpu {
    scene *host;                /* as the device was when it was last looked at */
    fluid_particles now, spare; /* device memory, as are kept and the next */
    fluid_kept *kept;
    int64_t room;
    ugrid_cuda grid;
    nlist_cuda list;
    cudaStream_t stream;
    gpu_events<PARTS> events;
};

fluid_particles fluid_particles_new(size_t n)
{
    fluid_particles p;
    p.pos = gpu_array<float>(4 * n);
    p.vel = gpu_array<float>(4 * n);
    p.density = gpu_array<float>(2 * n);
    p.id = gpu_array<int32_t>(n);
    return p;
}

void fluid_particles_free(fluid_particles *p)
{
    gpu_free(p->pos);
    gpu_free(p->vel);
    gpu_free(p->density);
    gpu_free(p->id);
}

/* The scene starts serially. */
void fluid_gpu_new(fluid_gpu *run, scene *host)
{
    size_t const n = static_cast<size_t>(host->n);
    begin(host);
    *run = fluid_gpu();
    run->host = host;
    run->stream = gpu_stream();
    run->events.create();
    run->now = fluid_particles_new(n);
    run->spare = fluid_particles_new(n);
    gpu_upload(run->now.pos, host->now.pos, 4 * n, run->stream);
    gpu_upload(run->now.vel, host->now.vel, 4 * n, run->stream);
    gpu_upload(run->now.density, host->now.density, 2 * n, run->stream);
    gpu_upload(run->now.id, host->now.id, n, run->stream);
    gpu_wait(run->stream);
}

void fluid_gpu_free(fluid_gpu *run)
{
    fluid_particles_free(&run->now);
    fluid_particles_free(&run->spare);
    gpu_free(run->kept);
    ugrid_cuda_free(&run->grid);
    nlist_cuda_free(&run->list);
    run->events.destroy();
    gpu_must(cudaStreamDestroy(run->stream), "the stream");
    scene_free(run->host);
}

void fluid_gather(fluid_gpu *run, const void *from, size_t bytes, void *to)
{
    MUST(ugrid, ugrid_cuda_gather(&run->grid, from, bytes, to, run->stream), "sorting");
}

/* Room to keep something for every entry that the list can hold. */
void fluid_make_room(fluid_gpu *run)
{
    const nlist *list = &run->list.device.list;
    int64_t const wanted = list->rows[0].capacity > list->rows[1].capacity
                               ? list->rows[0].capacity : list->rows[1].capacity;
    if (wanted <= run->room) return;
    gpu_free(run->kept);
    run->kept = gpu_array<fluid_kept>(static_cast<size_t>(wanted));
    run->room = wanted;
}

/* Copies the device's particles into run->host. */
void fluid_look(fluid_gpu *run)
{
    size_t const n = static_cast<size_t>(run->host->n);
    fluid_particles *to = &run->host->now;
    gpu_download(to->pos, run->now.pos, 4 * n, run->stream);
    gpu_download(to->vel, run->now.vel, 4 * n, run->stream);
    gpu_download(to->density, run->now.density, 2 * n, run->stream);
    gpu_download(to->id, run->now.id, n, run->stream);
    gpu_wait(run->stream);
}

int32_t fluid_moved(fluid_gpu *run)
{
    nlist_cuda_facts facts;
    if (!run->list.d_facts) return 1; /* no list yet */
    MUST(nlist, nlist_cuda_moved(&run->list, run->now.pos, FLUID_STRIDE, run->stream), "the skin");
    gpu_download(&facts, run->list.d_facts, 1, run->stream);
    gpu_wait(run->stream);
    return facts.moved;
}

/* ---- times ---- */

void fluid_count_time(fluid_gpu *run)
{
    gpu_wait(run->stream);
    for (int part = LISTS; part < PARTS; part++)
        run->host->spent[part - 1] += run->events.seconds(part - 1, part);
}

void fluid_launch_forces(fluid_gpu *run, const fluid_kept *kept, int32_t moves);

double fluid_forces_time(fluid_gpu *run, const fluid_kept *kept)
{
    run->events.record(0, run->stream);
    fluid_launch_forces(run, kept, 0);
    run->events.record(1, run->stream);
    gpu_wait(run->stream);
    return 1e3 * run->events.seconds(0, 1);
}

/* Medians; the two take turns. */
void fluid_time_forces(fluid_gpu *run)
{
    constexpr int rounds = 21;
    double kept[rounds], again[rounds];
    for (int k = 0; k < rounds; k++) {
        kept[k] = fluid_forces_time(run, run->kept);
        again[k] = fluid_forces_time(run, nullptr);
    }
    printf("forces: %.4f ms with kept gradients, %.4f ms computed again; entries %lld\n",
           median(kept, rounds), median(again, rounds),
           static_cast<long long>(run->list.device.list.total));
}

/* ---- check ---- */

/* The largest distance between particles of one number, in spacings. */
double fluid_distance(const scene *a, const scene *b)
{
    size_t const n = static_cast<size_t>(a->n);
    float *of_a = static_cast<float *>(zeros(3 * n, sizeof(float)));
    float *of_b = static_cast<float *>(zeros(3 * n, sizeof(float)));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 3; k++) {
            of_a[3 * static_cast<size_t>(a->now.id[i]) + k] = a->now.pos[4 * i + k];
            of_b[3 * static_cast<size_t>(b->now.id[i]) + k] = b->now.pos[4 * i + k];
        }
    double const apart = largest_difference(of_a, of_b, 3 * n) / a->spacing;
    free(of_a);
    free(of_b);
    return apart;
}

/* The same steps from the start, serially. Sums in another order differ in the last digit, and
   collisions make that grow: a check is for short runs. */
bool fluid_check(const fluid_gpu *run)
{
    constexpr double tolerance = 1e-2;
    scene *serial = scene_new(run->host->options);
    begin(serial);
    while (serial->step < run->host->step) step(serial);
    double const apart = fluid_distance(run->host, serial);
    printf("check: places differ by %.2e spacings\n", apart);
    scene_free(serial);
    return apart < tolerance;
}

} // namespace

#endif /* FLUID_GPU_H */
