/* plain_tree.h - the tree that one would write in an afternoon: the baseline of bench_lbvh.c.
   30-bit Morton codes, a radix sort, ranges split at the highest differing bit, up to 4 boxes in a
   leaf, and walks from the root with a stack. It shares no code with lbvh.h, so its totals are also
   the check on the totals of lbvh.h.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef PLAIN_TREE_H
#define PLAIN_TREE_H

#include "bench.h"

enum { PLAIN_LEAF = 4, PLAIN_STACK = 128 };

typedef struct plain_box { float min[3], max[3]; } plain_box;

typedef struct plain_node {
    plain_box box;
    /* leaf: its boxes are first .. first + count - 1; inner node: count 0, children first and first
       + 1 */
    int32_t first, count;
} plain_node;

typedef struct plain_tree {
    int32_t n, used;
    plain_node *node;
    plain_box *box;         /* in Morton order */
    int32_t *id;
    uint64_t *key, *spare;  /* code, id */
} plain_tree;

BENCH_FN plain_tree plain_tree_make(int32_t n)
{
    size_t const m = (size_t)n;
    plain_tree t;
    t.n = n;
    t.used = 0;
    t.node = (plain_node *)bench_alloc(2 * m * sizeof *t.node);
    t.box = (plain_box *)bench_alloc(m * sizeof *t.box);
    t.id = (int32_t *)bench_alloc(m * sizeof *t.id);
    t.key = (uint64_t *)bench_alloc(m * sizeof *t.key);
    t.spare = (uint64_t *)bench_alloc(m * sizeof *t.spare);
    return t;
}

BENCH_FN void plain_tree_free(plain_tree *t)
{
    free(t->node);
    free(t->box);
    free(t->id);
    free(t->key);
    free(t->spare);
    memset(t, 0, sizeof *t);
}

/* ---- build ---- */

BENCH_FN plain_box plain_nothing(void)
{
    plain_box const none = {{1e30f, 1e30f, 1e30f}, {-1e30f, -1e30f, -1e30f}};
    return none;
}

BENCH_FN void plain_grow(plain_box *all, const plain_box *one)
{
    int a;
    for (a = 0; a < 3; a++) {
        if (one->min[a] < all->min[a]) all->min[a] = one->min[a];
        if (one->max[a] > all->max[a]) all->max[a] = one->max[a];
    }
}

/* The 30-bit Morton code of the box's centre within `all`. */
BENCH_FN uint32_t plain_code(const plain_box *all, const plain_box *box)
{
    uint32_t code = 0;
    int a, bit;
    for (a = 0; a < 3; a++) {
        float const width = all->max[a] - all->min[a], centre = 0.5f * (box->min[a] + box->max[a]);
        uint32_t cell = (uint32_t)(width > 0 ? 1023.99f * (centre - all->min[a]) / width : 0);
        uint32_t spread = 0;
        for (bit = 0; bit < 10; bit++) spread |= (cell >> bit & 1u) << 3 * bit;
        code |= spread << a;
    }
    return code;
}

/* Three passes of 10 bits. The result is in t->key. */
BENCH_FN void plain_sort(plain_tree *t)
{
    int32_t i;
    int pass, digit;
    for (pass = 0; pass < 3; pass++) {
        int32_t begin[1025] = {0};
        int const shift = 32 + 10 * pass;
        uint64_t *const from = t->key, *const to = t->spare;
        for (i = 0; i < t->n; i++) begin[(from[i] >> shift & 1023u) + 1]++;
        for (digit = 0; digit < 1024; digit++) begin[digit + 1] += begin[digit];
        for (i = 0; i < t->n; i++) to[begin[from[i] >> shift & 1023u]++] = from[i];
        t->key = to;
        t->spare = from;
    }
}

/* The first of places first .. last whose code has the highest bit set in which they differ; the
   middle if they are equal. */
BENCH_FN int32_t plain_split(const plain_tree *t, int32_t first, int32_t last)
{
    uint32_t const low = (uint32_t)(t->key[first] >> 32), high = (uint32_t)(t->key[last] >> 32);
    uint32_t bit = 0x20000000u;
    if (low == high) return (first + last + 1) / 2;
    while (!((low ^ high) & bit)) bit >>= 1;
    while (first + 1 < last) {
        int32_t const middle = (first + last) / 2;
        if ((uint32_t)(t->key[middle] >> 32) & bit) last = middle;
        else first = middle;
    }
    return last;
}

BENCH_FN void plain_divide(plain_tree *t, int32_t at, int32_t first, int32_t last)
{
    plain_node *node = &t->node[at];
    int32_t split, child, k;
    node->box = plain_nothing();
    if (last - first < PLAIN_LEAF) {
        for (k = first; k <= last; k++) plain_grow(&node->box, &t->box[k]);
        node->first = first;
        node->count = last - first + 1;
        return;
    }
    split = plain_split(t, first, last);
    child = t->used;
    t->used += 2;
    node->first = child;
    node->count = 0;
    plain_divide(t, child, first, split - 1);
    plain_divide(t, child + 1, split, last);
    plain_grow(&node->box, &t->node[child].box);
    plain_grow(&node->box, &t->node[child + 1].box);
}

/* boxes: min x y z, max x y z. */
BENCH_FN void plain_tree_build(plain_tree *t, const float *boxes)
{
    const plain_box *box = (const plain_box *)(const void *)boxes;
    plain_box all = plain_nothing();
    int32_t i;
    for (i = 0; i < t->n; i++) plain_grow(&all, &box[i]);
    for (i = 0; i < t->n; i++) t->key[i] = (uint64_t)plain_code(&all, &box[i]) << 32 | (uint32_t)i;
    plain_sort(t);
    for (i = 0; i < t->n; i++) {
        t->id[i] = (int32_t)(t->key[i] & 0xFFFFFFFFu);
        t->box[i] = box[t->id[i]];
    }
    t->used = 1;
    plain_divide(t, 0, 0, t->n - 1);
}

/* ---- pairs ---- */

BENCH_FN int plain_boxes_touch(const plain_box *a, const plain_box *b)
{
    return a->min[0] <= b->max[0] && b->min[0] <= a->max[0] && a->min[1] <= b->max[1] &&
           b->min[1] <= a->max[1] && a->min[2] <= b->max[2] && b->min[2] <= a->max[2];
}

/* Pairs of overlapping boxes: each is found from both sides, and half of that thrown away. pairs:
   NULL, or room for all. */
BENCH_FN int64_t plain_pairs(const plain_tree *t, int32_t *pairs)
{
    int32_t stack[PLAIN_STACK], i, k;
    int64_t found = 0;
    for (i = 0; i < t->n; i++) {
        int top = 0;
        stack[top++] = 0;
        while (top > 0) {
            const plain_node *node = &t->node[stack[--top]];
            if (!plain_boxes_touch(&node->box, &t->box[i])) continue;
            if (node->count == 0) {
                stack[top++] = node->first + 1;
                stack[top++] = node->first;
            }
            for (k = node->first; k < node->first + node->count; k++) {
                if (k <= i || !plain_boxes_touch(&t->box[k], &t->box[i])) continue;
                if (pairs) {
                    pairs[2 * found] = t->id[i];
                    pairs[2 * found + 1] = t->id[k];
                }
                found++;
            }
        }
    }
    return found;
}

/* ---- points ---- */

BENCH_FN float plain_distance2(const plain_box *box, const float *p)
{
    float sum = 0;
    int a;
    for (a = 0; a < 3; a++) {
        float const below = box->min[a] - p[a], above = p[a] - box->max[a];
        float const d = below > 0 ? below : above > 0 ? above : 0;
        sum += d * d;
    }
    return sum;
}

/* A tree of points (boxes of size 0): how many others come within the radius of each? By place. */
BENCH_FN void plain_count_within(const plain_tree *t, float radius, int32_t *counts)
{
    int32_t stack[PLAIN_STACK], i, k;
    for (i = 0; i < t->n; i++) {
        int32_t found = -1; /* not itself */
        int top = 0;
        stack[top++] = 0;
        while (top > 0) {
            const plain_node *node = &t->node[stack[--top]];
            if (plain_distance2(&node->box, t->box[i].min) > radius * radius) continue;
            if (node->count == 0) {
                stack[top++] = node->first + 1;
                stack[top++] = node->first;
            }
            for (k = node->first; k < node->first + node->count; k++)
                found += plain_distance2(&t->box[k], t->box[i].min) <= radius * radius;
        }
        counts[i] = found;
    }
}

/* ---- rays ---- */

typedef struct plain_ray { float origin[3], direction[3], inverse[3], t; int32_t hit; } plain_ray;

/* Where the ray enters the box; 1e30 if it misses it, or only after t. */
BENCH_FN float plain_enters(const plain_ray *ray, const plain_box *box)
{
    float near = 0, far = ray->t;
    int a;
    for (a = 0; a < 3; a++) {
        float const u = (box->min[a] - ray->origin[a]) * ray->inverse[a],
                    v = (box->max[a] - ray->origin[a]) * ray->inverse[a];
        float const in = u < v ? u : v, out = u < v ? v : u;
        near = in > near ? in : near;
        far = out < far ? out : far;
    }
    return near <= far ? near : 1e30f;
}

/* T. Moeller and B. Trumbore, Fast, Minimum Storage Ray/Triangle Intersection, 1997. Shortens the
   ray where it is hit. */
BENCH_FN void plain_triangle(plain_ray *ray, const float *corners, int32_t id)
{
    float e[3], f[3], p[3], q[3], s[3], det, u, v, t;
    const float *d = ray->direction;
    int a;
    for (a = 0; a < 3; a++) {
        e[a] = corners[3 + a] - corners[a];
        f[a] = corners[6 + a] - corners[a];
        s[a] = ray->origin[a] - corners[a];
    }
    p[0] = d[1] * f[2] - d[2] * f[1];
    p[1] = d[2] * f[0] - d[0] * f[2];
    p[2] = d[0] * f[1] - d[1] * f[0];
    det = e[0] * p[0] + e[1] * p[1] + e[2] * p[2];
    if (det == 0) return;
    det = 1 / det;
    u = det * (s[0] * p[0] + s[1] * p[1] + s[2] * p[2]);
    if (u < 0 || u > 1) return;
    q[0] = s[1] * e[2] - s[2] * e[1];
    q[1] = s[2] * e[0] - s[0] * e[2];
    q[2] = s[0] * e[1] - s[1] * e[0];
    v = det * (d[0] * q[0] + d[1] * q[1] + d[2] * q[2]);
    if (v < 0 || u + v > 1) return;
    t = det * (f[0] * q[0] + f[1] * q[1] + f[2] * q[2]);
    if (t < 0 || t >= ray->t) return;
    ray->t = t;
    ray->hit = id;
}

typedef struct plain_entry { int32_t at; float enters; } plain_entry;

/* A node waits on the stack, if the ray meets it. */
BENCH_FN int plain_push(plain_entry *stack, int top, int32_t at, float enters)
{
    stack[top].at = at;
    stack[top].enters = enters;
    return enters < 1e29f ? top + 1 : top;
}

/* The nearest triangle on the ray. corners: 9 numbers each, by id. */
BENCH_FN void plain_trace(const plain_tree *t, const float *corners, plain_ray *ray)
{
    plain_entry stack[PLAIN_STACK];
    int32_t k;
    int top = plain_push(stack, 0, 0, plain_enters(ray, &t->node[0].box));
    while (top > 0) {
        const plain_node *node = &t->node[stack[--top].at];
        if (stack[top].enters > ray->t) continue;
        if (node->count == 0) {
            float const left = plain_enters(ray, &t->node[node->first].box);
            float const right = plain_enters(ray, &t->node[node->first + 1].box);
            int const left_first = left <= right; /* the nearer one ends on top */
            top = plain_push(stack, top, node->first + left_first, left_first ? right : left);
            top = plain_push(stack, top, node->first + !left_first, left_first ? left : right);
        }
        for (k = node->first; k < node->first + node->count; k++)
            plain_triangle(ray, corners + 9 * (size_t)t->id[k], t->id[k]);
    }
}

#endif /* PLAIN_TREE_H */
