/* test_ugrid_lanes.c - instructions chosen at run time: searches by AVX-512, AVX2 and plain ones
   give the same rows, and those of brute force. Builds of COUNT with AVX2, in two rounds and in
   one, give the arrays of a plain SORT.
   SPDX-License-Identifier: MIT OR Unlicense */

static int asked, answer; /* by the header, and to it */
#define UGRID_I_FORM() (asked++, answer)
#define UGRID_I_MANY 1000

#define UGRID_STATIC
#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define TESTED ugrid
#define SHARE 1
#include "../../common/testing.h"

enum { MOST = 1200, ROOM = MOST * 400 };

typedef struct rows {
    int32_t counts[MOST], ids[ROOM], at_ids[ROOM];
    int64_t offsets[MOST + 1], at_offsets[MOST + 1], total, at_total, pairs;
} rows;

static ugrid_real pos[3 * MOST];
static ugrid_desc now;
static int32_t now_n;
static int now_flags, best; /* the best form of this CPU */

static void describe_now(void)
{
    print_error("dim %d n %d cell %g periodic %d rows %d flags %d form %d\n", (int)now.dim,
                (int)now_n, (double)now.cell, (int)now.periodic[0], (int)now.rows, now_flags,
                answer);
}

/* Point i at the radius from the point before it, along some direction: rounding decides. */
static void put_at_radius(wl_random *r, int dim, int32_t i, double radius)
{
    double direction[3], square = 1e-9;
    int a;
    for (a = 0; a < dim; a++) {
        direction[a] = (double)wl_u(r) - 0.5;
        square += direction[a] * direction[a];
    }
    for (a = 0; a < dim; a++)
        pos[i * dim + a] = (ugrid_real)((double)pos[(i - 1) * dim + a] +
                                        radius * direction[a] / sqrt(square));
}

/* A quarter each: spread evenly, in a clump, on a lattice with pairs that are 1/8 apart exactly, at
   the radius from another. Some are at the same place. */
static void scatter_points(int dim, int32_t n, double radius)
{
    wl_random r = wl_seed((uint64_t)n);
    int32_t i;
    int a;
    for (i = 0; i < n; i++) {
        for (a = 0; a < dim; a++) {
            double const u = (double)wl_u(&r);
            pos[i * dim + a] = (ugrid_real)(i % 4 == 0   ? u
                                            : i % 4 == 1 ? 0.4 + 0.1 * u
                                                         : floor(16 * u) / 16);
        }
        if (i % 4 == 3) put_at_radius(&r, dim, i, radius);
    }
    for (i = 50; i < n; i += 50)
        memcpy(&pos[i * dim], &pos[(i - 7) * dim], (size_t)dim * sizeof *pos);
}

static ugrid_real radii[MOST];

static void search(const ugrid *grid, ugrid_real radius, int flags, rows *out)
{
    int32_t row;
    memset(out, 0, sizeof *out);
    CHECK_RESULT(ugrid_count_pairs(grid, radius, &out->pairs), UGRID_OK);
    CHECK_RESULT(ugrid_count_neighbors(grid, radius, flags, out->counts), UGRID_OK);
    CHECK_RESULT(ugrid_neighbors(grid, radius, flags, out->offsets, out->ids, ROOM, &out->total),
                 UGRID_OK);
    CHECK_RESULT(ugrid_neighbors_at(grid, pos, 0, grid->n, radius, out->at_offsets,
                                    out->at_ids, ROOM, &out->at_total),
                 UGRID_OK);
    memset(out->ids + out->total, 0, (size_t)(ROOM - out->total) * sizeof *out->ids);
    for (row = 0; row < (flags & UGRID_PLACES ? grid->n : grid->rows); row++)
        CHECK(out->counts[row] == out->offsets[row + 1] - out->offsets[row]);
}

/* The number of neighbours of i, with itself, and the sum of their ids, by all distances. */
static void check_against_all(const ugrid *grid, ugrid_real radius, const rows *got)
{
    int const dim = now.dim;
    int32_t i, j;
    for (i = 0; i < grid->n; i += 17) {
        int64_t const begin = got->at_offsets[i];
        int64_t count = 0, sum = 0, k;
        for (j = 0; j < grid->n; j++) {
            if (ugrid_distance2(grid, pos + i * dim, pos + j * dim) > radius * radius) continue;
            count++;
            sum += j;
        }
        CHECK(got->at_offsets[i + 1] - begin == count);
        for (k = 0; k < count; k++) sum -= got->at_ids[begin + k];
        CHECK(sum == 0);
    }
}

static void check_grid(const ugrid *grid, ugrid_real radius)
{
    static const int flags[] = {0, UGRID_HALF, UGRID_PLACES, UGRID_HALF | UGRID_PLACES,
                                UGRID_HALF_IDS};
    static rows plain, other;
    int k;
    for (k = 0; k < COUNT_OF(flags); k++) {
        now_flags = flags[k];
        answer = UGRID_I_PORTABLE;
        search(grid, radius, now_flags, &plain);
        for (answer = UGRID_I_AVX2; answer <= best; answer++) {
            asked = 0;
            search(grid, radius, now_flags, &other);
            CHECK(asked > 0);
            CHECK(same(&plain, &other, sizeof plain));
        }
        if (now_flags == 0 && !grid->filter.radii) check_against_all(grid, radius, &plain);
    }
}

/* Boxes, closed and periodic; with few cells along an axis the nearest image is searched for. */
static void check_points(int dim, int32_t n, ugrid_real radius)
{
    int periodic, ghosts;
    now_n = n;
    scatter_points(dim, n, (double)radius);
    for (periodic = 0; periodic < 2; periodic++)
        for (ghosts = 0; ghosts < 2; ghosts++) {
            ugrid grid = {0};
            int a;
            memset(&now, 0, sizeof now);
            now.dim = dim;
            now.cell = radius;
            now.rows = ghosts ? (2 * n + 2) / 3 : 0;
            for (a = 0; a < dim; a++) {
                now.max[a] = 1;
                now.periodic[a] = periodic;
            }
            CHECK_RESULT(ugrid_build(&grid, &now, pos, 0, n), UGRID_OK);
            check_grid(&grid, radius);
            for (a = 0; a < n; a++) radii[a] = radius * (ugrid_real)(a % 7) / 16;
            grid.filter.radii = radii;
            grid.filter.largest = radius * 6 / 16;
            check_grid(&grid, radius / 4);
            ugrid_free(&grid);
        }
}

static void test_same_rows(void **state)
{
#ifdef UGRID_I_FORMS
    static const int32_t sizes[] = {3, 300, 1, 2, 40, MOST};
    int const count = small_run() ? 2 : COUNT_OF(sizes);
    int k;
    (void)state;
    if (!__builtin_cpu_supports("avx2")) skip();
    best = __builtin_cpu_supports("avx512vl") ? UGRID_I_AVX512 : UGRID_I_AVX2;
    if (best != UGRID_I_AVX512) print_message("no AVX-512 here\n");
    describe = describe_now;
    for (k = 0; k < count; k++) {
        check_points(2, sizes[k], (ugrid_real)0.04);
        check_points(3, sizes[k], (ugrid_real)0.125);
        check_points(3, sizes[k], (ugrid_real)0.3);
    }
#else
    (void)state;
    (void)check_points;
    (void)describe_now;
    skip();
#endif
}

/* ---- builds: cell numbers in vectors, two rounds of COUNT ---- */

enum { ROUNDS = 20000 };

static void fill_grid(ugrid *grid, ugrid_method method, int dim, const ugrid_real *points,
                      int32_t n, ugrid_real cell)
{
    int a;
    memset(&now, 0, sizeof now);
    now.dim = dim;
    now.method = method;
    now.cell = cell;
    for (a = 0; a < dim; a++) now.max[a] = 1;
    now_n = n;
    CHECK_RESULT(ugrid_build(grid, &now, points, 0, n), UGRID_OK);
}

/* Evenly spread, or half of them in one cell, whose bucket is too large for two rounds. */
static void check_rounds(int dim, int32_t n, ugrid_real cell, int crowd, int sorted)
{
    static ugrid_real points[3 * ROUNDS];
    ugrid one = {0}, other = {0};
    wl_random r = wl_seed((uint64_t)(n + crowd));
    int32_t k;
    for (k = 0; k < dim * n; k++)
        points[k] = (ugrid_real)(crowd && k < dim * n / 2 ? 0.5 : (double)wl_u(&r));
    points[5] = -3;
    points[17] = (ugrid_real)1e30;
    answer = UGRID_I_PORTABLE;
    fill_grid(&other, UGRID_SORT, dim, points, n, cell);
    if (sorted) {
        static ugrid_real ordered[3 * ROUNDS];
        CHECK_RESULT(ugrid_gather(&other, points, (size_t)dim * sizeof *points, ordered), UGRID_OK);
        memcpy(points, ordered, (size_t)(dim * n) * sizeof *points);
        fill_grid(&other, UGRID_SORT, dim, points, n, cell);
    }
#ifdef UGRID_I_FORMS
    if (__builtin_cpu_supports("avx2")) answer = UGRID_I_AVX2;
#endif
    fill_grid(&one, UGRID_COUNT, dim, points, n, cell);
    CHECK(one.entries == other.entries && one.cell_count == other.cell_count);
    CHECK(same(one.start, other.start, ((size_t)one.cell_count + 1) * sizeof *one.start));
    CHECK(same(one.order, other.order, (size_t)n * sizeof *one.order));
    for (k = 0; k < n; k++) {
        CHECK(one.record[k].link == other.record[k].link);
        CHECK(same(one.record[k].x, other.record[k].x, sizeof one.record[k].x));
    }
    ugrid_free(&one);
    ugrid_free(&other);
}

static void test_two_rounds(void **state)
{
    static const double cells[] = {0.3, 0.05, 0.02, 0.02};
    static const int32_t sizes[] = {999, 1000, 1001, 4096, ROUNDS};
    int const count = COUNT_OF(sizes);
    int k, way;
    (void)state;
    describe = describe_now;
    for (k = 0; k < count; k++)
        for (way = 0; way < 8; way++)
            check_rounds(2 + way % 2, sizes[k], (ugrid_real)cells[way / 2], way / 2 == 3,
                         way / 2 == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_rows),
                                       cmocka_unit_test(test_two_rounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
