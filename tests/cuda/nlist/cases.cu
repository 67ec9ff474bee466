/* cases.cu - a part of test_nlist.cu: the cases: sources x layouts x half or full x dimensions x
   periods x order x inputs; where the particles are, and what the caller has of them on host and
   device.
   SPDX-License-Identifier: MIT OR Unlicense */

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
    static const char *const shapes[] = {"uniform", "clustered", "lattice", "all equal",
        "some outside", "two sizes"};
    char text[300];
    snprintf(text, sizeof text,
             "n %d, %s, %s, %dD, %s, %s, %s, periodic %d, radii %d, masks %d, "
             "exclusions %d, skin %d, history %d, events %d, "
             "padded %d, width %d, variant %d",
             c.n, sources[c.source], layouts[c.layout], c.dim, c.half ? "half" : "full",
             c.deterministic ? "deterministic" : "any order", shapes[c.shape], c.periodic, c.radii,
                 c.masked, c.exclusive, c.skin,
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

/* Three more numbers after each point, which must not be read. */
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
        in->radii.push_back((real)(c.shape == TWO_SIZES && i % 16 != 3 ? 0.1 * u * most :
            std::min(u * most, 0.06)));
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

/* Pairs of neighbours by the distance that nlist.h itself takes; shuffled, turned round, and some
   repeated. */
static void give_pairs(const Case &c, wl_random *r, Input *in)
{
    std::vector<std::pair<int32_t, int32_t>> found;
    double const reach = std::max(0.1, radius_of(c));
    for (int32_t i = 0; i < c.n; i++)
        for (int32_t j = 0; j < i; j++) {
            double square = 0;
            for (int a = 0; a < c.dim; a++)
                square += std::pow((double)point_of(*in, i)[a] - (double)point_of(*in, j)[a], 2);
            if (square > reach * reach) continue;
            for (uint32_t copies = 1 + (wl_below(r, 4) == 0); copies > 0; copies--)
                found.push_back(wl_below(r, 2) ? std::make_pair(i, j) : std::make_pair(j, i));
        }
    for (size_t k = found.size(); k > 1; k--)
        std::swap(found[k - 1], found[wl_below(r, (uint32_t)k)]);
    for (auto p : found) in->pairs.push_back(p.first), in->pairs.push_back(p.second);
}

static void give_cells(const Case &c, double reach, Input *in)
{
    static const ugrid_method methods[] = {UGRID_SORT, UGRID_COUNT, UGRID_FIXED, UGRID_LIST,
        UGRID_LIST_PACKED};
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
    d->coherent = c.variant % 8 == 5; /* true or not */
    in->ordered = d->deterministic || d->method == UGRID_SORT;
}

/* The tree over points, boxes around them, or spheres; on request from where the particles were a
   little before. */
static void give_boxes(const Case &c, wl_random *r, Input *in)
{
    bool const spheres = c.radii && c.variant % 2, stale = c.variant % 3 == 1;
    lbvh_desc *const d = &in->boxes;
    d->dim = c.dim;
    d->kind = spheres ? LBVH_SPHERES : LBVH_POINTS;
    if (!spheres && c.variant % 5 == 1) d->radius = (real)0.03;
    if (c.variant % 4 == 3) d->builder = LBVH_SPLIT;
    for (int i = 0; i < c.n; i++) {
        for (int a = 0; a < c.dim; a++)
            in->elements.push_back(point_of(*in, i)[a] + (stale ? (real)(0.01 * wl_u(r)) : 0));
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
    for (int i = 0; c.masked && i < c.n; i++)
        in.masks.push_back(i % 7 == 3 ? 0 : 1u << wl_below(r, 32) | 3u << i % 5);
    if (c.exclusive) give_exclusions(c, r, &in);
    if (c.source == PAIRS) give_pairs(c, r, &in);
    if (c.source == TREE) give_boxes(c, r, &in);
    if (c.source == GRID)
        give_cells(c, (double)d->radius + (double)d->skin + (c.radii ? 0.12 : 0), &in);
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
        : pos(in.pos), radii(in.radii), elements(in.elements), masks(in.masks),
            exclude_start(in.exclude_start),
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
