/* lbvh_oracle.h - what test_lbvh.c and test_lbvh_calls.c share: inputs, and the truth about them. Everything is static.
   SPDX-License-Identifier: MIT OR Unlicense

   The oracles share no code with lbvh.h:

       trees      a recursive split of tree.code by its bits, one after the other (check_node), and boxes as unions of
                  all leaves below
       codes      coordinates in double, interleaved bit by bit; exact on lattices, within the rounding of a real elsewhere
       overlaps   brute force over the elements as they were given; only comparisons, so they are exact
       distances  the rule that the header states (every operation rounded) written once more, itself checked in long double
       rays       slabs in long double: a box that is met must be found, one missed by more than rounding must not;
                  between the two, either

   Environment:
       LBVH_TEST_SHARE=k    runs one k-th of the big products (default: 1; 3 under a sanitizer)
       LBVH_TEST_ONLY=p     runs the tests whose names match p, such as 'test_ray*'
       LBVH_TEST_SEED=s     replays the random operations with the seed that a failing run printed
       LBVH_TEST_STEPS=k    number of random operations
       TEST_SMALL=1         a small part of everything, for valgrind */

#ifndef LBVH_ORACLE_H
#define LBVH_ORACLE_H

#define STB_DS_IMPLEMENTATION
#include <stb/stb_ds.h>

#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define TESTED lbvh
#define SHARE environment("LBVH_TEST_SHARE", small_run() ? 60 : SANITIZED ? 3 : 1)
#include "testing.h"

/* ------------------------------------------------------------------------------------------------
   Scenes: elements as the caller has them, and the boxes that they ought to have
   ------------------------------------------------------------------------------------------------ */

typedef struct box { real min[3], max[3]; } box;

typedef struct scene {
    const char *input;
    int dim, bits, masked, keep;
    int indexed, skip_invalid, bounded;
    real low[3], high[3];   /* desc.min and desc.max, where bounded */
    lbvh_kind kind;
    lbvh_builder builder;
    real radius;            /* of points */
    int32_t n, vertices;
    size_t stride;          /* bytes, as given: 0 or more than an element */
    size_t step;            /* numbers between two elements (or vertices) */
    real *data;
    int32_t *indices;
    uint32_t *masks;
    box *truth;             /* by id; min above max: left out */
} scene;

static const scene *current_scene;

WL_FN void describe_scene(void)
{
    static const char *const kinds[] = {"boxes", "points", "spheres", "triangles"};
    const scene *s = current_scene;
    if (!s) return;
    print_error("  input %s, n %d, dim %d, bits %d, %s%s, radius %g, stride %d\n", s->input, (int)s->n, s->dim, s->bits,
                s->indexed ? "indexed " : "", kinds[s->kind], (double)s->radius, (int)s->stride);
    print_error("  builder %d, masks %d, codes %d, bounds %d\n", (int)s->builder, s->masked, s->keep, s->bounded);
}

WL_FN void forget(scene *s)
{
    free(s->data);
    free(s->indices);
    free(s->masks);
    free(s->truth);
    memset(s, 0, sizeof *s);
}

/* Inputs: the centre and half the edges of element i of n. */
typedef void input_fn(int32_t i, int32_t n, real centre[3], real half[3]);

WL_FN void all_axes(real v[3], real x) { v[0] = v[1] = v[2] = x; }

WL_FN void uniform(int32_t i, int32_t n, real centre[3], real half[3])
{
    int a;
    (void)i;
    for (a = 0; a < 3; a++) {
        centre[a] = between(-1, 1);
        half[a] = between(0, (real)(0.7 / cbrt((double)n)));
    }
}

WL_FN void all_equal(int32_t i, int32_t n, real centre[3], real half[3])
{
    (void)i;
    (void)n;
    all_axes(centre, (real)0.3);
    all_axes(half, (real)0.1);
}

WL_FN void on_a_line(int32_t i, int32_t n, real centre[3], real half[3])
{
    all_axes(centre, (real)(i * 7 % n));
    all_axes(half, (real)0.5);
}

WL_FN void bare_points(int32_t i, int32_t n, real centre[3], real half[3])
{
    uniform(i, n, centre, half);
    all_axes(half, 0);
}

/* Whole numbers up to 16, halves of edges too: many boxes touch exactly, many are equal, and codes have no rounding. */
WL_FN void lattice(int32_t i, int32_t n, real centre[3], real half[3])
{
    int a;
    (void)n;
    for (a = 0; a < 3; a++) {
        centre[a] = i < 2 ? (real)(16 * i) : (real)roll(17);
        half[a] = (real)(0.5 * roll(3));
    }
}

WL_FN void two_clumps(int32_t i, int32_t n, real centre[3], real half[3])
{
    real const far = i % 2 ? (real)1e6 : (real)-1e6;
    uniform(i, n, centre, half);
    centre[0] += far;
    centre[2] -= far;
}

WL_FN void clustered(int32_t i, int32_t n, real centre[3], real half[3])
{
    real const tight = (real)pow(10, -(double)(i % 5));
    int a;
    uniform(i, n, centre, half);
    for (a = 0; a < 3; a++) centre[a] = centre[a] * tight + (real)(i % 3);
}

WL_FN void all_sizes(int32_t i, int32_t n, real centre[3], real half[3])
{
    real const size = (real)pow(10, -3 * (double)wl_u(&dice));
    int a;
    (void)i;
    (void)n;
    for (a = 0; a < 3; a++) {
        centre[a] = between(-1, 1);
        half[a] = size * between((real)0.3, (real)0.5);
    }
}

WL_FN void flat(int32_t i, int32_t n, real centre[3], real half[3])
{
    uniform(i, n, centre, half);
    centre[1] = (real)0.75;
    half[1] = 0;
}

/* Cells side by side, some one number too short or too long: they touch, miss or overlap by the last bit. */
WL_FN void side_by_side(int32_t i, int32_t n, real centre[3], real half[3])
{
    int a;
    (void)i;
    (void)n;
    for (a = 0; a < 3; a++) {
        centre[a] = beside((real)0.1 * (real)(1 + roll(5)), roll(3) - 1);
        half[a] = beside((real)0.05, roll(3) - 1);
    }
}

typedef struct input { const char *name; input_fn *fn; } input;

static const input inputs[] = {
    {"uniform", uniform},     {"all equal", all_equal}, {"line", on_a_line}, {"points", bare_points}, {"lattice", lattice},
    {"two clumps", two_clumps}, {"clustered", clustered}, {"sizes 1:1000", all_sizes}, {"flat", flat},
    {"side by side", side_by_side},
};

enum { LATTICE = 4 };

WL_FN real *element(const scene *s, int32_t i) { return s->data + (size_t)i * s->step; }

/* Numbers of one element or vertex. */
WL_FN int width_of(const scene *s)
{
    switch (s->kind) {
    case LBVH_BOXES: return 2 * s->dim;
    case LBVH_POINTS: return s->dim;
    case LBVH_SPHERES: return s->dim + 1;
    default: return s->indexed ? s->dim : 3 * s->dim;
    }
}

/* The three corners of a triangle that fills the box: no two are equal along any axis but by chance. */
WL_FN void put_corner(const scene *s, real *corner, const real centre[3], const real half[3], int v)
{
    int a;
    for (a = 0; a < s->dim; a++) corner[a] = centre[a] + half[a] * (real)((v + a) % 3 - 1);
}

WL_FN void put_element(scene *s, int32_t i, const real centre[3], const real half[3])
{
    real *x = element(s, i);
    int a, v;
    if (s->kind == LBVH_TRIANGLES) {
        for (v = 0; v < 3; v++) {
            int32_t const vertex = s->indexed ? (i * 3 + v) * 7 % s->vertices : 0; /* any order; 7 does not divide their number */
            if (s->indexed) s->indices[3 * i + v] = vertex;
            put_corner(s, s->indexed ? element(s, vertex) : x + v * s->dim, centre, half, v);
        }
        return;
    }
    for (a = 0; a < s->dim; a++) x[a] = s->kind == LBVH_BOXES ? centre[a] - half[a] : centre[a];
    for (a = 0; a < s->dim && s->kind == LBVH_BOXES; a++) x[s->dim + a] = centre[a] + half[a];
    if (s->kind == LBVH_SPHERES) x[s->dim] = half[0];
}

WL_FN void include(box *b, const real *p, int dim)
{
    int a;
    for (a = 0; a < dim; a++) {
        if (p[a] < b->min[a]) b->min[a] = p[a];
        if (p[a] > b->max[a]) b->max[a] = p[a];
    }
}

/* The box of element i, by the words of the manual. */
WL_FN box box_by_hand(const scene *s, int32_t i)
{
    box b = {{0, 0, 0}, {0, 0, 0}};
    const real *x = element(s, s->indexed ? 0 : i);
    int a, v;
    for (a = 0; a < s->dim; a++) {
        if (s->kind == LBVH_BOXES) b.min[a] = x[a], b.max[a] = x[s->dim + a];
        if (s->kind == LBVH_POINTS) b.min[a] = x[a] - s->radius, b.max[a] = x[a] + s->radius;
        if (s->kind == LBVH_SPHERES) b.min[a] = x[a] - x[s->dim], b.max[a] = x[a] + x[s->dim];
        if (s->kind == LBVH_TRIANGLES) b.min[a] = REAL_INFINITY, b.max[a] = -REAL_INFINITY;
    }
    for (v = 0; v < 3 && s->kind == LBVH_TRIANGLES; v++)
        include(&b, s->indexed ? element(s, s->indices[3 * i + v]) : x + v * s->dim, s->dim);
    return b;
}

WL_FN void find_truth(scene *s)
{
    int32_t i;
    for (i = 0; i < s->n; i++) s->truth[i] = box_by_hand(s, i);
}

/* s has its options; this makes the elements. */
WL_FN void make_scene(scene *s, const input *in, int32_t n)
{
    int32_t i, rows;
    s->input = in->name;
    s->n = n;
    s->vertices = s->indexed ? 3 * n + (3 * n % 7 == 0) : 0;
    s->step = (size_t)width_of(s);
    if (s->stride) s->step += 2, s->stride = s->step * sizeof(real);
    rows = s->indexed ? s->vertices : n;
    s->data = NEW(real, (size_t)rows * s->step);
    s->truth = NEW(box, n);
    if (s->indexed) {
        s->indices = NEW(int32_t, 3 * n);
        for (i = 0; i < s->vertices; i++) memset(element(s, i), 0, sizeof(real) * (size_t)s->dim);
    }
    if (s->masked) s->masks = NEW(uint32_t, n);
    for (i = 0; i < n; i++) {
        real centre[3], half[3];
        in->fn(i, n, centre, half);
        put_element(s, i, centre, half);
        if (s->masked) s->masks[i] = roll(9) ? (uint32_t)1 << roll(5) | (uint32_t)(roll(4) == 0) << 31 : 0; /* 0: found by none */
    }
    find_truth(s);
}

WL_FN lbvh_desc desc_of(const scene *s)
{
    lbvh_desc d;
    int a;
    memset(&d, 0, sizeof d);
    d.dim = s->dim;
    d.kind = s->kind;
    d.radius = s->radius;
    d.indices = s->indices;
    d.vertices = s->vertices;
    d.bits = s->bits;
    d.builder = s->builder;
    d.masks = s->masks;
    d.keep_codes = s->keep;
    d.skip_invalid = s->skip_invalid;
    for (a = 0; a < 3 && s->bounded; a++) d.min[a] = s->low[a], d.max[a] = s->high[a];
    return d;
}

WL_FN void build(lbvh *tree, const scene *s)
{
    lbvh_desc const d = desc_of(s);
    CHECK_RESULT(lbvh_build(tree, &d, s->data, s->stride, s->n), LBVH_OK);
}

/* The kinds of elements: points are there with and without a radius, triangles with and without indices. */
enum { KINDS = 6 };

WL_FN void set_kind(scene *s, int kind)
{
    static const lbvh_kind kinds[KINDS] = {LBVH_BOXES, LBVH_POINTS, LBVH_POINTS, LBVH_SPHERES, LBVH_TRIANGLES, LBVH_TRIANGLES};
    s->kind = kinds[kind];
    s->radius = kind == 2 ? (real)0.125 : 0;
    s->indexed = kind == 5;
}

/* Bounds around some of the centres; whole numbers, so that codes on the lattice stay exact. */
WL_FN void set_bounds(scene *s)
{
    int a;
    s->bounded = 1;
    for (a = 0; a < 3; a++) {
        s->low[a] = (real)(roll(4) - 1);
        s->high[a] = s->low[a] + (real)(1 << roll(4));
    }
}

/* A scene of plain boxes in 3D, 63 bits. */
WL_FN void plain_scene(scene *s, const input *in, int32_t n)
{
    memset(s, 0, sizeof *s);
    s->dim = 3;
    s->bits = 63;
    make_scene(s, in, n);
    current_scene = s;
    describe = describe_scene;
}

WL_FN int is_out(const box *b) { return !(b->min[0] <= b->max[0]); }

WL_FN void leave_out(box *b)
{
    all_axes(b->min, REAL_INFINITY);
    all_axes(b->max, -REAL_INFINITY);
}

/* ------------------------------------------------------------------------------------------------
   The oracle of trees
   ------------------------------------------------------------------------------------------------ */

/* Bit `k` (0 is the first) of a code of `bits` followed by a place of 30. */
WL_FN int bit_of(uint64_t code, int32_t place, int bits, int k)
{
    return k < bits ? (int)(code >> (bits - 1 - k) & 1) : (int)((uint32_t)place >> (29 - (k - bits)) & 1);
}

WL_FN int code_bits(const lbvh_desc *d) { return d->dim == 3 ? d->bits : d->bits / 2 * 2; }

/* The first bit at which two places differ. */
WL_FN int differ_at(const uint64_t *code, int bits, int32_t i, int32_t j)
{
    int k = 0;
    while (k < bits + 30 && bit_of(code[i], i, bits, k) == bit_of(code[j], j, bits, k)) k++;
    return k;
}

/* What check_node adds up over the tree, in double. */
typedef struct sums { double area, overlap, depths; int32_t depth; } sums;

typedef struct judge { const lbvh *tree; const uint64_t *code; const box *truth; sums sum; } judge;

WL_FN void join(box *b, const box *other)
{
    int a;
    for (a = 0; a < 3; a++) {
        if (other->min[a] < b->min[a]) b->min[a] = other->min[a];
        if (other->max[a] > b->max[a]) b->max[a] = other->max[a];
    }
}

WL_FN double area_of(const box *b, int dim)
{
    double const x = (double)b->max[0] - (double)b->min[0], y = (double)b->max[1] - (double)b->min[1];
    double const z = (double)b->max[2] - (double)b->min[2];
    if (x < 0 || y < 0 || z < 0) return 0; /* left out, or two that do not meet */
    return dim == 3 ? 2 * (x * y + y * z + z * x) : 2 * (x + y);
}

WL_FN box common_part(const box *p, const box *q)
{
    box b = *p;
    int a;
    for (a = 0; a < 3; a++) {
        if (q->min[a] > b.min[a]) b.min[a] = q->min[a];
        if (q->max[a] < b.max[a]) b.max[a] = q->max[a];
    }
    return b;
}

WL_FN int same_box(const lbvh_node *node, const box *b)
{
    int a, equal = 1;
    for (a = 0; a < 3; a++) equal &= node->min[a] == b->min[a] && node->max[a] == b->max[a];
    return equal;
}

/* The node at `at` must be that of leaves first .. last, and what follows it `skip`. Returns its box, from the elements. */
WL_FN box check_node(judge *w, int32_t at, int32_t first, int32_t last, int32_t skip, int depth)
{
    const lbvh *t = w->tree;
    const lbvh_node *node = &t->node[at];
    int const bits = code_bits(&t->desc);
    int32_t split, left, right;
    box b, other, shared;
    CHECK(node->skip == skip && lbvh_last_place(t, node) == last);
    if (first == last) {
        CHECK(at == t->first_leaf + first && lbvh_is_leaf(t, at));
        b = w->truth[node->link];
        CHECK(same_box(node, &b));
        w->sum.depths += depth;
        if (depth > w->sum.depth) w->sum.depth = depth;
        w->sum.area += area_of(&b, t->desc.dim);
        return b;
    }
    { /* the last leaf that still has a 0 where the first and the last leaf part */
        int const turn = differ_at(w->code, bits, first, last);
        for (split = first; bit_of(w->code[split + 1], split + 1, bits, turn) == 0; split++) CHECK(split + 1 < last);
    }
    left = first == split ? t->n - 1 + first : split;
    right = split + 1 == last ? t->n - 1 + last : split + 1;
    CHECK(!lbvh_is_leaf(t, at) && node->link == left && lbvh_split_place(t, node) == split && lbvh_right_child(t, node) == right);
    b = check_node(w, left, first, split, right, depth + 1);
    other = check_node(w, right, split + 1, last, skip, depth + 1);
    shared = common_part(&b, &other);
    w->sum.overlap += area_of(&shared, t->desc.dim);
    join(&b, &other);
    CHECK(same_box(node, &b));
    w->sum.area += area_of(&b, t->desc.dim);
    if (t->mask) CHECK(t->mask[at] == (t->mask[left] | t->mask[right]));
    return b;
}

WL_FN int nearly(double got, double want, double slack) { return fabs(got - want) <= slack * (1 + fabs(want)); }

/* What lbvh_measure says, against the sums. */
WL_FN void check_quality(const judge *w, const box *root)
{
    double const area = area_of(root, w->tree->desc.dim);
    lbvh_quality q;
    memset(&q, 0xA5, sizeof q);
    CHECK_RESULT(lbvh_measure(w->tree, &q), LBVH_OK);
    CHECK(q.depth == w->sum.depth && q.depth <= w->tree->desc.bits + 30);
    CHECK(nearly(q.mean_depth, w->sum.depths / w->tree->n, 1e-9));
    CHECK(nearly(q.sah, area > 0 ? w->sum.area / area : 0, 1e-6));
    CHECK(nearly(q.overlap, area > 0 ? w->sum.overlap / area : 0, 1e-6));
}

/* Ids each once, codes and, within equal codes, ids ascend; what neighbours have in common. */
WL_FN void check_order(const lbvh *t, const uint64_t *code)
{
    uint8_t *seen = NEW(uint8_t, t->n);
    int const bits = code_bits(&t->desc);
    int32_t k;
    memset(seen, 0, (size_t)t->n);
    CHECK(t->prefix[0] == 0 && t->prefix[t->n] == 0);
    for (k = 0; k < t->n; k++) {
        int32_t const id = t->node[t->first_leaf + k].link;
        CHECK(id >= 0 && id < t->n && !seen[id]);
        seen[id] = 1;
        CHECK(code[k] >> bits == 0);
        if (k == 0) continue;
        CHECK(code[k - 1] < code[k] || (code[k - 1] == code[k] && t->node[t->first_leaf + k - 1].link < id));
        CHECK(t->prefix[k] == 1 + differ_at(code, bits, k - 1, k));
    }
    free(seen);
}

/* Everything about a tree. `code`: those of another tree of the same elements where this one keeps none. */
WL_FN void check_tree(const lbvh *t, const scene *s, const uint64_t *code)
{
    judge w;
    box root;
    int32_t i;
    memset(&w, 0, sizeof w);
    w.tree = t;
    w.code = t->code ? t->code : code;
    w.truth = s->truth;
    CHECK(t->n == s->n && t->first_leaf == (s->n ? s->n - 1 : 0) && lbvh_root(t) == (s->n ? 0 : -1));
    CHECK_RESULT(lbvh_validate(t), LBVH_OK);
    CHECK(!t->mask == !s->masked || s->n == 0);
    if (s->n == 0) return;
    check_order(t, w.code);
    for (i = 0; i < t->n && s->masked; i++) CHECK(t->mask[t->first_leaf + i] == s->masks[t->node[t->first_leaf + i].link]);
    root = check_node(&w, 0, 0, t->n - 1, -1, 0);
    check_quality(&w, &root);
}

WL_FN int32_t nodes_of(const lbvh *t) { return t->n ? 2 * t->n - 1 : 0; }

/* Same arrays, bit for bit. */
WL_FN void check_same_tree(const lbvh *a, const lbvh *b)
{
    CHECK(a->n == b->n && a->first_leaf == b->first_leaf && !a->mask == !b->mask);
    CHECK(same(a->node, b->node, (size_t)nodes_of(a) * sizeof *a->node));
    if (a->n) CHECK(same(a->prefix, b->prefix, (size_t)a->n + 1));
    if (a->mask) CHECK(same(a->mask, b->mask, (size_t)nodes_of(a) * sizeof *a->mask));
    if (a->code && b->code) CHECK(same(a->code, b->code, (size_t)a->n * sizeof *a->code));
}

/* ---- codes ---- */

/* Lattice coordinates from a code, bit by bit: x has the first. */
WL_FN void coordinates_of(uint64_t code, int dim, int axis_bits, uint32_t v[3])
{
    int k;
    v[0] = v[1] = v[2] = 0;
    for (k = 0; k < dim * axis_bits; k++) v[k % dim] = v[k % dim] << 1 | (uint32_t)(code >> (dim * axis_bits - 1 - k) & 1);
}

/* Codes from the centres of the boxes: cubes over the longest side, of the centres or of the bounds given. Exact for whole numbers,
   else within what rounding moves. */
WL_FN void check_codes(const lbvh *t, const scene *s, int exact)
{
    int const axis_bits = s->dim == 3 ? s->bits / 3 : s->bits / 2;
    double const cells = ldexp(1, axis_bits), last = s->dim == 2 && s->bits == 63 ? 2147483520 : cells - 1;
    double least[3], most[3], longest = 0, slack = 0;
    int32_t k;
    int a;
    for (a = 0; a < 3; a++) least[a] = (double)INFINITY, most[a] = -(double)INFINITY;
    for (k = 0; k < s->n; k++) for (a = 0; a < s->dim && !is_out(&s->truth[k]); a++) {
        double const centre = (double)s->truth[k].min[a] / 2 + (double)s->truth[k].max[a] / 2;
        if (centre < least[a]) least[a] = centre;
        if (centre > most[a]) most[a] = centre;
        if (fabs(centre) > slack) slack = fabs(centre);
    }
    for (a = 0; a < 3 && s->bounded; a++) least[a] = (double)s->low[a], most[a] = (double)s->high[a];
    for (a = 0; a < s->dim; a++) if (most[a] - least[a] > longest) longest = most[a] - least[a];
    slack = longest > 0 ? 1 + 4 * REAL_EPSILON * cells * (1 + slack / longest) : 0;
    for (k = 0; k < s->n; k++) {
        const box *b = &s->truth[t->node[t->first_leaf + k].link];
        uint32_t v[3];
        coordinates_of(t->code[k], s->dim, axis_bits, v);
        for (a = 0; a < s->dim; a++) {
            double const centre = (double)b->min[a] / 2 + (double)b->max[a] / 2;
            double want = longest > 0 ? floor((centre - least[a]) * (cells / longest)) : 0;
            if (want > last) want = last;
            if (want < 0) want = 0;
            if (is_out(b)) CHECK(v[a] == cells - 1); /* behind all others */
            else CHECK(exact ? v[a] == want : fabs(v[a] - want) <= slack);
        }
    }
}

/* ------------------------------------------------------------------------------------------------
   The oracle of searches
   ------------------------------------------------------------------------------------------------ */

WL_FN int touch(const box *a, const box *b, int dim)
{
    int x;
    for (x = 0; x < dim; x++) {
        if (!(a->min[x] <= a->max[x] && b->min[x] <= b->max[x])) return 0;
        if (a->max[x] < b->min[x] || b->max[x] < a->min[x]) return 0;
    }
    return 1;
}

/* Squared distance from p to a box: per axis 0 inside, else how far; every operation rounded, x first. */
WL_FN real distance2_by_hand(const box *b, const real *p, int dim)
{
    real d[3] = {0, 0, 0}, square;
    int a;
    for (a = 0; a < dim; a++) d[a] = p[a] < b->min[a] ? b->min[a] - p[a] : p[a] > b->max[a] ? p[a] - b->max[a] : 0;
    square = d[0] * d[0];
    square = square + d[1] * d[1];
    square = square + d[2] * d[2];
    return square;
}

/* Is the box within the radius? The rounded rule, and a look whether it is off by more than rounding. */
WL_FN int within(const box *b, const real *p, real radius, int dim)
{
    long double square = 0, slack, distance;
    int a, hit;
    for (a = 0; a < dim; a++) {
        long double const low = (long double)b->min[a] - (long double)p[a], high = (long double)p[a] - (long double)b->max[a];
        long double const d = low > 0 ? low : high > 0 ? high : 0;
        square += d * d;
    }
    for (a = 0; a < dim; a++) if (!(fabsl((long double)p[a]) <= (long double)REAL_LARGEST)) return 0;
    if (is_out(b) || !(radius >= 0)) return 0;
    hit = distance2_by_hand(b, p, dim) <= radius * radius;
    distance = sqrtl(square);
    slack = 8 * (long double)REAL_EPSILON * (distance + (long double)radius);
    if (distance < (long double)radius - slack) CHECK(hit);
    if (distance > (long double)radius + slack) CHECK(!hit);
    return hit;
}

WL_FN int passes(const scene *s, int32_t id, uint32_t filter) { return !s->masks || (s->masks[id] & filter) != 0; }

static uint8_t *wanted; /* stb_ds: by id, to be found once */

WL_FN void want_nothing(const scene *s)
{
    arrsetlen(wanted, (size_t)s->n + 1);
    memset(wanted, 0, (size_t)s->n + 1);
}

WL_FN void want_touching(const scene *s, const box *q, uint32_t filter)
{
    int32_t i;
    want_nothing(s);
    for (i = 0; i < s->n; i++) wanted[i] = (uint8_t)(touch(&s->truth[i], q, s->dim) && passes(s, i, filter));
}

WL_FN void want_within(const scene *s, const real *p, real radius, uint32_t filter)
{
    int32_t i;
    want_nothing(s);
    for (i = 0; i < s->n; i++) wanted[i] = (uint8_t)(within(&s->truth[i], p, radius, s->dim) && passes(s, i, filter));
}

/* The walk finds all that is wanted, once, by ascending place, and stays at its end. Returns how many. */
WL_FN int32_t check_walk(const scene *s, lbvh_overlap o)
{
    int32_t found = 0, before = -1, i;
    while (lbvh_next(&o)) {
        CHECK(o.place > before && o.place < s->n && o.tree->node[o.tree->first_leaf + o.place].link == o.id);
        CHECK(o.id >= 0 && o.id < s->n && wanted[o.id] == 1);
        wanted[o.id] = 0;
        before = o.place;
        found++;
    }
    CHECK(!lbvh_next(&o));
    for (i = 0; i < s->n; i++) CHECK(wanted[i] == 0 && "nothing was missed");
    return found;
}

WL_FN int32_t check_box(const lbvh *t, const scene *s, const box *q, uint32_t filter)
{
    real given[6];
    lbvh_overlap o;
    int32_t found;
    int a;
    for (a = 0; a < s->dim; a++) given[a] = q->min[a], given[s->dim + a] = q->max[a];
    want_touching(s, q, filter);
    o = lbvh_overlap_box(t, given);
    o.filter = filter;
    found = check_walk(s, o);
    want_touching(s, q, filter);
    o = lbvh_overlap_between(t, q->min, q->max);
    o.filter = filter;
    CHECK(check_walk(s, o) == found);
    return found;
}

WL_FN void check_point(const lbvh *t, const scene *s, const real *p, uint32_t filter)
{
    box q;
    lbvh_overlap o = lbvh_overlap_point(t, p);
    memcpy(q.min, p, sizeof(real) * (size_t)s->dim);
    memcpy(q.max, p, sizeof(real) * (size_t)s->dim);
    o.filter = filter;
    want_touching(s, &q, filter);
    check_walk(s, o);
}

WL_FN int32_t check_sphere(const lbvh *t, const scene *s, const real *p, real radius, uint32_t filter)
{
    lbvh_overlap o = lbvh_overlap_sphere(t, p, radius);
    o.filter = filter;
    want_within(s, p, radius, filter);
    return check_walk(s, o);
}

/* A number somewhere around the elements: among them, on a border of a box, or one bit beside it. */
WL_FN real interesting_number(const scene *s, int a)
{
    const box *b = s->n ? &s->truth[roll(s->n)] : NULL;
    if (!b || is_out(b)) return between(-2, 2);
    switch (roll(4)) {
    case 0: return beside(b->min[a], roll(3) - 1);
    case 1: return beside(b->max[a], roll(3) - 1);
    case 2: return b->min[a] + (b->max[a] - b->min[a]) * (real)wl_u(&dice) + between((real)-0.1, (real)0.1);
    default: return b->min[a] + between(-1, 1);
    }
}

/* The numbers beside 0 have squares that are not normal and inverses that are infinite. */
WL_FN real interesting(const scene *s, int a)
{
    real const x = interesting_number(s, a);
    return fabs((double)x) < 1e-15 ? 0 : x;
}

WL_FN void interesting_point(const scene *s, real p[3])
{
    int a;
    for (a = 0; a < 3; a++) p[a] = interesting(s, a);
}

WL_FN uint32_t some_filter(void) { return roll(2) ? 0xFFFFFFFFu : (uint32_t)1 << roll(5); }

WL_FN void check_searches(const lbvh *t, const scene *s, int count)
{
    while (count-- > 0) {
        box q;
        real p[3];
        int a;
        interesting_point(s, p);
        for (a = 0; a < 3; a++) {
            real const x = interesting(s, a);
            q.min[a] = x < p[a] ? x : p[a];
            q.max[a] = x < p[a] ? p[a] : x;
            if (roll(12) == 0) q.min[a] = -REAL_INFINITY;
            if (roll(12) == 0) q.max[a] = REAL_INFINITY;
        }
        check_box(t, s, &q, some_filter());
        check_point(t, s, p, some_filter());
        check_sphere(t, s, p, (real)pow(10, 1.5 - 4 * (double)wl_u(&dice)), some_filter());
        if (s->n) { /* the sphere that just reaches an element, and the box that is one */
            const box *b = &s->truth[roll(s->n)];
            real const d2 = distance2_by_hand(b, p, s->dim);
            if (!is_out(b)) check_sphere(t, s, p, (real)sqrt((double)d2), some_filter());
            check_box(t, s, b, some_filter());
        }
    }
}

/* ---- nearest ---- */

typedef struct near_one { int32_t id; real d2; } near_one;

WL_FN int nearer(const void *left, const void *right)
{
    const near_one *a = (const near_one *)left, *b = (const near_one *)right;
    if (a->d2 != b->d2) return a->d2 < b->d2 ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* A distance of the caller's own: to the centre of the box. Never less than that to the box, as the manual asks. */
WL_FN real to_centre(void *user, int32_t id, const real *p)
{
    const scene *s = (const scene *)user;
    const box *b = &s->truth[id];
    box centre = {{0, 0, 0}, {0, 0, 0}};
    int a;
    for (a = 0; a < s->dim; a++) centre.min[a] = centre.max[a] = b->min[a] + (b->max[a] - b->min[a]) / 2;
    return distance2_by_hand(&centre, p, s->dim);
}

/* All within the reach, sorted. */
WL_FN near_one *nearest_by_hand(const scene *s, const real *p, real reach, int own_distance)
{
    near_one *list = NULL, one;
    int32_t i;
    real const reach2 = reach * reach > REAL_LARGEST ? REAL_LARGEST : reach * reach;
    for (i = 0; i < s->n; i++) {
        if (is_out(&s->truth[i]) || !passes(s, i, 0xFFFFFFFFu)) continue;
        one.id = i;
        one.d2 = own_distance ? to_centre((void *)(size_t)s, i, p) : distance2_by_hand(&s->truth[i], p, s->dim);
        if (one.d2 <= reach2) arrput(list, one);
    }
    if (arrlen(list) > 1) qsort(list, (size_t)arrlen(list), sizeof *list, nearer);
    return list;
}

WL_FN void check_nearest(const lbvh *t, const scene *s, const real *p, int32_t k, real reach, int own_distance)
{
    near_one *want = nearest_by_hand(s, p, reach, own_distance);
    int32_t const most = arrlen(want) < k ? (int32_t)arrlen(want) : k;
    int32_t *ids = NEW(int32_t, k), found = -7, i;
    real *d2 = NEW(real, k);
    CHECK_RESULT(lbvh_nearest(t, p, k, reach, own_distance ? to_centre : NULL, (void *)(size_t)s, ids, d2, &found), LBVH_OK);
    CHECK(found == most);
    for (i = 0; i < most; i++) CHECK(ids[i] == want[i].id && d2[i] == want[i].d2);
    free(ids);
    free(d2);
    arrfree(want);
}

/* The walk itself, its reach left as it is: everything within it, with the distances; never further than asked. */
WL_FN void check_near_walk(const lbvh *t, const scene *s, const real *p, real reach, uint32_t filter)
{
    lbvh_near walk = lbvh_near_point(t, p, reach);
    real const reach2 = reach * reach > REAL_LARGEST ? REAL_LARGEST : reach * reach;
    int32_t i;
    want_nothing(s);
    for (i = 0; i < s->n; i++)
        wanted[i] = (uint8_t)(!is_out(&s->truth[i]) && passes(s, i, filter) &&
                              distance2_by_hand(&s->truth[i], p, s->dim) <= reach2);
    walk.filter = filter;
    while (lbvh_next_near(&walk)) {
        CHECK(walk.id >= 0 && walk.id < s->n && wanted[walk.id] == 1 && t->node[t->first_leaf + walk.place].link == walk.id);
        CHECK(walk.distance2 == distance2_by_hand(&s->truth[walk.id], p, s->dim) && walk.top < LBVH_STACK);
        wanted[walk.id] = 0;
    }
    CHECK(!lbvh_next_near(&walk));
    for (i = 0; i < s->n; i++) CHECK(wanted[i] == 0);
}

WL_FN void check_nears(const lbvh *t, const scene *s, int count)
{
    static const int32_t ks[] = {1, 2, 7, 40};
    while (count-- > 0) {
        real p[3], reach = roll(2) ? REAL_INFINITY : (real)pow(10, 1 - 3 * (double)wl_u(&dice));
        interesting_point(s, p);
        check_nearest(t, s, p, ks[roll(COUNT_OF(ks))], reach, roll(2));
        check_near_walk(t, s, p, reach, some_filter());
    }
}

/* ---- rays ---- */

enum { MISSED, GRAZED, MET };

/* Where the ray is in the box, in long double. Met when it truly is; missed when by more than rounding. */
WL_FN int slab(const scene *s, int32_t i, const real *o, const real *d, real t_max, long double *enters)
{
    const box *b = &s->truth[i];
    long double in = 0, out = (long double)t_max, slack;
    int a;
    *enters = 0;
    if (is_out(b)) return MISSED;
    for (a = 0; a < s->dim; a++) {
        long double const low = (long double)b->min[a] - (long double)o[a], high = (long double)b->max[a] - (long double)o[a];
        long double near_end, far_end;
        if (!(d[a] > 0) && !(d[a] < 0)) {
            if (low > 0 || high < 0) return MISSED;
            continue;
        }
        near_end = (d[a] > 0 ? low : high) / (long double)d[a];
        far_end = (d[a] > 0 ? high : low) / (long double)d[a];
        if (near_end > in) in = near_end;
        if (far_end < out) out = far_end;
    }
    *enters = in;
    slack = 12 * (long double)REAL_EPSILON * (fabsl(in) + fabsl(out));
    return in <= out ? MET : in <= out + slack ? GRAZED : MISSED;
}

/* All boxes along the ray, the closest by shrinking t_max, and whether there is any. */
WL_FN void check_ray(const lbvh *t, const scene *s, const real *o, const real *d, real t_max, uint32_t filter)
{
    lbvh_ray ray = lbvh_ray_cast(t, o, d, t_max);
    real least = REAL_INFINITY, closest = REAL_INFINITY;
    long double const tiny = IS_FLOAT ? 1e-37L : 1e-300L; /* where numbers have fewer digits */
    uint8_t *found = NEW(uint8_t, s->n);
    int32_t i, any = 0;
    memset(found, 0, (size_t)s->n);
    ray.filter = filter;
    ray.t_max = t_max; /* infinity too is the caller's to set */
    while (lbvh_next_ray(&ray)) {
        long double enters;
        CHECK(ray.id >= 0 && ray.id < s->n && !found[ray.id] && t->node[t->first_leaf + ray.place].link == ray.id);
        CHECK(passes(s, ray.id, filter) && slab(s, ray.id, o, d, t_max, &enters) != MISSED);
        CHECK(ray.t >= 0 && ray.t <= t_max && fabsl((long double)ray.t - enters) <= 4 * (long double)REAL_EPSILON * enters + tiny);
        found[ray.id] = 1;
        if (ray.t < least) least = ray.t;
        any = 1;
    }
    CHECK(!lbvh_next_ray(&ray));
    for (i = 0; i < s->n; i++) {
        long double enters;
        if (slab(s, i, o, d, t_max, &enters) == MET && passes(s, i, filter)) CHECK(found[i] && "no box slips through");
    }
    ray = lbvh_ray_cast(t, o, d, t_max);
    ray.filter = filter;
    while (lbvh_next_ray(&ray)) {
        CHECK(ray.t <= closest);
        ray.t_max = closest = ray.t;
    }
    CHECK(closest == (any ? least : REAL_INFINITY));
    free(found);
}

WL_FN void check_rays(const lbvh *t, const scene *s, int count)
{
    while (count-- > 0) {
        real o[3], d[3], to[3];
        int const kind = roll(6);
        int a;
        interesting_point(s, o);
        interesting_point(s, to);
        for (a = 0; a < 3; a++) {
            d[a] = to[a] - o[a]; /* often exactly at a corner */
            if (kind == 1) d[a] = 0;
            if (kind == 2) d[a] = (real)(roll(3) - 1); /* along the axes and diagonals, often in a face */
            if (kind == 3 && roll(2)) d[a] = roll(2) ? (real)0 : -(real)0;
            if (kind == 4) d[a] = (real)(1 << roll(10)) * (real)(roll(3) - 1);
        }
        check_ray(t, s, o, d, roll(3) ? REAL_INFINITY : (real)(2 * wl_u(&dice)), some_filter());
    }
}

/* ---- pairs ---- */

typedef struct pair_log { int64_t calls, stop_at; int32_t *ids; } pair_log;

WL_FN int log_pair(void *user, int32_t i, int32_t j)
{
    pair_log *log = (pair_log *)user;
    log->calls++;
    arrput(log->ids, i);
    arrput(log->ids, j);
    return log->calls == log->stop_at;
}

/* Places by id. */
WL_FN int32_t *places_of(const lbvh *t)
{
    int32_t *place = NEW(int32_t, t->n), k;
    for (k = 0; k < t->n; k++) place[t->node[t->first_leaf + k].link] = k;
    return place;
}

/* Pairs by brute force, in the order that the manual states: by the first's place, then the second's. */
WL_FN int32_t *pairs_by_hand(const lbvh *t, const scene *s)
{
    int32_t *list = NULL, i, j;
    for (i = 0; i < s->n; i++) for (j = i + 1; j < s->n; j++) {
        int32_t const p = t->node[t->first_leaf + i].link, q = t->node[t->first_leaf + j].link;
        if (!touch(&s->truth[p], &s->truth[q], s->dim) || (s->masks && !(s->masks[p] & s->masks[q]))) continue;
        arrput(list, p);
        arrput(list, q);
    }
    return list;
}

WL_FN void check_pairs(const lbvh *t, const scene *s)
{
    int32_t *want = pairs_by_hand(t, s), *stb = NULL;
    int64_t const count = arrlen(want) / 2;
    int64_t pairs = -1, needed = -1;
    int32_t *got = NEW(int32_t, 2 * count + 2);
    pair_log log = {0, 0, NULL};
    CHECK_RESULT(lbvh_count_pairs(t, &pairs), LBVH_OK);
    CHECK(pairs == count);
    CHECK_RESULT(lbvh_pairs(t, got, count, &needed), LBVH_OK);
    CHECK(needed == count && same(got, want, (size_t)count * 8) && got[2 * count] == (int32_t)0xA5A5A5A5u);
    CHECK_RESULT(lbvh_each_pair(t, log_pair, &log), LBVH_OK);
    CHECK(log.calls == count && same(log.ids, want, (size_t)count * 8));
    lbvh_arr_pairs(t, &stb);
    CHECK(arrlen(stb) == 2 * count && same(stb, want, (size_t)count * 8));
    if (count > 0) {
        int64_t const room = roll((int)count);
        memset(got, 0xA5, (size_t)(2 * count + 2) * sizeof *got);
        CHECK_RESULT(lbvh_pairs(t, got, room, &needed), LBVH_BUFFER_TOO_SMALL);
        CHECK(needed == count && same(got, want, (size_t)room * 8) && got[2 * room] == (int32_t)0xA5A5A5A5u);
        CHECK_RESULT(lbvh_pairs(t, NULL, 0, &needed), LBVH_BUFFER_TOO_SMALL);
        CHECK(needed == count);
        log.calls = 0;
        log.stop_at = 1 + room;
        CHECK_RESULT(lbvh_each_pair(t, log_pair, &log), LBVH_STOPPED);
        CHECK(log.calls == 1 + room);
    }
    free(got);
    arrfree(want);
    arrfree(stb);
    arrfree(log.ids);
}

/* ---- lists ---- */

/* The rows that a lbvh_queries ought to give, in one array behind another. */
WL_FN void rows_by_hand(const lbvh *t, const scene *s, const lbvh_queries *q, int64_t *offsets, int32_t **ids)
{
    int const own = !q->data, dim = s->dim;
    int32_t const rows = own ? s->n : q->n;
    int32_t *place = places_of(t), row, k;
    for (row = 0; row < rows; row++) {
        int32_t const id = own && (q->flags & LBVH_PLACES) ? t->node[t->first_leaf + row].link : row;
        uint32_t const own_mask = own && s->masks ? s->masks[id] : 0xFFFFFFFFu;
        uint32_t const filter = (q->filters ? q->filters[id] : q->filter ? q->filter : 0xFFFFFFFFu) & own_mask;
        const real *x = own ? NULL : q->data + (size_t)row * (q->stride / sizeof(real));
        real p[3] = {0, 0, 0}, radius = q->radius;
        box b = own ? s->truth[id] : s->truth[0];
        int a;
        for (a = 0; a < dim; a++) {
            if (!own && q->kind == LBVH_BOXES) b.min[a] = x[a], b.max[a] = x[dim + a];
            p[a] = own ? 2 * (b.min[a] * (real)0.25 + b.max[a] * (real)0.25) : x[a];
        }
        if (!own && q->kind == LBVH_SPHERES) radius = x[dim];
        offsets[row] = arrlen(*ids);
        for (k = 0; k < s->n; k++) {
            int32_t const other = t->node[t->first_leaf + k].link;
            if (own && (other == id || ((q->flags & LBVH_HALF) && k < place[id]) || is_out(&s->truth[id]))) continue;
            if (!passes(s, other, filter)) continue;
            if (q->kind == LBVH_BOXES ? !touch(&b, &s->truth[other], dim) : !within(&s->truth[other], p, radius, dim)) continue;
            arrput(*ids, q->flags & LBVH_PLACES ? k : other);
        }
    }
    offsets[rows] = arrlen(*ids);
    free(place);
}

/* Counts and lists, whole and into too little room. */
WL_FN void check_rows(const lbvh *t, const scene *s, const lbvh_queries *q)
{
    int32_t const rows = q->data ? q->n : s->n;
    int64_t *want_offsets = NEW(int64_t, rows + 1), *offsets = NEW(int64_t, rows + 2), needed = -1, total, room;
    int32_t *want = NULL, *ids, *counts = NEW(int32_t, rows + 1), row;
    rows_by_hand(t, s, q, want_offsets, &want);
    total = arrlen(want);
    CHECK_RESULT(lbvh_count_overlaps(t, q, counts), LBVH_OK);
    for (row = 0; row < rows; row++) CHECK(counts[row] == want_offsets[row + 1] - want_offsets[row]);
    CHECK(counts[rows] == (int32_t)0xA5A5A5A5u);
    for (room = total; room >= 0; room = room == 0 ? -1 : room == total && total > 1 ? (int64_t)roll((int)total) : 0) {
        ids = NEW(int32_t, room + 1);
        memset(offsets, 0xA5, sizeof *offsets * (size_t)(rows + 2));
        CHECK_RESULT(lbvh_overlaps(t, q, offsets, room ? ids : NULL, room, &needed),
                     room < total ? LBVH_BUFFER_TOO_SMALL : LBVH_OK);
        CHECK(needed == total && same(offsets, want_offsets, sizeof *offsets * (size_t)(rows + 1)));
        CHECK(offsets[rows + 1] == (int64_t)0xA5A5A5A5A5A5A5A5u && ids[room] == (int32_t)0xA5A5A5A5u);
        for (row = 0; row < rows; row++) {
            size_t const bytes = sizeof *ids * (size_t)(offsets[row + 1] - offsets[row]);
            if (offsets[row + 1] <= room) CHECK(same(ids + offsets[row], want + offsets[row], bytes));
        }
        free(ids);
    }
    free(want_offsets);
    free(offsets);
    free(counts);
    arrfree(want);
}

WL_FN void check_own_rows(const lbvh *t, const scene *s)
{
    lbvh_queries q;
    uint32_t *filters = NEW(uint32_t, s->n);
    int32_t i;
    int kind, flags;
    for (i = 0; i < s->n; i++) filters[i] = roll(3) ? 0xFFFFFFFFu : (uint32_t)roll(32);
    for (kind = LBVH_BOXES; kind <= LBVH_POINTS; kind++)
        for (flags = 0; flags < 8; flags++) {
            memset(&q, 0, sizeof q);
            q.kind = (lbvh_kind)kind;
            q.flags = flags;
            q.radius = roll(2) ? (real)(0.3 * wl_u(&dice)) : (real)roll(3);
            if (roll(2)) q.filter = some_filter();
            if (roll(2)) q.filters = filters;
            check_rows(t, s, &q);
        }
    free(filters);
}

/* Queries of the caller's, with a stride; some of them are nonsense and find nothing. */
WL_FN void check_given_rows(const lbvh *t, const scene *s)
{
    static const int widths[] = {2, 1, 1};
    uint32_t filters[9];
    lbvh_queries q;
    int kind, a;
    int32_t i;
    for (kind = LBVH_BOXES; kind <= LBVH_SPHERES; kind++) {
        int const width = widths[kind] * s->dim + (kind == LBVH_SPHERES), step = width + roll(2);
        real *x = NEW(real, 9 * step);
        memset(&q, 0, sizeof q);
        for (i = 0; i < 9; i++) {
            filters[i] = roll(2) ? 0xFFFFFFFFu : (uint32_t)roll(32);
            for (a = 0; a < s->dim; a++) x[i * step + a] = interesting(s, a);
            for (a = 0; a < s->dim && kind == LBVH_BOXES; a++) x[i * step + s->dim + a] = x[i * step + a] + between(0, (real)0.7);
            if (kind == LBVH_SPHERES) x[i * step + s->dim] = between(0, (real)0.7);
        }
        x[3 * step + roll(width)] = REAL_NAN;
        if (kind == LBVH_BOXES) x[4 * step + s->dim] = x[4 * step] - 1;
        if (kind == LBVH_SPHERES) x[4 * step + s->dim] = -1;
        if (kind != LBVH_BOXES) x[5 * step] = REAL_INFINITY;
        q.kind = (lbvh_kind)kind;
        q.data = x;
        q.stride = (size_t)step * sizeof(real);
        q.n = 9;
        q.radius = kind == LBVH_POINTS ? between(0, (real)0.7) : 0;
        q.flags = roll(2) ? (int)LBVH_SORTED : 0;
        if (roll(2)) q.filter = some_filter();
        if (roll(2)) q.filters = filters;
        if (s->n) check_rows(t, s, &q);
        free(x);
    }
}

WL_FN void check_stb(const lbvh *t, const scene *s)
{
    int32_t *hits = NULL;
    box q = {{-1, -1, -1}, {1, 1, 1}};
    real given[6] = {-1, -1, -1, 1, 1, 1}, p[3] = {0, 0, 0};
    ptrdiff_t k, first;
    if (s->dim == 2) given[2] = given[3] = 1;
    arrput(hits, -5); /* what is there stays */
    lbvh_arr_overlaps(t, given, &hits);
    want_touching(s, &q, 0xFFFFFFFFu);
    for (k = 1; k < arrlen(hits); k++) CHECK(wanted[hits[k]]-- == 1);
    for (k = 0; k < s->n; k++) CHECK(!wanted[k]);
    first = arrlen(hits);
    lbvh_arr_within(t, p, 1, &hits);
    want_within(s, p, 1, 0xFFFFFFFFu);
    for (k = first; k < arrlen(hits); k++) CHECK(wanted[hits[k]]-- == 1);
    for (k = 0; k < s->n; k++) CHECK(!wanted[k]);
    CHECK(hits[0] == -5);
    arrfree(hits);
}

/* Every search that there is. */
WL_FN void check_everything(const lbvh *t, const scene *s, int count)
{
    check_searches(t, s, count);
    check_nears(t, s, count);
    check_rays(t, s, 2 * count);
    if (s->n <= 1000) check_pairs(t, s);
    if (s->n <= 120) check_own_rows(t, s);
    check_given_rows(t, s);
    check_stb(t, s);
}

WL_FN int set_up_scene(void **state)
{
    current_scene = NULL;
    return set_up(state);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup(name, set_up_scene)

WL_FN int tear_down(void **state)
{
    (void)state;
    arrfree(wanted);
    return 0;
}

#endif /* LBVH_ORACLE_H */
