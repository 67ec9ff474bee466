/* checks.cu - a part of test_nbody.cu: what nbody_cuda_check tells: numbers that are not finite,
   negative masses, bodies too far apart, too few cells; growth by a factor.
   SPDX-License-Identifier: MIT OR Unlicense */

/* The object works again, and gives what it should. */
static void check_works(Both *b, int setting, nbody_stage stage)
{
    Input const in = plain_input(setting, 70, 3);
    OnDevice const there(in);
    Fields want;
    CHECK_RESULT(run_serial(&b->serial, in, &want), NBODY_OK);
    run_stage(b, in, stage, want, there);
}

/* Both sides refuse the same body. Whatever the device has written, the next evaluation is
   right. */
static void check_told(Both *b, const Input &in, nbody_stage stage, nbody_result expected)
{
    OnDevice const there(in);
    Fields want;
    CHECK_RESULT(run_serial(&b->serial, in, &want), expected);
    CHECK_RESULT(run_gpu(&b->gpu, in, stage, there), NBODY_OK);
    CHECK_RESULT(nbody_cuda_check(&b->gpu, nullptr, stream), expected);
    CHECK(b->gpu.device.sim.bad_id == b->serial.bad_id);
    /* and once more, when asked again */
    CHECK_RESULT(nbody_cuda_check(&b->gpu, nullptr, stream), expected);
}

/* Not finite: in x, in y, in a mass; of several the first is reported. No force is finite then, so
   that none can be taken for a result. */
static void test_not_finite()
{
    static const int wheres[] = {0, 1, 63, 64, 129};
    for (int k = 0; k < SETTINGS * 4; k++) {
        int const n = 130, setting = k % SETTINGS, i = wheres[k % 5];
        nbody_stage const stage = all_stages[(k + k / SETTINGS) % 4];
        if (!thinned((size_t)k + 60, share / 2, 6)) continue;
        Both b;
        Input in = plain_input(setting, n, k);
        real const bad = k % 3 == 0 ? not_a_number : k % 3 == 1 ? infinity : -infinity;
        context = "not finite, " + std::to_string(k) + ": " + stage_names[stage] + ", " +
            name_of(settings[setting]);
        std::string const name = context;
        for (int what = 0; what < 3; what++) {
            Input broken = in;
            context = name + ", what " + std::to_string(what);
            if (what < 2) broken.pos[(size_t)(2 * i + what)] = bad;
            else broken.mass[(size_t)i] = bad;
            if (i + 30 < n) broken.pos[(size_t)(2 * i + 40)] = not_a_number;
            check_told(&b, broken, stage, NBODY_NOT_FINITE);
            CHECK(b.gpu.device.sim.bad_id == i);
        }
        context = name + ", what it wrote";
        OnDevice const there(in);
        in.pos[(size_t)(2 * i)] = bad;
        there.pos.set(in.pos);
        CHECK_RESULT(run_gpu(&b.gpu, in, stage, there), NBODY_OK);
        std::vector<real> const acc = there.acc.get();
        for (size_t e = 0; e < acc.size(); e += 2)
            CHECK(!std::isfinite(acc[e]) || !std::isfinite(acc[e + 1]));
        check_works(&b, setting, stage);
    }
}

/* Mass centres have no centre where masses are negative; the other methods take them. */
static void test_bad_mass()
{
    for (int setting = 0; setting < SETTINGS; setting++) {
        nbody_stage const stage = all_stages[setting % 4];
        Both b;
        Input in = plain_input(setting, 130, setting);
        in.mass[80] = in.mass[127] = (real)-0.5;
        context = std::string("bad mass: ") + stage_names[stage] + ", " +
            name_of(settings[setting]);
        OnDevice const there(in);
        Fields want;
        nbody_result const expected = run_serial(&b.serial, in, &want);
        CHECK((expected == NBODY_OK) == (b.serial.desc.method == NBODY_DIRECT ||
            b.serial.desc.sources == NBODY_CHEBYSHEV));
        if (expected == NBODY_OK) {
            run_stage(&b, in, stage, want, there);
            continue;
        }
        check_told(&b, in, stage, NBODY_BAD_MASS);
        CHECK(b.gpu.device.sim.bad_id == 80);
        in.pos[200] = not_a_number; /* of body 100: the first of the bad ones is reported */
        check_told(&b, in, stage, NBODY_BAD_MASS);
        in.pos[81] = not_a_number;
        check_told(&b, in, stage, NBODY_NOT_FINITE);
        CHECK(b.gpu.device.sim.bad_id == 40);
        check_works(&b, setting, stage);
    }
}

/* Farther apart than the largest number. */
static void test_too_large()
{
    double const huge = is_float ? 3e38 : 1.5e308;
    for (int setting = 0; setting < SETTINGS; setting += heavy ? 5 : 1) {
        nbody_stage const stage = all_stages[(setting + 1) % 4];
        Both b;
        Input in = plain_input(setting, 65, 1);
        in.pos[3] = (real)huge;
        in.pos[65] = (real)-huge;
        context = std::string("too large: ") + stage_names[stage] + ", " +
            name_of(settings[setting]);
        OnDevice const there(in);
        Fields want;
        nbody_result const expected = run_serial(&b.serial, in, &want);
        /* the square of a float build is in double */
        if (!is_float) CHECK_RESULT(expected, NBODY_TOO_LARGE);
        if (expected == NBODY_OK) {
            CHECK_RESULT(run_gpu(&b.gpu, in, stage, there), NBODY_OK);
            CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
        } else check_told(&b, in, stage, expected);
        check_works(&b, setting, stage);
    }
}

/* Less room for cells than the tree needs: told, with the number that is enough; and forces are
   those of a tree of fewer cells. */
static void run_cells_full(int setting, nbody_stage stage, Shape shape, int32_t room, int levels)
{
    Both b;
    Case c = {};
    c.setting = setting;
    c.shape = shape;
    c.masses = ONES;
    c.leaf = 4;
    c.levels = levels;
    c.soft = 1;
    c.n = std::min(n_max, 150);
    Input in = input_of(c, setting);
    OnDevice const there(in);
    nbody_frame frame = {};
    Fields want;
    CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
    if (!b.serial.cell || b.serial.frame->cells <= room) return;
    in.desc.max_cells = room;
    CHECK_RESULT(run_gpu(&b.gpu, in, stage, there), NBODY_OK);
    CHECK_RESULT(nbody_cuda_check(&b.gpu, &frame, stream), NBODY_CELLS_FULL);
    CHECK(frame.cells_needed > room && frame.cells_needed > frame.cells &&
        frame.cells <= room + 4 && frame.cells >= 1);
    Truth const t = truth_of(in, there.acc.get(), 1);
    CHECK_AT_MOST(t.share, 4 * settings[setting].bar.share + 3e-6);
    CHECK_RESULT(nbody_cuda_download(&b.copy, &b.gpu, stream), NBODY_OK);
    CHECK_RESULT(nbody_validate(&b.copy), NBODY_OK);
    for (int tries = 0; tries < 20; tries++) {
        in.desc.max_cells = frame.cells_needed;
        CHECK_RESULT(run_gpu(&b.gpu, in, stage, there), NBODY_OK);
        nbody_result const r = nbody_cuda_check(&b.gpu, &frame, stream);
        if (r == NBODY_OK) break;
        CHECK(tries == 0 && "the number needed is enough");
    }
    CHECK(frame.cells == b.serial.frame->cells);
    compare(&b, in, stage, want, there);
}

static void test_cells_full()
{
    static const int32_t rooms[] = {1, 5, 21, 60};
    context = "cells full, 5 levels";
    run_cells_full(setting_like(NBODY_FORCE_NODES, 0), NBODY_FAST, CLUMPS, 21, 5);
    for (int k = 0; k < SETTINGS * 4 * 4; k++) {
        if (!thinned((size_t)k + 70, share, 40) || (few_large && is_large(settings[k % SETTINGS])))
            continue;
        nbody_stage const stage = all_stages[k / SETTINGS % 4];
        Shape const shape = (Shape)(k % 3 == 0 ? CLUMPS : k % 3 == 1 ? UNIFORM : TWO_SCALES);
        int32_t const room = rooms[k / SETTINGS / 4 % 4];
        context = std::string("cells full, room for ") + std::to_string(room) + ", " +
            stage_names[stage] + ", shape "
                  + std::to_string(shape) + ", " + name_of(settings[k % SETTINGS]);
        run_cells_full(k % SETTINGS, stage, shape, room, 0);
    }
}

/* n rises by one with every build: what is allocated follows its logarithm, on both sides. A
   reserve takes what it needs. */
static void test_growth()
{
    int const most = n_max < 260 ? 150 : 600, growths = 8;
    size_t const body = sizeof(int32_t) + 4 * sizeof(real); /* what is kept of each */
    for (nbody_method method : {NBODY_DIRECT, NBODY_VIRTUAL_PARTICLES, NBODY_FORCE_NODES}) {
        Input const in = plain_input(setting_like(method, 0), most, 1);
        OnDevice const there(in);
        nbody_desc d = in.desc;
        Heap h = {};
        Both b;
        int grown = 0;
        context = "growth: method " + std::to_string((int)method);
        d.cuda_allocator = allocator_of(&h);
        for (int n = 1; n <= most; n = next_size(n, most)) {
            int64_t const had = nbody_bytes(&b.copy);
            CHECK_RESULT(nbody_cuda_build(&b.gpu, &d, there.pos.p, 0, there.mass.p, n, stream),
                NBODY_OK);
            if (n > 25 && n < most) continue;
            CHECK_RESULT(nbody_cuda_accelerations(&b.gpu, &d, there.pos.p, 0, there.mass.p, n,
                there.acc.p, stream), NBODY_OK);
            CHECK_RESULT(nbody_cuda_download(&b.copy, &b.gpu, stream), NBODY_OK);
            grown += nbody_bytes(&b.copy) > had;
        }
        CHECK(h.calls <= (NBODY_BLOCKS + NBODY_CUDA_SCRATCH) * growths && grown <= 20);
        CHECK_RESULT(nbody_validate(&b.copy), NBODY_OK);
        nbody_cuda_free(&b.gpu);
        for (int n = 100; n < 102; n++) {
            CHECK_RESULT(nbody_cuda_reserve(&b.gpu, &d, n, stream), NBODY_OK);
            CHECK(blocks_of((size_t)n * body, b.gpu.block) == 1);
        }
        h.fail_at = h.calls + 1; /* no memory to grow ahead: the exact size will do */
        CHECK_RESULT(nbody_cuda_build(&b.gpu, &d, there.pos.p, 0, there.mass.p, 102, stream),
            NBODY_OK);
        CHECK(h.failed == 1 && blocks_of(102 * body, b.gpu.block) == 1);
        CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
        nbody_cuda_free(&b.gpu);
        CHECK(h.live == 0 && h.live_bytes == 0);
    }
}

#ifdef CUDA_EMU
/* What says that it waits for the stream does so, also where there are no bodies. The emulator's
   stream works when it is waited for. */
static void test_waits()
{
    int const lazy = emu_options()->lazy;
    Device<char> room(64);
    context = "waits";
    emu_options()->lazy = 1;
    for (int32_t n = 0; n < 2; n++) {
        Input const in = plain_input(setting_like(NBODY_DIRECT, 0), 1, 1);
        OnDevice const there(in);
        Both b;
        CHECK_RESULT(nbody_cuda_build(&b.gpu, nullptr, there.pos.p, 0, nullptr, n, stream),
            NBODY_OK);
        CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
        CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
        CHECK(cudaStreamQuery(stream) == cudaSuccess && "nbody_cuda_check has waited");
        MUST(cudaMemsetAsync(room.p, 1, room.count, stream));
        CHECK_RESULT(nbody_cuda_download(&b.copy, &b.gpu, stream), NBODY_OK);
        CHECK(cudaStreamQuery(stream) == cudaSuccess && "nbody_cuda_download has waited");
    }
    emu_options()->lazy = lazy;
}
#endif
