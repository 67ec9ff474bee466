/* wide.cu - a part of test_lbvh.cu: wide trees: the arrays of a collapse on the device, and every
   search, against the serial ones, which tests/unit/lbvh/test_lbvh_wide.c holds against brute
   force; upload, download, memory, refusals, a CUDA graph.
   SPDX-License-Identifier: MIT OR Unlicense */

struct Wides {
    Trees trees;
    lbvh_cuda_wide gpu = {};
    lbvh_wide serial = {}, copy = {};
    Wides() = default;
    Wides(const Wides &) = delete;
    Wides &operator=(const Wides &) = delete;
    ~Wides()
    {
        lbvh_cuda_wide_free(&gpu);
        lbvh_wide_free(&serial);
        lbvh_wide_free(&copy);
    }
};

static void check_wide_arrays(const lbvh_wide &serial, const lbvh_wide &copy)
{
    CHECK(copy.nodes == serial.nodes && copy.leaves == serial.leaves);
    CHECK(copy.elements == serial.elements && copy.numbers == serial.numbers);
    CHECK(copy.dim == serial.dim);
    if (copy.nodes != serial.nodes || copy.leaves != serial.leaves) return;
    size_t const slots = serial.numbers ? 4 * (size_t)serial.leaves : (size_t)serial.elements;
    CHECK(same_bits(copy.node, serial.node, (size_t)serial.nodes));
    CHECK(same_bits(copy.id, serial.id, slots));
    CHECK(!copy.mask == !serial.mask && (!slots || same_array(copy.mask, serial.mask, slots)));
    CHECK(same_bits(copy.element, serial.element, slots * (size_t)serial.numbers));
}

static bool build_wide(Wides *w, const Input &in, const OnDevice &on_device, int leaf, int copy)
{
    lbvh_wide_desc desc = {};
    desc.leaf = leaf;
    desc.copy = copy;
    if (!build(&w->trees, in, on_device)) return false;
    CHECK_RESULT(lbvh_wide_build(&w->serial, &desc, &w->trees.serial, in.data.data(), in.stride),
        LBVH_OK);
    CHECK_RESULT(lbvh_cuda_wide_build(&w->gpu, &desc, &w->trees.gpu, on_device.data.p, in.stride,
        stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_wide_download(&w->copy, &w->gpu, stream), LBVH_OK);
    check_wide_arrays(w->serial, w->copy);
    return w->copy.nodes == w->serial.nodes;
}

/* ---- searches ---- */

/* Rays from everywhere to everywhere, some along axes, some without direction or not finite; with
   an odd seed from one eye. */
static std::vector<real> rays_of(const lbvh &tree, int m, int seed)
{
    wl_random r = wl_seed((uint64_t)seed + 77);
    int const dim = tree.desc.dim;
    std::vector<real> out;
    double eye[3], from[3], to[3], length;
    spot_of(tree, 1, &r, eye, &length);
    for (int q = 0; q < m; q++) {
        spot_of(tree, 1, &r, from, &length);
        spot_of(tree, 3 * q, &r, to, &length);
        if (seed % 2) std::copy(eye, eye + 3, from);
        for (int a = 0; a < dim; a++) out.push_back(clamped(from[a]));
        for (int a = 0; a < dim; a++) {
            double along = to[a] - from[a];
            if (q % 7 == 1 && a == q % dim) along = 0;
            if (q % 31 == 2) along = 0;
            out.push_back(q % 37 == 3 ? not_a_number : q % 41 == 4 ? infinity : clamped(along));
        }
    }
    return out;
}

static void check_rays(Wides &w, int m, int seed)
{
    std::vector<real> const data = rays_of(w.trees.serial, m, seed);
    std::vector<uint32_t> const filters = filters_of(m);
    std::vector<real> t_ends((size_t)m);
    for (int q = 0; q < m; q++) t_ends[(size_t)q] = q % 9 == 0 ? 0 : q % 9 == 1 ? infinity : q % 3;
    Device<real> d_data(data), d_t_ends(t_ends);
    Device<uint32_t> d_filters(filters);
    for (int kind = 0; kind < 4; kind++) {
        std::vector<lbvh_ray_hit> want((size_t)m);
        std::vector<uint8_t> hit((size_t)m);
        Device<lbvh_ray_hit> d_hits((size_t)m);
        Device<uint8_t> d_hit((size_t)m);
        lbvh_rays rays = {};
        rays.n = m;
        rays.flags = kind == 1 ? LBVH_SORTED : 0;
        rays.t_max = kind == 1 ? (real)0.7 : 0;
        rays.filter = kind == 2 ? 5 : 0;
        lbvh_rays device = rays;
        rays.data = data.data(), device.data = d_data.p;
        if (kind == 3) rays.filters = filters.data(), device.filters = d_filters.p;
        if (kind == 3) rays.t_ends = t_ends.data(), device.t_ends = d_t_ends.p;
        CHECK_RESULT(lbvh_closest_hits(&w.serial, &rays, nullptr, nullptr, want.data()), LBVH_OK);
        CHECK_RESULT(lbvh_any_hits(&w.serial, &rays, nullptr, nullptr, hit.data()), LBVH_OK);
        CHECK_RESULT(lbvh_cuda_closest_hits(&w.gpu, &device, d_hits.p, stream), LBVH_OK);
        CHECK_RESULT(lbvh_cuda_any_hits(&w.gpu, &device, d_hit.p, stream), LBVH_OK);
        std::vector<lbvh_ray_hit> const got = d_hits.get();
        CHECK(same_bits(got, want));
        CHECK(d_hit.get() == hit);
    }
}

static void check_wide_nearest(Wides &w, int m, int k, real reach, int flags, int seed)
{
    size_t const row = (size_t)k;
    std::vector<real> const p = queries_of(w.trees.serial, LBVH_POINTS, m, seed);
    std::vector<int32_t> ids((size_t)m * row, -1), found((size_t)m);
    std::vector<real> distances2((size_t)m * row, infinity);
    Device<real> d_p(p), d_distances2((size_t)m * row);
    Device<int32_t> d_ids((size_t)m * row), d_found((size_t)m);
    for (size_t q = 0; q < (size_t)m; q++)
        CHECK_RESULT(lbvh_wide_nearest(&w.serial, &p[q * (size_t)w.serial.dim], k, reach, nullptr,
            nullptr, ids.data() + q * row, distances2.data() + q * row, &found[q]), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_wide_nearest(&w.gpu, d_p.p, 0, m, k, reach, flags, d_ids.p,
        d_distances2.p, d_found.p, stream), LBVH_OK);
    CHECK(d_found.get() == found && d_ids.get() == ids);
    CHECK(same_bits(d_distances2.get(), distances2));
}

static void check_closest_points(Wides &w, int m, real reach, int flags, int seed)
{
    std::vector<real> const p = queries_of(w.trees.serial, LBVH_POINTS, m, seed);
    std::vector<lbvh_closest> want((size_t)m);
    Device<real> d_p(p);
    Device<lbvh_closest> d_closest((size_t)m);
    CHECK_RESULT(lbvh_closest_points(&w.serial, p.data(), 0, m, reach, want.data()), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_closest_points(&w.gpu, d_p.p, 0, m, reach, flags, d_closest.p, stream),
        LBVH_OK);
    CHECK(same_bits(d_closest.get(), want));
}

static void check_wide_overlaps(Wides &w, int m, uint32_t filter, int flags, int seed)
{
    std::vector<real> const boxes = queries_of(w.trees.serial, LBVH_BOXES, m, seed);
    std::vector<int64_t> offsets((size_t)m + 1);
    std::vector<int32_t> ids;
    for (size_t q = 0; q < (size_t)m; q++) {
        const real *box = &boxes[2 * q * (size_t)w.serial.dim];
        int64_t needed = 0;
        (void)lbvh_wide_overlaps(&w.serial, box, filter, nullptr, 0, &needed);
        ids.resize(ids.size() + (size_t)needed);
        CHECK_RESULT(lbvh_wide_overlaps(&w.serial, box, filter, ids.data() + offsets[q], needed,
            &needed), LBVH_OK);
        offsets[q + 1] = (int64_t)ids.size();
    }
    Device<real> d_boxes(boxes);
    for (size_t room : {ids.size(), ids.size() / 2, (size_t)0}) {
        Device<int64_t> d_offsets((size_t)m + 1);
        Device<int32_t> d_ids(std::vector<int32_t>(ids.size() + 1, -7));
        CHECK_RESULT(lbvh_cuda_wide_overlaps(&w.gpu, d_boxes.p, 0, m, filter, flags, d_offsets.p,
            room ? d_ids.p : nullptr, (int64_t)room, stream), LBVH_OK);
        CHECK(d_offsets.get() == offsets);
        std::vector<int32_t> const got = d_ids.get();
        CHECK(std::equal(ids.begin(), ids.begin() + (ptrdiff_t)room, got.begin()));
        CHECK(std::all_of(got.begin() + (ptrdiff_t)room, got.end(), [](int32_t i) {
            return i == -7; }));
    }
}

static void search_wide(Wides &w, size_t k)
{
    static const int counts[] = {0, 1, 3, 8, 12, 20, 300};
    int const m = 70, flags = k % 2 ? LBVH_SORTED : 0, seed = (int)(k % 5);
    if (w.serial.numbers == 9) check_rays(w, 2 * m, (int)k);
    if (w.serial.numbers == 9)
        check_closest_points(w, m, k % 3 ? infinity : (real)0.5, flags, seed);
    if (w.serial.numbers)
        check_wide_nearest(w, m, counts[scattered(k + 3) % 7], k % 4 ? infinity : (real)0.4, flags,
            seed);
    check_wide_overlaps(w, m, k % 3 == 1 ? 6 : 0, flags, seed);
}

/* All kinds of elements and trees; triangles of 3D, which have most searches, more often. */
static void test_wide()
{
    static const int counts[] = {0, 1, 3, 4, 5, 9, 40, 257, 400};
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        bool const triangles = c.dim == 3 && (c.form == TRIANGLES || c.form == INDEXED);
        c.n = std::min(counts[scattered(k + 1) % 9], n_max);
        if (!chosen(k, std::max((triangles ? 1 : 4) * share / 4, 1), 200)) continue;
        int const leaf = (int)(scattered(k + 5) % 5), copy = triangles || k % 3;
        context = "wide: " + name_of(c) + ", leaf " + std::to_string(leaf) + ", copy " +
            std::to_string(copy);
        Input const in = input_of(c, (int)k);
        OnDevice const on_device(in);
        Wides w;
        if (build_wide(&w, in, on_device, leaf, copy)) search_wide(w, scattered(k));
    }
}

/* More levels than have launches of their own, and elements that are left out. */
static void test_wide_deep()
{
    for (int k = 0; k < 2; k++) {
        Case c = {};
        c.dim = 3;
        c.form = TRIANGLES;
        c.bits = 63;
        c.shape = k ? UNIFORM : DEEP;
        c.n = k ? 60 : 90;
        context = k ? "wide: all left out" : "wide: deep";
        Input in = input_of(c, 5);
        if (k) std::fill(in.data.begin(), in.data.end(), not_a_number);
        OnDevice const on_device(in);
        Wides w;
        if (!build_wide(&w, in, on_device, 1, 1)) continue;
        CHECK(k == 0 || (w.serial.nodes == 0 && w.copy.elements == 0));
        search_wide(w, 1);
        search_wide(w, 10);
    }
}

static Input some_triangles(int n, int seed)
{
    Case c = {};
    c.dim = 3;
    c.form = TRIANGLES;
    c.bits = 63;
    c.masked = seed % 2;
    c.n = n;
    return input_of(c, seed);
}

/* Their heights are 1e-1 to 1e-8 of their edges. */
static void test_wide_slivers()
{
    context = "wide: slivers";
    Input in = some_triangles(300, 2);
    for (int i = 0; i < in.n; i++) {
        real *const v = &in.data[9 * (size_t)i];
        real const height = (real)std::pow(10.0, -1 - i % 8), at = i % 3 ? (real)0.4 : height;
        for (int a = 0; a < 3; a++)
            v[6 + a] = v[a] + at * (v[3 + a] - v[a]) + height * (v[6 + a] - v[a]);
        if (i % 2) std::swap_ranges(v, v + 3, v + 6);
    }
    OnDevice const on_device(in);
    Wides w;
    if (!build_wide(&w, in, on_device, 4, 1)) return;
    for (int seed = 0; seed < 3; seed++) check_closest_points(w, 130, infinity, 0, seed);
    check_wide_nearest(w, 130, 8, infinity, 0, 3);
}

/* Directions that are very long or short, and nearly parallel to axes; origins far away. Brute
   force over all triangles is the oracle. More rays than threads, in the emulator. */
static void test_wide_far()
{
    int const n = 300, m = 1500;
    real const unit = sizeof(real) == 4 ? (real)1e-30 : (real)1e-290,
               scales[] = {1, unit, 1 / unit, (real)1e-9, (real)3e10};
    Input in = some_triangles(n, 12);
    size_t const stride = in.stride ? in.stride : 9 * sizeof(real);
    wl_random r = wl_seed(5);
    for (size_t i = 0; i < (size_t)n; i++) {
        real *const corners = &in.data[i * stride / sizeof(real)];
        real const size = (real)(0.3 * exp(-3 * wl_u(&r)));
        double centre[3];
        for (double &x : centre) x = wl_u(&r);
        for (int k = 0; k < 9; k++)
            corners[k] = (real)(centre[k % 3] + size * (wl_u(&r) - 0.5));
    }
    OnDevice const on_device(in);
    Wides w;
    context = "wide far";
    if (!build_wide(&w, in, on_device, 0, 1)) return;
    std::vector<real> data(6 * (size_t)m);
    for (int q = 0; q < m; q++) {
        real *const from = &data[6 * (size_t)q], *const along = from + 3;
        for (int a = 0; a < 3; a++) {
            from[a] = 2 * (real)wl_u(&r) - (real)0.5;
            along[a] = (real)wl_u(&r) - from[a];
            if (q % 3 == 1) from[a] -= 1000 * along[a];
            if (q % 4 == 1 && a == q / 4 % 3) along[a] *= unit;
            if (q % 4 == 3 && a == q / 4 % 3) along[a] *= (real)1e-8;
            if (q % 7 == 2 && a == q / 7 % 3) along[a] = 0;
            along[a] *= scales[q % 5];
        }
    }
    std::vector<lbvh_ray_hit> want((size_t)m);
    std::vector<real> t_ends((size_t)m, infinity);
    int hits = 0;
    for (int q = 0; q < m; q++) {
        const real *const ray = &data[6 * (size_t)q];
        lbvh_ray_hit best;
        memset(&best, 0, sizeof best); /* with its padding */
        best.id = -1;
        for (int i = 0; i < n; i++) {
            const real *corner[3];
            lbvh_ray_hit hit = best;
            hit.id = i;
            if (!lbvh_triangle(&in.desc, in.data.data(), stride, i, corner) ||
                !lbvh_ray_triangle(ray, ray + 3, corner[0], corner[1], corner[2], &hit.t, &hit.u,
                    &hit.v))
                continue;
            if (hit.t < 0 || (best.id >= 0 && hit.t >= best.t)) continue;
            best.t = hit.t, best.u = hit.u, best.v = hit.v, best.id = i;
        }
        memcpy(&want[(size_t)q], &best, sizeof best);
        if (best.id >= 0 && q % 2) t_ends[(size_t)q] = best.t; /* just as far as the hit */
        hits += best.id >= 0;
    }
    CHECK(hits > m / 20);
    Device<real> d_data(data), d_t_ends(t_ends);
    Device<lbvh_ray_hit> d_hits((size_t)m);
    lbvh_rays rays = {};
    rays.n = m;
    rays.data = d_data.p;
    rays.t_ends = d_t_ends.p;
    CHECK_RESULT(lbvh_cuda_closest_hits(&w.gpu, &rays, d_hits.p, stream), LBVH_OK);
    CHECK(same_bits(d_hits.get(), want));
}

/* A tree of another size in the same memory; up, and down again. */
static void test_wide_copies()
{
    Wides w;
    for (int n : {100, 300, 0, 7, 200}) {
        context = "wide copies: n " + std::to_string(n);
        Input const in = some_triangles(n, n);
        OnDevice const on_device(in);
        if (!build_wide(&w, in, on_device, 0, 1)) continue;
        CHECK_RESULT(lbvh_cuda_wide_upload(&w.gpu, &w.serial, stream), LBVH_OK);
        CHECK_RESULT(lbvh_cuda_wide_download(&w.copy, &w.gpu, stream), LBVH_OK);
        check_wide_arrays(w.serial, w.copy);
        search_wide(w, 1);
    }
}

/* After a reserve a collapse and searches can be captured, and take no memory. */
static void test_wide_graph()
{
    context = "wide graph";
    int32_t const n = 200, m = 64;
    Input const in = some_triangles(n, 3);
    OnDevice const on_device(in);
    lbvh_desc const desc = device_desc(in, on_device);
    lbvh_wide_desc wide = {};
    wide.copy = 1;
    Wides w;
    if (!build(&w.trees, in, on_device)) return;
    CHECK_RESULT(lbvh_wide_build(&w.serial, &wide, &w.trees.serial, in.data.data(), in.stride),
        LBVH_OK);
    CHECK_RESULT(lbvh_cuda_wide_reserve(&w.gpu, &wide, &desc, n, m, stream), LBVH_OK);
    std::vector<real> const data = rays_of(w.trees.serial, m, 1);
    std::vector<lbvh_ray_hit> want((size_t)m);
    Device<real> d_data(data);
    Device<lbvh_ray_hit> d_hits((size_t)m);
    lbvh_rays rays = {};
    rays.n = m;
    rays.data = data.data();
    CHECK_RESULT(lbvh_closest_hits(&w.serial, &rays, nullptr, nullptr, want.data()), LBVH_OK);
    rays.data = d_data.p;
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK_RESULT(lbvh_cuda_wide_build(&w.gpu, &wide, &w.trees.gpu, on_device.data.p, in.stride,
        stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_closest_hits(&w.gpu, &rays, d_hits.p, stream), LBVH_OK);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&replay, graph, 0));
    for (int turn = 0; turn < 2; turn++) {
        d_hits.forget();
        MUST(cudaGraphLaunch(replay, stream));
        CHECK(same_bits(d_hits.get(), want));
    }
    CHECK_RESULT(lbvh_cuda_wide_download(&w.copy, &w.gpu, stream), LBVH_OK);
    check_wide_arrays(w.serial, w.copy);
    MUST(cudaGraphExecDestroy(replay));
    MUST(cudaGraphDestroy(graph));
}

static void test_wide_refusals()
{
    context = "wide refusals";
    Input const in = some_triangles(20, 2);
    OnDevice const on_device(in);
    Device<real> d_real(64);
    Device<int32_t> d_int(64);
    Device<int64_t> d_long(8);
    Device<lbvh_ray_hit> d_hits(4);
    Device<lbvh_closest> d_closest(4);
    lbvh_rays rays = {};
    lbvh_wide_desc desc = {};
    Wides w;
    rays.data = d_real.p;
    rays.n = 2;
    CHECK_RESULT(lbvh_cuda_closest_hits(&w.gpu, &rays, d_hits.p, stream), LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_cuda_closest_points(&w.gpu, d_real.p, 0, 2, 1, 0, d_closest.p, stream),
        LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_cuda_wide_download(&w.copy, &w.gpu, stream), LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_cuda_wide_upload(&w.gpu, &w.serial, stream), LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_cuda_wide_build(&w.gpu, &desc, &w.trees.gpu, on_device.data.p, 0, stream),
        LBVH_NOT_BUILT);
    if (!build_wide(&w, in, on_device, 0, 0)) return;
    CHECK_RESULT(lbvh_cuda_closest_hits(&w.gpu, &rays, d_hits.p, stream), LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_cuda_wide_nearest(&w.gpu, d_real.p, 0, 2, 2, 1, 0, d_int.p, d_real.p,
        d_int.p, stream), LBVH_NOT_BUILT);
    desc.leaf = 5;
    CHECK_RESULT(lbvh_cuda_wide_build(&w.gpu, &desc, &w.trees.gpu, on_device.data.p, 0, stream),
        LBVH_BAD_OPTION);
    CHECK_RESULT(lbvh_cuda_wide_download(&w.copy, &w.gpu, stream), LBVH_NOT_BUILT);
    desc.leaf = 4;
    desc.copy = 1;
    CHECK_RESULT(lbvh_cuda_wide_build(&w.gpu, &desc, &w.trees.gpu, nullptr, 0, stream),
        LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_wide_build(&w.gpu, &desc, nullptr, on_device.data.p, 0, stream),
        LBVH_BAD_ARGUMENT);
    if (!build_wide(&w, in, on_device, 0, 1)) return;
    CHECK_RESULT(lbvh_cuda_closest_hits(&w.gpu, nullptr, d_hits.p, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_closest_hits(&w.gpu, &rays, nullptr, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_any_hits(nullptr, &rays, nullptr, stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_closest_points(&w.gpu, d_real.p, 0, 2, -1, 0, d_closest.p, stream),
        LBVH_BAD_RADIUS);
    CHECK_RESULT(lbvh_cuda_closest_points(&w.gpu, d_real.p, 2, 2, 1, 0, d_closest.p, stream),
        LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_closest_points(&w.gpu, d_real.p, 0, 2, 1, 64, d_closest.p, stream),
        LBVH_BAD_OPTION);
    CHECK_RESULT(lbvh_cuda_wide_overlaps(&w.gpu, d_real.p, 0, 2, 0, 0, nullptr, nullptr, 0, stream),
        LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_wide_overlaps(&w.gpu, d_real.p, 0, -1, 0, 0, d_long.p, nullptr, 0,
        stream), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_cuda_wide_reserve(nullptr, nullptr, nullptr, 1, 1, stream),
        LBVH_BAD_ARGUMENT);
    lbvh_cuda_wide_free(nullptr);
}
