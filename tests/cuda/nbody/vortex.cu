/* vortex.cu - a part of test_nbody.cu: NBODY_VORTEX and both cores, in all stages.
   SPDX-License-Identifier: MIT OR Unlicense */

static Input vortices(int setting, int k, int n)
{
    static const double widths[] = {0.004, 0.02, 0.3, 0};
    Case c = {};
    c.setting = setting;
    c.law = NBODY_VORTEX;
    c.masses = takes_signs(settings[setting]) ? BOTH_SIGNS : ONES;
    c.shape = k % 2 ? CLUMPS : TWICE;
    c.levels = k / 4 ? 5 : 0;
    c.leaf = c.levels ? 0 : 4;
    c.n = n;
    context = "vortices: " + name_of(c);
    Input in = input_of(c, setting);
    in.desc.core = k / 2 % 2 ? NBODY_PLUMMER : NBODY_GAUSSIAN;
    in.desc.softening = (real)widths[(k + setting) % 4];
    return in;
}

static bool is_gaussian(const Input &in)
{
    return in.desc.core == NBODY_GAUSSIAN && in.desc.softening > 0;
}

static nbody_error estimate_on_gpu(Both *b, const OnDevice &there)
{
    Device<nbody_error> const d_error(1);
    CHECK_RESULT(nbody_cuda_estimate(&b->gpu, there.acc.p, 20, 1, d_error.p, stream), NBODY_OK);
    return d_error.get()[0];
}

/* All stages, and points; `slow`: NBODY_FAST has no kernels, and gives the bits of the serial
   code. */
static void run_with_points(const Input &in, bool slow)
{
    static int turn = 0;
    Both b;
    OnDevice const there(in);
    Fields want;
    nbody_error error;
    CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
    for (nbody_stage stage : all_stages) {
        if (stage != NBODY_FAST || !slow) {
            run_stage(&b, in, stage, want, there);
        } else {
            CHECK_RESULT(run_gpu(&b.gpu, in, stage, there), NBODY_OK);
            CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
            compare(&b, in, NBODY_SHARED_MEMORY, want, there);
        }
        int const m = turn++ % 3 ? 33 : many_points;
        std::vector<real> const points = points_for(in, *b.serial.frame, m, (int)stage);
        check_points(&b, in, points, 0, ALL_OUTPUTS);
    }
    nbody_error const found = estimate_on_gpu(&b, there);
    CHECK_RESULT(nbody_estimate(&b.serial, want.acc.data(), 20, 1, &error), NBODY_OK);
    CHECK_AT_MOST(std::fabs(found.share - error.share), fast_share);
    CHECK_AT_MOST(found.share, 0.3);
}

static void test_vortices()
{
    for (int setting = 0; setting < SETTINGS; setting++)
        for (int k = 0; k < 8; k++) {
            if (few_large && is_large(settings[setting])) continue;
            int const every = share > 600 ? 24 : share > 400 ? 8 : share > 50 ? 4 : 1;
            if ((k + setting) % every != 0) continue;
            Input const in = vortices(setting, k, std::min(n_max, share > 50 ? 60 : 130));
            run_with_points(in, is_gaussian(in));
        }
}

/* The number of cells that is asked for knows how deep a core lets them be. */
static void test_vortex_cells()
{
    Both b;
    Fields want;
    nbody_frame frame;
    Input in = vortices(setting_like(NBODY_FORCE_NODES, 0), 1, std::min(n_max, 130));
    in.desc.softening = (real)0.02;
    in.desc.leaf = 1;
    CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
    in.desc.max_cells = 8;
    OnDevice const there(in);
    CHECK_RESULT(run_gpu(&b.gpu, in, NBODY_FAST, there), NBODY_OK);
    CHECK_RESULT(nbody_cuda_check(&b.gpu, &frame, stream), NBODY_CELLS_FULL);
    CHECK(frame.cells_needed == b.serial.frame->cells && frame.deepest == b.serial.frame->deepest);
    CHECK(frame.deepest < NBODY_MAX_LEVELS && frame.core2 == b.serial.frame->core2);
}

static void test_vortices_are_not_moved()
{
    Both b;
    Input const in = vortices(0, 0, 10);
    OnDevice const there(in);
    Device<real> const vel(20);
    nbody_bodies bodies = {there.pos.p, vel.p, there.acc.p, nullptr, 10, 0};
    for (int integrator = 0; integrator < 2; integrator++)
        CHECK_RESULT(nbody_cuda_step(&b.gpu, &in.desc, &bodies, 1, (nbody_integrator)integrator,
            stream), NBODY_BAD_OPTION);
    CHECK(bodies.fresh == 0 && b.gpu.device.sim.frame == nullptr);
}
