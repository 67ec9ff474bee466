/* both.cu - a part of test_nlist.cu: one list on the device, the serial one, and the downloaded
   one, with grids and trees for both; rows, arrays, history and events against each other.
   SPDX-License-Identifier: MIT OR Unlicense */

struct Both {
    nlist_cuda gpu = {};
    nlist serial = {}, copy = {};
    ugrid grid = {};
    ugrid_cuda grid_gpu = {};
    lbvh tree = {};
    lbvh_cuda tree_gpu = {};
    Both() = default;
    Both(const Both &) = delete;
    Both &operator=(const Both &) = delete;
    ~Both()
    {
        nlist_cuda_free(&gpu);
        nlist_free(&serial);
        nlist_free(&copy);
        ugrid_free(&grid);
        ugrid_cuda_free(&grid_gpu);
        lbvh_free(&tree);
        lbvh_cuda_free(&tree_gpu);
    }
};

/* The serial list; what a grid or tree is built from is never refused here. */
static nlist_result build_serial(Both *b, Source source, const nlist_desc &d, const Input &in)
{
    switch (source) {
    case GRID: {
        ugrid_desc cells = in.cells;
        CHECK(ugrid_build(&b->grid, &cells, in.pos.data(), in.stride, in.n) == UGRID_OK);
        return nlist_build_ugrid(&b->serial, &d, &b->grid, in.pos.data(), in.stride, in.n);
    }
    case TREE:
        CHECK(lbvh_build(&b->tree, &in.boxes, in.elements.data(), 0, in.n) == LBVH_OK);
        return nlist_build_lbvh(&b->serial, &d, &b->tree, in.pos.data(), in.stride, in.n);
    case PAIRS: return nlist_build_pairs(&b->serial, &d, in.pairs.data(),
        (int64_t)in.pairs.size() / 2, in.n);
    default: return nlist_build_brute(&b->serial, &d, in.pos.data(), in.stride, in.n);
    }
}

/* The grid or the tree on the device. */
static void build_source(Both *b, Source source, const Input &in, const OnDevice &on_device)
{
    if (source == GRID)
        CHECK(ugrid_cuda_build(&b->grid_gpu, &in.cells, on_device.pos.p, in.stride, in.n, stream) ==
            UGRID_OK);
    if (source == TREE)
        CHECK(lbvh_cuda_build(&b->tree_gpu, &in.boxes, on_device.elements.p, 0, in.n, stream) ==
            LBVH_OK);
}

static nlist_result build_list(Both *b, Source source, const nlist_desc &d, const Input &in,
    const OnDevice &on_device)
{
    switch (source) {
    case GRID: return nlist_cuda_build_ugrid(&b->gpu, &d, &b->grid_gpu, on_device.pos.p, in.stride,
        in.n, stream);
    case TREE: return nlist_cuda_build_lbvh(&b->gpu, &d, &b->tree_gpu, on_device.pos.p, in.stride,
        in.n, stream);
    case PAIRS: return nlist_cuda_build_pairs(&b->gpu, &d, on_device.pairs.p,
        (int64_t)in.pairs.size() / 2, in.n, stream);
    default: return nlist_cuda_build_brute(&b->gpu, &d, on_device.pos.p, in.stride, in.n, stream);
    }
}

static nlist_result build_gpu(Both *b, Source source, const nlist_desc &d, const Input &in,
    const OnDevice &on_device)
{
    build_source(b, source, in, on_device);
    return build_list(b, source, d, in, on_device);
}

static const nlist_rows &rows_of(const nlist &list) { return list.rows[list.current]; }

/* ---- comparing ---- */

/* Everything as it lies in memory. */
static void check_arrays(const nlist &serial, const nlist &copy)
{
    const nlist_rows &a = rows_of(serial), &b = rows_of(copy);
    size_t const n = (size_t)a.n, slots = n * (size_t)a.width, entries = (size_t)a.entries;
    CHECK(a.n == b.n && a.width == b.width && a.entries == b.entries &&
        a.touched_count == b.touched_count);
    if (a.n != b.n || a.width != b.width || a.entries != b.entries ||
        a.touched_count != b.touched_count)
        return;
    CHECK(same_bits(a.count, b.count, n));
    CHECK(same_bits(a.slot, b.slot, slots));
    if (a.start && serial.n) CHECK(same_bits(a.start, b.start, n + 1));
    CHECK(same_bits(a.partner, b.partner, entries));
    CHECK((a.own == nullptr) == (b.own == nullptr) || entries == 0);
    if (a.own) CHECK(same_bits(a.own, b.own, entries) && same_bits(a.link, b.link, entries));
    if (a.head) CHECK(same_bits(a.head, b.head, n));
    if (a.touched) CHECK(same_bits(a.touched, b.touched, (size_t)a.touched_count));
    CHECK((a.uid == nullptr) == (b.uid == nullptr) || serial.n == 0);
    if (a.uid) CHECK(same_bits(a.uid, b.uid, (size_t)serial.n));
}

/* One entry as a comparison sees it; entries of one row are sorted by id where they have no
   order. */
struct Entry {
    int32_t id;
    int64_t entry;
    const void *history;
};

static std::vector<Entry> row_of(const nlist &list, int32_t i, bool sorted)
{
    std::vector<Entry> row;
    nlist_each e = nlist_of(&list, i);
    while (nlist_next(&e)) row.push_back({e.id, e.entry, e.history});
    if (sorted)
        std::sort(row.begin(), row.end(),
            [](const Entry &a, const Entry &b) { return a.id < b.id; });
    return row;
}

/* Rows and the history of their entries, wherever they lie. */
static void check_rows(const nlist &serial, const nlist &copy, bool ordered, bool entries)
{
    size_t const bytes = (size_t)serial.desc.history;
    bool ids = true, same_entries = true, history = true;
    ordered = ordered && (!copy.desc.half || copy.desc.deterministic);
    CHECK(copy.n == serial.n && copy.row_count == serial.row_count &&
        copy.total == serial.total && copy.desc.history == serial.desc.history);
    for (int32_t i = 0; i < serial.row_count; i++) {
        std::vector<Entry> const a = row_of(serial, i, !ordered), b = row_of(copy, i, !ordered);
        ids = ids && a.size() == b.size();
        for (size_t k = 0; ids && k < a.size(); k++) {
            ids = a[k].id == b[k].id;
            same_entries = same_entries && a[k].entry == b[k].entry;
            history = history && same_bits((const char *)a[k].history, (const char *)b[k].history,
                bytes);
        }
        if (rows_of(serial).count && rows_of(copy).count)
            ids = ids && rows_of(serial).count[i] == rows_of(copy).count[i];
    }
    CHECK(ids && "rows have the same partners");
    CHECK(history && "entries have the same history");
    if (entries) CHECK(same_entries);
}

static std::vector<nlist_event> events_of(const nlist &list, int kind)
{
    const nlist_event *const first = list.event[kind];
    std::vector<nlist_event> events;
    if (first) events.assign(first, first + list.event_count[kind]);
    std::sort(events.begin(), events.end(),
              [](const nlist_event &a, const nlist_event &b) { return a.i != b.i ? a.i < b.i :
                  a.j < b.j; });
    return events;
}

static bool layouts_change = false; /* from build to build */

/* Events: in order and with their entries, or only their pairs. */
static void check_events(const nlist &serial, const nlist &copy, bool exact)
{
    for (int kind = 0; kind < NLIST_EVENT_KINDS; kind++) {
        CHECK(copy.event_count[kind] == serial.event_count[kind]);
        if (copy.event_count[kind] != serial.event_count[kind]) return;
        for (int64_t e = 0; exact && e < serial.event_count[kind]; e++) {
            const nlist_event &a = serial.event[kind][e], &b = copy.event[kind][e];
            /* entries that ended are those of the rows before: after a change of layout these may
               have another width here and there */
            CHECK(a.i == b.i && a.j == b.j &&
                (a.entry == b.entry || (layouts_change && kind == NLIST_ENDED)));
        }
        std::vector<nlist_event> const a = events_of(serial, kind), b = events_of(copy, kind);
        for (size_t e = 0; e < a.size(); e++) CHECK(a[e].i == b[e].i && a[e].j == b[e].j);
    }
}

namespace {

/* What a kernel of the caller sees of row i: its length, and a number that depends on all entries
   and their order. */
struct Seen {
    uint32_t count, ids;
};

__global__ void see_rows(__grid_constant__ const nlist_device device, int32_t n, Seen *seen)
{
    int32_t const i = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n) return;
    Seen s = {0, 0};
    nlist_each e = nlist_of(&device.list, i);
    while (nlist_next(&e)) {
        s.count++;
        s.ids = s.ids * 31 + (uint32_t)e.id;
        if (nlist_find(&device.list, i, e.id) != e.entry) s.ids += 1000003;
    }
    seen[i] = s;
}

} /* namespace */

static void check_seen(Both *b)
{
    int32_t const n = b->copy.n;
    Device<Seen> d_seen((size_t)n);
    bool same = true;
    launch(n, see_rows, b->gpu.device, n, d_seen.p);
    std::vector<Seen> const seen = d_seen.get();
    for (int32_t i = 0; i < n; i++) {
        uint32_t ids = 0;
        std::vector<Entry> const row = row_of(b->copy, i, false);
        for (const Entry &e : row) ids = ids * 31 + (uint32_t)e.id;
        same = same && seen[(size_t)i].count == row.size() && seen[(size_t)i].ids == ids;
    }
    CHECK(same && "a kernel meets the same rows");
}

/* Downloads the device's list and compares it with the serial one. */
static void compare(Both *b, bool deterministic, bool ordered)
{
    CHECK_RESULT(nlist_cuda_download(&b->copy, &b->gpu, stream), NLIST_OK);
    const nlist &serial = b->serial, &copy = b->copy;
    CHECK(copy.n == serial.n && copy.keys == serial.keys && copy.d_current == nullptr);
    CHECK_RESULT(nlist_validate(&copy), NLIST_OK);
    if (copy.n != serial.n) return;
    bool const shape = rows_of(serial).width == rows_of(copy).width;
    if (deterministic && shape) check_arrays(serial, copy);
    check_rows(serial, copy, ordered, deterministic && shape);
    check_seen(b);
    const real *const were = rows_of(serial).reference, *const are = rows_of(copy).reference;
    CHECK((were == nullptr) == (are == nullptr) || serial.n == 0);
    if (were) CHECK(same_bits(were, are, (size_t)serial.n * (size_t)serial.desc.dim));
    if (serial.desc.events) check_events(serial, copy, deterministic && shape);
}

/* What nlist_cuda_check has fetched. */
static void check_fetched(const Both &b)
{
    const nlist &serial = b.serial, &list = b.gpu.device.list;
    CHECK(list.n == serial.n && list.row_count == serial.row_count &&
        list.total == serial.total && list.bad_id == -1 && list.cuda_error == 0);
    for (int kind = 0; kind < NLIST_EVENT_KINDS && serial.desc.events; kind++)
        CHECK(list.event_count[kind] == serial.event_count[kind]);
    if (rows_of(serial).width != rows_of(list).width) return;
    CHECK(rows_of(list).entries == rows_of(serial).entries);
    if (rows_of(serial).touched)
        CHECK(rows_of(list).touched_count == rows_of(serial).touched_count);
}

/* Room for exactly what the serial list has: the device must not need more. */
static void fit_exactly(const nlist &serial, nlist_desc *d)
{
    d->width = rows_of(serial).width;
    d->capacity = std::max<int64_t>(rows_of(serial).entries, 1);
    d->grow = 0;
}

/* One build on both sides from the same particles. */
static bool build(Both *b, const Case &c, const Input &in, const OnDevice &on_device)
{
    nlist_desc host = host_desc(in), device = device_desc(in, on_device);
    host.grow = 1;
    CHECK_RESULT(build_serial(b, c.source, host, in), NLIST_OK);
    fit_exactly(b->serial, &device);
    CHECK_RESULT(build_gpu(b, c.source, device, in, on_device), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&b->gpu, stream), NLIST_OK);
    check_fetched(*b);
    compare(b, c.deterministic != 0, in.ordered);
    return b->serial.n == in.n && b->copy.n == in.n;
}
