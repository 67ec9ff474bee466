/* galaxy_gpu.h - what galaxy.cu needs besides its steps: device memory, and the check against
   galaxy.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef GALAXY_GPU_H
#define GALAXY_GPU_H

#include "../common/gpu.h"

namespace {

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
    galaxy_must(nbody_cuda_reserve(&run->sim, &run->desc, run->bodies.n, run->stream),
                "memory for the tree");
}

/* Takes over the state: the host's copy. */
void galaxy_gpu_new(galaxy_gpu *run, const galaxy_options *o, const galaxy_state *start)
{
    size_t const n = static_cast<size_t>(start->n);
    *run = galaxy_gpu();
    run->options = o;
    run->desc = galaxy_desc(o);
    run->host = *start;
    run->stream = gpu_stream();
    run->bodies.n = start->n;
    run->bodies.pos = gpu_array<nbody_real>(2 * n);
    run->bodies.vel = gpu_array<nbody_real>(2 * n);
    run->bodies.acc = gpu_array<nbody_real>(2 * n);
    run->bodies.mass = run->mass = gpu_array<nbody_real>(n);
    run->potential = gpu_array<nbody_real>(n);
    run->sums = gpu_array<nbody_energies>(1);
    run->error = gpu_array<nbody_error>(1);
    if (o->frames || o->sheet || o->window)
        run->density = gpu_array<float>(2 * GALAXY_FRAME_WIDTH *
                                        static_cast<size_t>(galaxy_height(GALAXY_FRAME_WIDTH)));
    gpu_upload(run->bodies.pos, start->pos, 2 * n, run->stream);
    gpu_upload(run->bodies.vel, start->vel, 2 * n, run->stream);
    gpu_upload(run->mass, start->mass, n, run->stream);
    galaxy_gpu_reserve(run);
}

void galaxy_gpu_forget_graph(galaxy_gpu *run)
{
    if (run->graph) gpu_must(cudaGraphExecDestroy(run->graph), "the graph");
    run->graph = nullptr;
}

void galaxy_gpu_free(galaxy_gpu *run)
{
    galaxy_gpu_forget_graph(run);
    nbody_cuda_free(&run->sim);
    void *const memory[] = {run->bodies.pos, run->bodies.vel, run->bodies.acc, run->mass,
                            run->potential,  run->sums,       run->error,      run->density};
    for (void *block : memory) gpu_free(block);
    gpu_must(cudaStreamDestroy(run->stream), "the stream");
    galaxy_state_free(&run->host);
}

void galaxy_gpu_advance(void *user, int32_t steps);
const galaxy_state *galaxy_gpu_look(void *user);

/* -------------------------------------------------------------------------------------------------
   >>check: the same few steps here and there, from the state at the end of the run
   ---------------------------------------------------------------------------------------------- */

/* The GPU rounds differently. On average that stays far below the first of these; but a body
   that rounding takes over the border between two cells gets its force in another way, and
   there no more can be asked than what forces are worth: */
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
    galaxy_state before = galaxy_state_copy(galaxy_gpu_look(run)),
                 start = galaxy_state_copy(&before);
    galaxy_serial serial = galaxy_serial_new(o, &start); /* owns start */
    galaxy_serial_advance(&serial, galaxy_check_steps);
    galaxy_gpu_advance(run, galaxy_check_steps);
    const galaxy_state *found = galaxy_gpu_look(run), *expected = &serial.state;
    double const reach = galaxy_reach(&before, figures->sums.centre);
    double const energies = figures->sums.kinetic + fabs(figures->sums.potential);
    /* if all energy were motion */
    double const speed = galaxy_share(sqrt(2 * energies), sqrt(figures->sums.mass));
    galaxy_difference const moved = galaxy_compare(before.pos, expected->pos, o->n, reach);
    galaxy_difference const position = galaxy_compare(found->pos, expected->pos, o->n, reach);
    galaxy_difference const velocity = galaxy_compare(found->vel, expected->vel, o->n, speed);
    bool const agree = galaxy_agrees(position) && galaxy_agrees(velocity);
    printf("reference_steps %d\nreference_moved %.3e\n", galaxy_check_steps, moved.mean);
    printf("reference_position %.3e\nreference_position_worst %.3e\n", position.mean,
           position.largest);
    printf("reference_velocity %.3e\nreference_velocity_worst %.3e\n", velocity.mean,
           velocity.largest);
    printf("reference_agrees %d\n", agree);
    galaxy_serial_free(&serial);
    galaxy_state_free(&before);
    return agree;
}

} // namespace

#endif /* GALAXY_GPU_H */
