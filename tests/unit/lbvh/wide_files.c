/* wide_files.c - a part of test_lbvh_wide.c: a wide tree that was saved and loaded has the same
   bits; damaged, short and forged files are refused, or make a tree that can be searched.
   SPDX-License-Identifier: MIT OR Unlicense */

enum { WIDE_HEAD = 64 };

typedef struct wide_file { unsigned char *bytes; int64_t size; } wide_file;

static wide_file saved(const lbvh_wide *wide)
{
    wide_file f;
    int64_t needed = -1;
    CHECK_RESULT(lbvh_wide_save(wide, NULL, 0, &f.size), LBVH_BUFFER_TOO_SMALL);
    f.bytes = (unsigned char *)exactly((size_t)f.size);
    CHECK_RESULT(lbvh_wide_save(wide, f.bytes, f.size - 1, &needed), LBVH_BUFFER_TOO_SMALL);
    CHECK(needed == f.size);
    CHECK_RESULT(lbvh_wide_save(wide, f.bytes, f.size, &needed), LBVH_OK);
    CHECK(needed == f.size);
    return f;
}

/* The checksum of what the file says now: FNV-1a, with zeros where it stands. */
static void mend(wide_file *f)
{
    uint64_t sum = 0xCBF29CE484222325u;
    int64_t k;
    memset(f->bytes + WIDE_HEAD - 8, 0, 8);
    for (k = 0; k < f->size; k++) sum = (sum ^ f->bytes[k]) * 0x100000001B3u;
    memcpy(f->bytes + WIDE_HEAD - 8, &sum, 8);
}

static void check_same_wide(const lbvh_wide *a, const lbvh_wide *b)
{
    size_t const slots = a->numbers ? 4 * (size_t)a->leaves : (size_t)a->elements;
    CHECK(a->dim == b->dim && a->nodes == b->nodes && a->leaves == b->leaves);
    CHECK(a->elements == b->elements && a->numbers == b->numbers && b->built);
    CHECK(a->desc.leaf == b->desc.leaf && a->desc.copy == b->desc.copy);
    CHECK(same(a->node, b->node, (size_t)a->nodes * sizeof *a->node));
    CHECK(same(a->id, b->id, slots * sizeof *a->id));
    CHECK(!a->mask == !b->mask);
    if (a->mask) CHECK(same(a->mask, b->mask, slots * sizeof *a->mask));
    CHECK(same(a->element, b->element, slots * (size_t)a->numbers * sizeof(real)));
}

/* Every search of a tree that may be forged: it ends, and stays in its memory. */
static void use(const lbvh_wide *wide)
{
    static int32_t ids[8 * MOST];
    lbvh_rays rays = the_rays();
    lbvh_closest closest;
    real const box[6] = {-10, -10, -10, 10, 10, 10}, p[3] = {0, 0, 0};
    real distances2[8];
    int32_t found;
    int64_t needed;
    CHECK(lbvh_wide_overlaps(wide, box, 0, ids, 8 * MOST, &needed) == LBVH_OK);
    CHECK(needed <= wide->elements);
    if (wide->numbers)
        CHECK_RESULT(lbvh_wide_nearest(wide, p, 8, 10, NULL, NULL, ids, distances2, &found),
                     LBVH_OK);
    if (wide->numbers != 9) return;
    rays.n = 20;
    CHECK_RESULT(lbvh_closest_hits(wide, &rays, NULL, NULL, hits[0]), LBVH_OK);
    CHECK_RESULT(lbvh_any_hits(wide, &rays, NULL, NULL, any[0]), LBVH_OK);
    CHECK_RESULT(lbvh_closest_points(wide, p, 0, 1, 10, &closest), LBVH_OK);
}

static void test_files(void **state)
{
    static const int32_t counts[] = {0, 1, 4, 5, 40, 300};
    uint32_t masks[MOST];
    lbvh_wide loaded;
    int kind, k, copy, i;
    (void)state;
    memset(&loaded, 0, sizeof loaded);
    for (i = 0; i < MOST; i++) masks[i] = 1u << i % 5;
    for (kind = 0; kind < SCENES; kind++) for (k = 0; k < COUNT_OF(counts); k++)
        for (copy = 0; copy < 2; copy++) {
            wide_file f;
            begin(kind, counts[k], copy);
            build(copy, 1 + (kind + k) % 4, k % 2 ? masks : NULL);
            f = saved(&s.wide);
            CHECK_RESULT(lbvh_wide_load(&loaded, NULL, f.bytes, f.size), LBVH_OK);
            check_same_wide(&s.wide, &loaded);
            CHECK_RESULT(lbvh_wide_validate(&loaded, &s.tree), LBVH_OK);
            make_rays();
            use(&loaded);
            free(f.bytes);
        }
    lbvh_wide_free(&loaded);
}

/* Boxes of 2D, as copies. */
static void test_file_of_boxes(void **state)
{
    static const real boxes[] = {0, 0, 1, 1, 2, 0, 3, 1, 0, 2, 1, 3, -4, 0, 1, 1, 5, 5, 6, 7};
    lbvh_desc desc;
    lbvh_wide_desc wide;
    lbvh_wide loaded;
    wide_file f;
    (void)state;
    describe = describe_scene;
    memset(&desc, 0, sizeof desc);
    memset(&wide, 0, sizeof wide);
    memset(&loaded, 0, sizeof loaded);
    desc.dim = 2;
    wide.copy = 1;
    CHECK_RESULT(lbvh_build(&s.tree, &desc, boxes, 0, 5), LBVH_OK);
    CHECK_RESULT(lbvh_wide_build(&s.wide, &wide, &s.tree, boxes, 0), LBVH_OK);
    f = saved(&s.wide);
    CHECK_RESULT(lbvh_wide_load(&loaded, NULL, f.bytes, f.size), LBVH_OK);
    check_same_wide(&s.wide, &loaded);
    free(f.bytes);
    lbvh_wide_free(&loaded);
}

/* Every bit of a file is under the checksum; with a checksum made right, what is loaded can be
   searched, and saves as it was. Of the nodes no bit is free but those of masks and of planes. */
static void test_damaged_files(void **state)
{
    lbvh_wide loaded;
    int64_t k, refused = 0, tried = 0;
    int copy, bit;
    (void)state;
    memset(&loaded, 0, sizeof loaded);
    for (copy = 0; copy < 2; copy++) {
        wide_file f;
        begin(SOUP, 60, copy);
        make_rays();
        f = saved(&s.wide);
        for (k = 0; k < f.size; k++) for (bit = 0; bit < 8; bit += 1 + (k >= WIDE_HEAD)) {
            lbvh_result r;
            f.bytes[k] ^= (unsigned char)(1 << bit);
            CHECK_RESULT(lbvh_wide_load(&loaded, NULL, f.bytes, f.size), LBVH_BAD_FILE);
            CHECK(!loaded.built);
            mend(&f);
            r = lbvh_wide_load(&loaded, NULL, f.bytes, f.size);
            CHECK(r == LBVH_OK || r == LBVH_BAD_FILE);
            tried++;
            refused += r == LBVH_BAD_FILE;
            /* of the head only dim, without copies, the largest leaf, and whether elements stand by
               id are not known twice */
            if (k < WIDE_HEAD - 8 && k != 20 && k != 44 && !(k == 40 && bit == 1))
                CHECK_RESULT(r, LBVH_BAD_FILE);
            if (r == LBVH_OK) {
                wide_file again = saved(&loaded);
                CHECK(again.size == f.size && same(again.bytes, f.bytes, (size_t)f.size));
                use(&loaded);
                free(again.bytes);
            }
            f.bytes[k] ^= (unsigned char)(1 << bit);
            mend(&f);
        }
        for (k = 0; k < f.size; k += k < 70 ? 1 : 37)
            CHECK_RESULT(lbvh_wide_load(&loaded, NULL, f.bytes, k), LBVH_BAD_FILE);
        free(f.bytes);
    }
    CHECK(refused > tried / 4);
    lbvh_wide_free(&loaded);
}

/* A chain of nodes that is deeper than any stack. */
static void test_forged_depth(void **state)
{
    enum { DEEP = LBVH_STACK + 3 };
    lbvh_wide forged, loaded;
    wide_file f;
    int32_t depth, k;
    (void)state;
    memset(&loaded, 0, sizeof loaded);
    for (depth = LBVH_STACK - 2; depth <= DEEP; depth++) { /* levels */
        begin(SOUP, DEEP + 1, 0);
        lbvh_wide_free(&s.wide);
        build(0, 1, NULL);
        forged = s.wide;
        forged.nodes = depth;
        forged.leaves = forged.elements = depth;
        forged.node = ZEROS(lbvh_wide_node, DEEP);
        forged.block[0].memory = forged.node;
        for (k = 0; k < depth; k++) {
            lbvh_wide_node *node = &forged.node[k];
            int const last = k == depth - 1;
            node->used = last ? 1 : 3;
            node->exponent[0] = node->exponent[1] = node->exponent[2] = 120;
            memset(node->plane, 0, sizeof node->plane);
            memset(node->plane, 255, sizeof node->plane / 2);
            node->plane[0][0] = node->plane[1][0] = node->plane[2][0] = 0;
            node->plane[3][0] = node->plane[4][0] = node->plane[5][0] = 255;
            if (!last) node->plane[0][1] = node->plane[1][1] = node->plane[2][1] = 0;
            if (!last) node->plane[3][1] = node->plane[4][1] = node->plane[5][1] = 255;
            node->child = (uint32_t)k + 1;
            node->first = (uint32_t)k;
            node->kind[0] = 32;
            if (!last) node->kind[1] = 224;
        }
        f = saved(&forged);
        CHECK_RESULT(lbvh_wide_load(&loaded, NULL, f.bytes, f.size),
                     depth < LBVH_STACK ? LBVH_OK : LBVH_BAD_FILE);
        if (loaded.built) use(&loaded);
        free(f.bytes);
        free(forged.node);
    }
    lbvh_wide_free(&loaded);
}

static void test_file_refusals(void **state)
{
    lbvh_wide loaded;
    heap h = {0, 0, 0, 0, 0, 0};
    lbvh_wide_desc desc;
    wide_file f;
    int64_t needed;
    int fail;
    (void)state;
    memset(&loaded, 0, sizeof loaded);
    memset(&desc, 0, sizeof desc);
    CHECK_RESULT(lbvh_wide_save(&loaded, NULL, 0, &needed), LBVH_NOT_BUILT);
    begin(SOUP, 60, 1);
    f = saved(&s.wide);
    CHECK_RESULT(lbvh_wide_save(NULL, f.bytes, f.size, &needed), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_wide_save(&s.wide, NULL, 1, &needed), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_wide_save(&s.wide, f.bytes, -1, &needed), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_wide_save(&s.wide, f.bytes, f.size, NULL), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_wide_load(NULL, NULL, f.bytes, f.size), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_wide_load(&loaded, NULL, NULL, f.size), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_wide_load(&loaded, NULL, f.bytes, -1), LBVH_BAD_ARGUMENT);
    desc.allocator = allocator_of(&h);
    for (fail = 1; fail <= 3; fail++) {
        h.fail_at = h.calls + fail;
        CHECK_RESULT(lbvh_wide_load(&loaded, &desc, f.bytes, f.size), LBVH_OUT_OF_MEMORY);
        CHECK(!loaded.built);
        lbvh_wide_free(&loaded);
        CHECK(h.live_blocks == 0);
    }
    CHECK_RESULT(lbvh_wide_load(&loaded, &desc, f.bytes, f.size), LBVH_OK);
    check_same_wide(&s.wide, &loaded);
    CHECK_RESULT(lbvh_wide_load(&loaded, NULL, f.bytes, f.size), LBVH_BAD_ALLOCATOR);
    CHECK(!loaded.built);
    lbvh_wide_free(&loaded);
    CHECK(h.live_blocks == 0 && !h.wrong);
    free(f.bytes);
}
