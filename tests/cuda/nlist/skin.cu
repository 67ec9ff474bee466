/* skin.cu - a part of test_nlist.cu: the skin: the device decides whether to build, as the
   serial list does.
   SPDX-License-Identifier: MIT OR Unlicense */

static nlist_cuda_facts facts_of(const nlist_cuda &gpu)
{
    nlist_cuda_facts facts = {};
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(&facts, gpu.d_facts, sizeof facts, cudaMemcpyDeviceToHost));
    return facts;
}

/* Every particle goes a little way; `far` of them further than half the skin. */
static std::vector<real> moved_points(const Input &in, int far, real skin)
{
    std::vector<real> pos = in.pos;
    size_t const step = in.stride ? in.stride / sizeof(real) : (size_t)in.dim;
    for (int i = 0; i < in.n; i++) {
        real *const p = &pos[(size_t)i * step];
        int const a = i % in.dim;
        p[a] += (i % 2 ? -1 : 1) * skin * (i % 7 == 3 && i / 7 < far ? (real)0.6 : (real)0.4);
    }
    return pos;
}

static int count_far(const Input &in, int far)
{
    int count = 0;
    for (int i = 0; i < in.n; i++) count += i % 7 == 3 && i / 7 < far;
    return count;
}

/* The device's answer, and that of the serial half. */
static void check_moved(Both *b, const Input &in, const OnDevice &there, int want)
{
    int32_t moved = -1;
    CHECK_RESULT(nlist_moved(&b->serial, in.pos.data(), in.stride, &moved), NLIST_OK);
    CHECK(moved == (want > 0));
    CHECK_RESULT(nlist_cuda_moved(&b->gpu, there.pos.p, in.stride, stream), NLIST_OK);
    CHECK(facts_of(b->gpu).moved == want);
}

/* Particles that a remap has added have no old position: they count as moved. */
static void check_newcomers(Both *b, const Input &in)
{
    Device<real> d_pos(in.pos);
    std::vector<int32_t> names;
    int32_t moved = 0;
    for (int32_t i = 0; i < in.n; i++) names.push_back(i < 3 ? -1 : i);
    Device<int32_t> d_names(names);
    CHECK_RESULT(nlist_remap(&b->serial, names.data(), in.n), NLIST_OK);
    CHECK_RESULT(nlist_cuda_remap(&b->gpu, d_names.p, in.n, stream), NLIST_OK);
    CHECK_RESULT(nlist_moved(&b->serial, in.pos.data(), in.stride, &moved), NLIST_OK);
    CHECK_RESULT(nlist_cuda_moved(&b->gpu, d_pos.p, in.stride, stream), NLIST_OK);
    CHECK(moved == 1 && facts_of(b->gpu).moved == 3);
}

/* If no particle has moved far enough, the build leaves everything as it is; else it builds. The
   device decides. */
static void run_moved(const Case &c, int seed)
{
    Both b;
    Input in = input_of(c, seed);
    OnDevice const on_device(in);
    if (!build(&b, c, in, on_device)) return;
    if (c.history) stamp_all(&b, nullptr, (uint32_t)seed);
    check_moved(&b, in, on_device, 0);
    int32_t filled = facts_of(b.gpu).filled;
    for (int far : {0, 2, 0, 1000}) {
        Input next = in;
        next.pos = moved_points(in, far, in.desc.skin);
        OnDevice const there(next);
        nlist_desc host = host_desc(next), device = device_desc(next, there);
        check_moved(&b, next, there, count_far(in, far));
        host.grow = 1;
        if (far) CHECK_RESULT(build_serial(&b, c.source, host, next), NLIST_OK);
        fit_exactly(b.serial, &device);
        device.if_moved = 1;
        CHECK_RESULT(build_gpu(&b, c.source, device, next, there), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        int32_t const now = facts_of(b.gpu).filled;
        /* 1: in memory of another size it counts anew */
        CHECK(far ? now == filled + 1 || now == 1 : now == filled);
        filled = now;
        compare(&b, c.deterministic != 0, in.ordered);
        if (far) in = next;
        if (far) check_moved(&b, in, there, 0);
    }
    check_newcomers(&b, in);
}

static void test_moved()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.shape != UNIFORM || c.source == PAIRS ||
            !chosen(k + 5, std::max(4 * share / 3, 1), 50))
            continue;
        c.skin = 1;
        c.n = std::min(n_max, 90);
        c.events = 0; /* those of the serial list would be older */
        context = "moved: " + name_of(c);
        run_moved(c, (int)k);
    }
    nlist_cuda gpu = {};
    Device<real> d_pos(30);
    /* no list: nothing can rest on it */
    CHECK_RESULT(nlist_cuda_moved(&gpu, d_pos.p, 0, stream), NLIST_OK);
    nlist_cuda_free(&gpu);
}

/* A NaN has moved. */
static void test_moved_nan()
{
    Case c = {};
    c.dim = 3;
    c.skin = 1;
    c.n = 40;
    c.variant = 1;
    context = "moved: not a number";
    Input in = input_of(c, 3);
    OnDevice const on_device(in);
    Both b;
    if (!build(&b, c, in, on_device)) return;
    in.pos[3 * 7 + 1] = not_a_number;
    in.pos[3 * 9] = infinity;
    OnDevice const there(in);
    CHECK_RESULT(nlist_cuda_moved(&b.gpu, there.pos.p, 0, stream), NLIST_OK);
    CHECK(facts_of(b.gpu).moved == 2);
}
