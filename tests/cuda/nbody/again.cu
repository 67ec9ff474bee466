/* again.cu - a part of test_nbody.cu: other masses for the bodies of a tree.
   SPDX-License-Identifier: MIT OR Unlicense */

/* On the tree of other masses, the bits of a build of its own; twice, for what is left behind. */
static void check_again(const Input &in, nbody_stage stage)
{
    Both b, fresh;
    Input first = in;
    first.outputs = ACCELERATIONS;
    for (real &m : first.mass) m = (real)3000 * (m < 0 ? -m : m) + 1;
    OnDevice const before(first), there(in), want(in);
    CHECK_RESULT(run_gpu(&fresh.gpu, in, stage, want), NBODY_OK);
    CHECK_RESULT(run_gpu(&b.gpu, first, stage, before), NBODY_OK);
    for (int again = 0; again < 2; again++) {
        CHECK_RESULT(nbody_cuda_fields_again(&b.gpu, there.masses(in), there.acc.p,
            there.potential.p, stream), NBODY_OK);
        CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
        CHECK(same_bits(there.acc.get(), want.acc.get()));
        CHECK(same_bits(there.potential.get(), want.potential.get()));
    }
    CHECK_RESULT(nbody_cuda_download(&fresh.copy, &fresh.gpu, stream), NBODY_OK);
    CHECK_RESULT(nbody_cuda_download(&b.copy, &b.gpu, stream), NBODY_OK);
    check_tree(fresh.copy, b.copy);
    check_sources_exactly(fresh.copy, b.copy);
    if (stage == NBODY_FAST) return;
    std::vector<real> host = unset((size_t)in.n * step_of(in.desc.acc_stride, 2));
    CHECK_RESULT(nbody_fields_again(&b.copy, masses_or_null(in), host.data(), nullptr), NBODY_OK);
    CHECK(in.desc.acc_stride != 0 || same_bits(host, want.acc.get()));
}

/* Two sets: each has the bits of a call of its own, and the second stays. */
static void check_sets(const Input &in, nbody_stage stage)
{
    Both b, fresh;
    Input two = in, second = in;
    size_t const n = (size_t)in.n, step = step_of(in.desc.acc_stride, 2);
    for (real &m : second.mass) m = (real)3000 * (m < 0 ? -m : m) + 1;
    two.mass.insert(two.mass.end(), second.mass.begin(), second.mass.end());
    two.n = 2 * in.n; /* room for both */
    OnDevice const there(two), first(in), other(second);
    CHECK_RESULT(run_gpu(&b.gpu, in, stage, first), NBODY_OK);
    CHECK_RESULT(run_gpu(&fresh.gpu, second, stage, other), NBODY_OK);
    CHECK_RESULT(nbody_cuda_fields_sets(&b.gpu, 2, there.mass.p, there.acc.p, there.potential.p,
        stream), NBODY_OK);
    CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
    std::vector<real> const acc = there.acc.get(), potential = there.potential.get();
    CHECK(same_bits(acc.data(), first.acc.get().data(), n * step));
    CHECK(same_bits(acc.data() + n * step, other.acc.get().data(), n * step));
    CHECK(same_bits(potential.data(), first.potential.get().data(), n));
    CHECK(same_bits(potential.data() + n, other.potential.get().data(), n));
    CHECK_RESULT(nbody_cuda_download(&fresh.copy, &fresh.gpu, stream), NBODY_OK);
    CHECK_RESULT(nbody_cuda_download(&b.copy, &b.gpu, stream), NBODY_OK);
    check_tree(fresh.copy, b.copy);
    check_sources_exactly(fresh.copy, b.copy);
}

static void test_again()
{
    for (int setting = 0; setting < SETTINGS; setting++) {
        if (few_large && is_large(settings[setting])) continue;
        Case c = {};
        c.setting = setting;
        c.law = (nbody_law)(setting % 2);
        c.masses = takes_signs(settings[setting]) ? BOTH_SIGNS : ONES;
        c.n = std::min(n_max, few_large ? 50 : 200);
        c.leaf = 5;
        Input in = input_of(c, setting);
        in.mass.resize((size_t)in.n, 1);
        in.outputs = ALL_OUTPUTS;
        context = "again: " + name_of(c);
        for (nbody_stage stage : all_stages) /* the emulator: one each */
            if (!few_large || (int)stage == setting % 4) {
                if (heavy && setting % 3 > 0) continue;
                check_again(in, stage);
                if (!in.mass.empty() && in.desc.mass_stride == 0) check_sets(in, stage);
            }
    }
}

/* Refused like masses of a build; good ones do not hide it before the next build. */
static void test_again_bad_mass()
{
    for (int bad = 0; bad < 2; bad++) {
        Both b;
        Input in = plain_input(setting_like(NBODY_VIRTUAL_PARTICLES, 1), 40, 1);
        nbody_result const want = bad ? NBODY_BAD_MASS : NBODY_NOT_FINITE;
        in.mass.assign(40, 1);
        context = "again, bad mass";
        CHECK_RESULT(nbody_cuda_fields_again(nullptr, nullptr, nullptr, nullptr, stream),
            NBODY_BAD_ARGUMENT);
        CHECK_RESULT(nbody_cuda_fields_again(&b.gpu, nullptr, nullptr, nullptr, stream),
            NBODY_NOT_BUILT);
        CHECK_RESULT(nbody_cuda_fields_sets(&b.gpu, -1, nullptr, nullptr, nullptr, stream),
            NBODY_BAD_ARGUMENT);
        OnDevice const good(in);
        in.mass[7] = bad ? -1 : not_a_number;
        OnDevice const there(in);
        CHECK_RESULT(run_gpu(&b.gpu, in, NBODY_FAST, good), NBODY_OK);
        CHECK_RESULT(nbody_cuda_fields_again(&b.gpu, there.mass.p, there.acc.p, nullptr, stream),
            NBODY_OK);
        CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), want);
        CHECK(b.gpu.device.sim.bad_id == 7);
        CHECK_RESULT(nbody_cuda_fields_again(&b.gpu, good.mass.p, there.acc.p, nullptr, stream),
            NBODY_OK);
        CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), want);
        CHECK_RESULT(run_gpu(&b.gpu, in, NBODY_FAST, good), NBODY_OK);
        CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
    }
}
