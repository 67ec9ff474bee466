/* test_nlist.cu - tests of the CUDA half of nlist.h, against the serial half.
   SPDX-License-Identifier: MIT OR Unlicense

       nvcc -std=c++17 -arch=native -O3 -I. tests/cuda/nlist/test_nlist.cu -o test_nlist && ./test_nlist
       ./test_nlist --n 3000 --share 4 --only history       most particles of a case; every 4th case; tests whose names hold a word

   The same file runs on the CPU under tests/emu, with fewer particles. Nothing but CUDA and the C++ library is needed.

   What is compared, and how exactly:
   - With desc.deterministic every array of the list against the serial list, bit for bit; without it rows as sequences, where the
     source has an order, else as sets; history always by row and partner.
   - History also against a dictionary that the test keeps by the names of the particles, over sorting, inserting and deleting.
   - Sums against sums in double, within rounding; where they are defined, against the serial sums, bit for bit.
   The serial half is held against brute force in its own tests. */

#define UGRID_IMPLEMENTATION
#define UGRID_CUDA
#include "ugrid.h"
#define LBVH_IMPLEMENTATION
#define LBVH_CUDA
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#define NLIST_CUDA
#include "nlist.h"
#include "../../common/nlist_oracle.h"
#include "../testing.h"

/* ------------------------------------------------------------------------------------------------
   Cases: sources x layouts x half or full x dimensions x periods x order x inputs
   ------------------------------------------------------------------------------------------------ */

enum Source { BRUTE, GRID, TREE, PAIRS, SOURCES };

enum Shape { UNIFORM, CLUSTERED, LATTICE, EQUAL, OUTSIDE, TWO_SIZES, SHAPES };

struct Case {
    Source source;
    nlist_layout layout;
    int dim, half, deterministic;
    int periodic;       /* 0: no axis, 1: the second, 2: all */
    Shape shape;
    int radii, masked, exclusive, skin, history, events, padded; /* history: bytes */
    int width;          /* slots, 0: default */
    int variant;        /* which of the source's own options */
    int n;
};

static const size_t case_count = SOURCES * 4 * 2 * 2 * 3 * 2 * SHAPES;

/* Number k of all combinations; what is not multiplied out comes from a number scattered by k. */
static Case case_of(size_t k)
{
    static const int bytes[] = {0, 4, 0, 7, 16, 1, 12, 0}, widths[] = {0, 1, 2, 3, 4, 8, 16, 32};
    uint32_t const s = scattered(k), t = scattered(k + 77777);
    Case c = {};
    c.layout = (nlist_layout)(k % 4), k /= 4;
    c.source = (Source)(k % SOURCES), k /= SOURCES;
    c.half = (int)(k % 2), k /= 2;
    c.deterministic = (int)(k % 2), k /= 2;
    c.dim = 2 + (int)(k % 2), k /= 2;
    c.periodic = (int)(k % 3), k /= 3;
    c.shape = (Shape)(k % SHAPES);
    c.radii = c.shape == TWO_SIZES || s % 3 == 0;
    c.masked = s / 3 % 4 == 0;
    c.exclusive = s / 12 % 3 == 0;
    c.skin = s / 36 % 3 == 0;
    c.history = bytes[s / 108 % 8];
    c.events = s / 864 % 3 == 0;
    c.padded = s / 2592 % 3 == 0;
    c.width = widths[t % 8];
    c.variant = (int)(t / 8 % 60);
    return c;
}

static const char *const layouts[] = {"COMPACT", "STATIC", "DYNAMIC", "HYBRID"};

static std::string name_of(const Case &c)
{
    static const char *const sources[] = {"brute", "grid", "tree", "pairs"};
    static const char *const shapes[] = {"uniform", "clustered", "lattice", "all equal", "some outside", "two sizes"};
    char text[300];
    snprintf(text, sizeof text,
             "n %d, %s, %s, %dD, %s, %s, %s, periodic %d, radii %d, masks %d, exclusions %d, skin %d, history %d, events %d, "
             "padded %d, width %d, variant %d",
             c.n, sources[c.source], layouts[c.layout], c.dim, c.half ? "half" : "full",
             c.deterministic ? "deterministic" : "any order", shapes[c.shape], c.periodic, c.radii, c.masked, c.exclusive, c.skin,
             c.history, c.events, c.padded, c.width, c.variant);
    return text;
}

/* ---- where the particles are ---- */

static const double box_low = 0.25;
static const double box_length[3] = {1.5, 1.25, 1.0};

static double place_of(Shape shape, int i, int axis, int rest, wl_random *r)
{
    double const u = wl_u(r), v = wl_u(r), length = box_length[axis];
    switch (shape) {
    case CLUSTERED: return box_low + length * ((i * (3 + axis) % 5 + 0.5) / 5 + 0.15 * (u - v));
    case LATTICE: return box_low + 0.125 * rest;
    case EQUAL: return 0.75;
    case OUTSIDE: return box_low + length * (1.6 * u - 0.3);
    default: return box_low + length * u;
    }
}

static std::vector<real> points_of(const Case &c, int n, wl_random *r)
{
    std::vector<real> points;
    for (int i = 0; i < n; i++)
        for (int a = 0, rest = i; a < c.dim; a++) {
            int const edge = (int)(box_length[a] * 8);
            points.push_back((real)place_of(c.shape, i, a, rest % edge, r));
            rest /= edge;
        }
    return points;
}

/* A reach of a few neighbours; on a lattice the neighbours are exactly at the rim. */
static double radius_of(const Case &c)
{
    double const factors[] = {0.7, 1.3, 1.0, 1.6};
    double volume = 1;
    if (c.shape == LATTICE) return 0.125;
    for (int a = 0; a < c.dim; a++) volume *= box_length[a];
    return std::min(0.2, factors[c.variant % 4] * std::pow(volume / std::max(c.n, 1), 1.0 / c.dim));
}

/* ---- what the caller has of them ---- */

struct Input {
    int n, dim;
    size_t stride;              /* bytes, 0: tight */
    std::vector<real> pos, radii, elements; /* elements: of the tree */
    std::vector<uint32_t> masks;
    std::vector<int64_t> exclude_start;
    std::vector<int32_t> exclude, pairs;
    nlist_desc desc;            /* without pointers */
    ugrid_desc cells;
    lbvh_desc boxes;
    bool ordered;               /* the source has an order on the device */
};

/* Three more numbers after each point, which nobody may read. */
static std::vector<real> padded(const std::vector<real> &points, int dim)
{
    std::vector<real> wide;
    for (size_t k = 0; k < points.size(); k++) {
        wide.push_back(points[k]);
        if ((k + 1) % (size_t)dim == 0) wide.insert(wide.end(), 3, not_a_number);
    }
    return wide;
}

static const real *point_of(const Input &in, int i)
{
    size_t const step = in.stride ? in.stride / sizeof(real) : (size_t)in.dim;
    return &in.pos[(size_t)i * step];
}

static void give_radii(const Case &c, wl_random *r, Input *in)
{
    double const most = c.shape == TWO_SIZES ? 0.06 : 0.25 * radius_of(c);
    for (int i = 0; i < c.n; i++) {
        double const u = wl_u(r);
        in->radii.push_back((real)(c.shape == TWO_SIZES && i % 16 != 3 ? 0.1 * u * most : std::min(u * most, 0.06)));
    }
    if (c.shape == TWO_SIZES || c.variant % 5 == 2) in->desc.radius = 0;
}

/* Some others for each, named in one of the two rows, in no order, and some twice. */
static void give_exclusions(const Case &c, wl_random *r, Input *in)
{
    in->exclude_start.push_back(0);
    for (int i = 0; i < c.n; i++) {
        int const m = (int)wl_below(r, 5) * (i % 3);
        for (int k = 0; k < m; k++)
            in->exclude.push_back(k % 2 ? (i + k) % c.n : (int32_t)wl_below(r, (uint32_t)c.n));
        in->exclude_start.push_back((int64_t)in->exclude.size());
    }
}

/* Pairs of neighbours by the distance that nlist.h itself takes; shuffled, turned round, and some repeated. */
static void give_pairs(const Case &c, wl_random *r, Input *in)
{
    std::vector<std::pair<int32_t, int32_t>> found;
    double const reach = std::max(0.1, radius_of(c));
    for (int32_t i = 0; i < c.n; i++)
        for (int32_t j = 0; j < i; j++) {
            double square = 0;
            for (int a = 0; a < c.dim; a++) square += std::pow((double)point_of(*in, i)[a] - (double)point_of(*in, j)[a], 2);
            if (square > reach * reach) continue;
            for (uint32_t copies = 1 + (wl_below(r, 4) == 0); copies > 0; copies--)
                found.push_back(wl_below(r, 2) ? std::make_pair(i, j) : std::make_pair(j, i));
        }
    for (size_t k = found.size(); k > 1; k--) std::swap(found[k - 1], found[wl_below(r, (uint32_t)k)]);
    for (auto p : found) in->pairs.push_back(p.first), in->pairs.push_back(p.second);
}

static void give_cells(const Case &c, double reach, Input *in)
{
    static const ugrid_method methods[] = {UGRID_SORT, UGRID_COUNT, UGRID_FIXED, UGRID_LIST, UGRID_LIST_PACKED};
    ugrid_desc *const d = &in->cells;
    d->dim = c.dim;
    for (int a = 0; a < c.dim; a++) {
        d->min[a] = in->desc.min[a];
        d->max[a] = in->desc.max[a];
        d->periodic[a] = in->desc.periodic[a];
    }
    d->cell = (real)(reach * (c.variant % 3 == 1 ? 0.6 : 1.01));
    d->method = methods[c.variant / 3 % 5];
    d->slots = 500;
    d->unbounded = c.periodic == 0 && c.variant % 7 == 3;
    if (c.variant % 4 == 2 && !d->unbounded) d->cell_order = UGRID_MORTON;
    d->deterministic = c.deterministic && d->method != UGRID_SORT;
    in->ordered = d->deterministic || d->method == UGRID_SORT;
}

/* The tree over points, boxes around them, or spheres; on request from where the particles were a little before. */
static void give_boxes(const Case &c, wl_random *r, Input *in)
{
    bool const spheres = c.radii && c.variant % 2, stale = c.variant % 3 == 1;
    lbvh_desc *const d = &in->boxes;
    d->dim = c.dim;
    d->kind = spheres ? LBVH_SPHERES : LBVH_POINTS;
    if (!spheres && c.variant % 5 == 1) d->radius = (real)0.03;
    if (c.variant % 4 == 3) d->builder = LBVH_SPLIT;
    for (int i = 0; i < c.n; i++) {
        for (int a = 0; a < c.dim; a++) in->elements.push_back(point_of(*in, i)[a] + (stale ? (real)(0.01 * wl_u(r)) : 0));
        if (spheres) in->elements.push_back(in->radii[(size_t)i]);
    }
}

/* Everything that follows from the case and from where the particles are. */
static Input input_at(const Case &c, const std::vector<real> &points, wl_random *r)
{
    Input in = {};
    nlist_desc *const d = &in.desc;
    in.n = c.n;
    in.dim = c.dim;
    in.ordered = true;
    in.pos = c.padded ? padded(points, c.dim) : points;
    in.stride = c.padded ? ((size_t)c.dim + 3) * sizeof(real) : 0;
    d->dim = c.dim;
    d->radius = (real)radius_of(c);
    d->skin = c.skin && c.source != PAIRS ? (real)0.03125 : 0;
    d->layout = c.layout;
    d->width = c.width;
    d->half = c.half;
    d->history = c.history;
    d->events = c.events;
    d->deterministic = c.deterministic;
    for (int a = 0; a < c.dim; a++) {
        d->min[a] = (real)box_low;
        d->max[a] = (real)(box_low + box_length[a]);
        d->periodic[a] = c.periodic == 2 || (c.periodic == 1 && a == 1);
    }
    if (c.radii) give_radii(c, r, &in);
    for (int i = 0; c.masked && i < c.n; i++) in.masks.push_back(i % 7 == 3 ? 0 : 1u << wl_below(r, 32) | 3u << i % 5);
    if (c.exclusive) give_exclusions(c, r, &in);
    if (c.source == PAIRS) give_pairs(c, r, &in);
    if (c.source == TREE) give_boxes(c, r, &in);
    if (c.source == GRID) give_cells(c, (double)d->radius + (double)d->skin + (c.radii ? 0.12 : 0), &in);
    return in;
}

static Input input_of(const Case &c, int seed)
{
    wl_random r = wl_seed((uint64_t)seed);
    std::vector<real> const points = points_of(c, c.n, &r);
    return input_at(c, points, &r);
}

/* ---- the same on the device ---- */

struct OnDevice {
    Device<real> pos, radii, elements;
    Device<uint32_t> masks;
    Device<int64_t> exclude_start;
    Device<int32_t> exclude, pairs;
    explicit OnDevice(const Input &in)
        : pos(in.pos), radii(in.radii), elements(in.elements), masks(in.masks), exclude_start(in.exclude_start),
          exclude(in.exclude), pairs(in.pairs)
    {
    }
};

static nlist_desc host_desc(const Input &in)
{
    nlist_desc d = in.desc;
    d.radii = in.radii.empty() ? nullptr : in.radii.data();
    d.masks = in.masks.empty() ? nullptr : in.masks.data();
    d.exclude_start = in.exclude.empty() ? nullptr : in.exclude_start.data();
    d.exclude = in.exclude.empty() ? nullptr : in.exclude.data();
    return d;
}

static nlist_desc device_desc(const Input &in, const OnDevice &on_device)
{
    nlist_desc d = in.desc;
    d.radii = in.radii.empty() ? nullptr : on_device.radii.p;
    d.masks = in.masks.empty() ? nullptr : on_device.masks.p;
    d.exclude_start = in.exclude.empty() ? nullptr : on_device.exclude_start.p;
    d.exclude = in.exclude.empty() ? nullptr : on_device.exclude.p;
    return d;
}

/* ------------------------------------------------------------------------------------------------
   Both sides: a list on the device, the serial one, the device's one downloaded; grids and trees for both
   ------------------------------------------------------------------------------------------------ */

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
    case PAIRS: return nlist_build_pairs(&b->serial, &d, in.pairs.data(), (int64_t)in.pairs.size() / 2, in.n);
    default: return nlist_build_brute(&b->serial, &d, in.pos.data(), in.stride, in.n);
    }
}

/* The grid or the tree on the device. */
static void build_source(Both *b, Source source, const Input &in, const OnDevice &on_device)
{
    if (source == GRID)
        CHECK(ugrid_cuda_build(&b->grid_gpu, &in.cells, on_device.pos.p, in.stride, in.n, stream) == UGRID_OK);
    if (source == TREE) CHECK(lbvh_cuda_build(&b->tree_gpu, &in.boxes, on_device.elements.p, 0, in.n, stream) == LBVH_OK);
}

static nlist_result build_list(Both *b, Source source, const nlist_desc &d, const Input &in, const OnDevice &on_device)
{
    switch (source) {
    case GRID: return nlist_cuda_build_ugrid(&b->gpu, &d, &b->grid_gpu, on_device.pos.p, in.stride, in.n, stream);
    case TREE: return nlist_cuda_build_lbvh(&b->gpu, &d, &b->tree_gpu, on_device.pos.p, in.stride, in.n, stream);
    case PAIRS: return nlist_cuda_build_pairs(&b->gpu, &d, on_device.pairs.p, (int64_t)in.pairs.size() / 2, in.n, stream);
    default: return nlist_cuda_build_brute(&b->gpu, &d, on_device.pos.p, in.stride, in.n, stream);
    }
}

static nlist_result build_gpu(Both *b, Source source, const nlist_desc &d, const Input &in, const OnDevice &on_device)
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
    CHECK(a.n == b.n && a.width == b.width && a.entries == b.entries && a.touched_count == b.touched_count);
    if (a.n != b.n || a.width != b.width || a.entries != b.entries || a.touched_count != b.touched_count) return;
    CHECK(same_bits(a.count, b.count, n));
    CHECK(same_bits(a.slot, b.slot, slots));
    if (a.start && n) CHECK(same_bits(a.start, b.start, n + 1));
    CHECK(same_bits(a.partner, b.partner, entries));
    CHECK((a.own == nullptr) == (b.own == nullptr) || entries == 0);
    if (a.own) CHECK(same_bits(a.own, b.own, entries) && same_bits(a.link, b.link, entries));
    if (a.head) CHECK(same_bits(a.head, b.head, n));
    if (a.touched) CHECK(same_bits(a.touched, b.touched, (size_t)a.touched_count));
    CHECK((a.uid == nullptr) == (b.uid == nullptr) || n == 0);
    if (a.uid) CHECK(same_bits(a.uid, b.uid, n));
}

/* One entry as a comparison sees it; entries of one row are sorted by id where they have no order. */
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
    if (sorted) std::sort(row.begin(), row.end(), [](const Entry &a, const Entry &b) { return a.id < b.id; });
    return row;
}

/* Rows and the history of their entries, wherever they lie. */
static void check_rows(const nlist &serial, const nlist &copy, bool ordered, bool entries)
{
    size_t const bytes = (size_t)serial.desc.history;
    bool ids = true, same_entries = true, history = true;
    CHECK(copy.n == serial.n && copy.total == serial.total && copy.desc.history == serial.desc.history);
    for (int32_t i = 0; i < serial.n; i++) {
        std::vector<Entry> const a = row_of(serial, i, !ordered), b = row_of(copy, i, !ordered);
        ids = ids && a.size() == b.size();
        for (size_t k = 0; ids && k < a.size(); k++) {
            ids = a[k].id == b[k].id;
            same_entries = same_entries && a[k].entry == b[k].entry;
            history = history && same_bits((const char *)a[k].history, (const char *)b[k].history, bytes);
        }
        if (rows_of(serial).count && rows_of(copy).count) ids = ids && rows_of(serial).count[i] == rows_of(copy).count[i];
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
              [](const nlist_event &a, const nlist_event &b) { return a.i != b.i ? a.i < b.i : a.j < b.j; });
    return events;
}

static bool layouts_change = false; /* from build to build */

/* Events: in order and with their entries, or only who with whom. */
static void check_events(const nlist &serial, const nlist &copy, bool exact)
{
    for (int kind = 0; kind < NLIST_EVENT_KINDS; kind++) {
        CHECK(copy.event_count[kind] == serial.event_count[kind]);
        if (copy.event_count[kind] != serial.event_count[kind]) return;
        for (int64_t e = 0; exact && e < serial.event_count[kind]; e++) {
            const nlist_event &a = serial.event[kind][e], &b = copy.event[kind][e];
            /* entries that ended are those of the rows before: after a change of layout these may have another width here and there */
            CHECK(a.i == b.i && a.j == b.j && (a.entry == b.entry || (layouts_change && kind == NLIST_ENDED)));
        }
        std::vector<nlist_event> const a = events_of(serial, kind), b = events_of(copy, kind);
        for (size_t e = 0; e < a.size(); e++) CHECK(a[e].i == b[e].i && a[e].j == b[e].j);
    }
}

namespace {

/* What a kernel of the caller sees of row i: its length, and a number that depends on all entries and their order. */
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
    CHECK(list.n == serial.n && list.total == serial.total && list.bad_id == -1 && list.cuda_error == 0);
    for (int kind = 0; kind < NLIST_EVENT_KINDS && serial.desc.events; kind++)
        CHECK(list.event_count[kind] == serial.event_count[kind]);
    if (rows_of(serial).width != rows_of(list).width) return;
    CHECK(rows_of(list).entries == rows_of(serial).entries);
    if (rows_of(serial).touched) CHECK(rows_of(list).touched_count == rows_of(serial).touched_count);
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

/* ------------------------------------------------------------------------------------------------
   Tests: lists
   ------------------------------------------------------------------------------------------------ */

/* Particles for a case: where all lie on each other, all are partners. */
static int size_of(Shape shape, size_t k)
{
    int const sizes[] = {n_max, n_max / 2 + 1, 33, 129, 257, 64};
    int const n = std::min(sizes[scattered(k + 7) % 6], n_max);
    return shape == EQUAL ? std::min(n, 40) : n;
}

static void test_build()
{
    for (size_t k = 0; k < case_count; k++) {
        if (!chosen(k, 4 * share, 150)) continue;
        Case c = case_of(k);
        c.n = size_of(c.shape, k);
        context = "build: " + name_of(c);
        Input const in = input_of(c, (int)k);
        OnDevice const on_device(in);
        Both b;
        build(&b, c, in, on_device);
    }
}

/* No particle, one, two, three. */
static void test_few()
{
    for (size_t k = 0; k < case_count; k++)
        for (int n = 0; n < 4; n++) {
            Case c = case_of(k);
            if (!chosen(4 * k + (size_t)n, 30 * share, 800)) continue;
            c.n = n;
            c.shape = k % 2 ? EQUAL : UNIFORM;
            if (n == 0 && (c.source == GRID || c.source == TREE)) continue; /* see test_empty */
            context = "few: " + name_of(c);
            Input const in = input_of(c, (int)k);
            OnDevice const on_device(in);
            Both b;
            if (!build(&b, c, in, on_device)) continue;
            build(&b, c, in, on_device); /* and again, beside the last one */
        }
}

/* One object, built again with more or fewer particles, in other layouts, from other sources: nothing of the last build shines
   through. (With history that is test_history.) */
static void test_rebuild()
{
    Both b;
    wl_random r = wl_seed(77);
    for (int step = 0; step < 600 / share; step++) {
        Case c = case_of(wl_below(&r, (uint32_t)case_count));
        c.n = (int)wl_below(&r, (uint32_t)(step % 10 == 3 ? n_max : n_max / 2 + 1)) + 1;
        if (c.shape == EQUAL) c.n = std::min(c.n, 30);
        c.history = c.events = 0; /* events would compare lists of other particles */
        context = "rebuild, step " + std::to_string(step) + ": " + name_of(c);
        Input const in = input_of(c, step);
        OnDevice const on_device(in);
        if (step % 40 == 39) nlist_cuda_free(&b.gpu), nlist_free(&b.serial);
        build(&b, c, in, on_device);
    }
    nlist_cuda_free(&b.gpu);
    nlist_cuda_free(&b.gpu);
    nlist_cuda_free(nullptr);
}

/* Against brute force in double, in case both halves share an error. */
static void test_truth()
{
    wl_random dice = wl_seed(5);
    for (int step = 0; step < std::max(400 / share, 12); step++) {
        static const nlist_layout all[] = {NLIST_COMPACT, NLIST_STATIC, NLIST_DYNAMIC, NLIST_HYBRID};
        oracle_scene scene;
        int const dim = 2 + step % 2, source = step / 2 % 3;
        oracle_make(&scene, step % ORACLE_INPUTS, dim, oracle_roll(&dice, 1 << dim), 20 + oracle_roll(&dice, 100),
                    oracle_roll(&dice, ORACLE_ALL + 1), &dice);
        nlist_desc d = oracle_desc(&scene);
        Input in = {};
        in.n = scene.n;
        in.stride = scene.stride;
        in.pos.assign(scene.pos, scene.pos + (size_t)scene.n * scene.step);
        if (scene.radii) in.radii.assign(scene.radii, scene.radii + scene.n);
        if (scene.masks) in.masks.assign(scene.masks, scene.masks + scene.n);
        if (scene.exclude) in.exclude_start.assign(scene.exclude_start, scene.exclude_start + scene.n + 1);
        if (scene.exclude) in.exclude.assign(scene.exclude, scene.exclude + scene.exclude_start[scene.n]);
        in.cells = oracle_ugrid_desc(&scene);
        in.cells.method = UGRID_SORT;
        in.boxes.dim = dim;
        in.boxes.kind = LBVH_POINTS;
        for (int32_t i = 0; i < scene.n; i++)
            in.elements.insert(in.elements.end(), oracle_point(&scene, i), oracle_point(&scene, i) + dim);
        d.layout = all[step / 6 % 4];
        d.half = step / 3 % 2;
        d.grow = 1;
        d.deterministic = step / 4 % 2;
        in.desc = d;
        context = std::string("truth, step ") + std::to_string(step) + ": " + oracle_input_name(scene.input) + ", source "
                  + std::to_string(source) + ", " + layouts[d.layout] + (d.half ? ", half" : ", full");
        OnDevice const on_device(in);
        Both b;
        if (scene.n > 0) CHECK_RESULT(build_gpu(&b, (Source)source, device_desc(in, on_device), in, on_device), NLIST_OK);
        if (scene.n > 0) CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        if (scene.n > 0) CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_OK);
        const char *const wrong = scene.n > 0 ? oracle_check_rows(&scene, &b.copy, nullptr) : nullptr;
        if (wrong) printf("%s\n", wrong);
        CHECK(wrong == nullptr);
        oracle_forget(&scene);
    }
}

/* ---- history ---- */

namespace {

/* Byte k of a history filled with `stamp`: oracle_byte, on both sides. */
__host__ __device__ unsigned char stamp_byte(uint32_t stamp, int32_t k)
{
    uint32_t x = stamp * 2654435761u ^ (uint32_t)(k / 4) * 0x9E3779B9u;
    x ^= x >> 15;
    return stamp ? (unsigned char)((x * 0x85EBCA6Bu >> (8 * (k % 4))) & 0xFFu) : (unsigned char)0;
}

/* What entry i, j is stamped with in a step; 0: it is left alone. */
__host__ __device__ uint32_t stamp_of(uint32_t step, int32_t i, int32_t j)
{
    uint32_t const s = scattered(((uint64_t)step << 40) ^ ((uint64_t)(uint32_t)i << 20) ^ (uint32_t)j);
    return s % 4 == 0 ? 0 : s;
}

__host__ __device__ void stamp_entry(uint32_t step, int32_t bytes, int32_t i, int32_t j, void *history)
{
    uint32_t const stamp = stamp_of(step, i, j);
    for (int32_t k = 0; k < bytes && stamp; k++) ((unsigned char *)history)[k] = stamp_byte(stamp, k);
}

__global__ void stamp_rows(__grid_constant__ const nlist_device device, const uint32_t *step)
{
    int32_t const i = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    nlist_each e = nlist_of(&device.list, i); /* beyond n: an empty row */
    while (nlist_next(&e)) stamp_entry(*step, device.list.desc.history, i, e.id, e.history);
}

/* The same for nlist_cuda_each. */
struct Stamp {
    const uint32_t *step;
    int32_t bytes;
    __host__ __device__ int operator()(int32_t i, int32_t j, void *history, int64_t) const
    {
        stamp_entry(*step, bytes, i, j, history);
        return 1;
    }
};

/* An event, with a number made from the bytes of its entry. */
struct Witness {
    int32_t i, j;
    uint32_t bytes;
};

__host__ __device__ Witness witness_of(const nlist *list, int kind, const nlist_event *event)
{
    const void *const at = kind == NLIST_ENDED ? nlist_history_before(list, event->entry) : nlist_history(list, event->entry);
    Witness w = {event->i, event->j, 1};
    for (int32_t k = 0; at && k < list->desc.history; k++) w.bytes = w.bytes * 31 + ((const unsigned char *)at)[k];
    return w;
}

__global__ void see_events(__grid_constant__ const nlist_device device, int kind, int64_t count, Witness *seen)
{
    int64_t const e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (e < count) seen[e] = witness_of(&device.list, kind, &device.list.event[kind][e]);
}

} /* namespace */

static void sort_witnesses(std::vector<Witness> *w)
{
    std::sort(w->begin(), w->end(), [](const Witness &a, const Witness &b) { return a.i != b.i ? a.i < b.i : a.j < b.j; });
}

/* A kernel finds the bytes of each event's entry, also those of the entries that are no more. */
static void check_witnesses(Both *b)
{
    for (int kind = 0; kind < NLIST_EVENT_KINDS; kind++) {
        int64_t const count = b->serial.event_count[kind];
        if (b->copy.event_count[kind] != count) continue;
        Device<Witness> d_seen((size_t)count);
        launch(count, see_events, b->gpu.device, kind, count, d_seen.p);
        std::vector<Witness> got = d_seen.get(), want;
        for (int64_t e = 0; e < count; e++) want.push_back(witness_of(&b->serial, kind, &b->serial.event[kind][e]));
        sort_witnesses(&got);
        sort_witnesses(&want);
        bool same = true;
        for (size_t e = 0; e < want.size(); e++)
            same = same && got[e].i == want[e].i && got[e].j == want[e].j && got[e].bytes == want[e].bytes;
        CHECK(same && "events lead to their bytes");
    }
}

/* Writes into three of four entries, on both sides and in the memory where there is one. */
static void stamp_all(Both *b, oracle_memory *m, uint32_t step)
{
    Device<uint32_t> d_step(std::vector<uint32_t>(1, step));
    int32_t const bytes = b->serial.desc.history;
    Stamp const stamp = {d_step.p, bytes};
    if (step % 2) launch(b->serial.n + 100, stamp_rows, b->gpu.device, (const uint32_t *)d_step.p);
    else CHECK_RESULT(nlist_cuda_each(&b->gpu, stamp, stream), NLIST_OK);
    for (int32_t i = 0; i < b->serial.n; i++) {
        nlist_each e = nlist_of(&b->serial, i);
        while (nlist_next(&e)) {
            ptrdiff_t const at = m ? oracle_look_up(m, oracle_key(m, &b->serial, i, e.id)) : -1;
            uint32_t const s = stamp_of(step, i, e.id);
            stamp_entry(step, bytes, i, e.id, e.history);
            if (at >= 0 && s) m->contacts[at].stamp = s;
        }
    }
    MUST(cudaStreamSynchronize(stream)); /* d_step is read */
}

static void check_oracle(const char *wrong, const char *which)
{
    checks++;
    if (!wrong) return;
    printf("%s: %s\n", which, wrong);
    failed(__FILE__, __LINE__, "the memory agrees");
}

/* After a build on both sides: lists and events against each other and against the memory. */
static void check_step(Both *b, const Case &c, bool ordered, oracle_memory *m)
{
    compare(b, c.deterministic != 0, ordered);
    if (c.events) check_witnesses(b);
    if (c.events) check_oracle(oracle_check_events(m, &b->serial), "events");
    check_oracle(oracle_remember(m, &b->serial), "serial");
    check_oracle(oracle_recall(m, &b->copy), "device");
}

/* The particles of a run over many steps. */
struct World {
    std::vector<real> points;
    wl_random r;
    int dim, n;
    bool ordered;   /* the last build had an order within rows */
};

static void move(World *w, double by)
{
    for (size_t k = 0; k < w->points.size(); k++) {
        int const a = (int)(k % (size_t)w->dim);
        double x = (double)w->points[k] + by * (2 * (double)wl_u(&w->r) - 1);
        x = std::min(std::max(x, box_low), box_low + 0.999 * box_length[a]);
        w->points[k] = (real)x;
    }
}

static void append(World *w, int count)
{
    for (int i = 0; i < count; i++, w->n++)
        for (int a = 0; a < w->dim; a++) w->points.push_back((real)(box_low + box_length[a] * (double)wl_u(&w->r)));
}

/* New names: some particles go, some come, all are shuffled. Returns how many there are then. */
static int32_t rename(World *w, std::vector<int32_t> *new_id, int gone, int come)
{
    std::vector<int32_t> names;
    std::vector<real> points;
    int const n = std::max(w->n - gone, 0) + come;
    for (int i = 0; i < n; i++) names.push_back(i);
    for (int i = n; i > 1; i--) std::swap(names[(size_t)i - 1], names[wl_below(&w->r, (uint32_t)i)]);
    new_id->assign((size_t)w->n, -1);
    for (int i = 0; i < w->n - gone; i++) (*new_id)[(size_t)i] = names[(size_t)i];
    for (int i = w->n; i > 1; i--) std::swap((*new_id)[(size_t)i - 1], (*new_id)[wl_below(&w->r, (uint32_t)i)]);
    for (int i = 0; i < n; i++)
        for (int a = 0; a < w->dim; a++) points.push_back((real)(box_low + box_length[a] * (double)wl_u(&w->r)));
    for (int i = 0; i < w->n; i++)
        for (int a = 0; a < w->dim && (*new_id)[(size_t)i] >= 0; a++)
            points[(size_t)((*new_id)[(size_t)i] * w->dim + a)] = w->points[(size_t)(i * w->dim + a)];
    w->points.swap(points);
    w->n = n;
    return n;
}

static void remap(Both *b, World *w, oracle_memory *m, int gone, int come)
{
    std::vector<int32_t> new_id;
    int32_t const n = rename(w, &new_id, gone, come);
    Device<int32_t> d_new_id(new_id);
    CHECK_RESULT(nlist_remap(&b->serial, new_id.data(), n), NLIST_OK);
    CHECK_RESULT(nlist_cuda_remap(&b->gpu, d_new_id.p, n, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&b->gpu, stream), NLIST_OK);
    oracle_rename(m, new_id.data(), n, b->serial.keys);
    check_oracle(oracle_recall(m, &b->serial), "serial after a remap");
    CHECK_RESULT(nlist_cuda_download(&b->copy, &b->gpu, stream), NLIST_OK);
    CHECK_RESULT(nlist_validate(&b->copy), NLIST_OK);
    check_rows(b->serial, b->copy, w->ordered, false);
    check_oracle(oracle_recall(m, &b->copy), "device after a remap");
    if (rows_of(b->serial).uid) CHECK(same_bits(rows_of(b->serial).uid, rows_of(b->copy).uid, (size_t)n));
}

/* The case of one step: with `any`, layout, source and width are new each time. */
static Case step_of(const Case &c, World *w, bool any)
{
    Case now = c;
    if (any) now.layout = (nlist_layout)wl_below(&w->r, 4);
    if (any) now.source = (Source)wl_below(&w->r, SOURCES);
    if (any) now.variant = (int)wl_below(&w->r, 60) / 15 * 15; /* of the grids UGRID_SORT: rows keep their order */
    if (any) now.width = (int)wl_below(&w->r, 5);
    now.n = w->n;
    return now;
}

static void run_history(const Case &c, int steps, bool any, int seed)
{
    Both b;
    oracle_memory m = {};
    World w = {{}, wl_seed((uint64_t)seed), c.dim, 0, true};
    std::string const name = "history " + std::to_string(seed) + ": " + name_of(c);
    layouts_change = any;
    append(&w, c.n);
    for (int step = 1; step <= steps; step++) {
        int const op = (int)wl_below(&w.r, 6);
        context = name + ", step " + std::to_string(step) + ", op " + std::to_string(op);
        move(&w, 0.25 * radius_of(c));
        if (op == 0 && step > 1) remap(&b, &w, &m, 0, 0);
        if (op == 1 && step > 1) remap(&b, &w, &m, (int)wl_below(&w.r, 8), (int)wl_below(&w.r, 8));
        if (op == 2 && step > 1) remap(&b, &w, &m, (int)wl_below(&w.r, (uint32_t)w.n / 3 + 1), 0);
        if (op == 3) append(&w, (int)wl_below(&w.r, 9));
        if (w.n < c.n / 2) append(&w, c.n / 2);
        if (w.n > 2 * c.n) remap(&b, &w, &m, w.n - c.n, 0);
        Case const now = step_of(c, &w, any);
        Input const in = input_at(now, w.points, &w.r);
        OnDevice const on_device(in);
        nlist_desc host = host_desc(in), device = device_desc(in, on_device);
        w.ordered = in.ordered;
        host.grow = 1;
        CHECK_RESULT(build_serial(&b, now.source, host, in), NLIST_OK);
        if (step % 3 == 0) device.grow = 1;
        else fit_exactly(b.serial, &device);
        CHECK_RESULT(build_gpu(&b, now.source, device, in, on_device), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        check_fetched(b);
        check_step(&b, now, in.ordered, &m);
        stamp_all(&b, &m, (uint32_t)(seed * 1000 + step));
    }
    oracle_memory_free(&m);
    layouts_change = false;
}

static void test_history()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.shape != UNIFORM || !chosen(k + 1, std::max(share, 24), 40)) continue;
        c.n = std::min(n_max, 60);
        if (c.history == 0) c.history = 8;
        c.events = 1;
        c.exclusive = c.masked = 0;
        run_history(c, share > 4 ? 8 : 24, k % 3 == 0, (int)k);
    }
}

/* Without history, events alone; and history alone. */
static void test_events()
{
    for (size_t k = 0; k < 16; k++) {
        Case c = case_of(scattered(k) % case_count);
        c.layout = (nlist_layout)(k % 4);
        c.half = (int)(k / 4 % 2);
        c.shape = UNIFORM;
        c.history = k / 8 ? 0 : 8;
        c.events = k / 8 ? 1 : 0;
        c.n = std::min(n_max, 50);
        run_history(c, share > 4 ? 3 : 20, false, (int)k);
    }
}

/* ---- triangles ---- */

/* A patch of hills, of indexed triangles or of loose ones. */
struct Mesh {
    std::vector<real> vertices;
    std::vector<int32_t> indices;
    size_t stride;
    int32_t vertex_count, triangles;
};

static void put_corner(Mesh *mesh, int x, int y, int edge)
{
    mesh->vertices.push_back((real)x / (real)edge);
    mesh->vertices.push_back((real)y / (real)edge);
    mesh->vertices.push_back((real)((x * 7 + y * 5) % 3) * (real)0.03 * (real)(x > edge / 2)); /* flat on one side */
}

static void put_triangle(Mesh *mesh, bool indexed, const int corner[3][2], int edge)
{
    for (int v = 0; v < 3; v++) {
        if (indexed) mesh->indices.push_back(corner[v][1] * (edge + 1) + corner[v][0]);
        else put_corner(mesh, corner[v][0], corner[v][1], edge);
    }
    mesh->triangles++;
}

static Mesh mesh_of(int edge, bool indexed, bool wide)
{
    Mesh mesh = {};
    for (int y = 0; y <= edge && indexed; y++)
        for (int x = 0; x <= edge; x++) {
            put_corner(&mesh, x, y, edge);
            if (wide) mesh.vertices.insert(mesh.vertices.end(), 2, not_a_number);
        }
    for (int y = 0; y < edge; y++)
        for (int x = 0; x < edge; x++) {
            int const low[3][2] = {{x, y}, {x + 1, y}, {x + 1, y + 1}}, high[3][2] = {{x, y}, {x + 1, y + 1}, {x, y + 1}};
            put_triangle(&mesh, indexed, low, edge);
            put_triangle(&mesh, indexed, high, edge);
        }
    if (indexed) mesh.vertex_count = (edge + 1) * (edge + 1);
    if (indexed && wide) mesh.stride = 5 * sizeof(real);
    return mesh;
}

static lbvh_desc mesh_tree(const Mesh &mesh, const int32_t *indices)
{
    lbvh_desc d = {};
    d.kind = LBVH_TRIANGLES;
    if (!mesh.indices.empty()) d.indices = indices, d.vertices = mesh.vertex_count;
    return d;
}

static nlist_mesh mesh_desc(const Mesh &mesh, const real *vertices, const int32_t *indices)
{
    nlist_mesh m = {};
    m.vertices = vertices;
    m.stride = mesh.stride;
    m.vertex_count = mesh.vertex_count;
    m.indices = mesh.indices.empty() ? nullptr : indices;
    m.triangles = mesh.triangles;
    return m;
}

struct MeshOnDevice {
    Device<real> vertices;
    Device<int32_t> indices;
    explicit MeshOnDevice(const Mesh &mesh) : vertices(mesh.vertices), indices(mesh.indices) {}
};

/* Trees over the triangles, on both sides. */
static void build_mesh_trees(Both *b, const Mesh &mesh, const MeshOnDevice &on_device)
{
    lbvh_desc const host = mesh_tree(mesh, mesh.indices.data()), device = mesh_tree(mesh, on_device.indices.p);
    CHECK(lbvh_build(&b->tree, &host, mesh.vertices.data(), mesh.stride, mesh.triangles) == LBVH_OK);
    CHECK(lbvh_cuda_build(&b->tree_gpu, &device, on_device.vertices.p, mesh.stride, mesh.triangles, stream) == LBVH_OK);
}

static nlist_result mesh_serial(Both *b, const nlist_desc &d, const Mesh &mesh, const Input &in)
{
    nlist_mesh const m = mesh_desc(mesh, mesh.vertices.data(), mesh.indices.data());
    return nlist_build_mesh(&b->serial, &d, &b->tree, &m, in.pos.data(), in.stride, in.n);
}

static nlist_result mesh_gpu(Both *b, const nlist_desc &d, const Mesh &mesh, const MeshOnDevice &mesh_there, const Input &in,
                             const OnDevice &there)
{
    nlist_mesh const m = mesh_desc(mesh, mesh_there.vertices.p, mesh_there.indices.p);
    return nlist_cuda_build_mesh(&b->gpu, &d, &b->tree_gpu, &m, there.pos.p, in.stride, in.n, stream);
}

/* Spheres over the patch, most of them in touch. */
static Input mesh_particles(int n, bool wide, bool radii, wl_random *r)
{
    Input in = {};
    std::vector<real> points;
    in.n = n;
    in.dim = 3;
    in.ordered = true;
    for (int i = 0; i < n; i++) {
        for (int a = 0; a < 2; a++) points.push_back((real)(1.2 * (double)wl_u(r) - 0.1));
        points.push_back((real)(0.2 * (double)wl_u(r) - 0.05));
        if (radii) in.radii.push_back((real)(0.08 * (double)wl_u(r)));
    }
    in.pos = wide ? padded(points, 3) : points;
    in.stride = wide ? 6 * sizeof(real) : 0;
    in.desc.radius = radii ? 0 : (real)0.06;
    in.desc.layout = NLIST_DYNAMIC;
    return in;
}

/* Particles roll over the patch: keys, order, history and events on both sides. */
static void run_mesh(int seed, int steps)
{
    Both b;
    wl_random r = wl_seed((uint64_t)seed);
    Mesh const mesh = mesh_of(3 + seed % 5, seed % 2, seed / 2 % 2);
    MeshOnDevice const mesh_there(mesh);
    Input in = mesh_particles(std::min(n_max, 150), seed / 4 % 2, seed / 8 % 2, &r);
    in.desc.history = 4 * (seed % 3);
    in.desc.events = seed / 3 % 2;
    in.desc.deterministic = seed / 2 % 2;
    build_mesh_trees(&b, mesh, mesh_there);
    for (int step = 1; step <= steps; step++) {
        context = "mesh " + std::to_string(seed) + ", step " + std::to_string(step);
        OnDevice const there(in);
        nlist_desc device = device_desc(in, there);
        CHECK_RESULT(mesh_serial(&b, host_desc(in), mesh, in), NLIST_OK);
        if (step % 2) fit_exactly(b.serial, &device), device.width = 0;
        else device.grow = 1;
        CHECK_RESULT(mesh_gpu(&b, device, mesh, mesh_there, in, there), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        compare(&b, in.desc.deterministic != 0, true);
        if (in.desc.events) check_witnesses(&b);
        if (in.desc.history) stamp_all(&b, nullptr, (uint32_t)(1000 * seed + step));
        for (real &x : in.pos) x += (real)(0.03 * ((double)wl_u(&r) - 0.5));
    }
}

static void test_mesh()
{
    for (int seed = 0; seed < 32; seed++)
        if (chosen((size_t)seed, share, 4)) run_mesh(seed, share > 4 ? 4 : 20);
}

/* ---- sums ---- */

namespace {

/* A contact's contribution: numbers that do not add up without rounding, the opposite for the partner; one pair in seven does not
   touch. With `marks` each call counts in the first byte of the entry. */
template <int Values> struct Law {
    uint32_t salt;
    int marks, keys;
    real scale;
    __host__ __device__ int operator()(int32_t i, int32_t j, void *history, real *own, real *other) const
    {
        bool const turned = !keys && i > j;
        uint32_t const s = stamp_of(salt, turned ? j : i, turned ? i : j) / 4;
        if (marks) ++*(unsigned char *)history;
        if (s % 7 == 3) return 0;
        for (int v = 0; v < Values; v++) {
            int32_t const whole = (int32_t)(scattered((uint64_t)s * 16 + (uint32_t)v) & 0xFFFF) - 32768;
            real const x = (real)whole * scale;
            own[v] = turned ? -x : x;
            other[v] = turned ? x : -x;
        }
        return 1;
    }
};

} /* namespace */

template <int Values> static int law_on_host(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    return (*(const Law<Values> *)user)(i, j, history, own, other);
}

/* Sums in double, and how large their parts are together. */
struct Exact {
    std::vector<double> sum, size;
};

template <int Values> static Exact exact_sums(const nlist &list, Law<Values> law, const std::vector<real> &first)
{
    Exact exact = {std::vector<double>(first.begin(), first.end()), std::vector<double>(first.size())};
    law.marks = 0;
    for (size_t k = 0; k < first.size(); k++) exact.size[k] = std::fabs((double)first[k]);
    for (int32_t i = 0; i < list.n; i++) {
        nlist_each e = nlist_of(&list, i);
        while (nlist_next(&e)) {
            real own[Values] = {}, other[Values] = {};
            if (!law(i, e.id, nullptr, own, other)) continue;
            for (int v = 0; v < Values; v++) {
                exact.sum[(size_t)(Values * i + v)] += (double)own[v];
                exact.size[(size_t)(Values * i + v)] += std::fabs((double)own[v]);
                if (!list.desc.half || list.keys) continue;
                exact.sum[(size_t)(Values * e.id + v)] += (double)other[v];
                exact.size[(size_t)(Values * e.id + v)] += std::fabs((double)other[v]);
            }
        }
    }
    return exact;
}

/* Every number within what rounding may do: each addition loses half a last digit, each contribution up to a unit. */
static bool near_exact(const std::vector<real> &sums, const Exact &exact, double unit)
{
    for (size_t k = 0; k < sums.size(); k++) {
        double const slack = 100 * ORACLE_EPSILON * exact.size[k] + 200 * unit + 1e-30;
        if (!(std::fabs((double)sums[k] - exact.sum[k]) <= slack)) return false;
    }
    return true;
}

/* How often each entry's first byte was counted up: `times` everywhere. */
static bool marked(const nlist &list, int times)
{
    for (int32_t i = 0; i < list.n; i++) {
        nlist_each e = nlist_of(&list, i);
        while (nlist_next(&e)) if (*(unsigned char *)e.history != times) return false;
    }
    return true;
}

static const char *const modes[] = {"AUTO", "PER_PARTICLE", "PER_CONTACT", "REDUCE"};

/* What nlist_cuda_check says after a sum: that of the build before it. */
static nlist_result build_verdict = NLIST_OK;

/* One sum on both sides. Bits are the same with a unit, and wherever a deterministic list takes a sum without one. */
template <int Values> static void check_sum(Both *b, nlist_mode mode, double unit, Law<Values> law)
{
    std::string const before = context;
    nlist_sums const how = {Values, mode, unit};
    nlist_sums const how_gpu = {mode == NLIST_REDUCE ? 0 : Values, mode, unit};
    std::vector<real> first((size_t)(b->serial.n * Values));
    for (size_t k = 0; k < first.size(); k++) first[k] = (real)(scattered(k) % 100) / (real)70;
    std::vector<real> serial = first;
    Device<real> d_sums(first);
    context += std::string(", sum of ") + std::to_string(Values) + ", " + modes[mode] + ", unit " + std::to_string(unit);
    nlist_result const want = nlist_sum(&b->serial, &how, law_on_host<Values>, &law, serial.data());
    CHECK_RESULT(nlist_cuda_sum<Values>(&b->gpu, &how_gpu, law, d_sums.p, stream), want);
    if (want == NLIST_OK) {
        Exact const exact = exact_sums<Values>(b->serial, law, first);
        std::vector<real> const sums = d_sums.get();
        CHECK_RESULT(nlist_cuda_check(&b->gpu, stream), build_verdict);
        CHECK(near_exact(serial, exact, unit));
        CHECK(near_exact(sums, exact, unit));
        if (unit > 0 || b->serial.desc.deterministic) CHECK(same_bits(serial.data(), sums.data(), sums.size()));
    }
    context = before;
}

/* All modes; without history the law does not count. */
template <int Values> static void check_sums(Both *b, int salt)
{
    Law<Values> law = {(uint32_t)salt, b->serial.desc.history != 0, b->serial.keys, (real)0.3 / 65536};
    int calls = 0;
    for (nlist_mode mode : {NLIST_AUTO, NLIST_PER_PARTICLE, NLIST_PER_CONTACT, NLIST_REDUCE})
        for (double unit : {0.0, 1.0 / (1 << 20)}) {
            nlist_sums const how = {Values, mode, unit};
            std::vector<real> sums((size_t)(b->serial.n * Values) + 1);
            Law<Values> quiet = law;
            quiet.marks = 0;
            bool const taken = nlist_sum(&b->serial, &how, law_on_host<Values>, &quiet, sums.data()) == NLIST_OK;
            check_sum<Values>(b, mode, unit, law);
            calls += taken;
        }
    CHECK(calls >= 3 && "with a unit every mode but REDUCE of an odd width is there");
    if (!law.marks) return;
    CHECK_RESULT(nlist_cuda_download(&b->copy, &b->gpu, stream), NLIST_OK);
    CHECK(marked(b->copy, calls) && marked(b->serial, calls) && "each entry was met once a sum");
}

static void check_sums_of(Both *b, int values, int salt)
{
    switch (values) {
    case 0: check_sums<1>(b, salt); break;
    case 1: check_sums<3>(b, salt); break;
    case 2: check_sums<4>(b, salt); break;
    case 3: check_sums<6>(b, salt); break;
    default: check_sums<16>(b, salt);
    }
}

/* Half as far until no row has more partners than slots. */
static void shrink_to_fit(Both *b, const Case &c, Input *in)
{
    nlist_desc d = host_desc(*in);
    while (build_serial(b, c.source, d, *in) == NLIST_ROW_FULL) d.radius = in->desc.radius = in->desc.radius / 2;
}

static void test_sums()
{
    static const int widths[] = {1, 2, 4, 8, 16, 32, 0, 3};
    for (size_t k = 0; k < 4 * 2 * 2 * 8 * 3; k++) {
        Case c = case_of(scattered(k) % case_count);
        if (!chosen(k, share, share > 100 ? 60 : 16)) continue;
        c.layout = (nlist_layout)(k % 4);
        c.half = (int)(k / 4 % 2);
        c.deterministic = (int)(k / 8 % 2);
        c.width = widths[k / 16 % 8];
        c.history = k % 3 ? 0 : 4;
        c.shape = k / 128 ? CLUSTERED : UNIFORM;
        c.radii = c.events = 0;
        if (c.width == 3) c.shape = UNIFORM;
        c.n = std::min(n_max, k % 5 ? 100 : 300);
        context = "sums: " + name_of(c);
        Input in = input_of(c, (int)k);
        if (in.desc.radius == 0) in.desc.radius = (real)0.1;
        Both b;
        if (c.layout == NLIST_STATIC && c.source != PAIRS) shrink_to_fit(&b, c, &in);
        OnDevice const on_device(in);
        if (!build(&b, c, in, on_device)) continue;
        check_sums_of(&b, (int)(scattered(k) % 5), (int)k);
    }
    for (int values = 0; values < 5; values++) { /* chains by every number of values */
        Case c = {};
        c.layout = NLIST_DYNAMIC;
        c.half = 1;
        c.dim = 3;
        c.n = 40;
        context = "sums of chains: " + name_of(c);
        Input in = input_of(c, values);
        in.desc.radius = (real)0.3;
        OnDevice const on_device(in);
        Both b;
        if (build(&b, c, in, on_device)) check_sums_of(&b, values, values);
    }
}

/* Grids in Morton order: cells one by one, each a range. */
static void test_morton()
{
    for (int k = 0; k < 16; k++) {
        Case c = {};
        c.source = GRID;
        c.layout = (nlist_layout)(k % 4);
        c.half = k / 4 % 2;
        c.radii = k / 8;
        c.dim = 3;
        c.deterministic = k % 2;
        c.variant = 30 + 2 * (k / 4 % 2 ? 0 : 16); /* SORT */
        c.n = std::min(n_max, 80);
        context = "morton: " + name_of(c);
        Input in = input_of(c, k);
        if (in.desc.radius == 0) in.desc.radius = (real)0.1;
        in.cells.method = UGRID_SORT;
        in.cells.cell_order = UGRID_MORTON;
        in.cells.unbounded = 0;
        in.ordered = true;
        OnDevice const on_device(in);
        Both b;
        (void)build(&b, c, in, on_device);
    }
}

/* Sums over triangles, of touched particles only. */
static void test_mesh_sums()
{
    for (int seed = 0; seed < 4; seed++) {
        Both b;
        wl_random r = wl_seed((uint64_t)seed);
        Mesh const mesh = mesh_of(5, seed % 2, false);
        MeshOnDevice const mesh_there(mesh);
        Input in = mesh_particles(std::min(n_max, 200), false, seed / 2, &r);
        context = "mesh sums " + std::to_string(seed);
        in.desc.deterministic = seed / 2;
        in.desc.history = seed % 2;
        OnDevice const there(in);
        nlist_desc device = device_desc(in, there);
        build_mesh_trees(&b, mesh, mesh_there);
        CHECK_RESULT(mesh_serial(&b, host_desc(in), mesh, in), NLIST_OK);
        device.grow = 1;
        CHECK_RESULT(mesh_gpu(&b, device, mesh, mesh_there, in, there), NLIST_OK);
        compare(&b, in.desc.deterministic != 0, true);
        check_sums_of(&b, seed, seed);
    }
}

/* Sums of those values that fit into fixed point. */
static std::vector<double> sums_that_fit(const nlist &list, const Law<3> &law, double unit, double first)
{
    std::vector<double> sums((size_t)(3 * list.n), first);
    for (int32_t i = 0; i < list.n; i++) {
        nlist_each e = nlist_of(&list, i);
        while (nlist_next(&e)) {
            real own[3] = {}, other[3] = {};
            if (!law(i, e.id, nullptr, own, other)) continue;
            for (int v = 0; v < 3; v++) {
                bool const fits = std::fabs((double)own[v]) < unit * 1099511627776.0;
                if (fits) sums[(size_t)(3 * i + v)] += (double)own[v];
                if (fits && list.desc.half) sums[(size_t)(3 * e.id + v)] += (double)other[v];
            }
        }
    }
    return sums;
}

/* What does not fit into fixed point is told, and is not added. */
static void test_sum_overflow()
{
    for (int k = 0; k < 16; k++) {
        Case c = {};
        c.layout = (nlist_layout)(k % 4);
        c.half = k / 4 % 2;
        c.dim = 3;
        c.n = std::min(n_max, 100);
        c.width = 8;
        c.variant = 1;
        context = "sum overflow: " + name_of(c);
        Input const in = input_of(c, k);
        OnDevice const on_device(in);
        Both b;
        Law<3> law = {1, 0, 0, k / 8 ? not_a_number : (real)500};
        nlist_sums how = {3, NLIST_PER_CONTACT, 1.0 / (1 << 20)};
        std::vector<real> const first((size_t)(3 * c.n), (real)1.5);
        std::vector<real> sums = first;
        Device<real> d_sums(first);
        if (!build(&b, c, in, on_device)) continue;
        std::vector<double> const fit = sums_that_fit(b.serial, law, how.unit, 1.5);
        CHECK_RESULT(nlist_sum(&b.serial, &how, law_on_host<3>, &law, sums.data()), NLIST_SUM_OVERFLOW);
        CHECK(sums == first);
        CHECK_RESULT(nlist_cuda_sum<3>(&b.gpu, &how, law, d_sums.p, stream), NLIST_OK);
        for (int again = 0; again < 2; again++) CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_SUM_OVERFLOW);
        std::vector<real> const got = d_sums.get();
        for (size_t x = 0; x < fit.size(); x++) CHECK(std::fabs((double)got[x] - fit[x]) <= 1e-5 * std::fabs(fit[x]) + 10);
        law.scale = (real)1 / 65536;
        d_sums.set(first);
        CHECK_RESULT(nlist_sum(&b.serial, &how, law_on_host<3>, &law, sums.data()), NLIST_OK);
        CHECK_RESULT(nlist_cuda_sum<3>(&b.gpu, &how, law, d_sums.p, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        CHECK(d_sums.get() == sums && sums != first);
    }
}

namespace {

/* Counts the calls for every entry, and adds up who was named. */
struct Count {
    int32_t *calls;
    unsigned long long *names;
    __device__ void operator()(int32_t i, int32_t j, void *history, int64_t entry) const
    {
        atomicAdd(&calls[entry], 1);
        atomicAdd(names, (unsigned long long)(i * 1000 + j) + (history ? 1000000000ull : 0ull));
    }
};

} /* namespace */

/* nlist_cuda_each: every entry once, with its ids. */
static void test_each()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.shape != UNIFORM || !chosen(k + 9, 4 * share, 60)) continue;
        c.n = std::min(n_max, 200);
        context = "each: " + name_of(c);
        Input const in = input_of(c, (int)k);
        OnDevice const on_device(in);
        Both b;
        if (!build(&b, c, in, on_device)) continue;
        const nlist_rows &rows = rows_of(b.copy);
        size_t const room = (size_t)rows.n * (size_t)rows.width + (size_t)rows.capacity;
        Device<int32_t> d_calls(room, 0);
        Device<unsigned long long> d_names(1, 0);
        std::vector<int32_t> want(room);
        unsigned long long names = 0;
        Count const count = {d_calls.p, d_names.p};
        CHECK_RESULT(nlist_cuda_each(&b.gpu, count, stream), NLIST_OK);
        for (int32_t i = 0; i < b.copy.n; i++) {
            nlist_each e = nlist_of(&b.copy, i);
            while (nlist_next(&e)) {
                want[(size_t)e.entry]++;
                names += (unsigned long long)(i * 1000 + e.id) + (e.history ? 1000000000ull : 0ull);
            }
        }
        CHECK(d_calls.get() == want);
        CHECK(d_names.get()[0] == names);
    }
}

/* ------------------------------------------------------------------------------------------------
   Tests: what does not fit, what did not move
   ------------------------------------------------------------------------------------------------ */

/* What a list of these rows takes. */
struct Need {
    int32_t width;      /* slots of the fullest row */
    int64_t entries;    /* in partner, with `slots` slots a row */
};

static Need need_of(const nlist &list, nlist_layout layout, int32_t slots)
{
    Need need = {0, 0};
    for (int32_t i = 0; i < list.n; i++) {
        int32_t const count = (int32_t)row_of(list, i, false).size();
        need.width = std::max(need.width, count);
        if (layout != NLIST_STATIC) need.entries += layout == NLIST_HYBRID ? std::max(count - slots, 0) : count;
    }
    return need;
}

static void check_needed(const nlist_device &device, nlist_layout layout, const Need &need)
{
    if (layout == NLIST_STATIC || layout == NLIST_HYBRID) CHECK(device.list.needed_width == need.width);
    if (layout != NLIST_STATIC) CHECK(device.list.needed_entries == need.entries);
}

/* Rows that were cut short: all partners are true, `count` says how many there would be, full rows hold what fits. */
static void check_cut(Both *b, const nlist &whole, nlist_layout layout, int32_t width, int64_t capacity)
{
    int32_t const n = whole.n;
    Device<Seen> d_seen((size_t)n);
    int64_t listed = 0, wanted = 0;
    launch(n, see_rows, b->gpu.device, n, d_seen.p);
    std::vector<Seen> const seen = d_seen.get();
    std::vector<int32_t> counts((size_t)n);
    const nlist_rows &rows = rows_of(b->gpu.device.list);
    MUST(cudaMemcpy(counts.data(), rows.count, counts.size() * sizeof(int32_t), cudaMemcpyDeviceToHost));
    for (int32_t i = 0; i < n; i++) {
        int32_t const count = (int32_t)row_of(whole, i, false).size();
        CHECK(counts[(size_t)i] == count && (int32_t)seen[(size_t)i].count <= count);
        if (layout == NLIST_STATIC) CHECK((int32_t)seen[(size_t)i].count == std::min(count, width));
        if (layout == NLIST_HYBRID) CHECK((int32_t)seen[(size_t)i].count >= std::min(count, width));
        listed += seen[(size_t)i].count;
        wanted += layout == NLIST_HYBRID ? std::min(count, width) : 0;
    }
    if (layout != NLIST_STATIC) CHECK(listed == wanted + capacity && "all room is used");
}

/* What fills the list before it grows out of its memory, and what it grows to: closer together, and more or fewer of them. */
struct Growth {
    Case c, crowd;
    Input in, close;
};

static Growth growth_of(const Case &c, int seed)
{
    wl_random r = wl_seed((uint64_t)seed);
    Growth g = {c, c, {}, {}};
    g.crowd.n = c.n + (seed / 2 % 3 - 1) * 15;
    if (seed % 5 < 2) g.crowd.layout = (nlist_layout)((c.layout + 1 + seed % 3) % 4);
    std::vector<real> const points = points_of(c, c.n + 15, &r);
    size_t const numbers = (size_t)c.dim;
    g.in = input_at(c, std::vector<real>(points.begin(), points.begin() + (ptrdiff_t)(numbers * (size_t)c.n)), &r);
    g.close = input_at(g.crowd, std::vector<real>(points.begin(), points.begin() + (ptrdiff_t)(numbers * (size_t)g.crowd.n)),
                       &r);
    g.close.desc.radius = (real)0.9;
    return g;
}

/* The build that does not fit, with the desc `tight`: the size that was missing comes back, the list before it is still there. */
static void check_full(Both *b, const Growth &g, const OnDevice &there, const nlist_desc &tight, bool given)
{
    Both grown;
    nlist_desc host = host_desc(g.close);
    nlist_layout const layout = g.crowd.layout;
    nlist_result const full = layout == NLIST_STATIC ? NLIST_ROW_FULL : NLIST_LIST_FULL;
    host.history = host.events = 0;
    host.grow = 1;
    CHECK_RESULT(build_serial(&grown, g.c.source, host, g.close), NLIST_OK);
    int32_t const slots = tight.width || layout == NLIST_HYBRID ? tight.width : g.c.half ? 8 : 16;
    Need const need = need_of(grown.serial, layout, slots);
    int64_t const room = (int64_t)g.crowd.n * (layout == NLIST_COMPACT ? 16 : layout == NLIST_DYNAMIC ? 8 : 1);
    if (!given && layout != NLIST_STATIC && need.entries <= room) return; /* by chance it fits */
    if (given) { /* the serial build says the same, and keeps its list */
        host = host_desc(g.close);
        host.width = tight.width;
        host.capacity = tight.capacity;
        CHECK_RESULT(build_serial(b, g.c.source, host, g.close), full);
        check_needed({b->serial}, layout, need);
    }
    CHECK_RESULT(build_gpu(b, g.c.source, tight, g.close, there), NLIST_OK);
    for (int again = 0; again < 2; again++) {
        CHECK_RESULT(nlist_cuda_check(&b->gpu, stream), full);
        check_needed(b->gpu.device, layout, need);
    }
    if (g.c.history || g.c.events) {
        CHECK(b->gpu.device.list.n == b->serial.n);
        b->serial.desc.events = 0; /* events: none, or those before it */
        compare(b, g.c.deterministic != 0, g.in.ordered);
        b->serial.desc.events = g.c.events;
        if (b->copy.event_count[NLIST_BEGUN] > 0) check_events(b->serial, b->copy, false);
        build_verdict = full;
        if (!g.c.history) check_sums<3>(b, 1); /* with history they would count in it */
        build_verdict = NLIST_OK;
    }
    if (!g.c.history && !g.c.events && given) check_cut(b, grown.serial, layout, tight.width, tight.capacity);
}

/* The next build, with the same desc or with the room asked for, goes on from there. */
static void run_overflow(const Case &c, bool given, int seed)
{
    Both b;
    Growth const g = growth_of(c, seed);
    OnDevice const there(g.in), there_close(g.close);
    if (!build(&b, c, g.in, there)) return;
    if (c.history) stamp_all(&b, nullptr, 7);
    nlist_desc tight = device_desc(g.close, there_close), host = host_desc(g.close);
    if (given) fit_exactly(b.serial, &tight);
    if (given && tight.layout == NLIST_STATIC && tight.width == 0) tight.width = 4; /* it was another layout */
    if (given && tight.layout == NLIST_COMPACT) tight.width = 0;
    check_full(&b, g, there_close, tight, given);
    if (given && seed % 2) { /* what was asked for, no more; else the memory comes by itself */
        if (tight.layout == NLIST_STATIC) tight.width = b.gpu.device.list.needed_width;
        else tight.capacity = b.gpu.device.list.needed_entries;
    }
    host.grow = 1;
    host.width = tight.width;
    CHECK_RESULT(build_serial(&b, c.source, host, g.close), NLIST_OK);
    CHECK_RESULT(build_gpu(&b, c.source, tight, g.close, there_close), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
    check_fetched(b);
    compare(&b, c.deterministic != 0, g.in.ordered);
}

static void test_overflow()
{
    for (size_t k = 0; k < 4 * 2 * 2 * 3 * 3 * 2; k++) {
        if (!chosen(k, std::max(share / 4, 1), 8)) continue;
        bool const given = k / 144 == 0;
        Case c = {};
        c.layout = (nlist_layout)(k % 4);
        c.half = (int)(k / 4 % 2);
        c.deterministic = (int)(k / 8 % 2);
        c.source = (Source)(k / 16 % 3); /* pairs do not look at the radius */
        c.history = k / 48 % 3 == 1 ? 8 : 0;
        c.events = k / 48 % 3 == 2;
        c.dim = 3;
        c.width = given && c.layout == NLIST_HYBRID ? 2 : 0;
        c.variant = 15 * (int)(k % 4); /* grids: UGRID_SORT */
        c.n = 70; /* with fewer all would fit */
        context = std::string("overflow, ") + (given ? "room given, " : "") + name_of(c);
        run_overflow(c, given, (int)k);
    }
}

/* desc.grow: one call, whatever it takes; the list before it gives its history. */
static void test_grow()
{
    for (size_t k = 0; k < 4 * 2 * 3 * 3; k++) {
        if (!chosen(k, std::max(share / 4, 1), 6)) continue;
        Case c = {};
        c.layout = (nlist_layout)(k % 4);
        c.half = (int)(k / 4 % 2);
        c.source = (Source)(k / 8 % 3);
        c.deterministic = (int)(k % 3 == 0);
        c.history = k / 24 == 0 ? 0 : 12;
        c.events = k / 24 == 1;
        c.dim = 2 + (int)(k % 2);
        c.variant = 15 * (int)(k % 4);
        c.n = std::min(n_max, 64);
        context = "grow: " + name_of(c);
        Both b;
        wl_random r = wl_seed(k);
        std::vector<real> const points = points_of(c, c.n, &r);
        Input in = input_at(c, points, &r);
        OnDevice const on_device(in);
        for (real radius : {(real)0.1, (real)0.45, (real)0.2, (real)0.6}) {
            nlist_desc host, device;
            in.desc.radius = radius;
            in.desc.width = radius > (real)0.3 ? 1 : 0;
            in.desc.capacity = radius > (real)0.3 ? 3 : 0;
            in.desc.grow = 1;
            host = host_desc(in);
            device = device_desc(in, on_device);
            CHECK_RESULT(build_serial(&b, c.source, host, in), NLIST_OK);
            CHECK_RESULT(build_gpu(&b, c.source, device, in, on_device), NLIST_OK);
            CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
            compare(&b, c.deterministic != 0, in.ordered);
            if (c.history) stamp_all(&b, nullptr, (uint32_t)(radius * 100));
        }
    }
}

/* ---- the skin ---- */

static nlist_cuda_facts facts_of(const nlist_cuda &gpu)
{
    nlist_cuda_facts facts = {};
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(&facts, gpu.d_facts, sizeof facts, cudaMemcpyDeviceToHost));
    return facts;
}

/* Every particle goes a little way; `far` of them further than half the skin. */
static std::vector<real> moved_points(const Input &in, int far, real skin)
{
    std::vector<real> pos = in.pos;
    size_t const step = in.stride ? in.stride / sizeof(real) : (size_t)in.dim;
    for (int i = 0; i < in.n; i++) {
        real *const p = &pos[(size_t)i * step];
        int const a = i % in.dim;
        p[a] += (i % 2 ? -1 : 1) * skin * (i % 7 == 3 && i / 7 < far ? (real)0.6 : (real)0.4);
    }
    return pos;
}

static int count_far(const Input &in, int far)
{
    int count = 0;
    for (int i = 0; i < in.n; i++) count += i % 7 == 3 && i / 7 < far;
    return count;
}

/* The device's answer, and that of the serial half. */
static void check_moved(Both *b, const Input &in, const OnDevice &there, int want)
{
    int32_t moved = -1;
    CHECK_RESULT(nlist_moved(&b->serial, in.pos.data(), in.stride, &moved), NLIST_OK);
    CHECK(moved == (want > 0));
    CHECK_RESULT(nlist_cuda_moved(&b->gpu, there.pos.p, in.stride, stream), NLIST_OK);
    CHECK(facts_of(b->gpu).moved == want);
}

/* Particles that a remap has brought in come from nowhere: they have moved. */
static void check_newcomers(Both *b, const Input &in)
{
    Device<real> d_pos(in.pos);
    std::vector<int32_t> names;
    int32_t moved = 0;
    for (int32_t i = 0; i < in.n; i++) names.push_back(i < 3 ? -1 : i);
    Device<int32_t> d_names(names);
    CHECK_RESULT(nlist_remap(&b->serial, names.data(), in.n), NLIST_OK);
    CHECK_RESULT(nlist_cuda_remap(&b->gpu, d_names.p, in.n, stream), NLIST_OK);
    CHECK_RESULT(nlist_moved(&b->serial, in.pos.data(), in.stride, &moved), NLIST_OK);
    CHECK_RESULT(nlist_cuda_moved(&b->gpu, d_pos.p, in.stride, stream), NLIST_OK);
    CHECK(moved == 1 && facts_of(b->gpu).moved == 3);
}

/* Nobody moved far enough: the build leaves everything as it is. Somebody did: it builds. The device decides. */
static void run_moved(const Case &c, int seed)
{
    Both b;
    Input in = input_of(c, seed);
    OnDevice const on_device(in);
    if (!build(&b, c, in, on_device)) return;
    if (c.history) stamp_all(&b, nullptr, (uint32_t)seed);
    check_moved(&b, in, on_device, 0);
    int32_t filled = facts_of(b.gpu).filled;
    for (int far : {0, 2, 0, 1000}) {
        Input next = in;
        next.pos = moved_points(in, far, in.desc.skin);
        OnDevice const there(next);
        nlist_desc host = host_desc(next), device = device_desc(next, there);
        check_moved(&b, next, there, count_far(in, far));
        host.grow = 1;
        if (far) CHECK_RESULT(build_serial(&b, c.source, host, next), NLIST_OK);
        fit_exactly(b.serial, &device);
        device.if_moved = 1;
        CHECK_RESULT(build_gpu(&b, c.source, device, next, there), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        int32_t const now = facts_of(b.gpu).filled;
        CHECK(far ? now == filled + 1 || now == 1 : now == filled); /* 1: in memory of another size it counts anew */
        filled = now;
        compare(&b, c.deterministic != 0, in.ordered);
        if (far) in = next;
        if (far) check_moved(&b, in, there, 0);
    }
    check_newcomers(&b, in);
}

static void test_moved()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.shape != UNIFORM || c.source == PAIRS || !chosen(k + 5, std::max(4 * share / 3, 1), 50)) continue;
        c.skin = 1;
        c.n = std::min(n_max, 90);
        c.events = 0; /* those of the serial list would be older */
        context = "moved: " + name_of(c);
        run_moved(c, (int)k);
    }
    nlist_cuda gpu = {};
    Device<real> d_pos(30);
    CHECK_RESULT(nlist_cuda_moved(&gpu, d_pos.p, 0, stream), NLIST_OK); /* no list: nothing can rest on it */
    nlist_cuda_free(&gpu);
}

/* A NaN has moved. */
static void test_moved_nan()
{
    Case c = {};
    c.dim = 3;
    c.skin = 1;
    c.n = 40;
    c.variant = 1;
    context = "moved: not a number";
    Input in = input_of(c, 3);
    OnDevice const on_device(in);
    Both b;
    if (!build(&b, c, in, on_device)) return;
    in.pos[3 * 7 + 1] = not_a_number;
    in.pos[3 * 9] = infinity;
    OnDevice const there(in);
    CHECK_RESULT(nlist_cuda_moved(&b.gpu, there.pos.p, 0, stream), NLIST_OK);
    CHECK(facts_of(b.gpu).moved == 2);
}

/* ------------------------------------------------------------------------------------------------
   Tests: what is left out
   ------------------------------------------------------------------------------------------------ */

/* Particles with NaN are in no row, and the first of them is told; the others are as if it were not there. */
static void test_not_finite()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if ((c.shape != UNIFORM && c.shape != OUTSIDE) || c.source == PAIRS || !chosen(k + 4, 2 * share, 100)) continue;
        c.n = std::min(n_max, 150);
        c.masked = 1;
        context = "not finite: " + name_of(c);
        Input in = input_of(c, (int)k);
        int const first = (int)(k % 20), every = 1 + (int)(k / 4 % 40);
        Input bad = in;
        size_t const step = in.stride ? in.stride / sizeof(real) : (size_t)in.dim;
        size_t const row = in.elements.size() / (size_t)std::max(c.n, 1);
        for (int i = first; i < c.n; i += every) {
            size_t const a = (size_t)(i % c.dim);
            real const x = i % 3 == 0 ? infinity : i % 3 == 1 ? -infinity : not_a_number;
            bool const radius = c.radii && i % 5 == 2;
            in.masks[(size_t)i] = 0; /* in the serial list it is there, and near nobody */
            if (radius) bad.radii[(size_t)i] = not_a_number;
            else bad.pos[(size_t)i * step + a] = x;
            if (!radius && c.source == TREE) bad.elements[(size_t)i * row + a] = x;
        }
        OnDevice const there(bad);
        Both b;
        nlist_desc host = host_desc(in), device = device_desc(bad, there);
        host.grow = 1;
        CHECK_RESULT(build_serial(&b, c.source, host, in), NLIST_OK);
        fit_exactly(b.serial, &device);
        CHECK_RESULT(build_gpu(&b, c.source, device, bad, there), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), first < c.n ? NLIST_NOT_FINITE : NLIST_OK);
        CHECK(b.gpu.device.list.bad_id == (first < c.n ? first : -1));
        CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_OK);
        CHECK_RESULT(nlist_validate(&b.copy), NLIST_OK);
        check_rows(b.serial, b.copy, in.ordered, false);
        build(&b, c, input_of(c, (int)k), OnDevice(input_of(c, (int)k))); /* and without them */
    }
}

/* Pairs with ids out of range are left out, and the first is told. */
static void test_bad_pairs()
{
    for (int k = 0; k < 16; k++) {
        Case c = {};
        c.source = PAIRS;
        c.layout = (nlist_layout)(k % 4);
        c.half = k / 4 % 2;
        c.deterministic = k / 8;
        c.dim = 3;
        c.n = 80;
        c.variant = 1;
        context = "bad pairs: " + name_of(c);
        Input const in = input_of(c, k);
        Input bad = in;
        size_t const first = 5 + (size_t)k;
        for (size_t p = first; 2 * p < bad.pairs.size(); p += 9) {
            int32_t const wrong[] = {-1, c.n, INT32_MAX, INT32_MIN};
            int32_t const pair[2] = {p % 2 ? wrong[p % 4] : 3, p % 2 ? 3 : wrong[p % 4]};
            bad.pairs.insert(bad.pairs.begin() + 2 * (ptrdiff_t)p, pair, pair + 2);
        }
        OnDevice const there(bad);
        Both b;
        nlist_desc host = host_desc(in), device = device_desc(bad, there);
        host.grow = 1;
        CHECK_RESULT(build_serial(&b, PAIRS, host, in), NLIST_OK);
        fit_exactly(b.serial, &device);
        CHECK_RESULT(build_gpu(&b, PAIRS, device, bad, there), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_BAD_INDEX);
        CHECK(b.gpu.device.list.bad_id == (int32_t)first);
        CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_OK);
        check_rows(b.serial, b.copy, true, false);
    }
}

/* Names out of range or given twice: those particles are gone, and the first is told. */
static void test_bad_names()
{
    for (int k = 0; k < 8; k++) {
        Case c = {};
        c.layout = (nlist_layout)(k % 4);
        c.half = k / 4;
        c.dim = 3;
        c.history = 8;
        c.n = 80;
        c.variant = 1;
        context = "bad names: " + name_of(c);
        Input const in = input_of(c, k);
        OnDevice const there(in);
        Both b;
        std::vector<int32_t> names;
        int32_t const bad[] = {c.n, -2, INT32_MAX, INT32_MIN};
        if (!build(&b, c, in, there)) continue;
        for (int32_t i = 0; i < c.n; i++) names.push_back(c.n - 1 - i);
        names[20] = bad[k % 4];
        names[33] = bad[(k + 1) % 4];
        Device<int32_t> d_names(names);
        CHECK_RESULT(nlist_remap(&b.serial, names.data(), c.n), NLIST_BAD_INDEX);
        CHECK(b.serial.bad_id == 20);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, c.n, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_BAD_INDEX);
        CHECK(b.gpu.device.list.bad_id == 20);
        names[20] = names[33] = -1;
        CHECK_RESULT(nlist_remap(&b.serial, names.data(), c.n), NLIST_OK);
        CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_OK);
        CHECK_RESULT(nlist_validate(&b.copy), NLIST_OK);
        check_rows(b.serial, b.copy, true, false);
        names.assign((size_t)c.n, 0);
        for (int32_t i = 0; i < c.n; i++) names[(size_t)i] = i;
        names[50] = 40; /* twice */
        d_names.set(names);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, c.n, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_BAD_INDEX);
        CHECK(b.gpu.device.list.bad_id == 50 || b.gpu.device.list.bad_id == 40);
        CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_OK);
        CHECK_RESULT(nlist_validate(&b.copy), NLIST_OK);
    }
}

/* Radii that only the device knows, too large for the box: told by the check. */
static void test_bad_period()
{
    for (int source = BRUTE; source <= TREE; source++) {
        Case c = {};
        c.source = (Source)source;
        c.dim = 3;
        c.periodic = 2;
        c.radii = 1;
        c.n = 40;
        c.variant = 0;
        context = "bad period: " + name_of(c);
        Input in = input_of(c, 1);
        in.radii[17] = (real)0.4;
        OnDevice const there(in);
        Both b;
        nlist_desc device = device_desc(in, there);
        CHECK_RESULT(build_serial(&b, c.source, host_desc(in), in), NLIST_BAD_PERIOD);
        CHECK_RESULT(build_gpu(&b, c.source, device, in, there), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_BAD_PERIOD);
        build(&b, c, input_of(c, 1), OnDevice(input_of(c, 1)));
    }
}

/* ------------------------------------------------------------------------------------------------
   Tests: from one side to the other
   ------------------------------------------------------------------------------------------------ */

/* A serial list with something in its history, and now and then with new names. */
static void serial_with_history(Both *b, const Case &c, World *w, uint32_t step)
{
    Input const in = input_at(step_of(c, w, false), w->points, &w->r);
    nlist_desc host = host_desc(in);
    host.grow = 1;
    CHECK_RESULT(build_serial(b, c.source, host, in), NLIST_OK);
    for (int32_t i = 0; i < b->serial.n && c.history; i++) {
        nlist_each e = nlist_of(&b->serial, i);
        while (nlist_next(&e)) stamp_entry(step, c.history, i, e.id, e.history);
    }
    if (step % 2) return;
    std::vector<int32_t> new_id;
    int32_t const n = rename(w, &new_id, 3, 4);
    CHECK_RESULT(nlist_remap(&b->serial, new_id.data(), n), NLIST_OK);
}

/* Up, down again, used there, and built again there with the history that came up. */
static void test_upload()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.shape != UNIFORM || !chosen(k + 3, std::max(2 * share / 3, 1), 50)) continue;
        c.n = std::min(n_max, 80);
        c.masked = c.exclusive = 0;
        context = "upload: " + name_of(c);
        Both b;
        World w = {{}, wl_seed(k), c.dim, 0, true};
        append(&w, c.n);
        for (uint32_t round = 1; round < 4; round++) {
            serial_with_history(&b, c, &w, round);
            CHECK_RESULT(nlist_cuda_upload(&b.gpu, &b.serial, stream), NLIST_OK);
            CHECK(b.gpu.device.list.n == b.serial.n);
            CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
            CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_OK);
            CHECK_RESULT(nlist_validate(&b.copy), NLIST_OK);
            check_arrays(b.serial, b.copy);
            check_rows(b.serial, b.copy, true, true);
            check_seen(&b);
            if (c.half && !c.history) check_sums<3>(&b, (int)round);
            move(&w, 0.2 * radius_of(c));
            Input const in = input_at(step_of(c, &w, false), w.points, &w.r);
            OnDevice const there(in);
            nlist_desc host = host_desc(in), device = device_desc(in, there);
            host.grow = 1;
            CHECK_RESULT(build_serial(&b, c.source, host, in), NLIST_OK);
            fit_exactly(b.serial, &device);
            CHECK_RESULT(build_gpu(&b, c.source, device, in, there), NLIST_OK);
            CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
            compare(&b, c.deterministic != 0, in.ordered);
        }
    }
}

/* ------------------------------------------------------------------------------------------------
   Tests: memory
   ------------------------------------------------------------------------------------------------ */

/* Device memory that is counted, and fails on demand. */

/* Everything that a step may do with a list; the first result that is not NLIST_OK. */
static nlist_result use_all(nlist_cuda *gpu, const Input &in, const OnDevice &there, const Device<real> &d_sums,
                            const uint32_t *d_step)
{
    Law<3> const law = {5, 0, gpu->device.list.keys, (real)0.1 / 65536};
    Stamp const stamp = {d_step, in.desc.history};
    nlist_sums const units = {3, NLIST_AUTO, 1.0 / 4096}, contacts = {3, NLIST_PER_CONTACT, 1.0 / 4096};
    nlist_result r = nlist_cuda_each(gpu, stamp, stream);
    if (r == NLIST_OK) r = nlist_cuda_sum<3>(gpu, &units, law, d_sums.p, stream);
    if (r == NLIST_OK) r = nlist_cuda_sum<3>(gpu, &contacts, law, d_sums.p, stream);
    if (r == NLIST_OK && in.desc.skin > 0) r = nlist_cuda_moved(gpu, there.pos.p, in.stride, stream);
    MUST(cudaStreamSynchronize(stream));
    return r;
}

/* After a reserve, builds and sums of up to n particles allocate nothing. */
static void test_reserve()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.shape != UNIFORM || c.source == PAIRS || !chosen(k + 2, std::max(2 * share / 3, 1), 50)) continue;
        Heap h = {};
        Both b;
        c.n = std::min(n_max, 200);
        context = "reserve: " + name_of(c);
        Input in = input_of(c, (int)k);
        in.desc.width = std::max(in.desc.width, 32);
        in.desc.capacity = 64 * c.n;
        OnDevice const there(in);
        Device<real> d_sums(std::vector<real>((size_t)(3 * c.n)));
        Device<uint32_t> d_step(std::vector<uint32_t>(1, 3));
        nlist_desc d = device_desc(in, there);
        d.cuda_allocator = allocator_of(&h);
        CHECK_RESULT(nlist_cuda_reserve(&b.gpu, &d, c.n, 3, stream), NLIST_OK);
        long const calls = h.calls;
        CHECK(calls > 0 && b.gpu.device.list.n == 0);
        for (int n : {c.n, c.n / 3, c.n, 1, c.n}) {
            Input some = in;
            some.n = n;
            CHECK_RESULT(build_gpu(&b, c.source, d, some, there), NLIST_OK);
            CHECK_RESULT(use_all(&b.gpu, some, there, d_sums, d_step.p), NLIST_OK);
            CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
            CHECK(h.calls == calls && "nothing was allocated");
            CHECK(b.gpu.device.list.n == n);
        }
        CHECK_RESULT(nlist_cuda_reserve(&b.gpu, &d, c.n / 2, 3, stream), NLIST_OK);
        CHECK(b.gpu.device.list.n == 0 && h.calls == calls && "empty, with the same memory");
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        nlist_cuda_free(&b.gpu);
        CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
    }
}

/* Both sides build; the device's allocation may fail, and then the list before it is there as it was. Then it is tried again. */
static void build_with_failure(Both *b, const Case &c, const Input &in, const OnDevice &there, const nlist_cuda_allocator &heap)
{
    nlist_desc host = host_desc(in), device = device_desc(in, there);
    host.grow = 1;
    device.cuda_allocator = heap;
    device.grow = 1;
    build_source(b, c.source, in, there);
    nlist_result const r = build_list(b, c.source, device, in, there);
    if (r != NLIST_OK) {
        CHECK_RESULT(r, NLIST_OUT_OF_MEMORY);
        bool const twice = c.history || c.events;
        CHECK(b->gpu.device.list.n == b->serial.n || (!twice && b->gpu.device.list.n == 0));
        if (b->gpu.device.list.n > 0) {
            (void)nlist_cuda_check(&b->gpu, stream); /* it may tell of a first round that did not fit */
            CHECK_RESULT(nlist_cuda_download(&b->copy, &b->gpu, stream), NLIST_OK);
            check_rows(b->serial, b->copy, in.ordered, false);
        }
        CHECK_RESULT(build_list(b, c.source, device, in, there), NLIST_OK);
    }
    CHECK_RESULT(nlist_cuda_check(&b->gpu, stream), NLIST_OK);
    CHECK_RESULT(build_serial(b, c.source, host, in), NLIST_OK);
    compare(b, c.deterministic != 0, in.ordered);
    if (c.history) stamp_all(b, nullptr, (uint32_t)in.n);
}

/* One pass: allocation number `fail` fails (0: none). Returns how many there were. */
static long run_out_of_memory(const Case &c, const Input &in, const Input &more, long fail)
{
    Both b;
    Heap h = {};
    OnDevice const there(in), there_more(more);
    Device<real> d_sums(std::vector<real>((size_t)(3 * more.n)));
    Device<uint32_t> d_step(std::vector<uint32_t>(1, 3));
    std::vector<int32_t> names;
    nlist host = {};
    h.fail_at = fail;
    build_with_failure(&b, c, in, there, allocator_of(&h));
    build_with_failure(&b, c, more, there_more, allocator_of(&h));
    for (int32_t i = 0; i < more.n; i++) names.push_back(more.n - 1 - i);
    Device<int32_t> const d_names(names);
    nlist_result r = nlist_cuda_remap(&b.gpu, d_names.p, more.n, stream);
    if (r != NLIST_OK) {
        CHECK_RESULT(r, NLIST_OUT_OF_MEMORY);
        compare(&b, false, in.ordered);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, more.n, stream), NLIST_OK);
    }
    CHECK_RESULT(nlist_remap(&b.serial, names.data(), more.n), NLIST_OK);
    Input last = more;
    last.desc.history = 0; /* nothing is written here */
    Law<3> const law = {5, 0, 0, (real)0.1 / 65536};
    nlist_sums const units = {3, NLIST_PER_CONTACT, 1.0 / 4096};
    r = nlist_cuda_sum<3>(&b.gpu, &units, law, d_sums.p, stream);
    if (r != NLIST_OK) {
        CHECK_RESULT(r, NLIST_OUT_OF_MEMORY);
        CHECK_RESULT(nlist_cuda_sum<3>(&b.gpu, &units, law, d_sums.p, stream), NLIST_OK);
    }
    CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_OK);
    check_rows(b.serial, b.copy, in.ordered, false);
    if (fail > 0) CHECK(h.calls >= fail && "the failure was met");
    nlist_cuda_free(&b.gpu);
    nlist_free(&host);
    CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
    return h.calls;
}

/* Each allocation fails once: the result says so, the list is as before, and the next call works. */
static void test_out_of_memory()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.shape != UNIFORM || !chosen(k + 6, std::max(3 * share, 8), 150)) continue;
        c.n = 20;
        if (k % 2) c.history = 8;
        c.events = (int)(k / 2 % 2);
        context = "out of memory: " + name_of(c);
        Input const in = input_of(c, (int)k);
        Case large = c;
        large.n = std::min(n_max, 70);
        Input const more = input_of(large, (int)k + 1);
        std::string const name = context;
        long const calls = run_out_of_memory(c, in, more, 0);
        CHECK(calls > 3);
        for (long fail = 1; fail <= calls; fail++) {
            context = name + ", failure " + std::to_string(fail);
            run_out_of_memory(c, in, more, fail);
        }
    }
}

/* How often each block of a list got other memory; the sum over all. */
struct Growths {
    size_t bytes[int(NLIST_BLOCKS) + int(NLIST_CUDA_SCRATCH)];
    long times[int(NLIST_BLOCKS) + int(NLIST_CUDA_SCRATCH)];
    long count(const nlist_cuda &gpu)
    {
        long sum = 0;
        for (int b = 0; b < int(NLIST_BLOCKS) + int(NLIST_CUDA_SCRATCH); b++) {
            nlist_block const &block = b < NLIST_BLOCKS ? gpu.device.list.block[b] : gpu.scratch[b - int(NLIST_BLOCKS)];
            times[b] += block.bytes != bytes[b];
            bytes[b] = block.bytes;
            sum += times[b];
        }
        return sum;
    }
};

/* Builds with one more particle each, with history, sums and new names now and then: no array gets other memory more often than a logarithm tells. */
static void run_growth(nlist_layout layout, int most)
{
    Heap h = {};
    Both b;
    Growths g = {};
    std::vector<int32_t> pairs, names;
    Law<3> const law = {5, 0, 0, 1};
    nlist_sums const how = {3, NLIST_PER_CONTACT, 0.25};
    nlist_desc d = {};
    for (int32_t i = 0; i < most; i++) {
        pairs.insert(pairs.end(), {i, i + 1});
        names.push_back(i);
    }
    Device<int32_t> const d_pairs(pairs), d_names(names);
    Device<real> const d_sums(std::vector<real>((size_t)(3 * most)));
    context = "growth " + std::to_string(layout);
    d.layout = layout;
    d.width = layout == NLIST_STATIC ? 2 : 1;
    d.radius = 1;
    d.half = d.deterministic = layout % 2;
    d.history = 8;
    d.events = 1;
    d.cuda_allocator = allocator_of(&h);
    for (int32_t n = 1; n <= most; n++) {
        CHECK_RESULT(nlist_cuda_build_pairs(&b.gpu, &d, d_pairs.p, n - 1, n, stream), NLIST_OK);
        if (n % 4 == 0) CHECK_RESULT(nlist_cuda_sum<3>(&b.gpu, &how, law, d_sums.p, stream), NLIST_OK);
        if (n % 16 == 0) CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, n, stream), NLIST_OK);
        CHECK(h.calls <= 2 * g.count(b.gpu)); /* twice in one step, at most */
    }
    CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
    CHECK(b.gpu.device.list.n == most && b.gpu.device.list.total == (d.half ? 1 : 2) * (most - 1));
    for (long times : g.times) CHECK(times <= 20); /* 2 + log(300) / log(1.5) = 16.1, and a few more for small sizes */
    nlist_cuda_free(&b.gpu);
    CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
}

static void test_growth()
{
    for (int k = 0; k < 4; k++) run_growth((nlist_layout)k, n_max < 80 ? 60 : n_max < 200 ? 150 : 600);
}

/* A reserve takes exactly what it says, also where memory is held already. */
static void test_exact_memory()
{
    for (int k = 0; k < 8; k++) {
        nlist_desc d = {};
        Both first, again;
        context = "exact memory " + std::to_string(k);
        d.layout = (nlist_layout)(k % 4);
        d.radius = 1;
        d.history = k / 4 * 8;
        d.events = k / 4;
        CHECK_RESULT(nlist_cuda_reserve(&first.gpu, &d, 500, 3, stream), NLIST_OK);
        for (int n : {400, 500}) CHECK_RESULT(nlist_cuda_reserve(&again.gpu, &d, n, 3, stream), NLIST_OK);
        for (int b = 0; b < NLIST_BLOCKS; b++) CHECK(first.gpu.device.list.block[b].bytes == again.gpu.device.list.block[b].bytes);
        for (int b = 0; b < NLIST_CUDA_SCRATCH; b++) CHECK(first.gpu.scratch[b].bytes == again.gpu.scratch[b].bytes);
    }
}

/* Memory is given back in the stream of the last call, though that has launched nothing. */
static void test_stream_of_memory()
{
    Heap h = {};
    nlist_cuda gpu = {};
    nlist_desc d = {};
    context = "stream of memory";
    d.radius = 1;
    d.cuda_allocator = allocator_of(&h);
    CHECK_RESULT(nlist_cuda_reserve(&gpu, &d, 10, 0, stream), NLIST_OK);
    nlist_cuda_free(&gpu);
    CHECK(h.calls > 0 && h.live == 0 && !h.wrong_stream);
}

/* A download takes memory for what it brings, and none to work with. */
static void test_download_memory()
{
    Both b;
    nlist_desc d = {};
    Device<int32_t> const d_pair(std::vector<int32_t>{0, 1});
    context = "download memory";
    d.radius = 1;
    d.events = 1;
    CHECK_RESULT(nlist_cuda_build_pairs(&b.gpu, &d, d_pair.p, 1, 2, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_OK);
    CHECK(b.copy.built == 1 && b.copy.total == 2 && b.copy.event_count[NLIST_BEGUN] == 1);
    for (int k = NLIST_I_EVENT + NLIST_EVENT_KINDS; k < NLIST_BLOCKS; k++) CHECK(!b.copy.block[k].memory);
}

/* Where there is no memory for half as much again, what is needed will do. */
static void *tight_alloc(size_t bytes, struct CUstream_st *s, void *user)
{
    return bytes > 110 * 16 * sizeof(int32_t) ? nullptr : heap_alloc(bytes, s, user);
}

static void test_tight_memory()
{
    Heap h = {};
    nlist_cuda gpu = {};
    nlist_desc d = {};
    std::vector<real> pos;
    for (int i = 0; i < 110; i++) pos.insert(pos.end(), {(real)i, 0, 0});
    Device<real> const d_pos(pos);
    context = "tight memory";
    d.layout = NLIST_STATIC;
    d.radius = 1;
    d.cuda_allocator = {tight_alloc, heap_free, &h};
    for (int n : {100, 110}) CHECK_RESULT(nlist_cuda_build_brute(&gpu, &d, d_pos.p, 0, n, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_OK);
    CHECK(gpu.device.list.n == 110 && gpu.device.list.total == 218);
    nlist_cuda_free(&gpu);
    CHECK(h.live == 0);
}

/* ------------------------------------------------------------------------------------------------
   Tests: after a build that did not fit, without a check in between
   ------------------------------------------------------------------------------------------------ */

namespace {

/* Reads and counts in arrays of exactly as many particles, and triangles, as the last build had: what a force law does. */
struct Touch {
    const int32_t *particle, *triangle; /* zeros */
    unsigned long long *calls;
    int keys;
    __device__ int32_t read(int32_t i, int32_t j) const
    {
        return particle[i] + (keys ? triangle[nlist_key_triangle(j)] : particle[j]);
    }
    __device__ void operator()(int32_t i, int32_t j, void *history, int64_t) const
    {
        if (history) *static_cast<int32_t *>(history) += read(i, j);
        atomicAdd(calls, 1ull + (unsigned)read(i, j));
    }
    __device__ int operator()(int32_t i, int32_t j, void *history, real *own, real *other) const
    {
        (*this)(i, j, history, 0);
        own[0] = 1;
        other[0] = 1;
        return 1;
    }
};

} /* namespace */

/* Everything that may be called now; each entry among the first n particles is met `entries` times in all. */
static void use_unfit(Both *b, int32_t n, int32_t triangles, unsigned long long entries)
{
    Device<int32_t> const d_particle(std::vector<int32_t>((size_t)n)), d_triangle(std::vector<int32_t>((size_t)triangles));
    Device<unsigned long long> const d_calls(1, 0);
    Touch const touch = {d_particle.p, d_triangle.p, d_calls.p, b->gpu.device.list.keys};
    real const sides = b->gpu.device.list.desc.half ? 2 : 1;
    CHECK_RESULT(nlist_cuda_each(&b->gpu, touch, stream), NLIST_OK);
    CHECK(d_calls.get()[0] == entries);
    for (int mode = NLIST_AUTO; mode <= NLIST_REDUCE; mode++)
        for (double unit : {0.0, 0.25}) {
            Device<real> const d_sums(std::vector<real>((size_t)n));
            nlist_sums const how = {1, (nlist_mode)mode, unit};
            real sum = 0;
            if (nlist_cuda_sum<1>(&b->gpu, &how, touch, d_sums.p, stream) != NLIST_OK) continue; /* not this width */
            for (real x : d_sums.get()) sum += x;
            CHECK(sum == sides * (real)entries);
        }
}

/* n particles in a row, each near the two beside it; or all at one place. */
static std::vector<real> in_a_row(int n, bool crowded)
{
    std::vector<real> pos;
    for (int i = 0; i < n; i++) pos.insert(pos.end(), {crowded ? 0 : (real)i, 0, 0});
    return pos;
}

static nlist_desc unfit_desc(int k)
{
    nlist_desc d = {};
    d.layout = (nlist_layout)(k % 4);
    d.half = k / 4 % 2;
    d.history = k / 8 % 2 * 4;
    d.events = k / 8 % 2;
    d.skin = (real)(k / 16 % 2) / 4;
    d.radius = 1;
    d.width = d.layout == NLIST_HYBRID ? 1 : 4;
    d.capacity = 230;
    return d;
}

/* Everybody's name: the last first; those from `kept` on are gone. */
static std::vector<int32_t> turned(int n, int kept)
{
    std::vector<int32_t> names;
    for (int i = 0; i < n; i++) names.push_back(i < kept ? kept - 1 - i : -1);
    return names;
}

/* A list of `first`, then a build of `then` that does not fit, and at once new names, as many as that build had particles: the list of
   `first` with those names is what comes out, on both sides. */
static void run_unfit_remap(int k, int first, int then)
{
    nlist_desc d = unfit_desc(k), host = d;
    int const kept = std::min(first, then);
    std::vector<real> const row = in_a_row(first, false), crowd = in_a_row(then, true);
    std::vector<int32_t> const turn = turned(first, first), names = turned(then, then);
    std::vector<int32_t> serial_names = turned(first, kept);
    Device<real> const d_row(row), d_crowd(crowd);
    Device<int32_t> const d_turn(turn), d_names(names);
    Both b;
    context = "unfit remap " + std::to_string(k) + ", " + std::to_string(first) + ", then " + std::to_string(then);
    for (int i = 0; i < kept; i++) serial_names[(size_t)i] = then - 1 - i;
    host.grow = 1;
    CHECK_RESULT(nlist_build_brute(&b.serial, &host, row.data(), 0, first), NLIST_OK);
    CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, d_row.p, 0, first, stream), NLIST_OK);
    if (k % 3 == 0 || !d.history) { /* a list without history has two generations from its first remap on */
        CHECK_RESULT(nlist_remap(&b.serial, turn.data(), first), NLIST_OK);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_turn.p, first, stream), NLIST_OK);
    }
    CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, d_crowd.p, 0, then, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, then, stream), NLIST_OK);
    CHECK_RESULT(nlist_remap(&b.serial, serial_names.data(), then), NLIST_OK);
    use_unfit(&b, then, 0, (unsigned long long)b.serial.total);
    CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
    compare(&b, false, true);
    CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, d_row.p, 0, first, stream), NLIST_OK); /* and on */
    CHECK_RESULT(nlist_build_brute(&b.serial, &host, row.data(), 0, first), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
    compare(&b, false, true);
}

static void test_unfit_remap()
{
    for (int k = 0; k < 32; k++) {
        if (n_max < 80 && k % 5) continue;
        run_unfit_remap(k, 100, 50);
        run_unfit_remap(k, 20, 60);
        if (!(k & 16)) run_unfit_remap(k, 20, n_max < 80 ? 100 : 400);
    }
}

/* Sums and kernels for each entry after it, when the layout was to be another one, of another width. */
static void test_unfit_layouts()
{
    for (int k = 0; k < 64; k++) {
        nlist_desc d = unfit_desc(8 + k % 4), other = unfit_desc(8 + k / 4 % 4);
        int const first = k < 32 ? 60 : 25, then = 40;
        std::vector<real> const row = in_a_row(first, false), crowd = in_a_row(then, true);
        Device<real> const d_row(row), d_crowd(crowd);
        Both b;
        d.half = other.half = k / 16 % 2;
        d.width = 3; /* which does not reduce */
        if (k % 7 == 0 && d.layout == NLIST_STATIC) d.width = 33;
        context = "unfit layouts " + std::to_string(k);
        CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, d_row.p, 0, first, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &other, d_crowd.p, 0, then, stream), NLIST_OK);
        use_unfit(&b, then, 0, (unsigned long long)((d.half ? 1 : 2) * (std::min(first, then) - 1)));
        nlist_result const r = nlist_cuda_check(&b.gpu, stream);
        CHECK(r == NLIST_ROW_FULL || r == NLIST_LIST_FULL);
        CHECK(b.gpu.device.list.n == first && b.gpu.device.list.built);
        use_unfit(&b, first, 0, (unsigned long long)((d.half ? 1 : 2) * (first - 1)));
    }
}

/* The first list does not fit, and memory of another one lies in its place: there is none. */
static void test_unfit_first()
{
    for (int k = 0; k < 32; k++) {
        nlist_desc plain = unfit_desc(k % 4), d = unfit_desc(8 + k / 4 % 4);
        Device<real> const d_row(in_a_row(100, false)), d_crowd(in_a_row(50, true));
        Device<int32_t> const d_names(turned(50, 50));
        Both b;
        context = "unfit first " + std::to_string(k);
        if (k < 16) CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &plain, d_row.p, 0, 100, stream), NLIST_OK);
        else CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, d_row.p, 0, 100, stream), NLIST_OK);
        if (k >= 16) CHECK_RESULT(nlist_cuda_reserve(&b.gpu, &d, 100, 1, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, d_crowd.p, 0, 50, stream), NLIST_OK);
        use_unfit(&b, 50, 0, 0);
        if (k % 2) {
            CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, 50, stream), NLIST_OK);
            CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
            CHECK(b.gpu.device.list.n == 50 && b.gpu.device.list.total == 0);
            continue;
        }
        nlist_result const r = nlist_cuda_check(&b.gpu, stream);
        CHECK(r == NLIST_ROW_FULL || r == NLIST_LIST_FULL);
        CHECK(b.gpu.device.list.n == 0 && !b.gpu.device.list.built);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, 50, stream), NLIST_NOT_BUILT);
        CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_NOT_BUILT);
    }
}

/* A list of triangles, renamed, and one of fewer triangles and more particles that does not fit: of the one before, what the new mesh has
   is met, and it is there as it was after a check. */
static void run_unfit_mesh(Both *b, const Input &in, const OnDevice &there, const Input &many, const OnDevice &many_there,
                           const nlist_desc &desc)
{
    Mesh const large = mesh_of(6, false, false), small = mesh_of(1, false, false);
    MeshOnDevice const large_there(large), small_there(small);
    std::vector<int32_t> const turn = turned(in.n, in.n), more = turned(many.n, many.n);
    Device<int32_t> const d_turn(turn), d_more(more);
    nlist_desc d = desc;
    unsigned long long low = 0;
    build_mesh_trees(b, large, large_there);
    CHECK_RESULT(mesh_serial(b, d, large, in), NLIST_OK);
    d.capacity = b->serial.total;
    CHECK_RESULT(mesh_gpu(b, d, large, large_there, in, there), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&b->gpu, stream), NLIST_OK);
    CHECK(b->gpu.device.list.triangles == 72 && b->serial.triangles == 72);
    CHECK_RESULT(nlist_cuda_remap(&b->gpu, d_turn.p, in.n, stream), NLIST_OK);
    CHECK_RESULT(nlist_remap(&b->serial, turn.data(), in.n), NLIST_OK);
    for (int32_t i = 0; i < in.n; i++)
        for (const Entry &e : row_of(b->serial, i, false)) low += nlist_key_triangle(e.id) < 2;
    CHECK(low > 0 && low < (unsigned long long)b->serial.total);
    build_mesh_trees(b, small, small_there);
    CHECK_RESULT(mesh_gpu(b, d, small, small_there, many, many_there), NLIST_OK);
    use_unfit(b, many.n, 2, low);
    CHECK_RESULT(nlist_cuda_remap(&b->gpu, d_more.p, many.n, stream), NLIST_OK);
    use_unfit(b, many.n, 2, low);
    std::vector<int32_t> names(more.begin(), more.begin() + in.n);
    CHECK_RESULT(nlist_remap(&b->serial, names.data(), many.n), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&b->gpu, stream), NLIST_OK);
    CHECK(b->gpu.device.list.triangles == 72);
    compare(b, false, true);
    CHECK(b->copy.triangles == 72);
}

/* So; and then, in a list without history, particles instead of triangles, and triangles instead of particles. */
static void test_unfit_meshes()
{
    Mesh const mesh = mesh_of(1, false, false);
    MeshOnDevice const mesh_there(mesh);
    wl_random r = wl_seed(3);
    Input const in = mesh_particles(60, false, false, &r), many = mesh_particles(900, false, false, &r);
    OnDevice const there(in), many_there(many);
    Device<real> const d_crowd(in_a_row(80, true)), d_row(in_a_row(60, false));
    Device<int32_t> const d_names(turned(80, 80));
    nlist_desc d = in.desc, particles = unfit_desc(2);
    for (int history = 0; history < 2; history++) {
        Both b;
        context = "unfit meshes " + std::to_string(history);
        d.capacity = 0;
        d.history = 4 * history;
        run_unfit_mesh(&b, in, there, many, many_there, d);
        if (history) continue;
        CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &particles, d_crowd.p, 0, 80, stream), NLIST_OK); /* keys are no particles */
        use_unfit(&b, 80, 0, 0);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, 80, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        CHECK(b.gpu.device.list.n == 80 && b.gpu.device.list.total == 0);
        CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &particles, d_row.p, 0, 60, stream), NLIST_OK);
        build_mesh_trees(&b, mesh, mesh_there);
        d.capacity = 1;
        CHECK_RESULT(mesh_gpu(&b, d, mesh, mesh_there, many, many_there), NLIST_OK); /* nor particles keys */
        use_unfit(&b, many.n, 2, 0);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_LIST_FULL);
    }
}

/* From points to points of more numbers, where the reference positions of the old list have fewer. */
static void test_unfit_dimensions()
{
    for (int k = 0; k < 8; k++) {
        nlist_desc d = unfit_desc(16 + k % 4);
        Device<real> const d_row(in_a_row(60, false)), d_crowd(in_a_row(60, true));
        Device<int32_t> const d_names(turned(60, 60));
        Both b;
        context = "unfit dimensions " + std::to_string(k);
        d.dim = k < 4 ? 2 : 3;
        CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, d_row.p, 3 * sizeof(real), 60, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, 60, stream), NLIST_OK);
        d.dim = 5 - d.dim;
        CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, d_crowd.p, 3 * sizeof(real), 60, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, 60, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_moved(&b.gpu, d_row.p, 3 * sizeof(real), stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        CHECK(b.gpu.device.list.n == 60 && b.gpu.device.list.total == 0);
        CHECK(facts_of(b.gpu).moved == 60);
    }
}

/* A domain that empties and fills again, on both sides. */
static void test_domain_empties()
{
    for (int k = 0; k < 32; k++) {
        nlist_desc const d = unfit_desc(k);
        std::vector<real> const row = in_a_row(12, false);
        std::vector<int32_t> const gone(12, -1);
        Device<real> const d_row(row);
        Device<int32_t> const d_gone(gone);
        Both b;
        context = "domain empties " + std::to_string(k);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, nullptr, 4, stream), NLIST_NOT_BUILT);
        CHECK_RESULT(nlist_build_brute(&b.serial, &d, nullptr, 0, 0), NLIST_OK);
        CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, nullptr, 0, 0, stream), NLIST_OK);
        for (int step = 0; step < 3; step++) {
            CHECK_RESULT(nlist_remap(&b.serial, nullptr, 12), NLIST_OK); /* twelve come */
            CHECK_RESULT(nlist_cuda_remap(&b.gpu, nullptr, 12, stream), NLIST_OK);
            if (step != 1) CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
            compare(&b, false, true);
            CHECK_RESULT(nlist_build_brute(&b.serial, &d, row.data(), 0, 12), NLIST_OK);
            CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, d_row.p, 0, 12, stream), NLIST_OK);
            compare(&b, false, true);
            CHECK_RESULT(nlist_remap(&b.serial, gone.data(), 0), NLIST_OK); /* and go */
            CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_gone.p, 0, stream), NLIST_OK);
            if (step != 1) CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
            CHECK(b.gpu.device.list.n == 0 && b.gpu.device.list.built);
            compare(&b, false, true);
            CHECK_RESULT(nlist_cuda_upload(&b.gpu, &b.serial, stream), NLIST_OK);
            CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_OK);
            CHECK(b.copy.n == 0 && b.copy.built);
        }
    }
}

/* Never built: who needs a list says so; a check waits all the same. */
static void test_not_built()
{
    nlist_desc d = {};
    Device<int32_t> const d_one(1, 0);
    Device<unsigned long long> const d_calls(1, 0);
    Device<real> const d_sums(std::vector<real>(4));
    Touch const touch = {d_one.p, d_one.p, d_calls.p, 0};
    nlist_sums const how = {1, NLIST_AUTO, 0};
    cudaGraph_t graph = nullptr;
    d.radius = 1;
    for (int reserved = 0; reserved < 2; reserved++) {
        Both b;
        context = "not built " + std::to_string(reserved);
        if (reserved) CHECK_RESULT(nlist_cuda_reserve(&b.gpu, &d, 4, 1, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_each(&b.gpu, touch, stream), NLIST_NOT_BUILT);
        CHECK_RESULT(nlist_cuda_sum<1>(&b.gpu, &how, touch, d_sums.p, stream), NLIST_NOT_BUILT);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_one.p, 1, stream), NLIST_NOT_BUILT);
        CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_NOT_BUILT);
        CHECK_RESULT(nlist_cuda_upload(&b.gpu, &b.copy, stream), NLIST_NOT_BUILT);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal)); /* in which nobody may wait */
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_CUDA_ERROR);
        (void)cudaStreamEndCapture(stream, &graph);
        (void)cudaGetLastError();
        CHECK(d_calls.get()[0] == 0);
    }
}

/* ------------------------------------------------------------------------------------------------
   Tests: refusals and errors
   ------------------------------------------------------------------------------------------------ */

typedef void change_fn(nlist_desc *);

static const struct { change_fn *change; nlist_result result; } wrong_descs[] = {
    {[](nlist_desc *x) { x->dim = 4; }, NLIST_BAD_DIM},
    {[](nlist_desc *x) { x->dim = -1; }, NLIST_BAD_DIM},
    {[](nlist_desc *x) { x->radius = 0; }, NLIST_BAD_RADIUS},
    {[](nlist_desc *x) { x->radius = -1; }, NLIST_BAD_RADIUS},
    {[](nlist_desc *x) { x->radius = not_a_number; }, NLIST_BAD_RADIUS},
    {[](nlist_desc *x) { x->radius = infinity; }, NLIST_BAD_RADIUS},
    {[](nlist_desc *x) { x->radius = (real)(sizeof(real) == 4 ? 1e-21 : 1e-160); }, NLIST_BAD_RADIUS},
    {[](nlist_desc *x) { x->skin = -1; }, NLIST_BAD_SKIN},
    {[](nlist_desc *x) { x->skin = not_a_number; }, NLIST_BAD_SKIN},
#ifndef CUDA_EMU /* UBSan stops at a value that the enum does not have */
    {[](nlist_desc *x) { x->layout = (nlist_layout)4; }, NLIST_BAD_OPTION},
    {[](nlist_desc *x) { x->layout = (nlist_layout)-1; }, NLIST_BAD_OPTION},
#endif
    {[](nlist_desc *x) { x->width = -1; }, NLIST_BAD_WIDTH},
    {[](nlist_desc *x) { x->width = 1025; }, NLIST_BAD_WIDTH},
    {[](nlist_desc *x) { x->layout = NLIST_HYBRID; x->width = -1; }, NLIST_BAD_WIDTH},
    {[](nlist_desc *x) { x->history = -1; }, NLIST_BAD_HISTORY},
    {[](nlist_desc *x) { x->history = 4097; }, NLIST_BAD_HISTORY},
    {[](nlist_desc *x) { x->history = 12; }, NLIST_BAD_HISTORY},
    {[](nlist_desc *x) { x->capacity = -1; }, NLIST_BAD_CAPACITY},
    {[](nlist_desc *x) { x->periodic[1] = 1; }, NLIST_BAD_BOX},
    {[](nlist_desc *x) { x->periodic[1] = 1; x->min[1] = 0; x->max[1] = infinity; }, NLIST_BAD_BOX},
    {[](nlist_desc *x) { x->periodic[1] = 1; x->min[1] = 0; x->max[1] = (real)0.3; }, NLIST_BAD_PERIOD},
    {[](nlist_desc *x) { x->exclude = (const int32_t *)x; }, NLIST_BAD_EXCLUSIONS},
    {[](nlist_desc *x) { x->exclude_start = (const int64_t *)x; }, NLIST_BAD_EXCLUSIONS},
    {[](nlist_desc *x) { x->allocator.alloc = [](size_t, void *) -> void * { return nullptr; }; }, NLIST_BAD_ALLOCATOR},
    {[](nlist_desc *x) { x->cuda_allocator.alloc = heap_alloc; }, NLIST_BAD_ALLOCATOR},
    {[](nlist_desc *x) { x->cuda_allocator.free = heap_free; }, NLIST_BAD_ALLOCATOR},
    {[](nlist_desc *x) { x->cuda_allocator.alloc = heap_alloc; x->cuda_allocator.free = heap_free; }, NLIST_BAD_ALLOCATOR},
};

/* Pointers, counts and strides of every build. */
static void check_refused_arguments(Both *b, const nlist_desc &d, const Device<real> &d_pos, const Device<int32_t> &d_pairs)
{
    nlist_cuda *const gpu = &b->gpu;
    CHECK_RESULT(nlist_cuda_build_brute(nullptr, &d, d_pos.p, 0, 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_brute(gpu, nullptr, d_pos.p, 0, 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_brute(gpu, &d, nullptr, 0, 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_brute(gpu, &d, d_pos.p, 0, -1, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_brute(gpu, &d, d_pos.p, 2 * sizeof(real), 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_brute(gpu, &d, d_pos.p, 3 * sizeof(real) + 1, 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_brute(gpu, &d, d_pos.p, 0, INT32_MAX, stream), NLIST_TOO_MANY);
    CHECK_RESULT(nlist_cuda_build_pairs(nullptr, &d, d_pairs.p, 2, 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_pairs(gpu, &d, nullptr, 2, 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_pairs(gpu, &d, d_pairs.p, -1, 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_pairs(gpu, &d, d_pairs.p, 2, -1, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_ugrid(gpu, &d, nullptr, d_pos.p, 0, 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_lbvh(gpu, &d, nullptr, d_pos.p, 0, 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_ugrid(nullptr, &d, &b->grid_gpu, d_pos.p, 0, 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_lbvh(nullptr, &d, &b->tree_gpu, d_pos.p, 0, 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_ugrid(gpu, &d, &b->grid_gpu, d_pos.p, 0, 3, stream), NLIST_BAD_SOURCE);
    CHECK_RESULT(nlist_cuda_build_lbvh(gpu, &d, &b->tree_gpu, d_pos.p, 0, 3, stream), NLIST_BAD_SOURCE);
    CHECK_RESULT(nlist_cuda_reserve(nullptr, &d, 4, 0, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_reserve(gpu, nullptr, 4, 0, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_reserve(gpu, &d, -1, 0, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_check(nullptr, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_moved(nullptr, d_pos.p, 0, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_moved(gpu, d_pos.p, 0, stream), NLIST_BAD_SKIN);
    CHECK_RESULT(nlist_cuda_remap(nullptr, d_pairs.p, 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_remap(gpu, nullptr, 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_remap(gpu, d_pairs.p, -1, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_upload(nullptr, &b->serial, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_upload(gpu, nullptr, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_download(nullptr, gpu, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_download(&b->copy, nullptr, stream), NLIST_BAD_ARGUMENT);
}

/* Four particles, of which two and two are near each other. */
static const std::vector<real> four = {0, 0, 0, (real)0.1, 0, 0, 5, 5, 5, 5, (real)5.1, 5};

static void build_four(Both *b, const nlist_desc &d, const Device<real> &d_pos, const Device<real> &d_elements)
{
    ugrid_desc cells = {};
    lbvh_desc boxes = {};
    for (int a = 0; a < 3; a++) cells.max[a] = 6;
    cells.cell = (real)0.5;
    cells.method = UGRID_SORT;
    boxes.kind = LBVH_POINTS;
    CHECK(ugrid_cuda_build(&b->grid_gpu, &cells, d_pos.p, 0, 4, stream) == UGRID_OK);
    CHECK(lbvh_cuda_build(&b->tree_gpu, &boxes, d_elements.p, 0, 4, stream) == LBVH_OK);
    CHECK_RESULT(nlist_build_brute(&b->serial, &d, four.data(), 0, 4), NLIST_OK);
    CHECK_RESULT(nlist_cuda_build_brute(&b->gpu, &d, d_pos.p, 0, 4, stream), NLIST_OK);
}

static void test_refused_builds()
{
    Device<real> d_pos(four);
    Device<int32_t> d_pairs(std::vector<int32_t>{0, 1, 2, 3});
    Both b;
    nlist_desc good = {};
    context = "refused builds";
    good.radius = (real)0.2;
    good.history = 8;
    build_four(&b, good, d_pos, d_pos);
    stamp_all(&b, nullptr, 9);
    check_refused_arguments(&b, good, d_pos, d_pairs);
    int number = 0;
    for (auto w : wrong_descs) {
        nlist_desc d = good;
        w.change(&d);
        context = "refused builds, number " + std::to_string(number++);
        CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, d_pos.p, 0, 4, stream), w.result);
        if (w.result != NLIST_BAD_BOX && w.result != NLIST_BAD_PERIOD) { /* the box is that of the grid */
            CHECK_RESULT(nlist_cuda_build_ugrid(&b.gpu, &d, &b.grid_gpu, d_pos.p, 0, 4, stream), w.result);
        }
        CHECK_RESULT(nlist_cuda_build_lbvh(&b.gpu, &d, &b.tree_gpu, d_pos.p, 0, 4, stream), w.result);
    }
    context = "refused builds: the list before is there";
    nlist_cuda other = {};
    nlist_desc flat = good;
    flat.dim = 2;
    CHECK_RESULT(nlist_cuda_build_ugrid(&other, &flat, &b.grid_gpu, d_pos.p, 0, 4, stream), NLIST_BAD_DIM);
    CHECK_RESULT(nlist_cuda_build_lbvh(&other, &flat, &b.tree_gpu, d_pos.p, 0, 4, stream), NLIST_BAD_DIM);
    nlist_cuda_free(&other);
    CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
    compare(&b, false, true);
    CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &good, d_pos.p, 0, 4, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
    CHECK_RESULT(nlist_build_brute(&b.serial, &good, four.data(), 0, 4), NLIST_OK);
    compare(&b, false, true);
}

/* A build refused for its source, or for its radius, has asked for another layout: the list before it is read as what it is. */
static void test_refused_layouts()
{
    for (int k = 0; k < 4 * 4 * 2 * 2; k++) {
        Case c = {};
        c.layout = (nlist_layout)(k % 4);
        c.half = k / 16 % 2;
        c.history = k / 32 * 8;
        c.dim = 3;
        c.n = 50;
        c.width = 4;
        c.variant = 1;
        context = "refused layouts " + std::to_string(k) + ": " + name_of(c);
        Input const in = input_of(c, k);
        OnDevice const there(in);
        Both b;
        if (!build(&b, c, in, there)) continue;
        nlist_desc other = device_desc(in, there);
        other.layout = (nlist_layout)(k / 4 % 4);
        other.width = 8;
        if (c.history == 0) other.half = !c.half;
        CHECK_RESULT(nlist_cuda_build_lbvh(&b.gpu, &other, &b.tree_gpu, there.pos.p, 0, c.n, stream), NLIST_BAD_SOURCE);
        CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &other, nullptr, 0, c.n, stream), NLIST_BAD_ARGUMENT);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        compare(&b, false, true);
        check_sums<3>(&b, k);
    }
}

/* A deterministic list wants a grid with an order. */
static void test_refused_sources()
{
    static const ugrid_method methods[] = {UGRID_COUNT, UGRID_FIXED, UGRID_LIST, UGRID_LIST_PACKED, UGRID_SORT};
    context = "refused sources";
    for (ugrid_method method : methods) {
        Case c = {};
        c.source = GRID;
        c.dim = 3;
        c.n = 40;
        c.variant = 1;
        c.deterministic = 1;
        Input in = input_of(c, 4);
        OnDevice const there(in);
        Both b;
        in.cells.method = method;
        in.cells.deterministic = 0;
        nlist_desc d = device_desc(in, there);
        d.grow = 1;
        CHECK_RESULT(build_gpu(&b, GRID, d, in, there), method == UGRID_SORT ? NLIST_OK : NLIST_BAD_SOURCE);
        in.cells.deterministic = 1;
        CHECK_RESULT(build_gpu(&b, GRID, d, in, there), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
    }
    Both b;
    nlist_desc d = {};
    Device<real> d_pos(four);
    d.radius = 1;
    CHECK_RESULT(nlist_cuda_build_ugrid(&b.gpu, &d, &b.grid_gpu, d_pos.p, 0, 4, stream), NLIST_BAD_SOURCE);
    CHECK_RESULT(nlist_cuda_build_lbvh(&b.gpu, &d, &b.tree_gpu, d_pos.p, 0, 4, stream), NLIST_BAD_SOURCE);
    context = "refused sources: boxes so far from the particles that squares overflow";
    real const far_off = sizeof(real) == 4 ? (real)1e20 : (real)1e160;
    Device<real> d_old(std::vector<real>{far_off, 0, 0, -far_off, 0, 0}), d_now(std::vector<real>{0, 0, 0, (real)0.1, 0, 0});
    lbvh_desc t = {};
    t.kind = LBVH_POINTS;
    CHECK(lbvh_cuda_build(&b.tree_gpu, &t, d_old.p, 0, 2, stream) == LBVH_OK);
    CHECK_RESULT(nlist_cuda_build_lbvh(&b.gpu, &d, &b.tree_gpu, d_now.p, 0, 2, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_BAD_SOURCE);
}

static void test_refused_meshes()
{
    Mesh const mesh = mesh_of(2, false, false);
    MeshOnDevice const mesh_there(mesh);
    wl_random r = wl_seed(1);
    Input const in = mesh_particles(10, false, false, &r);
    OnDevice const there(in);
    Both b;
    nlist_desc d = in.desc;
    nlist_mesh m = mesh_desc(mesh, mesh_there.vertices.p, nullptr);
    context = "refused meshes";
    build_mesh_trees(&b, mesh, mesh_there);
    CHECK_RESULT(nlist_cuda_build_mesh(nullptr, &d, &b.tree_gpu, &m, there.pos.p, 0, 10, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_mesh(&b.gpu, &d, nullptr, &m, there.pos.p, 0, 10, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_mesh(&b.gpu, &d, &b.tree_gpu, nullptr, there.pos.p, 0, 10, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_mesh(&b.gpu, &d, &b.tree_gpu, &m, nullptr, 0, 10, stream), NLIST_BAD_ARGUMENT);
    d.layout = NLIST_STATIC;
    CHECK_RESULT(nlist_cuda_build_mesh(&b.gpu, &d, &b.tree_gpu, &m, there.pos.p, 0, 10, stream), NLIST_BAD_OPTION);
    d = in.desc;
    d.dim = 2;
    CHECK_RESULT(nlist_cuda_build_mesh(&b.gpu, &d, &b.tree_gpu, &m, there.pos.p, 0, 10, stream), NLIST_BAD_DIM);
    d = in.desc;
    d.skin = (real)0.1;
    CHECK_RESULT(nlist_cuda_build_mesh(&b.gpu, &d, &b.tree_gpu, &m, there.pos.p, 0, 10, stream), NLIST_BAD_SKIN);
    m.triangles++;
    CHECK_RESULT(nlist_cuda_build_mesh(&b.gpu, &in.desc, &b.tree_gpu, &m, there.pos.p, 0, 10, stream), NLIST_BAD_SOURCE);
    m.triangles--;
    m.vertices = nullptr;
    CHECK_RESULT(nlist_cuda_build_mesh(&b.gpu, &in.desc, &b.tree_gpu, &m, there.pos.p, 0, 10, stream), NLIST_BAD_ARGUMENT);
    CHECK(b.gpu.device.list.n == 0);
}

static void test_refused_sums()
{
    Device<real> d_pos(four), d_sums(std::vector<real>(12, 5));
    Law<3> const law = {5, 0, 0, 1};
    Count const count = {nullptr, nullptr};
    Both b;
    nlist_desc d = {};
    context = "refused sums";
    d.radius = (real)0.2;
    d.layout = NLIST_STATIC;
    d.width = 3;
    build_four(&b, d, d_pos, d_pos);
    static const struct { nlist_sums how; nlist_result result; } wrong[] = {
        {{2, NLIST_AUTO, 0}, NLIST_BAD_VALUES},
        {{17, NLIST_AUTO, 0}, NLIST_BAD_VALUES},
        {{-1, NLIST_AUTO, 0}, NLIST_BAD_VALUES},
        {{3, NLIST_REDUCE, 0}, NLIST_BAD_WIDTH},
        {{3, NLIST_AUTO, -1}, NLIST_BAD_UNIT},
        {{3, NLIST_AUTO, (double)NAN}, NLIST_BAD_UNIT},
        {{3, NLIST_AUTO, (double)INFINITY}, NLIST_BAD_UNIT},
#ifndef CUDA_EMU
        {{3, (nlist_mode)4, 0}, NLIST_BAD_OPTION},
        {{3, (nlist_mode)-1, 0}, NLIST_BAD_OPTION},
#endif
    };
    for (auto w : wrong) CHECK_RESULT(nlist_cuda_sum<3>(&b.gpu, &w.how, law, d_sums.p, stream), w.result);
    nlist_sums const good = {3, NLIST_AUTO, 0};
    CHECK_RESULT(nlist_cuda_sum<3>((nlist_cuda *)nullptr, &good, law, d_sums.p, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_sum<3>(&b.gpu, nullptr, law, d_sums.p, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_sum<3>(&b.gpu, &good, law, (real *)nullptr, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_each((nlist_cuda *)nullptr, count, stream), NLIST_BAD_ARGUMENT);
    for (real x : d_sums.get()) CHECK(x == 5 && "a refused sum wrote something");
    nlist_cuda_free(&b.gpu);
    CHECK_RESULT(nlist_cuda_each(&b.gpu, count, stream), NLIST_NOT_BUILT);
    CHECK_RESULT(nlist_cuda_sum<3>(&b.gpu, &good, law, d_sums.p, stream), NLIST_NOT_BUILT);
    for (real x : d_sums.get()) CHECK(x == 5);
}

/* No particles: a list of none, and nothing on the device is touched. */
static void test_empty()
{
    for (int k = 0; k < 8; k++) {
        nlist_desc d = {};
        Both b;
        Law<3> const law = {5, 0, 0, 1};
        nlist_sums const how = {3, NLIST_AUTO, 1e-6};
        context = "empty " + std::to_string(k);
        d.radius = 1;
        d.layout = (nlist_layout)(k % 4);
        d.history = k / 4 * 8;
        d.events = k / 4;
        for (int again = 0; again < 2; again++) {
            CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, nullptr, 0, 0, stream), NLIST_OK);
            CHECK_RESULT(nlist_cuda_build_pairs(&b.gpu, &d, nullptr, 0, 0, stream), NLIST_OK);
            CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
            CHECK(b.gpu.device.list.n == 0 && b.gpu.device.list.total == 0);
            CHECK_RESULT(nlist_cuda_sum<3>(&b.gpu, &how, law, (real *)nullptr, stream), NLIST_OK);
            CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_OK);
            CHECK(b.copy.n == 0 && b.copy.total == 0);
            if (again) continue;
            Device<int32_t> d_pair(std::vector<int32_t>{0, 2}); /* and after a list of some */
            CHECK_RESULT(nlist_cuda_build_pairs(&b.gpu, &d, d_pair.p, 1, 3, stream), NLIST_OK);
            CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
            CHECK(b.gpu.device.list.n == 3 && b.gpu.device.list.total == 2);
        }
    }
}

/* A launch that fails comes back as a result, and the object can be used again afterwards. On a GPU: a capture that was made
   invalid refuses all further work; the emulator fails the launch we name. */
static void test_launch_errors()
{
    for (int k = 0; k < 8; k++) {
        Case c = {};
        c.layout = (nlist_layout)(k % 4);
        c.deterministic = k / 4;
        c.half = 1;
        c.source = (Source)(k % 4);
        c.dim = 3;
        c.width = 8;
        c.variant = 15;
        c.n = 40;
        c.history = 8;
        context = "launch errors: " + name_of(c);
        Input const in = input_of(c, k);
        OnDevice const there(in);
        Device<real> d_sums(std::vector<real>(120));
        Device<uint32_t> d_step(std::vector<uint32_t>(1, 3));
        Both b;
        if (!build(&b, c, in, there)) continue;
        nlist_desc d = device_desc(in, there);
        fit_exactly(b.serial, &d);
#ifdef CUDA_EMU
        for (long fail = 1;; fail++) {
            long const before = emu_launches();
            emu_fail_launch(fail);
            nlist_result r = build_list(&b, c.source, d, in, there);
            if (r == NLIST_OK) r = use_all(&b.gpu, in, there, d_sums, d_step.p);
            MUST(cudaStreamSynchronize(stream)); /* lazy streams launch only now */
            emu_fail_launch(0);
            if (r == NLIST_OK) {
                CHECK(fail > 3 && emu_launches() - before >= fail - 1);
                break;
            }
            CHECK_RESULT(r, NLIST_CUDA_ERROR);
            CHECK(b.gpu.device.list.cuda_error == (int32_t)cudaErrorLaunchOutOfResources);
        }
#else
        cudaGraph_t graph = nullptr;
        MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_CUDA_ERROR); /* waiting is not allowed here, and spoils the capture */
        CHECK(b.gpu.device.list.cuda_error != 0);
        CHECK_RESULT(build_list(&b, c.source, d, in, there), NLIST_CUDA_ERROR);
        CHECK(b.gpu.device.list.cuda_error != 0);
        CHECK(cudaStreamEndCapture(stream, &graph) != cudaSuccess);
        cudaGetLastError();
#endif
        nlist_cuda_free(&b.gpu); /* what the history has become is not said */
        nlist_free(&b.serial);
        build(&b, c, in, there);
        CHECK_RESULT(use_all(&b.gpu, in, there, d_sums, d_step.p), NLIST_OK);
        CHECK(b.gpu.device.list.cuda_error == 0);
    }
}

/* ------------------------------------------------------------------------------------------------
   Tests: graphs and streams
   ------------------------------------------------------------------------------------------------ */

/* One time step, as a program would enqueue it: grid or tree, list with its history, the caller's work on it, sums. */
struct Step {
    const Case &c;
    Input &in;
    OnDevice &there;
    Device<uint32_t> d_step;
    Device<real> d_sums;
    nlist_desc desc;
    nlist_sums how;
    Law<3> law;
    Step(const Case &of, Input *input, OnDevice *on_device)
        : c(of), in(*input), there(*on_device), d_step(1), d_sums((size_t)(3 * of.n)), desc(device_desc(*input, *on_device)), how(),
          law()
    {
    }
};

static void reserve_step(Both *b, const Step &s)
{
    if (s.c.source == GRID) CHECK(ugrid_cuda_reserve(&b->grid_gpu, &s.in.cells, s.c.n, stream) == UGRID_OK);
    if (s.c.source == TREE) CHECK(lbvh_cuda_reserve(&b->tree_gpu, &s.in.boxes, s.c.n, s.c.n, stream) == LBVH_OK);
    CHECK_RESULT(nlist_cuda_reserve(&b->gpu, &s.desc, s.c.n, 3, stream), NLIST_OK);
    MUST(cudaStreamSynchronize(stream));
}

static void enqueue_step(Both *b, const Step &s)
{
    Stamp const stamp = {s.d_step.p, s.c.history};
    build_source(b, s.c.source, s.in, s.there);
    if (s.desc.if_moved) CHECK_RESULT(nlist_cuda_moved(&b->gpu, s.there.pos.p, s.in.stride, stream), NLIST_OK);
    CHECK_RESULT(build_list(b, s.c.source, s.desc, s.in, s.there), NLIST_OK);
    if (s.c.history) CHECK_RESULT(nlist_cuda_each(&b->gpu, stamp, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_sum<3>(&b->gpu, &s.how, s.law, s.d_sums.p, stream), NLIST_OK);
}

/* The same on the host; returns the sums. */
static std::vector<real> serial_step(Both *b, const Step &s, uint32_t step)
{
    std::vector<real> sums((size_t)(3 * s.c.n));
    nlist_desc host = host_desc(s.in);
    int32_t moved = 1;
    if (s.desc.if_moved) CHECK_RESULT(nlist_moved(&b->serial, s.in.pos.data(), s.in.stride, &moved), NLIST_OK);
    if (moved) CHECK_RESULT(build_serial(b, s.c.source, host, s.in), NLIST_OK);
    for (int32_t i = 0; i < b->serial.n && s.c.history; i++) {
        nlist_each e = nlist_of(&b->serial, i);
        while (nlist_next(&e)) stamp_entry(step, s.c.history, i, e.id, e.history);
    }
    Law<3> law = s.law;
    CHECK_RESULT(nlist_sum(&b->serial, &s.how, law_on_host<3>, &law, sums.data()), NLIST_OK);
    return sums;
}

/* What the next step of the world is, into the arrays that the graph reads. */
static void set_step(const Step &s, World *w, uint32_t step)
{
    Input const next = input_at(s.c, w->points, &w->r);
    s.in.pos = next.pos;
    s.in.elements = next.elements;
    s.there.pos.set(s.in.pos);
    s.there.elements.set(s.in.elements);
    Device<uint32_t> const step_of_host(std::vector<uint32_t>(1, step));
    MUST(cudaMemcpy(s.d_step.p, step_of_host.p, sizeof(uint32_t), cudaMemcpyDeviceToDevice));
    MUST(cudaMemset(s.d_sums.p, 0, s.d_sums.count * sizeof(real)));
    MUST(cudaDeviceSynchronize());
}

static void replay(Both *b, const Step &s, World *w, cudaGraphExec_t exec, int steps)
{
    std::string const name = context;
    int32_t built = 0;
    for (uint32_t step = 1; step <= (uint32_t)steps; step++) {
        context = name + ", replay " + std::to_string(step);
        move(w, s.desc.if_moved ? 0.2 * (double)s.desc.skin : 0.2 * radius_of(s.c));
        set_step(s, w, step);
        MUST(cudaGraphLaunch(exec, stream));
        MUST(cudaStreamSynchronize(stream));
        std::vector<real> const sums = serial_step(b, s, step);
        CHECK_RESULT(nlist_cuda_check(&b->gpu, stream), NLIST_OK);
        compare(b, s.c.deterministic != 0, s.in.ordered);
        if (s.c.events) check_witnesses(b);
        std::vector<real> const got = s.d_sums.get();
        CHECK(same_bits(got.data(), sums.data(), sums.size()));
        built = facts_of(b->gpu).filled;
    }
    if (s.desc.if_moved) CHECK(built < steps && "most steps needed no list");
    else CHECK(built >= steps);
}

static void run_graph(const Case &c, int seed, int steps)
{
    World w = {{}, wl_seed((uint64_t)seed), c.dim, 0, true};
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    Both b;
    append(&w, c.n);
    Input in = input_at(c, w.points, &w.r);
    in.desc.width = c.layout == NLIST_STATIC ? 64 : 4;
    in.desc.capacity = 100 * c.n;
    OnDevice there(in);
    Step s(c, &in, &there);
    s.desc.if_moved = c.skin;
    s.how = {3, c.layout == NLIST_STATIC ? NLIST_PER_PARTICLE : (nlist_mode)(seed % 4), 1.0 / (1 << 20)};
    s.law = {11, 0, 0, (real)0.3 / 65536};
    reserve_step(&b, s);
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    enqueue_step(&b, s);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    replay(&b, s, &w, exec, steps);
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
}

/* A time step, captured once, replayed while the particles move: the list is turned over on the device. */
static void test_graph()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.shape != UNIFORM || c.source == PAIRS || !chosen(k + 11, std::max(share, 4), 45)) continue;
        c.masked = c.exclusive = c.radii = 0;
        c.variant = c.variant / 15 * 15; /* UGRID_SORT; tree from where the particles are */
        c.n = std::min(n_max, 90);
        context = "graph: " + name_of(c);
        run_graph(c, (int)k, share > 4 ? 5 : 30);
    }
}

/* Two lists on two streams, their work interleaved. */
static void test_two_streams()
{
    cudaStream_t const before = stream;
    cudaStream_t streams[2];
    for (cudaStream_t &s : streams) MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (size_t k = 0; k < case_count; k += 67 * (size_t)std::min(share, 8)) {
        Case cases[2] = {case_of(k), case_of((k + 200) % case_count)};
        for (Case &c : cases) c.n = size_of(c.shape, k), c.history = c.events = 0;
        Input const in[2] = {input_of(cases[0], 1), input_of(cases[1], 2)};
        OnDevice const there0(in[0]), there1(in[1]);
        const OnDevice *there[2] = {&there0, &there1};
        Both both[2];
        context = "two streams: " + name_of(cases[0]) + "; " + name_of(cases[1]);
        nlist_desc d[2];
        for (int i = 0; i < 2; i++) {
            nlist_desc host = host_desc(in[i]);
            host.grow = 1;
            d[i] = device_desc(in[i], *there[i]);
            CHECK_RESULT(build_serial(&both[i], cases[i].source, host, in[i]), NLIST_OK);
            fit_exactly(both[i].serial, &d[i]);
        }
        for (int round = 0; round < 3; round++)
            for (int i = 0; i < 2; i++) {
                stream = streams[i];
                CHECK_RESULT(build_gpu(&both[i], cases[i].source, d[i], in[i], *there[i]), NLIST_OK);
            }
        for (int i = 0; i < 2; i++) {
            stream = streams[i];
            CHECK_RESULT(nlist_cuda_check(&both[i].gpu, stream), NLIST_OK);
            compare(&both[i], cases[i].deterministic != 0, in[i].ordered);
        }
    }
    for (cudaStream_t &s : streams) MUST(cudaStreamSynchronize(s));
    for (cudaStream_t &s : streams) MUST(cudaStreamDestroy(s));
    stream = before;
}

/* ---- large ones ---- */

/* Many blocks at work at once: what the emulator runs one after another. On a GPU each is built several times, with history. */
static void test_large()
{
#ifdef CUDA_EMU
    int const n = share > 100 ? 200 : share > 16 ? 600 : 3000, rounds = 2;
#else
    int const n = n_max < 1000 || share > 8 ? 20011 : 200003, rounds = 4;
#endif
    for (int k = 0; k < 16; k += share > 100 ? 5 : 1) {
        Case c = {};
        c.layout = (nlist_layout)(k % 4);
        c.half = k / 4 % 2;
        c.deterministic = k / 8;
        c.source = k % 3 ? GRID : TREE;
        c.dim = 3;
        c.periodic = k % 2 * 2;
        c.variant = 45; /* UGRID_SORT, the largest reach */
        c.history = 4;
        c.width = c.layout == NLIST_HYBRID ? 8 : 0;
        c.n = n;
        context = "large: " + name_of(c);
        Input const in = input_of(c, k);
        OnDevice const there(in);
        Both b;
        for (int round = 0; round < rounds; round++) {
            if (!build(&b, c, in, there)) break;
            stamp_all(&b, nullptr, (uint32_t)round + 1);
        }
        check_sum<4>(&b, NLIST_AUTO, 1.0 / (1 << 20), {3, 0, 0, (real)0.3 / 65536});
        check_sum<4>(&b, NLIST_PER_CONTACT, 1.0 / (1 << 20), {3, 0, 0, (real)0.3 / 65536});
    }
}

/* ------------------------------------------------------------------------------------------------
   Main
   ------------------------------------------------------------------------------------------------ */

static const Test tests[] = {
    {"empty", test_empty},             {"few", test_few},                 {"build", test_build},         {"rebuild", test_rebuild},
    {"truth", test_truth},             {"history", test_history},         {"events", test_events},       {"mesh", test_mesh},
    {"sums", test_sums},               {"morton", test_morton}, {"mesh sums", test_mesh_sums},     {"each", test_each},
    {"sum overflow", test_sum_overflow},                                  {"overflow", test_overflow},   {"grow", test_grow},
    {"moved", test_moved},             {"moved nan", test_moved_nan},     {"not finite", test_not_finite},
    {"bad pairs", test_bad_pairs},     {"bad names", test_bad_names},     {"bad period", test_bad_period},
    {"upload", test_upload},           {"reserve", test_reserve},         {"out of memory", test_out_of_memory},
    {"growth", test_growth},           {"exact memory", test_exact_memory},
    {"stream of memory", test_stream_of_memory},                          {"download memory", test_download_memory},
    {"tight memory", test_tight_memory},
    {"unfit remap", test_unfit_remap}, {"unfit layouts", test_unfit_layouts},                              {"unfit first", test_unfit_first},
    {"unfit meshes", test_unfit_meshes},                                  {"unfit dimensions", test_unfit_dimensions},
    {"domain empties", test_domain_empties},                              {"not built", test_not_built},
    {"refused builds", test_refused_builds},                              {"refused layouts", test_refused_layouts},
    {"refused sources", test_refused_sources},                            {"refused meshes", test_refused_meshes},
    {"refused sums", test_refused_sums},
    {"launch errors", test_launch_errors},                                {"graph", test_graph},
    {"two streams", test_two_streams}, {"large", test_large},
};

int main(int argc, char **argv)
{
    bool const small = getenv("TEST_SMALL") != nullptr;
#ifdef CUDA_EMU
    bool const slow = small || emu_options()->blocks > 1; /* blocks take turns: all shared memory is copied at each */
    n_max = emu_options()->blocks > 1 ? 40 : slow ? 80 : 260;
    share = emu_options()->blocks > 1 ? 240 : small ? 40 : 10;
#else
    n_max = small ? 300 : 1000;
    share = small ? 20 : 32; /* within a minute; --share 1 runs every case: many minutes */
#endif
    read_options(argc, argv, {{"--n", &n_max, 8}, {"--share", &share, 1}});
    return run_tests(tests);
}
