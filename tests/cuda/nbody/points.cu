/* points.cu - a part of test_nbody.cu: fields at target points that are not bodies, and walks in a
   kernel of the caller.
   SPDX-License-Identifier: MIT OR Unlicense */

/* On bodies, in the square, outside it, and far away. */
static std::vector<real> points_for(const Input &in, const nbody_frame &frame, int m, int seed)
{
    wl_random r = wl_seed((uint64_t)seed);
    std::vector<real> points;
    for (int i = 0; i < m; i++) {
        double const spread = i % 4 == 1 ? 3 : i % 16 == 2 ? 1000 : 1;
        for (int a = 0; a < 2; a++) {
            double const u = (double)wl_u(&r);
            if (i % 4 == 3 && in.n > 0) points.push_back(point_of(in, i % in.n)[a]);
            else points.push_back((real)(frame.min[a] + frame.size * (0.5 + spread * (u - 0.5))));
        }
    }
    return points;
}

static void check_points(Both *b, const Input &in, const std::vector<real> &points, size_t stride,
    int outputs)
{
    size_t const width = step_of(stride, 2), m = points.size() / width;
    Fields want = {unset(2 * m), unset(m)};
    Device<real> const d_points(points), d_acc(2 * m), d_potential(m);
    CHECK_RESULT(nbody_fields_at(&b->serial, points.data(), stride, (int32_t)m,
        outputs == POTENTIALS ? nullptr : want.acc.data(),
        outputs == ACCELERATIONS ? nullptr : want.potential.data(), nullptr), NBODY_OK);
    CHECK_RESULT(nbody_cuda_fields_at(&b->gpu, d_points.p, stride, (int32_t)m,
        outputs == POTENTIALS ? nullptr : d_acc.p,
        outputs == ACCELERATIONS ? nullptr : d_potential.p, stream), NBODY_OK);
    Fields const got = {d_acc.get(), d_potential.get()};
    if (b->gpu.device.sim.desc.stage != NBODY_FAST) {
        CHECK(same_bits(want.acc, got.acc));
        CHECK(same_bits(want.potential, got.potential));
        return;
    }
    bool forces = true, potentials = true;
    for (size_t i = 0; i < m; i++) {
        Term const size = all_terms(in, *b->serial.frame, &points[i * width]);
        for (size_t k = 0; k < 2; k++)
            forces = forces && within((double)want.acc[2 * i + k], (double)got.acc[2 * i + k],
                fast_share * size.force);
        potentials = potentials &&
            within((double)want.potential[i], (double)got.potential[i],
            fast_share * size.potential);
    }
    CHECK(forces && "accelerations at points within rounding");
    CHECK(potentials && "potentials at points within rounding");
}

/* After a build alone, and after an evaluation; any number of points. */
static void test_fields_at()
{
    static const int sizes[] = {130, 1, 64, 65, 300, 0, 33};
    for (size_t k = 0; k < case_count; k++) {
        if (!thinned(k + 3, 2 * share, 40)) continue;
        Case c = case_of(k);
        Both b;
        Fields want;
        c.n = size_of(c.shape, k + 1);
        context = "fields at: " + name_of(c);
        std::string const name = context;
        Input const in = input_of(c, (int)k);
        OnDevice const there(in);
        CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
        for (nbody_stage stage : all_stages) {
            nbody_desc d = in.desc;
            d.stage = stage;
            context = name + ", " + stage_names[stage];
            /* 50 s on an H200 */
            if (share > 1 && stage == NBODY_ONE_THREAD && d.order > 8) continue;
            if ((k + stage) % 2) CHECK_RESULT(run_gpu(&b.gpu, in, stage, there), NBODY_OK);
            else
                CHECK_RESULT(nbody_cuda_build(&b.gpu, &d, there.pos.p, in.stride, there.masses(in),
                    in.n, stream), NBODY_OK);
            std::vector<real> const points =
                points_for(in, *b.serial.frame, std::min(sizes[(k + stage) % 7], n_max), (int)k);
            bool const wide = k % 3 == 1;
            check_points(&b, in, wide ? with_gaps(points, 2, 1) : points,
                wide ? 3 * sizeof(real) : 0, c.outputs);
            CHECK_RESULT(nbody_cuda_check(&b.gpu, nullptr, stream), NBODY_OK);
        }
    }
}

/* So many points read nodes. */
static int const many_points = 256;

/* Points in leaves, in cells that are divided, outside; of a tree that is built, with the nodes of
   forces, and with those of potentials. */
static void check_many_points(const Case &c, nbody_stage stage, int k)
{
    Both b;
    Fields want;
    Input const in = input_of(c, k);
    OnDevice const there(in);
    nbody_desc d = in.desc;
    d.stage = stage;
    CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
    std::vector<real> const points = points_for(in, *b.serial.frame, many_points + 9, k);
    if (k % 2) CHECK_RESULT(run_gpu(&b.gpu, in, stage, there), NBODY_OK);
    else
        CHECK_RESULT(nbody_cuda_build(&b.gpu, &d, there.pos.p, in.stride, there.masses(in), in.n,
            stream), NBODY_OK);
    check_points(&b, in, points, 0, ACCELERATIONS);
    check_points(&b, in, points, 0, ALL_OUTPUTS);
    check_points(&b, in, with_gaps(points, 2, 1), 3 * sizeof(real), POTENTIALS);
    CHECK_RESULT(nbody_cuda_fields_again(&b.gpu, there.masses(in), nullptr, nullptr, stream),
        NBODY_OK);
    check_points(&b, in, points, 0, ALL_OUTPUTS); /* the old nodes are of other masses */
    CHECK_RESULT(nbody_cuda_fields(&b.gpu, &d, there.pos.p, in.stride, there.masses(in), in.n,
        nullptr, nullptr, stream), NBODY_OK);
    check_points(&b, in, points, 0, ALL_OUTPUTS);
    CHECK_RESULT(run_gpu(&b.gpu, in, stage, there), NBODY_OK);
    compare(&b, in, stage, want, there); /* nothing that bodies need was changed */
    CHECK_RESULT(nbody_cuda_fields_again(&b.gpu, there.masses(in), there.acc.p,
        in.outputs == ACCELERATIONS ? nullptr : there.potential.p, stream), NBODY_OK);
    compare(&b, in, stage, want, there);
}

static void test_many_points()
{
    for (int setting = 0; setting < SETTINGS; setting++)
        for (int k = 0; k < 8; k++) {
            Case c = {};
            if (settings[setting].method != NBODY_FORCE_NODES) continue;
            if (few_large && (is_large(settings[setting]) || k != setting % 8)) continue;
            if (share > 1 && k % 4 != setting % 4) continue;
            if (heavy && setting % 3 > 0) continue;
            c.setting = setting;
            c.law = (nbody_law)(k / 2 % 2);
            c.masses = takes_signs(settings[setting]) ? BOTH_SIGNS : ONES;
            c.shape = k % 3 ? CLUMPS : UNIFORM;
            c.leaf = 5;
            c.soft = k % 5 == 3;
            c.outputs = k % 4 < 2 ? ACCELERATIONS : ALL_OUTPUTS;
            c.n = std::min(n_max, 130);
            context = std::string("many points: ") + name_of(c);
            std::string const name = context;
            for (nbody_stage stage : all_stages) {
                if (share > 100 && stage != NBODY_FAST && stage != (setting + k) % 4) continue;
                context = name + ", " + stage_names[stage];
                check_many_points(c, stage, k);
            }
        }
}

/* Points that are no numbers among many; each allocation fails in turn, and leaves it empty. */
static void test_many_points_refused()
{
    Input in = plain_input(setting_like(NBODY_FORCE_NODES, 0), 90, 1);
    OnDevice const there(in);
    Both b;
    Fields want;
    Heap h = {};
    size_t const m = (size_t)many_points;
    context = "many points refused";
    CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
    std::vector<real> points = points_for(in, *b.serial.frame, many_points, 3);
    Device<real> const d_points(points), d_acc(2 * m), d_potential(m);
    points[14] = not_a_number;
    points[100] = infinity;
    Device<real> const d_bad(points);
    in.desc.cuda_allocator = allocator_of(&h);
    long calls = 1;
    for (long fail = 0; fail <= calls; fail++) {
        CHECK_RESULT(nbody_cuda_build(&b.gpu, &in.desc, there.pos.p, in.stride, there.masses(in),
            in.n, stream), NBODY_OK);
        h.calls = 0;
        h.fail_at = fail;
        nbody_result const r = nbody_cuda_fields_at(&b.gpu, d_points.p, 0, many_points, d_acc.p,
            d_potential.p, stream);
        CHECK_RESULT(r, fail ? NBODY_OUT_OF_MEMORY : NBODY_OK);
        CHECK((b.gpu.device.sim.frame == nullptr) == (fail > 0));
        if (fail == 0) {
            calls = h.calls;
            std::vector<real> const acc = d_acc.get();
            CHECK_RESULT(nbody_cuda_fields_at(&b.gpu, d_bad.p, 0, many_points, d_acc.p,
                d_potential.p, stream), NBODY_OK);
            std::vector<real> const bad = d_acc.get();
            for (size_t i = 0; i < 2 * m; i++) {
                bool const none = i / 2 == 7 || i / 2 == 50;
                CHECK(none ? std::isnan(bad[i]) : same_bits(&bad[i], &acc[i], 1));
            }
            CHECK(h.calls == calls && "the memory is kept");
        }
        h.fail_at = 0;
        nbody_cuda_free(&b.gpu);
        CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
    }
    CHECK(calls > 3);
}

/* ---- the walks, as a kernel of the caller takes them ---- */

namespace {

/* What one cell meets: how many cells, and a number that depends on all of them and their order. */
struct Seen {
    uint32_t count, hash;
};

__host__ __device__ void see(Seen *seen, int32_t cell, int32_t whole)
{
    seen->count++;
    seen->hash = (seen->hash * 31 + (uint32_t)cell) * 3 + (uint32_t)whole;
}

__host__ __device__ Seen walk_from(const nbody *sim, int32_t cell)
{
    Seen seen = {0, 7};
    nbody_far f = nbody_far_of(sim, cell);
    while (nbody_next_far(&f)) see(&seen, f.cell, 2);
    if (sim->cell[cell].child >= 0) return seen;
    nbody_near v = nbody_near_of(sim, cell);
    while (nbody_next_near(&v)) see(&seen, v.cell, v.whole);
    v = nbody_near_point(sim, sim->x[sim->cell[cell].first], 0);
    while (nbody_next_near(&v)) see(&seen, v.cell, v.whole);
    return seen;
}

__global__ void see_walks(__grid_constant__ const nbody_device device, int32_t cells, Seen *seen)
{
    int32_t const c = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (c < cells && c < device.sim.frame->cells) seen[c] = walk_from(&device.sim, c);
}

} /* namespace */

/* A kernel meets the same cells as the serial code, and the same number of terms. */
static void check_walks(Both *b, const Input &in, nbody_stage stage)
{
    Fields want;
    OnDevice const there(in);
    CHECK_RESULT(run_serial(&b->serial, in, &want), NBODY_OK);
    CHECK_RESULT(run_gpu(&b->gpu, in, stage, there), NBODY_OK);
    int32_t const cells = b->serial.frame->cells;
    Device<Seen> d_seen((size_t)cells);
    launch(cells, see_walks, b->gpu.device, cells, d_seen.p);
    std::vector<Seen> const got = d_seen.get();
    bool same = true;
    for (int32_t i = 0; i < cells; i++) {
        Seen const s = walk_from(&b->serial, i);
        same = same && s.count == got[(size_t)i].count && s.hash == got[(size_t)i].hash;
    }
    CHECK(same && "a kernel meets the same cells");
    nbody_counts counts = {}, other = {};
    CHECK_RESULT(nbody_cuda_download(&b->copy, &b->gpu, stream), NBODY_OK);
    CHECK_RESULT(nbody_count(&b->serial, &counts), NBODY_OK);
    CHECK_RESULT(nbody_count(&b->copy, &other), NBODY_OK);
    CHECK(counts.cells == other.cells && counts.leaves == other.leaves &&
        counts.levels == other.levels);
    CHECK(counts.near_terms == other.near_terms && counts.far_terms == other.far_terms);
    CHECK(counts.table_terms == other.table_terms);
}

static void test_walks()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (settings[c.setting].method < NBODY_VIRTUAL_PARTICLES || !thinned(k + 4, 2 * share, 60))
            continue;
        Both b;
        c.n = std::min(size_of(c.shape, k + 2), 300);
        context = "walks: " + name_of(c);
        check_walks(&b, input_of(c, (int)k), all_stages[k % 4]);
    }
}
