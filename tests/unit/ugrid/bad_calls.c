/* bad_calls.c - a part of test_ugrid.c: refusals. Each has its exact result code, and leaves the
   grid empty and usable.
   SPDX-License-Identifier: MIT OR Unlicense */

static void check_empty_and_usable(ugrid *g)
{
    ugrid_desc const d = good_desc();
    ugrid_near near;
    int64_t pairs = -1;
    CHECK(g->n == 0);
    near = ugrid_near_within(g, four_points, 1);
    CHECK(!ugrid_next(&near));
    CHECK_RESULT(ugrid_validate(g), UGRID_NOT_BUILT);
    CHECK_RESULT(ugrid_count_pairs(g, 1, &pairs), UGRID_NOT_BUILT);
    CHECK(pairs == 0);
    CHECK_RESULT(ugrid_build(g, &d, four_points, 0, 4), UGRID_OK);
    CHECK_RESULT(ugrid_count_pairs(g, (real)0.15, &pairs), UGRID_OK);
    CHECK(pairs == 2 && g->n == 4 && g->bad_id == -1);
}

typedef struct refusal {
    ugrid_result want;
    const char *what;
    void (*spoil)(ugrid_desc *);
} refusal;

#define SPOIL(name, statement) static void name(ugrid_desc *d) { statement; }
SPOIL(dim_1, d->dim = 1)
SPOIL(dim_4, d->dim = 4)
SPOIL(dim_negative, d->dim = -2)
SPOIL(box_inverted, d->max[1] = -1)
SPOIL(box_flat, d->max[2] = d->min[2])
SPOIL(box_min_nan, d->min[0] = (real)NAN)
SPOIL(box_max_nan, d->max[1] = (real)NAN)
SPOIL(box_infinite, d->max[0] = (real)INFINITY)
SPOIL(box_too_long, d->min[0] = IS_FLOAT ? (real)-3e38 : (real)-1.7e308; d->max[0] = -d->min[0])
SPOIL(box_periodic_missing, d->max[0] = d->max[1] = d->max[2] = 0; d->periodic[2] = 1)
SPOIL(cell_negative, d->cell = -1)
SPOIL(cell_nan, d->cell = (real)NAN)
SPOIL(cell_infinite, d->cell = (real)INFINITY)
SPOIL(cell_missing_unbounded, d->cell = 0; d->unbounded = 1)
SPOIL(size_negative, d->placement = UGRID_TIGHT; d->size = -1)
SPOIL(size_nan, d->placement = UGRID_TIGHT; d->size = (real)NAN)
SPOIL(size_infinite, d->placement = UGRID_TIGHT; d->size = (real)INFINITY)
SPOIL(size_17_cells, d->placement = UGRID_TIGHT; d->size = 17 * d->cell)
SPOIL(slots_negative, d->method = UGRID_FIXED; d->slots = -1)
SPOIL(method_6, d->method = (ugrid_method)6)
SPOIL(method_negative, d->method = (ugrid_method)-1)
SPOIL(placement_2, d->placement = (ugrid_placement)2)
SPOIL(walk_5, d->walk = (ugrid_walk)5)
SPOIL(order_2, d->cell_order = (ugrid_cell_order)2)
SPOIL(layout_2, d->slot_layout = (ugrid_slot_layout)2)
SPOIL(buckets_negative, d->unbounded = 1; d->buckets = -1)
SPOIL(max_cells_negative, d->max_cells = -1)
SPOIL(unbounded_periodic, d->unbounded = 1; d->periodic[1] = 1)
SPOIL(strips_of_lists, d->method = UGRID_LIST; d->walk = UGRID_STRIPS)
SPOIL(strips_of_morton, d->cell_order = UGRID_MORTON; d->walk = UGRID_STRIPS)
SPOIL(strips_tight, d->placement = UGRID_TIGHT; d->walk = UGRID_STRIPS)
SPOIL(hybrid_of_slots, d->method = UGRID_FIXED; d->walk = UGRID_HYBRID)
SPOIL(hybrid_unbounded, d->unbounded = 1; d->walk = UGRID_HYBRID)
SPOIL(packed_tight, d->method = UGRID_LIST_PACKED; d->placement = UGRID_TIGHT)
SPOIL(alloc_without_free, d->allocator.alloc = (void *(*)(size_t, void *))(size_t)1)
SPOIL(free_without_alloc, d->allocator.free = (void (*)(void *, size_t, void *))(size_t)1)
SPOIL(cuda_alloc_alone, d->cuda_allocator.alloc =
    (void *(*)(size_t, struct CUstream_st *, void *))(size_t)1)
SPOIL(radius_negative, d->radius = -1)
SPOIL(radius_nan, d->radius = (real)NAN)
SPOIL(far_too_fine, d->cell = (real)1e-5)
SPOIL(one_cell_too_many, d->max_cells = 63)
SPOIL(morton_cells_too_many, d->cell = (real)0.2; d->max_cells = 511; d->cell_order = UGRID_MORTON)
SPOIL(slots_times_cells, d->method = UGRID_FIXED; d->slots = 1 << 26)

static const refusal refusals[] = {
    {UGRID_BAD_DIM, "dim 1", dim_1}, {UGRID_BAD_DIM, "dim 4", dim_4},
    {UGRID_BAD_DIM, "dim -2", dim_negative}, {UGRID_BAD_BOX, "inverted", box_inverted},
    {UGRID_BAD_BOX, "flat", box_flat}, {UGRID_BAD_BOX, "min NaN", box_min_nan},
    {UGRID_BAD_BOX, "max NaN", box_max_nan}, {UGRID_BAD_BOX, "infinite", box_infinite},
    {UGRID_BOX_TOO_WIDE, "length overflows", box_too_long},
    {UGRID_BAD_BOX, "periodic without a box", box_periodic_missing},
    {UGRID_BAD_CELL, "negative", cell_negative}, {UGRID_BAD_CELL, "NaN", cell_nan},
    {UGRID_BAD_CELL, "infinite", cell_infinite},
    {UGRID_BAD_CELL, "unbounded without a cell", cell_missing_unbounded},
    {UGRID_BAD_RADIUS, "negative", radius_negative}, {UGRID_BAD_RADIUS, "NaN", radius_nan},
    {UGRID_BAD_SIZE, "negative", size_negative}, {UGRID_BAD_SIZE, "NaN", size_nan},
    {UGRID_BAD_SIZE, "infinite", size_infinite}, {UGRID_BAD_SLOTS, "negative", slots_negative},
    {UGRID_BAD_OPTION, "method 6", method_6}, {UGRID_BAD_OPTION, "method -1", method_negative},
    {UGRID_BAD_OPTION, "placement 2", placement_2}, {UGRID_BAD_OPTION, "walk 5", walk_5},
    {UGRID_BAD_OPTION, "order 2", order_2}, {UGRID_BAD_OPTION, "layout 2", layout_2},
    {UGRID_BAD_OPTION, "buckets", buckets_negative},
    {UGRID_BAD_OPTION, "max_cells", max_cells_negative},
    {UGRID_BAD_OPTION, "unbounded and periodic", unbounded_periodic},
    {UGRID_BAD_WALK, "strips of lists", strips_of_lists},
    {UGRID_BAD_WALK, "strips of Morton", strips_of_morton},
    {UGRID_BAD_WALK, "strips, tight", strips_tight},
    {UGRID_BAD_WALK, "hybrid of slots", hybrid_of_slots},
    {UGRID_BAD_WALK, "hybrid, unbounded", hybrid_unbounded},
    {UGRID_BAD_PLACEMENT, "packed, tight", packed_tight},
    {UGRID_BAD_ALLOCATOR, "alloc alone", alloc_without_free},
    {UGRID_BAD_ALLOCATOR, "free alone", free_without_alloc},
    {UGRID_BAD_ALLOCATOR, "CUDA alloc alone", cuda_alloc_alone},
    {UGRID_TOO_MANY_CELLS, "10^15 cells", far_too_fine},
    {UGRID_TOO_MANY_CELLS, "64 > 63", one_cell_too_many},
    {UGRID_TOO_MANY_CELLS, "8^3 > 511 Morton codes", morton_cells_too_many},
    {UGRID_BAD_SLOTS, "slots x cells", slots_times_cells},
    {UGRID_BAD_SIZE, "17 cells", size_17_cells},
};

static const refusal *current_refusal;
static void describe_refusal(void) { print_error("  refusal: %s\n", current_refusal->what); }

/* Every bad desc, given to an empty grid and to one that holds something. */
static void test_bad_descs(void **state)
{
    ugrid g = {0};
    int k, full;
    (void)state;
    describe = describe_refusal;
    for (full = 0; full < 2; full++)
        for (k = 0; k < COUNT_OF(refusals); k++) {
            ugrid_desc d = good_desc(), out;
            ugrid_result r;
            current_refusal = &refusals[k];
            if (!full) ugrid_free(&g);
            refusals[k].spoil(&d);
            CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), refusals[k].want);
            check_empty_and_usable(&g);
            CHECK_RESULT(ugrid_reserve(&g, &d, 4), refusals[k].want);
            check_empty_and_usable(&g);
            r = ugrid_defaults(&out, &d);
            CHECK(r == refusals[k].want || (r == UGRID_OK && k >= COUNT_OF(refusals) - 5) ||
                refusals[k].spoil == box_periodic_missing);
        }
    ugrid_free(&g);
    describe = NULL;
}

/* What the last refusal said is gone with the next call, also when that is refused for another
   reason. */
static void test_refusals_are_forgotten(void **state)
{
    ugrid g = {0};
    ugrid_desc d = good_desc(), bad = good_desc();
    real p[12];
    (void)state;
    memcpy(p, four_points, sizeof p);
    p[7] = (real)NAN;
    bad.dim = 9;
    CHECK_RESULT(ugrid_build(&g, &d, p, 0, 4), UGRID_NOT_FINITE);
    CHECK(g.bad_id == 2 && g.needed_cells == 64);
    CHECK_RESULT(ugrid_build(&g, &bad, p, 0, 4), UGRID_BAD_DIM);
    CHECK(g.bad_id == -1 && g.needed_cells == 0);
    d.method = UGRID_FIXED;
    d.slots = 1;
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_CELL_FULL);
    CHECK(g.needed_slots == 2);
    CHECK_RESULT(ugrid_build(&g, &bad, p, 0, 4), UGRID_BAD_DIM);
    CHECK(g.needed_slots == 0 && g.n == 0 && g.entries == 0);
    g.cuda_error = 700; /* as a download leaves it */
    CHECK_RESULT(ugrid_build(&g, &bad, p, 0, 4), UGRID_BAD_DIM);
    CHECK(g.cuda_error == 0);
    ugrid_free(&g);
}

/* Calls with bad arguments. */
static void test_bad_calls(void **state)
{
    ugrid g = {0};
    ugrid_desc d = good_desc();
    real const bad_radii[] = {0, -1, (real)NAN, (real)INFINITY, (real)(IS_FLOAT ? 1e-30 : 1e-200),
        (real)(IS_FLOAT ? 1e30 : 1e200)};
    real values[4] = {1, 2, 3, 4}, sums[64], p[3] = {0, 0, 0}, nan_point[3] = {0, 0, (real)NAN};
    int64_t offsets[5], pairs, needed;
    int32_t ids[32], found, counts[4];
    int32_t *hits = NULL;
    ugrid_pair *stb_pairs = NULL;
    pair_log log = {0, 0};
    int k;
    (void)state;

    CHECK_RESULT(ugrid_defaults(NULL, &d), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_fit(NULL, four_points, 0, 4, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_build(NULL, &d, four_points, 0, 4), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_build(&g, &d, NULL, 0, 4), UGRID_BAD_ARGUMENT);
    check_empty_and_usable(&g);
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, -1), UGRID_BAD_ARGUMENT);
    check_empty_and_usable(&g);
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 3 * sizeof(real) - 1, 4), UGRID_BAD_ARGUMENT);
    check_empty_and_usable(&g);
    CHECK_RESULT(ugrid_reserve(NULL, &d, 4), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_OK);
    CHECK_RESULT(ugrid_reserve(&g, &d, -1), UGRID_BAD_ARGUMENT);
    CHECK(!g.built && g.n == 0);
    CHECK_RESULT(ugrid_reserve(&g, NULL, 4), UGRID_BAD_BOX);
    d.cell = 0;
    CHECK_RESULT(ugrid_reserve(&g, &d, 4), UGRID_BAD_CELL);
    d = good_desc();

    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_OK);
    for (k = 0; k < COUNT_OF(bad_radii); k++) {
        real const r = bad_radii[k];
        CHECK_RESULT(ugrid_query(&g, p, r, ids, 32, &found), UGRID_BAD_RADIUS);
        CHECK_RESULT(ugrid_count_pairs(&g, r, &pairs), UGRID_BAD_RADIUS);
        CHECK_RESULT(ugrid_count_neighbors(&g, r, 0, counts), UGRID_BAD_RADIUS);
        CHECK_RESULT(ugrid_neighbors(&g, r, 0, offsets, ids, 32, &needed), UGRID_BAD_RADIUS);
        CHECK_RESULT(ugrid_neighbors_at(&g, p, 0, 1, r, offsets, ids, 32, &needed),
            UGRID_BAD_RADIUS);
        CHECK_RESULT(ugrid_each_pair(&g, r, 0, log_pair, &log), UGRID_BAD_RADIUS);
        CHECK_RESULT(ugrid_arr_within(&g, p, r, &hits), UGRID_BAD_RADIUS);
        CHECK_RESULT(ugrid_arr_pairs(&g, r, &stb_pairs), UGRID_BAD_RADIUS);
    }
    CHECK_RESULT(ugrid_query(NULL, p, 1, ids, 32, &found), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_query(&g, NULL, 1, ids, 32, &found), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_query(&g, p, 1, NULL, 32, &found), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_query(&g, p, 1, ids, -1, &found), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_query(&g, p, 1, ids, 32, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_query(&g, nan_point, 1, ids, 32, &found), UGRID_NOT_FINITE);
    CHECK_RESULT(ugrid_count_pairs(NULL, 1, &pairs), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_count_pairs(&g, 1, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_count_neighbors(NULL, 1, 0, counts), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_count_neighbors(&g, 1, 0, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_count_neighbors(&g, 1, 4, counts), UGRID_BAD_OPTION);
    CHECK_RESULT(ugrid_neighbors(NULL, 1, 0, offsets, ids, 32, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors(&g, 1, 0, NULL, ids, 32, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors(&g, 1, 0, offsets, NULL, 32, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors(&g, 1, 0, offsets, ids, -1, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors(&g, 1, 0, offsets, ids, 32, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors(&g, 1, 64, offsets, ids, 32, &needed), UGRID_BAD_OPTION);
    CHECK_RESULT(ugrid_neighbors_at(NULL, p, 0, 1, 1, offsets, ids, 32, &needed),
        UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors_at(&g, NULL, 0, 1, 1, offsets, ids, 32, &needed),
        UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors_at(&g, p, 0, -1, 1, offsets, ids, 32, &needed),
        UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors_at(&g, p, 3, 1, 1, offsets, ids, 32, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors_at(&g, p, 0, 1, 1, NULL, ids, 32, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors_at(&g, p, 0, 1, 1, offsets, NULL, 32, &needed),
        UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors_at(&g, p, 0, 1, 1, offsets, ids, -1, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors_at(&g, p, 0, 1, 1, offsets, ids, 32, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors_at(&g, NULL, 0, 0, 1, offsets, NULL, 0, &needed), UGRID_OK);
    CHECK(needed == 0 && offsets[0] == 0);
    CHECK_RESULT(ugrid_each_pair(NULL, 1, 0, log_pair, &log), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_each_pair(&g, 1, 0, NULL, &log), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_each_pair(&g, 1, UGRID_PLACES, log_pair, &log), UGRID_BAD_OPTION);
    CHECK_RESULT(ugrid_gather(NULL, values, 4, sums), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_gather(&g, NULL, 4, sums), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_gather(&g, values, 0, sums), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_gather(&g, values, 4, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_scatter(NULL, values, 4, sums), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_scatter(&g, NULL, 4, sums), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_scatter(&g, values, 0, sums), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_scatter(&g, values, 4, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cell_sums(NULL, values, 1, sums), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cell_sums(&g, NULL, 1, sums), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cell_sums(&g, values, 0, sums), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cell_sums(&g, values, 1, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_arr_within(NULL, p, 1, &hits), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_arr_within(&g, p, 1, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_arr_pairs(&g, 1, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_validate(NULL), UGRID_BAD_ARGUMENT);
    CHECK(log.calls == 0 && hits == NULL && stb_pairs == NULL && ugrid_bytes(NULL) == 0);
    CHECK(g.n == 4 && "a refused search leaves the grid alone");
    ugrid_free(&g);
    ugrid_free(&g);
    ugrid_free(NULL);
}

/* Every call that reads a grid, on one without particles. */
static void check_all_calls(const ugrid *g, ugrid_result want)
{
    real value = 1, sums[64], p[3] = {0, 0, 0};
    int64_t offsets[2] = {7, 7}, needed = 7, pairs = 7;
    int32_t found = 7, id = 7, *hits = NULL;
    ugrid_pair *stb_pairs = NULL;
    pair_log log = {0, 0};
    CHECK_RESULT(ugrid_cell_sums(g, &value, 1, sums), want);
    CHECK_RESULT(ugrid_gather(g, &value, 1, sums), want);
    CHECK_RESULT(ugrid_scatter(g, &value, 1, sums), want);
    CHECK_RESULT(ugrid_validate(g), want);
    CHECK_RESULT(ugrid_verify(g, 1, 5, 0, &id), want);
    CHECK_RESULT(ugrid_query(g, p, 1, NULL, 0, &found), want);
    CHECK_RESULT(ugrid_count_pairs(g, 1, &pairs), want);
    CHECK_RESULT(ugrid_neighbors(g, 1, 0, offsets, NULL, 0, &needed), want);
    CHECK(needed == 0);
    CHECK_RESULT(ugrid_neighbors(g, 1, UGRID_PLACES, offsets, NULL, 0, &needed), want);
    CHECK_RESULT(ugrid_neighbors_at(g, p, 0, 1, 1, offsets, NULL, 0, &needed), want);
    CHECK_RESULT(ugrid_count_neighbors(g, 1, 0, NULL), want);
    CHECK_RESULT(ugrid_each_pair(g, 1, 0, log_pair, &log), want);
    CHECK_RESULT(ugrid_arr_within(g, p, 1, &hits), want);
    CHECK_RESULT(ugrid_arr_pairs(g, 1, &stb_pairs), want);
    /* a NULL pointer comes first */
    CHECK_RESULT(ugrid_cell_sums(g, &value, 1, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_query(g, NULL, 1, NULL, 0, &found), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_count_pairs(g, -1, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors(g, -1, 0, NULL, NULL, 0, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors_at(g, NULL, 0, 1, 1, offsets, NULL, 0, &needed),
        UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_each_pair(g, 1, 0, NULL, &log), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_each_row(g, 1, 0, NULL, &log), UGRID_BAD_ARGUMENT);
    CHECK(found == 0 && pairs == 0 && needed == 0 && id == -1 && log.calls == 0 && hits == NULL &&
        stb_pairs == NULL);
    CHECK(want != UGRID_OK || (offsets[0] == 0 && offsets[1] == 0));
}

/* A grid that was never built, was reserved only, refused, or freed; and one that was built without
   particles. */
/* Room for one id is used, whether one is all there are or not. */
static void test_room_for_one(void **state)
{
    /* 2 is far from both */
    static const real far[9] = {(real)0.125, 0, 0, (real)0.25, 0, 0, 1, 1, 1};
    int k;
    (void)state;
    for (k = 0; k < 4; k++) {
        int const flags = (k % 2 ? UGRID_HALF : 0) | (k / 2 ? UGRID_PLACES : 0);
        ugrid g = {0};
        ugrid_desc const d = good_desc();
        int64_t offsets[4], needed = -1;
        int32_t ids[3] = {-7, -7, -7};
        CHECK_RESULT(ugrid_build(&g, &d, far, 0, 3), UGRID_OK);
        CHECK_RESULT(ugrid_neighbors(&g, (real)0.5, flags, offsets, ids, 1, &needed),
                     k % 2 ? UGRID_OK : UGRID_BUFFER_TOO_SMALL);
        CHECK(needed == (k % 2 ? 1 : 2) && offsets[3] == needed && ids[0] == 1 && ids[1] == -7);
        ugrid_free(&g);
    }
}

static void test_not_built(void **state)
{
    ugrid g = {0};
    ugrid_desc d = good_desc();
    (void)state;
    check_all_calls(&g, UGRID_NOT_BUILT);
    CHECK(ugrid_bytes(&g) == 0);
    CHECK_RESULT(ugrid_reserve(&g, &d, 4), UGRID_OK);
    check_all_calls(&g, UGRID_NOT_BUILT);
    CHECK_RESULT(ugrid_build(&g, &d, NULL, 0, 0), UGRID_OK);
    check_all_calls(&g, UGRID_OK);
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, -1), UGRID_BAD_ARGUMENT);
    check_all_calls(&g, UGRID_NOT_BUILT);
    CHECK_RESULT(ugrid_build(&g, NULL, NULL, 0, 0), UGRID_OK);
    check_all_calls(&g, UGRID_OK);
    ugrid_free(&g);
    check_all_calls(&g, UGRID_NOT_BUILT);
}
