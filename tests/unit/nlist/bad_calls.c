/* bad_calls.c - a part of test_nlist.c: refusals. Each has its exact result code, and leaves the
   list as it was.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Four particles: 0, 1 and 2 near each other, 3 near 2. */
static const real four[12] = {0, 0, 0, (real)0.5, 0, 0, 0, (real)0.5, 0, 0, (real)1.25, 0};

static nlist_desc plain_desc(void)
{
    nlist_desc d;
    memset(&d, 0, sizeof d);
    d.radius = 1;
    return d;
}

/* A list of them with a history that has been written into, events, and memory of a heap (NULL:
   malloc). */
static nlist_desc full_list(nlist *list, nlist_layout layout, heap *h)
{
    nlist_desc d = plain_desc();
    int32_t i;
    int step;
    d.layout = layout;
    d.half = 1;
    d.history = 12;
    d.events = 1;
    if (h) d.allocator = allocator_of(h);
    for (step = 0; step < 2; step++) {
        real pos[12];
        memcpy(pos, four, sizeof pos);
        pos[3] += step ? (real)0.75 : 0; /* then 1 and 2 part */
        CHECK_RESULT(nlist_build_brute(list, &d, pos, 0, 4), NLIST_OK);
        for (i = 0; i < 4; i++) {
            nlist_each e = nlist_of(list, i);
            while (nlist_next(&e)) oracle_write(e.history, 12, (uint32_t)(10 * i + e.id + 1));
        }
    }
    CHECK(list->total == 2 && list->event_count[NLIST_ENDED] == 2);
    return d;
}

/* After a refusal the list is as it was, and fit for use. */
static void check_still_there(nlist *list, const oracle_snapshot *before)
{
    CHECK_FINE(oracle_check_unchanged(before, list));
    CHECK_RESULT(nlist_validate(list), NLIST_OK);
}

typedef struct refusal { nlist_result want; void (*spoil)(nlist_desc *); } refusal;

static const int64_t not_from_zero[5] = {1, 1, 1, 1, 1}, descending[5] = {0, 2, 1, 1, 1},
    none_excluded[5] = {0, 0, 0, 0, 0};
static const int32_t nobody[2] = {0, 0};

#define SPOIL(name, statement) static void name(nlist_desc *d) { statement; }
SPOIL(dim_1, d->dim = 1)
SPOIL(dim_4, d->dim = 4)
SPOIL(dim_negative, d->dim = -3)
SPOIL(radius_negative, d->radius = -1)
SPOIL(radius_nan, d->radius = REAL_NAN)
SPOIL(radius_infinite, d->radius = REAL_INFINITY)
SPOIL(radius_square_infinite, d->radius = REAL_LARGEST)
SPOIL(radius_square_denormal, d->radius = IS_FLOAT ? (real)1e-20 : (real)1e-160)
SPOIL(radius_and_skin_infinite, d->radius = d->skin = REAL_LARGEST)
SPOIL(radii_stride_odd, d->radii_stride = sizeof(real) + 1)
SPOIL(skin_negative, d->skin = (real)-0.1)
SPOIL(skin_nan, d->skin = REAL_NAN)
SPOIL(skin_infinite, d->skin = REAL_INFINITY)
SPOIL(layout_4, d->layout = (nlist_layout)4)
SPOIL(layout_negative, d->layout = (nlist_layout)-1)
SPOIL(width_negative, d->layout = NLIST_STATIC; d->width = -1)
SPOIL(width_large, d->layout = NLIST_STATIC; d->width = 1025)
SPOIL(width_hybrid_negative, d->layout = NLIST_HYBRID; d->width = -1)
SPOIL(width_hybrid_large, d->layout = NLIST_HYBRID; d->width = 1025)
SPOIL(history_negative, d->history = -1)
SPOIL(history_large, d->history = 4097)
SPOIL(capacity_negative, d->capacity = -1)
SPOIL(box_missing, d->periodic[1] = 1)
SPOIL(box_inverted, d->periodic[0] = 1; d->min[0] = 1; d->max[0] = -9)
SPOIL(box_nan, d->periodic[2] = 1; d->min[2] = REAL_NAN; d->max[2] = 9)
SPOIL(box_infinite, d->periodic[2] = 1; d->max[2] = REAL_INFINITY)
SPOIL(box_too_long, d->periodic[2] = 1; d->min[2] = -REAL_LARGEST; d->max[2] = REAL_LARGEST)
SPOIL(exclude_alone, d->exclude = nobody)
SPOIL(exclude_start_alone, d->exclude_start = none_excluded)
SPOIL(alloc_alone, d->allocator.free = NULL; d->allocator.alloc = heap_alloc)
SPOIL(free_alone, d->allocator.alloc = NULL; d->allocator.free = heap_free)
SPOIL(cuda_alloc_alone, d->cuda_allocator.alloc =
    (void *(*)(size_t, struct CUstream_st *, void *))(size_t)1)
SPOIL(cuda_free_alone, d->cuda_allocator.free =
    (void (*)(void *, size_t, struct CUstream_st *, void *))(size_t)1)
/* From here on the build has to look at the source or at the list that is there. */
SPOIL(radius_zero, d->radius = 0)
SPOIL(exclude_not_from_zero, d->exclude = nobody; d->exclude_start = not_from_zero)
SPOIL(exclude_descending, d->exclude = nobody; d->exclude_start = descending)
SPOIL(period_short, d->periodic[0] = 1; d->min[0] = -1; d->max[0] = (real)0.96875)

static const refusal refusals[] = {
    {NLIST_BAD_DIM, dim_1}, {NLIST_BAD_DIM, dim_4}, {NLIST_BAD_DIM, dim_negative},
    {NLIST_BAD_RADIUS, radius_negative}, {NLIST_BAD_RADIUS, radius_nan},
    {NLIST_BAD_RADIUS, radius_infinite}, {NLIST_BAD_RADIUS, radius_square_infinite},
    {NLIST_BAD_RADIUS, radius_square_denormal}, {NLIST_BAD_RADIUS, radius_and_skin_infinite},
    {NLIST_BAD_RADIUS, radii_stride_odd},
    {NLIST_BAD_SKIN, skin_negative}, {NLIST_BAD_SKIN, skin_nan}, {NLIST_BAD_SKIN, skin_infinite},
    {NLIST_BAD_OPTION, layout_4}, {NLIST_BAD_OPTION, layout_negative},
    {NLIST_BAD_WIDTH, width_negative}, {NLIST_BAD_WIDTH, width_large},
    {NLIST_BAD_WIDTH, width_hybrid_negative}, {NLIST_BAD_WIDTH, width_hybrid_large},
    {NLIST_BAD_HISTORY, history_negative}, {NLIST_BAD_HISTORY, history_large},
    {NLIST_BAD_CAPACITY, capacity_negative}, {NLIST_BAD_BOX, box_missing},
    {NLIST_BAD_BOX, box_inverted}, {NLIST_BAD_BOX, box_nan}, {NLIST_BAD_BOX, box_infinite},
    {NLIST_BAD_BOX, box_too_long}, {NLIST_BAD_EXCLUSIONS, exclude_alone},
    {NLIST_BAD_EXCLUSIONS, exclude_start_alone}, {NLIST_BAD_ALLOCATOR, alloc_alone},
    {NLIST_BAD_ALLOCATOR, free_alone}, {NLIST_BAD_ALLOCATOR, cuda_alloc_alone},
    {NLIST_BAD_ALLOCATOR, cuda_free_alone}, {NLIST_BAD_RADIUS, radius_zero},
    {NLIST_BAD_EXCLUSIONS, exclude_not_from_zero}, {NLIST_BAD_EXCLUSIONS, exclude_descending},
    {NLIST_BAD_PERIOD, period_short},
};

enum { REFUSALS_OF_BUILDS = 4 };

static void test_bad_descs(void **state)
{
    static const int32_t pair[2] = {0, 1};
    int k, layout;
    (void)state;
    for (layout = 0; layout < 4; layout++) for (k = 0; k < COUNT_OF(refusals); k++) {
        int const early = k < COUNT_OF(refusals) - REFUSALS_OF_BUILDS;
        nlist list = {0}, empty = {0};
        oracle_snapshot before;
        nlist_desc out, d = full_list(&list, (nlist_layout)layout, NULL);
        oracle_take(&before, &list);
        refusals[k].spoil(&d);
        CHECK_RESULT(nlist_defaults(&out, &d), early ? refusals[k].want : NLIST_OK);
        CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), refusals[k].want);
        check_still_there(&list, &before);
        CHECK_RESULT(nlist_build_brute(&empty, &d, four, 0, 4), refusals[k].want);
        CHECK(empty.n == 0 && empty.total == 0);
        if (early) {
            CHECK_RESULT(nlist_build_pairs(&list, &d, pair, 1, 4), refusals[k].want);
            check_still_there(&list, &before);
            CHECK_RESULT(nlist_reserve(&empty, &d, 4, 4), refusals[k].want);
        }
        nlist_free(&empty);
        d = full_list(&list, (nlist_layout)layout, NULL);
        CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
        oracle_drop_snapshot(&before);
        nlist_free(&list);
    }
}

/* What a list with history cannot become: its bytes and the rows they belong to have to go on. */
static void test_bad_changes(void **state)
{
    nlist list = {0};
    lbvh tree = {0};
    lbvh_desc t;
    nlist_mesh mesh;
    oracle_snapshot before;
    nlist_desc d = full_list(&list, NLIST_HYBRID, NULL), other;
    (void)state;
    oracle_take(&before, &list);
    other = d;
    other.history = 8;
    CHECK_RESULT(nlist_build_brute(&list, &other, four, 0, 4), NLIST_BAD_HISTORY);
    other.history = 0;
    CHECK_RESULT(nlist_build_brute(&list, &other, four, 0, 4), NLIST_BAD_HISTORY);
    other = d;
    other.half = 0;
    CHECK_RESULT(nlist_build_brute(&list, &other, four, 0, 4), NLIST_BAD_HISTORY);
    other = d;
    other.contacts = other.events = 1;
    CHECK_RESULT(nlist_build_brute(&list, &other, four, 0, 4), NLIST_BAD_HISTORY);
    other = d;
    other.dim = 2;
    CHECK_RESULT(nlist_build_brute(&list, &other, four, 3 * sizeof(real), 4), NLIST_BAD_HISTORY);
    memset(&t, 0, sizeof t);
    t.kind = LBVH_TRIANGLES;
    CHECK(lbvh_build(&tree, &t, four, 0, 1) == LBVH_OK);
    memset(&mesh, 0, sizeof mesh);
    mesh.vertices = four;
    mesh.triangles = 1;
    other = d;
    other.layout = NLIST_DYNAMIC;
    CHECK_RESULT(nlist_build_mesh(&list, &other, &tree, &mesh, four, 0, 4), NLIST_BAD_HISTORY);
    check_still_there(&list, &before);
    other.half = 1;
    other.layout = NLIST_COMPACT; /* but that it can */
    CHECK_RESULT(nlist_build_brute(&list, &other, four, 0, 4), NLIST_OK);
    CHECK(oracle_holds(nlist_history(&list, nlist_find(&list, 0, 2)), 12, 3));
    CHECK(oracle_holds(nlist_history(&list, nlist_find(&list, 1, 2)), 12, 0));
    oracle_drop_snapshot(&before);
    lbvh_free(&tree);
    nlist_free(&list);
}

/* A list without memory becomes one that remembers: from then on, and nothing of what was there
   before counts, of whatever kind. */
static void test_memory_turned_on(void **state)
{
    int was, layout, half, what;
    (void)state;
    for (was = 0; was < 4; was++) for (layout = 0; layout < 4; layout++)
            for (half = 0; half < 2; half++)
        for (what = 1; what < 4; what++) {
        nlist list = {0};
        lbvh tree = {0};
        lbvh_desc t;
        nlist_mesh mesh;
        nlist_desc d = plain_desc(), other = d;
        int32_t i;
        int round;
        memset(&t, 0, sizeof t);
        memset(&mesh, 0, sizeof mesh);
        t.kind = LBVH_TRIANGLES;
        mesh.vertices = four;
        mesh.triangles = 1;
        CHECK(lbvh_build(&tree, &t, four, 0, 1) == LBVH_OK);
        other.layout = (nlist_layout)was;
        other.half = was & 1;
        if (was == 3) other.dim = 2;
        if (was == 2) CHECK_RESULT(nlist_build_mesh(&list, &d, &tree, &mesh, four, 0, 4), NLIST_OK);
        else CHECK_RESULT(nlist_build_brute(&list, &other, four, 3 * sizeof(real), 4), NLIST_OK);
        d.layout = (nlist_layout)layout;
        d.half = half;
        d.history = what & 1 ? 5 : 0;
        d.events = what & 2;
        for (round = 0; round < 2; round++) {
            CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
            CHECK(list.total == (half ? 4 : 8));
            if (d.events)
                CHECK(list.event_count[round ? NLIST_PERSISTED : NLIST_BEGUN] == 4 &&
                    list.event_count[NLIST_ENDED] == 0);
            for (i = 0; i < 4 && d.history; i++) {
                nlist_each e = nlist_of(&list, i);
                for (; nlist_next(&e); oracle_write(e.history, 5, 3))
                    CHECK(oracle_holds(e.history, 5, round ? 3 : 0));
            }
        }
        lbvh_free(&tree);
        nlist_free(&list);
    }
}

/* Positions and radii: the first bad particle is named. */
static void test_bad_particles(void **state)
{
    static const real bad[] = {NAN, INFINITY, -INFINITY};
    int k, a, kind;
    int32_t i;
    (void)state;
    for (k = 0; k < COUNT_OF(bad); k++) for (i = 0; i < 4; i++) for (a = 0; a < 3; a++)
            for (kind = 0; kind < 2; kind++) {
        nlist list = {0};
        real pos[12], radii[4] = {0, 0, 0, 0};
        oracle_snapshot before;
        nlist_desc d = full_list(&list, (nlist_layout)((k + i) % 4), NULL);
        oracle_take(&before, &list);
        memcpy(pos, four, sizeof pos);
        d.radii = radii;
        if (kind) radii[i] = bad[k], radii[3] = bad[k];
        else pos[3 * i + a] = bad[k], pos[11] = bad[k];
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 4), NLIST_NOT_FINITE);
        CHECK(list.bad_id == i);
        check_still_there(&list, &before);
        memcpy(pos, four, sizeof pos);
        radii[i] = -1; /* before the other bad one */
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 4), NLIST_BAD_RADIUS);
        CHECK(list.bad_id == i);
        d.dim = 4; /* another reason */
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 4), NLIST_BAD_DIM);
        CHECK(list.bad_id == -1);
        list.bad_id = i;
        CHECK_RESULT(nlist_remap(&list, NULL, 4), NLIST_BAD_ARGUMENT);
        CHECK(list.bad_id == -1);
        check_still_there(&list, &before);
        oracle_drop_snapshot(&before);
        nlist_free(&list);
    }
}

static void test_bad_calls(void **state)
{
    static const int32_t pair[4] = {0, 1, 2, 3};
    size_t const one = sizeof(real);
    heap h = {0, 0, 0, 0, 0, 0};
    nlist list = {0};
    ugrid grid = {0};
    lbvh tree = {0};
    oracle_snapshot before;
    nlist_desc d = full_list(&list, NLIST_COMPACT, &h);
    int32_t ids[8], moved = 5;
    int64_t needed = 77;
    char bytes[64];
    (void)state;
    oracle_take(&before, &list);
    CHECK_RESULT(nlist_defaults(NULL, &d), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_brute(NULL, &d, four, 0, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_brute(&list, NULL, four, 0, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_brute(&list, &d, NULL, 0, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, -1), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 2 * one, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 3 * one + 1, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, INT32_MAX - 1022), NLIST_TOO_MANY);
    CHECK_RESULT(nlist_build_pairs(NULL, &d, pair, 2, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_pairs(&list, NULL, pair, 2, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_pairs(&list, &d, NULL, 2, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_pairs(&list, &d, pair, -1, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_pairs(&list, &d, pair, 2, -1), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_pairs(&list, &d, pair, 2, INT32_MAX), NLIST_TOO_MANY);
    CHECK_RESULT(nlist_build_ugrid(NULL, &d, &grid, four, 0, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_ugrid(&list, &d, NULL, four, 0, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_ugrid(&list, NULL, &grid, four, 0, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_lbvh(NULL, &d, &tree, four, 0, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_lbvh(&list, &d, NULL, four, 0, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_lbvh(&list, NULL, &tree, four, 0, 4), NLIST_BAD_ARGUMENT);
    check_still_there(&list, &before);
    CHECK_RESULT(nlist_moved(NULL, four, 0, &moved), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_moved(&list, four, 0, NULL), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_moved(&list, NULL, 0, &moved), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_moved(&list, four, one, &moved), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_moved(&list, four, 0, &moved), NLIST_BAD_SKIN); /* built without */
    CHECK_RESULT(nlist_remap(NULL, ids, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_remap(&list, NULL, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_remap(&list, pair, -1), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_remap(&list, pair, INT32_MAX), NLIST_TOO_MANY);
    CHECK_RESULT(nlist_pairs(NULL, ids, 4, &needed, NULL, 0, NULL), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_pairs(&list, NULL, 4, &needed, NULL, 0, NULL), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_pairs(&list, ids, -1, &needed, NULL, 0, NULL), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_pairs(&list, ids, 4, NULL, NULL, 0, NULL), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_pairs(&list, ids, 4, &needed, NULL, 0, ids), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_pairs(&list, ids, 4, &needed, four, one, ids), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_save(NULL, bytes, 64, &needed), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_save(&list, NULL, 64, &needed), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_save(&list, bytes, -1, &needed), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_save(&list, bytes, 64, NULL), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_load(NULL, &d, bytes, 64), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_load(&list, NULL, bytes, 64), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_load(&list, &d, NULL, 64), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_load(&list, &d, bytes, -1), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_validate(NULL), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_reserve(NULL, &d, 4, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_reserve(&list, &d, -1, 4), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_reserve(&list, &d, 4, -1), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_reserve(&list, &d, INT32_MAX, 4), NLIST_TOO_MANY);
    check_still_there(&list, &before);
    CHECK(h.live_bytes == nlist_bytes(&list) && nlist_bytes(NULL) == 0);
    nlist_free(&list);
    nlist_free(&list);
    nlist_free(NULL);
    CHECK(h.live_blocks == 0 && !h.wrong);
    oracle_drop_snapshot(&before);
}

/* Grids and trees that are not those of the particles. */
static void test_bad_sources(void **state)
{
    nlist list = {0};
    ugrid grid = {0};
    lbvh tree = {0};
    ugrid_desc g;
    lbvh_desc t;
    oracle_snapshot before;
    nlist_desc d = full_list(&list, NLIST_DYNAMIC, NULL);
    (void)state;
    oracle_take(&before, &list);
    CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, four, 0, 4), NLIST_BAD_SOURCE);
    CHECK_RESULT(nlist_build_lbvh(&list, &d, &tree, four, 0, 4), NLIST_BAD_SOURCE);
    memset(&g, 0, sizeof g);
    memset(&t, 0, sizeof t);
    t.kind = LBVH_POINTS;
    g.cell = 1;
    CHECK(ugrid_build(&grid, &g, four, 0, 3) == UGRID_OK &&
        lbvh_build(&tree, &t, four, 0, 3) == LBVH_OK);
    CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, four, 0, 4), NLIST_BAD_SOURCE);
    CHECK_RESULT(nlist_build_lbvh(&list, &d, &tree, four, 0, 4), NLIST_BAD_SOURCE);
    { /* a grid that left a particle out */
        real points[12];
        memcpy(points, four, sizeof points);
        points[7] = (real)NAN;
        g.skip_invalid = 1;
        CHECK(ugrid_build(&grid, &g, points, 0, 4) == UGRID_OK && grid.invalid == 1);
        CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, points, 0, 4), NLIST_NOT_FINITE);
        CHECK(list.bad_id == 2);
        list.bad_id = -1;
    }
    { /* boxes so far from their particles that squares overflow */
        real const far_off = sizeof(real) == 4 ? (real)1e20 : (real)1e160;
        real old[6] = {0}, now[6] = {0};
        old[0] = far_off;
        old[3] = -far_off;
        now[3] = (real)0.1;
        CHECK(lbvh_build(&tree, &t, old, 0, 2) == LBVH_OK);
        CHECK_RESULT(nlist_build_lbvh(&list, &d, &tree, now, 0, 2), NLIST_BAD_SOURCE);
    }
    g.dim = t.dim = 2;
    CHECK(ugrid_build(&grid, &g, four, 3 * sizeof(real), 4) == UGRID_OK);
    CHECK(lbvh_build(&tree, &t, four, 3 * sizeof(real), 4) == LBVH_OK);
    CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, four, 0, 4), NLIST_BAD_DIM);
    CHECK_RESULT(nlist_build_lbvh(&list, &d, &tree, four, 0, 4), NLIST_BAD_DIM);
    g.dim = 3;
    g.periodic[1] = 1; /* the grid's box is too short for the radius */
    g.max[0] = g.max[2] = 1;
    g.max[1] = (real)1.75;
    CHECK(ugrid_build(&grid, &g, four, 0, 4) == UGRID_OK);
    CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, four, 0, 4), NLIST_BAD_PERIOD);
    check_still_there(&list, &before);
    oracle_drop_snapshot(&before);
    ugrid_free(&grid);
    lbvh_free(&tree);
    nlist_free(&list);
}

/* Pairs of ids out of range, or of one particle with itself: the first one is named. */
static void test_bad_pairs(void **state)
{
    static const int32_t good[8] = {0, 1, 2, 1, 3, 0, 1, 0},
        odd[] = {-1, 4, INT32_MIN, INT32_MAX, 1};
    int k, at;
    (void)state;
    for (k = 0; k < COUNT_OF(odd); k++) for (at = 0; at < 8; at++) {
        nlist list = {0};
        int32_t pair[8];
        oracle_snapshot before;
        nlist_desc d = full_list(&list, (nlist_layout)(at % 4), NULL);
        oracle_take(&before, &list);
        memcpy(pair, good, sizeof pair);
        pair[at] = odd[k];
        pair[7] = -5;
        CHECK_RESULT(nlist_build_pairs(&list, &d, pair, 4, 4), NLIST_BAD_INDEX);
        CHECK(list.bad_id == (k < 4 || pair[at ^ 1] == 1 ? at / 2 : 3));
        check_still_there(&list, &before);
        oracle_drop_snapshot(&before);
        nlist_free(&list);
    }
}
