/* drum.cu - the rotating drum of drum.c on a GPU: the same command line, physics and pictures, for ten million spheres and more.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: how a simulation uses the CUDA parts of ugrid.h, lbvh.h and nlist.h together. A time step is that of drum.c; what
   happens to one sphere, vertex or contact (dem_move, drum_turn, dem_spheres, dem_triangle) is the same text. Steps read nothing
   back and wait for nothing. Every --check-every steps the host asks the device whether all has fitted, and adds memory before it
   runs out.

   How to run it:

       make cuda && build/cuda/drum --demo             (from the top of the repository), or
       nvcc -O3 -arch=native examples/drum.cu -o drum -lstb
       ./drum -n 10000000 --length 1.6 --fill 0.1 --rpm 8 --spacing 0.998 --steps 1000

   The last of these is the drum coater of Kureck's table 6.8, 10 million spheres at 8 turns a minute; the times of a step's parts
   are printed in his words, and with 10 million spheres beside his. (--spacing 0.998: they touch from the first step on.) --shuffle
   --sort-every 0 shows what sorting is worth (table 6.10), --history 0 what history costs (section 6.3.6). --check also makes 5
   more steps twice, here and with the serial code of drum.c, and compares; exit status 1 when they differ.

   One option more than drum.c has: --curves FILE makes tables 6.8 and 6.10 and the curves of figure 6.9, one after the other:
   --steps steps in the order at the start (with --shuffle: random), then as many sorted every step, every 10 and 100, and sorted
   once. The times go into FILE, as lines of the benchmarks' CSV files; the end is not looked at.

   What to look at: >>kernels and >>step below. */

#define UGRID_IMPLEMENTATION
#define LBVH_IMPLEMENTATION
#define NLIST_IMPLEMENTATION
#define UGRID_CUDA
#define LBVH_CUDA
#define NLIST_CUDA
#include "drum.c" /* without its main: the serial steps, to compare with */

#include <cuda_runtime.h>

namespace {

/* ------------------------------------------------------------------------------------------------
   >>kernels: one thread per vertex, or per sphere. (The forces are in dem.h: dem_spheres_op, dem_triangle_op.)
   ------------------------------------------------------------------------------------------------ */

constexpr int drum_block = 128;

__device__ int32_t drum_thread() { return static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x); }

__global__ void __launch_bounds__(drum_block)
    drum_turn_kernel(int32_t vertices, const float *rest, float cosine, float sine, float *now)
{
    int32_t const v = drum_thread();
    if (v < vertices) drum_turn(rest + 3 * static_cast<size_t>(v), cosine, sine, now + 3 * static_cast<size_t>(v));
}

__global__ void __launch_bounds__(drum_block) drum_move_kernel(__grid_constant__ const dem_system system, const float *sums)
{
    int32_t const i = drum_thread();
    if (i >= system.n) return;
    float sum[DEM_SUMS];
    for (int k = 0; k < DEM_SUMS; k++) sum[k] = sums[DEM_SUMS * static_cast<size_t>(i) + k];
    dem_move(&system, i, sum);
}

/* ------------------------------------------------------------------------------------------------
   >>device: memory and errors
   ------------------------------------------------------------------------------------------------ */

void drum_cuda_must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) drum_stop(1, "%s: %s", what, cudaGetErrorString(error));
}

/* The one place where kernels are launched: the compiler checks the types of the arguments. */
template <class... Parameters, class... Arguments>
void drum_launch(cudaStream_t stream, int32_t threads, void (*kernel)(Parameters...), Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((static_cast<unsigned>(threads) + drum_block - 1) / drum_block);
    config.blockDim = dim3(drum_block);
    config.stream = stream;
    drum_cuda_must(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), "starting a kernel");
}

template <class T> T *drum_device_array(size_t count)
{
    void *memory = nullptr;
    drum_cuda_must(cudaMalloc(&memory, (count ? count : 1) * sizeof(T)), "GPU memory");
    return static_cast<T *>(memory);
}

template <class T> void drum_copy(T *to, const T *from, size_t count, cudaMemcpyKind kind, cudaStream_t stream)
{
    drum_cuda_must(cudaMemcpyAsync(to, from, count * sizeof(T), kind, stream), "copying");
}

void drum_device_free(void *memory) { drum_cuda_must(cudaFree(memory), "freeing"); }

/* As drum_state, on the device. */
struct drum_device_state {
    float *pos, *vel, *spin, *sums;
    int32_t *id;
};

drum_device_state drum_device_state_new(size_t n)
{
    drum_device_state state = {};
    state.pos = drum_device_array<float>(4 * n);
    state.vel = drum_device_array<float>(4 * n);
    state.spin = drum_device_array<float>(4 * n);
    state.id = drum_device_array<int32_t>(n);
    return state;
}

void drum_device_state_free(drum_device_state *state)
{
    drum_device_free(state->pos);
    drum_device_free(state->vel);
    drum_device_free(state->spin);
    drum_device_free(state->id);
}

struct drum_gpu {
    const drum_options *options;
    drum_setup *setup;
    dem_system system;          /* its arrays are those of state, and device copies of the mesh */
    drum_device_state state, spare; /* spare: for sorting */
    float *rest, *now;          /* [3 * vertices] the drum, as in the file and turned */
    int32_t *indices;
    ugrid_desc grid_desc;
    nlist_desc pairs_desc, walls_desc;
    ugrid_cuda grid;
    lbvh_cuda tree;
    nlist_cuda pairs, walls;
    cudaStream_t stream;
    int64_t step;
    cudaEvent_t event[DRUM_STAGES + 1], sort[2], begin, end; /* event[k], event[k + 1]: around part k of a step */
    drum_times spent;           /* seconds: the parts of `sampled` steps, and all of `counted` */
    int64_t sampled, counted, sorts;
    drum_state host;            /* what drum_gpu_look shows */
    nlist host_pairs;
};

void drum_gpu_events(drum_gpu *run)
{
    cudaEvent_t *const single[] = {&run->sort[0], &run->sort[1], &run->begin, &run->end};
    for (cudaEvent_t &event : run->event) drum_cuda_must(cudaEventCreate(&event), "an event");
    for (cudaEvent_t *event : single) drum_cuda_must(cudaEventCreate(event), "an event");
}

/* The arrays of the system are wherever the last sort has left them. */
void drum_gpu_use(drum_gpu *run)
{
    run->system.pos = run->state.pos;
    run->system.vel = run->state.vel;
    run->system.spin = run->state.spin;
}

void drum_gpu_set_spheres(drum_gpu *run, const drum_state *start)
{
    size_t const n = static_cast<size_t>(start->n);
    run->state = drum_device_state_new(n);
    run->spare = drum_device_state_new(n);
    run->state.sums = run->spare.sums = drum_device_array<float>(DEM_SUMS * n); /* made anew in each step: never sorted */
    drum_copy(run->state.pos, start->pos, 4 * n, cudaMemcpyHostToDevice, run->stream);
    drum_copy(run->state.vel, start->vel, 4 * n, cudaMemcpyHostToDevice, run->stream);
    drum_copy(run->state.spin, start->spin, 4 * n, cudaMemcpyHostToDevice, run->stream);
    drum_copy(run->state.id, start->id, n, cudaMemcpyHostToDevice, run->stream);
    drum_cuda_must(cudaStreamSynchronize(run->stream), "copying the spheres");
    drum_gpu_use(run);
}

void drum_gpu_set_mesh(drum_gpu *run, const drum_mesh *mesh)
{
    size_t const floats = 3 * static_cast<size_t>(mesh->vertices), corners = 3 * static_cast<size_t>(mesh->triangles);
    run->rest = drum_device_array<float>(floats);
    run->now = drum_device_array<float>(floats);
    run->indices = drum_device_array<int32_t>(corners);
    drum_copy(run->rest, mesh->rest, floats, cudaMemcpyHostToDevice, run->stream);
    drum_copy(run->now, mesh->rest, floats, cudaMemcpyHostToDevice, run->stream);
    drum_copy(run->indices, mesh->indices, corners, cudaMemcpyHostToDevice, run->stream);
    run->system.mesh.vertices = run->now;
    run->system.mesh.indices = run->indices;
    lbvh_desc const desc = drum_tree_desc(&run->system.mesh);
    drum_must_tree(lbvh_cuda_build(&run->tree, &desc, run->now, 0, mesh->triangles, run->stream), "the tree over the drum");
    drum_must_tree(lbvh_cuda_check(&run->tree, run->stream), "the tree over the drum");
}

/* All memory that steps need: after this they take none, until a check finds that a list is nearly full. */
void drum_gpu_reserve(drum_gpu *run, int32_t n)
{
    int32_t const values = run->options->deterministic ? DEM_SUMS : 0;
    drum_must_grid(ugrid_cuda_reserve(&run->grid, &run->grid_desc, n, run->stream), "memory for the grid");
    drum_must_list(nlist_cuda_reserve(&run->pairs, &run->pairs_desc, n, values, run->stream), "memory for the list of pairs");
    drum_must_list(nlist_cuda_reserve(&run->walls, &run->walls_desc, n, values, run->stream), "memory for the list of triangles");
}

void drum_gpu_new(drum_gpu *run, const drum_options *o, drum_setup *setup, const drum_state *start)
{
    *run = drum_gpu();
    run->options = o;
    run->setup = setup;
    run->system = setup->system;
    run->grid_desc = setup->grid;
    run->pairs_desc = setup->pairs;
    run->walls_desc = setup->walls;
    run->pairs_desc.if_moved = o->skin > 0;
    run->walls_desc.capacity = static_cast<int64_t>(start->n) + 1024; /* most spheres touch no wall */
    drum_cuda_must(cudaStreamCreateWithFlags(&run->stream, cudaStreamNonBlocking), "no GPU to run on");
    drum_gpu_events(run);
    drum_gpu_set_spheres(run, start);
    drum_gpu_set_mesh(run, &setup->mesh);
    drum_gpu_reserve(run, start->n);
    run->host = drum_state_new(start->n);
}

void drum_gpu_free(drum_gpu *run)
{
    ugrid_cuda_free(&run->grid);
    lbvh_cuda_free(&run->tree);
    nlist_cuda_free(&run->pairs);
    nlist_cuda_free(&run->walls);
    nlist_free(&run->host_pairs);
    drum_device_free(run->state.sums);
    drum_device_state_free(&run->state);
    drum_device_state_free(&run->spare);
    drum_device_free(run->rest);
    drum_device_free(run->now);
    drum_device_free(run->indices);
    for (cudaEvent_t event : run->event) drum_cuda_must(cudaEventDestroy(event), "an event");
    for (cudaEvent_t event : run->sort) drum_cuda_must(cudaEventDestroy(event), "an event");
    drum_cuda_must(cudaEventDestroy(run->begin), "an event");
    drum_cuda_must(cudaEventDestroy(run->end), "an event");
    drum_cuda_must(cudaStreamDestroy(run->stream), "the stream");
    drum_state_free(&run->host);
}

/* ------------------------------------------------------------------------------------------------
   >>step: the parts of drum.c, under the same names
   ------------------------------------------------------------------------------------------------ */

void drum_gpu_move(drum_gpu *run) { drum_launch(run->stream, run->system.n, drum_move_kernel, run->system, run->state.sums); }

void drum_gpu_grid(drum_gpu *run)
{
    drum_must_grid(ugrid_cuda_build(&run->grid, &run->grid_desc, run->state.pos, DEM_STRIDE, run->system.n, run->stream),
                   "building the grid");
}

void drum_gpu_gather(drum_gpu *run, const void *from, size_t bytes, void *to)
{
    drum_must_grid(ugrid_cuda_gather(&run->grid, from, bytes, to, run->stream), "sorting the spheres");
}

/* Near spheres come to lie near each other in memory; both lists follow. */
void drum_gpu_sort(drum_gpu *run)
{
    drum_device_state const old = run->state;
    drum_gpu_grid(run);
    drum_gpu_gather(run, old.pos, DEM_STRIDE, run->spare.pos);
    drum_gpu_gather(run, old.vel, DEM_STRIDE, run->spare.vel);
    drum_gpu_gather(run, old.spin, DEM_STRIDE, run->spare.spin);
    drum_gpu_gather(run, old.id, sizeof *old.id, run->spare.id);
    const int32_t *new_id = run->grid.device.grid.inverse;
    drum_must_list(nlist_cuda_remap(&run->pairs, new_id, run->system.n, run->stream), "renaming spheres in the list of pairs");
    drum_must_list(nlist_cuda_remap(&run->walls, new_id, run->system.n, run->stream), "renaming spheres in the list of triangles");
    run->state = run->spare;
    run->spare = old;
    drum_gpu_use(run);
}

void drum_gpu_triangles(drum_gpu *run)
{
    double const angle = drum_angle(run->setup, run->step);
    drum_launch(run->stream, run->system.mesh.vertex_count, drum_turn_kernel, run->system.mesh.vertex_count, run->rest,
                static_cast<float>(cos(angle)), static_cast<float>(sin(angle)), run->now);
    drum_must_tree(lbvh_cuda_refit(&run->tree, run->now, 0, run->stream), "refitting the tree");
}

void drum_gpu_collect_triangles(drum_gpu *run)
{
    drum_must_list(nlist_cuda_build_mesh(&run->walls, &run->walls_desc, &run->tree, &run->system.mesh, run->state.pos, DEM_STRIDE,
                                         run->system.n, run->stream), "collecting triangles");
}

/* With a skin the device decides by itself whether the last list still serves. */
void drum_gpu_collect_spheres(drum_gpu *run)
{
    if (run->pairs_desc.skin > 0)
        drum_must_list(nlist_cuda_moved(&run->pairs, run->state.pos, DEM_STRIDE, run->stream), "the skin");
    drum_must_list(
        nlist_cuda_build_ugrid(&run->pairs, &run->pairs_desc, &run->grid, run->state.pos, DEM_STRIDE, run->system.n, run->stream),
        "collecting spheres");
}

void drum_gpu_push_triangles(drum_gpu *run)
{
    size_t const bytes = DEM_SUMS * static_cast<size_t>(run->system.n) * sizeof(float);
    drum_cuda_must(cudaMemsetAsync(run->state.sums, 0, bytes, run->stream), "clearing");
    drum_must_list(
        nlist_cuda_sum<DEM_SUMS>(&run->walls, &run->setup->wall_sums, dem_triangle_op{run->system}, run->state.sums, run->stream),
        "forces of the drum");
}

void drum_gpu_push_spheres(drum_gpu *run)
{
    drum_must_list(
        nlist_cuda_sum<DEM_SUMS>(&run->pairs, &run->setup->pair_sums, dem_spheres_op{run->system}, run->state.sums, run->stream),
        "forces of spheres");
}

/* The end of a part; `timed`: its time is wanted. */
void drum_mark(drum_gpu *run, bool timed, int stage)
{
    if (timed) drum_cuda_must(cudaEventRecord(run->event[stage + 1], run->stream), "timing");
}

/* Lists and forces for the spheres as they lie. */
void drum_gpu_look_around(drum_gpu *run, bool timed)
{
    drum_gpu_triangles(run);
    drum_mark(run, timed, DRUM_TRIANGLES);
    drum_gpu_grid(run);
    drum_mark(run, timed, DRUM_GRID);
    drum_gpu_collect_triangles(run);
    drum_mark(run, timed, DRUM_FIND_TRIANGLES);
    drum_gpu_collect_spheres(run);
    drum_mark(run, timed, DRUM_FIND_SPHERES);
    drum_gpu_push_triangles(run);
    drum_mark(run, timed, DRUM_PUSH_TRIANGLES);
    drum_gpu_push_spheres(run);
    drum_mark(run, timed, DRUM_PUSH_SPHERES);
}

/* Puts one step into the stream. */
void drum_gpu_step(drum_gpu *run, bool timed)
{
    run->step++;
    drum_mark(run, timed, -1);
    drum_gpu_move(run);
    drum_mark(run, timed, DRUM_MOVE);
    if (drum_sorts(run->options, run->step)) {
        drum_cuda_must(cudaEventRecord(run->sort[0], run->stream), "timing");
        drum_gpu_sort(run);
        drum_cuda_must(cudaEventRecord(run->sort[1], run->stream), "timing");
    }
    drum_mark(run, timed, DRUM_SORT);
    drum_gpu_look_around(run, timed);
}

/* ------------------------------------------------------------------------------------------------
   >>engine: what drum_run in drum.h calls
   ------------------------------------------------------------------------------------------------ */

double drum_seconds(cudaEvent_t from, cudaEvent_t to)
{
    float milliseconds = 0;
    drum_cuda_must(cudaEventElapsedTime(&milliseconds, from, to), "timing");
    return 1e-3 * static_cast<double>(milliseconds);
}

/* Memory is added while there is still some left: a list that was full for a step has lost contacts, and the run is worth
   nothing. */
void drum_make_room(nlist_cuda *gpu, nlist_desc *desc)
{
    const nlist_rows *rows = &gpu->device.list.rows[gpu->device.list.current];
    if (rows->entries > rows->capacity - rows->capacity / 4) desc->capacity = rows->capacity + rows->capacity / 2;
}

/* Waits for the steps, and looks at what they met. */
void drum_gpu_inspect(drum_gpu *run)
{
    nlist_result const pairs = nlist_cuda_check(&run->pairs, run->stream), walls = nlist_cuda_check(&run->walls, run->stream);
    if (pairs == NLIST_NOT_FINITE || walls == NLIST_NOT_FINITE)
        drum_stop(1, "the run became unstable: a position is no number (a smaller --dt may help)");
    if (pairs == NLIST_ROW_FULL)
        drum_stop(1, "a sphere has %ld partners, and room for %ld: run again with --width %ld",
                  static_cast<long>(run->pairs.device.list.needed_width), static_cast<long>(run->pairs_desc.width),
                  static_cast<long>(run->pairs.device.list.needed_width + 2));
    if (pairs == NLIST_LIST_FULL || walls == NLIST_LIST_FULL)
        drum_stop(1, "a list grew too fast: run again with a smaller --check-every");
    drum_must_list(pairs, "the list of pairs");
    drum_must_list(walls, "the list of triangles");
    drum_must_grid(ugrid_cuda_check(&run->grid, run->stream), "the grid");
    drum_must_tree(lbvh_cuda_check(&run->tree, run->stream), "the tree");
    drum_make_room(&run->pairs, &run->pairs_desc);
    drum_make_room(&run->walls, &run->walls_desc);
}

/* Lists and forces at the start, where nothing is known yet of how long the lists will be: they may take what they need. */
void drum_gpu_begin(drum_gpu *run)
{
    run->pairs_desc.grow = run->walls_desc.grow = 1;
    drum_gpu_look_around(run, false);
    drum_gpu_inspect(run);
    run->pairs_desc.grow = run->walls_desc.grow = 0;
}

/* The step in the middle is timed part by part: by then the GPU has work waiting, and no part waits for the host; and where sorts
   and checks come equally often the spheres are neither just sorted nor about to be. */
void drum_gpu_advance(void *user, int32_t steps)
{
    drum_gpu *run = static_cast<drum_gpu *>(user);
    bool sorted = false;
    drum_cuda_must(cudaEventRecord(run->begin, run->stream), "timing");
    for (int32_t k = 0; k < steps; k++) {
        drum_gpu_step(run, k == steps / 2);
        sorted = sorted || drum_sorts(run->options, run->step);
    }
    drum_cuda_must(cudaEventRecord(run->end, run->stream), "timing");
    drum_gpu_inspect(run);
    for (int k = 0; k < DRUM_STAGES; k++)
        if (k != DRUM_SORT) run->spent.stage[k] += drum_seconds(run->event[k], run->event[k + 1]);
    if (sorted) run->spent.stage[DRUM_SORT] += drum_seconds(run->sort[0], run->sort[1]);
    run->spent.step += drum_seconds(run->begin, run->end);
    run->sorts += sorted;
    run->sampled++;
    run->counted += steps;
}

const drum_state *drum_gpu_look(void *user)
{
    drum_gpu *run = static_cast<drum_gpu *>(user);
    size_t const n = static_cast<size_t>(run->system.n);
    drum_copy(run->host.pos, run->state.pos, 4 * n, cudaMemcpyDeviceToHost, run->stream);
    drum_copy(run->host.vel, run->state.vel, 4 * n, cudaMemcpyDeviceToHost, run->stream);
    drum_copy(run->host.spin, run->state.spin, 4 * n, cudaMemcpyDeviceToHost, run->stream);
    drum_copy(run->host.sums, run->state.sums, DEM_SUMS * n, cudaMemcpyDeviceToHost, run->stream);
    drum_copy(run->host.id, run->state.id, n, cudaMemcpyDeviceToHost, run->stream);
    drum_cuda_must(cudaStreamSynchronize(run->stream), "fetching the spheres");
    return &run->host;
}

const nlist *drum_gpu_pairs(void *user)
{
    drum_gpu *run = static_cast<drum_gpu *>(user);
    drum_must_list(nlist_cuda_download(&run->host_pairs, &run->pairs, run->stream), "fetching the list of pairs");
    return &run->host_pairs;
}

int64_t drum_gpu_entries(void *user) { return static_cast<drum_gpu *>(user)->pairs.device.list.total; }

drum_times drum_gpu_times(void *user)
{
    const drum_gpu *run = static_cast<const drum_gpu *>(user);
    drum_times times = run->spent;
    for (int k = 0; k < DRUM_STAGES; k++) {
        int64_t const count = k == DRUM_SORT ? run->sorts : run->sampled;
        times.stage[k] /= count ? static_cast<double>(count) : 1;
    }
    times.step /= run->counted ? static_cast<double>(run->counted) : 1;
    return times;
}

drum_engine drum_gpu_engine(drum_gpu *run)
{
    drum_engine engine;
    engine.user = run;
    engine.stride = run->options->check_every;
    engine.advance = drum_gpu_advance;
    engine.look = drum_gpu_look;
    engine.pairs = drum_gpu_pairs;
    engine.entries = drum_gpu_entries;
    engine.times = drum_gpu_times;
    return engine;
}

/* ------------------------------------------------------------------------------------------------
   >>check: the same few steps here and there, from the state at the end of the run, with its lists and their history
   ------------------------------------------------------------------------------------------------ */

/* The GPU fuses multiplications with additions and adds forces in another order. Contacts are so stiff that a position rounded in
   its last bit shows in the force; after 5 steps all that stays far below: */
constexpr int drum_check_steps = 5;
constexpr double drum_check_positions = 1e-4;   /* radii */
constexpr double drum_check_speeds = 2e-3;      /* of the speed after a fall of a quarter of the drum */

/* The largest difference of two arrays whose spheres come in different orders. */
double drum_largest_difference(const drum_state *a, const float *values_a, const drum_state *b, const float *values_b)
{
    int32_t *place = static_cast<int32_t *>(drum_alloc(static_cast<size_t>(a->n), sizeof(int32_t)));
    double largest = 0;
    for (int32_t i = 0; i < b->n; i++) place[b->id[i]] = i;
    for (int32_t i = 0; i < a->n; i++)
        for (int c = 0; c < 3; c++) {
            double const x = values_a[4 * static_cast<size_t>(i) + c], y = values_b[4 * static_cast<size_t>(place[a->id[i]]) + c];
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
    drum_must_list(nlist_cuda_download(&serial.pairs, &run->pairs, run->stream), "fetching the list of pairs");
    drum_must_list(nlist_cuda_download(&serial.walls, &run->walls, run->stream), "fetching the list of triangles");
    run->options = &own;
    drum_serial_advance(&serial, drum_check_steps);
    drum_gpu_advance(run, drum_check_steps);
    run->options = o;
    const drum_state *found = drum_gpu_look(run), *expected = &serial.state;
    double const radius = setup->radius, speed = drum_top_speed(&setup->mesh), dt = setup->system.dt;
    double const moved = drum_largest_difference(&before, before.pos, expected, expected->pos) / radius;
    double const position = drum_largest_difference(expected, expected->pos, found, found->pos) / radius;
    double const velocity = drum_largest_difference(expected, expected->vel, found, found->vel) / speed;
    double const spin = drum_largest_difference(expected, expected->spin, found, found->spin) * radius / speed;
    bool const agree = position <= drum_check_positions && velocity <= drum_check_speeds && spin <= drum_check_speeds;
    printf("reference_steps %d\nreference_moved %.3e\nreference_time %.3e\n", drum_check_steps, moved, drum_check_steps * dt);
    printf("reference_position %.3e\nreference_velocity %.3e\nreference_spin %.3e\nreference_agrees %d\n", position, velocity, spin,
           agree);
    drum_serial_free(&serial);
    drum_state_free(&before);
    return agree;
}

/* ------------------------------------------------------------------------------------------------
   >>source: Kureck's figures, on a GeForce GTX Titan X (Maxwell): 10 million spheres, 4.3 neighbours each, settled, no history
   ------------------------------------------------------------------------------------------------ */

struct drum_source { const char *table; double ms[DRUM_STAGES], steps_per_s; };

/* In the order of DRUM_MOVE .. DRUM_PUSH_SPHERES; 0: not told. Integration "about 8 ms", the grid "between 11 ms and 13 ms". */
const drum_source drum_table_6_8 = {"table 6.8", {8, 0, 2.5, 12, 11.75, 16.1, 1, 19.6}, 13.4};
const drum_source drum_table_6_10 = {"table 6.10", {8, 0, 2.5, 12, 15, 216, 1.2, 103}, 2.8};
constexpr int32_t drum_source_spheres = 10000000;

/* What is there for this number of spheres; else NULL. Sorting now and then is in his figure 6.9 only. */
const drum_source *drum_source_for(int32_t n, int32_t sort_every, bool in_order)
{
    if (n != drum_source_spheres || sort_every > 1) return nullptr;
    if (sort_every == 1) return &drum_table_6_8;
    return in_order ? nullptr : &drum_table_6_10;
}

void drum_print_beside(const drum_times *t, const drum_source *from)
{
    printf("beside %s (4.3 neighbours, settled, no history; Titan X Maxwell), in ms:\n", from->table);
    for (int k = 0; k < DRUM_STAGES; k++)
        if (from->ms[k] > 0) printf("  %-28s %9.4f   source %7.4g\n", drum_stage_names[k], 1e3 * t->stage[k], from->ms[k]);
    printf("  %-28s %9.1f   source %7.3g\n", "steps/s", 1 / t->step, from->steps_per_s);
}

/* ------------------------------------------------------------------------------------------------
   >>curves: --curves FILE
   ------------------------------------------------------------------------------------------------ */

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

/* A line of a CSV file as tests/bench/bench.h has them. */
void drum_put_row(FILE *file, const char *workload, const char *curve, const char *what, int64_t n, double ms, double peer_ms,
                  double value, const char *unit)
{
    fprintf(file, "drum,drum,%s,\"%s: %s\",%lld,%.6g,0,0,0,%.6g,%.6g,%s\n", workload, curve, what, static_cast<long long>(n), ms,
            peer_ms, value, unit);
}

/* The parts of a step, and the whole. */
void drum_put_stages(FILE *file, const drum_options *o, const drum_curve *curve, const drum_times *t, const drum_source *from)
{
    for (int k = 0; k < DRUM_STAGES; k++)
        if (k != DRUM_SORT || curve->sort_every > 0)
            drum_put_row(file, "stages", curve->name, drum_stage_names[k], o->n, 1e3 * t->stage[k], from ? from->ms[k] : 0, 0, "");
    drum_put_row(file, "stages", curve->name, "whole step", o->n, 1e3 * t->step, from ? 1e3 / from->steps_per_s : 0, 0, "");
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
        double const seconds = static_cast<double>(run->setup->system.dt) * static_cast<double>(run->step - begin);
        double const ms = 1e3 * (run->spent.step - before) / stride;
        drum_put_row(file, "time", curve->name, "step", run->step - begin, ms, 0, seconds, "s");
    }
    return drum_gpu_times(run);
}

/* MiB of all memory that the GPU has given away. */
double drum_memory()
{
    size_t free = 0, total = 0;
    drum_cuda_must(cudaMemGetInfo(&free, &total), "asking for memory");
    return static_cast<double>(total - free) / 1048576;
}

void drum_all_curves(drum_gpu *run, const drum_options *o, const char *path)
{
    FILE *file = drum_create(path);
    fprintf(file, "program,group,workload,method,n,ms,M_per_s,floor_ms,bar_ms,peer_ms,value,unit\n");
    for (const drum_curve &curve : drum_curves) {
        drum_options own = *o;
        own.sort_every = curve.sort_every;
        run->options = &own;
        drum_times const times = drum_run_curve(run, &own, &curve, file);
        const drum_source *from = drum_source_for(o->n, curve.sort_every, curve.sorted || !o->shuffle);
        printf("%s: ", curve.name);
        drum_print_times(&own, &times);
        if (from) drum_print_beside(&times, from);
        drum_put_stages(file, o, &curve, &times, from);
    }
    run->options = o;
    drum_put_row(file, "memory", "all", "GPU memory in use", o->n, 0, 0, drum_memory(), "MiB");
    drum_put_row(file, "memory", "all", "entries of the list of pairs", o->n, 0, 0,
                 static_cast<double>(drum_gpu_entries(run)) / o->n, "of each");
    drum_close(file, path);
}

/* Takes --curves FILE out of the command line. */
const char *drum_take_curves(int *argc, char **argv)
{
    for (int k = 1; k < *argc; k++) {
        if (strcmp(argv[k], "--curves") != 0) continue;
        if (k + 1 == *argc) drum_stop(2, "--curves needs a file");
        const char *file = argv[k + 1];
        for (int m = k; m + 2 <= *argc; m++) argv[m] = argv[m + 2]; /* the NULL at the end, too */
        *argc -= 2;
        return file;
    }
    return nullptr;
}

/* As drum.c; with 10 million spheres, beside the source. */
void drum_run_to_the_end(drum_gpu *run, const drum_options *o, drum_setup *setup)
{
    drum_engine const engine = drum_gpu_engine(run);
    const drum_source *from = drum_source_for(o->n, o->sort_every > 0, !o->shuffle);
    drum_run(o, setup, &engine);
    drum_finish(o, setup, &engine);
    drum_times const times = drum_gpu_times(run);
    if (from && !o->check && o->steps) drum_print_beside(&times, from);
}

} // namespace

int main(int argc, char **argv)
{
    const char *curves = drum_take_curves(&argc, argv);
    drum_options options = drum_parse(argc, argv);
    if (curves && options.sort_every == 0) options.sort_every = 1; /* the grid must be ready to sort */
    drum_setup setup = drum_setup_new(&options);
    drum_state start = drum_start(&options, &setup.mesh, setup.radius, setup.mass);
    drum_gpu run;
    drum_gpu_new(&run, &options, &setup, &start);
    drum_state_free(&start);
    drum_gpu_begin(&run);
    if (curves) drum_all_curves(&run, &options, curves);
    else drum_run_to_the_end(&run, &options, &setup);
    bool const agree = !options.check || drum_check(&options, &setup, &run);
    drum_gpu_free(&run);
    drum_mesh_free(&setup.mesh);
    return agree ? 0 : 1;
}
