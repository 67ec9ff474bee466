/* too_small.cu - a part of test_nlist.cu: builds that do not fit: the size needed is reported, and
   the next build takes over the list before; desc.grow.
   SPDX-License-Identifier: MIT OR Unlicense */

/* What a list of these rows takes. */
struct Need {
    int32_t width;      /* slots of the fullest row */
    int64_t entries;    /* in partner, with `slots` slots a row */
};

static Need need_of(const nlist &list, nlist_layout layout, int32_t slots)
{
    Need need = {0, 0};
    for (int32_t i = 0; i < list.n; i++) {
        int32_t const count = (int32_t)row_of(list, i, false).size();
        need.width = std::max(need.width, count);
        if (layout != NLIST_STATIC)
            need.entries += layout == NLIST_HYBRID ? std::max(count - slots, 0) : count;
    }
    return need;
}

static void check_needed(const nlist_device &device, nlist_layout layout, const Need &need)
{
    if (layout == NLIST_STATIC || layout == NLIST_HYBRID)
        CHECK(device.list.needed_width == need.width);
    if (layout != NLIST_STATIC) CHECK(device.list.needed_entries == need.entries);
}

/* Rows that were cut short: all partners are true, `count` says how many there would be, full rows
   hold what fits. */
static void check_cut(Both *b, const nlist &whole, nlist_layout layout, int32_t width,
    int64_t capacity)
{
    int32_t const n = whole.n;
    Device<Seen> d_seen((size_t)n);
    int64_t listed = 0, wanted = 0;
    launch(n, see_rows, b->gpu.device, n, d_seen.p);
    std::vector<Seen> const seen = d_seen.get();
    std::vector<int32_t> counts((size_t)n);
    const nlist_rows &rows = rows_of(b->gpu.device.list);
    MUST(cudaMemcpy(counts.data(), rows.count, counts.size() * sizeof(int32_t),
        cudaMemcpyDeviceToHost));
    for (int32_t i = 0; i < n; i++) {
        int32_t const count = (int32_t)row_of(whole, i, false).size();
        CHECK(counts[(size_t)i] == count && (int32_t)seen[(size_t)i].count <= count);
        if (layout == NLIST_STATIC) CHECK((int32_t)seen[(size_t)i].count == std::min(count, width));
        if (layout == NLIST_HYBRID) CHECK((int32_t)seen[(size_t)i].count >= std::min(count, width));
        listed += seen[(size_t)i].count;
        wanted += layout == NLIST_HYBRID ? std::min(count, width) : 0;
    }
    if (layout != NLIST_STATIC) CHECK(listed == wanted + capacity && "all room is used");
}

/* What fills the list before it grows out of its memory, and what it grows to: closer together, and
   more or fewer of them. */
struct Growth {
    Case c, crowd;
    Input in, close;
};

static Growth growth_of(const Case &c, int seed)
{
    wl_random r = wl_seed((uint64_t)seed);
    Growth g = {c, c, {}, {}};
    g.crowd.n = c.n + (seed / 2 % 3 - 1) * 15;
    if (seed % 5 < 2) g.crowd.layout = (nlist_layout)((c.layout + 1 + seed % 3) % 4);
    std::vector<real> const points = points_of(c, c.n + 15, &r);
    size_t const numbers = (size_t)c.dim;
    g.in = input_at(c, std::vector<real>(points.begin(),
        points.begin() + (ptrdiff_t)(numbers * (size_t)c.n)), &r);
    g.close = input_at(g.crowd,
        std::vector<real>(points.begin(),
        points.begin() + (ptrdiff_t)(numbers * (size_t)g.crowd.n)),
                       &r);
    g.close.desc.radius = (real)0.9;
    return g;
}

/* The build that does not fit, with the desc `tight`: the size that was missing comes back, the
   list before it is still there. */
static void check_full(Both *b, const Growth &g, const OnDevice &there, const nlist_desc &tight,
    bool given)
{
    Both grown;
    nlist_desc host = host_desc(g.close);
    nlist_layout const layout = g.crowd.layout;
    nlist_result const full = layout == NLIST_STATIC ? NLIST_ROW_FULL : NLIST_LIST_FULL;
    host.history = host.events = 0;
    host.grow = 1;
    CHECK_RESULT(build_serial(&grown, g.c.source, host, g.close), NLIST_OK);
    int32_t const slots = tight.width || layout == NLIST_HYBRID ? tight.width : g.c.half ? 8 : 16;
    Need const need = need_of(grown.serial, layout, slots);
    int64_t const room = (int64_t)g.crowd.n * (layout == NLIST_COMPACT ? 16 :
        layout == NLIST_DYNAMIC ? 8 : 1);
    if (!given && layout != NLIST_STATIC && need.entries <= room) return; /* it happens to fit */
    if (given) { /* the serial build says the same, and keeps its list */
        host = host_desc(g.close);
        host.width = tight.width;
        host.capacity = tight.capacity;
        CHECK_RESULT(build_serial(b, g.c.source, host, g.close), full);
        check_needed({b->serial}, layout, need);
    }
    CHECK_RESULT(build_gpu(b, g.c.source, tight, g.close, there), NLIST_OK);
    for (int again = 0; again < 2; again++) {
        CHECK_RESULT(nlist_cuda_check(&b->gpu, stream), full);
        check_needed(b->gpu.device, layout, need);
    }
    if (g.c.history || g.c.events) {
        CHECK(b->gpu.device.list.n == b->serial.n);
        b->serial.desc.events = 0; /* events: none, or those before it */
        compare(b, g.c.deterministic != 0, g.in.ordered);
        b->serial.desc.events = g.c.events;
        if (b->copy.event_count[NLIST_BEGUN] > 0) check_events(b->serial, b->copy, false);
        build_verdict = full;
        if (!g.c.history) check_sums<3>(b, 1); /* with history they would count in it */
        build_verdict = NLIST_OK;
    }
    if (!g.c.history && !g.c.events && given)
        check_cut(b, grown.serial, layout, tight.width, tight.capacity);
}

/* The next build, with the same desc or with the size asked for, takes over this list. */
static void run_overflow(const Case &c, bool given, int seed)
{
    Both b;
    Growth const g = growth_of(c, seed);
    OnDevice const there(g.in), there_close(g.close);
    if (!build(&b, c, g.in, there)) return;
    if (c.history) stamp_all(&b, nullptr, 7);
    nlist_desc tight = device_desc(g.close, there_close), host = host_desc(g.close);
    if (given) fit_exactly(b.serial, &tight);
    /* it was another layout */
    if (given && tight.layout == NLIST_STATIC && tight.width == 0) tight.width = 4;
    if (given && tight.layout == NLIST_COMPACT) tight.width = 0;
    check_full(&b, g, there_close, tight, given);
    if (given && seed % 2) { /* what was asked for, no more; else the memory comes by itself */
        if (tight.layout == NLIST_STATIC) tight.width = b.gpu.device.list.needed_width;
        else tight.capacity = b.gpu.device.list.needed_entries;
    }
    host.grow = 1;
    host.width = tight.width;
    CHECK_RESULT(build_serial(&b, c.source, host, g.close), NLIST_OK);
    CHECK_RESULT(build_gpu(&b, c.source, tight, g.close, there_close), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
    check_fetched(b);
    compare(&b, c.deterministic != 0, g.in.ordered);
}

static void test_overflow()
{
    for (size_t k = 0; k < 4 * 2 * 2 * 3 * 3 * 2; k++) {
        if (!chosen(k, std::max(share / 4, 1), 8)) continue;
        bool const given = k / 144 == 0;
        Case c = {};
        c.layout = (nlist_layout)(k % 4);
        c.half = (int)(k / 4 % 2);
        c.deterministic = (int)(k / 8 % 2);
        c.source = (Source)(k / 16 % 3); /* pairs do not look at the radius */
        c.history = k / 48 % 3 == 1 ? 8 : 0;
        c.events = k / 48 % 3 == 2;
        c.dim = 3;
        c.width = given && c.layout == NLIST_HYBRID ? 2 : 0;
        c.variant = 15 * (int)(k % 4); /* grids: UGRID_SORT */
        c.n = 70; /* with fewer all would fit */
        context = std::string("overflow, ") + (given ? "room given, " : "") + name_of(c);
        run_overflow(c, given, (int)k);
    }
}

/* desc.grow: one call, whatever it takes; the list before it gives its history. */
static void test_grow()
{
    for (size_t k = 0; k < 4 * 2 * 3 * 3; k++) {
        if (!chosen(k, std::max(share / 4, 1), 6)) continue;
        Case c = {};
        c.layout = (nlist_layout)(k % 4);
        c.half = (int)(k / 4 % 2);
        c.source = (Source)(k / 8 % 3);
        c.deterministic = (int)(k % 3 == 0);
        c.history = k / 24 == 0 ? 0 : 12;
        c.events = k / 24 == 1;
        c.dim = 2 + (int)(k % 2);
        c.variant = 15 * (int)(k % 4);
        c.n = std::min(n_max, 64);
        context = "grow: " + name_of(c);
        Both b;
        wl_random r = wl_seed(k);
        std::vector<real> const points = points_of(c, c.n, &r);
        Input in = input_at(c, points, &r);
        OnDevice const on_device(in);
        for (real radius : {(real)0.1, (real)0.45, (real)0.2, (real)0.6}) {
            nlist_desc host, device;
            in.desc.radius = radius;
            in.desc.width = radius > (real)0.3 ? 1 : 0;
            in.desc.capacity = radius > (real)0.3 ? 3 : 0;
            in.desc.grow = 1;
            host = host_desc(in);
            device = device_desc(in, on_device);
            CHECK_RESULT(build_serial(&b, c.source, host, in), NLIST_OK);
            CHECK_RESULT(build_gpu(&b, c.source, device, in, on_device), NLIST_OK);
            CHECK_RESULT(nlist_cuda_check(&b.gpu, stream), NLIST_OK);
            compare(&b, c.deterministic != 0, in.ordered);
            if (c.history) stamp_all(&b, nullptr, (uint32_t)(radius * 100));
        }
    }
}
