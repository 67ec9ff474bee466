/* builds.cu - a part of test_ugrid.cu: all cases; crowded and empty cells, few particles, one
   object with many builds, strides, numbers that are not finite, full cells.
   SPDX-License-Identifier: MIT OR Unlicense */

/* The serial grid on the GPU: every array in the same bits, and its pairs are found there. */
static void check_upload(const Case &c, const Grids &g, const Device<real> &d_pos, real radius)
{
    Case exact = c;
    Grids up;
    Device<int64_t> d_pairs(1);
    int64_t pairs = -1;
    exact.deterministic = 1;
    CHECK_RESULT(ugrid_cuda_upload(&up.gpu, &g.serial, stream), UGRID_OK);
    up.gpu.device.grid.pos = d_pos.p;
    CHECK_RESULT(ugrid_cuda_check(&up.gpu, stream), UGRID_OK);
    CHECK(up.gpu.device.grid.outside == g.serial.outside);
    CHECK(up.gpu.device.grid.invalid == g.serial.invalid);
    CHECK_RESULT(ugrid_cuda_download(&up.copy, &up.gpu, stream), UGRID_OK);
    up.copy.pos = g.copy.pos;
    up.copy.stride = g.copy.stride;
    check_arrays(exact, g.serial, up.copy);
    CHECK_RESULT(ugrid_count_pairs(&g.serial, radius, &pairs), UGRID_OK);
    CHECK_RESULT(ugrid_cuda_count_pairs(&up.gpu, radius, d_pairs.p, stream), UGRID_OK);
    CHECK(d_pairs.get()[0] == pairs);
}

static void test_product()
{
    std::vector<Case> const cases = all_cases();
    for (size_t k = 0; k < cases.size(); k++) {
        Case const &c = cases[k];
        if (!chosen(k, share)) continue;
        context = "product: " + name_of(c);
        ugrid_desc const d = desc_of(c);
        int const n = c.size > 0 || c.bounds == CROWDED ? n_max / 4 : n_max;
        std::vector<real> const pos = mixed_points(d, n, (int)k), points = query_points(d);
        Device<real> d_pos(pos), d_points(points);
        real const radius = d.cell * (k % 3 == 0 ? (real)0.6 : k % 3 == 1 ? (real)1 : (real)1.7);
        Grids g;
        if (!build(&g, d, pos, d_pos)) continue;
        check_arrays(c, g.serial, g.copy);
        check_walks(g, points, d_points, radius);
        check_pairs(g, radius);
        for (int flags = 0; flags < 4; flags++) check_counts(g, radius, flags);
        check_neighbors(g, radius, (int)(k % 4));
        check_neighbors(g, radius, (int)((k + 1) % 4));
        check_neighbors_at(g, points, d_points, radius);
        check_sums(g, 1 + (int)(k % 3));
        check_moves(g);
        check_upload(c, g, d_pos, radius);
    }
}

/* ---- a box for each particle (desc.half_extents) ---- */

static int64_t overlaps_there(ugrid_cuda *gpu)
{
    Device<int64_t> d_pairs(1);
    CHECK_RESULT(ugrid_cuda_count_overlaps(gpu, d_pairs.p, stream), UGRID_OK);
    return d_pairs.get()[0];
}

/* The grid on the GPU, its copy here, and the serial grid on the GPU: the same pairs. */
static void check_boxes(ugrid_desc d, const std::vector<real> &pos, std::vector<real> half)
{
    Device<real> d_pos(pos), d_half(half);
    int32_t const n = (int32_t)pos.size() / d.dim;
    int64_t want = -1, pairs = -1;
    Grids g;
    d.half_extents = half.data();
    CHECK_RESULT(ugrid_build(&g.serial, &d, pos.data(), 0, n), UGRID_OK);
    CHECK_RESULT(ugrid_count_overlaps(&g.serial, &want), UGRID_OK);
    CHECK(want > 0);
    CHECK_RESULT(ugrid_cuda_upload(&g.gpu, &g.serial, stream), UGRID_OK);
    g.gpu.device.grid.pos = d_pos.p;
    CHECK(!g.gpu.device.grid.desc.half_extents);
    g.gpu.device.grid.desc.half_extents = d_half.p;
    CHECK(overlaps_there(&g.gpu) == want);
    d.half_extents = d_half.p;
    CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
    CHECK(overlaps_there(&g.gpu) == want);
    CHECK_RESULT(ugrid_cuda_download(&g.copy, &g.gpu, stream), UGRID_OK);
    g.copy.pos = pos.data();
    g.copy.stride = (size_t)d.dim * sizeof(real);
    g.copy.desc.half_extents = half.data();
    CHECK(g.copy.entries == g.serial.entries);
    CHECK_RESULT(ugrid_validate(&g.copy), UGRID_OK);
    CHECK_RESULT(ugrid_count_overlaps(&g.copy, &pairs), UGRID_OK);
    CHECK(pairs == want);
}

static void test_boxes_of_particles()
{
    Device<int64_t> d_pairs(1);
    ugrid_cuda none = {};
    CHECK_RESULT(ugrid_cuda_count_overlaps(nullptr, d_pairs.p, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_count_overlaps(&none, nullptr, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_count_overlaps(&none, d_pairs.p, stream), UGRID_NOT_BUILT);
    for (int dim = 2; dim <= 3; dim++)
        for (int bounds = 0; bounds < ALL_BOUNDS; bounds += 3)
            for (int method = UGRID_COUNT; method <= UGRID_LIST; method++) {
                Case const c = {dim, bounds, (ugrid_method)method, UGRID_SLOTS_BY_COLUMN,
                    (real)(method % 2 ? 1 : 1.7), UGRID_CELLS, UGRID_ROWS, 0, method % 2};
                if (!sensible(c)) continue;
                ugrid_desc d = desc_of(c);
                d.slots = 200;
                context = "boxes: " + name_of(c);
                std::vector<real> const pos = mixed_points(d, 150, bounds);
                std::vector<real> half(pos.size());
                for (size_t k = 0; k < half.size(); k++)
                    half[k] = d.size / 2 * (real)(k * 7919 % 17) / 16;
                check_boxes(d, pos, half);
            }
}

/* Halves that the serial build refuses count as 0, or as the largest. */
static void test_bad_boxes_of_particles()
{
    std::vector<real> const pos = {(real)0.5, (real)0.5, (real)0.6, (real)0.5, (real)0.5,
                                   (real)0.6},
        half = {-1, 0, (real)NAN, 0, 0, 9};
    Device<real> d_pos(pos), d_half(half);
    ugrid_desc d = {};
    ugrid_cuda gpu = {};
    d.dim = 2;
    d.max[0] = d.max[1] = 1;
    d.cell = d.size = (real)0.25;
    d.placement = UGRID_TIGHT;
    d.half_extents = d_half.p;
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 3, stream), UGRID_OK);
    CHECK(overlaps_there(&gpu) == 3);
    d.placement = UGRID_LOOSE; /* where they would not be read */
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, d_pos.p, 0, 3, stream), UGRID_BAD_SIZE);
    ugrid_cuda_free(&gpu);
}

/* Rows longer than any buffer: 600 particles on one spot, and a grid of a single cell. */
static void test_crowds()
{
    for (int method = UGRID_COUNT; method <= UGRID_LIST_PACKED; method++)
        for (int periodic = 0; periodic < 8; periodic += 7) {
            Case const c = {3, periodic, (ugrid_method)method, UGRID_SLOTS_BY_ROW, 0, UGRID_CELLS,
                UGRID_ROWS, 0, 0};
            ugrid_desc d = desc_of(c);
            context = "crowds: " + name_of(c);
            std::vector<real> pos;
            for (int i = 0; i < 600; i++)
                for (int a = 0; a < 3; a++)
                    pos.push_back(d.min[a] + (i < 500 ? (real)0.1 : (real)0.001 * (real)i));
            Device<real> d_pos(pos);
            Grids g;
            if (!build(&g, d, pos, d_pos)) continue;
            check_arrays(c, g.serial, g.copy);
            check_pairs(g, (real)0.05);
            check_neighbors(g, (real)0.05, method % 4);
            check_sums(g, 2);
        }
}

/* Few particles in many cells: whole chunks of empty cells in front, between and behind, also with
   the particles on the borders of chunks (cell 4096 k, and the one before). */
static void test_sparse()
{
    std::vector<std::vector<int32_t>> const scenes = {{0}, {4095}, {4096}, {8191, 8192}, {63999},
        {0, 63999}, {12287, 12288, 40960}, {20000, 20001, 20001},
        {5000, 36864, 36863, 61439, 61440}};
    for (size_t k = 0; k < scenes.size(); k++) {
        Case const c = {3, 0, UGRID_SORT, UGRID_SLOTS_BY_ROW, 0, UGRID_CELLS, UGRID_ROWS, 0, 0};
        ugrid_desc d = desc_of(c);
        std::vector<real> pos;
        context = "sparse " + std::to_string(k);
        for (int a = 0; a < 3; a++) {
            d.min[a] = 0;
            d.max[a] = 40;
        }
        d.cell = 1; /* 64000 of them */
        for (int32_t cell : scenes[k]) {
            pos.push_back((real)(cell % 40) + (real)0.5);
            pos.push_back((real)(cell / 40 % 40) + (real)0.5);
            pos.push_back((real)(cell / 1600) + (real)0.5);
        }
        if (k == 3) pos[0] = (real)NAN; /* in no cell: at the end of the order */
        Device<real> d_pos(pos);
        Grids g;
        if (k == 3) {
            CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, 2, stream), UGRID_OK);
            CHECK_RESULT(ugrid_cuda_download(&g.copy, &g.gpu, stream), UGRID_OK);
            for (int32_t cell = 0; cell <= 64000; cell++)
                CHECK(g.copy.start[cell] == (cell > 8192));
            continue;
        }
        if (!build(&g, d, pos, d_pos)) continue;
        check_arrays(c, g.serial, g.copy);
        CHECK(memcmp(g.serial.start, g.copy.start, 64001 * sizeof(int32_t)) == 0);
    }
}

/* No particles, and one. */
static void test_few()
{
    std::vector<Case> const cases = all_cases();
    for (size_t k = 0; k < cases.size(); k++) {
        if (!chosen(k, 5 * share)) continue;
        for (int n = 0; n < 3; n++) {
            ugrid_desc const d = desc_of(cases[k]);
            std::vector<real> pos = mixed_points(d, n, 3), points = query_points(d);
            Device<real> d_pos(pos), d_points(points);
            Grids g;
            context = "few: n " + std::to_string(n) + ", " + name_of(cases[k]);
            if (!build(&g, d, pos, d_pos)) continue;
            check_arrays(cases[k], g.serial, g.copy);
            check_walks(g, points, d_points, d.cell);
            check_pairs(g, d.cell);
            check_counts(g, d.cell, 0);
            check_neighbors(g, d.cell, (int)(k % 4));
            check_neighbors_at(g, points, d_points, d.cell);
            check_sums(g, 2);
            check_moves(g);
        }
    }
    ugrid_cuda gpu = {};
    ugrid_desc d = desc_of(cases[0]);
    CHECK_RESULT(ugrid_cuda_build(&gpu, &d, nullptr, 0, 0, stream), UGRID_OK);
    CHECK_RESULT(ugrid_cuda_check(&gpu, stream), UGRID_OK);
    ugrid_cuda_free(&gpu);
    ugrid_cuda_free(&gpu);
    ugrid_cuda_free(nullptr);
}

/* One grid object, rebuilt with more, fewer, and other kinds of particles: no data of the last
   build is left. */
static void test_rebuild()
{
    std::vector<Case> const cases = all_cases();
    Grids g;
    wl_random r = wl_seed(77);
    for (int step = 0; step < 300 / share; step++) {
        Case const &c = cases[wl_below(&r, (uint32_t)cases.size())];
        ugrid_desc const d = desc_of(c);
        std::vector<real> const pos =
            mixed_points(d, (int)wl_below(&r, (uint32_t)(n_max / 4)), step);
        Device<real> d_pos(pos);
        context = "rebuild, step " + std::to_string(step) + ": " + name_of(c);
        if (!build(&g, d, pos, d_pos)) continue;
        check_arrays(c, g.serial, g.copy);
        check_neighbors(g, d.cell, (int)wl_below(&r, 4));
        if (step % 50 == 49) ugrid_cuda_free(&g.gpu);
    }
}

/* Positions inside a larger struct. */
static void test_stride()
{
    struct Body { int32_t tag; real x[3]; uint8_t color[4]; };
    std::vector<Case> const cases = all_cases();
    for (size_t k = 0; k < cases.size(); k++) {
        if (!chosen(k, 3 * share)) continue;
        Case const &c = cases[k];
        ugrid_desc d = desc_of(c);
        int const n = n_max / 4;
        std::vector<real> const pos = mixed_points(d, n, 5);
        std::vector<Body> bodies((size_t)n);
        for (int i = 0; i < n; i++)
            for (int a = 0; a < c.dim; a++) bodies[(size_t)i].x[a] = pos[(size_t)(i * c.dim + a)];
        Device<Body> d_bodies(bodies);
        Grids g;
        context = "stride: " + name_of(c);
        d.slots = d.method == UGRID_FIXED ? n * 8 : 0;
        CHECK_RESULT(ugrid_build(&g.serial, &d, bodies[0].x, sizeof(Body), n), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_bodies.p->x, sizeof(Body), n, stream),
            UGRID_OK);
        CHECK_RESULT(ugrid_cuda_download(&g.copy, &g.gpu, stream), UGRID_OK);
        g.copy.pos = bodies[0].x;
        g.copy.stride = sizeof(Body);
        check_arrays(c, g.serial, g.copy);
        check_pairs(g, d.cell);
        check_counts(g, d.cell, 1);
        Device<int64_t> d_offsets((size_t)n + 1); /* query points with a stride */
        CHECK_RESULT(ugrid_cuda_neighbors_at(&g.gpu, d_bodies.p->x, sizeof(Body), n, d.cell,
            d_offsets.p, nullptr, 0, stream), UGRID_OK);
        std::vector<int64_t> want((size_t)n + 1);
        int64_t needed;
        ugrid_neighbors_at(&g.copy, bodies[0].x, sizeof(Body), n, d.cell, want.data(), nullptr, 0,
            &needed);
        CHECK(d_offsets.get() == want);
    }
}

/* The box and the cell from the points, as the serial function finds them. */
static void test_fit()
{
    for (int dim = 2; dim <= 3; dim++)
        for (int n = 0; n <= n_max; n += n < 2 ? 1 : n_max - 2) {
            Case const c = {dim, 0, UGRID_COUNT, UGRID_SLOTS_BY_COLUMN, 0, UGRID_CELLS, UGRID_ROWS,
                0, 0};
            std::vector<real> pos = mixed_points(desc_of(c), n, 9);
            if (n > 3) pos[4] = -1000, pos[5] = 3000;
            Device<real> d_pos(pos);
            ugrid_desc serial = {}, device = {};
            serial.dim = device.dim = dim;
            context = "fit: dim " + std::to_string(dim) + ", n " + std::to_string(n);
            CHECK_RESULT(ugrid_fit(&serial, pos.data(), 0, n, nullptr), UGRID_OK);
            CHECK_RESULT(ugrid_cuda_fit(&device, d_pos.p, 0, n, stream), UGRID_OK);
            for (int a = 0; a < 3; a++)
                CHECK(serial.min[a] == device.min[a] && serial.max[a] == device.max[a]);
            CHECK(serial.cell == device.cell && serial.unbounded == device.unbounded);
            if (n < 4) continue;
            pos[(size_t)(dim * (n / 2))] = (real)NAN;
            d_pos.set(pos);
            memset(&device, 0, sizeof device);
            device.dim = dim;
            CHECK_RESULT(ugrid_cuda_fit(&device, d_pos.p, 0, n, stream), UGRID_NOT_FINITE);
            for (int all = 0; all < 2; all++) { /* left out: the box of the others, or none */
                if (all) std::fill(pos.begin(), pos.end(), (real)NAN);
                d_pos.set(pos);
                serial = device = ugrid_desc{};
                serial.dim = device.dim = dim;
                serial.skip_invalid = device.skip_invalid = 1;
                CHECK_RESULT(ugrid_fit(&serial, pos.data(), 0, n, nullptr), UGRID_OK);
                CHECK_RESULT(ugrid_cuda_fit(&device, d_pos.p, 0, n, stream), UGRID_OK);
                CHECK(same_bits(serial.min, device.min, 3) && same_bits(serial.max, device.max, 3));
                CHECK(serial.cell == device.cell);
            }
        }
    { /* one point far from all others */
        int const many = 5000;
        ugrid_desc serial = {}, device = {};
        std::vector<real> pos(3 * many);
        for (int k = 0; k < 3 * many; k++) pos[k] = (real)(k * 7919 % 10007) / 10007;
        pos[300] = (real)1e9;
        Device<real> d_pos(pos);
        CHECK_RESULT(ugrid_fit(&serial, pos.data(), 0, many, nullptr), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_fit(&device, d_pos.p, 0, many, stream), UGRID_OK);
        CHECK(serial.unbounded == 1 && serial.cell < 1);
        CHECK(device.unbounded == 1 && serial.cell == device.cell);
    }
    ugrid_desc d = {};
    Device<real> d_one(std::vector<real>(3, 1));
    CHECK_RESULT(ugrid_cuda_fit(nullptr, d_one.p, 0, 1, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_fit(&d, nullptr, 0, 1, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_fit(&d, d_one.p, 1, 1, stream), UGRID_BAD_ARGUMENT);
    d.periodic[0] = 1;
    CHECK_RESULT(ugrid_cuda_fit(&d, d_one.p, 0, 1, stream), UGRID_BAD_BOX);
    d.dim = 5;
    CHECK_RESULT(ugrid_cuda_fit(&d, d_one.p, 0, 1, stream), UGRID_BAD_DIM);
    real const largest = std::numeric_limits<real>::max();
    Device<real> d_wide(std::vector<real>{0, largest, 0, 1, -largest, 1});
    d = ugrid_desc{};
    CHECK_RESULT(ugrid_cuda_fit(&d, d_wide.p, 0, 2, stream), UGRID_BOX_TOO_WIDE);
}

/* NaN and Inf: the first one is reported, all other particles can be searched as if these were not
   there, and nothing reads out of bounds. */
static void test_not_finite()
{
    std::vector<Case> const cases = all_cases();
    for (size_t k = 0; k < cases.size(); k++) {
        if (!chosen(k, share)) continue;
        Case const &c = cases[k];
        ugrid_desc d = desc_of(c);
        int const n = std::min(n_max / 4, 400), first = std::min(17 + (int)(k % 50), n - 1),
            dim = c.dim;
        std::vector<real> pos = mixed_points(d, n, 6), good;
        std::vector<int32_t> ids;
        context = "not finite: " + name_of(c);
        d.outside = UGRID_CLAMP;
        d.slots = d.method == UGRID_FIXED ? n * 8 : 0;
        for (int i = 0; i < n; i++) {
            bool const bad = i == first || (i > first && i % 11 == 0);
            if (bad) pos[(size_t)(i * dim + i % dim)] = i % 3 ? (real)NAN : (real)INFINITY;
            for (int a = 0; a < dim && !bad; a++) good.push_back(pos[(size_t)(i * dim + a)]);
            if (!bad) ids.push_back(i);
        }
        Device<real> d_pos(pos);
        Grids g;
        CHECK_RESULT(ugrid_build(&g.serial, &d, good.data(), 0, (int32_t)ids.size()), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_NOT_FINITE);
        CHECK(g.gpu.device.grid.bad_id == first);
        std::vector<int32_t> want(ids.size()), got;
        Device<int32_t> d_counts((size_t)n);
        CHECK_RESULT(ugrid_count_neighbors(&g.serial, d.cell, 0, want.data()), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_count_neighbors(&g.gpu, d.cell, 0, d_counts.p, stream), UGRID_OK);
        got = d_counts.get();
        int64_t sum = 0, total = 0, pairs;
        for (size_t i = 0; i < ids.size(); i++) {
            CHECK(got[(size_t)ids[i]] == want[i]);
            total += want[i];
        }
        for (int i = 0; i < n; i++) sum += got[(size_t)i];
        CHECK(sum == total && "the others have no neighbours");
        Device<int64_t> d_pairs(1);
        CHECK_RESULT(ugrid_count_pairs(&g.serial, d.cell, &pairs), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_count_pairs(&g.gpu, d.cell, d_pairs.p, stream), UGRID_OK);
        CHECK(d_pairs.get()[0] == pairs);
        std::vector<real> ones((size_t)n, 1), sums;
        Device<real> d_ones(ones), d_sums((size_t)g.gpu.device.grid.cell_count);
        CHECK_RESULT(ugrid_cuda_cell_sums(&g.gpu, d_ones.p, 1, 0, d_sums.p, stream), UGRID_OK);
        real in_cells = 0;
        for (real s : d_sums.get()) in_cells += s;
        CHECK(in_cells == (real)ids.size());
        for (int i = 0; i < n; i++)
            for (int a = 0; a < dim; a++)
                if (!(pos[(size_t)(i * dim + a)] - pos[(size_t)(i * dim + a)] == 0))
                    pos[(size_t)(i * dim + a)] = 0;
        d_pos.set(pos); /* the next build of the same object is not affected */
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        ugrid_result const again = ugrid_cuda_check(&g.gpu, stream);
        CHECK((again == UGRID_OK || again == UGRID_CELL_FULL) && g.gpu.device.grid.bad_id == -1);
    }
}

/* desc.skip_invalid: the serial build leaves out the same particles, in the same bits. */
static void test_skip_invalid()
{
    std::vector<Case> const cases = all_cases();
    for (size_t k = 0; k < cases.size(); k++) {
        if (!chosen(k, 4 * share)) continue;
        Case const &c = cases[k];
        ugrid_desc d = desc_of(c); /* some leave out what is outside, too */
        int const n = std::min(n_max / 4, 400), first = (int)(k % 9);
        std::vector<real> pos = mixed_points(d, n, 8);
        context = "skip invalid: " + name_of(c);
        for (int i = first; i < n; i += 9)
            pos[(size_t)(i * c.dim + i % c.dim)] = i % 2 ? (real)NAN : (real)-INFINITY;
        d.slots = d.method == UGRID_FIXED ? n * 8 : 0;
        d.skip_invalid = 1;
        Device<real> d_pos(pos);
        Grids g;
        CHECK_RESULT(ugrid_build(&g.serial, &d, pos.data(), 0, n), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_NOT_FINITE);
        CHECK(g.gpu.device.grid.bad_id == first && g.serial.bad_id == first);
        CHECK(g.gpu.device.grid.outside == g.serial.outside);
        CHECK(g.gpu.device.grid.invalid == (n - first + 8) / 9);
        CHECK_RESULT(ugrid_cuda_download(&g.copy, &g.gpu, stream), UGRID_OK);
        CHECK(g.copy.bad_id == first);
        g.copy.pos = pos.data();
        g.copy.stride = sizeof(real) * (size_t)d.dim;
        check_arrays(c, g.serial, g.copy);
        check_upload(c, g, d_pos, d.cell);
    }
}

/* FIXED with too few slots: what fits is kept, the exact number of slots needed is reported, and
   with these the build is complete. */
static void test_cell_full()
{
    std::vector<Case> const cases = all_cases();
    for (size_t k = 0; k < cases.size(); k++) {
        Case const &c = cases[k];
        if (c.method != UGRID_FIXED || c.walk != UGRID_CELLS || !chosen(k, share)) continue;
        ugrid_desc d = desc_of(c);
        std::vector<real> const pos = mixed_points(d, n_max / 4, 8);
        Device<real> d_pos(pos);
        int const n = n_max / 4;
        Grids g;
        context = "cell full: " + name_of(c);
        d.outside = UGRID_CLAMP;
        d.slots = 2;
        CHECK_RESULT(ugrid_build(&g.serial, &d, pos.data(), 0, n), UGRID_CELL_FULL);
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_CELL_FULL);
        CHECK(g.gpu.device.grid.needed_slots == g.serial.needed_slots);
        Device<int32_t> d_counts((size_t)n); /* a search through what was kept is sound */
        CHECK_RESULT(ugrid_cuda_count_neighbors(&g.gpu, d.cell, 0, d_counts.p, stream), UGRID_OK);
        for (int32_t count : d_counts.get()) CHECK(count >= 0 && count < n);
        std::vector<real> some = pos; /* a particle that may be left out does not hide it */
        some[0] = (real)NAN;
        d.skip_invalid = 1;
        d_pos.set(some);
        CHECK_RESULT(ugrid_build(&g.serial, &d, some.data(), 0, n), UGRID_CELL_FULL);
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_CELL_FULL);
        d.skip_invalid = 0;
        d_pos.set(pos);
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_CELL_FULL);
        CHECK_RESULT(ugrid_cuda_download(&g.copy, &g.gpu, stream), UGRID_OK);
        for (int32_t cell = 0; cell < g.copy.cell_count; cell++)
            for (int s = 0; s < std::min(g.copy.count[cell], 2); s++) {
                int32_t const entry = g.copy.slot[c.layout == UGRID_SLOTS_BY_ROW ? cell * 2 + s :
                    s * g.copy.cell_count + cell];
                CHECK(entry >= 0 && entry < n * g.copy.spans);
            }
        int32_t const needed = d.slots = g.gpu.device.grid.needed_slots;
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_OK);
        d.slots = 2;
        d.grow = 1;
        for (int turn = 0; turn < 2; turn++) {
            CHECK_RESULT(ugrid_build(&g.serial, &d, pos.data(), 0, n), UGRID_OK);
            CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
            CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_OK);
            int32_t const slots = g.gpu.device.grid.desc.slots;
            CHECK(slots >= needed && slots == g.serial.desc.slots);
            CHECK(ugrid_cuda_download(&g.copy, &g.gpu, stream) == UGRID_OK);
            g.copy.pos = pos.data();
            g.copy.stride = g.serial.stride;
            check_arrays(c, g.serial, g.copy);
        }
    }
}

/* A half search reads no row of cells below that of its particle: their starts are overwritten. */
static void test_half_rows()
{
    for (int dim = 2; dim <= 3; dim++)
        for (int periodic = 0; periodic < 2; periodic++) {
            Case const c = {dim, 0, UGRID_SORT, UGRID_SLOTS_BY_ROW, 0, UGRID_STRIPS, UGRID_ROWS, 0,
                0};
            ugrid_desc d = desc_of(c);
            std::vector<real> pos;
            std::vector<int32_t> garbage;
            int64_t pairs;
            context = "half rows: dim " + std::to_string(dim);
            d.periodic[0] = periodic;
            for (int i = 0; i < 6; i++) /* in the third row of cells, of the second layer */
                for (int a = 0; a < dim; a++)
                    pos.push_back(d.min[a] + d.cell * (real)1.11 *
                        (a == 0 ? (real)(0.5 + 0.3 * i) : (real)(4 - a) - (real)0.5));
            Device<real> d_pos(pos);
            Grids g;
            if (!build(&g, d, pos, d_pos)) continue;
            CHECK_RESULT(ugrid_count_pairs(&g.serial, d.cell, &pairs), UGRID_OK);
            int32_t const row = ugrid_cell_at(&g.serial, pos.data()) / g.serial.axis[0].cells;
            for (int32_t cell = 0; cell < row * g.serial.axis[0].cells; cell++)
                garbage.push_back(1000000 * (cell + 1));
            MUST(cudaMemcpyAsync(g.gpu.device.grid.start, garbage.data(),
                garbage.size() * sizeof(int32_t), cudaMemcpyHostToDevice, stream));
            Device<int64_t> d_pairs(1);
            CHECK_RESULT(ugrid_cuda_count_pairs(&g.gpu, d.cell, d_pairs.p, stream), UGRID_OK);
            CHECK(d_pairs.get()[0] == pairs && pairs > 0 && !garbage.empty());
        }
}

/* Particles outside the box are refused: both sides name the same one, and count them. */
static void test_outside()
{
    std::vector<Case> const cases = all_cases();
    for (size_t k = 0; k < cases.size(); k++) {
        Case const &c = cases[k];
        if (c.bounds >= UNBOUNDED || !chosen(k, 4 * share)) continue;
        ugrid_desc d = desc_of(c);
        int const n = n_max / 4;
        std::vector<real> pos = mixed_points(d, n, (int)k);
        Device<real> d_pos(pos);
        Grids g;
        context = "outside: " + name_of(c);
        d.outside = UGRID_REFUSE;
        d.slots = d.method == UGRID_FIXED ? n * 8 : 0;
        ugrid_result const want = ugrid_build(&g.serial, &d, pos.data(), 0, n);
        CHECK(want == (g.serial.outside > 0 ? UGRID_OUTSIDE_BOX : UGRID_OK));
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), want);
        CHECK(g.gpu.device.grid.bad_id == g.serial.bad_id);
        CHECK(g.gpu.device.grid.outside == g.serial.outside);
        pos[(size_t)(c.dim * (n - 1))] = (real)NAN; /* is reported first */
        d_pos.set(pos);
        CHECK_RESULT(ugrid_build(&g.serial, &d, pos.data(), 0, n), UGRID_NOT_FINITE);
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream), UGRID_NOT_FINITE);
        CHECK(g.gpu.device.grid.bad_id == n - 1 && g.serial.bad_id == n - 1);
        d.skip_invalid = 1; /* is reported after those outside */
        ugrid_result const skipped = ugrid_build(&g.serial, &d, pos.data(), 0, n);
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        CHECK_RESULT(ugrid_cuda_check(&g.gpu, stream),
                     skipped == UGRID_OK ? UGRID_NOT_FINITE : UGRID_OUTSIDE_BOX);
        CHECK(g.gpu.device.grid.bad_id == g.serial.bad_id);
        CHECK(g.gpu.device.grid.invalid == 1 && g.serial.invalid == 1);
    }
}
