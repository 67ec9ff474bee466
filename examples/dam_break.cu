/* dam_break.cu - the dam break of dam_break.c on a GPU: the same command line, physics and pictures.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: how a simulation uses the CUDA part of ugrid.h. A time step is the three loops of dam_break.c, where each
   thread takes one turn of a loop; what a turn does (the walk around a particle, dam_contact, dam_move) is the same
   text. Steps allocate nothing, wait for nothing and read nothing back, so one step is captured as a CUDA graph, and then replayed.

   How to run it:

       make cuda && build/cuda/dam_break --demo        (from the top of the repository), or
       nvcc -O3 -arch=native examples/dam_break.cu -o dam_break -lstb
       ./dam_break -n 1000000 --method packed --frames 100 --sheet --out pictures

   --check also makes 5 more steps twice, here and with the serial code of dam_break.c, and compares; exit status 1 when they differ.

   What to look at: >>kernels and >>step below. */

#define UGRID_IMPLEMENTATION
#define UGRID_CUDA
#include "dam_break.c" /* without its main: the serial steps, to compare with */

#include <cuda_runtime.h>

namespace {

/* ------------------------------------------------------------------------------------------------
   >>kernels: one thread per place
   ------------------------------------------------------------------------------------------------ */

constexpr int dam_block = 128;

/* As dam_serial: a particle has an index, where d_pos, d_vel and d_id have it, and in each grid a place; with reorder these are the same. */
struct dam_particles {
    float *pos, *vel;       /* [3 * n] by index */
    int32_t *id;            /* [n] by index: the number in the start state */
    float *moved_vel;       /* with reorder: [3 * n] by place, where the build brought them; else vel itself */
    int32_t *moved_id;
    float *force;           /* [3 * n] by place */
    int32_t reorder;
};

__device__ int32_t dam_thread() { return static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x); }

__device__ int32_t dam_index_of(const ugrid *grid, const dam_particles *all, int32_t place) { return all->reorder ? place : ugrid_id(grid, place); }

/* The force on one sphere by the one at `place`, if they touch. */
__device__ void dam_meet(const dam_model *model, const ugrid *grid, const dam_particles *all, dam_one *one, const float q[3], int32_t place)
{
    float d[3], f[3];
    float const d2 = dam_between(one->p, q, d);
    if (d2 >= DAM_DIAMETER * DAM_DIAMETER) return;
    dam_contact(model, d, d2, one->v, all->moved_vel + 3 * static_cast<size_t>(dam_index_of(grid, all, place)), f);
    for (int a = 0; a < 3; a++) one->force[a] += f[a];
}

/* Ranges where the grid has them: records that lie side by side. Else one near particle after another. */
__global__ void __launch_bounds__(dam_block) dam_forces_kernel(__grid_constant__ const ugrid_device device, dam_model model, dam_particles all)
{
    const ugrid *grid = &device.grid;
    int32_t const place = dam_thread();
    if (place >= grid->n) return;
    dam_one one = {};
    const float *v = all.moved_vel + 3 * static_cast<size_t>(dam_index_of(grid, &all, place));
    ugrid_point(grid, place, one.p);
    for (int a = 0; a < 3; a++) one.v[a] = v[a];
    ugrid_near near = ugrid_near_place(grid, place, DAM_DIAMETER);
    if (ugrid_has_ranges(grid)) {
        while (ugrid_next_range(&near))
            for (int32_t k = near.begin; k < near.end; k++) {
                ugrid_record const record = grid->record[k];
                if (k != place) dam_meet(&model, grid, &all, &one, record.x, k);
            }
    } else {
        while (ugrid_next(&near)) {
            float q[3];
            ugrid_point(grid, near.place, q);
            dam_meet(&model, grid, &all, &one, q, near.place);
        }
    }
    for (int a = 0; a < 3; a++) all.force[3 * static_cast<size_t>(place) + a] = one.force[a];
}

/* The first thread also keeps the worst facts of all steps, for the host to look at once in a while. */
__global__ void __launch_bounds__(dam_block) dam_integrate_kernel(__grid_constant__ const ugrid_device device, dam_model model, dam_particles all,
                                                                  const ugrid_cuda_facts *facts, ugrid_cuda_facts *worst)
{
    const ugrid *grid = &device.grid;
    int32_t const place = dam_thread();
    if (place == 0) {
        if (facts->first_bad > worst->first_bad) worst->first_bad = facts->first_bad;
        if (facts->needed_slots > worst->needed_slots) worst->needed_slots = facts->needed_slots;
    }
    if (place >= grid->n) return;
    int32_t const index = dam_index_of(grid, &all, place);
    float p[3], v[3], force[3];
    ugrid_point(grid, place, p);
    for (int a = 0; a < 3; a++) {
        v[a] = all.moved_vel[3 * static_cast<size_t>(index) + a];
        force[a] = all.force[3 * static_cast<size_t>(place) + a];
    }
    dam_move(&model, force, p, v);
    for (int a = 0; a < 3; a++) {
        all.pos[3 * static_cast<size_t>(index) + a] = p[a];
        all.vel[3 * static_cast<size_t>(index) + a] = v[a];
    }
    if (all.reorder) all.id[index] = all.moved_id[index];
}

/* ------------------------------------------------------------------------------------------------
   >>device: memory and errors
   ------------------------------------------------------------------------------------------------ */

void dam_cuda_must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) dam_stop(1, "%s: %s", what, cudaGetErrorString(error));
}

/* The one place where kernels are launched: the compiler checks the types of the arguments. */
template <class... Parameters, class... Arguments>
void dam_launch(cudaStream_t stream, int64_t threads, void (*kernel)(Parameters...), Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>((threads + dam_block - 1) / dam_block));
    config.blockDim = dim3(dam_block);
    config.stream = stream;
    dam_cuda_must(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), "starting a kernel");
}

template <class T> T *dam_device_array(size_t count)
{
    void *memory = nullptr;
    dam_cuda_must(cudaMalloc(&memory, (count ? count : 1) * sizeof(T)), "GPU memory");
    return static_cast<T *>(memory);
}

template <class T> void dam_copy(T *to, const T *from, size_t count, cudaMemcpyKind kind, cudaStream_t stream)
{
    dam_cuda_must(cudaMemcpyAsync(to, from, count * sizeof(T), kind, stream), "copying");
}

/* Points in time on the GPU, around the three parts of a step. */
enum { DAM_START, DAM_BUILT, DAM_PUSHED, DAM_MOVED, DAM_EVENTS };

struct dam_gpu {
    dam_model model;
    ugrid_desc desc;
    ugrid_cuda grid;
    int32_t n;
    cudaStream_t stream;
    cudaGraphExec_t graph;  /* one step; null until it is captured */
    dam_particles all;
    ugrid_cuda_facts *d_worst;
    cudaEvent_t event[DAM_EVENTS], begin, end;
    dam_times spent;        /* seconds: the parts of `sampled` steps, and all of `steps` */
    int64_t sampled, steps;
    int32_t *host_id;       /* for dam_gpu_fetch */
    dam_state host;
};

dam_particles dam_gpu_particles(size_t n, int32_t reorder)
{
    dam_particles all = {};
    all.pos = dam_device_array<float>(3 * n);
    all.vel = dam_device_array<float>(3 * n);
    all.force = dam_device_array<float>(3 * n);
    all.id = dam_device_array<int32_t>(n);
    all.moved_vel = reorder ? dam_device_array<float>(3 * n) : all.vel;
    all.moved_id = reorder ? dam_device_array<int32_t>(n) : all.id;
    all.reorder = reorder;
    return all;
}

/* Puts a state, in its own order, onto the GPU. */
void dam_gpu_set(dam_gpu *run, const dam_state *state)
{
    size_t const n = static_cast<size_t>(run->n);
    for (int32_t i = 0; i < run->n; i++) run->host_id[i] = i;
    dam_copy(run->all.pos, state->pos, 3 * n, cudaMemcpyHostToDevice, run->stream);
    dam_copy(run->all.vel, state->vel, 3 * n, cudaMemcpyHostToDevice, run->stream);
    dam_copy(run->all.id, run->host_id, n, cudaMemcpyHostToDevice, run->stream);
    dam_cuda_must(cudaStreamSynchronize(run->stream), "copying the start state");
}

dam_gpu dam_gpu_new(const dam_options *o, const dam_model *model, const dam_state *start)
{
    dam_gpu run = {};
    run.model = *model;
    run.desc = dam_grid_desc(o, start->n);
    run.n = start->n;
    dam_cuda_must(cudaStreamCreateWithFlags(&run.stream, cudaStreamNonBlocking), "no GPU to run on");
    for (cudaEvent_t &event : run.event) dam_cuda_must(cudaEventCreate(&event), "an event");
    dam_cuda_must(cudaEventCreate(&run.begin), "an event");
    dam_cuda_must(cudaEventCreate(&run.end), "an event");
    run.all = dam_gpu_particles(static_cast<size_t>(run.n), o->reorder);
    run.d_worst = dam_device_array<ugrid_cuda_facts>(1);
    dam_cuda_must(cudaMemsetAsync(run.d_worst, 0, sizeof *run.d_worst, run.stream), "clearing");
    run.host = dam_state_new(run.n);
    run.host_id = static_cast<int32_t *>(dam_alloc(static_cast<size_t>(run.n), sizeof(int32_t)));
    dam_must(ugrid_cuda_reserve(&run.grid, &run.desc, run.n, run.stream), "memory for the grid");
    dam_gpu_set(&run, start);
    return run;
}

void dam_gpu_free(dam_gpu *run)
{
    ugrid_cuda_free(&run->grid);
    if (run->graph) dam_cuda_must(cudaGraphExecDestroy(run->graph), "the graph");
    if (run->all.reorder) {
        dam_cuda_must(cudaFree(run->all.moved_vel), "freeing");
        dam_cuda_must(cudaFree(run->all.moved_id), "freeing");
    }
    void *const memory[] = {run->all.pos, run->all.vel, run->all.force, run->all.id, run->d_worst};
    for (void *block : memory) dam_cuda_must(cudaFree(block), "freeing");
    for (cudaEvent_t event : run->event) dam_cuda_must(cudaEventDestroy(event), "an event");
    dam_cuda_must(cudaEventDestroy(run->begin), "an event");
    dam_cuda_must(cudaEventDestroy(run->end), "an event");
    dam_cuda_must(cudaStreamDestroy(run->stream), "the stream");
    dam_state_free(&run->host);
    free(run->host_id);
}

/* ------------------------------------------------------------------------------------------------
   >>step
   ------------------------------------------------------------------------------------------------ */

void dam_gpu_build(dam_gpu *run)
{
    dam_particles *all = &run->all;
    dam_must(ugrid_cuda_build(&run->grid, &run->desc, all->pos, 0, run->n, run->stream), "building the grid");
    if (!all->reorder) return;
    dam_must(ugrid_cuda_gather(&run->grid, all->vel, 3 * sizeof(float), all->moved_vel, run->stream), "moving velocities");
    dam_must(ugrid_cuda_gather(&run->grid, all->id, sizeof(int32_t), all->moved_id, run->stream), "moving ids");
}

/* Puts one step into the stream. `event`: null, or what is to be recorded between its parts. */
void dam_gpu_step(dam_gpu *run, cudaEvent_t *event)
{
    if (event) dam_cuda_must(cudaEventRecord(event[DAM_START], run->stream), "timing");
    dam_gpu_build(run);
    if (event) dam_cuda_must(cudaEventRecord(event[DAM_BUILT], run->stream), "timing");
    dam_launch(run->stream, run->n, dam_forces_kernel, run->grid.device, run->model, run->all);
    if (event) dam_cuda_must(cudaEventRecord(event[DAM_PUSHED], run->stream), "timing");
    dam_launch(run->stream, run->n, dam_integrate_kernel, run->grid.device, run->model, run->all, run->grid.d_facts, run->d_worst);
    if (event) dam_cuda_must(cudaEventRecord(event[DAM_MOVED], run->stream), "timing");
}

/* One step as a graph: all its kernels are started with a single call. */
void dam_gpu_capture(dam_gpu *run)
{
    cudaGraph_t graph = nullptr;
    dam_cuda_must(cudaStreamBeginCapture(run->stream, cudaStreamCaptureModeThreadLocal), "capturing a step");
    dam_gpu_step(run, nullptr);
    dam_cuda_must(cudaStreamEndCapture(run->stream, &graph), "capturing a step");
    dam_cuda_must(cudaGraphInstantiate(&run->graph, graph, 0), "making a graph of a step");
    dam_cuda_must(cudaGraphDestroy(graph), "making a graph of a step");
}

/* ------------------------------------------------------------------------------------------------
   >>engine: what dam_run in dam_break.h calls
   ------------------------------------------------------------------------------------------------ */

double dam_seconds(cudaEvent_t from, cudaEvent_t to)
{
    float milliseconds = 0;
    dam_cuda_must(cudaEventElapsedTime(&milliseconds, from, to), "timing");
    return 1e-3 * static_cast<double>(milliseconds);
}

/* Did a step since the last look lose a particle? Then the run is worth nothing. */
void dam_gpu_inspect(dam_gpu *run)
{
    ugrid_cuda_facts worst = {};
    dam_copy(&worst, run->d_worst, 1, cudaMemcpyDeviceToHost, run->stream);
    dam_cuda_must(cudaStreamSynchronize(run->stream), "the time steps");
    if (worst.first_bad) dam_stop(1, "the run became unstable: a position is no longer finite (a smaller --dt may help)");
    if (run->desc.method == UGRID_FIXED && worst.needed_slots > run->desc.slots)
        dam_stop(1, "a cell held %ld entries and has room for %ld: run again with --slots %ld", static_cast<long>(worst.needed_slots),
                 static_cast<long>(run->desc.slots), static_cast<long>(worst.needed_slots + worst.needed_slots / 2));
}

/* The first of these steps goes kernel by kernel, with an event after each part; the others replay the graph. */
void dam_gpu_advance(void *user, int32_t steps)
{
    dam_gpu *run = static_cast<dam_gpu *>(user);
    if (!run->graph) dam_gpu_capture(run);
    dam_cuda_must(cudaEventRecord(run->begin, run->stream), "timing");
    dam_gpu_step(run, run->event);
    for (int32_t k = 1; k < steps; k++) dam_cuda_must(cudaGraphLaunch(run->graph, run->stream), "starting a step");
    dam_cuda_must(cudaEventRecord(run->end, run->stream), "timing");
    dam_gpu_inspect(run);
    run->spent.build += dam_seconds(run->event[DAM_START], run->event[DAM_BUILT]);
    run->spent.forces += dam_seconds(run->event[DAM_BUILT], run->event[DAM_PUSHED]);
    run->spent.integration += dam_seconds(run->event[DAM_PUSHED], run->event[DAM_MOVED]);
    run->spent.step += dam_seconds(run->begin, run->end);
    run->sampled++;
    run->steps += steps;
}

void dam_gpu_fetch(void *user, dam_state *state)
{
    dam_gpu *run = static_cast<dam_gpu *>(user);
    size_t const n = static_cast<size_t>(run->n);
    dam_copy(run->host.pos, run->all.pos, 3 * n, cudaMemcpyDeviceToHost, run->stream);
    dam_copy(run->host.vel, run->all.vel, 3 * n, cudaMemcpyDeviceToHost, run->stream);
    dam_copy(run->host_id, run->all.id, n, cudaMemcpyDeviceToHost, run->stream);
    dam_cuda_must(cudaStreamSynchronize(run->stream), "fetching the particles");
    for (size_t i = 0; i < n; i++) {
        size_t const id = static_cast<size_t>(run->host_id[i]);
        memcpy(state->pos + 3 * id, run->host.pos + 3 * i, 3 * sizeof(float));
        memcpy(state->vel + 3 * id, run->host.vel + 3 * i, 3 * sizeof(float));
    }
}

dam_times dam_gpu_times(void *user)
{
    const dam_gpu *run = static_cast<const dam_gpu *>(user);
    double const sampled = run->sampled ? static_cast<double>(run->sampled) : 1;
    dam_times times = run->spent;
    times.build /= sampled;
    times.forces /= sampled;
    times.integration /= sampled;
    times.step /= run->steps ? static_cast<double>(run->steps) : 1;
    return times;
}

dam_engine dam_gpu_engine(dam_gpu *run)
{
    dam_engine engine;
    engine.user = run;
    engine.stride = 50;
    engine.advance = dam_gpu_advance;
    engine.fetch = dam_gpu_fetch;
    engine.times = dam_gpu_times;
    return engine;
}

/* ------------------------------------------------------------------------------------------------
   >>check: the same few steps here and there, from the state at the end of the run, where spheres touch
   ------------------------------------------------------------------------------------------------ */

/* The GPU fuses multiplications with additions and, without desc.deterministic, meets the particles of a cell in another
   order. One step rounds positions up to 64 to 4e-6; 5 steps of touching spheres stay far below: */
constexpr int dam_check_steps = 5;
constexpr float dam_check_tolerance = 1e-4f;

float dam_largest_difference(const float *a, const float *b, size_t count)
{
    float largest = 0;
    for (size_t k = 0; k < count; k++) {
        float const difference = fabsf(a[k] - b[k]);
        if (!(difference <= largest)) largest = difference; /* a NaN counts as large */
    }
    return largest;
}

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
    float const moved = dam_largest_difference(state->pos, expected.pos, numbers);
    float const position = dam_largest_difference(expected.pos, found.pos, numbers);
    float const velocity = dam_largest_difference(expected.vel, found.vel, numbers);
    bool const agree = position <= dam_check_tolerance && velocity <= dam_check_tolerance;
    printf("reference_steps %d\nreference_moved %.3e\n", dam_check_steps, static_cast<double>(moved));
    printf("reference_position_difference %.3e\nreference_velocity_difference %.3e\n", static_cast<double>(position), static_cast<double>(velocity));
    printf("reference_tolerance %.3e\nreference_agrees %d\n", static_cast<double>(dam_check_tolerance), agree);
    dam_state_free(&expected);
    dam_state_free(&found);
    dam_serial_free(&serial);
    return agree;
}

} // namespace

int main(int argc, char **argv)
{
    dam_options const options = dam_parse(argc, argv);
    if (options.half && !options.demo) dam_stop(2, "--half is for the serial program: on a GPU two threads would add to one sum");
    dam_options own = options;
    own.half = 0;
    dam_state state = dam_begin(&own);
    dam_model const model = dam_model_for(&own, state.n);
    dam_gpu run = dam_gpu_new(&own, &model, &state);
    dam_engine const engine = dam_gpu_engine(&run);
    dam_run(&own, &model, &engine, &state);
    dam_finish(&own, &model, &engine, &state);
    bool const agree = !own.check || dam_check(&own, &model, &state, &run);
    dam_gpu_free(&run);
    dam_state_free(&state);
    return agree ? 0 : 1;
}
