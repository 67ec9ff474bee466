/* again.cu - a part of test_lbvh.cu: one object with many builds and refits; trees that go to
   the device and back.
   SPDX-License-Identifier: MIT OR Unlicense */

/* One object, rebuilt with more, fewer, and other kinds of elements: no data of the last build is
   left. */
static void test_rebuild()
{
    Trees g;
    wl_random r = wl_seed(77);
    for (int step = 0; step < 1200 / share; step++) {
        Case c = case_of(wl_below(&r, (uint32_t)case_count));
        c.n = (int)wl_below(&r, (uint32_t)(step % 10 == 3 ? size_max : n_max));
        if (step % 13 == 5) c.n = step % 2;
        context = "rebuild, step " + std::to_string(step) + ": " + name_of(c);
        Input const in = input_of(c, step);
        OnDevice const on_device(in);
        if (!build(&g, in, on_device)) continue;
        if (c.n < 200) {
            check_pairs(g, in);
            check_own(g, LBVH_BOXES, 0, (int)wl_below(&r, 8), (int)wl_below(&r, 3));
            check_given(g, LBVH_SPHERES, (int)wl_below(&r, 500), 0, 0, 0, step % 2, step);
        }
        if (step % 50 == 49) lbvh_cuda_free(&g.gpu);
    }
}

/* The same tree around elements that have moved; and again, and back. */
static void test_refit()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (!chosen(k + 2, 6 * share, 600)) continue;
        std::vector<int> const list = sizes();
        c.n = list[scattered(k) % list.size()];
        context = "refit: " + name_of(c);
        Input const in = input_of(c, (int)k);
        OnDevice const on_device(in);
        Trees g;
        if (!build(&g, in, on_device)) continue;
        for (int step = 0; step < 3; step++) {
            Input moved = input_of(c, step == 2 ? (int)k : (int)k + 1000 * (step + 1));
            if (c.form == INDEXED) { /* the vertices move, and the triangles keep their indices */
                for (real &x : moved.data = in.data) x = x / (real)(step + 2) + (real)step;
            }
            Device<real> d_data(moved.data);
            CHECK_RESULT(lbvh_refit(&g.serial, moved.data.data(), moved.stride), LBVH_OK);
            CHECK_RESULT(lbvh_cuda_refit(&g.gpu, d_data.p, moved.stride, stream), LBVH_OK);
            CHECK_RESULT(lbvh_cuda_download(&g.copy, &g.gpu, stream), LBVH_OK);
            check_arrays(g.serial, g.copy);
            check_codes(g.serial, g.copy);
            if (step == 1 && c.n < 200) check_own(g, LBVH_BOXES, 0, (int)(k % 8), 0);
        }
        CHECK_RESULT(lbvh_cuda_check(&g.gpu, stream), LBVH_OK);
    }
}

/* ---- from one side to the other ---- */

/* Trees of all builders, LBVH_PLOC and what rotations make of its trees among them. */
static void test_upload()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (!chosen(k + 3, 12 * share, 600)) continue;
        if (scattered(k + 9) % 2) c.builder = LBVH_PLOC;
        c.n = k % 9 == 0 ? (int)(k / 9 % 3) : search_size(c.shape, k);
        context = "upload: " + name_of(c);
        Input const in = input_of(c, (int)k);
        OnDevice const on_device(in);
        lbvh_desc const host = host_desc(in);
        Trees g;
        CHECK_RESULT(lbvh_build(&g.serial, &host, in.data.data(), in.stride, in.n), LBVH_OK);
        if (c.builder == LBVH_PLOC && c.dim == 3)
            CHECK_RESULT(lbvh_optimize(&g.serial, nullptr), LBVH_OK);
        CHECK_RESULT(lbvh_cuda_upload(&g.gpu, &g.serial, stream), LBVH_OK);
        MUST(cudaStreamSynchronize(stream));
        CHECK(g.gpu.device.tree.n == in.n);
        CHECK_RESULT(lbvh_cuda_check(&g.gpu, stream), LBVH_OK);
        CHECK_RESULT(lbvh_cuda_download(&g.copy, &g.gpu, stream), LBVH_OK);
        check_arrays(g.serial, g.copy);
        check_pairs(g, in);
        check_own(g, LBVH_BOXES, 0, (int)(k % 8), (int)(k % 3));
        check_given(g, LBVH_SPHERES, 300, 0, 0, (int)(k % 3), false, 3);
        check_nearest(g, 40, 8, infinity, 0, false, 4);
        check_walks(g, in, on_device);
        if (c.form == INDEXED) continue; /* its desc has the indices of the host */
        Input const moved = input_of(c, (int)k + 1);
        Device<real> d_data(moved.data);
        CHECK_RESULT(lbvh_refit(&g.serial, moved.data.data(), moved.stride), LBVH_OK);
        CHECK_RESULT(lbvh_cuda_refit(&g.gpu, d_data.p, moved.stride, stream), LBVH_OK);
        CHECK_RESULT(lbvh_cuda_download(&g.copy, &g.gpu, stream), LBVH_OK);
        check_arrays(g.serial, g.copy);
    }
}

/* Built on the GPU, used on the CPU: saved, loaded, refitted there, and sent back. */
static void test_download()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.form == INDEXED || !chosen(k + 4, 20 * share, 600)) continue;
        c.n = search_size(c.shape, k);
        context = "download: " + name_of(c);
        Input const in = input_of(c, (int)k);
        Input moved = input_of(c, (int)k + 1);
        OnDevice const on_device(in);
        Trees g;
        lbvh loaded = {};
        int64_t needed = 0;
        moved.desc.radius = in.desc.radius;
        moved.masks = in.masks;
        if (!build(&g, in, on_device)) continue;
        CHECK(serial_pairs(g.copy) == serial_pairs(g.serial));
        CHECK_RESULT(lbvh_save(&g.copy, nullptr, 0, &needed), LBVH_BUFFER_TOO_SMALL);
        std::vector<unsigned char> bytes((size_t)needed);
        CHECK_RESULT(lbvh_save(&g.copy, bytes.data(), needed, &needed), LBVH_OK);
        CHECK_RESULT(lbvh_load(&loaded, nullptr, bytes.data(), needed), LBVH_OK);
        /* another tree into the same object */
        CHECK_RESULT(lbvh_cuda_upload(&g.gpu, &loaded, stream), LBVH_OK);
        MUST(cudaStreamSynchronize(stream));
        check_pairs(g, in);
        check_given(g, LBVH_BOXES, 300, 0, 0, (int)(k % 3), false, 3);
        CHECK_RESULT(lbvh_refit(&g.copy, moved.data.data(), moved.stride), LBVH_OK);
        CHECK_RESULT(lbvh_refit(&g.serial, moved.data.data(), moved.stride), LBVH_OK);
        check_arrays(g.serial, g.copy);
        CHECK_RESULT(lbvh_cuda_upload(&g.gpu, &g.copy, stream), LBVH_OK);
        MUST(cudaStreamSynchronize(stream));
        check_pairs(g, moved);
        lbvh_free(&loaded);
    }
}
