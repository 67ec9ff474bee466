/* test_lbvh_plain.c - the plain forms of lbvh.h against its faster ones: the same bits, for trees
   of all builders, pairs, lists and nearest elements. SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/lbvh/test_lbvh_plain.c -o test_lbvh_plain -lcmocka && ./test_lbvh_plain

   Both are in this program: `faster` chooses. All other tests pass with -DLBVH_PLAIN as well, which
   leaves the faster forms out. */

static int faster; /* asked at each seam */
#define LBVH_I_FASTER() faster

#define LBVH_STATIC
#define LBVH_WITH_NEAREST
#define LBVH_WITH_OPTIMIZE
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define TESTED lbvh
#define SHARE 1
#include "../../common/testing.h"

enum { MOST = 3000, ROW = 9 };

static lbvh plain, fast;
static lbvh_real numbers[9 * MOST];
static uint32_t masks[MOST];

static uint32_t seed = 1;
static uint32_t roll_bits(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

/* Scattered, on a lattice, all at one point, and in two clusters far apart. */
static lbvh_real coordinate(int shape, int32_t i)
{
    lbvh_real const x = (lbvh_real)roll_bits() / (lbvh_real)(1 << 24);
    if (shape == 1) return (lbvh_real)(roll_bits() % 8);
    if (shape == 2) return 1;
    if (shape == 3) return x / 1024 + (i % 2 ? 1000 : 0);
    return x;
}

static void fill(const lbvh_desc *desc, int shape, int32_t n)
{
    int const dim = desc->dim;
    int32_t i;
    int a;
    for (i = 0; i < n; i++) {
        lbvh_real *x = numbers + i * 2 * dim;
        lbvh_real const size = roll_bits() % 64 ? (lbvh_real)0.05 : (lbvh_real)0.5;
        if (desc->kind == LBVH_POINTS) x = numbers + i * dim;
        for (a = 0; a < dim; a++) {
            x[a] = coordinate(shape, i);
            if (desc->kind == LBVH_BOXES)
                x[dim + a] = x[a] + size * (lbvh_real)(roll_bits() % 16) / 16;
        }
        if (desc->skip_invalid && i % 97 == 5) x[0] = lbvh_i_infinity();
        masks[i] = roll_bits();
    }
}

static void same_tree(void)
{
    size_t const nodes = plain.n > 0 ? 2 * (size_t)plain.n - 1 : 0;
    assert_int_equal(plain.n, fast.n);
    assert_int_equal(plain.built, fast.built);
    assert_int_equal(plain.bad_id, fast.bad_id);
    assert_memory_equal(&plain.lattice, &fast.lattice, sizeof plain.lattice);
    if (plain.n == 0) return;
    assert_memory_equal(plain.node, fast.node, nodes * sizeof *plain.node);
    assert_memory_equal(plain.prefix, fast.prefix, (size_t)plain.n + 1);
    if (plain.mask) assert_memory_equal(plain.mask, fast.mask, nodes * sizeof *plain.mask);
    if (plain.code)
        assert_memory_equal(plain.code, fast.code, (size_t)plain.n * sizeof *plain.code);
}

/* The same pairs, in the same order; also where only some of them fit. */
static void same_pairs(void)
{
    int64_t found = -1, again = -2; /* (so that what is not set is seen) */
    int32_t *one, *other;
    faster = 0;
    assert_int_equal(lbvh_count_pairs(&plain, &found), LBVH_OK);
    faster = 1;
    assert_int_equal(lbvh_count_pairs(&fast, &again), LBVH_OK);
    assert_true(found == again);
    if (found > 100000) found = 100000;
    one = (int32_t *)malloc(2 * (size_t)(found + 1) * sizeof *one);
    other = (int32_t *)malloc(2 * (size_t)(found + 1) * sizeof *one);
    faster = 0;
    (void)lbvh_pairs(&plain, one, found, &again);
    faster = 1;
    (void)lbvh_pairs(&fast, other, found, &again);
    assert_memory_equal(one, other, 2 * (size_t)found * sizeof *one);
    free(one);
    free(other);
}

static void same_lists(lbvh_queries queries)
{
    static int64_t offsets[2][MOST + 1];
    static int32_t counts[2][MOST];
    int32_t *ids[2];
    int64_t needed[2];
    int32_t const n = queries.data ? queries.n : plain.n;
    int k;
    for (k = 0; k < 2; k++) {
        const lbvh *tree = k ? &fast : &plain;
        faster = k;
        assert_int_equal(lbvh_count_overlaps(tree, &queries, counts[k]), LBVH_OK);
        (void)lbvh_overlaps(tree, &queries, offsets[k], NULL, 0, &needed[k]);
        ids[k] = (int32_t *)malloc(((size_t)needed[k] + 1) * sizeof **ids);
        assert_int_equal(lbvh_overlaps(tree, &queries, offsets[k], ids[k], needed[k], &needed[k]),
                         LBVH_OK);
    }
    assert_true(needed[0] == needed[1]);
    assert_memory_equal(counts[0], counts[1], (size_t)n * sizeof **counts);
    assert_memory_equal(offsets[0], offsets[1], ((size_t)n + 1) * sizeof **offsets);
    assert_memory_equal(ids[0], ids[1], (size_t)needed[0] * sizeof **ids);
    free(ids[0]);
    free(ids[1]);
}

static void same_rows(void)
{
    static int32_t ids[2][ROW * MOST], found[2][MOST];
    static lbvh_real distances2[2][ROW * MOST];
    int32_t row;
    int k;
    for (row = 1; row <= ROW; row += row == 1 ? 3 : ROW - 4) {
        size_t const n = (size_t)plain.n, entries = n * (size_t)row;
        for (k = 0; k < 2; k++) {
            faster = k;
            assert_int_equal(lbvh_nearest_rows(k ? &fast : &plain, numbers, 0, plain.n, row,
                                               lbvh_i_infinity(), 0, ids[k], distances2[k],
                                               found[k]), LBVH_OK);
        }
        assert_memory_equal(ids[0], ids[1], entries * sizeof **ids);
        assert_memory_equal(distances2[0], distances2[1], entries * sizeof **distances2);
        assert_memory_equal(found[0], found[1], n * sizeof **found);
    }
}

static void same_searches(void)
{
    lbvh_queries queries;
    int flags;
    same_pairs();
    same_rows();
    for (flags = 0; flags < 4; flags++) {
        memset(&queries, 0, sizeof queries);
        queries.flags = flags;
        same_lists(queries);
        queries.kind = LBVH_POINTS;
        queries.radius = (lbvh_real)0.04;
        same_lists(queries);
    }
    memset(&queries, 0, sizeof queries);
    queries.kind = LBVH_POINTS;
    queries.radius = (lbvh_real)0.03;
    queries.data = numbers;
    queries.n = plain.n;
    queries.filter = 5;
    same_lists(queries);
}

static void build_both(const lbvh_desc *desc, int32_t n)
{
    lbvh_result result;
    faster = 0;
    result = lbvh_build(&plain, desc, numbers, 0, n);
    faster = 1;
    assert_int_equal(lbvh_build(&fast, desc, numbers, 0, n), result);
}

static void test_plain(void **state)
{
    static const int32_t sizes[] = {0, 1, 2, 3, 4, 5, 17, 33, 100, 999, MOST};
    lbvh_desc desc;
    int shape, builder, variant;
    size_t s;
    (void)state;
    for (s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (shape = 0; shape < 4; shape++)
            for (variant = 0; variant < 8; variant++)
                for (builder = 0; builder < 3; builder++) {
                    if (sizes[s] == MOST && variant % 3) continue;
                    if (sizes[s] > 100 && quick_run()) continue;
                    memset(&desc, 0, sizeof desc);
                    desc.dim = variant % 2 ? 2 : 3;
                    desc.bits = variant % 4 < 2 ? 63 : 30;
                    desc.kind = variant < 4 ? LBVH_BOXES : LBVH_POINTS;
                    desc.radius = (lbvh_real)0.01;
                    desc.builder = (lbvh_builder)builder;
                    desc.keep_codes = variant % 3 == 0;
                    desc.skip_invalid = variant > 1;
                    desc.masks = variant == 3 || variant == 4 ? masks : NULL;
                    fill(&desc, shape, sizes[s]);
                    build_both(&desc, sizes[s]);
                    same_tree();
                    if (sizes[s] > 1000 && builder > 0) continue;
                    if (sizes[s] < 999 || shape < 2) same_searches();
                }
    lbvh_free(&plain);
    lbvh_free(&fast);
}

/* The first invalid element, refused by both. */
static void test_plain_refused(void **state)
{
    lbvh_desc desc;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.dim = 3;
    fill(&desc, 0, 50);
    numbers[6 * 17] = lbvh_i_infinity();
    numbers[6 * 31] = 5;
    build_both(&desc, 50);
    assert_int_equal(plain.bad_id, 17);
    same_tree();
    lbvh_free(&plain);
    lbvh_free(&fast);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain),
                                       cmocka_unit_test(test_plain_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
