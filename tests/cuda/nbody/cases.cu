/* cases.cu - a part of test_nbody.cu: the cases: methods and orders x laws x levels given or not
   x inputs; where the bodies are, and what the caller has of them on host and device.
   SPDX-License-Identifier: MIT OR Unlicense */

/* What the error of a double build may be: |dF| / |F| on average, and the largest |dF| / S, where S
   is the sum of |terms|. */
struct Bar {
    double mean, share;
};

struct Setting {
    nbody_method method;
    int order;
    nbody_sources sources;
    int subcells;
    Bar bar;                    /* for evenly spread bodies of any number */
};

static const Setting settings[] = {
    {NBODY_DIRECT, 0, NBODY_SOURCES_AUTO, 0, {1e-12, 1e-14}},
    {NBODY_VIRTUAL_PARTICLES, 1, NBODY_SOURCES_AUTO, 0, {5.5e-4, 5e-4}},
    {NBODY_VIRTUAL_PARTICLES, 1, NBODY_MASS_CENTRES, 4, {2.3e-3, 1.8e-3}},
    {NBODY_VIRTUAL_PARTICLES, 1, NBODY_MASS_CENTRES, 2, {9e-3, 6.5e-3}},
    {NBODY_VIRTUAL_PARTICLES, 2, NBODY_SOURCES_AUTO, 8, {2.6e-6, 8e-6}},
    {NBODY_VIRTUAL_PARTICLES, 2, NBODY_SOURCES_AUTO, 4, {4e-5, 4e-4}},
    {NBODY_VIRTUAL_PARTICLES, 2, NBODY_SOURCES_AUTO, 2, {5e-4, 1.1e-3}},
    {NBODY_FORCE_NODES, 1, NBODY_SOURCES_AUTO, 0, {2.6e-3, 8e-3}},
    {NBODY_FORCE_NODES, 1, NBODY_MASS_CENTRES, 4, {2.6e-3, 1e-2}},
    {NBODY_FORCE_NODES, 0, NBODY_SOURCES_AUTO, 0, {1.4e-3, 3.2e-3}},
    {NBODY_FORCE_NODES, 4, NBODY_MASS_CENTRES, 8, {1.3e-3, 3.2e-3}},
    {NBODY_FORCE_NODES, 6, NBODY_MASS_CENTRES, 2, {9e-3, 6.5e-3}},
    {NBODY_FORCE_NODES, 2, NBODY_CHEBYSHEV, 0, {5e-2, 1e-1}},
    {NBODY_FORCE_NODES, 3, NBODY_CHEBYSHEV, 0, {9e-3, 1.8e-2}},
    {NBODY_FORCE_NODES, 5, NBODY_CHEBYSHEV, 0, {2.6e-4, 1.1e-3}},
    {NBODY_FORCE_NODES, 6, NBODY_SOURCES_AUTO, 0, {4.5e-5, 1.6e-4}},
    {NBODY_FORCE_NODES, is_float ? 7 : 14, NBODY_SOURCES_AUTO, 0,
     is_float ? Bar{8e-6, 3e-5} : Bar{2.5e-10, 1.4e-9}}, /* 14: without NBODY_FAST */
    {NBODY_FORCE_NODES, 8, NBODY_SOURCES_AUTO, 0, {2.4e-6, 1.3e-5}},
    {NBODY_FORCE_NODES, 12, NBODY_SOURCES_AUTO, 0, {2.5e-9, 1.4e-8}},
    {NBODY_AUTO, 0, NBODY_SOURCES_AUTO, 0, {1.4e-3, 3.2e-3}},
};

enum { SETTINGS = sizeof settings / sizeof *settings };

enum Shape { UNIFORM, CLUMPS, LATTICE, BORDERS, TWICE, LINE, ONE_FAR, TWO_SCALES, EQUAL, SHAPES };

enum Masses { NO_MASSES, ONES, WILD, SOME_ZERO, BOTH_SIGNS, MASSES };

enum Square { FITTED, GIVEN, TOO_NARROW, SQUARES };

enum Outputs { ALL_OUTPUTS, ACCELERATIONS, POTENTIALS, OUTPUTS };

struct Case {
    int setting;
    nbody_law law;
    Shape shape;
    int levels, leaf;           /* 0: automatic */
    int soft, repels, padded;
    Masses masses;
    Square square;
    Outputs outputs;
    int units;                  /* which scale and offset */
    int n;
};

static const size_t case_count = SETTINGS * SHAPES * 2 * 2;

/* Charges of both signs have no centre of mass. */
static bool takes_signs(const Setting &s)
{
    return s.method == NBODY_DIRECT ||
        (s.method == NBODY_FORCE_NODES && s.order != 1 && s.sources != NBODY_MASS_CENTRES);
}

/* A table of forces between points of many orders takes the emulator seconds. */
static bool is_large(const Setting &s) { return s.order >= 7 && s.sources != NBODY_MASS_CENTRES; }

/* Number k of all combinations; what is not multiplied out comes from a number scattered by k. */
static Case case_of(size_t k)
{
    static const int levels[] = {4, 5, 3, 6, 1, 4, 2, 9};
    uint32_t const s = scattered(k), t = scattered(k + 77777);
    Case c = {};
    c.setting = (int)(k % SETTINGS), k /= SETTINGS;
    if (few_large && is_large(settings[c.setting]) && s % 16) c.setting = 9;
    c.shape = (Shape)(k % SHAPES), k /= SHAPES;
    c.law = (nbody_law)(k % 2), k /= 2;
    c.levels = k % 2 ? levels[s % 8] : 0;
    c.leaf = s / 8 % 3 == 0 ? 1 + (int)(s / 24 % 20) : 0;
    c.soft = s / 512 % 3 == 0;
    c.repels = s / 2048 % 4 == 0;
    c.padded = s / 8192 % 3 == 0;
    c.masses = (Masses)(t % MASSES);
    if (c.masses == BOTH_SIGNS && !takes_signs(settings[c.setting])) c.masses = WILD;
    c.square = (Square)(t / 8 % SQUARES);
    c.outputs = t / 64 % 4 == 0 ? (Outputs)(t / 256 % OUTPUTS) : ALL_OUTPUTS;
    c.units = (int)(t / 1024 % 4);
    return c;
}

static std::string name_of(const Setting &s)
{
    static const char *const methods[] = {"auto", "direct", "virtual particles", "force nodes"};
    static const char *const sources[] = {"", ", mass centres", ", Chebyshev"};
    char text[120];
    snprintf(text, sizeof text, "%s, order %d%s, subcells %d", methods[s.method], s.order,
        sources[s.sources], s.subcells);
    return text;
}

static std::string name_of(const Case &c)
{
    static const char *const shapes[] = {"uniform", "clumps",  "lattice",    "borders", "twice",
                                         "line",    "one far", "two scales", "equal"};
    char text[300];
    snprintf(text, sizeof text,
             "n %d, law %d, %s, levels %d, leaf %d, soft %d, repels %d, "
             "masses %d, square %d, outputs %d, padded %d, units %d, ",
             c.n, c.law, shapes[c.shape], c.levels, c.leaf, c.soft, c.repels, c.masses, c.square,
                 c.outputs, c.padded, c.units);
    return text + name_of(settings[c.setting]);
}

/* ---- where the bodies are, in the unit square but for one ---- */

static double clump(int i, int axis, double u, double v)
{
    return (i * (3 + axis) % 5 + 0.5) / 5 + 0.03 * (u - v);
}

/* On a border of cells, or as near as numbers can be. */
static double on_border(uint32_t dice)
{
    double const border = 0.25 * (dice % 5);
    real const x = (real)border;
    if (border == 0) return dice / 5 % 3 ? 0.0 : -0.0;
    if (dice / 5 % 3 == 0) return border;
    return (double)std::nextafter(x, (real)(dice / 5 % 3 == 1 ? 2 : -1));
}

static double place_of(Shape shape, int i, int n, int axis, wl_random *r)
{
    double const u = (double)wl_u(r), v = (double)wl_u(r);
    uint32_t const dice = wl_below(r, 1u << 20);
    switch (shape) {
    case CLUMPS: return clump(i, axis, u, v);
    case LATTICE: return (axis ? i / 16 % 17 : i % 16) / 16.0;
    case BORDERS: return on_border(dice);
    case LINE: return axis ? 0.3 : u;
    case ONE_FAR: return i == n / 2 ? 3000 - 5000 * axis : u;
    case TWO_SCALES: return i % 2 ? u : 0.71 + 1e-4 * u;
    case EQUAL: return 0.625;
    default: return u;
    }
}

static std::vector<real> points_of(const Case &c, wl_random *r)
{
    static const double scales[] = {1, 3e5, 1e-4, 1}, offsets[] = {0, -1e5, 0, 17};
    std::vector<real> points;
    for (int i = 0; i < c.n; i++)
        for (int a = 0; a < 2; a++) {
            double const at = place_of(c.shape, i, c.n, a, r);
            if (c.shape == TWICE && i % 2) points.push_back(points[points.size() - 2]);
            else points.push_back((real)(at * scales[c.units] + offsets[c.units]));
        }
    return points;
}

static std::vector<real> masses_of(const Case &c, wl_random *r)
{
    std::vector<real> masses;
    for (int i = 0; i < c.n && c.masses != NO_MASSES; i++) {
        double const u = (double)wl_u(r), wild = std::pow(10.0, 12 * u - 6);
        double const sign = c.masses == BOTH_SIGNS && wl_below(r, 2) ? -1 : 1;
        if (c.masses == SOME_ZERO) masses.push_back((real)(i % 3 == 1 ? 0 : 0.5 + u));
        else
            masses.push_back((real)(c.masses == WILD ? wild : c.masses == BOTH_SIGNS ?
                sign * (0.5 + u) : 1));
    }
    return masses;
}

/* ---- what the caller has of them ---- */

struct Input {
    int n;
    size_t stride;              /* bytes, 0: tight */
    Outputs outputs;
    std::vector<real> pos, mass;
    nbody_desc desc;
};

/* `gap` more numbers after every `width`, which must not be read. */
static std::vector<real> with_gaps(const std::vector<real> &tight, size_t width, size_t gap)
{
    std::vector<real> wide;
    for (size_t k = 0; k < tight.size(); k++) {
        wide.push_back(tight[k]);
        if ((k + 1) % width == 0) wide.insert(wide.end(), gap, not_a_number);
    }
    return wide;
}

static size_t step_of(size_t stride, size_t tight)
{
    return stride ? stride / sizeof(real) : tight;
}
static const real *point_of(const Input &in, int i)
{
    return &in.pos[(size_t)i * step_of(in.stride, 2)];
}
static double mass_of(const Input &in, int i)
{
    return in.mass.empty() ? 1.0 : (double)in.mass[(size_t)i * step_of(in.desc.mass_stride, 1)];
}
static const real *masses_or_null(const Input &in)
{
    return in.mass.empty() ? nullptr : in.mass.data();
}

/* The square that just holds the bodies, wider, or too narrow for them. */
static void give_square(const Case &c, Input *in)
{
    double low[2] = {1e30, 1e30}, high[2] = {-1e30, -1e30};
    for (int i = 0; i < c.n; i++)
        for (int a = 0; a < 2; a++) {
            low[a] = std::min(low[a], (double)point_of(*in, i)[a]);
            high[a] = std::max(high[a], (double)point_of(*in, i)[a]);
        }
    double const size = std::max(high[0] - low[0], high[1] - low[1]);
    if (c.square == FITTED || c.n == 0 || size == 0) return;
    for (int a = 0; a < 2; a++)
        in->desc.min[a] = (real)(low[a] - (c.square == GIVEN ? 0.25 * size : 0));
    in->desc.size = (real)(size * (c.square == GIVEN ? 1.5 : 0.5));
}

static nbody_desc desc_of(const Setting &s)
{
    nbody_desc d = {};
    d.method = s.method;
    d.order = s.order;
    d.sources = s.sources;
    d.subcells = s.subcells;
    return d;
}

static Input input_of(const Case &c, int seed)
{
    static const double lengths[] = {1, 3e5, 1e-4, 1};
    wl_random r = wl_seed((uint64_t)seed);
    Input in = {};
    std::vector<real> const points = points_of(c, &r), masses = masses_of(c, &r);
    in.n = c.n;
    in.outputs = c.outputs;
    in.desc = desc_of(settings[c.setting]);
    in.desc.law = c.law;
    in.desc.levels = c.levels;
    in.desc.leaf = c.leaf;
    in.desc.gravity = (real)(c.repels ? -0.3 : 0);
    in.desc.softening = (real)(c.soft ? 0.01 * lengths[c.units] : 0);
    in.stride = c.padded ? 5 * sizeof(real) : 0;
    in.pos = c.padded ? with_gaps(points, 2, 3) : points;
    in.mass = c.padded ? with_gaps(masses, 1, 2) : masses;
    in.desc.mass_stride = c.padded ? 3 * sizeof(real) : 0;
    in.desc.acc_stride = c.padded ? 4 * sizeof(real) : 0;
    give_square(c, &in);
    return in;
}

/* Bodies of one method, evenly spread: what most tests about calls need. */
static Input plain_input(int setting, int n, int seed)
{
    Case c = {};
    c.setting = setting;
    c.masses = ONES;
    c.n = n;
    return input_of(c, seed);
}

static int setting_like(nbody_method method, int order)
{
    for (int k = 0; k < SETTINGS; k++)
        if (settings[k].method == method && settings[k].order == order) return k;
    return 0;
}

/* ---- the same on the device, and what comes out ---- */

struct OnDevice {
    Device<real> pos, mass, acc, potential;
    explicit OnDevice(const Input &in)
        : pos(in.pos), mass(in.mass), acc((size_t)in.n * step_of(in.desc.acc_stride, 2)),
            potential((size_t)in.n)
    {
    }
    const real *masses(const Input &in) const { return in.mass.empty() ? nullptr : mass.p; }
};

/* As they lie in memory, with the gaps. */
struct Fields {
    std::vector<real> acc, potential;
};
