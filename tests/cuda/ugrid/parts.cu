/* parts.cu - a part of test_ugrid.cu: UGRID_COUNT of many particles, which are placed by parts.
   SPDX-License-Identifier: MIT OR Unlicense */

enum { MIXED, ONE_CELL, IN_ORDER, LAYERS, SPREADS };

/* Anywhere as mixed_points; two thirds in one cell; along the order of cells; most in one layer of
   them. */
static std::vector<real> many_points(const ugrid_desc &d, int n, int spread)
{
    std::vector<real> pos = mixed_points(d, n, spread);
    for (int i = 0; i < n; i++)
        for (int a = 0; a < d.dim; a++) {
            real &x = pos[(size_t)(i * d.dim + a)];
            real const length = d.max[a] - d.min[a], step = (real)i / (real)n;
            if (spread == ONE_CELL && i % 3 > 0)
                x = d.min[a] + length / 2 + (real)0.01 * d.cell * step;
            if (spread == IN_ORDER && a == d.dim - 1) x = d.min[a] + length * step;
            if (spread == LAYERS && a == d.dim - 1 && i % 8 > 0) x = d.min[a] + length * (real)0.3;
        }
    return pos;
}

/* The downloaded grid, some of whose particles are not finite, is what a serial build makes that
   leaves them out. */
static void check_skipped(const Case &c, ugrid_desc d, const std::vector<real> &pos, Grids *g)
{
    d.skip_invalid = 1;
    CHECK_RESULT(ugrid_build(&g->serial, &d, pos.data(), 0, g->copy.n), UGRID_OK);
    g->copy.pos = pos.data();
    g->copy.stride = sizeof(real) * (size_t)d.dim;
    check_arrays(c, g->serial, g->copy);
}

/* Cells of 1 / fine of the usual edge. */
static void check_many(const Case &c, int n, int spread, bool with_bad, int fine)
{
    ugrid_desc d = desc_of(c);
    d.cell /= (real)fine;
    d.split = 1;
    d.inverse = spread % 2;
    d.coherent = spread == IN_ORDER && n % 2;
    context = "parts: " + name_of(c) + ", n " + std::to_string(n) + ", spread " +
        std::to_string(spread);
    std::vector<real> pos = many_points(d, n, spread);
    Device<real> d_pos(pos);
    Grids g;
    if (!build(&g, d, pos, d_pos)) return;
    check_arrays(c, g.serial, g.copy);
    if (!with_bad) return;
    int32_t const good = g.serial.n;
    for (int i = 5; i < n; i += 1000) pos[(size_t)(i * c.dim)] = (real)NAN;
    d_pos.set(pos);
    CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
    CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_NOT_FINITE);
    CHECK(g.gpu.device.grid.bad_id == 5);
    CHECK_RESULT(ugrid_cuda_download(&g.copy, &g.gpu, stream), UGRID_OK);
    CHECK(g.copy.start[g.copy.cell_count] == good - (n + 994) / 1000);
    for (int32_t k = g.copy.start[g.copy.cell_count]; k < n; k++)
        CHECK(g.copy.order[k] % 1000 == 5);
    check_skipped(c, d, pos, &g);
}

/* After a reserve, neither a build by parts nor one of fewer particles allocates; without memory,
   nothing is left behind. */
static void check_many_memory(int n)
{
    Case const c = {3, 0, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, 0, 0};
    ugrid_desc d = desc_of(c);
    d.cell /= 4;
    std::vector<real> const pos = many_points(d, n, MIXED);
    Device<real> d_pos(pos);
    context = "parts: memory";
    Heap h = {};
    ugrid_cuda gpu = {};
    d.cuda_allocator = allocator_of(&h);
    CHECK_RESULT(ugrid_cuda_reserve(&gpu, &d, n, stream), UGRID_OK);
    long const calls = h.calls;
    for (int size : {n, n / 4, n}) {
        d.coherent = size < n;
        CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, size, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_OK);
    }
    CHECK(h.calls == calls);
    ugrid_cuda_free(&gpu);
    for (long fail = 1; fail <= calls; fail++) {
        h.calls = 0;
        h.fail_at = fail;
        ugrid_result const r = ugrid_cuda_build(&gpu, &d, d_pos.p, 0, n, stream);
        /* a build takes no memory for lists */
        CHECK(r == UGRID_OUT_OF_MEMORY || (r == UGRID_OK && h.calls < fail));
        ugrid_cuda_free(&gpu);
        CHECK(h.live == 0);
    }
    h.fail_at = 0;
#ifdef CUDA_EMU
    long const steps = 4;
    d.coherent = 0;
    for (long fail = 1; fail <= steps + 1; fail++) {
        emu_fail_launch(fail);
        ugrid_result const r = ugrid_cuda_build(&gpu, &d, d_pos.p, 0, n, stream);
        MUST(cudaStreamSynchronize(stream)); /* lazy streams launch only now */
        emu_fail_launch(0);
        CHECK_RESULT(r, fail <= steps ? UGRID_CUDA_ERROR : UGRID_OK);
        CHECK((gpu.device.grid.n == n) == (r == UGRID_OK));
    }
    CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_OK);
    ugrid_cuda_free(&gpu);
    CHECK(h.live == 0);
#endif
}

/* Grids that one launch orders, and those just too large for it. */
static void check_small(int n, int cells, bool tags)
{
    Case const c = {2, 0, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, tags, 0};
    ugrid_desc d = desc_of(c);
    d.min[0] = d.min[1] = 0;
    d.max[0] = (real)cells;
    d.max[1] = d.cell = 1;
    d.split = 1;
    d.inverse = n % 2;
    context = "small: n " + std::to_string(n) + ", cells " + std::to_string(cells);
    std::vector<real> pos = many_points(d, n, cells > 1 ? n % 3 : MIXED);
    Device<real> d_pos(pos);
    Grids g;
    if (!build(&g, d, pos, d_pos)) return;
    CHECK(g.copy.cell_count == cells);
    check_arrays(c, g.serial, g.copy);
    pos[0] = (real)NAN;
    d_pos.set(pos);
    CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
    CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_NOT_FINITE);
    CHECK(g.gpu.device.grid.bad_id == 0);
    CHECK_RESULT(ugrid_cuda_download(&g.copy, &g.gpu, stream), UGRID_OK);
    check_skipped(c, d, pos, &g);
}

static void test_small()
{
#ifdef CUDA_EMU
    std::vector<int> const sizes = {1, 255, 1025, 2048, 2049}; /* one block, two turns */
#else
    std::vector<int> const sizes = {1, 1023, 10241, 150001, 270336, 270337}; /* of 132 blocks */
#endif
    int k = 0;
    for (int n : sizes)
        for (int cells : {1, 100, 2047, 16384, 49148, 49149}) {
            if (n > 2000 && k++ % std::min(share, 7)) continue;
            check_small(n, cells, n % 2 == cells % 2);
        }
}

static void test_parts()
{
#ifdef CUDA_EMU
    std::vector<int> const sizes = share > 20 ? std::vector<int>{16385} :
        std::vector<int>{16385, 70000};
    /* blocks take turns: 180 KB are copied at each */
    int const every = emu_options()->blocks > 1 ? 8 : share > 20 ? 4 : 1;
#else
    std::vector<int> const sizes = {16384, 65537, 1000003, 5000001};
    int const every = std::min(share, 11);
#endif
    int k = 0;
    for (int n : sizes)
        for (int dim = 2; dim <= 3; dim++)
            for (int bounds : {0, 3, (int)UNBOUNDED})
                for (int spread = 0; spread < SPREADS; spread++, k++) {
                    if (n > 65537 && k % 5) continue;
                    if (k % every) continue;
                    Case const c = {dim, bounds, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS,
                                    bounds == 3 ? UGRID_MORTON : UGRID_ROWS, k % 3 == 1, 0};
                    check_many(c, n, spread, k % 2 == 0, 4);
                }
    /* 5 million cells: one block per multiprocessor orders a part (ugrid_i_shape) */
    for (int tags = 0; tags < 2 && share <= 20; tags++) {
        Case const fine = {3, 0, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS,
                           tags, 0};
        check_many(fine, 16385, LAYERS, true, 40);
    }
    if (share <= 20) check_many_memory(16385);
}

/* Particles in order and not, in turn. A build goes by what the one before saw, which is complete
   here (check waits); the result is right in any case. Captured builds do not. */
static void test_order()
{
#ifdef CUDA_EMU
    int const edge = 20, n = 20000;
#else
    int const edge = 128, n = 4000000;
#endif
    Case const c = {3, 0, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, 0, 0};
    ugrid_desc d = {};
    for (int a = 0; a < 3; a++) d.max[a] = (real)edge;
    d.dim = 3;
    d.cell = 1;
    d.split = 1;
    std::vector<real> const mixed = mixed_points(d, n, 1);
    Grids g;
    ugrid sorted = {};
    std::vector<real> in_order(mixed.size());
    context = "order";
    CHECK_RESULT(ugrid_build(&sorted, &d, mixed.data(), 0, n), UGRID_OK);
    CHECK_RESULT(ugrid_gather(&sorted, mixed.data(), 3 * sizeof(real), in_order.data()), UGRID_OK);
    ugrid_free(&sorted);
    Device<real> d_mixed(mixed), d_in_order(in_order);
    for (int turn = 0; turn < 6; turn++) {
        bool const ordered = turn / 2 % 2 == 0, was = turn > 0 && (turn - 1) / 2 % 2 == 0;
        context = "order: turn " + std::to_string(turn);
        const std::vector<real> &pos = ordered ? in_order : mixed;
        CHECK_RESULT(ugrid_build(&g.serial, &d, pos.data(), 0, n), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, (ordered ? d_in_order : d_mixed).p, 0, n,
                                      stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_OK);
        CHECK(g.gpu.in_order == was);
        CHECK((std::strstr(g.gpu.device.grid.reason, "in one round") != nullptr) == was);
        CHECK_RESULT(ugrid_cuda_download(&g.copy, &g.gpu, stream), UGRID_OK);
        g.copy.pos = pos.data();
        g.copy.stride = 3 * sizeof(real);
        check_arrays(c, g.serial, g.copy);
    }
    cudaGraph_t graph = nullptr;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_in_order.p, 0, n, stream), UGRID_OK);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphDestroy(graph));
    CHECK(g.gpu.in_order == 0); /* though the last turns were in order */
}
