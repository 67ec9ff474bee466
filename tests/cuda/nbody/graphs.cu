/* graphs.cu - a part of test_nbody.cu: evaluations and time steps in a CUDA graph; the same bits
   on other memory and another stream; two simulations on two streams.
   SPDX-License-Identifier: MIT OR Unlicense */

/* What a graph of test_graph reads and writes. */
struct Recorded {
    Input in;
    OnDevice there;
    Device<real> d_points, d_acc, d_potential;
    Device<nbody_error> d_error;
    explicit Recorded(const Input &of)
        : in(of), there(of), d_points(2 * 33), d_acc(2 * 33), d_potential(33), d_error(1)
    {
    }
};

static void record(Both *b, const Recorded &r, nbody_stage stage, cudaGraphExec_t *exec)
{
    cudaGraph_t graph = nullptr;
    nbody_desc d = r.in.desc;
    d.stage = stage;
    CHECK_RESULT(nbody_cuda_reserve(&b->gpu, &d, r.in.n, stream), NBODY_OK);
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK_RESULT(run_gpu(&b->gpu, r.in, stage, r.there), NBODY_OK);
    CHECK_RESULT(nbody_cuda_estimate(&b->gpu, r.there.acc.p, 16, 2, r.d_error.p, stream), NBODY_OK);
    CHECK_RESULT(nbody_cuda_fields_at(&b->gpu, r.d_points.p, 0, 33, r.d_acc.p, r.d_potential.p,
        stream), NBODY_OK);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(exec, graph, 0));
    MUST(cudaGraphDestroy(graph));
}

/* One replay: with these bodies in the arrays, everything is as if it had been called afresh. */
static void replay(Both *b, Recorded *r, nbody_stage stage, cudaGraphExec_t exec, const Input &now)
{
    Fields want;
    nbody_error error = {};
    r->in.pos = now.pos;
    r->in.mass = now.mass;
    r->there.pos.set(now.pos);
    r->there.mass.set(now.mass);
    r->there.acc.forget();
    r->there.potential.forget();
    CHECK_RESULT(run_serial(&b->serial, r->in, &want), NBODY_OK);
    std::vector<real> const points = points_for(now, *b->serial.frame, 33, now.n);
    r->d_points.set(points);
    MUST(cudaGraphLaunch(exec, stream));
    CHECK_RESULT(nbody_cuda_check(&b->gpu, nullptr, stream), NBODY_OK);
    compare(b, r->in, stage, want, r->there);
    std::vector<real> const acc = r->there.acc.get();
    CHECK_RESULT(nbody_estimate(&b->serial, acc.data(), 16, 2, &error), NBODY_OK);
    check_error(r->d_error.get()[0], error);
    Fields at = {unset(r->d_acc.count), unset(33)};
    CHECK_RESULT(nbody_fields_at(&b->serial, points.data(), 0, 33, at.acc.data(),
        at.potential.data(), nullptr), NBODY_OK);
    if (stage != NBODY_FAST)
        CHECK(same_bits(at.acc, r->d_acc.get()) && same_bits(at.potential, r->d_potential.get()));
}

/* An evaluation, captured once and replayed with bodies that lie altogether differently: the tree
   is another one each time. One of the replays meets a NaN, which does not affect the next one. */
static void test_graph()
{
    static const Shape shapes[] = {UNIFORM, CLUMPS, LINE, UNIFORM, TWO_SCALES, LATTICE};
    for (int k = 0; k < SETTINGS * 4; k++) {
        Case c = {};
        nbody_stage const stage = all_stages[(k + k / SETTINGS) % 4];
        if (!thinned((size_t)k + 90, share, 16)) continue;
        c.setting = k % SETTINGS;
        c.law = (nbody_law)(k / 4 % 2);
        c.levels = k % 3 == 1 ? 4 : 0;
        c.masses = ONES;
        c.soft = k % 2;
        c.padded = k % 5 == 0;
        c.n = std::min(n_max, heavy ? 70 : 150);
        context = std::string("graph: ") + stage_names[stage] + ", " + name_of(c);
        std::string const name = context;
        cudaGraphExec_t exec = nullptr;
        Both b;
        Recorded r(input_of(c, k));
        record(&b, r, stage, &exec);
        for (int step = 0; step < 6; step++) {
            context = name + ", replay " + std::to_string(step);
            c.shape = shapes[step];
            c.masses = step % 2 ? WILD : ONES;
            Input now = input_of(c, 100 * k + step);
            if (step == 3) {
                std::vector<real> bad = now.pos;
                bad[5 * step_of(now.stride, 2) + 1] = not_a_number;
                r.there.pos.set(bad);
                MUST(cudaGraphLaunch(exec, stream));
                CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_NOT_FINITE);
                CHECK(b.gpu.device.sim.bad_id == 5);
            }
            replay(&b, &r, stage, exec, now);
        }
        MUST(cudaGraphExecDestroy(exec));
    }
}

/* The sums over images are an argument in the graph. */
static void test_periodic_graph()
{
    for (int k = 0; k < 4; k += share > 400 ? 3 : 1) {
        int const setting = setting_like(k % 2 ? NBODY_FORCE_NODES : NBODY_DIRECT, 0), n = 60;
        nbody_stage const stage = exact_stages[1 + k / 2];
        cudaGraphExec_t exec = nullptr;
        Both b;
        Recorded r(in_square(setting, 4 * k, n));
        context = "periodic graph " + std::to_string(k);
        record(&b, r, stage, &exec);
        for (int step = 0; step < 2; step++) {
            Input now = r.in;
            for (size_t i = 0; i < now.pos.size(); i++) now.pos[i] += (real)(0.3 * step);
            replay(&b, &r, stage, exec, now);
        }
        MUST(cudaGraphExecDestroy(exec));
    }
}

/* A whole time step, captured and replayed: the bodies move on, as the serial ones do. NBODY_FAST:
   as those of a second object do that is not captured. */
static void run_graph_steps(const Case &c, nbody_stage stage, nbody_integrator integrator, int seed)
{
    Both b, other;
    Input const in = input_of(c, seed);
    Motion m(in, seed), second(in, seed);
    nbody_desc d = in.desc;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    real const dt = (real)(1.0 / 512);
    d.stage = stage;
    CHECK_RESULT(nbody_cuda_reserve(&b.gpu, &d, in.n, stream), NBODY_OK);
    /* the first is not one of the graph */
    CHECK_RESULT(nbody_cuda_step(&b.gpu, &d, &m.there, dt, integrator, stream), NBODY_OK);
    CHECK(m.there.fresh == (integrator == NBODY_LEAPFROG));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK_RESULT(nbody_cuda_step(&b.gpu, &d, &m.there, dt, integrator, stream), NBODY_OK);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphDestroy(graph));
    for (int step = 0; step < 5; step++) MUST(cudaGraphLaunch(exec, stream));
    CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
    for (int step = 0; step < 6; step++) {
        if (stage == NBODY_FAST)
            CHECK_RESULT(nbody_cuda_step(&other.gpu, &d, &second.there, dt, integrator, stream),
                NBODY_OK);
        else CHECK_RESULT(nbody_step(&b.serial, &in.desc, &m.here, dt, integrator), NBODY_OK);
    }
    if (stage == NBODY_FAST) {
        CHECK(same_bits(m.d_pos.get(), second.d_pos.get()) &&
            same_bits(m.d_vel.get(), second.d_vel.get()));
        CHECK(same_bits(m.d_acc.get(), second.d_acc.get()));
        CHECK(!same_bits(m.d_pos.get(), m.pos) && "the bodies moved");
    } else check_motion(&m, stage, 0);
    MUST(cudaGraphExecDestroy(exec));
}

static void test_graph_steps()
{
    static const int methods[] = {0, 1, 7, 9};
    for (int k = 0; k < 4 * 4 * 2; k++) {
        Case c = {};
        if (!thinned((size_t)k + 40, share / 2, 6)) continue;
        c.setting = methods[k % 4];
        c.masses = k % 3 ? ONES : NO_MASSES;
        c.soft = 1;
        c.n = std::min(n_max, 80);
        nbody_stage const stage = all_stages[k / 4 % 4];
        context = std::string("graph steps: ") + stage_names[stage] + ", " + name_of(c);
        run_graph_steps(c, stage, k / 16 ? NBODY_EULER : NBODY_LEAPFROG, k);
    }
}

/* NBODY_FAST on other memory, after other work, on another stream: the same bits. */
static void test_deterministic()
{
    cudaStream_t const before = stream;
    for (size_t k = 0; k < case_count; k++) {
        if (!thinned(k + 6, 3 * share, 120)) continue;
        Case c = case_of(k), other = case_of((k + 321) % case_count);
        Heap h = {};
        nbody_cuda first = {}, second = {};
        cudaStream_t own;
        c.n = std::min(size_of(c.shape, k + 4), heavy ? 150 : n_max);
        other.n = size_of(other.shape, k) / 2 + 1;
        context = "deterministic: " + name_of(c);
        Input in = input_of(c, (int)k);
        Input const work = input_of(other, 1);
        OnDevice const there(in), again(in), elsewhere(work);
        CHECK_RESULT(run_gpu(&first, in, NBODY_FAST, there), NBODY_OK);
        Fields const want = fields_of(there);
        nbody_cuda_free(&first);
        MUST(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
        stream = own;
        Input first_work = work;
        first_work.desc.cuda_allocator = in.desc.cuda_allocator = allocator_of(&h);
        CHECK_RESULT(run_gpu(&second, first_work, NBODY_FAST, elsewhere), NBODY_OK);
        CHECK_RESULT(run_gpu(&second, in, NBODY_FAST, again), NBODY_OK);
        Fields const got = fields_of(again);
        CHECK(same_bits(want.acc, got.acc) && "accelerations");
        CHECK(same_bits(want.potential, got.potential) && "potentials");
        nbody_cuda_free(&second);
        MUST(cudaStreamSynchronize(own));
        stream = before;
        MUST(cudaStreamDestroy(own));
        CHECK(h.live == 0 && !h.wrong_stream);
    }
}

/* Two simulations on two streams, their work interleaved; then each goes on on the other's stream,
   after an event. */
static void test_two_streams()
{
    cudaStream_t const before = stream;
    cudaStream_t streams[2];
    for (cudaStream_t &s : streams) MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (size_t k = 0; k < case_count; k += 31 * (size_t)std::max(std::min(share / 4, 9), 1)) {
        Case cases[2] = {case_of(k), case_of((k + 200) % case_count)};
        for (Case &c : cases) c.n = std::min(size_of(c.shape, k), heavy ? 100 : n_max);
        Input const in[2] = {input_of(cases[0], 1), input_of(cases[1], 2)};
        OnDevice const there0(in[0]), there1(in[1]);
        const OnDevice *const there[2] = {&there0, &there1};
        Both both[2];
        Fields want[2];
        context = "two streams: " + name_of(cases[0]) + "; " + name_of(cases[1]);
        nbody_stage const stages[2] = {all_stages[k % 4], NBODY_FAST};
        for (int i = 0; i < 2; i++)
            CHECK_RESULT(run_serial(&both[i].serial, in[i], &want[i]), NBODY_OK);
        for (int round = 0; round < 3; round++)
            for (int i = 0; i < 2; i++) {
                stream = streams[i ^ (round == 2)];
                if (round == 2) { /* it changes streams */
                    cudaEvent_t done;
                    MUST(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
                    MUST(cudaEventRecord(done, streams[i]));
                    MUST(cudaStreamWaitEvent(stream, done));
                    MUST(cudaEventDestroy(done));
                }
                CHECK_RESULT(run_gpu(&both[i].gpu, in[i], stages[i], *there[i]), NBODY_OK);
            }
        for (int i = 0; i < 2; i++) {
            stream = streams[1 - i];
            CHECK_RESULT(nbody_cuda_check(&both[i].gpu, nullptr, stream), NBODY_OK);
            compare(&both[i], in[i], stages[i], want[i], *there[i]);
        }
    }
    for (cudaStream_t &s : streams) MUST(cudaStreamSynchronize(s));
    for (cudaStream_t &s : streams) MUST(cudaStreamDestroy(s));
    stream = before;
}
