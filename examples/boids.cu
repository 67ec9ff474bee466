/* boids.cu - the flock of boids.c on a GPU: the same command line, rules, start and picture, for a million birds.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: how a simulation walks through a grid on the GPU. A step is a build, two gathers that bring velocities and numbers
   into the grid's order, and one kernel in which each bird looks at those around it (ugrid_for_each), turns, and flies on. The sums
   are of whole numbers and no product is fused with a sum, so the flock is that of the serial program, bit for bit.

   How to run it:

       make cuda && build/cuda/boids --demo            (from the top of the repository), or
       nvcc -O3 -arch=native examples/boids.cu -o boids -lstb
       ./boids --boids 1000000 --steps 3000 --width 3840 --png flock.png

   --check also makes 5 more steps twice, here and with the serial code, and compares every bit; exit status 1 when they differ.

   What to look at: >>kernels and >>step below, 60 lines. */

#define UGRID_IMPLEMENTATION
#define UGRID_CUDA
#include "boids.c" /* without its main */

#include <cuda_runtime.h>
#include <utility>

namespace {

/* ------------------------------------------------------------------------------------------------
   >>kernels
   ------------------------------------------------------------------------------------------------ */

constexpr int boids_block = 128;

/* Device memory. */
struct boids_arrays {
    float *pos, *vel;       /* [2 n] */
    int32_t *id;            /* [n] the number a bird had at the start */
    float *new_pos, *seen;  /* where they will be; their velocities in the grid's order, as the others see them */
    int32_t *spare_id;
};

/* One thread per place. */
__global__ void __launch_bounds__(boids_block) boids_kernel(__grid_constant__ const ugrid_device device, boids_model model,
                                                            boids_arrays all)
{
    const ugrid *grid = &device.grid;
    int32_t const place = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
    if (place >= grid->n) return;
    float *vel = all.vel + 2 * static_cast<size_t>(place), *pos = all.new_pos + 2 * static_cast<size_t>(place);
    const float *seen = all.seen + 2 * static_cast<size_t>(place);
    float p[3], v[2] = {seen[0], seen[1]};
    boids_view view = {};
    ugrid_for_each(*grid, place, BOIDS_SIGHT, false, [&](const ugrid_contact &contact) {
        boids_see(&view, contact.d, contact.d2, all.seen + 2 * static_cast<size_t>(contact.place_j));
    });
    ugrid_point(grid, place, p);
    boids_steer(&model, &view, static_cast<uint32_t>(all.id[place]), p, v);
    boids_move(&model, v, p);
    for (int a = 0; a < 2; a++) {
        vel[a] = v[a];
        pos[a] = p[a];
    }
}

/* ------------------------------------------------------------------------------------------------
   >>device: memory and errors
   ------------------------------------------------------------------------------------------------ */

void boids_cuda_must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) boids_stop(1, "%s: %s", what, cudaGetErrorString(error));
}

template <class T> T *boids_device_array(size_t count)
{
    void *memory = nullptr;
    boids_cuda_must(cudaMalloc(&memory, count * sizeof(T)), "GPU memory");
    return static_cast<T *>(memory);
}

template <class T> void boids_copy(T *to, const T *from, size_t count, cudaMemcpyKind kind, cudaStream_t stream)
{
    boids_cuda_must(cudaMemcpyAsync(to, from, count * sizeof(T), kind, stream), "copying");
}

struct boids_gpu {
    boids_model model;
    ugrid_desc desc;
    ugrid_cuda grid;
    int32_t n;
    boids_arrays all;
    cudaStream_t stream;
};

/* A copy of the flock on the GPU. */
boids_gpu boids_gpu_new(const boids_flock *flock)
{
    size_t const n = static_cast<size_t>(flock->n);
    boids_gpu run = {};
    run.model = flock->model;
    run.desc = flock->desc;
    run.n = flock->n;
    boids_cuda_must(cudaStreamCreateWithFlags(&run.stream, cudaStreamNonBlocking), "no GPU to run on");
    run.all.pos = boids_device_array<float>(2 * n);
    run.all.vel = boids_device_array<float>(2 * n);
    run.all.id = boids_device_array<int32_t>(n);
    run.all.new_pos = boids_device_array<float>(2 * n);
    run.all.seen = boids_device_array<float>(2 * n);
    run.all.spare_id = boids_device_array<int32_t>(n);
    boids_copy(run.all.pos, flock->pos, 2 * n, cudaMemcpyHostToDevice, run.stream);
    boids_copy(run.all.vel, flock->vel, 2 * n, cudaMemcpyHostToDevice, run.stream);
    boids_copy(run.all.id, flock->id, n, cudaMemcpyHostToDevice, run.stream);
    boids_must(ugrid_cuda_reserve(&run.grid, &run.desc, run.n, run.stream));
    return run;
}

void boids_gpu_free(boids_gpu *run)
{
    ugrid_cuda_free(&run->grid);
    void *const memory[] = {run->all.pos, run->all.vel, run->all.id, run->all.new_pos, run->all.seen, run->all.spare_id};
    for (void *block : memory) boids_cuda_must(cudaFree(block), "freeing");
    boids_cuda_must(cudaStreamDestroy(run->stream), "the stream");
}

/* ------------------------------------------------------------------------------------------------
   >>step
   ------------------------------------------------------------------------------------------------ */

void boids_gpu_build(boids_gpu *run)
{
    boids_must(ugrid_cuda_build(&run->grid, &run->desc, run->all.pos, 0, run->n, run->stream));
    if (run->desc.method != UGRID_FIXED || ugrid_cuda_check(&run->grid, run->stream) != UGRID_CELL_FULL) return;
    run->desc.slots = run->grid.device.grid.needed_slots * 5 / 4 + 1; /* a cell was full */
    boids_must(ugrid_cuda_build(&run->grid, &run->desc, run->all.pos, 0, run->n, run->stream));
}

/* Puts one step into the stream. */
void boids_gpu_step(boids_gpu *run)
{
    boids_arrays *all = &run->all;
    cudaLaunchConfig_t config = {};
    boids_hunt(&run->model);
    boids_gpu_build(run);
    boids_must(ugrid_cuda_gather(&run->grid, all->vel, 2 * sizeof(float), all->seen, run->stream));
    boids_must(ugrid_cuda_gather(&run->grid, all->id, sizeof(int32_t), all->spare_id, run->stream));
    std::swap(all->id, all->spare_id);
    config.gridDim = dim3(static_cast<unsigned>((run->n + boids_block - 1) / boids_block));
    config.blockDim = dim3(boids_block);
    config.stream = run->stream;
    boids_cuda_must(cudaLaunchKernelEx(&config, boids_kernel, run->grid.device, run->model, *all), "starting a kernel");
    std::swap(all->pos, all->new_pos);
    run->model.step++;
}

/* The flock as it is now, with its neighbours. */
void boids_gpu_fetch(boids_gpu *run, boids_flock *flock)
{
    size_t const n = static_cast<size_t>(run->n);
    int64_t *d_pairs = boids_device_array<int64_t>(1), pairs = 0;
    boids_copy(flock->pos, run->all.pos, 2 * n, cudaMemcpyDeviceToHost, run->stream);
    boids_copy(flock->vel, run->all.vel, 2 * n, cudaMemcpyDeviceToHost, run->stream);
    boids_copy(flock->id, run->all.id, n, cudaMemcpyDeviceToHost, run->stream);
    boids_gpu_build(run);
    boids_must(ugrid_cuda_count_pairs(&run->grid, BOIDS_SIGHT, d_pairs, run->stream));
    boids_copy(&pairs, d_pairs, 1, cudaMemcpyDeviceToHost, run->stream);
    boids_must(ugrid_cuda_check(&run->grid, run->stream)); /* waits */
    boids_cuda_must(cudaFree(d_pairs), "freeing");
    flock->near = 2 * pairs;
    flock->model = run->model;
    flock->grid.desc = run->grid.device.grid.desc;
}

/* Five more steps here and there, from where the flock is now. Is every bit the same? */
bool boids_check(boids_gpu *run, boids_flock *flock)
{
    for (int k = 0; k < 5; k++) {
        boids_hunt(&flock->model);
        boids_must(boids_step(flock));
        boids_gpu_step(run);
    }
    uint64_t const expected = boids_figures_of(flock).digest;
    boids_gpu_fetch(run, flock);
    bool const agree = boids_figures_of(flock).digest == expected;
    printf("reference_agrees %d\n", agree);
    return agree;
}

} // namespace

int main(int, char **argv)
{
    boids_options const options = boids_parse(argv, 1000000);
    if (options.window) boids_stop(2, "--window: only boids.c has one");
    boids_flock flock = boids_begin(&options);
    boids_gpu run = boids_gpu_new(&flock);
    boids_cuda_must(cudaStreamSynchronize(run.stream), "the start");
    double const begun = boids_now();
    while (static_cast<int64_t>(run.model.step) < options.steps) boids_gpu_step(&run);
    boids_cuda_must(cudaStreamSynchronize(run.stream), "the steps");
    double const total = boids_now() - begun;
    boids_gpu_fetch(&run, &flock);
    boids_finish(&options, &flock, total, 0);
    bool const agree = !options.check || boids_check(&run, &flock);
    boids_gpu_free(&run);
    boids_free(&flock);
    return agree ? 0 : 1;
}
