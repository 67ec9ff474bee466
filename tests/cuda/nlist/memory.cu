/* memory.cu - a part of test_nlist.cu: allocations on the device. One that fails leaves the list
   as it was; arrays grow by a factor; after a reserve nothing is allocated.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Device memory that is counted, and fails on demand. */

/* Everything that a step may do with a list; the first result that is not NLIST_OK. */
static nlist_result use_all(nlist_cuda *gpu, const Input &in, const OnDevice &there,
    const Device<real> &d_sums, const uint32_t *d_step)
{
    Law<3> const law = {5, 0, gpu->device.list.keys, (real)0.1 / 65536};
    Stamp const stamp = {d_step, in.desc.history};
    nlist_sums const units = {3, NLIST_AUTO, 1.0 / 4096},
        contacts = {3, NLIST_PER_CONTACT, 1.0 / 4096};
    nlist_result r = nlist_cuda_each(gpu, stamp, stream);
    if (r == NLIST_OK) r = nlist_cuda_sum<3>(gpu, &units, law, d_sums.p, stream);
    if (r == NLIST_OK) r = nlist_cuda_sum<3>(gpu, &contacts, law, d_sums.p, stream);
    if (r == NLIST_OK && in.desc.skin > 0)
        r = nlist_cuda_moved(gpu, there.pos.p, in.stride, stream);
    MUST(cudaStreamSynchronize(stream));
    return r;
}

/* After a reserve, builds and sums of up to n particles allocate nothing. */
static void test_reserve()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.shape != UNIFORM || c.source == PAIRS ||
            !chosen(k + 2, std::max(2 * share / 3, 1), 50))
            continue;
        Heap h = {};
        Both b;
        c.n = std::min(n_max, 200);
        context = "reserve: " + name_of(c);
        Input in = input_of(c, (int)k);
        in.desc.width = std::max(in.desc.width, 32);
        in.desc.capacity = 64 * c.n;
        OnDevice const there(in);
        Device<real> d_sums(std::vector<real>((size_t)(3 * c.n)));
        Device<uint32_t> d_step(std::vector<uint32_t>(1, 3));
        nlist_desc d = device_desc(in, there);
        d.cuda_allocator = allocator_of(&h);
        CHECK_RESULT(nlist_cuda_reserve(&b.gpu, &d, c.n, 3, stream), NLIST_OK);
        long const calls = h.calls;
        CHECK(calls > 0 && b.gpu.device.list.n == 0);
        for (int n : {c.n, c.n / 3, c.n, 1, c.n}) {
            Input some = in;
            some.n = n;
            CHECK_RESULT(build_gpu(&b, c.source, d, some, there), NLIST_OK);
            CHECK_RESULT(use_all(&b.gpu, some, there, d_sums, d_step.p), NLIST_OK);
            CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
            CHECK(h.calls == calls && "nothing was allocated");
            CHECK(b.gpu.device.list.n == n);
        }
        CHECK_RESULT(nlist_cuda_reserve(&b.gpu, &d, c.n / 2, 3, stream), NLIST_OK);
        CHECK(b.gpu.device.list.n == 0 && h.calls == calls && "empty, with the same memory");
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        nlist_cuda_free(&b.gpu);
        CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
    }
}

/* Both sides build; the device's allocation may fail, and then the list before it is there as it
   was. Then it is tried again. */
static void build_with_failure(Both *b, const Case &c, const Input &in, const OnDevice &there,
    const nlist_cuda_allocator &heap)
{
    nlist_desc host = host_desc(in), device = device_desc(in, there);
    host.grow = 1;
    device.cuda_allocator = heap;
    device.grow = 1;
    build_source(b, c.source, in, there);
    nlist_result const r = build_list(b, c.source, device, in, there);
    if (r != NLIST_OK) {
        CHECK_RESULT(r, NLIST_OUT_OF_MEMORY);
        bool const twice = c.history || c.events;
        CHECK(b->gpu.device.list.n == b->serial.n || (!twice && b->gpu.device.list.n == 0));
        if (b->gpu.device.list.n > 0) {
            /* it may tell of a first round that did not fit */
            (void)nlist_cuda_check(&b->gpu, stream);
            CHECK_RESULT(nlist_cuda_download(&b->copy, &b->gpu, stream), NLIST_OK);
            check_rows(b->serial, b->copy, in.ordered, false);
        }
        CHECK_RESULT(build_list(b, c.source, device, in, there), NLIST_OK);
    }
    CHECK_RESULT(nlist_cuda_check(&b->gpu, stream), NLIST_OK);
    CHECK_RESULT(build_serial(b, c.source, host, in), NLIST_OK);
    compare(b, c.deterministic != 0, in.ordered);
    if (c.history) stamp_all(b, nullptr, (uint32_t)in.n);
}

/* One pass: allocation number `fail` fails (0: none). Returns how many there were. */
static long run_out_of_memory(const Case &c, const Input &in, const Input &more, long fail)
{
    Both b;
    Heap h = {};
    OnDevice const there(in), there_more(more);
    Device<real> d_sums(std::vector<real>((size_t)(3 * more.n)));
    Device<uint32_t> d_step(std::vector<uint32_t>(1, 3));
    std::vector<int32_t> names;
    nlist host = {};
    h.fail_at = fail;
    build_with_failure(&b, c, in, there, allocator_of(&h));
    build_with_failure(&b, c, more, there_more, allocator_of(&h));
    for (int32_t i = 0; i < more.n; i++) names.push_back(more.n - 1 - i);
    Device<int32_t> const d_names(names);
    nlist_result r = nlist_cuda_remap(&b.gpu, d_names.p, more.n, stream);
    if (r != NLIST_OK) {
        CHECK_RESULT(r, NLIST_OUT_OF_MEMORY);
        compare(&b, false, in.ordered);
        CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, more.n, stream), NLIST_OK);
    }
    CHECK_RESULT(nlist_remap(&b.serial, names.data(), more.n), NLIST_OK);
    Input last = more;
    last.desc.history = 0; /* nothing is written here */
    Law<3> const law = {5, 0, 0, (real)0.1 / 65536};
    nlist_sums const units = {3, NLIST_PER_CONTACT, 1.0 / 4096};
    r = nlist_cuda_sum<3>(&b.gpu, &units, law, d_sums.p, stream);
    if (r != NLIST_OK) {
        CHECK_RESULT(r, NLIST_OUT_OF_MEMORY);
        CHECK_RESULT(nlist_cuda_sum<3>(&b.gpu, &units, law, d_sums.p, stream), NLIST_OK);
    }
    CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_OK);
    check_rows(b.serial, b.copy, in.ordered, false);
    if (fail > 0) CHECK(h.calls >= fail && "the failure was met");
    nlist_cuda_free(&b.gpu);
    nlist_free(&host);
    CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
    return h.calls;
}

/* Each allocation fails once: the result is its code, the list is as before, and the next call
   works. */
static void test_out_of_memory()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.shape != UNIFORM || !chosen(k + 6, std::max(3 * share, 8), 150)) continue;
        c.n = 20;
        if (k % 2) c.history = 8;
        c.events = (int)(k / 2 % 2);
        context = "out of memory: " + name_of(c);
        Input const in = input_of(c, (int)k);
        Case large = c;
        large.n = std::min(n_max, 70);
        Input const more = input_of(large, (int)k + 1);
        std::string const name = context;
        long const calls = run_out_of_memory(c, in, more, 0);
        CHECK(calls > 3);
        for (long fail = 1; fail <= calls; fail++) {
            context = name + ", failure " + std::to_string(fail);
            run_out_of_memory(c, in, more, fail);
        }
    }
}

/* How often each block of a list got other memory; the sum over all. */
struct Growths {
    size_t bytes[int(NLIST_BLOCKS) + int(NLIST_CUDA_SCRATCH)];
    long times[int(NLIST_BLOCKS) + int(NLIST_CUDA_SCRATCH)];
    long count(const nlist_cuda &gpu)
    {
        long sum = 0;
        for (int b = 0; b < int(NLIST_BLOCKS) + int(NLIST_CUDA_SCRATCH); b++) {
            nlist_block const &block = b < NLIST_BLOCKS ? gpu.device.list.block[b] :
                gpu.scratch[b - int(NLIST_BLOCKS)];
            times[b] += block.bytes != bytes[b];
            bytes[b] = block.bytes;
            sum += times[b];
        }
        return sum;
    }
};

/* Builds with one more particle each, with history, sums and new names now and then: no array gets
   other memory more often than a logarithm tells. */
static void run_growth(nlist_layout layout, int most)
{
    Heap h = {};
    Both b;
    Growths g = {};
    std::vector<int32_t> pairs, names;
    Law<3> const law = {5, 0, 0, 1};
    nlist_sums const how = {3, NLIST_PER_CONTACT, 0.25};
    nlist_desc d = {};
    for (int32_t i = 0; i < most; i++) {
        pairs.insert(pairs.end(), {i, i + 1});
        names.push_back(i);
    }
    Device<int32_t> const d_pairs(pairs), d_names(names);
    Device<real> const d_sums(std::vector<real>((size_t)(3 * most)));
    context = "growth " + std::to_string(layout);
    d.layout = layout;
    d.width = layout == NLIST_STATIC ? 2 : 1;
    d.radius = 1;
    d.half = d.deterministic = layout % 2;
    d.history = 8;
    d.events = 1;
    d.cuda_allocator = allocator_of(&h);
    for (int32_t n = 1; n <= most; n++) {
        CHECK_RESULT(nlist_cuda_build_pairs(&b.gpu, &d, d_pairs.p, n - 1, n, stream), NLIST_OK);
        if (n % 4 == 0)
            CHECK_RESULT(nlist_cuda_sum<3>(&b.gpu, &how, law, d_sums.p, stream), NLIST_OK);
        if (n % 16 == 0) CHECK_RESULT(nlist_cuda_remap(&b.gpu, d_names.p, n, stream), NLIST_OK);
        CHECK(h.calls <= 2 * g.count(b.gpu)); /* twice in one step, at most */
    }
    CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
    CHECK(b.gpu.device.list.n == most && b.gpu.device.list.total == (d.half ? 1 : 2) * (most - 1));
    /* 2 + log(300) / log(1.5) = 16.1, and a few more for small sizes */
    for (long times : g.times) CHECK(times <= 20);
    nlist_cuda_free(&b.gpu);
    CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
}

static void test_growth()
{
    for (int k = 0; k < 4; k++)
        run_growth((nlist_layout)k, n_max < 80 ? 60 : n_max < 200 ? 150 : 600);
}

/* A reserve takes exactly what it says, also where memory is held already. */
static void test_exact_memory()
{
    for (int k = 0; k < 8; k++) {
        nlist_desc d = {};
        Both first, again;
        context = "exact memory " + std::to_string(k);
        d.layout = (nlist_layout)(k % 4);
        d.radius = 1;
        d.history = k / 4 * 8;
        d.events = k / 4;
        CHECK_RESULT(nlist_cuda_reserve(&first.gpu, &d, 500, 3, stream), NLIST_OK);
        for (int n : {400, 500})
            CHECK_RESULT(nlist_cuda_reserve(&again.gpu, &d, n, 3, stream), NLIST_OK);
        for (int b = 0; b < NLIST_BLOCKS; b++)
            CHECK(first.gpu.device.list.block[b].bytes == again.gpu.device.list.block[b].bytes);
        for (int b = 0; b < NLIST_CUDA_SCRATCH; b++)
            CHECK(first.gpu.scratch[b].bytes == again.gpu.scratch[b].bytes);
    }
}

/* Memory is given back in the stream of the last call, though that has launched nothing. */
static void test_stream_of_memory()
{
    Heap h = {};
    nlist_cuda gpu = {};
    nlist_desc d = {};
    context = "stream of memory";
    d.radius = 1;
    d.cuda_allocator = allocator_of(&h);
    CHECK_RESULT(nlist_cuda_reserve(&gpu, &d, 10, 0, stream), NLIST_OK);
    nlist_cuda_free(&gpu);
    CHECK(h.calls > 0 && h.live == 0 && !h.wrong_stream);
}

/* A download takes memory for what it brings, and none to work with. */
static void test_download_memory()
{
    Both b;
    nlist_desc d = {};
    Device<int32_t> const d_pair(std::vector<int32_t>{0, 1});
    context = "download memory";
    d.radius = 1;
    d.events = 1;
    CHECK_RESULT(nlist_cuda_build_pairs(&b.gpu, &d, d_pair.p, 1, 2, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_download(&b.copy, &b.gpu, stream), NLIST_OK);
    CHECK(b.copy.built == 1 && b.copy.total == 2 && b.copy.event_count[NLIST_BEGUN] == 1);
    CHECK(blocks_in_use(b.copy.block) == 4); /* counts, starts, partners, contacts begun */
}

/* Where there is no memory for half as much again, what is needed will do. */
static void *tight_alloc(size_t bytes, struct CUstream_st *s, void *user)
{
    return bytes > 110 * 16 * sizeof(int32_t) ? nullptr : heap_alloc(bytes, s, user);
}

static void test_tight_memory()
{
    Heap h = {};
    nlist_cuda gpu = {};
    nlist_desc d = {};
    std::vector<real> pos;
    for (int i = 0; i < 110; i++) pos.insert(pos.end(), {(real)i, 0, 0});
    Device<real> const d_pos(pos);
    context = "tight memory";
    d.layout = NLIST_STATIC;
    d.radius = 1;
    d.cuda_allocator = {tight_alloc, heap_free, &h};
    for (int n : {100, 110})
        CHECK_RESULT(nlist_cuda_build_brute(&gpu, &d, d_pos.p, 0, n, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_OK);
    CHECK(gpu.device.list.n == 110 && gpu.device.list.total == 218);
    nlist_cuda_free(&gpu);
    CHECK(h.live == 0);
}
