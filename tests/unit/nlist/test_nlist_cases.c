/* test_nlist_cases.c - nlist_build_box and nlist_search_box on the cases that vesin and matscipy
   test themselves with.
   SPDX-License-Identifier: MIT OR Unlicense

   Geometries and expected numbers are facts from vesin/tests/neighbors.cpp and
   python/vesin/tests/test_numpy.py of vesin, and from tests/test_neighbours.py of matscipy. Both
   list what is nearer than the cutoff, nlist.h also what is exactly there: where a shell lies at
   the cutoff, it is a little smaller here. Not here: their cases that read files of atoms. */

#define NLIST_IMPLEMENTATION
#define NLIST_WITH_BOXES
#include "nlist.h"
#define TESTED nlist
#define SHARE 1
#include "../../common/testing.h"

enum { MOST = 8 };

typedef struct one_case {
    const char *name;
    double cell[3][3];
    int periodic[3];
    int32_t n;
    double pos[MOST][3];
    double radius;
    int64_t half;               /* pairs, each once */
    int32_t count[MOST];        /* partners of each atom; the first -1: not stated */
    double distance[10];        /* those of the pairs, row by row; only the first: of all */
    int32_t shift[7][5];        /* i, j, S that must be there, up to the sign of both; the first 5
                                   zeros end */
} one_case;

static const one_case cases[] = {
    {"vesin: non-periodic", {{0}}, {0, 0, 0}, 5,
     {{0.134, 1.282, 1.701}, {-0.273, 1.026, -1.471}, {1.922, -0.124, 1.900},
      {1.400, -0.464, 0.480}, {0.149, 1.865, 0.635}}, 3.42, 9, {-1},
     {3.2082345612501593, 2.283282943482914, 2.4783286706972505, 1.215100818862369,
      2.9707625283755013, 2.3059143522689647, 1.550639867925496, 2.9495550511899244,
      2.6482573515427084}, {{0}}},
    {"vesin: FCC unit cell", {{0, 1.5, 1.5}, {1.5, 0, 1.5}, {1.5, 1.5, 0}}, {1, 1, 1}, 1, {{0}},
     2.999, 6, {12}, {2.1213203435596424},
     {{0, 0, -1, 0, 1}, {0, 0, -1, 1, 0}, {0, 0, 0, -1, 1}, {0, 0, 0, 0, 1}, {0, 0, 0, 1, 0},
      {0, 0, 1, 0, 0}}},
    {"vesin: large box, small cutoff", {{54, 0, 0}, {0, 54, 0}, {0, 0, 54}}, {1, 1, 1}, 6,
     {{0, 0, 0}, {0, 2, 0}, {0, 0, 2}, {-6, 0, 0}, {-6, -2, 0}, {-6, 0, -2}}, 2.1, 4,
     {2, 1, 1, 2, 1, 1}, {2.0}, {{0, 1}, {0, 2}, {3, 4}, {3, 5}}},
    {"vesin: cutoff larger than the box", {{0.5, 0, 0}, {0, 0.5, 0}, {0, 0, 0.5}}, {1, 1, 1}, 1,
     {{0}}, 0.6, 3, {6}, {0.5}, {{0, 0, 0, 0, 1}, {0, 0, 0, 1, 0}, {0, 0, 1, 0, 0}}},
    {"vesin: slanted box", {{4.26, -2.45951215, 0}, {2.13, 1.22975607, 0}, {0, 0, 50}}, {1, 1, 1},
     4, {{1.42, 0, 0}, {2.84, 0, 0}, {3.55, -1.22975607, 0}, {4.97, -1.22975607, 0}}, 6.4, 90,
     {-1}, {0}, {{0, 3, -2, 0, 0}, {0, 3, -2, 1, 0}, {0, 3, -2, 2, 0}}},
    {"vesin: lists of lists", {{2, 0, 0}, {0, 2, 0}, {0, 0, 2}}, {0, 0, 0}, 2,
     {{0, 0, 0}, {0.5, 0, 0}}, 1.0, 1, {1, 1}, {0.5}, {{0, 1}}},
    {"matscipy: small cell", {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, {1, 1, 1}, 1, {{0.5, 0.5, 0.5}},
     1.1, 3, {6}, {1.0}, {{0, 0, 1, 0, 0}, {0, 0, 0, 1, 0}, {0, 0, 0, 0, 1}}},
    {"matscipy: small cell, two shells", {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, {1, 1, 1}, 1,
     {{0.5, 0.5, 0.5}}, 1.5, 9, {18}, {0}, {{0, 0, 1, -1, 0}}},
    {"matscipy: small cell, not periodic", {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, {0, 0, 0}, 1,
     {{0.5, 0.5, 0.5}}, 1.1, 0, {0}, {0}, {{0}}},
    {"matscipy: small cell, x", {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, {1, 0, 0}, 1,
     {{0.5, 0.5, 0.5}}, 1.1, 1, {2}, {1.0}, {{0, 0, 1, 0, 0}}},
    {"matscipy: small cell, x and z", {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, {1, 0, 1}, 1,
     {{0.5, 0.5, 0.5}}, 1.1, 2, {4}, {1.0}, {{0, 0, 1, 0, 0}, {0, 0, 0, 0, 1}}},
    {"matscipy: out of a small cell", {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, {0, 0, 0}, 2,
     {{0.5, 0.5, 0.5}, {1.1, 0.5, 0.5}}, 1.1, 1, {1, 1}, {0.6}, {{0, 1}}},
    {"matscipy: out of a large cell", {{10, 0, 0}, {0, 10, 0}, {0, 0, 10}}, {0, 0, 0}, 2,
     {{9.5, 0.5, 0.5}, {10.1, 0.5, 0.5}}, 1.1, 1, {1, 1}, {0.6}, {{0, 1}}},
    {"matscipy: no shift without a period", {{1.1, 0, 0}, {0, 1.2, 0}, {0, 0, 1.3}}, {0, 0, 0}, 2,
     {{0, 0, 0}, {1.1, 1.2, 1.3}}, 5, 1, {1, 1}, {2.083266665599966}, {{0, 1}}},
    {"matscipy: HCOOH", {{0}}, {0, 0, 0}, 5,
     {{-1.040945, -0.436432, 0}, {0, 0.423949, 0}, {1.169372, 0.103741, 0},
      {-0.64957, -1.335134, 0}, {-0.377847, 1.452967, 0}}, 1.85, 4, {2, 3, 1, 1, 1}, {0}, {{0}}},
    {"matscipy: Al, one atom", {{0, 2.025, 2.025}, {2.025, 0, 2.025}, {2.025, 2.025, 0}},
     {1, 1, 1}, 1, {{0}}, 3.1, 6, {12}, {2.8637824638055176}, {{0}}},
    {"matscipy: graphite", {{2.5, 0, 0}, {-1.25, 2.1650635094610964, 0}, {0, 0, 10}}, {1, 1, 1}, 4,
     {{0, 0, 0}, {0, 1.4433756729740643, 0}, {0, 1.4433756729740643, 5},
      {1.25, 0.7216878364870322, 5}}, 1.85, 6, {3, 3, 3, 3}, {1.4433756729740643}, {{0}}},
};

static int almost(double a, double b) { return fabs(a - b) <= 8 * REAL_EPSILON * (1 + fabs(b)); }

static void take(const one_case *c, nlist_box *box, real *pos)
{
    int32_t i;
    int a, k;
    for (a = 0; a < 3; a++) {
        for (k = 0; k < 3; k++) box->cell[a][k] = (real)c->cell[a][k];
        box->periodic[a] = c->periodic[a];
    }
    for (i = 0; i < c->n; i++)
        for (a = 0; a < 3; a++) pos[3 * i + a] = (real)c->pos[i][a];
}

/* Is (i, j, S) there, or (j, i, -S)? */
static int has(const nlist_arrays *out, const int32_t want[5])
{
    int64_t e;
    for (e = 0; e < out->count; e++) {
        const int32_t *s = out->shift + 3 * e;
        if (out->i[e] == want[0] && out->j[e] == want[1] && s[0] == want[2] && s[1] == want[3] &&
            s[2] == want[4])
            return 1;
        if (out->i[e] == want[1] && out->j[e] == want[0] && s[0] == -want[2] &&
            s[1] == -want[3] && s[2] == -want[4])
            return 1;
    }
    return 0;
}

/* Each pair once. */
static void check_half(const one_case *c, const nlist_arrays *out)
{
    int64_t e;
    int k;
    CHECK(out->count == c->half);
    for (e = 0; e < out->count && c->distance[0] > 0; e++) {
        double const want = c->distance[1] > 0 ? c->distance[e] : c->distance[0];
        CHECK(almost((double)out->distance[e], want));
    }
    for (e = 0; e < out->count; e++) {
        double square = 0;
        for (k = 0; k < 3; k++) {
            double d = c->pos[out->j[e]][k] - c->pos[out->i[e]][k];
            int a;
            for (a = 0; a < 3; a++) d += (double)out->shift[3 * e + a] * c->cell[a][k];
            CHECK(almost((double)out->offset[3 * e + k], d));
            CHECK(c->periodic[k] || out->shift[3 * e + k] == 0);
            square += d * d;
        }
        CHECK(almost((double)out->distance[e], sqrt(square)));
    }
    for (k = 0; k < 7 && (c->shift[k][1] || c->shift[k][2] || c->shift[k][3] || c->shift[k][4]);
         k++)
        CHECK(has(out, c->shift[k]));
}

/* Both directions: rows. */
static void check_full(const one_case *c, const nlist *list)
{
    int32_t i;
    CHECK(list->total == 2 * c->half);
    for (i = 0; i < c->n && c->count[0] >= 0; i++)
        CHECK(list->rows[list->current].count[i] == c->count[i]);
    CHECK_RESULT(nlist_validate(list), NLIST_OK);
}

static void test_cases(void **state)
{
    nlist list = {0};
    int k;
    (void)state;
    for (k = 0; k < COUNT_OF(cases); k++) {
        const one_case *c = &cases[k];
        nlist_box box;
        nlist_desc d;
        nlist_arrays out;
        real pos[3 * MOST];
        memset(&box, 0, sizeof box);
        memset(&d, 0, sizeof d);
        memset(&out, 0, sizeof out);
        take(c, &box, pos);
        d.radius = (real)c->radius;
        d.half = d.sorted = 1;
        out.wanted = 31;
        CHECK_RESULT(nlist_search_box(&list, &d, &box, pos, 0, c->n, &out), NLIST_OK);
        check_half(c, &out);
        d.half = 0;
        CHECK_RESULT(nlist_build_box(&list, &d, &box, pos, 0, c->n), NLIST_OK);
        check_full(c, &list);
    }
    nlist_free(&list);
}

/* matscipy: graphite of 2 x 2 and 3 x 3 cells: three partners each. */
static void test_graphite(void **state)
{
    const one_case *c = &cases[COUNT_OF(cases) - 1];
    nlist list = {0};
    int s, x, y, a;
    int32_t i;
    (void)state;
    for (s = 1; s <= 3; s++) {
        nlist_box box;
        nlist_desc d;
        real pos[3 * 4 * 9], one[3 * MOST];
        int32_t n = 0;
        memset(&box, 0, sizeof box);
        memset(&d, 0, sizeof d);
        take(c, &box, one);
        for (x = 0; x < s; x++)
            for (y = 0; y < s; y++)
                for (i = 0; i < 4; i++, n++)
                    for (a = 0; a < 3; a++)
                        pos[3 * n + a] = one[3 * i + a] + (real)x * box.cell[0][a] +
                                         (real)y * box.cell[1][a];
        for (a = 0; a < 6; a++) box.cell[a / 3][a % 3] *= (real)s;
        d.radius = (real)c->radius;
        CHECK_RESULT(nlist_build_box(&list, &d, &box, pos, 0, n), NLIST_OK);
        for (i = 0; i < n; i++) CHECK(list.rows[list.current].count[i] == 3);
    }
    nlist_free(&list);
}

/* matscipy: a system with radii, atoms up to a cell outside, in a sheared cell, and the same system
   repeated along the periodic axes: the same partners. */
static void test_repeated(void **state)
{
    enum { N = 10 };
    static const double cell[3][3] = {{0.2, 1.2, 1.4}, {1.4, 0.1, 1.6}, {1.3, 2.0, -0.1}};
    nlist once = {0}, twice = {0};
    int turn, a, k;
    int32_t i;
    (void)state;
    dice = wl_seed(51);
    for (turn = 0; turn < 40; turn++) {
        nlist_box box, larger;
        nlist_desc d;
        real pos[3 * N * 8], radii[N * 8];
        int32_t n = 0, copy;
        memset(&box, 0, sizeof box);
        memset(&d, 0, sizeof d);
        for (a = 0; a < 3; a++) {
            for (k = 0; k < 3; k++) box.cell[a][k] = (real)cell[a][k];
            box.periodic[a] = turn >> a & 1;
        }
        larger = box;
        for (a = 0; a < 3; a++)
            for (k = 0; k < 3 && box.periodic[a]; k++) larger.cell[a][k] *= 2;
        for (i = 0; i < N; i++) {
            real f[3];
            for (a = 0; a < 3; a++) f[a] = 3 * (real)wl_u(&dice) - 1;
            for (k = 0; k < 3; k++)
                pos[3 * i + k] = f[0] * box.cell[0][k] + f[1] * box.cell[1][k] +
                                 f[2] * box.cell[2][k];
            radii[i] = (real)0.2 * (real)i + (real)0.5;
        }
        for (copy = 0; copy < 8; copy++) {
            if ((copy & 1 && !box.periodic[0]) || (copy & 2 && !box.periodic[1]) ||
                (copy & 4 && !box.periodic[2]))
                continue;
            for (i = 0; i < N; i++, n++) {
                for (k = 0; k < 3; k++)
                    pos[3 * n + k] = pos[3 * i + k] + (real)(copy & 1) * box.cell[0][k] +
                                     (real)(copy >> 1 & 1) * box.cell[1][k] +
                                     (real)(copy >> 2) * box.cell[2][k];
                radii[n] = radii[i];
            }
        }
        d.radii = radii;
        CHECK_RESULT(nlist_build_box(&once, &d, &box, pos, 0, N), NLIST_OK);
        CHECK_RESULT(nlist_build_box(&twice, &d, &larger, pos, 0, n), NLIST_OK);
        CHECK(twice.total == once.total * (n / N));
        for (i = 0; i < n; i++)
            CHECK(twice.rows[twice.current].count[i] == once.rows[once.current].count[i % N]);
    }
    nlist_free(&once);
    nlist_free(&twice);
}

/* vesin: what it refuses, too. */
static void test_errors(void **state)
{
    real const pos[6] = {0, 0, 0, (real)0.5, (real)0.5, (real)0.5};
    real const radii[] = {0, -12, REAL_INFINITY, REAL_NAN};
    nlist list = {0};
    nlist_desc d = {0};
    nlist_box box;
    int a;
    (void)state;
    memset(&box, 0, sizeof box);
    for (a = 0; a < 3; a++) box.periodic[a] = 1;
    d.radius = (real)1.2;
    CHECK_RESULT(nlist_build_box(&list, &d, &box, pos, 0, 2), NLIST_BAD_BOX);
    for (a = 0; a < 3; a++) box.cell[a][a] = 1;
    for (a = 0; a < COUNT_OF(radii); a++) {
        d.radius = radii[a];
        CHECK_RESULT(nlist_build_box(&list, &d, &box, pos, 0, 2), NLIST_BAD_RADIUS);
    }
    nlist_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_graphite),
        cmocka_unit_test(test_repeated),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
