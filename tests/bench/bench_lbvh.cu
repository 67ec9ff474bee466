/* bench_lbvh.cu - how fast is cuda/lbvh.cu on this GPU? README.md in this folder explains the
   tables.
   SPDX-License-Identifier: MIT OR Unlicense

       make bench-cuda                                       all of it, under a minute on an H200
       build/cuda/bench_lbvh --only build,pairs --quick --csv build.csv
       build/cuda/bench_lbvh --small      does it work at all? (also on the emulator)
       groups: ceilings build phases pairs radius nearest wide; only when named: scaling largest */

#define LBVH_STATIC
#define LBVH_WITH_WIDE
#define LBVH_IMPLEMENTATION
#define LBVH_CUDA
#include "lbvh.h"
#include "tests/bench/bench_gpu.h"
#include "tests/bench/scaling_gpu.h"
#include "tests/common/workloads.h"

namespace {

void must(lbvh_result result)
{
    if (result == LBVH_OK) return;
    std::printf("%s\n", lbvh_result_text(result));
    std::exit(1);
}

/* A tree that is freed at the end of its scope. */
struct gpu_tree {
    lbvh_cuda gpu = {};
    ~gpu_tree() { lbvh_cuda_free(&gpu); }
    void build(const lbvh_desc &desc, const device_array<float> &data, int32_t n)
    {
        must(lbvh_cuda_build(&gpu, &desc, data.data, 0, n, stream));
    }
};

struct host_tree {
    lbvh tree = {};
    ~host_tree() { lbvh_free(&tree); }
};

/* ---- what trees are built over --------------------------------------------------------------- */

struct elements {
    std::string name;
    int32_t n;
    lbvh_desc desc;             /* dim 3, kind; radius 0 */
    std::vector<float> host;
    device_array<float> data;
    float radius;               /* points: of the search */
    int64_t pairs;              /* points: ordered pairs within the radius, or 0 */
    float max[3];               /* bounds, from 0 on */
};

elements make_elements(const std::string &name, lbvh_kind kind, const std::vector<float> &host,
                       int32_t n)
{
    elements e = {name, n, {}, host, device_array<float>(host.size()), 0, 0, {1, 1, 1}};
    e.desc.kind = kind;
    e.data.upload(host.data());
    return e;
}

elements uniform(int32_t n, bool sorted)
{
    std::vector<float> pos(3 * static_cast<std::size_t>(n));
    wl_uniform(n, n == 10000000 ? 2 : 1, pos.data());
    if (sorted && !wl_sort_morton(n, pos.data(), nullptr)) std::exit(1);
    elements e =
        make_elements("uniform-" + size_name(n) + (sorted ? "-sorted" : ""), LBVH_POINTS, pos, n);
    e.radius = wl_radius(n, 30);
    e.pairs = n == 1000000 ? 29352150 : n == 10000000 ? 296942212 : 0;
    return e;
}

elements dam(int32_t n)
{
    std::vector<float> pos(3 * static_cast<std::size_t>(n));
    wl_dam(n, 3, pos.data());
    elements e = make_elements("dam-" + size_name(n), LBVH_POINTS, pos, n);
    e.radius = n == 1000000 ? 0.005577566f : 0.005577566f * cbrtf(1e6f / static_cast<float>(n));
    e.pairs = n == 1000000 ? 29997360 : 0;
    e.max[0] = 0.125f;
    return e;
}

/* 1000 cubes, from 1e-6 to 0.1 wide: the upper bits of their codes are equal. */
elements specks(int32_t n)
{
    std::vector<float> pos(3 * static_cast<std::size_t>(n)), speck(4 * 1000);
    wl_random r = wl_seed(5);
    for (std::size_t c = 0; c < speck.size(); c++)
        speck[c] = c % 4 < 3 ? 0.9f * wl_u(&r) : powf(10, -1 - 5 * wl_u(&r));
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); i++)
        for (std::size_t a = 0, c = wl_below(&r, 1000); a < 3; a++)
            pos[3 * i + a] = speck[4 * c + a] + speck[4 * c + 3] * wl_u(&r);
    return make_elements("specks-" + size_name(n), LBVH_POINTS, pos, n);
}

/* The points as boxes of the edge given. */
elements as_boxes(const elements &points, float edge, const char *suffix)
{
    std::vector<float> boxes(6 * static_cast<std::size_t>(points.n));
    for (std::size_t i = 0; i < static_cast<std::size_t>(points.n); i++)
        for (std::size_t a = 0; a < 3; a++) {
            boxes[6 * i + a] = points.host[3 * i + a] - edge / 2;
            boxes[6 * i + 3 + a] = points.host[3 * i + a] + edge / 2;
        }
    return make_elements(points.name + suffix, LBVH_BOXES, boxes, points.n);
}

/* The mixture of two sizes, as boxes. */
elements bidisperse(int32_t small)
{
    int32_t const n = small + wl_big(small);
    std::size_t const m = static_cast<std::size_t>(n);
    std::vector<float> pos(3 * m), radius(m), boxes(6 * m);
    wl_two_sizes(small, 4, pos.data(), radius.data());
    for (std::size_t i = 0; i < m; i++)
        for (std::size_t a = 0; a < 3; a++) {
            boxes[6 * i + a] = pos[3 * i + a] - radius[i];
            boxes[6 * i + 3 + a] = pos[3 * i + a] + radius[i];
        }
    elements e = make_elements("bidisperse-" + size_name(small), LBVH_BOXES, boxes, n);
    for (float &max : e.max) max = WL_EDGE;
    return e;
}

int numbers_of(const elements &e) { return e.desc.kind == LBVH_POINTS ? 3 : 6; }

/* ---- rows and checks ------------------------------------------------------------------------- */

bench_row_s row_of(const char *group, const elements &e, const char *method, double ms,
                   double bytes)
{
    bench_row_s row = {};
    row.group = group;
    row.workload = e.name.c_str();
    row.method = method;
    row.n = e.n;
    row.ms = ms;
    row.floor_ms = bytes / copy_speed;
    return row;
}

__global__ void tree_hash_kernel(const uint32_t *words, int64_t count, unsigned long long *sum)
{
    int64_t const k = thread_index();
    add_to(sum, k < count ? hash(words[k] ^ hash(static_cast<uint32_t>(k))) : 0);
}

/* Of all nodes. */
int64_t hash_of(const gpu_tree &tree)
{
    int64_t const words = (2 * static_cast<int64_t>(tree.gpu.device.tree.n) - 1) *
                          static_cast<int64_t>(sizeof(lbvh_node) / 4);
    const uint32_t *from = reinterpret_cast<const uint32_t *>(tree.gpu.device.tree.node);
    return device_sum(
        [&](unsigned long long *sum) { launch(words, tree_hash_kernel, from, words, sum); });
}

/* Is it the serial tree, bit for bit? */
bool is_serial_tree(const elements &e, const lbvh_desc &desc, const gpu_tree &tree)
{
    host_tree serial, here;
    must(lbvh_build(&serial.tree, &desc, e.host.data(), 0, e.n));
    must(lbvh_cuda_download(&here.tree, &tree.gpu, stream));
    return std::memcmp(serial.tree.node, here.tree.node,
                       (2 * static_cast<std::size_t>(e.n) - 1) * sizeof(lbvh_node)) == 0;
}

/* ---- ceilings -------------------------------------------------------------------------------- */

struct sort_times { double ms30, ms63; };

sort_times measure_sorts(int64_t n)
{
    sorter<uint32_t> narrow(n);
    sorter<uint64_t> wide(n);
    return {gpu_ms([&] { narrow.sort(); }), gpu_ms([&] { wide.sort(); })};
}

/* Random reads of whole nodes, as a walk makes them: a number of each node comes out. */
__global__ void node_kernel(const float4 *nodes, const int32_t *order, float *out, int64_t n)
{
    int64_t const k = thread_index();
    if (k >= n) return;
    float4 const low = nodes[2 * static_cast<int64_t>(order[k])],
                 high = nodes[2 * static_cast<int64_t>(order[k]) + 1];
    out[k] = low.x + high.w;
}

double node_ms(const int32_t *d_order, int64_t n)
{
    device_array<float4> nodes(2 * static_cast<std::size_t>(n));
    device_array<float> out(static_cast<std::size_t>(n));
    must(cudaMemsetAsync(nodes.data, 0, nodes.count * sizeof(float4), stream));
    return gpu_ms([&] { launch(n, node_kernel, nodes.data, d_order, out.data, n); });
}

void bench_ceilings(const std::vector<int32_t> &sizes)
{
    bench_title("ceilings: the parts that a tree is made of", nullptr);
    double const hundred = gpu_ms([] { for (int k = 0; k < 100; k++) launch(1, empty_kernel); });
    ceiling_row("-", "a queued empty kernel", 1, hundred / 100, 0.00145);
    for (int32_t n : sizes) {
        sort_times const sorts = measure_sorts(n);
        sorter<uint32_t> pairs(n);
        pairs.sort(); /* by random keys: a random permutation */
        ceiling_row(size_name(n), "cub sort u32,u32, 30 bits", n, sorts.ms30,
                    pick(n, 0.082, 0.365));
        ceiling_row(size_name(n), "cub sort u64,u32, 63 bits", n, sorts.ms63, 0);
        ceiling_row(size_name(n), "gather float4, random order", n,
                    gather_ms(pairs.sorted_values.data, n), pick(n, 0.0125, 0.268));
        ceiling_row(size_name(n), "read nodes of 32 bytes, random order", n,
                    node_ms(pairs.sorted_values.data, n), 0);
    }
}

/* ---- build ----------------------------------------------------------------------------------- */

struct way { const char *name; lbvh_builder builder; int32_t bits; bool bounds; };

const way ways[] = {
    {"MERGE, 30 bits",               LBVH_MERGE, 30, false},
    {"MERGE, 63 bits",               LBVH_MERGE, 63, false},
    {"SPLIT, 30 bits",               LBVH_SPLIT, 30, false},
    {"SPLIT, 63 bits",               LBVH_SPLIT, 63, false},
    {"MERGE, 30 bits, bounds given", LBVH_MERGE, 30, true},
    {"MERGE, 63 bits, bounds given", LBVH_MERGE, 63, true}
};

lbvh_desc desc_of(const elements &e, const way &how)
{
    lbvh_desc desc = e.desc;
    desc.builder = how.builder;
    desc.bits = how.bits;
    for (int a = 0; a < 3 && how.bounds; a++) desc.max[a] = e.max[a];
    return desc;
}

/* Elements in; nodes and prefixes out. */
double build_bytes(const elements &e)
{
    return (4.0 * numbers_of(e) + 2 * sizeof(lbvh_node) + 1) * e.n;
}

/* targets.md, "tree ready to query"; peers HOOMD's LBVH (1M) and cuBQL's rebin builder with 16
   elements a leaf (10M). */
void build_targets(bench_row_s &row, const elements &e)
{
    if (e.name.compare(0, 8, "uniform-") != 0) return;
    row.bar_ms = e.n == 10000 ? 0.04 : e.n == 100000 ? 0.07 : pick(e.n, 0.13, 0.85);
    if (e.n < 1000000) return;
    row.peer_ms = pick(e.n, 0.301, 1.65);
    row.peer = "HOOMD LBVH; cuBQL";
}

void refit_row(const elements &e, gpu_tree &tree)
{
    int64_t const before = hash_of(tree);
    double const ms = gpu_ms([&] { must(lbvh_cuda_refit(&tree.gpu, e.data.data, 0, stream)); });
    bench_row_s const row = row_of("build", e, "lbvh_cuda_refit", ms, build_bytes(e));
    bench_row(&row);
    bench_check(hash_of(tree) == before, "a refit with the same elements changes nothing");
}

void build_rows(const elements &e, const sort_times &sorts)
{
    int64_t hashes[2] = {0, 0};
    for (way const &how : ways) {
        gpu_tree tree;
        bool const wide = how.bits == 63;
        lbvh_desc const desc = desc_of(e, how);
        double const ms = gpu_ms([&] { tree.build(desc, e.data, e.n); });
        bench_row_s row = row_of("build", e, how.name, ms, build_bytes(e));
        row.base_ms = wide ? sorts.ms63 : sorts.ms30;
        build_targets(row, e);
        bench_row(&row);
        must(lbvh_cuda_check(&tree.gpu, stream));
        if (how.builder == LBVH_MERGE && !how.bounds) hashes[wide] = hash_of(tree);
        if (!how.bounds) bench_check(hash_of(tree) == hashes[wide], how.name);
        if (e.n < 2000000)
            bench_check(is_serial_tree(e, desc, tree),
                        (std::string(how.name) + ": not the serial tree").c_str());
        if (&how != &ways[1]) continue;
        refit_row(e, tree);
    }
}

void bench_builds(const std::vector<int32_t> &sizes)
{
    bench_title("build: from elements to a tree that can be searched", "cub sort");
    for (int32_t n : sizes) {
        sort_times const sorts = measure_sorts(n);
        elements const points = uniform(n, false);
        build_rows(points, sorts);
        build_rows(as_boxes(points, 0, " boxes"), sorts);
        build_rows(uniform(n, true), sorts);
        build_rows(specks(n), sorts);
        if (n > 1000000) continue;
        build_rows(dam(n), sorts);
        build_rows(bidisperse(n), sorts);
    }
    for (int32_t n : {10000, 100000})
        if (!bench.n) build_rows(uniform(n, false), measure_sorts(n));
}

/* ---- phases: where the time of a build goes -------------------------------------------------- */

void phase_row(const elements &e, const char *name, int bits, double ms, double bytes)
{
    std::string const text = std::string(name) + ", " + std::to_string(bits) + " bits";
    bench_row_s const row = row_of("phases", e, text.c_str(), ms > 0 ? ms : 0, bytes * e.n);
    bench_row(&row);
}

/* From the outside: a build with bounds given leaves out a pass, and a refit is the last phase with
   a look at every element. */
void phase_rows(const elements &e, int bits, double sort_ms)
{
    gpu_tree tree;
    lbvh_desc const desc = desc_of(e, {"", LBVH_MERGE, bits, false}),
                    bounded = desc_of(e, {"", LBVH_MERGE, bits, true});
    double const in = 4.0 * numbers_of(e), key = 8;
    double const given = gpu_ms([&] { tree.build(bounded, e.data, e.n); });
    double const whole = gpu_ms([&] { tree.build(desc, e.data, e.n); });
    int64_t const before = hash_of(tree);
    double const refit = gpu_ms([&] { must(lbvh_cuda_refit(&tree.gpu, e.data.data, 0, stream)); });
    bench_check(hash_of(tree) == before, "a refit with the same elements changes nothing");
    phase_row(e, "whole build", bits, whole, in + 2 * sizeof(lbvh_node) + 1);
    phase_row(e, "  bounds (whole - bounds given)", bits, whole - given, in);
    phase_row(e, "  sort (CUB, random keys)", bits, sort_ms, 2 * key);
    phase_row(e, "  leaves and nodes (a refit)", bits, refit, in + 2 * sizeof(lbvh_node));
    phase_row(e, "  codes, prefixes (the rest)", bits, given - sort_ms - refit, in + 2 * key);
}

void bench_phases(const std::vector<int32_t> &sizes)
{
    bench_title(
        "phases: where the time of a build goes; floor: the bytes of a phase's input and output",
        nullptr);
    for (int32_t n : sizes) {
        sort_times const sorts = measure_sorts(n);
        elements const points = uniform(n, false);
        phase_rows(points, 30, sorts.ms30);
        phase_rows(points, 63, sorts.ms30); /* keys of 32 bits: as many passes */
    }
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* The same for every order of the pairs. */
uint64_t hash_of_pairs(const std::vector<int32_t> &ids)
{
    uint64_t sum = 0;
    for (std::size_t k = 0; k + 1 < ids.size(); k += 2) {
        uint64_t const i = static_cast<uint64_t>(ids[k]), j = static_cast<uint64_t>(ids[k + 1]);
        uint64_t const key = (i < j ? i << 32 | j : j << 32 | i) * 0x9E3779B97F4A7C15u;
        sum += key ^ key >> 29;
    }
    return sum;
}

int64_t serial_count(const elements &e, lbvh *serial)
{
    int64_t total = 0;
    must(lbvh_build(serial, &e.desc, e.host.data(), 0, e.n));
    must(lbvh_count_pairs(serial, &total));
    return total;
}

std::vector<int32_t> serial_pairs(const elements &e)
{
    host_tree serial;
    int64_t total = serial_count(e, &serial.tree);
    std::vector<int32_t> ids(2 * static_cast<std::size_t>(total));
    must(lbvh_pairs(&serial.tree, ids.data(), total, &total));
    return ids;
}

/* targets.md, "bidisperse: build + pair list"; peer HOOMD's LBVH. */
void pair_list_rows(const elements &e, const std::vector<int32_t> &expected)
{
    int64_t const total = static_cast<int64_t>(expected.size() / 2);
    device_array<int32_t> ids(expected.size());
    device_array<int64_t> needed(1);
    for (int bits : {30, 63}) {
        gpu_tree tree;
        way const how = {"", LBVH_MERGE, bits, false};
        lbvh_desc const desc = desc_of(e, how);
        std::string const name = "build + list, " + std::to_string(bits) + " bits";
        double const ms = gpu_ms([&] {
            tree.build(desc, e.data, e.n);
            must(lbvh_cuda_pairs(&tree.gpu, ids.data, total, needed.data, stream));
        });
        bench_row_s row = row_of("pairs", e, name.c_str(), ms,
                                 build_bytes(e) + 32.0 * e.n + 8.0 * static_cast<double>(total));
        row.bar_ms = e.n == WL_BOTH ? 0.55 : 0;
        row.peer_ms = e.n == WL_BOTH ? 2.26 : 0;
        row.peer = "HOOMD LBVH";
        bench_row(&row);
        bench_check_total(needed.download()[0], total, name.c_str());
        bench_check(hash_of_pairs(ids.download()) == hash_of_pairs(expected), "other pairs");
        double const list_ms =
            gpu_ms([&] { must(lbvh_cuda_pairs(&tree.gpu, ids.data, total, needed.data, stream)); });
        /* without "build + " */
        row = row_of("pairs", e, name.c_str() + 8, list_ms,
                     32.0 * e.n + 8.0 * static_cast<double>(total));
        bench_row(&row);
    }
}

void count_pairs_row(const elements &e, int64_t expected)
{
    gpu_tree tree;
    device_array<int64_t> found(1);
    tree.build(e.desc, e.data, e.n);
    double const ms = gpu_ms([&] { must(lbvh_cuda_count_pairs(&tree.gpu, found.data, stream)); });
    bench_row_s const row = row_of("pairs", e, "lbvh_cuda_count_pairs", ms, 32.0 * e.n);
    bench_row(&row);
    bench_check_total(found.download()[0], expected, "count of pairs");
}

/* The boxes, of which the last one is 1e9 scene sizes away: the tree is made by quantiles. */
void far_rows(const elements &near_ones)
{
    std::vector<float> host = near_ones.host;
    for (std::size_t k = host.size() - 6; k < host.size(); k++) host[k] = 1e9f;
    elements const e = make_elements(near_ones.name + ", one far", LBVH_BOXES, host, near_ones.n);
    gpu_tree tree;
    host_tree serial;
    double const ms = gpu_ms([&] { tree.build(e.desc, e.data, e.n); });
    bench_row_s const row = row_of("pairs", e, "lbvh_cuda_build", ms, build_bytes(e));
    bench_row(&row);
    count_pairs_row(e, serial_count(e, &serial.tree));
}

void bench_pairs(int32_t n)
{
    elements const mixture = bidisperse(n);
    std::vector<int32_t> const expected = serial_pairs(mixture);
    bench_title("pairs: overlapping boxes, each pair once", nullptr);
    std::printf("%s: %lld pairs\n", mixture.name.c_str(),
                static_cast<long long>(expected.size() / 2));
    count_pairs_row(mixture, static_cast<int64_t>(expected.size() / 2));
    pair_list_rows(mixture, expected);
    elements const points = uniform(n, false), boxes = as_boxes(points, points.radius, " boxes");
    host_tree serial;
    count_pairs_row(boxes, serial_count(boxes, &serial.tree));
    far_rows(boxes);
}

/* ---- radius ---------------------------------------------------------------------------------- */

struct ask { const char *name; int flags; enum { own, given, given_sorted } queries; };

const ask asks[] = {
    {"count: own elements, by place",               LBVH_PLACES,             ask::own},
    {"count: own elements, by id",                  0,                       ask::own},
    {"count: own elements, half, by place",         LBVH_PLACES | LBVH_HALF, ask::own},
    {"count: queries from outside, shuffled",       0,                       ask::given},
    {"count: queries from outside, sorted, SORTED", LBVH_SORTED,             ask::given_sorted}
};

struct list_case { const char *name; int flags; };

const list_case list_cases[] = {
    {"lists: own elements, by place",       LBVH_PLACES},
    {"lists: own elements, by id",          0},
    {"lists: own elements, half, by place", LBVH_PLACES | LBVH_HALF}
};

lbvh_queries queries_of(const elements &e, int flags)
{
    lbvh_queries q = {};
    q.kind = LBVH_POINTS;
    q.radius = e.radius;
    q.flags = flags;
    return q;
}

/* targets.md, "radius count through a tree"; peer HOOMD's LBVH. */
void radius_counts(const elements &e, lbvh_cuda *gpu, int64_t total)
{
    std::vector<float> in_order = e.host;
    if (!wl_sort_morton(e.n, in_order.data(), nullptr)) std::exit(1);
    device_array<float> sorted(in_order.size());
    device_array<int32_t> counts(static_cast<std::size_t>(e.n));
    sorted.upload(in_order.data());
    for (ask const &a : asks) {
        lbvh_queries q = queries_of(e, a.flags);
        if (a.queries != ask::own) q.n = e.n;
        if (a.queries != ask::own) q.data = a.queries == ask::given ? e.data.data : sorted.data;
        double const ms =
            gpu_ms([&] { must(lbvh_cuda_count_overlaps(gpu, &q, counts.data, stream)); });
        bench_row_s row = row_of("radius", e, a.name, ms, 36.0 * e.n);
        if (!(a.flags & LBVH_HALF)) {
            row.bar_ms = pick(e.n, 0.45, 4.5);
            row.peer_ms = pick(e.n, 0.804, 8.04);
            row.peer = "HOOMD LBVH";
        }
        bench_row(&row);
        bench_check_total(sum_of(counts),
                          a.queries != ask::own ? total + e.n
                          : a.flags & LBVH_HALF ? total / 2
                                                : total,
                          a.name);
    }
}

/* rows: sum of i over the entries (i, j); ids: of j. Equal in a full list; of a half list they sum
   up to the full one's. */
__global__ void facts_kernel(const int64_t *offsets, const int32_t *ids, int64_t n, bool columns,
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

/* targets.md, "tree: CSR"; peer HOOMD's LBVH, its one-pass list on sorted input. */
void radius_lists(const elements &e, lbvh_cuda *gpu, int64_t total)
{
    device_array<int64_t> offsets(static_cast<std::size_t>(e.n) + 1);
    device_array<int32_t> ids(static_cast<std::size_t>(total));
    int64_t full = 0;
    for (list_case const &c : list_cases) {
        bool const half = c.flags & LBVH_HALF;
        int64_t const entries = half ? total / 2 : total;
        lbvh_queries const q = queries_of(e, c.flags);
        double const ms = gpu_ms(
            [&] { must(lbvh_cuda_overlaps(gpu, &q, offsets.data, ids.data, total, stream)); });
        bench_row_s row =
            row_of("radius", e, c.name, ms, 40.0 * e.n + 4.0 * static_cast<double>(entries));
        if (!half) {
            row.bar_ms = pick(e.n, 0.75, 7.5);
            row.peer_ms = pick(e.n, 1.04, 10.6);
            row.peer = "HOOMD LBVH";
        }
        bench_row(&row);
        if (!bench_check_total(offsets.download()[static_cast<std::size_t>(e.n)], entries, c.name))
            continue;
        auto const sum_up = [&](bool columns) {
            int64_t const n = e.n;
            return device_sum([&](unsigned long long *sum) {
                launch(n, facts_kernel, offsets.data, ids.data, n, columns, sum);
            });
        };
        int64_t const rows = sum_up(false), columns = sum_up(true);
        bench_check(half ? rows + columns == full : rows == columns, c.name);
        if (c.flags == LBVH_PLACES) full = rows;
    }
}

/* Where no total is known: the serial code's. */
int64_t total_of(const elements &e)
{
    if (e.pairs) return e.pairs;
    host_tree serial;
    std::vector<int32_t> counts(static_cast<std::size_t>(e.n));
    lbvh_queries const q = queries_of(e, 0);
    int64_t total = 0;
    must(lbvh_build(&serial.tree, &e.desc, e.host.data(), 0, e.n));
    must(lbvh_count_overlaps(&serial.tree, &q, counts.data()));
    for (int32_t count : counts) total += count;
    return total;
}

void radius_rows(const elements &e)
{
    gpu_tree tree;
    int64_t const total = total_of(e);
    tree.build(e.desc, e.data, e.n);
    radius_counts(e, &tree.gpu, total);
    radius_lists(e, &tree.gpu, total);
}

void bench_radius(const std::vector<int32_t> &sizes)
{
    bench_title(
        "radius: neighbours within the radius, about 29 each, in a tree of points (63 bits)",
        nullptr);
    for (int32_t n : sizes) radius_rows(uniform(n, false));
    radius_rows(dam(sizes[0]));
}

/* ---- nearest --------------------------------------------------------------------------------- */

constexpr int nearest = 8, samples = 200;

/* The first queries, by the serial code. */
void check_nearest(const elements &e, const std::vector<float> &points,
                   const device_array<int32_t> &ids, const device_array<float> &distances2)
{
    host_tree serial;
    std::vector<int32_t> const all_ids = ids.download();
    std::vector<float> const all_distances2 = distances2.download();
    int wrong = 0;
    must(lbvh_build(&serial.tree, &e.desc, e.host.data(), 0, e.n));
    for (std::size_t q = 0; q < static_cast<std::size_t>(e.n < samples ? e.n : samples); q++) {
        int32_t own[nearest], found = 0;
        float own_distances2[nearest];
        must(lbvh_nearest(&serial.tree, &points[3 * q], nearest, 1e9f, nullptr, nullptr, own,
                          own_distances2, &found));
        bool const same_ids = std::memcmp(own, &all_ids[q * nearest], sizeof own) == 0;
        bool const same_distances2 =
            std::memcmp(own_distances2, &all_distances2[q * nearest], sizeof own_distances2) == 0;
        wrong += !(found == nearest && same_ids && same_distances2);
    }
    bench_check(wrong == 0, "nearest: not those of the serial code");
}

void bench_nearest(int32_t n)
{
    elements const shuffled = uniform(n, false), sorted = uniform(n, true);
    gpu_tree tree;
    std::size_t const entries = static_cast<std::size_t>(n) * nearest;
    device_array<int32_t> ids(entries), found(static_cast<std::size_t>(n));
    device_array<float> distances2(entries);
    tree.build(shuffled.desc, shuffled.data, n);
    bench_title("nearest: the 8 points nearest to each (itself among them)", nullptr);
    for (const elements *points : {&shuffled, &sorted}) {
        bool const in_order = points == &sorted;
        int const flags = in_order ? LBVH_SORTED : 0;
        double const ms = gpu_ms([&] {
            const float *const queries = points->data.data;
            must(lbvh_cuda_nearest(&tree.gpu, queries, 0, n, nearest, 1e9f, flags, ids.data,
                                   distances2.data, found.data, stream));
        });
        const char *const name =
            in_order ? "lbvh_cuda_nearest, k = 8, SORTED" : "lbvh_cuda_nearest, k = 8";
        bench_row_s const row =
            row_of("nearest", *points, name, ms, 32.0 * n + 8.0 * static_cast<double>(entries));
        bench_row(&row);
        bench_check_total(sum_of(found), static_cast<int64_t>(entries), "nearest");
        check_nearest(shuffled, points->host, ids, distances2);
    }
}

/* ---- wide ------------------------------------------------------------------------------------ */

/* A wide tree that is freed at the end of its scope. */
struct gpu_wide {
    lbvh_cuda_wide gpu = {};
    ~gpu_wide() { lbvh_cuda_wide_free(&gpu); }
    void build(const gpu_tree &tree, const elements &e)
    {
        lbvh_wide_desc desc = {};
        desc.copy = 1;
        must(lbvh_cuda_wide_build(&gpu, &desc, &tree.gpu, e.data.data, 0, stream));
    }
};

/* The torus knot. */
elements knot(int32_t n)
{
    int32_t const around = n < 100000 ? 10 : 100, along = n / (2 * around);
    std::vector<float> corners(18 * static_cast<std::size_t>(along * around));
    wl_knot(along, around, corners.data());
    return make_elements("knot-" + size_name(2 * along * around), LBVH_TRIANGLES, corners,
                         2 * along * around);
}

/* A row for `count` searches. */
void wide_row(const elements &e, const std::string &name, double ms, int32_t count, double bytes)
{
    bench_row_s row = row_of("wide", e, name.c_str(), ms, bytes);
    row.n = count;
    bench_row(&row);
}

/* The serial wide tree of the same elements. */
struct host_wide {
    host_tree binary;
    lbvh_wide tree = {};
    explicit host_wide(const elements &e)
    {
        lbvh_wide_desc desc = {};
        desc.copy = 1;
        must(lbvh_build(&binary.tree, &e.desc, e.host.data(), 0, e.n));
        must(lbvh_wide_build(&tree, &desc, &binary.tree, e.host.data(), 0));
    }
    ~host_wide() { lbvh_wide_free(&tree); }
};

void ray_rows(const elements &e, gpu_wide &wide, const host_wide &serial, const char *name,
              const std::vector<float> &host, int flags)
{
    int32_t const count = static_cast<int32_t>(host.size() / 6);
    std::size_t const m = static_cast<std::size_t>(count);
    device_array<float> data(host.size());
    device_array<lbvh_ray_hit> hits(m);
    device_array<uint8_t> hit(m);
    std::vector<lbvh_ray_hit> expected(m);
    lbvh_rays rays = {};
    data.upload(host.data());
    rays.n = count;
    rays.flags = flags;
    rays.data = data.data;
    double const bytes = 40.0 * count;
    double const closest =
        gpu_ms([&] { must(lbvh_cuda_closest_hits(&wide.gpu, &rays, hits.data, stream)); });
    wide_row(e, std::string(name) + ": lbvh_cuda_closest_hits", closest, count, bytes);
    double const any =
        gpu_ms([&] { must(lbvh_cuda_any_hits(&wide.gpu, &rays, hit.data, stream)); });
    wide_row(e, std::string(name) + ": lbvh_cuda_any_hits", any, count, 25.0 * count);
    rays.data = host.data();
    must(lbvh_closest_hits(&serial.tree, &rays, nullptr, nullptr, expected.data()));
    std::vector<lbvh_ray_hit> const got = hits.download();
    bench_check(std::memcmp(got.data(), expected.data(), m * sizeof got[0]) == 0,
                "wide: not the hits of the serial code");
}

/* In an order of no use (Fisher and Yates, by a linear congruence). */
void shuffle_rays(std::vector<float> &rays)
{
    uint64_t state = 1;
    for (std::size_t k = rays.size() / 6; k > 1; k--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        std::size_t const other = (state >> 33) % k;
        for (int a = 0; a < 6; a++) std::swap(rays[6 * (k - 1) + a], rays[6 * other + a]);
    }
}

/* Rays and closest points on a mesh. */
void bench_wide_mesh(int32_t n)
{
    int32_t const width = n < 100000 ? 128 : 1024, count = width * width;
    elements const e = knot(n);
    host_wide const serial(e);
    gpu_tree tree;
    gpu_wide wide;
    std::vector<float> rays(6 * static_cast<std::size_t>(count)), points;
    tree.build(e.desc, e.data, e.n);
    wide_row(e, "lbvh_cuda_build", gpu_ms([&] { tree.build(e.desc, e.data, e.n); }), e.n,
             36.0 * e.n);
    wide_row(e, "lbvh_cuda_wide_build, copy", gpu_ms([&] { wide.build(tree, e); }), e.n,
             100.0 * e.n);
    wl_primary_rays(width, rays.data());
    ray_rows(e, wide, serial, "primary", rays, LBVH_SORTED);
    shuffle_rays(rays);
    ray_rows(e, wide, serial, "primary, shuffled", rays, 0);
    wl_random_rays(count, 8, rays.data());
    ray_rows(e, wide, serial, "random", rays, 0);
    for (std::size_t k = 0; k < rays.size(); k++)
        if (k % 6 < 3) points.push_back(rays[k]);
    device_array<float> d_points(points.size());
    device_array<lbvh_closest> closest(static_cast<std::size_t>(count));
    std::vector<lbvh_closest> expected(static_cast<std::size_t>(count < 2000 ? count : 2000));
    d_points.upload(points.data());
    double const ms = gpu_ms([&] {
        must(lbvh_cuda_closest_points(&wide.gpu, d_points.data, 0, count, 1e9f, 0, closest.data,
                                      stream));
    });
    wide_row(e, "lbvh_cuda_closest_points", ms, count, 36.0 * count);
    must(lbvh_closest_points(&serial.tree, points.data(), 0, static_cast<int32_t>(expected.size()),
                             1e9f, expected.data()));
    std::vector<lbvh_closest> const got = closest.download();
    bench_check(std::memcmp(got.data(), expected.data(), expected.size() * sizeof got[0]) == 0,
                "wide: not the closest points of the serial code");
}

/* The 8 nearest, as in bench_nearest. */
void bench_wide_nearest(int32_t n)
{
    elements const shuffled = uniform(n, false), sorted = uniform(n, true);
    gpu_tree tree;
    gpu_wide wide;
    std::size_t const entries = static_cast<std::size_t>(n) * nearest;
    device_array<int32_t> ids(entries), found(static_cast<std::size_t>(n));
    device_array<float> distances2(entries);
    tree.build(shuffled.desc, shuffled.data, n);
    wide.build(tree, shuffled);
    for (const elements *points : {&shuffled, &sorted}) {
        int const flags = points == &sorted ? LBVH_SORTED : 0;
        double const ms = gpu_ms([&] {
            must(lbvh_cuda_wide_nearest(&wide.gpu, points->data.data, 0, n, nearest, 1e9f, flags,
                                        ids.data, distances2.data, found.data, stream));
        });
        wide_row(*points, flags ? "lbvh_cuda_wide_nearest, k = 8, SORTED"
                                : "lbvh_cuda_wide_nearest, k = 8",
                 ms, n, 32.0 * n + 8.0 * static_cast<double>(entries));
        check_nearest(shuffled, points->host, ids, distances2);
    }
}

void bench_wide(int32_t n)
{
    bench_title("wide: nodes of 8 children; rays, closest points on a mesh, 8 nearest", nullptr);
    bench_wide_mesh(n);
    bench_wide_nearest(n);
}

/* ---- scaling, largest: see scaling_gpu.h ----------------------------------------------------- */

/* Points, about 29 neighbours within the radius. */
struct tree_case {
    static constexpr const char *first = "lbvh: build", *second = "lbvh: count neighbours";
    static constexpr int64_t most = (int64_t{1} << 30) - 512;
    int32_t n;
    lbvh_desc desc = {};
    lbvh_queries ask = {};
    device_array<float> pos;
    device_array<int32_t> counts;
    gpu_tree tree;

    explicit tree_case(int32_t particles)
        : n(particles), pos(3 * static_cast<std::size_t>(n)), counts(static_cast<std::size_t>(n))
    {
        desc.kind = ask.kind = LBVH_POINTS;
        ask.radius = wl_radius(n, 30);
        ask.flags = LBVH_PLACES;
        spread(pos);
    }
    void build() { tree.build(desc, pos, n); }
    void search() { must(lbvh_cuda_count_overlaps(&tree.gpu, &ask, counts.data, stream)); }
    double arrays() const { return held_by(tree.gpu.block); }
    double space() const { return held_by(tree.gpu.scratch); }
    void check()
    {
        int64_t const total = sum_of(counts);
        must(lbvh_cuda_check(&tree.gpu, stream));
        ask.flags |= LBVH_HALF;
        search();
        bench_check_total(total, 2 * sum_of(counts), "scaling: neighbours, and pairs twice");
        bench_check(total > int64_t{15} * n, "scaling: too few neighbours");
    }
};

} // namespace

int main(int argc, char **argv)
{
    bench_start(argc, argv, "bench_lbvh_cuda",
                "ceilings,build,phases,pairs,radius,nearest,wide,scaling,largest");
    double const begin = wall_ms();
    std::vector<int32_t> sizes = {1000000, 10000000};
    if (bench.quick) sizes = {1000000};
    if (bench.n) sizes = {bench.n};
    start_gpu();
    print_gpu("lbvh.h", lbvh_version());
    measure_copy();
    if (bench_wants("ceilings")) bench_ceilings(sizes);
    if (bench_wants("build")) bench_builds(sizes);
    if (bench_wants("phases")) bench_phases(sizes);
    if (bench_wants("pairs")) bench_pairs(sizes[0]);
    if (bench_wants("radius")) bench_radius(sizes);
    if (bench_wants("nearest")) bench_nearest(sizes[0]);
    if (bench_wants("wide")) bench_wide(sizes[0]);
    if (bench_named("scaling")) bench_scaling<tree_case>();
    if (bench_named("largest")) bench_largest<tree_case>();
    stop_gpu();
    std::printf("\n%.1f s in all", (wall_ms() - begin) * 1e-3);
    return bench_end();
}
