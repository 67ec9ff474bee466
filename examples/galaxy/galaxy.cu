/* galaxy.cu - the colliding discs of galaxy.c on a GPU: the same command line, start, reports and
   pictures, for a million bodies.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: how a simulation uses the CUDA part of nbody.h. A step is one call, which
   allocates nothing, waits for nothing and reads nothing back; so it is captured as a CUDA graph,
   and then replayed. Energies and the error of the forces are made on the GPU, and so is the mass
   per pixel of a picture: bodies are fetched only for --write.

   How to run it:

       make cuda && build/cuda/galaxy --demo           (from the top of the repository), or
       nvcc -O3 -arch=native examples/galaxy/galaxy.cu -o galaxy -lstb
       (with -DGALAXY_WINDOW $(pkg-config --cflags-only-I --libs sdl2): --window)
       ./galaxy -n 3000000 --softening 0.02 --dt 0.002 --steps 2500 --frames 250 --out pictures

   --check also makes 5 more steps twice, here and with the serial code of galaxy.c, and compares;
   exit status 1 when they differ.

   What to look at: >>step below. */

#define NBODY_IMPLEMENTATION
#define NBODY_CUDA
#include "galaxy.c" /* without its main: the serial steps, to compare with */

#include "galaxy_gpu.h"

namespace {

/* -------------------------------------------------------------------------------------------------
   >>kernels
   ---------------------------------------------------------------------------------------------- */

/* One thread per body: what galaxy_serial_density does with one. */
__global__ void __launch_bounds__(gpu_block)
    galaxy_density_kernel(int32_t n, int32_t second, const nbody_real *pos, const nbody_real *mass,
                          __grid_constant__ const galaxy_view view, float *density)
{
    int32_t const i = gpu_thread();
    galaxy_spot spot;
    if (i >= n || !galaxy_spot_of(&view, pos[2 * static_cast<size_t>(i)],
                                  pos[2 * static_cast<size_t>(i) + 1], &spot))
        return;
    float *to =
        density +
        (i < second ? 0 : static_cast<size_t>(view.width) * static_cast<size_t>(view.height));
    for (int k = 0; k < 4; k++)
        atomicAdd(to + galaxy_spot_pixel(&view, &spot, k),
                  spot.part[k] * static_cast<float>(mass[i]));
}

/* -------------------------------------------------------------------------------------------------
   >>step
   ---------------------------------------------------------------------------------------------- */

/* Puts one step into the stream. */
void galaxy_gpu_step(galaxy_gpu *run)
{
    galaxy_must(nbody_cuda_step(&run->sim, &run->desc, &run->bodies,
                                static_cast<nbody_real>(run->options->dt), run->options->integrator,
                                run->stream),
                "a step");
}

/* One step as a graph: all its kernels are started with a single call. A step of leapfrog ends
   with the forces that the next one begins with (the report of step 0 has made the first ones);
   one of Euler makes its own, and the graph has to have that in it. */
void galaxy_gpu_capture(galaxy_gpu *run)
{
    run->bodies.fresh = run->options->integrator == NBODY_LEAPFROG;
    run->graph = gpu_capture(run->stream, [run] { galaxy_gpu_step(run); });
}

/* Waits for the steps, and looks at what they met. Too few cells cost time only: there will be
   more of them from now on. */
void galaxy_gpu_inspect(galaxy_gpu *run)
{
    nbody_frame frame;
    nbody_result const result = nbody_cuda_check(&run->sim, &frame, run->stream);
    if (result != NBODY_CELLS_FULL) { galaxy_must(result, "a step"); return; }
    run->desc.max_cells = frame.cells_needed + frame.cells_needed / 2;
    galaxy_gpu_forget_graph(run);
    galaxy_gpu_reserve(run);
}

/* -------------------------------------------------------------------------------------------------
   >>engine: what galaxy_run in galaxy_run.h calls
   ---------------------------------------------------------------------------------------------- */

void galaxy_gpu_advance(void *user, int32_t steps)
{
    galaxy_gpu *run = static_cast<galaxy_gpu *>(user);
    if (!run->graph) galaxy_gpu_capture(run);
    for (int32_t k = 0; k < steps; k++)
        gpu_must(cudaGraphLaunch(run->graph, run->stream), "starting a step");
    galaxy_gpu_inspect(run);
}

/* As galaxy_serial_measure. */
void galaxy_gpu_measure(void *user, galaxy_figures *figures)
{
    galaxy_gpu *run = static_cast<galaxy_gpu *>(user);
    nbody_bodies *b = &run->bodies;
    galaxy_must(nbody_cuda_fields(&run->sim, &run->desc, b->pos, 0, b->mass, b->n, b->acc,
                                  run->potential, run->stream),
                "the potentials");
    b->fresh = 1;
    galaxy_must(nbody_cuda_energy(&run->sim, b, run->potential, run->sums, run->stream),
                "the energies");
    galaxy_must(nbody_cuda_estimate(&run->sim, b->acc, run->options->samples,
                                    static_cast<uint32_t>(++run->measured), run->error,
                                    run->stream),
                "the error");
    gpu_download(&figures->sums, run->sums, 1, run->stream);
    gpu_download(&figures->error, run->error, 1, run->stream);
    galaxy_gpu_inspect(run);
}

void galaxy_gpu_density(void *user, const galaxy_view *view, float *density)
{
    galaxy_gpu *run = static_cast<galaxy_gpu *>(user);
    size_t const count = 2 * galaxy_pixels(view);
    gpu_must(cudaMemsetAsync(run->density, 0, count * sizeof(float), run->stream), "clearing");
    gpu_launch(run->stream, run->bodies.n, galaxy_density_kernel, run->bodies.n, run->host.second,
               run->bodies.pos, run->mass, *view, run->density);
    gpu_download(density, run->density, count, run->stream);
    gpu_wait(run->stream);
}

const galaxy_state *galaxy_gpu_look(void *user)
{
    galaxy_gpu *run = static_cast<galaxy_gpu *>(user);
    size_t const n = static_cast<size_t>(run->bodies.n);
    gpu_download(run->host.pos, run->bodies.pos, 2 * n, run->stream);
    gpu_download(run->host.vel, run->bodies.vel, 2 * n, run->stream);
    gpu_wait(run->stream);
    return &run->host;
}

} // namespace

int main(int argc, char **argv)
{
    galaxy_options options = galaxy_parse(argc, argv);
    galaxy_state const start = galaxy_start(&options);
    galaxy_gpu run;
    galaxy_gpu_new(&run, &options, &start);
    galaxy_engine const engine = {
        &run, 16, galaxy_gpu_advance, galaxy_gpu_measure, galaxy_gpu_density, galaxy_gpu_look};
    galaxy_show show = galaxy_run(&options, &engine, &run.host);
    galaxy_finish(&show);
    bool const agree = !options.check || galaxy_check(&options, &run, &show.now);
    galaxy_gpu_free(&run);
    return agree ? 0 : 1;
}
