/* half.cu - a part of test_nlist.cu: half lists by both searches, by row and by pair, from grids
   and trees; with ghosts, crowds, and one large particle among small ones.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Every layout, both sources, all periods, with ghosts and without. */
static void test_half()
{
    for (size_t k = 0; k < 4 * 2 * 3 * 2; k++) {
        uint32_t const s = scattered(k + 500);
        Case c = case_of(s % case_count);
        c.layout = (nlist_layout)(k % 4);
        c.source = k / 4 % 2 ? GRID : TREE;
        c.periodic = (int)(k / 8 % 3);
        c.half = 1, c.deterministic = 0;
        c.variant = (int)(s / 8 % 2 * 15 + s / 16 % 6); /* UGRID_SORT, UGRID_COUNT */
        c.n = std::min(size_of(c.shape, k), 48);
        Input in = input_of(c, (int)k);
        if (k / 24) in.desc.rows = c.n / 2;
        OnDevice const on_device(in);
        for (int search : {NLIST_I_BY_PAIR, NLIST_I_BY_ROW}) {
            Both b;
            b.gpu.search = search;
            context = "half, search " + std::to_string(search) + ", rows " +
                      std::to_string(in.desc.rows) + ": " + name_of(c);
            build(&b, c, in, on_device);
            build(&b, c, in, on_device); /* and again, over these rows */
        }
    }
}

/* One particle touches all others: it owns all its pairs, or none. Against brute force, too. */
static void test_half_giant()
{
    for (size_t k = 0; k < 16; k++) {
        Case c = {};
        Both b;
        c.source = k % 2 ? GRID : TREE;
        c.layout = (nlist_layout)(k / 2 % 4);
        c.half = c.radii = 1;
        c.dim = 3;
        c.variant = 3; /* spheres; UGRID_COUNT */
        c.width = 4;
        c.n = n_max;
        context = "half giant: " + name_of(c);
        Input in = input_of(c, (int)k);
        in.radii[k < 8 ? 0 : (size_t)c.n - 1] = 3;
        in.elements.clear();
        for (int i = 0; i < c.n; i++) {
            in.elements.insert(in.elements.end(), point_of(in, i), point_of(in, i) + 3);
            in.elements.push_back(in.radii[(size_t)i]);
        }
        in.boxes.kind = LBVH_SPHERES;
        in.cells.cell = 8;
        in.ordered = false;
        OnDevice const on_device(in);
        b.gpu.search = NLIST_I_BY_PAIR;
        build(&b, c, in, on_device);
        nlist_desc host = host_desc(in);
        host.grow = 1;
        CHECK_RESULT(build_serial(&b, BRUTE, host, in), NLIST_OK);
        CHECK(b.serial.total >= c.n - 1);
        check_rows(b.serial, b.copy, false, false);
    }
}

/* All forms of half a search in a grid with records: strips of cells, with images and without, and
   ranges of one cell (Morton order); where only the distance decides, and where radii do; rows that
   are counted first, and slots. Asked for, or chosen because the grid is coherent. */
static void test_half_records()
{
    for (size_t k = 0; k < 3 * 2 * 2 * 2; k++) {
        Case c = {};
        Both b;
        c.source = GRID;
        c.dim = 3;
        c.half = 1;
        c.variant = 4 * (k % 3 == 0); /* UGRID_COUNT, of smaller cells; UGRID_SORT */
        c.periodic = k % 3 == 1 ? 2 : 0;
        c.radii = (int)(k / 3 % 2);
        c.layout = k / 6 % 2 ? NLIST_HYBRID : NLIST_COMPACT;
        c.n = 40;
        context = "half records " + std::to_string(k) + ": " + name_of(c);
        Input in = input_of(c, (int)k);
        if (in.desc.radius == 0) in.desc.radius = (real)0.1;
        in.cells.cell_order = k % 3 == 2 ? UGRID_MORTON : UGRID_ROWS;
        in.cells.coherent = k / 12 == 0;
        b.gpu.search = in.cells.coherent ? 0 : NLIST_I_BY_PAIR;
        OnDevice const on_device(in);
        build(&b, c, in, on_device);
        CHECK(b.serial.total > 0);
    }
}
