/* searches.cu - a part of test_lbvh.cu: one tree on the device, the serial one, and the
   downloaded one: arrays, all searches, pairs and nearest elements against each other.
   SPDX-License-Identifier: MIT OR Unlicense */

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
    /* indices stay where they were */
    CHECK(copy.desc.kind == (serial.desc.indices ? LBVH_BOXES : serial.desc.kind));
    CHECK_RESULT(lbvh_validate(&copy), LBVH_OK);
    if (n == 0 || copy.n != serial.n) return;
    CHECK(same_array(copy.prefix, serial.prefix, n + 1));
    CHECK(same_array(copy.node, serial.node, 2 * n - 1));
    CHECK(same_array(copy.mask, serial.mask, 2 * n - 1));
}

static void check_codes(const lbvh &serial, const lbvh &copy)
{
    if (serial.n > 0 && copy.n == serial.n)
        CHECK(same_array(copy.code, serial.code, (size_t)serial.n));
}

/* Builds on both sides and compares. The serial code leaves out what is invalid, as CUDA does. */
static bool build(Trees *g, const Input &in, const OnDevice &on_device)
{
    lbvh_desc host = host_desc(in), device = device_desc(in, on_device);
    host.skip_invalid = 1;
    CHECK_RESULT(lbvh_build(&g->serial, &host, in.data.data(), in.stride, in.n), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_build(&g->gpu, &device, on_device.data.p, in.stride, in.n, stream),
        LBVH_OK);
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
        double const low = any ? (double)tree.node[0].min[a] : 0,
            high = any ? (double)tree.node[0].max[a] : 1;
        at[a] = low + (high - low) * (1.4 * wl_u(r) - 0.2);
        *length = std::max(*length, high - low);
    }
    if (tree.n == 0 || q % 3 != 0) return;
    const lbvh_node &leaf = tree.node[tree.first_leaf + (int32_t)wl_below(r, (uint32_t)tree.n)];
    if (!lbvh_left_out(&leaf))
        for (int a = 0; a < 3; a++) at[a] = 0.5 * leaf.min[a] + 0.5 * leaf.max[a];
}

static real clamped(double x)
{
    return (real)std::min(std::max(x, -(double)lbvh_i_largest()), (double)lbvh_i_largest());
}

/* One box of dim numbers twice, and what a box must not be. A third are points, which lie on
   borders of leaves when `at` does. */
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

static void put_sphere(int dim, int q, const double at[3], double radius, bool with_radius,
    std::vector<real> *out)
{
    for (int a = 0; a < dim; a++)
        out->push_back(q % 16 == 5 && a == q % dim ? not_a_number : q % 32 == 6 ? infinity :
            clamped(at[a]));
    if (!with_radius) return;
    out->push_back(q % 16 == 7 ? -1 : q % 16 == 8 ? not_a_number : q % 32 == 9 ? infinity :
        q % 4 == 1 ? 0 : clamped(radius));
}

/* Queries of all sizes all over the tree; with an odd seed, a crowd of them around one spot, for
   warps that search together. */
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
        double const reach = length * (seed % 2 ? 0.1 * wl_u(&r) :
            0.3 * std::pow((double)wl_u(&r), 4));
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
    CHECK_RESULT(lbvh_overlaps(&tree, &s.host, l.offsets.data(), l.ids.data(), needed, &needed),
        LBVH_OK);
    return l;
}

/* Room for `capacity` ids: rows that fit whole are there, and nothing is written behind. */
static void check_lists_cut(Trees &g, const Search &s, const Lists &want, size_t capacity)
{
    size_t const needed = want.ids.size();
    Device<int64_t> d_offsets((size_t)s.rows + 2);
    Device<int32_t> d_ids(std::vector<int32_t>(needed + 4, -7));
    int32_t *const to = capacity ? d_ids.p : nullptr;
    CHECK_RESULT(lbvh_cuda_overlaps(&g.gpu, &s.device, d_offsets.p, to, (int64_t)capacity, stream),
        LBVH_OK);
    std::vector<int64_t> offsets = d_offsets.get();
    std::vector<int32_t> const ids = d_ids.get();
    CHECK(offsets.back() == (int64_t)0xA5A5A5A5A5A5A5A5u && "the end of the offsets");
    offsets.pop_back();
    CHECK(offsets == want.offsets);
    for (size_t k = capacity; k < ids.size(); k++)
        if (ids[k] != -7) { CHECK(ids[k] == -7 && "beyond the capacity"); break; }
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
    for (int q = 0; q < m; q++)
        filters[(size_t)q] = q % 5 == 2 ? 0 : q % 5 == 4 ? 0xFFFFFFFFu : 3u << q % 31;
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

static void check_given(Trees &g, lbvh_kind kind, int m, real radius, int flags, int filter,
    bool padded, int seed)
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

/* How many pairs there are, from boxes and masks alone: an element left out has a box that meets
   nothing. */
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
            for (int a = 0; a < d.dim; a++)
                meet = meet && p[a] <= q[d.dim + a] && q[a] <= p[d.dim + a];
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
    for (size_t p = 0; p + 1 < pairs.size(); p += 2)
        set.push_back(std::minmax({pairs[p], pairs[p + 1]}));
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
    CHECK_RESULT(lbvh_cuda_pairs(&g.gpu, capacity ? d_pairs.p : nullptr, (int64_t)capacity,
        d_needed.p, stream), LBVH_OK);
    std::vector<int32_t> const got = d_pairs.get();
    std::vector<int64_t> const needed = d_needed.get();
    size_t const written = std::min(2 * capacity, want.size());
    CHECK(needed[0] == (int64_t)(want.size() / 2) && needed[1] == (int64_t)0xA5A5A5A5A5A5A5A5u);
    CHECK(std::equal(got.begin(), got.begin() + (ptrdiff_t)written, want.begin()));
    CHECK((size_t)std::count(got.begin() + (ptrdiff_t)written, got.end(), -7) == got.size() -
        written && "beyond the capacity");
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
static Nearest serial_nearest(const lbvh &tree, const Input &points, int32_t m, int32_t k,
    real reach)
{
    Nearest near = {std::vector<int32_t>((size_t)m * (size_t)k + 1, -1),
        std::vector<int32_t>((size_t)m + 1),
        std::vector<real>((size_t)m * (size_t)k + 1, infinity)};
    for (int32_t q = 0; q < m; q++) {
        size_t const row = (size_t)q * (size_t)k;
        const real *p = lbvh_i_at(points.data.data(),
            points.stride ? points.stride : points.width * sizeof(real), q);
        int32_t *const found = &near.found[(size_t)q];
        CHECK_RESULT(lbvh_nearest(&tree, p, k, reach, nullptr, nullptr, &near.ids[row],
            &near.distances2[row], found), LBVH_OK);
    }
    memset(&near.ids.back(), 0xA5, sizeof(int32_t));
    memset(&near.distances2.back(), 0xA5, sizeof(real));
    memset(&near.found.back(), 0xA5, sizeof(int32_t));
    return near;
}

static void check_nearest(Trees &g, int32_t m, int32_t k, real reach, int flags, bool padded,
    int seed)
{
    Input in = {};
    std::string const before = context;
    name_search((std::to_string(k) + " nearest, reach " + std::to_string(reach)).c_str(), m, flags,
        0);
    in.data = queries_of(g.serial, LBVH_POINTS, m, seed);
    in.width = (size_t)g.serial.desc.dim;
    if (padded && m) pad(&in);
    if (in.data.empty()) in.data.push_back(0);
    Nearest const want = serial_nearest(g.serial, in, m, k, reach);
    Device<real> d_points(in.data), d_distances2(want.distances2.size());
    Device<int32_t> d_ids(want.ids.size()), d_found(want.found.size());
    CHECK_RESULT(lbvh_cuda_nearest(&g.gpu, d_points.p, in.stride, m, k, reach, flags, d_ids.p,
        d_distances2.p, d_found.p, stream), LBVH_OK);
    CHECK(d_found.get() == want.found);
    CHECK(d_ids.get() == want.ids);
    CHECK(same_bits(d_distances2.get(), want.distances2));
    context = before;
}
