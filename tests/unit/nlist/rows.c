/* rows.c - a part of test_nlist.c: rows and masks against brute force, over the product of
   inputs, options, sources and layouts; rows that do not fit; as many pairs as grid and tree
   count.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Rows in the order of ids. */
static void check_ascending(const nlist *list)
{
    int32_t i;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        int32_t last = -1;
        for (; nlist_next(&e); last = e.id) CHECK(e.id > last);
    }
}

/* Rows in the order of the leaves, each of which has its place in the tree. */
static void check_by_place(const nlist *list, const lbvh *tree)
{
    int32_t *place = NEW(int32_t, list->n), i;
    for (i = 0; i < list->n; i++) place[tree->node[tree->first_leaf + i].link] = i;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        int32_t last = -1;
        for (; nlist_next(&e); last = place[e.id]) CHECK(place[e.id] > last);
    }
    free(place);
}

/* Rows in the order of ugrid_neighbors, those left aside that are not listed. */
static void check_as_the_grid(const nlist *list, const ugrid *grid, const oracle_scene *s)
{
    int64_t *offsets = NEW(int64_t, s->n + 1), needed = 0, k;
    real const reach = s->radius + 2 * s->radii_max + s->skin;
    int32_t *ids, i;
    (void)ugrid_neighbors(grid, reach, 0, offsets, NULL, 0, &needed);
    ids = NEW(int32_t, needed);
    CHECK(ugrid_neighbors(grid, reach, 0, offsets, ids, needed, &needed) == UGRID_OK);
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        k = offsets[i];
        while (nlist_next(&e)) {
            while (k < offsets[i + 1] && ids[k] != e.id) k++;
            CHECK(k < offsets[i + 1]);
        }
    }
    free(offsets);
    free(ids);
}

static void check_order(const nlist *list, const feeder *f, const oracle_scene *s)
{
    if (f->source == BRUTE || f->source == PAIRS) check_ascending(list);
    if (from_tree(f->source) && !axes_repeat(s)) check_by_place(list, &f->tree);
    if (f->source >= GRID_SORT && f->source <= GRID_BARE) check_as_the_grid(list, &f->grid, s);
}

/* One layout after the other through the same source: the same rows in the same order, whatever was
   in the list's memory before. */
static void check_variants(nlist *list, nlist_desc *d, const feeder *f, const oracle_scene *s,
    const nlist *truth)
{
    nlist first = {0};
    int32_t const fullest = fullest_row(truth);
    int k;
    for (k = 0; k < COUNT_OF(variants); k++) {
        set_variant(d, &variants[k], fullest);
        CHECK_RESULT(feed(k ? list : &first, d, f, s), NLIST_OK);
        check_list(k ? list : &first, s, NULL);
        if (k == 0) check_order(&first, f, s);
        CHECK_FINE(oracle_same_order(k ? list : &first, &first));
        CHECK_FINE(oracle_same_rows(&first, truth));
        CHECK((k ? list : &first)->needed_width == fullest);
    }
    nlist_free(&first);
}

/* The radii of a scene, each the second of three numbers. The caller frees them. */
static real *radii_apart(const oracle_scene *s)
{
    real *const apart = NEW(real, 3 * s->n);
    int32_t i;
    for (i = 0; i < 3 * s->n; i++) apart[i] = s->radii && i % 3 == 1 ? s->radii[i / 3] : REAL_NAN;
    return apart;
}

/* Every source, half and full, against brute force. `list` keeps its memory from scene to scene. */
static void check_scene(nlist *list, const oracle_scene *s, int counter)
{
    nlist truth = {0};
    int source;
    now.scene = s;
    for (source = 0; source < SOURCES; source++) {
        nlist_desc d = oracle_desc(s);
        real *apart;
        feeder f;
        if (!possible(s, source) || !chosen(SOURCES * counter + source)) continue;
        d.half = roll(2);
        now.source = BRUTE;
        now.desc = &d;
        CHECK_RESULT(nlist_build_brute(&truth, &d, s->pos, s->stride, s->n), NLIST_OK);
        check_list(&truth, s, NULL);
        now.source = source;
        apart = radii_apart(s);
        if (s->radii && s->n % 2) d.radii = apart + 1, d.radii_stride = 3 * sizeof *apart;
        make_feeder(&f, s, source);
        check_variants(list, &d, &f, s, &truth);
        drop_feeder(&f);
        free(apart);
        nlist_free(&truth);
    }
}

static const int option_sets[] = {0, ORACLE_RADII, ORACLE_MASKS, ORACLE_EXCLUDE,
    ORACLE_SKIN | ORACLE_STRIDE, ORACLE_ALL};

static void check_product(int dim)
{
    nlist list = {0};
    int counter = 0, input, periodic;
    describe = describe_case;
    dice = wl_seed(40 + (uint64_t)dim);
    for (input = 0; input < ORACLE_INPUTS; input++)
            for (periodic = 0; periodic < 1 << dim; periodic++, counter++) {
        int const options = counter % 2 ? ORACLE_ALL : option_sets[roll(COUNT_OF(option_sets))];
        oracle_scene s;
        oracle_make(&s, input, dim, periodic, 2 + roll(70), options, &dice);
        check_scene(&list, &s, counter);
        oracle_forget(&s);
    }
    nlist_free(&list);
}

static void test_product_2d(void **state) { (void)state; check_product(2); check_product(2); }
static void test_product_3d(void **state) { (void)state; check_product(3); }

/* Rows that are longer than any usual width, and more particles than elsewhere. */
static void test_larger(void **state)
{
    nlist list = {0};
    int counter;
    (void)state;
    describe = describe_case;
    for (counter = 0; counter < 8; counter++) {
        oracle_scene s;
        if (!chosen(counter)) continue;
        oracle_make(&s, counter % ORACLE_EMPTY, 2 + counter % 2, roll(8), 150 + roll(50),
            option_sets[roll(6)], &dice);
        check_scene(&list, &s, counter);
        oracle_forget(&s);
    }
    nlist_free(&list);
}

/* ------------------------------------------------------------------------------------------------
   What does not fit
   ---------------------------------------------------------------------------------------------- */

/* Slots one too few, entries one too few: the exact size comes back, the list stays; with that size
   all is well. */
static void check_too_small(nlist *list, const oracle_scene *s, const feeder *f, nlist_desc *d,
    const nlist *truth)
{
    int32_t const fullest = fullest_row(truth);
    oracle_snapshot before;
    oracle_take(&before, list);
    if (d->layout == NLIST_STATIC && fullest > 1) {
        d->width = 1 + roll(fullest - 1);
        CHECK_RESULT(feed(list, d, f, s), NLIST_ROW_FULL);
        CHECK(list->needed_width == fullest);
        CHECK_FINE(oracle_check_unchanged(&before, list));
        d->grow = 1;
        CHECK_RESULT(feed(list, d, f, s), NLIST_OK);
        CHECK(list->desc.width >= fullest);
        check_list(list, s, NULL);
        d->width = fullest;
    } else if (d->layout != NLIST_STATIC && truth->total > 1) {
        int64_t needed;
        d->capacity = 1;
        if (feed(list, d, f, s) == NLIST_OK) goto done; /* all but one in the slots of HYBRID */
        CHECK_RESULT(feed(list, d, f, s), NLIST_LIST_FULL);
        needed = list->needed_entries;
        CHECK(needed > 1 && (d->layout == NLIST_HYBRID || needed == truth->total));
        CHECK_FINE(oracle_check_unchanged(&before, list));
        d->capacity = needed - 1;
        CHECK_RESULT(feed(list, d, f, s), NLIST_LIST_FULL);
        CHECK(list->needed_entries == needed);
        CHECK_FINE(oracle_check_unchanged(&before, list));
        d->grow = 1;
        CHECK_RESULT(feed(list, d, f, s), NLIST_OK);
        check_list(list, s, NULL);
        d->capacity = needed;
    }
    d->grow = 0;
    CHECK_RESULT(feed(list, d, f, s), NLIST_OK);
done:
    check_list(list, s, NULL);
    oracle_drop_snapshot(&before);
}

static void test_too_small(void **state)
{
    int counter;
    (void)state;
    describe = describe_case;
    for (counter = 0; counter < 200; counter++) {
        nlist list = {0};
        oracle_scene s;
        nlist_desc d;
        feeder f;
        int source;
        if (!chosen(counter)) continue;
        oracle_make(&s, roll(ORACLE_INPUTS), 2 + roll(2), roll(8), 2 + roll(60),
            option_sets[roll(6)], &dice);
        do source = roll(SOURCES); while (!possible(&s, source));
        d = oracle_desc(&s);
        d.half = roll(2);
        d.history = roll(3) * 8;
        now.scene = &s;
        now.desc = &d;
        now.source = source;
        make_feeder(&f, &s, source);
        CHECK_RESULT(feed(&list, &d, &f, &s), NLIST_OK); /* what the refusal must leave alone */
        {
            nlist truth = {0};
            CHECK_RESULT(feed(&truth, &d, &f, &s), NLIST_OK);
            set_variant(&d, &variants[roll(7)], 1);
            check_too_small(&list, &s, &f, &d, &truth);
            nlist_free(&truth);
        }
        drop_feeder(&f);
        oracle_forget(&s);
        nlist_free(&list);
    }
}

/* More particles: as many pairs as the grid counts, and the tree finds the same ones. */
static void test_uniform(void **state)
{
    int32_t const n = small_run() ? 1000 : SANITIZED ? 5000 : 30000;
    float *p = NEW(float, 3 * n);
    real *pos = NEW(real, 3 * n), radius = (real)wl_radius(n, 30);
    ugrid grid = {0};
    lbvh tree = {0};
    ugrid_desc g;
    lbvh_desc t;
    int64_t pairs = 0;
    int32_t i;
    int k;
    (void)state;
    wl_uniform(n, 7, p);
    for (i = 0; i < 3 * n; i++) pos[i] = (real)p[i];
    memset(&g, 0, sizeof g);
    memset(&t, 0, sizeof t);
    g.cell = radius;
    t.kind = LBVH_POINTS;
    CHECK(ugrid_build(&grid, &g, pos, 0, n) == UGRID_OK &&
        lbvh_build(&tree, &t, pos, 0, n) == LBVH_OK);
    CHECK(ugrid_count_pairs(&grid, radius, &pairs) == UGRID_OK && pairs > 10 * (int64_t)n);
    for (k = 0; k < 8; k++) {
        nlist through_grid = {0}, through_tree = {0};
        nlist_desc d;
        memset(&d, 0, sizeof d);
        d.radius = radius;
        d.half = k & 1;
        d.layout = (nlist_layout)(k / 2);
        d.width = d.layout == NLIST_HYBRID ? 16 : 128;
        CHECK_RESULT(nlist_build_ugrid(&through_grid, &d, &grid, pos, 0, n), NLIST_OK);
        CHECK_RESULT(nlist_build_lbvh(&through_tree, &d, &tree, pos, 0, n), NLIST_OK);
        CHECK(through_grid.total == (d.half ? pairs : 2 * pairs));
        CHECK_FINE(oracle_same_rows(&through_grid, &through_tree));
        check_arrays(&through_grid);
        nlist_free(&through_grid);
        nlist_free(&through_tree);
    }
    ugrid_free(&grid);
    lbvh_free(&tree);
    free(p);
    free(pos);
}
