/* bad_input.cu - a part of test_nlist.cu: particles that are not finite, pairs and names out of
   range, radii too large for the box: left out, and the first is reported.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Particles with NaN are in no row, and the first of them is reported; the others are as if it were
   not there. */
static void test_not_finite()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if ((c.shape != UNIFORM && c.shape != OUTSIDE) || c.source == PAIRS ||
            !chosen(k + 4, 2 * share, 100))
            continue;
        c.n = std::min(n_max, 150);
        c.masked = 1;
        context = "not finite: " + name_of(c);
        Input in = input_of(c, (int)k);
        int const first = (int)(k % 20), every = 1 + (int)(k / 4 % 40);
        Input bad = in;
        size_t const step = in.stride ? in.stride / sizeof(real) : (size_t)in.dim;
        size_t const row = in.elements.size() / (size_t)std::max(c.n, 1);
        for (int i = first; i < c.n; i += every) {
            size_t const a = (size_t)(i % c.dim);
            real const x = i % 3 == 0 ? infinity : i % 3 == 1 ? -infinity : not_a_number;
            bool const radius = c.radii && i % 5 == 2;
            in.masks[(size_t)i] = 0; /* in the serial list it is there, without neighbours */
            if (radius) bad.radii[(size_t)i] = not_a_number;
            else bad.pos[(size_t)i * step + a] = x;
            if (!radius && c.source == TREE) bad.elements[(size_t)i * row + a] = x;
        }
        OnDevice const there(bad);
        Both b;
        nlist_desc host = host_desc(in), device = device_desc(bad, there);
        host.grow = 1;
        CHECK_RESULT(build_serial(&b, c.source, host, in), NLIST_OK);
        fit_exactly(b.serial, &device);
        CHECK_RESULT(build_gpu(&b, c.source, device, bad, there), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), first < c.n ? NLIST_NOT_FINITE : NLIST_OK);
        CHECK(b.gpu.device.list.bad_id == (first < c.n ? first : -1));
        CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_OK);
        CHECK_RESULT(nlist_validate(&b.copy), NLIST_OK);
        check_rows(b.serial, b.copy, in.ordered, false);
        build(&b, c, input_of(c, (int)k), OnDevice(input_of(c, (int)k))); /* and without them */
    }
}

/* Pairs with ids out of range are left out, and the first is reported. */
static void test_bad_pairs()
{
    for (int k = 0; k < 16; k++) {
        Case c = {};
        c.source = PAIRS;
        c.layout = (nlist_layout)(k % 4);
        c.half = k / 4 % 2;
        c.deterministic = k / 8;
        c.dim = 3;
        c.n = 80;
        c.variant = 1;
        context = "bad pairs: " + name_of(c);
        Input const in = input_of(c, k);
        Input bad = in;
        size_t const first = 5 + (size_t)k;
        for (size_t p = first; 2 * p < bad.pairs.size(); p += 9) {
            int32_t const wrong[] = {-1, c.n, INT32_MAX, INT32_MIN};
            int32_t const pair[2] = {p % 2 ? wrong[p % 4] : 3, p % 2 ? 3 : wrong[p % 4]};
            bad.pairs.insert(bad.pairs.begin() + 2 * (ptrdiff_t)p, pair, pair + 2);
        }
        OnDevice const there(bad);
        Both b;
        nlist_desc host = host_desc(in), device = device_desc(bad, there);
        host.grow = 1;
        CHECK_RESULT(build_serial(&b, PAIRS, host, in), NLIST_OK);
        fit_exactly(b.serial, &device);
        CHECK_RESULT(build_gpu(&b, PAIRS, device, bad, there), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_BAD_INDEX);
        CHECK(b.gpu.device.list.bad_id == (int32_t)first);
        CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_OK);
        check_rows(b.serial, b.copy, true, false);
    }
    int32_t const some[] = {0, 1, 1, 0};
    Device<int32_t> pairs(std::vector<int32_t>(some, some + 4));
    Both b;
    nlist_desc const d = {};
    context = "bad pairs: no particles";
    CHECK_RESULT(nlist_build_pairs(&b.serial, &d, some, 2, 0), NLIST_BAD_INDEX);
    CHECK_RESULT(nlist_cuda_build_pairs(&b.gpu, &d, pairs.p, 2, 0, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_BAD_INDEX);
    CHECK(b.serial.bad_id == 0 && b.gpu.device.list.bad_id == 0);
}

/* Names out of range or given twice: those particles are removed, and the first is reported. */
static void test_bad_names()
{
    for (int k = 0; k < 8; k++) {
        Case c = {};
        c.layout = (nlist_layout)(k % 4);
        c.half = k / 4;
        c.dim = 3;
        c.history = 8;
        c.n = 80;
        c.variant = 1;
        context = "bad names: " + name_of(c);
        Input const in = input_of(c, k);
        OnDevice const there(in);
        Both b;
        std::vector<int32_t> names;
        int32_t const bad[] = {c.n, -2, INT32_MAX, INT32_MIN};
        if (!build(&b, c, in, there)) continue;
        for (int32_t i = 0; i < c.n; i++) names.push_back(c.n - 1 - i);
        names[20] = bad[k % 4];
        names[33] = bad[(k + 1) % 4];
        Device<int32_t> d_names(names);
        CHECK_RESULT(nlist_remap(&b.serial, names.data(), c.n), NLIST_BAD_INDEX);
        CHECK(b.serial.bad_id == 20);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, c.n, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_BAD_INDEX);
        CHECK(b.gpu.device.list.bad_id == 20);
        names[20] = names[33] = -1;
        CHECK_RESULT(nlist_remap(&b.serial, names.data(), c.n), NLIST_OK);
        CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_OK);
        CHECK_RESULT(nlist_validate(&b.copy), NLIST_OK);
        check_rows(b.serial, b.copy, true, false);
        names.assign((size_t)c.n, 0);
        for (int32_t i = 0; i < c.n; i++) names[(size_t)i] = i;
        names[50] = 40; /* twice */
        d_names.set(names);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, c.n, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_BAD_INDEX);
        CHECK(b.gpu.device.list.bad_id == 50 || b.gpu.device.list.bad_id == 40);
        CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_OK);
        CHECK_RESULT(nlist_validate(&b.copy), NLIST_OK);
    }
}

/* Radii in device memory, too large for the box: reported by nlist_cuda_check. */
static void test_bad_period()
{
    for (int source = BRUTE; source <= TREE; source++) {
        Case c = {};
        c.source = (Source)source;
        c.dim = 3;
        c.periodic = 2;
        c.radii = 1;
        c.n = 40;
        c.variant = 0;
        context = "bad period: " + name_of(c);
        Input in = input_of(c, 1);
        in.radii[17] = (real)0.4;
        OnDevice const there(in);
        Both b;
        nlist_desc device = device_desc(in, there);
        CHECK_RESULT(build_serial(&b, c.source, host_desc(in), in), NLIST_BAD_PERIOD);
        CHECK_RESULT(build_gpu(&b, c.source, device, in, there), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_BAD_PERIOD);
        build(&b, c, input_of(c, 1), OnDevice(input_of(c, 1)));
    }
}
