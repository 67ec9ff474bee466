/* validate.c - a part of test_lbvh.c: lbvh_validate finds damage to each array, and reads
   nothing out of bounds while it looks.
   SPDX-License-Identifier: MIT OR Unlicense */

static const char *damage;
static void describe_damage(void) { print_error("  damage not found: %s\n", damage); }

static void check_invalid(const lbvh *tree, const char *what)
{
    damage = what;
    describe = describe_damage;
    CHECK(lbvh_validate(tree) == LBVH_INVALID);
}

#define DAMAGE(word, value) do { \
        (void)memcpy(&keep, &(word), sizeof(word)); \
        (word) = (value); \
        check_invalid(&tree, #word " = " #value); \
        (void)memcpy(&(word), &keep, sizeof(word)); \
    } while (0)

static void test_validate_finds_damage(void **state)
{
    lbvh tree = {0};
    scene s;
    union { int32_t i; uint64_t u; real r; void *p; char bytes[16]; } keep;
    int32_t k;
    int a;
    (void)state;
    dice = wl_seed(22);
    memset(&s, 0, sizeof s);
    s.dim = 3;
    s.masked = s.keep = 1;
    make_scene(&s, &inputs[0], 30);
    build(&tree, &s);
    for (k = 0; k < nodes_of(&tree); k++) {
        lbvh_node *node = &tree.node[k];
        DAMAGE(node->link, -1);
        DAMAGE(node->link, node->link + 1);
        DAMAGE(node->link, 59);
        DAMAGE(node->link, INT32_MAX);
        DAMAGE(node->link, INT32_MIN);
        DAMAGE(node->skip, node->skip + 1);
        DAMAGE(node->skip, node->skip - 1);
        DAMAGE(node->skip, 59);
        DAMAGE(node->skip, INT32_MIN);
        for (a = 0; a < 3; a++) {
            DAMAGE(node->min[a], REAL_NAN);
            DAMAGE(node->max[a], REAL_NAN);
            DAMAGE(node->min[a], -REAL_INFINITY);
            DAMAGE(node->max[a], REAL_INFINITY);
            if (node->min[a] < node->max[a]) DAMAGE(node->min[a], beside(node->max[a], 1));
            if (k < tree.first_leaf) DAMAGE(node->min[a], beside(node->min[a], 1));
            if (k < tree.first_leaf) DAMAGE(node->max[a], beside(node->max[a], 1));
        }
        DAMAGE(tree.mask[k], tree.mask[k] ^ 0x40000u);
    }
    for (k = 0; k <= tree.n; k++) {
        DAMAGE(tree.prefix[k], (uint8_t)(tree.prefix[k] + 1));
        DAMAGE(tree.prefix[k], (uint8_t)(tree.prefix[k] - 1));
        DAMAGE(tree.prefix[k], (uint8_t)94);
        DAMAGE(tree.prefix[k], (uint8_t)255);
    }
    for (k = 0; k < tree.n; k++) DAMAGE(tree.code[k], tree.code[k] ^ (uint64_t)1 << 62);
    DAMAGE(tree.first_leaf, tree.first_leaf + 1);
    DAMAGE(tree.n, -1);
    DAMAGE(tree.n, tree.n - 1);
    DAMAGE(tree.node, NULL);
    DAMAGE(tree.prefix, NULL);
    CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
    tree.code = NULL; /* without codes, the prefixes still have to fit the nodes and each other */
    for (k = 1; k < tree.n; k++) {
        DAMAGE(tree.prefix[k], (uint8_t)0);
        DAMAGE(tree.prefix[k], (uint8_t)94);
        if (k > 1) DAMAGE(tree.prefix[k], tree.prefix[k - 1]);
    }
    CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
    lbvh_free(&tree);
    forget(&s);
}

/* Prefixes that no codes have, with nodes that fit them: a comb of 200 leaves, deeper than the
   stack of any walk. */
static void test_validate_finds_combs(void **state)
{
    lbvh tree = {0}, loaded = {0};
    scene s;
    file f;
    int32_t k;
    int kind;
    (void)state;
    dice = wl_seed(28);
    for (kind = 0; kind < 2; kind++) { /* all equal; and 3 4 3 4 .., no two neighbours equal */
        small_tree(&tree, &s, 800);
        for (k = 1; k < 800; k++) tree.prefix[k] = (uint8_t)(kind == 0 ? 1 : 4 - k % 2);
        CHECK_RESULT(lbvh_refit(&tree, s.data, 0), LBVH_OK);
        CHECK_RESULT(lbvh_validate(&tree), LBVH_INVALID);
        f = saved(&tree);
        check_bad_file(&loaded, f.bytes, f.size);
        free(f.bytes);
        forget(&s);
    }
    lbvh_free(&tree);
    lbvh_free(&loaded);
}

/* t counts in lengths of the direction, whatever that is; and what is not a number is no hit. */
static void test_ray_triangle_lengths(void **state)
{
    lbvh_real const a[3] = {0, 0, 5}, b[3] = {1, 0, 5}, c[3] = {0, 1, 5},
        from[3] = {(lbvh_real)0.25, (lbvh_real)0.25, 0};
    lbvh_real scale, t, u, v;
    (void)state;
    for (scale = (lbvh_real)1e-15; scale < (lbvh_real)1e16; scale *= 10) {
        lbvh_real const along[3] = {0, 0, scale};
        CHECK(lbvh_ray_triangle(from, along, a, b, c, &t, &u, &v));
        CHECK(t * scale > (lbvh_real)4.9999 && t * scale < (lbvh_real)5.0001);
    }
    for (scale = (lbvh_real)1e-30; scale < (lbvh_real)1e30; scale *= 10) {
        lbvh_real const along[3] = {0, 0, scale};
        if (lbvh_ray_triangle(from, along, a, b, c, &t, &u, &v)) CHECK(t - t == 0);
    }
}

/* A negative radius is refused however far out the sphere lies; and so is memory that is not
   aligned, from any allocator. */
static void test_far_spheres_and_crooked_memory(void **state)
{
    lbvh_real const sphere[4] = {(lbvh_real)1e10, (lbvh_real)1e10, (lbvh_real)1e10, -1};
    heap h = {0, 0, 0, 0, 0, 0};
    lbvh_desc desc;
    lbvh tree = {0};
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.kind = LBVH_SPHERES;
    CHECK_RESULT(lbvh_build(&tree, &desc, sphere, 0, 1), LBVH_INVERTED);
    lbvh_free(&tree);
    desc.allocator.alloc = crooked_alloc;
    desc.allocator.free = crooked_free;
    desc.allocator.user = &h;
    CHECK_RESULT(lbvh_build(&tree, &desc, sphere, 0, 1), LBVH_BAD_ALLOCATOR);
    lbvh_free(&tree);
    CHECK(h.calls > 0 && h.live_blocks == 0 && !h.wrong);
}

/* Whatever the arrays hold: an answer, and nothing read outside of them. */
static void test_validate_is_safe(void **state)
{
    lbvh tree = {0};
    scene s;
    int k, rounds = 3000 / share();
    (void)state;
    dice = wl_seed(23);
    for (k = 0; k < rounds; k++) {
        int32_t i, n = 1 + roll(40);
        size_t b;
        small_tree(&tree, &s, n);
        for (i = 0; i < nodes_of(&tree); i++) {
            unsigned char *bytes = (unsigned char *)&tree.node[i];
            for (b = 0; b < sizeof *tree.node && k % 3 == 0; b++)
                bytes[b] = (unsigned char)roll(256);
            if (k % 3 == 1)
                tree.node[i].link = roll(2 * n) - 1, tree.node[i].skip = roll(2 * n) - 1;
        }
        for (i = 0; i <= n && k % 2; i++)
            tree.prefix[i] = (uint8_t)(k % 4 == 1 && (i == 0 || i == n) ? 0 : roll(256));
        (void)lbvh_validate(&tree);
        forget(&s);
    }
    lbvh_free(&tree);
}
