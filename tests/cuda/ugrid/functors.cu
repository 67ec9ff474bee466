/* functors.cu - a part of test_ugrid.cu: searches that call a functor for each contact, and
   sums.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Each contact once for each functor, with or without UGRID_HALF, against the serial lists. */
static void check_functors(Grids &g, ugrid_desc const &d, int n)
{
    std::vector<int32_t> const zero((size_t)n);
    Device<int32_t> as_i(zero), as_j(zero), wrong(std::vector<int32_t>(1, 0)), sums((size_t)n);
    bool const moved = g.copy.start && d.placement == UGRID_LOOSE;
    for (int half = 0; half < 2; half++) {
        Lists const want = serial_lists(g.copy, d.cell, half ? UGRID_HALF : 0);
        std::vector<int32_t> want_i(zero), want_j(zero), want_sum(zero), by_place(zero);
        as_i.set(zero);
        as_j.set(zero);
        Note const note = {as_i.p, as_j.p, wrong.p, d.cell};
        CHECK_RESULT(ugrid_cuda_each(&g.gpu, d.cell, half ? UGRID_HALF : 0, note, stream),
            UGRID_OK);
        for (int32_t i = 0; i < n; i++)
            for (int64_t e = want.offsets[(size_t)i]; e < want.offsets[(size_t)i + 1]; e++) {
                int32_t const j = want.ids[(size_t)e];
                want_i[(size_t)i]++;
                want_j[(size_t)j]++;
                want_sum[(size_t)i] += i * 3 + j * 5 +
                    (moved ? g.copy.inverse[i] - g.copy.inverse[j] : i - j);
            }
        CHECK(as_i.get() == want_i && as_j.get() == want_j && wrong.get()[0] == 0);
        if (half) continue;
        CHECK_RESULT(ugrid_cuda_sum(&g.gpu, d.cell, 0, Weigh(), sums.p, stream), UGRID_OK);
        CHECK(sums.get() == want_sum);
        CHECK_RESULT(ugrid_gather(&g.copy, want_sum.data(), sizeof(int32_t), by_place.data()),
            UGRID_OK);
        CHECK_RESULT(ugrid_cuda_sum(&g.gpu, d.cell, UGRID_PLACES, Weigh(), sums.p, stream),
            UGRID_OK);
        CHECK(sums.get() == by_place);
    }
}

/* The same, where only particles whose masks share a bit are neighbours. */
static void check_filtered_functors(Grids &g, ugrid_desc const &d, int n)
{
    std::vector<uint32_t> masks;
    for (int i = 0; i < n; i++) masks.push_back(1 + scattered((uint64_t)i) % 7);
    Device<uint32_t> d_masks(masks);
    g.copy.filter.masks = masks.data();
    g.gpu.device.grid.filter.masks = d_masks.p;
    context += ", filtered";
    check_functors(g, d, n);
    g.copy.filter.masks = nullptr;
    g.gpu.device.grid.filter.masks = nullptr;
}

/* Counts and pairs of the same grid. */
static void check_counts(Grids &g, ugrid_desc const &d, int n)
{
    std::vector<int32_t> want((size_t)n);
    Device<int32_t> counts((size_t)n);
    Device<int64_t> d_pairs(1);
    int64_t pairs;
    CHECK_RESULT(ugrid_count_neighbors(&g.copy, d.cell, 0, want.data()), UGRID_OK);
    CHECK_RESULT(ugrid_cuda_count_neighbors(&g.gpu, d.cell, 0, counts.p, stream), UGRID_OK);
    CHECK(counts.get() == want);
    CHECK_RESULT(ugrid_count_pairs(&g.copy, d.cell, &pairs), UGRID_OK);
    CHECK_RESULT(ugrid_cuda_count_pairs(&g.gpu, d.cell, d_pairs.p, stream), UGRID_OK);
    CHECK(d_pairs.get()[0] == pairs);
}

static void check_case(const ugrid_desc &d)
{
    int const n = std::min(n_max / 4, 2000);
    std::vector<real> const pos = mixed_points(d, n, 4);
    Device<real> d_pos(pos);
    Grids g;
    if (!build(&g, d, pos, d_pos)) return;
    check_functors(g, d, n);
    check_counts(g, d, n);
    check_filtered_functors(g, d, n);
}

static void test_functors()
{
    std::vector<Case> const cases = all_cases();
    for (size_t k = 0; k < cases.size(); k++) {
        Case const &c = cases[k];
        /* each path of the templates */
        bool const strips = c.walk == UGRID_STRIPS && c.method == UGRID_SORT && !c.no_records;
        bool const lists = c.method == UGRID_LIST && c.walk == UGRID_CELLS && c.bounds <= 1;
        bool const hashed = c.method == UGRID_SORT && c.walk == UGRID_CELLS && c.size == 0 &&
                            c.bounds >= UNBOUNDED && !c.no_records;
        if (!chosen(k, 3 * share) && !((strips || lists) && c.bounds <= 1) && !hashed) continue;
        context = "functors: " + name_of(c);
        check_case(desc_of(c));
        if (!hashed || c.bounds != CROWDED) continue;
        /* hardly more buckets than cells of a walk: strips share them, those of one row, too */
        ugrid_desc d = desc_of(c);
        d.buckets = c.dim == 3 ? 32 : 16;
        check_case(d);
    }
    ugrid_cuda empty = {};
    CHECK_RESULT(ugrid_cuda_sum(&empty, 1, 0, Weigh(), (int32_t *)nullptr, stream),
        UGRID_BAD_ARGUMENT);
    Note const note = {nullptr, nullptr, nullptr, 1};
    CHECK_RESULT(ugrid_cuda_each((ugrid_cuda *)nullptr, 1, 0, note, stream), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cuda_each(&empty, 0, 0, note, stream), UGRID_BAD_RADIUS);
}
