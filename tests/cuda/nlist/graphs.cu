/* graphs.cu - a part of test_nlist.cu: a time step in a CUDA graph, replayed while the particles
   move; two lists on two streams.
   SPDX-License-Identifier: MIT OR Unlicense */

/* One time step, as a program would enqueue it: grid or tree, list with its history, the caller's
   work on it, sums. */
struct Step {
    const Case &c;
    Input &in;
    OnDevice &there;
    Device<uint32_t> d_step;
    Device<real> d_sums;
    nlist_desc desc;
    nlist_sums how;
    Law<3> law;
    Step(const Case &of, Input *input, OnDevice *on_device)
        : c(of), in(*input), there(*on_device), d_step(1), d_sums((size_t)(3 * of.n)),
            desc(device_desc(*input, *on_device)), how(),
          law()
    {
    }
};

static void reserve_step(Both *b, const Step &s)
{
    if (s.c.source == GRID)
        CHECK(ugrid_cuda_reserve(&b->grid_gpu, &s.in.cells, s.c.n, stream) == UGRID_OK);
    if (s.c.source == TREE)
        CHECK(lbvh_cuda_reserve(&b->tree_gpu, &s.in.boxes, s.c.n, s.c.n, stream) == LBVH_OK);
    CHECK_RESULT(nlist_cuda_reserve(&b->gpu, &s.desc, s.c.n, 3, stream), NLIST_OK);
    MUST(cudaStreamSynchronize(stream));
}

static void enqueue_step(Both *b, const Step &s)
{
    Stamp const stamp = {s.d_step.p, s.c.history};
    build_source(b, s.c.source, s.in, s.there);
    if (s.desc.if_moved)
        CHECK_RESULT(nlist_cuda_moved(&b->gpu, s.there.pos.p, s.in.stride, stream), NLIST_OK);
    CHECK_RESULT(build_list(b, s.c.source, s.desc, s.in, s.there), NLIST_OK);
    if (s.c.history) CHECK_RESULT(nlist_cuda_each(&b->gpu, stamp, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_sum<3>(&b->gpu, &s.how, s.law, s.d_sums.p, stream), NLIST_OK);
}

/* The same on the host; returns the sums. */
static std::vector<real> serial_step(Both *b, const Step &s, uint32_t step)
{
    std::vector<real> sums((size_t)(3 * s.c.n));
    nlist_desc host = host_desc(s.in);
    int32_t moved = 1;
    if (s.desc.if_moved)
        CHECK_RESULT(nlist_moved(&b->serial, s.in.pos.data(), s.in.stride, &moved), NLIST_OK);
    if (moved) CHECK_RESULT(build_serial(b, s.c.source, host, s.in), NLIST_OK);
    for (int32_t i = 0; i < b->serial.n && s.c.history; i++) {
        nlist_each e = nlist_of(&b->serial, i);
        while (nlist_next(&e)) stamp_entry(step, s.c.history, i, e.id, e.history);
    }
    Law<3> law = s.law;
    CHECK_RESULT(nlist_sum(&b->serial, &s.how, law_on_host<3>, &law, sums.data()), NLIST_OK);
    return sums;
}

/* What the next step of the world is, into the arrays that the graph reads. */
static void set_step(const Step &s, World *w, uint32_t step)
{
    Input const next = input_at(s.c, w->points, &w->r);
    s.in.pos = next.pos;
    s.in.elements = next.elements;
    s.there.pos.set(s.in.pos);
    s.there.elements.set(s.in.elements);
    Device<uint32_t> const step_of_host(std::vector<uint32_t>(1, step));
    MUST(cudaMemcpy(s.d_step.p, step_of_host.p, sizeof(uint32_t), cudaMemcpyDeviceToDevice));
    MUST(cudaMemset(s.d_sums.p, 0, s.d_sums.count * sizeof(real)));
    MUST(cudaDeviceSynchronize());
}

static void replay(Both *b, const Step &s, World *w, cudaGraphExec_t exec, int steps)
{
    std::string const name = context;
    int32_t built = 0;
    for (uint32_t step = 1; step <= (uint32_t)steps; step++) {
        context = name + ", replay " + std::to_string(step);
        move(w, s.desc.if_moved ? 0.2 * (double)s.desc.skin : 0.2 * radius_of(s.c));
        set_step(s, w, step);
        MUST(cudaGraphLaunch(exec, stream));
        MUST(cudaStreamSynchronize(stream));
        std::vector<real> const sums = serial_step(b, s, step);
        CHECK_RESULT(nlist_cuda_check(&b->gpu, stream), NLIST_OK);
        compare(b, s.c.deterministic != 0, s.in.ordered);
        if (s.c.events) check_witnesses(b);
        std::vector<real> const got = s.d_sums.get();
        CHECK(same_bits(got.data(), sums.data(), sums.size()));
        built = facts_of(b->gpu).filled;
    }
    if (s.desc.if_moved) CHECK(built < steps && "most steps needed no list");
    else CHECK(built >= steps);
}

static void run_graph(const Case &c, int seed, int steps)
{
    World w = {{}, wl_seed((uint64_t)seed), c.dim, 0, true};
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    Both b;
    append(&w, c.n);
    Input in = input_at(c, w.points, &w.r);
    in.desc.width = c.layout == NLIST_STATIC ? 64 : 4;
    in.desc.capacity = 100 * c.n;
    OnDevice there(in);
    Step s(c, &in, &there);
    s.desc.if_moved = c.skin;
    s.how = {3, c.layout == NLIST_STATIC ? NLIST_PER_PARTICLE : (nlist_mode)(seed % 4),
        1.0 / (1 << 20)};
    s.law = {11, 0, 0, (real)0.3 / 65536};
    reserve_step(&b, s);
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    enqueue_step(&b, s);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    replay(&b, s, &w, exec, steps);
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
}

/* A time step, captured once, replayed while the particles move: the list is turned over on the
   device. */
static void test_graph()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.shape != UNIFORM || c.source == PAIRS || !chosen(k + 11, std::max(share, 4), 45))
            continue;
        c.masked = c.exclusive = c.radii = 0;
        c.variant = c.variant / 15 * 15; /* UGRID_SORT; tree from where the particles are */
        c.n = std::min(n_max, 90);
        context = "graph: " + name_of(c);
        run_graph(c, (int)k, share > 4 ? 5 : 30);
    }
}

/* Two lists on two streams, their work interleaved. */
static void test_two_streams()
{
    cudaStream_t const before = stream;
    cudaStream_t streams[2];
    for (cudaStream_t &s : streams) MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (size_t k = 0; k < case_count; k += 67 * (size_t)std::min(share, 8)) {
        Case cases[2] = {case_of(k), case_of((k + 200) % case_count)};
        for (Case &c : cases) c.n = size_of(c.shape, k), c.history = c.events = 0;
        Input const in[2] = {input_of(cases[0], 1), input_of(cases[1], 2)};
        OnDevice const there0(in[0]), there1(in[1]);
        const OnDevice *there[2] = {&there0, &there1};
        Both both[2];
        context = "two streams: " + name_of(cases[0]) + "; " + name_of(cases[1]);
        nlist_desc d[2];
        for (int i = 0; i < 2; i++) {
            nlist_desc host = host_desc(in[i]);
            host.grow = 1;
            d[i] = device_desc(in[i], *there[i]);
            CHECK_RESULT(build_serial(&both[i], cases[i].source, host, in[i]), NLIST_OK);
            fit_exactly(both[i].serial, &d[i]);
        }
        for (int round = 0; round < 3; round++)
            for (int i = 0; i < 2; i++) {
                stream = streams[i];
                CHECK_RESULT(build_gpu(&both[i], cases[i].source, d[i], in[i], *there[i]),
                    NLIST_OK);
            }
        for (int i = 0; i < 2; i++) {
            stream = streams[i];
            CHECK_RESULT(nlist_cuda_check(&both[i].gpu, stream), NLIST_OK);
            compare(&both[i], cases[i].deterministic != 0, in[i].ordered);
        }
    }
    for (cudaStream_t &s : streams) MUST(cudaStreamSynchronize(s));
    for (cudaStream_t &s : streams) MUST(cudaStreamDestroy(s));
    stream = before;
}
