/* truth.cu - a part of test_nbody.cu: the error against the direct sum in double stays below the
   bars of the serial part.
   SPDX-License-Identifier: MIT OR Unlicense */

/* |dF| / |F| on average, and the largest |dF| / S, over every `every`-th body. */
struct Truth {
    double mean, share;
};

static void direct_sum(const Input &in, int i, double *acc, double *size)
{
    double const g = in.desc.gravity == 0 ? 1 : (double)in.desc.gravity,
        soft = (double)in.desc.softening;
    const real *const at = point_of(in, i);
    acc[0] = acc[1] = *size = 0;
    for (int j = 0; j < in.n; j++) {
        double const dx = (double)point_of(in, j)[0] - (double)at[0],
            dy = (double)point_of(in, j)[1] - (double)at[1];
        double const square = dx * dx + dy * dy + soft * soft, d = std::sqrt(square);
        if (dx == 0 && dy == 0) continue;
        double const factor = g * mass_of(in,
            j) / (in.desc.law == NBODY_INVERSE ? square : square * d);
        acc[0] += factor * dx;
        acc[1] += factor * dy;
        *size += std::fabs(factor) * std::sqrt(dx * dx + dy * dy);
    }
}

static Truth truth_of(const Input &in, const std::vector<real> &acc, int every)
{
    Truth t = {0, 0};
    int samples = 0;
    for (int i = 0; i < in.n; i += every, samples++) {
        double want[2], size;
        const real *const got = &acc[(size_t)i * step_of(in.desc.acc_stride, 2)];
        direct_sum(in, i, want, &size);
        double const error = std::hypot((double)got[0] - want[0], (double)got[1] - want[1]),
            length = std::hypot(want[0], want[1]);
        t.mean += length > 0 ? error / length : 0;
        t.share = std::max(t.share, size > 0 ? error / size : error > 0 ? HUGE_VAL : 0);
    }
    t.mean /= std::max(samples, 1);
    return t;
}

/* What is demanded of these four at 1000, 10,000, 100,000 and a million bodies. */
static const struct { nbody_method method; int order; nbody_sources sources; Bar bar[4];
    } demanded[] = {
    {NBODY_VIRTUAL_PARTICLES, 1, NBODY_SOURCES_AUTO,
    {{1.5e-4, 5e-4}, {3e-4, 2e-4}, {4.2e-4, 2e-4}, {5.5e-4, 2e-4}}},
    {NBODY_FORCE_NODES, 1, NBODY_SOURCES_AUTO,
    {{2.6e-3, 8e-3}, {1.5e-3, 3e-3}, {1.6e-3, 2.4e-3}, {1.9e-3, 2e-3}}},
    {NBODY_FORCE_NODES, 4, NBODY_MASS_CENTRES,
    {{1.3e-3, 3.2e-3}, {7e-4, 1.1e-3}, {5.5e-4, 6e-4}, {5.5e-4, 4.5e-4}}},
    {NBODY_FORCE_NODES, 8, NBODY_SOURCES_AUTO,
    {{2.4e-6, 1.3e-5}, {1.1e-6, 5e-6}, {8e-7, 1.5e-6}, {3e-7, 3e-7}}},
};

static Bar bar_of(const Setting &s, int size)
{
    for (auto &d : demanded)
        if (d.method == s.method && d.order == s.order && d.sources == s.sources)
            return d.bar[size];
    return s.bar;
}

static void check_truth(Both *b, const Input &in, const Bar &bar)
{
    OnDevice const there(in);
    double const rounding = is_float ? 3e-6 : 0;
    for (nbody_stage stage : {NBODY_FAST, NBODY_SHARED_MEMORY}) {
        CHECK_RESULT(run_gpu(&b->gpu, in, stage, there), NBODY_OK);
        CHECK_RESULT(nbody_cuda_check(&b->gpu, nullptr, stream), NBODY_OK);
        Truth const t = truth_of(in, there.acc.get(), 1 + in.n / 700);
        CHECK_AT_MOST(t.mean, bar.mean + rounding);
        CHECK_AT_MOST(t.share, bar.share + rounding);
    }
}

static void test_truth()
{
    static const int sizes[] = {1000, 10000, 100000, 1000000}, levels[] = {4, 5, 6, 8};
    for (int k = 0; k < SETTINGS * 4; k++) {
        int const size = k / SETTINGS;
        Setting const &s = settings[k % SETTINGS];
        Case c = {};
        if (few_large && k % (share > 400 ? 6 : 2)) continue; /* the emulator is slow */
        if (few_large && (size > 0 || (heavy && k % 3) || (is_large(s) && (heavy || s.order > 8))))
            continue;
        if (size == 3 && (share > 1 || s.method == NBODY_DIRECT)) continue;
        c.setting = k % SETTINGS;
        c.levels = levels[size] + (size < 3 ? k % 2 : s.order == 8 ? -1 : 0);
        c.masses = k % 3 ? ONES : NO_MASSES;
        c.n = heavy ? 300 : sizes[size];
        context = "truth: " + name_of(c);
        Both b;
        check_truth(&b, input_of(c, k), bar_of(s, size));
    }
}
