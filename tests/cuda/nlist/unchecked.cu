/* unchecked.cu - a part of test_nlist.cu: calls after a build that did not fit, without
   nlist_cuda_check in between: they work on the list before it, and touch nothing beyond it.
   SPDX-License-Identifier: MIT OR Unlicense */

namespace {

/* Reads and counts in arrays of exactly as many particles, and triangles, as the last build had:
   what a force law does. */
struct Touch {
    const int32_t *particle, *triangle; /* zeros */
    unsigned long long *calls;
    int keys;
    __device__ int32_t read(int32_t i, int32_t j) const
    {
        return particle[i] + (keys ? triangle[nlist_key_triangle(j)] : particle[j]);
    }
    __device__ void operator()(int32_t i, int32_t j, void *history, int64_t) const
    {
        if (history) *static_cast<int32_t *>(history) += read(i, j);
        atomicAdd(calls, 1ull + (unsigned)read(i, j));
    }
    __device__ int operator()(int32_t i, int32_t j, void *history, real *own, real *other) const
    {
        (*this)(i, j, history, 0);
        own[0] = 1;
        other[0] = 1;
        return 1;
    }
};

} /* namespace */

/* Everything that may be called now; each entry among the first n particles is met `entries` times
   in all. */
static void use_unfit(Both *b, int32_t n, int32_t triangles, unsigned long long entries)
{
    Device<int32_t> const d_particle(std::vector<int32_t>((size_t)n)),
        d_triangle(std::vector<int32_t>((size_t)triangles));
    Device<unsigned long long> const d_calls(1, 0);
    Touch const touch = {d_particle.p, d_triangle.p, d_calls.p, b->gpu.device.list.keys};
    real const sides = b->gpu.device.list.desc.half ? 2 : 1;
    CHECK_RESULT(nlist_cuda_each(&b->gpu, touch, stream), NLIST_OK);
    CHECK(d_calls.get()[0] == entries);
    for (int mode = NLIST_AUTO; mode <= NLIST_REDUCE; mode++)
        for (double unit : {0.0, 0.25}) {
            Device<real> const d_sums(std::vector<real>((size_t)n));
            nlist_sums const how = {1, (nlist_mode)mode, unit};
            real sum = 0;
            /* not this width */
            if (nlist_cuda_sum<1>(&b->gpu, &how, touch, d_sums.p, stream) != NLIST_OK) continue;
            for (real x : d_sums.get()) sum += x;
            CHECK(sum == sides * (real)entries);
        }
}

/* n particles in a row, each near the two beside it; or all at one place. */
static std::vector<real> in_a_row(int n, bool crowded)
{
    std::vector<real> pos;
    for (int i = 0; i < n; i++) pos.insert(pos.end(), {crowded ? 0 : (real)i, 0, 0});
    return pos;
}

static nlist_desc unfit_desc(int k)
{
    nlist_desc d = {};
    d.layout = (nlist_layout)(k % 4);
    d.half = k / 4 % 2;
    d.history = k / 8 % 2 * 4;
    d.events = k / 8 % 2;
    d.skin = (real)(k / 16 % 2) / 4;
    d.radius = 1;
    d.width = d.layout == NLIST_HYBRID ? 1 : 4;
    d.capacity = 230;
    return d;
}

/* New names in reverse order; particles from `kept` on are removed. */
static std::vector<int32_t> turned(int n, int kept)
{
    std::vector<int32_t> names;
    for (int i = 0; i < n; i++) names.push_back(i < kept ? kept - 1 - i : -1);
    return names;
}

/* A list of `first`, then a build of `then` that does not fit, and at once new names, as many as
   that build had particles: the list of `first` with those names is what comes out, on both
   sides. */
static void run_unfit_remap(int k, int first, int then)
{
    nlist_desc d = unfit_desc(k), host = d;
    int const kept = std::min(first, then);
    std::vector<real> const row = in_a_row(first, false), crowd = in_a_row(then, true);
    std::vector<int32_t> const turn = turned(first, first), names = turned(then, then);
    std::vector<int32_t> serial_names = turned(first, kept);
    Device<real> const d_row(row), d_crowd(crowd);
    Device<int32_t> const d_turn(turn), d_names(names);
    Both b;
    context = "unfit remap " + std::to_string(k) + ", " + std::to_string(first) + ", then " +
        std::to_string(then);
    for (int i = 0; i < kept; i++) serial_names[(size_t)i] = then - 1 - i;
    host.grow = 1;
    CHECK_RESULT(nlist_build_brute(&b.serial, &host, row.data(), 0, first), NLIST_OK);
    CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, d_row.p, 0, first, stream), NLIST_OK);
    /* a list without history has two generations from its first remap on */
    if (k % 3 == 0 || !d.history) {
        CHECK_RESULT(nlist_remap(&b.serial, turn.data(), first), NLIST_OK);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_turn.p, first, stream), NLIST_OK);
    }
    CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, d_crowd.p, 0, then, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, then, stream), NLIST_OK);
    CHECK_RESULT(nlist_remap(&b.serial, serial_names.data(), then), NLIST_OK);
    use_unfit(&b, then, 0, (unsigned long long)b.serial.total);
    CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
    compare(&b, false, true);
    /* and on */
    CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, d_row.p, 0, first, stream), NLIST_OK);
    CHECK_RESULT(nlist_build_brute(&b.serial, &host, row.data(), 0, first), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
    compare(&b, false, true);
}

static void test_unfit_remap()
{
    for (int k = 0; k < 32; k++) {
        if (n_max < 80 && k % 5) continue;
        run_unfit_remap(k, 100, 50);
        run_unfit_remap(k, 20, 60);
        if (!(k & 16)) run_unfit_remap(k, 20, n_max < 80 ? 100 : 400);
    }
}

/* Sums and kernels for each entry after it, when the layout was to be another one, of another
   width. */
static void test_unfit_layouts()
{
    for (int k = 0; k < 64; k++) {
        nlist_desc d = unfit_desc(8 + k % 4), other = unfit_desc(8 + k / 4 % 4);
        int const first = k < 32 ? 60 : 25, then = 40;
        std::vector<real> const row = in_a_row(first, false), crowd = in_a_row(then, true);
        Device<real> const d_row(row), d_crowd(crowd);
        Both b;
        d.half = other.half = k / 16 % 2;
        d.width = 3; /* which does not reduce */
        if (k % 7 == 0 && d.layout == NLIST_STATIC) d.width = 33;
        context = "unfit layouts " + std::to_string(k);
        CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, d_row.p, 0, first, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &other, d_crowd.p, 0, then, stream), NLIST_OK);
        use_unfit(&b, then, 0, (unsigned long long)((d.half ? 1 : 2) *
            (std::min(first, then) - 1)));
        nlist_result const r = nlist_cuda_check(&b.gpu, stream);
        CHECK(r == NLIST_ROW_FULL || r == NLIST_LIST_FULL);
        CHECK(b.gpu.device.list.n == first && b.gpu.device.list.built);
        use_unfit(&b, first, 0, (unsigned long long)((d.half ? 1 : 2) * (first - 1)));
    }
}

/* The first list does not fit, and its memory has held another list before: there is no list. */
static void test_unfit_first()
{
    for (int k = 0; k < 32; k++) {
        nlist_desc plain = unfit_desc(k % 4), d = unfit_desc(8 + k / 4 % 4);
        Device<real> const d_row(in_a_row(100, false)), d_crowd(in_a_row(50, true));
        Device<int32_t> const d_names(turned(50, 50));
        Both b;
        context = "unfit first " + std::to_string(k);
        if (k < 16)
            CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &plain, d_row.p, 0, 100, stream), NLIST_OK);
        else CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, d_row.p, 0, 100, stream), NLIST_OK);
        if (k >= 16) CHECK_RESULT(nlist_cuda_reserve(&b.gpu, &d, 100, 1, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, d_crowd.p, 0, 50, stream), NLIST_OK);
        use_unfit(&b, 50, 0, 0);
        if (k % 2) {
            CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, 50, stream), NLIST_OK);
            CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
            CHECK(b.gpu.device.list.n == 50 && b.gpu.device.list.total == 0);
            continue;
        }
        nlist_result const r = nlist_cuda_check(&b.gpu, stream);
        CHECK(r == NLIST_ROW_FULL || r == NLIST_LIST_FULL);
        CHECK(b.gpu.device.list.n == 0 && !b.gpu.device.list.built);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, 50, stream), NLIST_NOT_BUILT);
        CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_NOT_BUILT);
    }
}

/* A list of triangles, renamed, and one of fewer triangles and more particles that does not fit: of
   the one before, what the new mesh has is met, and it is there as it was after a check. */
static void run_unfit_mesh(Both *b, const Input &in, const OnDevice &there, const Input &many,
    const OnDevice &many_there, const nlist_desc &desc)
{
    Mesh const large = mesh_of(6, false, false), small = mesh_of(1, false, false);
    MeshOnDevice const large_there(large), small_there(small);
    std::vector<int32_t> const turn = turned(in.n, in.n), more = turned(many.n, many.n);
    Device<int32_t> const d_turn(turn), d_more(more);
    nlist_desc d = desc;
    unsigned long long low = 0;
    build_mesh_trees(b, large, large_there);
    CHECK_RESULT(mesh_serial(b, d, large, in), NLIST_OK);
    d.capacity = b->serial.total;
    CHECK_RESULT(mesh_gpu(b, d, large, large_there, in, there), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&b->gpu, stream), NLIST_OK);
    CHECK(b->gpu.device.list.triangles == 72 && b->serial.triangles == 72);
    CHECK_RESULT(nlist_cuda_remap(&b->gpu, d_turn.p, in.n, stream), NLIST_OK);
    CHECK_RESULT(nlist_remap(&b->serial, turn.data(), in.n), NLIST_OK);
    for (int32_t i = 0; i < in.n; i++)
        for (const Entry &e : row_of(b->serial, i, false)) low += nlist_key_triangle(e.id) < 2;
    CHECK(low > 0 && low < (unsigned long long)b->serial.total);
    build_mesh_trees(b, small, small_there);
    CHECK_RESULT(mesh_gpu(b, d, small, small_there, many, many_there), NLIST_OK);
    use_unfit(b, many.n, 2, low);
    CHECK_RESULT(nlist_cuda_remap(&b->gpu, d_more.p, many.n, stream), NLIST_OK);
    use_unfit(b, many.n, 2, low);
    std::vector<int32_t> names(more.begin(), more.begin() + in.n);
    CHECK_RESULT(nlist_remap(&b->serial, names.data(), many.n), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&b->gpu, stream), NLIST_OK);
    CHECK(b->gpu.device.list.triangles == 72);
    compare(b, false, true);
    CHECK(b->copy.triangles == 72);
}

/* So; and then, in a list without history, particles instead of triangles, and triangles instead of
   particles. */
static void test_unfit_meshes()
{
    Mesh const mesh = mesh_of(1, false, false);
    MeshOnDevice const mesh_there(mesh);
    wl_random r = wl_seed(3);
    Input const in = mesh_particles(60, false, false, &r),
        many = mesh_particles(900, false, false, &r);
    OnDevice const there(in), many_there(many);
    Device<real> const d_crowd(in_a_row(80, true)), d_row(in_a_row(60, false));
    Device<int32_t> const d_names(turned(80, 80));
    nlist_desc d = in.desc, particles = unfit_desc(2);
    for (int history = 0; history < 2; history++) {
        Both b;
        context = "unfit meshes " + std::to_string(history);
        d.capacity = 0;
        d.history = 4 * history;
        run_unfit_mesh(&b, in, there, many, many_there, d);
        if (history) continue;
        /* keys are no particles */
        CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &particles, d_crowd.p, 0, 80, stream),
            NLIST_OK);
        use_unfit(&b, 80, 0, 0);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, 80, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        CHECK(b.gpu.device.list.n == 80 && b.gpu.device.list.total == 0);
        CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &particles, d_row.p, 0, 60, stream), NLIST_OK);
        build_mesh_trees(&b, mesh, mesh_there);
        d.capacity = 1;
        /* nor particles keys */
        CHECK_RESULT(mesh_gpu(&b, d, mesh, mesh_there, many, many_there), NLIST_OK);
        use_unfit(&b, many.n, 2, 0);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_LIST_FULL);
    }
}

/* From points to points of more numbers, where the reference positions of the old list have
   fewer. */
static void test_unfit_dimensions()
{
    for (int k = 0; k < 8; k++) {
        nlist_desc d = unfit_desc(16 + k % 4);
        Device<real> const d_row(in_a_row(60, false)), d_crowd(in_a_row(60, true));
        Device<int32_t> const d_names(turned(60, 60));
        Both b;
        context = "unfit dimensions " + std::to_string(k);
        d.dim = k < 4 ? 2 : 3;
        CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, d_row.p, 3 * sizeof(real), 60, stream),
            NLIST_OK);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, 60, stream), NLIST_OK);
        d.dim = 5 - d.dim;
        CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, d_crowd.p, 3 * sizeof(real), 60, stream),
            NLIST_OK);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, 60, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_moved(&b.gpu, d_row.p, 3 * sizeof(real), stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        CHECK(b.gpu.device.list.n == 60 && b.gpu.device.list.total == 0);
        CHECK(facts_of(b.gpu).moved == 60);
    }
}

/* A domain that empties and fills again, on both sides. */
static void test_domain_empties()
{
    for (int k = 0; k < 32; k++) {
        nlist_desc const d = unfit_desc(k);
        std::vector<real> const row = in_a_row(12, false);
        std::vector<int32_t> const gone(12, -1);
        Device<real> const d_row(row);
        Device<int32_t> const d_gone(gone);
        Both b;
        context = "domain empties " + std::to_string(k);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, nullptr, 4, stream), NLIST_NOT_BUILT);
        CHECK_RESULT(nlist_build_brute(&b.serial, &d, nullptr, 0, 0), NLIST_OK);
        CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, nullptr, 0, 0, stream), NLIST_OK);
        for (int step = 0; step < 3; step++) {
            CHECK_RESULT(nlist_remap(&b.serial, nullptr, 12), NLIST_OK); /* twelve come */
            CHECK_RESULT(nlist_cuda_remap(&b.gpu, nullptr, 12, stream), NLIST_OK);
            if (step != 1) CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
            compare(&b, false, true);
            CHECK_RESULT(nlist_build_brute(&b.serial, &d, row.data(), 0, 12), NLIST_OK);
            CHECK_RESULT(nlist_cuda_build_brute(&b.gpu, &d, d_row.p, 0, 12, stream), NLIST_OK);
            compare(&b, false, true);
            CHECK_RESULT(nlist_remap(&b.serial, gone.data(), 0), NLIST_OK); /* and go */
            CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_gone.p, 0, stream), NLIST_OK);
            if (step != 1) CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
            CHECK(b.gpu.device.list.n == 0 && b.gpu.device.list.built);
            compare(&b, false, true);
            CHECK_RESULT(nlist_cuda_upload(&b.gpu, &b.serial, stream), NLIST_OK);
            CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_OK);
            CHECK(b.copy.n == 0 && b.copy.built);
        }
    }
}

/* Never built: calls that need a list return NLIST_NOT_BUILT; nlist_cuda_check waits all the
   same. */
static void test_not_built()
{
    nlist_desc d = {};
    Device<int32_t> const d_one(1, 0);
    Device<unsigned long long> const d_calls(1, 0);
    Device<real> const d_sums(std::vector<real>(4));
    Touch const touch = {d_one.p, d_one.p, d_calls.p, 0};
    nlist_sums const how = {1, NLIST_AUTO, 0};
    cudaGraph_t graph = nullptr;
    d.radius = 1;
    for (int reserved = 0; reserved < 2; reserved++) {
        Both b;
        context = "not built " + std::to_string(reserved);
        if (reserved) CHECK_RESULT(nlist_cuda_reserve(&b.gpu, &d, 4, 1, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_each(&b.gpu, touch, stream), NLIST_NOT_BUILT);
        CHECK_RESULT(nlist_cuda_sum<1>(&b.gpu, &how, touch, d_sums.p, stream), NLIST_NOT_BUILT);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_one.p, 1, stream), NLIST_NOT_BUILT);
        CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_NOT_BUILT);
        CHECK_RESULT(nlist_cuda_upload(&b.gpu, &b.copy, stream), NLIST_NOT_BUILT);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        /* waiting is not allowed during a capture */
        MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_CUDA_ERROR);
        (void)cudaStreamEndCapture(stream, &graph);
        (void)cudaGetLastError();
        CHECK(d_calls.get()[0] == 0);
    }
}
