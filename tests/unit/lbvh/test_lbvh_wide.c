/* test_lbvh_wide.c - tests of lbvh_wide: boxes decoded in double, every answer against brute force
   and against the binary tree, AVX2 against plain code, memory, refusals.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/lbvh/test_lbvh_wide.c -o test_lbvh_wide -lcmocka -lm &&
       ./test_lbvh_wide
       (add -DLBVH_REAL=double for the double build; package: libcmocka-dev) */

static int asked, answer; /* by the header, and to it */
#define LBVH_I_HAS_AVX2() (asked++, answer)

#define LBVH_STATIC
#define LBVH_WITH_OPTIMIZE
#define LBVH_WITH_WIDE
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define TESTED lbvh
#include "../../common/testing.h"

#if defined(__x86_64__) && defined(__GNUC__)
static int has_avx2(void) { return __builtin_cpu_supports("avx2") != 0; }
#else
static int has_avx2(void) { return 0; }
#endif

/* ------------------------------------------------------------------------------------------------
   Scenes: triangles, each nastier than the one before
   ------------------------------------------------------------------------------------------------
   */

enum { KNOT, SOUP, FLAT, ONE_POINT, DISTANT, TINY, HUGE_ONES, TWO_SIZES, COMB, TILES, SLIVERS,
       SCENES };
enum { MOST = 1024, RAYS = 400 };

typedef struct scene {
    int kind;
    int32_t n;
    real size, offset; /* of what is in it */
    real corner[9 * MOST];
    lbvh tree;
    lbvh_wide wide;
} scene;

static scene s; /* one at a time */

static void describe_scene(void)
{
    print_error("scene %d, %d triangles, lanes %d\n", s.kind, (int)s.n, answer);
}

static void put_soup(real size, real offset, real edge, int flat)
{
    int32_t i;
    int k, a;
    s.size = size;
    s.offset = offset;
    for (i = 0; i < s.n; i++) {
        real centre[3];
        for (a = 0; a < 3; a++) centre[a] = offset + between(-size, size);
        for (k = 0; k < 9; k++) {
            s.corner[9 * i + k] = centre[k % 3] + between(-edge, edge);
            if (flat && k % 3 == flat - 1) s.corner[9 * i + k] = offset;
        }
    }
}

/* Leaves one by one on many levels: the worst shape for memory. */
static void put_comb(void)
{
    int32_t i;
    int k;
    s.size = 1;
    for (i = 0; i < s.n; i++) {
        real const at = (real)ldexp(1, -(i % 20)) * (1 + (real)(i / 20 % 4) / 1024);
        for (k = 0; k < 9; k++)
            s.corner[9 * i + k] = at * (k == 3 || k == 7 ? (real)1.125 : (real)1);
    }
}

/* Their heights are 1e-1 to 1e-8 of their edges. */
static void put_slivers(void)
{
    int32_t i;
    int k;
    put_soup(1, (real)0.5, (real)0.3, 0);
    for (i = 0; i < s.n; i++) {
        real *corner = s.corner + 9 * i, at = between(0, 1), height = (real)pow(10, -1 - i % 8);
        int const apex = 3 * roll(3), from = (apex + 3) % 9, to = (apex + 6) % 9;
        if (i % 3 == 0) at = height * between(-1, 1); /* or two edges are long */
        for (k = 0; k < 3; k++)
            corner[apex + k] = corner[from + k] + at * (corner[to + k] - corner[from + k]) +
                               height * between((real)-0.3, (real)0.3);
    }
}

/* Right triangles in a plane, with two edges in planes of their boxes, which are exact. */
static void put_tiles(void)
{
    int32_t i;
    int k;
    int const up = roll(3), x = (up + 1) % 3, y = (up + 2) % 3;
    s.size = 2;
    for (i = 0; i < s.n; i++) {
        real *corner = s.corner + 9 * i;
        real const at[2] = {(real)(i % 32 - 16) / 8, (real)(i / 32 - 16) / 8};
        for (k = 0; k < 3; k++) {
            corner[3 * k + x] = at[0];
            corner[3 * k + y] = at[1];
            corner[3 * k + up] = (real)0.25;
        }
        corner[3 + x] += (real)(1 + roll(3)) / 32;
        corner[6 + y] += (real)(1 + roll(3)) / 32;
    }
}

static void put(int kind, int32_t n)
{
    int32_t i;
    memset(&s.corner, 0, sizeof s.corner);
    s.kind = kind;
    s.n = n;
    s.size = 1;
    s.offset = 0;
    if (kind == KNOT) {
        float *corner = NEW(float, 9 * MOST);
        wl_knot(64, 8, corner);
        for (i = 0; i < 9 * n; i++) s.corner[i] = (real)corner[i];
        s.size = (real)3.5;
        free(corner);
    }
    if (kind == SOUP) put_soup(1, 0, (real)0.1, 0);
    if (kind == FLAT) put_soup(1, (real)0.3, (real)0.1, 1 + roll(3));
    if (kind == DISTANT) put_soup(1, IS_FLOAT ? (real)1e6 : (real)1e14, (real)0.2, 0);
    if (kind == TINY) put_soup((real)1e-5, 0, (real)1e-6, 0);
    if (kind == HUGE_ONES) put_soup((real)1e6, 0, (real)1e5, 0);
    if (kind == TWO_SIZES) {
        put_soup(1, 0, (real)0.01, 0);
        for (i = 0; 9 * i < s.n; i++) s.corner[81 * i] *= 3;
    }
    if (kind == COMB) put_comb();
    if (kind == TILES) put_tiles();
    if (kind == SLIVERS) put_slivers();
}

static void build(int copy, int leaf, const uint32_t *masks)
{
    lbvh_desc desc;
    lbvh_wide_desc wide;
    memset(&desc, 0, sizeof desc);
    memset(&wide, 0, sizeof wide);
    desc.kind = LBVH_TRIANGLES;
    desc.builder = leaf % 2 ? LBVH_PLOC : LBVH_MERGE;
    desc.masks = masks;
    wide.copy = copy;
    wide.leaf = leaf;
    CHECK_RESULT(lbvh_build(&s.tree, &desc, s.corner, 0, s.n), LBVH_OK);
    CHECK_RESULT(lbvh_wide_build(&s.wide, &wide, &s.tree, s.corner, 0), LBVH_OK);
}

static void begin(int kind, int32_t n, int copy)
{
    describe = describe_scene;
    answer = 0;
    put(kind, n);
    build(copy, 0, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    lbvh_wide_free(&s.wide);
    lbvh_free(&s.tree);
    return 0;
}

static const real *corner_of(int32_t id, int k) { return s.corner + 9 * (size_t)id + 3 * k; }

/* ------------------------------------------------------------------------------------------------
   Structure
   ------------------------------------------------------------------------------------------------
   */

/* A plane, in double, without the header's arithmetic. */
static double plane_of(const lbvh_wide_node *node, int row, int c)
{
    double const corner = (double)node->corner[row % 3] + node->plane[row][c];
    return ldexp(corner, (int)node->exponent[row % 3] - (IS_FLOAT ? 127 : 1023));
}

/* Every element below child c of the node lies in its decoded box; their number. */
static int32_t check_below(const lbvh_wide_node *node, int c, double low[3], double high[3],
                           unsigned char *seen)
{
    int32_t k, found = 0;
    int a, d;
    double const *const limits[2] = {low, high};
    double min[3], max[3];
    for (a = 0; a < 3; a++) {
        min[a] = fmax(limits[0][a], plane_of(node, a, c));
        max[a] = fmin(limits[1][a], plane_of(node, a + 3, c));
    }
    if (node->kind[c] >= 224) {
        const lbvh_wide_node *below = &s.wide.node[node->child + (node->kind[c] - 224u)];
        for (d = 0; d < 8; d++) if (below->kind[d])
            found += check_below(below, d, min, max, seen);
        return found;
    }
    for (k = 0; k < node->kind[c] >> 5; k++, found++) {
        size_t const slot = s.wide.numbers
            ? 4 * ((size_t)node->first + (node->kind[c] & 31)) + (size_t)k
            : (size_t)node->first + (node->kind[c] & 31) + (size_t)k;
        int32_t const id = s.wide.id[slot];
        CHECK(id >= 0 && id < s.n && !seen[id]);
        seen[id] = 1;
        for (a = 0; a < 9; a++) {
            CHECK((double)corner_of(id, 0)[a] >= min[a % 3]);
            CHECK((double)corner_of(id, 0)[a] <= max[a % 3]);
        }
    }
    return found;
}

static void check_structure(void)
{
    unsigned char *seen = ZEROS(unsigned char, MOST);
    double low[3] = {-INFINITY, -INFINITY, -INFINITY}, high[3] = {INFINITY, INFINITY, INFINITY};
    int32_t found = 0;
    int c;
    CHECK_RESULT(lbvh_wide_validate(&s.wide, &s.tree), LBVH_OK);
    for (c = 0; c < 8 && s.n > 0; c++) if (s.wide.node[0].kind[c])
        found += check_below(&s.wide.node[0], c, low, high, seen);
    CHECK(found == s.n && s.wide.elements == s.n);
    free(seen);
}

static void test_structure(void **state)
{
    static const int32_t counts[] = {0, 1, 2, 4, 5, 8, 9, 33, 200, MOST};
    int kind, k, leaf, copy;
    (void)state;
    CHECK(sizeof(lbvh_wide_node) == (IS_FLOAT ? 80 : 96));
    for (kind = 0; kind < SCENES; kind++)
        for (k = 0; k < COUNT_OF(counts); k++)
            for (leaf = 1; leaf <= 4; leaf++)
                for (copy = 0; copy < 2; copy++) {
                    int64_t bytes;
                    begin(kind, counts[k], copy);
                    build(copy, leaf, NULL);
                    check_structure();
                    CHECK_RESULT(lbvh_wide_bytes_for(&s.wide.desc, &s.tree, &bytes), LBVH_OK);
                    CHECK(bytes <= lbvh_wide_bytes(&s.wide));
                    if (leaf == 4 && !copy && s.n > 8 && IS_FLOAT)
                        CHECK((double)bytes <= 22.3 * s.n);
                }
}

/* Largest and smallest numbers: boxes alone. */
static void test_extreme_boxes(void **state)
{
    real const sizes[] = {REAL_LARGEST, REAL_LARGEST / 3, IS_FLOAT ? (real)1e-38 : (real)1e-308,
                          IS_FLOAT ? (real)1e-44 : (real)4e-323, 0};
    int k, a;
    (void)state;
    describe = describe_scene;
    for (k = 0; k < COUNT_OF(sizes); k++) {
        int32_t i;
        put(ONE_POINT, 100);
        for (i = 0; i < 100; i++) {
            real const x = between(-1, 1) * sizes[k];
            for (a = 0; a < 9; a++) s.corner[9 * i + a] = a % 3 == 0 ? x : between(0, 1) * sizes[k];
            if (i == 7) for (a = 0; a < 9; a++) s.corner[9 * i + a] = -sizes[k];
            if (i == 8) for (a = 0; a < 9; a++) s.corner[9 * i + a] = sizes[k];
        }
        build(1, 0, NULL);
        check_structure();
    }
}

/* lbvh_wide_validate sees a box that is one quantum too small, and an element that is lost. */
static void test_validate(void **state)
{
    int32_t node;
    int c, row, found = 0;
    (void)state;
    begin(SOUP, 300, 1);
    for (node = 0; node < s.wide.nodes; node++)
        for (c = 0; c < 8; c++)
            for (row = 0; row < 6; row++) {
                lbvh_wide_node *const at = &s.wide.node[node];
                uint8_t const had = at->plane[row][c];
                if (!at->kind[c]) continue;
                at->plane[row][c] = (uint8_t)(row < 3 ? had + 1 : had - 1);
                found += lbvh_wide_validate(&s.wide, &s.tree) == LBVH_INVALID;
                at->plane[row][c] = had;
            }
    CHECK(found > 0);
    for (c = 0; c < 6; c++) { /* leaves of the last node: every plane matters */
        lbvh_wide_node *const at = &s.wide.node[s.wide.nodes - 1];
        at->plane[c][0] = (uint8_t)(c < 3 ? at->plane[c][0] + 1 : at->plane[c][0] - 1);
        CHECK_RESULT(lbvh_wide_validate(&s.wide, &s.tree), LBVH_INVALID);
        at->plane[c][0] = (uint8_t)(c < 3 ? at->plane[c][0] - 1 : at->plane[c][0] + 1);
    }
    CHECK_RESULT(lbvh_wide_validate(&s.wide, &s.tree), LBVH_OK);
    s.wide.id[0] = s.wide.id[4];
    CHECK_RESULT(lbvh_wide_validate(&s.wide, &s.tree), LBVH_INVALID);
}

/* ------------------------------------------------------------------------------------------------
   Rays
   ------------------------------------------------------------------------------------------------
   */

static real ray_data[6 * RAYS];

/* Random ones, ones along axes and in planes, ones through vertices, backwards, from afar. */
static void make_rays(void)
{
    int32_t r;
    int a;
    for (r = 0; r < RAYS; r++) {
        real *ray = ray_data + 6 * r;
        const real *to = s.n ? corner_of(roll((int)s.n), roll(3)) : ray_data;
        real const away = r % 7 == 0 ? 1000 * s.size : 2 * s.size;
        for (a = 0; a < 3; a++) {
            ray[a] = s.offset + between(-away, away);
            ray[3 + a] = r % 3 == 0 ? to[a] - ray[a] : s.offset + between(-s.size, s.size) - ray[a];
        }
        if (r % 5 == 0) ray[3 + r % 3] = 0;
        if (r % 5 == 0) ray[r % 3] = to[r % 3];
        if (r % 10 == 0) ray[3 + (r + 1) % 3] = 0;
        if (r % 10 == 0) ray[(r + 1) % 3] = to[(r + 1) % 3];
        if (r % 11 == 0) for (a = 0; a < 3; a++) ray[3 + a] *= (real)1e-3;
    }
}

/* Groups of 16 that are near each other: packs. Some go on with one that is not. In some rays have
   different longest axes. */
static void make_packs(void)
{
    int32_t r;
    int a;
    make_rays();
    for (r = 0; r < RAYS; r++) {
        real *first = ray_data + 6 * (r - r % 16);
        if (r % 32 == 0) /* signs of directions differ */
            for (a = 3; a < 6; a++)
                if (first[a] == 0 || (r % 64 == 0 && a == 3 + r / 64 % 3)) first[a] = s.size / 300;
        if (r % 64 == 16) first[3 + r / 64 % 3] = first[3 + (r / 64 + 1) % 3];
        for (a = 0; r % 64 == 48 && a < 3; a++) { /* the two longest axes are alike */
            const real *to = s.n ? corner_of(r % (int)s.n, 0) : first;
            first[3 + a] = s.size * (r / 64 % 3 == a ? (real)0.5 : a ? (real)-1.5 : (real)1.5);
            first[a] = to[a] - first[3 + a];
        }
        if (r % 16 == 0 || (r % 41 == 0 && r % 3)) continue;
        /* from afar, lbvh_ray_triangle hits the smallest of these 9 units beside them: all that it
           sees of one is a point, and rounding */
        if (s.kind == COMB && r % 112 < 16) continue;
        for (a = 0; a < 6; a++)
            ray_data[6 * r + a] = first[a] + between(-s.size, s.size) /
                                               (a < 3 ? 140 : r % 64 < 16 ? 24 : 100);
        if (r % 3 == 0) for (a = 0; a < 3; a++) ray_data[6 * r + a] = first[a];
        if (r / 16 % 2) for (a = 3; a < 6; a++) ray_data[6 * r + a] = first[a]; /* parallel */
        if (r / 16 % 3 == 2) memcpy(ray_data + 6 * r, first, 6 * sizeof(real)); /* one ray */
    }
}

static lbvh_rays the_rays(void)
{
    lbvh_rays rays;
    memset(&rays, 0, sizeof rays);
    rays.data = ray_data;
    rays.n = RAYS;
    return rays;
}

static int same_hit(const lbvh_ray_hit *a, const lbvh_ray_hit *b)
{
    return a->id == b->id && a->t == b->t && a->u == b->u && a->v == b->v;
}

/* By looking at all triangles, with the header's test. */
static lbvh_ray_hit hit_of_all(const real *ray, real t_max, const uint32_t *masks, uint32_t filter)
{
    lbvh_ray_hit best = {0, 0, 0, -1};
    int32_t i;
    for (i = 0; i < s.n; i++) {
        real t, u, v;
        if (masks && !(masks[i] & filter)) continue;
        if (!lbvh_ray_triangle(ray, ray + 3, corner_of(i, 0), corner_of(i, 1), corner_of(i, 2), &t,
                               &u, &v) || !(t >= 0 && t <= t_max) || (best.id >= 0 && t >= best.t))
            continue;
        best.t = t;
        best.u = u;
        best.v = v;
        best.id = i;
    }
    return best;
}

/* The distance along the ray in double (Cramer's rule); INFINITY: the line misses by more than
   `slack`, or nearly touches an edge: undecided, *decided = 0. */
static double hit_in_double(const real *ray, int32_t id, int *decided)
{
    double e[3], f[3], o[3], d[3], n[3], p[3], det, u, v;
    int a;
    for (a = 0; a < 3; a++) {
        e[a] = (double)corner_of(id, 1)[a] - (double)corner_of(id, 0)[a];
        f[a] = (double)corner_of(id, 2)[a] - (double)corner_of(id, 0)[a];
        o[a] = (double)ray[a] - (double)corner_of(id, 0)[a];
        d[a] = (double)ray[3 + a];
    }
    for (a = 0; a < 3; a++) {
        n[a] = d[(a + 1) % 3] * f[(a + 2) % 3] - d[(a + 2) % 3] * f[(a + 1) % 3];
        p[a] = o[(a + 1) % 3] * e[(a + 2) % 3] - o[(a + 2) % 3] * e[(a + 1) % 3];
    }
    det = e[0] * n[0] + e[1] * n[1] + e[2] * n[2];
    u = (o[0] * n[0] + o[1] * n[1] + o[2] * n[2]) / det;
    v = (d[0] * p[0] + d[1] * p[1] + d[2] * p[2]) / det;
    *decided = fabs(u) > 1e-2 && fabs(v) > 1e-2 && fabs(1 - u - v) > 1e-2;
    if (!(u >= 0 && v >= 0 && u + v <= 1)) return INFINITY;
    return (f[0] * p[0] + f[1] * p[1] + f[2] * p[2]) / det;
}

/* All triangles in double: the answer's t, where no triangle is a close call. */
static void check_in_double(const real *ray, const lbvh_ray_hit *hit)
{
    double best = INFINITY;
    int32_t i;
    for (i = 0; i < s.n; i++) {
        int decided;
        double const t = hit_in_double(ray, i, &decided);
        if (!decided) return;
        if (t > -1e-6 && t < 1e-6) return;
        if (t >= 0 && t < best) best = t;
    }
    if (hit->id < 0) CHECK(!(best < INFINITY));
    else CHECK(fabs((double)hit->t - best) <= 1e-3 * best);
}

static void check_hits(const lbvh_ray_hit *hit, const uint8_t *any)
{
    int32_t r;
    int met = 0;
    for (r = 0; r < RAYS; r++) {
        lbvh_ray_hit const all = hit_of_all(ray_data + 6 * r, REAL_LARGEST, NULL, 0);
        CHECK(same_hit(&hit[r], &all));
        CHECK(any[r] == (all.id >= 0));
        met += all.id >= 0;
    }
    if (s.kind == SOUP && s.n == MOST) { /* rays that do not aim at vertices */
        for (r = 0; r < RAYS; r++)
            if (r % 3 && r % 5) check_in_double(ray_data + 6 * r, hit + r);
        CHECK(met > RAYS / 4);
    }
}

static lbvh_ray_hit hits[2][RAYS];
static uint8_t any[2][RAYS];

/* The same from the plain code and by AVX2, and that of all triangles. */
static void test_rays(void **state)
{
    static const int32_t counts[] = {0, 1, 5, 60, MOST};
    lbvh_rays rays = the_rays();
    int kind, k, packs;
    (void)state;
    for (packs = 0; packs < 2; packs++) for (kind = 0; kind < SCENES; kind++)
        for (k = 0; k < COUNT_OF(counts); k++) {
            begin(kind, counts[k], 1);
            rays.flags = packs ? LBVH_SORTED : 0;
            if (packs) make_packs();
            else make_rays();
            for (answer = 0; answer <= has_avx2(); answer++) {
                asked = 0;
                CHECK_RESULT(lbvh_closest_hits(&s.wide, &rays, NULL, NULL, hits[answer]), LBVH_OK);
                CHECK_RESULT(lbvh_any_hits(&s.wide, &rays, NULL, NULL, any[answer]), LBVH_OK);
            }
            answer = 0;
            check_hits(hits[0], any[0]);
            if (!has_avx2()) continue;
            CHECK(same(hits[0], hits[1], sizeof hits[0]) && same(any[0], any[1], sizeof any[0]));
#if defined(LBVH_I_AVX2)
            CHECK(asked > 0);
#endif
        }
}

/* LBVH_PLOC makes one tree, with plain code and by AVX2. */
static void test_builds(void **state)
{
    static const int32_t counts[] = {17, 60, MOST};
    int kind, k;
    (void)state;
    for (kind = 0; kind < SCENES; kind++)
        for (k = 0; k < COUNT_OF(counts); k++) {
            lbvh tree[2];
            size_t const bytes = (2 * (size_t)counts[k] - 1) * sizeof *tree[0].node;
            begin(kind, counts[k], 1);
            memset(tree, 0, sizeof tree);
            asked = 0;
            for (answer = 0; answer <= has_avx2(); answer++) {
                lbvh_desc desc = s.tree.desc;
                desc.builder = LBVH_PLOC;
                CHECK_RESULT(lbvh_build(&tree[answer], &desc, s.corner, 0, s.n), LBVH_OK);
            }
            answer = 0;
            if (has_avx2()) CHECK(same(tree[0].node, tree[1].node, bytes));
#if defined(LBVH_I_AVX2)
            CHECK(asked > 0);
#endif
            lbvh_free(&tree[0]);
            lbvh_free(&tree[1]);
        }
}

/* The caller's own test, without copies; it counts. */
static int own_test(void *user, int32_t id, const real *origin, const real *direction, real *t,
                    real *u, real *v)
{
    ++*(int *)user;
    return lbvh_ray_triangle(origin, direction, corner_of(id, 0), corner_of(id, 1),
                             corner_of(id, 2), t, u, v);
}

static void test_own_elements(void **state)
{
    lbvh_rays const rays = the_rays();
    int copy, tests = 0;
    (void)state;
    for (copy = 0; copy < 2; copy++) for (answer = 0; answer <= has_avx2(); answer++) {
        int const lanes = answer;
        begin(SOUP, 500, copy);
        answer = lanes;
        make_rays();
        CHECK_RESULT(lbvh_closest_hits(&s.wide, &rays, own_test, &tests, hits[0]), LBVH_OK);
        CHECK_RESULT(lbvh_any_hits(&s.wide, &rays, own_test, &tests, any[0]), LBVH_OK);
        answer = 0;
        check_hits(hits[0], any[0]);
        CHECK(tests > 0 && tests < 4 * RAYS * 500 / 4); /* the tree is used */
        answer = lanes;
    }
}

/* Ends of rays, filters and strides, of rays that are packs, too; invalid rays. */
static void check_ray_options(const uint32_t *masks, int packs)
{
    uint32_t filters[RAYS];
    real ends[RAYS], wider[8 * RAYS];
    lbvh_rays rays = the_rays();
    int32_t r;
    for (r = 0; r < RAYS; r++) {
        filters[r] = (uint32_t)roll(8);
        ends[r] = r % 4 ? between(0, 2) : hit_of_all(ray_data + 6 * r, REAL_LARGEST, NULL, 0).t;
        if (r % 7 == 5) ends[r] = r % 2 ? -1 : REAL_NAN;
        if (r % 119 == 118) ray_data[6 * r + r % 6] = r % 2 ? REAL_NAN : REAL_INFINITY;
        memcpy(wider + 8 * r, ray_data + 6 * r, 6 * sizeof(real));
    }
    rays.n = RAYS - 3;
    rays.data = wider;
    rays.stride = 8 * sizeof(real);
    rays.t_ends = ends;
    rays.filters = masks ? filters : NULL;
    rays.flags = packs ? LBVH_SORTED : 0;
    for (answer = 0; answer <= has_avx2(); answer++) {
        CHECK_RESULT(lbvh_closest_hits(&s.wide, &rays, NULL, NULL, hits[0]), LBVH_OK);
        CHECK_RESULT(lbvh_any_hits(&s.wide, &rays, NULL, NULL, any[0]), LBVH_OK);
        for (r = 0; r < rays.n; r++) {
            lbvh_ray_hit const all = hit_of_all(ray_data + 6 * r, ends[r], masks, filters[r]);
            CHECK(same_hit(&hits[0][r], &all) && any[0][r] == (all.id >= 0));
        }
    }
    answer = 0;
}

static void test_ray_options(void **state)
{
    uint32_t masks[MOST];
    lbvh_rays rays;
    int32_t i, r;
    int packs;
    (void)state;
    for (packs = 0; packs < 2; packs++) {
        begin(SOUP, MOST, 1);
        for (i = 0; i < MOST; i++) masks[i] = (uint32_t)roll(8);
        for (i = 0; i < 9 * (MOST / 2); i++) s.corner[9 * (MOST / 2) + i] = s.corner[i]; /* ties */
        build(1, 0, NULL);
        if (packs) make_packs();
        else make_rays();
        check_ray_options(NULL, packs);
        build(1, 0, masks);
        check_ray_options(masks, packs);
    }
    answer = 0;
    rays = the_rays();
    rays.n = 4;
    ray_data[0] = REAL_NAN;
    ray_data[6 + 4] = REAL_INFINITY;
    for (i = 0; i < 3; i++) ray_data[12 + 3 + i] = 0;
    ray_data[18 + 3] = -REAL_NAN;
    for (answer = 0; answer <= has_avx2(); answer++) {
        CHECK_RESULT(lbvh_closest_hits(&s.wide, &rays, NULL, NULL, hits[0]), LBVH_OK);
        for (r = 0; r < 4; r++) CHECK(hits[0][r].id == -1 && hits[0][r].t == 0);
    }
    answer = 0;
}

/* Rays that touch boxes: at a corner, and with t_max where the triangle is. Packs of one ray, whose
   bounds are nothing but its own roundings. */
static void test_touched_boxes(void **state)
{
    lbvh_rays rays = the_rays();
    real ends[RAYS];
    int32_t r;
    int round, a, met = 0;
    (void)state;
    begin(TILES, MOST, 1);
    rays.t_ends = ends;
    for (round = 0; round < 60; round++) {
        make_rays();
        for (r = 0; r < RAYS; r++) {
            real *ray = ray_data + 6 * r;
            const real *to = corner_of(roll((int)s.n), roll(3));
            if (r % 16) memcpy(ray, ray - 6, 6 * sizeof(real));
            else for (a = 0; a < 3; a++) ray[3 + a] = to[a] - ray[a];
            ends[r] = hit_of_all(ray, REAL_LARGEST, NULL, 0).t;
        }
        for (answer = 0; answer <= has_avx2(); answer++) {
            rays.flags = round % 2 ? LBVH_SORTED : 0;
            CHECK_RESULT(lbvh_closest_hits(&s.wide, &rays, NULL, NULL, hits[0]), LBVH_OK);
            for (r = 0; r < RAYS; r += 16) {
                lbvh_ray_hit const all = hit_of_all(ray_data + 6 * r, ends[r], NULL, 0);
                CHECK(same_hit(&hits[0][r], &all));
                met += all.id >= 0;
            }
        }
        answer = 0;
    }
    CHECK(met > 60 * RAYS / 16 / 8);
}

/* ------------------------------------------------------------------------------------------------
   Nearest elements, closest points, overlaps
   ------------------------------------------------------------------------------------------------
   */

static real distance2_of(void *user, int32_t id, const real *p)
{
    real q[3];
    (void)user;
    (void)lbvh_closest_on_triangle(p, corner_of(id, 0), corner_of(id, 1), corner_of(id, 2), q);
    return lbvh_i_distance2(q, p);
}

/* From the last coordinate to the first: other roundings than those of the header. */
static real reversed_distance2(void *user, int32_t id, const real *p)
{
    volatile real sum = 0;
    int a;
    (void)user;
    for (a = 2; a >= 0; a--) {
        volatile real const part = (p[a] - corner_of(id, 0)[a]) * (p[a] - corner_of(id, 0)[a]);
        sum += part;
    }
    return sum;
}

/* A point that is as far away as the search reaches, up to the last bit. */
static void test_touched_reach(void **state)
{
    int t, k, exact = 0;
    (void)state;
    begin(SOUP, 1, 1);
    for (t = 0; t < 2000; t++) {
        real p[3], distance2, found_at = 0, reach;
        int32_t id = -1, found = 0;
        for (k = 0; k < 9; k++) s.corner[k] = k < 3 ? (real)roll(256) / 64 : s.corner[k - 3];
        for (k = 0; k < 3; k++) p[k] = between(-2, 6);
        build(1, 1, NULL);
        distance2 = reversed_distance2(NULL, 0, p);
        reach = (real)sqrt((double)distance2);
        if (reach * reach != distance2) continue;
        CHECK_RESULT(lbvh_wide_nearest(&s.wide, p, 1, reach, reversed_distance2, NULL, &id,
                                       &found_at, &found), LBVH_OK);
        CHECK(found == 1 && id == 0 && found_at == distance2);
        exact++;
    }
    CHECK(exact > 200);
}

static void make_point(real p[3], int k)
{
    int a;
    for (a = 0; a < 3; a++) p[a] = s.offset + between(-2 * s.size, 2 * s.size);
    if (s.n && k % 3 == 0) memcpy(p, corner_of(roll((int)s.n), roll(3)), 3 * sizeof(real));
}

static void check_closest_point(const real *p, real reach, const lbvh_closest *c)
{
    real best = REAL_LARGEST, q[3];
    int32_t i, id = -1;
    lbvh_feature feature;
    for (i = 0; i < s.n; i++) {
        real const d2 = distance2_of(NULL, i, p);
        if (!(d2 <= reach * reach) || (id >= 0 && d2 >= best)) continue;
        best = d2;
        id = i;
    }
    CHECK(c->id == id);
    if (id < 0) return;
    feature = lbvh_closest_on_triangle(p, corner_of(id, 0), corner_of(id, 1), corner_of(id, 2), q);
    CHECK(c->distance2 == best && c->feature == feature && same(q, c->point, sizeof q));
}

static void test_around(void **state)
{
    enum { POINTS = 100, K = 7 };
    int kind, k, x;
    (void)state;
    for (kind = 0; kind < SCENES; kind++) for (x = 0; x < 3; x++) {
        real points[3 * POINTS], reach;
        lbvh_closest closest[2][POINTS];
        begin(kind, x == 0 ? MOST : x == 1 ? 6 : 0, 1);
        reach = x == 1 ? s.size / 2 : 10 * s.size;
        for (k = 0; k < POINTS; k++) make_point(points + 3 * k, k);
        for (answer = 0; answer <= has_avx2(); answer++)
            CHECK_RESULT(lbvh_closest_points(&s.wide, points, 0, POINTS, reach, closest[answer]),
                         LBVH_OK);
        answer = 0;
        if (has_avx2()) CHECK(same(closest[0], closest[1], sizeof closest[0]));
        for (k = 0; k < POINTS; k++) {
            int32_t ids[3][K], found[3] = {0, 0, 0}, f;
            real d2[3][K];
            check_closest_point(points + 3 * k, reach, &closest[0][k]);
            CHECK_RESULT(lbvh_nearest(&s.tree, points + 3 * k, K, reach, distance2_of, NULL, ids[0],
                                      d2[0], &found[0]), LBVH_OK);
            CHECK_RESULT(lbvh_wide_nearest(&s.wide, points + 3 * k, K, reach, NULL, NULL, ids[1],
                                           d2[1], &found[1]), LBVH_OK);
            CHECK_RESULT(lbvh_wide_nearest(&s.wide, points + 3 * k, K, reach, distance2_of, NULL,
                                           ids[2], d2[2], &found[2]), LBVH_OK);
            for (f = 1; f < 3; f++) {
                CHECK(found[0] == found[f]);
                CHECK(same(d2[0], d2[f], (size_t)found[0] * sizeof(real)));
            }
            CHECK(same(ids[1], ids[2], (size_t)found[1] * sizeof(int32_t)));
        }
    }
}

/* A reach for each point, of every second number: some are negative or NaN. */
static void test_reaches(void **state)
{
    enum { POINTS = 100 };
    real points[3 * POINTS], reaches[2 * POINTS];
    lbvh_closest closest[POINTS];
    int kind, k;
    (void)state;
    for (kind = 0; kind < SCENES; kind++) {
        begin(kind, MOST, 1);
        for (k = 0; k < POINTS; k++) {
            make_point(points + 3 * k, k);
            reaches[2 * k] = s.size * (k % 4 ? between(0, 1) : k % 8 ? (real)-1 : (real)10);
            reaches[2 * k + 1] = REAL_INFINITY;
        }
        reaches[10] = lbvh_i_infinity() - lbvh_i_infinity();
        for (answer = 0; answer <= has_avx2(); answer++) {
            CHECK_RESULT(lbvh_closest_points_each(&s.wide, points, 0, POINTS, reaches,
                                                  2 * sizeof *reaches, closest), LBVH_OK);
            for (k = 0; k < POINTS; k++) {
                if (reaches[2 * k] >= 0)
                    check_closest_point(points + 3 * k, reaches[2 * k], &closest[k]);
                else CHECK(closest[k].id == -1);
            }
        }
        answer = 0;
        CHECK_RESULT(lbvh_closest_points_each(&s.wide, points, 0, POINTS, NULL, 0, closest),
                     LBVH_BAD_ARGUMENT);
        CHECK_RESULT(lbvh_closest_points_each(&s.wide, points, 0, POINTS, reaches, 1, closest),
                     LBVH_BAD_ARGUMENT);
    }
}

/* Triangles without a mask are nobody's closest ones. They are so large that products of four
   lengths overflow: then the edges decide. */
static void test_closest_options(void **state)
{
    enum { POINTS = 60 };
    real const times = IS_FLOAT ? (real)1e11 : (real)1e80, reach = times * times / 1000;
    real points[3 * POINTS];
    lbvh_closest closest[POINTS];
    uint32_t masks[MOST];
    int32_t i, k;
    (void)state;
    begin(FLAT, MOST, 1);
    for (i = 0; i < MOST; i++) masks[i] = (uint32_t)roll(2);
    for (i = 0; i < 9 * MOST; i++) s.corner[i] *= times;
    build(1, 0, masks);
    for (i = 0; i < 3 * POINTS; i++) points[i] = times * between(-s.size, s.size);
    for (i = 0; i < MOST; i++) /* for check_closest_point */
        for (k = 0; k < 9 && !masks[i]; k++) s.corner[9 * i + k] = REAL_LARGEST;
    for (answer = 0; answer <= has_avx2(); answer++) {
        CHECK_RESULT(lbvh_closest_points(&s.wide, points, 0, POINTS, reach, closest), LBVH_OK);
        for (k = 0; k < POINTS; k++) {
            CHECK(closest[k].id >= 0);
            check_closest_point(points + 3 * k, reach, &closest[k]);
        }
    }
    answer = 0;
}

typedef struct tie_points { const real *data; int32_t calls; } tie_points;

static real tie_distance2(void *user, int32_t id, const real *p)
{
    tie_points *points = (tie_points *)user;
    const real *at = points->data + 3 * (size_t)id;
    points->calls++;
    return lbvh_i_distance2(at, p);
}

/* Many elements at few points: as the binary tree, by few calls, also refitted and loaded. */
static void test_ties(void **state)
{
    enum { SITES = 20, K = 40 };
    int32_t const n = small_run() ? 2000 : 20000;
    real *data = NEW(real, 3 * (size_t)n), site[3 * SITES];
    int round, k, calls[2];
    (void)state;
    for (round = 0; round < 12; round++) {
        lbvh_desc desc;
        lbvh_wide_desc wide_desc;
        tie_points points;
        int32_t i, ids[2][K], found[2];
        real d2[2][K], p[3] = {3, 2, 1};
        for (i = 0; i < 3 * SITES; i++) site[i] = between(-1, 1);
        for (i = 0; i < n; i++)
            memcpy(data + 3 * i, site + 3 * (round % 2 ? roll(SITES) : 0), 3 * sizeof(real));
        memset(&desc, 0, sizeof desc);
        memset(&wide_desc, 0, sizeof wide_desc);
        desc.kind = LBVH_POINTS;
        desc.builder = (lbvh_builder)(round % 3);
        wide_desc.copy = round / 2 % 2;
        wide_desc.leaf = 1 + round % 4;
        CHECK_RESULT(lbvh_build(&s.tree, &desc, data, 0, n), LBVH_OK);
        if (round >= 9) { /* what lay apart comes together, in another order */
            for (i = 0; i < n; i++) memcpy(data + 3 * i, site + 3 * roll(SITES), 3 * sizeof(real));
            CHECK_RESULT(lbvh_refit(&s.tree, data, 0), LBVH_OK);
        }
        CHECK_RESULT(lbvh_wide_build(&s.wide, &wide_desc, &s.tree, data, 0), LBVH_OK);
        points.data = data;
        for (k = 1; k <= K; k += 13) {
            if (k > 1) for (i = 0; i < 3; i++) p[i] = between(-2, 2);
            for (i = 0; i < 2; i++) {
                points.calls = 0;
                CHECK_RESULT(i ? lbvh_wide_nearest(&s.wide, p, k, 10, tie_distance2, &points,
                                                   ids[i], d2[i], &found[i])
                               : lbvh_nearest(&s.tree, p, k, 10, tie_distance2, &points, ids[i],
                                              d2[i], &found[i]), LBVH_OK);
                calls[i] = points.calls;
            }
            CHECK(found[0] == k && found[1] == k && same(d2[0], d2[1], (size_t)k * sizeof(real)));
            CHECK(same(ids[0], ids[1], (size_t)k * sizeof(int32_t)));
            if (round < 9) CHECK(calls[0] < 4 * k + 200 && calls[1] < 4 * k + 200);
        }
    }
    free(data);
}

static void random_elements(real *data, int32_t n, int dim, int kind)
{
    int const width[4] = {2 * dim, dim, dim + 1, 3 * dim};
    int32_t k;
    for (k = 0; k < width[kind] * n; k++) data[k] = between(0, 1);
    for (k = 0; kind == LBVH_SPHERES && k < n; k++) data[k * width[2] + dim] *= (real)0.1;
}

/* Points, boxes and the plane: nearest and overlaps equal those of the binary tree, which half of
   the times has been rotated after all elements moved. */
static void test_boxes(void **state)
{
    int dim, kind, copy, k;
    (void)state;
    describe = NULL;
    for (dim = 2; dim <= 3; dim++) for (kind = 0; kind <= LBVH_TRIANGLES; kind++)
        for (copy = 0; copy < 4; copy++) {
            enum { N = 300, K = 5 };
            int const copied = copy % 2, rotated = copy / 2;
            real data[9 * N];
            lbvh_desc desc;
            lbvh_wide_desc wide;
            memset(&desc, 0, sizeof desc);
            memset(&wide, 0, sizeof wide);
            desc.dim = dim;
            desc.kind = (lbvh_kind)kind;
            desc.builder = kind % 2 ? LBVH_PLOC : LBVH_MERGE;
            desc.radius = (real)0.01;
            desc.skip_invalid = 1; /* a third of the boxes is inverted */
            wide.copy = copied;
            random_elements(data, N, dim, kind);
            CHECK_RESULT(lbvh_build(&s.tree, &desc, data, 0, N), LBVH_OK);
            if (rotated) {
                int32_t rotations = 0;
                random_elements(data, N, dim, kind);
                CHECK_RESULT(lbvh_refit(&s.tree, data, 0), LBVH_OK);
                CHECK_RESULT(lbvh_optimize(&s.tree, &rotations), LBVH_OK);
                CHECK(rotations > 0);
            }
            CHECK_RESULT(lbvh_wide_build(&s.wide, &wide, &s.tree, data, 0), LBVH_OK);
            CHECK_RESULT(lbvh_wide_validate(&s.wide, &s.tree), LBVH_OK);
            for (k = 0; k < 30; k++) {
                real box[6], p[3] = {between(0, 1), between(0, 1), between(0, 1)}, d2[2][K];
                int32_t ids[N], nearest[2][K], found[2] = {0, 0}, i;
                int64_t needed, there = 0;
                unsigned char in[N] = {0};
                lbvh_overlap o;
                for (i = 0; i < dim; i++) {
                    box[i] = between(0, 1);
                    box[dim + i] = box[i] + (k ? between(0, (real)0.3) : -1);
                }
                CHECK_RESULT(lbvh_wide_overlaps(&s.wide, box, 0, ids, N, &needed), LBVH_OK);
                for (i = 0; i < needed; i++) in[ids[i]]++;
                for (i = 0; i < N; i++) CHECK(in[i] <= 1);
                o = lbvh_overlap_box(&s.tree, box);
                for (; lbvh_next(&o); there++) CHECK(in[o.id] == 1);
                CHECK(copied ? needed == there : needed >= there);
                if (needed > 0)
                    CHECK_RESULT(lbvh_wide_overlaps(&s.wide, box, 0, ids, needed - 1, &there),
                                 LBVH_BUFFER_TOO_SMALL);
                if (!copied || s.wide.numbers == 9) continue;
                CHECK_RESULT(lbvh_nearest(&s.tree, p, K, (real)0.2, NULL, NULL, nearest[0], d2[0],
                                          &found[0]), LBVH_OK);
                CHECK_RESULT(lbvh_wide_nearest(&s.wide, p, K, (real)0.2, NULL, NULL, nearest[1],
                                               d2[1], &found[1]), LBVH_OK);
                CHECK(found[0] == found[1]);
                CHECK(same(d2[0], d2[1], (size_t)found[0] * sizeof(real)));
            }
        }
}

/* ------------------------------------------------------------------------------------------------
   Memory and refusals
   ------------------------------------------------------------------------------------------------
   */

static void test_memory(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0};
    lbvh_wide wide;
    lbvh_wide_desc desc;
    int64_t bytes;
    int fail;
    (void)state;
    begin(SOUP, 700, 1);
    memset(&wide, 0, sizeof wide);
    memset(&desc, 0, sizeof desc);
    desc.copy = 1;
    desc.allocator = allocator_of(&h);
    for (fail = 1; fail <= 3; fail++) {
        h.fail_at = h.calls + fail;
        CHECK_RESULT(lbvh_wide_build(&wide, &desc, &s.tree, s.corner, 0), LBVH_OUT_OF_MEMORY);
        CHECK(!wide.built);
        lbvh_wide_free(&wide);
        CHECK(h.live_blocks == 0);
    }
    CHECK_RESULT(lbvh_wide_bytes_for(&desc, &s.tree, &bytes), LBVH_OK);
    CHECK_RESULT(lbvh_wide_build(&wide, &desc, &s.tree, s.corner, 0), LBVH_OK);
    CHECK(bytes == lbvh_wide_bytes(&wide) && bytes == h.live_bytes);
    fail = (int)h.calls;
    CHECK_RESULT(lbvh_wide_build(&wide, &desc, &s.tree, s.corner, 0), LBVH_OK);
    CHECK(h.calls == fail); /* built again: nothing is allocated */
    CHECK_RESULT(lbvh_wide_validate(&wide, &s.tree), LBVH_OK);
    desc.allocator.user = NULL;
    CHECK_RESULT(lbvh_wide_build(&wide, &desc, &s.tree, s.corner, 0), LBVH_BAD_ALLOCATOR);
    lbvh_wide_free(&wide);
    CHECK(h.live_blocks == 0 && !h.wrong);
    lbvh_wide_free(&wide);
}

static void test_refusals(void **state)
{
    lbvh_wide wide;
    lbvh_wide_desc desc;
    lbvh_rays rays = the_rays();
    lbvh none;
    real p[3] = {0, 0, 0}, d2;
    int32_t id, found;
    int64_t needed;
    lbvh_closest closest;
    (void)state;
    begin(SOUP, 50, 0);
    memset(&wide, 0, sizeof wide);
    memset(&desc, 0, sizeof desc);
    memset(&none, 0, sizeof none);
    CHECK_RESULT(lbvh_wide_build(NULL, NULL, &s.tree, NULL, 0), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_wide_build(&wide, NULL, NULL, NULL, 0), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_wide_build(&wide, NULL, &none, NULL, 0), LBVH_NOT_BUILT);
    desc.leaf = 5;
    CHECK_RESULT(lbvh_wide_build(&wide, &desc, &s.tree, NULL, 0), LBVH_BAD_OPTION);
    CHECK_RESULT(lbvh_wide_bytes_for(&desc, &s.tree, &needed), LBVH_BAD_OPTION);
    desc.leaf = 0;
    desc.copy = 1;
    CHECK_RESULT(lbvh_wide_build(&wide, &desc, &s.tree, NULL, 0), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_wide_build(&wide, &desc, &s.tree, s.corner, 1), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_closest_hits(&wide, &rays, NULL, NULL, hits[0]), LBVH_NOT_BUILT);
    /* nothing was copied */
    CHECK_RESULT(lbvh_closest_hits(&s.wide, &rays, NULL, NULL, hits[0]), LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_any_hits(&s.wide, &rays, NULL, NULL, any[0]), LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_closest_points(&s.wide, p, 0, 1, 1, &closest), LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_wide_nearest(&s.wide, p, 1, 1, NULL, NULL, &id, &d2, &found), LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_wide_nearest(&s.wide, p, 1, -1, distance2_of, NULL, &id, &d2, &found),
                 LBVH_BAD_RADIUS);
    CHECK_RESULT(lbvh_wide_overlaps(&wide, p, 0, &id, 1, &needed), LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_wide_overlaps(&s.wide, p, 0, NULL, 1, &needed), LBVH_BAD_ARGUMENT);
    rays.n = -1;
    CHECK_RESULT(lbvh_closest_hits(&s.wide, &rays, own_test, &id, hits[0]), LBVH_BAD_ARGUMENT);
    rays.n = 1;
    rays.stride = sizeof(real);
    CHECK_RESULT(lbvh_closest_hits(&s.wide, &rays, own_test, &id, hits[0]), LBVH_BAD_ARGUMENT);
    rays.stride = 0;
    rays.t_max = -1;
    CHECK_RESULT(lbvh_closest_hits(&s.wide, &rays, own_test, &id, hits[0]), LBVH_BAD_RADIUS);
    rays.t_max = REAL_NAN;
    CHECK_RESULT(lbvh_any_hits(&s.wide, &rays, own_test, &id, any[0]), LBVH_BAD_RADIUS);
    CHECK_RESULT(lbvh_wide_validate(&wide, &s.tree), LBVH_NOT_BUILT);
}

#include "wide_files.c"

static const struct CMUnitTest wide[] = {
    TEST(test_structure),   TEST(test_extreme_boxes), TEST(test_validate), TEST(test_rays),
    TEST(test_builds),      TEST(test_own_elements),  TEST(test_ray_options),
    TEST(test_touched_boxes),
    TEST(test_touched_reach), TEST(test_around), TEST(test_reaches),
        TEST(test_closest_options), TEST(test_boxes),
    TEST(test_ties),
    TEST(test_memory),      TEST(test_refusals),      TEST(test_files),
    TEST(test_file_of_boxes), TEST(test_damaged_files), TEST(test_forged_depth),
    TEST(test_file_refusals),
};

int main(void)
{
    int failed = 0;
    RUN_GROUP(failed, wide, tear_down);
    return failed;
}
