/* bench_nlist.cu - how fast is cuda/nlist.cu on this GPU? README.md in this folder explains the
   tables.
   SPDX-License-Identifier: MIT OR Unlicense

       make bench-cuda                                       all of it, about a minute on an H200
       build/cuda/bench_nlist --only width,history --quick --csv nlist.csv
       build/cuda/bench_nlist --only width --n 100000000     the source's largest case
       build/cuda/bench_nlist --only settled --n 100000000 --runs 2      and as it was, settled
       build/cuda/bench_nlist --small      does it work at all? (also on the emulator)
       groups: width nocontact history sorting tree modes csr half walls; only when named: tablets
       settled scaling largest defaults

   The test cases are those of the source (004: Kureck, section 6.3), whose figures stand beside
   ours: measured on a GeForce GTX Titan X (Maxwell) with CUDA 7.5. His spheres had settled; ours
   are (but in group settled) a dense lattice (face-centred cubic), where each sphere swings about
   its site, with random phases, and the radius is chosen so that the mean number of neighbours is
   that of the source. So contacts begin and end all the time, and every step is like every
   other. */

#define UGRID_STATIC
#define UGRID_IMPLEMENTATION
#define UGRID_CUDA
#include "ugrid.h"
#define LBVH_STATIC
#define LBVH_IMPLEMENTATION
#define LBVH_CUDA
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#define NLIST_CUDA
#include "nlist.h"
#include "examples/common/dem.h"
#include "tests/bench/bench_gpu.h"
#include "tests/bench/defaults_gpu.h"
#include "tests/bench/plain_mesh_grid.h"
#include "tests/bench/scaling_gpu.h"
#include "tests/common/workloads.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

namespace {

void must(ugrid_result result)
{
    if (result == UGRID_OK) return;
    std::printf("%s\n", ugrid_result_text(result));
    std::exit(1);
}

void must(lbvh_result result)
{
    if (result == LBVH_OK) return;
    std::printf("%s\n", lbvh_result_text(result));
    std::exit(1);
}

void must(nlist_result result)
{
    if (result == NLIST_OK) return;
    std::printf("%s\n", nlist_result_text(result));
    std::exit(1);
}

/* Each is freed at the end of its scope. */
struct gpu_grid {
    ugrid_cuda gpu = {};
    gpu_grid() = default;
    gpu_grid(const gpu_grid &) = delete;
    ~gpu_grid() { ugrid_cuda_free(&gpu); }
};

struct gpu_tree {
    lbvh_cuda gpu = {};
    gpu_tree() = default;
    gpu_tree(const gpu_tree &) = delete;
    ~gpu_tree() { lbvh_cuda_free(&gpu); }
};

struct gpu_list {
    nlist_cuda gpu = {};
    gpu_list() = default;
    gpu_list(const gpu_list &) = delete;
    ~gpu_list() { nlist_cuda_free(&gpu); }
};

template <class T>
T fetch(const T *d_value)
{
    T value;
    must(cudaMemcpyAsync(&value, d_value, sizeof value, cudaMemcpyDeviceToHost, stream));
    must(cudaStreamSynchronize(stream));
    return value;
}

template <class Block, int Count>
double bytes_in(const Block (&blocks)[Count])
{
    double sum = 0;
    for (const Block &block : blocks) sum += static_cast<double>(block.bytes);
    return sum;
}

/* ---- spheres --------------------------------------------------------------------------------- */

constexpr float pi = 3.14159265f;
/* the lattice's cubes; the nearest sites are 1 apart */
constexpr float half_diagonal = 0.70710678f;
/* of a sphere about its site, along each axis */
constexpr float swing = 0.03f;
constexpr float pace = 2 * pi / 100;                    /* of the swinging: 100 steps to and fro */
constexpr float apart = 0.9f;                           /* a diameter without contacts */
constexpr double stiffness = 1000;

struct spheres {
    std::string name;
    int32_t n, side;
    /* a sphere's diameter: those that are no further apart touch. 0: radii of their own */
    float contact;
    float edge;                 /* they are in the cube 0 .. edge */
    bool swinging;
    /* as dem.h has them; spin[3]: the sphere's number, which is its site */
    device_array<float> pos, vel, spin;
    float wide[3] = {0, 0, 0};  /* along an axis where the box is no cube; else 0 */
};

/* Site `number` of a face-centred cubic lattice: integers x, y, z whose sum is even, in rows along
   x. */
__device__ void site_of(int32_t number, int32_t side, float p[3])
{
    int32_t const x = number % side, y = number / side % (2 * side), z = number / side / (2 * side);
    p[0] = 0.5f + half_diagonal * static_cast<float>(2 * x + (y + z) % 2);
    p[1] = 0.5f + half_diagonal * static_cast<float>(y);
    p[2] = 0.5f + half_diagonal * static_cast<float>(z);
}

__device__ float phase_of(int32_t number, int a)
{
    return static_cast<float>(hash(3 * static_cast<uint32_t>(number) + static_cast<uint32_t>(a))) *
           (2 * pi / 4294967296.0f);
}

/* Somewhere on its way about the site; a turn of its own; mass 1. */
__global__ void start_kernel(float *pos, float *vel, float *spin, int32_t n, int32_t side,
                             float size)
{
    int64_t const i = thread_index();
    float p[3];
    if (i >= n) return;
    site_of(static_cast<int32_t>(i), side, p);
    for (int a = 0; a < 3; a++) {
        float const phase = phase_of(static_cast<int32_t>(i), a);
        pos[4 * i + a] = p[a] + size * sinf(phase);
        vel[4 * i + a] = size * pace * cosf(phase);
        spin[4 * i + a] = 0.1f * (phase - pi);
    }
    pos[4 * i + 3] = 0;
    vel[4 * i + 3] = 1;
    spin[4 * i + 3] = __int_as_float(static_cast<int32_t>(i));
}

__global__ void radius_kernel(float *pos, int32_t n, float radius)
{
    int64_t const i = thread_index();
    if (i < n) pos[4 * i + 3] = radius;
}

ugrid_desc cells_of(const spheres &s, float cell)
{
    ugrid_desc desc = {};
    for (int a = 0; a < 3; a++) desc.max[a] = s.wide[a] > 0 ? s.wide[a] : s.edge;
    desc.cell = cell;
    return desc;
}

int64_t pairs_in(gpu_grid &grid, float radius)
{
    device_array<int64_t> pairs(1);
    must(ugrid_cuda_count_pairs(&grid.gpu, radius, pairs.data, stream));
    return pairs.download()[0];
}

/* The diameter at which a sphere has as many neighbours on average. Nearest sites are 1 apart, the
   next 1.41. */
float find_contact(const spheres &s, double neighbors, float high = 1.2f)
{
    gpu_grid grid;
    ugrid_desc const desc = cells_of(s, high);
    float low = 0.9f;
    must(ugrid_cuda_build(&grid.gpu, &desc, s.pos.data, DEM_STRIDE, s.n, stream));
    for (int k = 0; k < 16; k++) {
        float const middle = 0.5f * (low + high);
        if (2 * static_cast<double>(pairs_in(grid, middle)) > neighbors * s.n) high = middle;
        else low = middle;
    }
    return low;
}

/* neighbors 0: at rest on their sites, without contacts. */
spheres make_spheres(int32_t n, double neighbors)
{
    std::size_t const numbers = 4 * static_cast<std::size_t>(n);
    spheres s = {"",
                 n,
                 wl_side(n, 4, 1),
                 apart,
                 0,
                 neighbors > 0,
                 device_array<float>(numbers),
                 device_array<float>(numbers),
                 device_array<float>(numbers)};
    s.edge = 1 + half_diagonal * static_cast<float>(2 * s.side - 1);
    launch(n, start_kernel, s.pos.data, s.vel.data, s.spin.data, n, s.side, s.swinging ? swing : 0);
    if (s.swinging) s.contact = find_contact(s, neighbors);
    launch(n, radius_kernel, s.pos.data, n, s.contact / 2);
    s.name = (s.swinging ? "packed-" : "lattice-") + size_name(n);
    return s;
}

/* ---- a time step ----------------------------------------------------------------------------- */

/* As dem_move, with two differences: contacts do not push (feel is 0, which the compiler does not
   know), and each sphere is tied to its site. So it does all of a step's reading and writing, and
   the packing stays what it is. */
__global__ void move_kernel(__grid_constant__ const dem_system s, const float *sums, int32_t side,
                            float speed, float feel)
{
    int64_t const i = thread_index();
    if (i >= s.n) return;
    float4 *const pos = reinterpret_cast<float4 *>(s.pos), *const vel =
                                                               reinterpret_cast<float4 *>(s.vel);
    float4 *const spin = reinterpret_cast<float4 *>(s.spin);
    float4 p = pos[i], v = vel[i], w = spin[i];
    const float *const sum = sums + DEM_SUMS * i;
    float site[3];
    site_of(__float_as_int(w.w), side, site);
    v.x += feel * sum[0] - speed * pace * pace * (p.x - site[0]);
    v.y += feel * sum[1] - speed * pace * pace * (p.y - site[1]);
    v.z += feel * sum[2] - speed * pace * pace * (p.z - site[2]);
    w.x += feel * sum[3];
    w.y += feel * sum[4];
    w.z += feel * sum[5];
    p.x += speed * v.x;
    p.y += speed * v.y;
    p.z += speed * v.z;
    pos[i] = p;
    vel[i] = v;
    spin[i] = w;
}

dem_system system_of(const spheres &s)
{
    dem_system system = {};
    system.n = s.n;
    system.pos = s.pos.data;
    system.vel = s.vel.data;
    system.spin = s.spin.data;
    system.between = system.walls = dem_material_of(stiffness, 0.7, 0.3, 0.3);
    system.dt = static_cast<float>(dem_contact_time(&system.between, 0.5) / 50);
    return system;
}

/* Without a list: the force as a functor for ugrid_cuda_sum, which finds the neighbours and adds up
   in one go. */
struct six {
    float x[DEM_SUMS];
    __device__ six &operator+=(const six &other)
    {
        for (int v = 0; v < DEM_SUMS; v++) x[v] += other.x[v];
        return *this;
    }
};

struct direct_op {
    dem_system system;
    __device__ six operator()(const ugrid_contact &contact) const
    {
        six own = {}, other = {};
        dem_spheres(&system, contact.i, contact.j, nullptr, own.x, other.x);
        return own;
    }
};

/* The parts of a time step. */
struct stepper {
    spheres &s;
    ugrid_desc cells;
    gpu_grid grid;
    lbvh_desc nodes = {};
    gpu_tree tree;
    bool by_tree = false;
    nlist_desc desc = {};
    gpu_list list;
    nlist_sums how = {};
    device_array<float> sums, spare;

    explicit stepper(spheres &of)
        : s(of), cells(cells_of(of, of.contact)), sums(DEM_SUMS * static_cast<std::size_t>(of.n)),
          spare(4 * static_cast<std::size_t>(of.n))
    {
        desc.radius = s.contact;
        desc.half = 1;
        nodes.kind = LBVH_POINTS;
        how.values = DEM_SUMS;
    }
    void index()
    {
        if (by_tree) must(lbvh_cuda_build(&tree.gpu, &nodes, s.pos.data, DEM_STRIDE, s.n, stream));
        else must(ugrid_cuda_build(&grid.gpu, &cells, s.pos.data, DEM_STRIDE, s.n, stream));
    }
    void search()
    {
        if (by_tree)
            must(nlist_cuda_build_lbvh(&list.gpu, &desc, &tree.gpu, s.pos.data, DEM_STRIDE, s.n,
                                       stream));
        else
            must(nlist_cuda_build_ugrid(&list.gpu, &desc, &grid.gpu, s.pos.data, DEM_STRIDE, s.n,
                                        stream));
    }
    void clear() { must(cudaMemsetAsync(sums.data, 0, sums.count * sizeof(float), stream)); }
    void forget() /* the next list is the first, and has no history yet */
    {
        nlist_cuda_free(&list.gpu);
        list.gpu = {};
    }
    void forces()
    {
        must(nlist_cuda_sum<DEM_SUMS>(&list.gpu, &how, dem_spheres_op{system_of(s)}, sums.data,
                                      stream));
    }
    void direct() /* sums are overwritten */
    {
        must(ugrid_cuda_sum(&grid.gpu, s.contact, 0, direct_op{system_of(s)},
                            reinterpret_cast<six *>(sums.data), stream));
    }
    void move()
    {
        launch(s.n, move_kernel, system_of(s), sums.data, s.side, s.swinging ? 1.0f : 0.0f, 0.0f);
    }
    void step()
    {
        index();
        search();
        clear();
        forces();
        move();
    }
    void step_without_list()
    {
        index();
        direct();
        move();
    }
    /* Everything of a sphere into the grid's order, and the list follows. */
    void sort()
    {
        for (device_array<float> *data : {&s.pos, &s.vel, &s.spin}) {
            must(ugrid_cuda_gather(&grid.gpu, data->data, DEM_STRIDE, spare.data, stream));
            std::swap(data->data, spare.data);
        }
        if (desc.history)
            must(nlist_cuda_remap(&list.gpu, grid.gpu.device.grid.inverse, s.n, stream));
    }
    /* Memory for all that is there and a little more. */
    void choose(nlist_layout layout, int32_t width, int64_t pairs)
    {
        int64_t const entries = desc.half ? pairs : 2 * pairs;
        desc.layout = layout;
        desc.width = width;
        desc.capacity = layout == NLIST_STATIC ? 0 : entries + entries / 20 + 1024;
    }
    double bytes() const
    {
        return bytes_in(grid.gpu.block) + bytes_in(grid.gpu.scratch) + bytes_in(tree.gpu.block) +
               bytes_in(tree.gpu.scratch) + bytes_in(list.gpu.device.list.block) +
               bytes_in(list.gpu.scratch);
    }
};

/* ---- checks ---------------------------------------------------------------------------------- */

/* Bits of floats that are not negative ascend with them; NaN is above all. */
__global__ void worst_kernel(const float *a, const float *b, int64_t count, unsigned *worst)
{
    int64_t const k = thread_index();
    unsigned bits = k < count ? __float_as_uint(fabsf(b ? a[k] - b[k] : a[k])) : 0;
    for (int distance = 16; distance > 0; distance /= 2) {
        unsigned const other = __shfl_down_sync(0xFFFFFFFFu, bits, distance);
        if (other > bits) bits = other;
    }
    if (threadIdx.x % 32 == 0) atomicMax(worst, bits);
}

/* The largest |a - b|; b may be NULL. */
float worst_of(const float *a, const float *b, std::size_t count)
{
    device_array<unsigned> worst(1);
    must(cudaMemsetAsync(worst.data, 0, sizeof *worst.data, stream));
    launch(static_cast<int64_t>(count), worst_kernel, a, b, static_cast<int64_t>(count),
           worst.data);
    unsigned const bits = worst.download()[0];
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

/* The forces without list or grid, on the CPU, for a few spheres. */
void check_direct(const spheres &s, const device_array<float> &sums)
{
    std::vector<float> pos = s.pos.download(), vel = s.vel.download(), spin = s.spin.download();
    std::vector<float> const got = sums.download();
    dem_system system = system_of(s);
    float worst = 0, most = 0;
    system.pos = pos.data();
    system.vel = vel.data();
    system.spin = spin.data();
    for (int32_t i = 0; i < s.n; i++) {
        float sum[DEM_SUMS] = {};
        for (int32_t j = 0; j < s.n; j++) {
            float other[DEM_SUMS] = {};
            if (j != i) dem_spheres(&system, i, j, nullptr, sum, other);
        }
        for (int v = 0; v < DEM_SUMS; v++) {
            worst = std::fmax(worst, std::fabs(sum[v] - got[DEM_SUMS * static_cast<std::size_t>(i) +
                                                            static_cast<std::size_t>(v)]));
            most = std::fmax(most, std::fabs(sum[v]));
        }
    }
    bench_check(worst <= 1e-4f * most, "forces: not those of the CPU, over all pairs");
}

/* The number of entries is the grid's number of pairs, counted without a list. */
void check_total(stepper &t, const char *what)
{
    if (t.by_tree)
        must(ugrid_cuda_build(&t.grid.gpu, &t.cells, t.s.pos.data, DEM_STRIDE, t.s.n, stream));
    must(nlist_cuda_check(&t.list.gpu, stream));
    int64_t const pairs = pairs_in(t.grid, t.s.contact);
    bench_check_total(t.list.gpu.device.list.total, t.desc.half ? pairs : 2 * pairs, what);
}

/* The list of this moment, and its sums against those found without a list. */
void check_forces(stepper &t, const char *what)
{
    t.index();
    t.search();
    t.clear();
    t.forces();
    check_total(t, what);
    device_array<float> sums(t.sums.count);
    std::swap(sums.data, t.sums.data);
    t.direct();
    float const most = worst_of(t.sums.data, nullptr, sums.count);
    bench_check(worst_of(sums.data, t.sums.data, sums.count) <= 1e-4f * most, what);
    if (t.s.n <= 4096) check_direct(t.s, t.sums);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* A figure of the source, in ms or steps/s; 0: there is none. */
struct source { double ms, steps; const char *where; };

/* What has to move at least, in bytes. */
double search_bytes(const stepper &t, int64_t entries)
{
    return 20.0 * t.s.n + (4.0 + 2 * t.desc.history) * static_cast<double>(entries);
}
double force_bytes(const stepper &t, int64_t entries)
{
    return (48.0 + 4 + 2 * 24) * t.s.n + (4.0 + 2 * t.desc.history) * static_cast<double>(entries);
}
double index_bytes(const stepper &t) { return (16.0 + 20) * t.s.n; }
double step_bytes(const stepper &t, int64_t entries)
{
    return index_bytes(t) + search_bytes(t, entries) + force_bytes(t, entries) +
           (2 * 48.0 + 24 + 24) * t.s.n;
}

void row_of(const char *group, const spheres &s, const std::string &method, double ms, double bytes,
            source from, double base_ms = 0, double bar_ratio = 0)
{
    bench_row_s row = {};
    std::string where = from.where ? from.where : "";
    row.group = group;
    row.workload = s.name.c_str();
    row.method = method.c_str();
    row.n = s.n;
    row.ms = ms;
    row.floor_ms = bytes / copy_speed;
    row.base_ms = base_ms;
    row.bar_ratio = bar_ratio;
    row.peer_ms = from.steps > 0 ? 1000 / from.steps : from.ms;
    if (from.steps > 0) {
        char text[32];
        std::snprintf(text, sizeof text, ": %.3g steps/s", from.steps);
        where += text;
    }
    row.peer = where.c_str();
    bench_row(&row);
    if (method.find("whole step") != std::string::npos && ms > 0)
        std::printf("%20s= %.4g steps/s\n", "", 1000 / ms);
}

source none() { return {0, 0, ""}; }

/* ---- width: tables 6.2 to 6.5 ---------------------------------------------------------------- */

constexpr int widths = 7;
const int32_t width_of[widths] = {0, 1, 2, 4, 8, 16, 32};

struct width_times {
    double search[widths], reduce[widths], particle[widths], contact[widths], rest[widths];
    double steps_reduce[widths], steps_particle[widths], steps_contact[widths];
    double old;     /* steps/s without a list */
};

/* Milliseconds. The source's thread per contact reduces in a warp (sections 5.1, 6.3.1): it is our
   REDUCE. An atomic for each contact, our PER_CONTACT, is not in its tables. */
const width_times table_6_2 = {{1.98, 1.97, 1.92, 1.82, 1.77, 1.78, 1.80},
                               {0, 0.46, 0.74, 1.36, 1.79, 3.46, 5.66},
                               {0, 0.47, 0.75, 1.28, 1.75, 1.83, 1.93},
                               {},
                               {2.50, 2.01, 1.51, 0.70, 0.09, 0, 0},
                               {136, 134, 137, 142, 149, 126, 92},
                               {136, 133, 136, 146, 150, 148, 139},
                               {},
                               60};
const width_times table_6_3 = {
    {194, 193, 190, 182, 176}, {0, 45, 75, 97, 122}, {0, 46, 76, 121, 150}, {},
    {153, 153, 137, 69, 2}, {2.04, 1.85, 1.82, 2.08, 2.19}, {2.04, 1.84, 1.81, 1.91, 2.05}, {}, 0.64
};

/* Tablets. Its forces are theirs. */
const width_times table_6_4 = {{2.88, 2.87, 2.84, 2.72, 2.5, 2.48},
                               {0, 1.36, 2.55, 5.05, 9.5, 17.7},
                               {0, 1.4, 2.65, 5.25, 10.25, 12},
                               {},
                               {8.6, 7.28, 5.9, 3.22, 0.67},
                               {68, 67, 68, 69, 61, 41},
                               {68, 67, 67, 68, 59, 55},
                               {},
                               8.63};
const width_times table_6_5 = {{29, 29.5, 29, 28, 26, 26},
                               {0, 13.5, 25, 49, 92, 175},
                               {0, 13.7, 26, 51, 100, 118},
                               {},
                               {88, 76, 62, 47, 8},
                               {7.37, 7.22, 7.32, 6.91, 6.7, 4.41},
                               {7.37, 7.21, 7.31, 6.84, 6.43, 6},
                               {},
                               0.91};

/* The slots alone: a list of STATIC rows that are too short holds what fitted, and its sums are
   those of a HYBRID list's slots. */
double slots_ms(stepper &t, int32_t width, nlist_mode mode, int64_t pairs)
{
    if (width == 0) return 0;
    t.choose(NLIST_STATIC, width, pairs);
    t.how.mode = mode;
    t.search();
    return gpu_ms([&] { t.forces(); });
}

double steps_per_s(stepper &t, int32_t width, nlist_mode mode, int64_t pairs)
{
    t.choose(NLIST_HYBRID, width, pairs);
    t.how.mode = mode;
    double const ms = gpu_ms([&] { t.step(); });
    check_forces(t, "width");
    return 1000 / ms;
}

void measure_width(spheres &s, int k, int64_t pairs, width_times &times)
{
    int32_t const width = width_of[k];
    stepper t(s);
    t.choose(NLIST_HYBRID, width, pairs);
    t.how.mode = NLIST_REDUCE;
    t.index();
    times.search[k] = gpu_ms([&] { t.search(); });
    double const all = gpu_ms([&] { t.forces(); });
    times.contact[k] = slots_ms(t, width, NLIST_PER_CONTACT, pairs);
    times.particle[k] = slots_ms(t, width, NLIST_PER_PARTICLE, pairs);
    times.reduce[k] = slots_ms(t, width, NLIST_REDUCE, pairs);
    times.rest[k] = all > times.reduce[k] ? all - times.reduce[k] : 0;
    times.steps_contact[k] = steps_per_s(t, width, NLIST_PER_CONTACT, pairs);
    times.steps_particle[k] = steps_per_s(t, width, NLIST_PER_PARTICLE, pairs);
    times.steps_reduce[k] = steps_per_s(t, width, NLIST_REDUCE, pairs);
}

/* Ours as a line, and the source's below, where it has one. steps: values are steps/s, else ms. */
void width_line(const char *group, const spheres &s, const char *name, const double *ours,
                const double *theirs, bool steps)
{
    bench_line(name);
    for (int k = 0; k < widths; k++) {
        std::string const method = std::string(name) + ", width " + std::to_string(width_of[k]);
        bench_row_s row = {};
        row.group = group;
        row.workload = s.name.c_str();
        row.method = method.c_str();
        row.n = s.n;
        row.ms = steps && ours[k] > 0 ? 1000 / ours[k] : ours[k];
        row.peer_ms = theirs && theirs[k] > 0 ? steps ? 1000 / theirs[k] : theirs[k] : 0;
        bench_cell(&row, ours[k]);
    }
    if (!theirs) return;
    bench_line("    source");
    for (int k = 0; k < widths; k++) bench_number(theirs[k], 9);
}

int best_of(const double *steps)
{
    return static_cast<int>(std::max_element(steps, steps + widths) - steps);
}

void width_matrix(const char *group, spheres &s, double neighbors, const width_times *theirs,
                  const char *where)
{
    width_times ours = {};
    gpu_grid grid;
    ugrid_desc const desc = cells_of(s, s.contact);
    must(ugrid_cuda_build(&grid.gpu, &desc, s.pos.data, DEM_STRIDE, s.n, stream));
    int64_t const pairs = pairs_in(grid, s.contact);
    for (int k = 0; k < widths; k++) measure_width(s, k, pairs, ours);
    char title[160];
    std::snprintf(
        title, sizeof title,
        "%s: slots per row of half HYBRID lists, %s, %.2f neighbours (wanted: %.2f); source: %s",
        group, s.name.c_str(), 2.0 * static_cast<double>(pairs) / s.n, neighbors, where);
    bench_matrix(title, "ms; steps/s: whole steps");
    for (int32_t width : width_of) std::printf(" %9d", static_cast<int>(width));
    width_line(group, s, "search", ours.search, theirs->search, false);
    width_line(group, s, "slots, PER_CONTACT", ours.contact, nullptr, false);
    width_line(group, s, "slots, PER_PARTICLE", ours.particle, theirs->particle, false);
    width_line(group, s, "slots, REDUCE", ours.reduce, theirs->reduce, false);
    width_line(group, s, "rest, REDUCE (whole - slots)", ours.rest, theirs->rest, false);
    width_line(group, s, "steps/s, PER_CONTACT", ours.steps_contact, nullptr, true);
    width_line(group, s, "steps/s, PER_PARTICLE", ours.steps_particle, theirs->steps_particle,
               true);
    width_line(group, s, "steps/s, REDUCE", ours.steps_reduce, theirs->steps_reduce, true);
    stepper t(s);
    double const old = gpu_ms([&] { t.step_without_list(); });
    std::printf(
        "\nfastest width: %d (PER_CONTACT), %d (PER_PARTICLE), %d (REDUCE); the source's: 8. ",
        static_cast<int>(width_of[best_of(ours.steps_contact)]),
        static_cast<int>(width_of[best_of(ours.steps_particle)]),
        static_cast<int>(width_of[best_of(ours.steps_reduce)]));
    std::printf("Without a list: %.4g steps/s, the source's old code %.3g\n", 1000 / old,
                theirs->old);
    bench_row_s row = {};
    row.group = group;
    row.workload = s.name.c_str();
    row.method = "without a list: whole step";
    row.n = s.n;
    row.ms = old;
    row.peer_ms = 1000 / theirs->old;
    bench_csv(&row);
    bench_value(group, s.name.c_str(), "neighbours", s.n, 2.0 * static_cast<double>(pairs) / s.n,
                "of each");
}

/* The source's numbers of neighbours count both partners of a pair, so its rows had half of that on
   average: with 9.31, only few have more than 8, which fits the 0.09 ms of the rest there. */
void bench_width(const std::vector<int32_t> &sizes)
{
    for (int32_t n : sizes) {
        bool const large = n > 1000000;
        double const neighbors = large ? 7.56 : 9.31;
        spheres s = make_spheres(n, neighbors);
        width_matrix("width", s, neighbors, large ? &table_6_3 : &table_6_2,
                     large ? "table 6.3, 100M spheres" : "table 6.2, 1M spheres");
    }
}

/* Spheres with as many neighbours as the source's tablets, which are as many as a sphere can have
   at once (12). The source does not say how large its tablets are and how it finds their contacts,
   and of its entries not all touch: so the search can be compared, the forces cannot. */
void bench_tablets(const std::vector<int32_t> &sizes)
{
    for (int32_t n : sizes) {
        bool const large = n > 1000000;
        double const neighbors = large ? 11.9 : 11.95;
        spheres s = make_spheres(n, neighbors);
        width_matrix("tablets", s, neighbors, large ? &table_6_5 : &table_6_4,
                     large ? "table 6.5, 10M tablets" : "table 6.4, 1M tablets");
    }
}

/* ---- nocontact: table 6.6 -------------------------------------------------------------------- */

/* The source has figures for n; elsewhere there is nothing to print beside ours. */
source at(int32_t n, int32_t theirs, source from) { return n == theirs ? from : none(); }

void nocontact_rows(spheres &s, const char *name, nlist_layout layout, int32_t width, source search,
                    source forces, source step)
{
    stepper t(s);
    std::string const text = name;
    t.choose(layout, width, 0);
    t.index();
    double const search_ms = gpu_ms([&] { t.search(); }), force_ms = gpu_ms([&] { t.forces(); });
    double const step_ms = gpu_ms([&] { t.step(); });
    int32_t const ten = 10000000;
    row_of("nocontact", s, text + ": search", search_ms, search_bytes(t, 0), at(s.n, ten, search));
    row_of("nocontact", s, text + ": forces", force_ms, 4.0 * width * s.n, at(s.n, ten, forces));
    row_of("nocontact", s, text + ": whole step", step_ms, step_bytes(t, 0) - (48.0 + 24) * s.n,
           at(s.n, ten, step));
    check_total(t, name);
}

void bench_nocontact(int32_t n)
{
    spheres s = make_spheres(n, 0);
    stepper t(s);
    bench_title("nocontact: a lattice without contacts (source: table 6.6)", nullptr);
    nocontact_rows(s, "DYNAMIC", NLIST_DYNAMIC, 0, {12.07, 0, "004, 6.6"}, {0, 0, ""},
                   {0, 36.8, "004, 6.6"});
    nocontact_rows(s, "HYBRID, width 8", NLIST_HYBRID, 8, {12.07, 0, "004, 6.6"},
                   {5.71, 0, "004, 6.6"}, {0, 30, "004, 6.6"});
    nocontact_rows(s, "COMPACT", NLIST_COMPACT, 0, none(), none(), none());
    t.index();
    double const direct = gpu_ms([&] { t.direct(); }),
                 step = gpu_ms([&] { t.step_without_list(); });
    row_of("nocontact", s, "no list: search and forces", direct, 68.0 * n,
           at(n, 10000000, {61, 0, "004, 6.6, old"}));
    row_of("nocontact", s, "no list: whole step", step, 248.0 * n,
           at(n, 10000000, {0, 12.9, "004, 6.6, old"}));
}

/* ---- history: section 6.3.6 ------------------------------------------------------------------ */

/* A number of its own for each contact; never 0. */
__device__ uint32_t signature(int32_t i, int32_t j)
{
    uint32_t const low = static_cast<uint32_t>(i < j ? i : j),
                   high = static_cast<uint32_t>(i < j ? j : i);
    return hash(low ^ hash(high)) | 1u;
}

struct sign_op {
    __device__ void operator()(int32_t i, int32_t j, void *history, int64_t) const
    {
        *static_cast<uint32_t *>(history) = signature(i, j);
    }
};

/* Counts, in found: contacts that kept their signature, that have none, and those where that is
   wrong. Geometry says which touched in the frame before; where rounding decides, both are
   right. */
struct verify_op {
    const float *before;
    float contact;
    unsigned long long *found;
    __device__ void operator()(int32_t i, int32_t j, void *history, int64_t) const
    {
        const float *p = before + 4 * static_cast<int64_t>(i),
                    *q = before + 4 * static_cast<int64_t>(j);
        float const x = q[0] - p[0], y = q[1] - p[1], z = q[2] - p[2],
                    ratio = (x * x + y * y + z * z) / (contact * contact);
        uint32_t const own = *static_cast<uint32_t *>(history);
        bool const lost = ratio < 1 - 1e-5f && own == 0, made_up = ratio > 1 + 1e-5f && own != 0;
        bool const wrong = lost || made_up || (own != 0 && own != signature(i, j));
        atomicAdd(found + (own ? 0 : 1), 1ull);
        if (wrong) atomicAdd(found + 2, 1ull);
    }
};

/* Two frames of the motion, a step apart, each with its grid: builds take them in turn. */
struct two_frames {
    device_array<float> pos[2];
    gpu_grid grid[2];
    int now = 0;

    explicit two_frames(stepper &t)
        : pos{device_array<float>(t.s.pos.count), device_array<float>(t.s.pos.count)}
    {
        for (int k = 0; k < 2; k++) {
            must(cudaMemcpyAsync(pos[k].data, t.s.pos.data, t.s.pos.count * sizeof(float),
                                 cudaMemcpyDeviceToDevice, stream));
            must(ugrid_cuda_build(&grid[k].gpu, &t.cells, pos[k].data, DEM_STRIDE, t.s.n, stream));
            t.clear();
            t.move();
        }
    }
    void search(stepper &t)
    {
        now = 1 - now;
        must(nlist_cuda_build_ugrid(&t.list.gpu, &t.desc, &grid[now].gpu, pos[now].data, DEM_STRIDE,
                                    t.s.n, stream));
    }
};

void check_history(stepper &t, two_frames &frames)
{
    device_array<unsigned long long> found(3);
    must(cudaMemsetAsync(found.data, 0, 3 * sizeof *found.data, stream));
    must(nlist_cuda_each(&t.list.gpu, sign_op{}, stream));
    const float *const before = frames.pos[frames.now].data;
    frames.search(t);
    must(nlist_cuda_each(&t.list.gpu, verify_op{before, t.s.contact, found.data}, stream));
    must(nlist_cuda_check(&t.list.gpu, stream));
    std::vector<unsigned long long> const counts = found.download();
    bench_check(counts[2] == 0 && counts[0] > 0,
                "history: lost, or not zero where a contact began");
    bench_check_total(static_cast<int64_t>(counts[0] + counts[1]), t.list.gpu.device.list.total,
                      "history: each entry once");
    std::printf("  %llu contacts persist from one build to the next, %llu begin\n", counts[0],
                counts[1]);
}

struct history_times { double search, forces, step; int64_t entries; };

history_times measure_history(stepper &t, nlist_layout layout, int32_t width, int32_t bytes,
                              int64_t pairs)
{
    history_times times;
    two_frames frames(t);
    t.desc.history = bytes;
    t.choose(layout, width, pairs);
    times.search = gpu_ms([&] { frames.search(t); });
    t.clear();
    times.forces = gpu_ms([&] { t.forces(); });
    if (bytes) check_history(t, frames);
    t.forget(); /* signatures are no springs */
    times.step = gpu_ms([&] { t.step(); });
    check_total(t, "history");
    times.entries = t.list.gpu.device.list.total;
    return times;
}

/* Off and on, with the source's figures in ms (a whole step: in steps/s). Its factors are the bars,
   but for the forces alone: next to our reading of positions, that of 16 bytes more weighs more. */
void history_pair(const spheres &s, const std::string &name, const double ms[2],
                  const double bytes[2], const double theirs[2], bool steps)
{
    bool const given = s.n == 1000000 && name.compare(0, 7, "DYNAMIC") == 0;
    double const factor = steps                         ? theirs[0] / theirs[1]
                          : theirs[1] / theirs[0] > 1.5 ? theirs[1] / theirs[0]
                                                        : 0;
    for (int k = 0; k < 2; k++) {
        source const from = !given  ? none()
                            : steps ? source{0, theirs[k], "004, 6.3.6"}
                                    : source{theirs[k], 0, "004, 6.3.6"};
        row_of("history", s, name + (k ? ", history" : ""), ms[k], bytes[k], from, ms[0],
               k ? factor : 0);
    }
}

void history_rows(spheres &s, const std::string &name, nlist_layout layout, int32_t width,
                  int64_t pairs)
{
    stepper off(s), on(s);
    history_times const without = measure_history(off, layout, width, 0, pairs);
    history_times const with = measure_history(on, layout, width, DEM_HISTORY, pairs);
    double const search[2] = {without.search, with.search},
                 forces[2] = {without.forces, with.forces};
    double const step[2] = {without.step, with.step};
    double const source_search[2] = {1.55, 3.42}, source_forces[2] = {2.21, 2.32},
                 source_step[2] = {83, 36};
    double const of_search[2] = {search_bytes(off, without.entries),
                                 search_bytes(on, with.entries)};
    double const of_forces[2] = {force_bytes(off, without.entries), force_bytes(on, with.entries)};
    double const of_step[2] = {step_bytes(off, without.entries), step_bytes(on, with.entries)};
    history_pair(s, name + ": search", search, of_search, source_search, false);
    history_pair(s, name + ": forces", forces, of_forces, source_forces, false);
    history_pair(s, name + ": whole step", step, of_step, source_step, true);
    std::printf("  carrying takes %.3f ms; %.4g -> %.4g steps/s, a factor of %.2f (source, with "
                "walls, 1M: 83 -> 36, 2.31)\n",
                with.search - without.search, 1000 / without.step, 1000 / with.step,
                with.step / without.step);
}

#include "tests/bench/plain_history_gpu.h"

/* As the source keeps history: beside "search, history" of the rows above. */
void in_place_rows(spheres &s, int64_t pairs)
{
    stepper t(s);
    two_frames frames(t);
    history_in_place h(s.n, static_cast<int32_t>(pairs + pairs / 3 + 1024));
    device_array<unsigned long long> found(3);
    auto build = [&] {
        frames.now = 1 - frames.now;
        h.build(&frames.grid[frames.now].gpu, s.contact);
    };
    for (int k = 0; k < 3; k++) build();
    h.fit();
    double const ms = gpu_ms(build);
    must(cudaMemsetAsync(found.data, 0, 3 * sizeof *found.data, stream));
    launch(h.used, in_place_sign_kernel, h.list());
    verify_op const verify = {frames.pos[frames.now].data, s.contact, found.data};
    build();
    launch(h.used, in_place_verify_kernel, h.list(), verify);
    std::vector<unsigned long long> const counts = found.download();
    bench_check(counts[2] == 0 && counts[0] > 0, "history in place: lost, or made up");
    bench_check_total(static_cast<int64_t>(counts[0] + counts[1]),
                      pairs_in(frames.grid[frames.now], s.contact), "history in place");
    row_of("history", s, "in place (004, 5.5): search, history", ms,
           search_bytes(t, h.count.download()[0]), none());
}

void bench_history(const std::vector<int32_t> &sizes)
{
    bench_title("history: off and on, 4.3 neighbours as in the source's drum; bar x: the source's "
                "own factors (section 6.3.6)",
                "without");
    for (int32_t n : sizes) {
        spheres s = make_spheres(n, 4.3);
        int64_t const pairs = static_cast<int64_t>(2.2 * n);
        history_rows(s, "DYNAMIC", NLIST_DYNAMIC, 0, pairs);
        history_rows(s, "HYBRID, width 8", NLIST_HYBRID, 8, pairs);
        in_place_rows(s, pairs);
    }
}

/* ---- sorting: tables 6.8 and 6.10, figures 6.9 and 6.10 -------------------------------------- */

__global__ void permute_kernel(const float4 *from, const int32_t *order, float4 *to, int64_t n)
{
    int64_t const k = thread_index();
    if (k < n) to[k] = from[order[k]];
}

/* The given part of the spheres change places with others, at random. */
void exchange(stepper &t, double part)
{
    uint32_t const n = static_cast<uint32_t>(t.s.n);
    std::vector<int32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    wl_random r = wl_seed(6);
    int64_t const moves = static_cast<int64_t>(part * t.s.n / 2);
    if (part < 1) {
        for (int64_t k = 0; k < moves; k++)
            std::swap(order[wl_below(&r, n)], order[wl_below(&r, n)]);
    } else {
        for (uint32_t i = n - 1; i > 0; i--) std::swap(order[i], order[wl_below(&r, i + 1)]);
    }
    device_array<int32_t> d_order(order.size());
    d_order.upload(order.data());
    for (device_array<float> *data : {&t.s.pos, &t.s.vel, &t.s.spin}) {
        launch(n, permute_kernel, reinterpret_cast<const float4 *>(data->data), d_order.data,
               reinterpret_cast<float4 *>(t.spare.data), static_cast<int64_t>(n));
        std::swap(data->data, t.spare.data);
    }
    must(cudaStreamSynchronize(stream));
}

void sort_once(stepper &t)
{
    t.cells.inverse = 1;
    t.index();
    int32_t const history = t.desc.history;
    t.desc.history = 0; /* there is no list yet that could follow */
    t.sort();
    t.desc.history = history;
    t.forget();
}

/* search, forces, whole step */
double stage_rows(stepper &t, const std::string &name, int64_t pairs, const source from[3])
{
    t.index();
    double const search_ms = gpu_ms([&] { t.search(); });
    t.clear();
    double const force_ms = gpu_ms([&] { t.forces(); });
    double const step_ms = gpu_ms([&] { t.step(); });
    row_of("sorting", t.s, name + ": search", search_ms, search_bytes(t, pairs), from[0]);
    row_of("sorting", t.s, name + ": forces", force_ms, force_bytes(t, pairs), from[1]);
    row_of("sorting", t.s, name + ": whole step", step_ms, step_bytes(t, pairs), from[2]);
    check_total(t, name.c_str());
    return step_ms;
}

/* `every` steps with one sorting, per step. */
void interval_row(stepper &t, int every, const std::string &name, int64_t pairs, const source &from,
                  double sorted_ms)
{
    sort_once(t);
    double const ms = gpu_ms([&] {
        for (int k = 0; k < every; k++) t.step();
        t.sort();
    });
    t.step();
    row_of("sorting", t.s, name + ": whole step", ms / every,
           step_bytes(t, pairs) + 2 * 48.0 * t.s.n / every, from, sorted_ms);
    check_total(t, name.c_str());
}

void decay_row(stepper &t, double part, const std::string &name, int64_t pairs, double sorted_ms)
{
    sort_once(t);
    exchange(t, part);
    double const ms = gpu_ms([&] { t.step(); });
    row_of("sorting", t.s, name + ": whole step", ms, step_bytes(t, pairs), none(), sorted_ms);
    check_total(t, name.c_str());
}

/* Searching and adding in one go, as the source's code did before it had lists (figure 6.11). */
void direct_row(stepper &t, const std::string &name, const source &from)
{
    t.index();
    double const ms = gpu_ms([&] { t.direct(); }), step = gpu_ms([&] { t.step_without_list(); });
    row_of("sorting", t.s, name + ": search and forces", ms, 68.0 * t.s.n, from);
    row_of("sorting", t.s, name + ": whole step", step, 248.0 * t.s.n, none());
}

const source not_sorted[3] = {{216, 0, "004, 6.10"}, {103, 0, "004, 6.10"}, {0, 2.8, "004, 6.10"}};
const source sorted_always[3] = {
    {16.1, 0, "004, 6.8"}, {19.6, 0, "004, 6.8"}, {0, 13.4, "004, 6.8"}};
const source nothing[3] = {};

void sorting_rows(spheres &s, int32_t bytes, int64_t pairs)
{
    stepper t(s);
    std::string const kept = bytes ? ", history" : "";
    bool const given = !bytes && s.n == 10000000;
    t.cells.inverse = 1;
    t.desc.history = bytes;
    t.choose(NLIST_HYBRID, 8, pairs);
    exchange(t, 1);
    double const never = stage_rows(t, "random order" + kept, pairs, given ? not_sorted : nothing);
    if (!bytes)
        direct_row(t, "no list, random order", given ? source{400, 0, "004, 6.10, old"} : none());
    sort_once(t);
    if (!bytes) direct_row(t, "no list, sorted", given ? source{135, 0, "004, 6.8, old"} : none());
    double const once = stage_rows(t, "sorted once" + kept, pairs, given ? sorted_always : nothing);
    interval_row(t, 1, "sorted every step" + kept, pairs, given ? sorted_always[2] : none(), once);
    interval_row(t, 10, "sorted every 10th step" + kept, pairs, none(), once);
    interval_row(t, 50, "sorted every 50th step" + kept, pairs, none(), once);
    decay_row(t, 0.01, "1 % out of place" + kept, pairs, once);
    decay_row(t, 0.1, "10 % out of place" + kept, pairs, once);
    std::printf("  random order takes %.2f times as long as sorted (source, with sorting at every "
                "step: 4.8)\n",
                never / once);
    sort_once(t);
}

void bench_sorting(int32_t n)
{
    spheres s = make_spheres(n, 4.3);
    bench_title("sorting: HYBRID, width 8, 4.3 neighbours (source: the drum, with walls, tables "
                "6.8 and 6.10; figure 6.9: sorting "
                "now and then is 20 % faster than at every step)",
                "sorted");
    sorting_rows(s, 0, static_cast<int64_t>(2.2 * n));
    sorting_rows(s, DEM_HISTORY, static_cast<int64_t>(2.2 * n));
}

/* ---- tree: tables 6.12 and 6.13 -------------------------------------------------------------- */

struct tree_source {
    source build, search, forces, step;
    int memory; /* MiB, of the whole program */
};

/* A line of the CSV file: MiB of ours, and of the source's program in the place of its time. */
void memory_row(const stepper &t, const std::string &method, double mib, int source)
{
    bench_row_s row = {};
    row.group = "tree";
    row.workload = t.s.name.c_str();
    row.method = method.c_str();
    row.n = t.s.n;
    row.value = mib;
    row.unit = "MiB";
    row.peer_ms = source;
    bench_csv(&row);
}

/* What grid or tree and the list hold, and all that this program has taken of the GPU. */
void memory_rows(const stepper &t, const std::string &name, int source)
{
    std::size_t free = 0, total = 0;
    must(cudaMemGetInfo(&free, &total));
    double const own = t.bytes() / 1048576, all = static_cast<double>(total - free) / 1048576;
    memory_row(t, name + ": memory, " + name + " and list", own, 0);
    memory_row(t, name + ": memory, all", all, source);
    std::printf("  %s and list: %.0f MiB, all on the GPU %.0f MiB", name.c_str(), own, all);
    if (source) std::printf(" (source: all of the program %d MiB)", source);
    std::printf("\n");
}

/* One way to find neighbours, in four rows. Returns the entries of the list. */
int64_t tree_rows(stepper &t, const std::string &name, int64_t pairs, const tree_source &from)
{
    t.choose(NLIST_HYBRID, 8, pairs);
    double const build = gpu_ms([&] { t.index(); }), search = gpu_ms([&] { t.search(); });
    t.clear();
    double const forces = gpu_ms([&] { t.forces(); }), step = gpu_ms([&] { t.step(); });
    must(nlist_cuda_check(&t.list.gpu, stream));
    int64_t const total = t.list.gpu.device.list.total;
    row_of("tree", t.s, name + ": build", build, t.by_tree ? (16.0 + 65) * t.s.n : index_bytes(t),
           from.build);
    row_of("tree", t.s, name + ": search", search, search_bytes(t, total), from.search);
    row_of("tree", t.s, name + ": forces", forces, force_bytes(t, total), from.forces);
    row_of("tree", t.s, name + ": whole step", step, step_bytes(t, total), from.step);
    memory_rows(t, name, from.memory);
    return total;
}

void monodisperse_rows(spheres &s)
{
    int64_t const pairs = static_cast<int64_t>(3.8 * s.n);
    bool const theirs = s.n == 10000000;
    const char *const where = "004, 6.12";
    tree_source const from[2] = {
        {{12, 0, where}, {18, 0, where}, {31.5, 0, where}, {0, 13.96, where}, 1700},
        {{27, 0, where}, {153, 0, where}, {31, 0, where}, {0, 4.46, where}, 2187}};
    for (bool tree : {false, true}) {
        stepper t(s);
        t.by_tree = tree;
        tree_rows(t, tree ? "tree" : "grid", pairs, theirs ? from[tree] : tree_source{});
        check_forces(t, tree ? "tree" : "grid");
    }
}

__global__ void radii_kernel(const float *pos, int32_t n, float *radii)
{
    int64_t const i = thread_index();
    if (i < n) radii[i] = pos[4 * i + 3];
}

/* The mixture, at rest, in the order of a grid of small cells. */
spheres bidisperse(int32_t small)
{
    int32_t const n = small + wl_big(small);
    std::size_t const m = static_cast<std::size_t>(n);
    std::vector<float> pos(3 * m), radius(m), records(4 * m);
    wl_two_sizes(small, 4, pos.data(), radius.data());
    for (std::size_t k = 0; k < 4 * m; k++)
        records[k] = k % 4 < 3 ? pos[k / 4 * 3 + k % 4] : radius[k / 4];
    float const edge = WL_EDGE * cbrtf(static_cast<float>(small) / WL_SMALL);
    spheres s = {"bidisperse-" + size_name(small),
                 n,
                 wl_side(n, 4, 1),
                 0,
                 edge,
                 false,
                 device_array<float>(4 * m),
                 device_array<float>(4 * m),
                 device_array<float>(4 * m)};
    launch(n, start_kernel, s.pos.data, s.vel.data, s.spin.data, n, s.side, 0.0f);
    s.pos.upload(records.data());
    stepper t(s);
    t.cells = cells_of(s, 0.002f);
    t.index();
    t.sort();
    must(cudaStreamSynchronize(stream));
    return s;
}

void bidisperse_rows(spheres &s, int32_t small)
{
    device_array<float> radii(static_cast<std::size_t>(s.n));
    const char *const where = "004, 6.13";
    tree_source const from[2] = {{none(), {328, 0, where}, {2.3, 0, where}, {0, 3, where}, 326},
                                 {none(), {14, 0, where}, {2.3, 0, where}, {0, 45, where}, 379}};
    int64_t totals[2];
    launch(s.n, radii_kernel, s.pos.data, s.n, radii.data);
    for (bool tree : {false, true}) {
        stepper t(s);
        t.by_tree = tree;
        t.cells = cells_of(s, 0.02f); /* as wide as the reach of two large ones */
        t.desc.radius = 0;
        t.desc.radii = radii.data;
        t.nodes.kind = LBVH_SPHERES;
        totals[tree] = tree_rows(t, tree ? "tree" : "grid", int64_t{4} * s.n,
                                 small == WL_SMALL ? from[tree] : tree_source{});
    }
    bench_check_total(totals[1], totals[0], "bidisperse: grid and tree find the same");
}

void bench_tree(int32_t n, int32_t small)
{
    bench_title("tree: grid against tree, HYBRID, width 8; spheres of one size and of two, 1:10 "
                "(source: tables 6.12, 6.13)",
                nullptr);
    {
        spheres s = make_spheres(n, 7.56);
        monodisperse_rows(s);
    }
    spheres s = bidisperse(small);
    bidisperse_rows(s, small);
}

#include "tests/bench/settled_gpu.h"

/* ---- modes: every way to add up, in every layout --------------------------------------------- */

struct layout { const char *name; nlist_layout layout; int32_t width; };
constexpr int layout_count = 4;
const layout layouts[layout_count] = {{"STATIC 16", NLIST_STATIC, 16},
                                      {"HYBRID 8", NLIST_HYBRID, 8},
                                      {"DYNAMIC", NLIST_DYNAMIC, 0},
                                      {"COMPACT", NLIST_COMPACT, 0}};
struct mode { const char *name; nlist_mode mode; };
const mode modes[] = {{"PER_PARTICLE", NLIST_PER_PARTICLE},
                      {"PER_CONTACT", NLIST_PER_CONTACT},
                      {"REDUCE", NLIST_REDUCE},
                      {"AUTO", NLIST_AUTO}};

void layout_head(const char *title)
{
    bench_matrix(title, "ms");
    for (const layout &l : layouts) std::printf(" %9s", l.name);
}

/* One cell of a matrix. */
void cell(const spheres &s, const std::string &method, const char *column, double ms, double value)
{
    bench_row_s row = {};
    std::string const text = method + ", " + column;
    row.group = "modes";
    row.workload = s.name.c_str();
    row.method = text.c_str();
    row.n = s.n;
    row.ms = ms;
    bench_cell(&row, value);
}

/* A contact that adds, but looks at nothing; and one that does not even add. */
struct adding_op {
    __device__ int operator()(int32_t, int32_t, void *, float *own, float *other) const
    {
        for (int v = 0; v < DEM_SUMS; v++) {
            own[v] = 1;
            other[v] = -1;
        }
        return 1;
    }
};

struct idle_op {
    __device__ int operator()(int32_t, int32_t, void *, float *, float *) const { return 0; }
};

void make_list(stepper &t, const layout &l, int half, int64_t pairs)
{
    t.desc.half = half;
    t.choose(l.layout, l.width, pairs);
    t.index();
    t.search();
    t.clear();
}

void mode_line(spheres &s, int half, const mode &m, int64_t pairs)
{
    std::string const name = std::string(half ? "half, " : "full, ") + m.name;
    bench_line(name.c_str());
    for (const layout &l : layouts) {
        stepper t(s);
        make_list(t, l, half, pairs);
        t.how.mode = m.mode;
        double const ms = gpu_ms([&] { t.forces(); });
        cell(s, name, l.name, ms, ms);
        check_forces(t, name.c_str());
    }
}

/* The same list with less to do, to see where the time goes. */
template <class Contact>
void less_line(spheres &s, int half, const char *what, const Contact &contact, int64_t pairs)
{
    std::string const name = std::string(half ? "half, " : "full, ") + what;
    bench_line(name.c_str());
    for (const layout &l : layouts) {
        stepper t(s);
        make_list(t, l, half, pairs);
        double const ms = gpu_ms([&] {
            must(nlist_cuda_sum<DEM_SUMS>(&t.list.gpu, &t.how, contact, t.sums.data, stream));
        });
        cell(s, name, l.name, ms, ms);
    }
}

void mode_matrix(spheres &s, int64_t pairs)
{
    layout_head(("modes: forces by layout and mode, " + s.name + ", 7.56 neighbours").c_str());
    for (int half : {1, 0}) {
        for (const mode &m : modes) mode_line(s, half, m, pairs);
        less_line(s, half, "AUTO, adding only", adding_op{}, pairs);
        less_line(s, half, "AUTO, entries only", idle_op{}, pairs);
    }
    stepper t(s);
    t.index();
    std::printf("\nwithout a list, searching and adding: %.3f ms; ", gpu_ms([&] { t.direct(); }));
    std::printf("floor of the forces: %.3f (half), %.3f (full) ms\n",
                (100.0 * s.n + 4.0 * static_cast<double>(pairs)) / copy_speed,
                (100.0 * s.n + 8.0 * static_cast<double>(pairs)) / copy_speed);
}

struct exact_times { double build[2], sum[2], step[2]; };

/* The list built and the forces added up once more: the same bits? */
void check_repeats(stepper &t, const char *what)
{
    device_array<float> first(t.sums.count);
    for (int k = 0; k < 2; k++) {
        t.index();
        t.search();
        t.clear();
        t.forces();
        if (k == 0) std::swap(first.data, t.sums.data);
    }
    bench_check(worst_of(first.data, t.sums.data, first.count) == 0, what);
}

/* Plain, and with the same bits at every run: [0], [1]. */
exact_times measure_exact(spheres &s, const layout &l, int64_t pairs)
{
    exact_times times;
    for (int exact : {0, 1}) {
        stepper t(s);
        t.cells.method = exact ? UGRID_SORT : UGRID_AUTO;
        t.desc.deterministic = exact;
        t.how.unit = exact ? stiffness * static_cast<double>(s.contact) / 1073741824.0 : 0;
        t.choose(l.layout, l.width, pairs);
        t.index();
        times.build[exact] = gpu_ms([&] { t.search(); });
        t.clear();
        times.sum[exact] = gpu_ms([&] { t.forces(); });
        times.step[exact] = gpu_ms([&] { t.step(); });
        check_forces(t, l.name);
        if (exact) check_repeats(t, "deterministic: other bits");
    }
    return times;
}

void exact_line(const spheres &s, const char *name, const exact_times *times,
                const double (exact_times::*what)[2])
{
    for (int exact : {0, 1}) {
        std::string const text = std::string(name) + (exact ? ", deterministic" : "");
        bench_line(text.c_str());
        for (int k = 0; k < layout_count; k++)
            cell(s, text, layouts[k].name, (times[k].*what)[exact], (times[k].*what)[exact]);
    }
    bench_line("    costs %");
    for (int k = 0; k < layout_count; k++)
        std::printf(" %9.0f", 100 * ((times[k].*what)[1] / (times[k].*what)[0] - 1));
}

void exact_matrix(spheres &s, int64_t pairs)
{
    exact_times times[layout_count];
    for (int k = 0; k < layout_count; k++) times[k] = measure_exact(s, layouts[k], pairs);
    layout_head(
        ("deterministic: the same bits at every run, " + s.name + ", half lists, AUTO").c_str());
    exact_line(s, "build of the list", times, &exact_times::build);
    exact_line(s, "forces", times, &exact_times::sum);
    exact_line(s, "whole step", times, &exact_times::step);
    std::printf("\n");
}

void bench_modes(int32_t n)
{
    spheres s = make_spheres(n, 7.56);
    int64_t const pairs = static_cast<int64_t>(3.8 * n);
    mode_matrix(s, pairs);
    exact_matrix(s, pairs);
}

/* ---- csr: lists for many neighbours, beside the grid's own ----------------------------------- */

struct points {
    std::string name;
    int32_t n;
    device_array<float> pos;
    float radius;
    int64_t pairs;
};

points uniform(int32_t n, bool sorted)
{
    std::vector<float> pos(3 * static_cast<std::size_t>(n));
    wl_uniform(n, n == 10000000 ? 2 : 1, pos.data());
    if (sorted && !wl_sort_morton(n, pos.data(), nullptr)) std::exit(1);
    points p = {"uniform-" + size_name(n) + (sorted ? "-sorted" : ""), n,
                device_array<float>(pos.size()), wl_radius(n, 30),
                n == 1000000    ? 29352150
                : n == 10000000 ? 296942212
                                : 0};
    p.pos.upload(pos.data());
    return p;
}

__global__ void csr_sum_kernel(const int64_t *offsets, const int32_t *ids, int64_t n,
                               unsigned long long *sum)
{
    int64_t const i = thread_index();
    unsigned long long x = 0;
    if (i < n)
        for (int64_t k = offsets[i]; k < offsets[i + 1]; k++)
            x += signature(static_cast<int32_t>(i), ids[k]);
    add_to(sum, x);
}

__global__ void list_sum_kernel(__grid_constant__ const nlist_device device, int64_t n,
                                unsigned long long *sum)
{
    int64_t const i = thread_index();
    unsigned long long x = 0;
    if (i < n) {
        nlist_each e = nlist_of(&device.list, static_cast<int32_t>(i));
        while (nlist_next(&e)) x += signature(static_cast<int32_t>(i), e.id);
    }
    add_to(sum, x);
}

void csr_grid(const points &p, int32_t split, gpu_grid &grid)
{
    ugrid_desc desc = {};
    for (float &max : desc.max) max = 1;
    desc.cell = p.radius;
    desc.split = split ? split : 1;
    desc.method = UGRID_COUNT;
    must(ugrid_cuda_build(&grid.gpu, &desc, p.pos.data, 0, p.n, stream));
}

double csr_floor(const points &p, int64_t entries)
{
    return 24.0 * p.n + 4.0 * static_cast<double>(entries);
}

void csr_bars(const points &p, bool half, bench_row_s &row)
{
    if (half) return;
    row.bar_ms = pick(p.n, 0.34, 3.0);
    row.peer_ms = pick(p.n, 0.986, 10.0);
    row.peer = "UniformGrid";
}

void csr_row(const points &p, const std::string &method, double ms, double bytes, double base_ms,
             bool bars, bool half)
{
    bench_row_s row = {};
    row.group = "csr";
    row.workload = p.name.c_str();
    row.method = method.c_str();
    row.n = p.n;
    row.ms = ms;
    row.floor_ms = bytes / copy_speed;
    row.base_ms = base_ms;
    if (bars) csr_bars(p, half, row);
    bench_row(&row);
}

int64_t list_signature(const nlist_cuda &list, int32_t n)
{
    return device_sum([&](unsigned long long *sum) {
        launch(n, list_sum_kernel, list.device, static_cast<int64_t>(n), sum);
    });
}

nlist_desc csr_desc(const points &p, bool half, int64_t entries)
{
    nlist_desc desc = {};
    desc.radius = p.radius;
    desc.half = half;
    desc.capacity = entries + 1024;
    return desc;
}

/* The grid's own list, and ours beside it. */
void csr_rows(const points &p, int32_t split, bool half)
{
    std::string const kind = std::string(half ? "half" : "full") + (split ? ", split 4" : "");
    gpu_grid grid;
    csr_grid(p, split, grid);
    int64_t const pairs = pairs_in(grid, p.radius), entries = half ? pairs : 2 * pairs;
    if (p.pairs) bench_check_total(2 * pairs, p.pairs, "the workload is not the one described");
    device_array<int64_t> offsets(static_cast<std::size_t>(p.n) + 1);
    device_array<int32_t> ids(static_cast<std::size_t>(entries));
    double const base = gpu_ms([&] {
        must(ugrid_cuda_neighbors(&grid.gpu, p.radius, half ? UGRID_HALF : 0, offsets.data,
                                  ids.data, entries, stream));
    });
    csr_row(p, kind + ": ugrid_cuda_neighbors, by id", base, csr_floor(p, entries), base, true,
            half);
    int64_t const expected = device_sum([&](unsigned long long *sum) {
        launch(p.n, csr_sum_kernel, offsets.data, ids.data, static_cast<int64_t>(p.n), sum);
    });
    gpu_list list;
    nlist_desc const desc = csr_desc(p, half, entries);
    double const ms = gpu_ms([&] {
        must(nlist_cuda_build_ugrid(&list.gpu, &desc, &grid.gpu, p.pos.data, 0, p.n, stream));
    });
    must(nlist_cuda_check(&list.gpu, stream));
    csr_row(p, kind + ": COMPACT", ms, csr_floor(p, entries), base, true, half);
    bench_check_total(list.gpu.device.list.total, entries, "csr");
    bench_check(list_signature(list.gpu, p.n) == expected, "csr: other pairs than the grid's");
}

/* A list that reaches a little further, and the question whether it still holds. */
void skin_rows(const points &p)
{
    nlist_desc desc = csr_desc(p, true, 0);
    gpu_grid grid;
    gpu_list list;
    csr_grid(p, 0, grid);
    desc.radius = 0.9f * p.radius; /* with the skin: as far as the grid's cells */
    desc.skin = 0.1f * p.radius;
    desc.capacity = pairs_in(grid, p.radius) + 1024;
    auto const build = [&] {
        must(nlist_cuda_build_ugrid(&list.gpu, &desc, &grid.gpu, p.pos.data, 0, p.n, stream));
    };
    double const built = gpu_ms(build);
    double const asked = gpu_ms([&] { must(nlist_cuda_moved(&list.gpu, p.pos.data, 0, stream)); });
    bench_check(fetch(&list.gpu.d_facts->moved) == 0, "nothing has moved");
    desc.if_moved = 1;
    int32_t const before = fetch(&list.gpu.d_facts->filled);
    double const idle = gpu_ms([&] {
        must(nlist_cuda_moved(&list.gpu, p.pos.data, 0, stream));
        build();
    });
    bench_check_total(fetch(&list.gpu.d_facts->filled), before,
                      "a build with if_moved where nothing moved");
    must(nlist_cuda_check(&list.gpu, stream));
    csr_row(p, "skin: half COMPACT, built", built,
            csr_floor(p, list.gpu.device.list.total) + 12.0 * p.n, 0, false, true);
    csr_row(p, "skin: nlist_cuda_moved", asked, 24.0 * p.n, 0, false, true);
    csr_row(p, "skin: moved, and if_moved: nothing to build", idle, 24.0 * p.n, 0, false, true);
}

void bench_csr(const std::vector<int32_t> &sizes)
{
    bench_title("csr: neighbours within the radius, about 29 each, through the same grid", "ugrid");
    for (int32_t n : sizes)
        for (bool sorted : {false, true}) {
            points const p = uniform(n, sorted);
            csr_rows(p, 0, false);
            csr_rows(p, 4, false);
            csr_rows(p, 0, true);
            if (sorted) skin_rows(p);
        }
}

#include "tests/bench/half_gpu.h"

/* ---- walls: particles against triangles ------------------------------------------------------ */

/* The cube 0 .. edge as a mesh: each side is a square of `count` * `count` squares, each of two
   triangles. */
std::vector<float> box_mesh(float edge, int count)
{
    std::vector<float> corners;
    float const step = edge / static_cast<float>(count);
    for (int side = 0; side < 6; side++)
        for (int u = 0; u < count; u++)
            for (int v = 0; v < count; v++)
                for (int corner : {0, 1, 2, 1, 3, 2}) {
                    float p[3];
                    p[side / 2] = side % 2 ? edge : 0;
                    p[(side / 2 + 1) % 3] =
                        u + corner % 2 == count ? edge : step * static_cast<float>(u + corner % 2);
                    p[(side / 2 + 2) % 3] =
                        v + corner / 2 == count ? edge : step * static_cast<float>(v + corner / 2);
                    corners.insert(corners.end(), p, p + 3);
                }
    return corners;
}

/* How many of the six sides the spheres touch, by their planes alone. */
__global__ void touch_kernel(const float *pos, int64_t n, float edge, float radius,
                             unsigned long long *sum)
{
    int64_t const i = thread_index();
    unsigned long long touches = 0;
    for (int a = 0; i < n && a < 3; a++)
        touches += (pos[4 * i + a] <= radius) + (edge - pos[4 * i + a] <= radius);
    add_to(sum, touches);
}

int64_t touches_of(const spheres &s, float radius)
{
    int64_t const n = s.n;
    return device_sum([&](unsigned long long *sum) {
        launch(n, touch_kernel, s.pos.data, n, s.edge, radius, sum);
    });
}

struct walls {
    spheres &s;
    device_array<float> corners;
    gpu_tree tree;
    nlist_mesh mesh = {};
    nlist_desc desc = {};
    gpu_list list;
    nlist_sums how = {};
    device_array<float> sums;

    walls(spheres &of, const std::vector<float> &triangles)
        : s(of), corners(triangles.size()), sums(DEM_SUMS * static_cast<std::size_t>(of.n))
    {
        corners.upload(triangles.data());
        mesh.vertices = corners.data;
        mesh.triangles = static_cast<int32_t>(triangles.size() / 9);
        desc.layout = NLIST_DYNAMIC;
        desc.radius = s.contact / 2;
        desc.capacity = s.n / 4 + 4096;
        how.values = DEM_SUMS;
        must(cudaMemsetAsync(sums.data, 0, sums.count * sizeof(float), stream));
    }
    void index()
    {
        lbvh_desc nodes = {};
        nodes.kind = LBVH_TRIANGLES;
        must(lbvh_cuda_build(&tree.gpu, &nodes, corners.data, 0, mesh.triangles, stream));
    }
    void search()
    {
        must(nlist_cuda_build_mesh(&list.gpu, &desc, &tree.gpu, &mesh, s.pos.data, DEM_STRIDE, s.n,
                                   stream));
    }
    void clear() { must(cudaMemsetAsync(sums.data, 0, sums.count * sizeof(float), stream)); }
    dem_system system()
    {
        dem_system system = system_of(s);
        system.mesh = mesh;
        return system;
    }
    void forces()
    {
        must(nlist_cuda_sum<DEM_SUMS>(&list.gpu, &how, dem_triangle_op{system()}, sums.data,
                                      stream));
    }
};

#include "tests/bench/mesh_grid_gpu.h"

/* Where a plane is touched or not is a matter of rounding for some. */
void check_walls(walls &w)
{
    must(nlist_cuda_check(&w.list.gpu, stream));
    const nlist &list = w.list.gpu.device.list;
    int64_t const least = touches_of(w.s, w.s.contact / 2 - 2e-5f),
                  most = touches_of(w.s, w.s.contact / 2 + 2e-5f);
    bench_check(list.total >= least && list.total <= most && least > 0,
                "walls: not as many contacts as the planes have");
    std::printf("  %lld contacts of %d spheres of %d, %d triangles\n",
                static_cast<long long>(list.total),
                static_cast<int>(list.rows[list.current].touched_count), static_cast<int>(w.s.n),
                static_cast<int>(w.mesh.triangles));
}

/* The drum's figures: 10M without history from table 6.8, 1M from section 6.3.6. */
source wall_source(const spheres &s, bool history, double at_10m, double at_1m,
                   double at_1m_history)
{
    if (s.n == 10000000 && !history) return {at_10m, 0, "004, 6.8"};
    if (s.n == 1000000) return {history ? at_1m_history : at_1m, 0, "004, 6.3.6"};
    return none();
}

/* Triangles in a grid with cells of so many diameters; then as the source's old code, search and
   force in one kernel. Forces and contacts are those of the list, which has no history here. */
void wall_grid_rows(walls &w, float diameters, double index, double list)
{
    float const low[3] = {}, high[3] = {w.s.edge, w.s.edge, w.s.edge};
    mesh_grid g(plain_mesh_grid_over(low, high, diameters * w.s.contact), w.mesh);
    char cells[48];
    std::snprintf(cells, sizeof cells, ", cells of %g diameters", static_cast<double>(diameters));
    double const build = gpu_ms([&] { g.build(); });
    std::string const kept = cells;
    row_of("walls", w.s, "triangles into a grid" + kept, build,
           4.0 * static_cast<double>(g.start.count) + 8.0 * static_cast<double>(g.grid.entries),
           at(w.s.n, 10000000, {760, 0, "004, 6.8, old"}), index);
    device_array<float> direct(w.sums.count);
    float const reach = w.s.contact / 2;
    double const ms = gpu_ms([&] { g.forces(w.system(), reach, direct.data); });
    row_of("walls", w.s, "search and forces by the grid" + kept, ms, 20.0 * w.s.n,
           at(w.s.n, 10000000, {104.5, 0, "004, 6.8, old"}), list);
    w.clear();
    w.forces();
    float const most = worst_of(w.sums.data, nullptr, direct.count);
    bench_check(most > 0 && worst_of(direct.data, w.sums.data, direct.count) <= 1e-4f * most,
                "walls: other forces by the grid than by the list");
    bench_check_total(g.contacts(w.system(), reach), w.list.gpu.device.list.total,
                      "walls: contacts by the grid");
    std::printf("  %lld entries, %.0f MiB; tree: %.0f MiB\n",
                static_cast<long long>(g.grid.entries), g.mib(),
                (bytes_in(w.tree.gpu.block) + bytes_in(w.tree.gpu.scratch)) / 1048576);
}

void wall_rows(spheres &s, const std::vector<float> &triangles)
{
    double base = 0;
    for (int32_t bytes : {0, DEM_HISTORY}) {
        walls w(s, triangles);
        std::string const kept = bytes ? ", history" : "";
        w.desc.history = bytes;
        double const build = gpu_ms([&] { w.index(); }), search = gpu_ms([&] { w.search(); }),
                     forces = gpu_ms([&] { w.forces(); });
        if (!bytes) {
            base = search;
            source const from = at(s.n, 10000000, {2.5, 0, "004, 6.8"});
            row_of("walls", s, "tree over the triangles", build, (36.0 + 65) * w.mesh.triangles,
                   from);
        }
        row_of("walls", s, "search" + kept, search, 20.0 * s.n,
               wall_source(s, bytes, 11.75, 1.94, 6.10), base);
        row_of("walls", s, "forces" + kept, forces, 0, wall_source(s, bytes, 1, 0.40, 0.46));
        check_walls(w);
        if (bytes) continue;
        for (float diameters : {1.0f, 4.0f}) wall_grid_rows(w, diameters, build, search + forces);
    }
}

void bench_walls(const std::vector<int32_t> &sizes)
{
    bench_title("walls: spheres in a box of triangles, which few of them touch (source: the drum, "
                "table 6.8 and section 6.3.6)",
                "without");
    for (int32_t n : sizes) {
        spheres s = make_spheres(n, 4.3);
        wall_rows(s, box_mesh(s.edge, bench.small ? 4 : 64));
    }
}

/* ---- scaling, largest: see scaling_gpu.h ----------------------------------------------------- */

/* Points anywhere, about 8 within the radius; their grid is built before. Of the memory, the list's
   own counts. */
struct list_case {
    static constexpr const char *first = "nlist: half HYBRID list, 8 slots", *second = nullptr;
    static constexpr int64_t most = 2147482624;
    int32_t n;
    ugrid_desc cells = {};
    nlist_desc desc = {};
    device_array<float> pos;
    gpu_grid grid;
    gpu_list list;

    explicit list_case(int32_t particles) : n(particles), pos(3 * static_cast<std::size_t>(n))
    {
        desc.radius = cells.cell = wl_radius(n, 8);
        for (float &max : cells.max) max = 1;
        cells.max_cells = most;
        desc.layout = NLIST_HYBRID;
        desc.width = 8;
        desc.half = 1;
        /* of the rest: a row has the partners with higher ids, 0 to 8 of them on average */
        desc.capacity = n / 4 + 1024;
        spread(pos);
        must(ugrid_cuda_build(&grid.gpu, &cells, pos.data, 0, n, stream));
    }
    void build()
    {
        must(nlist_cuda_build_ugrid(&list.gpu, &desc, &grid.gpu, pos.data, 0, n, stream));
    }
    void search() {}
    double arrays() const { return held_by(list.gpu.device.list.block); }
    double space() const { return held_by(list.gpu.scratch); }
    void check()
    {
        must(nlist_cuda_check(&list.gpu, stream));
        bench_check_total(list.gpu.device.list.total, pairs_in(grid, desc.radius),
                          "scaling: entries, and the grid's pairs");
    }
};

/* ---- defaults: a list with nothing set but the radius, and what the caller alone knows ------- */

struct attempt { const char *name; int32_t split; bool by_tree; };

const attempt attempts[] = {
    {"default", 0, false}, {"split 1", 1, false}, {"split 4", 4, false}, {"tree", 0, true}};

/* The source and the list of one setting. */
struct default_list {
    const points &p;
    attempt how;
    ugrid_desc cells = {};
    lbvh_desc nodes = {};
    nlist_desc desc = {};
    gpu_grid grid;
    gpu_tree tree;
    gpu_list list;

    default_list(const points &of, const attempt &chosen, bool half, int64_t entries)
        : p(of), how(chosen)
    {
        bool const open = how.split == 0;
        for (float &max : cells.max) max = 1;
        cells.cell = open ? 0 : p.radius;
        cells.radius = p.radius;
        cells.split = how.split;
        cells.method = open ? UGRID_AUTO : UGRID_COUNT;
        nodes.kind = LBVH_POINTS;
        desc.radius = p.radius;
        desc.half = half;
        desc.capacity = entries + 1024;
        index();
    }
    void index()
    {
        if (how.by_tree) must(lbvh_cuda_build(&tree.gpu, &nodes, p.pos.data, 0, p.n, stream));
        else must(ugrid_cuda_build(&grid.gpu, &cells, p.pos.data, 0, p.n, stream));
    }
    void search()
    {
        if (how.by_tree)
            must(nlist_cuda_build_lbvh(&list.gpu, &desc, &tree.gpu, p.pos.data, 0, p.n, stream));
        else must(nlist_cuda_build_ugrid(&list.gpu, &desc, &grid.gpu, p.pos.data, 0, p.n, stream));
    }
};

void default_lists(const points &p, bool half)
{
    std::vector<std::unique_ptr<default_list>> lists;
    std::vector<default_call> alone, built;
    gpu_grid counted;
    csr_grid(p, 1, counted);
    int64_t const pairs = pairs_in(counted, p.radius), entries = half ? pairs : 2 * pairs;
    for (attempt const &one : attempts) {
        lists.push_back(std::make_unique<default_list>(p, one, half, entries));
        default_list *const list = lists.back().get();
        alone.push_back({one.name, [=] { list->search(); }});
        built.push_back({one.name, [=] { list->index(); list->search(); }});
    }
    const char *const reason = lists[0]->grid.gpu.device.grid.reason;
    defaults_row(p.name, p.n, half ? "half list" : "full list", alone, reason);
    defaults_row(p.name, p.n, half ? "build + half list" : "build + full list", built, reason);
    for (auto const &one : lists) {
        must(nlist_cuda_check(&one->list.gpu, stream));
        bench_check_total(one->list.gpu.device.list.total, entries, "defaults: entries");
    }
}

/* The spheres of a step: which layout, and a list or none. The caller alone knows how often a list
   is used: these rows say what there is to win. */
void default_steps(spheres &s)
{
    stepper layouts[] = {stepper(s), stepper(s), stepper(s)};
    std::vector<default_call> calls;
    layouts[0].index();
    int64_t const pairs = pairs_in(layouts[0].grid, s.contact);
    layouts[0].choose(NLIST_COMPACT, 0, pairs);
    layouts[1].choose(NLIST_HYBRID, 8, pairs);
    layouts[2].choose(NLIST_DYNAMIC, 0, pairs);
    static const char *const names[] = {"COMPACT", "HYBRID, 8 slots", "DYNAMIC"};
    for (int k = 0; k < 3; k++) {
        stepper *const t = &layouts[k];
        calls.push_back({names[k], [=] { t->index(); t->search(); t->clear(); t->forces(); }});
    }
    stepper *const first = &layouts[0];
    calls.push_back({"no list", [=] { first->index(); first->direct(); }});
    defaults_row(s.name, s.n, "grid, list, forces", calls, "for the caller: no call chooses");
}

void bench_defaults(const std::vector<int32_t> &sizes)
{
    bench_defaults_title("defaults: lists of about 29 neighbours, nothing set but the radius");
    for (int32_t n : sizes)
        for (bool sorted : {false, true}) {
            points const p = uniform(n, sorted);
            default_lists(p, false);
            default_lists(p, true);
        }
    spheres s = make_spheres(sizes[0], 7.56);
    default_steps(s);
    bench_defaults_end();
}

} // namespace

int main(int argc, char **argv)
{
    bench_start(argc, argv, "bench_nlist_cuda",
                "width,nocontact,history,sorting,tree,modes,csr,half,walls,tablets,settled,"
                "scaling,largest,defaults");
    double const begin = wall_ms();
    std::vector<int32_t> sizes = {1000000, 10000000};
    if (bench.quick) sizes = {1000000};
    if (bench.n) sizes = {bench.n};
    start_gpu();
    print_gpu("nlist.h", nlist_version());
    std::printf("source, 004: H. Kureck 2016, section 6.3, on a GeForce GTX Titan X (Maxwell)\n");
    measure_copy();
    if (bench_wants("width")) bench_width(sizes);
    if (bench_wants("nocontact")) bench_nocontact(sizes.back());
    if (bench_wants("history")) bench_history(sizes);
    if (bench_wants("sorting")) bench_sorting(sizes.back());
    if (bench_wants("tree")) bench_tree(sizes.back(), sizes[0]);
    if (bench_wants("modes")) bench_modes(sizes.back());
    if (bench_wants("csr")) bench_csr(sizes);
    if (bench_wants("half")) bench_half(sizes);
    if (bench_wants("walls")) bench_walls(sizes);
    if (bench_named("settled")) bench_settled(sizes[0]);
    if (bench_named("tablets")) bench_tablets(sizes);
    if (bench_named("scaling")) bench_scaling<list_case>();
    if (bench_named("largest")) bench_largest<list_case>();
    if (bench_named("defaults")) bench_defaults(sizes);
    stop_gpu();
    std::printf("\n%.1f s in all", (wall_ms() - begin) * 1e-3);
    return bench_end();
}
