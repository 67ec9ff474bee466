/* test_nbody.cu - tests of the CUDA half of nbody.h, against the serial half.
   SPDX-License-Identifier: MIT OR Unlicense

       nvcc -std=c++17 -arch=native -O3 -I. tests/cuda/nbody/test_nbody.cu -o test_nbody && ./test_nbody
       ./test_nbody --n 3000 --share 4 --only truth         most bodies of a case; every 4th case; tests whose names hold a word

   The same file runs on the CPU under tests/emu, with fewer bodies. Nothing but CUDA and the C++ library is needed.

   What is compared, and how exactly:
   - The tree (frame, cells, places, ids) bit for bit, in every stage; so are the walks that a kernel takes through it.
   - Sources, nodes, accelerations and potentials of NBODY_ONE_THREAD, NBODY_MANY_THREADS and NBODY_SHARED_MEMORY: bit for bit.
   - Those of NBODY_FAST within rounding: a few millionths (float) of the sum of the sizes of all terms, in which nothing cancels.
     Two runs of it: bit for bit.
   - NBODY_FAST also against the direct sum in double, within the bars of each method and order.
   The serial half is held against the direct sum in its own tests. */

#define NBODY_IMPLEMENTATION
#define NBODY_CUDA
#include "nbody.h"
#define TESTED nbody
#include "../testing.h"

static bool heavy;              /* the emulator interleaves blocks: little work */
static bool few_large;          /* on the emulator: hardly any large tables */
static int thin = 1;            /* on the emulator: so many times fewer cases */

/* A number that may be at most `bar`. NaN is more. */
#define CHECK_AT_MOST(number, bar) do { \
        double const is_ = (number), most_ = (bar); \
        checks++; \
        if (!(is_ <= most_)) { printf("%.3g, at most %.3g\n", is_, most_); failed(__FILE__, __LINE__, #number " <= " #bar); } \
    } while (0)

/* Host memory as Device's, before anybody has written. */
static std::vector<real> unset(size_t count)
{
    std::vector<real> v(count);
    if (count) memset(v.data(), 0xA5, count * sizeof(real));
    return v;
}

/* One of `every` cases; and one of `most` however large --share is, where nothing is thinned out. */
static bool thinned(size_t k, int every, int most) { return chosen(k, every, most * thin); }

static const bool is_float = sizeof(real) == sizeof(float);
static const double epsilon = is_float ? 1.1920929e-7 : 2.220446049250313e-16;

/* How far NBODY_FAST may be from the serial code, as a share of the sum of the sizes of all terms. */
static const double fast_share = 40 * epsilon;

static nbody_stage const exact_stages[] = {NBODY_ONE_THREAD, NBODY_MANY_THREADS, NBODY_SHARED_MEMORY};
static nbody_stage const all_stages[] = {NBODY_ONE_THREAD, NBODY_MANY_THREADS, NBODY_SHARED_MEMORY, NBODY_FAST};
static const char *const stage_names[] = {"fast", "one thread", "many threads", "shared memory"};

/* ------------------------------------------------------------------------------------------------
   Cases: methods and orders x laws x levels given or not x inputs
   ------------------------------------------------------------------------------------------------ */

/* What the error of a double build may be: |dF| / |F| on average, and the largest |dF| / S, where S is the sum of |terms|. */
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
    {NBODY_FORCE_NODES, 7, NBODY_SOURCES_AUTO, 0, {8e-6, 3e-5}},
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
    return s.method == NBODY_DIRECT || (s.method == NBODY_FORCE_NODES && s.order != 1 && s.sources != NBODY_MASS_CENTRES);
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
    snprintf(text, sizeof text, "%s, order %d%s, subcells %d", methods[s.method], s.order, sources[s.sources], s.subcells);
    return text;
}

static std::string name_of(const Case &c)
{
    static const char *const shapes[] = {"uniform", "clumps",  "lattice",    "borders", "twice",
                                         "line",    "one far", "two scales", "equal"};
    char text[300];
    snprintf(text, sizeof text,
             "n %d, law %d, %s, levels %d, leaf %d, soft %d, repels %d, masses %d, square %d, outputs %d, padded %d, units %d, ",
             c.n, c.law, shapes[c.shape], c.levels, c.leaf, c.soft, c.repels, c.masses, c.square, c.outputs, c.padded, c.units);
    return text + name_of(settings[c.setting]);
}

/* ---- where the bodies are, in the unit square but for one ---- */

static double clump(int i, int axis, double u, double v) { return (i * (3 + axis) % 5 + 0.5) / 5 + 0.03 * (u - v); }

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
        else masses.push_back((real)(c.masses == WILD ? wild : c.masses == BOTH_SIGNS ? sign * (0.5 + u) : 1));
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

/* `gap` more numbers after every `width`, which nobody may read. */
static std::vector<real> with_gaps(const std::vector<real> &tight, size_t width, size_t gap)
{
    std::vector<real> wide;
    for (size_t k = 0; k < tight.size(); k++) {
        wide.push_back(tight[k]);
        if ((k + 1) % width == 0) wide.insert(wide.end(), gap, not_a_number);
    }
    return wide;
}

static size_t step_of(size_t stride, size_t tight) { return stride ? stride / sizeof(real) : tight; }
static const real *point_of(const Input &in, int i) { return &in.pos[(size_t)i * step_of(in.stride, 2)]; }
static double mass_of(const Input &in, int i)
{
    return in.mass.empty() ? 1.0 : (double)in.mass[(size_t)i * step_of(in.desc.mass_stride, 1)];
}
static const real *masses_or_null(const Input &in) { return in.mass.empty() ? nullptr : in.mass.data(); }

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
    for (int a = 0; a < 2; a++) in->desc.min[a] = (real)(low[a] - (c.square == GIVEN ? 0.25 * size : 0));
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
        : pos(in.pos), mass(in.mass), acc((size_t)in.n * step_of(in.desc.acc_stride, 2)), potential((size_t)in.n)
    {
    }
    const real *masses(const Input &in) const { return in.mass.empty() ? nullptr : mass.p; }
};

/* As they lie in memory, with the gaps. */
struct Fields {
    std::vector<real> acc, potential;
};

/* ------------------------------------------------------------------------------------------------
   Both sides: a simulation on the device, the serial one, the device's one downloaded
   ------------------------------------------------------------------------------------------------ */

struct Both {
    nbody_cuda gpu = {};
    nbody serial = {}, copy = {};
    Both() = default;
    Both(const Both &) = delete;
    Both &operator=(const Both &) = delete;
    ~Both()
    {
        nbody_cuda_free(&gpu);
        nbody_free(&serial);
        nbody_free(&copy);
    }
};

static nbody_result run_serial(nbody *sim, const Input &in, Fields *out)
{
    out->acc = unset((size_t)in.n * step_of(in.desc.acc_stride, 2));
    out->potential = unset((size_t)in.n);
    if (in.outputs == ACCELERATIONS)
        return nbody_accelerations(sim, &in.desc, in.pos.data(), in.stride, masses_or_null(in), in.n, out->acc.data());
    return nbody_fields(sim, &in.desc, in.pos.data(), in.stride, masses_or_null(in), in.n,
                        in.outputs == POTENTIALS ? nullptr : out->acc.data(), out->potential.data());
}

static nbody_result run_gpu(nbody_cuda *gpu, const Input &in, nbody_stage stage, const OnDevice &there)
{
    nbody_desc d = in.desc;
    d.stage = stage;
    if (in.outputs == ACCELERATIONS)
        return nbody_cuda_accelerations(gpu, &d, there.pos.p, in.stride, there.masses(in), in.n, there.acc.p, stream);
    return nbody_cuda_fields(gpu, &d, there.pos.p, in.stride, there.masses(in), in.n,
                             in.outputs == POTENTIALS ? nullptr : there.acc.p, there.potential.p, stream);
}

static Fields fields_of(const OnDevice &there)
{
    Fields f = {there.acc.get(), there.potential.get()};
    return f;
}

/* ---- comparing: the tree ---- */

static void check_desc(const nbody_desc &a, const nbody_desc &b)
{
    CHECK(a.method == b.method && a.law == b.law && a.levels == b.levels && a.leaf == b.leaf && a.order == b.order);
    CHECK(a.sources == b.sources && a.subcells == b.subcells && a.gravity == b.gravity && a.softening == b.softening);
}

static void check_frame(const nbody_frame &a, const nbody_frame &b, bool tree)
{
    CHECK(same_bits(a.min, b.min, 2) && same_bits(&a.size, &b.size, 1) && a.fitted == b.fitted);
    CHECK(same_bits(&a.length, &b.length, 1) && same_bits(&a.mass, &b.mass, 1));
    CHECK(same_bits(a.origin, b.origin, 2) && same_bits(&a.edge, &b.edge, 1) && same_bits(&a.inverse, &b.inverse, 1)
          && same_bits(&a.soften2, &b.soften2, 1));
    CHECK(a.levels == b.levels && a.cells == b.cells && b.cells_needed <= b.cells);
    CHECK(!tree || same_bits(a.level_first, b.level_first, NBODY_MAX_LEVELS + 1));
}

static bool same_cell(const nbody_cell &a, const nbody_cell &b)
{
    return a.x == b.x && a.y == b.y && a.first == b.first && a.count == b.count && a.parent == b.parent && a.child == b.child
           && a.level == b.level && a.children == b.children && a.besides == b.besides && same_bits(a.beside, b.beside, a.besides);
}

/* False: no more can be compared. */
static bool check_tree(const nbody &serial, const nbody &copy)
{
    size_t const n = (size_t)serial.n;
    CHECK(copy.n == serial.n && copy.frame != nullptr && copy.per_cell == serial.per_cell && copy.nodes == serial.nodes);
    if (copy.n != serial.n || !copy.frame) return false;
    check_desc(serial.desc, copy.desc);
    check_frame(*serial.frame, *copy.frame, serial.cell != nullptr);
    CHECK(same_bits(serial.id, copy.id, n) && same_bits(serial.x, copy.x, n) && same_bits(serial.y, copy.y, n));
    CHECK(same_bits(serial.m, copy.m, n));
    CHECK((serial.cell == nullptr) == (copy.cell == nullptr));
    if (serial.frame->cells != copy.frame->cells || !serial.cell || !copy.cell) return serial.frame->cells == copy.frame->cells;
    bool same = true;
    for (int32_t c = 0; c < serial.frame->cells; c++) same = same && same_cell(serial.cell[c], copy.cell[c]);
    CHECK(same && "cells");
    return same;
}

/* ---- comparing: sources and nodes ---- */

/* The part of one array that belongs to a cell. */
static bool same_part(const real *a, const real *b, int32_t cell, int32_t each, int32_t count)
{
    size_t const first = (size_t)cell * (size_t)each;
    if (!a && !b) return true;
    return a && b && same_bits(a + first, b + first, (size_t)count);
}

/* The largest difference within a cell. */
static double part_difference(const real *a, const real *b, int32_t cell, int32_t each, int32_t count)
{
    double most = 0;
    if (!a && !b) return 0;
    if (!a || !b) return HUGE_VAL;
    for (int32_t k = cell * each; k < cell * each + count; k++) {
        double const d = std::fabs((double)a[k] - (double)b[k]);
        if (!(d <= most)) most = d == d ? d : HUGE_VAL;
    }
    return most;
}

/* Sources of a cell: those of level 2 and finer act. The leaves of mass centres act by their bodies. */
static int32_t sources_of(const nbody &sim, int32_t cell)
{
    if (sim.cell[cell].level < 2) return 0;
    if (sim.desc.sources == NBODY_CHEBYSHEV) return sim.per_cell;
    return sim.cell[cell].child < 0 ? 0 : sim.made[cell];
}

static void check_sources_exactly(const nbody &a, const nbody &b)
{
    bool made = true, same = true, moments = true;
    for (int32_t c = 0; a.cell && c < a.frame->cells; c++) {
        int32_t const count = sources_of(a, c);
        made = made && count == sources_of(b, c);
        if (!made) break;
        same = same && same_part(a.vm, b.vm, c, a.per_cell, count);
        same = same && same_part(a.vx, b.vx, c, a.per_cell, count) && same_part(a.vy, b.vy, c, a.per_cell, count);
        moments = moments && same_part(a.vxx, b.vxx, c, a.per_cell, count) && same_part(a.vxy, b.vxy, c, a.per_cell, count)
                  && same_part(a.vyy, b.vyy, c, a.per_cell, count);
    }
    CHECK(made && "as many sources");
    CHECK(same && "the same sources");
    CHECK(moments && "the same second moments");
}

static double mass_in(const nbody &sim, int32_t cell)
{
    double sum = 0;
    const nbody_cell &c = sim.cell[cell];
    for (int32_t p = c.first; p < c.first + c.count; p++) sum += std::fabs((double)sim.m[p]);
    return sum;
}

static double edge_of(const nbody &sim, int32_t cell) { return std::ldexp(sim.frame->edge, -(int)sim.cell[cell].level); }

/* Places within rounding of the largest coordinate; masses within rounding of all that is in the cell. */
static void check_sources_nearly(const nbody &a, const nbody &b)
{
    double places = 0, masses = 0, moments = 0;
    double const reach = std::max(std::fabs(a.frame->origin[0]), std::fabs(a.frame->origin[1])) + a.frame->edge;
    for (int32_t c = 0; a.cell && c < a.frame->cells; c++) {
        int32_t const count = sources_of(a, c);
        double const mass = mass_in(a, c) + 1e-30, square = edge_of(a, c) * edge_of(a, c);
        CHECK(count == sources_of(b, c));
        if (count != sources_of(b, c)) return;
        masses = std::max(masses, part_difference(a.vm, b.vm, c, a.per_cell, count) / mass);
        places = std::max(places, part_difference(a.vx, b.vx, c, a.per_cell, count) / reach);
        places = std::max(places, part_difference(a.vy, b.vy, c, a.per_cell, count) / reach);
        moments = std::max(moments, part_difference(a.vxx, b.vxx, c, a.per_cell, count) / (mass * square));
        moments = std::max(moments, part_difference(a.vxy, b.vxy, c, a.per_cell, count) / (mass * square));
        moments = std::max(moments, part_difference(a.vyy, b.vyy, c, a.per_cell, count) / (mass * square));
    }
    CHECK_AT_MOST(masses, fast_share);
    CHECK_AT_MOST(places, 8 * epsilon);
    CHECK_AT_MOST(moments, fast_share);
}

static void check_nodes_exactly(const nbody &a, const nbody &b, bool potentials)
{
    bool forces = true, potential = true;
    for (int32_t c = 0; a.cell && a.nodes && c < a.frame->cells; c++) {
        if (a.cell[c].level < 2) continue;
        forces = forces && same_part(a.fx, b.fx, c, a.nodes, a.nodes) && same_part(a.fy, b.fy, c, a.nodes, a.nodes);
        if (potentials) potential = potential && same_part(a.fp, b.fp, c, a.nodes, a.nodes);
    }
    CHECK(forces && "the same forces on nodes");
    CHECK(potential && "the same potentials at nodes");
}

/* Force and potential of one body of mass m at this distance, without their signs. */
struct Term {
    double force, potential;
};

/* `square` is in units of `length`, which logarithms are put together from. */
static Term term_of(nbody_law law, double square, double length, double m)
{
    double const d = std::sqrt(square);
    Term t = {0, 0};
    t.force = std::fabs(m) / (law == NBODY_INVERSE ? d : square);
    t.potential = std::fabs(m) * (law == NBODY_INVERSE ? std::fabs(std::log(d)) + std::fabs(std::log(length)) + 1 : 1 / d);
    return t;
}

/* The sizes of all terms that a cell's nodes are given: of bodies that are not in cells beside it, at its centre. */
static Term far_terms(const nbody &sim, int32_t cell)
{
    const nbody_cell &c = sim.cell[cell];
    double const edge = edge_of(sim, cell);
    double const at[2] = {sim.frame->origin[0] + edge * (c.x + 0.5), sim.frame->origin[1] + edge * (c.y + 0.5)};
    Term sum = {0, 0};
    for (int32_t p = 0; p < sim.n; p++) {
        double const dx = (double)sim.x[p] - at[0], dy = (double)sim.y[p] - at[1];
        if (std::max(std::fabs(dx), std::fabs(dy)) < 1.499 * edge) continue;
        Term const t = term_of(sim.desc.law, dx * dx + dy * dy + sim.frame->soften2, sim.frame->length, (double)sim.m[p]);
        sum.force += t.force;
        sum.potential += t.potential;
    }
    return sum;
}

static void check_nodes_nearly(const nbody &a, const nbody &b, bool potentials)
{
    double forces = 0, potential = 0;
    if (a.n > 3000) return; /* n terms for each cell */
    for (int32_t c = 0; a.cell && a.nodes && c < a.frame->cells; c++) {
        if (a.cell[c].level < 2) continue;
        Term const size = far_terms(a, c);
        forces = std::max(forces, part_difference(a.fx, b.fx, c, a.nodes, a.nodes) / (size.force + 1e-30));
        forces = std::max(forces, part_difference(a.fy, b.fy, c, a.nodes, a.nodes) / (size.force + 1e-30));
        if (!potentials) continue;
        potential = std::max(potential, part_difference(a.fp, b.fp, c, a.nodes, a.nodes) / (size.potential + 1e-30));
    }
    CHECK_AT_MOST(forces, 2 * fast_share);
    CHECK_AT_MOST(potential, 2 * fast_share);
}

/* ---- comparing: what comes out ---- */

/* The sizes of all terms at a point, in the caller's units. What lies at the point itself counts in softened potentials only. */
static Term all_terms(const Input &in, const nbody_frame &frame, const real *at)
{
    double const g = in.desc.gravity == 0 ? 1 : std::fabs((double)in.desc.gravity), length = frame.length;
    double const force = in.desc.law == NBODY_INVERSE ? 1 / length : 1 / (length * length);
    double const potential = in.desc.law == NBODY_INVERSE ? 1 : 1 / length;
    Term sum = {0, 0};
    for (int j = 0; j < in.n; j++) {
        double const dx = ((double)point_of(in, j)[0] - (double)at[0]) / length;
        double const dy = ((double)point_of(in, j)[1] - (double)at[1]) / length;
        bool const same = dx == 0 && dy == 0;
        if (same && in.desc.softening == 0) continue;
        Term const t = term_of(in.desc.law, dx * dx + dy * dy + frame.soften2, length, mass_of(in, j));
        sum.force += same ? 0 : g * force * t.force;
        sum.potential += g * potential * t.potential;
    }
    return sum;
}

static bool within(double a, double b, double most) { return a == b || std::fabs(a - b) <= most; }

/* Not every body, so that it takes little time where there are many. */
static void check_nearly(const Input &in, const nbody_frame &frame, const Fields &want, const Fields &got)
{
    size_t const step = step_of(in.desc.acc_stride, 2);
    bool forces = true, potentials = true, gaps = true;
    for (int i = 0; i < in.n; i += 1 + in.n / 2000) {
        Term const size = all_terms(in, frame, point_of(in, i));
        const real *const a = &want.acc[(size_t)i * step], *const b = &got.acc[(size_t)i * step];
        gaps = gaps && same_bits(a + 2, b + 2, step - 2);
        if (in.outputs == POTENTIALS) gaps = gaps && same_bits(a, b, 2);
        else for (int k = 0; k < 2; k++) forces = forces && within((double)a[k], (double)b[k], fast_share * size.force);
        double const p = (double)want.potential[(size_t)i], q = (double)got.potential[(size_t)i];
        if (in.outputs != ACCELERATIONS) potentials = potentials && within(p, q, fast_share * size.potential);
    }
    CHECK(forces && "accelerations within rounding");
    CHECK(potentials && "potentials within rounding");
    CHECK(gaps && "nothing else was written");
    if (in.outputs == ACCELERATIONS) CHECK(same_bits(want.potential, got.potential));
}

/* Everything that the device has, against the serial simulation in b and what that gave. */
static void compare(Both *b, const Input &in, nbody_stage stage, const Fields &want, const OnDevice &there)
{
    bool const potentials = in.outputs != ACCELERATIONS;
    Fields const got = fields_of(there);
    CHECK_RESULT(nbody_cuda_download(&b->copy, &b->gpu, stream), NBODY_OK);
    CHECK(b->copy.desc.stage == stage);
    if (!check_tree(b->serial, b->copy)) return;
    CHECK_RESULT(nbody_validate(&b->copy), NBODY_OK);
    if (stage == NBODY_FAST) {
        check_sources_nearly(b->serial, b->copy);
        check_nodes_nearly(b->serial, b->copy, potentials);
        check_nearly(in, *b->serial.frame, want, got);
    } else {
        check_sources_exactly(b->serial, b->copy);
        check_nodes_exactly(b->serial, b->copy, potentials);
        CHECK(same_bits(want.acc, got.acc));
        CHECK(same_bits(want.potential, got.potential));
    }
}

/* One evaluation in one stage, and compared. */
static void run_stage(Both *b, const Input &in, nbody_stage stage, const Fields &want, const OnDevice &there)
{
    std::string const name = context;
    context = name + ", " + stage_names[stage];
    there.acc.forget();
    there.potential.forget();
    CHECK_RESULT(run_gpu(&b->gpu, in, stage, there), NBODY_OK);
    CHECK_RESULT(nbody_cuda_check(&b->gpu, nullptr, stream), NBODY_OK);
    CHECK(b->gpu.device.sim.n == in.n && b->gpu.device.sim.bad_id == -1 && b->gpu.device.sim.cuda_error == 0);
    compare(b, in, stage, want, there);
    context = name;
}

static void run_stages(Both *b, const Input &in)
{
    OnDevice const there(in);
    Fields want;
    CHECK_RESULT(run_serial(&b->serial, in, &want), NBODY_OK);
    for (nbody_stage stage : all_stages) run_stage(b, in, stage, want, there);
}

/* ------------------------------------------------------------------------------------------------
   Tests: evaluations
   ------------------------------------------------------------------------------------------------ */

/* Bodies for a case: where levels are many or all lie on each other, fewer. */
static int size_of(Shape shape, size_t k)
{
    int const sizes[] = {n_max, n_max / 2 + 1, 129, n_max - 1, 257, 64};
    int const n = std::min(sizes[scattered(k + 7) % 6], n_max);
    return shape == EQUAL ? std::min(n, 70) : n;
}

static void test_fields()
{
    for (size_t k = 0; k < case_count; k++) {
        if (!thinned(k, share, 80)) continue;
        Case c = case_of(k);
        c.n = size_of(c.shape, k);
        context = "fields: " + name_of(c);
        Both b;
        run_stages(&b, input_of(c, (int)k));
    }
}

/* Chunks that are full, nearly full and just begun; hardly any bodies. */
static void test_few()
{
    static const int sizes[] = {0, 1, 2, 3, 4, 31, 32, 33, 63, 64, 65, 127, 128, 129};
    for (size_t k = 0; k < case_count; k++)
        for (int n : sizes) {
            Case c = case_of(k);
            if (!thinned(16 * k + (size_t)n, 14 * share, 500)) continue;
            c.n = n;
            context = "few: " + name_of(c);
            Both b;
            Input const in = input_of(c, (int)k);
            run_stages(&b, in);
            if (n == 1 && b.serial.n == 1 && c.outputs == ALL_OUTPUTS) {
                OnDevice const there(in);
                CHECK_RESULT(run_gpu(&b.gpu, in, NBODY_FAST, there), NBODY_OK);
                std::vector<real> const acc = there.acc.get();
                CHECK(acc[0] == 0 && acc[1] == 0 && there.potential.get()[0] == 0);
            }
        }
}

/* No bodies, no points, no desc, no outputs: nothing on the device is touched that is not there. */
static void test_empty()
{
    for (nbody_stage stage : all_stages) {
        Both b;
        Device<nbody_error> const d_error(1);
        Device<nbody_energies> const d_energies(1);
        nbody_bodies none = {};
        nbody_desc d = {};
        context = std::string("empty: ") + stage_names[stage];
        d.stage = stage;
        d.method = stage % 2 ? NBODY_DIRECT : NBODY_FORCE_NODES;
        for (int again = 0; again < 2; again++) {
            CHECK_RESULT(nbody_cuda_reserve(&b.gpu, &d, 0, stream), NBODY_OK);
            CHECK_RESULT(nbody_cuda_build(&b.gpu, &d, nullptr, 0, nullptr, 0, stream), NBODY_OK);
            CHECK_RESULT(nbody_cuda_accelerations(&b.gpu, &d, nullptr, 0, nullptr, 0, nullptr, stream), NBODY_OK);
            CHECK_RESULT(nbody_cuda_fields(&b.gpu, &d, nullptr, 0, nullptr, 0, nullptr, nullptr, stream), NBODY_OK);
            CHECK_RESULT(nbody_cuda_fields_at(&b.gpu, nullptr, 0, 0, nullptr, nullptr, stream), NBODY_OK);
            CHECK_RESULT(nbody_cuda_estimate(&b.gpu, nullptr, 10, 1, d_error.p, stream), NBODY_OK);
            CHECK(d_error.get()[0].samples == 0 && d_error.get()[0].mean == 0);
            CHECK_RESULT(nbody_cuda_step(&b.gpu, &d, &none, (real)0.1, NBODY_LEAPFROG, stream), NBODY_OK);
            CHECK_RESULT(nbody_cuda_step(&b.gpu, &d, &none, (real)0.1, NBODY_EULER, stream), NBODY_OK);
            CHECK_RESULT(nbody_cuda_energy(&b.gpu, &none, nullptr, d_energies.p, stream), NBODY_OK);
            CHECK(d_energies.get()[0].mass == 0 && d_energies.get()[0].centre[0] == 0);
            CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
            CHECK_RESULT(nbody_cuda_download(&b.copy, &b.gpu, stream), NBODY_OK);
            CHECK(b.copy.n == 0);
            Input const in = plain_input(0, 40, 1);
            OnDevice const there(in);
            CHECK_RESULT(nbody_cuda_fields(&b.gpu, nullptr, there.pos.p, 0, nullptr, 40, nullptr, nullptr, stream), NBODY_OK);
            const real *const pos = there.pos.p, *const mass = there.mass.p;
            CHECK_RESULT(nbody_cuda_accelerations(&b.gpu, nullptr, pos, 0, mass, 40, there.acc.p, stream), NBODY_OK);
            CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
            CHECK(b.gpu.device.sim.n == 40 && b.gpu.device.sim.desc.method == NBODY_DIRECT);
        }
    }
}

/* Every method in every stage with every law, whatever --share is: no kernel may be left out. */
static void test_methods()
{
    for (int setting = 0; setting < SETTINGS; setting++)
        for (int k = 0; k < 4; k++) {
            Case c = {};
            if (share > 400 && (k != setting % 4 || (heavy && setting % 4 != 1))) continue; /* the emulator's slow modes */
            c.setting = setting;
            c.law = (nbody_law)((setting + k) % 2);
            c.masses = takes_signs(settings[setting]) ? BOTH_SIGNS : ONES;
            c.shape = k % 2 ? CLUMPS : UNIFORM;
            c.levels = k / 2 ? 4 : 0;
            c.leaf = c.levels ? 0 : 5;
            c.soft = k % 2;
            c.n = std::min(n_max, 130);
            if (few_large && is_large(settings[setting])) { /* one small table each */
                if (k > 0) continue;
                c.law = NBODY_INVERSE_SQUARE;
            } else if (few_large && (k + setting) % (share > 50 ? 4 : 2) != 0) continue;
            context = "methods: " + name_of(c);
            Both b;
            run_stages(&b, input_of(c, setting));
        }
}

static void run_fast(const Case &c)
{
    Both b;
    Input const in = input_of(c, c.n);
    OnDevice const there(in);
    Fields want;
    CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
    run_stage(&b, in, NBODY_FAST, want, there);
}

/* The kernels of NBODY_FAST are made for each law, with potentials and without, and some for one order. */
static void test_fast()
{
    static const int with_kernels[] = {0, 1, 4, 7, 9, 14};
    for (int setting : with_kernels)
        for (int k = 0; k < 4; k++) {
            Case c = {};
            c.setting = setting;
            c.law = (nbody_law)(k % 2);
            c.outputs = k / 2 ? ACCELERATIONS : ALL_OUTPUTS;
            c.leaf = 5;
            c.n = 70;
            context = "fast: " + name_of(c);
            run_fast(c);
        }
}

/* Potentials without accelerations, and neither. */
static void test_outputs()
{
    for (int method = NBODY_DIRECT; method <= NBODY_FORCE_NODES; method++) {
        Both b;
        Case c = {};
        c.setting = setting_like((nbody_method)method, method == NBODY_VIRTUAL_PARTICLES);
        c.outputs = POTENTIALS;
        c.n = 40;
        context = "outputs: " + name_of(c);
        Input const in = input_of(c, method);
        run_stages(&b, in);
        OnDevice const there(in);
        nbody_desc const &d = in.desc;
        const real *const pos = there.pos.p;
        CHECK_RESULT(nbody_cuda_fields(&b.gpu, &d, pos, 0, nullptr, c.n, nullptr, nullptr, stream), NBODY_OK);
        CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
    }
}

/* One object, used again with more or fewer bodies, by other methods, in other stages: nothing of the last time shines through. */
static void test_rebuild()
{
    Both b;
    wl_random r = wl_seed(77);
    for (int step = 0; step < std::max(400 / share, 12); step++) {
        Case c = case_of(wl_below(&r, (uint32_t)case_count));
        c.n = (int)wl_below(&r, (uint32_t)(step % 10 == 3 ? n_max : n_max / 3 + 1)) + (step % 17 != 5);
        if (c.shape == EQUAL) c.n = std::min(c.n, 30);
        context = "rebuild, step " + std::to_string(step) + ": " + name_of(c);
        Input const in = input_of(c, step);
        OnDevice const there(in);
        Fields want;
        if (step % 40 == 39) nbody_cuda_free(&b.gpu), nbody_free(&b.serial), nbody_free(&b.copy);
        CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
        run_stage(&b, in, all_stages[wl_below(&r, 4)], want, there);
    }
    nbody_cuda_free(&b.gpu);
    nbody_cuda_free(&b.gpu);
    nbody_cuda_free(nullptr);
    CHECK(b.gpu.device.sim.frame == nullptr && b.gpu.device.sim.n == 0);
}

/* ---- against the direct sum in double ---- */

/* |dF| / |F| on average, and the largest |dF| / S, over every `every`-th body. */
struct Truth {
    double mean, share;
};

static void direct_sum(const Input &in, int i, double *acc, double *size)
{
    double const g = in.desc.gravity == 0 ? 1 : (double)in.desc.gravity, soft = (double)in.desc.softening;
    const real *const at = point_of(in, i);
    acc[0] = acc[1] = *size = 0;
    for (int j = 0; j < in.n; j++) {
        double const dx = (double)point_of(in, j)[0] - (double)at[0], dy = (double)point_of(in, j)[1] - (double)at[1];
        double const square = dx * dx + dy * dy + soft * soft, d = std::sqrt(square);
        if (dx == 0 && dy == 0) continue;
        double const factor = g * mass_of(in, j) / (in.desc.law == NBODY_INVERSE ? square : square * d);
        acc[0] += factor * dx;
        acc[1] += factor * dy;
        *size += std::fabs(factor) * std::sqrt(dx * dx + dy * dy);
    }
}

static Truth truth_of(const Input &in, const std::vector<real> &acc, int every)
{
    Truth t = {0, 0};
    int samples = 0;
    for (int i = 0; i < in.n; i += every, samples++) {
        double want[2], size;
        const real *const got = &acc[(size_t)i * step_of(in.desc.acc_stride, 2)];
        direct_sum(in, i, want, &size);
        double const error = std::hypot((double)got[0] - want[0], (double)got[1] - want[1]), length = std::hypot(want[0], want[1]);
        t.mean += length > 0 ? error / length : 0;
        t.share = std::max(t.share, size > 0 ? error / size : error > 0 ? HUGE_VAL : 0);
    }
    t.mean /= std::max(samples, 1);
    return t;
}

/* What is demanded of these four at 1000, 10,000, 100,000 and a million bodies. */
static const struct { nbody_method method; int order; nbody_sources sources; Bar bar[4]; } demanded[] = {
    {NBODY_VIRTUAL_PARTICLES, 1, NBODY_SOURCES_AUTO, {{1.5e-4, 5e-4}, {3e-4, 2e-4}, {4.2e-4, 2e-4}, {5.5e-4, 2e-4}}},
    {NBODY_FORCE_NODES, 1, NBODY_SOURCES_AUTO, {{2.6e-3, 8e-3}, {1.5e-3, 3e-3}, {1.6e-3, 2.4e-3}, {1.9e-3, 2e-3}}},
    {NBODY_FORCE_NODES, 4, NBODY_MASS_CENTRES, {{1.3e-3, 3.2e-3}, {7e-4, 1.1e-3}, {5.5e-4, 6e-4}, {5.5e-4, 4.5e-4}}},
    {NBODY_FORCE_NODES, 8, NBODY_SOURCES_AUTO, {{2.4e-6, 1.3e-5}, {1.1e-6, 5e-6}, {8e-7, 1.5e-6}, {3e-7, 3e-7}}},
};

static Bar bar_of(const Setting &s, int size)
{
    for (auto &d : demanded)
        if (d.method == s.method && d.order == s.order && d.sources == s.sources) return d.bar[size];
    return s.bar;
}

static void check_truth(Both *b, const Input &in, const Bar &bar)
{
    OnDevice const there(in);
    double const rounding = is_float ? 3e-6 : 0;
    for (nbody_stage stage : {NBODY_FAST, NBODY_SHARED_MEMORY}) {
        CHECK_RESULT(run_gpu(&b->gpu, in, stage, there), NBODY_OK);
        CHECK_RESULT(nbody_cuda_check(&b->gpu, nullptr, stream), NBODY_OK);
        Truth const t = truth_of(in, there.acc.get(), 1 + in.n / 700);
        CHECK_AT_MOST(t.mean, bar.mean + rounding);
        CHECK_AT_MOST(t.share, bar.share + rounding);
    }
}

static void test_truth()
{
    static const int sizes[] = {1000, 10000, 100000, 1000000}, levels[] = {4, 5, 6, 8};
    for (int k = 0; k < SETTINGS * 4; k++) {
        int const size = k / SETTINGS;
        Setting const &s = settings[k % SETTINGS];
        Case c = {};
        if (few_large && k % (share > 400 ? 6 : 2)) continue; /* the emulator is slow */
        if (few_large && (size > 0 || (heavy && k % 3) || (is_large(s) && (heavy || s.order > 8)))) continue;
        if (size == 3 && (share > 1 || s.method == NBODY_DIRECT)) continue;
        c.setting = k % SETTINGS;
        c.levels = levels[size] + (size < 3 ? k % 2 : s.order == 8 ? -1 : 0);
        c.masses = k % 3 ? ONES : NO_MASSES;
        c.n = heavy ? 300 : sizes[size];
        context = "truth: " + name_of(c);
        Both b;
        check_truth(&b, input_of(c, k), bar_of(s, size));
    }
}

/* ---- points that are no bodies ---- */

/* On bodies, in the square, outside it, and far away. */
static std::vector<real> points_for(const Input &in, const nbody_frame &frame, int m, int seed)
{
    wl_random r = wl_seed((uint64_t)seed);
    std::vector<real> points;
    for (int i = 0; i < m; i++) {
        double const spread = i % 4 == 1 ? 3 : i % 16 == 2 ? 1000 : 1;
        for (int a = 0; a < 2; a++) {
            double const u = (double)wl_u(&r);
            if (i % 4 == 3 && in.n > 0) points.push_back(point_of(in, i % in.n)[a]);
            else points.push_back((real)(frame.min[a] + frame.size * (0.5 + spread * (u - 0.5))));
        }
    }
    return points;
}

static void check_points(Both *b, const Input &in, const std::vector<real> &points, size_t stride, int outputs)
{
    size_t const width = step_of(stride, 2), m = points.size() / width;
    Fields want = {unset(2 * m), unset(m)};
    Device<real> const d_points(points), d_acc(2 * m), d_potential(m);
    CHECK_RESULT(nbody_fields_at(&b->serial, points.data(), stride, (int32_t)m, outputs == POTENTIALS ? nullptr : want.acc.data(),
                                 outputs == ACCELERATIONS ? nullptr : want.potential.data(), nullptr), NBODY_OK);
    CHECK_RESULT(nbody_cuda_fields_at(&b->gpu, d_points.p, stride, (int32_t)m, outputs == POTENTIALS ? nullptr : d_acc.p,
                                      outputs == ACCELERATIONS ? nullptr : d_potential.p, stream), NBODY_OK);
    Fields const got = {d_acc.get(), d_potential.get()};
    if (b->gpu.device.sim.desc.stage != NBODY_FAST) {
        CHECK(same_bits(want.acc, got.acc));
        CHECK(same_bits(want.potential, got.potential));
        return;
    }
    bool forces = true, potentials = true;
    for (size_t i = 0; i < m; i++) {
        Term const size = all_terms(in, *b->serial.frame, &points[i * width]);
        for (size_t k = 0; k < 2; k++)
            forces = forces && within((double)want.acc[2 * i + k], (double)got.acc[2 * i + k], fast_share * size.force);
        potentials = potentials && within((double)want.potential[i], (double)got.potential[i], fast_share * size.potential);
    }
    CHECK(forces && "accelerations at points within rounding");
    CHECK(potentials && "potentials at points within rounding");
}

/* After a build alone, and after an evaluation; any number of points. */
static void test_fields_at()
{
    static const int sizes[] = {130, 1, 64, 65, 300, 0, 33};
    for (size_t k = 0; k < case_count; k++) {
        if (!thinned(k + 3, 2 * share, 40)) continue;
        Case c = case_of(k);
        Both b;
        Fields want;
        c.n = size_of(c.shape, k + 1);
        context = "fields at: " + name_of(c);
        std::string const name = context;
        Input const in = input_of(c, (int)k);
        OnDevice const there(in);
        CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
        for (nbody_stage stage : all_stages) {
            nbody_desc d = in.desc;
            d.stage = stage;
            context = name + ", " + stage_names[stage];
            if (share > 1 && stage == NBODY_ONE_THREAD && d.order > 8) continue; /* 50 s on an H200 */
            if ((k + stage) % 2) CHECK_RESULT(run_gpu(&b.gpu, in, stage, there), NBODY_OK);
            else CHECK_RESULT(nbody_cuda_build(&b.gpu, &d, there.pos.p, in.stride, there.masses(in), in.n, stream), NBODY_OK);
            std::vector<real> const points = points_for(in, *b.serial.frame, std::min(sizes[(k + stage) % 7], n_max), (int)k);
            bool const wide = k % 3 == 1;
            check_points(&b, in, wide ? with_gaps(points, 2, 1) : points, wide ? 3 * sizeof(real) : 0, c.outputs);
            CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
        }
    }
}

/* ---- the walks, as a kernel of the caller takes them ---- */

namespace {

/* What one cell meets: how many cells, and a number that depends on all of them and their order. */
struct Seen {
    uint32_t count, hash;
};

__host__ __device__ void see(Seen *seen, int32_t cell, int32_t whole)
{
    seen->count++;
    seen->hash = (seen->hash * 31 + (uint32_t)cell) * 3 + (uint32_t)whole;
}

__host__ __device__ Seen walk_from(const nbody *sim, int32_t cell)
{
    Seen seen = {0, 7};
    nbody_far f = nbody_far_of(sim, cell);
    while (nbody_next_far(&f)) see(&seen, f.cell, 2);
    if (sim->cell[cell].child >= 0) return seen;
    nbody_near v = nbody_near_of(sim, cell);
    while (nbody_next_near(&v)) see(&seen, v.cell, v.whole);
    v = nbody_near_point(sim, sim->x[sim->cell[cell].first], 0);
    while (nbody_next_near(&v)) see(&seen, v.cell, v.whole);
    return seen;
}

__global__ void see_walks(__grid_constant__ const nbody_device device, int32_t cells, Seen *seen)
{
    int32_t const c = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (c < cells && c < device.sim.frame->cells) seen[c] = walk_from(&device.sim, c);
}

} /* namespace */

static void test_walks()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (settings[c.setting].method < NBODY_VIRTUAL_PARTICLES || !thinned(k + 4, 2 * share, 60)) continue;
        Both b;
        Fields want;
        c.n = std::min(size_of(c.shape, k + 2), 300);
        context = "walks: " + name_of(c);
        Input const in = input_of(c, (int)k);
        OnDevice const there(in);
        CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
        CHECK_RESULT(run_gpu(&b.gpu, in, all_stages[k % 4], there), NBODY_OK);
        int32_t const cells = b.serial.frame->cells;
        Device<Seen> d_seen((size_t)cells);
        launch(cells, see_walks, b.gpu.device, cells, d_seen.p);
        std::vector<Seen> const got = d_seen.get();
        bool same = true;
        for (int32_t i = 0; i < cells; i++) {
            Seen const s = walk_from(&b.serial, i);
            same = same && s.count == got[(size_t)i].count && s.hash == got[(size_t)i].hash;
        }
        CHECK(same && "a kernel meets the same cells");
        nbody_counts counts = {}, other = {};
        CHECK_RESULT(nbody_cuda_download(&b.copy, &b.gpu, stream), NBODY_OK);
        CHECK_RESULT(nbody_count(&b.serial, &counts), NBODY_OK);
        CHECK_RESULT(nbody_count(&b.copy, &other), NBODY_OK);
        CHECK(counts.cells == other.cells && counts.leaves == other.leaves && counts.levels == other.levels);
        CHECK(counts.near_terms == other.near_terms && counts.far_terms == other.far_terms);
        CHECK(counts.table_terms == other.table_terms);
    }
}

/* ---- estimate and energy ---- */

/* Two sums of the same numbers in double, in other orders. */
static bool same_number(double a, double b, double size) { return within(a, b, 1e-8 * std::fabs(b) + 1e-12 * size); }

static void check_error(const nbody_error &got, const nbody_error &want)
{
    CHECK(got.samples == want.samples);
    CHECK(same_number(got.mean, want.mean, 1) && same_number(got.worst, want.worst, 1));
    CHECK(same_number(got.mean_share, want.mean_share, 1) && same_number(got.share, want.share, 1));
    CHECK(same_number(got.direction, want.direction, 1) && same_number(got.length, want.length, 1));
    CHECK(same_number(got.bias, want.bias, 1));
}

static void test_estimate()
{
    static const int samples[] = {64, 1, 7, 100000, 65, 0};
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.shape == EQUAL || c.outputs == POTENTIALS || !thinned(k + 9, 3 * share, 60)) continue;
        Both b;
        Fields want;
        nbody_error error = {};
        c.n = size_of(c.shape, k + 3);
        context = "estimate: " + name_of(c);
        Input const in = input_of(c, (int)k);
        OnDevice const there(in);
        Device<nbody_error> d_error(1);
        int const count = samples[k % 5];
        CHECK_RESULT(run_gpu(&b.gpu, in, all_stages[k % 4], there), NBODY_OK);
        CHECK_RESULT(nbody_cuda_estimate(&b.gpu, there.acc.p, count, (uint32_t)k, d_error.p, stream), NBODY_OK);
        std::vector<real> acc = there.acc.get();
        CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
        CHECK_RESULT(nbody_estimate(&b.serial, acc.data(), count, (uint32_t)k, &error), NBODY_OK);
        CHECK(error.samples == std::min(count, in.n));
        check_error(d_error.get()[0], error);
        size_t const step = step_of(in.desc.acc_stride, 2);
        for (int i = 0; i < in.n; i++) acc[(size_t)i * step] *= (real)1.125; /* errors that are no rounding */
        there.acc.set(acc);
        CHECK_RESULT(nbody_cuda_estimate(&b.gpu, there.acc.p, count, 5, d_error.p, stream), NBODY_OK);
        CHECK_RESULT(nbody_estimate(&b.serial, acc.data(), count, 5, &error), NBODY_OK);
        check_error(d_error.get()[0], error);
        CHECK(in.n < 2 || error.mean > 1e-3);
    }
}

/* A simulation's bodies, on both sides. */
struct Motion {
    std::vector<real> pos, vel, acc, mass;
    Device<real> d_pos, d_vel, d_acc, d_mass;
    nbody_bodies here, there;
    Motion(const Input &in, int seed)
        : pos(in.pos), vel(2 * (size_t)in.n), acc(unset(2 * (size_t)in.n)), mass(in.mass), d_pos(pos), d_vel(2 * (size_t)in.n),
          d_acc(acc), d_mass(mass)
    {
        wl_random r = wl_seed((uint64_t)seed + 1000);
        for (real &v : vel) v = (real)(wl_u(&r) - 0.5f);
        d_vel.set(vel);
        here = {pos.data(), vel.data(), acc.data(), masses_or_null(in) ? mass.data() : nullptr, in.n, 0};
        there = {d_pos.p, d_vel.p, d_acc.p, masses_or_null(in) ? d_mass.p : nullptr, in.n, 0};
    }
};

static void check_energies(const nbody_energies &got, const nbody_energies &want, const Motion &m)
{
    double momentum = 0, angular = 0, energy = 0, mass = 0, centre = 0;
    for (size_t e = 0; e < m.pos.size(); e++) {
        double const w = m.mass.empty() ? 1 : std::fabs((double)m.mass[e / 2]), v = std::fabs((double)m.vel[e]);
        mass += w / 2;
        momentum += w * v;
        energy += w * v * v;
        centre += w * std::fabs((double)m.pos[e]);
        angular += w * v * std::fabs((double)m.pos[e ^ 1]);
    }
    CHECK(same_number(got.kinetic, want.kinetic, energy) && same_number(got.potential, want.potential, std::fabs(want.potential)));
    CHECK(same_number(got.mass, want.mass, mass) && same_number(got.angular, want.angular, angular));
    for (int a = 0; a < 2; a++) {
        CHECK(same_number(got.momentum[a], want.momentum[a], momentum));
        CHECK(same_number(got.centre[a], want.centre[a], centre / (std::fabs(want.mass) + 1e-30)));
    }
}

static void test_energy()
{
    static const int sizes[] = {0, 1, 2, 63, 64, 65, 257, 1000, 5000};
    for (int n : sizes)
        for (int k = 0; k < 4; k++) {
            Case c = {};
            if (n > 260 && heavy) continue;
            c.setting = setting_like(NBODY_FORCE_NODES, 0);
            c.masses = k % 2 ? NO_MASSES : WILD;
            c.n = n;
            context = "energy: " + name_of(c);
            Input const in = input_of(c, n + k);
            Motion m(in, k);
            std::vector<real> potential;
            wl_random r = wl_seed((uint64_t)n);
            for (int i = 0; i < n; i++) potential.push_back((real)-wl_u(&r));
            Device<real> const d_potential(potential);
            Device<nbody_energies> const d_energies(1);
            nbody_energies want = {};
            nbody_cuda gpu = {};
            CHECK_RESULT(nbody_energy(&m.here, k < 2 ? potential.data() : nullptr, &want), NBODY_OK);
            CHECK_RESULT(nbody_cuda_energy(&gpu, &m.there, nullptr, d_energies.p, stream), NBODY_NOT_BUILT);
            CHECK_RESULT(nbody_cuda_reserve(&gpu, nullptr, n, stream), NBODY_OK);
            CHECK_RESULT(nbody_cuda_energy(&gpu, &m.there, k < 2 ? d_potential.p : nullptr, d_energies.p, stream), NBODY_OK);
            check_energies(d_energies.get()[0], want, m);
            CHECK(n == 0 || want.kinetic > 0);
            nbody_cuda_free(&gpu);
        }
}

/* ---- steps ---- */

static void check_motion(Motion *m, nbody_stage stage, double most)
{
    bool nearly = true;
    const Device<real> *const there[] = {&m->d_pos, &m->d_vel};
    const std::vector<real> *const here[] = {&m->pos, &m->vel};
    if (stage != NBODY_FAST) {
        CHECK(same_bits(m->d_pos.get(), m->pos));
        CHECK(same_bits(m->d_vel.get(), m->vel));
        CHECK(same_bits(m->d_acc.get(), m->acc));
        return;
    }
    for (int k = 0; k < 2; k++) {
        std::vector<real> const got = there[k]->get();
        for (size_t e = 0; e < got.size(); e++) nearly = nearly && within((double)got[e], (double)(*here[k])[e], most);
    }
    CHECK(nearly && "positions and velocities within rounding");
}

/* Some steps on both sides; bodies that start unsorted, and a change of position by hand in between.
   Strides of the desc are not those of the bodies. */
static void run_steps(const Case &c, nbody_stage stage, nbody_integrator integrator, int seed)
{
    Both b;
    Input const in = input_of(c, seed);
    nbody_desc d = in.desc;
    Motion m(in, seed);
    real const dt = (real)(1.0 / 1024);
    d.stage = stage;
    d.mass_stride = 3 * sizeof(real);
    d.acc_stride = 4 * sizeof(real);
    for (int step = 0; step < 4; step++) {
        if (step == 2) {
            m.pos[0] += (real)0.25;
            m.d_pos.set(m.pos); /* in NBODY_FAST all positions become those of the serial code */
            m.d_vel.set(m.vel);
            m.here.fresh = m.there.fresh = 0;
        }
        CHECK_RESULT(nbody_step(&b.serial, &in.desc, &m.here, dt, integrator), NBODY_OK);
        CHECK_RESULT(nbody_cuda_step(&b.gpu, &d, &m.there, dt, integrator, stream), NBODY_OK);
        CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
        CHECK(m.here.fresh == m.there.fresh);
        double size = 0;
        for (int i = 0; i < in.n; i++) size = std::max(size, all_terms(in, *b.serial.frame, point_of(in, i)).force);
        check_motion(&m, stage, 4 * (double)dt * fast_share * size + 4 * epsilon);
    }
}

static void test_step()
{
    static const int methods[] = {0, 1, 4, 7, 9, 10, 17, SETTINGS - 1};
    for (int k = 0; k < 8 * 4 * 2; k++) {
        Case c = {};
        nbody_stage const stage = all_stages[k / 8 % 4];
        nbody_integrator const integrator = k / 32 ? NBODY_EULER : NBODY_LEAPFROG;
        c.setting = methods[k % 8];
        if (!thinned((size_t)k + 50, share / 2, 14)) continue;
        c.soft = 1;
        c.masses = k % 3 ? ONES : NO_MASSES;
        c.n = std::min(n_max, k % 5 ? 100 : 33);
        context = std::string("step: ") + stage_names[stage] + (integrator ? ", Euler, " : ", leapfrog, ") + name_of(c);
        run_steps(c, stage, integrator, k);
    }
}

/* ------------------------------------------------------------------------------------------------
   Tests: what nbody_cuda_check tells
   ------------------------------------------------------------------------------------------------ */

/* The object works again, and gives what it should. */
static void check_works(Both *b, int setting, nbody_stage stage)
{
    Input const in = plain_input(setting, 70, 3);
    OnDevice const there(in);
    Fields want;
    CHECK_RESULT(run_serial(&b->serial, in, &want), NBODY_OK);
    run_stage(b, in, stage, want, there);
}

/* Both sides refuse the same body. Whatever the device has written, the next evaluation is right. */
static void check_told(Both *b, const Input &in, nbody_stage stage, nbody_result expected)
{
    OnDevice const there(in);
    Fields want;
    CHECK_RESULT(run_serial(&b->serial, in, &want), expected);
    CHECK_RESULT(run_gpu(&b->gpu, in, stage, there), NBODY_OK);
    CHECK_RESULT(nbody_cuda_check(&b->gpu, nullptr, stream), expected);
    CHECK(b->gpu.device.sim.bad_id == b->serial.bad_id);
    CHECK_RESULT(nbody_cuda_check(&b->gpu, nullptr, stream), expected); /* and once more, when asked again */
}

/* Not finite: in x, in y, in a mass; of several the first. No force is finite then, so that nobody takes one for a force. */
static void test_not_finite()
{
    static const int wheres[] = {0, 1, 63, 64, 129};
    for (int k = 0; k < SETTINGS * 4; k++) {
        int const n = 130, setting = k % SETTINGS, i = wheres[k % 5];
        nbody_stage const stage = all_stages[(k + k / SETTINGS) % 4];
        if (!thinned((size_t)k + 60, share / 2, 6)) continue;
        Both b;
        Input in = plain_input(setting, n, k);
        real const bad = k % 3 == 0 ? not_a_number : k % 3 == 1 ? infinity : -infinity;
        context = "not finite, " + std::to_string(k) + ": " + stage_names[stage] + ", " + name_of(settings[setting]);
        std::string const name = context;
        for (int what = 0; what < 3; what++) {
            Input broken = in;
            context = name + ", what " + std::to_string(what);
            if (what < 2) broken.pos[(size_t)(2 * i + what)] = bad;
            else broken.mass[(size_t)i] = bad;
            if (i + 30 < n) broken.pos[(size_t)(2 * i + 40)] = not_a_number;
            check_told(&b, broken, stage, NBODY_NOT_FINITE);
            CHECK(b.gpu.device.sim.bad_id == i);
        }
        context = name + ", what it wrote";
        OnDevice const there(in);
        in.pos[(size_t)(2 * i)] = bad;
        there.pos.set(in.pos);
        CHECK_RESULT(run_gpu(&b.gpu, in, stage, there), NBODY_OK);
        std::vector<real> const acc = there.acc.get();
        for (size_t e = 0; e < acc.size(); e += 2) CHECK(!std::isfinite(acc[e]) || !std::isfinite(acc[e + 1]));
        check_works(&b, setting, stage);
    }
}

/* Mass centres have no centre where masses are negative; the other methods take them. */
static void test_bad_mass()
{
    for (int setting = 0; setting < SETTINGS; setting++) {
        nbody_stage const stage = all_stages[setting % 4];
        Both b;
        Input in = plain_input(setting, 130, setting);
        in.mass[80] = in.mass[127] = (real)-0.5;
        context = std::string("bad mass: ") + stage_names[stage] + ", " + name_of(settings[setting]);
        OnDevice const there(in);
        Fields want;
        nbody_result const expected = run_serial(&b.serial, in, &want);
        CHECK((expected == NBODY_OK) == (b.serial.desc.method == NBODY_DIRECT || b.serial.desc.sources == NBODY_CHEBYSHEV));
        if (expected == NBODY_OK) {
            run_stage(&b, in, stage, want, there);
            continue;
        }
        check_told(&b, in, stage, NBODY_BAD_MASS);
        CHECK(b.gpu.device.sim.bad_id == 80);
        in.pos[200] = not_a_number; /* of body 100: the first of the bad ones is told */
        check_told(&b, in, stage, NBODY_BAD_MASS);
        in.pos[81] = not_a_number;
        check_told(&b, in, stage, NBODY_NOT_FINITE);
        CHECK(b.gpu.device.sim.bad_id == 40);
        check_works(&b, setting, stage);
    }
}

/* Farther apart than the largest number. */
static void test_too_large()
{
    double const huge = is_float ? 3e38 : 1.5e308;
    for (int setting = 0; setting < SETTINGS; setting += heavy ? 5 : 1) {
        nbody_stage const stage = all_stages[(setting + 1) % 4];
        Both b;
        Input in = plain_input(setting, 65, 1);
        in.pos[3] = (real)huge;
        in.pos[65] = (real)-huge;
        context = std::string("too large: ") + stage_names[stage] + ", " + name_of(settings[setting]);
        OnDevice const there(in);
        Fields want;
        nbody_result const expected = run_serial(&b.serial, in, &want);
        if (!is_float) CHECK_RESULT(expected, NBODY_TOO_LARGE); /* the square of a float build is in double */
        if (expected == NBODY_OK) {
            CHECK_RESULT(run_gpu(&b.gpu, in, stage, there), NBODY_OK);
            CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
        } else check_told(&b, in, stage, expected);
        check_works(&b, setting, stage);
    }
}

/* Less room for cells than the tree needs: told, with the number that is enough; and forces are those of a tree of fewer cells. */
static void run_cells_full(int setting, nbody_stage stage, Shape shape, int32_t room, int levels)
{
    Both b;
    Case c = {};
    c.setting = setting;
    c.shape = shape;
    c.masses = ONES;
    c.leaf = 4;
    c.levels = levels;
    c.soft = 1;
    c.n = std::min(n_max, 150);
    Input in = input_of(c, setting);
    OnDevice const there(in);
    nbody_frame frame = {};
    Fields want;
    CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
    if (!b.serial.cell || b.serial.frame->cells <= room) return;
    in.desc.max_cells = room;
    CHECK_RESULT(run_gpu(&b.gpu, in, stage, there), NBODY_OK);
    CHECK_RESULT(nbody_cuda_check(&b.gpu, &frame, stream), NBODY_CELLS_FULL);
    CHECK(frame.cells_needed > room && frame.cells_needed > frame.cells && frame.cells <= room + 4 && frame.cells >= 1);
    Truth const t = truth_of(in, there.acc.get(), 1);
    CHECK_AT_MOST(t.share, 4 * settings[setting].bar.share + 3e-6);
    CHECK_RESULT(nbody_cuda_download(&b.copy, &b.gpu, stream), NBODY_OK);
    CHECK_RESULT(nbody_validate(&b.copy), NBODY_OK);
    for (int tries = 0; tries < 20; tries++) {
        in.desc.max_cells = frame.cells_needed;
        CHECK_RESULT(run_gpu(&b.gpu, in, stage, there), NBODY_OK);
        nbody_result const r = nbody_cuda_check(&b.gpu, &frame, stream);
        if (r == NBODY_OK) break;
        CHECK(tries == 0 && "the number needed is enough");
    }
    CHECK(frame.cells == b.serial.frame->cells);
    compare(&b, in, stage, want, there);
}

static void test_cells_full()
{
    static const int32_t rooms[] = {1, 5, 21, 60};
    context = "cells full, 5 levels";
    run_cells_full(setting_like(NBODY_FORCE_NODES, 0), NBODY_FAST, CLUMPS, 21, 5);
    for (int k = 0; k < SETTINGS * 4 * 4; k++) {
        if (!thinned((size_t)k + 70, share, 40) || (few_large && is_large(settings[k % SETTINGS]))) continue;
        nbody_stage const stage = all_stages[k / SETTINGS % 4];
        Shape const shape = (Shape)(k % 3 == 0 ? CLUMPS : k % 3 == 1 ? UNIFORM : TWO_SCALES);
        int32_t const room = rooms[k / SETTINGS / 4 % 4];
        context = std::string("cells full, room for ") + std::to_string(room) + ", " + stage_names[stage] + ", shape "
                  + std::to_string(shape) + ", " + name_of(settings[k % SETTINGS]);
        run_cells_full(k % SETTINGS, stage, shape, room, 0);
    }
}

/* n rises by one with every build: what is allocated follows its logarithm, on both sides. A reserve takes what it needs. */
static void test_growth()
{
    int const most = n_max < 260 ? 150 : 600, growths = 18;
    for (nbody_method method : {NBODY_DIRECT, NBODY_VIRTUAL_PARTICLES, NBODY_FORCE_NODES}) {
        Input const in = plain_input(setting_like(method, 0), most, 1);
        OnDevice const there(in);
        nbody_desc d = in.desc;
        Heap h = {};
        Both b;
        int grown = 0;
        context = "growth: method " + std::to_string((int)method);
        d.cuda_allocator = allocator_of(&h);
        for (int n = 1; n <= most; n++) {
            int64_t const had = nbody_bytes(&b.copy);
            CHECK_RESULT(nbody_cuda_build(&b.gpu, &d, there.pos.p, 0, there.mass.p, n, stream), NBODY_OK);
            if (n > 25 && n < most) continue;
            CHECK_RESULT(nbody_cuda_accelerations(&b.gpu, &d, there.pos.p, 0, there.mass.p, n, there.acc.p, stream), NBODY_OK);
            CHECK_RESULT(nbody_cuda_download(&b.copy, &b.gpu, stream), NBODY_OK);
            grown += nbody_bytes(&b.copy) > had;
        }
        CHECK(h.calls <= (NBODY_BLOCKS + NBODY_CUDA_SCRATCH) * growths && grown <= 20);
        CHECK_RESULT(nbody_validate(&b.copy), NBODY_OK);
        nbody_cuda_free(&b.gpu);
        for (int n = 100; n < 102; n++) {
            CHECK_RESULT(nbody_cuda_reserve(&b.gpu, &d, n, stream), NBODY_OK);
            CHECK(b.gpu.block[NBODY_I_BODIES].bytes == (size_t)n * NBODY_I_BODY);
        }
        h.fail_at = h.calls + 1; /* no memory to grow ahead: the exact size will do */
        CHECK_RESULT(nbody_cuda_build(&b.gpu, &d, there.pos.p, 0, there.mass.p, 102, stream), NBODY_OK);
        CHECK(h.failed == 1 && b.gpu.block[NBODY_I_BODIES].bytes == 102 * (size_t)NBODY_I_BODY);
        CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
        nbody_cuda_free(&b.gpu);
        CHECK(h.live == 0 && h.live_bytes == 0);
    }
}

#ifdef CUDA_EMU
/* What says that it waits for the stream does so, also where there are no bodies. The emulator's stream works when it is waited for. */
static void test_waits()
{
    int const lazy = emu_options()->lazy;
    Device<char> room(64);
    context = "waits";
    emu_options()->lazy = 1;
    for (int32_t n = 0; n < 2; n++) {
        Input const in = plain_input(setting_like(NBODY_DIRECT, 0), 1, 1);
        OnDevice const there(in);
        Both b;
        CHECK_RESULT(nbody_cuda_build(&b.gpu, nullptr, there.pos.p, 0, nullptr, n, stream), NBODY_OK);
        CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
        CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
        CHECK(cudaStreamQuery(stream) == cudaSuccess && "nbody_cuda_check has waited");
        MUST(cudaMemsetAsync(room.p, 1, room.count, stream));
        CHECK_RESULT(nbody_cuda_download(&b.copy, &b.gpu, stream), NBODY_OK);
        CHECK(cudaStreamQuery(stream) == cudaSuccess && "nbody_cuda_download has waited");
    }
    emu_options()->lazy = lazy;
}
#endif

/* ------------------------------------------------------------------------------------------------
   Tests: refusals
   ------------------------------------------------------------------------------------------------ */

static void *some_alloc(size_t bytes, void *) { return malloc(bytes); }
static void some_free(void *memory, size_t, void *) { free(memory); }

typedef void change_fn(nbody_desc *);

static const struct { change_fn *change; nbody_result result; } wrong_descs[] = {
    {[](nbody_desc *x) { x->levels = -1; }, NBODY_BAD_LEVELS},
    {[](nbody_desc *x) { x->levels = NBODY_MAX_LEVELS + 1; }, NBODY_BAD_LEVELS},
    {[](nbody_desc *x) { x->leaf = -1; }, NBODY_BAD_LEVELS},
    {[](nbody_desc *x) { x->max_cells = -1; }, NBODY_BAD_LEVELS},
    {[](nbody_desc *x) { x->order = -1; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->order = NBODY_MAX_ORDER + 1; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->method = NBODY_VIRTUAL_PARTICLES; x->order = 3; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->method = NBODY_VIRTUAL_PARTICLES; x->sources = NBODY_CHEBYSHEV; x->order = 1; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->sources = NBODY_MASS_CENTRES; x->subcells = 3; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->sources = NBODY_MASS_CENTRES; x->subcells = 16; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->sources = NBODY_MASS_CENTRES; x->subcells = -2; }, NBODY_BAD_OPTION},
#ifndef CUDA_EMU /* UBSan stops at a value that the enum does not have */
    {[](nbody_desc *x) { x->method = (nbody_method)4; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->law = (nbody_law)2; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->sources = (nbody_sources)3; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->stage = (nbody_stage)4; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->stage = (nbody_stage)-1; }, NBODY_BAD_OPTION},
#endif
    {[](nbody_desc *x) { x->gravity = not_a_number; }, NBODY_BAD_NUMBER},
    {[](nbody_desc *x) { x->gravity = infinity; }, NBODY_BAD_NUMBER},
    {[](nbody_desc *x) { x->softening = -1; }, NBODY_BAD_NUMBER},
    {[](nbody_desc *x) { x->softening = not_a_number; }, NBODY_BAD_NUMBER},
    {[](nbody_desc *x) { x->softening = infinity; }, NBODY_BAD_NUMBER},
    {[](nbody_desc *x) { x->min[1] = not_a_number; }, NBODY_BAD_SQUARE},
    {[](nbody_desc *x) { x->min[0] = -infinity; }, NBODY_BAD_SQUARE},
    {[](nbody_desc *x) { x->size = -1; }, NBODY_BAD_SQUARE},
    {[](nbody_desc *x) { x->size = infinity; }, NBODY_BAD_SQUARE},
    {[](nbody_desc *x) { x->mass_stride = sizeof(real) + 1; }, NBODY_BAD_ARGUMENT},
    {[](nbody_desc *x) { x->mass_stride = sizeof(real) / 2; }, NBODY_BAD_ARGUMENT},
    {[](nbody_desc *x) { x->acc_stride = sizeof(real); }, NBODY_BAD_ARGUMENT},
    {[](nbody_desc *x) { x->acc_stride = 2 * sizeof(real) + 1; }, NBODY_BAD_ARGUMENT},
    {[](nbody_desc *x) { x->allocator.alloc = some_alloc; }, NBODY_BAD_ALLOCATOR},
    {[](nbody_desc *x) { x->allocator.free = some_free; }, NBODY_BAD_ALLOCATOR},
};

/* Both sides say the same; outputs are left alone, and the object is empty and usable afterwards. */
static void test_refused_descs()
{
    Input const in = plain_input(setting_like(NBODY_FORCE_NODES, 0), 40, 1);
    OnDevice const there(in);
    Both b;
    int number = 0;
    for (auto w : wrong_descs) {
        nbody_desc d = in.desc;
        Fields out = {unset(80), unset(40)};
        w.change(&d);
        context = "refused descs, number " + std::to_string(number++);
        there.acc.forget();
        there.potential.forget();
        const real *const pos = there.pos.p, *const mass = there.mass.p;
        CHECK_RESULT(nbody_accelerations(&b.serial, &d, in.pos.data(), 0, in.mass.data(), 40, out.acc.data()), w.result);
        CHECK_RESULT(nbody_cuda_fields(&b.gpu, &d, pos, 0, mass, 40, there.acc.p, there.potential.p, stream), w.result);
        CHECK_RESULT(nbody_cuda_accelerations(&b.gpu, &d, pos, 0, mass, 40, there.acc.p, stream), w.result);
        CHECK_RESULT(nbody_cuda_build(&b.gpu, &d, pos, 0, mass, 40, stream), w.result);
        CHECK_RESULT(nbody_cuda_reserve(&b.gpu, &d, 40, stream), w.result);
        CHECK(b.gpu.device.sim.n == 0 && b.gpu.device.sim.frame == nullptr && "the refusal leaves it empty");
        CHECK(same_bits(there.acc.get(), out.acc) && same_bits(there.potential.get(), out.potential));
        CHECK_RESULT(nbody_cuda_fields_at(&b.gpu, there.pos.p, 0, 40, there.acc.p, nullptr, stream), NBODY_NOT_BUILT);
        if (number % 4 == 0) check_works(&b, number % SETTINGS, all_stages[number / 4 % 4]);
    }
    nbody_desc d = in.desc;
    context = "refused descs: CUDA's allocator";
    d.cuda_allocator.alloc = [](size_t, struct CUstream_st *, void *) -> void * { return nullptr; };
    CHECK_RESULT(nbody_cuda_build(&b.gpu, &d, there.pos.p, 0, there.mass.p, 40, stream), NBODY_BAD_ALLOCATOR);
    d.cuda_allocator.alloc = nullptr;
    d.cuda_allocator.free = [](void *, size_t, struct CUstream_st *, void *) {};
    CHECK_RESULT(nbody_cuda_build(&b.gpu, &d, there.pos.p, 0, there.mass.p, 40, stream), NBODY_BAD_ALLOCATOR);
    check_works(&b, setting_like(NBODY_FORCE_NODES, 0), NBODY_FAST);
}

/* One rule: without a tree every call that reads one says so; a tree over no bodies is one. */
static void check_holds_nothing(nbody_cuda *gpu, nbody_result want)
{
    Device<real> const d_real(std::vector<real>(8));
    Device<nbody_error> const d_error(1);
    nbody copy = {};
    CHECK(gpu->device.sim.n == 0);
    CHECK_RESULT(nbody_cuda_fields_at(gpu, d_real.p, 0, 2, d_real.p + 4, nullptr, stream), want);
    CHECK_RESULT(nbody_cuda_estimate(gpu, d_real.p, 4, 1, d_error.p, stream), want);
    CHECK_RESULT(nbody_cuda_check(gpu, nullptr, stream), want);
    CHECK_RESULT(nbody_cuda_download(&copy, gpu, stream), want);
    CHECK_RESULT(nbody_validate(&copy), want);
    for (real x : d_real.get()) CHECK(x == 0);
    nbody_free(&copy);
}

static void test_not_built()
{
    Device<real> const d_pos(std::vector<real>{0, 1, 2, 3});
    nbody_cuda gpu = {};
    context = "not built";
    check_holds_nothing(&gpu, NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_cuda_build(&gpu, nullptr, nullptr, 0, nullptr, 0, stream), NBODY_OK);
    check_holds_nothing(&gpu, NBODY_OK);
    CHECK_RESULT(nbody_cuda_reserve(&gpu, nullptr, 2, stream), NBODY_OK);
    check_holds_nothing(&gpu, NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_cuda_build(&gpu, nullptr, d_pos.p, 0, nullptr, 2, stream), NBODY_OK);
    CHECK_RESULT(nbody_cuda_check(&gpu, nullptr, stream), NBODY_OK);
    CHECK_RESULT(nbody_cuda_build(&gpu, nullptr, d_pos.p, 1, nullptr, 2, stream), NBODY_BAD_ARGUMENT);
    check_holds_nothing(&gpu, NBODY_NOT_BUILT);
    nbody_cuda_free(&gpu);
    check_holds_nothing(&gpu, NBODY_NOT_BUILT);
}

/* A point that is none gets none, from a tree over no bodies as from a full one. */
static void test_points_without_numbers()
{
    Device<real> const d_pos(std::vector<real>{0, 1, 2, 3}), d_acc(4);
    Device<real> const d_points(std::vector<real>{not_a_number, 0, 0, infinity});
    context = "points without numbers";
    for (int32_t n = 0; n <= 2; n += 2) {
        nbody_cuda gpu = {};
        CHECK_RESULT(nbody_cuda_build(&gpu, nullptr, d_pos.p, 0, nullptr, n, stream), NBODY_OK);
        CHECK_RESULT(nbody_cuda_fields_at(&gpu, d_points.p, 0, 2, d_acc.p, nullptr, stream), NBODY_OK);
        for (real x : d_acc.get()) CHECK(std::isnan(x));
        nbody_cuda_free(&gpu);
    }
}

/* Pointers, counts and strides of the calls that build. */
static void test_refused_arguments()
{
    Input const in = plain_input(setting_like(NBODY_FORCE_NODES, 0), 40, 1);
    OnDevice const there(in);
    const nbody_desc *const d = &in.desc;
    const real *const pos = there.pos.p, *const mass = there.mass.p;
    real *const acc = there.acc.p;
    Both b;
    nbody_cuda *const gpu = &b.gpu;
    context = "refused arguments";
    CHECK_RESULT(nbody_cuda_reserve(nullptr, d, 40, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_reserve(gpu, d, -1, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_build(nullptr, d, pos, 0, mass, 40, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_build(gpu, d, nullptr, 0, mass, 40, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_build(gpu, d, pos, 0, mass, -1, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_build(gpu, d, pos, sizeof(real), mass, 40, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_build(gpu, d, pos, 2 * sizeof(real) + 1, mass, 40, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_build(gpu, d, pos, 0, mass, INT32_MAX, stream), NBODY_TOO_MANY);
    CHECK_RESULT(nbody_cuda_build(gpu, d, pos, 0, mass, (1 << 30) - 511, stream), NBODY_TOO_MANY);
    CHECK_RESULT(nbody_cuda_accelerations(nullptr, d, pos, 0, mass, 40, acc, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_accelerations(gpu, d, nullptr, 0, mass, 40, acc, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_accelerations(gpu, d, pos, 0, mass, 40, nullptr, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_accelerations(gpu, d, pos, 0, mass, INT32_MAX, acc, stream), NBODY_TOO_MANY);
    CHECK_RESULT(nbody_cuda_fields(nullptr, d, pos, 0, mass, 40, acc, nullptr, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_check(nullptr, nullptr, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_download(nullptr, gpu, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_download(&b.copy, nullptr, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_step(nullptr, d, nullptr, 1, NBODY_LEAPFROG, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_step(gpu, d, nullptr, 1, NBODY_LEAPFROG, stream), NBODY_BAD_ARGUMENT);
    for (real x : there.acc.get()) CHECK(memcmp(&x, unset(1).data(), sizeof x) == 0 && "a refused call wrote something");
    check_works(&b, setting_like(NBODY_FORCE_NODES, 0), NBODY_FAST);
}

/* And of those that ask. */
static void test_refused_questions()
{
    Input const in = plain_input(setting_like(NBODY_FORCE_NODES, 0), 40, 1);
    OnDevice const there(in);
    Device<nbody_error> const d_error(1);
    Device<nbody_energies> const d_energies(1);
    Motion m(in, 1);
    nbody_bodies bodies = m.there;
    Both b;
    nbody_cuda *const gpu = &b.gpu;
    const real *const pos = there.pos.p;
    real *const acc = there.acc.p;
    context = "refused questions, nothing built";
    CHECK_RESULT(nbody_cuda_fields_at(gpu, pos, 0, 40, acc, nullptr, stream), NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_cuda_estimate(gpu, acc, 4, 1, d_error.p, stream), NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_cuda_check(gpu, nullptr, stream), NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_cuda_download(&b.copy, gpu, stream), NBODY_NOT_BUILT);
    CHECK_RESULT(run_gpu(gpu, in, NBODY_FAST, there), NBODY_OK);
    std::vector<real> const before = there.acc.get();
    context = "refused questions";
    CHECK_RESULT(nbody_cuda_fields_at(nullptr, pos, 0, 40, acc, nullptr, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_fields_at(gpu, nullptr, 0, 40, acc, nullptr, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_fields_at(gpu, pos, 0, -1, acc, nullptr, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_fields_at(gpu, pos, sizeof(real), 40, acc, nullptr, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_fields_at(gpu, pos, 0, INT32_MAX, acc, nullptr, stream), NBODY_TOO_MANY);
    CHECK_RESULT(nbody_cuda_estimate(nullptr, acc, 4, 1, d_error.p, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_estimate(gpu, nullptr, 4, 1, d_error.p, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_estimate(gpu, acc, -1, 1, d_error.p, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_estimate(gpu, acc, 4, 1, nullptr, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_energy(gpu, nullptr, nullptr, d_energies.p, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_energy(gpu, &bodies, nullptr, nullptr, stream), NBODY_BAD_ARGUMENT);
    bodies.vel = nullptr;
    CHECK_RESULT(nbody_cuda_energy(gpu, &bodies, nullptr, d_energies.p, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_step(gpu, &in.desc, &bodies, 1, NBODY_LEAPFROG, stream), NBODY_BAD_ARGUMENT);
    bodies = m.there;
    for (real dt : {not_a_number, infinity}) {
        CHECK_RESULT(nbody_cuda_step(gpu, &in.desc, &bodies, dt, NBODY_LEAPFROG, stream), NBODY_BAD_NUMBER);
        CHECK_RESULT(nbody_cuda_step(gpu, &in.desc, &bodies, dt, NBODY_EULER, stream), NBODY_BAD_NUMBER);
    }
    bodies.n = -1;
    CHECK_RESULT(nbody_cuda_step(gpu, &in.desc, &bodies, 1, NBODY_EULER, stream), NBODY_BAD_ARGUMENT);
#ifndef CUDA_EMU
    CHECK_RESULT(nbody_cuda_step(gpu, &in.desc, &m.there, 1, (nbody_integrator)2, stream), NBODY_BAD_OPTION);
#endif
    CHECK(same_bits(m.d_pos.get(), m.pos) && same_bits(m.d_vel.get(), m.vel) && "a refused step moved something");
    CHECK(same_bits(there.acc.get(), before) && "a refused call wrote something");
}

/* ------------------------------------------------------------------------------------------------
   Tests: memory
   ------------------------------------------------------------------------------------------------ */

/* Device memory with a count, a failure on request, and rubbish in it. */

/* Everything that a program may do in a time step; the first result that is not NBODY_OK. */
struct Everything {
    Input in;
    OnDevice there;
    Motion motion;
    Device<real> d_points, d_acc, d_potential;
    Device<nbody_error> d_error;
    Device<nbody_energies> d_energies;
    Everything(const Input &of, int seed)
        : in(of), there(of), motion(of, seed), d_points(points_for(of, nbody_frame{}, 70, seed)),
          d_acc(2 * 70), d_potential(70), d_error(1), d_energies(1)
    {
    }
    nbody_result run(nbody_cuda *gpu, nbody_stage stage, nbody_integrator integrator)
    {
        nbody_desc d = in.desc;
        nbody_bodies *const bodies = &motion.there;
        d.stage = stage;
        nbody_result r = nbody_cuda_step(gpu, &d, bodies, (real)0.001, integrator, stream);
        if (r == NBODY_OK) r = nbody_cuda_energy(gpu, bodies, nullptr, d_energies.p, stream);
        if (r == NBODY_OK) r = run_gpu(gpu, in, stage, there);
        if (r == NBODY_OK) r = nbody_cuda_estimate(gpu, there.acc.p, 20, 3, d_error.p, stream);
        if (r == NBODY_OK) r = nbody_cuda_fields_at(gpu, d_points.p, 0, 70, d_acc.p, d_potential.p, stream);
        return r;
    }
};

/* After a reserve, evaluations of up to n bodies allocate nothing. */
static void test_reserve()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (!thinned(k + 2, 3 * share, 180)) continue;
        Heap h = {};
        Both b;
        c.padded = 0;
        c.outputs = ALL_OUTPUTS;
        c.n = c.shape == EQUAL ? 40 : std::min(n_max, 150);
        nbody_stage const stage = all_stages[k % 4];
        context = "reserve: " + name_of(c);
        Input in = input_of(c, (int)k);
        in.desc.cuda_allocator = allocator_of(&h);
        nbody_desc d = in.desc;
        d.stage = stage;
        CHECK_RESULT(nbody_cuda_reserve(&b.gpu, &d, c.n, stream), NBODY_OK);
        long const calls = h.calls;
        CHECK(calls > 0 && b.gpu.device.sim.n == 0);
        for (int n : {c.n, c.n / 3, c.n, 1, c.n}) {
            Input some = in;
            some.n = n;
            some.pos.resize(2 * (size_t)n);
            if (!some.mass.empty()) some.mass.resize((size_t)n);
            Everything all(some, (int)k);
            CHECK_RESULT(all.run(&b.gpu, stage, NBODY_LEAPFROG), NBODY_OK);
            CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
            CHECK(h.calls == calls && "nothing was allocated");
            CHECK(b.gpu.device.sim.n == n);
        }
        CHECK_RESULT(nbody_cuda_reserve(&b.gpu, &d, c.n / 2, stream), NBODY_OK);
        CHECK(h.calls == calls && "the memory is kept");
        nbody_cuda_free(&b.gpu);
        CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
    }
}

/* One pass: allocation number `fail` fails (0: none). Returns how many there were. */
static long run_out_of_memory(const Input &of, const Input &then, nbody_stage stage, long fail)
{
    Heap h = {};
    Both b;
    Input in = of, more = then;
    h.fail_at = fail;
    in.desc.cuda_allocator = more.desc.cuda_allocator = allocator_of(&h);
    Everything few(in, 1), many(more, 2);
    for (Everything *e : {&few, &many}) {
        nbody_result const r = e->run(&b.gpu, stage, NBODY_LEAPFROG);
        if (r != NBODY_OK) {
            CHECK_RESULT(r, NBODY_OUT_OF_MEMORY);
            CHECK_RESULT(e->run(&b.gpu, stage, NBODY_LEAPFROG), NBODY_OK);
        }
        Fields want;
        CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
        CHECK_RESULT(run_serial(&b.serial, e->in, &want), NBODY_OK);
        compare(&b, e->in, stage, want, e->there);
    }
    if (fail > 0) CHECK(h.calls >= fail && "the failure was met");
    nbody_cuda_free(&b.gpu);
    CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
    return h.calls;
}

/* Each allocation fails once: the result says so, and the next call works. */
static void test_out_of_memory()
{
    for (int k = 3; k < SETTINGS * 4; k += std::max(std::min(share / 3, 40 * thin), 1)) {
        int const setting = k % SETTINGS;
        nbody_stage const stage = all_stages[(k + k / SETTINGS) % 4];
        if (few_large && is_large(settings[setting])) continue;
        Input const in = plain_input(setting, 20, k), more = plain_input(setting, std::min(n_max, 90), k);
        context = std::string("out of memory: ") + stage_names[stage] + ", " + name_of(settings[setting]);
        std::string const name = context;
        long const calls = run_out_of_memory(in, more, stage, 0);
        CHECK(calls > 2);
        for (long fail = 1; fail <= calls; fail++) {
            context = name + ", failure " + std::to_string(fail);
            run_out_of_memory(in, more, stage, fail);
        }
    }
}

/* A launch that fails comes back as a result, and the object can be used again afterwards. On a GPU: a capture that was made
   invalid refuses all further work; the emulator fails the launch we name. */
#ifdef CUDA_EMU
/* The last launches of an evaluation, which are for forces, are lost: no tree is left. */
static void check_lost_forces(int setting)
{
    Input const in = plain_input(setting, 40, 1);
    OnDevice const there(in);
    Both b;
    long const before = emu_launches();
    context = "launch errors: lost forces, " + name_of(settings[setting]);
    CHECK_RESULT(run_gpu(&b.gpu, in, NBODY_FAST, there), NBODY_OK);
    MUST(cudaStreamSynchronize(stream)); /* lazy streams launch only now */
    long const all = emu_launches() - before;
    for (long fail : {all, all - 1}) {
        emu_fail_launch(fail);
        CHECK_RESULT(run_gpu(&b.gpu, in, NBODY_FAST, there), NBODY_CUDA_ERROR);
        MUST(cudaStreamSynchronize(stream));
        emu_fail_launch(0);
        CHECK(!b.gpu.device.sim.frame && b.gpu.device.sim.n == 0);
        CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_NOT_BUILT);
    }
}
#endif

static void test_launch_errors()
{
#ifdef CUDA_EMU
    check_lost_forces(setting_like(NBODY_FORCE_NODES, 0));
#endif
    for (int k = 0; k < SETTINGS; k += share > 50 ? 9 : few_large ? 5 : 2) {
        nbody_stage const stage = all_stages[(k + 3) % 4];
        context = std::string("launch errors: ") + stage_names[stage] + ", " + name_of(settings[k]);
        Input const in = plain_input(k, 40, k);
        Both b;
#ifdef CUDA_EMU
        long const step = share > 50 ? 151 : 1; /* everything takes hundreds of launches */
        for (long fail = 1 + k % 7;; fail += step) {
            Everything all(in, k);
            long const before = emu_launches();
            emu_fail_launch(fail);
            nbody_result const r = all.run(&b.gpu, stage, NBODY_LEAPFROG);
            MUST(cudaStreamSynchronize(stream)); /* lazy streams launch only now */
            emu_fail_launch(0);
            if (r == NBODY_OK) {
                CHECK(fail > 3 && emu_launches() - before >= fail - step);
                break;
            }
            CHECK_RESULT(r, NBODY_CUDA_ERROR);
            CHECK(b.gpu.device.sim.cuda_error == (int32_t)cudaErrorLaunchOutOfResources);
            (void)cudaGetLastError();
        }
#else
        cudaGraph_t graph = nullptr;
        OnDevice const there(in);
        CHECK_RESULT(run_gpu(&b.gpu, in, stage, there), NBODY_OK);
        MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_CUDA_ERROR); /* no waiting here: it spoils the capture */
        CHECK(b.gpu.device.sim.cuda_error != 0);
        CHECK_RESULT(run_gpu(&b.gpu, in, stage, there), NBODY_CUDA_ERROR);
        CHECK(b.gpu.device.sim.cuda_error != 0);
        CHECK(cudaStreamEndCapture(stream, &graph) != cudaSuccess);
        cudaGetLastError();
#endif
        check_works(&b, k, stage);
    }
}

/* ------------------------------------------------------------------------------------------------
   Tests: graphs, streams, determinism
   ------------------------------------------------------------------------------------------------ */

/* What a graph of test_graph reads and writes. */
struct Recorded {
    Input in;
    OnDevice there;
    Device<real> d_points, d_acc, d_potential;
    Device<nbody_error> d_error;
    explicit Recorded(const Input &of)
        : in(of), there(of), d_points(2 * 33), d_acc(2 * 33), d_potential(33), d_error(1)
    {
    }
};

static void record(Both *b, const Recorded &r, nbody_stage stage, cudaGraphExec_t *exec)
{
    cudaGraph_t graph = nullptr;
    nbody_desc d = r.in.desc;
    d.stage = stage;
    CHECK_RESULT(nbody_cuda_reserve(&b->gpu, &d, r.in.n, stream), NBODY_OK);
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK_RESULT(run_gpu(&b->gpu, r.in, stage, r.there), NBODY_OK);
    CHECK_RESULT(nbody_cuda_estimate(&b->gpu, r.there.acc.p, 16, 2, r.d_error.p, stream), NBODY_OK);
    CHECK_RESULT(nbody_cuda_fields_at(&b->gpu, r.d_points.p, 0, 33, r.d_acc.p, r.d_potential.p, stream), NBODY_OK);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(exec, graph, 0));
    MUST(cudaGraphDestroy(graph));
}

/* One replay: with these bodies in the arrays, everything is as if it had been called afresh. */
static void replay(Both *b, Recorded *r, nbody_stage stage, cudaGraphExec_t exec, const Input &now)
{
    Fields want;
    nbody_error error = {};
    r->in.pos = now.pos;
    r->in.mass = now.mass;
    r->there.pos.set(now.pos);
    r->there.mass.set(now.mass);
    r->there.acc.forget();
    r->there.potential.forget();
    CHECK_RESULT(run_serial(&b->serial, r->in, &want), NBODY_OK);
    std::vector<real> const points = points_for(now, *b->serial.frame, 33, now.n);
    r->d_points.set(points);
    MUST(cudaGraphLaunch(exec, stream));
    CHECK_RESULT(nbody_cuda_check(&b->gpu, nullptr, stream), NBODY_OK);
    compare(b, r->in, stage, want, r->there);
    std::vector<real> const acc = r->there.acc.get();
    CHECK_RESULT(nbody_estimate(&b->serial, acc.data(), 16, 2, &error), NBODY_OK);
    check_error(r->d_error.get()[0], error);
    Fields at = {unset(r->d_acc.count), unset(33)};
    CHECK_RESULT(nbody_fields_at(&b->serial, points.data(), 0, 33, at.acc.data(), at.potential.data(), nullptr), NBODY_OK);
    if (stage != NBODY_FAST) CHECK(same_bits(at.acc, r->d_acc.get()) && same_bits(at.potential, r->d_potential.get()));
}

/* An evaluation, captured once and replayed with bodies that lie altogether differently: the tree is another one each time. One of
   the replays meets a NaN, which the next one has forgotten. */
static void test_graph()
{
    static const Shape shapes[] = {UNIFORM, CLUMPS, LINE, UNIFORM, TWO_SCALES, LATTICE};
    for (int k = 0; k < SETTINGS * 4; k++) {
        Case c = {};
        nbody_stage const stage = all_stages[(k + k / SETTINGS) % 4];
        if (!thinned((size_t)k + 90, share, 16)) continue;
        c.setting = k % SETTINGS;
        c.law = (nbody_law)(k / 4 % 2);
        c.levels = k % 3 == 1 ? 4 : 0;
        c.masses = ONES;
        c.soft = k % 2;
        c.padded = k % 5 == 0;
        c.n = std::min(n_max, heavy ? 70 : 150);
        context = std::string("graph: ") + stage_names[stage] + ", " + name_of(c);
        std::string const name = context;
        cudaGraphExec_t exec = nullptr;
        Both b;
        Recorded r(input_of(c, k));
        record(&b, r, stage, &exec);
        for (int step = 0; step < 6; step++) {
            context = name + ", replay " + std::to_string(step);
            c.shape = shapes[step];
            c.masses = step % 2 ? WILD : ONES;
            Input now = input_of(c, 100 * k + step);
            if (step == 3) {
                std::vector<real> bad = now.pos;
                bad[5 * step_of(now.stride, 2) + 1] = not_a_number;
                r.there.pos.set(bad);
                MUST(cudaGraphLaunch(exec, stream));
                CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_NOT_FINITE);
                CHECK(b.gpu.device.sim.bad_id == 5);
            }
            replay(&b, &r, stage, exec, now);
        }
        MUST(cudaGraphExecDestroy(exec));
    }
}

/* A whole time step, captured and replayed: the bodies move on, as the serial ones do. NBODY_FAST: as those of a second object do
   that is not captured. */
static void run_graph_steps(const Case &c, nbody_stage stage, nbody_integrator integrator, int seed)
{
    Both b, other;
    Input const in = input_of(c, seed);
    Motion m(in, seed), second(in, seed);
    nbody_desc d = in.desc;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    real const dt = (real)(1.0 / 512);
    d.stage = stage;
    CHECK_RESULT(nbody_cuda_reserve(&b.gpu, &d, in.n, stream), NBODY_OK);
    CHECK_RESULT(nbody_cuda_step(&b.gpu, &d, &m.there, dt, integrator, stream), NBODY_OK); /* the first is not one of the graph */
    CHECK(m.there.fresh == (integrator == NBODY_LEAPFROG));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK_RESULT(nbody_cuda_step(&b.gpu, &d, &m.there, dt, integrator, stream), NBODY_OK);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphDestroy(graph));
    for (int step = 0; step < 5; step++) MUST(cudaGraphLaunch(exec, stream));
    CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
    for (int step = 0; step < 6; step++) {
        if (stage == NBODY_FAST) CHECK_RESULT(nbody_cuda_step(&other.gpu, &d, &second.there, dt, integrator, stream), NBODY_OK);
        else CHECK_RESULT(nbody_step(&b.serial, &in.desc, &m.here, dt, integrator), NBODY_OK);
    }
    if (stage == NBODY_FAST) {
        CHECK(same_bits(m.d_pos.get(), second.d_pos.get()) && same_bits(m.d_vel.get(), second.d_vel.get()));
        CHECK(same_bits(m.d_acc.get(), second.d_acc.get()));
        CHECK(!same_bits(m.d_pos.get(), m.pos) && "the bodies moved");
    } else check_motion(&m, stage, 0);
    MUST(cudaGraphExecDestroy(exec));
}

static void test_graph_steps()
{
    static const int methods[] = {0, 1, 7, 9};
    for (int k = 0; k < 4 * 4 * 2; k++) {
        Case c = {};
        if (!thinned((size_t)k + 40, share / 2, 6)) continue;
        c.setting = methods[k % 4];
        c.masses = k % 3 ? ONES : NO_MASSES;
        c.soft = 1;
        c.n = std::min(n_max, 80);
        nbody_stage const stage = all_stages[k / 4 % 4];
        context = std::string("graph steps: ") + stage_names[stage] + ", " + name_of(c);
        run_graph_steps(c, stage, k / 16 ? NBODY_EULER : NBODY_LEAPFROG, k);
    }
}

/* NBODY_FAST on other memory, after other work, on another stream: the same bits. */
static void test_deterministic()
{
    cudaStream_t const before = stream;
    for (size_t k = 0; k < case_count; k++) {
        if (!thinned(k + 6, 3 * share, 120)) continue;
        Case c = case_of(k), other = case_of((k + 321) % case_count);
        Heap h = {};
        nbody_cuda first = {}, second = {};
        cudaStream_t own;
        c.n = std::min(size_of(c.shape, k + 4), heavy ? 150 : n_max);
        other.n = size_of(other.shape, k) / 2 + 1;
        context = "deterministic: " + name_of(c);
        Input in = input_of(c, (int)k);
        Input const work = input_of(other, 1);
        OnDevice const there(in), again(in), elsewhere(work);
        CHECK_RESULT(run_gpu(&first, in, NBODY_FAST, there), NBODY_OK);
        Fields const want = fields_of(there);
        nbody_cuda_free(&first);
        MUST(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
        stream = own;
        Input first_work = work;
        first_work.desc.cuda_allocator = in.desc.cuda_allocator = allocator_of(&h);
        CHECK_RESULT(run_gpu(&second, first_work, NBODY_FAST, elsewhere), NBODY_OK);
        CHECK_RESULT(run_gpu(&second, in, NBODY_FAST, again), NBODY_OK);
        Fields const got = fields_of(again);
        CHECK(same_bits(want.acc, got.acc) && "accelerations");
        CHECK(same_bits(want.potential, got.potential) && "potentials");
        nbody_cuda_free(&second);
        MUST(cudaStreamSynchronize(own));
        stream = before;
        MUST(cudaStreamDestroy(own));
        CHECK(h.live == 0 && !h.wrong_stream);
    }
}

/* Two simulations on two streams, their work interleaved; then each goes on on the other's stream, after an event. */
static void test_two_streams()
{
    cudaStream_t const before = stream;
    cudaStream_t streams[2];
    for (cudaStream_t &s : streams) MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (size_t k = 0; k < case_count; k += 31 * (size_t)std::max(std::min(share / 4, 9), 1)) {
        Case cases[2] = {case_of(k), case_of((k + 200) % case_count)};
        for (Case &c : cases) c.n = std::min(size_of(c.shape, k), heavy ? 100 : n_max);
        Input const in[2] = {input_of(cases[0], 1), input_of(cases[1], 2)};
        OnDevice const there0(in[0]), there1(in[1]);
        const OnDevice *const there[2] = {&there0, &there1};
        Both both[2];
        Fields want[2];
        context = "two streams: " + name_of(cases[0]) + "; " + name_of(cases[1]);
        nbody_stage const stages[2] = {all_stages[k % 4], NBODY_FAST};
        for (int i = 0; i < 2; i++) CHECK_RESULT(run_serial(&both[i].serial, in[i], &want[i]), NBODY_OK);
        for (int round = 0; round < 3; round++)
            for (int i = 0; i < 2; i++) {
                stream = streams[i ^ (round == 2)];
                if (round == 2) { /* it changes streams */
                    cudaEvent_t done;
                    MUST(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
                    MUST(cudaEventRecord(done, streams[i]));
                    MUST(cudaStreamWaitEvent(stream, done));
                    MUST(cudaEventDestroy(done));
                }
                CHECK_RESULT(run_gpu(&both[i].gpu, in[i], stages[i], *there[i]), NBODY_OK);
            }
        for (int i = 0; i < 2; i++) {
            stream = streams[1 - i];
            CHECK_RESULT(nbody_cuda_check(&both[i].gpu, nullptr, stream), NBODY_OK);
            compare(&both[i], in[i], stages[i], want[i], *there[i]);
        }
    }
    for (cudaStream_t &s : streams) MUST(cudaStreamSynchronize(s));
    for (cudaStream_t &s : streams) MUST(cudaStreamDestroy(s));
    stream = before;
}

/* ---- large ones ---- */

/* Many blocks at work at once: what the emulator runs one after another. */
static void test_large()
{
#ifdef CUDA_EMU
    int const n = heavy ? 300 : share > 200 ? 500 : 1500, every = heavy ? 9 : 4;
#else
    int const n = share > 40 ? 6007 : share > 8 ? 20011 : share > 1 ? 100003 : 1000003, every = 1;
#endif
    for (int setting = 1; setting <= SETTINGS; setting += every)
        for (Shape shape : {UNIFORM, CLUMPS}) {
            Case c = {};
            if (few_large && shape != (setting / 4 % 2 ? CLUMPS : UNIFORM)) continue;
            c.setting = setting % SETTINGS;
            c.shape = shape;
            c.masses = WILD;
            c.law = (nbody_law)(setting % 2);
            c.soft = 1;
            c.outputs = setting % 3 ? ACCELERATIONS : ALL_OUTPUTS;
            c.n = settings[c.setting].method == NBODY_DIRECT ? std::min(n, 20011) : n;
            context = "large: " + name_of(c);
            Both b;
            Input const in = input_of(c, setting);
            OnDevice const there(in);
            Fields want;
            CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
            run_stage(&b, in, NBODY_FAST, want, there);
            run_stage(&b, in, exact_stages[1 + (setting + shape) % 2], want, there);
        }
}

/* Potentials of some bodies among many, of the law that is usual. */
static void check_large_potentials(const Case &c)
{
    Both b;
    Input const in = input_of(c, c.n);
    OnDevice const there(in);
    CHECK_RESULT(run_gpu(&b.gpu, in, NBODY_FAST, there), NBODY_OK);
    std::vector<real> const got = there.potential.get();
    for (int i = 0; i < in.n; i += 500) {
        double want = 0;
        for (int k = 0; k < in.n; k++) {
            const real *p = point_of(in, i), *q = point_of(in, k);
            double const r = std::hypot((double)q[0] - (double)p[0], (double)q[1] - (double)p[1]);
            if (k != i) want -= mass_of(in, k) / r;
        }
        CHECK(within((double)got[(size_t)i], want, -1e-4 * want));
    }
}

/* Direct sums of so many bodies that every processor has several of them for each thread. */
static void test_large_direct()
{
    int device = 0, processors = 1;
    bool const once = few_large && share > 200; /* n^2 terms */
    MUST(cudaGetDevice(&device));
    MUST(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    for (int k = 0; k < (once || (share > 4 && !few_large) ? 1 : 4); k++) {
        Case c = {};
        c.law = (nbody_law)(k % 2);
        c.outputs = k / 2 ? ACCELERATIONS : ALL_OUTPUTS;
        c.masses = ONES;
        c.n = std::min(processors * 2048, 300000) + 5;
        context = "large direct: " + name_of(c);
        if (once) check_large_potentials(c);
        else if (few_large) run_fast(c);
        else { /* the serial sum would take minutes */
            Both b;
            check_truth(&b, input_of(c, k), settings[0].bar);
        }
    }
}

/* ------------------------------------------------------------------------------------------------
   Main
   ------------------------------------------------------------------------------------------------ */

static const Test tests[] = {
    {"empty", test_empty},             {"methods", test_methods},         {"fast", test_fast},           {"few", test_few},
    {"outputs", test_outputs},
    {"fields", test_fields},           {"rebuild", test_rebuild},
    {"truth", test_truth},             {"fields at", test_fields_at},     {"walks", test_walks},
    {"estimate", test_estimate},
    {"energy", test_energy},           {"step", test_step},               {"not finite", test_not_finite},
    {"bad mass", test_bad_mass},       {"too large", test_too_large},     {"cells full", test_cells_full},
    {"growth", test_growth},           {"not built", test_not_built},
    {"points without numbers", test_points_without_numbers},
#ifdef CUDA_EMU
    {"waits", test_waits},
#endif
    {"refused descs", test_refused_descs},                                {"refused arguments", test_refused_arguments},
    {"refused questions", test_refused_questions},                        {"reserve", test_reserve},
    {"out of memory", test_out_of_memory},                                {"launch errors", test_launch_errors},
    {"graph", test_graph},             {"graph steps", test_graph_steps}, {"deterministic", test_deterministic},
    {"two streams", test_two_streams}, {"large", test_large},
    {"large direct", test_large_direct},
};

int main(int argc, char **argv)
{
    bool const small = getenv("TEST_SMALL") != nullptr;
#ifdef CUDA_EMU
    heavy = emu_options()->blocks > 1; /* blocks take turns: all shared memory is copied at each */
    few_large = true;
    thin = heavy || small ? 4 : 2;
    n_max = heavy ? 80 : small ? 100 : 260;
    share = heavy ? 700 : small ? 450 : 120;
#else
    n_max = small ? 500 : 1500;
    share = small ? 200 : 150; /* within a minute; --share 1 runs every case: many minutes */
#endif
    read_options(argc, argv, {{"--n", &n_max, 70}, {"--share", &share, 1}});
    if (heavy) return run_tests(tests, {"fast", "truth"}); /* too slow there */
    return run_tests(tests);
}
