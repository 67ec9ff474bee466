/* bad_calls.cu - a part of test_lbvh.cu: refusals, and errors of CUDA: each comes back as a
   result code, and the tree is usable afterwards.
   SPDX-License-Identifier: MIT OR Unlicense */

static void test_refused_builds()
{
    static const lbvh_desc good = {};
    std::vector<real> const boxes = {0, 0, 0, 2, 2, 2, 1, 1, 1, 3, 3, 3, 8, 8, 8, 9, 9, 9};
    Device<real> d_boxes(boxes), d_out(18);
    lbvh_desc d = good;
    lbvh_cuda gpu = {};
    lbvh tree = {};
    Heap h = {};
    context = "refused builds";
    CHECK_RESULT(lbvh_cuda_build(nullptr, &d, d_boxes.p, 0, 3, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_build(&gpu, &d, nullptr, 0, 3, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_build(&gpu, &d, d_boxes.p, 0, -1, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_build(&gpu, &d, d_boxes.p, 5 * sizeof(real), 3, stream),
        LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_build(&gpu, &d, d_boxes.p, 6 * sizeof(real) + 1, 3, stream),
        LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_build(&gpu, &d, d_boxes.p, 0, INT32_MAX, stream), LBVH_TOO_MANY);
    CHECK_RESULT(lbvh_cuda_reserve(nullptr, &d, 10, 10, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_reserve(&gpu, &d, -1, 10, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_reserve(&gpu, &d, 10, -1, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_reserve(&gpu, &d, (1 << 30) - 511, 0, stream), LBVH_TOO_MANY);
    CHECK_RESULT(lbvh_cuda_reserve(&gpu, &d, 0, (1 << 30) - 511, stream), LBVH_TOO_MANY);
    CHECK_RESULT(lbvh_cuda_refit(nullptr, d_boxes.p, 0, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_check(nullptr, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_upload(nullptr, &tree, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_upload(&gpu, nullptr, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_download(nullptr, &gpu, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_download(&tree, nullptr, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_boxes(nullptr, &d, d_boxes.p, 0, 3, d_out.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_boxes(&gpu, &d, nullptr, 0, 3, d_out.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_boxes(&gpu, &d, d_boxes.p, 0, 3, nullptr, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_boxes(&gpu, &d, d_boxes.p, 1, 3, d_out.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_boxes(&gpu, &d, d_boxes.p, 0, -1, d_out.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_boxes(&gpu, &d, nullptr, 0, 0, nullptr, stream), LBVH_OK);
    static const struct { void (*change)(lbvh_desc *); lbvh_result result; } wrong[] = {
        {[](lbvh_desc *x) { x->dim = 4; }, LBVH_BAD_DIM},
        {[](lbvh_desc *x) { x->dim = -1; }, LBVH_BAD_DIM},
#ifndef CUDA_EMU /* UBSan stops at a value that the enum does not have */
        {[](lbvh_desc *x) { x->kind = (lbvh_kind)4; }, LBVH_BAD_OPTION},
        {[](lbvh_desc *x) { x->builder = (lbvh_builder)3; }, LBVH_BAD_OPTION},
#endif
        {[](lbvh_desc *x) { x->bits = 32; }, LBVH_BAD_OPTION},
        {[](lbvh_desc *x) { x->radius = -1; }, LBVH_BAD_RADIUS},
        {[](lbvh_desc *x) { x->radius = not_a_number; }, LBVH_BAD_RADIUS},
        {[](lbvh_desc *x) { x->cuda_allocator.alloc = heap_alloc; }, LBVH_BAD_ALLOCATOR},
        {[](lbvh_desc *x) { x->cuda_allocator.free = heap_free; }, LBVH_BAD_ALLOCATOR},
        {[](lbvh_desc *x) { x->min[1] = 1; }, LBVH_BAD_BOUNDS},
        {[](lbvh_desc *x) { x->max[0] = infinity; }, LBVH_BAD_BOUNDS},
    };
    for (auto w : wrong) {
        CHECK_RESULT(lbvh_cuda_build(&gpu, &good, d_boxes.p, 0, 3, stream), LBVH_OK);
        d = good;
        w.change(&d);
        CHECK_RESULT(lbvh_cuda_build(&gpu, &d, d_boxes.p, 0, 3, stream), w.result);
        CHECK(gpu.device.tree.n == 0);
        CHECK_RESULT(lbvh_cuda_reserve(&gpu, &d, 3, 3, stream), w.result);
        CHECK_RESULT(lbvh_cuda_boxes(&gpu, &d, d_boxes.p, 0, 3, d_out.p, stream), w.result);
    }
    CHECK_RESULT(lbvh_cuda_build(&gpu, &good, d_boxes.p, 0, 3, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_refit(&gpu, nullptr, 0, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_refit(&gpu, d_boxes.p, 4, stream), LBVH_BAD_ARGUMENT);
    CHECK(gpu.device.tree.n == 3);
    d = good;
    d.builder = LBVH_PLOC; /* serial; memory for its trees, which are uploaded, can be reserved */
    CHECK_RESULT(lbvh_cuda_build(&gpu, &d, d_boxes.p, 0, 3, stream), LBVH_BAD_OPTION);
    CHECK(gpu.device.tree.n == 0 && !gpu.device.tree.built);
    CHECK_RESULT(lbvh_cuda_reserve(&gpu, &d, 3, 3, stream), LBVH_OK);
    d = good;
    d.cuda_allocator = allocator_of(&h);
    CHECK_RESULT(lbvh_cuda_build(&gpu, &d, d_boxes.p, 0, 3, stream), LBVH_BAD_ALLOCATOR);
    CHECK(gpu.device.tree.n == 0 && h.calls == 0);
    CHECK_RESULT(lbvh_cuda_build(&gpu, &good, d_boxes.p, 0, 3, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_check(&gpu, stream), LBVH_OK);
    lbvh_cuda_free(&gpu);
    CHECK_RESULT(lbvh_cuda_refit(&gpu, d_boxes.p, 0, stream), LBVH_NOT_BUILT);
    lbvh_free(&tree);
}

static void test_refused_searches()
{
    std::vector<real> const boxes = {0, 0, 0, 2, 2, 2, 1, 1, 1, 3, 3, 3, 8, 8, 8, 9, 9, 9};
    Device<real> d_boxes(boxes), d_real(64);
    Device<int64_t> d_long(16);
    Device<int32_t> d_int(64);
    lbvh_cuda gpu = {};
    lbvh_queries q = {};
    context = "refused searches";
    CHECK_RESULT(lbvh_cuda_count_overlaps(&gpu, &q, d_int.p, stream), LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_cuda_overlaps(&gpu, &q, d_long.p, d_int.p, 16, stream), LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_cuda_build(&gpu, nullptr, d_boxes.p, 0, 3, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_count_pairs(nullptr, d_long.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_count_pairs(&gpu, nullptr, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_pairs(nullptr, d_int.p, 10, d_long.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_pairs(&gpu, nullptr, 10, d_long.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_pairs(&gpu, d_int.p, -1, d_long.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_pairs(&gpu, d_int.p, 10, nullptr, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_count_overlaps(nullptr, &q, d_int.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_count_overlaps(&gpu, nullptr, d_int.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_count_overlaps(&gpu, &q, nullptr, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_overlaps(nullptr, &q, d_long.p, d_int.p, 16, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_overlaps(&gpu, nullptr, d_long.p, d_int.p, 16, stream),
        LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_overlaps(&gpu, &q, nullptr, d_int.p, 16, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_overlaps(&gpu, &q, d_long.p, nullptr, 16, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_overlaps(&gpu, &q, d_long.p, d_int.p, -1, stream), LBVH_BAD_ARGUMENT);
    static const struct { lbvh_queries q; bool given; lbvh_result result; } wrong[] = {
        {{LBVH_TRIANGLES, nullptr, 0, 0, 0, 0, nullptr, 0}, false, LBVH_BAD_OPTION},
        {{LBVH_SPHERES, nullptr, 0, 0, 0, 0, nullptr, 0}, false, LBVH_BAD_OPTION},
#ifndef CUDA_EMU
        {{(lbvh_kind)-1, nullptr, 0, 0, 0, 0, nullptr, 0}, false, LBVH_BAD_OPTION},
#endif
        {{LBVH_BOXES, nullptr, 0, 3, 0, 0, nullptr, 0}, false, LBVH_BAD_ARGUMENT},
        {{LBVH_BOXES, nullptr, 0, 0, 0, 0, nullptr, 8}, false, LBVH_BAD_OPTION},
        {{LBVH_POINTS, nullptr, 0, 0, -1, 0, nullptr, 0}, false, LBVH_BAD_RADIUS},
        {{LBVH_POINTS, nullptr, 0, 0, not_a_number, 0, nullptr, 0}, false, LBVH_BAD_RADIUS},
        {{LBVH_POINTS, nullptr, 0, 0, infinity, 0, nullptr, 0}, false, LBVH_BAD_RADIUS},
        {{LBVH_TRIANGLES, nullptr, 0, 1, 0, 0, nullptr, 0}, true, LBVH_BAD_OPTION},
        {{LBVH_BOXES, nullptr, 0, -1, 0, 0, nullptr, 0}, true, LBVH_BAD_ARGUMENT},
        {{LBVH_BOXES, nullptr, 5 * sizeof(real), 1, 0, 0, nullptr, 0}, true, LBVH_BAD_ARGUMENT},
        {{LBVH_BOXES, nullptr, 0, 1, 0, 0, nullptr, LBVH_HALF}, true, LBVH_BAD_OPTION},
        {{LBVH_BOXES, nullptr, 0, 1, 0, 0, nullptr, LBVH_PLACES}, true, LBVH_BAD_OPTION},
        {{LBVH_BOXES, nullptr, 0, INT32_MAX, 0, 0, nullptr, 0}, true, LBVH_TOO_MANY},
    };
    for (auto w : wrong) {
        if (w.given) w.q.data = d_boxes.p;
        CHECK_RESULT(lbvh_cuda_count_overlaps(&gpu, &w.q, d_int.p, stream), w.result);
        CHECK_RESULT(lbvh_cuda_overlaps(&gpu, &w.q, d_long.p, d_int.p, 16, stream), w.result);
    }
    int32_t *const ids = d_int.p, *const found = d_int.p + 32;
    real *const d2 = d_real.p;
    CHECK_RESULT(lbvh_cuda_nearest(nullptr, d_boxes.p, 0, 3, 2, 1, 0, ids, d2, found, stream),
        LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, nullptr, 0, 3, 2, 1, 0, ids, d2, found, stream),
        LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 1, 3, 2, 1, 0, ids, d2, found, stream),
        LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, -1, 2, 1, 0, ids, d2, found, stream),
        LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, 3, -1, 1, 0, ids, d2, found, stream),
        LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, 3, 2, 1, 0, nullptr, d2, found, stream),
        LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, 3, 2, 1, 0, ids, nullptr, found, stream),
        LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, 3, 2, 1, 0, ids, d2, nullptr, stream),
        LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, 3, 2, -1, 0, ids, d2, found, stream),
        LBVH_BAD_RADIUS);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, 3, 2, not_a_number, 0, ids, d2, found,
        stream), LBVH_BAD_RADIUS);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, 3, 2, 1, LBVH_HALF, ids, d2, found, stream),
        LBVH_BAD_OPTION);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, INT32_MAX, 2, 1, 0, ids, d2, found, stream),
        LBVH_TOO_MANY);
    CHECK_RESULT(lbvh_cuda_nearest(&gpu, d_boxes.p, 0, 0, 2, 1, 0, ids, d2, found, stream),
        LBVH_OK);
    Collect const collect = {nullptr, nullptr, 0};
    CHECK_RESULT(lbvh_cuda_each_pair((lbvh_cuda *)nullptr, collect, stream), LBVH_BAD_ARGUMENT);
    CHECK(gpu.device.tree.n == 3);
    for (int32_t x : d_int.get())
        CHECK(x == (int32_t)0xA5A5A5A5u && "a refused call wrote something");
    for (int64_t x : d_long.get())
        CHECK(x == (int64_t)0xA5A5A5A5A5A5A5A5u && "a refused call wrote something");
    CHECK_RESULT(lbvh_cuda_count_pairs(&gpu, d_long.p, stream), LBVH_OK);
    CHECK(d_long.get()[0] == 1);
    lbvh_cuda_free(&gpu);
    CHECK_RESULT(lbvh_cuda_each_pair(&gpu, collect, stream), LBVH_NOT_BUILT);
}

/* A launch that fails comes back as a result, and the object can be used again afterwards. On a
   GPU: a capture that was made invalid refuses all further work; the emulator fails the launch we
   name. */
static void test_launch_errors()
{
    /* three blocks: nodes climb, too */
    Case c = {3, BOXES, 63, LBVH_MERGE, 1, 1, 0, UNIFORM, 0, 600};
    Input const in = input_of(c, 6);
    OnDevice const on_device(in);
    lbvh_desc const d = device_desc(in, on_device);
    Device<real> d_points(points_of(3, 50));
    Results to(600, 50);
    Trees g;
    context = "launch errors";
    if (!build(&g, in, on_device)) return;
#ifdef CUDA_EMU
    /* where blocks take turns, which takes long, every third launch */
    int const step = emu_options()->blocks > 1 ? 3 : 1;
    for (int builder = 0; builder < 2; builder++)
        for (long fail = 1;; fail += step) {
            lbvh_desc each = d;
            each.builder = (lbvh_builder)builder;
            long const before = emu_launches();
            emu_fail_launch(fail);
            lbvh_result r = lbvh_cuda_build(&g.gpu, &each, on_device.data.p, 0, 600, stream);
            if (r != LBVH_OK) CHECK(g.gpu.device.tree.n == 0);
            if (r == LBVH_OK) r = lbvh_cuda_refit(&g.gpu, on_device.data.p, 0, stream);
            if (r != LBVH_OK) CHECK(g.gpu.device.tree.n == 0); /* no half-made tree is left */
            if (r == LBVH_OK) r = search_all(&g.gpu, d_points, 50, &to);
            MUST(cudaStreamSynchronize(stream)); /* lazy streams launch only now */
            emu_fail_launch(0);
            if (r == LBVH_OK) {
                CHECK(fail > 5 && emu_launches() - before >= fail - step);
                break;
            }
            CHECK_RESULT(r, LBVH_CUDA_ERROR);
            CHECK(g.gpu.device.tree.cuda_error == (int32_t)cudaErrorLaunchOutOfResources);
        }
#else
    cudaGraph_t graph = nullptr;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    /* waiting is not allowed here, and spoils the capture */
    CHECK_RESULT(lbvh_cuda_check(&g.gpu, stream), LBVH_CUDA_ERROR);
    CHECK(g.gpu.device.tree.cuda_error != 0);
    CHECK_RESULT(lbvh_cuda_build(&g.gpu, &d, on_device.data.p, 0, 600, stream), LBVH_CUDA_ERROR);
    CHECK(g.gpu.device.tree.cuda_error != 0 && g.gpu.device.tree.n == 0);
    CHECK(cudaStreamEndCapture(stream, &graph) != cudaSuccess);
    cudaGetLastError();
#endif
    CHECK_RESULT(lbvh_cuda_build(&g.gpu, &d, on_device.data.p, 0, 100, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_check(&g.gpu, stream), LBVH_OK);
    CHECK(g.gpu.device.tree.cuda_error == 0);
    CHECK_RESULT(search_all(&g.gpu, d_points, 50, &to), LBVH_OK);
}
