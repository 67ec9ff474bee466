/* bad_calls.cu - a part of test_ugrid.cu: refusals, grids that are not built, and errors of
   CUDA: each comes back as a result code, and the grid is usable afterwards. The functors of
   functors.cu are here, too.
   SPDX-License-Identifier: MIT OR Unlicense */

static void test_refusals()
{
    Case const c = {3, 0, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, 0, 0};
    ugrid_desc const good = desc_of(c);
    ugrid_desc d = good;
    ugrid_cuda gpu = {};
    Heap h = {};
    Device<real> d_pos(std::vector<real>(30, (real)0.5));
    Device<int64_t> d_long(11);
    Device<int32_t> d_int(100);
    context = "refusals";
    CHECK_RESULT(ugrid_cuda_build(nullptr, &d, d_pos.p, 0, 10, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, nullptr, 0, 10, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, -1, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 3 * sizeof(real) - 1, 10, stream),
        UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_build(&gpu, nullptr, d_pos.p, 0, 10, stream), UGRID_BAD_BOX);
    CHECK_RESULT(ugrid_cuda_reserve(nullptr, &d, 10, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_reserve(&gpu, &d, -1, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_reserve(&gpu, &d, INT32_MAX, stream), UGRID_TOO_MANY_ENTRIES);
    CHECK_RESULT(ugrid_cuda_check(nullptr, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_download(nullptr, &gpu, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_upload(&gpu, nullptr, stream), UGRID_BAD_ARGUMENT);
    memset(d.min, 0, sizeof d.min);
    memset(d.max, 0, sizeof d.max);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 10, stream), UGRID_BAD_BOX);
    d = good;
    d.cell = 0;
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 10, stream), UGRID_BAD_CELL);
    d.cell = (real)1e-6;
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 10, stream), UGRID_TOO_MANY_CELLS);
    d = good;
    d.dim = 4;
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 10, stream), UGRID_BAD_DIM);
    d = good;
    d.method = UGRID_LIST;
    d.walk = UGRID_STRIPS;
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 10, stream), UGRID_BAD_WALK);
    d = good;
    d.cuda_allocator.alloc = heap_alloc;
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 10, stream), UGRID_BAD_ALLOCATOR);
    d = good;
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 10, stream), UGRID_OK);
    d.cuda_allocator = allocator_of(&h);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 10, stream), UGRID_BAD_ALLOCATOR);
    CHECK(gpu.device.grid.n == 0 && h.calls == 0);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &good, d_pos.p, 0, 10, stream), UGRID_OK);
    CHECK_RESULT(ugrid_cuda_count_pairs(&gpu, -1, d_long.p, stream), UGRID_BAD_RADIUS);
    CHECK_RESULT(ugrid_cuda_count_pairs(&gpu, (real)NAN, d_long.p, stream), UGRID_BAD_RADIUS);
    CHECK_RESULT(ugrid_cuda_count_pairs(&gpu, 1, nullptr, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_count_pairs(nullptr, 1, d_long.p, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_count_neighbors(&gpu, 1, 0, nullptr, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_count_neighbors(&gpu, 1, 64, d_int.p, stream), UGRID_BAD_OPTION);
    CHECK_RESULT(ugrid_cuda_neighbors(&gpu, 1, 0, nullptr, d_int.p, 100, stream),
        UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_neighbors(&gpu, 1, 0, d_long.p, nullptr, 100, stream),
        UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_neighbors(&gpu, 1, 0, d_long.p, d_int.p, -1, stream),
        UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_neighbors_at(&gpu, nullptr, 0, 3, 1, d_long.p, d_int.p, 100, stream),
        UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_neighbors_at(&gpu, d_pos.p, 1, 3, 1, d_long.p, d_int.p, 100, stream),
        UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_neighbors_at(&gpu, d_pos.p, 0, 0, 1, d_long.p, nullptr, 0, stream),
        UGRID_OK);
    CHECK(d_long.get()[0] == 0);
    CHECK_RESULT(ugrid_cuda_cell_sums(&gpu, d_pos.p, 0, 0, d_pos.p, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_cell_sums(&gpu, nullptr, 1, 0, d_pos.p, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_cell_sums(&gpu, d_pos.p, 1, 64, d_pos.p, stream), UGRID_BAD_OPTION);
    CHECK_RESULT(ugrid_cuda_gather(&gpu, nullptr, 4, d_int.p, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_gather(&gpu, d_int.p, 0, d_int.p, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_scatter(nullptr, d_int.p, 4, d_int.p, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_reserve(&gpu, &good, -1, stream), UGRID_BAD_ARGUMENT);
    CHECK(!gpu.device.grid.built && gpu.device.grid.n == 0);
    /* a NULL pointer comes first, also where there is no grid */
    CHECK_RESULT(ugrid_cuda_count_pairs(&gpu, -1, nullptr, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_count_neighbors(nullptr, 1, 0, nullptr, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_neighbors(&gpu, 1, 0, nullptr, nullptr, 0, stream),
        UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_neighbors_at(&gpu, nullptr, 0, 3, 1, d_long.p, nullptr, 0, stream),
        UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_count_pairs(&gpu, 1, d_long.p, stream), UGRID_NOT_BUILT);
    CHECK_RESULT(ugrid_cuda_neighbors(&gpu, 1, 0, d_long.p, nullptr, 0, stream), UGRID_NOT_BUILT);
    ugrid_cuda_free(&gpu);
    CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_NOT_BUILT);
}

/* ---- functors ---- */

/* Notes each contact it is given: how often each particle was i, and j; and whether the geometry is
   right. */
struct Note {
    int32_t *as_i, *as_j, *wrong;
    real radius;
    __device__ void operator()(const ugrid_contact &c) const
    {
        atomicAdd(&as_i[c.i], 1);
        atomicAdd(&as_j[c.j], 1);
        real const d2 = c.d[0] * c.d[0] + c.d[1] * c.d[1] + c.d[2] * c.d[2];
        bool const fine = d2 <= radius * radius * (real)1.001 && d2 <= c.d2 * (real)1.001 &&
            d2 >= c.d2 * (real)0.999 && c.i != c.j;
        if (!fine) atomicAdd(wrong, 1);
    }
};

/* What a sum adds up: a whole number that depends on both partners. */
struct Weigh {
    __device__ int32_t operator()(const ugrid_contact &c) const { return c.i * 3 + c.j * 5 +
        c.place_i - c.place_j; }
};

/* Every call that reads a grid, on one without particles. */
static void check_all_calls(ugrid_cuda *gpu, ugrid_result want)
{
    Device<real> d_real(1000, 0); /* more than there are cells */
    Device<int64_t> d_long(2);
    Device<int32_t> d_int(2);
    ugrid host = {};
    CHECK_RESULT(ugrid_cuda_check(gpu, stream), want);
    CHECK_RESULT(ugrid_cuda_download(&host, gpu, stream), want);
    CHECK_RESULT(ugrid_validate(&host), want);
    CHECK_RESULT(ugrid_cuda_gather(gpu, d_int.p, 4, d_int.p, stream), want);
    CHECK_RESULT(ugrid_cuda_scatter(gpu, d_int.p, 4, d_int.p, stream), want);
    CHECK_RESULT(ugrid_cuda_cell_sums(gpu, d_real.p, 1, 0, d_real.p, stream), want);
    CHECK_RESULT(ugrid_cuda_count_pairs(gpu, 1, d_long.p, stream), want);
    CHECK_RESULT(ugrid_cuda_count_neighbors(gpu, 1, 0, d_int.p, stream), want);
    CHECK_RESULT(ugrid_cuda_neighbors(gpu, 1, 0, d_long.p, d_int.p, 2, stream), want);
    CHECK_RESULT(ugrid_cuda_neighbors_at(gpu, d_real.p, 0, 1, 1, d_long.p, d_int.p, 2, stream),
        want);
    CHECK_RESULT(ugrid_cuda_each(gpu, 1, 0, Note{d_int.p, d_int.p, d_int.p, 1}, stream), want);
    CHECK_RESULT(ugrid_cuda_sum(gpu, 1, 0, Weigh(), d_int.p, stream), want);
    ugrid_free(&host);
}

/* A grid that was never built, was reserved only, refused, or freed; and one that was built without
   particles. */
static void test_not_built()
{
    Case const c = {3, 0, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, 0, 0};
    ugrid_desc const d = desc_of(c);
    Device<real> d_pos(std::vector<real>(30, (real)0.5));
    ugrid_cuda gpu = {};
    context = "not built";
    check_all_calls(&gpu, UGRID_NOT_BUILT);
    CHECK_RESULT(ugrid_cuda_reserve(&gpu, &d, 10, stream), UGRID_OK);
    check_all_calls(&gpu, UGRID_NOT_BUILT);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, nullptr, 0, 0, stream), UGRID_OK);
    check_all_calls(&gpu, UGRID_OK);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 10, stream), UGRID_OK);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, nullptr, 0, 10, stream), UGRID_BAD_ARGUMENT);
    check_all_calls(&gpu, UGRID_NOT_BUILT);
    ugrid_cuda_free(&gpu);
    check_all_calls(&gpu, UGRID_NOT_BUILT);
}

/* ugrid_cuda_check waits for what is in the stream, whether there are particles or not, and a grid
   or not. */
static void test_check_waits()
{
    Case const c = {3, 0, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, 0, 0};
    ugrid_desc const d = desc_of(c);
    Device<real> d_pos(std::vector<real>(3, (real)0.5));
    Device<int32_t> d_word(std::vector<int32_t>{17});
    context = "check waits";
    for (int n = -1; n < 2; n++) { /* -1: not built */
        ugrid_cuda gpu = {};
        int32_t word = 0;
        if (n >= 0) CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        MUST(cudaMemcpyAsync(&word, d_word.p, sizeof word, cudaMemcpyDeviceToHost, stream));
        CHECK_RESULT(ugrid_cuda_check(&gpu, stream), n < 0 ? UGRID_NOT_BUILT : UGRID_OK);
        CHECK(word == 17 && cudaStreamQuery(stream) == cudaSuccess);
        MUST(cudaStreamSynchronize(stream));
        ugrid_cuda_free(&gpu);
    }
}

/* A launch that fails comes back as a result, and the object can be used again afterwards. On a
   GPU: a capture that was made invalid refuses all further work; the emulator fails the launch we
   name. */
static void test_launch_errors()
{
    Case const c = {3, 1, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, 0, 0};
    ugrid_desc const d = desc_of(c);
    std::vector<real> const pos = mixed_points(d, 100, 6);
    Device<real> d_pos(pos);
    Device<int32_t> d_counts(100);
    Grids g;
    context = "launch errors";
    if (!build(&g, d, pos, d_pos)) return;
#ifdef CUDA_EMU
    for (int method = UGRID_COUNT; method <= UGRID_LIST_PACKED; method++)
        for (long fail = 1;; fail++) {
            ugrid_desc each = d;
            each.method = (ugrid_method)method;
            each.slots = 100;
            long const before = emu_launches();
            emu_fail_launch(fail);
            ugrid_result r = ugrid_cuda_build(&g.gpu, &each, d_pos.p, 0, 100, stream);
            if (r == UGRID_OK)
                r = ugrid_cuda_count_neighbors(&g.gpu, d.cell, 0, d_counts.p, stream);
            MUST(cudaStreamSynchronize(stream)); /* lazy streams launch only now */
            emu_fail_launch(0);
            if (r == UGRID_OK) {
                CHECK(fail > 2 && emu_launches() - before >= fail - 1);
                break;
            }
            CHECK_RESULT(r, UGRID_CUDA_ERROR);
            CHECK(g.gpu.device.grid.cuda_error == (int32_t)cudaErrorLaunchOutOfResources);
        }
#else
    cudaGraph_t graph = nullptr;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    /* waiting is not allowed here, and spoils the capture */
    CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_CUDA_ERROR);
    CHECK(g.gpu.device.grid.cuda_error != 0);
    CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, 100, stream), UGRID_CUDA_ERROR);
    CHECK(g.gpu.device.grid.cuda_error != 0 && g.gpu.device.grid.n == 0);
    CHECK(cudaStreamEndCapture(stream, &graph) != cudaSuccess);
    cudaGetLastError();
#endif
    CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, 100, stream), UGRID_OK);
    CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_OK);
    CHECK(g.gpu.device.grid.cuda_error == 0);
}

/* Errors of copies and of clearing memory: returned by the call in which they happen, and by no
   other. */
static void test_failing_calls()
{
    for (int method = UGRID_COUNT; method <= UGRID_LIST_PACKED; method++) {
        Case const c = {3, 1, (ugrid_method)method, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS,
            UGRID_ROWS, 0, 0};
        ugrid_desc d = desc_of(c);
        std::vector<real> const pos = mixed_points(d, 100, 6);
        Device<real> d_pos(pos);
        bool good = false;
        context = "failing calls: method " + std::to_string(method);
        d.slots = 100;
        for (long fail = 1; !good; fail++) {
            Grids g;
            spoil_at = fail;
            ugrid_result r = ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, 100, stream);
            if (r == UGRID_OK) r = ugrid_cuda_check(&g.gpu, stream);
            bool const there = r == UGRID_OK;
            if (there) r = ugrid_cuda_download(&g.copy, &g.gpu, stream);
            good = spoil_at > 0;
            spoil_at = 0;
            CHECK_RESULT(r, good ? UGRID_OK : UGRID_CUDA_ERROR);
            ugrid const &told = there ? g.copy : g.gpu.device.grid;
            CHECK(good || told.cuda_error == (int32_t)cudaErrorInvalidDevice);
            CHECK(g.copy.n == (good ? 100 : 0) && (!good || fail > 3));
            CHECK(cudaPeekAtLastError() == cudaSuccess);
        }
    }
}

/* An upload whose n-th copy or allocation fails leaves nothing, and the next one is complete. What
   cannot go up is refused. */
static void test_failing_uploads()
{
    Case const c = {3, 1, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, 0, 0};
    ugrid_desc d = desc_of(c);
    std::vector<real> const pos = mixed_points(d, 100, 6);
    Grids g;
    Heap h = {};
    bool good = false;
    context = "failing uploads";
    CHECK_RESULT(ugrid_cuda_upload(&g.gpu, &g.serial, stream), UGRID_NOT_BUILT);
    d.rows = 50;
    CHECK_RESULT(ugrid_build(&g.serial, &d, pos.data(), 0, 100), UGRID_OK);
    CHECK_RESULT(ugrid_cuda_upload(&g.gpu, &g.serial, stream), UGRID_BAD_ROWS);
    d.rows = 0;
    d.cuda_allocator = allocator_of(&h);
    CHECK_RESULT(ugrid_build(&g.serial, &d, pos.data(), 0, 100), UGRID_OK);
    for (long fail = 1; !good; fail++) {
        ugrid_cuda gpu = {};
        spoil_at = fail;
        ugrid_result const r = ugrid_cuda_upload(&gpu, &g.serial, stream);
        good = spoil_at > 0;
        spoil_at = 0;
        CHECK_RESULT(r, good ? UGRID_OK : UGRID_CUDA_ERROR);
        CHECK(gpu.device.grid.built == good && (!good || fail > 5));
        CHECK_RESULT(ugrid_cuda_upload(&gpu, &g.serial, stream), UGRID_OK);
        ugrid_cuda_free(&gpu);
    }
    for (long fail = 1, calls = 1; fail <= calls; fail++) {
        ugrid_cuda gpu = {};
        h.calls = 0;
        h.fail_at = fail;
        CHECK_RESULT(ugrid_cuda_upload(&gpu, &g.serial, stream), UGRID_OUT_OF_MEMORY);
        CHECK(!gpu.device.grid.built);
        h.fail_at = h.calls = 0;
        ugrid_cuda_free(&gpu);
        CHECK_RESULT(ugrid_cuda_upload(&gpu, &g.serial, stream), UGRID_OK);
        calls = h.calls;
        ugrid_cuda_free(&gpu);
    }
    CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
}

/* Whatever the GPU does not tell, a build of many does without it. Its memory has room for the
   largest plan. */
static void test_unknown_gpu()
{
    Case const c = {3, 0, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, 0, 0};
    ugrid_desc const d = desc_of(c);
    int const n = ugrid_i_parts_least;
    std::vector<real> const pos = many_points(d, n, MIXED);
    Device<real> d_pos(pos);
    ugrid_cuda gpu = {};
    context = "unknown GPU";
    CHECK_RESULT(ugrid_cuda_reserve(&gpu, &d, n, stream), UGRID_OK);
    for (long question = 1; question <= 2; question++) { /* shared memory, cache */
        unknown_at = question;
        CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        CHECK(unknown_at == 0 && cudaPeekAtLastError() == cudaSuccess);
        CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_OK);
        CHECK(gpu.device.grid.n == n);
    }
    ugrid_i_parts parts = {};
    ugrid_i_bind_parts(&gpu, &parts);
    const ugrid_block &room = gpu.scratch[UGRID_I_PARTS];
    CHECK((char *)(parts.part_of + ugrid_i_bins_max) <= (char *)room.memory + room.bytes);
    ugrid_cuda_free(&gpu);
}
