/* bad_calls.cu - a part of test_nbody.cu: refusals. Both sides give the same result code, and
   the simulation is usable afterwards.
   SPDX-License-Identifier: MIT OR Unlicense */

static void *some_alloc(size_t bytes, void *) { return malloc(bytes); }
static void some_free(void *memory, size_t, void *) { free(memory); }

typedef void change_fn(nbody_desc *);

static const struct { change_fn *change; nbody_result result; } wrong_descs[] = {
    {[](nbody_desc *x) { x->levels = -1; }, NBODY_BAD_LEVELS},
    {[](nbody_desc *x) { x->levels = NBODY_MAX_LEVELS + 1; }, NBODY_BAD_LEVELS},
    {[](nbody_desc *x) { x->leaf = -1; }, NBODY_BAD_LEVELS},
    {[](nbody_desc *x) { x->max_cells = -1; }, NBODY_BAD_LEVELS},
    {[](nbody_desc *x) { x->order = -1; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->order = NBODY_MAX_ORDER + 1; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->method = NBODY_VIRTUAL_PARTICLES; x->order = 3; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->method = NBODY_VIRTUAL_PARTICLES; x->sources = NBODY_CHEBYSHEV;
    x->order = 1; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->sources = NBODY_MASS_CENTRES; x->subcells = 3; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->sources = NBODY_MASS_CENTRES; x->subcells = 16; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->sources = NBODY_MASS_CENTRES; x->subcells = -2; }, NBODY_BAD_OPTION},
#ifndef CUDA_EMU /* UBSan stops at a value that the enum does not have */
    {[](nbody_desc *x) { x->method = (nbody_method)4; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->law = (nbody_law)4; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->sources = (nbody_sources)3; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->stage = (nbody_stage)4; }, NBODY_BAD_OPTION},
    {[](nbody_desc *x) { x->stage = (nbody_stage)-1; }, NBODY_BAD_OPTION},
#endif
    {[](nbody_desc *x) { x->gravity = not_a_number; }, NBODY_BAD_NUMBER},
    {[](nbody_desc *x) { x->gravity = infinity; }, NBODY_BAD_NUMBER},
    {[](nbody_desc *x) { x->softening = -1; }, NBODY_BAD_NUMBER},
    {[](nbody_desc *x) { x->softening = not_a_number; }, NBODY_BAD_NUMBER},
    {[](nbody_desc *x) { x->softening = infinity; }, NBODY_BAD_NUMBER},
    {[](nbody_desc *x) { x->min[1] = not_a_number; }, NBODY_BAD_SQUARE},
    {[](nbody_desc *x) { x->min[0] = -infinity; }, NBODY_BAD_SQUARE},
    {[](nbody_desc *x) { x->size = -1; }, NBODY_BAD_SQUARE},
    {[](nbody_desc *x) { x->size = infinity; }, NBODY_BAD_SQUARE},
    {[](nbody_desc *x) { x->mass_stride = sizeof(real) + 1; }, NBODY_BAD_ARGUMENT},
    {[](nbody_desc *x) { x->mass_stride = sizeof(real) / 2; }, NBODY_BAD_ARGUMENT},
    {[](nbody_desc *x) { x->acc_stride = sizeof(real); }, NBODY_BAD_ARGUMENT},
    {[](nbody_desc *x) { x->acc_stride = 2 * sizeof(real) + 1; }, NBODY_BAD_ARGUMENT},
    {[](nbody_desc *x) { x->allocator.alloc = some_alloc; }, NBODY_BAD_ALLOCATOR},
    {[](nbody_desc *x) { x->allocator.free = some_free; }, NBODY_BAD_ALLOCATOR},
};

/* Both sides say the same; outputs are left alone, and the object is empty and usable
   afterwards. */
static void test_refused_descs()
{
    Input const in = plain_input(setting_like(NBODY_FORCE_NODES, 0), 40, 1);
    OnDevice const there(in);
    Both b;
    int number = 0;
    for (auto w : wrong_descs) {
        nbody_desc d = in.desc;
        Fields out = {unset(80), unset(40)};
        w.change(&d);
        context = "refused descs, number " + std::to_string(number++);
        there.acc.forget();
        there.potential.forget();
        const real *const pos = there.pos.p, *const mass = there.mass.p;
        CHECK_RESULT(nbody_accelerations(&b.serial, &d, in.pos.data(), 0, in.mass.data(), 40,
            out.acc.data()), w.result);
        CHECK_RESULT(nbody_cuda_fields(&b.gpu, &d, pos, 0, mass, 40, there.acc.p, there.potential.p,
            stream), w.result);
        CHECK_RESULT(nbody_cuda_accelerations(&b.gpu, &d, pos, 0, mass, 40, there.acc.p, stream),
            w.result);
        CHECK_RESULT(nbody_cuda_build(&b.gpu, &d, pos, 0, mass, 40, stream), w.result);
        CHECK_RESULT(nbody_cuda_reserve(&b.gpu, &d, 40, stream), w.result);
        CHECK(b.gpu.device.sim.n == 0 && b.gpu.device.sim.frame == nullptr &&
            "the refusal leaves it empty");
        CHECK(same_bits(there.acc.get(), out.acc) &&
            same_bits(there.potential.get(), out.potential));
        CHECK_RESULT(nbody_cuda_fields_at(&b.gpu, there.pos.p, 0, 40, there.acc.p, nullptr, stream),
            NBODY_NOT_BUILT);
        if (number % 4 == 0) check_works(&b, number % SETTINGS, all_stages[number / 4 % 4]);
    }
    nbody_desc d = in.desc;
    context = "refused descs: CUDA's allocator";
    d.cuda_allocator.alloc = [](size_t, struct CUstream_st *, void *) -> void * { return nullptr; };
    CHECK_RESULT(nbody_cuda_build(&b.gpu, &d, there.pos.p, 0, there.mass.p, 40, stream),
        NBODY_BAD_ALLOCATOR);
    d.cuda_allocator.alloc = nullptr;
    d.cuda_allocator.free = [](void *, size_t, struct CUstream_st *, void *) {};
    CHECK_RESULT(nbody_cuda_build(&b.gpu, &d, there.pos.p, 0, there.mass.p, 40, stream),
        NBODY_BAD_ALLOCATOR);
    check_works(&b, setting_like(NBODY_FORCE_NODES, 0), NBODY_FAST);
}

/* One rule: without a tree every call that reads one returns a code; a tree over no bodies is
   one. */
static void check_holds_nothing(nbody_cuda *gpu, nbody_result want)
{
    Device<real> const d_real(std::vector<real>(8));
    Device<nbody_error> const d_error(1);
    nbody copy = {};
    CHECK(gpu->device.sim.n == 0);
    CHECK_RESULT(nbody_cuda_fields_at(gpu, d_real.p, 0, 2, d_real.p + 4, nullptr, stream), want);
    CHECK_RESULT(nbody_cuda_estimate(gpu, d_real.p, 4, 1, d_error.p, stream), want);
    CHECK_RESULT(nbody_cuda_check(gpu, nullptr, stream), want);
    CHECK_RESULT(nbody_cuda_download(&copy, gpu, stream), want);
    CHECK_RESULT(nbody_validate(&copy), want);
    for (real x : d_real.get()) CHECK(x == 0);
    nbody_free(&copy);
}

static void test_not_built()
{
    Device<real> const d_pos(std::vector<real>{0, 1, 2, 3});
    nbody_cuda gpu = {};
    context = "not built";
    check_holds_nothing(&gpu, NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_cuda_build(&gpu, nullptr, nullptr, 0, nullptr, 0, stream), NBODY_OK);
    check_holds_nothing(&gpu, NBODY_OK);
    CHECK_RESULT(nbody_cuda_reserve(&gpu, nullptr, 2, stream), NBODY_OK);
    check_holds_nothing(&gpu, NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_cuda_build(&gpu, nullptr, d_pos.p, 0, nullptr, 2, stream), NBODY_OK);
    CHECK_RESULT(nbody_cuda_check(&gpu, nullptr, stream), NBODY_OK);
    CHECK_RESULT(nbody_cuda_build(&gpu, nullptr, d_pos.p, 1, nullptr, 2, stream),
        NBODY_BAD_ARGUMENT);
    check_holds_nothing(&gpu, NBODY_NOT_BUILT);
    nbody_cuda_free(&gpu);
    check_holds_nothing(&gpu, NBODY_NOT_BUILT);
}

/* A point that is none gets none, from a tree over no bodies as from a full one. */
static void test_points_without_numbers()
{
    Device<real> const d_pos(std::vector<real>{0, 1, 2, 3}), d_acc(4);
    Device<real> const d_points(std::vector<real>{not_a_number, 0, 0, infinity});
    context = "points without numbers";
    for (int32_t n = 0; n <= 2; n += 2) {
        nbody_cuda gpu = {};
        CHECK_RESULT(nbody_cuda_build(&gpu, nullptr, d_pos.p, 0, nullptr, n, stream), NBODY_OK);
        CHECK_RESULT(nbody_cuda_fields_at(&gpu, d_points.p, 0, 2, d_acc.p, nullptr, stream),
            NBODY_OK);
        for (real x : d_acc.get()) CHECK(std::isnan(x));
        nbody_cuda_free(&gpu);
    }
}

/* Pointers, counts and strides of the calls that build. */
static void test_refused_arguments()
{
    Input const in = plain_input(setting_like(NBODY_FORCE_NODES, 0), 40, 1);
    OnDevice const there(in);
    const nbody_desc *const d = &in.desc;
    const real *const pos = there.pos.p, *const mass = there.mass.p;
    real *const acc = there.acc.p;
    Both b;
    nbody_cuda *const gpu = &b.gpu;
    context = "refused arguments";
    CHECK_RESULT(nbody_cuda_reserve(nullptr, d, 40, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_reserve(gpu, d, -1, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_build(nullptr, d, pos, 0, mass, 40, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_build(gpu, d, nullptr, 0, mass, 40, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_build(gpu, d, pos, 0, mass, -1, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_build(gpu, d, pos, sizeof(real), mass, 40, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_build(gpu, d, pos, 2 * sizeof(real) + 1, mass, 40, stream),
        NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_build(gpu, d, pos, 0, mass, INT32_MAX, stream), NBODY_TOO_MANY);
    CHECK_RESULT(nbody_cuda_build(gpu, d, pos, 0, mass, (1 << 30) - 511, stream), NBODY_TOO_MANY);
    CHECK_RESULT(nbody_cuda_accelerations(nullptr, d, pos, 0, mass, 40, acc, stream),
        NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_accelerations(gpu, d, nullptr, 0, mass, 40, acc, stream),
        NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_accelerations(gpu, d, pos, 0, mass, 40, nullptr, stream),
        NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_accelerations(gpu, d, pos, 0, mass, INT32_MAX, acc, stream),
        NBODY_TOO_MANY);
    CHECK_RESULT(nbody_cuda_fields(nullptr, d, pos, 0, mass, 40, acc, nullptr, stream),
        NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_check(nullptr, nullptr, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_download(nullptr, gpu, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_download(&b.copy, nullptr, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_upload(nullptr, &b.serial, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_upload(gpu, nullptr, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_upload(gpu, &b.serial, stream), NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_cuda_step(nullptr, d, nullptr, 1, NBODY_LEAPFROG, stream),
        NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_step(gpu, d, nullptr, 1, NBODY_LEAPFROG, stream), NBODY_BAD_ARGUMENT);
    for (real x : there.acc.get())
        CHECK(memcmp(&x, unset(1).data(), sizeof x) == 0 && "a refused call wrote something");
    check_works(&b, setting_like(NBODY_FORCE_NODES, 0), NBODY_FAST);
}

/* And of those that ask. */
static void test_refused_questions()
{
    Input const in = plain_input(setting_like(NBODY_FORCE_NODES, 0), 40, 1);
    OnDevice const there(in);
    Device<nbody_error> const d_error(1);
    Device<nbody_energies> const d_energies(1);
    Motion m(in, 1);
    nbody_bodies bodies = m.there;
    Both b;
    nbody_cuda *const gpu = &b.gpu;
    const real *const pos = there.pos.p;
    real *const acc = there.acc.p;
    context = "refused questions, nothing built";
    CHECK_RESULT(nbody_cuda_fields_at(gpu, pos, 0, 40, acc, nullptr, stream), NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_cuda_estimate(gpu, acc, 4, 1, d_error.p, stream), NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_cuda_check(gpu, nullptr, stream), NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_cuda_download(&b.copy, gpu, stream), NBODY_NOT_BUILT);
    CHECK_RESULT(run_gpu(gpu, in, NBODY_FAST, there), NBODY_OK);
    std::vector<real> const before = there.acc.get();
    context = "refused questions";
    CHECK_RESULT(nbody_cuda_fields_at(nullptr, pos, 0, 40, acc, nullptr, stream),
        NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_fields_at(gpu, nullptr, 0, 40, acc, nullptr, stream),
        NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_fields_at(gpu, pos, 0, -1, acc, nullptr, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_fields_at(gpu, pos, sizeof(real), 40, acc, nullptr, stream),
        NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_fields_at(gpu, pos, 0, INT32_MAX, acc, nullptr, stream),
        NBODY_TOO_MANY);
    CHECK_RESULT(nbody_cuda_estimate(nullptr, acc, 4, 1, d_error.p, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_estimate(gpu, nullptr, 4, 1, d_error.p, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_estimate(gpu, acc, -1, 1, d_error.p, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_estimate(gpu, acc, 4, 1, nullptr, stream), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_energy(gpu, nullptr, nullptr, d_energies.p, stream),
        NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_energy(gpu, &bodies, nullptr, nullptr, stream), NBODY_BAD_ARGUMENT);
    bodies.vel = nullptr;
    CHECK_RESULT(nbody_cuda_energy(gpu, &bodies, nullptr, d_energies.p, stream),
        NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_cuda_step(gpu, &in.desc, &bodies, 1, NBODY_LEAPFROG, stream),
        NBODY_BAD_ARGUMENT);
    bodies = m.there;
    for (real dt : {not_a_number, infinity}) {
        CHECK_RESULT(nbody_cuda_step(gpu, &in.desc, &bodies, dt, NBODY_LEAPFROG, stream),
            NBODY_BAD_NUMBER);
        CHECK_RESULT(nbody_cuda_step(gpu, &in.desc, &bodies, dt, NBODY_EULER, stream),
            NBODY_BAD_NUMBER);
    }
    bodies.n = -1;
    CHECK_RESULT(nbody_cuda_step(gpu, &in.desc, &bodies, 1, NBODY_EULER, stream),
        NBODY_BAD_ARGUMENT);
#ifndef CUDA_EMU
    CHECK_RESULT(nbody_cuda_step(gpu, &in.desc, &m.there, 1, (nbody_integrator)2, stream),
        NBODY_BAD_OPTION);
#endif
    CHECK(same_bits(m.d_pos.get(), m.pos) && same_bits(m.d_vel.get(), m.vel) &&
        "a refused step moved something");
    CHECK(same_bits(there.acc.get(), before) && "a refused call wrote something");
}
