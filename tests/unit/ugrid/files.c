/* files.c - a part of test_ugrid.c: a grid that was saved and loaded has the same bits and gives
   the same searches, without the caller's positions; damaged, short and forged files are refused.
   SPDX-License-Identifier: MIT OR Unlicense */

typedef struct file { unsigned char *bytes; int64_t size; } file;

static file saved(const ugrid *g)
{
    file f;
    int64_t needed = -1;
    CHECK_RESULT(ugrid_save(g, NULL, 0, &f.size), UGRID_BUFFER_TOO_SMALL);
    f.bytes = (unsigned char *)exactly((size_t)f.size);
    CHECK_RESULT(ugrid_save(g, f.bytes, f.size - 1, &needed), UGRID_BUFFER_TOO_SMALL);
    CHECK(needed == f.size && f.bytes[0] == 0xA5);
    CHECK_RESULT(ugrid_save(g, f.bytes, f.size, &needed), UGRID_OK);
    CHECK(needed == f.size);
    return f;
}

#define CHECK_SAME(field, count) \
    CHECK(!a->field == !b->field && \
          (!a->field || memcmp(a->field, b->field, (size_t)(count) * sizeof *a->field) == 0))

/* Every array, and what describes them. */
static void check_same_grid(const ugrid *a, const ugrid *b)
{
    int32_t const loose = a->desc.placement == UGRID_LOOSE;
    int32_t c, s;
    CHECK(a->n == b->n && a->rows == b->rows && a->cell_count == b->cell_count && b->built);
    CHECK(a->entries == b->entries && a->spans == b->spans && a->outside == b->outside);
    CHECK(a->invalid == b->invalid && a->desc.skip_invalid == b->desc.skip_invalid);
    CHECK(a->needed_slots == b->needed_slots && a->needed_cells == b->needed_cells);
    CHECK(memcmp(a->axis, b->axis, sizeof a->axis) == 0 && b->bad_id == -1);
    CHECK(strcmp(b->cell_reason, "as it was saved") == 0);
    CHECK(a->desc.walk == b->desc.walk && a->desc.cell == b->desc.cell);
    CHECK(a->desc.slots == b->desc.slots && a->desc.max_cells == b->desc.max_cells);
    CHECK_SAME(start, a->cell_count + 1);
    CHECK_SAME(order, loose ? a->n : a->entries);
    CHECK_SAME(inverse, a->n);
    CHECK_SAME(head, a->cell_count);
    CHECK_SAME(next, a->n * a->spans);
    CHECK_SAME(count, a->cell_count);
    CHECK(!a->record == !b->record && !a->slot == !b->slot);
    for (c = 0; a->record && c < a->n; c++)
        CHECK(memcmp(a->record[c].x, b->record[c].x, sizeof a->record[c].x) == 0 &&
              a->record[c].link == b->record[c].link);
    for (c = 0; a->slot && c < a->cell_count; c++)
        for (s = 0; s < a->count[c]; s++) {
            int32_t const at = a->desc.slot_layout == UGRID_SLOTS_BY_ROW
                                   ? c * a->desc.slots + s : s * a->cell_count + c;
            CHECK(a->slot[at] == b->slot[at]);
        }
}

/* Builds g from positions that are gone afterwards, and loads it from a file. */
static void build_and_load(ugrid *g, ugrid *loaded, const scene *s, const ugrid_desc *d)
{
    size_t const size = (size_t)(s->n * s->dim) * sizeof(real);
    real *const pos = (real *)exactly(size);
    file f;
    if (s->n > 0) memcpy(pos, s->pos, size);
    CHECK_RESULT(ugrid_build(g, d, pos, 0, s->n), UGRID_OK);
    f = saved(g);
    if (g->record) g->pos = NULL; /* is not read */
    CHECK_RESULT(ugrid_load(loaded, NULL, f.bytes, f.size), UGRID_OK);
    free(f.bytes);
    free(pos);
    g->pos = s->pos;
}

/* Into grids that hold something already: what was there is gone. */
static void test_files(void **state)
{
    config *configs = all_configs();
    ugrid g = {0}, loaded = {0};
    scene s;
    int in, bounds, counter = 0;
    ptrdiff_t c;
    (void)state;
    dice = wl_seed(41);
    describe = describe_case;
    for (in = 0; in < COUNT_OF(inputs); in++)
        for (bounds = 0; bounds < ALL_BOUNDS; bounds += 3) {
            int const flat = in % 2 == 0 && bounds >= 4 && bounds < UNBOUNDED;
            make_scene(&s, 2 + in % 2, flat ? 2 : bounds, &boxes[in % COUNT_OF(boxes)],
                       &inputs[in], 12);
            for (c = 0; c < arrlen(configs); c++) {
                ugrid_desc d = desc_of(&s, &configs[c]);
                if (!possible(&configs[c], &s) || counter++ % 9) continue;
                current_scene = &s;
                current_config = &configs[c];
                d.slots = 8 * s.n + 1;
                build_and_load(&g, &loaded, &s, &d);
                check_same_grid(&g, &loaded);
                for (current_radius = 0; current_radius < s.radii; current_radius++) {
                    check_list(&loaded, &s, current_radius, 0);
                    check_list(&loaded, &s, current_radius, counter % 4);
                    check_neighbors_at(&loaded, &s, current_radius);
                }
                CHECK(s.n == 0 || !loaded.pos == (loaded.record != NULL));
                if (loaded.record) loaded.pos = s.pos;
                CHECK_RESULT(ugrid_validate(&loaded), UGRID_OK);
            }
            forget(&s);
        }
    ugrid_free(&g);
    ugrid_free(&loaded);
    arrfree(configs);
    describe = NULL;
}

/* Particles that were left out, ghosts, and slots that grew. */
static void test_files_of_parts(void **state)
{
    static const ugrid_method methods[] = {UGRID_COUNT, UGRID_SORT, UGRID_FIXED, UGRID_LIST,
                                           UGRID_LIST_PACKED};
    ugrid g = {0}, loaded = {0};
    int32_t bad;
    int k, how;
    (void)state;
    dice = wl_seed(42);
    for (k = 0; k < COUNT_OF(methods); k++)
        for (how = 0; how < 4; how++) {
            scene s;
            ugrid_desc d;
            int64_t pairs[2];
            make_scene(&s, 3, how % 3, &boxes[2], &inputs[8], 40); /* points outside, too */
            memset(&d, 0, sizeof d);
            memcpy(d.min, s.min, sizeof d.min);
            memcpy(d.max, s.max, sizeof d.max);
            d.cell = s.cell;
            d.periodic[0] = how & 1;
            d.outside = how & 2 ? UGRID_CLAMP : UGRID_LEAVE_OUT;
            d.skip_invalid = how != 2;
            for (bad = k; how != 2 && bad < s.n; bad += 7)
                s.pos[s.dim * bad + bad % s.dim] = bad % 2 ? REAL_NAN : REAL_INFINITY;
            d.rows = how == 3 ? 25 : how == 2 ? UGRID_NO_ROWS : 0;
            d.no_records = how == 1;
            d.inverse = 1;
            d.slots = 1;
            d.grow = 1;
            d.method = methods[k];
            build_and_load(&g, &loaded, &s, &d);
            CHECK((how > 1 || g.outside > 0) && (g.invalid > 0) == (how != 2));
            check_same_grid(&g, &loaded);
            if (how != 2) CHECK_RESULT(ugrid_count_pairs(&g, s.cell, &pairs[0]), UGRID_OK);
            if (how != 2) CHECK_RESULT(ugrid_count_pairs(&loaded, s.cell, &pairs[1]), UGRID_OK);
            CHECK(how == 2 || pairs[0] == pairs[1]);
            forget(&s);
        }
    ugrid_free(&g);
    ugrid_free(&loaded);
}

static void check_bad_file(ugrid *g, const unsigned char *bytes, int64_t size)
{
    int64_t pairs;
    CHECK_RESULT(ugrid_load(g, NULL, bytes, size), UGRID_BAD_FILE);
    CHECK(g->n == 0 && !g->built);
    CHECK_RESULT(ugrid_count_pairs(g, 1, &pairs), UGRID_NOT_BUILT);
}

/* The checksum as the file format has it: of all, with its own field, the last of the header, 0. */
static void make_checksum_right(file *f)
{
    int64_t const at = IS_FLOAT ? 136 : 168;
    uint64_t sum = 0xCBF29CE484222325u;
    int64_t k;
    memset(f->bytes + at, 0, sizeof sum);
    for (k = 0; k < f->size; k++) sum = (sum ^ f->bytes[k]) * 0x100000001B3u;
    memcpy(f->bytes + at, &sum, sizeof sum);
}

static file small_file(int k)
{
    static const ugrid_method methods[] = {UGRID_COUNT, UGRID_SORT, UGRID_FIXED, UGRID_LIST,
                                           UGRID_LIST_PACKED, UGRID_LIST, UGRID_COUNT, UGRID_COUNT};
    ugrid g = {0};
    ugrid_desc d = good_desc();
    real points[12];
    file f;
    d.method = methods[k];
    d.placement = k == 5 || k == 6 ? UGRID_TIGHT : UGRID_LOOSE;
    d.inverse = k == 1;
    d.no_records = k == 7;
    d.skip_invalid = k == 1 || k == 5 || k == 7;
    d.outside = k == 0 || k == 4 || k == 7 ? UGRID_LEAVE_OUT : UGRID_CLAMP;
    if (d.outside) d.max[2] = (real)0.85; /* one point is left out */
    d.slots = 3;
    d.cell = (real)0.5;
    memcpy(points, four_points, sizeof points);
    if (d.skip_invalid) points[10] = REAL_NAN;
    CHECK_RESULT(ugrid_build(&g, &d, points, 0, 4), UGRID_OK);
    f = saved(&g);
    ugrid_free(&g);
    return f;
}

/* What stands at the head of a file, on any machine. */
static void test_head_of_a_file(void **state)
{
    static const uint32_t order = 0x01020304u, version = 3;
    int32_t const numbers[3] = {(int32_t)sizeof(real), 4, 4};
    file f = small_file(3), again = small_file(3);
    (void)state;
    CHECK(memcmp(f.bytes, "ugrid.h\n", 8) == 0 && memcmp(f.bytes + 8, &order, 4) == 0);
    CHECK(memcmp(f.bytes + 12, &version, 4) == 0 && memcmp(f.bytes + 16, numbers, 12) == 0);
    make_checksum_right(&again);
    CHECK(f.size == again.size && memcmp(f.bytes, again.bytes, (size_t)f.size) == 0);
    free(f.bytes);
    free(again.bytes);
}

/* Cut short anywhere, longer by one, and with any one bit turned. */
static void test_damaged_files(void **state)
{
    ugrid loaded = {0};
    int which;
    (void)state;
    for (which = 0; which < 8; which += 1 + small_run()) {
        file f = small_file(which);
        int64_t k;
        for (k = 0; k < f.size; k++) {
            unsigned char *cut = (unsigned char *)exactly((size_t)k);
            int const bit = (int)(k * 5 + which) % 8;
            memcpy(cut, f.bytes, (size_t)k);
            check_bad_file(&loaded, cut, k);
            free(cut);
            f.bytes[k] = (unsigned char)(f.bytes[k] ^ 1 << bit);
            check_bad_file(&loaded, f.bytes, f.size);
            f.bytes[k] = (unsigned char)(f.bytes[k] ^ 1 << bit);
        }
        f.bytes = (unsigned char *)realloc(f.bytes, (size_t)f.size + 1);
        f.bytes[f.size] = 0;
        check_bad_file(&loaded, f.bytes, f.size + 1);
        CHECK_RESULT(ugrid_load(&loaded, NULL, f.bytes, f.size), UGRID_OK);
        free(f.bytes);
    }
    ugrid_free(&loaded);
}

/* Damage behind a right checksum: refused by what it breaks, or a grid that is whole and can be
   searched. */
static void test_forged_files(void **state)
{
    static const int32_t odd[] = {-1, 0, 1, 2, 3, 4, 5, 7, 8, 9, 1 << 30, INT32_MAX, INT32_MIN,
        0x7F800000, 0x7FC00000, -0x00800000, 0x3F000000};
    ugrid g = {0};
    int64_t refused = 0, taken = 0;
    int const steps = 24000 / share();
    int k;
    (void)state;
    dice = wl_seed(43);
    for (k = 0; k < steps; k++) {
        file f = small_file(k % 8);
        int const head = IS_FLOAT ? 144 : 176;
        int turns = 1 + roll(2);
        int64_t pairs;
        ugrid_result r;
        for (; turns > 0; turns--) {
            int32_t const value = odd[roll(COUNT_OF(odd))];
            int const at = roll(2) ? head + roll((int)f.size - head - 4) / 4 * 4
                                   : roll(head / 4) * 4;
            if (roll(3) == 0) f.bytes[at] = (unsigned char)roll(256);
            else memcpy(f.bytes + at, &value, sizeof value);
        }
        make_checksum_right(&f);
        r = ugrid_load(&g, NULL, f.bytes, f.size);
        free(f.bytes);
        if (r == UGRID_BAD_FILE) { refused++; CHECK(g.n == 0); continue; }
        CHECK_RESULT(r, UGRID_OK);
        taken++;
        r = ugrid_count_pairs(&g, g.desc.cell, &pairs); /* odd cells have no square */
        CHECK(r == UGRID_BAD_RADIUS || (r == UGRID_OK && pairs <= g.n * (g.n - 1) / 2));
        if (!g.record) CHECK_RESULT(ugrid_validate(&g), UGRID_OK);
    }
    CHECK(refused > steps / 3 && taken > steps / 100);
    ugrid_free(&g);
}

/* A file that promises much is refused before memory is taken for it; so is what cannot be
   saved. */
static void test_calls_for_files(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0};
    ugrid g = {0};
    ugrid_desc d = good_desc();
    file f = small_file(0);
    int32_t const many = 1 << 28;
    int64_t needed = 7;
    (void)state;
    d.allocator = allocator_of(&h);
    memcpy(f.bytes + 20, &many, sizeof many);
    make_checksum_right(&f);
    CHECK_RESULT(ugrid_load(&g, &d, f.bytes, f.size), UGRID_BAD_FILE);
    CHECK(h.calls == 0);
    CHECK_RESULT(ugrid_load(NULL, NULL, f.bytes, f.size), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_load(&g, &d, NULL, 1), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_load(&g, &d, f.bytes, -1), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_save(&g, NULL, 0, &needed), UGRID_NOT_BUILT);
    CHECK(needed == 0);
    CHECK_RESULT(ugrid_save(NULL, NULL, 0, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_save(&g, NULL, 0, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_save(&g, NULL, 1, &needed), UGRID_BAD_ARGUMENT);
    d.method = UGRID_FIXED;
    d.slots = 4;
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_OK);
    g.pos = NULL; /* as after a download */
    CHECK_RESULT(ugrid_save(&g, NULL, 0, &needed), UGRID_NOT_BUILT);
    g.pos = four_points;
    g.count[0] = 5; /* as a GPU leaves a cell that is too full */
    CHECK_RESULT(ugrid_save(&g, NULL, 0, &needed), UGRID_CELL_FULL);
    d.allocator.alloc = NULL;
    CHECK_RESULT(ugrid_load(&g, &d, f.bytes, f.size), UGRID_BAD_ALLOCATOR);
    ugrid_free(&g);
    CHECK(h.live_blocks == 0 && !h.wrong);
    free(f.bytes);
}

/* Each allocation of a load fails once: the grid is empty, and loads afterwards. */
static void test_files_out_of_memory(void **state)
{
    int which;
    (void)state;
    for (which = 0; which < 8; which++) {
        file f = small_file(which);
        int64_t fail, calls = 1;
        for (fail = 0; fail <= calls; fail++) {
            heap h = {0, 0, 0, 0, 0, 0};
            ugrid g = {0};
            ugrid_desc d;
            memset(&d, 0, sizeof d);
            d.allocator = allocator_of(&h);
            h.fail_at = fail;
            CHECK_RESULT(ugrid_load(&g, &d, f.bytes, f.size),
                         fail ? UGRID_OUT_OF_MEMORY : UGRID_OK);
            if (fail == 0) calls = h.calls;
            CHECK(fail == 0 || (g.n == 0 && !g.built));
            CHECK(h.live_bytes == ugrid_bytes(&g));
            h.fail_at = 0;
            CHECK_RESULT(ugrid_load(&g, &d, f.bytes, f.size), UGRID_OK);
            ugrid_free(&g);
            CHECK(h.live_blocks == 0 && !h.wrong);
        }
        CHECK(calls >= 3);
        free(f.bytes);
    }
}
