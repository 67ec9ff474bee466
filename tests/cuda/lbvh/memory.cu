/* memory.cu - a part of test_lbvh.cu: allocations on the device. One that fails leaves an empty,
   usable tree; arrays grow by a factor; after a reserve nothing is allocated. Also: which calls
   wait for the stream.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Device memory that is counted, and fails on demand. */

/* Room for the results of all searches over up to n elements with m queries. */
struct Results {
    Device<int64_t> one, offsets;
    Device<int32_t> ids, counts;
    Device<real> distances2;
    Results(size_t n, size_t m)
        : one(1), offsets(std::max(n, m) + 1), ids(64 * std::max(n, m) + 64),
            counts(std::max(n, m) + 1), distances2(8 * m + 1)
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
        r = lbvh_cuda_nearest(gpu, d_points.p, 0, m, 8, infinity, 0, to->ids.p, to->distances2.p,
            to->counts.p, stream);
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
        if (c.padded || c.shape > CLUSTERED || !chosen(k, 4 * share, 90)) continue;
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
            CHECK_RESULT(lbvh_cuda_build(&gpu, &d, on_device.data.p, in.stride, n, stream),
                LBVH_OK);
            CHECK_RESULT(lbvh_cuda_refit(&gpu, on_device.data.p, in.stride, stream), LBVH_OK);
            CHECK_RESULT(search_all(&gpu, d_points, std::min(m, n + 50), &to), LBVH_OK);
            CHECK(h.calls == calls);
        }
        lbvh_cuda_free(&gpu);
        CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
    }
}

/* Work that keeps the stream busy for a while; in the emulator, until a call waits for it. */
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

/* n rises by little with every build, and the searches with it: what is allocated follows its
   logarithm. */
static void test_growth()
{
    int const most = size_max >= 4097 ? 600 : 150, growths = 14;
    for (int builder = 0; builder < 2; builder++) {
        Case const c = {3, BOXES, builder ? 63 : 30, (lbvh_builder)builder, builder, builder, 0,
            UNIFORM, 0, most};
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
        for (int n = 1; n <= most; n = next_size(n, most)) {
            int64_t const had = lbvh_bytes(&g.copy);
            CHECK_RESULT(lbvh_cuda_build(&g.gpu, &d, on_device.data.p, in.stride, n, stream),
                LBVH_OK);
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
        int64_t bytes = 0;
        CHECK_RESULT(lbvh_cuda_bytes_for(&d, n, n, &bytes), LBVH_OK);
        CHECK_RESULT(lbvh_cuda_reserve(&gpu, &d, n, n, stream), LBVH_OK);
        CHECK(bytes > 0 && (int64_t)h.live_bytes == bytes);
        CHECK(lbvh_cuda_bytes_for(&d, n, -1, &bytes) == LBVH_BAD_ARGUMENT && bytes == 0);
        CHECK(blocks_of((2 * (size_t)n + 7) * sizeof(lbvh_node), gpu.block) == 1); /* 7 slices */
        CHECK(blocks_of(((size_t)n + 1) * sizeof(int64_t), gpu.scratch) == 1);
    }
    h.fail_at = h.calls + 1;
    CHECK_RESULT(lbvh_cuda_build(&gpu, &d, on_device.data.p, in.stride, 102, stream), LBVH_OK);
    CHECK(h.failed == 1 && blocks_of((204 + 7) * sizeof(lbvh_node), gpu.block) == 1);
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
        CHECK_RESULT(lbvh_cuda_nearest(gpu, d_real.p, 0, m, 2, 1, 0, d_int.p, d_real.p + 32,
            d_int.p + 32, stream), want);
    MUST(cudaStreamSynchronize(stream));
    lbvh_free(&copy);
}

/* One rule: without a tree every call returns a code; a tree over no elements is one. */
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

/* One pass of test_out_of_memory: the allocation number `fail` fails (0: none). Returns how many
   there were. */
static long run_out_of_memory(const Input &in, const OnDevice &on_device, const lbvh &host,
    long fail)
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

/* Each allocation fails once: the result is its code, the tree is empty or as before, and the next
   call works. */
static void test_out_of_memory()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.padded || c.shape != UNIFORM || !chosen(k, share, 30)) continue;
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
