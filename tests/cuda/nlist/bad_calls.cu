/* bad_calls.cu - a part of test_nlist.cu: refusals, and errors of CUDA: each comes back as a
   result code, and the list is usable afterwards.
   SPDX-License-Identifier: MIT OR Unlicense */

typedef void change_fn(nlist_desc *);

static const struct { change_fn *change; nlist_result result; } wrong_descs[] = {
    {[](nlist_desc *x) { x->dim = 4; }, NLIST_BAD_DIM},
    {[](nlist_desc *x) { x->dim = -1; }, NLIST_BAD_DIM},
    {[](nlist_desc *x) { x->radius = 0; }, NLIST_BAD_RADIUS},
    {[](nlist_desc *x) { x->radius = -1; }, NLIST_BAD_RADIUS},
    {[](nlist_desc *x) { x->radius = not_a_number; }, NLIST_BAD_RADIUS},
    {[](nlist_desc *x) { x->radius = infinity; }, NLIST_BAD_RADIUS},
    {[](nlist_desc *x) { x->radius = (real)(sizeof(real) == 4 ? 1e-21 : 1e-160); },
    NLIST_BAD_RADIUS},
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
    {[](nlist_desc *x) { x->periodic[1] = 1; x->min[1] = 0; x->max[1] = (real)0.3; },
    NLIST_BAD_PERIOD},
    {[](nlist_desc *x) { x->exclude = (const int32_t *)x; }, NLIST_BAD_EXCLUSIONS},
    {[](nlist_desc *x) { x->exclude_start = (const int64_t *)x; }, NLIST_BAD_EXCLUSIONS},
    {[](nlist_desc *x) { x->allocator.alloc = [](size_t, void *) -> void * { return nullptr; }; },
    NLIST_BAD_ALLOCATOR},
    {[](nlist_desc *x) { x->cuda_allocator.alloc = heap_alloc; }, NLIST_BAD_ALLOCATOR},
    {[](nlist_desc *x) { x->cuda_allocator.free = heap_free; }, NLIST_BAD_ALLOCATOR},
    {[](nlist_desc *x) { x->cuda_allocator.alloc = heap_alloc; x->cuda_allocator.free = heap_free;
    }, NLIST_BAD_ALLOCATOR},
};

/* Pointers, counts and strides of every build. */
static void check_refused_arguments(Both *b, const nlist_desc &d, const Device<real> &d_pos,
    const Device<int32_t> &d_pairs)
{
    nlist_cuda *const gpu = &b->gpu;
    CHECK_RESULT(nlist_cuda_build_brute(nullptr, &d, d_pos.p, 0, 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_brute(gpu, nullptr, d_pos.p, 0, 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_brute(gpu, &d, nullptr, 0, 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_brute(gpu, &d, d_pos.p, 0, -1, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_brute(gpu, &d, d_pos.p, 2 * sizeof(real), 4, stream),
        NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_brute(gpu, &d, d_pos.p, 3 * sizeof(real) + 1, 4, stream),
        NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_brute(gpu, &d, d_pos.p, 0, INT32_MAX, stream), NLIST_TOO_MANY);
    CHECK_RESULT(nlist_cuda_build_pairs(nullptr, &d, d_pairs.p, 2, 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_pairs(gpu, &d, nullptr, 2, 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_pairs(gpu, &d, d_pairs.p, -1, 4, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_pairs(gpu, &d, d_pairs.p, 2, -1, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_ugrid(gpu, &d, nullptr, d_pos.p, 0, 4, stream),
        NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_lbvh(gpu, &d, nullptr, d_pos.p, 0, 4, stream),
        NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_ugrid(nullptr, &d, &b->grid_gpu, d_pos.p, 0, 4, stream),
        NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_lbvh(nullptr, &d, &b->tree_gpu, d_pos.p, 0, 4, stream),
        NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_ugrid(gpu, &d, &b->grid_gpu, d_pos.p, 0, 3, stream),
        NLIST_BAD_SOURCE);
    CHECK_RESULT(nlist_cuda_build_lbvh(gpu, &d, &b->tree_gpu, d_pos.p, 0, 3, stream),
        NLIST_BAD_SOURCE);
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

static void build_four(Both *b, const nlist_desc &d, const Device<real> &d_pos,
    const Device<real> &d_elements)
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
        /* the box is that of the grid */
        if (w.result != NLIST_BAD_BOX && w.result != NLIST_BAD_PERIOD) {
            CHECK_RESULT(nlist_cuda_build_ugrid(&b.gpu, &d, &b.grid_gpu, d_pos.p, 0, 4, stream),
                w.result);
        }
        CHECK_RESULT(nlist_cuda_build_lbvh(&b.gpu, &d, &b.tree_gpu, d_pos.p, 0, 4, stream),
            w.result);
    }
    context = "refused builds: the list before is there";
    nlist_cuda other = {};
    nlist_desc flat = good;
    flat.dim = 2;
    CHECK_RESULT(nlist_cuda_build_ugrid(&other, &flat, &b.grid_gpu, d_pos.p, 0, 4, stream),
        NLIST_BAD_DIM);
    CHECK_RESULT(nlist_cuda_build_lbvh(&other, &flat, &b.tree_gpu, d_pos.p, 0, 4, stream),
        NLIST_BAD_DIM);
    nlist_cuda_free(&other);
    CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
    compare(&b, false, true);
    CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &good, d_pos.p, 0, 4, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
    CHECK_RESULT(nlist_build_brute(&b.serial, &good, four.data(), 0, 4), NLIST_OK);
    compare(&b, false, true);
}

/* A build refused for its source, or for its radius, has asked for another layout: the list before
   it is read as what it is. */
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
        CHECK_RESULT(nlist_cuda_build_lbvh(&b.gpu, &other, &b.tree_gpu, there.pos.p, 0, c.n,
            stream), NLIST_BAD_SOURCE);
        CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &other, nullptr, 0, c.n, stream),
            NLIST_BAD_ARGUMENT);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        compare(&b, false, true);
        check_sums<3>(&b, k);
    }
}

/* A deterministic list wants a grid with an order. */
static void test_refused_sources()
{
    static const ugrid_method methods[] = {UGRID_COUNT, UGRID_FIXED, UGRID_LIST, UGRID_LIST_PACKED,
        UGRID_SORT};
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
        CHECK_RESULT(build_gpu(&b, GRID, d, in, there),
            method == UGRID_SORT ? NLIST_OK : NLIST_BAD_SOURCE);
        in.cells.deterministic = 1;
        CHECK_RESULT(build_gpu(&b, GRID, d, in, there), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
    }
    Both b;
    nlist_desc d = {};
    Device<real> d_pos(four);
    d.radius = 1;
    CHECK_RESULT(nlist_cuda_build_ugrid(&b.gpu, &d, &b.grid_gpu, d_pos.p, 0, 4, stream),
        NLIST_BAD_SOURCE);
    CHECK_RESULT(nlist_cuda_build_lbvh(&b.gpu, &d, &b.tree_gpu, d_pos.p, 0, 4, stream),
        NLIST_BAD_SOURCE);
    context = "refused sources: boxes so far from the particles that squares overflow";
    real const far_off = sizeof(real) == 4 ? (real)1e20 : (real)1e160;
    Device<real> d_old(std::vector<real>{far_off, 0, 0, -far_off, 0, 0}),
        d_now(std::vector<real>{0, 0, 0, (real)0.1, 0, 0});
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
    CHECK_RESULT(nlist_cuda_build_mesh(nullptr, &d, &b.tree_gpu, &m, there.pos.p, 0, 10, stream),
        NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_mesh(&b.gpu, &d, nullptr, &m, there.pos.p, 0, 10, stream),
        NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_mesh(&b.gpu, &d, &b.tree_gpu, nullptr, there.pos.p, 0, 10,
        stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_build_mesh(&b.gpu, &d, &b.tree_gpu, &m, nullptr, 0, 10, stream),
        NLIST_BAD_ARGUMENT);
    d.layout = NLIST_STATIC;
    CHECK_RESULT(nlist_cuda_build_mesh(&b.gpu, &d, &b.tree_gpu, &m, there.pos.p, 0, 10, stream),
        NLIST_BAD_OPTION);
    d = in.desc;
    d.dim = 2;
    CHECK_RESULT(nlist_cuda_build_mesh(&b.gpu, &d, &b.tree_gpu, &m, there.pos.p, 0, 10, stream),
        NLIST_BAD_DIM);
    nlist_mesh thick = m; /* without thickest */
    thick.thickness = mesh_there.vertices.p;
    CHECK_RESULT(nlist_cuda_build_mesh(&b.gpu, &in.desc, &b.tree_gpu, &thick, there.pos.p, 0, 10,
        stream), NLIST_BAD_RADIUS);
    m.triangles++;
    CHECK_RESULT(nlist_cuda_build_mesh(&b.gpu, &in.desc, &b.tree_gpu, &m, there.pos.p, 0, 10,
        stream), NLIST_BAD_SOURCE);
    m.triangles--;
    m.vertices = nullptr;
    CHECK_RESULT(nlist_cuda_build_mesh(&b.gpu, &in.desc, &b.tree_gpu, &m, there.pos.p, 0, 10,
        stream), NLIST_BAD_ARGUMENT);
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
    for (auto w : wrong)
        CHECK_RESULT(nlist_cuda_sum<3>(&b.gpu, &w.how, law, d_sums.p, stream), w.result);
    nlist_sums const good = {3, NLIST_AUTO, 0};
    CHECK_RESULT(nlist_cuda_sum<3>((nlist_cuda *)nullptr, &good, law, d_sums.p, stream),
        NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_sum<3>(&b.gpu, nullptr, law, d_sums.p, stream), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_cuda_sum<3>(&b.gpu, &good, law, (real *)nullptr, stream),
        NLIST_BAD_ARGUMENT);
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

/* A launch that fails comes back as a result, and the object can be used again afterwards. On a
   GPU: a capture that was made invalid refuses all further work; the emulator fails the launch we
   name. */
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
        /* waiting is not allowed here, and spoils the capture */
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_CUDA_ERROR);
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
