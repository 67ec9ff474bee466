/* half_gpu.h - half lists: each pair found once, and appended to the row of its lower id, beside
   the search by row that throws half away. The rule that chooses (nlist_i_half_pays) comes from
   here.
   SPDX-License-Identifier: MIT OR Unlicense

   A part of bench_nlist.cu: included in its namespace. The base of a row is the search by row, or
   of a tree of two sizes the pairs of the same tree. Sorted: ids in the order of cells; else in any
   order. */

#ifndef HALF_GPU_H
#define HALF_GPU_H

struct half_way {
    const char *name;
    nlist_layout layout;
    int32_t width;
};

/* Uniform points; sorted: in the order of the grid's cells. */
points half_points(int32_t n, double neighbors, bool sorted)
{
    std::size_t const numbers = 3 * static_cast<std::size_t>(n);
    points p = {"uniform-" + size_name(n) + (sorted ? "-sorted" : ""), n,
                device_array<float>(numbers), wl_radius(n, neighbors), 0};
    std::vector<float> pos(numbers);
    wl_uniform(n, 1, pos.data());
    p.pos.upload(pos.data());
    if (!sorted) return p;
    gpu_grid grid;
    csr_grid(p, 0, grid);
    device_array<float> moved(numbers);
    must(ugrid_cuda_gather(&grid.gpu, p.pos.data, 3 * sizeof(float), moved.data, stream));
    must(cudaStreamSynchronize(stream));
    std::swap(p.pos.data, moved.data);
    return p;
}

/* The list by one search; its signature, and how long it takes. */
template <class Build>
double half_time(gpu_list &list, int search, int32_t n, Build build, int64_t *signature)
{
    list.gpu.search = search;
    double const ms = gpu_ms([&] { build(list); });
    must(nlist_cuda_check(&list.gpu, stream));
    *signature = list_signature(list.gpu, n);
    return ms;
}

/* Both searches, in one row. */
template <class Build>
void half_row(const char *workload, int32_t n, const std::string &method, double pairs_ms,
              Build build)
{
    gpu_list list;
    int64_t by_row, by_pair;
    double const full = half_time(list, NLIST_I_BY_ROW, n, build, &by_row),
                 half = half_time(list, NLIST_I_BY_PAIR, n, build, &by_pair);
    int64_t const total = list.gpu.device.list.total;
    for (bool second : {false, true}) {
        bench_row_s row = {};
        std::string const name = method + (second ? ", by pair" : ", by row");
        row.group = "half";
        row.workload = workload;
        row.method = name.c_str();
        row.n = n;
        row.ms = second ? half : full;
        row.floor_ms = (16.0 * n + 4.0 * static_cast<double>(total)) / copy_speed;
        row.base_ms = pairs_ms > 0 ? pairs_ms : full;
        row.bar_ratio = pairs_ms > 0 && second ? 1.4 : 0;
        bench_row(&row);
    }
    bench_check(by_row == by_pair, "half: the two searches find the same pairs");
}

void half_grid_rows(int32_t n, double neighbors, bool sorted)
{
    points const p = half_points(n, neighbors, sorted);
    bool const many = neighbors > 10;
    half_way const ways[] = {{"COMPACT", NLIST_COMPACT, 0},
                             {"STATIC", NLIST_STATIC, many ? 64 : 32},
                             {"HYBRID", NLIST_HYBRID, many ? 16 : 8},
                             {"DYNAMIC", NLIST_DYNAMIC, 0}};
    gpu_grid grid;
    csr_grid(p, 0, grid);
    int64_t const pairs = pairs_in(grid, p.radius);
    for (const half_way &way : ways) {
        nlist_desc desc = csr_desc(p, true, pairs);
        desc.layout = way.layout;
        desc.width = way.width;
        if (way.layout == NLIST_STATIC) desc.capacity = 0;
        char text[64];
        std::snprintf(text, sizeof text, "grid, %.0f neighbours, %s", neighbors, way.name);
        half_row(p.name.c_str(), n, text, 0, [&](gpu_list &list) {
            must(nlist_cuda_build_ugrid(&list.gpu, &desc, &grid.gpu, p.pos.data, 0, n, stream));
        });
    }
}

/* The pairs of a tree of spheres: boxes that overlap. */
double half_pairs_ms(gpu_tree &tree)
{
    device_array<int64_t> needed(1);
    must(lbvh_cuda_count_pairs(&tree.gpu, needed.data, stream));
    int64_t const total = needed.download()[0];
    device_array<int32_t> ids(2 * static_cast<std::size_t>(total));
    return gpu_ms([&] { must(lbvh_cuda_pairs(&tree.gpu, ids.data, total, needed.data, stream)); });
}

/* A tree over spheres of their own radii, or of one (radii NULL: points). */
void half_tree_rows(const char *workload, const float *pos, std::size_t stride, int32_t n,
                    float radius, const float *radii)
{
    half_way const ways[] = {{"HYBRID", NLIST_HYBRID, 8},
                             {"COMPACT", NLIST_COMPACT, 0},
                             {"DYNAMIC", NLIST_DYNAMIC, 0}};
    gpu_tree tree;
    lbvh_desc nodes = {};
    nodes.kind = radii ? LBVH_SPHERES : LBVH_POINTS;
    must(lbvh_cuda_build(&tree.gpu, &nodes, pos, stride, n, stream));
    double const pairs_ms = radii ? half_pairs_ms(tree) : 0;
    for (const half_way &way : ways) {
        nlist_desc desc = {};
        desc.radius = radius;
        desc.radii = radii;
        desc.half = 1;
        desc.layout = way.layout;
        desc.width = way.width;
        desc.capacity = int64_t{6} * n;
        half_row(workload, n, std::string("tree, ") + way.name, pairs_ms, [&](gpu_list &list) {
            must(nlist_cuda_build_lbvh(&list.gpu, &desc, &tree.gpu, pos, stride, n, stream));
        });
    }
}

void half_two_sizes(int32_t small)
{
    spheres s = bidisperse(small);
    device_array<float> radii(static_cast<std::size_t>(s.n));
    launch(s.n, radii_kernel, s.pos.data, s.n, radii.data);
    half_tree_rows(s.name.c_str(), s.pos.data, DEM_STRIDE, s.n, 0, radii.data);
}

void bench_half(const std::vector<int32_t> &sizes)
{
    bench_title("half: half lists, each pair found once, beside the search by row; of two sizes "
                "beside the pairs of the same tree",
                "base");
    for (int32_t n : sizes)
        for (double neighbors : {8.0, 29.0})
            for (bool sorted : {false, true}) half_grid_rows(n, neighbors, sorted);
    for (int32_t n : sizes)
        for (bool sorted : {false, true}) {
            points const p = half_points(n, 8, sorted);
            half_tree_rows(p.name.c_str(), p.pos.data, 0, n, p.radius, nullptr);
        }
    half_two_sizes(sizes[0]);
}

#endif
