/* builds.cu - a part of test_lbvh.cu: all cases, through builds, searches and nearest elements;
   the smallest trees; the deepest one.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Numbers of elements around everything that a kernel might do 32, 256 or 512 of at a time. */
static std::vector<int> sizes()
{
    static const int all[] = {0, 1, 2, 3, 31, 32, 33, 127, 255, 256, 257, 511, 512, 513, 767, 1000,
        1024, 1025, 2049, 4097};
    std::vector<int> list;
    for (int n : all) if (n <= size_max) list.push_back(n);
    list.push_back(std::min(n_max, size_max));
    return list;
}

static void test_build()
{
    std::vector<int> const list = sizes();
    for (size_t k = 0; k < case_count * list.size(); k++) {
        if (!chosen(k, 10 * share, 1500)) continue;
        Case c = case_of(k / list.size());
        c.n = list[k % list.size()];
        context = "build: " + name_of(c);
        Input const in = input_of(c, (int)k);
        OnDevice const on_device(in);
        Trees g;
        if (!build(&g, in, on_device)) continue;
        CHECK_RESULT(lbvh_cuda_check(&g.gpu, stream), LBVH_OK);
        CHECK(g.gpu.device.tree.bad_id == -1 && g.gpu.device.tree.cuda_error == 0);
    }
}

/* The smallest trees, all of their options: what is left to chance above is all here. */
static void test_few()
{
    for (size_t k = 0; k < case_count; k++)
        for (int n = 0; n < 4; n++) {
            Case c = case_of(k);
            c.n = n;
            if (!chosen(4 * k + (size_t)n, 20 * share, 450)) continue;
            context = "few: " + name_of(c);
            Input const in = input_of(c, (int)k);
            OnDevice const on_device(in);
            Trees g;
            if (!build(&g, in, on_device)) continue;
            check_pairs(g, in);
            check_walks(g, in, on_device);
            check_boxes(g, in, on_device);
            check_own(g, k % 2 ? LBVH_BOXES : LBVH_POINTS, (real)0.3, (int)(scattered(k) % 8),
                (int)(k % 3));
            check_given(g, query_kinds[k % 3], (int)(k % 4), (real)0.3, k % 2 ? LBVH_SORTED : 0,
                (int)(k / 2 % 3), false, 3);
            check_nearest(g, (int)(k % 3), 1 + (int)(k % 4), infinity, k % 5 ? 0 : LBVH_SORTED,
                k % 2, 4);
        }
    lbvh_cuda gpu = {};
    CHECK_RESULT(lbvh_cuda_build(&gpu, nullptr, nullptr, 0, 0, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_check(&gpu, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_refit(&gpu, nullptr, 0, stream), LBVH_OK);
    lbvh_cuda_free(&gpu);
    lbvh_cuda_free(&gpu);
    lbvh_cuda_free(nullptr);
}

/* Elements for a search: where all lie on each other, all are pairs. */
static int search_size(Shape shape, size_t k)
{
    int const list[] = {n_max, n_max / 2 + 1, 257, 40, n_max / 3, 129};
    int const n = list[scattered(k + 7) % 6];
    return shape == EQUAL || shape == DEEP || shape == ZEROS || shape == HUGE_NUMBERS ?
        std::min(n, 150) : n;
}

/* A radius that reaches a few neighbours. */
static real radius_of(const lbvh &tree)
{
    double length = 0;
    for (int a = 0; a < 3 && tree.n > 0; a++)
        length = std::max(length, (double)tree.node[0].max[a] - (double)tree.node[0].min[a]);
    return clamped(length * std::pow((double)std::max(tree.n, 1), -1.0 / tree.desc.dim) * 0.8);
}

static void test_searches()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (!chosen(k, 6 * share, 750)) continue;
        c.n = search_size(c.shape, k);
        context = "searches: " + name_of(c);
        Input const in = input_of(c, (int)k);
        OnDevice const on_device(in);
        Trees g;
        if (!build(&g, in, on_device)) continue;
        real const radius = radius_of(g.serial);
        size_t const s = scattered(k);
        check_pairs(g, in);
        check_walks(g, in, on_device);
        check_boxes(g, in, on_device);
        for (size_t t = 0; t < 3; t++) {
            int const filter = (int)((s / 8 + t) % 3), sorted = (s / 4 + t) % 2 ? LBVH_SORTED : 0;
            check_own(g, (s + t) % 3 ? LBVH_BOXES : LBVH_POINTS, radius, (int)((s + 3 * t) % 8),
                filter);
            check_given(g, query_kinds[t], (s + t) % 2 ? 300 : 33, radius, sorted, filter,
                (s / 16 + t) % 2, (int)(k + s / 32 + t));
        }
    }
}

static void test_nearest()
{
    static const int32_t ks[] = {1, 8, 33, 2, 0, 32, 300};
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.keep_codes || !chosen(k + 1, 4 * share, 300)) continue;
        c.n = search_size(c.shape, k);
        context = "nearest: " + name_of(c);
        Input const in = input_of(c, (int)k);
        OnDevice const on_device(in);
        Trees g;
        if (!build(&g, in, on_device)) continue;
        size_t const s = scattered(k);
        real const radius = radius_of(g.serial);
        check_nearest(g, 70, ks[s % 7], infinity, s % 2 ? LBVH_SORTED : 0, s / 2 % 2, (int)k);
        check_nearest(g, 130, ks[(s + 1) % 7], radius, s % 2 ? 0 : LBVH_SORTED, s / 4 % 2, (int)k);
        check_nearest(g, 33, 8, 0, 0, false, (int)k);
        /* more than there are */
        check_nearest(g, 3, c.n + 5, s % 2 ? infinity : radius, 0, false, (int)k);
    }
}

/* Rows longer than what the first pass keeps, and than a stage; points too far apart for a
   packet. */
static void test_dense()
{
    static const int32_t ks[] = {1, 7, 8, 9, 31, 32};
    for (int n : {300, n_max < 300 ? 500 : 1000}) {
        Case const c = {3, POINTS, 63, LBVH_MERGE, 0, 0, 0, UNIFORM, 0, n};
        Input const in = input_of(c, n);
        OnDevice const on_device(in);
        Trees g;
        context = "dense: " + name_of(c);
        if (!build(&g, in, on_device)) continue;
        real const radius = radius_of(g.serial);
        check_own(g, LBVH_POINTS, 20 * radius, n == 300 ? LBVH_PLACES : 0, 0);
        check_own(g, LBVH_POINTS, 3 * radius, LBVH_HALF, 0);
        check_given(g, LBVH_POINTS, 40, 20 * radius, 0, 0, false, 2);
        for (int32_t k : ks)
            for (int flags : {0, (int)LBVH_SORTED})
                check_nearest(g, flags ? 65 : 130, k, infinity, flags, false, 1);
    }
}

/* The chain of codes is there, and longer than a stack of 64 could follow. */
static void test_deep()
{
    for (int dim = 2; dim <= 3; dim++)
        for (int builder = 0; builder < 2; builder++) {
            Case const c = {dim, BOXES, 63, (lbvh_builder)builder, 0, 0, 0, DEEP, 0, 300};
            Input const in = input_of(c, 1);
            OnDevice const on_device(in);
            Trees g;
            lbvh_quality quality = {};
            context = "deep: " + name_of(c);
            if (!build(&g, in, on_device)) continue;
            CHECK_RESULT(lbvh_measure(&g.copy, &quality), LBVH_OK);
            CHECK(quality.depth > 64);
            check_walks(g, in, on_device);
            check_nearest(g, 40, 8, infinity, 0, false, 1);
            check_nearest(g, 40, 12, infinity, 0, false, 1);
        }
}
