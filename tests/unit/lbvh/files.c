/* files.c - a part of test_lbvh.c: a tree that was saved and loaded has the same bits; damaged,
   short and forged files are refused; the arrays can be copied as plain bytes.
   SPDX-License-Identifier: MIT OR Unlicense */

typedef struct file { unsigned char *bytes; int64_t size; } file;

static file saved(const lbvh *t)
{
    file f;
    int64_t needed = -1;
    CHECK_RESULT(lbvh_save(t, NULL, 0, &f.size), LBVH_BUFFER_TOO_SMALL);
    f.bytes = (unsigned char *)exactly((size_t)f.size);
    CHECK_RESULT(lbvh_save(t, f.bytes, f.size - 1, &needed), LBVH_BUFFER_TOO_SMALL);
    CHECK(needed == f.size && f.bytes[0] == 0xA5);
    CHECK_RESULT(lbvh_save(t, f.bytes, f.size, &needed), LBVH_OK);
    CHECK(needed == f.size);
    return f;
}

/* Into trees that hold something already: what was there is gone. */
static void test_files(void **state)
{
    lbvh tree = {0}, loaded = {0};
    scene s;
    int counter;
    (void)state;
    dice = wl_seed(18);
    current_scene = &s;
    describe = describe_scene;
    for (counter = 0; counter < 40; counter++) {
        file f;
        memset(&s, 0, sizeof s);
        s.dim = 2 + counter % 2;
        s.bits = counter % 4 < 2 ? 63 : 30;
        s.masked = counter % 3 == 0;
        s.keep = 1;
        set_kind(&s, counter % KINDS);
        make_scene(&s, &inputs[counter % COUNT_OF(inputs)], counter < 6 ? counter : roll(100));
        build(&tree, &s);
        f = saved(&tree);
        CHECK_RESULT(lbvh_load(&loaded, NULL, f.bytes, f.size), LBVH_OK);
        check_same_tree(&tree, &loaded);
        CHECK(loaded.desc.dim == s.dim && loaded.desc.bits == s.bits && loaded.bad_id == -1);
        CHECK_RESULT(lbvh_validate(&loaded), LBVH_OK);
        check_everything(&loaded, &s, 3);
        if (s.kind == LBVH_BOXES) { /* what a loaded tree can be refitted with */
            CHECK_RESULT(lbvh_refit(&loaded, s.data, s.stride), LBVH_OK);
            check_same_tree(&tree, &loaded);
        }
        free(f.bytes);
        forget(&s);
    }
    lbvh_free(&tree);
    lbvh_free(&loaded);
}

/* What stands at the head of a file, on any machine: files are kept for years. */
static void test_head_of_a_file(void **state)
{
    static const uint32_t order = 0x01020304u;
    int32_t const numbers[4] = {(int32_t)sizeof(real), 3, 63, 2};
    uint32_t version;
    lbvh tree = {0};
    file f;
    (void)state;
    CHECK_RESULT(lbvh_build(&tree, NULL, two_boxes, 0, 2), LBVH_OK);
    f = saved(&tree);
    CHECK(same(f.bytes, "lbvh.h\r\n", 8) && same(f.bytes + 8, &order, 4));
    memcpy(&version, f.bytes + 12, 4);
    CHECK(version == 1 && same(f.bytes + 16, numbers, sizeof numbers));
    free(f.bytes);
    lbvh_free(&tree);
}

/* Elements near the end of the numbers lie in an infinite box; those at infinity do not. */
static void test_largest_numbers(void **state)
{
    real const far = (real)0.9 * (IS_FLOAT ? (real)3.402823e38 : (real)1.797693134862315e308);
    real const all[6] = {-REAL_INFINITY, -REAL_INFINITY, -REAL_INFINITY, REAL_INFINITY,
        REAL_INFINITY, REAL_INFINITY};
    int a;
    (void)state;
    for (a = 0; a < 6; a++) {
        lbvh tree = {0};
        lbvh_overlap o;
        real box[6] = {0, 0, 0, 0, 0, 0};
        box[a % 3] = box[3 + a % 3] = a < 3 ? far : -far;
        CHECK_RESULT(lbvh_build(&tree, NULL, box, 0, 1), LBVH_OK);
        o = lbvh_overlap_box(&tree, all);
        CHECK(lbvh_next(&o) && o.id == 0 && !lbvh_next(&o));
        lbvh_free(&tree);
    }
}

/* A corner with a coordinate that is not finite: along this axis both ends of the box are
   +infinity; along the others the box is as usual. */
static void test_box_of_a_bad_triangle(void **state)
{
    real const bad[3] = {REAL_NAN, REAL_INFINITY, -REAL_INFINITY};
    int k, corner, x, b;
    (void)state;
    for (b = 0; b < 3; b++) for (corner = 0; corner < 3; corner++) for (k = 0; k < 3; k++) {
        real p[3][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}}, min[3], max[3];
        p[corner][k] = bad[b];
        lbvh_triangle_box(3, p[0], p[1], p[2], min, max);
        for (x = 0; x < 3; x++)
            CHECK(x == k ? min[x] == REAL_INFINITY && max[x] == REAL_INFINITY :
                min[x] == 0 && max[x] == 2);
    }
}

/* A sphere of a negative radius that reaches beyond the largest number is refused with the same
   result on every axis. */
static void test_negative_radius_at_the_end(void **state)
{
    int dim, axis;
    (void)state;
    for (dim = 2; dim <= 3; dim++) for (axis = 0; axis < dim; axis++) {
        real sphere[4] = {0, 0, 0, 0};
        lbvh tree = {0};
        lbvh_desc d = {0};
        d.dim = dim;
        d.kind = LBVH_SPHERES;
        sphere[axis] = REAL_LARGEST;
        sphere[dim] = -REAL_LARGEST;
        CHECK_RESULT(lbvh_build(&tree, &d, sphere, 0, 1), LBVH_NOT_FINITE);
        sphere[dim] = -1;
        CHECK_RESULT(lbvh_build(&tree, &d, sphere, 0, 1), LBVH_INVERTED);
        lbvh_free(&tree);
    }
}

/* No pointers inside: a copy of the arrays elsewhere is the same tree. */
static void test_relocation(void **state)
{
    lbvh tree = {0}, copy;
    scene s;
    (void)state;
    dice = wl_seed(19);
    memset(&s, 0, sizeof s);
    current_scene = &s;
    describe = describe_scene;
    s.dim = 3;
    s.masked = 1;
    make_scene(&s, &inputs[6], 70);
    build(&tree, &s);
    copy = tree;
    copy.node = NEW(lbvh_node, nodes_of(&tree)); /* no spare node either */
    copy.mask = NEW(uint32_t, nodes_of(&tree));
    copy.prefix = NEW(uint8_t, tree.n + 1);
    memcpy(copy.node, tree.node, sizeof *tree.node * (size_t)nodes_of(&tree));
    memcpy(copy.mask, tree.mask, sizeof *tree.mask * (size_t)nodes_of(&tree));
    memcpy(copy.prefix, tree.prefix, (size_t)tree.n + 1);
    lbvh_free(&tree);
    CHECK_RESULT(lbvh_validate(&copy), LBVH_OK);
    check_everything(&copy, &s, 20);
    free(copy.node);
    free(copy.mask);
    free(copy.prefix);
    forget(&s);
}

static void check_bad_file(lbvh *tree, const unsigned char *bytes, int64_t size)
{
    real const all[6] = {-9, -9, -9, 9, 9, 9};
    lbvh_overlap o;
    CHECK_RESULT(lbvh_load(tree, NULL, bytes, size), LBVH_BAD_FILE);
    CHECK(tree->n == 0);
    o = lbvh_overlap_box(tree, all);
    CHECK(!lbvh_next(&o));
}

static void small_tree(lbvh *tree, scene *s, int32_t n)
{
    memset(s, 0, sizeof *s);
    s->dim = 3;
    s->masked = 1;
    make_scene(s, &inputs[0], n);
    build(tree, s);
}

/* Cut short anywhere, longer by one, and with any one bit turned. */
static void test_damaged_files(void **state)
{
    lbvh tree = {0}, loaded = {0};
    scene s;
    file f;
    int64_t k;
    int bit;
    (void)state;
    dice = wl_seed(20);
    small_tree(&tree, &s, 5);
    f = saved(&tree);
    for (k = 0; k < f.size; k++) {
        unsigned char *cut = (unsigned char *)exactly((size_t)k);
        memcpy(cut, f.bytes, (size_t)k);
        check_bad_file(&loaded, cut, k);
        free(cut);
        for (bit = 0; bit < 8; bit++) {
            f.bytes[k] = (unsigned char)(f.bytes[k] ^ 1 << bit);
            check_bad_file(&loaded, f.bytes, f.size);
            f.bytes[k] = (unsigned char)(f.bytes[k] ^ 1 << bit);
        }
    }
    f.bytes = (unsigned char *)realloc(f.bytes, (size_t)f.size + 1);
    f.bytes[f.size] = 0;
    check_bad_file(&loaded, f.bytes, f.size + 1);
    CHECK_RESULT(lbvh_load(&loaded, NULL, f.bytes, f.size), LBVH_OK);
    free(f.bytes);
    forget(&s);
    lbvh_free(&tree);
    lbvh_free(&loaded);
}

/* A file shorter than a header, at the end of readable memory: no byte behind it is read. */
static void test_short_files(void **state)
{
    (void)state;
#ifdef __unix__
    size_t const page = (size_t)sysconf(_SC_PAGESIZE);
    lbvh tree = {0}, loaded = {0};
    unsigned char *const pages =
        (unsigned char *)mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
        -1, 0);
    int64_t size, needed;
    CHECK((void *)pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
    CHECK_RESULT(lbvh_build(&tree, NULL, NULL, 0, 0), LBVH_OK);
    for (size = 64; size >= 0; size--) { /* a whole one first */
        unsigned char whole[64], *at = pages + page - size;
        CHECK_RESULT(lbvh_save(&tree, whole, sizeof whole, &needed), LBVH_OK);
        memcpy(at, whole, (size_t)size);
        CHECK_RESULT(lbvh_load(&loaded, NULL, at, size), size == 64 ? LBVH_OK : LBVH_BAD_FILE);
    }
    CHECK(munmap(pages, 2 * page) == 0);
    lbvh_free(&tree);
    lbvh_free(&loaded);
#endif
}

/* The checksum as the file format has it: of the header, its own field 0, and of all that
   follows. */
static void make_checksum_right(file *f)
{
    uint64_t sum;
    memset(f->bytes + 56, 0, sizeof sum);
    sum = lbvh_i_checksum(0xCBF29CE484222325u, f->bytes, (size_t)f->size);
    memcpy(f->bytes + 56, &sum, sizeof sum);
}

/* A file of an empty tree is its header; a count that it cannot have is refused, also where the
   checksum is right. */
static void test_counts_in_files(void **state)
{
    static const int32_t odd[] = {-1, 1, INT32_MIN, INT32_MAX, (1 << 30) - 511, 1 << 30};
    lbvh tree = {0}, loaded = {0};
    file f;
    int k;
    (void)state;
    CHECK_RESULT(lbvh_build(&tree, NULL, NULL, 0, 0), LBVH_OK);
    f = saved(&tree);
    CHECK(f.size == 64);
    for (k = 0; k < COUNT_OF(odd); k++) {
        memcpy(f.bytes + 28, &odd[k], sizeof odd[k]);
        make_checksum_right(&f);
        check_bad_file(&loaded, f.bytes, f.size);
    }
    memset(f.bytes + 28, 0, 4);
    make_checksum_right(&f);
    CHECK_RESULT(lbvh_load(&loaded, NULL, f.bytes, f.size), LBVH_OK);
    CHECK(loaded.n == 0 && lbvh_root(&loaded) == -1);
    free(f.bytes);
    lbvh_free(&tree);
    lbvh_free(&loaded);
}

/* Damage behind a right checksum: refused by what it breaks, or a tree that is whole and can be
   searched. */
static void test_forged_files(void **state)
{
    static const int32_t odd[] = {-1, 0, 1, 2, 7, 8, 9, 14, 15, 16, 94, 255, 1 << 30, INT32_MAX,
        INT32_MIN, 0x7F800000, -0x00800000};
    lbvh tree = {0}, loaded = {0};
    scene s;
    file f;
    unsigned char *whole;
    int64_t refused = 0, k;
    int const steps = 40000 / share();
    (void)state;
    dice = wl_seed(21);
    small_tree(&tree, &s, 8);
    f = saved(&tree);
    whole = (unsigned char *)exactly((size_t)f.size);
    memcpy(whole, f.bytes, (size_t)f.size);
    make_checksum_right(&f);
    CHECK(same(whole, f.bytes, (size_t)f.size) && "the checksum is computed as the header does");
    for (k = 0; k < steps; k++) {
        int turns = 1 + roll(3);
        lbvh_result r;
        memcpy(f.bytes, whole, (size_t)f.size);
        for (; turns > 0; turns--) {
            int32_t const value = odd[roll(COUNT_OF(odd))];
            int const at = roll(3) ? 64 + roll((int)f.size - 68) / 4 * 4 : roll((int)f.size - 4);
            if (roll(2)) f.bytes[at] = (unsigned char)roll(256);
            else memcpy(f.bytes + at, &value, sizeof value);
        }
        make_checksum_right(&f);
        r = lbvh_load(&loaded, NULL, f.bytes, f.size);
        if (r == LBVH_BAD_FILE) { refused++; CHECK(loaded.n == 0); continue; }
        CHECK_RESULT(r, LBVH_OK);
        CHECK_RESULT(lbvh_validate(&loaded), LBVH_OK);
        { /* whole: each search ends, and meets every leaf once */
            real const origin[3] = {0, 0, 0};
            int64_t pairs = 0;
            lbvh_near walk = lbvh_near_point(&loaded, origin, REAL_INFINITY);
            int32_t found = 0;
            while (lbvh_next_near(&walk)) found++;
            CHECK(found <= loaded.n);
            CHECK_RESULT(lbvh_count_pairs(&loaded, &pairs), LBVH_OK);
            CHECK(pairs <= (int64_t)loaded.n * (loaded.n - 1) / 2);
        }
    }
    CHECK(refused > steps / 2);
    free(whole);
    free(f.bytes);
    forget(&s);
    lbvh_free(&tree);
    lbvh_free(&loaded);
}
