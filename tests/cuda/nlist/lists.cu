/* lists.cu - a part of test_nlist.cu: all cases; few particles, one object with many builds, and
   rows against brute force in double.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Particles for a case: where all lie on each other, all are partners. */
static int size_of(Shape shape, size_t k)
{
    int const sizes[] = {n_max, n_max / 2 + 1, 33, 129, 257, 64};
    int const n = std::min(sizes[scattered(k + 7) % 6], n_max);
    return shape == EQUAL ? std::min(n, 40) : n;
}

static void test_build()
{
    for (size_t k = 0; k < case_count; k++) {
        if (!chosen(k, 4 * share, 150)) continue;
        Case c = case_of(k);
        c.n = size_of(c.shape, k);
        context = "build: " + name_of(c);
        Input const in = input_of(c, (int)k);
        OnDevice const on_device(in);
        Both b;
        build(&b, c, in, on_device);
    }
}

/* No particle, one, two, three. */
static void test_few()
{
    for (size_t k = 0; k < case_count; k++)
        for (int n = 0; n < 4; n++) {
            Case c = case_of(k);
            if (!chosen(4 * k + (size_t)n, 30 * share, 800)) continue;
            c.n = n;
            c.shape = k % 2 ? EQUAL : UNIFORM;
            if (n == 0 && (c.source == GRID || c.source == TREE)) continue; /* see test_empty */
            context = "few: " + name_of(c);
            Input const in = input_of(c, (int)k);
            OnDevice const on_device(in);
            Both b;
            if (!build(&b, c, in, on_device)) continue;
            build(&b, c, in, on_device); /* and again, beside the last one */
        }
}

/* One object, built again with more or fewer particles, in other layouts, from other sources: no
   data of the last build is left. (test_history does this with history.) */
static void test_rebuild()
{
    Both b;
    wl_random r = wl_seed(77);
    for (int step = 0; step < 600 / share; step++) {
        Case c = case_of(wl_below(&r, (uint32_t)case_count));
        c.n = (int)wl_below(&r, (uint32_t)(step % 10 == 3 ? n_max : n_max / 2 + 1)) + 1;
        if (c.shape == EQUAL) c.n = std::min(c.n, 30);
        c.history = c.events = 0; /* events would compare lists of other particles */
        context = "rebuild, step " + std::to_string(step) + ": " + name_of(c);
        Input const in = input_of(c, step);
        OnDevice const on_device(in);
        if (step % 40 == 39) nlist_cuda_free(&b.gpu), nlist_free(&b.serial);
        build(&b, c, in, on_device);
    }
    nlist_cuda_free(&b.gpu);
    nlist_cuda_free(&b.gpu);
    nlist_cuda_free(nullptr);
}

/* Against brute force in double, in case both halves share an error. */
static void test_truth()
{
    wl_random dice = wl_seed(5);
    for (int step = 0; step < std::max(400 / share, 12); step++) {
        static const nlist_layout all[] = {NLIST_COMPACT, NLIST_STATIC, NLIST_DYNAMIC,
            NLIST_HYBRID};
        oracle_scene scene;
        int const dim = 2 + step % 2, source = step / 2 % 3;
        oracle_make(&scene, step % ORACLE_INPUTS, dim, oracle_roll(&dice, 1 << dim),
            20 + oracle_roll(&dice, 100), oracle_roll(&dice, ORACLE_ALL + 1), &dice);
        nlist_desc d = oracle_desc(&scene);
        Input in = {};
        in.n = scene.n;
        in.stride = scene.stride;
        in.pos.assign(scene.pos, scene.pos + (size_t)scene.n * scene.step);
        if (scene.radii) in.radii.assign(scene.radii, scene.radii + scene.n);
        if (scene.masks) in.masks.assign(scene.masks, scene.masks + scene.n);
        if (scene.exclude)
            in.exclude_start.assign(scene.exclude_start, scene.exclude_start + scene.n + 1);
        if (scene.exclude)
            in.exclude.assign(scene.exclude, scene.exclude + scene.exclude_start[scene.n]);
        in.cells = oracle_ugrid_desc(&scene);
        in.cells.method = UGRID_SORT;
        in.boxes.dim = dim;
        in.boxes.kind = LBVH_POINTS;
        for (int32_t i = 0; i < scene.n; i++)
            in.elements.insert(in.elements.end(), oracle_point(&scene, i),
                oracle_point(&scene, i) + dim);
        d.layout = all[step / 6 % 4];
        d.half = step / 3 % 2;
        d.grow = 1;
        d.deterministic = step / 4 % 2;
        in.desc = d;
        context = std::string("truth, step ") + std::to_string(step) + ": " +
            oracle_input_name(scene.input) + ", source "
                  + std::to_string(source) + ", " + layouts[d.layout] +
                      (d.half ? ", half" : ", full");
        OnDevice const on_device(in);
        Both b;
        if (scene.n > 0)
            CHECK_RESULT(build_gpu(&b, (Source)source, device_desc(in, on_device), in, on_device),
                NLIST_OK);
        if (scene.n > 0) CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        if (scene.n > 0) CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_OK);
        const char *const wrong = scene.n > 0 ? oracle_check_rows(&scene, &b.copy, nullptr) :
            nullptr;
        if (wrong) printf("%s\n", wrong);
        CHECK(wrong == nullptr);
        oracle_forget(&scene);
    }
}

/* COMPACT lists by places in twos, and rows that are longer than a warp's stage
   (nlist_i_warp_stage). */
static void test_twins()
{
#ifdef CUDA_EMU
    int const many = 601, crowd = 150;
#else
    int const many = (1 << 18) + 1, crowd = 1500;
#endif
    for (int k = 0; k < 4; k++) {
        Case c = {};
        c.source = GRID;
        c.layout = NLIST_COMPACT;
        c.dim = 2 + k % 2;
        c.shape = k < 2 ? UNIFORM : EQUAL;
        c.variant = 47; /* UGRID_SORT, the largest reach */
        c.n = k < 2 ? many : crowd;
        context = "twins: " + name_of(c);
        Input const in = input_of(c, k);
        OnDevice const there(in);
        Both b;
        build(&b, c, in, there);
        ugrid const &grid = b.grid_gpu.device.grid;
        CHECK(sizeof(real) != sizeof(float) || k > 1 || ugrid_i_twins(&grid, ugrid_path_of(&grid)));
    }
}
