/* bench_order.cu - the order of a grid's cells in memory, on a GPU: rows, Morton's, Hilbert's and
   Peano's curve, with particles sorted and not (source 000, section 1).
   SPDX-License-Identifier: MIT OR Unlicense

       make bench-cuda                                       all of it
       build/cuda/bench_order --csv order.csv
       build/cuda/bench_order --small      does it work at all? (also on the emulator)
       groups: order

   Source 000: a space-filling curve helps where particles are stored in the order of the cells, and
   is "quite non influential" where they are not. Its grid and lists are repeated here by plain
   kernels: a thread for each particle counts the neighbours in the 9 or 27 cells around it. All
   orders read the number of a cell from a table, so that they differ in memory alone. The grids
   have 729^2 and 81^3 cells, 3^12 both: Peano's curve needs powers of 3. Morton's and Hilbert's are
   those of the next power of 2, less what is outside. */

#include "tests/bench/bench_gpu.h"
#include "tests/bench/curves.h"
#include "tests/common/workloads.h"

#include <algorithm>
#include <utility>

namespace {

enum curve { by_rows, by_morton, by_hilbert, by_peano, shuffled, curves };
const char *const curve_name[] = {"rows", "Morton", "Hilbert", "Peano", "shuffled"};

/* ---- the number of each cell ----------------------------------------------------------------- */

/* The place of a cell on Peano's curve (G. Peano, Mathematische Annalen 36, 1890): digits to base 3
   of the coordinates, from the highest on, x first. A digit is mirrored where those before it, of
   the other axes, have an odd sum. */
int32_t peano_code(const int32_t *at, int dim, int32_t side)
{
    int32_t code = 0, sum[3] = {0, 0, 0}, all = 0;
    for (int32_t unit = side / 3; unit > 0; unit /= 3)
        for (int a = 0; a < dim; a++) {
            int32_t const digit = at[a] / unit % 3, turned = (all - sum[a]) % 2;
            int32_t const own = turned ? 2 - digit : digit;
            code = 3 * code + own;
            sum[a] += own;
            all += own;
        }
    return code;
}

int32_t code_of(curve how, const int32_t *at, int dim, int32_t side, int32_t row)
{
    int bits = 0;
    while (1 << bits < side) bits++;
    if (how == by_morton) return curve_interleave(at, dim, bits);
    if (how == by_hilbert) return curve_hilbert(at, dim, bits);
    if (how == by_peano) return peano_code(at, dim, side);
    uint32_t const any = static_cast<uint32_t>(row) * 2654435769u; /* odd: a permutation */
    return how == shuffled ? static_cast<int32_t>((any ^ any >> 15) >> 1) : row;
}

/* number[row of a cell]; part of the pairs of consecutive numbers whose cells share a side. */
std::vector<int32_t> numbers_of(curve how, int dim, int32_t side, double *joined)
{
    std::vector<std::pair<int32_t, int32_t>> order;
    int32_t const cells = dim == 2 ? side * side : side * side * side;
    for (int32_t row = 0; row < cells; row++) {
        int32_t const at[3] = {row % side, row / side % side, row / side / side};
        order.emplace_back(code_of(how, at, dim, side, row), row);
    }
    std::sort(order.begin(), order.end());
    std::vector<int32_t> number(order.size());
    int32_t together = 0;
    for (std::size_t k = 0; k < order.size(); k++) {
        int32_t const row = order[k].second, last = k > 0 ? order[k - 1].second : row;
        number[static_cast<std::size_t>(row)] = static_cast<int32_t>(k);
        together += std::abs(row % side - last % side) +
                        std::abs(row / side % side - last / side % side) +
                        std::abs(row / side / side - last / side / side) == 1;
    }
    *joined = static_cast<double>(together) / (cells - 1);
    return number;
}

/* ---- a grid, and linked lists ---------------------------------------------------------------- */

struct view {
    int dim;
    int32_t side, n;
    float radius;
    const int32_t *number;      /* [cells] by row */
    const int32_t *start;       /* [cells + 1] by number */
    const int32_t *id;          /* [n] in the order of the cells */
    const float4 *point;        /* [n] as given */
    const float4 *sorted;       /* [n] in the order of the cells */
    int32_t *head;              /* [cells] by number; -1: empty */
    int32_t *next;              /* [n] as given */
};

__host__ __device__ inline int32_t along(const view &v, float x)
{
    int32_t const c = static_cast<int32_t>(x * static_cast<float>(v.side));
    return c < v.side ? c : v.side - 1;
}

__host__ __device__ inline int32_t row_of(const view &v, float4 p)
{
    return ((v.dim == 3 ? along(v, p.z) : 0) * v.side + along(v, p.y)) * v.side + along(v, p.x);
}

__device__ int meets(float4 p, float4 q, float limit)
{
    float const x = p.x - q.x, y = p.y - q.y, z = p.z - q.z;
    return x * x + y * y + z * z <= limit;
}

enum search { sorted_cells, sorted_strips, given_cells, given_lists, searches };
const char *const search_name[] = {", data sorted", " as strips, data sorted", ", data as given",
                                   ", linked lists, data as given"};

template <search how> __device__ int in_cells(const view &v, float4 p, int32_t first, int32_t last)
{
    float const limit = v.radius * v.radius;
    int found = 0;
    if constexpr (how == given_lists) {
        for (int32_t k = v.head[first]; k >= 0; k = v.next[k])
            found += meets(p, v.point[k], limit);
    } else {
        for (int32_t k = v.start[first]; k < v.start[last + 1]; k++)
            found += meets(p, how == given_cells ? v.point[v.id[k]] : v.sorted[k], limit);
    }
    return found;
}

/* The neighbours of each particle; threads are in the order of the data. Strips: three cells along
   x have consecutive numbers (rows only). */
template <search how> __global__ void count_kernel(view v, int32_t *counts)
{
    int64_t const k = thread_index();
    if (k >= v.n) return;
    bool const strips = how == sorted_strips, ordered = strips || how == sorted_cells;
    float4 const p = ordered ? v.sorted[k] : v.point[k];
    int32_t const x = along(v, p.x), y = along(v, p.y), z = v.dim == 3 ? along(v, p.z) : 0;
    int32_t const end = v.side - 1, low = x > 0 ? x - 1 : x, high = x < end ? x + 1 : x;
    int32_t const top = v.dim == 3 && z < end ? z + 1 : z;
    int found = -1; /* not itself */
    for (int32_t w = z > 0 ? z - 1 : z; w <= top; w++)
        for (int32_t u = y > 0 ? y - 1 : y; u <= (y < end ? y + 1 : y); u++) {
            const int32_t *const row = v.number + (w * v.side + u) * v.side;
            for (int32_t c = low; c <= high; c += strips ? 3 : 1)
                found += in_cells<how>(v, p, row[c], row[strips ? high : c]);
        }
    counts[ordered ? v.id[k] : k] = found;
}

__global__ void list_kernel(view v)
{
    int64_t const k = thread_index();
    if (k < v.n)
        v.next[k] =
            atomicExch(&v.head[v.number[row_of(v, v.point[k])]], static_cast<int32_t>(k));
}

/* ---- all searches by all orders -------------------------------------------------------------- */

std::vector<float4> points_of(int dim, int32_t n)
{
    std::vector<float> pos(3 * static_cast<std::size_t>(n));
    std::vector<float4> points;
    wl_uniform(n, 6, pos.data());
    for (std::size_t i = 0; i < pos.size(); i += 3)
        points.push_back(float4{pos[i], pos[i + 1], dim == 3 ? pos[i + 2] : 0, 0});
    return points;
}

struct grid {
    std::vector<float4> given;
    device_array<float4> point, sorted;
    device_array<int32_t> number, start, id, head, next, counts;
    view v;

    grid(int dim, int32_t side, int32_t n)
        : given(points_of(dim, n)), point(given.size()), sorted(given.size()),
          number(cells_of(dim, side)), start(number.count + 1), id(given.size()),
          head(number.count), next(given.size()), counts(given.size()),
          v{dim,        side,       n,           1.0f / static_cast<float>(side), number.data,
            start.data, id.data,    point.data,  sorted.data,                     head.data,
            next.data}
    {
        point.upload(given.data());
    }
    static std::size_t cells_of(int dim, int32_t side)
    {
        return static_cast<std::size_t>(dim == 2 ? side * side : side * side * side);
    }
    /* A counting sort on the host, and lists on the device. */
    void build(const std::vector<int32_t> &of)
    {
        std::vector<int32_t> begin(of.size() + 1, 0), order(given.size());
        std::vector<float4> moved(given.size());
        auto const cell = [&](std::size_t i) {
            return static_cast<std::size_t>(of[static_cast<std::size_t>(row_of(v, given[i]))]);
        };
        for (std::size_t i = 0; i < given.size(); i++) begin[cell(i)]++;
        for (std::size_t c = 1; c < begin.size(); c++) begin[c] += begin[c - 1];
        for (std::size_t i = given.size(); i-- > 0;) {
            std::size_t const place = static_cast<std::size_t>(--begin[cell(i)]);
            order[place] = static_cast<int32_t>(i);
            moved[place] = given[i];
        }
        number.upload(of.data());
        start.upload(begin.data());
        id.upload(order.data());
        sorted.upload(moved.data());
        must(cudaMemsetAsync(head.data, 0xFF, head.count * sizeof *head.data, stream));
        launch(v.n, list_kernel, v);
    }
    void run(search how)
    {
        auto const kernel = how == sorted_cells    ? count_kernel<sorted_cells>
                            : how == sorted_strips ? count_kernel<sorted_strips>
                            : how == given_cells   ? count_kernel<given_cells>
                                                   : count_kernel<given_lists>;
        launch(v.n, kernel, v, counts.data);
    }
};

void order_rows(int dim, int32_t n)
{
    int32_t const side = bench.small ? (dim == 2 ? 27 : 9) : dim == 2 ? 729 : 81;
    grid g(dim, side, n);
    std::string const workload = std::to_string(dim) + "D-" + size_name(n);
    double base[searches] = {};
    int64_t total = -1;
    for (int c = 0; c < curves; c++) {
        double joined;
        g.build(numbers_of(static_cast<curve>(c), dim, side, &joined));
        bench_check(c != by_peano || joined > 0.999999, "Peano's curve has a gap");
        for (int s = 0; s < searches; s++) {
            if (s == sorted_strips && c != by_rows) continue;
            search const how = static_cast<search>(s);
            std::string const method = std::string(curve_name[c]) + search_name[s];
            bench_row_s row = {};
            row.group = "order";
            row.workload = workload.c_str();
            row.method = method.c_str();
            row.n = n;
            row.ms = gpu_ms([&] { g.run(how); });
            if (c == by_rows) base[s] = row.ms;
            row.base_ms = s == sorted_strips ? base[sorted_cells] : base[s];
            bench_row(&row);
            int64_t const got = sum_of(g.counts);
            if (total < 0) total = got;
            bench_check(got == total && got > n, method.c_str());
        }
    }
}

} // namespace

int main(int argc, char **argv)
{
    bench_start(argc, argv, "bench_order_cuda", "order");
    start_gpu();
    print_gpu("bench_order", 1);
    measure_copy();
    bench_title("order: neighbours of each counted, cells in memory along curves (000)", "rows");
    for (int32_t n : bench.small ? std::vector<int32_t>{2000}
                     : bench.n   ? std::vector<int32_t>{bench.n}
                                 : std::vector<int32_t>{1000000, 10000000})
        for (int dim : {2, 3}) order_rows(dim, n);
    stop_gpu();
    return bench_end();
}
