/* large.cu - a part of test_nbody.cu: many blocks at work at once, which the emulator runs one
   after another.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Many blocks at work at once: what the emulator runs one after another. */
static void test_large()
{
#ifdef CUDA_EMU
    int const n = heavy ? 300 : share > 200 ? 500 : 1500, every = heavy ? 9 : 4;
#else
    int const n = share > 40 ? 6007 : share > 8 ? 20011 : share > 1 ? 100003 : 1000003, every = 1;
#endif
    for (int setting = 1; setting <= SETTINGS; setting += every)
        for (Shape shape : {UNIFORM, CLUMPS}) {
            Case c = {};
            if (few_large && shape != (setting / 4 % 2 ? CLUMPS : UNIFORM)) continue;
            c.setting = setting % SETTINGS;
            c.shape = shape;
            c.masses = WILD;
            c.law = (nbody_law)(setting % 2);
            c.soft = 1;
            c.outputs = setting % 3 ? ACCELERATIONS : ALL_OUTPUTS;
            c.n = settings[c.setting].method == NBODY_DIRECT ? std::min(n, 20011) : n;
            context = "large: " + name_of(c);
            Both b;
            Input const in = input_of(c, setting);
            OnDevice const there(in);
            Fields want;
            CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
            run_stage(&b, in, NBODY_FAST, want, there);
            run_stage(&b, in, exact_stages[1 + (setting + shape) % 2], want, there);
        }
}

/* Potentials of some bodies among many, of the law that is usual. */
static void check_large_potentials(const Case &c)
{
    Both b;
    Input const in = input_of(c, c.n);
    OnDevice const there(in);
    CHECK_RESULT(run_gpu(&b.gpu, in, NBODY_FAST, there), NBODY_OK);
    std::vector<real> const got = there.potential.get();
    for (int i = 0; i < in.n; i += 500) {
        double want = 0;
        for (int k = 0; k < in.n; k++) {
            const real *p = point_of(in, i), *q = point_of(in, k);
            double const r = std::hypot((double)q[0] - (double)p[0], (double)q[1] - (double)p[1]);
            if (k != i) want -= mass_of(in, k) / r;
        }
        CHECK(within((double)got[(size_t)i], want, -1e-4 * want));
    }
}

/* Direct sums of so many bodies that every processor has several of them for each thread. */
static void test_large_direct()
{
    int device = 0, processors = 1;
    bool const once = few_large && share > 200; /* n^2 terms */
    MUST(cudaGetDevice(&device));
    MUST(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    for (int k = 0; k < (once || (share > 4 && !few_large) ? 1 : 4); k++) {
        Case c = {};
        c.law = (nbody_law)(k % 2);
        c.outputs = k / 2 ? ACCELERATIONS : ALL_OUTPUTS;
        c.masses = ONES;
        c.n = std::min(processors * 2048, 300000) + 5;
        context = "large direct: " + name_of(c);
        if (once) check_large_potentials(c);
        else if (few_large) run_fast(c);
        else { /* the serial sum would take minutes */
            Both b;
            check_truth(&b, input_of(c, k), settings[0].bar);
        }
    }
}
