/* history.cu - a part of test_nlist.cu: history and events over many steps, against the serial
   list and a map that is kept by the names of the particles.
   SPDX-License-Identifier: MIT OR Unlicense */

namespace {

/* Byte k of a history filled with `stamp`: oracle_byte, on both sides. */
__host__ __device__ unsigned char stamp_byte(uint32_t stamp, int32_t k)
{
    uint32_t x = stamp * 2654435761u ^ (uint32_t)(k / 4) * 0x9E3779B9u;
    x ^= x >> 15;
    return stamp ? (unsigned char)((x * 0x85EBCA6Bu >> (8 * (k % 4))) & 0xFFu) : (unsigned char)0;
}

/* What entry i, j is stamped with in a step; 0: it is left alone. */
__host__ __device__ uint32_t stamp_of(uint32_t step, int32_t i, int32_t j)
{
    uint32_t const s = scattered(((uint64_t)step << 40) ^ ((uint64_t)(uint32_t)i <<
        20) ^ (uint32_t)j);
    return s % 4 == 0 ? 0 : s;
}

__host__ __device__ void stamp_entry(uint32_t step, int32_t bytes, int32_t i, int32_t j,
    void *history)
{
    uint32_t const stamp = stamp_of(step, i, j);
    for (int32_t k = 0; k < bytes && stamp; k++)
        ((unsigned char *)history)[k] = stamp_byte(stamp, k);
}

__global__ void stamp_rows(__grid_constant__ const nlist_device device, const uint32_t *step)
{
    int32_t const i = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    nlist_each e = nlist_of(&device.list, i); /* beyond n: an empty row */
    while (nlist_next(&e)) stamp_entry(*step, device.list.desc.history, i, e.id, e.history);
}

/* The same for nlist_cuda_each. */
struct Stamp {
    const uint32_t *step;
    int32_t bytes;
    __host__ __device__ int operator()(int32_t i, int32_t j, void *history, int64_t) const
    {
        stamp_entry(*step, bytes, i, j, history);
        return 1;
    }
};

/* An event, with a number made from the bytes of its entry. */
struct Witness {
    int32_t i, j;
    uint32_t bytes;
};

__host__ __device__ Witness witness_of(const nlist *list, int kind, const nlist_event *event)
{
    const void *const at = kind == NLIST_ENDED ? nlist_history_before(list, event->entry) :
        nlist_history(list, event->entry);
    Witness w = {event->i, event->j, 1};
    for (int32_t k = 0; at && k < list->desc.history; k++)
        w.bytes = w.bytes * 31 + ((const unsigned char *)at)[k];
    return w;
}

__global__ void see_events(__grid_constant__ const nlist_device device, int kind, int64_t count,
    Witness *seen)
{
    int64_t const e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (e < count) seen[e] = witness_of(&device.list, kind, &device.list.event[kind][e]);
}

} /* namespace */

static void sort_witnesses(std::vector<Witness> *w)
{
    std::sort(w->begin(), w->end(),
        [](const Witness &a, const Witness &b) { return a.i != b.i ? a.i < b.i : a.j < b.j; });
}

/* A kernel finds the bytes of each event's entry, also those of the entries that are no more. */
static void check_witnesses(Both *b)
{
    for (int kind = 0; kind < NLIST_EVENT_KINDS; kind++) {
        int64_t const count = b->serial.event_count[kind];
        if (b->copy.event_count[kind] != count) continue;
        Device<Witness> d_seen((size_t)count);
        launch(count, see_events, b->gpu.device, kind, count, d_seen.p);
        std::vector<Witness> got = d_seen.get(), want;
        for (int64_t e = 0; e < count; e++)
            want.push_back(witness_of(&b->serial, kind, &b->serial.event[kind][e]));
        sort_witnesses(&got);
        sort_witnesses(&want);
        bool same = true;
        for (size_t e = 0; e < want.size(); e++)
            same = same && got[e].i == want[e].i && got[e].j == want[e].j &&
                got[e].bytes == want[e].bytes;
        CHECK(same && "events lead to their bytes");
    }
}

/* Writes into three of four entries, on both sides and in the memory where there is one. */
static void stamp_all(Both *b, oracle_memory *m, uint32_t step)
{
    Device<uint32_t> d_step(std::vector<uint32_t>(1, step));
    int32_t const bytes = b->serial.desc.history;
    Stamp const stamp = {d_step.p, bytes};
    if (step % 2) launch(b->serial.n + 100, stamp_rows, b->gpu.device, (const uint32_t *)d_step.p);
    else CHECK_RESULT(nlist_cuda_each(&b->gpu, stamp, stream), NLIST_OK);
    for (int32_t i = 0; i < b->serial.n; i++) {
        nlist_each e = nlist_of(&b->serial, i);
        while (nlist_next(&e)) {
            ptrdiff_t const at = m ? oracle_look_up(m, oracle_key(m, &b->serial, i, e.id)) : -1;
            uint32_t const s = stamp_of(step, i, e.id);
            stamp_entry(step, bytes, i, e.id, e.history);
            if (at >= 0 && s) m->contacts[at].stamp = s;
        }
    }
    MUST(cudaStreamSynchronize(stream)); /* d_step is read */
}

static void check_oracle(const char *wrong, const char *which)
{
    checks++;
    if (!wrong) return;
    printf("%s: %s\n", which, wrong);
    failed(__FILE__, __LINE__, "the memory agrees");
}

/* After a build on both sides: lists and events against each other and against the memory. */
static void check_step(Both *b, const Case &c, bool ordered, oracle_memory *m)
{
    compare(b, c.deterministic != 0, ordered);
    if (c.events) check_witnesses(b);
    if (c.events) check_oracle(oracle_check_events(m, &b->serial), "events");
    check_oracle(oracle_remember(m, &b->serial), "serial");
    check_oracle(oracle_recall(m, &b->copy), "device");
}

/* The particles of a run over many steps. */
struct World {
    std::vector<real> points;
    wl_random r;
    int dim, n;
    bool ordered;   /* the last build had an order within rows */
};

static void move(World *w, double by)
{
    for (size_t k = 0; k < w->points.size(); k++) {
        int const a = (int)(k % (size_t)w->dim);
        double x = (double)w->points[k] + by * (2 * (double)wl_u(&w->r) - 1);
        x = std::min(std::max(x, box_low), box_low + 0.999 * box_length[a]);
        w->points[k] = (real)x;
    }
}

static void append(World *w, int count)
{
    for (int i = 0; i < count; i++, w->n++)
        for (int a = 0; a < w->dim; a++)
            w->points.push_back((real)(box_low + box_length[a] * (double)wl_u(&w->r)));
}

/* New names: some particles go, some come, all are shuffled. Returns how many there are then. */
static int32_t rename(World *w, std::vector<int32_t> *new_id, int gone, int come)
{
    std::vector<int32_t> names;
    std::vector<real> points;
    int const n = std::max(w->n - gone, 0) + come;
    for (int i = 0; i < n; i++) names.push_back(i);
    for (int i = n; i > 1; i--)
        std::swap(names[(size_t)i - 1], names[wl_below(&w->r, (uint32_t)i)]);
    new_id->assign((size_t)w->n, -1);
    for (int i = 0; i < w->n - gone; i++) (*new_id)[(size_t)i] = names[(size_t)i];
    for (int i = w->n; i > 1; i--)
        std::swap((*new_id)[(size_t)i - 1], (*new_id)[wl_below(&w->r, (uint32_t)i)]);
    for (int i = 0; i < n; i++)
        for (int a = 0; a < w->dim; a++)
            points.push_back((real)(box_low + box_length[a] * (double)wl_u(&w->r)));
    for (int i = 0; i < w->n; i++)
        for (int a = 0; a < w->dim && (*new_id)[(size_t)i] >= 0; a++)
            points[(size_t)((*new_id)[(size_t)i] * w->dim + a)] =
                w->points[(size_t)(i * w->dim + a)];
    w->points.swap(points);
    w->n = n;
    return n;
}

static void remap(Both *b, World *w, oracle_memory *m, int gone, int come)
{
    std::vector<int32_t> new_id;
    int32_t const n = rename(w, &new_id, gone, come);
    Device<int32_t> d_new_id(new_id);
    CHECK_RESULT(nlist_remap(&b->serial, new_id.data(), n), NLIST_OK);
    CHECK_RESULT(nlist_cuda_remap(&b->gpu, d_new_id.p, n, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&b->gpu, stream), NLIST_OK);
    oracle_rename(m, new_id.data(), n, b->serial.keys);
    check_oracle(oracle_recall(m, &b->serial), "serial after a remap");
    CHECK_RESULT(nlist_cuda_download(&b->copy, &b->gpu, stream), NLIST_OK);
    CHECK_RESULT(nlist_validate(&b->copy), NLIST_OK);
    check_rows(b->serial, b->copy, w->ordered, false);
    check_oracle(oracle_recall(m, &b->copy), "device after a remap");
    if (rows_of(b->serial).uid)
        CHECK(same_bits(rows_of(b->serial).uid, rows_of(b->copy).uid, (size_t)n));
}

/* The case of one step: with `any`, layout, source and width are new each time. */
static Case step_of(const Case &c, World *w, bool any)
{
    Case now = c;
    if (any) now.layout = (nlist_layout)wl_below(&w->r, 4);
    if (any) now.source = (Source)wl_below(&w->r, SOURCES);
    /* of the grids UGRID_SORT: rows keep their order */
    if (any) now.variant = (int)wl_below(&w->r, 60) / 15 * 15;
    if (any) now.width = (int)wl_below(&w->r, 5);
    now.n = w->n;
    return now;
}

static void run_history(const Case &c, int steps, bool any, int seed)
{
    Both b;
    oracle_memory m = {};
    World w = {{}, wl_seed((uint64_t)seed), c.dim, 0, true};
    std::string const name = "history " + std::to_string(seed) + ": " + name_of(c);
    layouts_change = any;
    append(&w, c.n);
    for (int step = 1; step <= steps; step++) {
        int const op = (int)wl_below(&w.r, 6);
        context = name + ", step " + std::to_string(step) + ", op " + std::to_string(op);
        move(&w, 0.25 * radius_of(c));
        if (op == 0 && step > 1) remap(&b, &w, &m, 0, 0);
        if (op == 1 && step > 1) remap(&b, &w, &m, (int)wl_below(&w.r, 8), (int)wl_below(&w.r, 8));
        if (op == 2 && step > 1) remap(&b, &w, &m, (int)wl_below(&w.r, (uint32_t)w.n / 3 + 1), 0);
        if (op == 3) append(&w, (int)wl_below(&w.r, 9));
        if (w.n < c.n / 2) append(&w, c.n / 2);
        if (w.n > 2 * c.n) remap(&b, &w, &m, w.n - c.n, 0);
        Case const now = step_of(c, &w, any);
        Input const in = input_at(now, w.points, &w.r);
        OnDevice const on_device(in);
        nlist_desc host = host_desc(in), device = device_desc(in, on_device);
        w.ordered = in.ordered;
        host.grow = 1;
        CHECK_RESULT(build_serial(&b, now.source, host, in), NLIST_OK);
        if (step % 3 == 0) device.grow = 1;
        else fit_exactly(b.serial, &device);
        CHECK_RESULT(build_gpu(&b, now.source, device, in, on_device), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
        check_fetched(b);
        check_step(&b, now, in.ordered, &m);
        stamp_all(&b, &m, (uint32_t)(seed * 1000 + step));
    }
    oracle_memory_free(&m);
    layouts_change = false;
}

static void test_history()
{
    for (size_t k = 0; k < case_count; k++) {
        Case c = case_of(k);
        if (c.shape != UNIFORM || !chosen(k + 1, std::max(share, 24), 40)) continue;
        c.n = std::min(n_max, 60);
        if (c.history == 0) c.history = 8;
        c.events = 1;
        c.exclusive = c.masked = 0;
        run_history(c, share > 4 ? 8 : 24, k % 3 == 0, (int)k);
    }
}

/* Without history, events alone; and history alone. */
static void test_events()
{
    for (size_t k = 0; k < 16; k++) {
        Case c = case_of(scattered(k) % case_count);
        c.layout = (nlist_layout)(k % 4);
        c.half = (int)(k / 4 % 2);
        c.shape = UNIFORM;
        c.history = k / 8 ? 0 : 8;
        c.events = k / 8 ? 1 : 0;
        c.n = std::min(n_max, 50);
        run_history(c, share > 4 ? 3 : 20, false, (int)k);
    }
}
