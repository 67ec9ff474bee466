/* searches.cu - a part of test_ugrid.cu: one grid on the device, the serial one, and the
   downloaded one: arrays, walks and searches against each other.
   SPDX-License-Identifier: MIT OR Unlicense */

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

/* Records field by field: in a double build they end in 4 bytes of padding. */
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
    if (g.start)
        for (int32_t k = g.start[cell]; k < g.start[cell + 1]; k++) list.push_back(g.order[k]);
    if (g.count) for (int32_t k = 0; k < g.count[cell]; k++)
        list.push_back(g.slot[g.desc.slot_layout == UGRID_SLOTS_BY_ROW ? cell * g.desc.slots + k :
            k * g.cell_count + cell]);
    if (g.head)
        for (int32_t e = g.head[cell]; e >= 0; e = g.next ? g.next[e] : g.record[e].link)
            list.push_back(e);
    return list;
}

static void check_arrays(const Case &c, const ugrid &serial, const ugrid &copy)
{
    size_t const n = (size_t)serial.n, entries = (size_t)serial.entries,
        count = (size_t)serial.cell_count;
    size_t const places = c.size > 0 ? entries : n;
    CHECK(copy.n == serial.n && copy.entries == serial.entries && copy.outside == serial.outside &&
        copy.cell_count == serial.cell_count && copy.spans == serial.spans &&
        copy.invalid == serial.invalid);
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
    CHECK(same_array(copy.order, serial.order, places));
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
    CHECK(g->gpu.device.grid.bad_id == -1 && g->gpu.device.grid.n == n &&
        g->gpu.device.grid.desc.method == d.method);
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
__global__ void walk_kernel(const ugrid_device device, int kind, const real *points, int dim,
    int32_t rows, real radius, int32_t room, int32_t *counts, int32_t *names)
{
    int32_t const row = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= rows) return;
    int32_t count = 0;
    ugrid_near near = kind == NEAR_WITHIN ? ugrid_near_within(&device, points + row * dim, radius)
                    : kind == NEAR_HALF ? ugrid_near_half(&device, row, radius) :
                        ugrid_near_place(&device, row, radius);
    if (kind == NEAR_RANGES) {
        while (ugrid_next_range(&near))
            for (int32_t k = near.begin; k < near.end; k++, count++)
                if (count < room) names[row * room + count] = k;
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
                    : kind == NEAR_HALF ? ugrid_near_half(&g, row, radius) :
                        ugrid_near_place(&g, row, radius);
    if (kind == NEAR_RANGES) {
        while (ugrid_next_range(&near))
            for (int32_t k = near.begin; k < near.end; k++) names.push_back(k);
    } else {
        while (ugrid_next(&near)) names.push_back(near.id);
    }
    return names;
}

static void check_walks(const Grids &g, const std::vector<real> &points,
    const Device<real> &d_points, real radius)
{
    int32_t const room = 64, dim = g.copy.desc.dim, m = (int32_t)(points.size() / (size_t)dim);
    for (int kind = 0; kind < WALKS; kind++) {
        int32_t const rows = kind == NEAR_WITHIN ? m : g.copy.n;
        Device<int32_t> d_counts((size_t)rows), d_names((size_t)rows * room);
        launch(rows, walk_kernel, g.gpu.device, kind, d_points.p, dim, rows, radius, room,
            d_counts.p, d_names.p);
        std::vector<int32_t> const counts = d_counts.get(), names = d_names.get();
        for (int32_t row = 0; row < rows; row++) {
            std::vector<int32_t> const want =
                walk(g.copy, kind, points.data() + (kind == NEAR_WITHIN ? row * dim : 0), row,
                radius);
            CHECK(counts[(size_t)row] == (int32_t)want.size());
            CHECK(std::equal(want.begin(),
                want.begin() + std::min<ptrdiff_t>(room, (ptrdiff_t)want.size()),
                names.begin() + row * room));
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

/* The lists as the serial search makes them from the same arrays: rows have a defined order, and
   CUDA has the same. */
static Lists serial_rows(const ugrid &g, real radius, int flags)
{
    Lists l;
    int64_t needed = 0;
    l.offsets.resize((size_t)g.n + 1);
    ugrid_neighbors(&g, radius, flags, l.offsets.data(), nullptr, 0, &needed);
    l.ids.resize((size_t)needed);
    CHECK_RESULT(ugrid_neighbors(&g, radius, flags, l.offsets.data(), l.ids.data(), needed,
        &needed), UGRID_OK);
    return l;
}

static Lists serial_lists(const ugrid &g, real radius, int flags)
{
    Lists l = serial_rows(g, radius, flags);
    sort_rows(&l);
    return l;
}

/* Exactly full; then one short, where a guard behind the list must survive and no row that fits may
   differ. */
static void check_neighbors(Grids &g, real radius, int flags)
{
    Lists const want = serial_rows(g.copy, radius, flags);
    size_t const needed = want.ids.size();
    Lists got;
    Device<int64_t> d_offsets((size_t)g.copy.n + 1);
    Device<int32_t> d_ids(needed + 1);
    for (int missing = 0; missing < 2 && (int)needed >= missing; missing++) {
        d_ids.set(std::vector<int32_t>(needed + 1, -7));
        CHECK_RESULT(ugrid_cuda_neighbors(&g.gpu, radius, flags, d_offsets.p, d_ids.p,
            (int64_t)needed - missing, stream), UGRID_OK);
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
    /* count only */
    CHECK_RESULT(ugrid_cuda_neighbors(&g.gpu, radius, flags, d_offsets.p, nullptr, 0, stream),
        UGRID_OK);
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

static void check_neighbors_at(Grids &g, const std::vector<real> &points,
    const Device<real> &d_points, real radius)
{
    int32_t const m = (int32_t)(points.size() / (size_t)g.copy.desc.dim);
    int64_t needed = -1;
    Lists want, got;
    want.offsets.resize((size_t)m + 1);
    ugrid_neighbors_at(&g.copy, points.data(), 0, m, radius, want.offsets.data(), nullptr, 0,
        &needed);
    want.ids.resize((size_t)needed);
    CHECK_RESULT(ugrid_neighbors_at(&g.copy, points.data(), 0, m, radius, want.offsets.data(),
        want.ids.data(), needed, &needed), UGRID_OK);
    Device<int64_t> d_offsets((size_t)m + 1);
    Device<int32_t> d_ids((size_t)needed + 1);
    CHECK_RESULT(ugrid_cuda_neighbors_at(&g.gpu, d_points.p, 0, m, radius, d_offsets.p, d_ids.p,
        needed, stream), UGRID_OK);
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
    CHECK_RESULT(ugrid_cuda_neighbors_at(&g.gpu, d_points.p, 0, m, radius, d_offsets.p, d_ids.p,
        needed - 1, stream), UGRID_OK);
    CHECK(d_offsets.get() == want.offsets && d_ids.get()[(size_t)needed - 1] == -7);
}

/* Small whole numbers: sums of them have no rounding, in whatever order they are added. */
static void check_sums(Grids &g, int width)
{
    std::vector<real> values((size_t)g.copy.n * (size_t)width),
        want((size_t)g.copy.cell_count * (size_t)width), by_place(values.size());
    for (size_t k = 0; k < values.size(); k++) values[k] = (real)(k * 7 % 101) - 50;
    CHECK_RESULT(ugrid_cell_sums(&g.copy, values.data(), width, want.data()), UGRID_OK);
    CHECK_RESULT(ugrid_gather(&g.copy, values.data(), sizeof(real) * (size_t)width,
        by_place.data()), UGRID_OK);
    Device<real> d_values(values), d_by_place(by_place), d_sums(want.size());
    for (int flags = 0; flags < 8; flags++) {
        if (flags & UGRID_HALF) continue;
        CHECK_RESULT(ugrid_cuda_cell_sums(&g.gpu, flags & UGRID_PLACES ? d_by_place.p : d_values.p,
            width, flags, d_sums.p, stream), UGRID_OK);
        CHECK(d_sums.get() == want);
    }
}

/* Elements of an odd size, of whole words, of 16 bytes, and at an odd address. */
static void check_moves(Grids &g)
{
    static const struct { size_t bytes, shift; } elements[] = {{1, 0}, {3, 0}, {4, 0}, {12, 0},
        {16, 0}, {32, 0}, {16, 1}, {8, 4}};
    for (auto e : elements) {
        size_t const total = (size_t)g.copy.n * e.bytes;
        std::vector<uint8_t> src(total + e.shift), want(total), got;
        for (size_t k = 0; k < src.size(); k++) src[k] = (uint8_t)(k * 37 + k / 256);
        CHECK_RESULT(ugrid_gather(&g.copy, src.data() + e.shift, e.bytes, want.data()), UGRID_OK);
        Device<uint8_t> d_src(src), d_dst(total + 1), d_back(total + e.shift);
        CHECK_RESULT(ugrid_cuda_gather(&g.gpu, d_src.p + e.shift, e.bytes, d_dst.p, stream),
            UGRID_OK);
        got = d_dst.get();
        CHECK(std::equal(want.begin(), want.end(), got.begin()) && got[total] == 0xA5);
        CHECK_RESULT(ugrid_cuda_scatter(&g.gpu, d_dst.p, e.bytes, d_back.p + e.shift, stream),
            UGRID_OK);
        got = d_back.get();
        CHECK(std::equal(src.begin() + (ptrdiff_t)e.shift, src.end(),
            got.begin() + (ptrdiff_t)e.shift));
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
            else
                points.push_back(d.min[a] +
                    length * ((real)(q * (7 + 4 * a) % 80) / 40 - (real)0.5));
        }
    return points;
}
