/* cases.cu - a part of test_ugrid.cu: the cases: every build x placement x walk x bounds x order
   of cells x records; their descs and points.
   SPDX-License-Identifier: MIT OR Unlicense */

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
    bool const strips = c.walk == UGRID_STRIPS || c.walk == UGRID_HYBRID, tight = c.size > 0,
        unbounded = c.bounds >= UNBOUNDED;
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
                                Case const c = {dim, bounds, (ugrid_method)method,
                                    (ugrid_slot_layout)layout, size, (ugrid_walk)walk,
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
    if ((c.walk + c.method + c.dim) % 3 == 0) d.outside = UGRID_LEAVE_OUT;
    return d;
}

static std::string name_of(const Case &c)
{
    static const char *const methods[] = {"AUTO", "COUNT", "SORT", "FIXED", "LIST", "LIST_PACKED"};
    static const char *const walks[] = {"AUTO", "CELLS", "STRIPS", "MODULAR", "HYBRID"};
    char text[200];
    snprintf(text, sizeof text, "dim %d, bounds %d (8, 9: unbounded; else periodic axes), %s, "
        "slots by %s, size %g cells, %s, %s, no_records %d, deterministic %d",
             c.dim, c.bounds, methods[c.method], c.layout ? "row" : "column", (double)c.size,
                 walks[c.walk], c.order ? "MORTON" : "ROWS",
             c.no_records, c.deterministic);
    return text;
}

/* Points of every kind: anywhere, in a cloud at a corner, on borders of cells, on one spot, up to
   two boxes outside, and some twenty boxes away. */
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
            case 5: pos.push_back(d.min[a] + length * (real)(int)(u * (cells[a] + 1)) /
                (real)cells[a]); break;
            case 6: pos.push_back(i % 64 == 6 ? d.min[a] + length / 2 :
                d.min[a] + length * (real)(int)(u * 64) / 64); break;
            default: pos.push_back(d.min[a] + length * (i % 32 == 7 ? 41 * u - 20 : 5 * u - 2));
            }
        }
    return pos;
}
