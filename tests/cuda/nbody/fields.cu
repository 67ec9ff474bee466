/* fields.cu - a part of test_nbody.cu: all cases in all stages; full and nearly empty chunks, no
   bodies, every kernel, one object with many evaluations.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Bodies for a case: where levels are many or all lie on each other, fewer. */
static int size_of(Shape shape, size_t k)
{
    int const sizes[] = {n_max, n_max / 2 + 1, 129, n_max - 1, 257, 64};
    int const n = std::min(sizes[scattered(k + 7) % 6], n_max);
    return shape == EQUAL ? std::min(n, 70) : n;
}

static void test_fields()
{
    for (size_t k = 0; k < case_count; k++) {
        if (!thinned(k, share, 80)) continue;
        Case c = case_of(k);
        c.n = size_of(c.shape, k);
        context = "fields: " + name_of(c);
        Both b;
        run_stages(&b, input_of(c, (int)k));
    }
}

/* Chunks that are full, nearly full and just begun; hardly any bodies. */
static void test_few()
{
    static const int sizes[] = {0, 1, 2, 3, 4, 31, 32, 33, 63, 64, 65, 127, 128, 129};
    for (size_t k = 0; k < case_count; k++)
        for (int n : sizes) {
            Case c = case_of(k);
            if (!thinned(16 * k + (size_t)n, 14 * share, 500)) continue;
            c.n = n;
            context = "few: " + name_of(c);
            Both b;
            Input const in = input_of(c, (int)k);
            run_stages(&b, in);
            if (n == 1 && b.serial.n == 1 && c.outputs == ALL_OUTPUTS) {
                OnDevice const there(in);
                CHECK_RESULT(run_gpu(&b.gpu, in, NBODY_FAST, there), NBODY_OK);
                std::vector<real> const acc = there.acc.get();
                CHECK(acc[0] == 0 && acc[1] == 0 && there.potential.get()[0] == 0);
            }
        }
}

/* No bodies, no points, no desc, no outputs: nothing on the device is touched that is not there. */
static void test_empty()
{
    for (nbody_stage stage : all_stages) {
        Both b;
        Device<nbody_error> const d_error(1);
        Device<nbody_energies> const d_energies(1);
        nbody_bodies none = {};
        nbody_desc d = {};
        context = std::string("empty: ") + stage_names[stage];
        d.stage = stage;
        d.method = stage % 2 ? NBODY_DIRECT : NBODY_FORCE_NODES;
        for (int again = 0; again < 2; again++) {
            CHECK_RESULT(nbody_cuda_reserve(&b.gpu, &d, 0, stream), NBODY_OK);
            CHECK_RESULT(nbody_cuda_build(&b.gpu, &d, nullptr, 0, nullptr, 0, stream), NBODY_OK);
            CHECK_RESULT(nbody_cuda_accelerations(&b.gpu, &d, nullptr, 0, nullptr, 0, nullptr,
                stream), NBODY_OK);
            CHECK_RESULT(nbody_cuda_fields(&b.gpu, &d, nullptr, 0, nullptr, 0, nullptr, nullptr,
                stream), NBODY_OK);
            CHECK_RESULT(nbody_cuda_fields_at(&b.gpu, nullptr, 0, 0, nullptr, nullptr, stream),
                NBODY_OK);
            CHECK_RESULT(nbody_cuda_estimate(&b.gpu, nullptr, 10, 1, d_error.p, stream), NBODY_OK);
            CHECK(d_error.get()[0].samples == 0 && d_error.get()[0].mean == 0);
            CHECK_RESULT(nbody_cuda_step(&b.gpu, &d, &none, (real)0.1, NBODY_LEAPFROG, stream),
                NBODY_OK);
            CHECK_RESULT(nbody_cuda_step(&b.gpu, &d, &none, (real)0.1, NBODY_EULER, stream),
                NBODY_OK);
            CHECK_RESULT(nbody_cuda_energy(&b.gpu, &none, nullptr, d_energies.p, stream), NBODY_OK);
            CHECK(d_energies.get()[0].mass == 0 && d_energies.get()[0].centre[0] == 0);
            CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
            CHECK_RESULT(nbody_cuda_download(&b.copy, &b.gpu, stream), NBODY_OK);
            CHECK(b.copy.n == 0);
            Input const in = plain_input(0, 40, 1);
            OnDevice const there(in);
            CHECK_RESULT(nbody_cuda_fields(&b.gpu, nullptr, there.pos.p, 0, nullptr, 40, nullptr,
                nullptr, stream), NBODY_OK);
            const real *const pos = there.pos.p, *const mass = there.mass.p;
            CHECK_RESULT(nbody_cuda_accelerations(&b.gpu, nullptr, pos, 0, mass, 40, there.acc.p,
                stream), NBODY_OK);
            CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
            CHECK(b.gpu.device.sim.n == 40 && b.gpu.device.sim.desc.method == NBODY_DIRECT);
        }
    }
}

/* Every method in every stage with every law, whatever --share is: no kernel may be left out. */
static void test_methods()
{
    for (int setting = 0; setting < SETTINGS; setting++)
        for (int k = 0; k < 4; k++) {
            Case c = {};
            /* the emulator's slow modes */
            if (share > 400 && (k != setting % 4 || (heavy && setting % 4 != 1))) continue;
            c.setting = setting;
            c.law = (nbody_law)((setting + k) % 2);
            c.masses = takes_signs(settings[setting]) ? BOTH_SIGNS : ONES;
            c.shape = k % 2 ? CLUMPS : UNIFORM;
            c.levels = k / 2 ? 4 : 0;
            c.leaf = c.levels ? 0 : 5;
            c.soft = k % 2;
            c.n = std::min(n_max, 130);
            if (few_large && is_large(settings[setting])) { /* one small table each */
                if (k > 0) continue;
                c.law = NBODY_INVERSE_SQUARE;
            } else if (few_large && (k + setting) % (share > 50 ? 4 : 2) != 0) continue;
            context = "methods: " + name_of(c);
            Both b;
            run_stages(&b, input_of(c, setting));
        }
}

static void run_fast(const Case &c)
{
    Both b;
    Input const in = input_of(c, c.n);
    OnDevice const there(in);
    Fields want;
    CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
    run_stage(&b, in, NBODY_FAST, want, there);
}

/* The kernels of NBODY_FAST are made for each law, with potentials and without, and some for one
   order. */
static void test_fast()
{
    static const int with_kernels[] = {0, 1, 4, 7, 9, 14};
    for (int setting : with_kernels)
        for (int k = 0; k < 4; k++) {
            Case c = {};
            c.setting = setting;
            c.law = (nbody_law)(k % 2);
            c.outputs = k / 2 ? ACCELERATIONS : ALL_OUTPUTS;
            c.leaf = 5;
            c.n = 70;
            context = "fast: " + name_of(c);
            run_fast(c);
        }
}

/* Potentials without accelerations, and neither. */
static void test_outputs()
{
    for (int method = NBODY_DIRECT; method <= NBODY_FORCE_NODES; method++) {
        Both b;
        Case c = {};
        c.setting = setting_like((nbody_method)method, method == NBODY_VIRTUAL_PARTICLES);
        c.outputs = POTENTIALS;
        c.n = 40;
        context = "outputs: " + name_of(c);
        Input const in = input_of(c, method);
        run_stages(&b, in);
        OnDevice const there(in);
        nbody_desc const &d = in.desc;
        const real *const pos = there.pos.p;
        CHECK_RESULT(nbody_cuda_fields(&b.gpu, &d, pos, 0, nullptr, c.n, nullptr, nullptr, stream),
            NBODY_OK);
        CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
    }
}

/* One object, used again with more or fewer bodies, by other methods, in other stages: no data of
   the last evaluation is left. */
static void test_rebuild()
{
    Both b;
    wl_random r = wl_seed(77);
    for (int step = 0; step < std::max(400 / share, 12); step++) {
        Case c = case_of(wl_below(&r, (uint32_t)case_count));
        c.n = (int)wl_below(&r, (uint32_t)(step % 10 == 3 ? n_max : n_max / 3 + 1)) +
            (step % 17 != 5);
        if (c.shape == EQUAL) c.n = std::min(c.n, 30);
        context = "rebuild, step " + std::to_string(step) + ": " + name_of(c);
        Input const in = input_of(c, step);
        OnDevice const there(in);
        Fields want;
        if (step % 40 == 39) nbody_cuda_free(&b.gpu), nbody_free(&b.serial), nbody_free(&b.copy);
        CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
        run_stage(&b, in, all_stages[wl_below(&r, 4)], want, there);
    }
    nbody_cuda_free(&b.gpu);
    nbody_cuda_free(&b.gpu);
    nbody_cuda_free(nullptr);
    CHECK(b.gpu.device.sim.frame == nullptr && b.gpu.device.sim.n == 0);
}
