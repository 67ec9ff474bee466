/* dam_break_gpu.h - what dam_break.cu needs besides kernels and steps: device memory, times, the
   check against dam_break.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef DAM_BREAK_GPU_H
#define DAM_BREAK_GPU_H

#include "../common/gpu.h"

namespace {

/* As dam_serial: a particle has an index, where d_pos, d_vel and d_id have it, and in each grid
   a place; with reorder these are the same. */
struct dam_particles {
    float *pos, *vel;       /* [3 * n] by index */
    int32_t *id;            /* [n] by index: the number in the start state */
    /* with reorder: [3 * n] by place, where the build brought them; else vel itself */
    float *moved_vel;
    int32_t *moved_id;
    float *force;           /* [3 * n] by place */
    int32_t reorder;
};

/* Points in time on the GPU, around the three parts of a step. */
enum { DAM_START, DAM_BUILT, DAM_PUSHED, DAM_MOVED, DAM_BEGIN, DAM_END, DAM_EVENTS };

struct dam_gpu {
    dam_model model;
    ugrid_desc desc;
    ugrid_cuda grid;
    int32_t n;
    cudaStream_t stream;
    cudaGraphExec_t graph;  /* one step; null until it is captured */
    dam_particles all;
    ugrid_cuda_facts *d_worst;
    gpu_events<DAM_EVENTS> events;
    dam_times spent;        /* seconds: the parts of `sampled` steps, and all of `steps` */
    int64_t sampled, steps;
    int32_t *host_id;       /* for dam_gpu_fetch */
    dam_state host;
    /* --insertion: positions before a sampled step, and before the slowest of them; its seconds */
    float *before, *slowest;
    double slowest_step;
};

dam_particles dam_gpu_particles(size_t n, int32_t reorder)
{
    dam_particles all = {};
    all.pos = gpu_array<float>(3 * n);
    all.vel = gpu_array<float>(3 * n);
    all.force = gpu_array<float>(3 * n);
    all.id = gpu_array<int32_t>(n);
    all.moved_vel = reorder ? gpu_array<float>(3 * n) : all.vel;
    all.moved_id = reorder ? gpu_array<int32_t>(n) : all.id;
    all.reorder = reorder;
    return all;
}

/* Puts a state, in its own order, onto the GPU. */
void dam_gpu_set(dam_gpu *run, const dam_state *state)
{
    size_t const n = static_cast<size_t>(run->n);
    for (int32_t i = 0; i < run->n; i++) run->host_id[i] = i;
    gpu_upload(run->all.pos, state->pos, 3 * n, run->stream);
    gpu_upload(run->all.vel, state->vel, 3 * n, run->stream);
    gpu_upload(run->all.id, run->host_id, n, run->stream);
    gpu_wait(run->stream);
}

dam_gpu dam_gpu_new(const dam_options *o, const dam_model *model, const dam_state *start)
{
    dam_gpu run = {};
    run.model = *model;
    run.desc = dam_grid_desc(o, start->n);
    run.n = start->n;
    run.stream = gpu_stream();
    run.events.create();
    run.all = dam_gpu_particles(static_cast<size_t>(run.n), o->reorder);
    run.d_worst = gpu_array<ugrid_cuda_facts>(1);
    gpu_must(cudaMemsetAsync(run.d_worst, 0, sizeof *run.d_worst, run.stream), "clearing");
    run.host = dam_state_new(run.n);
    run.host_id = static_cast<int32_t *>(zeros(static_cast<size_t>(run.n), sizeof(int32_t)));
    MUST(ugrid, ugrid_cuda_reserve(&run.grid, &run.desc, run.n, run.stream), "memory for the grid");
    dam_gpu_set(&run, start);
    if (o->insertion) {
        run.before = gpu_array<float>(3 * static_cast<size_t>(run.n));
        run.slowest = gpu_array<float>(3 * static_cast<size_t>(run.n));
    }
    return run;
}

void dam_gpu_free(dam_gpu *run)
{
    ugrid_cuda_free(&run->grid);
    if (run->graph) gpu_must(cudaGraphExecDestroy(run->graph), "the graph");
    if (run->all.reorder) {
        gpu_free(run->all.moved_vel);
        gpu_free(run->all.moved_id);
    }
    void *const memory[] = {run->all.pos, run->all.vel, run->all.force, run->all.id, run->d_worst};
    for (void *block : memory) gpu_free(block);
    if (run->before) {
        gpu_free(run->before);
        gpu_free(run->slowest);
    }
    run->events.destroy();
    gpu_must(cudaStreamDestroy(run->stream), "the stream");
    dam_state_free(&run->host);
    free(run->host_id);
}

void dam_gpu_step(dam_gpu *run, bool timed);

/* -------------------------------------------------------------------------------------------------
   >>engine: what dam_run in dam_break_run.h calls
   ---------------------------------------------------------------------------------------------- */

/* Did a step since the last look lose a particle? Then the run is worth nothing. */
void dam_gpu_inspect(dam_gpu *run)
{
    ugrid_cuda_facts worst = {};
    gpu_download(&worst, run->d_worst, 1, run->stream);
    gpu_wait(run->stream);
    if (worst.first_bad)
        stop(1,
             "the run became unstable: a position is no longer finite (a smaller --dt may help)");
    if (run->desc.method == UGRID_FIXED && worst.needed_slots > run->desc.slots)
        stop(1, "a cell held %ld entries and has room for %ld: run again with --slots %ld",
             static_cast<long>(worst.needed_slots), static_cast<long>(run->desc.slots),
             static_cast<long>(worst.needed_slots + worst.needed_slots / 2));
}

/* Copies positions on the GPU. */
void dam_gpu_copy(dam_gpu *run, float *to, const float *from)
{
    gpu_must(cudaMemcpyAsync(to, from, 3 * static_cast<size_t>(run->n) * sizeof(float),
                             cudaMemcpyDeviceToDevice, run->stream),
             "copying positions");
}

/* Was the sampled step the slowest so far? Its positions are kept. */
void dam_gpu_keep_slowest(dam_gpu *run)
{
    double const step = run->events.seconds(DAM_START, DAM_MOVED);
    if (!run->before || step <= run->slowest_step) return;
    run->slowest_step = step;
    dam_gpu_copy(run, run->slowest, run->before);
}

/* Seconds of a build from the positions of the slowest step (000, Figure 3), the least of some
   averages of 10. */
double dam_gpu_insertion(dam_gpu *run)
{
    double least = 1e30;
    cudaGraphExec_t const builds = gpu_capture(run->stream, [run] {
        for (int k = 0; k < 10; k++)
            MUST(ugrid,
                 ugrid_cuda_build(&run->grid, &run->desc, run->slowest, 0, run->n, run->stream),
                 "building the grid");
    });
    for (int k = 0; k < 10; k++) {
        run->events.record(DAM_BEGIN, run->stream);
        gpu_must(cudaGraphLaunch(builds, run->stream), "building");
        run->events.record(DAM_END, run->stream);
        gpu_wait(run->stream);
        double const seconds = run->events.seconds(DAM_BEGIN, DAM_END) / 10;
        least = seconds < least ? seconds : least;
    }
    gpu_must(cudaGraphExecDestroy(builds), "the graph");
    return least;
}

/* The first of these steps goes kernel by kernel, with an event after each part; the others
   replay the graph. */
void dam_gpu_advance(void *user, int32_t steps)
{
    dam_gpu *run = static_cast<dam_gpu *>(user);
    if (!run->graph) run->graph = gpu_capture(run->stream, [run] { dam_gpu_step(run, false); });
    if (run->before) dam_gpu_copy(run, run->before, run->all.pos);
    run->events.record(DAM_BEGIN, run->stream);
    dam_gpu_step(run, true);
    for (int32_t k = 1; k < steps; k++)
        gpu_must(cudaGraphLaunch(run->graph, run->stream), "starting a step");
    run->events.record(DAM_END, run->stream);
    dam_gpu_inspect(run);
    if (steps > 1) dam_gpu_keep_slowest(run);
    run->spent.build += run->events.seconds(DAM_START, DAM_BUILT);
    run->spent.forces += run->events.seconds(DAM_BUILT, DAM_PUSHED);
    run->spent.integration += run->events.seconds(DAM_PUSHED, DAM_MOVED);
    run->spent.step += run->events.seconds(DAM_BEGIN, DAM_END);
    run->sampled++;
    run->steps += steps;
}

void dam_gpu_fetch(void *user, dam_state *state)
{
    dam_gpu *run = static_cast<dam_gpu *>(user);
    size_t const n = static_cast<size_t>(run->n);
    gpu_download(run->host.pos, run->all.pos, 3 * n, run->stream);
    gpu_download(run->host.vel, run->all.vel, 3 * n, run->stream);
    gpu_download(run->host_id, run->all.id, n, run->stream);
    gpu_wait(run->stream);
    for (size_t i = 0; i < n; i++) {
        size_t const id = static_cast<size_t>(run->host_id[i]);
        memcpy(state->pos + 3 * id, run->host.pos + 3 * i, 3 * sizeof(float));
        memcpy(state->vel + 3 * id, run->host.vel + 3 * i, 3 * sizeof(float));
    }
}

dam_times dam_gpu_times(void *user)
{
    const dam_gpu *run = static_cast<const dam_gpu *>(user);
    return dam_average(&run->spent, run->sampled, run->steps);
}

/* -------------------------------------------------------------------------------------------------
   >>check: the same few steps here and there, from the end of the run, where spheres touch
   ---------------------------------------------------------------------------------------------- */

/* The GPU fuses multiplications with additions and, without desc.deterministic, meets the
   particles of a cell in another order. One step rounds positions up to 64 to 4e-6; 5 steps of
   touching spheres stay far below: */
constexpr int dam_check_steps = 5;
constexpr double dam_check_tolerance = 1e-4;

/* Both go on from `state`. Returns whether they agree. */
bool dam_check(const dam_options *o, const dam_model *model, const dam_state *state, dam_gpu *run)
{
    size_t const numbers = 3 * static_cast<size_t>(state->n);
    dam_serial serial = dam_serial_new(o, model, state);
    dam_state expected = dam_state_new(state->n), found = dam_state_new(state->n);
    dam_gpu_set(run, state);
    dam_serial_advance(&serial, dam_check_steps);
    dam_gpu_advance(run, dam_check_steps);
    dam_serial_fetch(&serial, &expected);
    dam_gpu_fetch(run, &found);
    double const moved = largest_difference(state->pos, expected.pos, numbers);
    double const position = largest_difference(expected.pos, found.pos, numbers);
    double const velocity = largest_difference(expected.vel, found.vel, numbers);
    bool const agree = position <= dam_check_tolerance && velocity <= dam_check_tolerance;
    printf("reference_steps %d\nreference_moved %.3e\n", dam_check_steps, moved);
    printf("reference_position_difference %.3e\nreference_velocity_difference %.3e\n", position,
           velocity);
    printf("reference_tolerance %.3e\nreference_agrees %d\n", dam_check_tolerance, agree);
    dam_state_free(&expected);
    dam_state_free(&found);
    dam_serial_free(&serial);
    return agree;
}

} // namespace

#endif /* DAM_BREAK_GPU_H */
