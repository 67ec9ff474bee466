/* collisions_gpu.h - the memory of collisions.cu, its comparison with serial steps, and its times.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef COLLISIONS_GPU_H
#define COLLISIONS_GPU_H

/* Included by collisions.cu in its namespace. */

static mpc_gpu mpc_gpu_new(scene *s)
{
    size_t const dim = static_cast<size_t>(s->model.dim), n = static_cast<size_t>(s->n),
                 cells = static_cast<size_t>(s->cells);
    mpc_gpu run = {};
    run.host = s;
    run.model = s->model;
    run.stream = gpu_stream();
    run.all.x = gpu_array<float>(dim * n);
    run.all.v = gpu_array<float>((dim + 1) * n);
    run.all.spare_x = gpu_array<float>(dim * n);
    run.all.spare_v = gpu_array<float>((dim + 1) * n);
    run.all.sums = gpu_array<float>((dim + 1) * cells);
    run.all.turn = gpu_array<mpc_turn>(cells);
    gpu_upload(run.all.x, s->x, dim * n, run.stream);
    gpu_upload(run.all.v, s->v, (dim + 1) * n, run.stream);
    return run;
}

static void mpc_gpu_free(mpc_gpu *run)
{
    ugrid_cuda_free(&run->grid);
    void *const memory[] = {run->all.x,       run->all.v,    run->all.spare_x,
                            run->all.spare_v, run->all.sums, run->all.turn};
    for (void *block : memory) gpu_free(block);
    gpu_must(cudaStreamDestroy(run->stream), "the stream");
}

/* The scene becomes what is on the GPU. */
static void mpc_fetch(mpc_gpu *run)
{
    scene *s = run->host;
    size_t const dim = static_cast<size_t>(s->model.dim), n = static_cast<size_t>(s->n);
    gpu_download(s->x, run->all.x, dim * n, run->stream);
    gpu_download(s->v, run->all.v, (dim + 1) * n, run->stream);
    gpu_download(s->sums, run->all.sums, (dim + 1) * static_cast<size_t>(s->cells), run->stream);
    gpu_wait(run->stream);
    s->model.step = run->model.step;
}

static void advance_gpu(void *user, int64_t steps)
{
    mpc_gpu *run = static_cast<mpc_gpu *>(user);
    while (steps-- > 0) mpc_step(run, run->host->options->sums, run->host->options->order);
    mpc_fetch(run);
}

/* In each way a step here and with the serial code, from the same state. Atomics add in any order,
   so velocities agree to rounding, and positions in every bit. */
static bool check_steps(mpc_gpu *run)
{
    scene *s = run->host;
    size_t const dim = static_cast<size_t>(s->model.dim), n = static_cast<size_t>(s->n);
    bool agree = true;
    for (int way = 0; way < SUM_WAYS; way++) {
        mpc_fetch(run);
        stream(s);
        prepare_sums(s, way);
        sum_cells(s, way);
        collide(s);
        mpc_step(run, way, 0);
        gpu_download(s->spare_x, run->all.x, dim * n, run->stream);
        gpu_download(s->spare_v, run->all.v, (dim + 1) * n, run->stream);
        gpu_wait(run->stream);
        double const far = largest_difference(s->x, s->spare_x, dim * n),
                     off = largest_difference(s->v, s->spare_v, (dim + 1) * n);
        printf("check %s positions %.3e velocities %.3e\n", sum_names[way].name, far, off);
        agree = agree && far == 0 && off < 1e-4;
    }
    printf("reference_agrees %d\n", agree);
    return agree;
}

/* Milliseconds by events; the ways take turns. */
static void time_round(mpc_gpu *run, const char *order)
{
    double prepare[SUM_WAYS][ROUNDS], sum[SUM_WAYS][ROUNDS];
    gpu_events<3> at;
    at.create();
    for (int k = 0; k < ROUNDS; k++)
        for (int way = 0; way < SUM_WAYS; way++) {
            at.record(0, run->stream);
            mpc_prepare_sums(run, way);
            at.record(1, run->stream);
            mpc_sum_cells(run, way);
            at.record(2, run->stream);
            gpu_wait(run->stream);
            prepare[way][k] = at.seconds(0, 1);
            sum[way][k] = at.seconds(1, 2);
        }
    at.destroy();
    for (int way = 0; way < SUM_WAYS; way++)
        print_rates(run->host, order, way, prepare[way], sum[way]);
}

static void time_sums(mpc_gpu *run)
{
    time_round(run, "as they lie");
    mpc_order(run);
    time_round(run, "cell order");
}

#endif /* COLLISIONS_GPU_H */
