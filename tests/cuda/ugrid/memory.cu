/* memory.cu - a part of test_ugrid.cu: allocations on the device. One that fails leaves an
   empty, usable grid; arrays grow by a factor; after a reserve nothing is allocated.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Device memory that is counted, and fails on demand. */

/* All searches once; returns the first result that is not UGRID_OK. */
static ugrid_result search_all(ugrid_cuda *gpu, real radius, const Device<real> &d_pos, int32_t n,
    Device<int64_t> *offsets, Device<int32_t> *ids)
{
    Device<int64_t> d_pairs(1);
    ugrid_result r = ugrid_cuda_count_pairs(gpu, radius, d_pairs.p, stream);
    if (r == UGRID_OK) r = ugrid_cuda_count_neighbors(gpu, radius, 0, ids->p, stream);
    if (r == UGRID_OK)
        r = ugrid_cuda_neighbors(gpu, radius, 0, offsets->p, ids->p, (int64_t)ids->count, stream);
    if (r == UGRID_OK)
        r = ugrid_cuda_neighbors_at(gpu, d_pos.p, 0, n, radius, offsets->p, ids->p,
            (int64_t)ids->count, stream);
    d_pairs.get();
    return r;
}

/* After a reserve, builds and searches of up to n particles allocate nothing. */
static void test_reserve()
{
    std::vector<Case> const cases = all_cases();
    for (size_t k = 0; k < cases.size(); k++) {
        if (!chosen(k, share)) continue;
        Case const &c = cases[k];
        if (c.walk == UGRID_MODULAR || c.walk == UGRID_HYBRID) continue;
        Heap h = {};
        ugrid_cuda gpu = {};
        int const n = std::min(n_max / 4, 500);
        ugrid_desc d = desc_of(c);
        std::vector<real> const pos = mixed_points(d, n, 6);
        Device<real> d_pos(pos);
        Device<int64_t> offsets((size_t)n + 1);
        Device<int32_t> ids((size_t)n * 20);
        context = "reserve: " + name_of(c);
        d.slots = 100;
        d.cuda_allocator = allocator_of(&h);
        CHECK_RESULT(ugrid_cuda_reserve(&gpu, &d, n, stream), UGRID_OK);
        long const calls = h.calls;
        CHECK(calls > 0 && gpu.device.grid.n == 0);
        for (int m : {n, 0, 1, n / 3, n}) {
            CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, m, stream), UGRID_OK);
            CHECK_RESULT(search_all(&gpu, d.cell, d_pos, m, &offsets, &ids), UGRID_OK);
            CHECK(h.calls == calls);
        }
        ugrid_cuda_free(&gpu);
        CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
    }
}

/* Each allocation fails once: the result is its code, the grid is empty, and the next build
   works. */
static void test_out_of_memory()
{
    std::vector<Case> const cases = all_cases();
    for (size_t k = 0; k < cases.size(); k++) {
        Case const &c = cases[k];
        if (c.walk != UGRID_CELLS || (c.bounds != 1 && c.bounds != UNBOUNDED) || !chosen(k, share))
            continue;
        int const n = 60;
        ugrid_desc d = desc_of(c);
        std::vector<real> const pos = mixed_points(d, n, 6);
        Device<real> d_pos(pos);
        Device<int64_t> offsets((size_t)n + 1);
        Device<int32_t> ids((size_t)n * n);
        context = "out of memory: " + name_of(c);
        d.slots = 200;
        long calls = 1;
        for (long fail = 0; fail <= calls; fail++) {
            Heap h = {};
            ugrid_cuda gpu = {};
            d.cuda_allocator = allocator_of(&h);
            h.fail_at = fail;
            ugrid_result r = ugrid_cuda_build(&gpu, &d, d_pos.p, 0, n, stream);
            if (fail == 0) CHECK_RESULT(r, UGRID_OK);
            if (r != UGRID_OK) {
                CHECK_RESULT(r, UGRID_OUT_OF_MEMORY);
                CHECK(gpu.device.grid.n == 0);
                CHECK_RESULT(search_all(&gpu, d.cell, d_pos, 0, &offsets, &ids), UGRID_NOT_BUILT);
                CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
            }
            r = search_all(&gpu, d.cell, d_pos, n, &offsets, &ids);
            if (r != UGRID_OK) {
                CHECK_RESULT(r, UGRID_OUT_OF_MEMORY);
                CHECK_RESULT(search_all(&gpu, d.cell, d_pos, n, &offsets, &ids), UGRID_OK);
            }
            CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_OK);
            if (fail == 0) calls = h.calls;
            else CHECK(h.calls >= fail && "the failure was met");
            ugrid_cuda_free(&gpu);
            CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
        }
        CHECK(calls > 1);
    }
}

/* Bytes of every block that a grid holds. */
static std::vector<size_t> block_bytes(const ugrid_cuda &gpu)
{
    std::vector<size_t> bytes;
    for (const ugrid_block &b : gpu.block) bytes.push_back(b.bytes);
    for (const ugrid_block &b : gpu.scratch) bytes.push_back(b.bytes);
    return bytes;
}

/* Of one that was reserved and nothing else. */
static std::vector<size_t> reserved_bytes(const ugrid_desc &d, int n)
{
    ugrid_cuda gpu = {};
    CHECK_RESULT(ugrid_cuda_reserve(&gpu, &d, n, stream), UGRID_OK);
    std::vector<size_t> const bytes = block_bytes(gpu);
    ugrid_cuda_free(&gpu);
    return bytes;
}

/* Builds up to n, with searches, each with a few particles more, and query points beyond these:
   every array, work space included, grows O(log n) times, and a reserve takes what it needs. */
static void check_growth(const Case &c, int n, const Device<real> &d_pos)
{
    Heap h = {};
    ugrid_cuda gpu = {};
    ugrid_desc d = desc_of(c);
    long growths = 2, held = 0;
    for (double size = 1; size < 2 * n; size *= 1.5) growths++;
    Device<int64_t> offsets(2 * (size_t)n + 1);
    Device<int32_t> ids(100);
    context = "growth: " + name_of(c);
    d.slots = 8;
    d.cuda_allocator = allocator_of(&h);
    for (int m = 1; m <= n; m = next_size(m, n)) {
        CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, m, stream), UGRID_OK);
        if (m % 8 || c.deterministic) continue; /* that is nothing to a search */
        CHECK_RESULT(ugrid_cuda_neighbors(&gpu, d.cell, 0, offsets.p, ids.p, 100, stream),
            UGRID_OK);
        CHECK_RESULT(ugrid_cuda_neighbors_at(&gpu, d_pos.p, 0, 2 * m, d.cell, offsets.p, ids.p, 100,
            stream), UGRID_OK);
    }
    std::vector<size_t> const grown = block_bytes(gpu);
    for (size_t bytes : grown) held += bytes > 0;
    CHECK(h.calls <= held * growths);
    ugrid_desc plain = d;
    plain.cuda_allocator = {nullptr, nullptr, nullptr};
    std::vector<size_t> const enough = reserved_bytes(plain, 2 * n),
        more = reserved_bytes(plain, 8 * n);
    CHECK_RESULT(ugrid_cuda_reserve(&gpu, &d, 8 * n, stream), UGRID_OK);
    std::vector<size_t> const reserved = block_bytes(gpu);
    for (size_t b = 0; b < grown.size(); b++) {
        CHECK(grown[b] <= enough[b] + enough[b] / 2);
        CHECK(reserved[b] == std::max(grown[b], more[b]));
    }
    ugrid_cuda_free(&gpu);
    CHECK(h.live == 0 && h.live_bytes == 0);
}

/* Every method, placement and work space; the smallest share of the emulated tests makes fewer
   builds. */
static void test_growth()
{
    int const n = share > 20 ? 96 : 240;
    std::vector<real> const pos =
        mixed_points(desc_of({3, 0, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS,
        0, 0}), 2 * n, 6);
    Device<real> d_pos(pos);
    for (int method = UGRID_COUNT; method <= UGRID_LIST_PACKED; method++)
        for (int tight = 0; tight < 2; tight++)
            for (int deterministic = 0; deterministic < 2; deterministic++) {
                Case const c = {3, tight ? 0 : UNBOUNDED, (ugrid_method)method,
                    UGRID_SLOTS_BY_COLUMN, (real)tight, UGRID_CELLS, UGRID_ROWS, 0, deterministic};
                if (sensible(c)) check_growth(c, n, d_pos);
            }
    check_growth({3, 0, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_STRIPS, UGRID_ROWS, 0, 0}, n,
        d_pos);
}

/* Where half as much again cannot be had, what is needed will do. */
static void test_growth_short_of_memory()
{
    ugrid_desc d = desc_of({3, 0, UGRID_LIST, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS, 0,
        0});
    Device<real> d_pos(mixed_points(d, 101, 6));
    Heap h = {};
    ugrid_cuda gpu = {};
    context = "growth, short of memory";
    d.cuda_allocator = allocator_of(&h);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 100, stream), UGRID_OK);
    h.fail_at = h.calls + 1;
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 101, stream), UGRID_OK);
    CHECK(h.failed == 1 && gpu.block[UGRID_I_NEXT].bytes == 101 * sizeof(int32_t));
    CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_OK);
    ugrid_cuda_free(&gpu);
    CHECK(h.live == 0);
}
