/* test_lbvh.cu - tests of the CUDA half of lbvh.h, against the serial half.
   SPDX-License-Identifier: MIT OR Unlicense

       nvcc -std=c++17 -arch=native -O3 -I. tests/cuda/lbvh/test_lbvh.cu -o test_lbvh && ./test_lbvh
       ./test_lbvh --n 5000 --share 4 --only build          most elements of a search; every 4th case; tests whose names hold a word

   The same file runs on the CPU under tests/emu, with fewer elements. Nothing but CUDA and the C++ library is needed.

   What is compared, and how exactly: everything, bit for bit.
   - Trees: nodes, prefixes, masks and codes of a build, a refit, an upload, against those of the serial code.
   - Searches: counts, offsets, rows, pairs in their order, ids and distances of the nearest. The serial half is held against brute
     force in tests/unit/lbvh/test_lbvh.c; here brute force only counts pairs, so that an error that both halves share is seen once more.
   - Walks: a kernel writes down what each iterator met, and the same loop on the CPU has to have met the same. */

#define LBVH_IMPLEMENTATION
#define LBVH_CUDA
#include "lbvh.h"
#define TESTED lbvh
#include "../testing.h"

static int size_max;            /* most elements of a build */

/* ------------------------------------------------------------------------------------------------
   Cases: every kind of element x options of the tree x input x number
   ------------------------------------------------------------------------------------------------ */

enum Form { BOXES, POINTS, FAT_POINTS, SPHERES, TRIANGLES, INDEXED, FORMS };

enum Shape { UNIFORM, CLUSTERED, LATTICE, EQUAL, LINE, CLUMPS, SIZES, DEEP, ZEROS, HUGE_NUMBERS, SHAPES };

struct Case {
    int dim;
    Form form;
    int bits;
    lbvh_builder builder;
    int masked, keep_codes, padded; /* padded: elements are further apart than they are long */
    Shape shape;
    int bounds;     /* 0 and 1: not given, 2: given, 3: given too small */
    int n;
};

/* Number `k` of all combinations of everything but n. */
static Case case_of(size_t k)
{
    Case c = {};
    c.bounds = (int)(scattered(k) % 4);
    c.dim = 2 + (int)(k % 2), k /= 2;
    c.form = (Form)(k % FORMS), k /= FORMS;
    c.bits = k % 2 ? 30 : 63, k /= 2;
    c.builder = k % 2 ? LBVH_SPLIT : LBVH_MERGE, k /= 2;
    c.masked = (int)(k % 2), k /= 2;
    c.keep_codes = (int)(k % 2), k /= 2;
    c.padded = (int)(k % 2), k /= 2;
    c.shape = (Shape)(k % SHAPES);
    if (c.shape == DEEP) c.bounds = 0;
    return c;
}

static const size_t case_count = 2 * FORMS * 32 * SHAPES;

static std::string name_of(const Case &c)
{
    static const char *const forms[] = {"boxes", "points", "points with a radius", "spheres", "triangles", "indexed triangles"};
    static const char *const shapes[] = {"uniform", "clustered", "lattice", "all equal", "on a line", "two far clumps",
                                         "sizes 1:1000", "deep", "zeros of both signs", "huge numbers"};
    char text[250];
    snprintf(text, sizeof text, "n %d, dim %d, %s, %s, %d bits, %s, masks %d, keep_codes %d, padded %d, bounds %d", c.n, c.dim,
             forms[c.form], shapes[c.shape], c.bits, c.builder ? "SPLIT" : "MERGE", c.masked, c.keep_codes, c.padded, c.bounds);
    return text;
}

/* ---- where the elements lie ---- */

struct Element { real c[3], h; }; /* centre, and reach to each side */

/* Codes with a single bit, so that each inner node has one leaf on one side: a chain as long as a code has bits. What is left
   over lies at the origin, where places alone tell the elements apart, and the tree goes on below the chain. */
static Element deep_element(int dim, int bits, int i)
{
    int const axis_bits = bits / dim, chain = axis_bits * dim;
    Element e = {};
    if (i == 0) for (int a = 0; a < dim; a++) e.c[a] = (real)std::ldexp(1.0, axis_bits);
    else if (i <= chain) e.c[i % dim] = (real)std::ldexp(1.0, (i - 1) / dim);
    return e;
}

static Element element_of(const Case &c, int i, wl_random *r)
{
    real const spacing = (real)std::pow((double)std::max(c.n, 1), -1.0 / c.dim), u = (real)wl_u(r);
    int const edge = (int)std::ceil(1 / (double)spacing - 1e-6);
    Element e = {{0, 0, 0}, u * spacing * (real)0.7};
    for (int a = 0, rest = i; a < c.dim; a++, rest /= edge) {
        real const x = (real)wl_u(r), y = (real)wl_u(r);
        switch (c.shape) {
        case CLUSTERED: e.c[a] = (real)(i * (3 + a) % 5) + spacing * (x - y); break;
        case LATTICE: e.c[a] = (real)(rest % edge); break;
        case EQUAL: e.c[a] = (real)0.3 - (real)a; break;
        case LINE: e.c[a] = a == i % 1 ? x : (real)0.25; break;
        case CLUMPS: e.c[a] = i % 2 ? (real)0.001 * x : 1000000 + x; break;
        case ZEROS: e.c[a] = x < (real)0.4 ? (real)-0.0 : x < (real)0.8 ? (real)0 : y; break;
        case HUGE_NUMBERS: e.c[a] = (2 * x - 1) * (lbvh_i_largest() * (real)0.9); break;
        default: e.c[a] = x;
        }
    }
    if (c.shape == DEEP) e = deep_element(c.dim, c.bits, i);
    if (c.shape == LATTICE) e.h = (real)0.5; /* neighbours touch */
    if (c.shape == EQUAL) e.h = (real)0.25;
    if (c.shape == LINE) e.h = 2 * u / (real)std::max(c.n, 1);
    if (c.shape == CLUMPS) e.h = i % 2 ? (real)0.0001 * u : (real)0.05 * u;
    if (c.shape == SIZES) e.h = i % 100 == 7 ? (real)0.25 : (real)0.00025;
    if (c.shape == ZEROS) e.h = 0;
    if (c.shape == HUGE_NUMBERS) e.h = lbvh_i_largest() * (real)0.01 * u;
    return e;
}

/* ---- what the caller has of them ---- */

struct Input {
    lbvh_desc desc;             /* without the pointers */
    int32_t n;
    size_t width, stride;       /* reals of one element (or vertex); bytes from one to the next */
    std::vector<real> data;
    std::vector<int32_t> indices;
    std::vector<uint32_t> masks;
};

/* The pointers of an input: those of the host, or those of the device. */
static lbvh_desc desc_of(const Input &in, const int32_t *indices, const uint32_t *masks)
{
    lbvh_desc d = in.desc;
    d.indices = in.indices.empty() ? nullptr : indices;
    d.masks = in.masks.empty() ? nullptr : masks;
    return d;
}
static lbvh_desc host_desc(const Input &in) { return desc_of(in, in.indices.data(), in.masks.data()); }

struct OnDevice {
    Device<real> data;
    Device<int32_t> indices;
    Device<uint32_t> masks;
    explicit OnDevice(const Input &in) : data(in.data), indices(in.indices), masks(in.masks) {}
};
static lbvh_desc device_desc(const Input &in, const OnDevice &d) { return desc_of(in, d.indices.p, d.masks.p); }

/* The numbers of one element. A triangle has corners in three directions from its centre. */
static void put_element(const Case &c, const Element &e, std::vector<real> *out)
{
    static const real corner[3][3] = {{-1, (real)-0.25, (real)0.5}, {1, -1, (real)-0.75}, {(real)0.125, 1, 1}};
    if (c.form >= TRIANGLES) {
        for (int v = 0; v < 3; v++) for (int a = 0; a < c.dim; a++) out->push_back(e.c[a] + e.h * corner[v][a]);
        return;
    }
    for (int a = 0; a < c.dim; a++) out->push_back(c.form == BOXES ? e.c[a] - e.h : e.c[a]);
    if (c.form == BOXES) for (int a = 0; a < c.dim; a++) out->push_back(e.c[a] + e.h);
    if (c.form == SPHERES) out->push_back(e.h);
}

/* Rows of `width` numbers, three more numbers after each, which nobody may read. */
static void pad(Input *in)
{
    std::vector<real> wide;
    for (size_t k = 0; k < in->data.size(); k += in->width) {
        for (size_t x = 0; x < in->width; x++) wide.push_back(in->data[k + x]);
        for (int x = 0; x < 3; x++) wide.push_back(not_a_number);
    }
    in->data.swap(wide);
    in->stride = (in->width + 3) * sizeof(real);
}

/* Corners become vertices in another order, with the indices that find them. */
static void make_indices(const Case &c, wl_random *r, Input *in)
{
    std::vector<real> const corners = in->data;
    size_t const dim = (size_t)c.dim, m = 3 * (size_t)c.n;
    in->indices.resize(m + 1);
    for (size_t v = 0; v < m; v++) in->indices[v] = (int32_t)v;
    for (size_t v = m; v > 1; v--) std::swap(in->indices[v - 1], in->indices[wl_below(r, (uint32_t)v)]);
    for (size_t v = 0; v < m; v++)
        for (size_t a = 0; a < dim; a++) in->data[(size_t)in->indices[v] * dim + a] = corners[v * dim + a];
    in->desc.vertices = (int32_t)m;
    in->width = dim;
}

/* The bounds of all centres, or their middle half. */
static void give_bounds(const Case &c, const std::vector<Element> &elements, lbvh_desc *d)
{
    for (int a = 0; a < c.dim; a++) {
        real low = elements[0].c[a], high = low;
        for (const Element &e : elements) low = std::min(low, e.c[a]), high = std::max(high, e.c[a]);
        d->min[a] = c.bounds == 2 ? low : low * (real)0.75 + high * (real)0.25;
        d->max[a] = c.bounds == 2 ? high : low * (real)0.25 + high * (real)0.75;
    }
}

static Input input_of(const Case &c, int seed)
{
    static const lbvh_kind kinds[] = {LBVH_BOXES, LBVH_POINTS, LBVH_POINTS, LBVH_SPHERES, LBVH_TRIANGLES, LBVH_TRIANGLES};
    wl_random r = wl_seed((uint64_t)seed);
    std::vector<Element> elements;
    Input in = {};
    for (int i = 0; i < c.n; i++) elements.push_back(element_of(c, i, &r));
    for (int i = c.n; i > 1; i--) std::swap(elements[(size_t)i - 1], elements[wl_below(&r, (uint32_t)i)]);
    in.desc.dim = c.dim;
    in.desc.kind = kinds[c.form];
    in.desc.radius = c.form == FAT_POINTS && c.n > 0 ? elements[0].h : 0;
    in.desc.bits = c.bits;
    in.desc.builder = c.builder;
    in.desc.keep_codes = c.keep_codes;
    in.n = c.n;
    if (c.bounds >= 2 && c.n > 0) give_bounds(c, elements, &in.desc);
    for (const Element &e : elements) put_element(c, e, &in.data);
    in.width = c.n ? in.data.size() / (size_t)c.n : 1;
    if (c.form == INDEXED) make_indices(c, &r, &in);
    if (c.padded && c.n > 0) pad(&in);
    if (c.masked) for (int i = 0; i <= c.n; i++) in.masks.push_back(i % 7 == 3 ? 0 : 1u << wl_below(&r, 32) | 1u << i % 3);
    return in;
}

/* ------------------------------------------------------------------------------------------------
   One case: a tree on the device, the serial one, and the device's one downloaded
   ------------------------------------------------------------------------------------------------ */

struct Trees {
    lbvh_cuda gpu = {};
    lbvh serial = {}, copy = {};
    Trees() = default;
    Trees(const Trees &) = delete;
    Trees &operator=(const Trees &) = delete;
    ~Trees()
    {
        lbvh_cuda_free(&gpu);
        lbvh_free(&serial);
        lbvh_free(&copy);
    }
};

static void check_arrays(const lbvh &serial, const lbvh &copy)
{
    size_t const n = (size_t)serial.n;
    CHECK(copy.n == serial.n && copy.first_leaf == serial.first_leaf);
    CHECK(copy.desc.dim == serial.desc.dim && copy.desc.bits == serial.desc.bits);
    CHECK(copy.desc.kind == (serial.desc.indices ? LBVH_BOXES : serial.desc.kind)); /* indices stay where they were */
    CHECK_RESULT(lbvh_validate(&copy), LBVH_OK);
    if (n == 0 || copy.n != serial.n) return;
    CHECK(same_array(copy.prefix, serial.prefix, n + 1));
    CHECK(same_array(copy.node, serial.node, 2 * n - 1));
    CHECK(same_array(copy.mask, serial.mask, 2 * n - 1));
}

static void check_codes(const lbvh &serial, const lbvh &copy)
{
    if (serial.n > 0 && copy.n == serial.n) CHECK(same_array(copy.code, serial.code, (size_t)serial.n));
}

/* Builds on both sides and compares. The serial code leaves out what is invalid, as CUDA does. */
static bool build(Trees *g, const Input &in, const OnDevice &on_device)
{
    lbvh_desc host = host_desc(in), device = device_desc(in, on_device);
    host.skip_invalid = 1;
    CHECK_RESULT(lbvh_build(&g->serial, &host, in.data.data(), in.stride, in.n), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_build(&g->gpu, &device, on_device.data.p, in.stride, in.n, stream), LBVH_OK);
    CHECK(g->gpu.device.tree.n == in.n);
    CHECK_RESULT(lbvh_cuda_download(&g->copy, &g->gpu, stream), LBVH_OK);
    check_arrays(g->serial, g->copy);
    check_codes(g->serial, g->copy);
    return g->serial.n == in.n && g->copy.n == in.n;
}

/* ---- queries ---- */

/* A place near the tree: anywhere in its box and a little outside, or in the middle of a leaf. */
static void spot_of(const lbvh &tree, int q, wl_random *r, double at[3], double *length)
{
    *length = 0;
    for (int a = 0; a < 3; a++) {
        bool const any = tree.n > 0 && !lbvh_left_out(&tree.node[0]);
        double const low = any ? (double)tree.node[0].min[a] : 0, high = any ? (double)tree.node[0].max[a] : 1;
        at[a] = low + (high - low) * (1.4 * wl_u(r) - 0.2);
        *length = std::max(*length, high - low);
    }
    if (tree.n == 0 || q % 3 != 0) return;
    const lbvh_node &leaf = tree.node[tree.first_leaf + (int32_t)wl_below(r, (uint32_t)tree.n)];
    if (!lbvh_left_out(&leaf)) for (int a = 0; a < 3; a++) at[a] = 0.5 * leaf.min[a] + 0.5 * leaf.max[a];
}

static real clamped(double x) { return (real)std::min(std::max(x, -(double)lbvh_i_largest()), (double)lbvh_i_largest()); }

/* One box of dim numbers twice, and what a box must not be. A third are points, which lie on borders of leaves when `at` does. */
static void put_box(int dim, int q, const double at[3], double half, std::vector<real> *out)
{
    real box[6];
    if (q % 4 == 1) half = 0;
    for (int a = 0; a < dim; a++) {
        box[a] = clamped(at[a] - half);
        box[dim + a] = clamped(at[a] + half);
    }
    if (q % 16 == 5) box[q % dim] = not_a_number;
    if (q % 16 == 6) std::swap(box[0], box[dim]);
    if (q % 16 == 7) for (int a = 0; a < dim; a++) box[a] = -infinity, box[dim + a] = infinity;
    if (q % 16 == 8) box[2 * dim - 1] = infinity;
    out->insert(out->end(), box, box + 2 * dim);
}

static void put_sphere(int dim, int q, const double at[3], double radius, bool with_radius, std::vector<real> *out)
{
    for (int a = 0; a < dim; a++)
        out->push_back(q % 16 == 5 && a == q % dim ? not_a_number : q % 32 == 6 ? infinity : clamped(at[a]));
    if (!with_radius) return;
    out->push_back(q % 16 == 7 ? -1 : q % 16 == 8 ? not_a_number : q % 32 == 9 ? infinity : q % 4 == 1 ? 0 : clamped(radius));
}

/* Queries of all sizes all over the tree; with an odd seed, a crowd of them around one spot, for warps that search together. */
static std::vector<real> queries_of(const lbvh &tree, lbvh_kind kind, int m, int seed)
{
    wl_random r = wl_seed((uint64_t)seed);
    int const dim = tree.desc.dim;
    std::vector<real> out;
    double at[3], middle[3], length;
    spot_of(tree, 0, &r, middle, &length);
    for (int q = 0; q < m; q++) {
        spot_of(tree, q, &r, at, &length);
        if (seed % 2) for (int a = 0; a < 3; a++) at[a] = middle[a] * 0.875 + at[a] * 0.125;
        double const reach = length * (seed % 2 ? 0.1 * wl_u(&r) : 0.3 * std::pow((double)wl_u(&r), 4));
        if (kind == LBVH_BOXES) put_box(dim, q, at, reach, &out);
        else put_sphere(dim, q, at, reach, kind == LBVH_SPHERES, &out);
    }
    return out;
}

/* ---- searches ---- */

struct Lists {
    std::vector<int64_t> offsets;
    std::vector<int32_t> ids;
};

/* A lbvh_queries with pointers of the host, and the same with pointers of the device. */
struct Search {
    lbvh_queries host, device;
    int32_t rows;
};

static Lists serial_lists(const lbvh &tree, const Search &s)
{
    Lists l;
    int64_t needed = 0;
    l.offsets.resize((size_t)s.rows + 1);
    (void)lbvh_overlaps(&tree, &s.host, l.offsets.data(), nullptr, 0, &needed);
    l.ids.resize((size_t)needed);
    CHECK_RESULT(lbvh_overlaps(&tree, &s.host, l.offsets.data(), l.ids.data(), needed, &needed), LBVH_OK);
    return l;
}

/* Room for `capacity` ids: rows that fit whole are there, and nothing is written behind. */
static void check_lists_cut(Trees &g, const Search &s, const Lists &want, size_t capacity)
{
    size_t const needed = want.ids.size();
    Device<int64_t> d_offsets((size_t)s.rows + 2);
    Device<int32_t> d_ids(std::vector<int32_t>(needed + 4, -7));
    int32_t *const to = capacity ? d_ids.p : nullptr;
    CHECK_RESULT(lbvh_cuda_overlaps(&g.gpu, &s.device, d_offsets.p, to, (int64_t)capacity, stream), LBVH_OK);
    std::vector<int64_t> offsets = d_offsets.get();
    std::vector<int32_t> const ids = d_ids.get();
    CHECK(offsets.back() == (int64_t)0xA5A5A5A5A5A5A5A5u && "the end of the offsets");
    offsets.pop_back();
    CHECK(offsets == want.offsets);
    for (size_t k = capacity; k < ids.size(); k++) if (ids[k] != -7) { CHECK(ids[k] == -7 && "beyond the capacity"); break; }
    if (offsets != want.offsets) return;
    int64_t whole = 0; /* rows follow each other: those that fit are one piece */
    for (int64_t end : offsets) if (end <= (int64_t)capacity) whole = end;
    CHECK(std::equal(want.ids.begin(), want.ids.begin() + whole, ids.begin()));
}

static void check_search(Trees &g, const Search &s)
{
    Lists const want = serial_lists(g.serial, s);
    size_t const needed = want.ids.size();
    std::vector<int32_t> counts((size_t)s.rows + 1, (int32_t)0xA5A5A5A5u);
    Device<int32_t> d_counts((size_t)s.rows + 1);
    CHECK_RESULT(lbvh_count_overlaps(&g.serial, &s.host, counts.data()), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_count_overlaps(&g.gpu, &s.device, d_counts.p, stream), LBVH_OK);
    CHECK(d_counts.get() == counts);
    check_lists_cut(g, s, want, needed);
    if (needed > 0) check_lists_cut(g, s, want, needed - 1);
    if (needed > 2) check_lists_cut(g, s, want, needed / 2);
    check_lists_cut(g, s, want, 0);
    if (needed > 0) check_lists_cut(g, s, want, needed + 3);
}

static std::vector<uint32_t> filters_of(int m)
{
    std::vector<uint32_t> filters((size_t)m + 1);
    for (int q = 0; q < m; q++) filters[(size_t)q] = q % 5 == 2 ? 0 : q % 5 == 4 ? 0xFFFFFFFFu : 3u << q % 31;
    return filters;
}

static void name_search(const char *of, int kind, int flags, int filter)
{
    char text[120];
    snprintf(text, sizeof text, ", %s, kind %d, flags %d, filter %d", of, kind, flags, filter);
    context += text;
}

/* filter: 0 none, 1 one for all, 2 one for each. */
static void check_own(Trees &g, lbvh_kind kind, real radius, int flags, int filter)
{
    std::vector<uint32_t> const filters = filters_of(g.serial.n);
    Device<uint32_t> d_filters(filters);
    Search s = {};
    std::string const before = context;
    name_search("own elements", kind, flags, filter);
    s.rows = g.serial.n;
    s.host.kind = kind;
    s.host.radius = radius;
    s.host.flags = flags;
    s.host.filter = filter == 1 ? 6 : 0;
    s.device = s.host;
    if (filter == 2) s.host.filters = filters.data(), s.device.filters = d_filters.p;
    check_search(g, s);
    context = before;
}

static const lbvh_kind query_kinds[3] = {LBVH_BOXES, LBVH_POINTS, LBVH_SPHERES};

static void check_given(Trees &g, lbvh_kind kind, int m, real radius, int flags, int filter, bool padded, int seed)
{
    std::vector<uint32_t> const filters = filters_of(m);
    Input in = {};
    in.data = queries_of(g.serial, kind, m, seed);
    in.width = m ? in.data.size() / (size_t)m : 1;
    if (padded && m) pad(&in);
    if (in.data.empty()) in.data.push_back(0);
    Device<uint32_t> d_filters(filters);
    Device<real> d_data(in.data);
    Search s = {};
    std::string const before = context;
    name_search((std::to_string(m) + " queries").c_str(), kind, flags, filter);
    s.rows = s.host.n = m;
    s.host.kind = kind;
    s.host.stride = in.stride;
    s.host.radius = radius;
    s.host.flags = flags;
    s.host.filter = filter == 1 ? 6 : 0;
    s.device = s.host;
    s.host.data = in.data.data(), s.device.data = d_data.p;
    if (filter == 2) s.host.filters = filters.data(), s.device.filters = d_filters.p;
    check_search(g, s);
    context = before;
}

/* ---- pairs ---- */

static std::vector<int32_t> serial_pairs(const lbvh &tree)
{
    int64_t needed = 0;
    CHECK_RESULT(lbvh_count_pairs(&tree, &needed), LBVH_OK);
    std::vector<int32_t> pairs(2 * (size_t)needed);
    CHECK_RESULT(lbvh_pairs(&tree, pairs.data(), needed, &needed), LBVH_OK);
    return pairs;
}

/* How many pairs there are, from boxes and masks alone: an element left out has a box that meets nothing. */
static int64_t brute_pairs(const Input &in)
{
    lbvh_desc d = host_desc(in);
    size_t const width = 2 * (size_t)d.dim;
    std::vector<real> boxes((size_t)in.n * width + 1);
    int64_t pairs = 0;
    d.skip_invalid = 1;
    CHECK_RESULT(lbvh_boxes(&d, in.data.data(), in.stride, in.n, boxes.data(), nullptr), LBVH_OK);
    for (int32_t i = 0; i < in.n; i++)
        for (int32_t j = 0; j < i; j++) {
            const real *p = &boxes[(size_t)i * width], *q = &boxes[(size_t)j * width];
            bool meet = in.masks.empty() || (in.masks[(size_t)i] & in.masks[(size_t)j]);
            for (int a = 0; a < d.dim; a++) meet = meet && p[a] <= q[d.dim + a] && q[a] <= p[d.dim + a];
            pairs += meet;
        }
    return pairs;
}

namespace {

/* Writes down the pairs that it is given, in any order. */
struct Collect {
    int32_t *pairs;
    unsigned long long *found;
    unsigned long long room;
    __device__ void operator()(int32_t i, int32_t j) const
    {
        unsigned long long const at = atomicAdd(found, 1ull);
        if (at >= room) return;
        pairs[2 * at] = i;
        pairs[2 * at + 1] = j;
    }
};

} /* namespace */

static std::vector<std::pair<int32_t, int32_t>> as_set(const std::vector<int32_t> &pairs)
{
    std::vector<std::pair<int32_t, int32_t>> set;
    for (size_t p = 0; p + 1 < pairs.size(); p += 2) set.push_back(std::minmax({pairs[p], pairs[p + 1]}));
    std::sort(set.begin(), set.end());
    return set;
}

static void check_each_pair(Trees &g, const std::vector<int32_t> &want)
{
    Device<int32_t> d_pairs(want.size());
    Device<unsigned long long> d_found(1, 0);
    Collect const collect = {d_pairs.p, d_found.p, want.size() / 2};
    CHECK_RESULT(lbvh_cuda_each_pair(&g.gpu, collect, stream), LBVH_OK);
    CHECK(d_found.get()[0] == want.size() / 2);
    CHECK(as_set(d_pairs.get()) == as_set(want));
}

static void check_pairs_cut(Trees &g, const std::vector<int32_t> &want, size_t capacity)
{
    Device<int32_t> d_pairs(std::vector<int32_t>(want.size() + 6, -7));
    Device<int64_t> d_needed(2);
    CHECK_RESULT(lbvh_cuda_pairs(&g.gpu, capacity ? d_pairs.p : nullptr, (int64_t)capacity, d_needed.p, stream), LBVH_OK);
    std::vector<int32_t> const got = d_pairs.get();
    std::vector<int64_t> const needed = d_needed.get();
    size_t const written = std::min(2 * capacity, want.size());
    CHECK(needed[0] == (int64_t)(want.size() / 2) && needed[1] == (int64_t)0xA5A5A5A5A5A5A5A5u);
    CHECK(std::equal(got.begin(), got.begin() + (ptrdiff_t)written, want.begin()));
    CHECK((size_t)std::count(got.begin() + (ptrdiff_t)written, got.end(), -7) == got.size() - written && "beyond the capacity");
}

static void check_pairs(Trees &g, const Input &in)
{
    std::vector<int32_t> const want = serial_pairs(g.serial);
    size_t const needed = want.size() / 2;
    Device<int64_t> d_found(2);
    CHECK_RESULT(lbvh_cuda_count_pairs(&g.gpu, d_found.p, stream), LBVH_OK);
    CHECK(d_found.get()[0] == (int64_t)needed && d_found.get()[1] == (int64_t)0xA5A5A5A5A5A5A5A5u);
    if (in.n <= 600) CHECK((int64_t)needed == brute_pairs(in));
    check_pairs_cut(g, want, needed);
    if (needed > 0) check_pairs_cut(g, want, needed - 1);
    if (needed > 2) check_pairs_cut(g, want, needed / 2);
    check_pairs_cut(g, want, 0);
    check_pairs_cut(g, want, needed + 3);
    check_each_pair(g, want);
}

/* ---- nearest ---- */

struct Nearest {
    std::vector<int32_t> ids, found;
    std::vector<real> distances2;
};

/* Unused entries as lbvh_cuda_nearest has them. */
static Nearest serial_nearest(const lbvh &tree, const Input &points, int32_t m, int32_t k, real reach)
{
    Nearest near = {std::vector<int32_t>((size_t)m * (size_t)k + 1, -1), std::vector<int32_t>((size_t)m + 1),
                    std::vector<real>((size_t)m * (size_t)k + 1, infinity)};
    for (int32_t q = 0; q < m; q++) {
        size_t const row = (size_t)q * (size_t)k;
        const real *p = lbvh_i_at(points.data.data(), points.stride ? points.stride : points.width * sizeof(real), q);
        int32_t *const found = &near.found[(size_t)q];
        CHECK_RESULT(lbvh_nearest(&tree, p, k, reach, nullptr, nullptr, &near.ids[row], &near.distances2[row], found), LBVH_OK);
    }
    memset(&near.ids.back(), 0xA5, sizeof(int32_t));
    memset(&near.distances2.back(), 0xA5, sizeof(real));
    memset(&near.found.back(), 0xA5, sizeof(int32_t));
    return near;
}

static void check_nearest(Trees &g, int32_t m, int32_t k, real reach, int flags, bool padded, int seed)
{
    Input in = {};
    std::string const before = context;
    name_search((std::to_string(k) + " nearest, reach " + std::to_string(reach)).c_str(), m, flags, 0);
    in.data = queries_of(g.serial, LBVH_POINTS, m, seed);
    in.width = (size_t)g.serial.desc.dim;
    if (padded && m) pad(&in);
    if (in.data.empty()) in.data.push_back(0);
    Nearest const want = serial_nearest(g.serial, in, m, k, reach);
    Device<real> d_points(in.data), d_distances2(want.distances2.size());
    Device<int32_t> d_ids(want.ids.size()), d_found(want.found.size());
    CHECK_RESULT(lbvh_cuda_nearest(&g.gpu, d_points.p, in.stride, m, k, reach, flags, d_ids.p, d_distances2.p, d_found.p, stream),
                 LBVH_OK);
    CHECK(d_found.get() == want.found);
    CHECK(d_ids.get() == want.ids);
    CHECK(same_bits(d_distances2.get(), want.distances2));
    context = before;
}

/* ---- walks in a kernel of one's own ---- */

enum { WALK_BOX, WALK_POINT, WALK_SPHERE, WALK_LATER, WALK_NEAR, WALK_NEAREST, WALK_CLOSEST, WALK_RAY, WALK_HIT, WALKS };

enum { ROOM = 24, KEEP = 6 };

/* What one walk met. Both sides start from the same bytes, so that whole rows can be compared. */
struct Row {
    int32_t count, found, closest, feature;
    int32_t id[ROOM], place[ROOM], kept[KEEP];
    real value[ROOM], distance2[KEEP], hit[3], q[3];
};

/* What the walks are made from: a box of 2 dim numbers, a sphere of dim + 1, a direction of dim for each row. */
struct Probes {
    lbvh_desc desc;     /* with the indices of this side */
    const real *boxes, *spheres, *directions;
    const real *data;   /* of the triangles */
    size_t stride;
    uint32_t filter;
    int32_t rows;
};

static __host__ __device__ void note(Row *row, int32_t id, int32_t place, real value)
{
    if (row->count < ROOM) {
        row->id[row->count] = id;
        row->place[row->count] = place;
        row->value[row->count] = value;
    }
    row->count++;
}

static __host__ __device__ void note_overlaps(lbvh_overlap o, uint32_t filter, Row *row)
{
    o.filter = filter;
    while (lbvh_next(&o)) note(row, o.id, o.place, 0);
}

/* All that is in reach; or only the nearest, by shrinking the reach. */
static __host__ __device__ void note_near(lbvh_near walk, uint32_t filter, bool shrink, Row *row)
{
    walk.filter = filter;
    row->found = 0;
    while (lbvh_next_near(&walk)) {
        note(row, walk.id, walk.place, walk.distance2);
        if (!shrink) continue;
        walk.reach2 = lbvh_keep_nearest(row->kept, row->distance2, KEEP, &row->found, walk.reach2, walk.id, walk.distance2);
    }
}

static __host__ __device__ void note_ray(lbvh_ray ray, uint32_t filter, Row *row)
{
    ray.filter = filter;
    while (lbvh_next_ray(&ray)) note(row, ray.id, ray.place, ray.t);
}

/* The first triangle on the ray. */
static __host__ __device__ void note_hit(lbvh_ray ray, const Probes &probes, const real *origin, const real *direction, Row *row)
{
    row->closest = -1;
    while (lbvh_next_ray(&ray)) {
        const real *corner[3];
        real t, u, v;
        if (!lbvh_triangle(&probes.desc, probes.data, probes.stride, ray.id, corner)) continue;
        note(row, ray.id, ray.place, ray.t);
        if (!lbvh_ray_triangle(origin, direction, corner[0], corner[1], corner[2], &t, &u, &v)) continue;
        if (!(t >= 0 && t < ray.t_max)) continue;
        ray.t_max = row->hit[0] = t;
        row->hit[1] = u;
        row->hit[2] = v;
        row->closest = ray.id;
    }
}

/* The triangle nearest to p, and the point on it. */
static __host__ __device__ void note_closest(lbvh_near walk, const Probes &probes, const real *p, Row *row)
{
    row->closest = -1;
    while (lbvh_next_near(&walk)) {
        const real *corner[3];
        real q[3];
        if (!lbvh_triangle(&probes.desc, probes.data, probes.stride, walk.id, corner)) continue;
        note(row, walk.id, walk.place, walk.distance2);
        lbvh_feature const feature = lbvh_closest_on_triangle(p, corner[0], corner[1], corner[2], q);
        real const d2 = lbvh_i_square(q[0] - p[0], q[1] - p[1], q[2] - p[2]);
        if (!(d2 < walk.reach2)) continue;
        walk.reach2 = d2;
        row->closest = walk.id;
        row->feature = (int32_t)feature;
        for (int a = 0; a < 3; a++) row->q[a] = q[a];
    }
}

/* The walks of one row begin here. */
struct Start {
    const real *box, *sphere, *along;
    real reach, t_max;
    uint32_t filter;
};

static __host__ __device__ Start start_of(const Probes &probes, int kind, int32_t k)
{
    int const dim = probes.desc.dim;
    Start s = {probes.boxes + k * 2 * dim, probes.spheres + k * (dim + 1), probes.directions + k * dim, 0, 0, probes.filter};
    s.reach = kind == WALK_NEAR ? s.sphere[dim] : lbvh_i_infinity();
    s.t_max = kind == WALK_RAY && k % 3 == 0 ? (real)0.75 : lbvh_i_infinity();
    return s;
}

static __host__ __device__ void note_near_kind(int kind, const lbvh_near &walk, const Probes &probes, const Start &s, Row *row)
{
    if (kind == WALK_CLOSEST) note_closest(walk, probes, s.sphere, row);
    else note_near(walk, s.filter, kind == WALK_NEAREST, row);
}

static __host__ __device__ void note_ray_kind(int kind, const lbvh_ray &ray, const Probes &probes, const Start &s, Row *row)
{
    if (kind == WALK_HIT) note_hit(ray, probes, s.sphere, s.along, row);
    else note_ray(ray, s.filter, row);
}

namespace {

__global__ void walk_kernel(__grid_constant__ const lbvh_device device, int kind, Probes probes, Row *rows)
{
    int32_t const k = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (k >= probes.rows) return;
    Start const s = start_of(probes, kind, k);
    Row *const row = &rows[k];
    row->count = 0;
    if (kind == WALK_BOX) note_overlaps(lbvh_overlap_box(&device, s.box), s.filter, row);
    else if (kind == WALK_POINT) note_overlaps(lbvh_overlap_point(&device, s.sphere), s.filter, row);
    else if (kind == WALK_SPHERE) note_overlaps(lbvh_overlap_sphere(&device, s.sphere, s.sphere[probes.desc.dim]), s.filter, row);
    else if (kind == WALK_LATER) note_overlaps(lbvh_overlap_later(&device, k), s.filter, row);
    else if (kind >= WALK_RAY) note_ray_kind(kind, lbvh_ray_cast(&device, s.sphere, s.along, s.t_max), probes, s, row);
    else note_near_kind(kind, lbvh_near_point(&device, s.sphere, s.reach), probes, s, row);
}

} /* namespace */

/* The kernel's text once more: the walks of a lbvh_device exist on the device only. */
static void walk(const lbvh *tree, int kind, const Probes &probes, int32_t k, Row *row)
{
    Start const s = start_of(probes, kind, k);
    row->count = 0;
    if (kind == WALK_BOX) note_overlaps(lbvh_overlap_box(tree, s.box), s.filter, row);
    else if (kind == WALK_POINT) note_overlaps(lbvh_overlap_point(tree, s.sphere), s.filter, row);
    else if (kind == WALK_SPHERE) note_overlaps(lbvh_overlap_sphere(tree, s.sphere, s.sphere[probes.desc.dim]), s.filter, row);
    else if (kind == WALK_LATER) note_overlaps(lbvh_overlap_later(tree, k), s.filter, row);
    else if (kind >= WALK_RAY) note_ray_kind(kind, lbvh_ray_cast(tree, s.sphere, s.along, s.t_max), probes, s, row);
    else note_near_kind(kind, lbvh_near_point(tree, s.sphere, s.reach), probes, s, row);
}

/* Along an axis, along a diagonal, anywhere; zero and NaN. */
static std::vector<real> directions_of(int dim, int m)
{
    wl_random r = wl_seed(99);
    std::vector<real> out;
    for (int q = 0; q < m; q++)
        for (int a = 0; a < dim; a++) {
            real const u = 2 * (real)wl_u(&r) - 1;
            if (q % 16 == 10) out.push_back(0);
            else if (q % 32 == 11) out.push_back(not_a_number);
            else if (q % 4 == 0) out.push_back(a == q / 4 % dim ? (q % 8 ? (real)-1 : (real)1) : q % 3 ? (real)0 : (real)-0.0);
            else if (q % 4 == 1) out.push_back(q >> a & 4 ? (real)1 : (real)-1);
            else out.push_back(u * 3);
        }
    return out;
}

static void check_walk(Trees &g, int kind, const Probes &host, const Probes &device)
{
    std::vector<Row> want((size_t)host.rows);
    Device<Row> d_rows((size_t)host.rows);
    std::string const before = context;
    context += ", walk " + std::to_string(kind) + ", filter " + std::to_string(host.filter);
    if (host.rows > 0) memset((void *)want.data(), 0xA5, want.size() * sizeof(Row));
    for (int32_t k = 0; k < host.rows; k++) walk(&g.serial, kind, host, k, &want[(size_t)k]);
    launch(host.rows, walk_kernel, g.gpu.device, kind, device, d_rows.p);
    CHECK(same_bits(d_rows.get(), want));
    context = before;
}

static void check_walks(Trees &g, const Input &in, const OnDevice &on_device)
{
    int const dim = in.desc.dim, m = 70;
    std::vector<real> const boxes = queries_of(g.serial, LBVH_BOXES, m, 5), spheres = queries_of(g.serial, LBVH_SPHERES, m, 6),
                            directions = directions_of(dim, m);
    Device<real> d_boxes(boxes), d_spheres(spheres), d_directions(directions);
    size_t const stride = in.stride ? in.stride : in.width * sizeof(real);
    Probes host = {host_desc(in), boxes.data(), spheres.data(), directions.data(), in.data.data(), stride, 0xFFFFFFFFu, m};
    Probes device = {device_desc(in, on_device), d_boxes.p, d_spheres.p, d_directions.p, on_device.data.p, stride, 0xFFFFFFFFu, m};
    for (int kind = 0; kind < WALKS; kind++) {
        if ((kind == WALK_HIT || kind == WALK_CLOSEST) && (in.desc.kind != LBVH_TRIANGLES || dim != 3)) continue;
        host.rows = device.rows = kind == WALK_LATER ? std::min(g.serial.n, 300) : m;
        host.filter = device.filter = kind % 2 ? 0xFFFFFFFFu : 0x15u;
        check_walk(g, kind, host, device);
    }
}

/* ---- boxes ---- */

static void check_boxes(Trees &g, const Input &in, const OnDevice &on_device)
{
    lbvh_desc host = host_desc(in), device = device_desc(in, on_device);
    std::vector<real> want(2 * (size_t)in.desc.dim * (size_t)in.n + 1);
    Device<real> d_boxes(want.size());
    host.skip_invalid = 1;
    CHECK_RESULT(lbvh_boxes(&host, in.data.data(), in.stride, in.n, want.data(), nullptr), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_boxes(&g.gpu, &device, on_device.data.p, in.stride, in.n, d_boxes.p, stream), LBVH_OK);
    memset(&want.back(), 0xA5, sizeof(real));
    CHECK(same_bits(d_boxes.get(), want));
}

/* ------------------------------------------------------------------------------------------------
   Tests
   ------------------------------------------------------------------------------------------------ */

/* Numbers of elements around everything that a kernel might do 32, 256 or 512 of at a time. */
static std::vector<int> sizes()
{
    static const int all[] = {0, 1, 2, 3, 31, 32, 33, 127, 255, 256, 257, 511, 512, 513, 767, 1000, 1024, 1025, 2049, 4097};
    std::vector<int> list;
    for (int n : all) if (n <= size_max) list.push_back(n);
    list.push_back(std::min(n_max, size_max));
    return list;
}

static void test_build()
{
    std::vector<int> const list = sizes();
    for (size_t k = 0; k < case_count * list.size(); k++) {
        if (!chosen(k, 10 * share, 1000)) continue;
        Case c = case_of(k / list.size());
        c.n = list[k % list.size()];
        context = "build: " + name_of(c);
        Input const in = input_of(c, (int)k);
        OnDevice const on_device(in);
        Trees g;
        if (!build(&g, in, on_device)) continue;
        CHECK_RESULT(lbvh_cuda_check(&g.gpu, stream), LBVH_OK);
        CHECK(g.gpu.device.tree.bad_id == -1 && g.gpu.device.tree.cuda_error == 0);
    }
}

/* The smallest trees, all of their options: what is left to chance above is all here. */
static void test_few()
{
    for (size_t k = 0; k < case_count; k++)
        for (int n = 0; n < 4; n++) {
            Case c = case_of(k);
            c.n = n;
            if (!chosen(4 * k + (size_t)n, 20 * share, 300)) continue;
            context = "few: " + name_of(c);
            Input const in = input_of(c, (int)k);
            OnDevice const on_device(in);
            Trees g;
            if (!build(&g, in, on_device)) continue;
            check_pairs(g, in);
            check_walks(g, in, on_device);
            check_boxes(g, in, on_device);
            check_own(g, k % 2 ? LBVH_BOXES : LBVH_POINTS, (real)0.3, (int)(scattered(k) % 8), (int)(k % 3));
            check_given(g, query_kinds[k % 3], (int)(k % 4), (real)0.3, k % 2 ? LBVH_SORTED : 0, (int)(k / 2 % 3), false, 3);
            check_nearest(g, (int)(k % 3), 1 + (int)(k % 4), infinity, k % 5 ? 0 : LBVH_SORTED, k % 2, 4);
        }
    lbvh_cuda gpu = {};
    CHECK_RESULT(lbvh_cuda_build(&gpu, nullptr, nullptr, 0, 0, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_check(&gpu, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_refit(&gpu, nullptr, 0, stream), LBVH_OK);
    lbvh_cuda_free(&gpu);
    lbvh_cuda_free(&gpu);
    lbvh_cuda_free(nullptr);
}

/* Elements for a search: where all lie on each other, all are pairs. */
static int search_size(Shape shape, size_t k)
{
    int const list[] = {n_max, n_max / 2 + 1, 257, 40, n_max / 3, 129};
    int const n = list[scattered(k + 7) % 6];
    return shape == EQUAL || shape == DEEP || shape == ZEROS || shape == HUGE_NUMBERS ? std::min(n, 150) : n;
}

/* A radius that reaches a few neighbours. */
static real radius_of(const lbvh &tree)
{
    double length = 0;
    for (int a = 0; a < 3 && tree.n > 0; a++) length = std::max(length, (double)tree.node[0].max[a] - (double)tree.node[0].min[a]);
    return clamped(length * std::pow((double)std::max(tree.n, 1), -1.0 / tree.desc.dim) * 0.8);
}

static void test_searches()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (!chosen(k, 6 * share, 500)) continue;
        c.n = search_size(c.shape, k);
        context = "searches: " + name_of(c);
        Input const in = input_of(c, (int)k);
        OnDevice const on_device(in);
        Trees g;
        if (!build(&g, in, on_device)) continue;
        real const radius = radius_of(g.serial);
        size_t const s = scattered(k);
        check_pairs(g, in);
        check_walks(g, in, on_device);
        check_boxes(g, in, on_device);
        for (size_t t = 0; t < 3; t++) {
            int const filter = (int)((s / 8 + t) % 3), sorted = (s / 4 + t) % 2 ? LBVH_SORTED : 0;
            check_own(g, (s + t) % 3 ? LBVH_BOXES : LBVH_POINTS, radius, (int)((s + 3 * t) % 8), filter);
            check_given(g, query_kinds[t], (s + t) % 2 ? 300 : 33, radius, sorted, filter, (s / 16 + t) % 2, (int)(k + s / 32 + t));
        }
    }
}

static void test_nearest()
{
    static const int32_t ks[] = {1, 8, 33, 2, 0};
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.keep_codes || !chosen(k + 1, 4 * share, 200)) continue;
        c.n = search_size(c.shape, k);
        context = "nearest: " + name_of(c);
        Input const in = input_of(c, (int)k);
        OnDevice const on_device(in);
        Trees g;
        if (!build(&g, in, on_device)) continue;
        size_t const s = scattered(k);
        real const radius = radius_of(g.serial);
        check_nearest(g, 70, ks[s % 5], infinity, s % 2 ? LBVH_SORTED : 0, s / 2 % 2, (int)k);
        check_nearest(g, 130, ks[(s + 1) % 5], radius, s % 2 ? 0 : LBVH_SORTED, s / 4 % 2, (int)k);
        check_nearest(g, 33, 8, 0, 0, false, (int)k);
        check_nearest(g, 3, c.n + 5, s % 2 ? infinity : radius, 0, false, (int)k); /* more than there are */
    }
}

/* The chain of codes is there, and longer than a stack of 64 could follow. */
static void test_deep()
{
    for (int dim = 2; dim <= 3; dim++)
        for (int builder = 0; builder < 2; builder++) {
            Case const c = {dim, BOXES, 63, (lbvh_builder)builder, 0, 0, 0, DEEP, 0, 300};
            Input const in = input_of(c, 1);
            OnDevice const on_device(in);
            Trees g;
            lbvh_quality quality = {};
            context = "deep: " + name_of(c);
            if (!build(&g, in, on_device)) continue;
            CHECK_RESULT(lbvh_measure(&g.copy, &quality), LBVH_OK);
            CHECK(quality.depth > 64);
            check_walks(g, in, on_device);
            check_nearest(g, 40, 8, infinity, 0, false, 1);
        }
}

/* ---- invalid elements ---- */

enum { BAD_NAN, BAD_INFINITY, BAD_OVERFLOW, BAD_ORDER, BAD_INDEX_LOW, BAD_INDEX_HIGH, BADS };

/* Spoils element i. Returns what lbvh_cuda_check is to say, LBVH_OK when this kind cannot be bad in this way. */
static lbvh_result spoil(Input *in, int32_t i, int bad)
{
    size_t const step = in->stride ? in->stride / sizeof(real) : in->width, dim = (size_t)in->desc.dim;
    size_t const row = in->indices.empty() ? (size_t)i : (size_t)in->indices[3 * (size_t)i + (size_t)i % 3];
    real *x = &in->data[row * step];
    if (bad == BAD_INDEX_LOW || bad == BAD_INDEX_HIGH) {
        if (in->indices.empty()) return LBVH_OK;
        in->indices[3 * (size_t)i + (size_t)i % 3] = bad == BAD_INDEX_LOW ? -1 - i % 2 * INT32_MAX : in->desc.vertices + i % 2;
        return LBVH_BAD_INDEX;
    }
    if (bad == BAD_NAN) return x[(size_t)i % in->width] = not_a_number, LBVH_NOT_FINITE;
    if (bad == BAD_INFINITY) return x[(size_t)i % in->width] = i % 2 ? infinity : -infinity, LBVH_NOT_FINITE;
    if (bad == BAD_OVERFLOW && in->desc.kind == LBVH_SPHERES) return x[0] = x[dim] = lbvh_i_largest(), LBVH_NOT_FINITE;
    if (bad == BAD_ORDER && in->desc.kind == LBVH_SPHERES) return x[dim] = -1, LBVH_INVERTED;
    if (bad == BAD_ORDER && in->desc.kind == LBVH_BOXES) return x[(size_t)i % dim] = x[dim + (size_t)i % dim] + 1, LBVH_INVERTED;
    return LBVH_OK;
}

/* Spoils every `every`th element from `from` on. Returns the first of them, -1 when none could be. */
static int32_t spoil_some(Input *in, int bad, int every, int from, lbvh_result *result)
{
    int32_t first = -1;
    *result = LBVH_OK;
    for (int32_t i = from; i < in->n; i += every) {
        lbvh_result const one = spoil(in, i, bad);
        if (one == LBVH_OK || first >= 0) continue;
        *result = one;
        first = i;
    }
    return first;
}

/* lbvh_cuda_check tells the first bad element, as the serial code would; and again when asked again. */
static void check_told(Trees &g, const Input &in)
{
    lbvh_desc d = host_desc(in);
    std::vector<real> boxes(2 * (size_t)in.desc.dim * (size_t)in.n + 1);
    int32_t bad_id;
    d.skip_invalid = 0;
    lbvh_result const want = lbvh_boxes(&d, in.data.data(), in.stride, in.n, boxes.data(), &bad_id);
    CHECK(g.serial.bad_id == bad_id);
    for (int again = 0; again < 2; again++) {
        CHECK_RESULT(lbvh_cuda_check(&g.gpu, stream), want);
        CHECK(g.gpu.device.tree.bad_id == bad_id);
    }
}

/* Refits with elements of which others are bad, and with good ones: what was left out comes back. */
static void check_bad_refits(Trees &g, const Case &c, OnDevice *on_device, size_t k)
{
    lbvh_desc const desc = g.serial.desc;
    lbvh_result result;
    for (int step = 0; step < 2; step++) {
        Input in = input_of(c, (int)k + 1);
        if (step == 0) (void)spoil_some(&in, (int)(k % 2), 5, 1 + (int)(k % 3), &result);
        Device<real> d_data(in.data);
        if (!in.indices.empty()) { /* they lie where the build found them */
            on_device->indices.set(in.indices);
            g.serial.desc.indices = in.indices.data();
        }
        in.desc.radius = desc.radius;
        CHECK_RESULT(lbvh_refit(&g.serial, in.data.data(), in.stride), LBVH_OK);
        CHECK_RESULT(lbvh_cuda_refit(&g.gpu, d_data.p, in.stride, stream), LBVH_OK);
        check_told(g, in);
        CHECK_RESULT(lbvh_cuda_download(&g.copy, &g.gpu, stream), LBVH_OK);
        check_arrays(g.serial, g.copy);
        g.serial.desc = desc;
    }
}

static void test_invalid()
{
    for (size_t k = 0; k < case_count * BADS; k++) {
        if (!chosen(k, 50 * share, 1500)) continue;
        Case c = case_of(k / BADS);
        int const bad = (int)(k % BADS);
        lbvh_result result, other;
        c.n = search_size(c.shape, k);
        context = "invalid, sort " + std::to_string(bad) + ": " + name_of(c);
        Input in = input_of(c, (int)k);
        in.desc.skip_invalid = (int)(k % 2);
        bool const all = k % 3 == 0;
        int32_t const first = spoil_some(&in, bad, all ? 1 : 7, all ? 0 : (int)(scattered(k) % 30), &result);
        if (k % 4 == 1) (void)spoil_some(&in, (bad + 3) % BADS, 11, 2, &other);
        OnDevice on_device(in);
        Trees g;
        if (!build(&g, in, on_device)) continue;
        check_told(g, in);
        if (k % 4 != 1) CHECK(g.gpu.device.tree.bad_id == first && lbvh_cuda_check(&g.gpu, stream) == result);
        check_pairs(g, in);
        check_own(g, k % 2 ? LBVH_BOXES : LBVH_POINTS, 1, (int)(scattered(k) % 8), 0);
        check_given(g, LBVH_BOXES, 40, 0, 0, 0, false, 3);
        check_nearest(g, 40, 8, infinity, 0, false, 4);
        check_boxes(g, in, on_device);
        check_bad_refits(g, c, &on_device, k);
    }
}

/* ---- again and again ---- */

/* One object, rebuilt with more, fewer, and other kinds of elements: nothing of the last build shines through. */
static void test_rebuild()
{
    Trees g;
    wl_random r = wl_seed(77);
    for (int step = 0; step < 1200 / share; step++) {
        Case c = case_of(wl_below(&r, (uint32_t)case_count));
        c.n = (int)wl_below(&r, (uint32_t)(step % 10 == 3 ? size_max : n_max));
        if (step % 13 == 5) c.n = step % 2;
        context = "rebuild, step " + std::to_string(step) + ": " + name_of(c);
        Input const in = input_of(c, step);
        OnDevice const on_device(in);
        if (!build(&g, in, on_device)) continue;
        if (c.n < 200) {
            check_pairs(g, in);
            check_own(g, LBVH_BOXES, 0, (int)wl_below(&r, 8), (int)wl_below(&r, 3));
            check_given(g, LBVH_SPHERES, (int)wl_below(&r, 500), 0, 0, 0, step % 2, step);
        }
        if (step % 50 == 49) lbvh_cuda_free(&g.gpu);
    }
}

/* The same tree around elements that have moved; and again, and back. */
static void test_refit()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (!chosen(k + 2, 6 * share, 400)) continue;
        std::vector<int> const list = sizes();
        c.n = list[scattered(k) % list.size()];
        context = "refit: " + name_of(c);
        Input const in = input_of(c, (int)k);
        OnDevice const on_device(in);
        Trees g;
        if (!build(&g, in, on_device)) continue;
        for (int step = 0; step < 3; step++) {
            Input moved = input_of(c, step == 2 ? (int)k : (int)k + 1000 * (step + 1));
            if (c.form == INDEXED) { /* the vertices move, and the triangles keep their indices */
                for (real &x : moved.data = in.data) x = x / (real)(step + 2) + (real)step;
            }
            Device<real> d_data(moved.data);
            CHECK_RESULT(lbvh_refit(&g.serial, moved.data.data(), moved.stride), LBVH_OK);
            CHECK_RESULT(lbvh_cuda_refit(&g.gpu, d_data.p, moved.stride, stream), LBVH_OK);
            CHECK_RESULT(lbvh_cuda_download(&g.copy, &g.gpu, stream), LBVH_OK);
            check_arrays(g.serial, g.copy);
            check_codes(g.serial, g.copy);
            if (step == 1 && c.n < 200) check_own(g, LBVH_BOXES, 0, (int)(k % 8), 0);
        }
        CHECK_RESULT(lbvh_cuda_check(&g.gpu, stream), LBVH_OK);
    }
}

/* ---- from one side to the other ---- */

static void test_upload()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (!chosen(k + 3, 12 * share, 400)) continue;
        c.n = k % 9 == 0 ? (int)(k / 9 % 3) : search_size(c.shape, k);
        context = "upload: " + name_of(c);
        Input const in = input_of(c, (int)k);
        OnDevice const on_device(in);
        lbvh_desc const host = host_desc(in);
        Trees g;
        CHECK_RESULT(lbvh_build(&g.serial, &host, in.data.data(), in.stride, in.n), LBVH_OK);
        CHECK_RESULT(lbvh_cuda_upload(&g.gpu, &g.serial, stream), LBVH_OK);
        MUST(cudaStreamSynchronize(stream));
        CHECK(g.gpu.device.tree.n == in.n);
        CHECK_RESULT(lbvh_cuda_check(&g.gpu, stream), LBVH_OK);
        CHECK_RESULT(lbvh_cuda_download(&g.copy, &g.gpu, stream), LBVH_OK);
        check_arrays(g.serial, g.copy);
        check_pairs(g, in);
        check_own(g, LBVH_BOXES, 0, (int)(k % 8), (int)(k % 3));
        check_given(g, LBVH_SPHERES, 300, 0, 0, (int)(k % 3), false, 3);
        check_nearest(g, 40, 8, infinity, 0, false, 4);
        check_walks(g, in, on_device);
        if (c.form == INDEXED) continue; /* its desc has the indices of the host */
        Input const moved = input_of(c, (int)k + 1);
        Device<real> d_data(moved.data);
        CHECK_RESULT(lbvh_refit(&g.serial, moved.data.data(), moved.stride), LBVH_OK);
        CHECK_RESULT(lbvh_cuda_refit(&g.gpu, d_data.p, moved.stride, stream), LBVH_OK);
        CHECK_RESULT(lbvh_cuda_download(&g.copy, &g.gpu, stream), LBVH_OK);
        check_arrays(g.serial, g.copy);
    }
}

/* Built on the GPU, used on the CPU: saved, loaded, refitted there, and sent back. */
static void test_download()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.form == INDEXED || !chosen(k + 4, 20 * share, 400)) continue;
        c.n = search_size(c.shape, k);
        context = "download: " + name_of(c);
        Input const in = input_of(c, (int)k);
        Input moved = input_of(c, (int)k + 1);
        OnDevice const on_device(in);
        Trees g;
        lbvh loaded = {};
        int64_t needed = 0;
        moved.desc.radius = in.desc.radius;
        moved.masks = in.masks;
        if (!build(&g, in, on_device)) continue;
        CHECK(serial_pairs(g.copy) == serial_pairs(g.serial));
        CHECK_RESULT(lbvh_save(&g.copy, nullptr, 0, &needed), LBVH_BUFFER_TOO_SMALL);
        std::vector<unsigned char> bytes((size_t)needed);
        CHECK_RESULT(lbvh_save(&g.copy, bytes.data(), needed, &needed), LBVH_OK);
        CHECK_RESULT(lbvh_load(&loaded, nullptr, bytes.data(), needed), LBVH_OK);
        CHECK_RESULT(lbvh_cuda_upload(&g.gpu, &loaded, stream), LBVH_OK); /* another tree into the same object */
        MUST(cudaStreamSynchronize(stream));
        check_pairs(g, in);
        check_given(g, LBVH_BOXES, 300, 0, 0, (int)(k % 3), false, 3);
        CHECK_RESULT(lbvh_refit(&g.copy, moved.data.data(), moved.stride), LBVH_OK);
        CHECK_RESULT(lbvh_refit(&g.serial, moved.data.data(), moved.stride), LBVH_OK);
        check_arrays(g.serial, g.copy);
        CHECK_RESULT(lbvh_cuda_upload(&g.gpu, &g.copy, stream), LBVH_OK);
        MUST(cudaStreamSynchronize(stream));
        check_pairs(g, moved);
        lbvh_free(&loaded);
    }
}

/* ---- memory ---- */

/* Device memory that is counted, and fails on demand. */

/* Room for the results of all searches over up to n elements with m queries. */
struct Results {
    Device<int64_t> one, offsets;
    Device<int32_t> ids, counts;
    Device<real> distances2;
    Results(size_t n, size_t m)
        : one(1), offsets(std::max(n, m) + 1), ids(64 * std::max(n, m) + 64), counts(std::max(n, m) + 1), distances2(8 * m + 1)
    {
    }
};

/* All searches once, m queries each; returns the first result that is not LBVH_OK. */
static lbvh_result search_all(lbvh_cuda *gpu, const Device<real> &d_points, int32_t m, Results *to)
{
    int64_t const room = (int64_t)to->ids.count;
    lbvh_queries own = {}, given = {};
    given.kind = LBVH_POINTS;
    given.data = d_points.p;
    given.n = m;
    given.radius = (real)0.1;
    lbvh_result r = lbvh_cuda_count_pairs(gpu, to->one.p, stream);
    if (r == LBVH_OK) r = lbvh_cuda_pairs(gpu, to->ids.p, room / 2, to->one.p, stream);
    if (r == LBVH_OK) r = lbvh_cuda_count_overlaps(gpu, &own, to->counts.p, stream);
    if (r == LBVH_OK) r = lbvh_cuda_overlaps(gpu, &own, to->offsets.p, to->ids.p, room, stream);
    own.flags = LBVH_PLACES | LBVH_HALF;
    if (r == LBVH_OK) r = lbvh_cuda_overlaps(gpu, &own, to->offsets.p, to->ids.p, room, stream);
    if (r == LBVH_OK) r = lbvh_cuda_count_overlaps(gpu, &given, to->counts.p, stream);
    if (r == LBVH_OK) r = lbvh_cuda_overlaps(gpu, &given, to->offsets.p, to->ids.p, room, stream);
    if (r == LBVH_OK)
        r = lbvh_cuda_nearest(gpu, d_points.p, 0, m, 8, infinity, 0, to->ids.p, to->distances2.p, to->counts.p, stream);
    (void)to->one.get();
    return r;
}

static std::vector<real> points_of(int dim, int m)
{
    wl_random r = wl_seed(5);
    std::vector<real> points((size_t)(dim * m) + 1);
    for (real &x : points) x = (real)wl_u(&r);
    return points;
}

/* After a reserve, builds and searches of up to n elements and m queries allocate nothing. */
static void test_reserve()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.padded || c.shape > CLUSTERED || !chosen(k, 4 * share, 60)) continue;
        Heap h = {};
        lbvh_cuda gpu = {};
        int const m = k % 2 ? 700 : 100;
        c.n = std::min(n_max, 500);
        context = "reserve: " + name_of(c);
        Input const in = input_of(c, (int)k);
        OnDevice const on_device(in);
        Device<real> d_points(points_of(c.dim, m));
        Results to((size_t)c.n, (size_t)m);
        lbvh_desc d = device_desc(in, on_device);
        d.cuda_allocator = allocator_of(&h);
        CHECK_RESULT(lbvh_cuda_reserve(&gpu, &d, c.n, std::max(m, c.n), stream), LBVH_OK);
        long const calls = h.calls;
        CHECK(calls > 0 && gpu.device.tree.n == 0);
        for (int n : {c.n, 0, 1, c.n / 3, c.n}) {
            CHECK_RESULT(lbvh_cuda_build(&gpu, &d, on_device.data.p, in.stride, n, stream), LBVH_OK);
            CHECK_RESULT(lbvh_cuda_refit(&gpu, on_device.data.p, in.stride, stream), LBVH_OK);
            CHECK_RESULT(search_all(&gpu, d_points, std::min(m, n + 50), &to), LBVH_OK);
            CHECK(h.calls == calls);
        }
        lbvh_cuda_free(&gpu);
        CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
    }
}

/* Work that the stream is busy with for a while; in the emulator, until somebody waits for it. */
static void keep_busy(const Device<char> &room)
{
#ifdef CUDA_EMU
    emu_options()->lazy = 1;
#endif
    for (int k = 0; k < 8; k++) MUST(cudaMemsetAsync(room.p, k, room.count, stream));
#ifndef CUDA_EMU
    CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
    cudaGetLastError();
#endif
}

/* What says that it waits for the stream does so, also where there is nothing to fetch. */
static void test_waits()
{
    std::vector<real> const boxes = {0, 0, 0, 2, 2, 2};
    Device<real> d_boxes(boxes);
#ifdef CUDA_EMU
    Device<char> room(64);
    int const lazy = emu_options()->lazy;
#else
    Device<char> room((size_t)1 << 29);
#endif
    context = "waits";
    for (int32_t n = 0; n < 2; n++) {
        Trees g;
        CHECK_RESULT(lbvh_cuda_build(&g.gpu, nullptr, d_boxes.p, 0, n, stream), LBVH_OK);
        keep_busy(room);
        CHECK_RESULT(lbvh_cuda_check(&g.gpu, stream), LBVH_OK);
        CHECK(cudaStreamQuery(stream) == cudaSuccess && "lbvh_cuda_check has waited");
        keep_busy(room);
        CHECK_RESULT(lbvh_cuda_download(&g.copy, &g.gpu, stream), LBVH_OK);
        CHECK(cudaStreamQuery(stream) == cudaSuccess && "lbvh_cuda_download has waited");
        CHECK(g.copy.n == n && g.copy.built);
    }
#ifdef CUDA_EMU
    emu_options()->lazy = lazy;
#endif
}

/* n rises by one with every build, and the searches with it: what is allocated follows its logarithm. */
static void test_growth()
{
    int const most = size_max >= 4097 ? 600 : 150, growths = most > 150 ? 18 : 14;
    for (int builder = 0; builder < 2; builder++) {
        Case const c = {3, BOXES, builder ? 63 : 30, (lbvh_builder)builder, builder, builder, 0, UNIFORM, 0, most};
        context = "growth: " + name_of(c);
        Input const in = input_of(c, 1);
        OnDevice const on_device(in);
        Device<real> const d_points(points_of(3, most));
        Results to((size_t)most, (size_t)most);
        lbvh_desc d = device_desc(in, on_device);
        Heap h = {};
        Trees g;
        int grown = 0;
        d.cuda_allocator = allocator_of(&h);
        for (int n = 1; n <= most; n++) {
            int64_t const had = lbvh_bytes(&g.copy);
            CHECK_RESULT(lbvh_cuda_build(&g.gpu, &d, on_device.data.p, in.stride, n, stream), LBVH_OK);
            if (n > 25) continue; /* memory for searches, and on the host */
            CHECK_RESULT(search_all(&g.gpu, d_points, n, &to), LBVH_OK);
            CHECK_RESULT(lbvh_cuda_download(&g.copy, &g.gpu, stream), LBVH_OK);
            grown += lbvh_bytes(&g.copy) > had;
        }
        CHECK(h.calls <= (LBVH_BLOCKS + LBVH_CUDA_SCRATCH) * growths && grown <= 18);
        lbvh_cuda_free(&g.gpu);
        CHECK(h.live == 0 && h.live_bytes == 0);
    }
}

/* A reserve takes what it needs; and where there is no memory to grow ahead, a build does, too. */
static void test_exact()
{
    Case const c = {3, BOXES, 63, LBVH_MERGE, 0, 0, 0, UNIFORM, 0, 102};
    Input const in = input_of(c, 1);
    OnDevice const on_device(in);
    lbvh_desc d = device_desc(in, on_device);
    Heap h = {};
    lbvh_cuda gpu = {};
    context = "exact";
    d.cuda_allocator = allocator_of(&h);
    for (int n = 100; n < 102; n++) {
        CHECK_RESULT(lbvh_cuda_reserve(&gpu, &d, n, n, stream), LBVH_OK);
        CHECK(gpu.block[LBVH_I_NODE].bytes == 2 * (size_t)n * sizeof(lbvh_node));
        CHECK(gpu.scratch[LBVH_I_ROWS].bytes == ((size_t)n + 1) * sizeof(int64_t));
    }
    h.fail_at = h.calls + 1;
    CHECK_RESULT(lbvh_cuda_build(&gpu, &d, on_device.data.p, in.stride, 102, stream), LBVH_OK);
    CHECK(h.failed == 1 && gpu.block[LBVH_I_NODE].bytes == 204 * sizeof(lbvh_node));
    CHECK_RESULT(lbvh_cuda_check(&gpu, stream), LBVH_OK);
    lbvh_cuda_free(&gpu);
    CHECK(h.live == 0 && h.live_bytes == 0);
}

/* Every call that reads a tree gives this result where there is none, or one of no elements. */
static void check_holds_nothing(lbvh_cuda *gpu, lbvh_result want)
{
    Device<int64_t> d_long(16);
    Device<int32_t> d_int(64);
    Device<real> d_real(std::vector<real>(64));
    Collect const collect = {nullptr, nullptr, 0};
    lbvh_queries own = {}, given = {};
    lbvh copy = {};
    given.data = d_real.p;
    given.n = 2;
    CHECK(gpu->device.tree.n == 0);
    CHECK_RESULT(lbvh_cuda_check(gpu, stream), want);
    CHECK_RESULT(lbvh_cuda_refit(gpu, d_real.p, 0, stream), want);
    CHECK_RESULT(lbvh_cuda_download(&copy, gpu, stream), want);
    CHECK_RESULT(lbvh_validate(&copy), want);
    CHECK_RESULT(lbvh_cuda_count_pairs(gpu, d_long.p, stream), want);
    CHECK_RESULT(lbvh_cuda_pairs(gpu, d_int.p, 8, d_long.p, stream), want);
    CHECK_RESULT(lbvh_cuda_each_pair(gpu, collect, stream), want);
    for (const lbvh_queries *q : {&own, &given}) {
        CHECK_RESULT(lbvh_cuda_count_overlaps(gpu, q, d_int.p, stream), want);
        CHECK_RESULT(lbvh_cuda_overlaps(gpu, q, d_long.p, d_int.p, 8, stream), want);
    }
    for (int32_t m : {2, 0})
        CHECK_RESULT(lbvh_cuda_nearest(gpu, d_real.p, 0, m, 2, 1, 0, d_int.p, d_real.p + 32, d_int.p + 32,
                                       stream), want);
    MUST(cudaStreamSynchronize(stream));
    lbvh_free(&copy);
}

/* One rule: without a tree every call says so; a tree over no elements is one. */
static void test_not_built()
{
    std::vector<real> const boxes = {0, 0, 0, 2, 2, 2, 1, 1, 1, 3, 3, 3};
    Device<real> d_boxes(boxes);
    lbvh_cuda gpu = {};
    lbvh tree = {};
    context = "not built";
    check_holds_nothing(&gpu, LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_cuda_build(&gpu, nullptr, nullptr, 0, 0, stream), LBVH_OK);
    check_holds_nothing(&gpu, LBVH_OK);
    CHECK_RESULT(lbvh_cuda_reserve(&gpu, nullptr, 2, 2, stream), LBVH_OK);
    check_holds_nothing(&gpu, LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_cuda_upload(&gpu, &tree, stream), LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_build(&tree, nullptr, nullptr, 0, 0), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_upload(&gpu, &tree, stream), LBVH_OK);
    check_holds_nothing(&gpu, LBVH_OK);
    CHECK_RESULT(lbvh_cuda_build(&gpu, nullptr, d_boxes.p, 0, 2, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_check(&gpu, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_build(&gpu, nullptr, d_boxes.p, 1, 2, stream), LBVH_BAD_ARGUMENT);
    check_holds_nothing(&gpu, LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_cuda_build(&gpu, &gpu.device.tree.desc, d_boxes.p, 0, 2, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_check(&gpu, stream), LBVH_OK);
    lbvh_cuda_free(&gpu);
    check_holds_nothing(&gpu, LBVH_NOT_BUILT);
    lbvh_free(&tree);
}

/* One pass of test_out_of_memory: the allocation number `fail` fails (0: none). Returns how many there were. */
static long run_out_of_memory(const Input &in, const OnDevice &on_device, const lbvh &host, long fail)
{
    int32_t const m = 90;
    Device<real> d_points(points_of(in.desc.dim, m));
    Results to((size_t)in.n, (size_t)m);
    lbvh_desc d = device_desc(in, on_device);
    Heap h = {};
    lbvh_cuda gpu = {};
    d.cuda_allocator = allocator_of(&h);
    h.fail_at = fail;
    lbvh_result r = lbvh_cuda_build(&gpu, &d, on_device.data.p, in.stride, in.n, stream);
    if (r != LBVH_OK) {
        CHECK_RESULT(r, LBVH_OUT_OF_MEMORY);
        CHECK(gpu.device.tree.n == 0 && fail > 0);
        CHECK_RESULT(search_all(&gpu, d_points, 0, &to), LBVH_NOT_BUILT);
        CHECK_RESULT(lbvh_cuda_build(&gpu, &d, on_device.data.p, in.stride, in.n, stream), LBVH_OK);
    }
    r = search_all(&gpu, d_points, m, &to);
    if (r != LBVH_OK) {
        CHECK_RESULT(r, LBVH_OUT_OF_MEMORY);
        CHECK(gpu.device.tree.n == in.n && fail > 0 && "the tree is still there");
        CHECK_RESULT(search_all(&gpu, d_points, m, &to), LBVH_OK);
    }
    r = lbvh_cuda_upload(&gpu, &host, stream); /* larger than what was built */
    if (r != LBVH_OK) {
        CHECK_RESULT(r, LBVH_OUT_OF_MEMORY);
        CHECK(gpu.device.tree.n == 0 && fail > 0);
        CHECK_RESULT(lbvh_cuda_upload(&gpu, &host, stream), LBVH_OK);
    }
    CHECK_RESULT(lbvh_cuda_check(&gpu, stream), LBVH_OK);
    if (fail > 0) CHECK(h.calls >= fail && "the failure was met");
    lbvh_cuda_free(&gpu);
    CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
    return h.calls;
}

/* Each allocation fails once: the result says so, the tree is empty or as before, and the next call works. */
static void test_out_of_memory()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.padded || c.shape != UNIFORM || !chosen(k, share, 20)) continue;
        c.n = 60;
        context = "out of memory: " + name_of(c);
        Input const in = input_of(c, 1);
        c.n = 2000;
        Input const more = input_of(c, 2);
        OnDevice const on_device(in);
        lbvh host = {};
        lbvh_desc d = host_desc(more);
        Heap h = {};
        d.cuda_allocator = allocator_of(&h); /* that of the host tree is not used */
        CHECK_RESULT(lbvh_build(&host, &d, more.data.data(), more.stride, more.n), LBVH_OK);
        long const calls = run_out_of_memory(in, on_device, host, 0);
        CHECK(calls > 3);
        for (long fail = 1; fail <= calls; fail++) run_out_of_memory(in, on_device, host, fail);
        CHECK(h.calls == 0);
        lbvh_free(&host);
    }
}

/* ---- refusals ---- */

static void test_refused_builds()
{
    static const lbvh_desc good = {};
    std::vector<real> const boxes = {0, 0, 0, 2, 2, 2, 1, 1, 1, 3, 3, 3, 8, 8, 8, 9, 9, 9};
    Device<real> d_boxes(boxes), d_out(18);
    lbvh_desc d = good;
    lbvh_cuda gpu = {};
    lbvh tree = {};
    Heap h = {};
    context = "refused builds";
    CHECK_RESULT(lbvh_cuda_build(nullptr, &d, d_boxes.p, 0, 3, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_build(&gpu, &d, nullptr, 0, 3, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_build(&gpu, &d, d_boxes.p, 0, -1, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_build(&gpu, &d, d_boxes.p, 5 * sizeof(real), 3, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_build(&gpu, &d, d_boxes.p, 6 * sizeof(real) + 1, 3, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_build(&gpu, &d, d_boxes.p, 0, INT32_MAX, stream), LBVH_TOO_MANY);
    CHECK_RESULT(lbvh_cuda_reserve(nullptr, &d, 10, 10, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_reserve(&gpu, &d, -1, 10, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_reserve(&gpu, &d, 10, -1, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_reserve(&gpu, &d, (1 << 30) - 511, 0, stream), LBVH_TOO_MANY);
    CHECK_RESULT(lbvh_cuda_reserve(&gpu, &d, 0, (1 << 30) - 511, stream), LBVH_TOO_MANY);
    CHECK_RESULT(lbvh_cuda_refit(nullptr, d_boxes.p, 0, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_check(nullptr, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_upload(nullptr, &tree, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_upload(&gpu, nullptr, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_download(nullptr, &gpu, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_download(&tree, nullptr, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_boxes(nullptr, &d, d_boxes.p, 0, 3, d_out.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_boxes(&gpu, &d, nullptr, 0, 3, d_out.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_boxes(&gpu, &d, d_boxes.p, 0, 3, nullptr, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_boxes(&gpu, &d, d_boxes.p, 1, 3, d_out.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_boxes(&gpu, &d, d_boxes.p, 0, -1, d_out.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_boxes(&gpu, &d, nullptr, 0, 0, nullptr, stream), LBVH_OK);
    static const struct { void (*change)(lbvh_desc *); lbvh_result result; } wrong[] = {
        {[](lbvh_desc *x) { x->dim = 4; }, LBVH_BAD_DIM},
        {[](lbvh_desc *x) { x->dim = -1; }, LBVH_BAD_DIM},
#ifndef CUDA_EMU /* UBSan stops at a value that the enum does not have */
        {[](lbvh_desc *x) { x->kind = (lbvh_kind)4; }, LBVH_BAD_OPTION},
        {[](lbvh_desc *x) { x->builder = (lbvh_builder)2; }, LBVH_BAD_OPTION},
#endif
        {[](lbvh_desc *x) { x->bits = 32; }, LBVH_BAD_OPTION},
        {[](lbvh_desc *x) { x->radius = -1; }, LBVH_BAD_RADIUS},
        {[](lbvh_desc *x) { x->radius = not_a_number; }, LBVH_BAD_RADIUS},
        {[](lbvh_desc *x) { x->cuda_allocator.alloc = heap_alloc; }, LBVH_BAD_ALLOCATOR},
        {[](lbvh_desc *x) { x->cuda_allocator.free = heap_free; }, LBVH_BAD_ALLOCATOR},
        {[](lbvh_desc *x) { x->min[1] = 1; }, LBVH_BAD_BOUNDS},
        {[](lbvh_desc *x) { x->max[0] = infinity; }, LBVH_BAD_BOUNDS},
    };
    for (auto w : wrong) {
        CHECK_RESULT(lbvh_cuda_build(&gpu, &good, d_boxes.p, 0, 3, stream), LBVH_OK);
        d = good;
        w.change(&d);
        CHECK_RESULT(lbvh_cuda_build(&gpu, &d, d_boxes.p, 0, 3, stream), w.result);
        CHECK(gpu.device.tree.n == 0);
        CHECK_RESULT(lbvh_cuda_reserve(&gpu, &d, 3, 3, stream), w.result);
        CHECK_RESULT(lbvh_cuda_boxes(&gpu, &d, d_boxes.p, 0, 3, d_out.p, stream), w.result);
    }
    CHECK_RESULT(lbvh_cuda_build(&gpu, &good, d_boxes.p, 0, 3, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_refit(&gpu, nullptr, 0, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_refit(&gpu, d_boxes.p, 4, stream), LBVH_BAD_ARGUMENT);
    CHECK(gpu.device.tree.n == 3);
    d = good;
    d.cuda_allocator = allocator_of(&h);
    CHECK_RESULT(lbvh_cuda_build(&gpu, &d, d_boxes.p, 0, 3, stream), LBVH_BAD_ALLOCATOR);
    CHECK(gpu.device.tree.n == 0 && h.calls == 0);
    CHECK_RESULT(lbvh_cuda_build(&gpu, &good, d_boxes.p, 0, 3, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_check(&gpu, stream), LBVH_OK);
    lbvh_cuda_free(&gpu);
    CHECK_RESULT(lbvh_cuda_refit(&gpu, d_boxes.p, 0, stream), LBVH_NOT_BUILT);
    lbvh_free(&tree);
}

static void test_refused_searches()
{
    std::vector<real> const boxes = {0, 0, 0, 2, 2, 2, 1, 1, 1, 3, 3, 3, 8, 8, 8, 9, 9, 9};
    Device<real> d_boxes(boxes), d_real(64);
    Device<int64_t> d_long(16);
    Device<int32_t> d_int(64);
    lbvh_cuda gpu = {};
    lbvh_queries q = {};
    context = "refused searches";
    CHECK_RESULT(lbvh_cuda_count_overlaps(&gpu, &q, d_int.p, stream), LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_cuda_overlaps(&gpu, &q, d_long.p, d_int.p, 16, stream), LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_cuda_build(&gpu, nullptr, d_boxes.p, 0, 3, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_count_pairs(nullptr, d_long.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_count_pairs(&gpu, nullptr, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_pairs(nullptr, d_int.p, 10, d_long.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_pairs(&gpu, nullptr, 10, d_long.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_pairs(&gpu, d_int.p, -1, d_long.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_pairs(&gpu, d_int.p, 10, nullptr, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_count_overlaps(nullptr, &q, d_int.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_count_overlaps(&gpu, nullptr, d_int.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_count_overlaps(&gpu, &q, nullptr, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_overlaps(nullptr, &q, d_long.p, d_int.p, 16, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_overlaps(&gpu, nullptr, d_long.p, d_int.p, 16, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_overlaps(&gpu, &q, nullptr, d_int.p, 16, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_overlaps(&gpu, &q, d_long.p, nullptr, 16, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_overlaps(&gpu, &q, d_long.p, d_int.p, -1, stream), LBVH_BAD_ARGUMENT);
    static const struct { lbvh_queries q; bool given; lbvh_result result; } wrong[] = {
        {{LBVH_TRIANGLES, nullptr, 0, 0, 0, 0, nullptr, 0}, false, LBVH_BAD_OPTION},
        {{LBVH_SPHERES, nullptr, 0, 0, 0, 0, nullptr, 0}, false, LBVH_BAD_OPTION},
#ifndef CUDA_EMU
        {{(lbvh_kind)-1, nullptr, 0, 0, 0, 0, nullptr, 0}, false, LBVH_BAD_OPTION},
#endif
        {{LBVH_BOXES, nullptr, 0, 3, 0, 0, nullptr, 0}, false, LBVH_BAD_ARGUMENT},
        {{LBVH_BOXES, nullptr, 0, 0, 0, 0, nullptr, 8}, false, LBVH_BAD_OPTION},
        {{LBVH_POINTS, nullptr, 0, 0, -1, 0, nullptr, 0}, false, LBVH_BAD_RADIUS},
        {{LBVH_POINTS, nullptr, 0, 0, not_a_number, 0, nullptr, 0}, false, LBVH_BAD_RADIUS},
        {{LBVH_POINTS, nullptr, 0, 0, infinity, 0, nullptr, 0}, false, LBVH_BAD_RADIUS},
        {{LBVH_TRIANGLES, nullptr, 0, 1, 0, 0, nullptr, 0}, true, LBVH_BAD_OPTION},
        {{LBVH_BOXES, nullptr, 0, -1, 0, 0, nullptr, 0}, true, LBVH_BAD_ARGUMENT},
        {{LBVH_BOXES, nullptr, 5 * sizeof(real), 1, 0, 0, nullptr, 0}, true, LBVH_BAD_ARGUMENT},
        {{LBVH_BOXES, nullptr, 0, 1, 0, 0, nullptr, LBVH_HALF}, true, LBVH_BAD_OPTION},
        {{LBVH_BOXES, nullptr, 0, 1, 0, 0, nullptr, LBVH_PLACES}, true, LBVH_BAD_OPTION},
        {{LBVH_BOXES, nullptr, 0, INT32_MAX, 0, 0, nullptr, 0}, true, LBVH_TOO_MANY},
    };
    for (auto w : wrong) {
        if (w.given) w.q.data = d_boxes.p;
        CHECK_RESULT(lbvh_cuda_count_overlaps(&gpu, &w.q, d_int.p, stream), w.result);
        CHECK_RESULT(lbvh_cuda_overlaps(&gpu, &w.q, d_long.p, d_int.p, 16, stream), w.result);
    }
    int32_t *const ids = d_int.p, *const found = d_int.p + 32;
    real *const d2 = d_real.p;
    CHECK_RESULT(lbvh_cuda_nearest(nullptr, d_boxes.p, 0, 3, 2, 1, 0, ids, d2, found, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, nullptr, 0, 3, 2, 1, 0, ids, d2, found, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 1, 3, 2, 1, 0, ids, d2, found, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, -1, 2, 1, 0, ids, d2, found, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, 3, -1, 1, 0, ids, d2, found, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, 3, 2, 1, 0, nullptr, d2, found, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, 3, 2, 1, 0, ids, nullptr, found, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, 3, 2, 1, 0, ids, d2, nullptr, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, 3, 2, -1, 0, ids, d2, found, stream), LBVH_BAD_RADIUS);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, 3, 2, not_a_number, 0, ids, d2, found, stream), LBVH_BAD_RADIUS);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, 3, 2, 1, LBVH_HALF, ids, d2, found, stream), LBVH_BAD_OPTION);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, INT32_MAX, 2, 1, 0, ids, d2, found, stream), LBVH_TOO_MANY);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, 0, 2, 1, 0, ids, d2, found, stream), LBVH_OK);
    Collect const collect = {nullptr, nullptr, 0};
    CHECK_RESULT(lbvh_cuda_each_pair((lbvh_cuda *)nullptr, collect, stream), LBVH_BAD_ARGUMENT);
    CHECK(gpu.device.tree.n == 3);
    for (int32_t x : d_int.get()) CHECK(x == (int32_t)0xA5A5A5A5u && "a refused call wrote something");
    for (int64_t x : d_long.get()) CHECK(x == (int64_t)0xA5A5A5A5A5A5A5A5u && "a refused call wrote something");
    CHECK_RESULT(lbvh_cuda_count_pairs(&gpu, d_long.p, stream), LBVH_OK);
    CHECK(d_long.get()[0] == 1);
    lbvh_cuda_free(&gpu);
    CHECK_RESULT(lbvh_cuda_each_pair(&gpu, collect, stream), LBVH_NOT_BUILT);
}

/* A launch that fails comes back as a result, and the object can be used again afterwards. On a GPU: a capture that was made
   invalid refuses all further work; the emulator fails the launch we name. */
static void test_launch_errors()
{
    Case c = {3, BOXES, 63, LBVH_MERGE, 1, 1, 0, UNIFORM, 0, 600}; /* three blocks: nodes climb, too */
    Input const in = input_of(c, 6);
    OnDevice const on_device(in);
    lbvh_desc const d = device_desc(in, on_device);
    Device<real> d_points(points_of(3, 50));
    Results to(600, 50);
    Trees g;
    context = "launch errors";
    if (!build(&g, in, on_device)) return;
#ifdef CUDA_EMU
    for (int builder = 0; builder < 2; builder++)
        for (long fail = 1;; fail++) {
            lbvh_desc each = d;
            each.builder = (lbvh_builder)builder;
            long const before = emu_launches();
            emu_fail_launch(fail);
            lbvh_result r = lbvh_cuda_build(&g.gpu, &each, on_device.data.p, 0, 600, stream);
            if (r != LBVH_OK) CHECK(g.gpu.device.tree.n == 0);
            if (r == LBVH_OK) r = lbvh_cuda_refit(&g.gpu, on_device.data.p, 0, stream);
            if (r != LBVH_OK) CHECK(g.gpu.device.tree.n == 0); /* no half-made tree is left */
            if (r == LBVH_OK) r = search_all(&g.gpu, d_points, 50, &to);
            MUST(cudaStreamSynchronize(stream)); /* lazy streams launch only now */
            emu_fail_launch(0);
            if (r == LBVH_OK) {
                CHECK(fail > 5 && emu_launches() - before >= fail - 1);
                break;
            }
            CHECK_RESULT(r, LBVH_CUDA_ERROR);
            CHECK(g.gpu.device.tree.cuda_error == (int32_t)cudaErrorLaunchOutOfResources);
        }
#else
    cudaGraph_t graph = nullptr;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK_RESULT(lbvh_cuda_check(&g.gpu, stream), LBVH_CUDA_ERROR); /* waiting is not allowed here, and spoils the capture */
    CHECK(g.gpu.device.tree.cuda_error != 0);
    CHECK_RESULT(lbvh_cuda_build(&g.gpu, &d, on_device.data.p, 0, 600, stream), LBVH_CUDA_ERROR);
    CHECK(g.gpu.device.tree.cuda_error != 0 && g.gpu.device.tree.n == 0);
    CHECK(cudaStreamEndCapture(stream, &graph) != cudaSuccess);
    cudaGetLastError();
#endif
    CHECK_RESULT(lbvh_cuda_build(&g.gpu, &d, on_device.data.p, 0, 100, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_check(&g.gpu, stream), LBVH_OK);
    CHECK(g.gpu.device.tree.cuda_error == 0);
    CHECK_RESULT(search_all(&g.gpu, d_points, 50, &to), LBVH_OK);
}

/* ---- graphs and streams ---- */

/* What one frame of test_graph writes. */
struct Frame {
    Device<int64_t> before, needed, offsets, own_offsets;
    Device<int32_t> pairs, ids, own_ids, near_ids, found;
    Device<real> distances2;
    Frame(size_t n, size_t m)
        : before(1), needed(1), offsets(m + 1), own_offsets(n + 1), pairs(80 * n), ids(40 * m), own_ids(80 * n), near_ids(8 * m),
          found(m), distances2(8 * m)
    {
    }
};

/* Everything that a program might do in a time step: build, count, refit to other elements, and all searches. */
static void enqueue_frame(lbvh_cuda *gpu, const lbvh_desc &d, const Device<real> &first, const Device<real> &second, size_t stride,
                          int32_t n, const lbvh_queries &queries, Frame *f)
{
    lbvh_queries own = {};
    int32_t const m = queries.n;
    CHECK_RESULT(lbvh_cuda_build(gpu, &d, first.p, stride, n, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_count_pairs(gpu, f->before.p, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_refit(gpu, second.p, stride, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_pairs(gpu, f->pairs.p, (int64_t)f->pairs.count / 2, f->needed.p, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_overlaps(gpu, &queries, f->offsets.p, f->ids.p, (int64_t)f->ids.count, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_overlaps(gpu, &own, f->own_offsets.p, f->own_ids.p, (int64_t)f->own_ids.count, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_nearest(gpu, queries.data, 0, m, 8, infinity, 0, f->near_ids.p, f->distances2.p, f->found.p, stream),
                 LBVH_OK);
}

template <class T> static bool begins_with(const std::vector<T> &got, const std::vector<T> &want)
{
    size_t const both = std::min(got.size(), want.size());
    return both == 0 || same_bits(got.data(), want.data(), both);
}

static void check_frame(Trees &g, const Input &first, const Input &second, const Search &queries, const Input &points,
                        const Frame &f)
{
    Search own = {};
    int64_t pairs = -1;
    lbvh_desc const d = host_desc(first);
    own.rows = first.n;
    CHECK_RESULT(lbvh_cuda_check(&g.gpu, stream), LBVH_OK);
    CHECK_RESULT(lbvh_build(&g.serial, &d, first.data.data(), first.stride, first.n), LBVH_OK);
    CHECK_RESULT(lbvh_count_pairs(&g.serial, &pairs), LBVH_OK);
    CHECK(f.before.get()[0] == pairs);
    CHECK_RESULT(lbvh_refit(&g.serial, second.data.data(), second.stride), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_download(&g.copy, &g.gpu, stream), LBVH_OK);
    check_arrays(g.serial, g.copy);
    std::vector<int32_t> const want = serial_pairs(g.serial);
    CHECK(f.needed.get()[0] == (int64_t)want.size() / 2);
    CHECK(begins_with(f.pairs.get(), want));
    Lists const lists = serial_lists(g.serial, queries), own_lists = serial_lists(g.serial, own);
    CHECK(f.offsets.get() == lists.offsets);
    CHECK(f.own_offsets.get() == own_lists.offsets);
    if (lists.ids.size() <= f.ids.count) CHECK(begins_with(f.ids.get(), lists.ids));
    if (own_lists.ids.size() <= f.own_ids.count) CHECK(begins_with(f.own_ids.get(), own_lists.ids));
    Nearest const near = serial_nearest(g.serial, points, queries.rows, 8, infinity);
    CHECK(begins_with(f.near_ids.get(), near.ids) && begins_with(f.found.get(), near.found));
    CHECK(begins_with(f.distances2.get(), near.distances2));
}

/* A time step, captured once, replayed with new elements and new queries. */
static void test_graph()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.form == INDEXED || c.shape > LATTICE || !chosen(k + 5, 13 * share, 150)) continue;
        int const m = 70;
        c.n = std::min(n_max, 1000);
        context = "graph: " + name_of(c);
        Input const in = input_of(c, 1);
        OnDevice on_device(in);
        Device<real> d_second(in.data), d_points(std::vector<real>((size_t)(m * c.dim)));
        lbvh_desc const d = device_desc(in, on_device);
        Frame frame((size_t)c.n, (size_t)m);
        Trees g;
        Search queries = {};
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t exec = nullptr;
        queries.host.kind = LBVH_POINTS;
        queries.host.n = queries.rows = m;
        queries.host.radius = (real)0.1;
        queries.device = queries.host;
        queries.device.data = d_points.p;
        CHECK_RESULT(lbvh_cuda_reserve(&g.gpu, &d, c.n, std::max(m, c.n), stream), LBVH_OK);
        MUST(cudaStreamSynchronize(stream));
        MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        enqueue_frame(&g.gpu, d, on_device.data, d_second, in.stride, c.n, queries.device, &frame);
        MUST(cudaStreamEndCapture(stream, &graph));
        MUST(cudaGraphInstantiate(&exec, graph, 0));
        for (int step = 0; step < 3; step++) {
            Input first = input_of(c, 100 + step), second = input_of(c, 200 + step), points = {};
            first.masks = in.masks; /* the captured build reads the masks that lay there */
            if (step > 0) CHECK_RESULT(lbvh_cuda_check(&g.gpu, stream), LBVH_OK);
            points.width = (size_t)c.dim;
            first.desc = second.desc = in.desc;
            lbvh_desc const host = host_desc(first);
            CHECK_RESULT(lbvh_build(&g.serial, &host, first.data.data(), first.stride, c.n), LBVH_OK); /* for queries_of */
            points.data = queries_of(g.serial, LBVH_POINTS, m, step);
            queries.host.data = points.data.data();
            on_device.data.set(first.data);
            d_second.set(second.data);
            d_points.set(points.data);
            MUST(cudaGraphLaunch(exec, stream));
            MUST(cudaStreamSynchronize(stream));
            check_frame(g, first, second, queries, points, frame);
        }
        MUST(cudaGraphExecDestroy(exec));
        MUST(cudaGraphDestroy(graph));
    }
}

/* Two trees on two streams, their work interleaved. */
static void test_two_streams()
{
    cudaStream_t streams[2];
    for (cudaStream_t &s : streams) MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (size_t k = 0; k < case_count; k += 67 * (size_t)std::min(share, 20)) {
        Case cases[2] = {case_of(k), case_of((k + 200) % case_count)};
        lbvh_cuda gpu[2] = {};
        lbvh serial[2] = {};
        Device<int64_t> pairs0(1), pairs1(1);
        Device<int64_t> *pairs[2] = {&pairs0, &pairs1};
        for (Case &c : cases) c.n = search_size(c.shape, k);
        Input const in[2] = {input_of(cases[0], 1), input_of(cases[1], 2)};
        OnDevice const on_device0(in[0]), on_device1(in[1]);
        const OnDevice *on_device[2] = {&on_device0, &on_device1};
        context = "two streams: " + name_of(cases[0]) + "; " + name_of(cases[1]);
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < 2; i++) {
                lbvh_desc const d = device_desc(in[i], *on_device[i]);
                CHECK_RESULT(lbvh_cuda_build(&gpu[i], &d, on_device[i]->data.p, in[i].stride, in[i].n, streams[i]), LBVH_OK);
            }
            for (int i = 0; i < 2; i++) CHECK_RESULT(lbvh_cuda_count_pairs(&gpu[i], pairs[i]->p, streams[i]), LBVH_OK);
        }
        for (int i = 0; i < 2; i++) {
            int64_t want = -1;
            lbvh_desc const d = host_desc(in[i]);
            CHECK_RESULT(lbvh_cuda_check(&gpu[i], streams[i]), LBVH_OK);
            CHECK_RESULT(lbvh_build(&serial[i], &d, in[i].data.data(), in[i].stride, in[i].n), LBVH_OK);
            CHECK_RESULT(lbvh_count_pairs(&serial[i], &want), LBVH_OK);
            CHECK(pairs[i]->get(streams[i])[0] == want);
            lbvh_cuda_free(&gpu[i]);
            lbvh_free(&serial[i]);
        }
    }
    for (cudaStream_t &s : streams) MUST(cudaStreamSynchronize(s));
    for (cudaStream_t &s : streams) MUST(cudaStreamDestroy(s));
}

/* ---- large ones ---- */

/* So many blocks that what they leave over fills blocks of its own; that is where races between blocks would be. */
static void test_many_blocks()
{
    for (int builder = 0; builder < 2; builder++) {
        Case const c = {3, BOXES, 63, (lbvh_builder)builder, builder, 0, 0, UNIFORM, 0, 6007};
        Input const in = input_of(c, 1);
        OnDevice const on_device(in);
        Trees g;
        context = "many blocks: " + name_of(c);
        if (!build(&g, in, on_device)) continue;
        CHECK_RESULT(lbvh_cuda_refit(&g.gpu, on_device.data.p, in.stride, stream), LBVH_OK);
        CHECK_RESULT(lbvh_cuda_download(&g.copy, &g.gpu, stream), LBVH_OK);
        check_arrays(g.serial, g.copy);
    }
}

/* Many blocks at work at once: what the emulator runs one after another. On a GPU each is built several times. */
static void test_large()
{
#ifdef CUDA_EMU
    int const n = size_max >= 4097 ? 5003 : 600, rounds = 1;
#else
    int const n = size_max >= 4097 ? 1000003 : 50021, rounds = 5;
#endif
    for (int shape = 0; shape < SHAPES; shape++)
        for (int builder = 0; builder < 2; builder++) {
            int const dim = 3 - (shape + builder) % 2;
            int const bits = builder == shape % 2 ? 63 : 30;
            Case const c = {dim, (Form)(shape % FORMS), bits, (lbvh_builder)builder, shape % 2, 1, 0, (Shape)shape, 0, n};
            context = "large: " + name_of(c);
            Input const in = input_of(c, shape);
            OnDevice const on_device(in);
            Trees g;
            for (int round = 0; round < rounds; round++) if (!build(&g, in, on_device)) break;
            if (c.shape > LATTICE && c.shape != LINE) continue; /* too many pairs */
            int64_t want = -1;
            Device<int64_t> d_pairs(1);
            CHECK_RESULT(lbvh_count_pairs(&g.serial, &want), LBVH_OK);
            CHECK_RESULT(lbvh_cuda_count_pairs(&g.gpu, d_pairs.p, stream), LBVH_OK);
            CHECK(d_pairs.get()[0] == want);
            check_own(g, LBVH_BOXES, 0, builder ? LBVH_PLACES : LBVH_HALF, 0);
            check_nearest(g, 5000, 8, infinity, 0, false, 3);
            CHECK_RESULT(lbvh_refit(&g.serial, in.data.data(), in.stride), LBVH_OK);
            CHECK_RESULT(lbvh_cuda_refit(&g.gpu, on_device.data.p, in.stride, stream), LBVH_OK);
            CHECK_RESULT(lbvh_cuda_download(&g.copy, &g.gpu, stream), LBVH_OK);
            check_arrays(g.serial, g.copy);
        }
}

/* ------------------------------------------------------------------------------------------------
   Main
   ------------------------------------------------------------------------------------------------ */

static const Test tests[] = {
    {"few", test_few},           {"build", test_build},       {"deep", test_deep},           {"searches", test_searches},
    {"nearest", test_nearest},   {"invalid", test_invalid},   {"rebuild", test_rebuild},     {"refit", test_refit},
    {"upload", test_upload},     {"download", test_download}, {"reserve", test_reserve},     {"out of memory", test_out_of_memory},
    {"waits", test_waits},       {"growth", test_growth},     {"exact", test_exact},       {"not built", test_not_built},
    {"refused builds", test_refused_builds},                  {"refused searches", test_refused_searches},
    {"launch errors", test_launch_errors},                    {"graph", test_graph},         {"two streams", test_two_streams},
    {"many blocks", test_many_blocks}, {"large", test_large},
};

int main(int argc, char **argv)
{
    bool const small = getenv("TEST_SMALL") != nullptr;
#ifdef CUDA_EMU
    bool const slow = small || emu_options()->blocks > 1; /* blocks take turns: all shared memory is copied at each */
    n_max = slow ? 260 : 400;
    size_max = slow ? 520 : 4100;
    share = emu_options()->blocks > 1 ? 240 : small ? 80 : 16;
#else
    n_max = small ? 400 : 1000;
    size_max = small ? 2100 : 4100;
    share = small ? 40 : 24; /* within a minute; --share 1 runs every case: many minutes */
#endif
    read_options(argc, argv, {{"--n", &n_max, 8}, {"--share", &share, 1}});
    size_max = std::max(size_max, n_max);
    return run_tests(tests);
}
