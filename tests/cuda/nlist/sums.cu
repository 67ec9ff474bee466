/* sums.cu - a part of test_nlist.cu: sums in all modes, against sums in double and against the
   serial sums; over grids in Morton order, over triangles, beyond fixed point; nlist_cuda_each.
   SPDX-License-Identifier: MIT OR Unlicense */

namespace {

/* A contact's contribution: numbers that do not add up without rounding, the opposite for the
   partner; one pair in seven does not touch. With `marks` each call counts in the first byte of the
   entry. */
template <int Values> struct Law {
    uint32_t salt;
    int marks, keys;
    real scale;
    __host__ __device__ int operator()(int32_t i, int32_t j, void *history, real *own,
        real *other) const
    {
        bool const turned = !keys && i > j;
        uint32_t const s = stamp_of(salt, turned ? j : i, turned ? i : j) / 4;
        if (marks) ++*(unsigned char *)history;
        if (s % 7 == 3) return 0;
        for (int v = 0; v < Values; v++) {
            int32_t const whole = (int32_t)(scattered((uint64_t)s * 16 + (uint32_t)v) & 0xFFFF) -
                32768;
            real const x = (real)whole * scale;
            own[v] = turned ? -x : x;
            other[v] = turned ? x : -x;
        }
        return 1;
    }
};

} /* namespace */

template <int Values> static int law_on_host(void *user, int32_t i, int32_t j, void *history,
    real *own, real *other)
{
    return (*(const Law<Values> *)user)(i, j, history, own, other);
}

/* Sums in double, and how large their parts are together. */
struct Exact {
    std::vector<double> sum, size;
};

template <int Values> static Exact exact_sums(const nlist &list, Law<Values> law,
    const std::vector<real> &first)
{
    Exact exact = {std::vector<double>(first.begin(), first.end()),
        std::vector<double>(first.size())};
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

/* Every number within what rounding may do: each addition loses half a last digit, each
   contribution up to a unit. */
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

/* One sum on both sides. Bits are the same with a unit, and wherever a deterministic list takes a
   sum without one. */
template <int Values> static void check_sum(Both *b, nlist_mode mode, double unit, Law<Values> law)
{
    std::string const before = context;
    nlist_sums const how = {Values, mode, unit};
    nlist_sums const how_gpu = {mode == NLIST_REDUCE ? 0 : Values, mode, unit};
    std::vector<real> first((size_t)(b->serial.n * Values));
    for (size_t k = 0; k < first.size(); k++) first[k] = (real)(scattered(k) % 100) / (real)70;
    std::vector<real> serial = first;
    Device<real> d_sums(first);
    context += std::string(", sum of ") + std::to_string(Values) + ", " + modes[mode] + ", unit " +
        std::to_string(unit);
    nlist_result const want = nlist_sum(&b->serial, &how, law_on_host<Values>, &law, serial.data());
    CHECK_RESULT(nlist_cuda_sum<Values>(&b->gpu, &how_gpu, law, d_sums.p, stream), want);
    if (want == NLIST_OK) {
        Exact const exact = exact_sums<Values>(b->serial, law, first);
        std::vector<real> const sums = d_sums.get();
        CHECK_RESULT(nlist_cuda_check(&b->gpu, stream), build_verdict);
        CHECK(near_exact(serial, exact, unit));
        CHECK(near_exact(sums, exact, unit));
        if (unit > 0 || b->serial.desc.deterministic)
            CHECK(same_bits(serial.data(), sums.data(), sums.size()));
    }
    context = before;
}

/* All modes; without history the law does not count. */
template <int Values> static void check_sums(Both *b, int salt)
{
    Law<Values> law = {(uint32_t)salt, b->serial.desc.history != 0, b->serial.keys,
        (real)0.3 / 65536};
    int calls = 0;
    for (nlist_mode mode : {NLIST_AUTO, NLIST_PER_PARTICLE, NLIST_PER_CONTACT, NLIST_REDUCE})
        for (double unit : {0.0, 1.0 / (1 << 20)}) {
            nlist_sums const how = {Values, mode, unit};
            std::vector<real> sums((size_t)(b->serial.n * Values) + 1);
            Law<Values> quiet = law;
            quiet.marks = 0;
            bool const taken = nlist_sum(&b->serial, &how, law_on_host<Values>, &quiet,
                sums.data()) == NLIST_OK;
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
    while (build_serial(b, c.source, d, *in) == NLIST_ROW_FULL)
        d.radius = in->desc.radius = in->desc.radius / 2;
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
    for (int k = 0; k < 10; k++) { /* chains, and slots, by every number of values */
        int const values = k % 5;
        Case c = {};
        c.layout = k < 5 ? NLIST_DYNAMIC : NLIST_HYBRID;
        c.width = k < 5 ? 0 : 4;
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
static std::vector<double> sums_that_fit(const nlist &list, const Law<3> &law, double unit,
    double first)
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

/* A value that does not fit into fixed point is reported, and not added. */
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
        CHECK_RESULT(nlist_sum(&b.serial, &how, law_on_host<3>, &law, sums.data()),
            NLIST_SUM_OVERFLOW);
        CHECK(sums == first);
        CHECK_RESULT(nlist_cuda_sum<3>(&b.gpu, &how, law, d_sums.p, stream), NLIST_OK);
        for (int again = 0; again < 2; again++)
            CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_SUM_OVERFLOW);
        std::vector<real> const got = d_sums.get();
        for (size_t x = 0; x < fit.size(); x++)
            CHECK(std::fabs((double)got[x] - fit[x]) <= 1e-5 * std::fabs(fit[x]) + 10);
        law.scale = (real)1 / 65536;
        d_sums.set(first);
        CHECK_RESULT(nlist_sum(&b.serial, &how, law_on_host<3>, &law, sums.data()), NLIST_OK);
        CHECK_RESULT(nlist_cuda_sum<3>(&b.gpu, &how, law, d_sums.p, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        CHECK(d_sums.get() == sums && sums != first);
    }
}

/* A particle that may be left out does not hide a value that does not fit. */
static void test_sum_overflow_hidden()
{
    std::vector<real> const pos = {0, 0, 0, (real)0.5, 0, 0, (real)NAN, 0, 0};
    Device<real> const d_pos(pos), d_sums(std::vector<real>(9, 0));
    Law<3> const law = {1, 0, 0, (real)500};
    nlist_sums how = {3, NLIST_PER_CONTACT, 1e-12};
    nlist_cuda gpu = {};
    nlist_desc d = {};
    context = "sum overflow beside one left out";
    d.radius = 1;
    d.skip_invalid = 1;
    CHECK_RESULT(nlist_cuda_build_brute(&gpu, &d, d_pos.p, 0, 3, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_NOT_FINITE);
    CHECK_RESULT(nlist_cuda_sum<3>(&gpu, &how, law, d_sums.p, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_SUM_OVERFLOW);
    CHECK(gpu.device.list.bad_id == 2);
    nlist_cuda_free(&gpu);
}

namespace {

/* Counts the calls for every entry, and adds up the ids it was given. */
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
