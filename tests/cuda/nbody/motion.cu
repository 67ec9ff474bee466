/* motion.cu - a part of test_nbody.cu: the estimate of the error, energies, and steps, on both
   sides.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Two sums of the same numbers in double, in other orders. */
static bool same_number(double a, double b, double size)
{
    return within(a, b, 1e-8 * std::fabs(b) + 1e-12 * size);
}

static void check_error(const nbody_error &got, const nbody_error &want)
{
    CHECK(got.samples == want.samples);
    CHECK(same_number(got.mean, want.mean, 1) && same_number(got.worst, want.worst, 1));
    CHECK(same_number(got.mean_share, want.mean_share, 1) && same_number(got.share, want.share, 1));
    CHECK(same_number(got.direction, want.direction, 1) && same_number(got.length, want.length, 1));
    CHECK(same_number(got.bias, want.bias, 1));
    CHECK(same_number(got.given_mean, want.given_mean, 1) &&
        same_number(got.given_share, want.given_share, 1));
}

static void test_estimate()
{
    static const int samples[] = {64, 1, 7, 100000, 65, 0};
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.shape == EQUAL || c.outputs == POTENTIALS || !thinned(k + 9, 3 * share, 60)) continue;
        Both b;
        Fields want;
        nbody_error error = {};
        /* on a lattice forces cancel: their errors are rounding, and in double all of it */
        if (c.shape == BORDERS && !is_float) c.shape = CLUMPS;
        c.n = size_of(c.shape, k + 3);
        context = "estimate: " + name_of(c);
        Input const in = input_of(c, (int)k);
        OnDevice const there(in);
        Device<nbody_error> d_error(1);
        int const count = samples[k % 5];
        CHECK_RESULT(run_gpu(&b.gpu, in, all_stages[k % 4], there), NBODY_OK);
        CHECK_RESULT(nbody_cuda_estimate(&b.gpu, there.acc.p, count, (uint32_t)k, d_error.p,
            stream), NBODY_OK);
        std::vector<real> acc = there.acc.get();
        CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
        CHECK_RESULT(nbody_estimate(&b.serial, acc.data(), count, (uint32_t)k, &error), NBODY_OK);
        CHECK(error.samples == std::min(count, in.n));
        check_error(d_error.get()[0], error);
        size_t const step = step_of(in.desc.acc_stride, 2);
        /* errors that are no rounding */
        for (int i = 0; i < in.n; i++) acc[(size_t)i * step] *= (real)1.125;
        there.acc.set(acc);
        CHECK_RESULT(nbody_cuda_estimate(&b.gpu, there.acc.p, count, 5, d_error.p, stream),
            NBODY_OK);
        CHECK_RESULT(nbody_estimate(&b.serial, acc.data(), count, 5, &error), NBODY_OK);
        check_error(d_error.get()[0], error);
        CHECK(in.n < 2 || error.mean > 1e-3);
    }
}

/* A simulation's bodies, on both sides. */
struct Motion {
    std::vector<real> pos, vel, acc, mass;
    Device<real> d_pos, d_vel, d_acc, d_mass;
    nbody_bodies here, there;
    Motion(const Input &in, int seed)
        : pos(in.pos), vel(2 * (size_t)in.n), acc(unset(2 * (size_t)in.n)), mass(in.mass),
            d_pos(pos), d_vel(2 * (size_t)in.n),
          d_acc(acc), d_mass(mass)
    {
        wl_random r = wl_seed((uint64_t)seed + 1000);
        for (real &v : vel) v = (real)(wl_u(&r) - 0.5f);
        d_vel.set(vel);
        here = {pos.data(), vel.data(), acc.data(), masses_or_null(in) ? mass.data() : nullptr,
            in.n, 0};
        there = {d_pos.p, d_vel.p, d_acc.p, masses_or_null(in) ? d_mass.p : nullptr, in.n, 0};
    }
};

static void check_energies(const nbody_energies &got, const nbody_energies &want, const Motion &m)
{
    double momentum = 0, angular = 0, energy = 0, mass = 0, centre = 0;
    for (size_t e = 0; e < m.pos.size(); e++) {
        double const w = m.mass.empty() ? 1 : std::fabs((double)m.mass[e / 2]),
            v = std::fabs((double)m.vel[e]);
        mass += w / 2;
        momentum += w * v;
        energy += w * v * v;
        centre += w * std::fabs((double)m.pos[e]);
        angular += w * v * std::fabs((double)m.pos[e ^ 1]);
    }
    CHECK(same_number(got.kinetic, want.kinetic, energy) &&
        same_number(got.potential, want.potential, std::fabs(want.potential)));
    CHECK(same_number(got.mass, want.mass, mass) &&
        same_number(got.angular, want.angular, angular));
    for (int a = 0; a < 2; a++) {
        CHECK(same_number(got.momentum[a], want.momentum[a], momentum));
        CHECK(same_number(got.centre[a], want.centre[a], centre / (std::fabs(want.mass) + 1e-30)));
    }
}

static void test_energy()
{
    static const int sizes[] = {0, 1, 2, 63, 64, 65, 257, 1000, 5000};
    for (int n : sizes)
        for (int k = 0; k < 4; k++) {
            Case c = {};
            if (n > 260 && heavy) continue;
            c.setting = setting_like(NBODY_FORCE_NODES, 0);
            c.masses = k % 2 ? NO_MASSES : WILD;
            c.n = n;
            context = "energy: " + name_of(c);
            Input const in = input_of(c, n + k);
            Motion m(in, k);
            std::vector<real> potential;
            wl_random r = wl_seed((uint64_t)n);
            for (int i = 0; i < n; i++) potential.push_back((real)-wl_u(&r));
            Device<real> const d_potential(potential);
            Device<nbody_energies> const d_energies(1);
            nbody_energies want = {};
            nbody_cuda gpu = {};
            CHECK_RESULT(nbody_energy(&m.here, k < 2 ? potential.data() : nullptr, &want),
                NBODY_OK);
            CHECK_RESULT(nbody_cuda_energy(&gpu, &m.there, nullptr, d_energies.p, stream),
                NBODY_NOT_BUILT);
            CHECK_RESULT(nbody_cuda_reserve(&gpu, nullptr, n, stream), NBODY_OK);
            CHECK_RESULT(nbody_cuda_energy(&gpu, &m.there, k < 2 ? d_potential.p : nullptr,
                d_energies.p, stream), NBODY_OK);
            check_energies(d_energies.get()[0], want, m);
            CHECK(n == 0 || want.kinetic > 0);
            nbody_cuda_free(&gpu);
        }
}

/* ---- steps ---- */

static void check_motion(Motion *m, nbody_stage stage, double most)
{
    bool nearly = true;
    const Device<real> *const there[] = {&m->d_pos, &m->d_vel};
    const std::vector<real> *const here[] = {&m->pos, &m->vel};
    if (stage != NBODY_FAST) {
        CHECK(same_bits(m->d_pos.get(), m->pos));
        CHECK(same_bits(m->d_vel.get(), m->vel));
        CHECK(same_bits(m->d_acc.get(), m->acc));
        return;
    }
    for (int k = 0; k < 2; k++) {
        std::vector<real> const got = there[k]->get();
        for (size_t e = 0; e < got.size(); e++)
            nearly = nearly && within((double)got[e], (double)(*here[k])[e], most);
    }
    CHECK(nearly && "positions and velocities within rounding");
}

/* Some steps on both sides; bodies that start unsorted, and a change of position by hand in
   between. Strides of the desc are not those of the bodies. */
static void run_steps(const Case &c, nbody_stage stage, nbody_integrator integrator, int seed)
{
    Both b;
    Input const in = input_of(c, seed);
    nbody_desc d = in.desc;
    Motion m(in, seed);
    real const dt = (real)(1.0 / 1024);
    d.stage = stage;
    d.mass_stride = 3 * sizeof(real);
    d.acc_stride = 4 * sizeof(real);
    for (int step = 0; step < 4; step++) {
        if (step == 2) {
            m.pos[0] += (real)0.25;
            m.d_pos.set(m.pos); /* in NBODY_FAST all positions become those of the serial code */
            m.d_vel.set(m.vel);
            m.here.fresh = m.there.fresh = 0;
        }
        CHECK_RESULT(nbody_step(&b.serial, &in.desc, &m.here, dt, integrator), NBODY_OK);
        CHECK_RESULT(nbody_cuda_step(&b.gpu, &d, &m.there, dt, integrator, stream), NBODY_OK);
        CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
        CHECK(m.here.fresh == m.there.fresh);
        double size = 0;
        for (int i = 0; i < in.n; i++)
            size = std::max(size, all_terms(in, *b.serial.frame, point_of(in, i)).force);
        check_motion(&m, stage, 4 * (double)dt * fast_share * size + 4 * epsilon);
    }
}

static void test_step()
{
    static const int methods[] = {0, 1, 4, 7, 9, 10, 17, SETTINGS - 1};
    for (int k = 0; k < 8 * 4 * 2; k++) {
        Case c = {};
        nbody_stage const stage = all_stages[k / 8 % 4];
        nbody_integrator const integrator = k / 32 ? NBODY_EULER : NBODY_LEAPFROG;
        c.setting = methods[k % 8];
        if (!thinned((size_t)k + 50, share / 2, 14)) continue;
        c.soft = 1;
        c.masses = k % 3 ? ONES : NO_MASSES;
        c.n = std::min(n_max, k % 5 ? 100 : 33);
        context = std::string("step: ") + stage_names[stage] +
            (integrator ? ", Euler, " : ", leapfrog, ") + name_of(c);
        run_steps(c, stage, integrator, k);
    }
}

/* ---- block time steps ---- */

/* Both sides choose the same steps. In other stages than NBODY_FAST forces have the same bits, and
   so has the motion; a small |accuracy| makes steps that differ. */
static void run_blocks(const Case &c, nbody_stage stage, double accuracy, int seed)
{
    Both b;
    Input const in = input_of(c, seed);
    nbody_desc d = in.desc;
    Motion m(in, seed);
    nbody_blocks here = {}, there = {};
    nbody_blocks_desc const how = {heavy ? 3 : 5, accuracy};
    d.stage = stage;
    for (int call = 0; call < 2; call++) {
        real const dt = (real)(1.0 / 64);
        CHECK_RESULT(nbody_blocks_step(&here, &how, &b.serial, &in.desc, &m.here, dt), NBODY_OK);
        CHECK_RESULT(nbody_cuda_blocks_step(&there, &how, &b.gpu, &d, &m.there, dt, stream),
            NBODY_OK);
        CHECK(there.evaluations > 0 && m.there.fresh == 1);
        if (stage == NBODY_FAST) continue;
        CHECK(here.evaluations == there.evaluations && here.forces == there.forces);
        check_motion(&m, stage, 0);
    }
    nbody_blocks_free(&here);
    nbody_cuda_blocks_free(&there, stream);
    CHECK(there.n == 0 && !there.memory.memory);
}

static void test_blocks()
{
    static const int methods[] = {0, 1, 7, SETTINGS - 1};
    static const double accuracies[] = {0.3, 0.05, 1e-30, 1e30};
    for (int k = 0; k < 4 * 4 * 4; k++) {
        Case c = {};
        nbody_stage const stage = all_stages[k / 4 % 4];
        c.setting = methods[k % 4];
        if (heavy ? k % 21 != 1 : !thinned((size_t)k + 60, share / 2, 10)) continue;
        c.soft = 1;
        c.masses = k % 3 ? ONES : NO_MASSES;
        c.n = std::min(n_max, heavy || k % 5 ? 33 : 100);
        context = std::string("blocks: ") + stage_names[stage] + ", " + name_of(c);
        run_blocks(c, stage, accuracies[k / 16], k);
    }
    nbody_blocks blocks = {};
    nbody_blocks_desc how = {25, 0};
    Case c = {};
    c.n = 10;
    Input const in = input_of(c, 1);
    Motion m(in, 1);
    Both b;
    CHECK_RESULT(nbody_cuda_blocks_step(&blocks, &how, &b.gpu, nullptr, &m.there, 1, stream),
        NBODY_BAD_OPTION);
    CHECK_RESULT(nbody_cuda_blocks_step(nullptr, nullptr, &b.gpu, nullptr, &m.there, 1, stream),
        NBODY_BAD_ARGUMENT);
    m.there.n = 0;
    CHECK_RESULT(nbody_cuda_blocks_step(&blocks, nullptr, &b.gpu, nullptr, &m.there, 1, stream),
        NBODY_OK);
    CHECK(blocks.n == 0);
}
