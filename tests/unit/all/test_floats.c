/* test_floats.c - extreme numbers in unusual modes: every rounding direction, and denormals flushed
   to zero, as a program may have set them before it calls. The other tests have the same numbers in
   the mode in which a program starts.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/all/test_floats.c -o test_floats -lcmocka -lm && ./test_floats
       (add -DUGRID_REAL=double ... -DNBODY_REAL=double for the double build; packages:
       libcmocka-dev libstb-dev)

   What must hold in any mode: what is not finite is refused by its index; what is built passes its
   own check; no pair is missed or made up, but where rounding decides. Towards a side, b - a is not
   always -(a - b), so that a pair at the very rim may count from one end only: such pairs may be
   listed or not. Everything else is compared with brute force in the same mode. */

#include <fenv.h>

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#include "nlist.h"
#define NBODY_WITH_STEP
#define NBODY_IMPLEMENTATION
#include "nbody.h"
#include "../../common/nlist_oracle.h"
#include "../../common/testing.h"

/* ------------------------------------------------------------------------------------------------
   Modes
   ---------------------------------------------------------------------------------------------- */

#if defined(__SSE__) || defined(__x86_64__)
#include <xmmintrin.h>
enum { FLUSH = 0x8040 };    /* results, and operands, that are denormal count as zero */
#define CAN_FLUSH 1
#else
#define CAN_FLUSH 0
#endif

static const struct { const char *name; int round, flush; } modes[] = {
    {"to nearest", FE_TONEAREST, 0},
#ifdef FE_UPWARD
    {"upward", FE_UPWARD, 0},
#endif
#ifdef FE_DOWNWARD
    {"downward", FE_DOWNWARD, 0},
#endif
#ifdef FE_TOWARDZERO
    {"toward zero", FE_TOWARDZERO, 0},
#endif
#if CAN_FLUSH
    {"to nearest, denormals are zero", FE_TONEAREST, 1},
    {"upward, denormals are zero", FE_UPWARD, 1},
#endif
};

enum { MODES = (int)(sizeof modes / sizeof *modes) };

static void set_mode(int mode)
{
    (void)fesetround(modes[mode].round);
#if CAN_FLUSH
    _mm_setcsr((_mm_getcsr() & ~(unsigned)FLUSH) | (modes[mode].flush ? (unsigned)FLUSH : 0));
#endif
}

/* Does the mode do something here? (Not under valgrind, for one.) The numbers are volatile: nothing
   is computed by the compiler. */
static int in_force(int mode)
{
    volatile real one = 1, tiny = REAL_LARGEST, up, down, half;
    tiny = 1 / tiny;
    set_mode(mode);
    up = one + tiny;
    down = one - tiny;
    half = tiny / 2 * 4;
    set_mode(0);
    if (modes[mode].flush) return half == 0;
    if (modes[mode].round == FE_TONEAREST) return up == 1 && down == 1;
    if (modes[mode].round == FE_UPWARD) return up > 1 && down == 1;
    return down < 1 && up == 1;
}

static int current_mode;
static const char *current_input;

static void describe_mode(void)
{
    set_mode(0);
    print_error("  rounding %s, %s\n", modes[current_mode].name, current_input);
}

static int set_up_mode(void **state)
{
    set_mode(0);
    return set_up(state);
}

/* ------------------------------------------------------------------------------------------------
   Numbers
   ---------------------------------------------------------------------------------------------- */

enum { N = 70 };

#define LEAST (IS_FLOAT ? 1.17549435e-38 : 2.2250738585072014e-308)

enum { UNIFORM, TENTHS, EQUAL, DENORMAL, TINY, ZEROS, SPREAD, FAR_POINT, OFFSET, BORDER, INPUTS };

static const char *const input_names[INPUTS] = {"uniform",
                                                "tenths",
                                                "all equal",
                                                "denormal",
                                                "tiny",
                                                "0 and -0",
                                                "from -1e38 to 1e38",
                                                "one far point",
                                                "far from the origin",
                                                "on borders of cells"};

/* Coordinates, and the radius that suits them: whose square is a normal number. */
static real fill(int input, real *x, int count)
{
    real const least = (real)LEAST, root = (real)sqrt(LEAST) * 2;
    int k;
    for (k = 0; k < count; k++) {
        real const u = between(0, 1);
        switch (input) {
        case UNIFORM: x[k] = u; break;
        case TENTHS: x[k] = (real)roll(10) * (real)0.1; break;
        case EQUAL: x[k] = (real)0.3; break;
        case DENORMAL: x[k] = least / 1024 * (real)(roll(2000) - 1000); break;
        case TINY: x[k] = root * 8 * u; break;
        case ZEROS: x[k] = roll(2) ? (real)-0.0 : (real)0; break;
        case SPREAD: x[k] = REAL_LARGEST / 4 * (2 * u - 1); break;
        case FAR_POINT: x[k] = k < 3 ? (real)1e15 : u; break;
        case OFFSET: x[k] = 1000 + u; break;
        default: x[k] = (real)roll(8) * (real)0.125 + (roll(3) ? 0 : (real)1e-7); break;
        }
    }
    switch (input) {
    case TENTHS: return (real)0.2;
    case DENORMAL: return root;
    case TINY: return root * 2;
    case SPREAD: return (real)sqrt((double)REAL_LARGEST) / 16;
    case BORDER: return (real)0.25;
    default: return (real)0.2;
    }
}

/* One in `every` cases is taken, and fewer where they take long; scattered, so that no period of
   the loops falls together with it. */
static uint32_t cases;

static int left_out(int k, int every)
{
    uint32_t const of = (uint32_t)(small_run() ? 40 * every : SANITIZED ? 3 * every : every);
    return ((cases++ + (uint32_t)k) * 2654435761u >> 8) % of != 0;
}

/* ------------------------------------------------------------------------------------------------
   ugrid.h
   ---------------------------------------------------------------------------------------------- */

static real point_of[3 * N];
static uint8_t listed[N][N];

/* Listed, each pair both ways, against the documented test of distances, from both ends. */
static void check_listed(const ugrid *g, real radius)
{
    int i, j;
    for (i = 0; i < g->n; i++) for (j = 0; j < g->n; j++) {
            int const from_i =
                          ugrid_distance2(g, point_of + 3 * i, point_of + 3 * j) <= radius * radius,
                      from_j =
                          ugrid_distance2(g, point_of + 3 * j, point_of + 3 * i) <= radius * radius;
            if (i == j) CHECK(!listed[i][j]);
            else if (from_i && from_j) CHECK(listed[i][j] == 1);
            else if (!from_i && !from_j) CHECK(listed[i][j] == 0);
            else CHECK(listed[i][j] <= 1);
    }
}

static int note_pair(void *user, int32_t i, int32_t j)
{
    int64_t *met = (int64_t *)user;
    (*met)++;
    listed[i][j]++;
    listed[j][i]++;
    return 0;
}

static void check_grid(const ugrid_desc *d, const real *pos, real radius)
{
    static int64_t offsets[N + 1];
    static int32_t ids[N * N], found[N];
    ugrid g = {0};
    int64_t needed = -1, met = 0, pairs = -1;
    int32_t i, count = -1;
    int64_t k;
    ugrid_result const r = ugrid_build(&g, d, pos, 0, N);
    if (r != UGRID_OK) { /* too many cells, or a box that is none in this mode */
        CHECK(r == UGRID_TOO_MANY_CELLS || r == UGRID_BAD_BOX || r == UGRID_BAD_CELL ||
              r == UGRID_CELL_FULL || r == UGRID_BAD_SIZE);
        CHECK(g.n == 0);
        ugrid_free(&g);
        return;
    }
    CHECK(ugrid_validate(&g) == UGRID_OK);
    for (i = 0; i < N; i++) ugrid_point(&g, i, point_of + 3 * ugrid_id(&g, i));
    CHECK(ugrid_neighbors(&g, radius, 0, offsets, ids, N * N, &needed) == UGRID_OK);
    memset(listed, 0, sizeof listed);
    for (i = 0; i < N; i++) for (k = offsets[i]; k < offsets[i + 1]; k++) listed[i][ids[k]]++;
    check_listed(&g, radius);
    memset(listed, 0, sizeof listed);
    CHECK(ugrid_each_pair(&g, radius, UGRID_HALF, note_pair, &met) == UGRID_OK);
    check_listed(&g, radius);
    CHECK(ugrid_count_pairs(&g, radius, &pairs) == UGRID_OK);
    CHECK(pairs == met);
    memset(listed, 0, sizeof listed);
    for (i = 0; i < N; i++) {
        CHECK(ugrid_query(&g, point_of + 3 * i, radius, found, N, &count) == UGRID_OK);
        for (k = 0; k < count; k++) if (found[k] != i) listed[i][found[k]]++;
    }
    check_listed(&g, radius);
    ugrid_free(&g);
}

static void test_ugrid(void **state)
{
    int input, dim, method, how;
    (void)state;
    describe = describe_mode;
    for (current_mode = 0; current_mode < MODES; current_mode++)
        for (input = 0; input < INPUTS; input++)
            for (dim = 2; dim <= 3; dim++) {
                real pos[3 * N];
                real const radius = fill(input, pos, dim * N);
                current_input = input_names[input];
                set_mode(current_mode);
                for (method = UGRID_AUTO; method <= UGRID_LIST_PACKED; method++)
                    for (how = 0; how < 5; how++) {
                        ugrid_desc d;
                        int a;
                        memset(&d, 0, sizeof d);
                        d.dim = dim;
                        d.method = (ugrid_method)method;
                        d.slots = N * 2;
                        d.max_cells = 100000;
                        if (how > 0) d.cell = how == 4 ? radius / 2 : radius;
                        if (how == 1) d.unbounded = 1;
                        if (how == 2) d.placement = UGRID_TIGHT;
                        /* a box given, periodic or not; points may lie on its border, or outside */
                        if (how == 3 || how == 4)
                            for (a = 0; a < dim; a++) {
                                d.min[a] = input == OFFSET ? 1000 : 0;
                                d.max[a] = input == TINY ? 8 * radius : d.min[a] + 1;
                                d.periodic[a] = how == 3;
                            }
                        if (d.method == UGRID_LIST_PACKED && how == 2) continue;
                        if (left_out(method + 6 * how, 3)) continue;
                        check_grid(&d, pos, radius);
                    }
                set_mode(0);
            }
}

/* ------------------------------------------------------------------------------------------------
   lbvh.h
   ---------------------------------------------------------------------------------------------- */

static int apart(const real *a, const real *b, int dim)
{
    int k;
    for (k = 0; k < dim; k++) if (a[k] > b[dim + k] || b[k] > a[dim + k]) return 1;
    return 0;
}

static int note_overlap(void *user, int32_t i, int32_t j) { return note_pair(user, i, j); }

static void check_tree(const lbvh *tree, const real *boxes, int dim, int input)
{
    static int32_t counts[N];
    int64_t met = 0, pairs = -1;
    int32_t i, j, found = -1, ids[5];
    real d2[5];
    lbvh_queries q;
    memset(&q, 0, sizeof q);
    CHECK(lbvh_validate(tree) == LBVH_OK);
    memset(listed, 0, sizeof listed);
    CHECK(lbvh_each_pair(tree, note_overlap, &met) == LBVH_OK);
    CHECK(lbvh_count_pairs(tree, &pairs) == LBVH_OK && pairs == met);
    CHECK(lbvh_count_overlaps(tree, &q, counts) == LBVH_OK);
    for (i = 0; i < N; i++) {
        int32_t row = 0;
        for (j = 0; j < N; j++) {
            int const want = i != j && !apart(boxes + 2 * dim * i, boxes + 2 * dim * j, dim);
            CHECK(listed[i][j] == want);
            row += want;
        }
        CHECK(counts[i] == row);
    }
    /* Nearest to a lower corner: nothing is nearer than 0, and the element itself is one of
       those. */
    for (i = 0; i < N; i += 7) {
        CHECK(lbvh_nearest(tree, boxes + 2 * dim * i, 5, REAL_INFINITY, NULL, NULL, ids, d2,
                           &found) == LBVH_OK);
        /* squares beyond the largest number are no distances */
        CHECK((found == 5 || input == SPREAD) && found > 0 && d2[0] == 0);
        for (j = 1; j < found; j++) CHECK(d2[j - 1] <= d2[j] && ids[j] != ids[0]);
    }
}

static void test_lbvh(void **state)
{
    int input, dim, bits, round;
    (void)state;
    describe = describe_mode;
    for (current_mode = 0; current_mode < MODES; current_mode++)
        for (input = 0; input < INPUTS; input++)
            for (dim = 2; dim <= 3; dim++) {
                real data[2][3 * N], boxes[6 * N];
                real const radius = fill(input, data[0], dim * N);
                (void)fill(input, data[1], dim * N);
                current_input = input_names[input];
                set_mode(current_mode);
                for (bits = 30; bits <= 63; bits += 33) {
                    lbvh tree = {0};
                    lbvh_desc d;
                    if (left_out(bits, 1)) continue;
                    memset(&d, 0, sizeof d);
                    d.dim = dim;
                    d.kind = LBVH_POINTS;
                    d.radius = radius / 2;
                    d.bits = bits;
                    for (round = 0; round < 3; round++) {
                        int32_t bad = -1;
                        d.builder = (lbvh_builder)(round / 2);
                        CHECK(lbvh_boxes(&d, data[round % 2], 0, N, boxes, &bad) == LBVH_OK);
                        if (round == 1) CHECK(lbvh_refit(&tree, data[1], 0) == LBVH_OK);
                        else CHECK(lbvh_build(&tree, &d, data[0], 0, N) == LBVH_OK);
                        check_tree(&tree, boxes, dim, input);
                    }
                    lbvh_free(&tree);
                }
                set_mode(0);
            }
}

/* ------------------------------------------------------------------------------------------------
   nlist.h
   ---------------------------------------------------------------------------------------------- */

/* Rows against distances in double, taken to nearest; pairs within rounding of the reach may be
   there or not. */
static void check_rows(const nlist *list, const real *pos, int dim, double reach, const real *radii)
{
    int i, j, a;
    memset(listed, 0, sizeof listed);
    for (i = 0; i < N; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) listed[i][e.id]++;
    }
    set_mode(0);
    for (i = 0; i < N; i++) for (j = 0; j < N; j++) {
            double d2 = 0, far = 0, r = reach + (radii ? (double)radii[i] + (double)radii[j] : 0),
                   rim, d;
            for (a = 0; a < dim; a++) {
                double const x = (double)pos[dim * i + a], y = (double)pos[dim * j + a];
                d = x - y;
                far = fmax(far, fmax(fabs(x), fabs(y)));
                d2 = hypot(d2, d); /* a distance, whatever the size of the numbers */
        }
        /* squares that are denormal */
        rim = 16 * REAL_EPSILON * (r + far) + (modes[current_mode].flush ? 2 * LEAST / r : 0);
        if (i == j) CHECK(!listed[i][j]);
        else if (d2 < r - rim) CHECK(listed[i][j] == 1);
        else if (d2 > r + rim) CHECK(listed[i][j] == 0);
        else CHECK(listed[i][j] <= 1);
    }
    set_mode(current_mode);
}

static void test_nlist(void **state)
{
    int input, dim, layout, source;
    (void)state;
    describe = describe_mode;
    for (current_mode = 0; current_mode < MODES; current_mode++)
        for (input = 0; input < INPUTS; input++)
            for (dim = 2; dim <= 3; dim++) {
                real pos[3 * N], radii[N];
                real const radius = fill(input, pos, dim * N);
                int32_t i;
                ugrid grid = {0};
                lbvh tree = {0};
                ugrid_desc g;
                lbvh_desc t;
                current_input = input_names[input];
                for (i = 0; i < N; i++) radii[i] = radius * between(0, (real)0.5);
                memset(&g, 0, sizeof g);
                memset(&t, 0, sizeof t);
                g.dim = t.dim = dim;
                g.cell = radius;
                g.unbounded = 1;
                t.kind = LBVH_POINTS;
                set_mode(current_mode);
                CHECK(lbvh_build(&tree, &t, pos, 0, N) == LBVH_OK);
                CHECK(ugrid_build(&grid, &g, pos, 0, N) == UGRID_OK);
                for (layout = 0; layout < 4; layout++)
                    for (source = 0; source < 3; source++) {
                        nlist list = {0};
                        nlist_desc d;
                        nlist_result r;
                        if (left_out(layout, 2)) continue;
                        memset(&d, 0, sizeof d);
                        d.dim = dim;
                        d.radius = radius;
                        d.layout = (nlist_layout)layout;
                        d.width = layout == NLIST_STATIC ? N : layout == NLIST_HYBRID ? 3 : 0;
                        d.radii = layout % 2 ? radii : NULL;
                        d.history = layout == 2 ? 4 : 0;
                        d.skin = layout == 3 ? radius / 8 : 0;
                        if (source == 0) r = nlist_build_brute(&list, &d, pos, 0, N);
                        else if (source == 1) r = nlist_build_ugrid(&list, &d, &grid, pos, 0, N);
                        else r = nlist_build_lbvh(&list, &d, &tree, pos, 0, N);
                        /* the box of one point is wider than a number's root */
                        if (r == NLIST_BAD_SOURCE && source == 2 && input == SPREAD) continue;
                        CHECK_RESULT(r, NLIST_OK);
                        CHECK_RESULT(nlist_validate(&list), NLIST_OK);
                        check_rows(&list, pos, dim, (double)radius + (double)d.skin, d.radii);
                        nlist_free(&list);
                    }
                ugrid_free(&grid);
                lbvh_free(&tree);
                set_mode(0);
            }
}

/* ------------------------------------------------------------------------------------------------
   nbody.h
   ---------------------------------------------------------------------------------------------- */

static void test_nbody(void **state)
{
    int input, method, law;
    (void)state;
    describe = describe_mode;
    for (current_mode = 0; current_mode < MODES; current_mode++)
        for (input = 0; input < INPUTS; input++) {
            real pos[2 * N], mass[N], acc[2 * N], potential[N];
            int32_t i;
            (void)fill(input, pos, 2 * N);
            for (i = 0; i < N; i++) mass[i] = between((real)0.5, 2);
            current_input = input_names[input];
            for (method = NBODY_DIRECT; method <= NBODY_FORCE_NODES; method++)
                for (law = 0; law < 4; law++) {
                    nbody sim = {0};
                    nbody_desc d;
                    nbody_error error;
                    nbody_result r;
                    int whole = 1;
                    if (left_out(method, 1)) continue;
                    memset(&d, 0, sizeof d);
                    d.method = (nbody_method)method;
                    d.law = (nbody_law)(law % 2);
                    d.order = method == NBODY_FORCE_NODES ? 1 + 5 * (law / 2) : 0;
                    d.leaf = method == NBODY_DIRECT ? 0 : 4;
                    set_mode(current_mode);
                    r = nbody_fields(&sim, &d, pos, 0, mass, N, acc, potential);
                    CHECK(r == NBODY_OK);
                    CHECK(nbody_validate(&sim) == NBODY_OK);
                    set_mode(0);
                    for (i = 0; i < 2 * N; i++) whole &= isfinite(acc[i]) != 0;
                    /* Units may carry forces beyond the largest number, or below the smallest, and
                       the
               judge has doubles only; else they are those of the direct sum, to what the method
               can. */
                    if (input != DENORMAL && input != SPREAD && input != TINY) {
                        CHECK(whole);
                        CHECK(nbody_estimate(&sim, acc, N, 0, &error) == NBODY_OK);
                        CHECK(error.samples == N && error.mean_share < 0.02);
                    }
                    nbody_free(&sim);
                }
        }
}

/* ------------------------------------------------------------------------------------------------
   Not finite, in any mode
   ---------------------------------------------------------------------------------------------- */

static void test_not_finite(void **state)
{
    real const bad[] = {REAL_NAN, REAL_INFINITY, -REAL_INFINITY};
    int k, at;
    (void)state;
    describe = describe_mode;
    current_input = "not finite";
    for (current_mode = 0; current_mode < MODES; current_mode++)
        for (k = 0; k < COUNT_OF(bad); k++)
            for (at = 0; at < 12; at++) {
                real pos[12], plane[12], acc[12];
                ugrid grid = {0};
                lbvh tree = {0};
                nlist list = {0};
                nbody sim = {0};
                ugrid_desc g;
                lbvh_desc t;
                nlist_desc d;
                (void)fill(UNIFORM, pos, 12);
                pos[at] = bad[k];
                memcpy(plane, pos, sizeof plane);
                memset(&g, 0, sizeof g);
                memset(&t, 0, sizeof t);
                memset(&d, 0, sizeof d);
                t.kind = LBVH_POINTS;
                d.radius = 1;
                set_mode(current_mode);
                for (g.unbounded = 0; g.unbounded < 2; g.unbounded++) {
                    g.cell = g.unbounded ? 1 : 0;
                    CHECK(ugrid_build(&grid, &g, pos, 0, 4) == UGRID_NOT_FINITE &&
                          grid.bad_id == at / 3 && grid.n == 0);
                }
                CHECK(lbvh_build(&tree, &t, pos, 0, 4) == LBVH_NOT_FINITE &&
                      tree.bad_id == at / 3 && tree.n == 0);
                CHECK(nlist_build_brute(&list, &d, pos, 0, 4) == NLIST_NOT_FINITE &&
                      list.bad_id == at / 3 && list.n == 0);
                CHECK(nbody_accelerations(&sim, NULL, plane, 0, NULL, 6, acc) == NBODY_NOT_FINITE &&
                      sim.bad_id == at / 2 && sim.n == 0);
                ugrid_free(&grid);
                lbvh_free(&tree);
                nlist_free(&list);
                nbody_free(&sim);
                set_mode(0);
            }
}

/* A mode that is not in force would make the tests above pass by themselves. */
static void test_modes(void **state)
{
    int mode;
    (void)state;
    if (small_run()) skip(); /* under valgrind denormals stay what they are */
    for (mode = 0; mode < MODES; mode++) CHECK(in_force(mode));
}

#define MODE_TEST(name) cmocka_unit_test_setup(name, set_up_mode)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MODE_TEST(test_modes),
        MODE_TEST(test_ugrid),
        MODE_TEST(test_lbvh),
        MODE_TEST(test_nlist),
        MODE_TEST(test_nbody),
        MODE_TEST(test_not_finite),
    };
    if (getenv("FLOATS_TEST_ONLY")) cmocka_set_test_filter(getenv("FLOATS_TEST_ONLY"));
    return cmocka_run_group_tests_name("floats", tests, NULL, NULL);
}
