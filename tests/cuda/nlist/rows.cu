/* rows.cu - a part of test_nlist.cu: desc.rows. Locals have rows, ghosts are partners only: all
   arrays against the serial list (that is held against brute force in
   tests/unit/nlist/test_nlist_rows.c); history and events while locals become ghosts and back.
   SPDX-License-Identifier: MIT OR Unlicense */

/* None, one, all, or any number of rows. */
static int32_t asked_rows(size_t k, int n)
{
    uint32_t const s = scattered(k + 1234);
    return s % 6 == 0 ? NLIST_NO_ROWS : s % 6 == 1 ? 1 : s % 6 == 2 ? n
                                                   : 1 + (int32_t)(s / 6 % (uint32_t)n);
}

/* All cases; every list is built twice, with other rows the second time. */
static void test_rows()
{
    for (size_t k = 0; k < case_count; k++) {
        if (!chosen(k + 3, 4 * share, 150)) continue;
        Case c = case_of(k);
        c.n = size_of(c.shape, k);
        context = "rows: " + name_of(c);
        Input in = input_of(c, (int)k);
        OnDevice const on_device(in);
        Both b;
        for (size_t turn = 0; turn < 2; turn++) {
            in.desc.rows = asked_rows(2 * k + turn, c.n);
            context = "rows " + std::to_string(in.desc.rows) + ": " + name_of(c);
            build(&b, c, in, on_device);
            int32_t const rows = in.desc.rows < 0 ? 0 : in.desc.rows;
            CHECK(b.serial.row_count == rows && b.gpu.device.list.row_count == rows);
            for (int32_t i = 0; i < rows && c.half; i++) /* the pair is in the row of the local */
                for (const Entry &e : row_of(b.copy, i, false)) CHECK(i < e.id);
        }
    }
}

/* New ids and another number of rows, on both sides. */
static void remap_rows(Both *b, World *w, int32_t rows)
{
    std::vector<int32_t> new_id;
    int32_t const n = rename(w, &new_id, (int)wl_below(&w->r, 4), (int)wl_below(&w->r, 4));
    Device<int32_t> d_new_id(new_id);
    if (rows > n) rows = n;
    CHECK_RESULT(nlist_remap_rows(&b->serial, new_id.data(), n, rows), NLIST_OK);
    CHECK_RESULT(nlist_cuda_remap_rows(&b->gpu, d_new_id.p, n, rows, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&b->gpu, stream), NLIST_OK);
    CHECK(b->gpu.device.list.row_count == rows && b->gpu.device.list.n == n);
    CHECK_RESULT(nlist_cuda_download(&b->copy, &b->gpu, stream), NLIST_OK);
    CHECK_RESULT(nlist_validate(&b->copy), NLIST_OK);
    check_rows(b->serial, b->copy, w->ordered, false);
    if (rows_of(b->serial).uid)
        CHECK(same_bits(rows_of(b->serial).uid, rows_of(b->copy).uid, (size_t)n));
}

/* Particles move, come, go and are renumbered, locals become ghosts. */
static void test_rows_history()
{
    for (size_t k = 0; k < 32; k++) {
        Case c = case_of(scattered(k + 40) % case_count);
        World w = {{}, wl_seed(k), c.dim, 0, true};
        if (!chosen(k, share > 4 ? 4 : 1, 8)) continue;
        Both b;
        c.layout = (nlist_layout)(k % 4);
        c.half = (int)(k / 4 % 2);
        c.source = (Source)(k / 8 % SOURCES);
        c.shape = UNIFORM;
        c.history = 8, c.events = 1, c.masked = c.exclusive = 0;
        c.n = std::min(n_max, 60);
        append(&w, c.n);
        int32_t rows = c.n / 2;
        for (uint32_t step = 1; step < 7; step++) {
            context = "rows, history " + std::to_string(k) + ", step " + std::to_string(step) +
                      ": " + name_of(c);
            c.n = w.n;
            Input in = input_at(c, w.points, &w.r);
            in.desc.rows = rows == 0 ? NLIST_NO_ROWS : rows;
            OnDevice const on_device(in);
            w.ordered = in.ordered;
            build(&b, c, in, on_device);
            check_witnesses(&b);
            stamp_all(&b, nullptr, (uint32_t)k * 100 + step);
            move(&w, 0.25 * radius_of(c));
            if (step % 3 == 1) remap_rows(&b, &w, (int32_t)wl_below(&w.r, (uint32_t)w.n + 1));
            else if (step % 3 == 2) remap_rows(&b, &w, rows);
            rows = b.serial.row_count;
        }
    }
}

/* After a reserve with these rows a build allocates nothing; a list with ghosts is uploaded, and
   the next build carries its history. */
static void test_rows_reserved()
{
    for (size_t k = 0; k < 8; k++) {
        Case c = {};
        Heap h = {};
        Both b;
        c.layout = (nlist_layout)(k % 4);
        c.half = (int)(k / 4);
        c.source = k % 2 ? GRID : BRUTE;
        c.dim = 3, c.history = 4, c.skin = 1, c.width = 32, c.deterministic = 1;
        c.n = std::min(n_max, 90);
        context = "rows reserved: " + name_of(c);
        Input in = input_of(c, (int)k);
        in.desc.rows = c.n / 3;
        in.desc.capacity = 64 * c.n;
        OnDevice const on_device(in);
        nlist_desc host = host_desc(in), device = device_desc(in, on_device);
        device.cuda_allocator = allocator_of(&h);
        CHECK_RESULT(nlist_cuda_reserve(&b.gpu, &device, c.n, 0, stream), NLIST_OK);
        long const calls = h.calls;
        CHECK_RESULT(build_serial(&b, c.source, host, in), NLIST_OK);
        CHECK_RESULT(build_gpu(&b, c.source, device, in, on_device), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        CHECK(h.calls == calls);
        compare(&b, true, true);
        stamp_all(&b, nullptr, 1);
        CHECK_RESULT(nlist_cuda_upload(&b.gpu, &b.serial, stream), NLIST_OK);
        compare(&b, true, true);
        CHECK_RESULT(build_serial(&b, c.source, host, in), NLIST_OK);
        CHECK_RESULT(build_gpu(&b, c.source, device, in, on_device), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        compare(&b, true, true);
        CHECK(b.serial.total > 0);
        CHECK_RESULT(nlist_cuda_moved(&b.gpu, on_device.pos.p, in.stride, stream), NLIST_OK);
        nlist_cuda_facts facts;
        MUST(cudaMemcpyAsync(&facts, b.gpu.d_facts, sizeof facts, cudaMemcpyDeviceToHost, stream));
        MUST(cudaStreamSynchronize(stream));
        CHECK(facts.moved == 0);
        nlist_cuda_free(&b.gpu);
        CHECK(h.live == 0);
    }
}

static void test_rows_refused()
{
    real const at[] = {0, 0, 0, (real)0.1, 0, 0, (real)0.2, 0, 0};
    int32_t const same[] = {0, 1, 2}, pair[] = {0, 1, 2, 1};
    Device<real> pos(std::vector<real>(at, at + 9));
    Device<int32_t> ids(std::vector<int32_t>(same, same + 3)),
        pairs(std::vector<int32_t>(pair, pair + 4));
    nlist_cuda gpu = {};
    nlist_desc d = {};
    context = "rows refused";
    d.radius = (real)0.15;
    for (int32_t rows : {4, -2}) {
        d.rows = rows;
        CHECK_RESULT(nlist_cuda_build_brute(&gpu, &d, pos.p, 0, 3, stream), NLIST_BAD_ROWS);
        CHECK_RESULT(nlist_cuda_build_pairs(&gpu, &d, pairs.p, 2, 3, stream), NLIST_BAD_ROWS);
        CHECK_RESULT(nlist_cuda_reserve(&gpu, &d, 3, 0, stream), NLIST_BAD_ROWS);
    }
    d.rows = 2;
    CHECK_RESULT(nlist_cuda_build_brute(&gpu, &d, pos.p, 0, 3, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_OK);
    CHECK(gpu.device.list.total == 3 && gpu.device.list.row_count == 2);
    CHECK_RESULT(nlist_cuda_remap_rows(&gpu, ids.p, 3, 4, stream), NLIST_BAD_ROWS);
    CHECK_RESULT(nlist_cuda_remap_rows(&gpu, ids.p, 3, -1, stream), NLIST_BAD_ROWS);
    CHECK_RESULT(nlist_cuda_remap(&gpu, ids.p, 3, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_OK);
    CHECK(gpu.device.list.total == 3 && gpu.device.list.row_count == 2);
    CHECK_RESULT(nlist_cuda_build_pairs(&gpu, &d, pairs.p, 2, 3, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_OK);
    CHECK(gpu.device.list.total == 3 && gpu.device.list.row_count == 2);
    nlist_cuda_free(&gpu);
}
