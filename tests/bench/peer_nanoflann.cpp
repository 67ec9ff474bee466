/* peer_nanoflann.cpp - nanoflann (Debian: libnanoflann-dev), a widely used k-d tree, against
   ugrid.h in one run: all neighbours within a radius, and the k nearest, which lbvh.h has, too, of
   points that are spread evenly and of 20 tight clusters.
   Optional:

       g++ -std=c++17 -O3 -I. tests/bench/peer_nanoflann.cpp -o build/bench/peer_nanoflann &&
       build/bench/peer_nanoflann

   SPDX-License-Identifier: MIT OR Unlicense */

#define LBVH_STATIC
#define LBVH_WITH_NEAREST
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define UGRID_STATIC
#define UGRID_IMPLEMENTATION
#define UGRID_WITH_NEAREST
#include "ugrid.h"
#include "tests/bench/bench.h"
#include "tests/common/workloads.h"

#include <memory>
#include <nanoflann.hpp>
#include <vector>

namespace {

struct cloud { /* what nanoflann asks of a point set */
    const float *pos;
    std::size_t n;
    std::size_t kdtree_get_point_count() const { return n; }
    float kdtree_get_pt(std::size_t i, std::size_t axis) const { return pos[3 * i + axis]; }
    template <class Box> bool kdtree_get_bbox(Box &) const { return false; }
};

using tree = nanoflann::KDTreeSingleIndexAdaptor<nanoflann::L2_Simple_Adaptor<float, cloud>, cloud,
                                                 3, std::uint32_t>;

/* Appends hits; nanoflann hands out d2 < worstDist(). */
struct hits {
    float r2;
    std::int32_t self;
    std::int32_t *ids;      /* nullptr: only count */
    std::size_t found;
    float worstDist() const { return r2; }
    std::size_t size() const { return found; }
    bool full() const { return true; }
    void sort() {}
    bool addPoint(float d2, std::uint32_t id)
    {
        if (d2 < r2 && static_cast<std::int32_t>(id) != self) {
            if (ids) ids[found] = static_cast<std::int32_t>(id);
            found++;
        }
        return true;
    }
};

struct job {
    cloud points;
    float radius;
    std::unique_ptr<tree> index;
    std::vector<std::int64_t> offsets;
    std::vector<std::int32_t> ids;
    ugrid grid;
    ugrid_desc desc;
};

void work_tree(void *user)
{
    job &j = *static_cast<job *>(user);
    j.index = std::make_unique<tree>(3, j.points, nanoflann::KDTreeSingleIndexAdaptorParams(10));
}

void search(job &j, bool count_only)
{
    std::int64_t total = 0;
    for (std::size_t i = 0; i < j.points.n; i++) {
        hits row = {j.radius * j.radius, static_cast<std::int32_t>(i),
                    count_only ? nullptr : j.ids.data() + total, 0};
        j.offsets[i] = total;
        j.index->radiusSearchCustomCallback(j.points.pos + 3 * i, row);
        total += static_cast<std::int64_t>(row.found);
    }
    j.offsets[j.points.n] = total;
}

void work_count(void *user) { search(*static_cast<job *>(user), true); }

void work_list(void *user)
{
    work_tree(user);
    search(*static_cast<job *>(user), false);
}

void must(ugrid_result result)
{
    if (result == UGRID_OK) return;
    std::printf("%s\n", ugrid_result_text(result));
    std::exit(1);
}

void work_grid(void *user)
{
    job &j = *static_cast<job *>(user);
    must(ugrid_build(&j.grid, &j.desc, j.points.pos, 0, static_cast<std::int32_t>(j.points.n)));
}

void work_grid_count(void *user)
{
    job &j = *static_cast<job *>(user);
    std::int64_t needed;
    /* counts, and so returns "too small" */
    ugrid_neighbors(&j.grid, j.radius, 0, j.offsets.data(), nullptr, 0, &needed);
}

void work_grid_list(void *user)
{
    job &j = *static_cast<job *>(user);
    std::int64_t needed;
    work_grid(user);
    must(ugrid_neighbors(&j.grid, j.radius, 0, j.offsets.data(), j.ids.data(),
                         static_cast<std::int64_t>(j.ids.size()), &needed));
}

/* One line; the first of a kind (nanoflann) is what the ratio column compares with. */
double line(job &j, const char *order, const char *name, void (*work)(void *), double base)
{
    bench_row_s row = {};
    row.group = "nanoflann";
    row.workload = order;
    row.method = name;
    row.n = static_cast<std::int64_t>(j.points.n);
    row.ms = bench_cpu_ms(work, &j);
    row.base_ms = base > 0 ? base : row.ms;
    bench_row(&row);
    return row.ms;
}

/* Both searched: the same pairs? The grid takes d <= r and the tree d < r, so at other sizes than
   1M a pair may sit on the rim. */
void table(job &j, const char *order)
{
    std::int64_t total;
    double base = line(j, order, "nanoflann: tree", work_tree, 0);
    line(j, order, "ugrid: grid", work_grid, base);
    base = line(j, order, "nanoflann: count", work_count, 0);
    total = j.offsets[j.points.n];
    j.ids.resize(static_cast<std::size_t>(total));
    line(j, order, "ugrid: count, rows by input index", work_grid_count, base);
    bench_check_total(j.offsets[j.points.n], total, "count");
    base = line(j, order, "nanoflann: tree + list", work_list, 0);
    bench_facts const expected =
        bench_facts_of(j.offsets.data(), j.ids.data(), static_cast<std::int32_t>(j.points.n));
    line(j, order, "ugrid: grid + CSR by input index", work_grid_list, base);
    bench_facts const got =
        bench_facts_of(j.offsets.data(), j.ids.data(), static_cast<std::int32_t>(j.points.n));
    bench_check(got.total == expected.total && got.sum == expected.sum, "list");
}

/* The k nearest of each point, the point itself among them: a build, and searches in a structure
   that is there already, one by one and in bulk. */
struct near_job {
    cloud points;
    std::int32_t k;
    int flags;              /* LBVH_SORTED: the points are in order */
    std::unique_ptr<tree> index;
    ugrid grid;
    lbvh boxes;
    std::vector<std::int32_t> ids, found;
    std::vector<std::uint32_t> tree_ids;
    std::vector<float> d2;
    ugrid_desc desc;
};

void near_tree_build(void *user)
{
    near_job &j = *static_cast<near_job *>(user);
    j.index = std::make_unique<tree>(3, j.points, nanoflann::KDTreeSingleIndexAdaptorParams(10));
}

void near_tree(void *user)
{
    near_job &j = *static_cast<near_job *>(user);
    std::size_t const k = static_cast<std::size_t>(j.k);
    for (std::size_t i = 0; i < j.points.n; i++) {
        nanoflann::KNNResultSet<float, std::uint32_t> row(k);
        row.init(j.tree_ids.data() + i * k, j.d2.data() + i * k);
        j.index->findNeighbors(row, j.points.pos + 3 * i, nanoflann::SearchParams());
    }
}

void near_grid_build(void *user)
{
    near_job &j = *static_cast<near_job *>(user);
    must(ugrid_build(&j.grid, &j.desc, j.points.pos, 0, static_cast<std::int32_t>(j.points.n)));
}

void near_grid(void *user)
{
    near_job &j = *static_cast<near_job *>(user);
    std::size_t const k = static_cast<std::size_t>(j.k);
    std::int32_t found;
    for (std::size_t i = 0; i < j.points.n; i++)
        must(ugrid_nearest(&j.grid, j.points.pos + 3 * i, j.k, 1e9f, j.ids.data() + i * k,
                           j.d2.data() + i * k, &found));
}

void near_grid_rows(void *user)
{
    near_job &j = *static_cast<near_job *>(user);
    must(ugrid_nearest_rows(&j.grid, j.points.pos, 0, static_cast<std::int32_t>(j.points.n), j.k,
                            1e9f, j.ids.data(), j.d2.data(), j.found.data()));
}

void near_boxes_build(void *user)
{
    near_job &j = *static_cast<near_job *>(user);
    lbvh_desc desc = {};
    desc.kind = LBVH_POINTS;
    bench_check(lbvh_build(&j.boxes, &desc, j.points.pos, 0,
                           static_cast<std::int32_t>(j.points.n)) == LBVH_OK, "lbvh_build");
}

void near_boxes(void *user)
{
    near_job &j = *static_cast<near_job *>(user);
    std::size_t const k = static_cast<std::size_t>(j.k);
    std::int32_t found;
    for (std::size_t i = 0; i < j.points.n; i++)
        bench_check(lbvh_nearest(&j.boxes, j.points.pos + 3 * i, j.k, 1e9f, nullptr, nullptr,
                                 j.ids.data() + i * k, j.d2.data() + i * k, &found) == LBVH_OK,
                    "lbvh_nearest");
}

void near_boxes_rows(void *user)
{
    near_job &j = *static_cast<near_job *>(user);
    bench_check(lbvh_nearest_rows(&j.boxes, j.points.pos, 0,
                                  static_cast<std::int32_t>(j.points.n), j.k, 1e9f, j.flags,
                                  j.ids.data(), j.d2.data(), j.found.data()) == LBVH_OK,
                "lbvh_nearest_rows");
}

/* The sum of all distances: the same from all. */
double sum_of(const std::vector<float> &d2)
{
    double sum = 0;
    for (float const x : d2) sum += static_cast<double>(x);
    return sum;
}

double near_line(near_job &j, const char *order, const char *name, double ms, double base)
{
    bench_row_s row = {};
    row.group = "nearest";
    row.workload = order;
    row.method = name;
    row.n = static_cast<std::int64_t>(j.points.n);
    row.ms = ms;
    row.base_ms = base > 0 ? base : ms;
    bench_row(&row);
    return ms;
}

/* Two lines of a method: searches alone, and with a build. */
void near_lines(near_job &j, const char *order, const char *name, void (*work)(void *),
                double build, double sum, double base, double base_build)
{
    char both[80];
    double const ms = bench_cpu_ms(work, &j);
    bench_check(sum_of(j.d2) >= sum && sum_of(j.d2) <= sum, name);
    near_line(j, order, name, ms, base);
    std::snprintf(both, sizeof both, "%s, and a build", name);
    near_line(j, order, both, ms + build, base + base_build);
}

void near_table(const float *pos, std::int32_t n, std::int32_t k, const char *order,
                int flags)
{
    char name[64];
    near_job j = {};
    std::size_t const entries = static_cast<std::size_t>(n) * static_cast<std::size_t>(k);
    j.points = { pos, static_cast<std::size_t>(n) };
    j.k = k;
    j.flags = flags;
    j.ids.resize(entries);
    j.tree_ids.resize(entries);
    j.d2.resize(entries);
    j.found.resize(static_cast<std::size_t>(n));
    j.desc.max[0] = j.desc.max[1] = j.desc.max[2] = 1;
    double const tree_build = bench_cpu_ms(near_tree_build, &j),
                 grid_build = bench_cpu_ms(near_grid_build, &j),
                 boxes_build = bench_cpu_ms(near_boxes_build, &j),
                 base = bench_cpu_ms(near_tree, &j), sum = sum_of(j.d2);
    std::snprintf(name, sizeof name, "nanoflann, k = %d", static_cast<int>(k));
    near_line(j, order, name, base, 0);
    near_line(j, order, "nanoflann, and a build", base + tree_build, 0);
    near_lines(j, order, "ugrid_nearest", near_grid, grid_build, sum, base, tree_build);
    near_lines(j, order, "ugrid_nearest_rows", near_grid_rows, grid_build, sum, base, tree_build);
    near_lines(j, order, "lbvh_nearest", near_boxes, boxes_build, sum, base, tree_build);
    near_lines(j, order, "lbvh_nearest_rows", near_boxes_rows, boxes_build, sum, base,
               tree_build);
    ugrid_free(&j.grid);
    lbvh_free(&j.boxes);
}

/* 20 clusters, each about 0.03 of the box's edge wide. */
void put_clusters(std::int32_t n, float *pos)
{
    wl_random r = wl_seed(5);
    float centre[60];
    for (float &x : centre) x = (float)0.05 + (float)0.9 * wl_u(&r);
    for (std::int32_t i = 0; i < n; i++) {
        std::int32_t const c = static_cast<std::int32_t>(wl_below(&r, 20));
        for (std::int32_t a = 0; a < 3; a++) {
            float away = -3;
            for (int k = 0; k < 6; k++) away += wl_u(&r);
            pos[3 * i + a] = centre[3 * c + a] + away * (float)0.01;
        }
    }
}

void nearest(std::int32_t n)
{
    static const std::int32_t ks[] = {1, 2, 4, 8, 16, 32};
    std::vector<float> pos(3 * static_cast<std::size_t>(n));
    wl_uniform(n, 1, pos.data());
    for (std::int32_t const k : ks) near_table(pos.data(), n, k, "shuffled", 0);
    if (!wl_sort_morton(n, pos.data(), nullptr)) std::exit(1);
    for (std::int32_t const k : ks) near_table(pos.data(), n, k, "sorted", LBVH_SORTED);
    put_clusters(n, pos.data());
    for (std::int32_t const k : ks) near_table(pos.data(), n, k, "clusters", 0);
    if (!wl_sort_morton(n, pos.data(), nullptr)) std::exit(1);
    for (std::int32_t const k : ks)
        near_table(pos.data(), n, k, "clusters, sorted", LBVH_SORTED);
}

/* Neighbours within a radius. */
void within(std::int32_t n)
{
    std::vector<float> pos(3 * static_cast<std::size_t>(n));
    job j = {};
    wl_uniform(n, 1, pos.data());
    j.points = { pos.data(), static_cast<std::size_t>(n) };
    j.radius = wl_radius(n, 30);
    j.offsets.resize(static_cast<std::size_t>(n) + 1);
    j.desc.max[0] = j.desc.max[1] = j.desc.max[2] = 1;
    j.desc.cell = j.radius;
    bench_title("nanoflann and ugrid.h in one run, uniform points, about 29 neighbours",
                "nanoflann");
    table(j, "shuffled");
    if (!wl_sort_morton(n, pos.data(), nullptr)) std::exit(1);
    table(j, "sorted");
    ugrid_free(&j.grid);
}

} // namespace

int main(int argc, char **argv)
{
    bench_start(argc, argv, "peer_nanoflann", "nanoflann,nearest");
    std::int32_t const n = bench.n ? bench.n : bench.quick ? 100000 : 1000000;
    if (bench.runs > 3 && n > 100000) bench.runs = 3; /* nanoflann takes seconds there */
    if (bench_wants("nanoflann")) within(n);
    if (bench_wants("nearest")) {
        bench_title("the k nearest of each of n points", "nanoflann");
        nearest(n);
    }
    return bench_end();
}
