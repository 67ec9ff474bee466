/* test_lbvh_calls.c - tests of the serial part of lbvh.h: refusals, memory, files, lbvh_validate, triangles. See lbvh_oracle.h, and
   test_lbvh.c for trees and searches.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/test_lbvh_calls.c -o test_lbvh_calls -lcmocka -lm && ./test_lbvh_calls
       (add -DLBVH_REAL=double for the double build; packages: libcmocka-dev libstb-dev) */

#if defined(__unix__) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE /* mmap */
#endif

#include "lbvh_oracle.h"

#ifdef __unix__
#include <sys/mman.h>
#include <unistd.h>
#endif

/* ------------------------------------------------------------------------------------------------
   Refusals of the desc and of arguments
   ------------------------------------------------------------------------------------------------ */

static const real two_boxes[12] = {0, 0, 0, 2, 2, 2, 1, 1, 1, 3, 3, 3};

typedef struct refusal { lbvh_result want; void (*spoil)(lbvh_desc *); } refusal;

#define SPOIL(name, statement) static void name(lbvh_desc *d) { statement; }
SPOIL(dim_1, d->dim = 1)
SPOIL(dim_4, d->dim = 4)
SPOIL(dim_negative, d->dim = -3)
SPOIL(kind_4, d->kind = (lbvh_kind)4)
SPOIL(kind_negative, d->kind = (lbvh_kind)-1)
SPOIL(builder_2, d->builder = (lbvh_builder)2)
SPOIL(builder_negative, d->builder = (lbvh_builder)-1)
SPOIL(bits_31, d->bits = 31)
SPOIL(bits_64, d->bits = 64)
SPOIL(bits_negative, d->bits = -63)
SPOIL(radius_negative, d->radius = -1)
SPOIL(radius_nan, d->radius = REAL_NAN)
SPOIL(radius_infinite, d->radius = REAL_INFINITY)
SPOIL(alloc_alone, d->allocator.alloc = heap_alloc)
SPOIL(free_alone, d->allocator.free = heap_free)
SPOIL(cuda_alloc_alone, d->cuda_allocator.alloc = (void *(*)(size_t, struct CUstream_st *, void *))(size_t)1)
SPOIL(cuda_free_alone, d->cuda_allocator.free = (void (*)(void *, size_t, struct CUstream_st *, void *))(size_t)1)
SPOIL(vertices_negative, d->vertices = -1)
SPOIL(bounds_inverted, d->min[1] = 1)
SPOIL(bounds_nan, d->min[2] = REAL_NAN)
SPOIL(bounds_max_nan, d->max[0] = REAL_NAN)
SPOIL(bounds_infinite, d->max[0] = REAL_INFINITY)
SPOIL(bounds_from_infinity, d->min[1] = -REAL_INFINITY)

static const refusal refusals[] = {
    {LBVH_BAD_DIM, dim_1}, {LBVH_BAD_DIM, dim_4}, {LBVH_BAD_DIM, dim_negative},
    {LBVH_BAD_OPTION, kind_4}, {LBVH_BAD_OPTION, kind_negative}, {LBVH_BAD_OPTION, builder_2}, {LBVH_BAD_OPTION, builder_negative},
    {LBVH_BAD_OPTION, bits_31}, {LBVH_BAD_OPTION, bits_64}, {LBVH_BAD_OPTION, bits_negative},
    {LBVH_BAD_RADIUS, radius_negative}, {LBVH_BAD_RADIUS, radius_nan}, {LBVH_BAD_RADIUS, radius_infinite},
    {LBVH_BAD_ALLOCATOR, alloc_alone}, {LBVH_BAD_ALLOCATOR, free_alone},
    {LBVH_BAD_ALLOCATOR, cuda_alloc_alone}, {LBVH_BAD_ALLOCATOR, cuda_free_alone}, {LBVH_BAD_ARGUMENT, vertices_negative},
    {LBVH_BAD_BOUNDS, bounds_inverted}, {LBVH_BAD_BOUNDS, bounds_nan}, {LBVH_BAD_BOUNDS, bounds_max_nan},
    {LBVH_BAD_BOUNDS, bounds_infinite}, {LBVH_BAD_BOUNDS, bounds_from_infinity},
};

/* Every call that reads a tree gives this result where there is no tree, or one of no elements; LBVH_OK: and finds nothing. */
static void check_holds_nothing(const lbvh *tree, lbvh_result want)
{
    real const all[6] = {-9, -9, -9, 9, 9, 9}, p[3] = {0, 0, 0}, along[3] = {1, 0, 0};
    lbvh_overlap o = lbvh_overlap_box(tree, all);
    lbvh_near near = lbvh_near_point(tree, p, REAL_INFINITY);
    lbvh_ray ray = lbvh_ray_cast(tree, p, along, 9);
    lbvh_queries q;
    lbvh_quality quality;
    int64_t needed = 0, pairs = 0, size = 0, offsets[3] = {0, 0, 0};
    int32_t ids[2], counts[2] = {0, 0}, found = 0;
    real d2[2];
    pair_log log = {0, 0, NULL};
    CHECK(tree->n == 0 && lbvh_root(tree) == -1 && !lbvh_next(&o) && !lbvh_next_near(&near) && !lbvh_next_ray(&ray));
    CHECK_RESULT(lbvh_validate(tree), want);
    CHECK_RESULT(lbvh_verify(tree, 4, 1, &found), want);
    CHECK_RESULT(lbvh_measure(tree, &quality), want);
    CHECK_RESULT(lbvh_save(tree, NULL, 0, &size), want == LBVH_OK ? LBVH_BUFFER_TOO_SMALL : want);
    CHECK_RESULT(lbvh_refit((lbvh *)(size_t)tree, two_boxes, 0), want);
    CHECK_RESULT(lbvh_count_pairs(tree, &pairs), want);
    CHECK_RESULT(lbvh_pairs(tree, ids, 1, &needed), want);
    CHECK_RESULT(lbvh_each_pair(tree, log_pair, &log), want);
    for (found = 0; found < 2; found++) {
        memset(&q, 0, sizeof q);
        if (found) q.data = two_boxes, q.n = 2;
        CHECK_RESULT(lbvh_count_overlaps(tree, &q, counts), want);
        CHECK_RESULT(lbvh_overlaps(tree, &q, offsets, ids, 2, &needed), want);
        CHECK(needed == 0 && offsets[2] == 0 && counts[0] == 0 && counts[1] == 0);
    }
    found = 0;
    CHECK_RESULT(lbvh_nearest(tree, p, 2, REAL_INFINITY, NULL, NULL, ids, d2, &found), want);
    CHECK(pairs == 0 && found == 0 && log.calls == 0 && size == (want == LBVH_OK ? 64 : 0));
}

/* A refused call leaves no tree, and the object fit for use. */
static void check_empty_and_usable(lbvh *tree)
{
    int64_t pairs = -1;
    check_holds_nothing(tree, LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_build(tree, NULL, two_boxes, 0, 2), LBVH_OK);
    CHECK_RESULT(lbvh_count_pairs(tree, &pairs), LBVH_OK);
    CHECK(pairs == 1 && tree->n == 2 && tree->bad_id == -1);
}

static void test_bad_descs(void **state)
{
    lbvh tree = {0};
    int k, full;
    (void)state;
    for (full = 0; full < 2; full++) for (k = 0; k < COUNT_OF(refusals); k++) {
        lbvh_desc d, out;
        real boxes[12];
        memset(&d, 0, sizeof d);
        refusals[k].spoil(&d);
        if (!full) lbvh_free(&tree);
        CHECK_RESULT(lbvh_defaults(&out, &d), refusals[k].want);
        CHECK_RESULT(lbvh_build(&tree, &d, two_boxes, 0, 2), refusals[k].want);
        check_empty_and_usable(&tree);
        CHECK_RESULT(lbvh_reserve(&tree, &d, 2), refusals[k].want);
        check_empty_and_usable(&tree);
        CHECK_RESULT(lbvh_boxes(&d, two_boxes, 0, 2, boxes, NULL), refusals[k].want);
    }
    lbvh_free(&tree);
}

static void test_defaults(void **state)
{
    lbvh_desc d, out;
    (void)state;
    memset(&d, 0, sizeof d);
    CHECK_RESULT(lbvh_defaults(&out, NULL), LBVH_OK);
    CHECK(out.dim == 3 && out.bits == 63 && out.kind == LBVH_BOXES && out.builder == LBVH_MERGE && !out.masks && !out.indices);
    d.dim = 2;
    d.bits = 30;
    d.builder = LBVH_SPLIT;
    d.keep_codes = 5;
    CHECK_RESULT(lbvh_defaults(&out, &d), LBVH_OK);
    CHECK(out.dim == 2 && out.bits == 30 && out.builder == LBVH_SPLIT && out.keep_codes);
    CHECK_RESULT(lbvh_defaults(NULL, &d), LBVH_BAD_ARGUMENT);
}

/* Indices that are refused do not depend on the order of reading: a triangle that has none is told before a vertex is looked at. */
static void test_no_vertices(void **state)
{
    static const int32_t indices[3] = {0, 0, 0};
    lbvh tree = {0};
    lbvh_desc d;
    real const one[3] = {0, 0, 0};
    real *nothing = NEW(real, 0);
    (void)state;
    memset(&d, 0, sizeof d);
    d.kind = LBVH_TRIANGLES;
    d.indices = indices;
    for (d.skip_invalid = 0; d.skip_invalid < 2; d.skip_invalid++) {
        CHECK_RESULT(lbvh_build(&tree, &d, nothing, 0, 1), d.skip_invalid ? LBVH_OK : LBVH_BAD_INDEX);
        CHECK(tree.bad_id == 0);
    }
    free(nothing);
    d.skip_invalid = 0;
    d.vertices = 1;
    CHECK_RESULT(lbvh_build(&tree, &d, one, 0, 1), LBVH_OK);
    CHECK(tree.n == 1 && tree.bad_id == -1);
    lbvh_free(&tree);
}

static void test_bad_calls(void **state)
{
    lbvh tree = {0};
    lbvh_quality quality;
    lbvh_queries q;
    real boxes[12], p[3] = {0, 0, 0}, d2[2];
    int64_t needed, pairs, offsets[3];
    int32_t ids[2], counts[2], found;
    char bytes[64];
    pair_log log = {0, 0, NULL};
    size_t const one = sizeof(real);
    (void)state;
    CHECK_RESULT(lbvh_build(NULL, NULL, two_boxes, 0, 2), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_build(&tree, NULL, NULL, 0, 2), LBVH_BAD_ARGUMENT);
    check_empty_and_usable(&tree);
    CHECK_RESULT(lbvh_build(&tree, NULL, two_boxes, 0, -1), LBVH_BAD_ARGUMENT);
    check_empty_and_usable(&tree);
    CHECK_RESULT(lbvh_build(&tree, NULL, two_boxes, 5 * one, 2), LBVH_BAD_ARGUMENT);
    check_empty_and_usable(&tree);
    CHECK_RESULT(lbvh_build(&tree, NULL, two_boxes, 6 * one + 1, 2), LBVH_BAD_ARGUMENT);
    check_empty_and_usable(&tree);
    CHECK_RESULT(lbvh_build(&tree, NULL, two_boxes, 0, (1 << 30) - 511), LBVH_TOO_MANY);
    check_empty_and_usable(&tree);
    CHECK_RESULT(lbvh_reserve(&tree, NULL, (1 << 30) - 511), LBVH_TOO_MANY);
    CHECK_RESULT(lbvh_reserve(&tree, NULL, INT32_MAX), LBVH_TOO_MANY);
    CHECK_RESULT(lbvh_reserve(NULL, NULL, 2), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_reserve(&tree, NULL, -1), LBVH_BAD_ARGUMENT);
    check_empty_and_usable(&tree);

    CHECK_RESULT(lbvh_boxes(NULL, NULL, 0, 2, boxes, NULL), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_boxes(NULL, two_boxes, 0, 2, NULL, NULL), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_boxes(NULL, two_boxes, 0, -1, boxes, NULL), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_boxes(NULL, two_boxes, 5 * one, 2, boxes, NULL), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_boxes(NULL, NULL, 0, 0, NULL, NULL), LBVH_OK);
    CHECK_RESULT(lbvh_refit(NULL, two_boxes, 0), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_refit(&tree, NULL, 0), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_refit(&tree, two_boxes, one), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_validate(NULL), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_measure(NULL, &quality), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_measure(&tree, NULL), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_save(NULL, bytes, 64, &needed), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_save(&tree, NULL, 64, &needed), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_save(&tree, bytes, -1, &needed), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_save(&tree, bytes, 64, NULL), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_load(NULL, NULL, bytes, 64), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_load(&tree, NULL, NULL, 64), LBVH_BAD_ARGUMENT);
    check_empty_and_usable(&tree);
    CHECK_RESULT(lbvh_load(&tree, NULL, bytes, -1), LBVH_BAD_ARGUMENT);
    check_empty_and_usable(&tree);

    CHECK_RESULT(lbvh_count_pairs(NULL, &pairs), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_count_pairs(&tree, NULL), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_pairs(NULL, ids, 1, &needed), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_pairs(&tree, NULL, 1, &needed), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_pairs(&tree, ids, -1, &needed), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_pairs(&tree, ids, 1, NULL), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_each_pair(NULL, log_pair, &log), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_each_pair(&tree, NULL, &log), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_nearest(NULL, p, 2, 1, NULL, NULL, ids, d2, &found), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_nearest(&tree, NULL, 2, 1, NULL, NULL, ids, d2, &found), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_nearest(&tree, p, -1, 1, NULL, NULL, ids, d2, &found), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_nearest(&tree, p, 2, 1, NULL, NULL, NULL, d2, &found), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_nearest(&tree, p, 2, 1, NULL, NULL, ids, NULL, &found), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_nearest(&tree, p, 2, 1, NULL, NULL, ids, d2, NULL), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_nearest(&tree, p, 2, -1, NULL, NULL, ids, d2, &found), LBVH_BAD_RADIUS);
    CHECK_RESULT(lbvh_nearest(&tree, p, 2, REAL_NAN, NULL, NULL, ids, d2, &found), LBVH_BAD_RADIUS);

    memset(&q, 0, sizeof q);
    CHECK_RESULT(lbvh_count_overlaps(NULL, &q, counts), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_count_overlaps(&tree, NULL, counts), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_count_overlaps(&tree, &q, NULL), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_overlaps(NULL, &q, offsets, ids, 2, &needed), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_overlaps(&tree, NULL, offsets, ids, 2, &needed), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_overlaps(&tree, &q, NULL, ids, 2, &needed), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_overlaps(&tree, &q, offsets, NULL, 2, &needed), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_overlaps(&tree, &q, offsets, ids, -1, &needed), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_overlaps(&tree, &q, offsets, ids, 2, NULL), LBVH_BAD_ARGUMENT);
    CHECK(tree.n == 2 && log.calls == 0 && "a refused search leaves the tree alone");
    lbvh_free(&tree);
}

/* One rule: without a tree every call says so; a tree over no elements is one. */
static void test_not_built(void **state)
{
    real const bad[6] = {0, 0, 0, REAL_NAN, 1, 1};
    lbvh tree = {0}, loaded = {0};
    unsigned char file[64];
    int64_t needed;
    (void)state;
    check_holds_nothing(&tree, LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_build(&tree, NULL, NULL, 0, 0), LBVH_OK);
    check_holds_nothing(&tree, LBVH_OK);
    CHECK_RESULT(lbvh_save(&tree, file, sizeof file, &needed), LBVH_OK);
    CHECK_RESULT(lbvh_load(&loaded, NULL, file, needed), LBVH_OK);
    check_holds_nothing(&loaded, LBVH_OK);
    CHECK_RESULT(lbvh_load(&loaded, NULL, file, 63), LBVH_BAD_FILE);
    check_holds_nothing(&loaded, LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_reserve(&tree, NULL, 2), LBVH_OK);
    check_holds_nothing(&tree, LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_build(&tree, NULL, two_boxes, 0, 2), LBVH_OK);
    CHECK_RESULT(lbvh_build(&tree, NULL, bad, 0, 1), LBVH_NOT_FINITE);
    check_holds_nothing(&tree, LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_build(&tree, &tree.desc, two_boxes, 0, 2), LBVH_OK); /* the tree's own desc is one as good as any */
    CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
    lbvh_free(&tree);
    check_holds_nothing(&tree, LBVH_NOT_BUILT);
    lbvh_free(&loaded);
}

/* What is asked with a number that is none gets the same answer from a tree of nothing as from a full one. */
static void test_queries_without_numbers(void **state)
{
    real const bad[3] = {REAL_NAN, REAL_INFINITY, -REAL_INFINITY};
    int full, b, a;
    (void)state;
    for (full = 0; full < 2; full++) for (b = 0; b < 3; b++) for (a = 0; a < 3; a++) {
        lbvh tree = {0};
        real p[3] = {1, 1, 1}, ahead[3] = {1, 1, 1}, box[6] = {0, 0, 0, 2, 2, 2}, d2[2], no = REAL_NAN;
        int64_t offsets[2] = {-1, -1}, needed = -1;
        int32_t ids[2], count, found = -1;
        lbvh_overlap o;
        lbvh_near near;
        lbvh_ray ray;
        lbvh_queries q;
        p[a] = bad[b];
        box[a] = box[3 + a] = REAL_NAN;
        CHECK_RESULT(lbvh_build(&tree, NULL, two_boxes, 0, full ? 2 : 0), LBVH_OK);
        o = lbvh_overlap_box(&tree, box);
        CHECK(!lbvh_next(&o));
        o = lbvh_overlap_sphere(&tree, p, 9);
        CHECK(!lbvh_next(&o));
        near = lbvh_near_point(&tree, p, 9);
        CHECK(!lbvh_next_near(&near));
        ray = lbvh_ray_cast(&tree, p, ahead, 9);
        CHECK(!lbvh_next_ray(&ray));
        ray = lbvh_ray_cast(&tree, ahead, p, 9);
        CHECK(!lbvh_next_ray(&ray));
        CHECK_RESULT(lbvh_nearest(&tree, p, 2, 9, NULL, NULL, ids, d2, &found), LBVH_OK);
        CHECK(found == 0);
        CHECK_RESULT(lbvh_nearest(&tree, ahead, 2, no, NULL, NULL, ids, d2, &found), LBVH_BAD_RADIUS);
        memset(&q, 0, sizeof q);
        q.n = 1;
        for (q.data = box; q.data; q.data = q.data == box ? p : NULL) {
            q.kind = q.data == box ? LBVH_BOXES : LBVH_POINTS;
            q.radius = q.data == box ? 0 : 9;
            count = -1;
            CHECK_RESULT(lbvh_count_overlaps(&tree, &q, &count), LBVH_OK);
            CHECK_RESULT(lbvh_overlaps(&tree, &q, offsets, ids, 2, &needed), LBVH_OK);
            CHECK(count == 0 && offsets[0] == 0 && offsets[1] == 0 && needed == 0);
        }
        lbvh_free(&tree);
    }
}

/* Which queries are allowed: every kind and flag, with data and without. */
static void test_query_rules(void **state)
{
    lbvh tree = {0};
    int kind, flags, given, radius;
    real const x[8] = {0, 0, 0, 1, 1, 1, 1, 1};
    (void)state;
    CHECK_RESULT(lbvh_build(&tree, NULL, two_boxes, 0, 2), LBVH_OK);
    for (kind = -1; kind <= 4; kind++) for (flags = -1; flags <= 16; flags++)
        for (given = 0; given < 2; given++) for (radius = 0; radius < 4; radius++) {
        int const bad_kind = kind < 0 || kind > LBVH_SPHERES || (!given && kind == LBVH_SPHERES);
        int const bad_flag = flags < 0 || flags > 7 || (given && (flags & 3));
        lbvh_result const want = bad_kind || bad_flag ? LBVH_BAD_OPTION : radius ? LBVH_BAD_RADIUS : LBVH_OK;
        lbvh_queries q;
        int64_t offsets[3], needed;
        int32_t counts[2], ids[4];
        memset(&q, 0, sizeof q);
        q.kind = (lbvh_kind)kind;
        q.flags = flags;
        q.radius = radius == 0 ? 0 : radius == 1 ? -1 : radius == 2 ? REAL_NAN : REAL_INFINITY;
        if (given) q.data = x, q.n = 1;
        CHECK_RESULT(lbvh_count_overlaps(&tree, &q, counts), want);
        CHECK_RESULT(lbvh_overlaps(&tree, &q, offsets, ids, 4, &needed), want);
        if (radius || want != LBVH_OK || !given) continue;
        q.stride = sizeof(real); /* less than a query */
        CHECK_RESULT(lbvh_count_overlaps(&tree, &q, counts), LBVH_BAD_ARGUMENT);
        q.stride = 7 * sizeof(real) + 1;
        CHECK_RESULT(lbvh_overlaps(&tree, &q, offsets, ids, 4, &needed), LBVH_BAD_ARGUMENT);
        q.stride = 0;
        q.n = -1;
        CHECK_RESULT(lbvh_count_overlaps(&tree, &q, counts), LBVH_BAD_ARGUMENT);
        q.n = (1 << 30) - 511;
        CHECK_RESULT(lbvh_overlaps(&tree, &q, offsets, ids, 4, &needed), LBVH_TOO_MANY);
        q.n = 0;
        CHECK_RESULT(lbvh_overlaps(&tree, &q, offsets, NULL, 0, &needed), LBVH_OK);
        CHECK(needed == 0 && offsets[0] == 0);
    }
    lbvh_free(&tree);
}

/* Every result has a text of its own that begins with its name, and names what to change. */
static void test_texts(void **state)
{
    static const struct { lbvh_result r; const char *word; } texts[] = {
        {LBVH_OK, "well"}, {LBVH_STOPPED, "callback"}, {LBVH_BAD_ARGUMENT, "stride"}, {LBVH_BAD_DIM, "desc.dim"},
        {LBVH_BAD_OPTION, "desc.bits"},
        {LBVH_BAD_BOUNDS, "desc.min"}, {LBVH_BAD_RADIUS, "desc.radius"}, {LBVH_BAD_ALLOCATOR, "desc.allocator"},
        {LBVH_BAD_INDEX, "desc.vertices"},
        {LBVH_NOT_FINITE, "largest"}, {LBVH_INVERTED, "tree.bad_id"}, {LBVH_TOO_MANY, "2^30 - 512"},
        {LBVH_BUFFER_TOO_SMALL, "size"},
        {LBVH_OUT_OF_MEMORY, "desc.allocator"}, {LBVH_NOT_BUILT, "lbvh_build"}, {LBVH_BAD_FILE, "saved"}, {LBVH_INVALID, "damaged"},
        {LBVH_BAD_ID, "removed"},
        {LBVH_CUDA_ERROR, "cuda_error"},
    };
#define NAME_OF(code, text) #code ": ",
    static const char *const names[] = {LBVH_RESULTS(NAME_OF)};
    int k, other;
    (void)state;
    CHECK(COUNT_OF(texts) == LBVH_RESULT_COUNT);
    for (k = 0; k < COUNT_OF(texts); k++) {
        const char *text = lbvh_result_text(texts[k].r);
        CHECK((int)texts[k].r == k && strstr(text, texts[k].word) != NULL);
        CHECK(strncmp(text, names[k], strlen(names[k])) == 0);
        for (other = 0; other < k; other++) CHECK(strcmp(text, lbvh_result_text((lbvh_result)other)) != 0);
    }
    CHECK(strstr(lbvh_result_text(LBVH_BAD_ARGUMENT), "bytes") != NULL && "a stride may have been a count of numbers");
    CHECK(strstr(lbvh_result_text(LBVH_NOT_FINITE), "tree.bad_id") != NULL);
    CHECK(*lbvh_result_text((lbvh_result)-1) && *lbvh_result_text(LBVH_RESULT_COUNT) && *lbvh_result_text((lbvh_result)1000));
    CHECK(lbvh_version() == 10000 * LBVH_VERSION_MAJOR + 100 * LBVH_VERSION_MINOR + LBVH_VERSION_PATCH && lbvh_version() > 0);
    CHECK(sizeof(lbvh_node) == (IS_FLOAT ? 32 : 64));
}

/* ------------------------------------------------------------------------------------------------
   Memory
   ------------------------------------------------------------------------------------------------ */

/* What the manual says: so many bytes per leaf, and one prefix more. */
static int64_t bytes_by_hand(const lbvh_desc *d, int32_t n)
{
    int64_t const leaf = (IS_FLOAT ? 65 : 129) + (d->masks ? 8 : 0) + (d->keep_codes || d->builder == LBVH_SPLIT ? 8 : 0);
    return n ? leaf * n + 1 : 0;
}

static void test_reserve(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0};
    lbvh tree = {0};
    scene s;
    int options;
    (void)state;
    dice = wl_seed(16);
    plain_scene(&s, &inputs[0], 200);
    s.masks = NEW(uint32_t, 200);
    for (options = 0; options < 8; options++) {
        lbvh_desc d = desc_of(&s);
        int64_t calls;
        int32_t n;
        d.allocator = allocator_of(&h);
        d.masks = options & 1 ? s.masks : NULL;
        d.keep_codes = options >> 1 & 1;
        d.builder = options & 4 ? LBVH_SPLIT : LBVH_MERGE;
        CHECK_RESULT(lbvh_reserve(&tree, &d, 200), LBVH_OK);
        CHECK(tree.n == 0 && h.live_bytes == lbvh_bytes(&tree) && lbvh_bytes(&tree) == bytes_by_hand(&d, 200));
        calls = h.calls;
        for (n = 200; n >= 0; n = n == 200 ? 0 : n == 0 ? 77 : n == 77 ? 200 - 1 : -1)
            CHECK_RESULT(lbvh_build(&tree, &d, s.data, 0, n), LBVH_OK);
        CHECK_RESULT(lbvh_refit(&tree, s.data, 0), LBVH_OK);
        CHECK(h.calls == calls && "nothing was allocated");
        CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
        CHECK(h.live_bytes == lbvh_bytes(&tree));
        lbvh_free(&tree);
        CHECK(h.live_blocks == 0 && h.calls == h.frees && !h.wrong);
        d.allocator = allocator_of(&h);
        CHECK_RESULT(lbvh_build(&tree, &d, s.data, 0, 200), LBVH_OK);
        CHECK(lbvh_bytes(&tree) == bytes_by_hand(&d, 200));
        lbvh_free(&tree);
    }
    forget(&s);
}

/* n rises by one with every build: what is allocated follows its logarithm. Every builder, with all arrays. */
static void test_growth(void **state)
{
    enum { MOST = 600, GROWTHS = 18 }; /* the power of 3 / 2 that is above 600, and some for the first few elements */
    heap h = {0, 0, 0, 0, 0, 0};
    scene s;
    int options;
    (void)state;
    dice = wl_seed(29);
    memset(&s, 0, sizeof s);
    s.dim = 3;
    s.masked = 1;
    make_scene(&s, &inputs[0], MOST);
    for (options = 0; options < 4; options++) {
        lbvh tree = {0}, loaded = {0};
        lbvh_desc d = desc_of(&s);
        int64_t calls = 0, room = 0;
        int32_t n, grown = 0;
        unsigned char *file = NEW(unsigned char, MOST * 200);
        h.calls = 0;
        d.allocator = allocator_of(&h);
        d.masks = options & 1 ? s.masks : NULL;
        d.keep_codes = options & 1;
        d.builder = options & 2 ? LBVH_SPLIT : LBVH_MERGE;
        for (n = 1; n <= MOST; n++) {
            calls = h.calls;
            CHECK_RESULT(lbvh_build(&tree, &d, s.data, s.stride, n), LBVH_OK);
            CHECK(n > 1 || lbvh_bytes(&tree) == bytes_by_hand(&d, 1)); /* the first is exact */
            CHECK(h.calls == calls || lbvh_bytes(&tree) >= bytes_by_hand(&d, n));
        }
        CHECK(h.calls <= LBVH_BLOCKS * GROWTHS && lbvh_bytes(&tree) <= 2 * bytes_by_hand(&d, MOST));
        CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
        for (n = 1; n <= MOST; n++) { /* the same through files, into an object of its own */
            int64_t needed;
            CHECK_RESULT(lbvh_build(&tree, &d, s.data, s.stride, n), LBVH_OK);
            CHECK_RESULT(lbvh_save(&tree, file, MOST * 200, &needed), LBVH_OK);
            calls = h.calls;
            room = lbvh_bytes(&loaded);
            CHECK_RESULT(lbvh_load(&loaded, &d, file, needed), LBVH_OK);
            grown += lbvh_bytes(&loaded) > room;
        }
        CHECK(grown <= LBVH_BLOCKS * GROWTHS);
        lbvh_free(&tree);
        lbvh_free(&loaded);
        free(file);
        for (n = 100; n <= 103; n++) { /* and a reserve takes what it needs */
            CHECK_RESULT(lbvh_reserve(&tree, &d, n), LBVH_OK);
            CHECK(lbvh_bytes(&tree) == bytes_by_hand(&d, n));
        }
        lbvh_free(&tree);
        CHECK(h.live_blocks == 0 && !h.wrong);
    }
    forget(&s);
}

/* Where there is no memory to grow ahead, the exact size is asked for; only where that is not to be had either, it is told. */
static void test_growth_without_memory(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0};
    scene s;
    lbvh tree = {0};
    lbvh_desc d;
    (void)state;
    dice = wl_seed(30);
    plain_scene(&s, &inputs[0], 101);
    d = desc_of(&s);
    d.allocator = allocator_of(&h);
    CHECK_RESULT(lbvh_build(&tree, &d, s.data, s.stride, 100), LBVH_OK);
    h.fail_at = h.calls + 1;
    d.allocator.alloc = tree.desc.allocator.alloc = scarce_alloc;
    CHECK_RESULT(lbvh_build(&tree, &d, s.data, s.stride, 101), LBVH_OUT_OF_MEMORY);
    check_holds_nothing(&tree, LBVH_NOT_BUILT);
    d.allocator.alloc = tree.desc.allocator.alloc = heap_alloc;
    CHECK_RESULT(lbvh_build(&tree, &d, s.data, s.stride, 100), LBVH_OK);
    h.fail_at = h.calls + 1;
    CHECK_RESULT(lbvh_build(&tree, &d, s.data, s.stride, 101), LBVH_OK);
    CHECK(tree.block[0].bytes == 2 * 101 * sizeof(lbvh_node) && "the first of the two blocks is exact");
    CHECK(h.live_bytes == lbvh_bytes(&tree));
    CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
    lbvh_free(&tree);
    CHECK(h.live_blocks == 0 && !h.wrong);
    forget(&s);
}

/* lbvh_validate and lbvh_verify take a byte for each leaf, and give it back. */
static void *counted_alloc(size_t bytes, void *user)
{
    size_t *asked = (size_t *)user;
    asked[0]++;
    asked[1] += bytes;
    return calloc(1, bytes);
}

static void counted_free(void *memory, size_t bytes, void *user)
{
    ((size_t *)user)[2] += bytes;
    free(memory);
}

/* Bounds are given where one of the two is not 0, on one side and on one axis. */
static void test_bounds_that_touch_the_origin(void **state)
{
    int k;
    (void)state;
    for (k = 0; k < 6; k++) {
        lbvh tree = {0};
        lbvh_desc d;
        lbvh_lattice want;
        memset(&d, 0, sizeof d);
        if (k % 2) d.max[k / 2] = 64;
        else d.min[k / 2] = -64;
        CHECK_RESULT(lbvh_build(&tree, &d, two_boxes, 0, 2), LBVH_OK);
        want = lbvh_i_given_lattice(&tree.desc);
        CHECK(same(&tree.lattice, &want, sizeof want));
        lbvh_free(&tree);
    }
}

static void test_verify_memory(void **state)
{
    size_t asked[3] = {0, 0, 0}; /* calls, bytes, bytes given back */
    lbvh tree = {0};
    lbvh_desc d;
    int32_t bad;
    (void)state;
    memset(&d, 0, sizeof d);
    CHECK_RESULT(lbvh_build(&tree, &d, two_boxes, 0, 2), LBVH_OK);
    tree.desc.allocator.alloc = counted_alloc; /* from here on: nothing that is there goes back through it */
    tree.desc.allocator.free = counted_free;
    tree.desc.allocator.user = asked;
    CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
    CHECK(asked[0] == 1 && asked[1] == 2 && asked[2] == 2);
    CHECK_RESULT(lbvh_verify(&tree, 2, 1, &bad), LBVH_OK);
    CHECK(asked[0] == 3 && asked[1] == 6 && asked[2] == 6);
    tree.desc.allocator = d.allocator;
    lbvh_free(&tree);
}

/* An element without a mask bit is found by no search, and its tree is none the worse for it. */
static void test_verify_with_masks(void **state)
{
    static const uint32_t masks[2] = {0, 5};
    lbvh tree = {0};
    lbvh_desc d;
    int32_t bad = 7;
    (void)state;
    memset(&d, 0, sizeof d);
    d.masks = masks;
    CHECK_RESULT(lbvh_build(&tree, &d, two_boxes, 0, 2), LBVH_OK);
    CHECK_RESULT(lbvh_verify(&tree, 2, 1, &bad), LBVH_OK);
    CHECK(bad == -1);
    lbvh_free(&tree);
}

/* One step that may run out of memory: then the tree is empty, and the same step works the next time. */
static int survive(lbvh *tree, const lbvh_desc *d, const scene *s, int32_t n)
{
    int64_t pairs = -1, again = -1;
    int failures = 0;
    lbvh_result r = lbvh_build(tree, d, s->data, s->stride, n);
    if (r == LBVH_OUT_OF_MEMORY) {
        failures++;
        check_holds_nothing(tree, LBVH_NOT_BUILT);
        r = lbvh_build(tree, d, s->data, s->stride, n);
    }
    CHECK_RESULT(r, LBVH_OK);
    CHECK_RESULT(lbvh_count_pairs(tree, &pairs), LBVH_OK);
    r = lbvh_validate(tree);
    if (r == LBVH_OUT_OF_MEMORY) failures++, r = lbvh_validate(tree);
    CHECK_RESULT(r, LBVH_OK);
    CHECK_RESULT(lbvh_count_pairs(tree, &again), LBVH_OK);
    CHECK(pairs == again && tree->n == n);
    return failures;
}

/* The same for the way through a file. */
static int survive_load(lbvh *tree, const lbvh_desc *d, const lbvh *from)
{
    int64_t needed = 0;
    int failures = 0;
    char *file;
    lbvh_result r;
    CHECK_RESULT(lbvh_save(from, NULL, 0, &needed), LBVH_BUFFER_TOO_SMALL);
    file = (char *)exactly((size_t)needed);
    CHECK_RESULT(lbvh_save(from, file, needed, &needed), LBVH_OK);
    r = lbvh_load(tree, d, file, needed);
    if (r == LBVH_OUT_OF_MEMORY) {
        failures++;
        check_holds_nothing(tree, LBVH_NOT_BUILT);
        r = lbvh_load(tree, d, file, needed);
    }
    CHECK_RESULT(r, LBVH_OK);
    check_same_tree(tree, from);
    free(file);
    return failures;
}

static int memory_scenario(heap *h, const scene *s)
{
    lbvh tree = {0}, other = {0};
    lbvh_desc d = desc_of(s);
    int failures = 0, options;
    d.allocator = allocator_of(h);
    for (options = 0; options < 4; options++) {
        d.masks = options & 1 ? s->masks : NULL;
        d.builder = options & 2 ? LBVH_SPLIT : LBVH_MERGE;
        if (options > 1) {
            lbvh_result const r = lbvh_reserve(&tree, &d, 6);
            CHECK((r == LBVH_OK || r == LBVH_OUT_OF_MEMORY) && tree.n == 0);
            failures += r == LBVH_OUT_OF_MEMORY;
        }
        failures += survive(&tree, &d, s, 5);
        failures += survive(&tree, &d, s, s->n);
        failures += survive(&tree, &d, s, 2);
        failures += survive_load(&other, &d, &tree);
        CHECK(h->live_bytes == lbvh_bytes(&tree) + lbvh_bytes(&other));
        if (options % 2) lbvh_free(&tree);
    }
    lbvh_free(&tree);
    lbvh_free(&other);
    return failures;
}

static void test_out_of_memory(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0};
    int64_t total, k;
    scene s;
    (void)state;
    dice = wl_seed(17);
    memset(&s, 0, sizeof s);
    s.dim = 3;
    s.masked = 1;
    make_scene(&s, &inputs[0], 40);
    CHECK(memory_scenario(&h, &s) == 0 && h.calls > 20);
    total = h.calls;
    for (k = 1; k <= total; k++) {
        memset(&h, 0, sizeof h);
        h.fail_at = k;
        CHECK(memory_scenario(&h, &s) == 1);
        CHECK(h.live_bytes == 0 && h.live_blocks == 0 && !h.wrong);
    }
    forget(&s);
}

/* Memory goes back to where it came from: another allocator is refused as long as there is some. */
static void test_change_of_allocator(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0}, other = {0, 0, 0, 0, 0, 0};
    lbvh tree = {0};
    lbvh_desc d, plain;
    int64_t needed;
    char file[4096];
    (void)state;
    memset(&d, 0, sizeof d);
    plain = d;
    d.allocator = allocator_of(&h);
    CHECK_RESULT(lbvh_build(&tree, &d, two_boxes, 0, 2), LBVH_OK);
    CHECK_RESULT(lbvh_save(&tree, file, sizeof file, &needed), LBVH_OK);
    CHECK_RESULT(lbvh_build(&tree, &plain, two_boxes, 0, 2), LBVH_BAD_ALLOCATOR);
    CHECK(tree.n == 0 && h.live_bytes == lbvh_bytes(&tree) && h.live_bytes > 0);
    CHECK_RESULT(lbvh_reserve(&tree, NULL, 2), LBVH_BAD_ALLOCATOR);
    CHECK_RESULT(lbvh_load(&tree, NULL, file, needed), LBVH_BAD_ALLOCATOR);
    d.allocator = allocator_of(&other);
    CHECK_RESULT(lbvh_build(&tree, &d, two_boxes, 0, 2), LBVH_BAD_ALLOCATOR);
    d.allocator = allocator_of(&h);
    CHECK_RESULT(lbvh_build(&tree, &d, two_boxes, 0, 2), LBVH_OK);
    lbvh_free(&tree);
    CHECK(h.live_blocks == 0 && !h.wrong && other.calls == 0);
    d.allocator = allocator_of(&other);
    CHECK_RESULT(lbvh_build(&tree, &d, two_boxes, 0, 2), LBVH_OK);
    lbvh_free(&tree);
    CHECK(other.live_blocks == 0 && other.calls > 0);
}

/* ------------------------------------------------------------------------------------------------
   Files, and the arrays as plain bytes
   ------------------------------------------------------------------------------------------------ */

typedef struct file { unsigned char *bytes; int64_t size; } file;

static file saved(const lbvh *t)
{
    file f;
    int64_t needed = -1;
    CHECK_RESULT(lbvh_save(t, NULL, 0, &f.size), LBVH_BUFFER_TOO_SMALL);
    f.bytes = (unsigned char *)exactly((size_t)f.size);
    CHECK_RESULT(lbvh_save(t, f.bytes, f.size - 1, &needed), LBVH_BUFFER_TOO_SMALL);
    CHECK(needed == f.size && f.bytes[0] == 0xA5);
    CHECK_RESULT(lbvh_save(t, f.bytes, f.size, &needed), LBVH_OK);
    CHECK(needed == f.size);
    return f;
}

/* Into trees that hold something already: what was there is gone. */
static void test_files(void **state)
{
    lbvh tree = {0}, loaded = {0};
    scene s;
    int counter;
    (void)state;
    dice = wl_seed(18);
    current_scene = &s;
    describe = describe_scene;
    for (counter = 0; counter < 40; counter++) {
        file f;
        memset(&s, 0, sizeof s);
        s.dim = 2 + counter % 2;
        s.bits = counter % 4 < 2 ? 63 : 30;
        s.masked = counter % 3 == 0;
        s.keep = 1;
        set_kind(&s, counter % KINDS);
        make_scene(&s, &inputs[counter % COUNT_OF(inputs)], counter < 6 ? counter : roll(100));
        build(&tree, &s);
        f = saved(&tree);
        CHECK_RESULT(lbvh_load(&loaded, NULL, f.bytes, f.size), LBVH_OK);
        check_same_tree(&tree, &loaded);
        CHECK(loaded.desc.dim == s.dim && loaded.desc.bits == s.bits && loaded.bad_id == -1);
        CHECK_RESULT(lbvh_validate(&loaded), LBVH_OK);
        check_everything(&loaded, &s, 3);
        if (s.kind == LBVH_BOXES) { /* what a loaded tree can be refitted with */
            CHECK_RESULT(lbvh_refit(&loaded, s.data, s.stride), LBVH_OK);
            check_same_tree(&tree, &loaded);
        }
        free(f.bytes);
        forget(&s);
    }
    lbvh_free(&tree);
    lbvh_free(&loaded);
}

/* What stands at the head of a file, on any machine: files are kept for years. */
static void test_head_of_a_file(void **state)
{
    static const uint32_t order = 0x01020304u;
    int32_t const numbers[4] = {(int32_t)sizeof(real), 3, 63, 2};
    uint32_t version;
    lbvh tree = {0};
    file f;
    (void)state;
    CHECK_RESULT(lbvh_build(&tree, NULL, two_boxes, 0, 2), LBVH_OK);
    f = saved(&tree);
    CHECK(same(f.bytes, "lbvh.h\r\n", 8) && same(f.bytes + 8, &order, 4));
    memcpy(&version, f.bytes + 12, 4);
    CHECK(version == 1 && same(f.bytes + 16, numbers, sizeof numbers));
    free(f.bytes);
    lbvh_free(&tree);
}

/* Elements near the end of the numbers lie in an infinite box; those at infinity do not. */
static void test_largest_numbers(void **state)
{
    real const far = (real)0.9 * (IS_FLOAT ? (real)3.402823e38 : (real)1.797693134862315e308);
    real const all[6] = {-REAL_INFINITY, -REAL_INFINITY, -REAL_INFINITY, REAL_INFINITY, REAL_INFINITY, REAL_INFINITY};
    int a;
    (void)state;
    for (a = 0; a < 6; a++) {
        lbvh tree = {0};
        lbvh_overlap o;
        real box[6] = {0, 0, 0, 0, 0, 0};
        box[a % 3] = box[3 + a % 3] = a < 3 ? far : -far;
        CHECK_RESULT(lbvh_build(&tree, NULL, box, 0, 1), LBVH_OK);
        o = lbvh_overlap_box(&tree, all);
        CHECK(lbvh_next(&o) && o.id == 0 && !lbvh_next(&o));
        lbvh_free(&tree);
    }
}

/* A corner that is nowhere: along its axis the box is, too, at both ends; along the others it is as ever. */
static void test_box_of_a_bad_triangle(void **state)
{
    real const bad[3] = {REAL_NAN, REAL_INFINITY, -REAL_INFINITY};
    int k, corner, x, b;
    (void)state;
    for (b = 0; b < 3; b++) for (corner = 0; corner < 3; corner++) for (k = 0; k < 3; k++) {
        real p[3][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}}, min[3], max[3];
        p[corner][k] = bad[b];
        lbvh_triangle_box(3, p[0], p[1], p[2], min, max);
        for (x = 0; x < 3; x++)
            CHECK(x == k ? min[x] == REAL_INFINITY && max[x] == REAL_INFINITY : min[x] == 0 && max[x] == 2);
    }
}

/* A sphere of a negative radius that reaches beyond the largest number is told alike on every axis. */
static void test_negative_radius_at_the_end(void **state)
{
    int dim, axis;
    (void)state;
    for (dim = 2; dim <= 3; dim++) for (axis = 0; axis < dim; axis++) {
        real sphere[4] = {0, 0, 0, 0};
        lbvh tree = {0};
        lbvh_desc d = {0};
        d.dim = dim;
        d.kind = LBVH_SPHERES;
        sphere[axis] = REAL_LARGEST;
        sphere[dim] = -REAL_LARGEST;
        CHECK_RESULT(lbvh_build(&tree, &d, sphere, 0, 1), LBVH_NOT_FINITE);
        sphere[dim] = -1;
        CHECK_RESULT(lbvh_build(&tree, &d, sphere, 0, 1), LBVH_INVERTED);
        lbvh_free(&tree);
    }
}

/* No pointers inside: a copy of the arrays elsewhere is the same tree. */
static void test_relocation(void **state)
{
    lbvh tree = {0}, copy;
    scene s;
    (void)state;
    dice = wl_seed(19);
    memset(&s, 0, sizeof s);
    current_scene = &s;
    describe = describe_scene;
    s.dim = 3;
    s.masked = 1;
    make_scene(&s, &inputs[6], 70);
    build(&tree, &s);
    copy = tree;
    copy.node = NEW(lbvh_node, nodes_of(&tree)); /* no spare node either */
    copy.mask = NEW(uint32_t, nodes_of(&tree));
    copy.prefix = NEW(uint8_t, tree.n + 1);
    memcpy(copy.node, tree.node, sizeof *tree.node * (size_t)nodes_of(&tree));
    memcpy(copy.mask, tree.mask, sizeof *tree.mask * (size_t)nodes_of(&tree));
    memcpy(copy.prefix, tree.prefix, (size_t)tree.n + 1);
    lbvh_free(&tree);
    CHECK_RESULT(lbvh_validate(&copy), LBVH_OK);
    check_everything(&copy, &s, 20);
    free(copy.node);
    free(copy.mask);
    free(copy.prefix);
    forget(&s);
}

static void check_bad_file(lbvh *tree, const unsigned char *bytes, int64_t size)
{
    real const all[6] = {-9, -9, -9, 9, 9, 9};
    lbvh_overlap o;
    CHECK_RESULT(lbvh_load(tree, NULL, bytes, size), LBVH_BAD_FILE);
    CHECK(tree->n == 0);
    o = lbvh_overlap_box(tree, all);
    CHECK(!lbvh_next(&o));
}

static void small_tree(lbvh *tree, scene *s, int32_t n)
{
    memset(s, 0, sizeof *s);
    s->dim = 3;
    s->masked = 1;
    make_scene(s, &inputs[0], n);
    build(tree, s);
}

/* Cut short anywhere, longer by one, and with any one bit turned. */
static void test_damaged_files(void **state)
{
    lbvh tree = {0}, loaded = {0};
    scene s;
    file f;
    int64_t k;
    int bit;
    (void)state;
    dice = wl_seed(20);
    small_tree(&tree, &s, 5);
    f = saved(&tree);
    for (k = 0; k < f.size; k++) {
        unsigned char *cut = (unsigned char *)exactly((size_t)k);
        memcpy(cut, f.bytes, (size_t)k);
        check_bad_file(&loaded, cut, k);
        free(cut);
        for (bit = 0; bit < 8; bit++) {
            f.bytes[k] = (unsigned char)(f.bytes[k] ^ 1 << bit);
            check_bad_file(&loaded, f.bytes, f.size);
            f.bytes[k] = (unsigned char)(f.bytes[k] ^ 1 << bit);
        }
    }
    f.bytes = (unsigned char *)realloc(f.bytes, (size_t)f.size + 1);
    f.bytes[f.size] = 0;
    check_bad_file(&loaded, f.bytes, f.size + 1);
    CHECK_RESULT(lbvh_load(&loaded, NULL, f.bytes, f.size), LBVH_OK);
    free(f.bytes);
    forget(&s);
    lbvh_free(&tree);
    lbvh_free(&loaded);
}

/* A file of fewer bytes than a header has, at the end of what may be read at all: not one byte behind it is looked at. */
static void test_short_files(void **state)
{
    (void)state;
#ifdef __unix__
    size_t const page = (size_t)sysconf(_SC_PAGESIZE);
    lbvh tree = {0}, loaded = {0};
    unsigned char *const pages = (unsigned char *)mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int64_t size, needed;
    CHECK((void *)pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
    CHECK_RESULT(lbvh_build(&tree, NULL, NULL, 0, 0), LBVH_OK);
    for (size = 64; size >= 0; size--) { /* a whole one first */
        unsigned char whole[64], *at = pages + page - size;
        CHECK_RESULT(lbvh_save(&tree, whole, sizeof whole, &needed), LBVH_OK);
        memcpy(at, whole, (size_t)size);
        CHECK_RESULT(lbvh_load(&loaded, NULL, at, size), size == 64 ? LBVH_OK : LBVH_BAD_FILE);
    }
    CHECK(munmap(pages, 2 * page) == 0);
    lbvh_free(&tree);
    lbvh_free(&loaded);
#endif
}

/* The checksum as the file format has it: of the header, its own field 0, and of all that follows. */
static void make_checksum_right(file *f)
{
    uint64_t sum;
    memset(f->bytes + 56, 0, sizeof sum);
    sum = lbvh_i_checksum(0xCBF29CE484222325u, f->bytes, (size_t)f->size);
    memcpy(f->bytes + 56, &sum, sizeof sum);
}

/* A file of an empty tree is its header; a count that it cannot have is refused, also where the checksum is right. */
static void test_counts_in_files(void **state)
{
    static const int32_t odd[] = {-1, 1, INT32_MIN, INT32_MAX, (1 << 30) - 511, 1 << 30};
    lbvh tree = {0}, loaded = {0};
    file f;
    int k;
    (void)state;
    CHECK_RESULT(lbvh_build(&tree, NULL, NULL, 0, 0), LBVH_OK);
    f = saved(&tree);
    CHECK(f.size == 64);
    for (k = 0; k < COUNT_OF(odd); k++) {
        memcpy(f.bytes + 28, &odd[k], sizeof odd[k]);
        make_checksum_right(&f);
        check_bad_file(&loaded, f.bytes, f.size);
    }
    memset(f.bytes + 28, 0, 4);
    make_checksum_right(&f);
    CHECK_RESULT(lbvh_load(&loaded, NULL, f.bytes, f.size), LBVH_OK);
    CHECK(loaded.n == 0 && lbvh_root(&loaded) == -1);
    free(f.bytes);
    lbvh_free(&tree);
    lbvh_free(&loaded);
}

/* Damage behind a right checksum: refused by what it breaks, or a tree that is whole and can be searched. */
static void test_forged_files(void **state)
{
    static const int32_t odd[] = {-1, 0, 1, 2, 7, 8, 9, 14, 15, 16, 94, 255, 1 << 30, INT32_MAX, INT32_MIN, 0x7F800000,
                                  -0x00800000};
    lbvh tree = {0}, loaded = {0};
    scene s;
    file f;
    unsigned char *whole;
    int64_t refused = 0, k;
    int const steps = 40000 / share();
    (void)state;
    dice = wl_seed(21);
    small_tree(&tree, &s, 8);
    f = saved(&tree);
    whole = (unsigned char *)exactly((size_t)f.size);
    memcpy(whole, f.bytes, (size_t)f.size);
    make_checksum_right(&f);
    CHECK(same(whole, f.bytes, (size_t)f.size) && "the checksum is computed as the header does");
    for (k = 0; k < steps; k++) {
        int turns = 1 + roll(3);
        lbvh_result r;
        memcpy(f.bytes, whole, (size_t)f.size);
        for (; turns > 0; turns--) {
            int32_t const value = odd[roll(COUNT_OF(odd))];
            int const at = roll(3) ? 64 + roll((int)f.size - 68) / 4 * 4 : roll((int)f.size - 4);
            if (roll(2)) f.bytes[at] = (unsigned char)roll(256);
            else memcpy(f.bytes + at, &value, sizeof value);
        }
        make_checksum_right(&f);
        r = lbvh_load(&loaded, NULL, f.bytes, f.size);
        if (r == LBVH_BAD_FILE) { refused++; CHECK(loaded.n == 0); continue; }
        CHECK_RESULT(r, LBVH_OK);
        CHECK_RESULT(lbvh_validate(&loaded), LBVH_OK);
        { /* whole: each search ends, and meets every leaf once */
            real const origin[3] = {0, 0, 0};
            int64_t pairs;
            lbvh_near walk = lbvh_near_point(&loaded, origin, REAL_INFINITY);
            int32_t found = 0;
            while (lbvh_next_near(&walk)) found++;
            CHECK(found <= loaded.n);
            CHECK_RESULT(lbvh_count_pairs(&loaded, &pairs), LBVH_OK);
            CHECK(pairs <= (int64_t)loaded.n * (loaded.n - 1) / 2);
        }
    }
    CHECK(refused > steps / 2);
    free(whole);
    free(f.bytes);
    forget(&s);
    lbvh_free(&tree);
    lbvh_free(&loaded);
}

/* ------------------------------------------------------------------------------------------------
   lbvh_validate finds what is wrong
   ------------------------------------------------------------------------------------------------ */

static const char *damage;
static void describe_damage(void) { print_error("  damage not found: %s\n", damage); }

static void check_invalid(const lbvh *tree, const char *what)
{
    damage = what;
    describe = describe_damage;
    CHECK(lbvh_validate(tree) == LBVH_INVALID);
}

#define DAMAGE(word, value) do { \
        (void)memcpy(&keep, &(word), sizeof(word)); \
        (word) = (value); check_invalid(&tree, #word " = " #value); (void)memcpy(&(word), &keep, sizeof(word)); \
    } while (0)

static void test_validate_finds_damage(void **state)
{
    lbvh tree = {0};
    scene s;
    union { int32_t i; uint64_t u; real r; void *p; char bytes[16]; } keep;
    int32_t k;
    int a;
    (void)state;
    dice = wl_seed(22);
    memset(&s, 0, sizeof s);
    s.dim = 3;
    s.masked = s.keep = 1;
    make_scene(&s, &inputs[0], 30);
    build(&tree, &s);
    for (k = 0; k < nodes_of(&tree); k++) {
        lbvh_node *node = &tree.node[k];
        DAMAGE(node->link, -1);
        DAMAGE(node->link, node->link + 1);
        DAMAGE(node->link, 59);
        DAMAGE(node->link, INT32_MAX);
        DAMAGE(node->link, INT32_MIN);
        DAMAGE(node->skip, node->skip + 1);
        DAMAGE(node->skip, node->skip - 1);
        DAMAGE(node->skip, 59);
        DAMAGE(node->skip, INT32_MIN);
        for (a = 0; a < 3; a++) {
            DAMAGE(node->min[a], REAL_NAN);
            DAMAGE(node->max[a], REAL_NAN);
            DAMAGE(node->min[a], -REAL_INFINITY);
            DAMAGE(node->max[a], REAL_INFINITY);
            if (node->min[a] < node->max[a]) DAMAGE(node->min[a], beside(node->max[a], 1));
            if (k < tree.first_leaf) DAMAGE(node->min[a], beside(node->min[a], 1));
            if (k < tree.first_leaf) DAMAGE(node->max[a], beside(node->max[a], 1));
        }
        DAMAGE(tree.mask[k], tree.mask[k] ^ 0x40000u);
    }
    for (k = 0; k <= tree.n; k++) {
        DAMAGE(tree.prefix[k], (uint8_t)(tree.prefix[k] + 1));
        DAMAGE(tree.prefix[k], (uint8_t)(tree.prefix[k] - 1));
        DAMAGE(tree.prefix[k], (uint8_t)94);
        DAMAGE(tree.prefix[k], (uint8_t)255);
    }
    for (k = 0; k < tree.n; k++) DAMAGE(tree.code[k], tree.code[k] ^ (uint64_t)1 << 62);
    DAMAGE(tree.first_leaf, tree.first_leaf + 1);
    DAMAGE(tree.n, -1);
    DAMAGE(tree.n, tree.n - 1);
    DAMAGE(tree.node, NULL);
    DAMAGE(tree.prefix, NULL);
    CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
    tree.code = NULL; /* without codes, the prefixes still have to fit the nodes and each other */
    for (k = 1; k < tree.n; k++) {
        DAMAGE(tree.prefix[k], (uint8_t)0);
        DAMAGE(tree.prefix[k], (uint8_t)94);
        if (k > 1) DAMAGE(tree.prefix[k], tree.prefix[k - 1]);
    }
    CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
    lbvh_free(&tree);
    forget(&s);
}

/* Prefixes that no codes have, with nodes that fit them: a comb of 200 leaves, deeper than the stack of any walk. */
static void test_validate_finds_combs(void **state)
{
    lbvh tree = {0}, loaded = {0};
    scene s;
    file f;
    int32_t k;
    int kind;
    (void)state;
    dice = wl_seed(28);
    for (kind = 0; kind < 2; kind++) { /* all alike; and 3 4 3 4 .., where no two neighbours are */
        small_tree(&tree, &s, 800);
        for (k = 1; k < 800; k++) tree.prefix[k] = (uint8_t)(kind == 0 ? 1 : 4 - k % 2);
        CHECK_RESULT(lbvh_refit(&tree, s.data, 0), LBVH_OK);
        CHECK_RESULT(lbvh_validate(&tree), LBVH_INVALID);
        f = saved(&tree);
        check_bad_file(&loaded, f.bytes, f.size);
        free(f.bytes);
        forget(&s);
    }
    lbvh_free(&tree);
    lbvh_free(&loaded);
}

/* t counts in lengths of the direction, whatever that is; and what is not a number is no hit. */
static void test_ray_triangle_lengths(void **state)
{
    lbvh_real const a[3] = {0, 0, 5}, b[3] = {1, 0, 5}, c[3] = {0, 1, 5}, from[3] = {(lbvh_real)0.25, (lbvh_real)0.25, 0};
    lbvh_real scale, t, u, v;
    (void)state;
    for (scale = (lbvh_real)1e-15; scale < (lbvh_real)1e16; scale *= 10) {
        lbvh_real const along[3] = {0, 0, scale};
        CHECK(lbvh_ray_triangle(from, along, a, b, c, &t, &u, &v));
        CHECK(t * scale > (lbvh_real)4.9999 && t * scale < (lbvh_real)5.0001);
    }
    for (scale = (lbvh_real)1e-30; scale < (lbvh_real)1e30; scale *= 10) {
        lbvh_real const along[3] = {0, 0, scale};
        if (lbvh_ray_triangle(from, along, a, b, c, &t, &u, &v)) CHECK(t - t == 0);
    }
}

/* A negative radius is refused however far out the sphere lies; and memory that is not aligned, whoever gives it. */
static void test_far_spheres_and_crooked_memory(void **state)
{
    lbvh_real const sphere[4] = {(lbvh_real)1e10, (lbvh_real)1e10, (lbvh_real)1e10, -1};
    heap h = {0, 0, 0, 0, 0, 0};
    lbvh_desc desc;
    lbvh tree = {0};
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.kind = LBVH_SPHERES;
    CHECK_RESULT(lbvh_build(&tree, &desc, sphere, 0, 1), LBVH_INVERTED);
    lbvh_free(&tree);
    desc.allocator.alloc = crooked_alloc;
    desc.allocator.free = crooked_free;
    desc.allocator.user = &h;
    CHECK_RESULT(lbvh_build(&tree, &desc, sphere, 0, 1), LBVH_BAD_ALLOCATOR);
    lbvh_free(&tree);
    CHECK(h.calls > 0 && h.live_blocks == 0 && !h.wrong);
}

/* Whatever the arrays hold: an answer, and nothing read outside of them. */
static void test_validate_is_safe(void **state)
{
    lbvh tree = {0};
    scene s;
    int k, rounds = 3000 / share();
    (void)state;
    dice = wl_seed(23);
    for (k = 0; k < rounds; k++) {
        int32_t i, n = 1 + roll(40);
        size_t b;
        small_tree(&tree, &s, n);
        for (i = 0; i < nodes_of(&tree); i++) {
            unsigned char *bytes = (unsigned char *)&tree.node[i];
            for (b = 0; b < sizeof *tree.node && k % 3 == 0; b++) bytes[b] = (unsigned char)roll(256);
            if (k % 3 == 1) tree.node[i].link = roll(2 * n) - 1, tree.node[i].skip = roll(2 * n) - 1;
        }
        for (i = 0; i <= n && k % 2; i++) tree.prefix[i] = (uint8_t)(k % 4 == 1 && (i == 0 || i == n) ? 0 : roll(256));
        (void)lbvh_validate(&tree);
        forget(&s);
    }
    lbvh_free(&tree);
}

/* ------------------------------------------------------------------------------------------------
   Triangles
   ------------------------------------------------------------------------------------------------ */

static double dot3(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static double apart(const real *a, const real *b)
{
    double d[3];
    int x;
    for (x = 0; x < 3; x++) d[x] = (double)a[x] - (double)b[x];
    return sqrt(dot3(d, d));
}

/* No point of a fine net over the triangle is closer to p than q, and q lies in the triangle: some point of the net is near it. */
static void check_closest(const real *p, const real *a, const real *b, const real *c, const real *q, double size)
{
    enum { NET = 48 };
    double const length = size, slack = 40 * REAL_EPSILON * (size + apart(p, a));
    double least = INFINITY;
    int i, j, x;
    for (i = 0; i <= NET; i++) for (j = 0; i + j <= NET; j++) {
        real at[3];
        double to_q;
        for (x = 0; x < 3; x++)
            at[x] = (real)((double)a[x] + ((double)b[x] - (double)a[x]) * i / NET + ((double)c[x] - (double)a[x]) * j / NET);
        CHECK(apart(p, q) <= apart(p, at) + slack);
        to_q = apart(q, at);
        if (to_q < least) least = to_q;
    }
    CHECK(least <= 1.5 * length / NET + slack);
}

/* Which of the seven: a corner is that corner's bits, an edge's point is on the edge, a face's projects p. */
static void check_feature(lbvh_feature feature, const real *p, const real *const corner[3], const real *q, double size)
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
        for (x = 0; x < 3; x++) along[x] = (double)to[x] - (double)from[x], away[x] = (double)p[x] - (double)q[x];
        CHECK(fabs(dot3(along, away)) <= slack * (sqrt(dot3(along, along)) + size) * 8);
        if (feature != LBVH_FACE) CHECK(fabs(apart(q, from) + apart(q, to) - apart(from, to)) <= slack);
    }
}

static void test_closest_by_hand(void **state)
{
    static const real a[3] = {0, 0, 0}, b[3] = {4, 0, 0}, c[3] = {0, 4, 0};
    static const struct { real p[3], q[3]; lbvh_feature feature; } cases[] = {
        {{1, 1, 5}, {1, 1, 0}, LBVH_FACE},       {{1, 2, -3}, {1, 2, 0}, LBVH_FACE},      {{1, 1, 0}, {1, 1, 0}, LBVH_FACE},
        {{2, -3, 1}, {2, 0, 0}, LBVH_EDGE_AB},   {{3, 0, 0}, {3, 0, 0}, LBVH_EDGE_AB},    {{1, 0, 2}, {1, 0, 0}, LBVH_EDGE_AB},
        {{3, 3, 1}, {2, 2, 0}, LBVH_EDGE_BC},    {{1, 3, 0}, {1, 3, 0}, LBVH_EDGE_BC},    {{5, 5, -2}, {2, 2, 0}, LBVH_EDGE_BC},
        {{-1, 2, 0}, {0, 2, 0}, LBVH_EDGE_CA},   {{0, 3, 0}, {0, 3, 0}, LBVH_EDGE_CA},    {{-2, 1, 7}, {0, 1, 0}, LBVH_EDGE_CA},
        {{-1, -1, 2}, {0, 0, 0}, LBVH_VERTEX_A}, {{0, 0, 0}, {0, 0, 0}, LBVH_VERTEX_A},   {{0, -5, 0}, {0, 0, 0}, LBVH_VERTEX_A},
        {{6, -1, 0}, {4, 0, 0}, LBVH_VERTEX_B},  {{4, 0, 3}, {4, 0, 0}, LBVH_VERTEX_B},   {{9, 1, 1}, {4, 0, 0}, LBVH_VERTEX_B},
        {{-1, 7, 0}, {0, 4, 0}, LBVH_VERTEX_C},  {{0, 4, 0}, {0, 4, 0}, LBVH_VERTEX_C},   {{1, 9, 2}, {0, 4, 0}, LBVH_VERTEX_C},
    };
    int k, x, shift;
    (void)state;
    for (k = 0; k < COUNT_OF(cases); k++) for (shift = 0; shift < 2; shift++) { /* at the origin and elsewhere, all whole numbers */
        real at[4][3], q[3] = {-7, -7, -7};
        for (x = 0; x < 3; x++) {
            real const by = (real)(shift * 16 * (x + 1));
            at[0][x] = cases[k].p[x] + by, at[1][x] = a[x] + by, at[2][x] = b[x] + by, at[3][x] = c[x] + by;
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
        for (turn = 1; turn < 6; turn++) { /* the corners in any order: as close, by the same kind of feature */
            int const i = turn % 3, j = turn < 3 ? (i + 1) % 3 : (i + 2) % 3;
            (void)lbvh_closest_on_triangle(p, v[i], v[j], v[3 - i - j], r);
            CHECK(fabs(apart(p, q) - apart(p, r)) <= 60 * REAL_EPSILON * size && apart(q, r) <= 1e-2 * size);
        }
    }
    for (k = 0; k < 7; k++) CHECK(seen[k] > 0);
}

/* Triangles without area: corners on a line, or on a point, in every order. */
static void test_closest_on_segments(void **state)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    int k, order, x;
    (void)state;
    dice = wl_seed(25);
    for (k = 0; k < 2000 / share(); k++) {
        real v[3][3], p[3], q[3], first[3] = {0, 0, 0};
        real const middle = (real)0.25 * (real)roll(5); /* 0 and 1: two corners are one */
        double length2 = 0, along = 0, want = 0, t;
        for (x = 0; x < 3; x++) {
            v[0][x] = (real)(roll(17) - 8);
            v[1][x] = k % 5 ? (real)(4 * (roll(9) - 4)) + v[0][x] : v[0][x]; /* differences of 4: their quarters are whole */
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
            CHECK(feature != LBVH_FACE && fabs(apart(p, q) - sqrt(want)) <= 100 * REAL_EPSILON * 20);
            check_feature(feature, p, corner, q, 20);
            if (order == 0) memcpy(first, q, sizeof q);
            CHECK(apart(first, q) <= 4e2 * REAL_EPSILON * 20);
        }
    }
}

/* Where a line meets the plane of a triangle, and the weights of the corners there, in long double. 0: parallel. */
static int plane_hit(const real *o, const real *d, const real v[3][3], long double *t, long double weight[3])
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
    weight[2] = ((long double)d[0] * k[0] + (long double)d[1] * k[1] + (long double)d[2] * k[2]) / det;
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
        if (k % 2) for (x = 0; x < 3; x++) d[x] = (v[0][x] + v[1][x] + v[2][x]) / 3 - o[x] + between((real)-0.3, (real)0.3);
        if (k % 16 == 1) for (x = 0; x < 3; x++) d[x] = -d[x];
        hit = lbvh_ray_triangle(o, d, v[0], v[1], v[2], &t, &u, &w);
        if (!plane_hit(o, d, (const real (*)[3])v, &at, weight)) continue;
        least = weight[0] < weight[1] ? weight[0] : weight[1];
        if (weight[2] < least) least = weight[2];
        if (fabsl(least) < 1e-3L || fabsl(at) > 100) continue; /* at the rim, or nearly parallel: see the next tests */
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

/* By hand, exact: the face from both sides, behind, beside, on edges and corners, in the plane, without area. */
static void test_ray_triangle_by_hand(void **state)
{
    static const real a[3] = {0, 0, 0}, b[3] = {4, 0, 0}, c[3] = {0, 4, 0};
    static const struct { real o[3], d[3]; int hit; real t, u, v; } cases[] = {
        {{1, 1, 2}, {0, 0, -1}, 1, 2, (real)0.25, (real)0.25},  {{1, 1, -2}, {0, 0, 1}, 1, 2, (real)0.25, (real)0.25},
        {{1, 2, 2}, {0, 0, 4}, 1, (real)-0.5, (real)0.25, (real)0.5}, {{3, 3, 2}, {0, 0, -1}, 0, 0, 0, 0},
        {{-1, 1, 2}, {0, 0, -1}, 0, 0, 0, 0},                   {{1, -1, 2}, {0, 0, -1}, 0, 0, 0, 0},
        {{2, 0, 1}, {0, 0, -1}, 1, 1, (real)0.5, 0},            {{0, 2, 1}, {0, 0, -1}, 1, 1, 0, (real)0.5},
        {{2, 2, 1}, {0, 0, -1}, 1, 1, (real)0.5, (real)0.5},    {{0, 0, 1}, {0, 0, -1}, 1, 1, 0, 0},
        {{4, 0, 8}, {0, 0, -2}, 1, 4, 1, 0},                    {{0, 4, 1}, {0, 0, -1}, 1, 1, 0, 1},
        {{1, 1, 0}, {1, 0, 0}, 0, 0, 0, 0},                     {{1, 1, 1}, {1, 1, 0}, 0, 0, 0, 0},
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
    CHECK(!lbvh_ray_triangle(o, down, a, b, middle, &t, &u, &v) && !lbvh_ray_triangle(o, down, a, a, a, &t, &u, &v));
}

/* A closed surface: an octahedron, each face in 4 again and again, the corners pushed to a sphere and then moved a little. */
typedef struct mesh { real *vertices; int32_t *indices; } mesh; /* stb_ds */

static int32_t middle_of(mesh *m, int32_t i, int32_t j)
{
    int32_t k, const_count = (int32_t)arrlen(m->vertices) / 3;
    double p[3], length;
    int x;
    for (x = 0; x < 3; x++) p[x] = ((double)m->vertices[3 * i + x] + (double)m->vertices[3 * j + x]) / 2;
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
    static const int corners[6][3] = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
    mesh m = {NULL, NULL};
    int k, x;
    for (k = 0; k < 6; k++) for (x = 0; x < 3; x++) arrput(m.vertices, (real)corners[k][x]);
    for (k = 0; k < 8; k++) { /* the octants, outsides turned out */
        int const i = k & 1, j = 2 + (k >> 1 & 1), l = 4 + (k >> 2 & 1), odd = (k ^ k >> 1 ^ k >> 2) & 1;
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
        if (!lbvh_ray_triangle(o, d, m->vertices + 3 * i[0], m->vertices + 3 * i[1], m->vertices + 3 * i[2], &t, &u, &v)) continue;
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
        if (!lbvh_ray_triangle(o, d, m->vertices + 3 * i[0], m->vertices + 3 * i[1], m->vertices + 3 * i[2], &t, &u, &v)) continue;
        if (t >= 0 && t < *t_hit) *t_hit = t, closest = f;
    }
    return closest;
}

/* From inside a closed surface every ray hits it, aimed at an edge, a corner or anywhere; from outside, what is aimed at the near
   side. */
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
    CHECK(arrlen(m.indices) == 3 * 512 && arrlen(m.vertices) == 3 * 258); /* closed: 2 F = 3 E, V - E + F = 2 */
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
            way[x] = aim == 0 ? p[x] - o[x] : aim == 1 ? p[x] + (q[x] - p[x]) * along - o[x] : between(-1, 1);
        }
        if (outside && aim == 2) continue;
        by_tree = shoot(&tree, &m, o, way, &t);
        by_hand = shoot_all(&m, o, way, &want);
        if (by_hand < 0) misses[aim + 3 * outside]++;
        CHECK((by_tree < 0) == (by_hand < 0));
        if (by_hand >= 0) CHECK(fabs((double)t - (double)want) <= 1e-4 * (1 + fabs((double)want)));
    }
    for (k = 0; k < 6; k++) if (misses[k]) print_error("%d of %d rays slipped through (aim %d)\n", misses[k], rounds / 6, k);
    for (k = 0; k < 6; k++) CHECK(misses[k] == 0);
    lbvh_free(&tree);
    arrfree(m.vertices);
    arrfree(m.indices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bad_descs),
        TEST(test_defaults),
        TEST(test_no_vertices),
        TEST(test_bad_calls),
        TEST(test_not_built),
        TEST(test_queries_without_numbers),
        TEST(test_query_rules),
        TEST(test_texts),
        TEST(test_reserve),
        TEST(test_growth),
        TEST(test_growth_without_memory),
        TEST(test_bounds_that_touch_the_origin),
        TEST(test_verify_memory),
        TEST(test_verify_with_masks),
        TEST(test_out_of_memory),
        TEST(test_change_of_allocator),
        TEST(test_files),
        TEST(test_head_of_a_file),
        TEST(test_largest_numbers),
        TEST(test_box_of_a_bad_triangle),
        TEST(test_negative_radius_at_the_end),
        TEST(test_relocation),
        TEST(test_damaged_files),
        TEST(test_short_files),
        TEST(test_counts_in_files),
        TEST(test_forged_files),
        TEST(test_validate_finds_damage),
        TEST(test_validate_finds_combs),
        TEST(test_validate_is_safe),
        TEST(test_far_spheres_and_crooked_memory),
        TEST(test_ray_triangle_lengths),
        TEST(test_closest_by_hand),
        TEST(test_closest),
        TEST(test_closest_on_segments),
        TEST(test_ray_triangle),
        TEST(test_ray_triangle_by_hand),
        TEST(test_watertight),
    };
    if (getenv("LBVH_TEST_ONLY")) cmocka_set_test_filter(getenv("LBVH_TEST_ONLY"));
    return cmocka_run_group_tests_name("lbvh calls", tests, NULL, tear_down);
}
