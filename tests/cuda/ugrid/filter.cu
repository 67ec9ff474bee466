/* filter.cu - a part of test_ugrid.cu: grid.filter, against the serial searches through the arrays
   of the device (that are held against brute force in tests/unit/ugrid/test_ugrid_filter.c).
   SPDX-License-Identifier: MIT OR Unlicense */

static void test_filter()
{
    std::vector<Case> const cases = all_cases();
    for (size_t k = 0; k < cases.size(); k++) {
        Case const &c = cases[k];
        if (!chosen(k, 2 * share)) continue;
        ugrid_desc const d = desc_of(c);
        int const n = n_max / 8, options = 1 + (int)(scattered(k) % 15);
        std::vector<real> const pos = mixed_points(d, n, (int)k);
        std::vector<real> radii;
        std::vector<uint32_t> masks;
        std::vector<uint8_t> sets;
        std::vector<int64_t> start(1, 0);
        std::vector<int32_t> exclude;
        wl_random r = wl_seed(k);
        context = "filter " + std::to_string(options) + ": " + name_of(c);
        for (int i = 0; i < n; i++) {
            radii.push_back(d.cell * (real)0.3 * (real)wl_u(&r));
            masks.push_back(wl_below(&r, 8));
            sets.push_back((uint8_t)(wl_below(&r, 2) ? wl_below(&r, 3) : 31));
            for (uint32_t e = wl_below(&r, 4); e > 0; e--)
                exclude.push_back((int32_t)wl_below(&r, (uint32_t)n));
            start.push_back((int64_t)exclude.size());
        }
        Device<real> d_pos(pos), d_radii(radii);
        Device<uint32_t> d_masks(masks);
        Device<uint8_t> d_sets(sets);
        Device<int64_t> d_start(start);
        Device<int32_t> d_exclude(exclude);
        Grids g;
        if (!build(&g, d, pos, d_pos)) continue;
        ugrid_filter host = {}, device = {};
        for (uint32_t &sees : host.sees) sees = wl_below(&r, 16) | wl_below(&r, 2) << 31;
        memcpy(device.sees, host.sees, sizeof host.sees);
        host.largest = device.largest = d.cell * (real)0.3;
        if (options & 1) host.radii = radii.data(), device.radii = d_radii.p;
        if (options & 2) host.masks = masks.data(), device.masks = d_masks.p;
        if (options & 4) {
            host.exclude_start = start.data(), device.exclude_start = d_start.p;
            host.exclude = exclude.data(), device.exclude = d_exclude.p;
        }
        if (options & 8) host.sets = sets.data(), device.sets = d_sets.p;
        g.serial.filter = g.copy.filter = host;
        g.gpu.device.grid.filter = device;
        check_pairs(g, d.cell * (real)0.9);
        for (int flags = 0; flags < 4; flags++) check_counts(g, d.cell * (real)0.9, flags);
        for (int flags = 0; flags < 4; flags++) check_neighbors(g, d.cell * (real)0.9, flags);
        g.gpu.device.grid.filter.exclude = nullptr;
        g.gpu.device.grid.filter.exclude_start = d_start.p;
        Device<int64_t> d_pairs(1);
        CHECK_RESULT(ugrid_cuda_count_pairs(&g.gpu, 1, d_pairs.p, stream), UGRID_BAD_FILTER);
        CHECK_RESULT(ugrid_cuda_build(&g.gpu, &d, d_pos.p, 0, n, stream), UGRID_OK);
        CHECK(!g.gpu.device.grid.filter.exclude_start && !g.gpu.device.grid.filter.radii);
    }
}
