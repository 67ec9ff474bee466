/* drum_gpu_check.h - drum.cu against drum.c, against the times of source 004, and --curves.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef DRUM_GPU_CHECK_H
#define DRUM_GPU_CHECK_H

#include "drum_gpu.h"

namespace {

/* -------------------------------------------------------------------------------------------------
   >>check: the same few steps here and there, from the end of the run, with its lists and history
   ---------------------------------------------------------------------------------------------- */

/* The GPU fuses multiplications with additions and adds forces in another order. Contacts are so
   stiff that a position rounded in its last bit shows in the force; after 5 steps all that stays
   far below: */
constexpr int drum_check_steps = 5;
constexpr double drum_check_positions = 1e-4;   /* radii */
/* of the speed after a fall of a quarter of the drum */
constexpr double drum_check_speeds = 2e-3;

/* The largest difference of two arrays whose spheres come in different orders. */
double drum_largest_difference(const drum_state *a, const float *values_a, const drum_state *b,
                               const float *values_b)
{
    int32_t *place = static_cast<int32_t *>(zeros(static_cast<size_t>(a->n), sizeof(int32_t)));
    double largest = 0;
    for (int32_t i = 0; i < b->n; i++) place[b->id[i]] = i;
    for (int32_t i = 0; i < a->n; i++)
        for (int c = 0; c < 3; c++) {
            double const x = values_a[4 * static_cast<size_t>(i) + c],
                         y = values_b[4 * static_cast<size_t>(place[a->id[i]]) + c];
            if (!(fabs(x - y) <= largest)) largest = fabs(x - y); /* a NaN counts as large */
        }
    free(place);
    return largest;
}

/* Both go on from where the run has come to. Returns whether they agree. */
bool drum_check(const drum_options *o, drum_setup *setup, drum_gpu *run)
{
    drum_options own = *o;
    if (o->sort_every) own.sort_every = 3; /* so that one of the steps sorts */
    drum_state before = drum_state_new(o->n);
    drum_copy_state(&before, drum_gpu_look(run));
    drum_turn_mesh(&setup->mesh, drum_angle(setup, run->step));
    drum_serial serial = drum_serial_new(&own, setup, &before, run->step);
    MUST(nlist, nlist_cuda_download(&serial.pairs, &run->pairs, run->stream),
         "fetching the list of pairs");
    MUST(nlist, nlist_cuda_download(&serial.walls, &run->walls, run->stream),
         "fetching the list of triangles");
    run->options = &own;
    drum_serial_advance(&serial, drum_check_steps);
    drum_gpu_advance(run, drum_check_steps);
    run->options = o;
    const drum_state *found = drum_gpu_look(run), *expected = &serial.state;
    double const radius = setup->radius, speed = drum_top_speed(&setup->mesh),
                 dt = setup->system.dt;
    double const moved =
        drum_largest_difference(&before, before.pos, expected, expected->pos) / radius;
    double const position =
        drum_largest_difference(expected, expected->pos, found, found->pos) / radius;
    double const velocity =
        drum_largest_difference(expected, expected->vel, found, found->vel) / speed;
    double const spin =
        drum_largest_difference(expected, expected->spin, found, found->spin) * radius / speed;
    bool const agree = position <= drum_check_positions && velocity <= drum_check_speeds &&
                       spin <= drum_check_speeds;
    printf("reference_steps %d\nreference_moved %.3e\nreference_time %.3e\n", drum_check_steps,
           moved, drum_check_steps * dt);
    printf("reference_position %.3e\nreference_velocity %.3e\nreference_spin "
           "%.3e\nreference_agrees %d\n",
           position, velocity, spin, agree);
    drum_serial_free(&serial);
    drum_state_free(&before);
    return agree;
}

/* -------------------------------------------------------------------------------------------------
   >>source: Kureck's figures (GeForce GTX Titan X, Maxwell): 10 million spheres, 4.3 neighbours
   each, settled, no history
   ---------------------------------------------------------------------------------------------- */

struct drum_source { const char *table; double ms[DRUM_STAGES], steps_per_s, one_kernel; };

/* In the order of DRUM_MOVE .. DRUM_PUSH_SPHERES; 0: not told. Integration "about 8 ms", the
   grid "between 11 ms and 13 ms". */
const drum_source drum_table_6_8 = {"table 6.8", {8, 0, 2.5, 12, 11.75, 16.1, 1, 19.6}, 13.4, 135};
const drum_source drum_table_6_10 = {"table 6.10", {8, 0, 2.5, 12, 15, 216, 1.2, 103}, 2.8, 400};
constexpr int32_t drum_source_spheres = 10000000;

/* What is there for this number of spheres; else NULL. Sorting now and then is in his figure 6.9
   only. */
const drum_source *drum_source_for(int32_t n, int32_t sort_every, bool in_order)
{
    if (n != drum_source_spheres || sort_every > 1) return nullptr;
    if (sort_every == 1) return &drum_table_6_8;
    return in_order ? nullptr : &drum_table_6_10;
}

void drum_print_beside(const drum_times *t, const drum_source *from)
{
    printf("beside %s (4.3 neighbours, settled, no history; Titan X Maxwell), in ms:\n",
           from->table);
    for (int k = 0; k < DRUM_STAGES; k++)
        if (from->ms[k] > 0)
            printf("  %-28s %9.4f   source %7.4g\n", drum_stage_names[k], 1e3 * t->stage[k],
                   from->ms[k]);
    printf("  %-28s %9.1f   source %7.3g\n", "steps/s", 1 / t->step, from->steps_per_s);
}

/* -------------------------------------------------------------------------------------------------
   >>one kernel: search and forces of the spheres, as the source had it before its lists ("old")
   ---------------------------------------------------------------------------------------------- */

struct drum_six {
    float x[DEM_SUMS];
    __device__ drum_six &operator+=(const drum_six &other)
    {
        for (int k = 0; k < DEM_SUMS; k++) x[k] += other.x[k];
        return *this;
    }
};

/* Each contact is computed for both of its spheres. */
struct drum_search_op {
    dem_system system;
    __device__ drum_six operator()(const ugrid_contact &contact) const
    {
        drum_six own = {}, other = {};
        dem_spheres(&system, contact.i, contact.j, nullptr, own.x, other.x);
        return own;
    }
};

/* Are these sums, with those of the drum, the forces of the last step? (Without springs.) */
void drum_same_forces(drum_gpu *run, float *sums)
{
    size_t const count = DEM_SUMS * static_cast<size_t>(run->system.n);
    MUST(nlist,
         nlist_cuda_sum<DEM_SUMS>(&run->walls, &run->setup->wall_sums, dem_triangle_op{run->system},
                                  sums, run->stream),
         "forces of the drum");
    float *found = static_cast<float *>(zeros(count, sizeof(float)));
    gpu_download(found, sums, count, run->stream);
    gpu_download(run->host.sums, run->state.sums, count, run->stream);
    gpu_wait(run->stream);
    double largest = 0;
    for (size_t k = 0; k < count; k++)
        largest = fmax(largest, fabs(static_cast<double>(found[k])));
    double const apart = largest_difference(found, run->host.sums, count);
    free(found);
    if (!(apart <= 1e-4 * largest))
        stop(1, "one kernel: forces are %g off those of the list, of %g", apart, largest);
}

/* Seconds, for the spheres as they lie. */
double drum_one_kernel(drum_gpu *run)
{
    int const rounds = 10;
    float *sums = gpu_array<float>(DEM_SUMS * static_cast<size_t>(run->system.n));
    for (int round = -1; round < rounds; round++) {
        if (round == 0) run->events.record(DRUM_BEGIN, run->stream);
        MUST(ugrid,
             ugrid_cuda_sum(&run->grid, 2 * run->setup->radius, 0, drum_search_op{run->system},
                            reinterpret_cast<drum_six *>(sums), run->stream),
             "search and forces in one kernel");
    }
    run->events.record(DRUM_END, run->stream);
    gpu_wait(run->stream);
    double const seconds = run->events.seconds(DRUM_BEGIN, DRUM_END) / rounds;
    if (run->system.history_off) drum_same_forces(run, sums);
    gpu_free(sums);
    return seconds;
}

/* -------------------------------------------------------------------------------------------------
   >>curves: --curves FILE
   ---------------------------------------------------------------------------------------------- */

struct drum_curve {
    const char *name;
    int32_t sort_every;     /* 0: never again */
    bool sorted;            /* once, before the first step */
};

const drum_curve drum_curves[] = {
    {"never sorted", 0, false}, {"sorted every step", 1, true}, {"sorted every 10 steps", 10, true},
    {"sorted every 100 steps", 100, true}, {"sorted once", 0, true}
};
constexpr int32_t drum_points = 20; /* of a curve */

/* A line of a CSV file as tests/bench/bench.h has them: group "turn" goes on from a file. */
void drum_put_row(FILE *file, const drum_options *o, const char *workload, const char *curve,
                  const char *what, double ms, double peer_ms, double value, const char *unit)
{
    fprintf(file, "drum,%s,%s,\"%s: %s\",%lld,%.6g,0,0,0,%.6g,%.6g,%s,0,0\n",
            o->load ? "turn" : "drum", workload, curve, what, static_cast<long long>(o->n), ms,
            peer_ms, value, unit);
}

/* A point of a curve: the number is the step. */
void drum_put_point(FILE *file, const drum_options *o, const char *curve, int64_t step, double ms,
                    double seconds)
{
    drum_options own = *o;
    own.n = static_cast<int32_t>(step);
    drum_put_row(file, &own, "time", curve, "step", ms, 0, seconds, "s");
}

/* The parts of a step, and the whole. */
void drum_put_stages(FILE *file, const drum_options *o, const drum_curve *curve,
                     const drum_times *t, const drum_source *from)
{
    for (int k = 0; k < DRUM_STAGES; k++)
        if (k != DRUM_SORT || curve->sort_every > 0)
            drum_put_row(file, o, "stages", curve->name, drum_stage_names[k], 1e3 * t->stage[k],
                         from ? from->ms[k] : 0, 0, "");
    drum_put_row(file, o, "stages", curve->name, "whole step", 1e3 * t->step,
                 from ? 1e3 / from->steps_per_s : 0, 0, "");
}

/* All of a curve: the time of a step against the time in the drum. */
drum_times drum_run_curve(drum_gpu *run, const drum_options *o, const drum_curve *curve, FILE *file)
{
    int32_t const stride = o->steps / drum_points > 0 ? o->steps / drum_points : 1;
    int64_t const begin = run->step;
    if (curve->sorted) drum_gpu_sort(run);
    run->spent = drum_times();
    run->sampled = run->counted = run->sorts = 0;
    for (int32_t done = 0; done < o->steps; done += stride) {
        double const before = run->spent.step;
        drum_gpu_advance(run, stride);
        double const seconds =
            static_cast<double>(run->setup->system.dt) * static_cast<double>(run->step - begin);
        double const ms = 1e3 * (run->spent.step - before) / stride;
        drum_put_point(file, o, curve->name, run->step - begin, ms, seconds);
    }
    return drum_gpu_times(run);
}

void drum_all_curves(drum_gpu *run, const drum_options *o, const char *path)
{
    out_file const out = create_file(path);
    FILE *const file = out.file;
    fprintf(file,
            "program,group,workload,method,n,ms,M_per_s,floor_ms,bar_ms,peer_ms,value,unit,"
            "base_ms,bar_ratio\n");
    for (const drum_curve &curve : drum_curves) {
        drum_options own = *o;
        own.sort_every = curve.sort_every;
        run->options = &own;
        drum_times const times = drum_run_curve(run, &own, &curve, file);
        const drum_source *from =
            drum_source_for(o->n, curve.sort_every, curve.sorted || !o->shuffle);
        printf("%s: ", curve.name);
        drum_print_times(&own, &times);
        if (from) drum_print_beside(&times, from);
        drum_put_stages(file, o, &curve, &times, from);
        drum_put_row(file, o, "stages", curve.name, "search and forces in one kernel",
                     1e3 * drum_one_kernel(run), from ? from->one_kernel : 0, 0, "");
    }
    run->options = o;
    drum_put_row(file, o, "memory", "all", "GPU memory in use", 0, 0, drum_memory(), "MiB");
    for (int k = 0; k < 5; k++)
        drum_put_row(file, o, "memory", "of it", drum_parts[k], 0, 0,
                     k ? run->memory[k] - run->memory[k - 1] : run->memory[0], "MiB");
    drum_put_row(file, o, "memory", "all", "entries of the list of pairs", 0, 0,
                 static_cast<double>(drum_gpu_entries(run)) / o->n, "of each");
    close_file(&out);
}

/* As drum.c; with 10 million spheres, beside the source. */
void drum_run_to_the_end(drum_gpu *run, const drum_options *o, drum_setup *setup)
{
    drum_engine const engine = {run,           o->check_every, drum_gpu_advance,
                                drum_gpu_look, drum_gpu_pairs, drum_gpu_walls,
                                drum_gpu_entries, drum_gpu_times};
    const drum_source *from = drum_source_for(o->n, o->sort_every > 0, !o->shuffle);
    drum_run(o, setup, &engine, static_cast<int32_t>(run->step));
    drum_finish(o, setup, &engine);
    drum_times const times = drum_gpu_times(run);
    if (from && !o->check && o->steps) drum_print_beside(&times, from);
}

} // namespace

#endif /* DRUM_GPU_CHECK_H */
