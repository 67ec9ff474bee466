/* cells.c - a part of test_ugrid.c: numbers and order of cells, the order of entries,
   permutations, optional arrays, sums over cells, strides, extreme positions.
   SPDX-License-Identifier: MIT OR Unlicense */

/* The number of a point's cell, by its definition; the point is well inside its cell. */
static int32_t cell_by_the_book(const scene *s, const ugrid_desc *d, const real *p)
{
    int32_t cell[3] = {0, 0, 0}, number = 0;
    int a, bit;
    for (a = 0; a < s->dim; a++) {
        double const width = ((double)s->max[a] - (double)s->min[a]) / s->cells[a];
        cell[a] = (int32_t)floor(((double)p[a] - (double)s->min[a]) / width);
    }
    if (d->cell_order == UGRID_ROWS)
        return (cell[2] * s->cells[1] + cell[1]) * s->cells[0] + cell[0];
    for (bit = 0; bit < 10; bit++)
        for (a = 0; a < s->dim; a++) number |= (cell[a] >> bit & 1) << (bit * s->dim + a);
    return number;
}

static void test_cell_numbers(void **state)
{
    ugrid g = {0};
    scene s;
    int dim, order;
    int32_t i;
    (void)state;
    dice = wl_seed(14);
    for (dim = 2; dim <= 3; dim++)
        for (order = 0; order < 2; order++) {
            config c = {UGRID_COUNT, 0, UGRID_LOOSE, 0, UGRID_CELLS, UGRID_ROWS, 0};
            ugrid_desc d;
            c.order = (ugrid_cell_order)order;
            make_scene(&s, dim, 1, &boxes[5], &inputs[0], 100);
            d = desc_of(&s, &c);
            build(&g, &s, &c);
            for (i = 0; i < s.n; i++) {
                int32_t const number = cell_by_the_book(&s, &d, s.pos + i * dim);
                CHECK(ugrid_cell_at(&g, s.pos + i * dim) == number && number < g.cell_count);
                CHECK(g.start[number] <= g.inverse[i] && g.inverse[i] < g.start[number + 1]);
            }
            forget(&s);
        }
    ugrid_free(&g);
}

/* Upper border, outside, and one nextafter to each side: which cell is that, by name. */
static void test_cells_of_borders(void **state)
{
    static const struct { real x; int32_t clamped, periodic; } points[] = {
        {0, 0, 0}, {(real)0.25, 1, 1}, {(real)0.5, 2, 2}, {(real)0.75, 3, 3}, {1, 3, 0},
        {(real)1.25, 3, 1}, {(real)-0.25, 0, 3}, {-7, 0, 0}, {(real)-7.5, 0, 2}, {5, 3, 0},
        {(real)1e30, 3, 0}, {(real)-1e30, 0, 0},
    };
    ugrid g = {0};
    ugrid_desc d = {0};
    int k, periodic;
    (void)state;
    d.dim = 2;
    d.max[0] = d.max[1] = 1;
    d.cell = (real)0.25;
    for (periodic = 0; periodic < 2; periodic++) {
        real p[2] = {0, 0};
        d.periodic[0] = periodic;
        CHECK_RESULT(ugrid_build(&g, &d, p, 0, 1), UGRID_OK);
        for (k = 0; k < COUNT_OF(points); k++) {
            p[0] = points[k].x;
            CHECK(ugrid_cell_at(&g, p) == (periodic ? points[k].periodic : points[k].clamped));
        }
        for (k = 1; k < 4; k++) {
            p[0] = beside((real)k / 4, -1);
            CHECK(ugrid_cell_at(&g, p) == k - 1);
            p[0] = beside((real)k / 4, 1);
            CHECK(ugrid_cell_at(&g, p) == k);
        }
        /* -1e-45: no number in the box is that close to the upper border, so either end is right */
        p[0] = beside(0, -1);
        CHECK(ugrid_cell_at(&g, p) == 0 || (periodic && ugrid_cell_at(&g, p) == 3));
        p[0] = beside(1, -1);
        CHECK(ugrid_cell_at(&g, p) == 3);
        p[0] = beside(1, 1);
        CHECK(ugrid_cell_at(&g, p) == (periodic ? 0 : 3));
    }
    ugrid_free(&g);
}

/* What is in one cell, as entries, in the order of the structure. */
static int32_t *entries_of(const ugrid *g, int32_t cell)
{
    int32_t *list = NULL, k;
    if (g->start) {
        for (k = g->start[cell]; k < g->start[cell + 1]; k++) arrput(list, g->order[k]);
    } else if (g->count) {
        for (k = 0; k < g->count[cell]; k++)
            arrput(list, g->slot[g->desc.slot_layout == UGRID_SLOTS_BY_ROW ?
                cell * g->desc.slots + k : k * g->cell_count + cell]);
    } else {
        for (k = g->head[cell]; k >= 0; k = g->next ? g->next[k] : g->record[k].link)
            arrput(list, k);
    }
    return list;
}

/* All builds put the same entries into each cell: ascending, in lists descending. COUNT and SORT
   are the same bit for bit. */
static void check_same_cells(const ugrid *g, const ugrid *other)
{
    int32_t cell;
    ptrdiff_t k;
    int const listed = g->head != NULL, turned = listed && !other->head;
    CHECK(g->cell_count == other->cell_count && g->entries == other->entries &&
        g->spans == other->spans);
    for (cell = 0; cell < g->cell_count; cell++) {
        int32_t *mine = entries_of(g, cell), *theirs = entries_of(other, cell);
        CHECK(arrlen(mine) == arrlen(theirs));
        for (k = 0; k < arrlen(mine); k++) {
            CHECK(mine[k] == theirs[turned ? arrlen(mine) - 1 - k : k]);
            if (k > 0) CHECK(listed ? mine[k] < mine[k - 1] : mine[k] > mine[k - 1]);
        }
        arrfree(mine);
        arrfree(theirs);
    }
}

static void check_same_bits(const ugrid *a, const ugrid *b)
{
    size_t const n = (size_t)a->n, m = (size_t)a->entries;
    size_t k;
    CHECK(memcmp(a->start, b->start, sizeof *a->start * ((size_t)a->cell_count + 1)) == 0);
    CHECK(memcmp(a->order, b->order, sizeof *a->order * m) == 0);
    CHECK((a->record == NULL) == (b->record == NULL) &&
        (a->inverse == NULL) == (b->inverse == NULL));
    /* by field: in a double build a record ends in 4 bytes of padding */
    for (k = 0; a->record && k < n; k++)
        CHECK(memcmp(a->record[k].x, b->record[k].x, sizeof a->record[k].x) == 0 &&
            a->record[k].link == b->record[k].link);
    if (a->inverse) CHECK(memcmp(a->inverse, b->inverse, sizeof *a->inverse * n) == 0);
}

static void test_same_cells(void **state)
{
    config *configs = all_configs();
    ugrid g = {0}, first = {0};
    scene s;
    int bounds, in, dim;
    ptrdiff_t c;
    (void)state;
    dice = wl_seed(15);
    describe = describe_case;
    for (dim = 2; dim <= 3; dim++)
        for (bounds = 0; bounds < ALL_BOUNDS; bounds++)
            for (in = 0; in < COUNT_OF(inputs); in++) {
                if (dim == 2 && bounds >= 4 && bounds < UNBOUNDED) continue;
                make_scene(&s, dim, bounds, &boxes[5], &inputs[in], 60);
                for (c = 0; c < arrlen(configs); c++) {
                    config counting = configs[c];
                    if (!possible(&configs[c], &s) || configs[c].walk != UGRID_CELLS) continue;
                    counting.method = UGRID_COUNT;
                    current_scene = &s;
                    current_config = &configs[c];
                    build(&first, &s, &counting);
                    build(&g, &s, &configs[c]);
                    check_same_cells(&g, &first);
                    if (configs[c].method == UGRID_SORT) check_same_bits(&g, &first);
                }
                forget(&s);
            }
    ugrid_free(&g);
    ugrid_free(&first);
    arrfree(configs);
    describe = NULL;
}

/* Every number of cells from 1 to 5000 in one row: all numbers of passes and bits of the radix
   sort. */
static void test_sort_sizes(void **state)
{
    static const int32_t sizes[] = {1, 2, 3, 4, 5, 31, 32, 33, 1023, 1024, 1025, 2047, 2048, 2049,
        4095, 4096, 4097, 70000, 4194303, 4194304, 4194305};
    ugrid count = {0}, sort = {0};
    ugrid_desc d = {0};
    real p[2 * 500];
    int k, i;
    (void)state;
    dice = wl_seed(16);
    for (k = 0; k < COUNT_OF(sizes); k++) {
        d.dim = 2;
        d.max[0] = (real)sizes[k];
        d.max[1] = d.cell = 1;
        for (i = 0; i < 500; i++) {
            p[2 * i] = i % 10 ? between(0, d.max[0]) : d.max[0];
            p[2 * i + 1] = 0;
        }
        d.method = UGRID_COUNT;
        CHECK_RESULT(ugrid_build(&count, &d, p, 0, 500), UGRID_OK);
        d.method = UGRID_SORT;
        CHECK_RESULT(ugrid_build(&sort, &d, p, 0, 500), UGRID_OK);
        CHECK(count.cell_count == sizes[k]);
        check_same_bits(&count, &sort);
    }
    ugrid_free(&count);
    ugrid_free(&sort);
}

/* Rows of the neighbour lists: SORT and COUNT give ascending places where nothing wraps; others
   keep the order of the walk. */
static void test_row_order(void **state)
{
    config *configs = all_configs();
    ugrid g = {0};
    scene s;
    ptrdiff_t c;
    int32_t row;
    int64_t e;
    int in;
    (void)state;
    dice = wl_seed(17);
    describe = describe_case;
    for (in = 0; in < 2; in++) {
        make_scene(&s, 3, 0, &boxes[5], &inputs[in], 100);
        for (c = 0; c < arrlen(configs); c++) {
            lists l;
            current_scene = &s;
            current_config = &configs[c];
            build(&g, &s, &configs[c]);
            l = get_lists(&g, s.radius[1], UGRID_PLACES);
            CHECK(l.needed > 100);
            for (row = 0; row < s.n; row++) {
                ugrid_near near = ugrid_near_place(&g, row, s.radius[1]);
                for (e = l.offsets[row]; e < l.offsets[row + 1]; e++) {
                    if (sorting(&configs[c]) && !configs[c].placement) {
                        if (configs[c].order == UGRID_ROWS && e > l.offsets[row])
                            CHECK(l.ids[e] > l.ids[e - 1]);
                        continue;
                    }
                    /* in this order, perhaps with others between */
                    do CHECK(ugrid_next(&near)); while (near.place != l.ids[e]);
                }
            }
            free_lists(&l);
        }
        forget(&s);
    }
    ugrid_free(&g);
    arrfree(configs);
    describe = NULL;
}

static void test_permutations(void **state)
{
    config *configs = all_configs();
    ugrid g = {0};
    scene s;
    ptrdiff_t c;
    int32_t k;
    size_t bytes, b;
    (void)state;
    dice = wl_seed(18);
    describe = describe_case;
    make_scene(&s, 3, 5, &boxes[3], &inputs[0], 100);
    for (c = 0; c < arrlen(configs); c++) {
        int const moves = sorting(&configs[c]) && !configs[c].placement;
        current_scene = &s;
        current_config = &configs[c];
        build(&g, &s, &configs[c]);
        CHECK((g.inverse != NULL) == moves &&
            (g.record != NULL) == ((moves && !configs[c].no_records) ||
            configs[c].method == UGRID_LIST_PACKED));
        for (k = 0; k < s.n; k++) {
            if (moves) CHECK(g.order[g.inverse[k]] == k && ugrid_id(&g, g.inverse[k]) == k);
            else CHECK(ugrid_id(&g, k) == k);
        }
        for (bytes = 1; bytes <= 33; bytes++) {
            uint8_t *src = NEW(uint8_t, bytes * 100), *dst = NEW(uint8_t, bytes * 100),
                *back = NEW(uint8_t, bytes * 100);
            for (b = 0; b < bytes * 100; b++) src[b] = (uint8_t)roll(256);
            CHECK_RESULT(ugrid_gather(&g, src, bytes, dst), UGRID_OK);
            for (k = 0; k < s.n; k++)
                CHECK(memcmp(dst + (size_t)k * bytes, src + (size_t)ugrid_id(&g, k) * bytes,
                    bytes) == 0);
            CHECK_RESULT(ugrid_scatter(&g, dst, bytes, back), UGRID_OK);
            CHECK(memcmp(src, back, bytes * 100) == 0);
            free(src);
            free(dst);
            free(back);
        }
    }
    forget(&s);
    ugrid_free(&g);
    arrfree(configs);
    describe = NULL;
}

/* inverse = 0 asks for no inverse; without records positions come from the caller's array. */
static void test_optional_arrays(void **state)
{
    static const real p[] = {(real)0.5, (real)0.5, (real)0.1, (real)0.2, (real)1.75, (real)0.3};
    ugrid g = {0};
    ugrid_desc d = {0};
    real q[3];
    int32_t place;
    (void)state;
    d.dim = 2;
    d.max[0] = d.max[1] = 1;
    d.cell = (real)0.25;
    d.periodic[0] = 1;
    d.method = UGRID_COUNT;
    for (d.no_records = 0; d.no_records < 2; d.no_records++) {
        CHECK_RESULT(ugrid_build(&g, &d, p, 0, 3), UGRID_OK);
        CHECK(g.inverse == NULL && (g.record == NULL) == d.no_records);
        CHECK(g.slot == NULL && g.count == NULL && g.head == NULL && g.next == NULL);
        for (place = 0; place < 3; place++) {
            int32_t const id = ugrid_id(&g, place);
            ugrid_point(&g, place, q);
            CHECK(q[0] == (id == 2 ? (real)0.75 : p[2 * id]) && q[1] == p[2 * id + 1] && q[2] == 0);
        }
    }
    ugrid_free(&g);
}

static void test_cell_sums(void **state)
{
    config *configs = all_configs();
    ugrid g = {0};
    scene s;
    ptrdiff_t c;
    int bounds, width, w;
    (void)state;
    dice = wl_seed(19);
    describe = describe_case;
    for (bounds = 0; bounds < ALL_BOUNDS; bounds++) {
        make_scene(&s, 3, bounds, &boxes[3], &inputs[bounds % 2 ? 8 : 0], 80);
        for (c = 0; c < arrlen(configs); c++) {
            if (!possible(&configs[c], &s)) continue;
            current_scene = &s;
            current_config = &configs[c];
            build(&g, &s, &configs[c]);
            for (width = 1; width < 6; width += 2) {
                real *values = NEW(real, 80 * width), *sums = NEW(real, g.cell_count * width),
                    *want = NEW(real, g.cell_count * width);
                int32_t i;
                for (i = 0; i < g.cell_count * width; i++) want[i] = 0;
                for (i = 0; i < 80 * width; i++) values[i] = between(-1, 1);
                for (i = 0; i < 80; i++)
                    for (w = 0; w < width; w++)
                        want[ugrid_cell_at(&g, s.pos + 3 * i) * width + w] += values[i * width + w];
                CHECK_RESULT(ugrid_cell_sums(&g, values, width, sums), UGRID_OK);
                /* same order of additions, same bits */
                for (i = 0; i < g.cell_count * width; i++) CHECK(sums[i] == want[i]);
                free(values);
                free(sums);
                free(want);
            }
        }
        forget(&s);
    }
    ugrid_free(&g);
    arrfree(configs);
    describe = NULL;
}

/* ---- a box for each particle (desc.half_extents) ---- */

enum { BOXED = 60 };

/* Points on a lattice, and boxes of 0 .. size, with numbers that no operation rounds; or
   anywhere. */
typedef struct boxed {
    ugrid_desc desc;
    int exact;
    real pos[3 * BOXED], half[4 * BOXED];
} boxed;

static void make_boxed(boxed *b, int dim, int bounds, int kind)
{
    ugrid_desc *d = &b->desc;
    int32_t i;
    int a;
    memset(b, 0, sizeof *b);
    d->dim = dim;
    d->cell = (real)0.125;
    d->placement = UGRID_TIGHT;
    d->size = kind & 1 ? (real)0.3125 : (real)0.125;
    d->method = (ugrid_method)(UGRID_COUNT + kind / 2 % 4);
    d->walk = kind & 8 ? UGRID_MODULAR : UGRID_CELLS;
    d->cell_order = kind & 16 && bounds < UNBOUNDED ? UGRID_MORTON : UGRID_ROWS;
    d->grow = 1;
    d->rows = kind & 32 ? BOXED - 20 : 0;
    d->outside = kind & 64 ? UGRID_LEAVE_OUT : UGRID_CLAMP;
    d->unbounded = bounds >= UNBOUNDED;
    d->buckets = bounds == CROWDED ? 4 : 0;
    b->exact = kind & 2 || kind & 64;
    for (a = 0; a < dim && !d->unbounded; a++) {
        d->max[a] = a == 1 ? (real)0.5 : 1;
        d->periodic[a] = bounds >> a & 1;
    }
    for (i = 0; i < BOXED; i++)
        for (a = 0; a < 4; a++) {
            real const fine = (real)wl_below(&dice, 17) / 16;
            b->half[4 * i + a] = d->size / 2 * (b->exact ? fine : between(0, 1));
            if (a >= dim) continue;
            b->pos[dim * i + a] = b->exact ? ((real)wl_below(&dice, 33) - (kind & 64 ? 2 : 0)) / 32
                                           : between(0, 1);
        }
    d->half_extents = b->half;
    d->half_extent_stride = kind & 4 ? 4 * sizeof(real) : 0;
    if (!(kind & 4)) /* tightly packed */
        for (i = 0; i < BOXED; i++)
            for (a = 0; a < dim; a++) b->half[dim * i + a] = b->half[4 * i + a];
}

/* Is the particle in no cell? */
static int boxed_left_out(const boxed *b, int32_t i)
{
    const ugrid_desc *d = &b->desc;
    int a;
    for (a = 0; a < d->dim && d->outside == UGRID_LEAVE_OUT && !d->unbounded; a++) {
        real const x = b->pos[d->dim * i + a];
        if (!d->periodic[a] && (x < d->min[a] || x > d->max[a])) return 1;
    }
    return 0;
}

/* Do two boxes overlap? In double, where nothing rounds. */
static int boxed_overlap(const boxed *b, const ugrid *g, int32_t i, int32_t j)
{
    int const dim = b->desc.dim;
    size_t const step = b->desc.half_extent_stride ? 4 : (size_t)dim;
    int a;
    if (boxed_left_out(b, i) || boxed_left_out(b, j)) return 0;
    if (!b->exact) return ugrid_overlap(g, i, j);
    for (a = 0; a < dim; a++) {
        double const length = b->desc.periodic[a] ? (double)b->desc.max[a] : 0;
        double gap = fabs((double)b->pos[dim * i + a] - (double)b->pos[dim * j + a]);
        while (length > 0 && gap > length / 2) gap = fabs(gap - length);
        if (gap > (double)b->half[step * (size_t)i + (size_t)a] +
                      (double)b->half[step * (size_t)j + (size_t)a]) return 0;
    }
    return 1;
}

/* What the walks of a particle find: all that overlap it, each candidate once. Returns those of the
   half walk. */
static int64_t check_boxed_walks(const boxed *b, const ugrid *g, int32_t i)
{
    ugrid_near walk = ugrid_near_overlaps(g, i), half = ugrid_near_overlaps_half(g, i);
    uint8_t met[BOXED] = {0}, in_half[BOXED] = {0};
    int64_t found = 0;
    int32_t j;
    while (ugrid_next(&walk)) CHECK(++met[walk.id] == 1);
    while (ugrid_next(&half)) CHECK(++in_half[half.id] == 1);
    CHECK(!met[i]);
    for (j = 0; j < BOXED; j++) {
        int const overlaps = j != i && boxed_overlap(b, g, i, j);
        CHECK(!overlaps || met[j]);
        CHECK(in_half[j] == (i < g->rows && j > i && met[j]));
        if (j != i && met[j]) CHECK(ugrid_overlap(g, i, j) == overlaps);
        found += in_half[j] && overlaps;
    }
    return found;
}

/* The cells of each box: every walk finds what overlaps, against a loop over all pairs; searches by
   distance stay right. */
static void test_boxes_of_particles(void **state)
{
    static boxed b;
    ugrid g = {0};
    int64_t entries = 0, wide = 0;
    int dim, bounds, kind;
    (void)state;
    dice = wl_seed(29);
    for (dim = 2; dim <= 3; dim++)
        for (bounds = 0; bounds < ALL_BOUNDS; bounds++)
            for (kind = 0; kind < 128; kind += small_run() ? 3 : 1) {
                int64_t pairs, found = 0;
                int32_t i;
                if (dim == 2 && bounds >= 4 && bounds < UNBOUNDED) continue;
                make_boxed(&b, dim, bounds, kind);
                CHECK_RESULT(ugrid_build(&g, &b.desc, b.pos, 0, BOXED), UGRID_OK);
                CHECK_RESULT(ugrid_validate(&g), UGRID_OK);
                CHECK_RESULT(ugrid_verify(&g, (real)0.1, 10, 1, NULL), UGRID_OK);
                for (i = 0; i < BOXED; i++) found += check_boxed_walks(&b, &g, i);
                CHECK_RESULT(ugrid_count_overlaps(&g, &pairs), UGRID_OK);
                CHECK(pairs == found);
                CHECK_RESULT(ugrid_save(&g, NULL, 0, &pairs), UGRID_BAD_OPTION);
                entries += g.entries;
                b.desc.half_extents = NULL; /* all as wide as the widest */
                CHECK_RESULT(ugrid_build(&g, &b.desc, b.pos, 0, BOXED), UGRID_OK);
                wide += g.entries;
            }
    CHECK(entries * 10 < wide * 8);
    ugrid_free(&g);
}

static void test_bad_boxes_of_particles(void **state)
{
    static boxed b;
    ugrid g = {0};
    int64_t pairs = 7;
    (void)state;
    dice = wl_seed(30);
    make_boxed(&b, 3, 0, 1);
    CHECK_RESULT(ugrid_count_overlaps(NULL, &pairs), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_count_overlaps(&g, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_count_overlaps(&g, &pairs), UGRID_NOT_BUILT);
    CHECK(pairs == 0);
    b.half[3 * 17 + 1] = -b.desc.size;
    b.half[3 * 18 + 1] = b.desc.size;
    CHECK_RESULT(ugrid_build(&g, &b.desc, b.pos, 0, BOXED), UGRID_BAD_SIZE);
    CHECK(g.bad_id == 17);
    b.half[3 * 17 + 1] = 0;
    CHECK_RESULT(ugrid_build(&g, &b.desc, b.pos, 0, BOXED), UGRID_BAD_SIZE);
    CHECK(g.bad_id == 18);
    b.half[3 * 18 + 1] = (real)NAN;
    CHECK_RESULT(ugrid_build(&g, &b.desc, b.pos, 0, BOXED), UGRID_BAD_SIZE);
    b.half[3 * 18 + 1] = 0;
    b.desc.half_extent_stride = 5;
    CHECK_RESULT(ugrid_build(&g, &b.desc, b.pos, 0, BOXED), UGRID_BAD_ARGUMENT);
    b.desc.half_extent_stride = 0;
    b.desc.placement = UGRID_LOOSE; /* where they would not be read */
    CHECK_RESULT(ugrid_build(&g, &b.desc, b.pos, 0, BOXED), UGRID_BAD_SIZE);
    CHECK(g.bad_id == -1 && strstr(ugrid_result_text(UGRID_BAD_SIZE), "needs desc.placement"));
    CHECK_RESULT(ugrid_reserve(&g, &b.desc, BOXED), UGRID_BAD_SIZE);
    b.desc.half_extents = NULL;
    CHECK_RESULT(ugrid_build(&g, &b.desc, b.pos, 0, BOXED), UGRID_OK);
    CHECK_RESULT(ugrid_count_overlaps(&g, &pairs), UGRID_BAD_OPTION);
    CHECK(ugrid_near_overlaps(&g, 3).x.width == 0);
    b.desc.placement = UGRID_TIGHT;
    CHECK_RESULT(ugrid_build(&g, &b.desc, b.pos, 0, 0), UGRID_OK);
    CHECK_RESULT(ugrid_count_overlaps(&g, &pairs), UGRID_OK);
    CHECK(pairs == 0);
    ugrid_free(&g);
}

/* Positions inside a larger struct give the same grid as tightly packed ones. */
static void test_stride(void **state)
{
    typedef struct body { int32_t tag; real x[3]; uint8_t color[4]; real mass; } body;
    config *configs = all_configs();
    ugrid tight = {0}, loose = {0};
    ugrid_desc tight_fit, strided_fit;
    body *bodies = NULL;
    scene s;
    ptrdiff_t c;
    int32_t i;
    int dim, a;
    (void)state;
    dice = wl_seed(20);
    describe = describe_case;
    for (dim = 2; dim <= 3; dim++) {
        make_scene(&s, dim, 1, &boxes[3], &inputs[0], 60);
        bodies = NEW(body, s.n);
        for (i = 0; i < s.n; i++) for (a = 0; a < dim; a++) bodies[i].x[a] = s.pos[i * dim + a];
        for (c = 0; c < arrlen(configs); c++) {
            ugrid_desc const d = desc_of(&s, &configs[c]);
            int64_t pairs, strided_pairs, *offsets = NEW(int64_t, s.n + 1), needed = -1;
            lists l;
            current_scene = &s;
            current_config = &configs[c];
            build(&tight, &s, &configs[c]);
            CHECK_RESULT(ugrid_build(&loose, &d, bodies[0].x, sizeof *bodies, s.n), UGRID_OK);
            check_same_cells(&loose, &tight);
            CHECK_RESULT(ugrid_validate(&loose), UGRID_OK);
            CHECK_RESULT(ugrid_count_pairs(&tight, s.radius[1], &pairs), UGRID_OK);
            CHECK_RESULT(ugrid_count_pairs(&loose, s.radius[1], &strided_pairs), UGRID_OK);
            CHECK(pairs == strided_pairs && pairs > 0);
            /* query points with a stride: every particle's row, and itself */
            l = get_lists(&tight, s.radius[1], 0);
            CHECK_RESULT(ugrid_neighbors_at(&loose, bodies[0].x, sizeof *bodies, s.n, s.radius[1],
                offsets, NULL, 0, &needed), UGRID_BUFFER_TOO_SMALL);
            CHECK(needed == l.needed + s.n);
            for (i = 0; i <= s.n; i++) CHECK(offsets[i] == l.offsets[i] + i);
            free_lists(&l);
            free(offsets);
        }
        { /* a stride that says what 0 stands for */
            size_t const plain = sizeof(real) * (size_t)dim;
            ugrid_desc plain_fit;
            int64_t *offsets = NEW(int64_t, s.n + 1), needed = -1, wanted = -1;
            memset(&plain_fit, 0, sizeof plain_fit);
            plain_fit.dim = dim;
            CHECK_RESULT(ugrid_fit(&plain_fit, s.pos, plain, s.n, NULL), UGRID_OK);
            CHECK_RESULT(ugrid_build(&loose, &plain_fit, s.pos, plain, s.n), UGRID_OK);
            CHECK_RESULT(ugrid_neighbors_at(&loose, s.pos, 0, s.n, s.radius[0], offsets, NULL, 0,
                &wanted), UGRID_BUFFER_TOO_SMALL);
            CHECK_RESULT(ugrid_neighbors_at(&loose, s.pos, plain, s.n, s.radius[0], offsets, NULL,
                0, &needed), UGRID_BUFFER_TOO_SMALL);
            CHECK(needed == wanted && needed >= s.n);
            free(offsets);
        }
        CHECK_RESULT(ugrid_build(&loose, NULL, bodies[0].x, sizeof(real) * 3 - 1, s.n),
            UGRID_BAD_ARGUMENT);
        memset(&tight_fit, 0, sizeof tight_fit);
        tight_fit.dim = dim;
        strided_fit = tight_fit;
        CHECK_RESULT(ugrid_fit(&tight_fit, s.pos, 0, s.n, NULL), UGRID_OK);
        CHECK_RESULT(ugrid_fit(&strided_fit, bodies[0].x, sizeof *bodies, s.n, NULL), UGRID_OK);
        CHECK(memcmp(tight_fit.min, strided_fit.min, sizeof tight_fit.min) == 0 &&
            memcmp(tight_fit.max, strided_fit.max, sizeof tight_fit.max) == 0);
        free(bodies);
        forget(&s);
    }
    ugrid_free(&tight);
    ugrid_free(&loose);
    arrfree(configs);
    describe = NULL;
}

/* In 2D nothing depends on what a desc says about a third axis. */
static void test_flat_desc(void **state)
{
    real const pos[8] = {(real)0.1, (real)0.5, (real)0.9, (real)0.5, (real)0.1, (real)0.6,
        (real)0.5, (real)0.5};
    ugrid plain = {0}, odd = {0};
    ugrid_desc d;
    int k;
    (void)state;
    for (k = 0; k < 8; k++) {
        int64_t pairs = -1, wanted = -2;
        memset(&d, 0, sizeof d);
        d.dim = 2;
        d.max[0] = d.max[1] = 1;
        d.cell = (real)0.25;
        d.periodic[0] = k % 2;
        d.placement = k % 4 < 2 ? UGRID_LOOSE : UGRID_TIGHT;
        d.cell_order = k < 4 ? UGRID_ROWS : UGRID_MORTON;
        CHECK_RESULT(ugrid_build(&plain, &d, pos, 0, 4), UGRID_OK);
        d.min[2] = 5;
        d.max[2] = 9;
        d.periodic[2] = 1;
        CHECK_RESULT(ugrid_build(&odd, &d, pos, 0, 4), UGRID_OK);
        CHECK(odd.cell_count == plain.cell_count &&
            memcmp(&odd.axis[2], &plain.axis[2], sizeof odd.axis[2]) == 0);
        CHECK_RESULT(ugrid_validate(&odd), UGRID_OK);
        CHECK_RESULT(ugrid_count_pairs(&plain, (real)0.21, &wanted), UGRID_OK);
        CHECK_RESULT(ugrid_count_pairs(&odd, (real)0.21, &pairs), UGRID_OK);
        CHECK(pairs == wanted);
    }
    ugrid_free(&plain);
    ugrid_free(&odd);
}

/* The largest and smallest numbers there are: nothing overflows, and near is near. */
static void test_extreme_positions(void **state)
{
    real const huge = IS_FLOAT ? (real)3e38 : (real)1.7e308,
        tiny = IS_FLOAT ? (real)1e-45 : (real)4.9e-324;
    real points[3 * 8];
    config *configs = all_configs();
    ugrid g = {0};
    ptrdiff_t c;
    int k, bounds;
    int64_t pairs;
    scene s;
    (void)state;
    describe = describe_case;
    for (k = 0; k < 24; k++)
        points[k] = k % 4 == 0 ? huge : k % 4 == 1 ? -huge : k % 4 == 2 ? tiny : (real)0.5;
    for (bounds = 0; bounds < ALL_BOUNDS; bounds++) {
        memset(&s, 0, sizeof s);
        s.dim = 3;
        s.bounds = bounds;
        s.input = "extreme";
        set_box(&s, &boxes[4]);
        s.n = 8;
        for (c = 0; c < arrlen(configs); c++) {
            ugrid_desc d = desc_of(&s, &configs[c]);
            int32_t id, found;
            current_scene = &s;
            current_config = &configs[c];
            if (!possible(&configs[c], &s)) continue;
            d.slots = 64;
            CHECK_RESULT(ugrid_build(&g, &d, points, 0, 8), UGRID_OK);
            CHECK_RESULT(ugrid_validate(&g), UGRID_OK);
            CHECK_RESULT(ugrid_count_pairs(&g, s.cell, &pairs), UGRID_OK);
            CHECK_RESULT(ugrid_query(&g, points + 3, s.cell, &id, 1, &found),
                found > 1 ? UGRID_BUFFER_TOO_SMALL : UGRID_OK);
        }
    }
    ugrid_free(&g);
    arrfree(configs);
    describe = NULL;
}

/* More candidates in one cell than a query tests at a time; an array that is too small. */
static void test_query_of_a_crowd(void **state)
{
    enum { CROWD = 200, ROOM = 70 };
    real points[2 * CROWD];
    real const at[2] = {0, 0};
    int32_t ids[CROWD], k, found, want = 0;
    ugrid g = {0};
    ugrid_desc d = {0};
    (void)state;
    for (k = 0; k < CROWD; k++) {       /* two of three are near, in one cell */
        points[2 * k] = k % 3 ? (real)0.25 : (real)0.75;
        points[2 * k + 1] = 0;
        want += k % 3 != 0;
    }
    d.dim = 2;
    d.max[0] = d.max[1] = d.cell = 1;
    CHECK_RESULT(ugrid_build(&g, &d, points, 0, CROWD), UGRID_OK);
    CHECK_RESULT(ugrid_query(&g, at, (real)0.5, ids, CROWD, &found), UGRID_OK);
    CHECK(found == want);
    for (k = 0; k < found; k++) CHECK(ids[k] == k / 2 * 3 + 1 + k % 2);
    for (k = 0; k < CROWD; k++) ids[k] = -1;
    CHECK_RESULT(ugrid_query(&g, at, (real)0.5, ids, ROOM, &found), UGRID_BUFFER_TOO_SMALL);
    CHECK(found == want);
    for (k = 0; k < CROWD; k++) CHECK(ids[k] == (k < ROOM ? k / 2 * 3 + 1 + k % 2 : -1));
    ugrid_free(&g);
}
