/* periodic.cu - a part of test_nbody.cu: periodic squares: all laws and cores in all stages, with
   the bits of the serial code.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Bodies are in the unit square; the one that repeats is smaller, so that some have their images
   inside, and clumps lie across its border. */
static Input in_square(int setting, int k, int n)
{
    static const nbody_law laws[] = {NBODY_INVERSE_SQUARE, NBODY_INVERSE, NBODY_VORTEX};
    static const int levels[] = {0, 3, 4, 5};
    Case c = {};
    c.setting = setting;
    c.law = laws[k % 3];
    c.masses = k % 2 ? BOTH_SIGNS : WILD;
    c.shape = (Shape)(k % SHAPES);
    if (c.shape == ONE_FAR || c.shape == EQUAL) c.shape = BORDERS;
    c.levels = levels[k / 3 % 4];
    c.leaf = c.levels ? 0 : 2 + 3 * (k % 2);
    c.padded = k % 5 == 0;
    c.units = k % 4;
    c.n = n;
    context = "periodic: " + name_of(c);
    Input in = input_of(c, k);
    static const double scales[] = {1, 3e5, 1e-4, 1}, offsets[] = {0, -1e5, 0, 17};
    static const double widths[] = {0, 0.02, 0.1};
    in.desc.periodic = 1;
    in.desc.core = c.law && k / 2 % 2 ? NBODY_GAUSSIAN : NBODY_PLUMMER;
    in.desc.size = (real)(0.75 * scales[c.units]);
    in.desc.softening = (real)(widths[k / 4 % (in.desc.core ? 2 : 3)] * (double)in.desc.size);
    in.desc.min[0] = (real)(offsets[c.units] + 0.1 * scales[c.units]);
    in.desc.min[1] = (real)(offsets[c.units] - 0.2 * scales[c.units]);
    return in;
}

static bool repeats(const Setting &s)
{
    return takes_signs(s) && s.method != NBODY_AUTO && !(few_large && is_large(s));
}

static void test_periodic()
{
    int number = 0;
    for (int k = 0; k < 36; k++)
        for (int setting = 0; setting < SETTINGS; setting++) {
            int const every = share > 400 ? 61 : share > 50 ? 23 : 1;
            if (!repeats(settings[setting]) || number++ % every != 0) continue;
            int const n = k % 7 == 3 ? 1 + k % 4 : std::min(n_max, share > 50 ? 60 : 130);
            Input const in = in_square(setting, k, n);
            run_with_points(in, true);
            check_again(in, all_stages[number % 4]);
        }
}

static void test_periodic_walks()
{
    int const setting = setting_like(NBODY_FORCE_NODES, 0);
    for (int k = 0; k < 12; k++) {
        if (!thinned((size_t)k, share / 50 + 1, 6)) continue;
        Both b;
        check_walks(&b, in_square(setting, k, std::min(n_max, 130)), all_stages[k % 4]);
    }
}

/* Levels 0 to 2 are made however little room there is: with them forces are right. */
static void test_periodic_cells_full()
{
    for (int32_t room : {1, 30}) {
        if (share > 400 && room > 1) continue;
        Both b;
        Fields want;
        nbody_frame frame = {};
        Input in = in_square(setting_like(NBODY_FORCE_NODES, 3), 12, std::min(n_max, 100));
        OnDevice const there(in);
        CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
        in.desc.max_cells = room;
        CHECK_RESULT(run_gpu(&b.gpu, in, NBODY_MANY_THREADS, there), NBODY_OK);
        CHECK_RESULT(nbody_cuda_check(&b.gpu, &frame, stream), NBODY_CELLS_FULL);
        CHECK(frame.cells_needed == b.serial.frame->cells && frame.cells > 16);
        CHECK_AT_MOST(estimate_on_gpu(&b, there).share, 2e-2);
        in.desc.max_cells = frame.cells_needed;
        run_stage(&b, in, NBODY_MANY_THREADS, want, there);
    }
}

/* Host memory that is counted, and fails on demand. */
static void *host_alloc(size_t bytes, void *user)
{
    Heap *h = (Heap *)user;
    if (++h->calls == h->fail_at) return nullptr;
    h->live++;
    return malloc(bytes);
}

static void host_free(void *memory, size_t, void *user)
{
    ((Heap *)user)->live--;
    free(memory);
}

/* The lattice is made on the host, and kept: that may fail. After a reserve nothing is
   allocated. */
static void test_periodic_memory()
{
    for (nbody_method method : {NBODY_DIRECT, NBODY_FORCE_NODES}) {
        Heap host = {}, h = {};
        Both b;
        Fields want;
        Input in = in_square(setting_like(method, 0), 1, 40);
        OnDevice const there(in);
        nbody_desc d = in.desc;
        CHECK_RESULT(run_serial(&b.serial, in, &want), NBODY_OK);
        d.allocator = {host_alloc, host_free, &host};
        d.cuda_allocator = allocator_of(&h);
        host.fail_at = 1;
        CHECK_RESULT(nbody_cuda_reserve(&b.gpu, &d, 40, stream), NBODY_OUT_OF_MEMORY);
        CHECK_RESULT(nbody_cuda_reserve(&b.gpu, &d, 40, stream), NBODY_OK);
        long const calls = h.calls;
        in.desc = d;
        for (int again = 0; again < 2; again++) run_stage(&b, in, NBODY_MANY_THREADS, want, there);
        CHECK(h.calls == calls && host.live == 1 && "nothing more was allocated");
        in.desc.allocator = nbody_allocator{};
        CHECK_RESULT(run_gpu(&b.gpu, in, NBODY_FAST, there), NBODY_BAD_ALLOCATOR);
        nbody_cuda_free(&b.gpu);
        nbody_free(&b.copy);
        CHECK(h.live == 0 && host.live == 0);
    }
}
