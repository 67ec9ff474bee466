/* test_costs_nlist_mesh.c - what nlist_build_mesh costs where triangles are found by cells, held
   against inputs for which the cells are of no use.
   SPDX-License-Identifier: MIT OR Unlicense

   A tree that has masks is searched for each particle, as NLIST_PLAIN does it. So the same list is
   built twice, over a tree without masks and over one where all bits are set, and the work of both
   is compared. tests/README.md has the list: promise, input, count, bar. COSTS_SHOW=1 prints
   figures. */

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#include "nlist.h"
#define TESTED nlist
#include "../../common/testing.h"
#include "costs.h"

typedef enum walls_scene {
    FLOOR,              /* particles of a cube, in no order, over a floor of triangles */
    FAR_PARTICLE,       /* and one far away */
    FAR_CORNER,         /* and one far away, at a triangle */
    GIANT_PARTICLE,     /* and one 40 times as large as the others */
    GIANT_OF_ALL,       /* and one that reaches all, a million times as large as the others */
    SOME_GIANTS,        /* each 30th reaches all */
    GIANT_TRIANGLE,     /* and one 1000 times as large as the cube */
    ON_A_POINT,         /* particles at one point of the floor */
    OVER_A_POINT,       /* particles at one point that touch nothing */
    ON_A_LINE,          /* particles on a line of the floor */
    TRIANGLES_AT_POINT, /* all triangles at one point of the cube */
    AROUND_A_TIP,       /* all triangles around one tip, particles in the cube */
    FAN_AND_POINT,      /* and all particles at a point beside the fan */
    ONE_CROWDED_CELL,   /* many tiny triangles at one point, particles elsewhere */
    TINY_AND_GIANTS,    /* half of them, and half that are 1000 times as large as the cube */
    THIN_DIAGONALS,     /* slivers along diagonals of the cube: their boxes are all of it */
    PARALLEL_PLANES,    /* large triangles whose boxes are all of the cube, planes apart */
    EVERYWHERE,         /* small triangles all over the cube */
    ONE_BY_ONE,         /* and far from each other */
    ONE_CELL,           /* a small patch of the floor's plane, particles in that plane beside it;
                           far away a particle and a triangle: all others are in one cell */
    WALLS_SCENES
} walls_scene;

static const char *const walls_name[WALLS_SCENES] = {
    "floor", "far particle", "far corner", "giant", "giant of all", "some giants", "giant triangle",
    "on a point", "over a point", "on a line", "all at a point", "fan", "fan, a point",
    "crowded cell", "tiny and giants", "slivers", "planes", "everywhere", "one by one", "one cell"};

static double roll_between(double low, double high)
{
    return low + (high - low) * (double)wl_u(&dice);
}

/* A triangle of this size at this point, in no direction. */
static void small_triangle(real *c, double x, double y, double z, double size)
{
    int k;
    for (k = 0; k < 3; k++) {
        c[3 * k] = (real)(x + roll_between(-size, size));
        c[3 * k + 1] = (real)(y + roll_between(-size, size));
        c[3 * k + 2] = (real)(z + roll_between(-size, size));
    }
}

/* Triangle t of m of a floor in about sqrt(m / 2) squares along each axis. */
static void floor_triangle(real *c, int32_t t, int32_t m)
{
    int32_t const side = (int32_t)ceil(sqrt(0.5 * m)), x = t / 2 % side, y = t / 2 / side;
    int const other = t % 2;
    memset(c, 0, 9 * sizeof *c);
    c[0] = (real)(x + other) / (real)side;
    c[1] = (real)(y + other) / (real)side;
    c[3] = (real)(x + 1) / (real)side;
    c[4] = (real)y / (real)side;
    c[6] = (real)x / (real)side;
    c[7] = (real)(y + 1) / (real)side;
}

/* Triangle t of m; the particles have this radius. */
static void scene_triangle(walls_scene s, int32_t t, int32_t m, double radius, real *c)
{
    double const turn = 6.283185307179586 / m, x = roll_between(0, 1), y = roll_between(0, 1),
                 z = roll_between(0, 1);
    int const giants = s == GIANT_TRIANGLE ? t == m / 2 : s == TINY_AND_GIANTS && t % 2;
    floor_triangle(c, t, m);
    if (giants) small_triangle(c, x, y, z, 1000);
    else if ((s == FAR_CORNER || s == ONE_CELL) && t == m - 1)
        small_triangle(c, 1e4, 1e4, 1e4, radius);
    else if (s == TRIANGLES_AT_POINT || s == ONE_CROWDED_CELL || s == TINY_AND_GIANTS)
        small_triangle(c, 0.5, 0.5, 0.5, s == TRIANGLES_AT_POINT ? radius : radius / 100);
    else if (s == EVERYWHERE) small_triangle(c, x, y, z, radius / 2);
    else if (s == ONE_BY_ONE) small_triangle(c, 1000 * x, 1000 * y, 1000 * z, radius / 2);
    else if (s == AROUND_A_TIP || s == FAN_AND_POINT) {
        c[0] = c[1] = c[2] = c[5] = c[8] = (real)0.5;
        c[3] = (real)(0.5 + 0.5 * cos(turn * t)), c[4] = (real)(0.5 + 0.5 * sin(turn * t));
        c[6] = (real)(0.5 + 0.5 * cos(turn * (t + 1)));
        c[7] = (real)(0.5 + 0.5 * sin(turn * (t + 1)));
    } else if (s == ONE_CELL) {
        int k;
        for (k = 0; k < 9; k++) c[k] /= 10;
    } else if (s == THIN_DIAGONALS) {
        small_triangle(c, t & 1 ? 1 : 0, t & 2 ? 1 : 0, 0, radius);
        c[6] = t & 1 ? 0 : 1;
        c[7] = t & 2 ? 0 : 1;
        c[8] = 1;
    } else if (s == PARALLEL_PLANES) {
        memset(c, 0, 9 * sizeof *c);
        c[0] = c[4] = c[8] = (real)(0.5 + 2 * x);
    }
}

/* Particle i of n. The last triangle is `last`. */
static void scene_particle(walls_scene s, int32_t i, int32_t n, double radius, const real *last,
                           real *p, real *r)
{
    int a;
    *r = (real)roll_between(0.9 * radius, 1.1 * radius);
    for (a = 0; a < 3; a++) {
        p[a] = (real)wl_u(&dice);
        if (s == FAR_PARTICLE && i == n / 2) p[a] = (real)1e4;
        if (s == ONE_CELL) p[a] = a == 2 ? 0 : (real)(0.1 + 2 * radius) + p[a];
        if ((s == FAR_CORNER || s == ONE_CELL) && i == n / 2) p[a] = last[a];
        if (s == FAN_AND_POINT) p[a] = (real)(0.5 + 2 * radius);
        if (s == ON_A_POINT || s == OVER_A_POINT) p[a] = (real)0.5;
        if (s == ONE_BY_ONE) p[a] *= 1000;
    }
    if (s == FAN_AND_POINT) p[2] = (real)(0.5 + 0.5 * radius);
    if (s == ON_A_POINT) p[2] = 0;
    if (s == OVER_A_POINT) p[2] = (real)(1.2 * radius);
    if (s == ON_A_LINE) p[1] = (real)0.5, p[2] = (real)(0.8 * radius);
    if (s == ONE_CROWDED_CELL)
        for (a = 0; a < 3; a++) p[a] = (real)(0.5 + (i & 1 << a ? 1 : -1) * 1.5 * radius);
    if (s == GIANT_PARTICLE && i == n / 3) *r *= 40;
    if (s == GIANT_OF_ALL && i == n / 3) *r *= (real)1e6;
    if (s == SOME_GIANTS && i % 30 == 7) *r = 2;
}

/* The work of a list of n particles and m triangles, by cells or (`plain`) by a search for each
   particle. `*entries` are found. */
static double walls_work(walls_scene s, int32_t n, int32_t m, int plain, int64_t *entries)
{
    real *corners = NEW(real, 9 * m), *pos = NEW(real, 3 * n), *radii = NEW(real, n);
    uint32_t *all = NEW(uint32_t, m);
    double const radius = 0.5 * cbrt(1.0 / n);
    lbvh tree = {0};
    lbvh_desc elements;
    nlist list = {0};
    nlist_desc d;
    nlist_mesh mesh;
    double work;
    int32_t i, t;
    memset(&elements, 0, sizeof elements);
    memset(&d, 0, sizeof d);
    memset(&mesh, 0, sizeof mesh);
    memset(all, 255, (size_t)m * sizeof *all);
    dice = wl_seed(21);
    for (t = 0; t < m; t++) scene_triangle(s, t, m, radius, corners + 9 * t);
    for (i = 0; i < n; i++)
        scene_particle(s, i, n, radius, corners + 9 * m - 9, pos + 3 * i, radii + i);
    elements.kind = LBVH_TRIANGLES;
    elements.masks = plain ? all : NULL;
    mesh.vertices = corners;
    mesh.triangles = m;
    d.layout = NLIST_DYNAMIC;
    d.radii = radii;
    CHECK(lbvh_build(&tree, &elements, corners, 0, m) == LBVH_OK);
    costs_begin();
    CHECK_RESULT(nlist_build_mesh(&list, &d, &tree, &mesh, pos, 0, n), NLIST_OK);
    work = costs_end();
    *entries = list.total;
    /* rows, work space of all lists, that of the cells */
    costs_show("bytes of work space a particle", walls_name[s],
               (double)(nlist_bytes(&list) - 32 * list.total) / n - 24);
    CHECK(nlist_bytes(&list) <= (24 + (IS_FLOAT ? 172 : 220)) * (int64_t)n + 32 * list.total + 64);
    nlist_free(&list);
    lbvh_free(&tree);
    free(all);
    free(radii);
    free(pos);
    free(corners);
    return work;
}

/* nlist_build_mesh: by cells never much more than by a search for each particle. */
static void test_cells(void **state)
{
    int32_t const n = size_of_run(300), triangles[5] = {12, 120, n, 2 * n, 2 * n + 1};
    int s, k;
    (void)state;
    NEED_COUNT();
    for (s = 0; s < WALLS_SCENES; s++)
        for (k = 0; k < 5; k++) {
            int32_t const m = triangles[k];
            int64_t cells_found, found;
            double plain, cells;
            if (k > 1 && (s == AROUND_A_TIP || s == FAN_AND_POINT || s == THIN_DIAGONALS ||
                          s == PARALLEL_PLANES)) continue; /* each particle touches all: slow */
            cells = walls_work((walls_scene)s, n, m, 0, &cells_found);
            plain = walls_work((walls_scene)s, n, m, 1, &found);
            costs_show("walls by cells, over a plain build", walls_name[s], cells / plain);
            CHECK(cells_found == found);
            CHECK_BELOW(cells, 8 * plain);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_cells),
    };
    cmocka_set_test_filter(getenv("COSTS_TEST_ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
