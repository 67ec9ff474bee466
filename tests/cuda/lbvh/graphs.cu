/* graphs.cu - a part of test_lbvh.cu: a time step in a CUDA graph, replayed with other elements
   and queries; two trees on two streams.
   SPDX-License-Identifier: MIT OR Unlicense */

/* What one frame of test_graph writes. */
struct Frame {
    Device<int64_t> before, needed, offsets, own_offsets;
    Device<int32_t> pairs, ids, own_ids, near_ids, found;
    Device<real> distances2;
    Frame(size_t n, size_t m)
        : before(1), needed(1), offsets(m + 1), own_offsets(n + 1), pairs(80 * n), ids(40 * m),
            own_ids(80 * n), near_ids(8 * m),
          found(m), distances2(8 * m)
    {
    }
};

/* Everything that a program might do in a time step: build, count, refit to other elements, and all
   searches. */
static void enqueue_frame(lbvh_cuda *gpu, const lbvh_desc &d, const Device<real> &first,
    const Device<real> &second, size_t stride, int32_t n, const lbvh_queries &queries, Frame *f)
{
    lbvh_queries own = {};
    int32_t const m = queries.n;
    CHECK_RESULT(lbvh_cuda_build(gpu, &d, first.p, stride, n, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_count_pairs(gpu, f->before.p, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_refit(gpu, second.p, stride, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_pairs(gpu, f->pairs.p, (int64_t)f->pairs.count / 2, f->needed.p, stream),
        LBVH_OK);
    CHECK_RESULT(lbvh_cuda_overlaps(gpu, &queries, f->offsets.p, f->ids.p, (int64_t)f->ids.count,
        stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_overlaps(gpu, &own, f->own_offsets.p, f->own_ids.p,
        (int64_t)f->own_ids.count, stream), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_nearest(gpu, queries.data, 0, m, 8, infinity, 0, f->near_ids.p,
        f->distances2.p, f->found.p, stream), LBVH_OK);
}

template <class T> static bool begins_with(const std::vector<T> &got, const std::vector<T> &want)
{
    size_t const both = std::min(got.size(), want.size());
    return both == 0 || same_bits(got.data(), want.data(), both);
}

static void check_frame(Trees &g, const Input &first, const Input &second, const Search &queries,
    const Input &points, const Frame &f)
{
    Search own = {};
    int64_t pairs = -1;
    lbvh_desc const d = host_desc(first);
    own.rows = first.n;
    CHECK_RESULT(lbvh_cuda_check(&g.gpu, stream), LBVH_OK);
    CHECK_RESULT(lbvh_build(&g.serial, &d, first.data.data(), first.stride, first.n), LBVH_OK);
    CHECK_RESULT(lbvh_count_pairs(&g.serial, &pairs), LBVH_OK);
    CHECK(f.before.get()[0] == pairs);
    CHECK_RESULT(lbvh_refit(&g.serial, second.data.data(), second.stride), LBVH_OK);
    CHECK_RESULT(lbvh_cuda_download(&g.copy, &g.gpu, stream), LBVH_OK);
    check_arrays(g.serial, g.copy);
    std::vector<int32_t> const want = serial_pairs(g.serial);
    CHECK(f.needed.get()[0] == (int64_t)want.size() / 2);
    CHECK(begins_with(f.pairs.get(), want));
    Lists const lists = serial_lists(g.serial, queries), own_lists = serial_lists(g.serial, own);
    CHECK(f.offsets.get() == lists.offsets);
    CHECK(f.own_offsets.get() == own_lists.offsets);
    if (lists.ids.size() <= f.ids.count) CHECK(begins_with(f.ids.get(), lists.ids));
    if (own_lists.ids.size() <= f.own_ids.count) CHECK(begins_with(f.own_ids.get(), own_lists.ids));
    Nearest const near = serial_nearest(g.serial, points, queries.rows, 8, infinity);
    CHECK(begins_with(f.near_ids.get(), near.ids) && begins_with(f.found.get(), near.found));
    CHECK(begins_with(f.distances2.get(), near.distances2));
}

/* A time step, captured once, replayed with new elements and new queries. */
static void test_graph()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.form == INDEXED || c.shape > LATTICE || !chosen(k + 5, 13 * share, 225)) continue;
        int const m = 70;
        c.n = std::min(n_max, 1000);
        context = "graph: " + name_of(c);
        Input const in = input_of(c, 1);
        OnDevice on_device(in);
        Device<real> d_second(in.data), d_points(std::vector<real>((size_t)(m * c.dim)));
        lbvh_desc const d = device_desc(in, on_device);
        Frame frame((size_t)c.n, (size_t)m);
        Trees g;
        Search queries = {};
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t exec = nullptr;
        queries.host.kind = LBVH_POINTS;
        queries.host.n = queries.rows = m;
        queries.host.radius = (real)0.1;
        queries.device = queries.host;
        queries.device.data = d_points.p;
        CHECK_RESULT(lbvh_cuda_reserve(&g.gpu, &d, c.n, std::max(m, c.n), stream), LBVH_OK);
        MUST(cudaStreamSynchronize(stream));
        MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        enqueue_frame(&g.gpu, d, on_device.data, d_second, in.stride, c.n, queries.device, &frame);
        MUST(cudaStreamEndCapture(stream, &graph));
        MUST(cudaGraphInstantiate(&exec, graph, 0));
        for (int step = 0; step < 3; step++) {
            Input first = input_of(c, 100 + step), second = input_of(c, 200 + step), points = {};
            first.masks = in.masks; /* the captured build reads the masks that lay there */
            if (step > 0) CHECK_RESULT(lbvh_cuda_check(&g.gpu, stream), LBVH_OK);
            points.width = (size_t)c.dim;
            first.desc = second.desc = in.desc;
            lbvh_desc const host = host_desc(first);
            /* for queries_of */
            CHECK_RESULT(lbvh_build(&g.serial, &host, first.data.data(), first.stride, c.n),
                LBVH_OK);
            points.data = queries_of(g.serial, LBVH_POINTS, m, step);
            queries.host.data = points.data.data();
            on_device.data.set(first.data);
            d_second.set(second.data);
            d_points.set(points.data);
            MUST(cudaGraphLaunch(exec, stream));
            MUST(cudaStreamSynchronize(stream));
            check_frame(g, first, second, queries, points, frame);
        }
        MUST(cudaGraphExecDestroy(exec));
        MUST(cudaGraphDestroy(graph));
    }
}

/* Two trees on two streams, their work interleaved. */
static void test_two_streams()
{
    cudaStream_t streams[2];
    for (cudaStream_t &s : streams) MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (size_t k = 0; k < case_count; k += 67 * (size_t)std::min(share, 20)) {
        Case cases[2] = {case_of(k), case_of((k + 200) % case_count)};
        lbvh_cuda gpu[2] = {};
        lbvh serial[2] = {};
        Device<int64_t> pairs0(1), pairs1(1);
        Device<int64_t> *pairs[2] = {&pairs0, &pairs1};
        for (Case &c : cases) c.n = search_size(c.shape, k);
        Input const in[2] = {input_of(cases[0], 1), input_of(cases[1], 2)};
        OnDevice const on_device0(in[0]), on_device1(in[1]);
        const OnDevice *on_device[2] = {&on_device0, &on_device1};
        context = "two streams: " + name_of(cases[0]) + "; " + name_of(cases[1]);
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < 2; i++) {
                lbvh_desc const d = device_desc(in[i], *on_device[i]);
                CHECK_RESULT(lbvh_cuda_build(&gpu[i], &d, on_device[i]->data.p, in[i].stride,
                    in[i].n, streams[i]), LBVH_OK);
            }
            for (int i = 0; i < 2; i++)
                CHECK_RESULT(lbvh_cuda_count_pairs(&gpu[i], pairs[i]->p, streams[i]), LBVH_OK);
        }
        for (int i = 0; i < 2; i++) {
            int64_t want = -1;
            lbvh_desc const d = host_desc(in[i]);
            CHECK_RESULT(lbvh_cuda_check(&gpu[i], streams[i]), LBVH_OK);
            CHECK_RESULT(lbvh_build(&serial[i], &d, in[i].data.data(), in[i].stride, in[i].n),
                LBVH_OK);
            CHECK_RESULT(lbvh_count_pairs(&serial[i], &want), LBVH_OK);
            CHECK(pairs[i]->get(streams[i])[0] == want);
            lbvh_cuda_free(&gpu[i]);
            lbvh_free(&serial[i]);
        }
    }
    for (cudaStream_t &s : streams) MUST(cudaStreamSynchronize(s));
    for (cudaStream_t &s : streams) MUST(cudaStreamDestroy(s));
}
