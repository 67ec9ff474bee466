/* boids.cu - the flock of boids.c on a GPU: the same command line, rules, start and picture, for a
   million birds.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: how a simulation walks through a grid on the GPU. A step is a build, two gathers
   that bring velocities and numbers into the grid's order, and one kernel in which each bird looks
   at those around it (ugrid_for_each), turns, and flies on. The sums are of whole numbers and no
   product is fused with a sum, so the flock is that of the serial program, bit for bit.

   How to run it:

       make cuda && build/cuda/boids --demo            (from the top of the repository), or
       nvcc -O3 -arch=native examples/boids/boids.cu -o boids -lstb
       ./boids --boids 1000000 --steps 3000 --width 3840 --png flock.png

   --check also makes 5 more steps twice, here and with the serial code, and compares every bit;
   exit status 1 when they differ.

   What to look at: >>kernels and >>step below, 60 lines. */

#define UGRID_IMPLEMENTATION
#define UGRID_CUDA
#include "boids.c" /* without its main */

#include "../common/gpu.h"

#include <utility>

namespace {

/* -------------------------------------------------------------------------------------------------
   >>kernels
   ---------------------------------------------------------------------------------------------- */

/* Device memory. */
struct boids_arrays {
    float *pos, *vel;       /* [2 n] */
    int32_t *id;            /* [n] the number a bird had at the start */
    /* where they will be; their velocities in the grid's order, as the others see them */
    float *new_pos, *seen;
    int32_t *spare_id;
};

/* One thread per place. */
__global__ void __launch_bounds__(gpu_block)
    boids_kernel(__grid_constant__ const ugrid_device device, boids_model model, boids_arrays all)
{
    const ugrid *grid = &device.grid;
    int32_t const place = gpu_thread();
    if (place >= grid->n) return;
    float *vel = all.vel + 2 * static_cast<size_t>(place),
          *pos = all.new_pos + 2 * static_cast<size_t>(place);
    const float *seen = all.seen + 2 * static_cast<size_t>(place);
    float p[3], v[2] = {seen[0], seen[1]};
    boids_view view = {};
    ugrid_for_each(*grid, place, BOIDS_SIGHT, false, [&](const ugrid_contact &contact) {
        boids_see(&view, contact.d, contact.d2,
                  all.seen + 2 * static_cast<size_t>(contact.place_j));
    });
    ugrid_point(grid, place, p);
    boids_steer(&model, &view, static_cast<uint32_t>(all.id[place]), p, v);
    boids_move(&model, v, p);
    for (int a = 0; a < 2; a++) {
        vel[a] = v[a];
        pos[a] = p[a];
    }
}

/* -------------------------------------------------------------------------------------------------
   >>device: memory
   ---------------------------------------------------------------------------------------------- */

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
    run.stream = gpu_stream();
    run.all.pos = gpu_array<float>(2 * n);
    run.all.vel = gpu_array<float>(2 * n);
    run.all.id = gpu_array<int32_t>(n);
    run.all.new_pos = gpu_array<float>(2 * n);
    run.all.seen = gpu_array<float>(2 * n);
    run.all.spare_id = gpu_array<int32_t>(n);
    gpu_upload(run.all.pos, flock->pos, 2 * n, run.stream);
    gpu_upload(run.all.vel, flock->vel, 2 * n, run.stream);
    gpu_upload(run.all.id, flock->id, n, run.stream);
    boids_must(ugrid_cuda_reserve(&run.grid, &run.desc, run.n, run.stream));
    return run;
}

void boids_gpu_free(boids_gpu *run)
{
    ugrid_cuda_free(&run->grid);
    void *const memory[] = {run->all.pos,     run->all.vel,  run->all.id,
                            run->all.new_pos, run->all.seen, run->all.spare_id};
    for (void *block : memory) gpu_free(block);
    gpu_must(cudaStreamDestroy(run->stream), "the stream");
}

/* -------------------------------------------------------------------------------------------------
   >>step
   ---------------------------------------------------------------------------------------------- */

void boids_gpu_build(boids_gpu *run)
{
    boids_must(ugrid_cuda_build(&run->grid, &run->desc, run->all.pos, 0, run->n, run->stream));
    if (run->desc.method != UGRID_FIXED ||
        ugrid_cuda_check(&run->grid, run->stream) != UGRID_CELL_FULL)
        return;
    run->desc.slots = run->grid.device.grid.needed_slots * 5 / 4 + 1; /* a cell was full */
    boids_must(ugrid_cuda_build(&run->grid, &run->desc, run->all.pos, 0, run->n, run->stream));
}

/* Puts one step into the stream. */
void boids_gpu_step(boids_gpu *run)
{
    boids_arrays *all = &run->all;
    boids_hunt(&run->model);
    boids_gpu_build(run);
    boids_must(ugrid_cuda_gather(&run->grid, all->vel, 2 * sizeof(float), all->seen, run->stream));
    boids_must(ugrid_cuda_gather(&run->grid, all->id, sizeof(int32_t), all->spare_id, run->stream));
    std::swap(all->id, all->spare_id);
    gpu_launch(run->stream, run->n, boids_kernel, run->grid.device, run->model, *all);
    std::swap(all->pos, all->new_pos);
    run->model.step++;
}

/* The flock as it is now, with its neighbours. */
void boids_gpu_fetch(boids_gpu *run, boids_flock *flock)
{
    size_t const n = static_cast<size_t>(run->n);
    int64_t *d_pairs = gpu_array<int64_t>(1), pairs = 0;
    gpu_download(flock->pos, run->all.pos, 2 * n, run->stream);
    gpu_download(flock->vel, run->all.vel, 2 * n, run->stream);
    gpu_download(flock->id, run->all.id, n, run->stream);
    boids_gpu_build(run);
    boids_must(ugrid_cuda_count_pairs(&run->grid, BOIDS_SIGHT, d_pairs, run->stream));
    gpu_download(&pairs, d_pairs, 1, run->stream);
    boids_must(ugrid_cuda_check(&run->grid, run->stream)); /* waits */
    gpu_free(d_pairs);
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

int main(int argc, char **argv)
{
    boids_options const options = boids_parse(argc, argv, 1000000);
    if (options.window) stop(2, "--window: only boids.c has one");
    boids_flock flock = boids_begin(&options);
    boids_gpu run = boids_gpu_new(&flock);
    gpu_wait(run.stream);
    double const begun = seconds_now();
    while (static_cast<int64_t>(run.model.step) < options.steps) boids_gpu_step(&run);
    gpu_wait(run.stream);
    double const total = seconds_now() - begun;
    boids_gpu_fetch(&run, &flock);
    boids_finish(&options, &flock, total, 0);
    bool const agree = !options.check || boids_check(&run, &flock);
    boids_gpu_free(&run);
    boids_free(&flock);
    return agree ? 0 : 1;
}
