/* large.cu - a part of test_ugrid.cu: when cells are cut by themselves (desc.split); the number of
   pairs of large workloads, against numbers counted by other programs.
   SPDX-License-Identifier: MIT OR Unlicense */

/* 79,507 cells: 6 particles and more in each from 477,042 on. */
static ugrid_desc crowded_desc()
{
    ugrid_desc d = {};
    d.max[0] = d.max[1] = d.max[2] = 43;
    d.cell = 1;
    return d;
}

/* What a build of n would choose, and whether the reason tells it. */
static void check_split(const char *name, const ugrid_desc &d, int32_t n, int32_t split)
{
    ugrid_cuda gpu = {};
    context = std::string("split: ") + name;
    CHECK_RESULT(ugrid_cuda_reserve(&gpu, &d, n, stream), UGRID_OK);
    const ugrid &grid = gpu.device.grid;
    CHECK(grid.desc.split == split && grid.axis[0].cells == (d.unbounded ? 1 : 43 * split));
    bool const told = std::string(grid.reason).find("split 4") != std::string::npos;
    CHECK(told == (split == 4 && d.split == 0));
    ugrid_cuda_free(&gpu);
}

static void test_split()
{
    static const struct { const char *name; void (*change)(ugrid_desc *); int32_t split; } cases[] =
        {{"as it is", [](ugrid_desc *) {}, 4},
         {"COUNT", [](ugrid_desc *d) { d->method = UGRID_COUNT; }, 1},
         {"SORT", [](ugrid_desc *d) { d->method = UGRID_SORT; }, 1},
         {"strips", [](ugrid_desc *d) { d->walk = UGRID_STRIPS; }, 4},
         {"given", [](ugrid_desc *d) { d->split = 1; }, 1},
         {"given, 4", [](ugrid_desc *d) { d->split = 4; }, 4},
         {"room", [](ugrid_desc *d) { d->max_cells = 4 * 79507; }, 4},
         {"no room", [](ugrid_desc *d) { d->max_cells = 4 * 79507 - 1; }, 1},
         {"deterministic", [](ugrid_desc *d) { d->deterministic = 1; }, 1},
         {"periodic", [](ugrid_desc *d) { d->periodic[2] = 1; }, 1},
         {"cells", [](ugrid_desc *d) { d->walk = UGRID_CELLS; }, 1},
         {"Morton", [](ugrid_desc *d) { d->cell_order = UGRID_MORTON; }, 1},
         {"tight", [](ugrid_desc *d) { d->placement = UGRID_TIGHT; }, 1},
         {"lists", [](ugrid_desc *d) { d->method = UGRID_LIST; }, 1},
         {"unbounded", [](ugrid_desc *d) { d->unbounded = 1; }, 1},
         {"in the plane", [](ugrid_desc *d) { d->dim = 2; }, 4}};
    for (auto const &c : cases) {
        ugrid_desc d = crowded_desc();
        c.change(&d);
        check_split(c.name, d, 1 << 19, c.split);
    }
    ugrid_desc few = crowded_desc();
    few.max[1] = few.max[2] = 1; /* 43 cells */
    check_split("few", few, ugrid_i_split_least, 4);
    check_split("too few", few, ugrid_i_split_least - 1, 1);
    ugrid_desc sparse = crowded_desc();
    sparse.max[1] = 48; /* 5.9 a cell */
    check_split("not crowded", sparse, 1 << 19, 1);
}

/* A build with split as chosen is one with split as given. */
static void test_split_build()
{
#ifndef CUDA_EMU
    int32_t const n = 600000;
    std::vector<float> uniform(3 * (size_t)n);
    wl_uniform(n, 5, uniform.data());
    std::vector<real> pos(uniform.begin(), uniform.end());
    for (real &x : pos) x *= 43;
    Device<real> const d_pos(pos);
    std::vector<int32_t> counts[2], starts[2];
    context = "split: build";
    for (int given = 0; given < 2; given++) {
        ugrid_cuda gpu = {};
        ugrid_desc d = crowded_desc();
        d.split = given ? 4 : 0;
        Device<int32_t> d_counts((size_t)n);
        CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_count_neighbors(&gpu, 1, 0, d_counts.p, stream), UGRID_OK);
        ugrid copy = {};
        CHECK_RESULT(ugrid_cuda_download(&copy, &gpu, stream), UGRID_OK);
        CHECK(copy.desc.split == 4 && copy.cell_count == 4 * 79507);
        starts[given].assign(copy.start, copy.start + copy.cell_count + 1);
        counts[given] = d_counts.get();
        ugrid_free(&copy);
        ugrid_cuda_free(&gpu);
    }
    CHECK(starts[0] == starts[1] && counts[0] == counts[1]);
#endif
}

/* What ugrid_cuda_check samples is what its places see. */
static void test_crowd()
{
    int32_t const n = 1500;
    std::vector<float> uniform(3 * (size_t)n);
    wl_uniform(n, 5, uniform.data());
    std::vector<real> pos(uniform.begin(), uniform.end());
    pos[30] = real(NAN); /* in no cell: at the last place */
    Device<real> const d_pos(pos);
    context = "crowd";
    for (int32_t split : {1, 4}) {
        ugrid_cuda gpu = {};
        ugrid copy = {};
        ugrid_desc d = {};
        d.max[0] = d.max[1] = d.max[2] = 1;
        d.cell = real(0.2);
        d.method = UGRID_COUNT;
        d.split = split;
        CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_NOT_FINITE);
        CHECK(gpu.crowd == 0 && !gpu.may_split);
        gpu.may_split = 1;
        CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_NOT_FINITE);
        CHECK_RESULT(ugrid_cuda_download(&copy, &gpu, stream), UGRID_OK);
        double others = 0;
        for (int64_t s = 0; s < 4096; s++) {
            int32_t c = 0;
            if (s * n / 4096 >= copy.start[copy.cell_count]) continue;
            while (copy.start[c + 1] <= s * n / 4096) c++;
            others += copy.start[c + 1] - copy.start[c] - 1;
        }
        double const seen = gpu.crowd / (125 * split), told = others / 4096;
        CHECK(told > 2 / split && seen > 0.999 * told && seen < 1.001 * told);
        ugrid_free(&copy);
        ugrid_cuda_free(&gpu);
    }
}

/* What a fresh grid sees of particles where `told` others share the cell of each: the same in each
   build, without an allocation after a reserve, and 0 in a build that is captured. */
static void check_crowd(const Device<real> &d_pos, ugrid_desc d, int32_t n, double told)
{
    double first = 0;
    for (bool captured : {false, false, true}) {
        Heap h = {};
        d.cuda_allocator = allocator_of(&h);
        ugrid_cuda gpu = {};
        CHECK_RESULT(ugrid_cuda_reserve(&gpu, &d, n, stream), UGRID_OK);
        long const calls = h.calls;
        int32_t const split = told > 6 && !captured ? 4 : 1;
        cudaGraph_t graph = nullptr;
        if (captured) MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        if (captured) MUST(cudaStreamEndCapture(stream, &graph));
        if (captured) MUST(cudaGraphDestroy(graph));
        CHECK(gpu.device.grid.desc.split == split && gpu.crowd_known == !captured);
        bool const tells = std::string(gpu.device.grid.reason).find("split 4") != std::string::npos;
        CHECK(tells == (split == 4));
        double const off = gpu.crowd - told, most = 0.2 * (told + 1); /* it sees itself, too */
        CHECK(captured ? gpu.crowd == 0 : off < most && -off < most);
        CHECK(captured || first == 0 || gpu.crowd == first);
        first = gpu.crowd;
        CHECK(h.calls == calls);
        ugrid_cuda_free(&gpu);
    }
}

/* With the radius told, the first build takes it for its cells where particles are crowded, though
   most cells are air. Else a cell has 2 particles. A deterministic one is that of the serial build,
   which counts the air. */
static void check_open_cell(const Device<real> &d_pos, ugrid_desc d, int32_t n, bool crowded)
{
    ugrid serial = {};
    d.radius = real(1.1) * d.cell;
    d.cell = 0;
    std::vector<real> const pos = d_pos.get();
    CHECK_RESULT(ugrid_build(&serial, &d, pos.data(), 0, n), UGRID_OK);
    for (bool deterministic : {false, true}) {
        ugrid_cuda gpu = {};
        d.deterministic = deterministic;
        CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        const ugrid &grid = gpu.device.grid;
        bool const same = grid.desc.cell == serial.desc.cell;
        CHECK(deterministic ? same : !crowded || grid.desc.cell == d.radius);
        const char *const why = grid.desc.cell > d.radius ? "2 particles" : "the radius";
        CHECK(std::string(grid.cell_reason).find(why) == 0);
        ugrid_cuda_free(&gpu);
    }
    ugrid_free(&serial);
}

/* Water in a box that is mostly air: the first build cuts its cells, and so do those after it. They
   allocate nothing after a reserve. */
static void test_split_crowd()
{
#ifdef CUDA_EMU
    int32_t const n = 1 << 13, side = 16, wet = 2;
#else
    int32_t const n = 1 << 19, side = 43, wet = 4;
#endif
    std::vector<float> uniform(3 * (size_t)n);
    wl_uniform(n, 5, uniform.data());
    for (int32_t depth : {wet, side}) { /* 8 or 18 others, or about 1 */
        int32_t const size[3] = {2 * side, depth, side};
        std::vector<real> pos(uniform.begin(), uniform.end());
        for (size_t k = 0; k < pos.size(); k++) pos[k] *= (real)size[k % 3];
        Device<real> const d_pos(pos);
        ugrid_desc d = {};
        d.max[0] = (real)size[0];
        d.max[1] = d.max[2] = (real)side;
        d.cell = 1;
        ugrid_cuda gpu = {};
        context = "split: crowd";
        for (int build = 0; build < 4; build++) {
            d.no_records = build > 1; /* these are not sampled: what was seen before stays */
            CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
            CHECK(gpu.device.grid.desc.split == (depth < side ? 4 : 1));
            CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_OK);
        }
        d.no_records = 0;
        ugrid_cuda_free(&gpu);
        check_open_cell(d_pos, d, n, depth < side);
        check_crowd(d_pos, d, n, (double)n / (size[0] * size[1] * size[2]));
    }
}

/* uniform-100k and uniform-1M have known totals (tests/unit/ugrid/test_ugrid.c). */
static void test_totals()
{
#ifndef CUDA_EMU
    static const struct { int32_t n; int seed; int64_t total; } workloads[] = {
        {100000, 7, 2866956}, {1000000, 1, 29352150}};
    for (auto w : workloads) {
        std::vector<float> uniform(3 * (size_t)w.n);
        wl_uniform(w.n, (uint64_t)w.seed, uniform.data());
        Device<real> d_pos(std::vector<real>(uniform.begin(), uniform.end()));
        real const radius = (real)wl_radius(w.n, 30);
        for (int method = UGRID_AUTO; method <= UGRID_LIST_PACKED; method++) {
            ugrid_cuda gpu = {};
            ugrid_desc d = {};
            Device<int64_t> d_pairs(1);
            Device<int32_t> d_counts((size_t)w.n);
            int64_t sum = 0;
            context = "totals: n " + std::to_string(w.n) + ", method " + std::to_string(method);
            d.dim = 3;
            d.max[0] = d.max[1] = d.max[2] = 1;
            d.cell = radius;
            d.method = (ugrid_method)method;
            d.slots = 64;
            CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, w.n, stream), UGRID_OK);
            CHECK_RESULT(ugrid_cuda_count_pairs(&gpu, radius, d_pairs.p, stream), UGRID_OK);
            CHECK_RESULT(ugrid_cuda_count_neighbors(&gpu, radius, 0, d_counts.p, stream), UGRID_OK);
            CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_OK);
            for (int32_t count : d_counts.get()) sum += count;
            CHECK(sum == 2 * d_pairs.get()[0]);
            CHECK(sizeof(real) == 8 ? std::llabs(sum - w.total) < 100 : sum == w.total);
            ugrid_cuda_free(&gpu);
        }
    }
#endif
}
