/* bench_ugrid.cu - how fast is cuda/ugrid.cu on this GPU? README.md in this folder explains the
   tables.
   SPDX-License-Identifier: MIT OR Unlicense

       make bench-cuda                                       all of it, under a minute on an H200
       build/cuda/bench_ugrid --only build,csr --quick --csv build.csv
       groups: ceilings build count csr insert walks sums; only when named: boxes sweep beyond
       periods messages scaling largest defaults */

#define UGRID_STATIC
#define UGRID_IMPLEMENTATION
#define UGRID_CUDA
#include "ugrid.h"
#include "tests/bench/bench_gpu.h"
#include "tests/bench/defaults_gpu.h"
#include "tests/common/workloads.h"

#include <memory>

namespace {

void must(ugrid_result result)
{
    if (result == UGRID_OK) return;
    std::printf("%s\n", ugrid_result_text(result));
    std::exit(1);
}

/* A grid that is freed at the end of its scope. */
struct gpu_grid {
    ugrid_cuda gpu = {};
    ~gpu_grid() { ugrid_cuda_free(&gpu); }
    void build(const ugrid_desc &desc, const float *d_pos, std::size_t stride, int32_t n)
    {
        must(ugrid_cuda_build(&gpu, &desc, d_pos, stride, n, stream));
    }
};

/* ---- point sets ------------------------------------------------------------------------------ */

struct points {
    std::string name;
    int32_t n;
    float radius;
    float max[3];
    int64_t pairs;  /* ordered; 0: not known */
    device_array<float> pos;
};

ugrid_desc desc_of(const points &p, ugrid_method method)
{
    ugrid_desc desc = {};
    std::memcpy(desc.max, p.max, sizeof desc.max);
    desc.cell = p.radius;
    desc.method = method;
    desc.split = 1; /* rows say where it is 4, or chosen */
    return desc;
}

/* Totals: pairs with d2 <= r2 in float, rounded after every operation. (targets.md tests d2 < r2
   with fused operations: 44 ordered pairs fewer at 10M, 6 fewer in the dam, the same at 1M.) */
int64_t known_pairs(const std::string &kind, int32_t n)
{
    if (kind == "uniform" && n == 1000000) return 29352150;
    if (kind == "uniform" && n == 10000000) return 296942212;
    if (kind == "dam" && n == 1000000) return 29997360;
    return 0;
}

points from_host(const std::string &kind, const char *order, const std::vector<float> &pos,
                 float radius, float width)
{
    int32_t const n = static_cast<int32_t>(pos.size() / 3);
    points p = {kind + "-" + size_name(n) + order, n, radius, {width, 1, 1}, known_pairs(kind, n),
                device_array<float>(pos.size())};
    p.pos.upload(pos.data());
    return p;
}

/* Moves every coordinate by up to `most`, where that does not lead out of 0 .. max. */
__global__ void shake_kernel(float *pos, int64_t count, float most, float max)
{
    int64_t const k = thread_index();
    if (k >= count) return;
    float const u = static_cast<float>(hash(static_cast<uint32_t>(k)) >> 8) * (1.0f / 16777216.0f);
    float const x = pos[k] + most * (2 * u - 1);
    if (x >= 0 && x < max) pos[k] = x;
}

/* "Frame-coherent": positions in the order of the grid that desc describes, then moved by up to 0.2
   of a cell. */
device_array<float> coherent(const device_array<float> &pos, const ugrid_desc &desc, int32_t n)
{
    gpu_grid grid;
    device_array<float> moved(3 * static_cast<std::size_t>(n));
    grid.build(desc, pos.data, 0, n);
    must(ugrid_cuda_gather(&grid.gpu, pos.data, 12, moved.data, stream));
    launch(static_cast<int64_t>(moved.count), shake_kernel, moved.data,
           static_cast<int64_t>(moved.count), 0.2f * desc.cell, desc.max[1]);
    return moved;
}

/* uniform-N in three orders; the last has other pairs than the first two. */
std::vector<points> uniform_sets(int32_t n)
{
    std::vector<points> sets;
    std::vector<float> pos(3 * static_cast<std::size_t>(n));
    wl_uniform(n, n == 10000000 ? 2 : 1, pos.data());
    sets.push_back(from_host("uniform", "", pos, wl_radius(n, 30), 1));
    if (!wl_sort_morton(n, pos.data(), nullptr)) { std::printf("out of memory\n"); std::exit(1); }
    sets.push_back(from_host("uniform", "-sorted", pos, wl_radius(n, 30), 1));
    points const &first = sets[0];
    sets.push_back({"uniform-" + size_name(n) + "-coherent",
                    n,
                    first.radius,
                    {1, 1, 1},
                    0,
                    coherent(first.pos, desc_of(first, UGRID_SORT), n)});
    must(cudaStreamSynchronize(stream));
    return sets;
}

points dam_set(int32_t n)
{
    std::vector<float> pos(3 * static_cast<std::size_t>(n));
    float const radius =
        n == 1000000 ? 0.005577566f : 0.005577566f * cbrtf(1e6f / static_cast<float>(n));
    wl_dam(n, 3, pos.data());
    return from_host("dam", "", pos, radius, 0.125f);
}

/* ---- ceilings: what this GPU can do, measured in this run ------------------------------------ */

double test_speed; /* distance tests per ms */

constexpr int tile_size = block_size, tiles = 16, own_points = 4;

/* Every thread tests four points against tiles in shared memory: what the arithmetic of a search
   costs without the search. */
__global__ void __launch_bounds__(block_size) test_kernel(float r2, unsigned *found)
{
    __shared__ float4 tile[tile_size];
    float const x = static_cast<float>(threadIdx.x), y = static_cast<float>(blockIdx.x);
    unsigned count = 0;
    tile[threadIdx.x] = make_float4(x * 0.5f, y * 0.25f, x, 0);
    __syncthreads();
    for (int t = 0; t < tiles; t++) {
        float const z = static_cast<float>(t);
        #pragma unroll 8
        for (int k = 0; k < tile_size; k++) {
            float4 const q = tile[k];
            for (int own = 0; own < own_points; own++) {
                float const shift = static_cast<float>(own), dx = q.x - (x + shift),
                            dy = q.y - (y - shift), dz = q.z - (z + shift);
                count += dx * dx + dy * dy + dz * dz <= r2;
            }
        }
    }
    if (count == 0xFFFFFFFFu) *found = count;
}

void measure_tests()
{
    int64_t const threads = (bench.small ? 1 : 132 * 64) * block_size;
    test_speed = static_cast<double>(threads) * tile_size * tiles * own_points /
                 gpu_ms([&] { launch(threads, test_kernel, 100.0f, d_sink); });
    std::printf("ceilings of this run: %.2f T distance tests/s (targets: about 4.9)\n",
                test_speed * 1e-9);
}

__global__ void random_cells_kernel(uint32_t *cells, int32_t n, uint32_t below)
{
    int64_t const k = thread_index();
    if (k < n)
        cells[k] = static_cast<uint32_t>(
            static_cast<uint64_t>(hash(static_cast<uint32_t>(k))) * below >> 32);
}

__global__ void rank_kernel(const uint32_t *cells, uint32_t *counts, uint32_t *ranks, int32_t n)
{
    int64_t const k = thread_index();
    if (k < n) ranks[k] = atomicAdd(&counts[cells[k]], 1u);
}

/* atomicAdd that returns the rank, in random cells. */
double rank_ms(int32_t n, uint32_t cells)
{
    device_array<uint32_t> keys(static_cast<std::size_t>(n)), ranks(static_cast<std::size_t>(n)),
        counts(cells);
    must(cudaMemsetAsync(counts.data, 0, cells * sizeof(uint32_t), stream));
    launch(n, random_cells_kernel, keys.data, n, cells);
    return gpu_ms([&] { launch(n, rank_kernel, keys.data, counts.data, ranks.data, n); });
}

double scan_ms(int64_t cells)
{
    device_array<int32_t> counts(static_cast<std::size_t>(cells)),
        starts(static_cast<std::size_t>(cells));
    std::size_t bytes = 0;
    must(cudaMemsetAsync(counts.data, 0, counts.count * sizeof(int32_t), stream));
    must(cub::DeviceScan::ExclusiveSum(nullptr, bytes, counts.data, starts.data, cells, stream));
    device_array<char> temp(bytes);
    return gpu_ms([&] {
        must(cub::DeviceScan::ExclusiveSum(temp.data, bytes, counts.data, starts.data, cells,
                                           stream));
    });
}

/* Per kernel, of 100 queued. */
double empty_ms()
{
    return gpu_ms([] { for (int k = 0; k < 100; k++) launch(1, empty_kernel); }) / 100;
}

void bench_ceilings(const std::vector<points> &sets)
{
    static const struct {
        int32_t edge;
        double scan, rank;
    } grids[] = {{64, 0.0076, 0.146}, {128, 0.0115, 0.146}, {256, 0.051, 0.362}};
    bench_title("ceilings: the parts that a grid is made of", nullptr);
    ceiling_row("-", "a queued empty kernel", 1, empty_ms(), 0.00145);
    for (points const &p : sets) {
        if (p.name.find("coherent") != std::string::npos) {
            gpu_grid grid;
            grid.build(desc_of(p, UGRID_SORT), p.pos.data, 0, p.n);
            ceiling_row(size_name(p.n), "gather float4, frame-coherent order", p.n,
                        gather_ms(grid.gpu.device.grid.order, p.n), pick(p.n, 0.009, 0.097));
        } else if (p.name.find("sorted") == std::string::npos) {
            int const bits = p.n == 10000000 ? 21 : 18; /* of 111^3 and of 51^3 cells */
            sorter<uint32_t> pairs(p.n);
            ceiling_row(size_name(p.n), "cub sort u32,u32, 30 bits", p.n,
                        gpu_ms([&] { pairs.sort(); }), pick(p.n, 0.082, 0.365));
            ceiling_row(size_name(p.n),
                        bits == 18 ? "cub sort u32,u32, 18 bits" : "cub sort u32,u32, 21 bits", p.n,
                        gpu_ms([&] { pairs.sort(bits); }), pick(p.n, 0.063, 0.28));
            pairs.sort(); /* by random keys: a random permutation */
            ceiling_row(size_name(p.n), "gather float4, random order", p.n,
                        gather_ms(pairs.sorted_values.data, p.n), pick(p.n, 0.0125, 0.268));
        }
    }
    for (auto const &g : grids) {
        int64_t const cells = static_cast<int64_t>(g.edge) * g.edge * g.edge;
        std::string const name = std::to_string(g.edge) + "^3 cells";
        int32_t const n = sets.back().n;
        ceiling_row(name, "cub exclusive scan over the cells", cells, scan_ms(cells), g.scan);
        ceiling_row(name, ("atomicAdd with rank, " + size_name(n)).c_str(), n,
                    rank_ms(n, static_cast<uint32_t>(cells)), pick(n, 0, g.rank));
    }
}

/* ---- ways to build --------------------------------------------------------------------------- */

struct way {
    const char *name;
    ugrid_method method;
    ugrid_placement placement;
    ugrid_slot_layout layout;
    int32_t no_records, deterministic, coherent;
};

const way build_ways[] = {
    {"COUNT",                      UGRID_COUNT,       UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0, 0, 0},
    {"COUNT, coherent",            UGRID_COUNT,       UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0, 0, 1},
    {"COUNT, deterministic",       UGRID_COUNT,       UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0, 1, 0},
    {"SORT (deterministic)",       UGRID_SORT,        UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0, 0, 0},
    {"COUNT, ids only",            UGRID_COUNT,       UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 1, 0, 0},
    {"SORT, ids only",             UGRID_SORT,        UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 1, 0, 0},
    {"FIXED, slots by column",     UGRID_FIXED,       UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0, 0, 0},
    {"FIXED, slots by row",        UGRID_FIXED,       UGRID_LOOSE, UGRID_SLOTS_BY_ROW,    0, 0, 0},
    {"FIXED, deterministic",       UGRID_FIXED,       UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0, 1, 0},
    {"LIST",                       UGRID_LIST,        UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0, 0, 0},
    {"LIST, deterministic",        UGRID_LIST,        UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0, 1, 0},
    {"LIST_PACKED",                UGRID_LIST_PACKED, UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0, 0, 0},
    {"LIST_PACKED, deterministic", UGRID_LIST_PACKED, UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0, 1, 0}
};

const way insert_ways[] = {
    {"COUNT",                  UGRID_COUNT,       UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0, 0, 0},
    {"COUNT, ids only",        UGRID_COUNT,       UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 1, 0, 0},
    {"SORT",                   UGRID_SORT,        UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0, 0, 0},
    {"SORT, ids only",         UGRID_SORT,        UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 1, 0, 0},
    {"FIXED, slots by column", UGRID_FIXED,       UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0, 0, 0},
    {"FIXED, slots by row",    UGRID_FIXED,       UGRID_LOOSE, UGRID_SLOTS_BY_ROW,    0, 0, 0},
    {"LIST, loose",            UGRID_LIST,        UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0, 0, 0},
    {"LIST, tight (8 cells)",  UGRID_LIST,        UGRID_TIGHT, UGRID_SLOTS_BY_COLUMN, 0, 0, 0},
    {"LIST_PACKED",            UGRID_LIST_PACKED, UGRID_LOOSE, UGRID_SLOTS_BY_COLUMN, 0, 0, 0}
};

ugrid_desc choose(ugrid_desc desc, const way &how)
{
    desc.method = how.method;
    desc.placement = how.placement;
    desc.slot_layout = how.layout;
    desc.no_records = how.no_records;
    desc.deterministic = how.deterministic;
    desc.coherent = how.coherent;
    return desc;
}

/* FIXED is told the slots it needs, as a program would find them out: by failing once. */
void fit_slots(gpu_grid &grid, ugrid_desc &desc, const float *d_pos, int32_t n)
{
    if (desc.method != UGRID_FIXED) return;
    desc.slots = 1;
    grid.build(desc, d_pos, 0, n);
    if (ugrid_cuda_check(&grid.gpu, stream) == UGRID_CELL_FULL)
        desc.slots = grid.gpu.device.grid.needed_slots;
}

/* Ordered pairs. */
int64_t pairs_of(gpu_grid &grid, float radius)
{
    device_array<int64_t> pairs(1);
    must(ugrid_cuda_count_pairs(&grid.gpu, radius, pairs.data, stream));
    return 2 * pairs.download()[0];
}

/* ---- build ----------------------------------------------------------------------------------- */

/* Positions in; out: records (16 bytes), ids or links (4 bytes; LIST_PACKED has them in the
   record), one number per cell. */
double build_floor(const ugrid_desc &desc, int32_t n, int32_t cells)
{
    bool const sorts = desc.method == UGRID_COUNT || desc.method == UGRID_SORT,
               packed = desc.method == UGRID_LIST_PACKED;
    double const per_particle =
        12 + ((sorts && !desc.no_records) || packed ? 16 : 0) + (packed ? 0 : 4);
    return (per_particle * n + 4.0 * cells) / copy_speed;
}

/* targets.md: "grid build with reordered positions" for the methods that reorder, "ids only" for
   those that do not; peers HOOMD's UniformGrid and Warp's HashGrid. A deterministic variant of an
   unordered method has no bar. */
void build_targets(bench_row_s &row, const ugrid_desc &desc, const std::string &name)
{
    bool const reorders =
        (desc.method == UGRID_COUNT || desc.method == UGRID_SORT) && !desc.no_records;
    int32_t const n = static_cast<int32_t>(row.n);
    if (desc.deterministic || desc.method == UGRID_LIST_PACKED ||
        name.find("coherent") != std::string::npos)
        return;
    if (name.find("sorted") != std::string::npos) {
        if (!reorders) return;
        row.bar_ms = pick(n, 0, 0.26);
        row.peer_ms = pick(n, 0, 0.543);
    } else {
        row.bar_ms = reorders ? pick(n, 0.055, 0.40) : pick(n, 0.045, 0.30);
        row.peer_ms = reorders ? pick(n, 0.122, 0.717) : pick(n, 0.093, 0.441);
    }
    if (row.peer_ms > 0) row.peer = reorders ? "HOOMD UniformGrid" : "Warp HashGrid";
}

void build_rows(const points &p)
{
    int64_t expected = p.pairs;
    for (way const &how : build_ways) {
        gpu_grid grid;
        bench_row_s row = {};
        ugrid_desc desc = choose(desc_of(p, how.method), how);
        fit_slots(grid, desc, p.pos.data, p.n);
        row.group = "build";
        row.workload = p.name.c_str();
        row.method = how.name;
        row.n = p.n;
        row.ms = gpu_ms([&] { grid.build(desc, p.pos.data, 0, p.n); });
        row.floor_ms = build_floor(desc, p.n, grid.gpu.device.grid.cell_count);
        build_targets(row, desc, p.name);
        bench_row(&row);
        int64_t const pairs = pairs_of(grid, p.radius);
        if (expected == 0) expected = pairs; /* moved points: the methods must agree */
        bench_check_total(pairs, expected, how.name);
    }
}

/* ---- count and csr --------------------------------------------------------------------------- */

__global__ void candidates_kernel(__grid_constant__ const ugrid_device device, float radius,
                                  unsigned long long *sum)
{
    int64_t const place = thread_index();
    unsigned long long candidates = 0;
    if (place < device.grid.n) {
        ugrid_near near = ugrid_near_place(&device, static_cast<int32_t>(place), radius);
        while (ugrid_next_range(&near))
            candidates += static_cast<unsigned long long>(near.end - near.begin);
    }
    add_to(sum, candidates);
}

/* Tests that a search of all 27 cells makes. */
double candidates_of(const gpu_grid &grid, float radius)
{
    return static_cast<double>(device_sum([&](unsigned long long *sum) {
        launch(grid.gpu.device.grid.n, candidates_kernel, grid.gpu.device, radius, sum);
    }));
}

/* The slower of what must be tested and what must move. */
double search_floor(double tests, double bytes)
{
    double const testing = tests / test_speed, moving = bytes / copy_speed;
    return testing > moving ? testing : moving;
}

bench_row_s search_row(const char *group, const points &p, const char *method, double ms,
                       double floor_ms)
{
    bench_row_s row = {};
    row.group = group;
    row.workload = p.name.c_str();
    row.method = method;
    row.n = p.n;
    row.ms = ms;
    row.floor_ms = floor_ms;
    return row;
}

/* targets.md, "count within r"; peer UniformGrid, tuned. With desc.split = 4, too. */
void count_rows_split(const points &p, int32_t split)
{
    gpu_grid grid;
    device_array<int32_t> counts(static_cast<std::size_t>(p.n));
    device_array<int64_t> pairs(1);
    bool const dam = p.max[0] < 1;
    std::string const suffix = split > 1 ? ", split " + std::to_string(split) : "";
    ugrid_desc desc = desc_of(p, UGRID_COUNT);
    desc.split = split;
    grid.build(desc, p.pos.data, 0, p.n);
    double const tests = candidates_of(grid, p.radius);
    for (int flags : {static_cast<int>(UGRID_PLACES), 0}) {
        std::string const name =
            (flags ? "ugrid_cuda_count_neighbors, by place" : "ugrid_cuda_count_neighbors, by id") +
            suffix;
        double const ms = gpu_ms([&] {
            must(ugrid_cuda_count_neighbors(&grid.gpu, p.radius, flags, counts.data, stream));
        });
        bench_row_s row = search_row("count", p, name.c_str(), ms, search_floor(tests, 20.0 * p.n));
        row.bar_ms = dam ? pick(p.n, 0.11, 0) : pick(p.n, 0.15, 1.42);
        row.peer_ms = dam ? pick(p.n, 0.280, 0) : pick(p.n, 0.294, 2.73);
        row.peer = "UniformGrid";
        bench_row(&row);
        bench_check_total(sum_of(counts), p.pairs ? p.pairs : pairs_of(grid, p.radius),
                          name.c_str());
    }
    std::string const name = "ugrid_cuda_count_pairs, each once" + suffix;
    double const ms =
        gpu_ms([&] { must(ugrid_cuda_count_pairs(&grid.gpu, p.radius, pairs.data, stream)); });
    bench_row_s const row =
        search_row("count", p, name.c_str(), ms, search_floor(tests / 2, 16.0 * p.n));
    bench_row(&row);
    if (p.pairs) bench_check_total(2 * pairs.download()[0], p.pairs, "pairs");
}

void count_rows(const points &p)
{
    for (int32_t split : {1, 4}) count_rows_split(p, split);
}

/* rows = sum of i over the entries (i, j) of a list, ids = sum of j. In a full list they are equal;
   a half list has rows + ids as large as each of them. */
struct list_facts { int64_t total, rows, ids; };

__global__ void facts_kernel(const int64_t *offsets, const int32_t *ids, int32_t n, bool columns,
                             unsigned long long *sum)
{
    int64_t const i = thread_index();
    unsigned long long x = 0;
    if (i < n && !columns) x = static_cast<unsigned long long>(i * (offsets[i + 1] - offsets[i]));
    if (i < n && columns)
        for (int64_t k = offsets[i]; k < offsets[i + 1]; k++)
            x += static_cast<unsigned long long>(ids[k]);
    add_to(sum, x);
}

list_facts facts_of(const device_array<int64_t> &offsets, const device_array<int32_t> &ids,
                    int32_t n)
{
    list_facts facts;
    auto const sum = [&](bool columns) {
        return device_sum([&](unsigned long long *to) {
            launch(n, facts_kernel, offsets.data, ids.data, n, columns, to);
        });
    };
    must(cudaMemcpyAsync(&facts.total, offsets.data + n, sizeof facts.total, cudaMemcpyDeviceToHost,
                         stream));
    must(cudaStreamSynchronize(stream));
    if (facts.total > static_cast<int64_t>(ids.count)) {
        bench_check(0, "the list is longer than it can be");
        std::exit(1);
    }
    facts.rows = sum(false);
    facts.ids = sum(true);
    return facts;
}

struct csr_case { const char *name; int flags; bool build; int32_t split; };

const csr_case csr_cases[] = {
    {"full list, rows and entries by id",    0,                         false, 1},
    {"half list, rows and entries by id",    UGRID_HALF,                false, 1},
    {"full list, by place",                  UGRID_PLACES,              false, 1},
    {"half list, by place",                  UGRID_PLACES | UGRID_HALF, false, 1},
    {"build + full list, by id",             0,                         true,  1},
    {"full list, by id, split 4",            0,                         false, 4},
    {"full list, by place, split 4",         UGRID_PLACES,              false, 4},
    {"half list, by place, split 4",         UGRID_PLACES | UGRID_HALF, false, 4},
    {"build + full list, by id, split 4",    0,                         true,  4},
    {"build + full list, by id, automatic",  0,                         true,  0}
};

/* targets.md, "CSR, rows in cell order" and "by input index"; peer UniformGrid, tuned, its
   rows in the same order. Half lists and lists with the build have no bar. */
void csr_targets(bench_row_s &row, const points &p, bool by_place)
{
    bool const dam = p.max[0] < 1;
    if (by_place) {
        row.bar_ms = dam ? pick(p.n, 0.30, 0) : pick(p.n, 0.26, 2.3);
        row.peer_ms = dam ? pick(p.n, 0.878, 0) : pick(p.n, 0.855, 7.97);
    } else {
        row.bar_ms = dam ? pick(p.n, 0.38, 0) : pick(p.n, 0.34, 3.0);
        row.peer_ms = dam ? pick(p.n, 0.982, 0) : pick(p.n, 0.986, 10.0);
    }
    row.peer = "UniformGrid";
}

void csr_rows(const points &p)
{
    gpu_grid grid;
    ugrid_desc desc = desc_of(p, UGRID_COUNT);
    list_facts full = {};
    grid.build(desc, p.pos.data, 0, p.n);
    int64_t const total = p.pairs ? p.pairs : pairs_of(grid, p.radius);
    device_array<int64_t> offsets(static_cast<std::size_t>(p.n) + 1);
    device_array<int32_t> ids(static_cast<std::size_t>(total));
    for (csr_case const &c : csr_cases) {
        bool const half = c.flags & UGRID_HALF;
        /* else it stays: another build gives its places in another order */
        if (desc.split != c.split) {
            desc.split = c.split;
            desc.method = c.split > 0 ? UGRID_COUNT : UGRID_AUTO;
            grid.build(desc, p.pos.data, 0, p.n);
            if (c.split == 0) { /* the next build knows how crowded the cells are */
                must(ugrid_cuda_check(&grid.gpu, stream));
                grid.build(desc, p.pos.data, 0, p.n);
            }
        }
        double const tests = candidates_of(grid, p.radius);
        double const ms = gpu_ms([&] {
            if (c.build) grid.build(desc, p.pos.data, 0, p.n);
            must(ugrid_cuda_neighbors(&grid.gpu, p.radius, c.flags, offsets.data, ids.data,
                                      static_cast<int64_t>(ids.count), stream));
        });
        double const floor_ms =
            search_floor(half ? tests / 2 : tests,
                         24.0 * p.n + 4.0 * static_cast<double>(half ? total / 2 : total));
        bench_row_s row = search_row(
            "csr", p, c.name, ms,
            floor_ms + (c.build ? build_floor(desc, p.n, grid.gpu.device.grid.cell_count) : 0));
        if (!half && !c.build) csr_targets(row, p, c.flags & UGRID_PLACES);
        bench_row(&row);
        list_facts const facts = facts_of(offsets, ids, p.n);
        bench_check_total(facts.total, half ? total / 2 : total, c.name);
        bench_check(half ? facts.rows + facts.ids == full.rows : facts.rows == facts.ids, c.name);
        if (!half) full = facts;
    }
}

/* ---- insert: source 000, Figure 3 ------------------------------------------------------------ */

const int32_t insert_sizes[] = {2000, 8000, 32000, 128000, 512000, 1000000, 2000000, 10000000};

ugrid_desc cube_desc(float edge)
{
    ugrid_desc desc = {};
    desc.max[0] = desc.max[1] = desc.max[2] = edge;
    desc.cell = edge / 64;
    return desc;
}

/* One cell of the matrix. A tight list and a loose one must find the same pairs; a small radius
   keeps that quick. */
void insert_cell(const char *order, const device_array<float> &pos, int32_t n, const way &how,
                 int64_t &expected)
{
    float const radius = 0.1f;
    gpu_grid grid;
    bench_row_s row = {};
    ugrid_desc desc = choose(cube_desc(64), how);
    fit_slots(grid, desc, pos.data, n);
    row.group = "insert";
    row.workload = order;
    row.method = how.name;
    row.n = n;
    row.ms = gpu_ms([&] { grid.build(desc, pos.data, 0, n); });
    bench_cell(&row, bench_rate(n, row.ms));
    int64_t const pairs = pairs_of(grid, radius);
    if (expected < 0) expected = pairs;
    bench_check_total(pairs, expected, how.name);
}

void insert_matrix(const char *order, const std::vector<device_array<float>> &sets)
{
    std::vector<int64_t> expected(sets.size(), -1);
    std::string const title =
        std::string(
            "insert: M particles/s by number of particles; 64^3 cells, left half filled, ") +
        order + " (000, Figure 3)";
    bench_matrix(title.c_str(), "method");
    for (std::size_t s = 0; s < sets.size(); s++)
        std::printf(" %9d", static_cast<int>(insert_sizes[s]));
    for (way const &how : insert_ways) {
        bench_line(how.name);
        for (std::size_t s = 0; s < sets.size(); s++)
            insert_cell(order, sets[s], insert_sizes[s], how, expected[s]);
    }
    std::printf("\n");
}

void bench_insert(int32_t most)
{
    std::vector<device_array<float>> shuffled, ordered;
    std::vector<float> pos(3 * static_cast<std::size_t>(most));
    wl_uniform(most, 5, pos.data());
    /* the left half of 64 x 64 x 64 cells of edge 1 */
    for (std::size_t k = 0; k < pos.size(); k++) pos[k] *= k % 3 == 0 ? 32 : 64;
    for (int32_t n : insert_sizes) {
        if (n > most) break;
        shuffled.emplace_back(3 * static_cast<std::size_t>(n));
        shuffled.back().upload(pos.data());
        ugrid_desc desc = cube_desc(64);
        desc.method = UGRID_SORT;
        ordered.push_back(coherent(shuffled.back(), desc, n));
    }
    must(cudaStreamSynchronize(stream));
    insert_matrix("shuffled", shuffled);
    insert_matrix("frame-coherent", ordered);
    std::printf("000 on a GTX 660: lists up to 2 x FIXED and 7 x SORT for a whole step, insertion "
                "up to 17 x SORT; 2000 M/s at 1M\n");
}

/* ---- walks: source 001 ----------------------------------------------------------------------- */

/* Counts the neighbours of each place, as a user's kernel would: one particle after another. */
__global__ void __launch_bounds__(block_size)
    next_kernel(__grid_constant__ const ugrid_device device, float radius, int32_t *counts)
{
    int64_t const thread = thread_index();
    if (thread >= device.grid.n) return;
    int32_t const place = static_cast<int32_t>(thread);
    ugrid_near near = ugrid_near_place(&device, place, radius);
    float p[3], q[3];
    int32_t count = 0;
    ugrid_point(&device.grid, place, p);
    while (ugrid_next(&near)) {
        ugrid_point(&device.grid, near.place, q);
        count += ugrid_distance2(&device.grid, p, q) <= radius * radius;
    }
    counts[place] = count;
}

/* The same by ranges: the inner loop is the user's, as in 001. */
__global__ void __launch_bounds__(block_size)
    range_kernel(__grid_constant__ const ugrid_device device, float radius, int32_t *counts)
{
    int64_t const thread = thread_index();
    if (thread >= device.grid.n) return;
    int32_t const place = static_cast<int32_t>(thread);
    ugrid_near near = ugrid_near_place(&device, place, radius);
    float p[3];
    int32_t count = -1; /* not itself */
    ugrid_point(&device.grid, place, p);
    while (ugrid_next_range(&near))
        for (int32_t k = near.begin; k < near.end; k++)
            count += ugrid_distance2(&device.grid, p, device.grid.record[k].x) <= radius * radius;
    counts[place] = count;
}

constexpr int competitors = 4;
using neighborhood_list = std::vector<int>;
const neighborhood_list neighborhoods = {10, 20, 46, 100, 200, 300};

enum walk_loop { by_range, by_next, ready_made };

struct walk_line { const char *name; ugrid_walk walk; walk_loop loop; };

/* The first four compete for "best". */
const walk_line walk_lines[] = {
    {"CELLS, ugrid_next_range",    UGRID_CELLS,   by_range},
    {"STRIPS, ugrid_next_range",   UGRID_STRIPS,  by_range},
    {"MODULAR, ugrid_next_range",  UGRID_MODULAR, by_range},
    {"HYBRID, ugrid_next_range",   UGRID_HYBRID,  by_range},
    {"CELLS, ugrid_next",          UGRID_CELLS,   by_next},
    {"STRIPS, ugrid_next",         UGRID_STRIPS,  by_next},
    {"ugrid_cuda_count_neighbors", UGRID_STRIPS,  ready_made}
};

constexpr int all_walks = static_cast<int>(sizeof walk_lines / sizeof *walk_lines);

float radius_for(int dim, int32_t n, int neighbors)
{
    return dim == 3 ? wl_radius(n, neighbors)
                    : static_cast<float>(std::sqrt(neighbors / (3.14159265358979 * n)));
}

/* Particles to walk among. */
struct walk_set {
    const char *group, *kind;   /* kind: "2D-", before the number of neighbours */
    int dim;
    int32_t n;
    device_array<float> pos;
};

double walk_ms(const device_array<float> &pos, int dim, float radius, const walk_line &line,
               device_array<int32_t> &counts)
{
    int32_t const n = static_cast<int32_t>(counts.count);
    gpu_grid grid;
    ugrid_desc desc = {};
    desc.dim = dim;
    desc.max[0] = desc.max[1] = desc.max[2] = 1;
    desc.cell = radius;
    desc.method = UGRID_SORT;
    desc.walk = line.walk;
    grid.build(desc, pos.data, 12, n);
    if (line.loop == by_range)
        return gpu_ms([&] { launch(n, range_kernel, grid.gpu.device, radius, counts.data); });
    if (line.loop == by_next)
        return gpu_ms([&] { launch(n, next_kernel, grid.gpu.device, radius, counts.data); });
    return gpu_ms([&] {
        must(ugrid_cuda_count_neighbors(&grid.gpu, radius, UGRID_PLACES, counts.data, stream));
    });
}

/* One cell of the table; its total must be that of the first line. */
double walk_cell(const walk_set &set, int neighbors, const walk_line &line, int64_t &total)
{
    device_array<int32_t> counts(static_cast<std::size_t>(set.n));
    bench_row_s row = {};
    std::string const name = set.kind + std::to_string(neighbors);
    row.group = set.group;
    row.workload = name.c_str();
    row.method = line.name;
    row.n = set.n;
    row.ms = walk_ms(set.pos, set.dim, radius_for(set.dim, set.n, neighbors), line, counts);
    bench_cell(&row, row.ms);
    int64_t const got = sum_of(counts);
    if (total < 0) total = got;
    bench_check_total(got, total, line.name);
    return row.ms;
}

/* ms: [columns] of each of the four. */
void best_lines(const std::vector<double> ms[competitors])
{
    std::vector<int> best;
    for (std::size_t k = 0; k < ms[0].size(); k++) {
        best.push_back(0);
        for (int l = 1; l < competitors; l++) if (ms[l][k] < ms[best[k]][k]) best[k] = l;
    }
    bench_line("best of these four");
    for (int b : best)
        std::printf(" %9.*s", static_cast<int>(std::strcspn(walk_lines[b].name, ",")),
                    walk_lines[b].name);
    bench_line("  times faster than CELLS");
    for (std::size_t k = 0; k < best.size(); k++) bench_number(ms[0][k] / ms[best[k]][k], 9);
}

/* `lines` of the walks, the first four of which are compared. */
void walk_table(const walk_set &set, int lines, const char *how,
                const neighborhood_list &near = neighborhoods)
{
    std::vector<int64_t> totals(near.size(), -1);
    std::vector<double> ms[competitors];
    std::string const title = std::string(set.group) + ": ms to visit the neighbours of each of " +
                              size_name(set.n) + how + " particles in " + std::to_string(set.dim) +
                              "D (001)";
    bench_matrix(title.c_str(), "neighbours within the radius");
    for (int k : near) std::printf(" %9d", k);
    for (int l = 0; l < lines; l++) {
        bench_line(walk_lines[l].name);
        for (std::size_t k = 0; k < near.size(); k++) {
            double const cell = walk_cell(set, near[k], walk_lines[l], totals[k]);
            if (l < competitors) ms[l].push_back(cell);
        }
        if (l + 1 == competitors) best_lines(ms);
    }
    std::printf("\n");
}

/* Anywhere in the unit square or cube. */
walk_set random_set(const char *group, const char *kind, int dim, int32_t n)
{
    std::vector<float> host(3 * static_cast<std::size_t>(n));
    walk_set set = {group, kind, dim, n, device_array<float>(host.size())};
    if (dim == 2) wl_square(n, 6, host.data());
    else wl_uniform(n, 6, host.data());
    set.pos.upload(host.data());
    must(cudaStreamSynchronize(stream)); /* host goes */
    return set;
}

/* Evenly: on a square or cubic lattice, row after row. */
walk_set lattice_set(const char *group, const char *kind, int dim, int32_t n)
{
    std::vector<float> host(3 * static_cast<std::size_t>(n));
    walk_set set = {group, kind, dim, n, device_array<float>(host.size())};
    int32_t side = 1;
    while ((dim == 2 ? int64_t{1} : side) * side * side < n) side++;
    for (int32_t i = 0; i < n; i++) {
        int32_t const site[3] = {i % side, i / side % side, dim == 2 ? 0 : i / side / side};
        float *const p = &host[3 * static_cast<std::size_t>(i)];
        for (int a = 0; a < dim; a++)
            p[a] = (static_cast<float>(site[a]) + 0.5f) / static_cast<float>(side);
    }
    set.pos.upload(host.data());
    must(cudaStreamSynchronize(stream));
    return set;
}

void bench_walks()
{
    for (int dim : {2, 3})
        for (int32_t n : {40000, 100000, 300000, 1000000})
            if (!bench.quick || n == 100000)
                walk_table(random_set("walks", dim == 2 ? "2D-" : "3D-", dim, n), all_walks, "");
    std::printf("001 on a Titan X Pascal: 2D MODULAR up to 2.5 x CELLS (300k agents, 46 "
                "neighbours); 3D HYBRID 1.25 to 4 x, up to 5 x (40k agents, 47)\n");
}

/* ---- sweep: the source's own comparison, agents by neighbours, evenly and anywhere ----------- */

void bench_sweep()
{
    std::vector<int32_t> sizes = {10000,  20000,  40000,  70000,  100000,
                                  200000, 300000, 500000, 700000, 1000000};
    if (bench.quick) sizes = {40000, 100000};
    if (bench.n) sizes = {bench.n};
    for (int dim : {2, 3})
        for (int32_t n : sizes) {
            walk_table(lattice_set("sweep", dim == 2 ? "2D-even-" : "3D-even-", dim, n),
                       competitors, " evenly spread");
            walk_table(random_set("sweep", dim == 2 ? "2D-random-" : "3D-random-", dim, n),
                       competitors, " randomly spread");
        }
}

/* ---- beyond: more than 300 neighbours, as far as the source's plots go and further ----------- */

void bench_beyond()
{
    int32_t const n = bench.n ? bench.n : bench.small ? 2000 : 100000;
    neighborhood_list const near = {300, 400, 500, 600, 800, 1000};
    for (int dim : {2, 3}) {
        walk_table(lattice_set("beyond", dim == 2 ? "2D-even-" : "3D-even-", dim, n), competitors,
                   " evenly spread", near);
        walk_table(random_set("beyond", dim == 2 ? "2D-random-" : "3D-random-", dim, n),
                   competitors, " randomly spread", near);
    }
}

/* ---- periods: 46 neighbours, and so many numbers of agents that the source's periods could
   show: a GPU takes its blocks in waves ---- */

void bench_periods()
{
    int32_t const step = bench.small ? 1000 : 20000, most = bench.small ? 2000 : 1000000;
    for (int dim : {2, 3})
        for (int32_t n = step; n <= most; n += step)
            walk_table(random_set("periods", dim == 2 ? "2D-random-" : "3D-random-", dim, n),
                       competitors, " randomly spread", {46});
}

/* ---- messages: bytes that are read of each neighbour, by plain loads, through the read-only path,
   or by texture objects (as 000 reads its packed lists); more than 300 neighbours ---- */

enum read_path { by_load, by_read_only, by_texture, read_paths };
const char *const path_name[] = {"", ", read-only path", ", texture"};

/* The same memory as a pointer and, where textures read it, as a texture. */
struct message_source {
    const float4 *data;
    cudaTextureObject_t texture;
};

template <read_path path> __device__ float4 message_at(const message_source &from, int64_t k)
{
    if (path == by_texture) return tex1Dfetch<float4>(from.texture, static_cast<int>(k));
    return path == by_read_only ? __ldg(from.data + k) : from.data[k];
}

/* Elements of 16 bytes on the device as a texture; made only for that path. */
struct bound_messages {
    message_source source;

    bound_messages(const void *data, int64_t count, read_path path)
        : source{static_cast<const float4 *>(data), 0}
    {
        if (path != by_texture) return;
        cudaResourceDesc resource = {};
        cudaTextureDesc how = {};
        resource.resType = cudaResourceTypeLinear;
        resource.res.linear.devPtr = const_cast<void *>(data);
        resource.res.linear.desc = cudaCreateChannelDesc<float4>();
        resource.res.linear.sizeInBytes = static_cast<std::size_t>(count) * sizeof(float4);
        how.readMode = cudaReadModeElementType;
        must(cudaCreateTextureObject(&source.texture, &resource, &how, nullptr));
    }
    bound_messages(const bound_messages &) = delete;
    bound_messages &operator=(const bound_messages &) = delete;
    ~bound_messages() { if (source.texture) must(cudaDestroyTextureObject(source.texture)); }
};

/* As range_kernel; of every neighbour `more` further float4 are read, each with 1 in front. The
   record of a float build is a float4. */
template <read_path path>
__global__ void __launch_bounds__(block_size)
    message_kernel(__grid_constant__ const ugrid_device device, float radius,
                   message_source records, message_source messages, int32_t more, int32_t *counts)
{
    int64_t const thread = thread_index();
    if (thread >= device.grid.n) return;
    int32_t const place = static_cast<int32_t>(thread);
    ugrid_near near = ugrid_near_place(&device, place, radius);
    float p[3], sum = 0;
    int32_t count = 0;
    ugrid_point(&device.grid, place, p);
    while (ugrid_next_range(&near))
        for (int32_t k = near.begin; k < near.end; k++) {
            float4 const at = message_at<path>(records, k);
            float const q[3] = {at.x, at.y, at.z};
            if (k == place || ugrid_distance2(&device.grid, p, q) > radius * radius) continue;
            count++;
            for (int32_t w = 0; w < more; w++)
                sum += message_at<path>(messages, static_cast<int64_t>(k) * more + w).x;
        }
    counts[place] = count + static_cast<int32_t>(sum);
}

/* The packed linked lists of 000: position and link in one read of 16 bytes, anywhere in memory.
   The box is 0 .. 1. */
template <read_path path>
__global__ void __launch_bounds__(block_size)
    list_message_kernel(__grid_constant__ const ugrid_device device, float radius,
                        message_source records, int32_t *counts)
{
    int64_t const thread = thread_index();
    if (thread >= device.grid.n) return;
    int32_t const id = static_cast<int32_t>(thread), cells = device.grid.axis[0].cells;
    float p[3];
    int32_t at[3], count = -1; /* not itself */
    ugrid_point(&device.grid, id, p);
    for (int a = 0; a < 3; a++) at[a] = min(static_cast<int32_t>(p[a] * cells), cells - 1);
    for (int32_t z = max(at[2] - 1, 0); z <= min(at[2] + 1, cells - 1); z++)
        for (int32_t y = max(at[1] - 1, 0); y <= min(at[1] + 1, cells - 1); y++)
            for (int32_t x = max(at[0] - 1, 0); x <= min(at[0] + 1, cells - 1); x++) {
                int32_t k = device.grid.head[(z * cells + y) * cells + x];
                while (k >= 0) {
                    float4 const one = message_at<path>(records, k);
                    float const q[3] = {one.x, one.y, one.z};
                    count += ugrid_distance2(&device.grid, p, q) <= radius * radius;
                    k = __float_as_int(one.w);
                }
            }
    counts[id] = count;
}

__global__ void ones_kernel(float4 *messages, int64_t count)
{
    int64_t const k = thread_index();
    if (k < count) messages[k] = float4{1, 0, 0, 0};
}

constexpr int message_columns = 4;
const int message_neighbors[message_columns] = {46, 300, 600, 1000};

/* One cell of the table: a walk, a path, and so many float4 behind the record. */
void message_cell(const walk_set &set, int neighbors, const walk_line &line, read_path path,
                  int32_t more, int64_t &total)
{
    float const radius = radius_for(set.dim, set.n, neighbors);
    device_array<int32_t> counts(static_cast<std::size_t>(set.n));
    device_array<float4> messages(static_cast<std::size_t>(set.n) * (more ? more : 1));
    gpu_grid grid;
    ugrid_desc desc = {};
    bench_row_s row = {};
    std::string const name = set.kind + std::to_string(neighbors),
                      method = std::string(line.name) + ", " + std::to_string(16 * (1 + more)) +
                               " bytes" + path_name[path];
    desc.dim = set.dim;
    desc.max[0] = desc.max[1] = desc.max[2] = 1;
    desc.cell = radius;
    desc.method = UGRID_SORT;
    desc.walk = line.walk;
    grid.build(desc, set.pos.data, 12, set.n);
    launch(static_cast<int64_t>(messages.count), ones_kernel, messages.data,
           static_cast<int64_t>(messages.count));
    bound_messages const records(grid.gpu.device.grid.record, set.n, path),
        further(messages.data, static_cast<int64_t>(messages.count), path);
    auto const kernel = path == by_load        ? message_kernel<by_load>
                        : path == by_read_only ? message_kernel<by_read_only>
                                               : message_kernel<by_texture>;
    row.group = set.group;
    row.workload = name.c_str();
    row.method = method.c_str();
    row.n = set.n;
    row.ms = gpu_ms([&] {
        launch(set.n, kernel, grid.gpu.device, radius, records.source, further.source, more,
               counts.data);
    });
    bench_cell(&row, row.ms);
    int64_t const got = sum_of(counts) / (1 + more);
    if (total < 0) total = got;
    bench_check_total(got, total, method.c_str());
}

void list_cell(const walk_set &set, int neighbors, read_path path, int64_t &total)
{
    float const radius = radius_for(set.dim, set.n, neighbors);
    device_array<int32_t> counts(static_cast<std::size_t>(set.n));
    gpu_grid grid;
    ugrid_desc desc = {};
    bench_row_s row = {};
    std::string const name = set.kind + std::to_string(neighbors),
                      method = std::string("LIST_PACKED, 16 bytes") + path_name[path];
    desc.max[0] = desc.max[1] = desc.max[2] = 1;
    desc.cell = radius;
    desc.method = UGRID_LIST_PACKED;
    grid.build(desc, set.pos.data, 12, set.n);
    row.group = set.group;
    row.workload = name.c_str();
    row.method = method.c_str();
    row.n = set.n;
    bound_messages const records(grid.gpu.device.grid.record, set.n, path);
    auto const kernel = path == by_load        ? list_message_kernel<by_load>
                        : path == by_read_only ? list_message_kernel<by_read_only>
                                               : list_message_kernel<by_texture>;
    row.ms = gpu_ms([&] {
        launch(set.n, kernel, grid.gpu.device, radius, records.source, counts.data);
    });
    bench_cell(&row, row.ms);
    int64_t const got = sum_of(counts);
    if (total < 0) total = got;
    bench_check_total(got, total, row.method);
}

void bench_messages()
{
    int32_t const n = bench.n ? bench.n : bench.small ? 2000 : bench.quick ? 100000 : 300000;
    walk_set const set = random_set("messages", "3D-", 3, n);
    int64_t totals[message_columns] = {-1, -1, -1, -1};
    bench_matrix(("messages: ms to read those of the neighbours of each of " + size_name(n) +
                  " particles in 3D (001)").c_str(), "neighbours within the radius");
    for (int k : message_neighbors) std::printf(" %9d", k);
    for (int p = 0; p < read_paths; p++) {
        read_path const path = static_cast<read_path>(p);
        bench_line((std::string("LIST_PACKED, 16 bytes") + path_name[p]).c_str());
        for (int k = 0; k < message_columns; k++)
            list_cell(set, message_neighbors[k], path, totals[k]);
    }
    for (int32_t more : {0, 1, 3, 7})
        for (int l = 0; l < competitors; l++)
            for (int p = 0; p < read_paths; p++) {
                read_path const path = static_cast<read_path>(p);
                std::string const label = std::string(walk_lines[l].name).substr(
                                              0, std::strcspn(walk_lines[l].name, ",")) +
                                          ", " + std::to_string(16 * (1 + more)) +
                                          " bytes" + path_name[p];
                bench_line(label.c_str());
                for (int k = 0; k < message_columns; k++)
                    message_cell(set, message_neighbors[k], walk_lines[l], path, more, totals[k]);
            }
    std::printf("\n000: packed lists read through textures up to 45 %% faster (GTX 660)\n");
}

/* ---- sums: source 003 ------------------------------------------------------------------------ */

/* Small integers that depend on the position alone: sums are exact in any order, for any order of
   the particles. */
UGRID_FN float value_at(const float *p, int32_t w)
{
    return static_cast<float>(static_cast<int32_t>(8 * p[0]) + w);
}

__global__ void values_kernel(const float *pos, int32_t n, int32_t width, float *values)
{
    int64_t const k = thread_index();
    if (k < static_cast<int64_t>(n) * width)
        values[k] = value_at(pos + 3 * (k / width), static_cast<int32_t>(k % width));
}

std::vector<float> expected_sums(int32_t n, int32_t width)
{
    std::vector<float> pos(3 * static_cast<std::size_t>(n)),
        sums(static_cast<std::size_t>(64 * 64 * 64 * width), 0.0f);
    wl_uniform(n, n == 10000000 ? 2 : 1, pos.data());
    for (int32_t i = 0; i < n; i++) {
        const float *p = &pos[3 * static_cast<std::size_t>(i)];
        std::size_t const cell = static_cast<std::size_t>(
            (static_cast<int>(64 * p[2]) * 64 + static_cast<int>(64 * p[1])) * 64 +
            static_cast<int>(64 * p[0]));
        for (int32_t w = 0; w < width; w++)
            sums[cell * static_cast<std::size_t>(width) + static_cast<std::size_t>(w)] +=
                value_at(p, w);
    }
    return sums;
}

struct sums_case { const char *name; ugrid_method method; bool by_place; };

/* Plain atomics, then aggregated ones, over the same grid and values. */
void sums_rows(const points &p, int32_t width, const sums_case &c,
               const std::vector<float> &expected)
{
    gpu_grid grid;
    std::size_t const count = static_cast<std::size_t>(p.n) * static_cast<std::size_t>(width),
                      bytes = static_cast<std::size_t>(width) * sizeof(float);
    device_array<float> by_id(count), values(count), sums(expected.size());
    ugrid_desc desc = cube_desc(1);
    desc.method = c.method;
    grid.build(desc, p.pos.data, 0, p.n);
    launch(static_cast<int64_t>(count), values_kernel, p.pos.data, p.n, width, by_id.data);
    must(ugrid_cuda_gather(&grid.gpu, by_id.data, bytes, values.data, stream));
    const float *const d_values = c.by_place ? values.data : by_id.data;
    double plain = 0;
    for (int flags : {static_cast<int>(UGRID_PLAIN_ATOMICS), 0}) {
        std::string const name = std::string(flags ? "plain, " : "aggregated, ") + c.name +
                                 ", width " + std::to_string(width);
        int const all = flags | (c.by_place ? static_cast<int>(UGRID_PLACES) : 0);
        double const ms = gpu_ms([&] {
            must(ugrid_cuda_cell_sums(&grid.gpu, d_values, width, all, sums.data, stream));
        });
        if (flags) plain = ms;
        double const position = c.method == UGRID_SORT ? 16 : 12;
        bench_row_s row =
            search_row("sums", p, name.c_str(), ms,
                       ((position + 4 * width) * p.n + 4.0 * static_cast<double>(expected.size())) /
                           copy_speed);
        row.base_ms = plain;
        bench_row(&row);
        bench_check(sums.download() == expected, name.c_str());
    }
}

void bench_sums(const std::vector<points> &sets)
{
    static const sums_case cases[] = {
        {"LIST: caller's order",     UGRID_LIST, false},
        {"SORT: values by id",       UGRID_SORT, false},
        {"SORT: values by place",    UGRID_SORT, true}
    };
    bench_title("sums: an attribute summed per cell, 64^3 cells: an atomic per particle against "
                "one per warp and cell (003)",
                "plain");
    for (int32_t width : {1, 4}) {
        std::vector<float> expected;
        int32_t known = 0;
        for (points const &p : sets) {
            if (p.name.find("coherent") != std::string::npos) continue;
            if (known != p.n) expected = expected_sums(p.n, width);
            known = p.n;
            for (sums_case const &c : cases) sums_rows(p, width, c, expected);
        }
    }
}

/* ---- boxes: a box for each particle (000, section 1) ----------------------------------------- */

/* Counts pairs of boxes that overlap among the candidates of a grid that knows one size alone. */
__global__ void one_size_kernel(__grid_constant__ const ugrid_device device, const float *half,
                                float reach, unsigned long long *pairs)
{
    int64_t const place = thread_index();
    if (place >= device.grid.n) return;
    int32_t const i = ugrid_id(&device.grid, static_cast<int32_t>(place));
    bool const tight = device.grid.desc.placement == UGRID_TIGHT;
    ugrid_near walk = tight ? ugrid_near_overlaps_half(&device, i)
                            : ugrid_near_half(&device, static_cast<int32_t>(place), reach);
    unsigned long long count = 0;
    float p[3], q[3];
    ugrid_point(&device.grid, static_cast<int32_t>(place), p);
    while (ugrid_next(&walk)) {
        bool overlap = true;
        ugrid_point(&device.grid, walk.place, q);
        for (int a = 0; a < 3; a++) {
            float const sum = half[3 * static_cast<int64_t>(i) + a] +
                              half[3 * static_cast<int64_t>(walk.id) + a];
            overlap = overlap && fabsf(q[a] - p[a]) <= sum;
        }
        count += overlap;
    }
    if (count > 0) atomicAdd(pairs, count);
}

/* One way: building, and counting all pairs. sizes: with desc.half_extents. */
void boxes_row(const points &p, ugrid_method method, ugrid_placement placement,
               const device_array<float> &half, bool sizes, int64_t expected)
{
    gpu_grid grid;
    device_array<int64_t> pairs(1);
    ugrid_desc desc = desc_of(p, method);
    desc.placement = placement;
    if (sizes) desc.half_extents = half.data;
    std::string const name = std::string(method == UGRID_LIST ? "LIST" : "COUNT") +
                             (placement != UGRID_TIGHT ? ", loose"
                                  : sizes              ? ", a box for each"
                                                       : ", tight, one size");
    bench_row_s row = {};
    row.group = "boxes";
    row.workload = p.name.c_str();
    row.n = p.n;
    std::string const build = name + ": build", search = name + ": pairs";
    row.method = build.c_str();
    row.ms = gpu_ms([&] { grid.build(desc, p.pos.data, 0, p.n); });
    bench_row(&row);
    row.method = search.c_str();
    row.ms = gpu_ms([&] {
        if (sizes) {
            must(ugrid_cuda_count_overlaps(&grid.gpu, pairs.data, stream));
        } else {
            must(cudaMemsetAsync(pairs.data, 0, sizeof(int64_t), stream));
            launch(p.n, one_size_kernel, grid.gpu.device, half.data, p.radius,
                   reinterpret_cast<unsigned long long *>(pairs.data));
        }
    });
    bench_row(&row);
    bench_check_total(pairs.download()[0], expected, search.c_str());
}

/* Boxes of 0.1 to 1 cell; in "few large" 31 of 32 have 0.1 to 0.2 cells. */
void bench_boxes()
{
    int32_t const n = bench.n ? bench.n : 1000000;
    for (bool few : {false, true}) {
        wl_random dice = wl_seed(7);
        std::vector<float> pos(3 * static_cast<std::size_t>(n)), half(pos.size());
        points p = {few ? "few large" : "any size", n, wl_radius(n, 8), {1, 1, 1}, 0,
                    device_array<float>(pos.size())};
        wl_uniform(n, 5, pos.data());
        for (std::size_t k = 0; k < half.size(); k++) {
            bool const large = !few || k / 3 % 32 == 0;
            half[k] = p.radius / 2 *
                      (0.1f + (large ? 0.9f : 0.1f) * static_cast<float>(wl_u(&dice)));
        }
        p.pos.upload(pos.data());
        device_array<float> d_half(half.size());
        d_half.upload(half.data());
        ugrid serial = {};
        ugrid_desc desc = desc_of(p, UGRID_LIST);
        desc.placement = UGRID_TIGHT;
        desc.half_extents = half.data();
        int64_t pairs = 0;
        must(ugrid_build(&serial, &desc, pos.data(), 0, n));
        must(ugrid_count_overlaps(&serial, &pairs));
        ugrid_free(&serial);
        bench_title(("boxes that overlap, " + p.name).c_str(), nullptr);
        std::printf("%.2f a particle\n", static_cast<double>(pairs) / n);
        for (ugrid_method method : {UGRID_LIST, UGRID_COUNT}) {
            boxes_row(p, method, UGRID_LOOSE, d_half, false, pairs);
            boxes_row(p, method, UGRID_TIGHT, d_half, false, pairs);
            boxes_row(p, method, UGRID_TIGHT, d_half, true, pairs);
        }
    }
}

/* ---- scaling, largest ------------------------------------------------------------------------ */

} // namespace

#include "tests/bench/scaling_gpu.h"

namespace {

/* About 29 neighbours within the radius, which is also the edge of a cell. */
struct grid_case {
    static constexpr const char *first = "ugrid: build", *second = "ugrid: count neighbours";
    static constexpr int64_t most = 2147482624;
    int32_t n;
    float radius;
    ugrid_desc desc = {};
    device_array<float> pos;
    device_array<int32_t> counts;
    gpu_grid grid;

    explicit grid_case(int32_t particles)
        : n(particles), radius(wl_radius(n, 30)), pos(3 * static_cast<std::size_t>(n)),
          counts(static_cast<std::size_t>(n))
    {
        for (float &max : desc.max) max = 1;
        desc.cell = radius;
        desc.max_cells = most;
        spread(pos);
    }
    void build() { grid.build(desc, pos.data, 0, n); }
    void search()
    {
        must(ugrid_cuda_count_neighbors(&grid.gpu, radius, UGRID_PLACES, counts.data, stream));
    }
    double arrays() const { return held_by(grid.gpu.block); }
    double space() const { return held_by(grid.gpu.scratch); }
    void check()
    {
        int64_t const total = sum_of(counts);
        must(ugrid_cuda_check(&grid.gpu, stream));
        bench_check_total(total, pairs_of(grid, radius), "scaling: neighbours, and pairs twice");
        bench_check(total > int64_t{15} * n, "scaling: too few neighbours");
    }
};

/* ---- defaults: nothing set but the radius, beside the settings that the manual offers ------- */

/* parts: of the radius, the edge of a cell; 0: chosen. */
struct attempt { const char *name; ugrid_method method; int32_t split, coherent, parts; };

const attempt attempts[] = {
    {"default",                  UGRID_AUTO,  0, 0, 0}, /* the first of all */
    {"split 1",                  UGRID_COUNT, 1, 0, 1},
    {"split 4",                  UGRID_COUNT, 4, 0, 1},
    {"half the radius",          UGRID_COUNT, 1, 0, 2},
    {"half the radius, split 2", UGRID_COUNT, 2, 0, 2},
    {"coherent",                 UGRID_COUNT, 1, 1, 1},
    {"SORT",                     UGRID_SORT,  1, 0, 1}
};
constexpr std::size_t first_builds = 3; /* attempts of the row of that name */

/* A point set with a grid for each setting. No grid has been built or checked before. */
struct default_set {
    const points &p;
    int32_t dim;
    device_array<int32_t> counts;
    device_array<int64_t> offsets;
    std::unique_ptr<device_array<int32_t>> ids;
    gpu_grid grids[std::size(attempts)];
    ugrid_desc descs[std::size(attempts)];

    default_set(const points &of, int32_t dimensions)
        : p(of), dim(dimensions), counts(static_cast<std::size_t>(p.n)),
          offsets(static_cast<std::size_t>(p.n) + 1)
    {
        for (std::size_t k = 0; k < std::size(attempts); k++) {
            descs[k] = desc_of(p, attempts[k].method);
            descs[k].dim = dim;
            descs[k].split = attempts[k].split;
            descs[k].coherent = attempts[k].coherent;
            descs[k].cell = k ? p.radius / static_cast<float>(attempts[k].parts) : 0;
            descs[k].radius = p.radius;
            build(k);
        }
        std::size_t const pairs = static_cast<std::size_t>(pairs_of(grids[0], p.radius));
        ids.reset(new device_array<int32_t>(pairs));
    }
    void build(std::size_t k) { grids[k].build(descs[k], p.pos.data, 12, p.n); }
    void count(std::size_t k)
    {
        must(ugrid_cuda_count_neighbors(&grids[k].gpu, p.radius, UGRID_PLACES, counts.data,
                                        stream));
    }
    void list(std::size_t k, int flags)
    {
        must(ugrid_cuda_neighbors(&grids[k].gpu, p.radius, flags, offsets.data, ids->data,
                                  static_cast<int64_t>(ids->count), stream));
    }
    void first(std::size_t k) /* nothing is known, and memory has to be taken */
    {
        ugrid_cuda_free(&grids[k].gpu);
        build(k);
    }
    template <class Call>
    void row(const char *call, Call work, std::size_t count = std::size(attempts))
    {
        std::vector<default_call> calls;
        for (std::size_t k = 0; k < count; k++)
            calls.push_back({attempts[k].name, [=] { work(k); }});
        defaults_row(p.name, p.n, call, calls, grids[0].gpu.device.grid.reason);
    }
};

void defaults_rows(const points &p, int32_t dim)
{
    default_set set(p, dim);
    set.row("first build", [&](std::size_t k) { set.first(k); }, first_builds);
    set.row("build", [&](std::size_t k) { set.build(k); });
    set.row("count by place", [&](std::size_t k) { set.count(k); });
    set.row("list by place", [&](std::size_t k) { set.list(k, UGRID_PLACES); });
    set.row("list by id", [&](std::size_t k) { set.list(k, 0); });
    set.row("build + count", [&](std::size_t k) { set.build(k); set.count(k); });
    set.row("build + list by id", [&](std::size_t k) { set.build(k); set.list(k, 0); });
    for (gpu_grid &grid : set.grids)
        bench_check_total(pairs_of(grid, p.radius), static_cast<int64_t>(set.ids->count),
                          "defaults: pairs");
}

/* Evenly spread, with so many neighbours each, in a square or a cube. */
points spread_evenly(int32_t dim, int32_t n, double neighbors)
{
    std::vector<float> pos(3 * static_cast<std::size_t>(n)); /* of a point in 2D: x, y, 0 */
    if (dim == 2) wl_square(n, 6, pos.data());
    else wl_uniform(n, 6, pos.data());
    points p = {std::to_string(dim) + "D-" + size_name(n) + ", " +
                    std::to_string(static_cast<int>(neighbors)),
                n,
                dim == 3 ? wl_radius(n, neighbors)
                         : static_cast<float>(std::sqrt(neighbors / (3.14159265 * n))),
                {1, 1, dim == 3 ? 1.0f : 0.0f},
                0,
                device_array<float>(pos.size())};
    p.pos.upload(pos.data());
    return p;
}

void bench_defaults()
{
    std::vector<int32_t> sizes = {1000000, 10000000}, few = {40000, 200000, 400000, 1000000};
    if (bench.quick) sizes = {1000000};
    if (bench.n) sizes = few = {bench.n};
    bench_defaults_title("defaults: the radius told and nothing else; about 29 neighbours each, or "
                         "as many as the name says");
    for (int32_t n : sizes)
        for (points const &p : uniform_sets(n)) defaults_rows(p, 3);
    defaults_rows(dam_set(sizes[0]), 3);
    for (int32_t n : few)
        for (int32_t dim : {2, 3})
            for (double neighbors : {10.0, 46.0, 300.0})
                if (neighbors < 300 || n < 1000000)
                    defaults_rows(spread_evenly(dim, n, neighbors), dim);
    bench_defaults_end();
}

/* ---- all of it ------------------------------------------------------------------------------- */

bool wants_sets()
{
    for (const char *group : {"ceilings", "build", "count", "csr", "sums"})
        if (bench_wants(group)) return true;
    return false;
}

std::vector<points> all_sets()
{
    std::vector<points> sets;
    std::vector<int32_t> sizes = {1000000, 10000000};
    if (bench.quick) sizes = {1000000};
    if (bench.n) sizes = {bench.n};
    for (int32_t n : sizes)
        for (points &p : uniform_sets(n)) sets.push_back(std::move(p));
    return sets;
}

void bench_searches(const std::vector<points> &sets)
{
    if (!bench_wants("count") && !bench_wants("csr")) return;
    points const dam = dam_set(bench.n ? bench.n : 1000000);
    for (const char *group : {"count", "csr"}) {
        bool const counts = std::strcmp(group, "count") == 0;
        if (!bench_wants(group)) continue;
        bench_title(counts ? "count: neighbours within the radius, about 29 each, grid built"
                           : "csr: neighbour lists, grid built",
                    nullptr);
        for (points const &p : sets)
            if (p.name.find("coherent") == std::string::npos) counts ? count_rows(p) : csr_rows(p);
        counts ? count_rows(dam) : csr_rows(dam);
    }
}

} // namespace

int main(int argc, char **argv)
{
    bench_start(argc, argv, "bench_ugrid_cuda",
                "ceilings,build,count,csr,insert,walks,sums,boxes,sweep,beyond,periods,messages,"
                "scaling,largest,defaults");
    double const begin = wall_ms();
    start_gpu();
    print_gpu("ugrid.h", ugrid_version());
    measure_copy();
    measure_tests();
    {
        std::vector<points> const sets = wants_sets() ? all_sets() : std::vector<points>();
        if (bench_wants("ceilings")) bench_ceilings(sets);
        if (bench_wants("build"))
            bench_title(
                "build: from positions to a grid that can be searched, cells as wide as the radius",
                nullptr);
        if (bench_wants("build")) for (points const &p : sets) build_rows(p);
        bench_searches(sets);
        if (bench_wants("insert"))
            bench_insert(bench.n ? bench.n : bench.quick ? 512000 : 10000000);
        if (bench_wants("walks")) bench_walks();
        if (bench_wants("sums")) bench_sums(sets);
    }
    if (bench_named("boxes")) bench_boxes();
    if (bench_named("sweep")) bench_sweep();
    if (bench_named("beyond")) bench_beyond();
    if (bench_named("periods")) bench_periods();
    if (bench_named("messages")) bench_messages();
    if (bench_named("scaling")) bench_scaling<grid_case>();
    if (bench_named("largest")) bench_largest<grid_case>();
    if (bench_named("defaults")) bench_defaults();
    stop_gpu();
    std::printf("\n%.1f s in all", (wall_ms() - begin) * 1e-3);
    return bench_end();
}
