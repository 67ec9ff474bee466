/* galaxy.cu - the colliding discs of galaxy.c on a GPU: the same command line, start, reports and pictures, for a million bodies.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: how a simulation uses the CUDA part of nbody.h. A step is one call, which allocates nothing, waits for nothing and
   reads nothing back; so it is captured as a CUDA graph, and then replayed. Energies and the error of the forces are made on the
   GPU, and so is the mass per pixel of a picture: bodies are fetched only for --write.

   How to run it:

       make cuda && build/cuda/galaxy --demo           (from the top of the repository), or
       nvcc -O3 -arch=native examples/galaxy.cu -o galaxy -lstb
       nvcc -O3 -arch=native -DGALAXY_WINDOW examples/galaxy.cu -o galaxy -lstb $(pkg-config --cflags-only-I --libs sdl2)
       ./galaxy -n 3000000 --softening 0.02 --dt 0.002 --steps 2500 --frames 250 --out pictures

   --check also makes 5 more steps twice, here and with the serial code of galaxy.c, and compares; exit status 1 when they differ.

   What to look at: >>step below. */

#define NBODY_IMPLEMENTATION
#define NBODY_CUDA
#include "galaxy.c" /* without its main: the serial steps, to compare with */

#include <cuda_runtime.h>

namespace {

/* ------------------------------------------------------------------------------------------------
   >>kernels
   ------------------------------------------------------------------------------------------------ */

constexpr int galaxy_block = 128;

/* One thread per body: what galaxy_serial_density does with one. */
__global__ void __launch_bounds__(galaxy_block)
    galaxy_density_kernel(int32_t n, int32_t second, const nbody_real *pos, const nbody_real *mass,
                          __grid_constant__ const galaxy_view view, float *density)
{
    int32_t const i = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
    galaxy_spot spot;
    if (i >= n || !galaxy_spot_of(&view, pos[2 * static_cast<size_t>(i)], pos[2 * static_cast<size_t>(i) + 1], &spot)) return;
    float *to = density + (i < second ? 0 : static_cast<size_t>(view.width) * static_cast<size_t>(view.height));
    for (int k = 0; k < 4; k++) atomicAdd(to + galaxy_spot_pixel(&view, &spot, k), spot.part[k] * static_cast<float>(mass[i]));
}

/* ------------------------------------------------------------------------------------------------
   >>device: memory and errors
   ------------------------------------------------------------------------------------------------ */

void galaxy_cuda_must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) galaxy_stop(1, "%s: %s", what, cudaGetErrorString(error));
}

/* The one place where kernels are launched: the compiler checks the types of the arguments. */
template <class... Parameters, class... Arguments>
void galaxy_launch(cudaStream_t stream, int32_t threads, void (*kernel)(Parameters...), Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((static_cast<unsigned>(threads) + galaxy_block - 1) / galaxy_block);
    config.blockDim = dim3(galaxy_block);
    config.stream = stream;
    galaxy_cuda_must(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), "starting a kernel");
}

template <class T> T *galaxy_device_array(size_t count)
{
    void *memory = nullptr;
    galaxy_cuda_must(cudaMalloc(&memory, (count ? count : 1) * sizeof(T)), "GPU memory");
    return static_cast<T *>(memory);
}

template <class T> void galaxy_copy(T *to, const T *from, size_t count, cudaMemcpyKind kind, cudaStream_t stream)
{
    galaxy_cuda_must(cudaMemcpyAsync(to, from, count * sizeof(T), kind, stream), "copying");
}

struct galaxy_gpu {
    const galaxy_options *options;
    nbody_cuda sim;
    nbody_desc desc;
    nbody_bodies bodies;        /* in device memory */
    nbody_real *mass, *potential;
    nbody_energies *sums;       /* one, in device memory */
    nbody_error *error;         /* the same */
    float *density;             /* room for the largest picture; null: there are none */
    cudaStream_t stream;
    cudaGraphExec_t graph;      /* one step; null until it is captured */
    int32_t measured;
    galaxy_state host;          /* what galaxy_gpu_look shows */
};

void galaxy_gpu_reserve(galaxy_gpu *run)
{
    galaxy_must(nbody_cuda_reserve(&run->sim, &run->desc, run->bodies.n, run->stream), "memory for the tree");
}

/* Takes over the state: the host's copy. */
void galaxy_gpu_new(galaxy_gpu *run, const galaxy_options *o, const galaxy_state *start)
{
    size_t const n = static_cast<size_t>(start->n);
    *run = galaxy_gpu();
    run->options = o;
    run->desc = galaxy_desc(o);
    run->host = *start;
    galaxy_cuda_must(cudaStreamCreateWithFlags(&run->stream, cudaStreamNonBlocking), "no GPU to run on");
    run->bodies.n = start->n;
    run->bodies.pos = galaxy_device_array<nbody_real>(2 * n);
    run->bodies.vel = galaxy_device_array<nbody_real>(2 * n);
    run->bodies.acc = galaxy_device_array<nbody_real>(2 * n);
    run->bodies.mass = run->mass = galaxy_device_array<nbody_real>(n);
    run->potential = galaxy_device_array<nbody_real>(n);
    run->sums = galaxy_device_array<nbody_energies>(1);
    run->error = galaxy_device_array<nbody_error>(1);
    if (o->frames || o->sheet || o->window)
        run->density = galaxy_device_array<float>(2 * GALAXY_FRAME_WIDTH * static_cast<size_t>(galaxy_height(GALAXY_FRAME_WIDTH)));
    galaxy_copy(run->bodies.pos, start->pos, 2 * n, cudaMemcpyHostToDevice, run->stream);
    galaxy_copy(run->bodies.vel, start->vel, 2 * n, cudaMemcpyHostToDevice, run->stream);
    galaxy_copy(run->mass, start->mass, n, cudaMemcpyHostToDevice, run->stream);
    galaxy_gpu_reserve(run);
}

void galaxy_gpu_forget_graph(galaxy_gpu *run)
{
    if (run->graph) galaxy_cuda_must(cudaGraphExecDestroy(run->graph), "the graph");
    run->graph = nullptr;
}

void galaxy_gpu_free(galaxy_gpu *run)
{
    galaxy_gpu_forget_graph(run);
    nbody_cuda_free(&run->sim);
    void *const memory[] = {run->bodies.pos, run->bodies.vel, run->bodies.acc, run->mass, run->potential, run->sums, run->error,
                            run->density};
    for (void *block : memory) galaxy_cuda_must(cudaFree(block), "freeing");
    galaxy_cuda_must(cudaStreamDestroy(run->stream), "the stream");
    galaxy_state_free(&run->host);
}

/* ------------------------------------------------------------------------------------------------
   >>step
   ------------------------------------------------------------------------------------------------ */

/* Puts one step into the stream. */
void galaxy_gpu_step(galaxy_gpu *run)
{
    galaxy_must(nbody_cuda_step(&run->sim, &run->desc, &run->bodies, static_cast<nbody_real>(run->options->dt),
                                run->options->integrator, run->stream), "a step");
}

/* One step as a graph: all its kernels are started with a single call. A step of leapfrog ends with the forces that the next one
   begins with (the report of step 0 has made the first ones); one of Euler makes its own, and the graph has to have that in it. */
void galaxy_gpu_capture(galaxy_gpu *run)
{
    cudaGraph_t graph = nullptr;
    run->bodies.fresh = run->options->integrator == NBODY_LEAPFROG;
    galaxy_cuda_must(cudaStreamBeginCapture(run->stream, cudaStreamCaptureModeThreadLocal), "capturing a step");
    galaxy_gpu_step(run);
    galaxy_cuda_must(cudaStreamEndCapture(run->stream, &graph), "capturing a step");
    galaxy_cuda_must(cudaGraphInstantiate(&run->graph, graph, 0), "making a graph of a step");
    galaxy_cuda_must(cudaGraphDestroy(graph), "making a graph of a step");
}

/* Waits for the steps, and looks at what they met. Too few cells cost time only: there will be more of them from now on. */
void galaxy_gpu_inspect(galaxy_gpu *run)
{
    nbody_frame frame;
    nbody_result const result = nbody_cuda_check(&run->sim, &frame, run->stream);
    if (result != NBODY_CELLS_FULL) { galaxy_must(result, "a step"); return; }
    run->desc.max_cells = frame.cells_needed + frame.cells_needed / 2;
    galaxy_gpu_forget_graph(run);
    galaxy_gpu_reserve(run);
}

/* ------------------------------------------------------------------------------------------------
   >>engine: what galaxy_run in galaxy.h calls
   ------------------------------------------------------------------------------------------------ */

void galaxy_gpu_advance(void *user, int32_t steps)
{
    galaxy_gpu *run = static_cast<galaxy_gpu *>(user);
    if (!run->graph) galaxy_gpu_capture(run);
    for (int32_t k = 0; k < steps; k++) galaxy_cuda_must(cudaGraphLaunch(run->graph, run->stream), "starting a step");
    galaxy_gpu_inspect(run);
}

/* As galaxy_serial_measure. */
void galaxy_gpu_measure(void *user, galaxy_figures *figures)
{
    galaxy_gpu *run = static_cast<galaxy_gpu *>(user);
    nbody_bodies *b = &run->bodies;
    galaxy_must(nbody_cuda_fields(&run->sim, &run->desc, b->pos, 0, b->mass, b->n, b->acc, run->potential, run->stream),
                "the potentials");
    b->fresh = 1;
    galaxy_must(nbody_cuda_energy(&run->sim, b, run->potential, run->sums, run->stream), "the energies");
    galaxy_must(nbody_cuda_estimate(&run->sim, b->acc, run->options->samples, static_cast<uint32_t>(++run->measured), run->error,
                                    run->stream), "the error");
    galaxy_copy(&figures->sums, run->sums, 1, cudaMemcpyDeviceToHost, run->stream);
    galaxy_copy(&figures->error, run->error, 1, cudaMemcpyDeviceToHost, run->stream);
    galaxy_gpu_inspect(run);
}

void galaxy_gpu_density(void *user, const galaxy_view *view, float *density)
{
    galaxy_gpu *run = static_cast<galaxy_gpu *>(user);
    size_t const count = 2 * galaxy_pixels(view);
    galaxy_cuda_must(cudaMemsetAsync(run->density, 0, count * sizeof(float), run->stream), "clearing");
    galaxy_launch(run->stream, run->bodies.n, galaxy_density_kernel, run->bodies.n, run->host.second, run->bodies.pos, run->mass,
                  *view, run->density);
    galaxy_copy(density, run->density, count, cudaMemcpyDeviceToHost, run->stream);
    galaxy_cuda_must(cudaStreamSynchronize(run->stream), "fetching a picture");
}

const galaxy_state *galaxy_gpu_look(void *user)
{
    galaxy_gpu *run = static_cast<galaxy_gpu *>(user);
    size_t const n = static_cast<size_t>(run->bodies.n);
    galaxy_copy(run->host.pos, run->bodies.pos, 2 * n, cudaMemcpyDeviceToHost, run->stream);
    galaxy_copy(run->host.vel, run->bodies.vel, 2 * n, cudaMemcpyDeviceToHost, run->stream);
    galaxy_cuda_must(cudaStreamSynchronize(run->stream), "fetching the bodies");
    return &run->host;
}

galaxy_engine galaxy_gpu_engine(galaxy_gpu *run)
{
    galaxy_engine engine;
    engine.user = run;
    engine.stride = 16;
    engine.advance = galaxy_gpu_advance;
    engine.measure = galaxy_gpu_measure;
    engine.density = galaxy_gpu_density;
    engine.look = galaxy_gpu_look;
    return engine;
}

/* ------------------------------------------------------------------------------------------------
   >>check: the same few steps here and there, from the state at the end of the run
   ------------------------------------------------------------------------------------------------ */

/* The GPU rounds differently. On average that stays far below the first of these; but a body that rounding takes over the border
   between two cells feels the others in another way, and there no more can be asked than what forces are worth: */
constexpr int galaxy_check_steps = 5;
constexpr double galaxy_check_mean = 1e-6, galaxy_check_largest = 1e-3;

struct galaxy_difference { double mean, largest; };

/* As shares of `whole`. */
galaxy_difference galaxy_compare(const nbody_real *a, const nbody_real *b, int32_t n, double whole)
{
    galaxy_difference difference = {0, 0};
    for (size_t k = 0; k < 2 * static_cast<size_t>(n); k++) {
        double const d = galaxy_share(static_cast<double>(a[k]) - static_cast<double>(b[k]), whole);
        difference.mean += d / (2.0 * n);
        if (!(d <= difference.largest)) difference.largest = d; /* a NaN counts as large */
    }
    return difference;
}

bool galaxy_agrees(const galaxy_difference &difference)
{
    return difference.mean <= galaxy_check_mean && difference.largest <= galaxy_check_largest;
}

galaxy_state galaxy_state_copy(const galaxy_state *from)
{
    galaxy_state to = galaxy_state_new(from->n);
    to.second = from->second;
    memcpy(to.pos, from->pos, 2 * static_cast<size_t>(from->n) * sizeof *to.pos);
    memcpy(to.vel, from->vel, 2 * static_cast<size_t>(from->n) * sizeof *to.vel);
    memcpy(to.mass, from->mass, static_cast<size_t>(from->n) * sizeof *to.mass);
    return to;
}

/* Both go on from where the run has come to. Returns whether they agree. */
bool galaxy_check(const galaxy_options *o, galaxy_gpu *run, const galaxy_figures *figures)
{
    galaxy_state before = galaxy_state_copy(galaxy_gpu_look(run)), start = galaxy_state_copy(&before);
    galaxy_serial serial = galaxy_serial_new(o, &start); /* owns start */
    galaxy_serial_advance(&serial, galaxy_check_steps);
    galaxy_gpu_advance(run, galaxy_check_steps);
    const galaxy_state *found = galaxy_gpu_look(run), *expected = &serial.state;
    double const reach = galaxy_reach(&before, figures->sums.centre);
    double const energies = figures->sums.kinetic + fabs(figures->sums.potential);
    double const speed = galaxy_share(sqrt(2 * energies), sqrt(figures->sums.mass)); /* if all energy were motion */
    galaxy_difference const moved = galaxy_compare(before.pos, expected->pos, o->n, reach);
    galaxy_difference const position = galaxy_compare(found->pos, expected->pos, o->n, reach);
    galaxy_difference const velocity = galaxy_compare(found->vel, expected->vel, o->n, speed);
    bool const agree = galaxy_agrees(position) && galaxy_agrees(velocity);
    printf("reference_steps %d\nreference_moved %.3e\n", galaxy_check_steps, moved.mean);
    printf("reference_position %.3e\nreference_position_worst %.3e\n", position.mean, position.largest);
    printf("reference_velocity %.3e\nreference_velocity_worst %.3e\n", velocity.mean, velocity.largest);
    printf("reference_agrees %d\n", agree);
    galaxy_serial_free(&serial);
    galaxy_state_free(&before);
    return agree;
}

} // namespace

int main(int argc, char **argv)
{
    galaxy_options options = galaxy_parse(argc, argv);
    galaxy_state const start = galaxy_start(&options);
    galaxy_gpu run;
    galaxy_gpu_new(&run, &options, &start);
    galaxy_engine const engine = galaxy_gpu_engine(&run);
    galaxy_show show = galaxy_run(&options, &engine, &run.host);
    galaxy_finish(&show);
    bool const agree = !options.check || galaxy_check(&options, &run, &show.now);
    galaxy_gpu_free(&run);
    return agree ? 0 : 1;
}
