/* graphs.cu - a part of test_ugrid.cu: a build and its searches in a CUDA graph, and two grids
   on two streams.
   SPDX-License-Identifier: MIT OR Unlicense */

/* A build and its searches, captured once, replayed with new positions. */
static void test_graph()
{
    std::vector<Case> const cases = all_cases();
    int const n = std::min(n_max / 4, 1000);
    for (size_t k = 0; k < cases.size(); k++) {
        if (!chosen(k, 13 * share)) continue;
        Case const &c = cases[k];
        ugrid_desc d = desc_of(c);
        Device<real> d_pos(mixed_points(d, n, 1));
        Device<int64_t> d_offsets((size_t)n + 1), d_pairs(1);
        Device<int32_t> d_ids((size_t)n * 400), d_counts((size_t)n);
        Grids g;
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t exec = nullptr;
        context = "graph: " + name_of(c);
        d.slots = d.method == UGRID_FIXED ? n * 8 : 0;
        CHECK_RESULT(ugrid_cuda_reserve(&g.gpu, &d, n, stream), UGRID_OK);
        MUST(cudaStreamSynchronize(stream));
        MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_count_pairs(&g.gpu, d.cell, d_pairs.p, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_count_neighbors(&g.gpu, d.cell, 0, d_counts.p, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_neighbors(&g.gpu, d.cell, 0, d_offsets.p, d_ids.p,
            (int64_t)d_ids.count, stream), UGRID_OK);
        MUST(cudaStreamEndCapture(stream, &graph));
        MUST(cudaGraphInstantiate(&exec, graph, 0));
        for (int frame = 0; frame < 3; frame++) {
            std::vector<real> const pos = mixed_points(d, n, 100 + frame);
            int64_t pairs = -1;
            d_pos.set(pos);
            MUST(cudaGraphLaunch(exec, stream));
            MUST(cudaStreamSynchronize(stream));
            CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_OK);
            CHECK_RESULT(ugrid_build(&g.serial, &d, pos.data(), 0, n), UGRID_OK);
            CHECK_RESULT(ugrid_cuda_download(&g.copy, &g.gpu, stream), UGRID_OK);
            g.copy.pos = pos.data();
            g.copy.stride = sizeof(real) * (size_t)d.dim;
            check_arrays(c, g.serial, g.copy);
            CHECK_RESULT(ugrid_count_pairs(&g.copy, d.cell, &pairs), UGRID_OK);
            CHECK(d_pairs.get()[0] == pairs);
            Lists const want = serial_lists(g.copy, d.cell, 0);
            CHECK(d_offsets.get() == want.offsets);
            Lists got = {d_offsets.get(), d_ids.get()};
            if (got.offsets.back() > (int64_t)d_ids.count || got.offsets != want.offsets) continue;
            sort_rows(&got);
            CHECK(std::equal(want.ids.begin(), want.ids.end(), got.ids.begin()));
        }
        MUST(cudaGraphExecDestroy(exec));
        MUST(cudaGraphDestroy(graph));
    }
}

/* Two grids on two streams, their work interleaved. */
static void test_two_streams()
{
    std::vector<Case> const cases = all_cases();
    cudaStream_t streams[2];
    for (cudaStream_t &s : streams) MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (size_t k = 0; k + 200 < cases.size(); k += 97 * (size_t)share) {
        ugrid_cuda gpu[2] = {};
        ugrid serial[2] = {};
        Device<int64_t> pairs0(1), pairs1(1);
        Device<int64_t> *pairs[2] = {&pairs0, &pairs1};
        Case const two[2] = {cases[k], cases[k + 200]};
        ugrid_desc d[2] = {desc_of(two[0]), desc_of(two[1])};
        std::vector<real> const pos[2] = {mixed_points(d[0], n_max, 1),
            mixed_points(d[1], n_max / 2, 2)};
        Device<real> pos0(pos[0]), pos1(pos[1]);
        int32_t const n[2] = {n_max, n_max / 2};
        context = "two streams: " + name_of(two[0]) + "; " + name_of(two[1]);
        for (int i = 0; i < 2; i++) d[i].slots = 0;
        for (int i = 0; i < 2; i++)
            if (d[i].method == UGRID_FIXED) {
                d[i].method = UGRID_COUNT;
                d[i].slot_layout = UGRID_SLOTS_BY_COLUMN;
            }
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < 2; i++)
                CHECK_RESULT(ugrid_cuda_build(&gpu[i], &d[i], i ? pos1.p : pos0.p, 0, n[i],
                    streams[i]), UGRID_OK);
            for (int i = 0; i < 2; i++)
                CHECK_RESULT(ugrid_cuda_count_pairs(&gpu[i], d[i].cell, pairs[i]->p, streams[i]),
                    UGRID_OK);
        }
        for (int i = 0; i < 2; i++) {
            int64_t want = -1;
            CHECK_RESULT(ugrid_cuda_check(&gpu[i], streams[i]), UGRID_OK);
            CHECK_RESULT(ugrid_build(&serial[i], &d[i], pos[i].data(), 0, n[i]), UGRID_OK);
            CHECK_RESULT(ugrid_count_pairs(&serial[i], d[i].cell, &want), UGRID_OK);
            CHECK(pairs[i]->get(streams[i])[0] == want);
            ugrid_cuda_free(&gpu[i]);
            ugrid_free(&serial[i]);
        }
    }
    for (cudaStream_t &s : streams) MUST(cudaStreamSynchronize(s));
    for (cudaStream_t &s : streams) MUST(cudaStreamDestroy(s));
}
