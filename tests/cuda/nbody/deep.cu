/* deep.cu - a part of test_nbody.cu: trees of more than 17 levels, where desc.levels asks for them:
   the serial code's cells, sources and bits, in all stages; other masses, points, full cells.
   SPDX-License-Identifier: MIT OR Unlicense */

enum Cluster { NESTED, DECADES, AWAY, HEAPS, CLUSTERS };

/* Three clumps in each other, the last 1e-9 wide; radii over 12 decades; a clump 1e-6 wide away
   from the origin; two thirds on two points 1e-8 apart. */
static void put_cluster(Cluster cluster, int i, wl_random *r, real p[2])
{
    double x = (double)wl_u(r), y = (double)wl_u(r), by = 1;
    double const radius = 0.2 * std::pow(10.0, -12 * x), angle = 6.283185307179586 * y;
    if (cluster == NESTED) by = std::pow(10.0, -3 * (i % 4));
    if (cluster == DECADES) x = radius * std::cos(angle), y = radius * std::sin(angle);
    if (cluster == AWAY && i % 2) x = 0.7 + 1e-6 * x, y = 0.3 + 1e-6 * y;
    if (cluster == HEAPS && i % 3) x = i % 3 == 1 ? 0 : 1e-8, y = -x;
    p[0] = (real)(0.99 * by * x);
    p[1] = (real)(0.99 * by * y);
}

static Input deep_input(int setting, Cluster cluster, int n, int k)
{
    wl_random r = wl_seed((uint64_t)(k + 1));
    Input in = plain_input(setting, n, k);
    for (int i = 0; i < n; i++) put_cluster(cluster, i, &r, &in.pos[2 * (size_t)i]);
    in.pos[0] = in.pos[1] = (real)0.75;
    in.desc.method = settings[setting].method;
    in.desc.levels = NBODY_MAX_LEVELS - k % 2 * 9;
    in.desc.leaf = 4;
    in.desc.law = (nbody_law)(k / 6 % 2);
    in.desc.softening = (real)((k + k / 6) % 3 == 2 ? 1e-7 : 0);
    return in;
}

/* NBODY_FAST is NBODY_SHARED_MEMORY here. */
static void check_deep_stage(Both *b, const Input &in, nbody_stage stage, const Fields &want,
                             const OnDevice &there)
{
    std::string const name = context;
    context = name + ", " + stage_names[stage];
    there.acc.forget();
    there.potential.forget();
    CHECK_RESULT(run_gpu(&b->gpu, in, stage, there), NBODY_OK);
    CHECK_RESULT(nbody_cuda_check(&b->gpu, nullptr, stream), NBODY_OK);
    compare(b, in, stage == NBODY_FAST ? NBODY_SHARED_MEMORY : stage, want, there);
    context = name;
}

/* The tree is deep; terms do not grow as n^2 does. */
static void check_is_deep(const Both &b, Cluster cluster, int n)
{
    nbody_counts counts;
    CHECK(b.serial.frame->deep == 1 && b.serial.desc.levels > NBODY_KEY_LEVELS);
    CHECK_RESULT(nbody_count(&b.copy, &counts), NBODY_OK);
    CHECK(cluster == HEAPS || counts.levels > NBODY_KEY_LEVELS);
    if (cluster == DECADES) CHECK(counts.near_terms < (int64_t)n * n / 2);
}

static void test_deep()
{
    static const int which[] = {9, 1, 12, 7, 4, 10}, quick[] = {0, 18, 7, 21, 22};
    int const n = std::min(n_max, thin > 1 ? 45 : 150);
    for (int k = 0; k < 6 * CLUSTERS; k++) {
        int const setting = which[k % 6];
        Cluster const cluster = (Cluster)((k + k / 6) % CLUSTERS);
        if (thin > 1 && std::find(quick, quick + 5, k) == quick + 5) continue;
        Both b;
        Fields want;
        Input const in = deep_input(setting, cluster, n, k);
        OnDevice const there(in);
        context = "deep: cluster " + std::to_string(cluster) + ", law " +
                  std::to_string(in.desc.law) + ", " + name_of(settings[setting]);
        CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
        for (nbody_stage stage : all_stages)
            if (thin == 1 || stage == NBODY_FAST || (int)stage == 1 + k % 2)
                check_deep_stage(&b, in, stage, want, there);
        check_is_deep(b, cluster, n);
        check_points(&b, in, points_for(in, *b.serial.frame, 24, k), 0, ALL_OUTPUTS);
        if (k % 3 == 0) check_upload(&b, in, want, there);
    }
}

static void test_deep_again()
{
    context = "deep: again";
    check_again(deep_input(12, NESTED, 40, 0), NBODY_FAST);
    check_again(deep_input(12, DECADES, 40, 6), NBODY_MANY_THREADS);
}

/* Bodies that do not cluster: the tree of one key, in the stage that was asked for. */
static void test_deep_is_not_needed()
{
    Both b;
    Fields want;
    Input in = plain_input(9, 40, 1);
    in.desc.levels = NBODY_MAX_LEVELS;
    in.desc.leaf = 8;
    OnDevice const there(in);
    context = "deep: even";
    CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
    run_stage(&b, in, NBODY_FAST, want, there);
    CHECK(b.copy.desc.levels == NBODY_KEY_LEVELS && b.copy.frame->deep == 0);
    in.desc.levels = 0; /* the default */
    CHECK_RESULT(run_gpu(&b.gpu, deep_input(9, NESTED, 40, 0), NBODY_FAST, there), NBODY_OK);
    CHECK_RESULT(run_gpu(&b.gpu, in, NBODY_FAST, there), NBODY_OK);
    CHECK(b.gpu.device.sim.desc.levels == NBODY_KEY_LEVELS);
}

/* Too few cells: forces are those of all pairs, and the number needed is enough. */
static void test_deep_cells_full()
{
    Both b;
    nbody_frame frame;
    Input in = deep_input(12, DECADES, 40, 0);
    OnDevice const there(in);
    context = "deep: cells full";
    in.desc.max_cells = 60;
    CHECK_RESULT(run_gpu(&b.gpu, in, NBODY_FAST, there), NBODY_OK);
    CHECK_RESULT(nbody_cuda_check(&b.gpu, &frame, stream), NBODY_CELLS_FULL);
    CHECK(frame.cells <= 64 && frame.cells_needed > frame.cells);
    in.desc.max_cells = frame.cells_needed;
    CHECK_RESULT(run_gpu(&b.gpu, in, NBODY_FAST, there), NBODY_OK);
    CHECK_RESULT(nbody_cuda_check(&b.gpu, &frame, stream), NBODY_OK);
    CHECK(frame.cells == in.desc.max_cells && frame.levels > NBODY_KEY_LEVELS);
}

/* After nbody_cuda_reserve a deep build allocates nothing. */
static void test_deep_reserve()
{
    Input const in = deep_input(13, NESTED, 40, 0);
    OnDevice const there(in);
    Both b;
    nbody_desc d = in.desc;
    context = "deep: reserve";
    CHECK_RESULT(nbody_cuda_reserve(&b.gpu, &d, in.n, stream), NBODY_OK);
    nbody_block had[NBODY_BLOCKS];
    memcpy(had, b.gpu.block, sizeof had);
    CHECK_RESULT(run_gpu(&b.gpu, in, NBODY_FAST, there), NBODY_OK);
    CHECK(b.gpu.device.sim.desc.levels > NBODY_KEY_LEVELS);
    CHECK(memcmp(had, b.gpu.block, sizeof had) == 0);
}

/* A build that waits cannot be captured, and says so. */
static void test_deep_capture()
{
    Input const in = deep_input(12, NESTED, 40, 0);
    OnDevice const there(in);
    Both b;
    cudaGraph_t graph = nullptr;
    context = "deep: capture";
    CHECK_RESULT(nbody_cuda_reserve(&b.gpu, &in.desc, in.n, stream), NBODY_OK);
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK_RESULT(run_gpu(&b.gpu, in, NBODY_FAST, there), NBODY_CUDA_ERROR);
    CHECK(b.gpu.device.sim.cuda_error != 0 && b.gpu.device.sim.frame == nullptr);
    CHECK(cudaStreamEndCapture(stream, &graph) != cudaSuccess);
    (void)cudaGetLastError();
    CHECK_RESULT(run_gpu(&b.gpu, in, NBODY_FAST, there), NBODY_OK);
}

/* A half at one point, a quarter at another beside it, the rest even; some are dead. */
static Input crowd_input(int setting, int n, int k)
{
    Input in = plain_input(setting, n, k);
    for (int i = 0; i < n; i++) {
        real *const p = &in.pos[2 * (size_t)i];
        if (i % 4 < 2) p[0] = p[1] = (real)0.1;
        if (i % 4 == 2) p[0] = (real)0.1, p[1] = (real)(k % 3 ? 0.1001 : 0.7);
        in.mass[(size_t)i] = (real)(i % 3 ? 1.0 / (1 + i) : k % 2 * 3e-8);
    }
    in.desc.method = settings[setting].method;
    in.desc.law = (nbody_law)(k / 2 % 2);
    in.desc.leaf = 9;
    in.desc.softening = (real)(k % 4 < 2 ? 1e-3 : 0);
    return in;
}

/* Crowds are one source on both sides: the same bits, and few pairs; other masses, points. */
static void test_crowds()
{
    static const int which[] = {9, 1, 12, 7, 4, 10};
    int const n = std::min(n_max, 300);
    for (int k = 0; k < 12; k++) {
        int const setting = which[k % 6];
        if (thin > 1 && k % 3) continue;
        Both b;
        Input const in = crowd_input(setting, n, k);
        nbody_counts counts;
        context = "crowds: " + std::to_string(k) + ", " + name_of(settings[setting]);
        run_stages(&b, in);
        CHECK_RESULT(nbody_count(&b.copy, &counts), NBODY_OK);
        CHECK(n <= 4 * NBODY_CHUNK || counts.near_terms < (int64_t)n * 50);
        check_points(&b, in, points_for(in, *b.serial.frame, 24, k), 0, ALL_OUTPUTS);
        check_again(in, all_stages[k % 4]);
        if (settings[setting].sources != NBODY_MASS_CENTRES) check_sets(in, all_stages[3 - k % 4]);
    }
}
