/* law.cu - a part of test_nbody.cu: NBODY_FUNCTION, with the functions of own_law.h.
   SPDX-License-Identifier: MIT OR Unlicense */

static Input own_law_input(int setting, int k, int n)
{
    static int other;
    Case c = {};
    c.setting = setting;
    c.masses = takes_signs(settings[setting]) ? BOTH_SIGNS : ONES;
    c.shape = k % 2 ? CLUMPS : TWICE;
    c.levels = k / 2 ? 4 : 0;
    c.leaf = c.levels ? 0 : 4;
    c.soft = k % 2;
    c.n = n;
    context = "own law: " + name_of(c);
    Input in = input_of(c, setting);
    in.desc.law = NBODY_FUNCTION;
    in.desc.function = {force, potential, k % 4 < 2 ? nullptr : &other};
    return in;
}

static void test_own_law()
{
    for (int setting = 0; setting < SETTINGS; setting++)
        for (int k = 0; k < 4; k++) {
            Setting const &s = settings[setting];
            int const every = share > 400 ? 17 : share > 50 ? 5 : 1;
            if ((few_large && is_large(s)) || (k + setting) % every != 0) continue;
            if (s.method == NBODY_VIRTUAL_PARTICLES && s.order == 2) continue;
            run_with_points(own_law_input(setting, k, std::min(n_max, share > 50 ? 60 : 130)),
                true);
        }
}

static double other_force(double d, void *) { return d; }

/* Only the functions that the kernels were compiled with; and no potential without one. */
static void test_own_law_refused()
{
    Both b;
    Input const in = own_law_input(setting_like(NBODY_FORCE_NODES, 0), 0, 40);
    OnDevice const there(in);
    Device<real> const vel(80);
    nbody_bodies bodies = {there.pos.p, vel.p, there.acc.p, nullptr, 40, 0};
    nbody_desc d = in.desc;
    for (int wrong = 0; wrong < 2; wrong++) {
        d.function = in.desc.function;
        if (wrong) d.function.potential = other_force;
        else d.function.force = other_force;
        CHECK_RESULT(nbody_cuda_reserve(&b.gpu, &d, 40, stream), NBODY_BAD_OPTION);
        CHECK_RESULT(nbody_cuda_build(&b.gpu, &d, there.pos.p, 0, nullptr, 40, stream),
            NBODY_BAD_OPTION);
        CHECK_RESULT(nbody_cuda_step(&b.gpu, &d, &bodies, 1, NBODY_EULER, stream),
            NBODY_BAD_OPTION);
        CHECK(b.gpu.device.sim.frame == nullptr);
    }
    d.function = {force, nullptr, nullptr};
    CHECK_RESULT(nbody_cuda_fields(&b.gpu, &d, there.pos.p, 0, nullptr, 40, there.acc.p,
        there.potential.p, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_accelerations(&b.gpu, &d, there.pos.p, 0, nullptr, 40, there.acc.p,
        stream), NBODY_OK);
    CHECK_RESULT(nbody_cuda_fields_again(&b.gpu, nullptr, nullptr, there.potential.p, stream),
        NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_fields_at(&b.gpu, there.pos.p, 0, 40, nullptr, there.potential.p,
        stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_fields_again(&b.gpu, nullptr, there.acc.p, nullptr, stream), NBODY_OK);
}
