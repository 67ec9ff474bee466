/* triangles.c - a part of test_lbvh.c: nearest points of triangles, rays against triangles,
   watertight meshes.
   SPDX-License-Identifier: MIT OR Unlicense */

static double dot3(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static double apart(const real *a, const real *b)
{
    double d[3];
    int x;
    for (x = 0; x < 3; x++) d[x] = (double)a[x] - (double)b[x];
    return sqrt(dot3(d, d));
}

/* No point of a fine net over the triangle is closer to p than q, and q lies in the triangle: some
   point of the net is near it. */
static void check_closest(const real *p, const real *a, const real *b, const real *c, const real *q,
    double size)
{
    enum { NET = 48 };
    double const length = size, slack = 40 * REAL_EPSILON * (size + apart(p, a));
    double least = INFINITY;
    int i, j, x;
    for (i = 0; i <= NET; i++) for (j = 0; i + j <= NET; j++) {
        real at[3];
        double to_q;
        for (x = 0; x < 3; x++)
            at[x] = (real)((double)a[x] + ((double)b[x] - (double)a[x]) * i / NET +
                ((double)c[x] - (double)a[x]) * j / NET);
        CHECK(apart(p, q) <= apart(p, at) + slack);
        to_q = apart(q, at);
        if (to_q < least) least = to_q;
    }
    CHECK(least <= 1.5 * length / NET + slack);
}

/* Which of the seven: a corner is that corner's bits, an edge's point is on the edge, a face's
   projects p. */
static void check_feature(lbvh_feature feature, const real *p, const real *const corner[3],
    const real *q, double size)
{
    double const slack = 60 * REAL_EPSILON * (size + apart(p, corner[0]));
    int k, x;
    CHECK(feature >= LBVH_FACE && feature <= LBVH_VERTEX_C);
    if (feature >= LBVH_VERTEX_A) {
        for (x = 0; x < 3; x++) CHECK(q[x] == corner[feature - LBVH_VERTEX_A][x]);
        return;
    }
    for (k = 0; k < 3; k++) { /* p - q is square to the edge it lies on, or to all */
        const real *from = corner[k], *to = corner[(k + 1) % 3];
        double along[3], away[3];
        if (feature != LBVH_FACE && (int)feature - (int)LBVH_EDGE_AB != k) continue;
        for (x = 0; x < 3; x++)
            along[x] = (double)to[x] - (double)from[x], away[x] = (double)p[x] - (double)q[x];
        CHECK(fabs(dot3(along, away)) <= slack * (sqrt(dot3(along, along)) + size) * 8);
        if (feature != LBVH_FACE)
            CHECK(fabs(apart(q, from) + apart(q, to) - apart(from, to)) <= slack);
    }
}

static void test_closest_by_hand(void **state)
{
    static const real a[3] = {0, 0, 0}, b[3] = {4, 0, 0}, c[3] = {0, 4, 0};
    static const struct { real p[3], q[3]; lbvh_feature feature; } cases[] = {
        {{1, 1, 5}, {1, 1, 0}, LBVH_FACE},
        {{1, 2, -3}, {1, 2, 0}, LBVH_FACE},
        {{1, 1, 0}, {1, 1, 0}, LBVH_FACE},
        {{2, -3, 1}, {2, 0, 0}, LBVH_EDGE_AB},
        {{3, 0, 0}, {3, 0, 0}, LBVH_EDGE_AB},
        {{1, 0, 2}, {1, 0, 0}, LBVH_EDGE_AB},
        {{3, 3, 1}, {2, 2, 0}, LBVH_EDGE_BC},
        {{1, 3, 0}, {1, 3, 0}, LBVH_EDGE_BC},
        {{5, 5, -2}, {2, 2, 0}, LBVH_EDGE_BC},
        {{-1, 2, 0}, {0, 2, 0}, LBVH_EDGE_CA},
        {{0, 3, 0}, {0, 3, 0}, LBVH_EDGE_CA},
        {{-2, 1, 7}, {0, 1, 0}, LBVH_EDGE_CA},
        {{-1, -1, 2}, {0, 0, 0}, LBVH_VERTEX_A},
        {{0, 0, 0}, {0, 0, 0}, LBVH_VERTEX_A},
        {{0, -5, 0}, {0, 0, 0}, LBVH_VERTEX_A},
        {{6, -1, 0}, {4, 0, 0}, LBVH_VERTEX_B},
        {{4, 0, 3}, {4, 0, 0}, LBVH_VERTEX_B},
        {{9, 1, 1}, {4, 0, 0}, LBVH_VERTEX_B},
        {{-1, 7, 0}, {0, 4, 0}, LBVH_VERTEX_C},
        {{0, 4, 0}, {0, 4, 0}, LBVH_VERTEX_C},
        {{1, 9, 2}, {0, 4, 0}, LBVH_VERTEX_C},
    };
    int k, x, shift;
    (void)state;
    /* at the origin and elsewhere, all whole numbers */
    for (k = 0; k < COUNT_OF(cases); k++) for (shift = 0; shift < 2; shift++) {
        real at[4][3], q[3] = {-7, -7, -7};
        for (x = 0; x < 3; x++) {
            real const by = (real)(shift * 16 * (x + 1));
            at[0][x] = cases[k].p[x] + by, at[1][x] = a[x] + by, at[2][x] = b[x] + by,
                at[3][x] = c[x] + by;
        }
        CHECK(lbvh_closest_on_triangle(at[0], at[1], at[2], at[3], q) == cases[k].feature);
        for (x = 0; x < 3; x++) CHECK(q[x] - (real)(shift * 16 * (x + 1)) == cases[k].q[x]);
    }
}

static void random_point(real p[3], real most)
{
    int a;
    for (a = 0; a < 3; a++) p[a] = between(-most, most);
}

static void test_closest(void **state)
{
    int const rounds = 4000 / share();
    int k, seen[7] = {0, 0, 0, 0, 0, 0, 0};
    (void)state;
    dice = wl_seed(24);
    for (k = 0; k < rounds; k++) {
        real v[3][3], p[3], q[3], r[3];
        const real *corner[3];
        double const size = 4;
        lbvh_feature feature;
        int x, turn;
        for (x = 0; x < 3; x++) random_point(v[x], 1), corner[x] = v[x];
        for (x = 0; x < 3 && k % 4 == 1; x++) /* a sliver */
            v[2][x] = v[0][x] + (v[1][x] - v[0][x]) * (real)0.5 + between((real)-0.01, (real)0.01);
        random_point(p, k % 3 ? 2 : (real)0.6);
        feature = lbvh_closest_on_triangle(p, v[0], v[1], v[2], q);
        check_closest(p, v[0], v[1], v[2], q, size);
        check_feature(feature, p, corner, q, size);
        seen[feature]++;
        /* the corners in any order: as close, by the same kind of feature */
        for (turn = 1; turn < 6; turn++) {
            int const i = turn % 3, j = turn < 3 ? (i + 1) % 3 : (i + 2) % 3;
            (void)lbvh_closest_on_triangle(p, v[i], v[j], v[3 - i - j], r);
            CHECK(fabs(apart(p, q) - apart(p, r)) <= 60 * REAL_EPSILON * size &&
                apart(q, r) <= 1e-2 * size);
        }
    }
    for (k = 0; k < 7; k++) CHECK(seen[k] > 0);
}

/* Triangles without area: corners on a line, or on a point, in every order. */
static void test_closest_on_segments(void **state)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1},
        {2, 1, 0}};
    int k, order, x;
    (void)state;
    dice = wl_seed(25);
    for (k = 0; k < 2000 / share(); k++) {
        real v[3][3], p[3], q[3], first[3] = {0, 0, 0};
        real const middle = (real)0.25 * (real)roll(5); /* 0 and 1: two corners are one */
        double length2 = 0, along = 0, want = 0, t;
        for (x = 0; x < 3; x++) {
            v[0][x] = (real)(roll(17) - 8);
            /* differences of 4: their quarters are whole */
            v[1][x] = k % 5 ? (real)(4 * (roll(9) - 4)) + v[0][x] : v[0][x];
            v[2][x] = v[0][x] + (v[1][x] - v[0][x]) * middle;
            p[x] = between(-12, 12);
            length2 += (double)(v[1][x] - v[0][x]) * (double)(v[1][x] - v[0][x]);
            along += (double)(v[1][x] - v[0][x]) * ((double)p[x] - (double)v[0][x]);
        }
        t = length2 > 0 ? along / length2 : 0;
        t = t < 0 ? 0 : t > 1 ? 1 : t;
        for (x = 0; x < 3; x++) {
            double const d = (double)p[x] - ((double)v[0][x] + t * (double)(v[1][x] - v[0][x]));
            want += d * d;
        }
        for (order = 0; order < 6; order++) {
            const real *corner[3];
            lbvh_feature feature;
            for (x = 0; x < 3; x++) corner[x] = v[orders[order][x]];
            feature = lbvh_closest_on_triangle(p, corner[0], corner[1], corner[2], q);
            CHECK(feature != LBVH_FACE && fabs(apart(p, q) - sqrt(want)) <= 100 * REAL_EPSILON *
                20);
            check_feature(feature, p, corner, q, 20);
            if (order == 0) memcpy(first, q, sizeof q);
            CHECK(apart(first, q) <= 4e2 * REAL_EPSILON * 20);
        }
    }
}

static long double long_dot(const long double *a, const long double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* The distance of p to the segment from a to b. */
static long double to_segment(const long double *p, const long double *a, const long double *b)
{
    long double d[3], at[3], length2, t;
    int x;
    for (x = 0; x < 3; x++) d[x] = b[x] - a[x], at[x] = p[x] - a[x];
    length2 = long_dot(d, d);
    t = length2 > 0 ? long_dot(d, at) / length2 : 0;
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    for (x = 0; x < 3; x++) at[x] -= t * d[x];
    return sqrtl(long_dot(at, at));
}

/* The distance of p to a triangle: a convex function of the place of a segment that is moved from
   vertex 0 to the opposite edge, so thirds that do not hold the minimum are cut off. */
static long double to_triangle(const real *p, const real v[3][3])
{
    long double at[3], from = 0, to = 1, least = INFINITY;
    int k, side, x;
    for (x = 0; x < 3; x++) at[x] = (long double)p[x];
    for (k = 0; k < 70; k++) {
        long double distance[2];
        for (side = 0; side < 2; side++) {
            long double const t = from + (to - from) * (side + 1) / 3;
            long double a[3], b[3];
            for (x = 0; x < 3; x++) {
                a[x] = (long double)v[0][x] + t * ((long double)v[1][x] - (long double)v[0][x]);
                b[x] = (long double)v[0][x] + t * ((long double)v[2][x] - (long double)v[0][x]);
            }
            distance[side] = to_segment(at, a, b);
            if (distance[side] < least) least = distance[side];
        }
        if (distance[0] <= distance[1]) to -= (to - from) / 3;
        else from += (to - from) / 3;
    }
    return least;
}

/* A triangle of edges of about 1 whose height is `height`, its corners in some order; with whole
   numbers of about 1e5 in every second one. And a point near it, as often in its plane. */
static void put_sliver(int k, real height, real v[3][3], real *p)
{
    real const size = k % 2 ? (real)131072 : (real)1, about = (real)(k % 3 - 1) / 2;
    real const away = (real)pow(10, -(double)(k / 8 % 8)) * (k % 5 ? 1 : 8);
    real e[3], up[3], normal[3], foot = between((real)-0.2, (real)1.2), t = between(0, 1), y, z;
    int const first = roll(3);
    int x;
    if (k % 7 == 0) foot = height * between(-2, 2);     /* two edges are long */
    random_point(e, 1), random_point(up, 1);
    for (x = 0; x < 3; x++)
        normal[x] = e[(x + 1) % 3] * up[(x + 2) % 3] - e[(x + 2) % 3] * up[(x + 1) % 3];
    if (k % 4 == 0) t = foot + height * between(-1, 1); /* near the apex */
    y = k % 4 < 2 ? height * between(0, 1) : k % 4 == 2 ? height * between(-2, 3) : away;
    z = k / 4 % 2 ? away * between(-1, 1) : height * between(-1, 1);
    for (x = 0; x < 3; x++) {
        v[first][x] = size * about;
        v[(first + 1) % 3][x] = size * (about + e[x]);
        v[(first + 2) % 3][x] = size * (about + foot * e[x] + height * up[x]);
        p[x] = size * (about + t * e[x] + y * up[x] + z * normal[x]);
    }
    for (x = 0; k % 2 && x < 9; x++) v[x / 3][x % 3] = (real)floor((double)v[x / 3][x % 3]);
}

/* Whatever the height: no further than the closest point and 1e-5 of the longest edge; on the
   triangle, and on the feature. */
static void test_closest_on_slivers(void **state)
{
    int k, seen[7] = {0, 0, 0, 0, 0, 0, 0};
    (void)state;
    dice = wl_seed(26);
    for (k = 0; k < 20000 / share(); k++) {
        real v[3][3], p[3], q[3];
        long double edge = 0, slack, at[3], ends[2][3];
        lbvh_feature feature;
        int x, side;
        put_sliver(k, (real)pow(10, -(double)roll(17) / 2), v, p);
        for (side = 0; side < 3; side++)
            edge = fmaxl(edge, (long double)apart(v[side], v[(side + 1) % 3]));
        slack = 1e-5L * edge;
        feature = lbvh_closest_on_triangle(p, v[0], v[1], v[2], q);
        CHECK((long double)apart(p, q) <= to_triangle(p, (const real (*)[3])v) + slack);
        CHECK(to_triangle(q, (const real (*)[3])v) <= slack);
        seen[feature]++;
        if (feature >= LBVH_VERTEX_A) CHECK(memcmp(q, v[feature - LBVH_VERTEX_A], sizeof q) == 0);
        if (feature == LBVH_FACE || feature >= LBVH_VERTEX_A) continue;
        for (x = 0; x < 3; x++) {
            at[x] = (long double)q[x];
            for (side = 0; side < 2; side++)
                ends[side][x] = (long double)v[((int)feature - (int)LBVH_EDGE_AB + side) % 3][x];
        }
        CHECK(to_segment(at, ends[0], ends[1]) <= slack);
    }
    for (k = 0; k < 7; k++) CHECK(seen[k] > 0);
}

/* The weights of a hit make a point of the triangle, also where origin + t direction is none. */
static void test_weights_on_slivers(void **state)
{
    int k, hits = 0;
    (void)state;
    dice = wl_seed(31);
    for (k = 0; k < 20000 / share(); k++) {
        real v[3][3], p[3], q[3], origin[3], direction[3], t, u, w;
        double edge = 0;
        int x;
        put_sliver(k, (real)pow(10, -(double)roll(11) / 2), v, p);
        for (x = 0; x < 3; x++) edge = fmax(edge, apart(v[x], v[(x + 1) % 3]));
        random_point(origin, (real)(10 * edge));
        for (x = 0; x < 3; x++) direction[x] = p[x] - origin[x];
        if (!lbvh_ray_triangle(origin, direction, v[0], v[1], v[2], &t, &u, &w)) continue;
        hits++;
        CHECK(u >= 0 && w >= 0 && (double)u + (double)w <= 1 + 4 * REAL_EPSILON);
        for (x = 0; x < 3; x++)
            q[x] = v[0][x] + u * (v[1][x] - v[0][x]) + w * (v[2][x] - v[0][x]);
        CHECK(to_triangle(q, (const real (*)[3])v) <= /* thirds: to 1e-12 */
              (long double)((16 * REAL_EPSILON + 1e-11) * edge));
    }
    CHECK(hits > 200 / share());
}

/* Where a line meets the plane of a triangle, and the weights of the corners there, in long double.
   0: parallel. */
static int plane_hit(const real *o, const real *d, const real v[3][3], long double *t,
    long double weight[3])
{
    long double e1[3], e2[3], to[3], h[3], k[3], det;
    int x;
    for (x = 0; x < 3; x++) {
        e1[x] = (long double)v[1][x] - (long double)v[0][x];
        e2[x] = (long double)v[2][x] - (long double)v[0][x];
        to[x] = (long double)o[x] - (long double)v[0][x];
    }
    for (x = 0; x < 3; x++) {
        int const y = (x + 1) % 3, z = (x + 2) % 3;
        h[x] = (long double)d[y] * e2[z] - (long double)d[z] * e2[y];
        k[x] = to[y] * e1[z] - to[z] * e1[y];
    }
    det = e1[0] * h[0] + e1[1] * h[1] + e1[2] * h[2];
    if (fabsl(det) < 1e-12L) return 0;
    weight[1] = (to[0] * h[0] + to[1] * h[1] + to[2] * h[2]) / det;
    weight[2] = ((long double)d[0] * k[0] + (long double)d[1] * k[1] + (long double)d[2] * k[2]) /
        det;
    weight[0] = 1 - weight[1] - weight[2];
    *t = (e2[0] * k[0] + e2[1] * k[1] + e2[2] * k[2]) / det;
    return 1;
}

static void test_ray_triangle(void **state)
{
    int const rounds = 60000 / share();
    int k, hits = 0, misses = 0, behind = 0, x;
    (void)state;
    dice = wl_seed(26);
    for (k = 0; k < rounds; k++) {
        real v[3][3], o[3], d[3], t = -7, u = -7, w = -7;
        long double at, weight[3], least;
        int hit;
        for (x = 0; x < 3; x++) random_point(v[x], 1);
        random_point(o, 2);
        random_point(d, 1);
        if (k % 2)
            for (x = 0; x < 3; x++)
                d[x] = (v[0][x] + v[1][x] + v[2][x]) / 3 - o[x] + between((real)-0.3, (real)0.3);
        if (k % 16 == 1) for (x = 0; x < 3; x++) d[x] = -d[x];
        hit = lbvh_ray_triangle(o, d, v[0], v[1], v[2], &t, &u, &w);
        if (!plane_hit(o, d, (const real (*)[3])v, &at, weight)) continue;
        least = weight[0] < weight[1] ? weight[0] : weight[1];
        if (weight[2] < least) least = weight[2];
        /* at the rim, or nearly parallel: see the next tests */
        if (fabsl(least) < 1e-3L || fabsl(at) > 100) continue;
        CHECK(hit == (least > 0));
        if (!hit) { misses++; continue; }
        hits++;
        behind += at < 0;
        CHECK(fabsl((long double)t - at) <= 1e-3L * (IS_FLOAT ? 1 : 1e-8L) * (1 + fabsl(at)) * 10);
        CHECK(fabsl((long double)u - weight[1]) <= 1e-2L * (IS_FLOAT ? 1 : 1e-8L));
        CHECK(fabsl((long double)w - weight[2]) <= 1e-2L * (IS_FLOAT ? 1 : 1e-8L));
    }
    CHECK(hits > rounds / 20 && misses > rounds / 20 && behind > rounds / 200);
}

/* By hand, exact: the face from both sides, behind, beside, on edges and corners, in the plane,
   without area. */
static void test_ray_triangle_by_hand(void **state)
{
    static const real a[3] = {0, 0, 0}, b[3] = {4, 0, 0}, c[3] = {0, 4, 0};
    static const struct { real o[3], d[3]; int hit; real t, u, v; } cases[] = {
        {{1, 1, 2}, {0, 0, -1}, 1, 2, (real)0.25, (real)0.25},
        {{1, 1, -2}, {0, 0, 1}, 1, 2, (real)0.25, (real)0.25},
        {{1, 2, 2}, {0, 0, 4}, 1, (real)-0.5, (real)0.25, (real)0.5},
        {{3, 3, 2}, {0, 0, -1}, 0, 0, 0, 0},
        {{-1, 1, 2}, {0, 0, -1}, 0, 0, 0, 0},
        {{1, -1, 2}, {0, 0, -1}, 0, 0, 0, 0},
        {{2, 0, 1}, {0, 0, -1}, 1, 1, (real)0.5, 0},
        {{0, 2, 1}, {0, 0, -1}, 1, 1, 0, (real)0.5},
        {{2, 2, 1}, {0, 0, -1}, 1, 1, (real)0.5, (real)0.5},
        {{0, 0, 1}, {0, 0, -1}, 1, 1, 0, 0},
        {{4, 0, 8}, {0, 0, -2}, 1, 4, 1, 0},
        {{0, 4, 1}, {0, 0, -1}, 1, 1, 0, 1},
        {{1, 1, 0}, {1, 0, 0}, 0, 0, 0, 0},
        {{1, 1, 1}, {1, 1, 0}, 0, 0, 0, 0},
    };
    real const middle[3] = {2, 0, 0}, o[3] = {1, 0, 1}, down[3] = {0, 0, -1};
    real t, u, v;
    int k;
    (void)state;
    for (k = 0; k < COUNT_OF(cases); k++) {
        t = u = v = -7;
        CHECK(lbvh_ray_triangle(cases[k].o, cases[k].d, a, b, c, &t, &u, &v) == cases[k].hit);
        if (cases[k].hit) CHECK(t == cases[k].t && u == cases[k].u && v == cases[k].v);
        CHECK(lbvh_ray_triangle(cases[k].o, cases[k].d, a, c, b, &t, &u, &v) == cases[k].hit);
        if (cases[k].hit) CHECK(t == cases[k].t && v == cases[k].u && u == cases[k].v);
    }
    CHECK(!lbvh_ray_triangle(o, down, a, b, middle, &t, &u, &v) &&
        !lbvh_ray_triangle(o, down, a, a, a, &t, &u, &v));
}

/* A closed surface: an octahedron, each face in 4 again and again, the corners pushed to a sphere
   and then moved a little. */
typedef struct mesh { real *vertices; int32_t *indices; } mesh; /* stb_ds */

static int32_t middle_of(mesh *m, int32_t i, int32_t j)
{
    int32_t k, const_count = (int32_t)arrlen(m->vertices) / 3;
    double p[3], length;
    int x;
    for (x = 0; x < 3; x++)
        p[x] = ((double)m->vertices[3 * i + x] + (double)m->vertices[3 * j + x]) / 2;
    length = sqrt(dot3(p, p));
    for (k = 0; k < const_count; k++) {
        double d = 0;
        for (x = 0; x < 3; x++) d += fabs((double)m->vertices[3 * k + x] - p[x] / length);
        if (d < 1e-4) return k;
    }
    for (x = 0; x < 3; x++) arrput(m->vertices, (real)(p[x] / length));
    return const_count;
}

static void refine(mesh *m)
{
    int32_t *coarse = m->indices, *fine = NULL;
    ptrdiff_t f;
    int k;
    for (f = 0; f < arrlen(coarse); f += 3) {
        int32_t mid[3];
        for (k = 0; k < 3; k++) mid[k] = middle_of(m, coarse[f + k], coarse[f + (k + 1) % 3]);
        for (k = 0; k < 3; k++) {
            arrput(fine, coarse[f + k]);
            arrput(fine, mid[k]);
            arrput(fine, mid[(k + 2) % 3]);
        }
        for (k = 0; k < 3; k++) arrput(fine, mid[k]);
    }
    arrfree(coarse);
    m->indices = fine;
}

static mesh ball(int levels)
{
    static const int corners[6][3] = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1},
        {0, 0, -1}};
    mesh m = {NULL, NULL};
    int k, x;
    for (k = 0; k < 6; k++) for (x = 0; x < 3; x++) arrput(m.vertices, (real)corners[k][x]);
    for (k = 0; k < 8; k++) { /* the octants, outsides turned out */
        int const i = k & 1, j = 2 + (k >> 1 & 1), l = 4 + (k >> 2 & 1),
            odd = (k ^ k >> 1 ^ k >> 2) & 1;
        arrput(m.indices, i);
        arrput(m.indices, odd ? l : j);
        arrput(m.indices, odd ? j : l);
    }
    while (levels-- > 0) refine(&m);
    for (k = 0; k < (int)arrlen(m.vertices); k++) m.vertices[k] += between((real)-0.01, (real)0.01);
    return m;
}

/* The closest triangle that the ray meets, through the tree; -1 for none. */
static int32_t shoot(const lbvh *tree, const mesh *m, const real *o, const real *d, real *t_hit)
{
    lbvh_ray ray = lbvh_ray_cast(tree, o, d, REAL_INFINITY);
    int32_t closest = -1;
    while (lbvh_next_ray(&ray)) {
        const int32_t *i = m->indices + 3 * ray.id;
        real t, u, v;
        if (!lbvh_ray_triangle(o, d, m->vertices + 3 * i[0], m->vertices + 3 * i[1],
            m->vertices + 3 * i[2], &t, &u, &v))
            continue;
        if (t >= 0 && t <= ray.t_max) ray.t_max = *t_hit = t, closest = ray.id;
    }
    return closest;
}

/* The same over all triangles. */
static int32_t shoot_all(const mesh *m, const real *o, const real *d, real *t_hit)
{
    int32_t closest = -1, f;
    *t_hit = REAL_INFINITY;
    for (f = 0; f < arrlen(m->indices) / 3; f++) {
        const int32_t *i = m->indices + 3 * f;
        real t, u, v;
        if (!lbvh_ray_triangle(o, d, m->vertices + 3 * i[0], m->vertices + 3 * i[1],
            m->vertices + 3 * i[2], &t, &u, &v))
            continue;
        if (t >= 0 && t < *t_hit) *t_hit = t, closest = f;
    }
    return closest;
}

/* The range that lbvh_ray_triangle states: directions of length 1, and as long as the distance. */
static void test_ray_triangle_range(void **state)
{
    static const real unit[3][3] = {{-1, -1, 1}, {1, -1, 1}, {0, 1, 1}};
    static const int range[2][2] = {{-10, 12}, {-6, 7}};
    real const o[3] = {0, 0, 0};
    int scaled, e, i;
    (void)state;
    for (scaled = 0; scaled < 2; scaled++) for (e = range[scaled][0]; e <= range[scaled][1]; e++) {
        real const size = (real)pow(10, e) / 2, d[3] = {0, 0, scaled ? size : 1};
        real v[3][3], t, u, w;
        for (i = 0; i < 9; i++) v[i / 3][i % 3] = size * unit[i / 3][i % 3];
        CHECK(lbvh_ray_triangle(o, d, v[0], v[1], v[2], &t, &u, &w));
        CHECK(fabs((double)(t * d[2] / size) - 1) < 1e-5 && fabs((double)w - 0.5) < 1e-5);
    }
}

/* From inside a closed surface every ray hits it, aimed at an edge, a corner or anywhere; from
   outside, what is aimed at the near side. */
static void test_watertight(void **state)
{
    mesh m;
    lbvh tree = {0};
    lbvh_desc d;
    int const rounds = 60000 / share();
    int k, x, aim, misses[6] = {0, 0, 0, 0, 0, 0};
    (void)state;
    dice = wl_seed(27);
    m = ball(3);
    /* closed: 2 F = 3 E, V - E + F = 2 */
    CHECK(arrlen(m.indices) == 3 * 512 && arrlen(m.vertices) == 3 * 258);
    memset(&d, 0, sizeof d);
    d.kind = LBVH_TRIANGLES;
    d.indices = m.indices;
    d.vertices = (int32_t)arrlen(m.vertices) / 3;
    CHECK_RESULT(lbvh_build(&tree, &d, m.vertices, 0, 512), LBVH_OK);
    for (k = 0; k < rounds; k++) {
        const int32_t *face = m.indices + 3 * roll(512);
        const real *p = m.vertices + 3 * face[0], *q = m.vertices + 3 * face[1];
        real const along = roll(2) ? (real)0.5 : (real)wl_u(&dice);
        int const outside = k % 2;
        real o[3], way[3], t = -1, want = -1;
        int32_t by_tree, by_hand;
        aim = k / 2 % 3;
        random_point(o, (real)0.5);
        if (k % 5 == 0) o[roll(3)] = 0; /* more ties */
        for (x = 0; x < 3; x++) {
            if (outside) o[x] = p[x] * 3 + o[x]; /* the corner aimed at is on the near side */
            way[x] = aim == 0 ? p[x] - o[x] : aim == 1 ? p[x] + (q[x] - p[x]) * along - o[x] :
                between(-1, 1);
        }
        if (outside && aim == 2) continue;
        by_tree = shoot(&tree, &m, o, way, &t);
        by_hand = shoot_all(&m, o, way, &want);
        if (by_hand < 0) misses[aim + 3 * outside]++;
        CHECK((by_tree < 0) == (by_hand < 0));
        if (by_hand >= 0) CHECK(fabs((double)t - (double)want) <= 1e-4 * (1 + fabs((double)want)));
    }
    for (k = 0; k < 6; k++)
        if (misses[k])
            print_error("%d of %d rays slipped through (aim %d)\n", misses[k], rounds / 6, k);
    for (k = 0; k < 6; k++) CHECK(misses[k] == 0);
    lbvh_free(&tree);
    arrfree(m.vertices);
    arrfree(m.indices);
}
