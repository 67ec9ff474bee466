/* large.cu - a part of test_ugrid.cu: the number of pairs of large workloads, against numbers
   counted by other programs.
   SPDX-License-Identifier: MIT OR Unlicense */

/* uniform-100k and uniform-1M have known totals (tests/unit/ugrid/test_ugrid.c). */
static void test_totals()
{
#ifndef CUDA_EMU
    static const struct { int32_t n; int seed; int64_t total; } workloads[] = {
        {100000, 7, 2866956}, {1000000, 1, 29352150}};
    for (auto w : workloads) {
        std::vector<float> uniform(3 * (size_t)w.n);
        wl_uniform(w.n, (uint64_t)w.seed, uniform.data());
        Device<real> d_pos(std::vector<real>(uniform.begin(), uniform.end()));
        real const radius = (real)wl_radius(w.n, 30);
        for (int method = UGRID_AUTO; method <= UGRID_LIST_PACKED; method++) {
            ugrid_cuda gpu = {};
            ugrid_desc d = {};
            Device<int64_t> d_pairs(1);
            Device<int32_t> d_counts((size_t)w.n);
            int64_t sum = 0;
            context = "totals: n " + std::to_string(w.n) + ", method " + std::to_string(method);
            d.dim = 3;
            d.max[0] = d.max[1] = d.max[2] = 1;
            d.cell = radius;
            d.method = (ugrid_method)method;
            d.slots = 64;
            CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, w.n, stream), UGRID_OK);
            CHECK_RESULT(ugrid_cuda_count_pairs(&gpu, radius, d_pairs.p, stream), UGRID_OK);
            CHECK_RESULT(ugrid_cuda_count_neighbors(&gpu, radius, 0, d_counts.p, stream), UGRID_OK);
            CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_OK);
            for (int32_t count : d_counts.get()) sum += count;
            CHECK(sum == 2 * d_pairs.get()[0]);
            CHECK(sizeof(real) == 8 ? std::llabs(sum - w.total) < 100 : sum == w.total);
            ugrid_cuda_free(&gpu);
        }
    }
#endif
}
