/* memory.cu - a part of test_nbody.cu: allocations and launches that fail: each comes back as a
   result code, and the next call works; after a reserve nothing is allocated.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Device memory that is counted, fails on demand, and is filled with other bytes at first. */

/* Everything that a program may do in a time step; the first result that is not NBODY_OK. */
struct Everything {
    Input in;
    OnDevice there;
    Motion motion;
    Device<real> d_points, d_acc, d_potential;
    Device<nbody_error> d_error;
    Device<nbody_energies> d_energies;
    Everything(const Input &of, int seed)
        : in(of), there(of), motion(of, seed), d_points(points_for(of, nbody_frame{}, 70, seed)),
          d_acc(2 * 70), d_potential(70), d_error(1), d_energies(1)
    {
    }
    nbody_result run(nbody_cuda *gpu, nbody_stage stage, nbody_integrator integrator)
    {
        nbody_desc d = in.desc;
        nbody_bodies *const bodies = &motion.there;
        d.stage = stage;
        nbody_result r = nbody_cuda_step(gpu, &d, bodies, (real)0.001, integrator, stream);
        if (r == NBODY_OK) r = nbody_cuda_energy(gpu, bodies, nullptr, d_energies.p, stream);
        if (r == NBODY_OK) r = run_gpu(gpu, in, stage, there);
        if (r == NBODY_OK) r = nbody_cuda_estimate(gpu, there.acc.p, 20, 3, d_error.p, stream);
        if (r == NBODY_OK)
            r = nbody_cuda_fields_at(gpu, d_points.p, 0, 70, d_acc.p, d_potential.p, stream);
        return r;
    }
};

/* After a reserve, evaluations of up to n bodies allocate nothing. */
static void test_reserve()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (!thinned(k + 2, 3 * share, 180)) continue;
        Heap h = {};
        Both b;
        c.padded = 0;
        c.outputs = ALL_OUTPUTS;
        c.n = c.shape == EQUAL ? 40 : std::min(n_max, 150);
        nbody_stage const stage = all_stages[k % 4];
        context = "reserve: " + name_of(c);
        Input in = input_of(c, (int)k);
        in.desc.cuda_allocator = allocator_of(&h);
        nbody_desc d = in.desc;
        d.stage = stage;
        CHECK_RESULT(nbody_cuda_reserve(&b.gpu, &d, c.n, stream), NBODY_OK);
        long const calls = h.calls;
        CHECK(calls > 0 && b.gpu.device.sim.n == 0);
        for (int n : {c.n, c.n / 3, c.n, 1, c.n}) {
            Input some = in;
            some.n = n;
            some.pos.resize(2 * (size_t)n);
            if (!some.mass.empty()) some.mass.resize((size_t)n);
            Everything all(some, (int)k);
            CHECK_RESULT(all.run(&b.gpu, stage, NBODY_LEAPFROG), NBODY_OK);
            CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
            CHECK(h.calls == calls && "nothing was allocated");
            CHECK(b.gpu.device.sim.n == n);
        }
        CHECK_RESULT(nbody_cuda_reserve(&b.gpu, &d, c.n / 2, stream), NBODY_OK);
        CHECK(h.calls == calls && "the memory is kept");
        nbody_cuda_free(&b.gpu);
        CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
    }
}

/* NBODY_AUTO: a tree or the direct sum, by what is asked for. Nothing is allocated after a
   reserve. */
static void test_automatic_method()
{
    struct Asked { int n, outputs, few; }; /* outputs: 0, forces, potentials too */
    int const forces = is_float ? 26000 : 1024, potentials = is_float ? 15000 : 1024;
    for (Asked const &ask : {Asked{1100, 0, 1024}, Asked{1100, 1, forces},
             Asked{1100, 2, potentials}, Asked{1024, 0, 1024}, Asked{15000, 2, potentials},
             Asked{15001, 2, potentials}, Asked{26000, 1, forces}, Asked{26001, 1, forces}}) {
#ifdef CUDA_EMU
        if (ask.n > 1100) continue; /* time */
#endif
        Heap h = {};
        nbody_cuda gpu = {};
        Input in = plain_input(setting_like(NBODY_AUTO, 0), ask.n, 1);
        OnDevice const there(in);
        context = "automatic method: " + std::to_string(ask.n) + ", " + std::to_string(ask.outputs);
        in.desc.cuda_allocator = allocator_of(&h);
        CHECK_RESULT(nbody_cuda_reserve(&gpu, &in.desc, ask.n, stream), NBODY_OK);
        long const calls = h.calls;
        CHECK_RESULT(ask.outputs == 0
                         ? nbody_cuda_build(&gpu, &in.desc, there.pos.p, 0, nullptr, ask.n, stream)
                         : nbody_cuda_fields(&gpu, &in.desc, there.pos.p, 0, nullptr, ask.n,
                               there.acc.p, ask.outputs == 2 ? there.potential.p : nullptr, stream),
            NBODY_OK);
        CHECK_RESULT(nbody_cuda_check(&gpu, nullptr, stream), NBODY_OK);
        CHECK(h.calls == calls && "nothing was allocated");
        CHECK((gpu.device.sim.cell == nullptr) == (ask.n <= ask.few));
        nbody_cuda_free(&gpu);
    }
}

/* After a reserve fewer bodies allocate nothing either: their leaves may be smaller, and
   NBODY_AUTO and DIRECT cut sums into more parts. */
static void test_reserve_for_fewer()
{
    struct Fewer { nbody_method method; int n, fewer; };
    for (Fewer const &ask :
         {Fewer{NBODY_FORCE_NODES, 425, 369}, Fewer{NBODY_FORCE_NODES, 32795, 23764},
             Fewer{NBODY_DIRECT, 26000, 23301}, Fewer{NBODY_AUTO, 60000, 23301}}) {
#ifdef CUDA_EMU
        if (ask.n > 1100) continue; /* time */
#endif
        Heap h = {};
        nbody_cuda gpu = {};
        Input in = plain_input(setting_like(NBODY_AUTO, 0), ask.fewer, 1);
        OnDevice const there(in);
        context = "reserve for fewer: " + std::to_string(ask.n);
        in.desc.method = ask.method;
        in.desc.cuda_allocator = allocator_of(&h);
        CHECK_RESULT(nbody_cuda_reserve(&gpu, &in.desc, ask.n, stream), NBODY_OK);
        long const calls = h.calls;
        CHECK_RESULT(nbody_cuda_fields(&gpu, &in.desc, there.pos.p, 0, nullptr, ask.fewer,
                                       there.acc.p, nullptr, stream),
            NBODY_OK);
        CHECK_RESULT(nbody_cuda_check(&gpu, nullptr, stream), NBODY_OK);
        CHECK(h.calls == calls && "nothing was allocated");
        nbody_cuda_free(&gpu);
    }
}

/* One pass: allocation number `fail` fails (0: none). Returns how many there were. */
static long run_out_of_memory(const Input &of, const Input &then, nbody_stage stage, long fail)
{
    Heap h = {};
    Both b;
    Input in = of, more = then;
    h.fail_at = fail;
    in.desc.cuda_allocator = more.desc.cuda_allocator = allocator_of(&h);
    Everything few(in, 1), many(more, 2);
    for (Everything *e : {&few, &many}) {
        nbody_result const r = e->run(&b.gpu, stage, NBODY_LEAPFROG);
        if (r != NBODY_OK) {
            CHECK_RESULT(r, NBODY_OUT_OF_MEMORY);
            CHECK_RESULT(e->run(&b.gpu, stage, NBODY_LEAPFROG), NBODY_OK);
        }
        Fields want;
        CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
        CHECK_RESULT(run_serial(&b.serial, e->in, &want), NBODY_OK);
        compare(&b, e->in, stage, want, e->there);
    }
    if (fail > 0) CHECK(h.calls >= fail && "the failure was met");
    nbody_cuda_free(&b.gpu);
    CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
    return h.calls;
}

/* The same for an upload, on the host and on the device. */
static void test_uploads_out_of_memory()
{
    Input const in = plain_input(setting_like(NBODY_FORCE_NODES, 0), 60, 1);
    Fields want;
    Both b;
    Heap h = {};
    long calls = 1;
    context = "uploads, out of memory";
    CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
    b.serial.desc.cuda_allocator = allocator_of(&h);
    for (long fail = 0; fail <= calls; fail++) {
        nbody_cuda gpu = {};
        h.calls = 0;
        h.fail_at = fail;
        CHECK_RESULT(nbody_cuda_upload(&gpu, &b.serial, stream),
            fail ? NBODY_OUT_OF_MEMORY : NBODY_OK);
        if (fail == 0) calls = h.calls;
        CHECK((gpu.device.sim.frame == nullptr) == (fail > 0));
        h.fail_at = 0;
        CHECK_RESULT(nbody_cuda_upload(&gpu, &b.serial, stream), NBODY_OK);
        nbody_cuda_free(&gpu);
        CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
    }
    CHECK(calls > 3);
}

/* A direct sum with the defaults of the CPU: its levels are more than a GPU has. */
static void test_uploads_of_defaults()
{
    Input const in = plain_input(setting_like(NBODY_DIRECT, 0), 60, 1);
    nbody serial = {};
    nbody_cuda gpu = {};
    nbody_desc d = {};
    context = "uploads, defaults";
    d.method = NBODY_DIRECT;
    CHECK_RESULT(nbody_build(&serial, &d, in.pos.data(), in.stride, nullptr, in.n), NBODY_OK);
    CHECK(serial.desc.levels > NBODY_KEY_LEVELS);
    CHECK_RESULT(nbody_cuda_upload(&gpu, &serial, stream), NBODY_OK);
    CHECK(gpu.device.sim.n == in.n);
    nbody_cuda_free(&gpu);
    nbody_free(&serial);
}

/* Each allocation fails once: the result is its code, and the next call works. */
static void test_out_of_memory()
{
    for (int k = 3; k < SETTINGS * 4; k += std::max(std::min(share / 3, 40 * thin), 1)) {
        int const setting = k % SETTINGS;
        nbody_stage const stage = all_stages[(k + k / SETTINGS) % 4];
        if (few_large && is_large(settings[setting])) continue;
        Input const in = plain_input(setting, 20, k),
            more = plain_input(setting, std::min(n_max, 90), k);
        context = std::string("out of memory: ") + stage_names[stage] + ", " +
            name_of(settings[setting]);
        std::string const name = context;
        long const calls = run_out_of_memory(in, more, stage, 0);
        CHECK(calls > 2);
        for (long fail = 1; fail <= calls; fail += share > 600 ? 3 : 1) {
            context = name + ", failure " + std::to_string(fail);
            run_out_of_memory(in, more, stage, fail);
        }
    }
}

/* A launch that fails comes back as a result, and the object can be used again afterwards. On a
   GPU: a capture that was made invalid refuses all further work; the emulator fails the launch we
   name. */
#ifdef CUDA_EMU
/* The last launches of an evaluation, which are for forces, are lost: no tree is left. */
static void check_lost_forces(int setting)
{
    Input const in = plain_input(setting, 40, 1);
    OnDevice const there(in);
    Both b;
    long const before = emu_launches();
    context = "launch errors: lost forces, " + name_of(settings[setting]);
    CHECK_RESULT(run_gpu(&b.gpu, in, NBODY_FAST, there), NBODY_OK);
    MUST(cudaStreamSynchronize(stream)); /* lazy streams launch only now */
    long const all = emu_launches() - before;
    for (long fail : {all, all - 1}) {
        emu_fail_launch(fail);
        CHECK_RESULT(run_gpu(&b.gpu, in, NBODY_FAST, there), NBODY_CUDA_ERROR);
        MUST(cudaStreamSynchronize(stream));
        emu_fail_launch(0);
        CHECK(!b.gpu.device.sim.frame && b.gpu.device.sim.n == 0);
        CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_NOT_BUILT);
    }
}
#endif

static void test_launch_errors()
{
#ifdef CUDA_EMU
    check_lost_forces(setting_like(NBODY_FORCE_NODES, 0));
#endif
    for (int k = 0; k < SETTINGS; k += share > 50 ? 9 : few_large ? 5 : 2) {
        nbody_stage const stage = all_stages[(k + 3) % 4];
        context = std::string("launch errors: ") + stage_names[stage] + ", " + name_of(settings[k]);
        Input const in = plain_input(k, 40, k);
        Both b;
#ifdef CUDA_EMU
        long const step = share > 50 ? 151 : 1; /* everything takes hundreds of launches */
        for (long fail = 1 + k % 7;; fail += step) {
            Everything all(in, k);
            long const before = emu_launches();
            emu_fail_launch(fail);
            nbody_result const r = all.run(&b.gpu, stage, NBODY_LEAPFROG);
            MUST(cudaStreamSynchronize(stream)); /* lazy streams launch only now */
            emu_fail_launch(0);
            if (r == NBODY_OK) {
                CHECK(fail > 3 && emu_launches() - before >= fail - step);
                break;
            }
            CHECK_RESULT(r, NBODY_CUDA_ERROR);
            CHECK(b.gpu.device.sim.cuda_error == (int32_t)cudaErrorLaunchOutOfResources);
            (void)cudaGetLastError();
        }
#else
        cudaGraph_t graph = nullptr;
        OnDevice const there(in);
        CHECK_RESULT(run_gpu(&b.gpu, in, stage, there), NBODY_OK);
        MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        /* no waiting here: it spoils the capture */
        CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_CUDA_ERROR);
        CHECK(b.gpu.device.sim.cuda_error != 0);
        CHECK_RESULT(run_gpu(&b.gpu, in, stage, there), NBODY_CUDA_ERROR);
        CHECK(b.gpu.device.sim.cuda_error != 0);
        CHECK(cudaStreamEndCapture(stream, &graph) != cudaSuccess);
        cudaGetLastError();
#endif
        check_works(&b, k, stage);
    }
}
