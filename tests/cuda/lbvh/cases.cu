/* cases.cu - a part of test_lbvh.cu: the cases: every kind of element x options of the tree x
   input x number; where the elements lie, and what the caller has of them.
   SPDX-License-Identifier: MIT OR Unlicense */

enum Form { BOXES, POINTS, FAT_POINTS, SPHERES, TRIANGLES, INDEXED, FORMS };

enum Shape { UNIFORM, CLUSTERED, LATTICE, EQUAL, LINE, CLUMPS, SIZES, DEEP, ZEROS, HUGE_NUMBERS,
    SHAPES };

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

/* Number `k` of all combinations of everything but n and LBVH_PLOC, which is serial. */
static Case case_of(size_t k)
{
    Case c = {};
    c.bounds = (int)(scattered(k) % 4);
    c.dim = 2 + (int)(k % 2), k /= 2;
    c.form = (Form)(k % FORMS), k /= FORMS;
    c.bits = k % 2 ? 30 : 63, k /= 2;
    c.builder = (lbvh_builder)(k % 2), k /= 2;
    c.masked = (int)(k % 2), k /= 2;
    c.keep_codes = (int)(k % 2), k /= 2;
    c.padded = (int)(k % 2), k /= 2;
    c.shape = (Shape)(k % SHAPES);
    if (c.shape == DEEP) c.bounds = 0;
    return c;
}

static const size_t case_count = 2 * FORMS * 2 * 2 * 8 * SHAPES;

static std::string name_of(const Case &c)
{
    static const char *const forms[] = {"boxes", "points", "points with a radius", "spheres",
        "triangles", "indexed triangles"};
    static const char *const shapes[] = {"uniform", "clustered", "lattice", "all equal",
        "on a line", "two far clumps", "sizes 1:1000", "deep", "zeros of both signs",
        "huge numbers"};
    static const char *const builders[] = {"MERGE", "SPLIT", "PLOC"};
    char text[250];
    snprintf(text, sizeof text,
        "n %d, dim %d, %s, %s, %d bits, %s, masks %d, keep_codes %d, padded %d, bounds %d", c.n,
        c.dim,
             forms[c.form], shapes[c.shape], c.bits, builders[c.builder], c.masked,
                 c.keep_codes, c.padded, c.bounds);
    return text;
}

/* ---- where the elements lie ---- */

struct Element { real c[3], h; }; /* centre, and reach to each side */

/* Codes with a single bit, so that each inner node has one leaf on one side: a chain as long as a
   code has bits. What is left over lies at the origin, where places alone tell the elements apart,
   and the tree goes on below the chain. */
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
static lbvh_desc host_desc(const Input &in)
{
    return desc_of(in, in.indices.data(), in.masks.data());
}

struct OnDevice {
    Device<real> data;
    Device<int32_t> indices;
    Device<uint32_t> masks;
    explicit OnDevice(const Input &in) : data(in.data), indices(in.indices), masks(in.masks) {}
};
static lbvh_desc device_desc(const Input &in, const OnDevice &d)
{
    return desc_of(in, d.indices.p, d.masks.p);
}

/* The numbers of one element. A triangle has corners in three directions from its centre. */
static void put_element(const Case &c, const Element &e, std::vector<real> *out)
{
    static const real corner[3][3] = {{-1, (real)-0.25, (real)0.5}, {1, -1, (real)-0.75},
        {(real)0.125, 1, 1}};
    if (c.form >= TRIANGLES) {
        for (int v = 0; v < 3; v++)
            for (int a = 0; a < c.dim; a++) out->push_back(e.c[a] + e.h * corner[v][a]);
        return;
    }
    for (int a = 0; a < c.dim; a++) out->push_back(c.form == BOXES ? e.c[a] - e.h : e.c[a]);
    if (c.form == BOXES) for (int a = 0; a < c.dim; a++) out->push_back(e.c[a] + e.h);
    if (c.form == SPHERES) out->push_back(e.h);
}

/* Rows of `width` numbers, three more numbers after each, which must not be read. */
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
    for (size_t v = m; v > 1; v--)
        std::swap(in->indices[v - 1], in->indices[wl_below(r, (uint32_t)v)]);
    for (size_t v = 0; v < m; v++)
        for (size_t a = 0; a < dim; a++)
            in->data[(size_t)in->indices[v] * dim + a] = corners[v * dim + a];
    in->desc.vertices = (int32_t)m;
    in->width = dim;
}

/* The bounds of all centres, or their middle half. */
static void give_bounds(const Case &c, const std::vector<Element> &elements, lbvh_desc *d)
{
    for (int a = 0; a < c.dim; a++) {
        real low = elements[0].c[a], high = low;
        for (const Element &e : elements)
            low = std::min(low, e.c[a]), high = std::max(high, e.c[a]);
        d->min[a] = c.bounds == 2 ? low : low * (real)0.75 + high * (real)0.25;
        d->max[a] = c.bounds == 2 ? high : low * (real)0.25 + high * (real)0.75;
    }
}

static Input input_of(const Case &c, int seed)
{
    static const lbvh_kind kinds[] = {LBVH_BOXES, LBVH_POINTS, LBVH_POINTS, LBVH_SPHERES,
        LBVH_TRIANGLES, LBVH_TRIANGLES};
    wl_random r = wl_seed((uint64_t)seed);
    std::vector<Element> elements;
    Input in = {};
    for (int i = 0; i < c.n; i++) elements.push_back(element_of(c, i, &r));
    for (int i = c.n; i > 1; i--)
        std::swap(elements[(size_t)i - 1], elements[wl_below(&r, (uint32_t)i)]);
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
    if (c.masked)
        for (int i = 0; i <= c.n; i++)
            in.masks.push_back(i % 7 == 3 ? 0 : 1u << wl_below(&r, 32) | 1u << i % 3);
    return in;
}
