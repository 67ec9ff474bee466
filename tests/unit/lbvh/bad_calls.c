/* bad_calls.c - a part of test_lbvh.c: refusals of descs and arguments, each with its exact
   result code; defaults, rules of queries, result texts.
   SPDX-License-Identifier: MIT OR Unlicense */

static const real two_boxes[12] = {0, 0, 0, 2, 2, 2, 1, 1, 1, 3, 3, 3};

typedef struct refusal { lbvh_result want; void (*spoil)(lbvh_desc *); } refusal;

#define SPOIL(name, statement) static void name(lbvh_desc *d) { statement; }
SPOIL(dim_1, d->dim = 1)
SPOIL(dim_4, d->dim = 4)
SPOIL(dim_negative, d->dim = -3)
SPOIL(kind_4, d->kind = (lbvh_kind)4)
SPOIL(kind_negative, d->kind = (lbvh_kind)-1)
SPOIL(builder_3, d->builder = (lbvh_builder)3)
SPOIL(builder_negative, d->builder = (lbvh_builder)-1)
SPOIL(bits_31, d->bits = 31)
SPOIL(bits_64, d->bits = 64)
SPOIL(bits_negative, d->bits = -63)
SPOIL(radius_negative, d->radius = -1)
SPOIL(radius_nan, d->radius = REAL_NAN)
SPOIL(radius_infinite, d->radius = REAL_INFINITY)
SPOIL(alloc_alone, d->allocator.alloc = heap_alloc)
SPOIL(free_alone, d->allocator.free = heap_free)
SPOIL(cuda_alloc_alone, d->cuda_allocator.alloc =
    (void *(*)(size_t, struct CUstream_st *, void *))(size_t)1)
SPOIL(cuda_free_alone, d->cuda_allocator.free =
    (void (*)(void *, size_t, struct CUstream_st *, void *))(size_t)1)
SPOIL(vertices_negative, d->vertices = -1)
SPOIL(bounds_inverted, d->min[1] = 1)
SPOIL(bounds_nan, d->min[2] = REAL_NAN)
SPOIL(bounds_max_nan, d->max[0] = REAL_NAN)
SPOIL(bounds_infinite, d->max[0] = REAL_INFINITY)
SPOIL(bounds_from_infinity, d->min[1] = -REAL_INFINITY)

static const refusal refusals[] = {
    {LBVH_BAD_DIM, dim_1}, {LBVH_BAD_DIM, dim_4}, {LBVH_BAD_DIM, dim_negative},
    {LBVH_BAD_OPTION, kind_4}, {LBVH_BAD_OPTION, kind_negative}, {LBVH_BAD_OPTION, builder_3},
    {LBVH_BAD_OPTION, builder_negative}, {LBVH_BAD_OPTION, bits_31}, {LBVH_BAD_OPTION, bits_64},
    {LBVH_BAD_OPTION, bits_negative}, {LBVH_BAD_RADIUS, radius_negative},
    {LBVH_BAD_RADIUS, radius_nan}, {LBVH_BAD_RADIUS, radius_infinite},
    {LBVH_BAD_ALLOCATOR, alloc_alone}, {LBVH_BAD_ALLOCATOR, free_alone},
    {LBVH_BAD_ALLOCATOR, cuda_alloc_alone}, {LBVH_BAD_ALLOCATOR, cuda_free_alone},
    {LBVH_BAD_ARGUMENT, vertices_negative}, {LBVH_BAD_BOUNDS, bounds_inverted},
    {LBVH_BAD_BOUNDS, bounds_nan}, {LBVH_BAD_BOUNDS, bounds_max_nan},
    {LBVH_BAD_BOUNDS, bounds_infinite}, {LBVH_BAD_BOUNDS, bounds_from_infinity},
};

/* Every call that reads a tree gives this result where there is no tree, or one of no elements;
   LBVH_OK: and finds nothing. */
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
    CHECK(tree->n == 0 && lbvh_root(tree) == -1 && !lbvh_next(&o) && !lbvh_next_near(&near) &&
        !lbvh_next_ray(&ray));
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
    CHECK(out.dim == 3 && out.bits == 63 && out.kind == LBVH_BOXES && out.builder == LBVH_MERGE &&
        !out.masks && !out.indices);
    d.dim = 2;
    d.bits = 30;
    d.builder = LBVH_SPLIT;
    d.keep_codes = 5;
    CHECK_RESULT(lbvh_defaults(&out, &d), LBVH_OK);
    CHECK(out.dim == 2 && out.bits == 30 && out.builder == LBVH_SPLIT && out.keep_codes);
    CHECK_RESULT(lbvh_defaults(NULL, &d), LBVH_BAD_ARGUMENT);
}

/* An index out of range is refused before any vertex is read: here there are no vertices. */
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
        CHECK_RESULT(lbvh_build(&tree, &d, nothing, 0, 1),
            d.skip_invalid ? LBVH_OK : LBVH_BAD_INDEX);
        CHECK(tree.bad_id == 0);
    }
    free(nothing);
    CHECK_RESULT(lbvh_refit(&tree, one, 1), LBVH_BAD_ARGUMENT); /* another reason: the stride */
    CHECK(tree.bad_id == -1);
    d.skip_invalid = 0;
    d.vertices = 1;
    CHECK_RESULT(lbvh_build(&tree, &d, one, 0, 1), LBVH_OK);
    CHECK(tree.n == 1 && tree.bad_id == -1);
    lbvh_free(&tree);
}

static void test_bad_calls(void **state)
{
    static const uint32_t no_bits[2] = {0, 0};
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
    q.n = 2; /* own elements have no number of yours */
    CHECK_RESULT(lbvh_count_overlaps(&tree, &q, counts), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_overlaps(&tree, &q, offsets, ids, 2, &needed), LBVH_BAD_ARGUMENT);
    CHECK(tree.n == 2 && log.calls == 0 && "a refused search leaves the tree alone");

    q.n = 0;
    q.filters = no_bits; /* the tree has no masks */
    CHECK_RESULT(lbvh_count_overlaps(&tree, &q, counts), LBVH_OK);
    CHECK(counts[0] == 1 && counts[1] == 1);
    lbvh_free(&tree);
}

/* One rule: without a tree every call returns a code; a tree over no elements is one. */
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
    /* the tree's own desc is allowed */
    CHECK_RESULT(lbvh_build(&tree, &tree.desc, two_boxes, 0, 2), LBVH_OK);
    CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
    lbvh_free(&tree);
    check_holds_nothing(&tree, LBVH_NOT_BUILT);
    lbvh_free(&loaded);
}

/* What is asked with a number that is none gets the same answer from a tree of nothing as from a
   full one. */
static void test_queries_without_numbers(void **state)
{
    real const bad[3] = {REAL_NAN, REAL_INFINITY, -REAL_INFINITY};
    int full, b, a;
    (void)state;
    for (full = 0; full < 2; full++) for (b = 0; b < 3; b++) for (a = 0; a < 3; a++) {
        lbvh tree = {0};
        real p[3] = {1, 1, 1}, ahead[3] = {1, 1, 1}, box[6] = {0, 0, 0, 2, 2, 2}, d2[2],
            no = REAL_NAN;
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
        CHECK_RESULT(lbvh_nearest(&tree, ahead, 2, no, NULL, NULL, ids, d2, &found),
            LBVH_BAD_RADIUS);
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
        lbvh_result const want = bad_kind || bad_flag ? LBVH_BAD_OPTION : radius ? LBVH_BAD_RADIUS :
            LBVH_OK;
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
        {LBVH_OK, "well"}, {LBVH_STOPPED, "callback"}, {LBVH_BAD_ARGUMENT, "stride"},
        {LBVH_BAD_DIM, "desc.dim"}, {LBVH_BAD_OPTION, "desc.bits"}, {LBVH_BAD_BOUNDS, "desc.min"},
        {LBVH_BAD_RADIUS, "desc.radius"}, {LBVH_BAD_ALLOCATOR, "desc.allocator"},
        {LBVH_BAD_INDEX, "desc.vertices"}, {LBVH_NOT_FINITE, "largest"},
        {LBVH_INVERTED, "tree.bad_id"}, {LBVH_TOO_MANY, "2^30 - 512"},
        {LBVH_BUFFER_TOO_SMALL, "size"}, {LBVH_OUT_OF_MEMORY, "desc.allocator"},
        {LBVH_NOT_BUILT, "lbvh_build"}, {LBVH_BAD_FILE, "saved"}, {LBVH_INVALID, "damaged"},
        {LBVH_BAD_ID, "removed"},
        {LBVH_CUDA_ERROR, "cuda_error"}, {LBVH_NOT_RUN, "desc.parallel.run"},
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
        for (other = 0; other < k; other++)
            CHECK(strcmp(text, lbvh_result_text((lbvh_result)other)) != 0);
    }
    CHECK(strstr(lbvh_result_text(LBVH_BAD_ARGUMENT), "bytes") != NULL &&
        "a stride may have been a count of numbers");
    CHECK(strstr(lbvh_result_text(LBVH_NOT_FINITE), "tree.bad_id") != NULL);
    CHECK(*lbvh_result_text((lbvh_result)-1) && *lbvh_result_text(LBVH_RESULT_COUNT) &&
        *lbvh_result_text((lbvh_result)1000));
    CHECK(lbvh_version() == 10000 * LBVH_VERSION_MAJOR + 100 * LBVH_VERSION_MINOR +
        LBVH_VERSION_PATCH && lbvh_version() > 0);
    CHECK(sizeof(lbvh_node) == (IS_FLOAT ? 32 : 64));
}
