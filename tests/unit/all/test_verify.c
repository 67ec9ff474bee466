/* test_verify.c - ugrid_verify, lbvh_verify, nlist_verify, nbody_verify: good objects pass, damaged
   ones and wrong answers do not.
   SPDX-License-Identifier: MIT OR Unlicense

   Damage is of two kinds: to the structure, which ..._validate sees, too; and to what the answers
   depend on (the size of a cell, the reach of a list, a force), which only the look at every
   particle can see. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#include "nlist.h"
#define NBODY_WITH_STEP
#define NBODY_IMPLEMENTATION
#include "nbody.h"
#include "../../common/workloads.h"

typedef ugrid_real real;

enum { N = 300, KINDS = 5, ALL = 1 << 20 };

/* Uniform, clustered, a lattice with ties, all in one place, on the borders. */
static void make_points(int kind, int dim, real *pos)
{
    wl_random s = wl_seed((uint64_t)kind + 3);
    int i, a;
    for (i = 0; i < N; i++)
        for (a = 0; a < dim; a++) {
            real const u = (real)wl_u(&s);
            pos[i * dim + a] = kind == 0       ? u
                               : kind == 1     ? u * u * u
                               : kind == 2     ? (real)(int)(u * 5) / 4
                               : kind == 3     ? (real)0.5
                               : u < (real)0.5 ? 0
                                               : 1;
        }
}

static ugrid_desc grid_desc(int dim, ugrid_method method, int periodic)
{
    ugrid_desc d;
    int a;
    memset(&d, 0, sizeof d);
    d.dim = dim;
    d.method = method;
    d.slots = N;
    d.cell = (real)0.2;
    for (a = 0; a < dim; a++) {
        d.max[a] = 1;
        d.periodic[a] = periodic;
    }
    if (!periodic) for (a = 0; a < dim; a++) d.max[a] = (real)1.05;
    return d;
}

static void test_grids(void **state)
{
    static real pos[3 * N];
    int kind, dim, method, periodic;
    (void)state;
    if (getenv("TEST_QUICK")) skip();
    for (kind = 0; kind < KINDS; kind++)
        for (dim = 2; dim <= 3; dim++)
            for (method = UGRID_AUTO; method <= UGRID_LIST_PACKED; method++)
                for (periodic = 0; periodic < 2; periodic++) {
                    ugrid_desc const d = grid_desc(dim, (ugrid_method)method, periodic);
                    ugrid grid = {0};
                    int32_t bad = 5;
                    make_points(kind, dim, pos);
                    assert_int_equal(ugrid_build(&grid, &d, pos, 0, N), UGRID_OK);
                    assert_int_equal(ugrid_verify(&grid, (real)0.17, kind == 3 ? 9 : ALL, 1, &bad),
                                     UGRID_OK);
                    assert_int_equal(bad, -1);
                    ugrid_free(&grid);
                }
}

static void test_damaged_grids(void **state)
{
    static real pos[3 * N];
    ugrid_desc const d = grid_desc(3, UGRID_SORT, 0);
    ugrid grid;
    int32_t bad, *start;
    (void)state;
    memset(&grid, 0, sizeof grid);
    make_points(0, 3, pos);
    assert_int_equal(ugrid_verify(NULL, 1, 1, 0, &bad), UGRID_BAD_ARGUMENT);
    assert_int_equal(ugrid_verify(&grid, 1, -1, 0, &bad), UGRID_BAD_ARGUMENT);
    assert_int_equal(ugrid_verify(&grid, -1, 1, 0, NULL), UGRID_BAD_RADIUS);
    assert_int_equal(ugrid_verify(&grid, 1, 9, 0, NULL), UGRID_NOT_BUILT);
    assert_int_equal(ugrid_build(&grid, &d, pos, 0, 0), UGRID_OK);
    assert_int_equal(ugrid_verify(&grid, 1, 9, 0, NULL), UGRID_OK); /* empty */
    assert_int_equal(ugrid_build(&grid, &d, pos, 0, N), UGRID_OK);
    grid.axis[0].per_cell *= (real)0.7; /* walks look elsewhere than where particles were put */
    assert_int_equal(ugrid_verify(&grid, (real)0.17, ALL, 0, &bad), UGRID_INVALID);
    grid.axis[0].per_cell = 1 / (real)0.2;
    assert_int_equal(ugrid_build(&grid, &d, pos, 0, N), UGRID_OK);
    start = (int32_t *)(void *)grid.start;
    start[1] = start[grid.cell_count];
    assert_int_equal(ugrid_verify(&grid, (real)0.17, 0, 0, &bad), UGRID_INVALID);
    assert_int_equal(bad, -1);
    ugrid_free(&grid);
}

static void test_trees(void **state)
{
    static real pos[3 * N];
    int kind, dim, bits;
    (void)state;
    for (kind = 0; kind < KINDS; kind++)
        for (dim = 2; dim <= 3; dim++)
            for (bits = 30; bits <= 63; bits += 33) {
                lbvh_desc d;
                lbvh tree = {0};
                int32_t bad = 5;
                memset(&d, 0, sizeof d);
                d.dim = dim;
                d.bits = bits;
                d.kind = LBVH_POINTS;
                d.radius = (real)0.05;
                make_points(kind, dim, pos);
                assert_int_equal(lbvh_build(&tree, &d, pos, 0, N), LBVH_OK);
                assert_int_equal(lbvh_verify(&tree, kind == 3 ? 9 : ALL, 1, &bad), LBVH_OK);
                assert_int_equal(bad, -1);
                lbvh_free(&tree);
            }
}

static void test_damaged_trees(void **state)
{
    static real pos[3 * N];
    lbvh_desc d;
    lbvh tree = {0};
    int32_t bad;
    (void)state;
    memset(&d, 0, sizeof d);
    d.kind = LBVH_POINTS;
    d.radius = (real)0.05;
    make_points(0, 3, pos);
    assert_int_equal(lbvh_verify(NULL, 1, 0, &bad), LBVH_BAD_ARGUMENT);
    assert_int_equal(lbvh_verify(&tree, -1, 0, &bad), LBVH_BAD_ARGUMENT);
    assert_int_equal(lbvh_verify(&tree, 9, 0, NULL), LBVH_NOT_BUILT);
    assert_int_equal(lbvh_build(&tree, &d, pos, 0, N), LBVH_OK);
    tree.node[N / 2].max[0] -= (real)0.3;
    assert_int_equal(lbvh_verify(&tree, 0, 0, &bad), LBVH_INVALID);
    assert_int_equal(bad, -1);
    lbvh_free(&tree);
}

static void test_lists(void **state)
{
    static real pos[3 * N], radii[N];
    int kind, layout, half, i;
    (void)state;
    if (getenv("TEST_QUICK")) skip();
    for (kind = 0; kind < KINDS; kind++)
        for (layout = 0; layout < 4; layout++)
            for (half = 0; half < 2; half++) {
                nlist_desc d;
                nlist list = {0};
                int32_t bad = 5;
                memset(&d, 0, sizeof d);
                make_points(kind, 3, pos);
                for (i = 0; i < N; i++) radii[i] = (real)(i % 7) / 100;
                d.layout = (nlist_layout)layout;
                d.width = layout == NLIST_STATIC ? N : 4;
                d.half = half;
                d.radius = (real)0.1;
                d.radii = radii;
                assert_int_equal(nlist_build_brute(&list, &d, pos, 0, N), NLIST_OK);
                assert_int_equal(nlist_verify(&list, &d, pos, 0, kind == 3 ? 9 : ALL, 1, &bad),
                                 NLIST_OK);
                assert_int_equal(bad, -1);
                if (kind == 0) { /* others were meant, or they have moved */
                    d.radii = NULL;
                    assert_int_equal(nlist_verify(&list, &d, pos, 0, ALL, 1, &bad), NLIST_INVALID);
                    assert_true(bad >= 0);
                    d.radii = radii;
                    for (i = 0; i < 3; i++)
                        pos[3 * 17 + i] =
                            (real)0.5 * (real)(pos[3 * 17 + i] < (real)0.5) + (real)0.25;
                    assert_int_equal(nlist_verify(&list, &d, pos, 0, ALL, 1, NULL), NLIST_INVALID);
                    list.current = 2;
                    assert_int_equal(nlist_verify(&list, &d, pos, 0, 0, 1, &bad), NLIST_INVALID);
                    list.current = 0;
                }
                assert_int_equal(nlist_verify(&list, NULL, pos, 0, 1, 1, &bad), NLIST_BAD_ARGUMENT);
                assert_int_equal(nlist_verify(&list, &d, NULL, 0, 1, 1, &bad), NLIST_BAD_ARGUMENT);
                assert_int_equal(nlist_verify(&list, &d, pos, 0, -1, 1, &bad), NLIST_BAD_ARGUMENT);
                assert_int_equal(nlist_verify(NULL, &d, pos, 0, 1, 1, &bad), NLIST_BAD_ARGUMENT);
                nlist_free(&list);
            }
}

static void test_forces(void **state)
{
    static real pos[2 * N], acc[2 * N];
    int kind;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) {
        nbody_desc d;
        nbody sim = {0};
        memset(&d, 0, sizeof d);
        d.softening = (real)0.01;
        make_points(kind, 2, pos);
        assert_int_equal(nbody_verify(&sim, acc, 1, 0, 1), NBODY_NOT_BUILT);
        assert_int_equal(nbody_accelerations(&sim, &d, pos, 0, NULL, N, acc), NBODY_OK);
        assert_int_equal(nbody_verify(&sim, acc, ALL, 0, 0.02), NBODY_OK);
        assert_int_equal(nbody_verify(NULL, acc, 1, 0, 1), NBODY_BAD_ARGUMENT);
        acc[2 * 17] = kind == 1 ? (real)NAN : acc[2 * 17] + 1000 * (real)N;
        assert_int_equal(nbody_verify(&sim, acc, ALL, 0, 0.02), NBODY_INVALID);
        nbody_free(&sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grids), cmocka_unit_test(test_damaged_grids),
        cmocka_unit_test(test_trees), cmocka_unit_test(test_damaged_trees),
        cmocka_unit_test(test_lists), cmocka_unit_test(test_forces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
