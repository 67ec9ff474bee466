/* test_nlist.c - tests of the serial part of nlist.h: rows, sums, history and events against brute force and a map. See
   nlist_oracle.h for the oracles. test_nlist_calls.c has the rest: refusals, memory, files, triangles.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/nlist/test_nlist.c -o test_nlist -lcmocka -lm && ./test_nlist
       (add -DUGRID_REAL=double -DLBVH_REAL=double -DNLIST_REAL=double for the double build; packages: libcmocka-dev libstb-dev)

   Environment:
       NLIST_TEST_SHARE=k   runs one k-th of the big products (default: 1; 4 under a sanitizer)
       NLIST_TEST_ONLY=p    runs the tests whose names match p, such as 'test_sum*'
       NLIST_TEST_SEED=s    replays the random steps with the seed that a failing run printed
       NLIST_TEST_STEPS=k   number of random steps
       TEST_SMALL=1         a small part of everything, for valgrind */

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#include "nlist.h"
#include "../../common/nlist_oracle.h"
#include "../../common/testing.h"

/* ------------------------------------------------------------------------------------------------
   Sources: whatever finds the neighbours
   ------------------------------------------------------------------------------------------------ */

enum {
    BRUTE, PAIRS,
    GRID_SORT, GRID_MORTON, GRID_COUNT, GRID_BARE, GRID_FIXED, GRID_LIST, GRID_PACKED, GRID_TIGHT, GRID_SPLIT, GRID_HASHED,
    TREE_POINTS, TREE_FAT_POINTS, TREE_SPHERES, TREE_STALE,
    SOURCES
};

static const char *const source_names[SOURCES] = {
    "brute force", "pairs", "grid SORT", "grid SORT, Morton", "grid COUNT", "grid COUNT without records", "grid FIXED", "grid LIST",
    "grid LIST_PACKED", "grid TIGHT", "grid SORT, split cells", "grid unbounded", "tree of points", "tree of points with a radius",
    "tree of spheres", "tree out of date",
};

typedef struct feeder {
    int source;
    ugrid grid;
    lbvh tree;
    int32_t *pairs;
    int64_t m;
    real *spheres;
} feeder;

static int from_grid(int source) { return source >= GRID_SORT && source <= GRID_HASHED; }
static int from_tree(int source) { return source >= TREE_POINTS; }

static int axes_repeat(const oracle_scene *s) { return s->periodic[0] | s->periodic[1] | s->periodic[2]; }

/* A hashed grid has no box that could repeat. */
static int possible(const oracle_scene *s, int source) { return source != GRID_HASHED || !axes_repeat(s); }

static void make_grid(feeder *f, const oracle_scene *s)
{
    static const ugrid_method methods[] = {UGRID_SORT, UGRID_SORT, UGRID_COUNT, UGRID_COUNT, UGRID_FIXED, UGRID_LIST,
                                           UGRID_LIST_PACKED, UGRID_COUNT, UGRID_SORT, UGRID_LIST};
    ugrid_desc d = oracle_ugrid_desc(s);
    int a;
    d.method = methods[f->source - GRID_SORT];
    d.cell_order = f->source == GRID_MORTON ? UGRID_MORTON : UGRID_ROWS;
    d.no_records = f->source == GRID_BARE;
    d.placement = f->source == GRID_TIGHT ? UGRID_TIGHT : UGRID_LOOSE;
    d.split = f->source == GRID_SPLIT ? 3 : 0;
    if (f->source != GRID_TIGHT) d.cell *= (real)(0.5 * (1 + roll(4)));
    if (f->source == GRID_HASHED) {
        d.unbounded = 1;
        d.buckets = roll(2) ? 0 : 4;
        for (a = 0; a < 3; a++) d.min[a] = d.max[a] = 0;
    }
    CHECK(ugrid_build(&f->grid, &d, s->pos, s->stride, s->n) == UGRID_OK);
}

static void make_tree(feeder *f, const oracle_scene *s)
{
    lbvh_desc d;
    int32_t i;
    memset(&d, 0, sizeof d);
    d.dim = s->dim;
    d.builder = roll(2) ? LBVH_SPLIT : LBVH_MERGE;
    d.kind = f->source == TREE_SPHERES || f->source == TREE_STALE ? LBVH_SPHERES : LBVH_POINTS;
    d.radius = f->source == TREE_FAT_POINTS ? s->radius / 2 + s->radii_max : 0;
    if (d.kind == LBVH_POINTS) {
        CHECK(lbvh_build(&f->tree, &d, s->pos, s->stride, s->n) == LBVH_OK);
        return;
    }
    f->spheres = oracle_spheres(s);
    for (i = 0; i < s->n * (s->dim + 1) && f->source == TREE_STALE; i++) /* centres and radii of some other day */
        f->spheres[i] = (i + 1) % (s->dim + 1) ? f->spheres[i] + s->cell * between(-1, 1) : s->cell * between(0, 1);
    CHECK(lbvh_build(&f->tree, &d, f->spheres, 0, s->n) == LBVH_OK);
}

/* All pairs near each other, masks and exclusions aside. */
static void make_pairs(feeder *f, const oracle_scene *s)
{
    nlist all = {0};
    nlist_desc d = oracle_desc(s);
    d.masks = NULL;
    d.exclude = NULL;
    d.exclude_start = NULL;
    d.half = roll(2);
    CHECK_RESULT(nlist_build_brute(&all, &d, s->pos, s->stride, s->n), NLIST_OK);
    f->pairs = oracle_pairs(&all, &dice, &f->m);
    nlist_free(&all);
}

static void make_feeder(feeder *f, const oracle_scene *s, int source)
{
    memset(f, 0, sizeof *f);
    f->source = source;
    if (source == PAIRS) make_pairs(f, s);
    if (from_grid(source)) make_grid(f, s);
    if (from_tree(source)) make_tree(f, s);
}

static void drop_feeder(feeder *f)
{
    ugrid_free(&f->grid);
    lbvh_free(&f->tree);
    free(f->pairs);
    free(f->spheres);
    memset(f, 0, sizeof *f);
}

static nlist_result feed(nlist *list, const nlist_desc *desc, const feeder *f, const oracle_scene *s)
{
    nlist_desc d = *desc;
    int a;
    if (f->source == PAIRS) {
        d.skin = 0; /* the pairs reach as far as they do */
        return nlist_build_pairs(list, &d, f->pairs, f->m, s->n);
    }
    if (from_tree(f->source)) return nlist_build_lbvh(list, &d, &f->tree, s->pos, s->stride, s->n);
    if (!from_grid(f->source)) return nlist_build_brute(list, &d, s->pos, s->stride, s->n);
    for (a = 0; a < 3; a++) { /* the grid's own box counts */
        d.periodic[a] = roll(2);
        d.min[a] = 1;
        d.max[a] = 2;
    }
    return nlist_build_ugrid(list, &d, &f->grid, s->pos, s->stride, s->n);
}

/* ------------------------------------------------------------------------------------------------
   Layouts
   ------------------------------------------------------------------------------------------------ */

typedef struct variant { nlist_layout layout; int32_t width; } variant;

enum { AS_WIDE_AS_NEEDED = -1, POWER_OF_TWO = -2 /* and at least that wide */ };

static const variant variants[] = {
    {NLIST_COMPACT, 0}, {NLIST_STATIC, AS_WIDE_AS_NEEDED}, {NLIST_DYNAMIC, 0}, {NLIST_HYBRID, 0}, {NLIST_HYBRID, 1},
    {NLIST_HYBRID, 2}, {NLIST_HYBRID, 5}, {NLIST_HYBRID, 200}, {NLIST_STATIC, 300},
};

static const char *const layout_names[] = {"COMPACT", "STATIC", "DYNAMIC", "HYBRID"};

static struct { const oracle_scene *scene; const nlist_desc *desc; int source; } now;

static void describe_case(void)
{
    const oracle_scene *s = now.scene;
    const nlist_desc *d = now.desc;
    if (s) print_error("  %s, n %d, dim %d, periodic %d %d %d, options %d, cells %d %d %d\n", oracle_input_name(s->input),
                       (int)s->n, s->dim, s->periodic[0], s->periodic[1], s->periodic[2], s->options, s->cells[0], s->cells[1],
                       s->cells[2]);
    if (s) print_error("  radius %.9g, skin %.9g, radii up to %.9g\n", (double)s->radius, (double)s->skin, (double)s->radii_max);
    if (d) print_error("  %s, layout %s, width %d, half %d, history %d\n", source_names[now.source], layout_names[d->layout],
                       (int)d->width, (int)d->half, (int)d->history);
}

/* The desc's layout, for which the fullest row must be known. A width of 0 says default to the header; in HYBRID it is one. */
static void set_variant(nlist_desc *d, const variant *v, int32_t fullest)
{
    d->layout = v->layout;
    d->width = v->width;
    if (v->width == AS_WIDE_AS_NEEDED) d->width = fullest ? fullest : 1;
    if (v->width == POWER_OF_TWO) for (d->width = 1; d->width < fullest; d->width *= 2) {}
}

static int32_t fullest_row(const nlist *list)
{
    int32_t most = 0, i;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        int32_t count = 0;
        while (nlist_next(&e)) count++;
        if (count > most) most = count;
    }
    return most;
}

/* ------------------------------------------------------------------------------------------------
   The arrays, as the header describes them
   ------------------------------------------------------------------------------------------------ */

static void check_compact(const nlist *list, const nlist_rows *rows)
{
    int32_t i;
    CHECK(rows->start && !rows->slot && !rows->own && !rows->link && !rows->head && !rows->touched && rows->width == 0);
    CHECK(rows->start[0] == 0 && rows->start[list->n] == list->total && rows->entries == list->total);
    for (i = 0; i < list->n; i++) CHECK(rows->start[i + 1] - rows->start[i] == rows->count[i]);
}

/* Full slots first, then -1. */
static void check_slots(const nlist *list, const nlist_rows *rows)
{
    int32_t i, k;
    CHECK(rows->width == list->desc.width);
    for (i = 0; i < list->n; i++) for (k = 0; k < rows->width; k++)
        CHECK((rows->slot[(int64_t)i * rows->width + k] >= 0) == (k < rows->count[i]));
}

/* Each chain has what did not go to the slots, and belongs to its row. */
static void check_chains(const nlist *list, const nlist_rows *rows)
{
    int64_t entries = 0;
    int32_t i, e;
    for (i = 0; i < list->n; i++) {
        int32_t left = rows->count[i] > rows->width ? rows->count[i] - rows->width : 0;
        for (e = rows->head[i]; e >= 0; e = rows->link[e]) {
            CHECK(e < rows->entries && rows->own[e] == i && left > 0);
            left--;
            entries++;
        }
        CHECK(left == 0);
    }
    CHECK(entries == rows->entries);
}

static void check_touched(const nlist *list, const nlist_rows *rows)
{
    uint8_t *seen = NEW(uint8_t, list->n);
    int32_t i, touched = 0;
    memset(seen, 0, (size_t)list->n);
    for (i = 0; i < rows->touched_count; i++) {
        int32_t const row = rows->touched[i];
        CHECK(row >= 0 && row < list->n && rows->count[row] > 0 && !seen[row]);
        seen[row] = 1;
    }
    for (i = 0; i < list->n; i++) touched += rows->count[i] > 0;
    CHECK(touched == rows->touched_count);
    free(seen);
}

static void check_arrays(const nlist *list)
{
    const nlist_rows *rows = &list->rows[list->current];
    nlist_layout const layout = list->desc.layout;
    int64_t total = 0;
    int32_t i;
    CHECK(rows->n == list->n && !list->d_current && list->cuda_error == 0 && list->bad_id == -1);
    if (list->n == 0) return;
    for (i = 0; i < list->n; i++) total += rows->count[i];
    CHECK(total == list->total && rows->capacity >= rows->entries);
    if (layout == NLIST_COMPACT) check_compact(list, rows);
    else CHECK(!rows->start);
    if (layout == NLIST_STATIC || (layout == NLIST_HYBRID && rows->width)) check_slots(list, rows);
    if (layout == NLIST_STATIC) CHECK(!rows->head && !rows->partner && rows->entries == 0 && rows->capacity == 0);
    if (layout == NLIST_DYNAMIC) CHECK(rows->width == 0 && !rows->slot);
    if (layout == NLIST_DYNAMIC || layout == NLIST_HYBRID) check_chains(list, rows);
    if (layout == NLIST_DYNAMIC) check_touched(list, rows);
    CHECK(!rows->history == (list->desc.history == 0 || oracle_entries(list) == 0) || list->desc.history);
}

/* Everything about a list that was just built. */
static void check_list(const nlist *list, const oracle_scene *s, const int32_t *name)
{
    CHECK_FINE(oracle_check_rows(s, list, name));
    CHECK_RESULT(nlist_validate(list), NLIST_OK);
    check_arrays(list);
}

/* ------------------------------------------------------------------------------------------------
   Rows, over the product of inputs, options, sources and layouts
   ------------------------------------------------------------------------------------------------ */

/* Rows in the order of ids. */
static void check_ascending(const nlist *list)
{
    int32_t i;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        int32_t last = -1;
        for (; nlist_next(&e); last = e.id) CHECK(e.id > last);
    }
}

/* Rows in the order of the leaves, each of which has its place in the tree. */
static void check_by_place(const nlist *list, const lbvh *tree)
{
    int32_t *place = NEW(int32_t, list->n), i;
    for (i = 0; i < list->n; i++) place[tree->node[tree->first_leaf + i].link] = i;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        int32_t last = -1;
        for (; nlist_next(&e); last = place[e.id]) CHECK(place[e.id] > last);
    }
    free(place);
}

/* Rows in the order of ugrid_neighbors, those left aside that are not listed. */
static void check_as_the_grid(const nlist *list, const ugrid *grid, const oracle_scene *s)
{
    int64_t *offsets = NEW(int64_t, s->n + 1), needed = 0, k;
    real const reach = s->radius + 2 * s->radii_max + s->skin;
    int32_t *ids, i;
    (void)ugrid_neighbors(grid, reach, 0, offsets, NULL, 0, &needed);
    ids = NEW(int32_t, needed);
    CHECK(ugrid_neighbors(grid, reach, 0, offsets, ids, needed, &needed) == UGRID_OK);
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        k = offsets[i];
        while (nlist_next(&e)) {
            while (k < offsets[i + 1] && ids[k] != e.id) k++;
            CHECK(k < offsets[i + 1]);
        }
    }
    free(offsets);
    free(ids);
}

static void check_order(const nlist *list, const feeder *f, const oracle_scene *s)
{
    if (f->source == BRUTE || f->source == PAIRS) check_ascending(list);
    if (from_tree(f->source) && !axes_repeat(s)) check_by_place(list, &f->tree);
    if (f->source >= GRID_SORT && f->source <= GRID_BARE) check_as_the_grid(list, &f->grid, s);
}

/* One layout after the other through the same source: the same rows in the same order, whatever was in the list's memory before. */
static void check_variants(nlist *list, nlist_desc *d, const feeder *f, const oracle_scene *s, const nlist *truth)
{
    nlist first = {0};
    int32_t const fullest = fullest_row(truth);
    int k;
    for (k = 0; k < COUNT_OF(variants); k++) {
        set_variant(d, &variants[k], fullest);
        CHECK_RESULT(feed(k ? list : &first, d, f, s), NLIST_OK);
        check_list(k ? list : &first, s, NULL);
        if (k == 0) check_order(&first, f, s);
        CHECK_FINE(oracle_same_order(k ? list : &first, &first));
        CHECK_FINE(oracle_same_rows(&first, truth));
        CHECK((k ? list : &first)->needed_width == fullest);
    }
    nlist_free(&first);
}

/* Every source, half and full, against brute force. `list` keeps its memory from scene to scene. */
static void check_scene(nlist *list, const oracle_scene *s, int counter)
{
    nlist truth = {0};
    int source;
    now.scene = s;
    for (source = 0; source < SOURCES; source++) {
        nlist_desc d = oracle_desc(s);
        feeder f;
        if (!possible(s, source) || !chosen(SOURCES * counter + source)) continue;
        d.half = roll(2);
        now.source = BRUTE;
        now.desc = &d;
        CHECK_RESULT(nlist_build_brute(&truth, &d, s->pos, s->stride, s->n), NLIST_OK);
        check_list(&truth, s, NULL);
        now.source = source;
        make_feeder(&f, s, source);
        check_variants(list, &d, &f, s, &truth);
        drop_feeder(&f);
        nlist_free(&truth);
    }
}

static const int option_sets[] = {0, ORACLE_RADII, ORACLE_MASKS, ORACLE_EXCLUDE, ORACLE_SKIN | ORACLE_STRIDE, ORACLE_ALL};

static void check_product(int dim)
{
    nlist list = {0};
    int counter = 0, input, periodic;
    describe = describe_case;
    dice = wl_seed(40 + (uint64_t)dim);
    for (input = 0; input < ORACLE_INPUTS; input++) for (periodic = 0; periodic < 1 << dim; periodic++, counter++) {
        int const options = counter % 2 ? ORACLE_ALL : option_sets[roll(COUNT_OF(option_sets))];
        oracle_scene s;
        oracle_make(&s, input, dim, periodic, 2 + roll(70), options, &dice);
        check_scene(&list, &s, counter);
        oracle_forget(&s);
    }
    nlist_free(&list);
}

static void test_product_2d(void **state) { (void)state; check_product(2); check_product(2); }
static void test_product_3d(void **state) { (void)state; check_product(3); }

/* Rows that are longer than any usual width, and more particles than elsewhere. */
static void test_larger(void **state)
{
    nlist list = {0};
    int counter;
    (void)state;
    describe = describe_case;
    for (counter = 0; counter < 8; counter++) {
        oracle_scene s;
        if (!chosen(counter)) continue;
        oracle_make(&s, counter % ORACLE_EMPTY, 2 + counter % 2, roll(8), 150 + roll(50), option_sets[roll(6)], &dice);
        check_scene(&list, &s, counter);
        oracle_forget(&s);
    }
    nlist_free(&list);
}

/* ------------------------------------------------------------------------------------------------
   What does not fit
   ------------------------------------------------------------------------------------------------ */

/* Slots one too few, entries one too few: the exact size comes back, the list stays; with that size all is well. */
static void check_too_small(nlist *list, const oracle_scene *s, const feeder *f, nlist_desc *d, const nlist *truth)
{
    int32_t const fullest = fullest_row(truth);
    oracle_snapshot before;
    oracle_take(&before, list);
    if (d->layout == NLIST_STATIC && fullest > 1) {
        d->width = 1 + roll(fullest - 1);
        CHECK_RESULT(feed(list, d, f, s), NLIST_ROW_FULL);
        CHECK(list->needed_width == fullest);
        CHECK_FINE(oracle_check_unchanged(&before, list));
        d->grow = 1;
        CHECK_RESULT(feed(list, d, f, s), NLIST_OK);
        CHECK(list->desc.width >= fullest);
        check_list(list, s, NULL);
        d->width = fullest;
    } else if (d->layout != NLIST_STATIC && truth->total > 1) {
        int64_t needed;
        d->capacity = 1;
        if (feed(list, d, f, s) == NLIST_OK) goto done; /* all but one in the slots of HYBRID */
        CHECK_RESULT(feed(list, d, f, s), NLIST_LIST_FULL);
        needed = list->needed_entries;
        CHECK(needed > 1 && (d->layout == NLIST_HYBRID || needed == truth->total));
        CHECK_FINE(oracle_check_unchanged(&before, list));
        d->capacity = needed - 1;
        CHECK_RESULT(feed(list, d, f, s), NLIST_LIST_FULL);
        CHECK(list->needed_entries == needed);
        CHECK_FINE(oracle_check_unchanged(&before, list));
        d->grow = 1;
        CHECK_RESULT(feed(list, d, f, s), NLIST_OK);
        check_list(list, s, NULL);
        d->capacity = needed;
    }
    d->grow = 0;
    CHECK_RESULT(feed(list, d, f, s), NLIST_OK);
done:
    check_list(list, s, NULL);
    oracle_drop_snapshot(&before);
}

static void test_too_small(void **state)
{
    int counter;
    (void)state;
    describe = describe_case;
    for (counter = 0; counter < 200; counter++) {
        nlist list = {0};
        oracle_scene s;
        nlist_desc d;
        feeder f;
        int source;
        if (!chosen(counter)) continue;
        oracle_make(&s, roll(ORACLE_INPUTS), 2 + roll(2), roll(8), 2 + roll(60), option_sets[roll(6)], &dice);
        do source = roll(SOURCES); while (!possible(&s, source));
        d = oracle_desc(&s);
        d.half = roll(2);
        d.history = roll(3) * 8;
        now.scene = &s;
        now.desc = &d;
        now.source = source;
        make_feeder(&f, &s, source);
        CHECK_RESULT(feed(&list, &d, &f, &s), NLIST_OK); /* what the refusal must leave alone */
        {
            nlist truth = {0};
            CHECK_RESULT(feed(&truth, &d, &f, &s), NLIST_OK);
            set_variant(&d, &variants[roll(7)], 1);
            check_too_small(&list, &s, &f, &d, &truth);
            nlist_free(&truth);
        }
        drop_feeder(&f);
        oracle_forget(&s);
        nlist_free(&list);
    }
}

/* ------------------------------------------------------------------------------------------------
   Skin
   ------------------------------------------------------------------------------------------------ */

static int moved(const nlist *list, const real *pos, size_t stride)
{
    int32_t answer = -1;
    CHECK_RESULT(nlist_moved(list, pos, stride, &answer), NLIST_OK);
    CHECK(answer == 0 || answer == 1);
    return answer;
}

/* Exactly half the skin is not more than it, the next number is; along an axis, and along 3 : 4 : 5. From the origin, where the
   distance has no rounding. */
static void test_half_a_skin(void **state)
{
    static const real places[2][3] = {{0, 0, 0}, {8, 8, 8}};
    int dim, layout, a, side;
    (void)state;
    for (dim = 2; dim <= 3; dim++) for (layout = 0; layout < 4; layout++) {
        nlist list = {0};
        nlist_desc d;
        real pos[2][3];
        memset(&d, 0, sizeof d);
        d.dim = dim;
        d.radius = 1;
        d.skin = (real)0.625;
        d.layout = (nlist_layout)layout;
        memcpy(pos, places, sizeof pos);
        CHECK_RESULT(nlist_build_brute(&list, &d, pos[0], sizeof pos[0], 2), NLIST_OK);
        CHECK(!moved(&list, pos[0], sizeof pos[0]));
        for (a = 0; a < dim; a++) for (side = -1; side <= 1; side += 2) {
            pos[0][a] = (real)side * (real)0.3125;
            CHECK(!moved(&list, pos[0], sizeof pos[0]));
            pos[0][a] = oracle_beside(pos[0][a], side);
            CHECK(moved(&list, pos[0], sizeof pos[0]));
            pos[0][a] = 0;
        }
        pos[0][0] = (real)0.1875;
        pos[0][1] = (real)-0.25;
        CHECK(!moved(&list, pos[0], sizeof pos[0]));
        pos[0][1] = oracle_beside(pos[0][1], -1);
        CHECK(moved(&list, pos[0], sizeof pos[0]));
        memcpy(pos, places, sizeof pos);
        pos[1][dim - 1] += (real)0.3125; /* the last particle, the last axis */
        CHECK(!moved(&list, pos[0], sizeof pos[0]));
        pos[1][dim - 1] += (real)0.0625;
        CHECK(moved(&list, pos[0], sizeof pos[0]));
        pos[1][dim - 1] = REAL_NAN;
        CHECK(moved(&list, pos[0], sizeof pos[0]));
        nlist_free(&list);
    }
}

/* Across the border of a periodic axis, whether the caller puts the particle back into the box or not. */
static void test_skin_across_the_border(void **state)
{
    nlist list = {0};
    nlist_desc d;
    real pos[6] = {(real)7.875, 2, 2, 4, 4, 4};
    (void)state;
    memset(&d, 0, sizeof d);
    d.radius = 1;
    d.skin = (real)0.5;
    d.periodic[0] = 1;
    d.max[0] = 8;
    CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_OK);
    pos[0] = (real)8.125;
    CHECK(!moved(&list, pos, 0));
    pos[0] = (real)0.125;
    CHECK(!moved(&list, pos, 0));
    pos[0] = (real)0.1875;
    CHECK(moved(&list, pos, 0));
    pos[0] = (real)7.875;
    pos[1] = 10; /* not periodic: that is far */
    CHECK(moved(&list, pos, 0));
    nlist_free(&list);
}

/* Renamed particles have the positions that they had; new ones have none, wherever they are. */
static void test_skin_follows_names(void **state)
{
    int counter;
    (void)state;
    for (counter = 0; counter < 40; counter++) {
        nlist list = {0};
        oracle_scene s;
        nlist_desc d;
        real *pos, *at;
        int32_t *new_id, i, k;
        oracle_make(&s, ORACLE_UNIFORM, 2 + counter % 2, counter / 4 % 4, 2 + roll(20), ORACLE_SKIN, &dice);
        d = oracle_desc(&s);
        d.layout = (nlist_layout)(counter % 4);
        d.grow = 1;
        d.half = roll(2);
        d.history = 4 * roll(2);
        CHECK_RESULT(nlist_build_brute(&list, &d, s.pos, 0, s.n), NLIST_OK);
        new_id = NEW(int32_t, s.n);
        pos = NEW(real, (s.n + 1) * s.dim);
        for (i = 0; i < s.n; i++) new_id[i] = i;
        for (i = s.n - 1; i > 0; i--) {
            int32_t const j = roll((int)i + 1), was = new_id[i];
            new_id[i] = new_id[j];
            new_id[j] = was;
        }
        for (i = 0; i < (s.n + 1) * s.dim; i++) pos[i] = 0;
        for (i = 0; i < s.n; i++) memcpy(pos + new_id[i] * s.dim, oracle_point(&s, i), (size_t)s.dim * sizeof(real));
        CHECK_RESULT(nlist_remap(&list, new_id, s.n), NLIST_OK);
        CHECK(!moved(&list, pos, 0));
        at = pos + roll((int)s.n) * s.dim;
        *at += s.skin * (real)0.25;
        CHECK(!moved(&list, pos, 0));
        *at += s.skin * (real)0.5;
        CHECK(moved(&list, pos, 0));
        *at -= s.skin * (real)0.75;
        CHECK(!moved(&list, pos, 0));
        for (k = 0; k < s.n; k++) new_id[k] = k;
        CHECK_RESULT(nlist_remap(&list, new_id, s.n + 1), NLIST_OK); /* one more, at the origin */
        CHECK(moved(&list, pos, 0));
        free(new_id);
        free(pos);
        oracle_forget(&s);
        nlist_free(&list);
    }
}

/* The promise of the skin: as long as nobody has moved, all who are within the radius are in the list. */
static void test_skin_keeps_its_promise(void **state)
{
    int counter, kept = 0, broken = 0;
    (void)state;
    describe = describe_case;
    for (counter = 0; counter < 60; counter++) {
        nlist list = {0}, fresh = {0};
        oracle_scene s;
        nlist_desc d;
        feeder f;
        int source, step;
        if (!chosen(counter)) continue;
        oracle_make(&s, roll(ORACLE_EMPTY), 2 + roll(2), roll(8), 2 + roll(50), ORACLE_SKIN | (roll(2) ? ORACLE_RADII : 0), &dice);
        do source = roll(SOURCES); while (!possible(&s, source) || source == PAIRS);
        d = oracle_desc(&s);
        now.scene = &s;
        now.desc = &d;
        now.source = source;
        make_feeder(&f, &s, source);
        CHECK_RESULT(feed(&list, &d, &f, &s), NLIST_OK);
        d.skin = 0;
        for (step = 0; step < 12; step++) {
            int32_t i, j;
            int a;
            for (i = 0; i < s.n; i++) for (a = 0; a < s.dim; a++)
                oracle_point(&s, i)[a] += s.skin * between((real)-0.1, (real)0.1);
            if (s.radius <= 0 && !s.radii) break;
            if (moved(&list, s.pos, s.stride)) { broken++; continue; }
            kept++;
            CHECK_RESULT(nlist_build_brute(&fresh, &d, s.pos, s.stride, s.n), NLIST_OK);
            for (i = 0; i < s.n; i++) {
                nlist_each e = nlist_of(&fresh, i);
                while (nlist_next(&e)) {
                    j = e.id;
                    if (nlist_find(&list, i, j) >= 0) continue;
                    CHECK(oracle_distance(&s, oracle_point(&s, i), oracle_point(&s, j)) >= oracle_reach(&s, i, j) - (double)s.skin
                          - oracle_slack(&s, oracle_point(&s, i), oracle_point(&s, j), oracle_reach(&s, i, j)));
                }
            }
        }
        nlist_free(&list);
        nlist_free(&fresh);
        drop_feeder(&f);
        oracle_forget(&s);
    }
    CHECK(share() > 4 || (kept > 20 && broken > 20));
}

/* ------------------------------------------------------------------------------------------------
   Sums
   ------------------------------------------------------------------------------------------------ */

/* A made-up force between i and j, by numbers that differ from pair to pair: antisymmetric, so that the sum over all is 0. */
typedef struct law {
    const nlist *list;
    int values, half, bytes, wrong;
    double scale;
    int64_t calls;
} law;

static real force(const law *l, int32_t i, int32_t j, int v)
{
    int32_t const lower = i < j ? i : j, upper = i < j ? j : i;
    uint32_t const mixed = ((uint32_t)lower * 2654435761u ^ (uint32_t)upper * 0x9E3779B9u) + (uint32_t)v * 0x85EBCA6Bu;
    double const size = ((double)(mixed >> 8) / 16777216.0 - 0.5) * l->scale;
    return (real)(i < j ? size : -size);
}

/* Pairs that do not touch: what the contact then writes must not count. */
static int touches(int32_t i, int32_t j) { return (i + j) % 4 != 1; }

static int push(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    law *l = (law *)user;
    int const touch = touches(i, j);
    int v;
    l->calls++;
    l->wrong |= !history != !l->bytes;
    if (history) l->wrong |= history != nlist_history(l->list, nlist_find(l->list, i, j));
    for (v = 0; v < l->values; v++) {
        l->wrong |= own[v] < 0 || own[v] > 0 || other[v] < 0 || other[v] > 0;
        own[v] = touch ? force(l, i, j, v) : REAL_NAN;
        other[v] = touch && l->half ? -own[v] : REAL_NAN;
    }
    return touch;
}

/* The same without any list: over the pairs of a full list, in double, and in whole units. */
typedef struct plain_sums {
    double *sum, *size;
    int64_t *units;
    real *first;    /* with a unit that is no power of two, where a quotient rounds: what the first way of adding up gave */
} plain_sums;

static plain_sums sum_by_hand(const nlist *full, const law *l, double unit)
{
    plain_sums p;
    size_t const count = (size_t)full->n * (size_t)l->values;
    int32_t i;
    int v;
    p.sum = NEW(double, count);
    p.size = NEW(double, count);
    p.units = NEW(int64_t, count);
    p.first = NULL;
    memset(p.units, 0, count * sizeof *p.units);
    for (i = 0; i < full->n * l->values; i++) p.sum[i] = p.size[i] = 0;
    for (i = 0; i < full->n; i++) {
        nlist_each e = nlist_of(full, i);
        while (nlist_next(&e)) for (v = 0; v < l->values && touches(i, e.id); v++) {
            real const f = force(l, i, e.id, v);
            p.sum[i * l->values + v] += (double)f;
            p.size[i * l->values + v] += fabs((double)f);
            if (unit > 0) p.units[i * l->values + v] += oracle_units(f, unit);
        }
    }
    return p;
}

static void drop_sums(plain_sums *p)
{
    free(p->sum);
    free(p->size);
    free(p->units);
    free(p->first);
}

/* Can the mode be had with this list? */
static int allowed(const nlist_desc *d, nlist_mode mode)
{
    int32_t const w = d->width;
    if (mode != NLIST_REDUCE || d->layout == NLIST_COMPACT || d->layout == NLIST_DYNAMIC) return 1;
    if (w == 0) return d->layout == NLIST_HYBRID;
    return w <= 32 && (w & (w - 1)) == 0;
}

static void check_sum(nlist *list, law *l, const nlist_sums *how, plain_sums *want, int64_t entries)
{
    int exponent;
    int const exact = how->unit > 0 && frexp(how->unit, &exponent) == 0.5;
    int32_t const count = list->n * l->values;
    real *sums = NEW(real, count);
    real const before = how->unit > 0 ? 0 : (real)roll(3);
    int32_t k;
    for (k = 0; k < count; k++) sums[k] = before;
    l->list = list;
    l->half = list->desc.half;
    l->bytes = list->desc.history;
    l->calls = 0;
    CHECK_RESULT(nlist_sum(list, how, push, l, sums), NLIST_OK);
    CHECK(!l->wrong && l->calls == entries);
    for (k = 0; k < count; k++) {
        double const off = fabs((double)sums[k] - ((double)before + want->sum[k]));
        if (exact) CHECK(sums[k] == (real)((double)want->units[k] * how->unit));
        else CHECK(off <= 20 * REAL_EPSILON * ((double)before + want->size[k]) + list->n * how->unit);
    }
    if (how->unit > 0 && want->first) CHECK(same(sums, want->first, (size_t)count * sizeof *sums));
    if (want->first) free(sums);
    else want->first = sums;
}

/* Layouts for sums: all widths that NLIST_REDUCE takes are among them. */
static const variant summed[] = {
    {NLIST_COMPACT, 0}, {NLIST_STATIC, AS_WIDE_AS_NEEDED}, {NLIST_STATIC, POWER_OF_TWO}, {NLIST_DYNAMIC, 0}, {NLIST_HYBRID, 0},
    {NLIST_HYBRID, 1}, {NLIST_HYBRID, 2}, {NLIST_HYBRID, 4}, {NLIST_HYBRID, 5}, {NLIST_HYBRID, 8}, {NLIST_HYBRID, 16},
    {NLIST_HYBRID, 32}, {NLIST_HYBRID, 64},
};

/* Every layout, half and full, every mode, with a unit and without, from any source: the plain sum. */
static void check_sums(const oracle_scene *s, int source, double unit)
{
    nlist list = {0}, full = {0};
    nlist_desc d = oracle_desc(s);
    plain_sums want;
    feeder f;
    law l;
    int k, mode;
    memset(&l, 0, sizeof l);
    l.values = 1 + roll(16);
    l.scale = 3;
    make_feeder(&f, s, source);
    CHECK_RESULT(nlist_build_brute(&full, &d, s->pos, s->stride, s->n), NLIST_OK);
    want = sum_by_hand(&full, &l, unit);
    for (k = 0; k < 2 * COUNT_OF(summed); k++) for (mode = NLIST_AUTO; mode <= NLIST_REDUCE; mode++) {
        nlist_sums how;
        now.desc = &d;
        d.half = k % 2;
        d.history = mode ? 4 : 0;
        d.deterministic = unit > 0 && roll(2);
        set_variant(&d, &summed[k / 2], fullest_row(&full));
        if (d.history) nlist_free(&list); /* its number of bytes is fixed else */
        CHECK_RESULT(feed(&list, &d, &f, s), NLIST_OK);
        how.values = l.values;
        how.mode = (nlist_mode)mode;
        how.unit = unit;
        if (s->n == 0 || allowed(&d, how.mode)) check_sum(&list, &l, &how, &want, list.total);
        else CHECK_RESULT(nlist_sum(&list, &how, push, &l, NULL), NLIST_BAD_WIDTH);
        nlist_free(&list);
    }
    drop_sums(&want);
    drop_feeder(&f);
    nlist_free(&full);
}

static void test_sums(void **state)
{
    int counter, source;
    (void)state;
    describe = describe_case;
    for (counter = 0; counter < 64; counter++) {
        int const input = counter % 3 ? roll(ORACLE_INPUTS) : ORACLE_CLUSTERED; /* crowds have long rows */
        oracle_scene s;
        if (!chosen(counter)) continue;
        oracle_make(&s, input, 2 + roll(2), roll(8), 2 + roll(90), option_sets[roll(6)], &dice);
        do source = roll(SOURCES); while (!possible(&s, source));
        now.scene = &s;
        now.source = source;
        check_sums(&s, source, counter % 4 == 0 ? 0 : counter % 4 == 1 ? 1e-4 : ldexp(1, -12 - roll(8)));
        oracle_forget(&s);
    }
}

/* Half lists with a unit: what i gets is what j loses, to the last bit, whatever the unit. */
static void test_momentum(void **state)
{
    static const double units[] = {1.0 / 65536, 1e-4, 3e-3, 0.7};
    int counter, moving = 0;
    (void)state;
    describe = describe_case;
    for (counter = 0; counter < 48; counter++) {
        nlist list = {0};
        oracle_scene s;
        nlist_desc d;
        nlist_sums how;
        law l;
        real *sums;
        double momentum[3] = {0, 0, 0};
        int32_t i;
        if (!chosen(counter)) continue;
        oracle_make(&s, counter % 2 ? ORACLE_UNIFORM : ORACLE_CLUSTERED, 3, roll(8), 40, 0, &dice);
        d = oracle_desc(&s);
        d.half = 1;
        d.layout = (nlist_layout)(counter % 4);
        d.width = 32;
        d.grow = 1;
        now.scene = &s;
        now.desc = &d;
        CHECK_RESULT(nlist_build_brute(&list, &d, s.pos, s.stride, s.n), NLIST_OK);
        memset(&l, 0, sizeof l);
        l.values = 3;
        l.scale = 8;
        l.list = &list;
        l.half = 1;
        how.values = 3;
        how.mode = (nlist_mode)roll(3); /* REDUCE may not like what the width has grown to */
        how.unit = units[counter / 4 % COUNT_OF(units)];
        sums = NEW(real, 3 * s.n);
        for (i = 0; i < 3 * s.n; i++) sums[i] = 0;
        CHECK_RESULT(nlist_sum(&list, &how, push, &l, sums), NLIST_OK);
        for (i = 0; i < 3 * s.n; i++) {
            momentum[i % 3] += nearbyint((double)sums[i] / how.unit); /* whole numbers below 2^24 */
            moving += fabs((double)sums[i]) > 0.5;
        }
        for (i = 0; i < 3; i++) CHECK(fabs(momentum[i]) < 0.5);
        free(sums);
        oracle_forget(&s);
        nlist_free(&list);
    }
    CHECK(moving > 20 || share() > 4);
}

/* One contact of a chosen size. */
static int one_value(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    (void)i;
    (void)j;
    (void)history;
    own[0] = *(const real *)user;
    other[0] = 1;
    return 1;
}

/* One value must stay below 2^40 units; NaN is never one. */
static void test_sum_overflow(void **state)
{
    static const real pos[6] = {0, 0, 0, (real)0.5, 0, 0};
    real const largest = (real)1099511627776.0; /* 2^40 */
    real const bad[] = {largest, -largest, oracle_beside(largest, 1), REAL_NAN, REAL_INFINITY, -REAL_INFINITY, REAL_LARGEST};
    real const good[] = {(real)1099511562240.0, (real)-1099511562240.0, 0, (real)0.75, (real)-0.75, (real)1.5, (real)-1.5};
    double const truncated[] = {1099511562240.0, -1099511562240.0, 0, 0, 0, 1, -1};
    int layout, half, mode, k;
    (void)state;
    for (layout = 0; layout < 4; layout++) for (half = 0; half < 2; half++) for (mode = 0; mode <= NLIST_REDUCE; mode++) {
        nlist list = {0};
        nlist_desc d;
        nlist_sums how;
        real sums[2];
        memset(&d, 0, sizeof d);
        d.radius = 1;
        d.half = half;
        d.layout = (nlist_layout)layout;
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_OK);
        how.values = 1;
        how.mode = (nlist_mode)mode;
        how.unit = 1;
        for (k = 0; k < COUNT_OF(bad); k++) {
            real value = bad[k];
            sums[0] = 7, sums[1] = -7;
            CHECK_RESULT(nlist_sum(&list, &how, one_value, &value, sums), NLIST_SUM_OVERFLOW);
            CHECK(sums[0] == 7 && sums[1] == -7);
        }
        for (k = 0; k < COUNT_OF(good); k++) {
            real value = good[k];
            sums[0] = sums[1] = 0;
            CHECK_RESULT(nlist_sum(&list, &how, one_value, &value, sums), NLIST_OK);
            CHECK((double)sums[0] == truncated[k] && (double)sums[1] == (half ? 1 : truncated[k]));
        }
        nlist_free(&list);
    }
}

/* Without a unit NaN and Inf go the usual way. */
static void test_sum_without_unit(void **state)
{
    static const real pos[6] = {0, 0, 0, (real)0.5, 0, 0};
    real value = REAL_NAN, sums[2] = {0, 0};
    nlist list = {0};
    nlist_desc d;
    nlist_sums how;
    (void)state;
    memset(&d, 0, sizeof d);
    memset(&how, 0, sizeof how);
    d.radius = 1;
    d.half = 1;
    how.values = 1;
    CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_OK);
    CHECK_RESULT(nlist_sum(&list, &how, one_value, &value, sums), NLIST_OK);
    CHECK(sums[0] != sums[0] && sums[1] == 1);
    nlist_free(&list);
}

/* History written in a contact function is what the next step finds. */
static int count_steps(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    int32_t steps;
    (void)user;
    (void)i;
    (void)j;
    memcpy(&steps, history, sizeof steps);
    steps++;
    memcpy(history, &steps, sizeof steps);
    own[0] = other[0] = (real)steps;
    return 1;
}

static void test_sum_writes_history(void **state)
{
    static const real pos[6] = {0, 0, 0, (real)0.5, 0, 0};
    int layout, half, mode, step;
    (void)state;
    for (layout = 0; layout < 4; layout++) for (half = 0; half < 2; half++) for (mode = 0; mode <= NLIST_REDUCE; mode++) {
        nlist list = {0};
        nlist_desc d;
        nlist_sums how;
        memset(&d, 0, sizeof d);
        d.radius = 1;
        d.half = half;
        d.history = 4;
        d.layout = (nlist_layout)layout;
        how.values = 1;
        how.mode = (nlist_mode)mode;
        how.unit = 0;
        for (step = 1; step <= 3; step++) {
            real sums[2] = {0, 0};
            CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_OK);
            CHECK_RESULT(nlist_sum(&list, &how, count_steps, NULL, sums), NLIST_OK);
            CHECK((double)sums[0] == step && (double)sums[1] == step);
        }
        nlist_free(&list);
    }
}

/* ------------------------------------------------------------------------------------------------
   History: thousands of random steps against the map
   ------------------------------------------------------------------------------------------------ */

typedef struct world {
    oracle_scene s;
    nlist list;
    oracle_memory m;
    nlist_desc d;       /* of the last build: layout, half, history, events stay or change as the steps say */
    heap h;
    int64_t met[4];     /* contacts that began, persisted, ended, began again, over all builds */
} world;

enum { MOVE, RENAME, SORT, EXCHANGE, GROW, SHRINK, FILE_AND_BACK, REFUSED, NO_MEMORY, AGAIN, STEPS };

static uint64_t current_seed;
static int current_step;

static void describe_walk(void)
{
    print_error("  NLIST_TEST_SEED=%llu, step %d\n", (unsigned long long)current_seed, current_step);
    describe_case();
}

static void pick_layout(nlist_desc *d)
{
    static const int32_t widths[] = {1, 2, 3, 4, 8};
    d->layout = (nlist_layout)roll(4);
    d->width = d->layout == NLIST_HYBRID ? roll(5) : widths[roll(5)];
    d->grow = 1;
}

static void pick_exclusions(oracle_scene *s)
{
    free(s->exclude);
    free(s->exclude_start);
    s->exclude = NULL;
    s->exclude_start = NULL;
    s->options &= ~ORACLE_EXCLUDE;
    if (roll(3) == 0 && s->n > 1) {
        s->options |= ORACLE_EXCLUDE;
        oracle_set_exclusions(s, &dice);
    }
}

/* The desc for the scene as it is now, with what the world has decided. */
static nlist_desc world_desc(const world *w)
{
    nlist_desc d = oracle_desc(&w->s);
    d.layout = w->d.layout;
    d.width = w->d.width;
    d.half = w->d.half;
    d.history = w->d.history;
    d.events = w->d.events;
    d.grow = 1;
    d.allocator = w->d.allocator;
    return d;
}

/* Mostly a box full of contacts; now and then next to nobody. */
static int32_t some_particles(void) { return roll(8) ? 15 + roll(50) : 1 + roll(6); }

static void start_world(world *w)
{
    static const int32_t bytes[] = {1, 4, 13, 16, 64, 3, 200};
    int const options = (roll(2) ? ORACLE_RADII : 0) | (roll(2) ? ORACLE_SKIN : 0) | (roll(2) ? ORACLE_STRIDE : 0);
    memset(w, 0, sizeof *w);
    oracle_make(&w->s, ORACLE_UNIFORM, 2 + roll(2), roll(8), some_particles(), options, &dice);
    if (roll(2)) {
        w->s.options |= ORACLE_MASKS;
        oracle_set_masks(&w->s, &dice);
    }
    w->d.half = roll(2);
    w->d.history = bytes[roll(COUNT_OF(bytes))];
    w->d.events = roll(3) > 0;
    w->d.allocator = allocator_of(&w->h);
    pick_layout(&w->d);
}

static void end_world(world *w)
{
    nlist_free(&w->list);
    CHECK(w->h.live_blocks == 0 && w->h.live_bytes == 0 && !w->h.wrong);
    oracle_memory_free(&w->m);
    oracle_forget(&w->s);
}

static void put_anywhere(oracle_scene *s, int32_t i)
{
    int a;
    for (a = 0; a < s->dim; a++) oracle_point(s, i)[a] = between(s->min[a], s->max[a]);
    if (s->radii) s->radii[i] = between(0, s->radii_max);
    if (s->masks) s->masks[i] = roll(9) ? 1u << roll(3) : 0;
}

/* Most move a little, some jump. */
static void move_all(oracle_scene *s)
{
    real const most = s->cell * (roll(4) ? (real)0.05 : (real)0.5);
    int32_t i;
    int a;
    for (i = 0; i < s->n; i++) {
        if (roll(50) == 0) { put_anywhere(s, i); continue; }
        for (a = 0; a < s->dim; a++) {
            real const x = oracle_point(s, i)[a] + between(-most, most);
            if (s->periodic[a] || (x >= s->min[a] && x <= s->max[a])) oracle_point(s, i)[a] = x;
        }
    }
}

/* n particles from now on; where `from` is given, particle i is the former from[i] (-1: a new one), else those that there were
   stay. */
static void take_particles(oracle_scene *s, const int32_t *from, int32_t n)
{
    oracle_scene was = *s;
    int32_t i;
    s->n = n;
    s->pos = NEW(real, (size_t)n * s->step);
    if (was.radii) s->radii = NEW(real, n);
    if (was.masks) s->masks = NEW(uint32_t, n);
    for (i = 0; i < n; i++) {
        int32_t const k = from ? from[i] : i < was.n ? i : -1;
        put_anywhere(s, i);
        if (k < 0) continue;
        memcpy(oracle_point(s, i), oracle_point(&was, k), (size_t)s->dim * sizeof(real));
        if (s->radii) s->radii[i] = was.radii[k];
        if (s->masks) s->masks[i] = was.masks[k];
    }
    free(was.pos);
    free(was.radii);
    free(was.masks);
    s->exclude = NULL;
    s->exclude_start = NULL;
    free(was.exclude);
    free(was.exclude_start);
}

static nlist_result world_feed(world *w, const nlist_desc *d)
{
    feeder f;
    nlist_result r;
    int source;
    do source = roll(SOURCES); while (!possible(&w->s, source));
    now.source = source;
    now.desc = d;
    make_feeder(&f, &w->s, source);
    r = feed(&w->list, d, &f, &w->s);
    drop_feeder(&f);
    return r;
}

/* A build, and everything that must follow from it. */
static void world_build(world *w)
{
    nlist_desc d;
    oracle_find(&w->s);
    d = world_desc(w);
    CHECK_RESULT(world_feed(w, &d), NLIST_OK);
    oracle_name_new_ones(&w->m, w->s.n);
    check_list(&w->list, &w->s, w->m.name);
    if (w->d.events) CHECK_FINE(oracle_check_events(&w->m, &w->list));
    w->met[3] -= w->m.reborn;
    CHECK_FINE(oracle_remember(&w->m, &w->list));
    w->met[0] += w->m.begun;
    w->met[1] += w->m.persisted;
    w->met[2] += w->m.ended;
    w->met[3] += w->m.reborn;
    oracle_stamp(&w->m, &w->list, 1 + roll(3), &dice);
    CHECK_FINE(oracle_recall(&w->m, &w->list));
}

/* The list without a build: as it is in the memory. */
static void world_recall(world *w)
{
    CHECK_FINE(oracle_recall(&w->m, &w->list));
    CHECK_RESULT(nlist_validate(&w->list), NLIST_OK);
    CHECK(w->h.live_bytes == nlist_bytes(&w->list));
}

static void step_move(world *w)
{
    move_all(&w->s);
    if (roll(4) == 0) pick_layout(&w->d);
    if (roll(8) == 0) pick_exclusions(&w->s);
    if (roll(20) == 0) w->d.events = !w->d.events;
    world_build(w);
}

/* new_id for a step that keeps each with the chance of `keep` in 16, and n of them from then on. */
static int32_t *pick_names(int32_t old, int32_t n, int keep)
{
    int32_t *new_id = NEW(int32_t, old), *free_id = NEW(int32_t, n), left = n, i;
    for (i = 0; i < n; i++) free_id[i] = i;
    for (i = 0; i < old; i++) {
        int32_t const k = left ? roll((int)left) : 0;
        new_id[i] = -1;
        if (left == 0 || roll(16) >= keep) continue;
        new_id[i] = free_id[k];
        free_id[k] = free_id[--left];
    }
    free(free_id);
    return new_id;
}

static void world_remap(world *w, const int32_t *new_id, int32_t n)
{
    int32_t const old = w->s.n;
    int32_t *from = NEW(int32_t, n), i;
    for (i = 0; i < n; i++) from[i] = -1;
    for (i = 0; i < old; i++) if (new_id[i] >= 0) from[new_id[i]] = i;
    CHECK_RESULT(nlist_remap(&w->list, new_id, n), NLIST_OK);
    CHECK(w->list.n == n);
    take_particles(&w->s, from, n);
    oracle_rename(&w->m, new_id, n, 0);
    world_recall(w);
    free(from);
    if (roll(2)) oracle_stamp(&w->m, &w->list, 3, &dice);
}

static void step_rename(world *w)
{
    int32_t *new_id = pick_names(w->s.n, w->s.n, 16);
    world_remap(w, new_id, w->s.n);
    free(new_id);
}

static void step_exchange(world *w)
{
    int32_t const n = roll(20) == 0 ? 0 : roll(2) ? some_particles() : w->s.n;
    int32_t *new_id = pick_names(w->s.n, n, roll(17));
    world_remap(w, new_id, n);
    free(new_id);
    if (n == 0) take_particles(&w->s, NULL, some_particles());
    world_build(w);
}

/* The order of a grid: its permutation is what nlist_remap takes. */
static void step_sort(world *w)
{
    ugrid grid = {0};
    ugrid_desc d = oracle_ugrid_desc(&w->s);
    d.method = roll(2) ? UGRID_SORT : UGRID_COUNT;
    d.inverse = 1;
    CHECK(ugrid_build(&grid, &d, w->s.pos, w->s.stride, w->s.n) == UGRID_OK);
    world_remap(w, grid.inverse, w->s.n);
    ugrid_free(&grid);
}

static void step_grow(world *w)
{
    take_particles(&w->s, NULL, w->s.n + 1 + roll(w->s.n < 60 ? 40 : 1));
    world_build(w);
}

static void step_shrink(world *w)
{
    take_particles(&w->s, NULL, w->s.n - roll((int)(w->s.n < 20 ? w->s.n : w->s.n / 2)));
    world_build(w);
}

/* Through a file into another list, of another layout, which then is the list. */
static void step_file(world *w)
{
    nlist other = {0};
    nlist_desc d = world_desc(w);
    int64_t needed = 0;
    void *bytes;
    CHECK_RESULT(nlist_save(&w->list, NULL, 0, &needed), NLIST_BUFFER_TOO_SMALL);
    bytes = exactly((size_t)needed);
    CHECK_RESULT(nlist_save(&w->list, bytes, needed, &needed), NLIST_OK);
    pick_layout(&w->d);
    d.layout = w->d.layout;
    d.width = w->d.width;
    d.skin = w->list.desc.skin; /* 0 from pairs, which have no positions */
    now.desc = &d;
    CHECK_RESULT(nlist_load(&other, &d, bytes, needed), NLIST_OK);
    CHECK_FINE(oracle_same_order(&other, &w->list));
    nlist_free(&w->list);
    w->list = other;
    free(bytes);
    world_recall(w);
}

static void step_refused(world *w)
{
    nlist_desc d = world_desc(w);
    int32_t *new_id;
    switch (roll(5)) {
    case 0: d.radius = -1; CHECK_RESULT(world_feed(w, &d), NLIST_BAD_RADIUS); break;
    case 1: d.history++; CHECK_RESULT(world_feed(w, &d), NLIST_BAD_HISTORY); break;
    case 2:
        w->s.pos[0] = REAL_NAN;
        CHECK_RESULT(nlist_build_brute(&w->list, &d, w->s.pos, w->s.stride, w->s.n), NLIST_NOT_FINITE);
        CHECK(w->list.bad_id == 0);
        put_anywhere(&w->s, 0);
        break;
    case 3: d.allocator.user = w; CHECK_RESULT(world_feed(w, &d), NLIST_BAD_ALLOCATOR); break;
    default:
        new_id = pick_names(w->s.n, w->s.n, 16);
        new_id[w->s.n - 1] = w->s.n;
        CHECK_RESULT(nlist_remap(&w->list, new_id, w->s.n), NLIST_BAD_INDEX);
        free(new_id);
    }
    world_recall(w);
}

/* Memory is refused at some time of a build in which the list has to grow. */
static void step_no_memory(world *w)
{
    nlist_desc d;
    nlist_result r;
    int32_t const n = w->s.n;
    take_particles(&w->s, NULL, 3 * n + 40);
    pick_layout(&w->d);
    d = world_desc(w);
    w->h.fail_at = w->h.calls + 1 + roll(12);
    r = world_feed(w, &d);
    w->h.fail_at = 0;
    take_particles(&w->s, NULL, n);
    if (r == NLIST_OUT_OF_MEMORY) { world_recall(w); return; }
    CHECK_RESULT(r, NLIST_OK);
    nlist_free(&w->list);
    oracle_memory_free(&w->m);
    world_build(w);
}

static void step_again(world *w)
{
    nlist_free(&w->list);
    CHECK(w->h.live_blocks == 0);
    oracle_memory_free(&w->m);
    world_build(w);
}

static void random_step(world *w)
{
    static const uint8_t chance[STEPS] = {58, 5, 5, 8, 4, 3, 5, 5, 5, 2};
    static void (*const steps[STEPS])(world *) = {step_move, step_rename, step_sort, step_exchange, step_grow, step_shrink,
                                                  step_file, step_refused, step_no_memory, step_again};
    int kind = 0, left = roll(100);
    while (left >= chance[kind]) left -= chance[kind++];
    steps[kind](w);
}

/* A walk of some hundred steps through one world. Adds to the counts of what has been met. */
static void random_walk(uint64_t seed, int steps, int64_t met[4])
{
    world w;
    int k;
    current_seed = seed;
    dice = wl_seed(seed);
    start_world(&w);
    now.scene = &w.s;
    world_build(&w);
    for (current_step = 0; current_step < steps; current_step++) random_step(&w);
    for (k = 0; k < 4; k++) met[k] += w.met[k];
    end_world(&w);
}

static void test_random_walks(void **state)
{
    int const steps = environment("NLIST_TEST_STEPS", 12000 / share()), walks = steps / 150 + 1;
    uint64_t const seed = (uint64_t)environment("NLIST_TEST_SEED", 0);
    int64_t met[4] = {0, 0, 0, 0};
    int k;
    (void)state;
    describe = describe_walk;
    for (k = 0; k < (seed ? 1 : walks); k++) random_walk(seed ? seed : 1000 + (uint64_t)k, 150, met);
    CHECK(seed || share() > 4 || (met[0] > 10000 && met[1] > 10000 && met[2] > 10000 && met[3] > 5000));
}

/* Two particles meet, part and meet again, for every number of bytes, layout, and with half and full: by hand. */
static void test_born_and_dead(void **state)
{
    static const int32_t bytes[] = {1, 2, 3, 4, 13, 16, 64, 4096};
    static const real apart[] = {(real)0.5, (real)0.75, 3, (real)0.5, 3, 3, 1};
    static const int64_t want[][NLIST_EVENT_KINDS] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 0}, {0, 0, 1}, {0, 0, 0}, {1, 0, 0}};
    int k, layout, half, step, kind, b;
    (void)state;
    for (k = 0; k < COUNT_OF(bytes); k++) for (layout = 0; layout < 4; layout++) for (half = 0; half < 2; half++) {
        nlist list = {0};
        nlist_desc d;
        memset(&d, 0, sizeof d);
        d.radius = 1;
        d.half = half;
        d.history = bytes[k];
        d.events = 1;
        d.layout = (nlist_layout)layout;
        for (step = 0; step < COUNT_OF(apart); step++) {
            real pos[6] = {0, 0, 0, 0, 0, 0};
            uint8_t *h;
            pos[3] = apart[step];
            CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_OK);
            for (kind = 0; kind < NLIST_EVENT_KINDS; kind++) {
                CHECK(list.event_count[kind] == want[step][kind]);
                if (want[step][kind]) CHECK(list.event[kind][0].i == 0 && list.event[kind][0].j == 1);
            }
            CHECK((nlist_find(&list, 0, 1) >= 0) == (apart[step] <= 1));
            CHECK((nlist_find(&list, 1, 0) >= 0) == (apart[step] <= 1 && !half));
            CHECK((nlist_find_pair(&list, 1, 0) >= 0) == (apart[step] <= 1) && nlist_find(&list, 0, 0) == -1);
            if (want[step][NLIST_ENDED]) {
                h = (uint8_t *)nlist_history_before(&list, list.event[NLIST_ENDED][0].entry);
                for (b = 0; b < bytes[k]; b++) CHECK(h[b] == (uint8_t)(step + b));
            }
            if (apart[step] > 1) continue;
            h = (uint8_t *)nlist_history(&list, nlist_find(&list, 0, 1));
            for (b = 0; b < bytes[k]; b++) {
                CHECK(h[b] == (want[step][NLIST_BEGUN] ? 0 : (uint8_t)(step + b)));
                h[b] = (uint8_t)(step + 1 + b);
            }
        }
        nlist_free(&list);
    }
}

/* More particles: as many pairs as the grid counts, and the tree finds the same ones. */
static void test_uniform(void **state)
{
    int32_t const n = small_run() ? 1000 : SANITIZED ? 5000 : 30000;
    float *p = NEW(float, 3 * n);
    real *pos = NEW(real, 3 * n), radius = (real)wl_radius(n, 30);
    ugrid grid = {0};
    lbvh tree = {0};
    ugrid_desc g;
    lbvh_desc t;
    int64_t pairs = 0;
    int32_t i;
    int k;
    (void)state;
    wl_uniform(n, 7, p);
    for (i = 0; i < 3 * n; i++) pos[i] = (real)p[i];
    memset(&g, 0, sizeof g);
    memset(&t, 0, sizeof t);
    g.cell = radius;
    t.kind = LBVH_POINTS;
    CHECK(ugrid_build(&grid, &g, pos, 0, n) == UGRID_OK && lbvh_build(&tree, &t, pos, 0, n) == LBVH_OK);
    CHECK(ugrid_count_pairs(&grid, radius, &pairs) == UGRID_OK && pairs > 10 * (int64_t)n);
    for (k = 0; k < 8; k++) {
        nlist through_grid = {0}, through_tree = {0};
        nlist_desc d;
        memset(&d, 0, sizeof d);
        d.radius = radius;
        d.half = k & 1;
        d.layout = (nlist_layout)(k / 2);
        d.width = d.layout == NLIST_HYBRID ? 16 : 128;
        CHECK_RESULT(nlist_build_ugrid(&through_grid, &d, &grid, pos, 0, n), NLIST_OK);
        CHECK_RESULT(nlist_build_lbvh(&through_tree, &d, &tree, pos, 0, n), NLIST_OK);
        CHECK(through_grid.total == (d.half ? pairs : 2 * pairs));
        CHECK_FINE(oracle_same_rows(&through_grid, &through_tree));
        check_arrays(&through_grid);
        nlist_free(&through_grid);
        nlist_free(&through_tree);
    }
    ugrid_free(&grid);
    lbvh_free(&tree);
    free(p);
    free(pos);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_product_2d),
        TEST(test_product_3d),
        TEST(test_larger),
        TEST(test_uniform),
        TEST(test_too_small),
        TEST(test_half_a_skin),
        TEST(test_skin_across_the_border),
        TEST(test_skin_follows_names),
        TEST(test_skin_keeps_its_promise),
        TEST(test_sums),
        TEST(test_momentum),
        TEST(test_sum_overflow),
        TEST(test_sum_without_unit),
        TEST(test_sum_writes_history),
        TEST(test_born_and_dead),
        TEST(test_random_walks),
    };
    if (getenv("NLIST_TEST_ONLY")) cmocka_set_test_filter(getenv("NLIST_TEST_ONLY"));
    return cmocka_run_group_tests_name("nlist", tests, NULL, NULL);
}
