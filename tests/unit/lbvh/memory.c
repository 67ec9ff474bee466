/* memory.c - a part of test_lbvh.c: allocations. One that fails leaves an empty, usable tree;
   arrays grow by a factor; after a reserve nothing is allocated.
   SPDX-License-Identifier: MIT OR Unlicense */

/* What the manual says: so many bytes per leaf, and one prefix more. */
static int64_t bytes_by_hand(const lbvh_desc *d, int32_t n)
{
    int64_t const leaf = (IS_FLOAT ? 65 : 129) + (d->masks ? 8 : 0) +
        (d->keep_codes || d->builder != LBVH_MERGE ? 8 : 0);
    return n ? leaf * n + 1 : 0;
}

static void test_reserve(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0};
    lbvh tree = {0};
    scene s;
    int options;
    (void)state;
    dice = wl_seed(16);
    plain_scene(&s, &inputs[0], 200);
    s.masks = NEW(uint32_t, 200);
    for (options = 0; options < 12; options++) {
        lbvh_desc d = desc_of(&s);
        int64_t calls, bytes;
        int32_t n;
        d.allocator = allocator_of(&h);
        d.masks = options & 1 ? s.masks : NULL;
        d.keep_codes = options >> 1 & 1;
        d.builder = (lbvh_builder)(options / 4);
        CHECK(lbvh_bytes_for(&d, 200, &bytes) == LBVH_OK && bytes == bytes_by_hand(&d, 200));
        CHECK_RESULT(lbvh_reserve(&tree, &d, 200), LBVH_OK);
        CHECK(tree.n == 0 && h.live_bytes == lbvh_bytes(&tree) &&
            lbvh_bytes(&tree) == bytes_by_hand(&d, 200));
        calls = h.calls;
        for (n = 200; n >= 0; n = n == 200 ? 0 : n == 0 ? 77 : n == 77 ? 200 - 1 : -1)
            CHECK_RESULT(lbvh_build(&tree, &d, s.data, 0, n), LBVH_OK);
        CHECK_RESULT(lbvh_refit(&tree, s.data, 0), LBVH_OK);
        CHECK(h.calls == calls && "nothing was allocated");
        CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
        CHECK(h.live_bytes == lbvh_bytes(&tree));
        lbvh_free(&tree);
        CHECK(h.live_blocks == 0 && h.calls == h.frees && !h.wrong);
        d.allocator = allocator_of(&h);
        CHECK_RESULT(lbvh_build(&tree, &d, s.data, 0, 200), LBVH_OK);
        CHECK(lbvh_bytes(&tree) == bytes_by_hand(&d, 200));
        lbvh_free(&tree);
    }
    forget(&s);
}

/* What would be needed is told without a tree; refused is what lbvh_reserve refuses. */
static void test_bytes_for(void **state)
{
    lbvh_desc d;
    int64_t bytes = 1;
    (void)state;
    memset(&d, 0, sizeof d);
    CHECK(lbvh_bytes_for(NULL, 1, &bytes) == LBVH_OK && bytes == bytes_by_hand(&d, 1));
    CHECK(lbvh_bytes_for(NULL, 0, &bytes) == LBVH_OK && bytes == 0);
    bytes = 1;
    CHECK(lbvh_bytes_for(NULL, -1, &bytes) == LBVH_BAD_ARGUMENT && bytes == 0);
    CHECK_RESULT(lbvh_bytes_for(NULL, 1, NULL), LBVH_BAD_ARGUMENT);
    bytes = 1;
    CHECK(lbvh_bytes_for(NULL, INT32_MAX, &bytes) == LBVH_TOO_MANY && bytes == 0);
    d.dim = 4;
    CHECK_RESULT(lbvh_bytes_for(&d, 1, &bytes), LBVH_BAD_DIM);
}

/* n rises by one with every build: what is allocated follows its logarithm. Every builder, with all
   arrays. */
static void test_growth(void **state)
{
    /* the power of 3 / 2 that is above 600, and some for the first few elements */
    enum { MOST = 600, GROWTHS = 18 };
    heap h = {0, 0, 0, 0, 0, 0};
    scene s;
    int options;
    (void)state;
    dice = wl_seed(29);
    memset(&s, 0, sizeof s);
    s.dim = 3;
    s.masked = 1;
    make_scene(&s, &inputs[0], MOST);
    for (options = 0; options < 6; options++) {
        lbvh tree = {0}, loaded = {0};
        lbvh_desc d = desc_of(&s);
        int64_t calls = 0, room = 0;
        int32_t n, grown = 0;
        unsigned char *file = NEW(unsigned char, MOST * 200);
        h.calls = 0;
        d.allocator = allocator_of(&h);
        d.masks = options & 1 ? s.masks : NULL;
        d.keep_codes = options & 1;
        d.builder = (lbvh_builder)(options / 2);
        for (n = 1; n <= MOST; n++) {
            calls = h.calls;
            CHECK_RESULT(lbvh_build(&tree, &d, s.data, s.stride, n), LBVH_OK);
            CHECK(n > 1 || lbvh_bytes(&tree) == bytes_by_hand(&d, 1)); /* the first is exact */
            CHECK(h.calls == calls || lbvh_bytes(&tree) >= bytes_by_hand(&d, n));
        }
        CHECK(h.calls <= LBVH_BLOCKS * GROWTHS && lbvh_bytes(&tree) <= 2 * bytes_by_hand(&d, MOST));
        CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
        for (n = 1; n <= MOST; n++) { /* the same through files, into an object of its own */
            int64_t needed;
            CHECK_RESULT(lbvh_build(&tree, &d, s.data, s.stride, n), LBVH_OK);
            CHECK_RESULT(lbvh_save(&tree, file, MOST * 200, &needed), LBVH_OK);
            calls = h.calls;
            room = lbvh_bytes(&loaded);
            CHECK_RESULT(lbvh_load(&loaded, &d, file, needed), LBVH_OK);
            grown += lbvh_bytes(&loaded) > room;
        }
        CHECK(grown <= LBVH_BLOCKS * GROWTHS);
        lbvh_free(&tree);
        lbvh_free(&loaded);
        free(file);
        for (n = 100; n <= 103; n++) { /* and a reserve takes what it needs */
            CHECK_RESULT(lbvh_reserve(&tree, &d, n), LBVH_OK);
            CHECK(lbvh_bytes(&tree) == bytes_by_hand(&d, n));
        }
        lbvh_free(&tree);
        CHECK(h.live_blocks == 0 && !h.wrong);
    }
    forget(&s);
}

/* Where there is no memory to grow ahead, the exact size is allocated; only if that fails, too, the
   build does. */
static void test_growth_without_memory(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0};
    scene s;
    lbvh tree = {0};
    lbvh_desc d;
    (void)state;
    dice = wl_seed(30);
    plain_scene(&s, &inputs[0], 101);
    d = desc_of(&s);
    d.allocator = allocator_of(&h);
    CHECK_RESULT(lbvh_build(&tree, &d, s.data, s.stride, 100), LBVH_OK);
    h.fail_at = h.calls + 1;
    d.allocator.alloc = tree.desc.allocator.alloc = scarce_alloc;
    CHECK_RESULT(lbvh_build(&tree, &d, s.data, s.stride, 101), LBVH_OUT_OF_MEMORY);
    check_holds_nothing(&tree, LBVH_NOT_BUILT);
    d.allocator.alloc = tree.desc.allocator.alloc = heap_alloc;
    CHECK_RESULT(lbvh_build(&tree, &d, s.data, s.stride, 100), LBVH_OK);
    h.fail_at = h.calls + 1;
    CHECK_RESULT(lbvh_build(&tree, &d, s.data, s.stride, 101), LBVH_OK);
    CHECK(tree.block[0].bytes == 2 * 101 * sizeof(lbvh_node) &&
        "the first of the two blocks is exact");
    CHECK(h.live_bytes == lbvh_bytes(&tree));
    CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
    lbvh_free(&tree);
    CHECK(h.live_blocks == 0 && !h.wrong);
    forget(&s);
}

/* lbvh_validate and lbvh_verify take a byte for each leaf, and give it back. */
static void *counted_alloc(size_t bytes, void *user)
{
    size_t *asked = (size_t *)user;
    asked[0]++;
    asked[1] += bytes;
    return calloc(1, bytes);
}

static void counted_free(void *memory, size_t bytes, void *user)
{
    ((size_t *)user)[2] += bytes;
    free(memory);
}

/* Bounds are given where one of the two is not 0, on one side and on one axis. */
static void test_bounds_that_touch_the_origin(void **state)
{
    int k;
    (void)state;
    for (k = 0; k < 6; k++) {
        lbvh tree = {0};
        lbvh_desc d;
        lbvh_lattice want;
        real least[3], most[3];
        memset(&d, 0, sizeof d);
        if (k % 2) d.max[k / 2] = 64;
        else d.min[k / 2] = -64;
        CHECK_RESULT(lbvh_build(&tree, &d, two_boxes, 0, 2), LBVH_OK);
        lbvh_i_given_bounds(&tree.desc, least, most);
        want = lbvh_i_lattice_of(3, 63, least, most);
        CHECK(same(&tree.lattice, &want, sizeof want));
        lbvh_free(&tree);
    }
}

static void test_verify_memory(void **state)
{
    size_t asked[3] = {0, 0, 0}; /* calls, bytes, bytes given back */
    lbvh tree = {0};
    lbvh_desc d;
    int32_t bad;
    (void)state;
    memset(&d, 0, sizeof d);
    CHECK_RESULT(lbvh_build(&tree, &d, two_boxes, 0, 2), LBVH_OK);
    /* from here on: nothing that is there goes back through it */
    tree.desc.allocator.alloc = counted_alloc;
    tree.desc.allocator.free = counted_free;
    tree.desc.allocator.user = asked;
    CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
    CHECK(asked[0] == 1 && asked[1] == 2 && asked[2] == 2);
    CHECK_RESULT(lbvh_verify(&tree, 2, 1, &bad), LBVH_OK);
    CHECK(asked[0] == 3 && asked[1] == 6 && asked[2] == 6);
    tree.desc.allocator = d.allocator;
    lbvh_free(&tree);
}

/* An element whose mask is 0 is found by no search, and lbvh_verify accepts its tree. */
static void test_verify_with_masks(void **state)
{
    static const uint32_t masks[2] = {0, 5};
    lbvh tree = {0};
    lbvh_desc d;
    int32_t bad = 7;
    (void)state;
    memset(&d, 0, sizeof d);
    d.masks = masks;
    CHECK_RESULT(lbvh_build(&tree, &d, two_boxes, 0, 2), LBVH_OK);
    CHECK_RESULT(lbvh_verify(&tree, 2, 1, &bad), LBVH_OK);
    CHECK(bad == -1);
    lbvh_free(&tree);
}

/* One step that may run out of memory: then the tree is empty, and the same step works the next
   time. */
static int survive(lbvh *tree, const lbvh_desc *d, const scene *s, int32_t n)
{
    int64_t pairs = -1, again = -1;
    int failures = 0;
    lbvh_result r = lbvh_build(tree, d, s->data, s->stride, n);
    if (r == LBVH_OUT_OF_MEMORY) {
        failures++;
        check_holds_nothing(tree, LBVH_NOT_BUILT);
        r = lbvh_build(tree, d, s->data, s->stride, n);
    }
    CHECK_RESULT(r, LBVH_OK);
    CHECK_RESULT(lbvh_count_pairs(tree, &pairs), LBVH_OK);
    r = lbvh_validate(tree);
    if (r == LBVH_OUT_OF_MEMORY) failures++, r = lbvh_validate(tree);
    CHECK_RESULT(r, LBVH_OK);
    CHECK_RESULT(lbvh_count_pairs(tree, &again), LBVH_OK);
    CHECK(pairs == again && tree->n == n);
    return failures;
}

/* The same for the way through a file. */
static int survive_load(lbvh *tree, const lbvh_desc *d, const lbvh *from)
{
    int64_t needed = 0;
    int failures = 0;
    char *file;
    lbvh_result r;
    CHECK_RESULT(lbvh_save(from, NULL, 0, &needed), LBVH_BUFFER_TOO_SMALL);
    file = (char *)exactly((size_t)needed);
    CHECK_RESULT(lbvh_save(from, file, needed, &needed), LBVH_OK);
    r = lbvh_load(tree, d, file, needed);
    if (r == LBVH_OUT_OF_MEMORY) {
        failures++;
        check_holds_nothing(tree, LBVH_NOT_BUILT);
        r = lbvh_load(tree, d, file, needed);
    }
    CHECK_RESULT(r, LBVH_OK);
    check_same_tree(tree, from);
    free(file);
    return failures;
}

static int memory_scenario(heap *h, const scene *s)
{
    lbvh tree = {0}, other = {0};
    lbvh_desc d = desc_of(s);
    int failures = 0, options;
    d.allocator = allocator_of(h);
    for (options = 0; options < 6; options++) {
        d.masks = options & 1 ? s->masks : NULL;
        d.builder = (lbvh_builder)(options / 2);
        if (options > 1) {
            lbvh_result const r = lbvh_reserve(&tree, &d, 6);
            CHECK((r == LBVH_OK || r == LBVH_OUT_OF_MEMORY) && tree.n == 0);
            failures += r == LBVH_OUT_OF_MEMORY;
        }
        failures += survive(&tree, &d, s, 5);
        failures += survive(&tree, &d, s, s->n);
        failures += survive(&tree, &d, s, 2);
        failures += survive_load(&other, &d, &tree);
        CHECK(h->live_bytes == lbvh_bytes(&tree) + lbvh_bytes(&other));
        if (options % 2) lbvh_free(&tree);
    }
    lbvh_free(&tree);
    lbvh_free(&other);
    return failures;
}

static void test_out_of_memory(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0};
    int64_t total, k;
    scene s;
    (void)state;
    dice = wl_seed(17);
    memset(&s, 0, sizeof s);
    s.dim = 3;
    s.masked = 1;
    make_scene(&s, &inputs[0], 40);
    CHECK(memory_scenario(&h, &s) == 0 && h.calls > 20);
    total = h.calls;
    for (k = 1; k <= total; k++) {
        memset(&h, 0, sizeof h);
        h.fail_at = k;
        CHECK(memory_scenario(&h, &s) == 1);
        CHECK(h.live_bytes == 0 && h.live_blocks == 0 && !h.wrong);
    }
    forget(&s);
}

/* Memory goes back to where it came from: another allocator is refused as long as there is some. */
static void test_change_of_allocator(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0}, other = {0, 0, 0, 0, 0, 0};
    lbvh tree = {0};
    lbvh_desc d, plain;
    int64_t needed;
    char file[4096];
    (void)state;
    memset(&d, 0, sizeof d);
    plain = d;
    d.allocator = allocator_of(&h);
    CHECK_RESULT(lbvh_build(&tree, &d, two_boxes, 0, 2), LBVH_OK);
    CHECK_RESULT(lbvh_save(&tree, file, sizeof file, &needed), LBVH_OK);
    CHECK_RESULT(lbvh_build(&tree, &plain, two_boxes, 0, 2), LBVH_BAD_ALLOCATOR);
    CHECK(tree.n == 0 && h.live_bytes == lbvh_bytes(&tree) && h.live_bytes > 0);
    CHECK_RESULT(lbvh_reserve(&tree, NULL, 2), LBVH_BAD_ALLOCATOR);
    CHECK_RESULT(lbvh_load(&tree, NULL, file, needed), LBVH_BAD_ALLOCATOR);
    d.allocator = allocator_of(&other);
    CHECK_RESULT(lbvh_build(&tree, &d, two_boxes, 0, 2), LBVH_BAD_ALLOCATOR);
    d.allocator = allocator_of(&h);
    CHECK_RESULT(lbvh_build(&tree, &d, two_boxes, 0, 2), LBVH_OK);
    lbvh_free(&tree);
    CHECK(h.live_blocks == 0 && !h.wrong && other.calls == 0);
    d.allocator = allocator_of(&other);
    CHECK_RESULT(lbvh_build(&tree, &d, two_boxes, 0, 2), LBVH_OK);
    lbvh_free(&tree);
    CHECK(other.live_blocks == 0 && other.calls > 0);
}
