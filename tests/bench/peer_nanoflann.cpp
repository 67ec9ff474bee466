/* peer_nanoflann.cpp - nanoflann (Debian: libnanoflann-dev), a widely used k-d tree, against
   ugrid.h in one run. Optional:

       g++ -std=c++17 -O3 -I. tests/bench/peer_nanoflann.cpp -o build/bench/peer_nanoflann &&
       build/bench/peer_nanoflann

   SPDX-License-Identifier: MIT OR Unlicense */

#define UGRID_STATIC
#define UGRID_IMPLEMENTATION
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

} // namespace

int main(int argc, char **argv)
{
    bench_start(argc, argv, "peer_nanoflann", "nanoflann");
    std::int32_t const n = bench.n ? bench.n : bench.quick ? 100000 : 1000000;
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
    if (bench.runs > 3) bench.runs = 3; /* nanoflann takes seconds for points in no order */
    table(j, "shuffled");
    if (!wl_sort_morton(n, pos.data(), nullptr)) return 1;
    table(j, "sorted");
    ugrid_free(&j.grid);
    return bench_end();
}
