/* test_ugrid.cu - tests of the CUDA half of ugrid.h, against the serial half.
   SPDX-License-Identifier: MIT OR Unlicense

       nvcc -std=c++17 -arch=native -O3 -I. tests/cuda/ugrid/test_ugrid.cu -o test_ugrid && ./test_ugrid
       ./test_ugrid --n 5000 --share 4 --only product       particles per case; every 4th case; tests whose names hold a word

   The same file runs on the CPU under tests/emu, with fewer particles. Nothing but CUDA and the C++ library is needed.

   What is compared, and how exactly:
   - UGRID_SORT and desc.deterministic: every array has the bits of the serial build.
   - Other builds: each cell holds the same entries, in any order; ugrid_validate agrees.
   - Walks: a kernel writes down what its iterators met; a walk on the CPU through the downloaded grid must meet the same
     particles in the same order.
   - Searches: distances are computed in the same bits on both sides, so counts and rows are equal, not nearly equal. */

#include <cuda_runtime.h>
#include <cub/cub.cuh>

/* Calls of CUDA in ugrid.cu: of those that copy or set memory, number `spoil_at` from now on fails, and
   of questions about the GPU number `unknown_at` (0: none). */
static long spoil_at, unknown_at;

static cudaError_t spoiled(long *left, cudaError_t done)
{
    return *left > 0 && --*left == 0 ? cudaSetDevice(-1) : done;
}

#define cudaMemcpyAsync(...) spoiled(&spoil_at, cudaMemcpyAsync(__VA_ARGS__))
#define cudaMemsetAsync(...) spoiled(&spoil_at, cudaMemsetAsync(__VA_ARGS__))
#define cudaDeviceGetAttribute(...) spoiled(&unknown_at, cudaDeviceGetAttribute(__VA_ARGS__))

#define UGRID_IMPLEMENTATION
#define UGRID_CUDA
#include "ugrid.h"

#undef cudaMemcpyAsync
#undef cudaMemsetAsync
#undef cudaDeviceGetAttribute

#define TESTED ugrid
#include "../testing.h"
#include <limits>

/* One of `every` cases; scattered, so that no period of the product falls together with it. */
static bool chosen(size_t k, int every) { return ((uint32_t)k * 2654435761u >> 8) % (uint32_t)every == 0; }

/* ------------------------------------------------------------------------------------------------
   Cases: every build x placement x walk x bounds x order of cells x records
   ------------------------------------------------------------------------------------------------ */

enum { UNBOUNDED = 8, CROWDED = 9 /* unbounded, all cells in few buckets */, ALL_BOUNDS = 10 };

struct Case {
    int dim, bounds;            /* bounds: bit a = axis a is periodic */
    ugrid_method method;
    ugrid_slot_layout layout;
    real size;                  /* in cells; 0 = LOOSE */
    ugrid_walk walk;
    ugrid_cell_order order;
    int no_records, deterministic;
};

static bool sorting(const Case &c) { return c.method == UGRID_COUNT || c.method == UGRID_SORT; }
static bool ordered(const Case &c) { return c.method == UGRID_SORT || c.deterministic; }

static bool sensible(const Case &c)
{
    bool const strips = c.walk == UGRID_STRIPS || c.walk == UGRID_HYBRID, tight = c.size > 0, unbounded = c.bounds >= UNBOUNDED;
    if (c.dim == 2 && c.bounds >= 4 && !unbounded) return false;
    if (strips && (!sorting(c) || tight || c.order != UGRID_ROWS || unbounded)) return false;
    if (unbounded && c.order != UGRID_ROWS) return false;
    if (c.method == UGRID_LIST_PACKED && tight) return false;
    if (c.no_records && (!sorting(c) || tight)) return false;
    return c.method == UGRID_FIXED || c.layout == UGRID_SLOTS_BY_COLUMN;
}

static std::vector<Case> all_cases()
{
    static const real sizes[] = {0, (real)0.4, 1, (real)1.7};
    std::vector<Case> cases;
    for (int dim = 2; dim <= 3; dim++)
        for (int bounds = 0; bounds < ALL_BOUNDS; bounds++)
            for (int method = UGRID_COUNT; method <= UGRID_LIST_PACKED; method++)
                for (int layout = 0; layout < 2; layout++)
                    for (real size : sizes)
                        for (int walk = UGRID_CELLS; walk <= UGRID_HYBRID; walk++)
                            for (int rest = 0; rest < 8; rest++) {
                                Case const c = {dim, bounds, (ugrid_method)method, (ugrid_slot_layout)layout, size, (ugrid_walk)walk,
                                                (ugrid_cell_order)(rest & 1), rest >> 1 & 1, rest >> 2};
                                if (sensible(c)) cases.push_back(c);
                            }
    return cases;
}

static const int cells[3] = {5, 4, 3};

static ugrid_desc desc_of(const Case &c)
{
    static const real min[3] = {(real)-0.31, (real)0.17, (real)5.3};
    ugrid_desc d = {};
    d.dim = c.dim;
    d.cell = (real)0.23;
    for (int a = 0; a < c.dim; a++) {
        d.min[a] = min[a];
        d.max[a] = min[a] + d.cell * (real)cells[a] * (real)1.11;
        d.periodic[a] = c.bounds < UNBOUNDED && (c.bounds >> a & 1);
    }
    d.unbounded = c.bounds >= UNBOUNDED;
    d.buckets = c.bounds == CROWDED ? 8 : 0;
    d.method = c.method;
    d.slot_layout = c.layout;
    d.placement = c.size > 0 ? UGRID_TIGHT : UGRID_LOOSE;
    d.size = c.size * d.cell;
    d.walk = c.walk;
    d.cell_order = c.order;
    d.no_records = c.no_records;
    d.inverse = sorting(c);
    d.split = 1 + (c.walk + c.method) % 3;
    d.deterministic = c.deterministic;
    return d;
}

static std::string name_of(const Case &c)
{
    static const char *const methods[] = {"AUTO", "COUNT", "SORT", "FIXED", "LIST", "LIST_PACKED"};
    static const char *const walks[] = {"AUTO", "CELLS", "STRIPS", "MODULAR", "HYBRID"};
    char text[200];
    snprintf(text, sizeof text, "dim %d, bounds %d (8, 9: unbounded; else periodic axes), %s, slots by %s, size %g cells, %s, %s, no_records %d, deterministic %d",
             c.dim, c.bounds, methods[c.method], c.layout ? "row" : "column", (double)c.size, walks[c.walk], c.order ? "MORTON" : "ROWS",
             c.no_records, c.deterministic);
    return text;
}

/* Points of every kind: anywhere, in a cloud at a corner, on borders of cells, on one spot, up to two boxes outside, and
   some twenty boxes away. */
static std::vector<real> mixed_points(const ugrid_desc &d, int n, int seed)
{
    wl_random r = wl_seed((uint64_t)seed);
    std::vector<real> pos;
    for (int i = 0; i < n; i++)
        for (int a = 0; a < d.dim; a++) {
            real const length = d.max[a] - d.min[a], u = (real)wl_u(&r);
            switch (i % 8) {
            case 0: case 1: case 2: case 3: pos.push_back(d.min[a] + length * u); break;
            case 4: pos.push_back(d.min[a] + d.cell * (u - (real)0.5)); break;
            case 5: pos.push_back(d.min[a] + length * (real)(int)(u * (cells[a] + 1)) / (real)cells[a]); break;
            case 6: pos.push_back(i % 64 == 6 ? d.min[a] + length / 2 : d.min[a] + length * (real)(int)(u * 64) / 64); break;
            default: pos.push_back(d.min[a] + length * (i % 32 == 7 ? 41 * u - 20 : 5 * u - 2));
            }
        }
    return pos;
}

/* ------------------------------------------------------------------------------------------------
   One case: a grid on the device, the serial one, and the device's one downloaded
   ------------------------------------------------------------------------------------------------ */

struct Grids {
    ugrid_cuda gpu = {};
    ugrid serial = {}, copy = {};
    ~Grids()
    {
        ugrid_cuda_free(&gpu);
        ugrid_free(&serial);
        ugrid_free(&copy);
    }
};

/* Records field by field: in a double build they end in 4 bytes that belong to nobody. */
static bool same_records(const ugrid_record *a, const ugrid_record *b, int32_t n)
{
    if (!a || !b) return !a && !b;
    for (int32_t k = 0; k < n; k++)
        if (!same_bits(a[k].x, b[k].x, 3) || a[k].link != b[k].link) return false;
    return true;
}

/* The entries of a cell, as the structure has them. */
static std::vector<int32_t> entries_of(const ugrid &g, int32_t cell)
{
    std::vector<int32_t> list;
    if (g.start) for (int32_t k = g.start[cell]; k < g.start[cell + 1]; k++) list.push_back(g.order[k]);
    if (g.count) for (int32_t k = 0; k < g.count[cell]; k++)
        list.push_back(g.slot[g.desc.slot_layout == UGRID_SLOTS_BY_ROW ? cell * g.desc.slots + k : k * g.cell_count + cell]);
    if (g.head) for (int32_t e = g.head[cell]; e >= 0; e = g.next ? g.next[e] : g.record[e].link) list.push_back(e);
    return list;
}

static void check_arrays(const Case &c, const ugrid &serial, const ugrid &copy)
{
    size_t const n = (size_t)serial.n, entries = (size_t)serial.entries, count = (size_t)serial.cell_count;
    CHECK(copy.n == serial.n && copy.entries == serial.entries && copy.cell_count == serial.cell_count && copy.spans == serial.spans);
    if (copy.cell_count != serial.cell_count || copy.entries != serial.entries) return;
    CHECK(same_array(copy.start, serial.start, count + 1));
    CHECK(same_array(copy.count, serial.count, count));
    for (int32_t cell = 0; cell < serial.cell_count; cell++) {
        std::vector<int32_t> mine = entries_of(copy, cell), theirs = entries_of(serial, cell);
        if (!ordered(c)) {
            std::sort(mine.begin(), mine.end());
            std::sort(theirs.begin(), theirs.end());
        }
        CHECK(mine == theirs);
    }
    CHECK_RESULT(ugrid_validate(&copy), UGRID_OK);
    if (!ordered(c)) return;
    CHECK(same_array(copy.order, serial.order, entries));
    CHECK(same_array(copy.inverse, serial.inverse, n));
    CHECK(same_records(copy.record, serial.record, serial.n));
    CHECK(same_array(copy.head, serial.head, count));
    CHECK(same_array(copy.next, serial.next, n * (size_t)serial.spans));
}

/* Builds on both sides. FIXED gets the slots it needs. */
static bool build(Grids *g, ugrid_desc d, const std::vector<real> &pos, const Device<real> &d_pos)
{
    int32_t const n = (int32_t)(pos.size() / (size_t)d.dim);
    if (d.method == UGRID_FIXED) {
        d.slots = 1;
        ugrid_result const r = ugrid_build(&g->serial, &d, pos.data(), 0, n);
        if (r == UGRID_CELL_FULL) d.slots = g->serial.needed_slots;
    }
    CHECK_RESULT(ugrid_build(&g->serial, &d, pos.data(), 0, n), UGRID_OK);
    CHECK_RESULT(ugrid_cuda_build(&g->gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
    CHECK_RESULT(ugrid_cuda_check(&g->gpu, stream), UGRID_OK);
    CHECK(g->gpu.device.grid.bad_id == -1 && g->gpu.device.grid.n == n && g->gpu.device.grid.desc.method == d.method);
    if (d.method == UGRID_FIXED) CHECK(g->gpu.device.grid.needed_slots == 0); /* all fit */
    CHECK_RESULT(ugrid_cuda_download(&g->copy, &g->gpu, stream), UGRID_OK);
    g->copy.pos = pos.data();
    g->copy.stride = sizeof(real) * (size_t)d.dim;
    return g->serial.n == n && g->copy.n == n;
}

/* ---- walks ---- */

enum { NEAR_PLACE, NEAR_HALF, NEAR_WITHIN, NEAR_RANGES, WALKS };

namespace {

/* What the iterators of one row meet: up to `room` names, and how many there were. */
__global__ void walk_kernel(const ugrid_device device, int kind, const real *points, int dim, int32_t rows, real radius, int32_t room,
                            int32_t *counts, int32_t *names)
{
    int32_t const row = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= rows) return;
    int32_t count = 0;
    ugrid_near near = kind == NEAR_WITHIN ? ugrid_near_within(&device, points + row * dim, radius)
                    : kind == NEAR_HALF ? ugrid_near_half(&device, row, radius) : ugrid_near_place(&device, row, radius);
    if (kind == NEAR_RANGES) {
        while (ugrid_next_range(&near))
            for (int32_t k = near.begin; k < near.end; k++, count++) if (count < room) names[row * room + count] = k;
    } else {
        for (; ugrid_next(&near); count++) if (count < room) names[row * room + count] = near.id;
    }
    counts[row] = count;
}

} /* namespace */

static std::vector<int32_t> walk(const ugrid &g, int kind, const real *p, int32_t row, real radius)
{
    std::vector<int32_t> names;
    ugrid_near near = kind == NEAR_WITHIN ? ugrid_near_within(&g, p, radius)
                    : kind == NEAR_HALF ? ugrid_near_half(&g, row, radius) : ugrid_near_place(&g, row, radius);
    if (kind == NEAR_RANGES) {
        while (ugrid_next_range(&near)) for (int32_t k = near.begin; k < near.end; k++) names.push_back(k);
    } else {
        while (ugrid_next(&near)) names.push_back(near.id);
    }
    return names;
}

static void check_walks(const Grids &g, const std::vector<real> &points, const Device<real> &d_points, real radius)
{
    int32_t const room = 64, dim = g.copy.desc.dim, m = (int32_t)(points.size() / (size_t)dim);
    for (int kind = 0; kind < WALKS; kind++) {
        int32_t const rows = kind == NEAR_WITHIN ? m : g.copy.n;
        Device<int32_t> d_counts((size_t)rows), d_names((size_t)rows * room);
        launch(rows, walk_kernel, g.gpu.device, kind, d_points.p, dim, rows, radius, room, d_counts.p, d_names.p);
        std::vector<int32_t> const counts = d_counts.get(), names = d_names.get();
        for (int32_t row = 0; row < rows; row++) {
            std::vector<int32_t> const want = walk(g.copy, kind, points.data() + (kind == NEAR_WITHIN ? row * dim : 0), row, radius);
            CHECK(counts[(size_t)row] == (int32_t)want.size());
            CHECK(std::equal(want.begin(), want.begin() + std::min<ptrdiff_t>(room, (ptrdiff_t)want.size()), names.begin() + row * room));
        }
    }
}

/* ---- searches ---- */

struct Lists {
    std::vector<int64_t> offsets;
    std::vector<int32_t> ids;
};

/* Rows as sets, where only their contents matter. */
static void sort_rows(Lists *l)
{
    for (size_t row = 0; row + 1 < l->offsets.size(); row++)
        std::sort(l->ids.begin() + l->offsets[row], l->ids.begin() + l->offsets[row + 1]);
}

/* The lists as the serial search makes them from the same arrays: rows have a defined order, and CUDA has the same. */
static Lists serial_rows(const ugrid &g, real radius, int flags)
{
    Lists l;
    int64_t needed = 0;
    l.offsets.resize((size_t)g.n + 1);
    ugrid_neighbors(&g, radius, flags, l.offsets.data(), nullptr, 0, &needed);
    l.ids.resize((size_t)needed);
    CHECK_RESULT(ugrid_neighbors(&g, radius, flags, l.offsets.data(), l.ids.data(), needed, &needed), UGRID_OK);
    return l;
}

static Lists serial_lists(const ugrid &g, real radius, int flags)
{
    Lists l = serial_rows(g, radius, flags);
    sort_rows(&l);
    return l;
}

/* Exactly full; then one short, where a guard behind the list must survive and no row that fits may differ. */
static void check_neighbors(Grids &g, real radius, int flags)
{
    Lists const want = serial_rows(g.copy, radius, flags);
    size_t const needed = want.ids.size();
    Lists got;
    Device<int64_t> d_offsets((size_t)g.copy.n + 1);
    Device<int32_t> d_ids(needed + 1);
    for (int missing = 0; missing < 2 && (int)needed >= missing; missing++) {
        d_ids.set(std::vector<int32_t>(needed + 1, -7));
        CHECK_RESULT(ugrid_cuda_neighbors(&g.gpu, radius, flags, d_offsets.p, d_ids.p, (int64_t)needed - missing, stream), UGRID_OK);
        got.offsets = d_offsets.get();
        got.ids = d_ids.get();
        CHECK(got.offsets == want.offsets);
        if (got.offsets != want.offsets) return;
        CHECK(got.ids[needed] == -7 && (missing == 0 || got.ids[needed - 1] == -7));
        got.ids.resize(needed);
        if (missing) { /* the last row that is not empty was cut */
            size_t row = 0;
            while (got.offsets[row + 1] < (int64_t)needed) row++;
            got.offsets.resize(row + 1);
        }
        CHECK(std::equal(got.ids.begin(), got.ids.begin() + got.offsets.back(), want.ids.begin()));
    }
    CHECK_RESULT(ugrid_cuda_neighbors(&g.gpu, radius, flags, d_offsets.p, nullptr, 0, stream), UGRID_OK); /* count only */
    CHECK(d_offsets.get() == want.offsets);
}

static void check_counts(Grids &g, real radius, int flags)
{
    std::vector<int32_t> want((size_t)g.copy.n);
    Device<int32_t> d_counts((size_t)g.copy.n);
    CHECK_RESULT(ugrid_count_neighbors(&g.copy, radius, flags, want.data()), UGRID_OK);
    CHECK_RESULT(ugrid_cuda_count_neighbors(&g.gpu, radius, flags, d_counts.p, stream), UGRID_OK);
    CHECK(d_counts.get() == want);
}

static void check_pairs(Grids &g, real radius)
{
    int64_t want = -1;
    Device<int64_t> d_pairs(1);
    CHECK_RESULT(ugrid_count_pairs(&g.copy, radius, &want), UGRID_OK);
    CHECK_RESULT(ugrid_cuda_count_pairs(&g.gpu, radius, d_pairs.p, stream), UGRID_OK);
    CHECK(d_pairs.get()[0] == want);
}

static void check_neighbors_at(Grids &g, const std::vector<real> &points, const Device<real> &d_points, real radius)
{
    int32_t const m = (int32_t)(points.size() / (size_t)g.copy.desc.dim);
    int64_t needed = -1;
    Lists want, got;
    want.offsets.resize((size_t)m + 1);
    ugrid_neighbors_at(&g.copy, points.data(), 0, m, radius, want.offsets.data(), nullptr, 0, &needed);
    want.ids.resize((size_t)needed);
    CHECK_RESULT(ugrid_neighbors_at(&g.copy, points.data(), 0, m, radius, want.offsets.data(), want.ids.data(), needed, &needed), UGRID_OK);
    Device<int64_t> d_offsets((size_t)m + 1);
    Device<int32_t> d_ids((size_t)needed + 1);
    CHECK_RESULT(ugrid_cuda_neighbors_at(&g.gpu, d_points.p, 0, m, radius, d_offsets.p, d_ids.p, needed, stream), UGRID_OK);
    got.offsets = d_offsets.get();
    got.ids = d_ids.get();
    CHECK(got.offsets == want.offsets && got.ids.back() == (int32_t)0xA5A5A5A5);
    got.ids.pop_back();
    if (got.offsets != want.offsets) return;
    sort_rows(&want);
    sort_rows(&got);
    CHECK(got.ids == want.ids);
    if (needed == 0) return;
    d_ids.set(std::vector<int32_t>((size_t)needed + 1, -7));
    CHECK_RESULT(ugrid_cuda_neighbors_at(&g.gpu, d_points.p, 0, m, radius, d_offsets.p, d_ids.p, needed - 1, stream), UGRID_OK);
    CHECK(d_offsets.get() == want.offsets && d_ids.get()[(size_t)needed - 1] == -7);
}

/* Small whole numbers: sums of them have no rounding, in whatever order they are added. */
static void check_sums(Grids &g, int width)
{
    std::vector<real> values((size_t)g.copy.n * (size_t)width), want((size_t)g.copy.cell_count * (size_t)width), by_place(values.size());
    for (size_t k = 0; k < values.size(); k++) values[k] = (real)(k * 7 % 101) - 50;
    CHECK_RESULT(ugrid_cell_sums(&g.copy, values.data(), width, want.data()), UGRID_OK);
    CHECK_RESULT(ugrid_gather(&g.copy, values.data(), sizeof(real) * (size_t)width, by_place.data()), UGRID_OK);
    Device<real> d_values(values), d_by_place(by_place), d_sums(want.size());
    for (int flags = 0; flags < 8; flags++) {
        if (flags & UGRID_HALF) continue;
        CHECK_RESULT(ugrid_cuda_cell_sums(&g.gpu, flags & UGRID_PLACES ? d_by_place.p : d_values.p, width, flags, d_sums.p, stream), UGRID_OK);
        CHECK(d_sums.get() == want);
    }
}

/* Elements of an odd size, of whole words, of 16 bytes, and at an odd address. */
static void check_moves(Grids &g)
{
    static const struct { size_t bytes, shift; } elements[] = {{1, 0}, {3, 0}, {4, 0}, {12, 0}, {16, 0}, {32, 0}, {16, 1}, {8, 4}};
    for (auto e : elements) {
        size_t const total = (size_t)g.copy.n * e.bytes;
        std::vector<uint8_t> src(total + e.shift), want(total), got;
        for (size_t k = 0; k < src.size(); k++) src[k] = (uint8_t)(k * 37 + k / 256);
        CHECK_RESULT(ugrid_gather(&g.copy, src.data() + e.shift, e.bytes, want.data()), UGRID_OK);
        Device<uint8_t> d_src(src), d_dst(total + 1), d_back(total + e.shift);
        CHECK_RESULT(ugrid_cuda_gather(&g.gpu, d_src.p + e.shift, e.bytes, d_dst.p, stream), UGRID_OK);
        got = d_dst.get();
        CHECK(std::equal(want.begin(), want.end(), got.begin()) && got[total] == 0xA5);
        CHECK_RESULT(ugrid_cuda_scatter(&g.gpu, d_dst.p, e.bytes, d_back.p + e.shift, stream), UGRID_OK);
        got = d_back.get();
        CHECK(std::equal(src.begin() + (ptrdiff_t)e.shift, src.end(), got.begin() + (ptrdiff_t)e.shift));
    }
}

/* Query points in the box, on its corners, outside, far outside, and one that is NaN. */
static std::vector<real> query_points(const ugrid_desc &d)
{
    std::vector<real> points;
    for (int q = 0; q < 40; q++)
        for (int a = 0; a < d.dim; a++) {
            real const length = d.max[a] - d.min[a];
            if (q == 39 && a == d.dim - 1) points.push_back((real)NAN);
            else if (q == 38) points.push_back(d.min[a]);
            else if (q == 37) points.push_back(d.max[a]);
            else points.push_back(d.min[a] + length * ((real)(q * (7 + 4 * a) % 80) / 40 - (real)0.5));
        }
    return points;
}

/* ------------------------------------------------------------------------------------------------
   Tests
   ------------------------------------------------------------------------------------------------ */

static void test_product()
{
    std::vector<Case> const cases = all_cases();
    for (size_t k = 0; k < cases.size(); k++) {
        Case const &c = cases[k];
        if (!chosen(k, share)) continue;
        context = "product: " + name_of(c);
        ugrid_desc const d = desc_of(c);
        int const n = c.size > 0 || c.bounds == CROWDED ? n_max / 4 : n_max;
        std::vector<real> const pos = mixed_points(d, n, (int)k), points = query_points(d);
        Device<real> d_pos(pos), d_points(points);
        real const radius = d.cell * (k % 3 == 0 ? (real)0.6 : k % 3 == 1 ? (real)1 : (real)1.7);
        Grids g;
        if (!build(&g, d, pos, d_pos)) continue;
        check_arrays(c, g.serial, g.copy);
        check_walks(g, points, d_points, radius);
        check_pairs(g, radius);
        for (int flags = 0; flags < 4; flags++) check_counts(g, radius, flags);
        check_neighbors(g, radius, (int)(k % 4));
        check_neighbors(g, radius, (int)((k + 1) % 4));
        check_neighbors_at(g, points, d_points, radius);
        check_sums(g, 1 + (int)(k % 3));
        check_moves(g);
    }
}

/* Rows longer than any buffer: 600 particles on one spot, and a grid of a single cell. */
static void test_crowds()
{
    for (int method = UGRID_COUNT; method <= UGRID_LIST_PACKED; method++)
        for (int periodic = 0; periodic < 8; periodic += 7) {
            Case const c = {3, periodic, (ugrid_method)method, UGRID_SLOTS_BY_ROW, 0, UGRID_CELLS, UGRID_ROWS, 0, 0};
            ugrid_desc d = desc_of(c);
            context = "crowds: " + name_of(c);
            std::vector<real> pos;
            for (int i = 0; i < 600; i++) for (int a = 0; a < 3; a++) pos.push_back(d.min[a] + (i < 500 ? (real)0.1 : (real)0.001 * (real)i));
            Device<real> d_pos(pos);
            Grids g;
            if (!build(&g, d, pos, d_pos)) continue;
            check_arrays(c, g.serial, g.copy);
            check_pairs(g, (real)0.05);
            check_neighbors(g, (real)0.05, method % 4);
            check_sums(g, 2);
        }
}

/* Few particles in many cells: whole chunks of empty cells in front, between and behind, also with the particles on the borders of
   chunks (cell 4096 k, and the one before). */
static void test_sparse()
{
    std::vector<std::vector<int32_t>> const scenes = {{0}, {4095}, {4096}, {8191, 8192}, {63999}, {0, 63999}, {12287, 12288, 40960}, {20000, 20001, 20001},
                                                      {5000, 36864, 36863, 61439, 61440}};
    for (size_t k = 0; k < scenes.size(); k++) {
        Case const c = {3, 0, UGRID_SORT, UGRID_SLOTS_BY_ROW, 0, UGRID_CELLS, UGRID_ROWS, 0, 0};
        ugrid_desc d = desc_of(c);
        std::vector<real> pos;
        context = "sparse " + std::to_string(k);
        for (int a = 0; a < 3; a++) {
            d.min[a] = 0;
            d.max[a] = 40;
        }
        d.cell = 1; /* 64000 of them */
        for (int32_t cell : scenes[k]) {
            pos.push_back((real)(cell % 40) + (real)0.5);
            pos.push_back((real)(cell / 40 % 40) + (real)0.5);
            pos.push_back((real)(cell / 1600) + (real)0.5);
        }
        if (k == 3) pos[0] = (real)NAN; /* in no cell: at the end of the order */
        Device<real> d_pos(pos);
        Grids g;
        if (k == 3) {
            CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, 2, stream), UGRID_OK);
            CHECK_RESULT(ugrid_cuda_download(&g.copy, &g.gpu, stream), UGRID_OK);
            for (int32_t cell = 0; cell <= 64000; cell++) CHECK(g.copy.start[cell] == (cell > 8192));
            continue;
        }
        if (!build(&g, d, pos, d_pos)) continue;
        check_arrays(c, g.serial, g.copy);
        CHECK(memcmp(g.serial.start, g.copy.start, 64001 * sizeof(int32_t)) == 0);
    }
}

/* No particles, and one. */
static void test_few()
{
    std::vector<Case> const cases = all_cases();
    for (size_t k = 0; k < cases.size(); k++) {
        if (!chosen(k, 5 * share)) continue;
        for (int n = 0; n < 3; n++) {
            ugrid_desc const d = desc_of(cases[k]);
            std::vector<real> pos = mixed_points(d, n, 3), points = query_points(d);
            Device<real> d_pos(pos), d_points(points);
            Grids g;
            context = "few: n " + std::to_string(n) + ", " + name_of(cases[k]);
            if (!build(&g, d, pos, d_pos)) continue;
            check_arrays(cases[k], g.serial, g.copy);
            check_walks(g, points, d_points, d.cell);
            check_pairs(g, d.cell);
            check_counts(g, d.cell, 0);
            check_neighbors(g, d.cell, (int)(k % 4));
            check_neighbors_at(g, points, d_points, d.cell);
            check_sums(g, 2);
            check_moves(g);
        }
    }
    ugrid_cuda gpu = {};
    ugrid_desc d = desc_of(cases[0]);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, nullptr, 0, 0, stream), UGRID_OK);
    CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_OK);
    ugrid_cuda_free(&gpu);
    ugrid_cuda_free(&gpu);
    ugrid_cuda_free(nullptr);
}

/* One grid object, rebuilt with more, fewer, and other kinds of particles: nothing of the last build shines through. */
static void test_rebuild()
{
    std::vector<Case> const cases = all_cases();
    Grids g;
    wl_random r = wl_seed(77);
    for (int step = 0; step < 300 / share; step++) {
        Case const &c = cases[wl_below(&r, (uint32_t)cases.size())];
        ugrid_desc const d = desc_of(c);
        std::vector<real> const pos = mixed_points(d, (int)wl_below(&r, (uint32_t)(n_max / 4)), step);
        Device<real> d_pos(pos);
        context = "rebuild, step " + std::to_string(step) + ": " + name_of(c);
        if (!build(&g, d, pos, d_pos)) continue;
        check_arrays(c, g.serial, g.copy);
        check_neighbors(g, d.cell, (int)wl_below(&r, 4));
        if (step % 50 == 49) ugrid_cuda_free(&g.gpu);
    }
}

/* Positions inside a larger struct. */
static void test_stride()
{
    struct Body { int32_t tag; real x[3]; uint8_t color[4]; };
    std::vector<Case> const cases = all_cases();
    for (size_t k = 0; k < cases.size(); k++) {
        if (!chosen(k, 3 * share)) continue;
        Case const &c = cases[k];
        ugrid_desc d = desc_of(c);
        int const n = n_max / 4;
        std::vector<real> const pos = mixed_points(d, n, 5);
        std::vector<Body> bodies((size_t)n);
        for (int i = 0; i < n; i++) for (int a = 0; a < c.dim; a++) bodies[(size_t)i].x[a] = pos[(size_t)(i * c.dim + a)];
        Device<Body> d_bodies(bodies);
        Grids g;
        context = "stride: " + name_of(c);
        d.slots = d.method == UGRID_FIXED ? n * 8 : 0;
        CHECK_RESULT(ugrid_build(&g.serial, &d, bodies[0].x, sizeof(Body), n), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_bodies.p->x, sizeof(Body), n, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_download(&g.copy, &g.gpu, stream), UGRID_OK);
        g.copy.pos = bodies[0].x;
        g.copy.stride = sizeof(Body);
        check_arrays(c, g.serial, g.copy);
        check_pairs(g, d.cell);
        check_counts(g, d.cell, 1);
        Device<int64_t> d_offsets((size_t)n + 1); /* query points with a stride */
        CHECK_RESULT(ugrid_cuda_neighbors_at(&g.gpu, d_bodies.p->x, sizeof(Body), n, d.cell, d_offsets.p, nullptr, 0, stream), UGRID_OK);
        std::vector<int64_t> want((size_t)n + 1);
        int64_t needed;
        ugrid_neighbors_at(&g.copy, bodies[0].x, sizeof(Body), n, d.cell, want.data(), nullptr, 0, &needed);
        CHECK(d_offsets.get() == want);
    }
}

/* The box and the cell from the points, as the serial function finds them. */
static void test_fit()
{
    for (int dim = 2; dim <= 3; dim++)
        for (int n = 0; n <= n_max; n += n < 2 ? 1 : n_max - 2) {
            Case const c = {dim, 0, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, 0, 0};
            std::vector<real> pos = mixed_points(desc_of(c), n, 9);
            if (n > 3) pos[4] = -1000, pos[5] = 3000;
            Device<real> d_pos(pos);
            ugrid_desc serial = {}, device = {};
            serial.dim = device.dim = dim;
            context = "fit: dim " + std::to_string(dim) + ", n " + std::to_string(n);
            CHECK_RESULT(ugrid_fit(&serial, pos.data(), 0, n, nullptr), UGRID_OK);
            CHECK_RESULT(ugrid_cuda_fit(&device, d_pos.p, 0, n, stream), UGRID_OK);
            for (int a = 0; a < 3; a++) CHECK(serial.min[a] == device.min[a] && serial.max[a] == device.max[a]);
            CHECK(serial.cell == device.cell);
            if (n < 4) continue;
            pos[(size_t)(dim * (n / 2))] = (real)NAN;
            d_pos.set(pos);
            memset(&device, 0, sizeof device);
            device.dim = dim;
            CHECK_RESULT(ugrid_cuda_fit(&device, d_pos.p, 0, n, stream), UGRID_NOT_FINITE);
        }
    ugrid_desc d = {};
    Device<real> d_one(std::vector<real>(3, 1));
    CHECK_RESULT(ugrid_cuda_fit(nullptr, d_one.p, 0, 1, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_fit(&d, nullptr, 0, 1, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_fit(&d, d_one.p, 1, 1, stream), UGRID_BAD_ARGUMENT);
    d.periodic[0] = 1;
    CHECK_RESULT(ugrid_cuda_fit(&d, d_one.p, 0, 1, stream), UGRID_BAD_BOX);
    d.dim = 5;
    CHECK_RESULT(ugrid_cuda_fit(&d, d_one.p, 0, 1, stream), UGRID_BAD_DIM);
    real const largest = std::numeric_limits<real>::max();
    Device<real> d_wide(std::vector<real>{0, largest, 0, 1, -largest, 1});
    d = ugrid_desc{};
    CHECK_RESULT(ugrid_cuda_fit(&d, d_wide.p, 0, 2, stream), UGRID_BOX_TOO_WIDE);
}

/* NaN and Inf: the first one is told, all others can be searched as if these were not there, and nothing reads out of bounds. */
static void test_not_finite()
{
    std::vector<Case> const cases = all_cases();
    for (size_t k = 0; k < cases.size(); k++) {
        if (!chosen(k, share)) continue;
        Case const &c = cases[k];
        ugrid_desc d = desc_of(c);
        int const n = std::min(n_max / 4, 400), first = std::min(17 + (int)(k % 50), n - 1), dim = c.dim;
        std::vector<real> pos = mixed_points(d, n, 6), good;
        std::vector<int32_t> ids;
        context = "not finite: " + name_of(c);
        d.slots = d.method == UGRID_FIXED ? n * 8 : 0;
        for (int i = 0; i < n; i++) {
            bool const bad = i == first || (i > first && i % 11 == 0);
            if (bad) pos[(size_t)(i * dim + i % dim)] = i % 3 ? (real)NAN : (real)INFINITY;
            for (int a = 0; a < dim && !bad; a++) good.push_back(pos[(size_t)(i * dim + a)]);
            if (!bad) ids.push_back(i);
        }
        Device<real> d_pos(pos);
        Grids g;
        CHECK_RESULT(ugrid_build(&g.serial, &d, good.data(), 0, (int32_t)ids.size()), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_NOT_FINITE);
        CHECK(g.gpu.device.grid.bad_id == first);
        std::vector<int32_t> want(ids.size()), got;
        Device<int32_t> d_counts((size_t)n);
        CHECK_RESULT(ugrid_count_neighbors(&g.serial, d.cell, 0, want.data()), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_count_neighbors(&g.gpu, d.cell, 0, d_counts.p, stream), UGRID_OK);
        got = d_counts.get();
        int64_t sum = 0, total = 0, pairs;
        for (size_t i = 0; i < ids.size(); i++) {
            CHECK(got[(size_t)ids[i]] == want[i]);
            total += want[i];
        }
        for (int i = 0; i < n; i++) sum += got[(size_t)i];
        CHECK(sum == total && "the others have no neighbours");
        Device<int64_t> d_pairs(1);
        CHECK_RESULT(ugrid_count_pairs(&g.serial, d.cell, &pairs), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_count_pairs(&g.gpu, d.cell, d_pairs.p, stream), UGRID_OK);
        CHECK(d_pairs.get()[0] == pairs);
        std::vector<real> ones((size_t)n, 1), sums;
        Device<real> d_ones(ones), d_sums((size_t)g.gpu.device.grid.cell_count);
        CHECK_RESULT(ugrid_cuda_cell_sums(&g.gpu, d_ones.p, 1, 0, d_sums.p, stream), UGRID_OK);
        real in_cells = 0;
        for (real s : d_sums.get()) in_cells += s;
        CHECK(in_cells == (real)ids.size());
        for (int i = 0; i < n; i++) for (int a = 0; a < dim; a++) if (!(pos[(size_t)(i * dim + a)] - pos[(size_t)(i * dim + a)] == 0)) pos[(size_t)(i * dim + a)] = 0;
        d_pos.set(pos); /* the next build of the same object has forgotten them */
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        ugrid_result const again = ugrid_cuda_check(&g.gpu, stream);
        CHECK((again == UGRID_OK || again == UGRID_CELL_FULL) && g.gpu.device.grid.bad_id == -1);
    }
}

/* FIXED with too few slots: what fits is kept, the slots needed are told exactly, and with them the build is whole. */
static void test_cell_full()
{
    std::vector<Case> const cases = all_cases();
    for (size_t k = 0; k < cases.size(); k++) {
        Case const &c = cases[k];
        if (c.method != UGRID_FIXED || c.walk != UGRID_CELLS || !chosen(k, share)) continue;
        ugrid_desc d = desc_of(c);
        std::vector<real> const pos = mixed_points(d, n_max / 4, 8);
        Device<real> d_pos(pos);
        int const n = n_max / 4;
        Grids g;
        context = "cell full: " + name_of(c);
        d.slots = 2;
        CHECK_RESULT(ugrid_build(&g.serial, &d, pos.data(), 0, n), UGRID_CELL_FULL);
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_CELL_FULL);
        CHECK(g.gpu.device.grid.needed_slots == g.serial.needed_slots);
        Device<int32_t> d_counts((size_t)n); /* a search through what was kept is sound */
        CHECK_RESULT(ugrid_cuda_count_neighbors(&g.gpu, d.cell, 0, d_counts.p, stream), UGRID_OK);
        for (int32_t count : d_counts.get()) CHECK(count >= 0 && count < n);
        CHECK_RESULT(ugrid_cuda_download(&g.copy, &g.gpu, stream), UGRID_OK);
        for (int32_t cell = 0; cell < g.copy.cell_count; cell++)
            for (int s = 0; s < std::min(g.copy.count[cell], 2); s++) {
                int32_t const entry = g.copy.slot[c.layout == UGRID_SLOTS_BY_ROW ? cell * 2 + s : s * g.copy.cell_count + cell];
                CHECK(entry >= 0 && entry < n * g.copy.spans);
            }
        d.slots = g.gpu.device.grid.needed_slots;
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_OK);
    }
}

/* ---- memory ---- */

/* Device memory that is counted, and fails on demand. */

/* All searches once; returns the first result that is not UGRID_OK. */
static ugrid_result search_all(ugrid_cuda *gpu, real radius, const Device<real> &d_pos, int32_t n, Device<int64_t> *offsets, Device<int32_t> *ids)
{
    Device<int64_t> d_pairs(1);
    ugrid_result r = ugrid_cuda_count_pairs(gpu, radius, d_pairs.p, stream);
    if (r == UGRID_OK) r = ugrid_cuda_count_neighbors(gpu, radius, 0, ids->p, stream);
    if (r == UGRID_OK) r = ugrid_cuda_neighbors(gpu, radius, 0, offsets->p, ids->p, (int64_t)ids->count, stream);
    if (r == UGRID_OK) r = ugrid_cuda_neighbors_at(gpu, d_pos.p, 0, n, radius, offsets->p, ids->p, (int64_t)ids->count, stream);
    d_pairs.get();
    return r;
}

/* After a reserve, builds and searches of up to n particles allocate nothing. */
static void test_reserve()
{
    std::vector<Case> const cases = all_cases();
    for (size_t k = 0; k < cases.size(); k++) {
        if (!chosen(k, share)) continue;
        Case const &c = cases[k];
        if (c.walk == UGRID_MODULAR || c.walk == UGRID_HYBRID) continue;
        Heap h = {};
        ugrid_cuda gpu = {};
        int const n = std::min(n_max / 4, 500);
        ugrid_desc d = desc_of(c);
        std::vector<real> const pos = mixed_points(d, n, 6);
        Device<real> d_pos(pos);
        Device<int64_t> offsets((size_t)n + 1);
        Device<int32_t> ids((size_t)n * 20);
        context = "reserve: " + name_of(c);
        d.slots = 100;
        d.cuda_allocator = allocator_of(&h);
        CHECK_RESULT(ugrid_cuda_reserve(&gpu, &d, n, stream), UGRID_OK);
        long const calls = h.calls;
        CHECK(calls > 0 && gpu.device.grid.n == 0);
        for (int m : {n, 0, 1, n / 3, n}) {
            CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, m, stream), UGRID_OK);
            CHECK_RESULT(search_all(&gpu, d.cell, d_pos, m, &offsets, &ids), UGRID_OK);
            CHECK(h.calls == calls);
        }
        ugrid_cuda_free(&gpu);
        CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
    }
}

/* Each allocation fails once: the result says so, the grid is empty, and the next build works. */
static void test_out_of_memory()
{
    std::vector<Case> const cases = all_cases();
    for (size_t k = 0; k < cases.size(); k++) {
        Case const &c = cases[k];
        if (c.walk != UGRID_CELLS || (c.bounds != 1 && c.bounds != UNBOUNDED) || !chosen(k, share)) continue;
        int const n = 60;
        ugrid_desc d = desc_of(c);
        std::vector<real> const pos = mixed_points(d, n, 6);
        Device<real> d_pos(pos);
        Device<int64_t> offsets((size_t)n + 1);
        Device<int32_t> ids((size_t)n * n);
        context = "out of memory: " + name_of(c);
        d.slots = 200;
        long calls = 1;
        for (long fail = 0; fail <= calls; fail++) {
            Heap h = {};
            ugrid_cuda gpu = {};
            d.cuda_allocator = allocator_of(&h);
            h.fail_at = fail;
            ugrid_result r = ugrid_cuda_build(&gpu, &d, d_pos.p, 0, n, stream);
            if (fail == 0) CHECK_RESULT(r, UGRID_OK);
            if (r != UGRID_OK) {
                CHECK_RESULT(r, UGRID_OUT_OF_MEMORY);
                CHECK(gpu.device.grid.n == 0);
                CHECK_RESULT(search_all(&gpu, d.cell, d_pos, 0, &offsets, &ids), UGRID_NOT_BUILT);
                CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
            }
            r = search_all(&gpu, d.cell, d_pos, n, &offsets, &ids);
            if (r != UGRID_OK) {
                CHECK_RESULT(r, UGRID_OUT_OF_MEMORY);
                CHECK_RESULT(search_all(&gpu, d.cell, d_pos, n, &offsets, &ids), UGRID_OK);
            }
            CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_OK);
            if (fail == 0) calls = h.calls;
            else CHECK(h.calls >= fail && "the failure was met");
            ugrid_cuda_free(&gpu);
            CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
        }
        CHECK(calls > 1);
    }
}

/* Bytes of every block that a grid holds. */
static std::vector<size_t> block_bytes(const ugrid_cuda &gpu)
{
    std::vector<size_t> bytes;
    for (const ugrid_block &b : gpu.block) bytes.push_back(b.bytes);
    for (const ugrid_block &b : gpu.scratch) bytes.push_back(b.bytes);
    return bytes;
}

/* Of one that was reserved and nothing else. */
static std::vector<size_t> reserved_bytes(const ugrid_desc &d, int n)
{
    ugrid_cuda gpu = {};
    CHECK_RESULT(ugrid_cuda_reserve(&gpu, &d, n, stream), UGRID_OK);
    std::vector<size_t> const bytes = block_bytes(gpu);
    ugrid_cuda_free(&gpu);
    return bytes;
}

/* So many builds, with searches, each with one particle more, and query points beyond these: every array, work space included, grows
   O(log n) times, and a reserve takes what it needs. */
static void check_growth(const Case &c, int n, const Device<real> &d_pos)
{
    Heap h = {};
    ugrid_cuda gpu = {};
    ugrid_desc d = desc_of(c);
    long growths = 2, held = 0;
    for (double size = 1; size < 2 * n; size *= 1.5) growths++;
    Device<int64_t> offsets(2 * (size_t)n + 1);
    Device<int32_t> ids(100);
    context = "growth: " + name_of(c);
    d.slots = 8;
    d.cuda_allocator = allocator_of(&h);
    for (int m = 1; m <= n; m++) {
        CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, m, stream), UGRID_OK);
        if (m % 8) continue;
        CHECK_RESULT(ugrid_cuda_neighbors(&gpu, d.cell, 0, offsets.p, ids.p, 100, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_neighbors_at(&gpu, d_pos.p, 0, 2 * m, d.cell, offsets.p, ids.p, 100, stream), UGRID_OK);
    }
    std::vector<size_t> const grown = block_bytes(gpu);
    for (size_t bytes : grown) held += bytes > 0;
    CHECK(h.calls <= held * growths);
    ugrid_desc plain = d;
    plain.cuda_allocator = {nullptr, nullptr, nullptr};
    std::vector<size_t> const enough = reserved_bytes(plain, 2 * n), more = reserved_bytes(plain, 8 * n);
    CHECK_RESULT(ugrid_cuda_reserve(&gpu, &d, 8 * n, stream), UGRID_OK);
    std::vector<size_t> const reserved = block_bytes(gpu);
    for (size_t b = 0; b < grown.size(); b++) {
        CHECK(grown[b] <= enough[b] + enough[b] / 2);
        CHECK(reserved[b] == std::max(grown[b], more[b]));
    }
    ugrid_cuda_free(&gpu);
    CHECK(h.live == 0 && h.live_bytes == 0);
}

/* Every method, placement and work space; the smallest share of the emulated tests makes fewer builds. */
static void test_growth()
{
    int const n = share > 20 ? 96 : 600;
    std::vector<real> const pos = mixed_points(desc_of({3, 0, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, 0, 0}), 2 * n, 6);
    Device<real> d_pos(pos);
    for (int method = UGRID_COUNT; method <= UGRID_LIST_PACKED; method++)
        for (int tight = 0; tight < 2; tight++)
            for (int deterministic = 0; deterministic < 2; deterministic++) {
                Case const c = {3, tight ? 0 : UNBOUNDED, (ugrid_method)method, UGRID_SLOTS_BY_COLUMN, (real)tight, UGRID_CELLS, UGRID_ROWS, 0, deterministic};
                if (sensible(c)) check_growth(c, n, d_pos);
            }
    check_growth({3, 0, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_STRIPS, UGRID_ROWS, 0, 0}, n, d_pos);
}

/* Where half as much again cannot be had, what is needed will do. */
static void test_growth_short_of_memory()
{
    ugrid_desc d = desc_of({3, 0, UGRID_LIST, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, 0, 0});
    Device<real> d_pos(mixed_points(d, 101, 6));
    Heap h = {};
    ugrid_cuda gpu = {};
    context = "growth, short of memory";
    d.cuda_allocator = allocator_of(&h);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 100, stream), UGRID_OK);
    h.fail_at = h.calls + 1;
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 101, stream), UGRID_OK);
    CHECK(h.failed == 1 && gpu.block[UGRID_I_NEXT].bytes == 101 * sizeof(int32_t));
    CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_OK);
    ugrid_cuda_free(&gpu);
    CHECK(h.live == 0);
}

/* ---- many particles: COUNT by parts ---- */

enum { MIXED, ONE_CELL, IN_ORDER, LAYERS, SPREADS };

/* Anywhere as mixed_points; two thirds in one cell; along the order of cells; most in one layer of them. */
static std::vector<real> many_points(const ugrid_desc &d, int n, int spread)
{
    std::vector<real> pos = mixed_points(d, n, spread);
    for (int i = 0; i < n; i++)
        for (int a = 0; a < d.dim; a++) {
            real &x = pos[(size_t)(i * d.dim + a)];
            real const length = d.max[a] - d.min[a], step = (real)i / (real)n;
            if (spread == ONE_CELL && i % 3 > 0) x = d.min[a] + length / 2 + (real)0.01 * d.cell * step;
            if (spread == IN_ORDER && a == d.dim - 1) x = d.min[a] + length * step;
            if (spread == LAYERS && a == d.dim - 1 && i % 8 > 0) x = d.min[a] + length * (real)0.3;
        }
    return pos;
}

static void check_many(const Case &c, int n, int spread, bool with_bad)
{
    ugrid_desc d = desc_of(c);
    d.cell /= 4;
    d.split = 1;
    d.inverse = spread % 2;
    d.coherent = spread == IN_ORDER && n % 2;
    context = "parts: " + name_of(c) + ", n " + std::to_string(n) + ", spread " + std::to_string(spread);
    std::vector<real> pos = many_points(d, n, spread);
    Device<real> d_pos(pos);
    Grids g;
    if (!build(&g, d, pos, d_pos)) return;
    check_arrays(c, g.serial, g.copy);
    if (!with_bad) return;
    int32_t const good = g.serial.n;
    for (int i = 5; i < n; i += 1000) pos[(size_t)(i * c.dim)] = (real)NAN;
    d_pos.set(pos);
    CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
    CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_NOT_FINITE);
    CHECK(g.gpu.device.grid.bad_id == 5);
    CHECK_RESULT(ugrid_cuda_download(&g.copy, &g.gpu, stream), UGRID_OK);
    CHECK(g.copy.start[g.copy.cell_count] == good - (n + 994) / 1000);
    for (int32_t k = g.copy.start[g.copy.cell_count]; k < n; k++) CHECK(g.copy.order[k] % 1000 == 5);
}

/* After a reserve, neither a build by parts nor one of fewer particles allocates; without memory, nothing is left behind. */
static void check_many_memory(int n)
{
    Case const c = {3, 0, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, 0, 0};
    ugrid_desc d = desc_of(c);
    d.cell /= 4;
    std::vector<real> const pos = many_points(d, n, MIXED);
    Device<real> d_pos(pos);
    context = "parts: memory";
    Heap h = {};
    ugrid_cuda gpu = {};
    d.cuda_allocator = allocator_of(&h);
    CHECK_RESULT(ugrid_cuda_reserve(&gpu, &d, n, stream), UGRID_OK);
    long const calls = h.calls;
    for (int size : {n, n / 4, n}) {
        d.coherent = size < n;
        CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, size, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_OK);
    }
    CHECK(h.calls == calls);
    ugrid_cuda_free(&gpu);
    for (long fail = 1; fail <= calls; fail++) {
        h.calls = 0;
        h.fail_at = fail;
        ugrid_result const r = ugrid_cuda_build(&gpu, &d, d_pos.p, 0, n, stream);
        CHECK(r == UGRID_OUT_OF_MEMORY || (r == UGRID_OK && h.calls < fail)); /* a build takes no memory for lists */
        ugrid_cuda_free(&gpu);
        CHECK(h.live == 0);
    }
    h.fail_at = 0;
#ifdef CUDA_EMU
    long const steps = 4;
    d.coherent = 0;
    for (long fail = 1; fail <= steps + 1; fail++) {
        emu_fail_launch(fail);
        ugrid_result const r = ugrid_cuda_build(&gpu, &d, d_pos.p, 0, n, stream);
        MUST(cudaStreamSynchronize(stream)); /* lazy streams launch only now */
        emu_fail_launch(0);
        CHECK_RESULT(r, fail <= steps ? UGRID_CUDA_ERROR : UGRID_OK);
        CHECK((gpu.device.grid.n == n) == (r == UGRID_OK));
    }
    CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_OK);
    ugrid_cuda_free(&gpu);
    CHECK(h.live == 0);
#endif
}

static void test_parts()
{
#ifdef CUDA_EMU
    std::vector<int> const sizes = share > 20 ? std::vector<int>{16385} : std::vector<int>{16385, 70000};
    int const every = emu_options()->blocks > 1 ? 8 : share > 20 ? 4 : 1; /* blocks take turns: 180 KB are copied at each */
#else
    std::vector<int> const sizes = {16384, 65537, 1000003, 5000001};
    int const every = std::min(share, 11);
#endif
    int k = 0;
    for (int n : sizes)
        for (int dim = 2; dim <= 3; dim++)
            for (int bounds : {0, 3, (int)UNBOUNDED})
                for (int spread = 0; spread < SPREADS; spread++, k++) {
                    if (n > 65537 && k % 5) continue;
                    if (k % every) continue;
                    Case const c = {dim, bounds, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS,
                                    bounds == 3 ? UGRID_MORTON : UGRID_ROWS, k % 3 == 1, 0};
                    check_many(c, n, spread, k % 2 == 0);
                }
    if (share <= 20) check_many_memory(16385);
}

/* ---- refusals ---- */

static void test_refusals()
{
    Case const c = {3, 0, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, 0, 0};
    ugrid_desc const good = desc_of(c);
    ugrid_desc d = good;
    ugrid_cuda gpu = {};
    Heap h = {};
    Device<real> d_pos(std::vector<real>(30, (real)0.5));
    Device<int64_t> d_long(11);
    Device<int32_t> d_int(100);
    context = "refusals";
    CHECK_RESULT(ugrid_cuda_build(nullptr, &d, d_pos.p, 0, 10, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, nullptr, 0, 10, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, -1, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 3 * sizeof(real) - 1, 10, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_build(&gpu, nullptr, d_pos.p, 0, 10, stream), UGRID_BAD_BOX);
    CHECK_RESULT(ugrid_cuda_reserve(nullptr, &d, 10, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_reserve(&gpu, &d, -1, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_reserve(&gpu, &d, INT32_MAX, stream), UGRID_TOO_MANY_ENTRIES);
    CHECK_RESULT(ugrid_cuda_check(nullptr, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_download(nullptr, &gpu, stream), UGRID_BAD_ARGUMENT);
    memset(d.min, 0, sizeof d.min);
    memset(d.max, 0, sizeof d.max);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 10, stream), UGRID_BAD_BOX);
    d = good;
    d.cell = 0;
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 10, stream), UGRID_BAD_CELL);
    d.cell = (real)1e-6;
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 10, stream), UGRID_TOO_MANY_CELLS);
    d = good;
    d.dim = 4;
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 10, stream), UGRID_BAD_DIM);
    d = good;
    d.method = UGRID_LIST;
    d.walk = UGRID_STRIPS;
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 10, stream), UGRID_BAD_WALK);
    d = good;
    d.cuda_allocator.alloc = heap_alloc;
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 10, stream), UGRID_BAD_ALLOCATOR);
    d = good;
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 10, stream), UGRID_OK);
    d.cuda_allocator = allocator_of(&h);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 10, stream), UGRID_BAD_ALLOCATOR);
    CHECK(gpu.device.grid.n == 0 && h.calls == 0);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &good, d_pos.p, 0, 10, stream), UGRID_OK);
    CHECK_RESULT(ugrid_cuda_count_pairs(&gpu, -1, d_long.p, stream), UGRID_BAD_RADIUS);
    CHECK_RESULT(ugrid_cuda_count_pairs(&gpu, (real)NAN, d_long.p, stream), UGRID_BAD_RADIUS);
    CHECK_RESULT(ugrid_cuda_count_pairs(&gpu, 1, nullptr, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_count_pairs(nullptr, 1, d_long.p, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_count_neighbors(&gpu, 1, 0, nullptr, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_count_neighbors(&gpu, 1, 64, d_int.p, stream), UGRID_BAD_OPTION);
    CHECK_RESULT(ugrid_cuda_neighbors(&gpu, 1, 0, nullptr, d_int.p, 100, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_neighbors(&gpu, 1, 0, d_long.p, nullptr, 100, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_neighbors(&gpu, 1, 0, d_long.p, d_int.p, -1, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_neighbors_at(&gpu, nullptr, 0, 3, 1, d_long.p, d_int.p, 100, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_neighbors_at(&gpu, d_pos.p, 1, 3, 1, d_long.p, d_int.p, 100, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_neighbors_at(&gpu, d_pos.p, 0, 0, 1, d_long.p, nullptr, 0, stream), UGRID_OK);
    CHECK(d_long.get()[0] == 0);
    CHECK_RESULT(ugrid_cuda_cell_sums(&gpu, d_pos.p, 0, 0, d_pos.p, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_cell_sums(&gpu, nullptr, 1, 0, d_pos.p, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_cell_sums(&gpu, d_pos.p, 1, 64, d_pos.p, stream), UGRID_BAD_OPTION);
    CHECK_RESULT(ugrid_cuda_gather(&gpu, nullptr, 4, d_int.p, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_gather(&gpu, d_int.p, 0, d_int.p, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_scatter(nullptr, d_int.p, 4, d_int.p, stream), UGRID_BAD_ARGUMENT);
    ugrid_cuda_free(&gpu);
    CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_NOT_BUILT);
}

/* ---- functors ---- */

/* Notes each contact it is given: how often each particle was i, and j; and whether the geometry is right. */
struct Note {
    int32_t *as_i, *as_j, *wrong;
    real radius;
    __device__ void operator()(const ugrid_contact &c) const
    {
        atomicAdd(&as_i[c.i], 1);
        atomicAdd(&as_j[c.j], 1);
        real const d2 = c.d[0] * c.d[0] + c.d[1] * c.d[1] + c.d[2] * c.d[2];
        bool const fine = d2 <= radius * radius * (real)1.001 && d2 <= c.d2 * (real)1.001 && d2 >= c.d2 * (real)0.999 && c.i != c.j;
        if (!fine) atomicAdd(wrong, 1);
    }
};

/* What a sum adds up: a whole number that depends on both partners. */
struct Weigh {
    __device__ int32_t operator()(const ugrid_contact &c) const { return c.i * 3 + c.j * 5 + c.place_i - c.place_j; }
};

/* Every call that reads a grid, on one without particles. */
static void check_all_calls(ugrid_cuda *gpu, ugrid_result want)
{
    Device<real> d_real(1000, 0); /* more than there are cells */
    Device<int64_t> d_long(2);
    Device<int32_t> d_int(2);
    ugrid host = {};
    CHECK_RESULT(ugrid_cuda_check(gpu, stream), want);
    CHECK_RESULT(ugrid_cuda_download(&host, gpu, stream), want);
    CHECK_RESULT(ugrid_validate(&host), want);
    CHECK_RESULT(ugrid_cuda_gather(gpu, d_int.p, 4, d_int.p, stream), want);
    CHECK_RESULT(ugrid_cuda_scatter(gpu, d_int.p, 4, d_int.p, stream), want);
    CHECK_RESULT(ugrid_cuda_cell_sums(gpu, d_real.p, 1, 0, d_real.p, stream), want);
    CHECK_RESULT(ugrid_cuda_count_pairs(gpu, 1, d_long.p, stream), want);
    CHECK_RESULT(ugrid_cuda_count_neighbors(gpu, 1, 0, d_int.p, stream), want);
    CHECK_RESULT(ugrid_cuda_neighbors(gpu, 1, 0, d_long.p, d_int.p, 2, stream), want);
    CHECK_RESULT(ugrid_cuda_neighbors_at(gpu, d_real.p, 0, 1, 1, d_long.p, d_int.p, 2, stream), want);
    CHECK_RESULT(ugrid_cuda_each(gpu, 1, 0, Note{d_int.p, d_int.p, d_int.p, 1}, stream), want);
    CHECK_RESULT(ugrid_cuda_sum(gpu, 1, 0, Weigh(), d_int.p, stream), want);
    ugrid_free(&host);
}

/* A grid that was never built, was reserved only, refused, or freed; and one that was built without particles. */
static void test_not_built()
{
    Case const c = {3, 0, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, 0, 0};
    ugrid_desc const d = desc_of(c);
    Device<real> d_pos(std::vector<real>(30, (real)0.5));
    ugrid_cuda gpu = {};
    context = "not built";
    check_all_calls(&gpu, UGRID_NOT_BUILT);
    CHECK_RESULT(ugrid_cuda_reserve(&gpu, &d, 10, stream), UGRID_OK);
    check_all_calls(&gpu, UGRID_NOT_BUILT);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, nullptr, 0, 0, stream), UGRID_OK);
    check_all_calls(&gpu, UGRID_OK);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 10, stream), UGRID_OK);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, nullptr, 0, 10, stream), UGRID_BAD_ARGUMENT);
    check_all_calls(&gpu, UGRID_NOT_BUILT);
    ugrid_cuda_free(&gpu);
    check_all_calls(&gpu, UGRID_NOT_BUILT);
}

/* ugrid_cuda_check waits for what is in the stream, whether there are particles or not, and a grid or not. */
static void test_check_waits()
{
    Case const c = {3, 0, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, 0, 0};
    ugrid_desc const d = desc_of(c);
    Device<real> d_pos(std::vector<real>(3, (real)0.5));
    Device<int32_t> d_word(std::vector<int32_t>{17});
    context = "check waits";
    for (int n = -1; n < 2; n++) { /* -1: not built */
        ugrid_cuda gpu = {};
        int32_t word = 0;
        if (n >= 0) CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        MUST(cudaMemcpyAsync(&word, d_word.p, sizeof word, cudaMemcpyDeviceToHost, stream));
        CHECK_RESULT(ugrid_cuda_check(&gpu, stream), n < 0 ? UGRID_NOT_BUILT : UGRID_OK);
        CHECK(word == 17 && cudaStreamQuery(stream) == cudaSuccess);
        MUST(cudaStreamSynchronize(stream));
        ugrid_cuda_free(&gpu);
    }
}

/* A launch that fails comes back as a result, and the object can be used again afterwards. On a GPU: a capture that was made
   invalid refuses all further work; the emulator fails the launch we name. */
static void test_launch_errors()
{
    Case const c = {3, 1, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, 0, 0};
    ugrid_desc const d = desc_of(c);
    std::vector<real> const pos = mixed_points(d, 100, 6);
    Device<real> d_pos(pos);
    Device<int32_t> d_counts(100);
    Grids g;
    context = "launch errors";
    if (!build(&g, d, pos, d_pos)) return;
#ifdef CUDA_EMU
    for (int method = UGRID_COUNT; method <= UGRID_LIST_PACKED; method++)
        for (long fail = 1;; fail++) {
            ugrid_desc each = d;
            each.method = (ugrid_method)method;
            each.slots = 100;
            long const before = emu_launches();
            emu_fail_launch(fail);
            ugrid_result r = ugrid_cuda_build(&g.gpu, &each, d_pos.p, 0, 100, stream);
            if (r == UGRID_OK) r = ugrid_cuda_count_neighbors(&g.gpu, d.cell, 0, d_counts.p, stream);
            MUST(cudaStreamSynchronize(stream)); /* lazy streams launch only now */
            emu_fail_launch(0);
            if (r == UGRID_OK) {
                CHECK(fail > 2 && emu_launches() - before >= fail - 1);
                break;
            }
            CHECK_RESULT(r, UGRID_CUDA_ERROR);
            CHECK(g.gpu.device.grid.cuda_error == (int32_t)cudaErrorLaunchOutOfResources);
        }
#else
    cudaGraph_t graph = nullptr;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_CUDA_ERROR); /* waiting is not allowed here, and spoils the capture */
    CHECK(g.gpu.device.grid.cuda_error != 0);
    CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, 100, stream), UGRID_CUDA_ERROR);
    CHECK(g.gpu.device.grid.cuda_error != 0 && g.gpu.device.grid.n == 0);
    CHECK(cudaStreamEndCapture(stream, &graph) != cudaSuccess);
    cudaGetLastError();
#endif
    CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, 100, stream), UGRID_OK);
    CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_OK);
    CHECK(g.gpu.device.grid.cuda_error == 0);
}

/* The same of copies, and of memory to be cleared:
   told by the call that has met it, and by no other. */
static void test_failing_calls()
{
    for (int method = UGRID_COUNT; method <= UGRID_LIST_PACKED; method++) {
        Case const c = {3, 1, (ugrid_method)method, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, 0, 0};
        ugrid_desc d = desc_of(c);
        std::vector<real> const pos = mixed_points(d, 100, 6);
        Device<real> d_pos(pos);
        bool good = false;
        context = "failing calls: method " + std::to_string(method);
        d.slots = 100;
        for (long fail = 1; !good; fail++) {
            Grids g;
            spoil_at = fail;
            ugrid_result r = ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, 100, stream);
            if (r == UGRID_OK) r = ugrid_cuda_check(&g.gpu, stream);
            bool const there = r == UGRID_OK;
            if (there) r = ugrid_cuda_download(&g.copy, &g.gpu, stream);
            good = spoil_at > 0;
            spoil_at = 0;
            CHECK_RESULT(r, good ? UGRID_OK : UGRID_CUDA_ERROR);
            ugrid const &told = there ? g.copy : g.gpu.device.grid;
            CHECK(good || told.cuda_error == (int32_t)cudaErrorInvalidDevice);
            CHECK(g.copy.n == (good ? 100 : 0) && (!good || fail > 3));
            CHECK(cudaPeekAtLastError() == cudaSuccess);
        }
    }
}

/* Whatever the GPU does not tell, a build of many does without it. Its memory has room for the largest plan. */
static void test_unknown_gpu()
{
    Case const c = {3, 0, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, 0, 0};
    ugrid_desc const d = desc_of(c);
    int const n = ugrid_i_parts_least;
    std::vector<real> const pos = many_points(d, n, MIXED);
    Device<real> d_pos(pos);
    ugrid_cuda gpu = {};
    context = "unknown GPU";
    CHECK_RESULT(ugrid_cuda_reserve(&gpu, &d, n, stream), UGRID_OK);
    for (long question = 1; question <= 2; question++) { /* shared memory, cache */
        unknown_at = question;
        CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        CHECK(unknown_at == 0 && cudaPeekAtLastError() == cudaSuccess);
        CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_OK);
        CHECK(gpu.device.grid.n == n);
    }
    ugrid_i_parts parts = {};
    ugrid_i_bind_parts(&gpu, &parts);
    const ugrid_block &room = gpu.scratch[UGRID_I_PARTS];
    CHECK((char *)(parts.part_of + ugrid_i_bins_max) <= (char *)room.memory + room.bytes);
    ugrid_cuda_free(&gpu);
}

/* ---- graphs and streams ---- */

/* A build and its searches, captured once, replayed with new positions. */
static void test_graph()
{
    std::vector<Case> const cases = all_cases();
    int const n = std::min(n_max / 4, 1000);
    for (size_t k = 0; k < cases.size(); k++) {
        if (!chosen(k, 13 * share)) continue;
        Case const &c = cases[k];
        ugrid_desc d = desc_of(c);
        Device<real> d_pos(mixed_points(d, n, 1));
        Device<int64_t> d_offsets((size_t)n + 1), d_pairs(1);
        Device<int32_t> d_ids((size_t)n * 400), d_counts((size_t)n);
        Grids g;
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t exec = nullptr;
        context = "graph: " + name_of(c);
        d.slots = d.method == UGRID_FIXED ? n * 8 : 0;
        CHECK_RESULT(ugrid_cuda_reserve(&g.gpu, &d, n, stream), UGRID_OK);
        MUST(cudaStreamSynchronize(stream));
        MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_count_pairs(&g.gpu, d.cell, d_pairs.p, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_count_neighbors(&g.gpu, d.cell, 0, d_counts.p, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_neighbors(&g.gpu, d.cell, 0, d_offsets.p, d_ids.p, (int64_t)d_ids.count, stream), UGRID_OK);
        MUST(cudaStreamEndCapture(stream, &graph));
        MUST(cudaGraphInstantiate(&exec, graph, 0));
        for (int frame = 0; frame < 3; frame++) {
            std::vector<real> const pos = mixed_points(d, n, 100 + frame);
            int64_t pairs = -1;
            d_pos.set(pos);
            MUST(cudaGraphLaunch(exec, stream));
            MUST(cudaStreamSynchronize(stream));
            CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_OK);
            CHECK_RESULT(ugrid_build(&g.serial, &d, pos.data(), 0, n), UGRID_OK);
            CHECK_RESULT(ugrid_cuda_download(&g.copy, &g.gpu, stream), UGRID_OK);
            g.copy.pos = pos.data();
            g.copy.stride = sizeof(real) * (size_t)d.dim;
            check_arrays(c, g.serial, g.copy);
            CHECK_RESULT(ugrid_count_pairs(&g.copy, d.cell, &pairs), UGRID_OK);
            CHECK(d_pairs.get()[0] == pairs);
            Lists const want = serial_lists(g.copy, d.cell, 0);
            CHECK(d_offsets.get() == want.offsets);
            Lists got = {d_offsets.get(), d_ids.get()};
            if (got.offsets.back() > (int64_t)d_ids.count || got.offsets != want.offsets) continue;
            sort_rows(&got);
            CHECK(std::equal(want.ids.begin(), want.ids.end(), got.ids.begin()));
        }
        MUST(cudaGraphExecDestroy(exec));
        MUST(cudaGraphDestroy(graph));
    }
}

/* Two grids on two streams, their work interleaved. */
static void test_two_streams()
{
    std::vector<Case> const cases = all_cases();
    cudaStream_t streams[2];
    for (cudaStream_t &s : streams) MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (size_t k = 0; k + 200 < cases.size(); k += 97 * (size_t)share) {
        ugrid_cuda gpu[2] = {};
        ugrid serial[2] = {};
        Device<int64_t> pairs0(1), pairs1(1);
        Device<int64_t> *pairs[2] = {&pairs0, &pairs1};
        Case const two[2] = {cases[k], cases[k + 200]};
        ugrid_desc d[2] = {desc_of(two[0]), desc_of(two[1])};
        std::vector<real> const pos[2] = {mixed_points(d[0], n_max, 1), mixed_points(d[1], n_max / 2, 2)};
        Device<real> pos0(pos[0]), pos1(pos[1]);
        int32_t const n[2] = {n_max, n_max / 2};
        context = "two streams: " + name_of(two[0]) + "; " + name_of(two[1]);
        for (int i = 0; i < 2; i++) d[i].slots = 0;
        for (int i = 0; i < 2; i++) if (d[i].method == UGRID_FIXED) { d[i].method = UGRID_COUNT; d[i].slot_layout = UGRID_SLOTS_BY_COLUMN; }
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < 2; i++) CHECK_RESULT(ugrid_cuda_build(&gpu[i], &d[i], i ? pos1.p : pos0.p, 0, n[i], streams[i]), UGRID_OK);
            for (int i = 0; i < 2; i++) CHECK_RESULT(ugrid_cuda_count_pairs(&gpu[i], d[i].cell, pairs[i]->p, streams[i]), UGRID_OK);
        }
        for (int i = 0; i < 2; i++) {
            int64_t want = -1;
            CHECK_RESULT(ugrid_cuda_check(&gpu[i], streams[i]), UGRID_OK);
            CHECK_RESULT(ugrid_build(&serial[i], &d[i], pos[i].data(), 0, n[i]), UGRID_OK);
            CHECK_RESULT(ugrid_count_pairs(&serial[i], d[i].cell, &want), UGRID_OK);
            CHECK(pairs[i]->get(streams[i])[0] == want);
            ugrid_cuda_free(&gpu[i]);
            ugrid_free(&serial[i]);
        }
    }
    for (cudaStream_t &s : streams) MUST(cudaStreamSynchronize(s));
    for (cudaStream_t &s : streams) MUST(cudaStreamDestroy(s));
}

/* ---- searches with functors ---- */

static void test_functors()
{
    std::vector<Case> const cases = all_cases();
    for (size_t k = 0; k < cases.size(); k++) {
        Case const &c = cases[k];
        bool const strips = c.walk == UGRID_STRIPS && c.method == UGRID_SORT && !c.no_records; /* each path of the templates */
        if (!chosen(k, 3 * share) && !(strips && c.bounds <= 1)) continue;
        ugrid_desc const d = desc_of(c);
        int const n = std::min(n_max / 4, 2000);
        std::vector<real> const pos = mixed_points(d, n, 4);
        Device<real> d_pos(pos);
        Grids g;
        context = "functors: " + name_of(c);
        if (!build(&g, d, pos, d_pos)) continue;
        Device<int32_t> as_i((size_t)n), as_j((size_t)n), wrong(1), sums((size_t)n);
        for (int half = 0; half < 2; half++) {
            Lists const want = serial_lists(g.copy, d.cell, half ? UGRID_HALF : 0);
            std::vector<int32_t> want_i((size_t)n), want_j((size_t)n), want_sum((size_t)n), zero((size_t)n);
            as_i.set(zero);
            as_j.set(zero);
            wrong.set(std::vector<int32_t>(1, 0));
            Note const note = {as_i.p, as_j.p, wrong.p, d.cell};
            CHECK_RESULT(ugrid_cuda_each(&g.gpu, d.cell, half ? UGRID_HALF : 0, note, stream), UGRID_OK);
            for (int32_t i = 0; i < n; i++)
                for (int64_t e = want.offsets[(size_t)i]; e < want.offsets[(size_t)i + 1]; e++) {
                    int32_t const j = want.ids[(size_t)e];
                    want_i[(size_t)i]++;
                    want_j[(size_t)j]++;
                    bool const moved = g.copy.start && d.placement == UGRID_LOOSE;
                    want_sum[(size_t)i] += i * 3 + j * 5 + (moved ? g.copy.inverse[i] - g.copy.inverse[j] : i - j);
                }
            CHECK(as_i.get() == want_i && as_j.get() == want_j && wrong.get()[0] == 0);
            if (half) continue;
            CHECK_RESULT(ugrid_cuda_sum(&g.gpu, d.cell, 0, Weigh(), sums.p, stream), UGRID_OK);
            CHECK(sums.get() == want_sum);
            std::vector<int32_t> by_place((size_t)n);
            CHECK_RESULT(ugrid_gather(&g.copy, want_sum.data(), sizeof(int32_t), by_place.data()), UGRID_OK);
            CHECK_RESULT(ugrid_cuda_sum(&g.gpu, d.cell, UGRID_PLACES, Weigh(), sums.p, stream), UGRID_OK);
            CHECK(sums.get() == by_place);
        }
    }
    ugrid_cuda empty = {};
    CHECK_RESULT(ugrid_cuda_sum(&empty, 1, 0, Weigh(), (int32_t *)nullptr, stream), UGRID_BAD_ARGUMENT);
    Note const note = {nullptr, nullptr, nullptr, 1};
    CHECK_RESULT(ugrid_cuda_each((ugrid_cuda *)nullptr, 1, 0, note, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_each(&empty, 0, 0, note, stream), UGRID_BAD_RADIUS);
}

/* ---- a large one ---- */

/* uniform-100k and uniform-1M have known totals (tests/unit/ugrid/test_ugrid.c). */
static void test_totals()
{
#ifndef CUDA_EMU
    static const struct { int32_t n; int seed; int64_t total; } workloads[] = {{100000, 7, 2866956}, {1000000, 1, 29352150}};
    for (auto w : workloads) {
        std::vector<float> uniform(3 * (size_t)w.n);
        wl_uniform(w.n, (uint64_t)w.seed, uniform.data());
        Device<real> d_pos(std::vector<real>(uniform.begin(), uniform.end()));
        real const radius = (real)wl_radius(w.n, 30);
        for (int method = UGRID_AUTO; method <= UGRID_LIST_PACKED; method++) {
            ugrid_cuda gpu = {};
            ugrid_desc d = {};
            Device<int64_t> d_pairs(1);
            Device<int32_t> d_counts((size_t)w.n);
            int64_t sum = 0;
            context = "totals: n " + std::to_string(w.n) + ", method " + std::to_string(method);
            d.dim = 3;
            d.max[0] = d.max[1] = d.max[2] = 1;
            d.cell = radius;
            d.method = (ugrid_method)method;
            d.slots = 64;
            CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, w.n, stream), UGRID_OK);
            CHECK_RESULT(ugrid_cuda_count_pairs(&gpu, radius, d_pairs.p, stream), UGRID_OK);
            CHECK_RESULT(ugrid_cuda_count_neighbors(&gpu, radius, 0, d_counts.p, stream), UGRID_OK);
            CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_OK);
            for (int32_t count : d_counts.get()) sum += count;
            CHECK(sum == 2 * d_pairs.get()[0]);
            CHECK(sizeof(real) == 8 ? std::llabs(sum - w.total) < 100 : sum == w.total);
            ugrid_cuda_free(&gpu);
        }
    }
#endif
}

/* ------------------------------------------------------------------------------------------------
   Main
   ------------------------------------------------------------------------------------------------ */

static const Test tests[] = {
    {"few", test_few},             {"sparse", test_sparse},         {"product", test_product},       {"crowds", test_crowds},     {"parts", test_parts},     {"rebuild", test_rebuild},
    {"stride", test_stride},       {"fit", test_fit},               {"not finite", test_not_finite}, {"cell full", test_cell_full},
    {"reserve", test_reserve},     {"out of memory", test_out_of_memory}, {"refusals", test_refusals},
    {"growth", test_growth}, {"growth, short of memory", test_growth_short_of_memory}, {"not built", test_not_built}, {"check waits", test_check_waits},
    {"launch errors", test_launch_errors}, {"failing calls", test_failing_calls},
    {"unknown GPU", test_unknown_gpu},
    {"graph", test_graph},         {"two streams", test_two_streams}, {"functors", test_functors}, {"totals", test_totals},
};

int main(int argc, char **argv)
{
    bool const small = getenv("TEST_SMALL") != nullptr;
#ifdef CUDA_EMU
    n_max = 400;
    share = small || emu_options()->blocks > 1 ? 80 : 20; /* blocks take turns: all shared memory is copied at each */
#else
    n_max = small ? 400 : 1000;
    share = small ? 40 : 32; /* within a minute; --share 1 runs every case: many minutes */
#endif
    read_options(argc, argv, {{"--n", &n_max, 8}, {"--share", &share, 1}});
    return run_tests(tests);
}
