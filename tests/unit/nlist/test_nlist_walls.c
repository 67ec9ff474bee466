/* test_nlist_walls.c - tests of the serial part of nlist.h: particles against triangles. See nlist_oracle.h; test_nlist.c and
   test_nlist_calls.c have the rest.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/nlist/test_nlist_walls.c -o test_nlist_walls -lcmocka -lm && ./test_nlist_walls
       (add -DLBVH_REAL=double -DNLIST_REAL=double for the double build; packages: libcmocka-dev libstb-dev)

   The oracle: the nearest point of every triangle, in double. It is a contact where the distance to the whole surface has a
   minimum there, that is, where no triangle that goes through this point comes nearer; of several triangles with that point one
   has it (the first, where rounding does not decide which of them is the nearest: by hand).

   Environment: as in test_nlist.c. */

#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#include "nlist.h"
#include "../../common/nlist_oracle.h"
#include "../../common/testing.h"

/* ------------------------------------------------------------------------------------------------
   Surfaces
   ------------------------------------------------------------------------------------------------ */

enum { FACE, EDGE_AB, EDGE_BC, EDGE_CA, VERTEX_A, VERTEX_B, VERTEX_C };

typedef struct surface {
    real *vertex;       /* stb_ds array: 3 per vertex */
    int32_t *index;     /* stb_ds array: 3 per triangle */
    int form;           /* how it is handed over */
    real *given;        /* as it is handed over */
    int32_t *given_index;
    nlist_mesh mesh;
    lbvh tree;
} surface;

/* Corners in threes or with indices, tightly packed or with something between them. */
enum { LOOSE, INDEXED, LOOSE_STRIDE, INDEXED_STRIDE, FORMS };

static int32_t add_vertex(surface *s, double x, double y, double z)
{
    arrput(s->vertex, (real)x);
    arrput(s->vertex, (real)y);
    arrput(s->vertex, (real)z);
    return (int32_t)(arrlen(s->vertex) / 3 - 1);
}

static void add_triangle(surface *s, int32_t a, int32_t b, int32_t c)
{
    arrput(s->index, a);
    arrput(s->index, b);
    arrput(s->index, c);
}

static int32_t triangles(const surface *s) { return (int32_t)(arrlen(s->index) / 3); }

static const real *corner(const surface *s, int32_t t, int v) { return s->vertex + 3 * s->index[3 * t + v]; }

static void hand_over(surface *s, int form)
{
    int const indexed = form == INDEXED || form == INDEXED_STRIDE, wide = form >= LOOSE_STRIDE;
    size_t const step = (size_t)((indexed ? 3 : 9) + (wide ? 2 : 0));
    size_t const count = (size_t)(indexed ? arrlen(s->vertex) / 3 : triangles(s));
    lbvh_desc d;
    size_t k;
    int v;
    free(s->given);
    free(s->given_index);
    s->form = form;
    s->given = NEW(real, count * step);
    s->given_index = indexed ? NEW(int32_t, arrlen(s->index)) : NULL;
    for (k = 0; k < count; k++) {
        if (indexed) memcpy(s->given + k * step, s->vertex + 3 * k, 3 * sizeof(real));
        for (v = 0; v < 3 && !indexed; v++) memcpy(s->given + k * step + 3 * v, corner(s, (int32_t)k, v), 3 * sizeof(real));
    }
    if (indexed && s->index) memcpy(s->given_index, s->index, (size_t)arrlen(s->index) * sizeof *s->index);
    memset(&s->mesh, 0, sizeof s->mesh);
    s->mesh.vertices = s->given;
    s->mesh.indices = s->given_index;
    s->mesh.vertex_count = indexed ? (int32_t)count : 0;
    s->mesh.stride = wide ? step * sizeof(real) : 0;
    s->mesh.triangles = triangles(s);
    memset(&d, 0, sizeof d);
    d.kind = LBVH_TRIANGLES;
    d.indices = s->given_index;
    d.vertices = s->mesh.vertex_count;
    CHECK(lbvh_build(&s->tree, &d, s->given, s->mesh.stride, s->mesh.triangles) == LBVH_OK);
}

static void drop_surface(surface *s)
{
    arrfree(s->vertex);
    arrfree(s->index);
    free(s->given);
    free(s->given_index);
    lbvh_free(&s->tree);
    memset(s, 0, sizeof *s);
}

/* A floor of columns x rows squares of two triangles each, its corners at height z(x, y) and moved in the plane by `jitter`. */
typedef double height_fn(double x, double y);

static void add_floor(surface *s, int columns, int rows, double edge, double jitter, height_fn *height)
{
    int32_t const first = (int32_t)(arrlen(s->vertex) / 3);
    int i, j;
    for (j = 0; j <= rows; j++) for (i = 0; i <= columns; i++) {
        double const x = edge * i + jitter * ((double)wl_u(&dice) - 0.5), y = edge * j + jitter * ((double)wl_u(&dice) - 0.5);
        add_vertex(s, x, y, height(x, y));
    }
    for (j = 0; j < rows; j++) for (i = 0; i < columns; i++) {
        int32_t const a = first + j * (columns + 1) + i, b = a + 1, c = a + columns + 1, d = c + 1;
        if ((i + j) % 2) {
            add_triangle(s, a, b, d);
            add_triangle(s, d, c, a);
        } else {
            add_triangle(s, c, a, b);
            add_triangle(s, b, d, c);
        }
    }
}

static double flat(double x, double y) { (void)x; (void)y; return 0; }
static double hilly(double x, double y) { (void)x; (void)y; return 0.35 * ((double)wl_u(&dice) - 0.5); }

/* ------------------------------------------------------------------------------------------------
   The oracle
   ------------------------------------------------------------------------------------------------ */

static double dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static double apart(const double a[3], const double b[3])
{
    double const d[3] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
    return sqrt(dot(d, d));
}

static void to_double(const real *p, double q[3]) { q[0] = (double)p[0], q[1] = (double)p[1], q[2] = (double)p[2]; }

/* The nearest point of a segment, and where along it that is, 0 .. 1. */
static double on_segment(const double p[3], const double a[3], const double b[3], double q[3])
{
    double const d[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]}, e[3] = {p[0] - a[0], p[1] - a[1], p[2] - a[2]};
    double const length = dot(d, d);
    double t = length > 0 ? dot(d, e) / length : 0;
    int k;
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    for (k = 0; k < 3; k++) q[k] = a[k] + t * d[k];
    return t;
}

/* The foot of p in the plane, if it lies inside the triangle; `inside`: its least barycentric coordinate. */
static int in_plane(const double p[3], double c[3][3], double q[3], double *inside)
{
    double u[3], v[3], w[3], uu, uv, vv, wu, wv, det, s, t;
    int k;
    for (k = 0; k < 3; k++) u[k] = c[1][k] - c[0][k], v[k] = c[2][k] - c[0][k], w[k] = p[k] - c[0][k];
    uu = dot(u, u), uv = dot(u, v), vv = dot(v, v), wu = dot(w, u), wv = dot(w, v);
    det = uu * vv - uv * uv;
    if (!(det > 1e-14 * uu * vv)) return 0; /* no plane */
    s = (vv * wu - uv * wv) / det;
    t = (uu * wv - uv * wu) / det;
    *inside = s < t ? s : t;
    if (1 - s - t < *inside) *inside = 1 - s - t;
    for (k = 0; k < 3; k++) q[k] = c[0][k] + s * u[k] + t * v[k];
    return *inside >= 0;
}

/* The nearest point of a triangle; its feature, or -1 where that is not clear. */
static double nearest(const surface *s, int32_t t, const double p[3], double q[3], int *feature)
{
    double c[3][3], r[3], inside = 0, best = INFINITY;
    int v;
    for (v = 0; v < 3; v++) to_double(corner(s, t, v), c[v]);
    if (in_plane(p, c, q, &inside)) {
        *feature = inside > 1e-4 ? FACE : -1;
        return apart(p, q);
    }
    for (v = 0; v < 3; v++) {
        double const along = on_segment(p, c[v], c[(v + 1) % 3], r), d = apart(p, r);
        if (d >= best) continue;
        best = d;
        memcpy(q, r, sizeof r);
        *feature = along <= 0 ? VERTEX_A + v : along >= 1 ? VERTEX_A + (v + 1) % 3
                   : along < 1e-4 || along > 1 - 1e-4 || inside > -1e-6 ? -1 : EDGE_AB + v;
    }
    return best;
}

typedef struct spot { double q[3], d; int feature, listed; } spot;

enum { NO, YES, UNCLEAR };

/* Is the nearest point of t a contact? Points that are almost one, but not quite, are nobody's business. */
static int is_contact(const surface *s, const spot *spots, int32_t t, double reach)
{
    double const one = 3e-5 * reach, two = 4e-3 * reach;
    int32_t u, count = triangles(s);
    int unclear = fabs(spots[t].d - reach) < one, feature;
    if (spots[t].d > reach + one) return NO;
    for (u = 0; u < count; u++) {
        double through[3], same = apart(spots[t].q, spots[u].q), off;
        if (u == t) continue;
        if (same <= one) continue;
        if (same < two) {
            unclear = 1;
        } else if (spots[u].d < spots[t].d) {
            off = nearest(s, u, spots[t].q, through, &feature);
            if (off <= one) return NO;
            unclear |= off < two;
        }
    }
    return unclear ? UNCLEAR : YES;
}

/* One row against the oracle. Returns 0 where it could not tell. */
static int check_row(const nlist *list, const surface *s, int32_t i, const real *at, double reach)
{
    int32_t const count = triangles(s);
    spot *spots = NEW(spot, count);
    nlist_each e = nlist_of(list, i);
    double p[3];
    int32_t t;
    int clear = 1;
    to_double(at, p);
    for (t = 0; t < count; t++) {
        spots[t].d = nearest(s, t, p, spots[t].q, &spots[t].feature);
        spots[t].listed = 0;
    }
    for (t = 0; t < count; t++) {
        int32_t u; /* an unclear one also decides about its neighbours */
        if (is_contact(s, spots, t, reach) != UNCLEAR) continue;
        clear = 0;
        for (u = 0; u < count; u++) if (apart(spots[t].q, spots[u].q) < 0.02 * reach) spots[u].listed = 2;
    }
    while (nlist_next(&e)) {
        int32_t const feature = nlist_key_feature(e.id);
        real q[3];
        t = nlist_key_triangle(e.id);
        CHECK(t >= 0 && t < count && feature >= FACE && feature <= VERTEX_C && e.id == nlist_key(t, feature));
        CHECK(nlist_mesh_closest(&s->mesh, t, at, q) == feature);
        if (spots[t].listed == 2) continue;
        CHECK(is_contact(s, spots, t, reach) == YES && !spots[t].listed);
        CHECK(spots[t].feature < 0 || spots[t].feature == feature);
        spots[t].listed = 1;
    }
    for (t = 0; t < count; t++) {
        int32_t u, entries = 0;
        if (spots[t].listed == 2 || is_contact(s, spots, t, reach) == NO) continue;
        for (u = 0; u < count; u++) entries += spots[u].listed == 1 && apart(spots[t].q, spots[u].q) <= 3e-5 * reach;
        CHECK(entries == 1);
    }
    free(spots);
    return clear;
}

static nlist_desc wall_desc(double radius)
{
    nlist_desc d;
    memset(&d, 0, sizeof d);
    d.radius = (real)radius;
    return d;
}

static int32_t row_length(const nlist *list, int32_t i)
{
    nlist_each e = nlist_of(list, i);
    int32_t count = 0;
    while (nlist_next(&e)) count++;
    return count;
}

/* The keys of one particle, as a list by hand: up to 4, then -1. */
static void check_keys(surface *s, double radius, double x, double y, double z, int32_t a, int32_t b, int32_t c)
{
    int32_t const want[3] = {a, b, c};
    real p[3];
    int form, k;
    p[0] = (real)x, p[1] = (real)y, p[2] = (real)z;
    for (form = 0; form < FORMS; form++) {
        nlist list = {0};
        nlist_desc d = wall_desc(radius);
        int32_t count = 0;
        hand_over(s, form);
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s->tree, &s->mesh, p, 0, 1), NLIST_OK);
        CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        for (k = 0; k < 3; k++) count += want[k] >= 0;
        CHECK(row_length(&list, 0) == count && list.total == count && list.keys);
        for (k = 0; k < 3; k++) CHECK(want[k] < 0 || nlist_find(&list, 0, want[k]) >= 0);
        CHECK(list.desc.layout == NLIST_DYNAMIC && list.rows[list.current].touched_count == (count > 0));
        (void)check_row(&list, s, 0, p, (double)d.radius);
        nlist_free(&list);
    }
}

/* ------------------------------------------------------------------------------------------------
   By hand
   ------------------------------------------------------------------------------------------------ */

/* One triangle: face, edges, corners, too far; and exactly at the distance. */
static void test_one_triangle(void **state)
{
    surface s = {0};
    (void)state;
    add_vertex(&s, 0, 0, 0);
    add_vertex(&s, 4, 0, 0);
    add_vertex(&s, 0, 4, 0);
    add_triangle(&s, 0, 1, 2);
    check_keys(&s, 1, 1, 1, 0.5, nlist_key(0, FACE), -1, -1);
    check_keys(&s, 1, 1, 1, -0.5, nlist_key(0, FACE), -1, -1);
    check_keys(&s, 1, 1, 1, 1, nlist_key(0, FACE), -1, -1);
    check_keys(&s, 1, 1, 1, 1.01, -1, -1, -1);
    check_keys(&s, 1, 2, -1, 0, nlist_key(0, EDGE_AB), -1, -1);
    check_keys(&s, 1, 2, -1.01, 0, -1, -1, -1);
    check_keys(&s, 1, 2.5, 2.5, 0.25, nlist_key(0, EDGE_BC), -1, -1);
    check_keys(&s, 1, -0.5, 2, 0, nlist_key(0, EDGE_CA), -1, -1);
    check_keys(&s, 1, -0.5, -0.5, 0, nlist_key(0, VERTEX_A), -1, -1);
    check_keys(&s, 1, 4.5, -0.5, 0.5, nlist_key(0, VERTEX_B), -1, -1);
    check_keys(&s, 1, -0.5, 4.5, 0.5, nlist_key(0, VERTEX_C), -1, -1);
    check_keys(&s, 1, -0.75, -0.75, 0, -1, -1, -1);
    drop_surface(&s);
}

/* Two triangles make a square: its diagonal is no place of its own; on it the first has the contact. */
static void test_shared_edge(void **state)
{
    surface s = {0};
    (void)state;
    add_vertex(&s, 0, 0, 0);
    add_vertex(&s, 4, 0, 0);
    add_vertex(&s, 4, 4, 0);
    add_vertex(&s, 0, 4, 0);
    add_triangle(&s, 0, 1, 2);
    add_triangle(&s, 0, 2, 3);
    check_keys(&s, 1, 2, 2, 0.5, nlist_key(0, EDGE_CA), -1, -1);
    check_keys(&s, 1, 2.25, 2, 0.5, nlist_key(0, FACE), -1, -1);
    check_keys(&s, 1, 2, 2.25, 0.5, nlist_key(1, FACE), -1, -1);
    check_keys(&s, 1, 4.5, 4.5, 0.25, nlist_key(0, VERTEX_C), -1, -1);
    check_keys(&s, 1, -0.5, -0.5, 0.25, nlist_key(0, VERTEX_A), -1, -1);
    check_keys(&s, 1, -0.5, 2, 0.25, nlist_key(1, EDGE_CA), -1, -1);
    drop_surface(&s);
}

/* Six around one vertex, flat and as a cone, and as a hole. */
static void test_fan(void **state)
{
    int shape, k;
    (void)state;
    for (shape = -1; shape <= 1; shape++) {
        surface s = {0};
        int32_t first, centre = add_vertex(&s, 0, 0, 0.5 * shape);
        for (k = 0; k < 6; k++) add_vertex(&s, 4 * cos(k * 1.0471975511965976), 4 * sin(k * 1.0471975511965976), 0);
        first = centre + 1;
        for (k = 0; k < 6; k++) add_triangle(&s, first + k, centre, first + (k + 1) % 6);
        if (shape >= 0) check_keys(&s, 1, 0, 0, 0.75 + 0.5 * shape, nlist_key(0, VERTEX_B), -1, -1);
        if (shape == 0) check_keys(&s, 1, 0, 0, 1, nlist_key(0, VERTEX_B), -1, -1);
        check_keys(&s, 1, 0, 0, 1.25 + 0.5 * shape, -1, -1, -1);
        drop_surface(&s);
    }
}

/* A roof and a gutter: over the ridge one contact, the ridge itself; in the gutter the two faces and not the line. */
static void test_roof_and_gutter(void **state)
{
    int gutter;
    (void)state;
    for (gutter = 0; gutter < 2; gutter++) {
        surface s = {0};
        double const z = gutter ? 2 : -2;
        add_vertex(&s, -4, 0, 0); /* the line */
        add_vertex(&s, 4, 0, 0);
        add_vertex(&s, 0, 4, z);
        add_vertex(&s, 0, -4, z);
        add_triangle(&s, 2, 1, 0);
        add_triangle(&s, 0, 1, 3);
        if (gutter) {
            check_keys(&s, 1, 0, 0, 0.75, nlist_key(0, FACE), nlist_key(1, FACE), -1);
            check_keys(&s, 1, 0, 0.25, 0.75, nlist_key(0, FACE), nlist_key(1, FACE), -1);
            check_keys(&s, 1, 0, 0.25, -0.5, nlist_key(0, EDGE_BC), -1, -1); /* from below it is a ridge */
        } else {
            check_keys(&s, 1, 0, 0, 0.75, nlist_key(0, EDGE_BC), -1, -1);
            check_keys(&s, 1, 0, 0.125, 0.75, nlist_key(0, EDGE_BC), -1, -1);
            check_keys(&s, 1, 0, 1, 0.25, nlist_key(0, FACE), -1, -1);
            check_keys(&s, 1, 0, -1, 0.25, nlist_key(1, FACE), -1, -1);
            check_keys(&s, 1, 0, 0, -0.75, nlist_key(0, FACE), nlist_key(1, FACE), -1);
        }
        drop_surface(&s);
    }
}

/* The inner corner of a box, walls of two triangles each: three contacts, wherever in the corner. And its outer side: one. */
static void test_corner(void **state)
{
    surface s = {0};
    int a;
    (void)state;
    for (a = 0; a < 3; a++) { /* the wall x[a] = 0 */
        double p[3] = {0, 0, 0};
        int32_t const o = add_vertex(&s, 0, 0, 0);
        p[(a + 1) % 3] = 8;
        add_vertex(&s, p[0], p[1], p[2]);
        p[(a + 2) % 3] = 8;
        add_vertex(&s, p[0], p[1], p[2]);
        p[(a + 1) % 3] = 0;
        add_vertex(&s, p[0], p[1], p[2]);
        add_triangle(&s, o, o + 1, o + 2);
        add_triangle(&s, o, o + 2, o + 3);
    }
    check_keys(&s, 1, 0.5, 0.75, 0.625, nlist_key(0, FACE), nlist_key(2, FACE), nlist_key(5, FACE));
    check_keys(&s, 1, -0.25, -0.25, -0.25, nlist_key(0, VERTEX_A), -1, -1);
    check_keys(&s, 1, 3, -0.25, -0.25, nlist_key(3, EDGE_CA), -1, -1);
    drop_surface(&s);
}

/* Triangles without area are surface like others, and do not count twice. */
static void test_degenerate(void **state)
{
    int place;
    (void)state;
    for (place = 0; place < 2; place++) {
        surface s = {0};
        int32_t const before = place == 0 ? 3 : 0;
        add_vertex(&s, 0, 0, 0);
        add_vertex(&s, 4, 0, 0);
        add_vertex(&s, 4, 4, 0);
        add_vertex(&s, 0, 4, 0);
        add_vertex(&s, 2, 2, 0);
        if (before) { /* a segment, a segment of three points, a point */
            add_triangle(&s, 0, 2, 2);
            add_triangle(&s, 0, 4, 2);
            add_triangle(&s, 1, 1, 1);
        }
        add_triangle(&s, 0, 1, 2);
        add_triangle(&s, 0, 2, 3);
        if (!before) {
            add_triangle(&s, 0, 2, 2);
            add_triangle(&s, 0, 4, 2);
            add_triangle(&s, 1, 1, 1);
        }
        check_keys(&s, 1, 2.5, 2, 0.5, nlist_key(before, FACE), -1, -1);
        check_keys(&s, 1, 2, 2.5, 0.5, nlist_key(before + 1, FACE), -1, -1);
        if (!before) check_keys(&s, 1, 1, 1, 0.5, nlist_key(0, EDGE_CA), -1, -1);
        if (!before) check_keys(&s, 1, 4.25, -0.25, 0.25, nlist_key(0, VERTEX_B), -1, -1);
        {
            nlist list = {0};
            nlist_desc d = wall_desc(1);
            real const p[6] = {1, 1, (real)0.5, (real)4.25, (real)-0.25, (real)0.25};
            hand_over(&s, INDEXED);
            CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 2), NLIST_OK);
            CHECK(row_length(&list, 0) == 1 && row_length(&list, 1) == 1);
            nlist_free(&list);
        }
        drop_surface(&s);
    }
}

/* ------------------------------------------------------------------------------------------------
   Random surfaces against the oracle
   ------------------------------------------------------------------------------------------------ */

static void test_random_surfaces(void **state)
{
    int const rounds = 400 / share() + 4;
    int64_t rows = 0, clear = 0, listed = 0;
    int round;
    (void)state;
    for (round = 0; round < rounds; round++) {
        nlist list = {0}, other = {0};
        surface s = {0};
        nlist_desc d = wall_desc(0.1 + 0.3 * (double)wl_u(&dice));
        int32_t const n = 40;
        size_t const step = round % 2 ? 3 : 5;
        real *pos = NEW(real, (size_t)n * step), *radii = NEW(real, n);
        int32_t i;
        add_floor(&s, 4, 3, 0.5, round % 3 ? 0.3 : 0, round % 4 ? hilly : flat);
        if (round % 5 == 0) add_floor(&s, 3, 3, 0.6, 0.2, hilly); /* a second sheet that goes through the first */
        for (i = 0; i < n; i++) {
            real *p = pos + (size_t)i * step;
            p[0] = between((real)-0.3, (real)2.3);
            p[1] = between((real)-0.3, (real)1.8);
            p[2] = between((real)-0.4, (real)0.4);
            if (round % 3 == 0 && i % 2) { /* over edges and corners */
                p[0] = (real)0.25 * (real)roll(9);
                p[1] = (real)0.25 * (real)roll(8);
            }
            radii[i] = round % 2 ? 0 : between(0, (real)0.2);
        }
        d.radii = round % 2 ? NULL : radii;
        hand_over(&s, round % FORMS);
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, pos, step * sizeof(real), n), NLIST_OK);
        CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        for (i = 0; i < n; i++) clear += check_row(&list, &s, i, pos + (size_t)i * step, (double)(d.radius + radii[i]));
        rows += n;
        listed += list.total;
        hand_over(&s, (round + 1) % FORMS);
        CHECK_RESULT(nlist_build_mesh(&other, &d, &s.tree, &s.mesh, pos, step * sizeof(real), n), NLIST_OK);
        CHECK_FINE(oracle_same_order(&list, &other));
        free(pos);
        free(radii);
        nlist_free(&list);
        nlist_free(&other);
        drop_surface(&s);
    }
    CHECK(clear > rows * 8 / 10 && listed > rows / 2);
}

/* ------------------------------------------------------------------------------------------------
   Rolling
   ------------------------------------------------------------------------------------------------ */

/* A sphere that rolls over a floor in small steps: one contact, always, and what was written into it at the beginning stays. */
static void roll_over(surface *s, double radius, double height, double x, double y, double dx, double dy, int steps)
{
    nlist list = {0};
    nlist_desc d = wall_desc(radius);
    int step, changes = 0;
    int32_t key = -1;
    d.history = 13;
    d.events = 1;
    for (step = 0; step < steps; step++) {
        real p[3];
        nlist_each e;
        p[0] = (real)(x + dx * step), p[1] = (real)(y + dy * step), p[2] = (real)height;
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s->tree, &s->mesh, p, 0, 1), NLIST_OK);
        e = nlist_of(&list, 0);
        CHECK(nlist_next(&e));
        CHECK(oracle_holds(e.history, 13, step ? 1 : 0));
        if (step == 0) oracle_write(e.history, 13, 1);
        changes += step && e.id != key;
        CHECK(list.event_count[NLIST_BEGUN] == (step == 0) && list.event_count[NLIST_PERSISTED] == (step > 0));
        key = e.id;
        CHECK(!nlist_next(&e));
    }
    CHECK(changes >= 3);
    nlist_free(&list);
}

static void test_rolling(void **state)
{
    int form, k;
    (void)state;
    for (form = 0; form < FORMS; form++) {
        surface s = {0};
        add_floor(&s, 8, 8, 0.25, 0, flat);
        hand_over(&s, form);
        roll_over(&s, 0.3, 0.25, 0.3, 0.3, 0.01, 0.004, 140); /* across */
        roll_over(&s, 0.3, 0.25, 0.25, 0.5, 1.0 / 128, 0, 180); /* along a row of edges, through their vertices */
        roll_over(&s, 0.3, 0.25, 0.25, 0.25, 1.0 / 128, 1.0 / 128, 180); /* along and across the diagonals */
        roll_over(&s, 0.3, 0.0625, 1.7, 0.3, -0.003, 0.007, 180); /* deep in */
        drop_surface(&s);
    }
    for (k = 0; k < 200 / share() + 4; k++) { /* no pattern */
        surface s = {0};
        double const turn = 6.283185307179586 * (double)wl_u(&dice);
        add_floor(&s, 10, 10, 0.2, 0.15, flat);
        hand_over(&s, k % FORMS);
        roll_over(&s, 0.3, 0.05 + 0.2 * (double)wl_u(&dice), 1 - 0.6 * cos(turn), 1 - 0.6 * sin(turn), 0.008 * cos(turn),
                  0.008 * sin(turn), 150);
        drop_surface(&s);
    }
}

/* Over a ridge: face, edge, face is one contact; it goes on as long as the sphere touches. */
static void test_rolling_over_a_ridge(void **state)
{
    surface s = {0};
    nlist list = {0};
    nlist_desc d = wall_desc(0.5);
    double angle;
    int step, seen[7] = {0, 0, 0, 0, 0, 0, 0};
    (void)state;
    add_vertex(&s, -4, 0, 0);
    add_vertex(&s, 4, 0, 0);
    add_vertex(&s, 0, 4, -4);
    add_vertex(&s, 0, -4, -4);
    add_triangle(&s, 2, 1, 0);
    add_triangle(&s, 0, 1, 3);
    hand_over(&s, INDEXED);
    d.history = 4;
    for (step = 0; step <= 400; step++) { /* 0.4 above one face, around the ridge, down along the other */
        double const way = (step - 200) / 100.0, bend = 0.7853981633974483;
        real p[3] = {0, 0, 0};
        nlist_each e;
        angle = way < -1 ? -bend : way > 1 ? bend : bend * way;
        p[1] = (real)(0.4 * sin(angle) + (fabs(way) > 1 ? 0.5 * (way - (way > 0 ? 1 : -1)) * cos(bend) : 0));
        p[2] = (real)(0.4 * cos(angle) - (fabs(way) > 1 ? 0.5 * (fabs(way) - 1) * sin(bend) : 0));
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 1), NLIST_OK);
        e = nlist_of(&list, 0);
        CHECK(nlist_next(&e));
        CHECK(oracle_holds(e.history, 4, step ? 9 : 0));
        if (step == 0) oracle_write(e.history, 4, 9);
        seen[nlist_key_feature(e.id)]++;
        CHECK(!nlist_next(&e));
    }
    CHECK(seen[FACE] > 100 && seen[EDGE_BC] > 150);
    nlist_free(&list);
    drop_surface(&s);
}

static double valley(double x, double y) { (void)x; return fabs(y - 1); }

/* In a valley: two contacts, and each side keeps its own. */
static void test_rolling_in_a_valley(void **state)
{
    surface s = {0};
    nlist list = {0};
    nlist_desc d = wall_desc(0.5);
    int step;
    (void)state;
    add_floor(&s, 16, 16, 0.125, 0, valley);
    hand_over(&s, LOOSE);
    d.history = 16;
    for (step = 0; step < 150; step++) {
        real p[3];
        nlist_each e;
        int sides = 0;
        p[0] = (real)(0.5 + step * 0.005), p[1] = (real)(1 + 0.1 * sin(step * 0.1)), p[2] = (real)0.55;
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 1), NLIST_OK);
        for (e = nlist_of(&list, 0); nlist_next(&e);) {
            real q[3];
            int side;
            (void)nlist_mesh_closest(&s.mesh, nlist_key_triangle(e.id), p, q);
            side = q[1] > 1 ? 1 : 2;
            CHECK(!(sides & side) && oracle_holds(e.history, 16, step ? (uint32_t)side : 0));
            sides |= side;
            oracle_write(e.history, 16, (uint32_t)side);
        }
        CHECK(sides == 3 && list.total == 2);
    }
    nlist_free(&list);
    drop_surface(&s);
}

static double low(double x, double y) { (void)x; (void)y; return 0.4; }

/* From one wall to another that has nothing to do with it: the old contact ends, the new one knows nothing of it. */
static void test_another_wall(void **state)
{
    static const real places[4][3] = {{1, 1, (real)0.1}, {1, 1, (real)0.3}, {1, 1, (real)0.1}, {(real)1.5, (real)0.5, (real)0.1}};
    surface s = {0};
    nlist list = {0};
    nlist_desc d = wall_desc(0.25);
    int step;
    (void)state;
    add_floor(&s, 4, 4, 0.7, 0, flat);
    add_floor(&s, 4, 4, 0.7, 0, low);
    hand_over(&s, INDEXED);
    d.history = 4;
    d.events = 1;
    for (step = 0; step < 4; step++) { /* floor, ceiling, floor, and far away on the floor */
        nlist_each e;
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, places[step], 0, 1), NLIST_OK);
        e = nlist_of(&list, 0);
        CHECK(nlist_next(&e) && oracle_holds(e.history, 4, 0));
        oracle_write(e.history, 4, 6);
        CHECK(list.total == 1 && list.event_count[NLIST_BEGUN] == 1 && list.event_count[NLIST_ENDED] == (step > 0));
        CHECK(list.event_count[NLIST_PERSISTED] == 0);
        if (step) CHECK(oracle_holds(nlist_history_before(&list, list.event[NLIST_ENDED][0].entry), 4, 6));
    }
    nlist_free(&list);
    drop_surface(&s);
}

/* A mesh that has lost triangles since the last build: a key of one that is gone wanders nowhere, although its corners lie in memory
   still, behind those of the mesh. */
static void test_fewer_triangles(void **state)
{
    real corners[18] = {9, 0, 0, 12, 0, 0, 9, 3, 0, /* and, under the particle: */ 0, 0, 0, 3, 0, 0, 0, 3, 0};
    static const real p[3] = {(real)0.5, (real)0.5, (real)0.25};
    nlist list = {0};
    nlist_desc d = wall_desc(0.5);
    lbvh tree = {0};
    lbvh_desc t;
    nlist_mesh mesh;
    nlist_each e;
    (void)state;
    memset(&t, 0, sizeof t);
    memset(&mesh, 0, sizeof mesh);
    t.kind = LBVH_TRIANGLES;
    d.history = 4;
    d.events = 1;
    mesh.vertices = corners;
    mesh.triangles = 2;
    CHECK(lbvh_build(&tree, &t, corners, 0, 2) == LBVH_OK);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &tree, &mesh, p, 0, 1), NLIST_OK);
    e = nlist_of(&list, 0);
    CHECK(list.total == 1 && list.triangles == 2 && nlist_next(&e) && e.id == nlist_key(1, FACE));
    oracle_write(e.history, 4, 6);
    memcpy(corners, corners + 9, 9 * sizeof *corners); /* the first moves to where the second was, which goes */
    mesh.triangles = 1;
    CHECK(lbvh_build(&tree, &t, corners, 0, 1) == LBVH_OK);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &tree, &mesh, p, 0, 1), NLIST_OK);
    e = nlist_of(&list, 0);
    CHECK(list.total == 1 && list.triangles == 1 && nlist_next(&e) && e.id == nlist_key(0, FACE));
    CHECK(oracle_holds(e.history, 4, 0) && list.event_count[NLIST_BEGUN] == 1 && list.event_count[NLIST_ENDED] == 1);
    nlist_free(&list);
    lbvh_free(&tree);
}

/* A sphere that touches all six walls of a cube, each of many triangles, and moves: now this contact goes on to another triangle, now
   that, wherever it is in the row, and each takes along what it got at the beginning. */
static void test_six_walls(void **state)
{
    enum { SQUARES = 8, OF_WALL = 2 * SQUARES * SQUARES };
    surface s = {0};
    nlist list = {0};
    nlist_desc d = wall_desc(1.125);
    int32_t was[6] = {-1, -1, -1, -1, -1, -1}, place, i;
    int step, wall, wandered = 0, wandered_behind = 0;
    (void)state;
    for (wall = 0; wall < 6; wall++) {
        int32_t const first = (int32_t)(arrlen(s.vertex) / 3);
        add_floor(&s, SQUARES, SQUARES, 0.25, 0.1, flat);
        for (i = first; i < (int32_t)(arrlen(s.vertex) / 3); i++) { /* stand it up, along axis wall / 2, on one side or the other */
            real *const v = s.vertex + 3 * i, x = v[0], y = v[1];
            v[wall / 2] = (real)(2 * (wall % 2));
            v[(wall / 2 + 1) % 3] = x;
            v[(wall / 2 + 2) % 3] = y;
        }
    }
    hand_over(&s, LOOSE);
    d.history = 4;
    for (step = 0; step < 120; step++) {
        int32_t order[6], now[6];
        real p[3];
        nlist_each e = nlist_of(&list, 0);
        for (place = 0; nlist_next(&e); place++) order[e.id / 8 / OF_WALL] = place;
        for (i = 0; i < 3; i++) p[i] = (real)(1 + 0.06 * sin(0.05 * (i + 2) * step + i));
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 1), NLIST_OK);
        CHECK(list.total == 6);
        e = nlist_of(&list, 0);
        while (nlist_next(&e)) {
            wall = e.id / 8 / OF_WALL;
            CHECK(oracle_holds(e.history, 4, step ? (uint32_t)wall + 1 : 0));
            if (step == 0) oracle_write(e.history, 4, (uint32_t)wall + 1);
            now[wall] = e.id;
            wandered += step && was[wall] != e.id;
            wandered_behind += step && was[wall] != e.id && order[wall] >= 2;
        }
        memcpy(was, now, sizeof was);
    }
    CHECK(wandered > 10 && wandered_behind > 5);
    nlist_free(&list);
    drop_surface(&s);
}

/* Many spheres that move at random over hills. A key that was there keeps its bytes; a new one has zeros, or the bytes of an old
   contact of the same particle that is gone, and nobody else has those. */
static void check_wandering(const nlist *list, const oracle_snapshot *was)
{
    int32_t i;
    int64_t first = 0, k;
    for (i = 0; i < list->n; i++) {
        int64_t const next = first + was->counts[i];
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) {
            int64_t same_key = -1, same_bytes = -1;
            nlist_each f = nlist_of(list, i);
            for (k = first; k < next; k++) {
                if (was->ids[k] == e.id) same_key = k;
                if (same(was->history + 8 * k, e.history, 8)) same_bytes = k;
            }
            if (same_key >= 0) CHECK(same_bytes == same_key);
            else if (same_bytes < 0) CHECK(oracle_holds(e.history, 8, 0));
            else CHECK(nlist_find(list, i, was->ids[same_bytes]) < 0);
            while (same_bytes >= 0 && nlist_next(&f)) CHECK(f.entry == e.entry || !same(f.history, e.history, 8));
        }
        first = next;
    }
}

static void test_random_moves(void **state)
{
    int const rounds = 40 / share() + 2;
    int64_t wandered = 0;
    int round, step;
    (void)state;
    for (round = 0; round < rounds; round++) {
        surface s = {0};
        nlist list = {0};
        nlist_desc d = wall_desc(0.3);
        int32_t const n = 25;
        real *pos = NEW(real, 3 * n);
        uint32_t stamp = 0;
        int32_t i;
        add_floor(&s, 8, 8, 0.25, 0.1, round % 2 ? hilly : flat);
        hand_over(&s, round % FORMS);
        d.history = 8;
        d.events = 1;
        for (i = 0; i < 3 * n; i++) pos[i] = i % 3 < 2 ? between(0, 2) : between(0, (real)0.4);
        for (step = 0; step < 60; step++) {
            oracle_snapshot was;
            oracle_take(&was, &list);
            for (i = 0; i < 3 * n; i++) pos[i] += between((real)-0.02, (real)0.02);
            CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, pos, 0, n), NLIST_OK);
            CHECK_RESULT(nlist_validate(&list), NLIST_OK);
            CHECK(list.event_count[NLIST_BEGUN] + list.event_count[NLIST_PERSISTED] == list.total);
            if (step) check_wandering(&list, &was);
            for (i = 0; i < n; i++) {
                nlist_each e = nlist_of(&list, i);
                for (; nlist_next(&e); oracle_write(e.history, 8, ++stamp)) {
                    int64_t k, first = 0;
                    int32_t before;
                    for (before = 0; step && before < i; before++) first += was.counts[before];
                    for (k = first; step && k < first + was.counts[i] && was.ids[k] != e.id; k++) {}
                    wandered += step && k == first + was.counts[i] && !oracle_holds(e.history, 8, 0);
                }
            }
            oracle_drop_snapshot(&was);
        }
        free(pos);
        nlist_free(&list);
        drop_surface(&s);
    }
    CHECK(wandered > rounds * 20);
}

/* ------------------------------------------------------------------------------------------------
   The rest of the calls, with lists of triangles
   ------------------------------------------------------------------------------------------------ */

/* Contacts that stay: through a remap, a file, and another build at the same places. */
static void test_walls_keep_history(void **state)
{
    int round;
    (void)state;
    for (round = 0; round < 20; round++) {
        surface s = {0};
        nlist list = {0}, loaded = {0};
        oracle_memory m;
        nlist_desc d = wall_desc(0.25);
        int32_t const n = 30;
        real *pos = NEW(real, 3 * n), *after = NEW(real, 3 * n);
        int32_t new_id[30], i;
        int64_t size, needed;
        void *bytes;
        memset(&m, 0, sizeof m);
        add_floor(&s, 6, 6, 0.25, 0.1, hilly);
        hand_over(&s, round % FORMS);
        d.history = 1 + round;
        d.events = 1;
        d.layout = round % 2 ? NLIST_DYNAMIC : NLIST_COMPACT;
        for (i = 0; i < 3 * n; i++) pos[i] = i % 3 < 2 ? between(0, (real)1.5) : between((real)-0.3, (real)0.3);
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, pos, 0, n), NLIST_OK);
        CHECK_FINE(oracle_check_events(&m, &list));
        CHECK_FINE(oracle_remember(&m, &list));
        oracle_stamp(&m, &list, 1, &dice);
        for (i = 0; i < n; i++) new_id[i] = i < 5 ? -1 : (7 * i + 3) % n;
        CHECK_RESULT(nlist_remap(&list, new_id, n), NLIST_OK);
        oracle_rename(&m, new_id, n, 1);
        CHECK_FINE(oracle_recall(&m, &list));
        CHECK_RESULT(nlist_save(&list, NULL, 0, &size), NLIST_BUFFER_TOO_SMALL);
        bytes = exactly((size_t)size);
        CHECK_RESULT(nlist_save(&list, bytes, size, &needed), NLIST_OK);
        CHECK_RESULT(nlist_load(&loaded, &d, bytes, size), NLIST_OK);
        CHECK(loaded.keys && loaded.desc.layout == NLIST_DYNAMIC && loaded.triangles == s.mesh.triangles);
        CHECK_RESULT(nlist_validate(&loaded), NLIST_OK);
        CHECK_FINE(oracle_recall(&m, &loaded));
        for (i = 0; i < 3 * n; i++) after[i] = 9; /* those that are new are far away */
        for (i = 5; i < n; i++) memcpy(after + 3 * new_id[i], pos + 3 * i, 3 * sizeof(real));
        CHECK_RESULT(nlist_build_mesh(&loaded, &d, &s.tree, &s.mesh, after, 0, n), NLIST_OK);
        CHECK_FINE(oracle_check_events(&m, &loaded));
        CHECK_FINE(oracle_remember(&m, &loaded));
        CHECK(m.begun == 0 && m.ended == 0);
        for (i = 0; i < 3 * n; i++) after[i] = 9;
        CHECK_RESULT(nlist_build_mesh(&loaded, &d, &s.tree, &s.mesh, after, 0, n), NLIST_OK);
        CHECK_FINE(oracle_check_events(&m, &loaded));
        CHECK(loaded.total == 0 && loaded.event_count[NLIST_ENDED] > 0);
        free(bytes);
        free(pos);
        free(after);
        oracle_memory_free(&m);
        nlist_free(&list);
        nlist_free(&loaded);
        drop_surface(&s);
    }
}

static int count_calls(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    (void)i;
    (void)history;
    ++*(int *)user;
    own[0] = 1;
    own[1] = (real)nlist_key_triangle(j);
    other[0] = REAL_NAN;
    return 1;
}

/* Sums over walls: each particle's own only. Pairs: the particle and the key, and no shift. */
static void test_wall_sums_and_pairs(void **state)
{
    int mode, unit;
    (void)state;
    for (mode = NLIST_AUTO; mode <= NLIST_REDUCE; mode++) for (unit = 0; unit < 2; unit++) {
        surface s = {0};
        nlist list = {0};
        nlist_desc d = wall_desc(0.25);
        nlist_sums how;
        int32_t const n = 20;
        real pos[60], sums[40];
        int32_t *pair, i;
        int64_t needed = 0, k = 0;
        int called = 0;
        add_floor(&s, 4, 4, 0.25, 0.1, hilly);
        hand_over(&s, INDEXED);
        for (i = 0; i < 3 * n; i++) pos[i] = i % 3 < 2 ? between(0, 1) : between((real)-0.3, (real)0.3);
        d.half = 1; /* does not apply */
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, pos, 0, n), NLIST_OK);
        CHECK(!list.desc.half && list.total > 5);
        how.values = 2;
        how.mode = (nlist_mode)mode;
        how.unit = unit ? 0.5 : 0;
        for (i = 0; i < 2 * n; i++) sums[i] = 0;
        CHECK_RESULT(nlist_sum(&list, &how, count_calls, &called, sums), NLIST_OK);
        CHECK(called == list.total);
        pair = NEW(int32_t, 2 * list.total);
        CHECK_RESULT(nlist_pairs(&list, pair, list.total, &needed, NULL, 0, NULL), NLIST_OK);
        CHECK_RESULT(nlist_pairs(&list, pair, list.total, &needed, pos, 0, pair), NLIST_BAD_ARGUMENT);
        CHECK_RESULT(nlist_pairs(&list, pair, list.total, &needed, NULL, 0, NULL), NLIST_OK);
        for (i = 0; i < n; i++) {
            nlist_each e = nlist_of(&list, i);
            double numbers = 0;
            for (; nlist_next(&e); k++) {
                CHECK(pair[2 * k] == i && pair[2 * k + 1] == e.id);
                numbers += nlist_key_triangle(e.id);
            }
            CHECK((double)sums[2 * i] == row_length(&list, i) && (double)sums[2 * i + 1] == numbers);
        }
        CHECK(k == needed && needed == list.total);
        free(pair);
        nlist_free(&list);
        drop_surface(&s);
    }
}

/* Refusals leave the list as it was. */
static void test_bad_meshes(void **state)
{
    surface s = {0};
    nlist list = {0};
    lbvh none = {0}, plane = {0};
    lbvh_desc t;
    nlist_desc d = wall_desc(1), bad;
    nlist_mesh mesh;
    oracle_snapshot before;
    static const real p[6] = {(real)0.5, (real)0.5, (real)0.25, 1, 1, (real)0.5};
    real spoilt[6];
    (void)state;
    add_floor(&s, 2, 2, 1, 0, flat);
    hand_over(&s, INDEXED);
    d.history = 4;
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 2), NLIST_OK);
    oracle_write(nlist_of(&list, 0).all_history, 4, 5);
    oracle_take(&before, &list);
    CHECK_RESULT(nlist_build_mesh(NULL, &d, &s.tree, &s.mesh, p, 0, 2), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_mesh(&list, NULL, &s.tree, &s.mesh, p, 0, 2), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_mesh(&list, &d, NULL, &s.mesh, p, 0, 2), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, NULL, p, 0, 2), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, NULL, 0, 2), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, -1), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 2 * sizeof(real), 2), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &none, &s.mesh, p, 0, 2), NLIST_BAD_SOURCE);
    mesh = s.mesh;
    mesh.vertices = NULL;
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &mesh, p, 0, 2), NLIST_BAD_ARGUMENT);
    mesh = s.mesh;
    mesh.stride = 2 * sizeof(real);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &mesh, p, 0, 2), NLIST_BAD_ARGUMENT);
    mesh = s.mesh;
    mesh.triangles--;
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &mesh, p, 0, 2), NLIST_BAD_SOURCE);
    mesh.triangles = -1;
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &mesh, p, 0, 2), NLIST_BAD_ARGUMENT);
    mesh.triangles = (1 << 28) + 1;
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &mesh, p, 0, 2), NLIST_TOO_MANY);
    bad = d;
    bad.layout = NLIST_STATIC;
    CHECK_RESULT(nlist_build_mesh(&list, &bad, &s.tree, &s.mesh, p, 0, 2), NLIST_BAD_OPTION);
    bad.layout = NLIST_HYBRID;
    CHECK_RESULT(nlist_build_mesh(&list, &bad, &s.tree, &s.mesh, p, 0, 2), NLIST_BAD_OPTION);
    bad = d;
    bad.skin = (real)0.125;
    CHECK_RESULT(nlist_build_mesh(&list, &bad, &s.tree, &s.mesh, p, 0, 2), NLIST_BAD_SKIN);
    bad = d;
    bad.radius = 0;
    CHECK_RESULT(nlist_build_mesh(&list, &bad, &s.tree, &s.mesh, p, 0, 2), NLIST_BAD_RADIUS);
    bad = d;
    bad.capacity = 1;
    CHECK_RESULT(nlist_build_mesh(&list, &bad, &s.tree, &s.mesh, p, 0, 2), NLIST_LIST_FULL);
    CHECK(list.needed_entries == 2);
    memcpy(spoilt, p, sizeof p);
    spoilt[4] = REAL_NAN;
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, spoilt, 0, 2), NLIST_NOT_FINITE);
    CHECK(list.bad_id == 1);
    CHECK_RESULT(nlist_build_brute(&list, &d, p, 0, 2), NLIST_BAD_HISTORY);
    memset(&t, 0, sizeof t);
    t.kind = LBVH_TRIANGLES;
    t.dim = 2;
    t.indices = s.mesh.indices;
    t.vertices = s.mesh.vertex_count;
    CHECK(lbvh_build(&plane, &t, s.mesh.vertices, 3 * sizeof(real), s.mesh.triangles) == LBVH_OK);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &plane, &s.mesh, p, 0, 2), NLIST_BAD_DIM);
    CHECK_FINE(oracle_check_unchanged(&before, &list));
    CHECK_RESULT(nlist_validate(&list), NLIST_OK);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 2), NLIST_OK);
    memset(&mesh, 0, sizeof mesh); /* no triangles, no particles */
    CHECK_RESULT(nlist_build_mesh(&list, &d, &none, &mesh, p, 0, 2), NLIST_OK);
    CHECK(list.n == 2 && list.total == 0);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, NULL, 0, 0), NLIST_OK);
    CHECK(list.n == 0);
    oracle_drop_snapshot(&before);
    lbvh_free(&plane);
    nlist_free(&list);
    drop_surface(&s);
}

/* Memory that runs out at each allocation. */
static void test_walls_out_of_memory(void **state)
{
    surface s = {0};
    real pos[90];
    int64_t k, total = 1, all_failures = 0;
    int32_t i;
    (void)state;
    add_floor(&s, 4, 4, 0.25, 0.1, hilly);
    hand_over(&s, LOOSE);
    for (i = 0; i < 90; i++) pos[i] = i % 3 < 2 ? between(0, 1) : between((real)-0.2, (real)0.2);
    for (k = 0; k <= total; k++) {
        heap h = {0, 0, 0, 0, 0, 0};
        nlist list = {0};
        nlist_desc d = wall_desc(0.25);
        oracle_snapshot before;
        nlist_result r;
        int failures = 0, step;
        h.fail_at = k;
        d.history = 4;
        d.events = 1;
        d.allocator = allocator_of(&h);
        for (step = 1; step <= 3; step++) {
            oracle_take(&before, &list);
            r = nlist_build_mesh(&list, &d, &s.tree, &s.mesh, pos, 0, 10 * step);
            if (r == NLIST_OUT_OF_MEMORY) {
                failures++;
                CHECK_FINE(oracle_check_unchanged(&before, &list));
                r = nlist_build_mesh(&list, &d, &s.tree, &s.mesh, pos, 0, 10 * step);
            }
            CHECK_RESULT(r, NLIST_OK);
            oracle_drop_snapshot(&before);
        }
        CHECK(failures <= (k > 0) && h.live_bytes == nlist_bytes(&list)); /* none where less memory did */
        all_failures += failures;
        if (k == 0) total = h.calls;
        nlist_free(&list);
        CHECK(h.live_blocks == 0 && !h.wrong);
    }
    CHECK(total > 10 && all_failures > total / 3);
    drop_surface(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_triangle),
        TEST(test_shared_edge),
        TEST(test_fan),
        TEST(test_roof_and_gutter),
        TEST(test_corner),
        TEST(test_degenerate),
        TEST(test_random_surfaces),
        TEST(test_rolling),
        TEST(test_rolling_over_a_ridge),
        TEST(test_rolling_in_a_valley),
        TEST(test_another_wall),
        TEST(test_fewer_triangles),
        TEST(test_six_walls),
        TEST(test_random_moves),
        TEST(test_walls_keep_history),
        TEST(test_wall_sums_and_pairs),
        TEST(test_bad_meshes),
        TEST(test_walls_out_of_memory),
    };
    if (getenv("NLIST_TEST_ONLY")) cmocka_set_test_filter(getenv("NLIST_TEST_ONLY"));
    return cmocka_run_group_tests_name("nlist walls", tests, NULL, NULL);
}
