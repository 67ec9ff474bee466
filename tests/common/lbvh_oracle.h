/* lbvh_oracle.h - what the parts of test_lbvh.c share: inputs, and the expected answers. Everything
   is static. lbvh_search_oracle.h has the oracles of searches.
   SPDX-License-Identifier: MIT OR Unlicense

   The oracles share no code with lbvh.h:

       trees      a recursive split of tree.code by its bits, one after the other (check_node), and
                  boxes as unions of all leaves below
       codes      coordinates in double, interleaved bit by bit; exact on lattices, within the
                  rounding of a real elsewhere
       overlaps   brute force over the elements as they were given; only comparisons, so they are
                  exact
       distances  the rule that the header states (every operation rounded) written once more,
                  itself checked in long double
       rays       slabs in long double: a box that is met must be found, one missed by more than
                  rounding must not; between the two, either

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
   ---------------------------------------------------------------------------------------------- */

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
    print_error("  input %s, n %d, dim %d, bits %d, %s%s, radius %g, stride %d\n", s->input,
        (int)s->n, s->dim, s->bits, s->indexed ? "indexed " : "", kinds[s->kind], (double)s->radius,
        (int)s->stride);
    print_error("  builder %d, masks %d, codes %d, bounds %d\n", (int)s->builder, s->masked,
        s->keep, s->bounded);
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

/* Whole numbers up to 16, halves of edges too: many boxes touch exactly, many are equal, and codes
   have no rounding. */
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

/* Cells side by side, some one number too short or too long: they touch, miss or overlap by the
   last bit. */
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
    {"uniform", uniform},     {"all equal", all_equal}, {"line", on_a_line},
    {"points", bare_points}, {"lattice", lattice},
    {"two clumps", two_clumps}, {"clustered", clustered}, {"sizes 1:1000", all_sizes},
    {"flat", flat},
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

/* The three corners of a triangle that fills the box: no two are equal along any axis but by
   chance. */
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
            /* any order; 7 does not divide their number */
            int32_t const vertex = s->indexed ? (i * 3 + v) * 7 % s->vertices : 0;
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
        /* 0: found by none */
        if (s->masked)
            s->masks[i] = roll(9) ? (uint32_t)1 << roll(5) | (uint32_t)(roll(4) == 0) << 31 : 0;
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

/* The kinds of elements: points are there with and without a radius, triangles with and without
   indices. */
enum { KINDS = 6 };

WL_FN void set_kind(scene *s, int kind)
{
    static const lbvh_kind kinds[KINDS] = {LBVH_BOXES, LBVH_POINTS, LBVH_POINTS, LBVH_SPHERES,
        LBVH_TRIANGLES, LBVH_TRIANGLES};
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
   ---------------------------------------------------------------------------------------------- */

/* Bit `k` (0 is the first) of a code of `bits` followed by a place of 30. */
WL_FN int bit_of(uint64_t code, int32_t place, int bits, int k)
{
    return k < bits ? (int)(code >> (bits - 1 - k) & 1) :
        (int)((uint32_t)place >> (29 - (k - bits)) & 1);
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
    double const x = (double)b->max[0] - (double)b->min[0],
        y = (double)b->max[1] - (double)b->min[1];
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

/* The node at `at` must be that of leaves first .. last, and what follows it `skip`. Returns its
   box, from the elements. */
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
    if (t->desc.builder == LBVH_PLOC) { /* the border with the least prefix, and only that one */
        int32_t k;
        for (split = first, k = first + 1; k < last; k++)
            if (t->prefix[k + 1] < t->prefix[split + 1]) split = k;
        for (k = first; k < last; k++) CHECK(k == split || t->prefix[k + 1] > t->prefix[split + 1]);
    } else { /* the last leaf that still has a 0 where the first and the last leaf part */
        int const turn = differ_at(w->code, bits, first, last);
        for (split = first; bit_of(w->code[split + 1], split + 1, bits, turn) == 0; split++)
            CHECK(split + 1 < last);
    }
    left = first == split ? t->n - 1 + first : split;
    right = split + 1 == last ? t->n - 1 + last : split + 1;
    CHECK(!lbvh_is_leaf(t, at) && node->link == left && lbvh_split_place(t, node) == split &&
        lbvh_right_child(t, node) == right);
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

WL_FN int nearly(double got, double want, double slack)
{
    return fabs(got - want) <= slack * (1 + fabs(want));
}

/* What lbvh_measure says, against the sums. */
WL_FN void check_quality(const judge *w, const box *root)
{
    double const area = area_of(root, w->tree->desc.dim);
    lbvh_quality q;
    memset(&q, 0xA5, sizeof q);
    CHECK_RESULT(lbvh_measure(w->tree, &q), LBVH_OK);
    CHECK(q.depth == w->sum.depth && q.depth <= 93);
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
        CHECK(code[k - 1] < code[k] ||
            (code[k - 1] == code[k] && t->node[t->first_leaf + k - 1].link < id));
        CHECK(t->prefix[k] == 1 + differ_at(code, bits, k - 1, k));
    }
    free(seen);
}

/* Everything about a tree. `code`: those of another tree of the same elements where this one keeps
   none. */
WL_FN void check_tree(const lbvh *t, const scene *s, const uint64_t *code)
{
    judge w;
    box root;
    int32_t i;
    memset(&w, 0, sizeof w);
    w.tree = t;
    w.code = t->code ? t->code : code;
    w.truth = s->truth;
    CHECK(t->n == s->n && t->first_leaf == (s->n ? s->n - 1 : 0) &&
        lbvh_root(t) == (s->n ? 0 : -1));
    CHECK_RESULT(lbvh_validate(t), LBVH_OK);
    CHECK(!t->mask == !s->masked || s->n == 0);
    if (s->n == 0) return;
    if (t->desc.builder != LBVH_PLOC) check_order(t, w.code);
    for (i = 0; i < t->n && s->masked; i++)
        CHECK(t->mask[t->first_leaf + i] == s->masks[t->node[t->first_leaf + i].link]);
    root = check_node(&w, 0, 0, t->n - 1, -1, 0);
    check_quality(&w, &root);
}

WL_FN int32_t nodes_of(const lbvh *t) { return t->n ? 2 * t->n - 1 : 0; }

/* Same arrays, bit for bit. */
WL_FN void check_same_tree(const lbvh *a, const lbvh *b)
{
    CHECK(a->n == b->n && a->first_leaf == b->first_leaf && (!a->n || !a->mask == !b->mask));
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
    for (k = 0; k < dim * axis_bits; k++)
        v[k % dim] = v[k % dim] << 1 | (uint32_t)(code >> (dim * axis_bits - 1 - k) & 1);
}

/* The sample, by half centres (>>quantiles). */
typedef struct half_centre { real x[3]; } half_centre;
typedef struct sampled { half_centre at[LBVH_I_SAMPLE]; int32_t count; } sampled;

WL_FN half_centre half_centre_of(const box *b, int dim)
{
    half_centre h;
    int a;
    memset(&h, 0, sizeof h);
    for (a = 0; a < dim; a++) h.x[a] = b->min[a] / 4 + b->max[a] / 4;
    return h;
}

/* How many of the sample are the first with their code, or with their centre. */
WL_FN int32_t different_of(const sampled *sample, const uint64_t *code)
{
    int32_t i, j, count = 0;
    for (i = 0; i < sample->count; i++) {
        for (j = 0; j < i; j++)
            if (code ? code[i] == code[j]
                     : same(&sample->at[i], &sample->at[j], sizeof sample->at[i])) break;
        count += j == i;
    }
    return count;
}

WL_FN int by_number(const void *a, const void *b)
{
    real const x = *(const real *)a, y = *(const real *)b;
    return (x > y) - (x < y);
}

/* 1 if this lattice is fit for the scene. */
WL_FN int is_fit(const scene *s, const lbvh_lattice *lattice, sampled *sample)
{
    uint64_t code[LBVH_I_SAMPLE];
    int32_t k;
    sample->count = 0;
    for (k = 0; k < s->n && k < LBVH_I_SAMPLE; k++) {
        const box *b = &s->truth[lbvh_i_sample_id(k, s->n)];
        if (is_out(b)) continue;
        code[sample->count] = lbvh_i_code(lattice, s->dim, s->bits, b->min, b->max);
        sample->at[sample->count++] = half_centre_of(b, s->dim);
    }
    return different_of(sample, NULL) - different_of(sample, code) < 16;
}

/* Coordinates by quantiles, where the lattice is not fit. The sample is sorted along each axis. */
WL_FN void check_quantiles(const lbvh *t, const scene *s, const sampled *sample,
                           const real least[3], const real most[3])
{
    int const axis_bits = s->dim == 3 ? s->bits / 3 : s->bits / 2;
    double const cells = ldexp(1, axis_bits - 8);
    real knot[3][257], x[LBVH_I_SAMPLE];
    int32_t k;
    int a, j;
    for (a = 0; a < s->dim; a++) {
        for (k = 0; k < sample->count; k++) x[k] = sample->at[k].x[a];
        qsort(x, (size_t)sample->count, sizeof *x, by_number);
        for (j = 0; j <= 256; j++) knot[a][j] = x[j * (sample->count - 1) / 256];
        if (least[a] < knot[a][0]) knot[a][0] = least[a];
        if (most[a] > knot[a][256]) knot[a][256] = most[a];
    }
    for (k = 0; k < s->n; k++) {
        const box *b = &s->truth[t->node[t->first_leaf + k].link];
        half_centre const h = half_centre_of(b, s->dim);
        uint32_t v[3];
        coordinates_of(t->code[k], s->dim, axis_bits, v);
        for (a = 0; a < s->dim; a++) {
            double want;
            for (j = 0; j < 255 && knot[a][j + 1] <= h.x[a];) j++;
            want = ((double)h.x[a] - (double)knot[a][j]) /
                   ((double)knot[a][j + 1] - (double)knot[a][j]) * cells;
            if (is_out(b)) CHECK(v[a] == ldexp(1, axis_bits) - 1);
            else if (h.x[a] <= knot[a][0]) CHECK(v[a] == 0 || knot[a][0] == knot[a][1]);
            else if (h.x[a] >= knot[a][256]) CHECK(v[a] >= 255 * cells);
            else CHECK(v[a] >= j * cells && v[a] < (j + 1) * cells &&
                       fabs(v[a] - j * cells - floor(want)) <= 1 + 8 * REAL_EPSILON * cells);
        }
    }
}

/* Codes from the centres of the boxes: cubes over the longest side, of the centres or of the bounds
   given. Exact for whole numbers, else within what rounding moves. */
WL_FN void check_codes(const lbvh *t, const scene *s, int exact)
{
    int const axis_bits = s->dim == 3 ? s->bits / 3 : s->bits / 2;
    double const cells = ldexp(1, axis_bits),
        last = s->dim == 2 && s->bits == 63 ? 2147483520 : cells - 1;
    double least[3], most[3], longest = 0, slack = 0;
    real half_least[3], half_most[3];
    lbvh_lattice lattice;
    sampled sample;
    int32_t k;
    int a;
    for (a = 0; a < 3; a++) least[a] = (double)INFINITY, most[a] = -(double)INFINITY;
    for (k = 0; k < s->n; k++) for (a = 0; a < s->dim && !is_out(&s->truth[k]); a++) {
        double const centre = (double)s->truth[k].min[a] / 2 + (double)s->truth[k].max[a] / 2;
        if (centre < least[a]) least[a] = centre;
        if (centre > most[a]) most[a] = centre;
        if (fabs(centre) > slack) slack = fabs(centre);
    }
    for (a = 0; a < 3 && s->bounded; a++)
        least[a] = (double)s->low[a], most[a] = (double)s->high[a];
    for (a = 0; a < 3; a++)
        half_least[a] = (real)(least[a] / 2), half_most[a] = (real)(most[a] / 2);
    lattice = lbvh_i_lattice_of(s->dim, s->bits, half_least, half_most);
    if (!is_fit(s, &lattice, &sample)) {
        check_quantiles(t, s, &sample, half_least, half_most);
        return;
    }
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

#include "lbvh_search_oracle.h"

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
