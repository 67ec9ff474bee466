/* copies.cu - a part of test_nlist.cu: a list goes to the device, back, and is built again on
   either side with the history that came along.
   SPDX-License-Identifier: MIT OR Unlicense */

/* A serial list with something in its history, and now and then with new names. */
static void serial_with_history(Both *b, const Case &c, World *w, uint32_t step)
{
    Input const in = input_at(step_of(c, w, false), w->points, &w->r);
    nlist_desc host = host_desc(in);
    host.grow = 1;
    CHECK_RESULT(build_serial(b, c.source, host, in), NLIST_OK);
    for (int32_t i = 0; i < b->serial.n && c.history; i++) {
        nlist_each e = nlist_of(&b->serial, i);
        while (nlist_next(&e)) stamp_entry(step, c.history, i, e.id, e.history);
    }
    if (step % 2) return;
    std::vector<int32_t> new_id;
    int32_t const n = rename(w, &new_id, 3, 4);
    CHECK_RESULT(nlist_remap(&b->serial, new_id.data(), n), NLIST_OK);
}

/* Up, down again, used there, and built again there with the history that came up. */
static void test_upload()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.shape != UNIFORM || !chosen(k + 3, std::max(2 * share / 3, 1), 50)) continue;
        c.n = std::min(n_max, 80);
        c.masked = c.exclusive = 0;
        context = "upload: " + name_of(c);
        Both b;
        World w = {{}, wl_seed(k), c.dim, 0, true};
        append(&w, c.n);
        for (uint32_t round = 1; round < 4; round++) {
            serial_with_history(&b, c, &w, round);
            CHECK_RESULT(nlist_cuda_upload(&b.gpu, &b.serial, stream), NLIST_OK);
            CHECK(b.gpu.device.list.n == b.serial.n);
            CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
            CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_OK);
            CHECK_RESULT(nlist_validate(&b.copy), NLIST_OK);
            check_arrays(b.serial, b.copy);
            check_rows(b.serial, b.copy, true, true);
            check_seen(&b);
            if (c.half && !c.history) check_sums<3>(&b, (int)round);
            move(&w, 0.2 * radius_of(c));
            Input const in = input_at(step_of(c, &w, false), w.points, &w.r);
            OnDevice const there(in);
            nlist_desc host = host_desc(in), device = device_desc(in, there);
            host.grow = 1;
            CHECK_RESULT(build_serial(&b, c.source, host, in), NLIST_OK);
            fit_exactly(b.serial, &device);
            CHECK_RESULT(build_gpu(&b, c.source, device, in, there), NLIST_OK);
            CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
            compare(&b, c.deterministic != 0, in.ordered);
        }
    }
}
